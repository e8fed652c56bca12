/*
 * linear_probing.cuh
 *		Open addressing by linear probing, one thread a key: the least that a
 *		GPU hash table can be, and hard to beat while it is half empty.
 *
 * After D. Farrell, "A simple GPU hash table" (2020): a power of two of slots
 * {key, value}, all ones when empty; a thread goes from its key's home slot to
 * the next one until it finds the key or an empty slot; deleting sets the value
 * to empty and leaves the key where it is, a tombstone.
 *
 *		home(K)
 *		   |
 *		+--v--+-----+-----+-----+-----+
 *		| A a | B - | K k |     |     |		B is a tombstone: probes go past it
 *		+-----+-----+-----+-----+-----+
 *
 * Three kinds of insert:
 *
 *	LINEAR_TWO_STEP	Farrell's: claim the key by a CAS on the key alone, then
 *					store the value.
 *	LINEAR_ONE_CAS	claim key and value by one CAS on the whole slot: 8 bytes, or
 *					16 on sm_90 and later.
 *	LINEAR_REUSE	LINEAR_ONE_CAS that also puts new keys into tombstones.
 *
 * TWO_STEP and ONE_CAS.  A slot's key changes once, from empty to a key.  So
 * what a thread read of a key earlier stays true unless it was "empty", and
 * that the CAS verifies: probing may read through L1.  Two threads with one key
 * meet at the first slot that is empty for both, where one wins and the other
 * then sees its own key: there are no duplicates.  Any mixture of insert, find
 * and erase may run at the same time; each takes effect when it accesses the
 * value.  Slots of erased keys serve only the same keys again, until clear().
 *
 * REUSE.  An insert takes the first tombstone of its path, after it has looked
 * on to the first slot that carries its key or is empty (or the end of the
 * probe).  If the CAS fails, it looks again from that slot on.  May run at the
 * same time: inserts and finds; erases and finds.  NOT inserts and erases: one
 * thread could pass a live slot that is then erased and taken by another thread
 * for the same key.  Under this rule
 *
 *	(1) between two calls, a live copy of a key comes before all of its dead
 *		copies: it was put no further than the first slot that carried its key,
 *		and a dead copy comes only from killing the live one.  So the first slot
 *		that carries a key decides.
 *	(2) two inserts of one key make one copy.  No slot dies while inserts run,
 *		so a slot that is dead when one of them takes it was dead before, for
 *		both.  Say A takes slot a and B takes slot b further on (or the empty slot
 *		b).  B read a before A took it, or it would have found the key.  So it
 *		read a dead (or empty) slot, which it prefers to b: a contradiction.
 *	(3) replacing the value of a live key is a plain store: nobody takes a live
 *		slot.  Reviving a key's own tombstone is a CAS: others want it too.
 *
 * A probe ends after max_probe slots, by default the whole table, so that full
 * tables end too.  A key that finds no place is dropped and counted.
 */
#ifndef LINEAR_PROBING_CUH
#define LINEAR_PROBING_CUH

#include "table.cuh"

enum linear_kind
{
	LINEAR_TWO_STEP,
	LINEAR_ONE_CAS,
	LINEAR_REUSE
};

enum linear_operation
{
	LINEAR_INSERT,
	LINEAR_INSERT_SUM,
	LINEAR_ERASE,
	LINEAR_FIND
};

/* MurmurHash3's finalizers, as Farrell has them. */
static __host__ __device__ inline uint32_t
linear_hash(uint32_t x)
{
	x = (x ^ x >> 16) * 0x85EBCA6Bu;
	x = (x ^ x >> 13) * 0xC2B2AE35u;
	return x ^ x >> 16;
}

static __host__ __device__ inline uint64_t
linear_hash(uint64_t x)
{
	x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
	x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
	return x ^ x >> 33;
}

template <typename Word>
struct linear_slot
{
	Word		key;
	Word		value;

	__device__ RHH_INLINE bool dead() const
	{
		return value == table_empty<Word>();
	}
};

/* ---------- slots in memory, by width ---------- */

/*
 * Each by one thread.  load: the slot at one moment.  load_old: possibly as it
 * was earlier in this kernel, and for 16 bytes possibly key and value of two
 * moments.  claim: from empty to all of slot, returns the key found there.
 */
template <typename Word>
struct linear_slots;

template <>
struct linear_slots<uint32_t>
{
	typedef linear_slot<uint32_t> slot;
	uint64_t   *at;				/* the value is the high half */

	static __device__ RHH_INLINE slot unpack(uint64_t raw)
	{
		return slot{(uint32_t) raw, (uint32_t) (raw >> 32)};
	}

	static __device__ RHH_INLINE uint64_t pack(const slot &s)
	{
		return (uint64_t) s.value << 32 | s.key;
	}

	__device__ RHH_INLINE uint32_t *key(uint64_t i) const
	{
		return (uint32_t *) (at + i);
	}

	__device__ RHH_INLINE uint32_t *value(uint64_t i) const
	{
		return (uint32_t *) (at + i) + 1;
	}

	__device__ RHH_INLINE slot load(uint64_t i) const
	{
		return unpack(rhh_load_relaxed64(at + i));
	}

	__device__ RHH_INLINE slot load_old(uint64_t i) const
	{
		return unpack(rhh_load_cached64(at + i));
	}

	__device__ RHH_INLINE bool cas(uint64_t i, const slot &expected, const slot &desired) const
	{
		return rhh_cas64(at + i, pack(expected), pack(desired));
	}

	__device__ RHH_INLINE uint32_t claim(uint64_t i, const slot &desired) const
	{
		return (uint32_t) atomicCAS((unsigned long long *) at + i, ~0ULL,
									(unsigned long long) pack(desired));
	}

	__device__ RHH_INLINE uint32_t claim_key(uint64_t i, uint32_t desired) const
	{
		return atomicCAS(key(i), table_empty<uint32_t>(), desired);
	}

	__device__ RHH_INLINE void store_value(uint64_t i, uint32_t v) const
	{
#if defined(__CUDACC__)
		asm volatile("st.relaxed.gpu.global.u32 [%0], %1;"
					 : : "l"(__cvta_generic_to_global(value(i))), "r"(v) : "memory");
#else
		atomicExch(value(i), v);
#endif
	}

	__device__ RHH_INLINE void add_value(uint64_t i, uint32_t v) const
	{
		atomicAdd(value(i), v);
	}
};

template <>
struct linear_slots<uint64_t>
{
	typedef linear_slot<uint64_t> slot;
	uint64_t   *at;				/* key and value in turn */

	static __device__ RHH_INLINE slot unpack(const rhh_pair64 &raw)
	{
		return slot{raw.x, raw.y};
	}

	static __device__ RHH_INLINE rhh_pair64 pack(const slot &s)
	{
		return rhh_pair64{s.key, s.value};
	}

	__device__ RHH_INLINE unsigned long long *value(uint64_t i) const
	{
		return (unsigned long long *) at + 2 * i + 1;
	}

	__device__ RHH_INLINE slot load(uint64_t i) const
	{
		return unpack(rhh_load_relaxed128(at + 2 * i));
	}

	__device__ RHH_INLINE slot load_old(uint64_t i) const
	{
		return unpack(rhh_load_cached128(at + 2 * i));
	}

	__device__ RHH_INLINE bool cas(uint64_t i, const slot &expected, const slot &desired) const
	{
		return rhh_cas128(at + 2 * i, pack(expected), pack(desired));
	}

	__device__ RHH_INLINE uint64_t claim(uint64_t i, const slot &desired) const
	{
		slot		empty = {table_empty<uint64_t>(), table_empty<uint64_t>()};

		return cas(i, empty, desired) ? empty.key : rhh_load_relaxed64(at + 2 * i);
	}

	__device__ RHH_INLINE uint64_t claim_key(uint64_t i, uint64_t desired) const
	{
		return atomicCAS((unsigned long long *) at + 2 * i, ~0ULL, (unsigned long long) desired);
	}

	__device__ RHH_INLINE void store_value(uint64_t i, uint64_t v) const
	{
#if defined(__CUDACC__)
		asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
					 : : "l"(__cvta_generic_to_global(value(i))), "l"(v) : "memory");
#else
		atomicExch(value(i), v);
#endif
	}

	__device__ RHH_INLINE void add_value(uint64_t i, uint64_t v) const
	{
		atomicAdd(value(i), (unsigned long long) v);
	}
};

/* ---------- one thread, one key ---------- */

template <typename Word, linear_kind KIND>
struct linear_view
{
	typedef linear_slot<Word> slot;

	linear_slots<Word> slots;
	uint64_t	mask;			/* slots - 1 */
	uint64_t	max_probe;
	unsigned long long *n_failed;	/* inserts without a place */

	__device__ RHH_INLINE uint64_t home(Word key) const
	{
		return linear_hash(key) & mask;
	}

	/* Slots read to find what is in slot i. */
	__device__ RHH_INLINE uint64_t probe_length(Word key, uint64_t i) const
	{
		return ((i - home(key)) & mask) + 1;
	}

	/*
	 * False, and counted, if there was no place.  SUM: adds to the value of a
	 * key that is there; not for keys that were erased, but with REUSE.  A sum
	 * read while a kernel inserts may be one less with TWO_STEP, whose values
	 * begin at -1: who claims a key adds one more.
	 */
	template <bool SUM>
	__device__ RHH_INLINE bool insert(Word key, Word value) const
	{
		bool		found = KIND == LINEAR_REUSE ? insert_reusing<SUM>(key, value)
			: insert_behind<SUM>(key, value);

		if (!found)
			atomicAdd(n_failed, 1ULL);
		return found;
	}

	/* The value, or table_absent.  OLD: as of the kernel's begin, at least. */
	template <bool OLD>
	__device__ RHH_INLINE Word find(Word key) const
	{
		uint64_t	i = home(key);

		for (uint64_t n = 0; n < max_probe; n++, i = (i + 1) & mask)
		{
			slot		s = OLD ? slots.load_old(i) : slots.load(i);

			if (s.key == key)
				return s.value;
			if (s.key == table_empty<Word>())
				break;
		}
		return table_absent<Word>();
	}

	__device__ RHH_INLINE bool erase(Word key) const
	{
		uint64_t	i = home(key);

		for (uint64_t n = 0; n < max_probe; n++, i = (i + 1) & mask)
		{
			slot		s = slots.load(i);

			if (s.key == key)
			{
				if (s.dead())
					return false;
				slots.store_value(i, table_empty<Word>());
				return true;
			}
			if (s.key == table_empty<Word>())
				break;
		}
		return false;
	}

	/* TWO_STEP and ONE_CAS: tombstones are just other keys. */
	template <bool SUM>
	__device__ RHH_INLINE bool insert_behind(Word key, Word value) const
	{
		uint64_t	i = home(key);

		for (uint64_t n = 0; n < max_probe; n++, i = (i + 1) & mask)
		{
			Word		there = slots.load_old(i).key;
			bool		mine = false;

			if (there == table_empty<Word>())
			{
				there = KIND == LINEAR_TWO_STEP ? slots.claim_key(i, key)
					: slots.claim(i, slot{key, value});
				mine = there == table_empty<Word>();
				if (mine && KIND == LINEAR_ONE_CAS)
					return true;
			}
			if (mine || there == key)
			{
				if (SUM)
					slots.add_value(i, value + (mine ? 1 : 0));
				else
					slots.store_value(i, value);
				return true;
			}
		}
		return false;
	}

	template <bool SUM>
	__device__ RHH_INLINE bool insert_reusing(Word key, Word value) const
	{
		uint64_t	i = home(key),
					n = 0;

		for (;;)
		{
			bool		have_place = false;
			uint64_t	place = 0,
						place_n = 0;
			slot		was = {0, 0};

			for (; n < max_probe; n++, i = (i + 1) & mask)
			{
				slot		s = slots.load(i);
				bool		empty = s.key == table_empty<Word>();

				if (!s.dead() && s.key == key)
				{
					if (SUM)
						slots.add_value(i, value);
					else
						slots.store_value(i, value);
					return true;
				}
				if (s.dead() && !have_place)
				{
					have_place = true;
					place = i;
					place_n = n;
					was = s;
				}
				if (empty || s.key == key)
					break;
			}
			if (!have_place)
				return false;
			if (slots.cas(place, was, slot{key, value}))
				return true;
			/* Taken, perhaps by this key. What is before has not changed. */
			i = place;
			n = place_n;
		}
	}
};

/* ---------- kernels ---------- */

template <typename Word, linear_kind KIND, bool SUM>
static __global__ void
linear_insert_kernel(linear_view<Word, KIND> view, const Word *keys, const Word *values,
					 uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		view.template insert<SUM>(keys[i], values[i]);
}

/* REUSE gives slots to other keys, so there a slot is read at one moment. */
template <typename Word, linear_kind KIND>
static __global__ void
linear_find_kernel(linear_view<Word, KIND> view, const Word *keys, Word *values, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		values[i] = view.template find<KIND != LINEAR_REUSE>(keys[i]);
}

template <typename Word, linear_kind KIND>
static __global__ void
linear_erase_kernel(linear_view<Word, KIND> view, const Word *keys, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		view.erase(keys[i]);
}

/* values: in for inserts, out for finds. */
template <typename Word, linear_kind KIND>
static __global__ void
linear_mixed_kernel(linear_view<Word, KIND> view, const uint8_t *operations, const Word *keys,
					Word *values, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		switch (operations[i])
		{
			case LINEAR_INSERT:
				view.template insert<false>(keys[i], values[i]);
				break;
			case LINEAR_INSERT_SUM:
				view.template insert<true>(keys[i], values[i]);
				break;
			case LINEAR_ERASE:
				view.erase(keys[i]);
				break;
			case LINEAR_FIND:
				values[i] = view.template find<false>(keys[i]);
				break;
		}
	}
}

/*
 * Appends the live pairs in any order, at most capacity, and counts all of
 * them; keys may be null, to count only.  The table has a multiple of a warp of
 * slots: whole warps go round.
 */
template <typename Word, linear_kind KIND>
static __global__ void
linear_iterate_kernel(linear_view<Word, KIND> view, Word *keys, Word *values,
					  uint64_t capacity, unsigned long long *n_live)
{
	rhh_tile<RHH_WARP_SIZE> warp;
	unsigned long long counted = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i <= view.mask;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		linear_slot<Word> s = view.slots.load_old(i);
		bool		live = s.key != table_empty<Word>() && !s.dead();
		rhh_lanes	lanes = warp.ballot(live);
		unsigned long long first = 0;

		if (!keys)
		{
			counted += rhh_count_lanes(lanes);
			continue;
		}
		if (warp.rank == 0 && lanes)
			first = atomicAdd(n_live, (unsigned long long) rhh_count_lanes(lanes));
		first = warp.shfl(first, 0) + rhh_count_lanes(lanes & (((rhh_lanes) 1 << warp.rank) - 1));
		if (live && first < capacity)
		{
			keys[first] = s.key;
			values[first] = s.value;
		}
	}
	if (!keys && warp.rank == 0 && counted)
		atomicAdd(n_live, counted);
}

/*
 * counters[0]: slots read to find each live key once; [1]: the most for one;
 * from [2] on: keys by the number of slots read, from 1 up, the last of n_bins
 * having all beyond.
 */
template <typename Word, linear_kind KIND>
static __global__ void
linear_probe_kernel(linear_view<Word, KIND> view, unsigned long long *counters, uint32_t n_bins)
{
	RHH_DYNAMIC_SHARED(uint32_t, bins);
	unsigned long long sum = 0,
				most = 0;

	for (uint32_t b = threadIdx.x; b < n_bins; b += blockDim.x)
		bins[b] = 0;
	__syncthreads();
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i <= view.mask;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		linear_slot<Word> s = view.slots.load_old(i);

		if (s.key != table_empty<Word>() && !s.dead())
		{
			uint64_t	length = view.probe_length(s.key, i);

			sum += length;
			most = length > most ? length : most;
			atomicAdd(&bins[length <= n_bins ? length - 1 : n_bins - 1], 1u);
		}
	}
	if (sum)
	{
		atomicAdd(&counters[0], sum);
		atomicMax(&counters[1], most);
	}
	__syncthreads();
	for (uint32_t b = threadIdx.x; b < n_bins; b += blockDim.x)
		if (bins[b])
			atomicAdd(&counters[2 + b], (unsigned long long) bins[b]);
}

/*
 * n_sectors: 32-byte sectors that finding each of keys reads.  Inserting them
 * read as many, in whatever order they came: a key stays where it was put, and
 * what is before it was there then.
 */
template <typename Word, linear_kind KIND>
static __global__ void
linear_sectors_kernel(linear_view<Word, KIND> view, const Word *keys, uint64_t n,
					  unsigned long long *n_sectors)
{
	const uint64_t slots_a_sector = 32 / (2 * sizeof(Word));
	unsigned long long sum = 0;

	for (uint64_t k = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; k < n;
		 k += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t	i = view.home(keys[k]);

		sum++;
		for (uint64_t p = 1; p < view.max_probe; p++)
		{
			Word		there = view.slots.load_old(i).key;

			if (there == keys[k] || there == table_empty<Word>())
				break;
			i = (i + 1) & view.mask;
			sum += i % slots_a_sector == 0;
		}
	}
	if (sum)
		atomicAdd(n_sectors, sum);
}

/* ---------- the table ---------- */

struct linear_probe_stats
{
	uint64_t	n_entries;
	uint64_t	max;			/* slots */
	double		mean;			/* 0 for an empty table */
};

template <typename Key, typename Value, linear_kind KIND>
class linear_probing
{
	static_assert(sizeof(Key) == sizeof(Value) && (sizeof(Key) == 4 || sizeof(Key) == 8),
				  "keys and values of 4 or of 8 bytes");

public:
	typedef linear_view<Key, KIND> view_type;
	static const uint32_t MAX_BINS = 4096;

	static const char *name()
	{
		return KIND == LINEAR_TWO_STEP ? "linear_two_step"
			: KIND == LINEAR_ONE_CAS ? "linear_one_cas" : "linear_reuse";
	}

	/* The next power of two of slots, at least 64. */
	cudaError_t create(uint64_t n_slots, cudaStream_t stream)
	{
		uint64_t	slots = 64;
		int			device,
					major;

		if (KIND != LINEAR_TWO_STEP && sizeof(Key) == 8)
		{
			TABLE_TRY(cudaGetDevice(&device));
			TABLE_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
			if (major < 9)
				return cudaErrorNotSupported;
		}
		while (slots < n_slots)
			slots *= 2;
		destroy();
		TABLE_TRY(cudaMalloc(&memory_, slots * 2 * sizeof(Key)));
		view_.slots.at = memory_;
		view_.mask = slots - 1;
		view_.max_probe = slots;
		if (cudaMalloc(&counters_, COUNTERS * sizeof *counters_) != cudaSuccess)
		{
			counters_ = nullptr;
			destroy();
			return cudaErrorMemoryAllocation;
		}
		view_.n_failed = counters_;
		return clear(stream);
	}

	void destroy()
	{
		cudaFree(memory_);
		cudaFree(counters_);
		memory_ = nullptr;
		counters_ = nullptr;
	}

	cudaError_t clear(cudaStream_t stream)
	{
		TABLE_TRY(cudaMemsetAsync(memory_, 0xFF, memory_slots_bytes(), stream));
		return cudaMemsetAsync(counters_, 0, COUNTERS * sizeof *counters_, stream);
	}

	/* Slots a probe reads at most; the same for all calls until clear(). */
	void set_max_probe(uint64_t n_slots)
	{
		view_.max_probe = n_slots < slots() ? n_slots : slots();
	}

	cudaError_t insert(const Key *keys, const Value *values, uint64_t n, int block_threads,
					   cudaStream_t stream)
	{
		RHH_LAUNCH((linear_insert_kernel<Key, KIND, false>), table_blocks(n, block_threads),
				   block_threads, 0, stream, view_, keys, values, n);
		return cudaGetLastError();
	}

	/* Equal keys' values are added up. */
	cudaError_t insert_sum(const Key *keys, const Value *values, uint64_t n, int block_threads,
						   cudaStream_t stream)
	{
		RHH_LAUNCH((linear_insert_kernel<Key, KIND, true>), table_blocks(n, block_threads),
				   block_threads, 0, stream, view_, keys, values, n);
		return cudaGetLastError();
	}

	cudaError_t find(const Key *keys, Value *values, uint64_t n, int block_threads,
					 cudaStream_t stream)
	{
		RHH_LAUNCH((linear_find_kernel<Key, KIND>), table_blocks(n, block_threads),
				   block_threads, 0, stream, view_, keys, values, n);
		return cudaGetLastError();
	}

	cudaError_t erase(const Key *keys, uint64_t n, int block_threads, cudaStream_t stream)
	{
		RHH_LAUNCH((linear_erase_kernel<Key, KIND>), table_blocks(n, block_threads),
				   block_threads, 0, stream, view_, keys, n);
		return cudaGetLastError();
	}

	/* operations: of linear_operation; what may be mixed is said above. */
	cudaError_t mixed(const uint8_t *operations, const Key *keys, Value *values, uint64_t n,
					  int block_threads, cudaStream_t stream)
	{
		RHH_LAUNCH((linear_mixed_kernel<Key, KIND>), table_blocks(n, block_threads),
				   block_threads, 0, stream, view_, operations, keys, values, n);
		return cudaGetLastError();
	}

	cudaError_t size(uint64_t *n_entries, cudaStream_t stream)
	{
		return iterate(nullptr, nullptr, 0, n_entries, stream);
	}

	/*
	 * All live pairs into arrays of capacity, in any order; *n_entries: how
	 * many there are, also if more.  Waits for the stream.
	 */
	cudaError_t iterate(Key *keys, Value *values, uint64_t capacity, uint64_t *n_entries,
						cudaStream_t stream)
	{
		TABLE_TRY(cudaMemsetAsync(counters_ + 1, 0, sizeof *counters_, stream));
		RHH_LAUNCH((linear_iterate_kernel<Key, KIND>), scan_blocks(), SCAN_THREADS, 0, stream,
				   view_, keys, values, capacity, counters_ + 1);
		TABLE_TRY(cudaGetLastError());
		return fetch(n_entries, 1, 1, stream);
	}

	/* Inserts without a place since clear().  Waits for the stream. */
	cudaError_t failures(uint64_t *n, cudaStream_t stream)
	{
		return fetch(n, 0, 1, stream);
	}

	/*
	 * Probe lengths of all live keys.  bins[i], i < n_bins <= MAX_BINS: keys
	 * found with i + 1 slots read, the last: with that many or more.  Waits for
	 * the stream.
	 */
	cudaError_t probe_lengths(linear_probe_stats *stats, uint64_t *bins, uint32_t n_bins,
							  cudaStream_t stream)
	{
		uint64_t	sum_and_max[2];

		if (n_bins == 0 || n_bins > MAX_BINS)
			return cudaErrorInvalidValue;
		TABLE_TRY(cudaMemsetAsync(counters_ + 1, 0, (2 + n_bins) * sizeof *counters_, stream));
		RHH_LAUNCH((linear_probe_kernel<Key, KIND>), scan_blocks(), SCAN_THREADS,
				   n_bins * sizeof(uint32_t), stream, view_, counters_ + 1, n_bins);
		TABLE_TRY(cudaGetLastError());
		TABLE_TRY(fetch(sum_and_max, 1, 2, stream));
		TABLE_TRY(fetch(bins, 3, n_bins, stream));
		stats->n_entries = 0;
		for (uint32_t b = 0; b < n_bins; b++)
			stats->n_entries += bins[b];
		stats->max = sum_and_max[1];
		stats->mean = stats->n_entries ? (double) sum_and_max[0] / stats->n_entries : 0;
		return cudaSuccess;
	}

	/* 32-byte sectors that finding each of keys reads.  Waits for the stream. */
	cudaError_t count_sectors(const Key *keys, uint64_t n, uint64_t *n_sectors,
							  cudaStream_t stream)
	{
		TABLE_TRY(cudaMemsetAsync(counters_ + 1, 0, sizeof *counters_, stream));
		RHH_LAUNCH((linear_sectors_kernel<Key, KIND>), table_blocks(n, SCAN_THREADS),
				   SCAN_THREADS, 0, stream, view_, keys, n, counters_ + 1);
		TABLE_TRY(cudaGetLastError());
		return fetch(n_sectors, 1, 1, stream);
	}

	uint64_t memory_bytes() const
	{
		return memory_slots_bytes() + COUNTERS * sizeof *counters_;
	}

	uint64_t slots() const
	{
		return view_.mask + 1;
	}

	/* For kernels of one's own. */
	const view_type &view() const
	{
		return view_;
	}

private:
	static const int SCAN_THREADS = 256;
	static const uint32_t COUNTERS = 3 + MAX_BINS;	/* failures, then scratch */

	view_type	view_ = {};
	uint64_t   *memory_ = nullptr;
	unsigned long long *counters_ = nullptr;

	uint64_t memory_slots_bytes() const
	{
		return slots() * 2 * sizeof(Key);
	}

	/* A few slots a thread, so that its sums are worth their atomics. */
	unsigned scan_blocks() const
	{
		return table_blocks(slots() / 16, SCAN_THREADS);
	}

	cudaError_t fetch(uint64_t *to, uint32_t first, uint32_t n, cudaStream_t stream)
	{
		TABLE_TRY(cudaMemcpyAsync(to, counters_ + first, n * sizeof *counters_,
								  cudaMemcpyDeviceToHost, stream));
		return cudaStreamSynchronize(stream);
	}
};

#endif							/* LINEAR_PROBING_CUH */
