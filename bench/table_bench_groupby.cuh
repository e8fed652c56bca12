/*
 * table_bench_groupby.cuh
 *		GROUP BY key: sum(value), count(*) of rows in device memory.
 *
 *	sort		CUB: radix sort by key, then reduce by key
 *	atomics		a row a thread, linear probing, atomic adds; then the groups are
 *				moved together
 *	gpurhh		the CUDA device's own entry points (table_bench_device.cuh)
 *	gpurhh_sum	the same without the count, as cuco's figures are
 *
 * Keys of 4 or 8 bytes, values of 8; uniform over the groups, or Zipf(1.0).  All
 * methods give dense arrays of keys, sums and counts, and must agree on them.
 *
 *	setup	the table is cleared (allocating is not counted)
 *	launch	rows are aggregated
 *	after	groups are moved together
 */
#ifndef TABLE_BENCH_GROUPBY_CUH
#define TABLE_BENCH_GROUPBY_CUH

#include "table_bench_device.cuh"
#include "table_bench_random.cuh"
#include "table_bench_sort.cuh"

/* ---------- rows and answers ---------- */

template <typename Word>
struct groupby_rows
{
	bench_array<Word> keys;
	bench_array<uint64_t> values;
	uint64_t	n,
				n_groups;		/* there are not more */

	explicit groupby_rows(uint64_t n) : keys(n), values(n), n(n), n_groups(0)
	{
	}
};

/* Groups in any order. */
template <typename Word>
struct groupby_groups
{
	bench_array<Word> keys;
	bench_array<bench_aggregate> aggregates;

	explicit groupby_groups(uint64_t capacity) : keys(capacity), aggregates(capacity)
	{
	}
};

/* The same for the same groups, whatever their order. */
struct groupby_answer
{
	uint64_t	n_groups,
				rows,
				sum,
				mixture,
				mixture_of_sums;	/* without the counts */

	bool operator==(const groupby_answer &o) const
	{
		return n_groups == o.n_groups && rows == o.rows && sum == o.sum && mixture == o.mixture &&
			mixture_of_sums == o.mixture_of_sums;
	}
};

static __host__ __device__ inline uint64_t
groupby_mix(uint64_t key, uint64_t sum, uint64_t count)
{
	return bench_scatter(bench_scatter(bench_scatter(key + 1) + sum) + count);
}

template <typename Word>
static __global__ void
groupby_answer_kernel(const Word *keys, const bench_aggregate *groups, uint64_t n,
					  unsigned long long *answer)
{
	unsigned long long mine[4] = {0, 0, 0, 0};

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		mine[0] += groups[i].count;
		mine[1] += groups[i].sum;
		mine[2] += groupby_mix(keys[i], groups[i].sum, groups[i].count);
		mine[3] += groupby_mix(keys[i], groups[i].sum, 0);
	}
	for (int a = 0; a < 4; a++)
		if (mine[a])
			atomicAdd(&answer[a], mine[a]);
}

template <typename Word>
static groupby_answer
groupby_answer_of(const groupby_groups<Word> &groups, uint64_t n_groups)
{
	bench_array<unsigned long long> memory(4);
	unsigned long long a[4];

	BENCH_TRY(cudaMemset(memory.at, 0, sizeof a));
	RHH_LAUNCH(groupby_answer_kernel<Word>, std::min(table_blocks(n_groups, 256), 4096u), 256, 0,
			   0, groups.keys.at, groups.aggregates.at, n_groups, memory.at);
	BENCH_TRY(cudaGetLastError());
	BENCH_TRY(cudaMemcpy(a, memory.at, sizeof a, cudaMemcpyDeviceToHost));
	return groupby_answer{n_groups, a[0], a[1], a[2], a[3]};
}

struct groupby_times
{
	double		setup_ms,
				launch_ms,
				after_ms;
};

/* ---------- sort ---------- */

template <typename Word>
struct groupby_sort
{
	bench_sorter<Word> sorter;
	groupby_groups<Word> groups;

	explicit groupby_sort(uint64_t n) : sorter(n, true), groups(n)
	{
	}
	groupby_answer run(const groupby_rows<Word> &rows, groupby_times *times)
	{
		bench_timer timer;
		uint64_t	n_groups;

		timer.start();
		sorter.group(rows.keys.at, rows.values.at, rows.n, groups.keys.at, groups.aggregates.at);
		*times = groupby_times{0, timer.stop_ms(), 0};
		BENCH_TRY(cudaMemcpy(&n_groups, sorter.n_out.at, sizeof n_groups, cudaMemcpyDeviceToHost));
		return groupby_answer_of(groups, n_groups);
	}
};

/* ---------- atomics ---------- */

/* A group's slot: one sector.  Keys of all ones are empty. */
template <typename Word>
struct groupby_slot;

template <>
struct __align__(16) groupby_slot<uint32_t>
{
	unsigned long long sum;
	uint32_t	key;
	uint32_t	count;
};

template <>
struct __align__(32) groupby_slot<uint64_t>
{
	unsigned long long sum;
	unsigned long long key;
	unsigned long long count;
};

template <typename Word>
static __global__ void
groupby_clear_kernel(groupby_slot<Word> *slots, uint64_t n_slots)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n_slots;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		slots[i].sum = 0;
		slots[i].key = table_empty<Word>();
		slots[i].count = 0;
	}
}

/* There are fewer groups than slots: every probe ends. */
template <typename Word>
static __global__ void
groupby_atomics_kernel(const Word *keys, const uint64_t *values, uint64_t n,
					   groupby_slot<Word> *slots, uint64_t mask)
{
	for (uint64_t r = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; r < n;
		 r += (uint64_t) gridDim.x * blockDim.x)
	{
		Word		key = keys[r];
		uint64_t	i = linear_hash(key) & mask;

		for (;; i = (i + 1) & mask)
		{
			/* A key never changes again: an old one is as good. */
			Word		there = slots[i].key;

			if (there == table_empty<Word>())
				there = atomicCAS(&slots[i].key, table_empty<Word>(), key);
			if (there == key || there == table_empty<Word>())
				break;
		}
		atomicAdd(&slots[i].sum, (unsigned long long) values[r]);
		atomicAdd(&slots[i].count, 1u);
	}
}

template <typename Word>
static __global__ void
groupby_gather_kernel(const groupby_slot<Word> *slots, uint64_t n_slots, Word *keys,
					  bench_aggregate *groups, unsigned long long *n_groups)
{
	rhh_tile<RHH_WARP_SIZE> warp;

	/* Slots are a multiple of a warp: whole warps go round. */
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n_slots;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		Word		key = slots[i].key;
		bool		live = key != table_empty<Word>();
		rhh_lanes	lanes = warp.ballot(live);
		unsigned long long first = 0;

		if (warp.rank == 0 && lanes)
			first = atomicAdd(n_groups, (unsigned long long) rhh_count_lanes(lanes));
		first = warp.shfl(first, 0) + rhh_count_lanes(lanes & (((rhh_lanes) 1 << warp.rank) - 1));
		if (live)
		{
			keys[first] = key;
			groups[first] = bench_aggregate{slots[i].sum, slots[i].count};
		}
	}
}

/* At most half full. */
template <typename Word>
struct groupby_atomics
{
	uint64_t	n_slots;
	bench_array<groupby_slot<Word>> slots;
	groupby_groups<Word> groups;
	bench_counter counter;

	static uint64_t slots_for(uint64_t n_groups)
	{
		uint64_t	n = 64;

		while (n < 2 * n_groups)
			n *= 2;
		return n;
	}
	explicit groupby_atomics(uint64_t n_groups)
		: n_slots(slots_for(n_groups)), slots(n_slots), groups(n_groups)
	{
	}
	groupby_answer run(const groupby_rows<Word> &rows, groupby_times *times)
	{
		bench_timer timer;
		unsigned long long *n_groups = counter.zeroed();

		timer.start();
		RHH_LAUNCH(groupby_clear_kernel<Word>, table_blocks(n_slots, 256), 256, 0, 0, slots.at,
				   n_slots);
		BENCH_TRY(cudaGetLastError());
		times->setup_ms = timer.stop_ms();
		timer.start();
		RHH_LAUNCH(groupby_atomics_kernel<Word>, table_blocks(rows.n, 256), 256, 0, 0,
				   rows.keys.at, rows.values.at, rows.n, slots.at, n_slots - 1);
		BENCH_TRY(cudaGetLastError());
		times->launch_ms = timer.stop_ms();
		timer.start();
		RHH_LAUNCH(groupby_gather_kernel<Word>, table_blocks(n_slots, 256), 256, 0, 0, slots.at,
				   n_slots, groups.keys.at, groups.aggregates.at, n_groups);
		BENCH_TRY(cudaGetLastError());
		times->after_ms = timer.stop_ms();
		return groupby_answer_of(groups, counter.value());
	}
};

/* ---------- the CUDA device ---------- */

template <typename Word>
struct groupby_device
{
	bench_device &device;
	bool		counts;

	groupby_answer run(const groupby_rows<Word> &rows, groupby_times *times)
	{
		groupby_answer answer = {};
		bench_device_times t = {};
		bool		ok = device.aggregate(sizeof(Word), rows.keys.at, rows.values.at, rows.n, counts,
										  &t, [&](uint64_t key, uint64_t sum, uint64_t count)
		{
			answer.n_groups++;
			answer.rows += count;
			answer.sum += sum;
			answer.mixture += groupby_mix((Word) key, sum, count);
			answer.mixture_of_sums += groupby_mix((Word) key, sum, 0);
		});

		if (!ok)
			bench_problem("gpurhh: %s", device.why());
		*times = groupby_times{t.setup_ms, t.kernel_ms, t.extract_ms};
		return answer;
	}
};

/* ---------- the section ---------- */

struct groupby_run
{
	const bench_options &opt;
	bench_csv  &csv;
	bench_device device;

	/* counts: are there any to compare? */
	template <typename Word, typename Method>
	void measure(const char *name, const char *distribution, const groupby_rows<Word> &rows,
				 Method &&method, groupby_answer *expected, bool counts = true)
	{
		const int	reps = std::max(1, std::min(opt.reps, 5));
		std::vector<double> rate,
					whole;
		groupby_answer answer = {};

		/* The first run is not counted. */
		for (int rep = 0; rep <= reps; rep++)
		{
			groupby_times times;

			answer = method.run(rows, &times);
			if (!counts)
			{
				answer.rows = expected->rows;
				answer.mixture = expected->mixture;
			}
			if (expected->rows == 0)
				*expected = answer;
			if (!(answer == *expected) || answer.rows != rows.n)
			{
				bench_problem("%s, %llu groups, %s: another answer (%llu groups, %llu rows, sum %llu)",
							  name, (unsigned long long) rows.n_groups, distribution,
							  (unsigned long long) answer.n_groups,
							  (unsigned long long) answer.rows, (unsigned long long) answer.sum);
				break;
			}
			if (rep == 0)
				continue;

			double		all_ms = times.setup_ms + times.launch_ms + times.after_ms;

			rate.push_back(bench_mops(rows.n, times.launch_ms));
			whole.push_back(bench_mops(rows.n, all_ms));
			csv.row("%s,%zu,%s,%llu,%llu,%llu,%d,%.5f,%.5f,%.5f,%.2f,%.2f", name, sizeof(Word),
					distribution, (unsigned long long) rows.n_groups,
					(unsigned long long) answer.n_groups, (unsigned long long) rows.n, rep - 1,
					times.setup_ms, times.launch_ms, times.after_ms, rate.back(), whole.back());
		}
		bench_say("      %zu-byte keys, %9llu groups, %-7s  %-10s %8.0f M rows/s  (all: %.0f)",
				  sizeof(Word), (unsigned long long) rows.n_groups, distribution, name,
				  bench_median(rate), bench_median(whole));
	}

	template <typename Word>
	void width()
	{
		groupby_rows<Word> rows(opt.n_rows);
		uint64_t	sequence = (UINT64_C(7) << 40) + sizeof(Word) * 1000;

		for (int zipf = 0; zipf < 2; zipf++)
			for (uint64_t n_groups : opt.groups)
			{
				const char *distribution = zipf ? "zipf" : "uniform";
				groupby_answer expected = {};

				rows.n_groups = n_groups;
				RHH_LAUNCH(bench_rows_kernel<Word>, table_blocks(rows.n, 256), 256, 0, 0,
						   bench_random({opt.seed, ++sequence}), n_groups, zipf != 0,
						   rows.keys.at, rows.values.at, rows.n);
				BENCH_TRY(cudaGetLastError());
				BENCH_TRY(cudaDeviceSynchronize());
				measure<Word>("sort", distribution, rows, groupby_sort<Word>(rows.n), &expected);
				measure<Word>("atomics", distribution, rows, groupby_atomics<Word>(n_groups),
							  &expected);
				if (!device.is_open())
					continue;
				measure<Word>("gpurhh", distribution, rows, groupby_device<Word>{device, true},
							  &expected);
				measure<Word>("gpurhh_sum", distribution, rows, groupby_device<Word>{device, false},
							  &expected, false);
			}
	}
};

static void
bench_groupby(const bench_options &opt)
{
	bench_csv	csv(opt, "groupby",
					"method,key_bytes,distribution,groups_asked,groups,rows,rep,setup_ms,launch_ms,"
					"after_ms,mrows_per_s,mrows_per_s_all");
	groupby_run run = {opt, csv, {}};

	if (!run.device.open(opt.n_rows))
		bench_say("   gpurhh left out: %s", run.device.why());
	run.width<uint32_t>();
	run.width<uint64_t>();
}

#endif							/* TABLE_BENCH_GROUPBY_CUH */
