/*
 * table_bench_papers.cuh
 *		The experiments of the tables' own papers, repeated here.
 *
 *	linear		Farrell: every operation against load factor, with the lengths
 *				of the probes
 *	slab		Ashkiani et al., "A dynamic hash table for the GPU" (2018):
 *				incremental batches against building anew, and mixtures of
 *				operations in one kernel
 *	compact		Hegeman et al., "Compact parallel hash tables on the GPU" (2024):
 *				fill, look-up and find-or-put
 *
 * The columns published_* have the paper's figure and its GPU where it is a
 * number in the text that is certain; figures in plots are left out (empty).
 */
#ifndef TABLE_BENCH_PAPERS_CUH
#define TABLE_BENCH_PAPERS_CUH

#include "all_tables.cuh"
#include "table_bench_compact.cuh"
#include "table_bench_random.cuh"

/* From the slab hash's abstract: the best of its updates and of its searches. */
static const char *const papers_slab_updates = "512,Tesla K40c,most updates of any experiment";
static const char *const papers_slab_searches = "937,Tesla K40c,most searches of any experiment";
static const char *const papers_unknown = ",,";

/* Times are the best of so many. */
static int
papers_reps(const bench_options &opt)
{
	return std::min(opt.reps, 3);
}

/* ---------- linear probing against load factor ---------- */

template <typename Word, linear_kind KIND>
static void
papers_linear_table(const bench_options &opt, bench_csv &csv, bench_csv &bins_csv, double load)
{
	linear_probing<Word, Word, KIND> table;

	if (!opt.wants(table.name()))
		return;

	const uint64_t slots = opt.table_bytes / 4 / (2 * sizeof(Word));
	const uint64_t n = (uint64_t) (load * slots);
	const uint64_t n_other = slots / 20;
	const uint32_t n_bins = 64;
	/* without reuse a full table would search all of itself for each key */
	const bool	others = load + 0.05 < 0.97 || KIND == LINEAR_REUSE;
	bench_array<Word> keys(n),
				values(n),
				miss(n),
				found(slots),
				found_keys(slots);
	bench_timer timer;
	bench_checker checker;
	uint64_t	bins[n_bins],
				n_entries,
				n_iterated;
	linear_probe_stats stats = {};
	enum {INSERT, HIT, MISS, ITERATE, ERASE, OTHER, N_OPS};
	const char *const names[] = {"insert", "find_hit", "find_miss", "iterate", "erase", "insert_others"};
	double		ms[N_OPS];

	std::fill(ms, ms + N_OPS, INFINITY);
	bench_distinct_keys<Word>(0, keys.at, n);
	bench_distinct_keys<Word>(n, miss.at, n);
	bench_values(keys.at, values.at, n);
	if (!bench_create(table.name(), [&] { return table.create(slots, 0); }))
	{
		table.destroy();
		return;
	}
	for (int rep = 0; rep < papers_reps(opt); rep++)
	{
		auto		best = [&](int op, cudaError_t error)
		{
			BENCH_TRY(error);
			ms[op] = std::min(ms[op], timer.stop_ms());
		};

		BENCH_TRY(table.clear(0));
		timer.start();
		best(INSERT, table.insert(keys.at, values.at, n, 256, 0));
		BENCH_TRY(table.probe_lengths(&stats, bins, n_bins, 0));
		timer.start();
		best(HIT, table.find(keys.at, found.at, n, 256, 0));
		checker.check(keys.at, found.at, true, n);
		if (checker.absent + checker.wrong != 0 || stats.n_entries != n)
			bench_problem("%s, load %g: of %llu keys %llu are absent and %llu wrong", table.name(),
						  load, (unsigned long long) n, checker.absent, checker.wrong);
		timer.start();
		best(MISS, table.find(miss.at, found.at, n, 256, 0));
		timer.start();
		best(ITERATE, table.iterate(found_keys.at, found.at, slots, &n_iterated, 0));
		checker.check(found_keys.at, found.at, true, n_iterated);
		if (n_iterated != n || checker.wrong != 0)
			bench_problem("%s, load %g: %llu pairs iterated, %llu wrong, of %llu", table.name(),
						  load, (unsigned long long) n_iterated, checker.wrong,
						  (unsigned long long) n);
		if (n_other > n)
			continue;
		timer.start();
		best(ERASE, table.erase(keys.at, n_other, 256, 0));
		if (others)
		{
			timer.start();
			best(OTHER, table.insert(miss.at, values.at, n_other, 256, 0));
		}
		BENCH_TRY(table.size(&n_entries, 0));
		if (n_entries != (others ? n : n - n_other))
			bench_problem("%s, load %g: %llu entries after erasing", table.name(), load,
						  (unsigned long long) n_entries);
	}
	table.destroy();

	for (int op = 0; op < N_OPS; op++)
	{
		uint64_t	n_ops = op == ERASE || op == OTHER ? n_other : n;

		if (std::isinf(ms[op]))
			continue;
		csv.row("%s,%zu,%llu,%g,%s,%llu,%.5f,%.2f,%.3f,%llu,%.3f,%.3f,%s", table.name(), sizeof(Word),
				(unsigned long long) slots, load, names[op], (unsigned long long) n_ops, ms[op],
				bench_mops(n_ops, ms[op]), stats.mean, (unsigned long long) stats.max,
				(1 + 1 / (1 - load)) / 2, (1 + 1 / ((1 - load) * (1 - load))) / 2, papers_unknown);
	}
	for (uint32_t b = 0; b < n_bins; b++)
		bins_csv.row("%s,%zu,%g,%u,%s,%llu", table.name(), sizeof(Word), load, b + 1,
					 b + 1 == n_bins ? "or more" : "", (unsigned long long) bins[b]);
	bench_say("      %-16s %zu+%zu load %-4g insert %6.0f hit %6.0f miss %6.0f M/s, "
			  "%.2f slots read on average, %llu at most", table.name(), sizeof(Word), sizeof(Word),
			  load, bench_mops(n, ms[INSERT]), bench_mops(n, ms[HIT]), bench_mops(n, ms[MISS]),
			  stats.mean, (unsigned long long) stats.max);
}

static void
bench_papers_linear(const bench_options &opt)
{
	bench_csv	csv(opt, "papers-linear",
					"table,key_bytes,slots,load,op,n_ops,ms,mops,probe_mean,probe_max,"
					"probe_mean_by_knuth,miss_mean_by_knuth,published_mops,published_gpu,published_what");
	bench_csv	bins(opt, "papers-linear-probes", "table,key_bytes,load,slots_read,more,keys");

	bench_say("   linear probing against load factor");
	for (double load : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95})
	{
		papers_linear_table<uint32_t, LINEAR_TWO_STEP>(opt, csv, bins, load);
		papers_linear_table<uint32_t, LINEAR_ONE_CAS>(opt, csv, bins, load);
		papers_linear_table<uint32_t, LINEAR_REUSE>(opt, csv, bins, load);
		papers_linear_table<uint64_t, LINEAR_TWO_STEP>(opt, csv, bins, load);
		papers_linear_table<uint64_t, LINEAR_REUSE>(opt, csv, bins, load);
	}
}

/* ---------- incremental batches ---------- */

/*
 * A table gets 2M keys in batches; beside each batch's time and that of all so
 * far stands the time to clear and insert everything anew.
 */
template <typename Tag>
static void
papers_incremental(const bench_options &opt, bench_csv &csv, uint64_t batch, uint64_t total)
{
	typename Tag::table table;
	bench_array<uint32_t> keys(total),
				values(total),
				found(total);
	std::vector<double> batch_ms(total / batch, INFINITY);
	std::vector<double> rebuild_ms(total / batch, INFINITY);
	bench_timer timer;
	bench_checker checker;
	double		so_far_ms = 0;

	bench_distinct_keys<uint32_t>(0, keys.at, total);
	bench_values(keys.at, values.at, total);
	if (!bench_create(table.name(), [&] { return table.create(2 * total, 0); }))
	{
		table.destroy();
		return;
	}
	for (int rep = 0; rep < papers_reps(opt); rep++)
	{
		for (uint64_t b = 0; b < total / batch; b++)
		{
			BENCH_TRY(table.clear(0));
			timer.start();
			BENCH_TRY(table.clear(0));
			BENCH_TRY(table.insert(keys.at, values.at, (b + 1) * batch, 256, 0));
			rebuild_ms[b] = std::min(rebuild_ms[b], timer.stop_ms());
		}
		BENCH_TRY(table.clear(0));
		for (uint64_t b = 0; b < total / batch; b++)
		{
			timer.start();
			BENCH_TRY(table.insert(keys.at + b * batch, values.at + b * batch, batch, 256, 0));
			batch_ms[b] = std::min(batch_ms[b], timer.stop_ms());
		}
	}
	BENCH_TRY(table.find(keys.at, found.at, total, 256, 0));
	checker.check(keys.at, found.at, Tag::has_values, total);
	if (checker.absent + checker.wrong != 0)
		bench_problem("%s, batches of %llu: %llu keys absent, %llu wrong", table.name(),
					  (unsigned long long) batch, checker.absent, checker.wrong);

	for (uint64_t b = 0; b < total / batch; b++)
	{
		so_far_ms += batch_ms[b];
		csv.row("%s,%llu,%llu,%.5f,%.2f,%.5f,%.5f,%s", table.name(), (unsigned long long) batch,
				(unsigned long long) ((b + 1) * batch), batch_ms[b], bench_mops(batch, batch_ms[b]),
				so_far_ms, rebuild_ms[b],
				strncmp(table.name(), "slab_hash", 9) == 0 ? papers_slab_updates : papers_unknown);
	}
	bench_say("      %-32s batches of %6llu: %7.0f M/s; all anew, once: %7.0f M/s", table.name(),
			  (unsigned long long) batch, bench_mops(total, so_far_ms),
			  bench_mops(total, rebuild_ms.back()));
	table.destroy();
}

static void
bench_papers_incremental(const bench_options &opt)
{
	const uint64_t total = std::min<uint64_t>(UINT64_C(1) << 21, opt.table_bytes / 32);
	bench_csv	csv(opt, "papers-incremental",
					"table,batch,total,batch_ms,batch_mops,all_batches_ms,rebuild_ms,"
					"published_mops,published_gpu,published_what");

	bench_say("   incremental batches");
	for (uint64_t batch : {total / 64, total / 32, total / 16})
		for_each_table<uint32_t>([&](auto tag)
		{
			if (opt.wants(decltype(tag)::table::name()))
				papers_incremental<decltype(tag)>(opt, csv, batch, total);
		});
}

/* ---------- mixtures ---------- */

struct papers_mixture
{
	const char *name;
	double		insert,
				erase,
				hit,
				miss;
};

static const papers_mixture papers_mixtures[] = {
	{"gamma0", 0.5, 0.5, 0.0, 0.0},
	{"gamma1", 0.2, 0.2, 0.3, 0.3},
	{"gamma2", 0.1, 0.1, 0.4, 0.4},
};

enum papers_operation
{
	PAPERS_INSERT,
	PAPERS_ERASE,
	PAPERS_HIT,
	PAPERS_MISS
};

/* Tables that run operations of several kinds in one kernel: their codes. */
template <typename Table>
struct papers_mixed
{
	static const bool possible = false;
};

template <typename Word, linear_kind KIND>
struct papers_mixed<linear_probing<Word, Word, KIND>>
{
	/* REUSE must not insert and erase at once. */
	static const bool possible = KIND != LINEAR_REUSE;
	static const uint8_t insert = LINEAR_INSERT,
				erase = LINEAR_ERASE,
				find = LINEAR_FIND;

	static cudaError_t run(linear_probing<Word, Word, KIND> &table, const uint8_t *ops,
						   const Word *keys, Word *values, uint64_t n)
	{
		return table.mixed(ops, keys, values, n, 256, 0);
	}
};

template <typename Word, typename Allocator>
struct papers_mixed<slab_hash<Word, Word, Allocator>>
{
	static const bool possible = true;
	static const uint8_t insert = SLAB_REPLACE,
				erase = SLAB_DELETE,
				find = SLAB_SEARCH;

	static cudaError_t run(slab_hash<Word, Word, Allocator> &table, const uint8_t *ops,
						   const Word *keys, Word *values, uint64_t n)
	{
		return table.mixed(ops, keys, values, nullptr, n, 256, 0);
	}
};

/*
 * Operation i, by chance, on a key of its own: erases take key i of those that
 * are there (keys 0..2n-1), hits key n + i, inserts and misses keys 2n + i, 3n + i,
 * which are not there.  kinds: what it is; codes[kinds[i]] what the table calls it.
 */
static __global__ void
papers_mixture_kernel(bench_random r, papers_mixture mixture, uint32_t codes, uint8_t *kinds,
					  uint8_t *ops, uint32_t *keys, uint32_t *values, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		double		u = bench_philox(r, i).x * 0x1p-32;
		int			kind = u < mixture.insert ? PAPERS_INSERT
			: u < mixture.insert + mixture.erase ? PAPERS_ERASE
			: u < mixture.insert + mixture.erase + mixture.hit ? PAPERS_HIT : PAPERS_MISS;
		uint64_t	number = kind == PAPERS_ERASE ? i : kind == PAPERS_HIT ? n + i
			: kind == PAPERS_INSERT ? 2 * n + i : 3 * n + i;

		kinds[i] = (uint8_t) kind;
		ops[i] = (uint8_t) (codes >> 8 * kind);
		keys[i] = bench_key<uint32_t>(number);
		values[i] = bench_value(keys[i]);
	}
}

/* counters[kind]: how many of each; counters[4]: answers that are wrong. */
static __global__ void
papers_mixture_check_kernel(const uint8_t *kinds, const uint32_t *keys, const uint32_t *values,
							uint64_t n, unsigned long long *counters)
{
	unsigned long long mine[5] = {0, 0, 0, 0, 0};

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		for (int k = 0; k < 4; k++)
			mine[k] += kinds[i] == k;
		mine[4] += (kinds[i] == PAPERS_HIT && values[i] != bench_value(keys[i])) ||
			(kinds[i] == PAPERS_MISS && values[i] != table_absent<uint32_t>());
	}
	for (int k = 0; k < 5; k++)
		if (mine[k])
			atomicAdd(&counters[k], mine[k]);
}

template <typename Tag>
static void
papers_mixture_of(const bench_options &opt, bench_csv &csv, const papers_mixture &mixture)
{
	typedef typename Tag::table Table;
	typedef papers_mixed<Table> mixed;

	if constexpr (mixed::possible)
	{
		const uint64_t slots = opt.table_bytes / 8 / 8;
		const uint64_t n = slots / 4;
		const uint32_t codes = mixed::insert | mixed::erase << 8 | mixed::find << 16 |
			(uint32_t) mixed::find << 24;
		Table		table;
		bench_array<uint8_t> kinds(n),
					ops(n);
		bench_array<uint32_t> present(2 * n),
					present_values(2 * n),
					keys(n),
					values(n);
		bench_array<unsigned long long> counters(5);
		unsigned long long counts[5];
		uint64_t	n_entries;
		double		best_ms = INFINITY;
		bench_timer timer;

		bench_distinct_keys<uint32_t>(0, present.at, 2 * n);
		bench_values(present.at, present_values.at, 2 * n);
		if (!bench_create(table.name(), [&] { return table.create(slots, 0); }))
		{
			table.destroy();
			return;
		}
		for (int rep = 0; rep < papers_reps(opt); rep++)
		{
			RHH_LAUNCH(papers_mixture_kernel, table_blocks(n, 256), 256, 0, 0,
					   bench_random({opt.seed, (UINT64_C(5) << 40) + rep}), mixture, codes,
					   kinds.at, ops.at, keys.at, values.at, n);
			BENCH_TRY(cudaGetLastError());
			BENCH_TRY(table.clear(0));
			BENCH_TRY(table.insert(present.at, present_values.at, 2 * n, 256, 0));
			timer.start();
			BENCH_TRY(mixed::run(table, ops.at, keys.at, values.at, n));
			best_ms = std::min(best_ms, timer.stop_ms());

			BENCH_TRY(cudaMemset(counters.at, 0, sizeof counts));
			RHH_LAUNCH(papers_mixture_check_kernel, std::min(table_blocks(n, 256), 4096u), 256, 0,
					   0, kinds.at, keys.at, values.at, n, counters.at);
			BENCH_TRY(cudaGetLastError());
			BENCH_TRY(cudaMemcpy(counts, counters.at, sizeof counts, cudaMemcpyDeviceToHost));
			BENCH_TRY(table.size(&n_entries, 0));
			if (counts[4] != 0 ||
				n_entries != 2 * n + counts[PAPERS_INSERT] - counts[PAPERS_ERASE])
				bench_problem("%s, %s: %llu answers wrong, %llu entries, not %llu", table.name(),
							  mixture.name, counts[4], (unsigned long long) n_entries,
							  (unsigned long long) (2 * n + counts[PAPERS_INSERT] -
													counts[PAPERS_ERASE]));
		}
		csv.row("%s,%s,%g,%g,%g,%g,%llu,%llu,%.5f,%.2f,%s", table.name(), mixture.name,
				mixture.insert, mixture.erase, mixture.hit, mixture.miss,
				(unsigned long long) (2 * n), (unsigned long long) n, best_ms,
				bench_mops(n, best_ms), strncmp(table.name(), "slab_hash", 9) != 0 ? papers_unknown
				: mixture.hit > 0 ? papers_slab_searches : papers_slab_updates);
		bench_say("      %-32s %s: %7.0f M/s", table.name(), mixture.name, bench_mops(n, best_ms));
		table.destroy();
	}
}

static void
bench_papers_mixtures(const bench_options &opt)
{
	bench_csv	csv(opt, "papers-mixtures",
					"table,mixture,insert,delete,search_hit,search_miss,entries_before,n_ops,ms,mops,"
					"published_mops,published_gpu,published_what");

	bench_say("   mixtures of operations");
	for (const papers_mixture &mixture : papers_mixtures)
		for_each_table<uint32_t>([&](auto tag)
		{
			if (opt.wants(decltype(tag)::table::name()))
				papers_mixture_of<decltype(tag)>(opt, csv, mixture);
		});
}

/* ---------- the compact tables ---------- */

/* Cuckoo tables find and put only what differs; they need to sort first. */
template <typename Set>
static auto
papers_find_or_put(Set &set, const uint64_t *keys, uint8_t *results, uint64_t n, int)
	-> decltype(set.find_or_put(keys, results, n, 256, 0))
{
	return set.find_or_put(keys, results, n, 256, 0);
}

template <typename Set>
static cudaError_t
papers_find_or_put(Set &, const uint64_t *, uint8_t *, uint64_t, long)
{
	return cudaErrorNotSupported;
}

/* A share of the keys are numbers 0, 1, ..., the others numbers from first_new on. */
static __global__ void
papers_share_kernel(double share, int bits, uint64_t first_new, uint64_t *keys, uint64_t n)
{
	const uint64_t hundredths = (uint64_t) (share * 100 + 0.5);

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		keys[i] = bench_key_of_bits(i * 37 % 100 < hundredths ? i : first_new + i, bits);
}

struct papers_compact_run
{
	const bench_options &opt;
	bench_csv  &csv;
	compact_counts counts;

	template <typename Set>
	void row(const Set &set, uint64_t memory_bytes, int bits, double load, const char *op,
			 double share, uint64_t n, double ms, uint64_t full)
	{
		csv.row("%s,%d,%llu,%llu,%g,%s,%g,%llu,%llu,%.5f,%.2f,%s", Set::name(), bits,
				(unsigned long long) set.capacity(), (unsigned long long) memory_bytes, load, op,
				share, (unsigned long long) n, (unsigned long long) full, ms, bench_mops(n, ms),
				papers_unknown);
	}

	/* Onto a load, a batch of which a share is there already. */
	template <typename Set>
	void find_or_put(Set &set, uint64_t *keys, uint8_t *results, int bits, double load,
					 uint64_t full, double share)
	{
		const uint64_t n = (uint64_t) (load * set.capacity());
		const uint64_t n_more = set.capacity() / 16;
		bench_timer timer;
		double		ms = INFINITY;

		for (int rep = 0; rep < papers_reps(opt); rep++)
		{
			bench_distinct_keys_of_bits(0, bits, keys, n);
			BENCH_TRY(set.clear(0));
			BENCH_TRY(set.insert(keys, n, 256, 0));
			RHH_LAUNCH(papers_share_kernel, table_blocks(n_more, 256), 256, 0, 0, share, bits,
					   2 * set.capacity(), keys, n_more);
			BENCH_TRY(cudaGetLastError());
			timer.start();

			cudaError_t error = papers_find_or_put(set, keys, results, n_more, 0);

			if (error == cudaErrorNotSupported)
				return;
			BENCH_TRY(error);
			ms = std::min(ms, timer.stop_ms());
			counts.count(results, n_more);
			/* What was turned away before may be put now. */
			if (counts.of[COMPACT_ABSENT] != 0 ||
				(full == 0 && fabs((double) counts.of[COMPACT_FOUND] / n_more - share) > 0.02))
				bench_problem("%s, load %g: find-or-put found %llu of %llu, not %g", Set::name(),
							  load, counts.of[COMPACT_FOUND], (unsigned long long) n_more, share);
		}
		row(set, set.memory_bytes(), bits, load, "find_or_put", share, n_more, ms,
			counts.of[COMPACT_FULL]);
	}

	template <typename Set>
	void sweep()
	{
		const uint64_t asked = opt.table_bytes / 8;
		const int	address_bits = compact_bits_for(asked);
		Set			set;
		int			bits = std::min(37, address_bits + 11);
		cudaError_t error = cudaErrorInvalidValue;

		/* Short slots hold keys of fewer bits. */
		for (int tries = 0; tries < 6 && error == cudaErrorInvalidValue; tries++)
		{
			set.destroy();
			error = set.create(asked, tries == 0 ? bits : --bits, 0);
		}
		if (error != cudaSuccess)
		{
			bench_say("   %s left out: %s", Set::name(),
					  set.error()[0] ? set.error() : cudaGetErrorString(error));
			(void) cudaGetLastError();
			set.destroy();
			return;
		}

		const uint64_t capacity = set.capacity();
		const uint64_t memory_bytes = set.memory_bytes();
		bench_array<uint64_t> keys(capacity);
		bench_array<uint8_t> results(capacity);
		bench_timer timer;

		for (double load : opt.loads)
		{
			if (load > 0.95)
				continue;

			const uint64_t n = (uint64_t) (load * capacity);
			double		fill_ms = INFINITY,
						hit_ms = INFINITY,
						miss_ms = INFINITY;
			uint64_t	full = 0;

			for (int rep = 0; rep < papers_reps(opt); rep++)
			{
				uint64_t	n_keys;

				bench_distinct_keys_of_bits(0, bits, keys.at, n);
				BENCH_TRY(set.clear(0));
				timer.start();
				BENCH_TRY(set.insert(keys.at, n, 256, 0));
				fill_ms = std::min(fill_ms, timer.stop_ms());
				BENCH_TRY(set.size(&n_keys, 0));
				full = n - n_keys;
				timer.start();
				BENCH_TRY(set.find(keys.at, results.at, n, 256, 0));
				hit_ms = std::min(hit_ms, timer.stop_ms());
				counts.count(results.at, n);
				if (counts.of[COMPACT_FOUND] != n_keys || n_keys > n)
					bench_problem("%s, load %g: %llu keys found of %llu that are there", Set::name(),
								  load, counts.of[COMPACT_FOUND], (unsigned long long) n_keys);
				bench_distinct_keys_of_bits(n, bits, keys.at, n);
				timer.start();
				BENCH_TRY(set.find(keys.at, results.at, n, 256, 0));
				miss_ms = std::min(miss_ms, timer.stop_ms());
				counts.count(results.at, n);
				if (counts.of[COMPACT_ABSENT] != n)
					bench_problem("%s, load %g: %llu keys found that are not there", Set::name(),
								  load, (unsigned long long) n - counts.of[COMPACT_ABSENT]);
			}
			row(set, memory_bytes, bits, load, "fill", 0, n, fill_ms, full);
			row(set, memory_bytes, bits, load, "find_hit", 1, n, hit_ms, full);
			row(set, memory_bytes, bits, load, "find_miss", 0, n, miss_ms, full);
			bench_say("      %-40s load %-4g fill %6.0f hit %6.0f miss %6.0f M/s, %llu full",
					  Set::name(), load, bench_mops(n, fill_ms), bench_mops(n, hit_ms),
					  bench_mops(n, miss_ms), (unsigned long long) full);

			for (double share : {0.0, 0.5, 0.9})
				find_or_put(set, keys.at, results.at, bits, load, full, share);
		}
		set.destroy();
	}
};

static void
bench_papers_compact(const bench_options &opt)
{
	bench_csv	csv(opt, "papers-compact",
					"table,key_bits,slots,memory_bytes,load,op,found_share,n_ops,full,ms,mops,"
					"published_mops,published_gpu,published_what");
	papers_compact_run run = {opt, csv, {}};

	bench_say("   compact tables");
	for_each_compact_set([&](auto tag)
	{
		typedef typename decltype(tag)::table Set;

		if (opt.wants(Set::name()))
			run.sweep<Set>();
	});
}

static void
bench_papers(const bench_options &opt)
{
	bench_papers_linear(opt);
	bench_papers_incremental(opt);
	bench_papers_mixtures(opt);
	bench_papers_compact(opt);
}

#endif							/* TABLE_BENCH_PAPERS_CUH */
