/*
 * displacement.c
 *		Displacement: a table that is nearly full moves entries to make room, while
 *		other threads look for their keys.  A device that does this wrongly has two
 *		groups of one key.
 */
#include "device_test.h"

/*
 * Displacement stress.  In waves, so that in every batch some hundred keys are
 * new, are hammered at once, and find a table so full that inserting them, and
 * the many keys seen once around them, moves others all the time.  A device that
 * carries displaced entries where nobody else sees them makes copies here.
 *
 * param: hot keys of a wave; the other half of the rows are of keys that recur
 * seldom.
 */
static void
custom_waves(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	wave = row / 20000;
	uint64_t	x = below(r, 2) == 0 ?
		(wave << 20) + below(r, param) : (UINT64_C(1) << 31) + below(r, 400000);

	put_value(data, 0, row, x * 0x9e3779b97f4a7c15ULL, 0);
	if (data->d->spec.n_keys > 1)
		put_value(data, 1, row, ~x, 0);
}

static void
stress(context *ctx, uint32_t bytes, uint32_t n_keys, uint64_t n_rows, int seeds)
{
	static const uint32_t caps[] = {8, 2};
	static const uint64_t hot[] = {50, 300, 3000};

	for (int seed = 0; seed < seeds; seed++)
		for (int cap = 0; cap < 2; cap++)
			for (int h = 0; h < 3; h++)
				for (int limited = 0; limited < 2; limited++)
				{
					char		where[80];
					def			d;

					def_init(&d);
					for (uint32_t k = 0; k < n_keys; k++)
						def_key(&d, bytes, GEN_CUSTOM, 0, 0);
					def_common_states(&d);
					d.custom = custom_waves;
					d.param = hot[h];
					d.spec.max_probe_buckets = caps[cap];
					d.spec.load_factor = 0.95f;
					/* one stays near full, the other is near full before it grows */
					d.spec.memory_limit_bytes = limited ? UINT64_C(6) << 20 : 0;
					d.spec.expected_groups = limited ? 120000 : 1000;
					snprintf(where, sizeof(where), "cap %u, %llu hot keys, %s, seed %d",
							 caps[cap], (unsigned long long) hot[h],
							 limited ? "limited" : "growing", seed);
					check_table(ctx, where, &d, n_rows, &default_options, NULL);
				}
}

void
case_displacement_4(context *ctx)
{
	stress(ctx, 4, 1, rows(1000000), option_quick ? 1 : 3);
}

void
case_displacement_8(context *ctx)
{
	stress(ctx, 8, 1, rows(500000), option_quick ? 1 : 2);
}

void
case_displacement_wide(context *ctx)
{
	stress(ctx, 8, 2, rows(500000), option_quick ? 1 : 2);
}

/*
 * The same in the small, for a test without a GPU (simt.h), whose tables are never
 * near full: 60 keys whose homes are 8 to 16 neighbouring buckets of a table of
 * the least size, more of them as rows go by.  So the keys that are inserted
 * anew, many times each, are those that are being displaced.
 *
 * param: seed of the keys.
 */
#define CROWD_KEYS 60

static uint64_t crowd[CROWD_KEYS];

static void
custom_crowd_rows(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	x = crowd[below(r, row / 20 < CROWD_KEYS ? row / 20 + 1 : CROWD_KEYS)];

	(void) param;
	put_value(data, 0, row, x, 0);
	if (data->d->spec.n_keys > 1)
		put_value(data, 1, row, ~x, 0);
}

static void
make_crowd(const rhh_hash *with, uint32_t bytes, uint32_t n_keys, uint64_t seed)
{
	uint64_t	x = seed << 32;

	for (int i = 0; i < CROWD_KEYS; x++)
	{
		uint64_t	key = bytes == 4 ? (uint32_t) (x ^ x >> 20) : x;
		uint32_t	fp = rhh_fingerprint(with, key, bytes * 8);

		if (n_keys > 1)
		{
			uint64_t	hash = rhh_hash_word(with, RHH_WIDE_START, 0);

			hash = rhh_hash_word(with, rhh_hash_word(with, hash, key), ~key);
			fp = (uint32_t) (hash >> 32);
		}
		if (fp < 1u << 24)
			crowd[i++] = key;
	}
}

void
case_displacement_crowd(context *ctx)
{
	run_options options = default_options;

	options.batch_rows = 3000;
	for (int kind = 0; kind < 3; kind++)
		for (uint64_t round = 0; round < 20; round++)
		{
			rhh_map_stats stats;
			char		where[80];
			def			d;

			rhh_hash	hash;

			def_init(&d);
			hash = hash_of(&d);
			make_crowd(&hash, kind == 0 ? 4 : 8, kind == 2 ? 2 : 1, round + 1);
			for (int k = 0; k <= kind / 2; k++)
				def_key(&d, kind == 0 ? 4 : 8, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_crowd_rows;
			d.param = round;
			d.spec.max_probe_buckets = 64;
			snprintf(where, sizeof(where), "kind %d, round %d", kind, (int) round);
			check_table(ctx, where, &d, 3000, &options, &stats);
			if (stats.orphans != 0)
				fault(ctx, where, "a group came out without a slot, though there is room for all");
		}
}
