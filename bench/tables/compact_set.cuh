/*
 * compact_set.cuh
 *		What the compact tables share: results, slots, the loop over a batch of
 *		keys, iteration, what the host does, and the adaptor to table.cuh.
 *
 * They are sets of keys of key_bits bits, any of them: none is reserved.  An
 * empty slot is 0; an occupied one holds a key's remainder (compact_keys.cuh)
 * above a tag that is not 0.  No slot ever becomes empty again.
 */
#ifndef COMPACT_SET_CUH
#define COMPACT_SET_CUH

#include <stdio.h>

#include "compact_keys.cuh"

/* What became of a key.  Results are arrays of uint8_t. */
enum compact_result
{
	COMPACT_ABSENT,				/* find: not there */
	COMPACT_FOUND,				/* it was there */
	COMPACT_PUT,				/* it was not and is now */
	COMPACT_FULL				/* no place, or more than key_bits bits */
};

/*
 * Keys of a tile whose home buckets are asked for before the first is looked
 * at.  What was read so early may be old; see the tables why that is harmless.
 * With 1, 2, 4 and 8 an H100 puts 8.3, 9.5, 9.8 and 8.1 G keys/s into compact iceberg's
 * buckets of 32 slots, to a load of 0.5, and finds 15.0, 18.3, 21.0 and 19.8.  (Buckets
 * of 8 slots are better off with 1 and 2 than with 4 where keys are put.)
 */
#ifndef COMPACT_IN_FLIGHT
#define COMPACT_IN_FLIGHT 4
#endif

/* ---------- slots ---------- */

template <typename Slot>
RHH_DEV Slot
compact_load(const Slot *p)
{
	if constexpr (sizeof(Slot) == 2)
		return rhh_load_relaxed16(p);
	else if constexpr (sizeof(Slot) == 4)
		return rhh_load_relaxed32(p);
	else
		return rhh_load_relaxed64(p);
}

/*
 * Puts into a slot that was empty; true if it still was.  One lane.
 *
 * The 16-bit CAS is PTX's own (sm_70 and later), not one of the 32-bit word
 * around it: a neighbour's change does not make it fail, and no slot is accessed
 * in two sizes.
 */
template <typename Slot>
RHH_DEV bool
compact_fill(Slot *p, Slot desired)
{
	if constexpr (sizeof(Slot) == 2)
		return atomicCAS((unsigned short *) p, (unsigned short) 0,
						 (unsigned short) desired) == 0;
	else if constexpr (sizeof(Slot) == 4)
		return atomicCAS((unsigned *) p, 0u, (unsigned) desired) == 0;
	else
		return rhh_cas64((uint64_t *) p, 0, desired);
}

/* Returns what it replaces.  One lane. */
template <typename Slot>
RHH_DEV Slot
compact_exchange(Slot *p, Slot desired)
{
	if constexpr (sizeof(Slot) == 4)
		return atomicExch((unsigned *) p, (unsigned) desired);
	else
		return atomicExch((unsigned long long *) p, (unsigned long long) desired);
}

/* ---------- a batch of keys ---------- */

/* Where a key is to be, and as what. */
template <typename Slot>
struct compact_home
{
	uint32_t	bucket;
	Slot		slot;
};

/*
 * One key a lane, taken up one after another by the whole tile: keys and results
 * are read and written in whole lines, and a key is permuted once, not by every
 * lane.  An operation has
 *
 *		LANES				of a tile, as many as a home bucket has slots
 *		slot, outcome		types: of a home bucket's slot, of what is returned
 *		split				a compact_split
 *		asked(i)			whether to do the i-th key at all
 *		home(key)			a compact_home
 *		load(tile, bucket)	the calling lane's slot of a home bucket
 *		run(tile, from, key, bucket, slot, raw)
 *							called by the tile for the key in lane from's
 *							variable key; raw is what load() returned some time
 *							ago.  The same outcome to all lanes.
 *		done(i, key, fits, outcome)
 *							for the keys asked; by one lane.  Keys that do not
 *							fit in key_bits were not run.
 */
template <typename Op, typename Key>
RHH_DEV void
compact_batch(const Op &op, const Key *keys, uint64_t n)
{
	const int	N = Op::LANES;
	rhh_tile<N> tile;

	for (uint64_t base = (uint64_t) RHH_TILE_ID(N) * N; base < n;
		 base += (uint64_t) RHH_TILES(N) * N)
	{
		uint64_t	i = base + tile.rank;
		uint64_t	key = i < n ? keys[i] : 0;
		bool		asked = i < n && op.asked(i);
		bool		fits = op.split.has_key(key);
		rhh_lanes	todo = tile.ballot(asked && fits);
		compact_home<typename Op::slot> home = op.home(key);
		typename Op::outcome mine = {};

		for (int first = 0; first < N; first += COMPACT_IN_FLIGHT)
		{
			uint32_t	bucket[COMPACT_IN_FLIGHT];
			typename Op::slot raw[COMPACT_IN_FLIGHT];

			RHH_UNROLL
			for (int j = 0; j < COMPACT_IN_FLIGHT; j++)
			{
				bucket[j] = tile.shfl(home.bucket, first + j);
				raw[j] = todo >> (first + j) & 1 ? op.load(tile, bucket[j]) : 0;
			}
			RHH_UNROLL
			for (int j = 0; j < COMPACT_IN_FLIGHT; j++)
			{
				typename Op::slot slot = tile.shfl(home.slot, first + j);

				if (todo >> (first + j) & 1)
				{
					typename Op::outcome one = op.run(tile, first + j, key,
													  bucket[j], slot, raw[j]);

					if (tile.rank == (uint32_t) (first + j))
						mine = one;
				}
			}
		}
		if (asked)
			op.done(i, key, fits, mine);
	}
}

template <typename Op, typename Key>
static __global__ void __launch_bounds__(1024)
compact_kernel(Op op, const Key *keys, uint64_t n)
{
	compact_batch(op, keys, n);
}

/* block_threads: a multiple of the warp size. */
template <typename Op, typename Key>
static inline cudaError_t
compact_launch(const Op &op, const Key *keys, uint64_t n, int block_threads,
			   cudaStream_t stream)
{
	if (block_threads <= 0 || block_threads % RHH_WARP_SIZE != 0)
		return cudaErrorInvalidValue;
	if (n == 0)
		return cudaSuccess;
	RHH_LAUNCH((compact_kernel<Op, Key>), table_blocks(n, block_threads), block_threads,
			   0, stream, op, keys, n);
	return cudaGetLastError();
}

/* ---------- all keys of a table ---------- */

/*
 * Counts the keys and, unless out is NULL, stores them there, in no order.  A
 * view has n_slots() and slot_key(i, &key), false for an empty slot.
 */
template <typename View, typename Key>
static __global__ void
compact_extract_kernel(View view, Key *out, unsigned long long *n_keys)
{
	rhh_tile<RHH_WARP_SIZE> warp;
	uint64_t	n = view.n_slots();
	unsigned long long total = 0;

	for (uint64_t base = (uint64_t) RHH_TILE_ID(RHH_WARP_SIZE) * RHH_WARP_SIZE; base < n;
		 base += (uint64_t) RHH_TILES(RHH_WARP_SIZE) * RHH_WARP_SIZE)
	{
		uint64_t	i = base + warp.rank;
		uint64_t	key = 0;
		bool		there = i < n && view.slot_key(i, &key);
		rhh_lanes	set = warp.ballot(there);
		unsigned long long at = 0;

		if (out == NULL)
		{
			total += rhh_count_lanes(set);
			continue;
		}
		if (warp.rank == 0 && set != 0)
			at = atomicAdd(n_keys, (unsigned long long) rhh_count_lanes(set));
		at = warp.shfl(at, 0);
		if (there)
			out[at + rhh_count_lanes(set & (((rhh_lanes) 1 << warp.rank) - 1))] = (Key) key;
	}
	if (warp.rank == 0 && total != 0)
		atomicAdd(n_keys, total);
}

/* Waits for the stream.  counter: device memory. */
template <typename View, typename Key>
static inline cudaError_t
compact_extract(const View &view, Key *out, unsigned long long *counter,
				uint64_t *n_keys, cudaStream_t stream)
{
	unsigned long long n = 0;
	unsigned	blocks = table_blocks(view.n_slots(), 256);

	TABLE_TRY(cudaMemsetAsync(counter, 0, sizeof *counter, stream));
	/* Few, for each warp ends with an atomic on the one counter. */
	RHH_LAUNCH((compact_extract_kernel<View, Key>), blocks < 4096 ? blocks : 4096, 256,
			   0, stream, view, out, counter);
	TABLE_TRY(cudaGetLastError());
	TABLE_TRY(cudaMemcpyAsync(&n, counter, sizeof n, cudaMemcpyDeviceToHost, stream));
	TABLE_TRY(cudaStreamSynchronize(stream));
	*n_keys = n;
	return cudaSuccess;
}

/* ---------- the host's side ---------- */

/*
 * What both tables have.  Set is the class that derives from this, with find_as();
 * View what its kernels get, which owns the slots by
 *
 *		allocate(), release()	as its numbers say
 *		clear(stream)
 *		slot_bytes()
 */
template <class Set, typename View, typename Key>
class compact_set
{
protected:
	View		view = {};
	unsigned long long *counter = NULL; /* device; NULL: not created */
	char		why[160] = "";

	/* Nothing is left of what was; true if a set of such keys can be. */
	bool begin_create(int key_bits)
	{
		destroy();
		why[0] = 0;
		if (key_bits < 1 || key_bits > 8 * (int) sizeof(Key))
			snprintf(why, sizeof why, "keys of %d bits are asked for: 1 to %d are possible",
					 key_bits, (int) (8 * sizeof(Key)));
		return why[0] == 0;
	}

	/* When view has its numbers. */
	cudaError_t end_create(cudaStream_t stream)
	{
		cudaError_t e = view.allocate();

		if (e == cudaSuccess)
			e = cudaMalloc(&counter, sizeof *counter);
		if (e == cudaSuccess)
			e = clear(stream);
		if (e != cudaSuccess)
			destroy();
		return e;
	}

public:
	typedef Key key_type;

	/* Why the last create refused, or "". */
	const char *error() const
	{
		return why;
	}

	void destroy()
	{
		view.release();
		cudaFree(counter);
		view = {};
		counter = NULL;
	}

	cudaError_t clear(cudaStream_t stream)
	{
		return view.clear(stream);
	}

	/* results[i] becomes FOUND or ABSENT. */
	cudaError_t find(const Key *keys, uint8_t *results, uint64_t n, int block_threads,
					 cudaStream_t stream)
	{
		return ((Set *) this)->find_as(keys, results, (uint8_t) COMPACT_FOUND,
									   (uint8_t) COMPACT_ABSENT, n, block_threads, stream);
	}

	cudaError_t size(uint64_t *n_keys, cudaStream_t stream)
	{
		return compact_extract(view, (Key *) NULL, counter, n_keys, stream);
	}

	/* All keys, in no order, into room for size() of them; waits for the stream. */
	cudaError_t extract(Key *keys, uint64_t *n_keys, cudaStream_t stream)
	{
		return compact_extract(view, keys, counter, n_keys, stream);
	}

	uint64_t capacity() const
	{
		return counter ? view.n_slots() : 0;
	}

	uint64_t memory_bytes() const
	{
		return counter ? view.slot_bytes() + sizeof *counter : 0;
	}

	/* For tests: which keys share buckets. */
	const View &layout() const
	{
		return view;
	}
};

/* ---------- the adaptor ---------- */

/*
 * A compact set with table.cuh's interface: values are ignored, find gives 1.
 * Apart from that interface: capacity(), for a power of two of buckets rarely
 * gives exactly the slots that were asked for, and no erase.  set.error() says
 * why create() refused.
 */
template <typename Set, typename Key, typename Value, int KEY_BITS>
struct compact_table
{
	static_assert(KEY_BITS >= 1 && KEY_BITS <= 8 * (int) sizeof(Key),
				  "a key has 1 to all of its type's bits");
	Set			set;

	static const char *name()
	{
		return Set::name();
	}

	cudaError_t create(uint64_t n_slots, cudaStream_t stream)
	{
		return set.create(n_slots, KEY_BITS, stream);
	}

	void destroy()
	{
		set.destroy();
	}

	cudaError_t clear(cudaStream_t stream)
	{
		return set.clear(stream);
	}

	cudaError_t insert(const Key *keys, const Value *, uint64_t n, int block_threads,
					   cudaStream_t stream)
	{
		return set.insert(keys, n, block_threads, stream);
	}

	cudaError_t find(const Key *keys, Value *values, uint64_t n, int block_threads,
					 cudaStream_t stream)
	{
		return set.find_as(keys, values, (Value) 1, table_absent<Value>(), n,
						   block_threads, stream);
	}

	cudaError_t size(uint64_t *n_entries, cudaStream_t stream)
	{
		return set.size(n_entries, stream);
	}

	uint64_t capacity() const
	{
		return set.capacity();
	}

	uint64_t memory_bytes() const
	{
		return set.memory_bytes();
	}
};

/* The smallest number of bits for so many things. */
static inline int
compact_bits_for(uint64_t n)
{
	int			bits = 0;

	while (bits < 63 && UINT64_C(1) << bits < n)
		bits++;
	return bits;
}

#endif							/* COMPACT_SET_CUH */
