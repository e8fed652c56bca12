/*
 * rhh_groups.cuh
 *		Groups of rows on the device: keys, group numbers and transition states, and
 *		how the table of rhh_buckets.cuh maps keys to group numbers.
 *
 * The slots lie in buckets of one line, which tiles read (rhh_buckets.cuh):
 *
 *		 8 bytes	| group 0..3 | fp 4..7 |
 *		16 bytes	| key 0..7 | group 8..11 | fp 12..15 |		(sm_90 and later)
 *
 * A slot is EMPTY if its group number is RHH_NO_GROUP, so an empty table is all ones.
 * The home bucket follows from the fingerprint (fp).  The key decides which slots a
 * table has:
 *
 *		keys of <= 32 bits		8 bytes; the fingerprint is the key
 *		keys of 33..64 bits		16 bytes where the device has a 128-bit CAS,
 *								else 8 bytes, verified
 *		WIDE keys				8 bytes, verified
 *
 * Verified means: where two fingerprints are equal the words of the keys are compared.
 * These lie in an array indexed by group number, keys[group * n_key_words + w].  They
 * are written, and fenced, before the slot is stored that makes the number visible.
 *
 * The transition states lie in an array indexed by group number, too: states[group *
 * n_state_words + w].  The words of one group are side by side because updates are
 * random accesses, and so share sectors.  The states of all numbers are initialised
 * when the array is made, so before any number is visible.  To displace an entry moves
 * its slot only.
 *
 * An orphan is an entry that has left the table although its group has states.  Either
 * it was displaced and found no place; or it met its key in another slot, because while
 * it was in registers another tile inserted the key again, with another group number.
 * Orphans are kept in a list.  When the table is at rest each is merged into the group
 * of its key, if that has a slot (rhh_kernels.cuh).  A key has at most one slot
 * (rhh_buckets.cuh, (3)), so nothing else needs merging.
 *
 * A row is refused before anything is stored for it.  Its key was not found, and either
 * there is no place within max_dist, or no number is left, or the list of orphans is
 * nearly full.  Once its own key is stored the row is certain to succeed, because the
 * list has room: a tile looks at the length of the list before it first displaces an
 * entry, does not insert if the length is orphan_limit = capacity - tiles of the launch
 * or more, and appends at most once before it looks again.  (If the list ran over, more
 * entries than one for each tile would have been appended after it had reached
 * orphan_limit; yet each of these tiles had looked before that moment.)
 *
 * Group numbers come from a counter, in chunks that a tile keeps in reserve;
 * view.reserves carries these from one launch to the next.  So numbers have gaps.
 *
 * A function that takes a team is called by all lanes of a warp, whose tiles go in step.
 * "active" says whether the caller's tile takes part; what the function returns to a tile
 * that does not has no meaning.
 */
#ifndef RHH_GROUPS_CUH
#define RHH_GROUPS_CUH

#include "table/rhh_buckets.cuh"
#include "rhh_keys.h"
#include "rhh_states.h"
#include "cuda/rhh_cuda_tuning.h"
#include "table/rhh_table_tuning.h"

#define RHH_NO_GROUP 0xFFFFFFFFu
#define RHH_MAX_GROUPS 0xFFFF0000u

/* An orphan, laid out as a 16-byte slot; key is unused with 8-byte slots. */
struct __align__(16) rhh_orphan
{
	uint64_t	key;
	uint32_t	group;
	uint32_t	fp;
};

/* The group numbers from next up to, but without, end: the tile hands these out. */
struct rhh_reserve
{
	uint32_t	next;
	uint32_t	end;
};

/* What the joins of a batch in flight have made: see rhh_joins.cuh. */
struct rhh_join_counts
{
	uint64_t	totals[RHH_MAX_JOINS];	/* of stages that fan out: all of their output */
	uint32_t	n_rows;			/* of the piece that is made, without bad ones */
	uint32_t	n_bad;			/* rows of it with a bad operation */
	uint32_t	n_gathered;		/* refused rows that were gathered for the caller */
};

/*
 * The counters of a map in device memory, which are copied to the host after each
 * step.  orphans[] has the lengths of the two lists of orphans, refused[] the number of
 * refused rows of each batch in flight.
 */
struct rhh_control
{
	uint64_t	placed;			/* entries inserted for new keys */
	uint64_t	cap_hits;		/* entries, new or carried, that found no place */
	uint64_t	merged;			/* orphans merged into another group */
	uint64_t	live;			/* entries compacted */
	uint64_t	left_out;		/* entries that were not, by conditions on groups */
	uint64_t	probe_sum;
	uint32_t	probe_max;
	uint32_t	chunk_live;		/* the same in the chunk being compacted */
	uint32_t	n_numbers;		/* may exceed group_cap */
	uint32_t	null_seen;		/* flag: SINGLE's NULL group, number 0, has rows */
	uint32_t	overrun;		/* flag: a list of orphans has run over */
	uint32_t	orphans[2];
	uint32_t	refused[RHH_CUDA_IN_FLIGHT];
	uint32_t	left[RHH_CUDA_IN_FLIGHT];	/* flags: aggregating has left rows to the
											 * batch kernel */
	uint64_t	estimate;		/* of the number of groups in all batches that
								 * were looked at */

	/* Of a map that keeps rows; placed counts its keys. */
	uint64_t	kept;			/* rows to keep, the refused ones included */
	uint64_t	dropped;		/* rows with NULL in a key */
	uint64_t	null_columns;	/* bit c: column c has a NULL */
	uint64_t	greatest_key;	/* rhh_key_number() of the greatest key, and the inverted */
	uint64_t	least_key_inverted; /* one of the least: both begin as 0 */
	uint64_t	listed;			/* length of the lists of rows */

	/* Of a map with joins. */
	uint64_t	joined[RHH_MAX_JOINS];	/* rows that came out of each */
	uint64_t	filtered;		/* rows of the output that the filter has dropped */
	uint64_t	bad_candidates; /* for which a join's condition was bad */
	rhh_join_counts join[RHH_CUDA_IN_FLIGHT];
};

/* The argument of a kernel that says where a map is. */
struct rhh_view : rhh_buckets
{
	uint64_t   *states;
	uint64_t   *keys;			/* verified keys only */
	uint32_t   *dead;			/* when finishing: bitmap of the groups that have
								 * been merged into others */
	rhh_orphan *orphans;
	uint32_t   *n_orphans;
	rhh_control *ctl;
	rhh_reserve *reserves;		/* one for each tile of the grid */
	uint32_t	group_cap;		/* group numbers are less */
	uint32_t	chunk;			/* numbers that a tile takes at a time */
	uint32_t	orphan_limit;	/* nothing is displaced when the list is so long */
	uint32_t	orphan_cap;
};

/*
 * The argument of a kernel that says where the rows of a batch are.  The offsets are as
 * in rhh_batch.  Where the rows have been moved (rhh_aggregate.cuh), ids has their
 * numbers in the batch; refused and n_refused are always those of the batch.
 */
struct rhh_rows
{
	const uint8_t *base;
	uint32_t   *refused;		/* bitmap */
	uint32_t   *n_refused;
	uint32_t   *ids;			/* NULL: a row's number is its own */
	bool		byte_nulls;		/* nulls_offset leads to a byte for each row, not
								 * to a bit */
	uint32_t	n_rows;			/* or, if n_known is not NULL, the most there can be */
	const uint32_t *n_known;	/* how many there are, in device memory */
	uint32_t	values_offset[RHH_MAX_COLUMNS];
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];
};

enum rhh_init
{
	RHH_INIT_ZERO,
	RHH_INIT_MOST,				/* INT64_MAX */
	RHH_INIT_LEAST,				/* INT64_MIN, and -0 as a double */
	RHH_INIT_ONES
};

struct rhh_grouping_state
{
	uint8_t		op;				/* rhh_state_op */
	uint8_t		bytes;			/* of the argument */
	int8_t		arg;
	int8_t		filter;
	uint8_t		word;			/* its first word in the group's states */
	uint8_t		n_words;
	uint8_t		max_word;		/* where SIMPLE kernels put the maximum of the values that they sum to 128 bits; RHH_NO_WORD:
								 * nowhere (rhh_make_simple()) */
};

#define RHH_NO_WORD UINT8_MAX

/*
 * The argument of a kernel that says what to compute.  A state has the same words as in
 * the result, except for SUM_I128: that is kept as the sum of the low 32 bits of all
 * values, unsigned, and the sum of their high 32 bits, signed, which is exact for 2^31
 * rows.
 */
struct rhh_grouping
{
	rhh_key_plan plan;
	uint8_t		n_columns;
	uint8_t		n_states;
	uint8_t		n_state_words;
	uint16_t	n_result_words;
	rhh_grouping_state states[RHH_MAX_STATES];
	uint8_t		word_key[RHH_MAX_KEY_WORDS];	/* WIDE: which key a word is of */
	uint8_t		init[RHH_MAX_STATE_WORDS];	/* rhh_init of each state word */
	uint8_t		column_bytes[RHH_MAX_COLUMNS];
};

/* ---------- slots ---------- */

/* The lanes of a tile, which are the same number for both kinds of slots. */
#define RHH_GROUP_LANES (RHH_LINE_BYTES / 16)

/* What a tile keeps from key to key.  All its lanes have the same. */
struct rhh_tally
{
	rhh_reserve reserve;
	uint32_t	placed;
	uint32_t	cap_hits;
};

template <int BYTES>
struct rhh_slots;

template <>
struct rhh_slots<8> : rhh_shape<8, RHH_LINE_BYTES>
{
	static __device__ RHH_INLINE slot make(uint64_t, uint32_t fp, uint32_t group)
	{
		return (uint64_t) fp << 32 | group;
	}
	static __device__ RHH_INLINE uint64_t key(slot)
	{
		return 0;
	}
	static __device__ RHH_INLINE uint32_t hash(slot e)
	{
		return (uint32_t) (e >> 32);
	}
	static __device__ RHH_INLINE uint32_t group(slot e)
	{
		return (uint32_t) e;
	}
	static __device__ RHH_INLINE bool is_empty(slot e)
	{
		return group(e) == RHH_NO_GROUP;
	}
	static __device__ RHH_INLINE slot none()
	{
		return make(0, 0, RHH_NO_GROUP);
	}
	static __device__ RHH_INLINE slot at(const void *slots, uint64_t i)
	{
		return ((const slot *) slots)[i];
	}

	/* May two slots have the same key?  mine is never EMPTY. */
	static __device__ RHH_INLINE bool same(slot mine, slot e)
	{
		return !is_empty(e) && hash(e) == hash(mine);
	}
};

template <>
struct rhh_slots<16> : rhh_shape<16, RHH_LINE_BYTES>
{
	static __device__ RHH_INLINE slot make(uint64_t key, uint32_t fp, uint32_t group)
	{
		slot		e = {key, (uint64_t) fp << 32 | group};

		return e;
	}
	static __device__ RHH_INLINE uint64_t key(const slot &e)
	{
		return e.x;
	}
	static __device__ RHH_INLINE uint32_t hash(const slot &e)
	{
		return (uint32_t) (e.y >> 32);
	}
	static __device__ RHH_INLINE uint32_t group(const slot &e)
	{
		return (uint32_t) e.y;
	}
	static __device__ RHH_INLINE bool is_empty(const slot &e)
	{
		return group(e) == RHH_NO_GROUP;
	}
	static __device__ RHH_INLINE slot none()
	{
		return make(0, 0, RHH_NO_GROUP);
	}
	static __device__ RHH_INLINE slot at(const void *slots, uint64_t i)
	{
		return ((const slot *) slots)[i];
	}

	/*
	 * The key alone would do.  The fingerprint, which is beside the group number, is
	 * compared too, so that both halves of a slot are known to belong together.
	 */
	static __device__ RHH_INLINE bool same(const slot &mine, const slot &e)
	{
		return !is_empty(e) && e.x == mine.x && hash(e) == hash(mine);
	}
};

/* ---------- rows ---------- */

RHH_DEV uint32_t
rhh_n_rows(const rhh_rows &rows)
{
	return rows.n_known != NULL ? *rows.n_known : rows.n_rows;
}

RHH_DEV bool
rhh_is_null(const rhh_rows &rows, uint32_t column, uint32_t row)
{
	uint32_t	at = rows.nulls_offset[column];

	if (at == 0)
		return false;
	if (rows.byte_nulls)
		return rows.base[at + row] != 0;
	return rows.base[at + (row >> 3)] >> (row & 7) & 1;
}

/* The number of a row in its batch. */
RHH_DEV uint32_t
rhh_row_id(const rhh_rows &rows, uint32_t row)
{
	return rows.ids != NULL ? rows.ids[row] : row;
}

/* The first 8 bytes of a value, zero-extended. */
RHH_DEV uint64_t
rhh_value(const rhh_rows &rows, uint32_t column, uint32_t bytes, uint32_t row)
{
	const uint8_t *values = rows.base + rows.values_offset[column];

	switch (bytes)
	{
		case 1:
			return values[row];
		case 2:
			return ((const uint16_t *) values)[row];
		case 4:
			return ((const uint32_t *) values)[row];
		case 8:
			return ((const uint64_t *) values)[row];
		default:
			return ((const uint64_t *) values)[2 * (size_t) row];
	}
}

/* The second 8 bytes of a value of 16. */
RHH_DEV uint64_t
rhh_value_high(const rhh_rows &rows, uint32_t column, uint32_t row)
{
	const uint8_t *values = rows.base + rows.values_offset[column];

	return ((const uint64_t *) values)[2 * (size_t) row + 1];
}

RHH_DEV int64_t
rhh_signed_value(const rhh_rows &rows, uint32_t column, uint32_t bytes, uint32_t row)
{
	uint64_t	v = rhh_value(rows, column, bytes, row);
	uint32_t	shift = 64 - 8 * bytes;

	return (int64_t) (v << shift) >> shift;
}

/* Word w of a row's WIDE key; the caller gives the word of NULL bits, word 0. */
RHH_DEV uint64_t
rhh_wide_word(const rhh_grouping &grouping, const rhh_rows &rows, uint32_t row,
			  uint64_t nulls, uint32_t w)
{
	uint32_t	k;

	if (w == 0)
		return nulls;
	k = grouping.word_key[w];
	if (nulls >> k & 1)
		return 0;
	return w == grouping.plan.shift[k]
		? rhh_value(rows, grouping.plan.column[k], grouping.plan.bytes[k], row)
		: rhh_value_high(rows, grouping.plan.column[k], row);
}

/*
 * Makes the key of a row and its fingerprint; one thread.  *key becomes the key if that
 * is SINGLE or PACKED, and the word of NULL bits if it is WIDE.  Returns true for
 * SINGLE's NULL, which has neither key nor fingerprint.
 */
RHH_DEV bool
rhh_pack_key(const rhh_grouping &grouping, const rhh_rows &rows, uint32_t row,
			 uint64_t *key, uint32_t *fp)
{
	const rhh_key_plan &plan = grouping.plan;

	if (plan.form == RHH_KEY_SINGLE)
	{
		*key = rhh_value(rows, plan.column[0], plan.bytes[0], row);
		*fp = rhh_fingerprint(&plan.hash, *key, plan.bits);
		return rhh_is_null(rows, plan.column[0], row);
	}
	if (plan.form == RHH_KEY_PACKED)
	{
		uint64_t	packed = 0;

		for (uint32_t k = 0; k < plan.n_keys; k++)
		{
			if (rhh_is_null(rows, plan.column[k], row))
				packed |= (uint64_t) 1 << (plan.null_shift + k);
			else
				packed |= rhh_value(rows, plan.column[k], plan.bytes[k], row)
					<< plan.shift[k];
		}
		*key = packed;
		*fp = rhh_fingerprint(&plan.hash, packed, plan.bits);
	}
	else
	{
		uint64_t	nulls = 0,
					hash = RHH_WIDE_START;

		for (uint32_t k = 0; k < plan.n_keys; k++)
			nulls |= (uint64_t) rhh_is_null(rows, plan.column[k], row) << k;
		for (uint32_t w = 0; w < plan.n_words; w++)
			hash = rhh_hash_word(&plan.hash, hash, rhh_wide_word(grouping, rows, row, nulls, w));
		*key = nulls;
		*fp = (uint32_t) (hash >> 32);
	}
	return false;
}

/* Do two rows have the same key?  One thread. */
static __device__ RHH_NOINLINE bool
rhh_same_key(const rhh_grouping &grouping, const rhh_rows &rows, uint32_t a, uint32_t b)
{
	const rhh_key_plan &plan = grouping.plan;

	for (uint32_t k = 0; k < plan.n_keys; k++)
	{
		bool		null_key = rhh_is_null(rows, plan.column[k], a);

		if (null_key != rhh_is_null(rows, plan.column[k], b))
			return false;
		if (null_key)
			continue;
		if (rhh_value(rows, plan.column[k], plan.bytes[k], a) !=
			rhh_value(rows, plan.column[k], plan.bytes[k], b))
			return false;
		if (plan.bytes[k] > 8 && rhh_value_high(rows, plan.column[k], a) !=
			rhh_value_high(rows, plan.column[k], b))
			return false;
	}
	return true;
}

/*
 * K rows of one thread.  What all rows have in common (widths, forms, operations) is
 * looked at only once for the K rows, and their loads overlap.
 */
template <int K>
struct rhh_some_rows
{
	uint32_t	row[K];			/* some row that exists, where it is not valid */
	bool		valid[K];
	uint64_t	key[K];			/* as rhh_pack_key has it */
	uint32_t	fp[K];
	bool		null_key[K];	/* SINGLE's NULL: the key is arbitrary */
};

/* Loads the values of the K rows, sign-extended if T is signed. */
template <typename T, int K>
RHH_DEV void
rhh_load_rows(const rhh_rows &rows, uint32_t column, const rhh_some_rows<K> &some, uint64_t *values)
{
	const T    *column_values = (const T *) (rows.base + rows.values_offset[column]);

	RHH_UNROLL
	for (int k = 0; k < K; k++)
		values[k] = (uint64_t) (int64_t) rhh_load_streaming(&column_values[some.row[k]]);
}

/* The same, zero-extended, for a width that is known only when the program runs. */
template <int K>
RHH_DEV void
rhh_load_rows(const rhh_rows &rows, uint32_t column, uint32_t bytes, const rhh_some_rows<K> &some,
			  uint64_t *values)
{
	switch (bytes)
	{
		case 1:
			rhh_load_rows<uint8_t, K>(rows, column, some, values);
			break;
		case 2:
			rhh_load_rows<uint16_t, K>(rows, column, some, values);
			break;
		case 4:
			rhh_load_rows<uint32_t, K>(rows, column, some, values);
			break;
		default:
			rhh_load_rows<uint64_t, K>(rows, column, some, values);
			break;
	}
}

struct rhh_packed_key
{
	uint64_t	key;
	uint32_t	fp;
};

/* rhh_pack_key() for WIDE keys.  Not inlined, since the code would be there K times. */
static __device__ RHH_NOINLINE rhh_packed_key
rhh_pack_wide_key(const rhh_grouping &grouping, const rhh_rows &rows, uint32_t row)
{
	rhh_packed_key packed;

	(void) rhh_pack_key(grouping, rows, row, &packed.key, &packed.fp);
	return packed;
}

/* Fills in key, fp and null_key of the K rows. */
template <int K>
RHH_DEV void
rhh_pack_keys(const rhh_grouping &grouping, const rhh_rows &rows, rhh_some_rows<K> &some)
{
	const rhh_key_plan &plan = grouping.plan;

	RHH_UNROLL
	for (int k = 0; k < K; k++)
		some.null_key[k] = false;
	if (plan.form == RHH_KEY_WIDE)
	{
		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			rhh_packed_key packed = rhh_pack_wide_key(grouping, rows, some.row[k]);

			some.key[k] = packed.key;
			some.fp[k] = packed.fp;
		}
		return;
	}
	if (plan.form == RHH_KEY_SINGLE)
	{
		rhh_load_rows(rows, plan.column[0], plan.bytes[0], some, some.key);
		if (rows.nulls_offset[plan.column[0]] != 0)
		{
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				some.null_key[k] = rhh_is_null(rows, plan.column[0], some.row[k]);
		}
	}
	else
	{
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			some.key[k] = 0;
		RHH_NO_UNROLL
		for (uint32_t c = 0; c < plan.n_keys; c++)
		{
			uint64_t	values[K];

			rhh_load_rows(rows, plan.column[c], plan.bytes[c], some, values);
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				some.key[k] |= rhh_is_null(rows, plan.column[c], some.row[k])
					? (uint64_t) 1 << (plan.null_shift + c) : values[k] << plan.shift[c];
		}
	}
	RHH_UNROLL
	for (int k = 0; k < K; k++)
		some.fp[k] = rhh_fingerprint(&plan.hash, some.key[k], plan.bits);
}

/* Word w of the key of a row, for keys that are verified.  One lane. */
RHH_DEV uint64_t
rhh_row_key_word(const rhh_grouping &grouping, const rhh_rows &rows, uint32_t row,
				 uint64_t key, uint32_t w)
{
	return grouping.plan.form == RHH_KEY_WIDE
		? rhh_wide_word(grouping, rows, row, key, w) : key;
}

/* Does the group have the key of the row?  The group's slot must have been seen. */
template <class Team>
RHH_DEV bool
rhh_group_is_row(const rhh_view &view, const rhh_grouping &grouping,
				 const rhh_rows &rows, const Team &team, bool active, uint32_t group,
				 uint32_t row, uint64_t key)
{
	const uint64_t *words = view.keys + (size_t) group * grouping.plan.n_words;
	bool		same = true;

	for (uint32_t w = team.rank; w < grouping.plan.n_words && active; w += Team::SIZE)
		same = same && rhh_load_relaxed64(&words[w])
			== rhh_row_key_word(grouping, rows, row, key, w);
	return team.all(same);
}

/* Do two groups have the same key?  The slots of both must have been seen. */
template <class Team>
RHH_DEV bool
rhh_group_is_group(const rhh_view &view, const rhh_grouping &grouping,
				   const Team &team, bool active, uint32_t a, uint32_t b)
{
	const uint64_t *x = view.keys + (size_t) a * grouping.plan.n_words;
	const uint64_t *y = view.keys + (size_t) b * grouping.plan.n_words;
	bool		same = true;

	for (uint32_t w = team.rank; w < grouping.plan.n_words && active; w += Team::SIZE)
		same = same && rhh_load_relaxed64(&x[w]) == rhh_load_relaxed64(&y[w]);
	return team.all(same);
}

/* Stores the words of a row's key under a number that no other tile can see yet. */
template <class Team>
RHH_DEV void
rhh_store_key(const rhh_view &view, const rhh_grouping &grouping,
			  const rhh_rows &rows, const Team &team, bool active, uint32_t group,
			  uint32_t row, uint64_t key)
{
	uint64_t   *words = view.keys + (size_t) group * grouping.plan.n_words;

	for (uint32_t w = team.rank; w < grouping.plan.n_words && active; w += Team::SIZE)
		words[w] = rhh_row_key_word(grouping, rows, row, key, w);
	/* The words must be visible before the slot that a lane of the tile then stores. */
	__threadfence();
	team.sync();
}

/* ---------- finding and inserting ---------- */

/*
 * The number for the next new key, or RHH_NO_GROUP if none is left.  It stays in the
 * reserve until the caller takes it out.
 */
template <class Team>
RHH_DEV uint32_t
rhh_next_number(const rhh_view &view, const Team &team, bool active, rhh_reserve *reserve)
{
	bool		need = active && reserve->next == reserve->end;
	uint32_t	first = RHH_NO_GROUP;

	/* Looking first keeps the counter from growing far beyond group_cap. */
	if (need && team.rank == 0 &&
		rhh_load_relaxed32(&view.ctl->n_numbers) < view.group_cap)
		first = atomicAdd(&view.ctl->n_numbers, view.chunk);
	first = team.shfl(first, 0);
	if (need && first < view.group_cap)
	{
		reserve->next = first;
		reserve->end = first + view.chunk < view.group_cap ? first + view.chunk : view.group_cap;
	}
	return reserve->next == reserve->end ? RHH_NO_GROUP : reserve->next;
}

/*
 * Appends an entry that has left the table to the list of orphans.  Where a batch is
 * inserted there is always room; a rehash may overrun the list.
 */
template <class S, class Team>
RHH_DEV void
rhh_append_orphan(const rhh_view &view, const Team &team, bool active,
				  const typename S::slot &e)
{
	if (active && team.rank == 0)
	{
		uint32_t	i = atomicAdd(view.n_orphans, 1u);

		if (i < view.orphan_cap)
		{
			rhh_orphan	o = {S::key(e), S::group(e), S::hash(e)};

			view.orphans[i] = o;
		}
		else
			view.ctl->overrun = 1;
	}
}

/*
 * What all operations on the table of groups have in common (see rhh_find_loop and
 * rhh_insert_loop): the table, and when two slots may have the same key.
 */
template <class S, bool VERIFY>
struct rhh_groups_op
{
	typedef typename S::slot slot;
	typedef typename S::warp_tiles team;
	static const bool UNSURE = VERIFY;

	const rhh_view &view;
	const rhh_grouping &grouping;

	__device__ RHH_INLINE bool same(const slot &a, const slot &e) const
	{
		return S::same(a, e);
	}
};

/*
 * The rows of a warp on their way into the map: each lane has a row, and a tile
 * takes its lanes' keys one after the other.
 */
template <class S, bool VERIFY>
struct rhh_rows_op : rhh_groups_op<S, VERIFY>
{
	typedef rhh_groups_op<S, VERIFY> base;
	typedef typename base::slot slot;
	typedef typename base::team team;

	const rhh_rows &rows;
	bool		is_key_short;	/* key is the whole key, so lanes can compare keys */

	/* The lane's row. */
	uint32_t	row = 0;
	uint64_t	key = 0;
	uint32_t	fp = 0;
	uint32_t	group = 0;		/* out */
	bool		mine = false;	/* it has a key, and needs a group */

	/* The row that the tile has in hand, the same for all its lanes. */
	rhh_lanes	pending = 0;
	int			src = 0;
	uint64_t	key_now = 0;
	uint32_t	row_now = 0;

	__device__ RHH_INLINE bool take(const team &t, bool active, slot *e)
	{
		bool		got = active && pending != 0;
		uint64_t	k;
		uint32_t	f,
					r;

		if (got)
			src = rhh_first_lane(pending);
		k = t.shfl(key, src);
		f = t.shfl(fp, src);
		r = t.shfl(row, src);
		if (got)
		{
			key_now = k;
			row_now = r;
			*e = S::make(k, f, RHH_NO_GROUP);
		}
		return got;
	}

	/* The row in hand has got its group, or is refused. */
	__device__ RHH_INLINE void settle(const team &t, bool active, uint32_t g)
	{
		/* Other lanes with the same key need not look for it any more. */
		bool		same = active && (t.rank == (uint32_t) src ||
									  (mine && is_key_short && key == key_now));
		rhh_lanes	settled = t.ballot(same);

		if (same)
			group = g;
		pending &= ~settled;
	}
};

/* Finds the groups of rows, and makes those that are not there. */
template <class S, bool VERIFY>
struct rhh_insert_rows : rhh_rows_op<S, VERIFY>
{
	typedef rhh_rows_op<S, VERIFY> base;
	typedef typename base::slot slot;
	typedef typename base::team team;

	rhh_tally	tally = {};
	uint32_t	group_now = 0;
	bool		key_stored = false;

	__device__ RHH_INLINE bool next(const team &t, bool active, slot *e)
	{
		if (!base::take(t, active, e))
			return false;
		group_now = RHH_NO_GROUP;
		key_stored = false;
		return true;
	}

	__device__ RHH_INLINE rhh_meeting met(const team &t, bool active, bool carrying,
										  const slot &e, const slot &found, uint64_t)
	{
		if (VERIFY)
		{
			bool		is_row = rhh_group_is_row(base::view, base::grouping, base::rows, t,
												  active && !carrying, S::group(found),
												  base::row_now, base::key_now);
			bool		is_group = rhh_group_is_group(base::view, base::grouping, t,
													  active && carrying, S::group(found),
													  S::group(e));

			if (!(carrying ? is_group : is_row))
				return RHH_MEET_OTHER;
		}
		if (active && !carrying)
			group_now = S::group(found);
		/* Its rows are in its states, so it must not get lost: the list has room. */
		rhh_append_orphan<S>(base::view, t, active && carrying, e);
		return active ? RHH_MEET_DONE : RHH_MEET_OTHER;
	}

	__device__ RHH_INLINE bool make(const team &t, bool active, uint32_t victim_rank, slot *e)
	{
		uint32_t	group = rhh_next_number(base::view, t, active, &tally.reserve);
		uint32_t	length = 0;
		bool		ok = active && group != RHH_NO_GROUP;

		/* One lane looks for all, because two might see different lengths. */
		if (ok && victim_rank > 0 && t.rank == 0)
			length = rhh_load_relaxed32(base::view.n_orphans);
		length = t.shfl(length, 0);
		if (victim_rank > 0 && length >= base::view.orphan_limit)
			ok = false;
		if (VERIFY && t.more(ok && !key_stored))
		{
			rhh_store_key(base::view, base::grouping, base::rows, t, ok && !key_stored, group,
						  base::row_now, base::key_now);
			key_stored = key_stored || ok;
		}
		if (ok)
		{
			group_now = group;
			*e = S::make(base::key_now, S::hash(*e), group);
		}
		return ok;
	}

	__device__ RHH_INLINE void done(const team &t, bool active, rhh_outcome o, const slot &carried)
	{
		if (active)
		{
			tally.cap_hits += o == RHH_FAILED || o == RHH_PLACED_ORPHAN;
			if (o == RHH_FAILED)
				group_now = RHH_NO_GROUP;
			else if (o != RHH_MET)
			{
				tally.reserve.next++;
				tally.placed++;
			}
		}
		rhh_append_orphan<S>(base::view, t, active && o == RHH_PLACED_ORPHAN, carried);
		base::settle(t, active, group_now);
	}
};

/*
 * Enters entries that have group numbers already into the new body of a map; each lane
 * of a warp has one.  If an entry, or one that it displaces, finds no place, or meets its key
 * in another slot, then it becomes an orphan.
 */
template <class S, bool VERIFY>
struct rhh_enter_entries : rhh_groups_op<S, VERIFY>
{
	typedef rhh_groups_op<S, VERIFY> base;
	typedef typename base::slot slot;
	typedef typename base::team team;

	slot		entry;			/* of the lane */
	rhh_lanes	pending;

	__device__ RHH_INLINE bool next(const team &t, bool active, slot *e)
	{
		bool		got = active && pending != 0;
		int			src = got ? rhh_first_lane(pending) : 0;
		slot		x = S::shfl(t, entry, src);

		if (got)
		{
			pending &= pending - 1;
			*e = x;
		}
		return got;
	}

	__device__ RHH_INLINE rhh_meeting met(const team &t, bool active, bool, const slot &e,
										  const slot &found, uint64_t)
	{
		if (VERIFY && !rhh_group_is_group(base::view, base::grouping, t, active, S::group(found),
										  S::group(e)))
			return RHH_MEET_OTHER;
		rhh_append_orphan<S>(base::view, t, active, e);
		return active ? RHH_MEET_DONE : RHH_MEET_OTHER;
	}

	__device__ RHH_INLINE bool make(const team &, bool, uint32_t, slot *)
	{
		return true;
	}

	__device__ RHH_INLINE void done(const team &t, bool active, rhh_outcome o, const slot &carried)
	{
		rhh_append_orphan<S>(base::view, t, active && (o == RHH_FAILED || o == RHH_PLACED_ORPHAN),
							 carried);
	}
};

/* Finds the group that has a slot and the key of an entry.  Each tile has one entry. */
template <class S, bool VERIFY>
struct rhh_find_entry : rhh_groups_op<S, VERIFY>
{
	typedef rhh_groups_op<S, VERIFY> base;
	typedef typename base::slot slot;
	typedef typename base::team team;

	slot		entry;			/* the tile's */
	bool		pending;
	uint32_t	group;			/* out: RHH_NO_GROUP if none has */

	__device__ RHH_INLINE bool next(const team &, bool active, slot *e, uint32_t *bucket,
									uint32_t *dist)
	{
		if (!active || !pending)
			return false;
		pending = false;
		*e = entry;
		*bucket = rhh_home_of(S::hash(entry), base::view.n_buckets);
		*dist = 0;
		return true;
	}
	__device__ RHH_INLINE bool is_it(const team &t, bool active, const slot &a, const slot &e) const
	{
		return !VERIFY ||
			rhh_group_is_group(base::view, base::grouping, t, active, S::group(e), S::group(a));
	}
	__device__ RHH_INLINE void done(const team &, bool active, bool found, const slot &e)
	{
		if (active)
			group = found ? S::group(e) : RHH_NO_GROUP;
	}
};

/* ---------- transition states ---------- */

/* What a state word of a group is before any row has touched it. */
RHH_DEV uint64_t
rhh_init_word(const rhh_grouping &grouping, uint32_t word)
{
	switch (grouping.init[word])
	{
		case RHH_INIT_MOST:
			return (uint64_t) INT64_MAX;
		case RHH_INIT_LEAST:
			return (uint64_t) INT64_MIN;
		case RHH_INIT_ONES:
			return UINT64_MAX;
		default:
			return 0;
	}
}

/*
 * Adds to a word, wrapping.  Shared memory has no addition of 64 bits; the compiler
 * would make a loop of compare-and-swaps, which is slow if many threads add to few words.
 * So LOCAL adds two halves of 32 bits.  The low half returns what was there before, which
 * tells whether this addition has made it wrap, and then this addition carries one; the
 * sum is the same in whatever order the additions come.
 */
template <bool LOCAL>
RHH_DEV void
rhh_add(uint64_t *word, uint64_t value)
{
	if (LOCAL)
	{
		uint32_t   *half = (uint32_t *) word;
		uint32_t	low = (uint32_t) value,
					high = (uint32_t) (value >> 32);

		if (atomicAdd(&half[0], low) + low < low)
			high++;
		if (high != 0)
			atomicAdd(&half[1], high);
	}
	else
		atomicAdd((unsigned long long *) word, (unsigned long long) value);
}

/* Adds a value to a RHH_SUM_I128 (rhh_grouping). */
template <bool LOCAL>
RHH_DEV void
rhh_add_wide(uint64_t *word, int64_t value)
{
	rhh_add<LOCAL>(word, (uint32_t) value);
	if (value >> 32 != 0)
		rhh_add<LOCAL>(word + 1, (uint64_t) (value >> 32));
}

/* Lowers a minimum.  Most values change nothing, so look before paying for an atomic. */
RHH_DEV void
rhh_lower(uint64_t *word, int64_t value)
{
	if (value < *(volatile long long *) word)
		atomicMin((long long *) word, (long long) value);
}

/* Raises a maximum, likewise. */
RHH_DEV void
rhh_raise(uint64_t *word, int64_t value)
{
	if (value > *(volatile long long *) word)
		atomicMax((long long *) word, (long long) value);
}

/* Sets bits, which most of the time are set already. */
RHH_DEV void
rhh_set_bits(uint64_t *word, uint64_t bits)
{
	if ((bits & ~*(volatile uint64_t *) word) != 0)
		atomicOr((unsigned long long *) word, (unsigned long long) bits);
}

/*
 * Adds an unsigned number of n words to one that other threads add to as well.  The
 * thread whose addition makes a word wrap carries one to the next word.  So all carries
 * arrive, in whatever order.
 */
RHH_DEV void
rhh_add_words_shared(uint64_t *words, const uint64_t *from, uint32_t n)
{
	uint64_t	carry = 0;

	for (uint32_t w = 0; w < n; w++)
	{
		uint64_t	value = from[w] + carry;

		/* all ones and a carry: nothing is added here, and the carry goes on */
		carry = value < carry;
		if (value != 0 &&
			atomicAdd((unsigned long long *) &words[w], (unsigned long long) value) + value < value)
			carry = 1;
	}
}

/*
 * atomicAdd() of doubles that is right for subnormal numbers, too.  An H100 takes these
 * for zero in global memory: as the operand, as the result, and as what is there.  With
 * an operand of at least 2^-960 that does not change the sum: no result but 0 is so
 * small, and a subnormal that is there is less than half a unit in the last place.
 * Returns what was there.
 */
RHH_DEV double
rhh_atomic_add_double(uint64_t *word, double value)
{
	uint64_t	seen = *(volatile uint64_t *) word;

	if (value >= 0x1p-960 || value <= -0x1p-960)
		return atomicAdd((double *) word, value);
	for (;;)
	{
		uint64_t	sum = rhh_as_bits(rhh_as_double(seen) + value);
		uint64_t	old = seen;

		/* Zeros are frequent, and change at most the sign of a zero. */
		if (sum != seen)
			old = atomicCAS((unsigned long long *) word, (unsigned long long) seen,
							(unsigned long long) sum);
		if (old == seen)
			return rhh_as_double(old);
		seen = old;
	}
}

RHH_DEV void
rhh_add_double(uint64_t *word, double value)
{
	(void) rhh_atomic_add_double(word, value);
}

/*
 * Adds to a sum that is kept as two doubles.  The first is what the additions round to,
 * in the order in which they come; each addition adds to the second what its own
 * rounding has taken away.
 */
RHH_DEV void
rhh_add_twice_shared(uint64_t *words, double high, double low)
{
	double		old = rhh_atomic_add_double(words, high);

	low += rhh_sum_error(old, high, old + high);
	rhh_add_double(words + 1, low);
}

/* Sets ANY.  All rows of a group store the same value, so a race does no harm. */
RHH_DEV void
rhh_set_any(uint64_t *words, uint64_t low, uint64_t high, bool two)
{
	volatile uint64_t *w = words;

	if (w[0] != 0)
		return;
	w[1] = low;
	if (two)
		w[2] = high;
	w[0] = 1;
}

RHH_DEV double
rhh_float_value(const rhh_rows &rows, uint32_t column, uint32_t bytes, uint32_t row)
{
	uint64_t	bits = rhh_value(rows, column, bytes, row);

	if (bytes == 4)
	{
		uint32_t	half = (uint32_t) bits;
		float		x;

		memcpy(&x, &half, sizeof(x));
		return x;
	}
	return rhh_as_double(bits);
}

/*
 * rhh_update_state() for the states that are asked for less often.  It is not inlined,
 * since it would cost the other states registers.
 */
static __device__ RHH_NOINLINE void
rhh_update_more(const rhh_grouping_state &st, const rhh_rows &rows, uint32_t row,
				uint64_t *word)
{
	switch (st.op)
	{
		case RHH_AND:
			{
				uint64_t	v = (uint64_t) rhh_signed_value(rows, st.arg, st.bytes, row);

				if ((*(volatile uint64_t *) word & ~v) != 0)
					atomicAnd((unsigned long long *) word, (unsigned long long) v);
			}
			break;
		case RHH_OR:
			rhh_set_bits(word, (uint64_t) rhh_signed_value(rows, st.arg, st.bytes, row));
			break;
		case RHH_XOR:
			atomicXor((unsigned long long *) word,
					  (unsigned long long) rhh_signed_value(rows, st.arg, st.bytes, row));
			break;
		case RHH_SUM_SQUARES:
			{
				int64_t		v = rhh_signed_value(rows, st.arg, st.bytes, row);
				unsigned __int128 square = (unsigned __int128) ((__int128) v * v);
				uint64_t	words[3] = {(uint64_t) square, (uint64_t) (square >> 64), 0};

				rhh_add_words_shared(word, words, st.n_words);
			}
			break;
		case RHH_SUM_F64:
			{
				double		x = rhh_float_value(rows, st.arg, st.bytes, row);
				uint64_t	flags = rhh_f64_flags(x);

				rhh_set_bits(word + 1, flags);
				if ((flags & RHH_F64_NOT_FINITE) == 0)
					rhh_add_double(word, x);
			}
			break;
		case RHH_MOMENTS_F64:
			{
				double		x = rhh_float_value(rows, st.arg, st.bytes, row);
				uint64_t	flags = rhh_f64_flags(x);
				double		square = rhh_square(x);

				rhh_set_bits(word + 4, flags);
				if (flags == RHH_F64_SMALL)
				{
					rhh_add_twice_shared(word, x, 0);
					rhh_add_twice_shared(word + 2, square, rhh_square_error(x, square));
				}
			}
			break;
		case RHH_SUM_TWICE_F64:
			rhh_add_twice_shared(word, rhh_as_double(rhh_value(rows, st.arg, st.bytes, row)),
								 rhh_as_double(rhh_value_high(rows, st.arg, row)));
			break;
	}
}

/* Adds a row to one state, whose words start at word.  One thread. */
template <bool LOCAL>
RHH_DEV void
rhh_update_state(const rhh_grouping_state &st, const rhh_rows &rows, uint32_t row, uint64_t *word)
{
	if (st.filter >= 0 && rhh_value(rows, st.filter, 1, row) == 0)
		return;
	if (st.arg >= 0 && rhh_is_null(rows, st.arg, row))
		return;
	switch (st.op)
	{
		case RHH_COUNT:
			rhh_add<LOCAL>(word, 1);
			break;
		case RHH_SUM_I64:
			rhh_add<LOCAL>(word, rhh_signed_value(rows, st.arg, st.bytes, row));
			break;
		case RHH_SUM_I128:
			rhh_add_wide<LOCAL>(word, rhh_signed_value(rows, st.arg, st.bytes, row));
			break;
		case RHH_MIN_I64:
			rhh_lower(word, rhh_signed_value(rows, st.arg, st.bytes, row));
			break;
		case RHH_MAX_I64:
			rhh_raise(word, rhh_signed_value(rows, st.arg, st.bytes, row));
			break;
		case RHH_ANY:
			rhh_set_any(word, rhh_value(rows, st.arg, st.bytes, row),
						st.bytes > 8 ? rhh_value_high(rows, st.arg, row) : 0,
						st.bytes > 8);
			break;
		default:
			rhh_update_more(st, rows, row, word);
			break;
	}
}

/* Adds a row to all states of a group.  One thread. */
RHH_DEV void
rhh_update(const rhh_grouping &grouping, const rhh_rows &rows, uint32_t row, uint64_t *words)
{
	for (uint32_t s = 0; s < grouping.n_states; s++)
		rhh_update_state<false>(grouping.states[s], rows, row, words + grouping.states[s].word);
}

/*
 * The same for those of K rows that are valid.  words[k] are the states of row k's group
 * in shared memory, which see fewer than 2^32 rows.  SIMPLE says that all states count
 * rows or sum up columns of 4 or 8 bytes, also to 128 bits, and then perhaps with their maximum, without filters and NULLs.
 * Such a kernel leaves out everything else and is twice as fast.
 */
template <int K, bool SIMPLE>
RHH_DEV void
rhh_update_rows(const rhh_grouping &grouping, const rhh_rows &rows, const rhh_some_rows<K> &some,
				uint64_t *const *words)
{
	for (uint32_t s = 0; s < grouping.n_states; s++)
	{
		const rhh_grouping_state &st = grouping.states[s];
		uint64_t	values[K];

		if (!SIMPLE)
		{
			RHH_NO_UNROLL
			for (int k = 0; k < K; k++)
				if (some.valid[k])
					rhh_update_state<true>(st, rows, some.row[k], words[k] + st.word);
			continue;
		}
		if (st.op == RHH_COUNT)
		{
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				if (some.valid[k])
					atomicAdd((uint32_t *) (words[k] + st.word), 1u);
			continue;
		}
		if (st.bytes == 4)
			rhh_load_rows<int32_t, K>(rows, st.arg, some, values);
		else
			rhh_load_rows<int64_t, K>(rows, st.arg, some, values);
		if (st.op == RHH_SUM_I128)
		{
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				if (some.valid[k])
					rhh_add_wide<true>(words[k] + st.word, (int64_t) values[k]);
			if (st.max_word == RHH_NO_WORD)
				continue;
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				if (some.valid[k])
					rhh_raise(words[k] + st.max_word, (int64_t) values[k]);
			continue;
		}
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			if (some.valid[k])
				rhh_add<true>(words[k] + st.word, values[k]);
	}
}

/*
 * Merges one state of a group into that of another group; one thread.  Nobody else may
 * change from; other threads may merge into the same group at the same time.
 */
static __device__ RHH_NOINLINE void
rhh_merge_state(const rhh_grouping_state &st, uint64_t *into, const uint64_t *from)
{
	into += st.word;
	from += st.word;
	switch (st.op)
	{
		case RHH_COUNT:
		case RHH_SUM_I64:
			if (from[0] != 0)
				rhh_add<false>(into, from[0]);
			break;
		case RHH_SUM_I128:
			if (from[0] != 0)
				rhh_add<false>(into, from[0]);
			if (from[1] != 0)
				rhh_add<false>(into + 1, from[1]);
			break;
		case RHH_MIN_I64:
			rhh_lower(into, (int64_t) from[0]);
			break;
		case RHH_MAX_I64:
			rhh_raise(into, (int64_t) from[0]);
			break;
		case RHH_ANY:
			if (from[0] != 0)
				rhh_set_any(into, from[1], st.bytes > 8 ? from[2] : 0, st.bytes > 8);
			break;
		case RHH_AND:
			if (~from[0] != 0)
				atomicAnd((unsigned long long *) into, (unsigned long long) from[0]);
			break;
		case RHH_OR:
			rhh_set_bits(into, from[0]);
			break;
		case RHH_XOR:
			if (from[0] != 0)
				atomicXor((unsigned long long *) into, (unsigned long long) from[0]);
			break;
		case RHH_SUM_SQUARES:
			rhh_add_words_shared(into, from, st.n_words);
			break;
		case RHH_SUM_F64:
			/* without a flag no value was added */
			if (from[1] != 0)
			{
				rhh_set_bits(into + 1, from[1]);
				rhh_add_double(into, rhh_as_double(from[0]));
			}
			break;
		case RHH_MOMENTS_F64:
			if (from[4] != 0)
			{
				rhh_set_bits(into + 4, from[4]);
				rhh_add_twice_shared(into, rhh_as_double(from[0]), rhh_as_double(from[1]));
				rhh_add_twice_shared(into + 2, rhh_as_double(from[2]), rhh_as_double(from[3]));
			}
			break;
		case RHH_SUM_TWICE_F64:
			if (from[0] != 0 || from[1] != 0)
				rhh_add_twice_shared(into, rhh_as_double(from[0]), rhh_as_double(from[1]));
			break;
	}
}

/* The same for all states; for SIMPLE see rhh_update_rows(). */
template <bool SIMPLE>
RHH_DEV void
rhh_merge_group(const rhh_grouping &grouping, uint64_t *into, const uint64_t *from)
{
	for (uint32_t s = 0; s < grouping.n_states; s++)
	{
		const rhh_grouping_state &st = grouping.states[s];

		if constexpr (!SIMPLE)
			rhh_merge_state(st, into, from);
		else
		{
			for (uint32_t w = st.word; w < (uint32_t) st.word + st.n_words; w++)
				if (from[w] != 0)
					rhh_add<false>(into + w, from[w]);
			if (st.max_word != RHH_NO_WORD)
				rhh_raise(into + st.max_word, (int64_t) from[st.max_word]);
		}
	}
}

#endif							/* RHH_GROUPS_CUH */
