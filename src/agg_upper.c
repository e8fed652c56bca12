/*-------------------------------------------------------------------------
 *
 * agg_upper.c
 *		Feeds groups to another of the device's tables: the third level.
 *
 * What the session has of the second level, wherever it was made, are all of its
 * groups, each once; so here, unlike between the first two levels, nothing
 * depends on where they come from.  They become rows as the service makes them of
 * a table's groups (regroup_rows.c), and go through blocks of the pool like rows
 * of a table, in a query of their own.
 *
 *		start -> add* -> finish
 *
 * Then the caller reads that query as it reads any.  Memory: all in the context
 * that start was given, which the query's channel belongs to as well.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "utils/memutils.h"

struct UpperFeed
{
	RegroupPlan *plan;
	MemoryContext context;
	Channel    *channel;
	Feed		feed;
	bool		in_pool;		/* the block being filled, or the last one */
	char	   *own_block;		/* where there was none for too long; or NULL */
	HostSide	host_side;		/* where what the device refuses goes: */
	HostTable  *host;			/* NULL: nothing yet */
	uint64		host_rows;
};

/*
 * Opens a query for the level's table, whose plan has its limits.  NULL: there
 * is no device to be had.
 */
UpperFeed *
gpurhh_upper_start(Regroup *regroup, MemoryContext context)
{
	RegroupPlan *plan = gpurhh_regroup_plan(regroup);
	const char *why;
	ChannelArea *area = gpurhh_channel_attach(&why);
	Channel    *channel;
	UpperFeed  *upper;

	if (area == NULL)
		return NULL;
	upper = MemoryContextAllocZero(context, sizeof(UpperFeed));
	gpurhh_regroup_feed_init(&upper->feed, plan, area->block_bytes,
							 gpurhh_batch_rows);
	plan->spec.max_batch_rows = upper->feed.capacity_rows;
	plan->spec.max_batch_bytes = area->block_bytes;
	channel = gpurhh_channel_open(area, &plan->spec, NULL, context, &why);
	if (channel == NULL)
		return NULL;
	upper->plan = plan;
	upper->context = context;
	upper->channel = channel;
	upper->in_pool = true;
	upper->host_side = (HostSide){
		.table = &upper->host,
		.spec = &plan->spec,
		.context = context,
		.channel = channel,
		.n_rows = &upper->host_rows
	};
	return upper;
}

/* Where the next rows go. */
static char *
next_block(UpperFeed *upper)
{
	char	   *base;
	ChannelBlockResult result;

	while ((result = gpurhh_channel_acquire(upper->channel, upper->in_pool,
											&base)) == CHANNEL_RETURNED)
		gpurhh_take_returned(&upper->host_side);
	upper->in_pool = result == CHANNEL_BLOCK;
	if (upper->in_pool)
		return base;
	if (upper->own_block == NULL)
		upper->own_block = (char *)
			TYPEALIGN(64, MemoryContextAlloc(upper->context,
											 upper->plan->spec.max_batch_bytes + 64));
	return upper->own_block;
}

static void
hand_over(UpperFeed *upper)
{
	rhh_batch	batch;

	gpurhh_feed_finish(&upper->feed, &batch);
	if (upper->in_pool)
		gpurhh_channel_submit(upper->channel, &batch);
	else
	{
		batch.base = (uint8_t *) upper->own_block;
		gpurhh_add_on_host(&upper->host_side, &batch, true);
	}
}

/* Takes n groups, whose word w is at words[w * stride + i]. */
void
gpurhh_upper_add(UpperFeed *upper, const uint64 *words, Size stride, uint32 n)
{
	Feed	   *feed = &upper->feed;

	while (n > 0)
	{
		uint32		m;

		if (feed->base == NULL)
			gpurhh_feed_start(feed, next_block(upper));
		m = Min(n, feed->capacity_rows - feed->n_rows);
		gpurhh_regroup_feed_rows(feed, upper->plan, 0, words, stride, m);
		if (feed->n_rows == feed->capacity_rows)
			hand_over(upper);
		words += m;
		n -= m;
	}
}

/*
 * There are no more: waits until the table can be read, and returns its query.
 * *host: what the device refused, or NULL; *host_rows grows by that.
 */
Channel *
gpurhh_upper_finish(UpperFeed *upper, HostTable **host, uint64 *host_rows)
{
	if (upper->feed.base != NULL)
		hand_over(upper);
	gpurhh_channel_end_input(upper->channel);
	while (!gpurhh_channel_wait_finished(upper->channel))
		gpurhh_take_returned(&upper->host_side);
	*host_rows += upper->host_rows;
	*host = upper->host;
	return upper->channel;
}
