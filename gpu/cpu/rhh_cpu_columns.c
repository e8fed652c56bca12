/*
 * rhh_cpu_columns.c
 *		The cache of the CPU device.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rhh_decimals.h"
#include "cpu/rhh_cpu_columns.h"

/* The columns of a chunk may go when they were not used for so long, ... */
#define KEPT_S 10
/* ... and who has no room for others asks so many chunks. */
#define HAND_STEPS 64

#define ARENA_BYTES ((size_t) 8 << 20)

#define ROUND_UP(n, to) (((n) + (to) - 1) / (to) * (to))

static uint32_t
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t) ts.tv_sec;
}

/* ---------- slabs and slots ---------- */

void
rhh_cpu_cache_init(rhh_cpu_cache *cache, rhh_cpu_budget *budget)
{
	memset(cache, 0, sizeof(*cache));
	cache->budget = budget;
	pthread_mutex_init(&cache->lock, NULL);
}

static void
give_back_arena(rhh_cpu_cache *cache, rhh_cpu_column_arena *arena)
{
	cache->column_bytes -= ARENA_BYTES;
	rhh_cpu_give_pages(cache->budget->reserve, arena, ARENA_BYTES);
	rhh_cpu_release(cache->budget, ARENA_BYTES);
}

/* The caller holds the lock, here and in the next one. */
static void
free_column(rhh_cpu_cache *cache, rhh_cpu_kept_column *column)
{
	rhh_cpu_column_arena *arena = column->arena;

	if (--arena->n_live > 0)
		return;
	if (arena != cache->arena)
		give_back_arena(cache, arena);
	else
		arena->used = ROUND_UP(sizeof(*arena), 64);
}

/* Nobody uses the chunk. */
static void
free_columns(rhh_cpu_cache *cache, rhh_cpu_kept_chunk *chunk)
{
	while (chunk->columns != NULL)
	{
		rhh_cpu_kept_column *column = chunk->columns;

		chunk->columns = column->next;
		free_column(cache, column);
	}
	chunk->pages = 0;
	chunk->stale = false;
}

void
rhh_cpu_cache_free(rhh_cpu_cache *cache)
{
	for (uint32_t s = 0; s < RHH_MAX_SLABS; s++)
	{
		for (uint32_t i = 0; cache->chunks[s] != NULL && i < RHH_CPU_SLAB_CHUNKS; i++)
			free_columns(cache, &cache->chunks[s][i]);
		free(cache->chunks[s]);
		if (cache->slabs[s] != NULL)
			rhh_cpu_give_pages(cache->budget->reserve, cache->slabs[s], RHH_CPU_SLAB_BYTES);
	}
	if (cache->arena != NULL)
		give_back_arena(cache, cache->arena);
	pthread_mutex_destroy(&cache->lock);
}

bool
rhh_cpu_cache_add(rhh_cpu_cache *cache, uint32_t i)
{
	const size_t chunks = RHH_CPU_SLAB_CHUNKS * sizeof(rhh_cpu_kept_chunk);
	rhh_cpu_kept_chunk *made;

	if (!rhh_cpu_charge(cache->budget, RHH_CPU_SLAB_BYTES + chunks))
		return false;
	made = calloc(1, chunks);
	cache->slabs[i] = made == NULL ? NULL : rhh_cpu_take_pages(cache->budget->reserve, RHH_CPU_SLAB_BYTES, false);
	if (cache->slabs[i] == NULL)
	{
		free(made);
		rhh_cpu_release(cache->budget, RHH_CPU_SLAB_BYTES + chunks);
		return false;
	}
	pthread_mutex_lock(&cache->lock);
	cache->chunks[i] = made;
	cache->most_bytes += RHH_CPU_SLAB_BYTES;
	if (cache->n_chunks < (i + 1) * RHH_CPU_SLAB_CHUNKS)
		cache->n_chunks = (i + 1) * RHH_CPU_SLAB_CHUNKS;
	pthread_mutex_unlock(&cache->lock);
	return true;
}

uint8_t *
rhh_cpu_cache_slot(const rhh_cpu_cache *cache, uint32_t slot, rhh_page **page)
{
	uint8_t    *slab = slot / RHH_SLAB_PAGES < RHH_MAX_SLABS ? cache->slabs[slot / RHH_SLAB_PAGES] : NULL;

	if (slab == NULL)
		return NULL;
	*page = (rhh_page *) (void *) (slab + (size_t) RHH_SLAB_PAGES * RHH_PAGE_BYTES) + slot % RHH_SLAB_PAGES;
	return slab + (size_t) (slot % RHH_SLAB_PAGES) * RHH_PAGE_BYTES;
}

/* NULL: its slab is not there.  The caller holds the lock. */
static rhh_cpu_kept_chunk *
chunk_of(const rhh_cpu_cache *cache, uint32_t chunk)
{
	const uint32_t slab = chunk / RHH_CPU_SLAB_CHUNKS;

	return slab >= RHH_MAX_SLABS || cache->chunks[slab] == NULL ? NULL :
		&cache->chunks[slab][chunk % RHH_CPU_SLAB_CHUNKS];
}

void
rhh_cpu_cache_begin(rhh_cpu_cache *cache, uint32_t number)
{
	rhh_cpu_kept_chunk *chunk;

	pthread_mutex_lock(&cache->lock);
	chunk = chunk_of(cache, number);
	if (chunk != NULL && chunk->n_users > 0)
		chunk->stale = true;
	else if (chunk != NULL)
		free_columns(cache, chunk);
	pthread_mutex_unlock(&cache->lock);
}

void
rhh_cpu_cache_keep(rhh_cpu_cache *cache, uint32_t slot, const uint8_t *memory, const rhh_page *page)
{
	rhh_page   *known;
	uint8_t    *to = rhh_cpu_cache_slot(cache, slot, &known);

	if (to == NULL || page->filtered != 0)
		return;
	memcpy(to, memory, RHH_PAGE_BYTES);
	memset(known, 0, sizeof(*known));
	memcpy(known->visible, page->visible, sizeof(page->visible));
	known->n_rows = page->n_rows;
	known->all_visible = RHH_PAGE_WHOLE;
}

/* ---------- what columns are made of ---------- */

void
rhh_cpu_kept_sources(const rhh_page_layout *layout, const uint8_t *column_bytes, rhh_cpu_kept_source *sources)
{
	for (uint32_t i = 0; i < layout->n_loads + layout->n_inputs; i++)
	{
		const bool	input = i >= layout->n_loads;
		const rhh_page_load *load = input ? &layout->inputs[i - layout->n_loads] : &layout->loads[i];
		uint64_t	hash = UINT64_C(0xcbf29ce484222325);	/* FNV-1a */

		/* (the padding is compared, too) */
		memset(&sources[i], 0, sizeof(sources[i]));
		sources[i].load.attribute = load->attribute;
		sources[i].load.kind = load->kind;
		sources[i].load.scale = load->scale;
		sources[i].load.order = load->order;
		sources[i].load.blanks = load->blanks;
		sources[i].load.parameter = load->parameter;
		sources[i].bytes = input ? rhh_page_input_bytes(layout, i - layout->n_loads) : column_bytes[load->column];
		for (uint32_t a = 0; load->kind != RHH_PAGE_CONSTANT && a <= load->attribute; a++)
		{
			const rhh_page_attribute *attribute = &layout->attributes[a];

			hash = (hash ^ (uint16_t) attribute->length) * UINT64_C(0x100000001b3);
			hash = (hash ^ attribute->align) * UINT64_C(0x100000001b3);
			hash = (hash ^ attribute->missing_null) * UINT64_C(0x100000001b3);
		}
		sources[i].attributes = hash;
	}
}

static rhh_cpu_kept_column *
find_column(const rhh_cpu_kept_chunk *chunk, const rhh_cpu_kept_source *source)
{
	rhh_cpu_kept_column *column = chunk->columns;

	while (column != NULL && memcmp(&column->source, source, sizeof(*source)) != 0)
		column = column->next;
	return column;
}

/* ---------- making them ---------- */

/*
 * The rows of a page whose tuples have all attributes that are needed, none of them NULL: each of these is found in all
 * tuples before the next one is.
 */
typedef struct plain_rows
{
	uint32_t	n;
	uint32_t	n_bytes;		/* that the data of each tuple has at least, */
	const uint8_t *end;			/* and memory that may be read ends here */
	const uint8_t *data[RHH_PAGE_ITEMS];	/* of each tuple */
	const uint8_t *data_end[RHH_PAGE_ITEMS];
	uint32_t	next;			/* the attribute that has not been found, ... */
	const uint8_t *at[RHH_PAGE_ITEMS];	/* ... and where the one before it ends */
	const uint8_t *begin[RHH_PAGE_ITEMS];	/* of the one that was found last, */
	uint32_t	length;			/* which has so many bytes; 0: as many as these say */
	uint16_t	lengths[RHH_PAGE_ITEMS];
	rhh_cpu_ahead *ahead;
} plain_rows;

static void
ask_for(rhh_cpu_ahead *ahead, uint32_t end)
{
	const uint8_t *page = ahead->number < ahead->n ? ahead->page[ahead->number] : NULL;
	const uint8_t *slot = ahead->number < ahead->n ? ahead->slot[ahead->number] : NULL;

	for (; ahead->asked_bytes < end; ahead->asked_bytes += 64)
	{
		if (page != NULL)
			__builtin_prefetch(page + ahead->asked_bytes, 0, 2);
		if (slot != NULL)
			__builtin_prefetch(slot + ahead->asked_bytes, 1, 2);
	}
}

/* A page takes about as many steps as the one before it did. */
static void
begin_page(rhh_cpu_ahead *ahead, uint32_t number)
{
	ahead->number = number;
	ahead->step_bytes = RHH_PAGE_BYTES / (ahead->n_steps == 0 ? 1 : ahead->n_steps);
	ahead->asked_bytes = ahead->n_steps = 0;
}

static void
ask_ahead(rhh_cpu_ahead *ahead)
{
	const uint32_t end = ahead->asked_bytes + ahead->step_bytes;

	ahead->n_steps++;
	ask_for(ahead, end < RHH_PAGE_BYTES ? end : RHH_PAGE_BYTES);
}

/* Finds them, of which n are expected; false: they are not so. */
static bool
find_plain_rows(const uint8_t *memory, const rhh_page *known, uint32_t n, uint32_t n_attributes, plain_rows *rows)
{
	rows->n = 0;
	rows->n_bytes = RHH_PAGE_BYTES;
	rows->end = memory + RHH_PAGE_BYTES;
	rows->next = rows->length = 0;
	for (uint32_t w = 0; w < RHH_PAGE_ITEMS / 64; w++)
	{
		for (uint64_t left = known->visible[w]; left != 0; left &= left - 1)
		{
			rhh_page_tuple tuple;

			if (rows->n == n ||
				!rhh_page_find(memory, 64 * w + (uint32_t) __builtin_ctzll(left), RHH_PAGE_BYTES, &tuple) ||
				tuple.present != NULL || tuple.n_attributes < n_attributes)
				return false;
			rows->data[rows->n] = rows->at[rows->n] = tuple.data;
			rows->data_end[rows->n] = tuple.data + tuple.n_bytes;
			rows->n_bytes = tuple.n_bytes < rows->n_bytes ? tuple.n_bytes : rows->n_bytes;
			rows->n++;
		}
	}
	return rows->n == n;
}

/* Goes on to the next attribute; false: of a row it is not so simple. */
static bool
next_attribute(const rhh_page_attribute *attribute, plain_rows *rows)
{
	bool		fits = true;

	ask_ahead(rows->ahead);
	if (attribute->length > 0)
	{
		const uintptr_t mask = (uintptr_t) attribute->align - 1;
		const uint32_t length = (uint32_t) attribute->length;

		/* tuples, and so their data, are aligned to 8 bytes */
		for (uint32_t i = 0; i < rows->n; i++)
		{
			rows->begin[i] = (const uint8_t *) (((uintptr_t) rows->at[i] + mask) & ~mask);
			rows->at[i] = rows->begin[i] + length;
			fits &= rows->at[i] <= rows->data_end[i];
		}
		rows->length = length;
	}
	else if (attribute->length == -1)
	{
		for (uint32_t i = 0; i < rows->n; i++)
		{
			const uint8_t *at = rows->at[i];
			uint32_t	length = at < rows->data_end[i] ? at[0] : 0;

			/* with a header of one byte */
			if ((length & 1) == 0 || length == 1)
				return false;
			length >>= 1;
			rows->begin[i] = at;
			rows->lengths[i] = (uint16_t) length;
			rows->at[i] = at + length;
			fits &= at + length <= rows->data_end[i];
		}
		rows->length = 0;
	}
	else
		return false;
	rows->next++;
	return fits;
}

/* Goes on to an attribute (rhh_page_go_to()). */
static bool
go_to_attribute(const rhh_page_layout *layout, uint32_t attribute, plain_rows *rows)
{
	const uint32_t known = attribute < layout->last_known ? attribute : layout->last_known;

	if (rows->next > attribute)
		return true;
	if (rows->next < known)
	{
		const uint32_t offset = layout->attributes[known].offset;

		if (offset > rows->n_bytes)
			return false;
		for (uint32_t i = 0; i < rows->n; i++)
			rows->at[i] = rows->data[i] + offset;
		rows->next = known;
	}
	while (rows->next <= attribute)
		if (!next_attribute(&layout->attributes[rows->next], rows))
			return false;
	return true;
}

/* Makes a column of the attribute that rows are at, its values at `to`; false: one of them is not understood. */
static bool
make_values(const rhh_page_load *load, uint32_t bytes, const plain_rows *rows, void *to)
{
	bool		good = true;

	ask_ahead(rows->ahead);
#define EACH_ROW(expr) \
	for (uint32_t i = 0; i < rows->n; i++) \
	{ \
		const uint8_t *p = rows->begin[i]; \
		\
		expr; \
	}
#define COPY(T) \
	EACH_ROW(memcpy((T *) to + i, p, sizeof(T)))
#define WIDEN(From, To) \
	EACH_ROW(From v; memcpy(&v, p, sizeof(v)); ((To *) to)[i] = v)

	if (load->kind == RHH_PAGE_NOTHING)
	{
		memset(to, 0, (size_t) rows->n * bytes);
		return true;
	}
	if (load->kind == RHH_PAGE_DECIMAL)
	{
		const rhh_decimal_reader reader = *rhh_decimal_reader_of(load->scale);
		const uint8_t *last = rows->end - RHH_DECIMAL_READ_BYTES - 1;

		EACH_ROW(
				 int64_t *value = (int64_t *) to + i;

				 if (p > last || !rhh_decimal_read(&reader, p + 1, rows->lengths[i] - 1u, value))
				 good &= rhh_page_decimal(p, rows->lengths[i], load->scale, value))
		return good;
	}
	if (load->kind == RHH_PAGE_STRING)
	{
		EACH_ROW(
				 uint64_t *value = (uint64_t *) to + 2 * i;

				 good &= rhh_page_string(p, rows->lengths[i], load->blanks, (uint32_t) load->parameter,
										 &value[0], &value[1]))
		return good;
	}
	if (load->kind == RHH_PAGE_STRING_OR_LONG)
	{
		EACH_ROW(
				 uint64_t *value = (uint64_t *) to + 2 * i;

				 good &= rhh_page_string_or_long(p, rows->lengths[i], load->blanks, &value[0], &value[1]))
		return good;
	}
	if (load->order != RHH_PAGE_AS_STORED || rows->length == 0)
		return false;
	if (bytes == rows->length)
	{
		switch (bytes)
		{
			case 1:
				COPY(uint8_t);
				return true;
			case 2:
				COPY(uint16_t);
				return true;
			case 4:
				COPY(uint32_t);
				return true;
			case 8:
				COPY(uint64_t);
				return true;
			case 16:
				COPY(rhh_uint128);
				return true;
			default:
				return false;
		}
	}
	if (bytes != 8)
		return false;
	switch (rows->length)
	{
		case 1:
			WIDEN(int8_t, int64_t);
			return true;
		case 2:
			WIDEN(int16_t, int64_t);
			return true;
		case 4:
			WIDEN(int32_t, int64_t);
			return true;
		default:
			return false;
	}
#undef EACH_ROW
#undef COPY
#undef WIDEN
}

static void
make_constant(const rhh_page_load *load, uint32_t bytes, uint32_t n, uint8_t *to)
{
	const int64_t value = load->parameter;

	for (uint32_t i = 0; i < n; i++)
		memcpy(to + (size_t) i * bytes, &value, bytes);
}

/* Stores the value of a row. */
static void
store(rhh_cpu_kept_column *column, uint32_t row, const uint64_t words[2], bool null)
{
	memcpy(column->values + (size_t) row * column->source.bytes, words, column->source.bytes);
	column->null_rows[row / 8] |= (uint8_t) (null << row % 8);
}

/* Makes a column of page number p of a chunk, of its rows from `row` to end, a tuple at a time. */
static void
make_of_tuples(const uint8_t *memory, const rhh_page *known, uint32_t p, uint32_t row, uint32_t end,
			   const rhh_page_layout *layout, rhh_cpu_kept_column *column)
{
	for (uint32_t item = 0; item < RHH_PAGE_ITEMS && row < end; item++)
	{
		rhh_page_tuple tuple;
		uint64_t	words[2];
		bool		null;

		if ((known->visible[item / 64] >> item % 64 & 1) == 0)
			continue;
		if (!rhh_page_find(memory, item, RHH_PAGE_BYTES, &tuple) ||
			!rhh_page_load_value(layout, &column->source.load, column->source.bytes, &tuple,
								 &null, &words[0], &words[1]))
			break;
		store(column, row, words, null);
		column->nulls |= (uint32_t) null << p;
		row++;
	}
	/* it cannot be made of a row, or what is known of the page has changed meanwhile, which cannot be */
	if (row < end)
		column->bad |= UINT32_C(1) << p;
}

/* Makes n columns of it, each for all tuples at once as far as that is possible.  They are in the order of their attributes. */
static void
make_of_page(const uint8_t *memory, const rhh_page *known, uint32_t p, uint32_t row, uint32_t end,
			 const rhh_page_layout *layout, rhh_cpu_kept_column **columns, uint32_t n, rhh_cpu_ahead *ahead)
{
	plain_rows	rows;
	bool		plain = n > 0 &&
		find_plain_rows(memory, known, end - row, columns[n - 1]->source.load.attribute + 1u, &rows);

	rows.ahead = ahead;
	for (uint32_t c = 0; c < n; c++)
	{
		const rhh_page_load *load = &columns[c]->source.load;
		uint8_t    *to = columns[c]->values + (size_t) row * columns[c]->source.bytes;

		if (load->kind == RHH_PAGE_CONSTANT)
		{
			make_constant(load, columns[c]->source.bytes, end - row, to);
			continue;
		}
		/* after one that is not simple none is found */
		plain = plain && go_to_attribute(layout, load->attribute, &rows);
		if (!plain || !make_values(load, columns[c]->source.bytes, &rows, to))
			make_of_tuples(memory, known, p, row, end, layout, columns[c]);
	}
}

static void
make_columns(const rhh_cpu_cache *cache, uint32_t number, const rhh_cpu_kept_chunk *chunk, const rhh_page_layout *layout,
			 rhh_cpu_kept_column **columns, uint32_t n, rhh_cpu_ahead *ahead)
{
	for (uint32_t p = 0; p < RHH_CPU_CHUNK_PAGES; p++)
	{
		rhh_page   *known;
		const uint8_t *memory = rhh_cpu_cache_slot(cache, number * RHH_CPU_CHUNK_PAGES + p, &known);

		begin_page(ahead, p);
		if (memory != NULL && (chunk->pages >> p & 1) != 0)
			make_of_page(memory, known, p, chunk->first_row[p], chunk->first_row[p + 1], layout, columns, n, ahead);
		ask_for(ahead, RHH_PAGE_BYTES);
	}
}

static int
by_attribute(const void *a, const void *b)
{
	const rhh_cpu_kept_column *const *x = a;
	const rhh_cpu_kept_column *const *y = b;

	return (int) (*x)->source.load.attribute - (int) (*y)->source.load.attribute;
}

/*
 * Memory for more columns, for which others may have to go.  False: there is none.  *keep: what is put there may be
 * kept.  The caller holds the lock, here and in the next one.
 */
static bool
add_arena(rhh_cpu_cache *cache, bool *keep)
{
	const uint32_t now = now_s();
	rhh_cpu_column_arena *arena;

	for (uint32_t i = 0; i < HAND_STEPS && cache->column_bytes + ARENA_BYTES > cache->most_bytes; i++)
	{
		rhh_cpu_kept_chunk *chunk;

		cache->hand = (cache->hand + 1) % cache->n_chunks;
		chunk = chunk_of(cache, cache->hand);
		if (chunk != NULL && chunk->n_users == 0 && now - chunk->used_at > KEPT_S)
			free_columns(cache, chunk);
	}
	if (!rhh_cpu_charge(cache->budget, ARENA_BYTES))
		return false;
	arena = rhh_cpu_take_pages(cache->budget->reserve, ARENA_BYTES, false);
	if (arena == NULL)
	{
		rhh_cpu_release(cache->budget, ARENA_BYTES);
		return false;
	}
	cache->column_bytes += ARENA_BYTES;
	*keep &= cache->column_bytes <= cache->most_bytes;
	arena->n_live = 0;
	arena->used = ROUND_UP(sizeof(*arena), 64);
	if (cache->arena != NULL && cache->arena->n_live == 0)
		give_back_arena(cache, cache->arena);
	cache->arena = arena;
	return true;
}

/* A column of so many rows, of which none is NULL yet; NULL: there is no memory. */
static rhh_cpu_kept_column *
allocate_column(rhh_cpu_cache *cache, const rhh_cpu_kept_source *source, uint32_t n_rows, bool *keep)
{
	const size_t values = ROUND_UP(sizeof(rhh_cpu_kept_column), 64);
	const size_t null_rows = values + ROUND_UP((size_t) n_rows * source->bytes, 64);
	const size_t size = null_rows + ROUND_UP((n_rows + 7) / 8, 64);
	rhh_cpu_kept_column *column;

	if ((cache->arena == NULL || cache->arena->used + size > ARENA_BYTES) && !add_arena(cache, keep))
		return NULL;
	column = (void *) ((uint8_t *) cache->arena + cache->arena->used);
	cache->arena->used += size;
	cache->arena->n_live++;
	memset(column, 0, sizeof(*column));
	memcpy(&column->source, source, sizeof(*source));	/* padding and all */
	column->arena = cache->arena;
	column->values = (uint8_t *) column + values;
	column->null_rows = (uint8_t *) column + null_rows;
	memset(column->null_rows, 0, size - null_rows);
	return column;
}

/* Lays out the rows of a chunk that has no columns.  The caller holds the lock. */
static void
lay_out_rows(const rhh_cpu_cache *cache, uint32_t number, rhh_cpu_kept_chunk *chunk, uint32_t pages)
{
	uint32_t	n = 0;

	chunk->pages = pages;
	for (uint32_t p = 0; p < RHH_CPU_CHUNK_PAGES; p++)
	{
		rhh_page   *known;

		chunk->first_row[p] = n;
		if ((pages >> p & 1) != 0 && rhh_cpu_cache_slot(cache, number * RHH_CPU_CHUNK_PAGES + p, &known) != NULL)
			n += rhh_page_count(known->visible);
	}
	chunk->first_row[RHH_CPU_CHUNK_PAGES] = n;
}

/* Makes those columns of a chunk that are NULL in columns.  Others may use it meanwhile.  False: there is no memory. */
static bool
make_missing(rhh_cpu_cache *cache, uint32_t number, rhh_cpu_kept_chunk *chunk, const rhh_page_layout *layout,
			 const rhh_cpu_kept_source *sources, uint32_t n, rhh_cpu_ahead *ahead,
			 const rhh_cpu_kept_column **columns)
{
	const uint32_t n_rows = chunk->first_row[RHH_CPU_CHUNK_PAGES];
	rhh_cpu_kept_column *made[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint32_t	n_made = 0;
	bool		complete = true;
	bool		keep = true;

	for (uint32_t i = 0; i < n && complete; i++)
	{
		uint32_t	m = 0;

		if (columns[i] != NULL)
			continue;
		/* the same may be asked for twice */
		while (m < n_made && memcmp(&made[m]->source, &sources[i], sizeof(sources[i])) != 0)
			m++;
		if (m == n_made)
		{
			made[m] = allocate_column(cache, &sources[i], n_rows, &keep);
			complete = made[m] != NULL;
			n_made += complete;
		}
		columns[i] = complete ? made[m] : NULL;
	}
	if (complete)
	{
		pthread_mutex_unlock(&cache->lock);
		qsort(made, n_made, sizeof(made[0]), by_attribute);
		make_columns(cache, number, chunk, layout, made, n_made, ahead);
		pthread_mutex_lock(&cache->lock);
	}
	/* else they are made for this once, since that is faster than to read tuple by tuple */
	chunk->stale |= !keep;
	for (uint32_t m = 0; m < n_made; m++)
	{
		if (complete)
		{
			made[m]->next = chunk->columns;
			chunk->columns = made[m];
		}
		else
			free_column(cache, made[m]);
	}
	return complete;
}

/* The caller has become one of the chunk's users, and is none any more.  It holds the lock. */
static void
leave(rhh_cpu_cache *cache, rhh_cpu_kept_chunk *chunk)
{
	chunk->n_users--;
	if (chunk->stale && chunk->n_users == 0)
		free_columns(cache, chunk);
}

const rhh_cpu_kept_chunk *
rhh_cpu_use_columns(rhh_cpu_cache *cache, uint32_t number, uint32_t pages, const rhh_page_layout *layout,
					const rhh_cpu_kept_source *sources, uint32_t n, rhh_cpu_ahead *ahead,
					const rhh_cpu_kept_column **columns)
{
	rhh_cpu_kept_chunk *chunk;
	bool		missing = false;

	pthread_mutex_lock(&cache->lock);
	chunk = chunk_of(cache, number);
	/* other pages than they were made of */
	if (chunk != NULL && !chunk->stale && !chunk->making && (pages & ~chunk->pages) != 0 && chunk->n_users == 0)
	{
		free_columns(cache, chunk);
		lay_out_rows(cache, number, chunk, pages);
	}
	if (chunk == NULL || chunk->stale || chunk->making || (pages & ~chunk->pages) != 0)
	{
		pthread_mutex_unlock(&cache->lock);
		return NULL;
	}
	chunk->n_users++;
	chunk->used_at = now_s();
	for (uint32_t i = 0; i < n; i++)
	{
		columns[i] = find_column(chunk, &sources[i]);
		missing |= columns[i] == NULL;
	}
	if (missing)
	{
		chunk->making = true;
		if (!make_missing(cache, number, chunk, layout, sources, n, ahead, columns))
		{
			chunk->making = false;
			leave(cache, chunk);
			chunk = NULL;
		}
		else
			chunk->making = false;
	}
	pthread_mutex_unlock(&cache->lock);
	return chunk;
}

void
rhh_cpu_end_columns(rhh_cpu_cache *cache, uint32_t number)
{
	pthread_mutex_lock(&cache->lock);
	leave(cache, chunk_of(cache, number));
	pthread_mutex_unlock(&cache->lock);
}
