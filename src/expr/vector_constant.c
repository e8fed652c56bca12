/*-------------------------------------------------------------------------
 *
 * vector_constant.c
 *		Constants and parameters of vector expressions.
 *
 * A constant is a vector of max_rows equal values.  A parameter is one, too, and is
 * read when the first active row needs it.  The memory of both is in the expression's
 * constants_context until gpurhh_vector_reset() resets that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/uuid.h"

#include "expr/vector.h"

/* To be called when parameters may have changed: they are read again. */
void
gpurhh_vector_reset(VectorExpr *expr)
{
	ListCell   *lc;

	foreach(lc, expr->constants)
	{
		VectorNode *node = lfirst(lc);

		node->known = false;
		node->items = NULL;
		node->sorted = NULL;
	}
	MemoryContextReset(expr->constants_context);
}

static int64
datum_to_int64(VectorType type, Datum value)
{
	switch (type)
	{
		case VECTOR_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case VECTOR_INT2:
			return DatumGetInt16(value);
		case VECTOR_INT4:
			return DatumGetInt32(value);
		case VECTOR_OID:
			return DatumGetObjectId(value);
		default:
			return DatumGetInt64(value);
	}
}

/* Stores a value of the type from as element i of a vector of the type to. */
void
gpurhh_vector_store_datum(VectorType from, VectorType to, Datum value,
						  void *values, int i)
{
	switch (to)
	{
		case VECTOR_ANY:
			break;
		case VECTOR_BOOL:
			((uint8 *) values)[i] = (uint8) datum_to_int64(from, value);
			break;
		case VECTOR_INT2:
			((int16 *) values)[i] = (int16) datum_to_int64(from, value);
			break;
		case VECTOR_INT4:
			((int32 *) values)[i] = (int32) datum_to_int64(from, value);
			break;
		case VECTOR_OID:
			((uint32 *) values)[i] = (uint32) datum_to_int64(from, value);
			break;
		case VECTOR_INT8:
			((int64 *) values)[i] = datum_to_int64(from, value);
			break;
		case VECTOR_FLOAT4:
			((float4 *) values)[i] = DatumGetFloat4(value);
			break;
		case VECTOR_FLOAT8:
			((float8 *) values)[i] = from == VECTOR_FLOAT4 ?
				(float8) DatumGetFloat4(value) : DatumGetFloat8(value);
			break;
		case VECTOR_UUID:
			memcpy((char *) values + (Size) i * UUID_LEN,
				   DatumGetUUIDP(value)->data, UUID_LEN);
			break;
		case VECTOR_STRING:
		case VECTOR_BPCHAR:
			((struct varlena **) values)[i] = (struct varlena *) DatumGetPointer(value);
			break;
		case VECTOR_DECIMAL:
		case VECTOR_DECIMAL128:
			Assert(false);
			break;
	}
}

/*
 * Stores the decimal of a constant or parameter, with the scale of the node, in all
 * elements.  Returns false if the value does not have the scale that its type
 * declares, or has more digits than the node's type holds.
 */
static bool
store_decimal(VectorNode *node, Datum value, int n)
{
	int128		decimal;

	if (!gpurhh_decimal_read_as((const char *) PG_DETOAST_DATUM_PACKED(value),
								node->given_scale, node->scale, &decimal))
		return false;
	if (node->type == VECTOR_DECIMAL && decimal != GPURHH_DECIMAL128_NAN &&
		(decimal != (int64) decimal || decimal == GPURHH_DECIMAL_NAN))
		return false;
	for (int i = 0; i < n; i++)
	{
		if (node->type == VECTOR_DECIMAL128)
			((int128 *) node->values)[i] = decimal;
		else
			((int64 *) node->values)[i] = gpurhh_decimal_narrow(decimal);
	}
	return true;
}

/*
 * Finds the value of a Const or Param.  This does without an ExprState, because the
 * first one that is evaluated makes JIT compile all expressions of the query.
 * Returns false if core has to evaluate the parameter first, to run the InitPlan that
 * computes it or to raise an error.
 */
static bool
constant_value(ExprContext *econtext, Node *constant, Datum *value,
			   bool *is_null)
{
	Param	   *param = (Param *) constant;

	if (IsA(constant, Const))
	{
		*value = ((Const *) constant)->constvalue;
		*is_null = ((Const *) constant)->constisnull;
		return true;
	}
	if (param->paramkind == PARAM_EXEC)
	{
		ParamExecData *data = &econtext->ecxt_param_exec_vals[param->paramid];

		if (data->execPlan != NULL)
			return false;
		*value = data->value;
		*is_null = data->isnull;
		return true;
	}
	else
	{
		ParamListInfo list = econtext->ecxt_param_list_info;
		ParamExternData *data;
		ParamExternData workspace;

		if (list == NULL || param->paramid <= 0 ||
			param->paramid > list->numParams)
			return false;
		if (list->paramFetch != NULL)
			data = list->paramFetch(list, param->paramid, false, &workspace);
		else
			data = &list->params[param->paramid - 1];
		if (data->ptype != param->paramtype)
			return false;
		*value = data->value;
		*is_null = data->isnull;
		return true;
	}
}

/* Reads the constant or parameter of a node.  Returns false as constant_value() does. */
bool
gpurhh_vector_read_constant(VectorExpr *expr, VectorNode *node)
{
	MemoryContext old;
	Datum		value;

	if (node->known)
		return true;
	if (!constant_value(expr->econtext, node->constant, &value, &node->is_null))
		return false;

	old = MemoryContextSwitchTo(expr->constants_context);
	if (node->op == VECTOR_CONSTANT)
	{
		/* a copy, as the owner of the value may free it */
		if (is_string(node->type) && !node->is_null)
			value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
		if (!node->is_null && is_decimal(node->type) &&
			!store_decimal(node, value, expr->max_rows))
		{
			MemoryContextSwitchTo(old);
			return false;
		}
		for (int i = 0; i < expr->max_rows && !node->is_null &&
			 !is_decimal(node->type);
			 i++)
			gpurhh_vector_store_datum(node->given_type, node->type, value,
									  node->values, i);
		memset(node->nulls, node->is_null ? 1 : 0, expr->max_rows);
		node->result.nulls = node->is_null ? node->nulls : NULL;
	}
	else if (!node->is_null)
		gpurhh_vector_read_items(node, value);
	MemoryContextSwitchTo(old);
	node->known = true;
	return true;
}
