/*-------------------------------------------------------------------------
 *
 * chain.c
 *		A node that groups the groups of another GpuHashAgg.
 *
 *		SELECT count(*), sum(s) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) q
 *
 * has a node above, which counts and sums up, and a node below, whose groups are the
 * rows of the node above.  If each column that the node above needs is found in the
 * words of a group as it is, the device can make those rows itself, as it does for a
 * further level of one node (map_feed in gpu/rhh_device.h).  Then no group goes through
 * the session.
 *
 * When the node above is started, it finds the node below, describes its map and the
 * rows for it in an AggChain, and gives that to the node below.  From then on
 *
 *		- the node below opens its query with the description, as if the map were its own
 *		  second level's;
 *		- the node above, when it is to read its input, asks the node below for a row;
 *		- the node below reads its own input, and then has the device make the map of
 *		  the node above (gpurhh_chain_give).  If that is done, it returns no row;
 *		- the node above takes its groups from that map, which is in the query of the
 *		  node below.
 *
 * The device cannot do it if some of the groups are on the host, or if it has no memory
 * for another map.  Then the node below returns its groups as rows, and the node above
 * reads them as it reads any rows.
 *
 * In a parallel plan the node below may have several participants, if the leader alone
 * has its groups; the node above is the leader's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "optimizer/optimizer.h"

#include "exec/agg_state.h"
#include "plan/plan.h"

/* ---------- the node above is started ---------- */

static const GpuAggPlan *
plan_of(const GpuAggState *state)
{
	return gpurhh_plan_of((const CustomScan *) state->css.ss.ps.plan);
}

/* The node that a node's rows come from, column by column; NULL: there is none. */
static PlanState *
next_below(PlanState *node)
{
	if (node->plan->qual != NIL)
		return NULL;
	switch (nodeTag(node))
	{
		case T_SubqueryScanState:
			return ((SubqueryScanState *) node)->subplan;
		case T_GatherState:
			return outerPlanState(node);
		case T_ResultState:
			return ((Result *) node->plan)->resconstantqual == NULL ?
				outerPlanState(node) : NULL;
		default:
			return NULL;
	}
}

/* The GpuHashAgg whose groups, all of them, are the rows of a node; NULL: none's are. */
static GpuAggState *
find_below(PlanState *node)
{
	while (node != NULL && !gpurhh_is_agg(node))
		node = next_below(node);
	return node != NULL && node->plan->qual == NIL ? (GpuAggState *) node : NULL;
}

/* The expression that a node has for a column of its rows, from 0. */
static Expr *
expression_of(PlanState *node, int column)
{
	return ((TargetEntry *) list_nth(node->plan->targetlist, column))->expr;
}

/*
 * What a column of a node's rows is: a constant, or a Var that names a column of the
 * node below's scan tuple.  NULL: something else.
 */
static Expr *
find_origin(PlanState *node, int column)
{
	Expr	   *expr = expression_of(node, column);

	while (IsA(expr, Var) && !gpurhh_is_agg(node))
	{
		if (((Var *) expr)->varattno <= 0)
			return NULL;
		node = next_below(node);
		expr = expression_of(node, ((Var *) expr)->varattno - 1);
	}
	return IsA(expr, Var) || IsA(expr, Const) ? expr : NULL;
}

/* Describes a column of the rows that is what the node below returns as output. */
static void
describe_output(rhh_row_column *column, const GpuPlanOutput *output,
				const rhh_map_spec *spec)
{
	const GpuAggregate *aggregate;

	switch (output->kind)
	{
		case GPU_OUTPUT_KEY:
			column->kind = RHH_ROW_KEY;
			column->key = output->key;
			column->word = rhh_key_word(spec, output->key);
			break;
		case GPU_OUTPUT_ANY:
			column->kind = RHH_ROW_ANY;
			column->word = rhh_state_word(spec, linitial_int(output->states));
			break;
		case GPU_OUTPUT_AGGREGATE:
			aggregate = gpurhh_find_aggregate(output->aggregate);
			column->kind = RHH_ROW_WORD;
			column->word = rhh_state_word(spec, linitial_int(output->states));
			if (aggregate->family->fewest_rows > 0)
				column->null_word = rhh_state_word(spec, lsecond_int(output->states));
			break;
		case GPU_OUTPUT_GROUPING:
			Assert(false);
			break;
	}
}

/* Describes a column that the node above feeds.  False: it is not in a group's words. */
static bool
describe_column(LevelPlan *plan, int c, const GpuColumn *from, PlanState *child,
				const GpuAggState *below)
{
	rhh_row_column *column = &plan->rows.columns[c];
	Expr	   *origin;
	const GpuPlanOutput *output;

	origin = find_origin(child, from->attribute);
	if (origin == NULL)
		return false;
	column->part = -1;
	if (IsA(origin, Const))
	{
		/* all rows have the number of the only set, 1 */
		column->kind = RHH_ROW_SET;
		return gpurhh_is_single_key(from->encoding, (const Const *) origin);
	}
	output = list_nth(plan_of(below)->outputs, ((Var *) origin)->varattno - 1);
	if (!gpurhh_output_is_stored(output, from))
		return false;
	describe_output(column, output, &below->plan.spec);
	return true;
}

/*
 * Are the groups of the node below all in the process that the node above is in?  Where
 * several participants return them they are not.
 */
static bool
has_all_groups(const GpuAggState *below)
{
	return !below->css.ss.ps.plan->parallel_aware ||
		(below->plan.leader_emits && parallel_leader_participation);
}

/*
 * Makes the chain if the rows of a node that is being started are groups of another
 * one, which has been started, and if the device could make those rows.  Both nodes get
 * it then.
 */
void
gpurhh_chain_create(GpuAggState *above)
{
	PlanState  *child = outerPlanState(&above->css);
	GpuAggState *below = find_below(child);
	const AggPlan *plan = &above->plan;
	AggChain   *chain;

	if (below == NULL || !has_all_groups(below) || above->css.ss.ps.plan->parallel_aware ||
		!gpurhh_has_one_level(plan_of(below)) || !gpurhh_can_chain(plan_of(above)))
		return;
	chain = palloc0(sizeof(AggChain));
	chain->below = below;
	chain->plan.spec = plan->spec;
	chain->plan.rows.n_sets = 1;
	chain->plan.rows.first_set = 1;
	for (int c = 0; c < plan->n_columns; c++)
	{
		if (!describe_column(&chain->plan, c, &plan->columns[c], child, below))
		{
			pfree(chain);
			return;
		}
	}
	above->chain_below = chain;
	below->chain_above = chain;
}

/* ---------- the node below ---------- */

/*
 * What the query of the node below is to be opened with beside its own map; NULL:
 * nothing, as there is no chain, or no longer one process that has all groups.
 */
LevelPlan *
gpurhh_chain_plan(const GpuAggState *below)
{
	return below->chain_above != NULL && has_all_groups(below) ?
		&below->chain_above->plan : NULL;
}

/*
 * To be called when the node below has read its input, and its map can be read.  Has the
 * device make the map of the node above, if that waits for it.  whole: the map has all
 * groups, and nothing has to be added to them.  Returns whether it was done: then the
 * node below has no groups to return.
 */
bool
gpurhh_chain_give(GpuAggState *below, bool whole)
{
	AggChain   *chain = below->chain_above;
	AggStage   *first = &below->run.stages[0];
	AggStage   *above;

	if (chain == NULL || !chain->offered || first->channel == NULL)
		return false;
	above = chain->above;
	whole = whole && above != NULL && first->host == NULL &&
		gpurhh_channel_complete(first->channel);
	gpurhh_channel_decide_level(first->channel, whole);
	if (!whole)
		return false;
	/* batches that come back from now on are of the node above */
	above->source = first;
	above->in_source_query = true;
	while (!gpurhh_channel_wait_finished(first->channel))
		gpurhh_stage_take_returned(above);
	if (gpurhh_channel_level_on_device(first->channel, &above->stats->map))
		chain->taken = true;
	else
	{
		Assert(above->host == NULL);
		above->in_source_query = false;
		above->source = NULL;
	}
	return chain->taken;
}

/* ---------- the node above ---------- */

/*
 * Asks the node below for a row, so that it reads its input.  True: there is none,
 * because the device has made the map of the first stage.  False: *row is the first row
 * of the input.
 */
bool
gpurhh_chain_take(GpuAggState *above, TupleTableSlot **row)
{
	AggChain   *chain = above->chain_below;
	AggStage   *first = &above->run.stages[0];

	chain->above = first;
	chain->taken = false;
	*row = ExecProcNode(outerPlanState(&above->css));
	chain->above = NULL;
	if (!chain->taken)
		return false;
	first->phase = STAGE_MAP;
	/* the keys of strings are those of the node below */
	above->run.pass.dictionary = chain->below->run.pass.dictionary;
	above->stats.counts.rows_fed += first->source->stats->map.groups;
	strlcpy(first->stats->device, first->source->stats->device, GPURHH_DEVICE_NAME_LEN);
	return true;
}
