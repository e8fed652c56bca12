/*
 * rhh_tile.cuh
 *		What all device functions are made with: tiles of lanes, loads that see what
 *		other SMs have stored, compare-and-swap, launching.
 *
 * The same sources are compiled by nvcc, and by a C++ compiler with test/simt.h,
 * which runs CUDA's threads as fibers on the CPU.  Everything that differs between the
 * two is in this file.
 *
 * A tile is LANES consecutive lanes of a warp that work on one key.  A function that
 * takes a tile is called by all lanes of the tile with the same arguments, synchronises
 * that tile only, and returns the same to all its lanes, unless its comment says
 * otherwise.
 */
#ifndef RHH_TILE_CUH
#define RHH_TILE_CUH

#include <stdint.h>

#if defined(__CUDACC__)
#include <cuda_runtime.h>

/* kernel: an expression without commas outside of parentheses */
#define RHH_LAUNCH(kernel, grid, threads, shared_bytes, stream, ...) \
	(kernel)<<<(grid), (threads), (shared_bytes), (stream)>>>(__VA_ARGS__)
/* For a kernel without __shared__ variables, whose blocks simt.h may run together. */
#define RHH_LAUNCH_TOGETHER RHH_LAUNCH
#define RHH_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#define RHH_INLINE __forceinline__
#define RHH_NOINLINE __noinline__
#define RHH_UNROLL _Pragma("unroll")
#define RHH_NO_UNROLL _Pragma("unroll 1")
#define RHH_WARP_SIZE 32

#else
#include "simt.h"

#define RHH_LAUNCH SIMT_LAUNCH
#define RHH_LAUNCH_TOGETHER SIMT_LAUNCH_TOGETHER
#define RHH_DYNAMIC_SHARED SIMT_DYNAMIC_SHARED
#define RHH_INLINE inline
#define RHH_NOINLINE
#define RHH_UNROLL
#define RHH_NO_UNROLL
#define RHH_WARP_SIZE SIMT_WARP_SIZE
#endif

#define RHH_DEV static __device__ RHH_INLINE

/* ---------- tiles ---------- */

#if RHH_WARP_SIZE == 64
typedef uint64_t rhh_lanes;		/* a set of a warp's lanes */
#else
typedef uint32_t rhh_lanes;
#endif

/* The index of the first lane of a set, which must not be empty. */
RHH_DEV int
rhh_first_lane(rhh_lanes lanes)
{
	return (sizeof(rhh_lanes) == 8 ? __ffsll((long long) lanes) : __ffs((int) lanes)) - 1;
}

RHH_DEV int
rhh_count_lanes(rhh_lanes lanes)
{
	return sizeof(rhh_lanes) == 8 ? __popcll(lanes) : __popc((uint32_t) lanes);
}

/*
 * A tile: LANES consecutive lanes of a warp.  Sets of lanes are relative to the tile:
 * bit i is lane i of the tile.
 *
 * IN_STEP says that the tiles of a warp go in step.  Every lane of the warp then makes
 * every call, and a tile that has nothing to do goes along, which keeps the warp on one
 * path.  (If each tile names only its own lanes, the compiler lets the tiles go separate
 * ways, and the warp executes them one after the other: on an H100 an insert took 82
 * instructions for each key, which 8 keys could have shared.)
 *
 * Without IN_STEP the other tiles of the warp may be anywhere else, so every operation
 * names the lanes of its tile.
 */
template <int LANES, bool IN_STEP>
struct rhh_team
{
	static_assert(LANES >= 1 && LANES <= RHH_WARP_SIZE && (LANES & (LANES - 1)) == 0,
				  "a tile has a power of two of lanes, at most a warp");
	static const rhh_lanes ALL = (rhh_lanes) ~0ULL >> (RHH_WARP_SIZE - LANES);
	static const rhh_lanes WARP = (rhh_lanes) ~0ULL;
	static const int SIZE = LANES;

	uint32_t	rank;			/* of the calling lane in the tile */
	uint32_t	shift;			/* of the tile in its warp */
	rhh_lanes	own_lanes;		/* the tile's, of the warp's */

	__device__ RHH_INLINE rhh_team()
	{
		uint32_t	lane = threadIdx.x & (RHH_WARP_SIZE - 1);

		rank = lane & (LANES - 1);
		shift = lane & ~(uint32_t) (LANES - 1);
		own_lanes = ALL << shift;
	}

	/* The lanes that make the calls of the tile. */
	__device__ RHH_INLINE rhh_lanes lanes() const
	{
		return IN_STEP ? WARP : own_lanes;
	}

	/* The lanes of the calling tile for which yes is true. */
	__device__ RHH_INLINE rhh_lanes ballot(bool yes) const
	{
		return (__ballot_sync(lanes(), yes) >> shift) & ALL;
	}

	__device__ RHH_INLINE bool any(bool yes) const
	{
		return ballot(yes) != 0;
	}

	__device__ RHH_INLINE bool all(bool yes) const
	{
		return ballot(yes) == ALL;
	}

	/* Is yes true for the tile, or, in step, for any tile of the warp? */
	__device__ RHH_INLINE bool more(bool yes) const
	{
		return IN_STEP ? __any_sync(lanes(), yes) : yes;
	}

	/* The value that lane from has. */
	template <typename T>
	__device__ RHH_INLINE T shfl(T value, int from) const
	{
		return __shfl_sync(lanes(), value, from, LANES);
	}

	__device__ RHH_INLINE uint32_t min(uint32_t value) const
	{
		RHH_UNROLL
		for (int step = LANES / 2; step > 0; step /= 2)
		{
			uint32_t	other = __shfl_xor_sync(lanes(), value, step, LANES);

			value = other < value ? other : value;
		}
		return value;
	}

	__device__ RHH_INLINE void sync() const
	{
		__syncwarp(lanes());
	}
};

template <int LANES>
using rhh_tile = rhh_team<LANES, false>;
template <int LANES>
using rhh_warp_tiles = rhh_team<LANES, true>;

/* Takes the first of the pending lanes out of the set: *src.  False if there is none. */
RHH_DEV bool
rhh_take_lane(bool active, rhh_lanes *pending, int *src)
{
	if (!active || *pending == 0)
		return false;
	*src = rhh_first_lane(*pending);
	*pending &= *pending - 1;
	return true;
}

/* The number of the calling tile in the grid, and the number of tiles of N lanes. */
#define RHH_TILE_ID(N) ((blockIdx.x * blockDim.x + threadIdx.x) / (N))
#define RHH_TILES(N) (gridDim.x * blockDim.x / (N))

/* ---------- sums ---------- */

/* The sum of x over the lanes up to and with the calling one.  A whole warp. */
template <typename T>
RHH_DEV T
rhh_warp_scan(T x)
{
	for (uint32_t step = 1; step < RHH_WARP_SIZE; step *= 2)
	{
		T			left = __shfl_up_sync((rhh_lanes) ~0ULL, x, step);

		if ((threadIdx.x & (RHH_WARP_SIZE - 1)) >= step)
			x += left;
	}
	return x;
}

/*
 * The sum of x over the threads before the calling one; *all becomes that over all
 * threads.  A whole block, of THREADS.  warp_sums is shared memory with a word for each
 * warp.  The function synchronises the block once, after it has written warp_sums, and
 * nobody may write to them again before another __syncthreads().
 */
template <int THREADS, typename T>
RHH_DEV T
rhh_block_scan(T x, T *warp_sums, T *all = nullptr)
{
	const int	WARPS = THREADS / RHH_WARP_SIZE;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	const uint32_t warp = threadIdx.x / RHH_WARP_SIZE;
	T			sum = rhh_warp_scan(x);
	T			before = sum - x;

	static_assert(WARPS <= RHH_WARP_SIZE, "a lane has a warp's sum");
	if (lane == RHH_WARP_SIZE - 1)
		warp_sums[warp] = sum;
	__syncthreads();
	/* All warps do this: one alone would be no faster, and the others would wait. */
	sum = rhh_warp_scan(lane < WARPS ? warp_sums[lane] : (T) 0);
	if (all)
		*all = __shfl_sync((rhh_lanes) ~0ULL, sum, WARPS - 1);
	sum = __shfl_sync((rhh_lanes) ~0ULL, sum, (int) (warp + RHH_WARP_SIZE - 1) % RHH_WARP_SIZE);
	if (warp > 0)
		before += sum;
	return before;
}

/*
 * Places for those of K things of each thread that are wanted, in the order of the things
 * first and of the threads second, so that neighbouring threads have neighbouring places.
 * Returns how many are wanted.  A whole block, of THREADS.  counts is shared memory of
 * K * THREADS / RHH_WARP_SIZE words, with which it is as with warp_sums above.
 */
template <int THREADS, int K>
RHH_DEV uint32_t
rhh_block_places(const bool *wanted, uint32_t *places, uint32_t *counts)
{
	const uint32_t WARPS = THREADS / RHH_WARP_SIZE;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	const uint32_t warp = threadIdx.x / RHH_WARP_SIZE;
	uint32_t	own,
				sum;

	static_assert(K * WARPS <= RHH_WARP_SIZE, "a lane has a count");
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		rhh_lanes	lanes = __ballot_sync((rhh_lanes) ~0ULL, wanted[k]);

		places[k] = (uint32_t) rhh_count_lanes(lanes & (((rhh_lanes) 1 << lane) - 1));
		if (lane == 0)
			counts[k * WARPS + warp] = (uint32_t) rhh_count_lanes(lanes);
	}
	__syncthreads();
	own = lane < K * WARPS ? counts[lane] : 0;
	sum = rhh_warp_scan(own);
	RHH_UNROLL
	for (int k = 0; k < K; k++)
		places[k] += __shfl_sync((rhh_lanes) ~0ULL, sum - own, (int) (k * WARPS + warp));
	return __shfl_sync((rhh_lanes) ~0ULL, sum, RHH_WARP_SIZE - 1);
}

/* ---------- memory ---------- */

/*
 * Loads and stores of what no thread asks for again soon: it is the first to go from the
 * caches, and leaves them to what is read again and again.
 */
template <typename T>
RHH_DEV T
rhh_load_streaming(const T *p)
{
#if defined(__CUDACC__)
	return __ldcs(p);
#else
	return *p;
#endif
}

template <typename T>
RHH_DEV void
rhh_store_streaming(T *p, T value)
{
#if defined(__CUDACC__)
	__stcs(p, value);
#else
	*p = value;
#endif
}

/*
 * Loads from global memory, of two kinds:
 *
 *		rhh_load_relaxed	reads past the L1 cache, because the stores of other SMs do
 *							not reach that; so a loop that waits for another tile sees
 *							its store sooner or later
 *		rhh_load_cached		reads through the L1 cache, and may see what was there
 *							earlier
 *
 * rhh_load_relaxed_2x64 is two loads of 64 bits in one instruction: each half is
 * whole, but another tile may store between the two.  rhh_load_relaxed128 is one
 * access of 128 bits, from sm_90 on.
 *
 * RHH_DEFINE_LOAD makes the load of one width, with PTX's names for the kind of
 * load and for a register of that width.
 */
#if defined(__CUDACC__)
#define RHH_DEFINE_LOAD(name, type, instruction, reg) \
	RHH_DEV type \
	name(const type *p) \
	{ \
		type		v; \
\
		asm volatile(instruction " %0, [%1];" \
					 : "=" reg(v) : "l"(__cvta_generic_to_global(p)) : "memory"); \
		return v; \
	}
#else
#define RHH_DEFINE_LOAD(name, type, instruction, reg) \
	RHH_DEV type \
	name(const type *p) \
	{ \
		return simt_load(p); \
	}
#endif

RHH_DEFINE_LOAD(rhh_load_relaxed16, uint16_t, "ld.relaxed.gpu.global.u16", "h")
RHH_DEFINE_LOAD(rhh_load_relaxed32, uint32_t, "ld.relaxed.gpu.global.u32", "r")
RHH_DEFINE_LOAD(rhh_load_relaxed64, uint64_t, "ld.relaxed.gpu.global.u64", "l")
RHH_DEFINE_LOAD(rhh_load_cached64, uint64_t, "ld.global.ca.u64", "l")

#undef RHH_DEFINE_LOAD

RHH_DEV void
rhh_load_relaxed_2x64(const uint64_t *p, uint64_t *a, uint64_t *b)
{
#if defined(__CUDACC__)
	asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
				 : "=l"(*a), "=l"(*b) : "l"(__cvta_generic_to_global(p)) : "memory");
#else
	*a = simt_load(p);
	*b = simt_load(p + 1);
#endif
}

struct rhh_pair64
{
	uint64_t	x,
				y;
};

RHH_DEV rhh_pair64
rhh_load_relaxed128(const void *p)
{
	rhh_pair64	v;

#if !defined(__CUDACC__)
	v = simt_load((const rhh_pair64 *) p);
#elif __CUDA_ARCH__ >= 900
	asm volatile("{\n\t.reg .b128 raw;\n\t"
				 "ld.relaxed.gpu.global.b128 raw, [%2];\n\t"
				 "mov.b128 {%0, %1}, raw;\n\t}"
				 : "=l"(v.x), "=l"(v.y) : "l"(__cvta_generic_to_global(p)) : "memory");
#else
	rhh_load_relaxed_2x64((const uint64_t *) p, &v.x, &v.y);
#endif
	return v;
}

RHH_DEV rhh_pair64
rhh_load_cached128(const void *p)
{
	rhh_pair64	v;

#if defined(__CUDACC__)
	asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];"
				 : "=l"(v.x), "=l"(v.y) : "l"(__cvta_generic_to_global(p)) : "memory");
#else
	v = simt_load((const rhh_pair64 *) p);
#endif
	return v;
}

/* Replaces expected by desired, and returns whether it was there.  Relaxed.  One lane. */
RHH_DEV bool
rhh_cas64(uint64_t *p, uint64_t expected, uint64_t desired)
{
	return atomicCAS((unsigned long long *) p, (unsigned long long) expected,
					 (unsigned long long) desired) == expected;
}

/* The same for 16 bytes, which must be aligned, from sm_90 on (before that it traps). */
RHH_DEV bool
rhh_cas128(void *p, rhh_pair64 expected, rhh_pair64 desired)
{
#if !defined(__CUDACC__)
	rhh_pair64 *at = (rhh_pair64 *) p;

	simt::maybe_yield();
	if (at->x != expected.x || at->y != expected.y)
		return false;
	*at = desired;
	return true;
#elif __CUDA_ARCH__ >= 900
	rhh_pair64	old;

	asm volatile("{\n\t.reg .b128 c, d, o;\n\t"
				 "mov.b128 c, {%2, %3};\n\t"
				 "mov.b128 d, {%4, %5};\n\t"
				 "atom.relaxed.gpu.global.cas.b128 o, [%6], c, d;\n\t"
				 "mov.b128 {%0, %1}, o;\n\t}"
				 : "=l"(old.x), "=l"(old.y)
				 : "l"(expected.x), "l"(expected.y), "l"(desired.x), "l"(desired.y),
				 "l"(__cvta_generic_to_global(p))
				 : "memory");
	return old.x == expected.x && old.y == expected.y;
#else
	__trap();
	return false;
#endif
}

#endif							/* RHH_TILE_CUH */
