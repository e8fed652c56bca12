/*-------------------------------------------------------------------------
 *
 * join_node.c
 *		Paths and plans of GpuHashJoin, which returns the rows of joins that a device
 *		does.
 *
 * join_path.c finds the joins, and has the path of core's hash joins that is below the
 * node.  The node returns the same columns as that one does.  No device does anything with
 * a column that is not joined by, so columns of nearly all types can be returned, as bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "executor/nodeHash.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "plan/plan_info.h"

/* What a string in a dictionary takes beside its bytes. */
#define STRING_OVERHEAD	32

static Plan *plan_join_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
							List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods join_path_methods = {
	.CustomName = GPUJOIN_NODE_NAME,
	.PlanCustomPath = plan_join_path,
};

/* What a path of the node carries; NULL: it is another path. */
const GpuJoinPath *
gpurhh_join_path(const Path *path)
{
	if (!IsA(path, CustomPath) ||
		((const CustomPath *) path)->methods != &join_path_methods)
		return NULL;
	return linitial(((const CustomPath *) path)->custom_private);
}

/*
 * The memory that a dictionary takes for the strings of a column, if each is different.
 * Those of up to 15 bytes are in no dictionary.
 */
static double
string_bytes(PlannerInfo *root, Var *var)
{
	RelOptInfo *rel = root->simple_rel_array[var->varno];
	int32		width = rel->attr_widths[var->varattno - rel->min_attr];

	if (width <= 0)
		width = get_typavgwidth(var->vartype, var->vartypmod);
	if (width < GPURHH_STRING_BYTES)
		return 0;
	return rel->rows * (width + STRING_OVERHEAD);
}

/*
 * Why the rows of a join relation cannot be returned; NULL: they can.  Each column has to be
 * of a type that can be carried along, and the strings must be likely to fit the dictionary,
 * as rows with other strings are left to core.  hidden: relations of which no row has a
 * column.
 */
const char *
gpurhh_return_problem(PlannerInfo *root, RelOptInfo *rel, Relids hidden)
{
	List	   *exprs = rel->reltarget->exprs;
	double		bytes = 0;
	double		limit = get_hash_memory_limit();
	ListCell   *lc;

	/* they go through the words of a group, of which each is a key */
	if (exprs == NIL)
		return "no column of them is needed";
	if (list_length(exprs) > RHH_MAX_KEYS)
		return psprintf("more than %d columns are returned", RHH_MAX_KEYS);
	foreach(lc, exprs)
	{
		Var		   *var = lfirst(lc);
		GpuColumn	column;
		const char *problem;

		if (!IsA(var, Var))
			return "an expression is computed below an outer join";
		if (var->varattno <= 0)
			return "system columns and whole rows are not supported";
		if (bms_is_member(var->varno, hidden))
			return "a column is of a side that has none";
		if (!gpurhh_resolve_bytes(var->vartype, &column, &problem))
			return psprintf("column %s has type %s, which %s", gpurhh_clause_text(root, var),
							format_type_be(var->vartype), problem);
		if (gpurhh_is_string(column.encoding))
			bytes += string_bytes(root, var);
	}
	if (bytes > limit)
		return psprintf("strings are estimated to take %.0f kB, more than the %.0f kB of work_mem and hash_mem_multiplier",
						ceil(bytes / 1024), limit / 1024);
	return NULL;
}

/* The columns of the node, all that a relation's paths return. */
static GpuJoinPath *
make_private(RelOptInfo *rel, int n_joins, Cost real_cost)
{
	GpuJoinPath *private = gpurhh_make(GpuJoinPath);
	ListCell   *lc;

	private->plan = gpurhh_make(GpuJoinPlan);
	private->plan->n_joins = n_joins;
	private->real_cost = real_cost;
	foreach(lc, rel->reltarget->exprs)
	{
		int			number = foreach_current_index(lc);
		GpuPlanColumn *column = gpurhh_make(GpuPlanColumn);
		GpuPlanOutput *output = gpurhh_make(GpuPlanOutput);
		GpuColumn	how;
		const char *problem;

		(void) gpurhh_resolve_bytes(exprType(lfirst(lc)), &how, &problem);
		column->encoding = how.encoding;
		column->parameter = how.parameter;
		column->attribute = number;
		private->plan->columns = lappend(private->plan->columns, column);
		output->kind = GPU_OUTPUT_KEY;
		output->encoding = how.encoding;
		output->parameter = how.parameter;
		output->key = number;
		private->plan->outputs = lappend(private->plan->outputs, output);
		private->scan_tlist = lappend(private->scan_tlist,
									  makeTargetEntry(lfirst(lc), number + 1, NULL, false));
	}
	return private;
}

/* The costs of core's paths among these. */
static int
costs_of_core(List *paths, CorePathCost *costs)
{
	int			n = 0;
	ListCell   *lc;

	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);

		if (gpurhh_join_path(path) != NULL || path->param_info != NULL ||
			gpurhh_is_disabled(path))
			continue;
		costs[n].charged.startup = path->startup_cost;
		costs[n].charged.total = path->total_cost;
		costs[n].real = costs[n].charged;
		costs[n].real.total += gpurhh_joins_undercharge(path);
		n++;
	}
	return n;
}

/*
 * Why a path of the node with this real cost is no better than what there is so far of a join
 * relation; NULL: it is.  There may be a path of the node, too, which was brought to the scale
 * of those of core's paths that there were then.
 */
const char *
gpurhh_join_cost_problem(const RelOptInfo *rel, int n_workers, Cost cost)
{
	List	   *paths = n_workers > 0 ? rel->partial_pathlist : rel->pathlist;
	const Path *best = paths != NIL ? linitial(paths) : NULL;
	Cost		best_cost;

	if (best == NULL || gpurhh_is_disabled(best))
		return NULL;
	best_cost = best->total_cost + gpurhh_joins_undercharge(best);
	if (cost < best_cost)
		return NULL;
	if (!gpurhh_collects_refusals())
		return "";
	return psprintf("their estimated cost of %.0f is not below the %.0f of PostgreSQL's own plan",
					cost, best_cost);
}

/*
 * Adds a path of the node to those of a join relation.  child is the path of core's hash
 * joins that it takes over, and cost what it really costs; n_workers: for a parallel plan,
 * in which each participant builds the maps by itself, and returns its part of the rows.
 */
void
gpurhh_add_join_path(PlannerInfo *root, RelOptInfo *rel, Path *child, int n_joins,
					 int n_workers, PathCost cost)
{
	List	   *paths = n_workers > 0 ? rel->partial_pathlist : rel->pathlist;
	CorePathCost *core = palloc(sizeof(CorePathCost) * Max(list_length(paths), 1));
	PathCost	fitted = gpurhh_on_core_scale(cost, core, costs_of_core(paths, core));
	CustomPath *cpath = makeNode(CustomPath);

	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = rel;
	cpath->path.pathtarget = rel->reltarget;
	gpurhh_inherit_disabled(&cpath->path, child);
	/* so that its participants have shared memory for what they count */
	cpath->path.parallel_aware = n_workers > 0;
	cpath->path.parallel_safe = n_workers > 0;
	cpath->path.parallel_workers = n_workers;
	cpath->path.rows = child->rows;
	cpath->path.startup_cost = fitted.startup;
	cpath->path.total_cost = fitted.total;
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(child);
	cpath->custom_private = list_make1(make_private(rel, n_joins, cost.total));
	cpath->methods = &join_path_methods;
	if (n_workers > 0)
		add_partial_path(rel, &cpath->path);
	else
		add_path(rel, &cpath->path);
}

/* Makes the plan of a path that was chosen; custom_plans has its child's. */
static Plan *
plan_join_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
			   List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	const GpuJoinPath *private = linitial(best_path->custom_private);

	gpurhh_note_planned(root, 0);
	cscan->scan.plan.targetlist = tlist;
	cscan->flags = best_path->flags;
	cscan->custom_scan_tlist = private->scan_tlist;
	cscan->custom_private = list_make1(private->plan);
	cscan->methods = GetCustomScanMethods(GPUJOIN_NODE_NAME, false);
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	return &cscan->scan.plan;
}
