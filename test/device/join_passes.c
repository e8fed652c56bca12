/*
 * join_passes.c
 *		Joins whose build side comes in parts, one pass over the probe side for each.
 *
 * These are the cases of join.c and join_condition.c once more, with context.n_parts set: then
 * check_plan() keeps one of the build sides in parts.  What comes out in all passes together has
 * to be what the reference has for the whole build side.
 */
#include "join_plan.h"

static void
with_parts(context *ctx, uint32_t n_parts, void (*test)(context *ctx))
{
	char		where[32];
	char		why[sizeof(ctx->why)];

	if (ctx->why[0] != '\0')
		return;
	ctx->n_parts = n_parts;
	test(ctx);
	ctx->n_parts = 0;
	if (ctx->why[0] == '\0')
		return;
	snprintf(where, sizeof(where), "%u parts", n_parts);
	memcpy(why, ctx->why, sizeof(why));
	ctx->why[0] = '\0';
	fault(ctx, where, why);
}

/* The same of a case that takes long. */
static void
some_with_parts(context *ctx, uint32_t *n, uint32_t n_parts, void (*test)(context *ctx))
{
	if (!left_out(n))
		with_parts(ctx, n_parts, test);
}

/* What the checks say of parts, and when other joins may come. */
static void
check_rules(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_map    *table;
	rhh_error	err;
	plan		p;

	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	(void) plan_join(&p, RHH_JOIN_INNER, 50, UNIQUE);
	(void) join_key(&p, 0, 4, 100, 0);
	table_key(&p, 0);
	p.builds[0].spec.max_batch_bytes = p.table.spec.max_batch_bytes = 1 << 20;
#define INVALID(parts, number, message) \
	do { \
		rhh_map_spec spec = p.builds[0].spec; \
		spec.n_parts = parts; \
		spec.part = number; \
		expect_error(ctx, #parts " parts", ops->map_create(ctx->device->dev, &spec, &table, &err), \
					 RHH_INVALID, &err, message); \
	} while (0)
	INVALID(3, 0, "a map cannot have 3 parts");
	INVALID(2 * RHH_MAX_PARTS, 0, "a map cannot have 128 parts");
	INVALID(4, 4, "there is no part 4 of 4");
	INVALID(0, 1, "there is no part 1 of 0");
	p.builds[0].spec.flags = 0;
	INVALID(2, 0, "a map that keeps no rows has no parts");
#undef INVALID
}

/* All kinds of joins and of keys. */
void
case_join_passes(context *ctx)
{
	check_rules(ctx);
	with_parts(ctx, 1, case_join_kinds);
	with_parts(ctx, 2, case_join_kinds);
	with_parts(ctx, 8, case_join_kinds);
	with_parts(ctx, 4, case_join_keys);
	with_parts(ctx, 4, case_join_columns);
	with_parts(ctx, 2, case_join_dense);
	with_parts(ctx, 4, case_join_nulls);
	with_parts(ctx, 2, case_join_empty);
	with_parts(ctx, 2, case_join_collisions);
}

/* Joins before and behind the one that is split. */
void
case_join_passes_chain(context *ctx)
{
	uint32_t	n = 0;

	some_with_parts(ctx, &n, 2, case_join_several);
	some_with_parts(ctx, &n, 4, case_join_fan_out);
	some_with_parts(ctx, &n, 8, case_join_batches);
}

void
case_join_passes_condition(context *ctx)
{
	uint32_t	n = 0;

	some_with_parts(ctx, &n, 2, case_join_condition_kinds);
	some_with_parts(ctx, &n, 4, case_join_condition_several);
	some_with_parts(ctx, &n, 2, case_join_condition_fan_out);
	some_with_parts(ctx, &n, 2, case_join_condition_unmatched);
	some_with_parts(ctx, &n, 2, case_join_condition_bad);
}

/* Rows that the device hands back, in any pass, of the output or of the build side. */
void
case_join_passes_refused(context *ctx)
{
	uint32_t	n = 0;

	some_with_parts(ctx, &n, 2, case_join_refused);
	some_with_parts(ctx, &n, 4, case_join_returned);
	some_with_parts(ctx, &n, 4, case_join_build_refused);
	some_with_parts(ctx, &n, 2, case_join_condition_refused);
	some_with_parts(ctx, &n, 2, case_join_condition_unmatched_refused);
	some_with_parts(ctx, &n, 2, case_join_program_bad);
}
