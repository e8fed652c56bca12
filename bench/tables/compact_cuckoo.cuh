/*
 * compact_cuckoo.cuh
 *		Compact bucketed cuckoo table: a set of keys with put and find.
 *
 * Bucketed cuckoo hashing with three hash functions, one tile a key (Awad et al.,
 * "Better GPU hash tables", 2021), whose slots hold a remainder only (Hegeman,
 * Wöltgens, Wijs and Laarman, "Compact parallel hash tables on the GPU", Euro-Par
 * 2024).  The hash functions are three permutations of the key:
 *
 *		slot	+------------ remainder ------------+ tag |
 *
 * where the two bits of the tag are 0 for an empty slot, else by which
 * permutation the key is in this bucket, plus 1.  With it an evicted slot gives
 * back its key, which goes on by the next permutation.
 *
 * put: a key goes into the first empty slot of its bucket by permutation 0, or
 * changes places with a random key there, which goes into its next bucket in the
 * same way, and so on, at most max_chain times.  FULL: the key then in hand, which
 * may be another than the one that was to be put, is not in the table; it is
 * returned in left[i].  Everything else is in the table, the i-th key too, unless
 * it is in some left[].
 *
 * The keys of a call to put must differ and not be in the table; an equal key is
 * not noticed and stored again.  (sort_find_or_put.cuh sees to that.)  It cannot
 * be otherwise: while a tile carries an evicted key, the key is nowhere in
 * memory, and others would not find it.  For the same reason find may not run
 * at the same time as put.  Calls on one stream do not.
 *
 * A slot once occupied stays so.  Hence a bucket that was full is full: a key in
 * its bucket by permutation p has only full buckets by those before p, and find
 * stops at the first bucket that has an empty slot.  And hence put may look at
 * what was read long ago: if a slot was empty then, the CAS sees; an eviction
 * takes what the exchange returns, and it is a key, for the slot was one.
 */
#ifndef COMPACT_CUCKOO_CUH
#define COMPACT_CUCKOO_CUH

#include "compact_set.cuh"

template <typename S, int BUCKET>
struct compact_cuckoo_view
{
	S		   *slots;
	compact_split split;
	uint32_t	max_chain;

	__host__ __device__ uint64_t n_slots() const
	{
		return split.n_buckets() * BUCKET;
	}

	uint64_t slot_bytes() const
	{
		return n_slots() * sizeof(S);
	}

	cudaError_t allocate()
	{
		return cudaMalloc(&slots, slot_bytes());
	}

	void release()
	{
		cudaFree(slots);
	}

	cudaError_t clear(cudaStream_t stream) const
	{
		return cudaMemsetAsync(slots, 0, slot_bytes(), stream);
	}

	__device__ RHH_INLINE compact_home<S> home(uint64_t key, uint32_t permutation = 0) const
	{
		compact_home<S> h = {split.bucket(key, permutation),
			(S) (split.remainder(key) << 2 | (permutation + 1))};

		return h;
	}

	static __device__ RHH_INLINE uint32_t permutation_of(S slot)
	{
		return (uint32_t) (slot & 3) - 1;
	}

	__device__ RHH_INLINE uint64_t key_of(uint32_t bucket, S slot) const
	{
		return split.key(bucket, (uint64_t) slot >> 2, permutation_of(slot));
	}

	__device__ RHH_INLINE S *at(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return slots + ((uint64_t) bucket * BUCKET + tile.rank);
	}

	__device__ RHH_INLINE S load(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return compact_load(at(tile, bucket));
	}

	__device__ RHH_INLINE bool slot_key(uint64_t i, uint64_t *key) const
	{
		S			s = slots[i];

		if (s != 0)
			*key = key_of((uint32_t) (i / BUCKET), s);
		return s != 0;
	}
};

struct compact_cuckoo_outcome
{
	uint64_t	left;
	uint8_t		result;
};

/* MARKED: only keys whose results[i] is ABSENT; the others' are left alone. */
template <typename S, int BUCKET, typename Key, bool MARKED>
struct compact_cuckoo_put : compact_cuckoo_view<S, BUCKET>
{
	typedef S	slot;
	typedef compact_cuckoo_outcome outcome;
	static const int LANES = BUCKET;

	uint8_t    *results;		/* or NULL unless MARKED */
	Key		   *left;			/* or NULL */

	__device__ RHH_INLINE bool asked(uint64_t i) const
	{
		return !MARKED || results[i] == COMPACT_ABSENT;
	}

	__device__ RHH_INLINE outcome run(const rhh_tile<BUCKET> &tile, int, uint64_t,
									  uint32_t bucket, S mine, S raw) const
	{
		uint32_t	random = (uint32_t) mine ^ bucket;
		uint32_t	chain = 0;

		for (;;)
		{
			rhh_lanes	empty = tile.ballot(raw == 0);
			bool		done = false;
			int			lane;
			S			evicted = 0;

			if (empty)
			{
				lane = rhh_first_lane(empty);
				if (tile.rank == (uint32_t) lane)
					done = compact_fill(this->at(tile, bucket), mine);
				if (tile.shfl((int) done, lane))
				{
					outcome		put = {0, COMPACT_PUT};

					return put;
				}
				raw = this->load(tile, bucket);
				continue;
			}
			if (chain++ == this->max_chain)
			{
				outcome		full = {this->key_of(bucket, mine), COMPACT_FULL};

				return full;
			}

			/* Its low bits repeat soon; the lane comes from the others. */
			random = random * 1664525u + 1013904223u;
			lane = (int) (random >> 24) & (BUCKET - 1);
			if (tile.rank == (uint32_t) lane)
				evicted = compact_exchange(this->at(tile, bucket), mine);
			evicted = tile.shfl(evicted, lane);

			compact_home<S> next = this->home(this->key_of(bucket, evicted),
											  (this->permutation_of(evicted) + 1)
											  % COMPACT_PERMUTATIONS);

			bucket = next.bucket;
			mine = next.slot;
			raw = this->load(tile, bucket);
		}
	}

	__device__ RHH_INLINE void done(uint64_t i, uint64_t key, bool fits,
									const outcome &o) const
	{
		if (results)
			results[i] = fits ? o.result : (uint8_t) COMPACT_FULL;
		if (left && !(fits && o.result == COMPACT_PUT))
			left[i] = (Key) (fits ? o.left : key);
	}
};

/* MARKED: only keys whose out[i] is no; the others' are left alone. */
template <typename S, int BUCKET, typename Out, bool MARKED>
struct compact_cuckoo_find : compact_cuckoo_view<S, BUCKET>
{
	typedef S	slot;
	typedef bool outcome;
	static const int LANES = BUCKET;

	Out		   *out;
	Out			yes,
				no;

	__device__ RHH_INLINE bool asked(uint64_t i) const
	{
		return !MARKED || out[i] == no;
	}

	__device__ RHH_INLINE bool run(const rhh_tile<BUCKET> &tile, int from, uint64_t key,
								   uint32_t, S mine, S raw) const
	{
		for (uint32_t permutation = 1;; permutation++)
		{
			if (tile.any(raw == mine))
				return true;
			if (permutation == COMPACT_PERMUTATIONS || tile.any(raw == 0))
				return false;

			compact_home<S> next = this->home(tile.shfl(key, from), permutation);

			mine = next.slot;
			raw = this->load(tile, next.bucket);
		}
	}

	__device__ RHH_INLINE void done(uint64_t i, uint64_t, bool fits, bool found) const
	{
		out[i] = fits && found ? yes : no;
	}
};

/*
 * Key: uint32_t or uint64_t, what arrays of keys consist of.  S: slots of 32 or
 * 64 bits.  BUCKET: slots of a bucket.
 */
template <typename Key, typename S, int BUCKET>
class compact_cuckoo
	: public compact_set<compact_cuckoo<Key, S, BUCKET>, compact_cuckoo_view<S, BUCKET>, Key>
{
	static_assert(sizeof(S) == 4 || sizeof(S) == 8, "a slot has 32 or 64 bits");
	static_assert(BUCKET == 8 || BUCKET == 16 || BUCKET == 32,
				  "a bucket has 8, 16 or 32 slots");

	typedef compact_cuckoo_view<S, BUCKET> view_t;
	typedef compact_set<compact_cuckoo, view_t, Key> base;
	using base::view;
	using base::why;

public:
	static const char *name()
	{
		static char text[64];

		snprintf(text, sizeof text, "compact_cuckoo_%d_%d", (int) (8 * sizeof(S)), BUCKET);
		return text;
	}

	/* At least n_slots slots. */
	cudaError_t create(uint64_t n_slots, int key_bits, cudaStream_t stream)
	{
		return create_buckets(compact_bits_for((n_slots + BUCKET - 1) / BUCKET), key_bits,
							  stream);
	}

	/* 2^address_bits buckets. */
	cudaError_t create_buckets(int address_bits, int key_bits, cudaStream_t stream)
	{
		if (!base::begin_create(key_bits))
			return cudaErrorInvalidValue;
		if (address_bits < 0 || address_bits > COMPACT_MAX_ADDRESS_BITS || address_bits > key_bits)
			snprintf(why, sizeof why, "2^%d buckets are asked for: at most 2^%d and no more "
					 "than keys are possible", address_bits, COMPACT_MAX_ADDRESS_BITS);
		else if (key_bits - address_bits + 2 > 8 * (int) sizeof(S))
			snprintf(why, sizeof why, "a remainder of %d bits and 2 more do not fit in a slot "
					 "of %d bits", key_bits - address_bits, (int) (8 * sizeof(S)));
		if (why[0])
			return cudaErrorInvalidValue;

		view.split = {(uint32_t) key_bits, (uint32_t) address_bits};

		/*
		 * A chain's length grows with the logarithm of the number of slots, until
		 * the table is all but full.
		 */
		view.max_chain = 64 + 8 * (uint32_t) address_bits;
		return base::end_create(stream);
	}

	/*
	 * results[i] (unless NULL) becomes PUT or FULL.  Where it is FULL left[i]
	 * (unless NULL: then the key is lost) becomes the key left in hand.  See above
	 * for what the keys must be.
	 */
	cudaError_t put(const Key *keys, uint8_t *results, uint64_t n, int block_threads,
					cudaStream_t stream, Key *left = NULL)
	{
		return put_some<false>(keys, results, n, block_threads, stream, left);
	}

	/* The same for the keys whose results[i] is ABSENT; the others need not differ. */
	cudaError_t put_marked(const Key *keys, uint8_t *results, uint64_t n,
						   int block_threads, cudaStream_t stream, Key *left = NULL)
	{
		return put_some<true>(keys, results, n, block_threads, stream, left);
	}

	cudaError_t insert(const Key *keys, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return put(keys, NULL, n, block_threads, stream);
	}

	/* find() for the keys whose results[i] is ABSENT. */
	cudaError_t find_marked(const Key *keys, uint8_t *results, uint64_t n,
							int block_threads, cudaStream_t stream)
	{
		return find_some<true>(keys, results, (uint8_t) COMPACT_FOUND, (uint8_t) COMPACT_ABSENT,
							   n, block_threads, stream);
	}

	template <typename Out>
	cudaError_t find_as(const Key *keys, Out *out, Out yes, Out no, uint64_t n,
						int block_threads, cudaStream_t stream)
	{
		return find_some<false>(keys, out, yes, no, n, block_threads, stream);
	}

private:
	template <bool MARKED>
	cudaError_t put_some(const Key *keys, uint8_t *results, uint64_t n, int block_threads,
						 cudaStream_t stream, Key *left)
	{
		compact_cuckoo_put<S, BUCKET, Key, MARKED> op;

		(view_t &) op = view;
		op.results = results;
		op.left = left;
		return compact_launch(op, keys, n, block_threads, stream);
	}

	template <bool MARKED, typename Out>
	cudaError_t find_some(const Key *keys, Out *out, Out yes, Out no, uint64_t n,
						  int block_threads, cudaStream_t stream)
	{
		compact_cuckoo_find<S, BUCKET, Out, MARKED> op;

		(view_t &) op = view;
		op.out = out;
		op.yes = yes;
		op.no = no;
		return compact_launch(op, keys, n, block_threads, stream);
	}
};

#endif							/* COMPACT_CUCKOO_CUH */
