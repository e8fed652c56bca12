/*-------------------------------------------------------------------------
 *
 * service_levels.c
 *		The device service makes a second level of groups (exec/levels.c).
 *
 * The device makes rows of the first map's groups and puts them into a second map.
 * These rows never leave the device, unless the second map refuses some.
 *
 *		start_level		makes the second map, if there is memory for it
 *		make_level		is called again and again, and does what can be done
 *						without waiting: it asks the device for the next pieces of
 *						rows, and hands refused rows to the session
 *		piece_fed		is called when the device has completed a piece
 *		level_read		is called when the device has delivered groups whose rows
 *						were refused
 *		end_level		frees what the work needed besides the maps
 *
 * Of a refused row the device tells only the number.  The service then extracts that
 * group from the first map, makes its row once more (batch/level_rows.c), in a block
 * of the pool, and returns the block to the session as a batch of which no row was
 * taken.
 *
 * With a program, which computes columns of the rows and drops some (exec/chain.c), none comes
 * back.  If the second map lacks rows it is thrown away (give_up_level), and the session
 * makes the level of the first map's groups.
 *
 * When all rows are in the second map or with the session, the first map is freed,
 * unless its groups are results themselves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "service/service_state.h"

/* Pieces that are under way on the device: enough to keep it busy. */
#define LEVEL_PIECES 8

/* Rows of a piece, at most.  The device may make smaller ones. */
#define LEVEL_PIECE_ROWS (1 << 22)

/* With a program there is memory for several pieces. */
#define LEVEL_PROGRAM_ROWS (1 << 20)

/* Blocks with refused rows that wait for the session, at most. */
#define LEVEL_OUTSTANDING 12

typedef enum PieceState
{
	PIECE_FREE,
	PIECE_FED,					/* the device works on it */
	PIECE_REFUSED				/* rows of it were refused, and are to go to the
								 * session */
} PieceState;

typedef struct LevelPiece
{
	PieceState	state;
	rhh_feed	feed;			/* with a bitmap of the service's own */
} LevelPiece;

/*
 * The first map's groups on their way to the second one.
 *
 * Refused rows go to the session from one piece at a time, in portions: chunk has
 * groups of the piece from n_read on.  It is memory of the service's own rather than a
 * block of the pool: so nobody waits for a block while holding another.
 */
struct LevelWork
{
	LevelPiece	pieces[LEVEL_PIECES];
	uint32		set;			/* of the next piece, */
	uint64		next_group;		/* and its first group */
	bool		all_fed;
	bool		lacks_rows;		/* of a map with a program: it is of no use */

	LevelPiece *returning;		/* whose refused rows go to the session now; NULL:
								 * none's */
	uint32		n_read;			/* groups of it that are done with */
	rhh_result	chunk;
	bool		reading;		/* the device fills the chunk */
	bool		chunk_full;
	uint32		chunk_next;		/* the next of its groups */
	Feed		feed;			/* makes rows of them in a block */
};

/* Frees what the work on a second level needed, if the query has any. */
void
gpurhh_service_end_level(ServiceQuery *sq)
{
	LevelWork  *work = sq->level;

	if (work == NULL)
		return;
	for (int i = 0; i < LEVEL_PIECES; i++)
	{
		if (work->pieces[i].feed.refused != NULL)
			pfree(work->pieces[i].feed.refused);
	}
	if (work->chunk.words != NULL)
		pfree(work->chunk.words);
	pfree(work);
	sq->level = NULL;
}

/* Memory that lasts until it is freed; NULL if there is none. */
static void *
allocate(Size bytes)
{
	return MemoryContextAllocExtended(TopMemoryContext, bytes,
									  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
}

/* The rows of a piece, at most. */
static uint32
piece_rows(const LevelPlan *plan)
{
	return plan->has_program ? LEVEL_PROGRAM_ROWS : LEVEL_PIECE_ROWS;
}

/* Allocates sq->level.  Returns false, and leaves nothing, if there is no memory. */
static bool
make_level_work(ChannelArea *area, ServiceQuery *sq, const ChannelQuery *query)
{
	LevelWork  *work = sq->level = allocate(sizeof(LevelWork));
	bool		complete;

	if (work == NULL)
		return false;
	work->chunk.words = allocate(area->block_bytes);
	complete = work->chunk.words != NULL;
	for (int i = 0; i < LEVEL_PIECES; i++)
	{
		rhh_feed   *feed = &work->pieces[i].feed;

		feed->source = sq->map;
		feed->rows = &query->level_plan.rows;
		feed->refused = allocate(piece_rows(&query->level_plan) / 8);
		complete &= feed->refused != NULL;
	}
	if (!complete)
	{
		gpurhh_service_end_level(sq);
		return false;
	}
	gpurhh_level_rows_init(&work->feed, &query->level_plan, area->block_bytes,
						   query->level_plan.spec.max_batch_rows);
	return true;
}

/* Gives the second level's map its program. */
static rhh_status
add_program(ServiceQuery *sq, rhh_map *map, const LevelPlan *plan, rhh_error *err)
{
	rhh_join_spec *spec = allocate(sizeof(rhh_join_spec));
	rhh_status	status;

	if (spec == NULL)
		return RHH_NO_MEMORY;
	spec->n_columns = plan->n_fed;
	memcpy(spec->column_bytes, plan->fed_bytes, sizeof(spec->column_bytes));
	memcpy(spec->column, plan->column, sizeof(spec->column));
	spec->program = &plan->program;
	status = sq->device->ops->map_join(map, spec, err);
	pfree(spec);
	return status;
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
		rhh_map_spec spec = query->level_plan.spec;

		spec.max_batch_rows = piece_rows(&query->level_plan);
		status = gpurhh_service_make_map(sq, &spec, &second, &err);
		if (status == RHH_OK && query->level_plan.has_program)
		{
			status = add_program(sq, second, &query->level_plan, &err);
			if (status != RHH_OK)
				sq->device->ops->map_destroy(second);
		}
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

/*
 * Asks the device for the next pieces of rows, as many as it takes now.  Returns
 * whether there was anything to do.
 */
static bool
feed_pieces(ChannelArea *area, ServiceQuery *sq, ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	bool		progress = false;

	for (int i = 0; i < LEVEL_PIECES && !work->all_fed && !work->lacks_rows; i++)
	{
		LevelPiece *piece = &work->pieces[i];
		rhh_error	err = {0};
		rhh_status	status;

		if (piece->state != PIECE_FREE)
			continue;
		piece->feed.set = work->set;
		piece->feed.first_group = work->next_group;
		status = sq->device->ops->map_feed(sq->map, &piece->feed, (uint64) i, &err);
		if (status == RHH_BUSY)
			break;
		progress = true;
		if (status != RHH_OK)
		{
			LWLockAcquire(&area->lock, LW_EXCLUSIVE);
			gpurhh_service_fail(sq, query, status, &err);
			LWLockRelease(&area->lock);
			break;
		}
		if (piece->feed.n_groups > 0)
		{
			piece->state = PIECE_FED;
			sq->in_flight++;
			work->next_group += piece->feed.n_groups;
			continue;
		}
		/* there were no more groups, so the next set begins, in the same piece */
		work->next_group = 0;
		work->all_fed = ++work->set == query->level_plan.rows.n_sets;
		i--;
	}
	return progress;
}

/* To be called when the device has completed a piece.  The caller holds the lock. */
void
gpurhh_service_piece_fed(ServiceQuery *sq, const ChannelQuery *query, const rhh_event *event)
{
	LevelPiece *piece = &sq->level->pieces[event->tag];
	const bool	refused = event->status == RHH_OK && event->n_refused > 0;

	piece->state = refused && !query->level_plan.has_program ? PIECE_REFUSED : PIECE_FREE;
	if (refused && query->level_plan.has_program)
		sq->level->lacks_rows = true;
}

/*
 * Asks for the groups whose rows are to be returned next.  Returns whether it did
 * anything.
 */
static bool
read_refused(ChannelArea *area, ServiceQuery *sq, ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	uint32		most = area->block_bytes / sizeof(uint64) /
		rhh_result_words(&query->spec);
	rhh_error	err = {0};
	rhh_status	status;

	for (int i = 0; i < LEVEL_PIECES && work->returning == NULL; i++)
	{
		if (work->pieces[i].state == PIECE_REFUSED)
		{
			work->returning = &work->pieces[i];
			work->n_read = 0;
		}
	}
	if (work->returning == NULL || work->reading || work->chunk_full)
		return false;
	work->chunk.capacity_groups = Min(most, work->returning->feed.n_groups - work->n_read);
	work->chunk_next = 0;
	status = sq->device->ops->map_seek(sq->first_map,
									   work->returning->feed.first_group + work->n_read,
									   &err);
	if (status == RHH_OK)
		status = sq->device->ops->map_extract(sq->first_map, &work->chunk, 0, &err);
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
 * To be called when the device has completed the extraction that read_refused()
 * asked for.  The caller holds the lock.
 */
void
gpurhh_service_level_read(ServiceQuery *sq, rhh_status status)
{
	sq->level->reading = false;
	sq->level->chunk_full = status == RHH_OK;
}

/*
 * Takes a block for refused rows; returns -1 if there is none now.
 *
 * The last free block of the pool is kept for results (channel.c).  It is taken all the
 * same if no block of the query is in use, because otherwise the level might never be
 * completed.  It is soon free again: meanwhile the session does nothing but wait for
 * the level, so it takes the block, adds its rows to the host table and frees it.
 */
static int
take_block(ChannelArea *area, ChannelQuery *query)
{
	int			block = -1;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (query->n_outstanding < LEVEL_OUTSTANDING &&
		(area->n_free > 1 || (area->n_free == 1 && query->n_outstanding == 0)))
	{
		block = gpurhh_block_take(area, BLOCK_SERVICE);
		query->n_outstanding++;
	}
	else
		area->service_wants_block = true;	/* the session's blocks, too, wake us */
	LWLockRelease(&area->lock);
	return block;
}

/* Was the row refused that was made of the piece's group number g? */
static inline bool
is_refused(const LevelPiece *piece, uint32 g)
{
	return (piece->feed.refused[g / 8] >> (g % 8)) & 1;
}

/* All refused rows of the chunk's groups have gone to the session. */
static void
end_chunk(LevelWork *work)
{
	work->chunk_full = false;
	work->n_read += work->chunk.n_groups;
	if (work->n_read == work->returning->feed.n_groups)
	{
		work->returning->state = PIECE_FREE;
		work->returning = NULL;
	}
}

/*
 * Makes the refused rows of the chunk's groups in a block, and returns the block to
 * the session.  Returns whether it did anything.
 */
static bool
return_refused(ChannelArea *area, ServiceQuery *sq, ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	LevelPiece *piece = work->returning;
	const rhh_result *chunk = &work->chunk;
	int			block;

	if (!work->chunk_full)
		return false;
	/* a chunk without a refused row needs no block */
	while (work->chunk_next < chunk->n_groups &&
		   !is_refused(piece, work->n_read + work->chunk_next))
		work->chunk_next++;
	if (work->chunk_next == chunk->n_groups)
	{
		end_chunk(work);
		return true;
	}
	block = take_block(area, query);
	if (block < 0)
		return false;
	gpurhh_feed_start(&work->feed, gpurhh_block_base(area, block));
	while (work->chunk_next < chunk->n_groups &&
		   work->feed.n_rows < work->feed.capacity_rows)
	{
		uint32		first = work->chunk_next;
		uint32		end = first;
		uint32		room = work->feed.capacity_rows - work->feed.n_rows;

		/* consecutive ones at once */
		while (end < chunk->n_groups && end - first < room &&
			   is_refused(piece, work->n_read + end))
			end++;
		if (end > first)
			gpurhh_level_rows_feed(&work->feed, &query->level_plan, piece->feed.set,
								   chunk->words + first, chunk->capacity_groups,
								   end - first);
		work->chunk_next = end > first ? end : first + 1;
	}

	gpurhh_feed_finish(&work->feed, &area->blocks[block].batch);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	area->blocks[block].all_rows = true;
	area->blocks[block].more = false;
	gpurhh_service_return_block(area, query, block);
	LWLockRelease(&area->lock);
	if (work->chunk_next == chunk->n_groups)
		end_chunk(work);
	return true;
}

/* Are all rows in the second map, or with the session? */
static bool
all_done(const LevelWork *work)
{
	for (int i = 0; i < LEVEL_PIECES; i++)
	{
		if (work->pieces[i].state != PIECE_FREE)
			return false;
	}
	return work->all_fed || work->lacks_rows;
}

/* The map lacks rows: the session makes it of the first one's groups, which are all there. */
static void
give_up_level(ChannelArea *area, ServiceQuery *sq, ChannelQuery *query)
{
	rhh_error	err = {0};
	rhh_status	status;

	sq->device->ops->map_destroy(sq->map);
	sq->map = sq->first_map;
	sq->first_map = NULL;
	sq->state = MAP_READING;
	status = sq->device->ops->map_seek(sq->map, 0, &err);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->level = QUERY_LEVEL_NONE;
	query->finished = true;
	ConditionVariableBroadcast(&query->news);
	if (status != RHH_OK)
		gpurhh_service_fail(sq, query, status, &err);
	LWLockRelease(&area->lock);
}

/*
 * Moves more of the first map's groups to the second one.  Returns whether there was
 * anything to do.
 */
bool
gpurhh_service_make_level(ChannelArea *area, ServiceQuery *sq,
						  ChannelQuery *query)
{
	LevelWork  *work = sq->level;
	bool		progress;

	if (work == NULL)
		return false;
	progress = read_refused(area, sq, query);
	if (return_refused(area, sq, query))
		progress = true;
	if (feed_pieces(area, sq, query))
		progress = true;
	if (all_done(work))
	{
		rhh_error	err = {0};
		const bool	lacks_rows = work->lacks_rows;

		gpurhh_service_end_level(sq);
		if (lacks_rows)
			give_up_level(area, sq, query);
		else if (!query->level_plan.keep_first)
		{
			sq->device->ops->map_destroy(sq->first_map);
			sq->first_map = NULL;
		}
		else
		{
			rhh_status	status = sq->device->ops->map_seek(sq->first_map, 0, &err);

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
