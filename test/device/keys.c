/*
 * keys.c
 *		Grouping columns: every width alone, several at once, and their NULLs.
 *
 * A device packs several narrow keys into one word and keeps wide ones as several
 * words, so there are shapes on both sides of each bound.
 */
#include "device_test.h"
#include "cpu/rhh_cpu_table.h"

void
case_empty(context *ctx)
{
	static const uint8_t widths[] = {4, 8, 16};

	for (int i = 0; i < 3; i++)
	{
		rhh_map_stats stats;
		def			d;

		def_init(&d);
		def_key(&d, widths[i], GEN_UNIFORM, 10, 0);
		def_common_states(&d);
		check_table(ctx, "", &d, 0, &default_options, &stats);
		if (stats.groups != 0 || stats.rows != 0)
			fault(ctx, "", "an empty table has groups or rows");
	}
}

void
case_one_row(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 1; bytes <= 16; bytes *= 2)
		for (int nulls = 0; nulls <= 256; nulls += 256)
		{
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_PATTERN, 0, (uint32_t) nulls);
			def_common_states(&d);
			check_table(ctx, "", &d, 1, &options, NULL);
		}
}

void
case_key_widths(context *ctx)
{
	static const uint32_t widths[] = {1, 2, 4, 8, 16};
	run_options options = default_options;

	options.no_failures = true;
	for (int i = 0; i < 5; i++)
		for (int nulls = 0; nulls < 2; nulls++)
			for (int pattern = 0; pattern < 2; pattern++)
			{
				char		where[64];
				def			d;

				def_init(&d);
				def_key(&d, widths[i], pattern ? GEN_PATTERN : GEN_UNIFORM, 3000,
						nulls ? 40 : 0);
				def_common_states(&d);
				d.spec.flags = RHH_WANT_PROBE_STATS;
				snprintf(where, sizeof(where), "%u bytes, nulls %d, patterns %d",
						 widths[i], nulls, pattern);
				check_table(ctx, where, &d, rows(100000), &options, NULL);
			}
}

/* Rows with keys of the columns' given widths, of few values and of patterns. */
static void
check_key_shapes(context *ctx, const uint8_t (*shapes)[6], size_t n_shapes, uint64_t n_values)
{
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < n_shapes; i++)
		for (int pattern = 0; pattern < 2; pattern++)
		{
			char		where[64];
			def			d;

			def_init(&d);
			for (int k = 0; k < 6 && shapes[i][k] != 0; k++)
				def_key(&d, shapes[i][k], pattern ? GEN_PATTERN : GEN_UNIFORM, n_values,
						k != 1 ? 30 : 0);
			def_common_states(&d);
			snprintf(where, sizeof(where), "shape %d, patterns %d", (int) i, pattern);
			check_table(ctx, where, &d, rows(60000), &options, NULL);
		}
}

void
case_packed_keys(context *ctx)
{
	static const uint8_t shapes[][6] = {
		{1, 1}, {2, 1}, {4, 2}, {4, 1, 2}, {1, 4}, {2, 2, 2}, {1, 1, 1, 1},
		{1, 1, 1, 4}, {2, 4, 1}
	};

	check_key_shapes(ctx, shapes, LENGTH_OF(shapes), 20);
}

void
case_wide_keys(context *ctx)
{
	static const uint8_t shapes[][6] = {
		{4, 4}, {8, 4}, {8, 8}, {16, 1}, {16, 16}, {4, 4, 4, 4}, {8, 1, 16, 2},
		{1, 2, 4, 8, 16}
	};

	check_key_shapes(ctx, shapes, LENGTH_OF(shapes), 12);
}

/* What keys differ in: all words, or one, where the CPU device has one place for all that it notes of them. */
typedef enum known_kind
{
	KNOWN_ALL_WORDS,
	KNOWN_LAST_LOW,
	KNOWN_LAST_HIGH,			/* of 16 bytes */
	KNOWN_END
} known_kind;

static void
custom_known(data *data, uint64_t row, rng *r, uint64_t param)
{
	const known_kind kind = (known_kind) (param & 3);
	const uint64_t n_later = param >> 2;
	const uint64_t x = below(r, row < data->n_rows / 2 && n_later > 3 ? 3 : n_later);
	const uint32_t last = data->d->spec.n_keys - 1;
	uint64_t	mixed = 0;

	for (uint32_t k = 0; k <= last; k++)
	{
		const uint32_t c = data->d->spec.key_column[k];
		const uint32_t bytes = data->d->spec.column_bytes[c];
		uint64_t	low = rhh_mix64(k + (kind == KNOWN_ALL_WORDS ? 100 * x : 0));
		uint64_t	high = bytes == 16 ? rhh_mix64(low) : 0;

		if (bytes < 8)
			low &= (UINT64_C(1) << 8 * bytes) - 1;
		if (kind != KNOWN_ALL_WORDS && k == last)
		{
			/* mixed with what is before it, x is left */
			const uint64_t differs = mixed ^ x * rhh_inverse_of_odd(RHH_CPU_QUICK_FACTOR);

			low = kind == KNOWN_LAST_LOW || bytes < 16 ? differs : 0;
			high = kind == KNOWN_LAST_LOW || bytes < 16 ? 0 : differs << 32 | differs >> 32;
		}
		mixed = rhh_cpu_quick_hash(mixed, low, high);
		put_value(data, c, row, low, high);
	}
}

static void
check_known(context *ctx)
{
	static const uint8_t shapes[][4] = {{16}, {16, 16}, {8, 8}, {8, 16}, {4, 8}, {1, 2, 4, 16}};
	static const uint64_t groups[] = {2, 4, 16, 17, 300};

	for (size_t s = 0; s < LENGTH_OF(shapes); s++)
		for (size_t g = 0; g < LENGTH_OF(groups); g++)
			for (int kind = 0; kind <= KNOWN_END; kind++)
			{
				/* the same as the first kind, with NULLs */
				const bool	nulls = kind == KNOWN_END;
				run_options options = default_options;
				char		where[64];
				def			d;
				int			filter;

				def_init(&d);
				for (int k = 0; k < 4 && shapes[s][k] != 0; k++)
					def_key(&d, shapes[s][k], GEN_CUSTOM, 0, nulls && k == 0 ? 60 : 0);
				if (kind == KNOWN_LAST_HIGH && d.spec.column_bytes[d.spec.key_column[d.spec.n_keys - 1]] != 16)
					continue;
				filter = def_column(&d, 1, GEN_FILTER, 0, 0);
				def_common_states(&d);
				for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
				{
					int			v = def_column(&d, bytes, bytes < 4 ? GEN_UNIFORM : GEN_EXTREME, 100, bytes == 2 ? 30 : 0);

					def_state(&d, RHH_MIN_I64, v, -1);
					def_state(&d, RHH_MAX_I64, v, g % 2 == 0 ? -1 : filter);
				}
				d.custom = custom_known;
				d.param = groups[g] << 2 | (uint64_t) (nulls ? KNOWN_ALL_WORDS : kind);
				d.spec.max_batch_rows = 4096;
				options.no_failures = true;
				snprintf(where, sizeof(where), "shape %d, %d groups, kind %d", (int) s, (int) groups[g], kind);
				check_table(ctx, where, &d, enough_rows(20000), &options, NULL);
			}
}

/*
 * Few groups of wide keys, and then more: what a device notes of keys that it has met must not be taken for that of others.  The CPU
 * device has one table with one thread, and more with several.
 */
void
case_known_keys(context *ctx)
{
	if (ctx->device->info.kind != RHH_KIND_CPU)
	{
		check_known(ctx);
		return;
	}
	for (uint32_t threads = 1; threads <= 2 && ctx->why[0] == '\0'; threads++)
	{
		device		device;
		context		inner;

		if (!open_with_threads(ctx, threads, &device, &inner))
			return;
		check_known(&inner);
		close_with_threads(ctx, &inner);
	}
}

void
case_32_keys(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int width = 0; width < 2; width++)
	{
		def			d;

		def_init(&d);
		/* all but a few are the same in all rows, so that groups have several rows */
		for (uint32_t k = 0; k < RHH_MAX_KEYS; k++)
			def_key(&d, width == 0 ? 1u << (k % 5) : 16, GEN_UNIFORM,
					k % 8 == 3 ? 5 : 1, k % 8 == 5 ? 20 : 0);
		def_common_states(&d);
		d.spec.max_batch_rows = 4096;
		check_table(ctx, width == 0 ? "mixed" : "16 bytes", &d, rows(40000),
					&options, NULL);
	}
}

/* Rows with keys of the columns' given widths, made by gen, many of them NULL. */
static void
check_null_shapes(context *ctx, const uint8_t (*shapes)[3], size_t n_shapes, gen_kind gen,
				  uint64_t n_values, uint32_t nulls_of_256, uint64_t n_rows)
{
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < n_shapes; i++)
	{
		char		where[32];
		def			d;

		def_init(&d);
		for (int k = 0; k < 3 && shapes[i][k] != 0; k++)
			def_key(&d, shapes[i][k], gen, n_values, nulls_of_256);
		def_common_states(&d);
		snprintf(where, sizeof(where), "shape %d", (int) i);
		check_table(ctx, where, &d, n_rows, &options, NULL);
	}
}

/*
 * The NULL of a column must not be any value of it.  GEN_CUSTOM leaves all values
 * zero, and half of them are NULL.
 */
void
case_null_is_not_zero(context *ctx)
{
	static const uint8_t shapes[][3] = {{1}, {2}, {4}, {8}, {16}, {4, 2}, {8, 8}, {16, 4}};

	check_null_shapes(ctx, shapes, LENGTH_OF(shapes), GEN_CUSTOM, 0, 128, 5000);
}

void
case_all_null(context *ctx)
{
	static const uint8_t shapes[][3] = {{1}, {4}, {8}, {16}, {4, 2}, {8, 8}};

	check_null_shapes(ctx, shapes, LENGTH_OF(shapes), GEN_UNIFORM, 1000, 256, 20000);
}
