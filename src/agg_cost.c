/*-------------------------------------------------------------------------
 *
 * agg_cost.c
 *		GpuHashAgg's paths, what they cost, and the plan of the one chosen.
 *
 * What the node is to do has been found out by agg_path.c (PlanInfo).  Here
 * a projection to the child columns is put on the cheapest input, the node on
 * top of it, and both are compared with core's paths (compete).
 *
 * custom_private of path and plan is a list indexed by GpuAggPrivateIndex; the
 * path's has custom_scan_tlist and the HAVING qual behind it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include <math.h>

#include "nodes/extensible.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

/* In the path's custom_private only, behind what the plan gets. */
#define GPUAGG_PATH_SCAN_TLIST	(GPUAGG_PRIVATE_LAST + 1)
#define GPUAGG_PATH_HAVING		(GPUAGG_PRIVATE_LAST + 2)

/*
 * To put a group of the first level into one of the second, in units of what
 * it costs to return one.
 */
#define REGROUP_FACTOR			2.5

static Plan *plan_agg_path(PlannerInfo *root, RelOptInfo *rel,
						   CustomPath *best_path, List *tlist, List *clauses,
						   List *custom_plans);

static const CustomPathMethods agg_path_methods = {
	.CustomName = "GpuHashAgg",
	.PlanCustomPath = plan_agg_path,
};

/*
 * What core's plan would cost beyond what core charges for it.
 *
 * Core charges a hashed aggregate cpu_operator_cost for each input row and
 * column, about 0.005 a row.  Measured (docs/benchmarks.md) it is 0.035 while
 * the groups fit caches and grows to 0.27 at 10 million groups, in units of
 * which a sequential scan's row has 0.0144.  Sorting and scanning are charged
 * fairly enough.
 */
static Cost
core_undercharge(Path *path)
{
	if (path == NULL)
		return 0;
	switch (nodeTag(path))
	{
		case T_AggPath:
			{
				AggPath    *agg = (AggPath *) path;
				Cost		below = core_undercharge(agg->subpath);
				double		groups = Max(agg->numGroups, 1.0);
				Cost		per_row = 0.03;

				if (agg->aggstrategy != AGG_HASHED)
					return below;
				if (groups > 1.0e4)
					per_row += 0.07 * (log10(groups) - 4.0);
				return below + per_row * agg->subpath->rows;
			}
		case T_GatherPath:
			return core_undercharge(((GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return core_undercharge(((GatherMergePath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return core_undercharge(((SortPath *) path)->subpath);
		case T_ProjectionPath:
			return core_undercharge(((ProjectionPath *) path)->subpath);
		default:
			return 0;
	}
}

/* Of all participants in a parallel plan. */
typedef struct GroupEstimate
{
	double		first_level;	/* groups that the device makes */
	double		regrouped;		/* groups that the second level takes */
	double		emitted;
} GroupEstimate;

static void
estimate_groups(PlanInfo *info, RelOptInfo *input_rel, GroupEstimate *groups)
{
	PlannerInfo *root = info->root;
	Query	   *parse = root->parse;
	double		rows = input_rel->cheapest_total_path->rows;
	List	   *keys = info->keys;
	ListCell   *lc;

	/* as core has it: of what has been grouped nothing is known */
	if (info->stage == UPPERREL_DISTINCT &&
		(parse->groupClause != NIL || parse->groupingSets != NIL ||
		 parse->hasAggs || root->hasHavingQual))
		groups->emitted = rows;
	else
		groups->emitted = estimate_num_groups(root, keys, rows, NULL, NULL);
	groups->first_level = groups->emitted;
	groups->regrouped = 0;
	if (info->distinct_arg != NULL)
	{
		keys = lappend(list_copy(keys), info->distinct_arg);
		groups->first_level = estimate_num_groups(root, keys, rows, NULL, NULL);
		groups->regrouped = groups->first_level;
	}
	foreach(lc, info->sets)
	{
		List	   *set = lfirst(lc);
		List	   *set_keys = NIL;
		ListCell   *lc_key;

		if (foreach_current_index(lc) == 0 &&
			list_length(set) == list_length(info->keys))
			continue;
		foreach(lc_key, set)
			set_keys = lappend(set_keys, list_nth(info->keys, lfirst_int(lc_key)));
		groups->emitted += estimate_num_groups(root, set_keys, rows, NULL, NULL);
		groups->regrouped += groups->first_level;
	}
}

/*
 * The node on top of an input path.  Cost by measured rates: the feed and the
 * table run at the same time, so a row costs what the slower of the two takes.
 * n_groups: that this process emits, of all participants' in a parallel plan.
 */
static CustomPath *
make_agg_path(PlanInfo *info, RelOptInfo *input_rel, RelOptInfo *output_rel,
			  List *having, Path *input, const GroupEstimate *groups,
			  double n_groups, bool leader_emits)
{
	PlannerInfo *root = info->root;
	CustomPath *cpath = makeNode(CustomPath);
	Path	   *subpath;

	subpath = (Path *) create_projection_path(root, input_rel, input,
											  info->child_target);
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = output_rel;
	cpath->path.pathtarget = info->target;
	cpath->path.param_info = NULL;
	/*
	 * As a whole in a worker it would be a second user of the device beside
	 * those that share one table.
	 */
	cpath->path.parallel_aware = input->parallel_workers > 0;
	cpath->path.parallel_safe = cpath->path.parallel_aware;
	cpath->path.parallel_workers = input->parallel_workers;
	cpath->path.rows = n_groups;
	if (having != NIL)
		cpath->path.rows = clamp_row_est(n_groups *
										 clauselist_selectivity(root, having, 0,
																JOIN_INNER, NULL));
	cpath->path.pathkeys = NIL;
	cpath->path.startup_cost = subpath->total_cost + gpurhh_setup_cost +
		subpath->rows * gpurhh_row_cost + groups->regrouped * REGROUP_FACTOR * gpurhh_group_cost;
	cpath->path.total_cost = cpath->path.startup_cost +
		n_groups * gpurhh_group_cost;
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(subpath);
	cpath->custom_private =
		list_make5(info->columns, info->key_columns, info->states,
				   info->outputs,
				   /* with a point, or a worker would read an Integer */
				   makeFloat(psprintf("%.1f", groups->first_level)));
	cpath->custom_private = lappend(cpath->custom_private,
									makeInteger(leader_emits ? 1 : 0));
	cpath->custom_private = lappend(cpath->custom_private,
									makeInteger(info->n_shown_keys));
	cpath->custom_private = lappend(cpath->custom_private, info->sets);
	cpath->custom_private = lappend(cpath->custom_private,
									info->distinct_ops);
	cpath->custom_private = lappend(cpath->custom_private, info->scan_tlist);
	cpath->custom_private = lappend(cpath->custom_private, having);
	cpath->methods = &agg_path_methods;
	return cpath;
}

/*
 * Several participants feed, the leader emits: rows do not pass through tuple
 * queues, so none is charged for that.
 */
static Path *
make_gather_path(PlanInfo *info, RelOptInfo *output_rel, CustomPath *cpath)
{
	double		rows = cpath->path.rows;
	GatherPath *gather;

	gather = create_gather_path(info->root, output_rel, &cpath->path,
								info->target, NULL, &rows);
	gather->path.startup_cost = cpath->path.startup_cost + parallel_setup_cost;
	gather->path.total_cost = cpath->path.total_cost + parallel_setup_cost;
	/* a leader that does not take part has to be sent the rows */
	if (!parallel_leader_participation)
		gather->path.total_cost += parallel_tuple_cost * rows;
	return &gather->path;
}

/*
 * How many times the work of one process is done in the same time: as core
 * has it, the leader has less time to help the more workers it has.
 */
static double
parallel_divisor(int n_workers)
{
	double		leader = parallel_leader_participation ?
		1.0 - 0.3 * n_workers : 0;

	return n_workers + Max(leader, 0);
}

/*
 * Adds a path that stands for the whole grouping, if it is any good.
 *
 * It competes with core's as add_path() would have it, but with core's
 * hashing charged what it takes, see core_undercharge(): false, if one of
 * core's is cheaper; those that are worse in every respect are dropped, as
 * their own cost would let them win.
 */
static bool
compete(Path *ours, List *core_paths, RelOptInfo *output_rel,
		const char **refusal)
{
	Cost		total = ours->total_cost;
	ListCell   *lc;

	foreach(lc, core_paths)
	{
		Path	   *path = lfirst(lc);
		Cost		core_total = path->total_cost + core_undercharge(path);

		if (core_total <= total)
		{
			*refusal = psprintf("its estimated cost of %.0f is not below the %.0f of PostgreSQL's own plan",
								total, core_total);
			return false;
		}
	}
	foreach(lc, core_paths)
	{
		Path	   *path = lfirst(lc);

		/* sorted output, or an early first row, may be worth the cost above */
		if (path->pathkeys == NIL &&
			path->startup_cost + core_undercharge(path) >= ours->startup_cost)
			output_rel->pathlist = list_delete_ptr(output_rel->pathlist, path);
		else
		{
			/* what is within 1 % is the same to add_path(), and sorted better */
			total = Min(total, path->total_cost * 0.98);
		}
	}
	ours->startup_cost = Min(ours->startup_cost, total);
	ours->total_cost = total;
	return true;
}

/*
 * Adds the paths: one process does it all; several feed and the leader emits;
 * and several feed and emit, for whatever may run in parallel above.  NULL, or
 * why there is none for the whole of it.
 */
const char *
gpurhh_add_agg_paths(PlanInfo *info, RelOptInfo *input_rel,
					 RelOptInfo *output_rel, List *having)
{
	List	   *core_paths = list_copy(output_rel->pathlist);
	Path	   *input = input_rel->cheapest_total_path;
	Path	   *best;
	GroupEstimate groups;
	const char *refusal = NULL;

	set_pathtarget_cost_width(info->root, info->child_target);
	estimate_groups(info, input_rel, &groups);
	best = &make_agg_path(info, input_rel, output_rel, having, input,
						  &groups, groups.emitted, false)->path;
	if (output_rel->consider_parallel && input_rel->partial_pathlist != NIL)
	{
		Path	   *partial = linitial(input_rel->partial_pathlist);
		double		divisor = parallel_divisor(partial->parallel_workers);
		Path	   *gather;

		if (!info->one_emitter)
			add_partial_path(output_rel,
							 &make_agg_path(info, input_rel, output_rel, having,
											partial, &groups,
											ceil(groups.emitted / divisor),
											false)->path);
		gather = make_gather_path(info, output_rel,
								  make_agg_path(info, input_rel, output_rel,
												having, partial, &groups,
												groups.emitted, true));
		/* only the better one, as it tells which of core's are of no use */
		if (gather->total_cost < best->total_cost)
			best = gather;
	}
	if (compete(best, core_paths, output_rel, &refusal))
		add_path(output_rel, best);
	return refusal;
}

/*
 * The conditions of HAVING in the order in which core evaluates them, cheap
 * ones first: it decides which of two errors is raised, or none.
 */
static List *
order_having(PlannerInfo *root, List *having)
{
	List	   *ordered = NIL;
	ListCell   *lc;

	foreach(lc, having)
	{
		Node	   *clause = lfirst(lc);
		QualCost	cost;
		int			at;

		cost_qual_eval_node(&cost, clause, root);
		for (at = list_length(ordered); at > 0; at--)
		{
			QualCost	other;

			cost_qual_eval_node(&other, list_nth(ordered, at - 1), root);
			if (cost.per_tuple >= other.per_tuple)
				break;
		}
		ordered = list_insert_nth(ordered, at, clause);
	}
	return ordered;
}

static Plan *
plan_agg_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
			  List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	List	   *private = best_path->custom_private;

	if (gpurhh_refusal_collector != NULL)
	{
		ListCell   *lc;

		foreach(lc, gpurhh_refusal_collector->refusals)
		{
			GpuRefusal *refusal = lfirst(lc);

			if (refusal->path_columns == linitial(private))
				refusal->planned = true;
		}
	}

	/* tlist is NIL when a projection goes on top; the scan tuple suffices */
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual =
		order_having(root, list_nth(private, GPUAGG_PATH_HAVING));
	cscan->scan.scanrelid = 0;
	cscan->flags = best_path->flags;
	cscan->custom_scan_tlist = list_nth(private, GPUAGG_PATH_SCAN_TLIST);
	cscan->custom_private = list_copy_head(private, GPUAGG_PATH_SCAN_TLIST);
	cscan->methods = &gpurhh_agg_scan_methods;
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	return &cscan->scan.plan;
}
