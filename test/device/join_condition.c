/*
 * join_condition.c
 *		Joins with conditions that say which rows with the same key are matches.
 *
 * The reference evaluates a condition for each pair by itself (join_reference.c).  Whether a
 * row has had a match has to be right where its candidates are in several pieces of output,
 * and where the same batch is submitted again.  So most cases have keys with many candidates,
 * of which none, one, some or all are matches.
 *
 * The rows that right and full joins return without a match come into joins that have conditions,
 * and what a condition decides is what a full join behind it matches.
 *
 * A condition may be bad for some pairs, and devices have to say whether it was for any.  In the
 * reference such a pair is no match, as on the devices, so that the output can be compared.
 */
#include "join_plan.h"

/* ---------- making conditions ---------- */

/* Adds an operation to the condition of the last join; returns its number. */
static uint8_t
add_op(plan *p, uint8_t code, uint8_t a, uint8_t b, uint8_t c)
{
	rhh_program *condition = &p->conditions[p->spec.n_joins - 1];
	uint32_t	i = condition->n_ops++;

	condition->ops[i] = (rhh_op){code, a, b, c};
	condition->has_filter = true;
	condition->filter = (uint8_t) i;	/* the last one, if nobody says something else */
	return (uint8_t) i;
}

/* Reads a column of the joins' so far; only_null: asks whether it is NULL. */
static uint8_t
read_column(plan *p, uint16_t column, bool only_null)
{
	rhh_join   *join = &p->spec.joins[p->spec.n_joins - 1];
	uint32_t	c = join->n_condition_columns++;

	join->condition_column[c] = column;
	return add_op(p, only_null ? RHH_OP_COLUMN_IS_NULL : RHH_OP_COLUMN, (uint8_t) c, 0, 0);
}

/* The same for a column of 16 bytes. */
static uint8_t
read_bytes(plan *p, uint16_t column)
{
	const uint8_t op = read_column(p, column, false);

	p->conditions[p->spec.n_joins - 1].ops[op].code = RHH_OP_COLUMN_OF_BYTES;
	return op;
}

static uint8_t
constant(plan *p, int64_t value, bool null)
{
	rhh_program *condition = &p->conditions[p->spec.n_joins - 1];
	uint32_t	i = condition->n_constants++;

	condition->constants[i][0] = (uint64_t) value;
	condition->null_constant[i] = null;
	return add_op(p, RHH_OP_CONSTANT, (uint8_t) i, 0, 0);
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

#define N_KINDS ((int) LENGTH_OF(kinds))

/* Has what comes out no columns of the sides before? */
static bool
hides_outer(int kind)
{
	return !rhh_has_outer_columns((uint8_t) kinds[kind].kind);
}

/* The conditions of a plan with x of the probe side and y of the build side. */
typedef enum what
{
	BOTH,						/* x < y */
	BOTH_EQUAL,					/* x = y */
	OF_PROBE,					/* x < 50 */
	OF_BUILD,					/* y < 50 */
	BUILD_IS_NULL,				/* y is NULL */
	PROBE_IS_NULL,				/* x is NULL */
	LOGIC,						/* x < y or y is NULL or not y = 20 */
	ALWAYS,
	NEVER,
	UNKNOWN,					/* NULL */
	BYTES,						/* x < y, of two columns of 16 bytes */
	N_CONDITIONS,				/* that are never bad, and others: */
	OFTEN_BAD = N_CONDITIONS,	/* x / (x < y) = x */
	RARELY_BAD,					/* x / (x < y or FEW_BELOW < y) = x */
	HARDLY_BAD,					/* the same with HARDLY_BELOW: otherwise it is true */
	GUARDED,					/* x < y and the first one, which is good then */
	BY_BUILD,					/* x / y < y, of a y that is zero in no row */
	N_ALL_CONDITIONS
} what;

/* Of integers that are spread over 64 bits few are less, and hardly any. */
#define FEW_BELOW	(INT64_MIN / 64 * 61)
#define HARDLY_BELOW (INT64_MIN / 2048 * 2047)

static const char *const names[] = {
	"x < y", "x = y", "x < 50", "y < 50", "y is null", "x is null", "logic", "true", "false", "null",
	"bytes", "often bad", "rarely bad", "hardly bad", "guarded", "x / y < y"
};

static void
add_condition(plan *p, what condition, uint16_t x_column, uint16_t y_column)
{
	uint8_t		x;
	uint8_t		y;

	if (condition == BYTES)
	{
		x = read_bytes(p, x_column);
		(void) add_op(p, RHH_OP_LT_DECIMAL128, x, read_bytes(p, y_column), 0);
		return;
	}
	x = read_column(p, x_column, false);
	y = read_column(p, y_column, false);
	switch (condition)
	{
		case BOTH:
			(void) add_op(p, RHH_OP_LT_INT8, x, y, 0);
			break;
		case BOTH_EQUAL:
			(void) add_op(p, RHH_OP_EQ_INT8, x, y, 0);
			break;
		case OF_PROBE:
			(void) add_op(p, RHH_OP_LT_INT8, x, constant(p, 50, false), 0);
			break;
		case OF_BUILD:
			(void) add_op(p, RHH_OP_LT_INT8, y, constant(p, 50, false), 0);
			break;
		case BUILD_IS_NULL:
			(void) read_column(p, y_column, true);
			break;
		case PROBE_IS_NULL:
			(void) read_column(p, x_column, true);
			break;
		case LOGIC:
			{
				uint8_t		equal = add_op(p, RHH_OP_EQ_INT8, y, constant(p, 20, false), 0);
				uint8_t		either = add_op(p, RHH_OP_OR, add_op(p, RHH_OP_LT_INT8, x, y, 0),
											add_op(p, RHH_OP_IS_NULL, y, 0, 0), 0);

				(void) add_op(p, RHH_OP_OR, either, add_op(p, RHH_OP_NOT, equal, 0, 0), 0);
				break;
			}
		case ALWAYS:
			(void) constant(p, 1, false);
			break;
		case NEVER:
			(void) constant(p, 0, false);
			break;
		case OFTEN_BAD:
		case RARELY_BAD:
		case HARDLY_BAD:
		case GUARDED:
			{
				const int64_t least = condition == RARELY_BAD ? FEW_BELOW : HARDLY_BELOW;
				const uint8_t less = add_op(p, RHH_OP_LT_INT8, x, y, 0);
				const uint8_t divisor = condition == OFTEN_BAD || condition == GUARDED ? less :
					add_op(p, RHH_OP_OR, less,
						   add_op(p, RHH_OP_LT_INT8, constant(p, least, false), y, 0), 0);
				const uint8_t quotient = add_op(p, RHH_OP_DIV_INT8, x, divisor, 0);
				const uint8_t equal = add_op(p, RHH_OP_EQ_INT8, quotient, x, 0);

				if (condition == GUARDED)
					(void) add_op(p, RHH_OP_AND, less, equal, 0);
				break;
			}
		case BY_BUILD:
			(void) add_op(p, RHH_OP_LT_INT8, add_op(p, RHH_OP_DIV_INT8, x, y, 0), y, 0);
			break;
		default:
			(void) constant(p, 1, true);
			break;
	}
}

/*
 * A join by a key of 4 bytes with a condition, grouped by a column of the probe side, or by its
 * key.  x and y are below `range`.  The columns of the probe side are 0, 1 (x) and 2, and those of
 * the build side from 3 on: its key, y, and another one if nothing else can be grouped by.
 */
static void
condition_plan(plan *p, int kind, what condition, uint64_t domain, uint64_t build_rows,
			   uint64_t param, uint64_t range, uint32_t nulls_of_256)
{
	uint16_t	key;
	uint16_t	x;
	uint16_t	y;
	uint16_t	group;
	uint16_t	of_probe;
	uint16_t	of_build;

	plan_init(p);
	key = probe_column(p, 4, GEN_CUSTOM, domain, nulls_of_256);
	x = of_probe = probe_column(p, 2, GEN_UNIFORM, range, nulls_of_256);
	if (condition == BYTES)
		of_probe = probe_column(p, 16, GEN_UNIFORM, range, nulls_of_256);
	group = probe_column(p, 4, GEN_UNIFORM, 1 << 12, 20);
	(void) plan_join(p, kinds[kind].kind, build_rows, param);
	(void) join_key(p, key, 4, domain, nulls_of_256);
	y = of_build = join_column(p, 8, GEN_UNIFORM, range, nulls_of_256);
	if (condition == BYTES)
		of_build = join_column(p, 16, GEN_UNIFORM, range, nulls_of_256);
	add_condition(p, condition, of_probe, of_build);
	if (hides_outer(kind))
	{
		group = join_column(p, 4, GEN_UNIFORM, 1 << 12, 20);
		x = y;
	}
	table_key(p, group);
	table_states(p, kinds[kind].has_columns ? y : x);
	table_state(p, RHH_SUM_I64, x);
}

/* A second join behind that, with a key of the first, and with a condition. */
static void
second_join(plan *p, int first, int second, what condition, uint64_t build_rows, uint64_t param,
			uint64_t domain, uint64_t range)
{
	uint16_t	own;
	uint16_t	y;

	(void) plan_join(p, kinds[second].kind, build_rows, param);
	own = join_key(p, hides_outer(first) ? 3 : 0, 4, domain, 0);
	y = join_column(p, 2, GEN_UNIFORM, range, 10);
	/* of the first join's build side if that is visible */
	add_condition(p, condition, kinds[first].has_columns ? 4 : 1, y);
	if (!hides_outer(second))
		return;
	/* the output has other columns now */
	def_init(&p->table);
	table_key(p, own);
	table_states(p, y);
}

/* ---------- cases ---------- */

/* Every kind of join with every condition, of keys that are unique in the build side and not. */
void
case_join_condition_kinds(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int k = 0; k < N_KINDS; k++)
		for (int c = 0; c < N_CONDITIONS; c++)
		{
			uint64_t	n = rows(8000);
			char		where[80];
			plan		p;

			condition_plan(&p, k, (what) c, 3 * n / 2, n, UNIQUE, 100, 0);
			snprintf(where, sizeof(where), "%s, %s, unique keys", kinds[k].name, names[c]);
			check_plan(ctx, where, &p, 2 * n, &options, NULL);
			condition_plan(&p, k, (what) c, n, n, 0, 100, 20);
			snprintf(where, sizeof(where), "%s, %s, duplicate keys", kinds[k].name, names[c]);
			check_plan(ctx, where, &p, 2 * n, &options, NULL);
			condition_plan(&p, k, (what) c, n / 60 + 1, n, 0, 100, 20);
			snprintf(where, sizeof(where), "%s, %s, many duplicate keys", kinds[k].name, names[c]);
			check_plan(ctx, where, &p, n / 4 + 1, &options, NULL);
			condition_plan(&p, k, (what) c, 1, 1, UNIQUE, 100, 0);
			snprintf(where, sizeof(where), "%s, %s, one row", kinds[k].name, names[c]);
			check_plan(ctx, where, &p, 3, &options, NULL);
		}
}

/* A random operation of the condition that is no column, of booleans and of integers. */
static void
grow(plan *p, rng *r, uint8_t *booleans, uint32_t *n_booleans, const uint8_t *integers,
	 uint32_t n_integers)
{
	const uint8_t a = integers[below(r, n_integers)];
	const uint8_t b = integers[below(r, n_integers)];
	const uint8_t f = *n_booleans > 0 ? booleans[below(r, *n_booleans)] : 0;
	const uint8_t g = *n_booleans > 0 ? booleans[below(r, *n_booleans)] : 0;
	uint8_t		made;

	switch (*n_booleans == 0 ? 0 : below(r, 8))
	{
		case 0:
			made = add_op(p, RHH_OP_LT_INT8, a, b, 0);
			break;
		case 1:
			made = add_op(p, RHH_OP_LE_INT8, a, b, 0);
			break;
		case 2:
			made = add_op(p, RHH_OP_EQ_INT8, a, b, 0);
			break;
		case 3:
			made = add_op(p, RHH_OP_AND, f, g, 0);
			break;
		case 4:
			made = add_op(p, RHH_OP_OR, f, g, 0);
			break;
		case 5:
			made = add_op(p, RHH_OP_NOT, f, 0, 0);
			break;
		case 6:
			made = add_op(p, RHH_OP_IS_NULL, a, 0, 0);
			break;
		default:
			made = add_op(p, RHH_OP_IF, f, g, booleans[below(r, *n_booleans)]);
			break;
	}
	booleans[(*n_booleans)++] = made;
}

/* Of some of the columns, which are the joins' so far. */
static void
random_condition(plan *p, rng *r, const uint16_t *columns, uint32_t n_columns)
{
	uint8_t		integers[8];
	uint8_t		booleans[16];
	uint32_t	n_integers = 0;
	uint32_t	n_booleans = 0;

	for (int i = 0; i < 4; i++)
		integers[n_integers++] = read_column(p, columns[below(r, n_columns)], false);
	/* the newest one is of the join's own build side */
	integers[n_integers++] = read_column(p, columns[n_columns - 1], false);
	integers[n_integers++] = constant(p, (int64_t) below(r, 10), false);
	for (uint32_t n = 2 + (uint32_t) below(r, 6); n > 0; n--)
		grow(p, r, booleans, &n_booleans, integers, n_integers);
}

/*
 * Chains of joins of random kinds, with random conditions of all columns that come before or
 * of the build side, or without one; grouped, and returned.
 */
void
case_join_condition_several(context *ctx)
{
	for (uint32_t round = 0; round < 100; round++)
	{
		run_options options = default_options;
		rng			r = {ctx->seed * 1000 + round};
		uint64_t	n = rows(1000);
		uint32_t	n_joins = 1 + (uint32_t) below(&r, 4);
		uint32_t	n_visible = 0;
		uint16_t	visible[32];
		uint16_t	key;
		char		where[32];
		plan		p;

		plan_init(&p);
		key = probe_column(&p, 4, GEN_CUSTOM, 40, 10);
		visible[n_visible++] = probe_column(&p, 4, GEN_UNIFORM, 10, round % 2 ? 0 : 20);
		visible[n_visible++] = probe_column(&p, 2, GEN_UNIFORM, 10, 20);
		for (uint32_t j = 0; j < n_joins; j++)
		{
			const int	k = (int) below(&r, N_KINDS);
			const bool	unique = below(&r, 3) == 0;
			uint16_t	own;
			uint16_t	next_key;

			(void) plan_join(&p, kinds[k].kind, unique ? 30 : 100, unique ? UNIQUE : 0);
			(void) join_key(&p, key, 4, 40, 5);
			next_key = join_column(&p, 4, GEN_CUSTOM, 40, 10);
			own = join_column(&p, 1, GEN_UNIFORM, 10, round % 3 ? 0 : 20);
			visible[n_visible] = own;
			if (below(&r, 4) > 0)
				random_condition(&p, &r, visible, n_visible + 1);
			if (hides_outer(k))
			{
				visible[0] = own;
				n_visible = 1;
				key = next_key;
			}
			else if (kinds[k].has_columns)
			{
				n_visible++;
				if (below(&r, 2) == 0)
					key = next_key;
			}
		}
		/* what only conditions read is not in the output */
		for (uint32_t i = 0; i < n_visible; i++)
			if (i < 2 || below(&r, 2) == 0)
				table_key(&p, visible[i]);
		p.table.spec.max_batch_rows = round % 5 == 0 ? 64 : 3000;
		if (round % 2 == 0)
			p.table.spec.flags |= RHH_RETURN_ROWS;
		else
		{
			table_states(&p, visible[0]);
			options.no_failures = true;
		}
		options.room_rows = round % 4 == 0 ? 30 : 0;
		snprintf(where, sizeof(where), "round %u", round);
		check_plan(ctx, where, &p, n, &options, NULL);
	}
}

/*
 * A key that half of the rows of both sides have, of which none, hardly any, half, nearly all and
 * all candidates are matches; the candidates of a row are more than a piece has.  Then one more
 * join behind it, and one before.
 */
void
case_join_condition_fan_out(context *ctx)
{
	static const uint32_t batch_rows[] = {64, 1000, 65536};
	static const uint64_t ranges[] = {2, 40, 1000};

	for (int k = 0; k < N_KINDS; k++)
		for (size_t b = 0; b < LENGTH_OF(batch_rows); b++)
			for (size_t i = 0; i < LENGTH_OF(ranges) + 2; i++)
			{
				uint64_t	n = enough_rows(1000);
				run_options options = default_options;
				char		where[80];
				plan		p;

				options.no_failures = true;
				condition_plan(&p, k, i < LENGTH_OF(ranges) ? i == 1 ? BOTH_EQUAL : BOTH :
							   i == LENGTH_OF(ranges) ? NEVER : ALWAYS, 1000, n, HOT(128),
							   i < LENGTH_OF(ranges) ? ranges[i] : 10, 10);
				p.probe.param = HOT(128);
				p.table.spec.max_batch_rows = batch_rows[b];
				snprintf(where, sizeof(where), "%s, batches of %u, condition %zu", kinds[k].name,
						 batch_rows[b], i);
				check_plan(ctx, where, &p, n, &options, NULL);
			}
	for (int first = 0; first < N_KINDS; first++)
		for (int second = 0; second < N_KINDS; second++)
			/* each pair of kinds has some of the conditions, and each of these every kind */
			for (int c = (first + second) % 3; c < BYTES; c += 3)
			{
				uint64_t	n = enough_rows(300);
				run_options options = default_options;
				char		where[80];
				plan		p;

				options.no_failures = true;
				condition_plan(&p, first, BOTH, 1000, n, HOT(128), 20, 10);
				p.probe.param = HOT(128);
				second_join(&p, first, second, (what) c, 64, HOT(128), 1000, 20);
				p.table.spec.max_batch_rows = 500;
				snprintf(where, sizeof(where), "%s, %s, %s", kinds[first].name, kinds[second].name,
						 names[c]);
				check_plan(ctx, where, &p, n, &options, NULL);
			}
}

/* Rows of the output that the table refuses, so that the batch is submitted again and again. */
void
case_join_condition_refused(context *ctx)
{
	static const uint32_t rooms[] = {16, 0};
	uint32_t	n_plans = 0;

	for (int k = 0; k < N_KINDS; k++)
		for (size_t i = 0; i < LENGTH_OF(rooms); i++)
			for (int hot = 0; hot < 2; hot++)
			{
				uint64_t	n = 3000;
				run_options options = default_options;
				char		where[80];
				plan		p;

				if (left_out(&n_plans))
					continue;
				condition_plan(&p, k, BOTH, n / 2, n, hot ? HOT(10) : 0, 40, 10);
				p.probe.param = hot ? HOT(10) : 0;
				/* nearly each row of the probe side is a group */
				table_key(&p, hides_outer(k) ? 3 : 0);
				table_key(&p, hides_outer(k) ? 4 : 1);
				p.table.spec.max_batch_rows = 4096;
				p.table.spec.max_probe_buckets = 1;
				p.table.spec.load_factor = 0.95f;
				p.table.spec.memory_limit_bytes = 256 << 10;
				options.room_rows = rooms[i];
				options.min_failures = 1;
				snprintf(where, sizeof(where), "%s, room for %u, %s", kinds[k].name, rooms[i],
						 hot ? "many candidates" : "few candidates");
				check_plan(ctx, where, &p, n, &options, NULL);
				options.min_failures = 0;
				options.cancel_at_batch = 3;
				check_plan(ctx, "cancelled", &p, n, &options, NULL);
			}
}

/*
 * A table that returns the output of two joins with conditions, in rooms that are much smaller
 * than the candidates of a row.
 */
void
case_join_condition_returned(context *ctx)
{
	static const uint32_t rooms[] = {1, 13, 64, 1000, 0};
	uint32_t	n_plans = 0;

	for (int first = 0; first < N_KINDS; first++)
		for (int second = 0; second < N_KINDS; second++)
			for (size_t i = 0; i < LENGTH_OF(rooms); i++)
				for (int rare = (first + second + (int) i) % 2; rare < 2; rare += 2)
				{
					uint64_t	n = rooms[i] == 1 ? 40 : 250;
					run_options options = default_options;
					rhh_map_stats stats;
					char		where[80];
					plan		p;

					if (left_out(&n_plans))
						continue;
					condition_plan(&p, first, rare ? BOTH_EQUAL : BOTH, n, n, HOT(60), 50, 10);
					p.probe.param = HOT(60);
					second_join(&p, first, second, BOTH, 40, HOT(60), n, 50);
					p.table.spec.n_states = 0;
					p.table.spec.n_keys = p.table.spec.n_columns;
					for (uint32_t c = 0; c < p.table.spec.n_columns; c++)
						p.table.spec.key_column[c] = (uint8_t) c;
					p.table.spec.flags |= RHH_RETURN_ROWS;
					p.table.spec.max_batch_rows = 1000;
					options.room_rows = rooms[i];
					snprintf(where, sizeof(where), "%s, %s, room for %u, %s", kinds[first].name,
							 kinds[second].name, rooms[i], rare ? "few matches" : "many matches");
					check_plan(ctx, where, &p, n, &options, &stats);
					if (ctx->why[0] == '\0' && stats.rows != 0)
						fault(ctx, where, "the table has rows");
				}
}

/* Kinds of joins in a row; 0: it is shorter. */
#define CHAIN_JOINS	3

typedef struct chain
{
	const char *name;
	rhh_join_kind kinds[CHAIN_JOINS];
} chain;

static const chain chains[] = {
	{"right, left", {RHH_JOIN_RIGHT, RHH_JOIN_LEFT}},
	{"left, full", {RHH_JOIN_LEFT, RHH_JOIN_FULL}},
	{"full, anti", {RHH_JOIN_FULL, RHH_JOIN_ANTI}},
	{"full, left, full", {RHH_JOIN_FULL, RHH_JOIN_LEFT, RHH_JOIN_FULL}},
	{"full, semi", {RHH_JOIN_FULL, RHH_JOIN_SEMI}},
	{"right, inner", {RHH_JOIN_RIGHT, RHH_JOIN_INNER}},
	{"inner, right", {RHH_JOIN_INNER, RHH_JOIN_RIGHT}},
	{"semi, full", {RHH_JOIN_SEMI, RHH_JOIN_FULL}},
	{"anti, right", {RHH_JOIN_ANTI, RHH_JOIN_RIGHT}},
	{"full, left, left", {RHH_JOIN_FULL, RHH_JOIN_LEFT, RHH_JOIN_LEFT}},
	{"right, inner, full", {RHH_JOIN_RIGHT, RHH_JOIN_INNER, RHH_JOIN_FULL}},
	{"right, left, semi", {RHH_JOIN_RIGHT, RHH_JOIN_LEFT, RHH_JOIN_SEMI}},
	{"left, full, anti", {RHH_JOIN_LEFT, RHH_JOIN_FULL, RHH_JOIN_ANTI}},
	{"full, semi, right", {RHH_JOIN_FULL, RHH_JOIN_SEMI, RHH_JOIN_RIGHT}},
	{"right, full, left", {RHH_JOIN_RIGHT, RHH_JOIN_FULL, RHH_JOIN_LEFT}},
	{"right semi, left", {RHH_JOIN_RIGHT_SEMI, RHH_JOIN_LEFT}},
	{"left, right anti", {RHH_JOIN_LEFT, RHH_JOIN_RIGHT_ANTI}},
	{"right anti, inner, full", {RHH_JOIN_RIGHT_ANTI, RHH_JOIN_INNER, RHH_JOIN_FULL}},
	{"full, right semi, anti", {RHH_JOIN_FULL, RHH_JOIN_RIGHT_SEMI, RHH_JOIN_ANTI}},
	{"right, right anti, left", {RHH_JOIN_RIGHT, RHH_JOIN_RIGHT_ANTI, RHH_JOIN_LEFT}},
	{"right semi, right semi, right", {RHH_JOIN_RIGHT_SEMI, RHH_JOIN_RIGHT_SEMI, RHH_JOIN_RIGHT}}
};

#define N_LONG_CHAINS 4			/* the case that takes long has the first ones */

/*
 * Joins of a chain.  In rows that the first one returns without a match columns of the probe side
 * are NULL.  In the ways 0 and 3 such a one is the key of the second join, else that of the third;
 * and in the ways 0 and 1 it is x of the second condition.  The others are of build sides before.
 * In the ways from 4 on, which are the same otherwise, joins that return rows without a match
 * have conditions, too.  Hot: a row has many candidates in the second build side.
 */
#define CHAIN_WAYS	8

static void
chain_plan(plan *p, const chain *chain, what condition, int way, uint64_t n, bool hot)
{
	const bool	second_by_probe = way % 4 == 0 || way % 4 == 3;
	uint16_t	key;
	uint16_t	x;
	uint16_t	link;
	uint16_t	visible;

	plan_init(p);
	key = link = probe_column(p, 4, GEN_CUSTOM, n, 10);
	x = visible = probe_column(p, 2, GEN_UNIFORM, 50, 10);
	table_key(p, probe_column(p, 4, GEN_UNIFORM, 1 << 12, 20));
	p->probe.param = hot ? HOT(60) : 0;
	for (int j = 0; j < CHAIN_JOINS && chain->kinds[j] != 0; j++)
	{
		const uint8_t kind = (uint8_t) chain->kinds[j];
		uint16_t	next_link;
		uint16_t	y;

		(void) plan_join(p, kind, j == 1 && hot ? 3 * n / 2 : n, !hot ? 0 : j == 0 ? HOT(60) :
						 j == 1 ? HOT(128) : 0);
		/* half of the rows with hot links are returned by the first join */
		(void) join_key(p, (j == 1) == second_by_probe ? key : link, 4, n, j == 0 ? 128 : 10);
		next_link = join_column(p, 4, GEN_CUSTOM, n, 10);
		y = join_column(p, 8, GEN_UNIFORM, 50, 10);
		if (!rhh_returns_unmatched(kind) || way >= 4)
			add_condition(p, condition, j == 1 && way % 4 < 2 ? x : visible, y);
		if (!rhh_has_outer_columns(kind))
		{
			/* nothing else is visible any more */
			def_init(&p->table);
			key = next_link;
			x = y;
		}
		if (!rhh_has_build_columns(kind))
			continue;
		link = next_link;
		visible = y;
		table_key(p, link);
		table_states(p, y);
	}
	table_states(p, x);
}

/* What right and full joins return, before, between and behind joins with conditions. */
void
case_join_condition_unmatched(context *ctx)
{
	static const what conditions[] = {BOTH, PROBE_IS_NULL, LOGIC};
	uint32_t	n_plans = 0;

	for (size_t i = 0; i < LENGTH_OF(chains); i++)
		for (size_t c = 0; c < LENGTH_OF(conditions); c++)
			for (int way = 0; way < CHAIN_WAYS; way++)
			{
				run_options options = default_options;
				char		where[80];
				plan		p;

				if (left_out(&n_plans))
					continue;
				options.no_failures = true;
				chain_plan(&p, &chains[i], conditions[c], way, 60, way % 4 > 0);
				p.table.spec.max_batch_rows = c % 2 == 0 ? 64 : 1000;
				snprintf(where, sizeof(where), "%s, %s, way %d", chains[i].name,
						 names[conditions[c]], way);
				check_plan(ctx, where, &p, 60, &options, NULL);
			}
}

/* The same, of which the table refuses rows. */
void
case_join_condition_unmatched_refused(context *ctx)
{
	static const uint32_t rooms[] = {13, 0};

	for (size_t i = 0; i < N_LONG_CHAINS; i++)
		for (size_t r = 0; r < LENGTH_OF(rooms); r++)
		{
			uint64_t	n = 2500;
			run_options options = default_options;
			char		where[80];
			plan		p;

			chain_plan(&p, &chains[i], BOTH, (int) (i + r) % CHAIN_WAYS, n, false);
			p.table.spec.max_batch_rows = 4096;
			p.table.spec.max_probe_buckets = 1;
			p.table.spec.load_factor = 0.95f;
			p.table.spec.memory_limit_bytes = 256 << 10;
			options.room_rows = rooms[r];
			options.min_failures = 1;
			snprintf(where, sizeof(where), "%s, room for %u", chains[i].name, rooms[r]);
			check_plan(ctx, where, &p, n, &options, NULL);
		}
}

/* The same, of which a table returns all rows, in rooms that are smaller than the candidates. */
void
case_join_condition_unmatched_returned(context *ctx)
{
	static const uint32_t rooms[] = {1, 3, 64, 0};

	for (size_t i = 0; i < LENGTH_OF(chains); i++)
		for (size_t r = 0; r < LENGTH_OF(rooms); r++)
		{
			uint64_t	n = 30;
			run_options options = default_options;
			char		where[80];
			plan		p;

			/* some of the many candidates of rows without a match are matches */
			chain_plan(&p, &chains[i], BOTH, i % 2 == 0 ? 2 : 6, n, true);
			p.table.spec.n_states = 0;
			p.table.spec.n_keys = p.table.spec.n_columns;
			for (uint32_t c = 0; c < p.table.spec.n_columns; c++)
				p.table.spec.key_column[c] = (uint8_t) c;
			p.table.spec.flags |= RHH_RETURN_ROWS;
			p.table.spec.max_batch_rows = 1000;
			options.room_rows = rooms[r];
			snprintf(where, sizeof(where), "%s, room for %u", chains[i].name, rooms[r]);
			check_plan(ctx, where, &p, n, &options, NULL);
		}
}

/*
 * Conditions that may be bad, of keys that are unique and not, and of keys with so many candidates
 * that a warp looks at them.  A bad candidate may come before a match and behind one.
 */
static void
check_bad(context *ctx, what condition, uint64_t *n_bad)
{
	for (int k = 0; k < N_KINDS; k++)
		for (int shape = (k + (int) condition) % 2; shape < 4; shape += 2)
		{
			const uint64_t n = enough_rows(shape < 2 ? 8000 : 1000);
			run_options options = default_options;
			rhh_map_stats stats = {0};
			char		where[80];
			plan		p;

			options.no_failures = true;
			condition_plan(&p, k, condition, shape == 0 ? 3 * n / 2 : shape == 1 ? n : 1000, n,
						   shape == 0 ? UNIQUE : shape == 1 ? 0 : HOT(128), 100,
						   shape == 0 ? 0 : 20);
			if (shape >= 2)
				p.probe.param = HOT(128);
			p.table.spec.max_batch_rows = shape == 3 ? 64 : 65536;
			snprintf(where, sizeof(where), "%s, %s, shape %d", kinds[k].name, names[condition],
					 shape);
			check_plan(ctx, where, &p, n, &options, &stats);
			*n_bad += stats.bad_candidates;
		}
}

/* Of one of several joins, and of one of rows that a join before has returned without a match. */
static void
check_bad_of_several(context *ctx, what condition, uint64_t *n_bad)
{
	/* each pair of kinds, and each chain, has some of the conditions and ways */
	for (int first = 0; first < N_KINDS; first++)
		for (int second = (first + (int) condition) % 2; second < N_KINDS; second += 2)
		{
			const uint64_t n = enough_rows(300);
			run_options options = default_options;
			rhh_map_stats stats = {0};
			char		where[80];
			plan		p;

			options.no_failures = true;
			condition_plan(&p, first, second % 2 ? BOTH : condition, 1000, n, HOT(128), 100, 10);
			p.probe.param = HOT(128);
			second_join(&p, first, second, second % 2 ? condition : BOTH, 64, HOT(128), 1000, 20);
			p.table.spec.max_batch_rows = 500;
			snprintf(where, sizeof(where), "%s, %s, %s", kinds[first].name, kinds[second].name,
					 names[condition]);
			check_plan(ctx, where, &p, n, &options, &stats);
			*n_bad += stats.bad_candidates;
		}
	for (size_t i = 0; i < LENGTH_OF(chains); i++)
		for (int way = (int) (i + condition) % 4; way < CHAIN_WAYS; way += 4)
		{
			run_options options = default_options;
			rhh_map_stats stats = {0};
			char		where[80];
			plan		p;

			options.no_failures = true;
			chain_plan(&p, &chains[i], condition, way, 60, way % 4 > 0);
			p.table.spec.max_batch_rows = 64;
			snprintf(where, sizeof(where), "%s, %s, way %d", chains[i].name, names[condition], way);
			check_plan(ctx, where, &p, 60, &options, &stats);
			*n_bad += stats.bad_candidates;
		}
}

/*
 * The rows have all candidates, nearly all of which are matches.  One that is bad has to be found
 * behind these.
 */
static void
check_bad_behind_matches(context *ctx)
{
	uint64_t	n_bad = 0;

	for (int round = 0; round < 3; round++)
		for (int k = 0; k < N_KINDS; k++)
		{
			run_options options = default_options;
			rhh_map_stats stats = {0};
			char		where[80];
			plan		p;

			if (kinds[k].has_columns && !hides_outer(k))
				continue;
			options.no_failures = true;
			condition_plan(&p, k, HARDLY_BAD, 1, 2000, 0, 1ULL << 40, 0);
			snprintf(where, sizeof(where), "%s, behind matches, round %d", kinds[k].name, round);
			check_plan(ctx, where, &p, 7, &options, &stats);
			n_bad += stats.bad_candidates > 0;
		}
	if (ctx->why[0] == '\0' && n_bad == 0)
		fault(ctx, "behind matches", "none is bad: the case tests nothing");
}

void
case_join_condition_bad(context *ctx)
{
	check_bad_behind_matches(ctx);
	for (int c = N_CONDITIONS; c < N_ALL_CONDITIONS; c++)
	{
		uint64_t	n_bad = 0;
		uint64_t	n_bad_of_several = 0;

		if (c == HARDLY_BAD)
			continue;
		check_bad(ctx, (what) c, &n_bad);
		check_bad_of_several(ctx, (what) c, &n_bad_of_several);
		if (ctx->why[0] == '\0' && (n_bad > 0 && n_bad_of_several > 0) !=
			(c == OFTEN_BAD || c == RARELY_BAD))
			fault(ctx, names[c], "the condition is bad too often, or never: the case tests nothing");
	}
}

/* Work without any output is cancelled, too. */
void
case_join_condition_cancel(context *ctx)
{
	for (int k = 0; k < N_KINDS; k++)
	{
		run_options options = default_options;
		uint64_t	n = rows(6000);
		plan		p;

		condition_plan(&p, k, NEVER, 1, n / 10, 0, 10, 0);
		options.cancel_at_batch = 1;
		check_plan(ctx, kinds[k].name, &p, n, &options, NULL);
	}
}

/* ---------- calls that are wrong ---------- */

/* What map_join() says of conditions. */
void
case_join_condition_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	static sides sides;
	rhh_map    *table;
	rhh_error	err;
	plan		p;

	plan_init(&p);
	p.table.spec.max_batch_rows = 100;
	p.table.spec.max_batch_bytes = 1 << 20;
	(void) probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	(void) probe_column(&p, 8, GEN_SMALL, 0, 0);
	(void) probe_column(&p, 16, GEN_UNIFORM, 100, 0);
	/* columns 3 and 4, then 5 and 6 */
	(void) plan_join(&p, RHH_JOIN_SEMI, 100, 0);
	(void) join_key(&p, 0, 4, 100, 0);
	(void) join_column(&p, 8, GEN_SMALL, 0, 0);
	(void) plan_join(&p, RHH_JOIN_LEFT, 100, 0);
	(void) join_key(&p, 0, 4, 100, 0);
	add_condition(&p, BOTH, 1, join_column(&p, 8, GEN_SMALL, 0, 0));
	table_key(&p, 0);
	if (!sides_start(ctx, "build sides", &sides, &p) ||
		ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK)
		fault(ctx, "", "there is no table");
	else
	{
#define INVALID(what, message) \
	do { \
		rhh_join_spec s = sides.joined.spec; \
		rhh_program c = *s.joins[1].condition; \
		s.joins[1].condition = &c; \
		what; \
		expect_error(ctx, #what, ops->map_join(table, &s, &err), RHH_INVALID, &err, message); \
	} while (0)
		/* of the right semijoin only its own condition may read the probe side */
		INVALID(s.joins[0].kind = RHH_JOIN_RIGHT_SEMI; s.joins[1].key_column[0] = 3,
				"column 0 of the condition of join 1 is not one of its sides'");
		INVALID(s.joins[1].n_condition_columns = RHH_MAX_COLUMNS + 1,
				"the condition of join 1 cannot have 65 columns");
		INVALID(s.joins[1].condition_column[1] = 7,
				"column 1 of the condition of join 1 is not one of its sides'");
		/* of the semijoin only its own condition may read the build side */
		INVALID(s.joins[1].condition_column[0] = 4,
				"column 0 of the condition of join 1 is not one of its sides'");
		INVALID(s.joins[0].condition = &c; s.joins[0].n_condition_columns = 2;
				s.joins[0].condition_column[0] = 1; s.joins[0].condition_column[1] = 6,
				"column 1 of the condition of join 0 is not one of its sides'");
		INVALID(s.joins[1].condition_column[0] = 2,
				"a program reads what is no column, or its own result");
		INVALID(s.joins[1].n_condition_columns = 1,
				"a program reads what is no column, or its own result");
		INVALID(c.n_ops = RHH_MAX_OPS + 1, "a program is too long");
		INVALID(c.has_filter = false, "the condition of join 1 is not a filter alone");
		INVALID(c.n_results = 1; c.results[0].column = 0; c.ops[0] = c.ops[1],
				"the condition of join 1 is not a filter alone");
		/* what is good; and that of the semijoin itself */
		sides.joined.spec.joins[0].condition = sides.joined.spec.joins[1].condition;
		sides.joined.spec.joins[0].n_condition_columns = 2;
		sides.joined.spec.joins[0].condition_column[0] = 1;
		sides.joined.spec.joins[0].condition_column[1] = 4;
#undef INVALID
		if (ops->map_join(table, &sides.joined.spec, &err) != RHH_OK)
			fault(ctx, "map_join", err.message);
		ops->map_destroy(table);
	}
	sides_end(&sides);
}
