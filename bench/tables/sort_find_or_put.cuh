/*
 * sort_find_or_put.cuh
 *		Find-or-put on a table that has only find and put: sort first.
 *
 * The baseline of Hegeman, Wöltgens, Wijs and Laarman ("Compact parallel hash
 * tables on the GPU", Euro-Par 2024) for cuckoo tables, where a key that is
 * being moved is nowhere, so that finding and putting in one kernel would store
 * it twice.  A batch goes through
 *
 *		sort		radix sort of the keys, with their places in the batch if
 *					results are wanted
 *		mark		the first of equal keys ABSENT, the others FOUND
 *		find		those marked ABSENT; FOUND what was there before
 *		put			those still ABSENT: they differ and are not in the table
 *		scatter		results back to the keys' places
 *
 * each one kernel on the stream (the sort several), so that what the table asks
 * for holds.  Equal keys are marked, not squeezed out: skipping them costs the
 * table's tiles a ballot, squeezing another pass over the batch and a count
 * that has to get to the next launch.
 *
 * Keys must have at most key_bits bits; the sort looks at no others.
 *
 * The sort is CUB's; with simt.h std::sort.
 */
#ifndef SORT_FIND_OR_PUT_CUH
#define SORT_FIND_OR_PUT_CUH

#include "compact_set.cuh"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#endif

static __global__ void
sort_places_kernel(uint32_t *places, uint32_t n)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		places[i] = i;
}

template <typename Key>
static __global__ void
sort_mark_kernel(const Key *sorted, uint8_t *marks, uint32_t n)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		marks[i] = i > 0 && sorted[i] == sorted[i - 1] ? COMPACT_FOUND : COMPACT_ABSENT;
}

template <typename Key>
static __global__ void
sort_scatter_kernel(const uint32_t *places, const uint8_t *marks, const Key *sorted_left,
					uint8_t *results, Key *left, uint32_t n)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
	{
		results[places[i]] = marks[i];
		if (left && marks[i] == COMPACT_FULL)
			left[places[i]] = sorted_left[i];
	}
}

/* Table: compact_cuckoo, or what has its find_marked and put_marked. */
template <typename Table>
class sort_find_or_put
{
	typedef typename Table::key_type Key;

	uint32_t	max_batch = 0;
	int			key_bits = 0;
	Key		   *sorted = NULL;
	Key		   *sorted_left = NULL;
	uint8_t    *marks = NULL;
	uint32_t   *places = NULL;	/* 0, 1, 2, ... */
	uint32_t   *sorted_places = NULL;
	void	   *temp = NULL;
	size_t		temp_bytes = 0;

public:
	typedef Key key_type;

	Table		table;

	static const char *name()
	{
		static char text[80];

		snprintf(text, sizeof text, "%s_sort_first", Table::name());
		return text;
	}

	const char *error() const
	{
		return table.error();
	}

	/* As the table's, with room to sort as many keys as it has slots at a time. */
	cudaError_t create(uint64_t n_slots, int bits, cudaStream_t stream)
	{
		return create(n_slots, bits, n_slots < (1u << 30) ? (uint32_t) n_slots : 1u << 30,
					  stream);
	}

	/* batch: keys that are sorted at a time, 1 to 2^30. */
	cudaError_t create(uint64_t n_slots, int bits, uint32_t batch, cudaStream_t stream)
	{
		destroy();
		if (batch < 1 || batch > 1u << 30)
			return cudaErrorInvalidValue;
		TABLE_TRY(table.create(n_slots, bits, stream));
		max_batch = batch;
		key_bits = bits;

		cudaError_t e = cudaMalloc(&sorted, batch * sizeof(Key));

		if (e == cudaSuccess)
			e = cudaMalloc(&sorted_left, batch * sizeof(Key));
		if (e == cudaSuccess)
			e = cudaMalloc(&marks, batch);
		if (e == cudaSuccess)
			e = cudaMalloc(&places, batch * sizeof(uint32_t));
		if (e == cudaSuccess)
			e = cudaMalloc(&sorted_places, batch * sizeof(uint32_t));
		if (e == cudaSuccess)
			e = measure(stream);
		if (e == cudaSuccess)
			e = cudaMalloc((char **) &temp, temp_bytes);
		if (e == cudaSuccess)
		{
			RHH_LAUNCH(sort_places_kernel, table_blocks(batch, 256), 256, 0, stream, places,
					   batch);
			e = cudaGetLastError();
		}
		if (e != cudaSuccess)
			destroy();
		return e;
	}

	void destroy()
	{
		table.destroy();
		cudaFree(sorted);
		cudaFree(sorted_left);
		cudaFree(marks);
		cudaFree(places);
		cudaFree(sorted_places);
		cudaFree(temp);
		sorted = sorted_left = NULL;
		marks = NULL;
		places = sorted_places = NULL;
		temp = NULL;
		temp_bytes = 0;
		max_batch = 0;
	}

	cudaError_t clear(cudaStream_t stream)
	{
		return table.clear(stream);
	}

	/*
	 * results[i] (unless results is NULL) becomes FOUND, PUT or FULL; of equal keys
	 * one is PUT or FULL and the others are FOUND.  Where it is FULL left[i] (unless
	 * NULL: then the key is lost) becomes a key that is not in the table, whatever
	 * its result, as explained in compact_cuckoo.cuh.
	 */
	cudaError_t find_or_put(const Key *keys, uint8_t *results, uint64_t n,
							int block_threads, cudaStream_t stream, Key *left = NULL)
	{
		if (left && !results)
			return cudaErrorInvalidValue;
		for (uint64_t at = 0; at < n; at += max_batch)
		{
			uint32_t	m = n - at < max_batch ? (uint32_t) (n - at) : max_batch;
			unsigned	blocks = table_blocks(m, 256);

			TABLE_TRY(sort(keys + at, m, results != NULL, stream));
			RHH_LAUNCH(sort_mark_kernel<Key>, blocks, 256, 0, stream, sorted, marks, m);
			TABLE_TRY(cudaGetLastError());
			TABLE_TRY(table.find_marked(sorted, marks, m, block_threads, stream));
			TABLE_TRY(table.put_marked(sorted, marks, m, block_threads, stream,
									   left ? sorted_left : NULL));
			if (results)
			{
				RHH_LAUNCH(sort_scatter_kernel<Key>, blocks, 256, 0, stream, sorted_places,
						   marks, sorted_left, results + at, left ? left + at : NULL, m);
				TABLE_TRY(cudaGetLastError());
			}
		}
		return cudaSuccess;
	}

	cudaError_t insert(const Key *keys, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return find_or_put(keys, NULL, n, block_threads, stream);
	}

	cudaError_t find(const Key *keys, uint8_t *results, uint64_t n, int block_threads,
					 cudaStream_t stream)
	{
		return table.find(keys, results, n, block_threads, stream);
	}

	template <typename Out>
	cudaError_t find_as(const Key *keys, Out *out, Out yes, Out no, uint64_t n,
						int block_threads, cudaStream_t stream)
	{
		return table.find_as(keys, out, yes, no, n, block_threads, stream);
	}

	cudaError_t size(uint64_t *n_keys, cudaStream_t stream)
	{
		return table.size(n_keys, stream);
	}

	cudaError_t extract(Key *keys, uint64_t *n_keys, cudaStream_t stream)
	{
		return table.extract(keys, n_keys, stream);
	}

	uint64_t capacity() const
	{
		return table.capacity();
	}

	uint64_t memory_bytes() const
	{
		return table.memory_bytes() + temp_bytes +
			(uint64_t) max_batch * (2 * sizeof(Key) + 2 * sizeof(uint32_t) + 1);
	}

private:
#if defined(__CUDACC__)
	/* Sets temp_bytes to what either sort needs. */
	cudaError_t measure(cudaStream_t stream)
	{
		size_t		keys_bytes = 0;
		size_t		pairs_bytes = 0;

		TABLE_TRY(cub::DeviceRadixSort::SortKeys(NULL, keys_bytes, (const Key *) NULL,
												 (Key *) NULL, max_batch, 0, key_bits,
												 stream));
		TABLE_TRY(cub::DeviceRadixSort::SortPairs(NULL, pairs_bytes, (const Key *) NULL,
												  (Key *) NULL, (const uint32_t *) NULL,
												  (uint32_t *) NULL, max_batch, 0, key_bits,
												  stream));
		temp_bytes = keys_bytes > pairs_bytes ? keys_bytes : pairs_bytes;
		return cudaSuccess;
	}

	cudaError_t sort(const Key *keys, uint32_t n, bool with_places, cudaStream_t stream)
	{
		size_t		bytes = temp_bytes;

		if (!with_places)
			return cub::DeviceRadixSort::SortKeys(temp, bytes, keys, sorted, n, 0, key_bits,
												  stream);
		return cub::DeviceRadixSort::SortPairs(temp, bytes, keys, sorted,
											   (const uint32_t *) places, sorted_places, n,
											   0, key_bits, stream);
	}
#else
	cudaError_t measure(cudaStream_t)
	{
		temp_bytes = 1;
		return cudaSuccess;
	}

	cudaError_t sort(const Key *keys, uint32_t n, bool, cudaStream_t)
	{
		std::copy(places, places + n, sorted_places);
		std::stable_sort(sorted_places, sorted_places + n,
						 [keys](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
		for (uint32_t i = 0; i < n; i++)
			sorted[i] = keys[sorted_places[i]];
		return cudaSuccess;
	}
#endif
};

#endif							/* SORT_FIND_OR_PUT_CUH */
