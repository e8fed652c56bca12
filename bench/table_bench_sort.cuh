/*
 * table_bench_sort.cuh
 *		What the benchmarks sort: by CUB, and where there is no GPU by the
 *		C++ library, so that what is around it can run on simt.h.
 *
 * bench_sorter keeps its memory from call to call.
 */
#ifndef TABLE_BENCH_SORT_CUH
#define TABLE_BENCH_SORT_CUH

#include "table_bench.cuh"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/transform_iterator.h>
#endif

/* A group's aggregates. */
struct bench_aggregate
{
	uint64_t	sum;
	uint64_t	count;
};

struct bench_add
{
	__host__ __device__ bench_aggregate operator()(const bench_aggregate &a,
												   const bench_aggregate &b) const
	{
		return bench_aggregate{a.sum + b.sum, a.count + b.count};
	}
};

struct bench_one_row
{
	__host__ __device__ bench_aggregate operator()(uint64_t value) const
	{
		return bench_aggregate{value, 1};
	}
};

template <typename Word>
struct bench_sorter
{
	uint64_t	max_n;
	bench_array<Word> keys;		/* sorted */
	bench_array<uint64_t> values;	/* sorted with them; empty if never wanted */
	bench_array<uint64_t> n_out{1};
#if defined(__CUDACC__)
	size_t		temp_bytes = 0;
	char	   *temp = nullptr;
#endif

	bench_sorter(uint64_t max_n, bool with_values)
		: max_n(max_n), keys(max_n), values(with_values ? max_n : 0)
	{
#if defined(__CUDACC__)
		size_t		bytes = 0;

		BENCH_TRY(cub::DeviceRadixSort::SortKeys(nullptr, bytes, (const Word *) nullptr,
												 keys.at, max_n));
		temp_bytes = bytes;
		BENCH_TRY(cub::DeviceSelect::Unique(nullptr, bytes, keys.at, (Word *) nullptr,
											n_out.at, max_n));
		temp_bytes = std::max(temp_bytes, bytes);
		if (with_values)
		{
			BENCH_TRY(cub::DeviceRadixSort::SortPairs(nullptr, bytes, (const Word *) nullptr,
													  keys.at, (const uint64_t *) nullptr,
													  values.at, max_n));
			temp_bytes = std::max(temp_bytes, bytes);
			BENCH_TRY(reduce(nullptr, bytes, nullptr, nullptr, max_n));
			temp_bytes = std::max(temp_bytes, bytes);
		}
		BENCH_TRY(cudaMalloc(&temp, temp_bytes));
#endif
	}
	~bench_sorter()
	{
#if defined(__CUDACC__)
		cudaFree(temp);
#endif
	}

	/* Each of n keys once, in order, to distinct (room for n); how many. */
	uint64_t unique(const Word *from, Word *distinct, uint64_t n)
	{
		uint64_t	n_distinct;

#if defined(__CUDACC__)
		BENCH_TRY(cub::DeviceRadixSort::SortKeys(temp, temp_bytes, from, keys.at, n));
		BENCH_TRY(cub::DeviceSelect::Unique(temp, temp_bytes, keys.at, distinct, n_out.at, n));
#else
		std::copy(from, from + n, keys.at);
		std::sort(keys.at, keys.at + n);
		*n_out.at = std::unique_copy(keys.at, keys.at + n, distinct) - distinct;
#endif
		BENCH_TRY(cudaMemcpy(&n_distinct, n_out.at, sizeof n_distinct, cudaMemcpyDeviceToHost));
		return n_distinct;
	}

	/* Sum and count of each key, in keys' order; *n_out.at groups.  No wait. */
	void group(const Word *from, const uint64_t *from_values, uint64_t n, Word *group_keys,
			   bench_aggregate *groups)
	{
#if defined(__CUDACC__)
		BENCH_TRY(cub::DeviceRadixSort::SortPairs(temp, temp_bytes, from, keys.at, from_values,
												  values.at, n));
		BENCH_TRY(reduce(temp, temp_bytes, group_keys, groups, n));
#else
		std::map<Word, bench_aggregate> result;
		uint64_t	g = 0;

		for (uint64_t i = 0; i < n; i++)
		{
			bench_aggregate &to = result[from[i]];

			to = bench_add()(to, bench_one_row()(from_values[i]));
		}
		for (const auto &r : result)
		{
			group_keys[g] = r.first;
			groups[g++] = r.second;
		}
		*n_out.at = g;
#endif
	}

private:
#if defined(__CUDACC__)
	cudaError_t reduce(void *scratch, size_t &bytes, Word *group_keys, bench_aggregate *groups,
					   uint64_t n)
	{
		return cub::DeviceReduce::ReduceByKey(scratch, bytes, keys.at, group_keys,
											  thrust::make_transform_iterator(values.at,
																			  bench_one_row()),
											  groups, n_out.at, bench_add(), n);
	}
#endif
};

#endif							/* TABLE_BENCH_SORT_CUH */
