/*-------------------------------------------------------------------------
 *
 * pairs.c
 *		Aggregates of two arguments: corr, covar_pop and the like.
 *
 * They are over the rows in which neither argument is NULL.  Core's are made of
 * a count, two sums, and three sums of products of deviations from the averages,
 * Sxx, Syy and Sxy.  Core changes these with each row, in the rows' order.  Here
 * they are computed at the end, of sums of twice the precision in any order:
 *
 *		Sxx		as variances are, of the moments of one argument
 *		Sxy		the same of the products of both
 *
 * The arguments are fed as columns of their own.  What is made of both, once a
 * block is full, is a column that says where neither is NULL, which is the states'
 * filter, and one of the products, each as two doubles: what it is, rounded, and
 * what rounding took from it.
 *
 * Core's final functions make the result; they divide by Sxx and Syy, so it matters
 * whether these are 0.  They are where all values are equal, which is known from
 * their bits: where AND is OR.  No rounding decides it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "rhh_states.h"
#include "utils/array.h"
#include "utils/float.h"

/* ---------- columns ---------- */

static const void *
column_values(const Feed *feed, int column)
{
	return feed->base + feed->columns[column].values_offset;
}

/* Eight rows' bits where the column is NULL. */
static uint8
null_bits(const Feed *feed, int column, uint32 row)
{
	if (!feed->columns[column].any_null)
		return 0;
	return ((const uint8 *) feed->base +
			feed->columns[column].nulls_offset)[row / 8];
}

static void
fill_both(const Feed *feed, int first, int second, uint8 *to)
{
	for (uint32 row = 0; row < feed->n_rows; row += 8)
	{
		uint32		n = Min(feed->n_rows - row, 8);
		uint8		nulls = null_bits(feed, first, row) |
			null_bits(feed, second, row);

		for (uint32 i = 0; i < n; i++)
			to[row + i] = (~nulls >> i) & 1;
	}
}

/*
 * What rounding took from x * y = product.  Wrong where it over- or underflows:
 * the former has no use for it, see gpurhh_pair_final().
 */
static inline float8
product_error(float8 x, float8 y, float8 product)
{
	float8		x_scaled = 134217729.0 * x; /* 2^27 + 1 */
	float8		y_scaled = 134217729.0 * y;
	float8		x_high = x_scaled - (x_scaled - x);
	float8		y_high = y_scaled - (y_scaled - y);
	float8		x_low = x - x_high;
	float8		y_low = y - y_high;

	return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) +
		x_low * y_low;
}

static void
fill_products(const Feed *feed, const float8 *first, const float8 *second,
			  Twice *to)
{
	for (uint32 row = 0; row < feed->n_rows; row++)
	{
		to[row].high = first[row] * second[row];
		to[row].low = product_error(first[row], second[row], to[row].high);
	}
}

/* The columns that are made of two others, when these are in the block. */
void
gpurhh_pairs_fill(Feed *feed)
{
	for (int c = 0; c < feed->n_columns; c++)
	{
		const FeedColumn *column = &feed->columns[c];
		char	   *to = feed->base + column->values_offset;
		int			first = column->parameter >> 8;
		int			second = column->parameter & 0xff;

		if (column->encoding == GPU_ENC_BOTH)
			fill_both(feed, first, second, (uint8 *) to);
		else if (column->encoding == GPU_ENC_PRODUCT)
			fill_products(feed, column_values(feed, first),
						  column_values(feed, second), (Twice *) to);
	}
}

/* ---------- results ---------- */

/* Where the operands of GPU_FINAL_PAIR are in its list. */
enum PairOperand
{
	PAIR_X,						/* moments, count, AND, OR */
	PAIR_COUNT,
	PAIR_X_AND,
	PAIR_X_OR,
	PAIR_Y,						/* moments, AND, OR */
	PAIR_Y_AND,
	PAIR_Y_OR,
	PAIR_PRODUCTS
};

/* Core's state. */
#define PAIR_N_FLOATS	6

struct PairFinal
{
	FmgrInfo	function;
	ArrayType  *state;			/* its argument: N, Sx, Sxx, Sy, Syy, Sxy */
};

/* What core's final function needs to be called again and again. */
PairFinal *
gpurhh_pair_final_create(Oid function)
{
	PairFinal  *final = palloc0(sizeof(PairFinal));
	Datum		zeros[PAIR_N_FLOATS];

	for (int i = 0; i < PAIR_N_FLOATS; i++)
		zeros[i] = Float8GetDatum(0);
	fmgr_info(function, &final->function);
	final->state = construct_array(zeros, PAIR_N_FLOATS, FLOAT8OID,
								   sizeof(float8), FLOAT8PASSBYVAL,
								   TYPALIGN_DOUBLE);
	return final;
}

/* The moments of one argument of count rows. */
typedef struct PairSide
{
	bool		finite;
	bool		constant;
	float8		sum;
	float8		deviations;		/* sum of the squares of all */
} PairSide;

static PairSide
pair_side(const uint64 *moments, const uint64 *and_bits, const uint64 *or_bits,
		  Size stride, uint64 count)
{
	uint64		flags = moments[4 * stride];
	Twice		squares = gpurhh_twice(&moments[2 * stride], stride);
	Twice		sum = gpurhh_twice(moments, stride);
	PairSide	side = {true, *and_bits == *or_bits, sum.high, 0};

	if (gpurhh_not_finite(flags, &side.sum))
	{
		side.finite = false;
		side.deviations = get_float8_nan();
		return side;
	}
	/* core has no use for the sum of a single value */
	if (count == 1)
		return side;
	if ((flags & ~(uint64) RHH_F64_SMALL) != 0 || !isfinite(squares.high))
		float_overflow_error();
	if (!side.constant)
	{
		side.deviations = gpurhh_sum_of_deviations(squares, sum, sum, count);
		/* what cannot be told from rounding, but is not 0 */
		if (!(side.deviations > 0))
			side.deviations = squares.high * 0x1p-106;
	}
	return side;
}

/*
 * The result of a group whose words start at *group, with those of the operands
 * at words[], and whose count is not 0.
 */
float8
gpurhh_pair_final(PairFinal *final, const int *words, const uint64 *group,
				  Size stride, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, 1);
	float8	   *state = (float8 *) ARR_DATA_PTR(final->state);
	uint64		count = group[words[PAIR_COUNT] * stride];
	PairSide	x = pair_side(group + words[PAIR_X] * stride,
							  group + words[PAIR_X_AND] * stride,
							  group + words[PAIR_X_OR] * stride, stride, count);
	PairSide	y = pair_side(group + words[PAIR_Y] * stride,
							  group + words[PAIR_Y_AND] * stride,
							  group + words[PAIR_Y_OR] * stride, stride, count);
	float8		products = 0;
	Datum		result;

	if (!x.finite || !y.finite)
		products = get_float8_nan();
	else if (count > 1 && !x.constant && !y.constant)
	{
		float8		most = sqrt(x.deviations) * sqrt(y.deviations);

		products =
			gpurhh_sum_of_deviations(gpurhh_twice(group + words[PAIR_PRODUCTS] * stride,
												  stride),
									 gpurhh_twice(group + words[PAIR_X] * stride, stride),
									 gpurhh_twice(group + words[PAIR_Y] * stride, stride),
									 count);
		/* no correlation is beyond 1, as that of what is mostly rounded could be */
		if (fabs(products) > most * (1 + 16 * DBL_EPSILON))
			products = copysign(most, products);
	}
	state[0] = (float8) count;
	state[1] = x.sum;
	state[2] = x.deviations;
	state[3] = y.sum;
	state[4] = y.deviations;
	state[5] = products;

	InitFunctionCallInfoData(*fcinfo, &final->function, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = PointerGetDatum(final->state);
	fcinfo->args[0].isnull = false;
	result = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return fcinfo->isnull ? 0 : DatumGetFloat8(result);
}

/*
 * The same of GPU_FINAL_PAIR_AVG: the average of one, and an error where core has
 * one on account of the other.
 */
float8
gpurhh_pair_avg(const int *words, const uint64 *group, Size stride)
{
	uint64		count = group[words[1] * stride];
	const uint64 *other = group + words[2] * stride;
	const uint64 *sum = group + words[0] * stride;

	(void) gpurhh_final_avg_float(other[0], other[stride], count);
	return gpurhh_final_avg_float(sum[0], sum[stride], count);
}
