/*
 * rhh_cpu_table.h
 *		How a map of the CPU device lies in memory, and what the device's files share.
 *
 * A map is cut into partitions by bits of the fingerprint, some for each worker thread.
 * Only one thread at a time touches a partition, so nothing in it is atomic, and no key
 * can be in it twice.  Between the event of map_finish and map_destroy partitions are
 * only read, by any thread.
 *
 * In front of the partitions each thread has a local table.  That is a small partition of
 * its own, for keys of any partition, which takes what comes first until it is full.  If
 * there are few groups, or some very frequent keys, rows need go no further.  When the
 * input has ended its groups are merged into the partitions.  If there is no room for a
 * group there, it comes out as it is, and the caller merges it.
 *
 * A partition has buckets of slots and, apart from them, records:
 *
 *	bucket		one cache line, 8 slots, filled from slot 0 up
 *
 *			 0        4               32        36              64
 *			+--------+-----  -----+--------+--------+-----  -----+--------+
 *			| fp[0]  |    ...     | fp[7]  |group[0]|    ...     |group[7]|
 *			+--------+-----  -----+--------+--------+-----  -----+--------+
 *
 *			fp is the fingerprint of the key (rhh_keys.h), and group is the number of
 *			the group plus one.  In an empty slot that is 0, so zeroed pages are an
 *			empty table, and no key is special.
 *
 *	record		one for each group, of stride bytes; it is never moved
 *
 *			+-----------+--  --+-------------+--  --+
 *			| key words |      | state words |      |
 *			+-----------+--  --+-------------+--  --+
 *
 *	segment		some huge pages of records.  If fingerprints prove keys, the records
 *				have no key words, and the keys are behind the records
 *
 *			+--------+--------+--  --+--------+------+------+--  --+------+
 *			| record | record |      | record | key  | key  |      | key  |
 *			+--------+--------+--  --+--------+------+------+--  --+------+
 *
 * Group numbers are {segment, index} with index below records_per_segment, so
 * that segments are whole huge pages whatever the stride.  Strides are chosen so
 * that few records lie in two cache lines.
 *
 * Robin Hood hashing over buckets.  The distance of an entry is the number of buckets by
 * which it lies behind its home bucket; it is computed from the fingerprint and never
 * stored.  An entry with a small distance is rich.  An insert goes past full buckets.  If
 * the richest entry of a full bucket is richer than the one to be inserted, the insert
 * takes its slot and carries that entry on.  Slots never become empty, and in a full
 * bucket entries are replaced only by poorer ones.  So a search may stop at a bucket with
 * an empty slot, or with an entry that is richer than the key would be there.
 */
#ifndef RHH_CPU_TABLE_H
#define RHH_CPU_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "rhh_device.h"
#include "rhh_keys.h"
#include "rhh_states.h"
#include "cpu/rhh_cpu_tuning.h"

#define RHH_CPU_SLOTS 8			/* in a bucket */

typedef struct rhh_cpu_bucket
{
	uint32_t	fp[RHH_CPU_SLOTS];
	uint32_t	group[RHH_CPU_SLOTS];
} __attribute__((aligned(64))) rhh_cpu_bucket;

/*
 * Mappings of huge pages that maps have freed, kept for the next maps.  If the kernel had
 * to find and clear such memory again, that could cost more than everything that is done
 * with it (see RHH_CPU_KEPT_BYTES_MAX).  While they are here they are charged to nobody,
 * and when the machine has little memory left they go back to it first.
 */
typedef struct rhh_cpu_reserve
{
	pthread_mutex_t lock;
	struct
	{
		void	   *pages;
		size_t		bytes;
	} * kept;					/* the longest kept first */
	uint32_t	n_kept;
	uint64_t	kept_bytes;
	uint64_t	limit_bytes;
} rhh_cpu_reserve;

/*
 * Memory that is charged against a limit.  The parent of a map's budget is the budget of
 * the device.  Several threads may charge at once.
 *
 * Other processes take memory, too.  So the device's budget looks at the machine again
 * each time that it has lent look_bytes more.
 */
typedef struct rhh_cpu_budget
{
	struct rhh_cpu_budget *parent;
	uint64_t	limit_bytes;
	_Atomic uint64_t used_bytes;
	_Atomic uint64_t peak_bytes;
	const char *root;			/* the device's: see rhh_cpu_host_look(); else NULL */
	rhh_cpu_reserve *reserve;	/* the device's, likewise */
	uint64_t	look_bytes;
	_Atomic uint64_t seen_bytes;	/* there was memory for so much in all */
	_Atomic uint64_t no_memory_ns;	/* when there was none; 0: there was */
} rhh_cpu_budget;

/* What all partitions of a map share.  It is constant once the map exists. */
typedef struct rhh_cpu_layout
{
	rhh_cpu_reserve *reserve;	/* the device's */
	rhh_map_spec spec;
	rhh_key_plan plan;
	bool		verify;			/* equal fingerprints do not prove equal keys */
	uint32_t	n_parts;		/* a power of two, 1 << part_bits */
	uint32_t	part_bits;
	uint32_t	local_buckets;	/* a local table's at most; 0: none */
	uint32_t	key_words;		/* in the record; 0: not verified */
	uint32_t	record_words;
	uint32_t	stride;			/* bytes of a record */
	uint32_t	state_word[RHH_MAX_STATES]; /* where in the record */
	uint32_t	n_initial;		/* state words that do not start as zero */
	uint32_t	initial_word[RHH_MAX_STATES];
	int64_t		initial[RHH_MAX_STATES];
	bool		simple_states;	/* counts, sums of integers, minima, maxima, or any value */
	bool		sorts_rows;		/* see RHH_CPU_FEW_GROUPS */
	uint32_t	stride_inverse; /* 2^32 divided by stride, rounded up */
	uint32_t	run_rows;		/* see RHH_CPU_RUN_ROWS */
	uint32_t	segment_bits;	/* of a group number: the index */
	uint32_t	records_per_segment;
	uint32_t	first_records;	/* of the first segment */
	uint32_t	record_bytes;	/* of a record and its key apart */
	uint32_t	max_segments;
	size_t		first_step_bytes;	/* charged at a time: first segment */
	size_t		step_bytes;		/* and all others */
} rhh_cpu_layout;

/*
 * A partition, or a local table.  The counters at the end are atomic because the caller's
 * thread reads them while batches run; only one thread at a time writes them.
 */
typedef struct rhh_cpu_part
{
	rhh_cpu_bucket *buckets;
	uint32_t	n_buckets;
	uint32_t	n_slots_used;
	uint32_t	grow_above;		/* slots used */
	uint32_t	sparse_above;	/* the same, where there is memory; see RHH_CPU_SPARSE_BUCKETS */
	uint32_t	refuse_above;	/* slots used, where growth is not possible */
	uint32_t	max_probe;		/* the spec's, or all buckets */
	uint32_t	jump;			/* doublings that the next growth should be */
	uint32_t	most_buckets;	/* a local table's; else 2^28 */
	bool		cannot_grow;	/* not for want of memory: do not try again */

	uint8_t   **segments;
	uint32_t	n_segments;
	uint32_t	segments_room;
	uint32_t	last_records;	/* records used of the last segment */
	uint32_t	last_charged;	/* records charged of the last segment */
	size_t		last_charged_bytes;
	uint64_t	record_bytes;	/* charged for records, all segments */
	uint64_t	n_groups;
	uint32_t	null_group;		/* SINGLE: number + 1 of the NULL key's group */

	const rhh_cpu_layout *layout;
	rhh_cpu_budget *budget;

	_Atomic uint64_t rows;
	_Atomic uint64_t refused_rows;
	_Atomic uint64_t failed_slots;
	_Atomic uint64_t rehashes;
	_Atomic uint64_t groups;
	_Atomic uint64_t slots;
	_Atomic uint64_t busy_ns;
	_Atomic uint64_t probe_sum;
	_Atomic uint32_t probe_max;
} __attribute__((aligned(128))) rhh_cpu_part;

/* A thread's local table. */
typedef struct rhh_cpu_local
{
	rhh_cpu_part part;
	bool		used;			/* part is initialised */
	bool		full;			/* takes no more keys */
	bool		bypassed;		/* and too few rows are of those it has */
	uint32_t	window_rows;	/* looked up since it was full, */
	uint32_t	window_hits;	/* and found */
} rhh_cpu_local;

/*
 * What a batch has from its scan to its last task: the rows that are left to the
 * partitions, as {fingerprint, row}, of which those of partition p are entries[first[p]]
 * to entries[first[p + 1] - 1].  If the device makes the rows, of another map's groups or
 * by a join, it does so here.
 */
typedef struct rhh_cpu_lists
{
	uint64_t   *entries;
	uint32_t	room;
	uint32_t   *first;			/* RHH_CPU_MAX_PARTS + 1 of them */
	uint8_t    *rows;			/* RHH_CPU_PIECE_BYTES */
	rhh_batch	piece;			/* of a join: what is in rows, and of these */
	uint8_t    *refused;		/* the bitmap, of RHH_CPU_PIECE_ROWS */
} rhh_cpu_lists;

/* The scratch memory of a thread, for one task at a time. */
typedef struct rhh_cpu_scratch
{
	/* a run of rows: their numbers, or NULL for n from first on */
	uint32_t	n;
	uint32_t	first;
	bool		listed;			/* the numbers are in row */
	uint32_t   *row;
	uint32_t   *fp;
	uint64_t   *key;			/* n rows of the key's words, where verified */
	uint8_t   **record;
	uint32_t   *null_row;		/* rows that SINGLE's NULL key has */
	/* those that pass a state's filter */
	uint32_t   *live_row;
	uint8_t   **live_record;
	uint64_t   *hash;			/* WIDE's */
	uint64_t   *mask;
	/* a scan's rows for the partitions, in the order of their coming */
	uint64_t   *left;
	uint32_t	left_room;
	uint32_t	n_left;
	uint32_t   *part_rows;		/* how many for each partition */
	uint64_t   *group_words;	/* of groups of which rows are being made */
	uint32_t	n_group_words;
	uint64_t   *program_words;	/* aligned to 64 bytes in there: what the program of such rows needs */
	uint32_t	n_program_words;
	/* of a level of a join */
	uint8_t    *join_values;	/* of keys or of a condition, RHH_CPU_JOIN_ROWS of each */
	uint8_t    *join_keys;		/* and the keys, as records have them */
	uint32_t   *join_fp;
	const void **join_entry;	/* in the directory */
	uint32_t   *join_row;		/* those whose keys may be there, */
	uint32_t   *join_end;		/* and where their buckets end */
	uint32_t   *join_trace;		/* which ones of another level they came of */
	const uint8_t **join_record;
} rhh_cpu_scratch;

/* 2^64 divided by the golden ratio (Knuth's multiplicative hashing) */
#define RHH_CPU_QUICK_FACTOR	UINT64_C(0x9e3779b97f4a7c15)

/* Mixes a column of a WIDE key, whose high word is 0 but of 16 bytes, with those before it; its first bits are good enough for few keys. */
static inline uint64_t
rhh_cpu_quick_hash(uint64_t before, uint64_t low, uint64_t high)
{
	return (before ^ low ^ (high << 32 | high >> 32)) * RHH_CPU_QUICK_FACTOR;
}

static inline void
rhh_cpu_count(_Atomic uint64_t *counter, uint64_t n)
{
	/* only one thread writes, so an atomic addition is not needed */
	atomic_store_explicit(counter,
						  atomic_load_explicit(counter, memory_order_relaxed) + n,
						  memory_order_relaxed);
}

/* Ends at the first byte that is not 0, as it does at once where values are not. */
static inline bool
rhh_cpu_all_zero(const uint8_t *values, size_t bytes)
{
	return bytes == 0 || (values[0] == 0 && memcmp(values, values + 1, bytes - 1) == 0);
}

/* Bit i: slot i has this fingerprint (or is empty, where that is 0). */
static inline uint32_t
rhh_cpu_match(const rhh_cpu_bucket *bucket, uint32_t fp)
{
#if defined(__SSE2__)
	__m128i		want = _mm_set1_epi32((int) fp);
	__m128i		lo = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *) &bucket->fp[0]), want);
	__m128i		hi = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *) &bucket->fp[4]), want);

	return (uint32_t) _mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(lo, hi),
														_mm_setzero_si128()));
#else
	typedef uint32_t v8u __attribute__((vector_size(32)));
	static const v8u bit = {1, 2, 4, 8, 16, 32, 64, 128};
	v8u			have;
	uint32_t	mask = 0;

	memcpy(&have, bucket->fp, sizeof(have));
	have = (v8u) (have == fp) & bit;
	for (int i = 0; i < RHH_CPU_SLOTS; i++)
		mask |= have[i];
	return mask;
#endif
}

/*
 * The partition of a fingerprint.  The home bucket follows from the high bits of the
 * fingerprint, as many as it needs.  If one of these decided here, too, half of the
 * buckets of a large table would be home to no key.  The high bits of the product depend
 * on all bits, and on the low ones whatever the high ones are.
 */
static inline uint32_t
rhh_cpu_share(const rhh_cpu_layout *layout, uint32_t fp)
{
	return (uint32_t) ((uint64_t) (fp * 0x9e3779b1u) >> (32 - layout->part_bits));
}

static inline bool
rhh_cpu_bucket_full(const rhh_cpu_bucket *bucket)
{
	return bucket->group[RHH_CPU_SLOTS - 1] != 0;
}

/* The distance of an entry that is in bucket number b. */
static inline uint32_t
rhh_cpu_distance(const rhh_cpu_part *part, uint32_t fp, uint32_t b)
{
	uint32_t	home = rhh_home_bucket(fp, part->n_buckets);

	return b >= home ? b - home : b + part->n_buckets - home;
}

/* Finds the richest entry of bucket number b, which is full: its distance and its slot. */
static inline uint32_t
rhh_cpu_richest(const rhh_cpu_part *part, uint32_t b, uint32_t *slot)
{
	const rhh_cpu_bucket *bucket = &part->buckets[b];
	uint32_t	least = UINT32_MAX;

	for (uint32_t i = 0; i < RHH_CPU_SLOTS; i++)
	{
		uint32_t	d = rhh_cpu_distance(part, bucket->fp[i], b);

		if (d < least)
		{
			least = d;
			*slot = i;
		}
	}
	return least;
}

/* The record of a group number (not plus one). */
static inline uint8_t *
rhh_cpu_record(const rhh_cpu_part *part, uint32_t group)
{
	uint32_t	bits = part->layout->segment_bits;

	return part->segments[group >> bits] +
		(size_t) (group & ((1u << bits) - 1)) * part->layout->stride;
}

static inline bool
rhh_cpu_key_equal(const uint64_t *a, const uint64_t *b, uint32_t n_words)
{
	uint64_t	differ = a[0] ^ b[0];

	for (uint32_t w = 1; w < n_words; w++)
		differ |= a[w] ^ b[w];
	return differ == 0;
}

/*
 * Looks for a key whose home bucket is known.  Returns its group number plus one, or 0 if
 * it is not there.  If key is NULL, the first entry with the fingerprint is taken for that
 * of the key.
 */
static inline uint32_t
rhh_cpu_find(const rhh_cpu_part *part, uint32_t fp, uint32_t home,
			 const uint64_t *key)
{
	uint32_t	b = home;

	for (uint32_t distance = 0; distance < part->max_probe; distance++)
	{
		const rhh_cpu_bucket *bucket = &part->buckets[b];
		uint32_t	mask = rhh_cpu_match(bucket, fp);
		uint32_t	slot;

		while (mask != 0)
		{
			uint32_t	group = bucket->group[__builtin_ctz(mask)];

			if (group == 0)
				return 0;
			if (key == NULL ||
				rhh_cpu_key_equal((const uint64_t *) rhh_cpu_record(part, group - 1),
								  key, part->layout->key_words))
				return group;
			mask &= mask - 1;
		}
		if (!rhh_cpu_bucket_full(bucket))
			return 0;
		if (distance > 0 && rhh_cpu_richest(part, b, &slot) < distance)
			return 0;
		if (++b == part->n_buckets)
			b = 0;
	}
	return 0;
}

/* ---------- columns of a batch ---------- */

static inline const uint8_t *
rhh_cpu_values(const rhh_batch *batch, uint32_t column)
{
	return batch->base + batch->values_offset[column];
}

/* The bitmap of NULLs of a column; NULL if no row of the column is NULL. */
static inline const uint8_t *
rhh_cpu_nulls(const rhh_batch *batch, uint32_t column)
{
	uint32_t	offset = batch->nulls_offset[column];

	return offset == 0 ? NULL : batch->base + offset;
}

static inline uint32_t
rhh_cpu_bit(const uint8_t *bitmap, uint32_t row)
{
	return (bitmap[row >> 3] >> (row & 7)) & 1;
}

/* ---------- rhh_cpu_table.c ---------- */

extern bool rhh_cpu_charge(rhh_cpu_budget *budget, uint64_t bytes);
extern void rhh_cpu_release(rhh_cpu_budget *budget, uint64_t bytes);
extern bool rhh_cpu_reserve_init(rhh_cpu_reserve *reserve, uint64_t limit_bytes);
extern void rhh_cpu_reserve_free(rhh_cpu_reserve *reserve);
extern void *rhh_cpu_take_pages(rhh_cpu_reserve *reserve, size_t bytes, bool zeroed);
extern void rhh_cpu_give_pages(rhh_cpu_reserve *reserve, void *p, size_t bytes);
extern uint32_t rhh_cpu_stride(uint32_t bytes);
extern void rhh_cpu_layout_init(rhh_cpu_layout *layout,
								const rhh_map_spec *spec, uint32_t n_workers,
								uint64_t limit_bytes);
extern bool rhh_cpu_part_init(rhh_cpu_part *part, const rhh_cpu_layout *layout,
							  rhh_cpu_budget *budget, uint64_t limit_bytes);
extern void rhh_cpu_local_init(rhh_cpu_local *local,
							   const rhh_cpu_layout *layout,
							   rhh_cpu_budget *budget);
extern void rhh_cpu_part_free_slots(rhh_cpu_part *part);
extern void rhh_cpu_part_free(rhh_cpu_part *part);
extern uint32_t rhh_cpu_insert(rhh_cpu_part *part, uint32_t fp,
							   const uint64_t *key);
extern uint32_t rhh_cpu_null_group(rhh_cpu_part *part);
extern uint32_t rhh_cpu_part_merge(rhh_cpu_part *part, uint32_t part_number,
								   rhh_cpu_part *local);
extern void rhh_cpu_part_probe_stats(rhh_cpu_part *part);
extern uint64_t rhh_cpu_part_filter(rhh_cpu_part *part, const rhh_group_condition *conditions,
									uint32_t n);
extern void rhh_cpu_part_extract(const rhh_cpu_part *part, uint64_t first,
								 uint32_t n, const rhh_result *result,
								 uint32_t at);
extern uint32_t rhh_cpu_local_extract(rhh_cpu_local *local,
									  const rhh_result *result, uint32_t at);

/* ---------- rhh_cpu_batch.c ---------- */

/* Where several threads mark the refused rows of a batch. */
typedef struct rhh_cpu_refused
{
	uint8_t    *bitmap;
	uint32_t	bytes;
	_Atomic uint32_t state;		/* 0: untouched, 1: being zeroed, 2: zeroed */
	_Atomic uint32_t n;
} rhh_cpu_refused;

extern bool rhh_cpu_scratch_init(rhh_cpu_scratch *scratch);
extern void rhh_cpu_scratch_free(rhh_cpu_scratch *scratch);
extern bool rhh_cpu_lists_init(rhh_cpu_lists *lists);
extern void rhh_cpu_lists_free(rhh_cpu_lists *lists);
extern bool rhh_cpu_make_room(uint64_t **entries, uint32_t *room, uint32_t n);
extern void rhh_cpu_refuse(rhh_cpu_refused *refused, uint32_t row);
extern void rhh_cpu_hash_rows(const rhh_key_plan *plan, const rhh_batch *batch,
							  rhh_cpu_scratch *scratch, uint32_t start, uint32_t n);
extern bool rhh_cpu_aggregate_all(rhh_cpu_part *part, const rhh_batch *batch,
								  rhh_cpu_scratch *scratch, rhh_cpu_refused *refused,
								  const atomic_bool *cancelled);
extern bool rhh_cpu_scan(rhh_cpu_part *parts, rhh_cpu_local *local,
						 const rhh_batch *batch, rhh_cpu_lists *lists,
						 rhh_cpu_scratch *scratch, rhh_cpu_refused *refused,
						 const atomic_bool *cancelled);
extern bool rhh_cpu_aggregate_list(rhh_cpu_part *part, uint32_t part_number,
								   const rhh_batch *batch,
								   const rhh_cpu_lists *lists,
								   rhh_cpu_scratch *scratch, rhh_cpu_refused *refused,
								   const atomic_bool *cancelled);

#endif							/* RHH_CPU_TABLE_H */
