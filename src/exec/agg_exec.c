/*-------------------------------------------------------------------------
 *
 * agg_exec.c
 *		Execution of GpuHashAgg.
 *
 * The first call reads all input: rows of the child go through the feed into
 * blocks of the pool and on to the device (agg_input.c).  Batches that come
 * back, wholly or in part, and all batches where there is no device, are
 * finished in the host table.
 *
 * Then groups are returned, in phases:
 *
 *		EMIT_DEVICE		groups fetched from the device, a chunk at a time.  One
 *						whose key is in the host table too is merged there.
 *		EMIT_HOST		the host table's groups.  After these, where rows were
 *						deferred (deferred_rows.c), the same again for each pass:
 *						its rows are read into a new host table
 *		EMIT_LEVEL	groups made of all of those (levels.c)
 *		EMIT_DONE
 *
 * Where the device has made the second level too (level_on_device), it returns
 * that, and the host table is for what it refused of it.
 *
 * A group in either place is words (see rhh_result); agg_emit.c makes scan
 * tuples of them, and computes HAVING if it can.  ExecScan() applies it where
 * that cannot, and the projection, if any.
 *
 * In a parallel plan each participant runs through this with a part of the
 * input, and of the groups; agg_parallel.c says who does what.
 *
 * Memory: run_context holds everything of one execution (the channel, the
 * host table, the chunk); it is reset by a rescan and goes with the query's
 * context at an error, which closes the channel.  A parallel plan's channel is
 * opened before the workers start, which may be before the rescan, and is in
 * shared_context.  Values that a tuple points to are in the per-tuple context.
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

/* Takes from the plan what the node is to do. */
static void
read_plan(GpuAggState *state, CustomScan *cscan)
{
	const GpuAggPlan *plan = gpurhh_plan_of(cscan);
	rhh_map_spec *spec = &state->spec;
	ListCell   *lc;

	foreach(lc, plan->columns)
	{
		const GpuPlanColumn *from = lfirst(lc);

		state->columns[state->n_columns++] = (GpuColumn){
			.encoding = from->encoding,
			.parameter = from->parameter,
			.attribute = from->attribute
		};
	}
	spec->n_columns = state->n_columns;
	for (int c = 0; c < state->n_columns; c++)
	{
		GpuEncoding encoding = state->columns[c].encoding;

		spec->column_bytes[c] = gpurhh_encodings[encoding].bytes;
		if (gpurhh_is_string(encoding))
			state->n_strings++;
		state->has_candidates |= gpurhh_is_candidate(encoding);
	}

	state->stats.strings = state->n_strings > 0;

	foreach(lc, plan->key_columns)
	{
		int			column = lfirst_int(lc);

		spec->key_column[spec->n_keys++] = column;
		if (state->columns[column].encoding == GPU_ENC_DECIMAL)
			state->n_strings++;
	}
	foreach(lc, plan->states)
	{
		const GpuPlanState *from = lfirst(lc);

		spec->states[spec->n_states++] = (rhh_state_spec){
			.op = from->op,
			.arg_column = from->arg_column,
			.filter_column = from->filter_column
		};
	}
	spec->expected_groups = Max(plan->first_level_groups, 1.0);
	state->leader_emits = plan->leader_emits;

	gpurhh_string_words_init(&state->strings, spec, state->columns);
	state->n_shown_keys = plan->n_shown_keys;
	state->second_level = gpurhh_level_create(spec, state->columns, plan);
	state->odd_plan = gpurhh_odd_plan(spec, state->columns, state->second_level,
									  plan->outputs);
	gpurhh_emit_init(&state->emit, plan->outputs,
					 state->second_level ? gpurhh_level_spec(state->second_level) : spec,
					 state->odd_plan);
}

/* For EXPLAIN: how the input is read, or was. */
void
gpurhh_agg_note_feed(GpuAggState *state)
{
	state->stats.feed_pages = false;
	state->stats.feed_rows = true;
	if (state->pages != NULL)
		gpurhh_page_feed_ways(state->pages, &state->stats.feed_pages,
							  &state->stats.feed_rows);
	if (state->stats.feed_rows && state->stats.feed_why == NULL)
		state->stats.feed_why = "the scan's snapshot or direction is unusual";
}

static void
begin_agg(CustomScanState *node, EState *estate, int eflags)
{
	GpuAggState *state = (GpuAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	read_plan(state, cscan);
	state->run_context = AllocSetContextCreate(estate->es_query_cxt,
											   "GpuHashAgg",
											   ALLOCSET_DEFAULT_SIZES);
	state->shared_context = AllocSetContextCreate(estate->es_query_cxt,
												  "GpuHashAgg channel",
												  ALLOCSET_SMALL_SIZES);
	state->choice_context = AllocSetContextCreate(estate->es_query_cxt,
												  "GpuHashAgg choice",
												  ALLOCSET_SMALL_SIZES);
	state->phase = EMIT_NOT_READ;
	state->waits = true;
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
	state->pages = gpurhh_page_feed_create(outerPlanState(node),
										   state->n_columns, state->columns,
										   estate->es_query_cxt,
										   &state->stats.feed_why);
	gpurhh_agg_note_feed(state);
	/* a parameter may be a subquery's result, which is made when it is needed */
	state->copies = state->stats.feed_rows ||
		estate->es_plannedstmt->subplans != NIL;
	state->stats.numerics = state->odd_plan != NULL;
	if (state->n_strings > 0)
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
	gpurhh_parallel_add_counts(state->shared, &state->stats.counts);
	gpurhh_parallel_note_alone(state->shared, &state->stats);
}

/* This participant has no more groups. */
static void
end_emission(GpuAggState *state)
{
	state->phase = EMIT_DONE;
	if (state->shared != NULL)
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

	if (state->phase == EMIT_DONE)
		return false;
	words = gpurhh_agg_next_groups(state, &stride, &n);
	if (words == NULL)
	{
		end_emission(state);
		return false;
	}
	state->stats.counts.groups_returned += n;
	n_removed = gpurhh_emit_window(&state->emit, words, stride, n);
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
		if (emit->allocates)
		{
			MemoryContext old = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);

			gpurhh_emit_row(emit, slot);
			MemoryContextSwitchTo(old);
		}
		else
			gpurhh_emit_row(emit, slot);
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
	instr_time	start;
	double		overhead_ms;
	double		fetch_ms;
	double		form_ms;
	TupleTableSlot *slot;

	if (state->phase == EMIT_NOT_READ)
	{
		state->phase = EMIT_DEVICE;
		state->returned_level = state->second_level;
		memset(&state->stats.second, 0, sizeof(state->stats.second));
		memset(&state->stats.third, 0, sizeof(state->stats.third));
		if (state->second_level != NULL)
			gpurhh_level_start(state->second_level, state->run_context);
		if (!gpurhh_agg_read_input(state))
			end_emission(state);
		gpurhh_agg_note_device(state);
		INSTR_TIME_SET_CURRENT(state->emission_start);
		state->emit_ms_before = counts->fetch_ms + counts->form_ms;
	}
	if (node->ss.ps.instrument == NULL ||
		state->n_calls++ % EMIT_SAMPLE != 0)
		return next_row(state);

	overhead_ms = clock_ms();
	fetch_ms = counts->fetch_ms;
	INSTR_TIME_SET_CURRENT(start);
	slot = next_row(state);
	form_ms = milliseconds_since(start) - overhead_ms -
		(counts->fetch_ms - fetch_ms);
	if (state->phase != EMIT_DONE)
		counts->form_ms = Min(counts->form_ms + EMIT_SAMPLE * Max(form_ms, 0.0),
							  state->emit_ms_before - counts->fetch_ms +
							  milliseconds_since(state->emission_start));
	return slot;
}

/* ---------- end ---------- */

static void
close_channel(GpuAggState *state)
{
	if (state->channel != NULL)
		gpurhh_channel_close(state->channel);
	state->channel = NULL;
	state->channel_shared = false;
}

/*
 * Gives back the device's table, and the query's place among those that all share,
 * when the run needs them no more.  In a parallel plan others may still come to it:
 * that query goes with the plan, or with its next run.
 */
void
gpurhh_agg_leave_query(GpuAggState *state)
{
	if (!state->channel_shared)
		close_channel(state);
}

/* Frees what one execution used, files and its own channel included. */
static void
release_run(GpuAggState *state)
{
	gpurhh_agg_leave_query(state);
	gpurhh_load_end(state->reading);
	state->reading = NULL;
	if (state->host != NULL)
		gpurhh_host_free(state->host);
	state->host = NULL;
	if (state->deferred != NULL)
		gpurhh_deferred_free(state->deferred);
	state->deferred = NULL;
	state->odd = state->merged = false;
	state->spilled_before = 0;
	state->pass_context = NULL;
	gpurhh_agg_use_dictionary(state, NULL);
	state->odd_arguments = state->emit.odd_arguments = NULL;
	if (state->second_level != NULL)
		gpurhh_level_end(state->second_level);
	state->on_device = NULL;
	memset(&state->chunk, 0, sizeof(state->chunk));
	state->chunk_next = 0;
	gpurhh_emit_reset(&state->emit);
	MemoryContextReset(state->run_context);
}

static void
end_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	close_channel(state);
	release_run(state);
	ExecEndNode(outerPlanState(node));
}

static void
rescan_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	release_run(state);
	state->phase = EMIT_NOT_READ;
	/* a child with changed parameters is rescanned by its first use */
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* ---------- parallel plans ---------- */

static Size
estimate_dsm_agg(CustomScanState *node, ParallelContext *pcxt)
{
	return gpurhh_parallel_bytes();
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
	dsa_pointer last = gpurhh_parallel_dictionary(state->shared);

	if (state->n_strings == 0 || area == NULL)
		return InvalidDsaPointer;
	if (DsaPointerIsValid(last))
		gpurhh_dictionary_unshare(area, last);
	return gpurhh_dictionary_share(area,
								   get_hash_memory_limit() * n_participants,
								   state->n_strings,
								   state->spec.expected_groups);
}

static void
attach_dictionary(GpuAggState *state)
{
	dsa_pointer place = gpurhh_parallel_dictionary(state->shared);

	state->shared_dictionary = NULL;
	if (DsaPointerIsValid(place))
		state->shared_dictionary =
			gpurhh_dictionary_attach(state->css.ss.ps.state->es_query_dsa,
									 place, state->shared_context);
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
	bool		stays;

	close_channel(state);
	state->area = NULL;
	MemoryContextReset(state->shared_context);
	stays = gpurhh_agg_stays(state, outerPlan(node->ss.ps.plan)->plan_rows *
							 (pcxt->nworkers + 1));
	if (!stays)
		state->channel = gpurhh_agg_open_query(state, state->shared_context);
	state->channel_shared = state->channel != NULL;
	gpurhh_parallel_start(state->shared,
						  state->leader_emits && parallel_leader_participation,
						  state->channel, stays,
						  share_dictionary(state, pcxt->nworkers + 1));
	attach_dictionary(state);
}

static void
initialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
				   void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;

	state->shared = coordinate;
	gpurhh_parallel_init(state->shared, pcxt->seg);
	reinitialize_dsm_agg(node, pcxt, coordinate);
}

static void
initialize_worker_agg(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;

	state->shared = coordinate;
	state->channel = gpurhh_parallel_join(state->shared,
										  state->shared_context);
	state->channel_shared = state->channel != NULL;
	state->area = state->channel ? gpurhh_channel_area(state->channel) : NULL;
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

	if (state->shared == NULL)
		return;
	add_to_shared(state);
	if (!IsParallelWorker())
	{
		gpurhh_parallel_counts(state->shared, &state->stats.counts);
		state->stats.parallel = true;
		/* unless the channel is of the third level, or has gone for it */
		if (!gpurhh_parallel_alone_stats(state->shared, &state->stats) &&
			state->stats.counts.runs > 0 &&
			(state->returned_level == NULL || state->returned_level == state->second_level))
			gpurhh_agg_note_device(state);
	}
	state->shared = NULL;
	state->shared_dictionary = NULL;
	gpurhh_agg_use_dictionary(state, NULL);
}

static void
explain_agg(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuAggState *state = (GpuAggState *) node;

	gpurhh_explain_agg(node, ancestors, es, &state->stats);
}
