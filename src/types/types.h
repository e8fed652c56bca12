/*-------------------------------------------------------------------------
 *
 * types.h
 *		Types, aggregates and results: what is supported, and how values travel
 *		in columns and come back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_TYPES_TYPES_H
#define GPURHH_TYPES_TYPES_H

#include "nodes/primnodes.h"
#include "lib/stringinfo.h"

#include "rhh_device.h"

/* ---------- types.c ---------- */

#define GPURHH_STRING_BYTES	16	/* of a key that stands for a string */

/* How a value of a type travels in a column, and back from a result's words. */
typedef enum GpuEncoding
{
	GPU_ENC_NONE,				/* not in a column */
	GPU_ENC_BOOL,				/* 1 byte */
	GPU_ENC_CHAR,				/* 1 byte */
	GPU_ENC_INT2,
	GPU_ENC_INT4,				/* int4, date */
	GPU_ENC_OID,				/* oid, enums and others without a sign */
	GPU_ENC_INT8,				/* int8, time, timestamp, timestamptz, money */
	GPU_ENC_FLOAT4,				/* -0 made 0, one NaN */
	GPU_ENC_FLOAT8,
	GPU_ENC_FLOAT4_RAW,			/* as it is */
	GPU_ENC_FLOAT8_RAW,
	/* as integers in the order of their type, for minima and maxima: */
	GPU_ENC_FLOAT4_ORDER,
	GPU_ENC_FLOAT8_ORDER,
	GPU_ENC_OID_ORDER,
	GPU_ENC_UINT8_ORDER,		/* 8 bytes without a sign */
	GPU_ENC_UUID,				/* 16 bytes */
	GPU_ENC_STRING,				/* 16 bytes, see dictionary.c */
	GPU_ENC_BPCHAR,				/* the same without trailing blanks; parameter:
								 * how many characters they make it */
	GPU_ENC_NAME,				/* the same of a name */
	/* the same of strings that may be a group's least or greatest, else NULL: */
	GPU_ENC_LEAST_STRING,
	GPU_ENC_LEAST_BPCHAR,
	GPU_ENC_GREATEST_STRING,
	GPU_ENC_GREATEST_BPCHAR,
	GPU_ENC_DECIMAL,			/* numeric's limb 0, see decimal.c; parameter:
								 * GPURHH_DECIMAL_PARAMETER() */
	GPU_ENC_LIMB1,				/* its other limbs, if there are more */
	GPU_ENC_LIMB2,
	/* by reference, in 8 bytes, see encoding.c: */
	GPU_ENC_BYTES,				/* as many bytes as the parameter says */
	GPU_ENC_TIMETZ,
	GPU_ENC_TID,
	GPU_ENC_YEARS,				/* an integer as a numeric, perhaps infinite */
	GPU_ENC_INTERVAL_TIME,		/* an interval's fields */
	GPU_ENC_INTERVAL_DAYS,
	GPU_ENC_INTERVAL_MONTHS,
	GPU_ENC_INTERVAL_INFINITE,	/* gpurhh_interval_infinite() */
	GPU_ENC_FILTER,				/* a boolean made "is true", 1 byte, never NULL */
	/* made of two fed columns of float8, see pairs.c; never NULL; parameter:
	 * GPURHH_PAIR() of them */
	GPU_ENC_BOTH,				/* neither is NULL, 1 byte */
	GPU_ENC_PRODUCT				/* 16 bytes: their product as two doubles */
} GpuEncoding;

#define GPURHH_PAIR(first, second) ((first) << 8 | (second))

static inline bool
gpurhh_is_of_pair(GpuEncoding encoding)
{
	return encoding == GPU_ENC_BOTH || encoding == GPU_ENC_PRODUCT;
}

/* Keys of what has no fixed width; see dictionary.c. */
static inline bool
gpurhh_is_string(GpuEncoding encoding)
{
	return encoding >= GPU_ENC_STRING && encoding <= GPU_ENC_GREATEST_BPCHAR;
}

/* Of these, those that go through candidates.c. */
static inline bool
gpurhh_is_candidate(GpuEncoding encoding)
{
	return encoding >= GPU_ENC_LEAST_STRING &&
		encoding <= GPU_ENC_GREATEST_BPCHAR;
}

static inline bool
gpurhh_is_greatest(GpuEncoding encoding)
{
	return encoding == GPU_ENC_GREATEST_STRING ||
		encoding == GPU_ENC_GREATEST_BPCHAR;
}

/* Of a timetz on disk; the struct is padded. */
#define GPU_TIMETZ_BYTES	12

/* The C type of a vector's values. */
typedef enum VectorType
{
	VECTOR_ANY,					/* none: only whether it is NULL is known */
	VECTOR_BOOL,				/* 1 byte, 0 or 1 */
	VECTOR_INT2,
	VECTOR_INT4,				/* also date */
	VECTOR_OID,					/* unsigned; also enums */
	VECTOR_INT8,				/* also time, timestamp, timestamptz */
	VECTOR_FLOAT4,
	VECTOR_FLOAT8,
	VECTOR_UUID,
	VECTOR_STRING,				/* pointers to varlenas, toasted or not */
	VECTOR_BPCHAR /* the same, without trailing blanks */,
	VECTOR_DECIMAL,				/* numeric as an int64, see decimal.c */
	VECTOR_DECIMAL128			/* the same as an int128 */
} VectorType;

typedef struct GpuEncodingInfo
{
	uint8		bytes;			/* in a column */
	VectorType	vector;			/* that expressions of it are computed in;
								 * VECTOR_ANY: they are not */
	bool		by_reference;	/* values are made one by one, with memory */
} GpuEncodingInfo;

/* A column's encoding, and what it has to know. */
typedef struct GpuColumn
{
	GpuEncoding encoding;
	int			parameter;		/* what it is depends on the encoding; or 0 */
	int			attribute;		/* of the child, from 0 */
} GpuColumn;

#define GPU_MAX_STATES 4		/* of one argument */
#define GPU_MAX_OPERANDS 8		/* states that one output is made of */

/* How a column of the result is made of keys or states, its operands. */
typedef enum GpuFinal
{
	GPU_FINAL_KEY,				/* a grouping column */
	GPU_FINAL_ANY,				/* a column the grouping columns determine */
	GPU_FINAL_COUNT,
	/* of a state and RHH_COUNT, NULL when that is 0: */
	GPU_FINAL_VALUE,			/* the state, as a value of the argument's kind */
	GPU_FINAL_SUM_INT8,
	GPU_FINAL_SUM_NUMERIC,
	GPU_FINAL_AVG_INT8,			/* of a 64-bit sum */
	GPU_FINAL_AVG_NUMERIC,		/* of a 128-bit sum */
	/* and RHH_MAX_I64, which tells NaN, and the sums of more limbs: */
	GPU_FINAL_SUM_DECIMAL,
	GPU_FINAL_AVG_DECIMAL,
	/* chosen by the second level, and then as GPU_FINAL_ANY: */
	GPU_FINAL_LEAST,
	GPU_FINAL_GREATEST,
	GPU_FINAL_GROUPING,			/* GROUPING(): known from the set */
	GPU_FINAL_SUM_MONEY,
	/* of RHH_SUM_I128 of the time and RHH_COUNT, then RHH_SUM_I64 of days and of
	 * months, and RHH_OR: */
	GPU_FINAL_SUM_INTERVAL,
	GPU_FINAL_AVG_INTERVAL,
	GPU_FINAL_SUM_FLOAT,
	GPU_FINAL_AVG_FLOAT,
	/* of integers: RHH_SUM_I64 or _I128, RHH_COUNT, RHH_SUM_SQUARES; of numerics
	 * also RHH_MAX_I64, which tells NaN */
	GPU_FINAL_VAR_POP,
	GPU_FINAL_VAR_SAMP,
	GPU_FINAL_STDDEV_POP,
	GPU_FINAL_STDDEV_SAMP,
	/* of RHH_MOMENTS_F64 and RHH_COUNT */
	GPU_FINAL_VAR_POP_FLOAT,
	GPU_FINAL_VAR_SAMP_FLOAT,
	GPU_FINAL_STDDEV_POP_FLOAT,
	GPU_FINAL_STDDEV_SAMP_FLOAT,
	/* of two arguments' rows in which neither is NULL: RHH_SUM_F64 and RHH_COUNT,
	 * and RHH_SUM_F64 of the other one */
	GPU_FINAL_PAIR_AVG,
	/* the first one's RHH_MOMENTS_F64, RHH_COUNT, RHH_AND and RHH_OR, the second
	 * one's but for the count, and RHH_SUM_TWICE_F64 of the products; parameter:
	 * core's final function */
	GPU_FINAL_PAIR
} GpuFinal;

typedef struct GpuAggregate
{
	Oid			function;		/* pg_proc's */
	Oid			argtype;		/* InvalidOid: none, or any (count) */
	GpuFinal	final;
	rhh_state_op states[GPU_MAX_STATES];	/* its operands; 0: no more */
	GpuEncoding encoding;		/* of the argument; GPU_ENC_NONE: its type's */
} GpuAggregate;

extern const GpuEncodingInfo gpurhh_encodings[];	/* by GpuEncoding */

extern bool gpurhh_resolve(Oid type, int32 typmod, Oid collation,
						   GpuColumn *column, const char **problem);
extern bool gpurhh_resolve_type(Node *expr, GpuColumn *column,
								const char **problem);
extern bool gpurhh_resolve_limbs(Node *expr, GpuColumn *column,
								 const char **problem);
extern bool gpurhh_compares_bytes(Oid collation);
extern const GpuAggregate *gpurhh_find_aggregate(Oid function);
extern const char *gpurhh_aggregate_problem(Oid function);

/* ---------- decimal.c ---------- */

#define GPURHH_DECIMAL_DIGITS	18	/* that one limb has at least */
#define GPURHH_DECIMAL128_DIGITS 37 /* that an int128 has at least */
#define GPURHH_LIMB_BITS	61
#define GPURHH_DECIMAL_PARAMETER(scale, limbs) ((limbs) << 16 | (scale))
#define GPURHH_DECIMAL_SCALE(parameter) ((parameter) & 0xffff)
#define GPURHH_DECIMAL_LIMBS(parameter) ((parameter) >> 16)
#define GPURHH_MAX_LIMBS	3
#define GPURHH_DECIMAL_NAN	PG_INT64_MAX	/* in limb 0 */
#define GPURHH_DECIMAL128_NAN	((int128) (~(uint128) 0 >> 1))

extern int	gpurhh_decimal_limbs(int digits);
extern bool gpurhh_decimal_type(Node *expr, int *digits, int *scale);
extern bool gpurhh_is_extract_years(Node *expr);
extern bool gpurhh_decimal_read(const char *value, int scale, int n_limbs,
								int64 *limbs);
extern bool gpurhh_decimal_read_column(const char *const *data,
									   const uint32 *positions, int n,
									   int scale, int64 *to);
extern bool gpurhh_decimal_read_as(const char *value, int given_scale,
								   int scale, int128 *result);
extern bool gpurhh_decimal_read128(const char *value, int scale,
								   int128 *result);
extern bool gpurhh_decimal_integer(const char *value, int scale,
								   int64 *result);
extern bool gpurhh_decimal_fits(const int128 *values, int n, int n_limbs);
extern void gpurhh_decimal_split(const int128 *values, int n, int limb,
								 int64 *to);
extern bool gpurhh_decimal_power(int exponent, int128 *result);
extern bool gpurhh_decimal_fits_key(const int64 *values, int n);
extern Datum gpurhh_decimal_make(int128 value, int scale);
extern Datum gpurhh_decimal_nan(void);
extern Datum gpurhh_decimal_value(int64 value, int scale);
extern Datum gpurhh_decimal_sum(const int128 *sums, int n_limbs, int scale);
extern void gpurhh_decimal_serialize(StringInfo to, Datum value);

/*
 * Keys beyond every limb: this and the number of a numeric that is not as its type
 * modifier declares, an odd one, in a dictionary (dictionary.c).
 */
#define GPURHH_DECIMAL_ODD	(INT64CONST(1) << 62)

static inline bool
gpurhh_decimal_is_odd(uint64 word)
{
	return (int64) word >= GPURHH_DECIMAL_ODD &&
		(int64) word != GPURHH_DECIMAL_NAN;
}

/* The int64 for an int128 that it holds, or that is NaN. */
static inline int64
gpurhh_decimal_narrow(int128 value)
{
	return value == GPURHH_DECIMAL128_NAN ? GPURHH_DECIMAL_NAN : (int64) value;
}

/* ---------- encoding.c ---------- */

extern void gpurhh_convert_values(GpuEncoding encoding, void *values, int n);
extern int64 gpurhh_convert_back(GpuEncoding encoding, int64 word);
extern uint64 gpurhh_encode_reference(GpuEncoding encoding, int parameter,
									  const void *stored);
extern Datum gpurhh_decode_reference(GpuEncoding encoding, int parameter,
									 const uint64 *word, Size stride);

/* ---------- agg_final.c ---------- */

/* A number as two doubles to be added up; the second is small. */
typedef struct Twice
{
	float8		high;
	float8		low;
} Twice;

extern Twice gpurhh_twice(const uint64 *words, Size stride);
extern float8 gpurhh_sum_of_deviations(Twice products, Twice x, Twice y,
									   uint64 count);
extern bool gpurhh_not_finite(uint64 flags, float8 *result);

extern bool gpurhh_final_is_sample(GpuFinal final);
extern Datum gpurhh_final_variance(GpuFinal final, int128 sum, uint64 count,
								   const uint64 *squares, int scale);
extern Datum gpurhh_final_squares(const uint64 *squares, int scale);
extern int64 gpurhh_final_money(uint64 low, uint64 high);
extern Datum gpurhh_final_interval(GpuFinal final, int128 time, int64 days,
								   int64 months, int infinite, uint64 count);
extern float8 gpurhh_final_sum_float(uint64 sum, uint64 flags, bool single);
extern float8 gpurhh_final_avg_float(uint64 sum, uint64 flags, uint64 count);
extern float8 gpurhh_final_variance_float(GpuFinal final, const uint64 *moments,
										  Size stride, uint64 count);

/* ---------- pair_final.c ---------- */

typedef struct PairFinal PairFinal;

extern PairFinal *gpurhh_pair_final_create(Oid function);
extern float8 gpurhh_pair_final(PairFinal *final, const int *words,
								const uint64 *group, Size stride, bool *isnull);
extern float8 gpurhh_pair_avg(const int *words, const uint64 *group,
							  Size stride);

#endif							/* GPURHH_TYPES_TYPES_H */
