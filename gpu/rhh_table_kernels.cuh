/*
 * rhh_table_kernels.cuh
 *		rhh::table's bulk operations: kernels, then the host functions that
 *		launch them.  Included by rhh_table.cuh.
 *
 * In kernels over keys a lane has a key, read and written coalesced; a tile
 * takes its lanes' keys one after the other, and the tiles of a warp go in step.
 */
#ifndef RHH_TABLE_KERNELS_CUH
#define RHH_TABLE_KERNELS_CUH

namespace rhh
{

/* Sums of a block, flushed once: an atomic a tile would be too many. */
struct block_counters
{
	uint32_t	placed;
	uint32_t	probes;
	uint32_t	hits;
	uint32_t	displacements;
	uint32_t	failures;
};

template <bool COUNT>
static __device__ RHH_INLINE void
flush_counters(const block_counters &local, uint32_t operations, counters *to)
{
	if (!COUNT)
		return;
	atomicAdd((unsigned long long *) &to->operations, (unsigned long long) operations);
	atomicAdd((unsigned long long *) &to->probes, (unsigned long long) local.probes);
	atomicAdd((unsigned long long *) &to->hits, (unsigned long long) local.hits);
	atomicAdd((unsigned long long *) &to->displacements, (unsigned long long) local.displacements);
	atomicAdd((unsigned long long *) &to->failures, (unsigned long long) local.failures);
}

static __global__ void
count_operations_kernel(counters *to, uint64_t n)
{
	to->operations += n;
}

/* ---------- sources of pairs ---------- */

template <class S, typename Key>
struct columns
{
	typedef typename S::slot item;

	const Key  *keys;
	const Key  *values;			/* may be NULL */

	__device__ RHH_INLINE item load(uint64_t i) const
	{
		return S::make(keys[i], values ? values[i] : (Key) 0);
	}
	__device__ RHH_INLINE uint32_t hash(const item &e) const
	{
		return S::hash(e);
	}
};

template <class S>
struct pairs
{
	typedef typename S::slot item;

	const item *items;

	__device__ RHH_INLINE item load(uint64_t i) const
	{
		return items[i];
	}
	__device__ RHH_INLINE uint32_t hash(const item &e) const
	{
		return S::hash(e);
	}
};

/* ---------- kernels ---------- */

template <class S>
static __global__ void
clear_kernel(typename S::slot *slots, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		slots[i] = S::none();
}

/* A warp's inserts: those of its lanes' entries that are valid. */
template <class Ref, class S, typename Key, bool REDUCE>
struct insert_many : Ref::template inserting<REDUCE>
{
	typedef typename S::slot slot;
	typedef typename S::warp_tiles team;

	slot		entry;			/* the lane's; what comes back, if it fails */
	rhh_lanes	pending;		/* of the tile's lanes */
	int			src;			/* the lane whose entry is in hand */
	bool		fails;
	uint32_t	placed;
	uint32_t	hits;
	uint32_t	n_failed;

	__device__ RHH_INLINE bool next(const team &t, bool active, slot *mine)
	{
		bool		got = active && pending != 0;
		slot		e;

		if (got)
		{
			src = rhh_first_lane(pending);
			pending &= pending - 1;
		}
		e = S::shfl(t, entry, src);
		if (got)
			*mine = e;
		return got;
	}

	__device__ RHH_INLINE void done(const team &t, bool active, rhh_outcome o, const slot &carried)
	{
		if (!active)
			return;
		/* The other two ways of being placed take one entry out. */
		placed += o == RHH_PLACED;
		hits += o == RHH_MET;
		if (o == RHH_FAILED || o == RHH_PLACED_ORPHAN)
		{
			n_failed++;
			if (t.rank == (uint32_t) src)
			{
				fails = true;
				entry = carried;
			}
		}
	}
};

/*
 * Blocks take consecutive ranges, so that those running are near each other.
 * n_items: how many there are, if the host does not know, and only has n for the
 * most there can be.
 */
template <class Ref, class S, typename Key, class Io, bool REDUCE, bool COUNT>
static __global__ void
insert_kernel(const __grid_constant__ Ref r, const __grid_constant__ Io io, uint64_t n,
			  const unsigned long long *n_items, const __grid_constant__ failed<Key> failures,
			  counters *count)
{
	const typename S::warp_tiles team;
	const uint64_t block_items = (uint64_t) blockDim.x * RHH_TABLE_ITEMS;
	const uint64_t stride = gridDim.x * block_items;
	const uint64_t all = n_items ? *n_items : n;
	insert_many<Ref, S, Key, REDUCE> op = {{r}, S::none(), 0, 0, false, 0, 0, 0};
	uint32_t	probes = 0,
				moves = 0,
				operations = 0;
	__shared__ block_counters local;
	__shared__ uint32_t n_operations;

	Ref::require_cas();
	if (threadIdx.x == 0)
	{
		local = block_counters{0, 0, 0, 0, 0};
		n_operations = 0;
	}
	__syncthreads();
	for (uint64_t first = blockIdx.x * block_items; first < all; first += stride)
		for (uint32_t k = 0; k < RHH_TABLE_ITEMS; k++)
		{
			uint64_t	end = all - first < block_items ? all : first + block_items;
			uint64_t	i = first + k * blockDim.x + threadIdx.x;

			operations += i < end;
			op.entry = i < end ? io.load(i) : S::none();
			op.pending = team.ballot(!S::is_empty(op.entry));
			op.fails = false;
			if (i < end && S::is_empty(op.entry))
			{
				Key			value = (Key) S::value(op.entry);

				r.template insert_side_lane<REDUCE>(&value);
			}
			rhh_insert_loop<S>(r.b, team, op, &probes, &moves);
			if (failures.count)
			{
				rhh_lanes	who = team.ballot(op.fails);
				unsigned long long to = 0;

				if (team.rank == 0 && who)
					to = atomicAdd(failures.count, (unsigned long long) rhh_count_lanes(who));
				to = team.shfl(to, 0) + rhh_count_lanes(who & (((rhh_lanes) 1 << team.rank) - 1));
				if (op.fails && failures.keys)
				{
					failures.keys[to] = (Key) S::key(op.entry);
					if (failures.values)
						failures.values[to] = (Key) S::value(op.entry);
				}
			}
		}
	if (COUNT)
		atomicAdd(&n_operations, operations);
	if (team.rank == 0)
	{
		atomicAdd(&local.placed, op.placed);
		if (COUNT)
		{
			atomicAdd(&local.probes, probes);
			atomicAdd(&local.hits, op.hits);
			atomicAdd(&local.displacements, moves);
			atomicAdd(&local.failures, op.n_failed);
		}
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		if (local.placed)
			atomicAdd(&r.side->size, (unsigned long long) local.placed);
		/* What a build left over, the build's caller has counted. */
		flush_counters<COUNT>(local, n_items ? 0 : n_operations, count);
	}
}

/*
 * Building.  Where a table's range of buckets is empty, where its entries go is
 * known at once: in order of home buckets, each as far to the front as its home
 * and the entries before it allow.  For home b with c[b] entries, that begin at
 * slot x[b] of the range,
 *
 *		x[b] = max(x[b - 1] + c[b - 1], b * slots of a bucket)
 *
 * which is a scan of functions x -> max(x + c, m), and closed under composition.
 * That is the table that Robin Hood hashing ends with, whatever the order
 * (Celis 1986; "linear probing sort", Gonnet and Munro 1984), with no atomic
 * operation on the table.
 *
 * A block has a part of the items (rhh_partition) and the range of buckets that
 * are their homes.  If the table is empty and every part fits a block's memory
 * (plan_kernel looks), a part begins where those before it end: blocks hand that
 * on by decoupled look-back (Merrill and Garland, "Single-pass parallel prefix
 * scan", 2016), and entries beyond the range are written into the next one.
 * (The table must be uncapped for that: an entry refused would leave a hole.)
 * Otherwise a part is built for itself if its range is empty; then what ends up
 * beyond the range is left over, for insert_kernel, as are whole parts that
 * find their range in use or are too large.
 *
 * A part's word: nothing yet; its function, c and m relative to its range; or
 * where it ends, given all parts before it.
 */
#define RHH_PART_FUNCTION (UINT64_C(1) << 62)
#define RHH_PART_END (UINT64_C(2) << 62)
#define RHH_PART_VALUE (RHH_PART_FUNCTION - 1)

struct build_plan
{
	unsigned long long n_leftover;
	uint32_t	next_part;		/* blocks take parts in order */
	uint32_t	too_large;		/* flag */
	uint32_t	linked;			/* flag: parts begin where those before end */
};

static __global__ void
plan_kernel(const unsigned long long *ends, uint32_t n_parts, uint32_t room, build_plan *plan)
{
	for (uint32_t p = blockIdx.x * blockDim.x + threadIdx.x; p < n_parts;
		 p += gridDim.x * blockDim.x)
		if (ends[p] - (p > 0 ? ends[p - 1] : 0) > room)
			plan->too_large = 1;
}

static __global__ void
link_kernel(const side_and_size *side, const __grid_constant__ rhh_buckets b, uint32_t n_parts,
			build_plan *plan)
{
	plan->linked = !plan->too_large && side->size == 0 && !side->uncounted
		&& b.max_dist == b.n_buckets && b.n_buckets / n_parts + 1 < RHH_BUILD_BUCKETS;
}

/*
 * Where part p begins, in slots of the table: the first warp of p's block, which
 * has published p's function.
 */
static __device__ RHH_INLINE uint64_t
look_back(const uint64_t *words, uint32_t part, uint32_t n_buckets, uint32_t bits,
		  uint32_t bucket_slots)
{
	const rhh_lanes warp = (rhh_lanes) ~0ULL;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	uint64_t	add = 0,		/* of the parts looked at */
				least = 0;

	for (uint32_t behind = part;; behind -= RHH_WARP_SIZE)
	{
		uint64_t	c = 0,
					m = 0;
		bool		ends = lane >= behind;	/* before the first part */
		rhh_lanes	known;

		if (lane < behind)
		{
			uint32_t	p = behind - 1 - lane;
			uint64_t	word = rhh_load_shared64(&words[p]);

			while (word == 0)
			{
				__nanosleep(20);
				word = rhh_load_shared64(&words[p]);
			}
			ends = (word & RHH_PART_END) != 0;
			m = word & RHH_PART_VALUE;
			if (!ends)
			{
				c = m & 0xFFFFFF;
				m = (m >> 24) + (uint64_t) rhh_home_of(p << (32 - bits), n_buckets) * bucket_slots;
			}
		}
		known = __ballot_sync(warp, ends);
		if (known != 0 && lane > (uint32_t) rhh_first_lane(known))
			c = m = 0;			/* what is before an end does not matter */
		/* Lane 0 has the last part; lanes behind it come before. */
		for (int step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			uint64_t	c_before = __shfl_down_sync(warp, c, step);
			uint64_t	m_before = __shfl_down_sync(warp, m, step);

			if (lane + step < RHH_WARP_SIZE)
			{
				m = m_before + c > m ? m_before + c : m;
				c += c_before;
			}
		}
		c = __shfl_sync(warp, c, 0);
		m = __shfl_sync(warp, m, 0);
		least = m + add > least ? m + add : least;
		add += c;
		if (known != 0)
			return least;		/* m: nothing is before an end */
	}
}

template <class Ref, class S, typename Key, bool REDUCE, bool COUNT>
static __global__ void
build_kernel(const __grid_constant__ Ref r, const typename S::slot *items,
			 const unsigned long long *ends, uint32_t bits, typename S::slot *leftover,
			 build_plan *plan, uint64_t *words, counters *count)
{
	__shared__ uint32_t part_taken;

	if (threadIdx.x == 0)
		part_taken = atomicAdd(&plan->next_part, 1u);
	__syncthreads();

	typedef typename S::slot slot;
	const uint32_t ROOM = RHH_SORT_BYTES / sizeof(slot);
	const uint32_t n_buckets = r.b.n_buckets;
	const uint32_t part = part_taken;
	const bool	linked = plan->linked != 0;
	const uint64_t first = part > 0 ? ends[part - 1] : 0;
	const uint64_t n_items = ends[part] - first;
	const uint32_t from = rhh_home_of(part << (32 - bits), n_buckets);
	const uint32_t to = part + 1 == gridDim.x
		? n_buckets : rhh_home_of((part + 1) << (32 - bits), n_buckets);
	const uint32_t range = to - from;
	/* A part's last home may be the next one's first: they share a bucket. */
	const uint32_t homes = linked ? range + 1 : range;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	__shared__ rhh_pair64 raw[RHH_SORT_BYTES / sizeof(rhh_pair64)];
	__shared__ uint32_t n_home[RHH_BUILD_BUCKETS];	/* entries of a home */
	__shared__ uint32_t at_home[RHH_BUILD_BUCKETS]; /* where they end in sorted[] */
	__shared__ uint32_t begin[RHH_BUILD_BUCKETS];	/* x[], in slots */
	__shared__ uint32_t in_use;
	__shared__ uint32_t over_cap;	/* some entry would be too far from home */
	__shared__ block_counters local;
	slot	   *sorted = (slot *) raw;
	uint32_t	placed = 0,
				hits = 0;
	uint32_t	part_add = 0,
				part_least = 0;
	unsigned long long *n_leftover = &plan->n_leftover;
	bool		fits = linked || (range > 0 && range <= RHH_BUILD_BUCKETS && n_items <= ROOM);

	Ref::require_cas();
	if (n_items == 0 && !linked)
		return;
	if (threadIdx.x == 0)
	{
		in_use = over_cap = 0;
		local = block_counters{0, 0, 0, 0, 0};
	}
	for (uint32_t h = threadIdx.x; h < RHH_BUILD_BUCKETS; h += blockDim.x)
		n_home[h] = 0;
	__syncthreads();
	if (fits)
	{
		/* Any entry, from outside too, and nothing is known. */
		for (uint32_t u = threadIdx.x; u < range * S::LANES && !linked; u += blockDim.x)
		{
			slot		e[S::PER_LANE];

			S::load(e, r.b.slots, ((uint64_t) from * S::LANES + u) * S::PER_LANE);
			for (int k = 0; k < S::PER_LANE; k++)
				if (!S::is_empty(e[k]))
					in_use = 1;
		}
		for (uint32_t i = threadIdx.x; i < n_items; i += blockDim.x)
		{
			slot		e = items[first + i];
			uint32_t	h = rhh_home_of(S::hash(e), n_buckets) - from;

			if (!S::is_empty(e) && h < homes)
				atomicAdd(&n_home[h], 1u);
		}
	}
	__syncthreads();
	fits = fits && in_use == 0;
	if (!fits)
	{
		__shared__ unsigned long long base;

		if (threadIdx.x == 0)
			base = atomicAdd(n_leftover, (unsigned long long) n_items);
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < n_items; i += blockDim.x)
			leftover[base + i] = items[first + i];
		return;
	}

	/* The first warp makes the counts places in sorted[]. */
	if (threadIdx.x < RHH_WARP_SIZE)
	{
		const uint32_t each = RHH_BUILD_BUCKETS / RHH_WARP_SIZE;
		uint32_t	sum = 0,
					before;

		for (uint32_t k = 0; k < each; k++)
			sum += n_home[lane * each + k];
		before = sum;
		for (uint32_t step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			uint32_t	x = __shfl_up_sync(S::warp_tiles::WARP, before, step);

			if (lane >= step)
				before += x;
		}
		before -= sum;
		for (uint32_t k = 0; k < each; k++)
		{
			at_home[lane * each + k] = before;
			before += n_home[lane * each + k];
		}
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < n_items; i += blockDim.x)
	{
		slot		e = items[first + i];
		uint32_t	h = rhh_home_of(S::hash(e), n_buckets) - from;
		Key			value = (Key) S::value(e);

		if (S::is_empty(e))
			r.template insert_side_lane<REDUCE>(&value);
		else if (h < homes)
			sorted[atomicAdd(&at_home[h], 1u)] = e;
		else
			leftover[atomicAdd(n_leftover, 1ULL)] = e;
	}
	__syncthreads();

	/* Equal keys become one; what remains of a home comes first. */
	for (uint32_t h = threadIdx.x; h < homes; h += blockDim.x)
	{
		uint32_t	n = n_home[h],
					kept = 0;
		slot	   *home = sorted + (at_home[h] - n);

		for (uint32_t i = 0; i < n; i++)
		{
			slot		e = home[i];
			uint32_t	j = 0;

			while (j < kept && S::key(home[j]) != S::key(e))
				j++;
			if (j < kept)
			{
				hits++;
				if (REDUCE)
					home[j] = S::make(S::key(e), r.reduce((Key) S::value(home[j]),
														  (Key) S::value(e)));
			}
			else
				home[kept++] = e;
		}
		n_home[h] = kept;
		at_home[h] -= n;
	}
	__syncthreads();

	/* x[], by the first warp: a lane's homes, then over the lanes. */
	if (threadIdx.x < RHH_WARP_SIZE)
	{
		const uint32_t each = RHH_BUILD_BUCKETS / RHH_WARP_SIZE;
		uint32_t	add = 0,
					least = 0,
					x;

		for (uint32_t k = 0; k < each; k++)
		{
			uint32_t	h = lane * each + k;
			uint32_t	c = n_home[h];
			/* Homes without entries do not move what comes after. */
			uint32_t	m = c > 0 ? h * S::SLOTS + c : 0;

			add += c;
			least = least + c > m ? least + c : m;
		}
		for (uint32_t step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			uint32_t	add_before = __shfl_up_sync(S::warp_tiles::WARP, add, step);
			uint32_t	least_before = __shfl_up_sync(S::warp_tiles::WARP, least, step);

			if (lane >= step)
			{
				least = least_before + add > least ? least_before + add : least;
				add += add_before;
			}
		}
		part_add = __shfl_sync(S::warp_tiles::WARP, add, RHH_WARP_SIZE - 1);
		part_least = __shfl_sync(S::warp_tiles::WARP, least, RHH_WARP_SIZE - 1);
		/* What the part begins with, in slots from its range's first on. */
		x = 0;
		if (linked)
		{
			const uint64_t base = (uint64_t) from * S::SLOTS;
			uint64_t	begins,
						ends_at;

			if (lane == 0)
				atomicExch((unsigned long long *) &words[part],
						   (unsigned long long) (RHH_PART_FUNCTION | (uint64_t) part_least << 24
												 | part_add));
			begins = look_back(words, part, n_buckets, bits, S::SLOTS);
			ends_at = begins + part_add > base + part_least
				? begins + part_add : base + part_least;
			if (lane == 0)
				atomicExch((unsigned long long *) &words[part],
						   (unsigned long long) (RHH_PART_END | ends_at));
			x = begins > base ? (uint32_t) (begins - base) : 0;
		}
		{
			/* Where the lanes before this one end. */
			uint32_t	add_before = __shfl_up_sync(S::warp_tiles::WARP, add, 1);
			uint32_t	least_before = __shfl_up_sync(S::warp_tiles::WARP, least, 1);

			if (lane > 0)
				x = x + add_before > least_before ? x + add_before : least_before;
		}
		for (uint32_t k = 0; k < each; k++)
		{
			uint32_t	h = lane * each + k;

			if (n_home[h] > 0)
				x = x > h * S::SLOTS ? x : h * S::SLOTS;
			begin[h] = x;
			x += n_home[h];
			if (n_home[h] > 0 && (x - 1) / S::SLOTS - h >= r.b.max_dist)
				over_cap = 1;
		}
	}
	__syncthreads();
	for (uint32_t h = threadIdx.x; h < homes; h += blockDim.x)
		for (uint32_t i = 0; i < n_home[h]; i++)
		{
			slot		e = sorted[at_home[h] + i];
			uint32_t	x = begin[h] + i;

			if (over_cap)
				leftover[atomicAdd(n_leftover, 1ULL)] = e;
			else if (linked ? x >= (n_buckets - from) * (uint64_t) S::SLOTS
					 : x >= range * S::SLOTS)
				leftover[atomicAdd(n_leftover, 1ULL)] = e;
			else
			{
				((slot *) r.b.slots)[(uint64_t) from * S::SLOTS + x] = e;
				placed++;
			}
		}
	for (int step = RHH_WARP_SIZE / 2; step > 0; step /= 2)
	{
		placed += __shfl_xor_sync(S::warp_tiles::WARP, placed, step);
		if (COUNT)
			hits += __shfl_xor_sync(S::warp_tiles::WARP, hits, step);
	}
	if (lane == 0)
	{
		atomicAdd(&local.placed, placed);
		if (COUNT)
			atomicAdd(&local.hits, hits);
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		if (local.placed)
			atomicAdd(&r.side->size, (unsigned long long) local.placed);
		local.probes = range;
		flush_counters<COUNT>(local, 0, count);
	}
}

/*
 * Hints.  hints[h] is a distance before which no entry of home h can be, the
 * least of those it has, so that in a crowded table a find reads its key's line
 * first and not all those before.  A byte a bucket stays in L2, 16 MB for 1 GiB
 * of slots.  It stays a lower bound while entries are inserted: the buckets
 * before the least have only ranks above their distances, for good.  A home
 * without entries gets 0.  Erasing moves entries to lower distances, and
 * so ends hints.  (Offsets of runs, as in Pandey et al.'s counting quotient
 * filter, of 2017, are kin.)
 */
#define RHH_HINT_HOMES 1024
#define RHH_HINT_REACH 64

template <class S>
static __global__ void
hints_kernel(const __grid_constant__ rhh_buckets b, uint8_t *hints, const side_and_size *side)
{
	__shared__ uint32_t least[RHH_HINT_HOMES];
	const uint32_t first = blockIdx.x * RHH_HINT_HOMES;

	if (!RHH_HINTS_WORTH(side->size, (uint64_t) b.n_buckets * S::SLOTS, S::SLOTS))
		return;					/* the same for all */
	for (uint32_t i = threadIdx.x; i < RHH_HINT_HOMES; i += blockDim.x)
		least[i] = ~0u;
	__syncthreads();
	for (uint32_t u = threadIdx.x; u < (RHH_HINT_HOMES + RHH_HINT_REACH) * S::LANES;
		 u += blockDim.x)
	{
		uint32_t	bucket = (uint32_t) (((uint64_t) first + u / S::LANES) % b.n_buckets);
		typename S::slot e[S::PER_LANE];

		S::load(e, b.slots, (uint64_t) bucket * S::SLOTS + u % S::LANES * S::PER_LANE);
		for (int k = 0; k < S::PER_LANE; k++)
		{
			uint32_t	rank = rhh_rank<S>(e[k], bucket, b.n_buckets);
			uint32_t	home = rhh_home_of(S::hash(e[k]), b.n_buckets);

			if (rank != 0 && home >= first && home - first < RHH_HINT_HOMES)
				atomicMin(&least[home - first], rank - 1);
		}
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < RHH_HINT_HOMES && first + i < b.n_buckets; i += blockDim.x)
		hints[first + i] = (uint8_t) (least[i] == ~0u ? 0 : least[i] < 255 ? least[i] : 255);
}

template <class S>
static __global__ void
hints_made_kernel(const __grid_constant__ rhh_buckets b, side_and_size *side)
{
	side->hints_made = RHH_HINTS_WORTH(side->size, (uint64_t) b.n_buckets * S::SLOTS, S::SLOTS);
}

/* A warp's finds: those of its lanes' keys that are valid. */
template <class Ref, class S, typename Key, typename Out, bool CONTAINS>
struct find_many
{
	static const bool UNSURE = false;
	typedef typename S::slot slot;
	typedef typename S::warp_tiles team;

	uint32_t	n_buckets;
	Key			key;			/* the lane's */
	uint32_t	hint;
	Out			result;
	rhh_lanes	pending;		/* of the tile's lanes */
	int			src;			/* the lane whose key is in hand */
	uint32_t	hits;

	__device__ RHH_INLINE bool next(const team &t, bool active, slot *mine, uint32_t *bucket,
									uint32_t *dist)
	{
		bool		got = active && pending != 0;
		Key			k;
		uint32_t	d;

		if (got)
		{
			src = rhh_first_lane(pending);
			pending &= pending - 1;
		}
		k = t.shfl(key, src);
		d = t.shfl(hint, src);
		if (got)
		{
			*mine = S::make(k, (Key) 0);
			*bucket = rhh_bucket_behind(n_buckets, rhh_home_of(S::hash(*mine), n_buckets), d);
			*dist = d;
		}
		return got;
	}
	__device__ RHH_INLINE bool same(const slot &mine, const slot &e) const
	{
		return S::key(e) == S::key(mine);
	}
	__device__ RHH_INLINE bool is_it(const team &, bool, const slot &, const slot &) const
	{
		return true;
	}
	__device__ RHH_INLINE void done(const team &t, bool active, bool found, const slot &e)
	{
		hits += active && found;
		if (active && found && t.rank == (uint32_t) src)
			result = CONTAINS ? (Out) 1 : (Out) S::value(e);
	}
};

/* out: values of found keys (else absent), or bytes that say found. */
template <class Ref, class S, typename Key, typename Out, bool CONTAINS, bool COUNT>
static __global__ void
find_kernel(const __grid_constant__ Ref r, const Key *keys, Out *out, uint64_t n, Out absent,
			counters *count)
{
	const typename S::warp_tiles team;
	const bool	hints = r.side->hints_made != 0;
	const uint64_t block_items = (uint64_t) blockDim.x * RHH_TABLE_ITEMS;
	const uint64_t first = blockIdx.x * block_items;
	const uint64_t end = n - first < block_items ? n : first + block_items;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	const Key	empty = (Key) S::key(S::none());
	find_many<Ref, S, Key, Out, CONTAINS> op = {r.b.n_buckets, empty, 0, absent, 0, 0, 0};
	uint32_t	probes = 0;
	__shared__ block_counters local;

	if (COUNT)
	{
		if (threadIdx.x == 0)
			local = block_counters{0, 0, 0, 0, 0};
		__syncthreads();
	}
	for (uint64_t warp_first = first + threadIdx.x - lane; warp_first < end; warp_first += blockDim.x)
	{
		uint64_t	i = warp_first + lane;

		op.key = i < end ? keys[i] : empty;
		op.hint = hints && op.key != empty
			? r.hints[rhh_home_of(S::hash(S::make(op.key, (Key) 0)), r.b.n_buckets)] : 0;
		op.pending = team.ballot(op.key != empty);
		op.result = absent;
		if (i < end && op.key == empty)
		{
			typename S::slot e = r.load_side();

			if (!S::is_empty(e))
				op.result = CONTAINS ? (Out) 1 : (Out) S::value(e);
		}
		rhh_find_loop<S, rhh_fresh>(r.b, team, op, &probes);
		if (i < end)
			out[i] = op.result;
	}
	if (COUNT)
	{
		if (team.rank == 0)
		{
			atomicAdd(&local.probes, probes);
			atomicAdd(&local.hits, op.hits);
		}
		__syncthreads();
		if (threadIdx.x == 0)
			flush_counters<COUNT>(local, (uint32_t) (end - first), count);
	}
}

/* Counts the entries anew, which the caller's own kernels have changed. */
template <class S>
static __global__ void
size_kernel(const __grid_constant__ rhh_buckets b, side_and_size *side)
{
	const uint64_t n_units = (uint64_t) b.n_buckets * S::LANES;
	uint32_t	n = 0;

	for (uint64_t u = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; u < n_units;
		 u += (uint64_t) gridDim.x * blockDim.x)
	{
		typename S::slot e[S::PER_LANE];

		S::load(e, b.slots, u * S::PER_LANE);
		for (int k = 0; k < S::PER_LANE; k++)
			n += !S::is_empty(e[k]);
	}
	if (n > 0)
		atomicAdd(&side->size, (unsigned long long) n);
}

template <class Ref, class S, typename Key>
static __global__ void
erase_kernel(const __grid_constant__ Ref r, const Key *keys, uint64_t n)
{
	const typename S::tile tile;
	unsigned long long erased = 0;

	for (uint64_t i = RHH_TILE_ID(S::LANES); i < n; i += RHH_TILES(S::LANES))
	{
		Key			value;

		if (r.erase_any(tile, keys[i], &value) && keys[i] != (Key) S::key(S::none()))
			erased++;
	}
	if (tile.rank == 0 && erased)
		atomicAdd(&r.side->size, ~erased + 1);
}

/* A thread has 16 bytes of slots. */
template <class Ref, class S, typename Key>
static __global__ void
extract_kernel(const __grid_constant__ Ref r, Key *keys, Key *values, uint64_t capacity,
			   unsigned long long *n_found)
{
	__shared__ uint32_t found;
	__shared__ unsigned long long base;
	const uint64_t n_units = (uint64_t) r.b.n_buckets * S::LANES;
	const uint64_t u = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
	typename S::slot e[S::PER_LANE];
	uint32_t	n = 0,
				at = 0;
	bool		side = false;

	if (threadIdx.x == 0)
		found = 0;
	__syncthreads();
	if (u < n_units)
	{
		S::load(e, r.b.slots, u * S::PER_LANE);
		for (int k = 0; k < S::PER_LANE; k++)
			n += !S::is_empty(e[k]);
	}
	if (u == 0)
		side = !S::is_empty(r.load_side());
	if (n + side)
		at = atomicAdd(&found, n + side);
	__syncthreads();
	if (threadIdx.x == 0 && found)
		base = atomicAdd(n_found, (unsigned long long) found);
	__syncthreads();
	if (u < n_units)
		for (int k = 0; k < S::PER_LANE; k++)
			if (!S::is_empty(e[k]))
			{
				if (base + at < capacity)
				{
					keys[base + at] = (Key) S::key(e[k]);
					values[base + at] = (Key) S::value(e[k]);
				}
				at++;
			}
	if (side && base + at < capacity)
	{
		keys[base + at] = (Key) S::key(S::none());
		values[base + at] = (Key) S::value(r.load_side());
	}
}

/* A tile an old bucket.  Entries in order of their buckets: the new ones are near, too. */
template <class Ref, class S, typename Key>
static __global__ void
rehash_kernel(const __grid_constant__ Ref r, const __grid_constant__ rhh_buckets old,
			  unsigned long long *n_failed)
{
	const typename S::tile tile;

	for (uint64_t bucket = RHH_TILE_ID(S::LANES); bucket < old.n_buckets;
		 bucket += RHH_TILES(S::LANES))
	{
		rhh_line<S> line = rhh_load_line<S>(old, tile, (uint32_t) bucket);

		for (uint32_t k = 0; k < S::SLOTS; k++)
		{
			typename S::slot e = rhh_slot_of<S>(tile, line, k);
			Key			key = (Key) S::key(e),
						value = (Key) S::value(e);
			rhh_outcome o;

			if (S::is_empty(e))
				continue;
			o = r.template insert_any<true>(tile, &key, &value);
			if ((o == RHH_FAILED || o == RHH_PLACED_ORPHAN) && tile.rank == 0)
				atomicAdd(n_failed, 1ULL);
		}
	}
}

/* ---------- host ---------- */

#define RHH_TRY(call) \
	do { \
		cudaError_t rhh_error = (call); \
		if (rhh_error != cudaSuccess) \
			return rhh_error; \
	} while (0)

#define RHH_TABLE_ARGS typename Key, typename Value, class Reduce, Key EMPTY, int LINE, class Hash
#define RHH_TABLE table<Key, Value, Reduce, EMPTY, LINE, Hash>

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::create(uint64_t n_slots, cudaStream_t stream, uint32_t max_dist)
{
	uint64_t	n_buckets = (n_slots + S::SLOTS - 1) / S::SLOTS;
	uint64_t	locks_at,
				side_at,
				hints_at;
	int			device;

	if (memory || n_slots > (uint64_t) UINT32_MAX * S::SLOTS || max_dist == 0)
		return cudaErrorInvalidValue;
	if (n_buckets < 128)
		n_buckets = 128;		/* a warp of the narrowest tiles may erase */
	RHH_TRY(cudaGetDevice(&device));
	RHH_TRY(cudaDeviceGetAttribute(&device_sms, cudaDevAttrMultiProcessorCount, device));
	{
		int			l2;

		RHH_TRY(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
		device_l2_bytes = (uint64_t) l2;
	}
	side_at = n_buckets * LINE;
	locks_at = side_at + 128;
	hints_at = locks_at + RHH_LOCK_WORDS(n_buckets) * 4;
	RHH_TRY(cudaMalloc(&memory, hints_at + n_buckets));
	bytes = hints_at + n_buckets;
	r.b.slots = memory;
	r.b.n_buckets = (uint32_t) n_buckets;
	r.b.max_dist = max_dist < n_buckets ? max_dist : (uint32_t) n_buckets;
	if (r.b.max_dist > RHH_MAX_DIST)
		r.b.max_dist = RHH_MAX_DIST;
	r.side = (side_and_size *) (memory + side_at);
	r.locks = (uint32_t *) (memory + locks_at);
	r.hints = memory + hints_at;
	{
		cudaError_t error = clear(stream);

		if (error == cudaSuccess)
			error = cudaMemsetAsync(r.locks, 0, RHH_LOCK_WORDS(n_buckets) * 4, stream);
		if (error == cudaSuccess)
			error = cudaStreamSynchronize(stream);
		if (error != cudaSuccess)
			destroy();
		return error;
	}
}

template <RHH_TABLE_ARGS>
void
RHH_TABLE::destroy()
{
	if (memory)
		cudaFree(memory);
	if (workspace)
		cudaFree(workspace);
	memory = workspace = nullptr;
	bytes = workspace_bytes = 0;
	r = ref();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::clear(cudaStream_t stream)
{
	auto		kernel = clear_kernel<S>;

	RHH_TRY(cudaMemsetAsync(r.side, 0, sizeof *r.side, stream));
	RHH_LAUNCH(kernel, 1, 1, 0, stream, (slot *) &r.side->side, (uint64_t) 1);
	if (EMPTY == (Key) ~(Key) 0)
		RHH_TRY(cudaMemsetAsync(r.b.slots, 0xFF, (uint64_t) r.b.n_buckets * LINE, stream));
	else
		RHH_LAUNCH(kernel, (unsigned) (device_sms * 8), 256, 0, stream, (slot *) r.b.slots,
				   n_slots());
	return cudaGetLastError();
}

/* log2 of the parts that bulk inserts make. */
template <RHH_TABLE_ARGS>
uint32_t
RHH_TABLE::part_bits() const
{
	uint32_t	bits = 2;

	while (bits < 18 && (uint64_t) r.b.n_buckets * LINE >> bits > RHH_PART_BYTES)
		bits++;
	return bits;
}

/* What comes before the items in the workspace. */
template <RHH_TABLE_ARGS>
uint64_t
RHH_TABLE::part_counts_bytes() const
{
	uint64_t	n = RHH_PARTITION_COUNTS(part_bits()) * sizeof(unsigned long long)
		+ sizeof(build_plan) + (sizeof(uint64_t) << part_bits());

	return (n + 15) / 16 * 16;
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::reserve(uint64_t n, cudaStream_t stream)
{
	uint64_t	chunk = RHH_CHUNK_BYTES / sizeof(slot);
	uint64_t	need;

	if (n <= n_slots() / RHH_PARTITION_SLOTS_PER_KEY ||
		(uint64_t) r.b.n_buckets * LINE <= device_l2_bytes / RHH_PARTITION_L2_DIVISOR)
		return cudaSuccess;
	need = part_counts_bytes() + 2 * (n < chunk ? n : chunk) * sizeof(slot);
	if (need <= workspace_bytes)
		return cudaSuccess;
	RHH_TRY(cudaStreamSynchronize(stream));
	if (workspace)
		RHH_TRY(cudaFree(workspace));
	workspace = nullptr;
	workspace_bytes = 0;
	if (cudaMalloc(&workspace, need) == cudaSuccess)
		workspace_bytes = need;
	else
	{
		workspace = nullptr;
		(void) cudaGetLastError();
	}
	return cudaSuccess;
}

template <RHH_TABLE_ARGS>
template <bool REDUCE>
cudaError_t
RHH_TABLE::insert_any(const Key *keys, const Value *values, uint64_t n,
					  const failed<Key> &failures, cudaStream_t stream)
{
	typedef columns<S, Key> direct;
	const uint64_t slot_bytes = (uint64_t) r.b.n_buckets * LINE;
	const uint64_t block_items = (uint64_t) block_threads * RHH_TABLE_ITEMS;

	if (n > n_slots() / RHH_PARTITION_SLOTS_PER_KEY &&
		slot_bytes > device_l2_bytes / RHH_PARTITION_L2_DIVISOR)
	{
		const uint32_t bits = part_bits();
		const uint64_t counts_bytes = part_counts_bytes();
		const uint64_t chunk = n < RHH_CHUNK_BYTES / sizeof(slot) ? n : RHH_CHUNK_BYTES / sizeof(slot);

		RHH_TRY(reserve(n, stream));
		if (workspace)
		{
			auto		build = count ? build_kernel<ref, S, Key, REDUCE, true>
				: build_kernel<ref, S, Key, REDUCE, false>;
			auto		rest = count ? insert_kernel<ref, S, Key, pairs<S>, REDUCE, true>
				: insert_kernel<ref, S, Key, pairs<S>, REDUCE, false>;
			unsigned long long *ends = (unsigned long long *) workspace;
			build_plan *plan = (build_plan *) (ends + RHH_PARTITION_COUNTS(bits));
			uint64_t   *words = (uint64_t *) (plan + 1);
			slot	   *items = (slot *) (workspace + counts_bytes);
			slot	   *leftover = items + chunk;	/* the partition's scratch before */

			for (uint64_t done = 0; done < n; done += chunk)
			{
				uint64_t	m = n - done < chunk ? n - done : chunk;
				uint64_t	blocks = (m + block_items - 1) / block_items;
				direct		from = {keys + done, values ? values + done : nullptr};
				pairs<S>	left = {leftover};

				RHH_TRY(rhh_partition(from, m, bits, leftover, items, ends, device_sms, stream));
				RHH_TRY(cudaMemsetAsync(plan, 0, sizeof *plan + (sizeof *words << bits), stream));
				RHH_LAUNCH(plan_kernel, 64, 256, 0, stream, ends, 1u << bits,
						   (uint32_t) (RHH_SORT_BYTES / sizeof(slot)), plan);
				RHH_LAUNCH(link_kernel, 1, 1, 0, stream, r.side, r.b, 1u << bits, plan);
				RHH_LAUNCH(build, 1u << bits, 256, 0, stream, r, items, ends, bits, leftover,
						   plan, words, count);
				RHH_LAUNCH(rest, (unsigned) (blocks < 16384 ? blocks : 16384), block_threads, 0,
						   stream, r, left, m, &plan->n_leftover, failures, count);
				RHH_TRY(cudaGetLastError());
				if (count)
					RHH_LAUNCH(count_operations_kernel, 1, 1, 0, stream, count, m);
			}
			return cudaGetLastError();
		}
	}
	if (n > 0)
	{
		auto		kernel = count ? insert_kernel<ref, S, Key, direct, REDUCE, true>
			: insert_kernel<ref, S, Key, direct, REDUCE, false>;
		direct		in = {keys, values};

		RHH_LAUNCH(kernel, (unsigned) ((n + block_items - 1) / block_items), block_threads, 0,
				   stream, r, in, n, (const unsigned long long *) nullptr, failures, count);
	}
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::insert(const Key *keys, const Value *values, uint64_t n,
				  const failed<Key> &failures, cudaStream_t stream)
{
	return insert_any<true>(keys, values, n, failures, stream);
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::insert_if_absent(const Key *keys, const Value *values, uint64_t n,
							const failed<Key> &failures, cudaStream_t stream)
{
	return insert_any<false>(keys, values, n, failures, stream);
}

/*
 * Each find makes them anew: it costs reading the table once, and the host
 * cannot know what the caller's own kernels have inserted.
 */
template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::make_hints(cudaStream_t stream)
{
	auto		kernel = hints_kernel<S>;
	auto		made = hints_made_kernel<S>;

	RHH_LAUNCH(kernel, (r.b.n_buckets + RHH_HINT_HOMES - 1) / RHH_HINT_HOMES, 256, 0, stream,
			   r.b, r.hints, (const side_and_size *) r.side);
	RHH_LAUNCH(made, 1, 1, 0, stream, r.b, r.side);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::find(const Key *keys, Value *values, uint64_t n, Value absent, cudaStream_t stream)
{
	auto		kernel = count ? find_kernel<ref, S, Key, Value, false, true>
		: find_kernel<ref, S, Key, Value, false, false>;
	const uint64_t block_items = (uint64_t) block_threads * RHH_TABLE_ITEMS;

	if (n == 0)
		return cudaSuccess;
	if (n > n_slots() / RHH_HINTS_SLOTS_PER_KEY)
		RHH_TRY(make_hints(stream));
	RHH_LAUNCH(kernel, (unsigned) ((n + block_items - 1) / block_items), block_threads, 0, stream,
			   r, keys, values, n, absent, count);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::contains(const Key *keys, uint8_t *found, uint64_t n, cudaStream_t stream)
{
	auto		kernel = count ? find_kernel<ref, S, Key, uint8_t, true, true>
		: find_kernel<ref, S, Key, uint8_t, true, false>;
	const uint64_t block_items = (uint64_t) block_threads * RHH_TABLE_ITEMS;

	if (n == 0)
		return cudaSuccess;
	if (n > n_slots() / RHH_HINTS_SLOTS_PER_KEY)
		RHH_TRY(make_hints(stream));
	RHH_LAUNCH(kernel, (unsigned) ((n + block_items - 1) / block_items), block_threads, 0, stream,
			   r, keys, found, n, (uint8_t) 0, count);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::erase(const Key *keys, uint64_t n, cudaStream_t stream)
{
	auto		kernel = erase_kernel<ref, S, Key>;
	uint64_t	tiles = n < max_erasing_tiles() ? n : max_erasing_tiles();
	uint64_t	most = (uint64_t) device_sms * 2048 / S::LANES;
	unsigned	threads = tiles * S::LANES >= (uint64_t) block_threads
		? (unsigned) block_threads : RHH_WARP_SIZE;
	uint64_t	blocks;

	if (n == 0)
		return cudaSuccess;
	if (tiles > most)
		tiles = most;
	blocks = tiles * S::LANES / threads;
	RHH_TRY(cudaMemsetAsync(&r.side->hints_made, 0, sizeof r.side->hints_made, stream));
	RHH_LAUNCH(kernel, (unsigned) (blocks ? blocks : 1), threads, 0, stream, r, keys, n);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::size(uint64_t *n, cudaStream_t stream)
{
	auto		kernel = size_kernel<S>;
	side_and_size host;
	slot		e;

	RHH_TRY(cudaMemcpyAsync(&host, r.side, sizeof host, cudaMemcpyDeviceToHost, stream));
	RHH_TRY(cudaStreamSynchronize(stream));
	if (host.uncounted)
	{
		RHH_TRY(cudaMemsetAsync(&r.side->size, 0, sizeof r.side->size, stream));
		RHH_TRY(cudaMemsetAsync(&r.side->uncounted, 0, sizeof r.side->uncounted, stream));
		RHH_LAUNCH(kernel, (unsigned) (device_sms * 8), 256, 0, stream, r.b, r.side);
		RHH_TRY(cudaGetLastError());
		RHH_TRY(cudaMemcpyAsync(&host, r.side, sizeof host, cudaMemcpyDeviceToHost, stream));
		RHH_TRY(cudaStreamSynchronize(stream));
	}
	memcpy((void *) &e, &host.side, sizeof e);
	*n = host.size + !S::is_empty(e);
	return cudaSuccess;
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::extract(Key *keys, Value *values, uint64_t capacity, unsigned long long *n_found,
				   cudaStream_t stream)
{
	auto		kernel = extract_kernel<ref, S, Key>;
	uint64_t	units = (uint64_t) r.b.n_buckets * S::LANES;

	RHH_TRY(cudaMemsetAsync(n_found, 0, sizeof *n_found, stream));
	RHH_LAUNCH(kernel, (unsigned) ((units + 255) / 256), 256, 0, stream, r, keys, values, capacity,
			   n_found);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::rehash(uint64_t n_slots, bool *fits, cudaStream_t stream)
{
	auto		kernel = rehash_kernel<ref, S, Key>;
	table		grown;
	unsigned long long n_failed = 0;
	uint64_t	n_entries;
	uint64_t	tiles = r.b.n_buckets;
	uint64_t	blocks = (tiles * S::LANES + 255) / 256;
	cudaError_t error;

	*fits = false;
	RHH_TRY(size(&n_entries, stream));
	/* More entries than slots: do not try for long. */
	if (n_entries > n_slots + 128 * S::SLOTS)
		return cudaSuccess;
	grown.block_threads = block_threads;
	grown.count = count;
	RHH_TRY(grown.create(n_slots, stream, r.b.max_dist < r.b.n_buckets ? r.b.max_dist : UINT32_MAX));
	/* Its locks, all open, count the failures meanwhile. */
	error = cudaMemsetAsync(grown.r.locks, 0, 8, stream);
	if (error == cudaSuccess)
	{
		RHH_LAUNCH(kernel, (unsigned) (blocks < 65536 ? blocks : 65536), 256, 0, stream,
				   grown.r, r.b, (unsigned long long *) grown.r.locks);
		error = cudaGetLastError();
	}
	if (error == cudaSuccess)
		error = cudaMemcpyAsync(&n_failed, grown.r.locks, 8, cudaMemcpyDeviceToHost, stream);
	if (error == cudaSuccess)
		error = cudaMemsetAsync(grown.r.locks, 0, 8, stream);
	/* The side slot and the size are the same; the hints are not. */
	if (error == cudaSuccess)
		error = cudaMemcpyAsync(grown.r.side, r.side, sizeof *r.side, cudaMemcpyDeviceToDevice, stream);
	if (error == cudaSuccess)
		error = cudaMemsetAsync(&grown.r.side->hints_made, 0, sizeof r.side->hints_made, stream);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(stream);
	if (error != cudaSuccess || n_failed > 0)
	{
		grown.destroy();
		return error;
	}
	*fits = true;
	grown.workspace = workspace;
	grown.workspace_bytes = workspace_bytes;
	workspace = nullptr;
	destroy();
	*this = grown;
	return cudaSuccess;
}

#undef RHH_TABLE_ARGS
#undef RHH_TABLE
#undef RHH_TRY

}								/* namespace rhh */

#endif							/* RHH_TABLE_KERNELS_CUH */
