/*
 * rhh_kept.cuh
 *		The rows that a map keeps (RHH_KEEP_ROWS), and the index that finds those with a
 *		key: the build side of hash joins.
 *
 * A row is kept as a record: its values side by side, the widest columns first, so that
 * each is aligned.  A join reads a row here and a row there, and then the values of one
 * row share sectors.  Records are numbered from 0, as rows come, and lie in segments:
 *
 *		segment 0			rows [0, 2^b), b = first_bits
 *		segments 1 to 4		rows [2^b, 2^(b+1)), a quarter each
 *		segments 5 to 8		rows [2^(b+1), 2^(b+2)), a quarter each, and so on
 *
 *		a segment:	| records | for each record a word of NULL bits, by column |
 *
 * So nothing moves when there are more rows, at most a fifth of the memory is unused, and
 * a row's segment follows from its number.  The NULL bits lie apart because many tables
 * have no NULL: null_columns says which columns have one, and the others' bits are not
 * read.
 *
 * The index is made when all rows are there.  It is a hash table with linear probing,
 * which is never full, so a search ends at an empty slot.  It begins where a bucket of 64
 * bytes does, because a GPU reads as many random lines of 64 bytes a second as of 32 or 8.
 * The first 8 bytes of a slot have the fingerprint of a key, and
 *
 *		if all keys are different:		the number of the key's row
 *		else, once the lists are made:	where in lists[] the rows of the key end
 *
 * If the fingerprint is the key, slots may have 16 bytes.  Then the second 8 are a copy of
 * some bytes of the row's record, so that a join need not read the record for these.
 *
 *		lists[]:	| rows of a key | their number | rows of another key | their number ...
 *
 * If the keys, as integers, lie close together, no hash table is needed: the index is *direct*,
 * a key's slot is the one whose number is the key less the least key.  Such a slot has 4 bytes
 * of the row's record in the place of the fingerprint.
 *
 * Rows with NULL in a key are kept only if somebody asks for rows without a match
 * (keeps_null_keys).  They are in no slot and in no list, and count as keys.
 *
 * A map that keeps one part of the rows (n_parts) drops the others when they come.  Rows that
 * look for a key of another part do not come out of the join, so they have to know it.
 *
 * An empty slot is all ones.  If fingerprints are equal, and keys have more than 32 bits,
 * the key is compared with that of a row.
 */
#ifndef RHH_KEPT_CUH
#define RHH_KEPT_CUH

#include "cuda/rhh_kernels.cuh"

/* No row, and no end of a list: there are fewer than 2^31 rows. */
#define RHH_NO_ROW 0xFFFFFFFFu
#define RHH_MAX_KEPT_ROWS 0x7FFFFFFFu

#define RHH_EMPTY_SLOT UINT64_MAX
#define RHH_INDEX_BUCKET_WORDS 8	/* of 8 bytes */
#define RHH_DIRECT 0			/* instead of the number of words of a slot */

/* Of segments that hold 2^31 rows, if the first one is as small as can be. */
#define RHH_MIN_SEGMENT_BITS 10
#define RHH_MAX_SEGMENTS (1 + 4 * (31 - RHH_MIN_SEGMENT_BITS))

/* The kept rows of a map, as kernels see them. */
struct rhh_kept_view
{
	uint8_t *const *segments;	/* in device memory */
	uint64_t   *slots;
	uint64_t	n_slots;		/* unless direct a multiple of a bucket's; 0: there is no row */
	uint32_t	slot_words;		/* 1 or 2 */
	uint32_t	carried_bytes;	/* of the record, which slots have, ... */
	uint32_t	carried_at;		/* ... from here on */
	bool		direct;			/* a slot's number is that of its key, less this: */
	uint64_t	least_key;		/* see rhh_key_number() */
	const uint32_t *lists;		/* NULL: slots have rows */
	uint32_t	n_rows;
	uint32_t	record_bytes;
	uint32_t	null_bytes;		/* 1, 2, 4 or 8: NULL bits of a row */
	uint32_t	first_bits;
	bool		keeps_null_keys;
	uint32_t	n_parts;		/* 0: all rows are kept */
	uint32_t	part;
	rhh_key_plan plan;
	uint16_t	key_at[RHH_MAX_KEYS];	/* of the keys in a record */
};

/* Where the columns of a row are in its record. */
struct rhh_record_layout
{
	uint32_t	n_columns;
	uint8_t		bytes[RHH_MAX_COLUMNS];
	uint16_t	at[RHH_MAX_COLUMNS];
};

/* Rows of a segment, and the first of them. */
static __host__ __device__ RHH_INLINE uint32_t
rhh_segment_rows(uint32_t first_bits, uint32_t segment)
{
	return segment == 0 ? 1u << first_bits : 1u << (first_bits + (segment - 1) / 4 - 2);
}

static __host__ __device__ RHH_INLINE uint64_t
rhh_segment_nulls_at(uint32_t record_bytes, uint32_t n_rows)
{
	return ((uint64_t) n_rows * record_bytes + 255) & ~(uint64_t) 255;
}

/* Where a row's record is, and its NULL bits. */
struct rhh_kept_row
{
	uint8_t    *record;
	uint8_t    *nulls;
};

RHH_DEV rhh_kept_row
rhh_kept_at(const rhh_kept_view &kept, uint32_t row)
{
	uint32_t	segment = 0;
	uint32_t	bits = kept.first_bits;
	rhh_kept_row at;

	if (row >> bits != 0)
	{
		uint32_t	octave = 31 - (uint32_t) __clz((int) row);

		bits = octave - 2;
		segment = 1 + 4 * (octave - kept.first_bits) + (row >> bits & 3);
		row &= (1u << bits) - 1;
	}
	at.record = kept.segments[segment];
	at.nulls = at.record + rhh_segment_nulls_at(kept.record_bytes, 1u << bits) +
		(uint64_t) row * kept.null_bytes;
	at.record += (uint64_t) row * kept.record_bytes;
	return at;
}

/* The first 8 bytes of a value, zero-extended. */
RHH_DEV uint64_t
rhh_load_value(const uint8_t *value, uint32_t bytes)
{
	switch (bytes)
	{
		case 1:
			return *value;
		case 2:
			return *(const uint16_t *) value;
		case 4:
			return *(const uint32_t *) value;
		default:
			return *(const uint64_t *) value;
	}
}

/* ---------- keys ---------- */

/* Makes a key that is not WIDE, as rhh_make_key() does. */
template <typename Load>
RHH_DEV bool
rhh_make_narrow_key(const rhh_key_plan &plan, const Load &load, uint64_t *key)
{
	uint64_t	low = 0,
				high;

	*key = 0;
	for (uint32_t k = 0; k < plan.n_keys; k++)
	{
		if (!load(k, &low, &high))
			return false;
		*key |= low << plan.shift[k];
	}
	return true;
}

/*
 * Makes a key, and its fingerprint, of values that none of them is NULL: the same for
 * kept rows and for those that look for them.  load(k, &low, &high) gives the value of
 * key k, or returns false if it is NULL; then there is no key, and the result is false.
 * WIDE keys have no *key.
 */
template <typename Load>
RHH_DEV bool
rhh_make_key(const rhh_key_plan &plan, const Load &load, uint64_t *key, uint32_t *fp)
{
	uint64_t	hash;
	uint64_t	low = 0,
				high = 0;

	*key = 0;
	*fp = 0;
	if (plan.form != RHH_KEY_WIDE)
	{
		if (!rhh_make_narrow_key(plan, load, key))
			return false;
		*fp = rhh_fingerprint(&plan.hash, *key, plan.bits);
		return true;
	}
	hash = rhh_hash_word(&plan.hash, RHH_WIDE_START, 0);
	for (uint32_t k = 0; k < plan.n_keys; k++)
	{
		if (!load(k, &low, &high))
			return false;
		hash = rhh_hash_word(&plan.hash, hash, low);
		if (plan.bytes[k] > 8)
			hash = rhh_hash_word(&plan.hash, hash, high);
	}
	*fp = (uint32_t) (hash >> 32);
	return true;
}

/* Is a key not of the part that a map keeps?  load() is as for rhh_make_key(). */
template <typename Load>
RHH_DEV bool
rhh_is_of_other_part(const rhh_kept_view &kept, const Load &load)
{
	uint64_t	hash = RHH_PART_START;
	uint64_t	low = 0,
				high = 0;

	if (kept.n_parts <= 1)
		return false;
	for (uint32_t k = 0; k < kept.plan.n_keys; k++)
	{
		/* NULL is of part 0 */
		if (!load(k, &low, &high))
			return kept.part != 0;
		hash = rhh_part_word(hash, low);
		if (kept.plan.bytes[k] > 8)
			hash = rhh_part_word(hash, high);
	}
	return rhh_part_of(hash, kept.n_parts) != kept.part;
}

/* The NULL bits of a row. */
RHH_DEV uint64_t
rhh_load_nulls(const rhh_kept_view &kept, const rhh_kept_row &row)
{
	return rhh_load_value(row.nulls, kept.null_bytes);
}

/* Loads the values of a kept row's keys. */
struct rhh_load_kept_key
{
	const rhh_kept_view &kept;
	const rhh_kept_row row;

	__device__ RHH_INLINE bool operator()(uint32_t k, uint64_t *low, uint64_t *high) const
	{
		const uint8_t *value = row.record + kept.key_at[k];

		if (kept.keeps_null_keys && (rhh_load_nulls(kept, row) >> kept.plan.column[k] & 1) != 0)
			return false;
		*low = rhh_load_value(value, kept.plan.bytes[k]);
		if (kept.plan.bytes[k] > 8)
			*high = *(const uint64_t *) (value + 8);
		return true;
	}
};

/* Has a kept row the key that load gives, and that is *key if it is not WIDE? */
template <typename Load>
RHH_DEV bool
rhh_row_has_key(const rhh_kept_view &kept, uint32_t row, uint64_t key, const Load &load)
{
	const rhh_key_plan &plan = kept.plan;
	const rhh_load_kept_key mine = {kept, rhh_kept_at(kept, row)};
	uint64_t	low[2] = {0, 0};
	uint64_t	high[2] = {0, 0};
	uint64_t	packed = 0;

	for (uint32_t k = 0; k < plan.n_keys; k++)
	{
		(void) mine(k, &low[0], &high[0]);
		if (plan.form != RHH_KEY_WIDE)
		{
			packed |= low[0] << plan.shift[k];
			continue;
		}
		load(k, &low[1], &high[1]);
		if (low[0] != low[1] || (plan.bytes[k] > 8 && high[0] != high[1]))
			return false;
	}
	return plan.form == RHH_KEY_WIDE || packed == key;
}

/*
 * A key that is not WIDE as an integer, in the order of signed ones: most integer keys are, and
 * those of other kinds are as close together then as otherwise, unless some are above the half of
 * what their bits can have.
 */
RHH_DEV uint64_t
rhh_key_number(uint32_t bits, uint64_t key)
{
	return (uint64_t) ((int64_t) (key << (64 - bits)) >> (64 - bits)) ^ (uint64_t) 1 << 63;
}

/* Are keys with the same fingerprint the same? */
RHH_DEV bool
rhh_fingerprint_is_key(const rhh_key_plan &plan)
{
	return plan.form != RHH_KEY_WIDE && plan.bits <= 32;
}

static __host__ __device__ RHH_INLINE uint32_t
rhh_index_buckets(const rhh_kept_view &kept)
{
	return (uint32_t) (kept.n_slots * kept.slot_words / RHH_INDEX_BUCKET_WORDS);
}

RHH_DEV uint64_t
rhh_home_slot(const rhh_kept_view &kept, uint32_t fp)
{
	return (uint64_t) rhh_home_bucket(fp, rhh_index_buckets(kept)) *
		(RHH_INDEX_BUCKET_WORDS / kept.slot_words);
}

/* The bytes of a row that its slot has. */
RHH_DEV uint64_t
rhh_carried_bytes(const rhh_kept_view &kept, uint32_t row)
{
	const uint32_t *record = (const uint32_t *) (rhh_kept_at(kept, row).record + kept.carried_at);
	uint64_t	low;

	if (kept.carried_bytes == 0)
		return 0;
	low = record[0];
	/* a record is a multiple of 4 bytes here, and may end after the first 4 */
	return kept.carried_bytes > 4 && kept.carried_at + 4 < kept.record_bytes
		? low | (uint64_t) record[1] << 32 : low;
}

/* A row with the key of a slot, which has what rhh_find_key() returns. */
RHH_DEV uint32_t
rhh_row_of_found(const rhh_kept_view &kept, uint32_t found)
{
	return kept.lists != NULL ? kept.lists[found - 1] : found;
}

/*
 * What the slot of a key has: its row, or where its list ends; RHH_NO_ROW if no row has
 * the key.  load() is as for rhh_make_key().
 */
template <typename Load>
RHH_DEV uint32_t
rhh_find_key(const rhh_kept_view &kept, uint64_t key, uint32_t fp, const Load &load)
{
	uint64_t	slot;

	if (kept.direct)
	{
		slot = rhh_key_number(kept.plan.bits, key) - kept.least_key;
		return slot < kept.n_slots ? (uint32_t) kept.slots[slot] : RHH_NO_ROW;
	}
	if (kept.n_slots == 0)
		return RHH_NO_ROW;
	slot = rhh_home_slot(kept, fp);
	for (;;)
	{
		uint64_t	e = kept.slots[slot * kept.slot_words];
		uint32_t	found = (uint32_t) e;

		if (found == RHH_NO_ROW)
			return RHH_NO_ROW;
		if ((uint32_t) (e >> 32) == fp &&
			(rhh_fingerprint_is_key(kept.plan) ||
			 rhh_row_has_key(kept, rhh_row_of_found(kept, found), key, load)))
			return found;
		if (++slot == kept.n_slots)
			slot = 0;
	}
}

/* ---------- keeping rows ---------- */

/* Loads the values of keys of a batch's row. */
struct rhh_load_batch_key
{
	const rhh_kept_view &kept;
	const rhh_rows &rows;
	const uint32_t row;

	__device__ RHH_INLINE bool operator()(uint32_t k, uint64_t *low, uint64_t *high) const
	{
		const uint32_t c = kept.plan.column[k];

		if (rhh_is_null(rows, c, row))
			return false;
		*low = rhh_value(rows, c, kept.plan.bytes[k], row);
		if (kept.plan.bytes[k] > 8)
			*high = rhh_value_high(rows, c, row);
		return true;
	}
};

/*
 * Raises a maximum to the greatest number that a thread of the block has; *most is shared
 * memory, and 0.  All threads of a block.
 */
RHH_DEV void
rhh_raise_by_block(uint64_t *word, uint64_t number, uint64_t *most)
{
	for (int d = RHH_WARP_SIZE / 2; d > 0; d /= 2)
		number = ::max(number, (uint64_t) __shfl_xor_sync(RHH_WARP, number, d));
	if ((threadIdx.x & 31) == 0)
		atomicMax((unsigned long long *) most, (unsigned long long) number);
	__syncthreads();
	if (threadIdx.x == 0 && *most > *(volatile uint64_t *) word)
		atomicMax((unsigned long long *) word, (unsigned long long) *most);
}

/*
 * Appends the rows of a batch, or of a piece of joins' output, to those that are kept, apart from
 * rows that have NULL in a key, unless these are kept, too, and from those of other parts.  Rows
 * behind the first room ones are refused.  ctl->kept counts these, too, so once rows have been
 * refused there must not be more room.  A thread has some rows in hand at a time.  ctl gets to know
 * between which numbers the keys are, too.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_keep_kernel(const __grid_constant__ rhh_kept_view kept,
				const __grid_constant__ rhh_record_layout layout,
				const __grid_constant__ rhh_rows rows, uint32_t room, rhh_control *ctl)
{
	const int	K = RHH_CUDA_KEEP_ITEMS;
	__shared__ uint32_t counts[K * RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	__shared__ uint64_t block_at;
	__shared__ uint64_t most[2];
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t n_rows = rhh_n_rows(rows);
	uint32_t	n_dropped = 0;	/* of the warp */
	uint64_t	greatest = 0;	/* of the numbers of the thread's keys, and inverted the least one */
	uint64_t	least_inverted = 0;

	if (threadIdx.x < 2)
		most[threadIdx.x] = 0;
	__syncthreads();
	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x * K; first < n_rows;
		 first += (uint64_t) gridDim.x * blockDim.x * K)
	{
		bool		keep[K];
		uint32_t	place[K];
		uint32_t	n;

		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			const uint64_t row = first + k * blockDim.x + threadIdx.x;
			const bool	valid = row < n_rows;

			keep[k] = valid;
			for (uint32_t c = 0; c < kept.plan.n_keys && keep[k] && !kept.keeps_null_keys; c++)
				keep[k] = !rhh_is_null(rows, kept.plan.column[c], (uint32_t) row);
			if (keep[k])
			{
				const rhh_load_batch_key load = {kept, rows, (uint32_t) row};

				keep[k] = !rhh_is_of_other_part(kept, load);
			}
			n_dropped += (uint32_t) __popc(__ballot_sync(RHH_WARP, valid && !keep[k]));
		}
		n = rhh_block_places<RHH_CUDA_BLOCK_THREADS, K>(keep, place, counts);
		if (threadIdx.x == 0 && n > 0)
			block_at = atomicAdd((unsigned long long *) &ctl->kept, (unsigned long long) n);
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			const uint64_t row = first + k * blockDim.x + threadIdx.x;
			const uint64_t at = block_at + place[k];
			const uint32_t refused = __ballot_sync(RHH_WARP, keep[k] && at >= room);

			if (lane == 0 && row < n_rows)
			{
				rows.refused[row >> 5] = refused;
				if (refused != 0)
					atomicAdd(rows.n_refused, (uint32_t) __popc(refused));
			}
			if (keep[k] && at < room)
			{
				rhh_kept_row to = rhh_kept_at(kept, (uint32_t) at);
				const rhh_load_batch_key load = {kept, rows, (uint32_t) row};
				uint64_t	nulls = 0;
				uint64_t	key;

				for (uint32_t c = 0; c < layout.n_columns; c++)
				{
					uint32_t	bytes = layout.bytes[c];

					rhh_store_value(to.record + layout.at[c], 0, bytes,
									rhh_value(rows, c, bytes, (uint32_t) row),
									bytes > 8 ? rhh_value_high(rows, c, (uint32_t) row) : 0);
					nulls |= (uint64_t) rhh_is_null(rows, c, (uint32_t) row) << c;
				}
				rhh_store_value(to.nulls, 0, kept.null_bytes, nulls, 0);
				if (nulls != 0)
					rhh_set_bits(&ctl->null_columns, nulls);
				if (kept.plan.form != RHH_KEY_WIDE && rhh_make_narrow_key(kept.plan, load, &key))
				{
					const uint64_t number = rhh_key_number(kept.plan.bits, key);

					greatest = ::max(greatest, number);
					least_inverted = ::max(least_inverted, ~number);
				}
			}
		}
		__syncthreads();
	}
	if (kept.plan.form != RHH_KEY_WIDE)
	{
		rhh_raise_by_block(&ctl->greatest_key, greatest, &most[0]);
		rhh_raise_by_block(&ctl->least_key_inverted, least_inverted, &most[1]);
	}
	if (lane == 0 && n_dropped > 0)
		atomicAdd((unsigned long long *) &ctl->dropped, (unsigned long long) n_dropped);
}

/* ---------- the index ---------- */

/* Which slots of a bucket have a fingerprint, or are free: a bit for the first word of each. */
struct rhh_bucket_look
{
	uint32_t	same;
	uint32_t	free_slots;
};

/* Looks at a bucket that others may be changing. */
template <int WORDS>
RHH_DEV rhh_bucket_look
rhh_look_at_bucket(const uint64_t *bucket, uint32_t fp)
{
	uint64_t	words[RHH_INDEX_BUCKET_WORDS];
	rhh_bucket_look look = {0, 0};

	RHH_UNROLL
	for (int w = 0; w < RHH_INDEX_BUCKET_WORDS; w += 2)
		rhh_load_relaxed_2x64(bucket + w, &words[w], &words[w + 1]);
	RHH_UNROLL
	for (int w = 0; w < RHH_INDEX_BUCKET_WORDS; w += WORDS)
	{
		look.same |= (uint32_t) ((uint32_t) (words[w] >> 32) == fp) << w;
		look.free_slots |= (uint32_t) (words[w] == RHH_EMPTY_SLOT) << w;
	}
	/* a free slot may look as if it had the fingerprint */
	look.same &= ~look.free_slots;
	return look;
}

/*
 * Enters a row into the first free slot from its home bucket on, unless a slot before that
 * has its key.  Returns the slot, or NULL.  WORDS is kept.slot_words.
 */
template <int WORDS>
RHH_DEV uint64_t *
rhh_enter_row(const rhh_kept_view &kept, uint32_t n_buckets, uint32_t row, uint64_t key,
			  uint32_t fp)
{
	const rhh_load_kept_key load = {kept, rhh_kept_at(kept, row)};
	uint32_t	b = rhh_home_bucket(fp, n_buckets);

	for (;;)
	{
		uint64_t   *bucket = kept.slots + (uint64_t) b * RHH_INDEX_BUCKET_WORDS;
		const rhh_bucket_look look = rhh_look_at_bucket<WORDS>(bucket, fp);

		for (uint32_t same = look.same; same != 0; same &= same - 1)
			if (rhh_fingerprint_is_key(kept.plan) ||
				rhh_row_has_key(kept, (uint32_t) bucket[__ffs((int) same) - 1], key, load))
				return NULL;
		if (look.free_slots != 0)
		{
			uint64_t   *slot = bucket + __ffs((int) look.free_slots) - 1;

			if (rhh_cas64(slot, RHH_EMPTY_SLOT, (uint64_t) fp << 32 | row))
				return slot;
			/* somebody has taken it, perhaps for the same key: once more */
		}
		else if (++b == n_buckets)
			b = 0;
	}
}

/*
 * Enters a row into the slot of its key in a direct index, unless that has another row of the
 * key.  Returns the slot, or NULL.  It is read first because a key may have very many rows.
 */
RHH_DEV uint64_t *
rhh_enter_direct(const rhh_kept_view &kept, uint32_t row, uint64_t key)
{
	uint64_t   *slot = kept.slots + (rhh_key_number(kept.plan.bits, key) - kept.least_key);
	const uint64_t filled = rhh_carried_bytes(kept, row) << 32 | row;

	return rhh_load_relaxed64(slot) == RHH_EMPTY_SLOT && rhh_cas64(slot, RHH_EMPTY_SLOT, filled)
		? slot : NULL;
}

/*
 * Enters each row whose key has no slot yet; ctl->placed counts these, and rows with NULL in
 * the key.  Of the rows with the same key it is any one.  With probe_stats it also counts the
 * slots that a search for each key looks at: no slot is emptied or moved later.  WORDS is
 * kept.slot_words, or RHH_DIRECT.
 */
template <int WORDS>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_index_kernel(const __grid_constant__ rhh_kept_view kept, bool probe_stats, rhh_control *ctl)
{
	const uint32_t n_buckets = rhh_index_buckets(kept);
	__shared__ uint32_t n_block;
	uint32_t	n_entered = 0;
	uint64_t	sum = 0;
	uint32_t	most = 0;

	if (threadIdx.x == 0)
		n_block = 0;
	__syncthreads();
	for (uint64_t row = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; row < kept.n_rows;
		 row += (uint64_t) gridDim.x * blockDim.x)
	{
		const rhh_load_kept_key load = {kept, rhh_kept_at(kept, (uint32_t) row)};
		uint64_t   *slot;
		uint64_t	key;
		uint32_t	fp;

		if (!rhh_make_key(kept.plan, load, &key, &fp))
		{
			n_entered++;
			continue;
		}
		if constexpr (WORDS == RHH_DIRECT)
			slot = rhh_enter_direct(kept, (uint32_t) row, key);
		else
			slot = rhh_enter_row<WORDS>(kept, n_buckets, (uint32_t) row, key, fp);
		if (slot == NULL)
			continue;
		n_entered++;
		if (WORDS == 2)
			slot[1] = rhh_carried_bytes(kept, (uint32_t) row);
		if (probe_stats)
		{
			const uint64_t at = (uint64_t) (slot - kept.slots) / kept.slot_words;
			const uint64_t home = WORDS == RHH_DIRECT ? at : rhh_home_slot(kept, fp);
			const uint32_t n_slots = (uint32_t) (at < home ? at + kept.n_slots - home : at - home) + 1;

			sum += n_slots;
			most = ::max(most, n_slots);
		}
	}
	if (n_entered > 0)
		atomicAdd(&n_block, n_entered);
	__syncthreads();
	if (threadIdx.x == 0 && n_block > 0)
		atomicAdd((unsigned long long *) &ctl->placed, (unsigned long long) n_block);
	if (probe_stats)
		rhh_count_probes(sum, most, ctl);
}

/*
 * Adds the lanes of a warp that have the same index to a counter of that index; lanes
 * with RHH_NO_ROW take no part.  Returns the counter as it was, plus the number of lanes
 * before the calling one that have the same.
 */
RHH_DEV uint32_t
rhh_add_lanes(uint32_t *counters, uint32_t index)
{
	const uint32_t lane = threadIdx.x & 31;
	uint32_t	same = __match_any_sync(RHH_WARP, index);
	int			leader = __ffs((int) same) - 1;
	uint32_t	before = 0;

	if (index != RHH_NO_ROW && (int) lane == leader)
		before = atomicAdd(&counters[index], (uint32_t) __popc(same));
	return __shfl_sync(RHH_WARP, before, leader) + (uint32_t) __popc(same & ((1u << lane) - 1));
}

/*
 * Finds for each row the row that stands for its key, the one in the slot, and counts the
 * rows for which a row stands.  For a row with NULL in the key, none does.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_list_count_kernel(const __grid_constant__ rhh_kept_view kept, uint32_t *stands, uint32_t *counts)
{
	const uint32_t lane = threadIdx.x & 31;

	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u); first < kept.n_rows;
		 first += gridDim.x * blockDim.x)
	{
		uint32_t	row = (uint32_t) first + lane;
		uint32_t	found = RHH_NO_ROW;

		if (row < kept.n_rows)
		{
			const rhh_load_kept_key load = {kept, rhh_kept_at(kept, row)};
			uint64_t	key;
			uint32_t	fp;

			if (rhh_make_key(kept.plan, load, &key, &fp))
				found = rhh_find_key(kept, key, fp, load);
			stands[row] = found;
		}
		(void) rhh_add_lanes(counts, found);
	}
}

/*
 * Gives each key with rows a place in lists[], writes how many they are at the end of it, and
 * puts the place's beginning where the count was.  A block takes places for all its rows
 * at a time; *n_listed is the length of lists[].
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_list_place_kernel(uint32_t n_rows, uint32_t *counts, uint32_t *lists, uint64_t *n_listed)
{
	__shared__ uint32_t warp_sums[RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	__shared__ uint32_t block_begin;

	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x; first < n_rows;
		 first += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t	row = first + threadIdx.x;
		uint32_t	count = row < n_rows ? counts[row] : 0;
		uint32_t	all;
		uint32_t	begin;

		begin = rhh_block_scan<RHH_CUDA_BLOCK_THREADS>(count > 0 ? count + 1 : 0, warp_sums, &all);
		if (threadIdx.x == 0)
			block_begin = (uint32_t) atomicAdd((unsigned long long *) n_listed,
											   (unsigned long long) all);
		__syncthreads();
		begin += block_begin;
		if (count > 0)
		{
			counts[row] = begin;
			lists[begin + count] = count;
		}
		__syncthreads();
	}
}

/* Puts each row into the list of its key.  ends[] begins as counts[] of the place kernel. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_list_fill_kernel(uint32_t n_rows, const uint32_t *stands, uint32_t *ends, uint32_t *lists)
{
	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u); first < n_rows;
		 first += gridDim.x * blockDim.x)
	{
		uint64_t	row = first + (threadIdx.x & 31);
		uint32_t	stand = row < n_rows ? stands[row] : RHH_NO_ROW;
		uint32_t	at = rhh_add_lanes(ends, stand);

		if (stand != RHH_NO_ROW)
			lists[at] = (uint32_t) row;
	}
}

/* In each slot, puts where the list ends instead of the row that stands for the key. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_list_slots_kernel(const __grid_constant__ rhh_kept_view kept, const uint32_t *ends)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < kept.n_slots;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t   *slot = kept.slots + i * kept.slot_words;

		if (*slot != RHH_EMPTY_SLOT)
			*slot = (*slot & ~(uint64_t) UINT32_MAX) | ends[(uint32_t) *slot];
	}
}

#endif							/* RHH_KEPT_CUH */
