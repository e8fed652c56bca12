/*-------------------------------------------------------------------------
 *
 * limit_path.c
 *		LIMIT over a path that has a node of ours.
 *
 * Below LIMIT core charges a path that share of its cost which the share of its rows is
 * that are needed.  A path that would take hours for all of its rows can be the cheapest
 * then, if enough rows are expected of it, as nested loops over whole tables in the
 * order that ORDER BY asks for: it is if there are as many rows as expected.  How many
 * groups there are is often known badly.  ANALYZE has found 400,000 different values of
 * 15 million in a column whose equal values lie side by side, so 146 rows for each of
 * them where there are 4; and so many times longer takes what was to be found soon.
 *
 * With a path that takes little for all its rows nothing can go wrong.  So if core's choice
 * takes very much longer for all, paths are compared as if more rows were needed, and if one
 * with a node of ours is the cheapest then, it is put into the list, and the costs of the
 * others become what they were compared by.  Otherwise, as with a scan of an index, which
 * takes a few times as long, and where our nodes have no part, the choice is core's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/pathnode.h"

#include "compat.h"
#include "plan/plan_info.h"

/* What is very much longer. */
#define RISK		100

/*
 * As if so many times the rows were needed.  A path that is expected to find the first
 * rows within a thousandth of what another takes for all remains the cheaper one.
 */
#define CAUTION		10

static bool has_own_node(const Path *path);

static bool
any_has_own_node(List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		if (has_own_node(lfirst(lc)))
			return true;
	}
	return false;
}

/* Is one of a path's nodes ours?  Of nodes that have paths below them, the usual ones. */
static bool
has_own_node(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_CustomPath:
			return gpurhh_agg_path(path) != NULL || gpurhh_join_path(path) != NULL ||
				any_has_own_node(((const CustomPath *) path)->custom_paths);
		case T_ProjectionPath:
			return has_own_node(((const ProjectionPath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return has_own_node(((const SortPath *) path)->subpath);
		case T_GroupPath:
			return has_own_node(((const GroupPath *) path)->subpath);
		case T_AggPath:
			return has_own_node(((const AggPath *) path)->subpath);
		case T_WindowAggPath:
			return has_own_node(((const WindowAggPath *) path)->subpath);
		case T_GatherPath:
			return has_own_node(((const GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return has_own_node(((const GatherMergePath *) path)->subpath);
		case T_MaterialPath:
			return has_own_node(((const MaterialPath *) path)->subpath);
		case T_SubqueryScanPath:
			return has_own_node(((const SubqueryScanPath *) path)->subpath);
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			return has_own_node(((const JoinPath *) path)->outerjoinpath) ||
				has_own_node(((const JoinPath *) path)->innerjoinpath);
		case T_AppendPath:
			return any_has_own_node(((const AppendPath *) path)->subpaths);
		default:
			return false;
	}
}

/* So many times as many rows; what is not known is negative, or 0. */
static int64
cautious_rows(int64 rows)
{
	return rows > 0 ? Min(rows, PG_INT64_MAX / CAUTION) * CAUTION : rows;
}

/* Is a path of this cost cheaper than another one, or the first?  Disabled nodes count first. */
static bool
is_cheaper(const Path *path, Cost cost, const Path *other, Cost other_cost)
{
	int			more = other == NULL ? -1 :
		gpurhh_disabled_nodes(path) - gpurhh_disabled_nodes(other);

	return more < 0 || (more == 0 && cost < other_cost);
}

/* What a path costs if CAUTION times the rows are needed. */
static Cost
cautious_cost(const Path *path, const FinalPathExtraData *extra)
{
	double		rows = path->rows;
	Cost		startup = path->startup_cost;
	Cost		total = path->total_cost;

	adjust_limit_rows_costs(&rows, &startup, &total, cautious_rows(extra->offset_est),
							cautious_rows(extra->count_est));
	return total;
}

/*
 * To be called when core has made the paths of a query: input_rel's are those below LIMIT,
 * final_rel's those with it.
 */
void
gpurhh_add_limit_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *final_rel,
					  const FinalPathExtraData *extra)
{
	const Query *parse = root->parse;
	Path	   *best = NULL;
	Cost		best_cost = 0;
	List	   *paths = final_rel->pathlist;
	Path	   *chosen = NULL;
	ListCell   *lc;

	if (!extra->limit_needed || parse->rowMarks != NIL || parse->commandType != CMD_SELECT)
		return;
	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		/* something else may be on top, of another extension for instance */
		if (!IsA(path, LimitPath))
			return;
		if (is_cheaper(path, path->total_cost, chosen, chosen ? chosen->total_cost : 0))
			chosen = path;
	}
	if (chosen == NULL)
		return;
	foreach(lc, input_rel->pathlist)
	{
		Path	   *path = lfirst(lc);
		Cost		cost = cautious_cost(path, extra);

		if (path->param_info == NULL && is_cheaper(path, cost, best, best_cost))
		{
			best = path;
			best_cost = cost;
		}
	}
	if (best == NULL || ((LimitPath *) chosen)->subpath->total_cost < best->total_cost * RISK ||
		!has_own_node(best))
		return;

	final_rel->pathlist = NIL;
	add_path(final_rel, (Path *)
			 create_limit_path(root, final_rel, best, parse->limitOffset, parse->limitCount,
							   parse->limitOption, extra->offset_est, extra->count_est));
	foreach(lc, paths)
	{
		LimitPath  *path = lfirst(lc);

		if (path->subpath != best)
		{
			path->path.total_cost = cautious_cost(path->subpath, extra);
			add_path(final_rel, &path->path);
		}
	}
}
