/*
 * rhh_partition.cuh
 *		One pass that sorts pairs by the high bits of their hash, so that what
 *		follows works on a part of a table that stays in the L2 cache.
 *
 * Random accesses to device memory are bound by its lines (an H100: 13.6 G
 * compare-and-swaps a second), those within L2 run at 68 G/s; a pass moves each
 * pair twice more and the keys once more, at the memory's full bandwidth.  That
 * is the partitioning of radix joins (Manegold, Boncz, Kersten 2002; on GPUs Rui
 * and Tu 2017), one pass, with blocks that sort their pairs in shared memory so
 * that they leave in runs.
 *
 *		rhh_histogram_kernel	pairs of each partition
 *		rhh_offsets_kernel		where each begins
 *		rhh_scatter_kernel		pairs to their partitions
 *
 * Items in and out are what Io says:
 *
 *		typedef ... item;				8 or 16 bytes
 *		item load(i)					the i-th
 *		uint32_t hash(item)
 */
#ifndef RHH_PARTITION_CUH
#define RHH_PARTITION_CUH

#include "rhh_tile.cuh"

#define RHH_PARTITION_THREADS 512
#define RHH_MAX_PARTITIONS 512

/* Items that a thread has at a time: blocks sort 48 KB. */
#define RHH_PARTITION_ITEMS(bytes) ((48 << 10) / (RHH_PARTITION_THREADS * (bytes)))
#define RHH_PARTITION_SHARED(bytes) \
	(RHH_PARTITION_ITEMS(bytes) * RHH_PARTITION_THREADS * (bytes))

/* bits is log2 of the partitions, at least 1. */
RHH_DEV uint32_t
rhh_partition_of(uint32_t hash, uint32_t bits)
{
	return hash >> (32 - bits);
}

/* counts[] of 1 << bits, zeroed by the caller. */
template <class Io>
static __global__ void __launch_bounds__(RHH_PARTITION_THREADS)
rhh_histogram_kernel(const __grid_constant__ Io io, uint64_t n, uint32_t bits,
					 unsigned long long *counts)
{
	__shared__ uint32_t local[RHH_MAX_PARTITIONS];

	for (uint32_t p = threadIdx.x; p < 1u << bits; p += blockDim.x)
		local[p] = 0;
	__syncthreads();
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		atomicAdd(&local[rhh_partition_of(io.hash(io.load(i)), bits)], 1u);
	__syncthreads();
	for (uint32_t p = threadIdx.x; p < 1u << bits; p += blockDim.x)
		if (local[p])
			atomicAdd(&counts[p], (unsigned long long) local[p]);
}

/*
 * One block of RHH_MAX_PARTITIONS threads.  counts[p] becomes where partition p
 * begins: the scatter kernel takes places from there.
 */
static __global__ void
rhh_offsets_kernel(unsigned long long *counts, uint32_t bits)
{
	__shared__ unsigned long long sums[RHH_MAX_PARTITIONS];
	uint32_t	p = threadIdx.x;
	unsigned long long own = p < 1u << bits ? counts[p] : 0;

	sums[p] = own;
	__syncthreads();
	for (uint32_t step = 1; step < RHH_MAX_PARTITIONS; step *= 2)
	{
		unsigned long long before = p >= step ? sums[p - step] : 0;

		__syncthreads();
		sums[p] += before;
		__syncthreads();
	}
	if (p < 1u << bits)
		counts[p] = sums[p] - own;
}

/*
 * next[p] is partition p's next free place in out.  A block takes as many items
 * as its shared memory holds, sorts them by partition there and writes them.
 * Dynamic shared memory: RHH_PARTITION_SHARED(sizeof item).
 */
template <class Io>
static __global__ void __launch_bounds__(RHH_PARTITION_THREADS)
rhh_scatter_kernel(const __grid_constant__ Io io, uint64_t n, uint32_t bits,
				   unsigned long long *next, typename Io::item *out)
{
	typedef typename Io::item item;
	const int	ITEMS = RHH_PARTITION_ITEMS(sizeof(item));
	RHH_DYNAMIC_SHARED(rhh_pair64, raw);
	item	   *sorted = (item *) raw;
	__shared__ uint32_t count[RHH_MAX_PARTITIONS];
	__shared__ uint32_t start[RHH_MAX_PARTITIONS];
	__shared__ unsigned long long base[RHH_MAX_PARTITIONS];
	__shared__ uint32_t warp_sums[32];
	const uint64_t first = (uint64_t) blockIdx.x * (ITEMS * RHH_PARTITION_THREADS);
	const uint32_t n_parts = 1u << bits;
	const uint32_t t = threadIdx.x;
	const uint32_t lane = t & (RHH_WARP_SIZE - 1);
	item		mine[ITEMS];
	uint32_t	rank[ITEMS];
	uint32_t	total;

	if (t < n_parts)
		count[t] = 0;
	__syncthreads();
	RHH_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		uint64_t	i = first + k * RHH_PARTITION_THREADS + t;

		if (i < n)
			mine[k] = io.load(i);
	}
	RHH_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		uint64_t	i = first + k * RHH_PARTITION_THREADS + t;

		if (i < n)
			rank[k] = atomicAdd(&count[rhh_partition_of(io.hash(mine[k]), bits)], 1u);
	}
	__syncthreads();

	/* Exclusive sums of the counts: within warps, then over the warps. */
	{
		uint32_t	own = t < n_parts ? count[t] : 0;
		uint32_t	sum = own;

		for (uint32_t step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			uint32_t	before = __shfl_up_sync((rhh_lanes) ~0ULL, sum, step);

			if (lane >= step)
				sum += before;
		}
		if (lane == RHH_WARP_SIZE - 1)
			warp_sums[t / RHH_WARP_SIZE] = sum;
		__syncthreads();
		if (t == 0)
		{
			uint32_t	before = 0;

			for (uint32_t w = 0; w < RHH_PARTITION_THREADS / RHH_WARP_SIZE; w++)
			{
				uint32_t	s = warp_sums[w];

				warp_sums[w] = before;
				before += s;
			}
		}
		__syncthreads();
		if (t < n_parts)
		{
			start[t] = sum - own + warp_sums[t / RHH_WARP_SIZE];
			if (own)
				base[t] = atomicAdd(&next[t], (unsigned long long) own);
		}
	}
	__syncthreads();
	RHH_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		uint64_t	i = first + k * RHH_PARTITION_THREADS + t;

		if (i < n)
			sorted[start[rhh_partition_of(io.hash(mine[k]), bits)] + rank[k]] = mine[k];
	}
	__syncthreads();
	total = (uint32_t) (n - first < ITEMS * RHH_PARTITION_THREADS
						? n - first : ITEMS * RHH_PARTITION_THREADS);
	for (uint32_t j = t; j < total; j += RHH_PARTITION_THREADS)
	{
		item		e = sorted[j];
		uint32_t	p = rhh_partition_of(io.hash(e), bits);

		out[base[p] + (j - start[p])] = e;
	}
}

/*
 * Sorts n items by the highest bits (1 to 9) of their hashes into out, all on the
 * stream; counts[] is scratch of RHH_MAX_PARTITIONS in device memory.  Returns
 * the first error of a launch.
 */
template <class Io>
static cudaError_t
rhh_partition(const Io &io, uint64_t n, uint32_t bits, typename Io::item *out,
			  unsigned long long *counts, int n_sms, cudaStream_t stream)
{
	const size_t shared = RHH_PARTITION_SHARED(sizeof(typename Io::item));
	const uint64_t block_items = RHH_PARTITION_ITEMS(sizeof(typename Io::item)) * RHH_PARTITION_THREADS;
	auto		histogram = rhh_histogram_kernel<Io>;
	auto		scatter = rhh_scatter_kernel<Io>;
	cudaError_t error = cudaMemsetAsync(counts, 0, RHH_MAX_PARTITIONS * sizeof *counts, stream);

	if (error != cudaSuccess || n == 0)
		return error;
	/* With the static arrays it is more than the 48 KB that need no opting in. */
	error = cudaFuncSetAttribute(scatter, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared);
	if (error != cudaSuccess)
		return error;
	RHH_LAUNCH(histogram, (unsigned) (n_sms * 4), RHH_PARTITION_THREADS, 0, stream, io, n, bits, counts);
	RHH_LAUNCH(rhh_offsets_kernel, 1, RHH_MAX_PARTITIONS, 0, stream, counts, bits);
	RHH_LAUNCH(scatter, (unsigned) ((n + block_items - 1) / block_items), RHH_PARTITION_THREADS,
			   shared, stream, io, n, bits, counts, out);
	return cudaGetLastError();
}

#endif							/* RHH_PARTITION_CUH */
