/*
 * cancel.c
 *		Tables that are cancelled and devices that are closed while they are at work:
 *		nothing hangs, nothing leaks, and the device works on.
 */
#include "device_test.h"

/* Cancelled with batches in flight; then the device works as before. */
void
case_cancel(context *ctx)
{
	for (int at = 0; at < 10; at += 3)
	{
		run_options options = default_options;
		def			d;

		def_init(&d);
		def_key(&d, 8, GEN_UNIFORM, 1000000, 0);
		def_common_states(&d);
		options.cancel_at_batch = at;
		check_table(ctx, "cancelled", &d, rows(800000), &options, NULL);
		options = default_options;
		options.no_failures = true;
		check_table(ctx, "after", &d, rows(50000), &options, NULL);
	}
}

/* Cancelled while groups come out: no event but OK or CANCELLED, and no hang. */
void
case_cancel_extract(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	run_options options = default_options;
	data	   *data;
	run			run;
	def			d;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 100000, 0);
	def_common_states(&d);
	options.capacity_groups = 100;
	data = make_data(&d, rows(300000), ctx->seed++);
	run_start(&run, ctx->device, data, &options, ctx->device->pool,
			  ctx->device->pool_bytes);
	for (bool cancelled = false; !run.done;)
	{
		rhh_event	event;
		rhh_error	err;
		uint32_t	n;

		run_step(&run);
		if (!cancelled && run.n_extracted >= 1000)
		{
			ops->map_cancel(run.table);
			cancelled = run.cancelled = true;
		}
		if (ops->poll(ctx->device->dev, &event, 1, &n, &err) != RHH_OK)
		{
			fault(ctx, "poll", err.message);
			break;
		}
		if (n == 0)
			usleep(100);
		else if (event.status == RHH_CANCELLED && cancelled)
			run.extracting = false;
		else
			run_event(&run, &event);
	}
	fault(ctx, "", run.why);
	run_end(&run);
	free_data(data);
}

/* close() with tables and batches in flight: nothing leaks, nothing hangs. */
void
case_close_busy(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;

	for (int i = 0; i < 4; i++)
	{
		rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS, .carry_bytes = CARRY_BYTES};
		device		device = *ctx->device;
		run_options options = default_options;
		rhh_error	err;
		data	   *data;
		run			run;
		def			d;

		if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
		{
			fault(ctx, "open", err.message);
			return;
		}
		def_init(&d);
		def_key(&d, 8, GEN_UNIFORM, 1000000, 0);
		def_common_states(&d);
		data = make_data(&d, rows(400000), ctx->seed++);
		run_start(&run, &device, data, &options, device.pool, device.pool_bytes);
		run_step(&run);
		ops->close(device.dev);
		run.table = NULL;
		fault(ctx, "", run.why);
		run_end(&run);
		free_data(data);
	}
}
