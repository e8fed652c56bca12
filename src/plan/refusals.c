/*-------------------------------------------------------------------------
 *
 * refusals.c
 *		What is left to be done when a plan with GpuHashAggs is finished.
 *
 * Core's own nodes refer in a finished plan to what their children return.  A
 * CustomScan's scan tuple keeps the expressions, and some EXPLAIN cannot show
 * from there: columns of a UNION's Append, which are Vars of no table, and window
 * functions, of which it looks for the WindowAgg (from version 18 on).  Those
 * are made to refer to the child too, but only now: before, core finds by the
 * expression which column of the scan tuple it is.
 *
 * That is not enough where grouping columns of GROUPING SETS are equal expressions:
 * then their grouping references tell which column it is, as in
 * set_upper_references().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "tcop/tcopprot.h"

#include "plan/plan_info.h"

GpuRefusalCollector *gpurhh_refusal_collector = NULL;

/* Who asked for the refusals of the query that is planned next, or NULL. */
static GpuRefusalCollector *asking_collector = NULL;

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
static List *child_columns = NIL;
static List *key_columns = NIL;

/* Can EXPLAIN show it only as something that a child returns? */
static bool
is_of_child(Node *expr)
{
	return (IsA(expr, Var) && ((Var *) expr)->varno == 0) ||
		contain_window_function(expr);
}

/* Takes note of a new plan, whose references are not set yet. */
void
gpurhh_note_plan(CustomScan *cscan, Plan *child)
{
	ListCell   *lc;

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
 * The same, where keys are told apart by the grouping references that the scan
 * tuple has.  The target list is final but for references; those may be
 * overwritten with another query's when a subquery's scan is left out.
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

/* Lets target lists refer to the keys' columns of the scan tuples. */
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

		/* core has thrown this plan away: of EXISTS it makes two and keeps one */
		if (equal(found, key))
			continue;

		/* core has found one that is equal */
		if (!IsA(found, Var) || found->varno != INDEX_VAR ||
			!equal(list_nth_node(TargetEntry, scan_tlist, found->varattno - 1)->expr,
				   key))
			elog(ERROR, "column of GpuHashAgg is not the key that it was");
		tle->expr = make_reference(INDEX_VAR, column->number, key);
	}
}

/* Lets the scan tuples refer to what the children return. */
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
}

static PlannedStmt *
finishing_planner(Query *parse, const char *query_string, int cursor_options,
				  ParamListInfo params)
{
	/*
	 * Planning may evaluate functions that plan queries of their own, and keep
	 * those plans: they follow the settings, whoever asks about the query.
	 */
	List	   *outer_columns = child_columns;
	List	   *outer_keys = key_columns;
	GpuRefusalCollector *outer_collector = gpurhh_refusal_collector;
	PlannedStmt *result;

	child_columns = NIL;
	key_columns = NIL;
	gpurhh_refusal_collector = asking_collector;
	asking_collector = NULL;
	PG_TRY();
	{
		if (prev_planner_hook)
			result = prev_planner_hook(parse, query_string, cursor_options,
									   params);
		else
			result = standard_planner(parse, query_string, cursor_options,
									  params);
		finish_keys();
		finish_plans();
	}
	PG_FINALLY();
	{
		child_columns = outer_columns;
		key_columns = outer_keys;
		gpurhh_refusal_collector = outer_collector;
	}
	PG_END_TRY();
	return result;
}

/*
 * Plans a query as if enable_gpu_hashagg were on, and has the collector told
 * what is refused.
 */
PlannedStmt *
gpurhh_plan_and_collect(Query *query, const char *source,
						GpuRefusalCollector *collector)
{
	PlannedStmt *result;

	asking_collector = collector;
	PG_TRY();
	{
		result = pg_plan_query(query, source, CURSOR_OPT_PARALLEL_OK, NULL);
	}
	PG_FINALLY();
	{
		asking_collector = NULL;
	}
	PG_END_TRY();
	return result;
}

void
gpurhh_init_agg_plan(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = finishing_planner;
}
