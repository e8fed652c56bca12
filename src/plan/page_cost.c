/*-------------------------------------------------------------------------
 *
 * page_cost.c
 *		What it costs to read a table's pages for one of our nodes.
 *
 * A session that makes columns of pages takes a fraction of what core charges for a
 * scan (gpurhh_reads_pages).  Pages that a device reads it only hands over: then what
 * counts is what the device takes, and that does not depend on how many processes hand
 * pages over (gpurhh_device_pages).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "batch/batch.h"
#include "cache/page_cache.h"
#include "compat.h"
#include "rhh_pages.h"
#include "plan/plan_info.h"
#include "scan/scan.h"
#include "settings.h"

/* ---------- what reading pages saves ---------- */

/* gpurhh_vector_compile()'s question: is it a column, of whichever table? */
static bool
find_column(Node *expr, bool only_null, int *column, VectorType *type,
			void *arg)
{
	Var		   *var = (Var *) expr;
	int			digits;
	int			scale;

	if (!IsA(expr, Var) || var->varattno <= 0)
		return false;
	*column = 0;
	if (gpurhh_vector_type(var->vartype, type))
		return true;
	if (gpurhh_decimal_type(expr, &digits, &scale) && digits <= GPURHH_DECIMAL128_DIGITS)
	{
		*type = digits <= GPURHH_DECIMAL_DIGITS ? VECTOR_DECIMAL : VECTOR_DECIMAL128;
		return true;
	}
	*type = VECTOR_ANY;
	return only_null;
}

/*
 * Is an expression computed for a page's rows at a time?  If not, *why says why not, as
 * gpurhh_vector_compile() does.
 */
bool
gpurhh_is_by_pages(Expr *expr, const char **why)
{
	return (IsA(expr, Var) && ((Var *) expr)->varattno > 0) ||
		gpurhh_vector_compile(expr, NULL, 1, find_column, NULL, why) != NULL;
}

/* Are all of these expressions? */
static bool
all_by_pages(List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		Expr	   *expr = lfirst(lc);
		const char *why;

		if (IsA(expr, RestrictInfo))
			expr = ((RestrictInfo *) expr)->clause;
		if (!gpurhh_is_by_pages(expr, &why))
			return false;
	}
	return true;
}

bool
gpurhh_is_heap(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		heap = HeapTupleIsValid(tuple) &&
		((Form_pg_class) GETSTRUCT(tuple))->relam == HEAP_TABLE_AM_OID;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return heap;
}

/*
 * Are the scans below a path read by pages (see page_feed.c)?  If so, adds to
 * *saving what that saves of what they are charged.  Measured, it is most of what
 * core spends on a tuple.
 */
bool
gpurhh_reads_pages(PlannerInfo *root, Path *path, Cost *saving)
{
	RelOptInfo *rel = path->parent;
	RangeTblEntry *rte;

	if (IsA(path, ProjectionPath))
		return gpurhh_reads_pages(root, ((ProjectionPath *) path)->subpath, saving);
	if (IsA(path, AppendPath))
	{
		ListCell   *lc;

		foreach(lc, ((AppendPath *) path)->subpaths)
		{
			if (!gpurhh_reads_pages(root, lfirst(lc), saving))
				return false;
		}
		/* no row goes through the Append itself */
		*saving += 0.5 * cpu_tuple_cost * path->rows;
		return true;
	}
	if (path->pathtype != T_SeqScan || !IS_SIMPLE_REL(rel))
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	if (rte->rtekind != RTE_RELATION || !gpurhh_is_heap(rte->relid) ||
		!all_by_pages(rel->baserestrictinfo))
		return false;
	*saving += 0.8 * cpu_tuple_cost * rel->tuples / gpurhh_parallel_divisor(path->parallel_workers);
	return true;
}

/* What reading pages saves below a projection to the columns that are fed. */
Cost
gpurhh_page_feed_saving(PlannerInfo *root, ProjectionPath *projection)
{
	Cost		saving = 0;

	if (!all_by_pages(projection->path.pathtarget->exprs) ||
		!gpurhh_reads_pages(root, projection->subpath, &saving))
		return 0;
	if (!projection->dummypp)
		saving += cpu_tuple_cost * projection->path.rows;
	return saving;
}

/* ---------- pages that a device reads ---------- */

/*
 * What a page takes.  Measured: one process on an H100 names 1.15 million pages of TPC-H's lineitem
 * that the GPU has copies of in 6 ms, while the GPU takes 12 to 25 ms to read, filter and compute
 * them; the 0.0144 of a row of a scan takes 100 ns.  Out of shared buffers the bus brings a page in 165 ns, and one process finds and pins
 * it in 130 ns where it has hints, and takes three times as long where it has none, and some 3 us where it has to be read first,
 * out of the system's cache (bench/results/2026-11-28-h200-page-tables.csv).  A thread of the CPU device takes 1.4 us for a page of two columns
 * and 100 groups and 3.7 us for one of TPC-H's query 1, if it has kept their columns, and three times as long to make these
 * (bench/results/2026-11-27-cpu-2-cores-one-process.csv).  Queries by columns are charged about a seventh of what they take
 * by that measure, where three processes share 2 cores; so the device is, too.
 */
#define GPU_KEPT_PAGE_COST		0.002
#define GPU_NEW_PAGE_COST		0.024
#define HINTED_PAGE_COST		0.019
#define UNHINTED_PAGE_COST		0.057
#define UNBUFFERED_PAGE_COST	0.45
#define CPU_KEPT_PAGE_COST		0.1
#define CPU_NEW_PAGE_COST		0.3

/* Which of them devices have. */
typedef struct KnownPages
{
	double		all;
	double		kept;			/* the device has copies */
	double		fresh;			/* the device has none, and reads them by itself: they are in shared buffers */
	double		unhinted;		/* of these, nobody remembers where */
	double		unbuffered;		/* of all but those that are kept: they are not in shared buffers */
	Cost		io;				/* what core charges for the I/O of all, */
	Cost		saved_io;		/* and of those that are kept */
} KnownPages;

/* Will the device read pages of the cache in this session, as far as is known by now?  *n_threads: of the CPU device; 0: it is a GPU. */
static bool
may_use_cache(uint32 *n_threads)
{
	return gpurhh_read_pages != SWITCH_OFF && gpurhh_cache_device(gpurhh_device, n_threads);
}

/* Will the device be a GPU, as far as is known by now? */
bool
gpurhh_uses_gpu(void)
{
	uint32		n_threads;

	return gpurhh_cache_device(gpurhh_device, &n_threads) && n_threads == 0;
}

/*
 * The threads of the CPU device, if that is what will be used, as far as is known, and keeps pages; else 0.  What it does takes
 * as long whatever hands pages over, and processes that do take processors from it.
 */
int
gpurhh_cpu_cache_threads(void)
{
	uint32		n_threads;

	return may_use_cache(&n_threads) ? n_threads : 0;
}

/* So many attributes, up to the last one that it needs, copies of a table's pages have to have for a scan of it. */
static int
needed_attributes(const RelOptInfo *rel)
{
	Bitmapset  *attributes = NULL;
	int			member = -1;
	int			last = 0;
	ListCell   *lc;

	/* all of a row may be needed as one */
	if (gpurhh_partial_copies == SWITCH_OFF || (rel->min_attr <= 0 && !bms_is_empty(rel->attr_needed[0 - rel->min_attr])))
		return GPURHH_ALL_ATTRIBUTES;
	for (int a = 1; a <= rel->max_attr; a++)
		if (!bms_is_empty(rel->attr_needed[a - rel->min_attr]))
			last = a;
	foreach(lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &attributes);
	while ((member = bms_next_member(attributes, member)) >= 0)
		last = Max(last, member + FirstLowInvalidHeapAttributeNumber);
	return last;
}

/* Adds those of a table. */
static void
count_table(PlannerInfo *root, const RelOptInfo *rel, KnownPages *pages)
{
	Relation	relation = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	const RelationFile file = gpurhh_relation_file(relation);
	const bool	may_keep = gpurhh_may_cache(relation);
	const double visible = may_keep ? rel->pages * gpurhh_all_visible_share(relation, rel->pages) : 0;
	const double kept = may_keep ? Min(gpurhh_cache_pages(&file, needed_attributes(rel)), visible) : 0;
	const double others = visible - kept;
	double		page_cost;

	/* a GPU is charged for pages at which no session looks; the CPU device reads only what it keeps */
	if (others > 0 &&
		(gpurhh_uses_gpu() ? GPURHH_DEVICES_READ_IN_ORDER :
		 gpurhh_cpu_cache_threads() > 0 && rel->pages <= gpurhh_cache_room() && !gpurhh_cache_is_full()))
	{
		double		hinted;
		const double buffered = gpurhh_buffered_share(relation, rel->pages, &hinted);

		pages->fresh += others * buffered;
		pages->unhinted += others * (buffered - hinted);
		pages->unbuffered += (rel->pages - kept) * (1 - buffered);
	}
	table_close(relation, NoLock);
	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	pages->all += rel->pages;
	pages->kept += kept;
	pages->io += page_cost * rel->pages;
	pages->saved_io += page_cost * kept;
}

/* Is it one table, all of whose rows are scanned, and does a device read pages of it by itself? */
bool
gpurhh_has_device_pages(PlannerInfo *root, const RelOptInfo *rel)
{
	KnownPages	pages = {0};
	const RangeTblEntry *rte;
	uint32		n_threads;

	if (!may_use_cache(&n_threads) || rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION)
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	if (rte->inh || rte->tablesample != NULL || !gpurhh_is_heap(rte->relid))
		return false;
	count_table(root, rel, &pages);
	return pages.kept + pages.fresh > 0;
}

/* Adds the pages of the scans below a path. */
static void
count_pages(PlannerInfo *root, const Path *path, KnownPages *pages)
{
	if (IsA(path, ProjectionPath))
		count_pages(root, ((const ProjectionPath *) path)->subpath, pages);
	else if (IsA(path, AppendPath))
	{
		ListCell   *lc;

		foreach(lc, ((const AppendPath *) path)->subpaths)
			count_pages(root, lfirst(lc), pages);
	}
	else
		count_table(root, path->parent, pages);
}

/* gpurhh_vector_compile()'s question: is it a column that a device makes of a page? */
static bool
find_input(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	return find_column(expr, only_null, column, type, arg) && ((Var *) expr)->varattno <= RHH_PAGE_ATTRIBUTES;
}

/* Can a device compute an expression as it reads a page? */
static bool
is_by_device(Expr *expr)
{
	rhh_program *program = palloc0(sizeof(rhh_program));
	const char *why;
	VectorExpr *compiled = gpurhh_vector_compile(expr, NULL, 1, find_input, NULL, &why);
	VectorType	type;
	uint8		number;

	return compiled != NULL && gpurhh_vector_program(compiled, program, true, &number, &type, &why);
}

/*
 * Can a device make a column of an attribute as it reads a page, as far as can be told here?  See
 * scan/page_layout.c.
 */
static bool
is_loaded_by_device(PlannerInfo *root, Var *var)
{
	VectorType	type;
	int			digits;
	int			scale;

	if (var->varattno > RHH_PAGE_ATTRIBUTES)
		return false;
	if (gpurhh_vector_type(var->vartype, &type))
		return (type != VECTOR_STRING && type != VECTOR_BPCHAR) ||
			get_attavgwidth(planner_rt_fetch(var->varno, root)->relid, var->varattno) <=
			RHH_PAGE_STRING_BYTES + 1;
	return gpurhh_decimal_type((Node *) var, &digits, &scale) && digits <= GPURHH_DECIMAL_DIGITS;
}

/* The same of the rows of the scans below a path, with their conditions. */
static bool
are_by_device(PlannerInfo *root, const Path *path)
{
	ListCell   *lc;

	if (IsA(path, ProjectionPath))
		return are_by_device(root, ((const ProjectionPath *) path)->subpath);
	if (IsA(path, AppendPath))
	{
		foreach(lc, ((const AppendPath *) path)->subpaths)
		{
			if (!are_by_device(root, lfirst(lc)))
				return false;
		}
		return true;
	}
	foreach(lc, path->parent->baserestrictinfo)
	{
		if (!is_by_device(lfirst_node(RestrictInfo, lc)->clause))
			return false;
	}
	return true;
}

/*
 * What it costs to feed these columns of a scan, where making columns of all pages costs `cost`: *share of the pages a
 * device is likely to read by itself.
 */
Cost
gpurhh_device_pages(PlannerInfo *root, Path *scan, List *columns, Cost cost, double *share)
{
	uint32		n_threads;
	KnownPages	pages = {0};
	Cost		saving = 0;
	Cost		device;
	ListCell   *lc;

	*share = 0;
	/* what is disabled stays so, up to version 17 by what it costs */
	if (!may_use_cache(&n_threads) || !gpurhh_reads_pages(root, scan, &saving) || gpurhh_is_disabled(scan) ||
		scan->total_cost >= disable_cost)
		return cost;
	count_pages(root, scan, &pages);
	if (pages.kept + pages.fresh <= 0 || !are_by_device(root, scan))
		return cost;
	foreach(lc, columns)
	{
		Expr	   *expr = lfirst(lc);

		if (IsA(expr, Var) ? !is_loaded_by_device(root, (Var *) expr) : !is_by_device(expr))
			return cost;
	}
	*share = (pages.kept + pages.fresh) / pages.all;
	device = n_threads > 0 ?
		(pages.kept * CPU_KEPT_PAGE_COST + pages.fresh * CPU_NEW_PAGE_COST) / n_threads :
		pages.kept * GPU_KEPT_PAGE_COST +
		Max(pages.fresh * GPU_NEW_PAGE_COST,
			((pages.fresh - pages.unhinted) * HINTED_PAGE_COST + pages.unhinted * UNHINTED_PAGE_COST +
			 pages.unbuffered * UNBUFFERED_PAGE_COST) / gpurhh_parallel_divisor(scan->parallel_workers));
	/* I/O is the same for any number of processes */
	device += Max(cost - pages.io, 0) * (1 - *share) + pages.io - pages.saved_io;
	return Min(cost, device);
}
