/*-------------------------------------------------------------------------
 *
 * agg_union.c
 *		UNION without ALL, which is a grouping of the appended parts by all columns.
 *
 * Core plans a UNION apart from all other groupings.  The planner's hook is not told
 * what the input is, so the input is taken from the paths that core has made.  These
 * are a hashed Agg, or a Unique over a Sort, and below is the Append of all parts or a
 * Gather of that Append.  From version 17 on there may be a Unique over a MergeAppend
 * of the sorted parts and nothing else; then the Append is made here, as core makes it.
 *
 * The columns of such an Append are of no table: Vars with varno 0 (see also
 * refusals.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/typcache.h"

#include "plan/plan_info.h"

/* An Append, in no order, of the parts that a MergeAppend merges. */
static Path *
append_of(PlannerInfo *root, MergeAppendPath *merge)
{
	List	   *parts = NIL;
	ListCell   *lc;

	foreach(lc, merge->subpaths)
		parts = lappend(parts,
						((Path *) lfirst(lc))->parent->cheapest_total_path);
	return (Path *) create_append_path(root, merge->path.parent, parts, NIL,
									   NIL, NULL, 0, false, -1);
}

/* The Append whose duplicates core's path removes, or a Gather of it; or NULL. */
static Path *
input_of(PlannerInfo *root, Path *path)
{
	if (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy == AGG_HASHED)
		path = ((AggPath *) path)->subpath;
	else if (IsA(path, UpperUniquePath))
	{
		path = ((UpperUniquePath *) path)->subpath;
		if (IsA(path, MergeAppendPath))
			return append_of(root, (MergeAppendPath *) path);
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
		Path	   *input = input_of(info->root, path);

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
