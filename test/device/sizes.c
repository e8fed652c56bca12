/*
 * sizes.c
 *		Tables of different sizes: estimates that are wrong, load factors, bounds on
 *		the number of buckets that are searched for a key.
 */
#include "device_test.h"

/* Estimates that are wrong by a factor, in both directions. */
void
case_estimates(context *ctx)
{
	run_options options = default_options;
	uint64_t	groups = enough_rows(600000);
	uint32_t	n_tables = 0;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 8; bytes += 4)
		for (int i = 0; i < 6; i++)
		{
			const uint64_t expected[] = {0, 1, groups / 100, groups, groups * 100,
			UINT64_MAX};
			rhh_map_stats stats;
			char		where[64];
			def			d;

			if (left_out(&n_tables))
				continue;
			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_UNIFORM, groups, 0);
			def_common_states(&d);
			d.spec.expected_groups = expected[i];
			d.spec.max_probe_buckets = 32;
			snprintf(where, sizeof(where), "%d bytes, %llu expected", bytes,
					 (unsigned long long) expected[i]);
			check_table(ctx, where, &d, enough_rows(1200000), &options, &stats);
			if (expected[i] <= 1 && stats.rehashes == 0)
				fault(ctx, where, "the table did not grow");
		}
}

void
case_load_factors(context *ctx)
{
	static const float factors[] = {0.5f, 0.75f, 0.85f, 0.95f};
	run_options options = default_options;

	options.no_failures = true;
	for (int i = 0; i < 4; i++)
		for (int of_expected = 5; of_expected <= 20; of_expected += 5)
			for (int bytes = 4; bytes <= 8; bytes += 4)
			{
				char		where[64];
				def			d;

				def_init(&d);
				d.spec.load_factor = factors[i];
				d.spec.expected_groups = rows(40000);
				d.spec.flags = RHH_WANT_PROBE_STATS;
				d.spec.max_probe_buckets = 64;
				def_key(&d, (uint32_t) bytes, GEN_UNIFORM,
						d.spec.expected_groups * (uint64_t) of_expected / 10, 0);
				def_common_states(&d);
				snprintf(where, sizeof(where), "load factor %.2f, %d0 %% of the estimate",
						 (double) factors[i], of_expected);
				check_table(ctx, where, &d, rows(200000), &options, NULL);
			}
}

void
case_probe_caps(context *ctx)
{
	for (uint32_t cap = 1; cap <= 8; cap++)
		for (int bytes = 4; bytes <= 8; bytes += 4)
		{
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_UNIFORM, 50000, 0);
			def_common_states(&d);
			d.spec.max_probe_buckets = cap;
			d.spec.load_factor = 0.9f;
			d.spec.flags = RHH_WANT_PROBE_STATS;
			snprintf(where, sizeof(where), "cap %u, %d bytes", cap, bytes);
			check_table(ctx, where, &d, rows(200000), &default_options, NULL);
		}
}

/*
 * Keys must find their bucket at once where there is room: with more buckets
 * than 2^16 a partition once took its keys by bits that also chose their home,
 * and used half of its buckets.
 */
void
case_bucket_use(context *ctx)
{
	for (int bytes = 4; bytes <= 8; bytes += 4)
	{
		rhh_map_stats stats;
		char		where[64];
		def			d;

		def_init(&d);
		def_key(&d, (uint32_t) bytes, GEN_UNIFORM, UINT64_C(1) << 32, 0);
		d.spec.expected_groups = rows(3000000);
		d.spec.flags = RHH_WANT_PROBE_STATS;
		snprintf(where, sizeof(where), "%d bytes", bytes);
		check_table(ctx, where, &d, rows(3000000), &default_options, &stats);
		/* 4 slots a bucket: about 1.4 */
		if ((double) stats.probe_buckets_sum > 1.6 * (double) stats.groups)
		{
			char		why[96];

			snprintf(why, sizeof(why), "%.2f buckets are read for a key at a load of %.2f",
					 (double) stats.probe_buckets_sum / (double) stats.groups,
					 (double) stats.groups / (double) stats.capacity_slots);
			fault(ctx, where, why);
		}
	}
}
