/*-------------------------------------------------------------------------
 *
 * queries.c
 *		What the device service does for a query.
 *
 * For each query the service keeps a state (QueryMapState), which goes through
 *
 *		NONE -> OPEN -> FINISHING -> READING	a device has a map for the query
 *		NONE -> DECLINED						no device has one
 *
 * While a query is OPEN, its batches go to the map.  FINISHING starts when the
 * session has submitted the last one, and in READING the groups are fetched.  A
 * query is declined if no device can be opened, or if the device has no memory for
 * the map; then each batch goes back to the session as it came.
 *
 * The service calls gpurhh_service_advance_query() for each query, again and again.
 * It does what can be done without waiting: it makes the map, submits the batches
 * that are queued, and asks the device for groups.  gpurhh_service_poll_device()
 * takes what a device has completed, and hands it to the session.
 *
 * If the session wants a second level of groups (exec/levels.c), the query goes from
 * READING to MAKING_LEVEL (service_levels.c).  The device then makes rows of the first
 * map's groups for a second map.  Rows that the second map refuses go to the session.
 * After the last row the query goes through FINISHING and READING once more.
 *
 * A query whose rows the device joins stays in NONE until its build sides are finished
 * (service_joins.c).  The query of a build side ends in READING, where nothing is read; or in
 * DECLINED without a map, once it is known that it will not be probed.  A build side may be what
 * comes out of other joins, with build sides of their own.
 *
 * All functions of this file are called with signals blocked, because they call
 * devices.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "storage/lwlock.h"

#include "compat.h"
#include "service/service_state.h"

/* Frees the blocks on a list.  The caller holds the lock. */
static void
free_blocks(ChannelArea *area, BlockList *list)
{
	int			block;

	while ((block = gpurhh_block_pop(area, list)) >= 0)
		gpurhh_block_free(area, block);
}

/*
 * Adds to *sum what a map has done since *before, and sets *before to *now.  The
 * caller holds the lock.
 */
static void
publish_stats(ServiceStats *sum, rhh_map_stats *before,
			  const rhh_map_stats *now)
{
	sum->failed_slots += now->failed_slots - before->failed_slots;
	sum->rehashes += now->rehashes - before->rehashes;
	sum->bytes_uploaded += now->uploaded_bytes - before->uploaded_bytes;
	sum->upload_ns += now->upload_ns - before->upload_ns;
	sum->kernel_ns += now->kernel_ns - before->kernel_ns;
	sum->extract_ns += now->extract_ns - before->extract_ns;
	*before = *now;
}

/*
 * Marks a query as failed.  Its session raises an error with this message.  The
 * caller holds the lock.
 */
void
gpurhh_service_fail_query(ChannelQuery *query, const char *message)
{
	if (query->failed)
		return;
	query->failed = true;
	strlcpy(query->message, message, GPURHH_MESSAGE_LEN);
	ConditionVariableBroadcast(&query->news);
}

/*
 * Marks a query as failed because a call of its device returned this status and
 * error.  A device error also ends the service.  The caller holds the lock.
 */
void
gpurhh_service_fail(ServiceQuery *sq, ChannelQuery *query, rhh_status status,
					const rhh_error *err)
{
	if (status == RHH_DEVICE_ERROR)
		gpurhh_service_note_device_error(sq->device, err->message);
	gpurhh_service_fail_query(query, err->message);
}

/*
 * Makes a map for a spec, with a hash seed that only the service knows.  So nobody
 * can choose keys that collide, which would keep the device busy while others wait.
 */
rhh_status
gpurhh_service_make_map(ServiceQuery *sq, const rhh_map_spec *wanted,
						rhh_map **map, rhh_error *err)
{
	rhh_map_spec spec = *wanted;

	spec.hash_seed = pg_prng_uint64(&pg_global_prng_state);
	if (!gpurhh_service_reads_pages(sq->device))
		spec.max_page_bytes = 0;
	return sq->device->ops->map_create(sq->device->device, &spec, map, err);
}

/*
 * Begins with a new query: makes its map, or declines the query.  Returns false if it is
 * too early, because a build side that it probes is not finished.
 */
static bool
start_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	bool		joins = query->join_state != QUERY_JOINS_NONE;
	bool		is_build = gpurhh_service_is_build(query);
	const char *no_joins = NULL;
	bool		pages = false;
	char		note[GPURHH_MESSAGE_LEN];
	rhh_error	err = {0};
	rhh_error	join_err = {0};

	if (joins && !gpurhh_service_look_at_builds(service, q, &no_joins))
		return false;
	memset(sq, 0, sizeof(ServiceQuery));
	sq->result_block = -1;
	sq->state = MAP_DECLINED;
	note[0] = '\0';
	/* a build side that is what comes out of joins is of no use without these */
	if (joins && no_joins != NULL && is_build)
		strlcpy(note, no_joins, sizeof(note));
	else if (joins && no_joins == NULL)
		sq->device = service->queries[query->joins.build[0]].device;
	else
		sq->device = gpurhh_service_choose_device(service, query->device, note,
												  sizeof(note));
	if (sq->device != NULL)
	{
		rhh_status	status;

		if (no_joins != NULL)
			gpurhh_service_drop_leaves(&query->spec);
		status = gpurhh_service_make_map(sq, &query->spec, &sq->map, &err);
		if (status == RHH_OK)
			sq->state = MAP_OPEN;
		else
		{
			sq->map = NULL;
			strlcpy(note, err.message, sizeof(note));
			if (status == RHH_DEVICE_ERROR)
				gpurhh_service_note_device_error(sq->device, err.message);
		}
	}
	if (joins && no_joins == NULL)
		no_joins = sq->state != MAP_OPEN ? note :
			gpurhh_service_start_joins(service, q, &join_err);
	/* rows of joins that the session does come in columns that are not those of pages */
	pages = query->pages && sq->state == MAP_OPEN && gpurhh_service_reads_pages(sq->device) && no_joins == NULL &&
		(query->pages_on_cpu || sq->device->ops->kind != RHH_KIND_CPU);
	if (join_err.status == RHH_DEVICE_ERROR)
		gpurhh_service_note_device_error(sq->device, join_err.message);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->started = true;
	query->pages = pages;
	query->by_cpu = pages && sq->device->ops->kind == RHH_KIND_CPU;
	query->cache = pages && gpurhh_service_may_cache(service, sq->device);
	ConditionVariableBroadcast(&query->news);
	if (joins)
	{
		query->join_state = no_joins ? QUERY_JOINS_OFF : QUERY_JOINS_ON_DEVICE;
		strlcpy(query->joins_message, no_joins ? no_joins : "", GPURHH_MESSAGE_LEN);
		ConditionVariableBroadcast(&query->news);
	}
	strlcpy(query->message, note, GPURHH_MESSAGE_LEN);
	strlcpy(query->used_device,
			sq->state == MAP_OPEN ? sq->device->name : "host",
			sizeof(query->used_device));
	query->declined = sq->state == MAP_DECLINED;
	if (is_build && (query->declined || no_joins != NULL))
	{
		if (err.status == RHH_NO_MEMORY || join_err.status == RHH_NO_MEMORY)
			gpurhh_service_spoil_full(query, no_joins != NULL ? no_joins : note);
		else
			gpurhh_query_spoil(query, no_joins != NULL ? no_joins : note);
	}
	if (service->device_error[0] != '\0')
		gpurhh_service_fail_query(query, service->device_error);
	LWLockRelease(&area->lock);
	return true;
}

/*
 * Hands a batch back to the session, which finishes the rows that are marked as
 * refused, or all of them.  The caller holds the lock.
 */
void
gpurhh_service_return_block(ChannelArea *area, ChannelQuery *query, int block)
{
	gpurhh_block_push(area, &query->returned, block);
	ConditionVariableBroadcast(&query->news);
}

/*
 * Hands queued batches to the device, or back to the session if the query was
 * declined.  Returns whether there was anything to do.
 */
static bool
submit_batches(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	bool		progress = false;

	for (;;)
	{
		int			block;
		rhh_batch	batch;
		rhh_error	err = {0};
		rhh_status	status;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		block = query->queued.head;
		if (block >= 0 && sq->state == MAP_DECLINED)
		{
			(void) gpurhh_block_pop(area, &query->queued);
			area->blocks[block].all_rows = true;
			/* pages go to the one who has pinned them, who feeds their rows */
			if (gpurhh_service_is_build(query) || area->blocks[block].batch.n_pages > 0)
				gpurhh_block_done(area, query, block);
			else
				gpurhh_service_return_block(area, query, block);
		}
		LWLockRelease(&area->lock);
		if (block < 0)
			return progress;
		progress = true;
		if (sq->state == MAP_DECLINED)
			continue;

		batch = area->blocks[block].batch;
		batch.base = (uint8_t *) gpurhh_block_base(area, block);
		if (!gpurhh_service_begin_cached(service, sq, block, &batch))
		{
			LWLockAcquire(&area->lock, LW_EXCLUSIVE);
			(void) gpurhh_block_pop(area, &query->queued);
			area->blocks[block].all_rows = true;
			gpurhh_block_done(area, query, block);
			LWLockRelease(&area->lock);
			continue;
		}
		status = sq->device->ops->map_submit(sq->map, &batch,
											 (uint64) block, &err);
		if (status != RHH_OK)
			gpurhh_service_undo_cached(service, block);
		if (status == RHH_BUSY)
			return false;
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		if (status == RHH_OK)
		{
			(void) gpurhh_block_pop(area, &query->queued);
			sq->in_flight++;
		}
		else
		{
			gpurhh_service_fail(sq, query, status, &err);
			free_blocks(area, &query->queued);
		}
		LWLockRelease(&area->lock);
		if (status != RHH_OK)
			return true;
	}
}

/*
 * To be called when no more batches will come.  Once the device has completed those
 * it has, asks it to finish the map.  Returns whether that was done.
 */
static bool
finish_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	rhh_error	err = {0};
	rhh_status	status = RHH_OK;

	/* a batch that will be submitted again is with the session meanwhile */
	if (sq->in_flight > 0 || query->queued.head >= 0 || query->n_unjoined > 0)
		return false;
	/* they are on the groups of the first level */
	if (sq->state == MAP_OPEN && query->n_conditions > 0 && !query->has_parts)
		status = sq->device->ops->map_filter(sq->map, query->conditions, query->n_conditions, &err);
	if (sq->state != MAP_DECLINED && status == RHH_OK)
		status = sq->device->ops->map_finish(sq->map, &err);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (sq->state == MAP_DECLINED)
	{
		query->finished = true;
		query->all_extracted = true;
		ConditionVariableBroadcast(&query->news);
	}
	else if (status == RHH_OK)
		sq->in_flight++;
	else
		gpurhh_service_fail(sq, query, status, &err);
	LWLockRelease(&area->lock);
	sq->state = MAP_FINISHING;
	return true;
}

/* ---------- results, the end ---------- */

/*
 * Asks the device for the next groups, in a free block, if a participant waits for
 * them.  Also asks ahead of need, while more than half of the pool is free and fewer
 * results lie ready than there are participants.  Nobody may fetch those for a long
 * time, so they take at most half of the session's share of the pool, and leave the
 * rest to batches.  Returns whether it asked.
 */
static bool
extract_groups(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	rhh_error	err = {0};
	rhh_status	status;
	bool		needed;
	int			block = -1;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	needed = query->n_fetching > query->n_results;
	if (needed ||
		(query->n_results < query->n_participants &&
		 area->n_free > area->n_blocks / 2 + 1 &&
		 (!area->shared ||
		  2 * gpurhh_session_keeps(area, query) <
		  gpurhh_session_share(area, query))))
	{
		block = gpurhh_block_take(area, BLOCK_SERVICE);
		if (block >= 0)
			sq->result_block = block;
		else
			area->service_wants_block = true;
	}
	LWLockRelease(&area->lock);
	if (block < 0)
		return false;			/* a session's wish or a freed block wakes us */

	sq->result.words = (uint64_t *) gpurhh_block_base(area, block);
	sq->result.capacity_groups = area->block_bytes / sizeof(uint64) /
		rhh_result_words(gpurhh_result_spec(query, sq->first_map != NULL));
	status = sq->device->ops->map_extract(sq->first_map ? sq->first_map : sq->map,
										  &sq->result, 0, &err);
	if (status == RHH_OK)
	{
		sq->in_flight++;
		return true;
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_service_fail(sq, query, status, &err);
	LWLockRelease(&area->lock);
	return true;
}

/*
 * To be called when the session has closed the query.  Stops the device's work for
 * it.  Once nothing is in flight, frees the maps, the blocks and the query's slot.
 */
static bool
drop_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];

	if (sq->n_probing > 0)
		return false;			/* ends with the queries that probe it */
	if (sq->in_flight > 0)
	{
		if (!sq->cancelled)
		{
			sq->cancelled = true;
			sq->device->ops->map_cancel(sq->map);
			if (sq->first_map != NULL)
				sq->device->ops->map_cancel(sq->first_map);
			return true;
		}
		return false;
	}

	/*
	 * Rows of the second map are made of the first one's groups, so it goes first.
	 * Nothing is in flight here, so the device no longer reads those groups.
	 */
	if (sq->map != NULL)
		sq->device->ops->map_destroy(sq->map);
	if (sq->first_map != NULL)
		sq->device->ops->map_destroy(sq->first_map);
	gpurhh_service_end_joins(service, q);
	gpurhh_service_end_level(sq);
	gpurhh_service_drop_cached(service, sq);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	free_blocks(area, &query->queued);
	free_blocks(area, &query->returned);
	free_blocks(area, &query->results);
	/* the block of an extraction that failed or was cancelled */
	if (sq->state != MAP_NONE && sq->result_block >= 0)
		gpurhh_block_free(area, sq->result_block);
	query->state = QUERY_FREE;
	LWLockRelease(&area->lock);
	memset(sq, 0, sizeof(ServiceQuery));
	return true;
}

/* The build side of joins will not be probed, so that nobody needs its map.  Frees that. */
static bool
free_spoiled(DeviceService *service, int q)
{
	ServiceQuery *sq = &service->queries[q];

	if (sq->map == NULL || sq->in_flight > 0 || sq->n_probing > 0)
		return false;
	sq->device->ops->map_destroy(sq->map);
	sq->map = NULL;
	gpurhh_service_end_joins(service, q);
	/* what is still fed goes nowhere */
	sq->state = MAP_DECLINED;
	return true;
}

/* Does what can be done for a query now; returns whether that was anything. */
bool
gpurhh_service_advance_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	QueryState	state;
	bool		ours;
	bool		input_done;
	bool		failed;
	bool		all_extracted;
	QueryLevel	wanted;
	QueryJoins	join_state;
	bool		spoiled;
	bool		progress = false;

	/*
	 * Most slots are free, and are passed by without the lock.  One that is
	 * claimed just now may be missed, but not for longer than this round: the
	 * state is written before SetLatch() and read after ResetLatch(), and each
	 * has a memory barrier between the latch and what it tells of.  So either
	 * we see the new state, or the latch stays set and there is another round.
	 * A state is an aligned word and zero is "free", so no other value is seen
	 * while the slot is being filled; whatever is not free is looked at below.
	 */
	if (*(volatile QueryState *) &query->state == QUERY_FREE)
		return false;

	LWLockAcquire(&area->lock, LW_SHARED);
	state = query->state;
	ours = query->generation == service->generation;
	input_done = query->input_done;
	failed = query->failed;
	all_extracted = query->all_extracted;
	wanted = query->level;
	join_state = query->join_state;
	spoiled = query->spoiled;
	LWLockRelease(&area->lock);

	if (state == QUERY_FREE || !ours)
		return false;
	if (state == QUERY_RELEASED)
		return drop_query(service, q);
	if (failed)
		return false;
	if (join_state == QUERY_JOINS_NO_ROOM)
		return false;
	if (sq->state == MAP_NONE && start_query(service, q))
		progress = true;
	else if (sq->state == MAP_OPEN && join_state == QUERY_JOINS_UNDECIDED &&
			 gpurhh_service_join_again(service, q))
		progress = true;
	if (spoiled && free_spoiled(service, q))
		progress = true;
	if (sq->state == MAP_OPEN || sq->state == MAP_DECLINED)
	{
		if (submit_batches(service, q))
			progress = true;
		if (input_done && finish_query(service, q))
			progress = true;
	}
	if (sq->state == MAP_MAKING_LEVEL)
	{
		if (gpurhh_service_make_level(area, sq, query))
			progress = true;
		if (sq->state == MAP_MAKING_LEVEL && sq->level == NULL && finish_query(service, q))
			progress = true;
	}
	if (sq->state == MAP_READING && sq->in_flight == 0 &&
		!gpurhh_service_is_build(query))
	{
		if (wanted == QUERY_LEVEL_WANTED)
		{
			gpurhh_service_start_level(area, sq, query);
			progress = true;
		}
		else if (wanted != QUERY_LEVEL_UNDECIDED && !all_extracted &&
				 extract_groups(service, q))
			progress = true;
	}
	return progress;
}

/* ---------- news of devices ---------- */

/* Some pages of a batch may be bad, or its rows have been dropped, so it has fewer. */
static void
recount_rows(ChannelArea *area, const rhh_event *event)
{
	ChannelBlock *block = &area->blocks[event->tag];
	const rhh_page *pages = (const rhh_page *) (gpurhh_block_base(area, event->tag) + block->batch.pages_offset);

	block->batch.n_rows = 0;
	for (uint32 p = 0; p < block->batch.n_pages; p++)
		block->batch.n_rows += pages[p].n_rows;
}

/* Are a batch's refused rows said by its pages? */
static bool
returns_pages(const ChannelArea *area, const ChannelQuery *query, const rhh_event *event)
{
	return area->blocks[event->tag].batch.n_pages > 0 && !gpurhh_returns_columns(query);
}

/*
 * Takes what a device has completed since the last call, and tells the sessions.
 * Returns whether there was anything.
 */
bool
gpurhh_service_poll_device(ServiceDevice *dev)
{
	DeviceService *service = dev->service;
	ChannelArea *area = service->area;
	rhh_event	events[64];
	uint32		n = 0;
	rhh_error	err = {0};

	if (dev->device == NULL)
		return false;
	if (dev->ops->poll(dev->device, events, lengthof(events), &n,
					   &err) == RHH_DEVICE_ERROR)
		gpurhh_service_note_device_error(dev, err.message);

	for (uint32 i = 0; i < n; i++)
	{
		rhh_event  *event = &events[i];
		rhh_map_stats stats;
		ServiceQuery *sq;
		ChannelQuery *query;
		bool		of_second;
		int			q;

		for (q = 0; q < GPURHH_MAX_QUERIES; q++)
		{
			sq = &service->queries[q];
			if (event->map != NULL &&
				(sq->map == event->map || sq->first_map == event->map))
				break;
		}
		if (q == GPURHH_MAX_QUERIES)
			continue;			/* cannot happen */
		query = &area->queries[q];
		of_second = event->map == sq->map &&
			query->level == QUERY_LEVEL_ON_DEVICE;
		sq->in_flight--;
		/* before the lock is taken: a device may have to add up many threads' counts */
		dev->ops->map_stats(event->map, &stats);
		if (event->kind == RHH_EVENT_BATCH && sq->state != MAP_MAKING_LEVEL)
			gpurhh_service_end_cached(service, sq, event);

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		switch (event->kind)
		{
			case RHH_EVENT_BATCH:
				if (event->more && area->blocks[event->tag].batch.n_pages > 0)
					recount_rows(area, event);
				if (sq->state == MAP_MAKING_LEVEL)
					gpurhh_service_piece_fed(sq, query, event);
				else if (event->status == RHH_OK && event->n_refused > 0 &&
						 gpurhh_service_is_build(query))
				{
					/* with joins some may be such as no device takes; then their plan is asked for rows, too */
					gpurhh_service_spoil_full(query, "the device had no room for all rows of a build side");
					gpurhh_block_done(area, query, event->tag);
				}
				else if (event->status == RHH_OK && event->n_refused > 0 &&
						 query->state == QUERY_ACTIVE && !returns_pages(area, query, event))
				{
					ChannelBlock *block = &area->blocks[event->tag];

					block->n_refused = event->n_refused;
					block->more = event->more;
					block->batch.from = event->next;
					query->n_unjoined += event->more ? 1 : 0;
					gpurhh_service_return_block(area, query, event->tag);
				}
				else
					gpurhh_block_done(area, query, event->tag);
				break;
			case RHH_EVENT_FINISH:
				if (event->status == RHH_NO_MEMORY && gpurhh_service_is_build(query))
				{
					gpurhh_service_spoil_full(query, "the device had no memory to finish a build side");
					event->status = RHH_OK;
				}
				if (event->status != RHH_OK)
					break;
				/* what comes out of joins is kept, and they are not needed any more */
				if (gpurhh_service_is_build(query))
					gpurhh_service_end_joins(service, q);
				sq->state = MAP_READING;
				query->finished = true;
				ConditionVariableBroadcast(&query->news);
				break;
			case RHH_EVENT_EXTRACT:
				if (sq->state == MAP_MAKING_LEVEL)
				{
					gpurhh_service_level_read(sq, event->status);
					break;
				}
				if (event->status != RHH_OK)
					break;
				area->blocks[sq->result_block].n_groups = sq->result.n_groups;
				area->blocks[sq->result_block].needs_merge =
					sq->result.needs_merge;
				area->blocks[sq->result_block].first_level = sq->first_map != NULL;
				gpurhh_block_push(area, &query->results, sq->result_block);
				sq->result_block = -1;
				query->n_results++;
				query->all_extracted = sq->result.last && sq->first_map == NULL;
				ConditionVariableBroadcast(&query->news);
				break;
		}
		if (event->status != RHH_OK && query->state == QUERY_ACTIVE)
			gpurhh_service_fail_query(query, event->status == RHH_DEVICE_ERROR &&
									  err.message[0] != '\0' ? err.message :
									  "the device gave up");
		else
			publish_stats(&area->stats, of_second ? &query->second_stats : &query->stats,
						  &stats);
		LWLockRelease(&area->lock);

		/* the second level's groups are next */
		if (event->kind == RHH_EVENT_EXTRACT && event->status == RHH_OK &&
			sq->state == MAP_READING && sq->first_map != NULL && sq->result.last)
		{
			dev->ops->map_destroy(sq->first_map);
			sq->first_map = NULL;
		}
	}
	return n > 0;
}
