/*
 * rhh_buckets.cuh
 *		Robin Hood hashing in buckets of one cache line: the layout, the invariants,
 *		and the operations of a tile on one key.
 *
 * A table is an array of buckets of LINE bytes, 64 by default.  A tile reads a
 * bucket at once, 16 bytes a lane: one slot of 16 bytes, or two of 8.
 *
 *		lane 0			lane 1			lane 2			lane 3
 *		+-------+-------+-------+-------+-------+-------+-------+-------+
 *		| v   k | v   k | v   k | v   k | v   k | v   k | v   k | v   k |
 *		+-------+-------+-------+-------+-------+-------+-------+-------+
 *
 *		+---------------+---------------+---------------+---------------+
 *		| k           v | k           v | k           v | k           v |
 *		+---------------+---------------+---------------+---------------+
 *
 * The policy S says what is in a slot: how many bytes it has, whether it is EMPTY,
 * and the 32-bit hash of its key, from which the home bucket follows.  So the probe
 * distance of an entry, (bucket - home) mod n_buckets, need not be stored.  The code
 * works with ranks: the rank of an entry is its distance + 1, that of an EMPTY slot is
 * 0.  All distances are below max_dist, which is at most n_buckets.
 *
 * Robin Hood hashing is Celis's (1986); buckets and tiles follow the GPU tables
 * of Juenger et al. (WarpCore, 2020) and Awad et al. (BGHT, 2021).
 *
 * These invariants hold as long as entries are inserted and values are changed, and
 * nothing else is done:
 *
 *	(1) A slot's rank only grows.  Stores are compare-and-swaps that replace an
 *		entry by a strictly poorer one (EMPTY is the richest), or only its value.
 *		So a rank that was read earlier is a lower bound, and if a swap succeeds
 *		then the slot still had the entry that was read.
 *
 *	(2) On the way from its home to an entry at distance d, each bucket at a distance
 *		j < d has only ranks > j.  The entry went past that bucket because it saw
 *		this, or it was displaced from the bucket because it had the least rank
 *		there; and by (1) it stays so.  Hence the early exit: a probe may stop at
 *		the first bucket at distance j that has a rank <= j, because an entry with
 *		that key cannot be further on.
 *
 *	(3) A key has at most one slot.  Call a tile that has the key in registers,
 *		to insert it or because it displaced it, a holder.  Every holder looks
 *		for the key in each bucket before it goes past or stores.
 *
 *		In different buckets: if one stores at distance d, none has gone past
 *		d, for that one saw only ranks > d there, and by (1) no slot could then
 *		be taken; and none can store before d, since by (2) there are only
 *		ranks > j.  The other holders come to distance d later.  Either they find the
 *		key there.  Or it has been displaced; it then had the least rank,
 *		d + 1, so all ranks there are now above d, and they go on, as does the
 *		tile that displaced it.
 *
 *		In one bucket: say A took slot r, then B another slot s, each the one
 *		of least rank, the lowest among equals.  B read r before A's swap or it
 *		had found the key (or, if that was displaced meanwhile, ranks too high).
 *		By (1), rank_B(r) <= rank_A(r) <= rank_A(s) <= rank_B(s) <= rank_B(r),
 *		where rank_A(s) <= rank_B(s) because A did not see the key in s and
 *		B's swap found s unchanged.  All equal, so both prefer the same slot: a
 *		contradiction.  The loser of a swap reads the bucket again.
 *
 *		What a holder of a displaced entry does when it meets the key in
 *		another slot, the operation says: combine the values, usually.
 *
 *	(4) A find does not see an entry that a tile has in registers.  So finds that
 *		run beside inserts may miss keys that are there; inserts do not, by (3).
 *
 *	(5) An insert that fails has stored nothing.  Once its own key is stored it
 *		has succeeded, and it carries on what it displaced.  If that finds no
 *		place within max_dist, or if the chain of displacements gets too long, the
 *		operation gets the entry, as an "orphan".
 *
 * Erasing (rhh_erase) shifts entries back.  That keeps (2) but not (1), so only other
 * erases may run beside it.
 */
#ifndef RHH_BUCKETS_CUH
#define RHH_BUCKETS_CUH

#include "table/rhh_tile.cuh"

/* A rank and the index of a slot share 32 bits when the least rank is looked for. */
#define RHH_INDEX_BITS 6
#define RHH_MAX_DIST ((1u << (32 - RHH_INDEX_BITS)) - 2)

/*
 * The most steps that one chain of displacements may have; then the carried entry
 * becomes an orphan.  Ordinary chains have a few steps even at a load of 0.95.  The
 * bound only limits the time that a hostile set of keys can cost.
 */
#define RHH_MAX_CHAIN 4096

#define RHH_LOCK_WORDS(n_buckets) (((uint64_t) (n_buckets) + 31) / 32)

/* ---------- slots in registers and in memory ---------- */

template <int BYTES>
struct rhh_raw;

template <>
struct rhh_raw<8>
{
	typedef uint64_t slot;

	static const int PER_LANE = 2;

	/* Loads the calling lane's slots of a line. */
	static __device__ RHH_INLINE void load(slot *e, const void *slots, uint64_t first)
	{
		rhh_load_relaxed_2x64((const uint64_t *) slots + first, &e[0], &e[1]);
	}

	static __device__ RHH_INLINE bool cas(void *slots, uint64_t at, slot expected, slot desired)
	{
		return rhh_cas64((uint64_t *) slots + at, expected, desired);
	}

	template <class Team>
	static __device__ RHH_INLINE slot shfl(const Team &tile, slot e, int lane)
	{
		return tile.shfl(e, lane);
	}
};

template <>
struct rhh_raw<16>
{
	typedef rhh_pair64 slot;

	static const int PER_LANE = 1;

	static __device__ RHH_INLINE void load(slot *e, const void *slots, uint64_t first)
	{
		e[0] = rhh_load_relaxed128((const rhh_pair64 *) slots + first);
	}

	static __device__ RHH_INLINE bool cas(void *slots, uint64_t at, const slot &expected,
										  const slot &desired)
	{
		return rhh_cas128((rhh_pair64 *) slots + at, expected, desired);
	}

	template <class Team>
	static __device__ RHH_INLINE slot shfl(const Team &tile, const slot &e, int lane)
	{
		slot		r;

		r.x = tile.shfl(e.x, lane);
		r.y = tile.shfl(e.y, lane);
		return r;
	}
};

/*
 * The shape of a table, which follows from the bytes of a slot and of a line.  A
 * policy S is derived from it and adds these, each for one lane by itself:
 *
 *		bool S::is_empty(const slot &e)
 *		uint32_t S::hash(const slot &e)
 *		slot S::none()				an EMPTY slot
 */
template <int SLOT_BYTES, int LINE>
struct rhh_shape : rhh_raw<SLOT_BYTES>
{
	static const int BYTES = SLOT_BYTES;
	static const int LINE_BYTES = LINE;
	static const int SLOTS = LINE / SLOT_BYTES; /* in a bucket */
	static const int LANES = LINE / 16;

	static_assert(LINE >= 16 && LANES <= RHH_WARP_SIZE && SLOTS <= 1 << RHH_INDEX_BITS,
				  "a line is at least 16 bytes and at most 16 for each lane of a warp");
	typedef rhh_tile<LANES> tile;
	typedef rhh_warp_tiles<LANES> warp_tiles;
};

/* The buckets of a table in device memory. */
struct rhh_buckets
{
	void	   *slots;
	uint32_t	n_buckets;
	uint32_t	max_dist;		/* 1 to n_buckets, but at most RHH_MAX_DIST */
};

/* A bucket in a tile's registers. */
template <class S>
struct rhh_line
{
	typename S::slot e[S::PER_LANE];
};

/* The home bucket of a hash.  Its high bits choose, so n_buckets may be any number. */
static __host__ __device__ RHH_INLINE uint32_t
rhh_home_of(uint32_t hash, uint32_t n_buckets)
{
	return (uint32_t) (((uint64_t) hash * n_buckets) >> 32);
}

RHH_DEV uint32_t
rhh_next_bucket(uint32_t n_buckets, uint32_t bucket)
{
	return bucket + 1 == n_buckets ? 0 : bucket + 1;
}

/* The bucket that is dist (less than n_buckets) buckets behind another. */
RHH_DEV uint32_t
rhh_bucket_behind(uint32_t n_buckets, uint32_t bucket, uint32_t dist)
{
	uint64_t	b = (uint64_t) bucket + dist;

	return (uint32_t) (b >= n_buckets ? b - n_buckets : b);
}

/* The rank of an entry in a bucket: distance + 1, or 0 if it is EMPTY.  One lane. */
template <class S>
RHH_DEV uint32_t
rhh_rank(const typename S::slot &e, uint32_t bucket, uint32_t n_buckets)
{
	uint32_t	home = rhh_home_of(S::hash(e), n_buckets);
	uint32_t	dist = bucket >= home ? bucket - home : bucket + n_buckets - home;

	return S::is_empty(e) ? 0 : dist + 1;
}

/* Loads a bucket into the registers of a tile. */
template <class S, class Team>
RHH_DEV rhh_line<S>
rhh_load_line(const rhh_buckets &t, const Team &tile, uint32_t bucket)
{
	rhh_line<S> line;

	S::load(line.e, t.slots, (uint64_t) bucket * S::SLOTS + tile.rank * S::PER_LANE);
	return line;
}

/* Fills a line with EMPTY slots, for a tile that goes along without a bucket. */
template <class S>
RHH_DEV void
rhh_no_line(rhh_line<S> *line)
{
	RHH_UNROLL
	for (int i = 0; i < S::PER_LANE; i++)
		line->e[i] = S::none();
}

/* The lane's own slot of an index.  By comparing, since registers have no addresses. */
template <class S>
RHH_DEV typename S::slot
rhh_own_slot(const rhh_line<S> &line, uint32_t index)
{
	typename S::slot e = line.e[0];

	RHH_UNROLL
	for (int i = 1; i < S::PER_LANE; i++)
		if (index % S::PER_LANE == (uint32_t) i)
			e = line.e[i];
	return e;
}

/* Gives the content of slot index to all lanes of the tile. */
template <class S, class Team>
RHH_DEV typename S::slot
rhh_slot_of(const Team &tile, const rhh_line<S> &line, uint32_t index)
{
	return S::shfl(tile, rhh_own_slot<S>(line, index), (int) (index / S::PER_LANE));
}

/*
 * Finds the slot that an insert would take, the one with the least rank: returns its
 * rank << RHH_INDEX_BITS | its index.
 */
template <class S, class Team>
RHH_DEV uint32_t
rhh_richest(const rhh_buckets &t, const Team &tile, const rhh_line<S> &line,
			uint32_t bucket)
{
	uint32_t	least = ~0u;

	RHH_UNROLL
	for (int i = 0; i < S::PER_LANE; i++)
	{
		uint32_t	key = rhh_rank<S>(line.e[i], bucket, t.n_buckets) << RHH_INDEX_BITS
			| (tile.rank * S::PER_LANE + i);

		least = key < least ? key : least;
	}
	return tile.min(least);
}

/* Does the bucket have a rank of at most dist?  Then a probe at dist ends there. */
template <class S, class Team>
RHH_DEV bool
rhh_ends_probe(const rhh_buckets &t, const Team &tile, const rhh_line<S> &line,
			   uint32_t bucket, uint32_t dist)
{
	bool		ends = false;

	RHH_UNROLL
	for (int i = 0; i < S::PER_LANE; i++)
		ends = ends || rhh_rank<S>(line.e[i], bucket, t.n_buckets) <= dist;
	return tile.any(ends);
}

/* The lane's slots for which same() is true, as bits. */
template <class S, class Same>
RHH_DEV uint32_t
rhh_matches(const rhh_line<S> &line, const Same &same)
{
	uint32_t	bits = 0;

	RHH_UNROLL
	for (int i = 0; i < S::PER_LANE; i++)
		bits |= (uint32_t) same(line.e[i]) << i;
	return bits;
}

/*
 * Takes the first of the slots for which the tile's lanes have set bits: clears the
 * bit and gives the index of the slot.  False if no bit is set.
 */
template <class S, class Team>
RHH_DEV bool
rhh_next_match(const Team &tile, uint32_t *bits, uint32_t *index)
{
	rhh_lanes	lanes = tile.ballot(*bits != 0);
	int			lane = lanes ? rhh_first_lane(lanes) : 0;
	uint32_t	mine = S::PER_LANE == 1 ? 0 : (uint32_t) __ffs((int) *bits) - 1;

	*index = (uint32_t) lane * S::PER_LANE
		+ (S::PER_LANE == 1 ? 0 : tile.shfl(mine, lane) % S::PER_LANE);
	if (tile.rank == (uint32_t) lane)
		*bits &= *bits - 1;
	return lanes != 0;
}

/*
 * ---------- finding and inserting ----------
 *
 * Both are loops in which a tile reads one bucket in each turn.  They work for one
 * tile (Team is S::tile) or for all tiles of a warp in step (Team is S::warp_tiles).
 * Each tile takes one key after the other from the operation, so the tiles of a warp
 * do not wait at every key for the one with the longest probe.
 *
 * "active" says whether the calling tile takes part, so it is the same for all lanes
 * of a tile.  In step, tiles that do not take part make the call too; for them a
 * function of the operation must do nothing but take part in the calls of the team.
 */

/*
 * Finds keys.  The operation has these functions:
 *
 *	bool op.next(team, active, &mine, &bucket, &dist)
 *								gives the next key: a slot with the key in it, and
 *								the bucket and the distance at which to start (the
 *								home and 0, or further on if a hint says so).
 *								False if there are no more keys.
 *	bool op.same(mine, e)		may slot e have the key of mine?  One lane.
 *	bool op.is_it(team, active, mine, e)
 *								does slot e have the key of mine?
 *	void op.done(team, active, found, e)
 *								the search has ended; e is the slot, if found.
 *
 * Adds the number of buckets read to *probes.
 */
template <class S, class Team, class Op>
RHH_DEV void
rhh_find_loop(const rhh_buckets &t, const Team &team, Op &op, uint32_t *probes)
{
	bool		busy = false;
	typename S::slot mine = S::none();
	uint32_t	bucket = 0,
				dist = 0;

	for (;;)
	{
		rhh_line<S> line;
		typename S::slot e = mine;
		uint32_t	bits,
					index;
		bool		found = false,
					ends,
					more;

		busy = op.next(team, !busy, &mine, &bucket, &dist) || busy;
		if (!team.more(busy))
			return;
		if (busy)
			line = rhh_load_line<S>(t, team, bucket);
		else
			rhh_no_line<S>(&line);
		*probes += busy;
		bits = busy ? rhh_matches<S>(line, [&](const typename S::slot &x) {
			return op.same(mine, x);
		}) :
					  0;
		do
		{
			bool		candidate = rhh_next_match<S>(team, &bits, &index);
			typename S::slot x = rhh_slot_of<S>(team, line, index);
			bool		hit = op.is_it(team, candidate, mine, x) && candidate;

			if (hit)
			{
				found = true;
				e = x;
				bits = 0;		/* others may look on */
			}
			more = candidate && !hit;
		} while (Op::UNSURE && team.more(more));

		ends = rhh_ends_probe<S>(t, team, line, bucket, dist) || dist + 1 >= t.max_dist;
		ends = busy && (found || ends);
		op.done(team, ends, found, e);
		if (ends)
			busy = false;
		dist++;
		bucket = rhh_next_bucket(t.n_buckets, bucket);
	}
}

enum rhh_outcome
{
	RHH_FAILED,					/* nothing was stored */
	RHH_MET,					/* the key was there */
	RHH_PLACED,
	RHH_PLACED_MET,				/* placed; the entry that had to make room met its
								 * own key in another slot */
	RHH_PLACED_ORPHAN			/* placed; the entry that had to make room has
								 * found no place */
};

/* What an operation says about a slot that may have its key. */
enum rhh_meeting
{
	RHH_MEET_DONE,
	RHH_MEET_OTHER,				/* it is another key after all */
	RHH_MEET_AGAIN				/* the slot has changed: read the bucket again */
};

/*
 * Inserts entries.  The operation has these functions:
 *
 *	bool op.next(team, active, &mine)
 *								gives the next entry, of which at least the key is
 *								known.  False if there are no more entries.
 *	bool op.same(mine, e)		may slot e have the key of mine?  One lane.
 *	rhh_meeting op.met(team, active, carrying, mine, e, at)
 *								slot number at has e, which may have the key of
 *								mine: what is to be done?  carrying says that mine
 *								is a displaced entry; with RHH_MEET_DONE the
 *								operation has taken care of it.
 *	bool op.make(team, active, victim_rank, &mine)
 *								mine is about to be stored for the first time, in
 *								place of an entry of this rank, and can be
 *								completed.  False makes the insert fail instead.
 *								Called again if the swap does not succeed.
 *	void op.done(team, active, outcome, carried)
 *								the insert has ended.  With RHH_PLACED_ORPHAN
 *								carried is the entry that has left the table; else
 *								it is mine.
 *
 * Adds the number of buckets read to *probes, that of the entries displaced to *moves.
 */
template <class S, class Team, class Op>
RHH_DEV void
rhh_insert_loop(const rhh_buckets &t, const Team &team, Op &op, uint32_t *probes,
				uint32_t *moves)
{
	bool		busy = false,
				carrying = false;
	typename S::slot mine = S::none();
	uint32_t	bucket = 0,
				dist = 0,
				chain = 0;

	for (;;)
	{
		rhh_line<S> line;
		typename S::slot victim;
		uint32_t	bits,
					index,
					richest,
					rank;
		rhh_meeting meeting;
		rhh_outcome outcome = RHH_FAILED;
		bool		over = false,
					take,
					made,
					swapped = false,
					more;

		if (op.next(team, !busy, &mine))
		{
			busy = true;
			carrying = false;
			bucket = rhh_home_of(S::hash(mine), t.n_buckets);
			dist = chain = 0;
		}
		if (!team.more(busy))
			return;
		if (busy)
			line = rhh_load_line<S>(t, team, bucket);
		else
			rhh_no_line<S>(&line);
		*probes += busy;

		bits = busy ? rhh_matches<S>(line, [&](const typename S::slot &x) {
			return op.same(mine, x);
		}) :
					  0;
		meeting = RHH_MEET_OTHER;
		do
		{
			bool		candidate = rhh_next_match<S>(team, &bits, &index);
			rhh_meeting m = op.met(team, candidate, carrying, mine,
								   rhh_slot_of<S>(team, line, index),
								   (uint64_t) bucket * S::SLOTS + index);

			if (candidate)
				meeting = m;
			more = candidate && m == RHH_MEET_OTHER;
			if (!more)
				bits = 0;		/* other tiles may look on */
		} while (Op::UNSURE && team.more(more));
		if (meeting == RHH_MEET_DONE)
		{
			over = true;
			outcome = carrying ? RHH_PLACED_MET : RHH_MET;
		}

		/* If the key is not here, then by (3) no other tile has stored it further on. */
		richest = rhh_richest<S>(t, team, line, bucket);
		rank = richest >> RHH_INDEX_BITS;
		index = richest & ((1u << RHH_INDEX_BITS) - 1);
		take = busy && meeting == RHH_MEET_OTHER && rank <= dist;
		made = op.make(team, take && !carrying, rank, &mine);
		if (take && !carrying && !made)
		{
			over = true;		/* and has failed */
			take = false;
		}
		victim = rhh_own_slot<S>(line, index);
		if (take && team.rank == index / S::PER_LANE)
			swapped = S::cas(t.slots, (uint64_t) bucket * S::SLOTS + index, victim, mine);
		swapped = team.shfl((int) swapped, (int) (index / S::PER_LANE));
		victim = S::shfl(team, victim, (int) (index / S::PER_LANE));

		if (take && swapped)
		{
			if (rank == 0)
			{
				over = true;
				outcome = RHH_PLACED;
			}
			else
			{
				mine = victim;
				carrying = true;
				++*moves;
				dist = rank - 1;	/* its distance here */
				chain++;
			}
		}
		/* To the next bucket, unless the slot has changed: then look at this one again. */
		if (busy && !over && meeting == RHH_MEET_OTHER && (!take || swapped))
		{
			bucket = rhh_next_bucket(t.n_buckets, bucket);
			if (++dist >= t.max_dist || chain >= RHH_MAX_CHAIN)
			{
				over = true;
				outcome = carrying ? RHH_PLACED_ORPHAN : RHH_FAILED;
			}
		}
		op.done(team, over, outcome, mine);
		if (over)
			busy = false;
	}
}

/* ---------- erasing ---------- */

/*
 * Locks of buckets, one bit for each bucket.  A tile takes them in ascending order and
 * holds at most two.  At most n_buckets / 4 tiles may erase at a time: so the tiles
 * that wait for each other can never form a ring around the whole table.
 */
template <class S>
RHH_DEV void
rhh_lock_bucket(uint32_t *locks, const typename S::tile &tile, uint32_t bucket)
{
	if (tile.rank == 0)
	{
		while (atomicOr(&locks[bucket / 32], 1u << bucket % 32) >> bucket % 32 & 1)
			__nanosleep(20);
	}
	__threadfence();
	tile.sync();
}

template <class S>
RHH_DEV void
rhh_unlock_bucket(uint32_t *locks, const typename S::tile &tile, uint32_t bucket)
{
	__threadfence();
	tile.sync();
	if (tile.rank == 0)
		atomicAnd(&locks[bucket / 32], ~(1u << bucket % 32));
}

/* Stores an entry into a slot of a bucket whose lock the tile holds. */
template <class S>
RHH_DEV void
rhh_store_slot(const rhh_buckets &t, const typename S::tile &tile, uint64_t at,
			   const typename S::slot &e)
{
	if (tile.rank == 0)
		*((volatile uint64_t *) t.slots + at * (S::BYTES / 8)) = ((const uint64_t *) &e)[0];
	if (S::BYTES == 16 && tile.rank == 0)
		*((volatile uint64_t *) t.slots + at * 2 + 1) = ((const uint64_t *) &e)[S::BYTES / 8 - 1];
}

/*
 * Erases the entry for which same(e) is true and shifts the entries behind it back, so
 * that there are no tombstones.  Returns whether there was such an entry, and gives it
 * in *erased.  hash is that of its key.  Only other erases may run beside it.
 *
 * The hole is filled by the poorest entry of the next bucket that is not at home there,
 * and the slot of that one is the next hole.  This keeps (2): a probe that goes past the
 * bucket with the hole at distance j sees only distances > j in the next bucket.  So the
 * poorest entry there has a distance of at least j + 1, and of at least j in its new
 * place.  A tile keeps the lock of the bucket that it looks at until it has that of the
 * next one.  So tiles do not overtake each other, and no tile sees the hole of another.
 */
template <class S, class Same>
RHH_DEV bool
rhh_erase(const rhh_buckets &t, uint32_t *locks, const typename S::tile &tile,
		  uint32_t hash, const Same &same, typename S::slot *erased)
{
	uint32_t	bucket = rhh_home_of(hash, t.n_buckets);
	uint32_t	dist = 0;
	uint32_t	index;

	rhh_lock_bucket<S>(locks, tile, bucket);
	for (;;)
	{
		rhh_line<S> line = rhh_load_line<S>(t, tile, bucket);
		uint32_t	bits = rhh_matches<S>(line, same);
		uint32_t	next;

		if (rhh_next_match<S>(tile, &bits, &index))
		{
			*erased = rhh_slot_of<S>(tile, line, index);
			break;
		}
		if (rhh_ends_probe<S>(t, tile, line, bucket, dist) || ++dist >= t.max_dist)
		{
			rhh_unlock_bucket<S>(locks, tile, bucket);
			return false;
		}
		next = rhh_next_bucket(t.n_buckets, bucket);
		rhh_lock_bucket<S>(locks, tile, next);
		rhh_unlock_bucket<S>(locks, tile, bucket);
		bucket = next;
	}
	for (;;)
	{
		uint32_t	next = rhh_next_bucket(t.n_buckets, bucket);
		uint64_t	hole = (uint64_t) bucket * S::SLOTS + index;
		rhh_line<S> line;
		uint32_t	least = ~0u;	/* of ~rank and index: the greatest rank */

		rhh_lock_bucket<S>(locks, tile, next);
		line = rhh_load_line<S>(t, tile, next);
		RHH_UNROLL
		for (int i = 0; i < S::PER_LANE; i++)
		{
			uint32_t	rank = rhh_rank<S>(line.e[i], next, t.n_buckets);
			uint32_t	key = (RHH_MAX_DIST + 1 - rank) << RHH_INDEX_BITS
				| (tile.rank * S::PER_LANE + i);

			if (rank >= 2)
				least = key < least ? key : least;
		}
		least = tile.min(least);
		if (least == ~0u)
		{
			rhh_store_slot<S>(t, tile, hole, S::none());
			rhh_unlock_bucket<S>(locks, tile, next);
			rhh_unlock_bucket<S>(locks, tile, bucket);
			return true;
		}
		index = least & ((1u << RHH_INDEX_BITS) - 1);
		rhh_store_slot<S>(t, tile, hole, rhh_slot_of<S>(tile, line, index));
		rhh_unlock_bucket<S>(locks, tile, bucket);
		bucket = next;
	}
}

#endif							/* RHH_BUCKETS_CUH */
