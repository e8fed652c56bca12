/*
 * interface.c
 *		Calls that a device must reject (RHH_INVALID): tables and batches that are
 *		described wrongly.
 */
#include "device_test.h"

static void
expect_invalid(context *ctx, const def *d, const char *what)
{
	rhh_map    *table = NULL;
	rhh_error	err = {RHH_OK, ""};

	if (ctx->device->ops->map_create(ctx->device->dev, &d->spec, &table, &err) !=
		RHH_INVALID || err.status != RHH_INVALID || err.message[0] == '\0')
		fault(ctx, what, "was not rejected");
}

void
case_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	def			good,
				d;
	rhh_map    *table;
	rhh_batch	batch;
	rhh_error	err;
	uint8_t    *pool = ctx->device->pool;

	def_init(&good);
	def_key(&good, 4, GEN_UNIFORM, 10, 0);
	def_common_states(&good);
	good.spec.max_batch_bytes = 1 << 20;

#define INVALID(what) d = good, what, expect_invalid(ctx, &d, #what)
	INVALID(d.spec.n_keys = 0);
	INVALID(d.spec.n_keys = RHH_MAX_KEYS + 1);
	INVALID(d.spec.n_columns = RHH_MAX_COLUMNS + 1);
	INVALID(d.spec.n_states = RHH_MAX_STATES + 1);
	INVALID(d.spec.key_column[0] = 2);
	INVALID(d.spec.column_bytes[0] = 3);
	INVALID(d.spec.states[0].op = 99);
	INVALID(d.spec.states[1].arg_column = -1);
	INVALID(d.spec.states[1].arg_column = 2);
	INVALID(d.spec.states[1].filter_column = 0);
	INVALID(d.spec.states[1].filter_column = 9);
	INVALID(d.spec.column_bytes[1] = 16);
	INVALID(d.spec.max_probe_buckets = 0);
	INVALID(d.spec.load_factor = 0.2f);
	INVALID(d.spec.load_factor = 1.0f);
	INVALID(d.spec.max_batch_rows = 0);
#undef INVALID

	if (ops->map_create(ctx->device->dev, &good.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
	memset(&batch, 0, sizeof(batch));
	batch.base = pool;
	batch.n_rows = 16;
	batch.values_offset[0] = 64;
	batch.values_offset[1] = 128;
	batch.used_bytes = batch.refused_offset = 192;
#define INVALID(what) \
	do { \
		rhh_batch	b = batch; \
		what; \
		if (ops->map_submit(table, &b, 0, &err) != RHH_INVALID) \
			fault(ctx, #what, "was not rejected"); \
	} while (0)
	INVALID(b.n_rows = 0);
	INVALID(b.n_rows = good.spec.max_batch_rows + 1);
	INVALID(b.n_rows = 17);
	INVALID(b.values_offset[1] = 192);
	INVALID(b.values_offset[1] = 100);
	INVALID(b.nulls_offset[1] = 192);
#undef INVALID
	ops->map_destroy(table);
	if (ops->open(12345, &(rhh_device_config){.cpu_threads = 1},
				  &(rhh_device *){NULL}, &err) != RHH_NO_DEVICE)
		fault(ctx, "", "device 12345 was opened");
}

/*
 * Both devices reject and accept the same.  They once had checks of their own: the
 * CPU device took a column of -2 for none, and rejected batches in the device's memory
 * that are larger than those in host memory may be; the CUDA device let the bitmap of
 * refused rows lie over the columns.
 */
void
case_same_checks(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	def			good,
				d;
	rhh_map    *table;
	rhh_batch	batch;
	rhh_error	err;
	rhh_event	event;
	uint8_t    *host = ctx->device->pool;
	uint8_t    *memory;

	def_init(&good);
	def_key(&good, 4, GEN_UNIFORM, 10, 0);
	def_common_states(&good);
	good.spec.max_batch_bytes = 128;

	d = good;
	d.spec.states[1].filter_column = -2;
	expect_invalid(ctx, &d, "filter_column = -2");
	d = good;
	for (uint32_t s = 0; s < d.spec.n_states; s++)
		if (d.spec.states[s].op == RHH_COUNT)
			d.spec.states[s].arg_column = -2;
	expect_invalid(ctx, &d, "arg_column = -2");

	if (ops->map_create(ctx->device->dev, &good.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
	memset(host, 0, 512);
	memset(&batch, 0, sizeof(batch));
	batch.base = host;
	batch.n_rows = 16;
	for (uint32_t c = 1; c < good.spec.n_columns; c++)
		batch.values_offset[c] = batch.values_offset[c - 1] + 128;
	batch.used_bytes = batch.values_offset[good.spec.n_columns - 1] + 128;
	batch.refused_offset = batch.used_bytes;
	if (ops->map_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "a batch in host memory", "was not rejected, though it is too large");

	memory = device_alloc(ctx->device, 512);
	device_copy(ctx->device, memory, host, 512);
	batch.base = memory;
	batch.on_device = true;
	batch.refused_offset = batch.used_bytes - 64;
	if (ops->map_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "a bitmap of refused rows over the columns", "was not rejected");
	batch.refused_offset = batch.used_bytes;
	if (ops->map_submit(table, &batch, 7, &err) != RHH_OK)
		fault(ctx, "a batch in the device's memory", err.message);
	else if (next_event(ctx, &event) &&
			 (event.kind != RHH_EVENT_BATCH || event.tag != 7 || event.n_refused != 0))
		fault(ctx, "a batch in the device's memory", "was not aggregated");
	ops->map_destroy(table);
	device_free(ctx->device, memory);
}

/* A call has to be answered with this status, on both devices. */
static bool
expect_status(context *ctx, const char *what, rhh_status got, rhh_status status,
			  const rhh_error *err)
{
	char		why[320];

	if (got == status)
		return true;
	snprintf(why, sizeof(why), "status %d instead of %d: %s", (int) got, (int) status,
			 got == RHH_OK ? "" : err->message);
	fault(ctx, what, why);
	return false;
}

/* What case_same_calls() calls with: two maps, and things that can be given to them. */
typedef struct calls
{
	context    *ctx;
	const rhh_device_ops *ops;
	def			d;
	rhh_map    *first;
	rhh_map    *second;
	rhh_batch	batch;			/* of 16 rows, in 8 groups */
	rhh_batch	wrong;			/* without a row */
	rhh_row_spec rows;
	rhh_feed	feed;			/* of the first map's groups */
	rhh_result	result;
	uint64_t	words[2 * 16];
	uint8_t		refused[8];
	rhh_error	err;
} calls;

#define SUBMIT(m, b) c->ops->map_submit(m, b, 1, &c->err)
#define FEED(m)		c->ops->map_feed(m, &c->feed, 2, &c->err)
#define FINISH(m)	c->ops->map_finish(m, &c->err)
#define EXTRACT(m)	c->ops->map_extract(m, &c->result, 3, &c->err)
#define SEEK(m)		c->ops->map_seek(m, 0, &c->err)
#define EXPECT(status, call) \
	expect_status(c->ctx, #call " " #status, call, status, &c->err)

static void
calls_init(calls *c, context *ctx)
{
	uint8_t    *pool = ctx->device->pool;

	memset(c, 0, sizeof(*c));
	c->ctx = ctx;
	c->ops = ctx->device->ops;
	def_init(&c->d);
	def_key(&c->d, 4, GEN_UNIFORM, 16, 0);
	def_state(&c->d, RHH_COUNT, -1, -1);
	c->d.spec.max_batch_rows = 64;
	c->d.spec.max_batch_bytes = 256;
	memset(pool, 0, 256);
	for (uint32_t i = 0; i < 16; i++)
		pool[64 + 4 * i] = (uint8_t) (i % 8);
	c->batch.base = pool;
	c->batch.n_rows = 16;
	c->batch.values_offset[0] = 64;
	c->batch.used_bytes = c->batch.refused_offset = 128;
	c->wrong = c->batch;
	c->wrong.n_rows = 0;
	c->rows.columns[0] = (rhh_row_column){.kind = RHH_ROW_KEY, .part = -1, .word = 1};
	c->rows.n_sets = 1;
	c->feed.rows = &c->rows;
	c->feed.refused = c->refused;
	c->result.words = c->words;
	c->result.capacity_groups = 8;
}

/* Makes a map; false, and *map is NULL: it could not. */
static bool
calls_map(calls *c, rhh_device *dev, rhh_map **map)
{
	if (c->ops->map_create(dev, &c->d.spec, map, &c->err) == RHH_OK)
		return true;
	fault(c->ctx, "map_create", c->err.message);
	*map = NULL;
	return false;
}

/* Each of these takes the maps on to the next state; false: it did not get there. */

/* A new map, and one with a batch in flight. */
static bool
calls_new(calls *c)
{
	rhh_event	event;

	EXPECT(RHH_INVALID, EXTRACT(c->first));
	EXPECT(RHH_INVALID, SEEK(c->first));
	EXPECT(RHH_INVALID, FEED(c->second));
	if (!EXPECT(RHH_OK, SUBMIT(c->first, &c->batch)))
		return false;
	EXPECT(RHH_INVALID, FINISH(c->first));
	return next_event(c->ctx, &event);
}

/* A map that is being finished, before that is reported. */
static bool
calls_finishing(calls *c)
{
	rhh_event	event;

	if (!EXPECT(RHH_OK, FINISH(c->first)))
		return false;
	usleep(20000);
	EXPECT(RHH_INVALID, FINISH(c->first));
	EXPECT(RHH_INVALID, SUBMIT(c->first, &c->batch));
	EXPECT(RHH_INVALID, EXTRACT(c->first));
	EXPECT(RHH_INVALID, SEEK(c->first));
	EXPECT(RHH_INVALID, FEED(c->second));
	return next_event(c->ctx, &event);
}

/* One that is finished, and one that is being extracted, before that is reported. */
static bool
calls_extracting(calls *c)
{
	rhh_event	event;

	EXPECT(RHH_INVALID, FEED(c->first));
	c->result.words = NULL;
	EXPECT(RHH_INVALID, EXTRACT(c->first));
	c->result.words = c->words;
	if (!EXPECT(RHH_OK, EXTRACT(c->first)))
		return false;
	usleep(20000);
	EXPECT(RHH_INVALID, EXTRACT(c->first));
	EXPECT(RHH_INVALID, SEEK(c->first));
	EXPECT(RHH_BUSY, FEED(c->second));
	c->feed.first_group = 8;
	EXPECT(RHH_OK, FEED(c->second));
	if (c->feed.n_groups != 0)
		fault(c->ctx, "", "there was a group behind the last");
	c->feed.first_group = 0;
	if (!next_event(c->ctx, &event))
		return false;
	if (c->result.n_groups != 8 || !c->result.last)
		fault(c->ctx, "", "the groups did not come out");
	return EXPECT(RHH_OK, SEEK(c->first));
}

/* One that is fed, and cancelled with the piece in flight.  It is replaced by a new one. */
static bool
calls_cancelled(calls *c)
{
	rhh_device *dev = c->ctx->device->dev;
	rhh_event	event;

	if (!EXPECT(RHH_OK, FEED(c->second)) || c->feed.n_groups != 8)
	{
		fault(c->ctx, "", "the groups were not fed");
		return false;
	}
	c->ops->map_cancel(c->second);
	EXPECT(RHH_CANCELLED, SUBMIT(c->second, &c->wrong));
	EXPECT(RHH_CANCELLED, FEED(c->second));
	EXPECT(RHH_CANCELLED, FINISH(c->second));
	EXPECT(RHH_CANCELLED, EXTRACT(c->second));
	EXPECT(RHH_CANCELLED, SEEK(c->second));
	for (uint32_t n = 0; n == 0;)
		if (c->ops->poll(dev, &event, 1, &n, &c->err) != RHH_OK)
			return false;
	EXPECT(RHH_CANCELLED, FINISH(c->second));
	c->ops->map_destroy(c->second);
	return calls_map(c, dev, &c->second);
}

/* Sources that are in another device, or cancelled. */
static void
calls_sources(calls *c)
{
	rhh_device_config config = {.cpu_threads = 1};
	rhh_device *other;
	rhh_map    *elsewhere;

	if (c->ops->open(c->ctx->device->info.ordinal, &config, &other, &c->err) != RHH_OK)
		fault(c->ctx, "open", c->err.message);
	else
	{
		if (calls_map(c, other, &elsewhere))
			EXPECT(RHH_INVALID, FEED(elsewhere));
		c->ops->close(other);
	}
	c->ops->map_cancel(c->first);
	EXPECT(RHH_CANCELLED, FEED(c->second));
}

#undef EXPECT
#undef SUBMIT
#undef FEED
#undef FINISH
#undef EXTRACT
#undef SEEK

/*
 * Both devices answer a call the same at any time.  They once differed on a map that was
 * cancelled and being finished, on results that had not been reported yet, and on a
 * piece behind the last group of a map that was being extracted.
 */
void
case_same_calls(context *ctx)
{
	calls		c;

	calls_init(&c, ctx);
	if (calls_map(&c, ctx->device->dev, &c.first) &&
		calls_map(&c, ctx->device->dev, &c.second))
	{
		c.feed.source = c.first;
		if (calls_new(&c) && calls_finishing(&c) && calls_extracting(&c) &&
			calls_cancelled(&c))
			calls_sources(&c);
	}
	if (c.second != NULL)
		c.ops->map_destroy(c.second);
	if (c.first != NULL)
		c.ops->map_destroy(c.first);
}
