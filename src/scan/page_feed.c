/*-------------------------------------------------------------------------
 *
 * page_feed.c
 *		The scans whose pages are read: the child, or those below an Append.
 *
 * heap_feed.c reads the pages of one sequential scan.  This file finds such
 * scans below the node: the child itself, or the children of an Append
 * (partitions, inheritance, UNION ALL).  A Result may stand in between, which
 * computes expressions over the Append's columns; these expressions are written
 * anew in terms of each scan's table.
 *
 * The Append still decides which of its children is next, by the function that it
 * would call itself.  So run-time pruning, and in parallel plans which process
 * reads which partition, are core's.  A child that is no such scan, or that cannot
 * be read by pages this time, is asked for its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/nodeFuncs.h"

#include "scan/scan.h"

struct PageFeed
{
	ResultState *result;		/* above the scans; NULL: nothing is */
	AppendState *append;		/* NULL: there is one scan */
	int			n_children;
	PlanState **children;
	HeapFeed  **heaps;			/* NULL: that child's rows are asked for */

	/* of one execution */
	bool		begun;
	int			current;		/* child; -1: the next has to be chosen */
	bool		by_pages;		/* how the current one is read */
	TupleTableSlot *pending;	/* a row that found no room in the block */
	bool		any_pages;		/* how children were read */
	bool		any_rows;
};

/* Puts what a scan returns in the place of references to it. */
static Node *
inline_mutator(Node *node, void *targetlist)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == OUTER_VAR)
	{
		TargetEntry *tle = list_nth_node(TargetEntry, targetlist,
										 ((Var *) node)->varattno - 1);

		return (Node *) copyObject(tle->expr);
	}
	return expression_tree_mutator(node, inline_mutator, targetlist);
}

/*
 * May the scan's expressions be put into those of the Result?  The scan computes
 * its expressions for each row, and one may raise an error.  Within an expression
 * of the Result, such as a CASE, it might not be computed, and the error would be
 * lost.  So each expression of the scan's that is no column or constant has to be
 * a whole column of the Result.
 */
static bool
can_inline(List *columns, List *targetlist)
{
	ListCell   *lc,
			   *lc_column;

	foreach(lc, targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		bool		found = IsA(tle->expr, Var) || IsA(tle->expr, Const);

		foreach(lc_column, columns)
		{
			Var		   *var = (Var *) lfirst(lc_column);

			found |= IsA(var, Var) && var->varno == OUTER_VAR &&
				var->varattno == foreach_current_index(lc) + 1;
		}
		if (!found)
			return false;
	}
	return true;
}

/* Makes the feed of one child's pages; NULL, with *why, if it has to be by rows. */
static HeapFeed *
heap_feed_of(PageFeed *feed, PlanState *child, List *computed, int n_columns,
			 const GpuColumn *columns, MemoryContext context,
			 const char **why)
{
	List	   *above = feed->result ? feed->result->ps.plan->targetlist :
		child->plan->targetlist;
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, above)
		exprs = lappend(exprs, lfirst_node(TargetEntry, lc)->expr);
	if (computed != NIL)
		exprs = list_concat(exprs, (List *) inline_mutator((Node *) computed, above));
	if (feed->result != NULL)
	{
		if (!can_inline(exprs, child->plan->targetlist))
		{
			*why = "the scan computes what the node does not need";
			return NULL;
		}
		exprs = (List *) inline_mutator((Node *) exprs,
										child->plan->targetlist);
	}
	return gpurhh_heap_feed_create(child, exprs, feed->result, n_columns,
								   columns, context, why);
}

/*
 * Makes a feed of child's rows in n_columns columns, from the pages below it.  computed
 * has expressions over the child's columns, as OUTER_VAR, that the child does not return
 * itself.  They are attributes like the child's, and come after those.  If there are any,
 * a row for which one of them cannot be computed is left over (Feed.leave_row).
 * Returns NULL if the rows have to be asked for one by one; then *why says why.
 * The feed is allocated in context and lives as long as the child does.
 */
PageFeed *
gpurhh_page_feed_create(PlanState *child, List *computed, int n_columns,
						const GpuColumn *columns, MemoryContext context,
						const char **why)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	PageFeed   *feed = palloc0(sizeof(PageFeed));
	bool		any_pages = false;

	if (IsA(child, ResultState) && outerPlanState(child) != NULL &&
		((ResultState *) child)->resconstantqual == NULL &&
		child->plan->qual == NIL)
	{
		feed->result = (ResultState *) child;
		child = outerPlanState(child);
	}
	if (IsA(child, AppendState) &&
		((AppendState *) child)->as_nasyncplans == 0)
	{
		feed->append = (AppendState *) child;
		feed->n_children = feed->append->as_nplans;
		feed->children = feed->append->appendplans;
	}
	else
	{
		feed->n_children = 1;
		feed->children = palloc(sizeof(PlanState *));
		feed->children[0] = child;
	}
	feed->heaps = palloc0(sizeof(HeapFeed *) * Max(feed->n_children, 1));
	for (int i = 0; i < feed->n_children; i++)
	{
		feed->heaps[i] = heap_feed_of(feed, feed->children[i], computed, n_columns,
									  columns, context, why);
		any_pages |= feed->heaps[i] != NULL;
	}
	MemoryContextSwitchTo(old);
	if (any_pages)
		return feed;
	if (feed->n_children == 0)
		*why = "there is nothing to scan";
	return NULL;
}

/* Is computing what a plan returns of its rows only a matter of copying them? */
static bool
returns_columns(List *targetlist)
{
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		Node	   *expr = gpurhh_without_relabel((Node *) lfirst_node(TargetEntry, lc)->expr);

		if (!IsA(expr, Var) && !IsA(expr, Const))
			return false;
	}
	return true;
}

/*
 * Says by which columns of the child's rows may be tested before they are fed; their
 * attributes are the child's.  Where a scan or the Result above computes something of a row,
 * core does that before it joins the row, and may raise an error; so such rows are not tested.
 */
void
gpurhh_page_feed_add_keys(PageFeed *feed, int n_columns, const GpuColumn *columns,
						  MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);

	for (int i = 0; i < feed->n_children; i++)
	{
		List	   *targetlist = feed->children[i]->plan->targetlist;
		List	   *exprs = NIL;
		ListCell   *lc;

		if (feed->heaps[i] == NULL || !returns_columns(targetlist) ||
			(feed->result != NULL && !returns_columns(feed->result->ps.plan->targetlist)))
			continue;
		foreach(lc, feed->result ? feed->result->ps.plan->targetlist : targetlist)
			exprs = lappend(exprs, lfirst_node(TargetEntry, lc)->expr);
		if (feed->result != NULL)
			exprs = (List *) inline_mutator((Node *) exprs, targetlist);
		gpurhh_heap_feed_add_keys(feed->heaps[i], exprs, n_columns, columns, context);
	}
	MemoryContextSwitchTo(old);
}

/* From now on rows are tested so, where they can be; NULL: they are not. */
void
gpurhh_page_feed_test(PageFeed *feed, KeyTests *tests)
{
	for (int i = 0; i < feed->n_children; i++)
	{
		if (feed->heaps[i] != NULL)
			gpurhh_heap_feed_test(feed->heaps[i], tests);
	}
}

/* How the children were read in this run, or how they will be. */
void
gpurhh_page_feed_ways(PageFeed *feed, bool *pages, bool *rows)
{
	*pages = feed->any_pages;
	*rows = feed->any_rows;
	if (*pages || *rows)
		return;
	for (int i = 0; i < feed->n_children; i++)
	{
		if (feed->heaps[i] != NULL)
			*pages = true;
		else
			*rows = true;
	}
}

/* Before the first row, also after a rescan. */
void
gpurhh_page_feed_begin(PageFeed *feed)
{
	/* what ExecProcNode() would do first */
	if (feed->result != NULL && feed->result->ps.chgParam != NULL)
		ExecReScan(&feed->result->ps);
	if (feed->append != NULL && feed->append->ps.chgParam != NULL)
		ExecReScan(&feed->append->ps);
	feed->begun = false;
	feed->current = -1;
	feed->pending = NULL;
	feed->any_pages = false;
	feed->any_rows = false;
}

/* Goes on to the next child; false: there is none. */
static bool
next_child(PageFeed *feed)
{
	AppendState *append = feed->append;

	if (append == NULL)
	{
		if (feed->begun)
			return false;
		feed->current = 0;
	}
	else
	{
		if (append->as_nplans == 0 || !append->choose_next_subplan(append))
			return false;
		append->as_begun = true;
		feed->current = append->as_whichplan;
	}
	feed->begun = true;
	feed->by_pages = feed->heaps[feed->current] != NULL &&
		gpurhh_heap_feed_begin(feed->heaps[feed->current]);
	if (feed->by_pages)
		feed->any_pages = true;
	else
		feed->any_rows = true;
	return true;
}

/* Does what gpurhh_heap_feed_fill() does, with the current child's rows one by one. */
static bool
fill_by_rows(PageFeed *feed, Feed *to)
{
	for (;;)
	{
		if (feed->pending == NULL)
		{
			TupleTableSlot *slot = ExecProcNode(feed->children[feed->current]);

			if (TupIsNull(slot))
				return false;
			feed->pending = feed->result == NULL ? slot :
				gpurhh_project_above(feed->result, slot);
		}
		if (to->base == NULL || to->n_rows == to->capacity_rows)
			return true;
		gpurhh_feed_or_leave(to, feed->pending);
		feed->pending = NULL;
	}
}

/* Does what gpurhh_heap_feed_fill() does, with the current child. */
static bool
fill_from_child(PageFeed *feed, Feed *to, uint32 whole_pages)
{
	return feed->by_pages ?
		gpurhh_heap_feed_fill(feed->heaps[feed->current], to, whole_pages) : fill_by_rows(feed, to);
}

/* Reads the children from the current one on, until the block is full. */
static bool
fill(PageFeed *feed, Feed *to)
{
	for (;;)
	{
		if (feed->current < 0 && !next_child(feed))
			return false;
		if (fill_from_child(feed, to, 0))
			return true;
		feed->current = -1;
	}
}

/* ---------- what is above the scans, and shows their rows as if they came through it ---------- */

typedef struct Passed
{
	PlanState  *nodes[2];
} Passed;

static Passed
begin_passing(PageFeed *feed)
{
	Passed		passed = {{NULL, NULL}};

	if (feed->result != NULL)
		passed.nodes[0] = &feed->result->ps;
	if (feed->append != NULL)
		passed.nodes[1] = &feed->append->ps;
	for (int i = 0; i < 2; i++)
	{
		if (passed.nodes[i] != NULL && passed.nodes[i]->instrument)
			InstrStartNode(passed.nodes[i]->instrument);
	}
	return passed;
}

static void
end_passing(const Passed *passed, double n_rows)
{
	for (int i = 1; i >= 0; i--)
	{
		if (passed->nodes[i] != NULL && passed->nodes[i]->instrument)
			InstrStopNode(passed->nodes[i]->instrument, n_rows);
	}
}

/* So many rows have not come through, after all. */
static void
unpass(PageFeed *feed, uint64 n_rows)
{
	if (feed->result != NULL && feed->result->ps.instrument)
		feed->result->ps.instrument->tuplecount -= n_rows;
	if (feed->append != NULL && feed->append->ps.instrument)
		feed->append->ps.instrument->tuplecount -= n_rows;
}

/*
 * Fills the feed's block.  Returns true if there are more rows, and the block is
 * full or has not been started; false if all rows are in blocks.  Between calls a
 * page may stay pinned: see gpurhh_heap_feed_fill().
 */
bool
gpurhh_page_feed_fill(PageFeed *feed, Feed *to)
{
	Passed		passed = begin_passing(feed);
	uint32		n_before = to->base ? to->n_rows : 0;
	bool		more = fill(feed, to);

	end_passing(&passed, to->base ? to->n_rows - n_before : 0);
	return more;
}

/* The one table that is read, by pages; NULL: it may be none, or several. */
Relation
gpurhh_page_feed_relation(PageFeed *feed)
{
	return feed->append == NULL && feed->heaps[0] != NULL ?
		gpurhh_heap_feed_relation(feed->heaps[0]) : NULL;
}

/* ---------- pages for a device ---------- */

/*
 * A device may read pages by itself.  Then these are asked for, child by child, with the
 * child's number; rows of pages that it sends back may come when another child is being read.
 */

/* Are all children read by their pages, as far as is known before that begins? */
bool
gpurhh_page_feed_all_pages(const PageFeed *feed)
{
	for (int i = 0; i < feed->n_children; i++)
	{
		if (feed->heaps[i] == NULL)
			return false;
	}
	return feed->n_children > 0;
}

/* Can a device make all columns of a feed, of the pages of all children?  To be asked before these are read. */
bool
gpurhh_page_feed_has_layouts(const PageFeed *feed, const Feed *to)
{
	rhh_page_layout layout;
	const char *why;

	for (int i = 0; i < feed->n_children; i++)
	{
		if (feed->heaps[i] == NULL || !gpurhh_heap_feed_layout(feed->heaps[i], to, &layout, &why))
			return false;
	}
	return feed->n_children > 0;
}

/* The child that is being read, or that is next; -1: there is none. */
int
gpurhh_page_feed_child(PageFeed *feed)
{
	if (feed->current < 0 && !next_child(feed))
		return -1;
	return feed->current;
}

/* The table of that child; NULL: it is read by rows this time. */
HeapFeed *
gpurhh_page_feed_heap(PageFeed *feed)
{
	Assert(feed->current >= 0);
	return feed->by_pages ? feed->heaps[feed->current] : NULL;
}

/* All pages of that child have been asked for. */
void
gpurhh_page_feed_pass(PageFeed *feed)
{
	feed->current = -1;
}

/*
 * May pages of all children be kept in the cache?  A worker does not know whether the transaction has made one of
 * these tables, so where it opens a query, for a further part of a build side, they are not.
 */
bool
gpurhh_page_feed_may_cache(const PageFeed *feed)
{
	if (IsParallelWorker())
		return false;
	for (int i = 0; i < feed->n_children; i++)
	{
		if (feed->heaps[i] == NULL || !gpurhh_may_cache(gpurhh_heap_feed_relation(feed->heaps[i])))
			return false;
	}
	return feed->n_children > 0;
}

/* See gpurhh_heap_feed_pages(); of that child. */
uint32
gpurhh_page_feed_pages(PageFeed *feed, rhh_page *pages, uint32 most_pages, uint32 most_rows,
					   uint32 most_cached, PagesToCache *to, uint32 *n_rows)
{
	Passed		passed = begin_passing(feed);
	uint32		n = gpurhh_heap_feed_pages(feed->heaps[feed->current], pages, most_pages, most_rows,
										   most_cached, to, n_rows);

	end_passing(&passed, *n_rows - (to != NULL ? to->n_thought : 0));
	return n;
}

/* Does what gpurhh_page_feed_fill() does, with that child alone; see gpurhh_heap_feed_fill() for whole_pages. */
bool
gpurhh_page_feed_fill_child(PageFeed *feed, Feed *to, uint32 whole_pages)
{
	Passed		passed = begin_passing(feed);
	uint32		n_before = to->base ? to->n_rows : 0;
	bool		more = fill_from_child(feed, to, whole_pages);

	end_passing(&passed, to->base ? to->n_rows - n_before : 0);
	if (!more)
		feed->current = -1;
	return more;
}

/* See gpurhh_heap_feed_take_page(). */
void
gpurhh_page_feed_take_page(PageFeed *feed, int child, const rhh_page *page)
{
	unpass(feed, gpurhh_heap_feed_take_page(feed->heaps[child], page));
}

/* See gpurhh_heap_feed_count_cached(). */
void
gpurhh_page_feed_count_cached(PageFeed *feed, int child, uint64 n)
{
	Passed		passed = begin_passing(feed);

	gpurhh_heap_feed_count_cached(feed->heaps[child], n);
	end_passing(&passed, n);
}

/* Pins the page of a block by gpurhh_heap_feed_pin_block(), and then does as gpurhh_page_feed_take_page(). */
void
gpurhh_page_feed_take_block(PageFeed *feed, int child, BlockNumber block, rhh_page *page)
{
	gpurhh_page_feed_count_cached(feed, child,
								  gpurhh_heap_feed_pin_block(feed->heaps[child], block, page));
	gpurhh_page_feed_take_page(feed, child, page);
}

/* At the node's end, if that is no error. */
void
gpurhh_page_feed_end(PageFeed *feed)
{
	for (int i = 0; i < feed->n_children; i++)
	{
		if (feed->heaps[i] != NULL)
			gpurhh_heap_feed_end_cache(feed->heaps[i]);
	}
}

/* See gpurhh_heap_feed_page_rows(). */
bool
gpurhh_page_feed_page_rows(PageFeed *feed, int child, Feed *to)
{
	return gpurhh_heap_feed_page_rows(feed->heaps[child], to);
}

/* See gpurhh_heap_feed_dropped(). */
void
gpurhh_page_feed_dropped(PageFeed *feed, int child, uint64 n)
{
	gpurhh_heap_feed_dropped(feed->heaps[child], n);
	unpass(feed, n);
}

/* See gpurhh_heap_feed_share(); for a feed that reads one table. */
void
gpurhh_page_feed_share(PageFeed *feed, ParallelTableScanDesc scan)
{
	gpurhh_heap_feed_share(feed->heaps[0], scan);
}
