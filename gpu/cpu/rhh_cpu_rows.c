/*
 * rhh_cpu_rows.c
 *		Maps of the CPU device that keep rows, until they can be probed.
 *
 * rhh_cpu_join.h describes how the rows lie in memory.  There are two phases:
 *
 *		rhh_cpu_rows_keep()			takes a batch, or a part of a large one, to a chunk:
 *									hashes the keys, sorts the rows by partition, and
 *									copies the columns into records; several threads do so
 *									at once
 *		rhh_cpu_rows_finish()		puts the rows of some partitions in the order of their
 *									buckets and the rows of a key side by side; several
 *									threads do so at once, and the last one frees the chunks
 *
 * So a row is copied twice, both times to places that a cache holds: within its chunk, and
 * within its partition.
 *
 * Memory.  A chunk is charged to the budgets of the map and of the device together with
 * what its rows will need when the map is finished.  So rows are refused as long as the
 * caller can do something about it, and finishing fails only if the system itself has no
 * memory.  If there is none for a chunk, its rows are refused, all of them.
 */
#include <stdlib.h>

#include "cpu/rhh_cpu_join.h"

/* ---------- life ---------- */

static void
add_field(rhh_cpu_rows *rows, uint32_t column, uint32_t bytes, int null_bit)
{
	rhh_cpu_field *field = &rows->fields[rows->n_fields++];

	field->column = (uint8_t) column;
	field->bytes = (uint8_t) bytes;
	field->offset = (uint16_t) rows->row_bytes;
	field->null_bit = (int16_t) null_bit;
	rows->row_bytes += bytes;
}

/* Lays out records: the keys, then the other columns, wide ones first. */
static void
lay_out(rhh_cpu_rows *rows)
{
	const rhh_map_spec *spec = &rows->layout->spec;
	bool		is_key[RHH_MAX_COLUMNS] = {false};
	int			n_others = 0;	/* NULL bits */

	for (uint32_t k = 0; k < spec->n_keys; k++)
	{
		uint32_t	c = spec->key_column[k];

		is_key[c] = true;
		add_field(rows, c, spec->column_bytes[c], rows->keeps_null_keys ? n_others++ : -1);
	}
	rows->key_bytes = rows->row_bytes;
	for (uint32_t bytes = 16; bytes > 0; bytes /= 2)
		for (uint32_t c = 0; c < spec->n_columns; c++)
			if (!is_key[c] && spec->column_bytes[c] == bytes)
				add_field(rows, c, bytes, n_others++);
	rows->null_bytes = ((uint32_t) n_others + 7) / 8;
}

/* Charged for each of n partitions, beside what is charged for rows. */
static uint64_t
part_bytes(uint32_t n)
{
	return n * (2 * sizeof(rhh_cpu_entry) + sizeof(rhh_cpu_row_part) + sizeof(uint32_t));
}

/*
 * Makes an empty map; *layout has its spec, and stays as long as the map.  False: no
 * memory; the map may be freed or forgotten.
 */
bool
rhh_cpu_rows_init(rhh_cpu_rows *rows, const rhh_cpu_layout *layout, rhh_cpu_budget *budget)
{
	const rhh_map_spec *spec = &layout->spec;
	uint64_t	n_rows = spec->expected_groups > spec->max_batch_rows ?
		spec->expected_groups : spec->max_batch_rows;
	uint64_t	bytes;

	memset(rows, 0, sizeof(*rows));
	if (pthread_mutex_init(&rows->lock, NULL) != 0)
		return false;
	rows->layout = layout;
	rows->budget = budget;
	rows->keeps_null_keys = (spec->flags & RHH_KEEP_UNMATCHED) != 0;
	lay_out(rows);
	rows->final_bytes = rhh_cpu_stride(rows->row_bytes + rows->null_bytes) +
		(uint32_t) sizeof(rhh_cpu_entry);
	rows->part_bits = RHH_CPU_MIN_ROW_PART_BITS;
	while (1u << rows->part_bits < RHH_CPU_MAX_ROW_PARTS &&
		   n_rows >> rows->part_bits > RHH_CPU_ROW_PART_ROWS &&
		   part_bytes(2u << rows->part_bits) < budget->limit_bytes / 64)
		rows->part_bits++;
	rows->n_parts = (1u << rows->part_bits) + (rows->keeps_null_keys ? 1 : 0);

	/* and the empty record */
	bytes = part_bytes(rows->n_parts) + rows->final_bytes;
	if (!rhh_cpu_charge(budget, bytes))
	{
		rhh_cpu_rows_free(rows);
		return false;
	}
	rows->charged_bytes = bytes;
	rows->part_rows = calloc(rows->n_parts, sizeof(uint32_t));
	if (rows->part_rows == NULL)
	{
		rhh_cpu_rows_free(rows);
		return false;
	}
	return true;
}

static void
free_chunks(rhh_cpu_rows *rows)
{
	while (rows->chunks != NULL)
	{
		rhh_cpu_chunk *chunk = rows->chunks;

		rows->chunks = chunk->next;
		if (!chunk->in_segment)
			free(chunk);
	}
	while (rows->segments != NULL)
	{
		rhh_cpu_row_segment *segment = rows->segments;

		rows->segments = segment->next;
		rhh_cpu_give_pages(rows->layout->reserve, segment, RHH_CPU_SEGMENT_BYTES);
	}
}

void
rhh_cpu_rows_free(rhh_cpu_rows *rows)
{
	rhh_cpu_reserve *reserve = rows->layout->reserve;

	free_chunks(rows);
	if (rows->records != NULL)
		rhh_cpu_give_pages(reserve, rows->records, rows->records_bytes);
	if (rows->directory != NULL)
		rhh_cpu_give_pages(reserve, rows->directory, rows->directory_bytes);
	free(rows->parts);
	free(rows->part_rows);
	free(rows->matched);
	rhh_cpu_release(rows->budget, rows->charged_bytes);
	pthread_mutex_destroy(&rows->lock);
}

/*
 * For rows that are finished and share matches: makes what says which of them have one.  None has,
 * and that stays for all maps that are joined with these rows.  False: no memory.
 */
bool
rhh_cpu_rows_share_matches(rhh_cpu_rows *rows)
{
	const uint64_t bytes = rows->n_rows + UINT64_C(1);

	if (rows->matched != NULL)
		return true;
	if (!rhh_cpu_charge(rows->budget, bytes))
		return false;
	rows->matched = calloc(bytes, 1);
	if (rows->matched == NULL)
	{
		rhh_cpu_release(rows->budget, bytes);
		return false;
	}
	rows->charged_bytes += bytes;
	return true;
}

/* ---------- keeping rows ---------- */

static bool
has_null_key(const rhh_cpu_rows *rows, const rhh_batch *batch, uint32_t row)
{
	const rhh_key_plan *plan = &rows->layout->plan;

	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(batch, plan->column[k]);

		if (nulls != NULL && rhh_cpu_bit(nulls, row))
			return true;
	}
	return false;
}

/*
 * Sets is_other[] to 1 for those of n rows from start on, at most RHH_CPU_RUN_ROWS, whose keys are
 * not of the part that a map keeps, else to 0.  plan says where in the batch the keys are;
 * is_null[] where they have a NULL.
 */
void
rhh_cpu_find_others(const rhh_cpu_rows *rows, const rhh_key_plan *plan, const rhh_batch *batch,
					uint32_t start, uint32_t n, const uint8_t *is_null, uint8_t *is_other)
{
	const rhh_map_spec *spec = &rows->layout->spec;
	uint64_t	hash[RHH_CPU_RUN_ROWS];

	for (uint32_t i = 0; i < n; i++)
		hash[i] = RHH_PART_START;
	for (uint32_t k = 0; k < plan->n_keys; k++)
		RHH_CPU_FOR_TYPE(plan->bytes[k], {
			const T    *v = (const T *) (const void *) rhh_cpu_values(batch, plan->column[k]) + start;

			for (uint32_t i = 0; i < n; i++)
			{
				hash[i] = rhh_part_word(hash[i], (uint64_t) v[i]);
				if (sizeof(T) > 8)
					hash[i] = rhh_part_word(hash[i],
											(uint64_t) ((unsigned __int128) v[i] >> 64));
			}
		})
	for (uint32_t i = 0; i < n; i++)
		is_other[i] = (is_null[i] ? 0 : rhh_part_of(hash[i], spec->n_parts)) != spec->part;
}

/* Would a row be dropped, whether or not there is memory? */
static bool
is_dropped(const rhh_cpu_rows *rows, const rhh_batch *batch, uint32_t row)
{
	const uint8_t is_null = has_null_key(rows, batch, row);
	uint8_t		is_other = 0;

	if (rhh_cpu_has_parts(rows))
		rhh_cpu_find_others(rows, &rows->layout->plan, batch, row, 1, &is_null, &is_other);
	return is_other || (is_null && !rows->keeps_null_keys);
}

/* Refuses n rows from start on, and drops those that would not be kept anyway. */
static void
refuse_rows(rhh_cpu_rows *rows, const rhh_batch *batch, rhh_cpu_refused *refused,
			uint32_t start, uint32_t n)
{
	uint32_t	n_refused = 0;

	for (uint32_t row = start; row < start + n; row++)
	{
		if (is_dropped(rows, batch, row))
			continue;
		rhh_cpu_refuse(refused, row);
		n_refused++;
	}
	atomic_fetch_add_explicit(&refused->n, n_refused, memory_order_relaxed);
	atomic_fetch_add_explicit(&rows->refused_rows, n_refused, memory_order_relaxed);
	atomic_fetch_add_explicit(&rows->dropped_rows, n - n_refused, memory_order_relaxed);
}

/*
 * Puts {fingerprint, row} of the rows that are kept into the scratch memory, and counts the
 * rows of each partition.
 */
static void
hash_keys(const rhh_cpu_rows *rows, const rhh_batch *batch, rhh_cpu_scratch *scratch,
		  uint32_t start, uint32_t n)
{
	const rhh_key_plan *plan = &rows->layout->plan;
	const uint32_t keeps_null_keys = rows->keeps_null_keys;
	uint64_t   *left = scratch->left;
	uint32_t   *part_rows = scratch->part_rows;
	uint32_t	n_left = 0;
	uint32_t	n_null = 0;
	uint8_t		is_null[RHH_CPU_RUN_ROWS];
	uint8_t		is_other[RHH_CPU_RUN_ROWS] = {0};

	memset(part_rows, 0, rows->n_parts * sizeof(uint32_t));
	for (uint32_t end = start + n; start < end; start += n)
	{
		n = end - start < RHH_CPU_RUN_ROWS ? end - start : RHH_CPU_RUN_ROWS;
		rhh_cpu_hash_rows(plan, batch, scratch, start, n);
		memset(is_null, 0, n);
		for (uint32_t k = 0; k < plan->n_keys; k++)
		{
			const uint8_t *nulls = rhh_cpu_nulls(batch, plan->column[k]);

			for (uint32_t i = 0; nulls != NULL && i < n; i++)
				is_null[i] |= (uint8_t) rhh_cpu_bit(nulls, start + i);
		}
		if (rhh_cpu_has_parts(rows))
			rhh_cpu_find_others(rows, plan, batch, start, n, is_null, is_other);
		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t	fp = scratch->fp[i];
			uint32_t	mine = is_other[i] ^ 1u;

			left[n_left] = (uint64_t) fp << 32 | (start + i);
			n_left += mine & ((is_null[i] ^ 1u) | keeps_null_keys);
			part_rows[rhh_cpu_row_part_of(rows, fp)] += mine & (is_null[i] ^ 1u);
			n_null += mine & is_null[i];
		}
	}
	if (rows->keeps_null_keys)
		part_rows[rows->n_parts - 1] = n_null;
	scratch->n_left = n_left;
}

/*
 * Memory for a chunk, charged with what its rows will need when the map is finished.  The
 * first chunks, and those of a map with a small limit, have their own; others are cut from
 * segments of huge pages.  NULL: no memory.
 */
static rhh_cpu_chunk *
allocate_chunk(rhh_cpu_rows *rows, size_t bytes, uint64_t final_bytes)
{
	const bool	in_segment = rows->layout->step_bytes == RHH_CPU_SEGMENT_BYTES &&
		rows->charged_bytes > RHH_CPU_FIRST_SEGMENT_BYTES;
	const bool	new_segment = in_segment && bytes > rows->segment_left;
	const uint64_t charged = final_bytes + (new_segment ? RHH_CPU_SEGMENT_BYTES :
											in_segment ? 0 : bytes);
	rhh_cpu_chunk *chunk;

	if (!rhh_cpu_charge(rows->budget, charged))
		return NULL;
	if (new_segment)
	{
		rhh_cpu_row_segment *segment = rhh_cpu_take_pages(rows->layout->reserve,
														  RHH_CPU_SEGMENT_BYTES, false);

		if (segment != NULL)
		{
			segment->next = rows->segments;
			rows->segments = segment;
			rows->segment_left = RHH_CPU_SEGMENT_BYTES - sizeof(*segment);
		}
	}
	if (!in_segment)
		chunk = malloc(bytes);
	else if (bytes > rows->segment_left)
		chunk = NULL;
	else
	{
		/* from its end, so that every chunk is aligned */
		rows->segment_left = (rows->segment_left - bytes) & ~(size_t) 63;
		chunk = (void *) ((uint8_t *) (rows->segments + 1) + rows->segment_left);
	}
	if (chunk == NULL)
	{
		rhh_cpu_release(rows->budget, charged);
		return NULL;
	}
	chunk->in_segment = in_segment;
	rows->charged_bytes += charged;
	return chunk;
}

/* Makes a chunk for the rows that were counted.  NULL: no memory. */
static rhh_cpu_chunk *
make_chunk(rhh_cpu_rows *rows, const rhh_cpu_scratch *scratch, bool nulls)
{
	const uint32_t n = scratch->n_left;
	const size_t records_bytes = ((size_t) n * rows->row_bytes + 7) / 8 * 8;
	const size_t bytes = sizeof(rhh_cpu_chunk) + records_bytes +
		((size_t) n + rows->n_parts + 1) * sizeof(uint32_t) +
		(nulls ? (size_t) n * rows->null_bytes : 0);
	rhh_cpu_chunk *chunk;
	uint32_t	sum = 0;

	pthread_mutex_lock(&rows->lock);
	chunk = allocate_chunk(rows, bytes, (uint64_t) n * rows->final_bytes);
	pthread_mutex_unlock(&rows->lock);
	if (chunk == NULL)
		return NULL;
	chunk->records = (uint8_t *) (chunk + 1);
	chunk->first = (uint32_t *) (chunk->records + records_bytes);
	chunk->fp = chunk->first + rows->n_parts + 1;
	chunk->nulls = nulls ? (uint8_t *) (chunk->fp + n) : NULL;
	if (nulls)
		memset(chunk->nulls, 0, (size_t) n * rows->null_bytes);
	for (uint32_t p = 0; p < rows->n_parts; p++)
	{
		chunk->first[p] = sum;
		sum += scratch->part_rows[p];
	}
	chunk->first[rows->n_parts] = sum;
	return chunk;
}

/* Gives each row its place in the chunk: makes {place, row} of {fingerprint, row}. */
static void
place_rows(const rhh_cpu_rows *rows, const rhh_batch *batch, rhh_cpu_chunk *chunk,
		   rhh_cpu_scratch *scratch)
{
	const bool	null_keys = rows->keeps_null_keys &&
		chunk->first[rows->n_parts - 1] < chunk->first[rows->n_parts];
	uint64_t   *left = scratch->left;
	uint32_t   *next = scratch->part_rows;
	uint32_t   *fps = chunk->fp;

	memcpy(next, chunk->first, rows->n_parts * sizeof(uint32_t));
	for (uint32_t i = 0; i < scratch->n_left; i++)
	{
		uint32_t	fp = (uint32_t) (left[i] >> 32);
		uint32_t	part = null_keys && has_null_key(rows, batch, (uint32_t) left[i]) ?
			rows->n_parts - 1 : rhh_cpu_row_part_of(rows, fp);
		uint32_t	place = next[part]++;

		fps[place] = fp;
		left[i] = (uint64_t) place << 32 | (uint32_t) left[i];
	}
}

/* Copies the columns of n rows, {place, row}, to their records. */
static void
copy_columns(const rhh_cpu_rows *rows, const rhh_batch *batch, rhh_cpu_chunk *chunk,
			 const uint64_t *places, uint32_t n)
{
	const size_t row_bytes = rows->row_bytes;
	const size_t null_bytes = rows->null_bytes;

	for (uint32_t f = 0; f < rows->n_fields; f++)
	{
		const rhh_cpu_field *field = &rows->fields[f];
		const uint8_t *nulls = rhh_cpu_nulls(batch, field->column);
		uint8_t    *to = chunk->records + field->offset;

		RHH_CPU_FOR_TYPE(field->bytes, {
			const T    *v = (const void *) rhh_cpu_values(batch, field->column);

			for (uint32_t i = 0; i < n; i++)
				memcpy(to + (places[i] >> 32) * row_bytes, &v[(uint32_t) places[i]], sizeof(T));
		})
		if (field->null_bit < 0 || nulls == NULL)
			continue;
		to = chunk->nulls + field->null_bit / 8;
		for (uint32_t i = 0; i < n; i++)
			to[(places[i] >> 32) * null_bytes] |=
				(uint8_t) (rhh_cpu_bit(nulls, (uint32_t) places[i]) << field->null_bit % 8);
	}
}

/* Keeps n rows from start on, or refuses them. */
static void
keep_some(rhh_cpu_rows *rows, const rhh_batch *batch, rhh_cpu_scratch *scratch,
		  rhh_cpu_refused *refused, uint32_t start, uint32_t n)
{
	rhh_cpu_chunk *chunk;
	bool		any_nulls = false;

	for (uint32_t f = 0; f < rows->n_fields; f++)
		any_nulls |= rows->fields[f].null_bit >= 0 &&
			rhh_cpu_nulls(batch, rows->fields[f].column) != NULL;
	/* hash_keys() writes one entry more than there are */
	if (!rhh_cpu_make_room(&scratch->left, &scratch->left_room, n + 1))
	{
		refuse_rows(rows, batch, refused, start, n);
		return;
	}
	hash_keys(rows, batch, scratch, start, n);
	if (scratch->n_left == 0)
	{
		atomic_fetch_add_explicit(&rows->dropped_rows, n, memory_order_relaxed);
		return;
	}
	if (atomic_fetch_add_explicit(&rows->rows, scratch->n_left, memory_order_relaxed) +
		scratch->n_left > RHH_CPU_MAX_ROWS ||
		(chunk = make_chunk(rows, scratch, any_nulls)) == NULL)
	{
		atomic_fetch_sub_explicit(&rows->rows, scratch->n_left, memory_order_relaxed);
		refuse_rows(rows, batch, refused, start, n);
		return;
	}
	atomic_fetch_add_explicit(&rows->dropped_rows, n - scratch->n_left, memory_order_relaxed);
	place_rows(rows, batch, chunk, scratch);
	/* so few at a time that their records are still cached for the next column */
	for (uint32_t i = 0; i < scratch->n_left; i += RHH_CPU_RUN_ROWS)
		copy_columns(rows, batch, chunk, scratch->left + i,
					 scratch->n_left - i < RHH_CPU_RUN_ROWS ?
					 scratch->n_left - i : RHH_CPU_RUN_ROWS);
	pthread_mutex_lock(&rows->lock);
	chunk->next = rows->chunks;
	rows->chunks = chunk;
	rows->any_nulls |= any_nulls;
	for (uint32_t p = 0; p < rows->n_parts; p++)
		rows->part_rows[p] += chunk->first[p + 1] - chunk->first[p];
	pthread_mutex_unlock(&rows->lock);
}

/* Keeps the rows of a batch.  False: the map was cancelled, and rows are missing. */
bool
rhh_cpu_rows_keep(rhh_cpu_rows *rows, const rhh_batch *batch, rhh_cpu_scratch *scratch,
				  rhh_cpu_refused *refused, const atomic_bool *cancelled)
{
	const uint32_t most = RHH_CPU_CHUNK_BYTES /
		(uint32_t) (rows->row_bytes + rows->null_bytes + sizeof(uint32_t));
	uint32_t	n;

	for (uint32_t start = 0; start < batch->n_rows; start += n)
	{
		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		n = batch->n_rows - start < most ? batch->n_rows - start : most;
		keep_some(rows, batch, scratch, refused, start, n);
	}
	return true;
}

/* ---------- finishing ---------- */

/*
 * Makes room for all rows, and decides how many tasks finishing has (n_tasks), at most
 * most_tasks.  False: the system has no memory.
 */
bool
rhh_cpu_rows_start_finish(rhh_cpu_rows *rows, uint32_t n_workers, uint32_t most_tasks)
{
	const uint32_t n_parts = rows->n_parts;
	rhh_cpu_reserve *reserve = rows->layout->reserve;
	uint32_t	n_entries = 0;

	rows->parts = malloc(n_parts * sizeof(rhh_cpu_row_part));
	if (rows->parts == NULL)
		return false;
	for (uint32_t p = 0; p < n_parts; p++)
	{
		uint32_t	n = rows->part_rows[p];

		rows->parts[p].first_row = rows->n_rows;
		rows->parts[p].first_entry = n_entries;
		/* nobody looks for rows with NULL in a key */
		rows->parts[p].n_buckets = n > 0 && p >> rows->part_bits == 0 ? n : 1;
		n_entries += 1 + rows->parts[p].n_buckets;
		if (p >> rows->part_bits == 0)
			rows->n_buckets += rows->parts[p].n_buckets;
		rows->n_rows += n;
	}

	rows->stride = rhh_cpu_stride(rows->row_bytes + (rows->any_nulls ? rows->null_bytes : 0));
	rows->records_bytes = ((size_t) rows->n_rows + 1) * rows->stride;
	rows->records = rhh_cpu_take_pages(reserve, rows->records_bytes, false);
	rows->directory_bytes = n_entries * sizeof(rhh_cpu_entry);
	rows->directory = rhh_cpu_take_pages(reserve, rows->directory_bytes, false);
	if (rows->records == NULL || rows->directory == NULL)
		return false;
	memset(rows->records + (size_t) rows->n_rows * rows->stride, 0, rows->stride);

	rows->n_tasks = rows->n_rows / RHH_CPU_FINISH_TASK_ROWS + 1;
	if (rows->n_tasks > RHH_CPU_FINISH_TASKS * n_workers)
		rows->n_tasks = RHH_CPU_FINISH_TASKS * n_workers;
	if (rows->n_tasks > n_parts)
		rows->n_tasks = n_parts;
	if (rows->n_tasks > most_tasks)
		rows->n_tasks = most_tasks;
	atomic_store_explicit(&rows->n_unfinished, rows->n_tasks, memory_order_relaxed);
	return true;
}

/*
 * Counts the rows of a partition's buckets, and sets the end of each bucket to where its
 * first row goes.
 */
static void
fill_directory(const rhh_cpu_rows *rows, uint32_t p)
{
	const uint32_t n_buckets = rows->parts[p].n_buckets;
	rhh_cpu_entry *front = rows->directory + rows->parts[p].first_entry;
	rhh_cpu_entry *entry = front + 1;	/* of bucket 0 */
	uint32_t	sum = rows->parts[p].first_row;

	memset(front, 0, (n_buckets + 1) * sizeof(rhh_cpu_entry));
	for (const rhh_cpu_chunk *chunk = rows->chunks; chunk != NULL; chunk = chunk->next)
		for (uint32_t i = chunk->first[p]; i < chunk->first[p + 1]; i++)
		{
			uint32_t	fp = chunk->fp[i];
			uint32_t	b = rhh_cpu_row_bucket(rows, fp, n_buckets);

			entry[b].end++;
			entry[b].filter |= rhh_cpu_filter_bits(fp);
		}
	front->end = sum;
	for (uint32_t b = 0; b < n_buckets; b++)
	{
		uint32_t	n = entry[b].end;

		entry[b].end = sum;
		sum += n;
	}
}

/* Takes a partition's records to their buckets, whose ends move behind their last row. */
static inline __attribute__((always_inline)) void
take_records(const rhh_cpu_rows *rows, uint32_t p, uint32_t row_bytes, uint32_t null_bytes)
{
	const uint32_t n_buckets = rows->parts[p].n_buckets;
	const size_t stride = rows->stride;
	rhh_cpu_entry *entry = rows->directory + rows->parts[p].first_entry + 1;

	for (const rhh_cpu_chunk *chunk = rows->chunks; chunk != NULL; chunk = chunk->next)
		for (uint32_t i = chunk->first[p]; i < chunk->first[p + 1]; i++)
		{
			uint32_t	b = rhh_cpu_row_bucket(rows, chunk->fp[i], n_buckets);
			uint8_t    *record = rows->records + stride * entry[b].end++;

			memcpy(record, chunk->records + (size_t) i * row_bytes, row_bytes);
			if (null_bytes == 0)
				continue;
			if (chunk->nulls != NULL)
				memcpy(record + row_bytes, chunk->nulls + (size_t) i * null_bytes, null_bytes);
			else
				memset(record + row_bytes, 0, null_bytes);
		}
}

static void
swap_records(uint8_t *a, uint8_t *b, size_t bytes)
{
	uint64_t	x,
				y;

	for (; bytes >= 8; bytes -= 8, a += 8, b += 8)
	{
		memcpy(&x, a, 8);
		memcpy(&y, b, 8);
		memcpy(a, &y, 8);
		memcpy(b, &x, 8);
	}
	for (; bytes > 0; bytes--, a++, b++)
	{
		uint8_t		byte = *a;

		*a = *b;
		*b = byte;
	}
}

/*
 * Moves the rows of each key of a bucket side by side.  Returns the number of keys.  There
 * are few in a bucket, so the time is that of the rows, however many have one key.
 */
static uint32_t
group_bucket(const rhh_cpu_rows *rows, uint32_t start, uint32_t end)
{
	const size_t stride = rows->stride;
	const uint32_t key_bytes = rows->key_bytes;
	uint32_t	n_keys = 0;

	while (start < end)
	{
		const uint8_t *key = rows->records + stride * start;
		uint8_t    *to = rows->records + stride * ++start;
		uint8_t    *from = to;

		n_keys++;
		for (uint32_t i = start; i < end; i++, from += stride)
		{
			if (!rhh_cpu_same_key(key, from, key_bytes))
				continue;
			if (from != to)
				swap_records(from, to, stride);
			to += stride;
			start++;
		}
	}
	return n_keys;
}

/*
 * Groups the buckets of a partition, and counts their keys; rows with NULL in one count each
 * for itself, and are not looked for.
 */
static void
group_buckets(rhh_cpu_rows *rows, uint32_t p)
{
	const rhh_cpu_entry *entry = rows->directory + rows->parts[p].first_entry;
	uint64_t	n_keys = 0;
	uint64_t	sum = 0;
	uint32_t	most = 0;
	uint32_t	before = atomic_load_explicit(&rows->probe_max, memory_order_relaxed);

	if (p >> rows->part_bits != 0)
		n_keys = entry[1].end - entry[0].end;
	else
		for (uint32_t b = 0; b < rows->parts[p].n_buckets; b++)
		{
			uint32_t	n = entry[b + 1].end - entry[b].end;

			if (n > 1)
				n = group_bucket(rows, entry[b].end, entry[b + 1].end);
			n_keys += n;
			/* the first key of the bucket is found at once, the last one after n - 1 others */
			sum += (uint64_t) n * (n + 1) / 2;
			most = n > most ? n : most;
		}
	atomic_fetch_add_explicit(&rows->groups, n_keys, memory_order_relaxed);
	atomic_fetch_add_explicit(&rows->probe_sum, sum, memory_order_relaxed);
	while (before < most &&
		   !atomic_compare_exchange_weak_explicit(&rows->probe_max, &before, most,
												  memory_order_relaxed, memory_order_relaxed))
		;
}

static void
finish_part(rhh_cpu_rows *rows, uint32_t p)
{
	fill_directory(rows, p);
	if (rows->any_nulls)
		take_records(rows, p, rows->row_bytes, rows->null_bytes);
	else if (rows->row_bytes == 4)
		take_records(rows, p, 4, 0);
	else if (rows->row_bytes == 8)
		take_records(rows, p, 8, 0);
	else if (rows->row_bytes == 12)
		take_records(rows, p, 12, 0);
	else if (rows->row_bytes == 16)
		take_records(rows, p, 16, 0);
	else
		take_records(rows, p, rows->row_bytes, 0);
	group_buckets(rows, p);
}

/*
 * Finishes the partitions of one task; the last task frees what the map needs no more.
 * False: the map was cancelled, and it cannot be probed.
 */
bool
rhh_cpu_rows_finish(rhh_cpu_rows *rows, uint32_t task, const atomic_bool *cancelled)
{
	const uint32_t end = (uint32_t) ((uint64_t) rows->n_parts * (task + 1) / rows->n_tasks);
	uint64_t	kept_bytes;

	for (uint32_t p = (uint32_t) ((uint64_t) rows->n_parts * task / rows->n_tasks); p < end; p++)
	{
		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		finish_part(rows, p);
	}
	if (atomic_fetch_sub_explicit(&rows->n_unfinished, 1, memory_order_acq_rel) > 1)
		return true;
	rows->unique = atomic_load_explicit(&rows->groups, memory_order_relaxed) == rows->n_rows;
	free_chunks(rows);
	kept_bytes = rows->records_bytes + rows->directory_bytes +
		rows->n_parts * (sizeof(rhh_cpu_row_part) + sizeof(uint32_t));
	rhh_cpu_release(rows->budget, rows->charged_bytes - kept_bytes);
	rows->charged_bytes = kept_bytes;
	return true;
}
