/*
 * linear_probing_test.cu
 *		The linear-probing tables against a host map: both widths, all kinds.
 *
 *	g++ -std=c++17 -O2 -x c++ -Igpu -Itest -Ibench/tables THIS	(no GPU)
 *	nvcc -std=c++17 -O3 -arch=native -Igpu -Ibench/tables THIS
 *
 * Prints a line for each check that fails, then "N passed, N failed".
 */
#include "linear_probing.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#if defined(__CUDACC__)
#ifndef TEST_SCALE
#define TEST_SCALE 256
#endif
static const uint64_t SCALE = TEST_SCALE; /* sizes are for the fibers */
static const int MIXTURES = 40;
#else
static const uint64_t SCALE = 1;
static const int MIXTURES = 120;
#endif

static unsigned n_passed,
			n_failed;
static std::string where;

static void
check(bool ok, const char *what, unsigned long long got = 0, unsigned long long wanted = 0)
{
	if (ok)
		n_passed++;
	else
	{
		n_failed++;
		printf("FAILED %s: %s (%llu, wanted %llu)\n", where.c_str(), what, got, wanted);
	}
}

static void
check_equal(unsigned long long got, unsigned long long wanted, const char *what)
{
	check(got == wanted, what, got, wanted);
}

static void
cuda(cudaError_t error)
{
	if (error != cudaSuccess)
	{
		printf("FAILED %s: %s\n", where.c_str(), cudaGetErrorString(error));
		exit(1);
	}
}

/* An array on the device. */
template <typename T>
struct device_array
{
	T		   *at = nullptr;
	size_t		n;

	explicit device_array(size_t n) : n(n)
	{
		cuda(cudaMalloc(&at, n ? n * sizeof(T) : 1));
	}
	explicit device_array(const std::vector<T> &from) : device_array(from.size())
	{
		cuda(cudaMemcpy(at, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}
	~device_array()
	{
		cudaFree(at);
	}
	device_array(const device_array &) = delete;
	device_array &operator=(const device_array &) = delete;

	std::vector<T> host() const
	{
		std::vector<T> to(n);

		cuda(cudaMemcpy(to.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
		return to;
	}
};

/* A table and the map that it must equal. */
template <typename Word, linear_kind KIND>
struct subject
{
	typedef std::unordered_map<Word, Word> map;
	static const Word ABSENT = (Word) ~(Word) 0;

	linear_probing<Word, Word, KIND> table;
	map			expected;
	int			block_threads = 64;

	explicit subject(uint64_t n_slots)
	{
		cuda(table.create(n_slots, 0));
	}
	~subject()
	{
		table.destroy();
		table.destroy();		/* allowed */
	}

	void insert(const std::vector<Word> &keys, const std::vector<Word> &values)
	{
		device_array<Word> k(keys),
					v(values);

		cuda(table.insert(k.at, v.at, keys.size(), block_threads, 0));
		cuda(cudaDeviceSynchronize());
		for (size_t i = 0; i < keys.size(); i++)
			expected[keys[i]] = values[i];
	}

	void erase(const std::vector<Word> &keys)
	{
		device_array<Word> k(keys);

		cuda(table.erase(k.at, keys.size(), block_threads, 0));
		cuda(cudaDeviceSynchronize());
		for (Word key : keys)
			expected.erase(key);
	}

	std::vector<Word> find(const std::vector<Word> &keys)
	{
		device_array<Word> k(keys),
					v(keys.size());

		cuda(table.find(k.at, v.at, keys.size(), block_threads, 0));
		cuda(cudaDeviceSynchronize());
		return v.host();
	}

	map content(uint64_t *n_found)
	{
		uint64_t	capacity = table.slots();
		device_array<Word> k(capacity),
					v(capacity);
		map			pairs;

		cuda(table.iterate(k.at, v.at, capacity, n_found, 0));

		std::vector<Word> keys = k.host(),
					values = v.host();

		for (uint64_t i = 0; i < *n_found; i++)
			pairs[keys[i]] = values[i];
		return pairs;
	}

	/* The table is the map: looked up, iterated and counted. */
	void verify(const std::vector<Word> &others, const char *what)
	{
		std::vector<Word> keys;
		uint64_t	n_entries,
					n_found,
					wrong = 0;

		for (const auto &e : expected)
			keys.push_back(e.first);
		keys.insert(keys.end(), others.begin(), others.end());

		std::vector<Word> got = find(keys);

		for (size_t i = 0; i < keys.size(); i++)
		{
			auto		e = expected.find(keys[i]);

			wrong += got[i] != (e == expected.end() ? ABSENT : e->second);
		}
		check_equal(wrong, 0, (std::string(what) + ": keys looked up wrongly").c_str());
		cuda(table.size(&n_entries, 0));
		check_equal(n_entries, expected.size(), (std::string(what) + ": size").c_str());

		map			pairs = content(&n_found);

		check_equal(n_found, expected.size(), (std::string(what) + ": pairs iterated").c_str());
		check(pairs == expected, (std::string(what) + ": the pairs iterated differ").c_str());
	}

	uint64_t failures()
	{
		uint64_t	n;

		cuda(table.failures(&n, 0));
		return n;
	}
};

static std::mt19937_64 rng(42);

template <typename Word>
static Word
random_key()
{
	Word		k;

	do
		k = (Word) rng();
	while (k == (Word) ~(Word) 0);
	return k;
}

template <typename Word>
static std::vector<Word>
distinct_keys(size_t n, std::set<Word> *used)
{
	std::vector<Word> keys;

	while (keys.size() < n)
	{
		Word		k = random_key<Word>();

		if (used->insert(k).second)
			keys.push_back(k);
	}
	return keys;
}

/* Keys whose home is home, of a table of n_slots. */
template <typename Word>
static std::vector<Word>
keys_at_home(size_t n, uint64_t home, uint64_t n_slots)
{
	std::vector<Word> keys;

	for (Word k = 0; keys.size() < n; k++)
		if ((linear_hash(k) & (n_slots - 1)) == home)
			keys.push_back(k);
	return keys;
}

template <typename Word>
static std::vector<Word>
values_for(const std::vector<Word> &keys, Word salt)
{
	std::vector<Word> values;

	for (Word k : keys)
		values.push_back((Word) ((k * 2654435761u + salt) >> 1));	/* never all ones */
	return values;
}

template <typename Word>
static std::vector<Word>
part(const std::vector<Word> &v, size_t from, size_t to)
{
	return std::vector<Word>(v.begin() + from, v.begin() + to);
}

/* ---------- one operation after the other ---------- */

template <typename Word, linear_kind KIND>
static void
test_operations()
{
	const uint64_t slots = 1024 * SCALE;
	std::set<Word> used;
	std::vector<Word> keys = distinct_keys<Word>(slots * 7 / 10, &used);
	std::vector<Word> others = distinct_keys<Word>(slots / 4, &used);
	subject<Word, KIND> s(slots);
	uint64_t	n_found;

	keys[0] = 0;
	keys[1] = (Word) ~(Word) 0 - 1;
	s.verify(others, "empty");
	s.insert({}, {});
	s.insert(keys, values_for<Word>(keys, 1));
	s.verify(others, "inserted");
	check_equal(s.failures(), 0, "failures");
	s.insert(part(keys, 0, 500), values_for<Word>(part(keys, 0, 500), 2));
	s.verify(others, "replaced");
	s.erase(part(keys, 100, 400));
	s.verify(others, "erased");
	s.erase(part(keys, 300, 500));
	s.erase(others);
	s.verify(others, "erased again, and what is not there");
	s.insert(part(keys, 200, 450), values_for<Word>(part(keys, 200, 450), 3));
	s.verify(others, "inserted what was erased");

	/* iterate into too little room */
	{
		device_array<Word> k(std::vector<Word>(11, 77)),
					v(std::vector<Word>(11, 77));

		cuda(s.table.iterate(k.at, v.at, 10, &n_found, 0));
		check_equal(n_found, s.expected.size(), "iterate counts what has no room");
		check_equal(k.host()[10], 77, "iterate keeps to its room");
		check(s.expected.count(k.host()[9]), "iterate fills its room");
	}

	s.block_threads = 256;
	cuda(s.table.clear(0));
	s.expected.clear();
	s.verify(keys, "cleared");
	s.insert(others, values_for<Word>(others, 4));
	s.verify(keys, "inserted after clear");
}

/* Equal keys in one call: one entry, with the value of one of them. */
template <typename Word, linear_kind KIND>
static void
test_duplicates()
{
	const size_t n = 2000 * SCALE;
	subject<Word, KIND> s(256);
	std::vector<Word> keys,
				values;
	std::unordered_map<Word, std::set<Word>> allowed;
	std::unordered_map<Word, Word> sums;
	uint64_t	n_found,
				wrong = 0;

	for (size_t i = 0; i < n; i++)
	{
		keys.push_back((Word) (rng() % 100) * (Word) 0x01010101);
		values.push_back((Word) (i + 1));
		allowed[keys[i]].insert(values[i]);
		sums[keys[i]] += values[i];
	}
	s.insert(keys, values);
	for (const auto &e : s.content(&n_found))
		wrong += !allowed[e.first].count(e.second);
	check_equal(wrong, 0, "values of nobody");
	check_equal(n_found, allowed.size(), "entries of repeated keys");

	/* the same keys added up */
	{
		device_array<Word> k(keys),
					v(values);

		cuda(s.table.clear(0));
		cuda(s.table.insert_sum(k.at, v.at, n, 128, 0));
		cuda(cudaDeviceSynchronize());
	}
	s.expected = sums;
	s.verify({123}, "sums");
}

/* ---------- collisions and full tables ---------- */

template <typename Word, linear_kind KIND>
static void
test_collisions()
{
	subject<Word, KIND> s(256);
	/* one long run that wraps around the end, with others in its way */
	std::vector<Word> last = keys_at_home<Word>(100, 255, 256);
	std::vector<Word> first = keys_at_home<Word>(60, 0, 256);
	std::vector<Word> absent = part(keys_at_home<Word>(120, 255, 256), 100, 120);
	std::vector<uint64_t> bins(128);
	linear_probe_stats stats;
	uint64_t	sum = 0;

	s.insert(last, values_for<Word>(last, 1));
	s.verify(absent, "one home");

	/* every one of 1..100 slots is read for exactly one of the keys */
	cuda(s.table.probe_lengths(&stats, bins.data(), 128, 0));
	check_equal(stats.n_entries, 100, "probe lengths: entries");
	check_equal(stats.max, 100, "probe lengths: max");
	check(stats.mean == 50.5, "probe lengths: mean times 10", (unsigned long long) (stats.mean * 10), 505);
	for (int b = 0; b < 128; b++)
		sum += bins[b] == (b < 100 ? 1u : 0u);
	check_equal(sum, 128, "probe lengths: bins as they should be");
	cuda(s.table.probe_lengths(&stats, bins.data(), 10, 0));
	check_equal(bins[9], 91, "probe lengths: the last bin has the rest");
	check(s.table.probe_lengths(&stats, bins.data(), 0, 0) != cudaSuccess, "no bins are refused");

	s.insert(first, values_for<Word>(first, 2));
	s.verify(absent, "two homes");
	s.erase(part(last, 0, 50));
	s.verify(absent, "half of a run erased");
	s.insert(absent, values_for<Word>(absent, 3));
	s.verify({}, "into a run with tombstones");
	s.insert(part(last, 20, 60), values_for<Word>(part(last, 20, 60), 4));
	s.verify({}, "erased ones back into the run");
	check_equal(s.failures(), 0, "failures");

	/* keys in sequence, and keys that differ in their high bits only */
	for (int high = 0; high < 2; high++)
	{
		std::vector<Word> keys;

		cuda(s.table.clear(0));
		s.expected.clear();
		for (Word i = 0; i < 200; i++)
			keys.push_back(high ? (Word) (i << (8 * sizeof(Word) - 8)) : i);
		s.insert(keys, values_for<Word>(keys, 5));
		s.verify(absent, high ? "high bits" : "sequence");
	}
}

template <typename Word, linear_kind KIND>
static void
test_full()
{
	std::set<Word> used;
	std::vector<Word> keys = distinct_keys<Word>(64, &used);
	std::vector<Word> more = distinct_keys<Word>(40, &used);
	subject<Word, KIND> s(50);
	uint64_t	n_entries;

	check_equal(s.table.slots(), 64, "slots are a power of two");
	check(s.table.memory_bytes() >= 128 * sizeof(Word), "memory_bytes");
	s.insert(keys, values_for<Word>(keys, 1));
	s.verify(more, "full");
	check_equal(s.failures(), 0, "failures of a table just full");

	auto		before = s.expected;

	s.insert(more, values_for<Word>(more, 1));
	s.expected = before;
	s.verify(more, "more than full");
	check_equal(s.failures(), 40, "failures");
	s.insert(keys, values_for<Word>(keys, 2));
	s.verify(more, "replaced in a full table");
	check_equal(s.failures(), 40, "replacing does not fail");

	/* tombstones: room for their own keys only, or for all */
	s.erase(part(keys, 0, 30));
	s.verify(more, "erased from a full table");
	before = s.expected;
	s.insert(more, values_for<Word>(more, 3));
	cuda(s.table.size(&n_entries, 0));
	if (KIND == LINEAR_REUSE)
	{
		check_equal(n_entries, 64, "tombstones are taken");
		check_equal(s.failures(), 50, "failures beyond the tombstones");
	}
	else
	{
		s.expected = before;
		s.verify(more, "tombstones are kept");
		check_equal(s.failures(), 80, "failures beside tombstones");
		s.insert(part(keys, 0, 30), values_for<Word>(part(keys, 0, 30), 4));
		s.verify(more, "tombstones are their keys'");
	}

	/* a bound on the probe */
	cuda(s.table.clear(0));
	check_equal(s.failures(), 0, "clear counts anew");
	s.table.set_max_probe(5);
	s.expected.clear();

	std::vector<Word> one_home = keys_at_home<Word>(9, 60, 64);

	s.insert(one_home, values_for<Word>(one_home, 1));
	cuda(s.table.size(&n_entries, 0));
	check_equal(n_entries, 5, "entries within five slots");
	check_equal(s.failures(), 4, "failures beyond five slots");

	uint64_t	n_found = 0;

	for (Word v : s.find(one_home))
		n_found += v != table_absent<Word>();
	check_equal(n_found, 5, "found within five slots");

	/* erasing looks as far as finding */
	cuda(s.table.clear(0));
	s.table.set_max_probe(64);
	s.insert(one_home, values_for<Word>(one_home, 1));
	s.table.set_max_probe(5);
	n_found = 0;
	for (Word v : s.find(one_home))
		n_found += v != table_absent<Word>();
	check_equal(n_found, 5, "found within five slots of a longer run");
	s.erase(one_home);
	cuda(s.table.size(&n_entries, 0));
	check_equal(n_entries, 4, "kept beyond five slots");
	cuda(s.table.clear(0));
	s.insert(part(one_home, 0, 5), values_for<Word>(part(one_home, 0, 5), 1));
	s.insert(one_home, values_for<Word>(one_home, 1));
	s.table.set_max_probe(1000);
	check_equal(s.failures(), 4, "failures stay");
}

/* Sectors: 64 slots of one home and an empty one behind, counted by hand. */
template <typename Word, linear_kind KIND>
static void
test_sectors()
{
	subject<Word, KIND> s(256);
	const uint64_t a_sector = 32 / (2 * sizeof(Word));
	std::vector<Word> keys = keys_at_home<Word>(30, 251, 256);
	uint64_t	wanted = 0,
				got;

	s.insert(keys, values_for<Word>(keys, 1));
	for (uint64_t length = 1; length <= keys.size(); length++)
		for (uint64_t j = 0; j < length; j++)
			wanted += j == 0 || (251 + j) % 256 % a_sector == 0;

	device_array<Word> k(keys);

	cuda(s.table.count_sectors(k.at, keys.size(), &got, 0));
	check_equal(got, wanted, "sectors read for the keys of a run");

	/* a miss reads the run and one slot more */
	std::vector<Word> miss = part(keys_at_home<Word>(31, 251, 256), 30, 31);
	device_array<Word> m(miss);

	wanted = 0;
	for (uint64_t j = 0; j <= keys.size(); j++)
		wanted += j == 0 || (251 + j) % 256 % a_sector == 0;
	cuda(s.table.count_sectors(m.at, 1, &got, 0));
	check_equal(got, wanted, "sectors read for a miss");
}

/* ---------- many threads at once ---------- */

/*
 * Few keys, all homes close together, many operations on each in one launch.
 * Whatever the order, a find may return only what was there before or was
 * inserted, and afterwards each key has one entry at most, with a value of
 * somebody's; without erases it has one, without inserts none.
 */
template <typename Word, linear_kind KIND>
static void
test_mixture(bool inserts, bool erases, int seed)
{
	const size_t n = 768 * SCALE;
	const int	n_keys = 40;
	subject<Word, KIND> s(128);
	std::vector<Word> keys,
				operands,
				pool;
	std::vector<uint8_t> operations;
	std::unordered_map<Word, std::set<Word>> allowed;
	std::unordered_map<Word, bool> inserted,
				erased;
	uint64_t	n_found,
				wrong = 0,
				duplicates = 0;

	(void) seed;
#if !defined(__CUDACC__)
	simt::config.seed = seed + 1;
	simt::config.blocks_at_once = 1 + seed % 6;
	simt::config.switch_one_in = 1 + seed % 4;
#endif
	for (Word k = 0; pool.size() < (size_t) n_keys; k++)
		if ((linear_hash(k) & 127) < 8)
			pool.push_back(k);

	/* before: some keys there, some dead, some dead ones of others between */
	{
		std::vector<Word> others = keys_at_home<Word>(20, 3, 128);
		std::set<Word> in_pool(pool.begin(), pool.end());

		others.erase(std::remove_if(others.begin(), others.end(),
									[&](Word k) { return in_pool.count(k); }), others.end());
		s.insert(others, values_for<Word>(others, 1));
		s.insert(part(pool, 0, 25), std::vector<Word>(25, 5));
		s.erase(others);
		s.erase(part(pool, 10, 20));
	}
	for (const auto &e : s.expected)
		allowed[e.first].insert(e.second);
	for (size_t i = 0; i < n; i++)
	{
		int			choice = (int) (rng() % 3);

		keys.push_back(pool[rng() % n_keys]);
		operands.push_back((Word) (1000 + i));
		operations.push_back(choice == 0 && inserts ? LINEAR_INSERT
							 : choice == 1 && erases ? LINEAR_ERASE : LINEAR_FIND);
		if (operations[i] == LINEAR_INSERT)
		{
			allowed[keys[i]].insert(operands[i]);
			inserted[keys[i]] = true;
		}
		else if (operations[i] == LINEAR_ERASE)
			erased[keys[i]] = true;
	}
	{
		device_array<uint8_t> o(operations);
		device_array<Word> k(keys),
					v(operands);

		cuda(s.table.mixed(o.at, k.at, v.at, n, 96, 0));
		cuda(cudaDeviceSynchronize());
		operands = v.host();
	}
	for (size_t i = 0; i < n; i++)
		if (operations[i] == LINEAR_FIND)
		{
			Word		key = keys[i];
			bool		absent_ok = erased[key] || !s.expected.count(key);

			wrong += operands[i] == table_absent<Word>() ? !absent_ok
				: !allowed[key].count(operands[i]);
		}
	check_equal(wrong, 0, "finds beside other operations");

	/* afterwards */
	auto		pairs = s.content(&n_found);

	duplicates = n_found - pairs.size();
	check_equal(duplicates, 0, "keys with more than one entry");
	wrong = 0;
	for (Word key : pool)
	{
		bool		there = pairs.count(key),
					was = s.expected.count(key);

		if (there)
			wrong += !allowed[key].count(pairs[key]) || (erased[key] && !inserted[key]);
		else
			wrong += (was || inserted[key]) && !erased[key];
	}
	for (const auto &e : pairs)
		wrong += !allowed.count(e.first);
	check_equal(wrong, 0, "entries afterwards");
	check_equal(s.failures(), 0, "failures");

	/* what is found is what iterates: no live copy hides behind a dead one */
	s.expected = pairs;
	s.verify(pool, "afterwards");
}

/*
 * Inserts race for tombstones and for a table's last slots, again and again:
 * batches of inserts and of erases in turn, against the map.
 */
template <typename Word, linear_kind KIND>
static void
test_churn()
{
	subject<Word, KIND> s(64);
	std::vector<Word> pool = keys_at_home<Word>(20, 50, 64);

	for (int round = 0; round < 60; round++)
	{
		std::vector<Word> in,
					out;

#if !defined(__CUDACC__)
		simt::config.blocks_at_once = 4;
		simt::config.switch_one_in = 1 + round % 3;
#endif
		for (Word k : pool)
		{
			switch (rng() % 3)
			{
				case 0:			/* by many threads at once */
					for (int copies = 0; copies < 12; copies++)
						in.push_back(k);
					break;
				case 1:
					out.push_back(k);
					out.push_back(k);
					break;
			}
		}
		std::shuffle(in.begin(), in.end(), rng);
		s.insert(in, values_for<Word>(in, (Word) round));
		s.erase(out);
		s.verify(pool, "churn");
	}
	check_equal(s.failures(), 0, "failures");
}

/*
 * Erased keys come back while new keys want their tombstones: each ends up with
 * its own value.
 */
template <typename Word, linear_kind KIND>
static void
test_revival()
{
	subject<Word, KIND> s(128);
	std::vector<Word> old = keys_at_home<Word>(60, 100, 128);
	std::vector<Word> fresh = part(old, 30, 60);

	old.resize(30);
	for (int round = 0; round < 50; round++)
	{
		std::vector<Word> all = old;

#if !defined(__CUDACC__)
		simt::config.blocks_at_once = 1 + round % 4;
		simt::config.switch_one_in = 1 + round % 3;
#endif
		cuda(s.table.clear(0));
		s.expected.clear();
		s.insert(old, values_for<Word>(old, 1));
		s.erase(old);
		all.insert(all.end(), fresh.begin(), fresh.end());
		std::shuffle(all.begin(), all.end(), rng);
		s.insert(all, values_for<Word>(all, (Word) (round + 2)));
		s.verify({}, "revived");
	}
}

template <typename Word, linear_kind KIND>
static void
test_all()
{
	where = std::string(linear_probing<Word, Word, KIND>::name()) + ", "
		+ std::to_string(8 * sizeof(Word)) + " bits";
	test_operations<Word, KIND>();
	test_duplicates<Word, KIND>();
	test_collisions<Word, KIND>();
	test_full<Word, KIND>();
	test_sectors<Word, KIND>();
	test_churn<Word, KIND>();
	test_revival<Word, KIND>();
	for (int seed = 0; seed < MIXTURES; seed++)
	{
		test_mixture<Word, KIND>(true, false, seed);
		test_mixture<Word, KIND>(false, true, seed);
		if (KIND != LINEAR_REUSE)
			test_mixture<Word, KIND>(true, true, seed);
	}
}

int
main()
{
	int			n_devices = 0;

	if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0)
	{
		printf("no CUDA device\n0 passed, 1 failed\n");
		return 1;
	}
	test_all<uint32_t, LINEAR_TWO_STEP>();
	test_all<uint64_t, LINEAR_TWO_STEP>();
	test_all<uint32_t, LINEAR_ONE_CAS>();
	test_all<uint64_t, LINEAR_ONE_CAS>();
	test_all<uint32_t, LINEAR_REUSE>();
	test_all<uint64_t, LINEAR_REUSE>();
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
