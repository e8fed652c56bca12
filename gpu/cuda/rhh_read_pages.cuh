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
 * A page may also be copied to a slot of the cache, and be read from there later.  Then what is visible of it
 * is with it.  If all pages of a batch are, a kernel that does nothing else copies them, or parts of them, and they are read there.
 * Pages of the cache have a kernel of their own, in which a block has some of them at a time, and a thread has a row of
 * whichever of these, so that most threads have one.
 *
 * If rows are to be dropped first, or have to be found, or the page is in the cache, only that says how many rows a page has.  So these pages find
 * their places among the batch's rows themselves, in any order, by a counter; and the caller gets to know
 * which rows of a page are left, and where they are, by which a batch that is read once more is as it was.
 */
#ifndef RHH_READ_PAGES_CUH
#define RHH_READ_PAGES_CUH

#include <type_traits>

#include "rhh_pages.h"
#include "cuda/rhh_cuda_tuning.h"
#include "cuda/rhh_joins.cuh"
#include "cuda/rhh_page_plan.cuh"
#include "cuda/rhh_programs.cuh"

/* By which pages find their places as they are read; in the device's memory, and all 0 between two kernels. */
struct rhh_page_counts
{
	uint32_t	placed;			/* rows that have places, ... */
	uint32_t	dropped;		/* ... and that do not need one */
	uint32_t	n_ended;		/* blocks */

	/* of the kernel that copies pages */
	uint32_t	n_taken;		/* pages, but for the first one of each block */
	uint32_t	n_copied;		/* blocks that have ended */
};

/* What the host has to know of a batch's pages; in its memory. */
struct rhh_page_notes
{
	uint64_t	null_columns;	/* which ones have a NULL, ... */
	uint64_t	limb_columns;	/* ... and of limbs but the first, which ones have another number than 0 */
	uint32_t	any_bad;
	uint32_t	placed;			/* as above, when all blocks have ended */
	uint32_t	dropped;
};

/* Columns of all pages of a block, as in rhh_page_notes, in its shared memory. */
struct rhh_noted_columns
{
	uint64_t	nulls;
	uint64_t	limbs;
};

/* A page in a block's shared memory. */
struct rhh_page_space
{
	rhh_page	page;
	uint32_t	bad;			/* a row for which the filter is, or of which its inputs are */
	uint32_t	slot;			/* where a copy of it goes; RHH_NO_SLOT: nowhere */
	uint32_t	next;			/* page of the batch, for a block that takes one after the other */
	rhh_noted_columns noted;
	uint16_t	items[RHH_PAGE_ITEMS];	/* line pointers of its rows */
	uint64_t	header;			/* of one whose rows have to be found, as it was at first */
	alignas(16) uint4 bytes[RHH_PAGE_BYTES / sizeof(uint4)];
};

/* A page of the cache. */
struct rhh_cached_page
{
	rhh_page	page;
	const uint8_t *bytes;		/* where it is */
	uint32_t	lines;			/* line pointers up to the last one that is visible */
	uint32_t	first_item;		/* lines, or rows, that a pass has of the block's pages before it */
	bool		is_read;
	bool		fresh;			/* what is visible of it only its slot says */
	bool		bad;
};

static_assert(RHH_CUDA_CACHED_RUN <= RHH_WARP_SIZE && RHH_CUDA_CACHED_THREADS % RHH_WARP_SIZE == 0,
			  "each page that a block has is one of a lane of its first warp");

/* The pages of a block in its shared memory. */
struct rhh_cached_pages
{
	rhh_noted_columns noted;
	uint32_t	n_items;		/* of all of them */
	rhh_cached_page pages[RHH_CUDA_CACHED_RUN];
};

/* What of pages is copied to the cache. */
struct rhh_page_parts
{
	uint32_t	prefix_bytes;	/* of most tuples, as in a layout; 0: all of a page */
	uint32_t	n_attributes;	/* of the others, the bytes up to the last one of these */
	uint32_t	last_known;
	rhh_page_attribute attributes[RHH_PAGE_ATTRIBUTES];
};

/* What a batch has to do with the cache. */
struct rhh_page_slots
{
	uint8_t *const *slabs;		/* NULL: there are none */
	const uint32_t *numbers;	/* where copies of its pages go, or where its pages are; NULL: nowhere, or
								 * the pages say that */
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

/*
 * Bytes of a page in the host's memory, as they are now: what another block has read of it may still be in the
 * SM's cache, and older than the page's header.
 */
template <class Word>
RHH_DEV Word
rhh_load_now(const Word *p)
{
#ifdef __CUDA_ARCH__
	return __ldcv(p);
#else
	return *p;
#endif
}

/* By a block: copies the first bytes of a page. */
RHH_DEV void
rhh_copy_bytes(rhh_page_space *in_hand, const uint4 *from, uint32_t n_bytes)
{
	const uint32_t end = ::min((n_bytes + 15) / 16, (uint32_t) (RHH_PAGE_BYTES / 16));

	for (uint32_t i = threadIdx.x; i < end; i += blockDim.x)
		in_hand->bytes[i] = rhh_load_now(&from[i]);
}

/*
 * Of the tuple at a line pointer, which begins at a multiple of 8, what is copied first: from *begin up to, but without, *end,
 * in 16 bytes.  Nobody reads its first 16 bytes, which say who has added and deleted it.
 */
RHH_DEV void
rhh_prefix_of(const rhh_page_space *in_hand, uint32_t item, uint32_t prefix_bytes, uint32_t *begin, uint32_t *end)
{
	uint32_t	offset,
				length;

	rhh_tuple_at(in_hand, item, &offset, &length);
	*begin = (offset + 16) / 16;
	*end = ::min((offset + ::min(length, prefix_bytes) + 15) / 16, (uint32_t) (RHH_PAGE_BYTES / 16));
}

/* The most chunks of 16 bytes that a prefix has. */
RHH_DEV uint32_t
rhh_prefix_chunks(uint32_t prefix_bytes)
{
	return ::max((prefix_bytes + 8 + 15) / 16, 2u) - 1;
}

/* By n threads, of which this is the i-th: copies what is behind the prefix of the tuple at a line pointer, and of no other tuple. */
RHH_DEV void
rhh_copy_rest(rhh_page_space *in_hand, const uint4 *from, uint32_t item, uint32_t prefix_bytes, uint32_t i, uint32_t n)
{
	uint32_t	begin,
				end,
				offset,
				length;

	rhh_prefix_of(in_hand, item, prefix_bytes, &begin, &end);
	rhh_tuple_at(in_hand, item, &offset, &length);
	begin = ::max(begin, end) * 2;
	end = ::min((offset + length + 7) / 8, (uint32_t) (RHH_PAGE_BYTES / 8));
	for (uint32_t at = begin + i; at < end; at += n)
		((uint2 *) in_hand->bytes)[at] = rhh_load_now(&((const uint2 *) from)[at]);
}

/*
 * By a block: copies line pointers of a page, unless they are there, and the prefix of each tuple.  lines is the
 * number of line pointers up to the last one that is visible.
 */
RHH_DEV void
rhh_copy_prefixes(rhh_page_space *in_hand, const uint4 *from, uint32_t lines, bool has_lines, uint32_t prefix_bytes)
{
	const rhh_page &page = in_hand->page;
	const uint32_t n_chunks = rhh_prefix_chunks(prefix_bytes);

	if (!has_lines)
		rhh_copy_bytes(in_hand, from, 24 + 4 * lines);
	for (uint32_t item = threadIdx.x; item < lines; item += blockDim.x)
		if ((page.visible[item / 64] >> item % 64 & 1) != 0)
			in_hand->items[rhh_page_rank(page.visible, item)] = (uint16_t) item;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < page.n_rows * n_chunks; i += blockDim.x)
	{
		uint32_t	at,
					end;

		rhh_prefix_of(in_hand, in_hand->items[i / n_chunks], prefix_bytes, &at, &end);
		at += i % n_chunks;
		if (at < end)
			in_hand->bytes[at] = rhh_load_now(&from[at]);
	}
}

/* By a block, after that: copies the rest of tuples whose attributes are not all in the prefix. */
RHH_DEV void
rhh_copy_longer(rhh_page_space *in_hand, const uint4 *from, const rhh_page_parts &parts)
{
	const uint32_t n_rows = in_hand->page.n_rows;
	const uint32_t lane = threadIdx.x % 32;

	for (uint32_t first = threadIdx.x - lane; first < n_rows; first += blockDim.x)
	{
		rhh_page_tuple tuple;
		bool		longer = false;

		if (first + lane < n_rows && parts.n_attributes > 0)
			longer = !rhh_page_find((const uint8_t *) in_hand->bytes, in_hand->items[first + lane], parts.prefix_bytes, &tuple) ||
				!rhh_page_go_to(parts.attributes, parts.last_known, parts.n_attributes - 1, &tuple);
		for (uint32_t left = __ballot_sync(0xffffffffu, longer); left != 0; left &= left - 1)
			rhh_copy_rest(in_hand, from, in_hand->items[first + (uint32_t) __ffs((int) left) - 1], parts.prefix_bytes, lane, 32);
	}
}

/*
 * By a block: begins to find the rows of a page that is all visible (rhh_pages.h): copies its line pointers, or all of it, and
 * finds out which of these have tuples.  The first thread may have its header already; 0: not yet.  False: it is not what it is
 * said to be.
 */
RHH_DEV bool
rhh_begin_all_visible(rhh_page_space *in_hand, const uint4 *from, uint64_t header, bool whole)
{
	rhh_page &page = in_hand->page;
	uint32_t	lines;

	if (threadIdx.x == 0)
	{
		in_hand->header = header != 0 ? header : rhh_page_header((const uint8_t *) from);
		in_hand->bad = 0;
	}
	/* nothing else is read before the header has come */
	__syncthreads();
	if (!rhh_page_is_all_visible(in_hand->header))
		return false;
	lines = rhh_page_header_lines(in_hand->header);
	rhh_copy_bytes(in_hand, from, whole ? RHH_PAGE_BYTES : 24 + 4 * lines);
	__syncthreads();
	for (uint32_t item = threadIdx.x; item < lines; item += blockDim.x)
		if (rhh_page_has_tuple((const uint8_t *) in_hand->bytes, item))
			atomicOr((unsigned long long *) &page.visible[item / 64], (unsigned long long) 1 << item % 64);
	__syncthreads();
	if (threadIdx.x == 0)
		page.n_rows = rhh_page_count(page.visible);
	__syncthreads();
	return true;
}

/* By a block, when all that is needed of the page has come: are these its rows? */
RHH_DEV bool
rhh_end_all_visible(rhh_page_space *in_hand, const uint4 *from, uint32_t lines)
{
	const rhh_page &page = in_hand->page;
	bool		good;

	if (threadIdx.x == 0 &&
		!rhh_page_is_unchanged(in_hand->header, rhh_page_header((const uint8_t *) from)))
		in_hand->bad = 1;
	for (uint32_t item = threadIdx.x; item < lines; item += blockDim.x)
		if ((page.visible[item / 64] >> item % 64 & 1) != 0 &&
			!rhh_page_is_settled((const uint8_t *) in_hand->bytes, item, in_hand->header))
			in_hand->bad = 1;
	__syncthreads();
	good = in_hand->bad == 0;
	/* what comes next changes that */
	__syncthreads();
	return good;
}

/* A part of a kernel's arguments, of 8 or 16 bytes, loaded at once. */
template <class Part>
RHH_DEV Part
rhh_argument(const Part &part)
{
	typedef typename std::conditional<sizeof(Part) == sizeof(uint4), uint4, uint2>::type words;
	union
	{
		words		as_words;
		Part		as_part;
	}			copy;

	static_assert(sizeof(Part) == sizeof(words), "it is loaded by words");
	copy.as_words = *(const words *) &part;
	return copy.as_part;
}

/* Memory of a thread for the program's values. */
struct rhh_page_cells
{
	uint64_t	words[RHH_PAGE_CELLS][2];	/* low, high */
	uint64_t	nulls;
	uint64_t	bads;
};

/* What a thread has of a row.  Most rows have neither a NULL nor what is bad, so that is asked for first. */
struct rhh_page_row
{
	uint64_t (*words)[2];		/* by cells; constants stay as they are */
	rhh_page_cells *cells;
	bool		flagged;		/* a cell may have flags: those in nulls and bads */

	/* Flags of a row of which nothing is known but constants. */
	__device__ RHH_INLINE void clear_flags(uint64_t null_constants)
	{
		flagged = null_constants != 0;
		if (flagged)
		{
			cells->nulls = null_constants;
			cells->bads = 0;
		}
	}
	__device__ RHH_INLINE bool may_have_flags() const
	{
		return __builtin_expect(flagged, 0);
	}
	__device__ RHH_INLINE uint8_t flags_of(uint32_t cell) const
	{
		if (!may_have_flags())
			return 0;
		return (uint8_t) ((cells->nulls >> cell & 1) * RHH_NULL | (cells->bads >> cell & 1) * RHH_BAD);
	}
	__device__ RHH_INLINE void set_flags(uint32_t cell, uint8_t flags)
	{
		if (__builtin_expect(!flagged && flags == 0, 1))
			return;
		if (!flagged)
			cells->nulls = cells->bads = 0;
		flagged = true;
		cells->nulls = (cells->nulls & ~((uint64_t) 1 << cell)) | (uint64_t) ((flags & RHH_NULL) != 0) << cell;
		cells->bads = (cells->bads & ~((uint64_t) 1 << cell)) | (uint64_t) ((flags & RHH_BAD) != 0) << cell;
	}
	__device__ RHH_INLINE void set(uint32_t cell, const rhh_result_value &value)
	{
		words[cell][0] = value.low;
		if (value.wide)
			words[cell][1] = value.high;
		set_flags(cell, value.flags);
	}
};

/* Fills the cells of constants. */
RHH_DEV void
rhh_fill_constants(const rhh_page_plan &plan, rhh_page_cells *cells)
{
	for (uint32_t i = 0; i < plan.n_constants; i++)
	{
		cells->words[plan.constant_cell[i]][0] = plan.constants[i][0];
		cells->words[plan.constant_cell[i]][1] = plan.constants[i][1];
	}
}

/* Sets a bit in shared memory, if it is not set. */
RHH_DEV void
rhh_note_column(uint64_t *columns, uint32_t c)
{
	if ((*(volatile uint64_t *) columns >> c & 1) == 0)
		atomicOr((unsigned long long *) columns, (unsigned long long) 1 << c);
}

/* Stores a value of a row. */
RHH_DEV void
rhh_store_cell(rhh_noted_columns *noted, const rhh_row_columns &columns, uint32_t row, uint32_t c, bool null, uint64_t low,
			   uint64_t high)
{
	rhh_store_value(columns.base + columns.values_offset[c], row, columns.bytes[c], low, high);
	if (columns.nulls_offset[c] != 0)
		columns.base[columns.nulls_offset[c] + row] = null;
	if (__builtin_expect(null, 0))
		rhh_note_column(&noted->nulls, c);
}

/* Stores a result; false: it is bad. */
RHH_DEV bool
rhh_store_result(rhh_noted_columns *noted, const rhh_row_columns &columns, uint32_t row, uint32_t c, const rhh_result_value &value)
{
	const bool	null = value.flags != 0;

	if ((value.flags & RHH_BAD) != 0)
		return false;
	rhh_store_cell(noted, columns, row, c, null, null ? 0 : value.low, null ? 0 : value.high);
	return true;
}

/* Runs a step. */
RHH_DEV rhh_result_value
rhh_run_step(const rhh_page_step &step, const rhh_page_row *of)
{
	rhh_result_value value = {0, 0, true, 0};

	if (step.code == RHH_OP_COLUMN_IS_NULL)
		value.low = (of->flags_of(step.a) & RHH_NULL) != 0;
	else if (step.code == RHH_OP_COLUMN_OF_BYTES)
	{
		uint64_t	words[2];

		rhh_order_bytes(of->words[step.a][0], of->words[step.a][1], words);
		value.low = words[0];
		value.high = words[1];
		value.flags = of->flags_of(step.a);
	}
	else
		value = rhh_run_op(step.code, step.a, step.b, step.c, of);
	return value;
}

/* Runs those operations of the program that a pass has, and stores results.  False: one is bad. */
RHH_DEV bool
rhh_run_steps(rhh_noted_columns *noted, const rhh_page_plan &plan, uint8_t pass, const rhh_row_columns &columns, uint32_t row,
			  rhh_page_row *of)
{
	const uint32_t end = pass == RHH_PASS_FILTER ? plan.n_filter_steps : plan.n_steps;

	for (uint32_t i = 0; i < end; i++)
	{
		const rhh_page_step step = rhh_argument(plan.steps[i]);
		rhh_result_value value;

		if ((step.passes & pass) == 0)
			continue;
		value = rhh_run_step(step, of);
		if (step.to != RHH_NO_CELL)
			of->set(step.to, value);
		if (step.column == RHH_NO_COLUMN)
			continue;
		if (!rhh_store_result(noted, columns, row, step.column, value))
			return false;
		if (step.is_limb && __builtin_expect(value.low != 0, 0))
			rhh_note_column(&noted->limbs, step.column);
	}
	return true;
}

/* Are the filter's conditions, which have been computed, true?  False: one is bad. */
RHH_DEV bool
rhh_are_true(const rhh_page_plan &plan, const rhh_page_row *of, bool *all)
{
	*all = true;
	for (uint32_t i = 0; i < plan.n_conditions; i++)
	{
		const uint32_t cell = plan.condition[i];
		const uint8_t flags = of->flags_of(cell);

		if ((flags & RHH_BAD) != 0)
			return false;
		*all = *all && flags == 0 && of->words[cell][0] != 0;
		/* behind what is false nothing counts any more */
		if (flags == 0 && of->words[cell][0] == 0)
			break;
	}
	return true;
}

/*
 * Makes what a pass has of the tuple at a line pointer of a page, of which `known` bytes are there: cells, and, of the
 * pass for rows, columns that have bytes for NULLs.  False: the page is bad, or more has to be known.  *keep is whether
 * the filter is true.
 */
template <bool COMPUTES>
RHH_DEV bool
rhh_read_tuple(rhh_noted_columns *noted, const uint8_t *page, uint32_t item, uint32_t known, const rhh_page_plan &plan, uint8_t pass,
			   const rhh_row_columns &columns, uint32_t row, rhh_page_row *of, bool *keep)
{
	const uint32_t n_fetches = COMPUTES && pass == RHH_PASS_FILTER ? plan.n_filter_fetches : plan.n_fetches;
	rhh_page_tuple tuple;

	*keep = false;
	if (COMPUTES)
		of->clear_flags(plan.null_constants);
	if (!rhh_page_find_at(page, item, known, &tuple))
		return false;
	for (uint32_t i = 0; i < n_fetches; i++)
	{
		const rhh_page_fetch fetch = rhh_argument(plan.fetches[i]);
		bool		null;
		uint64_t	low,
					high;

		if ((fetch.passes & pass) == 0)
			continue;
		if ((fetch.load.kind != RHH_PAGE_CONSTANT &&
			 !rhh_page_go_to(plan.attributes, plan.last_known, fetch.load.attribute, &tuple)) ||
			!rhh_page_value(&fetch.load, fetch.bytes, &tuple, &null, &low, &high))
			return false;
		if (COMPUTES && pass == RHH_PASS_FILTER && fetch.range != RHH_NO_RANGE &&
			(null || (int64_t) low < plan.ranges[fetch.range].least ||
			 (int64_t) low > plan.ranges[fetch.range].greatest))
			return true;
		if (COMPUTES && fetch.cell != RHH_NO_CELL)
			of->set(fetch.cell, {low, high, fetch.bytes > 8, (uint8_t) (null ? RHH_NULL : 0)});
		if (pass == RHH_PASS_ROW && fetch.load.column != RHH_NO_COLUMN)
			rhh_store_cell(noted, columns, row, fetch.load.column, null, low, high);
	}
	if constexpr (COMPUTES)
	{
		if (!rhh_run_steps(noted, plan, pass, columns, row, of))
			return false;
		if (pass == RHH_PASS_FILTER)
			return rhh_are_true(plan, of, keep);
		for (uint32_t r = 0; r < plan.n_results; r++)
		{
			const uint32_t cell = plan.results[r].cell;

			if (!rhh_store_result(noted, columns, row, plan.results[r].column,
								  {of->words[cell][0], of->words[cell][1], true, of->flags_of(cell)}))
				return false;
		}
	}
	return true;
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
	while (!read(known))
	{
		if (known == RHH_PAGE_BYTES)
			return false;
		rhh_copy_rest(in_hand, from, item, known, 0, 1);
		known = RHH_PAGE_BYTES;
	}
	return true;
}

/*
 * By a block: copies the page in hand to its slot, which then says what it has of it (rhh_page.all_visible); or that it has
 * none, if the page is not good.
 */
RHH_DEV void
rhh_keep_page(const rhh_page_space *in_hand, const rhh_page_slots &slots, bool good, uint32_t has)
{
	rhh_page   *known;
	uint4	   *to = rhh_slot_at(slots, in_hand->slot, &known);

	if (to == NULL)
		return;
	for (uint32_t i = threadIdx.x; good && i < RHH_PAGE_BYTES / sizeof(uint4); i += blockDim.x)
		to[i] = in_hand->bytes[i];
	if (threadIdx.x == 0)
	{
		if (good)
			*known = in_hand->page;
		known->all_visible = good ? (uint16_t) has : 0;
	}
}

/* By n threads, of which this is the t-th: notes all of a page, but whether it is bad only if nobody may have found that it is. */
RHH_DEV void
rhh_tell_page(volatile uint32_t *to, const rhh_page &page, bool is_new, uint32_t t, uint32_t n)
{
	for (uint32_t i = t; i < sizeof(rhh_page) / sizeof(uint32_t); i += n)
		if (is_new || i != offsetof(rhh_page, bad) / sizeof(uint32_t))
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
 * By one thread of each block, when that has no more pages, and has counted those it had: the last one tells the host what was
 * counted.  So the stream has nothing but kernels, and the bus does not wait for copies of a few bytes between them.
 */
RHH_DEV void
rhh_end_placing(rhh_page_counts *counts, rhh_page_notes *notes)
{
	__threadfence();
	if (atomicAdd(&counts->n_ended, 1) != gridDim.x - 1)
		return;
	__threadfence();
	notes->placed = atomicExch(&counts->placed, 0);
	notes->dropped = atomicExch(&counts->dropped, 0);
	counts->n_ended = 0;
}

/*
 * By a block: rows of the page in hand have been dropped; finds a place for the others by counts, of the batch's
 * n_rows.  False: the page is bad.
 */
RHH_DEV bool
rhh_end_filter(rhh_page_space *in_hand, uint32_t n_rows, rhh_page_counts *counts)
{
	__syncthreads();
	if (threadIdx.x == 0 && in_hand->bad == 0)
		rhh_place_page(in_hand, rhh_page_count(in_hand->page.visible), n_rows, counts);
	__syncthreads();
	return in_hand->bad == 0;
}

/*
 * By a block: a page that is good, as far as is known, finds its place, unless rows are to be
 * dropped first.  One that is not has a row, so that the host counts it among the bad ones.  Returns whether it is good.
 */
RHH_DEV bool
rhh_begin_placing(rhh_page_space *in_hand, bool good, bool has_filter, uint32_t n_rows, rhh_page_counts *counts)
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

/* By a block: takes page p of a batch in hand. */
RHH_DEV void
rhh_take_page(rhh_page_space *in_hand, const rhh_page *pages, uint32_t p, const rhh_page_slots &slots)
{
	for (uint32_t i = threadIdx.x; i < sizeof(rhh_page) / sizeof(uint32_t); i += blockDim.x)
		((uint32_t *) &in_hand->page)[i] = ((const uint32_t *) &pages[p])[i];
	if (threadIdx.x == 0)
		in_hand->slot = slots.numbers != NULL ? slots.numbers[p] : RHH_NO_SLOT;
	__syncthreads();
}

/*
 * Copies pages of shared buffers, or parts of them, to their slots, and finds out which rows those have that are all visible.  What
 * is not as it is said to be has none in its slot.  So the bus has a page to bring while others are looked at, also those of
 * the batch before.
 */
static __global__ void __launch_bounds__(RHH_CUDA_PAGE_THREADS, RHH_CUDA_PAGE_AT_ONCE)
rhh_copy_pages_kernel(const uint8_t *memory, uint32_t first_page, uint32_t end_page, const rhh_page *pages, uint32_t n_pages,
					  const rhh_page_slots slots, const __grid_constant__ rhh_page_parts parts, rhh_page_counts *counts)
{
	RHH_DYNAMIC_SHARED(rhh_page_space, in_hand);
	const bool	whole = parts.prefix_bytes == 0;
	uint64_t	next_header = 0;	/* of the next page, if the first thread has asked for it */

	for (uint32_t p = blockIdx.x; p < n_pages; p = in_hand->next)
	{
		const rhh_page &page = in_hand->page;
		const uint32_t after = threadIdx.x == 0 ? gridDim.x + atomicAdd(&counts->n_taken, 1) : n_pages;
		const uint32_t next = after < n_pages ? pages[after].number : end_page;
		const uint4 *from;
		bool		finds;
		bool		good;

		rhh_take_page(in_hand, pages, p, slots);
		finds = page.all_visible != 0 && page.n_rows == 0;
		from = page.number >= first_page && page.number < end_page && (finds || page.n_rows > 0)
			? (const uint4 *) (memory + (uint64_t) page.number * RHH_PAGE_BYTES) : NULL;
		good = from != NULL && (finds || rhh_page_count(page.visible) == page.n_rows);
		/* what comes next changes the page */
		__syncthreads();
		if (good && finds)
			good = rhh_begin_all_visible(in_hand, from, next_header, whole);
		else if (good && whole)
			rhh_copy_bytes(in_hand, from, RHH_PAGE_BYTES);
		if (good && !whole)
			rhh_copy_prefixes(in_hand, from, rhh_page_lines(page.visible), finds, parts.prefix_bytes);
		__syncthreads();
		if (good && !whole)
		{
			rhh_copy_longer(in_hand, from, parts);
			__syncthreads();
		}
		next_header = next >= first_page && next < end_page
			? rhh_page_header(memory + (uint64_t) next * RHH_PAGE_BYTES) : 0;
		if (good && finds)
			good = rhh_end_all_visible(in_hand, from, rhh_page_lines(page.visible));
		rhh_keep_page(in_hand, slots, good, whole ? RHH_PAGE_WHOLE : parts.n_attributes + 1);
		if (threadIdx.x == 0)
			in_hand->next = after;
		/* the next page comes where this one is */
		__syncthreads();
	}
	if (threadIdx.x == 0 && atomicAdd(&counts->n_copied, 1) == gridDim.x - 1)
		counts->n_taken = counts->n_copied = 0;
}

/* By a block whose pages have all been read: tells the host which columns it has noted.  Each block alone goes there, not each row. */
RHH_DEV void
rhh_tell_columns(const rhh_noted_columns *noted, rhh_page_notes *notes)
{
	if (threadIdx.x == 0 && noted->nulls != 0)
		atomicOr((unsigned long long *) &notes->null_columns, (unsigned long long) noted->nulls);
	if (threadIdx.x == 0 && noted->limbs != 0)
		atomicOr((unsigned long long *) &notes->limb_columns, (unsigned long long) noted->limbs);
}

/*
 * Makes columns of the rows of pages, of which there are n_rows at most.  memory is the first byte
 * of page 0; pages from first_page up to, but without, end_page may be read.  What is known of pages before is in
 * `pages`, and what becomes of them goes to `outcomes`.  By *counts they find their places, unless it is
 * NULL.  COMPUTES: the plan has a program.
 */
template <bool COMPUTES>
static __global__ void __launch_bounds__(RHH_CUDA_PAGE_THREADS, RHH_CUDA_PAGE_AT_ONCE)
rhh_read_pages_kernel(const uint8_t *memory, uint32_t first_page, uint32_t end_page,
					  const rhh_page *pages, rhh_page *outcomes, uint32_t n_pages, const rhh_page_slots slots,
					  const __grid_constant__ rhh_page_plan plan,
					  const __grid_constant__ rhh_row_columns columns, uint32_t n_rows,
					  uint32_t prefix_bytes, rhh_page_counts *counts, rhh_page_notes *notes)
{
	RHH_DYNAMIC_SHARED(rhh_page_space, in_hand);
	const uint32_t t = threadIdx.x;
	uint64_t	next_header = 0;	/* of the next page, if the first thread has asked for it */
	rhh_page_cells cells;
	rhh_page_row of = {cells.words, &cells, false};

	if constexpr (COMPUTES)
		rhh_fill_constants(plan, &cells);
	if (t == 0)
		in_hand->noted = {0, 0};
	for (uint32_t p = blockIdx.x; p < n_pages; p += gridDim.x)
	{
		rhh_page &page = in_hand->page;
		const uint4 *from;
		uint32_t	lines;
		uint32_t	known = RHH_PAGE_BYTES;
		/* most of such a page is to be read, or all of it; or what is read of a tuple has not even its header */
		const bool	whole = prefix_bytes < 24 || slots.numbers != NULL;
		bool		fresh;
		bool		filtered;	/* before: the page's own changes while others read it */
		bool		good = true;
		/* nobody waits for what is asked for before it is needed */
		const uint32_t next = t == 0 && counts != NULL && p + gridDim.x < n_pages
			? pages[p + gridDim.x].number : end_page;

		rhh_take_page(in_hand, pages, p, slots);
		/* the same for the whole block: its rows have to be found */
		filtered = page.filtered != 0;
		fresh = page.all_visible != 0 && counts != NULL && page.n_rows == 0 && page.bad == 0 && !filtered;
		from = page.number >= first_page && page.number < end_page
			? (const uint4 *) (memory + (uint64_t) page.number * RHH_PAGE_BYTES) : NULL;
		__syncthreads();
		if (fresh && from != NULL)
			good = rhh_begin_all_visible(in_hand, from, next_header, whole);
		next_header = 0;
		good = good && from != NULL && (page.n_rows > 0 || fresh) && page.first_row <= n_rows &&
			page.n_rows <= n_rows - page.first_row && rhh_page_count(page.visible) == page.n_rows;
		/* without rows it was found to be bad before, or they have been dropped */
		if (page.n_rows == 0 && !fresh)
		{
			__syncthreads();
			continue;
		}
		lines = rhh_page_lines(page.visible);
		if (good && in_hand->slot == RHH_NO_SLOT && !(fresh && whole) && rhh_page_parts_pay(page.n_rows, prefix_bytes))
		{
			known = prefix_bytes;
			rhh_copy_prefixes(in_hand, from, lines, fresh, known);
		}
		else if (good && !(fresh && whole))
			rhh_copy_bytes(in_hand, from, RHH_PAGE_BYTES);
		__syncthreads();
		good = good && rhh_page_has_lines((const uint8_t *) in_hand->bytes, lines);
		if (next >= first_page && next < end_page)
			next_header = rhh_page_header(memory + (uint64_t) next * RHH_PAGE_BYTES);
		if (fresh && good)
			good = rhh_end_all_visible(in_hand, from, lines);
		/* what has been filtered has not all rows any more */
		if (good && in_hand->slot != RHH_NO_SLOT && !filtered)
			rhh_keep_page(in_hand, slots, true, RHH_PAGE_WHOLE);
		if (fresh || (counts != NULL && !plan.has_filter && !filtered))
		{
			good = rhh_begin_placing(in_hand, good, plan.has_filter, n_rows, counts);
			rhh_tell_page((volatile uint32_t *) &outcomes[p], page, false, t, blockDim.x);
			/* until the caller knows what was visible it does not change */
			__syncthreads();
		}
		/* the loop is there so that the code is there once: a kernel of twice the size is slower */
		for (uint8_t pass = COMPUTES && plan.has_filter && !filtered ? RHH_PASS_FILTER : RHH_PASS_ROW;
			 good; pass = RHH_PASS_ROW)
		{
			if (COMPUTES && pass == RHH_PASS_FILTER)
			{
				if (t == 0)
					in_hand->bad = 0;
				__syncthreads();
			}
			for (uint32_t item = t; item < lines && good; item += blockDim.x)
			{
				uint32_t	row = 0;
				bool		keep;

				if ((*(const volatile uint64_t *) &page.visible[item / 64] >> item % 64 & 1) == 0)
					continue;
				if (pass == RHH_PASS_ROW)
					row = page.first_row + rhh_page_rank(page.visible, item);
				good = rhh_with_tuple(in_hand, from, item, known, [&](uint32_t n) {
					return rhh_read_tuple<COMPUTES>(&in_hand->noted, (const uint8_t *) in_hand->bytes, item, n, plan, pass, columns,
													row, &of, &keep);
				});
				if (COMPUTES && pass == RHH_PASS_FILTER && good && !keep)
					atomicAnd((unsigned long long *) &page.visible[item / 64],
							  ~((unsigned long long) 1 << item % 64));
			}
			if (!COMPUTES || pass == RHH_PASS_ROW)
				break;
			if (!good)
				in_hand->bad = 1;
			good = rhh_end_filter(in_hand, n_rows, counts);
			if (good)
				rhh_tell_page((volatile uint32_t *) &outcomes[p], page, false, t, blockDim.x);
		}
		if (!good)
		{
			outcomes[p].bad = RHH_PAGE_UNREAD;
			notes->any_bad = 1;
		}
		/* the next page comes where this one is */
		__syncthreads();
	}
	rhh_tell_columns(&in_hand->noted, notes);
	if (t == 0 && counts != NULL)
		rhh_end_placing(counts, notes);
}

/*
 * Takes a page of the cache in hand: page p of a batch, of which `pages` has what is known, or, if that is NULL, nothing is known
 * but its slot.  It is to be in one of the slots from first up to, but without, end, with so many attributes.  finds: what is visible
 * of a page that is all visible is to be found.  Pages have their slots as numbers, if the batch has none.
 */
RHH_DEV void
rhh_take_cached(rhh_cached_page *of, const rhh_page *pages, uint32_t p, const rhh_page_slots &slots, uint32_t first, uint32_t end,
				uint32_t n_attributes, bool finds, uint32_t n_rows)
{
	rhh_page &page = of->page;
	rhh_page   *known = NULL;
	uint32_t	slot;
	const uint4 *from;

	if (pages != NULL)
		page = pages[p];
	else
	{
		memset(&page, 0, sizeof(page));
		page.number = slots.numbers[p];
	}
	slot = slots.numbers != NULL ? slots.numbers[p] : page.number;
	from = slot >= first && slot < end ? rhh_slot_at(slots, slot, &known) : NULL;
	if (from != NULL && known->all_visible <= n_attributes)
		from = NULL;
	of->fresh = (pages == NULL || (page.all_visible != 0 && finds)) && page.n_rows == 0 && page.bad == 0 && page.filtered == 0;
	/* without rows it was found to be bad before, or they have been dropped */
	of->is_read = of->fresh || page.n_rows > 0;
	if (of->fresh && from != NULL)
	{
		memcpy(page.visible, known->visible, sizeof(page.visible));
		page.n_rows = known->n_rows;
	}
	of->bytes = (const uint8_t *) from;
	of->lines = rhh_page_lines(page.visible);
	of->bad = from == NULL || page.first_row > n_rows || page.n_rows > n_rows - page.first_row ||
		rhh_page_count(page.visible) != page.n_rows || !rhh_page_has_lines(of->bytes, of->lines);
	/* so the host counts it among the bad ones */
	if (of->fresh && of->bad)
		page.n_rows = 1;
}

/*
 * By a warp: the pages whose lanes say so, of n, find places for their visible rows by counts, among the batch's n_rows, and others are
 * dropped.
 */
RHH_DEV void
rhh_place_cached(rhh_cached_page *pages, uint32_t n, bool is_placed, uint32_t n_rows, rhh_page_counts *counts)
{
	const uint32_t lane = threadIdx.x;
	const uint32_t rows = is_placed ? rhh_page_count(pages[lane].page.visible) : 0;
	const uint32_t dropped = is_placed ? pages[lane].page.n_rows - rows : 0;
	uint32_t	before = 0;
	uint32_t	all = 0;
	uint32_t	all_dropped = 0;
	uint32_t	base = 0;

	for (uint32_t p = 0; p < n; p++)
	{
		if (p == lane)
			before = all;
		all += __shfl_sync(RHH_WARP, rows, (int) p);
		all_dropped += __shfl_sync(RHH_WARP, dropped, (int) p);
	}
	if (lane == 0 && all_dropped > 0)
		atomicAdd(&counts->dropped, all_dropped);
	if (lane == 0 && all > 0)
		base = atomicAdd(&counts->placed, all);
	base = __shfl_sync(RHH_WARP, base, 0) + before;
	if (is_placed)
	{
		rhh_page &page = pages[lane].page;

		page.n_dropped = dropped;
		page.n_rows = rows;
		page.filtered = 1;
		page.first_row = rows > 0 ? base : 0;
		/* the caller's numbers may be wrong */
		pages[lane].bad = page.first_row > n_rows || rows > n_rows - page.first_row;
	}
	__syncwarp();
}

/* By a warp: tells the caller of the pages whose lanes say so, of which the first one is told at `to`. */
RHH_DEV void
rhh_tell_cached(rhh_page *to, const rhh_cached_page *pages, bool is_told, bool is_new)
{
	for (uint32_t told = __ballot_sync(RHH_WARP, is_told); told != 0; told &= told - 1)
	{
		const uint32_t p = (uint32_t) __ffs((int) told) - 1;

		rhh_tell_page((volatile uint32_t *) &to[p], pages[p].page, is_new, threadIdx.x, RHH_WARP_SIZE);
	}
}

/*
 * By a warp: counts the items that a pass has of a block's n pages: all lines of those of which rows are to be dropped, or all rows.
 */
RHH_DEV void
rhh_count_items(rhh_cached_pages *cached, uint32_t n, uint8_t pass)
{
	uint32_t	all = 0;
	uint32_t	first = 0;

	for (uint32_t p = 0; p < n; p++)
	{
		const rhh_cached_page &of = cached->pages[p];

		if (p == threadIdx.x)
			first = all;
		if (of.is_read && !of.bad)
			all += pass == RHH_PASS_ROW ? of.page.n_rows : of.page.filtered == 0 ? of.lines : 0;
	}
	if (threadIdx.x < n)
		cached->pages[threadIdx.x].first_item = first;
	if (threadIdx.x == 0)
		cached->n_items = all;
}

/* The line pointer of row i of a page, both from 0. */
RHH_DEV uint32_t
rhh_line_of_row(const rhh_cached_page &of, uint32_t i)
{
	uint32_t	line = 0;
	uint64_t	word;

	/* mostly all of its lines are visible */
	if (of.lines == of.page.n_rows)
		return i;
	for (;; line += 64)
	{
		uint32_t	n;

		word = of.page.visible[line / 64];
		n = (uint32_t) __popcll(word);
		if (i < n || line == RHH_PAGE_ITEMS - 64)
			break;
		i -= n;
	}
	RHH_UNROLL
	for (uint32_t half = 32; half > 0; half /= 2)
	{
		const uint32_t n = (uint32_t) __popcll(word & ((UINT64_C(1) << half) - 1));

		if (i >= n)
		{
			i -= n;
			word >>= half;
			line += half;
		}
	}
	return line;
}

/*
 * Makes columns of the rows of pages of the cache, in the same way; some may be there only since a moment ago.  Slots from first_slot
 * up to, but without, end_slot may be read, and `pages` may be NULL (rhh_take_cached()).  A block has run_pages pages at a
 * time, up to RHH_CUDA_CACHED_RUN.
 */
template <bool COMPUTES>
static __global__ void __launch_bounds__(RHH_CUDA_CACHED_THREADS, RHH_CUDA_CACHED_AT_ONCE)
rhh_read_cached_kernel(uint32_t first_slot, uint32_t end_slot, const rhh_page *pages, rhh_page *outcomes, uint32_t n_pages,
					   uint32_t run_pages, const rhh_page_slots slots,
					   const __grid_constant__ rhh_page_plan plan,
					   const __grid_constant__ rhh_row_columns columns, uint32_t n_rows,
					   rhh_page_counts *counts, rhh_page_notes *notes)
{
	RHH_DYNAMIC_SHARED(rhh_cached_pages, cached);
	const uint32_t t = threadIdx.x;
	const bool	has_filter = COMPUTES && plan.has_filter;
	rhh_page_cells cells;
	rhh_page_row of = {cells.words, &cells, false};

	if constexpr (COMPUTES)
		rhh_fill_constants(plan, &cells);
	if (t == 0)
		cached->noted = {0, 0};
	for (uint32_t p = blockIdx.x * run_pages; p < n_pages; p += gridDim.x * run_pages)
	{
		const uint32_t n = ::min(run_pages, n_pages - p);
		rhh_cached_page *const own = t < n ? &cached->pages[t] : NULL;
		bool		told = false;

		/* the first warp knows the pages */
		if (own != NULL)
		{
			rhh_take_cached(own, pages, p + t, slots, first_slot, end_slot, plan.n_attributes, counts != NULL, n_rows);
			told = own->is_read && (own->fresh || (counts != NULL && !has_filter && own->page.filtered == 0));
		}
		if (t < RHH_WARP_SIZE)
		{
			__syncwarp();
			if (counts != NULL && !has_filter)
				rhh_place_cached(cached->pages, n, told && !own->bad, n_rows, counts);
			rhh_tell_cached(&outcomes[p], cached->pages, told, pages == NULL);
			rhh_count_items(cached, n, has_filter ? RHH_PASS_FILTER : RHH_PASS_ROW);
		}
		__syncthreads();
		/* the loop is there so that the code is there once: a kernel of twice the size is slower */
		for (uint8_t pass = has_filter ? RHH_PASS_FILTER : RHH_PASS_ROW;; pass = RHH_PASS_ROW)
		{
			rhh_cached_page *in_hand = cached->pages;

			for (uint32_t i = t; i < cached->n_items; i += blockDim.x)
			{
				uint32_t	item;
				uint32_t	row = 0;
				bool		keep;

				while (in_hand + 1 < cached->pages + n && i >= in_hand[1].first_item)
					in_hand++;
				item = i - in_hand->first_item;
				if (pass == RHH_PASS_ROW)
				{
					row = in_hand->page.first_row + item;
					item = rhh_line_of_row(*in_hand, item);
				}
				else if ((*(const volatile uint64_t *) &in_hand->page.visible[item / 64] >> item % 64 & 1) == 0)
					continue;
				if (!rhh_read_tuple<COMPUTES>(&cached->noted, in_hand->bytes, item, RHH_PAGE_BYTES, plan, pass, columns, row, &of,
											  &keep))
					in_hand->bad = true;
				else if (COMPUTES && pass == RHH_PASS_FILTER && !keep)
					atomicAnd((unsigned long long *) &in_hand->page.visible[item / 64], ~((unsigned long long) 1 << item % 64));
			}
			__syncthreads();
			if (!COMPUTES || pass == RHH_PASS_ROW)
				break;
			if (t < RHH_WARP_SIZE)
			{
				told = own != NULL && own->is_read && !own->bad && own->page.filtered == 0;
				rhh_place_cached(cached->pages, n, told, n_rows, counts);
				rhh_tell_cached(&outcomes[p], cached->pages, told && !own->bad, false);
				rhh_count_items(cached, n, RHH_PASS_ROW);
			}
			__syncthreads();
		}
		if (own != NULL && own->is_read && own->bad)
		{
			outcomes[p + t].bad = RHH_PAGE_UNREAD;
			notes->any_bad = 1;
		}
	}
	rhh_tell_columns(&cached->noted, notes);
	if (t == 0 && counts != NULL)
		rhh_end_placing(counts, notes);
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
