/*
 * batches.c
 *		Batches of different sizes, several of them in flight, and groups that are
 *		extracted in portions of different sizes.
 */
#include "device_test.h"

void
case_batch_sizes(context *ctx)
{
	static const uint32_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1023,
	1024, 1025, 4095, 65535, 65536};
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < LENGTH_OF(sizes); i++)
	{
		char		where[64];
		def			d;
		uint64_t	n = sizes[i] * UINT64_C(40) + 13;

		def_init(&d);
		def_key(&d, i % 2 ? 4 : 8, GEN_UNIFORM, 500, 20);
		def_key(&d, 2, GEN_UNIFORM, 5, i % 3 ? 20 : 0);
		def_common_states(&d);
		options.batch_rows = sizes[i];
		snprintf(where, sizeof(where), "%u rows", sizes[i]);
		check_table(ctx, where, &d, n > rows(200000) ? rows(200000) : n, &options, NULL);
	}
}

/* Fewer at once than the device takes, and more (RHH_BUSY). */
void
case_in_flight(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (uint32_t n = 1; n <= MAX_SLOTS; n += n < 4 ? 1 : 4)
	{
		def			d;

		def_init(&d);
		def_key(&d, 4, GEN_UNIFORM, 20000, 1);
		def_common_states(&d);
		d.spec.max_batch_rows = 3000;
		options.in_flight = n;
		check_table(ctx, "", &d, rows(200000), &options, NULL);
	}
}

void
case_extract_chunks(context *ctx)
{
	static const uint32_t chunks[] = {1, 7, 256, 1000, 65536};
	run_options options = default_options;

	options.no_failures = true;
	options.rewind = true;
	for (int i = 0; i < 5; i++)
		for (int shape = 0; shape < 4; shape++)
		{
			static const uint8_t shapes[][2] = {{4, 0}, {8, 0}, {4, 2}, {16, 8}};
			def			d;

			def_init(&d);
			def_key(&d, shapes[shape][0], GEN_UNIFORM, chunks[i] > 7 ? 40000 : 1500, 10);
			if (shapes[shape][1] != 0)
				def_key(&d, shapes[shape][1], GEN_UNIFORM, 3, 0);
			def_common_states(&d);
			options.capacity_groups = chunks[i];
			check_table(ctx, "", &d, chunks[i] > 7 ? rows(150000) : 10000, &options, NULL);
		}
}

/*
 * Batches that are worth partitioning, with many groups and few, with frequent
 * keys and NULLs, where rows are refused and where memory ends.
 */
void
case_large_batches(context *ctx)
{
	static const struct
	{
		uint8_t		widths[2];
		uint64_t	groups;
		uint32_t	cap;
		uint64_t	limit_bytes;
	}			shapes[] = {
		{{4}, 700000, 64, 0},
		{{8}, 700000, 64, 0},
		{{16, 2}, 100000, 64, 0},
		{{4, 2}, 3000, 8, 0},
		{{4}, 10, 8, 0},
		{{1}, 200, 8, 0},
		{{4}, 700000, 1, 0},
		{{8}, 400000, 2, 4 << 20},
		{{16}, 50000, 1, 2 << 20}
	};

	for (size_t i = 0; i < LENGTH_OF(shapes); i++)
		for (int skewed = 0; skewed < 2; skewed++)
		{
			run_options options = default_options;
			/* what is to crowd a table needs more */
			bool		crowded = shapes[i].cap <= 2;
			uint64_t	n = crowded ? enough_rows(1 << 20) : rows(1 << 20);
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, shapes[i].widths[0], skewed ? GEN_SKEWED : GEN_UNIFORM,
					crowded ? enough_rows(shapes[i].groups) : rows(shapes[i].groups),
					i % 2 ? 20 : 0);
			if (shapes[i].widths[1] != 0)
				def_key(&d, shapes[i].widths[1], GEN_UNIFORM, 3, 30);
			def_common_states(&d);
			d.spec.max_batch_rows = (uint32_t) (n / 2 + 7);
			d.spec.max_probe_buckets = shapes[i].cap;
			d.spec.memory_limit_bytes = shapes[i].limit_bytes;
			options.on_device = true;
			options.batch_rows = i % 3 ? d.spec.max_batch_rows : 0;
			options.no_failures = shapes[i].cap == 64 && shapes[i].limit_bytes == 0;
			snprintf(where, sizeof(where), "shape %d%s", (int) i, skewed ? ", skewed" : "");
			check_table(ctx, where, &d, n, &options, NULL);
		}
}
