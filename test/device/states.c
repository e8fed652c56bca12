/*
 * states.c
 *		Aggregates' states: each with arguments of every width, with NULLs in them
 *		and with filters, and as many states at once as a table may have.
 */
#include "device_test.h"

static const rhh_state_op integer_ops[] = {
	RHH_COUNT, RHH_SUM_I64, RHH_SUM_I128, RHH_MIN_I64, RHH_MAX_I64, RHH_AND, RHH_OR,
	RHH_XOR, RHH_SUM_SQUARES
};

#define N_INTEGER_OPS (LENGTH_OF(integer_ops))

void
case_states(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (uint32_t o = 0; o < N_INTEGER_OPS; o++)
		for (int variant = 0; variant < 4; variant++)
		{
			char		where[64];
			def			d;
			int			filter;

			def_init(&d);
			def_key(&d, 4, GEN_UNIFORM, 200, 10);
			filter = def_column(&d, 1, GEN_FILTER, 0, 0);
			for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
				def_state(&d, integer_ops[o],
						  def_column(&d, bytes, GEN_EXTREME, 0, variant & 1 ? 90 : 0),
						  variant & 2 ? filter : -1);
			snprintf(where, sizeof(where), "op %d, nulls %d, filter %d", integer_ops[o],
					 variant & 1, variant >> 1);
			check_table(ctx, where, &d, rows(50000), &options, NULL);
		}
}

/* In one group, in few, and in many, some of which have no place at first. */
void
case_floats(context *ctx)
{
	static const uint64_t groups[] = {1, 50, 30000};
	run_options options = default_options;

	for (int g = 0; g < 3; g++)
		for (int variant = 0; variant < 8; variant++)
		{
			char		where[64];
			def			d;
			int			filter;

			def_init(&d);
			def_key(&d, 4, GEN_UNIFORM, groups[g], 10);
			filter = def_column(&d, 1, GEN_FILTER, 0, 0);
			for (uint32_t bytes = 4; bytes <= 8; bytes *= 2)
			{
				int			v = def_column(&d, bytes, variant & 4 ? GEN_FLOAT_ODD : GEN_FLOAT,
										   0, variant & 1 ? 90 : 0);

				def_state(&d, RHH_SUM_F64, v, variant & 2 ? filter : -1);
				def_state(&d, RHH_MOMENTS_F64, v, variant & 2 ? filter : -1);
				def_state(&d, RHH_SUM_SQUARES, v, -1);
				def_state(&d, RHH_AND, v, -1);
				def_state(&d, RHH_OR, v, -1);
				def_state(&d, RHH_XOR, v, -1);
			}
			def_state(&d, RHH_SUM_TWICE_F64,
					  def_column(&d, 16, GEN_FLOAT_PAIR, 0, variant & 1 ? 90 : 0),
					  variant & 2 ? filter : -1);
			/* few are first aggregated by the block, where that is expected to pay */
			if (g == 2)
				d.spec.max_probe_buckets = 1;
			else
				d.spec.expected_groups = groups[g];
			snprintf(where, sizeof(where), "%llu groups, nulls %d, filter %d, odd %d",
					 (unsigned long long) groups[g], variant & 1, variant >> 1 & 1,
					 variant >> 2);
			check_table(ctx, where, &d, rows(60000), &options, NULL);
		}
}

void
case_any(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int nulls = 0; nulls < 2; nulls++)
	{
		def			d;
		int			filter;

		def_init(&d);
		def_key(&d, 8, GEN_UNIFORM, 5000, 10);
		filter = def_column(&d, 1, GEN_FILTER, 0, 0);
		for (uint32_t bytes = 1; bytes <= 16; bytes *= 2)
		{
			int			c = def_column(&d, bytes, GEN_ANY, 0, nulls ? 60 : 0);

			def_state(&d, RHH_ANY, c, -1);
			def_state(&d, RHH_ANY, c, filter);
			def_state(&d, RHH_COUNT, c, -1);
		}
		check_table(ctx, nulls ? "with nulls" : "", &d, rows(80000), &options, NULL);
	}
}

/* Neighbouring states with the same and with other arguments and filters, of many groups and of one. */
void
case_many_states(context *ctx)
{
	run_options options = default_options;
	rng			r = {ctx->seed};

	options.no_failures = true;
	for (int round = 0; round < 10; round++)
	{
		const bool	one_group = round >= 6;
		def			d;
		int			args[6];
		int			filters[3];

		def_init(&d);
		def_key(&d, round % 2 ? 8 : 4, GEN_UNIFORM, one_group ? 1 : 700, one_group ? 0 : 5);
		for (int i = 0; i < 6; i++)
			args[i] = def_column(&d, 2u << (i % 3), GEN_EXTREME, 0, i < 3 ? 40 : 0);
		filters[0] = -1;
		filters[1] = def_column(&d, 1, GEN_FILTER, 0, 0);
		filters[2] = def_column(&d, 1, GEN_FILTER, 0, 0);
		while (d.spec.n_states < RHH_MAX_STATES)
		{
			int			arg = args[below(&r, 6)];
			int			filter = filters[below(&r, 3)];
			uint32_t	n = 1 + (uint32_t) below(&r, 3);

			while (n-- > 0 && d.spec.n_states < RHH_MAX_STATES)
				def_state(&d, integer_ops[below(&r, N_INTEGER_OPS)], arg, filter);
			if (below(&r, 4) == 0 && d.spec.n_states < RHH_MAX_STATES)
				def_state(&d, RHH_COUNT, -1, filter);
		}
		d.spec.max_batch_rows = 20000;
		check_table(ctx, "", &d, rows(30000), &options, NULL);
	}
}

void
case_no_states(context *ctx)
{
	static const uint8_t widths[] = {4, 8, 16};
	run_options options = default_options;

	options.no_failures = true;
	for (int i = 0; i < 3; i++)
	{
		def			d;

		def_init(&d);
		def_key(&d, widths[i], GEN_UNIFORM, 30000, 3);
		check_table(ctx, "", &d, rows(100000), &options, NULL);
	}
}

/* Sums that leave 63 bits on either side, in few groups; also with a maximum, and with states that take longer to be updated. */
void
case_sum_i128_overflow(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int kind = 0; kind < 6; kind++)
		for (uint64_t groups = 1; groups <= 100; groups *= 10)
		{
			def			d;
			int			v;

			def_init(&d);
			def_key(&d, 4, GEN_UNIFORM, groups, 0);
			v = def_column(&d, 8, kind % 2 == 0 ? GEN_HUGE_POSITIVE : GEN_EXTREME, 0, 0);
			def_state(&d, RHH_SUM_I128, v, -1);
			def_state(&d, RHH_SUM_I64, v, -1);
			if (kind >= 2)
				def_state(&d, RHH_MAX_I64, v, -1);
			if (kind >= 4)
				def_state(&d, RHH_MIN_I64, v, -1);
			check_table(ctx, "", &d, rows(200000), &options, NULL);
		}
}
