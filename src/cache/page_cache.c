/*-------------------------------------------------------------------------
 *
 * page_cache.c
 *		Which pages of tables a device has copies of.
 *
 * A device's memory that no query needs has copies of tables' pages (rhh_device.h, "The cache"), so
 * that a scan need not read those again.  This file has the directory of these: a hash table in
 * main shared memory, by a table's file and the number of a chunk of 32 pages.
 *
 * A copy says which of the page's tuples were visible to everyone, and is right as long as the
 * visibility map's bit of the page stays set, and the page of the map that has the bit has the LSN that it
 * had when the copy was made.  docs/design.md, "Pages that stay", has the proof.  So an entry has that LSN;
 * a session looks at the map, and then asks the directory what is there under what it has seen.  Copies need not
 * have all attributes of rows: an entry says how many they have, and a session how many it needs.
 *
 * The service alone makes entries and gives them up (service/service_cache.c).  What a session has found may
 * be gone by the time it uses that; so a batch says what it has found, and the service looks again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "cache/page_cache.h"
#include "settings.h"

/* With gpurhh.cache_size = -1 nobody knows yet how much memory the device has: entries for 64 GB. */
#define AUTO_CACHE_MB 65536

/* For so long the cache is taken to be full after there was no place in it, in s. */
#define FULL_S 5

static PageCache *page_cache = NULL;
static uint32 n_entries = 0;
static uint32 n_buckets = 0;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* ---------- in shared memory ---------- */

static Size
cache_bytes(void)
{
	return offsetof(PageCache, entries) + n_entries * sizeof(CacheEntry) +
		n_buckets * sizeof(int32);
}

static int32 *
buckets(PageCache *cache)
{
	return (int32 *) &cache->entries[cache->n_entries];
}

static void
request_cache(void)
{
	const Size	mb = gpurhh_cache_size_mb < 0 ? AUTO_CACHE_MB : gpurhh_cache_size_mb;

	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	n_entries = mb * 1024 * 1024 / BLCKSZ / GPURHH_CACHE_PAGES;
	if (n_entries == 0)
		return;
	for (n_buckets = 64; n_buckets < n_entries; n_buckets *= 2)
		;
	RequestAddinShmemSpace(cache_bytes());
}

static void
startup_cache(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	if (n_entries == 0)
		return;
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	page_cache = ShmemInitStruct("gpurhh page cache", cache_bytes(), &found);
	if (!found)
	{
		memset(page_cache, 0, offsetof(PageCache, entries));
		page_cache->tranche_id = LWLockNewTrancheId();
		LWLockInitialize(&page_cache->lock, page_cache->tranche_id);
		pg_atomic_init_u32(&page_cache->full_at, 0);
		page_cache->n_entries = n_entries;
		page_cache->n_buckets = n_buckets;
		/* its memory is touched when a service first has pages */
	}
	LWLockRegisterTranche(page_cache->tranche_id, "gpurhh cache");
	LWLockRelease(AddinShmemInitLock);
}

void
gpurhh_init_page_cache(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_cache;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_cache;
}

/* NULL: there is none, since the library is not preloaded or gpurhh.cache_size is 0. */
PageCache *
gpurhh_page_cache(void)
{
	return page_cache;
}

/* ---------- the directory ---------- */

static bool
is_file(const RelationFile *a, const RelationFile *b)
{
	return a->number == b->number && a->database == b->database && a->tablespace == b->tablespace;
}

static int32 *
bucket_of(PageCache *cache, const RelationFile *file, uint32 chunk)
{
	uint32		hash = hash_combine(murmurhash32(file->number ^ file->database), murmurhash32(chunk));

	return &buckets(cache)[hash & (cache->n_buckets - 1)];
}

/* Forgets everything: the device has nothing. */
void
gpurhh_cache_reset(PageCache *cache)
{
	cache->device[0] = '\0';
	cache->n_relations = 0;
	memset(cache->entries, 0, cache->n_entries * sizeof(CacheEntry));
	memset(buckets(cache), 0xFF, cache->n_buckets * sizeof(int32));
}

/* The entry of a chunk; -1: there is none. */
int32
gpurhh_cache_entry(PageCache *cache, const RelationFile *file, uint32 chunk)
{
	int32		entry = *bucket_of(cache, file, chunk);

	while (entry >= 0 && !(cache->entries[entry].chunk == chunk && is_file(&cache->entries[entry].file, file)))
		entry = cache->entries[entry].next;
	return entry;
}

/* What the cache knows of a table, to which it comes if need be; NULL: it knows too many. */
CacheRelation *
gpurhh_cache_relation(PageCache *cache, const RelationFile *file)
{
	CacheRelation *unused = NULL;

	for (int i = 0; i < cache->n_relations; i++)
	{
		CacheRelation *relation = &cache->relations[i];

		if (is_file(&relation->file, file))
			return relation;
		if (relation->n_entries == 0 && (unused == NULL || relation->used_at < unused->used_at))
			unused = relation;
	}
	if (cache->n_relations < GPURHH_CACHE_RELATIONS)
		unused = &cache->relations[cache->n_relations++];
	if (unused == NULL)
		return NULL;
	memset(unused, 0, sizeof(CacheRelation));
	unused->file = *file;
	return unused;
}

/* The pages of an entry are there, or (n -1) are not any more. */
void
gpurhh_cache_count(PageCache *cache, const CacheEntry *e, uint32 pages, int n)
{
	const int	n_pages = n * pg_popcount32(pages);
	CacheRelation *relation;

	if (e->relation < 0)
		return;
	relation = &cache->relations[e->relation];
	relation->n_pages += n_pages;
	if (e->n_attributes == GPURHH_ALL_ATTRIBUTES)
		return;
	if (relation->n_partial == 0 || e->n_attributes < relation->n_attributes)
		relation->n_attributes = e->n_attributes;
	relation->n_partial += n_pages;
}

/* A free entry, which is on no list, becomes that of a chunk that has none, without pages. */
void
gpurhh_cache_insert(PageCache *cache, int32 entry, const RelationFile *file, uint32 chunk)
{
	CacheEntry *e = &cache->entries[entry];
	int32	   *bucket = bucket_of(cache, file, chunk);
	CacheRelation *relation = gpurhh_cache_relation(cache, file);

	memset(e, 0, sizeof(CacheEntry));
	e->file = *file;
	e->chunk = chunk;
	e->state = CACHE_ENTRY_USED;
	e->relation = relation != NULL ? relation - cache->relations : -1;
	if (relation != NULL)
		relation->n_entries++;
	e->next = *bucket;
	*bucket = entry;
}

/* An entry becomes a free one, which is on no list. */
void
gpurhh_cache_remove(PageCache *cache, int32 entry)
{
	CacheEntry *e = &cache->entries[entry];
	int32	   *at = bucket_of(cache, &e->file, e->chunk);

	while (*at != entry)
		at = &cache->entries[*at].next;
	*at = e->next;
	if (e->relation >= 0)
		cache->relations[e->relation].n_entries--;
	gpurhh_cache_count(cache, e, e->pages, -1);
	memset(e, 0, sizeof(CacheEntry));
	e->state = CACHE_ENTRY_FREE;
	e->next = -1;
}

/*
 * Which pages of a chunk are there, with so many attributes, under the LSN of the visibility map's page?  ref has chunk and lsn;
 * it gets entry, pages and n_rows.  False: none are; *too_few becomes true if that is only because of their attributes.
 */
bool
gpurhh_cache_find(const RelationFile *file, uint8 n_attributes, CacheRef *ref, bool *too_few)
{
	PageCache  *cache = page_cache;
	const CacheEntry *e = NULL;
	int32		entry = -1;

	LWLockAcquire(&cache->lock, LW_SHARED);
	if (cache->device[0] != '\0')
		entry = gpurhh_cache_entry(cache, file, ref->chunk);
	if (entry >= 0 && cache->entries[entry].lsn == ref->lsn)
		e = &cache->entries[entry];
	if (e != NULL && e->n_attributes < n_attributes)
	{
		*too_few |= e->pages != 0;
		e = NULL;
	}
	if (e != NULL)
	{
		ref->entry = entry;
		ref->pages = e->pages;
		ref->n_rows = e->n_rows;
	}
	LWLockRelease(&cache->lock);
	return e != NULL && ref->pages != 0;
}

/*
 * Has this device the cache, or for "auto" any, as far as is known by now?  *n_threads: of the CPU that work for it; 0: it is a
 * GPU.
 */
bool
gpurhh_cache_device(const char *device, uint32 *n_threads)
{
	bool		result;

	*n_threads = 0;
	if (page_cache == NULL)
		return false;
	LWLockAcquire(&page_cache->lock, LW_SHARED);
	result = page_cache->device[0] != '\0' &&
		(pg_strcasecmp(device, "auto") == 0 || pg_strcasecmp(device, page_cache->device) == 0 ||
		 (pg_strcasecmp(device, "cuda") == 0 && pg_strncasecmp(page_cache->device, "cuda:", 5) == 0));
	*n_threads = page_cache->n_threads;
	LWLockRelease(&page_cache->lock);
	return result;
}

/*
 * May a table's pages be kept in the cache, and be read from there, as far as that can be told before it is
 * scanned?  Only the leader of a parallel plan knows of a file that the transaction has made.
 */
bool
gpurhh_may_cache(Relation rel)
{
	return page_cache != NULL && RelationNeedsWAL(rel) && !gpurhh_is_new_file(rel) &&
		!IsCatalogRelation(rel) && !IsolationIsSerializable() && !RecoveryInProgress() &&
		!gpurhh_snapshots_get_old();
}

/* Has it no place for pages, or had none a moment ago? */
bool
gpurhh_cache_is_full(void)
{
	const uint32 full_at = pg_atomic_read_u32(&page_cache->full_at);

	return full_at != 0 && (uint32) (GetCurrentTimestamp() / USECS_PER_SEC) - full_at < FULL_S;
}

/* How many pages it has room for. */
double
gpurhh_cache_room(void)
{
	return page_cache == NULL ? 0 : (double) page_cache->n_entries * GPURHH_CACHE_PAGES;
}

/*
 * How many pages of a table the device has copies of, with so many attributes as far as is known, which need not all be true still:
 * what the planner may expect.
 */
uint32
gpurhh_cache_pages(const RelationFile *file, int n_attributes)
{
	PageCache  *cache = page_cache;
	uint32		n = 0;

	if (cache == NULL)
		return 0;
	LWLockAcquire(&cache->lock, LW_SHARED);
	for (int i = 0; i < cache->n_relations && cache->device[0] != '\0'; i++)
	{
		const CacheRelation *relation = &cache->relations[i];

		if (is_file(&relation->file, file))
			n = relation->n_pages - (n_attributes > relation->n_attributes ? relation->n_partial : 0);
	}
	LWLockRelease(&cache->lock);
	return n;
}

/* Nobody wants the pages of a table any more.  Returns how many there were. */
uint64
gpurhh_cache_forget(const RelationFile *file)
{
	PageCache  *cache = page_cache;
	uint64		n = 0;

	LWLockAcquire(&cache->lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < cache->n_entries && cache->device[0] != '\0'; i++)
	{
		CacheEntry *e = &cache->entries[i];

		if (e->state != CACHE_ENTRY_USED || !is_file(&e->file, file))
			continue;
		n += pg_popcount32(e->pages);
		gpurhh_cache_count(cache, e, e->pages, -1);
		e->pages = 0;
		e->n_rows = 0;
		e->lsn = InvalidXLogRecPtr;
	}
	LWLockRelease(&cache->lock);
	return n;
}
