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

/* What is read so by one participant. */
typedef struct PageBatches PageBatches;

extern void gpurhh_page_batches_limits(rhh_map_spec *spec);
extern PageBatches *gpurhh_page_batches_create(PageFeed *pages, const Feed *feed,
											   Channel *channel, uint32 room_offset,
											   uint32 room_rows, GpuNodeCounts *counts,
											   MemoryContext context);
extern bool gpurhh_page_batches_prepare(PageBatches *batches, void (*take_returned)(void *arg),
										void *arg);
extern bool gpurhh_page_batches_are_waiting(PageBatches *batches);
extern void gpurhh_page_batches_fill_columns(PageBatches *batches, Feed *feed);
extern bool gpurhh_page_batches_fill(PageBatches *batches, char *base, rhh_batch *batch);
extern void gpurhh_page_batches_take(PageBatches *batches);
extern bool gpurhh_page_batches_wait(PageBatches *batches, void (*take_returned)(void *arg),
									 void *arg);
extern bool gpurhh_page_batches_bad_rows(PageBatches *batches, Feed *feed, uint64 *n_rows);

#endif							/* GPURHH_EXEC_PAGE_BATCHES_H */
