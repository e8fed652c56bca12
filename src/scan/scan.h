/*-------------------------------------------------------------------------
 *
 * scan.h
 *		Reads the pages of sequential scans into batches.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SCAN_SCAN_H
#define GPURHH_SCAN_SCAN_H

#include "access/heapam.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

#include "batch/batch.h"
#include "rhh_pages.h"
#include "scan/cached_pages.h"

/* ---------- heap_walk.c ---------- */

extern void gpurhh_init_buffer_hints(void);
/* What a scan has come to. */
typedef enum HeapNext
{
	HEAP_PAGE,
	HEAP_CACHED,				/* enough pages that are in the cache */
	HEAP_ENDED
} HeapNext;

extern HeapNext gpurhh_heap_next_page(HeapScanDesc scan, bool dense, CachedPages *cached);
/* Is called again and again while a page is worked on: asks for a part of the next one. */
extern void gpurhh_heap_step(void);
extern Buffer gpurhh_heap_read_block(HeapScanDesc scan, BlockNumber block);
extern bool gpurhh_heap_is_found(Buffer buffer);
extern bool gpurhh_heap_is_settled(Buffer buffer);
extern BlockNumber gpurhh_heap_unpin(Buffer buffer);
extern double gpurhh_buffered_share(Relation rel, BlockNumber n_pages, double *hinted);
extern double gpurhh_all_visible_share(Relation rel, BlockNumber n_pages);

/* ---------- heap_feed.c ---------- */

/* Reads the pages of a sequential scan into a feed. */
typedef struct HeapFeed HeapFeed;

/* Where pages of a batch are noted that may be put into the cache, and whose rows the device may have to find. */
typedef struct PagesToCache
{
	BlockNumber *blocks;		/* of each of its pages; InvalidBlockNumber: it may not */
	CacheRequest *request;		/* has room for a ref of each page */
	uint32		page_rows;		/* the rows that a page is thought to have whose rows the device is to find,
								 * which is so where the visibility map vouches for a page; 0: no page's */
	uint32		n_thought;		/* the sum of these, of this batch */
	Buffer	   *pins;			/* for each page, InvalidBuffer at first: its buffer, if it is one of these, and only
								 * gpurhh_heap_unpin() releases its pin */
} PagesToCache;

extern HeapFeed *gpurhh_heap_feed_create(PlanState *child, List *exprs,
										 ResultState *above, int n_columns,
										 const GpuColumn *columns,
										 MemoryContext context,
										 const char **why);
extern TupleTableSlot *gpurhh_project_above(ResultState *result,
											TupleTableSlot *slot);
extern void gpurhh_heap_feed_add_keys(HeapFeed *heap, List *exprs, int n_columns,
									  const GpuColumn *columns,
									  MemoryContext context);
extern void gpurhh_heap_feed_test(HeapFeed *heap, KeyTests *tests);
extern bool gpurhh_heap_feed_begin(HeapFeed *heap);
extern Relation gpurhh_heap_feed_relation(HeapFeed *heap);
extern void gpurhh_heap_feed_share(HeapFeed *heap, ParallelTableScanDesc scan);
extern bool gpurhh_heap_feed_fill(HeapFeed *heap, Feed *feed, uint32 whole_pages);
extern bool gpurhh_heap_feed_has_ended(const HeapFeed *heap);
extern bool gpurhh_heap_feed_is_amid(const HeapFeed *heap);
extern void gpurhh_heap_feed_hold_pages(HeapFeed *heap, int n_pages);
extern void gpurhh_heap_feed_use_cache(HeapFeed *heap, uint8 n_attributes);
extern CachedPages *gpurhh_heap_feed_cached(HeapFeed *heap);
extern void gpurhh_heap_feed_end_cache(HeapFeed *heap);
extern uint32 gpurhh_heap_feed_pages(HeapFeed *heap, rhh_page *pages, uint32 most_pages,
									 uint32 most_rows, uint32 most_cached, PagesToCache *to,
									 uint32 *n_rows);
extern void gpurhh_heap_feed_count_cached(HeapFeed *heap, uint64 n);
extern uint32 gpurhh_heap_feed_pin_block(HeapFeed *heap, BlockNumber block, rhh_page *page);
extern uint64 gpurhh_heap_feed_take_page(HeapFeed *heap, const rhh_page *page);
extern bool gpurhh_heap_feed_page_rows(HeapFeed *heap, Feed *feed);
extern void gpurhh_heap_feed_dropped(HeapFeed *heap, uint64 n);

/* ---------- page_layout.c ---------- */

extern bool gpurhh_heap_feed_layout(HeapFeed *heap, const Feed *feed,
									rhh_page_layout *layout, const char **why);

/* ---------- page_feed.c ---------- */

/* Reads the pages of the scans below a node. */
typedef struct PageFeed PageFeed;

extern PageFeed *gpurhh_page_feed_create(PlanState *child, List *computed,
										 int n_columns, const GpuColumn *columns,
										 MemoryContext context,
										 const char **why);
extern void gpurhh_page_feed_add_keys(PageFeed *feed, int n_columns,
									  const GpuColumn *columns,
									  MemoryContext context);
extern void gpurhh_page_feed_test(PageFeed *feed, KeyTests *tests);
extern void gpurhh_page_feed_ways(PageFeed *feed, bool *pages, bool *rows);
extern void gpurhh_page_feed_begin(PageFeed *feed);
extern bool gpurhh_page_feed_fill(PageFeed *feed, Feed *to);
extern Relation gpurhh_page_feed_relation(PageFeed *feed);
extern bool gpurhh_page_feed_all_pages(const PageFeed *feed);
extern bool gpurhh_page_feed_has_layouts(const PageFeed *feed, const Feed *to);
extern int	gpurhh_page_feed_child(PageFeed *feed);
extern HeapFeed *gpurhh_page_feed_heap(PageFeed *feed);
extern void gpurhh_page_feed_pass(PageFeed *feed);
extern bool gpurhh_page_feed_may_cache(const PageFeed *feed);
extern uint32 gpurhh_page_feed_pages(PageFeed *feed, rhh_page *pages, uint32 most_pages,
									 uint32 most_rows, uint32 most_cached, PagesToCache *to,
									 uint32 *n_rows);
extern void gpurhh_page_feed_count_cached(PageFeed *feed, int child, uint64 n);
extern void gpurhh_page_feed_take_block(PageFeed *feed, int child, BlockNumber block, rhh_page *page);
extern void gpurhh_page_feed_end(PageFeed *feed);
extern bool gpurhh_page_feed_fill_child(PageFeed *feed, Feed *to, uint32 whole_pages);
extern void gpurhh_page_feed_take_page(PageFeed *feed, int child, const rhh_page *page);
extern bool gpurhh_page_feed_page_rows(PageFeed *feed, int child, Feed *to);
extern void gpurhh_page_feed_dropped(PageFeed *feed, int child, uint64 n);
extern void gpurhh_page_feed_share(PageFeed *feed, ParallelTableScanDesc scan);

#endif							/* GPURHH_SCAN_SCAN_H */
