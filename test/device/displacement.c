/*
 * displacement.c
 *		Displacement: a table that is nearly full moves entries to make room while
 *		other threads look for their keys.  A device that does this wrongly ends up
 *		with two groups of the same key.
 */
#include "device_test.h"

/*
 * Displacement under stress.  The rows come in waves.  In each wave some hundred
 * keys are new and occur in half of the rows, while the other half has keys that
 * recur seldom.  The table is so full that inserting any of them displaces others
 * all the time.  If a device carries a displaced entry without looking for other
 * insertions of its key, the key gets a second slot here.
 *
 * param: how many hot keys a wave has.
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
	/* groups of which a part was displaced are put together before others are left out */
	static const rhh_group_condition few_rows = {
		.state = 0, .comparison = RHH_LESS, .low = 5, .except_state = -1
	};

	for (int seed = 0; seed < seeds; seed++)
		for (int cap = 0; cap < 2; cap++)
			for (int h = 0; h < 3; h++)
				for (int limited = 0; limited < 2; limited++)
				{
					run_options options = default_options;
					char		where[80];
					def			d;

					options.conditions = &few_rows;
					options.n_conditions = h % 2;
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
					check_table(ctx, where, &d, n_rows, &options, NULL);
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
 * The same on a small scale, for a test without a GPU (simt.h), whose tables are
 * never nearly full.  There are 60 keys, and their homes are a few neighbouring
 * buckets of a table of the size with which a CUDA device starts: 8 buckets of 8
 * slots, or 16 of 4.  More of the keys occur as the rows go by, each in many rows.
 * So keys are inserted by several tiles at once while they are being displaced.
 *
 * A table that starts with more slots has more buckets for the same hashes, and
 * then nothing is displaced.  The case fails if that happens.
 *
 * param: seed of the keys.
 */
#define CROWD_KEYS 60
#define CROWD_HASHES (1u << 22) /* the keys' hashes are below this */

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
		if (fp < CROWD_HASHES)
			crowd[i++] = key;
	}
}

void
case_displacement_crowd(context *ctx)
{
	const rhh_group_condition many_rows = {
		.state = 0, .comparison = RHH_GREATER, .low = 50, .except_state = -1
	};
	run_options options = default_options;

	options.batch_rows = 3000;
	options.conditions = &many_rows;
	for (int kind = 0; kind < 3; kind++)
		for (uint64_t round = 0; round < 20; round++)
		{
			rhh_map_stats stats;
			char		where[80];
			rhh_hash	hash;
			def			d;

			def_init(&d);
			hash = hash_of(&d);
			make_crowd(&hash, kind == 0 ? 4 : 8, kind == 2 ? 2 : 1, round + 1);
			for (int k = 0; k <= kind / 2; k++)
				def_key(&d, kind == 0 ? 4 : 8, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_crowd_rows;
			d.param = round;
			options.n_conditions = round % 2;
			d.spec.max_probe_buckets = 64;
			d.spec.flags = RHH_WANT_PROBE_STATS;
			snprintf(where, sizeof(where), "kind %d, round %d", kind, (int) round);
			check_table(ctx, where, &d, 3000, &options, &stats);
			if (stats.orphans != 0)
				fault(ctx, where, "a group came out without a slot, though there is room for all");
			if (ctx->device->info.kind == RHH_KIND_CUDA && stats.probe_buckets_max < 2)
				fault(ctx, where, "the keys are not crowded, so nothing was displaced");
		}
}
