/*
 * distributions.c
 *		How rows fall into groups: each key once, one group for all rows, one frequent
 *		key, keys in sequence, and rows whose distribution changes on the way.
 *
 * A device may aggregate rows locally before they go into its table, and changes
 * its mind about that; the last of these cases is for those changes.
 */
#include "device_test.h"

/* From each key once to one key only. */
void
case_duplicates(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 16; bytes *= 2)
		for (uint64_t groups = 1; groups <= (option_divisor > 8 ? 10000u : 10000000u);
			 groups *= 10)
		{
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_UNIFORM, groups, 0);
			def_common_states(&d);
			d.spec.expected_groups = groups;
			snprintf(where, sizeof(where), "%d bytes, %llu groups", bytes,
					 (unsigned long long) groups);
			check_table(ctx, where, &d, groups == 1 ? rows(1000000) : rows(300000),
						&options, NULL);
		}
}

/* One key in most rows, the others in few: Zipf's extreme. */
static void
custom_skew(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	n = UINT64_C(1) << below(r, param);

	put_value(data, 0, row, below(r, n) * 0x9e3779b97f4a7c15ULL, 0);
}

void
case_skew(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 8; bytes *= 2)
	{
		def			d;

		def_init(&d);
		def_key(&d, (uint32_t) bytes, GEN_CUSTOM, 0, 0);
		def_common_states(&d);
		d.custom = custom_skew;
		d.param = 18;
		check_table(ctx, "", &d, rows(500000), &options, NULL);
	}
}

/* Keys 0, 1, 2, ... and multiples: neighbouring values, as serials have. */
static void
custom_sequence(data *data, uint64_t row, rng *r, uint64_t param)
{
	(void) r;
	put_value(data, 0, row, (row % 50000) * param, 0);
}

void
case_sequences(context *ctx)
{
	static const uint64_t steps[] = {1, 2, 8, 1024, 65536, UINT64_C(1) << 32, UINT64_MAX};
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 8; bytes *= 2)
		for (size_t i = 0; i < LENGTH_OF(steps); i++)
		{
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_sequence;
			d.param = steps[i];
			check_table(ctx, "", &d, rows(120000), &options, NULL);
		}
}

/*
 * Distributions that change the way rows go, where a device has several: the CPU
 * device's threads have a local table each in front of shared partitions.
 */
typedef enum mode
{
	MODE_FEW,					/* what a local table holds */
	MODE_OVERFLOW,				/* few, then too many, then few again */
	MODE_SKEW_GROWTH,			/* one key, and ever new ones */
	MODE_LATE,					/* some, then new ones only */
	MODE_RUNS,					/* few, then many, then rows of one key behind each other, old and new */
	MODE_END
} mode;

static void
custom_modes(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	quarter = row * 4 / data->n_rows;
	uint64_t	x = below(r, 500);

	switch ((mode) param)
	{
		case MODE_OVERFLOW:
			if (quarter == 1 || quarter == 2)
				x = below(r, 60000);
			break;
		case MODE_SKEW_GROWTH:
			x = below(r, 5) != 0 ? 7 : row / 3;
			break;
		case MODE_LATE:
			x = quarter == 0 ? below(r, 60) : 10000 + row;
			break;
		case MODE_RUNS:
			if (quarter == 1)
				x = 10000 + row;
			else if (quarter > 1)
				x = row / 300 % 3 == 0 ? row / 300 % 500 : 1000000 + row / 300;
			break;
		default:
			break;
	}
	for (uint32_t k = 0; k < data->d->spec.n_keys; k++)
		put_value(data, data->d->spec.key_column[k], row, x * 0x9e3779b97f4a7c15ULL,
				  rhh_mix64(x));
}

/* Each mode with room, without, with a small probe cap, and cancelled. */
static void
check_modes(context *ctx, uint32_t threads)
{
	static const uint8_t shapes[][4] = {{4}, {2, 1}, {8}, {4, 2}, {4, 4}, {16, 8}};
	const bool	several = ctx->device->info.kind == RHH_KIND_CPU && threads > 1;

	for (size_t s = 0; s < LENGTH_OF(shapes); s++)
		for (int m = 0; m < MODE_END; m++)
			for (int limit = 0; limit < 4; limit++)
			{
				run_options options = default_options;
				rhh_map_stats stats;
				char		where[96];
				def			d;

				def_init(&d);
				for (int k = 0; k < 4 && shapes[s][k] != 0; k++)
					def_key(&d, shapes[s][k], GEN_CUSTOM, 0, k == 0 && m != MODE_RUNS ? 4 : 0);
				def_common_states(&d);
				d.custom = custom_modes;
				d.param = (uint64_t) m;
				d.spec.max_batch_rows = 4096;
				d.spec.expected_groups = 100;
				d.spec.max_probe_buckets = 64;
				options.no_failures = limit == 0;
				if (limit == 1)
					d.spec.memory_limit_bytes = UINT64_C(768) << 10;
				if (limit == 2)
				{
					d.spec.max_probe_buckets = 1;
					d.spec.load_factor = 0.95f;
				}
				if (limit == 3)
					options.cancel_at_batch = 7 + m;
				snprintf(where, sizeof(where), "%u threads, shape %d, mode %d, limit %d",
						 threads, (int) s, m, limit);
				check_table(ctx, where, &d, 100000, &options, &stats);
				if (limit == 1 && (m == MODE_LATE || m == MODE_RUNS) && shapes[s][0] > 2)
				{
					if (stats.refused_rows == 0)
						fault(ctx, where, "no row was handed back: the case tests nothing");
					if (several && threads < 8 && m == MODE_LATE && stats.orphans == 0)
						fault(ctx, where, "all local groups found room: the case tests nothing");
				}
			}
}

void
case_modes(context *ctx)
{
	static const uint32_t threads[] = {1, 2, 3, 8};

	if (ctx->device->info.kind != RHH_KIND_CPU)
	{
		if (option_divisor <= 8)
			check_modes(ctx, 0);
		return;
	}
	for (int i = 0; i < (option_quick ? 2 : 4) && ctx->why[0] == '\0'; i++)
	{
		const uint32_t n = option_quick && i == 1 ? 3 : threads[i];
		device		device;
		context		inner;

		if (!open_with_threads(ctx, n, &device, &inner))
			return;
		check_modes(&inner, n);
		close_with_threads(ctx, &inner);
	}
}
