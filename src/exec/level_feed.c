/*-------------------------------------------------------------------------
 *
 * level_feed.c
 *		Feeds groups to another of the device's tables: the third level.
 *
 * The session has all groups of the second level, each of them once, wherever they
 * were made.  They become rows in the same way in which the service makes rows of a
 * table's groups (batch/level_rows.c), and go through blocks of the pool as rows of
 * a table do, in a query of their own.
 *
 * The rows are made in memory of this session, and copied into a block when that is
 * full.  No block is held meanwhile, because the session waits for results of the
 * second level between two rows, and results need blocks, too.
 *
 *		start -> add* -> finish
 *
 * Then the caller reads the groups of that query as it reads those of any other.  Memory: all in the context
 * that start was given, which the query's channel belongs to as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "exec/levels.h"
#include "settings.h"

struct UpperFeed
{
	RegroupPlan *plan;
	Channel    *channel;
	Feed		feed;
	bool		waits;			/* the last batch found a block of the pool */
	char	   *own_block;		/* where the rows of a batch are made */
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
	channel = gpurhh_channel_open(area, &plan->spec, NULL, false, context, &why);
	if (channel == NULL)
		return NULL;
	upper->plan = plan;
	upper->channel = channel;
	upper->waits = true;
	upper->own_block = (char *)
		TYPEALIGN(64, MemoryContextAlloc(context, area->block_bytes + 64));
	upper->host_side = (HostSide){
		.table = &upper->host,
		.spec = &plan->spec,
		.context = context,
		.channel = channel,
		.n_rows = &upper->host_rows,
		.area = area
	};
	return upper;
}

/* The batch to the service, or into the host table. */
static void
hand_over(UpperFeed *upper)
{
	rhh_batch	batch;
	char	   *base;
	ChannelBlockResult result;

	gpurhh_feed_finish(&upper->feed, &batch);
	while ((result = gpurhh_channel_acquire(upper->channel, upper->waits,
											&base)) == CHANNEL_RETURNED)
		gpurhh_take_returned(&upper->host_side);
	upper->waits = result == CHANNEL_BLOCK;
	if (result == CHANNEL_BLOCK)
	{
		memcpy(base, upper->own_block, batch.used_bytes);
		gpurhh_channel_submit(upper->channel, &batch);
	}
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
			gpurhh_feed_start(feed, upper->own_block);
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
 * *host: what the device refused, or NULL.  *counts grow by that, and by what the
 * batches waited for the pool.
 */
Channel *
gpurhh_upper_finish(UpperFeed *upper, HostTable **host, GpuNodeCounts *counts)
{
	if (upper->feed.base != NULL)
		hand_over(upper);
	gpurhh_channel_end_input(upper->channel);
	while (!gpurhh_channel_wait_finished(upper->channel))
		gpurhh_take_returned(&upper->host_side);
	counts->host_rows += upper->host_rows;
	counts->pool_wait_ms += gpurhh_channel_pool_wait_ms(upper->channel);
	counts->late_batches += gpurhh_channel_late_batches(upper->channel);
	*host = upper->host;
	return upper->channel;
}
