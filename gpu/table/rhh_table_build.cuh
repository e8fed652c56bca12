/*
 * rhh_table_build.cuh
 *		Bulk inserts as a merge: the table is read and written in order, without an
 *		atomic operation on it.  rhh_table_kernels.cuh includes this file.
 *
 * In the order of home buckets the place of each entry follows: it is as far to the
 * front as its home and the entries before it allow.  If home b has c[b] entries, and
 * slot x[b] of the table is the first one behind these, then
 *
 *		x[b] = min(max(x[b - 1], b * slots) + c[b], (b + max_dist) * slots)
 *
 * where a bucket has so many slots; entries to which the minimum leaves no place are
 * refused.  This is a scan of clamps, x -> min(max(x + c, least), most): two clamps, one
 * after the other, are a clamp again.  The result is a table that Robin Hood hashing may
 * end with, too (Celis 1986; "linear probing sort", Gonnet and Munro 1984).  Only the
 * order of the entries of one home is free: those that were there come first, so that
 * they are not refused in favour of others.
 *
 * Phases, for items that rhh_partition has sorted into parts:
 *
 *	choose_kernel					decides whether merging is worth it; if not, the
 *									others find nothing to do
 *	plan_kernel, plan_all_kernel	find out what there is to do
 *	squeeze_kernel					makes equal keys one in parts that are too large
 *									for a block
 *	build_kernel					merges; a block has a part, that is, its items, the
 *									entries of it that are in the table, and the range
 *									of buckets that are the homes of both
 *
 * The hash of an entry says to which part it belongs, wherever it is.  Some entries of
 * a part are beyond its range, in the first buckets of the next range, on which the
 * blocks of both parts work.  So:
 *
 *	1.	A block reads all entries of its part into shared memory, makes equal keys
 *		one, and publishes the clamp of the part.  No block waits before it has done so.
 *	2.	It learns where its part begins from the clamps of the parts before, by
 *		decoupled look-back (Merrill and Garland, "Single-pass parallel prefix
 *		scan", 2016).  So the blocks of those have all read what they need, and
 *		this one may write its own range from there on.
 *	3.	What belongs beyond the range waits in memory of the block until the clamp of
 *		the next part is there.  Meanwhile the block takes another part, if there is
 *		one, and publishes the clamp of that first.  Blocks take parts in order, so
 *		some block has taken the next part by then.  So no block waits for ever,
 *		however few blocks there are.
 *
 * Entries reach at most one range further.  reach sees to that: it is a probe cap that
 * holds if the table's own is higher.  Entries that only reach refuses are left over for
 * insert_kernel.  So are those that do not fit before the last bucket, where the ring
 * closes.  (The entries of the last part behind the end of the ring stay where they are.
 * An item with the key of such an entry is always left over, because everything from its
 * home to the end of the ring is full and stays so.)  If a table has entries as far from
 * home as reach it is not merged into, and everything is left over.  Left-over entries
 * that were in the table are inserted before items, so that the items are newer.
 *
 * While this runs the table does not have the form that other operations expect.
 * Afterwards it is as if the items had been inserted one by one.  In particular the rank
 * of a slot has only grown (1), since more entries cannot make x[] less.
 */
#ifndef RHH_TABLE_BUILD_CUH
#define RHH_TABLE_BUILD_CUH

namespace rhh
{
namespace detail
{

/* ---------- clamps ---------- */

/* x -> min(max(x + add, least), most), in slots.  The initial one changes nothing. */
struct clamp
{
	static const uint64_t NONE = UINT64_C(1) << 60;

	uint64_t	add = 0;
	uint64_t	least = 0;
	uint64_t	most = NONE;

	__device__ RHH_INLINE uint64_t of(uint64_t x) const
	{
		x = x + add > least ? x + add : least;
		return x < most ? x : most;
	}

	/* The clamp that does what before does, and then what this one does. */
	__device__ RHH_INLINE clamp after(const clamp &before) const
	{
		clamp		both;

		both.add = before.add + add;
		both.least = before.least + add > least ? before.least + add : least;
		both.most = of(before.most);
		return both;
	}

	__device__ RHH_INLINE clamp shfl(int lane) const
	{
		const rhh_lanes warp = (rhh_lanes) ~0ULL;
		clamp		other;

		other.add = __shfl_sync(warp, add, lane);
		other.least = __shfl_sync(warp, least, lane);
		other.most = __shfl_sync(warp, most, lane);
		return other;
	}
};

/*
 * The word that a part publishes.  It is 0 at first; then it has the clamp of the part,
 * relative to the first slot of its range; and once all parts before it are known, it
 * has the slot where the part ends.
 */
struct part_word
{
	static const uint64_t CLAMP = UINT64_C(1) << 62;
	static const uint64_t END = UINT64_C(2) << 62;
	static const int BITS = 20; /* of each of a clamp's three */
	static const uint64_t MASK = (UINT64_C(1) << BITS) - 1;

	static __device__ RHH_INLINE uint64_t pack(const clamp &c)
	{
		return CLAMP | c.add << 2 * BITS | c.least << BITS | (c.most < MASK ? c.most : MASK);
	}
	static __device__ RHH_INLINE uint64_t pack_end(uint64_t x)
	{
		return END | x;
	}

	/* base: the first slot of the range.  *ends: no part before this one matters. */
	static __device__ RHH_INLINE clamp unpack(uint64_t word, uint64_t base, bool *ends)
	{
		clamp		c;

		*ends = (word & END) != 0;
		if (*ends)
			c.least = c.most = word & ~END;
		else
		{
			c.add = word >> 2 * BITS & MASK;
			c.least = base + (word >> BITS & MASK);
			c.most = (word & MASK) == MASK ? clamp::NONE : base + (word & MASK);
		}
		return c;
	}
};

/* ---------- what is to be done ---------- */

struct build_plan
{
	unsigned long long n_leftover;	/* items, from the front of leftover[] */
	unsigned long long n_moved; /* entries that were in the table, from its back */
	uint64_t	first;			/* slots of range 0 that have entries of the last part */
	uint32_t	next_part;		/* blocks take parts in order */
	unsigned long long n_sorted;	/* items to be merged: all of them or none */
	unsigned long long n_unsorted;	/* the other items */
	uint32_t	empty;			/* flag: the table is empty */
	uint32_t	one_by_one;		/* flag: everything is left over */
};

struct part_plan
{
	uint32_t	n_items;		/* from where the part begins in items[] */
	uint32_t	room;			/* for items */
	uint32_t	reach;			/* buckets behind the range that have entries of it */
};

/* What the kernels of a build share.  What the pointers lead to is in the workspace. */
template <class S>
struct build_job
{
	typedef typename S::slot slot;

	slot	   *items;
	const unsigned long long *ends; /* of parts in items[] */
	uint32_t	bits;			/* log2 of the number of parts */
	uint32_t	reach;			/* distances are less afterwards: see above */
	uint64_t	n;				/* leftover[] has room for so many */
	slot	   *leftover;
	part_plan  *parts;
	uint64_t   *words;
	slot	   *spill;			/* SLOTS_USED for each block */
	build_plan *plan;

	/* How many slots a block has in shared memory. */
	static const uint32_t SLOTS_EMPTY = RHH_SORT_BYTES / sizeof(slot);
	static const uint32_t SLOTS_USED = RHH_MERGE_BYTES / sizeof(slot);
	static const uint32_t LEAST_ROOM = 64;

	__device__ RHH_INLINE uint32_t n_parts() const
	{
		return 1u << bits;
	}
	__device__ RHH_INLINE uint32_t part_of(const slot &e) const
	{
		return S::hash(e) >> (32 - bits);
	}
	/* The first bucket of a part's range; the end of the ring for the part behind the last. */
	__device__ RHH_INLINE uint32_t from(uint32_t part, uint32_t n_buckets) const
	{
		return part >> bits ? n_buckets : rhh_home_of(part << (32 - bits), n_buckets);
	}
	__device__ RHH_INLINE uint64_t first_item(uint32_t part) const
	{
		return part > 0 ? ends[part - 1] : 0;
	}
	__device__ RHH_INLINE void leave_over(const slot &e) const
	{
		leftover[atomicAdd(&plan->n_leftover, 1ULL)] = e;
	}
	__device__ RHH_INLINE void leave_over_old(const slot &e) const
	{
		leftover[n - 1 - atomicAdd(&plan->n_moved, 1ULL)] = e;
	}
};

/*
 * Looks at the entries of a part that are in the range behind its own: *n of them, in the
 * first *reach buckets.  False if some are too far from home.  One thread.
 */
template <class S>
static __device__ RHH_INLINE bool
look_behind(const rhh_buckets &b, const build_job<S> &job, uint32_t part, uint32_t *n,
			uint32_t *reach)
{
	const uint32_t border = job.from(part + 1, b.n_buckets) % b.n_buckets;
	bool		full = true;

	*n = 0;
	for (*reach = 0; full && *reach < job.reach; ++*reach)
	{
		const uint32_t bucket = rhh_bucket_behind(b.n_buckets, border, *reach);

		for (int u = 0; u < S::LANES; u++)
		{
			typename S::slot e[S::PER_LANE];

			S::load(e, b.slots, (uint64_t) bucket * S::SLOTS + u * S::PER_LANE);
			for (int k = 0; k < S::PER_LANE; k++)
			{
				const uint32_t rank = rhh_rank<S>(e[k], bucket, b.n_buckets);

				/* By (2) a probe that has come from the border ends here. */
				full = full && rank > *reach;
				if (rank == 0 || job.part_of(e[k]) != part)
					continue;
				if (rank > job.reach)
					return false;
				++*n;
			}
		}
	}
	/* If reach is the cap of the table, there is nothing further on. */
	return !full || job.reach == b.max_dist;
}

/* Makes the plans of the parts.  A thread has a part. */
template <class S>
static __global__ void
plan_kernel(const __grid_constant__ rhh_buckets b, const __grid_constant__ build_job<S> job)
{
	const uint32_t part = blockIdx.x * blockDim.x + threadIdx.x;
	const bool	empty = job.plan->empty != 0;
	part_plan	p = {0, build_job<S>::SLOTS_EMPTY, 0};

	if (part >= job.n_parts() || job.plan->n_sorted == 0)
		return;
	p.n_items = (uint32_t) (job.ends[part] - job.first_item(part));
	if (!empty)
	{
		const bool	last = part + 1 == job.n_parts();
		const uint32_t range = job.from(part + 1, b.n_buckets) - job.from(part, b.n_buckets);
		uint32_t	n_before,
					n_behind,
					reach,
					n_old;
		bool		ok = look_behind(b, job, part > 0 ? part - 1 : job.n_parts() - 1, &n_before,
									 &reach);

		if (part == 0)
			job.plan->first = n_before;
		ok = look_behind(b, job, part, &n_behind, &p.reach) && ok;
		/* Entries of the last part behind the end of the ring stay where they are. */
		if (last)
			p.reach = n_behind = 0;
		n_old = range * S::SLOTS - n_before + n_behind;
		p.room = build_job<S>::SLOTS_USED;
		if (n_old + build_job<S>::LEAST_ROOM <= p.room)
			p.room -= n_old;
		else
			ok = false;
		if (!ok)
			job.plan->one_by_one = 1;
	}
	job.parts[part] = p;
}

/*
 * Makes the rest of the plan; one thread.  If the entries of the last part end in the
 * middle of a bucket of range 0, it moves them to the front of that bucket, as if they
 * had been placed in order.
 */
template <class S>
static __global__ void
plan_all_kernel(const __grid_constant__ rhh_buckets b, const __grid_constant__ build_job<S> job)
{
	typedef typename S::slot slot;
	build_plan *plan = job.plan;
	slot	   *bucket = (slot *) b.slots + plan->first / S::SLOTS * S::SLOTS;
	uint32_t	n_front = 0;

	if (plan->empty)
		plan->first = 0;
	if (plan->n_sorted == 0 || plan->one_by_one || plan->first % S::SLOTS == 0)
		return;
	for (int i = 0; i < S::SLOTS; i++)
	{
		slot		e = bucket[i];

		if (S::is_empty(e) || job.part_of(e) == 0)
			continue;
		bucket[i] = bucket[n_front];
		bucket[n_front++] = e;
	}
}

/*
 * Makes parts smaller that have more items than room.  Each thread keeps some items, and
 * reduces into them what it meets with the same keys; the other items move to the front
 * of the part.  Afterwards a very frequent key occurs only a few times for each thread.
 */
template <class S, typename Key, class Reduce, bool REDUCE, bool COUNT>
static __global__ void
squeeze_kernel(const __grid_constant__ Reduce reduce, const __grid_constant__ build_job<S> job,
			   counters *count)
{
	typedef typename S::slot slot;
	const int	KEPT = 4;
	const int	AT_ONCE = 4;
	__shared__ uint32_t n_out;
	uint32_t	hits = 0;

	if (job.plan->n_sorted == 0)
		return;
	for (uint32_t part = blockIdx.x; part < job.n_parts(); part += gridDim.x)
	{
		const uint32_t n = job.parts[part].n_items;
		slot	   *items = job.items + job.first_item(part);
		slot		kept[KEPT];
		uint32_t	n_kept = 0,
					oldest = 0;

		if (n <= job.parts[part].room)
			continue;
		__syncthreads();
		if (threadIdx.x == 0)
			n_out = 0;
		for (uint32_t from = 0; from < n; from += AT_ONCE * blockDim.x)
		{
			slot		e[AT_ONCE];

			RHH_UNROLL
			for (int a = 0; a < AT_ONCE; a++)
				if (from + a * blockDim.x + threadIdx.x < n)
					e[a] = items[from + a * blockDim.x + threadIdx.x];
			__syncthreads();	/* all have read what others may overwrite */
			RHH_UNROLL
			for (int a = 0; a < AT_ONCE; a++)
			{
				bool		met = from + a * blockDim.x + threadIdx.x >= n;

				RHH_UNROLL
				for (uint32_t k = 0; k < KEPT; k++)
					if (!met && k < n_kept && S::key(kept[k]) == S::key(e[a]))
					{
						if (REDUCE)
							kept[k] = S::make(S::key(e[a]), reduce((Key) S::value(kept[k]),
																   (Key) S::value(e[a])));
						met = true;
						hits++;
					}
				if (met)
					continue;
				/* A slot of registers has no address: find it by comparing. */
				RHH_UNROLL
				for (uint32_t k = 0; k < KEPT; k++)
					if (k == oldest)
					{
						if (n_kept == KEPT)
							items[atomicAdd(&n_out, 1u)] = kept[k];
						kept[k] = e[a];
					}
				n_kept += n_kept < KEPT;
				oldest = (oldest + 1) % KEPT;
			}
		}
		__syncthreads();
		RHH_UNROLL
		for (uint32_t k = 0; k < KEPT; k++)
			if (k < n_kept)
				items[atomicAdd(&n_out, 1u)] = kept[k];
		__syncthreads();
		if (threadIdx.x == 0)
			job.parts[part].n_items = n_out;
	}
	if (COUNT && hits)
		atomicAdd((unsigned long long *) &count->hits, (unsigned long long) hits);
}

/* ---------- building ---------- */

/*
 * Returns where a part begins, in slots of the table.  Called by the first warp of its
 * block, after the clamp of the part has been published.
 */
template <class S>
static __device__ RHH_INLINE uint64_t
look_back(const build_job<S> &job, uint32_t part, uint32_t n_buckets)
{
	const rhh_lanes warp = (rhh_lanes) ~0ULL;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	clamp		all;			/* parts looked at */

	for (uint32_t behind = part;; behind -= RHH_WARP_SIZE)
	{
		clamp		mine;
		bool		ends = lane >= behind;	/* before the first part */
		rhh_lanes	known;

		if (ends)
			mine.least = mine.most = job.plan->first;
		else
		{
			uint32_t	p = behind - 1 - lane;
			uint64_t	word = rhh_load_relaxed64(&job.words[p]);

			while (word == 0)
			{
				__nanosleep(20);
				word = rhh_load_relaxed64(&job.words[p]);
			}
			mine = part_word::unpack(word, (uint64_t) job.from(p, n_buckets) * S::SLOTS, &ends);
		}
		known = __ballot_sync(warp, ends);
		if (known != 0 && lane > (uint32_t) rhh_first_lane(known))
			mine = clamp();		/* what is before an end does not matter */
		/* Lane 0 has the last of these parts; the lanes behind it have earlier ones. */
		for (int step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			clamp		before = mine.shfl((int) (lane + step) % RHH_WARP_SIZE);

			if (lane + step < RHH_WARP_SIZE)
				mine = mine.after(before);
		}
		all = all.after(mine.shfl(0));
		if (known != 0)
			return all.most;	/* a constant by now */
	}
}

/*
 * The dynamic shared memory of a block that builds: this, and behind it the entries
 * of a part, as many as the launch has asked room for.
 */
struct alignas(16) build_memory
{
	uint32_t	n_home[RHH_BUILD_BUCKETS];	/* entries of a home; << 16, those that were there */
	uint32_t	at_home[RHH_BUILD_BUCKETS]; /* where they are in sorted[] */
	uint32_t	begin[RHH_BUILD_BUCKETS];	/* x[] before them, in slots from the range's first on */
	uint64_t	begins;			/* of the part, likewise */
	uint64_t	ends;
	unsigned long long fail_base;
	uint32_t	part;
	uint32_t	n_failing;
	uint32_t	n_placed;
	uint32_t	n_old;			/* entries that were there */
	uint32_t	hits;

	template <class S>
	__device__ RHH_INLINE typename S::slot *entries()
	{
		return (typename S::slot *) (this + 1);
	}

	/* With room for so many entries. */
	template <class S>
	static constexpr size_t bytes(uint32_t n_entries)
	{
		return sizeof(build_memory) + n_entries * sizeof(typename S::slot);
	}
};

/*
 * The part that a block has.  All threads call the functions, in the order in which they
 * stand here, unless a comment says otherwise.
 */
template <class Ref, class S, typename Key, bool REDUCE>
struct part_builder
{
	typedef typename S::slot slot;

	const Ref &r;
	const build_job<S> &job;
	build_memory &m;
	slot	   *sorted;
	slot	   *spill;			/* of the block */

	uint32_t	part;
	uint32_t	from;			/* its range */
	uint32_t	range;			/* buckets */
	bool		last;
	clamp		before;			/* first warp: the lane's homes come after it, within the part */
	clamp		own;			/* the whole part */
	uint32_t	n_spilled;		/* of spilled_part, at spilled_at of the table's slots */
	uint32_t	spilled_part;
	uint64_t	spilled_at;

	static const uint32_t LANE_HOMES = RHH_BUILD_BUCKETS / RHH_WARP_SIZE;

	__device__ RHH_INLINE uint32_t home(const slot &e) const
	{
		return rhh_home_of(S::hash(e), r.b.n_buckets) - from;
	}
	/* Entries of home h must be before this slot of the range. */
	__device__ RHH_INLINE uint64_t limit(uint32_t h) const
	{
		uint64_t	most = (uint64_t) (h + job.reach) * S::SLOTS;
		uint64_t	end = (uint64_t) range * S::SLOTS;

		return last && most > end ? end : most;
	}
	/* Does an entry of home h to which limit() leaves no place exceed the table's own cap? */
	__device__ RHH_INLINE bool fails(uint32_t h) const
	{
		return job.reach == r.b.max_dist && (!last || h + job.reach <= range);
	}
	/* Calls visit(e) for each entry of the part that is in the table. */
	template <class Visit>
	__device__ RHH_INLINE void for_each_old(const Visit &visit) const
	{
		const uint32_t n_range = range * S::LANES;
		const uint32_t n = n_range + job.parts[part].reach * S::LANES;

		for (uint32_t u = threadIdx.x; u < n; u += blockDim.x)
		{
			slot		e[S::PER_LANE];

			/* The last part's reach is 0: the ring's end is never crossed. */
			S::load(e, r.b.slots, ((uint64_t) from * S::LANES + u) * S::PER_LANE);
			for (int k = 0; k < S::PER_LANE; k++)
				if (!S::is_empty(e[k]) && job.part_of(e[k]) == part)
					visit(e[k]);
		}
	}

	/* Reads the entries and items of the part, sorted by homes, and publishes its clamp. */
	__device__ RHH_INLINE void load(uint32_t new_part, bool empty)
	{
		const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
		const slot *items;
		uint32_t	n_items,
					n_kept;

		part = new_part;
		last = part + 1 == job.n_parts();
		from = job.from(part, r.b.n_buckets);
		range = job.from(part + 1, r.b.n_buckets) - from;
		items = job.items + job.first_item(part);
		n_items = job.parts[part].n_items;
		n_kept = n_items < job.parts[part].room ? n_items : job.parts[part].room;

		for (uint32_t h = threadIdx.x; h < RHH_BUILD_BUCKETS; h += blockDim.x)
			m.n_home[h] = 0;
		__syncthreads();
		if (!empty)
			for_each_old([&](const slot &e) {
				atomicAdd(&m.n_home[home(e)], 0x10001u);
			});
		for (uint32_t i = threadIdx.x; i < n_kept; i += blockDim.x)
		{
			slot		e = items[i];

			if (!S::is_empty(e))
				atomicAdd(&m.n_home[home(e)], 1u);
		}
		__syncthreads();
		if (threadIdx.x < RHH_WARP_SIZE)
			make_places();
		__syncthreads();
		if (!empty)
			for_each_old([&](const slot &e) {
				sorted[atomicAdd(&m.at_home[home(e)], 1u)] = e;
			});
		__syncthreads();		/* those that were in the table come first */
		for (uint32_t i = threadIdx.x; i < n_items; i += blockDim.x)
		{
			slot		e = items[i];
			Key			value = (Key) S::value(e);

			if (S::is_empty(e))
				r.template insert_side_lane<REDUCE>(&value);
			else if (i >= n_kept)
				job.leave_over(e);
			else
				sorted[atomicAdd(&m.at_home[home(e)], 1u)] = e;
		}
		__syncthreads();
		reduce_equal_keys();
		__syncthreads();
		if (threadIdx.x >= RHH_WARP_SIZE)
			return;
		own = lane_clamp();
		for (int step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			clamp		earlier = own.shfl((int) (lane + RHH_WARP_SIZE - step) % RHH_WARP_SIZE);

			if (lane >= (uint32_t) step)
				own = own.after(earlier);
		}
		before = own.shfl((int) (lane + RHH_WARP_SIZE - 1) % RHH_WARP_SIZE);
		if (lane == 0)
			before = clamp();
		own = own.shfl(RHH_WARP_SIZE - 1);
		if (lane == 0)
		{
			__threadfence();	/* after all reading of the table */
			atomicExch((unsigned long long *) &job.words[part],
					   (unsigned long long) part_word::pack(own));
		}
	}

	/* First warp: computes from the counts of homes where each begins in sorted[]. */
	__device__ RHH_INLINE void make_places()
	{
		const uint32_t lane = threadIdx.x;
		uint32_t	sum = 0,
					at;

		for (uint32_t k = 0; k < LANE_HOMES; k++)
			sum += m.n_home[lane * LANE_HOMES + k] & 0xFFFF;
		at = rhh_warp_scan(sum) - sum;
		for (uint32_t k = 0; k < LANE_HOMES; k++)
		{
			m.at_home[lane * LANE_HOMES + k] = at;
			at += m.n_home[lane * LANE_HOMES + k] & 0xFFFF;
		}
	}

	/* Reduces items with equal keys to one.  What remains of a home stands first. */
	__device__ RHH_INLINE void reduce_equal_keys()
	{
		uint32_t	hits = 0,
					n_old = 0;

		for (uint32_t h = threadIdx.x; h <= range; h += blockDim.x)
		{
			const uint32_t n = m.n_home[h] & 0xFFFF;
			const uint32_t old = m.n_home[h] >> 16;
			uint32_t	kept = old; /* have different keys */
			slot	   *of_home = sorted + (m.at_home[h] - n);

			for (uint32_t i = old; i < n; i++)
			{
				slot		e = of_home[i];
				uint32_t	j = 0;

				while (j < kept && S::key(of_home[j]) != S::key(e))
					j++;
				if (j < kept)
				{
					hits++;
					if (REDUCE)
						of_home[j] = S::make(S::key(e), r.reduce((Key) S::value(of_home[j]),
																 (Key) S::value(e)));
				}
				else
					of_home[kept++] = e;
			}
			m.n_home[h] = old << 16 | kept;
			m.at_home[h] -= n;
			n_old += old;
		}
		if (hits)
			atomicAdd(&m.hits, hits);
		if (n_old)
			atomicAdd(&m.n_old, n_old);
	}

	/* First warp: returns the clamp of the lane's homes. */
	__device__ RHH_INLINE clamp lane_clamp() const
	{
		clamp		all;

		for (uint32_t k = 0; k < LANE_HOMES; k++)
		{
			uint32_t	h = threadIdx.x * LANE_HOMES + k;
			clamp		one;

			one.add = m.n_home[h] & 0xFFFF;
			if (one.add == 0)
				continue;		/* it does not move what comes after */
			one.least = (uint64_t) h * S::SLOTS + one.add;
			one.most = limit(h);
			all = one.after(all);
		}
		return all;
	}

	/* First warp: computes x[] for each home.  Returns how many entries fail. */
	__device__ RHH_INLINE uint32_t make_begins()
	{
		const uint32_t lane = threadIdx.x;
		const uint64_t base = (uint64_t) from * S::SLOTS;
		uint64_t	begins = part > 0 ? look_back(job, part, r.b.n_buckets) : job.plan->first;
		uint64_t	x;
		uint32_t	failing = 0;

		__threadfence();		/* the blocks of parts before have read; now this one may write */
		begins = begins > base ? begins - base : 0;
		if (lane == 0)
		{
			m.begins = begins;
			m.ends = own.of(begins);
			atomicExch((unsigned long long *) &job.words[part],
					   (unsigned long long) part_word::pack_end(base + m.ends));
		}
		x = before.of(begins);
		for (uint32_t k = 0; k < LANE_HOMES; k++)
		{
			const uint32_t h = lane * LANE_HOMES + k;
			const uint32_t n = m.n_home[h] & 0xFFFF;
			uint32_t	placed;

			if (n > 0 && x < (uint64_t) h * S::SLOTS)
				x = (uint64_t) h * S::SLOTS;
			m.begin[h] = (uint32_t) x;
			placed = n_placed(h);
			x += placed;
			if (n > placed && fails(h))
				failing += n - placed;
		}
		for (int step = RHH_WARP_SIZE / 2; step > 0; step /= 2)
			failing += __shfl_xor_sync((rhh_lanes) ~0ULL, failing, step);
		return failing;
	}

	/* How many entries of home h, whose begin[] is known, find a place. */
	__device__ RHH_INLINE uint32_t n_placed(uint32_t h) const
	{
		const uint32_t n = m.n_home[h] & 0xFFFF;
		const uint64_t most = limit(h);
		const uint64_t places = most > m.begin[h] ? most - m.begin[h] : 0;

		return n < places ? n : (uint32_t) places;
	}

	/* Writes what has been loaded to where it belongs.  Returns how many entries fail. */
	__device__ RHH_INLINE uint32_t place(bool empty, const failed<Key> &failures)
	{
		const uint64_t end = (uint64_t) range * S::SLOTS;
		slot	   *slots = (slot *) r.b.slots + (uint64_t) from * S::SLOTS;
		uint32_t	failing = 0,
					placed_by_me = 0;

		if (threadIdx.x < RHH_WARP_SIZE)
			failing = make_begins();
		if (threadIdx.x == 0)
		{
			m.n_failing = 0;
			m.fail_base = failing && failures.count
				? atomicAdd(failures.count, (unsigned long long) failing) : 0;
		}
		__syncthreads();
		spilled_part = part;
		spilled_at = m.begins > end ? m.begins : end;
		n_spilled = m.ends > spilled_at ? (uint32_t) (m.ends - spilled_at) : 0;
		for (uint32_t h = threadIdx.x; h <= range; h += blockDim.x)
		{
			const uint32_t n = m.n_home[h] & 0xFFFF;
			const uint32_t old = m.n_home[h] >> 16;
			const uint32_t placed = n_placed(h);
			const slot *of_home = sorted + m.at_home[h];
			uint64_t	x = m.begin[h];

			for (uint32_t i = 0; i < placed; i++, x++)
			{
				if (x < end)
					slots[x] = of_home[i];
				else
					spill[x - spilled_at] = of_home[i];
			}
			placed_by_me += placed;
			if (placed < n && fails(h))
				hand_back(of_home + placed, n - placed, failures);
			else
				for (uint32_t i = placed; i < n; i++)
				{
					if (i < old)
						job.leave_over_old(of_home[i]);
					else
						job.leave_over(of_home[i]);
				}
			/* Empties the rest of the bucket, if the homes up to this one end in it. */
			if (!empty && h < range)
			{
				x = x > (uint64_t) h * S::SLOTS ? x : (uint64_t) h * S::SLOTS;
				for (; x < (uint64_t) (h + 1) * S::SLOTS; x++)
					slots[x] = S::none();
			}
		}
		spilled_at += (uint64_t) from * S::SLOTS;
		if (placed_by_me)
			atomicAdd(&m.n_placed, placed_by_me);
		return failing;
	}

	__device__ RHH_INLINE void hand_back(const slot *e, uint32_t n, const failed<Key> &failures)
	{
		unsigned long long to = m.fail_base + atomicAdd(&m.n_failing, n);

		if (!failures.count || !failures.keys)
			return;
		for (uint32_t i = 0; i < n; i++)
		{
			failures.keys[to + i] = (Key) S::key(e[i]);
			if (failures.values)
				failures.values[to + i] = (Key) S::value(e[i]);
		}
	}

	/* Writes what belongs into the range behind that of the part placed last. */
	__device__ RHH_INLINE void place_spilled()
	{
		if (n_spilled > 0)
		{
			if (threadIdx.x == 0)
			{
				while (rhh_load_relaxed64(&job.words[spilled_part + 1]) == 0)
					__nanosleep(20);
				__threadfence();
			}
			__syncthreads();
			for (uint32_t i = threadIdx.x; i < n_spilled; i += blockDim.x)
				((slot *) r.b.slots)[spilled_at + i] = spill[i];
		}
		n_spilled = 0;
	}
};

/*
 * Merges.  It is launched twice, once for a table that is empty and once for one that is
 * not, because only the device knows which it is; one of the two launches does nothing.
 * Dynamic shared memory: see build_memory.
 */
template <class Ref, class S, typename Key, bool REDUCE, bool COUNT>
static __global__ void __launch_bounds__(RHH_BUILD_THREADS, RHH_BUILD_BLOCKS_PER_SM)
build_kernel(const __grid_constant__ Ref r, const __grid_constant__ build_job<S> job, bool for_empty,
			 const __grid_constant__ failed<Key> failures, counters *count)
{
	RHH_DYNAMIC_SHARED(rhh_pair64, raw);
	build_memory &m = *(build_memory *) raw;
	part_builder<Ref, S, Key, REDUCE> b = {r, job, m, m.entries<S>(),
		job.spill + (uint64_t) blockIdx.x * build_job<S>::SLOTS_USED, 0, 0, 0, false, clamp(), clamp(), 0, 0, 0};
	unsigned long long failing = 0;

	Ref::require_cas();
	if ((job.plan->empty != 0) != for_empty || job.plan->n_sorted == 0)
		return;
	if (threadIdx.x == 0)
		m.n_placed = m.n_old = m.hits = 0;
	for (;;)
	{
		if (threadIdx.x == 0)
			m.part = atomicAdd(&job.plan->next_part, 1u);
		__syncthreads();

		const uint32_t part = m.part;

		if (part >= job.n_parts())
			break;
		if (job.plan->one_by_one)
		{
			const uint32_t n = job.parts[part].n_items;

			__syncthreads();
			if (threadIdx.x == 0)
				m.fail_base = atomicAdd(&job.plan->n_leftover, (unsigned long long) n);
			__syncthreads();
			for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
				job.leftover[m.fail_base + i] = job.items[job.first_item(part) + i];
			continue;
		}
		b.load(part, for_empty);
		b.place_spilled();
		__syncthreads();
		failing += b.place(for_empty, failures);
		__syncthreads();
	}
	b.place_spilled();
	if (threadIdx.x == 0)
	{
		/* Modulo 2^64: entries may have been handed back or left over. */
		unsigned long long more = (unsigned long long) m.n_placed - m.n_old;

		if (more)
			atomicAdd(&r.side->size, more);
		if (m.n_placed)
			*(volatile uint32_t *) &r.side->hints_current = 0;
		flush_counters<COUNT>(block_counters{0, 0, m.hits, 0, failing}, 0, count);
	}
}

}								/* namespace detail */
}								/* namespace rhh */

#endif							/* RHH_TABLE_BUILD_CUH */
