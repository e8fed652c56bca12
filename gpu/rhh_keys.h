/*
 * rhh_keys.h
 *		How key columns become one key, and the hash of that key.  The CPU device, the
 *		CUDA device and the tests share this, so all have the same bits.
 *
 * A key has one of three forms, which is chosen once for a map:
 *
 *		SINGLE	one key column of at most 8 bytes.  The key is its value,
 *				zero-extended; NULL has no key, but a group of its own.
 *		PACKED	several columns that fit 64 bits together with one NULL bit each:
 *				column k starts at bit shift[k], the NULL bits are above them.
 *		WIDE	everything else: a word of NULL bits, then one or two words for each
 *				column, zero-extended.
 *
 * In every form the bits of a column that is NULL are zero, so equal keys are equal
 * bits.  No pattern of bits is reserved, because an empty slot is recognised by its group
 * number.
 *
 * The fingerprint of a key has 32 bits.  For keys of at most 32 bits it is a bijection of
 * the key, so comparing fingerprints is comparing keys.  The home bucket comes from the
 * high bits of the fingerprint, so a table of any size can be built from the slots of
 * another one alone, in order.  The seed of the spec chooses the hash function, which is
 * the same for all of a map: its partitions, local tables and parts.
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
	uint8_t		bits;			/* SINGLE, PACKED: bits of the key, 8 to 64 */
	uint8_t		n_keys;
	uint8_t		n_words;		/* 1; WIDE: 1 + the words of all columns */
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

/* Hashes one more word of a WIDE key; `before` of the first word is RHH_WIDE_START. */
#define RHH_WIDE_START 0x9e3779b97f4a7c15ULL

RHH_HD uint64_t
rhh_hash_word(const rhh_hash *hash, uint64_t before, uint64_t word)
{
	return rhh_hash64(hash, before + RHH_WIDE_START) ^ rhh_hash64(hash, word ^ before);
}

/* The fingerprint of a SINGLE or PACKED key of so many bits. */
RHH_HD uint32_t
rhh_fingerprint(const rhh_hash *hash, uint64_t key, uint32_t bits)
{
	return bits <= 32 ? rhh_hash32(hash, (uint32_t) key)
		: (uint32_t) (rhh_hash64(hash, key) >> 32);
}

/*
 * The part that a key belongs to, for a map that keeps one of n_parts (a power of two): made of
 * its columns one by one, each of one or two words, zero-extended.  The first `before` is
 * RHH_PART_START.  No seed is in it, because the parts of all passes have to be the same.  Whoever
 * chooses keys that are all of one part only has a build side that is not made smaller.
 */
#define RHH_PART_START 0xd1b54a32d192ed03ULL

RHH_HD uint64_t
rhh_part_word(uint64_t before, uint64_t word)
{
	return rhh_mix64(before + RHH_WIDE_START) ^ rhh_mix64(word ^ before);
}

RHH_HD uint32_t
rhh_part_of(uint64_t hash, uint32_t n_parts)
{
	return (uint32_t) (hash >> 32) & (n_parts - 1);
}

/* The bucket where a probe for this fingerprint starts. */
RHH_HD uint32_t
rhh_home_bucket(uint32_t fingerprint, uint32_t n_buckets)
{
	return (uint32_t) (((uint64_t) fingerprint * n_buckets) >> 32);
}

#endif							/* RHH_KEYS_H */
