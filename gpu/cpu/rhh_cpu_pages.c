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

/*
 * Memory for the program of a layout: its columns for the rows of a page, those of the batch that are results
 * and then its inputs.
 */
typedef struct page_columns
{
	uint8_t		bytes[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint8_t    *values[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint8_t    *nulls[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint64_t	bad[RHH_PAGE_ITEMS / 64];
	uint64_t	dropped[RHH_PAGE_ITEMS / 64];
	rhh_program filter;			/* the part of the program that decides, */
	rhh_program results;		/* and all of it without that */
	uint8_t    *scratch;
} page_columns;

/* NULL: no memory.  The result is to be given to free(). */
static page_columns *
make_columns(const rhh_page_layout *layout, const uint8_t *column_bytes)
{
	const uint32_t n_columns = layout->n_loads + layout->program.n_results;
	const size_t bitmap = RHH_PAGE_ITEMS / 8;
	const size_t column = RHH_PAGE_ITEMS * 16 + (bitmap + 63) / 64 * 64;
	const size_t head = (sizeof(page_columns) + 63) / 64 * 64;
	const size_t scratch = (rhh_program_scratch(&layout->program) + 63) / 64 * 64;
	page_columns *columns = aligned_alloc(64, head + scratch +
										  (layout->program.n_results + layout->n_inputs) * column);
	uint8_t    *at = (uint8_t *) columns + head + scratch;

	if (columns == NULL)
		return NULL;
	columns->scratch = (uint8_t *) columns + head;
	columns->filter = columns->results = layout->program;
	columns->filter.n_results = 0;
	columns->filter.n_ops = layout->program.has_filter ? layout->program.filter + 1u : 0;
	columns->results.has_filter = false;
	memcpy(columns->bytes, column_bytes, n_columns);
	for (uint32_t i = 0; i < layout->program.n_results + layout->n_inputs; i++, at += column)
	{
		const bool	input = i >= layout->program.n_results;
		const uint32_t c = input ? n_columns + i - layout->program.n_results :
			layout->program.results[i].column;

		if (input)
			columns->bytes[c] = (uint8_t) rhh_page_input_bytes(layout, c - n_columns);
		columns->values[c] = at;
		columns->nulls[c] = at + RHH_PAGE_ITEMS * 16;
	}
	return columns;
}

/* The next row of a page from line pointer *item on, which becomes its; false: there is none. */
static bool
next_item(const rhh_page *page, uint32_t *item)
{
	while (*item < RHH_PAGE_ITEMS && (page->visible[*item / 64] >> *item % 64 & 1) == 0)
		(*item)++;
	return *item < RHH_PAGE_ITEMS;
}

static void
set_bit(uint8_t *bitmap, uint32_t i, bool value)
{
	bitmap[i / 8] = (uint8_t) ((bitmap[i / 8] & ~(1u << i % 8)) | (uint32_t) value << i % 8);
}

/* Makes those inputs of a page's rows that have a bit in which.  False: it is bad. */
static bool
make_inputs(const uint8_t *memory, const rhh_page *page, const rhh_page_layout *layout, uint32_t which,
			page_columns *columns)
{
	const uint32_t n_columns = layout->n_loads + layout->program.n_results;
	uint32_t	n = 0;

	for (uint32_t item = 0; next_item(page, &item); item++, n++)
	{
		rhh_page_tuple tuple;
		uint64_t	words[RHH_PAGE_INPUTS][2];
		uint32_t	nulls;

		if (n == page->n_rows || !rhh_page_find(memory, item, RHH_PAGE_BYTES, &tuple) ||
			!rhh_page_read_inputs(layout, which, tuple, words, &nulls))
			return false;
		for (uint32_t i = 0; i < layout->n_inputs; i++)
		{
			const uint32_t c = n_columns + i;

			if ((which >> i & 1) == 0)
				continue;
			memcpy(columns->values[c] + (size_t) n * columns->bytes[c], words[i], columns->bytes[c]);
			set_bit(columns->nulls[c], n, (nulls >> i & 1) != 0);
		}
	}
	return n == page->n_rows;
}

/*
 * Drops the rows of a page for which the program's filter is not true; visible is to have the others,
 * whose number is *n.  False: the page is bad.
 */
static bool
filter_page(const uint8_t *memory, const rhh_page *page, const rhh_page_layout *layout,
			page_columns *columns, uint64_t *visible, uint32_t *n)
{
	rhh_program_rows rows;
	uint32_t	i = 0;

	if (!make_inputs(memory, page, layout, layout->filter_inputs, columns))
		return false;
	rows = rhh_program_run(&columns->filter, columns->bytes, columns->values, columns->nulls,
						   page->n_rows, columns->scratch, (uint8_t *) columns->bad,
						   (uint8_t *) columns->dropped);
	*n = page->n_rows - rows.n_dropped;
	memcpy(visible, page->visible, sizeof(page->visible));
	for (uint32_t item = 0; next_item(page, &item); item++, i++)
		if ((columns->dropped[i / 64] >> i % 64 & 1) != 0)
			visible[item / 64] &= ~((uint64_t) 1 << item % 64);
	return rows.n_bad == 0;
}

/* Stores row `row` of a column, of which it is known whether it has NULLs. */
static void
store(rhh_batch *rows, uint32_t c, uint32_t bytes, bool not_null, uint32_t row, const void *value, bool null)
{
	memcpy(rows->base + rows->values_offset[c] + (size_t) row * bytes, value, bytes);
	if (!not_null)
		set_bit(rows->base + rows->nulls_offset[c], row, null);
}

/* Makes the columns of a page's rows that are loaded, from row `at` on.  False: it is bad. */
static bool
load_page(const uint8_t *memory, const rhh_page *page, const rhh_page_layout *layout,
		  const uint8_t *column_bytes, rhh_batch *rows, uint32_t at)
{
	uint32_t	n = 0;

	for (uint32_t item = 0; next_item(page, &item); item++, n++)
	{
		rhh_page_tuple tuple;

		if (n == page->n_rows || !rhh_page_find(memory, item, RHH_PAGE_BYTES, &tuple))
			return false;
		for (uint32_t l = 0; l < layout->n_loads; l++)
		{
			const rhh_page_load *load = &layout->loads[l];
			bool		null;
			uint64_t	words[2];

			if (!rhh_page_load_value(layout->attributes, load, column_bytes[load->column], &tuple, &null,
									 &words[0], &words[1]))
				return false;
			store(rows, load->column, column_bytes[load->column], load->not_null, at + n, words, null);
		}
	}
	return n == page->n_rows;
}

/* Makes those that are computed.  False: it is bad. */
static bool
compute_page(const uint8_t *memory, const rhh_page *page, const rhh_page_layout *layout,
			 page_columns *columns, rhh_batch *rows, uint32_t at)
{
	if (!make_inputs(memory, page, layout, rhh_page_all_inputs(layout), columns) ||
		rhh_program_run(&columns->results, columns->bytes, columns->values, columns->nulls, page->n_rows,
						columns->scratch, (uint8_t *) columns->bad, (uint8_t *) columns->dropped).n_bad > 0)
		return false;
	for (uint32_t r = 0; r < layout->program.n_results; r++)
	{
		const uint32_t c = layout->program.results[r].column;

		for (uint32_t i = 0; i < page->n_rows; i++)
			store(rows, c, columns->bytes[c], false, at + i,
				  columns->values[c] + (size_t) i * columns->bytes[c],
				  (columns->nulls[c][i / 8] >> i % 8 & 1) != 0);
	}
	return true;
}

/*
 * Makes rows of a page, from row `at` on, of those that the filter keeps.  False: it is bad, and as it was.
 */
static bool
read_page(const uint8_t *memory, rhh_page *page, const rhh_page_layout *layout,
		  const uint8_t *column_bytes, page_columns *columns, rhh_batch *rows, uint32_t at)
{
	rhh_page	kept = *page;

	if (rhh_page_has_filter(layout, page))
	{
		if (!filter_page(memory, page, layout, columns, kept.visible, &kept.n_rows))
			return false;
		kept.filtered = 1;
		kept.n_dropped = page->n_rows - kept.n_rows;
	}
	if (!load_page(memory, &kept, layout, column_bytes, rows, at) ||
		(columns != NULL && !compute_page(memory, &kept, layout, columns, rows, at)))
		return false;
	*page = kept;
	return true;
}

/* A filter has no NULLs, and other columns without are read faster if they have no bitmap. */
static void
drop_bitmaps(const rhh_page_layout *layout, rhh_batch *rows)
{
	for (uint32_t r = 0; r < layout->program.n_results; r++)
	{
		const uint32_t c = layout->program.results[r].column;
		const uint8_t *nulls = rows->base + rows->nulls_offset[c];
		bool		any = false;

		for (uint32_t i = 0; i < rows->n_rows && !any; i++)
			any = (nulls[i / 8] >> i % 8 & 1) != 0;
		if (!any)
			rows->nulls_offset[c] = 0;
	}
}

/* Where a slot's page is, and *page is what is known of it; NULL: there is no such slot. */
static uint8_t *
slot_of(uint8_t *const *slabs, uint32_t slot, rhh_page **page)
{
	uint8_t    *slab = slot / RHH_SLAB_PAGES < RHH_MAX_SLABS ? slabs[slot / RHH_SLAB_PAGES] : NULL;

	if (slab == NULL)
		return NULL;
	*page = (rhh_page *) (void *) (slab + (size_t) RHH_SLAB_PAGES * RHH_PAGE_BYTES) + slot % RHH_SLAB_PAGES;
	return slab + (size_t) (slot % RHH_SLAB_PAGES) * RHH_PAGE_BYTES;
}

/*
 * Where a page of a batch is, whose n_rows and visible are then known; NULL: it is nowhere.
 */
static const uint8_t *
find_page(const uint8_t *memory, uint8_t *const *slabs, const rhh_batch *given, rhh_page *page)
{
	const uint8_t *cached;
	rhh_page   *known;

	if (!given->cached)
		return page->number >= given->first_page && page->number < given->end_page ?
			memory + (uint64_t) page->number * RHH_PAGE_BYTES : NULL;
	cached = page->number >= given->first_page && page->number < given->end_page ?
		slot_of(slabs, page->number, &known) : NULL;
	if (cached != NULL && page->filtered == 0)
	{
		memcpy(page->visible, known->visible, sizeof(page->visible));
		page->n_rows = known->n_rows;
	}
	return cached != NULL && page->n_rows > 0 && rhh_page_count(page->visible) == page->n_rows ? cached : NULL;
}

/* Puts a page, which is as its caller has said, into a slot. */
static void
keep_page(uint8_t *const *slabs, uint32_t slot, const uint8_t *memory, const rhh_page *page)
{
	rhh_page   *known;
	uint8_t    *to = slot_of(slabs, slot, &known);

	if (to == NULL || page->filtered != 0)
		return;
	memcpy(to, memory, RHH_PAGE_BYTES);
	memset(known, 0, sizeof(*known));
	memcpy(known->visible, page->visible, sizeof(page->visible));
	known->n_rows = page->n_rows;
}

uint8_t *
rhh_cpu_read_pages(const uint8_t *memory, uint8_t *const *slabs, const rhh_batch *given,
				   const uint8_t *column_bytes, uint64_t room_bytes, rhh_batch *rows, uint32_t *n_bad)
{
	rhh_page   *pages = (void *) (given->base + given->pages_offset);
	const rhh_page_layout *layout = (const void *) (given->base + given->layout_offset);
	const uint32_t *slots = given->slots_offset == 0 ? NULL : (const void *) (given->base + given->slots_offset);
	const uint64_t bytes = rhh_page_columns(layout, column_bytes, given->n_rows, false,
											rows->values_offset, rows->nulls_offset);
	const uint64_t all = (bytes + room_bytes + 63) / 64 * 64;
	const bool	computes = layout->program.n_ops > 0;
	page_columns *columns = computes ? make_columns(layout, column_bytes) : NULL;
	bool		memory_lacks = computes && columns == NULL;
	uint32_t	n = 0;

	*n_bad = 0;
	if (given->cached && rhh_is_beginning(&given->from))
		for (uint32_t p = 0; p < given->n_pages; p++)
			pages[p] = (rhh_page){.number = slots[p]};
	rows->base = all > UINT32_MAX ? NULL : aligned_alloc(64, all);
	memory_lacks |= rows->base == NULL;
	for (uint32_t p = 0; p < given->n_pages; p++)
	{
		rhh_page   *page = &pages[p];
		const uint8_t *from;

		/* it was found to be bad when the batch came before, or has no rows left */
		if (page->n_rows == 0 && (!given->cached || page->bad != 0 || page->filtered != 0))
			continue;
		from = find_page(memory, slabs, given, page);
		if (from != NULL && slots != NULL && !given->cached)
			keep_page(slabs, slots[p], from, page);
		page->first_row = n;
		if (!memory_lacks && from != NULL && page->n_rows <= given->n_rows - n &&
			read_page(from, page, layout, column_bytes, columns, rows, n))
		{
			page->filtered |= given->cached;
			n += page->n_rows;
			continue;
		}
		page->bad = RHH_PAGE_UNREAD;
		page->n_rows = 0;
		(*n_bad)++;
	}
	free(columns);
	rows->n_rows = n;
	rows->n_pages = 0;
	rows->used_bytes = rows->refused_offset = (uint32_t) bytes;
	if (n > 0)
		drop_bitmaps(layout, rows);
	else
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
