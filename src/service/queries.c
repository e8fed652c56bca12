/*-------------------------------------------------------------------------
 *
 * queries.c
 *		What the device service does for a query.
 *
 * A query goes through
 *
 *		NONE -> (table made) OPEN -> FINISHING -> READING -> gone
 *			 -> (no table)	 REFUSED					  -> gone
 *
 * gpurhh_service_advance_query() is called for each query again and again, and
 * does what can be done without waiting: it makes the table, submits batches that
 * are queued, asks for groups.  gpurhh_service_poll_device() takes what a device has
 * completed and hands it to the session.
 *
 * If the session wants a second level (exec/levels.c), the query goes from READING
 * to MAKING_LEVEL (service_levels.c).  Then the first table's groups become batches
 * for a second table.  These are queued as a session's are, and go to the session if
 * they are refused.  When all are through, the query goes to FINISHING and READING
 * once more.
 *
 * All of this is called with signals blocked, because it calls devices.
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

/* Brings the area's view of a table's work up to date; lock held. */
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

/* Ends a query with an error that its session raises; lock held. */
void
gpurhh_service_fail_query(ChannelQuery *query, const char *message)
{
	if (query->failed)
		return;
	query->failed = true;
	strlcpy(query->message, message, GPURHH_MESSAGE_LEN);
	ConditionVariableBroadcast(&query->news);
}

/* The same where its device has not done what it was asked for. */
void
gpurhh_service_fail(ServiceQuery *sq, ChannelQuery *query, rhh_status status,
					const rhh_error *err)
{
	if (status == RHH_DEVICE_ERROR)
		gpurhh_service_note_device_error(sq->device, err->message);
	gpurhh_service_fail_query(query, err->message);
}

/*
 * A table for a spec, whose hash nobody else knows: so nobody can choose keys that
 * collide, and have the device busy with them while others wait.
 */
rhh_status
gpurhh_service_make_table(ServiceQuery *sq, const rhh_map_spec *wanted,
						  rhh_map **table, rhh_error *err)
{
	rhh_map_spec spec = *wanted;

	spec.hash_seed = pg_prng_uint64(&pg_global_prng_state);
	return sq->device->ops->map_create(sq->device->device, &spec, table, err);
}

/* A new query: makes its table, or refuses it.  Signals are blocked. */
static void
start_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	char		note[GPURHH_MESSAGE_LEN];
	rhh_error	err = {0};

	memset(sq, 0, sizeof(ServiceQuery));
	sq->result_block = -1;
	sq->state = TABLE_REFUSED;
	sq->device = gpurhh_service_choose_device(service, query->device, note,
											  sizeof(note));
	if (sq->device != NULL)
	{
		rhh_status	status;

		status = gpurhh_service_make_table(sq, &query->spec, &sq->table, &err);
		if (status == RHH_OK)
			sq->state = TABLE_OPEN;
		else
		{
			sq->table = NULL;
			strlcpy(note, err.message, sizeof(note));
			if (status == RHH_DEVICE_ERROR)
				gpurhh_service_note_device_error(sq->device, err.message);
		}
	}

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	strlcpy(query->message, note, GPURHH_MESSAGE_LEN);
	strlcpy(query->used_device,
			sq->state == TABLE_OPEN ? sq->device->name : "host",
			sizeof(query->used_device));
	query->refused = sq->state == TABLE_REFUSED;
	if (service->device_error[0] != '\0')
		gpurhh_service_fail_query(query, service->device_error);
	LWLockRelease(&area->lock);
}

/* Hands a batch back, wholly or with its failed rows marked; lock held. */
static void
return_block(ChannelArea *area, ChannelQuery *query, int block)
{
	gpurhh_block_push(area, &query->returned, block);
	ConditionVariableBroadcast(&query->news);
}

/* Hands queued batches to the device, or back to the session. */
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
		if (block >= 0 && sq->state == TABLE_REFUSED)
		{
			(void) gpurhh_block_pop(area, &query->queued);
			area->blocks[block].refused = true;
			return_block(area, query, block);
		}
		LWLockRelease(&area->lock);
		if (block < 0)
			return progress;
		progress = true;
		if (sq->state == TABLE_REFUSED)
			continue;

		batch = area->blocks[block].batch;
		batch.base = (uint8_t *) gpurhh_block_base(area, block);
		status = sq->device->ops->map_submit(sq->table, &batch,
											 (uint64) block, &err);
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

/* All batches are in: lets the table be reconciled, once they are through. */
static bool
finish_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	rhh_error	err = {0};
	rhh_status	status = RHH_OK;

	if (sq->in_flight > 0 || query->queued.head >= 0)
		return false;
	if (sq->state != TABLE_REFUSED)
		status = sq->device->ops->map_finish(sq->table, &err);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (sq->state == TABLE_REFUSED)
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
	sq->state = TABLE_FINISHING;
	return true;
}

/* ---------- results, the end ---------- */

/*
 * Fetches the next groups into a free block, if a participant waits for them,
 * or, ahead of need, while there are plenty of blocks and no more results lie
 * ready than there are participants.  Those may rest, so they take no more than
 * half of the session's share of the pool: the rest is for batches.
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
		return false;			/* the session's wish or a freed block wakes us */

	sq->result.words = (uint64_t *) gpurhh_block_base(area, block);
	sq->result.capacity_groups = area->block_bytes / sizeof(uint64) /
		rhh_result_words(gpurhh_result_spec(query, sq->first != NULL));
	status = sq->device->ops->map_extract(sq->first ? sq->first : sq->table,
										  &sq->result, 0, &err);
	if (status == RHH_OK)
	{
		sq->in_flight++;
		return true;
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (status == RHH_DEVICE_ERROR)
		gpurhh_service_note_device_error(sq->device, err.message);
	gpurhh_service_fail_query(query, err.message);
	LWLockRelease(&area->lock);
	return true;
}

/*
 * The session has let go of the query: stops the device's work for it, and
 * once nothing is in flight frees the table, the blocks and the slot.
 */
static bool
drop_query(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];

	if (sq->in_flight > 0)
	{
		if (!sq->cancelled)
		{
			sq->cancelled = true;
			sq->device->ops->map_cancel(sq->table);
			if (sq->first != NULL)
				sq->device->ops->map_cancel(sq->first);
			return true;
		}
		return false;
	}
	if (sq->table != NULL)
		sq->device->ops->map_destroy(sq->table);
	if (sq->first != NULL)
		sq->device->ops->map_destroy(sq->first);
	gpurhh_service_end_level(sq);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	free_blocks(area, &query->queued);
	free_blocks(area, &query->returned);
	free_blocks(area, &query->results);
	/* an extraction that came to nothing */
	if (sq->state != TABLE_NONE && sq->result_block >= 0)
		gpurhh_block_free(area, sq->result_block);
	query->state = QUERY_FREE;
	LWLockRelease(&area->lock);
	memset(sq, 0, sizeof(ServiceQuery));
	return true;
}

/* Does what can be done for a query now; true if that was anything. */
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
	LWLockRelease(&area->lock);

	if (state == QUERY_FREE || !ours)
		return false;
	if (state == QUERY_RELEASED)
		return drop_query(service, q);
	if (failed)
		return false;
	if (sq->state == TABLE_NONE)
	{
		start_query(service, q);
		progress = true;
	}
	if (sq->state == TABLE_OPEN || sq->state == TABLE_REFUSED)
	{
		if (submit_batches(service, q))
			progress = true;
		if (input_done && finish_query(service, q))
			progress = true;
	}
	if (sq->state == TABLE_MAKING_LEVEL)
	{
		if (gpurhh_service_make_level(area, sq, query))
			progress = true;
		if (submit_batches(service, q))
			progress = true;
		if (sq->level == NULL && finish_query(service, q))
			progress = true;
	}
	if (sq->state == TABLE_READING && sq->in_flight == 0)
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

/* A device's news.  Signals are blocked. */
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
				(sq->table == event->map || sq->first == event->map))
				break;
		}
		if (q == GPURHH_MAX_QUERIES)
			continue;			/* cannot happen */
		query = &area->queries[q];
		of_second = event->map == sq->table &&
			query->level == QUERY_LEVEL_ON_DEVICE;
		sq->in_flight--;
		/* some devices add up what many threads did */
		dev->ops->map_stats(event->map, &stats);

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		switch (event->kind)
		{
			case RHH_EVENT_BATCH:
				{
					if (event->status == RHH_OK && event->n_refused > 0 &&
						query->state == QUERY_ACTIVE)
					{
						return_block(area, query, event->tag);
					}
					else
					{
						gpurhh_block_done(area, query, event->tag);
					}
					break;
				}
			case RHH_EVENT_FINISH:
				if (event->status != RHH_OK)
					break;
				sq->state = TABLE_READING;
				query->finished = true;
				ConditionVariableBroadcast(&query->news);
				break;
			case RHH_EVENT_EXTRACT:
				if (sq->state == TABLE_MAKING_LEVEL)
				{
					gpurhh_service_level_read(sq, event->status);
					break;
				}
				if (event->status != RHH_OK)
					break;
				area->blocks[sq->result_block].n_groups = sq->result.n_groups;
				area->blocks[sq->result_block].needs_merge =
					sq->result.needs_merge;
				area->blocks[sq->result_block].first_level = sq->first != NULL;
				gpurhh_block_push(area, &query->results, sq->result_block);
				sq->result_block = -1;
				query->n_results++;
				query->all_extracted = sq->result.last && sq->first == NULL;
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
			sq->state == TABLE_READING && sq->first != NULL && sq->result.last)
		{
			dev->ops->map_destroy(sq->first);
			sq->first = NULL;
		}
	}
	return n > 0;
}
