/*
 * tables.c
 *		Many tables at once on one device: events go to the table that they are of,
 *		and no table waits for all the others.
 */
#include "device_test.h"

/* Many tables at once from one caller. */
void
case_interleaved(context *ctx)
{
	enum
	{
		N = 20
	};
	static run	runs[N];
	def			defs[N];
	data	   *all[N];
	size_t		share = ctx->device->pool_bytes / N & ~(size_t) 4095;

	for (int i = 0; i < N; i++)
	{
		run_options options = default_options;
		def		   *d = &defs[i];

		def_init(d);
		def_key(d, 1u << (i % 5), GEN_UNIFORM, 200u << (i % 9), i % 3 ? 10 : 0);
		if (i % 4 == 3)
			def_key(d, 4, GEN_UNIFORM, 3, 0);
		def_common_states(d);
		d->spec.max_batch_rows = 1000 + 700 * (uint32_t) i;
		if (i % 5 == 0)
			d->spec.memory_limit_bytes = 1 << 20;
		options.capacity_groups = 100 + 300 * (uint32_t) i;
		if (i % 7 == 5)
			options.cancel_at_batch = i;
		all[i] = make_data(d, rows(60000 + 5000 * (uint64_t) i), ctx->seed++);
		run_start(&runs[i], ctx->device, all[i], &options,
				  ctx->device->pool + share * (size_t) i, share);
	}
	(void) drive(ctx->device, runs, N);
	for (int i = 0; i < N; i++)
	{
		char		where[32];

		run_check(&runs[i]);
		snprintf(where, sizeof(where), "table %d", i);
		fault(ctx, where, runs[i].why);
		run_end(&runs[i]);
		free_data(all[i]);
	}
}

/*
 * A batch of one table does not wait for all batches that others have handed in
 * before.  Which are done first is counted, not how long it takes; but whoever is
 * late to submit sees others done, so the best of several attempts counts.  On a
 * GPU each table has a stream of its own.
 */
void
case_turns(context *ctx)
{
	enum
	{
		N = 30,
		BATCHES = 4
	};
	const rhh_device_ops *ops = ctx->device->ops;
	bool		in_turn = ctx->device->info.kind != RHH_KIND_CPU;
	data	   *data;
	rhh_batch	batch;
	rhh_error	err;
	def			d;

	def_init(&d);
	def_key(&d, 8, GEN_UNIFORM, 1000000, 0);
	def_common_states(&d);
	data = make_data(&d, 65536, ctx->seed++);
	fill_batch(&batch, ctx->device->pool, data, 0, 65536);
	d.spec.max_batch_bytes = batch.used_bytes;
	for (int attempt = 0; attempt < 10 && !in_turn; attempt++)
	{
		rhh_map    *tables[N + 1];
		rhh_map    *last;
		rhh_event	event;
		int			n_in_flight = 0,
					n_before = 0,
					n_others;
		bool		ok = true;

		for (int i = 0; i <= N; i++)
		{
			if (ops->map_create(ctx->device->dev, &d.spec, &tables[i], &err) != RHH_OK)
			{
				fault(ctx, "map_create", err.message);
				return;
			}
		}
		last = tables[N];
		for (int b = 0; b < BATCHES; b++)
			for (int i = 0; i < N; i++)
				n_in_flight += ops->map_submit(tables[i], &batch, 0, &err) == RHH_OK;
		for (uint32_t n = 1; n > 0; n_in_flight -= (int) n)
			(void) ops->poll(ctx->device->dev, &event, 1, &n, &err);
		n_others = n_in_flight;
		if (ops->map_submit(last, &batch, 0, &err) != RHH_OK)
			fault(ctx, "map_submit", err.message);
		else
			n_in_flight++;
		for (bool seen = false; n_in_flight > 0 && ok; n_in_flight--)
		{
			ok = next_event(ctx, &event);
			seen |= ok && event.map == last;
			n_before += !seen;
		}
		in_turn = n_before < n_others / 2;
		for (int i = 0; i <= N; i++)
			ops->map_destroy(tables[i]);
	}
	if (!in_turn)
		fault(ctx, "", "a table's only batch waited for those of all others");
	free_data(data);
}
