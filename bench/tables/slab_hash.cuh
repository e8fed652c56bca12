/*
 * slab_hash.cuh
 *		The slab hash: chaining with lists of 128-byte slabs, operations on it
 *		by whole warps, in any mixture, with no lock.
 *
 * After S. Ashkiani, M. Farach-Colton, J. D. Owens, "A dynamic hash table for
 * the GPU", IPDPS 2018.  32-bit keys and values only, as there.
 *
 *	base slabs, one a bucket            chained slabs, of slab_alloc.cuh
 *	+-------------------------+         +-------------------------+
 *	| 15 pairs | aux | next --+-------> | 15 pairs | aux | next = SLAB_NULL
 *	+-------------------------+         +-------------------------+
 *	| 15 pairs | aux | next = SLAB_NULL
 *	+----------
 *
 *	a slab, a word a lane:
 *		lane	0     1      2     3          28    29     30    31
 *				key   value  key   value ...  key   value  aux   next
 *
 * aux is not used.  A pair's key is SLAB_EMPTY_KEY (then the value is all ones
 * too), a key, or SLAB_DELETED_KEY (the value stays).  These two keys cannot be
 * stored: such operations fail.  A value of all ones can be stored, but find
 * cannot tell it from none.
 *
 * Warp-cooperative work sharing.  Each lane brings an operation.  The lanes that
 * are not done are the warp's queue (a ballot); the warp takes one lane's
 * operation at a time, and all its lanes look at the slab where that one has
 * got to.  The lane then is done, or goes on to the next slab, or looks at the
 * same slab again.  Unlike in the paper the warp takes SLAB_IN_FLIGHT lanes'
 * operations at a time: it reads that many slabs before it looks at the first,
 * and lanes that have found their pair do their compare-and-swaps together.
 *
 * Operations (slab_op):
 *
 *	INSERT		adds the pair, in the first empty place of the list, whatever
 *				else the list has of that key.
 *	REPLACE		writes the value of the key's first pair; where there is none,
 *				adds one in the first empty place.
 *	DELETE		deletes the key's first pair.
 *	DELETE_ALL	deletes every pair of the key that it comes upon.
 *	SEARCH		the value of the key's first pair.
 *	SEARCH_ALL	how many pairs the key has; search_all() gets the values as well.
 *
 * "First" is in the order of the list, so of copies the oldest that is there.
 * Of equal keys in one batch, too, the operations are concurrent: REPLACE leaves
 * any one's value, SEARCH finds what was there before or any of them.
 *
 * What may run at the same time: these operations, in one kernel or several, on
 * any streams; size() and stats() too, which then count what they come upon.
 * create(), destroy(), clear() and flush() want the table for themselves.
 *
 * Invariants, between two flushes:
 *
 *	(1) A pair is empty, then has one key, then is deleted; never backwards.
 *		Deleted pairs are not used again until flush().  Only REPLACE changes a
 *		value, while the key stays.  A next pointer is SLAB_NULL, then one
 *		address.  So no compare-and-swap has an ABA problem that matters (a value
 *		may change and change back under REPLACE or DELETE: they then act on the
 *		later one), and nobody stands on a slab that goes away.  A slab is only
 *		given back by the warp that allocated it and lost the race to append it,
 *		and then nobody has seen it.
 *
 *	(2) Pairs are taken in the order of the list.  Who takes one has seen all
 *		before it not empty, and by (1) they stay so.  Who appends has seen the
 *		last slab full.
 *
 *	(3) REPLACE makes no second copy of a key.  Say it takes pair t for k while
 *		another pair s is a copy, by REPLACE.  If s is after t, then who took s
 *		had seen t not empty, and the compare-and-swap on t fails.  If s is before
 *		t, the one that takes t saw s not empty, so with the key k, or deleted.
 *		Deleted: it is no copy.  With k: it would have tried to write there, and
 *		looked again if that failed, until s was written or deleted.  (INSERT does
 *		make copies; REPLACE and DELETE then treat the first.)
 *
 *	(4) A slab is not read as of one moment: each lane's word is of some moment
 *		of its own.  (1) to (3) need no more than that.  A pair may be seen torn
 *		while it is taken, its key with the value still all ones: SEARCH and
 *		SEARCH_ALL then read the pair again whole.  Every other combination of
 *		the two words is one that the pair had at some moment or fails at the
 *		compare-and-swap.  A DELETE and REPLACEs of a key that nobody INSERTs are
 *		as if one after another, and so is what SEARCH says of them.
 *
 * (The words are read by 32-bit loads and written by 64-bit compare-and-swaps,
 * as in the paper.  PTX calls accesses that overlap in part a race; what is
 * asked for, that an aligned 32-bit load sees one of the stored values, every
 * GPU does.)
 *
 * Memory.  An operation that needs a slab when there is none fails: SLAB_FULL,
 * and it is counted.  Nothing else is touched.  Deleting frees no memory; flush()
 * moves each list's pairs together and gives back the slabs at its end.
 */
#ifndef SLAB_HASH_CUH
#define SLAB_HASH_CUH

#include "slab_alloc.cuh"

#include <math.h>

#define SLAB_EMPTY_KEY 0xFFFFFFFFu
#define SLAB_DELETED_KEY 0xFFFFFFFEu	/* keys from here on cannot be stored */
#define SLAB_PAIRS 15
#define SLAB_NEXT_LANE 31
#define SLAB_KEY_LANES ((rhh_lanes) 0x15555555)

/*
 * Slabs that a warp reads at once; 1 is the paper's.  With 1, 2, 4 and 8 an H100
 * inserts 6.4, 8.6, 9.8 and 10.0 G keys/s to a load of 0.5, and finds 13.1, 16.2, 18.2
 * and 17.7 of them.
 */
#ifndef SLAB_IN_FLIGHT
#define SLAB_IN_FLIGHT 4
#endif

enum slab_op
{
	SLAB_INSERT,
	SLAB_REPLACE,
	SLAB_DELETE,
	SLAB_DELETE_ALL,
	SLAB_SEARCH,
	SLAB_SEARCH_ALL,
	SLAB_N_OPS,

	/* of the kernel only */
	SLAB_GATHER = SLAB_N_OPS,	/* SEARCH_ALL that stores the values */
	SLAB_MIXED					/* each item has its own */
};

enum slab_status
{
	SLAB_DONE,					/* stored, deleted or found */
	SLAB_NOT_FOUND,
	SLAB_FULL,					/* INSERT, REPLACE: no slab left */
	SLAB_BAD					/* such a key cannot be stored, or no such operation */
};

/* Where a table is, a kernel's argument. */
template <bool LIGHT>
struct slab_hash_view
{
	slab_alloc_view<LIGHT> alloc;
	uint32_t   *base;
	uint64_t   *n_failed;
	uint32_t	n_buckets;
};

/* The items of a launch; null: the operation has no use for it, or nobody else. */
struct slab_batch
{
	uint64_t	n;
	const uint32_t *keys;
	const uint32_t *values = nullptr;	/* to store */
	uint32_t   *results = nullptr;	/* may be values */
	const uint8_t *ops = nullptr;	/* MIXED */
	uint8_t    *status = nullptr;
	const uint64_t *offsets = nullptr;	/* GATHER, n + 1: where in found */
	uint32_t   *found = nullptr;
};

/*
 * A key's bucket.  Multiply-shift (Dietzfelbinger), which like the paper's
 * ((ax + b) mod p) mod B is universal, without the divisions.
 */
static __host__ __device__ inline uint32_t
slab_bucket(uint32_t key, uint32_t n_buckets)
{
	uint32_t	hash = (uint32_t) ((key * UINT64_C(0x8B72E7B5A9D3C0F1) + UINT64_C(0x5F3C6A1D2E94B807)) >> 32);

	return (uint32_t) (((uint64_t) hash * n_buckets) >> 32);
}

/* ---------- a warp's operations ---------- */

/* A lane's operation. */
struct slab_item
{
	uint32_t	key;
	uint32_t	value;			/* to store; the result */
	uint32_t   *slab;			/* where it has got to */
	uint8_t		op;				/* MIXED */
	uint8_t		status;
	bool		active;			/* in the queue */

	/* A compare-and-swap to do, and what it is to be if it succeeds. */
	int			pair;			/* its key's lane, or -1 */
	uint64_t	expected;
	uint64_t	desired;

	__device__ RHH_INLINE void end(slab_status with)
	{
		status = with;
		active = false;
	}

	__device__ RHH_INLINE void swap(int at, uint64_t from, uint64_t to)
	{
		pair = at;
		expected = from;
		desired = to;
	}
};

RHH_DEV uint64_t
slab_pair(uint32_t key, uint32_t value)
{
	return (uint64_t) value << 32 | key;
}

/* The pair whose key is in lane at. */
RHH_DEV uint64_t *
slab_pair_at(uint32_t *slab, int at)
{
	return (uint64_t *) (slab + at);
}

/* Lane from's slab. */
RHH_DEV uint32_t *
slab_of(const slab_warp &warp, uint32_t *slab, int from)
{
	return (uint32_t *) (uintptr_t) warp.shfl((uint64_t) (uintptr_t) slab, from);
}

/*
 * Looks at a slab that was read, word by word of the lanes, for lane owner's
 * operation: ends it, gives it a compare-and-swap to do, or moves it on.  All
 * lanes of the warp.
 */
template <int OP, bool LIGHT>
RHH_DEV void
slab_step(const slab_hash_view<LIGHT> &table, const slab_batch &batch, uint64_t first_item, const slab_warp &warp,
		  slab_resident &resident, slab_item &item, int owner, uint32_t word)
{
	const int	op = OP == SLAB_MIXED ? (int) warp.shfl((uint32_t) item.op, owner) : OP;
	const bool	mine = (int) warp.rank == owner;
	const uint32_t key = warp.shfl(item.key, owner);
	rhh_lanes	hits = 0;
	uint32_t	next;

	if (op != SLAB_INSERT)
		hits = warp.ballot(word == key) & SLAB_KEY_LANES;
	if (hits)
	{
		const int	at = rhh_first_lane(hits);

		if (op == SLAB_SEARCH)
		{
			uint32_t	value = warp.shfl(word, at + 1);

			if (mine)
			{
				if (value == table_absent<uint32_t>())
					value = (uint32_t) (rhh_load_relaxed64(slab_pair_at(item.slab, at)) >> 32);
				item.value = value;
				item.end(SLAB_DONE);
			}
			return;
		}
		if (op == SLAB_REPLACE || op == SLAB_DELETE)
		{
			uint32_t	old = warp.shfl(word, at + 1);

			if (mine)
				item.swap(at, slab_pair(key, old), op == SLAB_REPLACE ? slab_pair(key, item.value)
						  : slab_pair(SLAB_DELETED_KEY, old));
			return;
		}

		/* all pairs of the key, each by its key's lane */
		const bool	hit = hits >> warp.rank & 1;
		uint32_t   *slab = slab_of(warp, item.slab, owner);
		uint32_t	value = warp.shfl(word, warp.rank | 1);

		if (op == SLAB_DELETE_ALL)
		{
			bool		deleted = hit && rhh_cas64(slab_pair_at(slab, warp.rank), slab_pair(key, value),
												   slab_pair(SLAB_DELETED_KEY, value));
			rhh_lanes	all_deleted = warp.ballot(deleted);

			if (mine)
				item.value += rhh_count_lanes(all_deleted);
			if (all_deleted != hits)
				return;
		}
		if (OP == SLAB_GATHER)
		{
			uint32_t	n_before = warp.shfl(item.value, owner) +
				rhh_count_lanes(hits & (((rhh_lanes) 1 << warp.rank) - 1));
			uint64_t	i = first_item + owner;
			uint64_t	to = batch.offsets[i] + n_before;

			if (hit && value == table_absent<uint32_t>())
				value = (uint32_t) (rhh_load_relaxed64(slab_pair_at(slab, warp.rank)) >> 32);
			if (hit && to < batch.offsets[i + 1])
				batch.found[to] = value;
		}
		if ((op == SLAB_SEARCH_ALL || OP == SLAB_GATHER) && mine)
			item.value += rhh_count_lanes(hits);
	}
	if (op == SLAB_INSERT || op == SLAB_REPLACE)
	{
		rhh_lanes	empty = warp.ballot(word == SLAB_EMPTY_KEY) & SLAB_KEY_LANES;

		if (empty)
		{
			if (mine)
				item.swap(rhh_first_lane(empty), slab_pair(SLAB_EMPTY_KEY, ~0u), slab_pair(key, item.value));
			return;
		}
	}

	next = warp.shfl(word, SLAB_NEXT_LANE);
	if (next == SLAB_NULL)
	{
		if (op != SLAB_INSERT && op != SLAB_REPLACE)
		{
			if (mine)
			{
				if (op == SLAB_SEARCH || op == SLAB_DELETE)
					item.value = table_absent<uint32_t>();
				item.end(op == SLAB_SEARCH || op == SLAB_DELETE || item.value == 0 ? SLAB_NOT_FOUND : SLAB_DONE);
			}
			return;
		}
		next = table.alloc.allocate(warp, resident);
		if (next == SLAB_NULL)
		{
			/*
			 * The slab may have been followed by another since it was read, by an
			 * operation of this very warp even.
			 */
			if (mine)
			{
				next = rhh_load_relaxed32(&item.slab[SLAB_NEXT_LANE]);
				if (next == SLAB_NULL)
					item.end(SLAB_FULL);
				else
					item.slab = table.alloc.slab(next);
			}
			return;
		}
		if (mine)
		{
			uint32_t	theirs = atomicCAS(&item.slab[SLAB_NEXT_LANE], SLAB_NULL, next);

			if (theirs != SLAB_NULL)
			{
				table.alloc.release(next);
				next = theirs;
			}
		}
	}
	if (mine)
		item.slab = table.alloc.slab(next);
}

/*
 * Does the warp's operations.  All lanes of the warp; those without an
 * operation are not active.
 */
template <int OP, bool LIGHT>
RHH_DEV void
slab_work(const slab_hash_view<LIGHT> &table, const slab_batch &batch, uint64_t first_item, const slab_warp &warp,
		  slab_resident &resident, slab_item &item)
{
	for (rhh_lanes queue = warp.ballot(item.active); queue; queue = warp.ballot(item.active))
	{
		uint32_t	words[SLAB_IN_FLIGHT];
		rhh_lanes	rest = queue;

		RHH_UNROLL
		for (int i = 0; i < SLAB_IN_FLIGHT; i++)
		{
			if (rest)
				words[i] = rhh_load_relaxed32(slab_of(warp, item.slab, rhh_first_lane(rest)) + warp.rank);
			rest &= rest - 1;
		}
		item.pair = -1;
		rest = queue;
		RHH_UNROLL
		for (int i = 0; i < SLAB_IN_FLIGHT; i++)
		{
			if (rest)
				slab_step<OP>(table, batch, first_item, warp, resident, item, rhh_first_lane(rest), words[i]);
			rest &= rest - 1;
		}
		if (item.pair >= 0 && rhh_cas64(slab_pair_at(item.slab, item.pair), item.expected, item.desired))
		{
			if (OP == SLAB_DELETE || (OP == SLAB_MIXED && item.op == SLAB_DELETE))
				item.value = (uint32_t) (item.expected >> 32);
			item.end(SLAB_DONE);
		}
	}
}

/* An item a lane, striding.  Blocks are whole warps. */
template <int OP, bool LIGHT>
__global__ void
slab_hash_kernel(const __grid_constant__ slab_hash_view<LIGHT> table, const __grid_constant__ slab_batch batch)
{
	const slab_warp warp;
	slab_resident resident;
	uint32_t	n_failed = 0;

	for (uint64_t first = (uint64_t) RHH_TILE_ID(SLAB_WORDS) * SLAB_WORDS; first < batch.n;
		 first += (uint64_t) RHH_TILES(SLAB_WORDS) * SLAB_WORDS)
	{
		const uint64_t i = first + warp.rank;
		const bool	in_batch = i < batch.n;
		slab_item	item;
		int			op;

		item.key = in_batch ? batch.keys[i] : 0;
		item.op = OP != SLAB_MIXED ? OP : in_batch ? batch.ops[i] : 0;
		op = OP != SLAB_MIXED ? OP : item.op;
		item.value = op == SLAB_SEARCH || op == SLAB_DELETE ? table_absent<uint32_t>() : 0;
		if (in_batch && (op == SLAB_INSERT || op == SLAB_REPLACE))
			item.value = batch.values[i];
		item.slab = table.base + (uint64_t) slab_bucket(item.key, table.n_buckets) * SLAB_WORDS;
		item.active = in_batch && item.key < SLAB_DELETED_KEY && op < SLAB_N_OPS + (OP == SLAB_GATHER);
		item.status = SLAB_BAD;
		item.pair = -1;
		slab_work<OP>(table, batch, first, warp, resident, item);
		if (in_batch)
		{
			if (op == SLAB_INSERT || op == SLAB_REPLACE)
				n_failed += item.status != SLAB_DONE;
			else if (op < SLAB_N_OPS && batch.results)
				batch.results[i] = item.value;
			if (batch.status)
				batch.status[i] = item.status;
		}
	}
	if (OP == SLAB_INSERT || OP == SLAB_REPLACE || OP == SLAB_MIXED)
		if (n_failed)
			atomicAdd((unsigned long long *) table.n_failed, (unsigned long long) n_failed);
}

/* ---------- whole tables ---------- */

/*
 * Moves each list's pairs together, in their order, and gives back the slabs
 * that are left over.  A warp a list.  A pair moves to its own place or to one
 * that the warp has read before.
 */
template <bool LIGHT>
__global__ void
slab_flush_kernel(const __grid_constant__ slab_hash_view<LIGHT> table)
{
	const slab_warp warp;

	for (uint64_t b = RHH_TILE_ID(SLAB_WORDS); b < table.n_buckets; b += RHH_TILES(SLAB_WORDS))
	{
		uint32_t   *from = table.base + b * SLAB_WORDS;
		uint32_t   *to = from;
		uint32_t	n_to = 0;	/* pairs in to */
		uint32_t	next;

		for (;;)
		{
			uint32_t	word = rhh_load_relaxed32(&from[warp.rank]);
			rhh_lanes	live = warp.ballot(word < SLAB_DELETED_KEY) & SLAB_KEY_LANES;
			uint32_t	n_live = rhh_count_lanes(live);
			uint32_t	key_lane = warp.rank & ~1u;
			uint32_t	place = n_to + rhh_count_lanes(live & (((rhh_lanes) 1 << key_lane) - 1));
			uint32_t   *beyond = to;	/* where places from SLAB_PAIRS are */

			next = warp.shfl(word, SLAB_NEXT_LANE);
			if (n_to + n_live > SLAB_PAIRS)
				beyond = table.alloc.slab(rhh_load_relaxed32(&to[SLAB_NEXT_LANE]));
			warp.sync();		/* all have read what is now written over */
			if (live >> key_lane & 1)
			{
				uint32_t   *slab = place < SLAB_PAIRS ? to : beyond;

				slab[place % SLAB_PAIRS * 2 + (warp.rank & 1)] = word;
			}
			warp.sync();
			n_to += n_live;
			if (n_to > SLAB_PAIRS)
			{
				to = beyond;
				n_to -= SLAB_PAIRS;
			}
			if (next == SLAB_NULL)
				break;
			from = table.alloc.slab(next);
		}

		/* the end of the last slab that is kept, then those after it */
		next = rhh_load_relaxed32(&to[SLAB_NEXT_LANE]);
		warp.sync();
		if (warp.rank == SLAB_NEXT_LANE || warp.rank / 2 >= n_to)
			to[warp.rank] = ~0u;
		while (next != SLAB_NULL)
		{
			uint32_t	address = next;
			uint32_t   *slab = table.alloc.slab(address);

			next = rhh_load_relaxed32(&slab[SLAB_NEXT_LANE]);
			warp.sync();
			slab[warp.rank] = ~0u;
			warp.sync();
			if (warp.rank == 0)
				table.alloc.release(address);
		}
	}
}

struct slab_stats
{
	uint64_t	n_entries;
	uint64_t	n_deleted;		/* pairs that flush() will give back */
	uint64_t	n_slabs;		/* in lists, base slabs included */
	uint64_t	longest;		/* list, in slabs */
};

template <bool LIGHT>
__global__ void
slab_stats_kernel(const __grid_constant__ slab_hash_view<LIGHT> table, slab_stats *stats)
{
	const slab_warp warp;
	uint64_t	n_entries = 0;
	uint64_t	n_deleted = 0;
	uint64_t	n_slabs = 0;
	uint64_t	longest = 0;

	for (uint64_t b = RHH_TILE_ID(SLAB_WORDS); b < table.n_buckets; b += RHH_TILES(SLAB_WORDS))
	{
		uint32_t   *slab = table.base + b * SLAB_WORDS;
		uint64_t	length = 0;

		for (;;)
		{
			uint32_t	word = rhh_load_relaxed32(&slab[warp.rank]);
			uint32_t	next = warp.shfl(word, SLAB_NEXT_LANE);

			n_entries += rhh_count_lanes(warp.ballot(word < SLAB_DELETED_KEY) & SLAB_KEY_LANES);
			n_deleted += rhh_count_lanes(warp.ballot(word == SLAB_DELETED_KEY) & SLAB_KEY_LANES);
			length++;
			if (next == SLAB_NULL)
				break;
			slab = table.alloc.slab(next);
		}
		n_slabs += length;
		longest = length > longest ? length : longest;
	}
	if (warp.rank == 0 && n_slabs)
	{
		atomicAdd((unsigned long long *) &stats->n_entries, (unsigned long long) n_entries);
		atomicAdd((unsigned long long *) &stats->n_deleted, (unsigned long long) n_deleted);
		atomicAdd((unsigned long long *) &stats->n_slabs, (unsigned long long) n_slabs);
		atomicMax((unsigned long long *) &stats->longest, (unsigned long long) longest);
	}
}

/* ---------- how many slabs ---------- */

/*
 * Slabs of a list, expected, when its number of entries is Poisson-distributed
 * with this mean: 1 + the sum over j >= 1 of P(more than 15 j entries).
 */
static inline double
slab_expected_per_list(double mean)
{
	double		p = exp(-mean);
	double		at_most = p;
	double		slabs = 1;
	uint64_t	k = 0;

	if (mean > 600)				/* exp() nears its end; the sum its asymptote */
		return mean / SLAB_PAIRS + 0.5;
	for (int j = 1; j < 10 || SLAB_PAIRS * (j - 10) < 2 * mean; j++)
	{
		while (k < (uint64_t) j * SLAB_PAIRS)
		{
			p *= mean / ++k;
			at_most += p;
		}
		slabs += at_most < 1 ? 1 - at_most : 0;
	}
	return slabs;
}

/* Memory utilisation, the paper's: bytes of entries in bytes of slabs. */
static inline double
slab_utilisation(double mean)
{
	return mean * 8 / (slab_expected_per_list(mean) * SLAB_BYTES);
}

struct slab_options
{
	/*
	 * Memory utilisation when n_slots entries are stored, which gives the number
	 * of buckets: the paper's beta, the average number of full slabs a bucket,
	 * is the smallest one that reaches it (0.62: 0.71; 0.65: 0.81; 0.75: 1.75).
	 * The default is near the paper's 60 to 65 %.  Less than 0.9.
	 */
	double		utilisation = 0.62;

	uint64_t	n_buckets = 0;	/* if not 0, this many */

	/*
	 * Slabs that can be chained.  0: 1.25 times what uniform keys are expected
	 * to need and one for each warp of a full GPU, but at most slab_worst_case.
	 */
	uint64_t	n_chained = 0;

	uint32_t	super_block_bits = SLAB_DEFAULT_BLOCK_BITS; /* SlabAlloc */
};

/*
 * With so many chained slabs no operation fails, whatever the keys, while no
 * more than n_entries pairs are stored or deleted since the last flush: a chained
 * slab is appended when one before it is full, and each warp of the GPU may for
 * a moment hold one that it will not need.
 */
static inline uint64_t
slab_worst_case(uint64_t n_entries, uint64_t n_warps)
{
	return n_entries / SLAB_PAIRS + n_warps;
}

/* ---------- the host's side ---------- */

template <typename Key = uint32_t, typename Value = uint32_t, class Allocator = slab_alloc>
class slab_hash
{
	static_assert(sizeof(Key) == 4 && sizeof(Value) == 4, "the slab hash has 32-bit keys and values");
	static const bool LIGHT = Allocator::is_light;

public:
	static const char *name()
	{
		return LIGHT ? "slab_hash_light" : "slab_hash";
	}

	/* table.cuh's; insert is REPLACE.  Keys of all ones and one less: see above. */
	cudaError_t create(uint64_t n_slots, cudaStream_t stream)
	{
		return create(n_slots, slab_options(), stream);
	}

	cudaError_t create(uint64_t n_slots, const slab_options &options, cudaStream_t stream)
	{
		uint64_t	n_chained = options.n_chained;
		int			device;
		int			n_sms;

		destroy();
		n_buckets = options.n_buckets;
		if (n_buckets == 0)
		{
			double		mean = 0.25;

			while (mean < 600 && slab_utilisation(mean) < options.utilisation)
				mean += 0.0625;
			if (mean >= 600)
				return cudaErrorInvalidValue;
			n_buckets = (uint64_t) (n_slots / mean) + 1;
		}
		if (n_buckets > UINT32_MAX)
			return cudaErrorInvalidValue;
		if (n_chained == 0)
		{
			TABLE_TRY(cudaGetDevice(&device));
			TABLE_TRY(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, device));
			n_chained = (uint64_t) (n_buckets * 1.25 * (slab_expected_per_list((double) n_slots / n_buckets) - 1)) +
				SLAB_WARPS_AN_SM * n_sms;
			n_chained = min(n_chained, slab_worst_case(n_slots, SLAB_WARPS_AN_SM * n_sms));
		}
		TABLE_TRY(cudaMalloc(&base, n_buckets * SLAB_BYTES));
		TABLE_TRY(cudaMalloc(&n_failed, sizeof *n_failed));
		TABLE_TRY(cudaMalloc(&stats_out, sizeof *stats_out));
		TABLE_TRY(alloc.create(n_chained, options.super_block_bits, stream));
		return clear(stream);
	}

	void destroy()
	{
		(void) cudaFree(base);
		(void) cudaFree(n_failed);
		(void) cudaFree(stats_out);
		alloc.destroy();
		base = nullptr;
		n_failed = nullptr;
		stats_out = nullptr;
		n_buckets = 0;
	}

	/* Empty; the failures are forgotten. */
	cudaError_t clear(cudaStream_t stream)
	{
		TABLE_TRY(cudaMemsetAsync(base, 0xFF, n_buckets * SLAB_BYTES, stream));
		TABLE_TRY(cudaMemsetAsync(n_failed, 0, sizeof *n_failed, stream));
		return alloc.clear(stream);
	}

	cudaError_t insert(const Key *keys, const Value *values, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return replace(keys, values, n, block_threads, stream);
	}

	cudaError_t find(const Key *keys, Value *values, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return launch<SLAB_SEARCH>({n, keys, nullptr, values}, block_threads, stream);
	}

	cudaError_t erase(const Key *keys, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return launch<SLAB_DELETE>({n, keys}, block_threads, stream);
	}

	cudaError_t size(uint64_t *n_entries, cudaStream_t stream)
	{
		slab_stats	s;

		TABLE_TRY(stats(&s, stream));
		*n_entries = s.n_entries;
		return cudaSuccess;
	}

	uint64_t memory_bytes() const
	{
		return base == nullptr ? 0
			: n_buckets * SLAB_BYTES + sizeof *n_failed + sizeof *stats_out + alloc.memory_bytes();
	}

	/* The paper's.  insert_always is INSERT. */
	cudaError_t insert_always(const Key *keys, const Value *values, uint64_t n, int block_threads,
							  cudaStream_t stream)
	{
		return launch<SLAB_INSERT>({n, keys, values}, block_threads, stream);
	}

	cudaError_t replace(const Key *keys, const Value *values, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return launch<SLAB_REPLACE>({n, keys, values}, block_threads, stream);
	}

	/* counts[i], if counts is not null: how many pairs were deleted. */
	cudaError_t erase_all(const Key *keys, uint32_t *counts, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return launch<SLAB_DELETE_ALL>({n, keys, nullptr, counts}, block_threads, stream);
	}

	cudaError_t count_all(const Key *keys, uint32_t *counts, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return launch<SLAB_SEARCH_ALL>({n, keys, nullptr, counts}, block_threads, stream);
	}

	/*
	 * The values of keys[i] go to found[offsets[i]] to found[offsets[i + 1] - 1]
	 * in the list's order, those that have no place there nowhere.  offsets has
	 * n + 1 entries, count_all's sums; what was inserted since may not fit, and
	 * what was deleted since leaves its place as it was.
	 */
	cudaError_t search_all(const Key *keys, const uint64_t *offsets, Value *found, uint64_t n, int block_threads,
						   cudaStream_t stream)
	{
		return launch<SLAB_GATHER>({n, keys, nullptr, nullptr, nullptr, nullptr, offsets, found}, block_threads,
								   stream);
	}

	/*
	 * n operations at once, in no order: ops[i] (slab_op) on keys[i].  values[i]
	 * is what INSERT and REPLACE store, and becomes: of SEARCH the value or
	 * table_absent, of DELETE the deleted value or table_absent, of the two ALL
	 * the count.  status[i] (slab_status), if status is not null.
	 */
	cudaError_t mixed(const uint8_t *ops, const Key *keys, Value *values, uint8_t *status, uint64_t n,
					  int block_threads, cudaStream_t stream)
	{
		return launch<SLAB_MIXED>({n, keys, values, values, ops, status}, block_threads, stream);
	}

	/* Gives deleted pairs' memory back.  Beside nothing else. */
	cudaError_t flush(cudaStream_t stream)
	{
		const slab_hash_view<LIGHT> table = view();

		RHH_LAUNCH((slab_flush_kernel<LIGHT>), table_blocks(n_buckets * SLAB_WORDS, 128), 128, 0, stream, table);
		return cudaGetLastError();
	}

	/* Waits for the stream. */
	cudaError_t stats(slab_stats *result, cudaStream_t stream)
	{
		const slab_hash_view<LIGHT> table = view();

		TABLE_TRY(cudaMemsetAsync(stats_out, 0, sizeof *stats_out, stream));
		RHH_LAUNCH((slab_stats_kernel<LIGHT>), table_blocks(min(n_buckets * SLAB_WORDS, UINT64_C(1) << 20), 128),
				   128, 0, stream, table, stats_out);
		TABLE_TRY(cudaGetLastError());
		TABLE_TRY(cudaMemcpyAsync(result, stats_out, sizeof *result, cudaMemcpyDeviceToHost, stream));
		return cudaStreamSynchronize(stream);
	}

	/* INSERTs and REPLACEs that failed since create or clear.  Waits. */
	cudaError_t failed(uint64_t *n, cudaStream_t stream)
	{
		TABLE_TRY(cudaMemcpyAsync(n, n_failed, sizeof *n, cudaMemcpyDeviceToHost, stream));
		return cudaStreamSynchronize(stream);
	}

	/* Chained slabs in use.  Waits for the stream. */
	cudaError_t chained(uint64_t *n, cudaStream_t stream)
	{
		return alloc.used(n, stream);
	}

	uint64_t buckets() const
	{
		return n_buckets;
	}

private:
	/* One that holds a slab or looks at a list is resident: 2048 threads. */
	static const unsigned SLAB_WARPS_AN_SM = 64;

	Allocator	alloc;
	uint32_t   *base = nullptr;
	uint64_t   *n_failed = nullptr;
	slab_stats *stats_out = nullptr;
	uint64_t	n_buckets = 0;

	slab_hash_view<LIGHT> view()
	{
		return {alloc.for_launch(), base, n_failed, (uint32_t) n_buckets};
	}

	template <int OP>
	cudaError_t launch(const slab_batch &batch, int block_threads, cudaStream_t stream)
	{
		const slab_hash_view<LIGHT> table = view();

		if (block_threads <= 0 || block_threads % SLAB_WORDS != 0)
			return cudaErrorInvalidValue;
		if (batch.n == 0)
			return cudaSuccess;
		RHH_LAUNCH((slab_hash_kernel<OP, LIGHT>), table_blocks(batch.n, block_threads), block_threads, 0, stream,
				   table, batch);
		return cudaGetLastError();
	}
};

/* ---------- the paper's mixtures ---------- */

/* Fractions of the operations; the rest searches keys that are not there. */
struct slab_mixture
{
	const char *name;
	double		insert;			/* new keys */
	double		erase;			/* keys that are there */
	double		search;			/* likewise */
};

static const slab_mixture slab_mixtures[] = {
	{"gamma0", 0.5, 0.5, 0.0},
	{"gamma1", 0.2, 0.2, 0.3},
	{"gamma2", 0.1, 0.1, 0.4},
};

/*
 * Fills host arrays of n items for mixed(), in random order.  Of the keys in the
 * table, present, the first n * erase are deleted once each, and searches take
 * any of the others; n_present must be more than that.  Of the n keys in absent
 * the first n * insert are stored (REPLACE), with themselves as values, and
 * searches in vain take the last.
 */
static inline void
slab_fill_mixture(const slab_mixture &mixture, uint64_t n, uint64_t seed, const uint32_t *present,
				  uint64_t n_present, const uint32_t *absent, uint8_t *ops, uint32_t *keys, uint32_t *values)
{
	const uint64_t n_erase = (uint64_t) llround(n * mixture.erase);
	uint64_t	insert_left = (uint64_t) llround(n * mixture.insert);
	uint64_t	erase_left = n_erase;
	uint64_t	search_left = (uint64_t) llround(n * mixture.search);
	uint64_t	n_stored = 0;
	uint64_t	n_missing = 0;
	uint64_t	x = seed * 0x9E3779B97F4A7C15ULL | 1;

	for (uint64_t i = 0; i < n; i++)
	{
		uint64_t	r;

		/* xorshift64 */
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		r = (x >> 32) * (n - i) >> 32;	/* one of the operations that are left */
		if (r < insert_left)
		{
			insert_left--;
			ops[i] = SLAB_REPLACE;
			keys[i] = absent[n_stored++];
		}
		else if (r < insert_left + erase_left)
		{
			erase_left--;
			ops[i] = SLAB_DELETE;
			keys[i] = present[erase_left];
		}
		else if (r < insert_left + erase_left + search_left)
		{
			search_left--;
			ops[i] = SLAB_SEARCH;
			keys[i] = present[n_erase + (x & 0xFFFFFFFF) % (n_present - n_erase)];
		}
		else
		{
			ops[i] = SLAB_SEARCH;
			keys[i] = absent[n - ++n_missing];
		}
		values[i] = keys[i];
	}
}

#endif							/* SLAB_HASH_CUH */
