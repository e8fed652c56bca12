/*-------------------------------------------------------------------------
 *
 * types.c
 *		The types that are supported: one row for each; and the encodings that
 *		the rows name.
 *
 * A type that has a row can be a grouping column, because two of its values are
 * equal exactly if its encoding gives them the same bytes.  It can also be a column
 * that the grouping columns determine.  Two rules add to the rows: a domain is
 * treated as the type that it is a domain over, and all enums are treated alike.
 * docs/supported.md lists the same rows and rules.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "types/types.h"

const GpuEncodingInfo gpurhh_encodings[] = {
	[GPU_ENC_NONE] = {0, DERIVED_NOT, VECTOR_ANY},
	[GPU_ENC_BOOL] = {1, DERIVED_TRUTH, VECTOR_BOOL},
	[GPU_ENC_CHAR] = {1, DERIVED_VALUE, VECTOR_ANY},
	[GPU_ENC_INT2] = {2, DERIVED_VALUE, VECTOR_INT2},
	[GPU_ENC_INT4] = {4, DERIVED_VALUE, VECTOR_INT4},
	[GPU_ENC_OID] = {4, DERIVED_VALUE, VECTOR_OID},
	[GPU_ENC_INT8] = {8, DERIVED_VALUE, VECTOR_INT8},
	[GPU_ENC_FLOAT4] = {4, DERIVED_VALUE, VECTOR_FLOAT4, ORDER_OF_EQUALITY},
	[GPU_ENC_FLOAT8] = {8, DERIVED_VALUE, VECTOR_FLOAT8, ORDER_OF_EQUALITY},
	[GPU_ENC_FLOAT4_RAW] = {4, DERIVED_VALUE, VECTOR_FLOAT4},
	[GPU_ENC_FLOAT8_RAW] = {8, DERIVED_VALUE, VECTOR_FLOAT8},
	[GPU_ENC_FLOAT4_ORDER] = {4, DERIVED_VALUE, VECTOR_FLOAT4, ORDER_OF_FLOATS},
	[GPU_ENC_FLOAT8_ORDER] = {8, DERIVED_VALUE, VECTOR_FLOAT8, ORDER_OF_FLOATS},
	[GPU_ENC_OID_ORDER] = {4, DERIVED_VALUE, VECTOR_OID, ORDER_OF_UNSIGNED},
	[GPU_ENC_UINT8_ORDER] = {8, DERIVED_VALUE, VECTOR_INT8, ORDER_OF_UNSIGNED},
	[GPU_ENC_UUID] = {16, DERIVED_VALUE, VECTOR_UUID, .by_reference = true},
	[GPU_ENC_STRING] = {GPURHH_STRING_BYTES, DERIVED_STRING, VECTOR_STRING},
	[GPU_ENC_BPCHAR] = {GPURHH_STRING_BYTES, DERIVED_BPCHAR, VECTOR_BPCHAR, .by_reference = true},
	[GPU_ENC_NAME] = {GPURHH_STRING_BYTES, DERIVED_NAME, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_LEAST_STRING] = {GPURHH_STRING_BYTES, DERIVED_STRING, VECTOR_STRING, .role = ROLE_LEAST},
	[GPU_ENC_LEAST_BPCHAR] = {GPURHH_STRING_BYTES, DERIVED_BPCHAR, VECTOR_BPCHAR, .role = ROLE_LEAST},
	[GPU_ENC_GREATEST_STRING] = {GPURHH_STRING_BYTES, DERIVED_STRING, VECTOR_STRING, .role = ROLE_GREATEST},
	[GPU_ENC_GREATEST_BPCHAR] = {GPURHH_STRING_BYTES, DERIVED_BPCHAR, VECTOR_BPCHAR, .role = ROLE_GREATEST},
	[GPU_ENC_DECIMAL] = {8, DERIVED_LIMB, VECTOR_DECIMAL, .limb = 0, .by_reference = true},
	[GPU_ENC_LIMB1] = {8, DERIVED_LIMB, VECTOR_ANY, .limb = 1},
	[GPU_ENC_LIMB2] = {8, DERIVED_LIMB, VECTOR_ANY, .limb = 2},
	[GPU_ENC_BYTES] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_TIMETZ] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_TID] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_YEARS] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_INTERVAL_TIME] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_INTERVAL_DAYS] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_INTERVAL_MONTHS] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_INTERVAL_INFINITE] = {8, DERIVED_WORD, VECTOR_ANY, .by_reference = true},
	[GPU_ENC_FILTER] = {1, DERIVED_TRUTH, VECTOR_BOOL, .role = ROLE_FILTER},
	[GPU_ENC_BOTH] = {1, DERIVED_BOTH, VECTOR_ANY, .role = ROLE_FILTER},
	[GPU_ENC_PRODUCT] = {sizeof(Twice), DERIVED_PRODUCT, VECTOR_ANY},
	[GPU_ENC_INT2_AS_INT4] = {4, DERIVED_WIDENED, VECTOR_INT2},
	[GPU_ENC_INT2_AS_INT8] = {8, DERIVED_WIDENED, VECTOR_INT2},
	[GPU_ENC_INT4_AS_INT8] = {8, DERIVED_WIDENED, VECTOR_INT4},
	[GPU_ENC_FLOAT4_AS_FLOAT8] = {8, DERIVED_WIDENED, VECTOR_FLOAT4, ORDER_OF_EQUALITY},
	[GPU_ENC_RESCALED] = {8, DERIVED_RESCALED, VECTOR_DECIMAL},
	[GPU_ENC_UNPADDED] = {GPURHH_STRING_BYTES, DERIVED_UNPADDED, VECTOR_BPCHAR},
};

typedef struct GpuType
{
	Oid			type;
	GpuEncoding encoding;
	int			parameter;
} GpuType;

static const GpuType types[] = {
	{BOOLOID, GPU_ENC_BOOL},
	{CHAROID, GPU_ENC_CHAR},
	{INT2OID, GPU_ENC_INT2},
	{INT4OID, GPU_ENC_INT4},
	{INT8OID, GPU_ENC_INT8},
	{OIDOID, GPU_ENC_OID},
	{REGPROCOID, GPU_ENC_OID},
	{REGPROCEDUREOID, GPU_ENC_OID},
	{REGCLASSOID, GPU_ENC_OID},
	{REGTYPEOID, GPU_ENC_OID},
	{REGROLEOID, GPU_ENC_OID},
	{REGNAMESPACEOID, GPU_ENC_OID},
	{XIDOID, GPU_ENC_OID},
	{CIDOID, GPU_ENC_OID},
	{XID8OID, GPU_ENC_INT8},
	{PG_LSNOID, GPU_ENC_INT8},
	{TIDOID, GPU_ENC_TID},
	{MONEYOID, GPU_ENC_INT8},
	{DATEOID, GPU_ENC_INT4},
	{TIMEOID, GPU_ENC_INT8},
	{TIMETZOID, GPU_ENC_TIMETZ},
	{TIMESTAMPOID, GPU_ENC_INT8},
	{TIMESTAMPTZOID, GPU_ENC_INT8},
	{FLOAT4OID, GPU_ENC_FLOAT4},
	{FLOAT8OID, GPU_ENC_FLOAT8},
	{UUIDOID, GPU_ENC_UUID},
	{TEXTOID, GPU_ENC_STRING},
	{VARCHAROID, GPU_ENC_STRING},
	{BPCHAROID, GPU_ENC_BPCHAR},
	{BYTEAOID, GPU_ENC_STRING},
	{NAMEOID, GPU_ENC_NAME},
	{MACADDROID, GPU_ENC_BYTES, 6},
	{MACADDR8OID, GPU_ENC_BYTES, 8},
};

/* Says why a type is not in the table.  The text follows "has type X, which". */
static const char *
type_problem(Oid type)
{
	switch (type)
	{
		case INTERVALOID:
			return "has equal values with different bytes";
		case JSONBOID:
			return "is compared by value, not by bytes";
		default:
			break;
	}
	if (get_element_type(type) != InvalidOid)
		return "is an array";
	if (get_typlen(type) < 0)
		return "has no fixed width";
	return "is not supported yet";
}

/*
 * Checks what types of strings need besides their row.  Their collation must make
 * strings equal only if their bytes are equal.  bpchar must have a declared length,
 * because without one equal values may differ in their trailing blanks.
 *
 * If a collatable type has no collation, the value comes from columns whose
 * collations conflict.  Core raises an error when it compares such values, so the
 * plan is left to core.
 */
static bool
resolve_string(Oid type, int32 typmod, Oid collation, GpuColumn *column,
			   const char **problem)
{
	if (!gpurhh_is_string(column->encoding))
		return true;
	if (!OidIsValid(collation) && type_is_collatable(type))
		*problem = "has no collation, for those it comes from conflict";
	else if (OidIsValid(collation) && !get_collation_isdeterministic(collation))
		*problem = "has a collation that is not deterministic";
	else if (column->encoding == GPU_ENC_BPCHAR && typmod < (int32) VARHDRSZ)
		*problem = "has equal values with different numbers of trailing blanks";
	else
	{
		if (column->encoding == GPU_ENC_BPCHAR)
			column->parameter = typmod - VARHDRSZ;
		return true;
	}
	column->encoding = GPU_ENC_NONE;
	return false;
}

/*
 * Does a collation order strings by their bytes?  Core has a function that tells
 * this, but its header includes headers of ICU, which need not be installed.
 */
bool
gpurhh_compares_bytes(Oid collation)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple	tuple = SearchSysCache1(cache,
										ObjectIdGetDatum(is_default ? MyDatabaseId : collation));
	char		provider;
	Datum		name;
	bool		isnull;
	bool		result = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	if (is_default)
	{
		provider = ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider;
		name = SysCacheGetAttr(cache, tuple, Anum_pg_database_datcollate, &isnull);
	}
	else
	{
		provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
		name = SysCacheGetAttr(cache, tuple, Anum_pg_collation_collcollate, &isnull);
	}
	if (provider == COLLPROVIDER_LIBC && !isnull)
	{
		const char *locale = TextDatumGetCString(name);

		result = strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
	}
	/* PostgreSQL's own, from 17 on: COLLPROVIDER_BUILTIN */
	else if (provider == 'b')
		result = true;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The type that values of a type are of, and *typmod their modifier, which for a domain is its
 * own.  This is asked several times for each column of a query.  No type that PostgreSQL comes
 * with is a domain, if its number is one that it was given by hand.
 */
Oid
gpurhh_base_type(Oid type, int32 *typmod)
{
	return type < FirstGenbkiObjectId ? type : getBaseTypeAndTypmod(type, typmod);
}

/*
 * Finds the encoding in which values of a type travel, and its parameter.  For a
 * domain these are the ones of the type that it is a domain over, with the domain's
 * type modifier.  Returns false if the type has none; then *problem says why, to
 * follow "has type X, which".
 */
bool
gpurhh_resolve(Oid type, int32 typmod, Oid collation, GpuColumn *column,
			   const char **problem)
{
	type = gpurhh_base_type(type, &typmod);
	column->parameter = 0;
	for (int i = 0; i < lengthof(types); i++)
	{
		if (types[i].type == type)
		{
			column->encoding = types[i].encoding;
			column->parameter = types[i].parameter;
			return resolve_string(type, typmod, collation, column, problem);
		}
	}
	if (get_typtype(type) == TYPTYPE_ENUM)
	{
		column->encoding = GPU_ENC_OID;
		return true;
	}
	column->encoding = GPU_ENC_NONE;
	*problem = type_problem(type);
	return false;
}

/*
 * Finds the scale of a numeric expression and the number of limbs that its values
 * need.  A value may still have another scale than the one that is found here; this
 * is noticed when the value is fed (exec/odd_arguments.c).
 */
bool
gpurhh_resolve_limbs(Node *expr, GpuColumn *column, const char **problem)
{
	int			digits;
	int			scale;

	column->encoding = GPU_ENC_NONE;
	if (!gpurhh_decimal_type(expr, &digits, &scale))
	{
		*problem = "has no declared scale";
		return false;
	}
	if (gpurhh_decimal_limbs(digits) == 0)
	{
		*problem = psprintf("has up to %d digits", digits);
		return false;
	}
	column->encoding = GPU_ENC_DECIMAL;
	column->parameter =
		GPURHH_DECIMAL_PARAMETER(scale, gpurhh_decimal_limbs(digits));
	return true;
}

/*
 * The columns, at most GPURHH_MAX_LIMBS, that a numeric of so many limbs is fed in; returns how
 * many.  Anything else is one column.
 */
int
gpurhh_limb_columns(GpuColumn how, GpuColumn *columns)
{
	static const GpuEncoding limbs[] = {GPU_ENC_DECIMAL, GPU_ENC_LIMB1, GPU_ENC_LIMB2};
	int			n = how.encoding == GPU_ENC_DECIMAL ? GPURHH_DECIMAL_LIMBS(how.parameter) : 1;

	for (int i = 0; i < n; i++)
	{
		columns[i] = how;
		if (n > 1)
			columns[i].encoding = limbs[i];
	}
	return n;
}

/*
 * Does what gpurhh_resolve() does, for the values of an expression.  More may be
 * known of these than their type: the digits of a numeric, for example.
 */
bool
gpurhh_resolve_type(Node *expr, GpuColumn *column, const char **problem)
{
	int32		typmod = -1;

	if (gpurhh_is_extract_years(expr))
	{
		column->encoding = GPU_ENC_YEARS;
		column->parameter = 0;
		return true;
	}
	if (gpurhh_base_type(exprType(expr), &typmod) == NUMERICOID)
	{
		if (!gpurhh_resolve_limbs(expr, column, problem))
			return false;
		if (GPURHH_DECIMAL_LIMBS(column->parameter) == 1)
			return true;
		column->encoding = GPU_ENC_NONE;
		*problem = psprintf("has more than %d digits", GPURHH_DECIMAL_DIGITS);
		return false;
	}
	return gpurhh_resolve(exprType(expr), exprTypmod(expr), exprCollation(expr),
						  column, problem);
}

/*
 * How a column is fed that operations take, of whatever limbs, or of which they are only asked
 * where it is NULL; false: they do not take its type.
 */
bool
gpurhh_resolve_operand(Node *expr, bool only_null, GpuColumn *column)
{
	const char *problem;

	if (gpurhh_resolve_limbs(expr, column, &problem))
		return true;
	if (!gpurhh_resolve_type(expr, column, &problem))
		return false;
	column->encoding = gpurhh_as_stored(column->encoding);
	return (gpurhh_encodings[column->encoding].vector != VECTOR_ANY || only_null) &&
		!gpurhh_is_string(column->encoding);
}

/*
 * Finds an encoding in which values of a type travel and come back with the very bytes
 * that they had.  Nothing else can be done with them: values that are equal need not have
 * the same bytes.  Returns false if there is none; then *problem says why, to follow "has
 * type X, which".
 */
bool
gpurhh_resolve_bytes(Oid type, GpuColumn *column, const char **problem)
{
	int16		length;
	bool		by_value;
	char		align;
	int32		typmod = -1;

	type = gpurhh_base_type(type, &typmod);
	get_typlenbyvalalign(type, &length, &by_value, &align);
	column->parameter = 0;
	column->encoding = GPU_ENC_NONE;
	if (length == -1 && align != TYPALIGN_DOUBLE)
		column->encoding = GPU_ENC_STRING;
	else if (by_value && length == 1)
		column->encoding = GPU_ENC_CHAR;
	else if (by_value && length == 2)
		column->encoding = GPU_ENC_INT2;
	else if (by_value && length == 4)
		column->encoding = GPU_ENC_INT4;
	else if (by_value && length == 8)
		column->encoding = GPU_ENC_INT8;
	else if (!by_value && length == 16)
		column->encoding = GPU_ENC_UUID;
	else if (!by_value && length > 0 && length <= 8)
	{
		column->encoding = GPU_ENC_BYTES;
		column->parameter = length;
	}
	else if (type == NAMEOID)
		column->encoding = GPU_ENC_NAME;
	else if (type == TIMETZOID)
		column->encoding = GPU_ENC_TIMETZ;
	if (column->encoding != GPU_ENC_NONE)
		return true;
	*problem = length < 0 ? "may need to be aligned to 8 bytes" : "is too wide";
	return false;
}
