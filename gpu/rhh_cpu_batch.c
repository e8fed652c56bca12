/*
 * rhh_cpu_batch.c
 *		Aggregates a batch into one partition of a CPU device's table.
 *
 * Every worker thread runs rhh_cpu_aggregate() over all rows of a batch, for
 * its own partition, in stages over arrays, so that a stage's cache misses
 * overlap and what depends on types is decided outside of the row loops:
 *
 *		scan		keys of some hundred rows -> fingerprints -> own rows
 *		prefetch	home buckets of a run of own rows
 *		find		fingerprint -> group number; prefetch its record
 *		settle		compare keys where fingerprints do not prove them equal;
 *					insert what is new; rows without a group fail here
 *		update		state by state, of all rows left
 *
 * No row fails after settle and no state is touched before update.
 *
 * The scratch belongs to the thread and holds nothing between batches.
 */
#include <sched.h>
#include <stdlib.h>

#include "rhh_cpu_table.h"

/* What one thread does with one batch. */
typedef struct batch_job
{
	rhh_cpu_part *part;
	const rhh_cpu_layout *layout;
	const rhh_batch *batch;
	rhh_cpu_scratch *scratch;
	rhh_cpu_failed *failed;
	uint32_t	part_number;
	uint32_t	first_share;	/* part_share()s of this partition: from here, */
	uint32_t	n_shares;		/* so many, of PART_SHARES */
	uint64_t	n_rows;			/* aggregated */
	uint64_t	n_failed;
} batch_job;

/* Runs BODY with v as the column's values; a 16-byte column has none. */
#define FOR_WIDTH(bytes, base, sign, BODY) \
	switch (bytes) \
	{ \
		case 1: { const sign##8_t *v = (const void *) (base); BODY } break; \
		case 2: { const sign##16_t *v = (const void *) (base); BODY } break; \
		case 4: { const sign##32_t *v = (const void *) (base); BODY } break; \
		default: { const sign##64_t *v = (const void *) (base); BODY } break; \
	}

/*
 * Tells a fingerprint's partition.  The home bucket takes the fingerprint's high
 * bits, as many as it needs, so none of them may decide here: half of a large
 * table's buckets would then be nobody's home.  The product's high bits depend
 * on all bits, and on the low ones whatever the high ones are.
 */
#define PART_SHARES 0x10000u

static inline uint32_t
part_share(uint32_t fp)
{
	return (fp * 0x9e3779b1u) >> 16;
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
	/* a run is taken when it is long enough, up to one scan's rows longer */
	const uint32_t run = (1 + RHH_CPU_SCAN) * RHH_CPU_RUN_ROWS;
	const uint32_t wide = (1 + RHH_CPU_SCAN) * RHH_CPU_RUN_ROWS_WIDE;
	const uint32_t wider = (1 + RHH_CPU_SCAN) * RHH_CPU_RUN_ROWS_WIDER;
	const uint32_t key_words =
		max_u32(4 * run, max_u32(16 * wide, RHH_MAX_KEY_WORDS * wider));
	const uint32_t scan = RHH_CPU_SCAN * RHH_CPU_RUN_ROWS;

	memset(scratch, 0, sizeof(*scratch));
	scratch->row = malloc(run * sizeof(uint32_t));
	scratch->fp = malloc(run * sizeof(uint32_t));
	scratch->key = malloc(key_words * sizeof(uint64_t));
	scratch->record = malloc(run * sizeof(uint8_t *));
	scratch->live_row = malloc(run * sizeof(uint32_t));
	scratch->live_record = malloc(run * sizeof(uint8_t *));
	scratch->value = malloc(run * sizeof(int64_t));
	scratch->scan_key = malloc(scan * sizeof(uint64_t));
	scratch->scan_mask = malloc(scan * sizeof(uint64_t));
	if (scratch->row != NULL && scratch->fp != NULL && scratch->key != NULL &&
		scratch->record != NULL && scratch->live_row != NULL &&
		scratch->live_record != NULL && scratch->value != NULL &&
		scratch->scan_key != NULL && scratch->scan_mask != NULL)
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
	free(scratch->live_row);
	free(scratch->live_record);
	free(scratch->value);
	free(scratch->scan_key);
	free(scratch->scan_mask);
	memset(scratch, 0, sizeof(*scratch));
}

/* ---------- columns ---------- */

static const uint8_t *
column_values(const batch_job *job, uint32_t column)
{
	return job->batch->base + job->batch->values_offset[column];
}

/* NULL: no row of the column is. */
static const uint8_t *
column_nulls(const batch_job *job, uint32_t column)
{
	uint32_t	offset = job->batch->nulls_offset[column];

	return offset == 0 ? NULL : job->batch->base + offset;
}

static inline uint32_t
bit_of(const uint8_t *bitmap, uint32_t row)
{
	return (bitmap[row >> 3] >> (row & 7)) & 1;
}

/* ---------- scan ---------- */

/*
 * Appends the rows that hash to this partition to the scratch.  skip: rows not
 * to take.  Branch-free, as which rows are ours is random.
 */
static inline __attribute__((always_inline)) void
select_rows(batch_job *job, uint32_t start, uint32_t n, const uint8_t *skip,
			bool is_hash, uint32_t bits)
{
	rhh_cpu_scratch *scratch = job->scratch;
	const uint64_t *keys = scratch->scan_key;
	const uint32_t first_share = job->first_share;
	const uint32_t n_shares = job->n_shares;
	uint32_t   *to_row = scratch->row;
	uint32_t   *to_fp = scratch->fp;
	uint64_t   *to_key = scratch->key;
	uint32_t	m = scratch->n;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	key = keys[i];
		uint32_t	fp = is_hash ? (uint32_t) (key >> 32) : rhh_fingerprint(key, bits);
		uint32_t	take = part_share(fp) - first_share < n_shares;

		if (skip != NULL)
			take &= bit_of(skip, start + i) ^ 1;
		to_row[m] = start + i;
		to_fp[m] = fp;
		/* a shorter key can be had from its fingerprint */
		if (!is_hash && bits > 32)
			to_key[m] = key;
		m += take;
	}
	scratch->n = m;
}

/* A SINGLE key.  Its NULLs are not collected, see update_null_group(). */
static void
scan_single(batch_job *job, uint32_t start, uint32_t n)
{
	const rhh_key_plan *plan = &job->layout->plan;
	const uint8_t *nulls = column_nulls(job, plan->column[0]);
	uint64_t   *keys = job->scratch->scan_key;

	FOR_WIDTH(plan->bytes[0], column_values(job, plan->column[0]), uint, {
		v += start;
		for (uint32_t i = 0; i < n; i++)
			keys[i] = v[i];
	})
	if (plan->bits <= 32)
	{
		if (nulls == NULL)
			select_rows(job, start, n, NULL, false, 32);
		else
			select_rows(job, start, n, nulls, false, 32);
	}
	else if (nulls == NULL)
		select_rows(job, start, n, NULL, false, 64);
	else
		select_rows(job, start, n, nulls, false, 64);
}

static void
scan_packed(batch_job *job, uint32_t start, uint32_t n)
{
	const rhh_key_plan *plan = &job->layout->plan;
	uint64_t   *keys = job->scratch->scan_key;

	memset(keys, 0, n * sizeof(uint64_t));
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = column_nulls(job, plan->column[k]);
		const uint32_t shift = plan->shift[k];
		const uint32_t null_shift = plan->null_shift + k;

		FOR_WIDTH(plan->bytes[k], column_values(job, plan->column[k]), uint, {
			v += start;
			if (nulls == NULL)
			{
				for (uint32_t i = 0; i < n; i++)
					keys[i] |= (uint64_t) v[i] << shift;
			}
			else
			{
				for (uint32_t i = 0; i < n; i++)
				{
					uint64_t	is_null = bit_of(nulls, start + i);

					keys[i] |= ((uint64_t) v[i] << shift & (is_null - 1)) |
							   is_null << null_shift;
				}
			}
		})
	}
	if (plan->bits <= 32)
		select_rows(job, start, n, NULL, false, 32);
	else
		select_rows(job, start, n, NULL, false, 64);
}

/* Hashes on with a column's values; zero where NULL, as in the key. */
#define MIX_COLUMN(value) \
	do { \
		if (nulls == NULL) \
		{ \
			for (uint32_t i = 0; i < n; i++) \
				hash[i] = rhh_mix_word(hash[i], (value)); \
		} \
		else \
		{ \
			for (uint32_t i = 0; i < n; i++) \
				hash[i] = rhh_mix_word(hash[i], bit_of(nulls, start + i) ? 0 : (value)); \
		} \
	} while (0)

/* WIDE keys are only hashed here; gather_wide() makes those of own rows. */
static void
scan_wide(batch_job *job, uint32_t start, uint32_t n)
{
	const rhh_key_plan *plan = &job->layout->plan;
	uint64_t   *hash = job->scratch->scan_key;
	uint64_t   *mask = job->scratch->scan_mask;
	bool		any_nulls = false;

	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = column_nulls(job, plan->column[k]);

		if (nulls == NULL)
			continue;
		if (!any_nulls)
			memset(mask, 0, n * sizeof(uint64_t));
		any_nulls = true;
		for (uint32_t i = 0; i < n; i++)
			mask[i] |= (uint64_t) bit_of(nulls, start + i) << k;
	}
	if (any_nulls)
	{
		for (uint32_t i = 0; i < n; i++)
			hash[i] = rhh_mix_word(RHH_WIDE_SEED, mask[i]);
	}
	else
	{
		uint64_t	no_nulls = rhh_mix_word(RHH_WIDE_SEED, 0);

		for (uint32_t i = 0; i < n; i++)
			hash[i] = no_nulls;
	}

	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = column_nulls(job, plan->column[k]);
		const uint8_t *values = column_values(job, plan->column[k]);

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
	select_rows(job, start, n, NULL, true, 0);
}

/* The keys of the rows collected, row by row. */
static void
gather_wide(batch_job *job)
{
	const rhh_key_plan *plan = &job->layout->plan;
	const uint32_t words = job->layout->key_words;
	const uint32_t n = job->scratch->n;
	const uint32_t *row = job->scratch->row;
	uint64_t   *key = job->scratch->key;

	for (uint32_t i = 0; i < n; i++)
		key[i * words] = 0;
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		const uint8_t *nulls = column_nulls(job, plan->column[k]);
		const uint8_t *values = column_values(job, plan->column[k]);
		uint64_t   *to = key + plan->shift[k];

		if (plan->bytes[k] == 16)
		{
			const uint64_t *v = (const uint64_t *) values;

			for (uint32_t i = 0; i < n; i++)
			{
				to[i * words] = v[2 * (size_t) row[i]];
				to[i * words + 1] = v[2 * (size_t) row[i] + 1];
			}
		}
		else
			FOR_WIDTH(plan->bytes[k], values, uint, {
				for (uint32_t i = 0; i < n; i++)
					to[i * words] = v[row[i]];
			})
		if (nulls == NULL)
			continue;
		for (uint32_t i = 0; i < n; i++)
		{
			if (!bit_of(nulls, row[i]))
				continue;
			key[i * words] |= UINT64_C(1) << k;
			to[i * words] = 0;
			if (plan->bytes[k] == 16)
				to[i * words + 1] = 0;
		}
	}
}

/* ---------- prefetch, find, settle ---------- */

/* Marks a row as handed back; whoever is first zeroes the bitmap. */
static void
fail_row(batch_job *job, uint32_t row)
{
	rhh_cpu_failed *failed = job->failed;
	uint32_t	untouched = 0;

	if (atomic_load_explicit(&failed->state, memory_order_acquire) != 2)
	{
		if (atomic_compare_exchange_strong(&failed->state, &untouched, 1))
		{
			memset(failed->bitmap, 0, failed->bytes);
			atomic_store_explicit(&failed->state, 2, memory_order_release);
		}
		else
		{
			while (atomic_load_explicit(&failed->state, memory_order_acquire) != 2)
				sched_yield();
		}
	}
	__atomic_fetch_or(&failed->bitmap[row >> 3], (uint8_t) (1u << (row & 7)),
					  __ATOMIC_RELAXED);
	job->n_failed++;
}

static inline uint8_t *
record_or_null(const rhh_cpu_part *part, uint32_t group)
{
	return group == 0 ? NULL : rhh_cpu_record(part, group - 1);
}

/* A record can begin in one cache line and end in another. */
static inline void
prefetch_record(const uint8_t *record, uint32_t stride)
{
	__builtin_prefetch(record, 1);
	__builtin_prefetch(record + stride - 1, 1);
}

/*
 * A fingerprint proves the key: what it does not find is new.  False: some row
 * got no record.
 */
static bool
find_proven(batch_job *job, bool prefetch)
{
	rhh_cpu_part *part = job->part;
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t stride = job->layout->stride;
	const uint32_t n = scratch->n;
	bool		any_failed = false;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	fp = scratch->fp[i];
		uint32_t	group = rhh_cpu_find(part, fp, rhh_home_bucket(fp, part->n_buckets), NULL);
		uint8_t    *record;

		if (group == 0)
		{
			uint64_t	key = rhh_cpu_unmix32(fp);

			group = rhh_cpu_insert(part, fp, &key);
		}
		record = record_or_null(part, group);
		scratch->record[i] = record;
		if (record == NULL)
			any_failed = true;
		else if (prefetch)
			prefetch_record(record, stride);
	}
	return !any_failed;
}

/*
 * A fingerprint only suggests a record: the first one with it is fetched, and
 * compared when it has come.
 */
static bool
find_verified(batch_job *job, bool prefetch)
{
	rhh_cpu_part *part = job->part;
	rhh_cpu_scratch *scratch = job->scratch;
	const uint32_t stride = job->layout->stride;
	const uint32_t words = job->layout->key_words;
	const uint32_t n = scratch->n;
	bool		any_failed = false;

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	fp = scratch->fp[i];
		uint32_t	group = rhh_cpu_find(part, fp, rhh_home_bucket(fp, part->n_buckets), NULL);
		uint8_t    *record = record_or_null(part, group);

		scratch->record[i] = record;
		if (record != NULL && prefetch)
			prefetch_record(record, stride);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	fp = scratch->fp[i];
		const uint64_t *key = &scratch->key[i * words];
		uint32_t	group;

		if (scratch->record[i] != NULL &&
			rhh_cpu_key_equal((const uint64_t *) scratch->record[i], key, words))
			continue;
		group = rhh_cpu_find(part, fp, rhh_home_bucket(fp, part->n_buckets), key);
		if (group == 0)
			group = rhh_cpu_insert(part, fp, key);
		scratch->record[i] = record_or_null(part, group);
		any_failed |= group == 0;
	}
	return !any_failed;
}

/* Takes the rows without a record out of the run and marks them. */
static void
fail_rows(batch_job *job)
{
	rhh_cpu_scratch *scratch = job->scratch;
	uint32_t	m = 0;

	for (uint32_t i = 0; i < scratch->n; i++)
	{
		if (scratch->record[i] == NULL)
			fail_row(job, scratch->row[i]);
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

static void
load_values(int64_t *value, const uint8_t *base, uint32_t bytes,
			const uint32_t *row, uint32_t n)
{
	FOR_WIDTH(bytes, base, int, {
		for (uint32_t i = 0; i < n; i++)
			value[i] = v[row[i]];
	})
}

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
update_state(uint8_t op, uint8_t **record, size_t offset, const int64_t *value,
			 uint32_t n)
{
	switch (op)
	{
		case RHH_COUNT:
			for (uint32_t i = 0; i < n; i++)
				(*(uint64_t *) (record[i] + offset))++;
			break;
		case RHH_SUM_I64:
			for (uint32_t i = 0; i < n; i++)
				*(uint64_t *) (record[i] + offset) += (uint64_t) value[i];
			break;
		case RHH_SUM_I128:
			for (uint32_t i = 0; i < n; i++)
			{
				uint64_t   *state = (uint64_t *) (record[i] + offset);
				unsigned __int128 sum =
					(unsigned __int128) state[1] << 64 | state[0];

				sum += (unsigned __int128) (__int128) value[i];
				state[0] = (uint64_t) sum;
				state[1] = (uint64_t) (sum >> 64);
			}
			break;
		case RHH_MIN_I64:
			for (uint32_t i = 0; i < n; i++)
			{
				int64_t    *state = (int64_t *) (record[i] + offset);

				*state = value[i] < *state ? value[i] : *state;
			}
			break;
		case RHH_MAX_I64:
			for (uint32_t i = 0; i < n; i++)
			{
				int64_t    *state = (int64_t *) (record[i] + offset);

				*state = value[i] > *state ? value[i] : *state;
			}
			break;
	}
}

/*
 * Updates all states of the run's rows.  Neighbouring states often share their
 * argument and filter, and then the rows that pass and the values.
 */
static void
update_states(batch_job *job)
{
	const rhh_cpu_layout *layout = job->layout;
	const rhh_table_spec *spec = &layout->spec;
	rhh_cpu_scratch *scratch = job->scratch;
	uint32_t   *row = scratch->row;
	uint8_t   **record = scratch->record;
	uint32_t	n = scratch->n;
	const uint8_t *last_nulls = NULL;
	const uint8_t *last_filter = NULL;
	int			last_arg = -1;	/* whose values are loaded, of these rows */

	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		const uint8_t *nulls = st->arg_column < 0 ? NULL :
			column_nulls(job, (uint32_t) st->arg_column);
		const uint8_t *filter = st->filter_column < 0 ? NULL :
			column_values(job, (uint32_t) st->filter_column);
		size_t		offset = layout->state_word[s] * sizeof(uint64_t);

		if (nulls != last_nulls || filter != last_filter)
		{
			row = scratch->row;
			record = scratch->record;
			n = scratch->n;
			if (nulls != NULL || filter != NULL)
			{
				uint32_t	m = 0;

				for (uint32_t i = 0; i < n; i++)
				{
					uint32_t	r = row[i];

					scratch->live_row[m] = r;
					scratch->live_record[m] = record[i];
					m += (filter == NULL || filter[r] != 0) &
						(nulls == NULL || !bit_of(nulls, r));
				}
				row = scratch->live_row;
				record = scratch->live_record;
				n = m;
			}
			last_nulls = nulls;
			last_filter = filter;
			last_arg = -1;
		}
		if (st->op == RHH_ANY)
			update_any(record, offset, column_values(job, (uint32_t) st->arg_column),
					   spec->column_bytes[st->arg_column], row, n);
		else
		{
			if (st->op != RHH_COUNT && st->arg_column != last_arg)
			{
				load_values(scratch->value,
							column_values(job, (uint32_t) st->arg_column),
							spec->column_bytes[st->arg_column], row, n);
				last_arg = st->arg_column;
			}
			update_state(st->op, record, offset, scratch->value, n);
		}
	}
}

/* ---------- runs ---------- */

/* The stages from prefetch on for the rows collected. */
static void
aggregate_run(batch_job *job)
{
	rhh_cpu_part *part = job->part;
	rhh_cpu_scratch *scratch = job->scratch;
	const bool	prefetch = part->n_buckets * sizeof(rhh_cpu_bucket) +
		part->n_groups * job->layout->stride > RHH_CPU_CACHED_BYTES;
	bool		all_found;

	if (prefetch)
	{
		const rhh_cpu_bucket *buckets = part->buckets;
		const uint32_t n_buckets = part->n_buckets;

		for (uint32_t i = 0; i < scratch->n; i++)
			__builtin_prefetch(&buckets[rhh_home_bucket(scratch->fp[i], n_buckets)], 1);
	}
	if (job->layout->plan.form == RHH_KEY_WIDE)
		gather_wide(job);
	all_found = job->layout->verify ? find_verified(job, prefetch) :
		find_proven(job, prefetch);
	if (!all_found)
		fail_rows(job);
	update_states(job);
	job->n_rows += scratch->n;
	scratch->n = 0;
}

/* SINGLE's NULL rows among these: partition 0's thread takes them. */
static void
aggregate_null_rows(batch_job *job, uint32_t start, uint32_t n)
{
	const uint8_t *nulls = column_nulls(job, job->layout->plan.column[0]);
	rhh_cpu_scratch *scratch = job->scratch;
	uint8_t    *record;

	for (uint32_t i = 0; i < n; i++)
	{
		scratch->row[scratch->n] = start + i;
		scratch->n += bit_of(nulls, start + i);
	}
	if (scratch->n == 0)
		return;
	record = record_or_null(job->part, rhh_cpu_null_group(job->part));
	for (uint32_t i = 0; i < scratch->n; i++)
		scratch->record[i] = record;
	if (record == NULL)
		fail_rows(job);
	update_states(job);
	job->n_rows += scratch->n;
	scratch->n = 0;
}

/*
 * Aggregates the rows of a batch whose keys belong to this partition.  False:
 * the table was cancelled, and rows are missing.
 */
bool
rhh_cpu_aggregate(rhh_cpu_part *part, uint32_t part_number,
				  const rhh_batch *batch, rhh_cpu_scratch *scratch,
				  rhh_cpu_failed *failed, const atomic_bool *cancelled)
{
	const rhh_cpu_layout *layout = part->layout;
	batch_job	job;
	bool		null_rows;

	job.part = part;
	job.layout = layout;
	job.batch = batch;
	job.scratch = scratch;
	job.failed = failed;
	job.part_number = part_number;
	job.first_share = PART_SHARES * part_number / layout->n_parts;
	job.n_shares = PART_SHARES * (part_number + 1) / layout->n_parts - job.first_share;
	job.n_rows = 0;
	job.n_failed = 0;
	scratch->n = 0;
	null_rows = layout->plan.form == RHH_KEY_SINGLE && part_number == 0 &&
		column_nulls(&job, layout->plan.column[0]) != NULL;

	for (uint32_t start = 0; start < batch->n_rows; start += layout->scan_rows)
	{
		uint32_t	n = batch->n_rows - start < layout->scan_rows ?
			batch->n_rows - start : layout->scan_rows;

		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		switch (layout->plan.form)
		{
			case RHH_KEY_SINGLE:
				scan_single(&job, start, n);
				break;
			case RHH_KEY_PACKED:
				scan_packed(&job, start, n);
				break;
			default:
				scan_wide(&job, start, n);
				break;
		}
		if (scratch->n >= layout->run_rows || null_rows)
			aggregate_run(&job);
		if (null_rows)
			aggregate_null_rows(&job, start, n);
	}
	if (scratch->n > 0)
		aggregate_run(&job);

	if (job.n_failed > 0)
		atomic_fetch_add_explicit(&failed->n, (uint32_t) job.n_failed,
								  memory_order_relaxed);
	rhh_cpu_count(&part->rows, job.n_rows);
	rhh_cpu_count(&part->failed_rows, job.n_failed);
	atomic_store_explicit(&part->groups, part->n_groups, memory_order_relaxed);
	return true;
}
