/*
 * conditions.c
 *		Conditions on groups: what may be left out is no group that is wanted, and it is
 *		counted.
 */
#include "join_plan.h"

/* The value of a state of a group: in 128 bits, low first. */
static void
state_value(const rhh_map_spec *spec, uint32_t state, const uint64_t *group, uint64_t *low,
			int64_t *high)
{
	const uint64_t *word = group + rhh_state_word(spec, state);

	*low = word[0];
	*high = spec->states[state].op == RHH_SUM_I128 ? (int64_t) word[1] : (int64_t) word[0] >> 63;
}

/* Do all conditions hold for a group? */
bool
is_wanted(const rhh_map_spec *spec, const rhh_group_condition *conditions, uint32_t n,
		  const uint64_t *group)
{
	for (uint32_t c = 0; c < n; c++)
	{
		const rhh_group_condition *condition = &conditions[c];
		const __int128 constant = (__int128) ((unsigned __int128) (uint64_t) condition->high << 64 |
											  condition->low);
		__int128	value;
		uint64_t	low;
		int64_t		high;

		if (condition->except_state >= 0 &&
			group[rhh_state_word(spec, (uint32_t) condition->except_state)] == condition->except_word)
			continue;
		state_value(spec, condition->state, group, &low, &high);
		value = (__int128) ((unsigned __int128) (uint64_t) high << 64 | low);
		if (!(condition->comparison == RHH_EQUAL		 ? value == constant :
			  condition->comparison == RHH_NOT_EQUAL ? value != constant :
			  condition->comparison == RHH_LESS ? value < constant :
			  condition->comparison == RHH_LESS_OR_EQUAL ? value <= constant :
			  condition->comparison == RHH_GREATER ? value > constant : value >= constant))
			return false;
	}
	return true;
}

/* Groups of these key bytes, of which states are compared, each with each comparison. */
static void
check_conditions(context *ctx, uint32_t key_bytes, bool refuses, uint64_t n_groups)
{
	static const rhh_state_op ops[] = {RHH_COUNT, RHH_SUM_I64, RHH_SUM_I128, RHH_MIN_I64, RHH_MAX_I64};

	for (uint32_t s = 0; s < LENGTH_OF(ops); s++)
		for (int comparison = RHH_EQUAL; comparison <= RHH_GREATER_OR_EQUAL; comparison++)
		{
			static const int64_t constants[] = {0, 3, -3, INT64_MAX};
			const uint32_t i = (s + (uint32_t) comparison) % LENGTH_OF(constants);
			run_options options = default_options;
			rhh_group_condition conditions[2];
			rhh_map_stats stats;
			char		where[80];
			def			d;
			int			v;

			def_init(&d);
			def_key(&d, key_bytes, GEN_UNIFORM, n_groups, 5);
			v = def_column(&d, 8, GEN_SMALL, 0, 20);
			for (uint32_t o = 0; o < LENGTH_OF(ops); o++)
				def_state(&d, ops[o], v, -1);
			memset(conditions, 0, sizeof(conditions));
			conditions[0].state = (uint8_t) s;
			conditions[0].comparison = (uint8_t) comparison;
			conditions[0].low = (uint64_t) constants[i];
			conditions[0].high = constants[i] >> 63;
			/* groups of the most common number of rows are wanted, whatever their sum */
			conditions[0].except_state = s == 2 ? 0 : -1;
			conditions[0].except_word = rows(60000) > n_groups ? rows(60000) / n_groups : 1;
			/* and one that hardly a group has not */
			conditions[1].comparison = RHH_LESS;
			conditions[1].low = 1000;
			conditions[1].except_state = -1;
			options.conditions = conditions;
			options.n_conditions = comparison % 2 == 0 ? 2 : 1;
			if (refuses)
			{
				d.spec.memory_limit_bytes = 256 << 10;
				d.spec.max_batch_rows = 4096;
				options.min_failures = 1;
			}
			snprintf(where, sizeof(where), "%u bytes, state %u, comparison %d%s", key_bytes, s,
					 comparison, refuses ? ", rows refused" : "");
			check_table(ctx, where, &d, refuses ? enough_rows(60000) : rows(60000), &options, &stats);
		}
}

void
case_conditions(context *ctx)
{
	check_conditions(ctx, 4, false, 5000);
	check_conditions(ctx, 8, false, 700);
	check_conditions(ctx, 16, false, 300);
}

void
case_conditions_refused(context *ctx)
{
	check_conditions(ctx, 8, true, 1 << 20);
}

/*
 * Groups of which a part finds no place, and another does later, as on the CPU device those of its
 * threads' local tables: neither is the whole group.
 */
static uint64_t
check_orphans(context *ctx, uint32_t threads, uint64_t n_groups)
{
	rhh_group_condition condition;
	run_options options = default_options;
	rhh_map_stats stats;
	char		where[80];
	def			d;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, n_groups, 0);
	def_state(&d, RHH_COUNT, -1, -1);
	d.spec.max_batch_rows = 1024;
	d.spec.expected_groups = 100;
	d.spec.max_probe_buckets = 1;
	d.spec.load_factor = 0.95f;
	memset(&condition, 0, sizeof(condition));
	condition.comparison = RHH_LESS;
	/* what all groups have more than, but some of their parts have not */
	condition.low = 40000 / n_groups;
	condition.except_state = -1;
	options.conditions = &condition;
	options.n_conditions = 1;
	snprintf(where, sizeof(where), "%u threads, %llu groups", threads, (unsigned long long) n_groups);
	check_table(ctx, where, &d, 80000, &options, &stats);
	return stats.orphans;
}

void
case_conditions_orphans(context *ctx)
{
	static const uint64_t n_groups[] = {300, 700, 1500, 2500};
	uint64_t	n_orphans = 0;

	if (ctx->device->info.kind != RHH_KIND_CPU)
	{
		if (option_divisor <= 8)
			(void) check_orphans(ctx, 0, n_groups[1]);
		return;
	}
	for (uint32_t threads = 2; threads <= 5; threads++)
	{
		device		device;
		context		inner;

		if (!open_with_threads(ctx, threads, &device, &inner))
			return;
		for (size_t i = 0; i < 8 * LENGTH_OF(n_groups) && inner.why[0] == '\0'; i++, inner.seed++)
			n_orphans += check_orphans(&inner, threads, n_groups[i % LENGTH_OF(n_groups)]);
		close_with_threads(ctx, &inner);
	}
	if (n_orphans == 0)
		fault(ctx, "", "all local groups found room: the case tests nothing");
}

void
case_conditions_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_group_condition conditions[RHH_MAX_CONDITIONS + 1];
	rhh_map    *table;
	rhh_error	err;
	def			d;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 10, 0);
	def_state(&d, RHH_SUM_I128, def_column(&d, 8, GEN_SMALL, 0, 0), -1);
	def_state(&d, RHH_SUM_F64, def_column(&d, 8, GEN_FLOAT, 0, 0), -1);
	d.spec.max_batch_bytes = 1 << 20;
	if (ops->map_create(ctx->device->dev, &d.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
#define INVALID(n, change, message) \
	do { \
		memset(conditions, 0, sizeof(conditions)); \
		conditions[0].comparison = RHH_LESS; \
		conditions[0].except_state = -1; \
		change; \
		expect_error(ctx, #change, ops->map_filter(table, conditions, n, &err), RHH_INVALID, &err, message); \
	} while (0)
	INVALID(RHH_MAX_CONDITIONS + 1, (void) 0, "groups cannot have 5 conditions");
	INVALID(1, conditions[0].comparison = 0, "condition 0 compares nothing that there is");
	INVALID(1, conditions[0].comparison = 7, "condition 0 compares nothing that there is");
	INVALID(1, conditions[0].state = 1, "condition 0 compares nothing that there is");
	INVALID(1, conditions[0].state = 2, "condition 0 compares nothing that there is");
	INVALID(1, conditions[0].except_state = 0, "condition 0 excepts nothing that there is");
	INVALID(1, conditions[0].except_state = 2, "condition 0 excepts nothing that there is");
#undef INVALID
	ops->map_destroy(table);
}
