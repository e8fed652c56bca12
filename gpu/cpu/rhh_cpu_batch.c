/*
 * rhh_cpu_batch.c
 *		Aggregates batches into a map of the CPU device.
 *
 * With one thread there is one partition, and rhh_cpu_aggregate_all() takes the rows of
 * a batch to it.  With several threads a batch goes through two kinds of tasks:
 *
 *		rhh_cpu_scan()				one thread takes the rows to its local table, and
 *									puts those that this does not take into lists, one
 *									for each partition
 *		rhh_cpu_aggregate_list()	takes the list of a partition to the partition;
 *									any threads do so, for several partitions at once
 *
 * So each row is hashed only once, and a batch with few groups needs only its scan.  All
 * of these take a run of some hundred rows at a time through stages.  So the cache misses
 * of a stage overlap, and what depends on types is decided outside of the loops over rows:
 *
 *		hash		makes fingerprints of keys (or takes both from the list)
 *		prefetch	prefetches the home buckets
 *		find		looks for the group by its fingerprint, and prefetches its record
 *		settle		compares keys, if equal fingerprints do not prove equal keys, and
 *					inserts new keys; a row without a group goes to a list, or is
 *					refused
 *		update		updates the states of all remaining rows, state by state
 *
 * No row is refused after settle, and no state is touched before update.  Runs of one key, and of wide keys of few groups that the batch
 * has met, take shorter ways to update (aggregate_one_key(), find_known()).
 *
 * The scratch memory belongs to the thread and holds nothing between tasks.
 */
#include <sched.h>
#include <stdlib.h>

#include "cpu/rhh_cpu_table.h"

/* Groups of WIDE keys that a batch has had, by a part of a hash of the key (see find_known()). */
typedef struct known_keys
{
	bool		of_use;			/* keys are noted */
	uint32_t	n_unknown;		/* runs that had a key that was not known */
	uint8_t		group[1u << RHH_CPU_KNOWN_BITS];	/* its number plus one; 0: none */
} known_keys;

/* What one thread does with one batch. */
typedef struct batch_job
{
	rhh_cpu_part *part;
	rhh_cpu_local *local;		/* whose part it is; NULL: a partition */
	const rhh_cpu_layout *layout;
	const rhh_batch *batch;
	rhh_cpu_scratch *scratch;
	rhh_cpu_refused *refused;
	const uint8_t *key_nulls;	/* of SINGLE; NULL: none */
	bool		prefetch;
	bool		prefetched;		/* the buckets are asked for already */
	uint64_t	n_rows;			/* aggregated */
	uint64_t	n_refused;
	known_keys	known;
} batch_job;

/* Runs BODY with v as the values of a column, which has no 16 bytes. */
#define FOR_WIDTH(bytes, base, sign, BODY) \
	switch (bytes) \
	{ \
		case 1: { const sign##8_t *v = (const void *) (base); BODY } break; \
		case 2: { const sign##16_t *v = (const void *) (base); BODY } break; \
		case 4: { const sign##32_t *v = (const void *) (base); BODY } break; \
		default: { const sign##64_t *v = (const void *) (base); BODY } break; \
	}

/* ---------- scratch ---------- */

static uint32_t
max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

bool
rhh_cpu_scratch_init(rhh_cpu_scratch *scratch)
{
	const uint32_t run = max_u32(RHH_CPU_RUN_ROWS,
								 max_u32(RHH_CPU_RUN_ROWS_WIDE, RHH_CPU_RUN_ROWS_WIDER));
	const uint32_t key_words =
		max_u32(4 * run, max_u32(16 * RHH_CPU_RUN_ROWS_WIDE,
								 RHH_MAX_KEY_WORDS * RHH_CPU_RUN_ROWS_WIDER));

	memset(scratch, 0, sizeof(*scratch));
	scratch->row = malloc(run * sizeof(uint32_t));
	scratch->fp = malloc(run * sizeof(uint32_t));
	scratch->key = malloc(key_words * sizeof(uint64_t));
	scratch->record = malloc(run * sizeof(uint8_t *));
	scratch->null_row = malloc(run * sizeof(uint32_t));
	scratch->live_row = malloc(run * sizeof(uint32_t));
	scratch->live_record = malloc(run * sizeof(uint8_t *));
	scratch->hash = malloc(run * sizeof(uint64_t));
	scratch->mask = malloc(run * sizeof(uint64_t));
	scratch->part_rows = malloc(max_u32(RHH_CPU_MAX_PARTS, RHH_CPU_MAX_ROW_PARTS + 1) *
								sizeof(uint32_t));
	scratch->join_values = aligned_alloc(64, RHH_CPU_JOIN_ROWS * RHH_MAX_COLUMNS * 16);
	scratch->join_keys = malloc(RHH_CPU_JOIN_ROWS * RHH_MAX_KEYS * 16);
	scratch->join_fp = malloc(RHH_CPU_JOIN_ROWS * sizeof(uint32_t));
	scratch->join_entry = malloc(RHH_CPU_JOIN_ROWS * sizeof(void *));
	scratch->join_row = malloc(RHH_CPU_JOIN_ROWS * sizeof(uint32_t));
	scratch->join_end = malloc(RHH_CPU_JOIN_ROWS * sizeof(uint32_t));
	scratch->join_trace = malloc(RHH_CPU_JOIN_ROWS * sizeof(uint32_t));
	scratch->join_record = malloc(RHH_CPU_JOIN_ROWS * sizeof(uint8_t *));
	if (scratch->row != NULL && scratch->fp != NULL && scratch->key != NULL &&
		scratch->record != NULL && scratch->null_row != NULL &&
		scratch->live_row != NULL && scratch->live_record != NULL &&
		scratch->hash != NULL && scratch->mask != NULL && scratch->part_rows != NULL &&
		scratch->join_values != NULL && scratch->join_keys != NULL &&
		scratch->join_fp != NULL && scratch->join_entry != NULL &&
		scratch->join_row != NULL && scratch->join_end != NULL &&
		scratch->join_trace != NULL && scratch->join_record != NULL)
		return true;
	rhh_cpu_scratch_free(scratch);
	return false;
}

void
rhh_cpu_scratch_free(rhh_cpu_scratch *scratch)
{
	free(scratch->row);
	free(scratch->fp);
	free(scratch->key);
	free(scratch->record);
	free(scratch->null_row);
	free(scratch->live_row);
	free(scratch->live_record);
	free(scratch->hash);
	free(scratch->mask);
	free(scratch->left);
	free(scratch->part_rows);
	free(scratch->group_words);
	free(scratch->program_words);
	free(scratch->join_values);
	free(scratch->join_keys);
	free(scratch->join_fp);
	free(scratch->join_entry);
	free(scratch->join_row);
	free(scratch->join_end);
	free(scratch->join_trace);
	free(scratch->join_record);
	memset(scratch, 0, sizeof(*scratch));
}

bool
rhh_cpu_lists_init(rhh_cpu_lists *lists)
{
	memset(lists, 0, sizeof(*lists));
	lists->first = malloc((RHH_CPU_MAX_PARTS + 1) * sizeof(uint32_t));
	/* pages that no piece of rows needs are never touched */
	lists->rows = aligned_alloc(64, RHH_CPU_PIECE_BYTES);
	lists->refused = malloc(RHH_CPU_PIECE_ROWS / 8);
	return lists->first != NULL && lists->rows != NULL && lists->refused != NULL;
}

void
rhh_cpu_lists_free(rhh_cpu_lists *lists)
{
	free(lists->entries);
	free(lists->first);
	free(lists->rows);
	free(lists->refused);
}

/* Makes room for n entries, whose contents need not be kept.  False: no memory. */
bool
rhh_cpu_make_room(uint64_t **entries, uint32_t *room, uint32_t n)
{
	if (*room >= n)
		return true;
	free(*entries);
	*entries = malloc(n * sizeof(uint64_t));
	*room = *entries != NULL ? n : 0;
	return *entries != NULL;
}

/* ---------- hash ---------- */

/*
 * Makes PACKED keys, of the n rows from first on or, if row is not NULL, of those in row.
 */
static inline __attribute__((always_inline)) void
pack_keys(const rhh_key_plan *plan, const rhh_batch *batch, uint64_t *keys, uint32_t first,
		  uint32_t n, const uint32_t *row)
{
	memset(keys, 0, n * sizeof(uint64_t));
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(batch, plan->column[k]);
		const uint32_t shift = plan->shift[k];
		const uint32_t null_shift = plan->null_shift + k;

		FOR_WIDTH(plan->bytes[k], rhh_cpu_values(batch, plan->column[k]), uint, {
			if (nulls == NULL)
			{
				for (uint32_t i = 0; i < n; i++)
					keys[i] |= (uint64_t) v[row != NULL ? row[i] : first + i] << shift;
			}
			else
			{
				for (uint32_t i = 0; i < n; i++)
				{
					uint32_t	r = row != NULL ? row[i] : first + i;
					uint64_t	is_null = rhh_cpu_bit(nulls, r);

					keys[i] |= ((uint64_t) v[r] << shift & (is_null - 1)) |
							   is_null << null_shift;
				}
			}
		})
	}
}

/* Hashes one more column; its value is zero where it is NULL, as in the key. */
#define MIX_COLUMN(value) \
	do { \
		if (nulls == NULL) \
		{ \
			for (uint32_t i = 0; i < n; i++) \
				hash[i] = rhh_hash_word(&with, hash[i], (value)); \
		} \
		else \
		{ \
			for (uint32_t i = 0; i < n; i++) \
				hash[i] = rhh_hash_word(&with, hash[i], rhh_cpu_bit(nulls, start + i) ? 0 : (value)); \
		} \
	} while (0)

/* Hashes WIDE keys without making them; gather_keys() does that. */
static void
hash_wide(const rhh_key_plan *plan, const rhh_batch *batch, rhh_cpu_scratch *scratch,
		  uint32_t start, uint32_t n)
{
	uint64_t   *hash = scratch->hash;
	uint64_t   *mask = scratch->mask;
	uint32_t   *fp = scratch->fp;
	const rhh_hash with = plan->hash;	/* where no store can change it */
	bool		any_nulls = false;

	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(batch, plan->column[k]);

		if (nulls == NULL)
			continue;
		if (!any_nulls)
			memset(mask, 0, n * sizeof(uint64_t));
		any_nulls = true;
		for (uint32_t i = 0; i < n; i++)
			mask[i] |= (uint64_t) rhh_cpu_bit(nulls, start + i) << k;
	}
	if (any_nulls)
	{
		for (uint32_t i = 0; i < n; i++)
			hash[i] = rhh_hash_word(&with, RHH_WIDE_START, mask[i]);
	}
	else
	{
		uint64_t	no_nulls = rhh_hash_word(&with, RHH_WIDE_START, 0);

		for (uint32_t i = 0; i < n; i++)
			hash[i] = no_nulls;
	}

	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(batch, plan->column[k]);
		const uint8_t *values = rhh_cpu_values(batch, plan->column[k]);

		if (plan->bytes[k] == 16)
		{
			const uint64_t *v = (const uint64_t *) values + 2 * (size_t) start;

			MIX_COLUMN(v[2 * i]);
			MIX_COLUMN(v[2 * i + 1]);
		}
		else
			FOR_WIDTH(plan->bytes[k], values, uint, {
				v += start;
				MIX_COLUMN(v[i]);
			})
	}
	for (uint32_t i = 0; i < n; i++)
		fp[i] = (uint32_t) (hash[i] >> 32);
}

/*
 * Makes the fingerprints of the run, which has n rows from start on, at most
 * RHH_CPU_RUN_ROWS.  Rows of SINGLE's NULL get arbitrary ones.
 */
void
rhh_cpu_hash_rows(const rhh_key_plan *plan, const rhh_batch *batch, rhh_cpu_scratch *scratch,
				  uint32_t start, uint32_t n)
{
	const rhh_hash with = plan->hash;	/* where no store can change it */
	uint32_t   *fp = scratch->fp;
	uint64_t   *keys = scratch->key;

	scratch->first = start;
	scratch->n = n;
	scratch->listed = false;
	switch (plan->form)
	{
		case RHH_KEY_SINGLE:
			if (plan->bits <= 32)
			{
				FOR_WIDTH(plan->bytes[0], rhh_cpu_values(batch, plan->column[0]), uint, {
					v += start;
					for (uint32_t i = 0; i < n; i++)
						fp[i] = rhh_hash32(&with, (uint32_t) v[i]);
				})
			}
			else
			{
				const uint64_t *v =
					(const uint64_t *) rhh_cpu_values(batch, plan->column[0]) + start;

				for (uint32_t i = 0; i < n; i++)
					fp[i] = rhh_fingerprint(&with, v[i], 64);
			}
			break;
		case RHH_KEY_PACKED:
			pack_keys(plan, batch, keys, start, n, NULL);
			if (plan->bits <= 32)
			{
				for (uint32_t i = 0; i < n; i++)
					fp[i] = rhh_hash32(&with, (uint32_t) keys[i]);
			}
			else
			{
				for (uint32_t i = 0; i < n; i++)
					fp[i] = rhh_fingerprint(&with, keys[i], 64);
			}
			break;
		default:
			hash_wide(plan, batch, scratch, start, n);
			break;
	}
}

/* Makes the keys of the run's rows, which are to be compared. */
static inline __attribute__((always_inline)) void
gather_rows(const batch_job *job, uint32_t first, const uint32_t *row)
{
	const rhh_key_plan *plan = &job->layout->plan;
	const uint32_t words = job->layout->key_words;
	const uint32_t n = job->scratch->n;
	uint64_t   *key = job->scratch->key;

	if (plan->form == RHH_KEY_PACKED)
	{
		pack_keys(plan, job->batch, key, first, n, row);
		return;
	}
	if (plan->form == RHH_KEY_SINGLE)
	{
		const uint64_t *v = (const uint64_t *) rhh_cpu_values(job->batch, plan->column[0]);

		for (uint32_t i = 0; i < n; i++)
			key[i] = v[row != NULL ? row[i] : first + i];
		return;
	}

	for (uint32_t i = 0; i < n; i++)
		key[i * words] = 0;
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(job->batch, plan->column[k]);
		const uint8_t *values = rhh_cpu_values(job->batch, plan->column[k]);
		uint64_t   *to = key + plan->shift[k];

		if (plan->bytes[k] == 16)
		{
			const uint64_t *v = (const uint64_t *) values;

			for (uint32_t i = 0; i < n; i++)
			{
				size_t		r = row != NULL ? row[i] : first + i;

				to[i * words] = v[2 * r];
				to[i * words + 1] = v[2 * r + 1];
			}
		}
		else
			FOR_WIDTH(plan->bytes[k], values, uint, {
				for (uint32_t i = 0; i < n; i++)
					to[i * words] = v[row != NULL ? row[i] : first + i];
			})
		if (nulls == NULL)
			continue;
		for (uint32_t i = 0; i < n; i++)
		{
			if (!rhh_cpu_bit(nulls, row != NULL ? row[i] : first + i))
				continue;
			key[i * words] |= UINT64_C(1) << k;
			to[i * words] = 0;
			if (plan->bytes[k] == 16)
				to[i * words + 1] = 0;
		}
	}
}

static void
gather_keys(const batch_job *job)
{
	if (job->scratch->listed)
		gather_rows(job, 0, job->scratch->row);
	else if (job->layout->plan.form != RHH_KEY_PACKED)	/* hash_rows() made those */
		gather_rows(job, job->scratch->first, NULL);
}

/* Fills row with the numbers of the run's rows. */
static void
list_rows(rhh_cpu_scratch *scratch)
{
	if (scratch->listed)
		return;
	for (uint32_t i = 0; i < scratch->n; i++)
		scratch->row[i] = scratch->first + i;
	scratch->listed = true;
}

/* ---------- prefetch, find, settle ---------- */

/*
 * Marks a row as refused; the caller counts it.  The first thread to do so for a batch
 * zeroes the bitmap.
 */
void
rhh_cpu_refuse(rhh_cpu_refused *refused, uint32_t row)
{
	uint32_t	untouched = 0;

	if (atomic_load_explicit(&refused->state, memory_order_acquire) != 2)
	{
		if (atomic_compare_exchange_strong(&refused->state, &untouched, 1))
		{
			memset(refused->bitmap, 0, refused->bytes);
			atomic_store_explicit(&refused->state, 2, memory_order_release);
		}
		else
		{
			while (atomic_load_explicit(&refused->state, memory_order_acquire) != 2)
				sched_yield();
		}
	}
	__atomic_fetch_or(&refused->bitmap[row >> 3], (uint8_t) (1u << (row & 7)),
					  __ATOMIC_RELAXED);
}

static void
refuse_row(batch_job *job, uint32_t row)
{
	rhh_cpu_refuse(job->refused, row);
	job->n_refused++;
}

/* Handles a row that the partition does not take: it is left for a list, or refused. */
static inline void
leave_row(batch_job *job, uint32_t row, uint32_t fp)
{
	rhh_cpu_scratch *scratch = job->scratch;

	if (job->local == NULL)
		refuse_row(job, row);
	else
	{
		scratch->left[scratch->n_left++] = (uint64_t) fp << 32 | row;
		scratch->part_rows[rhh_cpu_share(job->layout, fp)]++;
	}
}

/* Makes a group for a key that is not there.  Its number plus one; 0: no room. */
static inline uint32_t
insert(batch_job *job, uint32_t fp, const uint64_t *key)
{
	uint32_t	group;

	if (job->local == NULL)
		return rhh_cpu_insert(job->part, fp, key);
	if (job->local->full)
		return 0;
	group = rhh_cpu_insert(job->part, fp, key);
	if (group == 0)
	{
		job->local->full = true;
		/* split_run() wants a record */
		job->local->bypassed = job->part->n_segments == 0;
	}
	return group;
}

/* Prefetches a record, which may lie in two cache lines. */
static inline void
prefetch_record(const uint8_t *record, uint32_t stride)
{
	__builtin_prefetch(record, 1);
	if (stride > 32)
		__builtin_prefetch(record + stride - 1, 1);
}

/*
 * Where slots and records are, in variables that the compiler can keep in registers while
 * it writes to records.  An insert can change it.
 */
typedef struct part_view
{
	const rhh_cpu_bucket *buckets;
	uint8_t *const *segments;
	uint32_t	n_buckets;
	uint32_t	segment_bits;
	uint32_t	stride;
} part_view;

static inline part_view
view_part(const rhh_cpu_part *part)
{
	return (part_view){part->buckets, part->segments, part->n_buckets,
					   part->layout->segment_bits, part->layout->stride};
}

/*
 * The record of the first entry with the fingerprint, if that is in its home bucket, as
 * most are; else NULL.
 */
static inline uint8_t *
record_at_home(const part_view *view, uint32_t fp)
{
	const rhh_cpu_bucket *bucket =
		&view->buckets[rhh_home_bucket(fp, view->n_buckets)];
	uint32_t	mask = rhh_cpu_match(bucket, fp);
	uint32_t	group;

	if (mask == 0 || (group = bucket->group[__builtin_ctz(mask)]) == 0)
		return NULL;
	group--;
	return view->segments[group >> view->segment_bits] +
		(size_t) (group & ((1u << view->segment_bits) - 1)) * view->stride;
}

/* The record of a key, wherever it is, or a new one.  NULL: there is no room. */
static __attribute__((noinline)) uint8_t *
find_or_insert(batch_job *job, uint32_t fp, const uint64_t *key)
{
	rhh_cpu_part *part = job->part;
	uint32_t	group = rhh_cpu_find(part, fp, rhh_home_bucket(fp, part->n_buckets),
									 job->layout->verify ? key : NULL);

	if (group == 0)
		group = insert(job, fp, key);
	return group == 0 ? NULL : rhh_cpu_record(part, group - 1);
}

/*
 * Finds the run's records where equal fingerprints prove equal keys: a fingerprint that
 * is not found is a new key.  False: some row got no record.
 */
static inline __attribute__((always_inline)) bool
find_proven(batch_job *job, bool prefetch)
{
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t *fps = scratch->fp;
	uint8_t   **records = scratch->record;
	const uint32_t n = scratch->n;
	part_view	view = view_part(job->part);
	bool		any_refused = false;

	for (uint32_t i = 0; i < n; i++)
	{
		uint8_t    *record = record_at_home(&view, fps[i]);

		if (record == NULL)
		{
			uint64_t	key = rhh_unhash32(&job->layout->plan.hash, fps[i]);

			record = find_or_insert(job, fps[i], &key);
			view = view_part(job->part);
			any_refused |= record == NULL;
		}
		records[i] = record;
		if (prefetch)
			prefetch_record(record, view.stride);
	}
	return !any_refused;
}

/*
 * The same where equal fingerprints only suggest equal keys: the first record with the
 * fingerprint is prefetched, and compared when it has come.
 */
static inline __attribute__((always_inline)) bool
find_verified(batch_job *job, bool prefetch)
{
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t *fps = scratch->fp;
	uint8_t   **records = scratch->record;
	const uint32_t words = job->layout->key_words;
	const uint32_t n = scratch->n;
	const part_view view = view_part(job->part);
	bool		any_refused = false;

	for (uint32_t i = 0; i < n; i++)
	{
		uint8_t    *record = record_at_home(&view, fps[i]);

		records[i] = record;
		if (prefetch)
			prefetch_record(record, view.stride);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		const uint64_t *key = &scratch->key[i * words];

		if (records[i] != NULL &&
			rhh_cpu_key_equal((const uint64_t *) records[i], key, words))
			continue;
		records[i] = find_or_insert(job, fps[i], key);
		any_refused |= records[i] == NULL;
	}
	return !any_refused;
}

/*
 * Finds the run's rows in a local table that is full, and leaves the other rows.  Which
 * rows are found is random, so there are no branches.  Hence an entry is found only if it
 * is in its home bucket and is the first there with its fingerprint, as most are.  The
 * rows of other keys that are in the table are left as well; finishing merges both.
 */
static inline __attribute__((always_inline)) void
split_run(batch_job *job, bool verify)
{
	const rhh_cpu_layout *layout = job->layout;
	const part_view view = view_part(job->part);
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t *fps = scratch->fp;
	uint32_t   *rows = scratch->row;
	uint8_t   **records = scratch->record;
	uint64_t   *left = scratch->left + scratch->n_left;
	uint32_t   *part_rows = scratch->part_rows;
	const uint32_t words = layout->key_words;
	const uint32_t n = scratch->n;
	const bool	listed = scratch->listed;
	uint32_t	n_left = 0,
				m = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	fp = fps[i];
		uint32_t	row = listed ? rows[i] : scratch->first + i;
		const rhh_cpu_bucket *bucket =
			&view.buckets[rhh_home_bucket(fp, view.n_buckets)];
		uint32_t	mask = rhh_cpu_match(bucket, fp);
		uint32_t	group = bucket->group[__builtin_ctz(mask | 1u << (RHH_CPU_SLOTS - 1))];
		uint32_t	hit = (mask != 0) & (group != 0);
		/* any record, if there is no hit: the table has one */
		uint32_t	number = (group - 1) & -hit;
		uint8_t    *record = view.segments[number >> view.segment_bits] +
			(size_t) (number & ((1u << view.segment_bits) - 1)) * view.stride;

		if (verify)
			hit &= rhh_cpu_key_equal((const uint64_t *) record,
									 &scratch->key[i * words], words);
		left[n_left] = (uint64_t) fp << 32 | row;
		n_left += hit ^ 1;
		part_rows[rhh_cpu_share(layout, fp)] += hit ^ 1;
		rows[m] = row;
		records[m] = record;
		m += hit;
	}
	scratch->n_left += n_left;
	scratch->n = m;
	scratch->listed = listed || m < n;
}

/* Takes the rows without a record out of the run. */
static void
leave_rows(batch_job *job)
{
	rhh_cpu_scratch *scratch = job->scratch;
	uint32_t	m = 0;

	list_rows(scratch);
	for (uint32_t i = 0; i < scratch->n; i++)
	{
		if (scratch->record[i] == NULL)
			leave_row(job, scratch->row[i], scratch->fp[i]);
		else
		{
			scratch->row[m] = scratch->row[i];
			scratch->record[m] = scratch->record[i];
			m++;
		}
	}
	scratch->n = m;
}

/* ---------- update ---------- */

static inline void
update_any(uint8_t **record, size_t offset, const uint8_t *base,
		   uint32_t bytes, const uint32_t *row, uint32_t n)
{
	if (bytes == 16)
	{
		const uint64_t *v = (const uint64_t *) base;

		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t   *state = (uint64_t *) (record[i] + offset);

			state[0] = 1;
			state[1] = v[2 * (size_t) row[i]];
			state[2] = v[2 * (size_t) row[i] + 1];
		}
		return;
	}
	FOR_WIDTH(bytes, base, uint, {
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t   *state = (uint64_t *) (record[i] + offset);

			state[0] = 1;
			state[1] = v[row[i]];
		}
	})
}

static void
update_count(uint8_t **record, size_t offset, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		(*(uint64_t *) (record[i] + offset))++;
}

/* Are all values of a sum 0, so that rows do not matter to it? */
static inline bool
adds_nothing(const batch_job *job, const rhh_state_spec *state)
{
	return state->op == RHH_SUM_I128 && (job->batch->zero_columns >> state->arg_column & 1) != 0;
}

/*
 * Adds the values of n rows to a state: of consecutive rows from values on if row is
 * NULL, and otherwise of the rows in row.
 */
static inline __attribute__((always_inline)) void
update_values(uint8_t op, uint8_t **record, size_t offset, const uint8_t *values,
			  uint32_t bytes, const uint32_t *row, uint32_t n)
{
	FOR_WIDTH(bytes, values, int, {
		switch (op)
		{
			case RHH_SUM_I64:
				for (uint32_t i = 0; i < n; i++)
					*(uint64_t *) (record[i] + offset) +=
						(uint64_t) (int64_t) v[row != NULL ? row[i] : i];
				break;
			case RHH_SUM_I128:
				/* as the second limbs of most numerics are */
				if (row == NULL && rhh_cpu_all_zero((const uint8_t *) v, n * sizeof(*v)))
					break;
				for (uint32_t i = 0; i < n; i++)
				{
					uint64_t   *state = (uint64_t *) (record[i] + offset);
					unsigned __int128 sum =
						(unsigned __int128) state[1] << 64 | state[0];

					sum += (unsigned __int128) (__int128) v[row != NULL ? row[i] : i];
					state[0] = (uint64_t) sum;
					state[1] = (uint64_t) (sum >> 64);
				}
				break;
			case RHH_MIN_I64:
				for (uint32_t i = 0; i < n; i++)
				{
					int64_t    *state = (int64_t *) (record[i] + offset);
					int64_t		x = v[row != NULL ? row[i] : i];

					*state = x < *state ? x : *state;
				}
				break;
			case RHH_MAX_I64:
				for (uint32_t i = 0; i < n; i++)
				{
					int64_t    *state = (int64_t *) (record[i] + offset);
					int64_t		x = v[row != NULL ? row[i] : i];

					*state = x > *state ? x : *state;
				}
				break;
		}
	})
}

#define EACH_VALUE(T, BODY) \
	do { \
		const T    *v = (const void *) values; \
		\
		for (uint32_t i = 0; i < n; i++) \
		{ \
			uint64_t   *state = (uint64_t *) (record[i] + offset); \
			T			x = v[row != NULL ? row[i] : i]; \
			\
			BODY; \
		} \
	} while (0)

#define EACH_INTEGER(BODY) \
	do { \
		switch (bytes) \
		{ \
			case 1: EACH_VALUE(int8_t, BODY); break; \
			case 2: EACH_VALUE(int16_t, BODY); break; \
			case 4: EACH_VALUE(int32_t, BODY); break; \
			default: EACH_VALUE(int64_t, BODY); break; \
		} \
	} while (0)

#define EACH_FLOAT(BODY) \
	do { \
		if (bytes == 4) \
			EACH_VALUE(float, BODY); \
		else \
			EACH_VALUE(double, BODY); \
	} while (0)

/* The value of an argument of RHH_SUM_TWICE_F64. */
typedef struct pair
{
	double		high;
	double		low;
} pair;

/* update_values() for the states that are asked for less often. */
static __attribute__((noinline)) void
update_more_values(uint8_t op, uint8_t **record, size_t offset,
				   const uint8_t *values, uint32_t bytes, const uint32_t *row,
				   uint32_t n)
{
	const uint32_t n_words = rhh_op_words(op, bytes);

	switch (op)
	{
		case RHH_AND:
			EACH_INTEGER(state[0] &= (uint64_t) (int64_t) x);
			break;
		case RHH_OR:
			EACH_INTEGER(state[0] |= (uint64_t) (int64_t) x);
			break;
		case RHH_XOR:
			EACH_INTEGER(state[0] ^= (uint64_t) (int64_t) x);
			break;
		case RHH_SUM_SQUARES:
			EACH_INTEGER(rhh_add_square(state, x, n_words));
			break;
		case RHH_SUM_F64:
			EACH_FLOAT(rhh_add_f64(state, x));
			break;
		case RHH_MOMENTS_F64:
			EACH_FLOAT(rhh_add_moments(state, x));
			break;
		case RHH_SUM_TWICE_F64:
			EACH_VALUE(pair, rhh_add_twice(state, x.high, x.low));
			break;
	}
}

/* The bitmap of a state's argument, and the column that says which rows count; NULL: there is none. */
static inline const uint8_t *
state_nulls(const batch_job *job, const rhh_state_spec *st)
{
	return st->arg_column < 0 ? NULL : rhh_cpu_nulls(job->batch, (uint32_t) st->arg_column);
}

static inline const uint8_t *
state_filter(const batch_job *job, const rhh_state_spec *st)
{
	return st->filter_column < 0 ? NULL : rhh_cpu_values(job->batch, (uint32_t) st->filter_column);
}

/* Does a row count, by these? */
static inline uint32_t
counts(const uint8_t *filter, const uint8_t *nulls, uint32_t row)
{
	return (filter == NULL || filter[row] != 0) & (nulls == NULL || !rhh_cpu_bit(nulls, row));
}

/*
 * Updates all states of the run's rows.  Neighbouring states often have the same argument
 * and filter; then the rows that count are found only once.
 */
static void
update_states(batch_job *job)
{
	const rhh_cpu_layout *layout = job->layout;
	const rhh_map_spec *spec = &layout->spec;
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t *row = scratch->listed ? scratch->row : NULL;
	uint8_t   **record = scratch->record;
	uint32_t	n = scratch->n;
	const uint8_t *last_nulls = NULL;
	const uint8_t *last_filter = NULL;

	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		const uint8_t *nulls = state_nulls(job, st);
		const uint8_t *filter = state_filter(job, st);
		size_t		offset = layout->state_word[s] * sizeof(uint64_t);
		const uint8_t *values;
		uint32_t	bytes;

		if (nulls != last_nulls || filter != last_filter)
		{
			row = scratch->listed ? scratch->row : NULL;
			record = scratch->record;
			n = scratch->n;
			if (nulls != NULL || filter != NULL)
			{
				uint32_t	m = 0;

				for (uint32_t i = 0; i < n; i++)
				{
					uint32_t	r = row != NULL ? row[i] : scratch->first + i;

					scratch->live_row[m] = r;
					scratch->live_record[m] = record[i];
					m += counts(filter, nulls, r);
				}
				row = scratch->live_row;
				record = scratch->live_record;
				n = m;
			}
			last_nulls = nulls;
			last_filter = filter;
		}
		if (st->op == RHH_COUNT)
		{
			update_count(record, offset, n);
			continue;
		}
		if (adds_nothing(job, st))
			continue;
		values = rhh_cpu_values(job->batch, (uint32_t) st->arg_column);
		bytes = spec->column_bytes[st->arg_column];
		if (st->op == RHH_ANY)
		{
			if (row == NULL)
			{
				list_rows(scratch);
				row = scratch->row;
			}
			update_any(record, offset, values, bytes, row, n);
		}
		else if (st->op > RHH_ANY)
			update_more_values(st->op, record, offset, row != NULL ? values :
							   values + (size_t) scratch->first * bytes, bytes,
							   row, n);
		else if (row == NULL)
			update_values(st->op, record, offset,
						  values + (size_t) scratch->first * bytes, bytes, NULL, n);
		else
			update_values(st->op, record, offset, values, bytes, row, n);
	}
}

/* ---------- few groups ---------- */

/*
 * An addition to a state waits for the one before it to the same state, which takes longer than all else where there are
 * few groups.  So there the run's rows are sorted by group, and what is added to a state is added up in a register.
 */

/* The run's rows, those of a group behind each other, in their order. */
typedef struct sorted_rows
{
	uint32_t	row[RHH_CPU_RUN_ROWS];
	uint32_t	end[RHH_CPU_FEW_GROUPS];	/* of those of a group, behind those of the groups before it */
} sorted_rows;

_Static_assert(RHH_CPU_RUN_ROWS_WIDE <= RHH_CPU_RUN_ROWS && RHH_CPU_RUN_ROWS_WIDER <= RHH_CPU_RUN_ROWS,
			   "sorted_rows has room for any run");
_Static_assert(RHH_CPU_FEW_GROUPS < 256, "sort_rows() and known_keys have a byte for a group's number, and for that plus one");
_Static_assert(RHH_CPU_KNOWN_BITS <= 16, "a place has 16 bits");

/* Is it worth it for the run, whose rows all have a record? */
static inline bool
has_few_groups(const batch_job *job)
{
	return job->layout->sorts_rows && job->part->n_groups > 0 && job->part->n_groups <= RHH_CPU_FEW_GROUPS &&
		job->scratch->n >= RHH_CPU_SORTED_MIN_ROWS;
}

/* The number of a group by its record, where that is one of the first RHH_CPU_FEW_GROUPS, and the first group's. */
static inline uint32_t
number_of_group(const rhh_cpu_layout *layout, const uint8_t *record, const uint8_t *first)
{
	/* distances are multiples of the stride, and small, so this divides them exactly */
	return (uint32_t) ((uint64_t) (record - first) * layout->stride_inverse >> 32);
}

static void
sort_rows(const batch_job *job, sorted_rows *sorted)
{
	const rhh_cpu_scratch *scratch = job->scratch;
	const uint8_t *first = rhh_cpu_record(job->part, 0);
	const uint32_t n = scratch->n;
	uint8_t		group[RHH_CPU_RUN_ROWS];
	uint32_t	next[RHH_CPU_FEW_GROUPS + 1] = {0};

	for (uint32_t i = 0; i < n; i++)
		group[i] = (uint8_t) number_of_group(job->layout, scratch->record[i], first);
	for (uint32_t i = 0; i < n; i++)
		next[group[i] + 1]++;
	for (uint32_t g = 0; g < RHH_CPU_FEW_GROUPS; g++)
	{
		next[g + 1] += next[g];
		sorted->end[g] = next[g + 1];
	}
	for (uint32_t i = 0; i < n; i++)
		sorted->row[next[group[i]]++] = scratch->listed ? scratch->row[i] : scratch->first + i;
}

/* Leaves out the rows that do not count for a state. */
static void
drop_sorted(const sorted_rows *all, uint32_t n_groups, const uint8_t *filter, const uint8_t *nulls, sorted_rows *live)
{
	uint32_t	m = 0;
	uint32_t	i = 0;

	for (uint32_t g = 0; g < n_groups; g++)
	{
		for (; i < all->end[g]; i++)
		{
			const uint32_t r = all->row[i];

			live->row[m] = r;
			m += counts(filter, nulls, r);
		}
		live->end[g] = m;
	}
}

/* Adds the values of n rows of one group to its state: of consecutive rows from values on if row is NULL, else of the rows in row. */
static inline __attribute__((always_inline)) void
add_values(uint8_t op, uint64_t *state, const uint8_t *values, uint32_t bytes, const uint32_t *row, uint32_t n)
{
	const uint32_t last = n == 0 ? 0 : row != NULL ? row[n - 1] : n - 1;

	if (op == RHH_COUNT)
	{
		state[0] += n;
		return;
	}
	if (bytes == 16)
	{
		/* no other states are of such values */
		const uint64_t *v = (const uint64_t *) values;

		if (n > 0)
		{
			state[0] = 1;
			state[1] = v[2 * (size_t) last];
			state[2] = v[2 * (size_t) last + 1];
		}
		return;
	}
	if (op == RHH_ANY)
	{
		FOR_WIDTH(bytes, values, uint, {
			if (n > 0)
			{
				state[0] = 1;
				state[1] = v[last];
			}
		})
		return;
	}
	FOR_WIDTH(bytes, values, int, {
		switch (op)
		{
			case RHH_SUM_I64:
				{
					uint64_t	sum = state[0];

					for (uint32_t i = 0; i < n; i++)
						sum += (uint64_t) (int64_t) v[row != NULL ? row[i] : i];
					state[0] = sum;
				}
				break;
			case RHH_SUM_I128:
				{
					unsigned __int128 sum = (unsigned __int128) state[1] << 64 | state[0];

					for (uint32_t i = 0; i < n; i++)
						sum += (unsigned __int128) (__int128) v[row != NULL ? row[i] : i];
					state[0] = (uint64_t) sum;
					state[1] = (uint64_t) (sum >> 64);
				}
				break;
			case RHH_MIN_I64:
				{
					int64_t		least = (int64_t) state[0];

					for (uint32_t i = 0; i < n; i++)
						least = v[row != NULL ? row[i] : i] < least ? v[row != NULL ? row[i] : i] : least;
					state[0] = (uint64_t) least;
				}
				break;
			case RHH_MAX_I64:
				{
					int64_t		most = (int64_t) state[0];

					for (uint32_t i = 0; i < n; i++)
						most = v[row != NULL ? row[i] : i] > most ? v[row != NULL ? row[i] : i] : most;
					state[0] = (uint64_t) most;
				}
				break;
		}
	})
}

/* Adds the values of sorted rows to a state of each group; record: of the first one. */
static void
add_sorted(uint8_t op, uint8_t *record, uint32_t stride, uint32_t n_groups, const uint8_t *values, uint32_t bytes,
		   const sorted_rows *rows)
{
	uint32_t	first = 0;

	for (uint32_t g = 0; g < n_groups; g++, record += stride)
	{
		add_values(op, (uint64_t *) record, values, bytes, rows->row + first, rows->end[g] - first);
		first = rows->end[g];
	}
}

/* May one of n values be less than the minimum of a group, or greater than the maximum?  state: the first group's. */
static bool
may_exceed(uint8_t op, const uint8_t *state, uint32_t stride, uint32_t n_groups, const uint8_t *values, uint32_t bytes, uint32_t n)
{
	int64_t		bound = *(const int64_t *) state;
	uint32_t	any = 0;

	for (uint32_t g = 1; g < n_groups; g++)
	{
		const int64_t other = *(const int64_t *) (state + (size_t) g * stride);

		if (op == RHH_MAX_I64 ? other < bound : other > bound)
			bound = other;
	}
	FOR_WIDTH(bytes, values, int, {
		if (op == RHH_MAX_I64)
		{
			for (uint32_t i = 0; i < n; i++)
				any |= v[i] > bound;
		}
		else
		{
			for (uint32_t i = 0; i < n; i++)
				any |= v[i] < bound;
		}
	})
	return any != 0;
}

/* update_states() for few groups. */
static void
update_few(batch_job *job)
{
	const rhh_cpu_layout *layout = job->layout;
	const rhh_map_spec *spec = &layout->spec;
	const rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t n_groups = job->part->n_groups;
	uint8_t    *record = rhh_cpu_record(job->part, 0);
	sorted_rows all;
	sorted_rows live;
	const sorted_rows *rows = &all;
	const uint8_t *last_nulls = NULL;
	const uint8_t *last_filter = NULL;

	sort_rows(job, &all);
	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		const uint8_t *nulls = state_nulls(job, st);
		const uint8_t *filter = state_filter(job, st);
		uint8_t    *state = record + layout->state_word[s] * sizeof(uint64_t);	/* the first group's */
		const uint8_t *values = NULL;
		uint32_t	bytes = 0;

		if (nulls != last_nulls || filter != last_filter)
		{
			rows = &all;
			if (nulls != NULL || filter != NULL)
			{
				drop_sorted(&all, n_groups, filter, nulls, &live);
				rows = &live;
			}
			last_nulls = nulls;
			last_filter = filter;
		}
		if (st->op != RHH_COUNT)
		{
			values = rhh_cpu_values(job->batch, (uint32_t) st->arg_column);
			bytes = spec->column_bytes[st->arg_column];
			if (adds_nothing(job, st))
				continue;
			if (!scratch->listed)
			{
				const uint8_t *run = values + (size_t) scratch->first * bytes;

				/* as the second limbs of most numerics are */
				if (st->op == RHH_SUM_I128 && rows == &all && rhh_cpu_all_zero(run, (size_t) scratch->n * bytes))
					continue;
				/* rows that do not count are asked, too */
				if ((st->op == RHH_MIN_I64 || st->op == RHH_MAX_I64) &&
					!may_exceed(st->op, state, layout->stride, n_groups, run, bytes, scratch->n))
					continue;
			}
		}
		add_sorted(st->op, state, layout->stride, n_groups, values, bytes, rows);
	}
}

/* ---------- runs ---------- */

/*
 * Takes the rows of SINGLE's NULL out of the run.  Their group takes them, or they are
 * left, or refused.
 */
static void
take_null_rows(batch_job *job)
{
	rhh_cpu_scratch *scratch = job->scratch;
	uint32_t   *row = scratch->row;
	uint32_t   *null_row = scratch->null_row;
	uint32_t	n_nulls = 0,
				m = 0;
	uint32_t	group;

	list_rows(scratch);
	for (uint32_t i = 0; i < scratch->n; i++)
	{
		uint32_t	r = row[i];
		uint32_t	is_null = rhh_cpu_bit(job->key_nulls, r);

		null_row[n_nulls] = r;
		n_nulls += is_null;
		row[m] = r;
		scratch->fp[m] = scratch->fp[i];
		m += is_null ^ 1;
	}
	scratch->n = m;
	if (n_nulls == 0)
		return;

	group = job->local != NULL && !job->local->used ? 0 : rhh_cpu_null_group(job->part);
	if (group == 0)
	{
		/* in the list of partition 0; their fingerprint is not used */
		for (uint32_t i = 0; i < n_nulls; i++)
			leave_row(job, null_row[i], 0);
		return;
	}
	for (uint32_t i = 0; i < n_nulls; i++)
		scratch->record[i] = rhh_cpu_record(job->part, group - 1);
	scratch->row = null_row;
	scratch->n = n_nulls;
	update_states(job);
	job->n_rows += n_nulls;
	scratch->row = row;
	scratch->n = m;
}

/* Finds the run's records, and takes the rows that get none out of it. */
static void
find_records(batch_job *job)
{
	bool		all_found;

	if (job->local != NULL && job->local->full)
	{
		if (job->layout->verify)
		{
			gather_keys(job);
			split_run(job, true);
		}
		else
			split_run(job, false);
		all_found = true;
	}
	else if (job->layout->verify)
	{
		gather_keys(job);
		all_found = job->prefetch ? find_verified(job, true) : find_verified(job, false);
	}
	else
		all_found = job->prefetch ? find_proven(job, true) : find_proven(job, false);
	if (!all_found)
		leave_rows(job);
}

/* Updates the states of the run's rows, which all have a record. */
static void
update_run(batch_job *job)
{
	if (has_few_groups(job))
		update_few(job);
	else
		update_states(job);
	job->n_rows += job->scratch->n;
}

/* Takes the run's rows through the stages from prefetch on. */
static void
aggregate_run(batch_job *job)
{
	rhh_cpu_part *part = job->part;
	rhh_cpu_scratch *scratch = job->scratch;

	if (job->key_nulls != NULL)
		take_null_rows(job);
	if (job->prefetch && !job->prefetched)
	{
		const rhh_cpu_bucket *buckets = part->buckets;
		const uint32_t n_buckets = part->n_buckets;

		for (uint32_t i = 0; i < scratch->n; i++)
			__builtin_prefetch(&buckets[rhh_home_bucket(scratch->fp[i], n_buckets)], 1);
	}
	find_records(job);
	update_run(job);
}

/* ---------- rows of one key ---------- */

/*
 * Without GROUP BY all rows have one key, and where rows lie as they are grouped whole runs do.  Then the group is looked
 * for once, and values are added up where they are.
 */

/* Do n rows of the batch have one key, which is not NULL? */
static bool
have_one_key(const batch_job *job, uint32_t first, uint32_t n)
{
	const rhh_key_plan *plan = &job->layout->plan;
	const uint32_t bytes = plan->bytes[0];
	const uint8_t *keys;

	if (plan->form != RHH_KEY_SINGLE || job->key_nulls != NULL)
		return false;
	keys = rhh_cpu_values(job->batch, plan->column[0]) + (size_t) first * bytes;
	return memcmp(keys, keys + bytes, (size_t) (n - 1) * bytes) == 0;
}

/* update_states() for the run, all of whose rows are of one group. */
static void
update_one(batch_job *job, uint8_t *record)
{
	const rhh_map_spec *spec = &job->layout->spec;
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t *row = NULL;
	uint32_t	n = scratch->n;
	const uint8_t *last_nulls = NULL;
	const uint8_t *last_filter = NULL;

	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		const uint8_t *nulls = state_nulls(job, st);
		const uint8_t *filter = state_filter(job, st);
		uint64_t   *state = (uint64_t *) (record + job->layout->state_word[s] * sizeof(uint64_t));
		const uint8_t *values = NULL;
		uint32_t	bytes = 0;

		if (nulls != last_nulls || filter != last_filter)
		{
			row = NULL;
			n = scratch->n;
			if (nulls != NULL || filter != NULL)
			{
				uint32_t	m = 0;

				for (uint32_t r = scratch->first; r < scratch->first + scratch->n; r++)
				{
					scratch->live_row[m] = r;
					m += counts(filter, nulls, r);
				}
				row = scratch->live_row;
				n = m;
			}
			last_nulls = nulls;
			last_filter = filter;
		}
		if (st->op != RHH_COUNT)
		{
			values = rhh_cpu_values(job->batch, (uint32_t) st->arg_column);
			bytes = spec->column_bytes[st->arg_column];
			if (adds_nothing(job, st))
				continue;
		}
		if (row != NULL)
			add_values(st->op, state, values, bytes, row, n);
		else
			add_values(st->op, state, values + (size_t) scratch->first * bytes, bytes, NULL, n);
	}
}

/* Takes n rows of the batch, which have one key, through all stages. */
static void
aggregate_one_key(batch_job *job, uint32_t first, uint32_t n)
{
	rhh_cpu_scratch *scratch = job->scratch;
	uint32_t	fp;

	rhh_cpu_hash_rows(&job->layout->plan, job->batch, scratch, first, 1);
	fp = scratch->fp[0];
	find_records(job);
	if (scratch->n == 0)
	{
		/* as the first one is */
		for (uint32_t row = first + 1; row < first + n; row++)
			leave_row(job, row, fp);
		return;
	}
	scratch->first = first;
	scratch->n = n;
	scratch->listed = false;
	if (job->layout->simple_states)
		update_one(job, scratch->record[0]);
	else
	{
		for (uint32_t i = 1; i < n; i++)
			scratch->record[i] = scratch->record[0];
		update_states(job);
	}
	job->n_rows += n;
}

/* ---------- keys that are known ---------- */

/*
 * The map's hash of a WIDE key takes as long as all that follows where there are few groups.  There nearly all rows have keys that
 * rows of the batch before them had, which a simpler hash finds, as they are compared all the same.
 */

/* From now on the batch notes keys, if they are WIDE, and rows are sorted by group.  NULLs are left to the map. */
static void
begin_known(batch_job *job)
{
	const rhh_key_plan *plan = &job->layout->plan;

	job->known.of_use = plan->form == RHH_KEY_WIDE && job->layout->sorts_rows;
	for (uint32_t k = 0; k < plan->n_keys; k++)
		job->known.of_use &= rhh_cpu_nulls(job->batch, plan->column[k]) == NULL;
	job->known.n_unknown = 0;
	if (job->known.of_use)
		memset(job->known.group, 0, sizeof(job->known.group));
}

/* Is a run looked for among noted keys first? */
static bool
looks_for_known(const batch_job *job)
{
	return job->known.of_use && job->known.n_unknown < RHH_CPU_MAX_UNKNOWN && job->part->n_groups <= RHH_CPU_FEW_GROUPS;
}

/* The places of the keys of n rows from first on. */
static void
hash_known(const batch_job *job, uint32_t first, uint32_t n, uint16_t *place)
{
	const rhh_key_plan *plan = &job->layout->plan;
	uint64_t   *hash = job->scratch->hash;

	memset(hash, 0, n * sizeof(uint64_t));
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *values = rhh_cpu_values(job->batch, plan->column[k]);

		if (plan->bytes[k] == 16)
		{
			const uint64_t *v = (const uint64_t *) values + 2 * (size_t) first;

			for (uint32_t i = 0; i < n; i++)
				hash[i] = rhh_cpu_quick_hash(hash[i], v[2 * i], v[2 * i + 1]);
		}
		else
			FOR_WIDTH(plan->bytes[k], values, uint, {
				for (uint32_t i = 0; i < n; i++)
					hash[i] = rhh_cpu_quick_hash(hash[i], v[first + i], 0);
			})
	}
	for (uint32_t i = 0; i < n; i++)
		place[i] = (uint16_t) (hash[i] >> (64 - RHH_CPU_KNOWN_BITS));
}

/* Finds the records of n rows from first on; false: not of all. */
static bool
find_known(batch_job *job, uint32_t first, uint32_t n, const uint16_t *place)
{
	const rhh_cpu_layout *layout = job->layout;
	const rhh_key_plan *plan = &layout->plan;
	rhh_cpu_scratch *scratch = job->scratch;
	uint8_t   **record = scratch->record;
	uint8_t    *first_record;
	uint32_t	unknown = 0;
	uint64_t	differ = 0;

	if (job->part->n_groups == 0)
		return false;
	first_record = rhh_cpu_record(job->part, 0);
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t group = job->known.group[place[i]];

		unknown |= group == 0;
		record[i] = first_record + (size_t) (group - (group != 0)) * layout->stride;
	}
	if (unknown)
		return false;
	/* no column of a key that is noted is NULL, so that its first word need not be compared */
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *values = rhh_cpu_values(job->batch, plan->column[k]);
		const uint32_t word = plan->shift[k];

		if (plan->bytes[k] == 16)
		{
			const uint64_t *v = (const uint64_t *) values + 2 * (size_t) first;

			for (uint32_t i = 0; i < n; i++)
				differ |= (((const uint64_t *) record[i])[word] ^ v[2 * i]) | (((const uint64_t *) record[i])[word + 1] ^ v[2 * i + 1]);
		}
		else
			FOR_WIDTH(plan->bytes[k], values, uint, {
				for (uint32_t i = 0; i < n; i++)
					differ |= ((const uint64_t *) record[i])[word] ^ v[first + i];
			})
	}
	if (differ != 0)
		return false;
	scratch->first = first;
	scratch->n = n;
	scratch->listed = false;
	return true;
}

/* Notes the keys of the run, which had n rows, if all of them have a record of the first few. */
static void
note_known(batch_job *job, uint32_t n, const uint16_t *place)
{
	const rhh_cpu_scratch *scratch = job->scratch;
	const uint8_t *first_record;

	job->known.n_unknown++;
	if (scratch->n != n || job->part->n_groups > RHH_CPU_FEW_GROUPS)
		return;
	first_record = rhh_cpu_record(job->part, 0);
	for (uint32_t i = 0; i < n; i++)
		job->known.group[place[i]] = (uint8_t) (number_of_group(job->layout, scratch->record[i], first_record) + 1);
}

/* Takes n rows of the batch from first on through all stages. */
static void
aggregate_rows(batch_job *job, uint32_t first, uint32_t n)
{
	uint16_t	place[RHH_CPU_RUN_ROWS];
	bool		looks;

	if (have_one_key(job, first, n))
	{
		aggregate_one_key(job, first, n);
		return;
	}
	looks = looks_for_known(job);
	if (looks)
	{
		hash_known(job, first, n, place);
		if (find_known(job, first, n, place))
		{
			update_run(job);
			return;
		}
	}
	rhh_cpu_hash_rows(&job->layout->plan, job->batch, job->scratch, first, n);
	aggregate_run(job);
	if (looks)
		note_known(job, n, place);
}

static void
start_job(batch_job *job, rhh_cpu_part *part, rhh_cpu_local *local,
		  const rhh_batch *batch, rhh_cpu_scratch *scratch, rhh_cpu_refused *refused)
{
	const rhh_cpu_layout *layout = part->layout;

	job->part = part;
	job->local = local;
	job->layout = layout;
	job->batch = batch;
	job->scratch = scratch;
	job->refused = refused;
	job->key_nulls = layout->plan.form != RHH_KEY_SINGLE ? NULL :
		rhh_cpu_nulls(job->batch, layout->plan.column[0]);
	job->prefetch = part->n_buckets * sizeof(rhh_cpu_bucket) +
		part->n_groups * layout->record_bytes > RHH_CPU_CACHED_BYTES;
	job->prefetched = false;
	job->n_rows = 0;
	job->n_refused = 0;
}

static void
end_job(batch_job *job)
{
	rhh_cpu_part *part = job->part;

	if (job->n_refused > 0)
		atomic_fetch_add_explicit(&job->refused->n, (uint32_t) job->n_refused,
								  memory_order_relaxed);
	rhh_cpu_count(&part->rows, job->n_rows);
	rhh_cpu_count(&part->refused_rows, job->n_refused);
	atomic_store_explicit(&part->groups, part->n_groups, memory_order_relaxed);
}

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Aggregates a batch into the only partition.  False: the map was cancelled,
 * and rows are missing.
 */
bool
rhh_cpu_aggregate_all(rhh_cpu_part *part, const rhh_batch *batch,
					  rhh_cpu_scratch *scratch, rhh_cpu_refused *refused,
					  const atomic_bool *cancelled)
{
	const rhh_cpu_layout *layout = part->layout;
	batch_job	job;
	uint32_t	n;

	start_job(&job, part, NULL, batch, scratch, refused);
	begin_known(&job);
	for (uint32_t start = 0; start < batch->n_rows; start += n)
	{
		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		n = min_u32(batch->n_rows - start, layout->run_rows);
		aggregate_rows(&job, start, n);
	}
	end_job(&job);
	return true;
}

/* ---------- scans ---------- */

/* Leaves all rows of a run to the partitions. */
static void
leave_run(batch_job *job)
{
	rhh_cpu_scratch *scratch = job->scratch;
	uint64_t   *left = scratch->left + scratch->n_left;
	const uint32_t n = scratch->n;

	if (scratch->listed)
	{
		for (uint32_t i = 0; i < n; i++)
			left[i] = (uint64_t) scratch->fp[i] << 32 | scratch->row[i];
	}
	else
	{
		for (uint32_t i = 0; i < n; i++)
			left[i] = (uint64_t) scratch->fp[i] << 32 | (scratch->first + i);
	}
	for (uint32_t i = 0; i < n; i++)
		scratch->part_rows[rhh_cpu_share(job->layout, scratch->fp[i])]++;
	scratch->n_left += n;
}

/* Sorts the rows that were left into lists, one for each partition. */
static void
make_lists(const batch_job *job, rhh_cpu_lists *lists)
{
	const rhh_cpu_layout *layout = job->layout;
	rhh_cpu_scratch *scratch = job->scratch;
	uint32_t   *next = scratch->part_rows;
	uint32_t	sum = 0;

	for (uint32_t p = 0; p < layout->n_parts; p++)
	{
		lists->first[p] = sum;
		sum += next[p];
		next[p] = lists->first[p];
	}
	lists->first[layout->n_parts] = sum;
	for (uint32_t i = 0; i < sum; i++)
	{
		uint64_t	entry = scratch->left[i];

		lists->entries[next[rhh_cpu_share(layout, (uint32_t) (entry >> 32))]++] = entry;
	}
}

/* Is it worth looking for rows in a local table that is full? */
static void
judge_local(rhh_cpu_local *local, uint32_t n_rows, uint32_t n_hits)
{
	if (!local->full)
		return;
	local->window_rows += n_rows;
	local->window_hits += n_hits;
	if (local->window_rows < RHH_CPU_LOCAL_WINDOW)
		return;
	local->bypassed = local->window_hits < local->window_rows / RHH_CPU_LOCAL_MIN_HITS;
	local->window_rows = local->window_hits = 0;
}

/*
 * Takes the rows of a batch to the thread's local table, and puts the rest into lists for
 * the partitions.  False: the map was cancelled, and rows are missing.
 */
bool
rhh_cpu_scan(rhh_cpu_part *parts, rhh_cpu_local *local, const rhh_batch *batch,
			 rhh_cpu_lists *lists, rhh_cpu_scratch *scratch,
			 rhh_cpu_refused *refused, const atomic_bool *cancelled)
{
	const rhh_cpu_layout *layout = parts[0].layout;
	batch_job	job;
	uint32_t	n;

	memset(lists->first, 0, (layout->n_parts + 1) * sizeof(uint32_t));
	/* split_run() writes one entry more than it leaves */
	if (!rhh_cpu_make_room(&scratch->left, &scratch->left_room, batch->n_rows + 1) ||
		!rhh_cpu_make_room(&lists->entries, &lists->room, batch->n_rows))
	{
		/* refused rows are counted here, where no other thread counts now */
		start_job(&job, &local->part, NULL, batch, scratch, refused);
		for (uint32_t row = 0; row < batch->n_rows; row++)
			refuse_row(&job, row);
		end_job(&job);
		return true;
	}
	start_job(&job, &local->part, local, batch, scratch, refused);
	begin_known(&job);
	job.prefetch = false;
	scratch->n_left = 0;
	memset(scratch->part_rows, 0, layout->n_parts * sizeof(uint32_t));
	for (uint32_t start = 0; start < batch->n_rows; start += n)
	{
		uint64_t	n_before = job.n_rows;

		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		n = min_u32(batch->n_rows - start, layout->run_rows);
		if (!local->bypassed)
		{
			aggregate_rows(&job, start, n);
			judge_local(local, n, (uint32_t) (job.n_rows - n_before));
		}
		else
		{
			rhh_cpu_hash_rows(&layout->plan, batch, scratch, start, n);
			if (job.key_nulls != NULL)
				take_null_rows(&job);
			leave_run(&job);
		}
	}
	make_lists(&job, lists);
	end_job(&job);
	return true;
}

/* Prefetches the home buckets of entries while the run before is worked on. */
static void
prefetch_ahead(const batch_job *job, const uint64_t *entries, uint32_t n)
{
	const rhh_cpu_bucket *buckets = job->part->buckets;
	const uint32_t n_buckets = job->part->n_buckets;

	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(&buckets[rhh_home_bucket((uint32_t) (entries[i] >> 32),
													n_buckets)], 1);
}

/*
 * Aggregates a partition's list of a batch.  False: the map was cancelled, and
 * rows are missing.
 */
bool
rhh_cpu_aggregate_list(rhh_cpu_part *part, uint32_t part_number,
					   const rhh_batch *batch, const rhh_cpu_lists *lists,
					   rhh_cpu_scratch *scratch, rhh_cpu_refused *refused,
					   const atomic_bool *cancelled)
{
	const uint32_t end = lists->first[part_number + 1];
	const uint32_t run_rows = min_u32(part->layout->run_rows, RHH_CPU_LIST_RUN_ROWS);
	batch_job	job;
	uint32_t	n;

	start_job(&job, part, NULL, batch, scratch, refused);
	if (part_number > 0)
		job.key_nulls = NULL;	/* those are all in the first list */
	for (uint32_t start = lists->first[part_number]; start < end; start += n)
	{
		const uint64_t *entries = lists->entries + start;

		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		n = min_u32(end - start, run_rows);
		for (uint32_t i = 0; i < n; i++)
		{
			scratch->row[i] = (uint32_t) entries[i];
			scratch->fp[i] = (uint32_t) (entries[i] >> 32);
		}
		scratch->n = n;
		scratch->listed = true;
		if (job.prefetch)
			prefetch_ahead(&job, entries + n, min_u32(end - start - n, run_rows));
		aggregate_run(&job);
		job.prefetched = job.prefetch;
	}
	end_job(&job);
	return true;
}
