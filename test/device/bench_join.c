/*
 * bench_join.c
 *		--bench: how long the build side of a join takes to be kept and finished, and how
 *		long a table takes whose rows are the join's output.
 *
 * All batches are laid out before the clock runs.  The table sums up a column of the build
 * side, in one group, so that nearly all time is the join's.
 *
 * With --on-device batches are in the device's own memory, and large.  The probe side then is
 * the same few batches over and over, which have more rows than any cache: so 10^9 rows need
 * neither be made nor kept.  What the kernels took is all that matters there.
 */
#include <fnmatch.h>
#include <poll.h>

#include "device_test.h"

#define BATCH_ROWS 65536u		/* of a batch in host memory, */
#define DEVICE_BATCH_ROWS (1u << 23)	/* and in the device's */
#define DEVICE_BATCHES 4		/* of the probe side, then */

typedef struct join_shape
{
	const char *name;
	uint8_t		key_bytes[3];
	uint64_t	build_rows;
	uint32_t	copies;			/* rows of each key */
	uint32_t	hits_of_256;	/* rows of the probe side with a match */
	rhh_join_kind kind;
	bool		dense;			/* keys are the numbers from 0 on */
} join_shape;

static const join_shape join_shapes[] = {
	{"join 4/1e4", {4}, 10000, 1, 256, RHH_JOIN_INNER, false},
	{"join 4/1e6", {4}, 1000000, 1, 256, RHH_JOIN_INNER, false},
	{"join 4/1e7", {4}, 10000000, 1, 256, RHH_JOIN_INNER, false},
	{"join 4/1e6 dense", {4}, 1000000, 1, 256, RHH_JOIN_INNER, true},
	{"join 4/1e7 dense", {4}, 10000000, 1, 256, RHH_JOIN_INNER, true},
	{"join 4/1e6 half", {4}, 1000000, 1, 128, RHH_JOIN_INNER, false},
	{"join 4/1e6 few", {4}, 1000000, 1, 5, RHH_JOIN_INNER, false},
	{"join 4/1e7 few", {4}, 10000000, 1, 5, RHH_JOIN_INNER, false},
	{"join 4/1e6 left", {4}, 1000000, 1, 128, RHH_JOIN_LEFT, false},
	{"join 4/1e6 semi", {4}, 1000000, 1, 128, RHH_JOIN_SEMI, false},
	{"join 4/1e6 x4", {4}, 1000000, 4, 256, RHH_JOIN_INNER, false},
	{"join 4/1e7 x100", {4}, 10000000, 100, 5, RHH_JOIN_INNER, false},
	{"join 8/1e6", {8}, 1000000, 1, 256, RHH_JOIN_INNER, false},
	{"join 4+4/1e6", {4, 4}, 1000000, 1, 256, RHH_JOIN_INNER, false},
	{"join 16+8/1e6", {16, 8}, 1000000, 1, 256, RHH_JOIN_INNER, false},
};

/*
 * Batches in memory that the device knows, or in its own, and behind them room for refused
 * rows.
 */
typedef struct batches
{
	rhh_batch  *batches;
	uint32_t	n;				/* that there are, */
	uint32_t	n_submitted;	/* and how often one of them is submitted: round and round */
	uint32_t	last_rows;		/* that the last one has */
	uint8_t    *pool;
	uint8_t    *on_device;		/* its copy there, or NULL */
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
	if (shape->dense)			/* in no order */
		x = x < n_keys ? x * 2654435761u % n_keys : x;
	else
		x *= 0x9e3779b97f4a7c15ULL;
	for (uint32_t c = 0; c < 3 && shape->key_bytes[c] != 0; c++)
		put_value(data, c, row, x, rhh_mix64(x));
}

static uint32_t
most_rows(void)
{
	return option_on_device ? DEVICE_BATCH_ROWS : BATCH_ROWS;
}

/*
 * Lays out n_rows rows, or, of a probe side on the device, the first of them.  room_bytes:
 * what refused rows of a batch take; 0: it is a build side.
 */
static void
make_batches(batches *b, def *d, uint64_t n_rows, uint64_t room_bytes)
{
	const uint32_t batch_rows = most_rows();
	size_t		room = batch_room(d, batch_rows);

	memset(b, 0, sizeof(*b));
	b->n = b->n_submitted = (uint32_t) ((n_rows + batch_rows - 1) / batch_rows);
	b->last_rows = (uint32_t) (n_rows - (uint64_t) (b->n - 1) * batch_rows);
	if (option_on_device && room_bytes > 0 && b->n > DEVICE_BATCHES)
		b->n = DEVICE_BATCHES;
	b->batches = need(b->n * sizeof(rhh_batch));
	b->pool_bytes = room * b->n + room_bytes;
	if (posix_memalign((void **) &b->pool, 4096, b->pool_bytes) != 0)
		die("out of memory");
	for (uint32_t i = 0; i < b->n; i++)
	{
		uint64_t	n = i == b->n_submitted - 1 ? b->last_rows : batch_rows;
		data	   *data;

		d->gens[0].n = (uint64_t) i * batch_rows;
		data = make_data(d, n, i + 1);
		fill_batch(&b->batches[i], b->pool + room * i, data, 0, (uint32_t) n);
		if (room_bytes > 0)
		{
			/* one room for all, because nothing is refused */
			b->batches[i].refused_offset = (uint32_t) (room * (b->n - i));
			b->batches[i].refused_rows = batch_rows;
		}
		free_data(data);
	}
	d->spec.max_batch_rows = batch_rows;
	d->spec.max_batch_bytes = option_on_device ? BATCH_ROWS : (uint32_t) room;
}

/* Moves them to the device, which is open. */
static void
put_batches(const device *device, batches *b)
{
	rhh_error	err;

	if (!option_on_device)
	{
		(void) device->ops->register_pool(device->dev, b->pool, b->pool_bytes, &err);
		return;
	}
	b->on_device = device_alloc(device, b->pool_bytes);
	device_copy(device, b->on_device, b->pool, b->pool_bytes);
	for (uint32_t i = 0; i < b->n; i++)
	{
		b->batches[i].base = b->on_device + (b->batches[i].base - b->pool);
		b->batches[i].on_device = true;
	}
}

static void
free_batches(const device *device, batches *b)
{
	device_free(device, b->on_device);
	free(b->pool);
	free(b->batches);
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

		while (submitted < b->n_submitted)
		{
			rhh_batch	batch = b->batches[submitted % b->n];

			if (submitted == b->n_submitted - 1)
				batch.n_rows = b->last_rows;
			if (ops->map_submit(table, &batch, 0, &err) != RHH_OK)
				break;
			submitted++, in_flight++;
		}
		if (submitted == b->n_submitted && in_flight == 0 && !finishing)
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
	double		kernel_ms;
} join_times;

static void
time_table(device *device, rhh_map *table, const batches *b, join_times *best)
{
	double		start_ms = now_ms();
	double		start_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
	rhh_map_stats stats;
	join_times	t;

	fill_table(device, table, b);
	device->ops->map_stats(table, &stats);
	t.kernel_ms = (double) stats.kernel_ns / 1e6;
	t.ms = now_ms() - start_ms;
	t.cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ms;
	if (t.ms < best->ms)
		best->ms = t.ms;
	if (t.cpu_ms < best->cpu_ms)
		best->cpu_ms = t.cpu_ms;
	if (t.kernel_ms < best->kernel_ms)
		best->kernel_ms = t.kernel_ms;
}

static void
print_times(const device *device, const char *name, const char *what, uint64_t n_rows,
			uint64_t n_groups, const join_times *t)
{
	printf("%s,%s%s,%llu,%llu,%u,%.3f,%.3f,,%.1f,%.1f\n", device->name, name, what,
		   (unsigned long long) n_rows, (unsigned long long) n_groups, option_threads,
		   t->ms * 1e6 / (double) n_rows, t->cpu_ms * 1e6 / (double) n_rows,
		   (double) n_rows / t->ms / 1e3, (double) n_rows / t->kernel_ms / 1e3);
	fflush(stdout);
}

static void
bench_one_join(device *device, const join_shape *shape, uint64_t n_rows, double estimate,
			   int repeat)
{
	const rhh_device_ops *ops = device->ops;
	rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS};
	join_times	build_best = {1e12, 1e12, 1e12};
	join_times	probe_best = {1e12, 1e12, 1e12};
	rhh_join_spec joins = {.n_joins = 1};
	rhh_map_stats build_stats;
	rhh_map_stats sum_stats;
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
				 rhh_output_values(&table.spec, most_rows(), table.spec.n_columns));
	table.spec.max_batch_rows = most_rows();
	table.spec.max_batch_bytes = probe.spec.max_batch_bytes;
	if (ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK)
		die(err.message);
	put_batches(device, &build_side);
	put_batches(device, &probe_side);
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
		ops->map_stats(sum, &sum_stats);
		if (shape->kind == RHH_JOIN_INNER && shape->hits_of_256 == 256 &&
			sum_stats.rows != n_rows * shape->copies)
			die("rows of the join are missing, or there are too many");
		ops->map_destroy(sum);
		ops->map_destroy(joins.joins[0].build);
	}
	free_batches(device, &build_side);
	free_batches(device, &probe_side);
	ops->close(device->dev);
	print_times(device, shape->name, " build", shape->build_rows, build_stats.groups,
				&build_best);
	print_times(device, shape->name, "", n_rows, build_stats.groups, &probe_best);
}

void
bench_joins(device *device, uint64_t n_rows, double estimate, int repeat, const char *only)
{
	for (size_t i = 0; i < LENGTH_OF(join_shapes); i++)
		if (only == NULL || fnmatch(only, join_shapes[i].name, 0) == 0)
			bench_one_join(device, &join_shapes[i], n_rows, estimate, repeat);
}
