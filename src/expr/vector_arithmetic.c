/*-------------------------------------------------------------------------
 *
 * vector_arithmetic.c
 *		Arithmetic and casts of vectors.
 *
 * If a value would raise an error, or might, these functions return false, and core
 * has to evaluate the chunk (see vector.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "expr/vector.h"

/*
 * A loop over all rows.  "bad" is true for a value that raises an error, or might.
 * The first loop only finds out whether there is such a value in any row, which costs
 * least.  If there is one, a second loop looks whether its row counts.
 */
#define CHECKED_LOOP(compute, bad) \
	do { \
		int			any_bad = 0; \
		\
		for (int i = 0; i < n; i++) \
		{ \
			compute; \
			any_bad |= (bad); \
		} \
		if (unlikely(any_bad)) \
		{ \
			for (int i = 0; i < n; i++) \
			{ \
				compute; \
				if ((bad) && (active == NULL || active[i]) && \
					!(nulls && nulls[i])) \
					return false; \
			} \
		} \
	} while (0)

#define INTEGER_ARITHMETIC(T, UT, multiply, MIN) \
	do { \
		const T    *a = node->args[0]->result.values; \
		const T    *b = node->args[1]->result.values; \
		T		   *pg_restrict r = node->values; \
		\
		switch (node->op) \
		{ \
			case VECTOR_ADD: \
				CHECKED_LOOP(r[i] = (T) ((UT) a[i] + (UT) b[i]), \
							 (T) ((a[i] ^ r[i]) & (b[i] ^ r[i])) < 0); \
				break; \
			case VECTOR_SUBTRACT: \
				CHECKED_LOOP(r[i] = (T) ((UT) a[i] - (UT) b[i]), \
							 (T) ((a[i] ^ b[i]) & (a[i] ^ r[i])) < 0); \
				break; \
			case VECTOR_MULTIPLY: \
				CHECKED_LOOP(T product; \
							 bool bad_ = multiply(a[i], b[i], &product); \
							 r[i] = bad_ ? 0 : product, \
							 bad_); \
				break; \
			case VECTOR_DIVIDE: \
				/* MIN / -1 overflows, and traps */ \
				CHECKED_LOOP(bool bad_ = b[i] == 0 || (b[i] == -1 && a[i] == MIN); \
							 r[i] = bad_ ? 0 : a[i] / b[i], \
							 bad_); \
				break; \
			default: \
				/* as core: anything % -1 is 0 */ \
				CHECKED_LOOP(bool bad_ = b[i] == 0; \
							 r[i] = bad_ || b[i] == -1 ? 0 : a[i] % b[i], \
							 bad_); \
				break; \
		} \
	} while (0)

/*
 * An infinite result may be an overflow, and a result of 0 an underflow.  Infinite
 * arguments or arguments of 0 may explain the result as well, but it is left to core
 * to find that out.
 */
#define FLOAT_ARITHMETIC(T) \
	do { \
		const T    *a = node->args[0]->result.values; \
		const T    *b = node->args[1]->result.values; \
		T		   *pg_restrict r = node->values; \
		\
		switch (node->op) \
		{ \
			case VECTOR_ADD: \
				CHECKED_LOOP(r[i] = a[i] + b[i], isinf(r[i])); \
				break; \
			case VECTOR_SUBTRACT: \
				CHECKED_LOOP(r[i] = a[i] - b[i], isinf(r[i])); \
				break; \
			case VECTOR_MULTIPLY: \
				CHECKED_LOOP(r[i] = a[i] * b[i], \
							 isinf(r[i]) || (r[i] == 0 && a[i] != 0 && b[i] != 0)); \
				break; \
			default: \
				CHECKED_LOOP(r[i] = a[i] / b[i], \
							 b[i] == 0 || isinf(r[i]) || (r[i] == 0 && a[i] != 0)); \
				break; \
		} \
	} while (0)

/*
 * Decimals.  A result that does not fit its type is left to core, and so is all
 * arithmetic with NaN.
 */
#define DECIMAL_NAN(T) ((T) (sizeof(T) == 8 ? GPURHH_DECIMAL_NAN : GPURHH_DECIMAL128_NAN))

#define DECIMAL_LOOP(TA, TB, TR, overflows) \
	do { \
		const TA   *a = node->args[0]->result.values; \
		const TB   *b = node->args[1]->result.values; \
		TR		   *pg_restrict r = node->values; \
		\
		CHECKED_LOOP(TR result_; \
					 bool bad_ = overflows(a[i], b[i], &result_) | \
						 (a[i] == DECIMAL_NAN(TA)) | (b[i] == DECIMAL_NAN(TB)) || \
						 result_ == DECIMAL_NAN(TR); \
					 r[i] = bad_ ? 0 : result_, \
					 bad_); \
	} while (0)

/* Most values fit 64 bits, even where their type may have more digits. */
static inline bool
multiply_wide(int128 a, int128 b, int128 *result)
{
	if (likely(a == (int64) a && b == (int64) b))
	{
		*result = (int128) (int64) a * (int64) b;
		return false;
	}
	return __builtin_mul_overflow(a, b, result);
}

static inline bool
multiply_narrow(int64 a, int64 b, int128 *result)
{
	*result = (int128) a * b;
	return false;
}

static bool
evaluate_decimal(VectorContext *cx, VectorNode *node, const uint8 *active)
{
	bool		wide = node->type == VECTOR_DECIMAL128;
	int			n = cx->n;
	const uint8 *nulls = node->result.nulls;

	switch (node->op)
	{
		case VECTOR_ADD:
			if (wide)
				DECIMAL_LOOP(int128, int128, int128, __builtin_add_overflow);
			else
				DECIMAL_LOOP(int64, int64, int64, __builtin_add_overflow);
			break;
		case VECTOR_SUBTRACT:
			if (wide)
				DECIMAL_LOOP(int128, int128, int128, __builtin_sub_overflow);
			else
				DECIMAL_LOOP(int64, int64, int64, __builtin_sub_overflow);
			break;
		default:
			Assert(node->op == VECTOR_MULTIPLY);
			if (!wide)
				DECIMAL_LOOP(int64, int64, int64, __builtin_mul_overflow);
			else if (node->args[0]->type == VECTOR_DECIMAL)
				DECIMAL_LOOP(int64, int64, int128, multiply_narrow);
			else if (node->args[1]->type == VECTOR_DECIMAL)
				DECIMAL_LOOP(int128, int64, int128, multiply_wide);
			else
				DECIMAL_LOOP(int128, int128, int128, multiply_wide);
			break;
	}
	return true;
}

/* Appends zeros behind the point, so that decimals of two scales can be combined. */
bool
gpurhh_vector_rescale(VectorContext *cx, VectorNode *node,
					  const uint8 *active)
{
	int			zeros = node->scale - node->args[0]->scale;
	const void *values = node->args[0]->result.values;
	int128		power;
	int			n = cx->n;
	const uint8 *nulls;

	gpurhh_vector_strict_nulls(cx, node);
	nulls = node->result.nulls;
	if (!gpurhh_decimal_power(zeros, &power))
		return false;

#define RESCALE_LOOP(T) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		T			factor = (T) power; \
		\
		CHECKED_LOOP(T result_; \
					 bool bad_ = __builtin_mul_overflow(a[i], factor, &result_) | \
						 (a[i] == DECIMAL_NAN(T)); \
					 r[i] = bad_ ? 0 : result_, \
					 bad_); \
	} while (0)

	if (node->type == VECTOR_DECIMAL128)
		RESCALE_LOOP(int128);
	else
		RESCALE_LOOP(int64);
	return true;
}

bool
gpurhh_vector_arithmetic(VectorContext *cx, VectorNode *node,
						 const uint8 *active)
{
	int			n = cx->n;
	const uint8 *nulls;

	gpurhh_vector_strict_nulls(cx, node);
	nulls = node->result.nulls;
	switch (node->type)
	{
		case VECTOR_DECIMAL:
		case VECTOR_DECIMAL128:
			return evaluate_decimal(cx, node, active);
		case VECTOR_INT2:
			INTEGER_ARITHMETIC(int16, uint16, pg_mul_s16_overflow, PG_INT16_MIN);
			break;
		case VECTOR_INT4:
			INTEGER_ARITHMETIC(int32, uint32, pg_mul_s32_overflow, PG_INT32_MIN);
			break;
		case VECTOR_INT8:
			INTEGER_ARITHMETIC(int64, uint64, pg_mul_s64_overflow, PG_INT64_MIN);
			break;
		case VECTOR_FLOAT4:
			FLOAT_ARITHMETIC(float4);
			break;
		case VECTOR_FLOAT8:
			FLOAT_ARITHMETIC(float8);
			break;
		default:
			elog(ERROR, "unexpected type of vector arithmetic: %d",
				 (int) node->type);
	}
	return true;
}

bool
gpurhh_vector_negate(VectorContext *cx, VectorNode *node,
					 const uint8 *active)
{
	const void *values = node->args[0]->result.values;
	int			n = cx->n;
	const uint8 *nulls;

	gpurhh_vector_strict_nulls(cx, node);
	nulls = node->result.nulls;

#define NEGATE_INTEGERS(T, UT, MIN) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		\
		CHECKED_LOOP(r[i] = (T) (0 - (UT) a[i]), a[i] == MIN); \
	} while (0)

#define NEGATE_FLOATS(T) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		\
		for (int i = 0; i < n; i++) \
			r[i] = -a[i]; \
	} while (0)

#define NEGATE_DECIMALS(T) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		\
		for (int i = 0; i < n; i++) \
			r[i] = a[i] == DECIMAL_NAN(T) ? a[i] : -a[i]; \
	} while (0)

	switch (node->type)
	{
		case VECTOR_INT2:
			NEGATE_INTEGERS(int16, uint16, PG_INT16_MIN);
			break;
		case VECTOR_INT4:
			NEGATE_INTEGERS(int32, uint32, PG_INT32_MIN);
			break;
		case VECTOR_INT8:
			NEGATE_INTEGERS(int64, uint64, PG_INT64_MIN);
			break;
		case VECTOR_FLOAT4:
			NEGATE_FLOATS(float4);
			break;
		case VECTOR_FLOAT8:
			NEGATE_FLOATS(float8);
			break;
		case VECTOR_DECIMAL:
			NEGATE_DECIMALS(int64);
			break;
		case VECTOR_DECIMAL128:
			NEGATE_DECIMALS(int128);
			break;
		default:
			elog(ERROR, "unexpected type of vector arithmetic: %d",
				 (int) node->type);
	}
	return true;
}

/* Converts from one type to another; a value out of range is an error. */
#define CAST_LOOP(FROM, TO, bad) \
	do { \
		const FROM *a = values; \
		TO		   *pg_restrict r = node->values; \
		\
		CHECKED_LOOP(r[i] = (TO) a[i], bad); \
	} while (0)

#define CAST_OF(from, to) ((int) (from) << 8 | (int) (to))

#define CAST_CASE(from, FROM, to, TO, bad) \
		case CAST_OF(from, to): \
			CAST_LOOP(FROM, TO, bad); \
			break

bool
gpurhh_vector_cast(VectorContext *cx, VectorNode *node,
				   const uint8 *active)
{
	VectorType	from = node->args[0]->type;
	VectorType	to = node->type;
	const void *values = node->args[0]->result.values;
	int			n = cx->n;
	const uint8 *nulls;

	gpurhh_vector_strict_nulls(cx, node);
	nulls = node->result.nulls;
	switch (CAST_OF(from, to))
	{
		CAST_CASE(VECTOR_BOOL, uint8, VECTOR_INT4, int32, false);
		CAST_CASE(VECTOR_INT2, int16, VECTOR_INT4, int32, false);
		CAST_CASE(VECTOR_INT2, int16, VECTOR_INT8, int64, false);
		CAST_CASE(VECTOR_INT4, int32, VECTOR_INT8, int64, false);
		CAST_CASE(VECTOR_INT4, int32, VECTOR_INT2, int16, r[i] != a[i]);
		CAST_CASE(VECTOR_INT8, int64, VECTOR_INT2, int16, r[i] != a[i]);
		CAST_CASE(VECTOR_INT8, int64, VECTOR_INT4, int32, r[i] != a[i]);
		CAST_CASE(VECTOR_INT2, int16, VECTOR_FLOAT8, float8, false);
		CAST_CASE(VECTOR_INT4, int32, VECTOR_FLOAT8, float8, false);
		CAST_CASE(VECTOR_INT8, int64, VECTOR_FLOAT8, float8, false);
		CAST_CASE(VECTOR_FLOAT4, float4, VECTOR_FLOAT8, float8, false);
		CAST_CASE(VECTOR_INT2, int16, VECTOR_DECIMAL, int64, false);
		CAST_CASE(VECTOR_INT4, int32, VECTOR_DECIMAL, int64, false);
		CAST_CASE(VECTOR_INT8, int64, VECTOR_DECIMAL128, int128, false);
		case CAST_OF(VECTOR_DECIMAL, VECTOR_DECIMAL128):
			{
				const int64 *a = values;
				int128 *pg_restrict r = node->values;

				for (int i = 0; i < n; i++)
					r[i] = a[i] == GPURHH_DECIMAL_NAN ? GPURHH_DECIMAL128_NAN : a[i];
				break;
			}
		default:
			elog(ERROR, "unexpected vector cast from %d to %d", (int) from,
				 (int) to);
	}
	return true;
}

/*
 * Makes timestamps of dates.  A date may be greater than all timestamps; comparing
 * such a date is left to core.
 */
bool
gpurhh_vector_date_cast(VectorContext *cx, VectorNode *node,
						const uint8 *active)
{
	const DateADT *a = node->args[0]->result.values;
	Timestamp *pg_restrict r = node->values;
	int			n = cx->n;
	const uint8 *nulls;

	gpurhh_vector_strict_nulls(cx, node);
	nulls = node->result.nulls;
	CHECKED_LOOP(bool bad_ = a[i] >= TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE &&
				 !DATE_IS_NOEND(a[i]);
				 r[i] = DATE_IS_NOBEGIN(a[i]) ? DT_NOBEGIN :
				 DATE_IS_NOEND(a[i]) ? DT_NOEND :
				 bad_ ? 0 : a[i] * USECS_PER_DAY,
				 bad_);
	return true;
}
