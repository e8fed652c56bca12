/*
 * rhh_programs.cuh
 *		Computes columns of a piece of the joins' output of other columns of it
 *		(rhh_program.h), and sorts out the rows for which that cannot be done.
 *
 *		compute		runs the program for each row, and marks the bad rows; those that its
 *					filter drops have not become rows (rhh_joins.cuh)
 *		bad last	moves these behind the others, and takes them out of the number of
 *					rows, so that the kernels that aggregate the piece do not see them
 *
 * Both follow the kernels that make the piece in the stream, so the host waits for neither.
 */
#ifndef RHH_PROGRAMS_CUH
#define RHH_PROGRAMS_CUH

#include "rhh_program.h"
#include "cuda/rhh_kernels.cuh"

/* What a thread has computed so far. */
struct rhh_results
{
	uint64_t	words[RHH_MAX_OPS][2];	/* of each operation: low, high */
	uint8_t		flags[RHH_MAX_OPS];

	__device__ RHH_INLINE bool may_have_flags() const
	{
		return true;
	}
	__device__ RHH_INLINE uint8_t flags_of(uint32_t i) const
	{
		return flags[i];
	}
};

/* A result. */
struct rhh_result_value
{
	uint64_t	low;
	uint64_t	high;			/* if it is wide */
	bool		wide;			/* it has 16 bytes */
	uint8_t		flags;
};

/* Operands and results by the letters of RHH_OPERATIONS(). */
#define RHH_TYPE_N int64_t
#define RHH_TYPE_W rhh_int128
#define RHH_OPERAND_N(low, words) ((int64_t) (low))
#define RHH_OPERAND_W(low, words) ((rhh_int128) ((rhh_uint128) (words)[1] << 64 | (low)))
#define RHH_OPERAND__(low, words) 0
#define RHH_FLAGS_N(flags) (flags)
#define RHH_FLAGS_W(flags) (flags)
#define RHH_FLAGS__(flags) 0
#define RHH_KEEP_N(result, value) ((result).low = (uint64_t) (value))
#define RHH_KEEP_W(result, value) \
	((result).low = (uint64_t) (value), (result).high = (uint64_t) ((rhh_uint128) (value) >> 64), (result).wide = true)

/*
 * Runs an operation that has operands, of which these are the places.  All operations have the code before and behind the switch
 * in common, as instructions are waited for where there are many of them.
 */
template <class Results>
RHH_DEV rhh_result_value
rhh_run_op(uint8_t code, uint32_t at_a, uint32_t at_b, uint32_t at_c, const Results *results)
{
	const uint64_t *a = results->words[at_a];
	const uint64_t *b = results->words[at_b];
	const uint64_t *c = results->words[at_c];
	const uint64_t a_low = a[0];
	const uint64_t b_low = b[0];
	uint8_t		a_flags = 0;
	uint8_t		b_flags = 0;
	uint8_t		c_flags = 0;
	rhh_result_value result = {0, 0, false, 0};
	bool		bad = false;

#define RHH_RUN(name, tr, ta, tb) \
	case RHH_OP_##name: \
		{ \
			RHH_TYPE_##tr value; \
			\
			bad = rhh_do_##name(RHH_OPERAND_##ta(a_low, a), RHH_OPERAND_##tb(b_low, b), &value); \
			RHH_KEEP_##tr(result, value); \
			result.flags = (uint8_t) (a_flags | RHH_FLAGS_##tb(b_flags)); \
		} \
		break;
#define RHH_RUN_LOGIC(name, tr, ta, tb, tc) \
	case RHH_OP_##name: \
		{ \
			RHH_TYPE_##tr value; \
			\
			result.flags = rhh_do_##name(RHH_OPERAND_##ta(a_low, a), RHH_FLAGS_##ta(a_flags), \
										 RHH_OPERAND_##tb(b_low, b), RHH_FLAGS_##tb(b_flags), \
										 RHH_OPERAND_##tc(c[0], c), RHH_FLAGS_##tc(c_flags), &value); \
			RHH_KEEP_##tr(result, value); \
		} \
		break;

	if (results->may_have_flags())
	{
		a_flags = results->flags_of(at_a);
		b_flags = results->flags_of(at_b);
		c_flags = results->flags_of(at_c);
	}
	switch (code)
	{
		RHH_OPERATIONS(RHH_RUN)
		RHH_LOGIC(RHH_RUN_LOGIC)
		default:
			break;
	}
#undef RHH_RUN
#undef RHH_RUN_LOGIC
	if (bad && (result.flags & RHH_NULL) == 0)
		result.flags = RHH_BAD;
	return result;
}

/*
 * Computes the first n_ops operations of a program in a row.  load(column, words) returns
 * whether the column is NULL there; of at most 8 bytes words[0] is the value as operations
 * take it, of 16 both are the words as they are stored.
 */
template <class Load>
RHH_DEV void
rhh_run_ops(const rhh_program &program, uint32_t n_ops, const Load &load, rhh_results *results)
{
	for (uint32_t i = 0; i < n_ops; i++)
	{
		const rhh_op op = program.ops[i];
		uint64_t	words[2] = {0, 0};
		bool		null;

		switch (op.code)
		{
			case RHH_OP_COLUMN:
				null = load(op.a, words);
				results->words[i][0] = words[0];
				break;
			case RHH_OP_COLUMN_IS_NULL:
				results->words[i][0] = load(op.a, words);
				null = false;
				break;
			case RHH_OP_COLUMN_OF_BYTES:
				null = load(op.a, words);
				rhh_order_bytes(words[0], words[1], results->words[i]);
				break;
			case RHH_OP_CONSTANT:
			case RHH_OP_CONSTANT128:
				null = program.null_constant[op.a] != 0;
				results->words[i][0] = program.constants[op.a][0];
				results->words[i][1] = program.constants[op.a][1];
				break;
			default:
				{
					const rhh_result_value value = rhh_run_op(op.code, op.a, op.b, op.c, results);

					results->words[i][0] = value.low;
					results->words[i][1] = value.high;
					results->flags[i] = value.flags;
				}
				continue;
		}
		results->flags[i] = null ? RHH_NULL : 0;
	}
}

/* Loads columns of a row of a piece. */
struct rhh_load_of_piece
{
	const rhh_row_columns &columns;
	uint32_t	row;

	__device__ RHH_INLINE bool operator()(uint32_t c, uint64_t *words) const
	{
		const uint32_t nulls = columns.nulls_offset[c];
		const uint8_t *values = columns.base + columns.values_offset[c];

		if (columns.bytes[c] <= 8)
			words[0] = (uint64_t) rhh_program_load(values, columns.bytes[c], row);
		else
		{
			words[0] = (uint64_t) rhh_program_load(values, 8, 2 * (size_t) row);
			words[1] = (uint64_t) rhh_program_load(values, 8, 2 * (size_t) row + 1);
		}
		return nulls != 0 && columns.base[nulls + row] != 0;
	}
};

/*
 * Runs the program for a row that its filter does not drop, and stores its results.  Returns
 * whether the filter or a result is bad.
 */
RHH_DEV bool
rhh_compute_row(const rhh_program &program, const rhh_row_columns &columns, uint32_t row)
{
	const rhh_load_of_piece load = {columns, row};
	rhh_results results;
	bool		bad;

	rhh_run_ops(program, program.n_ops, load, &results);
	bad = program.has_filter && (results.flags[program.filter] & RHH_BAD) != 0;
	for (uint32_t r = 0; r < program.n_results; r++)
	{
		const uint32_t op = program.results[r].op;
		const uint32_t c = program.results[r].column;
		const uint8_t flags = results.flags[op];

		rhh_program_store(columns.base + columns.values_offset[c], columns.bytes[c], row,
						  flags != 0 ? 0 : (int64_t) results.words[op][0],
						  flags != 0 ? 0 : (int64_t) results.words[op][1]);
		if (columns.nulls_offset[c] != 0)
			columns.base[columns.nulls_offset[c] + row] = flags & RHH_NULL;
		bad |= (flags & RHH_BAD) != 0;
	}
	return bad;
}

/*
 * Runs the program for the counts->n_rows rows of a piece.  bad, a bitmap of them, gets
 * the bad ones, and counts->n_bad, which the caller has zeroed, their number.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_compute_kernel(const __grid_constant__ rhh_program program,
				   const __grid_constant__ rhh_row_columns columns, uint32_t *bad,
				   rhh_join_counts *counts)
{
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t n = counts->n_rows;

	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x + (threadIdx.x & ~31u); first < n;
		 first += (uint64_t) gridDim.x * blockDim.x)
	{
		uint32_t	row = (uint32_t) first + lane;
		uint32_t	bad_rows = __ballot_sync(RHH_WARP, row < n &&
											 rhh_compute_row(program, columns, row));

		if (lane != 0)
			continue;
		bad[first >> 5] = bad_rows;
		if (bad_rows != 0)
			atomicAdd(&counts->n_bad, (uint32_t) __popc(bad_rows));
	}
}

/* Swaps two rows of a piece. */
RHH_DEV void
rhh_swap_rows(const rhh_row_columns &columns, uint32_t a, uint32_t b)
{
	for (uint32_t c = 0; c < columns.n_columns; c++)
	{
		const uint32_t bytes = columns.bytes[c] > 8 ? 8 : columns.bytes[c];
		uint8_t    *values = columns.base + columns.values_offset[c];
		uint8_t    *nulls = columns.base + columns.nulls_offset[c];

		/* a value of 16 bytes is two of 8 */
		for (uint32_t half = 0; half < (columns.bytes[c] > 8 ? 2 : 1); half++)
		{
			const size_t at_a = columns.bytes[c] > 8 ? 2 * (size_t) a + half : a;
			const size_t at_b = columns.bytes[c] > 8 ? 2 * (size_t) b + half : b;
			int64_t		value = rhh_program_load(values, bytes, at_a);

			rhh_program_store(values, bytes, at_a, rhh_program_load(values, bytes, at_b), 0);
			rhh_program_store(values, bytes, at_b, value, 0);
		}
		if (columns.nulls_offset[c] != 0)
		{
			uint8_t		null = nulls[a];

			nulls[a] = nulls[b];
			nulls[b] = null;
		}
	}
}

/*
 * Moves the bad rows of a piece behind the others, and lowers counts->n_rows by
 * counts->n_bad: swaps each bad row before the new end with a good one from there on.  As
 * bad rows are rare, it is one block.  list has room for as many numbers as the piece has
 * rows at most, most_rows.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_bad_last_kernel(const __grid_constant__ rhh_row_columns columns, const uint32_t *bad,
					uint32_t *list, uint32_t most_rows, rhh_join_counts *counts)
{
	__shared__ uint64_t warp_sums[RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	const uint32_t n = counts->n_rows;
	const uint32_t end = n - counts->n_bad;
	const uint32_t n_words = (n + 31) / 32;
	uint32_t   *holes = list;	/* bad rows before the end, and ... */
	uint32_t   *others = list + most_rows / 2;	/* ... as many good ones behind it */
	uint64_t	sums = 0;		/* of both; the second in the high half */

	if (end == n)
		return;
	for (uint32_t first = 0; first < n_words; first += blockDim.x)
	{
		const uint32_t w = first + threadIdx.x;
		const uint32_t rows = w < n / 32 ? UINT32_MAX : w == n / 32 ? (1u << n % 32) - 1 : 0;
		const uint32_t before = w < end / 32 ? UINT32_MAX : w == end / 32 ? (1u << end % 32) - 1 : 0;
		uint32_t	is_bad = w < n_words ? bad[w] : 0;
		uint32_t	hole = is_bad & before;
		uint32_t	other = ~is_bad & rows & ~before;
		uint64_t	all;
		uint64_t	at = sums +
			rhh_block_scan<RHH_CUDA_BLOCK_THREADS>((uint64_t) __popc(other) << 32 | __popc(hole),
												   warp_sums, &all);

		for (uint32_t i = (uint32_t) at; hole != 0; hole &= hole - 1)
			holes[i++] = w * 32 + (uint32_t) __ffs((int) hole) - 1;
		for (uint32_t i = (uint32_t) (at >> 32); other != 0; other &= other - 1)
			others[i++] = w * 32 + (uint32_t) __ffs((int) other) - 1;
		sums += all;
		__syncthreads();
	}
	for (uint32_t i = threadIdx.x; i < (uint32_t) sums; i += blockDim.x)
		rhh_swap_rows(columns, holes[i], others[i]);
	if (threadIdx.x == 0)
		counts->n_rows = end;
}

#undef RHH_TYPE_N
#undef RHH_TYPE_W
#undef RHH_OPERAND_N
#undef RHH_OPERAND_W
#undef RHH_OPERAND__
#undef RHH_FLAGS_N
#undef RHH_FLAGS_W
#undef RHH_FLAGS__
#undef RHH_KEEP_N
#undef RHH_KEEP_W

#endif							/* RHH_PROGRAMS_CUH */
