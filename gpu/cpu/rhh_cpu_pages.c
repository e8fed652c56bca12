/*
 * rhh_cpu_pages.c
 *		Makes columns of the pages of a batch (rhh_pages.h), for the CPU device.
 *
 * A session of PostgreSQL makes columns of pages by itself, and faster, if it has the processor
 * that this would take.  So this is for one that has not, and for tests of everything around it
 * where there is no GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "rhh_pages.h"
#include "cpu/rhh_cpu_pages.h"

/* Stores row `row` of a column. */
static void
store(rhh_batch *rows, const rhh_page_load *load, uint32_t bytes, uint32_t row, bool null,
	  uint64_t low, uint64_t high)
{
	const uint64_t words[2] = {low, high};
	uint8_t    *nulls = rows->base + rows->nulls_offset[load->column];

	memcpy(rows->base + rows->values_offset[load->column] + (size_t) row * bytes, words, bytes);
	if (load->not_null)
		return;
	if (null)
		nulls[row / 8] |= (uint8_t) (1 << row % 8);
	else
		nulls[row / 8] &= (uint8_t) ~(1 << row % 8);
}

/* Makes rows of a page, from row `at` on.  False: it is bad. */
static bool
read_page(const uint8_t *memory, const rhh_page *page, const rhh_page_layout *layout,
		  const uint8_t *column_bytes, rhh_batch *rows, uint32_t at)
{
	uint32_t	n = 0;

	for (uint32_t item = 0; item < RHH_PAGE_ITEMS; item++)
	{
		rhh_page_tuple tuple;

		if ((page->visible[item / 64] >> item % 64 & 1) == 0)
			continue;
		if (n == page->n_rows || !rhh_page_find(memory, item, RHH_PAGE_BYTES, &tuple))
			return false;
		for (uint32_t l = 0; l < layout->n_loads; l++)
		{
			const rhh_page_load *load = &layout->loads[l];
			const uint32_t bytes = column_bytes[load->column];
			bool		null;
			uint64_t	low,
						high;

			if (!rhh_page_load_value(layout, load, bytes, &tuple, &null, &low, &high))
				return false;
			store(rows, load, bytes, at + n, null, low, high);
		}
		n++;
	}
	return n == page->n_rows;
}

uint8_t *
rhh_cpu_read_pages(const uint8_t *memory, const rhh_batch *given, const uint8_t *column_bytes,
				   uint64_t room_bytes, rhh_batch *rows, uint32_t *n_bad)
{
	rhh_page   *pages = (void *) (given->base + given->pages_offset);
	const rhh_page_layout *layout = (const void *) (given->base + given->layout_offset);
	const uint64_t bytes = rhh_page_columns(layout, column_bytes, given->n_rows, false,
											rows->values_offset, rows->nulls_offset);
	const uint64_t all = (bytes + room_bytes + 63) / 64 * 64;
	uint32_t	n = 0;

	*n_bad = 0;
	rows->base = all > UINT32_MAX ? NULL : aligned_alloc(64, all);
	for (uint32_t p = 0; p < given->n_pages; p++)
	{
		rhh_page   *page = &pages[p];
		const bool	inside = page->number >= given->first_page && page->number < given->end_page &&
			page->n_rows <= given->n_rows - n;

		/* it was found to be bad when the batch came before */
		if (page->n_rows == 0)
			continue;
		page->first_row = n;
		if (rows->base != NULL && inside &&
			read_page(memory + (uint64_t) page->number * RHH_PAGE_BYTES, page, layout,
					  column_bytes, rows, n))
		{
			n += page->n_rows;
			continue;
		}
		page->bad = RHH_PAGE_UNREAD;
		page->n_rows = 0;
		(*n_bad)++;
	}
	rows->n_rows = n;
	rows->n_pages = 0;
	rows->used_bytes = rows->refused_offset = (uint32_t) bytes;
	if (n == 0)
	{
		free(rows->base);
		rows->base = NULL;
	}
	return rows->base;
}

uint32_t
rhh_cpu_refuse_pages(const rhh_batch *given, const uint8_t *refused)
{
	rhh_page   *pages = (void *) (given->base + given->pages_offset);
	uint32_t	n = 0;

	for (uint32_t p = 0; p < given->n_pages; p++)
		n += rhh_page_refuse(&pages[p], (const void *) refused);
	return n;
}
