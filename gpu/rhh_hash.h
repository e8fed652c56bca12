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

/* Its inverse. */
RHH_HD uint32_t
rhh_unmix32(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x43021123U;
	x ^= x >> 15 ^ x >> 30;
	x *= 0x1d69e2a5U;
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

/* Its inverse. */
RHH_HD uint64_t
rhh_unmix64(uint64_t x)
{
	x ^= x >> 31 ^ x >> 62;
	x *= 0x319642b2d24d8ec3ULL;
	x ^= x >> 27 ^ x >> 54;
	x *= 0x96de1b173f119089ULL;
	x ^= x >> 30 ^ x >> 60;
	return x;
}

#endif							/* RHH_HASH_H */
