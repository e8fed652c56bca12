/*
 * table_bench_bandwidth.cuh
 *		What the memory gives, and what share of it the tables use.
 *
 * Ceilings: copies by the API and by a kernel (dram_bytes = 2 * payload), reads
 * of random 32, 64 and 128-byte lines, compare-and-swaps of random words that
 * succeed.  A CAS counts as 64 bytes: its sector is read and written back.
 *
 * Tables: insert with sum reduction, then find, at loads up to 3, where rows
 * are turned away: the probe is capped at 8 lines of 128 bytes, or 8 buckets of
 * 64.  Bytes of an operation are what it must read of the table plus the sectors
 * that an insert dirties; the stream of keys and values is not counted.  Their
 * ceiling is the rate at which that mixture of CASes, random sectors and lines
 * would go at the ceilings above.  A table that partitions its rows first moves
 * something else, and is measured by the ceiling of copies.
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
	uint64_t	buckets;		/* of 64 bytes, read, less the sectors in cas */
	uint64_t	lines;			/* read, by 128 bytes or what follows a sector */
	uint64_t	stream;			/* read and written in order */

	uint64_t all() const
	{
		return cas + sectors + buckets + lines + stream;
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
						  b.buckets / ceiling("read_64") + b.lines / ceiling("read_128") +
						  b.stream / ceiling("copy_kernel"));
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
		csv.row("ceiling,,%s,,,%llu,%.5f,%.2f,%g,%.2f,,,,,", name, (unsigned long long) n, best_ms,
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
		csv.row("ceiling,,%s,,,%llu,%.5f,%.2f,64,%.2f,,,,,", name, (unsigned long long) n, best_ms,
				bench_mops(n, best_ms), ceilings.back().gb_per_s);
		bench_say("      %-24s %8.0f GB/s  %8.0f M/s", name, ceilings.back().gb_per_s,
				  bench_mops(n, best_ms));
	}
};

/* ---------- tables ---------- */

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

/* Of values that are not absent.  Waits. */
template <typename Word>
static uint64_t
bandwidth_sum(const Word *values, uint64_t n)
{
	bench_counter counter;
	unsigned long long *sum = counter.zeroed();

	RHH_LAUNCH(bandwidth_sum_kernel<Word>, std::min(table_blocks(n, 256), 4096u), 256, 0, 0,
			   values, n, sum);
	BENCH_TRY(cudaGetLastError());
	return counter.value();
}

/*
 * A table that adds up, with a capped probe, that tells what it read:
 *
 *	static name(), cas()	cas: the name of its CAS's ceiling
 *	create(n_slots, n), clear(), destroy()
 *							n: rows inserted, at most; create clears
 *	insert_sum(keys, values, n), find(keys, values, n)
 *	turned_away(&n, &sum)	since clear(): entries, and what their values add up to;
 *							false if what it handed back is not what it counted
 *	insert_work(keys, n), find_work(keys, n)		of the last insert, find
 */
struct bandwidth_work
{
	bandwidth_bytes bytes;
	std::string counts;			/* "probes,hits,displacements", if it counts them */
};

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
	cudaError_t create(uint64_t n_slots, uint64_t)
	{
		TABLE_TRY(table.create(n_slots, 0));
		return clear();
	}
	cudaError_t clear()
	{
		table.set_max_probe(8 * 128 / (2 * sizeof(Word)));
		return table.clear(0);
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
	/* Rows, of value 1 each. */
	bool turned_away(uint64_t *n, uint64_t *sum)
	{
		BENCH_TRY(table.failures(n, 0));
		*sum = *n;
		return true;
	}
	bandwidth_work find_work(const Word *keys, uint64_t n)
	{
		uint64_t	sectors;

		BENCH_TRY(table.count_sectors(keys, n, &sectors, 0));
		return bandwidth_work{{0, 32 * n, 0, 32 * (sectors - n), 0}, ",,"};
	}
	/* Whoever is turned away writes nothing. */
	bandwidth_work insert_work(const Word *keys, uint64_t n)
	{
		bandwidth_work work = find_work(keys, n);
		uint64_t	failures;

		BENCH_TRY(table.failures(&failures, 0));
		work.bytes.sectors -= 32 * (n - failures);
		work.bytes.cas = 64 * (n - failures);
		return work;
	}
};

/*
 * rhh::table, by its own counters.  A probe reads a bucket, two sectors.  Of an
 * operation that does not fail one CAS succeeds, and one more for each
 * displacement, whatever becomes of the entry at the chain's end: it is stored,
 * or combined with its key (one each), or handed back, which counts as a
 * failure (none).
 *
 * Many rows for a large table are sorted by their buckets first, and what is
 * sorted finds its buckets together.  What must be moved at least is then each
 * bucket in and out for each chunk that is sorted, and in each pass the keys to
 * count them and the pairs in and out.  DIRECT has the rows in batches that are
 * too small for that, nor are hints made for them.
 */
template <typename Word, bool DIRECT>
struct bandwidth_robin_hood
{
	typedef Word word;
	typedef rhh::table<Word, Word, rhh::sum> table_t;

	static const uint32_t MAX_DIST = 8;

	table_t		table;
	rhh::counters *counters = nullptr;
	rhh::failed<Word> failed = {nullptr, nullptr, nullptr};
	uint64_t	bytes_before_insert = 0;

	static_assert(table_t::S::LINE_BYTES == 64, "the ceiling is that of 64-byte lines");

	static const char *name()
	{
		return DIRECT ? "robin_hood_direct" : "robin_hood";
	}
	static const char *cas()
	{
		return sizeof(Word) == 4 ? "cas_64" : "cas_128";
	}
	cudaError_t create(uint64_t n_slots, uint64_t n)
	{
		TABLE_TRY(cudaMalloc(&failed.keys, n * sizeof(Word)));
		TABLE_TRY(cudaMalloc(&failed.values, n * sizeof(Word)));
		TABLE_TRY(cudaMalloc(&failed.count, sizeof *failed.count));
		TABLE_TRY(cudaMalloc(&counters, sizeof *counters));
		TABLE_TRY(table.create(n_slots, 0, MAX_DIST));
		table.count = counters;
		bytes_before_insert = table.memory_bytes();
		return clear();
	}
	cudaError_t clear()
	{
		TABLE_TRY(cudaMemsetAsync(failed.count, 0, sizeof *failed.count, 0));
		TABLE_TRY(cudaMemsetAsync(counters, 0, sizeof *counters, 0));
		return table.clear(0);
	}
	void destroy()
	{
		cudaFree(failed.keys);
		cudaFree(failed.values);
		cudaFree(failed.count);
		cudaFree(counters);
		failed = {nullptr, nullptr, nullptr};
		counters = nullptr;
		table.destroy();
	}

	/* Has it sorted rows since create()?  Then it has a workspace. */
	bool sorted() const
	{
		return table.memory_bytes() > bytes_before_insert;
	}
	uint64_t batch(uint64_t n) const
	{
		uint64_t	most = table.n_slots() / std::max(RHH_PARTITION_SLOTS_PER_KEY,
													  RHH_HINTS_SLOTS_PER_KEY);

		return DIRECT ? std::min(n, most) : n;
	}
	cudaError_t insert_sum(const Word *keys, const Word *values, uint64_t n)
	{
		for (uint64_t at = 0; at < n; at += batch(n))
			TABLE_TRY(table.insert(keys + at, values + at, std::min(batch(n), n - at), failed, 0));
		return cudaSuccess;
	}
	cudaError_t find(const Word *keys, Word *values, uint64_t n)
	{
		for (uint64_t at = 0; at < n; at += batch(n))
			TABLE_TRY(table.find(keys + at, values + at, std::min(batch(n), n - at),
								 table_absent<Word>(), 0));
		return cudaSuccess;
	}

	/* Before insert_work, which zeroes the counters. */
	bool turned_away(uint64_t *n, uint64_t *sum)
	{
		rhh::counters c;
		unsigned long long n_failed;

		BENCH_TRY(cudaMemcpy(&c, counters, sizeof c, cudaMemcpyDeviceToHost));
		BENCH_TRY(cudaMemcpy(&n_failed, failed.count, sizeof n_failed, cudaMemcpyDeviceToHost));
		*n = n_failed;
		*sum = bandwidth_sum(failed.values, n_failed);
		return c.failures == n_failed;
	}
	rhh::counters take_counters(uint64_t n, std::string *counts)
	{
		rhh::counters c;
		char		text[80];

		BENCH_TRY(cudaMemcpy(&c, counters, sizeof c, cudaMemcpyDeviceToHost));
		BENCH_TRY(cudaMemset(counters, 0, sizeof c));
		if (c.operations != n || (c.probes < n && !sorted()))
			bench_problem("%s: %llu operations and %llu probes counted of %llu rows", name(),
						  (unsigned long long) c.operations, (unsigned long long) c.probes,
						  (unsigned long long) n);
		snprintf(text, sizeof text, "%llu,%llu,%llu", (unsigned long long) c.probes,
				 (unsigned long long) c.hits, (unsigned long long) c.displacements);
		*counts = text;
		return c;
	}
	bandwidth_work insert_work(const Word *, uint64_t n)
	{
		bandwidth_work work = {};
		rhh::counters c = take_counters(n, &work.counts);
		uint64_t	n_cas = c.operations - c.failures + c.displacements;

		if (sorted())
		{
			const uint64_t chunk = RHH_CHUNK_BYTES / table_t::S::BYTES;
			const uint64_t table_bytes = table.n_slots() * table_t::S::BYTES;

			/* 1 + 2 + 2 words, 2 + 2 + 2 words; reading all once is not counted. */
			work.bytes.stream = 11 * sizeof(Word) * n +
				2 * table_bytes * ((n + chunk - 1) / chunk);
		}
		else
		{
			if (c.probes < n_cas)
				bench_problem("%s: %llu CASes after %llu probes", name(),
							  (unsigned long long) n_cas, (unsigned long long) c.probes);
			work.bytes.cas = 64 * n_cas;
			work.bytes.buckets = 64 * c.probes - 32 * n_cas;
		}
		return work;
	}
	/* Hints cost reading the table once; they themselves stay in L2. */
	bandwidth_work find_work(const Word *, uint64_t n)
	{
		bandwidth_work work = {};
		uint32_t	hints_made;

		BENCH_TRY(cudaMemcpy(&hints_made, &table.device().side->hints_made, sizeof hints_made,
							 cudaMemcpyDeviceToHost));
		work.bytes.buckets = 64 * take_counters(n, &work.counts).probes;
		work.bytes.stream = hints_made ? table.n_slots() * table_t::S::BYTES : 0;
		return work;
	}
};

template <typename Visit>
static void
for_each_bandwidth_table(Visit &&visit)
{
	visit(table_tag<bandwidth_robin_hood<uint32_t, false>>());
	visit(table_tag<bandwidth_robin_hood<uint32_t, true>>());
	visit(table_tag<bandwidth_linear<uint32_t>>());
	visit(table_tag<bandwidth_robin_hood<uint64_t, false>>());
	visit(table_tag<bandwidth_robin_hood<uint64_t, true>>());
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

template <typename Table>
static void
bandwidth_table(bandwidth_run &run, double load)
{
	typedef typename Table::word Word;
	const uint64_t slots = run.opt.table_bytes / (2 * sizeof(Word));
	const uint64_t n = (uint64_t) (load * slots);
	/* Six arrays of n, the table and its workspace (rhh::table's is two slots a key). */
	const uint64_t need_bytes = 10 * n * sizeof(Word) + 2 * run.opt.table_bytes;
	size_t		free_bytes,
				total_bytes;

	BENCH_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
	if (need_bytes > free_bytes)
	{
		bench_say("      %s %zu+%zu load %g left out: it takes %.1f GiB, %.1f GiB are free",
				  Table::name(), sizeof(Word), sizeof(Word), load, need_bytes / 1073741824.0,
				  free_bytes / 1073741824.0);
		return;
	}

	bench_array<Word> keys(n),
				values(n),
				found(n),
				distinct(n);
	bench_timer timer;
	Table		table;
	uint64_t	n_distinct,
				n_away = 0,
				away_sum = 0;
	bandwidth_work work[2] = {};
	double		ms[2] = {INFINITY, INFINITY};

	bench_draw<Word>({run.opt.seed, (UINT64_C(3) << 40) + (uint64_t) (load * 1000)},
					 32 * slots, nullptr, 0, keys.at, n);
	{
		bench_sorter<Word> sorter(n, false);

		n_distinct = sorter.unique(keys.at, distinct.at, n);
	}
	RHH_LAUNCH(bandwidth_ones_kernel<Word>, table_blocks(n, 256), 256, 0, 0, values.at, n);
	BENCH_TRY(cudaGetLastError());

	if (!bench_create(table.name(), [&] { return table.create(slots, n); }))
	{
		table.destroy();
		return;
	}
	for (int rep = 0; rep < std::min(run.opt.reps, 3); rep++)
	{
		BENCH_TRY(table.clear());
		timer.start();
		BENCH_TRY(table.insert_sum(keys.at, values.at, n));
		ms[0] = std::min(ms[0], timer.stop_ms());
		if (!table.turned_away(&n_away, &away_sum))
			bench_problem("%s, load %g: %llu entries handed back, another number counted",
						  table.name(), load, (unsigned long long) n_away);
		work[0] = table.insert_work(keys.at, n);
		timer.start();
		BENCH_TRY(table.find(keys.at, found.at, n));
		ms[1] = std::min(ms[1], timer.stop_ms());
		work[1] = table.find_work(keys.at, n);
	}

	/* Every row is in a sum or was turned away. */
	BENCH_TRY(table.find(distinct.at, found.at, n_distinct));

	uint64_t	sum = bandwidth_sum(found.at, n_distinct);

	if (sum + away_sum != n)
		bench_problem("%s, load %g: sums have %llu rows, %llu were turned away, of %llu",
					  table.name(), load, (unsigned long long) sum,
					  (unsigned long long) away_sum, (unsigned long long) n);
	table.destroy();

	for (int op = 0; op < 2; op++)
	{
		const char *name = op == 0 ? "insert_sum" : "find";
		const bandwidth_bytes &bytes = work[op].bytes;
		double		gb_per_s = bytes.all() / ms[op] / 1e6;
		double		ceiling = run.ceiling_of(bytes, table.cas());

		run.csv.row("%s,%zu,%s,%g,%llu,%llu,%.5f,%.2f,%.2f,%.2f,%.2f,%.4f,%s", table.name(),
					sizeof(Word), name, load, (unsigned long long) n_away,
					(unsigned long long) n, ms[op], bench_mops(n, ms[op]),
					(double) bytes.all() / n, gb_per_s, ceiling, gb_per_s / ceiling,
					work[op].counts.c_str());
		bench_say("      %-24s %zu+%zu load %-4g %-10s %8.0f M/s %6.1f bytes each, %5.0f GB/s: "
				  "%3.0f %% of the ceiling", table.name(), sizeof(Word), sizeof(Word), load, name,
				  bench_mops(n, ms[op]), (double) bytes.all() / n, gb_per_s,
				  100 * gb_per_s / ceiling);
	}
}

static void
bench_bandwidth(const bench_options &opt)
{
	bench_csv	csv(opt, "bandwidth",
					"table,key_bytes,op,load,turned_away,n_ops,ms,mops,dram_bytes_per_op,gb_per_s,"
					"ceiling_gb_per_s,share,probes,hits,displacements");
	bandwidth_run run = {opt, csv, {}};

	run.measure_all();
	bench_say("   tables");
	for (double load : {0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0})
		for_each_bandwidth_table([&](auto tag)
		{
			typedef typename decltype(tag)::table Table;

			if (opt.wants(Table::name()))
				bandwidth_table<Table>(run, load);
		});
}

#endif							/* TABLE_BENCH_BANDWIDTH_CUH */
