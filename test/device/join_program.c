/*
 * join_program.c
 *		Tables with columns that a program computes of the joins' output.
 *
 * The reference computes them by itself (program_reference.c).  Of a row that the device
 * hands back as bad the run checks that it is, and gives it NULLs for the computed columns,
 * as the reference does; so a bad row that is aggregated after all changes its group.
 */
#include "join_plan.h"

/* ---------- making programs ---------- */

/* Adds an operation; returns its number. */
static uint8_t
add_op3(plan *p, uint8_t code, uint8_t a, uint8_t b, uint8_t c)
{
	uint32_t	i = p->program.n_ops++;

	p->program.ops[i] = (rhh_op){code, a, b, c};
	return (uint8_t) i;
}

static uint8_t
add_op(plan *p, uint8_t code, uint8_t a, uint8_t b)
{
	return add_op3(p, code, a, b, 0);
}

/* Reads a column of the joins' output, which becomes one of the table. */
static uint8_t
read_column(plan *p, uint16_t column)
{
	return add_op(p, RHH_OP_COLUMN, (uint8_t) table_column(p, column), 0);
}

static uint8_t
add_constant(plan *p, uint8_t code, __int128 value, bool null)
{
	uint32_t	i = p->program.n_constants++;

	p->program.constants[i][0] = (uint64_t) value;
	p->program.constants[i][1] = (uint64_t) (value >> 64);
	p->program.null_constant[i] = null;
	return add_op(p, code, (uint8_t) i, 0);
}

static uint8_t
constant(plan *p, int64_t value)
{
	return add_constant(p, RHH_OP_CONSTANT, value, false);
}

/* A column of the table that is the result of an operation; returns its number. */
static int
computed_column(plan *p, uint8_t op, uint32_t bytes)
{
	int			c = def_column(&p->table, bytes, GEN_CUSTOM, 0, 0);
	uint32_t	r = p->program.n_results++;

	p->program.results[r].op = op;
	p->program.results[r].column = (uint8_t) c;
	p->spec.column[c] = RHH_COMPUTED;
	return c;
}

/* Rows in which the result of an operation is not true are dropped. */
static void
set_filter(plan *p, uint8_t op)
{
	p->program.has_filter = true;
	p->program.filter = op;
}

static void
computed_state(plan *p, rhh_state_op state, uint8_t op, uint32_t bytes)
{
	def_state(&p->table, state, computed_column(p, op, bytes), -1);
}

/* Conditions of joins rely on what is said never to be bad. */
static void
check_never_bad(context *ctx, const char *where, const plan *p, const rhh_map_stats *stats)
{
	if (ctx->why[0] == '\0' && !rhh_program_may_be_bad(&p->program) && stats->refused_rows > 0)
		fault(ctx, where, "rows are bad of a program that is said never to be");
}

/* ---------- every operation ---------- */

/* gen.n of GEN_CUSTOM columns that put_operands() makes. */
enum
{
	OPERAND_ROW,				/* the row's number */
	OPERAND_KEY,				/* the number of a row of the build side, or no such */
	OPERAND_INTEGER,
	OPERAND_SMALL,				/* an integer near 0 */
	OPERAND_BOOLEAN,
	OPERAND_BYTES,				/* 16 of few values, some of which differ in one byte */
	OPERAND_FLOAT
};

#define OPERAND_BUILD_ROWS 60
#define OPERAND_KEYS 80

static const int64_t extreme_integers[] = {
	0, 1, -1, 2, -2, 3, 10, -10, 1000, 10000, 1000000000, INT64_C(1000000000000000000),
	INT16_MAX, INT16_MAX - 1, INT16_MAX + 1, INT16_MIN, INT16_MIN + 1, INT16_MIN - 1,
	INT32_MAX, INT32_MAX - 1, INT64_C(2147483648), INT32_MIN, INT32_MIN + 1, INT64_C(-2147483649),
	INT64_C(3037000499), INT64_C(3037000500), INT64_C(1) << 60, (INT64_C(1) << 61) - 1,
	106751982, 106751983, INT64_C(1) << 61, -(INT64_C(1) << 61), INT64_C(1) << 62, INT64_MAX, INT64_MAX - 1,
	INT64_MIN, INT64_MIN + 1
};

static const double extreme_floats[] = {
	0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e10, -1e-10, NAN, INFINITY, -INFINITY, 0x1p-1074, 0x1p-1022,
	0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023, 0x1p-600, 0x1p600, 0x1p-149, 0x1p-126,
	0x1.fffffep127, -0x1.fffffep127, 0x1p-80, 0x1p80
};

static int64_t
random_integer(rng *r)
{
	if (below(r, 2) == 0)
		return extreme_integers[below(r, LENGTH_OF(extreme_integers))];
	/* of any number of digits */
	return (int64_t) next_random(r) >> below(r, 64);
}

static void
put_operand_float(data *data, uint32_t c, uint64_t row, rng *r)
{
	double		x = extreme_floats[below(r, LENGTH_OF(extreme_floats))];
	uint64_t	bits = next_random(r);
	float		single;

	if (below(r, 4) == 0)
		memcpy(&x, &bits, sizeof(x));
	else if (below(r, 2) == 0)
		x = ((double) below(r, 2000001) - 1000000) / 1000;
	single = (float) x;
	if (data->d->spec.column_bytes[c] == 4)
		memcpy(data->values[c] + row * 4, &single, 4);
	else
		memcpy(data->values[c] + row * 8, &x, 8);
}

static void
put_operands(data *data, uint64_t row, rng *r, uint64_t param)
{
	(void) param;
	for (uint32_t c = 0; c < data->d->spec.n_columns; c++)
		switch (data->d->gens[c].n)
		{
			case OPERAND_ROW:
				put_value(data, c, row, row, 0);
				break;
			case OPERAND_KEY:
				put_value(data, c, row, below(r, OPERAND_KEYS), 0);
				break;
			case OPERAND_INTEGER:
				put_value(data, c, row, (uint64_t) random_integer(r), 0);
				break;
			case OPERAND_SMALL:
				put_value(data, c, row, below(r, 6) - 2, 0);
				break;
			case OPERAND_BOOLEAN:
				put_value(data, c, row, below(r, 2), 0);
				break;
			case OPERAND_BYTES:
				put_value(data, c, row, below(r, 3) << (8 * below(r, 8)),
						  (uint64_t) random_integer(r) << (8 * below(r, 8)));
				break;
			default:
				put_operand_float(data, c, row, r);
				break;
		}
}

/* The class of an operation's operand, or of its result, as a letter of RHH_OPERATIONS(). */
typedef struct operation
{
	uint8_t		code;
	const char *name;
	char		r;
	char		a;
	char		b;
} operation;

#define OPERATION(name, r, a, b) {RHH_OP_##name, #name, #r[0], #a[0], #b[0]},

static const operation operations[] = {RHH_OPERATIONS(OPERATION)};

static bool
begins_with(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* Bytes of a number of the type whose name this ends with; 8 of others. */
static uint32_t
type_bytes(const char *name)
{
	size_t		n = strlen(name);

	return n < 4 ? 8 : strcmp(name + n - 4, "INT2") == 0								  ? 2 :
		strcmp(name + n - 4, "INT4") == 0 || strcmp(name + n - 4, "OAT4") == 0 ? 4 : 8;
}

/* Bytes of the operands of 64 bits. */
static uint32_t
operand_bytes(const operation *op)
{
	if (begins_with(op->name, "AS_"))
		return 8;				/* narrower ones always fit */
	if (begins_with(op->name, "DATE_") || strstr(op->name, "OID") != NULL ||
		strstr(op->name, "_FLOAT4") != NULL)
		return 4;
	return begins_with(op->name, "FLOAT4_AS_") ? 4 : type_bytes(op->name);
}

/* Takes an operation floats? */
static bool
takes_floats(const operation *op)
{
	return strstr(op->name, "FLOAT") != NULL && !begins_with(op->name, "INT_AS_");
}

/* A constant of the type that an operation takes. */
static int64_t
extreme_constant(const operation *op, rng *r)
{
	const uint32_t bytes = operand_bytes(op);
	int64_t		value = extreme_integers[below(r, LENGTH_OF(extreme_integers))];
	double		x = extreme_floats[below(r, LENGTH_OF(extreme_floats))];
	float		single = (float) x;

	if (takes_floats(op))
		memcpy(&value, bytes == 4 ? (void *) &single : (void *) &x, bytes);
	return bytes == 2 ? (int16_t) value : bytes == 4 ? (int32_t) value : value;
}

#define ROUNDS 6

/*
 * An operand, which depends on the round: a column, a constant, NULL.  Those of 128 bits
 * are made of two columns.
 */
static uint8_t
operand(plan *p, const operation *op, char class, uint32_t round, uint8_t x, uint8_t y, rng *r)
{
	const __int128 greatest = (__int128) (~(unsigned __int128) 0 >> 1);
	const __int128 extremes[] = {
		0, 1, -1, INT64_MIN, INT64_MAX, greatest, -greatest, -greatest - 1, greatest - 1,
		(__int128) 1 << 61, -((__int128) 1 << 61), ((__int128) 1 << 122) - 1, (__int128) 1 << 122,
		(__int128) 1 << 64, (__int128) UINT64_MAX, (__int128) 1000000000000 * INT64_C(1000000000000)
	};

	if (class == 'N')
		switch (round % ROUNDS)
		{
			case 2:
				return constant(p, extreme_constant(op, r));
			case 3:
				return add_constant(p, RHH_OP_CONSTANT, 1, true);
			default:
				return x;
		}
	switch (round % ROUNDS)
	{
		case 0:
			return add_op(p, RHH_OP_DECIMAL_AS_DECIMAL128, x, 0);
		case 1:
			return add_op(p, RHH_OP_MUL_TO_DECIMAL128, x, y);
		case 2:
			return add_constant(p, RHH_OP_CONSTANT128, extremes[below(r, LENGTH_OF(extremes))], false);
		case 3:
			return add_constant(p, RHH_OP_CONSTANT128, 1, true);
		case 4:
			return add_op(p, RHH_OP_ADD_DECIMAL128,
						  add_op(p, RHH_OP_MUL_TO_DECIMAL128, x, constant(p, INT64_C(1) << 62)),
						  add_op(p, RHH_OP_INT_AS_DECIMAL128, y, 0));
		default:
			return add_op(p, RHH_OP_INT_AS_DECIMAL128, x, 0);
	}
}

/*
 * Each operation of random and of extreme operands: of columns of both sides, some of which
 * are NULL, and of constants.  Each row is a group, so that each result is seen.
 */
void
case_join_program_operations(context *ctx)
{
	for (size_t i = 0; i < LENGTH_OF(operations); i++)
	{
		const operation *op = &operations[i];
		const uint32_t bytes = operand_bytes(op);
		const uint64_t kind = takes_floats(op) ? OPERAND_FLOAT : OPERAND_INTEGER;
		uint64_t	n_good = 0;

		for (uint32_t round = 0; round < ROUNDS * 2; round++)
		{
			run_options options = default_options;
			rng			r = {ctx->seed * 1000 + round};
			rhh_map_stats stats;
			uint16_t	id;
			uint16_t	key;
			uint8_t		x;
			uint8_t		y;
			uint8_t		a;
			uint8_t		b;
			uint8_t		result;
			char		where[64];
			plan		p;

			plan_init(&p);
			p.probe.custom = put_operands;
			p.table.spec.max_batch_rows = 200;
			id = probe_column(&p, 4, GEN_CUSTOM, OPERAND_ROW, 0);
			key = probe_column(&p, 4, GEN_CUSTOM, OPERAND_KEY, 0);
			table_key(&p, id);
			x = read_column(&p, probe_column(&p, bytes, GEN_CUSTOM, kind, 20));
			plan_join(&p, round % 2 == 0 ? RHH_JOIN_LEFT : RHH_JOIN_INNER, OPERAND_BUILD_ROWS,
					  0)->custom = put_operands;
			(void) join_key(&p, key, 4, OPERAND_ROW, 0);
			y = read_column(&p, join_column(&p, bytes, GEN_CUSTOM, kind, round % 3 == 0 ? 0 : 20));
			/* of the rounds the second half has other operands together */
			a = operand(&p, op, op->a, round, x, y, &r);
			b = op->b == '_' ? 0 : operand(&p, op, op->b, round < ROUNDS ? 0 : round + 1, y, x, &r);
			result = add_op(&p, op->code, a, b);
			if (op->r == 'N')
			{
				p.float_states = strstr(op->name, "FLOAT") != NULL &&
					!begins_with(op->name, "ORDER_") && !begins_with(op->name, "EQUAL_");
				computed_state(&p, RHH_ANY, result, type_bytes(op->name));
			}
			/* nobody asks for a single value of 16 bytes but for a key */
			else if (round % 2 == 0)
				p.table.spec.key_column[p.table.spec.n_keys++] =
					(uint8_t) computed_column(&p, result, 16);
			else
				for (uint8_t limb = RHH_OP_LIMB_1_OF_3; limb <= RHH_OP_LIMB_3_OF_3; limb++)
					computed_state(&p, RHH_ANY, add_op(&p, limb, result, 0), 8);
			options.no_failures = true;
			snprintf(where, sizeof(where), "%s, round %u", op->name, round);
			check_plan(ctx, where, &p, 300, &options, &stats);
			check_never_bad(ctx, where, &p, &stats);
			n_good += stats.rows;
		}
		if (ctx->why[0] == '\0' && n_good < 300)
			fault(ctx, op->name, "nearly all rows are bad");
	}
}

/* ---------- conditions ---------- */

/*
 * Operations for random programs: the classes are B (boolean), I (integer of 64 bits, or
 * decimal), F (double) and W (128 bits), and x for any one, the same for all operands.
 */
static const struct
{
	uint8_t		code;
	uint8_t		wide_code;		/* if x is W */
	const char *classes;		/* the result's and the operands' */
} tree_operations[] = {
	{RHH_OP_AND, 0, "BBB"}, {RHH_OP_AND, 0, "BBB"}, {RHH_OP_OR, 0, "BBB"}, {RHH_OP_OR, 0, "BBB"},
	{RHH_OP_NOT, 0, "BB"}, {RHH_OP_IS_TRUE, 0, "BB"}, {RHH_OP_IS_NULL, RHH_OP_IS_NULL128, "Bx"},
	{RHH_OP_IF, RHH_OP_IF128, "xBxx"}, {RHH_OP_IF, RHH_OP_IF128, "xBxx"},
	{RHH_OP_IF, RHH_OP_IF128, "xBxx"}, {RHH_OP_EQ_INT8, 0, "BII"}, {RHH_OP_LT_INT8, 0, "BII"},
	{RHH_OP_LE_INT8, 0, "BII"}, {RHH_OP_LT_OID, 0, "BII"}, {RHH_OP_EQ_FLOAT8, 0, "BFF"},
	{RHH_OP_LT_FLOAT8, 0, "BFF"}, {RHH_OP_LE_FLOAT8, 0, "BFF"}, {RHH_OP_EQ_DECIMAL128, 0, "BWW"},
	{RHH_OP_LT_DECIMAL128, 0, "BWW"}, {RHH_OP_LE_DECIMAL128, 0, "BWW"}, {RHH_OP_DIV_INT8, 0, "III"},
	{RHH_OP_MOD_INT8, 0, "III"}, {RHH_OP_ADD_INT8, 0, "III"}, {RHH_OP_ADD_DECIMAL, 0, "III"},
	{RHH_OP_AS_INT4, 0, "II"}, {RHH_OP_DIV_FLOAT8, 0, "FFF"}, {RHH_OP_INT_AS_FLOAT8, 0, "FI"},
	{RHH_OP_MUL_TO_DECIMAL128, 0, "WII"}, {RHH_OP_ADD_DECIMAL128, 0, "WWW"},
	{RHH_OP_LIMBS_AS_DECIMAL128, 0, "WII"}, {RHH_OP_ADD_LIMB_3, 0, "WWI"}
};

/* A random program's operations so far. */
typedef struct tree
{
	plan	   *p;
	rng		   *r;
	uint32_t	n;
	uint8_t		ops[RHH_MAX_OPS];
	char		classes[RHH_MAX_OPS];
} tree;

static void
tree_add(tree *t, char class, uint8_t op)
{
	t->classes[t->n] = class;
	t->ops[t->n++] = op;
}

/* One of this class, of the later ones more often. */
static uint8_t
tree_operand(const tree *t, char class)
{
	for (;;)
	{
		uint32_t	i = (uint32_t) below(t->r, t->n);

		if (below(t->r, 2) == 0)
			i = i / 2 + t->n / 2;
		if (t->classes[i] == class)
			return t->ops[i];
	}
}

/* Columns of both sides, and constants, of each class. */
static void
tree_leaves(tree *t, const uint16_t *columns)
{
	static const char classes[] = "BIIFBIIF";
	const double half = 0.5;
	int64_t		bits;

	for (int i = 0; i < 8; i++)
		tree_add(t, classes[i], read_column(t->p, columns[i]));
	memcpy(&bits, &half, sizeof(bits));
	tree_add(t, 'B', constant(t->p, (int64_t) below(t->r, 2)));
	tree_add(t, 'B', add_constant(t->p, RHH_OP_CONSTANT, 1, true));
	tree_add(t, 'B', add_op(t->p, RHH_OP_COLUMN_IS_NULL, (uint8_t) table_column(t->p, columns[8]), 0));
	tree_add(t, 'I', constant(t->p, 2));
	tree_add(t, 'I', add_constant(t->p, RHH_OP_CONSTANT, 3, true));
	tree_add(t, 'F', constant(t->p, bits));
	tree_add(t, 'W', add_constant(t->p, RHH_OP_CONSTANT128, (__int128) 5 << 70, false));
	tree_add(t, 'W', add_op(t->p, RHH_OP_DECIMAL_AS_DECIMAL128, t->ops[1], 0));
	tree_add(t, 'W', add_op(t->p, RHH_OP_COLUMN_OF_BYTES, (uint8_t) table_column(t->p, columns[8]), 0));
	tree_add(t, 'W', add_op(t->p, RHH_OP_COLUMN_OF_BYTES, (uint8_t) table_column(t->p, columns[9]), 0));
}

/* Adds a random operation. */
static void
tree_grow(tree *t)
{
	const uint64_t which = below(t->r, LENGTH_OF(tree_operations));
	const char *classes = tree_operations[which].classes;
	const char	any = "BIFW"[below(t->r, 4)];
	uint8_t		code = tree_operations[which].code;
	uint8_t		operands[3] = {0};

	if (strchr(classes, 'x') != NULL && any == 'W')
		code = tree_operations[which].wide_code;
	for (size_t i = 1; i < strlen(classes); i++)
		operands[i - 1] = tree_operand(t, classes[i] == 'x' ? any : classes[i]);
	tree_add(t, classes[0] == 'x' ? any : classes[0],
			 add_op3(t->p, code, operands[0], operands[1], operands[2]));
}

/* Has the table a column of an operation's result. */
static void
tree_result(tree *t, uint32_t i)
{
	if (t->classes[i] == 'W')
		for (uint8_t limb = RHH_OP_LIMB_1_OF_3; limb <= RHH_OP_LIMB_3_OF_3; limb++)
			computed_state(t->p, RHH_ANY, add_op(t->p, limb, t->ops[i], 0), 8);
	else
	{
		if (t->classes[i] == 'F')
			t->p->float_states |= UINT64_C(1) << t->p->table.spec.n_states;
		computed_state(t->p, RHH_ANY, t->ops[i], t->classes[i] == 'B' ? 1 : 8);
	}
}

/* A join, and the columns of both sides that tree_leaves() reads. */
static void
tree_plan(plan *p, uint32_t round, uint16_t *columns)
{
	static const uint8_t bytes[] = {1, 8, 8, 8, 1, 8, 8, 8};
	static const uint8_t kinds[] = {
		OPERAND_BOOLEAN, OPERAND_SMALL, OPERAND_INTEGER, OPERAND_FLOAT,
		OPERAND_BOOLEAN, OPERAND_SMALL, OPERAND_INTEGER, OPERAND_FLOAT
	};
	uint16_t	id;
	uint16_t	key;
	uint16_t	of_probe;

	plan_init(p);
	p->probe.custom = put_operands;
	p->table.spec.max_batch_rows = 200;
	id = probe_column(p, 4, GEN_CUSTOM, OPERAND_ROW, 0);
	key = probe_column(p, 4, GEN_CUSTOM, OPERAND_KEY, 0);
	table_key(p, id);
	for (int i = 0; i < 4; i++)
		columns[i] = probe_column(p, bytes[i], GEN_CUSTOM, kinds[i], 30);
	of_probe = probe_column(p, 16, GEN_CUSTOM, OPERAND_BYTES, round % 2 ? 20 : 0);
	plan_join(p, round % 2 == 0 ? RHH_JOIN_LEFT : RHH_JOIN_INNER, OPERAND_BUILD_ROWS,
			  0)->custom = put_operands;
	(void) join_key(p, key, 4, OPERAND_ROW, 0);
	for (int i = 4; i < 8; i++)
		columns[i] = join_column(p, bytes[i], GEN_CUSTOM, kinds[i], round % 3 == 0 ? 0 : 30);
	if (round % 4 == 3)
	{
		plan_join(p, RHH_JOIN_LEFT, OPERAND_BUILD_ROWS, 0)->custom = put_operands;
		(void) join_key(p, columns[1], 8, OPERAND_ROW, 0);
	}
	columns[8] = join_column(p, 16, GEN_CUSTOM, OPERAND_BYTES, 100);
	columns[9] = of_probe;
}

/* Runs random programs, with a filter or without.  Returns how many rows were good. */
static uint64_t
run_trees(context *ctx, uint32_t rounds, bool filter)
{
	uint64_t	n_good = 0;

	for (uint32_t round = 0; round < rounds; round++)
	{
		run_options options = default_options;
		rng			r = {ctx->seed * 1000 + round};
		uint16_t	columns[10];
		rhh_map_stats stats;
		char		where[32];
		plan		p;
		tree		t = {.p = &p, .r = &r};

		tree_plan(&p, round, columns);
		tree_leaves(&t, columns);
		while (t.n < 24 + round)
			tree_grow(&t);
		if (filter)
			set_filter(&p, tree_operand(&t, 'B'));
		for (uint32_t i = t.n - (filter && round % 5 == 0 ? 0 : 4); i < t.n; i++)
			tree_result(&t, i);
		options.no_failures = true;
		snprintf(where, sizeof(where), "round %u", round);
		check_plan(ctx, where, &p, 300, &options, &stats);
		check_never_bad(ctx, where, &p, &stats);
		n_good += stats.rows;
	}
	return n_good;
}

/*
 * Random programs in which bad operations are behind conditions that decide, and before.
 * Each row is a group, so that each result is seen.
 */
void
case_join_program_logic(context *ctx)
{
	const uint32_t rounds = 40;
	uint64_t	n_good = run_trees(ctx, rounds, false);

	if (ctx->why[0] == '\0' && (n_good < 300 * rounds / 10 || n_good > 300 * rounds * 9 / 10))
		fault(ctx, "random programs", "nearly all rows are bad, or nearly none");
}

/* ---------- bad rows ---------- */

#define ALL_ROWS 65536			/* as a rate of bad rows */

/* Of the probe side of mixed_plan(). */
enum
{
	MIXED_KEY,
	MIXED_GROUP,
	MIXED_V,
	MIXED_W,
	MIXED_D,
	MIXED_Q
};

/* Keys, and columns of which the program is bad in param >> 16 of ALL_ROWS. */
static void
put_mixed(data *data, uint64_t row, rng *r, uint64_t param)
{
	bool		bad = below(r, ALL_ROWS) < param >> 16;
	uint64_t	how = bad ? 1 + below(r, 3) : 0;

	custom_keys(data, row, r, param & 0xffff);
	put_value(data, MIXED_V, row,
			  how == 1 ? INT64_MAX : (uint64_t) ((int64_t) below(r, 2001) - 1000), 0);
	put_value(data, MIXED_D, row, how == 2 ? 0 : 1 + below(r, 100), 0);
	put_value(data, MIXED_Q, row,
			  how == 3 ? (uint64_t) RHH_DECIMAL_NAN : next_random(r) >> 4, 0);
}

/* In which columns are NULL of no side, of the build side, and of both. */
static const struct
{
	rhh_join_kind kind;
	const char *name;
}			program_kinds[] = {
	{RHH_JOIN_INNER, "inner"},
	{RHH_JOIN_LEFT, "left"},
	{RHH_JOIN_FULL, "full"}
};

#define ALL_FILTERED 1000		/* as a number of rows that a filter keeps */

/*
 * Has the program of mixed_plan() keep so many of ALL_FILTERED rows; some of them are bad,
 * where others are.  To be called before there are results.
 */
static void
mixed_filter(plan *p, uint8_t w, uint8_t d, uint8_t q, uint32_t keep)
{
	uint8_t		kept = add_op(p, RHH_OP_LT_INT8, add_op(p, RHH_OP_MOD_INT8, q, constant(p, ALL_FILTERED)),
							  constant(p, keep));
	uint8_t		perhaps_bad = add_op(p, RHH_OP_IS_NULL, add_op(p, RHH_OP_DIV_INT4, w, d), 0);

	set_filter(p, add_op(p, RHH_OP_AND, kept, add_op(p, RHH_OP_OR, perhaps_bad,
													 constant(p, 1))));
}

/*
 * A join, and a program that has something of everything: sums and products, a division,
 * limbs, a float, a cast, a constant NULL; and a computed key.  fan_out: several rows of
 * the build side have the same key.  keep: of ALL_FILTERED rows the program's filter keeps
 * so many.
 */
static void
mixed_plan(plan *p, rhh_join_kind kind, uint64_t n, bool fan_out, uint64_t groups, uint64_t rate,
		   uint32_t keep)
{
	uint16_t	key;
	uint16_t	u;
	uint8_t		v;
	uint8_t		w;
	uint8_t		d;
	uint8_t		q;
	uint8_t		built;
	uint8_t		half;
	uint8_t		wide;
	uint64_t	half_bits;
	double		a_half = 0.5;

	plan_init(p);
	key = probe_column(p, 4, GEN_CUSTOM, n, 5);
	(void) probe_column(p, 4, GEN_UNIFORM, groups, 20);
	(void) probe_column(p, 8, GEN_CUSTOM, 0, rate == ALL_ROWS ? 0 : 10);
	(void) probe_column(p, 4, GEN_SMALL, 0, rate == ALL_ROWS ? 0 : 10);
	(void) probe_column(p, 4, GEN_CUSTOM, 0, 0);
	(void) probe_column(p, 8, GEN_CUSTOM, 0, 0);
	p->probe.custom = put_mixed;
	p->probe.param = rate << 16;
	(void) plan_join(p, kind, fan_out ? n : n / 2 + 1, fan_out ? 0 : UNIQUE);
	(void) join_key(p, key, 4, n, 0);
	u = join_column(p, 8, GEN_SMALL, 0, rate == ALL_ROWS ? 0 : 30);

	table_key(p, MIXED_GROUP);
	v = read_column(p, MIXED_V);
	w = read_column(p, MIXED_W);
	d = read_column(p, MIXED_D);
	q = read_column(p, MIXED_Q);
	built = read_column(p, u);
	if (keep < ALL_FILTERED)
		mixed_filter(p, w, d, q, keep);
	memcpy(&half_bits, &a_half, sizeof(half_bits));
	half = constant(p, (int64_t) half_bits);
	p->table.spec.key_column[p->table.spec.n_keys++] =
		(uint8_t) computed_column(p, add_op(p, RHH_OP_MOD_INT8, v, constant(p, 7)), 1);

	def_state(&p->table, RHH_COUNT, -1, -1);
	computed_state(p, RHH_SUM_I128,
				   add_op(p, RHH_OP_MUL_INT8, add_op(p, RHH_OP_ADD_INT8, v, constant(p, 5)), w), 8);
	computed_state(p, RHH_SUM_I64, add_op(p, RHH_OP_DIV_INT4, w, d), 4);
	/* bad where q is NaN, NULL where the build side has no row */
	wide = add_op(p, RHH_OP_ADD_DECIMAL128, add_op(p, RHH_OP_MUL_TO_DECIMAL128, q, d),
				  add_constant(p, RHH_OP_CONSTANT128, (__int128) 1 << 100, false));
	wide = add_op(p, RHH_OP_SUB_DECIMAL128, wide, add_op(p, RHH_OP_INT_AS_DECIMAL128, built, 0));
	computed_state(p, RHH_SUM_I64, add_op(p, RHH_OP_LIMB_1_OF_2, wide, 0), 8);
	computed_state(p, RHH_SUM_I64, add_op(p, RHH_OP_LIMB_2_OF_2, wide, 0), 8);
	computed_state(p, RHH_COUNT, p->program.n_ops - 1, 8);
	computed_state(p, RHH_SUM_F64,
				   add_op(p, RHH_OP_MUL_FLOAT8, add_op(p, RHH_OP_INT_AS_FLOAT8, v, 0), half), 8);
	computed_state(p, RHH_COUNT,
				   add_op(p, RHH_OP_ADD_INT8, v, add_constant(p, RHH_OP_CONSTANT, 0, true)), 8);
	computed_state(p, RHH_XOR, add_op(p, RHH_OP_AS_INT2, w, 0), 2);
	computed_state(p, RHH_MIN_I64, add_op(p, RHH_OP_NEG_INT8, built, 0), 8);
}

/* No row, few, half of them and all are bad; in pieces of all sizes. */
void
case_join_program_bad(context *ctx)
{
	static const uint64_t rates[] = {0, ALL_ROWS / 1000, ALL_ROWS / 2, ALL_ROWS};
	static const uint32_t rooms[] = {0, 50, 3};

	for (size_t i = 0; i < LENGTH_OF(rates); i++)
		for (int left = 0; left < (int) LENGTH_OF(program_kinds); left++)
			for (int fan_out = 0; fan_out < 2; fan_out++)
				for (size_t room = 0; room < LENGTH_OF(rooms); room++)
				{
					uint64_t	n = rows(rooms[room] == 0 ? 60000 : 16000);
					run_options options = default_options;
					rhh_map_stats stats;
					char		where[80];
					plan		p;

					options.room_rows = rooms[room];
					options.no_failures = true;
					mixed_plan(&p, program_kinds[left].kind, n, fan_out, 50, rates[i],
							   ALL_FILTERED);
					p.table.spec.max_batch_rows = rooms[room] == 0 ? 20000 : 1000;
					snprintf(where, sizeof(where), "%llu of %u are bad, %s, %s, room for %u",
							 (unsigned long long) rates[i], ALL_ROWS, program_kinds[left].name,
							 fan_out ? "fan-out" : "one match", rooms[room]);
					check_plan(ctx, where, &p, n, &options, &stats);
					if (ctx->why[0] == '\0' &&
						(rates[i] == 0 ? stats.refused_rows > 0 : stats.refused_rows == 0 &&
						 rates[i] >= ALL_ROWS / 2))
						fault(ctx, where, "not as many bad rows as there should be");
					/* of a row without a match the operands are NULL, and nothing is bad */
					if (ctx->why[0] == '\0' && rates[i] == ALL_ROWS && stats.rows > 0 &&
						program_kinds[left].kind != RHH_JOIN_FULL)
						fault(ctx, where, "not all rows are bad");
				}
}

/*
 * Filters that keep no row, few, half of them and all but few; with bad rows and without.
 * And random ones, of which some are all that the program has.
 */
void
case_join_program_filter(context *ctx)
{
	static const uint32_t keeps[] = {0, 10, ALL_FILTERED / 2, ALL_FILTERED - 1};
	static const uint32_t rooms[] = {0, 3};

	for (size_t i = 0; i < LENGTH_OF(keeps); i++)
		for (int bad = 0; bad < 2; bad++)
			for (int left = 0; left < (int) LENGTH_OF(program_kinds); left++)
				for (int fan_out = 0; fan_out < 2; fan_out++)
					for (size_t room = 0; room < LENGTH_OF(rooms); room++)
					{
						uint64_t	n = rows(rooms[room] == 0 ? 60000 : 8000);
						run_options options = default_options;
						rhh_map_stats stats;
						char		where[80];
						plan		p;

						options.room_rows = rooms[room];
						options.no_failures = true;
						mixed_plan(&p, program_kinds[left].kind, n, fan_out, 50,
								   bad ? ALL_ROWS / 2 : 0, keeps[i]);
						p.table.spec.max_batch_rows = rooms[room] == 0 ? 20000 : 1000;
						snprintf(where, sizeof(where), "%u of %u are kept, %s, %s, %s, room for %u",
								 keeps[i], ALL_FILTERED, bad ? "half are bad" : "none is bad",
								 program_kinds[left].name, fan_out ? "fan-out" : "one match",
								 rooms[room]);
						check_plan(ctx, where, &p, n, &options, &stats);
						if (ctx->why[0] == '\0' &&
							(keeps[i] == 0 ? stats.rows > 0 : keeps[i] > 10 && stats.rows == 0))
							fault(ctx, where, "not as many rows are kept as there should be");
					}
	(void) run_trees(ctx, 30, true);
}

/* Rows that the table refuses, and bad rows, in the same pieces. */
void
case_join_program_refused(context *ctx)
{
	static const uint64_t rates[] = {ALL_ROWS / 1000, ALL_ROWS / 2};
	static const uint32_t rooms[] = {64, 0};

	for (size_t i = 0; i < LENGTH_OF(rates); i++)
		for (size_t room = 0; room < LENGTH_OF(rooms); room++)
			for (int fan_out = 0; fan_out < 2; fan_out++)
			{
				uint64_t	n = enough_rows(48000);
				run_options options = default_options;
				char		where[80];
				plan		p;

				mixed_plan(&p, i % 2 == 0 ? RHH_JOIN_LEFT : RHH_JOIN_FULL, n, fan_out, 1 << 20, rates[i],
						   room == 0 ? ALL_FILTERED : ALL_FILTERED * 9 / 10);
				p.table.spec.max_batch_rows = 2000;
				p.table.spec.memory_limit_bytes = 256 << 10;
				options.room_rows = rooms[room];
				options.min_failures = 1;
				snprintf(where, sizeof(where), "%llu of %u are bad, room for %u, %s",
						 (unsigned long long) rates[i], ALL_ROWS, rooms[room],
						 fan_out ? "fan-out" : "one match");
				check_plan(ctx, where, &p, n, &options, NULL);
				options.min_failures = 0;
				options.cancel_at_batch = 3;
				check_plan(ctx, "cancelled", &p, n, &options, NULL);
			}
}

/* As many operations, constants and results as there can be, of columns of all widths. */
void
case_join_program_largest(context *ctx)
{
	static const uint32_t widths[] = {1, 2, 4, 8};
	run_options options = default_options;
	uint8_t		last[RHH_MAX_RESULTS];
	uint8_t		columns[8];
	uint16_t	key;
	plan		p;

	plan_init(&p);
	key = probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	for (int i = 0; i < 4; i++)
		columns[i] = (uint8_t) probe_column(&p, widths[i], GEN_EXTREME, 0, i % 2 ? 10 : 0);
	(void) plan_join(&p, RHH_JOIN_LEFT, 150, 0);
	(void) join_key(&p, key, 4, 100, 0);
	for (int i = 4; i < 8; i++)
		columns[i] = (uint8_t) join_column(&p, widths[i - 4], GEN_EXTREME, 0, i % 2 ? 0 : 10);
	table_key(&p, key);
	for (int i = 0; i < 8; i++)
		columns[i] = read_column(&p, columns[i]);
	for (int i = 0; i < RHH_MAX_CONSTANTS; i++)
		last[i] = constant(&p, 1000 * i + 3);
	/* remainders fit every column, and none is bad */
	for (int i = 0; i < RHH_MAX_RESULTS; i++)
		last[i] = add_op(&p, RHH_OP_MOD_INT8, columns[i % 8], last[i]);
	for (uint32_t i = p.program.n_ops; i < RHH_MAX_OPS; i++)
		last[i % RHH_MAX_RESULTS] = add_op(&p, RHH_OP_SUB_INT8, last[i % RHH_MAX_RESULTS],
										   last[i % 5]);
	for (int i = 0; i < RHH_MAX_RESULTS; i++)
		computed_state(&p, i % 3 == 0 ? RHH_SUM_I64 : RHH_XOR, last[i], widths[i / 4 % 4]);
	options.no_failures = true;
	check_plan(ctx, "", &p, rows(20000), &options, NULL);
}

/* ---------- calls that are wrong ---------- */

/* What map_join() says of programs; the table has 5 columns. */
static void
invalid_programs(context *ctx, const rhh_join_spec *good, rhh_map *table)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_error	err;

#define INVALID(what, message) \
	do { \
		rhh_join_spec s = *good; \
		rhh_program p = *good->program; \
		s.program = &p; \
		what; \
		expect_error(ctx, #what, ops->map_join(table, &s, &err), RHH_INVALID, &err, message); \
	} while (0)
	INVALID(p.n_ops = RHH_MAX_OPS + 1, "a program is too long");
	INVALID(p.n_constants = RHH_MAX_CONSTANTS + 1, "a program is too long");
	INVALID(p.n_results = RHH_MAX_RESULTS + 1, "a program is too long");
	INVALID(p.results[1].column = 5, "a result of a program is no column, or is one twice");
	INVALID(p.results[1].column = 2, "a result of a program has another width than its column");
	INVALID(p.results[1].column = p.results[0].column,
			"a result of a program is no column, or is one twice");
	INVALID(p.results[1].op = (uint8_t) p.n_ops, "a result of a program has another width than its column");
	INVALID(p.results[1].op = 3, "a result of a program has another width than its column");
	INVALID(p.has_filter = true; p.filter = (uint8_t) p.n_ops,
			"the filter of a program is not a number of 64 bits");
	INVALID(p.has_filter = true; p.filter = 3,
			"the filter of a program is not a number of 64 bits");
	INVALID(p.ops[2].code = RHH_N_OPS, "a program has an unknown operation");
	INVALID(p.ops[2].code = UINT8_MAX; p.results[1].op = 2, "a program has an unknown operation");
	INVALID(p.ops[0].a = 5, "a program reads what is no column, or its own result");
	INVALID(p.ops[0].a = 2, "a program reads what is no column, or its own result");
	INVALID(p.ops[0].a = p.results[0].column,
			"a program reads what is no column, or its own result");
	INVALID(p.ops[1].a = 1, "a program has a constant that is not there");
	INVALID(p.ops[1].code = RHH_OP_CONSTANT128; p.ops[1].a = 1,
			"a program has a constant that is not there");
	INVALID(p.ops[2].a = 2, "an operand of a program is no result before it, or of another width");
	INVALID(p.ops[2].b = 2, "an operand of a program is no result before it, or of another width");
	INVALID(p.ops[4].a = 1, "an operand of a program is no result before it, or of another width");
	INVALID(p.ops[3].a = 3, "an operand of a program is no result before it, or of another width");
	INVALID(p.ops[2].code = RHH_OP_ADD_DECIMAL128,
			"an operand of a program is no result before it, or of another width");
	INVALID(p.ops[2].code = RHH_OP_IF; p.ops[2].c = 2,
			"an operand of a program is no result before it, or of another width");
	INVALID(p.ops[4] = ((rhh_op){RHH_OP_IF, 1, 1, 3}),
			"an operand of a program is no result before it, or of another width");
	INVALID(p.ops[3].b = 3, "an operation of a program has an operand that it does not take");
	INVALID(p.ops[2].c = 2, "an operation of a program has an operand that it does not take");
	INVALID(p.ops[0].code = RHH_OP_COLUMN_OF_BYTES; p.ops[0].a = 5,
			"a program reads what is no column of 16 bytes, or its own result");
	INVALID(p.ops[0].code = RHH_OP_COLUMN_OF_BYTES,
			"a program reads what is no column of 16 bytes, or its own result");
	INVALID(p.ops[0].code = RHH_OP_COLUMN_IS_NULL; p.ops[0].a = 5,
			"a program reads what is no column, or its own result");
	INVALID(p.ops[0].code = RHH_OP_COLUMN_IS_NULL; p.ops[0].a = p.results[0].column,
			"a program reads what is no column, or its own result");
	INVALID(p.n_results = 1, "column 4 is computed by no program");
	INVALID(s.program = NULL, "column 3 is not one of the joins' output");
	INVALID(s.column[3] = 1, "column 3 is computed, and a column of a side");
#undef INVALID
}

/* Every rule of rhh_program_check(), and those of rhh_check_join() about programs. */
void
case_join_program_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	static sides sides;
	rhh_map    *table;
	rhh_error	err;
	uint8_t		x;
	plan		p;

	plan_init(&p);
	p.table.spec.max_batch_rows = 100;
	p.table.spec.max_batch_bytes = 1 << 20;
	(void) probe_column(&p, 4, GEN_CUSTOM, 100, 0);
	(void) probe_column(&p, 8, GEN_SMALL, 0, 0);
	(void) probe_column(&p, 16, GEN_UNIFORM, 100, 0);
	(void) plan_join(&p, RHH_JOIN_INNER, 100, 0);
	(void) join_key(&p, 0, 4, 100, 0);
	table_key(&p, 0);
	x = read_column(&p, 1);
	(void) table_column(&p, 2);
	x = add_op(&p, RHH_OP_ADD_INT8, x, constant(&p, 1));
	computed_state(&p, RHH_SUM_I64, x, 8);
	x = add_op(&p, RHH_OP_INT_AS_DECIMAL128, x, 0);
	computed_state(&p, RHH_SUM_I64, add_op(&p, RHH_OP_LIMB_1_OF_1, x, 0), 8);
	if (sides_start(ctx, "build sides", &sides, &p))
	{
		if (ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK)
			fault(ctx, "map_create", err.message);
		else
		{
			invalid_programs(ctx, &sides.joined.spec, table);
			/* none of that has spoilt the table */
			if (ops->map_join(table, &sides.joined.spec, &err) != RHH_OK)
				fault(ctx, "map_join", err.message);
			ops->map_destroy(table);
		}
	}
	sides_end(&sides);
}
