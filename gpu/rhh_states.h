/*
 * rhh_states.h
 *		Transition states that only one thread changes: adding a value, and merging the
 *		state of one group into that of another.  rhh_device.h says what they mean.
 *
 * The CPU device uses all of this.  The CUDA device has functions of its own, with atomic
 * operations, and uses only the first part, about floats.
 *
 * Sums of twice a double's precision are kept as {high, low}.  low is the sum of what
 * has been lost whenever high was rounded (by Dekker's and Knuth's error-free
 * transformations).  The compiler must not contract operations: -ffp-contract=off.
 */
#ifndef RHH_STATES_H
#define RHH_STATES_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "rhh_device.h"
#include "rhh_hash.h"

/* ---------- floats ---------- */

RHH_HD double
rhh_as_double(uint64_t bits)
{
	double		x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

RHH_HD uint64_t
rhh_as_bits(double x)
{
	uint64_t	bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* The flags (RHH_F64_...) of a value that is not small. */
RHH_HD uint64_t
rhh_f64_rare_flags(double x)
{
	double		size = fabs(x);
	uint64_t	flags = 0;
	uint64_t	hash;

	if (x != x)
		return RHH_F64_NAN;
	if (size > DBL_MAX)
		return x > 0 ? RHH_F64_INFINITE : RHH_F64_NEG_INFINITE;
	if (size >= 0x1p514)
		flags |= x > 0 ? RHH_F64_LARGE : RHH_F64_NEG_LARGE;
	if (size < 0x1p567)
		return flags | RHH_F64_MIDDLE;
	hash = rhh_mix64(rhh_as_bits(x));
	for (int i = 0; i < RHH_F64_PAIRS; i++)
		flags |= (uint64_t) 1 << (RHH_F64_FIRST_PAIR + 2 * i + (hash >> i & 1));
	return flags;
}

RHH_HD uint64_t
rhh_f64_flags(double x)
{
	return fabs(x) < RHH_F64_SMALL_BELOW ? RHH_F64_SMALL : rhh_f64_rare_flags(x);
}

/* x * x, rounded: never contracted with an addition. */
RHH_HD double
rhh_square(double x)
{
#ifdef __CUDA_ARCH__
	return __dmul_rn(x, x);
#else
	return x * x;
#endif
}

/* x * y, in the same way. */
RHH_HD double
rhh_product(double x, double y)
{
#ifdef __CUDA_ARCH__
	return __dmul_rn(x, y);
#else
	return x * y;
#endif
}

/* What was lost when x * y was rounded to product; no step may over- or underflow. */
RHH_HD double
rhh_product_error(double x, double y, double product)
{
#if defined(__CUDA_ARCH__) || defined(__FP_FAST_FMA)
	return fma(x, y, -product);
#else
	double		x_scaled = 134217729.0 * x; /* 2^27 + 1 */
	double		y_scaled = 134217729.0 * y;
	double		x_high = x_scaled - (x_scaled - x);
	double		y_high = y_scaled - (y_scaled - y);
	double		x_low = x - x_high;
	double		y_low = y - y_high;

	return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
#endif
}

/* What was lost when a + b was rounded to sum. */
RHH_HD double
rhh_sum_error(double a, double b, double sum)
{
	double		b_part = sum - a;

	return (a - (sum - b_part)) + (b - b_part);
}

/* What was lost when x * x was rounded to square; no step may over- or underflow. */
RHH_HD double
rhh_square_error(double x, double square)
{
#if defined(__CUDA_ARCH__) || defined(__FP_FAST_FMA)
	return fma(x, x, -square);
#else
	double		scaled = 134217729.0 * x;	/* 2^27 + 1 */
	double		high = scaled - (scaled - x);
	double		low = x - high;

	return ((high * high - square) + 2 * high * low) + low * low;
#endif
}

/* ---------- one thread's states ---------- */

static inline void
rhh_add_twice(uint64_t *state, double high, double low)
{
	double		old = rhh_as_double(state[0]);
	double		sum = old + high;

	state[0] = rhh_as_bits(sum);
	state[1] = rhh_as_bits(rhh_as_double(state[1]) +
						   (rhh_sum_error(old, high, sum) + low));
}

static inline void
rhh_add_f64(uint64_t *state, double x)
{
	uint64_t	flags = rhh_f64_flags(x);

	state[1] |= flags;
	if ((flags & RHH_F64_NOT_FINITE) == 0)
		state[0] = rhh_as_bits(rhh_as_double(state[0]) + x);
}

static inline void
rhh_add_moments(uint64_t *state, double x)
{
	uint64_t	flags = rhh_f64_flags(x);
	double		square;

	state[4] |= flags;
	if (flags != RHH_F64_SMALL)
		return;
	square = rhh_square(x);
	rhh_add_twice(&state[0], x, 0);
	rhh_add_twice(&state[2], square, rhh_square_error(x, square));
}

/* Adds an unsigned number of n words to another one. */
static inline void
rhh_add_words(uint64_t *state, const uint64_t *from, uint32_t n)
{
	uint64_t	carry = 0;

	for (uint32_t w = 0; w < n; w++)
	{
		uint64_t	sum = state[w] + from[w];
		uint64_t	all = sum + carry;

		carry = (sum < from[w]) | (all < sum);
		state[w] = all;
	}
}

static inline void
rhh_add_square(uint64_t *state, int64_t x, uint32_t n_words)
{
	unsigned __int128 square = (unsigned __int128) ((__int128) x * x);
	uint64_t	words[3] = {(uint64_t) square, (uint64_t) (square >> 64), 0};

	rhh_add_words(state, words, n_words);
}

/* Loads an integer argument of so many bytes, sign-extended. */
static inline int64_t
rhh_load_int(const void *value, uint32_t bytes)
{
	switch (bytes)
	{
		case 1:
			return *(const int8_t *) value;
		case 2:
			return *(const int16_t *) value;
		case 4:
			return *(const int32_t *) value;
		default:
			return *(const int64_t *) value;
	}
}

static inline double
rhh_load_float(const void *value, uint32_t bytes)
{
	return bytes == 4 ? *(const float *) value : *(const double *) value;
}

/* Sets a state to what it is before any row has touched it. */
static inline void
rhh_state_init(uint8_t op, uint32_t bytes, uint64_t *state)
{
	memset(state, 0, rhh_op_words(op, bytes) * sizeof(uint64_t));
	state[0] = rhh_op_start(op);
}

/* Adds a row whose value has so many bytes.  RHH_COUNT does not read the value. */
static inline void
rhh_state_add(uint8_t op, uint32_t bytes, uint64_t *state, const void *value)
{
	int64_t		x = 0;
	uint64_t	words[2];

	if (op != RHH_COUNT && bytes <= 8)
		x = rhh_load_int(value, bytes);
	switch (op)
	{
		case RHH_COUNT:
			state[0]++;
			break;
		case RHH_SUM_I64:
			state[0] += (uint64_t) x;
			break;
		case RHH_SUM_I128:
			words[0] = (uint64_t) x;
			words[1] = x < 0 ? UINT64_MAX : 0;
			rhh_add_words(state, words, 2);
			break;
		case RHH_MIN_I64:
			if (x < (int64_t) state[0])
				state[0] = (uint64_t) x;
			break;
		case RHH_MAX_I64:
			if (x > (int64_t) state[0])
				state[0] = (uint64_t) x;
			break;
		case RHH_ANY:
			state[0] = 1;
			state[1] = 0;
			memcpy(&state[1], value, bytes);
			break;
		case RHH_AND:
			state[0] &= (uint64_t) x;
			break;
		case RHH_OR:
			state[0] |= (uint64_t) x;
			break;
		case RHH_XOR:
			state[0] ^= (uint64_t) x;
			break;
		case RHH_SUM_SQUARES:
			rhh_add_square(state, x, rhh_op_words(op, bytes));
			break;
		case RHH_SUM_F64:
			rhh_add_f64(state, rhh_load_float(value, bytes));
			break;
		case RHH_MOMENTS_F64:
			rhh_add_moments(state, rhh_load_float(value, bytes));
			break;
		case RHH_SUM_TWICE_F64:
			rhh_add_twice(state, ((const double *) value)[0], ((const double *) value)[1]);
			break;
	}
}

/* Merges the state `from` of another group; their argument has so many bytes. */
static inline void
rhh_state_combine(uint8_t op, uint32_t bytes, uint64_t *to, const uint64_t *from)
{
	switch (op)
	{
		case RHH_COUNT:
		case RHH_SUM_I64:
			to[0] += from[0];
			break;
		case RHH_SUM_I128:
		case RHH_SUM_SQUARES:
			rhh_add_words(to, from, rhh_op_words(op, bytes));
			break;
		case RHH_MIN_I64:
			if ((int64_t) from[0] < (int64_t) to[0])
				to[0] = from[0];
			break;
		case RHH_MAX_I64:
			if ((int64_t) from[0] > (int64_t) to[0])
				to[0] = from[0];
			break;
		case RHH_ANY:
			if (from[0] != 0)
				memcpy(to, from, rhh_op_words(op, bytes) * sizeof(uint64_t));
			break;
		case RHH_AND:
			to[0] &= from[0];
			break;
		case RHH_OR:
			to[0] |= from[0];
			break;
		case RHH_XOR:
			to[0] ^= from[0];
			break;
		case RHH_SUM_F64:
			to[0] = rhh_as_bits(rhh_as_double(to[0]) + rhh_as_double(from[0]));
			to[1] |= from[1];
			break;
		case RHH_MOMENTS_F64:
			rhh_add_twice(&to[0], rhh_as_double(from[0]), rhh_as_double(from[1]));
			rhh_add_twice(&to[2], rhh_as_double(from[2]), rhh_as_double(from[3]));
			to[4] |= from[4];
			break;
		case RHH_SUM_TWICE_F64:
			rhh_add_twice(to, rhh_as_double(from[0]), rhh_as_double(from[1]));
			break;
	}
}

/* ---------- conditions ---------- */

/* Does a condition hold for the value of a state, which has 128 bits? */
RHH_HD bool
rhh_condition_holds(const rhh_group_condition *condition, uint64_t low, int64_t high)
{
	const bool	equal = high == condition->high && low == condition->low;
	const bool	less = high < condition->high || (high == condition->high && low < condition->low);

	switch (condition->comparison)
	{
		case RHH_EQUAL:
			return equal;
		case RHH_NOT_EQUAL:
			return !equal;
		case RHH_LESS:
			return less;
		case RHH_LESS_OR_EQUAL:
			return less || equal;
		case RHH_GREATER:
			return !less && !equal;
		default:
			return !less;
	}
}

#endif							/* RHH_STATES_H */
