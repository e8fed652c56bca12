/*
 * rhh_program.c
 *		Programs on the host: checked, and run operation by operation over some rows at a
 *		time, so that each operation is a loop over columns.
 */
#include "rhh_program.h"

/* Rows that are computed at a time: what all operations need stays in the L2 cache. */
#define CHUNK_ROWS 128

/* All that computes is compiled for each kind of processor: see rhh_program_run(). */
#define INLINE static inline __attribute__((always_inline))

typedef struct rhh_buffer
{
	rhh_int128 *wide;			/* of an operation whose results have 128 bits; else NULL */
	int64_t    *narrow;			/* of one of 64 bits; and of the other if all of them are small */
	uint8_t    *flags;			/* a byte for each row */
	bool		clean;			/* no row has a flag */
	uint8_t		bits;			/* that the absolute values have at most; UNKNOWN_BITS: nobody has looked, and what is wide is
								 * in wide */
} rhh_buffer;

/*
 * Decimals are small: what their types allow takes 128 bits, and nearly all that is stored less than half of that.  So where the
 * values of some rows have no more bits than this, operations on these take 64 bits, and cannot overflow.  NaN has more.
 */
#define SMALL_BITS 62
#define UNKNOWN_BITS 255

/* The classes of an operation's operands, as letters of RHH_OPERATIONS(). */
typedef struct rhh_signature
{
	char		a;
	char		b;
	char		c;
} rhh_signature;

#define SIGNATURE(name, tr, ta, tb) {#ta[0], #tb[0], '_'},
#define LOGIC_SIGNATURE(name, tr, ta, tb, tc) {#ta[0], #tb[0], #tc[0]},

static const rhh_signature signatures[] = {
	{'_', '_', '_'}, {'_', '_', '_'}, {'_', '_', '_'}, {'_', '_', '_'}, {'_', '_', '_'},
	RHH_OPERATIONS(SIGNATURE) RHH_LOGIC(LOGIC_SIGNATURE)
};

/* What an operation's result takes in scratch memory. */
static size_t
buffer_bytes(uint8_t code)
{
	return CHUNK_ROWS * ((rhh_op_is_wide(code) ? sizeof(rhh_int128) : 0) + sizeof(int64_t) + 1);
}

size_t
rhh_program_scratch(const rhh_program *program)
{
	size_t		bytes = 0;

	for (uint32_t i = 0; i < program->n_ops; i++)
		bytes += buffer_bytes(program->ops[i].code);
	return bytes;
}

INLINE bool
get_bit(const uint8_t *bitmap, size_t i)
{
	return (bitmap[i / 8] >> (i % 8)) & 1;
}

INLINE bool
any_byte(const uint8_t *bytes, uint32_t n)
{
	uint8_t		any = 0;

	for (uint32_t i = 0; i < n; i++)
		any |= bytes[i];
	return any != 0;
}

/* No row has a flag. */
INLINE void
clear_flags(rhh_buffer *to)
{
	/* (a few instructions, as their number is known) */
	memset(to->flags, 0, CHUNK_ROWS);
	to->clean = true;
}

INLINE void
load_nulls(rhh_buffer *to, const uint8_t *nulls, size_t first, uint32_t n)
{
	if (nulls == NULL)
	{
		clear_flags(to);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		to->flags[i] = get_bit(nulls, first + i) ? RHH_NULL : 0;
	to->clean = !any_byte(to->flags, n);
}

INLINE void
load_column(rhh_buffer *to, const uint8_t *values, uint32_t bytes,
			const uint8_t *nulls, size_t first, uint32_t n)
{
#define LOAD(T) \
	for (uint32_t i = 0; i < n; i++) \
		to->narrow[i] = ((const T *) values)[first + i]

	switch (bytes)
	{
		case 1:
			LOAD(int8_t);
			break;
		case 2:
			LOAD(int16_t);
			break;
		case 4:
			LOAD(int32_t);
			break;
		default:
			LOAD(int64_t);
			break;
	}
#undef LOAD
	load_nulls(to, nulls, first, n);
}

INLINE void
load_bytes(rhh_buffer *to, const uint8_t *values, const uint8_t *nulls, size_t first,
		   uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	stored[2];
		uint64_t	words[2];

		memcpy(stored, values + (first + i) * sizeof(stored), sizeof(stored));
		rhh_order_bytes(stored[0], stored[1], words);
		to->wide[i] = (rhh_int128) ((rhh_uint128) words[1] << 64 | words[0]);
	}
	load_nulls(to, nulls, first, n);
}

INLINE void
load_is_null(rhh_buffer *to, const uint8_t *nulls, size_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to->narrow[i] = nulls != NULL && get_bit(nulls, first + i);
	clear_flags(to);
}

static void
load_constant(const rhh_program *program, uint32_t number, rhh_buffer *to, uint32_t n)
{
	const uint64_t *words = program->constants[number];
	const rhh_int128 value = (rhh_int128) ((rhh_uint128) words[1] << 64 | words[0]);

	/* (of a negative number that is counted without one) */
	if (to->wide != NULL && rhh_bits_of(value) < SMALL_BITS)
		to->bits = (uint8_t) (rhh_bits_of(value) + 1);
	for (uint32_t i = 0; i < n; i++)
	{
		if (to->wide != NULL)
			to->wide[i] = value;
		to->narrow[i] = (int64_t) words[0];
	}
	clear_flags(to);
	if (program->null_constant[number])
	{
		memset(to->flags, RHH_NULL, n);
		to->clean = false;
	}
}

/* ---------- small numbers ---------- */

/* How many bits the absolute values of a buffer have at most. */
INLINE uint32_t
bits_of(rhh_buffer *buffer, uint32_t n)
{
	uint64_t	any = 0;

	if (buffer->bits != UNKNOWN_BITS || buffer->wide != NULL)
		return buffer->bits;
	for (uint32_t i = 0; i < n; i++)
		any |= (uint64_t) (buffer->narrow[i] ^ buffer->narrow[i] >> 63);
	/* (the absolute value of the least number of so many bits has one more) */
	buffer->bits = (uint8_t) (any == 0 ? 1 : 65 - __builtin_clzll(any));
	return buffer->bits;
}

/* Writes small numbers where an operation looks for numbers of 128 bits. */
INLINE void
widen(const rhh_buffer *buffer, uint32_t n)
{
	for (uint32_t i = 0; buffer->wide != NULL && buffer->bits != UNKNOWN_BITS && i < n; i++)
		buffer->wide[i] = buffer->narrow[i];
}

/* Runs an operation whose operands are small, and whose results are; false: it is another one. */
INLINE bool
run_small(uint8_t code, rhh_buffer *a, rhh_buffer *b, rhh_buffer *to, uint32_t n)
{
	uint32_t	bits;

#define EACH(expr) \
	for (uint32_t i = 0; i < n; i++) \
		to->narrow[i] = (expr)

	switch (code)
	{
		case RHH_OP_MUL_DECIMAL:
		case RHH_OP_RESCALE_DECIMAL:
		case RHH_OP_MUL_TO_DECIMAL128:
		case RHH_OP_MUL_DECIMAL128:
		case RHH_OP_RESCALE_DECIMAL128:
			bits = bits_of(a, n) + bits_of(b, n);
			if (bits > SMALL_BITS)
				return false;
			EACH(a->narrow[i] * b->narrow[i]);
			break;
		case RHH_OP_ADD_DECIMAL:
		case RHH_OP_ADD_DECIMAL128:
		case RHH_OP_SUB_DECIMAL:
		case RHH_OP_SUB_DECIMAL128:
			bits = 1 + (bits_of(a, n) > bits_of(b, n) ? bits_of(a, n) : bits_of(b, n));
			if (bits > SMALL_BITS)
				return false;
			if (code == RHH_OP_ADD_DECIMAL || code == RHH_OP_ADD_DECIMAL128)
				EACH(a->narrow[i] + b->narrow[i]);
			else
				EACH(a->narrow[i] - b->narrow[i]);
			break;
		case RHH_OP_NEG_DECIMAL:
		case RHH_OP_NEG_DECIMAL128:
			bits = bits_of(a, n);
			if (bits > SMALL_BITS)
				return false;
			EACH(-a->narrow[i]);
			break;
		case RHH_OP_INT_AS_DECIMAL128:
		case RHH_OP_DECIMAL_AS_DECIMAL128:
			bits = bits_of(a, n);
			if (bits > SMALL_BITS)
				return false;
			EACH(a->narrow[i]);
			break;
		case RHH_OP_LIMB_1_OF_1:
		case RHH_OP_LIMB_1_OF_2:
		case RHH_OP_LIMB_1_OF_3:
			bits = bits_of(a, n);
			if (bits > RHH_LIMB_BITS)
				return false;
			EACH(a->narrow[i]);
			break;
		case RHH_OP_LIMB_2_OF_2:
		case RHH_OP_LIMB_2_OF_3:
		case RHH_OP_LIMB_3_OF_3:
			if (bits_of(a, n) > RHH_LIMB_BITS)
				return false;
			bits = 1;
			EACH(0);
			break;
		case RHH_OP_EQ_DECIMAL128:
		case RHH_OP_LT_DECIMAL128:
		case RHH_OP_LE_DECIMAL128:
			if (bits_of(a, n) > SMALL_BITS || bits_of(b, n) > SMALL_BITS)
				return false;
			bits = 1;
			if (code == RHH_OP_EQ_DECIMAL128)
				EACH(a->narrow[i] == b->narrow[i]);
			else if (code == RHH_OP_LT_DECIMAL128)
				EACH(a->narrow[i] < b->narrow[i]);
			else
				EACH(a->narrow[i] <= b->narrow[i]);
			break;
		default:
			return false;
	}
#undef EACH
	to->bits = (uint8_t) bits;
	return true;
}

/*
 * An operation's operand or result, by the letters of RHH_OPERATIONS(): in variables, since bytes that are stored
 * could be anything, also where the arrays are.
 */
#define ARRAY_N(buffer) buffer##_narrow
#define ARRAY_W(buffer) buffer##_wide
#define VALUE_N(buffer) buffer##_narrow[i]
#define VALUE_W(buffer) buffer##_wide[i]
#define VALUE__(buffer) 0
#define FLAGS_N(buffer) buffer##_flags[i]
#define FLAGS_W(buffer) buffer##_flags[i]
#define FLAGS__(buffer) 0

/* b and c are null pointers if the operation does not take them. */
INLINE void
run_op(uint8_t code, rhh_buffer *a, rhh_buffer *b, rhh_buffer *c, rhh_buffer *to, uint32_t n)
{
	const int64_t *a_narrow = a->narrow;
	const int64_t *b_narrow = b == NULL ? NULL : b->narrow;
	const int64_t *c_narrow = c == NULL ? NULL : c->narrow;
	const rhh_int128 *a_wide = a->wide;
	const rhh_int128 *b_wide = b == NULL ? NULL : b->wide;
	const rhh_int128 *c_wide = c == NULL ? NULL : c->wide;
	const uint8_t *a_flags = a->flags;
	const uint8_t *b_flags = b == NULL ? NULL : b->flags;
	const uint8_t *c_flags = c == NULL ? NULL : c->flags;
	int64_t    *to_narrow = to->narrow;
	rhh_int128 *to_wide = to->wide;
	uint8_t    *to_flags = to->flags;
	const bool	clean = a->clean && (b == NULL || b->clean) && (c == NULL || c->clean);

	/* of strict operations that is all, unless they are bad themselves */
	if (clean)
		clear_flags(to);
	else
	{
		for (uint32_t i = 0; i < n; i++)
			to_flags[i] = a_flags[i] | (b != NULL ? b_flags[i] : 0);
		to->clean = false;
	}
	if (run_small(code, a, b, to, n))
		return;
	widen(a, n);
	if (b != NULL)
		widen(b, n);
	if (c != NULL)
		widen(c, n);

#define RUN(name, tr, ta, tb) \
		case RHH_OP_##name: \
			for (uint32_t i = 0; i < n; i++) \
				to_flags[i] |= (uint8_t) ((rhh_do_##name(VALUE_##ta(a), VALUE_##tb(b), \
														 &ARRAY_##tr(to)[i]) & \
										   ((to_flags[i] & RHH_NULL) == 0)) * RHH_BAD); \
			break;
#define RUN_LOGIC(name, tr, ta, tb, tc) \
		case RHH_OP_##name: \
			for (uint32_t i = 0; clean && i < n; i++) \
				(void) rhh_do_##name(VALUE_##ta(a), 0, VALUE_##tb(b), 0, VALUE_##tc(c), 0, \
									 &ARRAY_##tr(to)[i]); \
			for (uint32_t i = 0; !clean && i < n; i++) \
				to_flags[i] = rhh_do_##name(VALUE_##ta(a), FLAGS_##ta(a), \
											VALUE_##tb(b), FLAGS_##tb(b), \
											VALUE_##tc(c), FLAGS_##tc(c), \
											&ARRAY_##tr(to)[i]); \
			break;

	switch (code)
	{
		RHH_OPERATIONS(RUN)
		RHH_LOGIC(RUN_LOGIC)
		default:
			break;
	}
#undef RUN
#undef RUN_LOGIC
	to->clean = !any_byte(to_flags, n);
}

/* Stores results in 64 bits, of which none is NULL or bad. */
INLINE void
store_narrow(const int64_t *from, uint8_t *values, uint32_t bytes, size_t first, uint32_t n)
{
#define STORE(T) \
	for (uint32_t i = 0; i < n; i++) \
		((T *) values)[first + i] = (T) from[i]

	switch (bytes)
	{
		case 1:
			STORE(int8_t);
			break;
		case 2:
			STORE(int16_t);
			break;
		case 4:
			STORE(int32_t);
			break;
		case 16:
			STORE(rhh_int128);
			break;
		default:
			STORE(int64_t);
			break;
	}
#undef STORE
}

/* Also marks in bad, a byte for each row, where the result is. */
INLINE void
store_column(const rhh_buffer *from, uint8_t *values, uint32_t bytes, uint8_t *nulls,
			 size_t first, uint32_t n, uint8_t *bad)
{
	const bool	narrow = from->wide == NULL || from->bits != UNKNOWN_BITS;

	/* chunks begin at multiples of 8 rows */
	if (nulls != NULL)
		memset(nulls + first / 8, 0, (n + 7) / 8);
	if (narrow && from->clean)
	{
		store_narrow(from->narrow, values, bytes, first, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		const rhh_int128 value = from->flags[i] ? 0 : narrow ? from->narrow[i] : from->wide[i];

		rhh_program_store(values, bytes, first + i, (int64_t) value, (int64_t) (value >> 64));
		bad[i] |= (from->flags[i] & RHH_BAD) != 0;
	}
	for (uint32_t i = 0; nulls != NULL && i < n; i++)
		nulls[(first + i) / 8] |= (uint8_t) ((from->flags[i] & RHH_NULL) << (i % 8));
}

/* Marks the rows of which the filter is bad, and those that it drops.  Returns how many it keeps. */
INLINE uint32_t
filter_rows(const rhh_buffer *filter, uint32_t n, uint8_t *bad, uint8_t *dropped)
{
	const int64_t *values = filter->narrow;
	const uint8_t *flags = filter->flags;
	uint32_t	kept = 0;

	if (filter->clean)
	{
		for (uint32_t i = 0; i < n; i++)
			dropped[i] = values[i] == 0;
		memset(bad, 0, n);
	}
	else
	{
		for (uint32_t i = 0; i < n; i++)
		{
			bad[i] = (flags[i] & RHH_BAD) != 0;
			dropped[i] = (flags[i] != 0 || values[i] == 0) && !bad[i];
		}
	}
	for (uint32_t i = 0; i < n; i++)
		kept += !(bad[i] | dropped[i]);
	return kept;
}

/* Bytes that are 0 or 1 as bits, which are at the beginning of one of dst's bytes.  Up to a multiple of 8 the bytes behind them are 0. */
INLINE uint32_t
store_bits(uint8_t *dst, const uint8_t *bytes, uint32_t n)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < n; i += 8)
	{
		uint8_t		bits = 0;

		for (uint32_t k = 0; k < 8; k++)
			bits |= (uint8_t) (bytes[i + k] << k);
		dst[i / 8] = bits;
	}
	for (uint32_t i = 0; i < n; i++)
		count += bytes[i];
	return count;
}

/* Computes operations of some rows of columns, up to but without operation end; constants are there. */
INLINE void
run_ops(const rhh_program *program, uint32_t first_op, uint32_t end, rhh_buffer *buffers,
		const uint8_t *column_bytes, uint8_t *const *values, uint8_t *const *nulls,
		uint32_t first, uint32_t n)
{
	for (uint32_t i = first_op; i < end; i++)
	{
		const rhh_op *op = &program->ops[i];
		const rhh_signature is = signatures[op->code];

		if (op->code == RHH_OP_CONSTANT || op->code == RHH_OP_CONSTANT128)
			continue;
		buffers[i].bits = UNKNOWN_BITS;
		if (op->code == RHH_OP_COLUMN)
			load_column(&buffers[i], values[op->a], column_bytes[op->a], nulls[op->a], first, n);
		else if (op->code == RHH_OP_COLUMN_IS_NULL)
			load_is_null(&buffers[i], nulls[op->a], first, n);
		else if (op->code == RHH_OP_COLUMN_OF_BYTES)
			load_bytes(&buffers[i], values[op->a], nulls[op->a], first, n);
		else
			run_op(op->code, &buffers[op->a], is.b == '_' ? NULL : &buffers[op->b],
				   is.c == '_' ? NULL : &buffers[op->c], &buffers[i], n);
	}
}

/* Gives the operations of a program their memory, and loads constants for up to n rows at a time. */
static void
start_buffers(const rhh_program *program, rhh_buffer *buffers, void *scratch, uint32_t n)
{
	uint8_t    *at = scratch;

	/* those that need more alignment come first */
	for (uint32_t i = 0; i < program->n_ops; i++)
	{
		const bool	wide = rhh_op_is_wide(program->ops[i].code);

		buffers[i].wide = wide ? (rhh_int128 *) at : NULL;
		at += wide ? CHUNK_ROWS * sizeof(rhh_int128) : 0;
	}
	for (uint32_t i = 0; i < program->n_ops; i++, at += CHUNK_ROWS * sizeof(int64_t))
		buffers[i].narrow = (int64_t *) at;
	for (uint32_t i = 0; i < program->n_ops; i++, at += CHUNK_ROWS)
	{
		const rhh_op *op = &program->ops[i];

		buffers[i].flags = at;
		buffers[i].bits = UNKNOWN_BITS;
		if (op->code == RHH_OP_CONSTANT || op->code == RHH_OP_CONSTANT128)
			load_constant(program, op->a, &buffers[i], n);
	}
}

INLINE rhh_program_rows
run_program(const rhh_program *program, const uint8_t *column_bytes,
			uint8_t *const *values, uint8_t *const *nulls, uint32_t n,
			void *scratch, uint8_t *bad, uint8_t *dropped)
{
	const uint32_t n_filter_ops = program->has_filter ? program->filter + 1u : 0;
	rhh_program_rows rows = {0, 0};
	rhh_buffer	buffers[RHH_MAX_OPS];

	start_buffers(program, buffers, scratch, n < CHUNK_ROWS ? n : CHUNK_ROWS);
	memset(bad, 0, (n + 7) / 8);
	memset(dropped, 0, (n + 7) / 8);
	for (uint32_t first = 0; first < n; first += CHUNK_ROWS)
	{
		uint32_t	m = n - first < CHUNK_ROWS ? n - first : CHUNK_ROWS;
		uint32_t	kept = m;
		uint8_t		bad_rows[CHUNK_ROWS] = {0};
		uint8_t		dropped_rows[CHUNK_ROWS] = {0};

		/* the filter, and the rest if it keeps a row; in a loop, so that all operations are inlined once */
		for (uint32_t op = 0, end = n_filter_ops; op < program->n_ops && kept > 0;
			 op = end, end = program->n_ops)
		{
			run_ops(program, op, end, buffers, column_bytes, values, nulls, first, m);
			if (program->has_filter && op == 0)
				kept = filter_rows(&buffers[program->filter], m, bad_rows, dropped_rows);
		}
		for (uint32_t r = 0; r < program->n_results && kept > 0; r++)
		{
			uint32_t	c = program->results[r].column;

			store_column(&buffers[program->results[r].op], values[c], column_bytes[c],
						 nulls[c], first, m, bad_rows);
		}
		if (!any_byte(bad_rows, m) && !any_byte(dropped_rows, m))
			continue;
		for (uint32_t i = 0; i < m; i++)
			bad_rows[i] &= !dropped_rows[i];
		rows.n_bad += store_bits(bad + first / 8, bad_rows, m);
		rows.n_dropped += store_bits(dropped + first / 8, dropped_rows, m);
	}
	return rows;
}

#ifdef __x86_64__
/* Integers of 64 bits are compared four at a time, which not all processors of this kind can do. */
static __attribute__((target("avx2"))) rhh_program_rows
run_program_avx2(const rhh_program *program, const uint8_t *column_bytes,
				 uint8_t *const *values, uint8_t *const *nulls, uint32_t n,
				 void *scratch, uint8_t *bad, uint8_t *dropped)
{
	return run_program(program, column_bytes, values, nulls, n, scratch, bad, dropped);
}
#endif

rhh_program_rows
rhh_program_run(const rhh_program *program, const uint8_t *column_bytes,
				uint8_t *const *values, uint8_t *const *nulls, uint32_t n,
				void *scratch, uint8_t *bad, uint8_t *dropped)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return run_program_avx2(program, column_bytes, values, nulls, n, scratch, bad, dropped);
#endif
	return run_program(program, column_bytes, values, nulls, n, scratch, bad, dropped);
}

/* Is the result of operation number one of this class, and is it before operation i? */
static bool
is_operand(const rhh_program *program, uint32_t i, uint32_t number, char class)
{
	return number < i && rhh_op_is_wide(program->ops[number].code) == (class == 'W');
}

bool
rhh_program_check(const rhh_program *program, uint32_t n_columns,
				  const uint8_t *column_bytes, const char **why)
{
	bool		written[256] = {false};

	*why = NULL;
	if (program->n_ops > RHH_MAX_OPS || program->n_constants > RHH_MAX_CONSTANTS ||
		program->n_results > RHH_MAX_RESULTS)
		*why = "a program is too long";
	for (uint32_t r = 0; *why == NULL && r < program->n_results; r++)
	{
		uint32_t	c = program->results[r].column;

		if (c >= n_columns || written[c])
			*why = "a result of a program is no column, or is one twice";
		written[c] = true;
	}
	for (uint32_t i = 0; *why == NULL && i < program->n_ops; i++)
	{
		const rhh_op *op = &program->ops[i];
		rhh_signature is;

		if (op->code >= RHH_N_OPS)
		{
			*why = "a program has an unknown operation";
			break;
		}
		is = signatures[op->code];
		if (op->code == RHH_OP_COLUMN)
		{
			if (op->a >= n_columns || column_bytes[op->a] > 8 || written[op->a])
				*why = "a program reads what is no column, or its own result";
		}
		else if (op->code == RHH_OP_COLUMN_OF_BYTES)
		{
			if (op->a >= n_columns || column_bytes[op->a] != 16 || written[op->a])
				*why = "a program reads what is no column of 16 bytes, or its own result";
		}
		else if (op->code == RHH_OP_CONSTANT || op->code == RHH_OP_CONSTANT128)
		{
			if (op->a >= program->n_constants)
				*why = "a program has a constant that is not there";
		}
		else if (op->code == RHH_OP_COLUMN_IS_NULL)
		{
			if (op->a >= n_columns || written[op->a])
				*why = "a program reads what is no column, or its own result";
		}
		else if (!is_operand(program, i, op->a, is.a) ||
				 (is.b != '_' && !is_operand(program, i, op->b, is.b)) ||
				 (is.c != '_' && !is_operand(program, i, op->c, is.c)))
			*why = "an operand of a program is no result before it, or of another width";
		else if (op->b >= i || op->c >= i)
			*why = "an operation of a program has an operand that it does not take";
	}
	/* now that all operations are known ones */
	if (*why == NULL && program->has_filter &&
		!is_operand(program, program->n_ops, program->filter, 'N'))
		*why = "the filter of a program is not a number of 64 bits";
	for (uint32_t r = 0; *why == NULL && r < program->n_results; r++)
	{
		const uint8_t op = program->results[r].op;

		if (op >= program->n_ops ||
			rhh_op_is_wide(program->ops[op].code) != (column_bytes[program->results[r].column] == 16))
			*why = "a result of a program has another width than its column";
	}
	return *why == NULL;
}

/* Is it a constant that divides every integer without an overflow? */
static bool
is_safe_divisor(const rhh_program *program, const rhh_op *op)
{
	return op->code == RHH_OP_CONSTANT && (int64_t) program->constants[op->a][0] != 0 &&
		(int64_t) program->constants[op->a][0] != -1;
}

bool
rhh_program_may_be_bad(const rhh_program *program)
{
	for (uint32_t i = 0; i < program->n_ops; i++)
		switch (program->ops[i].code)
		{
			case RHH_OP_DIV_INT2:
			case RHH_OP_DIV_INT4:
			case RHH_OP_DIV_INT8:
			case RHH_OP_MOD_INT8:
				if (!is_safe_divisor(program, &program->ops[program->ops[i].b]))
					return true;
				break;
			case RHH_OP_COLUMN:
			case RHH_OP_CONSTANT:
			case RHH_OP_CONSTANT128:
			case RHH_OP_COLUMN_IS_NULL:
			case RHH_OP_COLUMN_OF_BYTES:
			case RHH_OP_NEG_FLOAT4:
			case RHH_OP_NEG_FLOAT8:
			case RHH_OP_INT_AS_FLOAT8:
			case RHH_OP_FLOAT4_AS_FLOAT8:
			case RHH_OP_INT_AS_DECIMAL128:
			case RHH_OP_DECIMAL_AS_DECIMAL128:
			case RHH_OP_LIMBS_AS_DECIMAL128:
			case RHH_OP_EQ_INT8:
			case RHH_OP_LT_INT8:
			case RHH_OP_LE_INT8:
			case RHH_OP_LT_OID:
			case RHH_OP_LE_OID:
			case RHH_OP_EQ_FLOAT4:
			case RHH_OP_LT_FLOAT4:
			case RHH_OP_LE_FLOAT4:
			case RHH_OP_EQ_FLOAT8:
			case RHH_OP_LT_FLOAT8:
			case RHH_OP_LE_FLOAT8:
			case RHH_OP_EQ_DECIMAL128:
			case RHH_OP_LT_DECIMAL128:
			case RHH_OP_LE_DECIMAL128:
			case RHH_OP_EQUAL_FLOAT4:
			case RHH_OP_EQUAL_FLOAT8:
			case RHH_OP_ORDER_FLOAT4:
			case RHH_OP_ORDER_FLOAT8:
			case RHH_OP_ORDER_OID:
			case RHH_OP_PRODUCT_FLOAT8:
			case RHH_OP_AS_BYTES:
			case RHH_OP_NOT:
			case RHH_OP_AND:
			case RHH_OP_OR:
			case RHH_OP_IS_TRUE:
			case RHH_OP_IS_NULL:
			case RHH_OP_IS_NULL128:
			case RHH_OP_IF:
			case RHH_OP_IF128:
				break;
			default:
				return true;
		}
	return false;
}
