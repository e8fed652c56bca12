/*-------------------------------------------------------------------------
 *
 * agg_groups.c
 *		GpuHashAgg's groups, in the order in which they are returned.
 *
 * The node returns the groups of its last stage (stage.c).  A stage that needs
 * groups of its source asks for them here, so groups are pulled through the chain
 * of stages.  What a stage returns depends on how its groups are made:
 *
 *		first stage			STAGE_MAP, STAGE_HOST, and for each pass over deferred
 *							rows STAGE_HOST again
 *		with odd keys		all of that goes into one host table first; STAGE_MERGED
 *		further stage, by	STAGE_SOURCE (its level takes the source's groups),
 *		the host			STAGE_LEVEL
 *		further stage, by	STAGE_MAP, STAGE_HOST, STAGE_LEVEL (which has only the
 *		a device			groups that aggregates over no rows give)
 *
 * A device makes a further stage in one of two ways.  For the second stage it reads
 * the groups of the first one's map itself, if it has all of them; agg_input.c asks
 * it to when the input has been read.  For the third stage the session has all
 * groups of the second, wherever they were made, and feeds them to a query of their
 * own (level_feed.c).
 *
 * Odd keys (dictionary.c) may equal keys that have other bytes.  If there are any,
 * all groups of the first stage are put together in one host table before one of them
 * is returned or given to a further stage.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "exec/agg_state.h"

static const uint64 *next_groups(GpuAggState *state, AggStage *stage,
								 Size *stride, uint32 *n);

/*
 * What the device tells now of the maps that the input was fed to, for EXPLAIN.  A
 * leader that did not run the node itself knows of them by the shared query.
 */
void
gpurhh_agg_note_device(GpuAggState *state)
{
	const AggPlan *plan = &state->plan;
	AggStage   *first = &state->run.stages[0];
	Channel    *channel = state->parallel.channel && !state->run.input.alone ?
		state->parallel.channel : first->channel;
	GpuLevelStats *levels = state->stats.levels;

	if (first->in_source_query)
	{
		gpurhh_stage_note_map(first);
		state->stats.valid = true;
		return;
	}
	first->has_groups = channel != NULL &&
		gpurhh_channel_stats(channel, &levels[0].map, levels[0].device,
							 levels[0].declined);
	if (plan->n_levels > 0 && gpurhh_level_makes_groups(plan->levels[0]))
		levels[1].place = channel != NULL &&
			gpurhh_channel_level_on_device(channel, &levels[1].map) ?
			GPU_LEVEL_DEVICE : GPU_LEVEL_HOST;
	if (state->joins != NULL)
	{
		bool		on_device = state->joins_open && channel != NULL &&
			gpurhh_channel_joins_on_device(channel);

		state->stats.joins_done = on_device;
		if (on_device)
			gpurhh_join_note(state->joins, &levels[0].map, state->stats.joins);
	}
	state->stats.valid = true;
}

/*
 * The stage has taken all groups of its source, so the source has nothing to keep:
 * no map, no host table, and no dictionary if the level keeps strings itself.
 */
static void
end_source(GpuAggState *state, AggStage *stage)
{
	if (gpurhh_level_keeps_strings(stage->level))
		gpurhh_agg_end_pass(state);
	gpurhh_stage_release(stage->source);
}

/*
 * Gives a stage its rows, where the device does not make them of the source's map:
 * feeds a map with all of the source's groups if one can be had, and otherwise
 * leaves it to the level to take them.
 */
static void
start_stage(GpuAggState *state, AggStage *stage)
{
	AggRun	   *run = &state->run;
	LevelFeed  *feed = NULL;
	const uint64 *words;
	Size		stride;
	uint32		n;

	/*
	 * The second stage is not fed: where it gets here, the host has rows of the
	 * first.  And a device knows strings by their numbers only.
	 */
	if (stage->source->level != NULL && stage->map_spec != NULL && !run->odd &&
		!run->input.stays && !gpurhh_level_keeps_strings(stage->level))
	{
		gpurhh_set_limits(&state->css, stage->map_spec);
		feed = gpurhh_level_feed_start(stage);
	}
	if (feed == NULL)
	{
		if (gpurhh_level_makes_groups(stage->level))
			stage->stats->place = GPU_LEVEL_HOST;
		stage->phase = STAGE_SOURCE;
		return;
	}
	while ((words = next_groups(state, stage->source, &stride, &n)) != NULL)
		gpurhh_level_feed_add(feed, words, stride, n);
	end_source(state, stage);
	gpurhh_level_feed_finish(feed);
	gpurhh_stage_note_map(stage);
	stage->stats->place = GPU_LEVEL_DEVICE;
	stage->phase = STAGE_MAP;
}

/*
 * Groups of the stage's map or of its host table, as groups of the stage: those of
 * a level differ, unless they are of the source and in the level's first set.
 */
static const uint64 *
groups_of_map(AggStage *stage, const uint64 *words, Size *stride, uint32 n)
{
	if (stage->level == NULL ||
		(stage->phase == STAGE_MAP && stage->chunk.first_level))
		return words;
	words = gpurhh_level_translate(stage->level, words, *stride, n);
	*stride = GPURHH_EMIT_WINDOW;
	return words;
}

/*
 * The stage's next groups: *n of them, at most GPURHH_EMIT_WINDOW, whose word w is at
 * words[w * *stride + i].  They are valid until the next call for the stage.  NULL:
 * there are no more.
 */
static const uint64 *
next_groups(GpuAggState *state, AggStage *stage, Size *stride, uint32 *n)
{
	const uint64 *words = NULL;

	CHECK_FOR_INTERRUPTS();
	while (words == NULL)
	{
		switch (stage->phase)
		{
			case STAGE_UNFED:
				start_stage(state, stage);
				break;
			case STAGE_MAP:
				words = gpurhh_stage_next_of_map(stage, stride, n);
				if (words != NULL)
					return groups_of_map(stage, words, stride, *n);
				stage->phase = STAGE_HOST;
				break;
			case STAGE_HOST:
				*stride = 1;
				*n = 1;
				if (stage->host != NULL)
					words = gpurhh_stage_next_of_host(stage, stage->host);
				if (words != NULL)
					return groups_of_map(stage, words, stride, *n);
				if (stage->level != NULL)
					stage->phase = STAGE_LEVEL;
				else if (!gpurhh_agg_next_pass(state))
					stage->phase = STAGE_DONE;
				break;
			case STAGE_MERGED:
				*stride = 1;
				*n = 1;
				words = gpurhh_stage_next_of_host(stage, stage->merged);
				if (words == NULL)
					stage->phase = STAGE_DONE;
				break;
			case STAGE_SOURCE:
				words = next_groups(state, stage->source, stride, n);
				if (words == NULL)
				{
					end_source(state, stage);
					stage->phase = STAGE_LEVEL;
				}
				else if (!gpurhh_level_add(stage->level, state->run.pass.dictionary,
										   words, *stride, *n))
					words = NULL;
				break;
			case STAGE_LEVEL:
				*stride = GPURHH_EMIT_WINDOW;
				words = gpurhh_level_next_groups(stage->level, n);
				if (words == NULL)
					stage->phase = STAGE_DONE;
				break;
			case STAGE_DONE:
				return NULL;
		}
	}
	return words;
}

/*
 * Puts all groups of the first stage together in one host table: those of the map, of
 * the refused rows and of all passes.  This table compares strings and numerics as core
 * does.  Of groups that are equal it shows the key of the first that it got.
 */
static void
merge_odd_groups(GpuAggState *state)
{
	AggPlan    *plan = &state->plan;
	AggStage   *first = &state->run.stages[0];
	int			n_words = rhh_result_words(&plan->spec);
	uint64	   *record = MemoryContextAlloc(state->run.context,
											n_words * sizeof(uint64));
	HostTable  *merged = gpurhh_host_create(&plan->spec, state->run.context,
											get_hash_memory_limit());
	const uint64 *words;
	Size		stride;
	uint32		n;

	first->merged = merged;
	gpurhh_host_keep_strings(merged, &plan->strings);
	while ((words = next_groups(state, first, &stride, &n)) != NULL)
	{
		for (uint32 i = 0; i < n; i++)
		{
			for (int w = 0; w < n_words; w++)
				record[w] = words[w * stride + i];
			gpurhh_strings_resolve(&plan->strings, state->run.pass.dictionary,
								   record);
			gpurhh_host_merge(merged, record, 1);
		}
	}
	gpurhh_stage_free_host(first);
	/* the table has copies of all strings */
	gpurhh_agg_end_pass(state);
	first->phase = STAGE_MERGED;
}

/*
 * For EXPLAIN: counts the records that have been written to disk since the last call.
 * Called for each group that the host returns, because a LIMIT may end the run after
 * any of them.
 */
static void
note_spilled(GpuAggState *state)
{
	AggRun	   *run = &state->run;
	uint64		spilled = 0;

	for (int i = 0; i < run->n_stages; i++)
		spilled += gpurhh_stage_spilled(&run->stages[i]);
	state->stats.counts.host_spilled += spilled - run->spilled_noted;
	run->spilled_noted = spilled;
}

/* The next groups to return: those of the last stage, see next_groups(). */
const uint64 *
gpurhh_agg_next_groups(GpuAggState *state, Size *stride, uint32 *n)
{
	AggRun	   *run = &state->run;
	AggStage   *first = &run->stages[0];
	AggStage   *last = &run->stages[run->n_stages - 1];
	GpuNodeCounts *counts = &state->stats.counts;
	double		fetch_ms = counts->fetch_ms;
	const uint64 *words;
	instr_time	start;

	if (run->odd && first->merged == NULL)
	{
		INSTR_TIME_SET_CURRENT(start);
		merge_odd_groups(state);
		counts->fetch_ms = fetch_ms = fetch_ms + milliseconds_since(start);
	}
	if (last == first)
		words = next_groups(state, first, stride, n);
	else
	{
		INSTR_TIME_SET_CURRENT(start);
		words = next_groups(state, last, stride, n);
		/* in place of what the parts of it took */
		counts->fetch_ms = fetch_ms + milliseconds_since(start);
	}
	if (last != first || first->phase != STAGE_MAP)
		note_spilled(state);
	return words;
}
