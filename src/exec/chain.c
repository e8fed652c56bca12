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
 * Expressions of such columns, HAVING below and WHERE above are computed by a program
 * (gpu/rhh_program.h).  If that is bad for any group, whatever is wrong there is core's
 * business: the map is thrown away, and the groups come as rows.
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
 * The device cannot do it if some of the groups are on the host, if it has no memory
 * for another map, or if a program could not compute all rows.  Then the node below
 * returns its groups as rows, and the node above reads them as it reads any rows.
 *
 * In a parallel plan the node below may have several participants, if the leader alone
 * has its groups; the node above is the leader's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"

#include "exec/agg_state.h"
#include "expr/expr.h"
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

/* The GpuHashAgg whose groups are the rows of a node, but for those that conditions drop; NULL: none's are. */
static GpuAggState *
find_below(PlanState *node)
{
	while (node != NULL && !gpurhh_is_agg(node))
		node = next_below(node);
	return (GpuAggState *) node;
}

/* The expression that a node has for a column of its rows, from 0. */
static Expr *
expression_of(PlanState *node, int column)
{
	return ((TargetEntry *) list_nth(node->plan->targetlist, column))->expr;
}

/* What over_groups_mutator() needs. */
typedef struct GroupsBelow
{
	PlanState  *node;			/* whose expression it is */
	bool		failed;
} GroupsBelow;

/* Replaces Vars of a node by what they stand for in the scan tuple of the node below. */
static Node *
over_groups_mutator(Node *node, void *arg)
{
	GroupsBelow *below = arg;

	if (node == NULL || below->failed)
		return NULL;
	if (IsA(node, Var) && !gpurhh_is_agg(below->node))
	{
		GroupsBelow next = {.node = next_below(below->node)};

		if (((Var *) node)->varattno > 0)
			node = over_groups_mutator((Node *) expression_of(next.node, ((Var *) node)->varattno - 1), &next);
		else
			next.failed = true;
		below->failed = next.failed;
		return node;
	}
	return expression_tree_mutator(node, over_groups_mutator, arg);
}

/* An expression of a node over the scan tuple of the node below; NULL: there is none, or it has parameters. */
static Expr *
over_groups(PlanState *node, Expr *expr)
{
	GroupsBelow below = {.node = node};

	expr = (Expr *) over_groups_mutator((Node *) expr, &below);
	return below.failed || gpurhh_has_param((Node *) expr) ? NULL : expr;
}

/* The conditions of a node and of those below it, in the order in which core evaluates them. */
static bool
collect_conditions(PlanState *node, List **conditions)
{
	ListCell   *lc;

	if (!gpurhh_is_agg(node) && !collect_conditions(next_below(node), conditions))
		return false;
	foreach(lc, node->plan->qual)
	{
		Expr	   *condition = over_groups(node, lfirst(lc));

		if (condition == NULL)
			return false;
		*conditions = lappend(*conditions, condition);
	}
	return true;
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

/* What the scan tuple of the node below has in the column that a Var names. */
static const GpuPlanOutput *
output_of(const GpuAggState *below, const Expr *var)
{
	return list_nth(plan_of(below)->outputs, ((const Var *) var)->varattno - 1);
}

/* Describes a column that the node above feeds.  False: it is not in a group's words as it is. */
static bool
describe_column(rhh_row_column *column, const GpuColumn *from, const Expr *origin, const GpuAggState *below)
{
	*column = (rhh_row_column){.part = -1};
	if (IsA(origin, Const))
	{
		/* all rows have the number of the only set, 1 */
		column->kind = RHH_ROW_SET;
		return gpurhh_is_single_key(from->encoding, (const Const *) origin);
	}
	if (!IsA(origin, Var) || !gpurhh_output_is_stored(output_of(below, origin), from))
		return false;
	describe_output(column, output_of(below, origin), &below->plan.spec);
	return true;
}

/* ---------- a program ---------- */

/* A chain that is being made. */
typedef struct ChainMaker
{
	LevelPlan  *plan;
	const GpuAggState *below;
	const AggPlan *above;
	PlanState  *child;			/* of the node above */
} ChainMaker;

/* The number of a fed column that is made so, which is added if it is not there; -1: there are too many. */
static int
add_fed(LevelPlan *plan, const rhh_row_column *column, int bytes)
{
	for (uint32 f = 0; f < plan->n_fed; f++)
	{
		if (memcmp(&plan->rows.columns[f], column, sizeof(*column)) == 0 && plan->fed_bytes[f] == bytes)
			return f;
	}
	if (plan->n_fed == RHH_MAX_COLUMNS)
		return -1;
	plan->rows.columns[plan->n_fed] = *column;
	plan->fed_bytes[plan->n_fed] = bytes;
	return plan->n_fed++;
}

/*
 * gpurhh_vector_compile()'s question: is it a column of the scan tuple below that a program takes?  It becomes a
 * column of the map, behind those of the node above.
 */
static bool
find_value(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	const ChainMaker *maker = arg;
	LevelPlan  *plan = maker->plan;
	rhh_map_spec *spec = &plan->spec;
	rhh_row_column from = {.part = -1};
	GpuColumn	how;
	int			fed;
	int			bytes;

	if (!IsA(expr, Var) || !gpurhh_output_value(output_of(maker->below, (Expr *) expr), expr, &how, type))
		return false;
	bytes = gpurhh_encodings[how.encoding].bytes;
	describe_output(&from, output_of(maker->below, (Expr *) expr), &maker->below->plan.spec);
	fed = add_fed(plan, &from, bytes);
	if (fed < 0)
		return false;
	for (uint32 c = maker->above->n_columns; c < spec->n_columns; c++)
	{
		if (plan->column[c] == fed)
		{
			*column = c;
			return true;
		}
	}
	if (spec->n_columns == RHH_MAX_COLUMNS)
		return false;
	*column = spec->n_columns++;
	spec->column_bytes[*column] = bytes;
	plan->column[*column] = fed;
	return true;
}

/* Has the program compute an expression over the scan tuple below; *number and *type as gpurhh_vector_program() has it. */
static bool
compute(ChainMaker *maker, Expr *expr, uint8 *number, VectorType *type)
{
	const char *why;
	VectorExpr *compiled = gpurhh_vector_compile(expr, NULL, 1, find_value, maker, &why);

	return compiled != NULL &&
		gpurhh_vector_program(compiled, &maker->plan->program, false, number, type, &why);
}

/* Has the program drop the rows for which these conditions are not all true. */
static bool
add_filter(ChainMaker *maker, List *conditions)
{
	VectorType	type;

	maker->plan->program.has_filter = conditions != NIL;
	return conditions == NIL ||
		compute(maker, make_ands_explicit(conditions), &maker->plan->program.filter, &type);
}

/* Makes column c of the map, which the node above feeds. */
static bool
add_column(ChainMaker *maker, int c, const GpuColumn *from)
{
	LevelPlan  *plan = maker->plan;
	Expr	   *expr = over_groups(maker->child, expression_of(maker->child, from->attribute));
	rhh_row_column column;
	const char *why;
	VectorType	type;
	uint8		number;
	int			fed;

	if (expr == NULL)
		return false;
	if (describe_column(&column, from, expr, maker->below))
	{
		fed = add_fed(plan, &column, gpurhh_encodings[from->encoding].bytes);
		plan->column[c] = fed;
		return fed >= 0;
	}
	plan->column[c] = RHH_COMPUTED;
	return compute(maker, expr, &number, &type) &&
		gpurhh_program_store(&plan->program, number, type, *from, c, &why);
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

/* Plans the map of the node above, of the groups of the node below.  False: the device could not make it. */
static bool
make_plan(const GpuAggState *above, const GpuAggState *below, LevelPlan *plan)
{
	ChainMaker	maker = {.plan = plan, .above = &above->plan, .below = below, .child = outerPlanState(&above->css)};
	List	   *conditions = NIL;

	plan->spec = above->plan.spec;
	plan->rows.n_sets = 1;
	plan->rows.first_set = 1;
	if (!collect_conditions(maker.child, &conditions) || !add_filter(&maker, conditions))
		return false;
	for (int c = 0; c < maker.above->n_columns; c++)
	{
		if (!gpurhh_is_of_pair(maker.above->columns[c].encoding) &&
			!add_column(&maker, c, &maker.above->columns[c]))
			return false;
	}
	/* what these are made of is there now */
	for (int c = 0; c < maker.above->n_columns; c++)
	{
		const GpuColumn *pair = &maker.above->columns[c];
		const char *why;

		if (!gpurhh_is_of_pair(pair->encoding))
			continue;
		plan->column[c] = RHH_COMPUTED;
		if (!gpurhh_program_pair(&plan->program, *pair, c, &why))
			return false;
	}
	plan->has_program = plan->program.has_filter || plan->program.n_results > 0;
	if (!plan->has_program)
	{
		/* each column of the map is made of groups */
		rhh_row_spec fed = plan->rows;

		for (int c = 0; c < maker.above->n_columns; c++)
			plan->rows.columns[c] = fed.columns[plan->column[c]];
	}
	return true;
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
	AggChain   *chain;

	if (below == NULL || !has_all_groups(below) || above->css.ss.ps.plan->parallel_aware ||
		!gpurhh_has_one_level(plan_of(below)) || !gpurhh_can_chain(plan_of(above)))
		return;
	chain = palloc0(sizeof(AggChain));
	chain->below = below;
	if (!make_plan(above, below, &chain->plan))
	{
		pfree(chain);
		return;
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
	above->stats.counts.rows_fed += first->source->stats->map.groups - first->source->stats->map.left_out -
		first->stats->map.filtered_rows;
	InstrCountFiltered1(&chain->below->css.ss.ps, first->stats->map.filtered_rows);
	strlcpy(first->stats->device, first->source->stats->device, GPURHH_DEVICE_NAME_LEN);
	return true;
}
