/*-------------------------------------------------------------------------
 *
 * types.c
 *		What is supported: one row for each type and each aggregate.
 *
 * A type here can be a grouping column (its equality is equality of the bytes
 * that its encoding gives) and a column that the grouping columns determine.
 * docs/supported.md lists the same rows.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

const GpuEncodingInfo gpurhh_encodings[] = {
	[GPU_ENC_BOOL] = {1, VECTOR_BOOL},
	[GPU_ENC_INT2] = {2, VECTOR_INT2},
	[GPU_ENC_INT4] = {4, VECTOR_INT4},
	[GPU_ENC_INT8] = {8, VECTOR_INT8},
	[GPU_ENC_FLOAT4] = {4, VECTOR_FLOAT4},
	[GPU_ENC_FLOAT8] = {8, VECTOR_FLOAT8},
	[GPU_ENC_UUID] = {16, VECTOR_UUID},
	[GPU_ENC_FILTER] = {1, VECTOR_BOOL},
};

static const GpuType types[] = {
	{BOOLOID, GPU_ENC_BOOL},
	{INT2OID, GPU_ENC_INT2},
	{INT4OID, GPU_ENC_INT4},
	{INT8OID, GPU_ENC_INT8},
	{OIDOID, GPU_ENC_INT4},
	{DATEOID, GPU_ENC_INT4},
	{TIMEOID, GPU_ENC_INT8},
	{TIMESTAMPOID, GPU_ENC_INT8},
	{TIMESTAMPTZOID, GPU_ENC_INT8},
	{FLOAT4OID, GPU_ENC_FLOAT4},
	{FLOAT8OID, GPU_ENC_FLOAT8},
	{UUIDOID, GPU_ENC_UUID},
};

static const GpuAggregate aggregates[] = {
	{F_COUNT_, InvalidOid, RHH_COUNT, GPU_FINAL_COUNT},
	{F_COUNT_ANY, InvalidOid, RHH_COUNT, GPU_FINAL_COUNT},
	{F_SUM_INT2, INT2OID, RHH_SUM_I64, GPU_FINAL_SUM_INT8},
	{F_SUM_INT4, INT4OID, RHH_SUM_I64, GPU_FINAL_SUM_INT8},
	{F_SUM_INT8, INT8OID, RHH_SUM_I128, GPU_FINAL_SUM_NUMERIC},
	{F_AVG_INT2, INT2OID, RHH_SUM_I64, GPU_FINAL_AVG_INT8},
	{F_AVG_INT4, INT4OID, RHH_SUM_I64, GPU_FINAL_AVG_INT8},
	{F_AVG_INT8, INT8OID, RHH_SUM_I128, GPU_FINAL_AVG_NUMERIC},
	{F_MIN_INT2, INT2OID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MIN_INT4, INT4OID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MIN_INT8, INT8OID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MIN_DATE, DATEOID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MIN_TIME, TIMEOID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MIN_TIMESTAMP, TIMESTAMPOID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MIN_TIMESTAMPTZ, TIMESTAMPTZOID, RHH_MIN_I64, GPU_FINAL_MIN},
	{F_MAX_INT2, INT2OID, RHH_MAX_I64, GPU_FINAL_MAX},
	{F_MAX_INT4, INT4OID, RHH_MAX_I64, GPU_FINAL_MAX},
	{F_MAX_INT8, INT8OID, RHH_MAX_I64, GPU_FINAL_MAX},
	{F_MAX_DATE, DATEOID, RHH_MAX_I64, GPU_FINAL_MAX},
	{F_MAX_TIME, TIMEOID, RHH_MAX_I64, GPU_FINAL_MAX},
	{F_MAX_TIMESTAMP, TIMESTAMPOID, RHH_MAX_I64, GPU_FINAL_MAX},
	{F_MAX_TIMESTAMPTZ, TIMESTAMPTZOID, RHH_MAX_I64, GPU_FINAL_MAX},
};

/* NULL where the type is not supported. */
const GpuType *
gpurhh_find_type(Oid type)
{
	for (int i = 0; i < lengthof(types); i++)
	{
		if (types[i].type == type)
			return &types[i];
	}
	return NULL;
}

/* NULL where the aggregate is not supported. */
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

/*
 * Why a type that is not in the table cannot be a grouping column, to follow
 * "has type X, which ...".
 */
const char *
gpurhh_key_type_problem(Oid type)
{
	switch (type)
	{
		case NUMERICOID:
			return "is compared by value, not by bytes";
		case INTERVALOID:
			return "has equal values with different bytes";
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case BYTEAOID:
		case NAMEOID:
			return "has no fixed width";
		case JSONBOID:
			return "is compared by value, not by bytes";
		default:
			break;
	}
	if (get_element_type(type) != InvalidOid)
		return "is an array";
	if (get_typtype(type) == TYPTYPE_DOMAIN)
		return "is a domain";
	if (get_typtype(type) == TYPTYPE_ENUM)
		return "is an enum";
	if (get_typlen(type) < 0)
		return "has no fixed width";
	return "is not supported yet";
}
