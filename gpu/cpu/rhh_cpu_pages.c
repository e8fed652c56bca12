/*
 * rhh_cpu_pages.c
 *		Makes columns of the pages of a batch (rhh_pages.h), for the CPU device.
 *
 * Of pages in the cache columns are kept (rhh_cpu_columns.h).  A segment is a run of pages of a batch whose rows
 * follow each other in these; it is filtered and computed as a whole, some rows at a time, and
 * copied to the batch's columns.  Pages that have no such columns, and those in a segment of which something is wrong,
 * are read one by one, a tuple at a time.  A session of PostgreSQL makes columns of pages faster than that.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rhh_pages.h"
#include "cpu/rhh_cpu_pages.h"

/* Rows of a segment that are worked on at a time. */
#define STEP_ROWS 1024u

/* Memory for a batch's columns is a multiple of this. */
#define BATCH_STEP_BYTES ((uint64_t) 2 << 20)

/* Where more rows than one of so many are left out, those that are not are copied one by one. */
#define SPARSE 8u

/*
 * Memory for the program of a layout: its columns for the rows of a page or a step, those of the batch that are results
 * and then its inputs.
 */
typedef struct page_columns
{
	uint8_t		bytes[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint8_t    *values[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint8_t    *nulls[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint64_t	bad[STEP_ROWS / 64];
	uint64_t	dropped[STEP_ROWS / 64];
	rhh_program filter;			/* the part of the program that decides, */
	rhh_program results;		/* and all of it without that */
	uint8_t    *scratch;
} page_columns;

/* NULL: no memory.  The result is to be given to free(). */
static page_columns *
make_columns(const rhh_page_layout *layout, const uint8_t *column_bytes)
{
	const uint32_t n_columns = layout->n_loads + layout->program.n_results;
	const size_t bitmap = STEP_ROWS / 8;
	const size_t column = STEP_ROWS * 16 + bitmap;
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
		columns->nulls[c] = at + STEP_ROWS * 16;
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

/* Takes the rows of a page that have a bit in dropped, which has the page's from bit `first` on, out of it. */
static void
drop_rows(rhh_page *page, const uint64_t *dropped, uint32_t first)
{
	uint32_t	row = first;
	uint32_t	n_dropped = 0;

	for (uint32_t w = 0; w < RHH_PAGE_ITEMS / 64; w++)
		for (uint64_t left = page->visible[w]; left != 0; left &= left - 1, row++)
			if ((dropped[row / 64] >> row % 64 & 1) != 0)
			{
				page->visible[w] &= ~(left & (~left + 1));
				n_dropped++;
			}
	page->n_rows -= n_dropped;
	page->n_dropped = n_dropped;
}

/* Drops the rows of a page for which the program's filter is not true.  False: the page is bad. */
static bool
filter_page(const uint8_t *memory, rhh_page *page, const rhh_page_layout *layout, page_columns *columns)
{
	if (!make_inputs(memory, page, layout, layout->filter_inputs, columns) ||
		rhh_program_run(&columns->filter, columns->bytes, columns->values, columns->nulls, page->n_rows,
						columns->scratch, (uint8_t *) columns->bad, (uint8_t *) columns->dropped).n_bad > 0)
		return false;
	drop_rows(page, columns->dropped, 0);
	page->filtered = 1;
	return true;
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

			if (!rhh_page_load_value(layout, load, column_bytes[load->column], &tuple, &null,
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

/* No column of a batch has a NULL from row `first` to `end`. */
static void
clear_bitmaps(const rhh_page_layout *layout, rhh_batch *rows, uint32_t first, uint32_t end)
{
	for (uint32_t i = 0; i < layout->n_loads + layout->program.n_results; i++)
	{
		const uint32_t offset = rows->nulls_offset[rhh_page_column(layout, i)];
		uint32_t	row = first;

		if (offset == 0)
			continue;
		for (; row < end && row % 8 != 0; row++)
			set_bit(rows->base + offset, row, false);
		if (row < end)
			memset(rows->base + offset + row / 8, 0, (end - row + 7) / 8);
	}
}

/*
 * Makes rows of a page, a tuple at a time, from row `at` on, of those that the filter keeps.  False: it is bad, and as it was.
 */
static bool
read_page(const uint8_t *memory, rhh_page *page, const rhh_page_layout *layout,
		  const uint8_t *column_bytes, page_columns *columns, rhh_batch *rows, uint32_t at)
{
	rhh_page	kept = *page;

	if (rhh_page_has_filter(layout, page) && !filter_page(memory, &kept, layout, columns))
		return false;
	if (!load_page(memory, &kept, layout, column_bytes, rows, at) ||
		(columns != NULL && !compute_page(memory, &kept, layout, columns, rows, at)))
	{
		/* rows were begun to be made */
		clear_bitmaps(layout, rows, at, at + kept.n_rows);
		return false;
	}
	*page = kept;
	return true;
}

/* Does the device itself find out which rows a page has? */
static bool
finds_rows(const rhh_batch *given, const rhh_page *page)
{
	return given->cached || (given->all_visible && page->all_visible != 0);
}

/* ---------- segments ---------- */

/* A batch that is being read. */
typedef struct reading
{
	const uint8_t *memory;
	rhh_cpu_cache *cache;
	const rhh_batch *given;
	const rhh_page_layout *layout;
	const uint8_t *column_bytes;
	page_columns *columns;		/* NULL: nothing is computed */
	rhh_batch  *rows;
	uint32_t	n;				/* rows, so far */
	uint64_t	not_zero;		/* results of which not all are 0, by their columns, or not known to be */
	rhh_cpu_kept_source sources[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	rhh_cpu_ahead ahead;
	const rhh_cpu_kept_column *kept[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS]; /* of the chunk at hand, likewise */
} reading;

/* Copies n values, or if index is not NULL, those at these places, in ascending order. */
static void
copy_values(void *to, const void *from, uint32_t bytes, uint32_t n, const uint16_t *index)
{
#define GATHER(T) \
	for (uint32_t i = 0; i < n; i++) \
		((T *) to)[i] = ((const T *) from)[index[i]]

	if (index == NULL)
		memcpy(to, from, (size_t) n * bytes);
	else if (index[n - 1] + 1u - n < n / SPARSE)
	{
		/* few are left out: those between are copied at once */
		for (uint32_t i = 0, end; i < n; i = end)
		{
			const uint32_t ahead = index[i] - i;

			/* the first one that is not as far ahead */
			end = i + 1;
			for (uint32_t step = 32; step > 0; step /= 2)
				while (end + step <= n && index[end + step - 1] == end + step - 1 + ahead)
					end += step;
			memcpy((uint8_t *) to + (size_t) i * bytes, (const uint8_t *) from + (size_t) (i + ahead) * bytes,
				   (size_t) (end - i) * bytes);
		}
	}
	else if (bytes == 1)
		GATHER(uint8_t);
	else if (bytes == 2)
		GATHER(uint16_t);
	else if (bytes == 4)
		GATHER(uint32_t);
	else if (bytes == 8)
		GATHER(uint64_t);
	else
		GATHER(rhh_uint128);
#undef GATHER
}

/* The same of bits, from bit `first` of from to bit `at` of to. */
static void
copy_bits(uint8_t *to, uint32_t at, const uint8_t *from, uint32_t first, uint32_t n, const uint16_t *index)
{
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t r = first + (index != NULL ? index[i] : i);

		set_bit(to, at + i, (from[r / 8] >> r % 8 & 1) != 0);
	}
}

/*
 * Has the program's columns be rows of kept ones, n from row on, or those at these places: where they are, if they are all to be
 * read as they are.
 */
static void
give_inputs(const reading *r, uint32_t which, uint32_t pages, uint32_t row, uint32_t n, const uint16_t *index,
			uint8_t **values, uint8_t **nulls)
{
	const page_columns *columns = r->columns;
	const uint32_t n_columns = r->layout->n_loads + r->layout->program.n_results;

	for (uint32_t i = 0; i < r->layout->n_inputs; i++)
	{
		const rhh_cpu_kept_column *from = r->kept[r->layout->n_loads + i];
		const uint32_t c = n_columns + i;
		uint8_t    *at = from->values + (size_t) row * from->source.bytes;

		if ((which >> i & 1) == 0)
			continue;
		values[c] = at;
		if (index != NULL)
			copy_values(values[c] = columns->values[c], at, from->source.bytes, n, index);
		nulls[c] = NULL;
		if ((from->nulls & pages) != 0)
			copy_bits(nulls[c] = columns->nulls[c], 0, from->null_rows, row, n, index);
	}
}

/* Is one of n bits set, from bit `first` on, or one beside them in a byte? */
static bool
any_bit(const uint8_t *bits, uint32_t first, uint32_t n)
{
	uint8_t		any = 0;

	for (uint32_t b = first / 8; b < (first + n + 7) / 8; b++)
		any |= bits[b];
	return any != 0;
}

/* Stores which of n rows of column c from row `at` on are NULL, of which none is yet: null_rows has a bit for each from bit `first` on. */
static void
store_nulls(const reading *r, uint32_t c, uint32_t at, const uint8_t *null_rows, uint32_t first, uint32_t n, const uint16_t *index)
{
	if (any_bit(null_rows, first, index == NULL ? n : index[n - 1] + 1u))
		copy_bits(r->rows->base + r->rows->nulls_offset[c], at, null_rows, first, n, index);
}

/*
 * Makes rows of up to STEP_ROWS rows of kept columns, from row `from` on, from row `at` of the batch on; dropped gets a bit for each that
 * the filter has dropped.  Returns how many are left; UINT32_MAX: the program is bad for one.
 */
static uint32_t
read_step(reading *r, bool filter, uint32_t pages, uint32_t from, uint32_t n, uint32_t at, uint64_t *dropped)
{
	const rhh_page_layout *layout = r->layout;
	page_columns *columns = r->columns;
	uint8_t    *values[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint8_t    *nulls[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint16_t	kept[STEP_ROWS];
	const uint16_t *index = NULL;

	if (columns != NULL)
	{
		memcpy(values, columns->values, sizeof(values));
		memcpy(nulls, columns->nulls, sizeof(nulls));
	}
	if (filter)
	{
		uint32_t	m = 0;

		give_inputs(r, layout->filter_inputs, pages, from, n, NULL, values, nulls);
		if (rhh_program_run(&columns->filter, columns->bytes, values, nulls, n, columns->scratch,
							(uint8_t *) columns->bad, (uint8_t *) dropped).n_bad > 0)
			return UINT32_MAX;
		for (uint32_t i = 0; i < n; i++)
		{
			kept[m] = (uint16_t) i;
			m += (dropped[i / 64] >> i % 64 & 1) == 0;
		}
		if (m == 0)
			return 0;
		if (m < n)
			index = kept;
		n = m;
	}
	for (uint32_t l = 0; l < layout->n_loads; l++)
	{
		const rhh_cpu_kept_column *column = r->kept[l];
		const uint32_t c = layout->loads[l].column;
		const uint32_t bytes = r->column_bytes[c];

		copy_values(r->rows->base + r->rows->values_offset[c] + (size_t) at * bytes, column->values + (size_t) from * bytes,
					bytes, n, index);
		if ((column->nulls & pages) != 0)
			store_nulls(r, c, at, column->null_rows, from, n, index);
	}
	if (layout->program.n_results == 0)
		return n;
	give_inputs(r, rhh_page_all_inputs(layout), pages, from, n, index, values, nulls);
	for (uint32_t i = 0; i < layout->program.n_results; i++)
	{
		const uint32_t c = layout->program.results[i].column;

		values[c] = r->rows->base + r->rows->values_offset[c] + (size_t) at * r->column_bytes[c];
	}
	if (rhh_program_run(&columns->results, columns->bytes, values, nulls, n, columns->scratch,
						(uint8_t *) columns->bad, (uint8_t *) columns->dropped).n_bad > 0)
		return UINT32_MAX;
	for (uint32_t i = 0; i < layout->program.n_results; i++)
	{
		const uint32_t c = layout->program.results[i].column;

		store_nulls(r, c, at, nulls[c], 0, n, NULL);
		if ((r->not_zero >> c & 1) == 0 && !rhh_cpu_all_zero(values[c], (size_t) n * r->column_bytes[c]))
			r->not_zero |= UINT64_C(1) << c;
	}
	return n;
}

/*
 * Makes rows of a segment: n pages of a chunk whose rows are `from` to end in the columns that are kept.  False: nothing has changed,
 * as something of them is not kept, or bad.
 */
static bool
read_segment(reading *r, rhh_page *segment, const uint32_t *slots, uint32_t n, uint32_t from, uint32_t end)
{
	const rhh_page_layout *layout = r->layout;
	const bool	filter = rhh_page_has_filter(layout, &segment[0]);
	uint64_t	dropped[RHH_CPU_CHUNK_ROWS / 64 + STEP_ROWS / 64];
	uint32_t	pages = 0;
	uint32_t	at = r->n;
	uint32_t	row = 0;

	for (uint32_t p = 0; p < n; p++)
	{
		if (rhh_page_has_filter(layout, &segment[p]) != filter)
			return false;
		pages |= UINT32_C(1) << slots[p] % RHH_CPU_CHUNK_PAGES;
	}
	if (end - from > r->given->n_rows - at)
		return false;
	for (uint32_t i = 0; i < layout->n_loads + layout->n_inputs; i++)
	{
		const bool	not_null = i < layout->n_loads ? layout->loads[i].not_null :
			layout->inputs[i - layout->n_loads].not_null;

		if ((r->kept[i]->bad & pages) != 0 || (not_null && (r->kept[i]->nulls & pages) != 0))
			return false;
	}
	for (uint32_t i = from; i < end; i += STEP_ROWS)
	{
		const uint32_t step = end - i < STEP_ROWS ? end - i : STEP_ROWS;
		const uint32_t made = read_step(r, filter, pages, i, step, at, dropped + (i - from) / 64);

		if (made == UINT32_MAX)
		{
			/* rows were begun to be made */
			clear_bitmaps(layout, r->rows, r->n, r->n + (end - from));
			return false;
		}
		at += made;
	}
	for (uint32_t p = 0; p < n; p++)
	{
		const uint32_t before = segment[p].n_rows;

		segment[p].first_row = r->n;
		if (filter && at - r->n < end - from)
			drop_rows(&segment[p], dropped, row);
		segment[p].filtered |= filter || finds_rows(r->given, &segment[p]);
		row += before;
		r->n += segment[p].n_rows;
	}
	return true;
}

/* ---------- batches ---------- */

/* A page is not there, or cannot be read. */
static void
mark_bad(rhh_page *page, uint32_t *n_bad)
{
	page->bad = RHH_PAGE_UNREAD;
	page->n_rows = 0;
	(*n_bad)++;
}

/* Are there rows of a page that was not found to be bad when the batch came before, and has some left? */
static bool
is_live(const rhh_batch *given, const rhh_page *page)
{
	return page->n_rows != 0 || (finds_rows(given, page) && page->bad == 0 && page->filtered == 0);
}

/* Finds the rows of a page that is all visible, as rhh_pages.h says.  False: it cannot tell. */
static bool
find_rows(const uint8_t *memory, rhh_page *page)
{
	const uint64_t header = rhh_page_header(memory);

	atomic_thread_fence(memory_order_acquire);
	if (!rhh_page_is_all_visible(header))
		return false;
	memset(page->visible, 0, sizeof(page->visible));
	for (uint32_t item = 0; item < rhh_page_header_lines(header); item++)
	{
		if (!rhh_page_has_tuple(memory, item))
			continue;
		if (!rhh_page_is_settled(memory, item, header))
			return false;
		page->visible[item / 64] |= UINT64_C(1) << item % 64;
	}
	atomic_thread_fence(memory_order_acquire);
	if (!rhh_page_is_unchanged(header, rhh_page_header(memory)))
		return false;
	page->n_rows = rhh_page_count(page->visible);
	return true;
}

/*
 * Where a page of a batch is, whose n_rows and visible are then known; NULL: it is nowhere.
 */
static const uint8_t *
find_page(const reading *r, rhh_page *page)
{
	const uint8_t *cached;
	rhh_page   *known;

	if (page->number < r->given->first_page || page->number >= r->given->end_page)
		return NULL;
	if (!r->given->cached)
	{
		const uint8_t *memory = r->memory + (uint64_t) page->number * RHH_PAGE_BYTES;

		return page->all_visible == 0 || page->n_rows > 0 || find_rows(memory, page) ? memory : NULL;
	}
	cached = rhh_cpu_cache_slot(r->cache, page->number, &known);
	if (cached == NULL || known->all_visible == 0)
		return NULL;
	if (page->filtered == 0)
	{
		memcpy(page->visible, known->visible, sizeof(page->visible));
		page->n_rows = known->n_rows;
	}
	return rhh_page_count(page->visible) == page->n_rows ? cached : NULL;
}

/* Makes rows of a page by itself. */
static void
read_one(reading *r, rhh_page *page, uint32_t *n_bad)
{
	const uint8_t *from;

	if (!is_live(r->given, page))
		return;
	from = find_page(r, page);
	page->first_row = r->n;
	if (from == NULL || page->n_rows > r->given->n_rows - r->n ||
		!read_page(from, page, r->layout, r->column_bytes, r->columns, r->rows, r->n))
	{
		mark_bad(page, n_bad);
		return;
	}
	page->filtered |= finds_rows(r->given, page);
	r->n += page->n_rows;
	r->not_zero = UINT64_MAX;
}

/*
 * The pages of those n that are live, by the bits that they have in their chunk.  If they are in memory they are copied to
 * their slots.
 */
static uint32_t
chunk_pages(const reading *r, rhh_page *pages, const uint32_t *slots, uint32_t n, uint32_t *n_bad)
{
	uint32_t	bits = 0;

	for (uint32_t p = 0; p < n; p++)
	{
		const bool	live = is_live(r->given, &pages[p]);
		const uint8_t *from = live ? find_page(r, &pages[p]) : NULL;

		/* nobody asks once more, and finds its rows then: it would be good, and its slot have another page */
		if (live && from == NULL)
			mark_bad(&pages[p], n_bad);

		/* of a page that has been filtered not all rows are known */
		if (from == NULL || (!r->given->cached && pages[p].filtered != 0))
			continue;
		if (!r->given->cached)
		{
			if (bits == 0)
				rhh_cpu_cache_begin(r->cache, slots[0] / RHH_CPU_CHUNK_PAGES);
			rhh_cpu_cache_keep(r->cache, slots[p], from, &pages[p]);
		}
		bits |= UINT32_C(1) << slots[p] % RHH_CPU_CHUNK_PAGES;
	}
	return bits;
}

/* Notes what is read after a chunk: pages of the batch from number p on; of pages of the cache nothing, as columns of them are mostly there. */
static void
look_ahead(reading *r, const rhh_page *pages, const uint32_t *slots, uint32_t p)
{
	rhh_cpu_ahead *ahead = &r->ahead;

	ahead->n = 0;
	if (r->given->cached)
		return;
	for (; ahead->n < RHH_CPU_CHUNK_PAGES && p < r->given->n_pages; ahead->n++, p++)
	{
		const uint32_t number = pages[p].number;
		rhh_page   *known;

		ahead->page[ahead->n] = number < r->given->first_page || number >= r->given->end_page ? NULL :
			r->memory + (uint64_t) number * RHH_PAGE_BYTES;
		ahead->slot[ahead->n] = rhh_cpu_cache_slot(r->cache, slots[p], &known);
	}
}

/*
 * Makes rows of n pages of a batch whose slots are, in ascending order, in one chunk of the cache.
 */
static void
read_chunk(reading *r, rhh_page *pages, const uint32_t *slots, uint32_t n, uint32_t *n_bad)
{
	const uint32_t number = slots[0] / RHH_CPU_CHUNK_PAGES;
	const uint32_t bits = chunk_pages(r, pages, slots, n, n_bad);
	const rhh_cpu_kept_chunk *chunk = bits == 0 ? NULL :
		rhh_cpu_use_columns(r->cache, number, bits, r->layout, r->sources,
							r->layout->n_loads + r->layout->n_inputs, &r->ahead, r->kept);
	uint32_t	last;

	for (uint32_t p = 0; p < n; p = last)
	{
		const uint32_t from = slots[p] % RHH_CPU_CHUNK_PAGES;
		uint32_t	end = from;

		/* whole pages, whose rows follow each other */
		for (last = p; chunk != NULL && last < n; last++)
		{
			const uint32_t i = slots[last] % RHH_CPU_CHUNK_PAGES;

			if ((bits >> i & 1) == 0 || (last > p && chunk->first_row[i] != chunk->first_row[end]) ||
				pages[last].n_rows != chunk->first_row[i + 1] - chunk->first_row[i])
				break;
			end = i + 1;
		}
		if (last > p && read_segment(r, &pages[p], &slots[p], last - p, chunk->first_row[from], chunk->first_row[end]))
			continue;
		if (last == p)
			last++;
		for (uint32_t i = p; i < last; i++)
			read_one(r, &pages[i], n_bad);
	}
	if (chunk != NULL)
		rhh_cpu_end_columns(r->cache, number);
}

/* The results that are known to be 0 in all rows, as the second limbs of most numerics are, by their columns. */
static uint64_t
zero_results(const reading *r)
{
	uint64_t	columns = 0;

	for (uint32_t i = 0; i < r->layout->program.n_results; i++)
		columns |= UINT64_C(1) << r->layout->program.results[i].column;
	return columns & ~r->not_zero;
}

/* Columns without NULLs are read faster if they have no bitmap; and a filter has none. */
static void
drop_bitmaps(const rhh_page_layout *layout, rhh_batch *rows)
{
	for (uint32_t i = 0; i < layout->n_loads + layout->program.n_results; i++)
	{
		const uint32_t c = rhh_page_column(layout, i);
		const uint8_t *nulls = rows->base + rows->nulls_offset[c];

		if (rows->nulls_offset[c] != 0 && !any_bit(nulls, 0, rows->n_rows))
			rows->nulls_offset[c] = 0;
	}
}

uint8_t *
rhh_cpu_read_pages(const uint8_t *memory, rhh_cpu_cache *cache, rhh_cpu_reserve *reserve, const rhh_batch *given,
				   const uint8_t *column_bytes, uint64_t room_bytes, rhh_batch *rows, size_t *bytes,
				   uint32_t *n_bad)
{
	rhh_page   *pages = (void *) (given->base + given->pages_offset);
	const rhh_page_layout *layout = (const void *) (given->base + given->layout_offset);
	const uint32_t *slots = given->slots_offset == 0 ? NULL : (const void *) (given->base + given->slots_offset);
	const bool	computes = layout->program.n_ops > 0;
	reading		r = {.memory = memory, .cache = cache, .given = given, .layout = layout, .column_bytes = column_bytes,
		.columns = computes ? make_columns(layout, column_bytes) : NULL, .rows = rows};
	uint64_t	used;
	uint32_t	end;

	*n_bad = 0;
	used = rhh_page_columns(layout, column_bytes, given->n_rows, false, rows->values_offset, rows->nulls_offset);
	/* of a size that comes again, so that it is not mapped and cleared each time */
	*bytes = (used + room_bytes + BATCH_STEP_BYTES - 1) / BATCH_STEP_BYTES * BATCH_STEP_BYTES;
	if (given->cached && rhh_is_beginning(&given->from))
		for (uint32_t p = 0; p < given->n_pages; p++)
			pages[p] = (rhh_page){.number = slots[p]};
	rows->base = *bytes > UINT32_MAX || (computes && r.columns == NULL) ? NULL :
		rhh_cpu_take_pages(reserve, *bytes, false);
	for (uint32_t p = 0; rows->base == NULL && p < given->n_pages; p++)
		if (is_live(given, &pages[p]))
			mark_bad(&pages[p], n_bad);
	if (rows->base != NULL)
	{
		clear_bitmaps(layout, rows, 0, given->n_rows);
		if (slots != NULL)
			rhh_cpu_kept_sources(layout, column_bytes, r.sources);
		for (uint32_t p = 0; p < given->n_pages; p = end)
		{
			end = p + 1;
			if (slots == NULL || slots[p] == UINT32_MAX)
			{
				read_one(&r, &pages[p], n_bad);
				continue;
			}
			while (end < given->n_pages && slots[end] != UINT32_MAX && slots[end] > slots[end - 1] &&
				   slots[end] / RHH_CPU_CHUNK_PAGES == slots[p] / RHH_CPU_CHUNK_PAGES)
				end++;
			look_ahead(&r, pages, slots, end);
			read_chunk(&r, &pages[p], &slots[p], end - p, n_bad);
		}
	}
	free(r.columns);
	rows->n_rows = r.n;
	rows->n_pages = 0;
	rows->used_bytes = rows->refused_offset = (uint32_t) used;
	rows->zero_columns = zero_results(&r);
	if (r.n > 0)
		drop_bitmaps(layout, rows);
	else if (rows->base != NULL)
	{
		rhh_cpu_give_pages(reserve, rows->base, *bytes);
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
