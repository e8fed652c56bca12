/*
 * rhh_table_build.cuh
 *		Bulk inserts as a merge: the table is read and written in order, with no
 *		atomic operation on it.  Included by rhh_table_kernels.cuh.
 *
 * In order of home buckets, each entry's place follows: as far to the front as
 * its home and the entries before it allow.  For home b with c[b] entries, after
 * which slot x[b] of the table is the next,
 *
 *		x[b] = min(max(x[b - 1], b * slots) + c[b], (b + max_dist) * slots)
 *
 * slots being those of a bucket; entries that the minimum leaves no place are
 * refused.  That is a scan of clamps, x -> min(max(x + c, least), most), which
 * are closed under composition, and the result is a table that Robin Hood
 * hashing may end with (Celis 1986; "linear probing sort", Gonnet and Munro 1984).
 * Only the order of entries of one home is free: those that were there come
 * first, so that they are not refused for others.
 *
 * Phases, for items that rhh_partition has sorted into parts:
 *
 *	choose_kernel					whether it is worth it; if not, nobody has anything to do
 *	plan_kernel, plan_all_kernel	what there is to do
 *	squeeze_kernel					parts too large for a block: equal keys become
 *									one as they are met
 *	build_kernel					a block has a part: its items, the entries that
 *									are there, and the range of buckets that are
 *									the homes of both
 *
 * An entry belongs to the part that its hash says, wherever it is.  Some of a
 * part's are beyond its range, in the first buckets of the next one, where blocks
 * of both are at work.  So:
 *
 *	1.	A block reads all entries of its part into shared memory, makes equal keys
 *		one, and publishes the part's clamp.  Nobody waits before that.
 *	2.	It learns where its part begins from the clamps of those before, by
 *		decoupled look-back (Merrill and Garland, "Single-pass parallel prefix
 *		scan", 2016); so they have all read what they need, and it may write its
 *		own range from there on.
 *	3.	What belongs beyond the range waits in memory of the block's until the
 *		next part's clamp is there.  The block takes another part meanwhile, if
 *		there is one, and publishes that one's clamp first.  Blocks take parts in
 *		order, so the next part is in somebody's hands by then: nobody waits for
 *		ever, however few blocks there are.
 *
 * Entries reach one range further at most, by reach, a probe cap that holds if
 * the table's own is higher; what is refused by that one alone is left over, for
 * insert_kernel, as is what does not fit before the last bucket, where the ring
 * closes.  (The last part's entries behind that stay as they are.  An item with
 * such a key is always left over: all from its home to the ring's end is full,
 * and stays so.)  A table that has entries as far from home as that is not merged into:
 * all is left over.  Entries that were there and are left over come before
 * items, so that these are the newer ones.
 *
 * While it runs, the table is not as others expect.  Afterwards it is as if the
 * items had been inserted one by one: a slot's rank has only grown (1), since
 * more entries cannot make x[] less.
 */
#ifndef RHH_TABLE_BUILD_CUH
#define RHH_TABLE_BUILD_CUH

namespace rhh
{
namespace detail
{

/* ---------- clamps ---------- */

/* x -> min(max(x + add, least), most), of slots; the initial one changes nothing. */
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

	/* Goes after another one. */
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
 * What a part publishes: nothing yet; its clamp, relative to the first slot of its
 * range; or, given all parts before it, where it ends.
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

	/* base: the first slot of the range.  *ends: nothing before matters. */
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
	unsigned long long n_moved; /* entries that were there, from its back */
	uint64_t	first;			/* slots of range 0 that the last part's entries have */
	uint32_t	next_part;		/* blocks take parts in order */
	unsigned long long n_sorted;	/* items: all or none, */
	unsigned long long n_unsorted;	/* and the others */
	uint32_t	empty;			/* flag: the table is */
	uint32_t	one_by_one;		/* flag: all is left over */
};

struct part_plan
{
	uint32_t	n_items;		/* from where the part begins in items[] */
	uint32_t	room;			/* for items */
	uint32_t	reach;			/* buckets behind the range that have entries of it */
};

/* What the kernels of a build share; all in the workspace but for the counts. */
template <class S>
struct build_job
{
	typedef typename S::slot slot;

	slot	   *items;
	const unsigned long long *ends; /* of parts in items[] */
	uint32_t	bits;			/* log2 of the number of parts */
	uint32_t	reach;			/* distances are less, after it: see above */
	uint64_t	n;				/* room of leftover[] */
	slot	   *leftover;
	part_plan  *parts;
	uint64_t   *words;
	slot	   *spill;			/* SLOTS_USED for each block */
	build_plan *plan;

	/* Slots that a block has in shared memory. */
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
	/* The first bucket of a part's range; of the part behind the last, the ring's end. */
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
 * The entries that those of part have left in the range behind its own: n of
 * them, in *reach buckets.  False if some are too far from home.  One thread.
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

				/* The early exit of a probe that has come from the border (2). */
				full = full && rank > *reach;
				if (rank == 0 || job.part_of(e[k]) != part)
					continue;
				if (rank > job.reach)
					return false;
				++*n;
			}
		}
	}
	/* A table's own cap leaves nothing further on. */
	return !full || job.reach == b.max_dist;
}

/* A thread has a part. */
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
		/* The last part's entries behind the ring's end stay where they are. */
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
 * One thread: the rest of the plan.  Where entries of the last part end in range
 * 0, amid a bucket, it moves them to its front, as if they had been placed.
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
 * Blocks take the parts that have more items than room.  A thread keeps some keys
 * that it has met and reduces by them what it meets next; the others move to the
 * front of the part.  So what is very frequent is there a few times for each
 * thread, afterwards.
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
 * Where part begins, in slots of the table: its block's first warp, after part's
 * clamp has been published.
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
		/* Lane 0 has the last part; lanes behind it come before. */
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

struct alignas(16) build_memory /* the slots behind it, too */
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
};

#define RHH_BUILD_SHARED(S, slots) (sizeof(detail::build_memory) + (slots) * sizeof(typename S::slot))

/* A block's part, in the order of the functions below; called by all threads. */
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
	/* Entries of home h are before this slot of the range. */
	__device__ RHH_INLINE uint64_t limit(uint32_t h) const
	{
		uint64_t	most = (uint64_t) (h + job.reach) * S::SLOTS;
		uint64_t	end = (uint64_t) range * S::SLOTS;

		return last && most > end ? end : most;
	}
	/* Is an entry of home h that limit() leaves no place beyond the table's own cap? */
	__device__ RHH_INLINE bool fails(uint32_t h) const
	{
		return job.reach == r.b.max_dist && (!last || h + job.reach <= range);
	}
	/* visit(e) for each entry of the part that is in the table. */
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

	/* Reads what there is of the part, sorted by homes, and publishes its clamp. */
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
		__syncthreads();		/* those that were there come first */
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
			__threadfence();	/* what was read has been read */
			atomicExch((unsigned long long *) &job.words[part],
					   (unsigned long long) part_word::pack(own));
		}
	}

	/* First warp: from the counts of homes, where each begins in sorted[]. */
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

	/* What remains of a home comes first. */
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

	/* First warp: the clamp of the lane's homes. */
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

	/* First warp: x[] for each home.  Returns how many entries fail. */
	__device__ RHH_INLINE uint32_t make_begins()
	{
		const uint32_t lane = threadIdx.x;
		const uint64_t base = (uint64_t) from * S::SLOTS;
		uint64_t	begins = part > 0 ? look_back(job, part, r.b.n_buckets) : job.plan->first;
		uint64_t	x;
		uint32_t	failing = 0;

		__threadfence();		/* those before have read before this block writes */
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

	/* Of home h, whose begin[] is known. */
	__device__ RHH_INLINE uint32_t n_placed(uint32_t h) const
	{
		const uint32_t n = m.n_home[h] & 0xFFFF;
		const uint64_t most = limit(h);
		const uint64_t places = most > m.begin[h] ? most - m.begin[h] : 0;

		return n < places ? n : (uint32_t) places;
	}

	/* Writes what was loaded to where it belongs.  Returns how many entries fail. */
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
			/* The rest of the bucket, where homes up to this one end. */
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

	/* What belongs into the range behind that of the part placed last. */
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
 * Dynamic shared memory: RHH_BUILD_SHARED.  It is launched for an empty table and
 * for one that is not, since only the device knows, and one of them does nothing.
 */
template <class Ref, class S, typename Key, bool REDUCE, bool COUNT>
static __global__ void __launch_bounds__(RHH_BUILD_THREADS, RHH_BUILD_BLOCKS_PER_SM)
build_kernel(const __grid_constant__ Ref r, const __grid_constant__ build_job<S> job, bool for_empty,
			 const __grid_constant__ failed<Key> failures, counters *count)
{
	RHH_DYNAMIC_SHARED(rhh_pair64, raw);
	build_memory &m = *(build_memory *) raw;
	part_builder<Ref, S, Key, REDUCE> b = {r, job, m, (typename S::slot *) (&m + 1),
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
