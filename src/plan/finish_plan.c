/*-------------------------------------------------------------------------
 *
 * finish_plan.c
 *		What is left to be done when a plan with GpuHashAggs is finished.
 *
 * In a finished plan core's own nodes refer to the columns that their children return,
 * by number.  A CustomScan's scan tuple keeps the expressions instead.  Some of these
 * EXPLAIN cannot show: columns of a UNION's Append, which are Vars of no table, and
 * window functions, for which it looks for the WindowAgg (from version 18 on).  Those
 * are made to refer to the child as well.  That is done only when the plan is
 * finished, because until then core looks for the expression to find out which column
 * of the scan tuple it is.
 *
 * EXPLAIN also has to be told how many disabled nodes the child counts (compat.h).
 *
 * Where grouping columns of GROUPING SETS are equal expressions, the expression does
 * not tell which column of the scan tuple is meant.  Then the grouping references tell
 * it, as they do in core's set_upper_references() for core's nodes.
 *
 * Plans are noted as they are made (gpurhh_note_plan, gpurhh_note_keys), and the
 * planner's hook finishes those of its query at the end.  Where the query can be written in
 * several ways (eager_agg.c), all of them have been planned by then, and the best is returned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"

#include "compat.h"
#include "plan/plan_info.h"

static planner_hook_type prev_planner_hook = NULL;

/* A column of a scan tuple that is to be the child's. */
typedef struct ChildColumn
{
	CustomScan *cscan;
	int			number;			/* in the scan tuple, from 0 */
	AttrNumber	child_attribute;
} ChildColumn;

/* A column of a target list that is a key. */
typedef struct KeyColumn
{
	CustomScan *cscan;
	int			target;			/* in the target list, from 0 */
	int			number;			/* in the scan tuple, from 0 */
} KeyColumn;

/* Of the query that is being planned. */
static List *planned_nodes = NIL;	/* of CustomScan */
static List *child_columns = NIL;
static List *key_columns = NIL;

/* Can EXPLAIN show it only as something that a child returns? */
static bool
is_of_child(Node *expr)
{
	return (IsA(expr, Var) && ((Var *) expr)->varno == 0) ||
		contain_window_function(expr);
}

/*
 * Takes note of a new plan, and of the columns of its scan tuple that are to refer to the
 * child.  Core has not set any references in the plan yet.
 */
void
gpurhh_note_plan(CustomScan *cscan, Plan *child)
{
	ListCell   *lc;

	planned_nodes = lappend(planned_nodes, cscan);
	foreach(lc, cscan->custom_scan_tlist)
	{
		Expr	   *expr = lfirst_node(TargetEntry, lc)->expr;
		TargetEntry *from;
		ChildColumn *column;

		if (!is_of_child((Node *) expr))
			continue;
		from = tlist_member(expr, child->targetlist);
		if (from == NULL)
			elog(ERROR, "column of GpuHashAgg not found in what is below it");
		column = palloc(sizeof(ChildColumn));
		column->cscan = cscan;
		column->number = foreach_current_index(lc);
		column->child_attribute = from->resno;
		child_columns = lappend(child_columns, column);
	}
}

/*
 * Takes note of a new plan whose keys are told apart by their grouping references: finds
 * the column of the scan tuple for each key in the target list.
 *
 * This is done now, and not when the plan is finished, because the grouping references
 * in the target list may be overwritten until then: where core leaves out the scan of a
 * subquery, it puts those of the outer query there.  Nothing else of the target list
 * changes, but for references to columns, which core sets later.
 */
void
gpurhh_note_keys(CustomScan *cscan)
{
	ListCell   *lc,
			   *lc_key;

	foreach(lc, cscan->scan.plan.targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		foreach(lc_key, cscan->custom_scan_tlist)
		{
			TargetEntry *key = lfirst_node(TargetEntry, lc_key);
			KeyColumn  *column;

			if (key->ressortgroupref == 0 ||
				key->ressortgroupref != tle->ressortgroupref)
				continue;
			if (!equal(key->expr, tle->expr))
				elog(ERROR, "grouping reference %u is not the key's",
					 key->ressortgroupref);
			column = palloc(sizeof(KeyColumn));
			column->cscan = cscan;
			column->target = foreach_current_index(lc);
			column->number = foreach_current_index(lc_key);
			key_columns = lappend(key_columns, column);
		}
	}
}

static Expr *
make_reference(int varno, int number, Expr *expr)
{
	return (Expr *) makeVar(varno, number + 1, exprType((Node *) expr),
							exprTypmod((Node *) expr),
							exprCollation((Node *) expr), 0);
}

/* Makes each key that was noted in a target list refer to its column of the scan tuple. */
static void
finish_keys(void)
{
	ListCell   *lc;

	foreach(lc, key_columns)
	{
		KeyColumn  *column = lfirst(lc);
		TargetEntry *tle = list_nth_node(TargetEntry,
										 column->cscan->scan.plan.targetlist,
										 column->target);
		List	   *scan_tlist = column->cscan->custom_scan_tlist;
		Expr	   *key = list_nth_node(TargetEntry, scan_tlist, column->number)->expr;
		Var		   *found = (Var *) tle->expr;

		/*
		 * Core has set no reference, because it has thrown this plan away: for an
		 * EXISTS it makes two plans and keeps one of them.
		 */
		if (equal(found, key))
			continue;

		/* the column that core has found is this key's, or that of an equal key */
		if (!IsA(found, Var) || found->varno != INDEX_VAR ||
			!equal(list_nth_node(TargetEntry, scan_tlist, found->varattno - 1)->expr,
				   key))
			elog(ERROR, "column of GpuHashAgg is not the key that it was");
		tle->expr = make_reference(INDEX_VAR, column->number, key);
	}
}

/* Makes the columns that were noted in scan tuples refer to the child's columns. */
static void
finish_plans(void)
{
	ListCell   *lc;

	foreach(lc, child_columns)
	{
		ChildColumn *column = lfirst(lc);
		TargetEntry *tle = list_nth_node(TargetEntry,
										 column->cscan->custom_scan_tlist,
										 column->number);

		tle->expr = make_reference(OUTER_VAR, column->child_attribute - 1,
								   tle->expr);
	}
	foreach(lc, planned_nodes)
		gpurhh_count_disabled_child(lfirst_node(CustomScan, lc));
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	if (prev_planner_hook)
		return prev_planner_hook(parse, query_string, cursor_options, params);
	return standard_planner(parse, query_string, cursor_options, params);
}

static PlannedStmt *
finishing_planner(Query *parse, const char *query_string, int cursor_options,
				  ParamListInfo params)
{
	/* planning may call functions that plan queries of their own */
	List	   *outer_nodes = planned_nodes;
	List	   *outer_columns = child_columns;
	List	   *outer_keys = key_columns;
	GpuPipelines *outer_pipelines = gpurhh_begin_pipelines();
	GpuRefusalCollector *outer_collector = gpurhh_begin_collecting();
	PlannedStmt *result;

	planned_nodes = NIL;
	child_columns = NIL;
	key_columns = NIL;
	PG_TRY();
	{
		List	   *others = gpurhh_group_early(parse);
		ListCell   *lc;

		result = plan_query(parse, query_string, cursor_options, params);
		foreach(lc, others)
		{
			PlannedStmt *other = plan_query(lfirst_node(Query, lc), query_string,
											cursor_options, params);

			if (gpurhh_plan_is_better(other->planTree, result->planTree))
				result = other;
		}
		finish_keys();
		finish_plans();
	}
	PG_FINALLY();
	{
		planned_nodes = outer_nodes;
		child_columns = outer_columns;
		key_columns = outer_keys;
		gpurhh_end_collecting(outer_collector);
		gpurhh_end_pipelines(outer_pipelines);
	}
	PG_END_TRY();
	return result;
}

void
gpurhh_init_finish_plan(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = finishing_planner;
}
