/*
 * rhh_read_plain.cuh
 *		Rows out of pages of the cache, where all columns are plain (rhh_page_plan.cuh): as rhh_read_cached_kernel() does it
 *		(rhh_read_pages.cuh), in a third of the instructions.
 *
 * A warp takes a page.  Each of its first lanes has a word of what is known of the page, and so it waits for nobody, and
 * only four times for memory before it knows where values are: for the page's slot, for where that is, for line pointers, and for the
 * headers of tuples, of which a lane has some at a time.  A tuple that has NULLs, or lacks attributes, is read in the general way.
 */
#ifndef RHH_READ_PLAIN_CUH
#define RHH_READ_PLAIN_CUH

#include "cuda/rhh_read_pages.cuh"

/* The lane that has the first word of a field of rhh_page. */
#define RHH_WORD_LANE(field)	((int) (offsetof(rhh_page, field) / sizeof(uint32_t)))
#define RHH_PAGE_WORDS			((uint32_t) (sizeof(rhh_page) / sizeof(uint32_t)))
#define RHH_VISIBLE_WORDS		(RHH_PAGE_ITEMS / 32)

static_assert(offsetof(rhh_page, all_visible) == offsetof(rhh_page, filtered) + 2 && offsetof(rhh_page, filtered) % 4 == 0,
			  "a word has both");
static_assert(RHH_PAGE_WORDS == 16, "they are added up by so many lanes");
static_assert(RHH_WARP_SIZE == 32 && RHH_CUDA_PLAIN_THREADS % RHH_WARP_SIZE == 0, "a lane has a line pointer of each word of visible");

/* A column. */
struct rhh_plain_column
{
	uint8_t    *values;
	uint8_t    *nulls;			/* NULL: there are none */
	int32_t		begin;			/* behind a tuple's header; or the constant */
	uint8_t		from;			/* bytes there; 0 of a constant */
	uint8_t		to;				/* bytes of the column */
};

/* What a block has in shared memory. */
struct rhh_plain_space
{
	rhh_noted_columns noted;
	rhh_plain_column columns[RHH_MAX_COLUMNS];
};

/* By a block: says where the columns are. */
RHH_DEV void
rhh_begin_plain(rhh_plain_space *space, const rhh_page_plan &plan, const rhh_row_columns &columns)
{
	for (uint32_t i = threadIdx.x; i < plan.n_fetches; i += blockDim.x)
	{
		const rhh_page_fetch &fetch = plan.fetches[i];
		const rhh_page_attribute *a = &plan.attributes[fetch.load.attribute];
		const bool	constant = fetch.load.kind == RHH_PAGE_CONSTANT;
		const uint32_t c = fetch.load.column;
		rhh_plain_column *to = &space->columns[i];

		to->values = columns.base + columns.values_offset[c];
		to->nulls = columns.nulls_offset[c] != 0 ? columns.base + columns.nulls_offset[c] : NULL;
		to->begin = constant ? fetch.load.parameter : (int32_t) rhh_plain_begin(a);
		to->from = constant ? 0 : a->align;
		to->to = columns.bytes[c];
	}
	if (threadIdx.x == 0)
		space->noted = {0, 0};
	__syncthreads();
}

/* A value of a column; data is where a tuple's first attribute is. */
RHH_DEV int64_t
rhh_plain_value(const rhh_plain_column &of, const uint8_t *data)
{
	switch (of.from)
	{
		case 8:
			return *(const int64_t *) (data + of.begin);
		case 4:
			return *(const int32_t *) (data + of.begin);
		case 2:
			return *(const int16_t *) (data + of.begin);
		case 1:
			return *(const int8_t *) (data + of.begin);
		default:
			return of.begin;
	}
}

/* Columns of any tuple; a call of it costs less than its registers would cost all others.  False: the page is bad. */
static __device__ RHH_NOINLINE bool
rhh_read_any_tuple(rhh_noted_columns *noted, const uint8_t *page, uint32_t item, const rhh_page_plan &plan, const rhh_row_columns &columns,
				   uint32_t row)
{
	bool		keep;

	return rhh_read_tuple<false>(noted, page, item, RHH_PAGE_BYTES, plan, RHH_PASS_ROW, columns, row, NULL, &keep);
}

/* A page in a warp's hand. */
struct rhh_plain_page
{
	const uint8_t *bytes;		/* NULL: it cannot be read */
	uint32_t	word;			/* of rhh_page: that of the lane, of those that have one */
	uint32_t	lines;			/* line pointers up to the last one that is visible */
	uint32_t	n_rows;
	uint32_t	first_row;
	uint32_t	rows_before;	/* of a lane that has a word of visible: rows of those before it */
	bool		told;			/* the caller gets to know what is visible of it, and where its rows are */
	bool		bad;
};

/*
 * By a warp: finds out what is known of page p of a batch, and which of its rows are visible, as rhh_take_cached() does.  pointers get
 * the page's first line pointers, k * 32 + lane.  False: nothing is to be read.
 */
template <int K>
RHH_DEV bool
rhh_take_plain(rhh_plain_page *of, const rhh_page *pages, uint32_t p, const rhh_page_slots &slots, uint32_t first, uint32_t end,
			   uint32_t n_attributes, bool finds, uint32_t n_rows, uint32_t *pointers)
{
	const uint32_t lane = threadIdx.x % RHH_WARP_SIZE;
	const bool	has_word = lane < RHH_PAGE_WORDS;
	const bool	has_visible = lane - RHH_WORD_LANE(visible) < RHH_VISIBLE_WORDS;
	rhh_page   *known = NULL;
	uint32_t	known_word = 0;
	uint32_t	lower = 0;
	uint32_t	slot = 0;
	uint32_t	marks;
	uint32_t	before;
	uint32_t	visible;
	bool		fresh;

	of->word = has_word && pages != NULL ? ((const uint32_t *) &pages[p])[lane] : 0;
	if (slots.numbers != NULL)
		slot = slots.numbers[p];
	else
		slot = __shfl_sync(RHH_WARP, of->word, RHH_WORD_LANE(number));
	if (pages == NULL && lane == RHH_WORD_LANE(number))
		of->word = slot;
	of->bytes = slot >= first && slot < end ? (const uint8_t *) rhh_slot_at(slots, slot, &known) : NULL;
	if (of->bytes != NULL)
	{
		if (has_word)
			known_word = ((const uint32_t *) known)[lane];
		/* before anybody knows whether that will be of use */
		lower = rhh_page_4_aligned(of->bytes + 12) & 0xffff;
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			pointers[k] = rhh_page_4_aligned(of->bytes + 24 + 4 * (k * RHH_WARP_SIZE + lane));
	}
	marks = __shfl_sync(RHH_WARP, of->word, RHH_WORD_LANE(filtered));
	of->n_rows = __shfl_sync(RHH_WARP, of->word, RHH_WORD_LANE(n_rows));
	of->first_row = __shfl_sync(RHH_WARP, of->word, RHH_WORD_LANE(first_row));
	fresh = (pages == NULL || (marks >> 16 != 0 && finds)) && of->n_rows == 0 &&
		__shfl_sync(RHH_WARP, of->word, RHH_WORD_LANE(bad)) == 0 && (marks & 0xffff) == 0;
	of->told = fresh || (finds && (marks & 0xffff) == 0);
	/* it was found to be bad before, or its rows have been dropped */
	if (!fresh && of->n_rows == 0)
		return false;
	if (__shfl_sync(RHH_WARP, known_word, RHH_WORD_LANE(filtered)) >> 16 <= n_attributes)
		of->bytes = NULL;
	if (fresh && of->bytes != NULL && (has_visible || lane == RHH_WORD_LANE(n_rows)))
		of->word = known_word;
	of->n_rows = __shfl_sync(RHH_WARP, of->word, RHH_WORD_LANE(n_rows));
	visible = has_visible ? of->word : 0;
	before = (uint32_t) __popc(visible);
	RHH_UNROLL
	for (int d = 1; d < (int) RHH_PAGE_WORDS; d *= 2)
	{
		const uint32_t other = __shfl_up_sync(RHH_WARP, before, d);

		before += lane >= (uint32_t) d ? other : 0;
	}
	of->rows_before = before - (uint32_t) __popc(visible);
	{
		const uint32_t any = __ballot_sync(RHH_WARP, visible != 0);
		const int	last = any == 0 ? RHH_WORD_LANE(visible) : 31 - __clz((int) any);

		of->lines = 32 * (uint32_t) (last - RHH_WORD_LANE(visible)) + 32 - (uint32_t) __clz((int) __shfl_sync(RHH_WARP, visible, last));
	}
	of->bad = of->bytes == NULL || of->first_row > n_rows || of->n_rows > n_rows - of->first_row ||
		__shfl_sync(RHH_WARP, before, (int) RHH_PAGE_WORDS - 1) != of->n_rows || 24 + 4 * of->lines > lower || lower > RHH_PAGE_BYTES;
	/* so the host counts it among the bad ones */
	if (fresh && of->bad)
		of->n_rows = 1;
	if (lane == RHH_WORD_LANE(n_rows))
		of->word = of->n_rows;
	return true;
}

/*
 * By a warp: the rows of a page have places from first on among the batch's n_rows, unless it is bad, or has them already; the caller
 * gets to know it, as rhh_tell_page() tells him.
 */
RHH_DEV void
rhh_tell_plain(rhh_plain_page *of, rhh_page *to, bool is_new, bool is_placed, uint32_t first, uint32_t n_rows)
{
	const uint32_t lane = threadIdx.x % RHH_WARP_SIZE;

	if (is_placed)
	{
		of->first_row = of->n_rows > 0 ? first : 0;
		if (lane == RHH_WORD_LANE(first_row))
			of->word = of->first_row;
		if (lane == RHH_WORD_LANE(n_dropped))
			of->word = 0;
		if (lane == RHH_WORD_LANE(filtered))
			of->word = (of->word & 0xffff0000) | 1;
		/* the caller's numbers may be wrong */
		of->bad = of->first_row > n_rows || of->n_rows > n_rows - of->first_row;
	}
	if (of->told && lane < RHH_PAGE_WORDS && (is_new || lane != RHH_WORD_LANE(bad)))
		((volatile uint32_t *) to)[lane] = of->word;
}

/*
 * Makes columns of the rows of pages of the cache, as rhh_read_cached_kernel() does, of a plan that is all plain.  K rows of a page a
 * thread has at a time.
 */
static __global__ void __launch_bounds__(RHH_CUDA_PLAIN_THREADS, RHH_CUDA_PLAIN_AT_ONCE)
rhh_read_plain_kernel(uint32_t first_slot, uint32_t end_slot, const rhh_page *pages, rhh_page *outcomes, uint32_t n_pages,
					  const rhh_page_slots slots,
					  const __grid_constant__ rhh_page_plan plan,
					  const __grid_constant__ rhh_row_columns columns, uint32_t n_rows,
					  rhh_page_counts *counts, rhh_page_notes *notes)
{
	constexpr int K = RHH_CUDA_PLAIN_ROWS;
	__shared__ rhh_plain_space space;
	const uint32_t lane = threadIdx.x % RHH_WARP_SIZE;
	const uint32_t n_warps = gridDim.x * (blockDim.x / RHH_WARP_SIZE);

	rhh_begin_plain(&space, plan, columns);
	for (uint32_t p = (blockIdx.x * blockDim.x + threadIdx.x) / RHH_WARP_SIZE; p < n_pages; p += n_warps)
	{
		rhh_plain_page of;
		uint32_t	pointers[K] = {0};
		uint32_t	placed = 0;
		bool		is_placed;
		bool		good = true;

		if (!rhh_take_plain<K>(&of, pages, p, slots, first_slot, end_slot, plan.n_attributes, counts != NULL, n_rows, pointers))
			continue;
		is_placed = counts != NULL && of.told && !of.bad;
		if (is_placed && lane == 0 && of.n_rows > 0)
			placed = atomicAdd(&counts->placed, of.n_rows);
		for (uint32_t begin = 0; begin == 0 || (begin < of.lines && !of.bad); begin += K * RHH_WARP_SIZE)
		{
			uint64_t	words[K];	/* of tuples' headers, from byte 16 on */
			uint32_t	data[K];	/* where the first attribute is; 0: of a tuple that is not plain */
			uint32_t	row[K]; /* of those of the page */
			bool		is_row[K];

			RHH_UNROLL
			for (int k = 0; k < K; k++)
			{
				const int	from = RHH_WORD_LANE(visible) + (int) begin / 32 + k;
				const uint32_t visible = __shfl_sync(RHH_WARP, of.word, from);
				const uint32_t before = __shfl_sync(RHH_WARP, of.rows_before, from);
				const uint32_t line = begin + k * RHH_WARP_SIZE + lane;

				row[k] = before + (uint32_t) __popc(visible & ((1u << lane) - 1));
				is_row[k] = !of.bad && line < of.lines && (visible >> lane & 1) != 0;
				if (begin > 0 && is_row[k])
					pointers[k] = rhh_page_4_aligned(of.bytes + 24 + 4 * line);
			}
			RHH_UNROLL
			for (int k = 0; k < K; k++)
			{
				const uint32_t offset = pointers[k] & 0x7fff;

				/* as rhh_page_find_at() has it */
				data[k] = is_row[k] && (pointers[k] & 0x18007) == 0x8000 && pointers[k] >> 17 >= 23 &&
					offset + (pointers[k] >> 17) <= RHH_PAGE_BYTES ? offset : 0;
				words[k] = data[k] != 0 ? rhh_page_8_aligned(of.bytes + offset + 16) : 0;
			}
			if (begin == 0)
				rhh_tell_plain(&of, &outcomes[p], pages == NULL, is_placed, __shfl_sync(RHH_WARP, placed, 0), n_rows);
			RHH_UNROLL
			for (int k = 0; k < K; k++)
			{
				const uint32_t header = (uint32_t) (words[k] >> 48) & 0xff;

				is_row[k] &= !of.bad;
				row[k] += of.first_row;
				data[k] = data[k] != 0 && is_row[k] && header % 8 == 0 && header >= 23 && header + plan.plain_bytes <= pointers[k] >> 17 &&
					(words[k] >> 32 & 1) == 0 && ((uint32_t) (words[k] >> 16) & 0x07ff) >= plan.plain_attributes ? data[k] + header : 0;
			}
			for (uint32_t i = 0; i < plan.n_fetches; i++)
			{
				const rhh_plain_column c = space.columns[i];

				if (c.from == 4 && c.to == 4)
				{
					RHH_UNROLL
					for (int k = 0; k < K; k++)
						if (data[k] != 0)
							((uint32_t *) c.values)[row[k]] = *(const uint32_t *) (of.bytes + data[k] + c.begin);
				}
				else
				{
					RHH_UNROLL
					for (int k = 0; k < K; k++)
						if (data[k] != 0)
							rhh_store_value(c.values, row[k], c.to, (uint64_t) rhh_plain_value(c, of.bytes + data[k]), 0);
				}
				if (c.nulls != NULL)
				{
					RHH_UNROLL
					for (int k = 0; k < K; k++)
						if (data[k] != 0)
							c.nulls[row[k]] = 0;
				}
			}
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				if (is_row[k] && data[k] == 0)
					good = good && rhh_read_any_tuple(&space.noted, of.bytes, begin + k * RHH_WARP_SIZE + lane, plan, columns, row[k]);
		}
		/* by the lane that has told that it is not */
		if (__any_sync(RHH_WARP, !good || of.bad) && lane == RHH_WORD_LANE(bad))
		{
			outcomes[p].bad = RHH_PAGE_UNREAD;
			notes->any_bad = 1;
		}
	}
	__syncthreads();
	rhh_tell_columns(&space.noted, notes);
	if (threadIdx.x == 0 && counts != NULL)
		rhh_end_placing(counts, notes);
}

#endif							/* RHH_READ_PLAIN_CUH */
