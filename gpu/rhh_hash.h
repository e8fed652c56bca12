/*
 * rhh_hash.h
 *		Mixing functions, the same bits on host and device.
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
 * The same two mixings with parameters that a table has for itself, so that who
 * chooses the keys cannot choose those that collide.  All of it stays a bijection.
 *
 * Keys of at most 64 bits: any two of them agree in their highest b bits with a
 * probability of no more than 2^(1-b), and the last multiplier alone sees to that.
 * What it multiplies are two different numbers that do not depend on it.  Let 2^t be
 * the power of two in their difference.  Times a random odd number, that is any odd
 * multiple of 2^t with equal probability, and only if it is nearer to 0 than
 * 2^(bits-b) can the products agree; so are no more than 2 in 2^b.  The last shift
 * makes other bits of the highest b bits, but never equal ones of different ones.
 *
 * Wider keys are hashed word by word (rhh_hash_word()), all words with the same
 * multipliers.  So what is multiplied last depends on the last multiplier, and the
 * argument does not hold; nothing is proved of them but that keys which differ in
 * their last word alone differ in 64 bits of hash.  What is known besides: each word
 * is mixed with the hash of those before it, a number that the seed has made and
 * that no session is told; and device_test's "seeds" counts, for pairs of keys that
 * are alike in several ways, the seeds for which they agree: no more than the bound.
 *
 * A shift and the parameter are one exclusive or, which GPUs have of three
 * operands; so a seed costs them no instruction.
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

/* x = a is right in the lowest 3 bits; each round doubles their number. */
static inline uint64_t
rhh_inverse_of_odd(uint64_t a)
{
	uint64_t	x = a;

	for (int i = 0; i < 5; i++)
		x *= 2 - a * x;
	return x;
}

/* seed 0: rhh_mix32() and rhh_mix64(). */
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

/* Its inverse. */
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

/* Its inverse. */
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
