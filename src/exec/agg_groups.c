/*-------------------------------------------------------------------------
 *
 * agg_groups.c
 *		GpuHashAgg's groups, in the order in which they are returned.
 *
 * First come the groups of the device, then those of the host table, then those of
 * each pass over deferred rows, and last the groups that further levels make of all
 * of these: see the phases in agg_exec.c.
 *
 * Odd keys (dictionary.c) may equal keys that have other bytes.  If there are any, all
 * groups of the first level are put together in the host table before one of them is
 * returned or given to a further level.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "exec/agg_state.h"

/* Statistics of the device, as far as they are known now. */
void
gpurhh_agg_note_device(GpuAggState *state)
{
	state->has_table = state->channel != NULL &&
		gpurhh_channel_stats(state->channel, &state->stats.table,
							 state->stats.device, state->stats.refusal);
	if (state->second_level != NULL && gpurhh_level_makes_groups(state->second_level))
		state->stats.second.place = state->channel != NULL &&
			gpurhh_channel_level_on_device(state->channel,
										   &state->stats.second.table) ?
			GPU_LEVEL_DEVICE : GPU_LEVEL_HOST;
	state->stats.valid = true;
}

/* The same of the third level's table. */
static void
note_level_stats(GpuAggState *state)
{
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		refusal[GPURHH_MESSAGE_LEN];

	state->has_table = gpurhh_channel_stats(state->channel,
											&state->stats.third.table, device,
											refusal);
	state->stats.third.place = GPU_LEVEL_DEVICE;
}

/* All groups of the device are here: a cursor may rest for long now. */
static void
note_last(GpuAggState *state)
{
	if (state->returned_level == state->second_level)
		gpurhh_agg_note_device(state);
	else
		note_level_stats(state);
	state->has_table = false;
	gpurhh_agg_leave_query(state);
}

/* The device's next chunk; false if there is none left. */
static bool
fetch_chunk(GpuAggState *state)
{
	ChannelResult *chunk = &state->chunk;
	instr_time	start;
	bool		fetched;

	/* groups that the host table takes do not return to anyone who would look */
	CHECK_FOR_INTERRUPTS();
	if (!state->has_table)
	{
		/* of a table that the device refused there never was one */
		gpurhh_agg_leave_query(state);
		return false;
	}
	if (chunk->words == NULL)
		chunk->words = MemoryContextAlloc(state->run_context,
										  gpurhh_channel_block_bytes(state->channel));
	INSTR_TIME_SET_CURRENT(start);
	fetched = gpurhh_channel_fetch(state->channel, chunk);
	state->stats.counts.fetch_ms += milliseconds_since(start);
	state->chunk_next = 0;
	if (!fetched)
		chunk->n_groups = 0;
	if (!fetched || chunk->last)
		note_last(state);
	return fetched;
}

/*
 * The host table takes the chunk's next groups, as long as they are its to
 * return.  Gives the first that is not; NULL: the chunk has none.  These may be
 * many at once, so what they take is no part of forming the row that comes next.
 */
static const uint64 *
take_into_host(GpuAggState *state)
{
	ChannelResult *chunk = &state->chunk;
	const uint64 *words = NULL;
	instr_time	start;
	bool		taken = false;

	while (words == NULL && state->chunk_next < chunk->n_groups)
	{
		words = chunk->words + state->chunk_next++;
		if (chunk->needs_merge)
			gpurhh_host_merge(gpurhh_agg_host_table(state), words,
							  chunk->capacity_groups);
		else if (!gpurhh_host_absorb(state->host, words,
									 chunk->capacity_groups))
			break;
		words = NULL;
		/* where none is taken the clock would take as long as the look */
		if (!taken)
			INSTR_TIME_SET_CURRENT(start);
		taken = true;
	}
	if (taken)
		state->stats.counts.fetch_ms += milliseconds_since(start);
	return words;
}

/*
 * The device's next groups that are not the host table's to return: *n of them,
 * with the stride of the chunk.  NULL: there are no more.
 */
static const uint64 *
next_device_groups(GpuAggState *state, uint32 *n)
{
	ChannelResult *chunk = &state->chunk;

	for (;;)
	{
		const uint64 *words;

		if (chunk->words == NULL || state->chunk_next == chunk->n_groups)
		{
			if (!fetch_chunk(state))
				return NULL;
			continue;
		}
		words = chunk->words + state->chunk_next;
		if (!chunk->needs_merge &&
			(chunk->first_level || state->host == NULL ||
			 gpurhh_host_is_empty(state->host)))
		{
			*n = Min(chunk->n_groups - state->chunk_next, GPURHH_EMIT_WINDOW);
			state->chunk_next += *n;
			return words;
		}
		*n = 1;
		words = take_into_host(state);
		if (words != NULL)
			return words;
	}
}

/* The host table's next group; NULL: no more.  To load a file takes as long as many. */
static const uint64 *
next_host_group(GpuAggState *state)
{
	GpuNodeCounts *counts = &state->stats.counts;
	const bool	is_loaded = gpurhh_host_next_is_loaded(state->host);
	const uint64 *words;
	instr_time	start;

	if (!is_loaded)
		INSTR_TIME_SET_CURRENT(start);
	words = gpurhh_host_next(state->host);
	if (!is_loaded)
		counts->fetch_ms += milliseconds_since(start);
	counts->host_spilled = state->spilled_before +
		gpurhh_host_spilled(state->host);
	return words;
}

/* The next groups of the device, then of the host table; NULL: no more. */
static const uint64 *
next_first_level(GpuAggState *state, Size *stride, uint32 *n)
{
	const uint64 *words = NULL;

	CHECK_FOR_INTERRUPTS();
	if (state->phase == EMIT_DEVICE)
	{
		words = next_device_groups(state, n);
		*stride = state->chunk.capacity_groups;
		if (words != NULL)
			return words;
		state->phase = EMIT_HOST;
	}
	while (state->phase == EMIT_HOST && words == NULL)
	{
		*stride = 1;
		*n = 1;
		if (state->host != NULL)
			words = next_host_group(state);
		if (words == NULL && !gpurhh_agg_next_pass(state))
		{
			state->phase = EMIT_LEVEL;
			/* strings that are shown from here on are the level's own */
			if (state->returned_level != NULL &&
				gpurhh_level_keeps_strings(state->returned_level))
			{
				gpurhh_agg_use_dictionary(state, NULL);
				MemoryContextReset(state->pass_context);
			}
		}
	}
	return words;
}

/*
 * Odd keys (dictionary.c) are not the same as those that they equal, so there may
 * be several groups of what is one.  A host table takes all groups, of the device,
 * of the host table and of all passes, and compares their strings and numerics as
 * core does.  Of equal ones it shows the first that it got.
 */
static void
merge_odd_groups(GpuAggState *state)
{
	int			n_words = rhh_result_words(&state->spec);
	uint64	   *record = MemoryContextAlloc(state->run_context,
											n_words * sizeof(uint64));
	HostTable  *merged = gpurhh_host_create(&state->spec, state->run_context,
											get_hash_memory_limit());
	const uint64 *words;
	Size		stride;
	uint32		n;

	gpurhh_host_keep_strings(merged, &state->strings);
	while ((words = next_first_level(state, &stride, &n)) != NULL)
	{
		for (uint32 i = 0; i < n; i++)
		{
			for (int w = 0; w < n_words; w++)
				record[w] = words[w * stride + i];
			gpurhh_strings_resolve(&state->strings, state->dictionary, record);
			gpurhh_host_merge(merged, record, 1);
		}
	}
	if (state->host != NULL)
	{
		state->spilled_before += gpurhh_host_spilled(state->host);
		gpurhh_host_free(state->host);
	}
	/* strings are the table's own now */
	gpurhh_agg_use_dictionary(state, NULL);
	MemoryContextReset(state->pass_context);
	state->host = merged;
	state->phase = EMIT_HOST;
	state->merged = true;
}

/* The next groups of the level that is returned. */
static const uint64 *
next_groups_of_level(GpuAggState *state, Size *stride, uint32 *n)
{
	Level	   *level = state->returned_level;
	const uint64 *words = NULL;

	while ((words = next_first_level(state, stride, n)) != NULL)
	{
		if (level == NULL)
			return words;
		if (state->on_device != NULL)
		{
			/* the first level's are those of a set as they are */
			if (state->phase == EMIT_DEVICE && state->chunk.first_level)
				return words;
			words = gpurhh_level_translate(level, words, *stride, *n);
			*stride = GPURHH_EMIT_WINDOW;
			return words;
		}
		if (gpurhh_level_add(level, state->dictionary, words, *stride, *n))
			return words;
	}
	if (state->phase == EMIT_LEVEL && level != NULL)
	{
		*stride = GPURHH_EMIT_WINDOW;
		words = gpurhh_level_next_groups(level, n);
	}
	return words;
}

/* Makes the third level of all groups of the second. */
static void
start_next_level(GpuAggState *state)
{
	Level	   *next = gpurhh_level_next(state->returned_level);
	LevelFeed  *feed = NULL;
	Channel    *channel;
	const uint64 *words;
	Size		stride;
	uint32		n;

	/* a device knows strings by their numbers */
	if (gpurhh_level_plan(next) != NULL && !state->odd && !state->stays &&
		!gpurhh_level_keeps_strings(next))
	{
		gpurhh_agg_set_limits(state, &gpurhh_level_plan(next)->spec);
		feed = gpurhh_level_feed_start(next, state->run_context);
	}
	while ((words = next_groups_of_level(state, &stride, &n)) != NULL)
	{
		if (feed != NULL)
			gpurhh_level_feed_add(feed, words, stride, n);
		else
			(void) gpurhh_level_add(next, state->dictionary, words, stride,
									n);
	}

	/* one that participants may still come to goes with shared_context */
	gpurhh_agg_leave_query(state);
	if (state->host != NULL)
	{
		state->spilled_before += gpurhh_host_spilled(state->host);
		gpurhh_host_free(state->host);
	}
	state->host = NULL;
	state->channel = NULL;
	state->channel_shared = false;
	state->has_table = false;
	state->on_device = NULL;
	state->returned_level = next;
	state->phase = EMIT_LEVEL;
	state->stats.third.place = GPU_LEVEL_HOST;
	if (feed == NULL)
		return;
	channel = gpurhh_level_feed_finish(feed, &state->host, &state->stats.counts);
	state->channel = channel;
	state->on_device = gpurhh_level_plan(next);
	state->chunk.n_groups = state->chunk_next = 0;
	state->phase = EMIT_DEVICE;
	note_level_stats(state);
}

/* The next groups to return. */
const uint64 *
gpurhh_agg_next_groups(GpuAggState *state, Size *stride, uint32 *n)
{
	GpuNodeCounts *counts = &state->stats.counts;
	double		fetch_ms = counts->fetch_ms;
	const uint64 *words;
	instr_time	start;

	if (state->odd && !state->merged)
	{
		INSTR_TIME_SET_CURRENT(start);
		merge_odd_groups(state);
		counts->fetch_ms = fetch_ms = fetch_ms + milliseconds_since(start);
	}
	if (state->returned_level == NULL)
		return next_groups_of_level(state, stride, n);
	INSTR_TIME_SET_CURRENT(start);
	if (gpurhh_level_next(state->returned_level) != NULL)
		start_next_level(state);
	words = next_groups_of_level(state, stride, n);
	/* whatever it took, fetching included */
	counts->fetch_ms = fetch_ms + milliseconds_since(start);
	counts->host_spilled = state->spilled_before +
		(state->host ? gpurhh_host_spilled(state->host) : 0) +
		gpurhh_level_spilled(state->second_level);
	return words;
}
