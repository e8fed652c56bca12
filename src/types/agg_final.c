/*-------------------------------------------------------------------------
 *
 * agg_final.c
 *		Makes the results of aggregates of their states: the values that core's
 *		final functions give for the same rows.
 *
 * Results of integers equal core's to the last digit.  Sums of floats depend on the
 * order of the rows, as they do in core's parallel plans.  An overflow is an error
 * here where it is an error in core:
 *
 *		sum			if the sum of finite values is infinite
 *		avg			if the sum is infinite, or if the sum of the squares of all
 *					differences from the average is, which core computes as well
 *		variance	if that sum of squares is infinite
 *
 * There is one exception: a group that has values beyond 2^510 (10^153) of which no
 * two differ by 2^513 or more.  Here its average is returned and its variance is
 * always an error, while in core both depend on the order of the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "compat.h"
#include "rhh_states.h"
#include "types/agg_final.h"

/* ---------- integers ---------- */

/* sum * 2^64 + word.  The word is added in two halves, as it has no sign. */
static Datum
numeric_shift_add(Datum sum, uint64 word)
{
	Datum		two32 = NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32));

	sum = DirectFunctionCall2(numeric_mul, sum, two32);
	sum = DirectFunctionCall2(numeric_add, sum,
							  NumericGetDatum(int64_to_numeric((int64) (word >> 32))));
	sum = DirectFunctionCall2(numeric_mul, sum, two32);
	return DirectFunctionCall2(numeric_add, sum,
							   NumericGetDatum(int64_to_numeric((int64) (word & 0xffffffff))));
}

/* An unsigned integer of three words as a numeric. */
static Datum
numeric_from_words(const uint64 *words)
{
	return numeric_shift_add(gpurhh_decimal_make((int128) ((uint128) words[2] << 64 | words[1]), 0),
							 words[0]);
}

/* The sum of squares of numerics, from the sum of squares of value * 10^scale. */
Datum
gpurhh_final_squares(const uint64 *squares, int scale)
{
	return DirectFunctionCall2(numeric_mul, numeric_from_words(squares),
							   gpurhh_decimal_make(1, 2 * scale));
}

/*
 * The square root of a number, rounded to the number's own scale.  numeric_sqrt()
 * may round to more digits than that.  A result that it rounded up to a half must
 * not be rounded up a second time.
 */
static Datum
sqrt_of_scale(Datum number)
{
	Datum		scale = DirectFunctionCall1(numeric_scale, number);
	Datum		root = DirectFunctionCall1(numeric_sqrt, number);
	Datum		rounded = DirectFunctionCall2(numeric_round, root, scale);

	if (DatumGetBool(DirectFunctionCall2(numeric_gt, rounded, root)))
	{
		Datum		half = NumericGetDatum(int64_div_fast_to_numeric(5, DatumGetInt32(scale) + 1));
		Datum		limit = DirectFunctionCall2(numeric_sub, rounded, half);

		if (DatumGetBool(DirectFunctionCall2(numeric_gt,
											 DirectFunctionCall2(numeric_mul, limit, limit),
											 number)))
			rounded = DirectFunctionCall2(numeric_trunc, root, scale);
	}
	return rounded;
}

/* count * squares - sum * sum.  This fits 128 bits in most cases. */
static Datum
variance_numerator(int128 sum, uint64 count, const uint64 *squares)
{
	int128		square;
	int128		left;
	int128		right;
	Datum		sum_numeric;

	if (squares[2] == 0 && (int64) squares[1] >= 0)
	{
		square = (int128) ((uint128) squares[1] << 64 | squares[0]);
		if (!__builtin_mul_overflow(square, (int128) count, &left) &&
			!__builtin_mul_overflow(sum, sum, &right))
			return gpurhh_decimal_make(left - right, 0);
	}
	sum_numeric = gpurhh_decimal_make(sum, 0);
	return DirectFunctionCall2(numeric_sub,
							   DirectFunctionCall2(numeric_mul,
												   numeric_from_words(squares),
												   NumericGetDatum(int64_to_numeric((int64) count))),
							   DirectFunctionCall2(numeric_mul, sum_numeric,
												   sum_numeric));
}

/*
 * The variance of count numerics, computed and rounded as core's final functions of
 * numeric do it; with root its square root, the standard deviation.  sum and squares
 * (three words) are of the integers value * 10^scale.  With sample the numerics are
 * a sample of their population.  The caller makes sure that there are enough rows.
 */
Datum
gpurhh_final_variance(bool sample, bool root, int128 sum, uint64 count,
					  const uint64 *squares, int scale)
{
	int128		divisor = (int128) count * (count - (sample ? 1 : 0));
	Datum		result = variance_numerator(sum, count, squares);

	/* a zero as it is, without the scale of a quotient */
	if (DatumGetInt32(DirectFunctionCall2(numeric_cmp, result,
										  NumericGetDatum(int64_to_numeric(0)))) == 0)
		return result;
	if (scale > 0)
		result = DirectFunctionCall2(numeric_mul, result,
									 gpurhh_decimal_make(1, 2 * scale));
	result = DirectFunctionCall2(numeric_div, result,
								 gpurhh_decimal_make(divisor, 0));
	if (root)
		result = sqrt_of_scale(result);
	return result;
}

/*
 * The sum of money, from its two words.  Servers differ, even within one major
 * version, in whether a sum that does not fit is an error or wraps around.  So the
 * server's own addition is called to find out.
 */
int64
gpurhh_final_money(uint64 low, uint64 high)
{
	if (high != (uint64) ((int64) low >> 63))
		(void) DirectFunctionCall2(cash_pl, Int64GetDatum(PG_INT64_MAX),
								   Int64GetDatum(1));
	return (int64) low;
}

/* ---------- intervals ---------- */

/*
 * The sum or the average of count intervals, from the sums of their fields.
 * infinite has the bits of gpurhh_interval_infinite() of all of them.
 */
Datum
gpurhh_final_interval(bool average, int128 time, int64 days, int64 months,
					  int infinite, uint64 count)
{
	Interval   *sum = palloc(sizeof(Interval));

	sum->time = (TimeOffset) time;
	sum->day = (int32) days;
	sum->month = (int32) months;
	if (infinite == 3 ||
		(infinite == 0 &&
		 (sum->time != time || sum->day != days || sum->month != months ||
		  gpurhh_interval_infinite(sum) != 0)))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("interval out of range")));
	if (infinite != 0)
		gpurhh_set_infinite(sum, infinite == 2);
	else if (average)
		return DirectFunctionCall2(interval_div, IntervalPGetDatum(sum),
								   Float8GetDatum((float8) count));
	return IntervalPGetDatum(sum);
}

/* ---------- floats ---------- */

/* If values were infinite or NaN, stores the sum, which these decide, and returns true. */
bool
gpurhh_not_finite(uint64 flags, float8 *result)
{
	if ((flags & RHH_F64_NOT_FINITE) == 0)
		return false;
	if (flags & RHH_F64_NAN ||
		((flags & RHH_F64_INFINITE) && (flags & RHH_F64_NEG_INFINITE)))
		*result = get_float8_nan();
	else if (flags & RHH_F64_INFINITE)
		*result = get_float8_infinity();
	else
		*result = -get_float8_infinity();
	return true;
}

/* Do values differ so much that the square overflows?  See rhh_device.h. */
static bool
spread_overflows(uint64 flags)
{
	uint64		pairs = flags >> RHH_F64_FIRST_PAIR;
	bool		large = (flags & RHH_F64_LARGE) != 0;
	bool		negative = (flags & RHH_F64_NEG_LARGE) != 0;

	return ((large || negative) && (flags & RHH_F64_SMALL) != 0) ||
		(large && negative) ||
		(pairs != 0 && (flags & (RHH_F64_SMALL | RHH_F64_MIDDLE)) != 0) ||
		(pairs & (pairs >> 1) & UINT64CONST(0x5555555555555555)) != 0;
}

/* The sum of floats, from its word and its flags.  With single it must fit a float4. */
float8
gpurhh_final_sum_float(uint64 sum, uint64 flags, bool single)
{
	float8		result;

	if (gpurhh_not_finite(flags, &result))
		return result;
	result = rhh_as_double(sum);
	/* partial sums that overflowed, to either side, add up to NaN */
	if (!isfinite(result) || (single && isinf((float4) result)))
		float_overflow_error();
	return result;
}

/* The average of count floats; count is not 0. */
float8
gpurhh_final_avg_float(uint64 sum, uint64 flags, uint64 count)
{
	float8		result = gpurhh_final_sum_float(sum, flags, false);

	if ((flags & RHH_F64_NOT_FINITE) == 0 && spread_overflows(flags))
		float_overflow_error();
	/* core begins with 0, so it never has -0 */
	return (result + 0.0) / (float8) count;
}

/* ---------- sums of twice the precision ---------- */

/* Stores the sum *x + *y in *y, and what rounding took from it in *x. */
static inline void
sum_on(float8 *x, float8 *y)
{
	float8		sum = *x + *y;

	*x = rhh_sum_error(*x, *y, sum);
	*y = sum;
}

/* Stores the product in product[0], and what rounding took from it in product[1]. */
static inline void
two_product(float8 a, float8 b, float8 *product)
{
	product[0] = a * b;
	product[1] = fma(a, b, -product[0]);
}

/* Reads a number that a state holds as the sum of two doubles. */
Twice
gpurhh_twice(const uint64 *words, Size stride)
{
	Twice		result;

	result.low = rhh_as_double(words[stride]);
	result.high = rhh_as_double(words[0]);
	sum_on(&result.low, &result.high);
	return result;
}

/*
 * n * products + x * y, as precisely as with three times the digits of a double.
 * What rounding takes is added up as well, and what rounding takes from that too
 * (the algorithm SumK of Ogita, Rump and Oishi).
 */
static float8
sum_thrice(float8 n, Twice products, Twice x, Twice y)
{
	float8		terms[12];
	float8		result = 0;

	two_product(n, products.high, &terms[0]);
	two_product(n, products.low, &terms[2]);
	two_product(x.high, y.high, &terms[4]);
	two_product(x.high, y.low, &terms[6]);
	two_product(x.low, y.high, &terms[8]);
	two_product(x.low, y.low, &terms[10]);
	for (int pass = 0; pass < 2; pass++)
	{
		for (int i = 1; i < lengthof(terms); i++)
			sum_on(&terms[i - 1], &terms[i]);
	}
	for (int i = 0; i < lengthof(terms); i++)
		result += terms[i];
	return result;
}

/*
 * The sum of (x - average of x) * (y - average of y) over count rows, from the
 * sums of x * y, of x and of y.
 *
 * It is sum(x * y) - sum(x) * sum(y) / count.  Where the difference is much smaller
 * than both terms, their leading bits cancel each other out.  The sums have 106
 * bits, so that enough of them are left.
 */
float8
gpurhh_sum_of_deviations(Twice products, Twice x, Twice y, uint64 count)
{
	int			exponent;
	float8		n = frexp((float8) count, &exponent);
	float8		scale = ldexp(-1.0, -exponent);
	float8		first[2];
	float8		second[2];
	float8		sum;
	float8		rest;

	/* n is count by 2^exponent, so as not to leave the range; y is to be, too */
	y.high *= scale;
	y.low *= scale;
	two_product(n, products.high, first);
	two_product(x.high, y.high, second);
	sum = first[0] + second[0];
	rest = rhh_sum_error(first[0], second[0], sum) + (first[1] + second[1]) +
		(n * products.low + (x.high * y.low + x.low * y.high));
	/* what is mostly not taken away needs no more than that */
	if (fabs(sum) > fabs(first[0]) * 0x1p-40)
		sum += rest;
	else
		sum = sum_thrice(n, products, x, y);
	if (!isfinite(sum))
		float_overflow_error();
	return sum / n;
}

/*
 * The variance of count floats, from the words of RHH_MOMENTS_F64; with root its
 * square root.  The result is precise unless the values differ by less than 10^-12
 * of their size.  The caller makes sure that there are enough rows.
 */
float8
gpurhh_final_variance_float(bool sample, bool root, const uint64 *moments,
							Size stride, uint64 count)
{
	float8		n = (float8) count;
	uint64		flags = moments[4 * stride];
	Twice		sum = gpurhh_twice(moments, stride);
	Twice		squares = gpurhh_twice(&moments[2 * stride], stride);
	float8		deviations;

	if ((flags & RHH_F64_NOT_FINITE) != 0)
		return get_float8_nan();
	/* one value's is 0, whatever it is */
	if (count == 1)
		return 0;
	if ((flags & ~(uint64) RHH_F64_SMALL) != 0 || !isfinite(squares.high))
		float_overflow_error();

	deviations = gpurhh_sum_of_deviations(squares, sum, sum, count);
	/* what is left of equal values is what was rounded */
	if (deviations <= squares.high * 0x1p-94)
		deviations = 0;
	deviations /= sample ? n - 1 : n;
	return root ? sqrt(deviations) : deviations;
}
