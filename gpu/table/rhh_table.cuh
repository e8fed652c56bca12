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
 * Key and Value are unsigned integers, both of 4 or both of 8 bytes.  With 8 bytes the
 * slots have 16 and need the 128-bit compare-and-swap of sm_90; without it the program
 * does not compile, and the message says why.  Reduce says what becomes of the value
 * when a key is inserted again: rhh::replace, sum, min, max, or a functor of your own,
 *
 *		struct my_or { __device__ uint32_t operator()(uint32_t old, uint32_t added) const; };
 *
 * which should be commutative and associative, or the result depends on the order.  All
 * keys can be stored, even EMPTY, the key that marks free slots: it has a slot of its
 * own beside the buckets.
 *
 * Two levels:
 *
 *	On the host there are bulk operations on arrays in device memory.  Each of them is
 *	asynchronous on the caller's stream, unless its comment says that it waits.  Two
 *	operations on one table must not overlap: use one stream, or events.  All of them
 *	return the first CUDA error.
 *
 *	On the device a tile works on one key, through a table::ref, which is a plain value
 *	to pass to kernels.  All lanes of a ref::tile call its functions with the same
 *	arguments; the functions synchronise that tile only.  What may run at the same time:
 *
 *		insert, insert_if_absent	beside each other
 *		find, contains				beside each other.  Beside inserts they see
 *									each key inserted before the kernel, unless
 *									it is being displaced just then
 *		erase						beside other erases only, and by no more
 *									than max_erasing_tiles() tiles
 *
 * rhh_buckets.cuh explains how the table works.  The sources of further ideas are named
 * where these are used.
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

/* What bulk operations count, in device memory; see table::count. */
struct counters
{
	uint64_t	operations;
	uint64_t	probes;			/* buckets read */
	uint64_t	hits;			/* keys found, or met by an insert */
	uint64_t	displacements;
	uint64_t	failures;
};

/*
 * Where inserts that the table has refused go: device memory, with room for as many as
 * are inserted.
 */
template <typename Key>
struct failed
{
	Key		   *keys;			/* NULL: only counted */
	Key		   *values;
	unsigned long long *count;	/* grows by their number; NULL: not even counted */
};

namespace detail
{

struct side_and_size
{
	rhh_pair64	side;			/* the slot of the key EMPTY; see ref::PRESENT */
	unsigned long long size;	/* entries in the buckets, without uncounted ones */
	uint32_t	uncounted;		/* flag: the caller's own kernels have changed it */
	uint32_t	hints_made;		/* flag: hints[] is right for the slots */
	uint32_t	hints_current;	/* flag: nothing has been inserted since hints were made or
								 * found not to be worth it */
};

template <class S>
struct build_job;

}								/* namespace detail */

/*
 * The table.  EMPTY is the key that marks free slots, LINE the bytes of a bucket, and
 * Hash has a function hash(key) of 32 bits, of which the high ones choose the home.
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
		 * Inserts a key, or reduces its value if the key is there.  RHH_FAILED and
		 * RHH_PLACED_ORPHAN hand an entry back in *key and *value; with
		 * RHH_PLACED_ORPHAN it is an entry of another key, which had to make room.
		 * The caller has to combine it with whatever else it has for that key.
		 */
		__device__ RHH_INLINE rhh_outcome insert(const tile &tile, Key *key, Value *value) const
		{
			set_uncounted(tile);
			return insert_any<true>(tile, key, value);
		}

		/*
		 * Inserts a key that is not there.  If it is there, it stays as it is, and
		 * *value becomes its value (RHH_MET).  There is one exception: if the key is
		 * just being displaced, so that it is inserted again, and the new entry is
		 * displaced in turn before the two meet, then either value may stay.
		 */
		__device__ RHH_INLINE rhh_outcome insert_if_absent(const tile &tile, Key *key,
														   Value *value) const
		{
			set_uncounted(tile);
			return insert_any<false>(tile, key, value);
		}

		/* True if the key is there; *value becomes its value then. */
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
				rhh_find_loop<S>(b, tile, op, &probes);
			if (op.found)
				*value = (Value) S::value(op.entry);
			return op.found;
		}

		__device__ RHH_INLINE bool contains(const tile &tile, Key key) const
		{
			Value		value;

			return find(tile, key, &value);
		}

		/* Erases a key.  True if it was there; *value becomes its value then. */
		__device__ RHH_INLINE bool erase(const tile &tile, Key key, Value *value) const
		{
			set_uncounted(tile);
			return erase_any(tile, key, value);
		}

		/* ---------- parts of these, for the kernels of bulk operations ---------- */

		/* Says that size has to be counted again: counting here would cost too much. */
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
			/* Hints are lower bounds, and now entries may move below them. */
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

				/* If mine is carried, the entry that is stored is usually the newer one. */
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
		 * The slot of the key EMPTY.  Its key part is EMPTY while it is free, as in
		 * the buckets, and another key, PRESENT, while there is an entry in it.
		 */
		static const Key PRESENT = EMPTY == 0 ? 1 : 0;

		/* One lane. */
		__device__ RHH_INLINE slot load_side() const
		{
			slot		e[S::PER_LANE];

			S::load(e, &side->side, 0);
			return e[0];
		}

		/* Inserts the key EMPTY or reduces its value; RHH_MET gives the old one.  One lane. */
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

	/* Kernels get a copy of reduce, which matters for reductions that have members. */
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
	 * Allocates an empty table of at least n_slots slots.  max_dist is the probe cap:
	 * so many buckets are looked at for a key.  Waits.
	 */
	cudaError_t create(uint64_t n_slots, cudaStream_t stream, uint32_t max_dist = RHH_DEFAULT_MAX_DIST);
	/* May be called twice, and for a table that was never created. */
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

	/* Threads of a block of later launches: a multiple of 32, at most 1024. */
	int			block_threads = RHH_TABLE_BLOCK_THREADS;
	/* If not NULL, later launches add to these counters, which are in device memory. */
	counters   *count = nullptr;

	cudaError_t clear(cudaStream_t stream);

	/*
	 * Allocates the workspace for inserting n keys at once.  Otherwise the insert does
	 * so, and waits for it.  If there is no memory for it inserts do without.
	 */
	cudaError_t reserve(uint64_t n, cudaStream_t stream);

	/*
	 * Inserts n pairs, or reduces the values of keys that are there.  Equal keys in one
	 * call are reduced in no particular order.  values may be NULL, which means zeros.
	 * What the table refuses goes to failures.
	 *
	 * If there are many keys, and the table does not fit the L2 cache or may become
	 * crowded, then they are first sorted by their home buckets (rhh_partition.cuh) and
	 * then merged with what is there (rhh_table_build.cuh).  That needs a workspace of
	 * two slots for each key, at most a little over 2 * RHH_CHUNK_BYTES, which the
	 * table keeps (see reserve).
	 */
	cudaError_t insert(const Key *keys, const Value *values, uint64_t n,
					   const failed<Key> &failures, cudaStream_t stream);
	/*
	 * The same, but keys that are there keep their values.  Of equal keys in one call
	 * that are not there, one is inserted.  It first looks which keys are there, for
	 * which it needs a slot for each key, kept as well; it is an error if there is no
	 * memory for 4096 slots.
	 */
	cudaError_t insert_if_absent(const Key *keys, const Value *values, uint64_t n,
								 const failed<Key> &failures, cudaStream_t stream);

	/* values[i] becomes the value of keys[i], or absent if the key is not there. */
	cudaError_t find(const Key *keys, Value *values, uint64_t n, Value absent, cudaStream_t stream);
	/* found[i] becomes 1 if keys[i] is there, else 0. */
	cudaError_t contains(const Key *keys, uint8_t *found, uint64_t n, cudaStream_t stream);
	/* Erases keys.  Those that are not there, or are given twice, do no harm. */
	cudaError_t erase(const Key *keys, uint64_t n, cudaStream_t stream);

	/*
	 * The number of entries.  Waits; and counts them again if the caller's own kernels
	 * have changed the table.
	 */
	cudaError_t size(uint64_t *n, cudaStream_t stream);

	/*
	 * Writes all entries, in no particular order and at most capacity of them, to arrays
	 * in device memory.  *n_found, in device memory too, becomes the number of entries.
	 */
	cudaError_t extract(Key *keys, Value *values, uint64_t capacity, unsigned long long *n_found,
						cudaStream_t stream);

	/*
	 * Moves all entries to a new table of at least n_slots slots.  If that is too small
	 * for them, *fits becomes false and the table stays as it was.  Waits.
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
	slot	   *absent = nullptr;	/* for insert_if_absent() */
	uint64_t	absent_slots = 0;
	uint64_t	at_most = 0;	/* no more entries, without those of the caller's kernels */
	int			device_sms = 0;
	uint64_t	device_l2_bytes = 0;
};

}								/* namespace rhh */

#include "table/rhh_table_kernels.cuh"

#endif							/* RHH_TABLE_CUH */
