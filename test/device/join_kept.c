/*
 * join_kept.c
 *		Maps that keep what comes out of joins, to be the build side of others.
 *
 * These are cases of join.c and others once more, with context.keeps_output set: then check_plan()
 * has the output kept.  All of its rows come out of a right antijoin with what is kept, whose probe side has
 * one row, and no match; and the table groups them as if they had come out of the plan's joins.
 */
#include "join_plan.h"

/* ---------- what should be kept ---------- */

/* Writes the columns of a row from the words of its group, of which they are all keys. */
static void
put_row(data *rows, uint64_t row, const uint64_t *words)
{
	const rhh_map_spec *spec = &rows->d->spec;

	for (uint32_t c = 0, w = 1; c < spec->n_columns; c++)
	{
		const bool	wide = spec->column_bytes[c] == 16;

		rows->nulls[c][row] = words[0] >> c & 1;
		put_value(rows, c, row, words[w], wide ? words[w + 1] : 0);
		w += wide ? 2 : 1;
	}
}

/* The output of joins, as rows of the columns of d.  *n_bad becomes the number of rows that are bad. */
static data *
output_rows(const joined *joined, const data *probe, const def *d, uint64_t *n_bad)
{
	static def	distinct;		/* too large for the stack */
	struct joined grouped = *joined;
	data	   *rows = need(sizeof(*rows));
	uint64_t	n_rows[RHH_MAX_JOINS];
	uint64_t	n_dropped;
	uint64_t	n_bad_candidates;
	map		   *groups;
	uint64_t	n = 0;

	distinct = *d;
	distinct.spec.n_keys = d->spec.n_columns;
	for (uint32_t c = 0; c < d->spec.n_columns; c++)
		distinct.spec.key_column[c] = (uint8_t) c;
	distinct.spec.n_states = 1;
	distinct.spec.states[0] = (rhh_state_spec){.op = RHH_COUNT, .arg_column = -1, .filter_column = -1};
	grouped.d = &distinct;
	groups = map_new(&distinct.spec);
	*n_bad = join_expect(groups, &grouped, probe, n_rows, &n_dropped, &n_bad_candidates);

	rows->d = d;
	for (uint32_t g = 0; g < groups->n_groups; g++)
		rows->n_rows += map_group(groups, g)[groups->key_words];
	for (uint32_t c = 0; c < d->spec.n_columns; c++)
	{
		rows->values[c] = need(rows->n_rows * d->spec.column_bytes[c]);
		rows->nulls[c] = need(rows->n_rows);
	}
	for (uint32_t g = 0; g < groups->n_groups; g++)
	{
		const uint64_t *words = map_group(groups, g);

		for (uint64_t i = 0; i < words[groups->key_words]; i++)
			put_row(rows, n++, words);
	}
	map_free(groups);
	return rows;
}

/* ---------- checking a plan ---------- */

/* A map that keeps all columns of a plan's table, by the first one. */
static void
define_kept(def *kept, const plan *p)
{
	*kept = p->table;
	kept->spec.flags = RHH_KEEP_ROWS | RHH_KEEP_UNMATCHED | RHH_WANT_PROBE_STATS;
	kept->spec.n_states = 0;
	kept->spec.n_keys = 1;
	kept->spec.key_column[0] = 0;
	kept->spec.memory_limit_bytes = 0;
	kept->spec.max_probe_buckets = 64;
}

/* Has the table group rows that are kept, and are to be these. */
static void
check_rows(context *ctx, const char *where, const plan *p, rhh_map *map, const data *rows)
{
	static joined all;			/* too large for the stack, as are these */
	static def	nothing;
	static run	run;
	run_options options = default_options;
	data	   *probe;

	def_init(&nothing);
	(void) def_column(&nothing, rows->d->spec.column_bytes[0], GEN_CUSTOM, 0, 256);
	probe = make_data(&nothing, 1, ctx->seed++);
	memset(&all, 0, sizeof(all));
	all.d = &p->table;
	all.float_states = p->float_states;
	all.builds[0] = rows;
	all.spec.n_columns = 1;
	all.spec.column_bytes[0] = rows->d->spec.column_bytes[0];
	all.spec.n_joins = 1;
	all.spec.joins[0].build = map;
	all.spec.joins[0].kind = RHH_JOIN_RIGHT_ANTI;
	for (uint32_t c = 0; c < p->table.spec.n_columns; c++)
		all.spec.column[c] = (uint16_t) (1 + c);
	options.joined = &all;
	run_start(&run, ctx->device, probe, &options, ctx->device->pool, ctx->device->pool_bytes);
	(void) drive(ctx->device, &run, 1);
	run_check(&run);
	fault(ctx, where, run.why);
	run_end(&run);
	free_data(probe);
}

void
check_kept_output(context *ctx, const char *where, const plan *p, const sides *sides,
				  const data *probe, const run_options *options, rhh_map_stats *stats)
{
	static joined joined;
	static def	kept;
	static run	run;
	run_options with = *options;
	data	   *rows;
	uint64_t	n_bad;

	/* in the reference all columns are keys */
	if (p->table.spec.n_columns > RHH_MAX_KEYS)
		return;
	define_kept(&kept, p);
	joined = sides->joined;
	joined.d = &kept;
	with.joined = &joined;
	with.min_failures = 0;
	rows = output_rows(&joined, probe, &kept, &n_bad);
	run_start(&run, ctx->device, probe, &with, ctx->device->pool, ctx->device->pool_bytes);
	(void) drive(ctx->device, &run, 1);
	fault(ctx, where, run.why);
	*stats = run.stats;
	/* how many are kept before the first bad one nobody knows */
	if (n_bad > 0)
		stats->rows = rows->n_rows - n_bad;
	if (run.cancelled || ctx->why[0] != '\0')
		;
	else if (n_bad > 0 ? run.n_refused == 0 : run.n_refused > 0)
		fault(ctx, where, "the device does not say rightly whether rows are missing");
	else if (n_bad == 0 && run.stats.rows != rows->n_rows)
		fault(ctx, where, "not all rows that come out, or too many, were kept");
	else if (n_bad == 0)
		check_rows(ctx, where, p, run.table, rows);
	run_end(&run);
	free_data(rows);
}

/* ---------- cases ---------- */

static void
keeping(context *ctx, void (*test)(context *ctx))
{
	char		why[sizeof(ctx->why)];

	if (ctx->why[0] != '\0')
		return;
	ctx->keeps_output = true;
	test(ctx);
	ctx->keeps_output = false;
	memcpy(why, ctx->why, sizeof(why));
	ctx->why[0] = '\0';
	fault(ctx, "kept", why);
}

/* All kinds of joins, of keys and of columns. */
void
case_join_kept(context *ctx)
{
	keeping(ctx, case_join_kinds);
	keeping(ctx, case_join_columns);
	keeping(ctx, case_join_nulls);
	keeping(ctx, case_join_empty);
}

/* Several joins, and rows that come in many pieces. */
void
case_join_kept_chain(context *ctx)
{
	uint32_t	n = 0;

	if (!left_out(&n))
		keeping(ctx, case_join_several);
	if (!left_out(&n))
		keeping(ctx, case_join_fan_out);
	if (!left_out(&n))
		keeping(ctx, case_join_batches);
	if (!left_out(&n))
		keeping(ctx, case_join_unmatched);
}

/* Programs, whose rows may be bad, and conditions. */
void
case_join_kept_program(context *ctx)
{
	uint32_t	n = 0;

	if (!left_out(&n))
		keeping(ctx, case_join_program_filter);
	if (!left_out(&n))
		keeping(ctx, case_join_program_bad);
	if (!left_out(&n))
		keeping(ctx, case_join_condition_kinds);
}

/*
 * A map that has no memory for all rows: it says so, no row comes back, and it may be given up at any
 * time.
 */
void
case_join_kept_refused(context *ctx)
{
	uint32_t	n_refused = 0;

	for (uint64_t kb = 64; kb <= 16384; kb *= 2)
		for (int fan_out = 0; fan_out < 2; fan_out++)
		{
			static joined joined;
			static sides sides;
			static def	kept;
			static run	run;
			run_options options = default_options;
			uint64_t	n = rows(60000);
			uint16_t	key;
			rhh_error	err;
			plan		p;

			plan_init(&p);
			key = probe_column(&p, 4, GEN_CUSTOM, n, 5);
			(void) probe_column(&p, 8, GEN_EXTREME, 0, 0);
			(void) plan_join(&p, RHH_JOIN_LEFT, fan_out ? 3 * n : n, fan_out ? 0 : UNIQUE);
			(void) join_key(&p, key, 4, n, 0);
			table_key(&p, key);
			table_states(&p, 1);
			p.table.spec.max_batch_rows = 4096;
			if (!sides_start(ctx, "build side", &sides, &p))
			{
				sides_end(&sides);
				return;
			}
			define_kept(&kept, &p);
			kept.spec.memory_limit_bytes = kb << 10;
			joined = sides.joined;
			joined.d = &kept;
			options.joined = &joined;
			options.finish_may_fail = true;
			/* not all devices can have a map with so little, or joins before it */
			if (ctx->device->ops->map_create(ctx->device->dev, &kept.spec, &run.table, &err) == RHH_OK)
			{
				const bool	has_joins = ctx->device->ops->map_join(run.table, &joined.spec, &err) == RHH_OK;
				data	   *probe;

				ctx->device->ops->map_destroy(run.table);
				if (has_joins)
				{
					probe = make_data(&p.probe, 2 * n, ctx->seed++);
					run_start(&run, ctx->device, probe, &options, ctx->device->pool,
							  ctx->device->pool_bytes);
					(void) drive(ctx->device, &run, 1);
					fault(ctx, "refused", run.why);
					n_refused += run.n_refused > 0;
					if (run.n_refused == 0 && run.finish_status == RHH_OK &&
						run.stats.rows != run.stats.joined_rows[0])
						fault(ctx, "refused", "rows are missing, and the device does not say so");
					run_end(&run);
					free_data(probe);
				}
			}
			sides_end(&sides);
		}
	if (ctx->why[0] == '\0' && n_refused == 0)
		fault(ctx, "refused", "no map has refused a row: the case tests nothing");
}
