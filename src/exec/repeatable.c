/*-------------------------------------------------------------------------
 *
 * repeatable.c
 *		Does a plan return the same rows each time it is read?
 *
 * Joins whose build side has no room are done in several passes, each of which reads both sides
 * again (join_input.c).  A row that is in one pass and not in another would be joined with a part
 * of its matches.  So only those nodes are known here which return what they returned before,
 * if their inputs do and no expression is volatile.  LIMIT is not among them: which rows it lets
 * pass may depend on the order in which a scan returns them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "exec/join_input.h"

static bool
is_not_repeatable(PlanState *plan, void *arg)
{
	return !gpurhh_is_repeatable(plan);
}

/* The expressions that only some nodes have and that may be volatile. */
static Node *
other_expressions(const PlanState *plan)
{
	switch (nodeTag(plan->plan))
	{
		case T_Result:
			return ((Result *) plan->plan)->resconstantqual;
		case T_HashJoin:
		case T_MergeJoin:
		case T_NestLoop:
			return (Node *) ((Join *) plan->plan)->joinqual;
		default:
			return NULL;
	}
}

/* Does it?  It may have been started, but not by another process. */
bool
gpurhh_is_repeatable(PlanState *plan)
{
	/* a parallel scan gives out what others have not got yet */
	if (plan->plan->parallel_aware)
		return false;
	switch (nodeTag(plan->plan))
	{
		case T_SeqScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_BitmapIndexScan:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_Result:
		case T_Append:
		case T_MergeAppend:
		case T_SubqueryScan:
		case T_ValuesScan:
		case T_Material:
		case T_Sort:
		case T_IncrementalSort:
		case T_Unique:
		case T_Group:
		case T_Agg:
		case T_Hash:
		case T_HashJoin:
		case T_MergeJoin:
		case T_NestLoop:
			break;
		default:
			return false;
	}
	/* what a correlated subquery does is not looked at; others are run once */
	return plan->subPlan == NIL &&
		!contain_volatile_functions((Node *) plan->plan->targetlist) &&
		!contain_volatile_functions((Node *) plan->plan->qual) &&
		!contain_volatile_functions(other_expressions(plan)) &&
		!planstate_tree_walker(plan, is_not_repeatable, NULL);
}
