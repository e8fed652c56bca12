/*-------------------------------------------------------------------------
 *
 * page_cache.h
 *		Which pages of tables a device has copies of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_CACHE_PAGE_CACHE_H
#define GPURHH_CACHE_PAGE_CACHE_H

#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/lwlock.h"

#include "compat.h"

/*
 * Pages of a chunk, which is what the cache has its entries for.  The visibility map's pages begin
 * with a chunk.
 */
#define GPURHH_CACHE_PAGES 32

#define GPURHH_CACHE_DEVICE_LEN 32

/* A copy has all attributes of its rows; more than a layout of pages has. */
#define GPURHH_ALL_ATTRIBUTES UINT8_MAX

/* Pages of one chunk of a table. */
typedef struct CacheRef
{
	uint32		entry;			/* of the cache; page i of the chunk is in slot
								 * entry * GPURHH_CACHE_PAGES + i */
	uint32		chunk;			/* the first block's number, in chunks */
	XLogRecPtr	lsn;			/* of the page of the visibility map that vouches for them */
	uint32		pages;			/* a bit for each page that is meant */
	uint32		n_rows;			/* that these have, or more */
} CacheRef;

/*
 * What a batch of pages has to do with the cache; in its block.  The refs, which for pages of the cache have one
 * or more, are in the order of the batch's pages.
 */
typedef struct CacheRequest
{
	RelationFile file;
	bool		cached;			/* the pages are to be read from the cache; else they are to be
								 * put there, in so far as they have a block's number: */
	uint8		n_attributes;	/* that the copies have to have, or will have, of each row */
	uint32		blocks_offset;	/* in the block: InvalidBlockNumber if not */
	uint32		n_refs;
	CacheRef	refs[FLEXIBLE_ARRAY_MEMBER];
} CacheRequest;

typedef struct CacheEntry
{
	RelationFile file;
	uint32		chunk;
	XLogRecPtr	lsn;			/* invalid: nobody wants what is there */
	uint32		pages;			/* that are there */
	uint32		n_rows;			/* of these */
	int32		next;			/* of those with the same hash, or of free ones; -1: none */
	int16		relation;		/* whose it is, see below */
	uint8		state;			/* CacheEntryState */
	uint8		usage;			/* how often it was used of late */
	uint8		n_attributes;	/* that the pages have, at least, of each row */
	uint32		used_at;		/* when that was last, in s */
} CacheEntry;

typedef enum CacheEntryState
{
	CACHE_ENTRY_NONE,			/* the device has no memory for it */
	CACHE_ENTRY_FREE,
	CACHE_ENTRY_USED
} CacheEntryState;

#define GPURHH_CACHE_RELATIONS 512

/* What the cache did for a table since it has pages of that. */
typedef struct CacheRelation
{
	RelationFile file;
	uint32		n_entries;		/* 0: it may be forgotten */
	uint32		n_pages;
	uint32		n_partial;		/* of these, that do not have all attributes, */
	uint8		n_attributes;	/* but so many, or more */
	uint32		used_at;		/* in s */
	uint64		hits;			/* pages that were read from the cache */
	uint64		misses;			/* and from shared buffers */
} CacheRelation;

/*
 * In main shared memory.  Entries are made and given up by the device service alone; sessions read them,
 * and may say that they do not want some.
 */
typedef struct PageCache
{
	LWLock		lock;
	int			tranche_id;
	char		device[GPURHH_CACHE_DEVICE_LEN];	/* that has them; "": none has yet */
	uint32		n_threads;		/* of the CPU that work for it; 0: it is a GPU */
	uint32		n_entries;		/* that there may be; 0: there is no cache */
	uint32		n_buckets;		/* a power of two */
	pg_atomic_uint32 full_at;	/* when there was no place for a page, in s; 0: never */
	int			n_relations;	/* of these, the first so many have been used */
	CacheRelation relations[GPURHH_CACHE_RELATIONS];
	CacheEntry	entries[FLEXIBLE_ARRAY_MEMBER];
	/* then int32 buckets[n_buckets], of the first entry each */
} PageCache;

extern void gpurhh_init_page_cache(void);
extern PageCache *gpurhh_page_cache(void);
extern bool gpurhh_cache_find(const RelationFile *file, uint8 n_attributes, CacheRef *ref, bool *too_few);
extern uint64 gpurhh_cache_forget(const RelationFile *file);
extern bool gpurhh_cache_device(const char *device, uint32 *n_threads);
extern double gpurhh_cache_room(void);
extern bool gpurhh_cache_is_full(void);
extern bool gpurhh_may_cache(Relation rel);
extern uint32 gpurhh_cache_pages(const RelationFile *file, int n_attributes);

/* Used by the service, which holds the lock, and exclusively, but for gpurhh_cache_entry(). */
extern void gpurhh_cache_reset(PageCache *cache);
extern int32 gpurhh_cache_entry(PageCache *cache, const RelationFile *file, uint32 chunk);
extern void gpurhh_cache_insert(PageCache *cache, int32 entry, const RelationFile *file, uint32 chunk);
extern void gpurhh_cache_remove(PageCache *cache, int32 entry);
extern void gpurhh_cache_count(PageCache *cache, const CacheEntry *e, uint32 pages, int n);
extern CacheRelation *gpurhh_cache_relation(PageCache *cache, const RelationFile *file);

#endif							/* GPURHH_CACHE_PAGE_CACHE_H */
