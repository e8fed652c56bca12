/*-------------------------------------------------------------------------
 *
 * join_node.c
 *		Paths and plans of GpuHashJoin, which returns the rows of joins that a device
 *		does.
 *
 * The joins come with a way (join_path.h), which has the path of core's hash joins that is
 * below the node.  The node returns the same columns as that one does.  No device does anything with
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
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "plan/join_path.h"
#include "settings.h"

/* What a string in a dictionary takes beside its bytes. */
#define STRING_OVERHEAD	32

/* How likely it is that several keys of a join follow from one of them. */
#define DEPENDENT_KEYS_SHARE	0.1

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
 * as rows with other strings are left to core.
 */
static const char *
return_problem(PlannerInfo *root, RelOptInfo *rel)
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
		costs[n].real.startup = path->startup_cost;
		costs[n].real.total = gpurhh_real_cost(path);
		n++;
	}
	return n;
}

/* The path that core would choose of these; NULL: it has none that is not disabled. */
static const Path *
core_path(List *paths)
{
	ListCell   *lc;

	/* they are sorted by cost */
	foreach(lc, paths)
	{
		const Path *path = lfirst(lc);

		if (gpurhh_join_path(path) == NULL && path->param_info == NULL &&
			!gpurhh_is_disabled(path))
			return path;
	}
	return NULL;
}

/*
 * Why a path of the node with this real cost is no better than what core would choose of
 * these paths, and than paths of the node that are among them; NULL: it is.
 */
static const char *
cost_problem(List *paths, Cost cost)
{
	const Path *core = core_path(paths);
	Cost		core_cost;
	ListCell   *lc;

	foreach(lc, paths)
	{
		const GpuJoinPath *node = gpurhh_join_path(lfirst(lc));

		if (node != NULL && cost >= node->real_cost)
			return "";
	}
	if (core == NULL)
		return NULL;
	core_cost = gpurhh_real_cost(core);
	if (cost < core_cost)
		return NULL;
	if (!gpurhh_collects_refusals())
		return "";
	return psprintf("their estimated cost of %.0f is not below the %.0f of PostgreSQL's own plan",
					cost, core_cost);
}

/*
 * Makes a path of the node for a join relation, with what it really costs.  child is the
 * path of core's hash joins that it takes over; n_workers: for a parallel plan, in which each
 * participant returns its part of the rows.
 */
static Path *
make_path(RelOptInfo *rel, Path *child, int n_joins, int n_workers,
		  PathCost cost)
{
	GpuJoinPath *private = gpurhh_make(GpuJoinPath);
	CustomPath *cpath = makeNode(CustomPath);

	private->columns = rel->reltarget->exprs;
	private->n_joins = n_joins;
	private->real_cost = cost.total;
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = rel;
	cpath->path.pathtarget = rel->reltarget;
	gpurhh_inherit_disabled(&cpath->path, child);
	/* so that its participants have shared memory for what they count */
	cpath->path.parallel_aware = n_workers > 0;
	cpath->path.parallel_safe = n_workers > 0;
	cpath->path.parallel_workers = n_workers;
	cpath->path.rows = child->rows;
	cpath->path.startup_cost = cost.startup;
	cpath->path.total_cost = cost.total;
	cpath->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(child);
	cpath->custom_private = list_make1(private);
	cpath->methods = &join_path_methods;
	return &cpath->path;
}

/* Adds such a path to those of its relation, with its cost on the scale of core's, and what it is charged beyond that. */
static void
add_node(RelOptInfo *rel, Path *path, Cost charge)
{
	bool		partial = path->parallel_workers > 0;
	List	   *paths = partial ? rel->partial_pathlist : rel->pathlist;
	CorePathCost *core = palloc(sizeof(CorePathCost) * Max(list_length(paths), 1));
	PathCost	cost = {.startup = path->startup_cost, .total = path->total_cost};
	PathCost	fitted = gpurhh_on_core_scale(cost, core, costs_of_core(paths, core));

	path->startup_cost = fitted.startup;
	path->total_cost = fitted.total + charge;
	if (partial)
		add_partial_path(rel, path);
	else
		add_path(rel, path);
}

/*
 * Core may have found a path that really costs less than those of the node which are among
 * these: takes these away, and returns what is left.  Nothing is above paths of a relation
 * that is not complete.
 */
static List *
drop_paths(List *paths)
{
	const Path *core = core_path(paths);
	Cost		cost;
	ListCell   *lc;

	if (core == NULL)
		return paths;
	cost = gpurhh_real_cost(core);
	foreach(lc, paths)
	{
		const GpuJoinPath *node = gpurhh_join_path(lfirst(lc));

		if (node != NULL && node->real_cost >= cost)
			paths = foreach_delete_current(paths, lc);
	}
	return paths;
}

/* Has the way become cheaper, or core's path, since they were compared last? */
static bool
is_news(Compared *last, const Way *way, List *paths)
{
	const Path *best = core_path(paths);
	Compared	now = {
		.cost = way->cost,
		.best = best,
		.best_cost = best != NULL ? best->total_cost : 0
	};

	if (last->cost == now.cost && last->best == now.best && last->best_cost == now.best_cost)
		return false;
	*last = now;
	return true;
}

/* What GpuHashJoin really costs that returns a relation's rows, which come this way. */
PathCost
gpurhh_node_cost(const RelOptInfo *rel, const Way *way)
{
	const double rows = rel->rows / gpurhh_parallel_divisor(way->n_workers);
	PathCost	cost;

	cost.startup = gpurhh_setup_cost + way->builds_cost;
	cost.total = cost.startup + way->probe_cost +
		gpurhh_return_rows_cost(rows, list_length(rel->reltarget->exprs));
	return cost;
}

/* The least selectivity of these keys, each by itself, as far as core has asked for it. */
static Selectivity
least_selectivity(List *keys)
{
	Selectivity least = 1;
	ListCell   *lc;

	foreach(lc, keys)
	{
		const RestrictInfo *key = lfirst_node(RestrictInfo, lc);

		if (key->norm_selec >= 0)
			least = Min(least, key->norm_selec);
	}
	return least;
}

/*
 * How many rows there may be beyond the estimate.  Core takes several keys for independent of each
 * other, and has no statistics of joins that say they are not.  If all follow from the most
 * selective one, so many more match.
 */
static double
rows_of_dependent_keys(const RelOptInfo *rel, const Way *way)
{
	double		rows = rel->rows;	/* of the join that is looked at */
	double		factor = 1;

	for (; way->outer != NULL; way = way->outer)
	{
		const double outer_rows = way->outerrel->rows;

		/* a row of a semijoin comes once */
		if (list_length(way->keys) > 1 && !way->inner_unique &&
			way->jointype != JOIN_SEMI && way->jointype != JOIN_ANTI &&
			gpurhh_has_outer_columns(way->jointype))
		{
			const Selectivity least = least_selectivity(way->keys);

			if (least < 1)
				factor = Max(factor, outer_rows * way->inner->rows * least / rows);
		}
		rows = outer_rows;
	}
	return rel->rows * (factor - 1);
}

/*
 * What a serial path is charged for its rows being returned by one process, where there may be many
 * more than the estimate: what that would cost, times how likely it is, up to the start of workers.
 * So a parallel plan is chosen that is not much worse if there are few rows, and much better if
 * there are many.
 */
static Cost
unforeseen_rows_cost(const GpuPipeline *pipeline, const Way *way)
{
	if (way->n_workers > 0 || !pipeline->rel->consider_parallel || pipeline->partial == NULL)
		return 0;
	return Min(parallel_setup_cost,
			   DEPENDENT_KEYS_SHARE * cpu_tuple_cost * rows_of_dependent_keys(pipeline->rel, way));
}

/*
 * A path of GpuHashJoin that returns the pipeline's rows, which come this way, with its
 * real cost, if that is less than what these paths of the relation take; else NULL.
 */
Path *
gpurhh_make_join_path(PlannerInfo *root, GpuPipeline *pipeline, Way *way, List *paths)
{
	RelOptInfo *rel = pipeline->rel;
	PathCost	cost = gpurhh_node_cost(rel, way);
	const char *why;

	why = cost_problem(paths, cost.total);
	if (why == NULL && !pipeline->knows_return)
	{
		pipeline->return_problem = return_problem(root, rel);
		pipeline->knows_return = true;
	}
	if (why == NULL)
		why = pipeline->return_problem;
	if (why == NULL)
		why = gpurhh_rows_problem(root, rel, way);
	if (why != NULL)
	{
		gpurhh_refuse_joins(root, rel, OBSTACLE_NODE, "%s", why);
		return NULL;
	}
	gpurhh_refuse_joins(root, rel, OBSTACLE_PLAN,
						"another plan has the lower cost for the query as a whole");
	return make_path(rel, gpurhh_make_way_path(root, rel, way), way->n_joins,
					 way->n_workers, cost);
}

/*
 * Sees to it that the best such path for this way (NULL: none) is among these paths of the
 * relation, or none if what core would choose is better.
 */
static void
update_node(PlannerInfo *root, GpuPipeline *pipeline, Way *way, Compared *last, List **paths)
{
	Path	   *node;

	if (way == NULL || !is_news(last, way, *paths))
		return;
	*paths = drop_paths(*paths);
	node = gpurhh_make_join_path(root, pipeline, way, *paths);
	if (node != NULL)
		add_node(pipeline->rel, node, unforeseen_rows_cost(pipeline, way));
}

/* The same for serial and for partial paths. */
void
gpurhh_update_nodes(PlannerInfo *root, GpuPipeline *pipeline)
{
	RelOptInfo *rel = pipeline->rel;

	update_node(root, pipeline, pipeline->serial, &pipeline->compared[0], &rel->pathlist);
	if (!rel->consider_parallel)
		return;
	update_node(root, pipeline, pipeline->partial, &pipeline->compared[1], &rel->partial_pathlist);
	update_node(root, pipeline, pipeline->partial_anew, &pipeline->compared[2],
				&rel->partial_pathlist);
}

/* Adds a column to the plan, and to what the node returns. */
static void
add_column(GpuJoinPlan *plan, Var *var, List **scan_tlist)
{
	int			number = list_length(plan->columns);
	GpuPlanColumn *column = gpurhh_make(GpuPlanColumn);
	GpuPlanOutput *output = gpurhh_make(GpuPlanOutput);
	GpuColumn	how;
	const char *problem;

	(void) gpurhh_resolve_bytes(var->vartype, &how, &problem);
	column->encoding = how.encoding;
	column->parameter = how.parameter;
	column->attribute = number;
	plan->columns = lappend(plan->columns, column);
	output->kind = GPU_OUTPUT_KEY;
	output->encoding = how.encoding;
	output->parameter = how.parameter;
	output->key = number;
	plan->outputs = lappend(plan->outputs, output);
	*scan_tlist = lappend(*scan_tlist,
						  makeTargetEntry((Expr *) var, number + 1, NULL, false));
}

/* Makes the plan of a path that was chosen; custom_plans has its child's. */
static Plan *
plan_join_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
			   List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	const GpuJoinPath *private = linitial(best_path->custom_private);
	GpuJoinPlan *plan = gpurhh_make(GpuJoinPlan);
	ListCell   *lc;

	plan->n_joins = private->n_joins;
	plan->key_filters = gpurhh_enable_key_filter;
	foreach(lc, private->columns)
		add_column(plan, lfirst_node(Var, lc), &cscan->custom_scan_tlist);
	gpurhh_note_planned(root, 0, true);
	cscan->scan.plan.targetlist = tlist;
	cscan->flags = best_path->flags;
	cscan->custom_private = list_make1(plan);
	cscan->methods = GetCustomScanMethods(GPUJOIN_NODE_NAME, false);
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	gpurhh_note_plan(cscan, outerPlan(&cscan->scan.plan));
	return &cscan->scan.plan;
}
