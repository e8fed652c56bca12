/*
 * bench_join.c
 *		--bench: how long the build side of a join takes to be kept and finished, and how
 *		long a table takes whose rows are the join's output.
 *
 * All batches are laid out before the clock runs.  The table sums up a column of the build
 * side, in one group, so that nearly all time is the join's.
 */
#include <fnmatch.h>
#include <poll.h>

#include "device_test.h"

#define BATCH_ROWS 65536u

typedef struct join_shape
{
	const char *name;
	uint8_t		key_bytes[3];
	uint64_t	build_rows;
	uint32_t	copies;			/* rows of each key */
	uint32_t	hits_of_256;	/* rows of the probe side with a match */
	rhh_join_kind kind;
} join_shape;

static const join_shape join_shapes[] = {
	{"join 4/1e4", {4}, 10000, 1, 256, RHH_JOIN_INNER},
	{"join 4/1e6", {4}, 1000000, 1, 256, RHH_JOIN_INNER},
	{"join 4/1e7", {4}, 10000000, 1, 256, RHH_JOIN_INNER},
	{"join 4/1e6 half", {4}, 1000000, 1, 128, RHH_JOIN_INNER},
	{"join 4/1e6 few", {4}, 1000000, 1, 5, RHH_JOIN_INNER},
	{"join 4/1e7 few", {4}, 10000000, 1, 5, RHH_JOIN_INNER},
	{"join 4/1e6 left", {4}, 1000000, 1, 128, RHH_JOIN_LEFT},
	{"join 4/1e6 semi", {4}, 1000000, 1, 128, RHH_JOIN_SEMI},
	{"join 4/1e6 x4", {4}, 1000000, 4, 256, RHH_JOIN_INNER},
	{"join 4/1e7 x100", {4}, 10000000, 100, 5, RHH_JOIN_INNER},
	{"join 8/1e6", {8}, 1000000, 1, 256, RHH_JOIN_INNER},
	{"join 4+4/1e6", {4, 4}, 1000000, 1, 256, RHH_JOIN_INNER},
	{"join 16+8/1e6", {16, 8}, 1000000, 1, 256, RHH_JOIN_INNER},
};

/* Batches in memory that the device knows, and behind them room for refused rows. */
typedef struct batches
{
	rhh_batch  *batches;
	uint32_t	n;
	uint8_t    *pool;
	size_t		pool_bytes;
} batches;

/* Keys that are numbers below n_keys, of the probe side beyond n_keys where none matches. */
static void
custom_join_bench(data *data, uint64_t row, rng *r, uint64_t param)
{
	const join_shape *shape = (const join_shape *) (uintptr_t) param;
	uint64_t	n_keys = shape->build_rows / shape->copies;
	bool		build = (data->d->spec.flags & RHH_KEEP_ROWS) != 0;
	/* rows of a batch follow those of the batch before it */
	uint64_t	x = build ? (row + data->d->gens[0].n) % n_keys : below(r, n_keys);

	if (!build && below(r, 256) >= shape->hits_of_256)
		x += n_keys;
	for (uint32_t c = 0; c < 3 && shape->key_bytes[c] != 0; c++)
		put_value(data, c, row, x * 0x9e3779b97f4a7c15ULL, rhh_mix64(x));
}

/* Lays out n_rows rows. */
static void
make_batches(batches *b, def *d, uint64_t n_rows, uint64_t room_bytes)
{
	size_t		room = batch_room(d, BATCH_ROWS);

	memset(b, 0, sizeof(*b));
	b->n = (uint32_t) ((n_rows + BATCH_ROWS - 1) / BATCH_ROWS);
	b->batches = need(b->n * sizeof(rhh_batch));
	b->pool_bytes = room * b->n + room_bytes;
	if (posix_memalign((void **) &b->pool, 4096, b->pool_bytes) != 0)
		die("out of memory");
	for (uint32_t i = 0; i < b->n; i++)
	{
		uint64_t	first = (uint64_t) i * BATCH_ROWS;
		uint64_t	n = n_rows - first < BATCH_ROWS ? n_rows - first : BATCH_ROWS;
		data	   *data;

		d->gens[0].n = first;
		data = make_data(d, n, i + 1);
		fill_batch(&b->batches[i], b->pool + room * i, data, 0, (uint32_t) n);
		if (room_bytes > 0)
		{
			/* one room for all, because nothing is refused */
			b->batches[i].refused_offset = (uint32_t) (room * (b->n - i));
			b->batches[i].refused_rows = BATCH_ROWS;
		}
		free_data(data);
	}
	d->spec.max_batch_rows = BATCH_ROWS;
	d->spec.max_batch_bytes = (uint32_t) room;
}

/* Submits all batches to a table and finishes it. */
static void
fill_table(device *device, rhh_map *table, const batches *b)
{
	const rhh_device_ops *ops = device->ops;
	uint32_t	submitted = 0,
				in_flight = 0;
	bool		finishing = false;
	rhh_error	err;

	for (;;)
	{
		struct pollfd fd = {.fd = ops->event_fd(device->dev), .events = POLLIN};
		rhh_event	events[16];
		uint32_t	n;

		while (submitted < b->n &&
			   ops->map_submit(table, &b->batches[submitted], 0, &err) == RHH_OK)
			submitted++, in_flight++;
		if (submitted == b->n && in_flight == 0 && !finishing)
			finishing = ops->map_finish(table, &err) == RHH_OK;
		if (ops->poll(device->dev, events, 16, &n, &err) != RHH_OK)
			die(err.message);
		for (uint32_t e = 0; e < n; e++)
		{
			if (events[e].status != RHH_OK || (events[e].kind == RHH_EVENT_BATCH &&
											   events[e].n_refused > 0))
				die("a command failed");
			if (events[e].kind == RHH_EVENT_FINISH)
				return;
			in_flight--;
		}
		if (n == 0)
			poll(&fd, 1, 10);
	}
}

/* What was measured in one run, or the least of several. */
typedef struct join_times
{
	double		ms;
	double		cpu_ms;
} join_times;

static void
time_table(device *device, rhh_map *table, const batches *b, join_times *best)
{
	double		start_ms = now_ms();
	double		start_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
	join_times	t;

	fill_table(device, table, b);
	t.ms = now_ms() - start_ms;
	t.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ms;
	if (t.ms < best->ms)
		best->ms = t.ms;
	if (t.cpu_ms < best->cpu_ms)
		best->cpu_ms = t.cpu_ms;
}

static void
print_times(const device *device, const char *name, const char *what, uint64_t n_rows,
			uint64_t n_groups, const join_times *t)
{
	printf("%s,%s%s,%llu,%llu,%u,%.1f,%.1f,,%.1f\n", device->name, name, what,
		   (unsigned long long) n_rows, (unsigned long long) n_groups, option_threads,
		   t->ms * 1e6 / (double) n_rows, t->cpu_ms * 1e6 / (double) n_rows,
		   (double) n_rows / t->ms / 1e3);
	fflush(stdout);
}

static void
bench_one_join(device *device, const join_shape *shape, uint64_t n_rows, double estimate,
			   int repeat)
{
	const rhh_device_ops *ops = device->ops;
	rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS};
	join_times	build_best = {1e12, 1e12};
	join_times	probe_best = {1e12, 1e12};
	rhh_join_spec joins = {.n_joins = 1};
	rhh_map_stats build_stats;
	batches		build_side;
	batches		probe_side;
	rhh_error	err;
	def			build;
	def			probe;
	def			table;

	def_init(&build);
	def_init(&probe);
	def_init(&table);
	build.custom = probe.custom = custom_join_bench;
	build.param = probe.param = (uint64_t) (uintptr_t) shape;
	build.spec.flags = RHH_KEEP_ROWS;
	build.spec.expected_groups = (uint64_t) ((double) shape->build_rows * estimate);
	for (int k = 0; shape->key_bytes[k] != 0; k++)
	{
		def_key(&build, shape->key_bytes[k], GEN_CUSTOM, 0, 0);
		joins.joins[0].key_column[k] =
			(uint16_t) def_column(&probe, shape->key_bytes[k], GEN_CUSTOM, 0, 0);
	}
	(void) def_column(&probe, 1, GEN_UNIFORM, 1, 0);
	(void) def_column(&probe, 4, GEN_SMALL, 0, 0);
	(void) def_column(&build, 4, GEN_SMALL, 0, 0);
	joins.joins[0].kind = (uint8_t) shape->kind;
	joins.n_columns = probe.spec.n_columns;
	memcpy(joins.column_bytes, probe.spec.column_bytes, sizeof(joins.column_bytes));
	/* the table: a constant, and a column of the build side if the join has any */
	(void) def_key(&table, 1, GEN_CUSTOM, 0, 0);
	def_state(&table, RHH_SUM_I64, def_column(&table, 4, GEN_CUSTOM, 0, 0), -1);
	joins.column[0] = (uint16_t) (joins.n_columns - 2);
	joins.column[1] = (uint16_t) (shape->kind == RHH_JOIN_SEMI ? joins.n_columns - 1 :
								  joins.n_columns + build.spec.n_columns - 1);

	make_batches(&build_side, &build, shape->build_rows, 0);
	make_batches(&probe_side, &probe, n_rows,
				 rhh_output_values(&table.spec, BATCH_ROWS, table.spec.n_columns));
	table.spec.max_batch_rows = BATCH_ROWS;
	table.spec.max_batch_bytes = probe.spec.max_batch_bytes;
	if (ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK)
		die(err.message);
	(void) ops->register_pool(device->dev, build_side.pool, build_side.pool_bytes, &err);
	(void) ops->register_pool(device->dev, probe_side.pool, probe_side.pool_bytes, &err);
	for (int r = 0; r < repeat; r++)
	{
		rhh_map    *sum;

		if (ops->map_create(device->dev, &build.spec, &joins.joins[0].build, &err) != RHH_OK)
			die(err.message);
		time_table(device, joins.joins[0].build, &build_side, &build_best);
		ops->map_stats(joins.joins[0].build, &build_stats);
		if (ops->map_create(device->dev, &table.spec, &sum, &err) != RHH_OK ||
			ops->map_join(sum, &joins, &err) != RHH_OK)
			die(err.message);
		time_table(device, sum, &probe_side, &probe_best);
		ops->map_destroy(sum);
		ops->map_destroy(joins.joins[0].build);
	}
	ops->close(device->dev);
	print_times(device, shape->name, " build", shape->build_rows, build_stats.groups,
				&build_best);
	print_times(device, shape->name, "", n_rows, build_stats.groups, &probe_best);
	free(build_side.pool);
	free(build_side.batches);
	free(probe_side.pool);
	free(probe_side.batches);
}

void
bench_joins(device *device, uint64_t n_rows, double estimate, int repeat, const char *only)
{
	for (size_t i = 0; i < LENGTH_OF(join_shapes); i++)
		if (only == NULL || fnmatch(only, join_shapes[i].name, 0) == 0)
			bench_one_join(device, &join_shapes[i], n_rows, estimate, repeat);
}
