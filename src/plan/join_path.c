/*-------------------------------------------------------------------------
 *
 * join_path.c
 *		The hooks in core's search for the order of joins, and the pipelines that come of it.
 *
 * A pipeline reads rows, the probe side, and joins them with one build side after the
 * other, all of it on the device.  The probe side is a table whose pages are read, or
 * whatever path of core's is the cheapest for a relation, which is asked for its rows.  The
 * pipeline's path is a left-deep chain of core's HashPaths over that.  It is a valid path as
 * it stands: the executor takes the plan over where it can, and asks core's HashJoin for
 * rows where it cannot.  Above it is GpuHashAgg, so that only groups leave the device, or
 * GpuHashJoin, which returns the rows.
 *
 * Core's planner makes join relations of two, three and more relations, and asks a hook
 * for paths each time that it has found two parts to make one of.  Core would drop a
 * pipeline's path there, because it keeps what returns rows cheapest.  So for each join
 * relation the cheapest pipeline is remembered (join_memory.c), as a few pointers and its cost
 * (remember_join), and a path for GpuHashAgg is made only for the one relation that is
 * grouped at last (gpurhh_pipeline_path).  Where a relation's rows would come to more
 * than all that core has to do for them, nothing else happens.  Otherwise GpuHashJoin over
 * the pipeline joins core's paths for the relation (gpurhh_update_nodes).  Each path that core
 * has more of a relation makes it consider more joins of that.  So that happens only where all
 * tables have been joined (search_joins), or where core may have to join the rows; a pipeline
 * that has the rows for a build side makes such a path by itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "compat.h"
#include "plan/join_path.h"
#include "settings.h"

static set_join_pathlist_hook_type prev_join_pathlist_hook = NULL;
static join_search_hook_type prev_join_search_hook = NULL;

/* The path by which the rows of a build side are made. */
static Path *
find_inner(const GpuPipelines *level, GpuPipeline *inner)
{
	RelOptInfo *rel = inner->rel;
	const Way  *pages = rel->reloptkind == RELOPT_BASEREL ? inner->serial : NULL;

	/* core takes several processes for a scan that one process has a device do */
	if (pages != NULL && pages->device_share > 0 &&
		pages->cost < gpurhh_real_cost(rel->cheapest_total_path) + gpurhh_feed_rows_cost(rel->rows))
		return pages->probe;
	if (rel->reloptkind != RELOPT_JOINREL || level->core_joins)
		return rel->cheapest_total_path;
	/* all its paths are known now */
	if (!inner->knows_node && inner->serial != NULL)
		inner->node = gpurhh_make_join_path(level->root, inner, inner->serial, rel->pathlist);
	inner->knows_node = true;
	return inner->node != NULL ? inner->node : rel->cheapest_total_path;
}

/*
 * The path by which all participants of a parallel plan make the rows of a build side together;
 * NULL: there is none.  A table's pages need no such path.
 */
static Path *
find_shared(const GpuPipelines *level, GpuPipeline *inner)
{
	RelOptInfo *rel = inner->rel;
	Path	   *partial = NULL;

	if (inner->knows_shared)
		return inner->shared;
	inner->knows_shared = true;
	if (!rel->consider_parallel ||
		(rel->reloptkind == RELOPT_BASEREL && rel->rtekind != RTE_SUBQUERY))
		return NULL;
	if (inner->partial != NULL && !level->core_joins)
		partial = gpurhh_make_join_path(level->root, inner, inner->partial,
										rel->partial_pathlist);
	if (partial == NULL && rel->partial_pathlist != NIL)
		partial = linitial(rel->partial_pathlist);
	if (partial != NULL)
		inner->shared = gpurhh_make_share_path(rel, partial);
	return inner->shared;
}

/* The path by which the rows of a build side are made in a parallel plan; NULL: none does. */
static Path *
find_parallel_inner(const GpuPipelines *level, GpuPipeline *inner, Path *path)
{
	Path	   *shared = find_shared(level, inner);

	if (!path->parallel_safe)
		path = get_cheapest_parallel_safe_total_inner(inner->rel->pathlist);
	if (path == NULL || (shared != NULL && gpurhh_real_cost(shared) < gpurhh_real_cost(path)))
		path = shared;
	return path;
}

/*
 * Would a way that builds the rows of a join relation cost no less than the one that is known,
 * whatever the probe side is and whoever makes these rows?  This spares the work of finding that
 * out.
 */
static bool
is_hopeless(GpuPipeline *inner, const Way *known, bool partial)
{
	Cost		least;

	if (known == NULL || inner->rel->reloptkind != RELOPT_JOINREL)
		return false;
	gpurhh_find_rows(inner);
	if (inner->serial_rows == NULL)
		return false;
	least = inner->serial_rows->cost;
	if (inner->serial != NULL)
		least = Min(least, gpurhh_node_cost(inner->rel, inner->serial).total);
	if (partial && inner->partial_rows != NULL)
		least = Min(least, inner->partial_rows->cost);
	if (partial && inner->partial != NULL)
		least = Min(least, gpurhh_node_cost(inner->rel, inner->partial).total);
	return least >= known->cost;
}

/* Can rows of these two parts be joined by a device?  If it is cheaper, remembers how. */
static void
consider_parts(GpuPipelines *level, JoinParts *parts)
{
	RelOptInfo *joinrel = parts->joinrel;
	RelOptInfo *outerrel = parts->outerrel;
	RelOptInfo *innerrel = parts->innerrel;
	const JoinType jointype = parts->jointype;
	GpuPipeline *outer;
	GpuPipeline *inner;
	GpuPipeline *pipeline;
	const BuildSide *build;
	Path	   *path;
	Way		  **known;

	if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
		jointype != JOIN_ANTI && !gpurhh_returns_unmatched(jointype))
		return;
	/* the other way around it is cheaper, see join_cost.c */
	if ((jointype == JOIN_INNER || jointype == JOIN_RIGHT || !gpurhh_has_outer_columns(jointype)) &&
		innerrel->rows > outerrel->rows * GPURHH_BUILD_RATIO)
	{
		gpurhh_refuse_joins(level->root, joinrel, OBSTACLE_KIND, "the probe side is too small");
		return;
	}
	outer = gpurhh_pipeline_of(level, outerrel);
	inner = gpurhh_pipeline_of(level, innerrel);
	pipeline = gpurhh_remembered(level, joinrel, true);
	gpurhh_find_rows(outer);
	path = innerrel->cheapest_total_path;
	if (!is_hopeless(inner, pipeline->serial, false))
	{
		path = find_inner(level, inner);
		build = gpurhh_look_at_build(inner, path, false);
		gpurhh_consider_join(level, parts, outer->serial, build, &pipeline->serial);
		gpurhh_consider_join(level, parts, outer->serial_rows, build, &pipeline->serial);
	}

	if (!joinrel->consider_parallel ||
		(outer->partial == NULL && outer->partial_anew == NULL &&
		 outer->partial_rows == NULL))
		return;
	known = gpurhh_returns_unmatched(jointype) || gpurhh_has_bad_match(level, parts) ?
		&pipeline->partial_anew : &pipeline->partial;
	if (is_hopeless(inner, *known, true))
		return;
	path = find_parallel_inner(level, inner, path);
	build = gpurhh_look_at_build(inner, path, true);
	gpurhh_consider_join(level, parts, outer->partial, build, known);
	gpurhh_consider_join(level, parts, outer->partial_rows, build, known);
	if (outer->partial_anew != NULL)
		gpurhh_consider_join(level, parts, outer->partial_anew, build, &pipeline->partial_anew);
}

/*
 * The hook: core has made the paths of joinrel from these two parts.  It comes here
 * thousands of times for a query of many tables, so what is cheap to ask is asked first.
 */
static void
remember_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	JoinParts	parts = {
		.joinrel = joinrel,
		.outerrel = outerrel,
		.innerrel = innerrel,
		.jointype = jointype,
		.extra = extra
	};
	GpuPipelines *level;
	GpuPipeline *pipeline;

	if (prev_join_pathlist_hook)
		prev_join_pathlist_hook(root, joinrel, outerrel, innerrel, jointype, extra);

	if (joinrel->reloptkind != RELOPT_JOINREL)
		return;
	level = gpurhh_joins_of_level(root);
	if (level == NULL)
		return;
	if (!bms_is_empty(joinrel->lateral_relids))
	{
		gpurhh_refuse_joins(root, joinrel, OBSTACLE_KIND, "they depend on the rows of another side");
		return;
	}
	/* where core is done before a device is set up, nothing else needs to be known */
	if (joinrel->pathlist != NIL &&
		((Path *) linitial(joinrel->pathlist))->total_cost < gpurhh_setup_cost)
	{
		gpurhh_refuse_joins(root, joinrel, OBSTACLE_KIND,
							"the estimated cost of %.0f of PostgreSQL's own plan is below gpurhh.setup_cost",
							((Path *) linitial(joinrel->pathlist))->total_cost);
		return;
	}
	if (joinrel->pathlist != NIL && level->possible_share < 1.0 &&
		((Path *) linitial(joinrel->pathlist))->total_cost *
		gpurhh_possible_share(root, joinrel->relids) < gpurhh_setup_cost)
	{
		gpurhh_refuse_joins(root, joinrel, OBSTACLE_KIND, GPURHH_TOO_FEW_ROWS);
		return;
	}
	if (!level->knows_joins)
		gpurhh_look_at_joins(level);
	if (level->runs_volatile)
	{
		gpurhh_refuse_joins(root, joinrel, OBSTACLE_KIND, "a volatile function is run for their input");
		return;
	}
	consider_parts(level, &parts);
	if (!level->core_joins)
		return;
	pipeline = gpurhh_remembered(level, joinrel, false);
	if (pipeline != NULL)
		gpurhh_update_nodes(root, pipeline);
}

/*
 * What the members of a full join make, and lists beyond join_collapse_limit, core searches by themselves before the
 * rest, and then it has made paths that gather partial ones.  Of these one more partial path may free some.  So those go first,
 * and are made anew.  Returns what is left.
 */
static List *
drop_gathers(List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
	{
		if (IsA(lfirst(lc), GatherPath) || IsA(lfirst(lc), GatherMergePath))
			paths = foreach_delete_current(paths, lc);
	}
	return paths;
}

/*
 * The hook around the search for the order of joins, which is done as without it.  Then
 * all paths are known of the relation that has all tables, and GpuHashJoin over its
 * pipeline may be one of them.
 */
static RelOptInfo *
search_joins(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	RelOptInfo *rel;
	GpuPipeline *pipeline;

	if (prev_join_search_hook)
		rel = prev_join_search_hook(root, levels_needed, initial_rels);
	else if (enable_geqo && levels_needed >= geqo_threshold)
		rel = geqo(root, levels_needed, initial_rels);
	else
		rel = standard_join_search(root, levels_needed, initial_rels);
	pipeline = gpurhh_find_pipeline(root, rel);
	if (pipeline != NULL)
	{
		const bool	has_gathers = !bms_equal(rel->relids, gpurhh_all_relids(root));

		if (has_gathers)
			rel->pathlist = drop_gathers(rel->pathlist);
		gpurhh_update_nodes(root, pipeline);
		if (has_gathers)
			generate_useful_gather_paths(root, rel, false);
		set_cheapest(rel);
	}
	return rel;
}

/* ---------- for the grouping ---------- */

/* The cheaper way for a grouping in a parallel plan, or NULL. */
static Way *
cheapest_partial(const GpuPipeline *pipeline)
{
	Way		   *anew = pipeline->partial_anew;

	if (pipeline->partial == NULL ||
		(anew != NULL && anew->cost < pipeline->partial->cost))
		return anew;
	return pipeline->partial;
}

/* The pipeline that is remembered of a relation; NULL: there is none. */
GpuPipeline *
gpurhh_find_pipeline(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipelines *level = gpurhh_joins_of_level(root);
	GpuPipeline *pipeline;

	if (level == NULL || rel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(rel))
		return NULL;
	pipeline = gpurhh_remembered(level, rel, false);
	return pipeline && (pipeline->serial || cheapest_partial(pipeline)) ? pipeline : NULL;
}

/*
 * The path of the pipeline below a grouping that has been planned, with its real cost;
 * partial: for a parallel plan.  NULL: there is none, or the device cannot make what the
 * grouping needs; then *why says why.
 */
Path *
gpurhh_pipeline_path(PlanInfo *info, bool partial, const char **why)
{
	GpuPipeline *pipeline = info->pipeline;
	Way		   *way = partial ? cheapest_partial(pipeline) : pipeline->serial;

	if (way == NULL)
		return NULL;
	*why = gpurhh_columns_problem(info, way);
	if (*why != NULL)
		return NULL;
	return gpurhh_make_way_path(info->root, pipeline->rel, way);
}

/* How many joins that path has, which a device does. */
int
gpurhh_pipeline_joins(const PlanInfo *info, bool partial)
{
	return partial ? cheapest_partial(info->pipeline)->n_joins : info->pipeline->serial->n_joins;
}

/* What part of the rows that core has a participant make in that path it is charged for. */
double
gpurhh_pipeline_rows_share(const PlanInfo *info, bool partial)
{
	const Way  *way = partial ? cheapest_partial(info->pipeline) : info->pipeline->serial;

	return gpurhh_rows_share(way) * gpurhh_parallel_divisor(way->n_workers);
}

/*
 * Notes, for whoever collects refusals, why no device does the joins below a grouping that was
 * given a path, should that become a plan without them.
 */
void
gpurhh_note_unjoined(PlanInfo *info)
{
	if (info->pipeline != NULL)
		gpurhh_refuse_joins(info->root, info->pipeline->rel, OBSTACLE_GROUPING, "%s",
							info->unjoined != NULL ? info->unjoined :
							"another plan has the lower cost for the query as a whole");
}

void
gpurhh_init_join_path(void)
{
	prev_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = remember_join;
	prev_join_search_hook = join_search_hook;
	join_search_hook = search_joins;
}
