/*
 * rhh_keys.h
 *		How key columns become one key, and the hash of it: shared bit for bit
 *		by the CPU device, the CUDA device and the tests.
 *
 * Three forms, chosen once for a table:
 *
 *		SINGLE	one key column of at most 8 bytes.  The key is its value,
 *				zero-extended; NULL has no key and a group set aside.
 *		PACKED	several columns whose bits and one NULL bit each fit 64 bits:
 *				column k at bit shift[k], the NULL bits above them.
 *		WIDE	everything else: a word of NULL bits, then each column's one
 *				or two words, zero-extended.
 *
 * A NULL column's bits are zero in every form, so that equal keys are equal
 * bits.  No pattern is reserved: an empty slot is told by its group number.
 *
 * fingerprint(key) has 32 bits.  For keys of at most 32 bits it is a bijection
 * of the key, so that comparing fingerprints compares keys.  The home bucket is
 * taken from the fingerprint's high bits, so that a table of any size can be
 * rebuilt from its slots alone, in order.  The spec's seed chooses the hash, one
 * for all of a table: its partitions, local tables and parts.
 */
#ifndef RHH_KEYS_H
#define RHH_KEYS_H

#include "rhh_device.h"
#include "rhh_hash.h"

#define RHH_MAX_KEY_WORDS (1 + 2 * RHH_MAX_KEYS)

typedef enum rhh_key_form
{
	RHH_KEY_SINGLE,
	RHH_KEY_PACKED,
	RHH_KEY_WIDE
} rhh_key_form;

typedef struct rhh_key_plan
{
	uint8_t		form;			/* rhh_key_form */
	uint8_t		bits;			/* of the key, SINGLE and PACKED: 8 to 64 */
	uint8_t		n_keys;
	uint8_t		n_words;		/* of the key: 1, or WIDE's 1 + columns' words */
	uint8_t		null_shift;		/* PACKED: the NULL bits start here */
	uint8_t		column[RHH_MAX_KEYS];
	uint8_t		bytes[RHH_MAX_KEYS];
	uint8_t		shift[RHH_MAX_KEYS];	/* PACKED: first bit; WIDE: first word */
	rhh_hash	hash;
} rhh_key_plan;

static inline void
rhh_key_plan_init(rhh_key_plan *plan, const rhh_map_spec *spec)
{
	uint32_t	bits = 0,
				words = 1;

	rhh_hash_init(&plan->hash, spec->hash_seed);
	plan->n_keys = (uint8_t) spec->n_keys;
	for (uint32_t k = 0; k < spec->n_keys; k++)
	{
		plan->column[k] = spec->key_column[k];
		plan->bytes[k] = spec->column_bytes[spec->key_column[k]];
		bits += 8u * plan->bytes[k];
		words += rhh_key_words(spec, k);
	}
	plan->null_shift = 0;
	plan->n_words = 1;
	if (spec->n_keys == 1 && bits <= 64)
	{
		plan->form = RHH_KEY_SINGLE;
		plan->bits = (uint8_t) bits;
		plan->shift[0] = 0;
	}
	else if (bits + spec->n_keys <= 64)
	{
		plan->form = RHH_KEY_PACKED;
		plan->bits = (uint8_t) (bits + spec->n_keys);
		plan->null_shift = (uint8_t) bits;
		bits = 0;
		for (uint32_t k = 0; k < spec->n_keys; k++)
		{
			plan->shift[k] = (uint8_t) bits;
			bits += 8u * plan->bytes[k];
		}
	}
	else
	{
		plan->form = RHH_KEY_WIDE;
		plan->bits = 0;
		plan->n_words = (uint8_t) words;
		words = 1;
		for (uint32_t k = 0; k < spec->n_keys; k++)
		{
			plan->shift[k] = (uint8_t) words;
			words += rhh_key_words(spec, k);
		}
	}
}

/* One step over a WIDE key's words; start with RHH_WIDE_START. */
#define RHH_WIDE_START 0x9e3779b97f4a7c15ULL

RHH_HD uint64_t
rhh_hash_word(const rhh_hash *hash, uint64_t before, uint64_t word)
{
	return rhh_hash64(hash, before + RHH_WIDE_START) ^ rhh_hash64(hash, word ^ before);
}

/* Of a SINGLE or PACKED key of the given number of bits. */
RHH_HD uint32_t
rhh_fingerprint(const rhh_hash *hash, uint64_t key, uint32_t bits)
{
	return bits <= 32 ? rhh_hash32(hash, (uint32_t) key)
		: (uint32_t) (rhh_hash64(hash, key) >> 32);
}

/* The bucket where a probe for this fingerprint starts. */
RHH_HD uint32_t
rhh_home_bucket(uint32_t fingerprint, uint32_t n_buckets)
{
	return (uint32_t) (((uint64_t) fingerprint * n_buckets) >> 32);
}

#endif							/* RHH_KEYS_H */
