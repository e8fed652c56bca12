/*-------------------------------------------------------------------------
 *
 * join_cost.c
 *		What joins cost on the device, and what hash joins really cost core.
 *
 * A pipeline (join_path.c) reads a table, the probe side, and joins its rows with one
 * build side after the other.  What the device takes is in units of gpurhh.row_cost,
 * which is what feeding a row costs.  What core takes is in core's units, as in
 * agg_cost.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/cost.h"

#include "compat.h"
#include "plan/plan_info.h"
#include "settings.h"

/*
 * To ask a plan for a row and to feed it takes a session 60 ns, where reading pages takes
 * 10.  A CPU device takes 70 to 95 ns of its threads' time to put the row into a map, so
 * 40 where two threads do it.  A GPU takes nearly nothing.  No row is probed before that
 * is done.
 */
#define FEED_ROWS_FACTOR	6.0
#define BUILD_FACTOR		4.0

/*
 * To probe a map takes a device 10 ns a row while the map is in caches (2^13 rows), and
 * up to three times that where it is not (2^20 rows).
 */
#define PROBE_FACTOR		1.0
#define PROBE_FACTOR_MISS	3.0
#define CACHED_EXPONENT		13
#define MISSED_EXPONENT		20

/*
 * To add a key to a filter takes a session 4 ns, and to test a row 5 ns.  A row that is dropped
 * is not fed, half of which is spared, and not probed.
 */
#define FILTER_BUILD_FACTOR 0.4
#define FILTER_TEST_FACTOR	0.5
#define FILTER_FEED_FACTOR	0.5

/* A filter of more rows than these would let through too many, or leave the caches. */
#define FILTER_MOST_ROWS	8.0e6

/*
 * To look at a pair of rows by a condition of two comparisons takes a CPU device 28 ns of its
 * threads' time, so 14 where two threads do it.
 */
#define CONDITION_FACTOR	1.4

/*
 * To return a row of the output takes 15 ns, and 7 for each column: the device copies it,
 * and so does the session, twice.
 */
#define RETURN_FACTOR		1.5
#define RETURN_COLUMN_FACTOR 0.7

/*
 * What it costs to read a table and feed its rows, by a path that is a sequential scan or an
 * Append of such, of which the pages are read; saving is what gpurhh_reads_pages() says.
 */
Cost
gpurhh_probe_scan_cost(const Path *scan, Cost saving)
{
	return scan->total_cost - saving + scan->rows * gpurhh_row_cost;
}

/* What it costs to feed rows that a plan is asked for, beyond what the plan costs. */
Cost
gpurhh_feed_rows_cost(double rows)
{
	return gpurhh_row_cost * FEED_ROWS_FACTOR * rows;
}

/*
 * A row in a map takes about so many bytes while the map is finished: its columns twice, and where
 * they are.  Long strings are keys of 16 bytes, so no row takes very many.
 */
#define MAP_ROW_BYTES		12.0
#define MAP_MOST_WIDTH		64

/*
 * In how many passes over the probe side a build side is joined, as far as it is known how much
 * memory a map may take.
 */
double
gpurhh_build_passes(const Path *inner)
{
	double		limit_bytes = gpurhh_device_memory_mb * 1024.0 * 1024.0;
	double		bytes = inner->rows *
		(MAP_ROW_BYTES + 2.0 * Min(inner->pathtarget->width, MAP_MOST_WIDTH));
	double		n = 1;

	while (limit_bytes > 0 && n < RHH_MAX_PARTS && bytes > n * limit_bytes)
		n *= 2;
	return n;
}

/* What it costs to make a map of a build side's rows. */
Cost
gpurhh_build_cost(double build_rows)
{
	return gpurhh_row_cost * BUILD_FACTOR * build_rows;
}

/* What it costs to probe a map of so many rows with one row, in units of a row's cost. */
double
gpurhh_probe_factor(double build_rows)
{
	int			exponent = ilogb(Max(build_rows, 1.0));
	double		missed = (double) (exponent - CACHED_EXPONENT) /
		(MISSED_EXPONENT - CACHED_EXPONENT);

	missed = Min(Max(missed, 0.0), 1.0);
	return PROBE_FACTOR + missed * (PROBE_FACTOR_MISS - PROBE_FACTOR);
}

/*
 * What a filter of the build side's keys saves, in units of a row's cost; see below.  probe_factor
 * is gpurhh_probe_factor()'s.
 */
static double
key_filter_saving(double build_rows, double probe_factor, double probe_rows,
				  double joined_rows)
{
	double		dropped = Max(probe_rows - joined_rows, 0.0);

	if (build_rows > FILTER_MOST_ROWS)
		return 0;
	return dropped * (FILTER_FEED_FACTOR + probe_factor) -
		build_rows * FILTER_BUILD_FACTOR - probe_rows * FILTER_TEST_FACTOR;
}

/*
 * Is a filter of the build side's keys worth its costs, if joined_rows come out of the join?
 * Where a row has several matches, these are more rows than have a match.
 */
bool
gpurhh_key_filter_pays(double build_rows, double probe_rows, double joined_rows)
{
	return key_filter_saving(build_rows, gpurhh_probe_factor(build_rows), probe_rows,
							 joined_rows) > 0;
}

/* What it saves of the costs of feeding and probing; 0: there will be none. */
Cost
gpurhh_key_filter_saving(double build_rows, double probe_factor, double probe_rows,
						 double joined_rows)
{
	if (!gpurhh_enable_key_filter)
		return 0;
	return gpurhh_row_cost *
		Max(key_filter_saving(build_rows, probe_factor, probe_rows, joined_rows), 0.0);
}

/* What it costs to look whether so many pairs of rows with the same keys are matches. */
Cost
gpurhh_condition_cost(double pairs)
{
	return gpurhh_row_cost * pairs * CONDITION_FACTOR;
}

/* What it costs to return so many rows of the joins' output. */
Cost
gpurhh_return_rows_cost(double rows, int n_columns)
{
	return gpurhh_row_cost * rows * (RETURN_FACTOR + RETURN_COLUMN_FACTOR * n_columns);
}

/*
 * What a hash join costs core beyond what core charges, without what is below.  Core
 * charges about 0.013 for a row that is probed, and as much for one that is built.
 * Measured, it is 0.05 up to 1e5 rows of the build side, 0.2 at 1e6 and 0.3 at 1e7, in
 * one batch or in many.
 */
static Cost
hash_join_undercharge(const HashPath *path)
{
	double		build_rows = path->jpath.innerjoinpath->rows;
	double		probe_rows = path->jpath.outerjoinpath->rows;
	Cost		per_row = 0.04;

	if (build_rows > 1.0e5)
		per_row += 0.13 * (log10(build_rows) - 5.0);
	return per_row * (build_rows + probe_rows);
}

/*
 * The same of a nested loop, which may be negative.  Core charges each look into an index for
 * pages that it reads from disk in random order.  Measured, it takes less than a third of
 * that where they are in memory, as they are after a few looks.  Where Memoize spares most of
 * the looks, core charges half of what it takes to ask that: 0.06 a row.
 */
static Cost
nested_loop_undercharge(const NestPath *path)
{
	const JoinPath *join = (const JoinPath *) path;

	if (join->innerjoinpath->param_info == NULL)
		return 0;
	if (IsA(join->innerjoinpath, MemoizePath))
		return 0.03 * join->outerjoinpath->rows;
	return -0.7 * Max(join->path.total_cost - join->outerjoinpath->total_cost, 0.0);
}

/*
 * What the joins in a tree of core's really cost beyond what core charges, and hashed
 * aggregates below them.
 */
Cost
gpurhh_joins_undercharge(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_HashPath:
		case T_MergePath:
		case T_NestPath:
			return gpurhh_joins_undercharge(((const JoinPath *) path)->outerjoinpath) +
				gpurhh_joins_undercharge(((const JoinPath *) path)->innerjoinpath) +
				(IsA(path, HashPath) ? hash_join_undercharge((const HashPath *) path) :
				 IsA(path, NestPath) ? nested_loop_undercharge((const NestPath *) path) : 0);
		case T_AggPath:
			return gpurhh_joins_undercharge(((const AggPath *) path)->subpath) +
				gpurhh_agg_undercharge((const AggPath *) path);
		case T_SubqueryScanPath:
			return gpurhh_joins_undercharge(((const SubqueryScanPath *) path)->subpath);
		case T_MaterialPath:
			return gpurhh_joins_undercharge(((const MaterialPath *) path)->subpath);
		case T_SortPath:
			return gpurhh_joins_undercharge(((const SortPath *) path)->subpath);
		case T_ProjectionPath:
			return gpurhh_joins_undercharge(((const ProjectionPath *) path)->subpath);
		case T_GatherPath:
			return gpurhh_joins_undercharge(((const GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return gpurhh_joins_undercharge(((const GatherMergePath *) path)->subpath);
		case T_CustomPath:
			if (gpurhh_shared_path(path) != NULL)
				return gpurhh_joins_undercharge(gpurhh_shared_path(path));
			return gpurhh_join_path(path) == NULL ? 0 :
				gpurhh_join_path(path)->real_cost - path->total_cost;
		default:
			return 0;
	}
}

/* What a path really costs, with the joins in it. */
Cost
gpurhh_real_cost(const Path *path)
{
	return path->total_cost + gpurhh_joins_undercharge(path);
}
