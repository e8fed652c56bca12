/*
 * rhh_partition.cuh
 *		Sorts items by the high bits of their hash, so that what follows works on
 *		one part of a table after the other.
 *
 * Random accesses to device memory are bound by its lines (an H100: 13.6 G
 * compare-and-swaps a second); those within L2 run at 68 G/s, and what is sorted
 * by home bucket needs hardly any displacing.  A pass moves each item twice, at
 * the memory's full bandwidth (120 G pairs of 8 bytes a second on an H100).
 * That is the partitioning of radix joins (Manegold, Boncz, Kersten 2002; on GPUs
 * Rui and Tu 2017): up to 9 bits a pass, by blocks that sort their items in
 * shared memory first, so that they leave in runs; the second pass goes through
 * the parts of the first.
 *
 *		rhh_histogram_kernel	items of each part
 *		rhh_offsets_kernel		where each begins
 *		rhh_scatter_kernel		items to their parts
 *
 * What the items are Io says:
 *
 *		typedef ... item;				8 or 16 bytes
 *		item load(i)					the i-th
 *		uint32_t hash(item)
 */
#ifndef RHH_PARTITION_CUH
#define RHH_PARTITION_CUH

#include "table/rhh_tile.cuh"

#define RHH_PARTITION_THREADS 512
#define RHH_MAX_PARTITIONS 512

/* Items that a thread has at a time: blocks sort 48 KB. */
#define RHH_PARTITION_ITEMS(bytes) ((48 << 10) / (RHH_PARTITION_THREADS * (bytes)))
#define RHH_PARTITION_SHARED(bytes) \
	(RHH_PARTITION_ITEMS(bytes) * RHH_PARTITION_THREADS * (bytes))

/*
 * A pass over the parts that the pass before it left, which end at ends[]; ends
 * being NULL, over n items, as one part.  Items go by the hash's bits from shift
 * on, bits of them; counters are counts[part << bits | those bits].  Parts may
 * have any sizes: blocks share out the items, not the parts.
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

/* The part that item i, which there is, belongs to. */
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

/* counts[] zeroed by the caller.  A block has a range of the items. */
template <class Io>
static __global__ void __launch_bounds__(RHH_PARTITION_THREADS)
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
 * Blocks of RHH_MAX_PARTITIONS threads, one for each part of the pass before.
 * counts[] become where the parts begin: the scatter kernel takes places from
 * there, and so leaves where they end.
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
 * Blocks take as many items as their shared memory holds, sort them there and
 * write them out.  Dynamic shared memory: RHH_PARTITION_SHARED(sizeof item).
 */
template <class Io>
static __global__ void __launch_bounds__(RHH_PARTITION_THREADS)
rhh_scatter_kernel(const __grid_constant__ Io io, const __grid_constant__ rhh_pass pass,
				   typename Io::item *out)
{
	typedef typename Io::item item;
	const int	ITEMS = RHH_PARTITION_ITEMS(sizeof(item));
	const uint32_t BLOCK_ITEMS = ITEMS * RHH_PARTITION_THREADS;
	RHH_DYNAMIC_SHARED(rhh_pair64, raw);
	item	   *sorted = (item *) raw;
	__shared__ uint32_t count[RHH_MAX_PARTITIONS];
	__shared__ uint32_t start[RHH_MAX_PARTITIONS];
	__shared__ unsigned long long base[RHH_MAX_PARTITIONS];
	__shared__ uint32_t warp_sums[RHH_PARTITION_THREADS / RHH_WARP_SIZE];
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
			if (k * RHH_PARTITION_THREADS + t < n)
				mine[k] = io.load(from + k * RHH_PARTITION_THREADS + t);
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
			if (k * RHH_PARTITION_THREADS + t < n)
				rank[k] = atomicAdd(&count[rhh_pass_bits(pass, io.hash(mine[k]))], 1u);
		__syncthreads();

		own = t < n_parts ? count[t] : 0;
		before = rhh_block_scan<RHH_PARTITION_THREADS>(own, warp_sums);
		if (t < n_parts)
		{
			start[t] = before;
			if (own)
				base[t] = atomicAdd(&next[t], (unsigned long long) own);
		}
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < ITEMS; k++)
			if (k * RHH_PARTITION_THREADS + t < n)
				sorted[start[rhh_pass_bits(pass, io.hash(mine[k]))] + rank[k]] = mine[k];
		__syncthreads();
		for (uint32_t j = t; j < n; j += RHH_PARTITION_THREADS)
		{
			item		e = sorted[j];
			uint32_t	p = rhh_pass_bits(pass, io.hash(e));

			out[base[p] + (j - start[p])] = e;
		}
		__syncthreads();
	}
}

/* Items that are in memory already: what the second pass reads. */
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

/* One pass; pass.n is what there can be at most, if the device knows better. */
template <class Io>
static cudaError_t
rhh_run_pass(const Io &io, const rhh_pass &pass, typename Io::item *out, int n_sms,
			 cudaStream_t stream)
{
	const uint64_t block_items = RHH_PARTITION_ITEMS(sizeof(typename Io::item)) * RHH_PARTITION_THREADS;
	const size_t shared = RHH_PARTITION_SHARED(sizeof(typename Io::item));
	auto		histogram = rhh_histogram_kernel<Io>;
	auto		scatter = rhh_scatter_kernel<Io>;
	cudaError_t error = cudaMemsetAsync(pass.counts, 0,
										((uint64_t) pass.n_parts << pass.bits) * sizeof *pass.counts,
										stream);

	if (error != cudaSuccess)
		return error;
	/* With the static arrays it is more than the 48 KB that need no opting in. */
	error = cudaFuncSetAttribute(scatter, cudaFuncAttributeMaxDynamicSharedMemorySize, (int) shared);
	if (error != cudaSuccess)
		return error;
	RHH_LAUNCH(histogram, n_sms * 4, RHH_PARTITION_THREADS, 0, stream, io, pass);
	RHH_LAUNCH(rhh_offsets_kernel, dim3(1, pass.n_parts), RHH_MAX_PARTITIONS, 0, stream, pass);
	RHH_LAUNCH(scatter, (unsigned) ((pass.n + block_items - 1) / block_items),
			   RHH_PARTITION_THREADS, shared, stream, io, pass, out);
	return cudaGetLastError();
}

/*
 * Sorts n > 0 items by the highest bits (2 to 18) of their hashes into out, in two
 * passes on the stream.  between: room for n items.  ends: device memory of
 * RHH_PARTITION_COUNTS(bits); afterwards part p of out ends at ends[p].
 * n_items: how many there are, in device memory, if the host only knows that
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
