/*
 * table_bench_bandwidth.cuh
 *		What the memory gives, and what share of it the tables use.
 *
 * Ceilings: copies by the API and by a kernel (dram_bytes = 2 * payload), reads
 * of random 32, 64 and 128-byte lines, compare-and-swaps of random words that
 * succeed.  A CAS counts as 64 bytes: its sector is read and written back.
 *
 * Tables: insert with sum reduction, then find, at loads up to 3, where rows
 * are turned away: the probe is capped at 8 lines of 128 bytes.  Bytes of an
 * operation are what it must read of the table plus the sector that an insert
 * dirties; the stream of keys and values is not counted.  Their ceiling is the
 * rate at which that mixture of CASes, random sectors and lines would go at the
 * ceilings above.
 */
#ifndef TABLE_BENCH_BANDWIDTH_CUH
#define TABLE_BENCH_BANDWIDTH_CUH

#include "all_tables.cuh"
#include "table_bench_random.cuh"
#include "table_bench_sort.cuh"

/* ---------- ceilings ---------- */

/* Bytes, by the ceiling that holds for them. */
struct bandwidth_bytes
{
	uint64_t	cas;			/* of sectors changed: 64 each */
	uint64_t	sectors;		/* read, here and there */
	uint64_t	lines;			/* read, by 128 bytes or what follows a sector */

	uint64_t all() const
	{
		return cas + sectors + lines;
	}
};

static __global__ void
bandwidth_copy_kernel(const uint4 *from, uint4 *to, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		to[i] = from[i];
}

/* n_lines: a power of two.  Four lines in flight a thread. */
template <int BYTES>
static __global__ void
bandwidth_read_kernel(const uint4 *memory, uint64_t n_lines, uint64_t n_reads, uint32_t *sink)
{
	const int	LANES = BYTES / 16;
	uint64_t	thread = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t	step = (uint64_t) gridDim.x * blockDim.x / LANES * 4;
	uint32_t	any = 0;

	for (uint64_t i = thread / LANES * 4; i < n_reads; i += step)
	{
		uint4		v[4];

		for (int j = 0; j < 4; j++)
			v[j] = memory[(bench_scatter(i + j) & (n_lines - 1)) * LANES + thread % LANES];
		for (int j = 0; j < 4; j++)
			any |= v[j].x | v[j].y | v[j].z | v[j].w;
	}
	/* The memory is zero, which the compiler does not know. */
	if (any)
		*sink = any;
}

/* n_words: a power of two, all zero; more operations than that would fail. */
template <int BYTES>
static __global__ void
bandwidth_cas_kernel(uint64_t *memory, uint64_t n_words, uint64_t n_ops, uint32_t *sink)
{
	uint32_t	done = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n_ops;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t	at = bench_scatter(i) & (n_words - 1);

		if constexpr (BYTES == 8)
			done += rhh_cas64(memory + at, 0, i + 1);
		else
			done += rhh_cas128(memory + 2 * at, rhh_pair64{0, 0}, rhh_pair64{i + 1, i + 1});
	}
	if (done == UINT32_MAX)
		*sink = done;
}

struct bandwidth_ceiling
{
	std::string name;
	double		gb_per_s;
};

struct bandwidth_run
{
	const bench_options &opt;
	bench_csv  &csv;
	std::vector<bandwidth_ceiling> ceilings;

	double ceiling(const std::string &name) const
	{
		for (const bandwidth_ceiling &c : ceilings)
			if (c.name == name)
				return c.gb_per_s;
		return INFINITY;
	}

	double ceiling_of(const bandwidth_bytes &b, const char *cas) const
	{
		return b.all() / (b.cas / ceiling(cas) + b.sectors / ceiling("read_32") +
						  b.lines / ceiling("read_128"));
	}

	/* The fastest of some runs after one that does not count. */
	template <typename Launch>
	void measure(const char *name, uint64_t n, double bytes_each, Launch &&launch)
	{
		bench_timer timer;
		double		best_ms = INFINITY;

		for (int rep = 0; rep < 1 + std::max(3, opt.reps / 2); rep++)
		{
			timer.start();
			launch();
			BENCH_TRY(cudaGetLastError());

			double		ms = timer.stop_ms();

			if (rep > 0)
				best_ms = std::min(best_ms, ms);
		}

		double		gb_per_s = n * bytes_each / best_ms / 1e6;

		ceilings.push_back({name, gb_per_s});
		csv.row("ceiling,,%s,,,%llu,%.5f,%.2f,%g,%.2f,,", name, (unsigned long long) n, best_ms,
				bench_mops(n, best_ms), bytes_each, gb_per_s);
		bench_say("      %-24s %8.0f GB/s  %8.0f M/s", name, gb_per_s, bench_mops(n, best_ms));
	}

	void measure_all()
	{
		const uint64_t bytes = opt.table_bytes;
		bench_array<uint4> a(bytes / 16),
					b(bytes / 16);
		bench_array<uint32_t> sink(1);
		int			device,
					major;

		BENCH_TRY(cudaGetDevice(&device));
		BENCH_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
		bench_say("   ceilings");
		BENCH_TRY(cudaMemset(a.at, 0, bytes));
		measure("copy_api", bytes, 2, [&]
		{
			BENCH_TRY(cudaMemcpyAsync(b.at, a.at, bytes, cudaMemcpyDeviceToDevice, 0));
		});
		measure("copy_kernel", bytes, 2, [&]
		{
			RHH_LAUNCH(bandwidth_copy_kernel, table_blocks(bytes / 64, 256), 256, 0, 0, a.at,
					   b.at, bytes / 16);
		});
		measure("read_32", bytes / 32, 32, [&]
		{
			RHH_LAUNCH(bandwidth_read_kernel<32>, table_blocks(bytes / 64, 256), 256, 0, 0, a.at,
					   bytes / 32, bytes / 32, sink.at);
		});
		measure("read_64", bytes / 64, 64, [&]
		{
			RHH_LAUNCH(bandwidth_read_kernel<64>, table_blocks(bytes / 64, 256), 256, 0, 0, a.at,
					   bytes / 64, bytes / 64, sink.at);
		});
		measure("read_128", bytes / 128, 128, [&]
		{
			RHH_LAUNCH(bandwidth_read_kernel<128>, table_blocks(bytes / 64, 256), 256, 0, 0,
					   a.at, bytes / 128, bytes / 128, sink.at);
		});
		/* Runs after the first find the words taken: they are cleared, untimed. */
		measure_cas<8>("cas_64", (uint64_t *) b.at, bytes, sink.at);
		if (major >= 9)
			measure_cas<16>("cas_128", (uint64_t *) b.at, bytes, sink.at);
	}

	template <int BYTES>
	void measure_cas(const char *name, uint64_t *memory, uint64_t bytes, uint32_t *sink)
	{
		const uint64_t n = bytes / BYTES / 4;
		bench_timer timer;
		double		best_ms = INFINITY;

		for (int rep = 0; rep < 4; rep++)
		{
			BENCH_TRY(cudaMemset(memory, 0, bytes));
			timer.start();
			RHH_LAUNCH(bandwidth_cas_kernel<BYTES>, table_blocks(n, 256), 256, 0, 0, memory,
					   bytes / BYTES, n, sink);
			BENCH_TRY(cudaGetLastError());
			best_ms = std::min(best_ms, timer.stop_ms());
		}
		ceilings.push_back({name, n * 64.0 / best_ms / 1e6});
		csv.row("ceiling,,%s,,,%llu,%.5f,%.2f,64,%.2f,,", name, (unsigned long long) n, best_ms,
				bench_mops(n, best_ms), ceilings.back().gb_per_s);
		bench_say("      %-24s %8.0f GB/s  %8.0f M/s", name, ceilings.back().gb_per_s,
				  bench_mops(n, best_ms));
	}
};

/* ---------- tables ---------- */

/*
 * A table that adds up, with a capped probe, that tells what it read:
 *
 *	static name(), cas()	cas: the name of its CAS's ceiling
 *	create(n_slots), destroy()
 *	insert_sum(keys, values, n), find(keys, values, n)
 *	failures()				rows turned away
 *	insert_bytes(keys, n), find_bytes(keys, n)		of the last insert, find
 */
template <typename Word>
struct bandwidth_linear
{
	typedef Word word;
	linear_probing<Word, Word, LINEAR_ONE_CAS> table;

	static const char *name()
	{
		return "linear_one_cas";
	}
	static const char *cas()
	{
		return sizeof(Word) == 4 ? "cas_64" : "cas_128";
	}
	cudaError_t create(uint64_t n_slots)
	{
		TABLE_TRY(table.create(n_slots, 0));
		table.set_max_probe(8 * 128 / (2 * sizeof(Word)));
		return cudaSuccess;
	}
	void destroy()
	{
		table.destroy();
	}
	cudaError_t insert_sum(const Word *keys, const Word *values, uint64_t n)
	{
		return table.insert_sum(keys, values, n, 256, 0);
	}
	cudaError_t find(const Word *keys, Word *values, uint64_t n)
	{
		return table.find(keys, values, n, 256, 0);
	}
	uint64_t failures()
	{
		uint64_t	n;

		BENCH_TRY(table.failures(&n, 0));
		return n;
	}
	bandwidth_bytes find_bytes(const Word *keys, uint64_t n)
	{
		uint64_t	sectors;

		BENCH_TRY(table.count_sectors(keys, n, &sectors, 0));
		return bandwidth_bytes{0, 32 * n, 32 * (sectors - n)};
	}
	/* Whoever is turned away writes nothing. */
	bandwidth_bytes insert_bytes(const Word *keys, uint64_t n)
	{
		bandwidth_bytes b = find_bytes(keys, n);
		uint64_t	n_stored = n - failures();

		b.sectors -= 32 * n_stored;
		b.cas = 64 * n_stored;
		return b;
	}
};

/*
 * THE PLACE for the Robin Hood table: a struct as above whose bytes come from
 * the table's own counters (probes * 128), and a line here for each width.
 */
template <typename Visit>
static void
for_each_bandwidth_table(Visit &&visit)
{
	visit(table_tag<bandwidth_linear<uint32_t>>());
	visit(table_tag<bandwidth_linear<uint64_t>>());
}

template <typename Word>
static __global__ void
bandwidth_ones_kernel(Word *values, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		values[i] = 1;
}

template <typename Word>
static __global__ void
bandwidth_sum_kernel(const Word *values, uint64_t n, unsigned long long *sum)
{
	unsigned long long mine = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		mine += values[i] == table_absent<Word>() ? 0 : values[i];
	if (mine)
		atomicAdd(sum, mine);
}

template <typename Table>
static void
bandwidth_table(bandwidth_run &run, double load)
{
	typedef typename Table::word Word;
	const uint64_t slots = run.opt.table_bytes / (2 * sizeof(Word));
	const uint64_t n = (uint64_t) (load * slots);
	bench_array<Word> keys(n),
				values(n),
				found(n),
				distinct(n);
	bench_counter counter;
	bench_timer timer;
	Table		table;
	uint64_t	n_distinct,
				failures = 0;
	bandwidth_bytes bytes[2] = {};
	double		ms[2] = {INFINITY, INFINITY};

	bench_draw<Word>({run.opt.seed, (UINT64_C(3) << 40) + (uint64_t) (load * 1000)},
					 32 * slots, nullptr, 0, keys.at, n);
	{
		bench_sorter<Word> sorter(n, false);

		n_distinct = sorter.unique(keys.at, distinct.at, n);
	}
	RHH_LAUNCH(bandwidth_ones_kernel<Word>, table_blocks(n, 256), 256, 0, 0, values.at, n);
	BENCH_TRY(cudaGetLastError());

	for (int rep = 0; rep < 3; rep++)
	{
		table.destroy();
		if (!bench_create(table.name(), [&] { return table.create(slots); }))
		{
			table.destroy();
			return;
		}
		timer.start();
		BENCH_TRY(table.insert_sum(keys.at, values.at, n));
		ms[0] = std::min(ms[0], timer.stop_ms());
		failures = table.failures();
		bytes[0] = table.insert_bytes(keys.at, n);
		timer.start();
		BENCH_TRY(table.find(keys.at, found.at, n));
		ms[1] = std::min(ms[1], timer.stop_ms());
		bytes[1] = table.find_bytes(keys.at, n);
	}

	/* Every row is in a sum or was turned away. */
	unsigned long long *sum = counter.zeroed();

	BENCH_TRY(table.find(distinct.at, found.at, n_distinct));
	RHH_LAUNCH(bandwidth_sum_kernel<Word>, std::min(table_blocks(n_distinct, 256), 4096u), 256,
			   0, 0, found.at, n_distinct, sum);
	BENCH_TRY(cudaGetLastError());
	if (counter.value() + failures != n)
		bench_problem("%s, load %g: sums have %llu rows, %llu were turned away, of %llu",
					  table.name(), load, (unsigned long long) counter.value(),
					  (unsigned long long) failures, (unsigned long long) n);
	table.destroy();

	for (int op = 0; op < 2; op++)
	{
		const char *name = op == 0 ? "insert_sum" : "find";
		double		gb_per_s = bytes[op].all() / ms[op] / 1e6;
		double		ceiling = run.ceiling_of(bytes[op], table.cas());

		run.csv.row("%s,%zu,%s,%g,%llu,%llu,%.5f,%.2f,%.2f,%.2f,%.2f,%.4f", table.name(),
					sizeof(Word), name, load, (unsigned long long) failures,
					(unsigned long long) n, ms[op], bench_mops(n, ms[op]),
					(double) bytes[op].all() / n, gb_per_s, ceiling, gb_per_s / ceiling);
		bench_say("      %-24s %zu+%zu load %-4g %-10s %8.0f M/s %6.1f bytes each, %5.0f GB/s: "
				  "%3.0f %% of the ceiling", table.name(), sizeof(Word), sizeof(Word), load, name,
				  bench_mops(n, ms[op]), (double) bytes[op].all() / n, gb_per_s,
				  100 * gb_per_s / ceiling);
	}
}

static void
bench_bandwidth(const bench_options &opt)
{
	bench_csv	csv(opt, "bandwidth",
					"table,key_bytes,op,load,turned_away,n_ops,ms,mops,dram_bytes_per_op,gb_per_s,"
					"ceiling_gb_per_s,share");
	bandwidth_run run = {opt, csv, {}};

	run.measure_all();
	bench_say("   tables");
	for (double load : {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0})
		for_each_bandwidth_table([&](auto tag)
		{
			bandwidth_table<typename decltype(tag)::table>(run, load);
		});
}

#endif							/* TABLE_BENCH_BANDWIDTH_CUH */
