/*
 * table_bench_random.cuh
 *		Keys and rows of the benchmarks, made on the device.
 *
 * Random numbers are those of cuRAND's Philox4x32-10, by its device functions:
 * number i of a sequence is a function of (seed, sequence, i), whatever the
 * launch.  The C++ build for simt.h has no cuRAND and takes the same generator
 * written by hand from its paper (Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3", 2011).  Before anything is measured that one must give the
 * paper's test vectors, and the device the same numbers as it.
 */
#ifndef TABLE_BENCH_RANDOM_CUH
#define TABLE_BENCH_RANDOM_CUH

#include "rhh_hash.h"
#include "table_bench.cuh"

#if defined(__CUDACC__)
#include <curand_kernel.h>
#endif

/* ---------- numbers ---------- */

struct bench_random
{
	uint64_t	seed;
	uint64_t	sequence;
};

/* From the paper. */
static __host__ __device__ inline uint4
bench_philox_by_hand(uint64_t key, uint64_t high, uint64_t low)
{
	uint32_t	c[4] = {(uint32_t) low, (uint32_t) (low >> 32),
	(uint32_t) high, (uint32_t) (high >> 32)};
	uint32_t	k[2] = {(uint32_t) key, (uint32_t) (key >> 32)};

	for (int round = 0; round < 10; round++)
	{
		uint64_t	a = (uint64_t) 0xD2511F53u * c[0];
		uint64_t	b = (uint64_t) 0xCD9E8D57u * c[2];

		c[0] = (uint32_t) (b >> 32) ^ c[1] ^ k[0];
		c[1] = (uint32_t) b;
		c[2] = (uint32_t) (a >> 32) ^ c[3] ^ k[1];
		c[3] = (uint32_t) a;
		k[0] += 0x9E3779B9u;
		k[1] += 0xBB67AE85u;
	}
	return make_uint4(c[0], c[1], c[2], c[3]);
}

/* The i-th 16 bytes of a sequence, i < 2^62. */
static __device__ RHH_INLINE uint4
bench_philox(bench_random r, uint64_t i)
{
#if defined(__CUDACC__)
	curandStatePhilox4_32_10_t state;

	curand_init(r.seed, r.sequence, 4 * i, &state);
	return curand4(&state);
#else
	return bench_philox_by_hand(r.seed, r.sequence, i);
#endif
}

/* Two numbers of 64 bits for each i. */
static __device__ RHH_INLINE void
bench_philox_2x64(bench_random r, uint64_t i, uint64_t *a, uint64_t *b)
{
	uint4		x = bench_philox(r, i);

	*a = (uint64_t) x.y << 32 | x.x;
	*b = (uint64_t) x.w << 32 | x.z;
}

/* Of [0, n), from a random 64-bit number. */
static __device__ RHH_INLINE uint64_t
bench_below(uint64_t random, uint64_t n)
{
	return __umul64hi(random, n);
}

static __global__ void
bench_philox_kernel(bench_random r, uint64_t i, uint4 *out)
{
	*out = bench_philox(r, i);
}

static bool
bench_same(uint4 a, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
	return a.x == x && a.y == y && a.z == z && a.w == w;
}

/* The generator by hand gives the paper's vectors, the device's gives the same. */
static bool
bench_philox_is_right()
{
	bool		right = bench_same(bench_philox_by_hand(0, 0, 0),
								   0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8) &&
		bench_same(bench_philox_by_hand(~0ULL, ~0ULL, ~0ULL),
				   0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD) &&
		bench_same(bench_philox_by_hand(0x299F31D0A4093822, 0x0370734413198A2E,
										0x85A308D3243F6A88),
				   0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1);
	bench_array<uint4> out(1);

	for (uint64_t i = 0; i < 4; i++)
	{
		bench_random r = {i * 0x9E3779B97F4A7C15, i << 33 | i};
		uint64_t	at = i * 0x123456789ABCDEF;
		uint4		want = bench_philox_by_hand(r.seed, r.sequence, at);
		uint4		got;

		RHH_LAUNCH(bench_philox_kernel, 1, 1, 0, 0, r, at, out.at);
		BENCH_TRY(cudaGetLastError());
		BENCH_TRY(cudaMemcpy(&got, out.at, sizeof got, cudaMemcpyDeviceToHost));
		right = right && bench_same(got, want.x, want.y, want.z, want.w);
	}
	return right;
}

/* ---------- keys ---------- */

/*
 * One-to-one over all words: consecutive numbers become keys without order.
 * (No inverse of a table's hash function, which would undo it.)
 */
static __host__ __device__ inline uint32_t
bench_scatter(uint32_t x)
{
	x = (x ^ x >> 15) * 0x2C1B3C6Du;
	x = (x ^ x >> 12) * 0x297A2D39u;
	return x ^ x >> 15;
}

static __host__ __device__ inline uint64_t
bench_scatter(uint64_t x)
{
	return rhh_mix64(x);
}

/* Tables reserve keys of all ones, and one less. */
template <typename Word>
static __host__ __device__ inline bool
bench_reserved(Word key)
{
	return key >= (Word) ~(Word) 0 - 1;
}

/* The key of a number: never a reserved one, else one-to-one. */
template <typename Word>
static __host__ __device__ inline Word
bench_key(uint64_t number)
{
	Word		key = bench_scatter((Word) number);

	while (bench_reserved(key))
		key = bench_scatter((Word) (key ^ 0x5BD1E995u));
	return key;
}

/*
 * keys: uniform over the keys of the numbers below domain.  With a list of
 * distinct keys in order, only keys that are not in it, drawn again until then.
 */
template <typename Word>
static __global__ void
bench_draw_kernel(bench_random r, uint64_t domain, const Word *not_these, uint64_t n_not_these,
				  Word *keys, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; 2 * i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		for (int half = 0; half < 2 && 2 * i + half < n; half++)
		{
			bench_random draw = r;

			for (;;)
			{
				uint64_t	x[2];

				bench_philox_2x64(draw, i, &x[0], &x[1]);

				Word		key = bench_key<Word>(bench_below(x[half], domain));
				uint64_t	low = 0,
							high = n_not_these;

				while (low < high)
				{
					uint64_t	middle = (low + high) / 2;

					if (not_these[middle] < key)
						low = middle + 1;
					else
						high = middle;
				}
				if (low == n_not_these || not_these[low] != key)
				{
					keys[2 * i + half] = key;
					break;
				}
				draw.sequence += UINT64_C(1) << 32;
			}
		}
}

/* keys: the keys of the numbers first, first + 1, ...: all different. */
template <typename Word>
static __global__ void
bench_distinct_kernel(uint64_t first, Word *keys, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		keys[i] = bench_key<Word>(first + i);
}

/* One-to-one below 2^bits. */
static __device__ RHH_INLINE uint64_t
bench_key_of_bits(uint64_t number, int bits)
{
	const uint64_t mask = ~0ULL >> (64 - bits);

	for (int round = 0; round < 3; round++)
	{
		number = (number * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u) & mask;
		number ^= number >> (bits + 1) / 2;
	}
	return number;
}

static __global__ void
bench_distinct_bits_kernel(uint64_t first, int bits, uint64_t *keys, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		keys[i] = bench_key_of_bits(first + i, bits);
}

template <typename Word>
static __global__ void
bench_values_kernel(const Word *keys, Word *values, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		values[i] = bench_value(keys[i]);
}

/* ---------- rows of group-by ---------- */

/*
 * A rank of 1..n with probability proportional to 1/rank: rejection-inversion
 * (Hörmann and Derflinger, "Rejection-inversion to generate variates from
 * monotone discrete distributions", 1996), for the exponent 1, whose integral is
 * the logarithm.
 */
static __device__ RHH_INLINE uint64_t
bench_zipf(bench_random r, uint64_t i, uint64_t n)
{
	const double least = log(1.5) - 1.0;
	const double most = log(n + 0.5);

	for (;;)
	{
		uint64_t	a,
					b;

		bench_philox_2x64(r, i, &a, &b);
		for (int half = 0; half < 2; half++)
		{
			double		u = most - (most - least) * ((double) (half ? b : a) * 0x1p-64);
			double		k = floor(exp(u) + 0.5);

			k = k < 1 ? 1 : k > (double) n ? (double) n : k;
			if (u >= log(k + 0.5) - 1.0 / k)
				return (uint64_t) k;
		}
		r.sequence += UINT64_C(1) << 32;
	}
}

/* Keys of groups 0..n_groups-1, values below 1000. */
template <typename Word>
static __global__ void
bench_rows_kernel(bench_random r, uint64_t n_groups, bool zipf, Word *keys, uint64_t *values,
				  uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t	a,
					b;

		bench_philox_2x64(r, i, &a, &b);
		if (zipf)
			a = bench_zipf(bench_random{r.seed, r.sequence + (UINT64_C(1) << 31)}, i, n_groups) - 1;
		else
			a = bench_below(a, n_groups);
		keys[i] = bench_key<Word>(a);
		values[i] = bench_below(b, 1000);
	}
}

/* ---------- on the host's side ---------- */

template <typename Word>
static void
bench_draw(bench_random r, uint64_t domain, const Word *not_these, uint64_t n_not_these,
		   Word *keys, uint64_t n)
{
	RHH_LAUNCH(bench_draw_kernel<Word>, table_blocks(n / 2 + 1, 256), 256, 0, 0, r, domain,
			   not_these, n_not_these, keys, n);
	BENCH_TRY(cudaGetLastError());
}

template <typename Word>
static void
bench_distinct_keys(uint64_t first, Word *keys, uint64_t n)
{
	RHH_LAUNCH(bench_distinct_kernel<Word>, table_blocks(n, 256), 256, 0, 0, first, keys, n);
	BENCH_TRY(cudaGetLastError());
}

static inline void
bench_distinct_keys_of_bits(uint64_t first, int bits, uint64_t *keys, uint64_t n)
{
	RHH_LAUNCH(bench_distinct_bits_kernel, table_blocks(n, 256), 256, 0, 0, first, bits, keys, n);
	BENCH_TRY(cudaGetLastError());
}

template <typename Word>
static void
bench_values(const Word *keys, Word *values, uint64_t n)
{
	RHH_LAUNCH(bench_values_kernel<Word>, table_blocks(n, 256), 256, 0, 0, keys, values, n);
	BENCH_TRY(cudaGetLastError());
}

#endif							/* TABLE_BENCH_RANDOM_CUH */
