/*-------------------------------------------------------------------------
 *
 * cached_pages.c
 *		The pages of a scan that a device has copies of.
 *
 * A device keeps copies of pages of which all tuples are visible to everyone (cache/page_cache.c).  A scan
 * that is read by a device leaves out the blocks of which there is a copy that is still true, and notes
 * them; the others it reads as ever.  What vouches for a copy is the visibility map.  It is looked at
 * once for each of its pages, which is for 32672 blocks.
 *
 * docs/design.md, "Pages that stay", says why that is right, and for which tables it is: see
 * gpurhh_may_cache().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/visibilitymap.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "scan/cached_pages.h"

/* How the map is laid out, which core keeps to itself (visibilitymap.c): two bits for each block. */
#define MAP_BLOCKS ((BLCKSZ - MAXALIGN(SizeOfPageHeaderData)) * 4)

StaticAssertDecl(MAP_BLOCKS % GPURHH_CACHE_PAGES == 0, "chunks do not lie within pages of the visibility map");

/*
 * A scan whose blocks are to be left out if they are in the cache, with so many attributes of each row; it has not begun.
 * NULL: none are.  The result is in context, until gpurhh_cached_pages_end().
 */
CachedPages *
gpurhh_cached_pages_create(HeapScanDesc scan, uint8 n_attributes, MemoryContext context)
{
	Relation	rel = scan->rs_base.rs_rd;
	Snapshot	snapshot = scan->rs_base.rs_snapshot;
	CachedPages *cached;

	/* historic snapshots are not of the time when they are taken */
	if (!gpurhh_may_cache(rel) || snapshot->snapshot_type != SNAPSHOT_MVCC || snapshot->takenDuringRecovery)
		return NULL;
	cached = MemoryContextAllocZero(context, sizeof(CachedPages));
	cached->scan = scan;
	cached->file = gpurhh_relation_file(rel);
	cached->n_attributes = n_attributes;
	cached->looks[0].page = cached->looks[1].page = InvalidBlockNumber;
	cached->most_pages = UINT32_MAX;
	return cached;
}

/* Before the scan ends, unless by an error. */
void
gpurhh_cached_pages_end(CachedPages *cached)
{
#ifdef GPURHH_SCANS_STREAM
	if (cached->stream != NULL)
		read_stream_end(cached->stream);
#endif
	if (cached->refs != NULL)
		pfree(cached->refs);
	pfree(cached);
}

/* What is known of the page of the visibility map that a block's bit is in; NULL: nothing. */
static const MapLook *
find_look(const CachedPages *cached, BlockNumber block)
{
	for (int i = 0; i < 2; i++)
		if (cached->looks[i].page == block / MAP_BLOCKS)
			return &cached->looks[i];
	return NULL;
}

/* Looks at the page of the map that a block's bit is in. */
static void
look_at_map(Relation rel, BlockNumber block, MapLook *look)
{
	Buffer		buffer = InvalidBuffer;

	look->page = block / MAP_BLOCKS;
	look->lsn = InvalidXLogRecPtr;
	/* that pins it, if there is such a page */
	(void) visibilitymap_get_status(rel, block, &buffer);
	if (BufferIsValid(buffer))
	{
		/* nobody sets or clears bits meanwhile */
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		look->lsn = PageGetLSN(BufferGetPage(buffer));
		memcpy(look->bits, PageGetContents(BufferGetPage(buffer)), MAP_BLOCKS / 4);
		LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		ReleaseBuffer(buffer);
	}
}

/* What is known of that page, at which it looks if need be. */
static const MapLook *
get_look(CachedPages *cached, BlockNumber block)
{
	const MapLook *known = find_look(cached, block);

	if (known != NULL)
		return known;
	cached->last_look = 1 - cached->last_look;
	look_at_map(cached->scan->rs_base.rs_rd, block, &cached->looks[cached->last_look]);
	return &cached->looks[cached->last_look];
}

/* Is the block's bit set? */
static bool
is_set(const MapLook *look, BlockNumber block)
{
	const uint32 at = block % MAP_BLOCKS;

	return (look->bits[at / 4] >> (at % 4 * 2) & VISIBILITYMAP_ALL_VISIBLE) != 0;
}

/* A bit for each block of a chunk, which begins with this one, whose bit is set. */
static uint32
bits_of_chunk(const MapLook *look, BlockNumber first)
{
	const uint8 *bits = &look->bits[first % MAP_BLOCKS / 4];
	uint32		result = 0;

	for (uint32 i = 0; i < GPURHH_CACHE_PAGES / 4; i++)
	{
		/* the bits of four blocks that say "all visible" have every second place */
		const uint32 four = bits[i];

		StaticAssertStmt(VISIBILITYMAP_ALL_VISIBLE == 1, "the visibility map has other bits");
		result |= ((four & 1) | (four >> 1 & 2) | (four >> 2 & 4) | (four >> 3 & 8)) << 4 * i;
	}
	return result;
}

/* Finds out what the cache has of the block's chunk. */
static void
find_chunk(CachedPages *cached, BlockNumber block)
{
	const BlockNumber first = block - block % GPURHH_CACHE_PAGES;
	const MapLook *look = get_look(cached, block);
	CacheRef   *chunk = &cached->chunk;

	memset(chunk, 0, sizeof(CacheRef));
	chunk->chunk = block / GPURHH_CACHE_PAGES;
	chunk->lsn = look->lsn;
	cached->has_chunk = true;
	cached->in_refs = false;
	if (look->lsn == InvalidXLogRecPtr || !gpurhh_cache_find(&cached->file, cached->n_attributes, chunk, &cached->too_few))
	{
		chunk->pages = 0;
		return;
	}
	chunk->pages &= bits_of_chunk(look, first);
}

/* Notes the block, which is next, if the cache has its page; else the scan has to read it. */
bool
gpurhh_cached_pages_take(CachedPages *cached, BlockNumber block)
{
	const uint32 bit = UINT32_C(1) << block % GPURHH_CACHE_PAGES;

	if (cached->off)
		return false;
	if (!cached->has_chunk || cached->chunk.chunk != block / GPURHH_CACHE_PAGES)
		find_chunk(cached, block);
	if ((cached->chunk.pages & bit) == 0)
		return false;
	if (!cached->in_refs)
	{
		if (cached->n_refs == cached->room)
		{
			cached->room = Max(2 * cached->room, 256);
			cached->refs = cached->refs == NULL ?
				MemoryContextAlloc(GetMemoryChunkContext(cached), cached->room * sizeof(CacheRef)) :
				repalloc_huge(cached->refs, cached->room * sizeof(CacheRef));
		}
		cached->refs[cached->n_refs] = cached->chunk;
		cached->refs[cached->n_refs++].pages = 0;
		cached->in_refs = true;
	}
	cached->refs[cached->n_refs - 1].pages |= bit;
	cached->n_pages++;
	return true;
}

/*
 * After a block was taken: notes the ones that follow, as long as they are of the same chunk and the cache has
 * their pages, but no more than so many.  Returns how many.
 */
uint32
gpurhh_cached_pages_take_more(CachedPages *cached, BlockNumber block, uint32 most)
{
	const uint32 at = block % GPURHH_CACHE_PAGES;
	const uint64 others = ~((uint64) cached->chunk.pages >> at >> 1);
	const uint32 n = Min((uint32) pg_rightmost_one_pos64(others), most);

	/* all bits from this block on, up to, but without, the first that is not there */
	cached->refs[cached->n_refs - 1].pages |= (uint32) (((UINT64CONST(1) << n) - 1) << at << 1);
	cached->n_pages += n;
	return n;
}

/* Shall they be taken, before the scan goes on? */
bool
gpurhh_cached_pages_are_enough(const CachedPages *cached)
{
	return cached->n_pages >= cached->most_pages;
}

/*
 * Takes blocks that have been left out, of whole chunks: of at most most_refs, and most_pages, which is more than a
 * chunk has, and of no more than most_rows rows, unless the first chunk alone has them.  Returns how many chunks.
 */
uint32
gpurhh_cached_pages_get(CachedPages *cached, CacheRef *refs, uint32 most_refs, uint32 most_pages,
						uint64 most_rows, uint32 *n_pages, uint32 *n_rows)
{
	uint32		n = 0;

	*n_pages = *n_rows = 0;
	while (n < Min(cached->n_refs, most_refs))
	{
		const CacheRef *ref = &cached->refs[cached->n_refs - 1 - n];
		const uint32 pages = pg_popcount32(ref->pages);

		if (*n_pages + pages > most_pages || (n > 0 && *n_rows + (uint64) ref->n_rows > most_rows))
			break;
		refs[n++] = *ref;
		*n_pages += pages;
		*n_rows += ref->n_rows;
	}
	/* the last ones first, so the others stay where they are */
	cached->n_refs -= n;
	cached->n_pages -= *n_pages;
	cached->in_refs &= n == 0;
	return n;
}

/* Need the page of this block, which is next, not be looked at, as the map vouches for it?  Then that is what is known of it. */
bool
gpurhh_cached_pages_trust(CachedPages *cached, BlockNumber block)
{
	const MapLook *look = cached->may_trust && !cached->off ? find_look(cached, block) : NULL;

	cached->unseen = look != NULL && look->lsn != InvalidXLogRecPtr && is_set(look, block);
	if (cached->unseen)
		cached->all_visible = true;
	return cached->unseen;
}

/*
 * May the page of this block, which has been read last, be put into the cache?  Then *lsn is what vouches
 * for it, if gpurhh_cached_pages_confirm() says so, too: of a look at the map from before that at the page, as what is set
 * later vouches for a later page.
 */
bool
gpurhh_cached_pages_vouch(const CachedPages *cached, BlockNumber block, XLogRecPtr *lsn)
{
	const MapLook *look = find_look(cached, block);

	if (look == NULL || !cached->all_visible || cached->off)
		return false;
	*lsn = look->lsn;
	return look->lsn != InvalidXLogRecPtr && is_set(look, block);
}

/*
 * Does the map still vouch for the n pages of a batch for which it did before they were read?  If not, a page's block becomes
 * InvalidBlockNumber.  So between two looks at the map the pages have not changed, whatever file comes to have that LSN.
 */
void
gpurhh_cached_pages_confirm(CachedPages *cached, CacheRequest *request, BlockNumber *blocks, uint32 n)
{
	MapLook    *look = &cached->second;
	CacheRef   *ref = request->refs;

	look->page = InvalidBlockNumber;
	for (uint32 p = 0; p < n; p++)
	{
		if (blocks[p] == InvalidBlockNumber)
			continue;
		while (ref->chunk != blocks[p] / GPURHH_CACHE_PAGES)
			ref++;
		if (look->page != blocks[p] / MAP_BLOCKS)
			look_at_map(cached->scan->rs_base.rs_rd, blocks[p], look);
		if (look->lsn == ref->lsn && is_set(look, blocks[p]))
			continue;
		ref->pages &= ~(UINT32_C(1) << blocks[p] % GPURHH_CACHE_PAGES);
		blocks[p] = InvalidBlockNumber;
	}
}
