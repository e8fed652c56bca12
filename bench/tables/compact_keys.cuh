/*
 * compact_keys.cuh
 *		Keys as (bucket, remainder): permutation and quotienting.
 *
 * Quotienting (Cleary, "Compact hash tables using bidirectional linear
 * probing", 1984): permute the key, let some bits of the result be the bucket
 * and store only the others.  The bucket that a slot is in and what it holds
 * then are the key.
 *
 * The permutation is a Feistel network of one round, as Arbitman, Naor and
 * Segev use in "Backyard cuckoo hashing" (2010) and Hegeman et al. on the GPU
 * ("Compact parallel hash tables on the GPU", Euro-Par 2024):
 *
 *		key			+------ remainder ------+--- low ---+
 *					key_bits	 address_bits			0
 *
 *		bucket = low ^ hash(remainder)
 *
 * One round suffices here: keys of one remainder never share a bucket, and for
 * others the hash decides.  It is its own inverse, given the remainder.  Another
 * hash makes another permutation, whose remainder is the same bits.
 *
 * The number of buckets is a power of two: any other would need a division by
 * it, and another multiplication to get back.
 */
#ifndef COMPACT_KEYS_CUH
#define COMPACT_KEYS_CUH

#include "table.cuh"

#define COMPACT_MAX_ADDRESS_BITS 32
#define COMPACT_PERMUTATIONS 3

/* How keys are split.  The same in all permutations. */
struct compact_split
{
	uint32_t	key_bits;		/* 1..64 */
	uint32_t	address_bits;	/* at most key_bits and the limit above */

	__host__ __device__ uint32_t remainder_bits() const
	{
		return key_bits - address_bits;
	}

	__host__ __device__ uint64_t n_buckets() const
	{
		return UINT64_C(1) << address_bits;
	}

	__host__ __device__ bool has_key(uint64_t key) const
	{
		return key >> 1 >> (key_bits - 1) == 0;
	}

	/* The same for all permutations. */
	__host__ __device__ uint64_t remainder(uint64_t key) const
	{
		return key >> address_bits;
	}

	__host__ __device__ uint32_t bucket(uint64_t key, uint32_t permutation) const
	{
		return (uint32_t) (key & (n_buckets() - 1)) ^ hash(remainder(key), permutation);
	}

	__host__ __device__ uint64_t key(uint32_t bucket, uint64_t remainder,
									 uint32_t permutation) const
	{
		return remainder << address_bits | (bucket ^ hash(remainder, permutation));
	}

	/*
	 * Twice, fold the high half into the low and multiply; take the highest bits.
	 * (With one fold, keys that differ in their highest bits only were spread
	 * badly.)  Each permutation has its own first multiplier: with one for all,
	 * two remainders would differ by the same amount in each.
	 */
	__host__ __device__ uint32_t hash(uint64_t remainder, uint32_t permutation) const
	{
		uint64_t	x = remainder + 1;

		x ^= x >> 32;
		x *= permutation == 0 ? UINT64_C(0x9E3779B97F4A7C15)
			: permutation == 1 ? UINT64_C(0xD1342543DE82EF95)
			: UINT64_C(0xA0761D6478BD642F);
		x ^= x >> 32;
		x *= UINT64_C(0xE7037ED1A0B428DB);
		return (uint32_t) (x >> 1 >> (63 - address_bits));
	}
};

#endif							/* COMPACT_KEYS_CUH */
