/*
 * table_bench.cuh
 *		What the sections of the table benchmark share: options, arrays, times,
 *		checks, CSV files.
 *
 * Each section is a function that measures, prints its progress and writes
 * PREFIX-SECTION.csv.  What is measured is checked too: an answer that is wrong
 * is counted in bench_problems, and the program then ends with 1.
 */
#ifndef TABLE_BENCH_CUH
#define TABLE_BENCH_CUH

#include "table.cuh"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

struct bench_options
{
	std::string sections = "timing bandwidth papers remainders groupby";
	std::vector<std::string> tables;	/* none: all */
	std::string prefix = "table_bench";
	uint64_t	seed = 20261121;
	int			reps = 16;
	double		cell_seconds = 1.0;
	uint64_t	table_bytes = UINT64_C(1) << 30;
	uint64_t	n_rows = 100000000;
	std::vector<double> loads = {0.5, 0.75, 0.85, 0.95, 1.0};
	std::vector<int> blocks = {256};
	std::vector<uint64_t> groups = {10, 1000, 100000, 1000000, 10000000, 50000000};

	/* Is a table to be measured? */
	bool wants(const std::string &table) const
	{
		return tables.empty() || std::find(tables.begin(), tables.end(), table) != tables.end();
	}
};

/* Things that are wrong; the exit status. */
static int	bench_problems;

static inline void
bench_problem(const char *format, ...)
{
	va_list		args;

	va_start(args, format);
	printf("PROBLEM: ");
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
	bench_problems++;
}

static inline void
bench_say(const char *format, ...)
{
	va_list		args;

	va_start(args, format);
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
}

/* Nothing here survives an error of the device. */
#define BENCH_TRY(call) \
	do { \
		cudaError_t bench_error = (call); \
		if (bench_error != cudaSuccess) \
		{ \
			fprintf(stderr, "table_bench: %s: %s (%s:%d)\n", #call, \
					cudaGetErrorString(bench_error), __FILE__, __LINE__); \
			exit(1); \
		} \
	} while (0)

/* ---------- memory ---------- */

template <typename T>
struct bench_array
{
	T		   *at = nullptr;
	uint64_t	n;

	explicit bench_array(uint64_t n) : n(n)
	{
		BENCH_TRY(cudaMalloc(&at, (n ? n : 1) * sizeof(T)));
	}
	~bench_array()
	{
		cudaFree(at);
	}
	bench_array(const bench_array &) = delete;
	bench_array &operator=(const bench_array &) = delete;
};

/* A counter that kernels add to. */
struct bench_counter
{
	bench_array<unsigned long long> memory{1};

	unsigned long long *zeroed()
	{
		BENCH_TRY(cudaMemset(memory.at, 0, sizeof *memory.at));
		return memory.at;
	}
	uint64_t value()
	{
		unsigned long long v;

		BENCH_TRY(cudaMemcpy(&v, memory.at, sizeof v, cudaMemcpyDeviceToHost));
		return v;
	}
};

/* ---------- time ---------- */

/* Between events of the default stream. */
struct bench_timer
{
	cudaEvent_t begin,
				end;

	bench_timer()
	{
		BENCH_TRY(cudaEventCreate(&begin));
		BENCH_TRY(cudaEventCreate(&end));
	}
	~bench_timer()
	{
		cudaEventDestroy(begin);
		cudaEventDestroy(end);
	}
	bench_timer(const bench_timer &) = delete;
	bench_timer &operator=(const bench_timer &) = delete;

	void start()
	{
		BENCH_TRY(cudaEventRecord(begin, 0));
	}
	double stop_ms()
	{
		float		ms;

		BENCH_TRY(cudaEventRecord(end, 0));
		BENCH_TRY(cudaEventSynchronize(end));
		BENCH_TRY(cudaEventElapsedTime(&ms, begin, end));
		return ms > 0 ? ms : 1e-6;
	}
};

static inline double
bench_median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v.empty() ? 0 : (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

/* Operations of a launch in millions a second. */
static inline double
bench_mops(uint64_t n, double ms)
{
	return n / ms / 1000;
}

/* ---------- results ---------- */

struct bench_csv
{
	FILE	   *file;
	std::string path;

	bench_csv(const bench_options &opt, const char *section, const char *header)
	{
		int			device;
		cudaDeviceProp properties;

		path = opt.prefix + "-" + section + ".csv";
		file = fopen(path.c_str(), "w");
		if (!file)
		{
			fprintf(stderr, "table_bench: could not write %s\n", path.c_str());
			exit(1);
		}
		BENCH_TRY(cudaGetDevice(&device));
		BENCH_TRY(cudaGetDeviceProperties(&properties, device));
		fprintf(file, "# device: %s\n%s\n", properties.name, header);
	}
	~bench_csv()
	{
		fclose(file);
		bench_say("   %s", path.c_str());
	}
	bench_csv(const bench_csv &) = delete;
	bench_csv &operator=(const bench_csv &) = delete;

	void row(const char *format, ...)
	{
		va_list		args;

		va_start(args, format);
		vfprintf(file, format, args);
		va_end(args);
		fputc('\n', file);
		fflush(file);
	}
};

/* ---------- tables ---------- */

/* A table's slots, where it may have others than were asked for. */
template <typename Table>
static auto
bench_capacity(const Table &table, uint64_t, int) -> decltype((uint64_t) table.capacity())
{
	return table.capacity();
}

template <typename Table>
static uint64_t
bench_capacity(const Table &, uint64_t asked, long)
{
	return asked;
}

/*
 * Creates a table; false, and said, if this device cannot have it.  That is
 * lack of memory or of an instruction, not an error.
 */
template <typename Create>
static bool
bench_create(const char *name, Create &&create)
{
	cudaError_t error = create();

	if (error == cudaErrorMemoryAllocation || error == cudaErrorNotSupported ||
		error == cudaErrorInvalidValue)
	{
		bench_say("   %s left out: %s", name, cudaGetErrorString(error));
		(void) cudaGetLastError();
		return false;
	}
	BENCH_TRY(error);
	return true;
}

/* What a key's value is in all benchmarks, so that answers can be checked. */
template <typename Word>
static __host__ __device__ inline Word
bench_value(Word key)
{
	return (Word) (key * (Word) 2654435761u + 12345u) >> 1;	/* not all ones */
}

/*
 * What find returned: counters[0] absent, [1] values that are not the key's
 * (or not 1, of tables without values).
 */
template <typename Word>
static __global__ void
bench_check_kernel(const Word *keys, const Word *values, bool has_values, uint64_t n,
				   unsigned long long *counters)
{
	unsigned long long absent = 0,
				wrong = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		if (values[i] == table_absent<Word>())
			absent++;
		else if (values[i] != (has_values ? bench_value(keys[i]) : 1))
			wrong++;
	}
	if (absent)
		atomicAdd(&counters[0], absent);
	if (wrong)
		atomicAdd(&counters[1], wrong);
}

struct bench_checker
{
	bench_array<unsigned long long> counters{2};
	unsigned long long absent,
				wrong;

	template <typename Word>
	void check(const Word *keys, const Word *values, bool has_values, uint64_t n)
	{
		unsigned long long got[2];

		BENCH_TRY(cudaMemset(counters.at, 0, sizeof got));
		RHH_LAUNCH(bench_check_kernel<Word>, std::min(table_blocks(n, 256), 4096u), 256, 0, 0,
				   keys, values, has_values, n, counters.at);
		BENCH_TRY(cudaGetLastError());
		BENCH_TRY(cudaMemcpy(got, counters.at, sizeof got, cudaMemcpyDeviceToHost));
		absent = got[0];
		wrong = got[1];
	}
};

#endif							/* TABLE_BENCH_CUH */
