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

struct LevelFeed
{
	LevelPlan  *plan;
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
LevelFeed *
gpurhh_level_feed_start(Level *level, MemoryContext context)
{
	LevelPlan  *plan = gpurhh_level_plan(level);
	const char *why;
	ChannelArea *area = gpurhh_channel_attach(&why);
	Channel    *channel;
	LevelFeed  *level_feed;

	if (area == NULL)
		return NULL;
	level_feed = MemoryContextAllocZero(context, sizeof(LevelFeed));
	gpurhh_level_rows_init(&level_feed->feed, plan, area->block_bytes,
						   gpurhh_batch_rows);
	plan->spec.max_batch_rows = level_feed->feed.capacity_rows;
	plan->spec.max_batch_bytes = area->block_bytes;
	channel = gpurhh_channel_open(area, &plan->spec, NULL, false, context, &why);
	if (channel == NULL)
		return NULL;
	level_feed->plan = plan;
	level_feed->channel = channel;
	level_feed->waits = true;
	level_feed->own_block = (char *)
		TYPEALIGN(64, MemoryContextAlloc(context, area->block_bytes + 64));
	level_feed->host_side = (HostSide){
		.table = &level_feed->host,
		.spec = &plan->spec,
		.context = context,
		.channel = channel,
		.n_rows = &level_feed->host_rows,
		.area = area
	};
	return level_feed;
}

/* The batch to the service, or into the host table. */
static void
hand_over(LevelFeed *level_feed)
{
	rhh_batch	batch;
	char	   *base;
	ChannelBlockResult result;

	gpurhh_feed_finish(&level_feed->feed, &batch);
	while ((result = gpurhh_channel_acquire(level_feed->channel, level_feed->waits,
											&base)) == CHANNEL_RETURNED)
		gpurhh_take_returned(&level_feed->host_side);
	level_feed->waits = result == CHANNEL_BLOCK;
	if (result == CHANNEL_BLOCK)
	{
		memcpy(base, level_feed->own_block, batch.used_bytes);
		gpurhh_channel_submit(level_feed->channel, &batch);
	}
	else
	{
		batch.base = (uint8_t *) level_feed->own_block;
		gpurhh_add_on_host(&level_feed->host_side, &batch, true);
	}
}

/* Takes n groups, whose word w is at words[w * stride + i]. */
void
gpurhh_level_feed_add(LevelFeed *level_feed, const uint64 *words, Size stride, uint32 n)
{
	Feed	   *feed = &level_feed->feed;

	while (n > 0)
	{
		uint32		m;

		if (feed->base == NULL)
			gpurhh_feed_start(feed, level_feed->own_block);
		m = Min(n, feed->capacity_rows - feed->n_rows);
		gpurhh_level_rows_feed(feed, level_feed->plan, 0, words, stride, m);
		if (feed->n_rows == feed->capacity_rows)
			hand_over(level_feed);
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
gpurhh_level_feed_finish(LevelFeed *level_feed, HostTable **host, GpuNodeCounts *counts)
{
	if (level_feed->feed.base != NULL)
		hand_over(level_feed);
	gpurhh_channel_end_input(level_feed->channel);
	while (!gpurhh_channel_wait_finished(level_feed->channel))
		gpurhh_take_returned(&level_feed->host_side);
	counts->host_rows += level_feed->host_rows;
	counts->pool_wait_ms += gpurhh_channel_pool_wait_ms(level_feed->channel);
	counts->late_batches += gpurhh_channel_late_batches(level_feed->channel);
	*host = level_feed->host;
	return level_feed->channel;
}
