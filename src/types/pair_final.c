/*-------------------------------------------------------------------------
 *
 * pair_final.c
 *		Makes the results of aggregates of two arguments: corr, covar_pop and
 *		others.
 *
 * These aggregates count only rows in which neither argument is NULL.  Core's states
 * have a count, two sums, and three sums of products of deviations from the
 * averages: Sxx, Syy and Sxy.  Core updates all of them with each row, in the order
 * of the rows.  Here Sxx, Syy and Sxy are computed at the end, from sums of twice the
 * precision of a double, which may be added up in any order:
 *
 *		Sxx		as variances are, from the moments of one argument
 *		Sxy		in the same way, from the products of both (batch/pairs.c)
 *
 * Core's final functions make the result.  They divide by Sxx and Syy, so it
 * matters whether these are exactly 0, as they are if all values of an argument are
 * equal.  The bits tell that: the AND of all values is then equal to their OR.  So
 * rounding does not decide whether a result is NULL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/float.h"

#include "rhh_states.h"
#include "types/agg_final.h"

/* The states of these aggregates, in the order of MOMENTS_OF_PAIR (aggregates.c). */
enum PairState
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

#define PAIR_N_FLOATS	6		/* in core's state */

/* What a plan keeps to call the final function of one aggregate. */
typedef struct PairFinal
{
	PGFunction	function;		/* core's final function */
	ArrayType  *state;			/* its argument: N, Sx, Sxx, Sy, Syy, Sxy */
} PairFinal;

/* Prepares what the calls of core's final function need, once a plan. */
void *
gpurhh_pair_final_create(const GpuAggregate *aggregate)
{
	PairFinal  *final = palloc0(sizeof(PairFinal));
	Datum		zeros[PAIR_N_FLOATS];

	for (int i = 0; i < PAIR_N_FLOATS; i++)
		zeros[i] = Float8GetDatum(0);
	final->function = aggregate->core_final;
	final->state = construct_array(zeros, PAIR_N_FLOATS, FLOAT8OID,
								   sizeof(float8), FLOAT8PASSBYVAL,
								   TYPALIGN_DOUBLE);
	return final;
}

/* What is known of one of the two arguments. */
typedef struct PairSide
{
	bool		finite;
	bool		constant;
	float8		sum;
	float8		deviations;		/* the sum of the squares of all deviations */
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

/* The result of a group whose words start at *group and whose count is not 0. */
float8
gpurhh_pair_final(const AggregateResult *column, const uint64 *group,
				  Size stride, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, 1);
	PairFinal  *final = column->made;
	const int  *words = column->words;
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
		/* Rounding could make the correlation greater than 1; keep it within 1. */
		if (fabs(products) > most * (1 + 16 * DBL_EPSILON))
			products = copysign(most, products);
	}
	state[0] = (float8) count;
	state[1] = x.sum;
	state[2] = x.deviations;
	state[3] = y.sum;
	state[4] = y.deviations;
	state[5] = products;

	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = PointerGetDatum(final->state);
	fcinfo->args[0].isnull = false;
	result = final->function(fcinfo);
	*isnull = fcinfo->isnull;
	return fcinfo->isnull ? 0 : DatumGetFloat8(result);
}

/*
 * The average of the argument that the aggregate's states name first.  Core computes
 * sums of both arguments, so an overflow of the other one is an error here, too.
 */
float8
gpurhh_pair_avg(const AggregateResult *column, const uint64 *group,
				Size stride)
{
	const int  *words = column->words;
	const uint64 *sum = group + words[0] * stride;
	uint64		count = group[words[1] * stride];
	const uint64 *other = group + words[2] * stride;

	(void) gpurhh_final_avg_float(other[0], other[stride], count);
	return gpurhh_final_avg_float(sum[0], sum[stride], count);
}
