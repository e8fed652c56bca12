/*-------------------------------------------------------------------------
 *
 * join_program.c
 *		Columns that a device computes of the joins' output, and rows that it drops.
 *
 * An expression of columns of several sides, or of the side of an outer join that may
 * have no row, can only be computed after the joins.  So can a condition that is more than
 * the equality of keys; rows that do not meet it are dropped.  The device does that, by a program
 * (gpu/rhh_program.h).  What the program reads are its leaves: columns of the sides, and
 * conditions on strings that are computed for one side.  They become columns of the map, behind those that the node has of itself and of no other use
 * for it.
 *
 * For a row that is bad, core has the last word.  Such a row comes back with its leaves,
 * core's expressions are evaluated over these here, and their results, if they do not raise
 * an error, are written to the columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "exec/join_input.h"

/* Puts the leaves' places in a slot in the place of what they are. */
static Node *
leaf_mutator(Node *node, void *arg)
{
	JoinProgram *program = arg;

	if (node == NULL)
		return NULL;
	for (int i = 0; i < program->n_leaves; i++)
	{
		if (equal(node, program->leaves[i].expr))
			return (Node *) makeVar(OUTER_VAR, i + 1, exprType(node), exprTypmod(node),
									exprCollation(node), 0);
	}
	return expression_tree_mutator(node, leaf_mutator, arg);
}

/*
 * Adds a leaf, which is column number column of the map and is fed so; returns false if
 * there are too many.
 */
bool
gpurhh_join_add_leaf(JoinProgram *program, Node *expr, GpuColumn how, bool only_null,
					 int column)
{
	if (program->n_leaves == lengthof(program->leaves))
		return false;
	program->leaves[program->n_leaves++] = (JoinLeaf){
		.expr = copyObject(expr), .how = how, .only_null = only_null, .column = column
	};
	return true;
}

/*
 * Has the program make the map's column of this number of a compiled expression, whose
 * columns are leaves; the column is fed so, were it fed.  False: no device can do it, and
 * *why says why.
 */
bool
gpurhh_join_add_computed(JoinProgram *program, Expr *expr, VectorExpr *compiled,
						 GpuColumn how, int column, const char **why)
{
	JoinComputed *computed = NULL;
	uint8		number;
	VectorType	type;

	if (!gpurhh_vector_program(compiled, &program->program, false, &number, &type, why) ||
		!gpurhh_program_store(&program->program, number, type, how, column, why))
		return false;
	for (int i = 0; i < program->n_computed; i++)
	{
		if (equal(program->computed[i].expr, expr))
			computed = &program->computed[i];
	}
	if (computed == NULL)
	{
		computed = &program->computed[program->n_computed++];
		computed->expr = copyObject(expr);
	}
	computed->how[computed->n_columns] = how;
	computed->columns[computed->n_columns++] = column;
	return true;
}

/*
 * Has the program drop rows that do not meet these conditions, which were compiled
 * together.  To be called before columns are added, so that all that the filter needs is
 * computed first.
 */
bool
gpurhh_join_add_filter(JoinProgram *program, List *conditions, VectorExpr *compiled,
					   const char **why)
{
	uint8		number;
	VectorType	type;

	if (!gpurhh_vector_program(compiled, &program->program, false, &number, &type, why))
		return false;
	Assert(type == VECTOR_BOOL);
	program->program.has_filter = true;
	program->program.filter = number;
	program->conditions = conditions;
	return true;
}

/*
 * Has the program make the map's column of this number of two others, which are there or have
 * been added.  False: no device can do it, and *why says why.
 */
bool
gpurhh_join_add_pair(JoinProgram *program, GpuColumn how, int column, const char **why)
{
	if (!gpurhh_program_pair(&program->program, how, column, why))
		return false;
	program->pairs[program->n_pairs++] = (JoinPair){.how = how, .column = column};
	return true;
}

bool
gpurhh_join_has_program(const JoinProgram *program)
{
	return program->n_computed > 0 || program->n_pairs > 0 || program->program.has_filter;
}

/* The program is complete: prepares what a bad row needs, in the query's context. */
void
gpurhh_join_init_program(JoinProgram *program, EState *estate)
{
	TupleDesc	desc = CreateTemplateTupleDesc(program->n_leaves);

	for (int i = 0; i < program->n_leaves; i++)
	{
		Node	   *expr = program->leaves[i].expr;

		TupleDescInitEntry(desc, i + 1, NULL, exprType(expr), exprTypmod(expr), 0);
		TupleDescInitEntryCollation(desc, i + 1, exprCollation(expr));
	}
	program->slot = ExecInitExtraTupleSlot(estate, desc, &TTSOpsVirtual);
	program->econtext = CreateExprContext(estate);
	if (program->conditions != NIL)
		program->filter =
			ExecInitQual((List *) leaf_mutator((Node *) program->conditions, program), NULL);
	for (int i = 0; i < program->n_computed; i++)
	{
		JoinComputed *computed = &program->computed[i];

		computed->state =
			ExecInitExpr((Expr *) leaf_mutator((Node *) computed->expr, program), NULL);
	}
}

/* The numeric that a row has in columns of limbs. */
static Datum
value_of_limbs(const JoinLeaf *leaf, int n_limbs, const rhh_batch *batch, uint32 row)
{
	int128		limbs[GPURHH_MAX_LIMBS];

	for (int i = 0; i < n_limbs; i++)
		limbs[i] = rhh_program_load(batch->base + batch->values_offset[leaf->column + i],
									sizeof(int64), row);
	if (limbs[0] == GPURHH_DECIMAL_NAN)
		return gpurhh_decimal_nan();
	return gpurhh_decimal_sum(limbs, n_limbs, GPURHH_DECIMAL_SCALE(leaf->how.parameter));
}

/* The value of a leaf in a row of a batch. */
static Datum
leaf_value(const JoinLeaf *leaf, const rhh_batch *batch, uint32 row)
{
	const GpuEncodingInfo *info = &gpurhh_encodings[leaf->how.encoding];
	const uint8 *values = batch->base + batch->values_offset[leaf->column];
	int64		value;

	/* of others it is only asked whether they are NULL */
	if (leaf->only_null || (info->bytes > sizeof(int64) && info->vector != VECTOR_UUID))
		return (Datum) 0;
	if (info->vector == VECTOR_UUID)
		return UUIDPGetDatum((const pg_uuid_t *) (values + (Size) row * UUID_LEN));
	value = rhh_program_load(values, info->bytes, row);
	switch (info->vector)
	{
		case VECTOR_BOOL:
			return BoolGetDatum(value != 0);
		case VECTOR_OID:
			return ObjectIdGetDatum((Oid) value);
		case VECTOR_INT2:
			return Int16GetDatum(value);
		case VECTOR_INT4:
			return Int32GetDatum(value);
		case VECTOR_INT8:
			return Int64GetDatum(value);
		case VECTOR_FLOAT4:
			return Float4GetDatum(rhh_as_float(value));
		case VECTOR_FLOAT8:
			return Float8GetDatum(rhh_as_double(value));
		case VECTOR_DECIMAL:
			return value_of_limbs(leaf, GPURHH_DECIMAL_LIMBS(leaf->how.parameter), batch, row);
		default:
			return (Datum) 0;	/* the same */
	}
}

/* Writes an expression's value to its columns. */
static void
store_value(const JoinComputed *computed, Datum value, bool is_null,
			const rhh_batch *batch, uint32 row)
{
	int64		limbs[GPURHH_MAX_LIMBS] = {0};
	GpuColumn	first = computed->how[0];
	bool		decimal = gpurhh_encodings[first.encoding].derivation == DERIVED_LIMB;

	/* no operation that devices know makes a numeric of another scale, or a longer one */
	if (decimal && !is_null &&
		!gpurhh_decimal_read(DatumGetPointer(value), GPURHH_DECIMAL_SCALE(first.parameter),
							 GPURHH_DECIMAL_LIMBS(first.parameter), limbs))
		elog(ERROR, "a computed numeric is not as its expression declares");
	for (int i = 0; i < computed->n_columns; i++)
	{
		const GpuEncodingInfo *info = &gpurhh_encodings[computed->how[i].encoding];
		int			c = computed->columns[i];
		uint8	   *nulls = batch->base + batch->nulls_offset[c];
		int64		stored = 0;
		int64		high = 0;	/* of 16 bytes the second half */

		if (is_null && info->role != ROLE_FILTER)
			nulls[row / 8] |= 1 << (row % 8);
		else
		{
			nulls[row / 8] &= ~(1 << (row % 8));
			switch (info->vector)
			{
				case VECTOR_BOOL:
					stored = !is_null && DatumGetBool(value);
					break;
				case VECTOR_OID:
					stored = DatumGetObjectId(value);
					break;
				case VECTOR_INT2:
					stored = DatumGetInt16(value);
					break;
				case VECTOR_INT4:
					stored = DatumGetInt32(value);
					break;
				case VECTOR_INT8:
					stored = DatumGetInt64(value);
					break;
				case VECTOR_FLOAT4:
					stored = rhh_of_float(DatumGetFloat4(value));
					break;
				case VECTOR_FLOAT8:
					stored = rhh_as_bits(DatumGetFloat8(value));
					break;
				case VECTOR_UUID:
					memcpy(&stored, DatumGetUUIDP(value)->data, sizeof(stored));
					memcpy(&high, DatumGetUUIDP(value)->data + sizeof(stored), sizeof(high));
					break;
				default:
					stored = limbs[info->limb];
					break;
			}
		}
		if (info->bytes == sizeof(int32))
		{
			int32		narrow = (int32) stored;

			gpurhh_order_4_bytes(info->order, &narrow, 1);
			stored = narrow;
		}
		else if (info->bytes == sizeof(int64))
			gpurhh_order_8_bytes(info->order, &stored, 1);
		rhh_program_store(batch->base + batch->values_offset[c], info->bytes, row, stored, high);
	}
}

/* Writes a column that is made of two others, once a row has these. */
static void
store_pair(const JoinPair *pair, const rhh_batch *batch, uint32 row)
{
	const int	of[2] = {pair->how.parameter >> 8, pair->how.parameter & 0xff};
	uint8	   *to = batch->base + batch->values_offset[pair->column];
	uint8	   *nulls = batch->base + batch->nulls_offset[pair->column];
	int64		values[2];
	bool		both = true;
	rhh_int128	product;

	for (int i = 0; i < 2; i++)
	{
		both &= !((batch->base + batch->nulls_offset[of[i]])[row / 8] >> (row % 8) & 1);
		values[i] = rhh_program_load(batch->base + batch->values_offset[of[i]], sizeof(float8), row);
	}
	nulls[row / 8] &= ~(1 << (row % 8));
	if (gpurhh_encodings[pair->how.encoding].derivation == DERIVED_BOTH)
		rhh_program_store(to, 1, row, both, 0);
	else
	{
		(void) rhh_do_PRODUCT_FLOAT8(both ? values[0] : 0, both ? values[1] : 0, &product);
		rhh_program_store(to, sizeof(Twice), row, (int64) product, (int64) (product >> 64));
	}
}

/*
 * Computes the columns of a row for which the device could not; raises core's error if
 * that is an error.  The batch has all columns of the map.  False: the filter drops the row.
 */
static bool
compute(JoinProgram *program, const rhh_batch *batch, uint32 row)
{
	TupleTableSlot *slot = program->slot;
	ExprContext *econtext = program->econtext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		passes;

	ExecClearTuple(slot);
	for (int i = 0; i < program->n_leaves; i++)
	{
		const JoinLeaf *leaf = &program->leaves[i];
		const uint8 *nulls = batch->base + batch->nulls_offset[leaf->column];

		slot->tts_isnull[i] = (nulls[row / 8] >> (row % 8)) & 1;
		slot->tts_values[i] = slot->tts_isnull[i] ? (Datum) 0 : leaf_value(leaf, batch, row);
	}
	ExecStoreVirtualTuple(slot);
	econtext->ecxt_outertuple = slot;
	passes = program->filter == NULL || ExecQual(program->filter, econtext);
	for (int i = 0; passes && i < program->n_computed; i++)
	{
		const JoinComputed *computed = &program->computed[i];
		bool		is_null;
		Datum		value = ExecEvalExpr(computed->state, econtext, &is_null);

		store_value(computed, value, is_null, batch, row);
	}
	for (int i = 0; passes && i < program->n_pairs; i++)
		store_pair(&program->pairs[i], batch, row);
	MemoryContextSwitchTo(old);
	ResetExprContext(econtext);
	return passes;
}

/* Overwrites a row of a batch, whose columns all have bitmaps of NULLs, by another one. */
static void
move_row(const rhh_map_spec *spec, const rhh_batch *batch, uint32 from, uint32 to)
{
	for (uint32 c = 0; c < spec->n_columns; c++)
	{
		uint8	   *values = batch->base + batch->values_offset[c];
		uint8	   *nulls = batch->base + batch->nulls_offset[c];
		Size		bytes = spec->column_bytes[c];

		memmove(values + to * bytes, values + from * bytes, bytes);
		if (nulls[from / 8] >> (from % 8) & 1)
			nulls[to / 8] |= 1 << (to % 8);
		else
			nulls[to / 8] &= ~(1 << (to % 8));
	}
}

/*
 * Finishes the rows of a batch that are marked as bad, for which the device's program could
 * not do it: their columns are computed, or they are taken out, as they do not meet the
 * conditions.  Raises core's error if there is one.  The batch has all columns of the map,
 * with bitmaps of NULLs.
 */
void
gpurhh_join_finish_bad(JoinInput *input, rhh_batch *batch, const uint8 *bad)
{
	/* from the end, so that the last one has been looked at */
	for (uint32 row = batch->n_rows; row-- > 0;)
	{
		if ((bad[row / 8] >> (row % 8) & 1) && !compute(&input->program, batch, row))
			move_row(&input->map_spec, batch, --batch->n_rows, row);
	}
}
