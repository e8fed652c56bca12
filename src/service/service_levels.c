/*-------------------------------------------------------------------------
 *
 * service_levels.c
 *		The device service makes a second level of groups (exec/levels.c).
 *
 *		start_level		makes the second map, if there is memory for it
 *		make_level		is called again and again, and does what can be done
 *						without waiting: it asks the device for groups of the first
 *						map, and makes batches of them (batch/level_rows.c), one for
 *						each set
 *		level_read		is called when the device has delivered such groups
 *		end_level		frees what the work needed besides the maps
 *
 * When all groups of the first map have been read, it is freed, unless its groups
 * are results themselves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "service/service_state.h"

/* How many batches of a second level are under way: enough to keep a device busy. */
#define LEVEL_OUTSTANDING 12

/*
 * The first map's groups on their way to the second one.  The device fills one chunk
 * while the other becomes batches.  Chunks are memory of the service's own rather
 * than blocks of the pool: so nobody waits for a block while holding another.
 */
struct LevelWork
{
	Feed		feed;
	rhh_result	chunk[2];
	int			current;		/* the chunk that becomes batches next */
	int			n_chunks;		/* how many of the two are full */
	bool		reading;		/* the device fills another one */
	bool		all_read;
	int			set;			/* the next batch's, */
	uint32		next;			/* and its first group in the current chunk */
};

/* Frees what the work on a second level needed, if the query has any. */
void
gpurhh_service_end_level(ServiceQuery *sq)
{
	if (sq->level == NULL)
		return;
	for (int i = 0; i < 2; i++)
	{
		if (sq->level->chunk[i].words != NULL)
			pfree(sq->level->chunk[i].words);
	}
	pfree(sq->level);
	sq->level = NULL;
}

/* Allocates sq->level.  Returns false, and leaves nothing, if there is no memory. */
static bool
make_level_work(ChannelArea *area, ServiceQuery *sq, const ChannelQuery *query)
{
	LevelWork  *work;

	sq->level = work =
		MemoryContextAllocExtended(TopMemoryContext, sizeof(LevelWork),
								   MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
	for (int i = 0; i < 2 && work != NULL; i++)
	{
		work->chunk[i].words =
			MemoryContextAllocExtended(TopMemoryContext, area->block_bytes,
									   MCXT_ALLOC_NO_OOM);
		work->chunk[i].capacity_groups = area->block_bytes / sizeof(uint64) /
			rhh_result_words(&query->spec);
		if (work->chunk[i].words == NULL)
		{
			gpurhh_service_end_level(sq);
			work = NULL;
		}
	}
	if (work == NULL)
		return false;
	gpurhh_level_rows_init(&work->feed, &query->level_plan,
						   area->block_bytes,
						   query->level_plan.spec.max_batch_rows);
	return true;
}

/*
 * To be called when the session wants the device to make the second level.  Makes
 * its map.  If there is no memory for that, tells the session, which then makes the
 * level by itself.
 */
void
gpurhh_service_start_level(ChannelArea *area, ServiceQuery *sq,
						   ChannelQuery *query)
{
	rhh_map    *second = NULL;
	rhh_status	status = RHH_NO_MEMORY;
	rhh_error	err = {0};

	if (make_level_work(area, sq, query))
	{
		status = gpurhh_service_make_map(sq, &query->level_plan.spec,
										 &second, &err);
		if (status != RHH_OK)
			gpurhh_service_end_level(sq);
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (status == RHH_OK)
	{
		query->level = QUERY_LEVEL_ON_DEVICE;
		sq->first_map = sq->map;
		sq->map = second;
		sq->state = MAP_MAKING_LEVEL;
	}
	else if (status == RHH_NO_MEMORY)
	{
		query->level = QUERY_LEVEL_NONE;
		query->finished = true;
		ConditionVariableBroadcast(&query->news);
	}
	else
		gpurhh_service_fail(sq, query, status, &err);
	LWLockRelease(&area->lock);
}

/* Asks for the first map's next groups, if a chunk is free for them. */
static bool
read_first_level(ChannelArea *area, ServiceQuery *sq, ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	rhh_error	err = {0};
	rhh_status	status;

	if (work->all_read || work->reading || work->n_chunks == 2)
		return false;
	status = sq->device->ops->map_extract(sq->first_map,
										  &work->chunk[(work->current + work->n_chunks) % 2],
										  0, &err);
	if (status == RHH_BUSY)
		return false;
	if (status == RHH_OK)
	{
		work->reading = true;
		sq->in_flight++;
		return true;
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_service_fail(sq, query, status, &err);
	LWLockRelease(&area->lock);
	return true;
}

/*
 * To be called when the device has completed the extraction that read_first_level()
 * asked for.  The caller holds the lock.
 */
void
gpurhh_service_level_read(ServiceQuery *sq, rhh_status status)
{
	LevelWork  *work = sq->level;
	int			read = (work->current + work->n_chunks) % 2;

	work->reading = false;
	if (status != RHH_OK)
		return;
	work->n_chunks++;
	work->all_read = work->chunk[read].last;
}

/*
 * Takes a block for the next batch; returns -1 if there is none now.  The last free
 * block of the pool is taken only if the query has no other: then it comes back,
 * even if the session has to wait for it.
 */
static int
take_block(ChannelArea *area, ChannelQuery *query)
{
	int			block = -1;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (query->n_outstanding < LEVEL_OUTSTANDING)
	{
		if (area->n_free > 1 || (area->n_free == 1 && query->n_outstanding == 0))
		{
			block = gpurhh_block_take(area, BLOCK_SERVICE);
			query->n_outstanding++;
		}
		else
			area->service_wants_block = true;
	}
	LWLockRelease(&area->lock);
	return block;
}

/*
 * Makes a batch of the next groups that were read, and queues it.  Returns whether
 * it has made any progress.
 */
static bool
queue_batch(ChannelArea *area, ServiceQuery *sq, ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	const rhh_result *chunk = &work->chunk[work->current];
	uint32		n;
	int			block;

	if (work->n_chunks == 0)
		return false;
	n = Min(chunk->n_groups - work->next, work->feed.capacity_rows);
	if (n > 0)
	{
		block = take_block(area, query);
		if (block < 0)
			return false;
		gpurhh_feed_start(&work->feed, gpurhh_block_base(area, block));
		gpurhh_level_rows_feed(&work->feed, &query->level_plan, work->set,
							   chunk->words + work->next,
							   chunk->capacity_groups, n);
		gpurhh_feed_finish(&work->feed, &area->blocks[block].batch);
		area->blocks[block].all_rows = false;
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		gpurhh_block_push(area, &query->queued, block);
		LWLockRelease(&area->lock);
		work->next += n;
	}
	if (work->next < chunk->n_groups)
		return true;
	work->next = 0;
	if (++work->set < query->level_plan.n_sets)
		return true;
	work->set = 0;
	work->current = 1 - work->current;
	work->n_chunks--;
	return true;
}

/*
 * Moves more of the first map's groups towards the second one.  Returns whether
 * there was anything to do.
 */
bool
gpurhh_service_make_level(ChannelArea *area, ServiceQuery *sq,
						  ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	bool		progress;

	if (work == NULL)
		return false;
	progress = read_first_level(area, sq, query);
	if (queue_batch(area, sq, query))
		progress = true;
	if (work->all_read && work->n_chunks == 0)
	{
		rhh_error	err = {0};

		gpurhh_service_end_level(sq);
		if (!query->level_plan.keep_first)
		{
			sq->device->ops->map_destroy(sq->first_map);
			sq->first_map = NULL;
		}
		else
		{
			rhh_status	status = sq->device->ops->map_rewind(sq->first_map, &err);

			if (status != RHH_OK)
			{
				LWLockAcquire(&area->lock, LW_EXCLUSIVE);
				gpurhh_service_fail(sq, query, status, &err);
				LWLockRelease(&area->lock);
			}
		}
		progress = true;
	}
	return progress;
}
