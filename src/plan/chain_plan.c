/*-------------------------------------------------------------------------
 *
 * chain_plan.c
 *		Which groupings of groups a device can chain (exec/chain.c), by the plan.
 *
 * The executor finds out by itself what can be chained, and does so where it can.
 * The planner asks because a chained node costs less: the groups below are neither
 * returned nor fed.  Both look at expressions over the scan tuple of the node below, whose
 * columns are Vars of INDEX_VAR.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"

#include "expr/expr.h"
#include "plan/plan_info.h"

/* Does a column that is fed have all of a value, whatever the value is for? */
static bool
has_whole_value(const GpuColumn *column)
{
	const GpuEncodingInfo *info = &gpurhh_encodings[column->encoding];

	switch (info->derivation)
	{
		case DERIVED_TRUTH:
		case DERIVED_VALUE:
		case DERIVED_WORD:
		case DERIVED_STRING:
		case DERIVED_BPCHAR:
		case DERIVED_NAME:
			return info->role == ROLE_ANY;
		case DERIVED_LIMB:
			return info->limb == 0 && GPURHH_DECIMAL_LIMBS(column->parameter) == 1;
		default:
			return false;
	}
}

/* How a column of the scan tuple is in the words of a group; false: it is not, or has to be made of several. */
static bool
find_stored(const GpuPlanOutput *output, GpuColumn *how)
{
	*how = (GpuColumn){output->encoding, output->parameter};
	if (output->kind == GPU_OUTPUT_AGGREGATE)
	{
		const AggregateFamily *family = gpurhh_find_aggregate(output->aggregate)->family;

		if (family->make || family->decode || family->fewest_rows > 1)
			return false;
		if (family->result != GPU_ENC_NONE)
			*how = (GpuColumn){family->result};
	}
	return output->kind != GPU_OUTPUT_GROUPING;
}

/*
 * Is a column of the scan tuple in the words of a group as a column that is fed has
 * it?  Then a device can make the one of the other.  Keys of strings stay what they
 * are as long as both nodes use the same dictionary.
 */
bool
gpurhh_output_is_stored(const GpuPlanOutput *output, const GpuColumn *column)
{
	GpuColumn	how;

	return has_whole_value(column) && find_stored(output, &how) && how.encoding == column->encoding &&
		how.parameter == column->parameter;
}

/*
 * Is a column of the scan tuple, which is this expression, in the words of a group as a number that programs take?
 * Then *how is how it is there, and *type what it is.
 */
bool
gpurhh_output_value(const GpuPlanOutput *output, Node *expr, GpuColumn *how, VectorType *type)
{
	const GpuEncodingInfo *info;
	int			digits;
	int			scale;

	if (!find_stored(output, how) || !has_whole_value(how))
		return false;
	info = &gpurhh_encodings[how->encoding];
	*type = info->vector;
	if (info->derivation == DERIVED_LIMB)
		return gpurhh_decimal_type(expr, &digits, &scale) && digits <= GPURHH_DECIMAL_DIGITS &&
			scale == GPURHH_DECIMAL_SCALE(how->parameter);
	return (info->derivation == DERIVED_TRUTH || info->derivation == DERIVED_VALUE) &&
		info->order == ORDER_OF_BITS && *type != VECTOR_ANY && *type != VECTOR_UUID;
}

/* Has an expression a parameter?  What that is a program would have to be told each time. */
static bool
has_param_walker(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return true;
	return expression_tree_walker(node, has_param_walker, arg);
}

bool
gpurhh_has_param(Node *node)
{
	return has_param_walker(node, NULL);
}

/*
 * Is a constant that is fed the key of a single group (grouping.c)?  Other constants are
 * in no group's words.
 */
bool
gpurhh_is_single_key(GpuEncoding encoding, const Const *constant)
{
	return encoding == GPU_ENC_BOOL && !constant->constisnull &&
		DatumGetBool(constant->constvalue);
}

/* Are the groups of the first level all that a node returns? */
bool
gpurhh_has_one_level(const GpuAggPlan *plan)
{
	return plan->sets == NIL && plan->choices == NIL && plan->distinct_states == NIL;
}

/*
 * Can a node group another one's groups on the device?  It can if it has one level, or
 * a second one only because it returns a group even where there is no row.
 */
bool
gpurhh_can_chain(const GpuAggPlan *plan)
{
	return plan->choices == NIL && plan->distinct_states == NIL &&
		(plan->sets == NIL ||
		 (list_length(plan->sets) == 1 && linitial(plan->sets) == NIL));
}

/*
 * The path of the node whose groups, all of them, are the rows of a path, which are
 * then all in one process; NULL: no node's are.  *n_workers: how many feed it beside the
 * leader.
 */
static const GpuAggPath *
find_below(Path *path, int *n_workers)
{
	const GpuAggPath *below;

	*n_workers = 0;
	while (IsA(path, ProjectionPath) || IsA(path, GatherPath))
	{
		if (IsA(path, GatherPath))
			*n_workers = ((GatherPath *) path)->num_workers;
		path = IsA(path, GatherPath) ? ((GatherPath *) path)->subpath :
			((ProjectionPath *) path)->subpath;
	}
	below = gpurhh_agg_path(path);
	if (below == NULL || !gpurhh_has_one_level(below->plan))
		return NULL;
	if (*n_workers > 0 && !(below->plan->leader_emits && parallel_leader_participation))
		return NULL;
	return below;
}

/* What over_path_mutator() and find_value() need. */
typedef struct PathBelow
{
	RelOptInfo *rel;			/* the subquery; NULL: expressions are inside of it already */
	const GpuAggPath *path;
	bool		failed;
} PathBelow;

/* Replaces what is a column of the scan tuple below by a Var of that. */
static Node *
over_path_mutator(Node *node, void *arg)
{
	PathBelow  *below = arg;
	const Var  *var = (const Var *) node;
	TargetEntry *entry;

	if (node == NULL || below->failed)
		return NULL;
	if (below->rel != NULL && IsA(node, Var))
	{
		PathBelow	inside = {.path = below->path};

		entry = var->varno == below->rel->relid && var->varattno > 0 && var->varlevelsup == 0 ?
			get_tle_by_resno(below->rel->subroot->processed_tlist, var->varattno) : NULL;
		node = entry != NULL ? over_path_mutator((Node *) entry->expr, &inside) : NULL;
		below->failed = node == NULL || inside.failed;
		return node;
	}
	entry = below->rel == NULL ? tlist_member((Expr *) node, below->path->scan_tlist) : NULL;
	if (entry != NULL)
		return (Node *) makeVar(INDEX_VAR, entry->resno, exprType(node), exprTypmod(node), exprCollation(node), 0);
	if (IsA(node, Var) || IsA(node, Aggref))
	{
		below->failed = true;
		return NULL;
	}
	return expression_tree_mutator(node, over_path_mutator, arg);
}

/* gpurhh_vector_compile()'s question: is it a column of the scan tuple below that a program takes? */
static bool
find_value(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	const PathBelow *below = arg;
	const Var  *var = (const Var *) expr;
	GpuColumn	how;

	*column = 0;
	return IsA(expr, Var) && var->varno == INDEX_VAR &&
		gpurhh_output_value(list_nth(below->path->plan->outputs, var->varattno - 1), expr, &how, type);
}

/*
 * Can a program over the groups below compute an expression?  It is of a query that has the subquery rel, or, if rel
 * is NULL, of that subquery.  how: the column that it becomes; NULL: it is a condition.
 */
static bool
is_computed(const GpuAggPath *path, RelOptInfo *rel, Node *expr, const GpuColumn *how, rhh_program *program)
{
	PathBelow	below = {.rel = rel, .path = path};
	const char *why;
	VectorExpr *compiled;
	VectorType	type;
	uint8		number;

	expr = over_path_mutator(expr, &below);
	if (below.failed || gpurhh_has_param(expr))
		return false;
	compiled = gpurhh_vector_compile((Expr *) expr, NULL, 1, find_value, &below, &why);
	return compiled != NULL && gpurhh_vector_program(compiled, program, false, &number, &type, &why) &&
		(how == NULL || gpurhh_program_store(program, number, type, *how, 0, &why));
}

/* Is a column that is fed in the words of the groups below as it is? */
static bool
is_stored(const GpuAggPath *path, RelOptInfo *rel, Expr *expr, const GpuColumn *column)
{
	TargetEntry *entry;

	if (IsA(expr, Const))
		return gpurhh_is_single_key(column->encoding, (const Const *) expr);
	if (!IsA(expr, Var) || ((Var *) expr)->varno != rel->relid)
		return false;
	entry = get_tle_by_resno(rel->subroot->processed_tlist, ((Var *) expr)->varattno);
	if (entry != NULL)
		entry = tlist_member(entry->expr, path->scan_tlist);
	return entry != NULL &&
		gpurhh_output_is_stored(list_nth(path->plan->outputs, entry->resno - 1), column);
}

/*
 * Does the serial path for a grouping get its rows from another node of ours, and can
 * the device make them of that one's groups?  *n_workers: see find_below().
 */
bool
gpurhh_chains(PlanInfo *info, int *n_workers)
{
	RelOptInfo *rel = info->input->parent;
	const GpuAggPath *below;
	rhh_program *program;
	ListCell   *lc;

	if (!IsA(info->input, SubqueryScanPath) || !gpurhh_can_chain(info->plan))
		return false;
	below = find_below(((SubqueryScanPath *) info->input)->subpath, n_workers);
	if (below == NULL)
		return false;
	program = palloc0(sizeof(rhh_program));
	foreach(lc, below->having)
	{
		if (!is_computed(below, NULL, lfirst(lc), NULL, program))
			return false;
	}
	foreach(lc, rel->baserestrictinfo)
	{
		if (!is_computed(below, rel, (Node *) lfirst_node(RestrictInfo, lc)->clause, NULL, program))
			return false;
	}
	foreach(lc, info->plan->columns)
	{
		const GpuPlanColumn *from = lfirst(lc);
		GpuColumn	column = {from->encoding, from->parameter, from->attribute};
		Expr	   *expr;

		/* of two columns that are looked at themselves */
		if (gpurhh_is_of_pair(from->encoding))
			continue;
		expr = list_nth(info->child_target->exprs, from->attribute);
		if (!is_stored(below, rel, expr, &column) &&
			!is_computed(below, rel, (Node *) expr, &column, program))
			return false;
	}
	return true;
}
