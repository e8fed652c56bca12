/*-------------------------------------------------------------------------
 *
 * agg_input.c
 *		What GpuHashAgg groups: from the child to the first stage.
 *
 *		read_input		reads the child to its end, or this participant's part of it,
 *						by row or by page, into blocks of the pool, which go to the
 *						service.  Then it waits until the map can be read, and has
 *						the device make the map of the second stage if it can.
 *		next_pass		reads a part of the rows that were deferred for their strings
 *						(deferred_rows.c) into a new host table of the first stage.
 *
 * Three kinds of rows do not end up in the device's map: refused rows, whose batches
 * come back and go to the stage's host table; all rows of a session that has no
 * device, or does the query itself (load.c), which go there at once; and late
 * batches, for which no block could be had.  Those go to the host table, too, or in
 * a parallel plan perhaps to a file (agg_parallel.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "exec/agg_state.h"
#include "settings.h"

/*
 * Where the load is high, a session does queries of at most so many rows (by the
 * estimate) itself.  24 sessions, 2 cores: at 100,000 rows the host table does twice
 * as many queries as the service, at 1,000,000 the service wins.
 */
#define STAY_ROWS	262144.0

/* Where the estimate was wrong, what comes after so many goes to the service. */
#define STAY_ROWS_MAX	(2 * STAY_ROWS)

/* The stage that is made of what is read here. */
static inline AggStage *
first_stage(GpuAggState *state)
{
	return &state->run.stages[0];
}

/* ---------- blocks ---------- */

static Size
block_bytes(GpuAggState *state)
{
	Channel    *channel = first_stage(state)->channel;

	/* a query that is opened later is of the shared area */
	if (state->run.input.stays)
		return gpurhh_shared_area()->block_bytes;
	return channel ? gpurhh_channel_block_bytes(channel) : GPURHH_MAX_BLOCK_BYTES;
}

/* A block of the pool; NULL: there is none. */
static char *
acquire_block(GpuAggState *state)
{
	AggStage   *stage = first_stage(state);
	char	   *base;

	for (;;)
	{
		/* having been late once, we do not wait each time */
		switch (gpurhh_channel_acquire(stage->channel, state->waits, &base))
		{
			case CHANNEL_BLOCK:
				state->waits = true;
				return base;
			case CHANNEL_RETURNED:
				gpurhh_stage_take_returned(stage);
				continue;
			case CHANNEL_PAGES:
				gpurhh_page_batches_take(state->run.input.batches);
				continue;
			case CHANNEL_LATE:
				state->waits = false;
				return NULL;
		}
	}
}

/* Memory of our own for the next rows. */
static char *
own_block(GpuAggState *state)
{
	AggInput   *input = &state->run.input;

	input->in_pool = false;
	if (input->own_block == NULL)
		input->own_block = (char *)
			TYPEALIGN(64, MemoryContextAlloc(state->run.context,
											 block_bytes(state) + 64));
	return input->own_block;
}

/*
 * Where the next rows go: a block of the pool, or memory of our own where
 * there is no device, or no block, or none is to be held meanwhile.
 */
static char *
next_block(GpuAggState *state)
{
	AggInput   *input = &state->run.input;

	if (first_stage(state)->channel != NULL && !state->copies)
	{
		char	   *base = acquire_block(state);

		input->in_pool = base != NULL;
		if (input->in_pool)
			return base;
	}
	return own_block(state);
}

/*
 * Copies a batch from memory of our own into a block, and hands that over.  False:
 * no block can be had.
 */
static bool
submit_copy(GpuAggState *state, const rhh_batch *batch)
{
	char	   *base = acquire_block(state);

	if (base == NULL)
		return false;
	memcpy(base, state->run.input.own_block, batch->used_bytes);
	gpurhh_channel_submit(first_stage(state)->channel, batch);
	return true;
}

/* Counts what is handed over, be it in a block of the pool or in memory of our own. */
static void
count_batch(GpuNodeCounts *counts, const rhh_batch *batch)
{
	counts->rows_fed += batch->n_rows;
	counts->bytes_fed += batch->used_bytes;
	counts->batches++;
}

/*
 * A session that did the query itself has read much more than was estimated: opens a
 * query with the service for the rows that are still to come.
 */
static void
stop_staying(GpuAggState *state)
{
	gpurhh_stage_use_query(first_stage(state),
						   gpurhh_agg_open_query(state, false, state->run.context),
						   true);
	state->run.input.stays = false;
}

/*
 * Gives a batch to the service, or to the host table, or to the file of late rows.
 * last: no rows come after it.
 */
static void
hand_over(GpuAggState *state, Feed *feed, bool last)
{
	AggInput   *input = &state->run.input;
	AggStage   *stage = first_stage(state);
	rhh_batch	batch;
	uint32		n_rows = feed->n_rows;
	bool		opened = false;
	MemoryContext old;

	if (n_rows == 0)
	{
		/* all rows since it was started have been deferred */
		if (input->in_pool)
			gpurhh_channel_drop_block(stage->channel);
		feed->base = NULL;
		return;
	}
	gpurhh_feed_finish(feed, &batch);
	count_batch(&state->stats.counts, &batch);
	if (input->in_pool)
	{
		gpurhh_channel_submit(stage->channel, &batch);
		return;
	}
	if (input->stays && !last && (input->stayed_rows += n_rows) > STAY_ROWS_MAX)
	{
		stop_staying(state);
		opened = true;
	}
	/*
	 * Otherwise next_block() has asked for a block already.  Rows that have been joined
	 * here cannot go to a device that takes rows to be joined.
	 */
	if ((state->copies || opened) && stage->channel != NULL && !input->joined &&
		submit_copy(state, &batch))
		return;
	batch.base = (uint8_t *) input->own_block;
	old = MemoryContextSwitchTo(state->run.context);
	if (stage->channel == NULL || gpurhh_channel_claim_finish(stage->channel))
		gpurhh_stage_add_on_host(stage, &batch, true);
	else
		gpurhh_parallel_save_late(state->parallel.shared, &input->late_file, &batch);
	MemoryContextSwitchTo(old);
}

/*
 * Are batches of the child's rows, or of the probe side's, to have pages?  A session that may sleep
 * copies its batches, and pages cannot be copied.  Nor does a device watch for integers that equal odd
 * numerics.
 */
static bool
wants_pages(GpuAggState *state, const JoinInput *input, ChannelArea *area)
{
	return gpurhh_channel_may_read_pages(area) && (input ? input->probe.pages : state->pages) != NULL &&
		state->css.ss.ps.state->es_plannedstmt->subplans == NIL &&
		(input != NULL || !gpurhh_odd_watches(state->plan.odd_plan));
}

/*
 * Opens the query with the service, for the map of the first stage and, if a device
 * can make it, that of the second.  If joins is set and the device may do the joins
 * below, opens the queries of their build sides, too; and it may read pages of the child.  The
 * handles are in context.  NULL: no device can be had, and the statistics say why.
 */
Channel *
gpurhh_agg_open_query(GpuAggState *state, bool joins, MemoryContext context)
{
	AggPlan    *plan = &state->plan;
	rhh_map_spec *spec = &plan->spec;
	LevelPlan  *second = plan->n_levels > 0 ? gpurhh_level_plan(plan->levels[0]) :
		gpurhh_chain_plan(state);
	const char *why = NULL;
	ChannelArea *area;
	Channel    *channel = NULL;
	JoinInput  *input = joins ? state->joins : NULL;
	bool		pages = false;
	bool		cached = false;

	gpurhh_set_limits(&state->css, spec);
	area = gpurhh_channel_attach(&why);
	if (area != NULL)
	{
		Feed		layout;

		gpurhh_feed_init(&layout, plan->n_columns, plan->columns,
						 area->block_bytes, gpurhh_batch_rows);
		/* if rows have been fed before, what runs below may have changed the setting */
		spec->max_batch_rows = Max(layout.capacity_rows,
								   state->run.input.capacity_rows);
		spec->max_batch_bytes = area->block_bytes;
		/* without the joins the device does not read pages either */
		pages = joins && (input != NULL || state->joins == NULL) && wants_pages(state, input, area);
		if (input != NULL)
			pages = gpurhh_join_want_pages(input, pages, area->block_bytes);
		if (input != NULL && !gpurhh_join_open(input, area, context, &why))
			input = NULL;
		if (input != NULL)
			spec->max_batch_rows = Max(spec->max_batch_rows,
									   gpurhh_join_batch_rows(input, area->block_bytes));
		pages = pages && (input != NULL || state->joins == NULL);
		cached = pages && gpurhh_page_feed_may_cache(input ? input->probe.pages : state->pages);
		if (pages)
			gpurhh_page_batches_limits(spec, cached);
		if (second != NULL)
		{
			gpurhh_set_limits(&state->css, &second->spec);
			gpurhh_level_rows_init(&layout, second, area->block_bytes,
								   gpurhh_batch_rows);
			second->spec.max_batch_rows = layout.capacity_rows;
			second->spec.max_batch_bytes = area->block_bytes;
		}
		if (input != NULL)
		{
			/* with the same limits */
			input->map_spec.memory_limit_bytes = spec->memory_limit_bytes;
			input->map_spec.max_probe_buckets = spec->max_probe_buckets;
			input->map_spec.load_factor = spec->load_factor;
			input->map_spec.flags = spec->flags;
			input->map_spec.max_batch_rows = spec->max_batch_rows;
			input->map_spec.max_batch_bytes = spec->max_batch_bytes;
			input->map_spec.max_page_bytes = spec->max_page_bytes;
		}
		channel = gpurhh_channel_open(area, input ? &input->map_spec : spec, second,
									  input ? &input->join_spec : NULL,
									  input ? input->builds : NULL,
									  pages, state->copies, context, &why);
	}
	if (channel != NULL && cached)
		gpurhh_channel_ask_for_cache(channel);
	if (channel != NULL && plan->n_conditions > 0)
		gpurhh_channel_want_groups(channel, plan->conditions, plan->n_conditions);
	state->joins_open = channel != NULL && input != NULL;
	if (channel == NULL && input != NULL)
		gpurhh_join_close(input);
	if (state->chain_above != NULL)
		state->chain_above->offered = channel != NULL && second != NULL;
	if (channel == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("GpuHashAgg runs on the host: %s", why)));
		strlcpy(state->stats.levels[0].device, "host", GPURHH_DEVICE_NAME_LEN);
		strlcpy(state->stats.levels[0].declined, why, GPURHH_MESSAGE_LEN);
	}
	return channel;
}

/*
 * Is this session to do the query itself, without the service, as the load is
 * high and it has so few rows?
 */
bool
gpurhh_agg_stays(GpuAggState *state, double rows)
{
	if (rows > STAY_ROWS || !gpurhh_load_is_high())
		return false;
	strlcpy(state->stats.levels[0].device, "host", GPURHH_DEVICE_NAME_LEN);
	strlcpy(state->stats.levels[0].declined, "other sessions keep the processors busy",
			GPURHH_MESSAGE_LEN);
	return true;
}

/* ---------- the child ---------- */

/* Reads the child row by row, until it has no more. */
static void
feed_rows(GpuAggState *state, Feed *feed)
{
	PlanState  *child = outerPlanState(&state->css);
	AggInput   *input = &state->run.input;

	for (;;)
	{
		TupleTableSlot *slot = input->asked ? input->first_row : ExecProcNode(child);

		input->asked = false;
		if (TupIsNull(slot))
			break;
		if (feed->base == NULL)
			gpurhh_feed_start(feed, next_block(state));
		gpurhh_feed_slot(feed, slot);
		if (feed->n_rows == feed->capacity_rows)
			hand_over(state, feed, false);
	}
}

/* Reads the child's pages, until there are no more. */
static void
feed_pages(GpuAggState *state, Feed *feed)
{
	/* what fill() leaves are rows that have no block yet */
	while (gpurhh_page_feed_fill(state->pages, feed))
	{
		if (feed->base != NULL)
			hand_over(state, feed, false);
		gpurhh_feed_start(feed, next_block(state));
	}
}

static void
take_returned(void *arg)
{
	gpurhh_stage_take_returned(first_stage(arg));
}

/* ---------- batches of pages (page_batches.h) ---------- */

typedef struct PageArg
{
	GpuAggState *state;
	Feed	   *feed;
} PageArg;

static char *
acquire_for_pages(void *arg)
{
	return acquire_block(((PageArg *) arg)->state);
}

static char *
next_block_of_pages(void *arg)
{
	return next_block(((PageArg *) arg)->state);
}

static void
hand_over_pages(void *arg)
{
	hand_over(((PageArg *) arg)->state, ((PageArg *) arg)->feed, false);
}

static void
count_pages(void *arg, const rhh_batch *batch)
{
	count_batch(&((PageArg *) arg)->state->stats.counts, batch);
}

static void
recount_pages(void *arg, uint64 n_rows, uint64 n_wrong)
{
	((PageArg *) arg)->state->stats.counts.rows_fed -= n_rows + n_wrong;
}

static void
take_returned_pages(void *arg)
{
	take_returned(((PageArg *) arg)->state);
}

/* Has the device read the child's pages, or makes columns of them. */
static void
read_pages(GpuAggState *state, Feed *feed)
{
	AggInput   *input = &state->run.input;
	PageArg		arg = {state, feed};
	const PageSide side = {
		.pages = state->pages,
		.feed = feed,
		.channel = first_stage(state)->channel,
		.counts = &state->stats.counts.pages,
		.arg = &arg,
		.acquire_block = acquire_for_pages,
		.next_block = next_block_of_pages,
		.hand_over = hand_over_pages,
		.count = count_pages,
		.recount = recount_pages,
		.take_returned = take_returned_pages,
	};
	PagesGiven	given = PAGES_AS_COLUMNS;

	gpurhh_page_feed_begin(state->pages);
	if (side.channel != NULL)
		input->batches = gpurhh_page_batches_create(&side, state->run.context);
	if (input->batches != NULL)
	{
		while ((given = gpurhh_page_batches_give(input->batches)) == PAGES_GIVEN)
			;
	}
	if (given == PAGES_AS_COLUMNS)
		feed_pages(state, feed);
	if (input->batches != NULL)
	{
		if (feed->base != NULL)
			hand_over(state, feed, false);
		gpurhh_page_batches_end(input->batches);
	}
}

/* Makes this process's own dictionary, for the pass that begins. */
static void
make_dictionary(GpuAggState *state, double expected_strings)
{
	AggPass    *pass = &state->run.pass;

	pass->dictionary = gpurhh_dictionary_create(pass->context,
												get_hash_memory_limit(),
												state->plan.n_strings,
												expected_strings);
}

/* Frees what the pass has.  Groups from here on have their strings elsewhere. */
void
gpurhh_agg_end_pass(GpuAggState *state)
{
	AggPass    *pass = &state->run.pass;

	pass->dictionary = NULL;
	MemoryContextReset(pass->context);
}

static Deferred *
make_deferred(GpuAggState *state)
{
	/* whose dictionary is shared, those have files in common too */
	return gpurhh_deferred_create(state->run.context,
								  state->parallel.dictionary != NULL ?
								  state->parallel.shared : NULL);
}

/* The feed's way to be rid of a row whose strings the dictionary does not take. */
static void
defer_row(void *arg, TupleTableSlot *slot, uint32 hash)
{
	GpuAggState *state = arg;

	if (state->run.deferred == NULL)
		state->run.deferred = make_deferred(state);
	gpurhh_deferred_save(state->run.deferred, slot, hash);
	state->stats.counts.deferred_rows++;
}

/*
 * A string that candidates.c has for min() or max(), but for which the dictionary has
 * no number, as a group of the first stage (unnumbered_strings.c).  The string may be
 * large, so the callers free what this makes.
 */
static uint64 *
make_string_group(GpuAggState *state, const Feed *feed, uint32 row, int column,
				  const char *data, uint32 length, bool odd)
{
	AggPlan    *plan = &state->plan;
	MemoryContext context = state->run.input.choice_context;
	uint64	   *words;

	words = MemoryContextAlloc(context,
							   rhh_result_words(&plan->spec) * sizeof(uint64));
	gpurhh_unnumbered_group(&plan->spec, &plan->strings, plan->n_shown_keys,
							feed, row, column, data, length, odd, context, words);
	return words;
}

/* The candidates call this for such a string in a parallel plan: it goes to a file. */
static void
save_string(void *arg, const Feed *feed, uint32 row, int column,
			const char *data, uint32 length, bool odd)
{
	GpuAggState *state = arg;
	AggInput   *input = &state->run.input;
	const uint64 *words = make_string_group(state, feed, row, column, data, length,
											odd);
	MemoryContext old = MemoryContextSwitchTo(state->run.context);

	gpurhh_unnumbered_save(state->parallel.shared, &input->choice_file,
						   &state->plan.strings, words,
						   rhh_result_words(&state->plan.spec));
	MemoryContextSwitchTo(old);
	MemoryContextReset(input->choice_context);
}

/* And this otherwise: the second level takes it at once. */
static void
add_string(void *arg, const Feed *feed, uint32 row, int column,
		   const char *data, uint32 length, bool odd)
{
	GpuAggState *state = arg;
	Level	   *level = state->plan.levels[0];

	gpurhh_level_keep_strings(level);
	(void) gpurhh_level_add(level, NULL,
							make_string_group(state, feed, row, column, data,
											  length, odd),
							1, 1);
	MemoryContextReset(state->run.input.choice_context);
}

/* Where odd values go; made for the first one. */
static OddValues *
odd_values(GpuAggState *state)
{
	AggRun	   *run = &state->run;

	if (run->odd_values == NULL)
	{
		run->odd_values = gpurhh_odd_create(state->plan.odd_plan, run->context);
		state->emit.odd_arguments = run->odd_values;
	}
	return run->odd_values;
}

/* The feed's way to be rid of odd values of the row that it appends. */
static bool
add_odd_row(void *arg, Feed *feed, TupleTableSlot *slot)
{
	GpuAggState *state = arg;

	gpurhh_odd_add_row(odd_values(state), feed, slot);
	feed->watched = gpurhh_odd_watched(state->run.odd_values);
	return true;
}

/* A further level's way to be rid of odd values of DISTINCT. */
static void
add_odd_distinct(void *arg, const uint64 *group, int state_number, Datum value)
{
	GpuAggState *state = arg;

	gpurhh_odd_add(odd_values(state), NULL, group, 1,
				   gpurhh_odd_argument(state->plan.odd_plan, state_number), value);
}

static void
note_odd(GpuAggState *state)
{
	GpuNodeCounts *counts = &state->stats.counts;
	uint64		n_values;
	uint64		n_compared;

	if (state->run.odd_values == NULL)
		return;
	gpurhh_odd_added(state->run.odd_values, &n_values, &n_compared);
	counts->odd_values += n_values;
	counts->odd_compared += n_compared;
	counts->odd_bytes = Max(counts->odd_bytes, gpurhh_odd_bytes(state->run.odd_values));
}

/* Writes this participant's odd values for the participants that emit groups. */
static void
hand_over_odd(GpuAggState *state)
{
	OddValues  *values = state->run.odd_values;
	GpuAggShared *shared = state->parallel.shared;

	if (values == NULL || shared == NULL || !gpurhh_parallel_has_others(shared))
		return;
	gpurhh_odd_save(values, shared);
	gpurhh_odd_free(values);
	state->run.odd_values = state->emit.odd_arguments = NULL;
}

/*
 * Prepares a feed that fills blocks of so many bytes.  What it needs besides is in
 * context, which has to last as long as the feed.  unnumbered: what the candidates
 * call for a string that has no number.
 */
static void
init_feed(GpuAggState *state, Feed *feed, Size bytes, MemoryContext context,
		  CandidateUnnumbered unnumbered)
{
	AggPlan    *plan = &state->plan;
	AggRun	   *run = &state->run;

	gpurhh_feed_init(feed, plan->n_columns, plan->columns, bytes,
					 gpurhh_batch_rows);
	feed->strings.dictionary = run->pass.dictionary;
	feed->defer = defer_row;
	feed->defer_arg = state;
	feed->odd_row = add_odd_row;
	feed->odd_arg = state;
	if (run->odd_values != NULL)
		feed->watched = gpurhh_odd_watched(run->odd_values);
	for (uint32 k = 0; k < plan->spec.n_keys; k++)
		feed->columns[plan->spec.key_column[k]].is_key = true;
	if (!plan->has_candidates)
		return;
	run->input.choice_context = AllocSetContextCreate(context, "GpuHashAgg choice",
													  ALLOCSET_SMALL_SIZES);
	feed->candidates = gpurhh_candidates_create(context, &plan->spec,
												plan->columns,
												GPURHH_CANDIDATES_LIMIT,
												unnumbered, state);
}

/* All rows of this participant have been fed: closes files that others will read. */
static void
end_feed(GpuAggState *state)
{
	AggRun	   *run = &state->run;
	AggStage   *first = first_stage(state);

	if (first->channel != NULL && state->plan.n_conditions > 0 &&
		(first->host != NULL || run->input.late_file != NULL || run->odd || run->odd_values != NULL))
		gpurhh_channel_has_parts(first->channel);
	gpurhh_parallel_close_late(&run->input.late_file);
	gpurhh_unnumbered_close(&run->input.choice_file);
	note_odd(state);
	hand_over_odd(state);
	if (run->deferred != NULL)
		gpurhh_deferred_close(run->deferred);
}

/* gpurhh_join_read()'s questions about build sides. */
static bool
begin_build(void *arg, int j, ParallelTableScanDesc *scan)
{
	GpuAggShared *shared = ((GpuAggState *) arg)->parallel.shared;

	return shared == NULL || gpurhh_builds_begin(gpurhh_parallel_builds(shared), j, scan);
}

static bool
end_build(void *arg, int j)
{
	GpuAggShared *shared = ((GpuAggState *) arg)->parallel.shared;

	return shared == NULL || gpurhh_builds_end(gpurhh_parallel_builds(shared), j);
}

static void
restart_build(void *arg, int j)
{
	GpuAggState *state = arg;

	gpurhh_builds_restart(gpurhh_parallel_builds(state->parallel.shared), j,
						  gpurhh_join_shared_table(state->joins, j));
}

static bool
reads_alone(void *arg)
{
	return gpurhh_parallel_reads_alone(((GpuAggState *) arg)->parallel.shared);
}

static KeyFilter *
share_filter(void *arg, int j, KeyFilter *own)
{
	GpuAggShared *shared = ((GpuAggState *) arg)->parallel.shared;

	return shared == NULL ? own :
		gpurhh_builds_share_filter(gpurhh_parallel_builds(shared), j, own);
}

/* Has core join rows that are left over, and adds them to the host table. */
static void
add_left_over(GpuAggState *state, LeftOver *left_over)
{
	AggRun	   *run = &state->run;
	Feed	   *feed = MemoryContextAllocZero(run->context, sizeof(Feed));

	init_feed(state, feed, block_bytes(state), run->context,
			  state->parallel.shared != NULL ? save_string : add_string);
	for (;;)
	{
		TupleTableSlot *slot = gpurhh_left_over_next(left_over, NULL,
													 state->joins->joins[0].node,
													 outerPlanState(state));

		if (TupIsNull(slot))
			break;
		if (feed->base == NULL)
			gpurhh_feed_start(feed, own_block(state));
		gpurhh_feed_slot(feed, slot);
		if (feed->n_rows == feed->capacity_rows)
			hand_over(state, feed, false);
	}
	if (feed->base != NULL)
		hand_over(state, feed, true);
	run->odd |= feed->strings.odd;
}

/*
 * The input is to be read once more, from the beginning, by this participant, and is not joined by
 * the device.
 */
static void
forget_joins(GpuAggState *state)
{
	AggStage   *first = first_stage(state);

	state->run.input.alone = state->parallel.shared != NULL;
	/* workers may still join queries of a leader */
	if (state->parallel.shared == NULL)
		gpurhh_join_close(state->joins);
	gpurhh_stage_leave_query(first);
	gpurhh_stage_free_host(first);
	gpurhh_stage_use_query(first,
						   gpurhh_agg_open_query(state, false, state->run.context), true);
}

/* Another participant reads all of the input and returns all groups. */
static void
leave_to_one(GpuAggState *state)
{
	AggStage   *first = first_stage(state);

	state->joins_open = false;
	gpurhh_stage_leave_query(first);
	gpurhh_stage_free_host(first);
}

/* For EXPLAIN: the device has not done the joins. */
void
gpurhh_agg_note_joins_why(GpuAggState *state, const char *why)
{
	state->stats.joins_why = MemoryContextStrdup(state->css.ss.ps.state->es_query_cxt, why);
	state->stats.feed_pages = false;
	state->stats.feed_rows = true;
}

/* Prepares to have the device do the joins below. */
static void
init_reader(GpuAggState *state, JoinReader *reader)
{
	AggRun	   *run = &state->run;
	GpuAggShared *shared = state->parallel.shared;

	*reader = (JoinReader){
		.input = state->joins,
		.channel = first_stage(state)->channel,
		.dictionary = run->pass.dictionary,
		.counts = &state->stats.counts,
		.context = run->context,
		.copies = state->css.ss.ps.state->es_plannedstmt->subplans != NIL,
		.arg = state,
		.take_returned = take_returned
	};
	if (shared == NULL)
	{
		reader->rounds = MemoryContextAlloc(run->context, sizeof(JoinRounds));
		gpurhh_rounds_init(reader->rounds);
		reader->part_context = run->context;
		return;
	}
	/* any participant may have to open the query of a part */
	gpurhh_set_limits(&state->css, &state->plan.spec);
	reader->rounds = gpurhh_parallel_rounds(shared);
	reader->parallel = true;
	reader->part_context = state->parallel.context;
	reader->begin_build = begin_build;
	reader->end_build = end_build;
	reader->restart_build = restart_build;
	reader->share_filter = share_filter;
	reader->reads_alone = reads_alone;
}

/*
 * Has the device do the joins below, and reads this participant's part of their sides.
 * Rows that are left to core go to the host table in the end.  False: the device does
 * not do the joins, and the child is to be asked for rows, unless *done says that another
 * participant does so.
 */
static bool
feed_joins(GpuAggState *state, bool *done)
{
	AggRun	   *run = &state->run;
	GpuAggShared *shared = state->parallel.shared;
	JoinReader	reader;
	const GpuNodeCounts counts = state->stats.counts;
	RoundsState end;

	*done = false;
	if (!state->joins_open || first_stage(state)->channel == NULL)
	{
		state->stats.joins_why = "the query is not with the device service";
		return false;
	}
	init_reader(state, &reader);
	end = gpurhh_join_read(&reader);
	run->odd |= reader.odd;
	run->input.joined = end == ROUNDS_DONE;
	if (run->input.joined)
	{
		if (reader.left_over != NULL)
			add_left_over(state, reader.left_over);
		return true;
	}
	gpurhh_agg_note_joins_why(state, reader.why);
	/* that leaves memory to the groups; workers may still join queries of a leader */
	if (end == ROUNDS_CORE && shared == NULL)
		gpurhh_join_close(state->joins);
	if (end != ROUNDS_ALONE)
		return false;
	state->stats.counts = counts;
	*done = shared != NULL && gpurhh_parallel_left_to_one(shared);
	if (*done)
		leave_to_one(state);
	else
		forget_joins(state);
	return false;
}

/* Reads the child to its end. */
static void
feed_child(GpuAggState *state)
{
	AggRun	   *run = &state->run;
	Channel    *channel;
	Feed		feed;
	bool		done = false;

	if (state->joins != NULL && feed_joins(state, &done))
	{
		gpurhh_agg_note_feed(state);
		end_feed(state);
		return;
	}
	if (done)
		return;
	channel = first_stage(state)->channel;
	init_feed(state, &feed, block_bytes(state), run->context,
			  state->parallel.shared != NULL ? save_string : add_string);
	run->input.capacity_rows = feed.capacity_rows;
	if (state->pages != NULL)
	{
		read_pages(state, &feed);
		gpurhh_agg_note_feed(state);
	}
	else
		feed_rows(state, &feed);
	if (feed.base != NULL)
		hand_over(state, &feed, true);
	run->odd |= feed.strings.odd;
	end_feed(state);
	channel = first_stage(state)->channel;
	if (channel != NULL)
	{
		state->stats.counts.pool_wait_ms += gpurhh_channel_pool_wait_ms(channel);
		state->stats.counts.late_batches += gpurhh_channel_late_batches(channel);
	}
}

/* gpurhh_parallel_read_late()'s callback. */
static void
add_late_batch(void *arg, const rhh_batch *batch)
{
	GpuAggState *state = arg;

	gpurhh_stage_add_on_host(first_stage(state), batch, true);
}

/* Finishes the rows for which participants got no block. */
static void
read_late(GpuAggState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->run.context);

	gpurhh_parallel_read_late(state->parallel.shared, block_bytes(state),
							  add_late_batch, state);
	MemoryContextSwitchTo(old);
}

static void
note_dictionary(GpuAggState *state)
{
	GpuNodeCounts *counts = &state->stats.counts;
	uint64		n_strings;
	uint64		bytes;

	if (state->run.pass.dictionary == NULL)
		return;
	gpurhh_dictionary_stats(state->run.pass.dictionary, &n_strings, &bytes);
	counts->dictionary_strings += n_strings;
	counts->dictionary_bytes = Max(counts->dictionary_bytes, bytes);
}

/* Is there a row that waits for a pass?  Once the input has been read. */
static bool
any_deferred(GpuAggState *state)
{
	GpuAggShared *shared = state->parallel.shared;

	return state->run.deferred != NULL ||
		(shared != NULL && gpurhh_parallel_any_deferred(shared));
}

/*
 * Groups of the first stage are about to go to further levels.  Tells these what they
 * have to know of strings, and gives the second the strings that have no number.
 */
static void
prepare_levels(GpuAggState *state)
{
	AggPlan    *plan = &state->plan;
	GpuAggShared *shared = state->parallel.shared;
	bool		odd = state->run.odd;
	bool		keep_strings = odd || any_deferred(state) ||
		(shared != NULL && gpurhh_parallel_any_choices(shared));

	for (int i = 0; i < plan->n_levels; i++)
	{
		if (keep_strings)
			gpurhh_level_keep_strings(plan->levels[i]);
		if (odd)
			gpurhh_level_set_odd(plan->levels[i], add_odd_distinct, state);
	}
	if (shared != NULL)
		gpurhh_unnumbered_read(shared, &plan->strings,
							   rhh_result_words(&plan->spec), plan->levels[0]);
}

/*
 * Has the device make the second stage's map of the groups of the first one's, if it
 * can.  It must have every row of the first stage, because a group that is partly on
 * the host would be counted twice, and it must have memory for another map.
 */
static void
make_second_on_device(GpuAggState *state)
{
	AggStage   *first = first_stage(state);
	AggStage   *second = &state->run.stages[1];
	bool		wanted;

	if (second->map_spec == NULL || first->channel == NULL)
		return;
	wanted = !state->run.odd && first->host == NULL && !any_deferred(state) &&
		gpurhh_channel_complete(first->channel);
	gpurhh_channel_decide_level(first->channel, wanted);
	if (!wanted)
		return;
	/* batches that come back from now on are of the second stage */
	second->in_source_query = true;
	while (!gpurhh_channel_wait_finished(first->channel))
		gpurhh_stage_take_returned(second);
	second->in_source_query =
		gpurhh_channel_level_on_device(first->channel, &second->stats->map);
	/* a map that the device has declined has had no rows */
	Assert(second->in_source_query || second->host == NULL);
	if (second->in_source_query)
		second->phase = STAGE_MAP;
}

/*
 * Opens the first stage's query, or joins that of the parallel plan.  False: this
 * participant is not to read any of the input.
 */
static bool
begin_input(GpuAggState *state)
{
	AggInput   *input = &state->run.input;
	AggParallel *parallel = &state->parallel;
	AggStage   *first = first_stage(state);
	bool		attached = true;

	if (parallel->shared != NULL)
	{
		attached = gpurhh_parallel_attach(parallel->shared);
		input->stays = attached && gpurhh_parallel_stays(parallel->shared);
		gpurhh_stage_use_query(first, parallel->channel, false);
	}
	else
	{
		input->stays = gpurhh_agg_stays(state,
										outerPlan(state->css.ss.ps.plan)->plan_rows);
		if (!input->stays)
			gpurhh_stage_use_query(first,
								   gpurhh_agg_open_query(state, true,
														 state->run.context),
								   true);
	}
	first->phase = STAGE_MAP;
	return attached;
}

/*
 * Is this the process that counts as reading, for the whole session (load.c)?  A worker
 * that runs the node by itself, below another parallel node, is not.
 */
static bool
stands_for_session(GpuAggState *state)
{
	GpuAggShared *shared = state->parallel.shared;

	return shared != NULL ? gpurhh_parallel_stands_for_session(shared) :
		!IsParallelWorker();
}

/* Makes what numbers the strings of the rows that are about to be read. */
static void
begin_strings(GpuAggState *state)
{
	AggRun	   *run = &state->run;

	if (state->plan.n_strings == 0)
		return;
	run->pass.context = AllocSetContextCreate(run->context, "GpuHashAgg pass",
											  ALLOCSET_DEFAULT_SIZES);
	if (state->parallel.dictionary != NULL)
		run->pass.dictionary = state->parallel.dictionary;
	else
		make_dictionary(state, state->plan.spec.expected_groups);
}

/*
 * Reads the child, or this participant's part of it, and says so to the other
 * participants.  The last one says to the service that the input has ended.
 */
static void
read_part(GpuAggState *state)
{
	GpuAggShared *shared = state->parallel.shared;
	Channel    *channel;
	bool		last = true;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	feed_child(state);
	state->stats.counts.feed_ms += milliseconds_since(start);
	state->stats.counts.feeders++;
	if (shared == NULL)
		state->stats.counts.runs++;
	else
	{
		if (state->run.odd)
			gpurhh_parallel_note_odd(shared);
		last = gpurhh_parallel_detach(shared, &state->stats.counts);
	}
	state->run.input.last = last;
	/* one that has a query of its own ends that, whoever else comes */
	if (!last && !state->run.input.alone)
		return;
	note_dictionary(state);
	channel = first_stage(state)->channel;
	if (channel != NULL)
		gpurhh_channel_end_input(channel);
}

/*
 * Takes over what other participants have left for the one that returns groups.
 * False: that is another participant.
 */
static bool
take_over(GpuAggState *state)
{
	GpuAggShared *shared = state->parallel.shared;

	state->run.odd = gpurhh_parallel_any_odd(shared);
	if (!gpurhh_parallel_may_emit(shared, first_stage(state)->channel,
								  state->plan.n_levels > 0 || state->run.odd))
		return false;
	read_late(state);
	if (gpurhh_parallel_any_odd_arguments(shared))
	{
		gpurhh_odd_read(odd_values(state), shared);
		note_odd(state);
	}
	return true;
}

/*
 * Has the node below give its groups to the device as this node's rows, if that can be.
 * False: it cannot, and the input is to be read.
 */
static bool
take_groups_below(GpuAggState *state)
{
	GpuNodeCounts *counts = &state->stats.counts;
	AggInput   *input = &state->run.input;
	instr_time	start;

	if (state->chain_below == NULL)
		return false;
	INSTR_TIME_SET_CURRENT(start);
	state->stats.feed_groups = gpurhh_chain_take(state, &input->first_row);
	input->asked = !state->stats.feed_groups;
	counts->feed_ms += milliseconds_since(start);
	if (input->asked)
	{
		state->stats.feed_why = "the device had not all groups below, no memory for groups of them, or could not compute all of them";
		return false;
	}
	counts->feeders++;
	counts->runs++;
	return true;
}

/* Groups that the device leaves out are counted as those that HAVING removes. */
static void
note_left_out(GpuAggState *state)
{
	if (state->plan.n_conditions > 0)
		InstrCountFiltered1(&state->css.ss.ps,
							gpurhh_channel_count_left_out(first_stage(state)->channel));
}

/*
 * Reads the input, or this participant's part of it, and waits until the map of the
 * first stage, and of the second if the device makes it, can be read.  False: there
 * are no groups for this participant to return.
 */
bool
gpurhh_agg_read_input(GpuAggState *state)
{
	GpuAggShared *shared = state->parallel.shared;
	AggInput   *input = &state->run.input;
	AggStage   *first = first_stage(state);
	bool		attached;
	bool		given = false;
	instr_time	start;

	if (take_groups_below(state))
		return true;
	attached = begin_input(state);
	/* rows come back also to a participant that is too late to read any */
	first->joins = state->joins;
	if (stands_for_session(state))
		input->reading = gpurhh_load_begin(state->run.context);
	begin_strings(state);
	if (attached)
		read_part(state);
	if (shared != NULL &&
		(!gpurhh_parallel_emits_later(shared) || gpurhh_parallel_left_to_one(shared)))
	{
		/* who comes too late to read has not been told yet */
		if (gpurhh_parallel_left_to_one(shared))
			leave_to_one(state);
		gpurhh_load_end(input->reading);
		return false;
	}

	INSTR_TIME_SET_CURRENT(start);
	if (first->channel != NULL)
	{
		while (!gpurhh_channel_wait_finished(first->channel))
			gpurhh_stage_take_returned(first);
		note_left_out(state);
	}
	gpurhh_load_end(input->reading);
	if (input->stays)
		gpurhh_load_count_stay();
	if (shared != NULL && !take_over(state))
		return false;
	if (state->plan.n_levels > 0)
	{
		prepare_levels(state);
		make_second_on_device(state);
	}
	else if (gpurhh_chain_give(state, !state->run.odd && state->run.odd_values == NULL &&
							   !any_deferred(state)))
		given = true;
	state->stats.counts.fetch_ms += milliseconds_since(start);
	return !given;
}

/* ---------- deferred rows ---------- */

/*
 * Groups the deferred rows of the next pass, with a new dictionary, in a new
 * host table.  False: there are no more.
 */
static bool
start_pass(GpuAggState *state)
{
	AggRun	   *run = &state->run;
	AggPass    *pass = &run->pass;
	Feed		feed;
	rhh_batch	batch;
	char	   *block;
	bool		more;
	uint64		n_strings;
	uint64		bytes;

	if (pass->context == NULL)
		return false;
	/* other participants may have some */
	if (run->deferred == NULL)
	{
		if (state->parallel.dictionary == NULL)
			return false;
		run->deferred = make_deferred(state);
		gpurhh_deferred_close(run->deferred);
	}
	if (!gpurhh_deferred_next(run->deferred))
		return false;

	gpurhh_stage_free_host(first_stage(state));
	gpurhh_agg_end_pass(state);
	make_dictionary(state, 0);
	init_feed(state, &feed, GPURHH_MIN_BLOCK_BYTES, pass->context, add_string);
	block = (char *) TYPEALIGN(64, MemoryContextAlloc(pass->context,
													  GPURHH_MIN_BLOCK_BYTES + 64));
	do
	{
		gpurhh_feed_start(&feed, block);
		more = true;
		while (more && feed.n_rows < feed.capacity_rows)
		{
			more = gpurhh_deferred_read(run->deferred, state->deferred_slot);
			if (more)
				gpurhh_feed_slot(&feed, state->deferred_slot);
		}
		if (feed.n_rows > 0)
		{
			gpurhh_feed_finish(&feed, &batch);
			batch.base = (uint8_t *) block;
			state->stats.counts.rows_fed += batch.n_rows;
			gpurhh_stage_add_on_host(first_stage(state), &batch, true);
		}
	} while (more);
	ExecClearTuple(state->deferred_slot);
	gpurhh_deferred_close(run->deferred);
	note_odd(state);
	gpurhh_dictionary_stats(pass->dictionary, &n_strings, &bytes);
	state->stats.counts.dictionary_bytes =
		Max(state->stats.counts.dictionary_bytes, bytes);
	state->stats.counts.passes++;
	return true;
}

/* start_pass(), timed: it is no part of forming a row. */
bool
gpurhh_agg_next_pass(GpuAggState *state)
{
	instr_time	start;
	bool		started;

	INSTR_TIME_SET_CURRENT(start);
	started = start_pass(state);
	state->stats.counts.fetch_ms += milliseconds_since(start);
	return started;
}
