/*
 * rhh_program.h
 *		Programs: what is computed of a row's columns, the same on host and device.
 *
 * A program is a list of operations.  Each of them has one result for each row, a number
 * of 64 or 128 bits or NULL, and takes results of operations before it as its operands.
 * Results become columns (rhh_program).  One of the values may be the program's filter: rows
 * in which it is not true are dropped, and all else that they have means nothing.
 *
 * Most operations are strict: of a NULL operand comes NULL.  An operation whose result
 * would be an error for PostgreSQL, might be one, or is a number that is not represented
 * here, is *bad* in that row.  So is whatever takes a bad operand.  If a result of the
 * program is bad, nobody takes the row's columns for what they are: the row is handed back,
 * and its caller finds out what it really has.
 *
 * All operations are computed for all rows, but PostgreSQL does not evaluate what is behind
 * a condition that decides.  The operations of logic (RHH_LOGIC) know that: an operand that
 * would not be evaluated may be bad.
 *
 * Integers are sign-extended to 64 bits, booleans are 0 or 1, floats are the bits of a
 * double or, in the low 32 bits, of a float.  A decimal is an integer, the value times a power of
 * ten that the program's author keeps in mind; the greatest integer of 64 or of 128 bits
 * stands for NaN.
 */
#ifndef RHH_PROGRAM_H
#define RHH_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rhh_device.h"
#include "rhh_hash.h"
#include "rhh_states.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RHH_MAX_OPS			128
#define RHH_MAX_CONSTANTS	32
#define RHH_MAX_RESULTS		32

#define RHH_DECIMAL_NAN		INT64_MAX
#define RHH_LIMB_BITS		61	/* of a decimal's absolute value in a column */

__extension__ typedef __int128 rhh_int128;
__extension__ typedef unsigned __int128 rhh_uint128;

#define RHH_DECIMAL128_NAN	((rhh_int128) (~(rhh_uint128) 0 >> 1))

#define RHH_NULL	1			/* flags of a result */
#define RHH_BAD		2

/*
 * The strict operations: name, result (N: 64 bits, W: 128 bits), and operands (a and b; _
 * if there is none).  rhh_do_...() computes them.
 */
#define RHH_OPERATIONS(X) \
	X(ADD_INT2, N, N, N) \
	X(SUB_INT2, N, N, N) \
	X(MUL_INT2, N, N, N) \
	X(DIV_INT2, N, N, N) \
	X(ADD_INT4, N, N, N) \
	X(SUB_INT4, N, N, N) \
	X(MUL_INT4, N, N, N) \
	X(DIV_INT4, N, N, N) \
	X(ADD_INT8, N, N, N) \
	X(SUB_INT8, N, N, N) \
	X(MUL_INT8, N, N, N) \
	X(DIV_INT8, N, N, N) \
	X(MOD_INT8, N, N, N)		/* of all widths: it cannot overflow */ \
	X(NEG_INT2, N, N, _) \
	X(NEG_INT4, N, N, _) \
	X(NEG_INT8, N, N, _) \
	X(AS_INT2, N, N, _) 		/* of a wider integer */ \
	X(AS_INT4, N, N, _) \
	X(ADD_FLOAT4, N, N, N) \
	X(SUB_FLOAT4, N, N, N) \
	X(MUL_FLOAT4, N, N, N) \
	X(DIV_FLOAT4, N, N, N) \
	X(NEG_FLOAT4, N, N, _) \
	X(ADD_FLOAT8, N, N, N) \
	X(SUB_FLOAT8, N, N, N) \
	X(MUL_FLOAT8, N, N, N) \
	X(DIV_FLOAT8, N, N, N) \
	X(NEG_FLOAT8, N, N, _) \
	X(INT_AS_FLOAT8, N, N, _) \
	X(FLOAT4_AS_FLOAT8, N, N, _) \
	X(ADD_DECIMAL, N, N, N) \
	X(SUB_DECIMAL, N, N, N) \
	X(MUL_DECIMAL, N, N, N) \
	X(NEG_DECIMAL, N, N, _) \
	X(RESCALE_DECIMAL, N, N, N) /* b: a power of ten */ \
	X(ADD_DECIMAL128, W, W, W) \
	X(SUB_DECIMAL128, W, W, W) \
	X(MUL_DECIMAL128, W, W, W) \
	X(MUL_TO_DECIMAL128, W, N, N) \
	X(NEG_DECIMAL128, W, W, _) \
	X(RESCALE_DECIMAL128, W, W, W) \
	X(INT_AS_DECIMAL128, W, N, _) \
	X(DECIMAL_AS_DECIMAL128, W, N, _) \
	X(LIMBS_AS_DECIMAL128, W, N, N)	/* a: the first limb, b: the second one */ \
	X(ADD_LIMB_3, W, W, N)		/* a: the first two limbs, b: the third one */ \
	X(LIMB_1_OF_1, N, W, _)		/* a limb of as many as the column has */ \
	X(LIMB_1_OF_2, N, W, _) \
	X(LIMB_2_OF_2, N, W, _) \
	X(LIMB_1_OF_3, N, W, _) \
	X(LIMB_2_OF_3, N, W, _) \
	X(LIMB_3_OF_3, N, W, _) \
	X(EQ_INT8, N, N, N)			/* of all widths, of booleans and of decimals */ \
	X(LT_INT8, N, N, N) \
	X(LE_INT8, N, N, N) \
	X(LT_OID, N, N, N)			/* of 32 bits without a sign */ \
	X(LE_OID, N, N, N) \
	X(EQ_FLOAT4, N, N, N) \
	X(LT_FLOAT4, N, N, N) \
	X(LE_FLOAT4, N, N, N) \
	X(EQ_FLOAT8, N, N, N) \
	X(LT_FLOAT8, N, N, N) \
	X(LE_FLOAT8, N, N, N) \
	X(EQ_DECIMAL128, N, W, W) \
	X(LT_DECIMAL128, N, W, W) \
	X(LE_DECIMAL128, N, W, W) \
	X(EQUAL_FLOAT4, N, N, _)	/* as a key: equal floats have equal bits */ \
	X(EQUAL_FLOAT8, N, N, _) \
	X(ORDER_FLOAT4, N, N, _)	/* as an integer that is in the order of floats */ \
	X(ORDER_FLOAT8, N, N, _) \
	X(ORDER_OID, N, N, _)		/* in the order of integers without a sign */ \
	X(PRODUCT_FLOAT8, W, N, N)	/* twice as exact, as RHH_SUM_TWICE_F64 takes it */ \
	X(AS_BYTES, W, W, _)		/* what is loaded as RHH_OP_COLUMN_OF_BYTES, as it is stored */ \
	X(DATE_AS_TIMESTAMP, N, N, _) \
	X(NOT, N, N, _)

/* The operations of logic, and their operands (a, b and c). */
#define RHH_LOGIC(X) \
	X(AND, N, N, N, _) \
	X(OR, N, N, N, _) \
	X(IS_TRUE, N, N, _, _) \
	X(IS_NULL, N, N, _, _) \
	X(IS_NULL128, N, W, _, _) \
	X(IF, N, N, N, N)			/* b where a is true, else c */ \
	X(IF128, W, N, W, W)

#define RHH_OP_NAME(name, r, a, b) RHH_OP_##name,
#define RHH_LOGIC_NAME(name, r, a, b, c) RHH_OP_##name,

typedef enum rhh_op_code
{
	RHH_OP_COLUMN,				/* a: the column's number */
	RHH_OP_CONSTANT,			/* a: the constant's number */
	RHH_OP_CONSTANT128,			/* the same, of 128 bits */
	RHH_OP_COLUMN_IS_NULL,		/* a: the column's number, of any width */
	RHH_OP_COLUMN_OF_BYTES,		/* a: the number of a column of 16 bytes; a number of 128 bits
								 * whose order is that of the bytes */
	RHH_OPERATIONS(RHH_OP_NAME)
	RHH_LOGIC(RHH_LOGIC_NAME)
		RHH_N_OPS
} rhh_op_code;

typedef struct rhh_op
{
	uint8_t		code;			/* rhh_op_code */
	uint8_t		a;				/* operands: numbers of operations before this one */
	uint8_t		b;				/* 0 if there is none */
	uint8_t		c;				/* the same */
} rhh_op;

/*
 * A program.  It reads columns and writes others, which nothing else writes.
 */
struct rhh_program
{
	uint32_t	n_ops;
	rhh_op		ops[RHH_MAX_OPS];
	uint32_t	n_constants;
	uint64_t	constants[RHH_MAX_CONSTANTS][2];	/* low, high word */
	uint8_t		null_constant[RHH_MAX_CONSTANTS];
	bool		has_filter;
	uint8_t		filter;			/* then: the operation whose value has to be true, of 64 bits */
	uint32_t	n_results;
	struct
	{
		uint8_t		op;			/* whose results */
		uint8_t		column;		/* which they become; of 16 bytes if they are of 128 bits */
	}			results[RHH_MAX_RESULTS];
};

/* Does an operation read column a? */
static inline bool
rhh_op_reads_column(const rhh_op *op)
{
	return op->code == RHH_OP_COLUMN || op->code == RHH_OP_COLUMN_IS_NULL ||
		op->code == RHH_OP_COLUMN_OF_BYTES;
}

/* Is the result of an operation a number of 128 bits? */
static inline bool
rhh_op_is_wide(uint8_t code)
{
#define RHH_OP_WIDE_N false
#define RHH_OP_WIDE_W true
#define RHH_OP_WIDE(name, r, a, b) RHH_OP_WIDE_##r,
#define RHH_LOGIC_WIDE(name, r, a, b, c) RHH_OP_WIDE_##r,
	static const bool wide[] = {
		false, false, true, false, true, RHH_OPERATIONS(RHH_OP_WIDE) RHH_LOGIC(RHH_LOGIC_WIDE)
	};

	return wide[code];
#undef RHH_OP_WIDE
#undef RHH_LOGIC_WIDE
}

RHH_HD uint64_t
rhh_swap_bytes(uint64_t word)
{
	word = (word & UINT64_C(0x00ff00ff00ff00ff)) << 8 | (word >> 8 & UINT64_C(0x00ff00ff00ff00ff));
	word = (word & UINT64_C(0x0000ffff0000ffff)) << 16 | (word >> 16 & UINT64_C(0x0000ffff0000ffff));
	return word << 32 | word >> 32;
}

/* ---------- the strict operations: each returns whether it is bad ---------- */

#define RHH_DO(name, TR, TA, TB) \
	RHH_HD bool \
	rhh_do_##name(TA a, TB b, TR *r)

#define RHH_DO_INTEGER(bits) \
	RHH_DO(ADD_INT##bits, int64_t, int64_t, int64_t) \
	{ \
		*r = (int64_t) ((uint64_t) a + (uint64_t) b); \
		return RHH_FIT_##bits(*r, ((a ^ *r) & (b ^ *r)) < 0); \
	} \
	RHH_DO(SUB_INT##bits, int64_t, int64_t, int64_t) \
	{ \
		*r = (int64_t) ((uint64_t) a - (uint64_t) b); \
		return RHH_FIT_##bits(*r, ((a ^ b) & (a ^ *r)) < 0); \
	} \
	RHH_DO(MUL_INT##bits, int64_t, int64_t, int64_t) \
	{ \
		rhh_int128	product = (rhh_int128) a * b; \
		\
		*r = (int64_t) product; \
		return RHH_FIT_##bits(*r, product != *r); \
	} \
	RHH_DO(DIV_INT##bits, int64_t, int64_t, int64_t) \
	{ \
		bool		bad = b == 0 || (b == -1 && a == RHH_LEAST_##bits); \
		\
		*r = bad ? 0 : a / b; \
		return bad; \
	} \
	RHH_DO(NEG_INT##bits, int64_t, int64_t, int64_t) \
	{ \
		(void) b; \
		*r = (int64_t) (0 - (uint64_t) a); \
		return a == RHH_LEAST_##bits; \
	}

#define RHH_LEAST_2 INT16_MIN
#define RHH_LEAST_4 INT32_MIN
#define RHH_LEAST_8 INT64_MIN
#define RHH_FIT_2(value, wrapped) ((value) != (int16_t) (value))
#define RHH_FIT_4(value, wrapped) ((value) != (int32_t) (value))
#define RHH_FIT_8(value, wrapped) (wrapped)

RHH_DO_INTEGER(2)
RHH_DO_INTEGER(4)
RHH_DO_INTEGER(8)

RHH_DO(MOD_INT8, int64_t, int64_t, int64_t)
{
	*r = b == 0 || b == -1 ? 0 : a % b;
	return b == 0;
}

RHH_DO(AS_INT2, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = a;
	return a != (int16_t) a;
}

RHH_DO(AS_INT4, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = a;
	return a != (int32_t) a;
}

RHH_HD float
rhh_as_float(int64_t bits)
{
	uint32_t	low = (uint32_t) bits;
	float		value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

RHH_HD int64_t
rhh_of_float(float value)
{
	uint32_t	bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Infinite results may be overflows, and results of 0 underflows. */
RHH_HD bool
rhh_is_infinite(double value)
{
	return value - value != 0 && value == value;
}

#define RHH_DO_FLOAT(type, T, as, of) \
	RHH_DO(ADD_##type, int64_t, int64_t, int64_t) \
	{ \
		T			value = as(a) + as(b); \
		\
		*r = of(value); \
		return rhh_is_infinite(value); \
	} \
	RHH_DO(SUB_##type, int64_t, int64_t, int64_t) \
	{ \
		T			value = as(a) - as(b); \
		\
		*r = of(value); \
		return rhh_is_infinite(value); \
	} \
	RHH_DO(MUL_##type, int64_t, int64_t, int64_t) \
	{ \
		T			value = as(a) * as(b); \
		\
		*r = of(value); \
		return rhh_is_infinite(value) || (value == 0 && as(a) != 0 && as(b) != 0); \
	} \
	RHH_DO(DIV_##type, int64_t, int64_t, int64_t) \
	{ \
		T			value = as(a) / as(b); \
		\
		*r = of(value); \
		return as(b) == 0 || rhh_is_infinite(value) || (value == 0 && as(a) != 0); \
	} \
	RHH_DO(NEG_##type, int64_t, int64_t, int64_t) \
	{ \
		(void) b; \
		*r = of(-as(a)); \
		return false; \
	}

RHH_DO_FLOAT(FLOAT4, float, rhh_as_float, rhh_of_float)
RHH_DO_FLOAT(FLOAT8, double, rhh_as_double, rhh_as_bits)

RHH_DO(INT_AS_FLOAT8, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = rhh_as_bits((double) a);
	return false;
}

RHH_DO(FLOAT4_AS_FLOAT8, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = rhh_as_bits(rhh_as_float(a));
	return false;
}

/* ---------- decimals: arithmetic with NaN is bad, and so is what does not fit ---------- */

RHH_HD bool
rhh_is_nan_decimal(int64_t a, int64_t b, int64_t r)
{
	return a == RHH_DECIMAL_NAN || b == RHH_DECIMAL_NAN || r == RHH_DECIMAL_NAN;
}

RHH_HD bool
rhh_is_nan_decimal128(rhh_int128 a, rhh_int128 b, rhh_int128 r)
{
	return a == RHH_DECIMAL128_NAN || b == RHH_DECIMAL128_NAN || r == RHH_DECIMAL128_NAN;
}

RHH_DO(ADD_DECIMAL, int64_t, int64_t, int64_t)
{
	bool		bad = rhh_do_ADD_INT8(a, b, r);

	return bad || rhh_is_nan_decimal(a, b, *r);
}

RHH_DO(SUB_DECIMAL, int64_t, int64_t, int64_t)
{
	bool		bad = rhh_do_SUB_INT8(a, b, r);

	return bad || rhh_is_nan_decimal(a, b, *r);
}

RHH_DO(MUL_DECIMAL, int64_t, int64_t, int64_t)
{
	bool		bad = rhh_do_MUL_INT8(a, b, r);

	return bad || rhh_is_nan_decimal(a, b, *r);
}

RHH_DO(NEG_DECIMAL, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = (int64_t) (0 - (uint64_t) a);
	return a == INT64_MIN || rhh_is_nan_decimal(a, 0, *r);
}

RHH_DO(RESCALE_DECIMAL, int64_t, int64_t, int64_t)
{
	return rhh_do_MUL_DECIMAL(a, b, r);
}

RHH_DO(ADD_DECIMAL128, rhh_int128, rhh_int128, rhh_int128)
{
	*r = (rhh_int128) ((rhh_uint128) a + (rhh_uint128) b);
	return ((a ^ *r) & (b ^ *r)) < 0 || rhh_is_nan_decimal128(a, b, *r);
}

RHH_DO(SUB_DECIMAL128, rhh_int128, rhh_int128, rhh_int128)
{
	*r = (rhh_int128) ((rhh_uint128) a - (rhh_uint128) b);
	return ((a ^ b) & (a ^ *r)) < 0 || rhh_is_nan_decimal128(a, b, *r);
}

/* The bits that a number's absolute value takes, or one more. */
RHH_HD int
rhh_bits_of(rhh_int128 a)
{
	rhh_uint128 rest = a < 0 ? ~(rhh_uint128) a : (rhh_uint128) a;
	int			bits = 1;

	for (int half = 64; half > 0; half /= 2)
	{
		if (rest >> half != 0)
		{
			bits += half;
			rest >>= half;
		}
	}
	return bits;
}

/* Bad, too, if it would take a division to see that the product fits. */
RHH_DO(MUL_DECIMAL128, rhh_int128, rhh_int128, rhh_int128)
{
	*r = (rhh_int128) ((rhh_uint128) a * (rhh_uint128) b);
	return (!(a == (int64_t) a && b == (int64_t) b) &&
			rhh_bits_of(a) + rhh_bits_of(b) > 126) || rhh_is_nan_decimal128(a, b, *r);
}

RHH_DO(MUL_TO_DECIMAL128, rhh_int128, int64_t, int64_t)
{
	*r = (rhh_int128) a * b;
	return a == RHH_DECIMAL_NAN || b == RHH_DECIMAL_NAN;
}

RHH_DO(NEG_DECIMAL128, rhh_int128, rhh_int128, rhh_int128)
{
	(void) b;
	*r = (rhh_int128) (0 - (rhh_uint128) a);
	return (a < 0 && *r < 0) || rhh_is_nan_decimal128(a, 0, *r);
}

RHH_DO(RESCALE_DECIMAL128, rhh_int128, rhh_int128, rhh_int128)
{
	return rhh_do_MUL_DECIMAL128(a, b, r);
}

RHH_DO(INT_AS_DECIMAL128, rhh_int128, int64_t, int64_t)
{
	(void) b;
	*r = a;
	return false;
}

RHH_DO(DECIMAL_AS_DECIMAL128, rhh_int128, int64_t, int64_t)
{
	(void) b;
	*r = a == RHH_DECIMAL_NAN ? RHH_DECIMAL128_NAN : (rhh_int128) a;
	return false;
}

/*
 * Limb number limb, from 0, of as many as a decimal is fed in: some bits of the absolute
 * value, with the value's sign.  Bad, if the value takes more limbs.
 */
RHH_HD bool
rhh_limb(rhh_int128 a, int limb, int n_limbs, int64_t *r)
{
	rhh_uint128 absolute = a < 0 ? 0 - (rhh_uint128) a : (rhh_uint128) a;
	int64_t		part;

	if (a == RHH_DECIMAL128_NAN)
	{
		*r = limb == 0 ? RHH_DECIMAL_NAN : 0;
		return false;
	}
	part = (int64_t) ((uint64_t) (absolute >> (limb * RHH_LIMB_BITS)) &
					  ((UINT64_C(1) << RHH_LIMB_BITS) - 1));
	*r = a < 0 ? -part : part;
	return n_limbs * RHH_LIMB_BITS < 128 && absolute >> (n_limbs * RHH_LIMB_BITS) != 0;
}

#define RHH_DO_LIMB(i, n) \
	RHH_DO(LIMB_##i##_OF_##n, int64_t, rhh_int128, rhh_int128) \
	{ \
		(void) b; \
		return rhh_limb(a, (i) - 1, n, r); \
	}

RHH_DO_LIMB(1, 1)
RHH_DO_LIMB(1, 2)
RHH_DO_LIMB(2, 2)
RHH_DO_LIMB(1, 3)
RHH_DO_LIMB(2, 3)
RHH_DO_LIMB(3, 3)

/* The number that limbs are of, each of which has its sign. */
RHH_DO(LIMBS_AS_DECIMAL128, rhh_int128, int64_t, int64_t)
{
	*r = a == RHH_DECIMAL_NAN ? RHH_DECIMAL128_NAN :
		(rhh_int128) ((rhh_uint128) a + ((rhh_uint128) b << RHH_LIMB_BITS));
	return false;
}

RHH_DO(ADD_LIMB_3, rhh_int128, rhh_int128, int64_t)
{
	const int	unused = 128 - 2 * RHH_LIMB_BITS;
	const rhh_int128 third = (rhh_int128) ((rhh_uint128) b << (2 * RHH_LIMB_BITS));
	bool		bad;

	if (a == RHH_DECIMAL128_NAN)
	{
		*r = a;
		return false;
	}
	bad = rhh_do_ADD_DECIMAL128(a, third, r);
	return bad || b < -((int64_t) 1 << (unused - 1)) || b >= (int64_t) 1 << (unused - 1);
}

/* ---------- comparisons: none is bad ---------- */

#define RHH_COMPARE(name, T, condition) \
	RHH_DO(name, int64_t, T, T) \
	{ \
		*r = (condition); \
		return false; \
	}

/* What stands for NaN is the greatest integer, as NaN is the greatest decimal. */
RHH_COMPARE(EQ_INT8, int64_t, a == b)
RHH_COMPARE(LT_INT8, int64_t, a < b)
RHH_COMPARE(LE_INT8, int64_t, a <= b)
RHH_COMPARE(LT_OID, int64_t, (uint32_t) a < (uint32_t) b)
RHH_COMPARE(LE_OID, int64_t, (uint32_t) a <= (uint32_t) b)
RHH_COMPARE(EQ_DECIMAL128, rhh_int128, a == b)
RHH_COMPARE(LT_DECIMAL128, rhh_int128, a < b)
RHH_COMPARE(LE_DECIMAL128, rhh_int128, a <= b)

/* NaN equals NaN and is greater than every other value. */
#define RHH_COMPARE_FLOATS(type, as) \
	RHH_COMPARE(EQ_##type, int64_t, \
				as(a) == as(b) || (as(a) != as(a) && as(b) != as(b))) \
	RHH_COMPARE(LT_##type, int64_t, \
				as(a) < as(b) || (as(b) != as(b) && as(a) == as(a))) \
	RHH_COMPARE(LE_##type, int64_t, as(a) <= as(b) || as(b) != as(b))

RHH_COMPARE_FLOATS(FLOAT4, rhh_as_float)
RHH_COMPARE_FLOATS(FLOAT8, rhh_as_double)

/* ---------- what columns have instead of numbers: none is bad ---------- */

RHH_DO(EQUAL_FLOAT4, int64_t, int64_t, int64_t)
{
	const float value = rhh_as_float(a);

	(void) b;
	*r = value != value ? INT64_C(0x7fc00000) : value == 0 ? 0 : a;
	return false;
}

RHH_DO(EQUAL_FLOAT8, int64_t, int64_t, int64_t)
{
	const double value = rhh_as_double((uint64_t) a);

	(void) b;
	*r = value != value ? INT64_C(0x7ff8000000000000) : value == 0 ? 0 : a;
	return false;
}

RHH_DO(ORDER_FLOAT4, int64_t, int64_t, int64_t)
{
	const float value = rhh_as_float(a);
	const int32_t bits = value != value ? INT32_C(0x7fc00000) : (int32_t) a;

	(void) b;
	*r = bits ^ (bits < 0 ? INT32_MAX : 0);
	return false;
}

RHH_DO(ORDER_FLOAT8, int64_t, int64_t, int64_t)
{
	const double value = rhh_as_double((uint64_t) a);
	const int64_t bits = value != value ? INT64_C(0x7ff8000000000000) : a;

	(void) b;
	*r = bits ^ (bits < 0 ? INT64_MAX : 0);
	return false;
}

RHH_DO(ORDER_OID, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = (int32_t) ((uint32_t) a ^ UINT32_C(0x80000000));
	return false;
}

/* What rounding took is 0 where it might not be exact, since a step over- or underflows. */
RHH_DO(PRODUCT_FLOAT8, rhh_int128, int64_t, int64_t)
{
	const double x = rhh_as_double((uint64_t) a);
	const double y = rhh_as_double((uint64_t) b);
	const double product = rhh_product(x, y);
	const double size = fabs(product);
	double		error = 0;

	if (size > 0x1p-900 && size < 0x1p990 && fabs(x) < 0x1p990 && fabs(y) < 0x1p990)
		error = rhh_product_error(x, y, product);
	*r = (rhh_int128) ((rhh_uint128) rhh_as_bits(error) << 64 | rhh_as_bits(product));
	return false;
}

RHH_DO(AS_BYTES, rhh_int128, rhh_int128, rhh_int128)
{
	(void) b;
	*r = (rhh_int128) ((rhh_uint128) rhh_swap_bytes((uint64_t) a) << 64 |
					   rhh_swap_bytes((uint64_t) ((rhh_uint128) a >> 64) ^ UINT64_C(1) << 63));
	return false;
}

/* Dates from here on are greater than all timestamps, as days from 2000-01-01 on. */
#define RHH_END_OF_TIMESTAMPS	INT64_C(106751983)

/* The ends of time stay what they are, the least and the greatest integer. */
RHH_DO(DATE_AS_TIMESTAMP, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = a == INT32_MIN ? INT64_MIN : a == INT32_MAX ? INT64_MAX :
		(int64_t) ((uint64_t) a * UINT64_C(86400000000));
	return a >= RHH_END_OF_TIMESTAMPS && a != INT32_MAX;
}

RHH_DO(NOT, int64_t, int64_t, int64_t)
{
	(void) b;
	*r = a == 0;
	return false;
}

#undef RHH_DO
#undef RHH_DO_INTEGER
#undef RHH_DO_FLOAT
#undef RHH_DO_LIMB
#undef RHH_COMPARE
#undef RHH_COMPARE_FLOATS

/* ---------- logic: each gets its operands' flags, and returns its own ---------- */

#define RHH_DECIDE(name, TR, TA, TB) \
	RHH_HD uint8_t \
	rhh_do_##name(TA a, uint8_t a_flags, TB b, uint8_t b_flags, TB c, uint8_t c_flags, TR *r)

/* decides: the value of a that is the result whatever b is, and of b whatever a is */
#define RHH_DECIDE_BY(name, decides) \
	RHH_DECIDE(name, int64_t, int64_t, int64_t) \
	{ \
		const bool	by_a = a_flags == 0 && (a != 0) == (decides); \
		const bool	by_b = b_flags == 0 && (b != 0) == (decides); \
		\
		(void) c; \
		(void) c_flags; \
		*r = (by_a || by_b) == (decides); \
		return (uint8_t) ((a_flags & RHH_BAD) | (by_a ? 0 : b_flags & RHH_BAD) | \
						  (by_a || by_b ? 0 : (a_flags | b_flags) & RHH_NULL)); \
	}

RHH_DECIDE_BY(AND, false)
RHH_DECIDE_BY(OR, true)

RHH_DECIDE(IS_TRUE, int64_t, int64_t, int64_t)
{
	(void) b;
	(void) b_flags;
	(void) c;
	(void) c_flags;
	*r = a != 0 && (a_flags & RHH_NULL) == 0;
	return a_flags & RHH_BAD;
}

#define RHH_DO_IS_NULL(name, T) \
	RHH_DECIDE(name, int64_t, T, T) \
	{ \
		(void) a; \
		(void) b; \
		(void) b_flags; \
		(void) c; \
		(void) c_flags; \
		*r = (a_flags & RHH_NULL) != 0; \
		return a_flags & RHH_BAD; \
	}

RHH_DO_IS_NULL(IS_NULL, int64_t)
RHH_DO_IS_NULL(IS_NULL128, rhh_int128)

#define RHH_DO_IF(name, T) \
	RHH_DECIDE(name, T, int64_t, T) \
	{ \
		const bool	first = a != 0 && (a_flags & RHH_NULL) == 0; \
		\
		*r = first ? b : c; \
		return (uint8_t) ((a_flags & RHH_BAD) | (first ? b_flags : c_flags)); \
	}

RHH_DO_IF(IF, int64_t)
RHH_DO_IF(IF128, rhh_int128)

#undef RHH_DECIDE
#undef RHH_DECIDE_BY
#undef RHH_DO_IS_NULL
#undef RHH_DO_IF

/* ---------- columns ---------- */

/* A value of a column as operations take it. */
RHH_HD int64_t
rhh_program_load(const uint8_t *values, uint32_t bytes, size_t row)
{
	switch (bytes)
	{
		case 1:
			return ((const int8_t *) values)[row];
		case 2:
			return ((const int16_t *) values)[row];
		case 4:
			return ((const int32_t *) values)[row];
		default:
			return ((const int64_t *) values)[row];
	}
}

/* high: of a value of 16 bytes, whose first word this is, the second one */
RHH_HD void
rhh_program_store(uint8_t *values, uint32_t bytes, size_t row, int64_t value, int64_t high)
{
	switch (bytes)
	{
		case 1:
			((int8_t *) values)[row] = (int8_t) value;
			break;
		case 2:
			((int16_t *) values)[row] = (int16_t) value;
			break;
		case 4:
			((int32_t *) values)[row] = (int32_t) value;
			break;
		case 16:
			((int64_t *) values)[2 * row] = value;
			((int64_t *) values)[2 * row + 1] = high;
			break;
		default:
			((int64_t *) values)[row] = value;
			break;
	}
}

/* The words of a value of 16 bytes, of a number that compares as memcmp() does of the bytes. */
RHH_HD void
rhh_order_bytes(uint64_t first, uint64_t second, uint64_t words[2])
{
	words[0] = rhh_swap_bytes(second);
	words[1] = rhh_swap_bytes(first) ^ UINT64_C(1) << 63;
}

/* ---------- on the host ---------- */

/* The bytes of scratch memory, aligned to 64, that rhh_program_run() needs. */
size_t		rhh_program_scratch(const rhh_program *program);

/* What has become of the rows of rhh_program_run(). */
typedef struct rhh_program_rows
{
	uint32_t	n_bad;
	uint32_t	n_dropped;		/* by the filter */
} rhh_program_rows;

/*
 * Runs a program for n rows of columns.  Column c has column_bytes[c] bytes a value, its
 * values at values[c], and a bitmap of its NULLs at nulls[c], or NULL there if it has
 * none.  Of a column that is a result, both are written, and nulls[c] may be a null
 * pointer if no result can be NULL.  bad and dropped, bitmaps of n bits, get the rows that
 * are; no row is both.  All bitmaps have room up to the next multiple of 8 bytes.
 */
rhh_program_rows rhh_program_run(const rhh_program *program, const uint8_t *column_bytes,
								 uint8_t *const *values, uint8_t *const *nulls, uint32_t n,
								 void *scratch, uint8_t *bad, uint8_t *dropped);

/*
 * Is it a program over n_columns columns of these widths that a device can run?  If not,
 * returns false, and *why says what is wrong.
 */
bool		rhh_program_check(const rhh_program *program, uint32_t n_columns,
							  const uint8_t *column_bytes, const char **why);

/* Is there an operation in a program that is bad in some rows? */
bool		rhh_program_may_be_bad(const rhh_program *program);

#ifdef __cplusplus
}
#endif

#endif							/* RHH_PROGRAM_H */
