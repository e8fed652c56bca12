/*-------------------------------------------------------------------------
 *
 * stage.c
 *		A stage of the node: it takes rows and makes groups of them.
 *
 * The rows of the first stage are the child's.  The rows of every further stage
 * are the groups of the stage before it, its source, and its level (levels.c)
 * says what groups are made of them:
 *
 *		child -> first stage -> second stage -> third stage -> rows of the node
 *
 * Most nodes have the first stage only.  A stage consists of
 *
 *		a map		on the device, if one can be had.  It is in a query with the
 *					service, which the session feeds (agg_input.c for the first
 *					stage, level_feed.c for others).  Or it is in the source's
 *					query: then the device itself makes rows of the groups of the
 *					source's map, and results of this query are groups of both.
 *		a host table	for the refused rows: those for which the map had no place,
 *					and all rows where the device declined to make a map, or where
 *					there is no device.
 *		a level		which on the host makes groups of the source's groups, where
 *					the stage has no map.
 *
 * Two words for two things: a row is refused, by a map that has no place for it;
 * a whole map is declined, by a device that has no memory for it.
 *
 * A group may be in the map and in the host table.  So when the map's groups are
 * fetched, the host table takes those whose keys it has, or may have on disk, and
 * returns them later.
 *
 * Everything that changes while the node runs is in a stage, and no stage gives
 * anything to another one but its groups.  This file makes, fills and frees a
 * stage; agg_groups.c leads groups from stage to stage.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "miscadmin.h"

#include "exec/emit.h"
#include "exec/join_input.h"
#include "exec/stage.h"
#include "settings.h"

/* ---------- life ---------- */

/* Puts what the settings say into the spec of a map whose query a node is to open. */
void
gpurhh_set_limits(const CustomScanState *node, rhh_map_spec *spec)
{
	spec->memory_limit_bytes = (uint64) gpurhh_device_memory_mb * 1024 * 1024;
	spec->max_probe_buckets = gpurhh_max_probe_buckets;
	spec->load_factor = gpurhh_load_factor;
	spec->flags = node->ss.ps.instrument ? RHH_WANT_PROBE_STATS : 0;
}

/*
 * Makes the stage of a run; the parameters are the fields of these names.  What it
 * is given has to last as long as the run.
 */
void
gpurhh_stage_start(AggStage *stage, AggStage *source, Level *level,
				   rhh_map_spec *map_spec, MemoryContext context,
				   GpuNodeCounts *counts, GpuLevelStats *stats)
{
	memset(stage, 0, sizeof(AggStage));
	stage->source = source;
	stage->level = level;
	stage->map_spec = map_spec;
	stage->context = context;
	stage->counts = counts;
	stage->stats = stats;
	stage->phase = STAGE_UNFED;
	if (level != NULL)
		gpurhh_level_start(level, context);
}

/*
 * The stage's map is in this query (NULL: there is none).  owns: the stage closes
 * it, and nobody else does.
 */
void
gpurhh_stage_use_query(AggStage *stage, Channel *channel, bool owns)
{
	Assert(stage->channel == NULL && !stage->in_source_query);
	stage->channel = channel;
	stage->owns_channel = owns;
	if (channel != NULL)
		stage->area = gpurhh_channel_area(channel);
}

/* The stage whose query has the stage's map. */
static AggStage *
stage_with_query(AggStage *stage)
{
	return stage->in_source_query ? stage->source : stage;
}

/*
 * Leaves the query that has the stage's map; to be called as soon as the run does not
 * need the map any more.  If the stage owns the query, it is closed: the service frees
 * the map, and another session may have the query's place.  The query of a parallel plan
 * is not closed here, because other participants may still join it.  The parallel plan
 * closes it at its end, or before its next run.
 */
void
gpurhh_stage_leave_query(AggStage *stage)
{
	AggStage   *owner = stage_with_query(stage);

	if (owner->channel != NULL && owner->owns_channel)
		gpurhh_channel_close(owner->channel);
	owner->channel = NULL;
	owner->has_groups = false;
}

/* Frees the host table.  A new one is made for the next row that needs it. */
void
gpurhh_stage_free_host(AggStage *stage)
{
	if (stage->host == NULL)
		return;
	stage->spilled += gpurhh_host_spilled(stage->host);
	gpurhh_host_free(stage->host);
	stage->host = NULL;
}

/* Frees all that the stage has: its groups have been returned, or are not wanted. */
void
gpurhh_stage_release(AggStage *stage)
{
	if (!stage->in_source_query)
		gpurhh_stage_leave_query(stage);
	gpurhh_stage_free_host(stage);
	if (stage->merged != NULL)
	{
		stage->spilled += gpurhh_host_spilled(stage->merged);
		gpurhh_host_free(stage->merged);
		stage->merged = NULL;
	}
	if (stage->level != NULL)
	{
		stage->spilled += gpurhh_level_spilled(stage->level);
		gpurhh_level_end(stage->level);
	}
	stage->phase = STAGE_DONE;
}

/* ---------- statistics ---------- */

/* What the device tells of the stage's map now, and whether it has groups. */
void
gpurhh_stage_note_map(AggStage *stage)
{
	AggStage   *owner = stage_with_query(stage);

	owner->has_groups = owner->channel != NULL &&
		gpurhh_channel_stats(owner->channel, &owner->stats->map,
							 owner->stats->device, owner->stats->declined);
	if (stage->in_source_query && owner->channel != NULL)
		(void) gpurhh_channel_level_on_device(owner->channel,
											  &stage->stats->map);
}

/* How many records the stage's host tables have written to disk. */
uint64
gpurhh_stage_spilled(const AggStage *stage)
{
	return stage->spilled +
		(stage->host ? gpurhh_host_spilled(stage->host) : 0) +
		(stage->merged ? gpurhh_host_spilled(stage->merged) : 0) +
		(stage->level ? gpurhh_level_spilled(stage->level) : 0);
}

/* ---------- refused rows ---------- */

static HostTable *
host_table(AggStage *stage)
{
	if (stage->host == NULL)
		stage->host = gpurhh_host_create(stage->map_spec, stage->context,
										 get_hash_memory_limit());
	return stage->host;
}

/*
 * Adds rows of a batch to the host table: those that are marked as refused, or all
 * of them.  The batch's columns are those of map_spec.
 */
void
gpurhh_stage_add_on_host(AggStage *stage, const rhh_batch *batch, bool all_rows)
{
	ChannelArea *area = stage_with_query(stage)->area;
	uint64		rows = gpurhh_host_add_batch(host_table(stage), batch, all_rows);

	stage->counts->host_rows += rows;
	if (area != NULL)
		gpurhh_count_host_rows(area, rows);
}

/* Adds to the host table what the device has given back until now. */
void
gpurhh_stage_take_returned(AggStage *stage)
{
	Channel    *channel = stage_with_query(stage)->channel;
	rhh_batch	batch;
	bool		all_rows;
	const uint8 *bad;

	while (gpurhh_channel_take_returned(channel, &batch, &all_rows, &bad))
	{
		if (bad != NULL)
			gpurhh_join_finish_bad(stage->joins, &batch, bad);
		if (batch.n_rows > 0)
			gpurhh_stage_add_on_host(stage, &batch, all_rows);
		gpurhh_channel_give_back(channel);
	}
}

/* ---------- groups ---------- */

/*
 * Fetches the device's next chunk of groups; false: there is none left.  With the
 * last one the query is left, because a cursor may rest for long from here on.
 */
static bool
fetch_chunk(AggStage *stage)
{
	AggStage   *owner = stage_with_query(stage);
	ChannelResult *chunk = &stage->chunk;
	instr_time	start;
	bool		fetched;

	/* while the host table takes all groups, no caller looks for interrupts */
	CHECK_FOR_INTERRUPTS();
	if (!owner->has_groups)
	{
		/* the device declined the map, so there is nothing to be read */
		gpurhh_stage_leave_query(stage);
		return false;
	}
	if (chunk->words == NULL)
		chunk->words = MemoryContextAlloc(stage->context,
										  gpurhh_channel_block_bytes(owner->channel));
	INSTR_TIME_SET_CURRENT(start);
	fetched = gpurhh_channel_fetch(owner->channel, chunk);
	stage->counts->fetch_ms += milliseconds_since(start);
	stage->chunk_next = 0;
	if (!fetched)
		chunk->n_groups = 0;
	if (!fetched || chunk->last)
	{
		gpurhh_stage_note_map(stage);
		gpurhh_stage_leave_query(stage);
	}
	return fetched;
}

/*
 * Puts the chunk's next groups into the host table, up to the first that the host
 * table does not have; returns that one, or NULL at the chunk's end.  Many groups
 * may go there at once, so the time counts as fetching, not as forming a row.
 */
static const uint64 *
take_into_host(AggStage *stage)
{
	ChannelResult *chunk = &stage->chunk;
	const uint64 *words = NULL;
	instr_time	start;
	bool		taken = false;

	while (words == NULL && stage->chunk_next < chunk->n_groups)
	{
		words = chunk->words + stage->chunk_next++;
		if (chunk->needs_merge)
			gpurhh_host_merge(host_table(stage), words, chunk->capacity_groups);
		else if (!gpurhh_host_absorb(stage->host, words, chunk->capacity_groups))
			break;
		words = NULL;
		/* if none is taken, reading the clock would cost as much as looking */
		if (!taken)
			INSTR_TIME_SET_CURRENT(start);
		taken = true;
	}
	if (taken)
		stage->counts->fetch_ms += milliseconds_since(start);
	return words;
}

/*
 * The next groups of the map that the host table does not have: *n of them, at
 * most GPURHH_EMIT_WINDOW, whose word w is at words[w * *stride + i].  They are
 * valid until the next call.  NULL: there are no more.
 *
 * Where the map is in the source's query, groups of the source come as well: then
 * stage->chunk.first_level is set.
 */
const uint64 *
gpurhh_stage_next_of_map(AggStage *stage, Size *stride, uint32 *n)
{
	ChannelResult *chunk = &stage->chunk;

	for (;;)
	{
		const uint64 *words;

		if (chunk->words == NULL || stage->chunk_next == chunk->n_groups)
		{
			if (!fetch_chunk(stage))
				return NULL;
			continue;
		}
		*stride = chunk->capacity_groups;
		words = chunk->words + stage->chunk_next;
		if (!chunk->needs_merge &&
			(chunk->first_level || stage->host == NULL ||
			 gpurhh_host_is_empty(stage->host)))
		{
			*n = Min(chunk->n_groups - stage->chunk_next, GPURHH_EMIT_WINDOW);
			stage->chunk_next += *n;
			return words;
		}
		*n = 1;
		words = take_into_host(stage);
		if (words != NULL)
			return words;
	}
}

/*
 * The next group of one of the stage's host tables, whose words lie side by side; valid
 * until the next call.  NULL: there are no more.  The time to load a file counts as
 * fetching, because many groups come of it.
 */
const uint64 *
gpurhh_stage_next_of_host(AggStage *stage, HostTable *host)
{
	const bool	is_loaded = gpurhh_host_next_is_loaded(host);
	const uint64 *words;
	instr_time	start;

	if (!is_loaded)
		INSTR_TIME_SET_CURRENT(start);
	words = gpurhh_host_next(host);
	if (!is_loaded)
		stage->counts->fetch_ms += milliseconds_since(start);
	return words;
}
