/*
 * rhh_read_pages.cuh
 *		Rows out of heap pages (rhh_pages.h): the kernel that reads pages where they lie, in
 *		the host's memory, and makes columns of their tuples.
 *
 * A block takes a page at a time.  It copies the page to its shared memory, all of it, or, if the layout
 * says that much less will do, its line pointers and then the first bytes of each tuple; then a thread has
 * a line pointer.  Where a page's rows begin among those of
 * the batch its caller has said, so no page waits for another.  What has been written for a bad page
 * means nothing: the host then counts the rows anew, without that page, and all pages are read
 * once more.
 *
 * A page may also be copied to a slot of the cache, as it is, and be read from there later.  Then what is visible of it
 * is with it.
 *
 * If rows are to be dropped first, or the page is in the cache, only that says how many rows a page has.  So these pages find
 * their places among the batch's rows themselves, in any order, by a counter; and the caller gets to know
 * which rows of a page are left, and where they are, by which a batch that is read once more is as it was.
 */
#ifndef RHH_READ_PAGES_CUH
#define RHH_READ_PAGES_CUH

#include "rhh_pages.h"
#include "cuda/rhh_cuda_tuning.h"
#include "cuda/rhh_joins.cuh"
#include "cuda/rhh_programs.cuh"

/* Rows of pages that find their places as they are read, ... */
struct rhh_page_counts
{
	uint32_t	placed;
	uint32_t	dropped;		/* ... and those that do not need one */
};

/* What the host has to know of a batch's pages; in its memory. */
struct rhh_page_notes
{
	uint64_t	null_columns;	/* which ones have a NULL */
	uint32_t	any_bad;
	rhh_page_counts counts;
};

/* A page in a block's shared memory. */
struct rhh_page_space
{
	uint4		bytes[RHH_PAGE_BYTES / sizeof(uint4)];
	rhh_page	page;
	uint16_t	items[RHH_PAGE_ITEMS];	/* line pointers of its rows */
	uint32_t	bad;			/* a row for which the filter is, or of which its inputs are */
	uint32_t	slot;			/* where a copy of it goes; RHH_NO_SLOT: nowhere */
};

/* What a batch has to do with the cache. */
struct rhh_page_slots
{
	uint8_t *const *slabs;		/* NULL: there are none */
	const uint32_t *to;			/* where copies of its pages go; NULL: nowhere */
	bool		cached;			/* that is where its pages are */
};

/* The page of a slot; *known is what is known of it.  NULL: there is no such slot. */
RHH_DEV uint4 *
rhh_slot_at(const rhh_page_slots &slots, uint32_t slot, rhh_page **known)
{
	uint8_t    *slab = slots.slabs != NULL && slot / RHH_SLAB_PAGES < RHH_MAX_SLABS
		? slots.slabs[slot / RHH_SLAB_PAGES] : NULL;

	if (slab == NULL)
		return NULL;
	*known = (rhh_page *) (slab + (uint64_t) RHH_SLAB_PAGES * RHH_PAGE_BYTES) + slot % RHH_SLAB_PAGES;
	return (uint4 *) (slab + (uint64_t) (slot % RHH_SLAB_PAGES) * RHH_PAGE_BYTES);
}

/* The line pointer, from 0, of a page in shared memory: *offset of its tuple, in bytes, and *length. */
RHH_DEV void
rhh_tuple_at(const rhh_page_space *in_hand, uint32_t item, uint32_t *offset, uint32_t *length)
{
	const uint32_t pointer = rhh_page_4_bytes((const uint8_t *) in_hand->bytes + 24 + 4 * item);

	*offset = pointer & 0x7fff;
	*length = pointer >> 17;
}

/* Copies bytes of a page, from begin up to, but without, end, by n threads, of which this is one. */
RHH_DEV void
rhh_copy_bytes(rhh_page_space *in_hand, const uint4 *from, uint32_t begin, uint32_t end, uint32_t thread,
			   uint32_t n)
{
	const uint32_t last = ::min((end + 15) / 16, (uint32_t) (RHH_PAGE_BYTES / 16));

	for (uint32_t i = begin / 16 + thread; i < last; i += n)
		in_hand->bytes[i] = rhh_load_streaming(&from[i]);
}

/*
 * By a block: copies line pointers of a page and the first prefix_bytes of each tuple.  lines is the number
 * of line pointers up to the last one that is visible.
 */
RHH_DEV void
rhh_copy_prefixes(rhh_page_space *in_hand, const uint4 *from, uint32_t lines, uint32_t prefix_bytes)
{
	const rhh_page &page = in_hand->page;
	/* tuples begin at multiples of 8 */
	const uint32_t n_chunks = (prefix_bytes + 8 + 15) / 16;

	rhh_copy_bytes(in_hand, from, 0, 24 + 4 * lines, threadIdx.x, blockDim.x);
	for (uint32_t item = threadIdx.x; item < lines; item += blockDim.x)
		if ((page.visible[item / 64] >> item % 64 & 1) != 0)
			in_hand->items[rhh_page_rank(page.visible, item)] = (uint16_t) item;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < page.n_rows * n_chunks; i += blockDim.x)
	{
		uint32_t	offset,
					length;
		uint32_t	at;

		rhh_tuple_at(in_hand, in_hand->items[i / n_chunks], &offset, &length);
		at = offset / 16 + i % n_chunks;
		if (at * 16 < offset + length && at < RHH_PAGE_BYTES / 16)
			in_hand->bytes[at] = rhh_load_streaming(&from[at]);
	}
}

/* What the program of a layout reads: inputs that have been made of a tuple. */
struct rhh_load_of_inputs
{
	const rhh_page_layout &layout;
	uint64_t (*inputs)[2];
	uint32_t	nulls;

	__device__ RHH_INLINE bool operator()(uint32_t c, uint64_t *words) const
	{
		const uint32_t i = c - layout.n_loads - layout.program.n_results;

		words[0] = inputs[i][0];
		words[1] = inputs[i][1];
		return (nulls >> i & 1) != 0;
	}
};

/* Stores a value of a row; *nulls gets a bit for each column that is NULL. */
RHH_DEV void
rhh_store_cell(const rhh_row_columns &columns, uint32_t row, uint32_t c, bool null, uint64_t low,
			   uint64_t high, uint64_t *nulls)
{
	rhh_store_value(columns.base + columns.values_offset[c], row, columns.bytes[c], low, high);
	if (columns.nulls_offset[c] != 0)
		columns.base[columns.nulls_offset[c] + row] = null;
	if (null)
		*nulls |= (uint64_t) 1 << c;
}

/* Computes columns of a row of a tuple.  False: the page is bad, or more has to be known. */
RHH_DEV bool
rhh_compute_tuple(const rhh_page_tuple &tuple, const rhh_page_layout &layout,
				  const rhh_row_columns &columns, uint32_t row, uint64_t *nulls)
{
	const rhh_program &program = layout.program;
	uint64_t	inputs[RHH_PAGE_INPUTS][2];
	rhh_load_of_inputs load = {layout, inputs, 0};
	rhh_results results;

	if (!rhh_page_read_inputs(&layout, rhh_page_all_inputs(&layout), tuple, inputs, &load.nulls))
		return false;
	rhh_run_ops(program, program.n_ops, load, &results);
	for (uint32_t r = 0; r < program.n_results; r++)
	{
		const uint32_t op = program.results[r].op;
		const uint8_t flags = results.flags[op];

		if ((flags & RHH_BAD) != 0)
			return false;
		rhh_store_cell(columns, row, program.results[r].column, flags != 0,
					   flags != 0 ? 0 : results.words[op][0], flags != 0 ? 0 : results.words[op][1],
					   nulls);
	}
	return true;
}

/*
 * Makes a row of the tuple at a line pointer, of which `known` bytes are there, in columns that have bytes
 * for NULLs.  False: the page is bad, or more has to be known.  *nulls gets a bit for each column that is
 * NULL.
 */
template <bool COMPUTES>
RHH_DEV bool
rhh_read_tuple(const uint8_t *page, uint32_t item, uint32_t known, const rhh_page_layout &layout,
			   const rhh_row_columns &columns, uint32_t row, uint64_t *nulls)
{
	rhh_page_tuple tuple;
	rhh_page_tuple walked;

	if (!rhh_page_find(page, item, known, &tuple))
		return false;
	walked = tuple;
	for (uint32_t l = 0; l < layout.n_loads; l++)
	{
		const rhh_page_load &load = layout.loads[l];
		bool		null;
		uint64_t	low,
					high;

		if (!rhh_page_load_value(&layout, &load, columns.bytes[load.column], &walked, &null, &low,
								 &high))
			return false;
		rhh_store_cell(columns, row, load.column, null, low, high, nulls);
	}
	if constexpr (COMPUTES)
		return rhh_compute_tuple(tuple, layout, columns, row, nulls);
	return true;
}

/*
 * Is the program's filter true for the tuple at a line pointer, of which `known` bytes are there?  False: the
 * page is bad, or more has to be known.
 */
RHH_DEV bool
rhh_filter_tuple(const uint8_t *page, uint32_t item, uint32_t known, const rhh_page_layout &layout,
				 bool *keep)
{
	const rhh_program &program = layout.program;
	uint64_t	inputs[RHH_PAGE_INPUTS][2];
	rhh_load_of_inputs load = {layout, inputs, 0};
	rhh_page_tuple tuple;
	rhh_results results;

	if (!rhh_page_find(page, item, known, &tuple) ||
		!rhh_page_read_inputs(&layout, layout.filter_inputs, tuple, inputs, &load.nulls))
		return false;
	rhh_run_ops(program, program.filter + 1u, load, &results);
	*keep = results.flags[program.filter] == 0 && results.words[program.filter][0] != 0;
	return (results.flags[program.filter] & RHH_BAD) == 0;
}

/*
 * Calls read(known) for the tuple at a line pointer; if that returns false, and not all of the page is there,
 * once more with all of the tuple.
 */
template <class Read>
RHH_DEV bool
rhh_with_tuple(rhh_page_space *in_hand, const uint4 *from, uint32_t item, uint32_t known,
			   const Read &read)
{
	uint32_t	offset,
				length;

	if (read(known))
		return true;
	if (known == RHH_PAGE_BYTES)
		return false;
	/* others that lie in the same 16 bytes get what they have */
	rhh_tuple_at(in_hand, item, &offset, &length);
	rhh_copy_bytes(in_hand, from, offset, offset + length, 0, 1);
	return read(RHH_PAGE_BYTES);
}

/* By a block: copies the page in hand, which is there as a whole, to its slot. */
RHH_DEV void
rhh_keep_page(const rhh_page_space *in_hand, const rhh_page_slots &slots)
{
	rhh_page   *known;
	uint4	   *to = rhh_slot_at(slots, in_hand->slot, &known);

	if (to == NULL)
		return;
	for (uint32_t i = threadIdx.x; i < RHH_PAGE_BYTES / sizeof(uint4); i += blockDim.x)
		to[i] = in_hand->bytes[i];
	if (threadIdx.x == 0)
		*known = in_hand->page;
}

/* By a block: tells the caller all of a page but whether it is bad. */
RHH_DEV void
rhh_tell_page(volatile uint32_t *to, const rhh_page &page)
{
	for (uint32_t i = threadIdx.x; i < sizeof(rhh_page) / sizeof(uint32_t); i += blockDim.x)
		if (i != offsetof(rhh_page, bad) / sizeof(uint32_t))
			to[i] = ((const uint32_t *) &page)[i];
}

/* By one thread: finds a place for n rows of the page in hand by counts, among the batch's n_rows, and drops the others. */
RHH_DEV void
rhh_place_page(rhh_page_space *in_hand, uint32_t n, uint32_t n_rows, rhh_page_counts *counts)
{
	rhh_page &page = in_hand->page;

	page.n_dropped = page.n_rows - n;
	page.n_rows = n;
	page.filtered = 1;
	if (page.n_dropped > 0)
		atomicAdd(&counts->dropped, page.n_dropped);
	page.first_row = n > 0 ? atomicAdd(&counts->placed, n) : 0;
	/* the caller's numbers may be wrong */
	if (page.first_row > n_rows || n > n_rows - page.first_row)
		in_hand->bad = 1;
}

/*
 * By a block: drops rows of the page in hand, and finds a place for the others by counts, of the
 * batch's n_rows.  False: the page is bad.
 */
RHH_DEV bool
rhh_filter_page(rhh_page_space *in_hand, const uint4 *from, uint32_t lines, uint32_t known,
				const rhh_page_layout &layout, uint32_t n_rows, rhh_page_counts *counts)
{
	rhh_page &page = in_hand->page;

	if (threadIdx.x == 0)
		in_hand->bad = 0;
	__syncthreads();
	for (uint32_t item = threadIdx.x; item < lines; item += blockDim.x)
	{
		bool		keep = false;

		if ((*(const volatile uint64_t *) &page.visible[item / 64] >> item % 64 & 1) == 0)
			continue;
		if (!rhh_with_tuple(in_hand, from, item, known, [&](uint32_t bytes) {
				return rhh_filter_tuple((const uint8_t *) in_hand->bytes, item, bytes, layout, &keep);
			}))
			in_hand->bad = 1;
		else if (!keep)
			atomicAnd((unsigned long long *) &page.visible[item / 64],
					  ~((unsigned long long) 1 << item % 64));
	}
	__syncthreads();
	if (threadIdx.x == 0 && in_hand->bad == 0)
	{
		const uint32_t n = rhh_page_count(page.visible);

		rhh_place_page(in_hand, n, n_rows, counts);
	}
	__syncthreads();
	return in_hand->bad == 0;
}

/*
 * By a block: where the page in hand is in the cache; NULL: it is not.  If it is fresh, finds out what is
 * visible of it.
 */
RHH_DEV const uint4 *
rhh_find_cached(rhh_page_space *in_hand, const rhh_page_slots &slots, uint32_t first, uint32_t end, bool fresh)
{
	const uint32_t slot = in_hand->page.number;
	rhh_page   *known = NULL;
	const uint4 *from = slot >= first && slot < end ? rhh_slot_at(slots, slot, &known) : NULL;

	/* all have seen what fresh is made of */
	__syncthreads();
	if (fresh && from != NULL && threadIdx.x < RHH_PAGE_ITEMS / 64)
		in_hand->page.visible[threadIdx.x] = known->visible[threadIdx.x];
	if (fresh && from != NULL && threadIdx.x == 0)
		in_hand->page.n_rows = known->n_rows;
	__syncthreads();
	return from;
}

/*
 * By a block: a page of the cache that is good, as far as is known, finds its place, unless rows are to be
 * dropped first.  One that is not has a row, so that the host counts it among the bad ones.  Returns whether it is good.
 */
RHH_DEV bool
rhh_begin_cached(rhh_page_space *in_hand, bool good, bool has_filter, uint32_t n_rows, rhh_page_counts *counts)
{
	if (threadIdx.x == 0)
	{
		in_hand->bad = !good;
		if (!good)
			in_hand->page.n_rows = 1;
		else if (!has_filter)
			rhh_place_page(in_hand, in_hand->page.n_rows, n_rows, counts);
	}
	__syncthreads();
	return in_hand->bad == 0;
}

/*
 * Makes columns of the rows of pages, of which there are n_rows at most.  memory is the first byte
 * of page 0; pages from first_page up to, but without, end_page may be read.  *counts, at first 0, is
 * used if rows are to be dropped.
 */
template <bool COMPUTES>
static __global__ void __launch_bounds__(RHH_CUDA_PAGE_THREADS)
rhh_read_pages_kernel(const uint8_t *memory, uint32_t first_page, uint32_t end_page,
					  rhh_page *pages, uint32_t n_pages, const rhh_page_slots slots,
					  const __grid_constant__ rhh_page_layout layout,
					  const __grid_constant__ rhh_row_columns columns, uint32_t n_rows,
					  rhh_page_counts *counts, rhh_page_notes *notes)
{
	RHH_DYNAMIC_SHARED(rhh_page_space, in_hand);
	const uint32_t t = threadIdx.x;

	for (uint32_t p = blockIdx.x; p < n_pages; p += gridDim.x)
	{
		rhh_page &page = in_hand->page;
		const uint4 *from;
		uint32_t	lines = RHH_PAGE_ITEMS;
		uint32_t	known = RHH_PAGE_BYTES;
		uint64_t	nulls = 0;
		bool		fresh;
		bool		good;

		for (uint32_t i = t; i < sizeof(rhh_page) / sizeof(uint32_t); i += blockDim.x)
			((uint32_t *) &page)[i] = ((const volatile uint32_t *) &pages[p])[i];
		if (t == 0)
			in_hand->slot = slots.to == NULL ? RHH_NO_SLOT : ((const volatile uint32_t *) slots.to)[p];
		__syncthreads();
		/* the same for the whole block */
		fresh = slots.cached && page.n_rows == 0 && page.bad == 0 && page.filtered == 0;
		if (slots.cached)
			from = rhh_find_cached(in_hand, slots, first_page, end_page, fresh);
		else
			from = page.number >= first_page && page.number < end_page
				? (const uint4 *) (memory + (uint64_t) page.number * RHH_PAGE_BYTES) : NULL;
		good = from != NULL && page.n_rows > 0 && page.first_row <= n_rows &&
			page.n_rows <= n_rows - page.first_row && rhh_page_count(page.visible) == page.n_rows;
		/* without rows it was found to be bad before, or they have been dropped */
		if (page.n_rows == 0 && !fresh)
		{
			__syncthreads();
			continue;
		}
		while (lines > 0 && (page.visible[(lines - 1) / 64] >> (lines - 1) % 64 & 1) == 0)
			lines--;
		if (good && layout.prefix_bytes > 0 && slots.cached &&
			2 * (24 + 4 * lines + page.n_rows * (layout.prefix_bytes + RHH_CUDA_SECTOR_BYTES)) < RHH_PAGE_BYTES)
		{
			known = layout.prefix_bytes;
			rhh_copy_prefixes(in_hand, from, lines, known);
		}
		else if (good && layout.prefix_bytes > 0 && !slots.cached && in_hand->slot == RHH_NO_SLOT &&
				 (24 + 4 * lines + page.n_rows * (layout.prefix_bytes + RHH_CUDA_BUS_LINE_BYTES)) /
				 RHH_CUDA_BUS_LINE_BYTES < RHH_CUDA_PREFIX_LINES)
		{
			known = layout.prefix_bytes;
			rhh_copy_prefixes(in_hand, from, lines, known);
		}
		else if (good)
			rhh_copy_bytes(in_hand, from, 0, RHH_PAGE_BYTES, t, blockDim.x);
		__syncthreads();
		/* what has been filtered has not all rows any more */
		if (good && in_hand->slot != RHH_NO_SLOT && page.filtered == 0)
			rhh_keep_page(in_hand, slots);
		if (fresh)
		{
			good = rhh_begin_cached(in_hand, good, layout.program.has_filter, n_rows, counts);
			rhh_tell_page((volatile uint32_t *) &pages[p], page);
			/* until the caller knows what was visible it does not change */
			__syncthreads();
		}
		if constexpr (COMPUTES)
			if (good && rhh_page_has_filter(&layout, &page))
			{
				good = rhh_filter_page(in_hand, from, lines, known, layout, n_rows, counts);
				if (good)
					rhh_tell_page((volatile uint32_t *) &pages[p], page);
			}
		for (uint32_t item = t; item < lines && good; item += blockDim.x)
		{
			uint32_t	row;

			if ((page.visible[item / 64] >> item % 64 & 1) == 0)
				continue;
			row = page.first_row + rhh_page_rank(page.visible, item);
			good = rhh_with_tuple(in_hand, from, item, known, [&](uint32_t bytes) {
				return rhh_read_tuple<COMPUTES>((const uint8_t *) in_hand->bytes, item, bytes, layout,
												columns, row, &nulls);
			});
		}
		if (nulls != 0)
			atomicOr((unsigned long long *) &notes->null_columns, (unsigned long long) nulls);
		if (!good)
		{
			pages[p].bad = RHH_PAGE_UNREAD;
			notes->any_bad = 1;
		}
		/* the next page comes where this one is */
		__syncthreads();
	}
}

/* Rows of a batch were refused: their pages get to know. */
static __global__ void
rhh_refuse_pages_kernel(rhh_page *pages, uint32_t n_pages, const uint32_t *refused)
{
	for (uint32_t p = blockIdx.x * blockDim.x + threadIdx.x; p < n_pages; p += gridDim.x * blockDim.x)
	{
		rhh_page	page = pages[p];

		if (rhh_page_refuse(&page, refused))
			pages[p] = page;
	}
}

#endif							/* RHH_READ_PAGES_CUH */
