/*
 * rhh_table.cuh
 *		rhh::table: a hash table in GPU memory, header only, without PostgreSQL.
 *
 *		rhh::table<uint32_t, uint32_t, rhh::sum> t;
 *		t.create(1 << 27, stream);						// slots
 *		t.insert(keys, values, n, failures, stream);	// device arrays
 *		t.find(keys, values, n, absent, stream);
 *		t.destroy();
 *
 * Key and Value are unsigned integers of 4 or both of 8 bytes; slots of 16 bytes
 * need the 128-bit compare-and-swap of sm_90 (where it is missing compiling says
 * so).  Reduce says what becomes of the value when a key is inserted again:
 * rhh::replace, sum, min, max, or a functor of your own,
 *
 *		struct my_or { __device__ uint32_t operator()(uint32_t old, uint32_t added) const; };
 *
 * commutative and associative if the result shall not depend on the order.  All
 * keys can be stored: EMPTY, which marks free slots, has a slot of its own
 * beside the buckets.
 *
 * Two levels:
 *
 *	On the host, bulk operations on arrays in device memory.  Each is
 *	asynchronous on the caller's stream unless it says otherwise; operations on
 *	one table are to follow one another (one stream, or events).  All return the
 *	first CUDA error.
 *
 *	On the device, operations of a tile on one key: table::ref, a plain value to
 *	pass to kernels.  All lanes of a ref::tile call them with the same
 *	arguments; they synchronise that tile only.  What may run at the same time:
 *
 *		insert, insert_if_absent	beside each other
 *		find, contains				beside each other.  Beside inserts they see
 *									each key inserted before the kernel, unless
 *									it is being displaced just then
 *		erase						beside other erases only, and by no more
 *									than max_erasing_tiles() tiles
 *
 * How it works is in rhh_buckets.cuh.  Sources of ideas beyond that are named
 * where they are used.
 */
#ifndef RHH_TABLE_CUH
#define RHH_TABLE_CUH

#include <string.h>

#include "rhh_buckets.cuh"
#include "rhh_hash.h"
#include "rhh_partition.cuh"
#include "rhh_table_tuning.h"

namespace rhh
{

/* ---------- reductions ---------- */

struct replace
{
	template <typename T>
	__host__ __device__ T operator()(T, T added) const
	{
		return added;
	}
};

struct sum
{
	template <typename T>
	__host__ __device__ T operator()(T old, T added) const
	{
		return old + added;
	}
};

struct min
{
	template <typename T>
	__host__ __device__ T operator()(T old, T added) const
	{
		return added < old ? added : old;
	}
};

struct max
{
	template <typename T>
	__host__ __device__ T operator()(T old, T added) const
	{
		return old < added ? added : old;
	}
};

/* The default hash: 32 bits, of which the high ones choose the home bucket. */
struct mix
{
	static __host__ __device__ RHH_INLINE uint32_t hash(uint32_t key)
	{
		return rhh_mix32(key);
	}
	static __host__ __device__ RHH_INLINE uint32_t hash(uint64_t key)
	{
		return (uint32_t) (rhh_mix64(key) >> 32);
	}
};

/* ---------- slots ---------- */

template <int BYTES>
struct pack;

template <>
struct pack<4>
{
	typedef uint64_t slot;

	static __host__ __device__ RHH_INLINE slot make(uint32_t key, uint32_t value)
	{
		return (uint64_t) value << 32 | key;
	}
	static __host__ __device__ RHH_INLINE uint32_t key(slot e)
	{
		return (uint32_t) e;
	}
	static __host__ __device__ RHH_INLINE uint32_t value(slot e)
	{
		return (uint32_t) (e >> 32);
	}
};

template <>
struct pack<8>
{
	typedef rhh_pair64 slot;

	static __host__ __device__ RHH_INLINE slot make(uint64_t key, uint64_t value)
	{
		slot		e = {key, value};

		return e;
	}
	static __host__ __device__ RHH_INLINE uint64_t key(const slot &e)
	{
		return e.x;
	}
	static __host__ __device__ RHH_INLINE uint64_t value(const slot &e)
	{
		return e.y;
	}
};

template <typename Key, Key EMPTY, int LINE, class Hash>
struct slots : rhh_shape<2 * sizeof(Key), LINE>, pack<sizeof(Key)>
{
	typedef pack<sizeof(Key)> p;
	typedef typename p::slot slot;

	static __host__ __device__ RHH_INLINE bool is_empty(const slot &e)
	{
		return p::key(e) == EMPTY;
	}
	static __host__ __device__ RHH_INLINE uint32_t hash(const slot &e)
	{
		return Hash::hash(p::key(e));
	}
	static __host__ __device__ RHH_INLINE slot empty()
	{
		return p::make(EMPTY, (Key) 0);
	}
};

/* ---------- what is counted ---------- */

/* In device memory; summed over the tiles of a bulk operation that counts. */
struct counters
{
	uint64_t	operations;
	uint64_t	probes;			/* buckets read */
	uint64_t	hits;			/* keys found, or met by an insert */
	uint64_t	displacements;
	uint64_t	failures;
};

/* Where failed inserts go: device memory, room for one a key inserted. */
template <typename Key>
struct failed
{
	Key		   *keys;			/* NULL: only counted */
	Key		   *values;
	unsigned long long *count;	/* NULL: not even counted; not reset by inserting */
};

struct side_and_size
{
	rhh_pair64	side;			/* EMPTY's slot; its key part says whether it is there */
	unsigned long long size;	/* entries in the buckets */
	uint32_t	hints_made;		/* flag: hints[] is that of the slots */
};

/*
 * MAX_DIST: distances in buckets an entry may have (the probe cap); n_buckets
 * and more means uncapped.
 */
template <typename Key, typename Value, class Reduce = replace, Key EMPTY = (Key) ~(Key) 0,
		  int LINE = RHH_LINE_BYTES, class Hash = mix>
class table
{
	static_assert(sizeof(Key) == sizeof(Value) && (sizeof(Key) == 4 || sizeof(Key) == 8),
				  "a key and a value have 4 bytes each, or 8 bytes each");

  public:
	typedef slots<Key, EMPTY, LINE, Hash> S;
	typedef typename S::slot slot;
	typedef typename S::tile tile;

	/* ---------- on the device ---------- */

	struct ref
	{
		rhh_buckets b;
		uint32_t   *locks;
		side_and_size *side;
		uint8_t    *hints;
		Reduce		reduce;

		typedef typename table::tile tile;

		/*
		 * Inserts a key or reduces its value.  RHH_FAILED and RHH_PLACED_ORPHAN
		 * hand an entry back in *key and *value (RHH_PLACED_ORPHAN's is another's,
		 * which had to go): the caller is to combine it with whatever else it gets
		 * of that key.
		 */
		__device__ RHH_INLINE rhh_outcome insert(const tile &tile, Key *key, Value *value) const
		{
			uint32_t	probes = 0,
						moves = 0;

			return insert_counted<true>(tile, key, value, &probes, &moves);
		}

		/* Leaves a key that is there as it is, and gives its value (RHH_MET). */
		__device__ RHH_INLINE rhh_outcome insert_if_absent(const tile &tile, Key *key,
														   Value *value) const
		{
			uint32_t	probes = 0,
						moves = 0;

			return insert_counted<false>(tile, key, value, &probes, &moves);
		}

		/* True if the key is there, and its value then. */
		__device__ RHH_INLINE bool find(const tile &tile, Key key, Value *value) const
		{
			uint32_t	probes = 0;
			uint32_t	home = rhh_home_of(Hash::hash(key), b.n_buckets);

			return find_counted(tile, key, home, 0, rhh_load_line<S>(b, tile, home), value,
								&probes);
		}

		__device__ RHH_INLINE bool contains(const tile &tile, Key key) const
		{
			Value		value;

			return find(tile, key, &value);
		}

		/* True if the key was there, and its value then. */
		__device__ RHH_INLINE bool erase(const tile &tile, Key key, Value *value) const
		{
			slot		e;

			if (key == EMPTY)
				return erase_side(tile, value);
			/* Hints are lower bounds, which entries now may move below. */
			if (tile.rank == 0 && side->hints_made)
				*(volatile uint32_t *) &side->hints_made = 0;
			if (!rhh_erase<S>(
					b, locks, tile, Hash::hash(key), [&](const slot &x) {
						return S::key(x) == key;
					},
					&e))
				return false;
			*value = (Value) S::value(e);
			return true;
		}

		/* ---------- parts, for the kernels below ---------- */

		template <bool REDUCE>
		struct op
		{
			const ref &r;
			Value	   *met_value;
			Key		   *orphan_key;

			__device__ RHH_INLINE bool same(const slot &mine, const slot &e) const
			{
				return S::key(e) == S::key(mine);
			}
			__device__ RHH_INLINE rhh_meeting met(const tile &tile, bool carrying, const slot &mine,
												  const slot &e, uint64_t at)
			{
				Value		old = (Value) S::value(e);
				bool		done = true;

				/* Of two copies of a key the stored one is the newer. */
				Value		now = !REDUCE ? old
					: carrying ? r.reduce((Value) S::value(mine), old)
					: r.reduce(old, (Value) S::value(mine));

				if (now != old)
				{
					if (tile.rank == 0)
						done = S::cas(r.b.slots, at, e, S::make(S::key(e), now));
					if (!tile.shfl((int) done, 0))
						return RHH_MEET_AGAIN;
				}
				if (!carrying)
					*met_value = old;
				return RHH_MEET_DONE;
			}
			__device__ RHH_INLINE bool make(const tile &, uint32_t, slot *)
			{
				return true;
			}
			__device__ RHH_INLINE void displaced()
			{
			}
			__device__ RHH_INLINE void orphan(const tile &, const slot &e)
			{
				*orphan_key = S::key(e);
				*met_value = (Value) S::value(e);
			}
		};

		/* The same with the first bucket's content known, *value becoming what is handed back. */
		template <bool REDUCE>
		__device__ RHH_INLINE rhh_outcome insert_line(const tile &tile, Key *key, Value *value,
													  uint32_t home, const rhh_line<S> &line,
													  uint32_t *probes, uint32_t *moves) const
		{
			op<REDUCE>	o = {*this, value, key};

			return rhh_insert_from<S>(b, tile, home, line, S::make(*key, *value), o, probes, moves);
		}

		template <bool REDUCE>
		__device__ RHH_INLINE rhh_outcome insert_counted(const tile &tile, Key *key, Value *value,
														 uint32_t *probes, uint32_t *moves) const
		{
			uint32_t	home = rhh_home_of(Hash::hash(*key), b.n_buckets);

			require_cas();
			if (*key == EMPTY)
				return insert_side<REDUCE>(tile, value);
			return insert_line<REDUCE>(tile, key, value, home, rhh_load_line<S>(b, tile, home),
									   probes, moves);
		}

		__device__ RHH_INLINE bool find_counted(const tile &tile, Key key, uint32_t bucket,
												uint32_t dist, const rhh_line<S> &line,
												Value *value, uint32_t *probes) const
		{
			slot		e;
			uint64_t	at;

			if (key == EMPTY)
			{
				e = load_side(tile);
				*value = (Value) S::value(e);
				return S::key(e) != EMPTY;
			}
			if (!rhh_find_from<S, rhh_fresh>(
					b, tile, bucket, dist, line, [&](const slot &x) {
						return S::key(x) == key;
					},
					[](const slot &) {
						return true;
					},
					&e, &at, probes))
				return false;
			*value = (Value) S::value(e);
			return true;
		}

		/*
		 * EMPTY's own entry is a slot whose key part is EMPTY while it is absent,
		 * as in the buckets, and another key, PRESENT, while it is there.
		 */
		static const Key PRESENT = EMPTY == 0 ? 1 : 0;

		__device__ RHH_INLINE slot load_side(const tile &tile) const
		{
			slot		e[S::PER_LANE];

			S::load(e, &side->side, 0);
			return S::shfl(tile, e[0], 0);
		}

		template <bool REDUCE>
		__device__ RHH_INLINE rhh_outcome insert_side(const tile &tile, Value *value) const
		{
			for (;;)
			{
				slot		e = load_side(tile);
				Value		old = (Value) S::value(e);
				bool		there = S::key(e) != EMPTY;
				Value		now = !there ? *value : REDUCE ? reduce(old, *value) : old;
				bool		done = true;

				if (tile.rank == 0 && (!there || now != old))
					done = S::cas(&side->side, 0, e, S::make(PRESENT, now));
				if (tile.shfl((int) done, 0))
				{
					if (!there)
						return RHH_PLACED;
					*value = old;
					return RHH_MET;
				}
			}
		}

		__device__ RHH_INLINE bool erase_side(const tile &tile, Value *value) const
		{
			for (;;)
			{
				slot		e = load_side(tile);
				bool		done = false;

				if (S::key(e) == EMPTY)
					return false;
				if (tile.rank == 0)
					done = S::cas(&side->side, 0, e, S::empty());
				if (tile.shfl((int) done, 0))
				{
					*value = (Value) S::value(e);
					return true;
				}
			}
		}

		static __device__ RHH_INLINE void require_cas()
		{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
			static_assert(sizeof(Key) == 4,
						  "keys and values of 8 bytes need the 128-bit compare-and-swap of sm_90: "
						  "compile for sm_90, or use keys and values of 4 bytes");
#endif
		}
	};

	/* ---------- on the host ---------- */

	/*
	 * Allocates a table of at least n_slots slots, empty.  max_dist is the probe
	 * cap in buckets.  Waits.
	 */
	cudaError_t create(uint64_t n_slots, cudaStream_t stream, uint32_t max_dist = RHH_DEFAULT_MAX_DIST);
	/* May be called again, and for a table that was never created. */
	void destroy();

	ref device() const
	{
		return r;
	}
	uint64_t n_slots() const
	{
		return (uint64_t) r.b.n_buckets * S::SLOTS;
	}
	uint64_t memory_bytes() const
	{
		return bytes + workspace_bytes;
	}
	uint32_t max_erasing_tiles() const
	{
		return r.b.n_buckets / 4;
	}

	/* Threads of the blocks of later launches: a multiple of 32, at most 1024. */
	int			block_threads = RHH_TABLE_BLOCK_THREADS;
	/* What a launch counts, if not NULL: device memory, not reset here. */
	counters   *count = nullptr;

	cudaError_t clear(cudaStream_t stream);

	/*
	 * Inserts n pairs or reduces the values of keys that are there; equal keys in
	 * one call are reduced in no particular order.  values may be NULL: zeros.
	 * What the table refuses goes to failures.
	 *
	 * Many keys for a table beyond the L2 cache are first partitioned by their
	 * home buckets (rhh_partition.cuh), in a workspace that is allocated the first
	 * time and kept (about RHH_TABLE_CHUNK pairs).
	 */
	cudaError_t insert(const Key *keys, const Value *values, uint64_t n,
					   const failed<Key> &failures, cudaStream_t stream);
	/* The same, but keys that are there keep their values. */
	cudaError_t insert_if_absent(const Key *keys, const Value *values, uint64_t n,
								 const failed<Key> &failures, cudaStream_t stream);

	/* values[i] becomes keys[i]'s value or absent. */
	cudaError_t find(const Key *keys, Value *values, uint64_t n, Value absent, cudaStream_t stream);
	/* found[i] becomes 1 or 0. */
	cudaError_t contains(const Key *keys, uint8_t *found, uint64_t n, cudaStream_t stream);
	/* Keys that are not there, or twice among keys, do no harm. */
	cudaError_t erase(const Key *keys, uint64_t n, cudaStream_t stream);

	/* Entries, of the buckets and the side slot.  Waits. */
	cudaError_t size(uint64_t *n, cudaStream_t stream);

	/*
	 * All entries, in no particular order, into arrays with room for size()
	 * (at most capacity are written).  *n_found is device memory, reset here.
	 */
	cudaError_t extract(Key *keys, Value *values, uint64_t capacity, unsigned long long *n_found,
						cudaStream_t stream);

	/*
	 * Moves all entries to a new table of at least n_slots slots.  Where it is too
	 * small for them, *fits becomes false and the table stays as it was.  Waits.
	 */
	cudaError_t rehash(uint64_t n_slots, bool *fits, cudaStream_t stream);

  private:
	template <bool REDUCE>
	cudaError_t insert_any(const Key *keys, const Value *values, uint64_t n,
						   const failed<Key> &failures, cudaStream_t stream);
	cudaError_t make_hints(cudaStream_t stream);

	ref			r = {};
	uint8_t    *memory = nullptr;
	uint64_t	bytes = 0;
	uint8_t    *workspace = nullptr;
	uint64_t	workspace_bytes = 0;
	int			device_sms = 0;
	uint64_t	device_l2_bytes = 0;
};

}								/* namespace rhh */

#include "rhh_table_kernels.cuh"

#endif							/* RHH_TABLE_CUH */
