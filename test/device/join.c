/*
 * join.c
 *		Maps that keep rows, and tables whose rows are the output of joins with them.
 *
 * A plan describes a case (join_plan.h).  check_plan() fills the build sides, lets the
 * device join and group, and compares the groups with those of the reference
 * (join_reference.c).
 *
 * Rows that a build side has refused are not in it, for the reference either.  Rows of
 * the output that the device has refused were aggregated by the run, so a row that comes
 * out twice, or not at all, is seen in the groups' counts and sums.
 */
#include "join_plan.h"

/* ---------- what a case describes ---------- */

static bool
is_key(const rhh_map_spec *spec, uint32_t c)
{
	for (uint32_t k = 0; k < spec->n_keys; k++)
		if (spec->key_column[k] == c)
			return true;
	return false;
}

/* Of keys that lie close together: the first of them, as in the index of such keys. */
static bool keys_are_dense;
static uint64_t first_dense_key;

/* The values of key columns, the same for all sides. */
static void
put_key(data *data, uint32_t c, uint64_t row, uint64_t x)
{
	put_value(data, c, row, keys_are_dense ? first_dense_key + x : x * 0x9e3779b97f4a7c15ULL,
			  rhh_mix64(x));
}

/* Columns with GEN_CUSTOM have one of gen.n values. */
void
custom_keys(data *data, uint64_t row, rng *r, uint64_t param)
{
	bool		hot = below(r, 256) < (param & 0xff);
	uint64_t	digits = row;

	for (uint32_t c = 0; c < data->d->spec.n_columns; c++)
	{
		uint64_t	n = data->d->gens[c].n;
		uint64_t	x = below(r, n > 0 ? n : 1);

		if (data->d->gens[c].kind != GEN_CUSTOM)
			continue;
		if ((param & UNIQUE) != 0 && is_key(&data->d->spec, c))
		{
			x = digits % n;
			digits /= n;
		}
		put_key(data, c, row, hot ? 0 : x);
	}
}

void
plan_init(plan *p)
{
	memset(p, 0, sizeof(*p));
	def_init(&p->probe);
	def_init(&p->table);
	p->probe.custom = custom_keys;
}

/* A column of the probe side; returns its number. */
uint16_t
probe_column(plan *p, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256)
{
	uint32_t	c = (uint32_t) def_column(&p->probe, bytes, kind, n, nulls_of_256);

	p->spec.column_bytes[c] = (uint8_t) bytes;
	p->spec.n_columns = c + 1;
	return (uint16_t) c;
}

/* A join whose build side has so many rows; its columns follow. */
def *
plan_join(plan *p, rhh_join_kind kind, uint64_t n_rows, uint64_t param)
{
	uint32_t	j = p->spec.n_joins++;
	def		   *d = &p->builds[j];

	def_init(d);
	d->custom = custom_keys;
	d->param = param;
	d->spec.flags = RHH_KEEP_ROWS | RHH_WANT_PROBE_STATS;
	if (rhh_keeps_build((uint8_t) kind))
		d->spec.flags |= RHH_KEEP_UNMATCHED;
	d->spec.expected_groups = n_rows;
	p->build_rows[j] = n_rows;
	p->spec.joins[j].kind = (uint8_t) kind;
	return d;
}

/* The number of the next column of the last join's build side. */
static uint16_t
next_column(const plan *p)
{
	uint32_t	c = p->spec.n_columns;

	for (uint32_t j = 0; j < p->spec.n_joins; j++)
		c += p->builds[j].spec.n_columns;
	return (uint16_t) c;
}

/* A key column of the last join, compared with that column; returns its number. */
uint16_t
join_key(plan *p, uint16_t with, uint32_t bytes, uint64_t n, uint32_t nulls_of_256)
{
	uint16_t	c = next_column(p);
	uint32_t	j = p->spec.n_joins - 1;

	p->spec.joins[j].key_column[p->builds[j].spec.n_keys] = with;
	(void) def_key(&p->builds[j], bytes, GEN_CUSTOM, n, nulls_of_256);
	return c;
}

/* Another column of the last join's build side. */
uint16_t
join_column(plan *p, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256)
{
	uint16_t	c = next_column(p);

	(void) def_column(&p->builds[p->spec.n_joins - 1], bytes, kind, n, nulls_of_256);
	return c;
}

static uint32_t
bytes_of(const plan *p, uint16_t column)
{
	uint32_t	c = column;

	if (c < p->spec.n_columns)
		return p->spec.column_bytes[c];
	c -= p->spec.n_columns;
	for (uint32_t j = 0;; j++)
	{
		if (c < p->builds[j].spec.n_columns)
			return p->builds[j].spec.column_bytes[c];
		c -= p->builds[j].spec.n_columns;
	}
}

/* A column of the table, of the output's; returns its number. */
int
table_column(plan *p, uint16_t column)
{
	int			c = def_column(&p->table, bytes_of(p, column), GEN_CUSTOM, 0, 0);

	p->spec.column[c] = column;
	return c;
}

void
table_key(plan *p, uint16_t column)
{
	p->table.spec.key_column[p->table.spec.n_keys++] = (uint8_t) table_column(p, column);
}

void
table_state(plan *p, rhh_state_op op, uint16_t column)
{
	def_state(&p->table, op, table_column(p, column), -1);
}

/* count(*), and the sum and the number of values of a column. */
void
table_states(plan *p, uint16_t column)
{
	int			c = table_column(p, column);

	def_state(&p->table, RHH_COUNT, -1, -1);
	def_state(&p->table, RHH_SUM_I64, c, -1);
	def_state(&p->table, RHH_COUNT, c, -1);
}

/* ---------- running a plan ---------- */

/* Maps that were finished with RHH_NO_MEMORY cannot be probed. */
static void
check_not_probed(context *ctx, const char *where, const sides *sides)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_map    *table;
	rhh_error	err;

	if (ops->map_create(ctx->device->dev, &sides->joined.d->spec, &table, &err) != RHH_OK)
	{
		fault(ctx, where, err.message);
		return;
	}
	if (ops->map_join(table, &sides->joined.spec, &err) != RHH_INVALID)
		fault(ctx, where, "a map was joined that has no memory to be probed");
	ops->map_destroy(table);
}

/*
 * The build side that comes in parts: any one, as long as no other join returns rows without a
 * match, because which rows these are is known after all passes only.
 */
static uint32_t
choose_split(const context *ctx, const plan *p)
{
	uint32_t	split;

	if (ctx->n_parts == 0)
		return MAX_BUILDS;
	split = (uint32_t) (ctx->seed % p->spec.n_joins);
	for (uint32_t j = 0; j < p->spec.n_joins; j++)
		if (rhh_returns_unmatched(p->spec.joins[j].kind))
			split = j;
	for (uint32_t j = 0; j < p->spec.n_joins; j++)
		if (j != split && rhh_returns_unmatched(p->spec.joins[j].kind))
			return MAX_BUILDS;
	return split;
}

/* Fills build side j, whose data is there, and leaves what is wrong in ctx->why. */
static void
fill_side(context *ctx, const char *where, sides *sides, uint32_t j, const run_options *options)
{
	run		   *run = &sides->runs[j];

	run_start(run, ctx->device, sides->data[j], options, ctx->device->pool,
			  ctx->device->pool_bytes);
	(void) drive(ctx->device, run, 1);
	run_check(run);
	fault(ctx, where, run->why);
	sides->joined.spec.joins[j].build = run->table;
	sides->joined.missing[j] = run->missing;
	if (j != sides->split)
		return;
	for (uint64_t i = 0; i < sides->data[j]->n_rows; i++)
		sides->missing[i] |= run->missing[i];
	sides->joined.missing[j] = sides->missing;
}

/* Replaces the part that is there by the next one.  False: it was the last, or there is a fault. */
static bool
next_part(void *arg, rhh_map *table)
{
	sides	   *sides = arg;
	context    *ctx = sides->ctx;
	run		   *run = &sides->runs[sides->split];
	run_options options = run->options;
	rhh_error	err;

	if (sides->part.spec.part + 1 >= sides->part.spec.n_parts || ctx->why[0] != '\0')
		return false;
	/* the table has nothing in flight, so it may go before the next one comes */
	run_end(run);
	sides->part.spec.part++;
	fill_side(ctx, sides->where, sides, sides->split, &options);
	if (ctx->why[0] != '\0' || run->finish_status != RHH_OK)
		fault(ctx, sides->where, "a part could not be finished");
	else if (ctx->device->ops->map_join(table, &sides->joined.spec, &err) != RHH_OK)
		fault(ctx, "map_join", err.message);
	return ctx->why[0] == '\0';
}

/*
 * Fills the build sides; the caller ends them whatever this returns.  False: there is a
 * fault, or a side could not be finished, as the plan allows.
 */
bool
sides_start(context *ctx, const char *where, sides *sides, const plan *p)
{
	memset(sides, 0, sizeof(*sides));
	sides->split = choose_split(ctx, p);
	sides->ctx = ctx;
	sides->where = where;
	sides->joined.d = &p->table;
	sides->joined.spec = p->spec;
	if (p->program.n_ops > 0)
		sides->joined.spec.program = &p->program;
	sides->joined.float_states = p->float_states;
	for (uint32_t j = 0; j < p->spec.n_joins && ctx->why[0] == '\0'; j++)
	{
		run_options options = default_options;

		options.finish_may_fail = p->may_fail;
		if (j == sides->split)
		{
			sides->part = p->builds[j];
			sides->part.spec.n_parts = ctx->n_parts;
			sides->missing = need(p->build_rows[j]);
		}
		sides->data[j] = make_data(j == sides->split ? &sides->part : &p->builds[j],
								   p->build_rows[j], ctx->seed++);
		sides->n++;
		fill_side(ctx, where, sides, j, &options);
		if (p->conditions[j].n_ops > 0)
			sides->joined.spec.joins[j].condition = &p->conditions[j];
		sides->joined.builds[j] = sides->data[j];
	}
	if (ctx->why[0] != '\0')
		return false;
	for (uint32_t j = 0; j < sides->n; j++)
		if (sides->runs[j].finish_status != RHH_OK)
		{
			check_not_probed(ctx, where, sides);
			return false;
		}
	return true;
}

void
sides_end(sides *sides)
{
	for (uint32_t j = 0; j < sides->n; j++)
	{
		run_end(&sides->runs[j]);
		free_data(sides->data[j]);
	}
	free(sides->missing);
}

/* Joins and groups n_rows of the probe side. */
void
check_plan(context *ctx, const char *where, const plan *p, uint64_t n_rows,
		   const run_options *options, rhh_map_stats *stats)
{
	static sides sides;			/* too large for the stack */
	rhh_map_stats own;

	if (stats == NULL)
		stats = &own;
	memset(stats, 0, sizeof(*stats));
	if (ctx->why[0] != '\0')
		return;
	if (sides_start(ctx, where, &sides, p))
	{
		data	   *probe = make_data(&p->probe, n_rows, ctx->seed++);
		run_options with = *options;
		static run	run;

		with.joined = &sides.joined;
		if (sides.split < MAX_BUILDS)
		{
			with.next_pass = next_part;
			with.arg = &sides;
			with.split_join = sides.split;
		}
		if (ctx->keeps_output)
			check_kept_output(ctx, where, p, &sides, probe, &with, stats);
		else
		{
			run_start(&run, ctx->device, probe, &with, ctx->device->pool, ctx->device->pool_bytes);
			(void) drive(ctx->device, &run, 1);
			run_check(&run);
			fault(ctx, where, run.why);
			*stats = run.stats;
			run_end(&run);
		}
		free_data(probe);
	}
	sides_end(&sides);
}

static const struct
{
	rhh_join_kind kind;
	const char *name;
	bool		has_columns;	/* of the build side */
} kinds[] = {
	{RHH_JOIN_INNER, "inner", true},
	{RHH_JOIN_LEFT, "left", true},
	{RHH_JOIN_SEMI, "semi", false},
	{RHH_JOIN_ANTI, "anti", false},
	{RHH_JOIN_RIGHT, "right", true},
	{RHH_JOIN_FULL, "full", true},
	{RHH_JOIN_RIGHT_SEMI, "right semi", true},
	{RHH_JOIN_RIGHT_ANTI, "right anti", true}
};

/* Has what comes out no columns of the probe side? */
static bool
hides_probe(int kind)
{
	return !rhh_has_outer_columns((uint8_t) kinds[kind].kind);
}

/* A join by a key of 4 bytes, grouped by a column of the probe side, if that is there. */
static void
simple_plan(plan *p, int kind, uint64_t domain, uint64_t build_rows, uint64_t param,
			uint32_t nulls_of_256)
{
	uint16_t	key;
	uint16_t	group;
	uint16_t	v;

	plan_init(p);
	key = probe_column(p, 4, GEN_CUSTOM, domain, nulls_of_256);
	group = probe_column(p, 4, GEN_UNIFORM, 50, 20);
	v = probe_column(p, 4, GEN_EXTREME, 0, 30);
	(void) plan_join(p, kinds[kind].kind, build_rows, param);
	(void) join_key(p, key, 4, domain, nulls_of_256);
	if (kinds[kind].has_columns)
		v = join_column(p, 4, GEN_EXTREME, 0, 30);
	if (hides_probe(kind))
		group = join_column(p, 4, GEN_UNIFORM, 50, 20);
	table_key(p, group);
	table_states(p, v);
}

/* ---------- cases ---------- */

/* Every kind of join, with keys that are unique in the build side and with others. */
void
case_join_kinds(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
	{
		uint64_t	n = rows(20000);
		char		where[64];
		plan		p;

		simple_plan(&p, k, 3 * n / 2, n, UNIQUE, 0);
		snprintf(where, sizeof(where), "%s, unique keys", kinds[k].name);
		check_plan(ctx, where, &p, 3 * n, &options, NULL);
		simple_plan(&p, k, n, n, 0, 0);
		snprintf(where, sizeof(where), "%s, duplicate keys", kinds[k].name);
		check_plan(ctx, where, &p, 2 * n, &options, NULL);
		simple_plan(&p, k, n / 20 + 1, n, 0, 0);
		snprintf(where, sizeof(where), "%s, many duplicate keys", kinds[k].name);
		check_plan(ctx, where, &p, n / 4 + 1, &options, NULL);
		/* neither side has many rows */
		simple_plan(&p, k, 3, 2, UNIQUE, 0);
		snprintf(where, sizeof(where), "%s, two rows", kinds[k].name);
		check_plan(ctx, where, &p, 5, &options, NULL);
		simple_plan(&p, k, 1, 1, UNIQUE, 0);
		snprintf(where, sizeof(where), "%s, one row", kinds[k].name);
		check_plan(ctx, where, &p, 1, &options, NULL);
	}
}

/* Keys of all widths, alone and several. */
void
case_join_keys(context *ctx)
{
	static const uint8_t shapes[][6] = {
		{1}, {2}, {4}, {8}, {16}, {1, 1}, {2, 4}, {4, 4}, {4, 8}, {8, 8}, {16, 16},
		{1, 2, 4}, {4, 4, 4, 4, 4}, {1, 2, 4, 8, 16}, {16, 1, 8, 2, 1}
	};
	run_options options = default_options;

	options.no_failures = true;
	for (size_t s = 0; s <= LENGTH_OF(shapes); s++)
		for (int k = 0; k < 2; k++)
		{
			uint64_t	n = rows(10000);
			uint32_t	n_keys = 0;
			uint16_t	keys[RHH_MAX_KEYS];
			uint8_t		bytes[RHH_MAX_KEYS];
			uint16_t	v;
			char		where[64];
			plan		p;

			plan_init(&p);
			if (s < LENGTH_OF(shapes))
				for (; n_keys < 6 && shapes[s][n_keys] != 0; n_keys++)
					bytes[n_keys] = shapes[s][n_keys];
			else				/* as many as there can be */
				for (; n_keys < RHH_MAX_KEYS; n_keys++)
					bytes[n_keys] = n_keys % 3 ? 4 : 16;
			/* of several keys all but the last have three values each */
			for (uint32_t i = 0; i < n_keys; i++)
				keys[i] = probe_column(&p, bytes[i], GEN_CUSTOM, i + 1 < n_keys ? 3 : n, 10);
			v = probe_column(&p, 4, GEN_EXTREME, 0, 0);
			/* rows of 32 keys would hardly ever match */
			p.probe.param = n_keys == RHH_MAX_KEYS ? HOT(20) : 0;
			(void) plan_join(&p, k == 0 ? RHH_JOIN_INNER : RHH_JOIN_ANTI, n,
							 n_keys == RHH_MAX_KEYS ? HOT(2) : UNIQUE);
			for (uint32_t i = 0; i < n_keys; i++)
				(void) join_key(&p, keys[i], bytes[i], i + 1 < n_keys ? 3 : n, 10);
			table_key(&p, keys[0]);
			table_states(&p, v);
			snprintf(where, sizeof(where), "shape %zu, %s", s, k == 0 ? "inner" : "anti");
			check_plan(ctx, where, &p, 2 * n, &options, NULL);
		}
}

/*
 * Keys that are numbers close to each other, so that the CUDA device has an index without
 * hashing; and such that are not any more, because they begin below the half of what their
 * bits can have and end above it.  The probe side has keys below the least and above the
 * greatest, too.
 */
void
case_join_dense(context *ctx)
{
	static const uint8_t shapes[][3] = {{1}, {2}, {4}, {8}, {2, 1}, {4, 4}, {1, 2, 4}};
	static const uint64_t begins[] = {0, -50, 1000, -100000, 0x7fffff00, INT64_MAX - 100};
	run_options options = default_options;
	plan		p;

	options.no_failures = true;
	keys_are_dense = true;
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
		for (size_t b = 0; b < LENGTH_OF(begins); b++)
		{
			uint64_t	n = rows(4000);
			char		where[64];

			first_dense_key = begins[b];
			/* two thirds of the keys, the first of them in order */
			simple_plan(&p, k, 3 * n / 2, n, UNIQUE, b % 2 ? 5 : 0);
			snprintf(where, sizeof(where), "%s, unique keys from %lld on", kinds[k].name,
					 (long long) begins[b]);
			check_plan(ctx, where, &p, 3 * n, &options, NULL);
			simple_plan(&p, k, n, n, b % 2 ? HOT(20) : 0, b % 2 ? 5 : 0);
			snprintf(where, sizeof(where), "%s, duplicate keys from %lld on", kinds[k].name,
					 (long long) begins[b]);
			check_plan(ctx, where, &p, n, &options, NULL);
		}
	for (size_t s = 0; s < LENGTH_OF(shapes); s++)
		for (int nulls = 0; nulls <= 1; nulls++)
			for (int width = 1; width <= 8; width *= 2)
			{
				uint64_t	n = rows(3000);
				uint16_t	keys[3];
				uint32_t	n_keys = 0;
				char		where[64];

				first_dense_key = s % 2 ? -7 : 40;
				plan_init(&p);
				for (; n_keys < 3 && shapes[s][n_keys] != 0; n_keys++)
					keys[n_keys] = probe_column(&p, shapes[s][n_keys], GEN_CUSTOM,
												n_keys > 0 ? 2 : n, 0);
				(void) plan_join(&p, RHH_JOIN_INNER, n, UNIQUE);
				/* columns before the key and behind it, some of which slots can carry */
				table_states(&p, join_column(&p, 2, GEN_EXTREME, 0, 0));
				for (uint32_t i = 0; i < n_keys; i++)
					(void) join_key(&p, keys[i], shapes[s][i], i > 0 ? 2 : n, 0);
				table_states(&p, join_column(&p, (uint32_t) width, GEN_EXTREME, 0,
											 nulls ? 30 : 0));
				table_key(&p, keys[0]);
				snprintf(where, sizeof(where), "shape %zu, %d bytes, %s NULLs", s, width,
						 nulls ? "with" : "without");
				check_plan(ctx, where, &p, 2 * n, &options, NULL);
			}
	keys_are_dense = false;
}

/*
 * Columns of all widths, with and without NULLs, of both sides, as keys and as arguments
 * of the table; also the build side's key, and one column twice.
 */
void
case_join_columns(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int k = 0; k < 2; k++)
		for (uint32_t nulls = 0; nulls <= 60; nulls += 60)
			for (int duplicates = 0; duplicates < 2; duplicates++)
			{
				static const uint32_t widths[] = {1, 2, 4, 8, 16};
				uint64_t	n = rows(8000);
				uint16_t	of_probe[5];
				uint16_t	of_build[5];
				uint16_t	key;
				uint16_t	build_key;
				char		where[64];
				plan		p;

				plan_init(&p);
				for (int i = 0; i < 5; i++)
					of_probe[i] = probe_column(&p, widths[i], i == 4 ? GEN_UNIFORM :
											   GEN_EXTREME, 20, nulls);
				key = probe_column(&p, 8, GEN_CUSTOM, n + n / 2, 0);
				(void) plan_join(&p, kinds[k].kind, n, duplicates ? 0 : UNIQUE);
				/* the key is not the first column */
				of_build[0] = join_column(&p, 1, GEN_EXTREME, 0, nulls);
				build_key = join_key(&p, key, 8, n + n / 2, 0);
				for (int i = 1; i < 5; i++)
					of_build[i] = join_column(&p, widths[i], i == 4 ? GEN_UNIFORM :
											  GEN_EXTREME, 20, nulls);
				table_key(&p, of_probe[4]);
				table_key(&p, of_build[4]);
				for (int i = 0; i < 4; i++)
				{
					table_state(&p, RHH_SUM_I128, of_probe[i]);
					table_state(&p, RHH_SUM_I128, of_build[i]);
					table_state(&p, RHH_COUNT, of_build[i]);
					table_state(&p, RHH_MIN_I64, of_build[i]);
				}
				table_state(&p, RHH_COUNT, of_build[4]);
				table_state(&p, RHH_XOR, build_key);
				table_state(&p, RHH_SUM_I64, key);
				snprintf(where, sizeof(where), "%s, %s NULLs, %s keys", kinds[k].name,
						 nulls > 0 ? "with" : "without",
						 duplicates ? "duplicate" : "unique");
				check_plan(ctx, where, &p, 2 * n, &options, NULL);
			}
}

/* NULL matches nothing, not even NULL; and its row is kept only to be returned without one. */
void
case_join_nulls(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
		for (int n_keys = 1; n_keys <= 3; n_keys++)
			for (uint32_t nulls = 50; nulls <= 256; nulls += 206)
			{
				/* all values of rows with NULLs are among those of rows without */
				uint64_t	n = rows(3000);
				uint16_t	keys[3];
				uint16_t	v;
				char		where[64];
				plan		p;

				plan_init(&p);
				for (int i = 0; i < n_keys; i++)
					keys[i] = probe_column(&p, i == 1 ? 8 : 4, GEN_CUSTOM, i > 0 ? 2 : 300,
										   nulls);
				v = probe_column(&p, 4, GEN_EXTREME, 0, 30);
				(void) plan_join(&p, kinds[k].kind, n, 0);
				for (int i = 0; i < n_keys; i++)
					(void) join_key(&p, keys[i], i == 1 ? 8 : 4, i > 0 ? 2 : 300, nulls);
				if (kinds[k].has_columns)
					v = join_column(&p, 2, GEN_EXTREME, 0, 30);
				table_key(&p, hides_probe(k) ? v : keys[0]);
				table_states(&p, v);
				snprintf(where, sizeof(where), "%s, %d keys, NULL in %u of 256",
						 kinds[k].name, n_keys, nulls);
				check_plan(ctx, where, &p, n, &options, NULL);
			}
}

/* Build sides without a row, or without a row that is kept; and no row to be joined. */
void
case_join_empty(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
	{
		char		where[64];
		plan		p;

		simple_plan(&p, k, 100, 0, 0, 20);
		snprintf(where, sizeof(where), "%s, empty build side", kinds[k].name);
		check_plan(ctx, where, &p, 5000, &options, NULL);
		simple_plan(&p, k, 100, 50, 0, 20);
		snprintf(where, sizeof(where), "%s, empty probe side", kinds[k].name);
		check_plan(ctx, where, &p, 0, &options, NULL);
		if (hides_probe(k))
			continue;
		/* an empty one between others */
		simple_plan(&p, 1, 100, 50, 0, 20);
		(void) plan_join(&p, kinds[k].kind, 0, 0);
		(void) join_key(&p, 0, 4, 100, 0);
		(void) plan_join(&p, RHH_JOIN_INNER, 200, 0);
		(void) join_key(&p, 0, 4, 100, 0);
		table_state(&p, RHH_SUM_I64, join_column(&p, 4, GEN_SMALL, 0, 0));
		snprintf(where, sizeof(where), "%s, an empty one of three", kinds[k].name);
		check_plan(ctx, where, &p, 2000, &options, NULL);
	}
}

/*
 * Joins in a row, of all kinds, whose keys are columns of the probe side and of build
 * sides before, some of which are NULL because a LEFT join has found nothing.
 */
void
case_join_several(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int first = 0; first < (int) LENGTH_OF(kinds); first++)
		for (int second = 0; second < (int) LENGTH_OF(kinds); second++)
			for (int third = -1; third < (int) LENGTH_OF(kinds); third++)
			{
				/* rows are many enough that each kind makes some of its own */
				uint64_t	n = rows(8000);
				uint64_t	domain = n + n / 2;
				uint16_t	key;
				uint16_t	group;
				uint16_t	link;
				uint16_t	other;
				char		where[64];
				plan		p;

				if (!kinds[first].has_columns)
					continue;
				plan_init(&p);
				key = probe_column(&p, 4, GEN_CUSTOM, domain, 5);
				group = probe_column(&p, 2, GEN_UNIFORM, 30, 10);
				(void) plan_join(&p, kinds[first].kind, n, 0);
				(void) join_key(&p, key, 4, domain, 5);
				link = join_column(&p, 8, GEN_CUSTOM, domain, 20);
				other = join_column(&p, 4, GEN_CUSTOM, 4, 20);
				if (hides_probe(first))
				{
					key = join_column(&p, 4, GEN_CUSTOM, domain, 5);
					group = join_column(&p, 2, GEN_UNIFORM, 30, 10);
				}
				(void) plan_join(&p, kinds[second].kind, n, UNIQUE);
				(void) join_key(&p, link, 8, domain, 0);
				if (kinds[second].has_columns)
					other = join_column(&p, 4, GEN_CUSTOM, 4, 20);
				if (hides_probe(second))
				{
					key = join_column(&p, 4, GEN_CUSTOM, domain, 5);
					group = join_column(&p, 2, GEN_UNIFORM, 30, 10);
					link = join_column(&p, 8, GEN_CUSTOM, domain, 20);
				}
				if (third >= 0)
				{
					/* keys of two sides before */
					(void) plan_join(&p, kinds[third].kind, n, 0);
					(void) join_key(&p, other, 4, 4, 0);
					(void) join_key(&p, key, 4, domain, 0);
					if (kinds[third].has_columns)
						table_states(&p, join_column(&p, 4, GEN_EXTREME, 0, 20));
				}
				if (third >= 0 && hides_probe(third))
				{
					group = join_column(&p, 2, GEN_UNIFORM, 30, 10);
					link = join_column(&p, 8, GEN_EXTREME, 0, 20);
					other = link;
				}
				table_key(&p, group);
				table_states(&p, other);
				table_state(&p, RHH_SUM_I128, link);
				snprintf(where, sizeof(where), "%s, %s, %s", kinds[first].name,
						 kinds[second].name, third < 0 ? "no third" : kinds[third].name);
				check_plan(ctx, where, &p, 2 * n, &options, NULL);
			}

	/* as many as there can be; each finds one or two rows for three quarters of all */
	for (int kind = 0; kind < (int) LENGTH_OF(kinds); kind++)
	{
		uint16_t	link;
		plan		p;

		if (!kinds[kind].has_columns)
			continue;
		plan_init(&p);
		link = probe_column(&p, 4, GEN_CUSTOM, 1000, 0);
		for (int j = 0; j < RHH_MAX_JOINS; j++)
		{
			(void) plan_join(&p, kinds[kind].kind, 1200, 0);
			(void) join_key(&p, link, 4, 1000, 0);
			link = join_column(&p, 4, GEN_CUSTOM, 1000, 3);
			if (hides_probe(kind) && j < RHH_MAX_JOINS - 1)
				continue;
			table_state(&p, RHH_SUM_I64, link);
			table_state(&p, RHH_COUNT, link);
		}
		table_key(&p, join_column(&p, 2, GEN_UNIFORM, 10, 0));
		check_plan(ctx, kinds[kind].name, &p, rows(3000), &options, NULL);
	}
}

/*
 * A key that half of the rows of both sides have: the output of a batch is many times as
 * long as a batch may be.  A second join multiplies that, or takes all of it away.
 */
void
case_join_fan_out(context *ctx)
{
	static const uint32_t batch_rows[] = {64, 1000, 65536};

	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
		for (size_t b = 0; b < LENGTH_OF(batch_rows); b++)
		{
			uint64_t	n = enough_rows(2000);
			run_options options = default_options;
			rhh_map_stats stats;
			char		where[64];
			plan		p;

			options.no_failures = true;
			simple_plan(&p, k, 1000, n, HOT(128), 10);
			p.probe.param = HOT(128);
			p.table.spec.max_batch_rows = batch_rows[b];
			snprintf(where, sizeof(where), "%s, batches of %u", kinds[k].name, batch_rows[b]);
			check_plan(ctx, where, &p, n, &options, &stats);
			if (k < 2 && ctx->why[0] == '\0' && stats.joined_rows[0] < n * n / 8)
				fault(ctx, where, "the output is too short for this case");
		}
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
	{
		/* the rows between the joins are many more than come out, or than a batch has */
		uint64_t	n = enough_rows(kinds[k].has_columns ? 320 : 1500);
		run_options options = default_options;
		char		where[64];
		plan		p;

		if (hides_probe(k))
			continue;
		options.no_failures = true;
		simple_plan(&p, 1, 1000, n, HOT(128), 10);
		p.probe.param = HOT(128);
		p.table.spec.max_batch_rows = 500;
		(void) plan_join(&p, kinds[k].kind, 64, HOT(128));
		(void) join_key(&p, 0, 4, 1000, 0);
		snprintf(where, sizeof(where), "left, %s", kinds[k].name);
		check_plan(ctx, where, &p, n, &options, NULL);
	}
}

/* Batches of all sizes, one and many in flight, and build sides of small batches. */
void
case_join_batches(context *ctx)
{
	static const uint32_t sizes[] = {1, 7, 64, 1000, 20000};

	for (size_t s = 0; s < LENGTH_OF(sizes); s++)
		for (uint32_t in_flight = 1; in_flight <= MAX_SLOTS; in_flight += MAX_SLOTS - 1)
		{
			uint64_t	n = rows(sizes[s] < 64 ? 2000 : 60000);
			run_options options = default_options;
			char		where[64];
			plan		p;

			options.no_failures = true;
			options.batch_rows = sizes[s];
			options.in_flight = in_flight;
			options.capacity_groups = 13;
			simple_plan(&p, 0, n, n / 2, 0, 10);
			p.table.spec.max_batch_rows = sizes[s];
			p.builds[0].spec.max_batch_rows = sizes[s];
			/* and estimates that are wrong by any factor */
			p.builds[0].spec.expected_groups = s % 2 ? 0 : UINT64_C(1) << 40;
			snprintf(where, sizeof(where), "batches of %u, %u in flight", sizes[s], in_flight);
			check_plan(ctx, where, &p, n, &options, NULL);
		}
}

/*
 * An outer join that some rows match, and another one by what the first has, of n rows.  Of
 * three ways the first has LEFT joins, the others return rows without a match.
 */
#define REFUSED_WAYS	4

static void
refused_plan(plan *p, uint64_t n, bool fan_out, int way)
{
	static const rhh_join_kind ways[REFUSED_WAYS][2] = {
		{RHH_JOIN_LEFT, RHH_JOIN_LEFT},
		{RHH_JOIN_FULL, RHH_JOIN_LEFT},
		{RHH_JOIN_RIGHT_ANTI, RHH_JOIN_LEFT},
		{RHH_JOIN_RIGHT, RHH_JOIN_FULL}
	};
	const bool	hides = !rhh_has_outer_columns((uint8_t) ways[way][0]);
	uint64_t	n_rows = fan_out ? n / 4 : n / 2;
	uint64_t	domain = n / 2 + (way > 0 ? n / 8 : 0);
	uint16_t	key;
	uint16_t	group;
	uint16_t	build_group;
	uint16_t	v;

	/* so that many rows come out although only those do that nothing matches */
	if (hides)
	{
		n_rows = 2 * n;
		domain = 4 * n;
	}
	plan_init(p);
	key = probe_column(p, 4, GEN_CUSTOM, n / 2, 5);
	group = probe_column(p, 4, GEN_UNIFORM, 1 << 20, 5);
	(void) plan_join(p, ways[way][0], n_rows, fan_out ? HOT(1) : UNIQUE);
	(void) join_key(p, key, 4, domain, way > 0 ? 10 : 0);
	build_group = join_column(p, 8, GEN_CUSTOM, 3, 20);
	if (hides)
	{
		key = join_column(p, 4, GEN_UNIFORM, 1 << 20, 5);
		group = join_column(p, 4, GEN_UNIFORM, 1 << 20, 5);
	}
	/* some rows for each of the three, and NULLs for the others */
	(void) plan_join(p, ways[way][1], way > 0 ? 700 : 7, way > 0 ? UNIQUE : 0);
	(void) join_key(p, build_group, 8, way > 0 ? 700 : 3, 0);
	v = join_column(p, 2, GEN_EXTREME, 0, 60);
	table_key(p, group);
	table_key(p, build_group);
	table_states(p, v);
	table_state(p, RHH_COUNT, key);
	table_state(p, RHH_COUNT, build_group);
	p->probe.param = fan_out ? HOT(1) : 0;
	p->table.spec.max_batch_rows = 4096;
}

/*
 * A table that refuses rows of the output, for lack of memory or of a place near enough:
 * they come back in pieces, and every row just once.
 */
void
case_join_refused(context *ctx)
{
	static const uint32_t rooms[] = {1, 3, 64, 1000, 0};
	uint32_t	n_plans = 0;

	for (int cap = 0; cap < 2; cap++)
		for (size_t i = 0; i < LENGTH_OF(rooms); i++)
			for (int way = 0; way < 2 * REFUSED_WAYS; way++)
			{
				const bool	few = rooms[i] > 0 && rooms[i] < 64;
				/* a row for each event is slow; of the last way few rows come out */
				uint64_t	n = (few ? 4000 : enough_rows(60000)) *
					(way == 2 * REFUSED_WAYS - 1 ? 2 : 1);
				run_options options = default_options;
				char		where[80];
				plan		p;

				refused_plan(&p, n, way % 2 == 1, way / 2);
				if (cap)
				{
					p.table.spec.max_probe_buckets = 1;
					p.table.spec.load_factor = 0.95f;
				}
				p.table.spec.memory_limit_bytes = 256 << 10;
				options.room_rows = rooms[i];
				options.min_failures = 1;
				/* one by one is enough of one way, and three by three of one reason */
				if (rooms[i] == 1 ? way != 1 - cap : rooms[i] == 3 && way >= 2 && !cap)
					continue;
				if (left_out(&n_plans))
					continue;
				snprintf(where, sizeof(where), "%s, room for %u, way %d",
						 cap ? "probe cap" : "memory", rooms[i], way);
				check_plan(ctx, where, &p, n, &options, NULL);
				if (few)
					continue;
				options.min_failures = 0;
				options.cancel_at_batch = 3;
				check_plan(ctx, "cancelled", &p, n, &options, NULL);
			}
}

/* A table that returns the output: all rows come back, and none is in the table. */
void
case_join_returned(context *ctx)
{
	static const uint32_t rooms[] = {1, 13, 64, 1000, 0};

	for (size_t i = 0; i < LENGTH_OF(rooms); i++)
		for (int way = 0; way < 2 * REFUSED_WAYS; way++)
		{
			const bool	fan_out = way % 2 == 1;
			uint64_t	n = rows(rooms[i] > 0 && rooms[i] < 64 ? 3000 : 30000);
			run_options options = default_options;
			rhh_map_stats stats;
			char		where[80];
			plan		p;

			refused_plan(&p, n, fan_out, way / 2);
			/* so that all columns are compared */
			p.table.spec.n_states = 0;
			p.table.spec.n_keys = p.table.spec.n_columns;
			for (uint32_t c = 0; c < p.table.spec.n_columns; c++)
				p.table.spec.key_column[c] = (uint8_t) c;
			p.table.spec.flags |= RHH_RETURN_ROWS;
			options.room_rows = rooms[i];
			options.min_failures = 1;
			snprintf(where, sizeof(where), "room for %u, way %d", rooms[i], way);
			check_plan(ctx, where, &p, n, &options, &stats);
			if (ctx->why[0] == '\0' && (stats.rows != 0 || stats.groups != 0))
				fault(ctx, where, "the table has rows");
			options.min_failures = 0;
			options.cancel_at_batch = 3;
			check_plan(ctx, "cancelled", &p, n, &options, NULL);
		}
}

/*
 * Build sides that have no memory for all of their rows, or none to be finished: what
 * they keep is joined, or they say that they cannot be probed.
 */
void
case_join_build_refused(context *ctx)
{
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
		for (uint64_t kb = 64; kb <= 4096; kb *= 2)
		{
			uint64_t	n = 40000;
			run_options options = default_options;
			char		where[64];
			plan		p;

			options.no_failures = true;
			simple_plan(&p, k, n, n, 0, 20);
			p.builds[0].spec.memory_limit_bytes = kb << 10;
			p.builds[0].spec.max_batch_rows = 1000;
			p.may_fail = true;
			snprintf(where, sizeof(where), "%s, %llu kB", kinds[k].name,
					 (unsigned long long) kb);
			check_plan(ctx, where, &p, rows(20000), &options, NULL);
		}
}

/* Several tables that probe the same maps at the same time. */
void
case_join_shared(context *ctx)
{
	enum
	{
		N = 4
	};
	static run	runs[N];
	static sides sides;
	size_t		share = ctx->device->pool_bytes / N & ~(size_t) 4095;
	uint64_t	n = rows(40000);
	data	   *probe;
	joined		joined[N];
	def			tables[N];
	uint16_t	link;
	plan		p;

	simple_plan(&p, 0, n, n, 0, 10);
	link = join_column(&p, 4, GEN_CUSTOM, 500, 10);
	(void) plan_join(&p, RHH_JOIN_LEFT, 400, 0);
	(void) join_key(&p, link, 4, 500, 0);
	if (sides_start(ctx, "build sides", &sides, &p))
	{
		probe = make_data(&p.probe, n, ctx->seed++);
		for (int i = 0; i < N; i++)
		{
			run_options options = default_options;

			/* the last has the first join alone; its output has no column of the second */
			joined[i] = sides.joined;
			tables[i] = p.table;
			tables[i].spec.max_batch_rows = 5000 + 3000 * (uint32_t) i;
			if (i == 1)
				tables[i].spec.memory_limit_bytes = 256 << 10;
			if (i == 2)
				options.cancel_at_batch = 2;
			if (i == N - 1)
				joined[i].spec.n_joins = 1;
			joined[i].d = &tables[i];
			options.joined = &joined[i];
			run_start(&runs[i], ctx->device, probe, &options,
					  ctx->device->pool + share * (size_t) i, share);
		}
		(void) drive(ctx->device, runs, N);
		for (int i = 0; i < N; i++)
		{
			char		where[32];

			run_check(&runs[i]);
			snprintf(where, sizeof(where), "table %d", i);
			fault(ctx, where, runs[i].why);
			run_end(&runs[i]);
		}
		free_data(probe);
	}
	sides_end(&sides);
}

/* A build side of rows that the device makes of another table's groups. */
void
case_join_fed(context *ctx)
{
	static run	first;
	static run	build;
	static run	run;
	uint64_t	n = rows(60000);
	run_options options = default_options;
	rhh_row_spec rows = {.n_sets = 1};
	data	   *grouped;
	data	   *groups;
	data	   *probe;
	joined		joined;
	def			d;
	plan		p;

	/* groups by a key that is NULL in some rows, with sums of a column */
	def_init(&d);
	d.custom = custom_keys;
	(void) def_key(&d, 4, GEN_CUSTOM, n, 10);
	def_state(&d, RHH_SUM_I64, def_column(&d, 4, GEN_SMALL, 0, 0), -1);
	grouped = make_data(&d, n, ctx->seed++);
	options.no_failures = true;
	run_start(&first, ctx->device, grouped, &options, ctx->device->pool, ctx->device->pool_bytes);
	(void) drive(ctx->device, &first, 1);
	run_check(&first);
	fault(ctx, "groups", first.why);

	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 2 * n, 10);
	(void) plan_join(&p, RHH_JOIN_LEFT, 0, 0);
	table_key(&p, join_key(&p, 0, 4, 2 * n, 10));
	table_states(&p, join_column(&p, 8, GEN_CUSTOM, 0, 0));
	groups = make_data(&p.builds[0], first.outcome->n_groups, ctx->seed++);
	for (uint32_t g = 0; g < first.outcome->n_groups; g++)
	{
		const uint64_t *group = map_group(first.outcome, g);

		groups->nulls[0][g] = group[0] != 0;
		put_value(groups, 0, g, group[1], 0);
		put_value(groups, 1, g, group[2], 0);
	}
	rows.columns[0] = (rhh_row_column){.kind = RHH_ROW_KEY, .part = -1, .word = 1};
	rows.columns[1] = (rhh_row_column){.kind = RHH_ROW_WORD, .part = -1, .word = 2};
	options.source = first.table;
	options.row_spec = &rows;
	options.n_groups = first.outcome->n_groups;
	run_start(&build, ctx->device, groups, &options, ctx->device->pool, ctx->device->pool_bytes);
	if (ctx->why[0] == '\0')
		(void) drive(ctx->device, &build, 1);
	run_check(&build);
	fault(ctx, "build side", build.why);

	joined.d = &p.table;
	joined.spec = p.spec;
	joined.spec.joins[0].build = build.table;
	joined.builds[0] = groups;
	joined.missing[0] = build.missing;
	options = default_options;
	options.joined = &joined;
	options.no_failures = true;
	probe = make_data(&p.probe, n, ctx->seed++);
	if (ctx->why[0] == '\0')
	{
		run_start(&run, ctx->device, probe, &options, ctx->device->pool,
				  ctx->device->pool_bytes);
		(void) drive(ctx->device, &run, 1);
		run_check(&run);
		fault(ctx, "joined", run.why);
		run_end(&run);
	}
	free_data(probe);
	run_end(&build);
	free_data(groups);
	run_end(&first);
	free_data(grouped);
}

/* Sides that no cache holds. */
void
case_join_large(context *ctx)
{
	run_options options = default_options;
	rhh_map_stats stats;
	plan		p;

	options.no_failures = true;
	simple_plan(&p, 0, rows(1500000), rows(1000000), UNIQUE, 1);
	check_plan(ctx, "unique keys", &p, rows(1500000), &options, &stats);
	simple_plan(&p, 1, rows(300000), rows(600000), 0, 1);
	check_plan(ctx, "duplicate keys", &p, rows(600000), &options, NULL);
}

#define KEYS_OF_FINGERPRINT 20

/*
 * Keys of which KEYS_OF_FINGERPRINT each have the same fingerprint in the build side.  There
 * are param >> 32 of them.  A key is column 0, or columns 0 and 1, if both are made here.
 */
static void
colliding_keys(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	x = (param & UNIQUE) != 0 ? row : below(r, param >> 32);
	uint64_t	wanted = (x / KEYS_OF_FINGERPRINT * 0x9e3779b9U) << 32 | x % KEYS_OF_FINGERPRINT;
	rhh_hash	with = hash_of(data->d);

	if (data->d->gens[1].kind == GEN_CUSTOM)
	{
		uint64_t	first = 5 + x % 3;
		uint64_t	hash = rhh_hash_word(&with, rhh_hash_word(&with, RHH_WIDE_START, 0), first);

		put_value(data, 0, row, first, 0);
		put_value(data, 1, row, rhh_unhash64(&with, wanted ^
											 rhh_hash64(&with, hash + RHH_WIDE_START)) ^ hash, 0);
	}
	else
		put_value(data, 0, row, rhh_unhash64(&with, wanted), 0);
}

/* Where fingerprints are equal, keys are compared. */
void
case_join_collisions(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int wide = 0; wide < 2; wide++)
		for (int unique = 0; unique < 2; unique++)
			for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
			{
				uint64_t	n = rows(20000);
				uint16_t	key[2];
				uint16_t	group;
				uint16_t	v;
				char		where[64];
				plan		p;

				plan_init(&p);
				for (int i = 0; i <= wide; i++)
					key[i] = probe_column(&p, 8, GEN_CUSTOM, 0, 0);
				group = probe_column(&p, 4, GEN_UNIFORM, 50, 20);
				v = probe_column(&p, 4, GEN_EXTREME, 0, 30);
				(void) plan_join(&p, kinds[k].kind, n, 2 * n << 32 | (unique ? UNIQUE : 0));
				for (int i = 0; i <= wide; i++)
					(void) join_key(&p, key[i], 8, 0, 0);
				if (kinds[k].has_columns)
					v = join_column(&p, 4, GEN_EXTREME, 0, 30);
				if (hides_probe(k))
					group = v;
				p.builds[0].custom = p.probe.custom = colliding_keys;
				p.probe.param = 2 * n << 32;
				/* the keys are made with the build side's hash */
				p.probe.spec.hash_seed = p.builds[0].spec.hash_seed;
				table_key(&p, group);
				table_states(&p, v);
				snprintf(where, sizeof(where), "%s, %s, %s keys", kinds[k].name,
						 wide ? "wide" : "8 bytes", unique ? "unique" : "duplicate");
				check_plan(ctx, where, &p, 2 * n, &options, NULL);
			}
}

/* ---------- ends that come early ---------- */

/* A key that all rows have, so that the output has the product of both sides' rows. */
static void
endless_plan(plan *p)
{
	simple_plan(p, 0, 1, 65536, 0, 0);
	(void) plan_join(p, RHH_JOIN_INNER, 65536, 0);
	(void) join_key(p, 0, 4, 1, 0);
}

/* Waits for the events of n batches.  False: they do not come, or not as cancelled. */
static void
expect_cancelled(context *ctx, uint32_t n)
{
	double		start_ms = now_ms();

	while (n > 0 && ctx->why[0] == '\0')
	{
		rhh_event	event;
		rhh_error	err;
		uint32_t	n_events = 0;

		if (ctx->device->ops->poll(ctx->device->dev, &event, 1, &n_events, &err) != RHH_OK)
			fault(ctx, "poll", err.message);
		else if (n_events == 0)
			usleep(1000);
		else if (event.status != RHH_CANCELLED)
			fault(ctx, "", "a batch of endless output has ended");
		n -= n_events;
		if (now_ms() - start_ms > 60e3)
			fault(ctx, "", "batches that were cancelled do not end");
	}
}

/* Submits a batch of an endless plan, as often as the device takes it, at most 5 times. */
static uint32_t
submit_endless(context *ctx, const device *device, const sides *sides, const plan *p,
			   rhh_map **table)
{
	const rhh_device_ops *ops = device->ops;
	rhh_map_spec spec = p->table.spec;
	data	   *probe = make_data(&p->probe, spec.max_batch_rows, ctx->seed++);
	uint32_t	n = 0;
	rhh_batch	batch;
	rhh_error	err;

	fill_batch(&batch, device->pool, probe, 0, spec.max_batch_rows);
	batch.refused_rows = spec.max_batch_rows;
	spec.max_batch_bytes = batch.used_bytes;
	free_data(probe);
	if (ops->map_create(device->dev, &spec, table, &err) != RHH_OK)
	{
		*table = NULL;
		fault(ctx, "map_create", err.message);
	}
	else if (ops->map_join(*table, &sides->joined.spec, &err) != RHH_OK)
		fault(ctx, "map_join", err.message);
	else
		/* it has room for all rows, so no two of these write to one place */
		while (n < 5 && ops->map_submit(*table, &batch, n, &err) == RHH_OK)
			n++;
	return n;
}

/* Build sides and tables that are cancelled in the middle of their work. */
void
case_join_cancel(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	static sides sides;
	rhh_error	err;
	plan		p;

	for (int at = 0; at < 10; at += 3)
	{
		run_options options = default_options;
		uint64_t	n = rows(300000);

		simple_plan(&p, 0, n, n, 0, 10);
		options.cancel_at_batch = at;
		check_plan(ctx, "cancelled", &p, n, &options, NULL);
		check_table(ctx, "a build side", &p.builds[0], n, &options, NULL);
		options = default_options;
		options.no_failures = true;
		check_plan(ctx, "after", &p, rows(30000), &options, NULL);
	}

	endless_plan(&p);
	if (sides_start(ctx, "", &sides, &p))
	{
		rhh_map    *table;
		uint32_t	n = submit_endless(ctx, ctx->device, &sides, &p, &table);

		usleep(20000);
		if (table != NULL)
		{
			ops->map_cancel(table);
			expect_cancelled(ctx, n);
			ops->map_destroy(table);
		}
		/* a build side that was cancelled is probed no more */
		ops->map_cancel(sides.runs[0].table);
		if (ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK)
			fault(ctx, "map_create", err.message);
		else
		{
			if (ops->map_join(table, &sides.joined.spec, &err) != RHH_CANCELLED)
				fault(ctx, "", "a cancelled map was joined");
			ops->map_destroy(table);
		}
	}
	sides_end(&sides);
}

/* close() with joins in flight, and with a build side that takes rows. */
void
case_join_close(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;

	for (int i = 0; i < 4; i++)
	{
		rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS, .carry_bytes = CARRY_BYTES};
		device		device = *ctx->device;
		context		inner = {.device = &device, .seed = ctx->seed++};
		static sides sides;
		rhh_map    *table;
		rhh_error	err;
		plan		p;

		if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
		{
			fault(ctx, "open", err.message);
			return;
		}
		endless_plan(&p);
		if (i % 2 == 0 && sides_start(&inner, "", &sides, &p))
			(void) submit_endless(&inner, &device, &sides, &p, &table);
		else if (i % 2 == 1)
		{
			memset(&sides, 0, sizeof(sides));
			sides.data[0] = make_data(&p.builds[0], rows(400000), inner.seed++);
			run_start(&sides.runs[0], &device, sides.data[0], &default_options, device.pool,
					  device.pool_bytes);
			sides.n = 1;
			run_step(&sides.runs[0]);
		}
		ops->close(device.dev);
		fault(ctx, "", inner.why);
		for (uint32_t j = 0; j < sides.n; j++)
			sides.runs[j].table = NULL;
		sides_end(&sides);
	}
}

/* A device with little memory: all of it comes back each time. */
void
case_join_memory_returned(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_device_config config = {.memory_limit_bytes = UINT64_C(64) << 20,
	.cpu_threads = option_threads,.look_rows = LOOK_ROWS,.carry_bytes = CARRY_BYTES};
	device		device = *ctx->device;
	rhh_device_info before = {0},
				after = {0};
	rhh_error	err;

	if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
	{
		fault(ctx, "open", err.message);
		return;
	}
	(void) ops->register_pool(device.dev, device.pool, device.pool_bytes, &err);
	for (int i = 0; i < 20 && ctx->why[0] == '\0'; i++)
	{
		run_options options = default_options;
		context		inner = {.device = &device, .seed = ctx->seed++};
		uint64_t	n = rows(200000);
		plan		p;

		simple_plan(&p, i % 4, n, n, i % 3 ? UNIQUE : 0, 1);
		if (i % 5 == 4)
			options.cancel_at_batch = 2;
		if (i % 7 == 3)
			p.builds[0].spec.memory_limit_bytes = 256 << 10;
		p.may_fail = true;
		check_plan(&inner, "", &p, n, &options, NULL);
		fault(ctx, "", inner.why);
		/* what a device keeps for the next map, it has by then */
		if (i == 9)
			(void) ops->info(device.dev, &before, &err);
	}
	(void) ops->info(device.dev, &after, &err);
	if (before.free_known && after.free_known &&
		after.free_bytes + (UINT64_C(8) << 20) < before.free_bytes)
		fault(ctx, "", "free memory of the device has shrunk");
	ops->close(device.dev);
}

/* ---------- calls that are wrong ---------- */

void
expect_error(context *ctx, const char *what, rhh_status got, rhh_status status,
			 const rhh_error *err, const char *message)
{
	char		why[400];

	if (got == status && strstr(err->message, message) != NULL)
		return;
	snprintf(why, sizeof(why), "status %d \"%s\" instead of %d \"%s\"", got,
			 got == RHH_OK ? "" : err->message, status, message);
	fault(ctx, what, why);
}

/* What is given to map_join() wrongly.  The plan has an inner join and a semi join. */
static void
invalid_joins(context *ctx, const rhh_join_spec *good, rhh_map *table, rhh_map *keeping,
			  rhh_map *finished)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_device_config config = {.cpu_threads = 1};
	rhh_device *other;
	rhh_map    *elsewhere;
	rhh_map_spec spec;
	rhh_error	err;

#define INVALID(what, message) \
	do { \
		rhh_join_spec s = *good; \
		what; \
		expect_error(ctx, #what, ops->map_join(table, &s, &err), RHH_INVALID, &err, message); \
	} while (0)
	INVALID(s.n_joins = RHH_MAX_JOINS + 1, "a map cannot have 9 joins");
	INVALID(s.n_columns = 0, "a batch cannot have 0 columns");
	INVALID(s.n_columns = RHH_MAX_COLUMNS + 1, "a batch cannot have 65 columns");
	INVALID(s.column_bytes[1] = 3, "column 1 cannot have 3 bytes");
	INVALID(s.joins[0].kind = 0, "join 0 has unknown kind 0");
	INVALID(s.joins[1].kind = RHH_JOIN_RIGHT_ANTI + 1, "join 1 has unknown kind 9");
	INVALID(s.joins[0].kind = RHH_JOIN_RIGHT, "the build side of join 0 does not keep all rows");
	INVALID(s.joins[0].kind = RHH_JOIN_RIGHT_ANTI, "the build side of join 0 does not keep all rows");
	/* it needs no rows with NULL in a key; but nothing sees the probe side's columns */
	INVALID(s.joins[0].kind = RHH_JOIN_RIGHT_SEMI; s.joins[1].key_column[0] = 0,
			"key 0 of join 1 is not a column before it");
	INVALID(s.joins[1].kind = RHH_JOIN_RIGHT_SEMI; s.column[0] = 0,
			"column 0 is not one of the joins' output");
	INVALID(s.joins[0].build = table, "not a finished map that keeps rows");
	INVALID(s.joins[1].build = keeping, "not a finished map that keeps rows");
	INVALID(s.joins[1].build = finished, "not a finished map that keeps rows");
	/* columns 0 to 2, of the inner join 3 and 4, of the semi join 5 */
	INVALID(s.joins[0].key_column[0] = 3, "key 0 of join 0 is not a column before it");
	INVALID(s.joins[1].key_column[0] = 5, "key 0 of join 1 is not a column before it");
	INVALID(s.joins[1].key_column[0] = UINT16_MAX, "key 0 of join 1 is not a column before it");
	INVALID(s.joins[0].kind = RHH_JOIN_SEMI; s.joins[1].key_column[0] = 3,
			"key 0 of join 1 is not a column before it");
	INVALID(s.joins[0].key_column[0] = 1, "key 0 of join 0 has columns of different widths");
	INVALID(s.column[0] = 5, "column 0 is not one of the joins' output");
	INVALID(s.column[1] = 6, "column 1 is not one of the joins' output");
	INVALID(s.column[0] = 1, "column 0 has another width than in the joins' output");
#undef INVALID

	/* the same width, so that only the device differs */
	memset(&spec, 0, sizeof(spec));
	spec.n_columns = spec.n_keys = 1;
	spec.column_bytes[0] = 4;
	spec.max_probe_buckets = spec.max_batch_rows = 1;
	spec.load_factor = 0.8f;
	spec.flags = RHH_KEEP_ROWS;
	if (ops->open(ctx->device->info.ordinal, &config, &other, &err) != RHH_OK)
	{
		fault(ctx, "open", err.message);
		return;
	}
	if (ops->map_create(other, &spec, &elsewhere, &err) != RHH_OK)
		fault(ctx, "map_create", err.message);
	else
	{
		rhh_join_spec s = *good;

		s.joins[1].build = elsewhere;
		expect_error(ctx, "another device", ops->map_join(table, &s, &err), RHH_INVALID, &err,
					 "the build side of join 1 is in another device");
	}
	ops->close(other);
}

/* What is submitted wrongly to a map with joins. */
static void
invalid_batches(context *ctx, const plan *p, rhh_map *table)
{
	const rhh_device_ops *ops = ctx->device->ops;
	data	   *probe = make_data(&p->probe, 16, ctx->seed++);
	rhh_batch	batch;
	rhh_error	err;

	fill_batch(&batch, ctx->device->pool, probe, 0, 16);
	free_data(probe);
	batch.refused_rows = 16;
#define INVALID(what, message) \
	do { \
		rhh_batch	b = batch; \
		what; \
		expect_error(ctx, #what, ops->map_submit(table, &b, 0, &err), RHH_INVALID, &err, \
					 message); \
	} while (0)
	INVALID(b.refused_rows = 0, "a batch cannot have room for 0 refused rows");
	INVALID(b.refused_rows = p->table.spec.max_batch_rows + 1, "room for 101 refused rows");
	INVALID(b.refused_offset += 8, "the room for refused rows is not aligned to 64 bytes");
	INVALID(b.n_rows = 0, "a batch cannot have 0 rows");
	INVALID(b.unmatched = 1, "join 0 has no rows without a match");
	INVALID(b.unmatched = 3, "join 2 has no rows without a match");
	/* of the batch's columns, which are not the map's */
	INVALID(b.values_offset[2] = b.used_bytes, "column 2 does not end in the batch");
	INVALID(b.values_offset[2] += 8, "column 2 is not aligned to 64 bytes");
#undef INVALID
}

/* In which order rows without a match are asked for. */
void
case_join_unmatched_order(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	static sides sides;
	rhh_map    *table;
	data	   *probe;
	rhh_batch	batch;
	rhh_batch	ends[4];		/* of joins 1 to 3 */
	rhh_event	event;
	rhh_error	err;
	plan		p;

	plan_init(&p);
	p.table.spec.max_batch_rows = 100;
	p.table.spec.max_batch_bytes = 1 << 20;
	(void) probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	for (int j = 0; j < 3; j++)
	{
		(void) plan_join(&p, j == 1 ? RHH_JOIN_LEFT : RHH_JOIN_FULL, 50, UNIQUE);
		(void) join_key(&p, 0, 4, 100, 0);
	}
	table_key(&p, 0);
	probe = make_data(&p.probe, 16, ctx->seed++);
	fill_batch(&batch, ctx->device->pool, probe, 0, 16);
	free_data(probe);
	batch.refused_rows = 100;
	for (uint32_t j = 1; j <= 3; j++)
	{
		memset(&ends[j], 0, sizeof(ends[j]));
		ends[j].base = batch.base;
		ends[j].refused_offset = batch.refused_offset;
		ends[j].refused_rows = 100;
		ends[j].unmatched = j;
	}
	if (!sides_start(ctx, "build sides", &sides, &p) ||
		ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK)
		fault(ctx, "map_create", err.message);
	else
	{
#define SUBMIT(b) \
	do { \
		if (ops->map_submit(table, b, 0, &err) != RHH_OK) \
			fault(ctx, #b, err.message); \
	} while (0)
#define INVALID(call, message) \
	expect_error(ctx, #call, call, RHH_INVALID, &err, message)
		if (ops->map_join(table, &sides.joined.spec, &err) != RHH_OK)
			fault(ctx, "map_join", err.message);
		SUBMIT(&batch);
		INVALID(ops->map_submit(table, &ends[1], 0, &err), "other batches are in flight");
		INVALID(ops->map_join(table, &sides.joined.spec, &err),
				"batches of the joins before are in flight");
		(void) next_event(ctx, &event);
		INVALID(ops->map_finish(table, &err), "rows without a match have not been asked for");
		INVALID(ops->map_submit(table, &ends[2], 0, &err), "join 1 has no rows without a match");
		INVALID(ops->map_submit(table, &ends[3], 0, &err),
				"rows without a match of join 0 come first");
		ends[1].refused_rows = 0;
		INVALID(ops->map_submit(table, &ends[1], 0, &err), "room for 0 refused rows");
		ends[1].refused_rows = 100;
		SUBMIT(&ends[1]);
		INVALID(ops->map_submit(table, &ends[3], 0, &err), "other batches are in flight");
		(void) next_event(ctx, &event);
		INVALID(ops->map_submit(table, &batch, 0, &err),
				"no batch comes behind rows without a match");
		INVALID(ops->map_finish(table, &err), "rows without a match have not been asked for");
		SUBMIT(&ends[3]);
		(void) next_event(ctx, &event);
		INVALID(ops->map_submit(table, &ends[1], 0, &err),
				"no batch comes behind rows without a match");
		if (ops->map_finish(table, &err) != RHH_OK)
			fault(ctx, "map_finish", err.message);
		else
			(void) next_event(ctx, &event);
#undef INVALID
#undef SUBMIT
		ops->map_destroy(table);
	}
	sides_end(&sides);
}

/*
 * Rows without a match that are few among very many, or all; and a run that is cancelled
 * while they are made.
 */
void
case_join_unmatched(context *ctx)
{
	for (int few = 0; few < 2; few++)
		for (int k = 4; k < (int) LENGTH_OF(kinds); k++)
		{
			uint64_t	n = rows(100000);
			run_options options = default_options;
			char		where[64];
			plan		p;

			/* the domain has few values, so nearly all rows match; or so many that none does */
			options.no_failures = true;
			simple_plan(&p, k, few ? 100 : UINT64_C(1) << 30, n, 0, 1);
			snprintf(where, sizeof(where), "%s, %s", kinds[k].name, few ? "few" : "nearly all");
			check_plan(ctx, where, &p, 600, &options, NULL);
			/* the first batch has all rows of the probe side */
			options.cancel_at_batch = 1;
			options.batch_rows = 600;
			check_plan(ctx, "cancelled", &p, 600, &options, NULL);
		}
}

/*
 * Tables that share the matches of a build side.  The first has all rows of the probe side; the others have
 * none, so what comes out of them is what nothing has matched, or what something has, in the first.
 */
static void
check_shared_matches(context *ctx, int kind, uint64_t domain)
{
	static run	runs[3];
	static sides sides;
	const uint64_t n = rows(60000);
	plan		p;

	simple_plan(&p, kind, domain, n, 0, 10);
	p.builds[0].spec.flags |= RHH_SHARE_MATCHES;
	if (sides_start(ctx, kinds[kind].name, &sides, &p))
	{
		data	   *probe = make_data(&p.probe, 600, ctx->seed++);
		data	   *none = make_data(&p.probe, 0, ctx->seed++);
		run_options options = default_options;

		options.joined = &sides.joined;
		options.no_failures = true;
		for (int i = 0; i < 3; i++)
		{
			char		where[40];

			run_start(&runs[i], ctx->device, i == 0 ? probe : none, &options, ctx->device->pool,
					  ctx->device->pool_bytes);
			(void) drive(ctx->device, &runs[i], 1);
			if (i == 0)
				run_check(&runs[0]);
			snprintf(where, sizeof(where), "%s, table %d", kinds[kind].name, i);
			fault(ctx, where, runs[i].why);
			if (runs[i].outcome->n_groups != runs[0].outcome->n_groups)
				fault(ctx, where, "it has other groups than the first");
			for (uint32_t g = 0; i > 0 && g < runs[0].outcome->n_groups; g++)
			{
				uint64_t   *want = map_group(runs[0].outcome, g);
				uint64_t   *have = map_find(runs[i].outcome, want);

				if (have == NULL ||
					memcmp(have, want, sizeof(uint64_t) * runs[0].outcome->n_words) != 0)
					fault(ctx, where, "a group has other rows than in the first");
			}
		}
		for (int i = 0; i < 3; i++)
			run_end(&runs[i]);
		free_data(probe);
		free_data(none);
	}
	sides_end(&sides);
}

void
case_join_unmatched_shared(context *ctx)
{
	for (int k = 0; k < (int) LENGTH_OF(kinds); k++)
		if (hides_probe(k))
		{
			check_shared_matches(ctx, k, 100);
			check_shared_matches(ctx, k, 1000);
			check_shared_matches(ctx, k, 100000);
		}
}

/* Every rule of rhh_check_join(), and those for batches and for maps that keep rows. */
void
case_join_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	run_options options = default_options;
	static sides sides;
	static run	run;
	rhh_map    *table = NULL;
	rhh_map    *keeping = NULL;
	rhh_event	event;
	rhh_error	err;
	rhh_result	result = {.capacity_groups = 1};
	uint64_t	words[4];
	rhh_row_spec rows = {.n_sets = 1};
	uint8_t		refused[16];
	rhh_feed	feed = {.rows = &rows, .refused = refused};
	rhh_batch	batch;
	data	   *groups;
	def			grouped;
	def			wrong;
	plan		p;

	plan_init(&p);
	p.table.spec.max_batch_rows = 100;
	p.table.spec.max_batch_bytes = 1 << 20;
	(void) probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	(void) probe_column(&p, 2, GEN_UNIFORM, 100, 0);
	(void) probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	(void) plan_join(&p, RHH_JOIN_INNER, 100, 0);
	(void) join_key(&p, 0, 4, 100, 0);
	table_key(&p, join_column(&p, 4, GEN_SMALL, 0, 0));
	table_states(&p, 2);
	(void) plan_join(&p, RHH_JOIN_SEMI, 100, 0);
	(void) join_key(&p, 2, 4, 100, 0);

	wrong = p.builds[0];
	def_state(&wrong, RHH_COUNT, -1, -1);
	expect_error(ctx, "states", ops->map_create(ctx->device->dev, &wrong.spec, &table, &err),
				 RHH_INVALID, &err, "a map that keeps or returns rows has no states");
	wrong = p.builds[0];
	wrong.spec.flags = RHH_KEEP_UNMATCHED;
	expect_error(ctx, "keeps none", ops->map_create(ctx->device->dev, &wrong.spec, &table, &err),
				 RHH_INVALID, &err, "a map that keeps no rows keeps none without a match");
	wrong.spec.flags = RHH_SHARE_MATCHES;
	expect_error(ctx, "shares none", ops->map_create(ctx->device->dev, &wrong.spec, &table, &err),
				 RHH_INVALID, &err, "a map that keeps no rows has no matches to share");
	wrong = p.builds[0];
	wrong.spec.flags |= RHH_RETURN_ROWS;
	expect_error(ctx, "both", ops->map_create(ctx->device->dev, &wrong.spec, &table, &err),
				 RHH_INVALID, &err, "a map cannot keep rows and return them");

	/* a table that is finished, but has groups */
	def_init(&grouped);
	(void) def_key(&grouped, 4, GEN_UNIFORM, 10, 0);
	groups = make_data(&grouped, 100, ctx->seed++);
	run_start(&run, ctx->device, groups, &options, ctx->device->pool, ctx->device->pool_bytes);
	(void) drive(ctx->device, &run, 1);
	fault(ctx, "groups", run.why);
	p.builds[0].spec.max_batch_bytes = 1 << 20;
	if (sides_start(ctx, "build sides", &sides, &p) &&
		ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) == RHH_OK &&
		ops->map_create(ctx->device->dev, &p.builds[0].spec, &keeping, &err) == RHH_OK)
	{
		const rhh_join_spec *good = &sides.joined.spec;

		invalid_joins(ctx, good, table, keeping, run.table);
		/* none of that has spoilt the table */
		if (ops->map_join(table, good, &err) != RHH_OK)
			fault(ctx, "map_join", err.message);
		if (ops->map_join(table, good, &err) != RHH_OK)
			fault(ctx, "map_join, twice", err.message);
		invalid_batches(ctx, &p, table);

		feed.source = run.table;
		expect_error(ctx, "feed", ops->map_feed(table, &feed, 0, &err), RHH_INVALID, &err,
					 "groups are neither joined nor made of rows that are kept");
		feed.source = sides.runs[0].table;
		expect_error(ctx, "feed", ops->map_feed(keeping, &feed, 0, &err), RHH_INVALID, &err,
					 "groups are neither joined nor made of rows that are kept");
		result.words = words;
		expect_error(ctx, "extract", ops->map_extract(sides.runs[0].table, &result, 0, &err),
					 RHH_INVALID, &err, "a map that keeps rows has no groups");
		expect_error(ctx, "seek", ops->map_seek(sides.runs[0].table, 0, &err), RHH_INVALID,
					 &err, "a map that keeps rows has no groups");
		fill_batch(&batch, ctx->device->pool, sides.data[0], 0, 10);
		expect_error(ctx, "finished", ops->map_submit(sides.runs[0].table, &batch, 0, &err),
					 RHH_INVALID, &err, "a map that is being finished takes no rows");

		/* joins that come after the first rows */
		ops->map_destroy(table);
		if (ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK)
		{
			table = NULL;
			fault(ctx, "map_create", err.message);
		}
		else
		{
			batch.values_offset[2] = batch.values_offset[1];
			batch.nulls_offset[2] = batch.nulls_offset[1];
			if (ops->map_submit(table, &batch, 0, &err) != RHH_OK)
				fault(ctx, "map_submit", err.message);
			else
				(void) next_event(ctx, &event);
			expect_error(ctx, "late", ops->map_join(table, good, &err), RHH_INVALID, &err,
						 "joins come before the first rows");
		}
	}
	else
		fault(ctx, "map_create", err.message);
	if (table != NULL)
		ops->map_destroy(table);
	if (keeping != NULL)
		ops->map_destroy(keeping);
	sides_end(&sides);
	run_end(&run);
	free_data(groups);
}
