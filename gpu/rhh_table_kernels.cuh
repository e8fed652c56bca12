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

/* Blocks take consecutive ranges, so that those running are near each other. */
template <class Ref, class S, typename Key, class Io, bool REDUCE, bool COUNT>
static __global__ void
insert_kernel(const __grid_constant__ Ref r, const __grid_constant__ Io io, uint64_t n,
			  const __grid_constant__ failed<Key> failures, counters *count)
{
	const typename S::warp_tiles team;
	const uint64_t block_items = (uint64_t) blockDim.x * RHH_TABLE_ITEMS;
	const uint64_t first = blockIdx.x * block_items;
	const uint64_t end = n - first < block_items ? n : first + block_items;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	insert_many<Ref, S, Key, REDUCE> op = {{r}, S::none(), 0, 0, false, 0, 0, 0};
	uint32_t	probes = 0,
				moves = 0;
	__shared__ block_counters local;

	Ref::require_cas();
	if (threadIdx.x == 0)
		local = block_counters{0, 0, 0, 0, 0};
	__syncthreads();
	for (uint64_t warp_first = first + threadIdx.x - lane; warp_first < end; warp_first += blockDim.x)
	{
		uint64_t	i = warp_first + lane;

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
		flush_counters<COUNT>(local, (uint32_t) (end - first), count);
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

	if (side->size * 256 < (uint64_t) b.n_buckets * S::SLOTS * RHH_HINTS_MIN_LOAD_256)
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
	side->hints_made = side->size * 256
		>= (uint64_t) b.n_buckets * S::SLOTS * RHH_HINTS_MIN_LOAD_256;
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

template <class Ref, class S, typename Key>
static __global__ void
erase_kernel(const __grid_constant__ Ref r, const Key *keys, uint64_t n)
{
	const typename S::tile tile;
	unsigned long long erased = 0;

	for (uint64_t i = RHH_TILE_ID(S::LANES); i < n; i += RHH_TILES(S::LANES))
	{
		Key			value;

		if (r.erase(tile, keys[i], &value) && keys[i] != (Key) S::key(S::none()))
			erased++;
	}
	if (tile.rank == 0 && erased)
		atomicAdd(&r.side->size, ~erased + 1);
}

/* Blocks of at most 1024 threads, RHH_TABLE_ITEMS slots of 16 bytes a thread. */
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
	{
		typename S::slot s[S::PER_LANE];

		S::load(s, &r.side->side, 0);
		side = !S::is_empty(s[0]);
	}
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
		typename S::slot s[S::PER_LANE];

		S::load(s, &r.side->side, 0);
		keys[base + at] = (Key) S::key(S::none());
		values[base + at] = (Key) S::value(s[0]);
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
			o = r.insert(tile, &key, &value);
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
	bytes = hints_at + n_buckets;
	RHH_TRY(cudaMalloc(&memory, bytes));
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

template <RHH_TABLE_ARGS>
template <bool REDUCE>
cudaError_t
RHH_TABLE::insert_any(const Key *keys, const Value *values, uint64_t n,
					  const failed<Key> &failures, cudaStream_t stream)
{
	typedef columns<S, Key> direct;
	typedef pairs<S> sorted;
	const uint64_t slot_bytes = (uint64_t) r.b.n_buckets * LINE;
	const uint64_t block_items = (uint64_t) block_threads * RHH_TABLE_ITEMS;
	uint32_t	bits = 1;

	if (n > n_slots() / RHH_PARTITION_SLOTS_PER_KEY &&
		slot_bytes > device_l2_bytes / RHH_PARTITION_L2_DIVISOR)
	{
		uint64_t	chunk = n < RHH_TABLE_CHUNK ? n : RHH_TABLE_CHUNK;
		uint64_t	need = chunk * sizeof(slot) + RHH_MAX_PARTITIONS * 8;

		if (need > workspace_bytes)
		{
			RHH_TRY(cudaStreamSynchronize(stream));
			if (workspace)
				RHH_TRY(cudaFree(workspace));
			workspace = nullptr;
			workspace_bytes = 0;
			/* Without, keys go directly to their places, only slower. */
			if (cudaMalloc(&workspace, need) == cudaSuccess)
				workspace_bytes = need;
			else
			{
				workspace = nullptr;
				(void) cudaGetLastError();
			}
		}
	}
	else
		bits = 0;
	while (bits > 0 && bits < 9 && slot_bytes >> bits > RHH_PARTITION_BYTES)
		bits++;

	if (bits > 0 && workspace)
	{
		auto		kernel = count ? insert_kernel<ref, S, Key, sorted, REDUCE, true>
			: insert_kernel<ref, S, Key, sorted, REDUCE, false>;
		unsigned long long *counts = (unsigned long long *) workspace;
		sorted		in = {(slot *) (workspace + RHH_MAX_PARTITIONS * 8)};

		for (uint64_t done = 0; done < n; done += RHH_TABLE_CHUNK)
		{
			uint64_t	m = n - done < RHH_TABLE_CHUNK ? n - done : RHH_TABLE_CHUNK;
			direct		from = {keys + done, values ? values + done : nullptr};

			RHH_TRY(rhh_partition(from, m, bits, (slot *) in.items, counts, device_sms, stream));
			RHH_LAUNCH(kernel, (unsigned) ((m + block_items - 1) / block_items), block_threads, 0,
					   stream, r, in, m, failures, count);
			RHH_TRY(cudaGetLastError());
		}
		return cudaSuccess;
	}
	if (n > 0)
	{
		auto		kernel = count ? insert_kernel<ref, S, Key, direct, REDUCE, true>
			: insert_kernel<ref, S, Key, direct, REDUCE, false>;
		direct		in = {keys, values};

		RHH_LAUNCH(kernel, (unsigned) ((n + block_items - 1) / block_items), block_threads, 0,
				   stream, r, in, n, failures, count);
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
	side_and_size host;
	slot		e;

	RHH_TRY(cudaMemcpyAsync(&host, r.side, sizeof host, cudaMemcpyDeviceToHost, stream));
	RHH_TRY(cudaStreamSynchronize(stream));
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
	uint64_t	tiles = r.b.n_buckets;
	uint64_t	blocks = (tiles * S::LANES + 255) / 256;
	cudaError_t error;

	*fits = false;
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
