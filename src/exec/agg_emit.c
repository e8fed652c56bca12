/*-------------------------------------------------------------------------
 *
 * agg_emit.c
 *		Result words to rows: makes scan tuples of groups.
 *
 * Groups come as columns of words (see rhh_result), and leave one at a time.
 * A window of them is decoded at once, column by column, so that what a column
 * is has to be looked up once for all: a row is then a copy of a few Datums.
 * Values that need memory, as numeric does, are made row by row.
 *
 * HAVING is computed for the window (vector.c) where it can be, and groups that
 * it does not let pass are never made rows.
 *
 * Where arguments had odd values (odd_arguments.c), what is known of these is added to
 * the groups that have some: to counts and to whether there is a value once the
 * window has been decoded, to numerics when they are made.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "compat.h"
#include "exec/emit.h"

/* Room for a string that is its own key, as a varlena. */
#define SHORT_STRING	MAXALIGN(VARHDRSZ + GPURHH_STRING_BYTES)

/* How one column of the scan tuple is made of a group's words. */
struct EmitColumn
{
	GpuFinal	final;
	GpuEncoding encoding;		/* of the values; GPU_ENC_NONE: by final alone */
	int			parameter;		/* see GpuColumn */
	int			words[GPU_MAX_OPERANDS];	/* first of each operand */
	int			null_bit;		/* keys: bit of word 0 */
	bool		wide;			/* variances: of 8-byte integers, */
	bool		decimal;		/* or numerics */
	int			odd_argument;	/* see odd_arguments.c; -1: it has no odd values */
	bool		greatest;		/* of these the greatest is meant */
	List	   *by_set;			/* GROUPING()'s values */
	bool		allocates;		/* made row by row, in the per-tuple context */
	Datum		values[GPURHH_EMIT_WINDOW];
	bool		isnull[GPURHH_EMIT_WINDOW];
	char	   *strings;		/* of the window, SHORT_STRING bytes each */
	PairFinal  *pair;			/* GPU_FINAL_PAIR's */
	void	   *vector;			/* the values for HAVING; NULL: not needed */
	VectorType	vector_type;
};

/* How the output's values come, or GPU_ENC_NONE: they are made by final. */
static GpuEncoding
output_encoding(const EmitColumn *column)
{
	switch (column->final)
	{
		case GPU_FINAL_KEY:
		case GPU_FINAL_ANY:
		case GPU_FINAL_VALUE:
		case GPU_FINAL_GROUPING:
			return column->encoding;
		case GPU_FINAL_COUNT:
		case GPU_FINAL_SUM_INT8:
		case GPU_FINAL_SUM_MONEY:
			return GPU_ENC_INT8;
		case GPU_FINAL_SUM_FLOAT:
			return column->encoding;
		case GPU_FINAL_AVG_FLOAT:
		case GPU_FINAL_VAR_POP_FLOAT:
		case GPU_FINAL_VAR_SAMP_FLOAT:
		case GPU_FINAL_STDDEV_POP_FLOAT:
		case GPU_FINAL_STDDEV_SAMP_FLOAT:
		case GPU_FINAL_PAIR_AVG:
		case GPU_FINAL_PAIR:
			return GPU_ENC_FLOAT8_RAW;
		case GPU_FINAL_SUM_NUMERIC:
		case GPU_FINAL_AVG_INT8:
		case GPU_FINAL_AVG_NUMERIC:
		case GPU_FINAL_VAR_POP:
		case GPU_FINAL_VAR_SAMP:
		case GPU_FINAL_STDDEV_POP:
		case GPU_FINAL_STDDEV_SAMP:
		case GPU_FINAL_SUM_DECIMAL:
		case GPU_FINAL_AVG_DECIMAL:
		case GPU_FINAL_SUM_INTERVAL:
		case GPU_FINAL_AVG_INTERVAL:
			break;
		case GPU_FINAL_LEAST:
		case GPU_FINAL_GREATEST:
			Assert(false);
			break;
	}
	return GPU_ENC_NONE;
}

/* Reads a plan's outputs (GPUAGG_PRIVATE_OUTPUTS). */
void
gpurhh_emit_init(Emit *emit, List *outputs, const rhh_table_spec *spec,
				 const OddPlan *odd)
{
	int			state_word[RHH_MAX_STATES];
	int			key_word[RHH_MAX_KEYS];
	int			word = 1;
	ListCell   *lc;

	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		key_word[k] = word;
		word += rhh_key_words(spec, k);
	}
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		state_word[s] = word;
		word += rhh_state_words(spec, s);
	}

	memset(emit, 0, sizeof(Emit));
	emit->n_columns = list_length(outputs);
	emit->columns = palloc0(sizeof(EmitColumn) * emit->n_columns);
	foreach(lc, outputs)
	{
		List	   *from = lfirst(lc);
		EmitColumn *to = &emit->columns[foreach_current_index(lc)];
		ListCell   *lc_operand;

		to->final = linitial_int(from);
		to->encoding = lsecond_int(from);
		to->parameter = lthird_int(from);
		to->by_set = list_copy_tail(from, 3);
		to->odd_argument = -1;
		for_each_from(lc_operand, from, 3)
		{
			int			operand = lfirst_int(lc_operand);
			int			i = foreach_current_index(lc_operand) - 3;

			if (to->final == GPU_FINAL_GROUPING)
				break;
			if (i == 0 && to->final != GPU_FINAL_KEY)
			{
				to->odd_argument = gpurhh_odd_argument(odd, operand);
				to->greatest = spec->states[operand].op == RHH_MAX_I64;
			}
			to->words[i] = to->final == GPU_FINAL_KEY ? key_word[operand] :
				state_word[operand];
			to->null_bit = operand;
		}
		to->decimal = to->encoding == GPU_ENC_DECIMAL;
		to->wide = to->encoding == GPU_ENC_INT8 || to->decimal;
		to->encoding = output_encoding(to);
		to->allocates = to->encoding == GPU_ENC_NONE ||
			gpurhh_encodings[to->encoding].by_reference;
		emit->allocates |= to->allocates;
		if (to->final == GPU_FINAL_PAIR)
			to->pair = gpurhh_pair_final_create((Oid) to->parameter);
		if (to->encoding == GPU_ENC_STRING)
			to->strings = palloc0(SHORT_STRING * GPURHH_EMIT_WINDOW);
	}
}

/* gpurhh_vector_compile()'s question for a column of HAVING. */
static bool
find_column(Node *expr, bool only_null, int *column, VectorType *type,
			void *arg)
{
	Emit	   *emit = arg;
	Var		   *var = (Var *) expr;
	EmitColumn *from;

	if (!IsA(expr, Var) || var->varno != INDEX_VAR || var->varattno <= 0 ||
		var->varattno > emit->n_columns)
		return false;
	from = &emit->columns[var->varattno - 1];
	if (from->allocates || !gpurhh_vector_type(var->vartype, type))
	{
		*type = VECTOR_ANY;
		if (!only_null)
			return false;
	}
	else if (from->vector == NULL)
	{
		/* no value that is not allocated is wider than a Datum */
		from->vector = palloc0(sizeof(Datum) * GPURHH_EMIT_WINDOW);
		from->vector_type = *type;
	}
	*column = var->varattno - 1;
	return true;
}

/*
 * Prepares HAVING, a list of conditions on the scan tuple; false: there is none,
 * or it has to be evaluated row by row.
 */
bool
gpurhh_emit_having(Emit *emit, List *having, PlanState *parent)
{
	ListCell   *lc;

	emit->quals = palloc(sizeof(VectorExpr *) * Max(list_length(having), 1));
	foreach(lc, having)
	{
		const char *why;
		VectorExpr *qual = gpurhh_vector_compile(lfirst(lc), parent,
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

/* Forgets the window, and what HAVING's parameters were. */
void
gpurhh_emit_reset(Emit *emit)
{
	emit->next = emit->n_rows = 0;
	for (int i = 0; i < emit->n_quals; i++)
		gpurhh_vector_reset(emit->quals[i]);
}

/* A 128-bit two's complement integer of two words. */
static int128
int128_from_words(const uint64 *at, Size stride)
{
	return (int128) ((uint128) at[stride] << 64 | at[0]);
}

/* The sum of a numeric, whose operands are those of GPU_FINAL_SUM_DECIMAL. */
static Datum
decimal_sum(const EmitColumn *column, const uint64 *group, Size stride)
{
	int			n_limbs = GPURHH_DECIMAL_LIMBS(column->parameter);
	int128		sums[GPURHH_MAX_LIMBS];

	if ((int64) group[column->words[2] * stride] == GPURHH_DECIMAL_NAN)
		return gpurhh_decimal_nan();
	sums[0] = int128_from_words(group + column->words[0] * stride, stride);
	for (int l = 1; l < n_limbs; l++)
		sums[l] = int128_from_words(group + column->words[2 + l] * stride,
									stride);
	return gpurhh_decimal_sum(sums, n_limbs,
							  GPURHH_DECIMAL_SCALE(column->parameter));
}

/*
 * The string whose key is the words: in room, SHORT_STRING bytes, or in the
 * dictionary.
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

/* With its trailing blanks, that make it so many characters. */
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

/* An odd one, with the blanks that it had. */
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

static Name
make_name(const struct varlena *string)
{
	Name		name = palloc0(sizeof(NameData));

	memcpy(NameStr(*name), VARDATA(string), VARSIZE(string) - VARHDRSZ);
	return name;
}

/* A value of an encoding by reference, from the words that start at *at. */
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
 * The sum of the squares of a numeric, from the words of the group that start at
 * *group.
 */
static Datum
decimal_squares(const EmitColumn *column, const uint64 *group, Size stride)
{
	const uint64 *from = group + column->words[2] * stride;
	uint64		squares[3] = {from[0], from[stride], from[2 * stride]};

	return gpurhh_final_squares(squares,
								GPURHH_DECIMAL_SCALE(column->parameter));
}

/* A numeric of which there are odd values, and perhaps others. */
static Datum
make_odd_value(const Emit *emit, const EmitColumn *column,
			   const OddState *odd, const uint64 *group)
{
	Size		stride = emit->stride;
	const uint64 *at = group + column->words[0] * stride;
	uint64		count = group[column->words[1] * stride];
	bool		variance = column->final >= GPU_FINAL_VAR_POP &&
		column->final <= GPU_FINAL_STDDEV_SAMP;
	int			scale = GPURHH_DECIMAL_SCALE(column->parameter);
	const OddBest *best = column->greatest ? &odd->greatest : &odd->least;
	bool		nan = false;
	Datum		sum = (Datum) 0;
	Datum		squares = (Datum) 0;

	switch (column->final)
	{
		case GPU_FINAL_ANY:
			return PointerGetDatum(odd->last);
		case GPU_FINAL_VALUE:
			if (count == 0 ||
				(best->ties && best->integer == (int64) at[0] && !best->later))
				return PointerGetDatum(best->value);
			return DirectFunctionCall2(column->greatest ? numeric_larger : numeric_smaller,
									   PointerGetDatum(best->value),
									   gpurhh_decimal_value((int64) at[0], scale));
		default:
			break;
	}
	if (count > 0)
	{
		nan = (int64) group[column->words[variance ? 3 : 2] * stride] == GPURHH_DECIMAL_NAN;
		if (nan)
			sum = squares = gpurhh_decimal_make(0, scale);
		else if (variance)
		{
			sum = gpurhh_decimal_make(int128_from_words(at, stride), scale);
			squares = decimal_squares(column, group, stride);
		}
		else
			sum = decimal_sum(column, group, stride);
		if (!variance)
			squares = (Datum) 0;
	}
	return gpurhh_odd_final(emit->odd_arguments, odd, column->final, count, nan, sum,
							squares);
}

/* A value that needs memory, from the words of the group that start at *group. */
static Datum
make_value(const EmitColumn *column, const Dictionary *dictionary,
		   const uint64 *group, Size stride)
{
	const uint64 *at = group + column->words[0] * stride;
	uint64		count = group[column->words[1] * stride];

	switch (column->final)
	{
		case GPU_FINAL_KEY:
			if (column->decimal && unlikely(gpurhh_decimal_is_odd(at[0])))
				return gpurhh_dictionary_numeric(dictionary, at[0]);
			return make_reference(column, dictionary, at, stride);
		case GPU_FINAL_VALUE:
			return make_reference(column, dictionary, at, stride);
		case GPU_FINAL_ANY:
			/* behind the word that says whether it is NULL */
			return make_reference(column, dictionary, at + stride, stride);
		case GPU_FINAL_SUM_NUMERIC:
			return gpurhh_decimal_make(int128_from_words(at, stride), 0);
		case GPU_FINAL_AVG_INT8:
			/* as int8_avg() does it */
			return DirectFunctionCall2(numeric_div,
									   NumericGetDatum(int64_to_numeric((int64) at[0])),
									   NumericGetDatum(int64_to_numeric((int64) count)));
		case GPU_FINAL_AVG_NUMERIC:
			return DirectFunctionCall2(numeric_div,
									   gpurhh_decimal_make(int128_from_words(at, stride), 0),
									   NumericGetDatum(int64_to_numeric((int64) count)));
		case GPU_FINAL_SUM_DECIMAL:
			return decimal_sum(column, group, stride);
		case GPU_FINAL_AVG_DECIMAL:
			/* as numeric_avg() does it */
			return DirectFunctionCall2(numeric_div,
									   decimal_sum(column, group, stride),
									   NumericGetDatum(int64_to_numeric((int64) count)));
		case GPU_FINAL_SUM_INTERVAL:
		case GPU_FINAL_AVG_INTERVAL:
			return gpurhh_final_interval(column->final,
										 int128_from_words(at, stride),
										 (int64) group[column->words[2] * stride],
										 (int64) group[column->words[3] * stride],
										 (int) group[column->words[4] * stride],
										 count);
		case GPU_FINAL_VAR_POP:
		case GPU_FINAL_VAR_SAMP:
		case GPU_FINAL_STDDEV_POP:
		case GPU_FINAL_STDDEV_SAMP:
			{
				const uint64 *from = group + column->words[2] * stride;
				uint64		squares[3] = {from[0], from[stride],
				column->wide ? from[2 * stride] : 0};

				if (column->decimal &&
					(int64) group[column->words[3] * stride] == GPURHH_DECIMAL_NAN)
					return gpurhh_decimal_nan();
				return gpurhh_final_variance(column->final,
											 column->wide ?
											 int128_from_words(at, stride) :
											 (int64) at[0],
											 count, squares,
											 column->decimal ?
											 GPURHH_DECIMAL_SCALE(column->parameter) : 0);
			}
		default:
			break;
	}
	elog(ERROR, "unrecognized kind of output column: %d", (int) column->final);
	return (Datum) 0;			/* keep compiler quiet */
}

/* Which of the window's groups have no value. */
static void
decode_nulls(EmitColumn *column, const uint64 *words, Size stride, uint32 n)
{
	if (column->final == GPU_FINAL_KEY)
	{
		for (uint32 i = 0; i < n; i++)
			column->isnull[i] = (words[i] >> column->null_bit) & 1;
	}
	else if (column->final == GPU_FINAL_ANY)
	{
		for (uint32 i = 0; i < n; i++)
			column->isnull[i] = words[column->words[0] * stride + i] == 0;
	}
	else if (column->final == GPU_FINAL_COUNT ||
			 column->final == GPU_FINAL_GROUPING)
		memset(column->isnull, 0, n);
	else
	{
		uint64		least = gpurhh_final_is_sample(column->final) ? 2 : 1;

		for (uint32 i = 0; i < n; i++)
			column->isnull[i] = words[column->words[1] * stride + i] < least;
	}
}

/*
 * The values of an aggregate whose states are not the result, but that needs no
 * memory; false: it is not one of these.
 */
static bool
compute_values(EmitColumn *column, const uint64 *words, Size stride, uint32 n)
{
	const uint64 *from = words + column->words[0] * stride;
	const uint64 *second = from + stride;
	const uint64 *counts = words + column->words[1] * stride;
	Datum	   *values = column->values;

	switch (column->final)
	{
		case GPU_FINAL_SUM_MONEY:
			for (uint32 i = 0; i < n; i++)
				values[i] = Int64GetDatum(gpurhh_final_money(from[i], second[i]));
			return true;
		case GPU_FINAL_SUM_FLOAT:
			for (uint32 i = 0; i < n; i++)
			{
				bool		single = column->encoding == GPU_ENC_FLOAT4_RAW;
				float8		sum = gpurhh_final_sum_float(from[i], second[i],
														 single);

				values[i] = single ? Float4GetDatum((float4) sum) :
					Float8GetDatum(sum);
			}
			return true;
		case GPU_FINAL_AVG_FLOAT:
			for (uint32 i = 0; i < n; i++)
				values[i] = Float8GetDatum(counts[i] == 0 ? 0 :
										   gpurhh_final_avg_float(from[i], second[i],
																  counts[i]));
			return true;
		case GPU_FINAL_VAR_POP_FLOAT:
		case GPU_FINAL_VAR_SAMP_FLOAT:
		case GPU_FINAL_STDDEV_POP_FLOAT:
		case GPU_FINAL_STDDEV_SAMP_FLOAT:
			for (uint32 i = 0; i < n; i++)
				values[i] = Float8GetDatum(column->isnull[i] ? 0 :
										   gpurhh_final_variance_float(column->final,
																	   &from[i], stride,
																	   counts[i]));
			return true;
		case GPU_FINAL_PAIR_AVG:
			for (uint32 i = 0; i < n; i++)
				values[i] = Float8GetDatum(column->isnull[i] ? 0 :
										   gpurhh_pair_avg(column->words,
														   &words[i], stride));
			return true;
		case GPU_FINAL_PAIR:
			for (uint32 i = 0; i < n; i++)
				values[i] = Float8GetDatum(column->isnull[i] ? 0 :
										   gpurhh_pair_final(column->pair,
															 column->words,
															 &words[i], stride,
															 &column->isnull[i]));
			return true;
		default:
			return false;
	}
}

/* Values that need no memory, or the window's. */
static void
decode_values(EmitColumn *column, const Dictionary *dictionary,
			  const uint64 *words, Size stride, uint32 n)
{
	int			word = column->words[0] +
		(column->final == GPU_FINAL_ANY ? 1 : 0);
	const uint64 *from = words + word * stride;
	Datum	   *values = column->values;

	if (column->final == GPU_FINAL_GROUPING)
	{
		for (uint32 i = 0; i < n; i++)
			values[i] = Int32GetDatum(list_nth_int(column->by_set,
												   GPURHH_SET_OF(words[i])));
		return;
	}
	if (compute_values(column, words, stride, n))
		return;
	switch (column->encoding)
	{
		case GPU_ENC_BOOL:
		case GPU_ENC_FILTER:
			for (uint32 i = 0; i < n; i++)
				values[i] = BoolGetDatum(from[i] != 0);
			break;
		case GPU_ENC_CHAR:
			for (uint32 i = 0; i < n; i++)
				values[i] = CharGetDatum((char) from[i]);
			break;
		case GPU_ENC_INT2:
			for (uint32 i = 0; i < n; i++)
				values[i] = Int16GetDatum((int16) from[i]);
			break;
		case GPU_ENC_INT4:
		case GPU_ENC_OID:
		case GPU_ENC_FLOAT4:
		case GPU_ENC_FLOAT4_RAW:
			/* as fetch_att() gets all of four bytes */
			for (uint32 i = 0; i < n; i++)
				values[i] = Int32GetDatum((int32) from[i]);
			break;
		case GPU_ENC_INT8:
		case GPU_ENC_FLOAT8:
		case GPU_ENC_FLOAT8_RAW:
			for (uint32 i = 0; i < n; i++)
				values[i] = Int64GetDatum((int64) from[i]);
			break;
		case GPU_ENC_FLOAT4_ORDER:
		case GPU_ENC_OID_ORDER:
			for (uint32 i = 0; i < n; i++)
				values[i] = Int32GetDatum((int32) gpurhh_convert_back(column->encoding,
																	  (int64) from[i]));
			break;
		case GPU_ENC_FLOAT8_ORDER:
		case GPU_ENC_UINT8_ORDER:
			for (uint32 i = 0; i < n; i++)
				values[i] = Int64GetDatum(gpurhh_convert_back(column->encoding,
															  (int64) from[i]));
			break;
		case GPU_ENC_STRING:
			for (uint32 i = 0; i < n; i++)
			{
				values[i] = PointerGetDatum(string_from_words(dictionary, from[i],
															  from[stride + i],
															  column->strings + i * SHORT_STRING));
				/* whoever gets the rows will look at it */
				__builtin_prefetch(DatumGetPointer(values[i]));
			}
			break;
		case GPU_ENC_NONE:
		case GPU_ENC_UUID:
		case GPU_ENC_BPCHAR:
		case GPU_ENC_NAME:
		case GPU_ENC_LEAST_STRING:
		case GPU_ENC_LEAST_BPCHAR:
		case GPU_ENC_GREATEST_STRING:
		case GPU_ENC_GREATEST_BPCHAR:
		case GPU_ENC_DECIMAL:
		case GPU_ENC_LIMB1:
		case GPU_ENC_LIMB2:
		case GPU_ENC_BYTES:
		case GPU_ENC_TIMETZ:
		case GPU_ENC_TID:
		case GPU_ENC_YEARS:
		case GPU_ENC_INTERVAL_TIME:
		case GPU_ENC_INTERVAL_DAYS:
		case GPU_ENC_INTERVAL_MONTHS:
		case GPU_ENC_INTERVAL_INFINITE:
		case GPU_ENC_BOTH:
		case GPU_ENC_PRODUCT:
			Assert(false);
			break;
	}
}

#define VECTOR_LOOP(T, get) \
	do { \
		T		   *to = column->vector; \
		\
		for (uint32 i = 0; i < n; i++) \
			to[i] = get(column->values[i]); \
	} while (0)

/* The values that HAVING looks at as a vector. */
static void
make_vector(EmitColumn *column, Vector *vector, uint32 n)
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
		case VECTOR_ANY:
		case VECTOR_BPCHAR:
		case VECTOR_UUID:
		case VECTOR_DECIMAL:
		case VECTOR_DECIMAL128:
			Assert(false);
			break;
	}
}

/*
 * Leaves those of the window's groups that HAVING lets pass.  Where it may
 * raise an error, or has a parameter that is not known yet, the window is
 * left for core to look at, row by row.
 */
static void
filter_window(Emit *emit, uint32 n)
{
	int			n_left = n;

	for (int c = 0; c < emit->n_columns; c++)
		make_vector(&emit->columns[c], &emit->vectors[c], n);
	memset(emit->active, 1, n);
	for (int i = 0; i < emit->n_quals && n_left > 0; i++)
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

/* What is known of a column's odd values in a group of the window; NULL: nothing. */
static inline const OddState *
odd_state(const Emit *emit, const EmitColumn *column, uint32 i)
{
	const OddState *states = emit->odd_states[i];

	return states == NULL || column->odd_argument < 0 ||
		states[column->odd_argument].count == 0 ? NULL :
		&states[column->odd_argument];
}

/*
 * Looks for odd values of the window's n groups, and adds them to counts.  Values
 * that they make not NULL are made row by row.
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
			if (column->final == GPU_FINAL_COUNT)
				column->values[i] += Int64GetDatum((int64) odd->count);
			else if (column->final == GPU_FINAL_ANY)
				column->isnull[i] = false;
			else
				column->isnull[i] =
					emit->words[column->words[1] * emit->stride + i] + odd->count <
					(gpurhh_final_is_sample(column->final) ? 2 : 1);
		}
	}
}

/*
 * Takes the next n groups, at most GPURHH_EMIT_WINDOW, whose word w is
 * words[w * stride + i].  The words stay the caller's and are looked at until
 * the last of these groups has been made a row.  Returns how many of them
 * HAVING did not let pass.
 */
int
gpurhh_emit_window(Emit *emit, const uint64 *words, Size stride, uint32 n)
{
	Assert(n <= GPURHH_EMIT_WINDOW);
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

/*
 * Stores the window's next group, which must be there (next < n_rows), in a
 * virtual slot.
 * Values that need memory are in the current context.
 */
void
gpurhh_emit_row(Emit *emit, TupleTableSlot *slot)
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
