/*
 * program_reference.c
 *		What programs compute, by code that the devices do not have.
 *
 * Numbers are kept in 128 bits whatever their operation says, and the result is looked at
 * afterwards: does it fit, and is it one that stands for NaN?
 *
 * An operation is evaluated when its value is asked for, as PostgreSQL does it; one that
 * nobody asks for may be bad.
 */
#include "device_test.h"

typedef __int128 number;
typedef unsigned __int128 magnitude;

#define GREATEST ((number) (~(magnitude) 0 >> 1))

/* A result. */
typedef struct value
{
	bool		known;
	bool		bad;			/* then there is no value */
	bool		null;
	number		x;				/* of floats the bits */
} value;

static bool
fits(number x, number least, number greatest)
{
	return x >= least && x <= greatest;
}

#define FITS_2(x) fits(x, INT16_MIN, INT16_MAX)
#define FITS_4(x) fits(x, INT32_MIN, INT32_MAX)
#define FITS_8(x) fits(x, INT64_MIN, INT64_MAX)

static double
double_of(number x)
{
	uint64_t	bits = (uint64_t) x;
	double		d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

static number
of_double(double d)
{
	int64_t		bits;

	memcpy(&bits, &d, sizeof(d));
	return bits;
}

static float
float_of(number x)
{
	uint32_t	bits = (uint32_t) x;
	float		f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static number
of_float(float f)
{
	int32_t		bits;

	memcpy(&bits, &f, sizeof(f));
	return bits;
}

/* The digits of a number, or of -1 minus it if it is negative; at least 1. */
static int
digits(number x)
{
	magnitude	rest = (magnitude) (x < 0 ? -1 - x : x);
	int			n = 1;

	while (rest > 1)
	{
		rest /= 2;
		n++;
	}
	return n;
}

/* Products of 128 bits that are known to fit without a division. */
static bool
multiply(number a, number b, number *x)
{
	bool		known = (FITS_8(a) && FITS_8(b)) || digits(a) + digits(b) <= 126;

	if (__builtin_mul_overflow(a, b, x) && known)
		die("a product of 128 bits overflows that is taken to fit");
	return known;
}

/* Part of a decimal, of as many parts of 61 bits as its column has. */
static bool
limb(number a, int i, int n, number *x)
{
	magnitude	rest = a < 0 ? (magnitude) (-(a + 1)) + 1 : (magnitude) a;
	number		part = 0;

	if (a == GREATEST)
	{
		*x = i == 1 ? INT64_MAX : 0;
		return true;
	}
	for (int at = 1; at <= n; at++)
	{
		if (at == i)
			part = (number) (rest % ((magnitude) 1 << 61));
		rest >>= 61;
	}
	*x = a < 0 ? -part : part;
	return rest == 0;
}

/* May a float be the result of an operation whose operands do not explain a 0? */
static bool
usable(double x, bool may_be_zero)
{
	return !isinf(x) && (x != 0 || may_be_zero);
}

/* Has none of these the number that stands for NaN, and does the result fit? */
static bool
decimal(number a, number b, number x)
{
	return FITS_8(x) && a != INT64_MAX && b != INT64_MAX && x != INT64_MAX;
}

static bool
decimal128(number a, number b, number x)
{
	return a != GREATEST && b != GREATEST && x != GREATEST;
}

/* -1, 0 or 1; NaN is greater than all others. */
static int
compare_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return (a > b) - (a < b);
}

static int
compare_numbers(number a, number b)
{
	return (a > b) - (a < b);
}

/* Computes a strict operation of operands that are not NULL.  False: it is bad. */
static bool
compute(uint8_t code, number a, number b, number *x)
{
	double		da = double_of(a);
	double		db = double_of(b);
	float		fa = float_of(a);
	float		fb = float_of(b);
	double		d = 0;
	float		f = 0;

	*x = 0;
	switch (code)
	{
#define INTEGERS(bytes) \
		case RHH_OP_ADD_INT##bytes: \
			*x = a + b; \
			return FITS_##bytes(*x); \
		case RHH_OP_SUB_INT##bytes: \
			*x = a - b; \
			return FITS_##bytes(*x); \
		case RHH_OP_MUL_INT##bytes: \
			*x = a * b; \
			return FITS_##bytes(*x); \
		case RHH_OP_DIV_INT##bytes: \
			if (b == 0) \
				return false; \
			*x = a / b; \
			return FITS_##bytes(*x); \
		case RHH_OP_NEG_INT##bytes: \
			*x = -a; \
			return FITS_##bytes(*x);
		INTEGERS(2)
		INTEGERS(4)
		INTEGERS(8)
#undef INTEGERS
		case RHH_OP_MOD_INT8:
			if (b == 0)
				return false;
			*x = a % b;
			return true;
		case RHH_OP_AS_INT2:
			*x = a;
			return FITS_2(a);
		case RHH_OP_AS_INT4:
			*x = a;
			return FITS_4(a);

		case RHH_OP_ADD_FLOAT4:
			f = fa + fb;
			*x = of_float(f);
			return usable(f, true);
		case RHH_OP_SUB_FLOAT4:
			f = fa - fb;
			*x = of_float(f);
			return usable(f, true);
		case RHH_OP_MUL_FLOAT4:
			f = fa * fb;
			*x = of_float(f);
			return usable(f, fa == 0 || fb == 0);
		case RHH_OP_DIV_FLOAT4:
			if (fb == 0)
				return false;
			f = fa / fb;
			*x = of_float(f);
			return usable(f, fa == 0);
		case RHH_OP_NEG_FLOAT4:
			*x = of_float(-fa);
			return true;
		case RHH_OP_ADD_FLOAT8:
			d = da + db;
			*x = of_double(d);
			return usable(d, true);
		case RHH_OP_SUB_FLOAT8:
			d = da - db;
			*x = of_double(d);
			return usable(d, true);
		case RHH_OP_MUL_FLOAT8:
			d = da * db;
			*x = of_double(d);
			return usable(d, da == 0 || db == 0);
		case RHH_OP_DIV_FLOAT8:
			if (db == 0)
				return false;
			d = da / db;
			*x = of_double(d);
			return usable(d, da == 0);
		case RHH_OP_NEG_FLOAT8:
			*x = of_double(-da);
			return true;
		case RHH_OP_INT_AS_FLOAT8:
			*x = of_double((double) (int64_t) a);
			return true;
		case RHH_OP_FLOAT4_AS_FLOAT8:
			*x = of_double((double) fa);
			return true;

		case RHH_OP_ADD_DECIMAL:
			*x = a + b;
			return decimal(a, b, *x);
		case RHH_OP_SUB_DECIMAL:
			*x = a - b;
			return decimal(a, b, *x);
		case RHH_OP_MUL_DECIMAL:
		case RHH_OP_RESCALE_DECIMAL:
			*x = a * b;
			return decimal(a, b, *x);
		case RHH_OP_NEG_DECIMAL:
			*x = -a;
			return decimal(a, 0, *x);
		case RHH_OP_ADD_DECIMAL128:
			return !__builtin_add_overflow(a, b, x) && decimal128(a, b, *x);
		case RHH_OP_SUB_DECIMAL128:
			return !__builtin_sub_overflow(a, b, x) && decimal128(a, b, *x);
		case RHH_OP_MUL_DECIMAL128:
		case RHH_OP_RESCALE_DECIMAL128:
			return multiply(a, b, x) && decimal128(a, b, *x);
		case RHH_OP_MUL_TO_DECIMAL128:
			*x = a * b;
			return a != INT64_MAX && b != INT64_MAX;
		case RHH_OP_NEG_DECIMAL128:
			return !__builtin_sub_overflow((number) 0, a, x) && decimal128(a, 0, *x);
		case RHH_OP_INT_AS_DECIMAL128:
			*x = a;
			return true;
		case RHH_OP_DECIMAL_AS_DECIMAL128:
			*x = a == INT64_MAX ? GREATEST : a;
			return true;
		case RHH_OP_LIMBS_AS_DECIMAL128:
			*x = a == INT64_MAX ? GREATEST : a + b * ((number) 1 << 61);
			return true;
		case RHH_OP_ADD_LIMB_3:
			*x = a;
			return a == GREATEST ||
				(!__builtin_mul_overflow(b, (number) 1 << 122, &b) &&
				 !__builtin_add_overflow(a, b, x) && *x != GREATEST);
		case RHH_OP_LIMB_1_OF_1:
			return limb(a, 1, 1, x);
		case RHH_OP_LIMB_1_OF_2:
			return limb(a, 1, 2, x);
		case RHH_OP_LIMB_2_OF_2:
			return limb(a, 2, 2, x);
		case RHH_OP_LIMB_1_OF_3:
			return limb(a, 1, 3, x);
		case RHH_OP_LIMB_2_OF_3:
			return limb(a, 2, 3, x);
		case RHH_OP_LIMB_3_OF_3:
			return limb(a, 3, 3, x);
#define COMPARISONS(type, order) \
		case RHH_OP_EQ_##type: \
			*x = (order) == 0; \
			return true; \
		case RHH_OP_LT_##type: \
			*x = (order) < 0; \
			return true; \
		case RHH_OP_LE_##type: \
			*x = (order) <= 0; \
			return true;
			COMPARISONS(INT8, compare_numbers(a, b))
			COMPARISONS(DECIMAL128, compare_numbers(a, b))
			COMPARISONS(FLOAT4, compare_floats(fa, fb))
			COMPARISONS(FLOAT8, compare_floats(da, db))
#undef COMPARISONS
		case RHH_OP_LT_OID:
			*x = (uint32_t) a < (uint32_t) b;
			return true;
		case RHH_OP_LE_OID:
			*x = !((uint32_t) b < (uint32_t) a);
			return true;
		case RHH_OP_EQUAL_FLOAT4:
			*x = of_float(isnan(fa) ? NAN : fa == 0 ? 0 : fa);
			return true;
		case RHH_OP_EQUAL_FLOAT8:
			*x = of_double(isnan(da) ? NAN : da == 0 ? 0 : da);
			return true;
		case RHH_OP_ORDER_FLOAT4:
			*x = of_float(isnan(fa) ? NAN : fa);
			if (*x < 0)
				*x = -1 - (*x - INT32_MIN);
			return true;
		case RHH_OP_ORDER_FLOAT8:
			*x = of_double(isnan(da) ? NAN : da);
			if (*x < 0)
				*x = -1 - (*x - INT64_MIN);
			return true;
		case RHH_OP_ORDER_OID:
			*x = (number) (uint32_t) a + INT32_MIN;
			return true;
		case RHH_OP_PRODUCT_FLOAT8:
			d = da * db;
			*x = (uint64_t) of_double(d);
			if (fabs(d) > 0x1p-900 && fabs(d) < 0x1p990 && fabs(da) < 0x1p990 && fabs(db) < 0x1p990)
				*x |= of_double((double) ((__float128) da * db - d)) * ((number) 1 << 64);
			return true;
		case RHH_OP_AS_BYTES:
			{
				magnitude	rest = (magnitude) a + ((magnitude) 1 << 127);

				for (int i = 0; i < 16; i++, rest >>= 8)
					*x = (number) ((magnitude) *x << 8 | (rest & 0xff));
				return true;
			}
		case RHH_OP_DATE_AS_TIMESTAMP:
			if (a == INT32_MIN || a == INT32_MAX)
			{
				*x = a == INT32_MIN ? INT64_MIN : INT64_MAX;
				return true;
			}
			*x = (int64_t) (a * 86400 * 1000000);	/* of no date wider than that */
			return a < 106751983;
		case RHH_OP_NOT:
			*x = a == 0;
			return true;
		default:
			die("an operation that the tests do not know");
	}
}

/* Does an operation take one operand? */
static bool
is_unary(uint8_t code)
{
	switch (code)
	{
		case RHH_OP_NEG_INT2:
		case RHH_OP_NEG_INT4:
		case RHH_OP_NEG_INT8:
		case RHH_OP_AS_INT2:
		case RHH_OP_AS_INT4:
		case RHH_OP_NEG_FLOAT4:
		case RHH_OP_NEG_FLOAT8:
		case RHH_OP_INT_AS_FLOAT8:
		case RHH_OP_FLOAT4_AS_FLOAT8:
		case RHH_OP_NEG_DECIMAL:
		case RHH_OP_NEG_DECIMAL128:
		case RHH_OP_INT_AS_DECIMAL128:
		case RHH_OP_DECIMAL_AS_DECIMAL128:
		case RHH_OP_LIMB_1_OF_1:
		case RHH_OP_LIMB_1_OF_2:
		case RHH_OP_LIMB_2_OF_2:
		case RHH_OP_LIMB_1_OF_3:
		case RHH_OP_LIMB_2_OF_3:
		case RHH_OP_LIMB_3_OF_3:
		case RHH_OP_EQUAL_FLOAT4:
		case RHH_OP_EQUAL_FLOAT8:
		case RHH_OP_ORDER_FLOAT4:
		case RHH_OP_ORDER_FLOAT8:
		case RHH_OP_ORDER_OID:
		case RHH_OP_AS_BYTES:
		case RHH_OP_DATE_AS_TIMESTAMP:
		case RHH_OP_NOT:
			return true;
		default:
			return false;
	}
}

/* A column's value, as a signed number. */
static number
column_value(const data *data, uint32_t c, uint64_t row)
{
	uint32_t	bits = 8 * data->d->spec.column_bytes[c];
	uint64_t	v[2];

	get_value(data, c, row, v);
	return (int64_t) (v[0] << (64 - bits)) >> (64 - bits);
}

/* A column of 16 bytes, as a number; the first byte is the most significant one. */
static number
column_bytes(const data *data, uint32_t c, uint64_t row)
{
	const uint8_t *bytes = data->values[c] + row * 16;
	magnitude	x = 0;

	for (int i = 0; i < 16; i++)
		x = x << 8 | bytes[i];
	return (number) (x - ((magnitude) 1 << 127));
}

/* A program in a row of columns. */
typedef struct evaluation
{
	const rhh_program *program;
	const data *data;
	uint64_t	row;
	value		values[RHH_MAX_OPS];
} evaluation;

static const value *evaluate(evaluation *e, uint8_t i);

static bool
is_true(const value *v)
{
	return !v->null && v->x != 0;
}

/* AND and OR: the first operand that decides is the last one that is evaluated. */
static void
evaluate_junction(evaluation *e, const rhh_op *op, value *v)
{
	const bool	decides = op->code == RHH_OP_OR;
	const uint8_t operands[] = {op->a, op->b};

	v->x = !decides;
	for (int i = 0; i < 2; i++)
	{
		const value *of = evaluate(e, operands[i]);

		if (of->bad)
		{
			v->bad = true;
			return;
		}
		if (!of->null && is_true(of) == decides)
		{
			v->null = false;
			v->x = decides;
			return;
		}
		v->null |= of->null;
	}
}

static void
evaluate_strict(evaluation *e, const rhh_op *op, value *v)
{
	const value *a = evaluate(e, op->a);
	const value *b = is_unary(op->code) ? a : evaluate(e, op->b);

	v->bad = a->bad || b->bad;
	v->null = a->null || b->null;
	if (!v->bad && !v->null)
		v->bad = !compute(op->code, a->x, is_unary(op->code) ? 0 : b->x, &v->x);
}

static const value *
evaluate(evaluation *e, uint8_t i)
{
	const rhh_op *op = &e->program->ops[i];
	const uint64_t *words = e->program->constants[op->a % RHH_MAX_CONSTANTS];
	value	   *v = &e->values[i];

	if (v->known)
		return v;
	v->known = true;
	switch (op->code)
	{
		case RHH_OP_COLUMN:
			v->null = is_null(e->data, op->a, e->row);
			v->x = column_value(e->data, op->a, e->row);
			break;
		case RHH_OP_COLUMN_OF_BYTES:
			v->null = is_null(e->data, op->a, e->row);
			v->x = column_bytes(e->data, op->a, e->row);
			break;
		case RHH_OP_COLUMN_IS_NULL:
			v->x = is_null(e->data, op->a, e->row);
			break;
		case RHH_OP_CONSTANT:
			v->null = e->program->null_constant[op->a];
			v->x = (int64_t) words[0];
			break;
		case RHH_OP_CONSTANT128:
			v->null = e->program->null_constant[op->a];
			v->x = (number) ((magnitude) words[1] << 64 | words[0]);
			break;
		case RHH_OP_AND:
		case RHH_OP_OR:
			evaluate_junction(e, op, v);
			break;
		case RHH_OP_IS_TRUE:
			v->bad = evaluate(e, op->a)->bad;
			v->x = is_true(evaluate(e, op->a));
			break;
		case RHH_OP_IS_NULL:
		case RHH_OP_IS_NULL128:
			v->bad = evaluate(e, op->a)->bad;
			v->x = evaluate(e, op->a)->null;
			break;
		case RHH_OP_IF:
		case RHH_OP_IF128:
			if (evaluate(e, op->a)->bad)
				v->bad = true;
			else
				*v = *evaluate(e, is_true(evaluate(e, op->a)) ? op->b : op->c);
			break;
		default:
			evaluate_strict(e, op, v);
			break;
	}
	return v;
}

program_row
program_run_row(const rhh_program *program, const data *data, uint64_t row, bool store)
{
	evaluation	e = {.program = program, .data = data, .row = row};

	if (program->has_filter)
	{
		const value *filter = evaluate(&e, program->filter);

		if (filter->bad)
			return PROGRAM_BAD;
		if (!is_true(filter))
			return PROGRAM_DROPPED;
	}
	for (uint32_t r = 0; r < program->n_results; r++)
	{
		if (evaluate(&e, program->results[r].op)->bad)
			return PROGRAM_BAD;
	}
	for (uint32_t r = 0; store && r < program->n_results; r++)
	{
		const value *v = evaluate(&e, program->results[r].op);
		uint32_t	c = program->results[r].column;

		data->nulls[c][row] = v->null;
		memcpy(data->values[c] + row * data->d->spec.column_bytes[c], &v->x,
			   data->d->spec.column_bytes[c]);	/* little-endian */
	}
	return PROGRAM_GOOD;
}

void
program_put_nulls(const rhh_program *program, data *data, uint64_t row)
{
	for (uint32_t r = 0; r < program->n_results; r++)
		data->nulls[program->results[r].column][row] = 1;
}

void
program_normalize(const joined *joined, uint32_t key_words, uint64_t *group)
{
	const rhh_map_spec *spec = &joined->d->spec;

	for (uint32_t s = 0, w = key_words; s < spec->n_states; w += rhh_state_words(spec, s), s++)
	{
		bool		narrow = rhh_arg_bytes(spec, s) == 4;

		if ((joined->float_states >> s & 1) == 0)
			continue;
		if (narrow ? isnan(float_of((number) group[w + 1])) : isnan(double_of((number) group[w + 1])))
			group[w + 1] = UINT64_MAX;
	}
}
