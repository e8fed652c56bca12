/*
 * table_bench_remainders.cuh
 *		What storing remainders only is worth: the compact iceberg table with
 *		slots of 64 bits, which hold a key whole, of 32 and (level 1) of 16.
 *
 * All have the same keys, of at most 37 bits, and, for a size of bucket, the same
 * buckets; only the slots' width differs.  Filled to 0.85 of capacity():
 *
 *	fill			find-or-put of keys that are all new, into the empty table
 *	find_hit		those keys
 *	find_miss		as many others
 *	find_or_put		a batch of a sixteenth of capacity(), every other key of it
 *					there already, onto that load
 *
 * Each repetition has keys of its own; the rates are medians.  The columns
 * memory_share and rate_share are against the 64-bit slots of the same buckets.
 */
#ifndef TABLE_BENCH_REMAINDERS_CUH
#define TABLE_BENCH_REMAINDERS_CUH

#include "all_tables.cuh"
#include "table_bench_compact.cuh"
#include "table_bench_random.cuh"

/* Even places: keys of the numbers from first on; odd ones: from other on. */
static __global__ void
remainders_every_other_kernel(uint64_t first, uint64_t other, int bits, uint64_t *keys, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		keys[i] = bench_key_of_bits((i % 2 ? other : first) + i, bits);
}

enum remainders_operation
{
	REMAINDERS_FILL,
	REMAINDERS_HIT,
	REMAINDERS_MISS,
	REMAINDERS_FIND_OR_PUT,
	REMAINDERS_N
};

static const char *const remainders_names[] = {"fill", "find_hit", "find_miss", "find_or_put"};

struct remainders_result
{
	uint64_t	memory_bytes = 0;	/* 0: not measured */
	double		mops[REMAINDERS_N];
};

struct remainders_run
{
	const bench_options &opt;
	bench_csv  &csv;
	compact_counts counts;

	/* reference: the 64-bit slots' result, or none. */
	template <typename Set>
	remainders_result measure(int bucket, int slot_bits, int slot2_bits,
							  const remainders_result &reference)
	{
		const double load = 0.85;
		const uint64_t asked = opt.table_bytes / 8;
		/* At 2^27 slots 37; as many more than places if there are fewer. */
		const int	bits = std::min(37, compact_bits_for(asked) + 10);
		remainders_result result;
		std::vector<double> mops[REMAINDERS_N];
		uint64_t	full[REMAINDERS_N] = {};
		Set			set;
		bench_timer timer;

		if (!bench_create(Set::name(), [&] { return set.create(asked, bits, 0); }))
		{
			if (set.error()[0])
				bench_say("      %s", set.error());
			set.destroy();
			return result;
		}

		const uint64_t capacity = set.capacity();
		const uint64_t n = (uint64_t) (load * capacity);
		const uint64_t n_more = capacity / 32 * 2;
		bench_array<uint64_t> keys(n);
		bench_array<uint8_t> results(n);

		for (int rep = 0; rep < std::min(opt.reps, 5); rep++)
		{
			/* n that are put, n that are missed, the batch's that are new */
			const uint64_t first = (uint64_t) rep * 3 * capacity;
			uint64_t	n_keys;
			auto		done = [&](int op, uint64_t n_ops, cudaError_t error)
			{
				BENCH_TRY(error);
				mops[op].push_back(bench_mops(n_ops, timer.stop_ms()));
				counts.count(results.at, n_ops);
				full[op] = counts.of[COMPACT_FULL];
			};
			auto		expect = [&](int op, uint64_t got, uint64_t want)
			{
				if (got != want)
					bench_problem("%s, %s: %llu keys, not %llu", Set::name(), remainders_names[op],
								  (unsigned long long) got, (unsigned long long) want);
			};

			bench_distinct_keys_of_bits(first, bits, keys.at, n);
			BENCH_TRY(set.clear(0));
			timer.start();
			done(REMAINDERS_FILL, n, set.find_or_put(keys.at, results.at, n, 256, 0));
			BENCH_TRY(set.size(&n_keys, 0));
			expect(REMAINDERS_FILL, counts.of[COMPACT_PUT], n_keys);
			expect(REMAINDERS_FILL, n_keys + full[REMAINDERS_FILL], n);

			timer.start();
			done(REMAINDERS_HIT, n, set.find(keys.at, results.at, n, 256, 0));
			expect(REMAINDERS_HIT, counts.of[COMPACT_FOUND], n_keys);

			bench_distinct_keys_of_bits(first + capacity, bits, keys.at, n);
			timer.start();
			done(REMAINDERS_MISS, n, set.find(keys.at, results.at, n, 256, 0));
			expect(REMAINDERS_MISS, counts.of[COMPACT_ABSENT], n);

			RHH_LAUNCH(remainders_every_other_kernel, table_blocks(n_more, 256), 256, 0, 0, first,
					   first + 2 * capacity, bits, keys.at, n_more);
			BENCH_TRY(cudaGetLastError());
			timer.start();
			done(REMAINDERS_FIND_OR_PUT, n_more,
				 set.find_or_put(keys.at, results.at, n_more, 256, 0));
			/* What was FULL may be so again. */
			if (full[REMAINDERS_FILL] + full[REMAINDERS_FIND_OR_PUT] == 0)
				expect(REMAINDERS_FIND_OR_PUT, counts.of[COMPACT_FOUND], n_more / 2);
			expect(REMAINDERS_FIND_OR_PUT,
				   counts.of[COMPACT_FOUND] + counts.of[COMPACT_PUT] + counts.of[COMPACT_FULL],
				   n_more);
		}
		result.memory_bytes = set.memory_bytes();
		set.destroy();

		const bool	compared = reference.memory_bytes > 0;
		const double memory_share = compared ? (double) result.memory_bytes / reference.memory_bytes : 0;

		for (int op = 0; op < REMAINDERS_N; op++)
		{
			uint64_t	n_ops = op == REMAINDERS_FIND_OR_PUT ? n_more : n;
			char		shares[48] = ",";

			result.mops[op] = bench_median(mops[op]);
			if (compared)
				snprintf(shares, sizeof shares, "%.4f,%.4f", memory_share,
						 result.mops[op] / reference.mops[op]);
			csv.row("%s,%d,%d,%d,%d,%llu,%llu,%g,%s,%llu,%llu,%.2f,%s", Set::name(), bits, slot_bits,
					slot2_bits, bucket, (unsigned long long) capacity,
					(unsigned long long) result.memory_bytes, load, remainders_names[op],
					(unsigned long long) n_ops, (unsigned long long) full[op], result.mops[op], shares);
		}
		bench_say("      %-28s %5.0f MiB, fill %6.0f hit %6.0f miss %6.0f find-or-put %6.0f M/s",
				  Set::name(), result.memory_bytes / 1048576.0, result.mops[REMAINDERS_FILL],
				  result.mops[REMAINDERS_HIT], result.mops[REMAINDERS_MISS],
				  result.mops[REMAINDERS_FIND_OR_PUT]);
		if (compared && slot_bits < 64)
			bench_say("      %-28s %5.2f times   %4.2f     %4.2f      %4.2f            %4.2f times",
					  "  against 64-bit slots", memory_share,
					  result.mops[REMAINDERS_FILL] / reference.mops[REMAINDERS_FILL],
					  result.mops[REMAINDERS_HIT] / reference.mops[REMAINDERS_HIT],
					  result.mops[REMAINDERS_MISS] / reference.mops[REMAINDERS_MISS],
					  result.mops[REMAINDERS_FIND_OR_PUT] / reference.mops[REMAINDERS_FIND_OR_PUT]);
		return result;
	}
};

static void
bench_remainders(const bench_options &opt)
{
	bench_csv	csv(opt, "remainders",
					"table,key_bits,slot_bits,slot2_bits,bucket,slots,memory_bytes,load,op,n_ops,full,"
					"mops,memory_share,rate_share");
	remainders_run run = {opt, csv, {}};
	remainders_result reference;

	bench_say("   keys of at most 37 bits at 0.85 of all slots");
	for_each_remainder_set([&](auto tag)
	{
		typedef decltype(tag) Tag;

		if (Tag::SLOT_BITS == 64)
			reference = remainders_result();
		if (!opt.wants(Tag::table::name()))
			return;

		remainders_result result = run.measure<typename Tag::table>(Tag::BUCKET, Tag::SLOT_BITS,
																	 Tag::SLOT2_BITS, reference);

		if (Tag::SLOT_BITS == 64)
			reference = result;
	});
}

#endif							/* TABLE_BENCH_REMAINDERS_CUH */
