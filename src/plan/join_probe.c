/*-------------------------------------------------------------------------
 *
 * join_probe.c
 *		What may be the probe side of a pipeline, and what it costs to read it.
 *
 * That is a table whose pages are read, or whatever path of core's is the cheapest for a
 * relation, which is asked for its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"

#include "plan/join_path.h"

/* So many threads a GPU is charged for as it joins rows of pages that it reads, which is next to nothing. */
#define GPU_THREADS 64

/*
 * Does a path read a table from its beginning to its end, or several tables so?  They
 * have to be heaps.
 */
static bool
is_full_scan(PlannerInfo *root, Path *path)
{
	RangeTblEntry *rte;
	ListCell   *lc;

	if (path->param_info != NULL)
		return false;
	if (IsA(path, AppendPath))
	{
		foreach(lc, ((AppendPath *) path)->subpaths)
		{
			if (!is_full_scan(root, lfirst(lc)))
				return false;
		}
		return ((AppendPath *) path)->subpaths != NIL;
	}
	if (path->pathtype != T_SeqScan || !IS_SIMPLE_REL(path->parent))
		return false;
	rte = planner_rt_fetch(path->parent->relid, root);
	return rte->rtekind == RTE_RELATION && gpurhh_is_heap(rte->relid);
}

/* The cheapest one of these paths that is such a scan; NULL: none is. */
static Path *
find_full_scan(PlannerInfo *root, List *paths)
{
	ListCell   *lc;

	/* they are sorted by cost */
	foreach(lc, paths)
	{
		if (is_full_scan(root, lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

/*
 * The way of reading the pages of a scan; NULL: there is none.  cheapest is what core would read the
 * relation by.  Disabled nodes count before any cost, and are counted of a whole pipeline only when it
 * is done, so a scan that has more of them must not be taken for the cheaper one here.
 */
static Way *
make_scan_way(PlannerInfo *root, Path *scan, const Path *cheapest)
{
	Way		   *way;
	Cost		saving = 0;

	if (scan == NULL || gpurhh_disabled_nodes(scan) > gpurhh_disabled_nodes(cheapest) ||
		!gpurhh_reads_pages(root, scan, &saving))
		return NULL;
	way = palloc0(sizeof(Way));
	way->cost = gpurhh_probe_scan_cost(scan, saving);
	way->device_threads = gpurhh_uses_gpu() ? GPU_THREADS : gpurhh_cpu_cache_threads();
	way->cost = gpurhh_device_pages(root, scan, scan->pathtarget->exprs, way->cost, &way->device_share);
	way->probe_cost = way->cost;
	way->n_workers = scan->parallel_workers;
	way->probe = scan;
	way->probe_relids = scan->parent->relids;
	way->by_pages = true;
	return way;
}

/* The way of rows that a path is asked for; NULL: it is none that can be asked alone. */
static Way *
make_rows_way(Path *path, int n_workers)
{
	Way		   *way;

	if (path == NULL || path->param_info != NULL)
		return NULL;
	way = palloc0(sizeof(Way));
	way->cost = way->probe_cost = gpurhh_real_cost(path) + gpurhh_feed_rows_cost(path->rows);
	way->n_workers = n_workers;
	way->probe = path;
	way->probe_relids = path->parent->relids;
	return way;
}

/* Finds out what gives a relation's rows, which has all its paths. */
void
gpurhh_find_rows(GpuPipeline *pipeline)
{
	RelOptInfo *rel = pipeline->rel;

	if (pipeline->knows_rows)
		return;
	pipeline->knows_rows = true;
	if (IS_DUMMY_REL(rel))
		return;
	pipeline->serial_rows = make_rows_way(rel->cheapest_total_path, 0);
	if (rel->consider_parallel && rel->partial_pathlist != NIL)
	{
		Path	   *partial = linitial(rel->partial_pathlist);

		pipeline->partial_rows = make_rows_way(partial, partial->parallel_workers);
	}
}

/* Finds out how a base relation's pages can be read, if they can. */
static void
find_scans(PlannerInfo *root, GpuPipeline *pipeline)
{
	RelOptInfo *rel = pipeline->rel;
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	Path	   *serial;
	Path	   *partial = NULL;
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || rte->tablesample != NULL || IS_DUMMY_REL(rel))
		return;
	foreach(lc, rel->baserestrictinfo)
	{
		/* core puts a Result above the scan that evaluates it once */
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return;
	}
	serial = find_full_scan(root, rel->pathlist);
	if (rel->consider_parallel)
		partial = find_full_scan(root, rel->partial_pathlist);
	/* core has dropped them where an index is better, for the scan by itself */
	if (!rte->inh && gpurhh_is_heap(rte->relid))
	{
		if (serial == NULL)
			serial = create_seqscan_path(root, rel, NULL, 0);
		if (partial == NULL && rel->partial_pathlist != NIL)
		{
			int			n_workers = compute_parallel_worker(rel, rel->pages, -1,
															max_parallel_workers_per_gather);

			if (n_workers > 0)
				partial = create_seqscan_path(root, rel, NULL, n_workers);
		}
	}
	pipeline->serial = make_scan_way(root, serial, rel->cheapest_total_path);
	if (partial != NULL)
		pipeline->partial = make_scan_way(root, partial, linitial(rel->partial_pathlist));
}

/* The pipeline of a base relation that was not looked at yet. */
GpuPipeline *
gpurhh_make_scan(GpuPipelines *level, RelOptInfo *rel)
{
	GpuPipeline *pipeline = gpurhh_make_pipeline(rel);

	level->scans[rel->relid] = pipeline;
	find_scans(level->root, pipeline);
	return pipeline;
}
