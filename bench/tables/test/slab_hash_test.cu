/*
 * slab_hash_test.cu
 *		The slab hash and its allocators against std::unordered_map and multisets,
 *		on a GPU, or with test/simt.h on the CPU under many interleavings.
 *
 * Every test runs for SlabAlloc and SlabAlloc-light.  Prints a line for each
 * check that fails.
 */
#include "slab_hash.cuh"

#include <stdarg.h>
#include <stdio.h>
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

typedef std::vector<uint32_t> words;

static const uint32_t ABSENT = 0xFFFFFFFFu;
static const uint32_t LARGEST_KEY = 0xFFFFFFFDu;

/* More items than on the CPU; fewer for compute-sanitizer (run.sh --memcheck). */
#if defined(__CUDACC__)
#ifndef TEST_SCALE
#define TEST_SCALE 256
#endif
static const bool ON_GPU = true;
static const uint32_t SCALE = TEST_SCALE;
static const uint32_t N_SEEDS = 20;
#else
static const bool ON_GPU = false;
static const uint32_t SCALE = 1;
static const uint32_t N_SEEDS = 6;
#endif

/* Warps that may each hold a slab for a moment. */
static const uint32_t N_WARPS = ON_GPU ? 64 * 256 : 128;

/* ---------- checks ---------- */

static int	n_passed;
static int	n_failed;
static const char *test_name;

__attribute__((format(printf, 2, 3)))
static bool
check(bool ok, const char *format, ...)
{
	va_list		args;

	ok ? n_passed++ : n_failed++;
	if (ok)
		return true;
	printf("FAILED: %s: ", test_name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return false;
}

static void
cuda(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	printf("FAILED: %s: %s\n", test_name, cudaGetErrorString(error));
	exit(1);
}

/* Schedules differ between the tests' launches. */
static void
schedule(uint64_t seed)
{
#if !defined(__CUDACC__)
	simt::config.seed = seed * 1000 + 1;
	simt::config.blocks_at_once = 1 + seed % 5;
	simt::config.switch_one_in = 1 + seed % 7;
#else
	(void) seed;
#endif
}

/* ---------- device arrays ---------- */

template <typename T>
struct device_array
{
	T		   *p = nullptr;
	size_t		n;

	explicit device_array(size_t n) : n(n)
	{
		cuda(cudaMalloc(&p, (n ? n : 1) * sizeof(T)));
	}

	explicit device_array(const std::vector<T> &from) : device_array(from.size())
	{
		if (n)
			cuda(cudaMemcpy(p, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}

	device_array(const device_array &) = delete;

	~device_array()
	{
		(void) cudaFree(p);
	}

	std::vector<T> get() const
	{
		std::vector<T> to(n);

		cuda(cudaDeviceSynchronize());
		if (n)
			cuda(cudaMemcpy(to.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
		return to;
	}
};

/* A table with its batches on the host. */
template <class Allocator>
struct host_table : slab_hash<uint32_t, uint32_t, Allocator>
{
	typedef slab_hash<uint32_t, uint32_t, Allocator> table;
	int			threads = 64;

	~host_table()
	{
		table::destroy();
	}

	void create_lists(uint32_t n_buckets, uint64_t n_chained)
	{
		slab_options options;

		options.n_buckets = n_buckets;
		options.n_chained = n_chained;
		cuda(table::create(0, options, 0));
	}

	/* With slabs for so many pairs, whatever their keys. */
	void create_for(uint32_t n_buckets, uint64_t n_entries)
	{
		create_lists(n_buckets, slab_worst_case(n_entries, N_WARPS));
	}

	void insert(const words &keys, const words &values)
	{
		cuda(table::insert(device_array<uint32_t>(keys).p, device_array<uint32_t>(values).p, keys.size(), threads, 0));
		cuda(cudaDeviceSynchronize());
	}

	void insert_always(const words &keys, const words &values)
	{
		cuda(table::insert_always(device_array<uint32_t>(keys).p, device_array<uint32_t>(values).p, keys.size(),
								  threads, 0));
		cuda(cudaDeviceSynchronize());
	}

	words find(const words &keys)
	{
		device_array<uint32_t> k(keys);
		device_array<uint32_t> v(keys.size());

		cuda(table::find(k.p, v.p, keys.size(), threads, 0));
		return v.get();
	}

	void erase(const words &keys)
	{
		device_array<uint32_t> k(keys);

		cuda(table::erase(k.p, keys.size(), threads, 0));
		cuda(cudaDeviceSynchronize());
	}

	words erase_all(const words &keys)
	{
		device_array<uint32_t> k(keys);
		device_array<uint32_t> n(keys.size());

		cuda(table::erase_all(k.p, n.p, keys.size(), threads, 0));
		return n.get();
	}

	words count_all(const words &keys)
	{
		device_array<uint32_t> k(keys);
		device_array<uint32_t> n(keys.size());

		cuda(table::count_all(k.p, n.p, keys.size(), threads, 0));
		return n.get();
	}

	/* Of each key, its values. */
	std::vector<std::multiset<uint32_t>> search_all(const words &keys)
	{
		words		counts = count_all(keys);
		std::vector<uint64_t> offsets(1, 0);
		std::vector<std::multiset<uint32_t>> result(keys.size());

		for (uint32_t n : counts)
			offsets.push_back(offsets.back() + n);

		device_array<uint32_t> k(keys);
		device_array<uint64_t> o(offsets);
		device_array<uint32_t> f(words(offsets.back() + 1, 0x77777777));

		cuda(table::search_all(k.p, o.p, f.p, keys.size(), threads, 0));

		words		found = f.get();

		check(found.back() == 0x77777777, "search_all wrote beyond its place");
		for (size_t i = 0; i < keys.size(); i++)
			result[i].insert(&found[offsets[i]], &found[offsets[i + 1]]);
		return result;
	}

	void mixed(const std::vector<uint8_t> &ops, const words &keys, words &values, std::vector<uint8_t> &status)
	{
		device_array<uint8_t> o(ops);
		device_array<uint32_t> k(keys);
		device_array<uint32_t> v(values);
		device_array<uint8_t> s(ops.size());

		cuda(table::mixed(o.p, k.p, v.p, s.p, keys.size(), threads, 0));
		values = v.get();
		status = s.get();
	}

	uint64_t size()
	{
		uint64_t	n;

		cuda(table::size(&n, 0));
		return n;
	}

	slab_stats stats()
	{
		slab_stats	s;

		cuda(table::stats(&s, 0));
		return s;
	}

	uint64_t failed()
	{
		uint64_t	n;

		cuda(table::failed(&n, 0));
		return n;
	}

	uint64_t chained()
	{
		uint64_t	n;

		cuda(table::chained(&n, 0));
		return n;
	}

	/* Slabs in lists and slabs allocated are the same. */
	void check_slabs()
	{
		slab_stats	s = stats();

		check(s.n_slabs - table::buckets() == chained(), "%llu slabs in lists of %llu buckets, %llu allocated",
			  (unsigned long long) s.n_slabs, (unsigned long long) table::buckets(), (unsigned long long) chained());
	}
};

/* ---------- keys ---------- */

enum key_set
{
	RANDOM_KEYS,
	CONSECUTIVE_KEYS,			/* from 0 */
	LARGEST_KEYS,				/* up to the largest legal one */
	ONE_BUCKET_KEYS,
	N_KEY_SETS
};

static const char *key_set_names[] = {"random", "consecutive", "largest", "one bucket"};

/* n different keys; the first half and the rest are of the same kind. */
static words
make_keys(key_set kind, size_t n, uint32_t n_buckets, uint64_t seed)
{
	std::mt19937 rng(seed);
	std::unordered_set<uint32_t> used;
	words		keys;

	for (uint32_t i = 0; keys.size() < n; i++)
	{
		uint32_t	key = kind == CONSECUTIVE_KEYS ? i : kind == LARGEST_KEYS ? LARGEST_KEY - i : rng();

		if (key > LARGEST_KEY || (kind == ONE_BUCKET_KEYS && slab_bucket(key, n_buckets) != n_buckets / 2))
			continue;
		if (used.insert(key).second)
			keys.push_back(key);
	}
	std::shuffle(keys.begin(), keys.end(), rng);
	return keys;
}

static words
part(const words &of, size_t from, size_t to)
{
	return words(of.begin() + from, of.begin() + to);
}

static words
random_values(size_t n, uint64_t seed)
{
	std::mt19937 rng(seed);
	words		values(n);

	for (uint32_t &v : values)
		v = rng() % ABSENT;
	return values;
}

template <class Table>
static void
check_against(Table &table, const words &keys, const std::unordered_map<uint32_t, uint32_t> &reference,
			  const char *when)
{
	words		found = table.find(keys);
	size_t		n_wrong = 0;

	for (size_t i = 0; i < keys.size(); i++)
	{
		auto		it = reference.find(keys[i]);

		n_wrong += found[i] != (it == reference.end() ? ABSENT : it->second);
	}
	check(n_wrong == 0, "%s: %zu of %zu keys found wrongly", when, n_wrong, keys.size());
	check(table.size() == reference.size(), "%s: size %llu instead of %zu", when, (unsigned long long) table.size(),
		  reference.size());
}

/* ---------- tests ---------- */

/* table.cuh's interface: insert, replace, find, erase; flush. */
template <class Allocator>
static void
test_map(key_set kind, int threads)
{
	const size_t n = (kind == ONE_BUCKET_KEYS ? 300 : 1000 * SCALE);
	host_table<Allocator> table;
	std::unordered_map<uint32_t, uint32_t> reference;
	slab_options options;

	test_name = key_set_names[kind];
	schedule(kind + threads);
	table.threads = threads;
	if (kind == ONE_BUCKET_KEYS)
	{
		options.n_buckets = 50;
		options.n_chained = slab_worst_case(n, N_WARPS);
	}
	cuda(table.create(n, options, 0));

	words		keys = make_keys(kind, 2 * n, table.buckets(), 17 + threads);
	words		stored = part(keys, 0, n);
	words		values = random_values(n, 3);

	check_against(table, part(keys, 0, 100), reference, "empty");
	table.insert(stored, values);
	for (size_t i = 0; i < n; i++)
		reference[stored[i]] = values[i];
	check_against(table, keys, reference, "inserted");
	table.check_slabs();

	/* half replaced, and a quarter deleted, of that a half twice */
	values = random_values(n / 2, 4);
	table.insert(part(keys, 0, n / 2), values);
	for (size_t i = 0; i < n / 2; i++)
		reference[keys[i]] = values[i];
	check_against(table, keys, reference, "replaced");

	words		deleted = part(keys, n / 4, n / 2);
	words		some_deleted = part(deleted, 0, deleted.size() / 2);
	words		not_there = part(keys, n, n + n / 2);

	table.erase(deleted);
	table.erase(some_deleted);
	table.erase(not_there);
	for (uint32_t key : deleted)
		reference.erase(key);
	check_against(table, keys, reference, "deleted");
	check(table.stats().n_deleted == deleted.size(), "%llu deleted pairs", (unsigned long long) table.stats().n_deleted);

	/* some come back */
	table.insert(some_deleted, some_deleted);
	for (uint32_t key : some_deleted)
		reference[key] = key;
	check_against(table, keys, reference, "inserted again");

	uint64_t	chained = table.chained();

	cuda(table.flush(0));
	check_against(table, keys, reference, "flushed");
	check(table.stats().n_deleted == 0, "deleted pairs after flush");
	if (kind == ONE_BUCKET_KEYS)
	{
		check(table.chained() < chained, "flush gave no slab back");
		check(table.chained() == (reference.size() + SLAB_PAIRS - 1) / SLAB_PAIRS - 1, "%llu slabs after flush",
			  (unsigned long long) table.chained());
	}
	table.check_slabs();

	/* and the slabs that were given back can be used */
	table.insert(not_there, not_there);
	for (uint32_t key : not_there)
		reference[key] = key;
	check_against(table, keys, reference, "inserted after flush");
	check(table.failed() == 0, "failures");

	table.erase(keys);
	cuda(table.flush(0));
	reference.clear();
	check_against(table, keys, reference, "all deleted");
	check(table.chained() == 0, "empty lists keep slabs");
	table.insert(stored, stored);
	cuda(table.clear(0));
	check_against(table, keys, reference, "cleared");
	check(table.chained() == 0, "a cleared table keeps slabs");
}

static void
erase_one(std::multiset<uint32_t> &from, uint32_t value)
{
	auto		it = from.find(value);

	if (it != from.end())
		from.erase(it);
}

/* INSERT makes copies; SEARCH_ALL, DELETE, DELETE_ALL. */
template <class Allocator>
static void
test_multimap(uint32_t n_buckets, uint32_t n_keys, uint32_t most_copies, uint64_t seed)
{
	host_table<Allocator> table;
	std::mt19937 rng(seed);
	std::unordered_map<uint32_t, std::multiset<uint32_t>> reference;
	words		distinct = make_keys(RANDOM_KEYS, 2 * n_keys, n_buckets, seed);
	words		keys;
	words		values;

	test_name = "copies";
	schedule(seed);
	for (uint32_t i = 0; i < n_keys; i++)
		for (uint32_t n = rng() % (most_copies + 1); n > 0; n--)
			keys.push_back(distinct[i]);
	std::shuffle(keys.begin(), keys.end(), rng);
	for (uint32_t key : keys)
	{
		values.push_back(rng() % 1000);
		reference[key].insert(values.back());
	}
	table.create_for(n_buckets, keys.size());
	table.insert_always(keys, values);

	auto		compare = [&](const char *when) {
		auto		found = table.search_all(distinct);
		words		first = table.find(distinct);
		size_t		n_wrong = 0;
		uint64_t	n_all = 0;

		for (size_t i = 0; i < distinct.size(); i++)
		{
			auto	   &expected = reference[distinct[i]];

			n_all += expected.size();
			n_wrong += found[i] != expected;
			n_wrong += expected.empty() ? first[i] != ABSENT : expected.count(first[i]) == 0;
		}
		check(n_wrong == 0, "%s: %zu keys have other values", when, n_wrong);
		check(table.size() == n_all, "%s: size %llu instead of %llu", when, (unsigned long long) table.size(),
			  (unsigned long long) n_all);
	};

	compare("inserted");

	/* one copy of each goes, and it is the first one */
	words		first = table.find(distinct);
	words		erased(distinct.size(), 1);
	std::vector<uint8_t> status;

	table.mixed(std::vector<uint8_t>(distinct.size(), SLAB_DELETE), distinct, erased, status);
	check(erased == first, "DELETE and SEARCH disagree about the first pair");
	for (size_t i = 0; i < distinct.size(); i++)
	{
		auto	   &of_key = reference[distinct[i]];

		check(status[i] == (of_key.empty() ? SLAB_NOT_FOUND : SLAB_DONE), "status %d of a DELETE", status[i]);
		erase_one(of_key, erased[i]);
	}
	compare("one deleted");

	/* the first copy is replaced, no other */
	first = table.find(distinct);
	table.insert(part(distinct, 0, n_keys / 2), words(n_keys / 2, 5000));
	for (size_t i = 0; i < n_keys / 2; i++)
	{
		auto	   &of_key = reference[distinct[i]];

		erase_one(of_key, first[i]);
		of_key.insert(5000);
	}
	compare("one replaced");

	/* all copies of every other key */
	words		every_other;

	for (size_t i = 0; i < distinct.size(); i += 2)
		every_other.push_back(distinct[i]);

	words		counts = table.erase_all(every_other);

	for (size_t i = 0; i < every_other.size(); i++)
	{
		check(counts[i] == reference[every_other[i]].size(), "DELETE_ALL: %u instead of %zu", counts[i],
			  reference[every_other[i]].size());
		reference[every_other[i]].clear();
	}
	compare("all deleted");
	cuda(table.flush(0));
	compare("flushed");
	table.check_slabs();
	check(table.failed() == 0, "failures");
}

/* Keys that cannot be stored, and other things that are refused. */
template <class Allocator>
static void
test_refused()
{
	host_table<Allocator> table;
	slab_hash<uint32_t, uint32_t, Allocator> &base = table;
	slab_options options;
	std::vector<uint8_t> status;
	words		bad = {SLAB_EMPTY_KEY, SLAB_DELETED_KEY};

	test_name = "refused";
	schedule(1);
	options.n_buckets = 1;
	cuda(table.create(100, options, 0));

	/* empty and deleted pairs are there to be mistaken for these keys */
	table.insert({1, 2, 3}, {1, 2, 3});
	table.erase({1});
	check(table.find(bad) == words({ABSENT, ABSENT}), "a reserved key is found");
	check(table.count_all(bad) == words({0, 0}), "a reserved key is counted");
	table.erase(bad);
	check(table.erase_all(bad) == words({0, 0}), "a reserved key is deleted");
	table.insert(bad, {7, 7});
	check(table.failed() == 2, "%llu failures counted instead of 2", (unsigned long long) table.failed());
	table.insert_always(bad, {7, 7});
	check(table.failed() == 4, "%llu failures counted instead of 4", (unsigned long long) table.failed());

	words		values(SLAB_N_OPS, 7);
	std::vector<uint8_t> ops;

	for (int op = 0; op < SLAB_N_OPS; op++)
		ops.push_back(op);
	table.mixed(ops, words(SLAB_N_OPS, SLAB_DELETED_KEY), values, status);
	check(status == std::vector<uint8_t>(SLAB_N_OPS, SLAB_BAD), "a reserved key has another status");
	check(values[SLAB_SEARCH] == ABSENT && values[SLAB_DELETE] == ABSENT && values[SLAB_SEARCH_ALL] == 0 &&
		  values[SLAB_DELETE_ALL] == 0, "results of reserved keys");
	values = {7, 7, 7};
	table.mixed({SLAB_N_OPS, SLAB_N_OPS + 1, 255}, {2, 2, 2}, values, status);
	check(status == std::vector<uint8_t>(3, SLAB_BAD) && values == words(3, 7), "an unknown operation");
	check(table.size() == 2 && table.find({2, 3}) == words({2, 3}), "refused operations changed the table");

	/* values that have no place */
	device_array<uint32_t> one_key(words(1, 9));
	device_array<uint64_t> two_places(std::vector<uint64_t>({1, 3}));
	device_array<uint32_t> found(words(5, 7));

	table.insert_always({9, 9, 9}, {50, 51, 52});
	cuda(base.search_all(one_key.p, two_places.p, found.p, 1, 64, 0));

	words		f = found.get();

	check(f[0] == 7 && f[1] >= 50 && f[1] <= 52 && f[2] >= 50 && f[2] <= 52 && f[1] != f[2] && f[3] == 7 && f[4] == 7,
		  "search_all wrote %u %u %u %u %u", f[0], f[1], f[2], f[3], f[4]);

	/* nothing to do, and what cannot be launched */
	table.insert({}, {});
	check(table.find({}).empty(), "something of nothing");
	check(base.find(nullptr, nullptr, 1, 33, 0) == cudaErrorInvalidValue,
		  "blocks of 33 threads");
	check(base.find(nullptr, nullptr, 1, 0, 0) == cudaErrorInvalidValue,
		  "blocks of no threads");
	options = slab_options();
	options.utilisation = 0.95;
	check(table.create(100, options, 0) == cudaErrorInvalidValue, "a utilisation that cannot be");
	table.destroy();
	check(table.memory_bytes() == 0, "memory after destroy");
	table.destroy();
	cuda(table.create(0, 0));
	check(table.find({0, LARGEST_KEY}) == words({ABSENT, ABSENT}), "a table for nothing has something");
	table.insert({0, LARGEST_KEY}, {1, 0});
	check(table.find({0, LARGEST_KEY}) == words({1, 0}), "the least and the largest key");
}

/* No slab left: operations fail, are counted, and all others are right. */
template <class Allocator>
static void
test_full(uint64_t seed)
{
	const uint32_t n_chained = 4 + seed;
	const uint32_t room = (1 + n_chained) * SLAB_PAIRS;
	const uint32_t n = room + 100;
	host_table<Allocator> table;
	std::unordered_map<uint32_t, uint32_t> reference;
	words		keys = make_keys(seed % 2 ? RANDOM_KEYS : CONSECUTIVE_KEYS, n, 1, seed);
	words		values = random_values(n, seed);
	words		left;
	std::vector<uint8_t> status;
	uint32_t	n_full = 0;

	test_name = "full";
	schedule(seed);
	table.create_lists(1, n_chained);
	table.mixed(std::vector<uint8_t>(n, seed % 3 ? SLAB_REPLACE : SLAB_INSERT), keys, values, status);
	for (uint32_t i = 0; i < n; i++)
		if (status[i] == SLAB_DONE)
			reference[keys[i]] = values[i];
		else
		{
			n_full += status[i] == SLAB_FULL;
			left.push_back(keys[i]);
		}
	check(n_full == left.size() && n_full >= 100, "%u of %u failed", n_full, n);
	check(table.failed() == n_full, "%llu failures counted instead of %u", (unsigned long long) table.failed(), n_full);
	check_against(table, keys, reference, "after failures");
	table.check_slabs();

	/*
	 * Warps that race to append the last slab may refuse too much; one warp
	 * fills what is left to the last pair.
	 */
	for (size_t i = 0; i < left.size(); i += 32)
	{
		words		some = part(left, i, std::min(i + 32, left.size()));

		values = some;
		table.mixed(std::vector<uint8_t>(some.size(), SLAB_REPLACE), some, values, status);
		for (size_t j = 0; j < some.size(); j++)
			if (status[j] == SLAB_DONE)
				reference[some[j]] = some[j];
	}
	check(reference.size() == room, "%zu stored instead of %u", reference.size(), room);
	check_against(table, keys, reference, "full");
	check(table.chained() == n_chained, "%llu slabs in use", (unsigned long long) table.chained());

	/* in a full table the rest still works */
	words		stored;
	uint64_t	n_failed_before = table.failed();

	for (auto &entry : reference)
		stored.push_back(entry.first);
	table.insert(stored, stored);
	for (uint32_t key : stored)
		reference[key] = key;
	check_against(table, keys, reference, "replaced when full");
	table.erase(part(stored, 0, 40));
	for (uint32_t i = 0; i < 40; i++)
		reference.erase(stored[i]);
	check_against(table, keys, reference, "deleted when full");
	check(table.failed() == n_failed_before, "replacing in a full table failed");
	table.insert({stored[0]}, {1});
	check(table.failed() == n_failed_before + 1, "a deleted pair was used again");
	cuda(table.flush(0));
	table.insert(part(stored, 0, 40), part(stored, 0, 40));
	for (uint32_t i = 0; i < 40; i++)
		reference[stored[i]] = stored[i];
	check_against(table, keys, reference, "refilled after flush");
	check(table.failed() == n_failed_before + 1, "flush did not make room");
}

/* One warp's operations that all want the last slab get it together. */
template <class Allocator>
static void
test_last_slab_shared()
{
	host_table<Allocator> table;
	words		keys = make_keys(RANDOM_KEYS, 2 * SLAB_PAIRS, 1, 1);

	test_name = "last slab, shared";
	schedule(1);
	table.create_lists(1, 1);
	table.insert(part(keys, 0, SLAB_PAIRS), part(keys, 0, SLAB_PAIRS));
	table.insert(part(keys, SLAB_PAIRS, 2 * SLAB_PAIRS), part(keys, SLAB_PAIRS, 2 * SLAB_PAIRS));
	check(table.failed() == 0, "%llu failures", (unsigned long long) table.failed());
	check(table.find(keys) == keys, "keys are missing");
}

/* All operations in one kernel, each kind on keys of its own: exact. */
template <class Allocator>
static void
test_disjoint(uint32_t n_buckets, uint32_t n_each, uint64_t seed)
{
	/* two of SEARCH and DELETE: keys that are there and that are not */
	static const uint8_t kinds[] = {SLAB_INSERT, SLAB_REPLACE, SLAB_REPLACE, SLAB_DELETE, SLAB_DELETE,
		SLAB_DELETE_ALL, SLAB_SEARCH, SLAB_SEARCH, SLAB_SEARCH_ALL};
	static const uint32_t copies_before[] = {1, 1, 0, 1, 0, 3, 1, 0, 2};
	static const uint32_t copies_after[] = {2, 1, 1, 0, 0, 0, 1, 0, 2};
	const uint32_t n_kinds = sizeof kinds;
	const uint32_t n = n_kinds * n_each;
	host_table<Allocator> table;
	std::mt19937 rng(seed);
	words		keys = make_keys(RANDOM_KEYS, n, n_buckets, seed);
	words		before;
	words		order(n);
	words		mixed_keys(n);
	words		values(n);
	std::vector<uint8_t> ops(n);
	std::vector<uint8_t> status;
	uint32_t	n_wrong = 0;

	test_name = "mixture, disjoint keys";
	schedule(seed);
	table.create_for(n_buckets, 3 * n);
	for (uint32_t i = 0; i < n; i++)
	{
		order[i] = i;
		before.insert(before.end(), copies_before[i % n_kinds], keys[i]);
	}
	std::shuffle(before.begin(), before.end(), rng);
	std::shuffle(order.begin(), order.end(), rng);
	table.insert_always(before, before);
	for (uint32_t i = 0; i < n; i++)
	{
		mixed_keys[i] = keys[order[i]];
		ops[i] = kinds[order[i] % n_kinds];
		values[i] = ~mixed_keys[i];
	}
	table.mixed(ops, mixed_keys, values, status);

	words		counts = table.count_all(mixed_keys);
	words		found = table.find(mixed_keys);

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	kind = order[i] % n_kinds;
		uint32_t	key = mixed_keys[i];
		bool		there = copies_before[kind] > 0;
		bool		stores = ops[i] == SLAB_INSERT || ops[i] == SLAB_REPLACE;
		bool		counts_it = ops[i] == SLAB_DELETE_ALL || ops[i] == SLAB_SEARCH_ALL;
		uint32_t	result = stores ? ~key : counts_it ? copies_before[kind] : there ? key : ABSENT;
		uint32_t	after = copies_after[kind] == 0 ? ABSENT : ops[i] == SLAB_REPLACE ? ~key : key;

		n_wrong += status[i] != (there || stores ? SLAB_DONE : SLAB_NOT_FOUND);
		n_wrong += values[i] != result;
		n_wrong += counts[i] != copies_after[kind];
		n_wrong += found[i] != after;
	}
	check(n_wrong == 0, "%u wrong", n_wrong);
	cuda(table.flush(0));
	check(table.count_all(mixed_keys) == counts, "other counts after flush");
	table.check_slabs();
	check(table.failed() == 0, "failures");
}

/*
 * REPLACE, DELETE and SEARCH of the same few keys in one kernel, each REPLACE
 * with a value of its own: whatever the order, some things hold.
 */
template <class Allocator>
static void
test_same_keys(uint32_t n_buckets, uint32_t n_keys, uint32_t n, uint64_t seed)
{
	host_table<Allocator> table;
	std::mt19937 rng(seed);
	words		distinct = make_keys(RANDOM_KEYS, n_keys, n_buckets, seed);
	words		keys(n);
	words		values(n);
	words		results;
	std::vector<uint8_t> ops(n);
	std::vector<uint8_t> status;
	std::unordered_map<uint32_t, uint32_t> written;	/* value to key */
	std::unordered_set<uint32_t> erased;
	std::unordered_map<uint32_t, uint32_t> n_stored;
	std::unordered_map<uint32_t, uint32_t> n_erased;

	test_name = "mixture, same keys";
	schedule(seed);
	table.create_for(n_buckets, n);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	r = rng() % 4;

		keys[i] = distinct[rng() % n_keys];
		values[i] = i + 1;
		ops[i] = r < 2 ? SLAB_REPLACE : r == 2 ? SLAB_DELETE : SLAB_SEARCH;
		if (ops[i] == SLAB_REPLACE)
			written[values[i]] = keys[i];
	}
	results = values;
	table.mixed(ops, keys, results, status);
	for (uint32_t i = 0; i < n; i++)
	{
		if (ops[i] == SLAB_REPLACE)
		{
			check(status[i] == SLAB_DONE, "REPLACE: status %d", status[i]);
			n_stored[keys[i]]++;
			continue;
		}
		if (status[i] == SLAB_NOT_FOUND)
		{
			check(results[i] == ABSENT, "a value that was not found");
			continue;
		}
		check(status[i] == SLAB_DONE && written.count(results[i]) && written[results[i]] == keys[i],
			  "value %x of key %x was never written", results[i], keys[i]);
		if (ops[i] == SLAB_DELETE)
		{
			check(erased.insert(results[i]).second, "a pair was deleted twice");
			n_erased[keys[i]]++;
		}
	}

	words		counts = table.count_all(distinct);
	words		found = table.find(distinct);

	for (uint32_t i = 0; i < n_keys; i++)
	{
		check(counts[i] <= 1, "REPLACE made %u copies", counts[i]);
		check(counts[i] == (found[i] != ABSENT), "SEARCH and SEARCH_ALL disagree");
		check(n_stored[distinct[i]] > 0 || counts[i] == 0, "a key that was never stored");
		check(n_erased[distinct[i]] + counts[i] <= n_stored[distinct[i]], "more deleted than stored");
		check(counts[i] == 1 || n_stored[distinct[i]] == 0 || n_erased[distinct[i]] > 0, "a key was lost");
		check(counts[i] == 0 || (written[found[i]] == distinct[i] && !erased.count(found[i])),
			  "a deleted value is there");
	}
	table.check_slabs();
	check(table.failed() == 0, "failures");
}

/*
 * Eight items for each of the keys: a block of 128 threads has those of 16 keys of
 * its own, in any order.  visit(item, its key's number of the 16, and its own of the 8).
 */
template <class Visit>
static void
share_out(const words &distinct, uint64_t seed, words &keys, const Visit &visit)
{
	std::mt19937 rng(seed);
	words		order(128);

	for (uint32_t i = 0; i < 128; i++)
		order[i] = i;
	for (uint32_t i = 0; i < keys.size(); i++)
	{
		const uint32_t of_key = order[i % 128] % 16;

		keys[i] = distinct[i / 128 * 16 + of_key];
		visit(i, of_key, order[i % 128] / 16);
		if (i % 128 == 127)
			std::shuffle(order.begin(), order.end(), rng);
	}
}

/*
 * Each key is stored once, while others SEARCH it: they find its value or, as
 * the pair may be seen half written, do not find it.
 */
template <class Allocator>
static void
test_search_beside_store(uint32_t n_keys, uint64_t seed)
{
	const uint32_t n = 8 * n_keys;
	host_table<Allocator> table;
	words		distinct = make_keys(RANDOM_KEYS, n_keys, 1, seed);
	words		keys(n);
	words		values(n);
	std::vector<uint8_t> ops(n);
	std::vector<uint8_t> status;
	uint32_t	n_found = 0;
	uint32_t	n_wrong = 0;

	test_name = "search beside store";
	schedule(seed);
	table.threads = 128;
	table.create_for(n_keys / 8, n);
	share_out(distinct, seed, keys, [&](uint32_t i, uint32_t, uint32_t k) {
		values[i] = keys[i] / 2;
		ops[i] = k == 0 ? SLAB_REPLACE : SLAB_SEARCH;
	});
	table.mixed(ops, keys, values, status);
	for (uint32_t i = 0; i < n; i++)
		if (ops[i] == SLAB_SEARCH)
		{
			n_found += status[i] == SLAB_DONE;
			n_wrong += values[i] != (status[i] == SLAB_DONE ? keys[i] / 2 : ABSENT);
		}
	check(n_wrong == 0, "%u values that nobody stored", n_wrong);
	check(ON_GPU || (n_found > 0 && n_found < n - n_keys), "nothing ran at the same time");
}

/*
 * Keys that are there, while their values are replaced, are there: deleting
 * them finds them, and so does searching.
 */
template <class Allocator>
static void
test_beside_replace(uint32_t n_keys, uint64_t seed)
{
	const uint32_t n = 8 * n_keys;
	host_table<Allocator> table;
	words		distinct = make_keys(RANDOM_KEYS, n_keys, 1, seed);
	words		keys(n);
	words		values(n);
	std::vector<uint8_t> ops(n);
	std::vector<uint8_t> status;
	const slab_op last[] = {SLAB_SEARCH_ALL, SLAB_DELETE, SLAB_DELETE_ALL};
	uint32_t	n_wrong = 0;
	uint32_t	n_new = 0;

	test_name = "beside replace";
	schedule(seed);
	table.threads = 128;
	table.create_for(n_keys / 8, n);
	table.insert(distinct, distinct);
	/* of each key: 6 REPLACE and 2 others */
	share_out(distinct, seed, keys, [&](uint32_t i, uint32_t of_key, uint32_t k) {
		values[i] = keys[i] ^ k;
		ops[i] = k < 6 ? SLAB_REPLACE : k == 6 ? SLAB_SEARCH : last[of_key % 3];
	});
	table.mixed(ops, keys, values, status);
	for (uint32_t i = 0; i < n; i++)
		switch (ops[i])
		{
			case SLAB_DELETE:
				n_wrong += status[i] != SLAB_DONE || (values[i] ^ keys[i]) > 5;
				break;
			case SLAB_DELETE_ALL:
				n_wrong += status[i] != SLAB_DONE || values[i] == 0;
				break;
			case SLAB_SEARCH_ALL:
				n_wrong += status[i] != SLAB_DONE || values[i] != 1;
				break;
			case SLAB_SEARCH:
				n_wrong += status[i] == SLAB_DONE && (values[i] ^ keys[i]) > 5;
				n_new += status[i] == SLAB_DONE && values[i] != keys[i];
				break;
			default:
				n_wrong += status[i] != SLAB_DONE;
		}
	check(n_wrong == 0, "%u wrong", n_wrong);
	check(ON_GPU || n_new > 0, "nothing ran at the same time");
	for (uint32_t count : table.count_all(distinct))
		check(count <= 1, "%u copies", count);
}

/* INSERT, DELETE, DELETE_ALL, SEARCH_ALL of the same keys: no pair is lost. */
template <class Allocator>
static void
test_conserved(uint32_t n_buckets, uint32_t n_keys, uint32_t n, uint64_t seed)
{
	host_table<Allocator> table;
	std::mt19937 rng(seed);
	words		distinct = make_keys(RANDOM_KEYS, n_keys, n_buckets, seed);
	words		keys(n);
	words		values(n);
	std::vector<uint8_t> ops(n);
	std::vector<uint8_t> status;
	std::unordered_map<uint32_t, uint32_t> n_stored;
	std::unordered_map<uint32_t, uint32_t> n_erased;

	test_name = "mixture, copies";
	schedule(seed);
	table.create_for(n_buckets, n);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	r = rng() % 8;

		keys[i] = distinct[rng() % n_keys];
		values[i] = i;
		ops[i] = r < 5 ? SLAB_INSERT : r == 5 ? SLAB_DELETE : r == 6 ? SLAB_DELETE_ALL : SLAB_SEARCH_ALL;
		if (ops[i] == SLAB_INSERT)
			n_stored[keys[i]]++;
	}
	table.mixed(ops, keys, values, status);
	for (uint32_t i = 0; i < n; i++)
		if (ops[i] == SLAB_DELETE)
			n_erased[keys[i]] += status[i] == SLAB_DONE;
		else if (ops[i] == SLAB_DELETE_ALL)
			n_erased[keys[i]] += values[i];
		else if (ops[i] == SLAB_SEARCH_ALL)
			check(values[i] <= n_stored[keys[i]], "counted %u of %u pairs", values[i], n_stored[keys[i]]);

	words		counts = table.count_all(distinct);

	for (uint32_t i = 0; i < n_keys; i++)
		check(counts[i] + n_erased[distinct[i]] == n_stored[distinct[i]], "%u pairs and %u deleted of %u", counts[i],
			  n_erased[distinct[i]], n_stored[distinct[i]]);
	table.check_slabs();
	check(table.failed() == 0, "failures");
}

/*
 * Even warps INSERT, odd ones gather all values at the same time: none but those
 * that were stored, though pairs are seen half written.
 */
template <bool LIGHT>
__global__ void
gather_beside_insert_kernel(const __grid_constant__ slab_hash_view<LIGHT> table, uint32_t key, uint32_t n_rounds,
							slab_batch gather, uint32_t *counts)
{
	const slab_warp warp;
	slab_resident resident;
	uint32_t	id = RHH_TILE_ID(SLAB_WORDS);

	for (uint32_t round = 0; round < n_rounds; round++)
	{
		uint64_t	first = (uint64_t) (id / 2 * n_rounds + round) * SLAB_WORDS;
		slab_item	item;

		item.key = key;
		item.value = id % 2 ? 0 : (uint32_t) first + warp.rank;
		item.slab = table.base + (uint64_t) slab_bucket(key, table.n_buckets) * SLAB_WORDS;
		item.op = 0;
		item.active = true;
		if (id % 2)
		{
			slab_work<SLAB_GATHER>(table, gather, first, warp, resident, item);
			counts[first + warp.rank] = item.value;
		}
		else
			slab_work<SLAB_INSERT>(table, gather, first, warp, resident, item);
	}
}

template <class Allocator>
static void
test_gather_beside_insert(uint64_t seed)
{
	const bool	light = Allocator::is_light;
	const uint32_t n_blocks = 3;
	const uint32_t n_rounds = 2;
	const uint32_t n = n_blocks * n_rounds * SLAB_WORDS;	/* of each kind */
	Allocator	allocator;
	std::vector<uint64_t> offsets;
	device_array<uint32_t> base(words(SLAB_WORDS, ~0u));
	device_array<uint64_t> failures(std::vector<uint64_t>(1, 0));
	device_array<uint32_t> found(words((size_t) n * n, ABSENT));
	device_array<uint32_t> counts(n);
	slab_batch	gather = {n, nullptr};
	uint32_t	n_wrong = 0;
	bool		unseen = false;

	test_name = "gather beside insert";
	schedule(seed);
	cuda(allocator.create(slab_worst_case(n, 128), 0, 0));
	for (uint64_t i = 0; i <= n; i++)
		offsets.push_back(i * n);

	device_array<uint64_t> o(offsets);

	gather.offsets = o.p;
	gather.found = found.p;

	slab_hash_view<light> view = {allocator.for_launch(), base.p, failures.p, 1};

	RHH_LAUNCH((gather_beside_insert_kernel<light>), n_blocks, 2 * SLAB_WORDS, 0, 0, view, 12, n_rounds, gather,
			   counts.p);
	cuda(cudaGetLastError());

	words		c = counts.get();
	words		f = found.get();

	for (uint32_t i = 0; i < n; i++)
	{
		std::set<uint32_t> seen;

		unseen |= c[i] < n;
		for (uint32_t j = 0; j < c[i]; j++)
			n_wrong += f[(size_t) i * n + j] >= n || !seen.insert(f[(size_t) i * n + j]).second;
		for (uint32_t j = c[i]; j < n; j++)
			n_wrong += f[(size_t) i * n + j] != ABSENT;
	}
	check(n_wrong == 0, "%u values that nobody stored, or twice", n_wrong);
	check(ON_GPU || unseen, "nothing ran at the same time");
	allocator.destroy();
}

/* The paper's benchmarks: batches on top of each other, and mixtures. */
template <class Allocator>
static void
test_batches_and_mixtures()
{
	const uint32_t n_batch = 512 * SCALE;
	const uint32_t n_batches = 3;
	const uint32_t n = n_batch * n_batches;
	host_table<Allocator> table;
	words		keys = make_keys(RANDOM_KEYS, n + n_batch * 3, 1, 5);
	std::unordered_map<uint32_t, uint32_t> reference;
	uint32_t	n_before = 0;
	uint64_t	seed = 1;

	test_name = "batches";
	schedule(3);
	table.threads = 128;
	cuda(table.create(n + n_batch, 0));
	for (uint32_t b = 0; b < n_batches; b++)
	{
		words		batch = part(keys, b * n_batch, (b + 1) * n_batch);

		table.insert(batch, batch);
		for (uint32_t key : batch)
			reference[key] = key;
		check_against(table, keys, reference, "a batch");
	}
	test_name = "mixtures";
	n_before = n;
	for (const slab_mixture &mixture : slab_mixtures)
	{
		words		present;
		words		absent = part(keys, n_before, n_before + n_batch);
		words		mixed_keys(n_batch);
		words		values(n_batch);
		std::vector<uint8_t> ops(n_batch);
		std::vector<uint8_t> status;
		uint32_t	n_ops[SLAB_N_OPS] = {};
		uint32_t	n_found = 0;
		uint32_t	n_wrong = 0;

		for (auto &entry : reference)
			present.push_back(entry.first);
		slab_fill_mixture(mixture, n_batch, seed++, present.data(), present.size(), absent.data(), ops.data(),
						  mixed_keys.data(), values.data());
		table.mixed(ops, mixed_keys, values, status);
		for (uint32_t i = 0; i < n_batch; i++)
		{
			uint32_t	expected = reference.count(mixed_keys[i]) || ops[i] == SLAB_REPLACE ? mixed_keys[i] : ABSENT;

			n_ops[ops[i]]++;
			n_found += ops[i] == SLAB_SEARCH && expected != ABSENT;
			n_wrong += values[i] != expected;
			n_wrong += status[i] != (expected == ABSENT ? SLAB_NOT_FOUND : SLAB_DONE);
		}
		for (uint32_t i = 0; i < n_batch; i++)
			if (ops[i] == SLAB_REPLACE)
				n_wrong += !reference.insert({mixed_keys[i], mixed_keys[i]}).second;
			else if (ops[i] == SLAB_DELETE)
				n_wrong += !reference.erase(mixed_keys[i]);
		check(n_wrong == 0, "%s: %u wrong", mixture.name, n_wrong);
		check(fabs(n_ops[SLAB_REPLACE] - mixture.insert * n_batch) <= 1 &&
			  fabs(n_ops[SLAB_DELETE] - mixture.erase * n_batch) <= 1 && fabs(n_found - mixture.search * n_batch) <= 1,
			  "%s: %u REPLACE, %u DELETE, %u found", mixture.name, n_ops[SLAB_REPLACE], n_ops[SLAB_DELETE], n_found);
		check_against(table, keys, reference, mixture.name);
		n_before += n_batch;
	}
	check(table.failed() == 0, "failures");
}

/* As much memory as was asked for, and enough. */
template <class Allocator>
static void
test_utilisation(double utilisation)
{
	const uint32_t n = 4000 * SCALE;
	host_table<Allocator> table;
	slab_options options;
	words		keys = make_keys(RANDOM_KEYS, n, 1, 11);

	test_name = "utilisation";
	schedule(0);
	options.utilisation = utilisation;
	cuda(table.create(n, options, 0));
	table.threads = 128;
	table.insert(keys, keys);

	slab_stats	stats = table.stats();
	double		reached = 8.0 * n / ((double) SLAB_BYTES * stats.n_slabs);

	check(table.failed() == 0 && stats.n_entries == n, "failures");
	check(fabs(reached - utilisation) < 0.02, "%.3f instead of %.3f", reached, utilisation);
	check(fabs((double) stats.n_slabs / table.buckets() - slab_expected_per_list((double) n / table.buckets())) < 0.04,
		  "%.3f slabs a list", (double) stats.n_slabs / table.buckets());
	check(table.memory_bytes() > stats.n_slabs * SLAB_BYTES, "memory");
}

/* ---------- the allocators alone ---------- */

/* Each warp allocates n_each slabs; addresses, and where they are. */
template <bool LIGHT>
__global__ void
allocate_kernel(const __grid_constant__ slab_alloc_view<LIGHT> alloc, uint32_t n_each, uint32_t *addresses,
				uint64_t *slabs, uint32_t *n_dirty)
{
	const slab_warp warp;
	slab_resident resident;

	for (uint32_t i = 0; i < n_each; i++)
	{
		uint32_t	address = alloc.allocate(warp, resident);
		uint64_t	at = (uint64_t) RHH_TILE_ID(SLAB_WORDS) * n_each + i;

		if (address != SLAB_NULL)
		{
			uint32_t   *slab = alloc.slab(address);

			if (rhh_load_relaxed32(&slab[warp.rank]) != ~0u)
				atomicAdd(n_dirty, 1u);
			slab[warp.rank] = (uint32_t) at;
			if (warp.rank == 0)
				slabs[at] = (uint64_t) (uintptr_t) slab;
		}
		if (warp.rank == 0)
			addresses[at] = address;
	}
}

/* What allocate_kernel's warps get, at most n slabs. */
struct allocations
{
	device_array<uint32_t> addresses;
	device_array<uint64_t> slabs;
	device_array<uint32_t> dirty{words(1, 0)};

	explicit allocations(size_t n) : addresses(n), slabs(n) {}

	/* n_each slabs for each warp; their addresses. */
	template <class Allocator>
	words take(Allocator &from, uint32_t n_blocks, uint32_t threads, uint32_t n_each)
	{
		const bool	light = Allocator::is_light;
		const slab_alloc_view<light> view = from.for_launch();

		RHH_LAUNCH((allocate_kernel<light>), n_blocks, threads, 0, 0, view, n_each, addresses.p, slabs.p, dirty.p);
		cuda(cudaGetLastError());
		return addresses.get();
	}
};

/* A warp a slab. */
template <bool LIGHT>
__global__ void
release_kernel(const __grid_constant__ slab_alloc_view<LIGHT> alloc, const uint32_t *addresses, uint32_t n)
{
	const slab_warp warp;

	for (uint32_t i = RHH_TILE_ID(SLAB_WORDS); i < n; i += RHH_TILES(SLAB_WORDS))
	{
		alloc.slab(addresses[i])[warp.rank] = ~0u;
		warp.sync();
		if (warp.rank == 0)
			alloc.release(addresses[i]);
	}
}

/*
 * Allocates and releases all the time; whose slab it is stands in the slab while
 * it is somebody's.
 */
template <bool LIGHT>
__global__ void
churn_kernel(const __grid_constant__ slab_alloc_view<LIGHT> alloc, uint32_t n_rounds, uint32_t *n_shared,
			 uint32_t *n_got)
{
	const slab_warp warp;
	slab_resident resident;
	uint32_t	held[3] = {SLAB_NULL, SLAB_NULL, SLAB_NULL};

	for (uint32_t i = 0; i < n_rounds + 3; i++)
	{
		uint32_t	old = held[i % 3];

		if (old != SLAB_NULL && warp.rank == 0)
		{
			if (atomicExch(alloc.slab(old), ~0u) != RHH_TILE_ID(SLAB_WORDS))
				atomicAdd(n_shared, 1u);
			__threadfence();
			alloc.release(old);
		}
		held[i % 3] = SLAB_NULL;
		if (i >= n_rounds)
			continue;
		held[i % 3] = alloc.allocate(warp, resident);
		if (held[i % 3] != SLAB_NULL && warp.rank == 0)
		{
			__threadfence();
			if (atomicExch(alloc.slab(held[i % 3]), RHH_TILE_ID(SLAB_WORDS)) != ~0u)
				atomicAdd(n_shared, 1u);
			atomicAdd(n_got, 1u);
		}
	}
}

template <class Allocator>
static void
test_allocator(uint32_t n_slabs, uint32_t block_bits, uint32_t n_warps, uint64_t seed)
{
	const bool	light = Allocator::is_light;
	const uint32_t n_each = n_slabs / n_warps + 2;
	const uint32_t n_asked = n_each * n_warps;
	Allocator	allocator;
	allocations got_slabs(n_asked);
	uint64_t	n_used;

	test_name = "allocator";
	schedule(seed);
	cuda(allocator.create(n_slabs, block_bits, 0));
	cuda(allocator.used(&n_used, 0));
	check(n_used == 0, "%llu slabs in use at first", (unsigned long long) n_used);

	auto		allocate = [&](uint32_t n_free, std::set<uint32_t> &got) {
		std::set<uint64_t> places;
		uint32_t	n_refused = 0;
		words		a = got_slabs.take(allocator, n_warps / 4, 128, n_each);
		std::vector<uint64_t> s = got_slabs.slabs.get();

		got.clear();
		for (uint32_t i = 0; i < n_asked; i++)
		{
			if (a[i] == SLAB_NULL)
				n_refused++;
			else
			{
				check(got.insert(a[i]).second, "address %x twice", a[i]);
				places.insert(s[i]);
				check(s[i] % SLAB_BYTES == 0, "a slab across lines");
			}
		}
		check(n_refused == n_asked - n_free, "%u refused instead of %u", n_refused, n_asked - n_free);
		check(places.size() == got.size(), "two addresses, one slab");
		check(got_slabs.dirty.get()[0] == 0, "slabs are not all ones");
		cuda(allocator.used(&n_used, 0));
		check(n_used == n_slabs, "%llu slabs in use of %u", (unsigned long long) n_used, n_slabs);
	};

	/* all of them, and no more; then a third again */
	std::set<uint32_t> all;
	std::set<uint32_t> again;
	words		third;

	allocate(n_slabs, all);
	for (uint32_t address : all)
		if ((address * 2654435761u >> 16) % 3 == 0)
			third.push_back(address);

	device_array<uint32_t> t(third);
	slab_alloc_view<light> view = allocator.for_launch();

	RHH_LAUNCH((release_kernel<light>), 4, 64, 0, 0, view, t.p, third.size());
	cuda(cudaGetLastError());
	cuda(allocator.used(&n_used, 0));
	check(n_used == n_slabs - third.size(), "%llu slabs in use", (unsigned long long) n_used);
	allocate(third.size(), again);
	check(again == std::set<uint32_t>(third.begin(), third.end()), "other slabs than were given back");

	/* a cleared one has all again; then coming and going */
	device_array<uint32_t> counts(words(2, 0));

	cuda(allocator.clear(0));
	view = allocator.for_launch();
	RHH_LAUNCH((churn_kernel<light>), n_warps / 4, 128, 0, 0, view, 20, counts.p, counts.p + 1);
	cuda(cudaGetLastError());

	words		c = counts.get();

	check(c[0] == 0, "a slab was given to two warps %u times", c[0]);
	check(c[1] > 0 && (n_slabs < n_warps * 3 || c[1] == n_warps * 20), "%u of %u allocated", c[1], n_warps * 20);
	cuda(allocator.used(&n_used, 0));
	check(n_used == 0, "%llu slabs leaked", (unsigned long long) n_used);
	check(allocator.memory_bytes() >= (uint64_t) n_slabs * SLAB_BYTES, "memory");
	allocator.destroy();
	allocator.destroy();
	check(allocator.memory_bytes() == 0, "memory after destroy");
}

/* Takes all slabs, gives one back, and asks for two: one warp. */
template <bool LIGHT>
__global__ void
exhaust_kernel(const __grid_constant__ slab_alloc_view<LIGHT> alloc, uint32_t n_slabs, uint32_t *got)
{
	const slab_warp warp;
	slab_resident resident;
	uint32_t	last = SLAB_NULL;

	for (uint32_t i = 0; i < n_slabs; i++)
		last = alloc.allocate(warp, resident);
	got[0] = last;
	got[1] = alloc.allocate(warp, resident);
	if (warp.rank == 0)
		alloc.release(last);
	warp.sync();
	got[2] = alloc.allocate(warp, resident);
	got[3] = alloc.allocate(warp, resident);
}

/* The only free slab is found, wherever it is, and none that is not there. */
template <class Allocator>
static void
test_last_slab()
{
	const bool	light = Allocator::is_light;
	const uint32_t n_blocks = 40;
	Allocator	allocator;
	slab_alloc_view<light> view;
	device_array<uint32_t> got(4);
	allocations two(2);
	uint32_t	n_missed = 0;

	test_name = "last slab";
	schedule(1);
	cuda(allocator.create(n_blocks * SLAB_UNITS, 2, 0));
	for (uint32_t block = 0; block < n_blocks; block++)
	{
		words		bitmaps(n_blocks * SLAB_WORDS, ~0u);

		bitmaps[block * SLAB_WORDS + block % 32] = ~(1u << (31 - block % 31));
		cuda(cudaMemcpy(allocator.view.bitmaps, bitmaps.data(), bitmaps.size() * 4, cudaMemcpyHostToDevice));

		words		a = two.take(allocator, 1, 32, 2);

		n_missed += a[0] == SLAB_NULL;
		check(a[1] == SLAB_NULL, "a slab that is in use");
	}
	check(n_missed == 0, "%u missed", n_missed);

	/* the flag still says that there is none; a new launch looks */
	cuda(cudaMemset(allocator.view.bitmaps, 0, n_blocks * SLAB_BYTES));
	check(two.take(allocator, 1, 32, 2)[1] != SLAB_NULL, "a new launch does not look");

	cuda(allocator.create(70, 2, 0));
	view = allocator.for_launch();
	RHH_LAUNCH((exhaust_kernel<light>), 1, 32, 0, 0, view, 70, got.p);
	cuda(cudaGetLastError());

	words		g = got.get();

	check(g[0] != SLAB_NULL && g[1] == SLAB_NULL, "the last slab");
	check(g[2] == g[0] && g[3] == SLAB_NULL, "the slab that was given back");
	allocator.destroy();
}

/* Addresses of the first and last memory blocks of the largest allocators. */
template <bool LIGHT>
__global__ void
address_kernel(slab_alloc_view<LIGHT> alloc, const uint32_t *blocks, uint32_t n, uint32_t *addresses, uint32_t *back)
{
	for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
	{
		addresses[i] = alloc.address(blocks[i / 2], i % 2 ? SLAB_UNITS - 1 : 0);
		back[i] = alloc.block_of(addresses[i]);
	}
}

template <class Allocator>
static void
test_addresses(uint32_t block_bits)
{
	const bool	light = Allocator::is_light;
	const uint32_t n_blocks = light ? (1u << 22) - 1 : (uint32_t) SLAB_MAX_SUPERS << block_bits;
	slab_alloc_view<light> view = {};
	words		blocks;
	Allocator	allocator;

	test_name = "addresses";
	for (uint32_t i = 0; i < 300 && i < n_blocks; i++)
	{
		blocks.push_back(i);
		blocks.push_back(n_blocks - 1 - i);
	}
	std::sort(blocks.begin(), blocks.end());
	blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
	view.n_blocks = n_blocks;
	view.block_bits = light ? 22 : block_bits;

	device_array<uint32_t> b(blocks);
	device_array<uint32_t> addresses(blocks.size() * 2);
	device_array<uint32_t> back(blocks.size() * 2);

	RHH_LAUNCH((address_kernel<light>), 1, 64, 0, 0, view, b.p, blocks.size() * 2, addresses.p, back.p);
	cuda(cudaGetLastError());

	words		a = addresses.get();
	words		r = back.get();

	check(std::set<uint32_t>(a.begin(), a.end()).size() == a.size(), "an address twice");
	check(std::count(a.begin(), a.end(), SLAB_NULL) == 0, "a slab has no slab's address");
	for (size_t i = 0; i < a.size(); i++)
		check(r[i] == blocks[i / 2], "block %u has address %x of block %u", blocks[i / 2], a[i], r[i]);
	check(allocator.create((UINT64_C(1) << 32) - (light ? 1023 : (1 << 24) - 1), block_bits, 0) == cudaErrorInvalidValue,
		  "more slabs than addresses");
	allocator.destroy();
}

template <class Allocator>
static void
test_all(const char *name)
{
	int			n_failed_before = n_failed;

	check(strcmp((slab_hash<uint32_t, uint32_t, Allocator>::name()), name) == 0, "name");
	for (int kind = 0; kind < N_KEY_SETS; kind++)
		test_map<Allocator>((key_set) kind, kind % 2 ? 128 : 64);
	for (uint64_t seed = 1; seed <= 3; seed++)
	{
		test_multimap<Allocator>(1, 10, 12, seed);
		test_multimap<Allocator>(20, 100, 5, seed);
		test_full<Allocator>(seed);
	}
	test_last_slab_shared<Allocator>();
	test_refused<Allocator>();
	for (uint64_t seed = 1; seed <= N_SEEDS; seed++)
	{
		test_disjoint<Allocator>(1, 12, seed);
		test_disjoint<Allocator>(10 * SCALE, 40 * SCALE, seed);
		test_same_keys<Allocator>(1, 1, 128 * (ON_GPU ? 16 : 1), seed);
		test_same_keys<Allocator>(1, 8, 384 * (ON_GPU ? 16 : 1), seed);
		test_same_keys<Allocator>(3, 40, 512 * (ON_GPU ? 16 : 1), seed);
		test_conserved<Allocator>(1, 3, 256 * (ON_GPU ? 16 : 1), seed);
		test_gather_beside_insert<Allocator>(seed);
		test_search_beside_store<Allocator>(512 * SCALE, seed);
		test_beside_replace<Allocator>(512 * SCALE, seed);
	}
	test_batches_and_mixtures<Allocator>();
	test_utilisation<Allocator>(0.62);
	test_utilisation<Allocator>(0.40);
	test_utilisation<Allocator>(0.75);
	for (uint64_t seed = 1; seed <= 2; seed++)
	{
		test_allocator<Allocator>(1, 0, 4, seed);
		test_allocator<Allocator>(37, 0, 8, seed);
		test_allocator<Allocator>(1024, 0, 16, seed);
		test_allocator<Allocator>(1025, 8, 8, seed);
		test_allocator<Allocator>(3000, seed - 1, 16, seed);
		if (ON_GPU)
			test_allocator<Allocator>(1000003, 3, 8448, seed);
	}
	test_last_slab<Allocator>();
	for (uint32_t block_bits = 0; block_bits <= SLAB_BLOCK_BITS; block_bits += 7)
		test_addresses<Allocator>(block_bits);
	printf("%s: %s\n", name, n_failed == n_failed_before ? "ok" : "failed");
}

int
main()
{
	setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
	test_all<slab_alloc>("slab_hash");
	test_all<slab_alloc_light>("slab_hash_light");
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed != 0;
}
