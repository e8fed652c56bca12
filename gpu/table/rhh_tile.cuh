/*
 * rhh_tile.cuh
 *		What every device function here stands on: tiles of lanes, loads that
 *		other SMs' stores reach, compare-and-swap, launching.
 *
 * The same sources are compiled by nvcc, and by a C++ compiler with test/simt.h,
 * which runs CUDA's threads as fibers on the CPU.  What differs between the two
 * is in this file and nowhere else.
 *
 * A tile is LANES consecutive lanes of a warp that work on one key.  Unless
 * stated otherwise a function that takes a tile is called by all its lanes with
 * the same arguments, synchronises the tile only, and returns the same to all.
 */
#ifndef RHH_TILE_CUH
#define RHH_TILE_CUH

#include <stdint.h>

#if defined(__CUDACC__)
#include <cuda_runtime.h>

/* kernel: an expression without commas outside of parentheses */
#define RHH_LAUNCH(kernel, grid, threads, shared_bytes, stream, ...) \
	(kernel)<<<(grid), (threads), (shared_bytes), (stream)>>>(__VA_ARGS__)
/* The same for a kernel without __shared__ variables: simt.h may run its blocks together. */
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

/* Index of the first lane of a set that is not empty. */
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
 * LANES consecutive lanes of a warp.  Sets of lanes are relative to the tile: bit
 * i is lane i of the tile.
 *
 * IN_STEP: all tiles of the warp, in step: every lane of the warp makes every call,
 * and a tile that has nothing to do goes along.  That keeps a warp on one path.
 * (Where each tile names its own lanes, the compiler lets them go separate ways,
 * and the warp executes them one after the other: 82 instructions a key for
 * inserts, measured on an H100, where 8 keys could share them.)  Otherwise other
 * tiles of the warp may be anywhere else: every operation names its lanes.
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

	/* Who makes the calls. */
	__device__ RHH_INLINE rhh_lanes lanes() const
	{
		return IN_STEP ? WARP : own_lanes;
	}

	/* The lanes of the caller's tile that say yes. */
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

	/* Does the tile go on, or in step any of the warp's? */
	__device__ RHH_INLINE bool more(bool yes) const
	{
		return IN_STEP ? __any_sync(lanes(), yes) : yes;
	}

	/* Lane from's value. */
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

/* Takes the first of the lanes that are pending, if there is one: *src. */
RHH_DEV bool
rhh_take_lane(bool active, rhh_lanes *pending, int *src)
{
	if (!active || *pending == 0)
		return false;
	*src = rhh_first_lane(*pending);
	*pending &= *pending - 1;
	return true;
}

/* Number of the calling lane's tile in the grid, and how many there are. */
#define RHH_TILE_ID(N) ((blockIdx.x * blockDim.x + threadIdx.x) / (N))
#define RHH_TILES(N) (gridDim.x * blockDim.x / (N))

/* ---------- sums ---------- */

/* x summed over the lanes of the warp up to the calling one; all lanes. */
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
 * x summed over the threads of the block before the calling one; *all: over all.
 * A block of THREADS, which it synchronises once, after it has written warp_sums:
 * shared memory, a word a warp, that nobody may write again before another
 * __syncthreads().
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
	/* By all warps: no faster by one, for which the others would wait. */
	sum = rhh_warp_scan(lane < WARPS ? warp_sums[lane] : (T) 0);
	if (all)
		*all = __shfl_sync((rhh_lanes) ~0ULL, sum, WARPS - 1);
	sum = __shfl_sync((rhh_lanes) ~0ULL, sum, (int) (warp + RHH_WARP_SIZE - 1) % RHH_WARP_SIZE);
	if (warp > 0)
		before += sum;
	return before;
}

/* ---------- memory ---------- */

/*
 * rhh_load_relaxed: reads past L1, which other SMs' stores do not reach; a retry
 * reads again.  rhh_load_cached: through L1, so possibly what was there earlier.
 *
 * rhh_load_relaxed_2x64 is two such loads in one instruction: each half is
 * whole, but the halves need not be of one moment.  rhh_load_relaxed128 is one
 * access (sm_90 and later).
 */
RHH_DEV uint16_t
rhh_load_relaxed16(const uint16_t *p)
{
#if defined(__CUDACC__)
	uint16_t	v;

	asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];"
				 : "=h"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
#else
	return simt_load(p);
#endif
}

RHH_DEV uint32_t
rhh_load_relaxed32(const uint32_t *p)
{
#if defined(__CUDACC__)
	uint32_t	v;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
				 : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
#else
	return simt_load(p);
#endif
}

RHH_DEV uint64_t
rhh_load_relaxed64(const uint64_t *p)
{
#if defined(__CUDACC__)
	uint64_t	v;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
				 : "=l"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
#else
	return simt_load(p);
#endif
}

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

RHH_DEV uint64_t
rhh_load_cached64(const uint64_t *p)
{
#if defined(__CUDACC__)
	uint64_t	v;

	asm volatile("ld.global.ca.u64 %0, [%1];"
				 : "=l"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
#else
	return simt_load(p);
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

/* Replaces expected by desired; true if it was there.  Relaxed, one lane. */
RHH_DEV bool
rhh_cas64(uint64_t *p, uint64_t expected, uint64_t desired)
{
	return atomicCAS((unsigned long long *) p, (unsigned long long) expected,
					 (unsigned long long) desired) == expected;
}

/* The same for 16 bytes, aligned; sm_90 and later (elsewhere it traps). */
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
