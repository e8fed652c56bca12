/*-------------------------------------------------------------------------
 *
 * join_exec.c
 *		The methods of the node GpuHashJoin, which returns the rows of joins that the
 *		device does.
 *
 * Its child is core's plan of the same joins, as below GpuHashAgg (join_tree.c), and it is
 * read in the same way (join_input.c).  But the map that the joins' output goes to takes no
 * row (RHH_RETURN_ROWS): all of them come back, as columns in the block that the rows of
 * the probe side came in.
 *
 * A run of the node has these phases (JoinPhase):
 *
 *		JOIN_UNREAD		The first call for a row reads the build sides.
 *		JOIN_DEVICE		The device joins.  A few batches of the probe side are handed
 *						over, their output is copied to memory of the session (join_output.c), and
 *						rows are made of it.  Then come the next batches.
 *						In the end come rows of build sides that nothing has matched,
 *						if a join returns these; then no row is left over.
 *						If a build side comes in parts, all of this happens once for
 *						each (join_rounds.c).
 *		JOIN_REST		A part has no room, so core joins the rows of all parts that
 *						have not been joined (part_filter.c).
 *		JOIN_LEFT_OVER	Core joins the rows that no device takes (left_over.c).
 *		JOIN_CORE		The device does not do the joins, so core does.
 *		JOIN_DONE		There are no more rows.
 *
 * Between two rows the session may sleep for long, if a cursor rests, for example.  So it
 * keeps no block then, and no page pinned: it waits until all batches that it has handed over are done.  A
 * batch may have more output than the session is to keep in memory.  If it has rows it is
 * copied, too, and handed over once more when its turn comes (gpurhh_channel_park()).
 * If it has pages, which the device reads by itself (page_batches.c), the output goes to a file.  That is rare, as
 * what came out of such batches says how many rows the next ones have (limit_rows() in join_input.c).
 *
 * A row of the output is made as a row of a group is (agg_emit.c): it is a group of which
 * all columns are keys.
 *
 * In a parallel plan the participants read the build sides together, into maps that all of
 * them probe (shared_builds.c); so they wait for each other until these are complete.  Then each
 * has a query of its own for its part of the probe side.  If it cannot have the joins done, core
 * joins that part; the others need not know.  As one of them cannot read its part again,
 * build sides do not come in parts there.
 *
 * Rows without a match (of right and full joins) are returned by the participant that is the last to have
 * done its part of the probe side; which rows these are is known in one place for all of them
 * (RHH_SHARE_MATCHES).  Core's join would return all that this one participant has not matched.  So if
 * core has to do such joins, one participant does them all, and the others return nothing: whoever
 * finds that first, before anybody has begun with the probe side (JoinTurns).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/nodeCustom.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "storage/spin.h"
#include "utils/memutils.h"

#include "exec/emit.h"
#include "exec/exec.h"
#include "exec/join_output.h"
#include "exec/page_batches.h"
#include "exec/parallel.h"
#include "exec/stage.h"
#include "plan/plan.h"

/*
 * Batches that are handed over before the first of their rows is returned.  The first
 * time it is one, because a LIMIT may need no more.
 */
#define MOST_BATCHES	4

typedef enum JoinPhase
{
	JOIN_UNREAD,
	JOIN_DEVICE,
	JOIN_REST,
	JOIN_LEFT_OVER,
	JOIN_CORE,
	JOIN_DONE
} JoinPhase;

/* What changes while the node runs. */
typedef struct JoinRun
{
	JoinPhase	phase;
	MemoryContext context;		/* of all that follows */
	Channel    *channel;		/* NULL: it is closed, or has not been opened */
	JoinReader	reader;
	bool		probed;			/* in this pass all of the probe side has been handed over, ... */
	bool		ended;			/* ... and rows without a match have been asked for */
	bool		has_turn;		/* this participant counts in n_probing */
	int			n_batches;		/* to be handed over the next time */
	List	   *parked;			/* of rhh_batch, with more output */
	JoinOutput *output;			/* NULL until the query is open */
	PartFilter *rest;			/* for what core joins of a build side in parts; else NULL */
} JoinRun;

/* In a parallel plan, with joins that return rows without a match: who does what. */
typedef struct JoinTurns
{
	bool		left_to_one;	/* one participant has core do all of it */
	bool		begun;			/* a participant has begun with the probe side */
	int			n_probing;		/* participants that have, and have not done their part of it */
	bool		probed;			/* all have: the last one returns the rows without a match */
} JoinTurns;

/* In the DSM segment of a parallel plan: what the participants did. */
typedef struct JoinShared
{
	slock_t		mutex;			/* guards what follows */
	JoinTurns	turns;
	GpuNodeStats stats;			/* sums over the participants that have ended; no
								 * pointers */
	char		why[GPURHH_MESSAGE_LEN];	/* stats.joins_why */

	/* written by the leader before workers look */
	bool		pages;			/* batches of the probe side are to have pages, */
	bool		cached;			/* also from the cache */
	char		no_builds[GPURHH_MESSAGE_LEN];	/* why the build sides have no queries; or empty */
	dsa_pointer dictionary;		/* of strings, or InvalidDsaPointer */
	SharedBuilds builds;
} JoinShared;

typedef struct GpuJoinState
{
	CustomScanState css;		/* must be first */
	int			n_columns;
	GpuColumn	columns[RHH_MAX_KEYS];
	rhh_map_spec spec;			/* of the map that takes no row */
	JoinInput  *input;			/* NULL: no device can do the joins */
	bool		returns_unmatched;	/* one of them returns rows without a match */
	rhh_map_spec group;			/* of which a row is a group */
	Emit		emit;
	bool		copies;			/* see JoinReader */
	bool		cached;			/* batches of pages may be from the cache */
	const NestedJoins *keeper;	/* in this run the device keeps its rows for a node above; or NULL */
	JoinShared *shared;			/* NULL: the plan is not parallel, or has been shut down */
	Size		shared_bytes;	/* leader: of the shared state and what is behind it */
	MemoryContext shared_context;	/* of the queries of shared build sides, and this: */
	Dictionary *dictionary;		/* shared; NULL: no column needs one */
	bool		summed;			/* the statistics are those of all participants */
	GpuNodeStats stats;
	JoinRun		run;
} GpuJoinState;

static void begin_join(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_join(CustomScanState *node);
static void end_join(CustomScanState *node);
static void rescan_join(CustomScanState *node);
static Size estimate_dsm_join(CustomScanState *node, ParallelContext *pcxt);
static void initialize_dsm_join(CustomScanState *node, ParallelContext *pcxt,
								void *coordinate);
static void reinitialize_dsm_join(CustomScanState *node, ParallelContext *pcxt,
								  void *coordinate);
static void initialize_worker_join(CustomScanState *node, shm_toc *toc, void *coordinate);
static void shutdown_join(CustomScanState *node);
static void explain_join(CustomScanState *node, List *ancestors, ExplainState *es);
static Node *create_join_state(CustomScan *cscan);

static const CustomScanMethods join_scan_methods = {
	.CustomName = GPUJOIN_NODE_NAME,
	.CreateCustomScanState = create_join_state,
};

static const CustomExecMethods join_exec_methods = {
	.CustomName = GPUJOIN_NODE_NAME,
	.BeginCustomScan = begin_join,
	.ExecCustomScan = exec_join,
	.EndCustomScan = end_join,
	.ReScanCustomScan = rescan_join,
	.EstimateDSMCustomScan = estimate_dsm_join,
	.InitializeDSMCustomScan = initialize_dsm_join,
	.ReInitializeDSMCustomScan = reinitialize_dsm_join,
	.InitializeWorkerCustomScan = initialize_worker_join,
	.ShutdownCustomScan = shutdown_join,
	.ExplainCustomScan = explain_join,
};

void
gpurhh_register_join_methods(void)
{
	RegisterCustomScanMethods(&join_scan_methods);
}

static Node *
create_join_state(CustomScan *cscan)
{
	GpuJoinState *state = (GpuJoinState *) newNode(sizeof(GpuJoinState),
												   T_CustomScanState);

	state->css.methods = &join_exec_methods;
	return (Node *) state;
}

/* ---------- start ---------- */

/* Fills in what follows from the plan node: the columns, and how rows are made of them. */
static void
read_plan(GpuJoinState *state, const GpuJoinPlan *plan)
{
	rhh_map_spec *spec = &state->spec;
	rhh_map_spec *group = &state->group;
	ListCell   *lc;

	foreach(lc, plan->columns)
	{
		const GpuPlanColumn *from = lfirst(lc);
		int			c = state->n_columns++;

		state->columns[c] = (GpuColumn){
			.encoding = from->encoding,
			.parameter = from->parameter,
			.attribute = from->attribute
		};
		spec->column_bytes[c] = gpurhh_encodings[from->encoding].bytes;
		group->column_bytes[c] = spec->column_bytes[c];
		group->key_column[c] = c;
	}
	spec->n_columns = group->n_columns = group->n_keys = state->n_columns;
	gpurhh_emit_init(&state->emit, plan->outputs, group, NULL);
}

static void
note_feed(GpuJoinState *state)
{
	PageFeed   *pages = state->input != NULL ? state->input->probe.pages : NULL;

	state->stats.feed_pages = false;
	state->stats.feed_rows = true;
	if (pages != NULL)
		gpurhh_page_feed_ways(pages, &state->stats.feed_pages, &state->stats.feed_rows);
	else if (state->input != NULL)
		state->stats.feed_why = state->input->probe.why_rows;
}

static void
begin_join(CustomScanState *node, EState *estate, int eflags)
{
	GpuJoinState *state = (GpuJoinState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	const GpuJoinPlan *plan = gpurhh_join_plan_of(cscan);

	read_plan(state, plan);
	state->run.context = AllocSetContextCreate(estate->es_query_cxt, "GpuHashJoin",
											   ALLOCSET_DEFAULT_SIZES);
	state->shared_context = AllocSetContextCreate(estate->es_query_cxt, "GpuHashJoin shared",
												  ALLOCSET_SMALL_SIZES);
	outerPlanState(node) =
		ExecInitNode(outerPlan(cscan), estate,
					 eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	state->input = gpurhh_join_create(outerPlanState(node), plan->n_joins, &state->spec,
									  state->columns, NULL, plan->key_filters, estate->es_query_cxt,
									  &state->stats.joins_why);
	state->returns_unmatched = gpurhh_join_returns_unmatched(outerPlanState(node), plan->n_joins);
	state->stats.n_joins = plan->n_joins;
	/* rows may have been returned when the first of them is found */
	if (state->input != NULL && state->returns_unmatched &&
		gpurhh_join_may_leave_rows(state->input))
	{
		state->input = NULL;
		state->stats.joins_why = "the probe side may have values that no device takes";
	}
	/* the same of rows for which it is one */
	if (state->input != NULL && state->input->may_be_bad)
	{
		state->input = NULL;
		state->stats.joins_why = "a condition of an outer join may be an error for some rows";
	}
	if (state->input != NULL)
		gpurhh_join_note_filters(state->input, state->stats.key_filter);
	note_feed(state);
	/* a parameter may be a subquery's result, which is made when it is needed */
	state->copies = state->stats.feed_rows || estate->es_plannedstmt->subplans != NIL;
}

/* ---------- output of the device ---------- */

/* JoinReader's callback: takes the output that has come back. */
static void
take_output(void *arg)
{
	GpuJoinState *state = arg;
	JoinRun    *run = &state->run;
	rhh_batch	batch;
	bool		all_rows;
	const uint8 *bad;

	while (gpurhh_channel_take_returned(run->channel, &batch, &all_rows, &bad))
	{
		rhh_batch  *more;
		MemoryContext old;

		if (bad != NULL)
			gpurhh_join_finish_bad(state->input, &batch, bad);
		state->stats.counts.output_bytes += gpurhh_join_output_add(run->output, &batch);
		run->reader.n_returned += batch.n_rows;
		if (batch.n_pages > 0 || !gpurhh_join_output_is_full(run->output))
		{
			gpurhh_channel_give_back(run->channel);
			continue;
		}
		more = gpurhh_channel_park(run->channel, run->context);
		if (more == NULL)
			continue;
		old = MemoryContextSwitchTo(run->context);
		run->parked = lappend(run->parked, more);
		MemoryContextSwitchTo(old);
	}
}

/* Are there joins that return rows without a match, in a parallel plan? */
static bool
takes_turns(const GpuJoinState *state)
{
	return state->shared != NULL && state->returns_unmatched;
}

/*
 * All that comes of this participant's part of the probe side has been made.  Is it the one that returns
 * rows without a match?
 */
static bool
is_last_turn(GpuJoinState *state)
{
	JoinTurns  *turns;
	bool		last;

	/* nobody asks for a row after the node has been shut down */
	Assert(state->shared != NULL);
	turns = &state->shared->turns;
	SpinLockAcquire(&state->shared->mutex);
	last = --turns->n_probing == 0;
	turns->probed |= last;
	SpinLockRelease(&state->shared->mutex);
	return last;
}

/* Asks for the next rows without a match; false: there are none for this participant. */
static bool
ask_unmatched(GpuJoinState *state)
{
	JoinRun    *run = &state->run;

	if (run->has_turn)
	{
		run->has_turn = false;
		if (!is_last_turn(state))
			return false;
	}
	return gpurhh_join_unmatched(&run->reader);
}

/*
 * Has the device join some more rows, and takes what comes out.  False: nothing more comes
 * out of this pass.
 */
static bool
fetch_output(GpuJoinState *state)
{
	JoinRun    *run = &state->run;
	instr_time	start;

	while (!gpurhh_join_output_any(run->output) && (run->parked != NIL || !run->ended))
	{
		CHECK_FOR_INTERRUPTS();
		INSTR_TIME_SET_CURRENT(start);
		for (int i = 0; i < run->n_batches; i++)
		{
			if (run->parked != NIL)
			{
				rhh_batch  *batch = linitial(run->parked);

				run->parked = list_delete_first(run->parked);
				gpurhh_join_probe_again(&run->reader, batch);
			}
			else if (!run->probed)
				run->probed = !gpurhh_join_probe(&run->reader);
			/* what was handed over is done before that */
			else if (i == 0)
			{
				run->ended = !ask_unmatched(state);
				break;
			}
		}
		state->stats.counts.feed_ms += milliseconds_since(start);
		INSTR_TIME_SET_CURRENT(start);
		gpurhh_join_wait(&run->reader);
		state->stats.counts.fetch_ms += milliseconds_since(start);
		run->n_batches = Min(2 * run->n_batches, MOST_BATCHES);
	}
	return gpurhh_join_output_any(run->output);
}

/* ---------- rows ---------- */

/* Decodes the next rows of the device's output; false: there are none. */
static bool
next_window(GpuJoinState *state)
{
	JoinRun    *run = &state->run;
	uint64	   *words;
	uint32		n;

	if (!fetch_output(state))
		return false;
	words = gpurhh_join_output_window(run->output, &n);
	(void) gpurhh_emit_window(&state->emit, run->reader.dictionary, words, GPURHH_EMIT_WINDOW, n);
	return true;
}

/* A row of core's plan as the node's. */
static TupleTableSlot *
copy_row(TupleTableSlot *from, TupleTableSlot *to)
{
	int			n = to->tts_tupleDescriptor->natts;

	ExecClearTuple(to);
	if (TupIsNull(from))
		return to;
	slot_getallattrs(from);
	memcpy(to->tts_values, from->tts_values, sizeof(Datum) * n);
	memcpy(to->tts_isnull, from->tts_isnull, sizeof(bool) * n);
	return ExecStoreVirtualTuple(to);
}

/* ---------- a run ---------- */

/* For EXPLAIN: what the device did until now. */
static void
note_device(GpuJoinState *state)
{
	GpuNodeStats *stats = &state->stats;
	GpuLevelStats *level = &stats->levels[0];

	if (state->run.channel == NULL || state->run.phase == JOIN_UNREAD || state->summed ||
		state->input->builds[0] == NULL)
		return;
	(void) gpurhh_channel_stats(state->run.channel, &level->map, level->device,
								level->declined);
	if (stats->joins_done)
		gpurhh_join_note(state->input, &level->map, stats->joins);
}

/*
 * The run does not need the device any more.  The leader keeps the queries of shared build
 * sides for participants that come later.
 */
static void
close_queries(GpuJoinState *state)
{
	JoinRun    *run = &state->run;

	note_device(state);
	if (run->channel != NULL)
		gpurhh_channel_close(run->channel);
	run->channel = NULL;
	if (state->input != NULL && (state->shared == NULL || IsParallelWorker()))
		gpurhh_join_close(state->input);
}

/* Opens the query that does the joins; false, with the reason in *why: it has no place. */
static bool
open_query(void *arg, const char **why)
{
	GpuJoinState *state = arg;
	JoinRun    *run = &state->run;
	JoinInput  *input = state->input;
	rhh_map_spec *spec = &input->map_spec;
	ChannelArea *area = gpurhh_channel_area(input->builds[0]);

	gpurhh_set_limits(&state->css, spec);
	spec->flags = RHH_RETURN_ROWS;
	spec->n_keys = 1;
	spec->expected_groups = 1;
	spec->max_batch_rows = gpurhh_join_batch_rows(input, area->block_bytes);
	spec->max_batch_bytes = area->block_bytes;
	spec->max_page_bytes = 0;
	if (input->probe_by_pages)
		gpurhh_page_batches_limits(spec, state->cached);
	run->reader.channel = run->channel =
		gpurhh_channel_open(area, spec, NULL, &input->join_spec, input->builds, input->probe_by_pages,
							state->copies, run->context, why);
	if (run->channel == NULL)
		return false;
	if (input->probe_by_pages && state->cached)
		gpurhh_channel_ask_for_cache(run->channel);
	run->output = gpurhh_join_output_create(&state->group, area->block_bytes, run->context);
	return true;
}

/* Opens those of the build sides, likewise, and decides whether the probe side's batches are to have pages. */
static bool
open_builds(GpuJoinState *state, MemoryContext context, const char **why)
{
	ChannelArea *area;
	bool		pages;

	gpurhh_set_limits(&state->css, &state->spec);
	area = gpurhh_channel_attach(why);
	if (area == NULL)
		return false;
	pages = !state->copies && gpurhh_channel_may_read_pages(area);
	pages = gpurhh_join_want_pages(state->input, pages, area->block_bytes);
	state->cached = pages && gpurhh_page_feed_may_cache(state->input->probe.pages);
	return gpurhh_join_open(state->input, area, context, why);
}

/* JoinReader's questions about shared build sides. */
static bool
begin_build(void *arg, int j, ParallelTableScanDesc *scan)
{
	return gpurhh_builds_begin(&((GpuJoinState *) arg)->shared->builds, j, scan);
}

static bool
end_build(void *arg, int j)
{
	return gpurhh_builds_end(&((GpuJoinState *) arg)->shared->builds, j);
}

static KeyFilter *
share_filter(void *arg, int j, KeyFilter *own)
{
	return gpurhh_builds_share_filter(&((GpuJoinState *) arg)->shared->builds, j, own);
}

/* Makes what reads the sides of the joins. */
static void
init_reader(GpuJoinState *state)
{
	JoinRun    *run = &state->run;
	int			n_strings = gpurhh_join_strings(state->input);

	run->reader = (JoinReader){
		.input = state->input,
		.counts = &state->stats.counts,
		.context = run->context,
		.copies = state->copies,
		.returns = true,
		.rounds = MemoryContextAlloc(run->context, sizeof(JoinRounds)),
		.reads_once = state->css.ss.ps.plan->parallel_aware,
		.part_context = run->context,
		.arg = state,
		.open_query = open_query,
		.take_returned = take_output
	};
	gpurhh_rounds_init(run->reader.rounds);
	if (state->shared != NULL)
	{
		run->reader.begin_build = begin_build;
		run->reader.end_build = end_build;
		run->reader.share_filter = share_filter;
		run->reader.dictionary = state->dictionary;
	}
	else if (n_strings > 0)
		run->reader.dictionary =
			gpurhh_dictionary_create(run->context, get_hash_memory_limit(), n_strings,
									 state->css.ss.ps.plan->plan_rows);
}

/* Reads the build sides.  False, with the reason in *why: core has to do the joins. */
static bool
start_joins(GpuJoinState *state, const char **why)
{
	JoinRun    *run = &state->run;

	if (state->input == NULL)
	{
		*why = state->stats.joins_why;
		return false;
	}
	if (state->shared != NULL && state->shared->no_builds[0] != '\0')
	{
		*why = state->shared->no_builds;
		return false;
	}
	if (state->shared == NULL && !open_builds(state, run->context, why))
		return false;
	init_reader(state);
	/* of shared build sides it comes later, so that a session has fewer queries at a time */
	if (state->shared == NULL && !open_query(state, why))
		return false;
	if (gpurhh_join_build(&run->reader))
		return true;
	*why = run->reader.why;
	return false;
}

/* Core joins all rows; nothing has been returned. */
static void
leave_to_core(GpuJoinState *state, const char *why)
{
	GpuNodeStats *stats = &state->stats;

	state->run.phase = JOIN_CORE;
	stats->joins_done = false;
	stats->counts.declined++;
	stats->joins_why = MemoryContextStrdup(state->css.ss.ps.state->es_query_cxt, why);
	stats->feed_pages = false;
	stats->feed_rows = true;
	close_queries(state);
}

/*
 * Says whether the device does the joins (done) for this participant.  False: it has nothing to return,
 * because others do all, or have done it.
 */
static bool
take_turn(GpuJoinState *state, bool done)
{
	JoinTurns  *turns = &state->shared->turns;
	bool		takes_part;

	SpinLockAcquire(&state->shared->mutex);
	if (done)
	{
		takes_part = !turns->left_to_one && !turns->probed;
		turns->begun |= takes_part;
		turns->n_probing += takes_part ? 1 : 0;
	}
	else
	{
		takes_part = !turns->left_to_one && !turns->begun;
		turns->left_to_one |= takes_part;
	}
	SpinLockRelease(&state->shared->mutex);
	state->run.has_turn = done && takes_part;
	return takes_part;
}

static void
start_run(GpuJoinState *state)
{
	JoinRun    *run = &state->run;
	GpuNodeStats *stats = &state->stats;
	const char *why = NULL;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	/* those of a parallel plan the leader has counted */
	if (state->shared == NULL)
		stats->counts.runs++;
	stats->counts.feeders++;
	state->summed = false;
	stats->joins_done = start_joins(state, &why);
	stats->valid = true;
	stats->kept = false;
	run->n_batches = 1;
	run->phase = JOIN_DEVICE;
	stats->counts.feed_ms += milliseconds_since(start);
	if (takes_turns(state) && !take_turn(state, stats->joins_done))
	{
		stats->joins_done = stats->feed_pages = stats->feed_rows = false;
		close_queries(state);
		run->phase = JOIN_DONE;
	}
	else if (!stats->joins_done)
		leave_to_core(state, why);
}

/* The device has joined all rows but those that are left over. */
static void
end_device(GpuJoinState *state)
{
	JoinRun    *run = &state->run;

	note_feed(state);
	close_queries(state);
	run->phase = run->reader.left_over != NULL ? JOIN_LEFT_OVER : JOIN_DONE;
}

/* A part of a build side has no room: core joins all that the device has not. */
static void
leave_rest(GpuJoinState *state)
{
	JoinRun    *run = &state->run;

	end_device(state);
	state->stats.counts.rests++;
	state->stats.rest_why =
		MemoryContextStrdup(state->css.ss.ps.state->es_query_cxt, run->reader.why);
	run->rest = gpurhh_part_filter_create(state->input, run->reader.dictionary, run->context);
	gpurhh_part_filter_begin(run->rest, outerPlanState(state));
	run->phase = JOIN_REST;
}

/* All that comes out of a pass has been returned. */
static void
end_pass(GpuJoinState *state)
{
	JoinRun    *run = &state->run;
	instr_time	start;
	JoinNext	next;

	INSTR_TIME_SET_CURRENT(start);
	next = gpurhh_join_next_pass(&run->reader);
	state->stats.counts.feed_ms += milliseconds_since(start);
	run->probed = run->ended = false;
	switch (next)
	{
		case JOIN_NEXT_PASS:
			break;
		case JOIN_NEXT_NONE:
			end_device(state);
			break;
		case JOIN_NEXT_CORE:
			leave_to_core(state, run->reader.why);
			break;
		case JOIN_NEXT_REST:
			leave_rest(state);
			break;
	}
}

/* The next row of core's joins. */
static TupleTableSlot *
next_of_core(GpuJoinState *state)
{
	JoinRun    *run = &state->run;
	PlanState  *child = outerPlanState(state);
	TupleTableSlot *slot;

	if (run->phase == JOIN_CORE)
		return ExecProcNode(child);
	if (run->phase == JOIN_REST)
	{
		slot = gpurhh_part_filter_next(run->rest, child);
		if (!TupIsNull(slot) || run->reader.left_over == NULL)
			return slot;
		gpurhh_part_filter_turn(run->rest, child);
		run->phase = JOIN_LEFT_OVER;
	}
	return gpurhh_left_over_next(run->reader.left_over, run->rest, state->input->joins[0].node,
								 child);
}

/* ExecScan's access method: the next row. */
static TupleTableSlot *
next_row(ScanState *ss)
{
	GpuJoinState *state = (GpuJoinState *) ss;
	JoinRun    *run = &state->run;
	Emit	   *emit = &state->emit;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	if (run->phase == JOIN_UNREAD)
		start_run(state);
	while (run->phase == JOIN_DEVICE && emit->next == emit->n_rows)
	{
		if (!next_window(state))
			end_pass(state);
	}
	switch (run->phase)
	{
		case JOIN_DEVICE:
			gpurhh_emit_row(emit, ss);
			return slot;
		case JOIN_REST:
		case JOIN_LEFT_OVER:
		case JOIN_CORE:
			copy_row(next_of_core(state), slot);
			break;
		default:
			ExecClearTuple(slot);
			break;
	}
	if (TupIsNull(slot))
		run->phase = JOIN_DONE;
	return slot;
}

/* The same as recheck_group() of agg_exec.c, in a query without row marks. */
static bool
recheck_row(ScanState *ss, TupleTableSlot *slot)
{
	return !TupIsNull(next_row(ss));
}

static TupleTableSlot *
exec_join(CustomScanState *node)
{
	ScanState  *ss = &node->ss;

	if (ss->ps.qual != NULL || ss->ps.ps_ProjInfo != NULL ||
		ss->ps.state->es_epq_active != NULL)
		return ExecScan(ss, next_row, recheck_row);
	if (((GpuJoinState *) node)->emit.allocates)
		ResetExprContext(ss->ps.ps_ExprContext);
	return next_row(ss);
}

/* ---------- end ---------- */

/* Frees all that a run has. */
static void
release_run(GpuJoinState *state)
{
	MemoryContext context = state->run.context;

	close_queries(state);
	if (state->run.output != NULL)
		gpurhh_join_output_end(state->run.output);
	if (state->run.reader.left_over != NULL)
		gpurhh_left_over_free(state->run.reader.left_over);
	gpurhh_emit_reset(&state->emit);
	memset(&state->run, 0, sizeof(JoinRun));
	state->run.context = context;
	MemoryContextReset(context);
}

/*
 * The queries of shared build sides, and what else the last run has shared.  Not when the node is
 * shut down, as workers may be about to start then.
 */
static void
release_shared(GpuJoinState *state)
{
	if (state->input != NULL)
		gpurhh_join_close(state->input);
	state->dictionary = NULL;
	MemoryContextReset(state->shared_context);
}

static void
end_join(CustomScanState *node)
{
	GpuJoinState *state = (GpuJoinState *) node;

	release_run(state);
	release_shared(state);
	ExecEndNode(outerPlanState(node));
}

static void
rescan_join(CustomScanState *node)
{
	GpuJoinState *state = (GpuJoinState *) node;

	if (state->run.rest != NULL)
		gpurhh_part_filter_end(state->run.rest);
	release_run(state);
	if (state->input != NULL)
		gpurhh_join_rescan(state->input);
	/* a child with changed parameters is rescanned by its first use */
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* ---------- as a build side (nested_joins.c) ---------- */

/* Is a plan such a node, which returns all that comes out of its joins?  NULL: it is not. */
PlanState *
gpurhh_join_node_of(PlanState *plan, int *n_joins)
{
	if (!IsA(plan, CustomScanState) || ((CustomScanState *) plan)->methods != &join_exec_methods ||
		plan->qual != NULL)
		return NULL;
	*n_joins = ((GpuJoinState *) plan)->stats.n_joins;
	return plan;
}

/* What EXPLAIN shows of it. */
GpuNodeStats *
gpurhh_join_node_stats(PlanState *node)
{
	return &((GpuJoinState *) node)->stats;
}

/*
 * Before participants start: the rows of their next run are kept by the device, for the build side of keeper.
 * If one asks for rows all the same, core makes them.  keeps false: no, unless for another one, as there is one for each
 * node above.
 */
void
gpurhh_join_node_keep(PlanState *node, const NestedJoins *keeper, bool keeps)
{
	GpuJoinState *state = (GpuJoinState *) node;

	if (keeps)
		state->keeper = keeper;
	else if (state->keeper == keeper)
		state->keeper = NULL;
}

/* ---------- parallel plans ---------- */

static Size
estimate_dsm_join(CustomScanState *node, ParallelContext *pcxt)
{
	GpuJoinState *state = (GpuJoinState *) node;

	/* a table may grow, and initialize_dsm_join() has to know what was estimated */
	state->shared_bytes = MAXALIGN(sizeof(JoinShared)) +
		gpurhh_builds_bytes(state->input, node->ss.ps.state->es_snapshot);
	return state->shared_bytes;
}

/*
 * Leader: opens the queries of the build sides, and makes a dictionary, for the participants of
 * the next run.
 */
static void
share_builds(GpuJoinState *state, int n_participants)
{
	JoinShared *shared = state->shared;
	EState	   *estate = state->css.ss.ps.state;
	dsa_area   *area = estate->es_query_dsa;
	int			n_strings;
	const char *why = state->stats.joins_why;

	shared->no_builds[0] = '\0';
	if (DsaPointerIsValid(shared->dictionary))
		gpurhh_dictionary_unshare(area, shared->dictionary);
	shared->dictionary = InvalidDsaPointer;
	if (state->input != NULL)
		state->input->shares_matches = state->returns_unmatched;
	if (state->keeper != NULL)
		why = "its rows were to be a build side that stays on the device";
	if (state->input == NULL || state->keeper != NULL || !open_builds(state, state->shared_context, &why))
	{
		strlcpy(shared->no_builds, why, sizeof(shared->no_builds));
		gpurhh_builds_start(&shared->builds, NULL, 0, NULL, NULL);
		return;
	}
	shared->pages = state->input->probe_by_pages;
	shared->cached = state->cached;
	gpurhh_builds_start(&shared->builds, (char *) shared + MAXALIGN(sizeof(JoinShared)),
						state->shared_bytes - MAXALIGN(sizeof(JoinShared)), state->input,
						estate->es_snapshot);
	n_strings = gpurhh_join_strings(state->input);
	/* where no memory can be shared there are no workers */
	if (n_strings > 0 && area != NULL)
		shared->dictionary =
			gpurhh_dictionary_share(area, get_hash_memory_limit() * n_participants, n_strings,
									state->css.ss.ps.plan->plan_rows * n_participants);
	else if (n_strings > 0)
		state->dictionary =
			gpurhh_dictionary_create(state->shared_context, get_hash_memory_limit(), n_strings,
									 state->css.ss.ps.plan->plan_rows);
}

/* Attaches to the dictionary that the leader has shared, if it has. */
static void
attach_dictionary(GpuJoinState *state)
{
	if (DsaPointerIsValid(state->shared->dictionary))
		state->dictionary =
			gpurhh_dictionary_attach(state->css.ss.ps.state->es_query_dsa,
									 state->shared->dictionary, state->shared_context);
}

/*
 * Leader: before the workers of each run start.  What was counted in the last one stays.  This may
 * come before rescan_join() of the same run, or after it.
 */
static void
reinitialize_dsm_join(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuJoinState *state = (GpuJoinState *) node;

	memset(state->shared->stats.joins, 0, sizeof(state->shared->stats.joins));
	memset(&state->shared->turns, 0, sizeof(JoinTurns));
	state->stats.counts.runs++;
	release_shared(state);
	share_builds(state, pcxt->nworkers + 1);
	attach_dictionary(state);
}

static void
initialize_dsm_join(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuJoinState *state = (GpuJoinState *) node;

	state->shared = coordinate;
	memset(state->shared, 0, sizeof(JoinShared));
	SpinLockInit(&state->shared->mutex);
	state->shared->dictionary = InvalidDsaPointer;
	gpurhh_builds_init(&state->shared->builds);
	reinitialize_dsm_join(node, pcxt, coordinate);
}

static void
initialize_worker_join(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuJoinState *state = (GpuJoinState *) node;

	state->shared = coordinate;
	if (state->input != NULL)
		state->input->probe_by_pages = state->shared->pages;
	state->cached = state->shared->cached;
	(void) gpurhh_builds_attach(&state->shared->builds, state->input, state->shared_context);
	attach_dictionary(state);
}

/* Adds what this participant did to the sums. */
static void
add_to_shared(GpuJoinState *state)
{
	GpuNodeStats *stats = &state->stats;
	GpuNodeStats *sum = &state->shared->stats;

	SpinLockAcquire(&state->shared->mutex);
	if (stats->counts.declined > 0)
		strlcpy(state->shared->why, stats->joins_why, GPURHH_MESSAGE_LEN);
	gpurhh_add_counts(&sum->counts, &stats->counts);
	if (stats->valid)
	{
		sum->valid = true;
		sum->kept |= stats->kept;
		sum->feed_pages |= stats->feed_pages;
		sum->feed_rows |= stats->feed_rows;
		if (stats->joins_done)
		{
			sum->joins_done = true;
			gpurhh_add_level(&sum->levels[0], &stats->levels[0]);
			gpurhh_add_joins(sum->joins, stats->joins, stats->n_joins);
		}
	}
	SpinLockRelease(&state->shared->mutex);
}

/* Leader: what all participants did is the node's. */
static void
take_sums(GpuJoinState *state)
{
	GpuNodeStats *stats = &state->stats;
	char	   *why = MemoryContextAllocZero(state->css.ss.ps.state->es_query_cxt,
											 GPURHH_MESSAGE_LEN);
	GpuNodeStats sum;

	SpinLockAcquire(&state->shared->mutex);
	sum = state->shared->stats;
	strlcpy(why, state->shared->why, GPURHH_MESSAGE_LEN);
	SpinLockRelease(&state->shared->mutex);
	stats->counts = sum.counts;
	stats->parallel = true;
	if (!sum.valid)
		return;
	stats->valid = true;
	stats->kept = sum.kept;
	stats->feed_pages = sum.feed_pages;
	stats->feed_rows = sum.feed_rows;
	stats->joins_done = sum.joins_done;
	if (why[0] != '\0')
		stats->joins_why = why;
	stats->levels[0] = sum.levels[0];
	memcpy(stats->joins, sum.joins, sizeof(sum.joins));
	state->summed = true;
}

/*
 * The DSM segment is about to go: keeps for EXPLAIN what the participants did.  Workers come
 * here before the leader has their last row.
 */
static void
shutdown_join(CustomScanState *node)
{
	GpuJoinState *state = (GpuJoinState *) node;

	if (state->shared == NULL)
		return;
	note_device(state);
	add_to_shared(state);
	if (!IsParallelWorker())
		take_sums(state);
	state->shared = NULL;
}

static void
explain_join(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuJoinState *state = (GpuJoinState *) node;

	note_device(state);
	gpurhh_explain_join(es, &state->stats);
}
