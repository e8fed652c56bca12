/*
 * rhh_table.cuh
 *		The Robin Hood table on the device: layout, invariants, primitives.
 *
 * A table is an array of buckets of one 128-byte line, read by a tile of as
 * many lanes as a bucket has slots, one slot a lane, one key a tile.
 *
 *	8-byte slots, 16 a bucket, tiles of 16 lanes:
 *
 *		+-------------+-------------+--   --+-------------+
 *		| group   fp  | group   fp  |  ...  | group   fp  |
 *		| 0..3   4..7 | 8..11       |       | 120..   127 |
 *		+-------------+-------------+--   --+-------------+
 *
 *	16-byte slots, 8 a bucket, tiles of 8 lanes (sm_90 and later):
 *
 *		+----------------------+----------------------+--   --+
 *		| key     group   fp   | key     group   fp   |  ...  |
 *		| 0..7    8..11 12..15 | 16..23               |       |
 *		+----------------------+----------------------+--   --+
 *
 * A slot is EMPTY when its group number is RHH_NO_GROUP; an empty table is all
 * ones.  Which slot serves which key:
 *
 *		keys of <= 32 bits		8 bytes; the fingerprint is the key
 *		keys of 33..64 bits		16 bytes where the device has a 128-bit CAS,
 *								else 8 bytes, verified
 *		WIDE keys				8 bytes, verified
 *
 * Verified: equal fingerprints are followed by comparing the key words, dense
 * by group number, keys[group * n_key_words + w].  They are written and fenced
 * before the slot that makes the number visible is stored.
 *
 * Transition states are dense by group number too, states[group *
 * n_state_words + w] (one group's words share sectors, for updates are random
 * accesses).  All numbers' states are initialised when the array is made, so
 * before any number is visible.  Displacing moves slots only.
 *
 * Distances.  The home bucket is taken from the fingerprint; an entry in bucket
 * b has the distance (b - home) mod n_buckets, below max_dist <= n_buckets.  An
 * EMPTY slot ranks as distance -1.  The code's "rank" is distance + 1.
 *
 * Invariants, for a table of unchanging size:
 *
 *	(1) A slot's rank only grows.  The one store is a CAS that replaces an
 *		entry by a strictly poorer one (EMPTY being the richest).  So no slot
 *		becomes EMPTY again, and no slot holds the same bits twice: the CAS has
 *		no ABA problem, and what another lane read earlier is a lower bound.
 *
 *	(2) An entry at distance d has, in each bucket at distance j < d of its path,
 *		only ranks > j.  It went past them because it saw so, or was displaced
 *		from a bucket where it ranked least, and by (1) it stays so.  Hence the
 *		early exit: a probe may stop at the first bucket at distance j that holds
 *		a rank <= j; an entry of that key is not further on.  This holds for
 *		every copy of a key and for a table in motion.
 *
 *	(3) Two tiles that insert the same key make one copy of it, unless one was
 *		carried (below).  They meet in the same bucket, because neither can store
 *		behind the other (2).  There each takes the slot of the least rank, the
 *		lowest lane among equals, by a CAS on what it read.  Say A took slot r,
 *		then B another slot s.  B read r before A's CAS, or it would have found
 *		the key.  By (1), rank_B(r) <= rank_A(r) <= rank_A(s) <= rank_B(s) <=
 *		rank_B(r), where rank_A(s) <= rank_B(s) because A read s before B's CAS
 *		found it unchanged.  All equal, so A prefers r, and so does B, to s: a
 *		contradiction.
 *
 *	(4) Duplicates.  While a tile carries a displaced entry in registers, another
 *		may look for its key, not find it and insert it again, with another
 *		group number.  Both copies aggregate rows; reconciling (rhh_kernels.cuh)
 *		merges them when the table is at rest.  A probe that finds either is
 *		right, one that reads a slot long replaced too: a group number is its
 *		key's for ever.
 *
 *	(5) Orphans.  A row fails before anything is stored: its key was not found,
 *		and has no place within max_dist, or no number is left, or the list of
 *		orphans is nearly full.  Once its own key is stored the row has
 *		succeeded; what it displaced is carried on, and where that finds no
 *		place it is appended to the list.  Room is certain: a tile looks at the
 *		length before it first displaces, refuses at orphan_limit = capacity -
 *		tiles of the launch, and appends at most once before it looks again.
 *		(If the list ran over, the appends after it reached orphan_limit would
 *		be more than one per tile, yet each looked before that moment.)
 *
 * Group numbers come from a counter, in chunks that a tile keeps in reserve;
 * view.reserves carries them from launch to launch.  Numbers need not be dense.
 *
 * Unless stated otherwise a primitive is called by all lanes of a tile with the
 * same arguments, synchronises the tile only, and returns the same to all.
 */
#ifndef RHH_TABLE_CUH
#define RHH_TABLE_CUH

#include "rhh_keys.h"
#include "rhh_cuda_tuning.h"

#define RHH_BUCKET_BYTES 128
#define RHH_NO_GROUP 0xFFFFFFFFu
#define RHH_MAX_GROUPS 0xFFFF0000u
#define RHH_MAX_DIST (1u << 26) /* rhh_richest packs a rank and a lane */

#define RHH_DEV static __device__ __forceinline__

/* A slot or an orphan in registers; key is unused with 8-byte slots. */
struct rhh_entry
{
	uint64_t	key;
	uint32_t	fp;
	uint32_t	group;
};

/* An orphan in memory, laid out as a 16-byte slot. */
struct __align__(16) rhh_orphan
{
	uint64_t	key;
	uint32_t	group;
	uint32_t	fp;
};

/* Numbers from next to end are the tile's to hand out. */
struct rhh_reserve
{
	uint32_t	next;
	uint32_t	end;
};

/*
 * A table's counters in device memory, copied to the host after each step.
 * orphans[] has the length of each of the two orphan lists, failed[] the failed
 * rows of each batch in flight.
 */
struct rhh_control
{
	uint64_t	placed;			/* entries inserted for new keys */
	uint64_t	cap_hits;		/* inserts, own or carried, without a place */
	uint64_t	merged;
	uint64_t	live;			/* entries compacted */
	uint64_t	probe_sum;
	uint32_t	probe_max;
	uint32_t	chunk_live;		/* of the chunk being compacted */
	uint32_t	n_numbers;		/* may exceed group_cap */
	uint32_t	displaced;		/* flag: some insert displaced an entry */
	uint32_t	null_seen;		/* flag: SINGLE's NULL group, number 0 */
	uint32_t	overrun;		/* flag: an orphan list ran over */
	uint32_t	orphans[2];
	uint32_t	failed[RHH_CUDA_IN_FLIGHT];
};

/* Where a table is, a kernel's argument. */
struct rhh_view
{
	void	   *slots;
	uint64_t   *states;
	uint64_t   *keys;			/* verified keys only */
	uint32_t   *dead;			/* bitmap by group number, when finishing */
	rhh_orphan *orphans;
	uint32_t   *n_orphans;
	rhh_control *ctl;
	rhh_reserve *reserves;		/* by number of the tile in the grid */
	uint32_t	n_buckets;
	uint32_t	max_dist;		/* 1..n_buckets */
	uint32_t	group_cap;
	uint32_t	chunk;			/* numbers taken at a time */
	uint32_t	orphan_limit;	/* refuse to displace at this length */
	uint32_t	orphan_cap;
};

/* Where a batch is, a kernel's argument.  Offsets as in rhh_batch. */
struct rhh_rows
{
	const uint8_t *base;
	uint32_t   *failed;			/* bitmap */
	uint32_t   *n_failed;
	uint32_t	n_rows;
	uint32_t	values_offset[RHH_MAX_COLUMNS];
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];
};

#define RHH_MAX_STATE_WORDS (3 * RHH_MAX_STATES)

enum rhh_init
{
	RHH_INIT_ZERO,
	RHH_INIT_MOST,				/* INT64_MAX */
	RHH_INIT_LEAST				/* INT64_MIN */
};

struct rhh_program_state
{
	uint8_t		op;				/* rhh_state_op */
	uint8_t		bytes;			/* of the argument */
	int8_t		arg;
	int8_t		filter;
	uint8_t		word;			/* its first word of the group's */
};

/*
 * What to compute, a kernel's argument.  A state's words are those of the
 * result, but for SUM_I128, which has the sum of the values' low unsigned 32
 * bits and that of their high signed 32 bits: exact for 2^31 rows.
 */
struct rhh_program
{
	rhh_key_plan plan;
	uint8_t		n_states;
	uint8_t		n_state_words;
	uint16_t	n_result_words;
	rhh_program_state states[RHH_MAX_STATES];
	uint8_t		word_key[RHH_MAX_KEY_WORDS];	/* WIDE: the key of a word */
	uint8_t		init[RHH_MAX_STATE_WORDS];	/* rhh_init of a state word */
};

/* ---------- tiles ---------- */

/*
 * LANES consecutive lanes of a warp.  Other tiles of the warp may be anywhere
 * else: every operation names its lanes.
 */
template <int LANES>
struct rhh_tile
{
	uint32_t	rank;
	uint32_t	shift;
	uint32_t	mask;

	__device__ __forceinline__ rhh_tile()
	{
		uint32_t	lane = threadIdx.x & 31;

		rank = lane & (LANES - 1);
		shift = lane & ~(uint32_t) (LANES - 1);
		mask = ((1u << LANES) - 1) << shift;
	}

	/* Bit i: lane i of the tile says yes. */
	__device__ __forceinline__ uint32_t ballot(bool yes) const
	{
		return (__ballot_sync(mask, yes) >> shift) & ((1u << LANES) - 1);
	}

	__device__ __forceinline__ bool all(bool yes) const
	{
		return __all_sync(mask, yes);
	}

	template <typename T>
	__device__ __forceinline__ T shfl(T value, int from) const
	{
		return __shfl_sync(mask, value, from, LANES);
	}

	__device__ __forceinline__ uint32_t min(uint32_t value) const
	{
		for (int step = LANES / 2; step > 0; step /= 2)
			value = ::min(value, __shfl_xor_sync(mask, value, step, LANES));
		return value;
	}

	__device__ __forceinline__ void sync() const
	{
		__syncwarp(mask);
	}
};

/* What a tile keeps from key to key; uniform across it. */
struct rhh_tally
{
	rhh_reserve reserve;
	uint32_t	placed;
	uint32_t	cap_hits;
};

/* ---------- memory ---------- */

/*
 * Reads past L1, which other SMs' stores do not reach.  volatile: a retry must
 * read again.
 */
RHH_DEV uint64_t
rhh_load_shared64(const uint64_t *p)
{
	uint64_t	v;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
				 : "=l"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
}

RHH_DEV uint32_t
rhh_load_shared32(const uint32_t *p)
{
	uint32_t	v;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
				 : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
	return v;
}

template <int BYTES>
struct rhh_slots;

template <>
struct rhh_slots<8>
{
	static const int N = 16;	/* slots of a bucket, lanes of a tile */

	static __device__ __forceinline__ rhh_entry unpack(uint64_t raw)
	{
		rhh_entry	e = {0, (uint32_t) (raw >> 32), (uint32_t) raw};

		return e;
	}

	static __device__ __forceinline__ uint64_t pack(const rhh_entry &e)
	{
		return (uint64_t) e.fp << 32 | e.group;
	}

	static __device__ __forceinline__ rhh_entry load(const void *slots, uint64_t i)
	{
		return unpack(rhh_load_shared64((const uint64_t *) slots + i));
	}

	/* Through L1: possibly old, see (4). */
	static __device__ __forceinline__ rhh_entry load_old(const void *slots, uint64_t i)
	{
		uint64_t	raw;

		asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(raw)
					 : "l"(__cvta_generic_to_global((const uint64_t *) slots + i))
					 : "memory");
		return unpack(raw);
	}

	/* By one lane. */
	static __device__ __forceinline__ bool cas(void *slots, uint64_t i,
											   const rhh_entry &expected,
											   const rhh_entry &desired)
	{
		unsigned long long *p = (unsigned long long *) slots + i;

		return atomicCAS(p, pack(expected), pack(desired)) == pack(expected);
	}

	static __device__ __forceinline__ bool same(const rhh_entry &e, uint64_t key,
												uint32_t fp)
	{
		return e.group != RHH_NO_GROUP && e.fp == fp;
	}
};

template <>
struct rhh_slots<16>
{
	static const int N = 8;

	static __device__ __forceinline__ rhh_entry load(const void *slots, uint64_t i)
	{
		rhh_entry	e;
		uint64_t	rest;
		const ulonglong2 *p = (const ulonglong2 *) slots + i;

#if __CUDA_ARCH__ >= 900
		/* One access by the memory model, not two halves. */
		asm volatile("{\n\t.reg .b128 raw;\n\t"
					 "ld.relaxed.gpu.global.b128 raw, [%2];\n\t"
					 "mov.b128 {%0, %1}, raw;\n\t}"
					 : "=l"(e.key), "=l"(rest)
					 : "l"(__cvta_generic_to_global(p)) : "memory");
#else
		e.key = p->x;
		rest = p->y;
#endif
		e.fp = (uint32_t) (rest >> 32);
		e.group = (uint32_t) rest;
		return e;
	}

	/*
	 * Through L1: possibly old, see (4).  That the halves belong together is
	 * checked by same(), which compares the fingerprint beside the group
	 * number with the key's.
	 */
	static __device__ __forceinline__ rhh_entry load_old(const void *slots, uint64_t i)
	{
		rhh_entry	e;
		uint64_t	rest;

		asm volatile("ld.global.ca.v2.u64 {%0, %1}, [%2];"
					 : "=l"(e.key), "=l"(rest)
					 : "l"(__cvta_generic_to_global((const ulonglong2 *) slots + i))
					 : "memory");
		e.fp = (uint32_t) (rest >> 32);
		e.group = (uint32_t) rest;
		return e;
	}

	/* By one lane. */
	static __device__ __forceinline__ bool cas(void *slots, uint64_t i,
											   const rhh_entry &expected,
											   const rhh_entry &desired)
	{
#if __CUDA_ARCH__ >= 900
		uint64_t	e1 = (uint64_t) expected.fp << 32 | expected.group;
		uint64_t	d1 = (uint64_t) desired.fp << 32 | desired.group;
		uint64_t	o0,
					o1;

		asm volatile("{\n\t.reg .b128 c, d, o;\n\t"
					 "mov.b128 c, {%2, %3};\n\t"
					 "mov.b128 d, {%4, %5};\n\t"
					 "atom.relaxed.gpu.global.cas.b128 o, [%6], c, d;\n\t"
					 "mov.b128 {%0, %1}, o;\n\t}"
					 : "=l"(o0), "=l"(o1)
					 : "l"(expected.key), "l"(e1), "l"(desired.key), "l"(d1),
					 "l"(__cvta_generic_to_global((ulonglong2 *) slots + i))
					 : "memory");
		return o0 == expected.key && o1 == e1;
#else
		__trap();				/* the host does not choose these slots here */
		return false;
#endif
	}

	static __device__ __forceinline__ bool same(const rhh_entry &e, uint64_t key,
												uint32_t fp)
	{
		return e.group != RHH_NO_GROUP && e.key == key && e.fp == fp;
	}
};

/* distance + 1 of an entry in a bucket, 0 if EMPTY.  Any lane by itself. */
RHH_DEV uint32_t
rhh_rank(const rhh_view &view, const rhh_entry &e, uint32_t bucket)
{
	uint32_t	home = rhh_home_bucket(e.fp, view.n_buckets);
	uint32_t	dist = bucket >= home ? bucket - home
		: bucket + view.n_buckets - home;

	return e.group == RHH_NO_GROUP ? 0 : dist + 1;
}

RHH_DEV uint32_t
rhh_next_bucket(const rhh_view &view, uint32_t bucket)
{
	return bucket + 1 == view.n_buckets ? 0 : bucket + 1;
}

/*
 * The lane of the least rank, the lowest among equals (3 depends on it).
 */
template <int N>
RHH_DEV int
rhh_richest(const rhh_tile<N> &tile, uint32_t rank)
{
	uint32_t	empty = tile.ballot(rank == 0);

	if (empty)
		return __ffs(empty) - 1;
	return (int) (tile.min(rank << 5 | tile.rank) & 31);
}

template <int N>
RHH_DEV rhh_entry
rhh_entry_of(const rhh_tile<N> &tile, const rhh_entry &e, int lane)
{
	rhh_entry	r;

	r.key = tile.shfl(e.key, lane);
	r.fp = tile.shfl(e.fp, lane);
	r.group = tile.shfl(e.group, lane);
	return r;
}

/* ---------- rows ---------- */

RHH_DEV bool
rhh_is_null(const rhh_rows &rows, uint32_t column, uint32_t row)
{
	uint32_t	at = rows.nulls_offset[column];

	return at != 0 && (rows.base[at + (row >> 3)] >> (row & 7) & 1);
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

/* Word w of a row's WIDE key, whose word of NULL bits the caller has. */
RHH_DEV uint64_t
rhh_wide_word(const rhh_program &prog, const rhh_rows &rows, uint32_t row,
			  uint64_t nulls, uint32_t w)
{
	uint32_t	k;

	if (w == 0)
		return nulls;
	k = prog.word_key[w];
	if (nulls >> k & 1)
		return 0;
	return w == prog.plan.shift[k]
		? rhh_value(rows, prog.plan.column[k], prog.plan.bytes[k], row)
		: rhh_value_high(rows, prog.plan.column[k], row);
}

/*
 * A row's key, by one thread: SINGLE's and PACKED's key or WIDE's word of NULL
 * bits, and the fingerprint.  True if it is SINGLE's NULL, which has neither.
 */
RHH_DEV bool
rhh_pack_key(const rhh_program &prog, const rhh_rows &rows, uint32_t row,
			 uint64_t *key, uint32_t *fp)
{
	const rhh_key_plan &plan = prog.plan;

	if (plan.form == RHH_KEY_SINGLE)
	{
		*key = rhh_value(rows, plan.column[0], plan.bytes[0], row);
		*fp = rhh_fingerprint(*key, plan.bits);
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
		*fp = rhh_fingerprint(packed, plan.bits);
	}
	else
	{
		uint64_t	nulls = 0,
					hash = RHH_WIDE_SEED;

		for (uint32_t k = 0; k < plan.n_keys; k++)
			nulls |= (uint64_t) rhh_is_null(rows, plan.column[k], row) << k;
		for (uint32_t w = 0; w < plan.n_words; w++)
			hash = rhh_mix_word(hash, rhh_wide_word(prog, rows, row, nulls, w));
		*key = nulls;
		*fp = (uint32_t) (hash >> 32);
	}
	return false;
}

/* Word w of a verified key: of a row, any lane by itself. */
RHH_DEV uint64_t
rhh_row_key_word(const rhh_program &prog, const rhh_rows &rows, uint32_t row,
				 uint64_t key, uint32_t w)
{
	return prog.plan.form == RHH_KEY_WIDE
		? rhh_wide_word(prog, rows, row, key, w) : key;
}

/* Does the group have the row's key?  Its slot has been seen. */
template <int N>
RHH_DEV bool
rhh_group_is_row(const rhh_view &view, const rhh_program &prog,
				 const rhh_rows &rows, const rhh_tile<N> &tile, uint32_t group,
				 uint32_t row, uint64_t key)
{
	const uint64_t *words = view.keys + (size_t) group * prog.plan.n_words;
	bool		same = true;

	for (uint32_t w = tile.rank; w < prog.plan.n_words; w += N)
		same = same && rhh_load_shared64(&words[w])
			== rhh_row_key_word(prog, rows, row, key, w);
	return tile.all(same);
}

/* Do two groups have the same key?  Both published. */
template <int N>
RHH_DEV bool
rhh_group_is_group(const rhh_view &view, const rhh_program &prog,
				   const rhh_tile<N> &tile, uint32_t a, uint32_t b)
{
	const uint64_t *x = view.keys + (size_t) a * prog.plan.n_words;
	const uint64_t *y = view.keys + (size_t) b * prog.plan.n_words;
	bool		same = true;

	for (uint32_t w = tile.rank; w < prog.plan.n_words; w += N)
		same = same && rhh_load_shared64(&x[w]) == rhh_load_shared64(&y[w]);
	return tile.all(same);
}

/* Stores a row's key words for a number that nobody else can see yet. */
template <int N>
RHH_DEV void
rhh_store_key(const rhh_view &view, const rhh_program &prog,
			  const rhh_rows &rows, const rhh_tile<N> &tile, uint32_t group,
			  uint32_t row, uint64_t key)
{
	uint64_t   *words = view.keys + (size_t) group * prog.plan.n_words;

	for (uint32_t w = tile.rank; w < prog.plan.n_words; w += N)
		words[w] = rhh_row_key_word(prog, rows, row, key, w);
	/* Before the CAS that any lane of the tile makes after this. */
	__threadfence();
	tile.sync();
}

/* ---------- finding and inserting ---------- */

/*
 * The number that the next new key gets, RHH_NO_GROUP if none is left.  It
 * stays in the reserve until the caller uses it.
 */
template <int N>
RHH_DEV uint32_t
rhh_next_number(const rhh_view &view, const rhh_tile<N> &tile, rhh_reserve *reserve)
{
	if (reserve->next == reserve->end)
	{
		uint32_t	first = RHH_NO_GROUP;

		/* Look first, so that the counter stops soon behind group_cap. */
		if (tile.rank == 0 &&
			rhh_load_shared32(&view.ctl->n_numbers) < view.group_cap)
			first = atomicAdd(&view.ctl->n_numbers, view.chunk);
		first = tile.shfl(first, 0);
		if (first >= view.group_cap)
			return RHH_NO_GROUP;
		reserve->next = first;
		reserve->end = ::min(first + view.chunk, view.group_cap);
	}
	return reserve->next;
}

/* Appends an entry without a place; by (5) there is room in a batch's kernel. */
template <int N>
RHH_DEV void
rhh_append_orphan(const rhh_view &view, const rhh_tile<N> &tile, const rhh_entry &e)
{
	if (tile.rank == 0)
	{
		uint32_t	i = atomicAdd(view.n_orphans, 1u);

		if (i < view.orphan_cap)
		{
			rhh_orphan	o = {e.key, e.group, e.fp};

			view.orphans[i] = o;
		}
		else
			view.ctl->overrun = 1;
	}
}

/*
 * Gives an entry a place from a bucket at a distance on; looks for no equal
 * key.  What it displaces is carried on in turn; the last without a place
 * becomes an orphan.  False then.
 */
template <int BYTES>
RHH_DEV bool
rhh_place(const rhh_view &view, const rhh_tile<rhh_slots<BYTES>::N> &tile,
		  rhh_entry carried, uint32_t bucket, uint32_t dist)
{
	typedef rhh_slots<BYTES> slots;

	for (uint32_t step = 0; dist < view.max_dist && step < RHH_CUDA_MAX_CHAIN; step++)
	{
		uint64_t	at = (uint64_t) bucket * slots::N + tile.rank;
		rhh_entry	e = slots::load(view.slots, at);
		uint32_t	rank = rhh_rank(view, e, bucket);

		if (tile.ballot(rank <= dist))
		{
			int			lane = rhh_richest(tile, rank);
			bool		done = false;
			uint32_t	victim_rank;

			if (tile.rank == (uint32_t) lane)
				done = slots::cas(view.slots, at, e, carried);
			if (!tile.shfl((int) done, lane))
				continue;		/* somebody was faster: look again */
			victim_rank = tile.shfl(rank, lane);
			if (victim_rank == 0)
				return true;
			carried = rhh_entry_of(tile, e, lane);
			dist = victim_rank - 1;
		}
		dist++;
		bucket = rhh_next_bucket(view, bucket);
	}
	rhh_append_orphan(view, tile, carried);
	return false;
}

/*
 * The group number of a row's key if a look through L1 finds it, else
 * RHH_NO_GROUP, which says nothing.
 */
template <int BYTES, bool VERIFY>
RHH_DEV uint32_t
rhh_find_old(const rhh_view &view, const rhh_program &prog, const rhh_rows &rows,
			 const rhh_tile<rhh_slots<BYTES>::N> &tile, uint64_t key,
			 uint32_t fp, uint32_t row)
{
	typedef rhh_slots<BYTES> slots;
	uint32_t	bucket = rhh_home_bucket(fp, view.n_buckets);

	for (uint32_t dist = 0; dist < view.max_dist; dist++)
	{
		uint64_t	at = (uint64_t) bucket * slots::N + tile.rank;
		rhh_entry	e = slots::load_old(view.slots, at);
		uint32_t	match = tile.ballot(slots::same(e, key, fp));

		for (; match; match &= match - 1)
		{
			uint32_t	group = tile.shfl(e.group, __ffs(match) - 1);

			if (!VERIFY ||
				rhh_group_is_row(view, prog, rows, tile, group, row, key))
				return group;
		}
		if (tile.ballot(rhh_rank(view, e, bucket) <= dist))
			break;
		bucket = rhh_next_bucket(view, bucket);
	}
	return RHH_NO_GROUP;
}

/*
 * The group number of a row's key, inserted if it is new; RHH_NO_GROUP if the
 * row fails, and then nothing was stored that anybody can see.
 */
template <int BYTES, bool VERIFY>
RHH_DEV uint32_t
rhh_find_or_insert(const rhh_view &view, const rhh_program &prog,
				   const rhh_rows &rows, const rhh_tile<rhh_slots<BYTES>::N> &tile,
				   uint64_t key, uint32_t fp, uint32_t row, rhh_tally *tally)
{
	typedef rhh_slots<BYTES> slots;
	uint32_t	bucket = rhh_home_bucket(fp, view.n_buckets);
	bool		key_stored = false;

	for (uint32_t dist = 0; dist < view.max_dist;)
	{
		uint64_t	at = (uint64_t) bucket * slots::N + tile.rank;
		rhh_entry	e = slots::load(view.slots, at);
		uint32_t	match = tile.ballot(slots::same(e, key, fp));
		uint32_t	rank,
					victim_rank;
		rhh_entry	mine;
		bool		done = false;
		int			lane;

		for (; match; match &= match - 1)
		{
			uint32_t	group = tile.shfl(e.group, __ffs(match) - 1);

			if (!VERIFY ||
				rhh_group_is_row(view, prog, rows, tile, group, row, key))
				return group;
		}

		rank = rhh_rank(view, e, bucket);
		if (!tile.ballot(rank <= dist))
		{
			dist++;
			bucket = rhh_next_bucket(view, bucket);
			continue;
		}

		/* The key is new, or being carried (4). */
		lane = rhh_richest(tile, rank);
		victim_rank = tile.shfl(rank, lane);
		mine.key = key;
		mine.fp = fp;
		mine.group = rhh_next_number(view, tile, &tally->reserve);
		if (mine.group == RHH_NO_GROUP)
			return RHH_NO_GROUP;
		if (victim_rank > 0)
		{
			uint32_t	length = 0;

			/* One lane looks: two might see different lengths. */
			if (tile.rank == 0)
				length = rhh_load_shared32(view.n_orphans);
			if (tile.shfl(length, 0) >= view.orphan_limit)
				return RHH_NO_GROUP;
		}
		if (VERIFY && !key_stored)
		{
			rhh_store_key(view, prog, rows, tile, mine.group, row, key);
			key_stored = true;
		}
		if (tile.rank == (uint32_t) lane)
			done = slots::cas(view.slots, at, e, mine);
		if (!tile.shfl((int) done, lane))
			continue;			/* somebody was faster: look again, same bucket */

		tally->reserve.next++;
		tally->placed++;
		if (victim_rank > 0)
		{
			/* Racing stores of the same value; usually it is there already. */
			if (tile.rank == 0 && rhh_load_shared32(&view.ctl->displaced) == 0)
				view.ctl->displaced = 1;
			if (!rhh_place<BYTES>(view, tile, rhh_entry_of(tile, e, lane),
								  rhh_next_bucket(view, bucket), victim_rank))
				tally->cap_hits++;
		}
		return mine.group;
	}
	tally->cap_hits++;
	return RHH_NO_GROUP;
}

/*
 * The least group number among the slots with an entry's key, the entry's own
 * included, RHH_NO_GROUP if there is none.  The table is at rest.  By (2) all
 * copies lie before the first bucket that ends a probe.
 */
template <int BYTES, bool VERIFY>
RHH_DEV uint32_t
rhh_least_copy(const rhh_view &view, const rhh_program &prog,
			   const rhh_tile<rhh_slots<BYTES>::N> &tile, const rhh_entry &me)
{
	typedef rhh_slots<BYTES> slots;
	uint32_t	bucket = rhh_home_bucket(me.fp, view.n_buckets);
	uint32_t	least = RHH_NO_GROUP;

	for (uint32_t dist = 0; dist < view.max_dist; dist++)
	{
		uint64_t	at = (uint64_t) bucket * slots::N + tile.rank;
		rhh_entry	e = slots::load(view.slots, at);
		uint32_t	match = tile.ballot(slots::same(e, me.key, me.fp));

		for (; match; match &= match - 1)
		{
			uint32_t	group = tile.shfl(e.group, __ffs(match) - 1);

			if (group < least &&
				(!VERIFY || group == me.group ||
				 rhh_group_is_group(view, prog, tile, group, me.group)))
				least = group;
		}
		if (tile.ballot(rhh_rank(view, e, bucket) <= dist))
			break;
		bucket = rhh_next_bucket(view, bucket);
	}
	return least;
}

/* ---------- transition states ---------- */

/*
 * Adds, wrapping.  Shared memory has no 64-bit add of its own (it would be a
 * loop of CAS, slow on few words): two adds of 32 bits with the carry of this
 * add's place in the order of all, whose sum is the same.
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

		if (low != 0 && atomicAdd(&half[0], low) + low < low)
			high++;
		if (high != 0)
			atomicAdd(&half[1], high);
	}
	else
		atomicAdd((unsigned long long *) word, (unsigned long long) value);
}

/* Most values change nothing: look before paying for an atomic. */
RHH_DEV void
rhh_lower(uint64_t *word, int64_t value)
{
	if (value < *(volatile long long *) word)
		atomicMin((long long *) word, (long long) value);
}

RHH_DEV void
rhh_raise(uint64_t *word, int64_t value)
{
	if (value > *(volatile long long *) word)
		atomicMax((long long *) word, (long long) value);
}

/* ANY: all rows of a group store the same, so racing does not matter. */
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

/* A row's part in a group's states; any thread by itself. */
template <bool LOCAL>
RHH_DEV void
rhh_update(const rhh_program &prog, const rhh_rows &rows, uint32_t row, uint64_t *words)
{
	for (uint32_t s = 0; s < prog.n_states; s++)
	{
		const rhh_program_state &st = prog.states[s];
		uint64_t   *word = words + st.word;

		if (st.filter >= 0 && rhh_value(rows, st.filter, 1, row) == 0)
			continue;
		if (st.arg >= 0 && rhh_is_null(rows, st.arg, row))
			continue;
		switch (st.op)
		{
			case RHH_COUNT:
				rhh_add<LOCAL>(word, 1);
				break;
			case RHH_SUM_I64:
				rhh_add<LOCAL>(word, rhh_signed_value(rows, st.arg, st.bytes, row));
				break;
			case RHH_SUM_I128:
				{
					int64_t		v = rhh_signed_value(rows, st.arg, st.bytes, row);

					rhh_add<LOCAL>(word, (uint32_t) v);
					rhh_add<LOCAL>(word + 1, (uint64_t) (v >> 32));
				}
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
		}
	}
}

/*
 * Combines one state of a group into another group's; any thread by itself.
 * from is at rest, into may be combined into by others meanwhile.
 */
RHH_DEV void
rhh_merge_state(const rhh_program_state &st, uint64_t *into, const uint64_t *from)
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
	}
}

#endif							/* RHH_TABLE_CUH */
