/*-------------------------------------------------------------------------
 *
 * page_batches.c
 *		Batches of pages that a device reads by itself.
 *
 * A GPU can read shared buffers faster than sessions make columns of them.  So where the device
 * does (gpurhh_channel_reads_pages()), and a side is one table of whose rows nothing is computed
 * here (gpurhh_heap_feed_layout()), a block does not have columns but says in which buffers, and at
 * which line pointers, the visible rows are.
 *
 *		are_waiting	has the device enough to do?  Then this session makes columns of the next pages
 *					(fill_columns)
 *		prepare		how many pages may be pinned for the next batch
 *		fill		goes on to the next pages, and pins them
 *		take		releases the pins of pages that the device has read, and keeps those of the
 *					bad ones, of which it could not read all rows, or has refused some
 *		bad_rows	feeds the rows of these as columns
 *		wait		until the device has read all pages that were handed over
 *
 * A pin keeps a page's tuples where they are, as it does for core's scans.  Others may add
 * tuples meanwhile; so the visible ones are named one by one.  All sessions together have no more
 * than a share of the buffers pinned in this way (channel.c).  Where that is used up, or many pages come
 * back, the rest of the rows is fed as columns.
 *
 * The pins are the resource owner's, so an error releases them.  The device may still be reading
 * then, and gets whatever is in those buffers later; nobody asks for what it makes of that, and it
 * trusts nothing that it reads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "exec/page_batches.h"
#include "settings.h"

/*
 * The most pages of a batch, unless so many are more than a share of the buffers; and its rows, in
 * gpurhh.batch_rows.  A batch costs the service some 130 us, in which a GPU reads 800 pages.
 */
#define MOST_PAGES 1024
#define LEAST_SHARE 64
#define PAGE_BATCH_ROWS 4

/*
 * Batches that keep a device busy until a session that makes columns instead has filled a block, while
 * others make more of pages: twice what it takes at a time.
 */
#define ENOUGH_BATCHES 8
#define COLUMN_PAGES 2048

/* If fewer can be pinned than this, columns are fed. */
#define FEWEST_PAGES 8

/* So are they from there on where one page of so many comes back, once that is more than a few. */
#define BAD_SHARE 4
#define FEW_BAD 64

struct PageBatches
{
	Channel    *channel;
	HeapFeed   *heap;
	rhh_page_layout layout;
	uint32		most_pages;		/* of a batch */
	uint32		most_rows;
	uint32		room_offset;	/* of refused rows, in a block */
	uint32		room_rows;
	uint32		n_may_pin;		/* for the next batch */
	MemoryContext context;

	/* bad pages, which are pinned */
	rhh_page   *bad;
	uint32		n_bad;
	uint32		room_bad;
	bool		amid_bad;		/* the last one's rows are being fed */
	uint64		n_taken;		/* pages that have been read, ... */
	uint64		n_kept;			/* ... and the bad ones of these */
	GpuNodeCounts *counts;		/* NULL: pages are not counted */
};

/* The most rows of a batch: a page is less work for the session than its rows are. */
static uint32
most_rows(void)
{
	return Min(PAGE_BATCH_ROWS * gpurhh_batch_rows, MOST_PAGES * MaxHeapTuplesPerPage);
}

/* Says in the spec of a map how large batches of pages may be. */
void
gpurhh_page_batches_limits(rhh_map_spec *spec)
{
	spec->max_page_bytes = MOST_PAGES * BLCKSZ;
	spec->max_batch_rows = Max(spec->max_batch_rows, most_rows());
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
create(PageFeed *pages, const Feed *feed, Channel *channel, uint32 room_offset, uint32 room_rows,
	   MemoryContext context, const char **why)
{
	const Size	block_bytes = gpurhh_channel_block_bytes(channel);
	/* where columns would be is all that says where the rows are; a bitmap may come behind it */
	const Size	room = room_rows > 0 ? room_offset : block_bytes / 2;
	const uint32 rows = Min(most_rows(), rows_of(feed, MOST_PAGES * BLCKSZ));
	PageBatches *batches;
	HeapFeed   *heap;
	rhh_page_layout layout;

	if (!gpurhh_channel_reads_pages(channel))
	{
		*why = "the device does not read pages";
		return NULL;
	}
	heap = gpurhh_page_feed_heap(pages);
	if (heap == NULL)
	{
		*why = "it is not one table";
		return NULL;
	}
	if (!gpurhh_heap_feed_layout(heap, feed, &layout, why))
		return NULL;
	if (room < 2 * sizeof(rhh_page_layout))
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
	batches->channel = channel;
	batches->heap = heap;
	batches->layout = layout;
	batches->most_pages = Min(Min(MOST_PAGES, Max(NBuffers / LEAST_SHARE, FEWEST_PAGES)),
							  (room - TYPEALIGN(64, sizeof(rhh_page_layout))) / sizeof(rhh_page));
	batches->most_rows = rows;
	batches->room_offset = room_offset;
	batches->room_rows = room_rows;
	return batches;
}

/*
 * Prepares reading a side, which has begun, by pages; the feed has its columns.  room_rows is 0 where
 * no rows come back; pages are counted in counts, unless that is NULL.  The result is in context.  NULL:
 * that cannot be.
 */
PageBatches *
gpurhh_page_batches_create(PageFeed *pages, const Feed *feed, Channel *channel,
						   uint32 room_offset, uint32 room_rows, GpuNodeCounts *counts,
						   MemoryContext context)
{
	const char *why;
	PageBatches *batches = create(pages, feed, channel, room_offset, room_rows, context, &why);

	if (batches == NULL)
		ereport(DEBUG1,
				(errmsg_internal("the device does not read pages: %s", why)));
	else
		batches->counts = counts;
	return batches;
}

/* Keeps a bad page, with its pin. */
static void
keep_bad(PageBatches *batches, const rhh_page *page)
{
	if (batches->n_bad == batches->room_bad)
	{
		batches->room_bad = Max(2 * batches->room_bad, 64);
		if (batches->bad == NULL)
			batches->bad = MemoryContextAlloc(batches->context,
											  batches->room_bad * sizeof(rhh_page));
		else
			batches->bad = repalloc_huge(batches->bad, batches->room_bad * sizeof(rhh_page));
	}
	batches->bad[batches->n_bad++] = *page;
	if (batches->counts != NULL)
		batches->counts->bad_pages++;
}

/* Takes the batches whose pages have been read. */
void
gpurhh_page_batches_take(PageBatches *batches)
{
	const rhh_page *pages;
	uint32		n;
	bool		all_bad;

	while (gpurhh_channel_take_pages(batches->channel, &pages, &n, &all_bad))
	{
		uint32		n_unpinned = 0;

		for (uint32 p = 0; p < n; p++)
		{
			if (all_bad || pages[p].bad)
				keep_bad(batches, &pages[p]);
			else
			{
				ReleaseBuffer(pages[p].number + 1);
				n_unpinned++;
			}
		}
		batches->n_taken += n;
		batches->n_kept += n - n_unpinned;
		gpurhh_channel_unpin_pages(batches->channel, n_unpinned);
		gpurhh_channel_end_pages(batches->channel);
	}
}

/*
 * Waits until pages have been read, and takes them; false: all that were handed over have been.
 * Batches that come back meanwhile are taken by take_returned; NULL: none do.
 */
bool
gpurhh_page_batches_wait(PageBatches *batches, void (*take_returned)(void *arg), void *arg)
{
	if (batches->n_may_pin > 0)
	{
		gpurhh_channel_unpin_pages(batches->channel, batches->n_may_pin);
		batches->n_may_pin = 0;
	}
	if (!gpurhh_channel_wait_pages(batches->channel))
		return false;
	if (take_returned != NULL)
		take_returned(arg);
	gpurhh_page_batches_take(batches);
	return true;
}

/*
 * Before a block is asked for: may the next batch have pages?  If not, rows are to be fed as
 * columns.  If pins are lacking, waits for those of batches that were handed over; what comes back
 * meanwhile is as in gpurhh_page_batches_wait().
 */
bool
gpurhh_page_batches_prepare(PageBatches *batches, void (*take_returned)(void *arg), void *arg)
{
	if (gpurhh_heap_feed_is_amid(batches->heap) ||
		batches->n_kept > Max(batches->n_taken / BAD_SHARE, FEW_BAD))
		return false;
	if (batches->n_may_pin > 0)
		return true;
	do
	{
		batches->n_may_pin = gpurhh_channel_pin_pages(batches->channel, batches->most_pages);
		if (batches->n_may_pin >= FEWEST_PAGES)
			return true;
	} while (gpurhh_page_batches_wait(batches, take_returned, arg));
	return false;
}

/*
 * Has the device so many batches that it is better to make columns of the next pages than to give
 * it these, too?
 */
bool
gpurhh_page_batches_are_waiting(PageBatches *batches)
{
	return gpurhh_channel_n_unread(batches->channel) >= ENOUGH_BATCHES &&
		!gpurhh_heap_feed_has_ended(batches->heap) && !gpurhh_heap_feed_is_amid(batches->heap);
}

/* Fills a feed's block, which has been started, with the rows of some pages. */
void
gpurhh_page_batches_fill_columns(PageBatches *batches, Feed *feed)
{
	(void) gpurhh_heap_feed_fill(batches->heap, feed, COLUMN_PAGES);
}

/* Fills a block with the next pages.  False: there are no more. */
bool
gpurhh_page_batches_fill(PageBatches *batches, char *base, rhh_batch *batch)
{
	const Size	layout_bytes = TYPEALIGN(64, sizeof(rhh_page_layout));
	rhh_page   *pages = (rhh_page *) (base + layout_bytes);
	uint32		n_rows;
	uint32		n = gpurhh_heap_feed_pages(batches->heap, pages, batches->n_may_pin,
										   batches->most_rows, &n_rows);

	gpurhh_channel_unpin_pages(batches->channel, batches->n_may_pin - n);
	batches->n_may_pin = 0;
	if (n == 0)
		return false;
	memset(batch, 0, sizeof(rhh_batch));
	memcpy(base, &batches->layout, sizeof(rhh_page_layout));
	batch->n_rows = n_rows;
	batch->n_pages = n;
	batch->pages_offset = layout_bytes;
	batch->first_page = batch->end_page = pages[0].number;
	for (uint32 p = 0; p < n; p++)
	{
		batch->first_page = Min(batch->first_page, pages[p].number);
		batch->end_page = Max(batch->end_page, pages[p].number);
	}
	batch->end_page++;
	batch->used_bytes = layout_bytes + n * sizeof(rhh_page);
	batch->refused_offset = batches->room_rows > 0 ? batches->room_offset :
		TYPEALIGN(64, batch->used_bytes);
	batch->refused_rows = batches->room_rows;
	if (batches->counts != NULL)
		batches->counts->pages += n;
	return true;
}

/*
 * Feeds rows of bad pages as columns, as gpurhh_page_feed_fill() does those of others: true if there
 * are more of them, and the block is full, or has not been started.  *n_rows becomes how many rows
 * have been begun with, which have been handed over before and do not count twice.
 */
bool
gpurhh_page_batches_bad_rows(PageBatches *batches, Feed *feed, uint64 *n_rows)
{
	*n_rows = 0;
	while (batches->n_bad > 0)
	{
		const rhh_page *page = &batches->bad[batches->n_bad - 1];

		if (!batches->amid_bad)
		{
			/* rows that a columns' block had no room for come first */
			if (gpurhh_heap_feed_is_amid(batches->heap))
				return false;
			gpurhh_heap_feed_take_page(batches->heap, page);
			batches->amid_bad = true;
			for (int w = 0; w < lengthof(page->visible); w++)
				*n_rows += pg_popcount((const char *) &page->visible[w], sizeof(uint64));
		}
		if (gpurhh_heap_feed_page_rows(batches->heap, feed))
			return true;
		batches->amid_bad = false;
		ReleaseBuffer(page->number + 1);
		gpurhh_channel_unpin_pages(batches->channel, 1);
		batches->n_bad--;
	}
	return false;
}
