/*
 * rhh_cpu_columns.h
 *		The cache of the CPU device: copies of pages, and columns that were made of them.
 *
 * A slab has slots for pages, as rhh_device.h says ("The cache").  Making columns of a page takes the CPU
 * several times as long as all that is done with them afterwards.  So the columns that a batch
 * needs of pages in the cache are kept beside them.  A chunk is RHH_CPU_CHUNK_PAGES slots; a column of a chunk has the values
 * of the rows of all of its pages, one behind the other, and belongs to what it is made of (rhh_page_load), so that
 * any query which needs that has it.
 */
#ifndef RHH_CPU_COLUMNS_H
#define RHH_CPU_COLUMNS_H

#include <pthread.h>

#include "rhh_pages.h"
#include "cpu/rhh_cpu_table.h"

#define RHH_CPU_CHUNK_PAGES 32u
#define RHH_CPU_CHUNK_ROWS (RHH_CPU_CHUNK_PAGES * RHH_PAGE_ITEMS)	/* at most */
#define RHH_CPU_SLAB_CHUNKS (RHH_SLAB_PAGES / RHH_CPU_CHUNK_PAGES)

/* The bytes of a slab: its pages, and what is known of each. */
#define RHH_CPU_SLAB_BYTES ((size_t) RHH_SLAB_PAGES * (RHH_PAGE_BYTES + sizeof(rhh_page)))

/* What a column is made of: equal values of this give equal columns of the same page. */
typedef struct rhh_cpu_kept_source
{
	rhh_page_load load;			/* its column is 0, and it may be NULL */
	uint32_t	bytes;			/* of a value */
	uint64_t	attributes;		/* a hash of those up to that of load */
} rhh_cpu_kept_source;

/* Huge pages for columns, one behind the other; they are given back when all of these are freed. */
typedef struct rhh_cpu_column_arena
{
	uint32_t	n_live;			/* columns */
	size_t		used;			/* bytes, this included */
} rhh_cpu_column_arena;

typedef struct rhh_cpu_kept_column
{
	struct rhh_cpu_kept_column *next;	/* of the chunk */
	rhh_cpu_kept_source source;
	rhh_cpu_column_arena *arena;	/* that has all this */
	uint32_t	bad;			/* a bit for each page of the chunk of which it cannot be made, */
	uint32_t	nulls;			/* and for each with a value that is NULL */
	uint8_t    *null_rows;		/* a bit for each row */
	uint8_t    *values;
} rhh_cpu_kept_column;

typedef struct rhh_cpu_kept_chunk
{
	rhh_cpu_kept_column *columns;
	uint32_t	pages;			/* a bit for each that these have the rows of */
	uint32_t	n_users;
	uint32_t	used_at;		/* in s */
	bool		making;			/* somebody makes columns */
	bool		stale;			/* they are to be freed when nobody uses them */
	uint32_t	first_row[RHH_CPU_CHUNK_PAGES + 1]; /* of each page, and behind the last one; those that are
													 * not in pages have no rows */
} rhh_cpu_kept_chunk;

typedef struct rhh_cpu_cache
{
	uint8_t    *slabs[RHH_MAX_SLABS];	/* the caller's thread adds them */
	rhh_cpu_budget *budget;		/* the device's */

	pthread_mutex_t lock;		/* of all that follows, chunks included, except what a chunk's columns have */
	rhh_cpu_kept_chunk *chunks[RHH_MAX_SLABS];	/* of each slab */
	rhh_cpu_column_arena *arena;	/* for the next column; NULL: there is none */
	uint64_t	column_bytes;	/* of all arenas, */
	uint64_t	most_bytes;		/* which may be no more than this: as many as slabs have */
	uint32_t	hand;			/* the chunk that is asked next whether its columns may go */
	uint32_t	n_chunks;		/* of all slabs */
} rhh_cpu_cache;

/*
 * Pages that are read after those of a chunk, and are asked for while columns of these are made, since memory is idle meanwhile: one
 * for each page, in steps, because a processor waits for few lines at a time, and what it does next would wait for the others.
 */
typedef struct rhh_cpu_ahead
{
	uint32_t	n;
	const uint8_t *page[RHH_CPU_CHUNK_PAGES];	/* NULL: it is nowhere */
	const uint8_t *slot[RHH_CPU_CHUNK_PAGES];	/* where it is copied to; NULL: nowhere */

	/* the page that is being asked for: */
	uint32_t	number;
	uint32_t	asked_bytes;	/* so far, in so many steps, ... */
	uint32_t	n_steps;
	uint32_t	step_bytes;		/* ... of so many each */
} rhh_cpu_ahead;

extern void rhh_cpu_cache_init(rhh_cpu_cache *cache, rhh_cpu_budget *budget);
extern void rhh_cpu_cache_free(rhh_cpu_cache *cache);

/* Makes slab i, which must not be there.  False: there is no memory. */
extern bool rhh_cpu_cache_add(rhh_cpu_cache *cache, uint32_t i);

/* Where the page of a slot is, and *page is what is known of it; NULL: there is no such slot. */
extern uint8_t *rhh_cpu_cache_slot(const rhh_cpu_cache *cache, uint32_t slot, rhh_page **page);

/* Slots of a chunk are to get other pages, so its columns go.  Without that they would be of pages that are not there any more. */
extern void rhh_cpu_cache_begin(rhh_cpu_cache *cache, uint32_t chunk);

/* After that: puts a page, which is as its caller has said, into a slot, of which nobody reads what it has. */
extern void rhh_cpu_cache_keep(rhh_cpu_cache *cache, uint32_t slot, const uint8_t *memory, const rhh_page *page);

/* What the loads and then the inputs of a layout are made of. */
extern void rhh_cpu_kept_sources(const rhh_page_layout *layout, const uint8_t *column_bytes, rhh_cpu_kept_source *sources);

/*
 * The columns of a chunk, one for each of n sources, which are made if they are not there.  `pages` are those of it that the
 * caller may read, which must stay what they are; ahead: what is read afterwards.  NULL: there are none.  Else the chunk stays as it is until
 * rhh_cpu_end_columns().
 */
extern const rhh_cpu_kept_chunk *rhh_cpu_use_columns(rhh_cpu_cache *cache, uint32_t chunk, uint32_t pages,
													 const rhh_page_layout *layout, const rhh_cpu_kept_source *sources,
													 uint32_t n, rhh_cpu_ahead *ahead,
													 const rhh_cpu_kept_column **columns);
extern void rhh_cpu_end_columns(rhh_cpu_cache *cache, uint32_t chunk);

#endif							/* RHH_CPU_COLUMNS_H */
