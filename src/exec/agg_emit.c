/*-------------------------------------------------------------------------
 *
 * agg_emit.c
 *		Makes rows, scan tuples, of groups.
 *
 * Groups come as columns of words (see rhh_result), and rows are asked for one at a
 * time.  So a window of groups is decoded at once, column by column: what kind of column
 * it is has to be looked up only once for the whole window, and a row is then a copy of
 * a few Datums.  Values that need memory, as numeric does, are made row by row.
 *
 * HAVING is computed for the window (vector.c) if it can be, and groups that do not pass
 * it are never made rows.
 *
 * If arguments had odd values (odd_arguments.c), these are put together with the groups
 * that they belong to.  Counts and whether a value is NULL are corrected as soon as the
 * window has been decoded, numerics when they are made.
 *
 * An Emit lasts as long as the node.  It keeps a window between two calls, but never
 * owns the words of the groups: these are the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "compat.h"
#include "exec/emit.h"
#include "plan/plan.h"

/* Room for a string that is its own key, as a varlena. */
#define SHORT_STRING	MAXALIGN(VARHDRSZ + GPURHH_STRING_BYTES)

/*
 * Digits that sums have in HAVING, so that it is computed with 128 bits and there are some left for more
 * digits behind the point.  What has more digits than there is room for core computes.
 */
#define SUM_DIGITS		30

/* How one column of the scan tuple is made of a group's words. */
struct EmitColumn
{
	GpuOutput	output;
	GpuEncoding encoding;		/* of the values; GPU_ENC_NONE: make() knows */
	int			parameter;		/* see GpuColumn */
	int			word;			/* first of the key or state */
	int			null_bit;		/* keys: bit of word 0 */
	const AggregateFamily *family;	/* of an aggregate; else NULL */
	int			odd_argument;	/* see odd_arguments.c; -1: it has no odd values */
	bool		greatest;		/* of these the greatest is meant */
	List	   *by_set;			/* GROUPING()'s values */
	bool		allocates;		/* made row by row, in the per-tuple context */
	int			states[GPU_MAX_OPERANDS];	/* of an aggregate */
	Datum		values[GPURHH_EMIT_WINDOW];
	bool		isnull[GPURHH_EMIT_WINDOW];
	char	   *strings;		/* of the window, SHORT_STRING bytes each */
	void	   *vector;			/* the values for HAVING; NULL: not needed */
	VectorType	vector_type;
	AggregateResult result;		/* what the family's methods know */
};

/* The words of a group at which its keys and its states begin. */
typedef struct GroupWords
{
	int			keys[RHH_MAX_KEYS];
	int			states[RHH_MAX_STATES];
} GroupWords;

/* Finds the words at which the keys and the states of a group of spec begin. */
static void
find_words(GroupWords *words, const rhh_map_spec *spec)
{
	for (uint32 k = 0; k < spec->n_keys; k++)
		words->keys[k] = rhh_key_word(spec, k);
	for (uint32 s = 0; s < spec->n_states; s++)
		words->states[s] = rhh_state_word(spec, s);
}

/* Prepares what the methods of an aggregate look at.  operands: IntList of its states. */
static void
init_aggregate(EmitColumn *column, Oid function, List *states,
			   const GroupWords *words)
{
	AggregateResult *result = &column->result;
	ListCell   *lc;

	result->aggregate = gpurhh_find_aggregate(function);
	column->family = result->aggregate->family;
	result->encoding = column->encoding;
	result->parameter = column->parameter;
	foreach(lc, states)
	{
		column->states[foreach_current_index(lc)] = lfirst_int(lc);
		result->words[foreach_current_index(lc)] = words->states[lfirst_int(lc)];
	}
	if (column->family->begin)
		result->made = column->family->begin(result->aggregate);
	if (column->family->make)
		column->encoding = GPU_ENC_NONE;
	else if (column->family->result != GPU_ENC_NONE)
		column->encoding = column->family->result;
}

/* Prepares a column as its entry in the plan's outputs says. */
static void
init_column(EmitColumn *column, const GpuPlanOutput *output,
			const GroupWords *words, const rhh_map_spec *spec, const OddPlan *odd)
{
	int			state;

	column->output = output->kind;
	column->encoding = output->encoding;
	column->parameter = output->parameter;
	column->odd_argument = -1;
	switch (output->kind)
	{
		case GPU_OUTPUT_KEY:
			column->word = words->keys[output->key];
			column->null_bit = output->key;
			break;
		case GPU_OUTPUT_GROUPING:
			column->by_set = output->value_of_set;
			break;
		case GPU_OUTPUT_ANY:
		case GPU_OUTPUT_AGGREGATE:
			state = linitial_int(output->states);
			column->word = words->states[state];
			column->odd_argument = gpurhh_odd_argument(odd, state);
			column->greatest = spec->states[state].op == RHH_MAX_I64;
			break;
	}
	if (output->kind == GPU_OUTPUT_AGGREGATE)
		init_aggregate(column, output->aggregate, output->states, words);
	column->allocates = column->encoding == GPU_ENC_NONE ||
		gpurhh_encodings[column->encoding].by_reference;
	if (column->encoding == GPU_ENC_STRING)
		column->strings = palloc0(SHORT_STRING * GPURHH_EMIT_WINDOW);
}

/*
 * Prepares the columns of rows as the plan's outputs say.  spec: that of the groups that
 * are returned.  odd: NULL if no argument can have odd values.
 */
void
gpurhh_emit_init(Emit *emit, List *outputs, const rhh_map_spec *spec,
				 const OddPlan *odd)
{
	GroupWords	words;
	ListCell   *lc;

	find_words(&words, spec);
	memset(emit, 0, sizeof(Emit));
	emit->n_columns = list_length(outputs);
	emit->columns = palloc0(sizeof(EmitColumn) * emit->n_columns);
	foreach(lc, outputs)
	{
		EmitColumn *column = &emit->columns[foreach_current_index(lc)];

		init_column(column, lfirst(lc), &words, spec, odd);
		emit->allocates |= column->allocates;
	}
}

/* The column that a Var of HAVING names; NULL: it is none. */
static EmitColumn *
column_of(const Emit *emit, Node *expr)
{
	Var		   *var = (Var *) expr;

	return IsA(expr, Var) && var->varno == INDEX_VAR && var->varattno > 0 &&
		var->varattno <= emit->n_columns ? &emit->columns[var->varattno - 1] : NULL;
}

/* Is an error raised of values that overflow?  made: of those that are made of one group at a time. */
static bool
overflows(const Emit *emit, bool made)
{
	for (int c = 0; c < emit->n_columns; c++)
	{
		const AggregateFamily *family = emit->columns[c].family;

		if (family != NULL && family->overflows && (!made || family->make != NULL))
			return true;
	}
	return false;
}

/* The scale of a column's values, if HAVING can look at them as integers; else -1. */
static int
scale_of(const EmitColumn *column)
{
	return column != NULL && column->family != NULL && column->family->scale != NULL ?
		column->family->scale(&column->result) : -1;
}

/* Gives Vars of such columns type modifiers with the scale, which aggregates do not have. */
static Node *
with_scales(Node *node, void *arg)
{
	int			scale;

	if (node == NULL)
		return NULL;
	scale = scale_of(column_of(arg, node));
	if (scale >= 0)
	{
		Var		   *var = copyObject((Var *) node);

		var->vartypmod = ((SUM_DIGITS << 16) | scale) + VARHDRSZ;
		return (Node *) var;
	}
	return expression_tree_mutator(node, with_scales, arg);
}

/* Callback of gpurhh_vector_compile(): finds the column that a Var of HAVING names. */
static bool
find_column(Node *expr, bool only_null, int *column, VectorType *type,
			void *arg)
{
	Emit	   *emit = arg;
	EmitColumn *from = column_of(emit, expr);

	if (from == NULL)
		return false;
	*column = from - emit->columns;
	if (scale_of(from) >= 0)
	{
		*type = VECTOR_DECIMAL128;
		emit->having_numerics = true;
	}
	else if (from->allocates || !gpurhh_vector_type(exprType(expr), type))
	{
		*type = VECTOR_ANY;
		return only_null;
	}
	if (from->vector == NULL)
	{
		/* no value that is not allocated is wider than a Datum */
		Size		bytes = *type == VECTOR_DECIMAL128 ? sizeof(int128) : sizeof(Datum);

		from->vector = (void *) TYPEALIGN(64, palloc0(bytes * GPURHH_EMIT_WINDOW + 64));
		from->vector_type = *type;
	}
	return true;
}

/*
 * Prepares HAVING, a list of conditions on the scan tuple.  False: there is none, or core
 * has to evaluate it, row by row.
 */
bool
gpurhh_emit_having(Emit *emit, List *having, PlanState *parent)
{
	ListCell   *lc;

	/* these would be made of the groups for which HAVING is true */
	if (overflows(emit, true))
		return false;
	emit->quals = palloc(sizeof(VectorExpr *) * Max(list_length(having), 1));
	foreach(lc, having)
	{
		const char *why;
		VectorExpr *qual = gpurhh_vector_compile((Expr *) with_scales(lfirst(lc), emit), parent,
												 GPURHH_EMIT_WINDOW,
												 find_column, emit, &why);

		if (qual == NULL)
		{
			emit->n_quals = 0;
			return false;
		}
		emit->quals[emit->n_quals++] = qual;
	}
	emit->vectors = palloc0(sizeof(Vector) * Max(emit->n_columns, 1));
	return emit->n_quals > 0;
}

/* The functions of comparisons that a device knows: of numerics, and of integers. */
static const struct
{
	Oid			function;
	rhh_comparison comparison;
}			comparisons[] = {
	{F_NUMERIC_EQ, RHH_EQUAL}, {F_NUMERIC_NE, RHH_NOT_EQUAL}, {F_NUMERIC_LT, RHH_LESS},
	{F_NUMERIC_LE, RHH_LESS_OR_EQUAL}, {F_NUMERIC_GT, RHH_GREATER}, {F_NUMERIC_GE, RHH_GREATER_OR_EQUAL},
	{F_INT8EQ, RHH_EQUAL}, {F_INT8NE, RHH_NOT_EQUAL}, {F_INT8LT, RHH_LESS},
	{F_INT8LE, RHH_LESS_OR_EQUAL}, {F_INT8GT, RHH_GREATER}, {F_INT8GE, RHH_GREATER_OR_EQUAL},
	{F_INT84EQ, RHH_EQUAL}, {F_INT84NE, RHH_NOT_EQUAL}, {F_INT84LT, RHH_LESS},
	{F_INT84LE, RHH_LESS_OR_EQUAL}, {F_INT84GT, RHH_GREATER}, {F_INT84GE, RHH_GREATER_OR_EQUAL}
};

/* The integer that a state is compared with instead of a constant.  False: there is none. */
static bool
compared_with(const EmitColumn *column, const Const *constant, rhh_state_op op, int128 *result)
{
	const int	scale = scale_of(column);
	int			digits;
	int			constant_scale;

	if (constant->constisnull)
		return false;
	if (scale < 0)
	{
		if (column->allocates || constant->consttype == NUMERICOID ||
			!(column->family->fewest_rows == 0 ? op == RHH_COUNT :
			  op == RHH_SUM_I64 && column->family->result == GPU_ENC_INT8 && column->family->decode == NULL))
			return false;
		*result = constant->consttype == INT8OID ? DatumGetInt64(constant->constvalue) :
			DatumGetInt32(constant->constvalue);
		return true;
	}
	return op == RHH_SUM_I128 && constant->consttype == NUMERICOID &&
		gpurhh_decimal_type((Node *) constant, &digits, &constant_scale) && constant_scale <= scale &&
		gpurhh_decimal_read_as((const char *) PG_DETOAST_DATUM_PACKED(constant->constvalue),
							   constant_scale, scale, result) &&
		*result != GPURHH_DECIMAL128_NAN;
}

/* What a device can compute of HAVING's condition: that an aggregate is more, or less, than a constant. */
static bool
make_condition(const Emit *emit, const rhh_map_spec *spec, Node *qual, rhh_group_condition *condition)
{
	OpExpr	   *op = (OpExpr *) qual;
	const EmitColumn *column;
	int128		constant;

	memset(condition, 0, sizeof(rhh_group_condition));
	if (!IsA(qual, OpExpr) || list_length(op->args) != 2 || !IsA(lsecond(op->args), Const))
		return false;
	for (int i = 0; i < lengthof(comparisons); i++)
		if (comparisons[i].function == op->opfuncid)
			condition->comparison = comparisons[i].comparison;
	column = column_of(emit, linitial(op->args));
	if (condition->comparison == 0 || column == NULL || column->output != GPU_OUTPUT_AGGREGATE ||
		!compared_with(column, lsecond(op->args), spec->states[column->states[0]].op, &constant))
		return false;
	condition->state = column->states[0];
	condition->low = (uint64) constant;
	condition->high = (int64) (constant >> 64);
	condition->except_state = -1;
	if (column->family->sums != NULL)
	{
		/* of numerics, one of which is NaN */
		condition->except_state = column->states[2];
		condition->except_word = (uint64) GPURHH_DECIMAL_NAN;
	}
	return true;
}

/*
 * Conditions on the groups of spec without which HAVING is not true: the first ones of it, before which
 * core evaluates nothing else.  There is room for RHH_MAX_CONDITIONS.  Returns how many there are.
 *
 * There are none where core would raise an error of a group that is left out.
 *
 * Where an aggregate is NULL its state says as if there were rows that add nothing.  HAVING is not true
 * then, so it does not matter what the condition is.
 */
int
gpurhh_emit_conditions(const Emit *emit, const rhh_map_spec *spec, List *having,
					   rhh_group_condition *conditions)
{
	ListCell   *lc;
	int			n = 0;

	if (overflows(emit, false))
		return 0;
	foreach(lc, having)
	{
		if (n == RHH_MAX_CONDITIONS || !make_condition(emit, spec, lfirst(lc), &conditions[n]))
			break;
		n++;
	}
	return n;
}

/* Forgets the window and the values of HAVING's parameters, before a rescan. */
void
gpurhh_emit_reset(Emit *emit)
{
	emit->next = emit->n_rows = 0;
	for (int i = 0; i < emit->n_quals; i++)
		gpurhh_vector_reset(emit->quals[i]);
}

/*
 * The string whose key is these two words.  It is in the dictionary, or if it is short,
 * it is made in room, which has SHORT_STRING bytes.
 */
static inline struct varlena *
string_from_words(const Dictionary *dictionary, uint64 first, uint64 second,
				  char *room)
{
	uint8		length = ((uint8 *) &second)[sizeof(second) - 1];

	if (length == GPURHH_STRING_LONG)
		return gpurhh_dictionary_string(dictionary, first);
	SET_VARSIZE(room, VARHDRSZ + length);
	memcpy(VARDATA(room), &first, sizeof(first));
	memcpy(VARDATA(room) + sizeof(first), &second, sizeof(second));
	return (struct varlena *) room;
}

/* Makes a copy of a string with as many trailing blanks as make n_characters. */
static struct varlena *
pad_string(const struct varlena *string, int n_characters)
{
	const char *data = VARDATA_ANY(string);
	int			length = VARSIZE_ANY_EXHDR(string);
	int			n_blanks = Max(n_characters - pg_mbstrlen_with_len(data, length), 0);
	struct varlena *result = palloc(VARHDRSZ + length + n_blanks);

	SET_VARSIZE(result, VARHDRSZ + length + n_blanks);
	memcpy(VARDATA(result), data, length);
	memset(VARDATA(result) + length, ' ', n_blanks);
	return result;
}

/* The string of an odd key: a char(n) with the blanks that it had. */
static struct varlena *
odd_string(const Dictionary *dictionary, const uint64 *key)
{
	uint8		last = gpurhh_string_last_byte(key);
	struct varlena *result;

	if (gpurhh_string_is_long(last))
		return gpurhh_dictionary_string(dictionary, key[0]);
	result = palloc(SHORT_STRING);
	SET_VARSIZE(result, VARHDRSZ + (last & ~GPURHH_STRING_ODD));
	memcpy(VARDATA(result), key, GPURHH_STRING_BYTES);
	return result;
}

/* Makes a value of type name of a string. */
static Name
make_name(const struct varlena *string)
{
	Name		name = palloc0(sizeof(NameData));

	memcpy(NameStr(*name), VARDATA(string), VARSIZE(string) - VARHDRSZ);
	return name;
}

/* Makes a value of a type that is passed by reference, from the words that start at *at. */
static Datum
make_reference(const EmitColumn *column, const Dictionary *dictionary,
			   const uint64 *at, Size stride)
{
	char		room[SHORT_STRING] pg_attribute_aligned(MAXIMUM_ALIGNOF);

	if (gpurhh_is_string(column->encoding))
	{
		uint64		key[2] = {at[0], at[stride]};
		struct varlena *string;

		if (unlikely(gpurhh_string_is_odd(gpurhh_string_last_byte(key))))
			return PointerGetDatum(odd_string(dictionary, key));
		string = string_from_words(dictionary, key[0], key[1], room);
		return PointerGetDatum(column->encoding == GPU_ENC_NAME ?
							   (void *) make_name(string) :
							   (void *) pad_string(string, column->parameter));
	}
	return gpurhh_decode_reference(column->encoding, column->parameter, at,
								   stride);
}

/*
 * The least or greatest value of a group that has odd values, and count others, of which
 * other is the least or greatest.
 */
static Datum
make_odd_extreme(const EmitColumn *column, const OddState *odd, uint64 count,
				 int64 other)
{
	const OddBest *best = column->greatest ? &odd->greatest : &odd->least;

	if (count == 0 || (best->ties && best->integer == other && !best->later))
		return PointerGetDatum(best->value);
	return DirectFunctionCall2(column->greatest ? numeric_larger : numeric_smaller,
							   PointerGetDatum(best->value),
							   gpurhh_decimal_value(other,
													GPURHH_DECIMAL_SCALE(column->parameter)));
}

/* Makes a numeric of a group where its argument has odd values, and perhaps others. */
static Datum
make_odd_value(const Emit *emit, const EmitColumn *column,
			   const OddState *odd, const uint64 *group)
{
	const AggregateResult *result = &column->result;
	NumericSums others;
	uint64		count;

	if (column->output == GPU_OUTPUT_ANY)
		return PointerGetDatum(odd->last);
	count = group[result->words[1] * emit->stride];
	if (column->family->sums == NULL)
		return make_odd_extreme(column, odd, count,
								(int64) group[column->word * emit->stride]);
	if (count > 0)
		column->family->sums(result, group, emit->stride, &others);
	return gpurhh_odd_final(emit->odd_arguments, odd,
							result->aggregate->core_final, count, &others);
}

/*
 * Makes a value that needs memory, from the words of the group that start at *group.  Not
 * inlined, so that rows without such values do not pay for its room on the stack.
 */
static pg_noinline Datum
make_value(const EmitColumn *column, const Dictionary *dictionary,
		   const uint64 *group, Size stride)
{
	const uint64 *at = group + column->word * stride;

	if (column->family != NULL && column->family->make != NULL)
		return column->family->make(&column->result, group, stride);
	/* behind the word that says whether it is NULL */
	if (column->output == GPU_OUTPUT_ANY)
		at += stride;
	else if (column->output == GPU_OUTPUT_KEY &&
			 column->encoding == GPU_ENC_DECIMAL &&
			 unlikely(gpurhh_decimal_is_odd(at[0])))
		return gpurhh_dictionary_numeric(dictionary, at[0]);
	return make_reference(column, dictionary, at, stride);
}

/* Finds out in which of the window's n groups the column is NULL. */
static void
decode_nulls(EmitColumn *column, const uint64 *words, Size stride, uint32 n)
{
	switch (column->output)
	{
		case GPU_OUTPUT_KEY:
			for (uint32 i = 0; i < n; i++)
				column->isnull[i] = (words[i] >> column->null_bit) & 1;
			break;
		case GPU_OUTPUT_ANY:
			for (uint32 i = 0; i < n; i++)
				column->isnull[i] = words[column->word * stride + i] == 0;
			break;
		case GPU_OUTPUT_GROUPING:
			memset(column->isnull, 0, n);
			break;
		case GPU_OUTPUT_AGGREGATE:
			{
				const uint64 *counts = words + column->result.words[1] * stride;
				uint64		fewest = column->family->fewest_rows;

				if (fewest == 0)
					memset(column->isnull, 0, n);
				else
					for (uint32 i = 0; i < n; i++)
						column->isnull[i] = counts[i] < fewest;
			}
			break;
	}
}

/*
 * Decodes a column of the window's n groups, whose values are passed by value or are in
 * memory of the window.
 */
static void
decode_values(EmitColumn *column, const Dictionary *dictionary,
			  const uint64 *words, Size stride, uint32 n)
{
	int			word = column->word + (column->output == GPU_OUTPUT_ANY ? 1 : 0);
	const uint64 *from = words + word * stride;
	Datum	   *values = column->values;

	if (column->output == GPU_OUTPUT_GROUPING)
	{
		for (uint32 i = 0; i < n; i++)
			values[i] = Int32GetDatum(list_nth_int(column->by_set,
												   GPURHH_SET_OF(words[i])));
		return;
	}
	if (column->family != NULL && column->family->decode != NULL)
	{
		column->family->decode(&column->result, words, stride, n, values,
							   column->isnull);
		return;
	}
	if (column->strings == NULL)
	{
		gpurhh_decode_values(column->encoding, from, n, values);
		return;
	}
	for (uint32 i = 0; i < n; i++)
	{
		values[i] = PointerGetDatum(string_from_words(dictionary, from[i],
													  from[stride + i],
													  column->strings + i * SHORT_STRING));
		/* whoever gets the rows will look at it */
		__builtin_prefetch(DatumGetPointer(values[i]));
	}
}

#define VECTOR_LOOP(T, get) \
	do { \
		T		   *to = column->vector; \
		\
		for (uint32 i = 0; i < n; i++) \
			to[i] = get(column->values[i]); \
	} while (0)

/* Makes a vector, for HAVING to look at, of a column's values. */
static void
make_vector(const Emit *emit, EmitColumn *column, Vector *vector, uint32 n)
{
	vector->values = column->vector;
	vector->nulls = (const uint8 *) column->isnull;
	if (column->vector == NULL)
		return;
	switch (column->vector_type)
	{
		case VECTOR_BOOL:
			VECTOR_LOOP(uint8, DatumGetBool);
			break;
		case VECTOR_INT2:
			VECTOR_LOOP(int16, DatumGetInt16);
			break;
		case VECTOR_INT4:
			VECTOR_LOOP(int32, DatumGetInt32);
			break;
		case VECTOR_OID:
			VECTOR_LOOP(uint32, DatumGetUInt32);
			break;
		case VECTOR_INT8:
			VECTOR_LOOP(int64, DatumGetInt64);
			break;
		case VECTOR_FLOAT4:
			VECTOR_LOOP(float4, DatumGetFloat4);
			break;
		case VECTOR_FLOAT8:
			VECTOR_LOOP(float8, DatumGetFloat8);
			break;
		case VECTOR_STRING:
			VECTOR_LOOP(Pointer, DatumGetPointer);
			break;
		case VECTOR_DECIMAL128:
			column->family->integers(&column->result, emit->words, emit->stride, n,
									 column->vector);
			break;
		case VECTOR_ANY:
		case VECTOR_BPCHAR:
		case VECTOR_UUID:
		case VECTOR_DECIMAL:
			Assert(false);
			break;
	}
}

/*
 * Keeps only those of the window's n groups that pass HAVING.  If that may raise an
 * error, or has a parameter that is not known yet, all are kept, and core evaluates
 * HAVING for each row (recheck).
 */
static void
filter_window(Emit *emit, uint32 n)
{
	int			n_left = n;

	for (int c = 0; c < emit->n_columns; c++)
		make_vector(emit, &emit->columns[c], &emit->vectors[c], n);
	memset(emit->active, 1, n);
	/* the words do not have odd values */
	emit->recheck = emit->having_numerics && emit->odd_arguments != NULL;
	for (int i = 0; i < emit->n_quals && n_left > 0 && !emit->recheck; i++)
	{
		if (!gpurhh_vector_filter(emit->quals[i], emit->vectors, n,
								  emit->active, &n_left))
		{
			emit->recheck = true;
			memset(emit->active, 1, n);
			break;
		}
	}
	emit->n_rows = 0;
	for (uint32 i = 0; i < n; i++)
	{
		emit->rows[emit->n_rows] = i;
		emit->n_rows += emit->active[i];
	}
}

/* The odd values of a column in group i of the window; NULL: there are none. */
static inline const OddState *
odd_state(const Emit *emit, const EmitColumn *column, uint32 i)
{
	const OddState *states = emit->odd_states[i];

	return states == NULL || column->odd_argument < 0 ||
		states[column->odd_argument].count == 0 ? NULL :
		&states[column->odd_argument];
}

/*
 * Looks for odd values of the window's n groups.  Adds them to counts, and finds out
 * which values are not NULL because of them; gpurhh_emit_row() makes those values.
 */
static void
add_odd_values(Emit *emit, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		emit->odd_states[i] = gpurhh_odd_find(emit->odd_arguments, emit->dictionary,
											  emit->words + i, emit->stride);
		for (int c = 0; c < emit->n_columns; c++)
		{
			EmitColumn *column = &emit->columns[c];
			const OddState *odd = odd_state(emit, column, i);

			if (odd == NULL)
				continue;
			if (column->output == GPU_OUTPUT_ANY)
				column->isnull[i] = false;
			else if (column->family->fewest_rows == 0)
				column->values[i] += Int64GetDatum((int64) odd->count);
			else
				column->isnull[i] =
					emit->words[column->result.words[1] * emit->stride + i] + odd->count <
					column->family->fewest_rows;
		}
	}
}

/*
 * Decodes the next n groups, at most GPURHH_EMIT_WINDOW, whose word w is at
 * words[w * stride + i].  dictionary has their strings; NULL if they have none, or if
 * numbers of strings are addresses.  Words and dictionary stay the caller's, and must not
 * change until a row has been made of the last of these groups.  Returns how many of
 * them did not pass HAVING.
 */
int
gpurhh_emit_window(Emit *emit, const Dictionary *dictionary, const uint64 *words,
				   Size stride, uint32 n)
{
	Assert(n <= GPURHH_EMIT_WINDOW);
	emit->dictionary = dictionary;
	for (int c = 0; c < emit->n_columns; c++)
	{
		EmitColumn *column = &emit->columns[c];

		decode_nulls(column, words, stride, n);
		if (!column->allocates)
			decode_values(column, emit->dictionary, words, stride, n);
	}
	emit->words = words;
	emit->stride = stride;
	emit->next = 0;
	emit->n_rows = n;
	emit->recheck = false;
	if (unlikely(emit->odd_arguments != NULL))
		add_odd_values(emit, n);
	if (emit->n_quals > 0)
		filter_window(emit, n);
	return n - emit->n_rows;
}

/* Stores the window's next group; values that need memory are in the current context. */
static inline void
store_row(Emit *emit, TupleTableSlot *slot)
{
	uint32		i = emit->next++;

	if (emit->n_quals > 0)
		i = emit->rows[i];
	ExecClearTuple(slot);
	for (int c = 0; c < emit->n_columns; c++)
	{
		EmitColumn *column = &emit->columns[c];

		slot->tts_isnull[c] = column->isnull[i];
		if (!column->allocates)
			slot->tts_values[c] = column->values[i];
		else if (column->isnull[i])
			slot->tts_values[c] = (Datum) 0;
		else if (unlikely(emit->odd_arguments != NULL) &&
				 odd_state(emit, column, i) != NULL)
			slot->tts_values[c] = make_odd_value(emit, column,
												 odd_state(emit, column, i),
												 emit->words + i);
		else
			slot->tts_values[c] = make_value(column, emit->dictionary,
											 emit->words + i,
											 emit->stride);
	}
	ExecStoreVirtualTuple(slot);
}

/*
 * Stores the window's next group, which must be there (next < n_rows), in the node's scan
 * tuple.  Values that need memory are in the node's per-tuple context.
 */
void
gpurhh_emit_row(Emit *emit, ScanState *ss)
{
	if (emit->allocates)
	{
		MemoryContext old = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);

		store_row(emit, ss->ss_ScanTupleSlot);
		MemoryContextSwitchTo(old);
	}
	else
		store_row(emit, ss->ss_ScanTupleSlot);
}
