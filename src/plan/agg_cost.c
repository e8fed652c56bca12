/*-------------------------------------------------------------------------
 *
 * agg_cost.c
 *		What a grouping costs by GpuHashAgg, and what it really costs by core's paths.
 *
 * Costs are in core's units.  Those of the node are measured.  Core's own charges are
 * measured too, and some are wrong: hashing takes several times what core charges for
 * it, and what DISTINCT in an aggregate costs core does not charge at all
 * (core_undercharge).  Scans and sorts are charged fairly enough, except that a scan
 * that the node reads by pages takes a fraction of what core charges (page_cost.c).
 *
 * add_path() compares costs as they are charged.  So that it decides by what paths
 * really cost, and core's paths can stay in the list as they are, ours are brought to
 * the scale of core's charges: see gpurhh_on_core_scale(), which is the only place
 * where a cost is made other than it was measured.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

#include "batch/batch.h"
#include "compat.h"
#include "plan/plan_info.h"
#include "settings.h"

/*
 * What it costs to put a group of the first level into a group of the second, in
 * units of what it costs to return a group.  Measured on the CPU device with 2 cores,
 * at 1e6 to 4e6 groups of the first level: returning a group takes 30 ns.  To put it
 * into a group of the second level takes a device 6 to 25 ns, and 43 where the second
 * level has as many groups as the first.  It takes the host 110 to 150 ns where it has
 * to choose minima of strings, which no device can compare.  Where a device has refused
 * rows the host makes the level, too.  That cannot be foreseen, and is not in the cost.
 */
#define LEVEL_FACTOR			0.5
#define HOST_LEVEL_FACTOR		4.0

/*
 * The same of groups of another node, if the device is a GPU: with an H200 1e7 of them, and one group of these, take 21 ms
 * out of 5e7 cached rows, and 142 or, by one process, 516 if they are returned
 * (bench/results/2026-11-27-h200-groups-computed.csv).
 */
#define GPU_CHAIN_FACTOR		0.02

/*
 * add_path() takes two costs for equal that differ by less than 1 %.  A cost that
 * is to be less than another one has to be this much of it at most.
 */
#define CLEARLY_LESS			0.98

/*
 * How many processes' work is done in the time that one process takes, where so
 * many workers take part: one's if none does.  As core has it, the more workers there
 * are, the less time has the leader to take part itself.
 */
double
gpurhh_parallel_divisor(int n_workers)
{
	double		leader = parallel_leader_participation ?
		1.0 - 0.3 * n_workers : 0;

	return n_workers == 0 ? 1 : n_workers + Max(leader, 0);
}

/* ---------- what core's paths cost beyond what core charges ---------- */

/*
 * What a hashed aggregate of so many groups costs beyond what core charges.  Core
 * charges cpu_operator_cost for each input row and column, about 0.005 a row.
 * Measured (docs/benchmarks.md) it is 0.035 while the groups fit into caches, and
 * grows to 0.27 at 10 million groups.  A row of a sequential scan has 0.0144 in the
 * same units.
 */
static Cost
hashing_undercharge(double groups, double rows)
{
	Cost		per_row = 0.03;

	if (groups > 1.0e4)
		per_row += 0.07 * (log10(groups) - 4.0);
	return per_row * rows;
}

/* What one of core's aggregates costs beyond that, if it is hashed. */
Cost
gpurhh_agg_undercharge(const AggPath *agg)
{
	if (agg->aggstrategy != AGG_HASHED)
		return 0;
	return hashing_undercharge(agg->numGroups, agg->subpath->rows);
}

/*
 * What DISTINCT in aggregates costs core, which charges nothing for it.  Core sorts
 * each group by itself, unless the rows come sorted by more than the grouping
 * columns.  Measured, that takes 0.0021 for each row and each doubling of the
 * group's rows.
 */
static Cost
distinct_undercharge(PlanInfo *info, AggPath *agg)
{
	double		rows = agg->subpath->rows;
	double		group_rows = Max(rows / Max(agg->numGroups, 1.0), 2.0);

	if (info->distinct_args == NIL || agg->aggsplit != AGGSPLIT_SIMPLE ||
		list_length(agg->subpath->pathkeys) > list_length(agg->groupClause))
		return 0;
	return list_length(info->distinct_args) * rows * 0.8 * cpu_operator_cost *
		log2(group_rows);
}

/*
 * What one of core's paths really costs beyond its total_cost, all paths below it
 * included.
 */
static Cost
core_undercharge(PlanInfo *info, Path *path)
{
	Cost		sum = 0;
	ListCell   *lc;

	if (path == NULL)
		return 0;
	switch (nodeTag(path))
	{
		case T_AggPath:
			{
				AggPath    *agg = (AggPath *) path;

				return core_undercharge(info, agg->subpath) +
					distinct_undercharge(info, agg) + gpurhh_agg_undercharge(agg);
			}
		case T_GroupingSetsPath:
			{
				GroupingSetsPath *sets = (GroupingSetsPath *) path;

				sum = core_undercharge(info, sets->subpath);
				foreach(lc, sets->rollups)
				{
					RollupData *rollup = lfirst(lc);

					if (rollup->is_hashed)
						sum += hashing_undercharge(rollup->numGroups,
												   sets->subpath->rows);
				}
				return sum;
			}
		case T_AppendPath:
			foreach(lc, ((AppendPath *) path)->subpaths)
				sum += core_undercharge(info, lfirst(lc));
			return sum;
		case T_GatherPath:
			return core_undercharge(info, ((GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return core_undercharge(info, ((GatherMergePath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return core_undercharge(info, ((SortPath *) path)->subpath);
		case T_ProjectionPath:
			return core_undercharge(info, ((ProjectionPath *) path)->subpath);
		case T_UpperUniquePath:
			return core_undercharge(info, ((UpperUniquePath *) path)->subpath);
		case T_HashPath:
		case T_MergePath:
		case T_NestPath:
		case T_CustomPath:
			/* otherwise all paths have the same joins below */
			return info->joined ? gpurhh_joins_undercharge(path) : 0;
		default:
			return 0;
	}
}

/*
 * What core's path really costs beyond its charge.  What the input costs is left out if
 * our path has the same input.
 */
static Cost
grouping_undercharge(PlanInfo *info, Path *path)
{
	Cost		undercharge = core_undercharge(info, path);

	if (!info->joined)
		undercharge -= core_undercharge(info, info->input);
	return undercharge;
}

/* What one of core's paths for the grouping is charged, and what it really costs. */
static CorePathCost
core_path_cost(PlanInfo *info, Path *path)
{
	Cost		undercharge = grouping_undercharge(info, path);
	CorePathCost cost;

	cost.charged.startup = cost.real.startup = path->startup_cost;
	cost.charged.total = path->total_cost;
	cost.real.total = path->total_cost + undercharge;
	/* without an order all rows are grouped before the first row is returned */
	if (path->pathkeys == NIL)
		cost.real.startup += undercharge;
	return cost;
}

/* ---------- what our paths cost ---------- */

/*
 * Sets the real cost of a path of the node over subpath, which is the projection to
 * the columns that are fed.  The session feeds rows while the device puts earlier ones
 * into the map, so gpurhh.row_cost is what the slower of the two takes.  n_groups: how
 * many groups this process returns; groups are those of all participants of a parallel
 * plan.
 */
void
gpurhh_cost_agg_path(PlanInfo *info, Path *path, ProjectionPath *subpath,
					 const GroupEstimate *groups, double n_groups)
{
	double		level_factor = info->plan->choices != NIL ?
		HOST_LEVEL_FACTOR : LEVEL_FACTOR;
	Cost		input_cost;
	int			n_workers;

	/* a device that several processes feed has as many cores, or is a GPU */
	if (!path->parallel_aware && gpurhh_chains(info, &n_workers))
		input_cost = info->input->startup_cost + info->input->rows * gpurhh_group_cost *
			(gpurhh_uses_gpu() ? GPU_CHAIN_FACTOR : LEVEL_FACTOR / gpurhh_parallel_divisor(n_workers));
	else
	{
		/* what is made of rows, and feeding that */
		const Cost	rows_cost = subpath->path.total_cost - subpath->subpath->total_cost +
			subpath->path.rows * gpurhh_row_cost;
		const double rows_share = info->joined ?
			gpurhh_pipeline_rows_share(info, subpath->subpath == info->partial_input) : 1;
		double		share;

		input_cost = gpurhh_device_pages(info->root, subpath->subpath, info->child_target->exprs,
										 subpath->subpath->total_cost + rows_cost * rows_share -
										 gpurhh_page_feed_saving(info->root, subpath), &share);
	}
	path->startup_cost = input_cost + gpurhh_setup_cost +
		(groups->taken_by_levels * level_factor + groups->choices) *
		gpurhh_group_cost;
	path->total_cost = path->startup_cost + n_groups * gpurhh_group_cost;
}

/* ---------- ours beside core's ---------- */

/* The path that core would choose of these, if nothing above wants an order. */
static const CorePathCost *
core_choice(const CorePathCost *core, int n_core)
{
	const CorePathCost *choice = n_core > 0 ? core : NULL;

	for (int p = 1; p < n_core; p++)
	{
		if (core[p].charged.total < choice->charged.total)
			choice = &core[p];
	}
	return choice;
}

/*
 * The cost that one of our paths is to have beside core's paths for the same
 * grouping, so that add_path() decides by what all of them really cost.
 *
 * add_path() compares what paths are charged.  Core charges its paths less than they
 * really cost.  So a path of ours could lose although its real cost is the lowest.
 *
 * What ours has to beat is the path that core would choose, which is the one that it
 * charges least for.  If that one really costs more than ours, ours has to win, even if
 * another one, which core would not choose, really costs less.  It then gets the lower
 * one of two costs: its real cost, and CLEARLY_LESS of the lowest charge of core's
 * paths.  That changes its cost no more than it must.  Another way would be to scale our
 * cost down by the ratio of what core charges to what is real.  But what stands above
 * the grouping (a sort, a join, a LIMIT) adds costs that are charged fairly, and core's
 * sorted paths are charged fairly, too.  So the nearer our cost is to the real one, the
 * better the planner chooses there.
 *
 * If the path that core would choose really costs less than ours, ours keeps its real
 * cost, or gets more than what core charges, which for a nested loop is too much.
 *
 * The cost until the first row decides below a LIMIT.  It is changed in the same way,
 * but looks at each of core's paths by itself.  A sorted path may return its first row
 * before ours does; ours must still have a lower cost than a hashed path, which is
 * really slower.
 *
 * All of core's paths stay in the list.  add_path() itself drops those that are worse
 * than ours in every respect.  It keeps those that are sorted, or return their first
 * row earlier.  The result of this function depends on its arguments alone.
 */
PathCost
gpurhh_on_core_scale(PathCost ours, const CorePathCost *core, int n_core)
{
	PathCost	result = ours;
	const CorePathCost *chosen = core_choice(core, n_core);

	if (chosen != NULL && chosen->real.total <= ours.total)
	{
		result.total = Max(ours.total, chosen->charged.total / CLEARLY_LESS);
		return result;
	}
	for (int p = 0; p < n_core; p++)
	{
		result.total = Min(result.total, core[p].charged.total * CLEARLY_LESS);
		if (core[p].real.startup > ours.startup)
			result.startup = Min(result.startup,
								 core[p].charged.startup * CLEARLY_LESS);
	}
	result.startup = Min(result.startup, result.total);
	return result;
}

/*
 * Brings the costs of ours, which does the whole grouping, to the scale of core's
 * paths for it.  partial, which may be NULL, does a participant's part and competes
 * with none of core's: it becomes cheaper by as much as ours does, so that the
 * planner still chooses between the two by what they really cost.
 *
 * Returns NULL, or what there is to say if add_path() does not keep ours.
 */
const char *
gpurhh_fit_costs(PlanInfo *info, RelOptInfo *output_rel, Path *ours,
				 Path *partial)
{
	int			n_core = 0;
	CorePathCost *core = palloc(sizeof(CorePathCost) *
								Max(list_length(output_rel->pathlist), 1));
	PathCost	real = {ours->startup_cost, ours->total_cost};
	const CorePathCost *chosen;
	PathCost	fitted;
	ListCell   *lc;

	/* core chooses none that is disabled, whatever its cost */
	foreach(lc, output_rel->pathlist)
	{
		if (!gpurhh_is_disabled(lfirst(lc)))
			core[n_core++] = core_path_cost(info, lfirst(lc));
	}
	chosen = core_choice(core, n_core);
	fitted = gpurhh_on_core_scale(real, core, n_core);
	ours->startup_cost = fitted.startup;
	ours->total_cost = fitted.total;
	if (partial != NULL)
	{
		Cost		less = real.total - fitted.total;

		partial->startup_cost = Max(partial->startup_cost - less, 0.0);
		partial->total_cost = Max(partial->total_cost - less, 0.0);
	}
	if (chosen == NULL || chosen->real.total > real.total)
		return NULL;
	return psprintf("its estimated cost of %.0f is not below the %.0f of PostgreSQL's own plan",
					real.total, chosen->real.total);
}

/* The most rows that a table's pages can have, if that is fewer than are estimated. */
static double
possible_rows(const RelOptInfo *rel, const RangeTblEntry *rte)
{
	double		most = (double) rel->pages * MaxHeapTuplesPerPage;

	return rte->rtekind == RTE_RELATION && rel->pages > 0 && most < rel->tuples &&
		gpurhh_is_heap(rte->relid) ? most : rel->tuples;
}

/*
 * Of the rows that are estimated of these tables, the share that there can be at most; relids NULL: of
 * all of the query level.  Core takes the number of rows of a page from the last ANALYZE, and counts pages
 * now; so a table that has become small, or statistics that are wrong, can have it expect more than fit.
 */
double
gpurhh_possible_share(PlannerInfo *root, Relids relids)
{
	double		estimated = 0;
	double		possible = 0;

	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];
		const RangeTblEntry *rte = root->simple_rte_array[i];

		/* of a parent there are the children */
		if (rel == NULL || rte->inh)
			continue;
		if (relids != NULL &&
			!bms_is_subset(rel->reloptkind == RELOPT_OTHER_MEMBER_REL ? rel->top_parent_relids :
						   rel->relids, relids))
			continue;
		estimated += rel->tuples;
		possible += possible_rows(rel, rte);
	}
	return possible < estimated ? possible / estimated : 1.0;
}

/*
 * Does one of core's paths cost less than any of ours, whatever that would be?
 * Ours cost the setup at least.  This is for queries that take microseconds, so that
 * looking for our paths does not take a tenth of that.  share: of core's cost, as there are
 * fewer rows than it has estimated.
 */
bool
gpurhh_core_is_cheap(PlanInfo *info, RelOptInfo *output_rel, double share)
{
	PlanInfo	compared = *info;
	ListCell   *lc;

	/* it is not known yet what DISTINCT costs beyond what core charges */
	if (info->root->numOrderedAggs > 0)
		return false;
	compared.joined = info->pipeline != NULL;
	foreach(lc, output_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (!gpurhh_is_disabled(path) &&
			core_path_cost(&compared, path).real.total * share <= gpurhh_setup_cost)
			return true;
	}
	return false;
}
