/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *		The aggregates that are supported: one row for each.
 *
 * The file has three parts.  Methods make results of the words of states.  Families
 * are groups of aggregates with the same methods.  The rows are single aggregates: a
 * row names the aggregate's family, the type of its argument and its states.
 *
 * The planner (plan/grouping_aggregates.c) and the emission (exec/agg_emit.c) only know what
 * types.h says of families and rows.  So an aggregate that uses existing states is
 * added here and nowhere else.
 *
 * The arithmetic is in agg_final.c, pair_final.c and decimal.c.  docs/supported.md
 * lists the same aggregates.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

#include "types/agg_final.h"

/* ---------- methods: words of a state ---------- */

/* Finds the words of a state among all words of a window or of a group. */
static inline const uint64 *
state_words(const AggregateResult *result, const uint64 *words, Size stride,
			int state)
{
	return words + result->words[state] * stride;
}

/* How many rows went into the result. */
static inline uint64
row_count(const AggregateResult *result, const uint64 *group, Size stride)
{
	return *state_words(result, group, stride, 1);
}

/* The 128-bit integer that a state of two words holds, in two's complement. */
static int128
int128_of(const AggregateResult *result, const uint64 *group, Size stride,
		  int state)
{
	const uint64 *at = state_words(result, group, stride, state);

	return (int128) ((uint128) at[stride] << 64 | at[0]);
}

static Datum
divide(Datum sum, uint64 count)
{
	return DirectFunctionCall2(numeric_div, sum,
							   NumericGetDatum(int64_to_numeric((int64) count)));
}

/* ---------- methods: sums and averages ---------- */

static Datum
make_sum_int8(const AggregateResult *result, const uint64 *group, Size stride)
{
	return gpurhh_decimal_make(int128_of(result, group, stride, 0), 0);
}

static int
scale_of_sum_int8(const AggregateResult *result)
{
	return 0;
}

static void
integers_of_sum_int8(const AggregateResult *result, const uint64 *words, Size stride,
					 uint32 n, int128 *values)
{
	for (uint32 i = 0; i < n; i++)
		values[i] = int128_of(result, words + i, stride, 0);
}

/* Divides as core's int8_avg() does. */
static Datum
make_avg_int4(const AggregateResult *result, const uint64 *group, Size stride)
{
	int64		sum = (int64) *state_words(result, group, stride, 0);

	return divide(NumericGetDatum(int64_to_numeric(sum)),
				  row_count(result, group, stride));
}

static Datum
make_avg_int8(const AggregateResult *result, const uint64 *group, Size stride)
{
	return divide(make_sum_int8(result, group, stride),
				  row_count(result, group, stride));
}

/* The aggregate has the states of SUMS_OF_LIMBS. */
static Datum
make_sum_numeric(const AggregateResult *result, const uint64 *group,
				 Size stride)
{
	int			n_limbs = GPURHH_DECIMAL_LIMBS(result->parameter);
	int128		sums[GPURHH_MAX_LIMBS];

	if ((int64) *state_words(result, group, stride, 2) == GPURHH_DECIMAL_NAN)
		return gpurhh_decimal_nan();
	sums[0] = int128_of(result, group, stride, 0);
	for (int l = 1; l < n_limbs; l++)
		sums[l] = int128_of(result, group, stride, 2 + l);
	return gpurhh_decimal_sum(sums, n_limbs,
							  GPURHH_DECIMAL_SCALE(result->parameter));
}

static int
scale_of_sum_numeric(const AggregateResult *result)
{
	return GPURHH_DECIMAL_LIMBS(result->parameter) > 1 ? -1 :
		GPURHH_DECIMAL_SCALE(result->parameter);
}

static void
integers_of_sum_numeric(const AggregateResult *result, const uint64 *words, Size stride,
						uint32 n, int128 *values)
{
	for (uint32 i = 0; i < n; i++)
		values[i] = (int64) *state_words(result, words + i, stride, 2) == GPURHH_DECIMAL_NAN ?
			GPURHH_DECIMAL128_NAN : int128_of(result, words + i, stride, 0);
}

/* Divides as core's numeric_avg() does. */
static Datum
make_avg_numeric(const AggregateResult *result, const uint64 *group,
				 Size stride)
{
	return divide(make_sum_numeric(result, group, stride),
				  row_count(result, group, stride));
}

static void
sums_of_numeric(const AggregateResult *result, const uint64 *group, Size stride,
				NumericSums *sums)
{
	sums->nan = (int64) *state_words(result, group, stride, 2) == GPURHH_DECIMAL_NAN;
	sums->sum = sums->nan ?
		gpurhh_decimal_make(0, GPURHH_DECIMAL_SCALE(result->parameter)) :
		make_sum_numeric(result, group, stride);
	sums->squares = (Datum) 0;
}

static void
decode_sum_money(const AggregateResult *result, const uint64 *words,
				 Size stride, uint32 n, Datum *values, bool *isnull)
{
	const uint64 *low = state_words(result, words, stride, 0);

	for (uint32 i = 0; i < n; i++)
		values[i] = Int64GetDatum(gpurhh_final_money(low[i], low[stride + i]));
}

/* The aggregate has the states of SUMS_OF_FIELDS. */
static Datum
interval_of(const AggregateResult *result, const uint64 *group, Size stride,
			bool average)
{
	return gpurhh_final_interval(average,
								 int128_of(result, group, stride, 0),
								 (int64) *state_words(result, group, stride, 2),
								 (int64) *state_words(result, group, stride, 3),
								 (int) *state_words(result, group, stride, 4),
								 row_count(result, group, stride));
}

static Datum
make_sum_interval(const AggregateResult *result, const uint64 *group,
				  Size stride)
{
	return interval_of(result, group, stride, false);
}

static Datum
make_avg_interval(const AggregateResult *result, const uint64 *group,
				  Size stride)
{
	return interval_of(result, group, stride, true);
}

static void
decode_sum_float(const AggregateResult *result, const uint64 *words,
				 Size stride, uint32 n, Datum *values, bool *isnull)
{
	const uint64 *sums = state_words(result, words, stride, 0);
	const uint64 *flags = sums + stride;
	bool		single = result->encoding == GPU_ENC_FLOAT4_RAW;

	for (uint32 i = 0; i < n; i++)
	{
		float8		sum = gpurhh_final_sum_float(sums[i], flags[i], single);

		values[i] = single ? Float4GetDatum((float4) sum) : Float8GetDatum(sum);
	}
}

static void
decode_avg_float(const AggregateResult *result, const uint64 *words,
				 Size stride, uint32 n, Datum *values, bool *isnull)
{
	const uint64 *sums = state_words(result, words, stride, 0);
	const uint64 *flags = sums + stride;
	const uint64 *counts = state_words(result, words, stride, 1);

	for (uint32 i = 0; i < n; i++)
		values[i] = Float8GetDatum(isnull[i] ? 0 :
								   gpurhh_final_avg_float(sums[i], flags[i],
														  counts[i]));
}

/* ---------- methods: variances ---------- */

/*
 * Is the result for a sample, and not for the whole population?  The variance of a
 * sample is divided by the number of rows less 1, and so needs two rows.
 */
static inline bool
is_sample(const AggregateResult *result)
{
	return result->aggregate->family->fewest_rows > 1;
}

/*
 * The variance of integers or numerics.  With SQUARES_OF_INT4 the sum has one word
 * and the sum of squares two; with the other states they have two and three.
 */
static Datum
variance_of(const AggregateResult *result, const uint64 *group, Size stride,
			bool root)
{
	bool		decimal = result->encoding == GPU_ENC_DECIMAL;
	bool		wide = decimal || result->encoding == GPU_ENC_INT8;
	const uint64 *from = state_words(result, group, stride, 2);
	uint64		squares[3] = {from[0], from[stride], wide ? from[2 * stride] : 0};

	if (decimal &&
		(int64) *state_words(result, group, stride, 3) == GPURHH_DECIMAL_NAN)
		return gpurhh_decimal_nan();
	return gpurhh_final_variance(is_sample(result), root,
								 wide ? int128_of(result, group, stride, 0) :
								 (int64) *state_words(result, group, stride, 0),
								 row_count(result, group, stride), squares,
								 decimal ? GPURHH_DECIMAL_SCALE(result->parameter) : 0);
}

static Datum
make_variance(const AggregateResult *result, const uint64 *group, Size stride)
{
	return variance_of(result, group, stride, false);
}

static Datum
make_stddev(const AggregateResult *result, const uint64 *group, Size stride)
{
	return variance_of(result, group, stride, true);
}

/* Numerics only: the aggregate has the states of SQUARES_OF_NUMERIC. */
static void
sums_with_squares(const AggregateResult *result, const uint64 *group,
				  Size stride, NumericSums *sums)
{
	int			scale = GPURHH_DECIMAL_SCALE(result->parameter);
	const uint64 *from = state_words(result, group, stride, 2);
	uint64		squares[3] = {from[0], from[stride], from[2 * stride]};

	sums->nan = (int64) *state_words(result, group, stride, 3) == GPURHH_DECIMAL_NAN;
	if (sums->nan)
		sums->sum = sums->squares = gpurhh_decimal_make(0, scale);
	else
	{
		sums->sum = gpurhh_decimal_make(int128_of(result, group, stride, 0), scale);
		sums->squares = gpurhh_final_squares(squares, scale);
	}
}

static inline void
decode_moments(const AggregateResult *result, const uint64 *words, Size stride,
			   uint32 n, Datum *values, const bool *isnull, bool root)
{
	const uint64 *moments = state_words(result, words, stride, 0);
	const uint64 *counts = state_words(result, words, stride, 1);
	bool		sample = is_sample(result);

	for (uint32 i = 0; i < n; i++)
		values[i] = Float8GetDatum(isnull[i] ? 0 :
								   gpurhh_final_variance_float(sample, root,
															   &moments[i], stride,
															   counts[i]));
}

static void
decode_variance_float(const AggregateResult *result, const uint64 *words,
					  Size stride, uint32 n, Datum *values, bool *isnull)
{
	decode_moments(result, words, stride, n, values, isnull, false);
}

static void
decode_stddev_float(const AggregateResult *result, const uint64 *words,
					Size stride, uint32 n, Datum *values, bool *isnull)
{
	decode_moments(result, words, stride, n, values, isnull, true);
}

/* ---------- methods: pairs ---------- */

static void
decode_pair_avg(const AggregateResult *result, const uint64 *words, Size stride,
				uint32 n, Datum *values, bool *isnull)
{
	for (uint32 i = 0; i < n; i++)
		values[i] = Float8GetDatum(isnull[i] ? 0 :
								   gpurhh_pair_avg(result, &words[i], stride));
}

static void
decode_pair(const AggregateResult *result, const uint64 *words, Size stride,
			uint32 n, Datum *values, bool *isnull)
{
	for (uint32 i = 0; i < n; i++)
		values[i] = Float8GetDatum(isnull[i] ? 0 :
								   gpurhh_pair_final(result, &words[i], stride,
													 &isnull[i]));
}

/* ---------- families ---------- */

static const AggregateFamily count = {
	.argument = AGGREGATE_OF_NULLS,
	.distinct = DISTINCT_BY_LEVEL,
	.result = GPU_ENC_INT8,
};

/*
 * Aggregates whose first state is the result: min and max, bool_and, bool_or,
 * bit_and, bit_or, and any_value.  any_value() may return any value of the group;
 * it returns the least.
 */
static const AggregateFamily value = {
	.argument = AGGREGATE_OF_VALUES,
	.distinct = DISTINCT_CHANGES_NOTHING,
	.fewest_rows = 1,
};

/* The same for bit_xor, where a value that comes again changes the result. */
static const AggregateFamily value_of_each = {
	.argument = AGGREGATE_OF_VALUES,
	.fewest_rows = 1,
};

static const AggregateFamily sum_int4 = {
	.argument = AGGREGATE_OF_NUMBERS,
	.distinct = DISTINCT_BY_LEVEL,
	.fewest_rows = 1,
	.result = GPU_ENC_INT8,
};

static const AggregateFamily avg_int4 = {
	.argument = AGGREGATE_OF_NUMBERS,
	.distinct = DISTINCT_BY_LEVEL,
	.fewest_rows = 1,
	.make = make_avg_int4,
};

static const AggregateFamily sum_int8 = {
	.argument = AGGREGATE_OF_NUMBERS,
	.distinct = DISTINCT_BY_LEVEL,
	.fewest_rows = 1,
	.make = make_sum_int8,
	.scale = scale_of_sum_int8,
	.integers = integers_of_sum_int8,
};

static const AggregateFamily avg_int8 = {
	.argument = AGGREGATE_OF_NUMBERS,
	.distinct = DISTINCT_BY_LEVEL,
	.fewest_rows = 1,
	.make = make_avg_int8,
};

static const AggregateFamily sum_numeric = {
	.argument = AGGREGATE_OF_LIMBS,
	.distinct = DISTINCT_BY_LEVEL,
	.fewest_rows = 1,
	.make = make_sum_numeric,
	.sums = sums_of_numeric,
	.scale = scale_of_sum_numeric,
	.integers = integers_of_sum_numeric,
};

static const AggregateFamily avg_numeric = {
	.argument = AGGREGATE_OF_LIMBS,
	.distinct = DISTINCT_BY_LEVEL,
	.fewest_rows = 1,
	.make = make_avg_numeric,
	.sums = sums_of_numeric,
};

static const AggregateFamily sum_money = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.overflows = true,
	.result = GPU_ENC_INT8,
	.decode = decode_sum_money,
};

static const AggregateFamily sum_interval = {
	.argument = AGGREGATE_OF_PARTS,
	.fewest_rows = 1,
	.overflows = true,
	.make = make_sum_interval,
};

static const AggregateFamily avg_interval = {
	.argument = AGGREGATE_OF_PARTS,
	.fewest_rows = 1,
	.overflows = true,
	.make = make_avg_interval,
};

static const AggregateFamily sum_float = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.overflows = true,
	.decode = decode_sum_float,
};

static const AggregateFamily avg_float = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.decode = decode_avg_float,
};

static const AggregateFamily var_pop = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.make = make_variance,
	.sums = sums_with_squares,
};

static const AggregateFamily var_samp = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 2,
	.make = make_variance,
	.sums = sums_with_squares,
};

static const AggregateFamily stddev_pop = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.make = make_stddev,
	.sums = sums_with_squares,
};

static const AggregateFamily stddev_samp = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 2,
	.make = make_stddev,
	.sums = sums_with_squares,
};

static const AggregateFamily var_pop_float = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.decode = decode_variance_float,
};

static const AggregateFamily var_samp_float = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 2,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.decode = decode_variance_float,
};

static const AggregateFamily stddev_pop_float = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 1,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.decode = decode_stddev_float,
};

static const AggregateFamily stddev_samp_float = {
	.argument = AGGREGATE_OF_NUMBERS,
	.fewest_rows = 2,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.decode = decode_stddev_float,
};

static const AggregateFamily pair_count = {
	.argument = AGGREGATE_OF_PAIRS,
	.result = GPU_ENC_INT8,
};

static const AggregateFamily pair_avg = {
	.argument = AGGREGATE_OF_PAIRS,
	.fewest_rows = 1,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.decode = decode_pair_avg,
};

/* The result is made by core's own final function, of core's own state. */
static const AggregateFamily pair = {
	.argument = AGGREGATE_OF_PAIRS,
	.fewest_rows = 1,
	.overflows = true,
	.result = GPU_ENC_FLOAT8_RAW,
	.begin = gpurhh_pair_final_create,
	.decode = decode_pair,
};

static const AggregateFamily least_string = {
	.argument = AGGREGATE_CHOICE,
	.distinct = DISTINCT_CHANGES_NOTHING,
	.choice = GPU_CHOICE_LEAST_STRING,
};

static const AggregateFamily greatest_string = {
	.argument = AGGREGATE_CHOICE,
	.distinct = DISTINCT_CHANGES_NOTHING,
	.choice = GPU_CHOICE_GREATEST_STRING,
};

static const AggregateFamily least_enum = {
	.argument = AGGREGATE_CHOICE,
	.distinct = DISTINCT_CHANGES_NOTHING,
	.choice = GPU_CHOICE_LEAST_ENUM,
};

static const AggregateFamily greatest_enum = {
	.argument = AGGREGATE_CHOICE,
	.distinct = DISTINCT_CHANGES_NOTHING,
	.choice = GPU_CHOICE_GREATEST_ENUM,
};

/* ---------- states ---------- */

/* The value that is chosen is in a state of the second level. */
#define NO_STATES {{0}}

#define COUNT_ALONE {{RHH_COUNT}}

#define STATE_AND_COUNT(op) {{op}, {RHH_COUNT}}

/*
 * The maximum tells whether NaN is among the values.  A limb that the argument does
 * not have gets no state, see gpurhh_state_is_used().
 */
#define SUMS_OF_LIMBS {{RHH_SUM_I128}, {RHH_COUNT}, {RHH_MAX_I64}, \
	{RHH_SUM_I128, GPU_ENC_LIMB1}, {RHH_SUM_I128, GPU_ENC_LIMB2}}

/* The sums of an interval's fields; the second state counts the intervals. */
#define SUMS_OF_FIELDS {{RHH_SUM_I128}, {RHH_COUNT}, \
	{RHH_SUM_I64, GPU_ENC_INTERVAL_DAYS}, \
	{RHH_SUM_I64, GPU_ENC_INTERVAL_MONTHS}, \
	{RHH_OR, GPU_ENC_INTERVAL_INFINITE}}

#define SQUARES_OF_INT4 {{RHH_SUM_I64}, {RHH_COUNT}, {RHH_SUM_SQUARES}}
#define SQUARES_OF_INT8 {{RHH_SUM_I128}, {RHH_COUNT}, {RHH_SUM_SQUARES}}
#define SQUARES_OF_NUMERIC {{RHH_SUM_I128}, {RHH_COUNT}, {RHH_SUM_SQUARES}, \
	{RHH_MAX_I64}}

/* The arguments of a pair, as core calls them. */
enum
{
	Y,
	X
};

#define COUNT_OF_PAIR {{RHH_COUNT, .argument = X}}

#define SUMS_OF_PAIR(one, other) {{RHH_SUM_F64, .argument = one}, \
	{RHH_COUNT, .argument = one}, {RHH_SUM_F64, .argument = other}}

/* In the order of enum PairState in pair_final.c. */
#define MOMENTS_OF_PAIR {{RHH_MOMENTS_F64, .argument = X}, \
	{RHH_COUNT, .argument = X}, {RHH_AND, .argument = X}, \
	{RHH_OR, .argument = X}, {RHH_MOMENTS_F64, .argument = Y}, \
	{RHH_AND, .argument = Y}, {RHH_OR, .argument = Y}, \
	{RHH_SUM_TWICE_F64, GPU_ENC_PRODUCT}}

/* ---------- rows ---------- */

static const GpuAggregate aggregates[] = {
	{F_COUNT_, InvalidOid, &count, COUNT_ALONE},
	{F_COUNT_ANY, InvalidOid, &count, COUNT_ALONE},
	{F_SUM_INT2, INT2OID, &sum_int4, STATE_AND_COUNT(RHH_SUM_I64)},
	{F_SUM_INT4, INT4OID, &sum_int4, STATE_AND_COUNT(RHH_SUM_I64)},
	{F_SUM_INT8, INT8OID, &sum_int8, STATE_AND_COUNT(RHH_SUM_I128)},
	{F_AVG_INT2, INT2OID, &avg_int4, STATE_AND_COUNT(RHH_SUM_I64)},
	{F_AVG_INT4, INT4OID, &avg_int4, STATE_AND_COUNT(RHH_SUM_I64)},
	{F_AVG_INT8, INT8OID, &avg_int8, STATE_AND_COUNT(RHH_SUM_I128)},
	{F_SUM_NUMERIC, NUMERICOID, &sum_numeric, SUMS_OF_LIMBS, GPU_ENC_NONE, numeric_sum},
	{F_AVG_NUMERIC, NUMERICOID, &avg_numeric, SUMS_OF_LIMBS, GPU_ENC_NONE, numeric_avg},
	{F_MIN_NUMERIC, NUMERICOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MAX_NUMERIC, NUMERICOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MIN_INT2, INT2OID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_INT4, INT4OID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_INT8, INT8OID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_DATE, DATEOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_TIME, TIMEOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_TIMESTAMP, TIMESTAMPOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_TIMESTAMPTZ, TIMESTAMPTZOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MAX_INT2, INT2OID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_INT4, INT4OID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_INT8, INT8OID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_DATE, DATEOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_TIME, TIMEOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_TIMESTAMP, TIMESTAMPOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_TIMESTAMPTZ, TIMESTAMPTZOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MIN_TIMETZ, TIMETZOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_MONEY, MONEYOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_TID, TIDOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_MIN_OID, OIDOID, &value, STATE_AND_COUNT(RHH_MIN_I64), GPU_ENC_OID_ORDER},
	{F_MIN_PG_LSN, PG_LSNOID, &value, STATE_AND_COUNT(RHH_MIN_I64), GPU_ENC_UINT8_ORDER},
	{F_MIN_XID8, XID8OID, &value, STATE_AND_COUNT(RHH_MIN_I64), GPU_ENC_UINT8_ORDER},
	{F_MIN_FLOAT4, FLOAT4OID, &value, STATE_AND_COUNT(RHH_MIN_I64), GPU_ENC_FLOAT4_ORDER},
	{F_MIN_FLOAT8, FLOAT8OID, &value, STATE_AND_COUNT(RHH_MIN_I64), GPU_ENC_FLOAT8_ORDER},
	{F_MAX_TIMETZ, TIMETZOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_MONEY, MONEYOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_TID, TIDOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_MAX_OID, OIDOID, &value, STATE_AND_COUNT(RHH_MAX_I64), GPU_ENC_OID_ORDER},
	{F_MAX_PG_LSN, PG_LSNOID, &value, STATE_AND_COUNT(RHH_MAX_I64), GPU_ENC_UINT8_ORDER},
	{F_MAX_XID8, XID8OID, &value, STATE_AND_COUNT(RHH_MAX_I64), GPU_ENC_UINT8_ORDER},
	{F_MAX_FLOAT4, FLOAT4OID, &value, STATE_AND_COUNT(RHH_MAX_I64), GPU_ENC_FLOAT4_ORDER},
	{F_MAX_FLOAT8, FLOAT8OID, &value, STATE_AND_COUNT(RHH_MAX_I64), GPU_ENC_FLOAT8_ORDER},
	{F_MIN_TEXT, TEXTOID, &least_string, NO_STATES, GPU_ENC_LEAST_STRING},
	{F_MIN_BPCHAR, BPCHAROID, &least_string, NO_STATES, GPU_ENC_LEAST_BPCHAR},
	{F_MAX_TEXT, TEXTOID, &greatest_string, NO_STATES, GPU_ENC_GREATEST_STRING},
	{F_MAX_BPCHAR, BPCHAROID, &greatest_string, NO_STATES, GPU_ENC_GREATEST_BPCHAR},
	{F_MIN_ANYENUM, ANYENUMOID, &least_enum, NO_STATES},
	{F_MAX_ANYENUM, ANYENUMOID, &greatest_enum, NO_STATES},
#ifdef F_MIN_BYTEA
	{F_MIN_BYTEA, BYTEAOID, &least_string, NO_STATES, GPU_ENC_LEAST_STRING},
	{F_MAX_BYTEA, BYTEAOID, &greatest_string, NO_STATES, GPU_ENC_GREATEST_STRING},
#endif
#ifdef F_ANY_VALUE
	{F_ANY_VALUE, ANYELEMENTOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
#endif
	{F_SUM_MONEY, MONEYOID, &sum_money, STATE_AND_COUNT(RHH_SUM_I128)},
	{F_SUM_INTERVAL, INTERVALOID, &sum_interval, SUMS_OF_FIELDS, GPU_ENC_INTERVAL_TIME},
	{F_AVG_INTERVAL, INTERVALOID, &avg_interval, SUMS_OF_FIELDS, GPU_ENC_INTERVAL_TIME},
	{F_SUM_FLOAT4, FLOAT4OID, &sum_float, STATE_AND_COUNT(RHH_SUM_F64), GPU_ENC_FLOAT4_RAW},
	{F_SUM_FLOAT8, FLOAT8OID, &sum_float, STATE_AND_COUNT(RHH_SUM_F64), GPU_ENC_FLOAT8_RAW},
	{F_AVG_FLOAT4, FLOAT4OID, &avg_float, STATE_AND_COUNT(RHH_SUM_F64), GPU_ENC_FLOAT4_RAW},
	{F_AVG_FLOAT8, FLOAT8OID, &avg_float, STATE_AND_COUNT(RHH_SUM_F64), GPU_ENC_FLOAT8_RAW},
	{F_BOOL_AND, BOOLOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_EVERY, BOOLOID, &value, STATE_AND_COUNT(RHH_MIN_I64)},
	{F_BOOL_OR, BOOLOID, &value, STATE_AND_COUNT(RHH_MAX_I64)},
	{F_BIT_AND_INT2, INT2OID, &value, STATE_AND_COUNT(RHH_AND)},
	{F_BIT_AND_INT4, INT4OID, &value, STATE_AND_COUNT(RHH_AND)},
	{F_BIT_AND_INT8, INT8OID, &value, STATE_AND_COUNT(RHH_AND)},
	{F_BIT_OR_INT2, INT2OID, &value, STATE_AND_COUNT(RHH_OR)},
	{F_BIT_OR_INT4, INT4OID, &value, STATE_AND_COUNT(RHH_OR)},
	{F_BIT_OR_INT8, INT8OID, &value, STATE_AND_COUNT(RHH_OR)},
	{F_BIT_XOR_INT2, INT2OID, &value_of_each, STATE_AND_COUNT(RHH_XOR)},
	{F_BIT_XOR_INT4, INT4OID, &value_of_each, STATE_AND_COUNT(RHH_XOR)},
	{F_BIT_XOR_INT8, INT8OID, &value_of_each, STATE_AND_COUNT(RHH_XOR)},
	{F_VAR_POP_INT2, INT2OID, &var_pop, SQUARES_OF_INT4},
	{F_VAR_POP_INT4, INT4OID, &var_pop, SQUARES_OF_INT4},
	{F_VAR_POP_INT8, INT8OID, &var_pop, SQUARES_OF_INT8},
	{F_VAR_POP_NUMERIC, NUMERICOID, &var_pop, SQUARES_OF_NUMERIC, GPU_ENC_NONE, numeric_var_pop},
	{F_VAR_POP_FLOAT4, FLOAT4OID, &var_pop_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT4_RAW},
	{F_VAR_POP_FLOAT8, FLOAT8OID, &var_pop_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT8_RAW},
	{F_VAR_SAMP_INT2, INT2OID, &var_samp, SQUARES_OF_INT4},
	{F_VAR_SAMP_INT4, INT4OID, &var_samp, SQUARES_OF_INT4},
	{F_VAR_SAMP_INT8, INT8OID, &var_samp, SQUARES_OF_INT8},
	{F_VAR_SAMP_NUMERIC, NUMERICOID, &var_samp, SQUARES_OF_NUMERIC, GPU_ENC_NONE, numeric_var_samp},
	{F_VAR_SAMP_FLOAT4, FLOAT4OID, &var_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT4_RAW},
	{F_VAR_SAMP_FLOAT8, FLOAT8OID, &var_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT8_RAW},
	{F_VARIANCE_INT2, INT2OID, &var_samp, SQUARES_OF_INT4},
	{F_VARIANCE_INT4, INT4OID, &var_samp, SQUARES_OF_INT4},
	{F_VARIANCE_INT8, INT8OID, &var_samp, SQUARES_OF_INT8},
	{F_VARIANCE_NUMERIC, NUMERICOID, &var_samp, SQUARES_OF_NUMERIC, GPU_ENC_NONE, numeric_var_samp},
	{F_VARIANCE_FLOAT4, FLOAT4OID, &var_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT4_RAW},
	{F_VARIANCE_FLOAT8, FLOAT8OID, &var_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT8_RAW},
	{F_STDDEV_POP_INT2, INT2OID, &stddev_pop, SQUARES_OF_INT4},
	{F_STDDEV_POP_INT4, INT4OID, &stddev_pop, SQUARES_OF_INT4},
	{F_STDDEV_POP_INT8, INT8OID, &stddev_pop, SQUARES_OF_INT8},
	{F_STDDEV_POP_NUMERIC, NUMERICOID, &stddev_pop, SQUARES_OF_NUMERIC, GPU_ENC_NONE, numeric_stddev_pop},
	{F_STDDEV_POP_FLOAT4, FLOAT4OID, &stddev_pop_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT4_RAW},
	{F_STDDEV_POP_FLOAT8, FLOAT8OID, &stddev_pop_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT8_RAW},
	{F_STDDEV_SAMP_INT2, INT2OID, &stddev_samp, SQUARES_OF_INT4},
	{F_STDDEV_SAMP_INT4, INT4OID, &stddev_samp, SQUARES_OF_INT4},
	{F_STDDEV_SAMP_INT8, INT8OID, &stddev_samp, SQUARES_OF_INT8},
	{F_STDDEV_SAMP_NUMERIC, NUMERICOID, &stddev_samp, SQUARES_OF_NUMERIC, GPU_ENC_NONE, numeric_stddev_samp},
	{F_STDDEV_SAMP_FLOAT4, FLOAT4OID, &stddev_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT4_RAW},
	{F_STDDEV_SAMP_FLOAT8, FLOAT8OID, &stddev_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT8_RAW},
	{F_STDDEV_INT2, INT2OID, &stddev_samp, SQUARES_OF_INT4},
	{F_STDDEV_INT4, INT4OID, &stddev_samp, SQUARES_OF_INT4},
	{F_STDDEV_INT8, INT8OID, &stddev_samp, SQUARES_OF_INT8},
	{F_STDDEV_NUMERIC, NUMERICOID, &stddev_samp, SQUARES_OF_NUMERIC, GPU_ENC_NONE, numeric_stddev_samp},
	{F_STDDEV_FLOAT4, FLOAT4OID, &stddev_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT4_RAW},
	{F_STDDEV_FLOAT8, FLOAT8OID, &stddev_samp_float, STATE_AND_COUNT(RHH_MOMENTS_F64), GPU_ENC_FLOAT8_RAW},
	{F_REGR_COUNT, FLOAT8OID, &pair_count, COUNT_OF_PAIR, GPU_ENC_FLOAT8_RAW},
	{F_REGR_AVGX, FLOAT8OID, &pair_avg, SUMS_OF_PAIR(X, Y), GPU_ENC_FLOAT8_RAW},
	{F_REGR_AVGY, FLOAT8OID, &pair_avg, SUMS_OF_PAIR(Y, X), GPU_ENC_FLOAT8_RAW},
	{F_REGR_SXX, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_regr_sxx},
	{F_REGR_SYY, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_regr_syy},
	{F_REGR_SXY, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_regr_sxy},
	{F_REGR_SLOPE, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_regr_slope},
	{F_REGR_INTERCEPT, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_regr_intercept},
	{F_REGR_R2, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_regr_r2},
	{F_CORR, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_corr},
	{F_COVAR_POP, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_covar_pop},
	{F_COVAR_SAMP, FLOAT8OID, &pair, MOMENTS_OF_PAIR, GPU_ENC_FLOAT8_RAW, float8_covar_samp},
};

/* The row of an aggregate.  Returns NULL if the aggregate is not supported. */
const GpuAggregate *
gpurhh_find_aggregate(Oid function)
{
	for (int i = 0; i < lengthof(aggregates); i++)
	{
		if (aggregates[i].function == function)
			return &aggregates[i];
	}
	return NULL;
}

/* Says why an aggregate has no row.  NULL: there is nothing special to say. */
const char *
gpurhh_aggregate_problem(Oid function)
{
	switch (function)
	{
		case F_MIN_INTERVAL:
		case F_MAX_INTERVAL:
			return "which of equal intervals is returned depends on the order of the rows";
		default:
			return NULL;
	}
}

/* ---------- arguments ---------- */

/*
 * Does an argument have the type that the row declares?  ANYENUM takes every enum,
 * and ANYELEMENT every type whose values fit a state of one word.
 */
static bool
has_type(const GpuAggregate *aggregate, Oid type, const GpuColumn *column)
{
	switch (aggregate->argtype)
	{
		case ANYENUMOID:
			return type_is_enum(getBaseType(type));
		case ANYELEMENTOID:
			return gpurhh_encodings[column->encoding].bytes <= sizeof(uint64);
		default:
			return type == aggregate->argtype;
	}
}

/*
 * Finds the encoding in which an argument of an aggregate travels.  It is
 * GPU_ENC_NONE if the aggregate only asks whether the argument is NULL and the
 * argument's type has no encoding.  collation is the one by which the aggregate
 * compares.  Returns false if the argument cannot be fed; then *problem says why, to
 * follow "has an argument".
 */
bool
gpurhh_resolve_argument(const GpuAggregate *aggregate, Node *arg, Oid collation,
						GpuColumn *column, const char **problem)
{
	AggregateArgument kind = aggregate->family->argument;
	Oid			type = exprType(arg);
	const char *why = NULL;
	bool		resolved = true;

	*column = (GpuColumn){GPU_ENC_NONE};
	if (kind == AGGREGATE_OF_LIMBS)
		resolved = gpurhh_resolve_limbs(arg, column, &why);
	else if (kind != AGGREGATE_OF_PARTS)
		resolved = gpurhh_resolve_type(arg, column, &why);

	if (kind == AGGREGATE_OF_NULLS)
	{
		if (!resolved || gpurhh_is_string(column->encoding))
			*column = (GpuColumn){GPU_ENC_NONE};
		return true;
	}
	if (!resolved)
		*problem = psprintf("of type %s, which %s", format_type_be(type), why);
	else if (!has_type(aggregate, type, column))
		*problem = psprintf("of type %s", format_type_be(type));
	else if (kind == AGGREGATE_OF_NUMBERS && column->encoding == GPU_ENC_YEARS)
		*problem = "that may be infinite";
	else if (kind == AGGREGATE_CHOICE && type_is_collatable(type) &&
			 !gpurhh_compares_bytes(collation))
		*problem = "with a collation whose order is not that of bytes";
	else
	{
		/* the result is one of the values to the last bit: -0 and any NaN, too */
		if (aggregate->argtype == ANYELEMENTOID)
			column->encoding = gpurhh_as_stored(column->encoding);
		return true;
	}
	return false;
}

/* Does this argument have the part over which the state is computed? */
bool
gpurhh_state_is_used(const AggregateState *state, const GpuColumn *column)
{
	const GpuEncodingInfo *part = &gpurhh_encodings[state->part];

	return part->derivation != DERIVED_LIMB ||
		part->limb < GPURHH_DECIMAL_LIMBS(column->parameter);
}
