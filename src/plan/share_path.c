/*-------------------------------------------------------------------------
 *
 * share_path.c
 *		Paths and plans of GpuShareRows, which gives each participant of a parallel plan all
 *		rows of a partial path (exec/share_rows.c).
 *
 * A build side of a pipeline in a parallel plan is complete in each participant.  Without this
 * node that is only what one participant can make alone.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"

#include "compat.h"
#include "plan/plan_info.h"
#include "settings.h"

/*
 * To write a row to a file takes as long as to feed some twenty rows of pages, and to read it takes
 * half of that.
 */
#define WRITE_FACTOR	20.0
#define READ_FACTOR		10.0

static Plan *plan_share_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
							 List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods share_path_methods = {
	.CustomName = GPUSHARE_NODE_NAME,
	.PlanCustomPath = plan_share_path,
};

/* The partial path that is below such a node; NULL: it is another path. */
const Path *
gpurhh_shared_path(const Path *path)
{
	if (!IsA(path, CustomPath) ||
		((const CustomPath *) path)->methods != &share_path_methods)
		return NULL;
	return linitial(((const CustomPath *) path)->custom_paths);
}

/*
 * Makes such a path over a partial path of rel; NULL: it cannot be.  Its startup cost is what one
 * participant takes for its part, its total cost what it takes to have all rows.
 */
Path *
gpurhh_make_share_path(RelOptInfo *rel, Path *partial)
{
	CustomPath *cpath;
	ListCell   *lc;

	if (partial->param_info != NULL || !partial->parallel_safe)
		return NULL;
	/* the columns of the node are found by them in the finished plan */
	foreach(lc, rel->reltarget->exprs)
	{
		if (!IsA(lfirst(lc), Var))
			return NULL;
	}
	cpath = makeNode(CustomPath);
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = rel;
	cpath->path.pathtarget = rel->reltarget;
	gpurhh_inherit_disabled(&cpath->path, partial);
	cpath->path.parallel_aware = true;
	cpath->path.parallel_safe = true;
	cpath->path.rows = rel->rows;
	cpath->path.startup_cost = partial->total_cost +
		gpurhh_row_cost * WRITE_FACTOR * partial->rows;
	cpath->path.total_cost = cpath->path.startup_cost +
		gpurhh_row_cost * READ_FACTOR * rel->rows;
	cpath->custom_paths = list_make1(partial);
	cpath->methods = &share_path_methods;
	return &cpath->path;
}

/* Makes the plan of such a path; custom_plans has its child's, which returns the same columns. */
static Plan *
plan_share_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
				List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		cscan->custom_scan_tlist =
			lappend(cscan->custom_scan_tlist,
					makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1, NULL, false));
	}
	cscan->scan.plan.targetlist = tlist;
	cscan->methods = GetCustomScanMethods(GPUSHARE_NODE_NAME, false);
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	return &cscan->scan.plan;
}
