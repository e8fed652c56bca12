/*
 * rhh_table_kernels.cuh
 *		The bulk operations of rhh::table: the kernels, then the host functions that
 *		launch them.  rhh_table.cuh includes this file.
 *
 * In kernels over keys each lane has a key, so that keys are read and results written
 * coalesced.  A tile takes the keys of its lanes one after the other, and the tiles of a
 * warp go in step.
 */
#ifndef RHH_TABLE_KERNELS_CUH
#define RHH_TABLE_KERNELS_CUH

namespace rhh
{
namespace detail
{

/* What a block has counted; flushed once, as one atomic for each tile would be too many. */
struct block_counters
{
	unsigned long long placed;
	unsigned long long probes;
	unsigned long long hits;
	unsigned long long displacements;
	unsigned long long failures;
};

template <bool COUNT>
static __device__ RHH_INLINE void
flush_counters(const block_counters &local, uint64_t operations, counters *to)
{
	if (!COUNT)
		return;
	atomicAdd((unsigned long long *) &to->operations, (unsigned long long) operations);
	atomicAdd((unsigned long long *) &to->probes, local.probes);
	atomicAdd((unsigned long long *) &to->hits, local.hits);
	atomicAdd((unsigned long long *) &to->displacements, local.displacements);
	atomicAdd((unsigned long long *) &to->failures, local.failures);
}

/*
 * The end of a kernel that finds: adds up in local, which has been zeroed, what the
 * block's tiles have counted, and flushes it.  A whole block.
 */
template <bool COUNT, class Team>
static __device__ RHH_INLINE void
count_finds(block_counters &local, const Team &team, uint32_t probes, uint32_t hits,
			uint64_t operations, counters *to)
{
	if (!COUNT)
		return;
	if (team.rank == 0)
	{
		atomicAdd(&local.probes, (unsigned long long) probes);
		atomicAdd(&local.hits, (unsigned long long) hits);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		flush_counters<COUNT>(local, operations, to);
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

/* Pairs read backwards, from the end of an array to its front. */
template <class S>
struct backwards
{
	typedef typename S::slot item;

	const item *end;

	__device__ RHH_INLINE item load(uint64_t i) const
	{
		return *(end - 1 - i);
	}
	__device__ RHH_INLINE uint32_t hash(const item &e) const
	{
		return S::hash(e);
	}
};

/* ---------- kernels ---------- */

/* Loads the u-th 16 bytes of the slots.  Returns how many of these have entries. */
template <class S>
static __device__ RHH_INLINE uint32_t
load_unit(typename S::slot *e, const rhh_buckets &b, uint64_t u)
{
	uint32_t	n = 0;

	S::load(e, b.slots, u * S::PER_LANE);
	for (int k = 0; k < S::PER_LANE; k++)
		n += !S::is_empty(e[k]);
	return n;
}

template <class S>
static __global__ void
clear_kernel(typename S::slot *slots, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		slots[i] = S::none();
}

/* Inserts the entries of a warp's lanes that are pending. */
template <class Ref, class S, typename Key, bool REDUCE>
struct insert_many : Ref::template inserting<REDUCE>
{
	typedef typename S::slot slot;
	typedef typename S::warp_tiles team;

	slot		entry;			/* of the lane; if it fails, what is handed back */
	rhh_lanes	pending;		/* of the tile's lanes */
	int			src;			/* the lane whose entry is in hand */
	bool		fails;
	uint32_t	placed;
	uint32_t	hits;
	uint32_t	n_failed;

	__device__ RHH_INLINE bool next(const team &t, bool active, slot *mine)
	{
		bool		got = rhh_take_lane(active, &pending, &src);
		slot		e;

		e = S::shfl(t, entry, src);
		if (got)
			*mine = e;
		return got;
	}

	__device__ RHH_INLINE void done(const team &t, bool active, rhh_outcome o, const slot &carried)
	{
		if (!active)
			return;
		/*
		 * Only RHH_PLACED adds an entry.  RHH_PLACED_MET takes out the second entry
		 * with the key that was met, RHH_PLACED_ORPHAN the one that has no place.
		 */
		placed += o == RHH_PLACED;
		hits += o == RHH_MET || o == RHH_PLACED_MET;
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
 * Inserts n items.  Blocks take consecutive ranges, so that those that run at the same
 * time work near each other.  If n_items is not NULL, the device knows how many items
 * there are, and n is the most there can be.
 */
template <class Ref, class S, typename Key, class Io, bool REDUCE, bool COUNT>
static __global__ void
insert_kernel(const __grid_constant__ Ref r, const __grid_constant__ Io io, uint64_t n,
			  const unsigned long long *n_items, const __grid_constant__ failed<Key> failures,
			  counters *count)
{
	const typename S::warp_tiles team;
	const uint64_t all = n_items ? *n_items : n;
	const uint32_t items = all <= (uint64_t) gridDim.x * blockDim.x ? 1 : RHH_TABLE_ITEMS;
	const uint64_t block_items = (uint64_t) blockDim.x * items;
	const uint64_t stride = gridDim.x * block_items;
	insert_many<Ref, S, Key, REDUCE> op = {{r}, S::none(), 0, 0, false, 0, 0, 0};
	uint32_t	probes = 0,
				moves = 0,
				operations = 0;
	__shared__ block_counters local;
	__shared__ unsigned long long n_operations;

	Ref::require_cas();
	if (threadIdx.x == 0)
	{
		local = block_counters{0, 0, 0, 0, 0};
		n_operations = 0;
	}
	__syncthreads();
	for (uint64_t first = blockIdx.x * block_items; first < all; first += stride)
		for (uint32_t k = 0; k < items; k++)
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
		atomicAdd(&n_operations, (unsigned long long) operations);
	if (team.rank == 0)
	{
		atomicAdd(&local.placed, (unsigned long long) op.placed);
		if (COUNT)
		{
			atomicAdd(&local.probes, (unsigned long long) probes);
			atomicAdd(&local.hits, (unsigned long long) op.hits);
			atomicAdd(&local.displacements, (unsigned long long) moves);
			atomicAdd(&local.failures, (unsigned long long) op.n_failed);
		}
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		if (local.placed)
		{
			atomicAdd(&r.side->size, local.placed);
			*(volatile uint32_t *) &r.side->hints_current = 0;
		}
		/* The caller has counted them, if only the device knows how many there are. */
		flush_counters<COUNT>(local, n_items ? 0 : n_operations, count);
	}
}

/*
 * Makes hints.  hints[h] is the least distance that an entry with home h has, or 0 if
 * there is none.  So in a crowded table a find can start at the line of its key, and need
 * not read the lines before it.  Hints take a byte for each bucket, 16 MB for 1 GiB of
 * slots, and stay in the L2 cache.  A hint stays a lower bound while entries are
 * inserted, because the buckets before it have, and keep, only ranks above their
 * distances.  Erasing moves entries to lower distances, and so ends hints.  (The offsets
 * of runs in the counting quotient filter of Pandey et al., 2017, are related.)
 */
#define RHH_HINT_HOMES 1024
#define RHH_HINT_REACH 64

template <class S>
static __global__ void
hints_kernel(const __grid_constant__ rhh_buckets b, uint8_t *hints, const side_and_size *side)
{
	__shared__ uint32_t least[RHH_HINT_HOMES];
	const uint32_t first = blockIdx.x * RHH_HINT_HOMES;

	if (side->hints_current ||
		!RHH_HINTS_WORTH(side->size, (uint64_t) b.n_buckets * S::SLOTS, S::SLOTS))
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
	side->hints_current = 1;
}

/* Finds the keys of a warp's lanes that are pending. */
template <class Ref, class S, typename Key, typename Out, bool CONTAINS>
struct find_many
{
	static const bool UNSURE = false;
	typedef typename S::slot slot;
	typedef typename S::warp_tiles team;

	uint32_t	n_buckets;
	Key			key;			/* of the lane */
	uint32_t	hint;
	Out			result;
	rhh_lanes	pending;		/* of the tile's lanes */
	int			src;			/* the lane whose key is in hand */
	uint32_t	hits;

	__device__ RHH_INLINE bool next(const team &t, bool active, slot *mine, uint32_t *bucket,
									uint32_t *dist)
	{
		bool		got = rhh_take_lane(active, &pending, &src);
		Key			k;
		uint32_t	d;

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

/* Finds keys.  out[i] becomes the value or absent; with CONTAINS, 1 or 0. */
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
		rhh_find_loop<S>(r.b, team, op, &probes);
		if (i < end)
			out[i] = op.result;
	}
	count_finds<COUNT>(local, team, probes, op.hits, end - first, count);
}

/* Is merging worth it, if n_met items are in the table already and n_new are not? */
static __device__ inline bool
rhh_merge_worth(uint64_t n_met, uint64_t n_new, uint64_t size, uint64_t n_slots, bool in_l2)
{
	const uint64_t after = size + n_new;

	if (after * 32 > n_slots * RHH_CROWDED)
		n_new *= RHH_MERGE_SLOTS_PER_ITEM_FULL;
	else if (in_l2)
		return false;
	else
		n_new *= after * 4 > n_slots * 3 ? RHH_MERGE_SLOTS_PER_ITEM_HIGH : RHH_MERGE_SLOTS_PER_ITEM;
	return n_new + (in_l2 ? 0 : n_met * RHH_MERGE_SLOTS_PER_ITEM) >= n_slots;
}

/*
 * Decides whether items are sorted or inserted one by one; one block of
 * RHH_CHOOSE_THREADS.  If n_items is not NULL there are *n_items of them, none of which
 * is in the table.  Otherwise there are n, and a sample tells how many are in the table.
 */
template <class Ref, class S, typename Key, class Io>
static __global__ void
choose_kernel(const __grid_constant__ Ref r, const __grid_constant__ Io io, uint64_t n,
			  const unsigned long long *n_items, bool in_l2, const __grid_constant__ build_job<S> job)
{
	const typename S::warp_tiles team;
	const uint64_t n_slots = (uint64_t) r.b.n_buckets * S::SLOTS;
	const uint64_t all = n_items ? *n_items : n;
	const bool	empty = r.side->size == 0 && !r.side->uncounted;
	__shared__ uint32_t n_met;
	bool		worth;

	if (threadIdx.x == 0)
		n_met = 0;
	__syncthreads();
	if (!empty && !n_items)
	{
		const typename S::slot e = io.load(n * threadIdx.x / RHH_CHOOSE_THREADS);
		find_many<Ref, S, Key, uint8_t, true> op = {r.b.n_buckets, (Key) S::key(e), 0, 0, 0, 0, 0};
		uint32_t	probes = 0;

		op.pending = team.ballot(!S::is_empty(e));
		rhh_find_loop<S>(r.b, team, op, &probes);
		if (op.result || S::is_empty(e))
			atomicAdd(&n_met, 1u);
	}
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	if (empty)
		worth = RHH_BUILD_WORTH(all, n_slots, in_l2);
	else
	{
		const uint64_t met = all * n_met / RHH_CHOOSE_THREADS;

		worth = rhh_merge_worth(met, all - met, r.side->size, n_slots, in_l2);
	}
	job.plan->empty = empty;
	/* A range may have one more home than buckets, if it shares the last one. */
	if (worth && r.b.n_buckets / job.n_parts() + 2 <= RHH_BUILD_BUCKETS)
		job.plan->n_sorted = all;
	else
		job.plan->n_unsorted = all;
}

/*
 * Copies the pairs whose keys are not in the table to absent[], and adds their number to
 * *n_absent.  A pair with the key EMPTY is inserted at once, if that is not there.
 */
template <class Ref, class S, typename Key, bool COUNT>
static __global__ void
absent_kernel(const __grid_constant__ Ref r, const __grid_constant__ columns<S, Key> io, uint64_t n,
			  typename S::slot *absent, unsigned long long *n_absent, counters *count)
{
	const typename S::warp_tiles team;
	const bool	hints = r.side->hints_made != 0;
	const uint64_t block_items = (uint64_t) blockDim.x * RHH_TABLE_ITEMS;
	const uint64_t first = blockIdx.x * block_items;
	const uint64_t end = n - first < block_items ? n : first + block_items;
	find_many<Ref, S, Key, uint8_t, true> op = {r.b.n_buckets, 0, 0, 0, 0, 0, 0};
	uint32_t	probes = 0;
	__shared__ uint32_t n_block;
	__shared__ unsigned long long base;
	__shared__ block_counters local;

	if (threadIdx.x == 0)
		local = block_counters{0, 0, 0, 0, 0};
	for (uint64_t k = first; k < end; k += blockDim.x)
	{
		const uint64_t i = k + threadIdx.x;
		const typename S::slot e = i < end ? io.load(i) : S::none();
		const bool	valid = !S::is_empty(e);
		uint32_t	to = 0;

		if (i < end && !valid)
		{
			Key			value = (Key) S::value(e);

			r.template insert_side_lane<false>(&value);
		}
		op.key = (Key) S::key(e);
		op.hint = hints && valid ? r.hints[rhh_home_of(S::hash(e), r.b.n_buckets)] : 0;
		op.pending = team.ballot(valid);
		op.result = 0;
		if (threadIdx.x == 0)
			n_block = 0;
		rhh_find_loop<S>(r.b, team, op, &probes);
		__syncthreads();
		if (valid && !op.result)
			to = atomicAdd(&n_block, 1u);
		__syncthreads();
		if (threadIdx.x == 0 && n_block)
			base = atomicAdd(n_absent, (unsigned long long) n_block);
		__syncthreads();
		if (valid && !op.result)
			absent[base + to] = e;
	}
	count_finds<COUNT>(local, team, probes, op.hits, end - first, count);
}

/* Counts the entries again, after the caller's own kernels have changed them. */
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

		n += load_unit<S>(e, b, u);
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

/* Writes all entries to arrays.  A thread has 16 bytes of slots. */
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
		n = load_unit<S>(e, r.b, u);
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

/*
 * Inserts the entries of old buckets, one bucket for each tile.  In the order of old
 * buckets the new buckets are near each other, too.
 */
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

}								/* namespace detail */
}								/* namespace rhh */

#include "table/rhh_table_build.cuh"

namespace rhh
{

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
	r.side = (detail::side_and_size *) (memory + side_at);
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
	if (absent)
		cudaFree(absent);
	memory = workspace = nullptr;
	absent = nullptr;
	bytes = workspace_bytes = absent_slots = 0;
	r.b = rhh_buckets();
	r.side = nullptr;
	r.locks = nullptr;
	r.hints = nullptr;
}

template <RHH_TABLE_ARGS>
void
RHH_TABLE::swap(table &other)
{
	std::swap(r, other.r);
	std::swap(memory, other.memory);
	std::swap(bytes, other.bytes);
	std::swap(workspace, other.workspace);
	std::swap(workspace_bytes, other.workspace_bytes);
	std::swap(absent, other.absent);
	std::swap(absent_slots, other.absent_slots);
	std::swap(at_most, other.at_most);
	std::swap(device_sms, other.device_sms);
	std::swap(device_l2_bytes, other.device_l2_bytes);
	std::swap(block_threads, other.block_threads);
	std::swap(count, other.count);
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::clear(cudaStream_t stream)
{
	auto		kernel = detail::clear_kernel<S>;

	at_most = 0;
	RHH_TRY(cudaMemsetAsync(r.side, 0, sizeof *r.side, stream));
	RHH_LAUNCH(kernel, 1, 1, 0, stream, (slot *) &r.side->side, (uint64_t) 1);
	if (EMPTY == (Key) ~(Key) 0)
		RHH_TRY(cudaMemsetAsync(r.b.slots, 0xFF, (uint64_t) r.b.n_buckets * LINE, stream));
	else
		RHH_LAUNCH(kernel, (unsigned) (device_sms * 8), 256, 0, stream, (slot *) r.b.slots,
				   n_slots());
	return cudaGetLastError();
}

/* The base-2 logarithm of the number of parts that bulk inserts make. */
template <RHH_TABLE_ARGS>
uint32_t
RHH_TABLE::part_bits() const
{
	uint32_t	bits = 2;

	while (bits < 18 && ((uint64_t) r.b.n_buckets * LINE >> bits > RHH_PART_BYTES ||
						 (r.b.n_buckets >> bits) + 2 > RHH_BUILD_BUCKETS))
		bits++;
	return bits;
}

/* How many of n items are sorted at a time: no more than the blocks of parts can take. */
template <RHH_TABLE_ARGS>
uint64_t
RHH_TABLE::chunk_items(uint64_t n) const
{
	uint64_t	most = RHH_CHUNK_BYTES / sizeof(slot);
	uint64_t	chunks;

	if (most > n_slots())
		most = n_slots();
	chunks = (n + most - 1) / most;
	return (n + chunks - 1) / chunks;
}

template <RHH_TABLE_ARGS>
bool
RHH_TABLE::in_l2() const
{
	return (uint64_t) r.b.n_buckets * LINE <= device_l2_bytes / RHH_PARTITION_L2_DIVISOR;
}

/*
 * May n keys be sorted before they are inserted into a table of `size` entries?  The
 * device decides (choose_kernel), but asking it takes a dozen launches.  If the table fits
 * the L2 cache, the device is asked only if the table may become crowded.  If more keys
 * have been inserted than there are slots, most keys are likely to be there, and the
 * device is asked only about many.
 */
template <RHH_TABLE_ARGS>
bool
RHH_TABLE::may_sort(uint64_t n, uint64_t size) const
{
	const bool	crowds = (size + n) * 32 > n_slots() * RHH_CROWDED &&
		(size + n <= n_slots() || n > RHH_PARTITION_LEAST_KEYS_FULL);

	return n > n_slots() / RHH_PARTITION_SLOTS_PER_KEY &&
		((crowds && n > RHH_PARTITION_LEAST_KEYS_CROWDED) || (!in_l2() && n > RHH_PARTITION_LEAST_KEYS));
}

/* The blocks that build: about as many as run at a time. */
template <RHH_TABLE_ARGS>
unsigned
RHH_TABLE::build_blocks() const
{
	uint64_t	blocks = (uint64_t) device_sms * RHH_BUILD_BLOCKS_PER_SM;

	return (unsigned) (blocks < UINT64_C(1) << part_bits() ? blocks : UINT64_C(1) << part_bits());
}

/*
 * Lays out the workspace: ends of parts, plan, words, parts, what blocks keep, and the
 * items twice.  Returns its size; and says in *job where these are, if job is not NULL.
 */
template <RHH_TABLE_ARGS>
uint64_t
RHH_TABLE::lay_out(uint64_t chunk, detail::build_job<S> *job) const
{
	const uint32_t bits = part_bits();
	uint64_t	at = 0;
	auto		take = [&](uint64_t n_bytes) {
		uint8_t    *p = workspace + at;

		at = (at + n_bytes + 15) / 16 * 16;
		return job ? p : nullptr;
	};
	detail::build_job<S> j = {};

	j.ends = (unsigned long long *) take(RHH_PARTITION_COUNTS(bits) * sizeof *j.ends);
	j.plan = (detail::build_plan *) take(sizeof *j.plan);
	j.words = (uint64_t *) take(sizeof *j.words << bits);
	j.parts = (detail::part_plan *) take(sizeof *j.parts << bits);
	j.spill = (slot *) take((uint64_t) build_blocks() * RHH_MERGE_BYTES);
	j.items = (slot *) take(chunk * sizeof(slot));
	j.leftover = (slot *) take(chunk * sizeof(slot));
	j.bits = bits;
	j.n = chunk;
	j.reach = r.b.n_buckets >> bits < r.b.max_dist ? r.b.n_buckets >> bits : r.b.max_dist;
	if (job)
		*job = j;
	return at;
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::reserve(uint64_t n, cudaStream_t stream)
{
	uint64_t	need;

	/* Whatever the load at which they will be inserted. */
	if (!may_sort(n, 0) && !may_sort(n, n_slots() - (n < n_slots() ? n : n_slots())))
		return cudaSuccess;
	need = lay_out(chunk_items(n), nullptr);
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

/* The blocks that insert n items one by one.  If they are few, a thread has one item. */
template <RHH_TABLE_ARGS>
uint64_t
RHH_TABLE::insert_blocks(uint64_t n) const
{
	const uint64_t few = (uint64_t) device_sms * RHH_TABLE_BLOCKS_PER_SM;
	const uint64_t with_one = (n + block_threads - 1) / block_threads;
	const uint64_t blocks = (with_one + RHH_TABLE_ITEMS - 1) / RHH_TABLE_ITEMS;

	return blocks > few ? blocks : with_one < few ? with_one : few;
}

/*
 * Inserts n items, no more than a chunk if they are sorted.  If n_items is not NULL, it
 * is device memory with their number, and the host only knows that there are no more
 * than n.  sort is what may_sort() says; without a workspace they are inserted one by one
 * all the same.
 */
template <RHH_TABLE_ARGS>
template <bool REDUCE, class Io>
cudaError_t
RHH_TABLE::insert_chunk(const Io &io, uint64_t n, const unsigned long long *n_items, bool sort,
						const failed<Key> &failures, cudaStream_t stream)
{
	typedef rhh_moved<Io> moved;
	typedef detail::backwards<S> backwards;
	const uint64_t blocks = insert_blocks(n);
	const unsigned few_blocks = (unsigned) (blocks < 16384 ? blocks : 16384);
	auto		direct = count ? detail::insert_kernel<ref, S, Key, Io, REDUCE, true>
		: detail::insert_kernel<ref, S, Key, Io, REDUCE, false>;
	auto		squeeze = count ? detail::squeeze_kernel<S, Key, Reduce, REDUCE, true>
		: detail::squeeze_kernel<S, Key, Reduce, REDUCE, false>;
	auto		build = count ? detail::build_kernel<ref, S, Key, REDUCE, true>
		: detail::build_kernel<ref, S, Key, REDUCE, false>;
	auto		rest_old = count ? detail::insert_kernel<ref, S, Key, backwards, REDUCE, true>
		: detail::insert_kernel<ref, S, Key, backwards, REDUCE, false>;
	auto		rest = count ? detail::insert_kernel<ref, S, Key, moved, REDUCE, true>
		: detail::insert_kernel<ref, S, Key, moved, REDUCE, false>;
	auto		choose = detail::choose_kernel<ref, S, Key, Io>;
	auto		plan = detail::plan_kernel<S>;
	auto		plan_all = detail::plan_all_kernel<S>;
	detail::build_job<S> job;

	at_most = at_most + n < n_slots() ? at_most + n : n_slots();
	if (!sort || lay_out(n, nullptr) > workspace_bytes)
	{
		RHH_LAUNCH(direct, n_items ? few_blocks : (unsigned) blocks, block_threads, 0, stream, r, io,
				   n, n_items, failures, count);
		return cudaGetLastError();
	}
	lay_out(n, &job);
	RHH_TRY(cudaMemsetAsync(job.plan, 0, sizeof *job.plan, stream));
	RHH_TRY(cudaMemsetAsync(job.words, 0, sizeof *job.words << job.bits, stream));
	RHH_LAUNCH(choose, 1, RHH_CHOOSE_THREADS, 0, stream, r, io, n, n_items, in_l2(), job);
	RHH_TRY(rhh_partition(io, n, job.bits, job.leftover, job.items,
						  (unsigned long long *) job.ends, device_sms, stream,
						  (const unsigned long long *) &job.plan->n_sorted));
	RHH_LAUNCH(plan, ((1u << job.bits) + 63) / 64, 64, 0, stream, r.b, job);
	RHH_LAUNCH(plan_all, 1, 1, 0, stream, r.b, job);
	RHH_LAUNCH(squeeze, build_blocks(), 512, 0, stream, r.reduce, job, count);
	for (bool for_empty : {true, false})
	{
		const size_t most_shared = detail::build_memory::bytes<S>(job.SLOTS_USED);
		const size_t shared = for_empty ? detail::build_memory::bytes<S>(job.SLOTS_EMPTY) : most_shared;

		RHH_TRY(cudaFuncSetAttribute(build, cudaFuncAttributeMaxDynamicSharedMemorySize,
									 (int) most_shared));
		RHH_LAUNCH_TOGETHER(build, build_blocks(), RHH_BUILD_THREADS, shared, stream, r, job,
							for_empty, failures, count);
	}
	RHH_LAUNCH(direct, few_blocks, block_threads, 0, stream, r, io, n,
			   (const unsigned long long *) &job.plan->n_unsorted, failures, count);
	RHH_LAUNCH(rest_old, few_blocks, block_threads, 0, stream, r, backwards{job.leftover + job.n}, n,
			   (const unsigned long long *) &job.plan->n_moved, failures, count);
	RHH_LAUNCH(rest, few_blocks, block_threads, 0, stream, r, moved{io, job.leftover}, n,
			   (const unsigned long long *) &job.plan->n_leftover, failures, count);
	if (count && !n_items)
		RHH_LAUNCH(detail::count_operations_kernel, 1, 1, 0, stream, count, n);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::insert(const Key *keys, const Value *values, uint64_t n,
				  const failed<Key> &failures, cudaStream_t stream)
{
	uint64_t	chunk = n;

	/* Items to be sorted come in chunks for which there is a workspace. */
	if (may_sort(n, at_most))
	{
		RHH_TRY(reserve(n, stream));
		chunk = chunk_items(n);
	}
	for (uint64_t done = 0; done < n; done += chunk)
	{
		detail::columns<S, Key> from = {keys + done, values ? values + done : nullptr};
		uint64_t	m = n - done < chunk ? n - done : chunk;

		/* A chunk is smaller, and finds the table fuller. */
		RHH_TRY(insert_chunk<true>(from, m, nullptr, may_sort(m, at_most), failures, stream));
	}
	return cudaSuccess;
}

/* Gets room for n slots, or for fewer, with room for their number behind them. */
template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::reserve_absent(uint64_t n, cudaStream_t stream)
{
	if (n <= absent_slots)
		return cudaSuccess;
	RHH_TRY(cudaStreamSynchronize(stream));
	if (absent)
		RHH_TRY(cudaFree(absent));
	absent = nullptr;
	absent_slots = 0;
	for (;; n = (n + 1) / 2)
	{
		cudaError_t error = cudaMalloc(&absent, (n + 1) * sizeof(slot));

		if (error == cudaSuccess)
			break;
		absent = nullptr;
		if (error != cudaErrorMemoryAllocation || n <= 4096)
			return error;
		(void) cudaGetLastError();
	}
	absent_slots = n;
	return cudaSuccess;
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::insert_if_absent(const Key *keys, const Value *values, uint64_t n,
							const failed<Key> &failures, cudaStream_t stream)
{
	auto		find_absent = count ? detail::absent_kernel<ref, S, Key, true>
		: detail::absent_kernel<ref, S, Key, false>;
	const uint64_t block_items = (uint64_t) block_threads * RHH_TABLE_ITEMS;
	const uint64_t most = RHH_CHUNK_BYTES / sizeof(slot);
	const bool	sort = may_sort(n, at_most);
	uint64_t	chunk = sort ? chunk_items(n) : n < most ? n : most;
	unsigned long long *n_absent;

	if (n == 0)
		return cudaSuccess;
	if (sort)
		RHH_TRY(reserve(chunk, stream));
	RHH_TRY(reserve_absent(chunk, stream));
	if (chunk > absent_slots)
		chunk = absent_slots;
	n_absent = (unsigned long long *) (absent + absent_slots);
	for (uint64_t done = 0; done < n; done += chunk)
	{
		detail::columns<S, Key> from = {keys + done, values ? values + done : nullptr};
		rhh_moved<detail::columns<S, Key>> found = {from, absent};
		uint64_t	m = n - done < chunk ? n - done : chunk;

		if (m > n_slots() / RHH_HINTS_SLOTS_PER_KEY)
			RHH_TRY(make_hints(stream));
		RHH_TRY(cudaMemsetAsync(n_absent, 0, sizeof *n_absent, stream));
		RHH_LAUNCH(find_absent, (unsigned) ((m + block_items - 1) / block_items), block_threads, 0,
				   stream, r, from, m, absent, n_absent, count);
		/* A chunk is smaller, and finds the table fuller. */
		RHH_TRY(insert_chunk<false>(found, m, n_absent, may_sort(m, at_most), failures, stream));
	}
	return cudaSuccess;
}

/* Drops the hints, after anything that may make a distance less. */
template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::drop_hints(detail::side_and_size *side, cudaStream_t stream)
{
	return cudaMemsetAsync(&side->hints_made, 0, 2 * sizeof side->hints_made, stream);
}

/*
 * Makes hints.  That costs reading the table once, unless nothing has been inserted since
 * they were made.  The device knows this, also of the caller's own kernels.
 */
template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::make_hints(cudaStream_t stream)
{
	auto		kernel = detail::hints_kernel<S>;
	auto		made = detail::hints_made_kernel<S>;

	RHH_LAUNCH(kernel, (r.b.n_buckets + RHH_HINT_HOMES - 1) / RHH_HINT_HOMES, 256, 0, stream,
			   r.b, r.hints, (const detail::side_and_size *) r.side);
	RHH_LAUNCH(made, 1, 1, 0, stream, r.b, r.side);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::find(const Key *keys, Value *values, uint64_t n, Value absent, cudaStream_t stream)
{
	auto		kernel = count ? detail::find_kernel<ref, S, Key, Value, false, true>
		: detail::find_kernel<ref, S, Key, Value, false, false>;
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
	auto		kernel = count ? detail::find_kernel<ref, S, Key, uint8_t, true, true>
		: detail::find_kernel<ref, S, Key, uint8_t, true, false>;
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
	auto		kernel = detail::erase_kernel<ref, S, Key>;
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
	RHH_TRY(drop_hints(r.side, stream));
	RHH_LAUNCH(kernel, (unsigned) (blocks ? blocks : 1), threads, 0, stream, r, keys, n);
	return cudaGetLastError();
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::size(uint64_t *n, cudaStream_t stream)
{
	auto		kernel = detail::size_kernel<S>;
	detail::side_and_size host;
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
	at_most = host.size;
	*n = host.size + !S::is_empty(e);
	return cudaSuccess;
}

template <RHH_TABLE_ARGS>
cudaError_t
RHH_TABLE::extract(Key *keys, Value *values, uint64_t capacity, unsigned long long *n_found,
				   cudaStream_t stream)
{
	auto		kernel = detail::extract_kernel<ref, S, Key>;
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
	auto		kernel = detail::rehash_kernel<ref, S, Key>;
	table grown(r.reduce);
	unsigned long long n_failed = 0;
	uint64_t	n_entries;
	uint64_t	tiles = r.b.n_buckets;
	uint64_t	blocks = (tiles * S::LANES + 255) / 256;
	cudaError_t error;

	*fits = false;
	RHH_TRY(size(&n_entries, stream));
	/* There are more entries than slots, so do not try. */
	if (n_entries > n_slots + 128 * S::SLOTS)
		return cudaSuccess;
	grown.block_threads = block_threads;
	grown.count = count;
	RHH_TRY(grown.create(n_slots, stream, r.b.max_dist < r.b.n_buckets ? r.b.max_dist : UINT32_MAX));
	/* The new table's locks are all open, so their memory counts the failures for now. */
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
		error = drop_hints(grown.r.side, stream);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(stream);
	if (error != cudaSuccess || n_failed > 0)
		return error;
	*fits = true;
	grown.at_most = at_most;
	std::swap(grown.workspace, workspace);
	std::swap(grown.workspace_bytes, workspace_bytes);
	std::swap(grown.absent, absent);
	std::swap(grown.absent_slots, absent_slots);
	*this = std::move(grown);
	return cudaSuccess;
}

#undef RHH_TABLE_ARGS
#undef RHH_TABLE
#undef RHH_TRY

}								/* namespace rhh */

#endif							/* RHH_TABLE_KERNELS_CUH */
