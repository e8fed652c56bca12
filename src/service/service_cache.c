/*-------------------------------------------------------------------------
 *
 * service_cache.c
 *		The pages that a device keeps copies of: the service's part.
 *
 * The device has memory for slots (rhh_device.h, "The cache"); what is in them the directory says
 * (cache/page_cache.c), which sessions read.  The service alone changes it:
 *
 *		begin	before a batch goes to the device.  The pages that it wants to be read from the cache must
 *				still be there, or the batch goes back.  For pages that it wants to be put there, entries are
 *				found, or made; where there is no room for one, its pages are not kept.
 *		end		after the batch: pages that the device could read are in the directory from now on
 *
 * In between an entry is in use: its slots are not given to others.  Slots that are being filled are not
 * in the directory, and are not filled by others.  If a batch is to be submitted again, because
 * what comes out of its joins is not complete, its entries stay in use until the query ends.
 *
 * Who goes first.  An entry is given up for another only if it was not used for a while, the
 * longer the more often it was used before.  So of a table that is larger than the cache the same part
 * stays, however often it is read, and a table that is read no more makes room.  The
 * device gives maps that need memory that of the cache (lost_slab).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "storage/block.h"

#include "service/service_state.h"
#include "settings.h"

/* An entry that was used n times is kept for n times so long without being used. */
#define KEPT_S 30
#define MOST_USAGE 4

/* A page that wants to be kept looks for an entry that may go at so many places. */
#define HAND_STEPS 16

/* If the device has no memory for a slab, or has taken one back, it is not asked for one for so long. */
#define NO_MEMORY_S 5

#define SLAB_ENTRIES (RHH_SLAB_PAGES / GPURHH_CACHE_PAGES)

struct ServiceCache
{
	PageCache  *directory;
	ServiceDevice *device;		/* NULL: none has pages yet */
	uint32		n_entries;		/* that this device may have */
	int32		free_head;		/* of free entries; -1: there are none */
	uint32		hand;			/* the entry that is asked next whether it may go */
	uint32		no_slab_before; /* in s */
	uint32		now;			/* in s, at the last batch */
	uint16	   *n_using;		/* batches, and queries, that use an entry */
	uint32	   *filling;		/* its pages that are being filled */
};

static uint32
now_s(void)
{
	return (uint32) (GetCurrentTimestamp() / USECS_PER_SEC);
}

/* What the directory says is true only of devices of this service. */
void
gpurhh_service_make_cache(DeviceService *service)
{
	ServiceCache *cache;

	if (!service->area->shared || gpurhh_page_cache() == NULL)
		return;
	cache = palloc0(sizeof(ServiceCache));
	cache->directory = gpurhh_page_cache();
	cache->free_head = -1;
	service->cache = cache;
	LWLockAcquire(&cache->directory->lock, LW_EXCLUSIVE);
	cache->directory->device[0] = '\0';
	LWLockRelease(&cache->directory->lock);
}

/* May a device have the cache?  One has, the first whose pages are read; the CPU only if the size says so. */
bool
gpurhh_service_may_cache(DeviceService *service, const ServiceDevice *dev)
{
	const ServiceCache *cache = service->cache;

	return cache != NULL && (cache->device == NULL || cache->device == dev) &&
		(dev->ops->kind != RHH_KIND_CPU || gpurhh_cache_size_mb > 0);
}

/* Makes a device the one that has the cache.  The caller holds the directory's lock. */
static void
choose_device(ServiceCache *cache, ServiceDevice *dev)
{
	PageCache  *directory = cache->directory;

	cache->device = dev;
	cache->n_entries = directory->n_entries;
	if (gpurhh_cache_size_mb < 0)
		cache->n_entries = Min(cache->n_entries,
							   dev->info.total_bytes / 2 / RHH_PAGE_BYTES / GPURHH_CACHE_PAGES);
	cache->n_using = MemoryContextAllocHuge(TopMemoryContext, cache->n_entries * sizeof(uint16));
	cache->filling = MemoryContextAllocHuge(TopMemoryContext, cache->n_entries * sizeof(uint32));
	memset(cache->n_using, 0, cache->n_entries * sizeof(uint16));
	memset(cache->filling, 0, cache->n_entries * sizeof(uint32));
	gpurhh_cache_reset(directory);
	strlcpy(directory->device, dev->name, sizeof(directory->device));
	directory->n_threads = dev->info.n_threads;
}

/* ---------- entries ---------- */

static void
free_entry(ServiceCache *cache, int32 entry)
{
	cache->directory->entries[entry].next = cache->free_head;
	cache->free_head = entry;
}

/*
 * Asks the device for a slab; false: it has none.  Nobody waits for that: the directory is not locked meanwhile.  Only
 * the service adds and removes entries, and what others call for to be forgotten is not published (publish_page()).
 */
static bool
add_slab(ServiceCache *cache)
{
	PageCache  *directory = cache->directory;
	ServiceDevice *dev = cache->device;
	rhh_error	err = {0};
	uint32		first = 0;
	bool		added;

	while (first < cache->n_entries && directory->entries[first].state != CACHE_ENTRY_NONE)
		first += SLAB_ENTRIES;
	if (first >= cache->n_entries || first / SLAB_ENTRIES >= RHH_MAX_SLABS ||
		cache->now < cache->no_slab_before)
		return false;
	LWLockRelease(&directory->lock);
	added = dev->ops->cache_slab(dev->device, first / SLAB_ENTRIES, &err) == RHH_OK;
	LWLockAcquire(&directory->lock, LW_EXCLUSIVE);
	if (!added)
	{
		cache->no_slab_before = cache->now + NO_MEMORY_S;
		if (err.status == RHH_DEVICE_ERROR)
			gpurhh_service_note_device_error(dev, err.message);
		return false;
	}
	for (uint32 i = Min(first + SLAB_ENTRIES, cache->n_entries); i-- > first;)
	{
		directory->entries[i].state = CACHE_ENTRY_FREE;
		free_entry(cache, i);
	}
	return true;
}

/* The device has given the memory of a slab to a map. */
static void
lose_slab(ServiceCache *cache, uint32 slab)
{
	PageCache  *directory = cache->directory;
	const uint32 first = slab * SLAB_ENTRIES;
	const uint32 end = Min(first + SLAB_ENTRIES, cache->n_entries);

	for (uint32 i = first; i < end; i++)
	{
		if (directory->entries[i].state == CACHE_ENTRY_USED)
			gpurhh_cache_remove(directory, i);
		directory->entries[i].state = CACHE_ENTRY_NONE;
	}
	/* the others' list anew */
	cache->free_head = -1;
	for (uint32 i = cache->n_entries; i-- > 0;)
	{
		if (directory->entries[i].state == CACHE_ENTRY_FREE)
			free_entry(cache, i);
	}
	cache->no_slab_before = cache->now + NO_MEMORY_S;
}

static void
lose_slabs(ServiceCache *cache)
{
	uint32		slab;

	while (cache->device != NULL && cache->device->ops->lost_slab(cache->device->device, &slab))
	{
		LWLockAcquire(&cache->directory->lock, LW_EXCLUSIVE);
		lose_slab(cache, slab);
		LWLockRelease(&cache->directory->lock);
	}
}

/* Is an entry of so little use that another one may have its place? */
static bool
may_go(const ServiceCache *cache, uint32 entry)
{
	const CacheEntry *e = &cache->directory->entries[entry];

	return e->state == CACHE_ENTRY_USED && cache->n_using[entry] == 0 && cache->filling[entry] == 0 &&
		(e->lsn == InvalidXLogRecPtr || cache->now - e->used_at > (uint32) KEPT_S * e->usage);
}

/* A free entry, which is on no list; -1: there is no room. */
static int32
take_entry(ServiceCache *cache)
{
	int32		entry;

	if (cache->free_head < 0)
		(void) add_slab(cache);
	for (int i = 0; i < HAND_STEPS && cache->free_head < 0; i++)
	{
		cache->hand = (cache->hand + 1) % cache->n_entries;
		if (!may_go(cache, cache->hand))
			continue;
		gpurhh_cache_remove(cache->directory, cache->hand);
		free_entry(cache, cache->hand);
	}
	entry = cache->free_head;
	if (entry >= 0)
		cache->free_head = cache->directory->entries[entry].next;
	return entry;
}

/* The entry was used. */
static void
touch(ServiceCache *cache, CacheEntry *e)
{
	/* the processes of a query, and those of queries at the same time, count once */
	if (e->used_at != cache->now || e->usage == 0)
		e->usage = Min(e->usage + 1, MOST_USAGE);
	e->used_at = cache->now;
}

/* ---------- pages to be read from the cache ---------- */

/* Are the pages that a batch names there?  If so, their entries are in use. */
static bool
use_entries(ServiceCache *cache, const CacheRequest *request)
{
	PageCache  *directory = cache->directory;

	for (uint32 r = 0; r < request->n_refs; r++)
	{
		const CacheRef *ref = &request->refs[r];
		const CacheEntry *e = &directory->entries[ref->entry];

		if (ref->entry >= cache->n_entries ||
			gpurhh_cache_entry(directory, &request->file, ref->chunk) != (int32) ref->entry ||
			e->lsn != ref->lsn || e->n_attributes < request->n_attributes || (ref->pages & ~e->pages) != 0 ||
			cache->n_using[ref->entry] == UINT16_MAX)
			return false;
	}
	for (uint32 r = 0; r < request->n_refs; r++)
	{
		cache->n_using[request->refs[r].entry]++;
		touch(cache, &directory->entries[request->refs[r].entry]);
	}
	return true;
}

static void
end_using(ServiceCache *cache, const CacheRequest *request)
{
	for (uint32 r = 0; r < request->n_refs; r++)
		cache->n_using[request->refs[r].entry]--;
}

/*
 * What comes out of a batch's joins is not complete: its entries stay in use until the batch has come
 * again and is, or the query ends.
 */
static void
hold_entries(ServiceQuery *sq, const CacheRequest *request, int block)
{
	const Size	bytes = (sq->n_cached + request->n_refs) * sizeof(HeldEntry);

	sq->cached = sq->cached == NULL ? MemoryContextAllocHuge(TopMemoryContext, bytes) :
		repalloc_huge(sq->cached, bytes);
	for (uint32 r = 0; r < request->n_refs; r++)
		sq->cached[sq->n_cached++] = (HeldEntry){request->refs[r].entry, block};
}

/* Those of a block are not in use any more; -1: of all blocks. */
static void
release_entries(ServiceCache *cache, ServiceQuery *sq, int block)
{
	uint32		n = 0;

	for (uint32 i = 0; i < sq->n_cached; i++)
	{
		if (block >= 0 && sq->cached[i].block != block)
			sq->cached[n++] = sq->cached[i];
		else
			cache->n_using[sq->cached[i].entry]--;
	}
	sq->n_cached = n;
}

/* ---------- pages to be put there ---------- */

/* Is what an entry has not true any more, or have the pages of ref fewer attributes there than copies of them will have? */
static bool
is_outdated(const ServiceCache *cache, uint32 entry, const CacheRequest *request, const CacheRef *ref)
{
	const CacheEntry *e = &cache->directory->entries[entry];

	if (e->lsn != ref->lsn)
		return e->lsn < ref->lsn;
	if (e->pages == 0 && cache->filling[entry] == 0)
		return e->n_attributes != request->n_attributes;
	return e->n_attributes < request->n_attributes && (e->pages & ref->pages) != 0;
}

/*
 * Which entry is to have the pages of ref?  ref gets that, and of its pages those that are to go there.  An
 * entry that is outdated is made anew, unless it is in use.  Copies with more attributes than others of the entry count as those do.
 */
static void
place_pages(ServiceCache *cache, const CacheRequest *request, CacheRef *ref)
{
	PageCache  *directory = cache->directory;
	int32		entry;
	bool		anew;

	if (ref->pages == 0)
		return;
	entry = gpurhh_cache_entry(directory, &request->file, ref->chunk);
	anew = entry < 0 || is_outdated(cache, entry, request, ref);
	if (entry >= 0)
	{
		const CacheEntry *e = &directory->entries[entry];

		if (anew ? cache->n_using[entry] > 0 || cache->filling[entry] != 0 :
			e->lsn != ref->lsn || e->n_attributes > request->n_attributes)
		{
			ref->pages = 0;
			return;
		}
		if (anew)
			gpurhh_cache_remove(directory, entry);
	}
	else
	{
		entry = take_entry(cache);
		if (entry < 0)
		{
			pg_atomic_write_u32(&directory->full_at, cache->now);
			ref->pages = 0;
			return;
		}
	}
	if (anew)
	{
		gpurhh_cache_insert(directory, entry, &request->file, ref->chunk);
		directory->entries[entry].lsn = ref->lsn;
		directory->entries[entry].n_attributes = request->n_attributes;
	}
	ref->entry = entry;
	ref->pages &= ~directory->entries[entry].pages & ~cache->filling[entry];
	cache->filling[entry] |= ref->pages;
	touch(cache, &directory->entries[entry]);
}

/*
 * Where a batch wants parts of pages to be put there, and entries have other pages with more attributes: it had better bring whole
 * pages, for which there is a place beside these.
 */
static void
complete_parts(ServiceCache *cache, CacheRequest *request, rhh_batch *batch)
{
	/* that was found when the batch was submitted before, which the device could not take then */
	if (request->n_attributes == GPURHH_ALL_ATTRIBUTES)
		batch->parts = false;
	for (uint32 r = 0; r < request->n_refs && batch->parts; r++)
	{
		const CacheRef *ref = &request->refs[r];
		const int32 entry = gpurhh_cache_entry(cache->directory, &request->file, ref->chunk);
		const CacheEntry *e = &cache->directory->entries[Max(entry, 0)];

		if (entry < 0 || ref->pages == 0 || e->lsn != ref->lsn || e->pages == 0 || e->n_attributes <= request->n_attributes)
			continue;
		batch->parts = false;
		request->n_attributes = GPURHH_ALL_ATTRIBUTES;
	}
}

/*
 * Calls of a function for each page of a batch that was to be put into the cache, with the ref that it
 * is of, and its bit there.
 */
typedef void (*PageOfRef)(void *arg, uint32 page, CacheRef *ref, uint32 bit);

static void
for_each_page(CacheRequest *request, const char *base, uint32 n_pages, PageOfRef do_page, void *arg)
{
	const BlockNumber *blocks = (const BlockNumber *) (base + request->blocks_offset);
	uint32		r = 0;

	for (uint32 p = 0; p < n_pages; p++)
	{
		if (blocks[p] == InvalidBlockNumber)
			continue;
		while (r < request->n_refs && request->refs[r].chunk != blocks[p] / GPURHH_CACHE_PAGES)
			r++;
		if (r == request->n_refs)
			return;				/* cannot happen */
		do_page(arg, p, &request->refs[r], UINT32_C(1) << blocks[p] % GPURHH_CACHE_PAGES);
	}
}

static void
give_slot(void *arg, uint32 page, CacheRef *ref, uint32 bit)
{
	uint32	   *slots = arg;

	if ((ref->pages & bit) != 0)
		slots[page] = ref->entry * GPURHH_CACHE_PAGES + pg_rightmost_one_pos32(bit);
}

/* The pages of a batch that has come back. */
typedef struct FilledPages
{
	ServiceCache *cache;
	const rhh_page *pages;
	bool		good;			/* the batch was */
} FilledPages;

static void
publish_page(void *arg, uint32 page, CacheRef *ref, uint32 bit)
{
	const FilledPages *filled = arg;
	const rhh_page *p = &filled->pages[page];
	CacheEntry *e = &filled->cache->directory->entries[ref->entry];

	if ((ref->pages & bit) == 0)
		return;
	filled->cache->filling[ref->entry] &= ~bit;
	/* somebody may have called for all pages of the table to be forgotten */
	if (!filled->good || p->bad == RHH_PAGE_UNREAD || e->lsn != ref->lsn || (e->pages & bit) != 0)
		return;
	e->pages |= bit;
	e->n_rows += p->n_rows + p->n_dropped;
	gpurhh_cache_count(filled->cache->directory, e, bit, 1);
}

/* Nothing has been filled, after all. */
static void
end_filling(ServiceCache *cache, const CacheRequest *request)
{
	for (uint32 r = 0; r < request->n_refs; r++)
		if (request->refs[r].pages != 0)
			cache->filling[request->refs[r].entry] &= ~request->refs[r].pages;
}

/* ---------- batches ---------- */

static CacheRequest *
request_of(ChannelArea *area, int block)
{
	const ChannelBlock *b = &area->blocks[block];

	return b->cache_offset == 0 ? NULL : (CacheRequest *) (gpurhh_block_base(area, block) + b->cache_offset);
}

/*
 * How the directory is locked for a batch.  Sessions look for one chunk after the other there, and would sleep if the service had
 * it for itself each time that pages are read.  Of what changes then (use_entries(), and a table's hits and used_at) sessions read nothing,
 * but for what the view shows.
 */
static LWLockMode
lock_mode(const CacheRequest *request)
{
	return request->cached ? LW_SHARED : LW_EXCLUSIVE;
}

/* What is counted for a batch's table; NULL: nothing, as there are too many tables, or its pages have gone meanwhile. */
static CacheRelation *
relation_of(PageCache *directory, const CacheRequest *request)
{
	const CacheEntry *e;

	if (!request->cached)
		return gpurhh_cache_relation(directory, &request->file);
	e = &directory->entries[request->refs[0].entry];
	return e->state == CACHE_ENTRY_USED && e->relation >= 0 ? &directory->relations[e->relation] : NULL;
}

/*
 * A batch is about to go to the device, as *batch, which it may change.  False: it has pages that are not in the
 * cache any more.
 */
bool
gpurhh_service_begin_cached(DeviceService *service, const ServiceQuery *sq, int block, rhh_batch *batch)
{
	ServiceCache *cache = service->cache;
	CacheRequest *request = request_of(service->area, block);
	bool		found = true;

	/* a batch that comes again is as it was */
	if (request == NULL || !rhh_is_beginning(&batch->from))
		return true;
	if (!gpurhh_service_may_cache(service, sq->device))
		return !request->cached;
	cache->now = now_s();
	lose_slabs(cache);
	LWLockAcquire(&cache->directory->lock, cache->device != NULL ? lock_mode(request) : LW_EXCLUSIVE);
	if (cache->device == NULL)
		choose_device(cache, sq->device);
	if (request->cached)
		found = use_entries(cache, request);
	else
	{
		uint32	   *slots = (uint32 *) (batch->base + request->blocks_offset) + batch->n_pages;

		complete_parts(cache, request, batch);
		for (uint32 r = 0; r < request->n_refs; r++)
			place_pages(cache, request, &request->refs[r]);
		memset(slots, 0xFF, batch->n_pages * sizeof(uint32));
		for_each_page(request, (const char *) batch->base, batch->n_pages, give_slot, slots);
		batch->slots_offset = (uint8_t *) slots - batch->base;
	}
	LWLockRelease(&cache->directory->lock);
	service->area->blocks[block].cache_begun = found;
	return found;
}

/* The device could not take the batch. */
void
gpurhh_service_undo_cached(DeviceService *service, int block)
{
	ServiceCache *cache = service->cache;
	CacheRequest *request = request_of(service->area, block);

	if (request == NULL || !service->area->blocks[block].cache_begun)
		return;
	service->area->blocks[block].cache_begun = false;
	if (request->cached)
		end_using(cache, request);
	else
		end_filling(cache, request);
}

/*
 * Are the pages of a batch still pinned, which the device has read from shared buffers?  Else they may have been
 * others' by then.
 */
static bool
are_pinned(ChannelArea *area, const ChannelBlock *block)
{
	bool		result;

	LWLockAcquire(&area->lock, LW_SHARED);
	result = block->pinned != 0;
	LWLockRelease(&area->lock);
	return result;
}

/* The device is done with a batch. */
void
gpurhh_service_end_cached(DeviceService *service, ServiceQuery *sq, const rhh_event *event)
{
	ServiceCache *cache = service->cache;
	ChannelBlock *block = &service->area->blocks[event->tag];
	CacheRequest *request = request_of(service->area, event->tag);
	CacheRelation *relation;
	bool		good;

	if (request == NULL)
		return;
	if (!block->cache_begun)
	{
		/* it has come again */
		if (request->cached)
			block->n_bad_pages += event->n_bad_pages;
		if (!event->more)
			release_entries(cache, sq, event->tag);
		return;
	}
	block->cache_begun = false;
	block->n_bad_pages = event->n_bad_pages;
	block->n_rows = event->n_rows;
	block->n_dropped = event->n_dropped;
	good = event->status == RHH_OK && (request->cached || are_pinned(service->area, block));
	LWLockAcquire(&cache->directory->lock, lock_mode(request));
	relation = relation_of(cache->directory, request);
	if (relation != NULL)
	{
		relation->used_at = cache->now;
		*(request->cached ? &relation->hits : &relation->misses) += block->batch.n_pages;
	}
	if (!request->cached)
	{
		const char *base = gpurhh_block_base(service->area, event->tag);
		FilledPages filled = {cache, (const rhh_page *) (base + block->batch.pages_offset),
		good};

		for_each_page(request, base, block->batch.n_pages, publish_page, &filled);
		/* if it comes again it is not put there again */
		block->cache_offset = 0;
	}
	else if (event->status == RHH_OK && event->more)
		hold_entries(sq, request, event->tag);
	else
		end_using(cache, request);
	LWLockRelease(&cache->directory->lock);
}

/* The query will have no more batches. */
void
gpurhh_service_drop_cached(DeviceService *service, ServiceQuery *sq)
{
	release_entries(service->cache, sq, -1);
	if (sq->cached != NULL)
		pfree(sq->cached);
	sq->cached = NULL;
}
