/*-------------------------------------------------------------------------
 *
 * join_way.c
 *		One join more on a way: is it possible, what does it cost, and the path of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

#include "compat.h"
#include "plan/join_path.h"
#include "settings.h"

/* What it takes to build the rows that this path gives, which is of the relation inner. */
static void
fill_build(BuildSide *build, GpuPipeline *inner, Path *path)
{
	const Way  *pages = inner->rel->reloptkind == RELOPT_BASEREL ? inner->serial : NULL;
	const Way  *rows = inner->serial_rows;

	build->path = path;
	build->n_passes = gpurhh_build_passes(path);
	build->map_cost = gpurhh_build_cost(path->rows);
	build->probe_factor = gpurhh_probe_factor(path->rows);
	build->by_participants = false;
	build->shares = gpurhh_shared_path(path) != NULL;
	if (build->shares)
		build->make_cost = path->startup_cost + gpurhh_joins_undercharge(path);
	if (pages != NULL && pages->probe == path)
	{
		build->feed_cost = pages->cost;
		build->by_participants = path->pathtype == T_SeqScan &&
			path->parent->pages >= GPURHH_SHARED_BUILD_PAGES;
		/* what a device reads takes it as long whoever hands it over */
		build->pages_cost = pages->device_share * pages->cost +
			(1 - pages->device_share) * seq_page_cost * path->parent->pages;
	}
	/* what makes the rows is core's, and may have joins in it */
	else if (rows != NULL && rows->probe == path)
		build->feed_cost = rows->cost;
	else
		build->feed_cost = gpurhh_real_cost(path) + gpurhh_feed_rows_cost(path->rows);
}

/*
 * The same, remembered; parallel: in parallel plans, where another path may be the one that gives
 * the rows.  NULL: no path does.
 */
const BuildSide *
gpurhh_look_at_build(GpuPipeline *inner, Path *path, bool parallel)
{
	BuildSide  *build = parallel ? &inner->parallel_build : &inner->build;

	if (path == NULL)
		return NULL;
	if (build->path != path)
		fill_build(build, inner, path);
	return build;
}

/*
 * What it costs to feed a build side, in each pass, and to put it into its map.  In a parallel
 * plan all participants read a large table together; all else is asked for its rows by one.
 */
static Cost
build_cost(const BuildSide *build, int n_workers)
{
	Cost		cost = build->feed_cost;

	/* participants feed what each makes of it */
	if (n_workers > 0 && build->shares)
		return build->make_cost + build->map_cost +
			gpurhh_feed_rows_cost(build->path->rows / gpurhh_parallel_divisor(n_workers));
	/* core charges each participant of a parallel scan for all pages, however many read them */
	if (n_workers > 0 && build->by_participants)
		cost = build->pages_cost +
			Max(cost - build->pages_cost, 0) / gpurhh_parallel_divisor(n_workers);
	return build->n_passes * cost + build->map_cost;
}

/*
 * What it costs to look at the rows with the same keys, of which further conditions say whether
 * they match, for so many rows of the probe side.  bad: they may be an error, so all are looked at.
 */
static Cost
matches_cost(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, List *keys,
			 double probe_rows, JoinType jointype, bool bad, const JoinPathExtraData *extra)
{
	double		candidates;		/* of a row */

	if ((jointype == JOIN_SEMI || jointype == JOIN_ANTI) && !bad)
		candidates = extra->semifactors.outer_match_frac * extra->semifactors.match_count;
	else
	{
		/* of an inner join, as what core knows may be of a semijoin the other way around */
		SpecialJoinInfo info = {
			.type = T_SpecialJoinInfo,
			.min_lefthand = outerrel->relids,
			.min_righthand = innerrel->relids,
			.syn_lefthand = outerrel->relids,
			.syn_righthand = innerrel->relids,
			.jointype = JOIN_INNER
		};

		candidates = innerrel->rows * clauselist_selectivity(root, keys, 0, JOIN_INNER, &info);
	}
	return gpurhh_condition_cost(probe_rows * Max(candidates, 1.0));
}

/* Can the probe side's rows be tested by these keys where they are read? See join_filter.c. */
static bool
tests_keys(const Way *outer, const RelOptInfo *innerrel, List *keys)
{
	Relids		relids = bms_union(outer->probe_relids, innerrel->relids);
	ListCell   *lc;

	foreach(lc, keys)
	{
		if (!bms_is_subset(lfirst_node(RestrictInfo, lc)->clause_relids, relids))
			return false;
	}
	return true;
}

/*
 * What part of all rows that come this way a participant is charged for.  Those of pages that a device reads never leave it;
 * its threads are charged as so many workers would be.
 */
double
gpurhh_rows_share(const Way *way)
{
	return way->device_share / gpurhh_parallel_divisor(way->device_threads) +
		(1 - way->device_share) / gpurhh_parallel_divisor(way->n_workers);
}

/*
 * If joining the inner part to the rows of the outer one that come this way is possible and
 * cheaper than *known, *known becomes that.
 */
void
gpurhh_consider_join(GpuPipelines *level, JoinParts *parts, Way *outer, const BuildSide *build,
					 Way **known)
{
	PlannerInfo *root = level->root;
	RelOptInfo *joinrel = parts->joinrel;
	RelOptInfo *outerrel = parts->outerrel;
	RelOptInfo *innerrel = parts->innerrel;
	const JoinType jointype = parts->jointype;
	const JoinPathExtraData *extra = parts->extra;
	Path	   *inner;
	double		probe_rows = outerrel->rows;
	Cost		probe_cost;
	Cost		made;			/* to make the build side */
	Cost		saving = 0;		/* by a filter of the keys */
	bool		shares;
	bool		bad;			/* what a match of this join is may be an error */
	List	   *keys;
	List	   *matches;
	Cost		cost;
	Way		   *way;

	if (outer == NULL || outer->n_joins == RHH_MAX_JOINS || build == NULL)
		return;
	/* nothing is saved of what rows cost that are asked for */
	if (!outer->by_pages && *known != NULL && outer->cost >= (*known)->cost)
		return;
	inner = build->path;
	if (inner->param_info != NULL)
	{
		gpurhh_refuse_joins(root, joinrel, OBSTACLE_CLAUSE, "%s depends on the rows of another side",
							gpurhh_relation_names(root, innerrel->relids));
		return;
	}
	bad = gpurhh_has_bad_match(level, parts);
	/* what gives rows may be something that cannot begin again in all participants */
	if (outer->n_workers > 0 && (bad || gpurhh_returns_unmatched(jointype)) && !outer->by_pages)
		return;
	/* nor is it known what participants have made of rows that they share when one begins anew */
	shares = outer->shares || build->shares;
	if (shares && (bad || gpurhh_begins_anew(outer) || gpurhh_returns_unmatched(jointype)))
		return;
	probe_rows *= gpurhh_rows_share(outer);
	if (outer->by_pages && !gpurhh_begins_anew(outer) &&
		(jointype == JOIN_INNER || jointype == JOIN_SEMI || jointype == JOIN_RIGHT))
		saving = gpurhh_key_filter_saving(inner->rows, build->probe_factor, probe_rows,
										  probe_rows * joinrel->rows / outerrel->rows);
	probe_cost = gpurhh_row_cost * probe_rows * build->probe_factor - saving;
	/* what comes before is done once more in each further pass */
	probe_cost += (build->n_passes - 1) * (outer->probe_cost + probe_cost);
	cost = outer->cost + probe_cost;
	if (*known != NULL && cost >= (*known)->cost)
		return;
	made = build_cost(build, outer->n_workers);
	cost += made;
	if (*known != NULL && cost >= (*known)->cost)
		return;
	if (!gpurhh_has_keys(level, parts, outer->hidden))
		return;
	keys = parts->keys;
	matches = parts->matches;
	if (saving > 0 && !tests_keys(outer, innerrel, keys))
	{
		probe_cost += saving;
		cost += saving;
		if (*known != NULL && cost >= (*known)->cost)
			return;
	}
	if (matches != NIL)
	{
		Cost		more = matches_cost(root, outerrel, innerrel, keys, probe_rows, jointype,
										bad, extra);

		probe_cost += more;
		cost += more;
		if (*known != NULL && cost >= (*known)->cost)
			return;
	}
	/* rows that do not meet conditions are dropped behind all joins, and would be matches */
	if (gpurhh_returns_unmatched(jointype) && outer->has_conditions)
	{
		gpurhh_refuse_joins(root, joinrel, OBSTACLE_CLAUSE,
							"a condition comes before a join that returns rows without a match");
		return;
	}
	if (*known == NULL)
		*known = palloc0(sizeof(Way));
	way = *known;
	way->path = NULL;
	way->cost = cost;
	way->builds_cost = outer->builds_cost + made;
	way->probe_cost = outer->probe_cost + probe_cost;
	way->n_workers = outer->n_workers;
	way->n_joins = outer->n_joins + 1;
	way->n_keys = outer->n_keys + list_length(keys);
	way->hidden = outer->hidden;
	if (jointype == JOIN_SEMI || jointype == JOIN_ANTI)
		way->hidden = bms_union(outer->hidden, innerrel->relids);
	else if (!gpurhh_has_outer_columns(jointype))
		way->hidden = outerrel->relids;
	way->probe_relids = outer->probe_relids;
	way->by_pages = outer->by_pages;
	way->device_share = outer->device_share;
	way->device_threads = outer->device_threads;
	way->shares = shares;
	way->outerrel = outerrel;
	way->outer = outer;
	way->inner = inner;
	way->jointype = jointype;
	way->clauses = extra->restrictlist;
	way->keys = keys;
	way->matches = matches;
	way->has_conditions = outer->has_conditions ||
		list_length(keys) + list_length(matches) < list_length(extra->restrictlist);
	way->unmatched = outer->unmatched || gpurhh_returns_unmatched(jointype);
	way->may_be_bad = outer->may_be_bad || bad;
	way->in_parts = outer->in_parts || build->n_passes > 1;
	way->inner_unique = extra->inner_unique;
	way->semifactors = extra->semifactors;
}

Path *
gpurhh_make_way_path(PlannerInfo *root, RelOptInfo *rel, Way *way)
{
	JoinCostWorkspace workspace;
	JoinPathExtraData extra = {0};
	Path	   *outer;
	HashPath   *path;

	if (way->probe != NULL)
		return way->probe;
	if (way->path != NULL)
		return way->path;
	outer = gpurhh_make_way_path(root, way->outerrel, way->outer);
	/* the rest of it is for paths with parameters */
	extra.restrictlist = way->clauses;
	extra.inner_unique = way->inner_unique;
	extra.semifactors = way->semifactors;
	initial_cost_hashjoin(root, &workspace, way->jointype, way->keys, outer, way->inner,
						  &extra, false);
	path = create_hashjoin_path(root, rel, way->jointype, &workspace, &extra, outer,
								way->inner, false, way->clauses, NULL, way->keys);
	path->jpath.path.total_cost = way->cost;
	path->jpath.path.startup_cost = Min(path->jpath.path.startup_cost, way->cost);
	way->path = &path->jpath.path;
	return way->path;
}
