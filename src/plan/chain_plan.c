/*-------------------------------------------------------------------------
 *
 * chain_plan.c
 *		Which groupings of groups a device can chain (exec/chain.c), by the plan.
 *
 * The executor finds out by itself what can be chained, and does so where it can.
 * The planner asks because a chained node costs less: the groups below are neither
 * returned nor fed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"

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

/*
 * Is a column of the scan tuple in the words of a group as a column that is fed has
 * it?  Then a device can make the one of the other.  Keys of strings stay what they
 * are as long as both nodes use the same dictionary.
 */
bool
gpurhh_output_is_stored(const GpuPlanOutput *output, const GpuColumn *column)
{
	GpuEncoding encoding = output->encoding;
	int			parameter = output->parameter;

	if (!has_whole_value(column))
		return false;
	if (output->kind == GPU_OUTPUT_GROUPING)
		return false;
	if (output->kind == GPU_OUTPUT_AGGREGATE)
	{
		const AggregateFamily *family = gpurhh_find_aggregate(output->aggregate)->family;

		if (family->make || family->decode || family->fewest_rows > 1)
			return false;
		if (family->result != GPU_ENC_NONE)
		{
			encoding = family->result;
			parameter = 0;
		}
	}
	return encoding == column->encoding && parameter == column->parameter;
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
	if (below == NULL || below->having != NIL || !gpurhh_has_one_level(below->plan))
		return NULL;
	if (*n_workers > 0 && !(below->plan->leader_emits && parallel_leader_participation))
		return NULL;
	return below;
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
	ListCell   *lc;

	if (!IsA(info->input, SubqueryScanPath) || rel->baserestrictinfo != NIL ||
		!gpurhh_can_chain(info->plan))
		return false;
	below = find_below(((SubqueryScanPath *) info->input)->subpath, n_workers);
	if (below == NULL)
		return false;
	foreach(lc, info->plan->columns)
	{
		const GpuPlanColumn *from = lfirst(lc);
		GpuColumn	column = {from->encoding, from->parameter, from->attribute};
		Expr	   *expr = list_nth(info->child_target->exprs, from->attribute);
		TargetEntry *entry;

		if (IsA(expr, Const) && gpurhh_is_single_key(from->encoding, (const Const *) expr))
			continue;
		if (!IsA(expr, Var) || ((Var *) expr)->varno != rel->relid)
			return false;
		entry = get_tle_by_resno(rel->subroot->processed_tlist,
								 ((Var *) expr)->varattno);
		if (entry != NULL)
			entry = tlist_member(entry->expr, below->scan_tlist);
		if (entry == NULL ||
			!gpurhh_output_is_stored(list_nth(below->plan->outputs, entry->resno - 1),
									 &column))
			return false;
	}
	return true;
}
