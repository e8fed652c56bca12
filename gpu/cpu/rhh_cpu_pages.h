/*
 * rhh_cpu_pages.h
 *		Batches of the CPU device that have pages instead of columns.
 */
#ifndef RHH_CPU_PAGES_H
#define RHH_CPU_PAGES_H

#include "rhh_pages.h"

/*
 * Makes columns, of column_bytes each, of the pages of a batch, which are in memory, or in slabs of the cache.  given is the
 * caller's batch.  *rows, which is a copy of it, becomes a batch with columns, and with room for
 * refused rows, or their bitmap, of room_bytes behind them, in memory that is the caller's to
 * free(); that is also the result.  NULL: there is no memory, or no row, and rows->n_rows is 0.  Bad pages are marked; all are where there is no memory.
 */
extern uint8_t *rhh_cpu_read_pages(const uint8_t *memory, uint8_t *const *slabs, const rhh_batch *given,
								   const uint8_t *column_bytes, uint64_t room_bytes,
								   rhh_batch *rows, uint32_t *n_bad);

/* The bytes of a slab: its pages, and what is known of each. */
#define RHH_CPU_SLAB_BYTES ((size_t) RHH_SLAB_PAGES * (RHH_PAGE_BYTES + sizeof(rhh_page)))

/* Tells a batch's pages which rows were refused, by their bitmap.  Returns how many pages have some. */
extern uint32_t rhh_cpu_refuse_pages(const rhh_batch *given, const uint8_t *refused);

#endif							/* RHH_CPU_PAGES_H */
