/*
 * rhh_partition.cuh
 *		Sorts items by the high bits of their hashes, so that what follows can work on
 *		one part of a table after the other.
 *
 * Random accesses to device memory are slow: an H100 does 13.6 G compare-and-swaps a
 * second there, but 68 G/s within its L2 cache; and what is sorted by home bucket needs
 * hardly any displacing.  A pass moves each item twice, at the full bandwidth of the
 * memory (120 G pairs of 8 bytes a second on an H100).
 *
 * This is the partitioning of radix joins (Manegold, Boncz, Kersten 2002; on GPUs Rui
 * and Tu 2017).  A pass sorts by up to 9 bits.  Its blocks sort their items in shared
 * memory first, so that the items of a part leave in runs.  The second pass goes through
 * the parts of the first.
 *
 *		rhh_histogram_kernel	counts the items of each part
 *		rhh_offsets_kernel		computes where each part begins
 *		rhh_scatter_kernel		moves items to their parts
 *
 * A class Io says what the items are:
 *
 *		typedef ... item;				has 8 or 16 bytes
 *		item load(i)					the i-th item
 *		uint32_t hash(item)
 */
#ifndef RHH_PARTITION_CUH
#define RHH_PARTITION_CUH

#include "table/rhh_tile.cuh"

/* Parts that one pass can make at most: 9 bits of the hash. */
#define RHH_MAX_PARTITIONS 512

/*
 * How the kernels partition items of so many bytes.  They take the policy as their
 * first template argument.
 */
template <int ITEM_BYTES>
struct rhh_partition_policy
{
	static constexpr int THREADS = 512; /* of a block */
	static constexpr int SORTED_BYTES = 48 << 10;	/* of shared memory, for the items */
	static constexpr int ITEMS = SORTED_BYTES / (THREADS * ITEM_BYTES); /* that a thread has at a time */
	static constexpr uint32_t BLOCK_ITEMS = ITEMS * THREADS;

	static_assert(BLOCK_ITEMS * ITEM_BYTES == SORTED_BYTES, "threads share the items evenly");
	static_assert(THREADS >= RHH_MAX_PARTITIONS, "a thread has a part's counter");
};

/*
 * A pass goes over the parts that the pass before it has made, which end at ends[].  If
 * ends is NULL it goes over n items as one part.  It sorts by `bits` bits of the hash,
 * from shift on, and counts in counts[part << bits | those bits].  Parts may have any
 * sizes, because blocks share out the items and not the parts.
 */
struct rhh_pass
{
	const unsigned long long *ends;
	uint32_t	n_parts;
	uint64_t	n;
	uint32_t	shift;
	uint32_t	bits;
	unsigned long long *counts;
};

RHH_DEV uint64_t
rhh_part_end(const rhh_pass &pass, uint32_t part)
{
	return pass.ends ? pass.ends[part] : pass.n;
}

/* The part to which item i belongs; there must be such an item. */
RHH_DEV uint32_t
rhh_part_with(const rhh_pass &pass, uint64_t i)
{
	uint32_t	from = 0,
				to = pass.n_parts - 1;

	while (from < to)
	{
		uint32_t	middle = (from + to) / 2;

		if (rhh_part_end(pass, middle) > i)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

RHH_DEV uint32_t
rhh_pass_bits(const rhh_pass &pass, uint32_t hash)
{
	return hash >> pass.shift & ((1u << pass.bits) - 1);
}

/* Counts items in counts[], which the caller has zeroed.  A block has a range of items. */
template <class Policy, class Io>
static __global__ void __launch_bounds__(Policy::THREADS)
rhh_histogram_kernel(const __grid_constant__ Io io, const __grid_constant__ rhh_pass pass)
{
	__shared__ uint32_t local[RHH_MAX_PARTITIONS];
	const uint64_t n = rhh_part_end(pass, pass.n_parts - 1);
	const uint64_t share = (n + gridDim.x - 1) / gridDim.x;
	uint64_t	first = blockIdx.x * share;
	const uint64_t end = first + share < n ? first + share : n;

	for (uint32_t part = first < end ? rhh_part_with(pass, first) : 0; first < end; part++)
	{
		const uint64_t part_end = rhh_part_end(pass, part) < end ? rhh_part_end(pass, part) : end;

		for (uint32_t p = threadIdx.x; p < 1u << pass.bits; p += blockDim.x)
			local[p] = 0;
		__syncthreads();
		for (uint64_t i = first + threadIdx.x; i < part_end; i += blockDim.x)
			atomicAdd(&local[rhh_pass_bits(pass, io.hash(io.load(i)))], 1u);
		__syncthreads();
		for (uint32_t p = threadIdx.x; p < 1u << pass.bits; p += blockDim.x)
			if (local[p])
				atomicAdd(&pass.counts[(uint64_t) part << pass.bits | p],
						  (unsigned long long) local[p]);
		__syncthreads();
		first = part_end;
	}
}

/*
 * Turns the counts in counts[] into the places where the parts begin.  The scatter kernel
 * takes places from there, so that afterwards counts[] says where the parts end.  There
 * is a block of RHH_MAX_PARTITIONS threads for each part of the pass before.
 */
static __global__ void
rhh_offsets_kernel(const __grid_constant__ rhh_pass pass)
{
	__shared__ unsigned long long warp_sums[RHH_MAX_PARTITIONS / RHH_WARP_SIZE];
	unsigned long long *counts = pass.counts + ((uint64_t) blockIdx.y << pass.bits);
	const uint32_t p = threadIdx.x;
	const unsigned long long own = p < 1u << pass.bits ? counts[p] : 0;
	const uint64_t first = blockIdx.y > 0 ? rhh_part_end(pass, blockIdx.y - 1) : 0;
	const unsigned long long before = rhh_block_scan<RHH_MAX_PARTITIONS>(own, warp_sums);

	if (p < 1u << pass.bits)
		counts[p] = first + before;
}

/*
 * Moves items to their parts.  A block takes as many items as its shared memory holds,
 * sorts them there and writes them out.  Dynamic shared memory: Policy::SORTED_BYTES.
 */
template <class Policy, class Io>
static __global__ void __launch_bounds__(Policy::THREADS)
rhh_scatter_kernel(const __grid_constant__ Io io, const __grid_constant__ rhh_pass pass,
				   typename Io::item *out)
{
	typedef typename Io::item item;
	const int	ITEMS = Policy::ITEMS;
	const uint32_t BLOCK_ITEMS = Policy::BLOCK_ITEMS;
	RHH_DYNAMIC_SHARED(rhh_pair64, raw);
	item	   *sorted = (item *) raw;
	__shared__ uint32_t count[RHH_MAX_PARTITIONS];
	__shared__ uint32_t start[RHH_MAX_PARTITIONS];
	__shared__ unsigned long long base[RHH_MAX_PARTITIONS];
	__shared__ uint32_t warp_sums[Policy::THREADS / RHH_WARP_SIZE];
	const uint32_t n_parts = 1u << pass.bits;
	const uint32_t t = threadIdx.x;
	const uint64_t n_items = rhh_part_end(pass, pass.n_parts - 1);
	uint64_t	from = (uint64_t) blockIdx.x * BLOCK_ITEMS;
	const uint64_t end = from + BLOCK_ITEMS < n_items ? from + BLOCK_ITEMS : n_items;
	uint32_t	n;

	for (uint32_t part = from < end ? rhh_part_with(pass, from) : 0; from < end;
		 part++, from += n)
	{
		const uint64_t part_end = rhh_part_end(pass, part) < end ? rhh_part_end(pass, part) : end;
		unsigned long long *next = pass.counts + ((uint64_t) part << pass.bits);
		item		mine[ITEMS];
		uint32_t	rank[ITEMS];
		uint32_t	own,
					before;

		n = (uint32_t) (part_end - from);
		if (t < n_parts)
			count[t] = 0;
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
			if (k * Policy::THREADS + t < n)
				mine[k] = io.load(from + k * Policy::THREADS + t);
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
			if (k * Policy::THREADS + t < n)
				rank[k] = atomicAdd(&count[rhh_pass_bits(pass, io.hash(mine[k]))], 1u);
		__syncthreads();

		own = t < n_parts ? count[t] : 0;
		before = rhh_block_scan<Policy::THREADS>(own, warp_sums);
		if (t < n_parts)
		{
			start[t] = before;
			if (own)
				base[t] = atomicAdd(&next[t], (unsigned long long) own);
		}
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
			if (k * Policy::THREADS + t < n)
				sorted[start[rhh_pass_bits(pass, io.hash(mine[k]))] + rank[k]] = mine[k];
		__syncthreads();
		for (uint32_t j = t; j < n; j += Policy::THREADS)
		{
			item		e = sorted[j];
			uint32_t	p = rhh_pass_bits(pass, io.hash(e));

			out[base[p] + (j - start[p])] = e;
		}
		__syncthreads();
	}
}

/* Items that are in memory already, which is what the second pass reads. */
template <class Io>
struct rhh_moved
{
	typedef typename Io::item item;

	Io			io;				/* for the hash */
	const item *items;

	__device__ RHH_INLINE item load(uint64_t i) const
	{
		return items[i];
	}
	__device__ RHH_INLINE uint32_t hash(const item &e) const
	{
		return io.hash(e);
	}
};

/* Queues one pass.  If only the device knows the number of items, pass.n is the most. */
template <class Io>
static cudaError_t
rhh_run_pass(const Io &io, const rhh_pass &pass, typename Io::item *out, int n_sms,
			 cudaStream_t stream)
{
	typedef rhh_partition_policy<sizeof(typename Io::item)> Policy;
	const uint64_t block_items = Policy::BLOCK_ITEMS;
	const size_t shared = Policy::SORTED_BYTES;
	auto		histogram = rhh_histogram_kernel<Policy, Io>;
	auto		scatter = rhh_scatter_kernel<Policy, Io>;
	cudaError_t error = cudaMemsetAsync(pass.counts, 0,
										((uint64_t) pass.n_parts << pass.bits) * sizeof *pass.counts,
										stream);

	if (error != cudaSuccess)
		return error;
	/* With the static arrays it is more than the 48 KB that need no opting in. */
	error = cudaFuncSetAttribute(scatter, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared);
	if (error != cudaSuccess)
		return error;
	RHH_LAUNCH(histogram, n_sms * 4, Policy::THREADS, 0, stream, io, pass);
	RHH_LAUNCH(rhh_offsets_kernel, dim3(1, pass.n_parts), RHH_MAX_PARTITIONS, 0, stream, pass);
	RHH_LAUNCH(scatter, (unsigned) ((pass.n + block_items - 1) / block_items),
			   Policy::THREADS, shared, stream, io, pass, out);
	return cudaGetLastError();
}

/*
 * Sorts n > 0 items into out by the highest bits (2 to 18) of their hashes, in two passes
 * on the stream.  between has room for n items.  ends is device memory for
 * RHH_PARTITION_COUNTS(bits) words; afterwards part p of out ends at ends[p].  If n_items
 * is not NULL it is device memory with the number of items, and the host only knows that
 * there are no more than n.  Returns the first error of a call.
 */
#define RHH_PARTITION_COUNTS(bits) ((UINT64_C(1) << (bits)) + RHH_MAX_PARTITIONS)

template <class Io>
static cudaError_t
rhh_partition(const Io &io, uint64_t n, uint32_t bits, typename Io::item *between,
			  typename Io::item *out, unsigned long long *ends, int n_sms, cudaStream_t stream,
			  const unsigned long long *n_items = nullptr)
{
	const uint32_t first_bits = (bits + 1) / 2;
	unsigned long long *counts = ends + (UINT64_C(1) << bits);
	rhh_pass	first = {n_items, 1, n, 32 - first_bits, first_bits, counts};
	rhh_pass	second = {counts, 1u << first_bits, n, 32 - bits, bits - first_bits, ends};
	rhh_moved<Io> moved = {io, between};
	cudaError_t error = rhh_run_pass(io, first, between, n_sms, stream);

	if (error != cudaSuccess)
		return error;
	return rhh_run_pass(moved, second, out, n_sms, stream);
}

#endif							/* RHH_PARTITION_CUH */
