/*
 * interface.c
 *		Calls that a device must refuse (RHH_INVALID): tables and batches that are
 *		described wrongly.
 */
#include "device_test.h"

static void
expect_invalid(context *ctx, const def *d, const char *what)
{
	rhh_table  *table = NULL;
	rhh_error	err = {RHH_OK, ""};

	if (ctx->device->ops->table_create(ctx->device->dev, &d->spec, &table, &err) !=
		RHH_INVALID || err.status != RHH_INVALID || err.message[0] == '\0')
		fault(ctx, what, "was not refused");
}

void
case_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	def			good,
				d;
	rhh_table  *table;
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

	if (ops->table_create(ctx->device->dev, &good.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "table_create", err.message);
		return;
	}
	memset(&batch, 0, sizeof(batch));
	batch.base = pool;
	batch.n_rows = 16;
	batch.values_offset[0] = 64;
	batch.values_offset[1] = 128;
	batch.used_bytes = batch.failed_offset = 192;
#define INVALID(what) \
	do { \
		rhh_batch	b = batch; \
		what; \
		if (ops->table_submit(table, &b, 0, &err) != RHH_INVALID) \
			fault(ctx, #what, "was not refused"); \
	} while (0)
	INVALID(b.n_rows = 0);
	INVALID(b.n_rows = good.spec.max_batch_rows + 1);
	INVALID(b.n_rows = 17);
	INVALID(b.values_offset[1] = 192);
	INVALID(b.values_offset[1] = 100);
	INVALID(b.nulls_offset[1] = 192);
#undef INVALID
	ops->table_destroy(table);
	if (ops->open(12345, &(rhh_device_config){.cpu_threads = 1},
				  &(rhh_device *){NULL}, &err) != RHH_NO_DEVICE)
		fault(ctx, "", "device 12345 was opened");
}
