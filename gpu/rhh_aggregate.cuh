/*
 * rhh_aggregate.cuh
 *		Rows aggregated in shared memory first, so that the table sees each group
 *		of a block once instead of each row.
 *
 * A block has a local table of groups in its shared memory, aggregates a unit of
 * rows there, and then enters the groups into the table.  Where a local table
 * holds all groups of a batch, units are any rows.  Where it does not, the rows
 * are sorted by the high bits of their fingerprints first, in one pass or two,
 * into parts whose groups it holds; then a unit is (a piece of) a part.  Random
 * atomics in device memory run at 13.6 G/s on an H100, a pass moves 100 G rows
 * of 4 + 8 bytes a second.
 *
 *		look		how many groups are there, and how many rows has each part
 *		estimate	the one number that the host wants to know
 *		offsets		where parts begin
 *		units		parts cut into units
 *		scatter		columns to the parts' places
 *		aggregate	units into the table
 *
 * Aggregating in shared memory and partitioning for it: Karnagel, Mueller, Lohman
 * 2015 (GPU); Polychroniou and Ross 2013, Mueller et al. 2015 (CPU).  Counting
 * groups: Flajolet et al. 2007 (HyperLogLog).
 *
 * Rows for which the local table has no room, or whose group found no place in
 * the table, have touched nothing: they are marked in the batch's bitmap, and the
 * batch kernel (rhh_kernels.cuh) goes over them.
 */
#ifndef RHH_AGGREGATE_CUH
#define RHH_AGGREGATE_CUH

#include "rhh_groups.cuh"

/* ---------- looking ---------- */

#define RHH_SKETCH_BITS 12
#define RHH_SKETCH_REGISTERS (1u << RHH_SKETCH_BITS)
#define RHH_PASS_BITS 8			/* at most, of one pass */
#define RHH_PASS_PARTS (1u << RHH_PASS_BITS)

/*
 * Every step-th row.  The sketch has for each of 4096 classes of fingerprints the
 * most leading zeros seen, plus one, also by earlier looks: with so many its error
 * is 1.6 %.  counts: rows by the fingerprint's highest RHH_PASS_BITS bits, zeroed
 * before.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_look_kernel(const __grid_constant__ rhh_program prog, const __grid_constant__ rhh_rows rows,
				uint32_t step, uint32_t *sketch, uint32_t *part_counts)
{
	RHH_DYNAMIC_SHARED(uint32_t, shared);
	uint32_t   *registers = shared;
	uint32_t   *counts = shared + RHH_SKETCH_REGISTERS;
	const int	K = 4;
	const uint32_t n = (rows.n_rows - 1) / step + 1;

	for (uint32_t i = threadIdx.x; i < RHH_SKETCH_REGISTERS + RHH_PASS_PARTS; i += blockDim.x)
		shared[i] = 0;
	__syncthreads();
	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x * K; first < n;
		 first += (uint64_t) gridDim.x * blockDim.x * K)
	{
		rhh_some_rows<K> some;

		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			uint64_t	i = first + k * blockDim.x + threadIdx.x;

			some.valid[k] = i < n;
			some.row[k] = some.valid[k] ? (uint32_t) (i * step) : 0;
		}
		rhh_pack_keys(prog, rows, some);
		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			uint32_t	fp = some.fp[k];
			uint32_t   *at = &registers[fp & (RHH_SKETCH_REGISTERS - 1)];
			uint32_t	zeros = __clz((int) (fp | (RHH_SKETCH_REGISTERS - 1))) + 1;

			if (!some.valid[k])
				continue;
			atomicAdd(&counts[fp >> (32 - RHH_PASS_BITS)], 1u);
			if (!some.null_key[k] && *(volatile uint32_t *) at < zeros)
				atomicMax(at, zeros);
		}
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < RHH_SKETCH_REGISTERS; i += blockDim.x)
		if (rhh_load_shared32(&sketch[i]) < registers[i])
			atomicMax(&sketch[i], registers[i]);
	for (uint32_t i = threadIdx.x; i < RHH_PASS_PARTS; i += blockDim.x)
		if (counts[i] > 0)
			atomicAdd(&part_counts[i], counts[i]);
}

/* The sketch's number of groups, by one block; not less than 1. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_estimate_kernel(const uint32_t *sketch, uint64_t *n_groups)
{
	RHH_DYNAMIC_SHARED(uint64_t, totals);
	const float m = (float) RHH_SKETCH_REGISTERS;
	uint64_t	sum = 0;		/* of 2^-register, in units of 2^-32 */
	uint32_t	zeros = 0;

	for (uint32_t i = threadIdx.x; i < RHH_SKETCH_REGISTERS; i += blockDim.x)
	{
		sum += UINT64_C(1) << (32 - sketch[i]);
		zeros += sketch[i] == 0;
	}
	if (threadIdx.x < 2)
		totals[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd((unsigned long long *) &totals[0], (unsigned long long) sum);
	atomicAdd((unsigned long long *) &totals[1], (unsigned long long) zeros);
	__syncthreads();
	if (threadIdx.x == 0)
	{
		float		all = (float) totals[0] / 4294967296.0f;
		float		estimate = 0.7213f / (1.0f + 1.079f / m) * m * m / all;

		/* Few groups leave classes empty, and their number says more. */
		if (estimate < 2.5f * m && totals[1] > 0)
			estimate = m * logf(m / (float) totals[1]);
		*n_groups = estimate < 1.0f ? 1 : (uint64_t) estimate;
	}
}

/* ---------- partitioning ---------- */

/* Some consecutive rows, all of one part. */
struct rhh_unit
{
	uint32_t	first;
	uint32_t	n_rows;
	uint32_t	part;
};

/*
 * Units of a pass: of the table, or where there is none, of n_rows rows in one
 * part.
 */
struct rhh_units
{
	const rhh_unit *units;
	const uint32_t *n_units;
	uint32_t	n_rows;
	uint32_t	unit_rows;
};

RHH_DEV uint32_t
rhh_n_units(const rhh_units &u)
{
	return u.units != NULL ? *u.n_units : (u.n_rows - 1) / u.unit_rows + 1;
}

RHH_DEV rhh_unit
rhh_unit_at(const rhh_units &u, uint32_t i)
{
	rhh_unit	unit;

	if (u.units != NULL)
		return u.units[i];
	unit.first = i * u.unit_rows;
	unit.n_rows = u.n_rows - unit.first < u.unit_rows ? u.n_rows - unit.first : u.unit_rows;
	unit.part = 0;
	return unit;
}

/* Bits [shift, shift + bits) of a fingerprint: the part within its part. */
struct rhh_digit
{
	uint32_t	shift;
	uint32_t	bits;
};

RHH_DEV uint32_t
rhh_digit_of(const rhh_digit &digit, uint32_t fp)
{
	return fp >> digit.shift & ((1u << digit.bits) - 1);
}

/* Rows of each part of the second pass; counts[part << bits | digit] zeroed before. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_count_kernel(const __grid_constant__ rhh_program prog, const __grid_constant__ rhh_rows rows,
				 const __grid_constant__ rhh_units units, rhh_digit digit, uint32_t *counts)
{
	RHH_DYNAMIC_SHARED(uint32_t, local);
	const int	K = 4;

	for (uint32_t u = blockIdx.x; u < rhh_n_units(units); u += gridDim.x)
	{
		const rhh_unit unit = rhh_unit_at(units, u);

		for (uint32_t i = threadIdx.x; i < 1u << digit.bits; i += blockDim.x)
			local[i] = 0;
		__syncthreads();
		for (uint32_t first = 0; first < unit.n_rows; first += blockDim.x * K)
		{
			rhh_some_rows<K> some;

			RHH_UNROLL
			for (int k = 0; k < K; k++)
			{
				uint32_t	i = first + k * blockDim.x + threadIdx.x;

				some.valid[k] = i < unit.n_rows;
				some.row[k] = unit.first + (some.valid[k] ? i : 0);
			}
			rhh_pack_keys(prog, rows, some);
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				if (some.valid[k])
					atomicAdd(&local[rhh_digit_of(digit, some.fp[k])], 1u);
		}
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < 1u << digit.bits; i += blockDim.x)
			if (local[i] > 0)
				atomicAdd(&counts[unit.part << digit.bits | i], local[i]);
		__syncthreads();
	}
}

/*
 * Where parts begin and end, by a block of RHH_PASS_PARTS threads for each part of
 * the pass before, which end at before[] (NULL: there is none).  fold: counts has
 * so many more bits than the pass, and they are added up.
 */
static __global__ void __launch_bounds__(RHH_PASS_PARTS)
rhh_offsets_kernel(const uint32_t *counts, const uint32_t *before, uint32_t bits, uint32_t fold,
				   uint32_t *begins, uint32_t *ends)
{
	RHH_DYNAMIC_SHARED(uint32_t, sums);
	const uint32_t p = threadIdx.x;
	const uint32_t at = blockIdx.x << bits | p;
	const uint32_t start = before != NULL && blockIdx.x > 0 ? before[blockIdx.x - 1] : 0;
	uint32_t	own = 0;

	if (p < 1u << bits)
		for (uint32_t i = 0; i < 1u << fold; i++)
			own += counts[at << fold | i];
	sums[p] = own;
	__syncthreads();
	for (uint32_t step = 1; step < RHH_PASS_PARTS; step *= 2)
	{
		uint32_t	left = p >= step ? sums[p - step] : 0;

		__syncthreads();
		sums[p] += left;
		__syncthreads();
	}
	if (p < 1u << bits)
	{
		begins[at] = start + sums[p] - own;
		ends[at] = start + sums[p];
	}
}

/* Parts cut into units of at most unit_rows, in order; by one block. */
static __global__ void __launch_bounds__(RHH_CUDA_UNITS_THREADS)
rhh_units_kernel(const uint32_t *ends, uint32_t n_parts, uint32_t unit_rows, rhh_unit *units,
				 uint32_t *n_units)
{
	RHH_DYNAMIC_SHARED(uint32_t, sums);
	const uint32_t each = (n_parts + blockDim.x - 1) / blockDim.x;
	const uint32_t from = ::min(threadIdx.x * each, n_parts);
	const uint32_t to = ::min(from + each, n_parts);
	uint32_t	n = 0;
	uint32_t	at;

	for (uint32_t p = from; p < to; p++)
		n += (ends[p] - (p > 0 ? ends[p - 1] : 0) + unit_rows - 1) / unit_rows;
	sums[threadIdx.x] = n;
	__syncthreads();
	for (uint32_t step = 1; step < blockDim.x; step *= 2)
	{
		uint32_t	left = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;

		__syncthreads();
		sums[threadIdx.x] += left;
		__syncthreads();
	}
	at = sums[threadIdx.x] - n;
	for (uint32_t p = from; p < to; p++)
		for (uint32_t first = p > 0 ? ends[p - 1] : 0; first < ends[p]; first += unit_rows)
		{
			rhh_unit	unit = {first, ::min(ends[p] - first, unit_rows), p};

			units[at++] = unit;
		}
	if (threadIdx.x == blockDim.x - 1)
		*n_units = sums[threadIdx.x];
}

/*
 * Rows that a thread of the scatter kernel has at a time.  A unit of its blocks is
 * what all threads have.
 */
#define RHH_SCATTER_ITEMS 8
#define RHH_SCATTER_ROWS (RHH_SCATTER_ITEMS * RHH_CUDA_SCATTER_THREADS)
#define RHH_SCATTER_SHARED \
	(RHH_SCATTER_ROWS * (sizeof(uint64_t) + sizeof(uint16_t)) + \
	 (2 * RHH_PASS_PARTS + RHH_CUDA_SCATTER_THREADS / RHH_WARP_SIZE) * sizeof(uint32_t))

/* The places of a thread's rows in its block's order, and then in the output. */
struct rhh_places
{
	uint32_t	sorted[RHH_SCATTER_ITEMS];	/* of row k * threads + t */
	uint32_t	out[RHH_SCATTER_ITEMS]; /* of the one at k * threads + t of that */
};

/*
 * Moves one value a row, in the block's order, so that it leaves in runs.
 * buffer: of RHH_SCATTER_ROWS words.  A whole block.
 */
template <typename T, typename Load>
RHH_DEV void
rhh_move(const rhh_places &places, uint32_t n, uint64_t *buffer, T *out, uint32_t stride,
		 const Load &load)
{
	T		   *sorted = (T *) buffer;

	RHH_UNROLL
	for (int k = 0; k < RHH_SCATTER_ITEMS; k++)
	{
		uint32_t	i = k * RHH_CUDA_SCATTER_THREADS + threadIdx.x;

		if (i < n)
			sorted[places.sorted[k]] = load(i);
	}
	__syncthreads();
	RHH_UNROLL
	for (int k = 0; k < RHH_SCATTER_ITEMS; k++)
	{
		uint32_t	i = k * RHH_CUDA_SCATTER_THREADS + threadIdx.x;

		if (i < n)
			out[(size_t) places.out[k] * stride] = sorted[i];
	}
	__syncthreads();
}

template <typename T>
RHH_DEV void
rhh_move_column(const rhh_places &places, uint32_t n, uint64_t *buffer, const uint8_t *from,
				uint8_t *to, uint32_t first, uint32_t stride, uint32_t word)
{
	const T    *in = (const T *) from + (size_t) first * stride + word;

	rhh_move(places, n, buffer, (T *) to + word, stride,
			 [&](uint32_t i) { return in[(size_t) i * stride]; });
}

/*
 * Moves the columns of rows to where their parts begin, next[part << bits |
 * digit], which end up where they end.  out has bytes instead of bitmaps of NULLs
 * and, in ids, the numbers of the rows in the batch.
 */
static __global__ void __launch_bounds__(RHH_CUDA_SCATTER_THREADS)
rhh_scatter_rows_kernel(const __grid_constant__ rhh_program prog,
						const __grid_constant__ rhh_rows rows,
						const __grid_constant__ rhh_rows out,
						const __grid_constant__ rhh_units units, rhh_digit digit, uint32_t *next)
{
	RHH_DYNAMIC_SHARED(uint64_t, buffer);
	uint16_t   *digits = (uint16_t *) (buffer + RHH_SCATTER_ROWS);
	uint32_t   *count = (uint32_t *) (digits + RHH_SCATTER_ROWS);
	uint32_t   *base = count + RHH_PASS_PARTS;
	uint32_t   *warp_sums = base + RHH_PASS_PARTS;
	const uint32_t n_parts = 1u << digit.bits;
	const uint32_t t = threadIdx.x;
	const uint32_t lane = t & (RHH_WARP_SIZE - 1);

	for (uint32_t u = blockIdx.x; u < rhh_n_units(units); u += gridDim.x)
	{
		const rhh_unit unit = rhh_unit_at(units, u);
		const uint32_t n = unit.n_rows;
		rhh_some_rows<RHH_SCATTER_ITEMS> some;
		rhh_places	places;
		uint32_t	own,
					sum;

		for (uint32_t p = t; p < n_parts; p += blockDim.x)
			count[p] = 0;
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < RHH_SCATTER_ITEMS; k++)
		{
			uint32_t	i = k * RHH_CUDA_SCATTER_THREADS + t;

			some.valid[k] = i < n;
			some.row[k] = unit.first + (some.valid[k] ? i : 0);
		}
		rhh_pack_keys(prog, rows, some);
		RHH_UNROLL
		for (int k = 0; k < RHH_SCATTER_ITEMS; k++)
			if (some.valid[k])
				places.sorted[k] = atomicAdd(&count[rhh_digit_of(digit, some.fp[k])], 1u);
		__syncthreads();

		/* Exclusive sums of the counts: within warps, then over the warps. */
		own = t < n_parts ? count[t] : 0;
		sum = own;
		for (uint32_t step = 1; step < RHH_WARP_SIZE; step *= 2)
		{
			uint32_t	left = __shfl_up_sync((rhh_lanes) ~0ULL, sum, step);

			if (lane >= step)
				sum += left;
		}
		if (lane == RHH_WARP_SIZE - 1)
			warp_sums[t / RHH_WARP_SIZE] = sum;
		__syncthreads();
		if (t < n_parts)
		{
			uint32_t	start = sum - own;

			for (uint32_t w = 0; w < t / RHH_WARP_SIZE; w++)
				start += warp_sums[w];
			count[t] = start;
			/* Of the block's order: the output is so much further. */
			base[t] = own ? atomicAdd(&next[unit.part << digit.bits | t], own) - start : 0;
		}
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < RHH_SCATTER_ITEMS; k++)
			if (some.valid[k])
			{
				uint32_t	d = rhh_digit_of(digit, some.fp[k]);

				places.sorted[k] += count[d];
				digits[places.sorted[k]] = (uint16_t) d;
			}
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < RHH_SCATTER_ITEMS; k++)
		{
			uint32_t	i = k * RHH_CUDA_SCATTER_THREADS + t;

			places.out[k] = i < n ? base[digits[i]] + i : 0;
		}

		for (uint32_t c = 0; c < prog.n_columns; c++)
		{
			const uint8_t *from = rows.base + rows.values_offset[c];
			uint8_t    *to = (uint8_t *) out.base + out.values_offset[c];

			switch (prog.column_bytes[c])
			{
				case 1:
					rhh_move_column<uint8_t>(places, n, buffer, from, to, unit.first, 1, 0);
					break;
				case 2:
					rhh_move_column<uint16_t>(places, n, buffer, from, to, unit.first, 1, 0);
					break;
				case 4:
					rhh_move_column<uint32_t>(places, n, buffer, from, to, unit.first, 1, 0);
					break;
				case 16:
					rhh_move_column<uint64_t>(places, n, buffer, from, to, unit.first, 2, 1);
					rhh_move_column<uint64_t>(places, n, buffer, from, to, unit.first, 2, 0);
					break;
				default:
					rhh_move_column<uint64_t>(places, n, buffer, from, to, unit.first, 1, 0);
					break;
			}
			if (rows.nulls_offset[c] != 0)
				rhh_move(places, n, buffer, (uint8_t *) out.base + out.nulls_offset[c], 1,
						 [&](uint32_t i) { return (uint8_t) rhh_is_null(rows, c, unit.first + i); });
		}
		rhh_move(places, n, buffer, out.ids, 1,
				 [&](uint32_t i) { return rhh_row_id(rows, unit.first + i); });
	}
}

/* ---------- aggregating ---------- */

/*
 * A local table: n_slots records (a power of two) and one for SINGLE's NULL group,
 * in n_copies copies; lanes that are neighbours use different copies, so that
 * they do not wait for each other where there are few groups.
 *
 *		| tag | state words | padding to an odd number of words |
 *
 * The tag, of the first copy only, is the group's fingerprint (high) and one of its
 * rows; all ones while the record is free.  The odd number spreads records over
 * the banks.
 */
struct rhh_local
{
	uint64_t   *records;
	uint32_t	n_slots;
	uint32_t	n_copies;
	uint32_t	record_words;
};

#define RHH_LOCAL_FREE UINT64_MAX

static __host__ __device__ RHH_INLINE uint32_t
rhh_record_words(uint32_t n_state_words)
{
	return n_state_words < 2 ? 3 : (n_state_words + 1) | 1;
}

/* Words of shared memory behind the records. */
enum
{
	RHH_LOCAL_NULL_SEEN,
	RHH_LOCAL_LEFTOVER,
	RHH_LOCAL_EXTRA_WORDS
};

RHH_DEV uint64_t *
rhh_record(const rhh_local &local, uint32_t copy, uint32_t slot)
{
	return local.records + (copy * (local.n_slots + 1) + slot) * local.record_words;
}

/*
 * The slot of a row's group, added if ADD and there is room near; RHH_NO_GROUP if
 * not found or added.  Any thread by itself.  Records are never freed, so whether
 * a key has a slot does not change once it was looked for.
 */
template <bool VERIFY, bool ADD>
RHH_DEV uint32_t
rhh_local_slot(const rhh_local &local, const rhh_program &prog, const rhh_rows &rows, uint32_t row,
			   uint32_t fp)
{
	const uint64_t mine = (uint64_t) fp << 32 | row;
	uint32_t	i = fp;

	for (int probe = 0; probe < RHH_CUDA_LOCAL_PROBES; probe++, i++)
	{
		uint64_t   *tag = rhh_record(local, 0, i & (local.n_slots - 1));
		uint64_t	seen = *(volatile uint64_t *) tag;

		if (ADD && seen == RHH_LOCAL_FREE)
		{
			seen = atomicCAS((unsigned long long *) tag, (unsigned long long) RHH_LOCAL_FREE,
							 (unsigned long long) mine);
			if (seen == RHH_LOCAL_FREE)
				return i & (local.n_slots - 1);
		}
		if (seen == RHH_LOCAL_FREE)
			return RHH_NO_GROUP;
		if ((uint32_t) (seen >> 32) == fp &&
			(!VERIFY || rhh_same_key(prog, rows, (uint32_t) seen, row)))
			return i & (local.n_slots - 1);
	}
	return RHH_NO_GROUP;
}

/* The row is left to the batch kernel. */
RHH_DEV void
rhh_leave_row(const rhh_rows &rows, uint32_t row)
{
	uint32_t	id = rhh_row_id(rows, row);

	atomicOr(&rows.failed[id >> 5], 1u << (id & 31));
}

/* A unit's rows into the local table; a whole block. */
template <bool VERIFY>
RHH_DEV void
rhh_aggregate_unit(const rhh_program &prog, const rhh_rows &rows, const rhh_unit &unit,
				   const rhh_local &local, uint64_t *extra)
{
	const int	K = RHH_CUDA_AGGREGATE_ITEMS;
	const uint32_t copy = threadIdx.x & (local.n_copies - 1);
	bool		leftover = false;

	for (uint32_t first = 0; first < unit.n_rows; first += blockDim.x * K)
	{
		rhh_some_rows<K> some;
		uint64_t   *words[K];

		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			uint32_t	i = first + k * blockDim.x + threadIdx.x;

			some.valid[k] = i < unit.n_rows;
			some.row[k] = unit.first + (some.valid[k] ? i : 0);
		}
		rhh_pack_keys(prog, rows, some);
		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			uint32_t	slot = local.n_slots;

			if (!some.valid[k])
				continue;
			if (some.null_key[k])
				extra[RHH_LOCAL_NULL_SEEN] = 1;
			else
				slot = rhh_local_slot<VERIFY, true>(local, prog, rows, some.row[k], some.fp[k]);
			if (slot == RHH_NO_GROUP)
			{
				rhh_leave_row(rows, some.row[k]);
				leftover = true;
				some.valid[k] = false;
			}
			else
				words[k] = rhh_record(local, copy, slot) + 1;
		}
		rhh_update_rows<K, true>(prog, rows, some, words);
	}
	if (leftover)
		extra[RHH_LOCAL_LEFTOVER] = 1;
}

/* What all copies of a record have, into the first one. */
RHH_DEV void
rhh_fold_copies(const rhh_program &prog, const rhh_local &local)
{
	for (uint32_t i = threadIdx.x; i < (local.n_slots + 1) * prog.n_states; i += blockDim.x)
	{
		uint32_t	slot = i / prog.n_states;

		if (slot < local.n_slots && *rhh_record(local, 0, slot) == RHH_LOCAL_FREE)
			continue;
		for (uint32_t c = 1; c < local.n_copies; c++)
			rhh_merge_state(prog.states[i % prog.n_states], rhh_record(local, 0, slot) + 1,
							rhh_record(local, c, slot) + 1);
	}
}

/*
 * Units of rows into the table.  failed and n_leftover: zeroed before; of rows
 * that were left some are in the bitmap and *n_leftover is not 0.  Dynamic shared
 * memory: the local table's records and RHH_LOCAL_EXTRA_WORDS words.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_AGGREGATE_THREADS, 2)
rhh_aggregate_kernel(const __grid_constant__ rhh_program prog,
					 const __grid_constant__ rhh_view view,
					 const __grid_constant__ rhh_rows rows,
					 const __grid_constant__ rhh_units units,
					 uint32_t n_slots, uint32_t n_copies, uint32_t *n_leftover)
{
	/* The fingerprint is the key only where it is a bijection of it. */
	const bool	VERIFY_LOCAL = VERIFY || BYTES == 16;
	RHH_DYNAMIC_SHARED(uint64_t, records);
	typedef rhh_slots<BYTES> S;
	const typename S::warp_tiles team;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	const rhh_local local = {records, n_slots, n_copies, rhh_record_words(prog.n_state_words)};
	const uint32_t n_records = n_copies * (n_slots + 1);
	uint64_t   *extra = records + n_records * local.record_words;
	rhh_insert_rows<S, VERIFY> op = {{view, prog, rows, false,
			0, 0, 0, 0, false, 0, 0, 0, 0}, {}, 0, false};
	uint32_t	probes = 0,
				moves = 0;

	op.tally.reserve = view.reserves[RHH_TILE_ID(S::LANES)];
	op.tally.placed = 0;
	op.tally.cap_hits = 0;

	for (uint32_t u = blockIdx.x; u < rhh_n_units(units); u += gridDim.x)
	{
		const rhh_unit unit = rhh_unit_at(units, u);

		for (uint32_t i = threadIdx.x; i < n_records * local.record_words; i += blockDim.x)
		{
			uint32_t	w = i % local.record_words;

			records[i] = w == 0 ? RHH_LOCAL_FREE
				: w <= prog.n_state_words ? rhh_init_word(prog, w - 1) : 0;
		}
		if (threadIdx.x < RHH_LOCAL_EXTRA_WORDS)
			extra[threadIdx.x] = 0;
		__syncthreads();
		rhh_aggregate_unit<VERIFY_LOCAL>(prog, rows, unit, local, extra);
		__syncthreads();
		if (n_copies > 1)
		{
			rhh_fold_copies(prog, local);
			__syncthreads();
		}

		/* The groups: a lane has one, a tile takes its lanes' keys in turn. */
		for (uint32_t first = threadIdx.x & ~(RHH_WARP_SIZE - 1u); first < n_slots;
			 first += blockDim.x)
		{
			uint64_t   *record = rhh_record(local, 0, first + lane);
			uint64_t	tag = first + lane < n_slots ? *record : RHH_LOCAL_FREE;

			op.mine = tag != RHH_LOCAL_FREE;
			op.row = op.mine ? (uint32_t) tag : 0;
			op.key = 0;
			op.fp = 0;
			op.group = RHH_NO_GROUP;
			if (op.mine)
				rhh_pack_key(prog, rows, op.row, &op.key, &op.fp);
			op.pending = team.ballot(op.mine);
			rhh_insert_loop<S>(view, team, op, &probes, &moves);
			if (tag != RHH_LOCAL_FREE)
			{
				bool		in = op.group != RHH_NO_GROUP;
				uint64_t   *into = view.states + (size_t) op.group * prog.n_state_words;

				if (in)
					for (uint32_t s = 0; s < prog.n_states; s++)
						rhh_merge_state(prog.states[s], into, record + 1);
				/* From here on the first word says whether it is in the table. */
				record[1] = in;
				if (!in)
					extra[RHH_LOCAL_LEFTOVER] = 1;
			}
			__syncwarp();
		}
		if (threadIdx.x == 0 && extra[RHH_LOCAL_NULL_SEEN])
		{
			view.ctl->null_seen = 1;
			for (uint32_t s = 0; s < prog.n_states; s++)
				rhh_merge_state(prog.states[s], view.states, rhh_record(local, 0, n_slots) + 1);
		}
		__syncthreads();
		if (extra[RHH_LOCAL_LEFTOVER])
		{
			for (uint32_t i = threadIdx.x; i < unit.n_rows; i += blockDim.x)
			{
				uint64_t	key;
				uint32_t	fp,
							slot;

				if (rhh_pack_key(prog, rows, unit.first + i, &key, &fp))
					continue;
				slot = rhh_local_slot<VERIFY_LOCAL, false>(local, prog, rows, unit.first + i, fp);
				if (slot != RHH_NO_GROUP && rhh_record(local, 0, slot)[1] == 0)
					rhh_leave_row(rows, unit.first + i);
			}
			if (threadIdx.x == 0)
				*(volatile uint32_t *) n_leftover = 1;
			__syncthreads();
		}
	}

	if (team.rank == 0)
	{
		view.reserves[RHH_TILE_ID(S::LANES)] = op.tally.reserve;
		if (op.tally.placed)
			atomicAdd((unsigned long long *) &view.ctl->placed,
					  (unsigned long long) op.tally.placed);
		if (op.tally.cap_hits)
			atomicAdd((unsigned long long *) &view.ctl->cap_hits,
					  (unsigned long long) op.tally.cap_hits);
	}
}

#endif							/* RHH_AGGREGATE_CUH */
