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

/*
 * Both devices answer a call the same at any time.  They once differed on a map that was
 * cancelled and being finished, on results that had not been reported yet, and on a
 * piece behind the last group of a map that was being extracted.
 */
void
case_same_calls(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	uint8_t    *pool = ctx->device->pool;
	uint64_t	words[2 * 16];
	uint8_t		refused[8];
	def			d;
	rhh_map    *first,
			   *second;
	rhh_batch	batch,
				wrong;
	rhh_row_spec rows;
	rhh_feed	feed;
	rhh_result	result;
	rhh_event	event;
	rhh_error	err;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 16, 0);
	def_state(&d, RHH_COUNT, -1, -1);
	d.spec.max_batch_rows = 64;
	d.spec.max_batch_bytes = 256;
	memset(pool, 0, 256);
	for (uint32_t i = 0; i < 16; i++)
		pool[64 + 4 * i] = (uint8_t) (i % 8);
	memset(&batch, 0, sizeof(batch));
	batch.base = pool;
	batch.n_rows = 16;
	batch.values_offset[0] = 64;
	batch.used_bytes = batch.refused_offset = 128;
	wrong = batch;
	wrong.n_rows = 0;
	memset(&rows, 0, sizeof(rows));
	rows.columns[0] = (rhh_row_column){.kind = RHH_ROW_KEY, .part = -1, .word = 1};
	rows.n_sets = 1;
	memset(&feed, 0, sizeof(feed));
	feed.rows = &rows;
	feed.refused = refused;
	memset(&result, 0, sizeof(result));
	result.words = words;
	result.capacity_groups = 8;

	if (ops->map_create(ctx->device->dev, &d.spec, &first, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
	if (ops->map_create(ctx->device->dev, &d.spec, &second, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		ops->map_destroy(first);
		return;
	}
	feed.source = first;
#define SUBMIT(m, b) ops->map_submit(m, b, 1, &err)
#define FEED(m)		ops->map_feed(m, &feed, 2, &err)
#define FINISH(m)	ops->map_finish(m, &err)
#define EXTRACT(m)	ops->map_extract(m, &result, 3, &err)
#define SEEK(m)		ops->map_seek(m, 0, &err)
#define EXPECT(status, call) expect_status(ctx, #call " " #status, call, status, &err)

	/* a new map, then one with a batch in flight */
	EXPECT(RHH_INVALID, EXTRACT(first));
	EXPECT(RHH_INVALID, SEEK(first));
	EXPECT(RHH_INVALID, FEED(second));
	if (!EXPECT(RHH_OK, SUBMIT(first, &batch)))
		goto end;
	EXPECT(RHH_INVALID, FINISH(first));
	(void) next_event(ctx, &event);

	/* one that is being finished, before that is reported */
	if (!EXPECT(RHH_OK, FINISH(first)))
		goto end;
	usleep(20000);
	EXPECT(RHH_INVALID, FINISH(first));
	EXPECT(RHH_INVALID, SUBMIT(first, &batch));
	EXPECT(RHH_INVALID, EXTRACT(first));
	EXPECT(RHH_INVALID, SEEK(first));
	EXPECT(RHH_INVALID, FEED(second));
	(void) next_event(ctx, &event);

	/* one that is finished, and one that is being extracted, before that is reported */
	EXPECT(RHH_INVALID, FEED(first));
	result.words = NULL;
	EXPECT(RHH_INVALID, EXTRACT(first));
	result.words = words;
	if (!EXPECT(RHH_OK, EXTRACT(first)))
		goto end;
	usleep(20000);
	EXPECT(RHH_INVALID, EXTRACT(first));
	EXPECT(RHH_INVALID, SEEK(first));
	EXPECT(RHH_BUSY, FEED(second));
	feed.first_group = 8;
	EXPECT(RHH_OK, FEED(second));
	if (feed.n_groups != 0)
		fault(ctx, "", "there was a group behind the last");
	feed.first_group = 0;
	(void) next_event(ctx, &event);
	if (result.n_groups != 8 || !result.last)
		fault(ctx, "", "the groups did not come out");
	EXPECT(RHH_OK, SEEK(first));

	/* fed, and cancelled with the piece in flight */
	if (!EXPECT(RHH_OK, FEED(second)) || feed.n_groups != 8)
	{
		fault(ctx, "", "the groups were not fed");
		goto end;
	}
	ops->map_cancel(second);
	EXPECT(RHH_CANCELLED, SUBMIT(second, &wrong));
	EXPECT(RHH_CANCELLED, FEED(second));
	EXPECT(RHH_CANCELLED, FINISH(second));
	EXPECT(RHH_CANCELLED, EXTRACT(second));
	EXPECT(RHH_CANCELLED, SEEK(second));
	for (uint32_t n = 0; n == 0;)
		if (ops->poll(ctx->device->dev, &event, 1, &n, &err) != RHH_OK)
			goto end;
	EXPECT(RHH_CANCELLED, FINISH(second));
	ops->map_destroy(second);
	second = NULL;

	/* a source that is cancelled, or in another device */
	if (ops->map_create(ctx->device->dev, &d.spec, &second, &err) == RHH_OK)
	{
		rhh_device_config config = {.cpu_threads = 1};
		rhh_device *other;
		rhh_map    *elsewhere;

		if (ops->open(ctx->device->info.ordinal, &config, &other, &err) != RHH_OK)
			fault(ctx, "open", err.message);
		else
		{
			if (ops->map_create(other, &d.spec, &elsewhere, &err) != RHH_OK)
				fault(ctx, "map_create", err.message);
			else
				EXPECT(RHH_INVALID, FEED(elsewhere));
			ops->close(other);
		}
		ops->map_cancel(first);
		EXPECT(RHH_CANCELLED, FEED(second));
	}
end:
	if (second != NULL)
		ops->map_destroy(second);
	ops->map_destroy(first);
#undef EXPECT
#undef SUBMIT
#undef FEED
#undef FINISH
#undef EXTRACT
#undef SEEK
}
