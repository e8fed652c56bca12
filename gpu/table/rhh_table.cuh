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

#include <utility>

#include "table/rhh_buckets.cuh"
#include "rhh_hash.h"
#include "table/rhh_partition.cuh"
#include "table/rhh_table_tuning.h"

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

namespace detail
{

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
	static __host__ __device__ RHH_INLINE slot none()
	{
		return p::make(EMPTY, (Key) 0);
	}
};

}								/* namespace detail */

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

namespace detail
{

struct side_and_size
{
	rhh_pair64	side;			/* EMPTY's slot; its key part says whether it is there */
	unsigned long long size;	/* entries in the buckets, but for those uncounted */
	uint32_t	uncounted;		/* flag: kernels of the caller's changed it */
	uint32_t	hints_made;		/* flag: hints[] holds for the slots */
	uint32_t	hints_current;	/* flag: nothing was inserted since they were made, or not worth it */
};

template <class S>
struct build_job;

}								/* namespace detail */

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
	typedef detail::slots<Key, EMPTY, LINE, Hash> S;
	typedef typename S::slot slot;
	typedef typename S::tile tile;

	/* ---------- on the device ---------- */

	struct ref
	{
		rhh_buckets b;
		uint32_t   *locks;
		detail::side_and_size *side;
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
			set_uncounted(tile);
			return insert_any<true>(tile, key, value);
		}

		/*
		 * Leaves a key that is there as it is, and gives its value (RHH_MET).  One
		 * exception: if the key is being displaced just then, and what is inserted
		 * anew is displaced in its turn before the two meet, either value may stay.
		 */
		__device__ RHH_INLINE rhh_outcome insert_if_absent(const tile &tile, Key *key,
														   Value *value) const
		{
			set_uncounted(tile);
			return insert_any<false>(tile, key, value);
		}

		/* True if the key is there, and its value then. */
		__device__ RHH_INLINE bool find(const tile &tile, Key key, Value *value) const
		{
			find_one	op = {S::make(key, (Key) 0), b.n_buckets, false, false};
			uint32_t	probes = 0;

			require_cas();
			if (key == EMPTY)
			{
				op.entry = load_side();
				op.found = S::key(op.entry) != EMPTY;
			}
			else
				rhh_find_loop<S, rhh_fresh>(b, tile, op, &probes);
			if (op.found)
				*value = (Value) S::value(op.entry);
			return op.found;
		}

		__device__ RHH_INLINE bool contains(const tile &tile, Key key) const
		{
			Value		value;

			return find(tile, key, &value);
		}

		/* True if the key was there, and its value then. */
		__device__ RHH_INLINE bool erase(const tile &tile, Key key, Value *value) const
		{
			set_uncounted(tile);
			return erase_any(tile, key, value);
		}

		/* ---------- parts, for the kernels below ---------- */

		/* An atomic operation for each entry would be too dear. */
		__device__ RHH_INLINE void set_uncounted(const tile &tile) const
		{
			if (tile.rank == 0 && side->uncounted == 0)
				*(volatile uint32_t *) &side->uncounted = 1;
			if (tile.rank == 0 && side->hints_current != 0)
				*(volatile uint32_t *) &side->hints_current = 0;
		}

		__device__ RHH_INLINE bool erase_any(const tile &tile, Key key, Value *value) const
		{
			slot		e;

			require_cas();
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

		/* What the two ways of inserting have in common. */
		template <bool REDUCE>
		struct inserting
		{
			static const bool UNSURE = false;
			const ref &r;

			__device__ RHH_INLINE bool same(const slot &mine, const slot &e) const
			{
				return S::key(e) == S::key(mine);
			}
			template <class Team>
			__device__ RHH_INLINE rhh_meeting met(const Team &team, bool active, bool carrying,
												  const slot &mine, const slot &e, uint64_t at)
			{
				Value		old = (Value) S::value(e);
				bool		done = true;

				/* Of two copies of a key the stored one is the newer, usually. */
				Value		now = !REDUCE ? (carrying ? (Value) S::value(mine) : old)
					: carrying ? r.reduce((Value) S::value(mine), old)
					: r.reduce(old, (Value) S::value(mine));

				if (active && now != old && team.rank == 0)
					done = S::cas(r.b.slots, at, e, S::make(S::key(e), now));
				done = team.shfl((int) done, 0);
				if (!active)
					return RHH_MEET_OTHER;
				return done ? RHH_MEET_DONE : RHH_MEET_AGAIN;
			}
			template <class Team>
			__device__ RHH_INLINE bool make(const Team &, bool, uint32_t, slot *)
			{
				return true;
			}
		};

		template <bool REDUCE>
		struct insert_one : inserting<REDUCE>
		{
			slot		entry;
			bool		taken;
			rhh_outcome outcome;

			__device__ RHH_INLINE bool next(const tile &, bool active, slot *mine)
			{
				if (!active || taken)
					return false;
				taken = true;
				*mine = entry;
				return true;
			}
			__device__ RHH_INLINE rhh_meeting met(const tile &tile, bool active, bool carrying,
												  const slot &mine, const slot &e, uint64_t at)
			{
				rhh_meeting m = inserting<REDUCE>::met(tile, active, carrying, mine, e, at);

				if (active && !carrying && m == RHH_MEET_DONE)
					entry = e;
				return m;
			}
			__device__ RHH_INLINE void done(const tile &, bool active, rhh_outcome o,
											const slot &carried)
			{
				if (active)
					outcome = o;
				if (active && o == RHH_PLACED_ORPHAN)
					entry = carried;
			}
		};

		template <bool REDUCE>
		__device__ RHH_INLINE rhh_outcome insert_any(const tile &tile, Key *key, Value *value) const
		{
			insert_one<REDUCE> op = {{*this}, S::make(*key, *value), false, RHH_FAILED};
			uint32_t	probes = 0,
						moves = 0;

			require_cas();
			if (*key == EMPTY)
				return insert_side<REDUCE>(tile, value);
			rhh_insert_loop<S>(b, tile, op, &probes, &moves);
			*key = (Key) S::key(op.entry);
			*value = (Value) S::value(op.entry);
			return op.outcome;
		}

		struct find_one
		{
			static const bool UNSURE = false;
			slot		entry;
			uint32_t	n_buckets;
			bool		taken;
			bool		found;

			__device__ RHH_INLINE bool next(const tile &, bool active, slot *mine,
											uint32_t *bucket, uint32_t *dist)
			{
				if (!active || taken)
					return false;
				taken = true;
				*mine = entry;
				*bucket = rhh_home_of(S::hash(entry), n_buckets);
				*dist = 0;
				return true;
			}
			__device__ RHH_INLINE bool same(const slot &mine, const slot &e) const
			{
				return S::key(e) == S::key(mine);
			}
			__device__ RHH_INLINE bool is_it(const tile &, bool, const slot &, const slot &) const
			{
				return true;
			}
			__device__ RHH_INLINE void done(const tile &, bool active, bool is_found, const slot &e)
			{
				if (active)
					found = is_found;
				if (active && is_found)
					entry = e;
			}
		};

		/*
		 * EMPTY's own entry is a slot whose key part is EMPTY while it is absent,
		 * as in the buckets, and another key, PRESENT, while it is there.
		 */
		static const Key PRESENT = EMPTY == 0 ? 1 : 0;

		/* Any lane by itself. */
		__device__ RHH_INLINE slot load_side() const
		{
			slot		e[S::PER_LANE];

			S::load(e, &side->side, 0);
			return e[0];
		}

		/* One lane: inserts or reduces EMPTY's value; RHH_MET gives the old one. */
		template <bool REDUCE>
		__device__ RHH_INLINE rhh_outcome insert_side_lane(Value *value) const
		{
			for (;;)
			{
				slot		e = load_side();
				Value		old = (Value) S::value(e);
				bool		there = S::key(e) != EMPTY;
				Value		now = !there ? *value : REDUCE ? reduce(old, *value) : old;

				if ((there && now == old) || S::cas(&side->side, 0, e, S::make(PRESENT, now)))
				{
					if (!there)
						return RHH_PLACED;
					*value = old;
					return RHH_MET;
				}
			}
		}

		template <bool REDUCE>
		__device__ RHH_INLINE rhh_outcome insert_side(const tile &tile, Value *value) const
		{
			int			outcome = 0;

			if (tile.rank == 0)
				outcome = insert_side_lane<REDUCE>(value);
			*value = tile.shfl(*value, 0);
			return (rhh_outcome) tile.shfl(outcome, 0);
		}

		__device__ RHH_INLINE bool erase_side(const tile &tile, Value *value) const
		{
			bool		there = false;
			Value		old = 0;

			if (tile.rank == 0)
				for (;;)
				{
					slot		e = load_side();

					old = (Value) S::value(e);
					there = S::key(e) != EMPTY;
					if (!there || S::cas(&side->side, 0, e, S::none()))
						break;
				}
			*value = tile.shfl(old, 0);
			return tile.shfl((int) there, 0);
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

	/* reduce: what kernels get a copy of, for reductions that have members. */
	explicit table(const Reduce &reduce = Reduce())
		: r{{}, nullptr, nullptr, nullptr, reduce}
	{
	}
	~table()
	{
		destroy();
	}
	table(table &&other)
		: table(other.r.reduce)
	{
		swap(other);
	}
	table &operator=(table &&other)
	{
		swap(other);
		other.destroy();
		return *this;
	}

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
		return bytes + workspace_bytes + absent_slots * sizeof(slot);
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
	 * Allocates what inserting n keys at once will want besides: inserts do it
	 * too, but then wait.  Where there is no memory for it they do without.
	 */
	cudaError_t reserve(uint64_t n, cudaStream_t stream);

	/*
	 * Inserts n pairs or reduces the values of keys that are there; equal keys in
	 * one call are reduced in no particular order.  values may be NULL: zeros.
	 * What the table refuses goes to failures.
	 *
	 * Many keys for a table beyond the L2 cache, or for one that may become
	 * crowded, are first sorted by their home buckets (rhh_partition.cuh) and then
	 * merged with what is there (rhh_table_build.cuh), in a workspace of two slots a
	 * key, at most 2 * RHH_CHUNK_BYTES and some, that is kept (see reserve).
	 */
	cudaError_t insert(const Key *keys, const Value *values, uint64_t n,
					   const failed<Key> &failures, cudaStream_t stream);
	/*
	 * The same, but keys that are there keep their values; of equal keys in one
	 * call that are not, one stays.  Looks which are there first, and wants a slot
	 * a key for that, kept too; without memory for 4096 it is an error.
	 */
	cudaError_t insert_if_absent(const Key *keys, const Value *values, uint64_t n,
								 const failed<Key> &failures, cudaStream_t stream);

	/* values[i] becomes keys[i]'s value or absent. */
	cudaError_t find(const Key *keys, Value *values, uint64_t n, Value absent, cudaStream_t stream);
	/* found[i] becomes 1 or 0. */
	cudaError_t contains(const Key *keys, uint8_t *found, uint64_t n, cudaStream_t stream);
	/* Keys that are not there, or twice among keys, do no harm. */
	cudaError_t erase(const Key *keys, uint64_t n, cudaStream_t stream);

	/*
	 * Entries, of the buckets and the side slot.  Waits; and counts them, if the
	 * caller's own kernels have changed any.
	 */
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
	template <bool REDUCE, class Io>
	cudaError_t insert_chunk(const Io &io, uint64_t n, const unsigned long long *n_items, bool sort,
							 const failed<Key> &failures, cudaStream_t stream);
	cudaError_t reserve_absent(uint64_t n, cudaStream_t stream);
	cudaError_t make_hints(cudaStream_t stream);
	static cudaError_t drop_hints(detail::side_and_size *side, cudaStream_t stream);
	uint32_t part_bits() const;
	uint64_t chunk_items(uint64_t n) const;
	bool in_l2() const;
	bool may_sort(uint64_t n, uint64_t size) const;
	unsigned build_blocks() const;
	uint64_t insert_blocks(uint64_t n) const;
	uint64_t lay_out(uint64_t chunk, detail::build_job<S> *job) const;
	void swap(table &other);

	ref			r;
	uint8_t    *memory = nullptr;
	uint64_t	bytes = 0;
	uint8_t    *workspace = nullptr;
	uint64_t	workspace_bytes = 0;
	slot	   *absent = nullptr;	/* of insert_if_absent */
	uint64_t	absent_slots = 0;
	uint64_t	at_most = 0;	/* entries, without those of the caller's kernels */
	int			device_sms = 0;
	uint64_t	device_l2_bytes = 0;
};

}								/* namespace rhh */

#include "table/rhh_table_kernels.cuh"

#endif							/* RHH_TABLE_CUH */
