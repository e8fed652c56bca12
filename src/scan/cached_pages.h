/*-------------------------------------------------------------------------
 *
 * cached_pages.h
 *		The pages of a scan that a device has copies of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SCAN_CACHED_PAGES_H
#define GPURHH_SCAN_CACHED_PAGES_H

#include "access/heapam.h"

#include "cache/page_cache.h"
#include "compat.h"

/* A page of the visibility map, as it was when it was looked at. */
typedef struct MapLook
{
	BlockNumber page;			/* of the map; InvalidBlockNumber: none */
	XLogRecPtr	lsn;
	uint8		bits[BLCKSZ];
} MapLook;

/* A scan whose blocks are read from the cache where that has them; see cached_pages.c. */
typedef struct CachedPages
{
	HeapScanDesc scan;
	RelationFile file;
	MapLook		looks[2];
	int			last_look;
	MapLook		second;			/* after pages have been read */
	bool		off;			/* no more blocks are left out */
	uint8		n_attributes;	/* that copies have to have of each row, */
	bool		too_few;		/* and some have not */

	/* blocks that were left out, and are in the cache, in the order of the scan */
	CacheRef   *refs;
	uint32		n_refs;
	uint32		room;
	uint32		n_pages;		/* of these */
	uint32		most_pages;		/* with so many they shall be taken before the scan goes on */

	/* the chunk of the block that was asked for last */
	bool		has_chunk;
	CacheRef	chunk;			/* what the cache has of it, and is visible to all */
	bool		in_refs;		/* the last of refs is of it */

	bool		all_visible;	/* the page that was read last */
	bool		may_trust;		/* pages for which the map vouches need not be looked at; */
	bool		unseen;			/* that one was not, */
	Buffer		buffer;			/* and is in this buffer */
#ifdef GPURHH_SCANS_STREAM
	ReadStream *stream;
	bool		ended;
#endif
} CachedPages;

extern CachedPages *gpurhh_cached_pages_create(HeapScanDesc scan, uint8 n_attributes, MemoryContext context);
extern void gpurhh_cached_pages_end(CachedPages *cached);
extern bool gpurhh_cached_pages_take(CachedPages *cached, BlockNumber block);
extern uint32 gpurhh_cached_pages_take_more(CachedPages *cached, BlockNumber block, uint32 most);
extern bool gpurhh_cached_pages_are_enough(const CachedPages *cached);
extern uint32 gpurhh_cached_pages_get(CachedPages *cached, CacheRef *refs, uint32 most_refs,
									  uint32 most_pages, uint64 most_rows, uint32 *n_pages, uint32 *n_rows);
extern bool gpurhh_cached_pages_trust(CachedPages *cached, BlockNumber block);
extern bool gpurhh_cached_pages_vouch(const CachedPages *cached, BlockNumber block, XLogRecPtr *lsn);
extern void gpurhh_cached_pages_confirm(CachedPages *cached, CacheRequest *request,
										BlockNumber *blocks, uint32 n);

#endif							/* GPURHH_SCAN_CACHED_PAGES_H */
