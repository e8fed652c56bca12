/*
 * rhh_aggregate.cuh
 *		Aggregates rows in shared memory first, so that the map sees each group once
 *		for each block, instead of seeing each row.
 *
 * A block has a local table of groups in its shared memory.  It aggregates a unit of
 * rows there and then enters the groups into the map.  If a local table can hold all
 * groups of a batch, units are any rows.  If not, the rows are first sorted by the high
 * bits of their fingerprints, in one pass or two, into parts so small that a local table
 * can hold the groups of one; then a unit is a part or a piece of one.  Sorting is worth
 * it because an H100 does 13.6 G random atomic operations a second in device memory,
 * while a pass moves 100 G rows of 4 + 8 bytes a second.
 *
 *		look		samples the rows' groups, and counts the rows of each part
 *		estimate	makes the estimate of the number of groups for the host
 *		offsets		computes where parts begin
 *		units		cuts parts into units
 *		scatter		moves the columns to the places of the parts
 *		aggregate	takes units to the map
 *
 * On aggregating in shared memory, and partitioning for it, see Karnagel, Mueller,
 * Lohman 2015 (GPU); Polychroniou and Ross 2013, Mueller et al. 2015 (CPU).  On counting
 * groups see Flajolet et al. 2007 (HyperLogLog).
 *
 * Some rows are left to the batch kernel (rhh_kernels.cuh): those for which the local
 * table has no room, and those whose group found no place in the map.  They have not
 * touched anything, and are marked in the batch's bitmap, over which that kernel goes.
 */
#ifndef RHH_AGGREGATE_CUH
#define RHH_AGGREGATE_CUH

#include "cuda/rhh_groups.cuh"

/* ---------- looking ---------- */

#define RHH_SKETCH_BITS 12
#define RHH_SKETCH_REGISTERS (1u << RHH_SKETCH_BITS)
#define RHH_PASS_BITS 9			/* the most that one pass sorts by */
#define RHH_PASS_PARTS (1u << RHH_PASS_BITS)

/* The shared memory of a block that looks. */
struct rhh_look_space
{
	uint32_t	registers[RHH_SKETCH_REGISTERS];
	uint32_t	counts[RHH_PASS_PARTS];
};

/*
 * Looks at every step-th row.  The sketch has, for each of 4096 classes of fingerprints,
 * the most leading zeros seen, plus one, by this look or by earlier ones; with so many
 * classes the error of the estimate is 1.6 %.  Adds to part_counts the number of rows for
 * each value of the fingerprint's highest RHH_PASS_BITS bits.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_look_kernel(const __grid_constant__ rhh_grouping grouping, const __grid_constant__ rhh_rows rows,
				uint32_t step, uint32_t *sketch, uint32_t *part_counts)
{
	RHH_DYNAMIC_SHARED(rhh_look_space, look);
	uint32_t   *registers = look->registers;
	uint32_t   *counts = look->counts;
	const int	K = 4;
	const uint32_t n = (rows.n_rows - 1) / step + 1;

	for (uint32_t i = threadIdx.x; i < RHH_SKETCH_REGISTERS; i += blockDim.x)
		registers[i] = 0;
	for (uint32_t i = threadIdx.x; i < RHH_PASS_PARTS; i += blockDim.x)
		counts[i] = 0;
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
		rhh_pack_keys(grouping, rows, some);
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
		if (rhh_load_relaxed32(&sketch[i]) < registers[i])
			atomicMax(&sketch[i], registers[i]);
	for (uint32_t i = threadIdx.x; i < RHH_PASS_PARTS; i += blockDim.x)
		if (counts[i] > 0)
			atomicAdd(&part_counts[i], counts[i]);
}

/* The shared memory of the block that estimates: a sum for each thread. */
struct rhh_estimate_space
{
	float		powers[RHH_CUDA_BLOCK_THREADS];
	float		empty[RHH_CUDA_BLOCK_THREADS];
};

/* Estimates the number of groups, at least 1, from the sketch.  One block. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_estimate_kernel(const uint32_t *sketch, uint64_t *n_groups)
{
	RHH_DYNAMIC_SHARED(rhh_estimate_space, sums);
	float	   *powers = sums->powers;
	float	   *empty = sums->empty;
	const float m = (float) RHH_SKETCH_REGISTERS;

	powers[threadIdx.x] = empty[threadIdx.x] = 0;
	for (uint32_t i = threadIdx.x; i < RHH_SKETCH_REGISTERS; i += blockDim.x)
	{
		powers[threadIdx.x] += 1.0f / (float) (1u << sketch[i]);
		empty[threadIdx.x] += sketch[i] == 0;
	}
	for (uint32_t step = blockDim.x / 2; step > 0; step /= 2)
	{
		__syncthreads();
		if (threadIdx.x < step)
		{
			powers[threadIdx.x] += powers[threadIdx.x + step];
			empty[threadIdx.x] += empty[threadIdx.x + step];
		}
	}
	if (threadIdx.x == 0)
	{
		float		estimate = 0.7213f / (1.0f + 1.079f / m) * m * m / powers[0];

		/* With few groups some classes are empty, and counting these says more. */
		if (estimate < 2.5f * m && empty[0] > 0)
			estimate = m * logf(m / empty[0]);
		*n_groups = estimate < 1.0f ? 1 : (uint64_t) estimate;
	}
}

/* ---------- partitioning ---------- */

/* A unit: consecutive rows, all of the same part. */
struct rhh_unit
{
	uint32_t	first;
	uint32_t	n_rows;
	uint32_t	part;
	uint32_t	whole;			/* flag: it is all of the part */
};

/*
 * The units of a pass.  They are listed in units[]; if that is NULL, n_rows rows (or
 * *n_known, see rhh_rows) are one part that is cut into units of unit_rows.  n_units[0]
 * is the number of units, and n_units[1] that of units that are not whole parts.
 */
struct rhh_units
{
	const rhh_unit *units;
	const uint32_t *n_units;
	const uint32_t *n_known;
	uint32_t	n_rows;
	uint32_t	unit_rows;
	uint32_t	part_bits;		/* highest bits of the fingerprint that make parts */
};

RHH_DEV uint32_t
rhh_n_units(const rhh_units &u)
{
	uint32_t	n_rows = u.n_known != NULL ? *u.n_known : u.n_rows;

	return u.units != NULL ? *u.n_units : n_rows == 0 ? 0 : (n_rows - 1) / u.unit_rows + 1;
}

RHH_DEV rhh_unit
rhh_unit_at(const rhh_units &u, uint32_t i)
{
	uint32_t	n_rows = u.n_known != NULL ? *u.n_known : u.n_rows;
	rhh_unit	unit;

	if (u.units != NULL)
		return u.units[i];
	unit.first = i * u.unit_rows;
	unit.n_rows = n_rows - unit.first < u.unit_rows ? n_rows - unit.first : u.unit_rows;
	unit.part = 0;
	unit.whole = 0;
	return unit;
}

/*
 * Takes K rows of a unit for the calling thread.  The block of so many threads has the
 * rows from first on, and neighbouring threads have neighbouring rows.  FULL says that
 * the unit has enough rows for all of them.
 */
template <bool FULL, int K>
RHH_DEV void
rhh_take_rows(rhh_some_rows<K> &some, const rhh_unit &unit, uint32_t first, uint32_t threads)
{
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		uint32_t	i = first + k * threads + threadIdx.x;

		some.valid[k] = FULL || i < unit.n_rows;
		some.row[k] = unit.first + (some.valid[k] ? i : 0);
	}
}

/* The bits [shift, shift + bits) of a fingerprint, by which one pass sorts. */
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

/* Adds the number of rows of each part of the second pass to counts[part << bits | digit]. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_count_kernel(const __grid_constant__ rhh_grouping grouping, const __grid_constant__ rhh_rows rows,
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

			rhh_take_rows<false>(some, unit, first, blockDim.x);
			rhh_pack_keys(grouping, rows, some);
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
 * Computes where parts begin and end.  Each part of the pass before has a block of
 * RHH_PASS_PARTS threads; these parts end at before[], which is NULL for the first pass.
 * counts has fold more bits than the pass sorts by, and such counts are added up.
 * begins[] has RHH_CUDA_BEGIN_STRIDE words for each part.
 */
static __global__ void __launch_bounds__(RHH_PASS_PARTS)
rhh_offsets_kernel(const uint32_t *counts, const uint32_t *before, uint32_t bits, uint32_t fold,
				   uint32_t *begins, uint32_t *ends)
{
	__shared__ uint32_t warp_sums[RHH_PASS_PARTS / RHH_WARP_SIZE];
	const uint32_t p = threadIdx.x;
	const uint32_t at = blockIdx.x << bits | p;
	uint32_t	begin = before != NULL && blockIdx.x > 0 ? before[blockIdx.x - 1] : 0;
	uint32_t	own = 0;

	if (p < 1u << bits)
		for (uint32_t i = 0; i < 1u << fold; i++)
			own += counts[at << fold | i];
	begin += rhh_block_scan<RHH_PASS_PARTS>(own, warp_sums);
	if (p < 1u << bits)
	{
		begins[at * RHH_CUDA_BEGIN_STRIDE] = begin;
		ends[at] = begin + own;
	}
}

/*
 * Cuts parts into units of at most unit_rows, in order.  Each block has some of the
 * parts, and counts by itself the units of all parts before them.  The caller has zeroed
 * n_units.
 */
static __global__ void __launch_bounds__(RHH_CUDA_UNITS_THREADS)
rhh_units_kernel(const uint32_t *ends, uint32_t n_parts, uint32_t unit_rows, rhh_unit *units,
				 uint32_t *n_units)
{
	__shared__ uint32_t warp_sums[RHH_CUDA_UNITS_THREADS / RHH_WARP_SIZE];
	const uint32_t t = threadIdx.x;
	const uint32_t from = (uint32_t) ((uint64_t) n_parts * blockIdx.x / gridDim.x);
	const uint32_t to = (uint32_t) ((uint64_t) n_parts * (blockIdx.x + 1) / gridDim.x);
	uint32_t	before = 0;

	for (uint32_t p = t; p < from; p += blockDim.x)
		before += (ends[p] - (p > 0 ? ends[p - 1] : 0) + unit_rows - 1) / unit_rows;
	rhh_block_scan<RHH_CUDA_UNITS_THREADS>(before, warp_sums, &before);

	/* A thread has a part; a scan over the threads gives the places of its units. */
	for (uint32_t start = from; start < to; start += blockDim.x)
	{
		const uint32_t p = start + t;
		const uint32_t first = p < to && p > 0 ? ends[p - 1] : 0;
		const uint32_t end = p < to ? ends[p] : first;
		const uint32_t n = (end - first + unit_rows - 1) / unit_rows;
		uint32_t	at,
					all;

		__syncthreads();
		at = before + rhh_block_scan<RHH_CUDA_UNITS_THREADS>(n, warp_sums, &all);
		for (uint32_t i = 0; i < n; i++)
		{
			rhh_unit	unit = {first + i * unit_rows, unit_rows, p, n == 1};

			if (i == n - 1)
				unit.n_rows = end - unit.first;
			units[at + i] = unit;
		}
		if (n > 1)
			atomicAdd(&n_units[1], n);
		before += all;
	}
	if (t == 0 && blockIdx.x == gridDim.x - 1)
		n_units[0] = before;
}

/* The shared memory of a block of the scatter kernel. */
struct rhh_scatter_space
{
	uint64_t	values[rhh_scatter_policy::ROWS];	/* of one column, see rhh_move */
	uint16_t	digits[rhh_scatter_policy::ROWS];	/* of the rows, in the block's order */
	uint32_t	count[RHH_PASS_PARTS];	/* rows of a part, then where they begin */
	uint32_t	base[RHH_PASS_PARTS];	/* how much further they are in the output */
	uint32_t	warp_sums[rhh_scatter_policy::THREADS / RHH_WARP_SIZE];
};

/*
 * Where the rows of a thread go: first to places in the order of their block, then,
 * from the places in that order which the thread has, to places in the output.
 */
struct rhh_places
{
	uint32_t	sorted[rhh_scatter_policy::ITEMS];	/* of row k * threads + t */
	uint32_t	out[rhh_scatter_policy::ITEMS]; /* of the one at k * threads + t of that */
};

/*
 * Moves one value of each row, by way of the order of the block, so that the values of
 * a part leave in runs.  buffer has rhh_scatter_policy::ROWS words.  A whole block.
 */
template <typename T, typename Load>
RHH_DEV void
rhh_move(const rhh_places &places, uint32_t n, uint64_t *buffer, T *out, uint32_t stride,
		 const Load &load)
{
	T		   *sorted = (T *) buffer;

	RHH_UNROLL
	for (int k = 0; k < rhh_scatter_policy::ITEMS; k++)
	{
		uint32_t	i = k * rhh_scatter_policy::THREADS + threadIdx.x;

		if (i < n)
			sorted[places.sorted[k]] = load(i);
	}
	__syncthreads();
	RHH_UNROLL
	for (int k = 0; k < rhh_scatter_policy::ITEMS; k++)
	{
		uint32_t	i = k * rhh_scatter_policy::THREADS + threadIdx.x;

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
			 [&](uint32_t i) {
				 return in[(size_t) i * stride];
			 });
}

/*
 * Moves the columns of rows to their parts.  next[part << bits | digit] is where a part
 * begins; it grows with the rows that have been moved, and is where the part ends in the
 * end.  out has bytes instead of bitmaps of NULLs, and in ids the numbers of the rows.
 */
static __global__ void __launch_bounds__(rhh_scatter_policy::THREADS)
rhh_scatter_rows_kernel(const __grid_constant__ rhh_grouping grouping,
						const __grid_constant__ rhh_rows rows,
						const __grid_constant__ rhh_rows out,
						const __grid_constant__ rhh_units units, rhh_digit digit, uint32_t *next)
{
	RHH_DYNAMIC_SHARED(rhh_scatter_space, space);
	uint64_t   *buffer = space->values;
	uint16_t   *digits = space->digits;
	uint32_t   *count = space->count;
	uint32_t   *base = space->base;
	const uint32_t n_parts = 1u << digit.bits;
	const uint32_t t = threadIdx.x;

	for (uint32_t u = blockIdx.x; u < rhh_n_units(units); u += gridDim.x)
	{
		const rhh_unit unit = rhh_unit_at(units, u);
		const uint32_t n = unit.n_rows;
		rhh_some_rows<rhh_scatter_policy::ITEMS> some;
		rhh_places	places;
		uint32_t	own,
					start;

		for (uint32_t p = t; p < n_parts; p += blockDim.x)
			count[p] = 0;
		__syncthreads();
		rhh_take_rows<false>(some, unit, 0, rhh_scatter_policy::THREADS);
		rhh_pack_keys(grouping, rows, some);
		RHH_UNROLL
		for (int k = 0; k < rhh_scatter_policy::ITEMS; k++)
			if (some.valid[k])
				places.sorted[k] = atomicAdd(&count[rhh_digit_of(digit, some.fp[k])], 1u);
		__syncthreads();

		own = t < n_parts ? count[t] : 0;
		start = rhh_block_scan<rhh_scatter_policy::THREADS>(own, space->warp_sums);
		if (t < n_parts)
		{
			count[t] = start;
			/* From a place in the block's order to one in the output. */
			base[t] = own == 0 ? 0
				: atomicAdd(&next[(unit.part << digit.bits | t) * RHH_CUDA_BEGIN_STRIDE], own) - start;
		}
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < rhh_scatter_policy::ITEMS; k++)
			if (some.valid[k])
			{
				uint32_t	d = rhh_digit_of(digit, some.fp[k]);

				places.sorted[k] += count[d];
				digits[places.sorted[k]] = (uint16_t) d;
			}
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < rhh_scatter_policy::ITEMS; k++)
		{
			uint32_t	i = k * rhh_scatter_policy::THREADS + t;

			places.out[k] = i < n ? base[digits[i]] + i : 0;
		}

		for (uint32_t c = 0; c < grouping.n_columns; c++)
		{
			const uint8_t *from = rows.base + rows.values_offset[c];
			uint8_t    *to = (uint8_t *) out.base + out.values_offset[c];

			switch (grouping.column_bytes[c])
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
						 [&](uint32_t i) {
							 return (uint8_t) rhh_is_null(rows, c, unit.first + i);
						 });
		}
		rhh_move(places, n, buffer, out.ids, 1,
				 [&](uint32_t i) {
					 return rhh_row_id(rows, unit.first + i);
				 });
	}
}

/* ---------- aggregating ---------- */

/*
 * A local table.  It has n_slots records (a power of two) and one more for SINGLE's
 * NULL group, all of this in n_copies copies.  Neighbouring lanes use different copies,
 * so that they do not wait for each other if there are few groups.  A record is
 *
 *		| tag | state words | padding to an odd number of words |
 *
 * Only the first copy has tags.  A tag is all ones while its record is free.  If the map
 * has 16-byte slots it is the hashed key, from which rhh_unhash64() gets the key back;
 * rows with the one key whose tag would be all ones are left to the batch kernel.
 * Otherwise it is the fingerprint of the group, in the high half, and the number of one
 * of its rows.  An odd number of words spreads the records over the banks.
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

/* What the threads of a block tell each other about the unit at hand. */
struct rhh_unit_flags
{
	uint64_t	null_seen;		/* SINGLE's NULL group has rows */
	uint64_t	leftover;		/* some rows are left to the batch kernel */
};

RHH_DEV uint64_t *
rhh_record(const rhh_local &local, uint32_t copy, uint32_t slot)
{
	return local.records + (copy * (local.n_slots + 1) + slot) * local.record_words;
}

template <int BYTES>
RHH_DEV uint64_t
rhh_tag(const rhh_grouping &grouping, uint64_t key, uint32_t fp, uint32_t row)
{
	return BYTES == 16 ? rhh_hash64(&grouping.plan.hash, key) : (uint64_t) fp << 32 | row;
}

/*
 * Finds the slot of the group with this tag; with ADD it takes a free slot nearby if
 * there is none.  RHH_NO_GROUP: there is none.  One thread.  Records are never freed, so
 * once a key has been looked for with ADD, the answer never changes.
 */
template <int BYTES, bool VERIFY, bool ADD>
RHH_DEV uint32_t
rhh_local_slot(const rhh_local &local, const rhh_grouping &grouping, const rhh_rows &rows, uint64_t mine)
{
	uint32_t	i = (uint32_t) (mine >> 32);
	uint32_t	slot = RHH_NO_GROUP;

	if (BYTES == 16 && mine == RHH_LOCAL_FREE)
		return RHH_NO_GROUP;
	/* Unrolled, because an H100 then does a quarter more rows. */
	RHH_UNROLL
	for (int probe = 0; probe < rhh_aggregate_policy::PROBES; probe++, i++)
	{
		uint32_t	at = i & (local.n_slots - 1);
		uint64_t   *tag = rhh_record(local, 0, at);
		uint64_t	seen = *(volatile uint64_t *) tag;
		bool		is_free = seen == RHH_LOCAL_FREE;

		if (ADD && is_free)
		{
			seen = atomicCAS((unsigned long long *) tag, (unsigned long long) RHH_LOCAL_FREE,
							 (unsigned long long) mine);
			if (seen == RHH_LOCAL_FREE)
				seen = mine;
		}
		if (BYTES == 16 ? seen == mine
			: seen >> 32 == mine >> 32 && (!VERIFY || (uint32_t) seen == (uint32_t) mine ||
										   rhh_same_key(grouping, rows, (uint32_t) seen, (uint32_t) mine)))
			slot = at;
		if (slot != RHH_NO_GROUP || (!ADD && is_free))
			break;
	}
	return slot;
}

/* Gets the key and the fingerprint of a tag; returns its row, if the tag has one. */
template <int BYTES, bool VERIFY>
RHH_DEV uint32_t
rhh_untag(const rhh_grouping &grouping, const rhh_rows &rows, uint64_t tag, uint64_t *key, uint32_t *fp)
{
	*key = BYTES == 16 ? rhh_unhash64(&grouping.plan.hash, tag) : 0;	/* not used for 8-byte slots */
	*fp = (uint32_t) (tag >> 32);
	if (VERIFY)
		(void) rhh_pack_key(grouping, rows, (uint32_t) tag, key, fp);
	return (uint32_t) tag;
}

/* Leaves a row to the batch kernel. */
RHH_DEV void
rhh_leave_row(const rhh_rows &rows, uint32_t row)
{
	uint32_t	id = rhh_row_id(rows, row);

	atomicOr(&rows.refused[id >> 5], 1u << (id & 31));
}

/*
 * Takes those rows of a unit that a block has at a time, from first on, to the local
 * table.  FULL says that there are so many.  True if some row was left.
 */
template <int BYTES, bool VERIFY, bool SIMPLE, int K, bool FULL>
RHH_DEV bool
rhh_aggregate_rows(const rhh_grouping &grouping, const rhh_rows &rows, const rhh_unit &unit,
				   uint32_t first, const rhh_local &local, rhh_unit_flags *flags)
{
	const bool	null_keys = grouping.plan.form == RHH_KEY_SINGLE &&
		rows.nulls_offset[grouping.plan.column[0]] != 0;
	rhh_some_rows<K> some;
	uint64_t   *words[K];
	bool		leftover = false;

	rhh_take_rows<FULL>(some, unit, first, rhh_aggregate_policy::THREADS);
	rhh_pack_keys(grouping, rows, some);
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		uint32_t	slot = local.n_slots;

		if (null_keys && some.null_key[k])
		{
			if (some.valid[k])
				flags->null_seen = 1;
		}
		else if (some.valid[k])
			slot = rhh_local_slot<BYTES, VERIFY, true>(local, grouping, rows,
													   rhh_tag<BYTES>(grouping, some.key[k], some.fp[k],
																	  some.row[k]));
		/* Lanes probe for different times; without this they would go on one by one. */
		__syncwarp();
		if (slot == RHH_NO_GROUP)
		{
			rhh_leave_row(rows, some.row[k]);
			leftover = true;
			some.valid[k] = false;
			slot = 0;
		}
		words[k] = rhh_record(local, threadIdx.x & (local.n_copies - 1), slot) + 1;
	}
	rhh_update_rows<K, SIMPLE>(grouping, rows, some, words);
	return leftover;
}

/*
 * Takes rows of a unit, from *first on, to the local table, as long as there are K rows
 * for each thread, and moves *first behind them.  True if some row was left.
 */
template <int BYTES, bool VERIFY, int K>
RHH_DEV bool
rhh_aggregate_many(const rhh_grouping &grouping, const rhh_rows &rows, const rhh_unit &unit,
				   uint32_t *first, const rhh_local &local, rhh_unit_flags *flags)
{
	const uint32_t BLOCK_ROWS = K * rhh_aggregate_policy::THREADS;
	bool		leftover = false;

	for (; unit.n_rows - *first >= BLOCK_ROWS; *first += BLOCK_ROWS)
		if (rhh_aggregate_rows<BYTES, VERIFY, true, K, true>(grouping, rows, unit, *first, local, flags))
			leftover = true;
	return leftover;
}

/* Takes all rows of a unit to the local table.  A whole block. */
template <int BYTES, bool VERIFY, bool SIMPLE>
RHH_DEV void
rhh_aggregate_unit(const rhh_grouping &grouping, const rhh_rows &rows, const rhh_unit &unit,
				   const rhh_local &local, rhh_unit_flags *flags)
{
	const int	K = SIMPLE ? rhh_aggregate_policy::ITEMS : 1;
	uint32_t	first = 0;
	bool		leftover = false;

	if (SIMPLE && local.n_copies > 1)
		leftover = rhh_aggregate_many<BYTES, VERIFY, rhh_aggregate_policy::ITEMS_FEW>(grouping, rows, unit,
																					  &first, local,
																					  flags);
	else if (SIMPLE)
		leftover = rhh_aggregate_many<BYTES, VERIFY, K>(grouping, rows, unit, &first, local, flags);
	for (; first < unit.n_rows; first += K * rhh_aggregate_policy::THREADS)
		if (rhh_aggregate_rows<BYTES, VERIFY, SIMPLE, K, false>(grouping, rows, unit, first, local,
																flags))
			leftover = true;
	if (leftover)
		flags->leftover = 1;
}

/* Merges all copies of each record into the first one. */
template <bool SIMPLE>
RHH_DEV void
rhh_fold_copies(const rhh_grouping &grouping, const rhh_local &local)
{
	for (uint32_t slot = threadIdx.x; slot <= local.n_slots; slot += blockDim.x)
	{
		if (slot < local.n_slots && *rhh_record(local, 0, slot) == RHH_LOCAL_FREE)
			continue;
		for (uint32_t c = 1; c < local.n_copies; c++)
			rhh_merge_group<SIMPLE>(grouping, rhh_record(local, 0, slot) + 1,
									rhh_record(local, c, slot) + 1);
	}
}

/* Leaves the rows of all groups that the map has not taken.  A whole block. */
template <int BYTES, bool VERIFY>
RHH_DEV void
rhh_leave_groups(const rhh_grouping &grouping, const rhh_rows &rows, const rhh_unit &unit,
				 const rhh_local &local)
{
	const int	K = rhh_aggregate_policy::ITEMS;

	for (uint32_t first = 0; first < unit.n_rows; first += blockDim.x * K)
	{
		rhh_some_rows<K> some;

		rhh_take_rows<false>(some, unit, first, blockDim.x);
		rhh_pack_keys(grouping, rows, some);
		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			uint32_t	slot;

			if (!some.valid[k] || some.null_key[k])
				continue;
			slot = rhh_local_slot<BYTES, VERIFY, false>(local, grouping, rows,
														rhh_tag<BYTES>(grouping, some.key[k], some.fp[k],
																	   some.row[k]));
			if (slot != RHH_NO_GROUP && rhh_record(local, 0, slot)[1] == 0)
				rhh_leave_row(rows, some.row[k]);
		}
	}
}

/* Which groups of which units go into the map, and how. */
enum rhh_entering
{
	RHH_ENTER_ALL,				/* those of all units, entered one by one */
	RHH_ENTER_BUILD,			/* those of whole parts, built into the empty map */
	RHH_ENTER_SPLIT				/* those of other units, entered one by one */
};

/*
 * Enters the groups of records into the map.  Each lane has a record, and a tile takes
 * the keys of its lanes in turn.  A warp has the records from first on, then those step
 * further on, and so forth.  Afterwards the first state word of a record says whether
 * the map has taken the group.  True if it has not taken one of the lane's.
 */
template <int BYTES, bool VERIFY, bool SIMPLE>
RHH_DEV bool
rhh_enter_records(const rhh_view &view, const rhh_grouping &grouping, const rhh_rows &rows,
				  const rhh_local &local, uint32_t first, uint32_t step,
				  rhh_insert_rows<rhh_slots<BYTES>, VERIFY> &op)
{
	typedef rhh_slots<BYTES> S;
	const typename S::warp_tiles team;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	uint32_t	probes = 0,
				moves = 0;
	bool		left = false;

	for (; first < local.n_slots; first += step)
	{
		uint64_t   *record = rhh_record(local, 0, first + lane);
		uint64_t	tag = first + lane < local.n_slots ? *record : RHH_LOCAL_FREE;

		op.mine = tag != RHH_LOCAL_FREE;
		op.row = 0;
		op.key = 0;
		op.fp = 0;
		op.group = RHH_NO_GROUP;
		if (op.mine)
			op.row = rhh_untag<BYTES, VERIFY>(grouping, rows, tag, &op.key, &op.fp);
		op.pending = team.ballot(op.mine);
		rhh_insert_loop<S>(view, team, op, &probes, &moves);
		if (tag != RHH_LOCAL_FREE)
		{
			bool		in = op.group != RHH_NO_GROUP;
			uint64_t   *into = view.states + (size_t) op.group * grouping.n_state_words;

			if (in)
				rhh_merge_group<SIMPLE>(grouping, into, record + 1);
			record[1] = in;
			left = left || !in;
		}
		__syncwarp();
	}
	return left;
}

/*
 * The stash: records of groups whose place, when their part was built, would have been
 * in the range of the next part.  They are entered when all parts are built.  Those of
 * one part are side by side.
 */
struct rhh_stash
{
	uint64_t   *records;
	uint32_t	room;			/* in records */
	uint32_t   *n;				/* n[0]: records; n[1] is 1 if one found no place.
								 * The caller has zeroed both */
	uint32_t   *first;			/* the first record of each part */
	uint32_t   *count;			/* the records of each part, zeroed by the caller */
};

/* The shared memory that building a part needs besides. */
struct rhh_build_space
{
	uint32_t	at[rhh_aggregate_policy::BUILD_BUCKETS];	/* entries of a home, then their place */
	uint32_t	shift[rhh_aggregate_policy::BUILD_BUCKETS]; /* free slots before them */
	uint16_t	record[rhh_aggregate_policy::BUILD_SLOTS];	/* that a slot gets */
	uint32_t	warp_sums[rhh_aggregate_policy::THREADS / RHH_WARP_SIZE];
	int32_t		warp_most[rhh_aggregate_policy::THREADS / RHH_WARP_SIZE];
	uint32_t	n_entries;
	uint32_t	base;			/* the first group's number */
	uint32_t	placed;
	uint32_t	n_stashed;
	uint32_t	stash_at;
	uint16_t	stashed[rhh_aggregate_policy::STASH_OF_PART];	/* records */
};

#define RHH_NO_RECORD 0xFFFFu

/*
 * The dynamic shared memory of a block of the aggregate kernel:
 *
 *		| n_records records | rhh_unit_flags | rhh_build_space |
 *
 * The number of records is known only when the kernel is launched, so the parts
 * behind them have no fixed place.  The last part is there only for RHH_ENTER_BUILD.
 */
struct rhh_aggregate_space
{
	rhh_unit_flags *flags;
	rhh_build_space *build;
};

/* Bytes of the parts that are always there. */
static inline size_t
rhh_aggregate_space_bytes(uint32_t n_records, uint32_t record_words)
{
	return (size_t) n_records * record_words * sizeof(uint64_t) + sizeof(rhh_unit_flags);
}

RHH_DEV rhh_aggregate_space
rhh_lay_out_space(uint64_t *records, uint32_t n_records, uint32_t record_words)
{
	rhh_aggregate_space space;

	space.flags = (rhh_unit_flags *) (records + n_records * record_words);
	space.build = (rhh_build_space *) (space.flags + 1);
	return space;
}

/*
 * Places the entries of the homes [0, range).  at[h] is the number of entries with home
 * h, and becomes the slot where they begin, max(h * slots, the end of those of h - 1);
 * shift[h] becomes the number of free slots before that.  If P is the exclusive sum of
 * the counts and M the running maximum of h * slots - P[h], then at[h] = P[h] + M[h] and
 * shift[h] = M[h].  A whole block.
 */
RHH_DEV void
rhh_place_homes(rhh_build_space *space, uint32_t range, uint32_t slots)
{
	const int	EACH = (rhh_aggregate_policy::BUILD_BUCKETS + rhh_aggregate_policy::THREADS - 1) /
		rhh_aggregate_policy::THREADS;
	const uint32_t lane = threadIdx.x & (RHH_WARP_SIZE - 1);
	const uint32_t warp = threadIdx.x / RHH_WARP_SIZE;
	const rhh_lanes ALL = (rhh_lanes) ~0ULL;
	uint32_t	n[EACH];
	uint32_t	before = 0,
				sum;
	int32_t		most = INT32_MIN;

	RHH_UNROLL
	for (int k = 0; k < EACH; k++)
	{
		uint32_t	h = threadIdx.x * EACH + k;

		n[k] = h < range ? space->at[h] : 0;
		before += n[k];
	}
	before = rhh_block_scan<rhh_aggregate_policy::THREADS>(before, space->warp_sums);

	/* before is now P of the thread's first home. */
	sum = before;
	RHH_UNROLL
	for (int k = 0; k < EACH; k++)
	{
		most = ::max(most, (int32_t) ((threadIdx.x * EACH + k) * slots) - (int32_t) sum);
		sum += n[k];
	}
	if (threadIdx.x == rhh_aggregate_policy::THREADS - 1)
		space->n_entries = sum;
	for (uint32_t step = 1; step < RHH_WARP_SIZE; step *= 2)
	{
		int32_t		left = __shfl_up_sync(ALL, most, step);

		if (lane >= step)
			most = ::max(most, left);
	}
	if (lane == RHH_WARP_SIZE - 1)
		space->warp_most[warp] = most;
	most = __shfl_up_sync(ALL, most, 1);
	if (lane == 0)
		most = INT32_MIN;
	__syncthreads();
	for (uint32_t w = 0; w < warp; w++)
		most = ::max(most, space->warp_most[w]);
	RHH_UNROLL
	for (int k = 0; k < EACH; k++)
	{
		uint32_t	h = threadIdx.x * EACH + k;

		most = ::max(most, (int32_t) (h * slots) - (int32_t) before);
		if (h < range)
		{
			space->at[h] = before + (uint32_t) most;
			space->shift[h] = (uint32_t) most;
		}
		before += n[k];
	}
}

/* The range of buckets of a part. */
struct rhh_part_range
{
	uint32_t	from;			/* its first bucket */
	uint32_t	n_buckets;
};

RHH_DEV rhh_part_range
rhh_range_of_part(const rhh_view &view, uint32_t part, uint32_t part_bits)
{
	const uint32_t from = rhh_home_of(part << (32 - part_bits), view.n_buckets);
	const uint32_t to = part + 1 == 1u << part_bits ? view.n_buckets
		: rhh_home_of((part + 1) << (32 - part_bits), view.n_buckets);

	return {from, to - from};
}

/*
 * Finds the places of a part's groups, in its range or, behind that, in the stash, and
 * takes numbers for them.  base becomes RHH_NO_GROUP if there are not enough numbers, or
 * if a place is too far from home.  A whole block.
 */
template <int BYTES>
RHH_DEV void
rhh_find_places(const rhh_view &view, rhh_part_range part, const rhh_local &local,
				rhh_build_space *space)
{
	typedef rhh_slots<BYTES> S;

	for (uint32_t h = threadIdx.x; h < part.n_buckets; h += blockDim.x)
		space->at[h] = 0;
	for (uint32_t i = threadIdx.x; i < part.n_buckets * S::SLOTS; i += blockDim.x)
		space->record[i] = RHH_NO_RECORD;
	if (threadIdx.x == 0)
		space->placed = space->n_stashed = 0;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < local.n_slots; i += blockDim.x)
	{
		uint64_t	tag = *rhh_record(local, 0, i);
		uint32_t	h = rhh_home_of((uint32_t) (tag >> 32), view.n_buckets) - part.from;

		/* The bucket behind the range may be home to both parts: the next one has it. */
		if (tag != RHH_LOCAL_FREE && h < part.n_buckets)
			atomicAdd(&space->at[h], 1u);
	}
	__syncthreads();
	rhh_place_homes(space, part.n_buckets, S::SLOTS);
	if (threadIdx.x == 0)
	{
		const uint32_t n = space->n_entries;

		space->base = atomicAdd(&view.ctl->n_numbers, n);
		if (space->base > view.group_cap || view.group_cap - space->base < n)
			space->base = RHH_NO_GROUP;
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < local.n_slots; i += blockDim.x)
	{
		uint64_t	tag = *rhh_record(local, 0, i);
		uint32_t	h = rhh_home_of((uint32_t) (tag >> 32), view.n_buckets) - part.from;
		uint32_t	place = UINT32_MAX;

		if (tag == RHH_LOCAL_FREE)
			continue;
		if (h < part.n_buckets)
			place = atomicAdd(&space->at[h], 1u);
		if (place < part.n_buckets * S::SLOTS)
		{
			space->record[place] = (uint16_t) i;
			if (place / S::SLOTS - h >= view.max_dist)
				space->base = RHH_NO_GROUP;
		}
		else
		{
			uint32_t	n = atomicAdd(&space->n_stashed, 1u);

			if (n < rhh_aggregate_policy::STASH_OF_PART)
				space->stashed[n] = (uint16_t) i;
		}
	}
	__syncthreads();
}

/*
 * Takes room in the stash for the groups of a part that need it.  Either all of them
 * are stashed, or nothing of the part is placed: base becomes RHH_NO_GROUP.  One thread.
 */
RHH_DEV void
rhh_take_stash(const rhh_stash &stash, uint32_t part, uint32_t record_words,
			   rhh_build_space *space)
{
	if (space->n_stashed > rhh_aggregate_policy::STASH_OF_PART)
		space->base = RHH_NO_GROUP;
	else
	{
		space->stash_at = atomicAdd(&stash.n[0], space->n_stashed);
		if (space->stash_at > stash.room || stash.room - space->stash_at < space->n_stashed)
		{
			space->base = RHH_NO_GROUP;
			/* the stash counts as full, so what is left of it must be free records */
			for (uint32_t r = space->stash_at; r < stash.room; r++)
				stash.records[(size_t) r * record_words] = RHH_LOCAL_FREE;
		}
		else
		{
			stash.first[part] = space->stash_at;
			stash.count[part] = space->n_stashed;
		}
	}
}

/*
 * Builds the groups of a part into its range of buckets of an empty table.  The result
 * is as if they had been inserted one by one (rhh_buckets.cuh), but there is no atomic
 * operation on the table: in the order of home buckets the places follow by a scan, as in
 * rhh_table_build.cuh.  Groups whose place would be behind the range are stashed.  If
 * a group would be too far from home, or there are not enough group numbers, then all
 * groups of the part are left.  Marks the records as rhh_enter_records() does.  A whole
 * block.
 */
template <int BYTES, bool VERIFY>
RHH_DEV void
rhh_build_unit(const rhh_view &view, const rhh_grouping &grouping, const rhh_rows &rows,
			   const rhh_unit &unit, uint32_t part_bits, const rhh_local &local, rhh_unit_flags *flags,
			   const rhh_stash &stash, rhh_build_space *space)
{
	typedef rhh_slots<BYTES> S;
	const rhh_part_range part = rhh_range_of_part(view, unit.part, part_bits);
	const uint32_t n_words = grouping.n_state_words;

	rhh_find_places<BYTES>(view, part, local, space);
	if (threadIdx.x == 0 && space->n_stashed > 0 && space->base != RHH_NO_GROUP)
		rhh_take_stash(stash, unit.part, local.record_words, space);
	__syncthreads();
	if (space->base == RHH_NO_GROUP)
	{
		for (uint32_t i = threadIdx.x; i < local.n_slots; i += blockDim.x)
			rhh_record(local, 0, i)[1] = 0;
		if (threadIdx.x == 0)
			flags->leftover = 1;
		return;
	}
	for (uint32_t i = threadIdx.x; i < space->n_stashed * local.record_words; i += blockDim.x)
		stash.records[(size_t) space->stash_at * local.record_words + i] =
			rhh_record(local, 0, space->stashed[i / local.record_words])[i % local.record_words];
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < space->n_stashed; i += blockDim.x)
		rhh_record(local, 0, space->stashed[i])[1] = 1; /* until it finds no place */
	for (uint32_t i = threadIdx.x; i < part.n_buckets * S::SLOTS; i += blockDim.x)
	{
		typename S::slot *slot = (typename S::slot *) view.slots + (size_t) part.from * S::SLOTS + i;
		uint64_t   *record;
		uint64_t	key;
		uint32_t	fp,
					row,
					number;

		if (space->record[i] == RHH_NO_RECORD)
			continue;
		record = rhh_record(local, 0, space->record[i]);
		row = rhh_untag<BYTES, VERIFY>(grouping, rows, *record, &key, &fp);
		number = space->base + i - space->shift[rhh_home_of(fp, view.n_buckets) - part.from];
		*slot = S::make(key, fp, number);
		for (uint32_t w = 0; w < n_words; w++)
			view.states[(size_t) number * n_words + w] = record[1 + w];
		if (VERIFY)
			for (uint32_t w = 0; w < grouping.plan.n_words; w++)
				view.keys[(size_t) number * grouping.plan.n_words + w] =
					rhh_row_key_word(grouping, rows, row, key, w);
		record[1] = 1;
		atomicAdd(&space->placed, 1u);
	}
	__syncthreads();
	if (threadIdx.x == 0 && space->placed > 0)
		atomicAdd((unsigned long long *) &view.ctl->placed, (unsigned long long) space->placed);
}

/* Gets what the tile has kept from the last launch; rhh_end_tally() stores it again. */
template <class Op>
RHH_DEV void
rhh_begin_tally(const rhh_view &view, Op &op)
{
	op.tally.reserve = view.reserves[RHH_TILE_ID(RHH_GROUP_LANES)];
	op.tally.placed = 0;
	op.tally.cap_hits = 0;
}

template <class Op>
RHH_DEV void
rhh_end_tally(const rhh_view &view, const Op &op)
{
	if ((threadIdx.x & (RHH_GROUP_LANES - 1)) != 0)
		return;
	view.reserves[RHH_TILE_ID(RHH_GROUP_LANES)] = op.tally.reserve;
	if (op.tally.placed)
		atomicAdd((unsigned long long *) &view.ctl->placed, (unsigned long long) op.tally.placed);
	if (op.tally.cap_hits)
		atomicAdd((unsigned long long *) &view.ctl->cap_hits,
				  (unsigned long long) op.tally.cap_hits);
}

/*
 * Takes units of rows to the map.  The caller has zeroed rows.refused and *n_leftover;
 * rows that are left are marked in the bitmap, and if there are any *n_leftover is not
 * 0.  Dynamic shared memory: see rhh_aggregate_space.  The stash is used only with
 * RHH_ENTER_BUILD.
 */
template <int BYTES, bool VERIFY, bool SIMPLE>
static __global__ void __launch_bounds__(rhh_aggregate_policy::THREADS, rhh_aggregate_policy::BLOCKS_PER_SM)
rhh_aggregate_kernel(const __grid_constant__ rhh_grouping grouping,
					 const __grid_constant__ rhh_view view,
					 const __grid_constant__ rhh_rows rows,
					 const __grid_constant__ rhh_units units,
					 uint32_t n_slots, uint32_t n_copies, rhh_entering entering,
					 const __grid_constant__ rhh_stash stash, uint32_t *n_leftover)
{
	RHH_DYNAMIC_SHARED(uint64_t, records);
	typedef rhh_slots<BYTES> S;
	const rhh_local local = {records, n_slots, n_copies, rhh_record_words(grouping.n_state_words)};
	const uint32_t n_records = n_copies * (n_slots + 1);
	const rhh_aggregate_space space = rhh_lay_out_space(records, n_records, local.record_words);
	rhh_unit_flags *flags = space.flags;
	rhh_insert_rows<S, VERIFY> op = {{{view, grouping}, rows, false}};

	if (entering == RHH_ENTER_SPLIT && units.n_units[1] == 0)
		return;
	rhh_begin_tally(view, op);

	for (uint32_t u = blockIdx.x; u < rhh_n_units(units); u += gridDim.x)
	{
		const rhh_unit unit = rhh_unit_at(units, u);

		if (entering != RHH_ENTER_ALL && (unit.whole != 0) != (entering == RHH_ENTER_BUILD))
			continue;
		for (uint32_t i = threadIdx.x; i < n_records; i += blockDim.x)
		{
			uint64_t   *record = records + i * local.record_words;

			record[0] = RHH_LOCAL_FREE;
			for (uint32_t w = 0; w < grouping.n_state_words; w++)
				record[1 + w] = rhh_init_word(grouping, w);
		}
		if (threadIdx.x == 0)
			flags->null_seen = flags->leftover = 0;
		__syncthreads();
		rhh_aggregate_unit<BYTES, VERIFY, SIMPLE>(grouping, rows, unit, local, flags);
		__syncthreads();
		if (n_copies > 1)
			rhh_fold_copies<SIMPLE>(grouping, local);
		__syncthreads();
		if (entering == RHH_ENTER_BUILD)
			rhh_build_unit<BYTES, VERIFY>(view, grouping, rows, unit, units.part_bits, local, flags,
										  stash, space.build);
		else if (rhh_enter_records<BYTES, VERIFY, SIMPLE>(view, grouping, rows, local,
														  threadIdx.x & ~(RHH_WARP_SIZE - 1u), blockDim.x,
														  op))
			flags->leftover = 1;
		if (threadIdx.x == 0 && flags->null_seen)
		{
			view.ctl->null_seen = 1;
			rhh_merge_group<SIMPLE>(grouping, view.states, rhh_record(local, 0, n_slots) + 1);
		}
		__syncthreads();
		if (flags->leftover)
		{
			rhh_leave_groups<BYTES, VERIFY>(grouping, rows, unit, local);
			if (threadIdx.x == 0)
				*(volatile uint32_t *) n_leftover = 1;
			__syncthreads();
		}
	}

	rhh_end_tally(view, op);
}

/* Enters the groups of the stash into the map. */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_enter_stash_kernel(const __grid_constant__ rhh_grouping grouping,
					   const __grid_constant__ rhh_view view,
					   const __grid_constant__ rhh_rows rows,
					   const __grid_constant__ rhh_stash stash)
{
	typedef rhh_slots<BYTES> S;
	const rhh_local local = {stash.records, ::min(stash.n[0], stash.room), 1,
	rhh_record_words(grouping.n_state_words)};
	rhh_insert_rows<S, VERIFY> op = {{{view, grouping}, rows, false}};

	if (local.n_slots == 0)
		return;
	rhh_begin_tally(view, op);
	if (rhh_enter_records<BYTES, VERIFY, false>(view, grouping, rows, local,
												blockIdx.x * blockDim.x +
												(threadIdx.x & ~(RHH_WARP_SIZE - 1u)),
												gridDim.x * blockDim.x, op))
		*(volatile uint32_t *) &stash.n[1] = 1;
	rhh_end_tally(view, op);
}

/*
 * Leaves the rows of stashed groups that found no place in the map: a block makes a
 * local table of the stashed groups of a part.  Dynamic shared memory: that table, of 2 *
 * rhh_aggregate_policy::STASH_OF_PART slots.
 */
template <int BYTES, bool VERIFY>
static __global__ void __launch_bounds__(rhh_aggregate_policy::THREADS)
rhh_leave_stash_kernel(const __grid_constant__ rhh_grouping grouping,
					   const __grid_constant__ rhh_rows rows,
					   const __grid_constant__ rhh_units units,
					   const __grid_constant__ rhh_stash stash, uint32_t *n_leftover)
{
	RHH_DYNAMIC_SHARED(uint64_t, records);
	const uint32_t n_slots = 2 * rhh_aggregate_policy::STASH_OF_PART;
	const uint32_t words = rhh_record_words(grouping.n_state_words);
	const rhh_local local = {records, n_slots, 1, rhh_record_words(0)};

	if (stash.n[1] == 0)
		return;
	for (uint32_t u = blockIdx.x; u < rhh_n_units(units); u += gridDim.x)
	{
		const rhh_unit unit = rhh_unit_at(units, u);
		const uint32_t n = unit.whole ? stash.count[unit.part] : 0;

		if (n == 0)
			continue;
		for (uint32_t i = threadIdx.x; i < n_slots; i += blockDim.x)
			*rhh_record(local, 0, i) = RHH_LOCAL_FREE;
		__syncthreads();
		for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
		{
			const uint64_t *record = stash.records + (size_t) (stash.first[unit.part] + i) * words;
			uint32_t	slot = rhh_local_slot<BYTES, VERIFY, true>(local, grouping, rows, record[0]);

			rhh_record(local, 0, slot)[1] = record[1];
		}
		__syncthreads();
		rhh_leave_groups<BYTES, VERIFY>(grouping, rows, unit, local);
		__syncthreads();
		if (threadIdx.x == 0)
			*(volatile uint32_t *) n_leftover = 1;
	}
}

#endif							/* RHH_AGGREGATE_CUH */
