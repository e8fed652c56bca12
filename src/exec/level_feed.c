/*-------------------------------------------------------------------------
 *
 * level_feed.c
 *		Feeds the groups of one stage to a map of the next stage, on a device.
 *
 * The third stage is made so.  The session has all groups of the second stage, each
 * of them once, wherever they were made.  They become rows in the same way in which
 * the service makes rows of a map's groups (batch/level_rows.c), and they go through
 * blocks of the pool like rows of a table, in a query of their own.
 *
 * The rows are made in memory of this session and are copied into a block when that
 * memory is full.  No block is held meanwhile, because the session waits for results
 * of the second stage between two rows, and results need blocks, too.
 *
 *		start -> add* -> finish
 *
 * After that the stage's map can be read.  What start makes is in the context of the
 * run; the query belongs to the stage from the moment when it is opened.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "exec/stage.h"
#include "settings.h"

struct LevelFeed
{
	AggStage   *stage;
	LevelPlan  *plan;
	Feed		feed;
	bool		waits;			/* the last batch found a block of the pool */
	char	   *own_block;		/* where the rows of a batch are made */
};

/*
 * Opens a query for the stage's map, whose spec has its limits.  NULL: no device can
 * be had.
 */
LevelFeed *
gpurhh_level_feed_start(AggStage *stage)
{
	LevelPlan  *plan = gpurhh_level_plan(stage->level);
	const char *why;
	ChannelArea *area = gpurhh_channel_attach(&why);
	Channel    *channel;
	LevelFeed  *level_feed;

	if (area == NULL)
		return NULL;
	level_feed = MemoryContextAllocZero(stage->context, sizeof(LevelFeed));
	gpurhh_level_rows_init(&level_feed->feed, plan, area->block_bytes,
						   gpurhh_batch_rows);
	plan->spec.max_batch_rows = level_feed->feed.capacity_rows;
	plan->spec.max_batch_bytes = area->block_bytes;
	channel = gpurhh_channel_open(area, &plan->spec, NULL, NULL, NULL, false, false,
								  stage->context, &why);
	if (channel == NULL)
		return NULL;
	gpurhh_stage_use_query(stage, channel, true);
	level_feed->stage = stage;
	level_feed->plan = plan;
	level_feed->waits = true;
	level_feed->own_block = (char *)
		TYPEALIGN(64, MemoryContextAlloc(stage->context, area->block_bytes + 64));
	return level_feed;
}

/* Gives a full batch to the service, or to the host table if no block can be had. */
static void
hand_over(LevelFeed *level_feed)
{
	AggStage   *stage = level_feed->stage;
	rhh_batch	batch;
	char	   *base;
	ChannelBlockResult result;

	gpurhh_feed_finish(&level_feed->feed, &batch);
	while ((result = gpurhh_channel_acquire(stage->channel, level_feed->waits,
											&base)) == CHANNEL_RETURNED)
		gpurhh_stage_take_returned(stage);
	level_feed->waits = result == CHANNEL_BLOCK;
	if (result == CHANNEL_BLOCK)
	{
		memcpy(base, level_feed->own_block, batch.used_bytes);
		gpurhh_channel_submit(stage->channel, &batch);
	}
	else
	{
		batch.base = (uint8_t *) level_feed->own_block;
		gpurhh_stage_add_on_host(stage, &batch, true);
	}
}

/* Takes n groups of the stage's source, whose word w is at words[w * stride + i]. */
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
 * There are no more groups: waits until the map can be read.  What it refuses until
 * then goes to the stage's host table.
 */
void
gpurhh_level_feed_finish(LevelFeed *level_feed)
{
	AggStage   *stage = level_feed->stage;

	if (level_feed->feed.base != NULL)
		hand_over(level_feed);
	gpurhh_channel_end_input(stage->channel);
	while (!gpurhh_channel_wait_finished(stage->channel))
		gpurhh_stage_take_returned(stage);
	stage->counts->pool_wait_ms += gpurhh_channel_pool_wait_ms(stage->channel);
	stage->counts->late_batches += gpurhh_channel_late_batches(stage->channel);
}
