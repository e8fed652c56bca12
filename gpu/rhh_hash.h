/*
 * rhh_hash.h
 *		Hash functions, which give the same bits on the host and on a device.
 */
#ifndef RHH_HASH_H
#define RHH_HASH_H

#include <stdint.h>

#ifdef __CUDACC__
#define RHH_HD __host__ __device__ static inline
#else
#define RHH_HD static inline
#endif

/* A bijection of 32 bits (Wellons, "Prospecting for hash functions", lowbias32). */
RHH_HD uint32_t
rhh_mix32(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352dU;
	x ^= x >> 15;
	x *= 0x846ca68bU;
	x ^= x >> 16;
	return x;
}

/* A bijection of 64 bits (Stafford's variant 13, the finalizer of SplitMix64). */
RHH_HD uint64_t
rhh_mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return x;
}

/*
 * The same two functions with parameters of their own for each map, so that a person who
 * chooses the keys cannot choose some that collide.  They stay bijections.
 *
 * Keys of at most 64 bits: the hashes of any two keys agree in their highest b bits with
 * a probability of no more than 2^(1-b).  The last multiplier alone ensures this.  It
 * multiplies two different numbers that do not depend on it.  Let 2^t be the power of two
 * in their difference.  The difference times a random odd number is any odd multiple of
 * 2^t with equal probability.  The products can agree only if that multiple is nearer to 0
 * than 2^(bits-b), which no more than 2 in 2^b multiples are.  The last shift may
 * change some of the highest b bits, but never makes them equal where they differ.
 *
 * Wider keys are hashed word by word (rhh_hash_word()), all words with the same
 * multipliers.  So what is multiplied last depends on the last multiplier, and the
 * argument does not hold.  It is proved only that keys which differ in their last word
 * alone have hashes that differ in their 64 bits.  Besides, each word is mixed with the
 * hash of the words before it, a number that depends on the seed and that no session is
 * told.  And the case "seeds" of device_test counts the seeds for which pairs of keys,
 * alike in several ways, agree: they are no more than the bound says.
 *
 * A shift and the parameter are one exclusive or, which GPUs have with three operands; so
 * a seed costs them no further instruction.
 */
typedef struct rhh_hash
{
	uint32_t	toggle32;
	uint32_t	factor32[2];	/* odd */
	uint32_t	inverse32[2];	/* of these, modulo 2^32 */
	uint64_t	toggle64;
	uint64_t	factor64[2];
	uint64_t	inverse64[2];
} rhh_hash;

/* The inverse modulo 2^64.  x = a is right in 3 bits; each round doubles that number. */
static inline uint64_t
rhh_inverse_of_odd(uint64_t a)
{
	uint64_t	x = a;

	for (int i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

/* Draws the parameters.  With seed 0 the functions are rhh_mix32() and rhh_mix64(). */
static inline void
rhh_hash_init(rhh_hash *hash, uint64_t seed)
{
	uint64_t	random[5];

	for (int i = 0; i < 5; i++)
		random[i] = rhh_mix64(seed + (uint64_t) (i + 1) * 0x9e3779b97f4a7c15ULL);
	hash->toggle32 = seed ? (uint32_t) random[0] : 0;
	hash->toggle64 = seed ? random[1] : 0;
	hash->factor32[0] = seed ? (uint32_t) random[2] | 1 : 0x7feb352dU;
	hash->factor32[1] = seed ? (uint32_t) (random[2] >> 32) | 1 : 0x846ca68bU;
	hash->factor64[0] = seed ? random[3] | 1 : 0xbf58476d1ce4e5b9ULL;
	hash->factor64[1] = seed ? random[4] | 1 : 0x94d049bb133111ebULL;
	for (int i = 0; i < 2; i++)
	{
		hash->inverse32[i] = (uint32_t) rhh_inverse_of_odd(hash->factor32[i]);
		hash->inverse64[i] = rhh_inverse_of_odd(hash->factor64[i]);
	}
}

RHH_HD uint32_t
rhh_hash32(const rhh_hash *hash, uint32_t x)
{
	x ^= x >> 16 ^ hash->toggle32;
	x *= hash->factor32[0];
	x ^= x >> 15;
	x *= hash->factor32[1];
	x ^= x >> 16;
	return x;
}

/* The inverse of rhh_hash32(). */
RHH_HD uint32_t
rhh_unhash32(const rhh_hash *hash, uint32_t x)
{
	x ^= x >> 16;
	x *= hash->inverse32[1];
	x ^= x >> 15 ^ x >> 30;
	x *= hash->inverse32[0];
	x ^= hash->toggle32;
	x ^= x >> 16;
	return x;
}

RHH_HD uint64_t
rhh_hash64(const rhh_hash *hash, uint64_t x)
{
	x ^= x >> 30 ^ hash->toggle64;
	x *= hash->factor64[0];
	x ^= x >> 27;
	x *= hash->factor64[1];
	x ^= x >> 31;
	return x;
}

/* The inverse of rhh_hash64(). */
RHH_HD uint64_t
rhh_unhash64(const rhh_hash *hash, uint64_t x)
{
	x ^= x >> 31 ^ x >> 62;
	x *= hash->inverse64[1];
	x ^= x >> 27 ^ x >> 54;
	x *= hash->inverse64[0];
	x ^= hash->toggle64;
	x ^= x >> 30 ^ x >> 60;
	return x;
}

#endif							/* RHH_HASH_H */
