/*-------------------------------------------------------------------------
 *
 * repeatable.c
 *		Does a plan return the same rows each time it is read?
 *
 * Joins whose build side has no room are done in several passes, each of which reads both sides
 * again (join_rounds.c).  A row that is in one pass and not in another would be joined with a part
 * of its matches.  So only those nodes are known here which return what they returned before,
 * if their inputs do and no expression is volatile.  LIMIT is not among them: which rows it lets
 * pass may depend on the order in which a scan returns them.
 *
 * Below a parallel plan, scans and appends give out pieces of what is to be read.  They know in
 * shared memory which have been given out, and so have to begin again there as well.  Core does
 * that before it starts workers once more.  Here it is done while they wait for each other
 * (join_rounds.c), for those nodes of which no other process keeps anything that would be wrong
 * then: not for bitmap scans, which share the bitmap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "executor/nodeAppend.h"
#include "executor/nodeIndexonlyscan.h"
#include "executor/nodeIndexscan.h"
#include "executor/nodeSeqscan.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

#include "exec/join_input.h"

static bool
is_not_repeatable(PlanState *plan, void *arg)
{
	return !gpurhh_is_repeatable(plan);
}

/* Can what the participants of a parallel plan share of this node begin again while they run? */
static bool
begins_again(const PlanState *plan)
{
	switch (nodeTag(plan->plan))
	{
		case T_SeqScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_Append:
			return true;
		default:
			return false;
	}
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

/*
 * Does it?  All participants of a parallel plan together return the rows of a partial plan, once
 * what they share has begun again.
 */
bool
gpurhh_is_repeatable(PlanState *plan)
{
	if (plan->plan->parallel_aware && !begins_again(plan))
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

/* ---------- parallel plans ---------- */

static bool
cannot_begin_again(PlanState *plan, void *arg)
{
	return (plan->plan->parallel_aware && !begins_again(plan)) ||
		planstate_tree_walker(plan, cannot_begin_again, NULL);
}

/* Can gpurhh_begin_again() be called for the plan? */
bool
gpurhh_can_begin_again(PlanState *plan)
{
	return !cannot_begin_again(plan, NULL);
}

static bool
begin_again(PlanState *plan, void *arg)
{
	if (plan->plan->parallel_aware)
	{
		/* none of these looks at the context */
		switch (nodeTag(plan->plan))
		{
			case T_SeqScan:
				ExecSeqScanReInitializeDSM((SeqScanState *) plan, NULL);
				break;
			case T_IndexScan:
				ExecIndexScanReInitializeDSM((IndexScanState *) plan, NULL);
				break;
			case T_IndexOnlyScan:
				ExecIndexOnlyScanReInitializeDSM((IndexOnlyScanState *) plan, NULL);
				break;
			case T_Append:
				ExecAppendReInitializeDSM((AppendState *) plan, NULL);
				break;
			default:
				elog(ERROR, "a plan cannot begin again: node %d", (int) nodeTag(plan->plan));
		}
	}
	return planstate_tree_walker(plan, begin_again, NULL);
}

/*
 * In a parallel plan, while no participant reads: sees to it that a partial plan returns all its
 * rows once more.  Each participant that has read it has to rescan it, too.
 */
void
gpurhh_begin_again(PlanState *plan)
{
	(void) begin_again(plan, NULL);
}
