/*
 * compact_test.cu
 *		Tests of the compact tables against sets on the host.
 *
 *	g++ -std=c++17 -O2 -Wall -Wextra -Werror -x c++ -Igpu -Itest -Ibench/tables \
 *		bench/tables/test/compact_test.cu -o compact_test
 *	nvcc -std=c++17 -O3 -arch=sm_90 -Igpu -Ibench/tables \
 *		bench/tables/test/compact_test.cu -o compact_test
 *
 * The first runs anywhere, in another interleaving for each launch; the second
 * needs a GPU and takes larger tables.  A line for each check that fails.  An
 * argument, a number, makes it other keys and other interleavings.
 */
#include <algorithm>
#include <array>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <set>
#include <string>
#include <vector>

#include "compact_cuckoo.cuh"
#include "compact_iceberg.cuh"
#include "sort_find_or_put.cuh"

#if defined(__CUDACC__)
#ifndef TEST_SCALE
#define TEST_SCALE 256
#endif
#define MORE_BITS (TEST_SCALE >= 256 ? 8 : 0)	/* of buckets, than on the CPU */
#define ROUNDS 20
#else
#define MORE_BITS 0
#define ROUNDS 16
#endif
#define BLOCK_THREADS 64

static long n_passed,
			n_failed;
static unsigned long first_seed;
static std::string context;		/* what is being tested */

#define CHECK(ok, ...) \
	do { \
		if (ok) \
			n_passed++; \
		else \
		{ \
			n_failed++; \
			printf("FAILED %s:%d [%s] %s: ", __FILE__, __LINE__, context.c_str(), #ok); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

/* Ends the test: nothing after it would mean anything. */
#define CUDA(call) \
	do { \
		cudaError_t cuda_error = (call); \
		if (cuda_error != cudaSuccess) \
		{ \
			printf("FAILED %s:%d [%s] %s: %s\n", __FILE__, __LINE__, context.c_str(), #call, \
				   cudaGetErrorString(cuda_error)); \
			exit(1); \
		} \
	} while (0)

#define LLU(x) ((unsigned long long) (x))

/* A new interleaving; with several blocks at a time where that makes it wilder. */
static void
another_schedule(unsigned n)
{
#if defined(__CUDACC__)
	(void) n;
#else
	simt::config.seed = 1000 + 7919 * first_seed + n;
	simt::config.blocks_at_once = 1 + n % 4;
	simt::config.switch_one_in = 1 + n % 5;
#endif
}

/* ---------- keys ---------- */

static uint64_t random_state = 42;

static uint64_t
random64()
{
	uint64_t	z = random_state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static uint64_t
low_bits(uint64_t x, int bits)
{
	return bits == 64 ? x : x & ((UINT64_C(1) << bits) - 1);
}

template <typename T>
static void
shuffle(std::vector<T> &v)
{
	for (size_t i = v.size(); i > 1; i--)
		std::swap(v[i - 1], v[random64() % i]);
}

/* n different keys, in no order, the least and the greatest among them. */
template <typename Key>
static std::vector<Key>
different_keys(size_t n, int key_bits)
{
	std::vector<Key> keys = {0, (Key) low_bits(~UINT64_C(0), key_bits)};

	if (key_bits < 20)
	{
		for (uint64_t k = 1; k + 1 < UINT64_C(1) << key_bits; k++)
			keys.push_back((Key) k);
		std::swap(keys[1], keys[2]);
		for (size_t i = keys.size(); i > 3; i--)
			std::swap(keys[i - 1], keys[2 + random64() % (i - 2)]);
		std::swap(keys[1], keys[2]);
		if (keys.size() > n)
			keys.resize(n);
	}
	else
	{
		std::set<Key> seen(keys.begin(), keys.end());

		while (keys.size() < n)
		{
			Key			k = (Key) low_bits(random64(), key_bits);

			if (seen.insert(k).second)
				keys.push_back(k);
		}
	}
	shuffle(keys);
	return keys;
}

/* ---------- device arrays ---------- */

template <typename T>
struct device_array
{
	T		   *p = NULL;
	size_t		n;

	device_array(size_t n) : n(n)
	{
		CUDA(cudaMalloc(&p, (n + 1) * sizeof(T)));
	}

	device_array(const std::vector<T> &v) : device_array(v.size())
	{
		if (n > 0)
			CUDA(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}

	device_array(const device_array &) = delete;

	~device_array()
	{
		cudaFree(p);
	}

	std::vector<T> host() const
	{
		std::vector<T> v(n);

		CUDA(cudaDeviceSynchronize());
		if (n > 0)
			CUDA(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
		return v;
	}
};

template <typename Set, typename Key>
static std::vector<uint8_t>
find(Set &set, const std::vector<Key> &keys)
{
	device_array<Key> k(keys);
	device_array<uint8_t> r(keys.size());

	CUDA(set.find(k.p, r.p, keys.size(), BLOCK_THREADS, 0));
	return r.host();
}

template <typename Set, typename Key>
static std::vector<uint8_t>
find_or_put(Set &set, const std::vector<Key> &keys)
{
	device_array<Key> k(keys);
	device_array<uint8_t> r(keys.size());

	CUDA(set.find_or_put(k.p, r.p, keys.size(), BLOCK_THREADS, 0));
	return r.host();
}

/* The cuckoo table's; left gets the keys of the FULL ones. */
template <typename Set, typename Key>
static std::vector<uint8_t>
put(Set &set, const std::vector<Key> &keys, std::vector<Key> *left)
{
	device_array<Key> k(keys);
	device_array<uint8_t> r(keys.size());
	device_array<Key> l(keys.size());
	std::vector<uint8_t> results;
	std::vector<Key> all;

	CUDA(set.put(k.p, r.p, keys.size(), BLOCK_THREADS, 0, l.p));
	results = r.host();
	all = l.host();
	for (size_t i = 0; i < keys.size(); i++)
		if (results[i] == COMPACT_FULL)
			left->push_back(all[i]);
	return results;
}

/* All keys in the table by way of its slots; sorted, with duplicates if any. */
template <typename Set>
static std::vector<typename Set::key_type>
all_keys(Set &set)
{
	uint64_t	n = 0;
	uint64_t	n_extracted = 0;

	CUDA(set.size(&n, 0));

	device_array<typename Set::key_type> out(n);

	CUDA(set.extract(out.p, &n_extracted, 0));
	CHECK(n == n_extracted, "size %llu, extracted %llu", LLU(n), LLU(n_extracted));

	std::vector<typename Set::key_type> v = out.host();

	std::sort(v.begin(), v.end());
	return v;
}

/* The table holds exactly these keys, each once, and finds them and no others. */
template <typename Set, typename Key>
static void
check_contents(Set &set, const std::set<Key> &expected, const std::vector<Key> &absent)
{
	std::vector<Key> keys(expected.begin(), expected.end());
	std::vector<Key> there = all_keys(set);
	std::vector<uint8_t> results;
	size_t		wrong = 0;

	CHECK(there == keys, "%zu keys in the slots, %zu expected", there.size(), keys.size());
	shuffle(keys);
	results = find(set, keys);
	for (uint8_t r : results)
		wrong += r != COMPACT_FOUND;
	CHECK(wrong == 0, "%zu of %zu keys not found", wrong, keys.size());
	wrong = 0;
	results = find(set, absent);
	for (uint8_t r : results)
		wrong += r != COMPACT_ABSENT;
	CHECK(wrong == 0, "%zu of %zu absent keys found", wrong, absent.size());
}

/* ---------- permutations ---------- */

static void
test_permutations()
{
	context = "permutations";

	/* Small domains in full: a bijection that key() inverts. */
	for (uint32_t key_bits = 1; key_bits <= 12; key_bits++)
		for (uint32_t address_bits = 0; address_bits <= key_bits; address_bits++)
			for (uint32_t p = 0; p < COMPACT_PERMUTATIONS; p++)
			{
				compact_split s = {key_bits, address_bits};
				std::vector<bool> seen(1 << key_bits);
				size_t		wrong = 0;

				for (uint64_t key = 0; key < UINT64_C(1) << key_bits; key++)
				{
					uint64_t	bucket = s.bucket(key, p);
					uint64_t	remainder = s.remainder(key);

					if (!s.has_key(key) || bucket >= s.n_buckets() ||
						remainder >> s.remainder_bits() != 0 ||
						seen[remainder << address_bits | bucket] ||
						s.key((uint32_t) bucket, remainder, p) != key)
						wrong++;
					else
						seen[remainder << address_bits | bucket] = true;
				}
				CHECK(wrong == 0, "%u key bits, %u address bits, permutation %u: %zu keys",
					  key_bits, address_bits, p, wrong);
				CHECK(!s.has_key(UINT64_C(1) << key_bits), "%u key bits", key_bits);
			}

	/* Large ones by random keys, and the least and greatest. */
	for (uint32_t key_bits = 13; key_bits <= 64; key_bits++)
		for (uint32_t p = 0; p < COMPACT_PERMUTATIONS; p++)
		{
			size_t		wrong = 0;

			for (int i = 0; i < 200; i++)
			{
				uint32_t	most = std::min<uint32_t>(key_bits, COMPACT_MAX_ADDRESS_BITS);
				compact_split s = {key_bits, (uint32_t) (random64() % (most + 1))};
				uint64_t	key = low_bits(i == 0 ? 0 : i == 1 ? ~UINT64_C(0) : random64(),
										   key_bits);
				uint64_t	bucket = s.bucket(key, p);

				wrong += !s.has_key(key) || bucket >= s.n_buckets() ||
					(s.remainder_bits() < 64 && s.remainder(key) >> s.remainder_bits() != 0) ||
					s.key((uint32_t) bucket, s.remainder(key), p) != key;
			}
			CHECK(wrong == 0, "%u key bits, permutation %u: %zu keys", key_bits, p, wrong);
		}

	/*
	 * Spread: remainders in sequence over one permutation's 2^12 buckets, and
	 * over the pairs of two permutations' 2^6 buckets; chi-square over its
	 * degrees of freedom, which is 1 for random numbers.
	 */
	for (uint32_t p = 0; p < COMPACT_PERMUTATIONS; p++)
		for (uint32_t q = p; q < COMPACT_PERMUTATIONS; q++)
			for (int step = 0; step <= 36; step += 3)
			{
				compact_split s = {64, p == q ? 12u : 6u};
				std::vector<int> n(1 << 12);
				double		chi = 0;

				for (uint64_t i = 0; i < 16 << 12; i++)
				{
					uint64_t	key = i << step << s.address_bits;

					n[p == q ? s.bucket(key, p) : s.bucket(key, p) << 6 | s.bucket(key, q)]++;
				}
				for (int x : n)
					chi += (x - 16.0) * (x - 16.0) / 16.0;
				chi /= (1 << 12) - 1;
				CHECK(chi < 1.15, "permutations %u and %u, step 2^%d: %.3f", p, q, step, chi);
			}
}

/* ---------- find-or-put, any table ---------- */

/*
 * Random keys in several batches, each key some times in each: exactly one PUT a
 * key ever, FOUND otherwise.
 */
template <typename Set>
static void
test_find_or_put(Set &set, int key_bits, double load)
{
	typedef typename Set::key_type Key;
	size_t		n = std::min<uint64_t>((uint64_t) (load * set.capacity()),
									   key_bits < 40 ? (UINT64_C(1) << key_bits) / 2 : UINT64_MAX);
	std::vector<Key> keys = different_keys<Key>(2 * n, key_bits);
	std::vector<Key> absent(keys.begin() + n, keys.end());
	std::set<Key> before;

	keys.resize(n);
	CUDA(set.clear(0));
	check_contents(set, std::set<Key>(), absent);
	for (int batch = 0; batch < 3; batch++)
	{
		size_t		up_to = n * (batch + 1) / 3;
		std::vector<Key> asked;
		std::map<Key, int> n_put;
		std::vector<uint8_t> results;
		size_t		wrong = 0;

		/* The new ones 1 to 4 times and some older ones. */
		for (size_t i = 0; i < up_to; i++)
			for (uint64_t copies = before.count(keys[i]) ? random64() % 2 : 1 + random64() % 4;
				 copies > 0; copies--)
				asked.push_back(keys[i]);
		shuffle(asked);
		results = find_or_put(set, asked);
		for (size_t i = 0; i < asked.size(); i++)
		{
			n_put[asked[i]] += results[i] == COMPACT_PUT;
			wrong += results[i] != COMPACT_PUT && results[i] != COMPACT_FOUND;
		}
		CHECK(wrong == 0, "%zu of %zu results neither PUT nor FOUND", wrong, asked.size());
		wrong = 0;
		for (auto &k : n_put)
			wrong += k.second != !before.count(k.first);
		CHECK(wrong == 0, "batch %d: %zu of %zu keys not put exactly once", batch, wrong,
			  n_put.size());
		before.insert(asked.begin(), asked.end());
		check_contents(set, before, absent);
	}
	CHECK(before.size() == n, "%zu of %zu keys", before.size(), n);

	/* Nothing changes by nothing. */
	find_or_put(set, std::vector<Key>());
	check_contents(set, before, absent);
	CUDA(set.clear(0));
	check_contents(set, std::set<Key>(), keys);
}

/* Keys of more bits than the table's are not stored, not even as another key. */
template <typename Set>
static void
test_wide_keys(Set &set, int key_bits)
{
	typedef typename Set::key_type Key;
	std::vector<Key> keys;
	std::set<Key> expected;
	std::vector<uint8_t> results;
	size_t		wrong = 0;

	if (key_bits >= 8 * (int) sizeof(Key))
		return;
	CUDA(set.clear(0));
	for (Key k : different_keys<Key>(20, std::min(key_bits, 19)))
	{
		keys.push_back(k);
		keys.push_back((Key) (k | (Key) 1 << key_bits));
		keys.push_back((Key) (k | (Key) 1 << (8 * sizeof(Key) - 1)));
		expected.insert(k);
	}
	results = find_or_put(set, keys);
	for (size_t i = 0; i < keys.size(); i++)
		wrong += results[i] != (i % 3 == 0 ? COMPACT_PUT : COMPACT_FULL);
	CHECK(wrong == 0, "%zu of %zu keys", wrong, keys.size());

	std::vector<Key> wide;

	for (size_t i = 0; i < keys.size(); i++)
		if (i % 3 != 0)
			wide.push_back(keys[i]);
	check_contents(set, expected, wide);
}

/* ---------- iceberg ---------- */

/*
 * Many more keys than slots, each several times in a batch: what is PUT or FOUND
 * is there, what is FULL is not, and no key is FULL here and PUT there.
 */
template <typename Set>
static void
check_overfull(Set &set, const std::vector<typename Set::key_type> &keys)
{
	typedef typename Set::key_type Key;
	std::map<Key, std::array<int, 4>> n_results;
	std::set<Key> stored;
	std::vector<Key> full;
	size_t		wrong = 0;

	for (int batch = 0; batch < 2; batch++)
	{
		std::vector<Key> asked;
		std::vector<uint8_t> results;

		for (Key k : keys)
			for (int copy = 0; copy < 3; copy++)
				asked.push_back(k);
		shuffle(asked);
		results = find_or_put(set, asked);
		for (size_t i = 0; i < asked.size(); i++)
			if (results[i] < 4)
				n_results[asked[i]][results[i]]++;
	}
	for (auto &k : n_results)
	{
		bool		put = k.second[COMPACT_PUT] == 1 && k.second[COMPACT_FOUND] == 5;
		bool		all_full = k.second[COMPACT_FULL] == 6;

		wrong += !put && !all_full;
		if (all_full)
			full.push_back(k.first);
		else
			stored.insert(k.first);
	}
	CHECK(wrong == 0, "%zu of %zu keys neither put once nor always full", wrong, keys.size());
	check_contents(set, stored, full);
}

/* n keys of one level-1 bucket (or, with level 2, of two equal level-2 buckets). */
template <typename Set>
static std::vector<typename Set::key_type>
colliding_keys(const Set &set, size_t n, bool level2)
{
	typedef typename Set::key_type Key;
	const compact_split &split = level2 ? set.layout().split2 : set.layout().split;
	std::set<Key> keys;

	/* By inversion: any remainder leads to a bucket. */
	for (int tries = 0; tries < 1000000 && keys.size() < n; tries++)
	{
		uint64_t	remainder = low_bits(random64(), split.remainder_bits());
		uint64_t	key = split.key(0, remainder, level2 ? 1 : 0);

		if (!level2 || split.bucket(key, 2) == 0)
			keys.insert((Key) key);
	}

	std::vector<Key> v(keys.begin(), keys.end());

	shuffle(v);
	return v;
}

/* Every other warp puts its keys, the others look for theirs; a warp has 32 in turn. */
template <typename Put, typename Find, typename Key>
static __global__ void
put_beside_find_kernel(Put put, Find find, const Key *keys, uint64_t n)
{
	if (RHH_TILE_ID(RHH_WARP_SIZE) % 2 == 0)
		compact_batch(put, keys, n);
	else
		compact_batch(find, keys, n);
}

/*
 * Finds beside puts see what was there before, nothing that nobody puts, and of
 * the keys that are put meanwhile some; and the puts are right all the same.
 */
template <typename Key, typename P, typename S, int BUCKET, int BUCKET2>
static void
test_find_beside_put(compact_iceberg<Key, P, S, BUCKET, BUCKET2> &table, int key_bits)
{
	typedef compact_iceberg_view<P, S, BUCKET, BUCKET2> view_t;
	const size_t chunk = RHH_WARP_SIZE;
	const size_t n = (size_t) (0.3 * table.capacity()) / chunk * chunk;
	std::vector<Key> all = different_keys<Key>(3 * n, key_bits);
	std::vector<Key> before(all.begin(), all.begin() + n),
				put_now(all.begin() + n, all.begin() + 2 * n),
				absent(all.begin() + 2 * n, all.end()),
				keys;
	size_t		n_seen = 0,
				n_unseen = 0,
				wrong = 0;

	find_or_put(table, before);
	for (size_t first = 0; first < n; first += chunk)
	{
		keys.insert(keys.end(), put_now.begin() + first, put_now.begin() + first + chunk);
		for (size_t i = 0; i < chunk; i++)
		{
			const std::vector<Key> &from = i % 4 == 0 ? before : i % 4 == 1 ? absent : put_now;

			keys.push_back(from[first + random64() % chunk]);
		}
	}

	std::set<Key> is_before(before.begin(), before.end()),
				is_absent(absent.begin(), absent.end()),
				expected(all.begin(), all.begin() + 2 * n);
	device_array<Key> k(keys);
	device_array<uint8_t> r(keys.size());
	compact_iceberg_put<P, S, BUCKET, BUCKET2> put;
	compact_iceberg_find<P, S, BUCKET, BUCKET2, uint8_t> find;

	(view_t &) put = table.layout();
	put.results = r.p;
	(view_t &) find = table.layout();
	find.out = r.p;
	find.yes = COMPACT_FOUND;
	find.no = COMPACT_ABSENT;
	RHH_LAUNCH((put_beside_find_kernel<decltype(put), decltype(find), Key>), 4, 2 * RHH_WARP_SIZE,
			   0, 0, put, find, k.p, keys.size());
	CUDA(cudaGetLastError());

	std::vector<uint8_t> results = r.host();

	for (size_t i = 0; i < keys.size(); i++)
	{
		if (i / chunk % 2 == 0)
			wrong += results[i] != COMPACT_PUT;
		else if (is_before.count(keys[i]))
			wrong += results[i] != COMPACT_FOUND;
		else if (is_absent.count(keys[i]))
			wrong += results[i] != COMPACT_ABSENT;
		else
		{
			n_seen += results[i] == COMPACT_FOUND;
			n_unseen += results[i] == COMPACT_ABSENT;
		}
	}
	CHECK(wrong == 0, "%zu of %zu results", wrong, keys.size());
	CHECK(n_seen + n_unseen == keys.size() / 4, "%zu seen, %zu not", n_seen, n_unseen);
	check_contents(table, expected, absent);
}

template <typename Key, typename P, typename S, int BUCKET, int BUCKET2>
static void
test_iceberg()
{
	typedef compact_iceberg<Key, P, S, BUCKET, BUCKET2> table_t;
	table_t		table;
	int			bits = 4 + MORE_BITS;
	int			bits2 = 2 + MORE_BITS + (BUCKET2 < BUCKET);
	int			most = std::min<int>({(int) (8 * sizeof(Key)), bits + (int) (8 * sizeof(P)) - 1,
									 bits2 + (int) (8 * sizeof(S)) - 2});
	int			widths[] = {most, most - 5, bits + BUCKET / 8 + 4};
	int			few = std::min(most - MORE_BITS - 4, 40);	/* fit where there are few buckets */

	for (int key_bits : widths)
	{
		context = std::string(table_t::name()) + ", keys of " + std::to_string(key_bits) +
			" bits in " + std::to_string(sizeof(Key));
		CUDA(table.create_levels(bits, bits2, key_bits, 0));
		CHECK(table.capacity() == ((uint64_t) BUCKET << bits) + ((uint64_t) BUCKET2 << bits2),
			  "%llu", LLU(table.capacity()));
		CHECK(table.memory_bytes() == ((uint64_t) BUCKET << bits) * sizeof(P) +
			  ((uint64_t) BUCKET2 << bits2) * sizeof(S) + 8, "%llu", LLU(table.memory_bytes()));
		another_schedule(key_bits);
		test_find_or_put(table, key_bits, BUCKET2 == 4 ? 0.65 : 0.8);
		test_wide_keys(table, key_bits);
		if (key_bits == most)
		{
			CUDA(table.clear(0));
			test_find_beside_put(table, key_bits);
		}
	}

	/*
	 * Keys of one level-1 bucket, just more than it and their level-2 buckets
	 * hold, each several times at once: all meet in level 2, where the choice of
	 * the emptier bucket must not store any twice.
	 */
	for (int round = 0; round < ROUNDS; round++)
	{
		context = std::string(table_t::name()) + ", one level-1 bucket, round " +
			std::to_string(round);
		another_schedule(round);
		CUDA(table.create_levels(2, 1, few, 0));
		check_overfull(table, colliding_keys(table, BUCKET + 2 * BUCKET2 + 5, false));
	}
	context = std::string(table_t::name()) + ", level-2 buckets that are one";
	CUDA(table.create_levels(2, 1, few, 0));
	check_overfull(table, colliding_keys(table, 2 * BUCKET + BUCKET2 + 20, true));

	/* All slots get used when there are keys enough. */
	context = std::string(table_t::name()) + ", overfull";
	CUDA(table.create_levels(2, 1, few, 0));
	check_overfull(table, different_keys<Key>(6 * table.capacity(), few));
	{
		uint64_t	n = 0;

		CUDA(table.size(&n, 0));
		CHECK(n == table.capacity(), "%llu of %llu slots", LLU(n), LLU(table.capacity()));
	}

	/* No more bits than there is room for; what is refused says why. */
	context = std::string(table_t::name()) + ", refusals";
	{
		int			p = 8 * (int) sizeof(P);
		int			s = 8 * (int) sizeof(S);
		int			k = 8 * (int) sizeof(Key);

		/* Level 1 by one bit, then level 2, each beside another that has room. */
		if (4 + p <= k)
		{
			CHECK(table.create_levels(4, 6, 4 + p - 1, 0) == cudaSuccess && !table.error()[0],
				  "%d bits: %s", 4 + p - 1, table.error());
			CHECK(table.create_levels(4, 6, 4 + p, 0) == cudaErrorInvalidValue &&
				  strstr(table.error(), "level 1") &&
				  strstr(table.error(), std::to_string(p).c_str()) && table.memory_bytes() == 0,
				  "%d bits: %s", 4 + p, table.error());
		}
		else
			CHECK(table.create_levels(0, 6, k, 0) == (k == p ? cudaErrorInvalidValue :
													  cudaSuccess), "no bit for the marker");
		if (s - p + 1 <= 20)
		{
			int			a = std::max(0, s - p + 1);

			CHECK(table.create_levels(a, 2, s, 0) == cudaSuccess && !table.error()[0],
				  "%d bits: %s", s, table.error());
			CHECK(table.create_levels(a, 1, s, 0) == cudaErrorInvalidValue &&
				  strstr(table.error(), "level 2") &&
				  strstr(table.error(), std::to_string(s).c_str()) && table.memory_bytes() == 0,
				  "%d bits: %s", s, table.error());
		}
		CHECK(table.create_levels(2, 1, k + 1, 0) == cudaErrorInvalidValue && table.error()[0],
			  "more bits than a key has");
		CHECK(table.create_levels(2, 1, 0, 0) == cudaErrorInvalidValue && table.error()[0],
			  "keys of no bits");
		CHECK(table.create_levels(9, 1, 8, 0) == cudaErrorInvalidValue && table.error()[0],
			  "more buckets than keys");
		CHECK(table.create_levels(COMPACT_MAX_ADDRESS_BITS + 1, 1, k, 0) ==
			  cudaErrorInvalidValue && table.error()[0], "too many buckets");
		CHECK(table.create_levels(-1, 1, 8, 0) == cudaErrorInvalidValue && table.error()[0],
			  "a negative number of bits");
	}
	table.destroy();
	table.destroy();
	CHECK(table.memory_bytes() == 0 && table.capacity() == 0, "destroyed");
}

/* create() gives the slots that were asked for, and most of them can be used. */
template <typename Key, typename P, typename S, int BUCKET, int BUCKET2>
static void
test_iceberg_sizes()
{
	compact_iceberg<Key, P, S, BUCKET, BUCKET2> table;

	for (uint64_t n_slots : {1, 100, 1000, 1024, 1200, 2000})
	{
		context = std::string(table.name()) + ", " + std::to_string(n_slots) + " slots";
		CUDA(table.create(n_slots << MORE_BITS, 30, 0));
		CHECK(table.capacity() >= n_slots << MORE_BITS, "%llu", LLU(table.capacity()));
		CHECK(table.capacity() <= 4 * BUCKET + (n_slots << MORE_BITS) * 2.6, "%llu",
			  LLU(table.capacity()));
		if (n_slots == 2000)
		{
			std::vector<Key> keys = different_keys<Key>((size_t) ((BUCKET == 8 ? 0.85 : 0.9) *
																	table.capacity()), 30);

			std::set<Key> expected;
			std::vector<Key> full;

			another_schedule(BUCKET);

			std::vector<uint8_t> results = find_or_put(table, keys);

			for (size_t i = 0; i < keys.size(); i++)
				if (results[i] == COMPACT_PUT)
					expected.insert(keys[i]);
				else
					full.push_back(keys[i]);
			/* With buckets of 8, one key of half a million now and then. */
			CHECK(full.size() <= keys.size() / 100000, "%zu of %zu keys not put", full.size(),
				  keys.size());
			check_contents(table, expected, full);
		}
	}
	table.destroy();
}

/* ---------- cuckoo ---------- */

/* Puts different keys; what is in the table and what is left over are all of them. */
template <typename Set>
static void
check_put(Set &set, const std::vector<typename Set::key_type> &keys, size_t n_batches,
		  std::set<typename Set::key_type> *lost)
{
	typedef typename Set::key_type Key;
	std::set<Key> expected;

	for (size_t b = 0; b < n_batches; b++)
	{
		std::vector<Key> batch(keys.begin() + keys.size() * b / n_batches,
							   keys.begin() + keys.size() * (b + 1) / n_batches);
		std::vector<Key> left;
		std::vector<uint8_t> results = put(set, batch, &left);
		size_t		n_put = 0,
					wrong = 0;

		expected.insert(batch.begin(), batch.end());
		for (uint8_t r : results)
		{
			n_put += r == COMPACT_PUT;
			wrong += r != COMPACT_PUT && r != COMPACT_FULL;
		}
		CHECK(wrong == 0, "%zu results neither PUT nor FULL", wrong);
		for (Key k : left)
		{
			CHECK(expected.erase(k) == 1, "%llx left, which was not there", LLU(k));
			lost->insert(k);
		}
		CHECK(n_put + left.size() == batch.size(), "%zu put, %zu left of %zu", n_put,
			  left.size(), batch.size());
	}
	check_contents(set, expected, std::vector<Key>(lost->begin(), lost->end()));
}

template <typename Key, typename S, int BUCKET>
static void
test_cuckoo()
{
	typedef compact_cuckoo<Key, S, BUCKET> table_t;
	table_t		table;
	sort_find_or_put<table_t> sorting;
	int			bits = 5 + MORE_BITS - (BUCKET == 32);
	int			most = std::min<int>((int) (8 * sizeof(Key)), bits + (int) (8 * sizeof(S)) - 2);
	int			widths[] = {most, most - 5, bits + BUCKET / 8 + 4};
	int			few = most - MORE_BITS; /* fit where there are few buckets */

	for (int key_bits : widths)
	{
		std::set<Key> lost;

		context = std::string(table_t::name()) + ", keys of " + std::to_string(key_bits) +
			" bits in " + std::to_string(sizeof(Key));
		CUDA(table.create_buckets(bits, key_bits, 0));
		CHECK(table.capacity() == (uint64_t) BUCKET << bits, "%llu", LLU(table.capacity()));
		CHECK(table.memory_bytes() == ((uint64_t) BUCKET << bits) * sizeof(S) + 8, "%llu",
			  LLU(table.memory_bytes()));
		another_schedule(key_bits);

		size_t		n = std::min<uint64_t>((uint64_t) (0.9 * table.capacity()),
										   (UINT64_C(1) << std::min(key_bits, 60)) / 2);
		std::vector<Key> keys = different_keys<Key>(2 * n, key_bits);
		std::vector<Key> absent(keys.begin() + n, keys.end());
		size_t		wrong = 0;

		keys.resize(n);
		check_put(table, keys, 3, &lost);
		CHECK(lost.empty(), "%zu keys found no place at a load of 0.9", lost.size());
		for (uint8_t r : find(table, absent))
			wrong += r != COMPACT_ABSENT;
		CHECK(wrong == 0, "%zu absent keys found", wrong);

		CUDA(sorting.create(table.capacity(), key_bits, 0));
		test_find_or_put(sorting, key_bits, 0.85);
	}

	/* Sorted in pieces, so that equal keys are in several. */
	context = std::string(sorting.name()) + ", in pieces";
	CUDA(sorting.create(16 * BUCKET, few - 1, 61, 0));
	test_find_or_put(sorting, few - 1, 0.8);
	CHECK(sorting.memory_bytes() > sorting.table.memory_bytes() + 61 * 2 * sizeof(Key), "%llu",
		  LLU(sorting.memory_bytes()));
	CHECK(sorting.create(16, most, 0, 0) == cudaErrorInvalidValue, "batches of no keys");
	CHECK(sorting.create(16, 8 * (int) sizeof(Key) + 1, 16, 0) == cudaErrorInvalidValue &&
		  sorting.error()[0] && sorting.memory_bytes() == 0, "too many key bits");
	sorting.destroy();
	sorting.destroy();

	/* Overfull: chains end, and no key is lost or there twice. */
	for (int round = 0; round < ROUNDS; round++)
	{
		std::set<Key> lost;
		uint64_t	n = 0;

		context = std::string(table_t::name()) + ", overfull, round " + std::to_string(round);
		another_schedule(round);
		CUDA(table.create_buckets(2, std::min(few - 3, 40), 0));
		check_put(table, different_keys<Key>(table.capacity() + 12 + round,
											 std::min(few - 3, 40)), 2, &lost);
		CUDA(table.size(&n, 0));
		CHECK(lost.size() + n == table.capacity() + 12 + round, "%zu lost, %llu there",
			  lost.size(), LLU(n));
	}

	/* The same with equal keys, by sorting; and results still say what happened. */
	{
		std::vector<Key> keys,
					left;
		std::set<Key> expected;

		context = std::string(sorting.name()) + ", overfull";
		CUDA(sorting.create(4 * BUCKET, std::min(few - 3, 40), 1000, 0));
		for (Key k : different_keys<Key>(4 * BUCKET + 20, std::min(few - 3, 40)))
		{
			expected.insert(k);
			keys.push_back(k);
			keys.push_back(k);
		}
		shuffle(keys);

		device_array<Key> k(keys),
					l(keys.size());
		device_array<uint8_t> r(keys.size());
		size_t		n[4] = {0, 0, 0, 0};

		CHECK(sorting.find_or_put(k.p, NULL, keys.size(), BLOCK_THREADS, 0, l.p) ==
			  cudaErrorInvalidValue, "keys left without results");
		CUDA(sorting.find_or_put(k.p, r.p, keys.size(), BLOCK_THREADS, 0, l.p));

		std::vector<uint8_t> results = r.host();
		std::vector<Key> lefts = l.host();

		for (size_t i = 0; i < keys.size(); i++)
		{
			n[results[i] & 3]++;
			if (results[i] == COMPACT_FULL)
			{
				CHECK(expected.erase(lefts[i]) == 1, "%llx left twice or never put",
					  LLU(lefts[i]));
				left.push_back(lefts[i]);
			}
		}
		CHECK(n[COMPACT_FOUND] == keys.size() / 2 && n[COMPACT_ABSENT] == 0 &&
			  n[COMPACT_FULL] >= 20, "%zu FOUND, %zu PUT, %zu FULL", n[COMPACT_FOUND],
			  n[COMPACT_PUT], n[COMPACT_FULL]);
		check_contents(sorting, expected, left);
		sorting.destroy();
	}

	/* Keys of one bucket, and keys with the same bucket three times. */
	for (int same = 1; same <= COMPACT_PERMUTATIONS; same += 2)
	{
		std::set<Key> keys,
					lost;
		const compact_split &split = table.layout().split;

		context = std::string(table_t::name()) + ", " + std::to_string(same) +
			" buckets the same";
		CUDA(table.create_buckets(3, std::min(few - 2, 40), 0));
		for (int tries = 0; tries < 1000000 && keys.size() < 2 * BUCKET; tries++)
		{
			uint64_t	key = split.key(5, low_bits(random64(), split.remainder_bits()), 0);

			if (same == 1 || (split.bucket(key, 1) == 5 && split.bucket(key, 2) == 5))
				keys.insert((Key) key);
		}

		std::vector<Key> v(keys.begin(), keys.end());

		shuffle(v);
		check_put(table, v, 1, &lost);
		CHECK(lost.size() == (same == 1 ? 0 : BUCKET), "%zu of %zu keys lost", lost.size(),
			  v.size());
	}

	/* Wide keys; each is its own key left. */
	if (most > 12)
	{
		std::vector<Key> keys = {3, (Key) (3 | (Key) 1 << 12), 7, (Key) ~(Key) 0};
		std::vector<Key> left;
		std::vector<uint8_t> results;

		context = std::string(table_t::name()) + ", wide keys";
		CUDA(table.create_buckets(3, 12, 0));
		results = put(table, keys, &left);
		CHECK(results[0] == COMPACT_PUT && results[1] == COMPACT_FULL &&
			  results[2] == COMPACT_PUT && results[3] == COMPACT_FULL, "%d %d %d %d",
			  results[0], results[1], results[2], results[3]);
		CHECK(left.size() == 2 && left[0] == keys[1] && left[1] == keys[3], "%zu left",
			  left.size());
		check_contents(table, std::set<Key>{3, 7}, std::vector<Key>{keys[1], keys[3]});
	}

	context = std::string(table_t::name()) + ", refusals";
	{
		int			s = 8 * (int) sizeof(S);
		int			k = 8 * (int) sizeof(Key);

		if (s - 2 + 6 <= k)
		{
			CHECK(table.create_buckets(6, s - 2 + 6, 0) == cudaSuccess && !table.error()[0],
				  "%s", table.error());
			CHECK(table.create_buckets(5, s - 2 + 6, 0) == cudaErrorInvalidValue &&
				  strstr(table.error(), std::to_string(s).c_str()) && table.memory_bytes() == 0,
				  "%s", table.error());
		}
		else if (s == k)
		{
			CHECK(table.create_buckets(2, k, 0) == cudaSuccess, "%s", table.error());
			CHECK(table.create_buckets(1, k, 0) == cudaErrorInvalidValue && table.error()[0],
				  "no room for the tag");
		}
		CHECK(table.create_buckets(2, k + 1, 0) == cudaErrorInvalidValue && table.error()[0],
			  "more bits than a key has");
		CHECK(table.create_buckets(9, 8, 0) == cudaErrorInvalidValue && table.error()[0],
			  "more buckets than keys");
		CHECK(table.create_buckets(-1, 8, 0) == cudaErrorInvalidValue && table.error()[0],
			  "a negative number of bits");
	}
	for (uint64_t n_slots : {1, 100, 1024, 1025})
	{
		CUDA(table.create(n_slots, 30, 0));
		CHECK(table.capacity() >= n_slots && table.capacity() < 2 * n_slots + BUCKET,
			  "%llu slots for %llu", LLU(table.capacity()), LLU(n_slots));
	}
	table.destroy();
	table.destroy();
	CHECK(table.memory_bytes() == 0 && table.capacity() == 0, "destroyed");
}

/* ---------- table.cuh's interface ---------- */

template <typename Set, typename Value, int KEY_BITS>
static void
test_adaptor()
{
	typedef typename Set::key_type Key;
	compact_table<Set, Key, Value, KEY_BITS> table;
	uint64_t	n_entries = 99;
	size_t		wrong = 0;

	context = std::string(table.name()) + " as a table";
	another_schedule(KEY_BITS);
	table.destroy();
	CUDA(table.create(500 << MORE_BITS, 0));
	CHECK(table.capacity() >= 500 << MORE_BITS, "%llu", LLU(table.capacity()));
	CHECK(table.memory_bytes() > table.capacity() * 2, "%llu", LLU(table.memory_bytes()));
	CUDA(table.size(&n_entries, 0));
	CHECK(n_entries == 0, "%llu", LLU(n_entries));

	std::vector<Key> keys = different_keys<Key>(800 << MORE_BITS, KEY_BITS);
	size_t		n = 400 << MORE_BITS;
	device_array<Key> k(keys);
	device_array<Value> v(std::vector<Value>(keys.size(), 77));

	CUDA(table.insert(k.p, v.p, n, BLOCK_THREADS, 0));
	CUDA(table.size(&n_entries, 0));
	CHECK(n_entries == n, "%llu of %zu", LLU(n_entries), n);
	CUDA(table.find(k.p, v.p, keys.size(), BLOCK_THREADS, 0));

	std::vector<Value> values = v.host();

	for (size_t i = 0; i < keys.size(); i++)
		wrong += values[i] != (i < n ? 1 : table_absent<Value>());
	CHECK(wrong == 0, "%zu of %zu values", wrong, keys.size());
	CUDA(table.clear(0));
	CUDA(table.size(&n_entries, 0));
	CHECK(n_entries == 0, "%llu after clear", LLU(n_entries));
	CHECK(table.insert(k.p, v.p, n, 33, 0) == cudaErrorInvalidValue, "33 threads a block");
	table.destroy();
	CHECK(table.memory_bytes() == 0, "%llu", LLU(table.memory_bytes()));
}

/* ---------- all ---------- */

template <int BUCKET>
static void
test_bucket()
{
	test_iceberg<uint64_t, uint16_t, uint32_t, BUCKET, BUCKET>();
	test_iceberg<uint64_t, uint16_t, uint64_t, BUCKET, BUCKET / 2>();
	test_iceberg<uint64_t, uint32_t, uint32_t, BUCKET, BUCKET>();
	test_iceberg<uint32_t, uint32_t, uint32_t, BUCKET, BUCKET / 2>();
	test_iceberg<uint64_t, uint32_t, uint64_t, BUCKET, BUCKET>();
	test_iceberg<uint64_t, uint64_t, uint32_t, BUCKET, BUCKET>();
	test_iceberg<uint64_t, uint64_t, uint64_t, BUCKET, BUCKET>();
	test_iceberg_sizes<uint64_t, uint32_t, uint32_t, BUCKET, BUCKET>();
	test_iceberg_sizes<uint32_t, uint64_t, uint64_t, BUCKET, BUCKET>();

	test_cuckoo<uint64_t, uint32_t, BUCKET>();
	test_cuckoo<uint32_t, uint32_t, BUCKET>();
	test_cuckoo<uint64_t, uint64_t, BUCKET>();

	test_adaptor<compact_iceberg<uint64_t, uint32_t, uint32_t, BUCKET>, uint64_t, 30>();
	test_adaptor<compact_iceberg<uint32_t, uint64_t, uint64_t, BUCKET>, uint32_t, 32>();
	test_adaptor<compact_cuckoo<uint64_t, uint32_t, BUCKET>, uint64_t, 34>();
	test_adaptor<sort_find_or_put<compact_cuckoo<uint32_t, uint32_t, BUCKET>>, uint32_t, 32>();
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		first_seed = strtoul(argv[1], NULL, 10);
	random_state += first_seed;
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_permutations();
	test_bucket<8>();
	test_bucket<16>();
	test_bucket<32>();
	printf("%ld passed, %ld failed\n", n_passed, n_failed);
	return n_failed != 0;
}
