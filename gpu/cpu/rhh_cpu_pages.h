/*
 * rhh_cpu_pages.h
 *		Batches of the CPU device that have pages instead of columns.
 */
#ifndef RHH_CPU_PAGES_H
#define RHH_CPU_PAGES_H

#include "cpu/rhh_cpu_columns.h"

/*
 * Makes columns, of column_bytes each, of the pages of a batch, which are in memory, or in the cache.  given is the
 * caller's batch.  *rows, which is a copy of it, becomes a batch with columns, and with room for
 * refused rows, or their bitmap, of room_bytes behind them, in memory of the
 * reserve, to which the caller is to give it back (rhh_cpu_give_pages()); that is also the result, and how much that is is *bytes.
 * NULL: there is no memory, or no row, and rows->n_rows is 0.  Bad pages are marked; all are where there is no memory.
 */
extern uint8_t *rhh_cpu_read_pages(const uint8_t *memory, rhh_cpu_cache *cache, rhh_cpu_reserve *reserve,
								   const rhh_batch *given, const uint8_t *column_bytes, uint64_t room_bytes,
								   rhh_batch *rows, size_t *bytes, uint32_t *n_bad);

/* Tells a batch's pages which rows were refused, by their bitmap.  Returns how many pages have some. */
extern uint32_t rhh_cpu_refuse_pages(const rhh_batch *given, const uint8_t *refused);

#endif							/* RHH_CPU_PAGES_H */
