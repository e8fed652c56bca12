/*
 * table_bench_compact.cuh
 *		What the compact tables' results are, counted.
 */
#ifndef TABLE_BENCH_COMPACT_CUH
#define TABLE_BENCH_COMPACT_CUH

#include "compact_set.cuh"
#include "table_bench.cuh"

/* counters[r]: results that are r, of compact_result. */
static __global__ void
compact_counts_kernel(const uint8_t *results, uint64_t n, unsigned long long *counters)
{
	unsigned long long mine[4] = {0, 0, 0, 0};

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		for (int r = 0; r < 4; r++)
			mine[r] += results[i] == r;
	for (int r = 0; r < 4; r++)
		if (mine[r])
			atomicAdd(&counters[r], mine[r]);
}

struct compact_counts
{
	bench_array<unsigned long long> counters{4};
	unsigned long long of[4];	/* by compact_result */

	/* Waits. */
	void count(const uint8_t *results, uint64_t n)
	{
		BENCH_TRY(cudaMemset(counters.at, 0, sizeof of));
		RHH_LAUNCH(compact_counts_kernel, std::min(table_blocks(n, 256), 4096u), 256, 0, 0,
				   results, n, counters.at);
		BENCH_TRY(cudaGetLastError());
		BENCH_TRY(cudaMemcpy(of, counters.at, sizeof of, cudaMemcpyDeviceToHost));
	}
};

#endif							/* TABLE_BENCH_COMPACT_CUH */
