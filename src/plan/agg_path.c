/*-------------------------------------------------------------------------
 *
 * agg_path.c
 *		The planner's hook, GpuHashAgg's paths, and the plan of the one chosen.
 *
 * A grouping is a GROUP BY, aggregates without one, or a SELECT DISTINCT or UNION,
 * which is a GROUP BY of all columns.  The planner's hook is called once core has made
 * its own paths for a grouping.  It
 *
 * 		1. finds out what is grouped (find_grouping);
 * 		2. asks whether the node can do it, and how (grouping.c).  What cannot be
 * 		   done exactly is refused, with a reason;
 * 		3. puts a projection to the columns that are fed on top of the cheapest
 * 		   input path, and the node on top of that (make_agg_path).  Where the input
 * 		   is a join that a device can do, the better one is chosen of core's join
 * 		   and the device's (join_path.c);
 * 		4. brings the costs to the scale of core's (agg_cost.c) and hands the paths
 * 		   to add_path(), which decides;
 * 		5. tells whoever asked why the node is not used (refusals.c).
 *
 * If one of the paths is chosen, the planner calls back for the plan (plan_agg_path).
 * The CustomScan's scan tuple (custom_scan_tlist) is [grouping columns, aggregates,
 * determined columns, GROUPING()s].  HAVING is its qual, and core's own projection
 * computes its target list from the scan tuple.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "executor/nodeHash.h"
#include "nodes/extensible.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"

#include "compat.h"
#include "plan/plan_info.h"
#include "settings.h"

static create_upper_paths_hook_type prev_upper_paths_hook = NULL;

static Plan *plan_agg_path(PlannerInfo *root, RelOptInfo *rel,
						   CustomPath *best_path, List *tlist, List *clauses,
						   List *custom_plans);

static const CustomPathMethods agg_path_methods = {
	.CustomName = GPUAGG_NODE_NAME,
	.PlanCustomPath = plan_agg_path,
};

/* ---------- paths ---------- */

/* What a path carries that is one of the node's; else NULL. */
const GpuAggPath *
gpurhh_agg_path(const Path *path)
{
	return IsA(path, CustomPath) &&
		((const CustomPath *) path)->methods == &agg_path_methods ?
		linitial(((const CustomPath *) path)->custom_private) : NULL;
}

/* What a path of the node carries. */
static List *
make_private(PlanInfo *info, List *having, Path *input,
			 const GroupEstimate *groups, bool leader_emits)
{
	GpuAggPath *private = gpurhh_make(GpuAggPath);
	GpuAggPlan *plan = gpurhh_make(GpuAggPlan);

	*plan = *info->plan;
	plan->first_level_groups = groups->first_level;
	plan->second_level_groups = groups->second_level;
	plan->third_level_groups = groups->third_level;
	plan->leader_emits = leader_emits;
	if (info->joined)
		plan->n_joins = gpurhh_pipeline_joins(info, input == info->partial_input);
	plan->key_filters = gpurhh_enable_key_filter;
	private->plan = plan;
	private->scan_tlist = info->scan_tlist;
	private->having = having;
	private->grouping = info->grouping;
	return list_make1(private);
}

/*
 * Makes a path of the node on top of an input path, with its real cost.
 *
 * groups: the estimates, of all participants of a parallel plan together.
 * n_groups: how many groups this process returns.
 */
static CustomPath *
make_agg_path(PlanInfo *info, RelOptInfo *output_rel,
			  List *having, Path *input, const GroupEstimate *groups,
			  double n_groups, bool leader_emits)
{
	PlannerInfo *root = info->root;
	CustomPath *cpath = makeNode(CustomPath);
	Path	   *subpath;

	subpath = (Path *) create_projection_path(root, info->input_rel, input,
											  info->child_target);
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = output_rel;
	cpath->path.pathtarget = info->target;
	cpath->path.param_info = NULL;
	gpurhh_inherit_disabled(&cpath->path, subpath);

	/*
	 * In a parallel plan the participants feed one map.  A node that a worker runs
	 * as a whole would have a map of its own beside that.
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
	gpurhh_cost_agg_path(info, &cpath->path, (ProjectionPath *) subpath, groups,
						 n_groups);
	/* the target list has to stay as it is where its entries tell keys apart */
	cpath->flags = info->told_by_reference ? 0 : CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(subpath);
	cpath->custom_private = make_private(info, having, input, groups, leader_emits);
	cpath->methods = &agg_path_methods;
	return cpath;
}

/*
 * Puts a Gather on top of a path of which the leader alone returns groups, while
 * all participants feed.  Rows do not pass through tuple queues, so nothing is
 * charged for that.
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
 * Why the strings would take too much memory; NULL if they would not.  The grouping
 * could be done, with strings in temporary files, but not as fast as core does it.
 */
static const char *
memory_refusal(const GroupEstimate *groups)
{
	double		limit = get_hash_memory_limit();

	if (groups->string_bytes > limit)
		return psprintf("strings that may be minima or maxima are estimated to take %.0f kB, more than the %.0f kB of work_mem and hash_mem_multiplier",
						ceil(groups->string_bytes / 1024), limit / 1024);
	if (groups->key_string_bytes > limit)
		return psprintf("strings of grouping columns and DISTINCT arguments are estimated to take %.0f kB, more than the %.0f kB of work_mem and hash_mem_multiplier",
						ceil(groups->key_string_bytes / 1024), limit / 1024);
	return NULL;
}

/* The paths for a grouping over one input. */
typedef struct AggPaths
{
	Path	   *whole;			/* of the whole grouping */
	Path	   *partial;		/* of a participant's part, for whatever may run in
								 * parallel above; may be NULL */
} AggPaths;

/*
 * Makes the paths for a grouping that the node can do.  In the first, one process does
 * all.  In the second, several processes feed and the leader returns the groups; the
 * better one of these two is kept.  In the third, several processes feed and return
 * groups.  One of the two inputs may be NULL.
 */
static AggPaths
make_agg_paths(PlanInfo *info, RelOptInfo *output_rel, List *having,
			   const GroupEstimate *groups)
{
	AggPaths	paths = {NULL, NULL};

	if (info->input != NULL)
		paths.whole = &make_agg_path(info, output_rel, having, info->input, groups,
									 groups->emitted, false)->path;
	/* core takes several processes for a scan that one process has a device do */
	if (info->input != NULL && IsA(info->input, GatherPath) && !info->root->parse->hasTargetSRFs &&
		gpurhh_has_device_pages(info->root, info->input_rel))
	{
		Path	   *scan = create_seqscan_path(info->root, info->input_rel, NULL, 0);
		Path	   *whole = &make_agg_path(info, output_rel, having, scan, groups, groups->emitted,
										   false)->path;

		if (gpurhh_disabled_nodes(whole) <= gpurhh_disabled_nodes(paths.whole) &&
			whole->total_cost < paths.whole->total_cost)
			paths.whole = whole;
	}
	if (output_rel->consider_parallel && info->partial_input != NULL)
	{
		Path	   *input = info->partial_input;
		double		divisor = gpurhh_parallel_divisor(input->parallel_workers);
		Path	   *gather;

		if (!info->one_emitter)
			paths.partial = &make_agg_path(info, output_rel, having, input, groups,
										   ceil(groups->emitted / divisor), false)->path;
		gather = make_gather_path(info, output_rel,
								  make_agg_path(info, output_rel, having, input,
												groups, groups->emitted, true));
		if (paths.whole == NULL || gather->total_cost < paths.whole->total_cost)
			paths.whole = gather;
	}
	return paths;
}

/* What the joins below a path of ours really cost beyond its cost. */
static Cost
joins_undercharge(PlanInfo *info, const Path *path)
{
	return gpurhh_joins_undercharge(IsA(path, GatherPath) ? info->partial_input :
									info->input);
}

/* Looks for inputs in which the device does the joins; false: there are none. */
static bool
find_joined_inputs(PlanInfo *info, RelOptInfo *output_rel)
{
	info->joined = true;
	info->input = gpurhh_pipeline_path(info, false, &info->unjoined);
	info->partial_input = NULL;
	if (output_rel->consider_parallel)
		info->partial_input = gpurhh_pipeline_path(info, true, &info->unjoined);
	return info->input != NULL || info->partial_input != NULL;
}

/*
 * Takes a pipeline for the input of the grouping, if the device can do the joins below
 * and that costs less than *paths, the paths over core's joins.  Then *info and *paths
 * become those of the pipeline.  Otherwise they stay, and info->unjoined says why if
 * there is a reason but the cost.  unplanned is *info as it was before the grouping was
 * planned.
 */
static void
consider_pipeline(PlanInfo *info, const PlanInfo *unplanned, RelOptInfo *output_rel,
				  List *having, const GroupEstimate *groups, AggPaths *paths)
{
	PlanInfo	joined = *info;
	AggPaths	joined_paths;
	GroupEstimate joined_groups = *groups;
	int			disabled;

	if (!find_joined_inputs(&joined, output_rel))
	{
		info->unjoined = joined.unjoined;
		if (!info->counts_expressions && info->plan->choices == NIL)
			return;
		/* over a pipeline some expressions are not needed, and all strings are fed */
		joined = *unplanned;
		joined.joined = true;
		if (!gpurhh_plan_grouping(&joined, having))
			return;
		set_pathtarget_cost_width(joined.root, joined.child_target);
		gpurhh_estimate_groups(&joined, &joined_groups);
		joined.unjoined = memory_refusal(&joined_groups);
		if (joined.unjoined != NULL || !find_joined_inputs(&joined, output_rel))
		{
			info->unjoined = joined.unjoined;
			return;
		}
	}
	joined_paths = make_agg_paths(&joined, output_rel, having, &joined_groups);
	disabled = gpurhh_disabled_nodes(joined_paths.whole) - gpurhh_disabled_nodes(paths->whole);
	/* at the same cost the rows need not leave the device */
	if (disabled > 0 ||
		(disabled == 0 && joined_paths.whole->total_cost >
		 paths->whole->total_cost + joins_undercharge(info, paths->whole)))
		return;
	*info = joined;
	*paths = joined_paths;
}

/*
 * Adds the paths for a grouping that the node can do.  unplanned: *info as it was before
 * that was found out.  Returns NULL, or why there is no path for the whole grouping.
 */
static const char *
add_agg_paths(PlanInfo *info, const PlanInfo *unplanned, RelOptInfo *output_rel,
			  List *having)
{
	AggPaths	paths;
	GroupEstimate groups;
	const char *refusal;

	set_pathtarget_cost_width(info->root, info->child_target);
	gpurhh_estimate_groups(info, &groups);
	refusal = memory_refusal(&groups);
	if (refusal != NULL)
		return refusal;
	paths = make_agg_paths(info, output_rel, having, &groups);
	if (info->pipeline != NULL)
		consider_pipeline(info, unplanned, output_rel, having, &groups, &paths);
	refusal = gpurhh_fit_costs(info, output_rel, paths.whole, paths.partial);
	if (paths.partial != NULL)
		add_partial_path(output_rel, paths.partial);
	add_path(output_rel, paths.whole);
	/* a path that costs more is kept for a LIMIT if its first row comes earlier */
	if (list_member_ptr(output_rel->pathlist, paths.whole))
	{
		gpurhh_note_unjoined(info);
		return NULL;
	}
	if (refusal != NULL && info->unjoined != NULL)
		refusal = psprintf("%s, and no device does the joins because %s", refusal,
						   info->unjoined);
	return refusal;
}

/* ---------- the hook ---------- */

/*
 * Finds out what the query groups at this stage of planning.  Returns false if it
 * groups nothing, or nothing that a node would be made for.
 */
static bool
find_grouping(PlanInfo *info, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	Query	   *parse = info->root->parse;

	if (info->stage == UPPERREL_SETOP)
		return gpurhh_find_union(info, output_rel);

	/* partitions' own groupings are parts of the one reported at the top */
	if (input_rel == NULL || IS_OTHER_REL(input_rel))
		return false;
	info->input_rel = input_rel;
	info->input = input_rel->cheapest_total_path;
	if (input_rel->partial_pathlist != NIL)
		info->partial_input = linitial(input_rel->partial_pathlist);
	switch (info->stage)
	{
		case UPPERREL_GROUP_AGG:
			info->clause = gpurhh_group_clause(info->root);
			info->full_clause = parse->groupClause;
			info->target = output_rel->reltarget;
			/* HAVING alone, or empty sets alone, need no input */
			return parse->groupClause != NIL || parse->hasAggs;
		case UPPERREL_DISTINCT:
			info->clause = gpurhh_distinct_clause(info->root);
			info->full_clause = parse->distinctClause;
			info->target = info->input->pathtarget;
			/* where all columns are constant, core returns the first row */
			return info->clause != NIL;
		default:
			return false;
	}
}

static void
upper_paths_hook(PlannerInfo *root, UpperRelationKind stage,
				 RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	static int	n_groupings = 0;
	PlanInfo	info = {0};
	PlanInfo	unplanned;
	List	   *having = NIL;
	double		share;
	bool		can_do;

	if (prev_upper_paths_hook)
		prev_upper_paths_hook(root, stage, input_rel, output_rel, extra);

	if (stage == UPPERREL_FINAL && gpurhh_collects_refusals())
		gpurhh_report_joins(root);
	if (!enable_gpu_hashagg && !gpurhh_collects_refusals())
		return;
	if (stage == UPPERREL_FINAL && (enable_gpu_hashagg || enable_gpu_hashjoin))
		gpurhh_add_limit_path(root, input_rel, output_rel, extra);
	info.root = root;
	info.grouping = ++n_groupings;
	info.stage = stage;
	info.explain = gpurhh_collects_refusals() ||
		message_level_is_interesting(DEBUG1);
	if (!find_grouping(&info, input_rel, output_rel))
		return;
	info.pipeline = gpurhh_find_pipeline(root, info.input_rel);
	/* somebody who asks for the reason is told the first thing that is in the way */
	share = gpurhh_possible_share(root, NULL);
	if (!info.explain && gpurhh_core_is_cheap(&info, output_rel, share))
		return;
	if (stage == UPPERREL_GROUP_AGG)
		having = (List *) ((GroupPathExtraData *) extra)->havingQual;

	unplanned = info;
	if (stage == UPPERREL_DISTINCT && root->parse->hasDistinctOn)
		can_do = gpurhh_refuse(&info, "DISTINCT ON is not supported");
	else if (share < 1.0 && gpurhh_core_is_cheap(&info, output_rel, share) &&
			 !gpurhh_core_is_cheap(&info, output_rel, 1.0))
		can_do = gpurhh_refuse(&info, GPURHH_TOO_FEW_ROWS);
	else
		can_do = gpurhh_plan_grouping(&info, having);
	if (can_do)
	{
		const char *refusal = add_agg_paths(&info, &unplanned, output_rel, having);

		if (refusal != NULL)
			gpurhh_refuse(&info, "%s", refusal);
	}
	gpurhh_report_refusal(&info);
}

/* ---------- the plan ---------- */

/*
 * Puts the conditions of HAVING into the order in which core evaluates them, cheap
 * ones first.  The order decides which of two errors is raised, or whether any is.
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

/* Makes the plan of a path that was chosen; custom_plans has its child's. */
static Plan *
plan_agg_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
			  List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	const GpuAggPath *private = linitial(best_path->custom_private);

	/* who does not want joins is not told that there are none */
	gpurhh_note_planned(root, private->grouping,
						private->plan->n_joins > 0 || !enable_gpu_hashjoin);

	/* tlist is NIL when a projection goes on top; the scan tuple suffices */
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = order_having(root, private->having);
	cscan->scan.scanrelid = 0;
	cscan->flags = best_path->flags;
	cscan->custom_scan_tlist = private->scan_tlist;
	cscan->custom_private = list_make1(private->plan);
	cscan->methods = GetCustomScanMethods(GPUAGG_NODE_NAME, false);
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	gpurhh_note_plan(cscan, outerPlan(&cscan->scan.plan));
	if ((cscan->flags & CUSTOMPATH_SUPPORT_PROJECTION) == 0)
		gpurhh_note_keys(cscan);
	return &cscan->scan.plan;
}

void
gpurhh_init_agg_path(void)
{
	prev_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths_hook;
}
