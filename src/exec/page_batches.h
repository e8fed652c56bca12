/*-------------------------------------------------------------------------
 *
 * page_batches.h
 *		Batches of pages that a device reads by itself.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_PAGE_BATCHES_H
#define GPURHH_EXEC_PAGE_BATCHES_H

#include "channel/channel.h"
#include "exec/node_stats.h"
#include "scan/scan.h"

/* A side that is to be read so, and what its reader does with blocks.  All of these get arg. */
typedef struct PageSide
{
	PageFeed   *pages;			/* of the side; it has begun */
	Feed	   *feed;			/* makes columns of it */
	Channel    *channel;
	uint32		room_offset;	/* of refused rows, in a block */
	uint32		room_rows;		/* 0: none come back */
	PageCounts *counts;
	const bool *spoiled;		/* it is not to be read any further; NULL: that cannot be */
	const uint32 *rows_limit;	/* the next batch has about so many rows at most, or those of a few pages; NULL: as many
								 * as it can have */

	void	   *arg;
	char	   *(*acquire_block) (void *arg);	/* of the pool; NULL: none became free */
	char	   *(*next_block) (void *arg);	/* for columns */
	void		(*hand_over) (void *arg);	/* the feed's block, which may have no rows */
	void		(*count) (void *arg, const rhh_batch *batch);	/* that has been submitted */
	void		(*recount) (void *arg, uint64 n_rows, uint64 n_wrong);	/* so many that were counted did
																		 * not go in, and so many were
																		 * not there */
	void		(*take_returned) (void *arg);	/* batches that have come back; NULL: none do */
} PageSide;

/* What is read so by one participant. */
typedef struct PageBatches PageBatches;

typedef enum PagesGiven
{
	PAGES_GIVEN,				/* a batch */
	PAGES_ENDED,				/* there are no more */
	PAGES_AS_COLUMNS			/* none any more: the rest of the rows is to be fed */
} PagesGiven;

extern void gpurhh_page_batches_limits(rhh_map_spec *spec, bool cached);
extern PageBatches *gpurhh_page_batches_create(const PageSide *side, MemoryContext context);
extern PagesGiven gpurhh_page_batches_give(PageBatches *batches);
extern void gpurhh_page_batches_take(PageBatches *batches);
extern void gpurhh_page_batches_wait(PageBatches *batches);
extern void gpurhh_page_batches_end(PageBatches *batches);

#endif							/* GPURHH_EXEC_PAGE_BATCHES_H */
