/*-------------------------------------------------------------------------
 *
 * decimal.c
 *		Numerics of a known scale as integers.
 *
 * If all values of an expression have the same display scale s, because it is
 * declared numeric(p,s) or is a sum or product of such expressions, each value is
 * represented by the integer value * 10^s.  Equal integers then stand for equal
 * numerics that show the same digits, and a sum has the scale that core gives it.
 *
 * An integer of more than 18 digits is divided into limbs, each of which is fed in a
 * column of its own.  A limb has GPURHH_LIMB_BITS bits of the absolute value, the
 * first limb the least significant ones, and the sign of the value.  So the sum of a
 * wide argument is
 *
 *		sum(limb 0) + sum(limb 1) * 2^61 + sum(limb 2) * 2^122
 *
 * where each of the three is an exact sum of 8-byte integers.  NaN is the greatest
 * int64 in limb 0, which is no other value's limb.  So NaN equals itself and is
 * greater than everything else, as it is in core.  Infinities and other values that
 * are not as declared have no limbs.
 *
 * This file reads and makes values in the format in which core's numeric.c stores
 * them.  No header of core declares that format:
 *
 *		int16 header	1 0 sign scale:6 weight:7 (two's complement), or
 *						0 sign scale:14, then an int16 of weight, or
 *						1 1 ...: NaN and infinities
 *		int16 digits	of base 10000, without zeros at either end; the first
 *						has the weight 10000^weight
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

#include "compat.h"
#include "rhh_decimals.h"
#include "types/types.h"

#ifndef HAVE_INT128
#error "gpurhh needs a compiler with 128-bit integers"
#endif

#define HEADER_KIND			0xc000
#define HEADER_SHORT		0x8000
#define HEADER_SPECIAL		0xc000
#define HEADER_NAN			0xc000	/* of HEADER_SPECIAL_MASK */
#define HEADER_SPECIAL_MASK 0xf000
#define LONG_NEGATIVE		0x4000
#define LONG_SCALE			0x3fff
#define SHORT_NEGATIVE		0x2000
#define SHORT_SCALE			0x1f80
#define SHORT_SCALE_SHIFT	7
#define SHORT_WEIGHT_SIGN	0x0040
#define SHORT_WEIGHT		0x003f
#define SHORT_MAX_SCALE		63
#define SHORT_MAX_WEIGHT	63
#define SHORT_MIN_WEIGHT	(-64)

#define LIMB_MASK ((UINT64CONST(1) << GPURHH_LIMB_BITS) - 1)

/* The most digits of base 10000 that a 128-bit integer has, wherever the point is. */
#define MAX_INT128_DIGITS	12

static const int64 powers[] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
	INT64CONST(10000000000), INT64CONST(100000000000),
	INT64CONST(1000000000000), INT64CONST(10000000000000),
	INT64CONST(100000000000000), INT64CONST(1000000000000000),
	INT64CONST(10000000000000000), INT64CONST(100000000000000000),
	INT64CONST(1000000000000000000)
};

/* ---------- which expressions have a known scale ---------- */

/* How many limbs integers of so many digits need; 0: more than there are. */
int
gpurhh_decimal_limbs(int digits)
{
	/* 10^36 < 2^122, 10^55 < 2^183 */
	return digits <= GPURHH_DECIMAL_DIGITS ? 1 : digits <= 36 ? 2 :
		digits <= 55 ? 3 : 0;
}

/* Reads p and s of numeric(p,s); s may be negative, or greater than p. */
static bool
type_of_typmod(int32 typmod, int *digits, int *scale)
{
	int			declared;

	if (typmod < (int32) VARHDRSZ)
		return false;
	typmod -= VARHDRSZ;
	declared = ((typmod & 0x7ff) ^ 1024) - 1024;
	*digits = ((typmod >> 16) & 0xffff) - Min(declared, 0);
	*scale = Max(declared, 0);
	return true;
}

/* The parts of a stored numeric. */
typedef struct Numeral
{
	uint16		header;
	bool		special;
	bool		negative;
	int			scale;
	int			weight;
	int			n_digits;
	const char *digits;			/* may be unaligned */
} Numeral;

/* Finds the parts of a value, a varlena that is neither compressed nor out of line. */
static inline void
take_apart(const char *value, Numeral *result)
{
	const char *at = VARDATA_ANY(value);
	int			bytes = VARSIZE_ANY_EXHDR(value);
	uint16		header;

	memcpy(&header, at, sizeof(uint16));
	result->header = header;
	result->special = false;
	if (likely((header & HEADER_KIND) == HEADER_SHORT))
	{
		result->negative = (header & SHORT_NEGATIVE) != 0;
		result->scale = (header & SHORT_SCALE) >> SHORT_SCALE_SHIFT;
		result->weight = (header & SHORT_WEIGHT) -
			(header & SHORT_WEIGHT_SIGN);
		result->digits = at + sizeof(uint16);
		result->n_digits = (bytes - sizeof(uint16)) / sizeof(int16);
	}
	else if ((header & HEADER_KIND) == HEADER_SPECIAL)
		result->special = true;
	else
	{
		int16		weight;

		memcpy(&weight, at + sizeof(uint16), sizeof(int16));
		result->negative = (header & LONG_NEGATIVE) != 0;
		result->scale = header & LONG_SCALE;
		result->weight = weight;
		result->digits = at + sizeof(uint16) + sizeof(int16);
		result->n_digits = (bytes - (int) (sizeof(uint16) + sizeof(int16))) /
			(int) sizeof(int16);
	}
}

static inline int
digit_at(const Numeral *numeral, int i)
{
	int16		digit;

	memcpy(&digit, numeral->digits + i * sizeof(int16), sizeof(int16));
	return digit;
}

/* A field of extract(), whose values are integers or have the digits of a second. */
typedef struct ExtractField
{
	const char *name;			/* as the grammar writes it */
	int			digits;
	int			scale;
	bool		years;			/* for an infinite time it is infinite; the other
								 * fields are NULL then */
} ExtractField;

static const ExtractField extract_fields[] = {
	{"microseconds", 8, 0},
	{"milliseconds", 8, 3},
	{"second", 8, 6},
	{"minute", 2, 0},
	{"hour", 2, 0},
	{"day", 2, 0},
	{"dow", 1, 0},
	{"isodow", 1, 0},
	{"doy", 3, 0},
	{"week", 2, 0},
	{"month", 2, 0},
	{"quarter", 1, 0},
	{"year", 6, 0, true},
	{"isoyear", 6, 0, true},
	{"decade", 6, 0, true},
	{"century", 6, 0, true},
	{"millennium", 6, 0, true},
};

/*
 * The field, if the function is extract() of a constant field and its source is not
 * an interval; else NULL.
 */
static const ExtractField *
extract_field(Oid function, List *args)
{
	Const	   *field;
	text	   *name;

	if (function != F_EXTRACT_TEXT_DATE && function != F_EXTRACT_TEXT_TIME &&
		function != F_EXTRACT_TEXT_TIMETZ &&
		function != F_EXTRACT_TEXT_TIMESTAMP &&
		function != F_EXTRACT_TEXT_TIMESTAMPTZ)
		return NULL;
	field = linitial(args);
	if (!IsA(field, Const) || field->constisnull)
		return NULL;
	name = DatumGetTextPP(field->constvalue);
	for (int i = 0; i < lengthof(extract_fields); i++)
	{
		const char *known = extract_fields[i].name;

		if (VARSIZE_ANY_EXHDR(name) == strlen(known) &&
			memcmp(VARDATA_ANY(name), known, strlen(known)) == 0)
			return &extract_fields[i];
	}
	return NULL;
}

/* Is it an extract() whose integers may be infinite?  These are no decimals. */
bool
gpurhh_is_extract_years(Node *expr)
{
	const ExtractField *field;

	if (!IsA(expr, FuncExpr))
		return false;
	field = extract_field(((FuncExpr *) expr)->funcid, ((FuncExpr *) expr)->args);
	return field != NULL && field->years;
}

/* The digits and scale of a constant are those of its value, not of its modifier. */
static bool
type_of_constant(const Const *constant, int *digits, int *scale)
{
	Numeral		numeral;

	if (constant->constisnull)
		return false;
	take_apart((char *) PG_DETOAST_DATUM(constant->constvalue), &numeral);
	if (numeral.special)
		return false;
	*scale = *digits = numeral.scale;
	if (numeral.n_digits > 0 && numeral.weight >= 0)
	{
		*digits += numeral.weight * 4;
		for (int first = digit_at(&numeral, 0); first > 0; first /= 10)
			(*digits)++;
	}
	return true;
}

/* The expressions whose value a CASE or COALESCE may return. */
static List *
results_of(Node *expr)
{
	CaseExpr   *choice = (CaseExpr *) expr;
	List	   *results = NIL;
	ListCell   *lc;

	if (IsA(expr, CoalesceExpr))
		return ((CoalesceExpr *) expr)->args;
	foreach(lc, choice->args)
		results = lappend(results, lfirst_node(CaseWhen, lc)->result);
	if (choice->defresult != NULL)
		results = lappend(results, choice->defresult);
	return results;
}

/* The type of a CASE or COALESCE: all results but NULLs must have the same scale. */
static bool
type_of_results(List *results, int *digits, int *scale)
{
	ListCell   *lc;

	*digits = *scale = -1;
	foreach(lc, results)
	{
		int			one_digits;
		int			one_scale;

		if (IsA(lfirst(lc), Const) && lfirst_node(Const, lc)->constisnull)
			continue;
		if (!gpurhh_decimal_type(lfirst(lc), &one_digits, &one_scale) ||
			(*scale >= 0 && *scale != one_scale))
			return false;
		*scale = one_scale;
		*digits = Max(*digits, one_digits);
	}
	return *scale >= 0;
}

/* The type of a sum, a difference or a product. */
static bool
type_of_arithmetic(Oid function, List *args, int *digits, int *scale)
{
	int			left_digits,
				left_scale,
				right_digits,
				right_scale;

	if (!gpurhh_decimal_type(linitial(args), &left_digits, &left_scale) ||
		!gpurhh_decimal_type(lsecond(args), &right_digits, &right_scale))
		return false;
	if (function == F_NUMERIC_MUL)
	{
		*scale = left_scale + right_scale;
		*digits = left_digits + right_digits;
	}
	else
	{
		*scale = Max(left_scale, right_scale);
		*digits = Max(left_digits + *scale - left_scale,
					  right_digits + *scale - right_scale) + 1;
	}
	/* beyond this core rounds */
	return *scale <= LONG_SCALE;
}

static bool
type_of_function(Oid function, List *args, int *digits, int *scale)
{
	const ExtractField *field;

	*scale = 0;
	switch (function)
	{
		case F_NUMERIC_INT2:
			*digits = 5;
			return true;
		case F_NUMERIC_INT4:
			*digits = 10;
			return true;
		case F_NUMERIC_INT8:
			*digits = 19;
			return true;
		case F_NUMERIC_UMINUS:
		case F_NUMERIC_UPLUS:
		case F_NUMERIC_ABS:
		case F_ABS_NUMERIC:
			return gpurhh_decimal_type(linitial(args), digits, scale);
		case F_NUMERIC_ADD:
		case F_NUMERIC_SUB:
		case F_NUMERIC_MUL:
			return type_of_arithmetic(function, args, digits, scale);
		default:
			field = extract_field(function, args);
			if (field == NULL || field->years)
				return false;
			*digits = field->digits;
			*scale = field->scale;
			return true;
	}
}

/*
 * Do all values of the expression have the same scale?  If so, stores that scale and
 * the most digits that the integers can have.  The answer is the same for an
 * expression of the query and for what the planner has made of it.
 */
bool
gpurhh_decimal_type(Node *expr, int *digits, int *scale)
{
	int32		typmod = exprTypmod(expr);

	check_stack_depth();
	if (gpurhh_base_type(exprType(expr), &typmod) != NUMERICOID)
		return false;
	if ((!IsA(expr, Const) || ((Const *) expr)->constisnull) &&
		type_of_typmod(typmod, digits, scale))
		return true;
	switch (nodeTag(expr))
	{
		case T_RelabelType:
			return gpurhh_decimal_type((Node *) ((RelabelType *) expr)->arg,
									   digits, scale);
		case T_CoerceToDomain:
			return gpurhh_decimal_type((Node *) ((CoerceToDomain *) expr)->arg,
									   digits, scale);
		case T_Const:
			return type_of_constant((Const *) expr, digits, scale);
		case T_CaseExpr:
		case T_CoalesceExpr:
			return type_of_results(results_of(expr), digits, scale);
		case T_OpExpr:
			return type_of_function(((OpExpr *) expr)->opfuncid,
									((OpExpr *) expr)->args, digits, scale);
		case T_FuncExpr:
			return type_of_function(((FuncExpr *) expr)->funcid,
									((FuncExpr *) expr)->args, digits, scale);
		default:
			return false;
	}
}

/* ---------- reading ---------- */

/* Computes words = words * factor + add; returns false if that does not fit. */
static bool
multiply_add(uint64 *words, uint32 factor, uint32 add)
{
	uint128		carry = add;

	for (int w = 0; w < GPURHH_MAX_LIMBS; w++)
	{
		carry += (uint128) words[w] * factor;
		words[w] = (uint64) carry;
		carry >>= 64;
	}
	return carry == 0;
}

/*
 * Reads the absolute value of value * 10^scale into 192 bits.  Returns false if that
 * is not an integer or does not fit.
 */
static bool
read_words(const Numeral *numeral, int scale, uint64 *words)
{
	int			last = numeral->n_digits - 1;
	int			exponent = 4 * (numeral->weight - last) + scale;

	memset(words, 0, sizeof(uint64) * GPURHH_MAX_LIMBS);
	for (int i = 0; i <= last; i++)
	{
		int			digit = digit_at(numeral, i);
		int			kept = 4;

		if (i == last && exponent < 0)
		{
			/* zeros that fill up the last digit */
			if (exponent <= -4 || digit % powers[-exponent] != 0)
				return false;
			digit /= powers[-exponent];
			kept += exponent;
		}
		if (!multiply_add(words, powers[kept], digit))
			return false;
	}
	for (; exponent > 0 && last >= 0; exponent -= 4)
	{
		if (!multiply_add(words, powers[Min(exponent, 4)], 0))
			return false;
	}
	return true;
}

/* 2^32 / 10^i, rounded up: gives exact quotients of numbers below 10^4. */
static const uint64 inverses[] = {UINT64CONST(1) << 32, 429496730, 42949673, 4294968};

/*
 * A fast path for most values: those in the short format that have at most 16
 * digits and need one limb.  Returns false for all others, of which nothing is known
 * then.
 */
static inline bool
read_short(const char *value, int scale, int64 *result)
{
	const char *at;
	int			bytes;
	uint16		header;
	int16		digits[4];
	int			last;
	int			exponent;
	int64		sum = 0;

	if (likely(VARATT_IS_SHORT(value)))
	{
		if (unlikely(VARATT_IS_EXTERNAL(value)))
			return false;
		at = VARDATA_SHORT(value);
		bytes = VARSIZE_SHORT(value) - VARHDRSZ_SHORT;
	}
	else
	{
		if (!VARATT_IS_4B_U(value))
			return false;
		at = VARDATA_4B(value);
		bytes = VARSIZE_4B(value) - VARHDRSZ;
	}
	memcpy(&header, at, sizeof(uint16));
	if (unlikely((header & (HEADER_KIND | SHORT_SCALE)) !=
				 (HEADER_SHORT | scale << SHORT_SCALE_SHIFT)))
		return false;
	last = (bytes - (int) sizeof(uint16)) / (int) sizeof(int16) - 1;
	if (unlikely(last < 0 || last >= lengthof(digits)))
	{
		*result = 0;
		return last < 0;
	}
	at += sizeof(uint16);
	exponent = 4 * ((header & SHORT_WEIGHT) - (header & SHORT_WEIGHT_SIGN) - last) +
		scale;
	for (int i = 0; i < last; i++)
	{
		memcpy(&digits[i], at + i * sizeof(int16), sizeof(int16));
		sum = sum * 10000 + digits[i];
	}
	memcpy(&digits[last], at + last * sizeof(int16), sizeof(int16));
	if (exponent < 0)
	{
		uint32		kept;

		if (unlikely(exponent <= -4))
			return false;
		/* zeros that fill up the last digit */
		kept = ((uint16) digits[last] * inverses[-exponent]) >> 32;
		if (unlikely(kept * (uint32) powers[-exponent] != (uint32) digits[last]))
			return false;
		sum = sum * powers[4 + exponent] + kept;
	}
	else
	{
		sum = sum * 10000 + digits[last];
		if (unlikely(exponent > GPURHH_DECIMAL_DIGITS) ||
			__builtin_mul_overflow(sum, powers[exponent], &sum) ||
			sum >> GPURHH_LIMB_BITS != 0)
			return false;
	}
	*result = (header & SHORT_NEGATIVE) ? -sum : sum;
	return true;
}

/* A copy of a value that is compressed or out of line; the caller frees it. */
static pg_noinline char *
detoast(const char *value)
{
	return (char *) pg_detoast_datum_packed((struct varlena *) unconstify(char *, value));
}

static inline bool
is_toasted(const char *value)
{
	return VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value);
}

/*
 * Reads the limbs of a value, a varlena in any form.  scale and n_limbs are what is
 * known of its expression.  Returns false if the value has another scale, needs more
 * limbs, or is infinite.
 */
bool
gpurhh_decimal_read(const char *value, int scale, int n_limbs, int64 *limbs)
{
	Numeral		numeral;
	uint64		words[GPURHH_MAX_LIMBS];
	uint64		parts[GPURHH_MAX_LIMBS];

	if (n_limbs == 1 && likely(read_short(value, scale, &limbs[0])))
		return true;
	if (unlikely(is_toasted(value)))
	{
		char	   *plain = detoast(value);
		bool		result = gpurhh_decimal_read(plain, scale, n_limbs, limbs);

		pfree(plain);
		return result;
	}
	take_apart(value, &numeral);
	if (numeral.special)
	{
		if ((numeral.header & HEADER_SPECIAL_MASK) != HEADER_NAN)
			return false;
		memset(limbs, 0, sizeof(int64) * n_limbs);
		limbs[0] = GPURHH_DECIMAL_NAN;
		return true;
	}
	if (numeral.scale != scale || !read_words(&numeral, scale, words))
		return false;
	parts[0] = words[0] & LIMB_MASK;
	parts[1] = (words[0] >> 61 | words[1] << 3) & LIMB_MASK;
	parts[2] = (words[1] >> 58 | words[2] << 6) & LIMB_MASK;
	if (words[2] >> 55 != 0)
		return false;
	for (int l = 0; l < GPURHH_MAX_LIMBS; l++)
	{
		if (l < n_limbs)
			limbs[l] = numeral.negative ? -(int64) parts[l] : (int64) parts[l];
		else if (parts[l] != 0)
			return false;
	}
	return true;
}

/*
 * Reads n values of one limb each.  at[i] is where the value before it, in the same tuple, ends, or where value i
 * starts, and becomes where it ends; align is the type's, and memory may be read up to
 * readable.  Returns false if gpurhh_decimal_read() would refuse one of the values; the results must not be used
 * then.
 */
bool
gpurhh_decimal_read_column(const char **at, int n, char align, const char *readable,
						   int scale, int64 *to)
{
	/* from before this on, a short header, the numeric's and four digits */
	const char *end = readable - VARHDRSZ_SHORT - RHH_DECIMAL_READ_BYTES;
	const rhh_decimal_reader reader = *rhh_decimal_reader_of(scale);
	bool		is_known = true;

	for (int i = 0; i < n; i++)
	{
		const char *value = at[i];

		if (likely(value <= end && VARATT_IS_1B(value) && !VARATT_IS_1B_E(value)))
		{
			uint32		bytes = VARSIZE_1B(value);

			if (likely(rhh_decimal_read(&reader, value + VARHDRSZ_SHORT, bytes - VARHDRSZ_SHORT, &to[i])))
			{
				at[i] = value + bytes;
				continue;
			}
		}
		else
			value = (const char *) att_align_pointer((uintptr_t) value, align, -1, value);
		is_known = is_known && gpurhh_decimal_read(value, scale, 1, &to[i]);
		at[i] = value + VARSIZE_ANY(value);
	}
	return is_known;
}

/*
 * Reads value * 10^scale of a value that must have given_scale; scale is not less
 * than that.  Returns false if the value has another scale, or if the integer does
 * not fit.
 */
bool
gpurhh_decimal_read_as(const char *value, int given_scale, int scale,
					   int128 *result)
{
	Numeral		numeral;
	uint64		words[GPURHH_MAX_LIMBS];

	take_apart(value, &numeral);
	if (numeral.special)
	{
		*result = GPURHH_DECIMAL128_NAN;
		return (numeral.header & HEADER_SPECIAL_MASK) == HEADER_NAN;
	}
	if (numeral.scale != given_scale || !read_words(&numeral, scale, words) ||
		words[2] != 0 || words[1] >> 63 != 0)
		return false;
	*result = (int128) words[1] << 64 | words[0];
	if (*result == GPURHH_DECIMAL128_NAN)
		return false;
	if (numeral.negative)
		*result = -*result;
	return true;
}

/* Does what gpurhh_decimal_read() does, but reads one integer instead of limbs. */
bool
gpurhh_decimal_read128(const char *value, int scale, int128 *result)
{
	char	   *plain;
	bool		has_scale;

	if (likely(!is_toasted(value)))
		return gpurhh_decimal_read_as(value, scale, scale, result);
	plain = detoast(value);
	has_scale = gpurhh_decimal_read_as(plain, scale, scale, result);
	pfree(plain);
	return has_scale;
}

/*
 * How many of n_limbs do n integers need, at most?  Those above are 0 in all of them.  0: some cannot be split into n_limbs.
 * Values that have the declared scale may still have more digits than are declared, and so may results that are
 * computed from them.
 */
int
gpurhh_decimal_limbs_needed(const int128 *values, int n, int n_limbs)
{
	uint64		wide = 0;
	uint64		above = 0;

	/* most need the first one only */
	for (int i = 0; i < n; i++)
	{
		uint64		low = (uint64) values[i];
		uint64		sign = (uint64) ((int64) low >> 63);

		wide |= (uint64) (values[i] >> 64) ^ sign;
		wide |= ((low ^ sign) - sign) >> GPURHH_LIMB_BITS;
	}
	if (likely(wide == 0))
		return 1;

	/*
	 * Whether two are enough the high halves tell.  That of a negative value is rounded down, so
	 * its absolute value may be one too great: the least value that could be split so
	 * needs one more, or is left to core.  Three are enough for all.
	 */
	for (int i = 0; i < n; i++)
	{
		int64		high = (int64) (values[i] >> 64);
		uint64		sign = (uint64) (high >> 63);

		above |= ((uint64) high ^ sign) - sign;
	}
	if (above >> (2 * GPURHH_LIMB_BITS - 64) == 0)
		return 2;
	return n_limbs > 2 ? n_limbs : 0;
}

/* Do all of n keys fit one limb?  Greater integers mean odd keys. */
bool
gpurhh_decimal_fits_key(const int64 *values, int n)
{
	const uint64 limit = UINT64CONST(1) << GPURHH_LIMB_BITS;
	uint64		beyond = 0;

	for (int i = 0; i < n; i++)
		beyond |= ((uint64) values[i] + limit >= 2 * limit) &
			(values[i] != GPURHH_DECIMAL_NAN);
	return beyond == 0;
}

/*
 * Computes value * 10^exponent of n integers, of which those that nulls has (it may be NULL)
 * become 0.  NaN stays NaN.  Returns false if a result does not fit one limb, whose value
 * would be odd at the greater scale, too.
 */
bool
gpurhh_decimal_rescale(const int64 *values, const uint8 *nulls, int n, int exponent,
					   int64 *to)
{
	bool		overflow = false;

	Assert(exponent <= GPURHH_DECIMAL_DIGITS);
	for (int i = 0; i < n; i++)
	{
		if (nulls != NULL && nulls[i])
			to[i] = 0;
		else if (unlikely(values[i] == GPURHH_DECIMAL_NAN))
			to[i] = values[i];
		else if (__builtin_mul_overflow(values[i], powers[exponent], &to[i]) ||
				 to[i] == GPURHH_DECIMAL_NAN)
			overflow = true;
	}
	return !overflow && gpurhh_decimal_fits_key(to, n);
}

/*
 * Computes value * 10^scale, whatever scale the value has itself.  Returns false if
 * that is not an integer of 8 bytes, or is the integer that means NaN.
 */
bool
gpurhh_decimal_integer(const char *value, int scale, int64 *result)
{
	Numeral		numeral;
	uint64		words[GPURHH_MAX_LIMBS];

	take_apart(value, &numeral);
	if (numeral.special || !read_words(&numeral, scale, words) ||
		words[2] != 0 || words[1] != 0 || words[0] >= GPURHH_DECIMAL_NAN)
		return false;
	*result = numeral.negative ? -(int64) words[0] : (int64) words[0];
	return true;
}

/* Stores the limb of this number of each of n integers, which need so many (gpurhh_decimal_limbs_needed()) and have this one. */
void
gpurhh_decimal_split(const int128 *values, int n, int n_limbs, int limb, int64 *to)
{
	int			shift = limb * GPURHH_LIMB_BITS;

	Assert(limb < n_limbs);
	if (likely(n_limbs == 1))
	{
		for (int i = 0; i < n; i++)
			to[i] = (int64) values[i];
		return;
	}
	for (int i = 0; i < n; i++)
	{
		int128		value = values[i];

		if (unlikely(value == GPURHH_DECIMAL128_NAN))
			to[i] = limb == 0 ? GPURHH_DECIMAL_NAN : 0;
		else
		{
			uint128		rest = value < 0 ? -(uint128) value : (uint128) value;
			int64		part = (int64) ((uint64) (rest >> shift) & LIMB_MASK);

			to[i] = value < 0 ? -part : part;
		}
	}
}

/* Computes 10^exponent; returns false if that does not fit. */
bool
gpurhh_decimal_power(int exponent, int128 *result)
{
	*result = 1;
	if (exponent > 38)
		return false;
	while (exponent-- > 0)
		*result *= 10;
	return true;
}

/* ---------- making ---------- */

/*
 * Makes a numeric of n digits of base 10000, which begin with the least significant
 * one.  That one has the weight 10000^exponent.
 */
static Datum
make_numeric(bool negative, const int16 *digits, int n, int exponent, int scale)
{
	int			first = 0;
	Size		bytes;
	int			weight;
	char	   *result;
	char	   *at;

	while (n > 0 && digits[n - 1] == 0)
		n--;
	while (first < n && digits[first] == 0)
		first++;
	weight = n > first ? exponent + n - 1 : 0;
	negative &= n > first;

	bytes = VARHDRSZ + sizeof(uint16) * (2 + n - first);
	result = palloc(bytes);
	at = VARDATA(result);
	if (scale <= SHORT_MAX_SCALE && weight <= SHORT_MAX_WEIGHT &&
		weight >= SHORT_MIN_WEIGHT)
	{
		*(uint16 *) at = HEADER_SHORT | (negative ? SHORT_NEGATIVE : 0) |
			(scale << SHORT_SCALE_SHIFT) |
			(weight & (SHORT_WEIGHT_SIGN | SHORT_WEIGHT));
		at += sizeof(uint16);
	}
	else
	{
		*(uint16 *) at = (negative ? LONG_NEGATIVE : 0) | scale;
		*(int16 *) (at + sizeof(uint16)) = weight;
		at += 2 * sizeof(uint16);
	}
	for (int i = n - 1; i >= first; i--)
	{
		*(int16 *) at = digits[i];
		at += sizeof(int16);
	}
	SET_VARSIZE(result, at - result);
	return PointerGetDatum(result);
}

/* Makes the numeric value / 10^scale, with that scale, as core would store it. */
Datum
gpurhh_decimal_make(int128 value, int scale)
{
	int16		digits[MAX_INT128_DIGITS];
	int			n = 0;
	uint128		rest = value < 0 ? -(uint128) value : (uint128) value;
	uint64		low;
	int			part = scale % 4;

	if (part != 0)
	{
		digits[n++] = (int16) (rest % powers[part]) * powers[4 - part];
		rest /= powers[part];
	}
	while (rest > PG_UINT64_MAX)
	{
		/* four digits at once, as dividing 128 bits is slow */
		low = (uint64) (rest % UINT64CONST(10000000000000000));
		rest /= UINT64CONST(10000000000000000);
		for (int i = 0; i < 4; i++)
		{
			digits[n++] = low % 10000;
			low /= 10000;
		}
	}
	for (low = (uint64) rest; low != 0; low /= 10000)
		digits[n++] = low % 10000;
	return make_numeric(value < 0, digits, n, -((scale + 3) / 4), scale);
}

Datum
gpurhh_decimal_nan(void)
{
	char	   *result = palloc(VARHDRSZ + sizeof(uint16));

	SET_VARSIZE(result, VARHDRSZ + sizeof(uint16));
	*(uint16 *) VARDATA(result) = HEADER_NAN;
	return PointerGetDatum(result);
}

/* Makes the numeric of a single limb, which may mean NaN. */
Datum
gpurhh_decimal_value(int64 value, int scale)
{
	return value == GPURHH_DECIMAL_NAN ? gpurhh_decimal_nan() :
		gpurhh_decimal_make(value, scale);
}

/* Makes the numeric that the sums of the limbs add up to. */
Datum
gpurhh_decimal_sum(const int128 *sums, int n_limbs, int scale)
{
	int128		total = sums[0];
	bool		fits = true;
	Datum		result;

	for (int l = 1; l < n_limbs && fits; l++)
	{
		int128		part;

		fits = !__builtin_mul_overflow(sums[l],
									   (int128) 1 << (GPURHH_LIMB_BITS * l),
									   &part) &&
			!__builtin_add_overflow(total, part, &total);
	}
	if (fits)
		return gpurhh_decimal_make(total, scale);

	result = gpurhh_decimal_make(sums[n_limbs - 1], 0);
	for (int l = n_limbs - 2; l >= 0; l--)
	{
		result = DirectFunctionCall2(numeric_mul, result,
									 gpurhh_decimal_make((int128) 1 << GPURHH_LIMB_BITS, 0));
		result = DirectFunctionCall2(numeric_add, result,
									 gpurhh_decimal_make(sums[l], 0));
	}
	return DirectFunctionCall2(numeric_mul, result,
							   gpurhh_decimal_make(1, scale));
}

/* ---------- core's states ---------- */

/* Appends a finite numeric in the format in which core writes states of aggregates. */
void
gpurhh_decimal_serialize(StringInfo to, Datum value)
{
	Numeral		numeral = {0};

	take_apart((const char *) DatumGetPointer(value), &numeral);
	pq_sendint32(to, numeral.n_digits);
	pq_sendint32(to, numeral.weight);
	pq_sendint32(to, numeral.negative ? LONG_NEGATIVE : 0);
	pq_sendint32(to, numeral.scale);
	for (int i = 0; i < numeral.n_digits; i++)
		pq_sendint16(to, digit_at(&numeral, i));
}
