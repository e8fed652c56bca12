/*
 * table_bench_timing.cuh
 *		Insert, find hit and find miss of every table, against load factor.
 *
 * n = F * slots keys are drawn, uniform over a set of 32 * slots keys (with 1
 * GiB of 4+4-byte slots that is all of the 32-bit keys), so at F = 1 a table is
 * 98.45 % full, whatever its width.  Each repetition has a draw of its own,
 * that all tables get: they insert all n keys into an empty table (equal keys
 * replace), find the n, and find n keys that are not there.
 *
 * A repetition of an operation is split by events into
 *
 *		setup	insert: allocate and clear; find: fill the results with rubbish
 *		launch	the operation: this is the throughput
 *		after	insert: count the entries; find: check every result
 *
 * drops = distinct keys - entries.  A draw with more distinct keys than slots
 * is drawn again, and given up when that does not help (loads above 1).
 */
#ifndef TABLE_BENCH_TIMING_CUH
#define TABLE_BENCH_TIMING_CUH

#include "all_tables.cuh"
#include "table_bench_random.cuh"
#include "table_bench_sort.cuh"

/* What all tables of a repetition get. */
template <typename Word>
struct timing_work
{
	bench_array<Word> keys,
				values,
				miss,
				found;
	bench_array<Word> distinct;	/* in order */
	bench_sorter<Word> sorter;
	bench_checker checker;
	uint64_t	n_distinct = 0;

	explicit timing_work(uint64_t n)
		: keys(n), values(n), miss(n), found(n), distinct(n), sorter(n, false)
	{
	}

	/* False if the keys do not fit into so many slots. */
	bool draw(uint64_t seed, uint64_t sequence, uint64_t slots, uint64_t n)
	{
		const uint64_t domain = 32 * slots;

		for (int tries = 0; tries < 8; tries++)
		{
			bench_random r = {seed, sequence * 16 + tries * 2};

			bench_draw<Word>(r, domain, nullptr, 0, keys.at, n);
			n_distinct = sorter.unique(keys.at, distinct.at, n);
			if (n_distinct > slots)
				continue;
			r.sequence++;
			bench_draw<Word>(r, domain, distinct.at, n_distinct, miss.at, n);
			bench_values(keys.at, values.at, n);
			return true;
		}
		return false;
	}
};

/* A cell is a table, a load and a block size: what it took so far. */
struct timing_cell
{
	double		seconds = 0;
	int			reps = 0;
	std::vector<double> mops[3];
};

struct timing_split
{
	double		setup_ms,
				launch_ms,
				after_ms;
};

static const char *const timing_operations[] = {"insert", "find_hit", "find_miss"};

template <typename Word, typename Tag>
static void
timing_table(const bench_options &opt, bench_csv &csv, timing_work<Word> &work,
			 uint64_t slots, double load, int block, int rep, timing_cell &cell)
{
	typename Tag::table table;
	const uint64_t n = (uint64_t) (load * slots);
	uint64_t	n_entries = 0;
	uint64_t	missing[3] = {0, 0, 0};
	timing_split split[3];
	bench_timer timer;

	/* Enough is known of a slow cell after three. */
	if (cell.reps >= 3 && cell.seconds > opt.cell_seconds)
		return;

	timer.start();
	if (!bench_create(table.name(), [&] { return table.create(slots, 0); }))
	{
		cell.reps = 3;
		cell.seconds = INFINITY;
		table.destroy();
		return;
	}
	BENCH_TRY(table.clear(0));
	split[0].setup_ms = timer.stop_ms();
	timer.start();
	BENCH_TRY(table.insert(work.keys.at, work.values.at, n, block, 0));
	split[0].launch_ms = timer.stop_ms();
	timer.start();
	BENCH_TRY(table.size(&n_entries, 0));
	split[0].after_ms = timer.stop_ms();
	if (n_entries > work.n_distinct)
		bench_problem("%s, load %g: %llu entries of %llu distinct keys", table.name(), load,
					  (unsigned long long) n_entries, (unsigned long long) work.n_distinct);

	for (int op = 1; op < 3; op++)
	{
		Word	   *keys = op == 1 ? work.keys.at : work.miss.at;
		uint64_t	drops = work.n_distinct - n_entries;

		timer.start();
		BENCH_TRY(cudaMemsetAsync(work.found.at, 0x5A, n * sizeof(Word), 0));
		split[op].setup_ms = timer.stop_ms();
		timer.start();
		BENCH_TRY(table.find(keys, work.found.at, n, block, 0));
		split[op].launch_ms = timer.stop_ms();
		timer.start();
		work.checker.check(keys, work.found.at, Tag::has_values, n);
		split[op].after_ms = timer.stop_ms();
		missing[op] = work.checker.absent;
		if (work.checker.wrong != 0 || (op == 1 && drops == 0 && missing[op] != 0) ||
			(op == 2 && missing[op] != n))
			bench_problem("%s, load %g, %s: %llu of %llu wrong, %llu absent", table.name(), load,
						  timing_operations[op], work.checker.wrong, (unsigned long long) n,
						  (unsigned long long) missing[op]);
	}

	for (int op = 0; op < 3; op++)
	{
		double		mops = bench_mops(n, split[op].launch_ms);

		cell.mops[op].push_back(mops);
		cell.seconds += (split[op].setup_ms + split[op].launch_ms + split[op].after_ms) / 1000;
		csv.row("%s,%zu,%zu,%llu,%llu,%g,%d,%s,%d,%llu,%llu,%llu,%lld,%llu,%.5f,%.5f,%.5f,%.2f",
				table.name(), sizeof(Word), Tag::has_values ? sizeof(Word) : 0,
				(unsigned long long) bench_capacity(table, slots, 0),
				(unsigned long long) table.memory_bytes(), load, block,
				timing_operations[op], rep, (unsigned long long) n,
				(unsigned long long) work.n_distinct, (unsigned long long) n_entries,
				(long long) (work.n_distinct - n_entries), (unsigned long long) missing[op],
				split[op].setup_ms, split[op].launch_ms, split[op].after_ms, mops);
	}
	cell.reps++;
	table.destroy();
}

/* Loads every kernel, so that the first measured launch is like the others. */
template <typename Word>
static void
timing_warm_up(const bench_options &opt)
{
	const uint64_t n = 1024;
	timing_work<Word> work(n);

	(void) work.draw(1, 0, 2 * n, n);
	for_each_table<Word>([&](auto tag)
	{
		typename decltype(tag)::table table;
		uint64_t	n_entries;

		if (!opt.wants(table.name()))
			return;
		if (bench_create(table.name(), [&] { return table.create(2 * n, 0); }))
		{
			BENCH_TRY(table.insert(work.keys.at, work.values.at, n, 256, 0));
			BENCH_TRY(table.find(work.keys.at, work.found.at, n, 256, 0));
			BENCH_TRY(table.size(&n_entries, 0));
		}
		table.destroy();
	});
	BENCH_TRY(cudaDeviceSynchronize());
}

template <typename Word>
static void
timing_width(const bench_options &opt, bench_csv &csv)
{
	const uint64_t slots = opt.table_bytes / (2 * sizeof(Word));
	const double max_load = *std::max_element(opt.loads.begin(), opt.loads.end());
	timing_work<Word> work((uint64_t) (max_load * slots));
	uint64_t	sequence = sizeof(Word) << 32;

	timing_warm_up<Word>(opt);
	for (double load : opt.loads)
	{
		std::map<std::pair<std::string, int>, timing_cell> cells;
		std::vector<std::pair<std::string, int>> order;
		const uint64_t n = (uint64_t) (load * slots);
		int			rep;

		for (rep = 0; rep < opt.reps; rep++)
		{
			if (!work.draw(opt.seed, ++sequence, slots, n))
			{
				bench_problem("load %g: %llu distinct keys for %llu slots, whatever is drawn",
							  load, (unsigned long long) work.n_distinct,
							  (unsigned long long) slots);
				break;
			}
			for_each_table<Word>([&](auto tag)
			{
				typedef decltype(tag) Tag;

				if (!opt.wants(Tag::table::name()))
					return;
				for (int block : opt.blocks)
				{
					auto		id = std::make_pair(std::string(Tag::table::name()), block);

					if (rep == 0)
						order.push_back(id);
					timing_table<Word, Tag>(opt, csv, work, slots, load, block, rep, cells[id]);
				}
			});
		}
		bench_say("   %zu+%zu bytes, load %g: M operations/s, insert / find hit / find miss",
				  sizeof(Word), sizeof(Word), load);
		for (const auto &id : order)
		{
			timing_cell &cell = cells[id];

			if (!cell.mops[0].empty())
				bench_say("      %-32s block %4d: %8.0f %8.0f %8.0f  (%zu runs)",
						  id.first.c_str(), id.second, bench_median(cell.mops[0]),
						  bench_median(cell.mops[1]), bench_median(cell.mops[2]),
						  cell.mops[0].size());
		}
	}
}

static void
bench_timing(const bench_options &opt)
{
	bench_csv	csv(opt, "timing",
					"table,key_bytes,value_bytes,slots,memory_bytes,load,block_threads,op,rep,"
					"n_ops,distinct,entries,drops,absent,setup_ms,launch_ms,after_ms,mops");

	timing_width<uint32_t>(opt, csv);
	timing_width<uint64_t>(opt, csv);
}

#endif							/* TABLE_BENCH_TIMING_CUH */
