/*-------------------------------------------------------------------------
 *
 * equality.c
 *		How two columns are fed so that equal values have equal bytes.
 *
 * A device joins by comparing bytes.  Where an operator compares values of one type, both
 * columns are fed as the columns of a GROUP BY are.  Where it compares two types, as
 * integers of different width, the narrower column is fed in the bytes of the wider one.
 * Such a column is good for a key of a join alone: nothing makes a value of its words.
 *
 * The operator is an equality that hashing goes by, and one of PostgreSQL's own, so what
 * it compares is known by the encodings of its operands' types.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "types/types.h"

/* Encodings whose columns are fed as those of a wider one, and as which. */
typedef struct Widening
{
	GpuEncoding narrow;
	GpuEncoding wide;
	GpuEncoding widened;
} Widening;

static const Widening widenings[] = {
	{GPU_ENC_INT2, GPU_ENC_INT4, GPU_ENC_INT2_AS_INT4},
	{GPU_ENC_INT2, GPU_ENC_INT8, GPU_ENC_INT2_AS_INT8},
	{GPU_ENC_INT4, GPU_ENC_INT8, GPU_ENC_INT4_AS_INT8},
	{GPU_ENC_FLOAT4, GPU_ENC_FLOAT8, GPU_ENC_FLOAT4_AS_FLOAT8},
};

/* Is it an operator by which equal values are found in hash tables, and core's own? */
static bool
is_equality(const OpExpr *op)
{
	Oid			type = exprType(linitial(op->args));
	Oid			family = lookup_type_cache(type, TYPECACHE_HASH_OPFAMILY)->hash_opf;

	return op->opno < FirstGenbkiObjectId && OidIsValid(family) &&
		get_op_opfamily_strategy(op->opno, family) == HTEqualStrategyNumber;
}

/* What an expression is, whatever type it passes for. */
Node *
gpurhh_without_relabel(Node *expr)
{
	while (IsA(expr, RelabelType))
		expr = (Node *) ((RelabelType *) expr)->arg;
	return expr;
}

/*
 * Finds how an operand of the operator is fed, were the other one of the same type.  It has
 * to be of the same encoding as the column that passes for it.
 */
static bool
resolve_operand(const OpExpr *op, Node *operand, GpuColumn *how, const char **problem)
{
	Oid			type = exprType(operand);
	int32		typmod = -1;
	bool		blanks = gpurhh_base_type(type, &typmod) == BPCHAROID;
	Node	   *column = gpurhh_without_relabel(operand);
	GpuColumn	stored;

	/* its values are compared without trailing blanks, however many there are */
	if (blanks && !gpurhh_resolve(TEXTOID, -1, op->inputcollid, how, problem))
		return false;
	if (!blanks && !gpurhh_resolve_type(operand, how, problem))
		return false;
	/* values are compared by the operator's collation, which need not be a column's */
	if (!blanks && gpurhh_is_string(how->encoding) &&
		!gpurhh_resolve(type, exprTypmod(operand), op->inputcollid, how, problem))
		return false;
	if (column != operand)
	{
		if (!gpurhh_resolve_type(column, &stored, problem))
			return false;
		if (blanks ? !gpurhh_is_string(stored.encoding) :
			stored.encoding != how->encoding || stored.parameter != how->parameter)
		{
			*problem = "is made of a column of another type";
			return false;
		}
	}
	if (blanks)
		how->encoding = GPU_ENC_UNPADDED;
	return true;
}

/* Feeds the numeric of the smaller scale with that of the other one; false: not possible. */
static bool
rescale(const OpExpr *op, GpuColumn how[2])
{
	int			digits[2];
	int			scale[2];
	int			narrow;
	int			exponent;

	for (int i = 0; i < 2; i++)
	{
		if (!gpurhh_decimal_type(list_nth(op->args, i), &digits[i], &scale[i]))
			return false;
	}
	narrow = scale[0] < scale[1] ? 0 : 1;
	exponent = scale[1 - narrow] - scale[narrow];
	if (exponent == 0)
		return true;
	if (digits[narrow] + exponent > GPURHH_DECIMAL_DIGITS)
		return false;
	how[narrow].encoding = GPU_ENC_RESCALED;
	how[narrow].parameter = GPURHH_RESCALED_PARAMETER(scale[narrow], exponent);
	return true;
}

/* Makes two columns that are of different encodings alike; false: they cannot be. */
static bool
make_alike(const OpExpr *op, GpuColumn how[2])
{
	if (how[0].encoding == how[1].encoding)
		return how[0].parameter == how[1].parameter ||
			(how[0].encoding == GPU_ENC_DECIMAL && rescale(op, how));
	for (int i = 0; i < 2; i++)
	{
		GpuColumn  *narrow = &how[i];
		const GpuColumn *wide = &how[1 - i];

		/* the keys of both are those of their characters */
		if (narrow->encoding == GPU_ENC_NAME && wide->encoding == GPU_ENC_STRING)
			return true;
		for (int w = 0; w < lengthof(widenings); w++)
		{
			if (widenings[w].narrow == narrow->encoding && widenings[w].wide == wide->encoding)
			{
				narrow->encoding = widenings[w].widened;
				return true;
			}
		}
	}
	return false;
}

static char *
type_of(Node *operand)
{
	return format_type_with_typemod(exprType(operand), exprTypmod(operand));
}

/*
 * Finds how the operands of an operator are fed if it is true exactly where their bytes are
 * equal; both are columns, which may pass for other types.  Returns false if there is no way;
 * then *problem says why, to follow "a key of a join".
 */
bool
gpurhh_resolve_equality(const OpExpr *op, GpuColumn how[2], const char **problem)
{
	for (int i = 0; i < 2; i++)
	{
		Node	   *operand = list_nth(op->args, i);
		const char *why;

		if (!resolve_operand(op, operand, &how[i], &why))
		{
			*problem = psprintf("has type %s, which %s", type_of(operand), why);
			return false;
		}
	}
	if (!is_equality(op))
		*problem = "is compared by an operator that is not PostgreSQL's own";
	else if (!make_alike(op, how))
		*problem = psprintf("has types %s and %s, which are not compared by their bytes",
							type_of(linitial(op->args)), type_of(lsecond(op->args)));
	else
		return true;
	return false;
}
