/*-------------------------------------------------------------------------
 *
 * types.h
 *		Types and aggregates: which of them are supported, how values travel to a
 *		device in columns, and how results are made of the words that come back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_TYPES_TYPES_H
#define GPURHH_TYPES_TYPES_H

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/primnodes.h"

#include "rhh_device.h"

/* ---------- types.c ---------- */

#define GPURHH_STRING_BYTES	16	/* width of a key that stands for a string */

/*
 * How the values of a column travel to a device, and back as words of a result.
 *
 * An encoding is a name for a row of gpurhh_encodings[], which says four things
 * of a column that have nothing to do with each other: its width, its order, what
 * it is derived from, and its role.  A plan carries the name alone, and only those
 * combinations exist that have a row.  So code asks the row for what it needs to
 * know and does not list encodings, except where it is about a single one.
 */
typedef enum GpuEncoding
{
	GPU_ENC_NONE,				/* not in a column */
	GPU_ENC_BOOL,
	GPU_ENC_CHAR,
	GPU_ENC_INT2,
	GPU_ENC_INT4,				/* int4, date */
	GPU_ENC_OID,				/* oid, enums and others without a sign */
	GPU_ENC_INT8,				/* int8, time, timestamp, timestamptz, money */
	GPU_ENC_FLOAT4,
	GPU_ENC_FLOAT8,
	GPU_ENC_FLOAT4_RAW,
	GPU_ENC_FLOAT8_RAW,
	GPU_ENC_FLOAT4_ORDER,
	GPU_ENC_FLOAT8_ORDER,
	GPU_ENC_OID_ORDER,
	GPU_ENC_UINT8_ORDER,		/* 8 bytes without a sign */
	GPU_ENC_UUID,
	GPU_ENC_STRING,
	GPU_ENC_BPCHAR,				/* parameter: its declared number of characters */
	GPU_ENC_NAME,
	GPU_ENC_LEAST_STRING,
	GPU_ENC_LEAST_BPCHAR,
	GPU_ENC_GREATEST_STRING,
	GPU_ENC_GREATEST_BPCHAR,
	GPU_ENC_DECIMAL,			/* limb 0 of a numeric, see decimal.c; parameter:
								 * GPURHH_DECIMAL_PARAMETER() */
	GPU_ENC_LIMB1,				/* its other limbs, if there are more */
	GPU_ENC_LIMB2,
	GPU_ENC_BYTES,				/* as many bytes as the parameter says */
	GPU_ENC_TIMETZ,
	GPU_ENC_TID,
	GPU_ENC_YEARS,				/* an integer as a numeric, perhaps infinite */
	GPU_ENC_INTERVAL_TIME,		/* the fields of an interval */
	GPU_ENC_INTERVAL_DAYS,
	GPU_ENC_INTERVAL_MONTHS,
	GPU_ENC_INTERVAL_INFINITE,	/* gpurhh_interval_infinite() */
	GPU_ENC_FILTER,				/* "is true" of a boolean */
	GPU_ENC_BOTH,				/* parameter, also of the next: GPURHH_PAIR() */
	GPU_ENC_PRODUCT,
	/* keys of joins with columns of another type; see equality.c */
	GPU_ENC_INT2_AS_INT4,
	GPU_ENC_INT2_AS_INT8,
	GPU_ENC_INT4_AS_INT8,
	GPU_ENC_FLOAT4_AS_FLOAT8,
	GPU_ENC_RESCALED,			/* a numeric; parameter: GPURHH_RESCALED_PARAMETER() */
	GPU_ENC_UNPADDED			/* a character(n) of whatever length */
} GpuEncoding;

/*
 * What is done to the bits of a value so that comparing the words, as devices do,
 * compares the values.  It is undone when words become values again, except where
 * equal values are made the same.
 */
typedef enum GpuOrder
{
	ORDER_OF_BITS,				/* nothing: the bits are right as they are stored,
								 * or are not compared */
	ORDER_OF_EQUALITY,			/* equal floats get equal bits: 0 for -0, and one
								 * NaN; they have no order */
	ORDER_OF_FLOATS,			/* floats become signed integers in their order */
	ORDER_OF_UNSIGNED			/* and so do integers without a sign */
} GpuOrder;

/* What a column's value is made of. */
typedef enum GpuDerivation
{
	DERIVED_NOT,				/* it is in no column */
	DERIVED_TRUTH,				/* a boolean, as 0 or 1 */
	DERIVED_VALUE,				/* the value itself, of as many bytes */
	DERIVED_WIDENED,			/* the same number in more bytes */
	DERIVED_WORD,				/* a value by reference, or a field of it, as one
								 * word; see gpurhh_encode_reference() */
	DERIVED_LIMB,				/* a limb of a numeric; see decimal.c */
	DERIVED_RESCALED,			/* the limb that it has at a greater scale */
	DERIVED_STRING,				/* the key of a string; see dictionary.c */
	DERIVED_BPCHAR,				/* the key of a string without trailing blanks, or
								 * with them if it is odd */
	DERIVED_UNPADDED,			/* the key of a string without trailing blanks */
	DERIVED_NAME,				/* the key of a name */
	DERIVED_BOTH,				/* of two fed columns: is neither NULL?; see
								 * pairs.c */
	DERIVED_PRODUCT				/* their product, see Twice */
} GpuDerivation;

/* What a column is for, where that decides which of its values are fed. */
typedef enum GpuRole
{
	ROLE_ANY,					/* a key, an argument, or what a group has beside */
	ROLE_FILTER,				/* says which rows count, and is never NULL */
	ROLE_LEAST,					/* strings of which a group's least is looked for:
								 * those that cannot be it are fed as NULL, see
								 * candidates.c */
	ROLE_GREATEST				/* the same for the greatest */
} GpuRole;

#define GPURHH_PAIR(first, second) ((first) << 8 | (second))

/*
 * A number to be added up, as the sum of two doubles of which the second is
 * small.  This is the value of a column of GPU_ENC_PRODUCT.
 */
typedef struct Twice
{
	float8		high;
	float8		low;
} Twice;

/* The bytes of a timetz on disk; the struct is longer, as it is padded. */
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
	VECTOR_BPCHAR,				/* the same; trailing blanks do not count */
	VECTOR_DECIMAL,				/* numeric as an int64, see decimal.c */
	VECTOR_DECIMAL128			/* the same as an int128 */
} VectorType;

/* The row of an encoding. */
typedef struct GpuEncodingInfo
{
	uint8		bytes;			/* the width of a value in a column */
	GpuDerivation derivation;
	VectorType	vector;			/* in which expressions give values to be fed so;
								 * VECTOR_ANY: none does */
	GpuOrder	order;
	GpuRole		role;
	uint8		limb;			/* with DERIVED_LIMB: which one, from 0 */
	bool		by_reference;	/* values of results are made one by one, as each
								 * takes memory */
} GpuEncodingInfo;

/* How one column of a feed is made of the rows of the child plan. */
typedef struct GpuColumn
{
	GpuEncoding encoding;
	int			parameter;		/* its meaning depends on the encoding; else 0 */
	int			attribute;		/* the attribute of the child, from 0 */
} GpuColumn;

extern const GpuEncodingInfo gpurhh_encodings[];	/* by GpuEncoding */

/* Is a column made of two others, once these are in the block? */
static inline bool
gpurhh_is_of_pair(GpuEncoding encoding)
{
	return gpurhh_encodings[encoding].derivation >= DERIVED_BOTH;
}

/* Does a column have keys that stand for strings? */
static inline bool
gpurhh_is_string(GpuEncoding encoding)
{
	GpuDerivation derivation = gpurhh_encodings[encoding].derivation;

	return derivation >= DERIVED_STRING && derivation <= DERIVED_NAME;
}

/* Does candidates.c choose which of its strings are fed? */
static inline bool
gpurhh_is_candidate(GpuEncoding encoding)
{
	return gpurhh_encodings[encoding].role >= ROLE_LEAST;
}

extern Oid	gpurhh_base_type(Oid type, int32 *typmod);
extern bool gpurhh_resolve(Oid type, int32 typmod, Oid collation,
						   GpuColumn *column, const char **problem);
extern bool gpurhh_resolve_type(Node *expr, GpuColumn *column,
								const char **problem);
extern bool gpurhh_resolve_limbs(Node *expr, GpuColumn *column,
								 const char **problem);
extern bool gpurhh_resolve_operand(Node *expr, bool only_null, GpuColumn *column);
extern int	gpurhh_limb_columns(GpuColumn how, GpuColumn *columns);
extern bool gpurhh_resolve_bytes(Oid type, GpuColumn *column, const char **problem);
extern bool gpurhh_compares_bytes(Oid collation);

/* ---------- equality.c ---------- */

extern Node *gpurhh_without_relabel(Node *expr);
extern bool gpurhh_resolve_equality(const OpExpr *op, GpuColumn how[2],
									const char **problem);

/* ---------- aggregates.c ---------- */

#define GPU_MAX_OPERANDS 8		/* states that one result is made of */

/* What arguments an aggregate takes, and which part of them is fed. */
typedef enum AggregateArgument
{
	AGGREGATE_OF_NULLS,			/* any type, or no argument: only whether it is
								 * NULL matters */
	AGGREGATE_OF_VALUES,		/* the result is a value as the argument is one,
								 * and may be infinite */
	AGGREGATE_OF_NUMBERS,		/* numbers; infinite ones, as extract() may give,
								 * are refused */
	AGGREGATE_OF_LIMBS,			/* numerics, also of more than one limb */
	AGGREGATE_OF_PARTS,			/* values of which only parts are fed */
	AGGREGATE_OF_PAIRS,			/* two arguments, of the rows in which neither is
								 * NULL; see batch/pairs.c */
	AGGREGATE_CHOICE			/* the first level makes a group of each value,
								 * and the second level chooses one of these */
} AggregateArgument;

typedef enum AggregateDistinct
{
	DISTINCT_REFUSED,
	DISTINCT_CHANGES_NOTHING,	/* a value that is seen again changes no result */
	DISTINCT_BY_LEVEL			/* the second level computes it, from groups of
								 * equal values */
} AggregateDistinct;

/* Which of a group's values the second level chooses. */
typedef enum GpuChoice
{
	GPU_CHOICE_LEAST_STRING,	/* by their bytes */
	GPU_CHOICE_GREATEST_STRING,
	GPU_CHOICE_LEAST_ENUM,
	GPU_CHOICE_GREATEST_ENUM
} GpuChoice;

/* A transition state of an aggregate. */
typedef struct AggregateState
{
	rhh_state_op op;			/* 0: there are no more states */
	GpuEncoding part;			/* the part of the argument that it is over, or of
								 * both arguments; GPU_ENC_NONE: one of them whole */
	int			argument;		/* then: the number of that one, from 0 */
} AggregateState;

typedef struct AggregateFamily AggregateFamily;

/* The row of an aggregate. */
typedef struct GpuAggregate
{
	Oid			function;		/* its OID in pg_proc */
	Oid			argtype;		/* may be polymorphic, see has_type() in
								 * aggregates.c; not used with AGGREGATE_OF_NULLS */
	const AggregateFamily *family;
	AggregateState states[GPU_MAX_OPERANDS];	/* the second is RHH_COUNT unless
												 * the result is a count */
	GpuEncoding encoding;		/* the argument's; GPU_ENC_NONE: its type's */
	PGFunction	core_final;		/* core's final function, for results that are
								 * made of core's state: always, or where
								 * numerics are not as they are declared */
} GpuAggregate;

/* What the methods of an aggregate's family know of one column of the result. */
typedef struct AggregateResult
{
	const GpuAggregate *aggregate;
	GpuEncoding encoding;		/* of the argument, and its parameter */
	int			parameter;
	int			words[GPU_MAX_OPERANDS];	/* the first word of each state */
	void	   *made;			/* what the family's begin() returned */
} AggregateResult;

/*
 * The sums of a group's numerics, in the form in which core can add the values that
 * were not fed (exec/odd_arguments.c).
 */
typedef struct NumericSums
{
	bool		nan;			/* NaN is among the values; then the sums are 0 */
	Datum		sum;
	Datum		squares;		/* (Datum) 0 if the aggregate does not use it */
} NumericSums;

/*
 * A family is the aggregates whose results are made in the same way.
 *
 * The methods get the words of groups in columns: word w of group i of a window is
 * words[w * stride + i], and word w of a single group is group[w * stride].
 *
 * A family without decode() and make() returns the word of the first state, as a
 * value of the encoding.  decode() computes the results of a whole window at once.
 * make() computes a single result, when its group is returned, because the result
 * needs memory.  make() is not called for groups whose result is NULL; decode() sees
 * these groups too and must not raise an error for them.
 */
struct AggregateFamily
{
	AggregateArgument argument;
	AggregateDistinct distinct;
	int			fewest_rows;	/* the result is NULL for fewer rows than this; 0:
								 * it is a count, which is never NULL */
	bool		overflows;		/* core raises an error for values that the types allow, also
								 * of groups for which HAVING is not true */
	GpuEncoding result;			/* without make(): the encoding of the result;
								 * GPU_ENC_NONE: that of the argument */
	void	   *(*begin) (const GpuAggregate *aggregate);	/* called once a plan */
	void		(*decode) (const AggregateResult *result, const uint64 *words,
						   Size stride, uint32 n, Datum *values, bool *isnull);
	Datum		(*make) (const AggregateResult *result, const uint64 *group,
						 Size stride);
	/* numerics only: the sums, for core_final to add more values to */
	void		(*sums) (const AggregateResult *result, const uint64 *group,
						 Size stride, NumericSums *sums);
	/*
	 * Numerics of one scale, for HAVING: that scale, or -1 if the results need more than 128 bits;
	 * and the results of a window times 10^scale, or GPURHH_DECIMAL128_NAN.
	 */
	int			(*scale) (const AggregateResult *result);
	void		(*integers) (const AggregateResult *result, const uint64 *words,
							 Size stride, uint32 n, int128 *values);
	GpuChoice	choice;			/* with AGGREGATE_CHOICE: what is chosen */
};

extern const GpuAggregate *gpurhh_find_aggregate(Oid function);
extern const char *gpurhh_aggregate_problem(Oid function);
extern bool gpurhh_resolve_argument(const GpuAggregate *aggregate, Node *arg,
									Oid collation, GpuColumn *column,
									const char **problem);
extern bool gpurhh_state_is_used(const AggregateState *state,
								 const GpuColumn *column);

/* ---------- decimal.c ---------- */

#define GPURHH_DECIMAL_DIGITS	18	/* any integer of so many digits fits a limb */
#define GPURHH_DECIMAL128_DIGITS 37 /* and of so many an int128 */
#define GPURHH_LIMB_BITS	61
#define GPURHH_DECIMAL_PARAMETER(scale, limbs) ((limbs) << 16 | (scale))
#define GPURHH_DECIMAL_SCALE(parameter) ((parameter) & 0xffff)
#define GPURHH_DECIMAL_LIMBS(parameter) ((parameter) >> 16)
#define GPURHH_MAX_LIMBS	3
/* the scale that a numeric has, and how much greater that is with which it is fed */
#define GPURHH_RESCALED_PARAMETER(scale, exponent) ((exponent) << 16 | (scale))
#define GPURHH_RESCALED_EXPONENT(parameter) ((parameter) >> 16)
#define GPURHH_DECIMAL_NAN	PG_INT64_MAX	/* in limb 0 */
#define GPURHH_DECIMAL128_NAN	((int128) (~(uint128) 0 >> 1))

extern int	gpurhh_decimal_limbs(int digits);
extern bool gpurhh_decimal_type(Node *expr, int *digits, int *scale);
extern bool gpurhh_is_extract_years(Node *expr);
extern bool gpurhh_decimal_read(const char *value, int scale, int n_limbs,
								int64 *limbs);
extern bool gpurhh_decimal_read_column(const char **at, int n, char align,
									   const char *readable, int scale,
									   int64 *to);
extern bool gpurhh_decimal_read_as(const char *value, int given_scale,
								   int scale, int128 *result);
extern bool gpurhh_decimal_read128(const char *value, int scale,
								   int128 *result);
extern bool gpurhh_decimal_integer(const char *value, int scale,
								   int64 *result);
extern int	gpurhh_decimal_limbs_needed(const int128 *values, int n, int n_limbs);
extern void gpurhh_decimal_split(const int128 *values, int n, int n_limbs,
								 int limb, int64 *to);
extern bool gpurhh_decimal_power(int exponent, int128 *result);
extern bool gpurhh_decimal_fits_key(const int64 *values, int n);
extern bool gpurhh_decimal_rescale(const int64 *values, const uint8 *nulls, int n,
								   int exponent, int64 *to);
extern Datum gpurhh_decimal_make(int128 value, int scale);
extern Datum gpurhh_decimal_nan(void);
extern Datum gpurhh_decimal_value(int64 value, int scale);
extern Datum gpurhh_decimal_sum(const int128 *sums, int n_limbs, int scale);
extern void gpurhh_decimal_serialize(StringInfo to, Datum value);

/*
 * The key of an odd numeric, one that is not as its type modifier declares, is this
 * constant plus the number of the numeric in a dictionary (dictionary.c).  No limb
 * is as large.
 */
#define GPURHH_DECIMAL_ODD	(INT64CONST(1) << 62)

static inline bool
gpurhh_decimal_is_odd(uint64 word)
{
	return (int64) word >= GPURHH_DECIMAL_ODD &&
		(int64) word != GPURHH_DECIMAL_NAN;
}

/* An int128 as an int64.  The value must fit, or be NaN. */
static inline int64
gpurhh_decimal_narrow(int128 value)
{
	return value == GPURHH_DECIMAL128_NAN ? GPURHH_DECIMAL_NAN : (int64) value;
}

/* ---------- encoding.c ---------- */

extern GpuEncoding gpurhh_as_stored(GpuEncoding encoding);
extern void gpurhh_order_4_bytes(GpuOrder order, void *values, int n);
extern void gpurhh_order_8_bytes(GpuOrder order, void *values, int n);
extern void gpurhh_widen(GpuEncoding encoding, const void *values, int n, void *to);
extern void gpurhh_widen_datum(GpuEncoding encoding, Datum value, void *to);
extern void gpurhh_decode_values(GpuEncoding encoding, const uint64 *words,
								 uint32 n, Datum *values);
extern uint64 gpurhh_encode_reference(GpuEncoding encoding, int parameter,
									  const void *stored);
extern Datum gpurhh_decode_reference(GpuEncoding encoding, int parameter,
									 const uint64 *word, Size stride);

#endif							/* GPURHH_TYPES_TYPES_H */
