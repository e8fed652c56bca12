/*
 * compact_iceberg.cuh
 *		Compact iceberg table: a set of keys with find-or-put and find.
 *
 * After Hegeman, Wöltgens, Wijs and Laarman, "Compact parallel hash tables on
 * the GPU" (Euro-Par 2024), who put two levels of iceberg hashing (Pandey et
 * al., "IcebergHT", SIGMOD 2023) on the GPU and let each slot hold a remainder
 * only.
 *
 *		level 1		buckets of BUCKET slots; a key's one bucket by permutation 0
 *		level 2		fewer buckets, for what finds its level-1 bucket full; of a
 *					key's two buckets, by permutations 1 and 2, the emptier one
 *
 *		level-1 slot	+---------- remainder ---------+ 1 |
 *		level-2 slot	+------- remainder -------+ w  | 1 |
 *
 * w says by which of the two permutations the key is in this bucket, for the
 * key cannot be told from bucket and remainder otherwise.  The two levels differ
 * in their numbers of buckets, so in what is remainder.
 *
 * One key a tile of BUCKET lanes, one slot a lane, no locks:
 *
 *		look into the level-1 bucket: the key is FOUND, or a CAS puts it into the
 *		first slot that is empty (if it fails look again), or it is full
 *		look into both level-2 buckets: the key is FOUND, or a CAS puts it into
 *		the bucket whose first empty slot has the smaller index, the first bucket
 *		if they are equal (if it fails look again), or both are full: FULL
 *
 * No key is stored twice, though the level-2 choice depends on what others do
 * meanwhile.  A slot changes once, from empty to its key for ever; so a lane that
 * reads it sees it either empty or with its key, nothing else.  Suppose that
 * tiles 1 and 2 both put a key, into different slots x and y (the CAS sees to
 * it that they differ).
 *
 *		Tile 2 read x as empty when it last looked, or it had FOUND the key; so
 *		for tile 2 the first empty slot of x's bucket is x or before x.  And the
 *		same for tile 1 and y.
 *
 *		Both in one bucket: each one's is the first that its tile saw empty, so
 *		x <= y <= x.
 *
 *		x in level 1, y in level 2: tile 2 saw an empty slot in level 1.
 *
 *		x in the first, y in the second level-2 bucket, with i1 and i2 the
 *		indexes of the first empty slots that tiles 1 and 2 saw (the number of
 *		slots if none): in the first bucket i2 <= i1 = x, in the second i1 <= i2
 *		= y.  Tile 1 chose the first: x <= its index in the second <= y.  Tile 2
 *		chose the second: y < its index in the first <= x.  A contradiction.
 *
 * Likewise a key is FULL for all tiles of a launch or for none.  It does not
 * matter how old the reads are: find_or_put asks for level-1 buckets ahead, and
 * what is out of date ends in a CAS that fails.  A key whose two level-2 buckets
 * are one is only ever put by permutation 1: the second read of the bucket is
 * not older than the first.
 *
 * find_or_put and find may run at the same time as each other; a find then sees
 * a key that is put meanwhile or not.  There is no erase: it would make slots
 * empty again.
 */
#ifndef COMPACT_ICEBERG_CUH
#define COMPACT_ICEBERG_CUH

#include "compact_set.cuh"

template <typename P, typename S, int BUCKET, int BUCKET2>
struct compact_iceberg_view
{
	P		   *primary;
	S		   *secondary;
	compact_split split;		/* of level 1 */
	compact_split split2;

	__host__ __device__ uint64_t n_primary() const
	{
		return split.n_buckets() * BUCKET;
	}

	__host__ __device__ uint64_t n_secondary() const
	{
		return split2.n_buckets() * BUCKET2;
	}

	__host__ __device__ uint64_t n_slots() const
	{
		return n_primary() + n_secondary();
	}

	uint64_t slot_bytes() const
	{
		return n_primary() * sizeof(P) + n_secondary() * sizeof(S);
	}

	cudaError_t allocate()
	{
		TABLE_TRY(cudaMalloc(&primary, n_primary() * sizeof(P)));
		return cudaMalloc(&secondary, n_secondary() * sizeof(S));
	}

	void release()
	{
		cudaFree(primary);
		cudaFree(secondary);
	}

	cudaError_t clear(cudaStream_t stream) const
	{
		TABLE_TRY(cudaMemsetAsync(primary, 0, n_primary() * sizeof(P), stream));
		return cudaMemsetAsync(secondary, 0, n_secondary() * sizeof(S), stream);
	}

	__device__ RHH_INLINE compact_home<P> home(uint64_t key) const
	{
		compact_home<P> h = {split.bucket(key, 0),
			(P) (split.remainder(key) << 1 | 1)};

		return h;
	}

	/* which: 0 or 1. */
	__device__ RHH_INLINE compact_home<S> home2(uint64_t key, uint32_t which) const
	{
		compact_home<S> h = {split2.bucket(key, 1 + which),
			(S) (split2.remainder(key) << 2 | which << 1 | 1)};

		return h;
	}

	__device__ RHH_INLINE P *at(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return primary + ((uint64_t) bucket * BUCKET + tile.rank);
	}

	__device__ RHH_INLINE S *at2(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return secondary + ((uint64_t) bucket * BUCKET2 + tile.rank);
	}

	/* The calling lane's slot; lanes beyond the bucket: something not empty. */
	__device__ RHH_INLINE S load2(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return tile.rank < BUCKET2 ? compact_load(at2(tile, bucket)) : (S) 2;
	}

	__device__ RHH_INLINE bool slot_key(uint64_t i, uint64_t *key) const
	{
		if (i < n_primary())
		{
			P			s = primary[i];

			*key = split.key((uint32_t) (i / BUCKET), (uint64_t) s >> 1, 0);
			return s != 0;
		}
		else
		{
			uint64_t	j = i - n_primary();
			S			s = secondary[j];

			*key = split2.key((uint32_t) (j / BUCKET2), (uint64_t) s >> 2,
							  1 + (s >> 1 & 1));
			return s != 0;
		}
	}
};

template <typename P, typename S, int BUCKET, int BUCKET2>
struct compact_iceberg_put : compact_iceberg_view<P, S, BUCKET, BUCKET2>
{
	typedef P	slot;
	typedef uint8_t outcome;
	static const int LANES = BUCKET;

	uint8_t    *results;		/* or NULL */

	__device__ RHH_INLINE bool asked(uint64_t) const
	{
		return true;
	}

	__device__ RHH_INLINE P load(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return compact_load(this->at(tile, bucket));
	}

	__device__ RHH_INLINE uint8_t run(const rhh_tile<BUCKET> &tile, int from, uint64_t key,
									  uint32_t bucket, P mine, P raw) const
	{
		for (;;)
		{
			rhh_lanes	empty = tile.ballot(raw == 0);
			bool		done = false;
			int			lane;

			if (tile.any(raw == mine))
				return COMPACT_FOUND;
			if (!empty)
				return run2(tile, tile.shfl(key, from));
			lane = rhh_first_lane(empty);
			if (tile.rank == (uint32_t) lane)
				done = compact_fill(this->at(tile, bucket), mine);
			if (tile.shfl((int) done, lane))
				return COMPACT_PUT;
			raw = load(tile, bucket);
		}
	}

	__device__ RHH_INLINE uint8_t run2(const rhh_tile<BUCKET> &tile, uint64_t key) const
	{
		compact_home<S> a = this->home2(key, 0);
		compact_home<S> b = this->home2(key, 1);

		for (;;)
		{
			/* In this order, for keys whose two buckets are one. */
			S			raw_a = this->load2(tile, a.bucket);
			S			raw_b = this->load2(tile, b.bucket);
			rhh_lanes	empty_a = tile.ballot(raw_a == 0);
			rhh_lanes	empty_b = tile.ballot(raw_b == 0);
			int			lane_a = empty_a ? rhh_first_lane(empty_a) : BUCKET2;
			int			lane_b = empty_b ? rhh_first_lane(empty_b) : BUCKET2;
			bool		second = lane_b < lane_a;
			int			lane = second ? lane_b : lane_a;
			bool		done = false;

			if (tile.any(raw_a == a.slot || raw_b == b.slot))
				return COMPACT_FOUND;
			if (lane == BUCKET2)
				return COMPACT_FULL;
			if (tile.rank == (uint32_t) lane)
				done = compact_fill(this->at2(tile, second ? b.bucket : a.bucket),
									second ? b.slot : a.slot);
			if (tile.shfl((int) done, lane))
				return COMPACT_PUT;
		}
	}

	__device__ RHH_INLINE void done(uint64_t i, uint64_t, bool fits, uint8_t result) const
	{
		if (results)
			results[i] = fits ? result : (uint8_t) COMPACT_FULL;
	}
};

/* Writes yes or no for each key. */
template <typename P, typename S, int BUCKET, int BUCKET2, typename Out>
struct compact_iceberg_find : compact_iceberg_view<P, S, BUCKET, BUCKET2>
{
	typedef P	slot;
	typedef bool outcome;
	static const int LANES = BUCKET;

	Out		   *out;
	Out			yes,
				no;

	__device__ RHH_INLINE bool asked(uint64_t) const
	{
		return true;
	}

	__device__ RHH_INLINE P load(const rhh_tile<BUCKET> &tile, uint32_t bucket) const
	{
		return compact_load(this->at(tile, bucket));
	}

	/* Nothing went on to level 2 while there was room in level 1. */
	__device__ RHH_INLINE bool run(const rhh_tile<BUCKET> &tile, int from, uint64_t key,
								   uint32_t, P mine, P raw) const
	{
		if (tile.any(raw == mine))
			return true;
		if (tile.any(raw == 0))
			return false;
		key = tile.shfl(key, from);

		compact_home<S> a = this->home2(key, 0);
		compact_home<S> b = this->home2(key, 1);
		S			raw_a = this->load2(tile, a.bucket);
		S			raw_b = this->load2(tile, b.bucket);

		return tile.any(raw_a == a.slot || raw_b == b.slot);
	}

	__device__ RHH_INLINE void done(uint64_t i, uint64_t, bool fits, bool found) const
	{
		out[i] = fits && found ? yes : no;
	}
};

/*
 * Key: uint32_t or uint64_t, what arrays of keys consist of.  P and S: slots of
 * level 1 (16, 32 or 64 bits) and level 2 (32 or 64).  BUCKET and BUCKET2: slots
 * of a bucket.
 */
template <typename Key, typename P, typename S, int BUCKET, int BUCKET2 = BUCKET>
class compact_iceberg
	: public compact_set<compact_iceberg<Key, P, S, BUCKET, BUCKET2>,
						 compact_iceberg_view<P, S, BUCKET, BUCKET2>, Key>
{
	static_assert(sizeof(P) == 2 || sizeof(P) == 4 || sizeof(P) == 8,
				  "a level-1 slot has 16, 32 or 64 bits");
	static_assert(sizeof(S) == 4 || sizeof(S) == 8, "a level-2 slot has 32 or 64 bits");
	static_assert(BUCKET == 8 || BUCKET == 16 || BUCKET == 32,
				  "a bucket has 8, 16 or 32 slots");
	static_assert(BUCKET2 >= 4 && BUCKET2 <= BUCKET && (BUCKET2 & (BUCKET2 - 1)) == 0,
				  "a level-2 bucket has 4 to BUCKET slots");

	typedef compact_iceberg_view<P, S, BUCKET, BUCKET2> view_t;
	typedef compact_set<compact_iceberg, view_t, Key> base;
	using base::view;
	using base::why;

public:
	static const char *name()
	{
		static char text[64];

		snprintf(text, sizeof text, "compact_iceberg_%d_%d_%d_%d", (int) (8 * sizeof(P)),
				 (int) (8 * sizeof(S)), BUCKET, BUCKET2);
		return text;
	}

	/*
	 * At least n_slots slots, of both levels.  Level 2 has a quarter as many as
	 * level 1, an eighth with buckets of 32, whose numbers of keys vary less.
	 * Random keys that are FULL when there are so many a slot, by simulation with
	 * 10 million slots:
	 *
	 *		BUCKET, BUCKET2		0.85		0.90		0.95
	 *		8, 8				none		0.05 %		1.4 %
	 *		8, 4				0.05 %		0.5 %		2.2 %
	 *		16, 16				none		none		0.001 %
	 *		16, 8				none		0.00001 %	0.12 %
	 *		32, 32				none		none		none
	 *		32, 16				none		none		0.0006 %
	 */
	cudaError_t create(uint64_t n_slots, int key_bits, cudaStream_t stream)
	{
		const int	part = BUCKET == 32 ? 8 : 4;
		int			bits = compact_bits_for((n_slots + BUCKET - 1) / BUCKET);

		/* Half the buckets, where level 2 makes up for that. */
		if (bits > 0 && ((uint64_t) BUCKET << (bits - 1)) / part * (part + 1) >= n_slots)
			bits--;
		return create_levels(bits, compact_bits_for(((uint64_t) BUCKET << bits) / part
													/ BUCKET2),
							 key_bits, stream);
	}

	/* 2^primary_bits and 2^secondary_bits buckets. */
	cudaError_t create_levels(int primary_bits, int secondary_bits, int key_bits,
							  cudaStream_t stream)
	{
		if (!base::begin_create(key_bits))
			return cudaErrorInvalidValue;
		if (primary_bits < 0 || primary_bits > COMPACT_MAX_ADDRESS_BITS ||
			secondary_bits < 0 || secondary_bits > COMPACT_MAX_ADDRESS_BITS ||
			primary_bits > key_bits || secondary_bits > key_bits)
			snprintf(why, sizeof why, "2^%d and 2^%d buckets are asked for: at most 2^%d "
					 "and no more than keys are possible",
					 primary_bits, secondary_bits, COMPACT_MAX_ADDRESS_BITS);
		else if (key_bits - primary_bits + 1 > 8 * (int) sizeof(P))
			snprintf(why, sizeof why, "level 1: a remainder of %d bits and 1 more do not fit "
					 "in a slot of %d bits", key_bits - primary_bits, (int) (8 * sizeof(P)));
		else if (key_bits - secondary_bits + 2 > 8 * (int) sizeof(S))
			snprintf(why, sizeof why, "level 2: a remainder of %d bits and 2 more do not fit "
					 "in a slot of %d bits", key_bits - secondary_bits, (int) (8 * sizeof(S)));
		if (why[0])
			return cudaErrorInvalidValue;

		view.split = {(uint32_t) key_bits, (uint32_t) primary_bits};
		view.split2 = {(uint32_t) key_bits, (uint32_t) secondary_bits};
		return base::end_create(stream);
	}

	/*
	 * results[i] (unless results is NULL) becomes FOUND, PUT or FULL; of equal
	 * keys, in one call or in several, at most one is PUT.
	 */
	cudaError_t find_or_put(const Key *keys, uint8_t *results, uint64_t n,
							int block_threads, cudaStream_t stream)
	{
		compact_iceberg_put<P, S, BUCKET, BUCKET2> op;

		(view_t &) op = view;
		op.results = results;
		return compact_launch(op, keys, n, block_threads, stream);
	}

	cudaError_t insert(const Key *keys, uint64_t n, int block_threads, cudaStream_t stream)
	{
		return find_or_put(keys, NULL, n, block_threads, stream);
	}

	template <typename Out>
	cudaError_t find_as(const Key *keys, Out *out, Out yes, Out no, uint64_t n,
						int block_threads, cudaStream_t stream)
	{
		compact_iceberg_find<P, S, BUCKET, BUCKET2, Out> op;

		(view_t &) op = view;
		op.out = out;
		op.yes = yes;
		op.no = no;
		return compact_launch(op, keys, n, block_threads, stream);
	}
};

#endif							/* COMPACT_ICEBERG_CUH */
