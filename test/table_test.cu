/*
 * table_test.cu
 *		rhh::table against std::unordered_map.
 *
 *		make table-test-cuda	by nvcc, for a GPU: test/table_test
 *		make simt-test			by a C++ compiler, threads being fibers (simt.h):
 *								warps of 32 lanes, test/table_test_simt, and, as
 *								AMD has, of 64, test/table_test_simt64
 *
 * table_test [SEED].  One line for each check that fails; ends with "N passed, N failed".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <unordered_map>
#include <type_traits>
#include <unordered_set>
#include <vector>

/*
 * Tables of 80 KB are beyond a 16th of simt's L2 cache of 1 MB, those of 2.5 MB
 * beyond a 32nd of an H100's 50 MB: they are partitioned, into more parts than
 * usual.  Others are not, those of 64 KB among them.  TEST_SCALE: smaller, for
 * compute-sanitizer.
 */
#if defined(__CUDACC__) && defined(TEST_SCALE)
static const int SCALE = TEST_SCALE;
static const int BEYOND_L2 = 1;
#define RHH_PARTITION_L2_DIVISOR 720
#elif defined(__CUDACC__)
static const int SCALE = 16;
static const int BEYOND_L2 = 32;
#define RHH_PARTITION_L2_DIVISOR 32
#else
static const int SCALE = 1;
static const int BEYOND_L2 = 1;
#define RHH_PARTITION_L2_DIVISOR 16
#endif
#define RHH_PART_BYTES (UINT64_C(4) << 10)
#define RHH_PARTITION_LEAST_KEYS 0
#define RHH_PARTITION_LEAST_KEYS_CROWDED 0
#define RHH_PARTITION_LEAST_KEYS_FULL 0
#include "table/rhh_table.cuh"

static int	n_passed,
			n_failed;
static const char *test_name = "";

static void
check(bool ok, const char *what, int line)
{
	if (ok)
		n_passed++;
	else
	{
		n_failed++;
		printf("FAILED %s: %s (line %d)\n", test_name, what, line);
	}
}
#define CHECK(x) check((x), #x, __LINE__)

#define CUDA(call) \
	do { \
		cudaError_t cuda_error = (call); \
		if (cuda_error != cudaSuccess) \
		{ \
			printf("%s: %s\n0 passed, 1 failed\n", #call, cudaGetErrorString(cuda_error)); \
			exit(1); \
		} \
	} while (0)

/* A generator for everything random here: SplitMix64. */
static uint64_t rng = 1;
static uint64_t
next_random()
{
	return rhh_mix64(rng += 0x9E3779B97F4A7C15ULL);
}

template <typename T>
struct device_array
{
	T		   *p = nullptr;
	size_t		n;

	explicit device_array(size_t n) : n(n) { CUDA(cudaMalloc(&p, (n ? n : 1) * sizeof(T))); }
	explicit device_array(const std::vector<T> &v) : device_array(v.size())
	{
		CUDA(cudaMemcpy(p, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
	}
	~device_array() { cudaFree(p); }
	device_array(const device_array &) = delete;

	std::vector<T> host(size_t m) const
	{
		std::vector<T> v(m);

		CUDA(cudaDeviceSynchronize());
		CUDA(cudaMemcpy(v.data(), p, m * sizeof(T), cudaMemcpyDeviceToHost));
		return v;
	}
};

template <typename Key>
struct failure_list
{
	device_array<Key> keys,
				values;
	device_array<unsigned long long> count;

	explicit failure_list(size_t n) : keys(n), values(n), count(1)
	{
		CUDA(cudaMemset(count.p, 0, sizeof(unsigned long long)));
	}
	rhh::failed<Key> out() { return {keys.p, values.p, count.p}; }
	size_t n() { return (size_t) count.host(1)[0]; }
};

/* What is counted while it lives. */
template <class T>
struct counted
{
	T		   &t;
	device_array<rhh::counters> c{1};

	explicit counted(T &t) : t(t)
	{
		CUDA(cudaMemset(c.p, 0, sizeof(rhh::counters)));
		t.count = c.p;
	}
	~counted() { t.count = nullptr; }
	rhh::counters get() { return c.host(1)[0]; }
};

template <class T, typename Key>
static std::unordered_map<Key, Key>
contents(T &t, bool *unique)
{
	uint64_t	n;

	CUDA(t.size(&n, nullptr));
	device_array<Key> keys(n + 1),
				values(n + 1);
	device_array<unsigned long long> found(1);

	CUDA(t.extract(keys.p, values.p, n + 1, found.p, nullptr));
	uint64_t	m = found.host(1)[0];
	auto		k = keys.host(std::min(m, n + 1)),
				v = values.host(std::min(m, n + 1));
	std::unordered_map<Key, Key> map;

	*unique = m == n;
	for (size_t i = 0; i < k.size(); i++)
		*unique = map.emplace(k[i], v[i]).second && *unique;
	return map;
}

/* What is in a table with what it handed back, combined by its reduction. */
template <typename Key, class Reduce>
static std::unordered_map<Key, Key>
with_failures(std::unordered_map<Key, Key> there, failure_list<Key> &failures, Reduce reduce)
{
	size_t		m = failures.n();
	auto		keys = failures.keys.host(m),
				values = failures.values.host(m);

	for (size_t i = 0; i < m; i++)
	{
		auto		e = there.emplace(keys[i], values[i]);

		if (!e.second)
			e.first->second = reduce(e.first->second, values[i]);
	}
	return there;
}

template <class T, typename Key>
static void
insert(T &t, const std::vector<Key> &keys, const std::vector<Key> &values,
	   failure_list<Key> &failures)
{
	device_array<Key> k(keys),
				v(values);

	CUDA(t.insert(k.p, v.p, keys.size(), failures.out(), nullptr));
	CUDA(cudaDeviceSynchronize());
}

/* Every key of the map is found with its value; keys that are not in it are not. */
template <class T, typename Key>
static void
check_finds(T &t, const std::unordered_map<Key, Key> &map)
{
	std::vector<Key> keys;
	size_t		wrong = 0;

	for (auto &e : map)
		keys.push_back(e.first);
	for (size_t i = map.size() / 2 + 10; i > 0; i--)
	{
		Key			k = (Key) next_random();

		if (!map.count(k))
			keys.push_back(k);
	}
	device_array<Key> k(keys),
				v(keys.size());
	device_array<uint8_t> c(keys.size());

	CUDA(t.find(k.p, v.p, keys.size(), (Key) 0xABCDEF, nullptr));
	CUDA(t.contains(k.p, c.p, keys.size(), nullptr));
	auto		values = v.host(keys.size());
	auto		found = c.host(keys.size());

	for (size_t i = 0; i < keys.size(); i++)
	{
		auto		e = map.find(keys[i]);

		wrong += e == map.end() ? values[i] != 0xABCDEF || found[i] != 0
			: values[i] != e->second || found[i] != 1;
	}
	CHECK(wrong == 0);
}

/* Random keys, of which some are frequent; EMPTY's pattern among them. */
template <typename Key>
static std::vector<Key>
random_keys(size_t n, uint64_t n_distinct)
{
	std::vector<Key> keys(n);

	for (auto &k : keys)
	{
		uint64_t	x = next_random();

		k = x % 16 == 0 ? (Key) (next_random() % 5) - 2	/* -2 .. 2 */
			: (Key) rhh_mix64(next_random() % n_distinct + 1);
	}
	return keys;
}

/*
 * The life of a table: insert in batches, look up, erase a part, insert again,
 * rehash, against the host's map.  Whatever is handed back is combined by the
 * same reduction.
 */
template <class T, typename Key, class Reduce>
static void
test_life(const char *name, uint64_t n_slots, double load, uint32_t max_dist, bool ordered)
{
	T			t;
	Reduce		reduce;
	std::unordered_map<Key, Key> map;
	bool		unique;

	test_name = name;
	CUDA(t.create(n_slots, nullptr, max_dist));
	for (int round = 0; round < 4; round++)
	{
		auto		keys = random_keys<Key>((size_t) (n_slots * load / 3), (uint64_t) (n_slots * load));
		std::vector<Key> values(keys.size());
		failure_list<Key> failures(keys.size());

		for (size_t i = 0; i < keys.size(); i++)
		{
			/* Where the result would depend on the order, equal keys have equal values. */
			values[i] = ordered ? (Key) rhh_mix64(keys[i] + round) : (Key) next_random();
			auto		e = map.emplace(keys[i], values[i]);

			if (!e.second)
				e.first->second = reduce(e.first->second, values[i]);
		}
		insert(t, keys, values, failures);

		/* What came back, with what is there, is the map. */
		auto		there = contents<T, Key>(t, &unique);
		size_t		m = failures.n();

		CHECK(unique);
		if (max_dist >= 64)
			CHECK(m == 0);
		if (!ordered || m == 0)
			CHECK(with_failures(there, failures, reduce) == map);
		map = there;
		check_finds(t, map);

		/* Every third key goes, some of them twice; some were never there. */
		std::vector<Key> gone;

		for (auto &e : there)
			if (rhh_mix64(e.first) % 3 == 0)
			{
				gone.push_back(e.first);
				if (e.first % 2)
					gone.push_back(e.first);
				gone.push_back((Key) next_random());
			}
		for (auto &k : gone)
			map.erase(k);
		device_array<Key> g(gone);

		CUDA(t.erase(g.p, gone.size(), nullptr));
		CUDA(cudaDeviceSynchronize());
		CHECK((contents<T, Key>(t, &unique)) == map);
		CHECK(unique);
		check_finds(t, map);

		if (round == 1)
		{
			bool		fits;

			CUDA(t.rehash(n_slots * 2, &fits, nullptr));
			CHECK(fits);
			CHECK((contents<T, Key>(t, &unique)) == map);
			check_finds(t, map);
			CUDA(t.rehash(n_slots / 16, &fits, nullptr));
			CHECK(!fits || map.size() <= t.n_slots() + 1);
			CHECK((contents<T, Key>(t, &unique)) == map);
			CUDA(t.rehash(n_slots, &fits, nullptr));
			CHECK((contents<T, Key>(t, &unique)) == map);
		}
	}
	CUDA(t.clear(nullptr));
	CHECK((contents<T, Key>(t, &unique)).empty());
	t.destroy();
	t.destroy();
}

/*
 * Keys that crowd a few home buckets, each inserted many times while others
 * displace them: a displaced key that somebody inserts anew must not have two
 * slots (rhh_buckets.cuh, (3)).  Without the look for equal keys while carrying,
 * this fails.  Whichever of the two met the other, that is one hit.
 */
template <typename Key>
static void
test_displaced_keys(const char *name)
{
	typedef rhh::table<Key, Key, rhh::sum> T;

	test_name = name;
	for (int round = 0; round < 20; round++)
	{
		T			t;
		bool		unique;
		std::vector<Key> pool,
					keys,
					values;
		std::unordered_map<Key, Key> map;

		CUDA(t.create(0, nullptr, 64));
		/* The homes of all are in a sixteenth of the table. */
		while (pool.size() < 60)
		{
			Key			k = (Key) next_random();

			if (rhh_home_of(rhh::mix::hash(k), (uint32_t) (t.n_slots() / T::S::SLOTS)) < 8)
				pool.push_back(k);
		}
		for (int i = 0; i < 3000 * SCALE; i++)
		{
			keys.push_back(pool[next_random() % std::min<size_t>(pool.size(), i / 20 + 1)]);
			values.push_back(1);
			map[keys.back()]++;
		}
		failure_list<Key> failures(keys.size());
		counted<T>	counts(t);

		if (round % 2 == 0)
			t.count = nullptr;	/* that is other code */
		insert(t, keys, values, failures);
		CHECK((contents<T, Key>(t, &unique)) == map);
		CHECK(unique);
		CHECK(failures.n() == 0);
		CHECK(t.count == nullptr || counts.get().hits == keys.size() - map.size());
		t.destroy();
	}
}

/*
 * insert_if_absent leaves keys that are there as they are, also those that are
 * just being displaced: others may insert such a key anew before it has its new
 * place, and of the two values the older must remain.
 */
template <typename Key>
static void
test_absent_keeps(const char *name)
{
	typedef rhh::table<Key, Key, rhh::replace> T;
	size_t		changed = 0;

	test_name = name;
	for (int round = 0; round < 40; round++)
	{
		T			t;
		bool		unique;
		std::vector<Key> pool,
					first,
					keys;

		CUDA(t.create(0, nullptr, 64));
		/* The homes of all are in a sixteenth of the table. */
		while (pool.size() < 120)
		{
			Key			k = (Key) next_random();

			if (rhh_home_of(rhh::mix::hash(k), (uint32_t) (t.n_slots() / T::S::SLOTS)) < 8)
				pool.push_back(k);
		}
		first.assign(pool.begin(), pool.begin() + 40);
		failure_list<Key> failures(4096 * SCALE);

		insert(t, first, std::vector<Key>(first.size(), (Key) 1), failures);
		/* New keys displace the old ones, which are inserted over and over. */
		for (int i = 0; i < 2000 * SCALE; i++)
			keys.push_back(pool[next_random() % std::min<size_t>(pool.size(), 40 + i / 10)]);

		device_array<Key> k(keys),
					v(std::vector<Key>(keys.size(), (Key) 2));

		CUDA(t.insert_if_absent(k.p, v.p, keys.size(), failures.out(), nullptr));
		CUDA(cudaDeviceSynchronize());
		auto		there = contents<T, Key>(t, &unique);

		CHECK(unique);
		CHECK(failures.n() == 0);
		for (auto &e : first)
			changed += there.count(e) != 1 || there[e] != 1;
		t.destroy();
	}
	CHECK(changed == 0);
	if (changed)
		printf("%zu values changed\n", changed);
}

/* Many tiles erase neighbours of one another, and the same keys. */
static void
test_crowded_erase()
{
	typedef rhh::table<uint32_t, uint32_t> T;

	test_name = "crowded erase";
	for (int round = 0; round < 10; round++)
	{
		T			t;
		bool		unique;
		std::unordered_map<uint32_t, uint32_t> map;
		std::vector<uint32_t> keys,
					gone;

		CUDA(t.create(1024, nullptr, UINT32_MAX));
		while (map.size() < 1000)
			map.emplace((uint32_t) next_random(), 7u);
		for (auto &e : map)
		{
			keys.push_back(e.first);
			if (next_random() % 4)
			{
				gone.push_back(e.first);
				gone.push_back(e.first);
			}
		}
		failure_list<uint32_t> failures(keys.size());

		insert(t, keys, std::vector<uint32_t>(keys.size(), 7u), failures);
		CHECK(failures.n() == 0);
		device_array<uint32_t> g(gone);

		CUDA(t.erase(g.p, gone.size(), nullptr));
		for (auto k : gone)
			map.erase(k);
		CHECK((contents<T, uint32_t>(t, &unique)) == map);
		CHECK(unique);
		check_finds(t, map);
		t.destroy();
	}
}

/* More keys than slots: what does not fit comes back, nothing is lost, nothing hangs. */
static void
test_overfull()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;
	T			t;
	bool		unique;
	std::unordered_map<uint32_t, uint32_t> map;
	std::vector<uint32_t> keys;

	test_name = "overfull";
	CUDA(t.create(1024, nullptr, UINT32_MAX));
	for (uint32_t i = 0; i < 3000; i++)
	{
		keys.push_back(i * 2654435761u);
		keys.push_back(i * 2654435761u);
		map[i * 2654435761u] += 2;
	}
	failure_list<uint32_t> failures(keys.size());

	insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
	auto		there = contents<T, uint32_t>(t, &unique);

	CHECK(unique);
	CHECK(there.size() == t.n_slots());
	check_finds(t, there);
	CHECK(with_failures(there, failures, rhh::sum()) == map);
	t.destroy();
}

/* Hints are lower bounds still after inserts, and of no use after erasing. */
static void
test_hints()
{
	typedef rhh::table<uint32_t, uint32_t> T;
	T			t;
	std::unordered_map<uint32_t, uint32_t> map;

	test_name = "hints";
	CUDA(t.create(1 << 14, nullptr, UINT32_MAX));
	for (int round = 0; round < 6; round++)
	{
		std::vector<uint32_t> keys,
					values;
		failure_list<uint32_t> failures(1 << 14);
		double		load = round < 3 ? 0.80 + 0.09 * round : 0.97;

		while (map.size() < load * (1 << 14))
		{
			uint32_t	k = (uint32_t) next_random();

			if (map.emplace(k, k ^ 5u).second)
			{
				keys.push_back(k);
				values.push_back(k ^ 5u);
			}
		}
		insert(t, keys, values, failures);
		CHECK(failures.n() == 0);
		/* By few keys: with what hints there are. */
		std::unordered_map<uint32_t, uint32_t> few;

		for (auto &e : map)
			if (few.size() < 300)
				few.insert(e);
		size_t		was = few.size();
		std::vector<uint32_t> fk;

		for (auto &e : few)
			fk.push_back(e.first);
		device_array<uint32_t> k(fk),
					v(was);

		CUDA(t.find(k.p, v.p, was, 0u, nullptr));
		auto		values_found = v.host(was);
		bool		right = true;

		for (size_t i = 0; i < was; i++)
			right = right && values_found[i] == (fk[i] ^ 5u);
		CHECK(right);
		check_finds(t, map);

		std::vector<uint32_t> gone;

		if (round >= 2)
			for (auto &e : map)
				if (next_random() % 3 == 0)
					gone.push_back(e.first);
		for (auto g : gone)
			map.erase(g);
		device_array<uint32_t> g(gone);

		CUDA(t.erase(g.p, gone.size(), nullptr));
		/* Less than one key for so many slots: hints are not made anew. */
		fk.clear();
		for (auto &e : map)
			if (fk.size() < 900)
				fk.push_back(e.first);
		device_array<uint32_t> k2(fk),
					v2(fk.size());

		CUDA(t.find(k2.p, v2.p, fk.size(), 0u, nullptr));
		values_found = v2.host(fk.size());
		right = true;
		for (size_t i = 0; i < fk.size(); i++)
			right = right && values_found[i] == (fk[i] ^ 5u);
		CHECK(right);
	}
	t.destroy();
}

/*
 * Device-side operations of tiles in the caller's own kernel, on n different keys
 * of which the first is EMPTY.
 */
template <typename Key>
static __host__ __device__ Key
own_key(uint32_t i)
{
	return i == 0 ? (Key) ~(Key) 0 : (Key) (i * (Key) 77);
}

template <class Ref, typename Key>
static __global__ void
own_kernel(const __grid_constant__ Ref r, uint32_t n, uint32_t *wrong)
{
	const typename Ref::tile tile;

	for (uint32_t i = RHH_TILE_ID(Ref::tile::SIZE); i < n; i += RHH_TILES(Ref::tile::SIZE))
	{
		Key			key = own_key<Key>(i),
					value = i;
		bool		bad = false;

		bad = bad || r.insert(tile, &key, &value) != RHH_PLACED;
		value = 1000000;
		key = own_key<Key>(i);
		bad = bad || r.insert_if_absent(tile, &key, &value) != RHH_MET || value != i;
		value = 5;
		key = own_key<Key>(i);
		bad = bad || r.insert(tile, &key, &value) != RHH_MET || value != i;
		if (bad && tile.rank == 0)
			atomicAdd(wrong, 1u);
	}
}

template <class Ref, typename Key>
static __global__ void
own_find_kernel(const __grid_constant__ Ref r, uint32_t n, uint32_t *wrong)
{
	const typename Ref::tile tile;

	for (uint32_t i = RHH_TILE_ID(Ref::tile::SIZE); i < n; i += RHH_TILES(Ref::tile::SIZE))
	{
		Key			key = own_key<Key>(i),
					value;
		bool		bad = !r.find(tile, key, &value) || value != i + 5;

		bad = bad || !r.contains(tile, key) || r.contains(tile, own_key<Key>(i + 1) + 1);
		if (bad && tile.rank == 0)
			atomicAdd(wrong, 1u);
	}
}

template <typename Key>
static void
test_device_side(const char *name)
{
	typedef rhh::table<Key, Key, rhh::sum> T;
	T			t;
	device_array<uint32_t> wrong(1);
	uint32_t	n = 2000;
	auto		inserts = own_kernel<typename T::ref, Key>;
	auto		finds = own_find_kernel<typename T::ref, Key>;

	test_name = name;
	/* No bucket overflows: a key that is displaced just then would be PLACED anew. */
	CUDA(t.create(1 << 16, nullptr));
	CUDA(cudaMemset(wrong.p, 0, 4));
	RHH_LAUNCH(inserts, 4, 128, 0, nullptr, t.device(), n, wrong.p);
	RHH_LAUNCH(finds, 4, 128, 0, nullptr, t.device(), n, wrong.p);
	CUDA(cudaGetLastError());
	CHECK(wrong.host(1)[0] == 0);
	{
		bool		unique;
		auto		there = contents<T, Key>(t, &unique);

		CHECK(unique);
		CHECK(there.size() == n);
		CHECK(there[own_key<Key>(0)] == 5);
	}
	t.destroy();
}

template <class Ref>
static __global__ void
own_erase_kernel(const __grid_constant__ Ref r, const uint32_t *keys, uint32_t n, uint32_t *wrong)
{
	const typename Ref::tile tile;

	for (uint32_t i = RHH_TILE_ID(Ref::tile::SIZE); i < n; i += RHH_TILES(Ref::tile::SIZE))
	{
		uint32_t	value;
		bool		bad = !r.erase(tile, keys[i], &value) || value != (keys[i] ^ 5u);

		bad = bad || r.erase(tile, keys[i], &value);
		if (bad && tile.rank == 0)
			atomicAdd(wrong, 1u);
	}
}

/* Erasing in the caller's own kernel: it ends hints too. */
static void
test_device_erase()
{
	typedef rhh::table<uint32_t, uint32_t> T;
	T			t;
	device_array<uint32_t> wrong(1);
	std::unordered_map<uint32_t, uint32_t> map;
	std::vector<uint32_t> keys,
				values,
				gone;
	failure_list<uint32_t> failures(1 << 14);
	auto		erases = own_erase_kernel<T::ref>;

	test_name = "device side erase";
	CUDA(t.create(1 << 14, nullptr, UINT32_MAX));
	while (map.size() < 0.95 * (1 << 14))
	{
		uint32_t	k = (uint32_t) next_random();

		if (map.emplace(k, k ^ 5u).second)
		{
			keys.push_back(k);
			values.push_back(k ^ 5u);
			if (next_random() % 2)
				gone.push_back(k);
		}
	}
	insert(t, keys, values, failures);
	CHECK(failures.n() == 0);
	check_finds(t, map);		/* makes hints */
	for (auto k : gone)
		map.erase(k);
	device_array<uint32_t> g(gone);

	CUDA(cudaMemset(wrong.p, 0, 4));
	RHH_LAUNCH(erases, 4, 128, 0, nullptr, t.device(), g.p, (uint32_t) gone.size(), wrong.p);
	CUDA(cudaGetLastError());
	CHECK(wrong.host(1)[0] == 0);
	/* Less than one key for so many slots: hints are not made anew. */
	keys.clear();
	for (auto &e : map)
		if (keys.size() < 900)
			keys.push_back(e.first);
	device_array<uint32_t> k(keys),
				v(keys.size());

	CUDA(t.find(k.p, v.p, keys.size(), 0u, nullptr));
	auto		found = v.host(keys.size());
	bool		right = true;

	for (size_t i = 0; i < keys.size(); i++)
		right = right && found[i] == (keys[i] ^ 5u);
	CHECK(right);
	check_finds(t, map);
	t.destroy();
}

/*
 * A table built at once (partitioned, into an empty table): full, with a probe
 * cap that some entries would be beyond, of a size that parts do not divide, and
 * with what the caller's own kernel has left in it.
 */
static void
test_builds()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;
	static const struct
	{
		uint64_t	slots;
		double		load;
		uint32_t	max_dist;
		bool		used;
		size_t		frequent;	/* one key is every so-manieth */
	}			cases[] = {
		{1 << 14, 0.98, UINT32_MAX, false, 1024},
		{12503, 0.97, UINT32_MAX, false, 1024},
		{1 << 14, 0.98, UINT32_MAX, false, 64}, /* too many for a block */
		{1 << 14, 0.9, 2, false, 64},
		{1 << 14, 0.9, 1, false, 1024},
		{11251, 0.9, 3, false, 1024},
		{1 << 14, 0.5, UINT32_MAX, true, 1024},
	};

	for (auto &c : cases)
	{
		T			t;
		bool		unique;
		std::unordered_map<uint32_t, uint32_t> map;
		std::vector<uint32_t> keys;
		device_array<uint32_t> wrong(1);
		auto		inserts = own_kernel<T::ref, uint32_t>;
		uint64_t	n_slots = c.slots * BEYOND_L2;

		test_name = "builds";
		CUDA(t.create(n_slots, nullptr, c.max_dist));
		if (c.used)
		{
			CUDA(cudaMemset(wrong.p, 0, 4));
			RHH_LAUNCH(inserts, 1, 128, 0, nullptr, t.device(), 50u, wrong.p);
			for (uint32_t i = 0; i < 50; i++)
				map[own_key<uint32_t>(i)] = i + 5;
		}
		while (keys.size() < c.load * n_slots)
		{
			keys.push_back((uint32_t) next_random());
			map[keys.back()]++;
			/* Many keys twice, and one very often. */
			if (keys.size() % 4 == 0)
			{
				keys.push_back(keys[keys.size() / 2]);
				map[keys.back()]++;
			}
			if (keys.size() % c.frequent == 0)
			{
				keys.push_back(7);
				map[7]++;
			}
		}
		failure_list<uint32_t> failures(keys.size());

		insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
		auto		there = contents<T, uint32_t>(t, &unique);

		CHECK(unique);
		CHECK(c.max_dist != UINT32_MAX || failures.n() == 0);
		check_finds(t, there);
		CHECK(with_failures(there, failures, rhh::sum()) == map);
		t.destroy();
	}
}

/* Counters agree with what happened. */
static void
test_counters()
{
	typedef rhh::table<uint32_t, uint32_t> T;
	T			t;
	device_array<rhh::counters> c(1);
	auto		keys = random_keys<uint32_t>(3000, 1u << 30);
	std::vector<uint32_t> distinct(keys);
	failure_list<uint32_t> failures(keys.size());

	test_name = "counters";
	for (auto &k : keys)
		k = k == ~0u ? 12345u : k;
	distinct = keys;
	std::sort(distinct.begin(), distinct.end());
	distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
	CUDA(t.create(4096, nullptr, 64));
	CUDA(cudaMemset(c.p, 0, sizeof(rhh::counters)));
	t.count = c.p;
	insert(t, keys, keys, failures);
	auto		x = c.host(1)[0];

	CHECK(x.operations == keys.size());
	CHECK(x.hits == keys.size() - distinct.size());
	CHECK(x.probes >= keys.size());
	CHECK(x.failures == 0);
	device_array<uint32_t> k(keys),
				v(keys.size());

	CUDA(t.find(k.p, v.p, keys.size(), 0u, nullptr));
	auto		y = c.host(1)[0];

	CHECK(y.hits - x.hits == keys.size());
	t.destroy();
}

/*
 * A table that the L2 cache holds is built, and merged with, where it becomes crowded:
 * then no entry is displaced.  The way to a half, and batches too small to be merged,
 * displace some.
 */
static void
test_crowded()
{
	typedef rhh::table<uint32_t, uint32_t> T;
	const uint64_t n_slots = 8192;
	std::vector<uint32_t> keys((size_t) (0.95 * n_slots));
	std::vector<uint32_t> batches[] = {{7782}, {4096, 3686}, {4096, 3686, 4000}, {200}};

	test_name = "crowded";
	for (size_t i = 0; i < keys.size(); i++)
		keys[i] = rhh_mix32((uint32_t) i + 1);
	for (const auto &sizes : batches)
	{
		T			t;
		device_array<rhh::counters> c(1);
		failure_list<uint32_t> failures(keys.size());
		uint64_t	size,
					displaced_before = 0;
		size_t		n = 0;

		CUDA(t.create(n_slots, nullptr, UINT32_MAX));
		CUDA(cudaMemset(c.p, 0, sizeof(rhh::counters)));
		t.count = c.p;
		for (size_t b = 0; n < keys.size() || b < sizes.size(); b++)
		{
			/* After the last key all over again: those are there. */
			const size_t from = n < keys.size() ? n : 0;
			const size_t to = std::min<size_t>(from + sizes[std::min(b, sizes.size() - 1)], keys.size());
			std::vector<uint32_t> batch(keys.begin() + from, keys.begin() + to);

			insert(t, batch, batch, failures);
			n = std::max(n, to);
			if (to == n_slots / 2)
				displaced_before = c.host(1)[0].displacements;
		}
		auto		x = c.host(1)[0];
		bool		unique;

		CUDA(t.size(&size, nullptr));
		CHECK(size == keys.size() && failures.n() == 0);
		CHECK((x.displacements > displaced_before) == (sizes[0] == 200));
		CHECK((displaced_before > 0) == (sizes[0] == n_slots / 2));
		CHECK((contents<T, uint32_t>(t, &unique)).size() == keys.size() && unique);
		t.destroy();
	}
}

/* Blocks of a merge that run together, where that can be chosen. */
static void
simt_blocks(unsigned n)
{
#ifdef __CUDACC__
	(void) n;
#else
	simt::config.blocks_together = n;
#endif
}

#include "table_bulk.cuh"
#include "table_edges.cuh"

struct bit_or
{
	__host__ __device__ uint32_t operator()(uint32_t old, uint32_t added) const { return old | added; }
};

int
main(int argc, char **argv)
{
	const uint64_t n = 4096 * SCALE;

	if (argc > 1)
		rng = strtoull(argv[1], nullptr, 0);	/* a seed */
#ifndef __CUDACC__
	simt::config.seed = rng;
#endif

	test_life<rhh::table<uint32_t, uint32_t, rhh::sum>, uint32_t, rhh::sum>("u32 sum", n, 0.6, 64, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum>, uint32_t, rhh::sum>("u32 sum, capped", n, 0.95, 2, false);
	test_life<rhh::table<uint64_t, uint64_t, rhh::sum>, uint64_t, rhh::sum>("u64 sum", n, 0.7, 64, false);
	test_life<rhh::table<uint64_t, uint64_t, rhh::max>, uint64_t, rhh::max>("u64 max, capped", n, 0.95, 3, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::min>, uint32_t, rhh::min>("u32 min", n, 0.8, 64, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::replace>, uint32_t, rhh::replace>("u32 replace", n, 0.8, 64, true);
	test_life<rhh::table<uint32_t, uint32_t, bit_or>, uint32_t, bit_or>("u32 own reduction", n, 0.6, 64, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum, 0u>, uint32_t, rhh::sum>("empty key 0", n, 0.6, 64, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum, ~0u, 128>, uint32_t, rhh::sum>("128-byte lines", n, 0.7, 64, false);
	test_life<rhh::table<uint64_t, uint64_t, rhh::sum, 5u, 128>, uint64_t, rhh::sum>("u64, 128-byte lines", n, 0.7, 64, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum, ~0u, 32>, uint32_t, rhh::sum>("32-byte lines", n, 0.5, 64, false);
	/* The narrowest and the widest tiles: a lane, and (of 32 lanes) a warp. */
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum, ~0u, 16>, uint32_t, rhh::sum>("16-byte lines", n / 4, 0.4, 64, false);
	test_life<rhh::table<uint64_t, uint64_t, rhh::sum, ~UINT64_C(0), 16>, uint64_t, rhh::sum>("u64, 16-byte lines", n / 4, 0.3, 64, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum, ~0u, 512>, uint32_t, rhh::sum>("512-byte lines", n / 4, 0.7, 64, false);
	test_life<rhh::table<uint64_t, uint64_t, rhh::sum, ~UINT64_C(0), 512>, uint64_t, rhh::sum>("u64, 512-byte lines", n / 4, 0.7, 64, false);
	/* Beyond (simt's) L2: partitioned. */
	test_life<rhh::table<uint32_t, uint32_t, rhh::sum>, uint32_t, rhh::sum>("partitioned", (uint64_t) 10000 * BEYOND_L2, 0.7, 64, false);
	test_life<rhh::table<uint64_t, uint64_t, rhh::sum>, uint64_t, rhh::sum>("partitioned, crowded", (uint64_t) 5000 * BEYOND_L2, 1.2, UINT32_MAX, false);
	test_life<rhh::table<uint32_t, uint32_t, rhh::max>, uint32_t, rhh::max>("partitioned, capped", (uint64_t) 10000 * BEYOND_L2, 1.2, 2, false);
	test_displaced_keys<uint32_t>("displaced keys, u32");
	test_displaced_keys<uint64_t>("displaced keys, u64");
	test_absent_keeps<uint32_t>("insert if absent, u32");
	test_absent_keeps<uint64_t>("insert if absent, u64");
	test_crowded_erase();
	test_overfull();
	test_hints();
	test_device_side<uint32_t>("device side, u32");
	test_device_side<uint64_t>("device side, u64");
	test_device_erase();
	test_builds();
	test_counters();
	test_crowded();
	test_bulk();
	test_edges();
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed != 0;
}
