/*
 * bench.c
 *		--bench: how long one table takes to be built and extracted, without
 *		PostgreSQL.  All batches are laid out before the clock runs.
 */
#include <fnmatch.h>
#include <poll.h>

#include "device_test.h"

typedef struct bench_shape
{
	const char *name;
	uint8_t		key_bytes[3];
	uint64_t	groups;
	bool		skewed;			/* 80 % of the rows have one key */
	bool		five;			/* five states instead of two */
} bench_shape;

static const bench_shape bench_shapes[] = {
	{"4/100", {4}, 100, false, false},
	{"4/1e4", {4}, 10000, false, false},
	{"4/1e5", {4}, 100000, false, false},
	{"4/1e6", {4}, 1000000, false, false},
	{"4/1e7", {4}, 10000000, false, false},
	{"4/1e6 skewed", {4}, 1000000, true, false},
	{"4/1e6 five", {4}, 1000000, false, true},
	{"4+4/1e6", {4, 4}, 1000000, false, false},
	{"8/100", {8}, 100, false, false},
	{"8/1e6", {8}, 1000000, false, false},
	{"8/1e7", {8}, 10000000, false, false},
	{"16/1e6", {16}, 1000000, false, false},
};

/* What bench_one() measures, in a run. */
typedef struct bench_times
{
	double		build_ms;
	double		build_cpu_ms;	/* of all threads */
	double		extract_ms;
} bench_times;

static void
custom_bench_skew(data *data, uint64_t row, rng *r, uint64_t param)
{
	if (below(r, 100) < param)
		put_value(data, 0, row, 42, 0);
}

/* All rows as batches in memory that the device knows, before the clock runs. */
static void
bench_one(device *device, const bench_shape *shape, uint64_t n_rows, double estimate,
		  int repeat)
{
	enum
	{
		BATCH_ROWS = 65536,
		CHUNK = 65536
	};
	const rhh_device_ops *ops = device->ops;
	rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS};
	uint32_t	n_batches = (uint32_t) ((n_rows + BATCH_ROWS - 1) / BATCH_ROWS);
	rhh_batch  *batches = need(n_batches * sizeof(rhh_batch));
	bench_times best = {1e12, 1e12, 1e12};
	uint64_t	n_groups = 0;
	rhh_map_stats stats;
	rhh_error	err;
	rhh_result	result;
	size_t		room;
	uint8_t    *pool;
	def			d;
	int			v;

	def_init(&d);
	for (int k = 0; shape->key_bytes[k] != 0; k++)
		def_key(&d, shape->key_bytes[k], GEN_UNIFORM, k == 0 ? shape->groups : 1, 0);
	if (shape->skewed)
	{
		d.custom = custom_bench_skew;
		d.param = 80;
	}
	v = def_column(&d, 4, GEN_SMALL, 0, 0);
	def_state(&d, RHH_SUM_I64, v, -1);
	def_state(&d, RHH_COUNT, v, -1);
	if (shape->five)
	{
		def_state(&d, RHH_COUNT, -1, -1);
		def_state(&d, RHH_MIN_I64, v, -1);
		def_state(&d, RHH_MAX_I64, v, -1);
	}
	d.spec.expected_groups = (uint64_t) ((double) shape->groups * estimate);
	d.spec.max_probe_buckets = 16;
	d.spec.max_batch_rows = BATCH_ROWS;

	room = batch_room(&d, BATCH_ROWS);
	d.spec.max_batch_bytes = (uint32_t) room;
	if (posix_memalign((void **) &pool, 4096, room * n_batches) != 0)
		die("out of memory");
	for (uint32_t i = 0; i < n_batches; i++)
	{
		uint64_t	n = n_rows - (uint64_t) i * BATCH_ROWS;
		data	   *data = make_data(&d, n < BATCH_ROWS ? n : BATCH_ROWS, i + 1);

		fill_batch(&batches[i], pool + room * i, data, 0, (uint32_t) data->n_rows);
		free_data(data);
	}
	memset(&result, 0, sizeof(result));
	result.capacity_groups = CHUNK;
	result.words = need((size_t) CHUNK * rhh_result_words(&d.spec) * sizeof(uint64_t));

	if (ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK)
		die(err.message);
	(void) ops->register_pool(device->dev, pool, room * n_batches, &err);
	for (int r = 0; r < repeat; r++)
	{
		rhh_map    *table;
		uint32_t	submitted = 0,
					in_flight = 0;
		bool		finished = false,
					finishing = false,
					last = false;
		bench_times t = {0};
		double		start_ms = now_ms();
		double		start_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);

		if (ops->map_create(device->dev, &d.spec, &table, &err) != RHH_OK)
			die(err.message);
		n_groups = 0;
		result.n_groups = 0;
		while (!last)
		{
			struct pollfd fd = {.fd = ops->event_fd(device->dev), .events = POLLIN};
			rhh_event	events[16];
			uint32_t	n;

			while (submitted < n_batches &&
				   ops->map_submit(table, &batches[submitted], 0, &err) == RHH_OK)
				submitted++, in_flight++;
			if (submitted == n_batches && in_flight == 0 && !finishing)
				finishing = ops->map_finish(table, &err) == RHH_OK;
			if (ops->poll(device->dev, events, 16, &n, &err) != RHH_OK)
				die(err.message);
			for (uint32_t e = 0; e < n; e++)
			{
				if (events[e].status != RHH_OK)
					die("a command failed");
				if (events[e].kind == RHH_EVENT_BATCH)
					in_flight--;
				else
				{
					if (events[e].kind == RHH_EVENT_FINISH)
					{
						t.build_ms = now_ms() - start_ms;
						t.build_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) -
							start_cpu_ms;
						start_ms = now_ms();
						finished = true;
					}
					else
					{
						n_groups += result.n_groups;
						last = result.last;
					}
					if (finished && !last &&
						ops->map_extract(table, &result, 0, &err) != RHH_OK)
						die(err.message);
				}
			}
			if (n == 0)
				poll(&fd, 1, 10);
		}
		t.extract_ms = now_ms() - start_ms;
		ops->map_stats(table, &stats);
		ops->map_destroy(table);
		if (t.build_ms < best.build_ms)
			best.build_ms = t.build_ms;
		if (t.build_cpu_ms < best.build_cpu_ms)
			best.build_cpu_ms = t.build_cpu_ms;
		if (t.extract_ms < best.extract_ms)
			best.extract_ms = t.extract_ms;
		if (getenv("BENCH_VERBOSE") != NULL)
			fprintf(stderr, "# build %.1f ms (cpu %.1f, upload %.1f, kernel %.1f), "
					"extract %.1f (device %.1f), rehashes %llu, slots %llu, "
					"failed %llu, orphans %llu, peak %.1f MB\n", t.build_ms,
					t.build_cpu_ms, (double) stats.upload_ns / 1e6,
					(double) stats.kernel_ns / 1e6, t.extract_ms,
					(double) stats.extract_ns / 1e6,
					(unsigned long long) stats.rehashes,
					(unsigned long long) stats.capacity_slots,
					(unsigned long long) stats.refused_rows,
					(unsigned long long) stats.orphans, (double) stats.peak_bytes / 1e6);
	}
	ops->close(device->dev);
	printf("%s,%s,%llu,%llu,%u,%.1f,%.1f,%.1f,%.1f,\n", device->name, shape->name,
		   (unsigned long long) n_rows, (unsigned long long) n_groups, option_threads,
		   best.build_ms * 1e6 / (double) n_rows, best.build_cpu_ms * 1e6 / (double) n_rows,
		   best.extract_ms * 1e6 / (double) n_groups,
		   (double) n_rows / best.build_ms / 1e3);
	fflush(stdout);
	free(pool);
	free(result.words);
	free(batches);
}

void
bench(device *device, uint64_t n_rows, double estimate, int repeat, const char *only)
{
	for (size_t i = 0; i < LENGTH_OF(bench_shapes); i++)
		if (only == NULL || fnmatch(only, bench_shapes[i].name, 0) == 0)
			bench_one(device, &bench_shapes[i], n_rows, estimate, repeat);
}
