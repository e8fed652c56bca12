/*-------------------------------------------------------------------------
 *
 * page_batches.c
 *		Batches of pages that a device reads by itself.
 *
 * A GPU can read shared buffers faster than sessions make columns of them.  So where the device
 * does (gpurhh_channel_reads_pages()), and can make all columns of a table
 * (gpurhh_heap_feed_layout()), a block does not have columns but says in which buffers, and at
 * which line pointers, the visible rows are.  Of pages for which the visibility map vouches it says only where
 * they are, and the device finds the rows (docs/design.md, "Pages that nobody has looked at").
 *
 *		give	hands over the next batch, after the rows of bad pages: those of which the device could
 *				not read all rows, or has refused some.  They are fed as columns.  Where the device has
 *				enough to do, so are the next pages.
 *		take	releases the pins of pages that the device has read, and keeps those of bad ones
 *		end		waits until the device has read all pages, and feeds the rows of the last bad ones
 *
 * Pages of which the device has copies (cache/page_cache.h) the scan leaves out.  They come in batches of their own,
 * which are larger, since no bus is waited for, and have no pins.  Of those that were not left out, a
 * batch says which may be copied, and whether as a whole: of wide rows the bus brings the first attributes sooner.
 *
 * A pin keeps a page's tuples where they are, as it does for core's scans.  Others may add
 * tuples meanwhile; so the visible ones are named one by one, or found by marks that others' do not have.  All sessions together have no more
 * than a share of the buffers pinned in this way (channel.c).  Where that is used up, or many pages come
 * back, the rest of the rows is fed as columns.
 *
 * The pins are the resource owner's, or in the channel's lists (PagePins), so an error releases them.  The device may still be reading
 * then, and gets whatever is in those buffers later; nobody asks for what it makes of that, it trusts nothing that
 * it reads, and no copy is kept: before the pins go, the channel is released (channel.c), after which the service takes
 * no page that the device has read for what the session has said that it is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "exec/page_batches.h"
#include "settings.h"

/*
 * The most pages of a batch, and this part of the buffers; and its rows, in gpurhh.batch_rows, and the bytes of their columns.  A
 * batch costs the service some 130 us, in which a GPU reads 800 pages; and the bus is idle for some 50 us while the last pages
 * of a batch are worked on, unless they are copied to the cache first.  So the first times of TPC-H's queries at scale 4
 * were 3 % shorter on an H200 than with half as many, in the median (2026-11-27-h200-pages-of-batch.csv).  The first batch has FIRST_PAGES, so that the device begins early, and
 * each of the next ones twice as many.
 *
 * To test the rows of pages that are not all visible takes a session longer than it takes the bus to bring these.  So that the bus need not
 * wait for everybody's last batch, such batches have TESTED_PAGES at most (2026-11-28-h200-first-pages.csv).  That most pages are so is known
 * where there is a cache; elsewhere batches are large.
 */
#define MOST_PAGES 8192
#define FIRST_PAGES 256
#define TESTED_PAGES 1024
#define BATCH_SHARE 64
#define PAGE_BATCH_ROWS 16
#define PAGE_BATCH_BYTES (32 << 20)

/*
 * The same of a batch of pages that are in the cache, of which a GPU reads more in that time.  Each
 * part of the device's work on a batch has some 90 us before it has done anything.  So many rows are those of as many narrow pages as a
 * block has room for: with 32 a sum of 10^9 took an H200 49 ms, and takes 43 (2026-11-28-h200-plain-billion.csv).
 */
#define MOST_CACHED 16384
#define CACHED_BATCH_ROWS 44
#define CACHED_BATCH_BYTES (64 << 20)

/*
 * The CPU device makes columns of a batch's pages, and they had better stay in its caches until they have been
 * aggregated.  It makes them more slowly than a session does.  So without gpurhh.read_pages = on it gets only pages that are
 * in the cache or may be kept there: where it gets a batch of which that is so of no more than a part, or where there was no
 * place for a page a moment ago, a session makes columns of the others.
 */
#define CPU_PAGES 256

/* With so many batches to read, which is twice what it takes at a time, a device is busy, ... */
#define ENOUGH_BATCHES 8
/* ... and a session makes columns of the next pages: of so many at most, until it looks again. */
#define COLUMN_PAGES 2048

#define LAYOUT_BYTES TYPEALIGN(64, sizeof(rhh_page_layout) + sizeof(BlockNote))

/* What a page needs in a block, where there is a cache: two numbers, and at most a ref. */
#define CACHE_PAGE_BYTES (2 * sizeof(uint32) + sizeof(CacheRef))

/* Of a batch that is read from there it is a slot's number, and so many pages have a ref at least. */
#define PAGES_OF_REF 4
#define CACHED_PAGE_BYTES (sizeof(rhh_page) + sizeof(uint32) + sizeof(CacheRef) / PAGES_OF_REF)

/* If fewer can be pinned than this, columns are fed. */
#define FEWEST_PAGES 8

/* So are they from there on where one page of so many comes back, once that is more than a few. */
#define BAD_SHARE 4
#define FEW_BAD 64

/* More than pages have on average, as a batch's rows have to find room. */
#define PAGE_ROWS_MARGIN 1.125

/* Where the device does not find the rows of one page of so many, once that is more than FEW_BAD, sessions look at all. */
#define NOT_FOUND_SHARE 16

/* A page that is fed, and the child of the page feed that it is of. */
typedef struct BadPage
{
	rhh_page	page;
	int			child;
	BlockNumber block;			/* of one that was left out, and is not pinned; else InvalidBlockNumber */
} BadPage;

/* The pages of a batch whose pins core does not know of (PagesToCache). */
typedef struct PagePins
{
	dlist_node	node;			/* in one of these lists */
	Buffer		buffers[MOST_PAGES];	/* InvalidBuffer: none */
} PagePins;

/* A channel keeps them, and when it is released, what is left of them is, too. */
typedef struct PinLists
{
	dlist_head	used;
	dlist_head	unused;			/* all of them have no pin */
} PinLists;

/* What a block has behind the layout. */
typedef struct BlockNote
{
	int			child;			/* of the page feed, that its pages are of */
	uint32		n_rows;			/* of a batch that is read from the cache: as many as were counted */
	uint32		n_thought;		/* of another: rows that pages were thought to have (PagesToCache) */
	PagePins   *pins;			/* of these; NULL: there are none */
} BlockNote;

struct PageBatches
{
	PageSide	side;
	int			child;			/* of the page feed, whose layout this is; -1: of none */
	rhh_page_layout layout;
	bool		has_layout;		/* if a device can make all columns of it */
	HeapFeed   *heap;			/* then: what is read */
	uint32		most_pages;		/* of a batch, ... */
	uint32		next_pages;		/* ... and of the next one */
	uint32		most_rows;
	bool		cache;			/* pages may be kept, and be read from the cache: */
	bool		parts;			/* it is better to keep no more of the child's than is needed */
	uint32		most_cached;	/* of a batch */
	uint32		most_cached_rows;
	uint32		n_may_pin;		/* for the next batch */
	uint32		page_rows;		/* of a page of the child whose rows the device is to find, about; 0: it is
								 * to find none */
	uint64		n_unseen;		/* such pages, so far, ... */
	uint64		n_not_found;	/* ... and those of them whose rows it has not found */
	bool		only_kept;		/* the device gets only pages that may be kept, ... */
	bool		none_kept;		/* ... which most of the child's may not */
	MemoryContext context;

	/* bad pages, which are pinned, in the order in which they came back */
	BadPage    *bad;
	uint32		first_bad;		/* those before this one have been fed */
	uint32		n_bad;
	uint32		room_bad;
	bool		amid_bad;		/* the rows of this one, which bad does not have, are being fed */
	BadPage		current;
	uint64		n_taken;		/* pages that have been read, ... */
	uint64		n_kept;			/* ... and the bad ones of these */
};

/* The most rows of a batch: a page is less work for the session than its rows are. */
static uint32
most_rows(bool cached)
{
	const uint32 batches = cached ? CACHED_BATCH_ROWS : PAGE_BATCH_ROWS;
	const uint32 pages = cached ? MOST_CACHED : MOST_PAGES;

	return Min(batches * (uint64) gpurhh_batch_rows, pages * MaxHeapTuplesPerPage);
}

/* Says in the spec of a map how large batches of pages may be, or those that are read from the cache. */
void
gpurhh_page_batches_limits(rhh_map_spec *spec, bool cached)
{
	spec->max_page_bytes = cached ? CACHED_BATCH_BYTES : PAGE_BATCH_BYTES;
	spec->max_batch_rows = Max(spec->max_batch_rows, most_rows(cached));
}

/* Rows whose columns, with bytes for NULLs, have so many bytes. */
static uint32
rows_of(const Feed *feed, Size bytes)
{
	Size		row_bytes = 0;

	for (int c = 0; c < feed->n_columns; c++)
		row_bytes += feed->columns[c].bytes + 1;
	return (bytes - (Size) feed->n_columns * 2 * 64) / row_bytes;
}

/* gpurhh_page_batches_create(), which says why if that cannot be. */
static PageBatches *
create(const PageSide *side, MemoryContext context, const char **why)
{
	const Size	block_bytes = gpurhh_channel_block_bytes(side->channel);
	/* what says where the rows are is where columns would be, and their bitmap: pages say which rows are refused */
	const Size	room = side->room_rows > 0 ? side->room_offset : block_bytes;
	const uint32 rows = Min(most_rows(false), rows_of(side->feed, PAGE_BATCH_BYTES));
	uint32		page_bytes = sizeof(rhh_page);
	PageBatches *batches;

	if (!gpurhh_channel_reads_pages(side->channel))
	{
		*why = "the device does not read pages";
		return NULL;
	}
	if (!gpurhh_page_feed_all_pages(side->pages))
	{
		*why = "rows come from something else than tables";
		return NULL;
	}
	if (room < 2 * sizeof(rhh_page_layout) + sizeof(CacheRequest))
	{
		*why = "the rows are too narrow for the blocks";
		return NULL;
	}
	if (rows < MaxHeapTuplesPerPage)
	{
		*why = "gpurhh.batch_rows is less than the rows of a page";
		return NULL;
	}
	batches = MemoryContextAllocZero(context, sizeof(PageBatches));
	batches->context = context;
	batches->side = *side;
	batches->child = -1;
	batches->cache = gpurhh_channel_has_cache(side->channel) &&
		room > LAYOUT_BYTES + sizeof(CacheRequest) + 2 * GPURHH_CACHE_PAGES * (page_bytes + CACHE_PAGE_BYTES);
	if (batches->cache)
		page_bytes += CACHE_PAGE_BYTES;
	batches->most_pages = Min(Min(MOST_PAGES, Max(NBuffers / BATCH_SHARE, FEWEST_PAGES)),
							  (room - LAYOUT_BYTES - sizeof(CacheRequest)) / page_bytes);
	batches->next_pages = Min(batches->most_pages, FIRST_PAGES);
	batches->most_rows = rows;
	batches->most_cached = Min(MOST_CACHED, (room - LAYOUT_BYTES - sizeof(CacheRequest) - 64) / CACHED_PAGE_BYTES);
	batches->most_cached_rows = Min(most_rows(true), rows_of(side->feed, CACHED_BATCH_BYTES));
	/* the rows of a chunk are a batch, if it has to be */
	batches->cache &= batches->most_cached_rows >= GPURHH_CACHE_PAGES * MaxHeapTuplesPerPage;
	if (gpurhh_channel_cpu_reads(side->channel))
	{
		batches->most_pages = batches->next_pages = Min(batches->most_pages, CPU_PAGES);
		batches->most_cached = Min(batches->most_cached, CPU_PAGES);
		batches->only_kept = gpurhh_read_pages != SWITCH_ON;
		if (batches->only_kept && !batches->cache)
		{
			*why = "they cannot be kept, and the device is the CPU";
			return NULL;
		}
	}
	return batches;
}

/*
 * Prepares reading a side by pages.  The side's feed, channel and what its functions need last as long
 * as the result, which is in context.  NULL: that cannot be.
 */
PageBatches *
gpurhh_page_batches_create(const PageSide *side, MemoryContext context)
{
	const char *why;
	PageBatches *batches = create(side, context, &why);

	if (batches == NULL)
		ereport(DEBUG1,
				(errmsg_internal("the device does not read pages: %s", why)));
	return batches;
}

/*
 * About so many rows has a full page of a table: as many as VACUUM has found on average, or, where pages are not full, as the
 * average widths of columns say.
 */
static uint32
rows_of_page(Relation rel)
{
	const double pages = rel->rd_rel->relpages;
	const double rows = rel->rd_rel->reltuples;
	const double by_width = (BLCKSZ - SizeOfPageHeaderData) /
		(double) (MAXALIGN(get_rel_data_width(rel, NULL)) + MAXALIGN(SizeofHeapTupleHeader) + sizeof(ItemIdData));

	if (pages < 1 || rows < 1)
		return MaxHeapTuplesPerPage;
	return (uint32) Min(Max(rows / pages, by_width) * PAGE_ROWS_MARGIN + 1, MaxHeapTuplesPerPage);
}

/* So many attributes of each row the copies of pages have to have that are read. */
static uint8
needed_attributes(const rhh_page_layout *layout)
{
	StaticAssertStmt(RHH_PAGE_ATTRIBUTES < GPURHH_ALL_ATTRIBUTES, "a layout may have all attributes");
	return gpurhh_partial_copies == SWITCH_OFF ? GPURHH_ALL_ATTRIBUTES : layout->n_attributes;
}

/*
 * Is it better to bring only what is needed of rows, so that their pages have to be read again where more is needed?  Then they are
 * kept as a whole (fill()).  For tests the setting says so whatever the device does.
 */
static bool
parts_are_better(const PageBatches *batches, uint32 page_rows)
{
	if (gpurhh_partial_copies != SWITCH_AUTO)
		return gpurhh_partial_copies == SWITCH_ON;
	return !gpurhh_channel_cpu_reads(batches->side.channel) &&
		rhh_page_parts_pay(page_rows / PAGE_ROWS_MARGIN, batches->layout.prefix_bytes);
}

/* Is most of a table not all visible, so that its pages cannot be kept? */
static bool
most_cannot_be_kept(Relation rel)
{
	BlockNumber n_all_visible;

	visibilitymap_count(rel, &n_all_visible, NULL);
	return n_all_visible < RelationGetNumberOfBlocks(rel) / 2;
}

/*
 * Can a device read the child that is being read?  If so, it has the layout now, and if not it is said
 * once why.
 */
static bool
lay_out(PageBatches *batches, int child)
{
	HeapFeed   *heap = gpurhh_page_feed_heap(batches->side.pages);
	const char *why = "it is read by rows";

	if (child != batches->child)
	{
		batches->child = child;
		batches->heap = NULL;
		batches->none_kept = false;
		batches->page_rows = 0;
		batches->n_unseen = batches->n_not_found = 0;
		batches->has_layout = heap != NULL &&
			gpurhh_heap_feed_layout(heap, batches->side.feed, &batches->layout, &why);
		if (batches->has_layout)
		{
			batches->heap = heap;
			/* else a batch would find that out */
			batches->none_kept = batches->only_kept && most_cannot_be_kept(gpurhh_heap_feed_relation(heap));
			/* one batch is read, while the next one is filled */
			if (!batches->none_kept)
				gpurhh_heap_feed_hold_pages(heap, 2 * batches->most_pages);
			if (batches->cache)
			{
				const uint32 page_rows = rows_of_page(gpurhh_heap_feed_relation(heap));

				gpurhh_heap_feed_use_cache(heap, needed_attributes(&batches->layout));
				batches->parts = parts_are_better(batches, page_rows);
				if (GPURHH_DEVICES_READ_IN_ORDER)
					batches->page_rows = page_rows;
			}
		}
		else
			ereport(DEBUG1,
					(errmsg_internal("the device does not read pages: %s", why)));
	}
	return batches->has_layout;
}

static BlockNote *
note_of(const rhh_page *pages)
{
	return (BlockNote *) ((char *) pages - LAYOUT_BYTES + sizeof(rhh_page_layout));
}

/* Releases the pin of a page that has been handed over. */
static void
unpin(PageBatches *batches, const BadPage *bad)
{
	ReleaseBuffer(bad->page.number + 1);
	if (bad->block == InvalidBlockNumber)
		gpurhh_channel_unpin_pages(batches->side.channel, 1);
}

/* Keeps a bad page, with its pin unless it has a block's number. */
static void
keep_bad(PageBatches *batches, const rhh_page *page, int child, BlockNumber block, BackReason why)
{
	if (batches->n_bad == batches->room_bad)
	{
		batches->room_bad = Max(2 * batches->room_bad, 64);
		if (batches->bad == NULL)
			batches->bad = MemoryContextAlloc(batches->context,
											  batches->room_bad * sizeof(BadPage));
		else
			batches->bad = repalloc_huge(batches->bad, batches->room_bad * sizeof(BadPage));
	}
	batches->bad[batches->n_bad++] = (BadPage){.page = *page, .child = child, .block = block};
	batches->side.counts->back[why]++;
}

/* ---------- pins that core does not know of ---------- */

/* Of the page in this buffer, whose block's number is returned. */
static BlockNumber
release_pin(Buffer *buffer)
{
	const Buffer pinned = *buffer;

	*buffer = InvalidBuffer;
	return gpurhh_heap_unpin(pinned);
}

static void
release_pins(void *kept)
{
	PinLists   *lists = kept;
	dlist_iter	iter;

	dlist_foreach(iter, &lists->used)
	{
		PagePins   *pins = dlist_container(PagePins, node, iter.cur);

		for (uint32 p = 0; p < MOST_PAGES; p++)
			if (BufferIsValid(pins->buffers[p]))
				(void) release_pin(&pins->buffers[p]);
	}
}

static PinLists *
pin_lists(PageBatches *batches)
{
	return gpurhh_channel_keep(batches->side.channel, sizeof(PinLists), release_pins);
}

/* For a batch that is going to be filled. */
static PagePins *
take_pins(PageBatches *batches)
{
	PinLists   *lists = pin_lists(batches);
	PagePins   *pins;

	if (dlist_is_empty(&lists->unused))
		pins = MemoryContextAllocZero(GetMemoryChunkContext(lists), sizeof(PagePins));
	else
		pins = dlist_container(PagePins, node, dlist_pop_head_node(&lists->unused));
	dlist_push_head(&lists->used, &pins->node);
	return pins;
}

/* None of them has a pin any more. */
static void
give_back_pins(PageBatches *batches, PagePins *pins)
{
	if (pins == NULL)
		return;
	dlist_delete(&pins->node);
	dlist_push_head(&pin_lists(batches)->unused, &pins->node);
}

/* ---------- batches that have been read ---------- */

/*
 * Releases the pin of a page of a batch, whose number in the batch this is.  Returns which block's page it is, if the device
 * was to find its rows.
 */
static BlockNumber
release_page(const BlockNote *note, const rhh_page *page, uint32 number)
{
	Buffer	   *pinned = note->pins != NULL ? &note->pins->buffers[number] : NULL;
	BlockNumber block = InvalidBlockNumber;

	if (pinned != NULL && BufferIsValid(*pinned))
		return release_pin(pinned);
	if (page->all_visible)
		block = BufferGetBlockNumber(page->number + 1);
	ReleaseBuffer(page->number + 1);
	return block;
}

/* The device has not found the rows of so many pages of the child. */
static void
more_were_lost(PageBatches *batches, uint32 n)
{
	batches->n_not_found += n;
	/* they may have found no room */
	if (batches->page_rows < MaxHeapTuplesPerPage)
		batches->page_rows = Min(2 * batches->page_rows, MaxHeapTuplesPerPage);
	else if (batches->n_not_found > Max(batches->n_unseen / NOT_FOUND_SHARE, FEW_BAD))
		batches->page_rows = 0;
}

/* Why a page of shared buffers comes back, which has its pin. */
static BackReason
reason_of(const rhh_page *page, bool all_bad)
{
	if (all_bad)
		return BACK_UNREAD;
	if (page->bad == RHH_PAGE_REFUSED)
		return BACK_REFUSED;
	return page->all_visible && !gpurhh_heap_is_found(page->number + 1) ? BACK_NOT_FOUND : BACK_VALUES;
}

/*
 * Takes a batch whose pages have been read from shared buffers; returns how many rows of these were dropped.  *n_found
 * becomes how many rows have the pages whose rows the device was to find.  Of these the bad ones are pinned again when it is
 * their turn.
 */
static uint64
take_read(PageBatches *batches, const rhh_page *pages, uint32 n, bool all_bad, uint64 *n_found)
{
	const BlockNote *note = note_of(pages);
	uint32		n_unpinned = 0;
	uint32		n_bad = 0;
	uint32		n_lost = 0;
	uint64		n_dropped = 0;

	*n_found = 0;
	for (uint32 p = 0; p < n; p++)
	{
		rhh_page	page = pages[p];
		BackReason	why;

		if (all_bad)
			page.bad = RHH_PAGE_UNREAD;
		why = page.bad ? reason_of(&page, all_bad) : N_BACK_REASONS;
		n_bad += page.bad != 0;
		if (page.bad && !page.all_visible)
			keep_bad(batches, &page, note->child, InvalidBlockNumber, why);
		else
		{
			const BlockNumber block = release_page(note, &page, p);

			n_unpinned++;
			if (page.bad)
				keep_bad(batches, &page, note->child, block, why);
		}
		if (page.all_visible && page.bad == RHH_PAGE_UNREAD)
		{
			n_lost += !all_bad;
			continue;
		}
		n_dropped += page.n_dropped;
		if (page.all_visible)
			*n_found += page.n_rows + page.n_dropped;
	}
	give_back_pins(batches, note->pins);
	batches->n_taken += n;
	/* that sessions have to look at pages says nothing of what devices can read */
	batches->n_kept += n_bad - n_lost;
	if (n_lost > 0 && note->child == batches->child)
		more_were_lost(batches, n_lost);
	gpurhh_channel_unpin_pages(batches->side.channel, n_unpinned);
	if (*n_found > 0)
		gpurhh_page_feed_count_cached(batches->side.pages, note->child, *n_found);
	/* fewer rows may have been thought of than there are, of which most were dropped */
	batches->side.recount(batches->side.arg, n_dropped, note->n_thought - *n_found);
	return n_dropped;
}

/*
 * Keeps the bad pages of one that was read from the cache.  The others' rows become *n_rows, and those that were dropped
 * *n_dropped.
 */
static void
keep_bad_cached(PageBatches *batches, const PagesRead *read, uint64 *n_rows, uint64 *n_dropped)
{
	const int	child = note_of(read->pages)->child;
	const CacheRef *ref = read->request->refs;
	uint32		left = ref->pages;

	for (uint32 p = 0; p < read->n; p++, left &= left - 1)
	{
		const rhh_page *page = &read->pages[p];
		BlockNumber block;

		if (left == 0)
			left = (++ref)->pages;
		block = ref->chunk * GPURHH_CACHE_PAGES + pg_rightmost_one_pos32(left);
		if (read->all_bad || page->bad == RHH_PAGE_UNREAD)
		{
			const rhh_page unread = {.bad = RHH_PAGE_UNREAD};

			keep_bad(batches, &unread, child, block, read->all_bad ? BACK_UNREAD : BACK_VALUES);
			batches->n_kept += !read->all_bad;
			continue;
		}
		*n_rows += page->n_rows;
		*n_dropped += page->n_dropped;
		if (page->bad == RHH_PAGE_REFUSED)
			keep_bad(batches, page, child, block, BACK_REFUSED);
	}
}

/* The same of one that was read from the cache, whose rows only the device knows. */
static uint64
take_cached(PageBatches *batches, const PagesRead *read)
{
	const BlockNote *note = note_of(read->pages);
	uint64		n_rows = 0;
	uint64		n_dropped = 0;

	if (read->all_bad || read->n_bad > 0)
		keep_bad_cached(batches, read, &n_rows, &n_dropped);
	else
	{
		n_rows = read->n_rows;
		n_dropped = read->n_dropped;
	}
	batches->n_taken += read->n;
	gpurhh_page_feed_count_cached(batches->side.pages, note->child, n_rows + n_dropped);
	batches->side.recount(batches->side.arg, note->n_rows - n_rows, 0);
	if (!read->all_bad)
		batches->side.counts->cached += read->n;
	return n_dropped;
}

/* Takes the batches whose pages have been read. */
void
gpurhh_page_batches_take(PageBatches *batches)
{
	Channel    *channel = batches->side.channel;
	PagesRead	read;

	while (gpurhh_channel_take_pages(channel, &read))
	{
		const BlockNote *note = note_of(read.pages);
		const int	child = note->child;
		const bool	cached = read.request != NULL && read.request->cached;
		uint64		n_found = note->n_thought;
		const uint64 n_dropped = cached ? take_cached(batches, &read) :
			take_read(batches, read.pages, read.n, read.all_bad, &n_found);

		gpurhh_channel_end_pages(channel, note->n_thought - n_found);
		if (n_dropped > 0)
			gpurhh_page_feed_dropped(batches->side.pages, child, n_dropped);
	}
}

/* Others may pin what this session was to pin for its next batch. */
static void
give_up_pins(PageBatches *batches)
{
	if (batches->n_may_pin > 0)
		gpurhh_channel_unpin_pages(batches->side.channel, batches->n_may_pin);
	batches->n_may_pin = 0;
}

/* Waits until pages have been read, and takes them; false: all that were handed over have been. */
static bool
wait_for_pages(PageBatches *batches)
{
	const PageSide *side = &batches->side;

	give_up_pins(batches);
	if (!gpurhh_channel_wait_pages(side->channel))
		return false;
	if (side->take_returned != NULL)
		side->take_returned(side->arg);
	gpurhh_page_batches_take(batches);
	return true;
}

/* ---------- bad pages ---------- */

static bool
is_spoiled(const PageBatches *batches)
{
	return batches->side.spoiled != NULL && *batches->side.spoiled;
}

/* Begins with the rows of the next bad page; false: there is none. */
static bool
next_bad(PageBatches *batches)
{
	BadPage    *bad;

	if (batches->first_bad == batches->n_bad)
	{
		batches->first_bad = batches->n_bad = 0;
		return false;
	}
	/* while its rows are fed others may come back, and bad may be moved */
	batches->current = batches->bad[batches->first_bad++];
	bad = &batches->current;
	batches->amid_bad = true;
	if (bad->block == InvalidBlockNumber)
		gpurhh_page_feed_take_page(batches->side.pages, bad->child, &bad->page);
	else
		gpurhh_page_feed_take_block(batches->side.pages, bad->child, bad->block, &bad->page);
	/* those of a copy that was not read, or that were not found, have not been counted */
	if (bad->block == InvalidBlockNumber || bad->page.bad == RHH_PAGE_REFUSED)
		batches->side.recount(batches->side.arg, rhh_page_count(bad->page.visible), 0);
	return true;
}

/* Feeds the rows of bad pages, as far as the feed's block has room.  True: there are more. */
static bool
fill_with_bad(PageBatches *batches)
{
	while (batches->amid_bad || next_bad(batches))
	{
		if (gpurhh_page_feed_page_rows(batches->side.pages, batches->current.child,
									   batches->side.feed))
			return true;
		batches->amid_bad = false;
		unpin(batches, &batches->current);
	}
	return false;
}

/* The same for a side that is not to be read any further. */
static void
drop_bad(PageBatches *batches)
{
	if (batches->amid_bad)
		unpin(batches, &batches->current);
	batches->amid_bad = false;
	while (batches->n_bad > batches->first_bad)
	{
		if (batches->bad[--batches->n_bad].block == InvalidBlockNumber)
			unpin(batches, &batches->bad[batches->n_bad]);
	}
}

/* Feeds the rows of all bad pages that there are. */
static void
feed_bad_rows(PageBatches *batches)
{
	const PageSide *side = &batches->side;
	bool		more = true;

	while (more && !is_spoiled(batches))
	{
		more = fill_with_bad(batches);
		if (side->feed->base != NULL)
			side->hand_over(side->arg);
		if (more)
			gpurhh_feed_start(side->feed, side->next_block(side->arg));
	}
	if (is_spoiled(batches))
	{
		/* it may have been spoiled while a block was waited for, which then goes back */
		if (side->feed->base != NULL)
			side->hand_over(side->arg);
		drop_bad(batches);
	}
}

/* Waits until all pages have been read, and feeds the rows of those that are bad. */
void
gpurhh_page_batches_wait(PageBatches *batches)
{
	while (wait_for_pages(batches))
		feed_bad_rows(batches);
	feed_bad_rows(batches);
}

/* ---------- the next pages ---------- */

/* The most rows of the next batch, which may have most, and that of fewest pages. */
static uint32
next_rows(const PageBatches *batches, uint32 most, uint32 fewest)
{
	const uint32 *limit = batches->side.rows_limit;

	return limit == NULL ? most : Min(most, Max(*limit, fewest * MaxHeapTuplesPerPage));
}

/* Is it better to make columns of the next pages than to give the device these, too? */
static bool
columns_are_better(PageBatches *batches)
{
	if (batches->side.feed->capacity_rows < MaxHeapTuplesPerPage ||
		gpurhh_heap_feed_has_ended(gpurhh_page_feed_heap(batches->side.pages)))
		return false;
	if (batches->only_kept)
		return batches->none_kept || gpurhh_cache_is_full();
	/* a page of which columns are made does not come to the cache */
	return !batches->cache && gpurhh_channel_n_unread(batches->side.channel) >= ENOUGH_BATCHES;
}

/* Makes columns of some pages of the child that is being read; 0: of as many as a block has room for. */
static void
feed_columns(PageBatches *batches, uint32 n_pages)
{
	const PageSide *side = &batches->side;

	gpurhh_feed_start(side->feed, side->next_block(side->arg));
	(void) gpurhh_page_feed_fill_child(side->pages, side->feed, n_pages);
	side->hand_over(side->arg);
}

/*
 * May the next batch have pages?  If pins are lacking, waits for those of batches that were handed
 * over.
 */
static bool
may_give(PageBatches *batches)
{
	if (batches->n_kept > Max(batches->n_taken / BAD_SHARE, FEW_BAD))
		return false;
	if (batches->n_may_pin > 0)
		return true;
	do
	{
		/* pages that cannot be kept are mostly such as are not all visible */
		const bool	tested = batches->none_kept && gpurhh_heap_feed_cached(batches->heap) != NULL;
		const uint32 n = tested ? Min(batches->next_pages, TESTED_PAGES) : batches->next_pages;

		batches->n_may_pin = gpurhh_channel_pin_pages(batches->side.channel, n);
		if (batches->n_may_pin >= FEWEST_PAGES)
		{
			batches->next_pages = Min(2 * batches->next_pages, batches->most_pages);
			return true;
		}
	} while (wait_for_pages(batches));
	return false;
}

/* Begins a batch in a block, of n pages with n_rows rows. */
static void
begin_batch(PageBatches *batches, char *base, rhh_batch *batch, uint32 n_pages, uint32 n_rows, Size used_bytes)
{
	const PageSide *side = &batches->side;
	BlockNote  *note = note_of((rhh_page *) (base + LAYOUT_BYTES));

	memcpy(base, &batches->layout, sizeof(rhh_page_layout));
	note->child = batches->child;
	note->n_rows = n_rows;
	note->n_thought = 0;
	note->pins = NULL;
	memset(batch, 0, sizeof(rhh_batch));
	batch->n_rows = n_rows;
	batch->n_pages = n_pages;
	batch->pages_offset = LAYOUT_BYTES;
	batch->used_bytes = used_bytes;
	batch->refused_offset = side->room_rows > 0 ? side->room_offset :
		TYPEALIGN(64, batch->used_bytes);
	batch->refused_rows = side->room_rows;
	side->counts->all += n_pages;
}

/* Hands over a block with a batch of pages. */
static PagesGiven
submit(PageBatches *batches, const rhh_batch *batch, uint32 cache_offset)
{
	gpurhh_channel_submit_pages(batches->side.channel, batch, cache_offset);
	batches->side.count(batches->side.arg, batch);
	return PAGES_GIVEN;
}

/* Fills a block with the next pages.  False: there are no more, or only such as are in the cache. */
static bool
fill(PageBatches *batches, char *base, rhh_batch *batch, uint32 *cache_offset)
{
	const PageSide *side = &batches->side;
	const uint32 most = batches->most_pages;
	rhh_page   *pages = (rhh_page *) (base + LAYOUT_BYTES);
	const Size	blocks_offset = LAYOUT_BYTES + most * sizeof(rhh_page);
	const Size	request_offset = MAXALIGN(blocks_offset + 2 * most * sizeof(uint32));
	PagesToCache to = {NULL};
	PagePins   *pins = NULL;
	Size		used_bytes;
	uint32		n_rows;
	uint32		n;
	uint32		n_kept = 0;
	uint32		n_unseen = 0;
	uint32		last_unseen = 0;

	*cache_offset = 0;
	if (gpurhh_heap_feed_cached(batches->heap) != NULL)
	{
		to.blocks = (BlockNumber *) (base + blocks_offset);
		to.request = (CacheRequest *) (base + request_offset);
		memset(to.request, 0, sizeof(CacheRequest));
		to.request->file = gpurhh_relation_file(gpurhh_heap_feed_relation(batches->heap));
		to.request->blocks_offset = blocks_offset;
		to.page_rows = batches->page_rows;
		if (to.page_rows > 0)
			pins = take_pins(batches);
		to.pins = pins != NULL ? pins->buffers : NULL;
		*cache_offset = request_offset;
	}
	n = gpurhh_page_feed_pages(side->pages, pages, batches->n_may_pin, next_rows(batches, batches->most_rows, 1),
							   batches->most_cached, to.request != NULL ? &to : NULL, &n_rows);
	gpurhh_channel_unpin_pages(side->channel, batches->n_may_pin - n);
	batches->n_may_pin = 0;
	if (n == 0)
	{
		give_back_pins(batches, pins);
		return false;
	}
	used_bytes = to.request == NULL ? LAYOUT_BYTES + n * sizeof(rhh_page) :
		request_offset + offsetof(CacheRequest, refs) + to.request->n_refs * sizeof(CacheRef);
	begin_batch(batches, base, batch, n, n_rows, used_bytes);
	if (to.request != NULL)
	{
		const CachedPages *cached = gpurhh_heap_feed_cached(batches->heap);

		/* a table that is read again for more attributes is kept as a whole, so that it is not read a third time */
		batch->parts = batches->parts && !cached->too_few;
		to.request->n_attributes = batch->parts ? cached->n_attributes : GPURHH_ALL_ATTRIBUTES;
	}
	note_of(pages)->n_thought = to.n_thought;
	note_of(pages)->pins = pins;
	batch->all_visible = to.n_thought > 0;
	batch->first_page = batch->end_page = pages[0].number;
	for (uint32 p = 0; p < n; p++)
	{
		batch->first_page = Min(batch->first_page, pages[p].number);
		batch->end_page = Max(batch->end_page, pages[p].number);
		n_kept += to.request != NULL && to.blocks[p] != InvalidBlockNumber;
		n_unseen += pages[p].all_visible;
		last_unseen = pages[p].all_visible ? p : last_unseen;
	}
	batch->end_page++;
	batches->n_unseen += n_unseen;
	if (n_unseen > 0 && !gpurhh_heap_is_settled(pages[last_unseen].number + 1))
		batches->page_rows = 0;
	batches->none_kept = n_kept < n / 2;
	return true;
}

/* ---------- pages that are in the cache ---------- */

/* Are there pages that were left out, and are to be handed over now? */
static bool
cached_are_due(const PageBatches *batches)
{
	const CachedPages *cached = batches->heap == NULL ? NULL : gpurhh_heap_feed_cached(batches->heap);

	return cached != NULL && cached->n_pages > 0 &&
		(cached->n_pages >= batches->most_cached || gpurhh_heap_feed_has_ended(batches->heap));
}

/* Fills a block with such pages, and hands it over. */
static PagesGiven
give_cached(PageBatches *batches, char *base)
{
	CachedPages *cached = gpurhh_heap_feed_cached(batches->heap);
	/* the device writes pages, if need be */
	const Size	slots_offset = LAYOUT_BYTES + batches->most_cached * sizeof(rhh_page);
	const Size	request_offset = MAXALIGN(slots_offset + batches->most_cached * sizeof(uint32));
	CacheRequest *request = (CacheRequest *) (base + request_offset);
	uint32	   *slots = (uint32 *) (base + slots_offset);
	rhh_batch	batch;
	uint32		n_pages;
	uint32		n_rows;

	memset(request, 0, sizeof(CacheRequest));
	request->file = cached->file;
	request->cached = true;
	request->n_attributes = cached->n_attributes;
	request->n_refs = gpurhh_cached_pages_get(cached, request->refs, batches->most_cached / PAGES_OF_REF,
											  batches->most_cached,
											  next_rows(batches, batches->most_cached_rows, GPURHH_CACHE_PAGES),
											  &n_pages, &n_rows);
	for (uint32 r = 0; r < request->n_refs; r++)
	{
		for (uint32 left = request->refs[r].pages; left != 0; left &= left - 1)
			*slots++ = request->refs[r].entry * GPURHH_CACHE_PAGES + pg_rightmost_one_pos32(left);
	}
	/* all may be empty, and a batch has a row, as far as is known before it is read */
	begin_batch(batches, base, &batch, n_pages, Max(n_rows, 1),
				request_offset + offsetof(CacheRequest, refs) + request->n_refs * sizeof(CacheRef));
	batch.cached = true;
	batch.slots_offset = slots_offset;
	batch.first_page = request->refs[0].entry * GPURHH_CACHE_PAGES;
	for (uint32 r = 0; r < request->n_refs; r++)
	{
		batch.first_page = Min(batch.first_page, request->refs[r].entry * GPURHH_CACHE_PAGES);
		batch.end_page = Max(batch.end_page, (request->refs[r].entry + 1) * GPURHH_CACHE_PAGES);
	}
	return submit(batches, &batch, request_offset);
}

/* No more pages are left out.  Those that have been are fed as columns, as bad ones are. */
static void
stop_caching(PageBatches *batches)
{
	CachedPages *cached = batches->heap == NULL ? NULL : gpurhh_heap_feed_cached(batches->heap);
	const rhh_page unread = {.bad = RHH_PAGE_UNREAD};
	CacheRef	ref;
	uint32		n_pages;
	uint32		n_rows;

	if (cached == NULL)
		return;
	cached->off = true;
	while (gpurhh_cached_pages_get(cached, &ref, 1, GPURHH_CACHE_PAGES, 0, &n_pages, &n_rows) > 0)
	{
		for (uint32 left = ref.pages; left != 0; left &= left - 1)
			keep_bad(batches, &unread, batches->child,
					 ref.chunk * GPURHH_CACHE_PAGES + pg_rightmost_one_pos32(left), BACK_UNREAD);
	}
	feed_bad_rows(batches);
}

/* ---------- batches ---------- */

/* Hands over the next batch. */
PagesGiven
gpurhh_page_batches_give(PageBatches *batches)
{
	const PageSide *side = &batches->side;
	rhh_batch	batch;
	uint32		cache_offset;
	char	   *base;

	feed_bad_rows(batches);
	while (!is_spoiled(batches))
	{
		int			child;

		if (cached_are_due(batches))
		{
			base = side->acquire_block(side->arg);
			if (base != NULL)
				return give_cached(batches, base);
			stop_caching(batches);
			continue;
		}
		child = gpurhh_page_feed_child(side->pages);
		if (child < 0)
			break;
		if (!lay_out(batches, child))
		{
			/* what makes rows may wait for blocks that wait for this session */
			if (gpurhh_page_feed_heap(side->pages) == NULL)
				gpurhh_page_batches_wait(batches);
			feed_columns(batches, 0);
			return PAGES_GIVEN;
		}
		if (columns_are_better(batches))
		{
			feed_columns(batches, COLUMN_PAGES);
			return PAGES_GIVEN;
		}
		if (!may_give(batches) || (base = side->acquire_block(side->arg)) == NULL)
		{
			give_up_pins(batches);
			stop_caching(batches);
			return PAGES_AS_COLUMNS;
		}
		if (fill(batches, base, &batch, &cache_offset))
			return submit(batches, &batch, cache_offset);
		gpurhh_channel_drop_block(side->channel);
		if (gpurhh_heap_feed_has_ended(batches->heap))
			gpurhh_page_feed_pass(side->pages);
	}
	give_up_pins(batches);
	return PAGES_ENDED;
}

/*
 * Before the side is done with: waits until all pages have been read, and feeds the rows of those
 * that are bad.  If rows have been fed as columns, they have been to the end.
 */
void
gpurhh_page_batches_end(PageBatches *batches)
{
	gpurhh_page_batches_wait(batches);
	gpurhh_page_feed_end(batches->side.pages);
}
