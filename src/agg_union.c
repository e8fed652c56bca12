/*-------------------------------------------------------------------------
 *
 * agg_union.c
 *		UNION, without ALL: the parts appended are grouped by all columns.
 *
 * Core plans it apart from all other groupings.  The planner's hook gets no
 * input, so that is taken from what core has made: a hashed Agg, or Unique over
 * a Sort, of the Append of all parts, or of a Gather of it.
 *
 * The columns of such an Append are of no table: Vars with varno 0, as which
 * core's own nodes find them in each other.  Only a CustomScan has its
 * expressions kept in the finished plan, where EXPLAIN would look for table 0.  So
 * once a plan is finished, the scan tuple of each of ours refers to the child.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/typcache.h"

static planner_hook_type prev_planner_hook = NULL;

/* CustomScans over a UNION's Append, of the query that is being planned. */
static List *union_plans = NIL;

/* The Append whose duplicates core's path removes, or a Gather of it; or NULL. */
static Path *
input_of(Path *path)
{
	if (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy == AGG_HASHED)
		path = ((AggPath *) path)->subpath;
	else if (IsA(path, UpperUniquePath))
	{
		path = ((UpperUniquePath *) path)->subpath;
		if (!IsA(path, SortPath))
			return NULL;
		path = ((SortPath *) path)->subpath;
	}
	else
		return NULL;
	if (IsA(path, AppendPath) ||
		(IsA(path, GatherPath) && IsA(((GatherPath *) path)->subpath, AppendPath)))
		return path;
	return NULL;
}

/* Are these the columns of an Append, all and in order? */
static bool
is_append_target(PathTarget *target)
{
	ListCell   *lc;

	foreach(lc, target->exprs)
	{
		Var		   *var = lfirst(lc);

		if (!IsA(var, Var) || var->varno != 0 ||
			var->varattno != foreach_current_index(lc) + 1)
			return false;
	}
	return target->exprs != NIL;
}

/*
 * Describes the UNION that output_rel is of; false: it is of none.  What there
 * is besides - parts by themselves, UNION ALL, INTERSECT, EXCEPT, a UNION made
 * ready for one of these - has other paths, or other columns.
 */
bool
gpurhh_find_union(PlanInfo *info, RelOptInfo *output_rel)
{
	ListCell   *lc;

	if (output_rel->reloptkind != RELOPT_UPPER_REL)
		return false;
	foreach(lc, output_rel->pathlist)
	{
		Path	   *path = lfirst(lc);
		Path	   *input = input_of(path);

		if (input == NULL || !is_append_target(path->pathtarget) ||
			!equal(path->pathtarget->exprs, input->pathtarget->exprs))
			continue;
		info->target = path->pathtarget;
		if (info->input == NULL || input->total_cost < info->input->total_cost)
			info->input = input;
		if (IsA(input, GatherPath))
			info->partial_input = ((GatherPath *) input)->subpath;
	}
	if (info->input == NULL)
		return false;
	info->input_rel = output_rel;

	/* as the parser has it: by the types' own equality */
	foreach(lc, info->target->exprs)
	{
		SortGroupClause *clause = makeNode(SortGroupClause);

		clause->tleSortGroupRef = foreach_current_index(lc) + 1;
		clause->eqop = lookup_type_cache(exprType(lfirst(lc)),
										 TYPECACHE_EQ_OPR)->eq_opr;
		info->clause = lappend(info->clause, clause);
	}
	info->full_clause = info->clause;
	return true;
}

/* A plan has been made; if it is of a UNION its scan tuple is not finished yet. */
void
gpurhh_note_union_plan(CustomScan *cscan)
{
	List	   *tlist = cscan->custom_scan_tlist;
	Var		   *first = tlist == NIL ? NULL :
		(Var *) linitial_node(TargetEntry, tlist)->expr;

	if (first != NULL && IsA(first, Var) && first->varno == 0)
		union_plans = lappend(union_plans, cscan);
}

/* Lets the scan tuples refer to what the children return. */
static void
finish_union_plans(void)
{
	ListCell   *lc,
			   *lc_entry;

	foreach(lc, union_plans)
	{
		List	   *tlist = lfirst_node(CustomScan, lc)->custom_scan_tlist;

		foreach(lc_entry, tlist)
		{
			Var		   *var = (Var *) lfirst_node(TargetEntry, lc_entry)->expr;

			var = copyObject(castNode(Var, var));
			var->varno = OUTER_VAR;
			lfirst_node(TargetEntry, lc_entry)->expr = (Expr *) var;
		}
	}
}

static PlannedStmt *
union_planner(Query *parse, const char *query_string, int cursor_options,
			  ParamListInfo params)
{
	/* planning may evaluate functions that plan queries of their own */
	List	   *outer_plans = union_plans;
	PlannedStmt *result;

	union_plans = NIL;
	PG_TRY();
	{
		if (prev_planner_hook)
			result = prev_planner_hook(parse, query_string, cursor_options,
									   params);
		else
			result = standard_planner(parse, query_string, cursor_options,
									  params);
		finish_union_plans();
	}
	PG_FINALLY();
	{
		union_plans = outer_plans;
	}
	PG_END_TRY();
	return result;
}

void
gpurhh_init_agg_union(void)
{
	prev_planner_hook = planner_hook;
	planner_hook = union_planner;
}
