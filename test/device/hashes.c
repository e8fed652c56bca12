/*
 * hashes.c
 *		Keys that collide, by chance or because somebody has chosen them, and the
 *		properties of the hash that the tables rely on.
 */
#include "device_test.h"

/* 64-bit keys, and WIDE ones, with few fingerprints among them. */
static void
custom_collide_64(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	n_fp = param >> 32;
	uint64_t	per_fp = param & UINT32_MAX;
	uint64_t	fp = (below(r, n_fp) * 0x9e3779b9U) & UINT32_MAX;
	rhh_hash	with = hash_of(data->d);

	put_value(data, 0, row, rhh_unhash64(&with, fp << 32 | below(r, per_fp)), 0);
}

static void
custom_collide_wide(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	n_fp = param >> 32;
	uint64_t	per_fp = param & UINT32_MAX;
	uint64_t	fp = (below(r, n_fp) * 0x9e3779b9U) & UINT32_MAX;
	uint64_t	first = 5 + below(r, 3);
	rhh_hash	with = hash_of(data->d);
	uint64_t	hash = rhh_hash_word(&with, rhh_hash_word(&with, RHH_WIDE_START, 0), first);

	put_value(data, 0, row, first, 0);
	put_value(data, 1, row, rhh_unhash64(&with, (fp << 32 | below(r, per_fp)) ^
										 rhh_hash64(&with, hash + RHH_WIDE_START)) ^ hash, 0);
}

void
case_colliding_fingerprints(context *ctx)
{
	static const struct
	{
		uint64_t	n_fp;
		uint64_t	per_fp;
	}			shapes[] = {{1, 2}, {1, 100}, {1, 5000}, {50, 20}, {20000, 2}, {1000, 9}};

	for (int wide = 0; wide < 2; wide++)
		for (size_t i = 0; i < LENGTH_OF(shapes); i++)
			for (uint32_t cap = 1; cap <= 64; cap *= 8)
			{
				rhh_map_stats stats;
				char		where[64];
				def			d;

				def_init(&d);
				def_key(&d, 8, GEN_CUSTOM, 0, 0);
				if (wide)
					def_key(&d, 8, GEN_CUSTOM, 0, 0);
				def_common_states(&d);
				d.custom = wide ? custom_collide_wide : custom_collide_64;
				d.param = shapes[i].n_fp << 32 | shapes[i].per_fp;
				d.spec.max_probe_buckets = cap;
				d.spec.max_batch_rows = 10000;
				snprintf(where, sizeof(where), "%s, %llu times %llu, cap %u",
						 wide ? "wide" : "8 bytes", (unsigned long long) shapes[i].n_fp,
						 (unsigned long long) shapes[i].per_fp, cap);
				check_table(ctx, where, &d, rows(60000), &default_options, &stats);
				/* keys that no table can take must not make it grow on */
				if (stats.capacity_slots > 4000000)
					fault(ctx, where, "the table grew without bound");
			}
}

/* 4-byte keys that all have nearly the same home bucket. */
static void
custom_crowd(data *data, uint64_t row, rng *r, uint64_t param)
{
	rhh_hash	with = hash_of(data->d);

	put_value(data, 0, row, rhh_unhash32(&with, (uint32_t) (below(r, param) << 3)), 0);
}

void
case_crowded_bucket(context *ctx)
{
	for (uint64_t n = 5; n <= 50000; n *= 10)
		for (uint32_t cap = 2; cap <= 8; cap += 6)
		{
			rhh_map_stats stats;
			def			d;

			def_init(&d);
			def_key(&d, 4, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_crowd;
			d.param = n;
			d.spec.max_probe_buckets = cap;
			check_table(ctx, "", &d, rows(100000), &default_options, &stats);
			if (stats.capacity_slots > 4000000)
				fault(ctx, "", "the table grew without bound");
		}
}

/*
 * A hash is a bijection whatever its seed, and keys that somebody has chosen
 * because they collide do not do so in a table of another seed.
 */
static void
custom_chosen(data *data, uint64_t row, rng *r, uint64_t param)
{
	rhh_hash	known;
	uint64_t	fp = below(r, param);

	rhh_hash_init(&known, 0);
	if (data->d->spec.column_bytes[0] == 4)
		put_value(data, 0, row, rhh_unhash32(&known, (uint32_t) fp << 3), 0);
	else
		put_value(data, 0, row, rhh_unhash64(&known, fp), 0);
	if (data->d->spec.n_keys > 1)
	{
		uint64_t	before = rhh_hash_word(&known, rhh_hash_word(&known, RHH_WIDE_START, 0), 5);

		put_value(data, 0, row, 5, 0);
		put_value(data, 1, row, rhh_unhash64(&known, fp ^ rhh_hash64(&known, before + RHH_WIDE_START)) ^
				  before, 0);
	}
}

/* The highest bits of fingerprints that are compared, and for how many seeds. */
#define AGREEING_BITS 10
#define SEEDS_TRIED 65536

/* The fingerprint of a key of two words, without NULLs unless nulls says otherwise. */
static uint32_t
wide_fingerprint(const rhh_hash *hash, uint64_t nulls, uint64_t first,
				 uint64_t second)
{
	uint64_t	h = rhh_hash_word(hash, RHH_WIDE_START, nulls);

	h = rhh_hash_word(hash, h, first);
	return (uint32_t) (rhh_hash_word(hash, h, second) >> 32);
}

/*
 * Two keys that are alike in some way agree in their highest bits for no more seeds
 * than the bound of rhh_hash.h says, which is proved for keys of at most 64 bits
 * only.  Were they random, it would be half as many.
 */
static void
check_agreeing(context *ctx)
{
	static const char *const ways[] = {
		"32 bits, neighbours", "32 bits, the highest bit", "64 bits, neighbours",
		"64 bits, the highest bit", "wide, the last word", "wide, the last word's highest bit",
		"wide, the first word", "wide, the first word's highest bit", "wide, both words alike",
		"wide, both words against each other", "wide, words exchanged", "wide, NULL for 0",
		"wide, any two"
	};
	const uint64_t high = UINT64_C(1) << 63;
	rng			r = {12};
	int			n_agreeing[LENGTH_OF(ways)] = {0};

	for (uint64_t seed = 1; seed <= SEEDS_TRIED; seed++)
	{
		uint64_t	x = seed % 2 ? seed / 2 : next_random(&r);
		uint64_t	y = seed % 2 ? seed / 3 : next_random(&r);
		rhh_hash	hash;
		uint32_t	wide;
		uint32_t	pairs[LENGTH_OF(ways)][2];
		int			n = 0;

		rhh_hash_init(&hash, next_random(&r) | 1);
		wide = wide_fingerprint(&hash, 0, x, y);
#define PAIR(a, b) (pairs[n][0] = (a), pairs[n++][1] = (b))
		PAIR(rhh_fingerprint(&hash, (uint32_t) x, 32), rhh_fingerprint(&hash, (uint32_t) (x + 1), 32));
		PAIR(rhh_fingerprint(&hash, (uint32_t) x, 32), rhh_fingerprint(&hash, (uint32_t) x ^ 0x80000000U, 32));
		PAIR(rhh_fingerprint(&hash, x, 64), rhh_fingerprint(&hash, x + 1, 64));
		PAIR(rhh_fingerprint(&hash, x, 64), rhh_fingerprint(&hash, x ^ high, 64));
		PAIR(wide, wide_fingerprint(&hash, 0, x, y + 1));
		PAIR(wide, wide_fingerprint(&hash, 0, x, y ^ high));
		PAIR(wide, wide_fingerprint(&hash, 0, x + 1, y));
		PAIR(wide, wide_fingerprint(&hash, 0, x ^ high, y));
		PAIR(wide, wide_fingerprint(&hash, 0, x + 1, y + 1));
		PAIR(wide, wide_fingerprint(&hash, 0, x + 1, y - 1));
		PAIR(wide, wide_fingerprint(&hash, 0, y, x == y ? x + 1 : x));
		PAIR(wide_fingerprint(&hash, 0, 0, y), wide_fingerprint(&hash, 1, 0, y));
		PAIR(wide, wide_fingerprint(&hash, 0, next_random(&r), next_random(&r)));
#undef PAIR
		for (int i = 0; i < n; i++)
			n_agreeing[i] += (pairs[i][0] ^ pairs[i][1]) >> (32 - AGREEING_BITS) == 0;
	}
	for (size_t i = 0; i < LENGTH_OF(ways); i++)
		if (n_agreeing[i] > 2 * SEEDS_TRIED >> AGREEING_BITS)
			fault(ctx, ways[i], "keys agree for too many seeds");
}

void
case_seeds(context *ctx)
{
	rng			r = {11};

	check_agreeing(ctx);
	for (uint64_t seed = 0; seed < 1000; seed++)
	{
		rhh_hash	hash;
		uint64_t	x = next_random(&r);

		rhh_hash_init(&hash, seed);
		if (seed == 0 && (rhh_hash64(&hash, x) != rhh_mix64(x) ||
						  rhh_hash32(&hash, (uint32_t) x) != rhh_mix32((uint32_t) x)))
			fault(ctx, "", "without a seed the hash is another one");
		if (rhh_unhash64(&hash, rhh_hash64(&hash, x)) != x ||
			rhh_unhash32(&hash, rhh_hash32(&hash, (uint32_t) x)) != (uint32_t) x)
			fault(ctx, "", "a key does not come back from its hash");
	}
	for (int shape = 0; shape < 3; shape++)
		for (int i = 0; i < 4; i++)
		{
			run_options options = default_options;
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, shape == 0 ? 4 : 8, GEN_CUSTOM, 0, 0);
			if (shape == 2)
				def_key(&d, 8, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_chosen;
			d.param = rows(200000) / 4;
			if (d.spec.hash_seed == 0)
				d.spec.hash_seed = 1;
			options.no_failures = true;
			snprintf(where, sizeof(where), "chosen keys, shape %d", shape);
			check_table(ctx, where, &d, rows(200000), &options, NULL);
		}
}
