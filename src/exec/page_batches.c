/*-------------------------------------------------------------------------
 *
 * page_batches.c
 *		Batches of pages that a device reads by itself.
 *
 * A GPU can read shared buffers faster than sessions make columns of them.  So where the device
 * does (gpurhh_channel_reads_pages()), and can make all columns of a table
 * (gpurhh_heap_feed_layout()), a block does not have columns but says in which buffers, and at
 * which line pointers, the visible rows are.
 *
 *		give	hands over the next batch, after the rows of bad pages: those of which the device could
 *				not read all rows, or has refused some.  They are fed as columns.  Where the device has
 *				enough to do, so are the next pages.
 *		take	releases the pins of pages that the device has read, and keeps those of bad ones
 *		end		waits until the device has read all pages, and feeds the rows of the last bad ones
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
 * The most pages of a batch, and this part of the buffers; and its rows, in gpurhh.batch_rows.  A
 * batch costs the service some 130 us, in which a GPU reads 800 pages.
 */
#define MOST_PAGES 1024
#define BATCH_SHARE 64
#define PAGE_BATCH_ROWS 4

/* With so many batches to read, which is twice what it takes at a time, a device is busy, ... */
#define ENOUGH_BATCHES 8
/* ... and a session makes columns of the next pages: of so many at most, until it looks again. */
#define COLUMN_PAGES 2048

/* In a block the child's number is behind the layout. */
#define LAYOUT_BYTES TYPEALIGN(64, sizeof(rhh_page_layout) + sizeof(int))

/* If fewer can be pinned than this, columns are fed. */
#define FEWEST_PAGES 8

/* So are they from there on where one page of so many comes back, once that is more than a few. */
#define BAD_SHARE 4
#define FEW_BAD 64

/* A page that is fed, and the child of the page feed that it is of. */
typedef struct BadPage
{
	rhh_page	page;
	int			child;
} BadPage;

struct PageBatches
{
	PageSide	side;
	int			child;			/* of the page feed, whose layout this is; -1: of none */
	rhh_page_layout layout;
	bool		has_layout;		/* if a device can make all columns of it */
	uint32		most_pages;		/* of a batch */
	uint32		most_rows;
	uint32		n_may_pin;		/* for the next batch */
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
create(const PageSide *side, MemoryContext context, const char **why)
{
	const Size	block_bytes = gpurhh_channel_block_bytes(side->channel);
	/* where columns would be is all that says where the rows are; a bitmap may come behind it */
	const Size	room = side->room_rows > 0 ? side->room_offset : block_bytes / 2;
	const uint32 rows = Min(most_rows(), rows_of(side->feed, MOST_PAGES * BLCKSZ));
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
	batches->side = *side;
	batches->child = -1;
	batches->most_pages = Min(Min(MOST_PAGES, Max(NBuffers / BATCH_SHARE, FEWEST_PAGES)),
							  (room - LAYOUT_BYTES) / sizeof(rhh_page));
	batches->most_rows = rows;
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
		batches->has_layout = heap != NULL &&
			gpurhh_heap_feed_layout(heap, batches->side.feed, &batches->layout, &why);
		if (!batches->has_layout)
			ereport(DEBUG1,
					(errmsg_internal("the device does not read pages: %s", why)));
	}
	return batches->has_layout;
}

static int *
child_of(const rhh_page *pages)
{
	return (int *) ((char *) pages - LAYOUT_BYTES + sizeof(rhh_page_layout));
}

/* Releases the pin of a page that has been handed over. */
static void
unpin(PageBatches *batches, const BadPage *bad)
{
	ReleaseBuffer(bad->page.number + 1);
	gpurhh_channel_unpin_pages(batches->side.channel, 1);
}

/* Keeps a bad page, with its pin. */
static void
keep_bad(PageBatches *batches, const rhh_page *page, int child)
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
	batches->bad[batches->n_bad++] = (BadPage){.page = *page, .child = child};
	batches->side.counts->bad++;
}

/* Takes the batches whose pages have been read. */
void
gpurhh_page_batches_take(PageBatches *batches)
{
	Channel    *channel = batches->side.channel;
	const rhh_page *pages;
	uint32		n;
	bool		all_bad;

	while (gpurhh_channel_take_pages(channel, &pages, &n, &all_bad))
	{
		uint32		n_unpinned = 0;
		uint64		n_dropped = 0;
		const int	child = *child_of(pages);

		for (uint32 p = 0; p < n; p++)
		{
			n_dropped += pages[p].n_dropped;
			if (all_bad || pages[p].bad)
				keep_bad(batches, &pages[p], child);
			else
			{
				ReleaseBuffer(pages[p].number + 1);
				n_unpinned++;
			}
		}
		batches->n_taken += n;
		batches->n_kept += n - n_unpinned;
		gpurhh_channel_unpin_pages(channel, n_unpinned);
		gpurhh_channel_end_pages(channel);
		if (n_dropped > 0)
		{
			gpurhh_page_feed_dropped(batches->side.pages, child, n_dropped);
			batches->side.recount(batches->side.arg, n_dropped);
		}
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
	if (batches->first_bad == batches->n_bad)
	{
		batches->first_bad = batches->n_bad = 0;
		return false;
	}
	/* while its rows are fed others may come back, and bad may be moved */
	batches->current = batches->bad[batches->first_bad++];
	batches->amid_bad = true;
	gpurhh_page_feed_take_page(batches->side.pages, batches->current.child, &batches->current.page);
	batches->side.recount(batches->side.arg, rhh_page_count(batches->current.page.visible));
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
		unpin(batches, &batches->bad[--batches->n_bad]);
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
		drop_bad(batches);
}

/* ---------- the next pages ---------- */

/*
 * Has the device so many batches that it is better to make columns of the next pages than to give
 * it these, too?
 */
static bool
device_is_busy(PageBatches *batches)
{
	return batches->side.feed->capacity_rows >= MaxHeapTuplesPerPage &&
		gpurhh_channel_n_unread(batches->side.channel) >= ENOUGH_BATCHES &&
		!gpurhh_heap_feed_has_ended(gpurhh_page_feed_heap(batches->side.pages));
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
		batches->n_may_pin = gpurhh_channel_pin_pages(batches->side.channel, batches->most_pages);
		if (batches->n_may_pin >= FEWEST_PAGES)
			return true;
	} while (wait_for_pages(batches));
	return false;
}

/* Fills a block with the next pages.  False: there are no more. */
static bool
fill(PageBatches *batches, char *base, rhh_batch *batch)
{
	const PageSide *side = &batches->side;
	rhh_page   *pages = (rhh_page *) (base + LAYOUT_BYTES);
	uint32		n_rows;
	uint32		n = gpurhh_page_feed_pages(side->pages, pages, batches->n_may_pin, batches->most_rows,
										   &n_rows);

	gpurhh_channel_unpin_pages(side->channel, batches->n_may_pin - n);
	batches->n_may_pin = 0;
	if (n == 0)
		return false;
	memset(batch, 0, sizeof(rhh_batch));
	memcpy(base, &batches->layout, sizeof(rhh_page_layout));
	*child_of(pages) = batches->child;
	batch->n_rows = n_rows;
	batch->n_pages = n;
	batch->pages_offset = LAYOUT_BYTES;
	batch->first_page = batch->end_page = pages[0].number;
	for (uint32 p = 0; p < n; p++)
	{
		batch->first_page = Min(batch->first_page, pages[p].number);
		batch->end_page = Max(batch->end_page, pages[p].number);
	}
	batch->end_page++;
	batch->used_bytes = LAYOUT_BYTES + n * sizeof(rhh_page);
	batch->refused_offset = side->room_rows > 0 ? side->room_offset :
		TYPEALIGN(64, batch->used_bytes);
	batch->refused_rows = side->room_rows;
	side->counts->all += n;
	return true;
}

/* Hands over the next batch. */
PagesGiven
gpurhh_page_batches_give(PageBatches *batches)
{
	const PageSide *side = &batches->side;
	rhh_batch	batch;
	char	   *base;

	feed_bad_rows(batches);
	while (!is_spoiled(batches))
	{
		const int	child = gpurhh_page_feed_child(side->pages);

		if (child < 0)
			break;
		if (!lay_out(batches, child))
		{
			/* what makes rows may wait for blocks that wait for this session */
			if (gpurhh_page_feed_heap(side->pages) == NULL)
				gpurhh_page_batches_end(batches);
			feed_columns(batches, 0);
			return PAGES_GIVEN;
		}
		if (device_is_busy(batches))
		{
			feed_columns(batches, COLUMN_PAGES);
			return PAGES_GIVEN;
		}
		if (!may_give(batches) || (base = side->acquire_block(side->arg)) == NULL)
		{
			give_up_pins(batches);
			return PAGES_AS_COLUMNS;
		}
		if (fill(batches, base, &batch))
		{
			gpurhh_channel_submit(side->channel, &batch);
			side->count(side->arg, &batch);
			return PAGES_GIVEN;
		}
		gpurhh_channel_drop_block(side->channel);
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
	while (wait_for_pages(batches))
		feed_bad_rows(batches);
	feed_bad_rows(batches);
}
