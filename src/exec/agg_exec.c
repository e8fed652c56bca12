/*-------------------------------------------------------------------------
 *
 * agg_exec.c
 *		The methods of the node GpuHashAgg, which PostgreSQL's executor calls.
 *
 * A run of the node has these phases (AggPhase):
 *
 *		AGG_UNREAD		Nothing has been done yet.  The first call for a row reads
 *						all input (agg_input.c): rows of the child become columns in
 *						blocks, which go to the service, and through it to a map on
 *						the device.  Refused rows, which the map had no place for,
 *						come back and go to a host table.
 *		AGG_RETURNING	Each call returns a row.  A row is made of a group
 *						(agg_emit.c), and groups come from a chain of stages
 *						(agg_groups.c, stage.c), the first of which was made of the
 *						input.  Most nodes have that stage only.  GROUPING SETS and
 *						aggregates with DISTINCT need one or two more, whose groups
 *						are made of the groups of the stage before.
 *		AGG_DONE		There are no more groups.
 *
 * In all stages a group is words (see rhh_result).  agg_emit.c makes scan tuples of
 * them, and computes HAVING if it can.  Where it cannot, ExecScan() applies HAVING,
 * and it applies the projection if there is one.
 *
 * In a parallel plan each participant runs through these phases with a part of the
 * input and a part of the groups; agg_parallel.c says who does what.
 *
 * The state and the lifetimes of its parts are in agg_state.h.  The context of the
 * run holds everything of one execution, handles of queries included.  A rescan
 * resets it; at an error it goes with the context of the whole query, which closes
 * the handles.  The query of a parallel plan is opened before the workers start, which
 * may be before the rescan, and so it is in a context of its own.  Values that a
 * tuple points to are in the per-tuple context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/nodeCustom.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"

#include "exec/agg_state.h"
#include "exec/exec.h"
#include "plan/plan.h"

/*
 * One call in so many is timed, see exec_agg().  A prime, to be out of step with
 * the windows that groups are decoded in.
 */
#define EMIT_SAMPLE 61

/* Pairs of looks at the clock of which the shortest is taken for its own time. */
#define CLOCK_PAIRS 100

static void begin_agg(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_agg(CustomScanState *node);
static void end_agg(CustomScanState *node);
static void rescan_agg(CustomScanState *node);
static void explain_agg(CustomScanState *node, List *ancestors,
						ExplainState *es);
static Size estimate_dsm_agg(CustomScanState *node, ParallelContext *pcxt);
static void initialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
							   void *coordinate);
static void reinitialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
								 void *coordinate);
static void initialize_worker_agg(CustomScanState *node, shm_toc *toc,
								  void *coordinate);
static void shutdown_agg(CustomScanState *node);

static Node *create_agg_state(CustomScan *cscan);

static const CustomScanMethods agg_scan_methods = {
	.CustomName = GPUAGG_NODE_NAME,
	.CreateCustomScanState = create_agg_state,
};

static const CustomExecMethods agg_exec_methods = {
	.CustomName = GPUAGG_NODE_NAME,
	.BeginCustomScan = begin_agg,
	.ExecCustomScan = exec_agg,
	.EndCustomScan = end_agg,
	.ReScanCustomScan = rescan_agg,
	.EstimateDSMCustomScan = estimate_dsm_agg,
	.InitializeDSMCustomScan = initialize_dsm_agg,
	.ReInitializeDSMCustomScan = reinitialize_dsm_agg,
	.InitializeWorkerCustomScan = initialize_worker_agg,
	.ShutdownCustomScan = shutdown_agg,
	.ExplainCustomScan = explain_agg,
};

/* Is a node one of ours? */
bool
gpurhh_is_agg(const PlanState *node)
{
	return IsA(node, CustomScanState) &&
		((const CustomScanState *) node)->methods == &agg_exec_methods;
}

void
gpurhh_register_agg_methods(void)
{
	RegisterCustomScanMethods(&agg_scan_methods);
}

static Node *
create_agg_state(CustomScan *cscan)
{
	GpuAggState *state = (GpuAggState *) newNode(sizeof(GpuAggState),
												 T_CustomScanState);

	state->css.methods = &agg_exec_methods;
	return (Node *) state;
}

/* ---------- start ---------- */

/* Fills in state->plan with what the plan node says. */
static void
read_plan(GpuAggState *state, CustomScan *cscan)
{
	const GpuAggPlan *node = gpurhh_plan_of(cscan);
	AggPlan    *plan = &state->plan;
	rhh_map_spec *spec = &plan->spec;
	Level	   *last = NULL;
	ListCell   *lc;

	foreach(lc, node->columns)
	{
		const GpuPlanColumn *from = lfirst(lc);

		plan->columns[plan->n_columns++] = (GpuColumn){
			.encoding = from->encoding,
			.parameter = from->parameter,
			.attribute = from->attribute
		};
	}
	spec->n_columns = plan->n_columns;
	for (int c = 0; c < plan->n_columns; c++)
	{
		GpuEncoding encoding = plan->columns[c].encoding;

		spec->column_bytes[c] = gpurhh_encodings[encoding].bytes;
		if (gpurhh_is_string(encoding))
			plan->n_strings++;
		plan->has_candidates |= gpurhh_is_candidate(encoding);
	}

	state->stats.strings = plan->n_strings > 0;

	foreach(lc, node->key_columns)
	{
		int			column = lfirst_int(lc);

		spec->key_column[spec->n_keys++] = column;
		if (plan->columns[column].encoding == GPU_ENC_DECIMAL)
			plan->n_strings++;
	}
	foreach(lc, node->states)
	{
		const GpuPlanState *from = lfirst(lc);

		spec->states[spec->n_states++] = (rhh_state_spec){
			.op = from->op,
			.arg_column = from->arg_column,
			.filter_column = from->filter_column
		};
	}
	spec->expected_groups = Max(node->first_level_groups, 1.0);
	plan->leader_emits = node->leader_emits;

	gpurhh_string_words_init(&plan->strings, spec, plan->columns);
	plan->n_shown_keys = node->n_shown_keys;
	plan->n_levels = gpurhh_levels_create(plan->levels, spec, plan->columns, node);
	if (plan->n_levels > 0)
		last = plan->levels[plan->n_levels - 1];
	plan->odd_plan = gpurhh_odd_plan(spec, plan->columns, last, node->outputs);
	gpurhh_emit_init(&state->emit, node->outputs,
					 last ? gpurhh_level_spec(last) : spec, plan->odd_plan);
}

/* For EXPLAIN: how the input is read, or was. */
void
gpurhh_agg_note_feed(GpuAggState *state)
{
	PageFeed   *pages = state->joins != NULL ? state->joins->probe.pages : state->pages;

	state->stats.feed_pages = false;
	state->stats.feed_rows = true;
	if (pages != NULL)
		gpurhh_page_feed_ways(pages, &state->stats.feed_pages, &state->stats.feed_rows);
	if (state->stats.feed_rows && state->stats.feed_why == NULL)
		state->stats.feed_why = "the scan's snapshot or direction is unusual";
}

static void
begin_agg(CustomScanState *node, EState *estate, int eflags)
{
	GpuAggState *state = (GpuAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;
	int			n_joins = gpurhh_plan_of(cscan)->n_joins;

	read_plan(state, cscan);
	state->run.context = AllocSetContextCreate(estate->es_query_cxt,
											   "GpuHashAgg",
											   ALLOCSET_DEFAULT_SIZES);
	state->parallel.context = AllocSetContextCreate(estate->es_query_cxt,
													"GpuHashAgg channel",
													ALLOCSET_SMALL_SIZES);
	state->waits = true;
	if (state->plan.n_levels == 0)
		state->plan.n_conditions = gpurhh_emit_conditions(&state->emit, &state->plan.spec,
														  cscan->scan.plan.qual,
														  state->plan.conditions);
	if (gpurhh_emit_having(&state->emit, cscan->scan.plan.qual, &node->ss.ps))
	{
		state->having = node->ss.ps.qual;
		node->ss.ps.qual = NULL;
	}

	/* all input is read before the first group is returned, and only once */
	outerPlanState(node) =
		ExecInitNode(outerPlan(cscan), estate,
					 eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD |
								EXEC_FLAG_MARK));
	gpurhh_check_rights(cscan, (eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0);
	state->pages = gpurhh_page_feed_create(outerPlanState(node), NIL,
										   state->plan.n_columns,
										   state->plan.columns,
										   estate->es_query_cxt,
										   &state->stats.feed_why);
	if (state->pages == NULL)
		gpurhh_chain_create(state);
	state->stats.feed_groups = state->chain_below != NULL;
	if (n_joins > 0)
		state->joins = gpurhh_join_create(outerPlanState(node), n_joins,
										  &state->plan.spec, state->plan.columns, NULL,
										  gpurhh_plan_of(cscan)->key_filters,
										  estate->es_query_cxt, &state->stats.feed_why);
	if (state->joins != NULL)
	{
		gpurhh_join_note_filters(state->joins, state->stats.key_filter);
		state->stats.n_joins = n_joins;
		state->stats.feed_why = state->joins->probe.why_rows;
		state->plan.n_strings = Max(state->plan.n_strings,
									gpurhh_join_strings(state->joins));
	}
	gpurhh_agg_note_feed(state);
	/* a parameter may be a subquery's result, which is made when it is needed */
	state->copies = state->pages == NULL || state->stats.feed_rows ||
		estate->es_plannedstmt->subplans != NIL;
	state->stats.numerics = state->plan.odd_plan != NULL;
	if (state->plan.n_strings > 0)
		state->deferred_slot =
			ExecInitExtraTupleSlot(estate,
								   ExecGetResultType(outerPlanState(node)),
								   &TTSOpsMinimalTuple);
}

/* ---------- output ---------- */

/* What this participant did, for the leader. */
static void
add_to_shared(GpuAggState *state)
{
	gpurhh_parallel_add_counts(state->parallel.shared, &state->stats.counts);
	gpurhh_parallel_note_alone(state->parallel.shared, &state->stats);
}

/* This participant has no more groups. */
static void
end_emission(GpuAggState *state)
{
	state->run.phase = AGG_DONE;
	if (state->parallel.shared != NULL)
		add_to_shared(state);
}

/* Decodes the next groups; false: there are none. */
static bool
next_window(GpuAggState *state)
{
	const uint64 *words;
	Size		stride;
	uint32		n;
	int			n_removed;

	if (state->run.phase == AGG_DONE)
		return false;
	words = gpurhh_agg_next_groups(state, &stride, &n);
	if (words == NULL)
	{
		end_emission(state);
		return false;
	}
	state->stats.counts.groups_returned += n;
	n_removed = gpurhh_emit_window(&state->emit, state->run.pass.dictionary,
								   words, stride, n);
	InstrCountFiltered1(&state->css.ss.ps, n_removed);
	return true;
}

/* HAVING, for a group that could not be decided with its window. */
static bool
passes_having(GpuAggState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	econtext->ecxt_scantuple = slot;
	if (ExecQual(state->having, econtext))
		return true;
	InstrCountFiltered1(&state->css.ss.ps, 1);
	ResetExprContext(econtext);
	return false;
}

/* ExecScan's access method: the next group as a scan tuple. */
static TupleTableSlot *
next_group(ScanState *ss)
{
	GpuAggState *state = (GpuAggState *) ss;
	Emit	   *emit = &state->emit;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	do
	{
		while (emit->next == emit->n_rows)
		{
			if (!next_window(state))
				return ExecClearTuple(slot);
		}
		gpurhh_emit_row(emit, ss);
	} while (unlikely(emit->recheck) && !passes_having(state, slot));
	return slot;
}

/*
 * Groups have no row version to recheck.  Older minor versions of PostgreSQL
 * call this in place of next_group() when they evaluate a query once more for
 * an updated row (EvalPlanQual), and expect the row in the slot.
 */
static bool
recheck_group(ScanState *ss, TupleTableSlot *slot)
{
	return !TupIsNull(next_group(ss));
}

/*
 * The next row.  Without HAVING and projection the scan tuple is the row, and
 * what ExecScan() does around it for every one of millions can be left out.
 */
static TupleTableSlot *
next_row(GpuAggState *state)
{
	ScanState  *ss = &state->css.ss;

	if (ss->ps.qual != NULL || ss->ps.ps_ProjInfo != NULL ||
		ss->ps.state->es_epq_active != NULL)
		return ExecScan(ss, next_group, recheck_group);

	if (state->emit.allocates)
		ResetExprContext(ss->ps.ps_ExprContext);
	return next_group(ss);
}

/*
 * What a sample would show if nothing were done in it.  Measured once by each
 * process; the shortest, so that it is never an interrupted one, and no more
 * is taken from a sample than the clock surely took.
 */
static double
clock_ms(void)
{
	static double shortest = -1.0;

	if (shortest < 0)
	{
		for (int i = 0; i < CLOCK_PAIRS; i++)
		{
			instr_time	start;
			double		ms;

			INSTR_TIME_SET_CURRENT(start);
			ms = milliseconds_since(start);
			shortest = i == 0 ? ms : Min(shortest, ms);
		}
	}
	return shortest;
}

/* Makes the stages of a run, and reads the input into the first of them. */
static void
start_run(GpuAggState *state)
{
	AggPlan    *plan = &state->plan;
	AggRun	   *run = &state->run;
	GpuNodeStats *stats = &state->stats;

	gpurhh_stage_start(&run->stages[0], NULL, NULL, &plan->spec, run->context,
					   &stats->counts, &stats->levels[0]);
	for (int i = 0; i < plan->n_levels; i++)
	{
		LevelPlan  *on_device = gpurhh_level_plan(plan->levels[i]);

		memset(&stats->levels[1 + i], 0, sizeof(GpuLevelStats));
		gpurhh_stage_start(&run->stages[1 + i], &run->stages[i], plan->levels[i],
						   on_device ? &on_device->spec : NULL, run->context,
						   &stats->counts, &stats->levels[1 + i]);
	}
	run->n_stages = 1 + plan->n_levels;
	run->phase = AGG_RETURNING;
	if (!gpurhh_agg_read_input(state))
		end_emission(state);
	gpurhh_agg_note_device(state);
	/* a cursor may rest from here on; workers may still join queries of a leader */
	if (state->joins != NULL && state->parallel.shared == NULL)
		gpurhh_join_close(state->joins);
	INSTR_TIME_SET_CURRENT(state->clock.emission_start);
	state->clock.emit_ms_before = stats->counts.fetch_ms + stats->counts.form_ms;
}

/*
 * Looking at the clock twice takes as long as forming a row, so under EXPLAIN
 * ANALYZE one call in EMIT_SAMPLE is timed, and the clock's time subtracted.  A
 * sample that was interrupted may stand for more time than there was.
 */
static TupleTableSlot *
exec_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuNodeCounts *counts = &state->stats.counts;
	AggClock   *clock = &state->clock;
	instr_time	start;
	double		overhead_ms;
	double		fetch_ms;
	double		form_ms;
	TupleTableSlot *slot;

	if (state->run.phase == AGG_UNREAD)
		start_run(state);
	if (node->ss.ps.instrument == NULL ||
		clock->n_calls++ % EMIT_SAMPLE != 0)
		return next_row(state);

	overhead_ms = clock_ms();
	fetch_ms = counts->fetch_ms;
	INSTR_TIME_SET_CURRENT(start);
	slot = next_row(state);
	form_ms = milliseconds_since(start) - overhead_ms -
		(counts->fetch_ms - fetch_ms);
	if (state->run.phase != AGG_DONE)
		counts->form_ms = Min(counts->form_ms + EMIT_SAMPLE * Max(form_ms, 0.0),
							  clock->emit_ms_before - counts->fetch_ms +
							  milliseconds_since(clock->emission_start));
	return slot;
}

/* ---------- end ---------- */

/* Ends this participant's part in the queries of a parallel plan. */
static void
close_shared_queries(GpuAggState *state)
{
	if (state->joins != NULL)
		gpurhh_join_close(state->joins);
	if (state->parallel.channel != NULL)
		gpurhh_channel_close(state->parallel.channel);
	state->parallel.channel = NULL;
}

/*
 * Frees all that one execution used: its stages with their queries, host tables and
 * files, what is left of reading the input, and its memory.
 */
static void
release_run(GpuAggState *state)
{
	AggRun	   *run = &state->run;
	MemoryContext context = run->context;

	for (int i = 0; i < run->n_stages; i++)
		gpurhh_stage_release(&run->stages[i]);
	gpurhh_load_end(run->input.reading);
	if (run->deferred != NULL)
		gpurhh_deferred_free(run->deferred);
	state->emit.odd_arguments = NULL;
	gpurhh_emit_reset(&state->emit);
	memset(run, 0, sizeof(AggRun));
	run->context = context;
	run->phase = AGG_UNREAD;
	MemoryContextReset(context);
}

static void
end_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	release_run(state);
	close_shared_queries(state);
	ExecEndNode(outerPlanState(node));
}

static void
rescan_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	release_run(state);
	if (state->joins != NULL)
		gpurhh_join_rescan(state->joins);
	/* a child with changed parameters is rescanned by its first use */
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* ---------- parallel plans ---------- */

static Size
estimate_dsm_agg(CustomScanState *node, ParallelContext *pcxt)
{
	GpuAggState *state = (GpuAggState *) node;

	/* a table may grow, and initialize_dsm_agg() has to know what was estimated */
	state->parallel.bytes = gpurhh_parallel_bytes(state->joins,
												  node->ss.ps.state->es_snapshot);
	return state->parallel.bytes;
}

/*
 * Leader: a dictionary for the participants of the next run, in place of the
 * last run's.  InvalidDsaPointer: no strings, or no memory that can be shared
 * (then there are no workers).
 */
static dsa_pointer
share_dictionary(GpuAggState *state, int n_participants)
{
	dsa_area   *area = state->css.ss.ps.state->es_query_dsa;
	dsa_pointer last = gpurhh_parallel_dictionary(state->parallel.shared);

	if (state->plan.n_strings == 0 || area == NULL)
		return InvalidDsaPointer;
	if (DsaPointerIsValid(last))
		gpurhh_dictionary_unshare(area, last);
	return gpurhh_dictionary_share(area,
								   get_hash_memory_limit() * n_participants,
								   state->plan.n_strings,
								   state->plan.spec.expected_groups);
}

/* Attaches to the dictionary that the leader has shared, if it has. */
static void
attach_dictionary(GpuAggState *state)
{
	AggParallel *parallel = &state->parallel;
	dsa_pointer place = gpurhh_parallel_dictionary(parallel->shared);

	parallel->dictionary = NULL;
	if (DsaPointerIsValid(place))
		parallel->dictionary =
			gpurhh_dictionary_attach(state->css.ss.ps.state->es_query_dsa,
									 place, parallel->context);
}

/*
 * Leader: opens the query that the participants of the next run share.  This
 * may come before rescan_agg() of the same run, or after it.
 */
static void
reinitialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
					 void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	AggParallel *parallel = &state->parallel;
	bool		stays;

	state->joins_open = false;
	close_shared_queries(state);
	MemoryContextReset(parallel->context);
	stays = gpurhh_agg_stays(state, outerPlan(node->ss.ps.plan)->plan_rows *
							 (pcxt->nworkers + 1));
	if (!stays)
		parallel->channel = gpurhh_agg_open_query(state, true, parallel->context);
	/* then one participant is to read all of it, as if there were no device */
	if (parallel->channel != NULL && !state->joins_open &&
		gpurhh_join_returns_unmatched(outerPlanState(node),
									  gpurhh_plan_of((CustomScan *) node->ss.ps.plan)->n_joins))
	{
		gpurhh_channel_close(parallel->channel);
		parallel->channel = NULL;
	}
	gpurhh_parallel_start(parallel->shared,
						  state->plan.leader_emits && parallel_leader_participation,
						  parallel->channel, stays,
						  state->joins_open ? state->joins : NULL,
						  node->ss.ps.state->es_snapshot,
						  share_dictionary(state, pcxt->nworkers + 1));
	attach_dictionary(state);
}

static void
initialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
				   void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;

	state->parallel.shared = coordinate;
	gpurhh_parallel_init(state->parallel.shared, state->parallel.bytes, pcxt->seg);
	reinitialize_dsm_agg(node, pcxt, coordinate);
}

static void
initialize_worker_agg(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;
	AggParallel *parallel = &state->parallel;

	parallel->shared = coordinate;
	parallel->channel = gpurhh_parallel_join(parallel->shared, parallel->context);
	state->joins_open = gpurhh_builds_attach(gpurhh_parallel_builds(parallel->shared), state->joins,
											 parallel->context);
	attach_dictionary(state);
}

/*
 * The DSM segment is about to go: keeps for EXPLAIN what the participants did.
 * Workers have added theirs before they returned their last row.
 */
static void
shutdown_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	AggParallel *parallel = &state->parallel;

	if (parallel->shared == NULL)
		return;
	add_to_shared(state);
	if (!IsParallelWorker())
	{
		const JoinRounds *rounds = gpurhh_parallel_rounds(parallel->shared);

		gpurhh_parallel_counts(parallel->shared, &state->stats.counts);
		state->stats.parallel = true;
		/* the leader need not have taken part */
		if (state->joins_open)
		{
			state->joins->parts = rounds->parts;
			state->joins_open = rounds->state != ROUNDS_ALONE;
			if (rounds->why[0] != '\0')
				gpurhh_agg_note_joins_why(state, rounds->why);
		}
		if (!gpurhh_parallel_alone_stats(parallel->shared, &state->stats) &&
			state->stats.counts.runs > 0)
			gpurhh_agg_note_device(state);
	}
	parallel->shared = NULL;
	parallel->dictionary = NULL;
	state->run.pass.dictionary = NULL;
}

static void
explain_agg(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuAggState *state = (GpuAggState *) node;

	gpurhh_explain_agg(node, ancestors, es, &state->stats);
}
