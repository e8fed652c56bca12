/*
 * rhh_probe.cuh
 *		The joins that most queries have, done by a kernel of their own: a few joins, none
 *		of which fans out or has a condition, whose keys are columns of the batch and have
 *		64 bits at most.
 *
 * What rhh_join_kernel does for any joins, this one does for those at a multiple of the
 * speed, because everything that rows have in common is known beforehand and several rows
 * of a thread are in hand at a time:
 *
 *		keys	are loaded, and hashed, for all rows of the thread
 *		probe	a tile of 4 lanes reads the whole bucket of a key, 16 bytes each, for one
 *				of its lanes after the other; the reads of all of these are under way before
 *				the first is looked at
 *		further	a key that is not in its bucket, which is full, is looked for by its lane
 *		direct	instead of both, in an index where the key says which slot it is
 *		make	the rows that are left get places, and become columns; a value of a build
 *				side comes out of the slot if that carries it
 *
 * How the bytes of a bucket are read is that of Robin Hood buckets (rhh_buckets.cuh); on
 * several keys in flight for each thread see Balkesen et al. 2013 (CPU).
 */
#ifndef RHH_PROBE_CUH
#define RHH_PROBE_CUH

#include "cuda/rhh_joins.cuh"

#define RHH_PROBE_KEYS 8		/* no more have 64 bits together */

/* One join, as the kernel sees it. */
struct rhh_probe_join
{
	const uint64_t *slots;
	uint32_t	n_buckets;
	bool		direct;			/* a slot's number is that of its key, less least_key */
	bool		wide_slots;		/* of 16 bytes */
	bool		verifies;		/* keys with the same fingerprint may differ */
	uint8_t		kind;			/* rhh_join_kind */
	uint8_t		n_keys;
	uint8_t		key_bits;
	rhh_hash	hash;
	uint64_t	n_slots;
	uint64_t	least_key;
	rhh_from	keys[RHH_PROBE_KEYS];	/* columns of the batch */
	uint8_t		shift[RHH_PROBE_KEYS];
};

struct rhh_probe
{
	rhh_probe_join joins[RHH_CUDA_PROBE_JOINS];
};

/* What the kernel has found for the rows of a thread: in each build side. */
template <int K, int N>
struct rhh_probed
{
	bool		alive[K];
	uint32_t	rows[N][K];		/* RHH_NO_ROW: none */
	uint64_t	carried[N][K];
};

/* Keys of K rows for a join; has[k] is false if one of row k's is NULL. */
template <int K>
RHH_DEV void
rhh_probe_keys(const rhh_rows &batch, const rhh_probe_join &join, const rhh_some_rows<K> &some,
			   uint64_t *keys, bool *has)
{
	RHH_UNROLL
	for (int k = 0; k < K; k++)
		keys[k] = 0;
	RHH_NO_UNROLL
	for (uint32_t c = 0; c < join.n_keys; c++)
	{
		const rhh_from from = join.keys[c];
		uint64_t	values[K];

		rhh_load_rows(batch, from.at, from.bytes, some, values);
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			keys[k] |= values[k] << join.shift[c];
		if (batch.nulls_offset[from.at] != 0)
		{
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				has[k] = has[k] && !rhh_is_null(batch, from.at, some.row[k]);
		}
	}
}

/* For rhh_find_key(), which does not ask for the values of keys that are not WIDE. */
struct rhh_load_nothing
{
	__device__ RHH_INLINE bool operator()(uint32_t, uint64_t *, uint64_t *) const
	{
		return false;
	}
};

/* What has been found for a key that a lane has in hand. */
struct rhh_probe_key
{
	bool		pending;		/* it has to be looked for, from here on: */
	uint32_t	bucket;
	uint32_t	fp;
	uint32_t	row;			/* or RHH_NO_ROW */
	uint64_t	carried;
};

/*
 * Slots of a bucket are taken in order, so the last one alone says whether there is a free one.
 * A free slot has no row, and its fingerprint may be taken for the one that is looked for:
 * then no slot before it has that, and there is no row indeed.
 */
RHH_DEV bool
rhh_half_ends(const uint4 &half, bool carries, bool last, uint32_t fp)
{
	return half.y == fp || (!carries && half.w == fp) ||
		(last && (carries ? half.x : half.z) == RHH_NO_ROW);
}

/* The row that such a half of a quarter of a bucket has. */
RHH_DEV uint32_t
rhh_half_row(const uint4 &half, bool carries, uint32_t fp)
{
	return carries || half.y == fp ? half.x : half.z;
}

RHH_DEV uint64_t
rhh_half_carried(const uint4 &half)
{
	return (uint64_t) half.w << 32 | half.z;
}

RHH_DEV const uint4 *
rhh_bucket_at(const rhh_probe_join &join, uint32_t bucket)
{
	return (const uint4 *) (join.slots + (uint64_t) bucket * RHH_INDEX_BUCKET_WORDS);
}

/* A key was not in its bucket, which has no free slot. */
RHH_DEV void
rhh_next_bucket(const rhh_probe_join &join, rhh_probe_key *key)
{
	if (++key->bucket == join.n_buckets)
		key->bucket = 0;
}

/*
 * Looks for K keys of each lane in their buckets.  A tile reads the bucket of one of its lanes
 * after the other.  Keys that may be further on are pending then.  A whole warp.
 */
template <int K, bool CARRIES>
RHH_DEV void
rhh_probe_buckets(const rhh_probe_join &join, rhh_probe_key *keys)
{
	const int	LANES = RHH_INDEX_BUCKET_WORDS / 2;
	const rhh_warp_tiles<LANES> team;
	uint4		quarters[K][LANES];

	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		RHH_UNROLL
		for (int t = 0; t < LANES; t++)
			quarters[k][t] = rhh_bucket_at(join, team.shfl(keys[k].bucket, t))[team.rank];
	}
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		RHH_UNROLL
		for (int t = 0; t < LANES; t++)
		{
			const uint4 quarter = quarters[k][t];
			const uint32_t fp = team.shfl(keys[k].fp, t);
			const rhh_lanes ends =
				team.ballot(rhh_half_ends(quarter, CARRIES, team.rank == LANES - 1, fp));
			const int	from = ends != 0 ? rhh_first_lane(ends) : 0;
			const uint32_t row = team.shfl(rhh_half_row(quarter, CARRIES, fp), from);
			uint64_t	carried = 0;

			if (CARRIES)
				carried = team.shfl(rhh_half_carried(quarter), from);
			if ((int) team.rank == t && keys[k].pending)
			{
				keys[k].pending = ends == 0;
				if (ends != 0)
				{
					keys[k].row = row;
					keys[k].carried = carried;
				}
				else
					rhh_next_bucket(join, &keys[k]);
			}
		}
	}
}

/* Looks for the keys that are pending, each lane by itself, until none is. */
template <int K, bool CARRIES>
RHH_DEV void
rhh_probe_further(const rhh_probe_join &join, rhh_probe_key *keys)
{
	const int	QUARTERS = RHH_INDEX_BUCKET_WORDS / 2;

	for (;;)
	{
		uint4		quarters[K][QUARTERS];
		bool		any = false;

		RHH_UNROLL
		for (int k = 0; k < K; k++)
			any |= keys[k].pending;
		if (!any)
			break;
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			if (keys[k].pending)
			{
				RHH_UNROLL
				for (int q = 0; q < QUARTERS; q++)
					quarters[k][q] = rhh_bucket_at(join, keys[k].bucket)[q];
			}
		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			if (!keys[k].pending)
				continue;
			RHH_UNROLL
			for (int q = 0; q < QUARTERS; q++)
				if (keys[k].pending &&
					rhh_half_ends(quarters[k][q], CARRIES, q == QUARTERS - 1, keys[k].fp))
				{
					keys[k].pending = false;
					keys[k].row = rhh_half_row(quarters[k][q], CARRIES, keys[k].fp);
					keys[k].carried = rhh_half_carried(quarters[k][q]);
				}
			if (keys[k].pending)
				rhh_next_bucket(join, &keys[k]);
		}
	}
}

/* Looks for K keys in a direct index: one slot each. */
template <int K>
RHH_DEV void
rhh_probe_direct(const rhh_probe_join &join, const uint64_t *keys, const bool *wanted,
				 uint32_t *rows, uint64_t *carried)
{
	uint64_t	slots[K];

	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		const uint64_t at = rhh_key_number(join.key_bits, keys[k]) - join.least_key;

		slots[k] = wanted[k] && at < join.n_slots ? join.slots[at] : RHH_EMPTY_SLOT;
	}
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		rows[k] = (uint32_t) slots[k];
		carried[k] = slots[k] >> 32;
	}
}

/*
 * Finds the rows of a build side that have the keys of a thread's rows.  found is true for
 * those that are looked for, and becomes whether there is one.  A whole warp.
 */
template <int K>
RHH_DEV void
rhh_probe_rows(const rhh_kept_view &kept, const rhh_probe_join &join, const uint64_t *keys,
			   bool *found, uint32_t *rows, uint64_t *carried)
{
	const rhh_load_nothing load = {};
	rhh_probe_key probing[K];

	if (join.direct)
	{
		rhh_probe_direct<K>(join, keys, found, rows, carried);
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			found[k] = rows[k] != RHH_NO_ROW;
		return;
	}
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		probing[k].fp = rhh_fingerprint(&join.hash, keys[k], join.key_bits);
		probing[k].pending = found[k];
		probing[k].bucket = found[k] ? rhh_home_bucket(probing[k].fp, join.n_buckets) : 0;
		probing[k].row = RHH_NO_ROW;
		probing[k].carried = 0;
	}
	if (join.wide_slots)
	{
		rhh_probe_buckets<K, true>(join, probing);
		rhh_probe_further<K, true>(join, probing);
	}
	else
	{
		rhh_probe_buckets<K, false>(join, probing);
		rhh_probe_further<K, false>(join, probing);
	}
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		rows[k] = probing[k].row;
		carried[k] = probing[k].carried;
		/* such slots carry nothing */
		if (join.verifies && rows[k] != RHH_NO_ROW &&
			!rhh_row_has_key(kept, rhh_row_of_found(kept, rows[k]), keys[k], load))
			rows[k] = rhh_find_key(kept, keys[k], probing[k].fp, load);
		found[k] = rows[k] != RHH_NO_ROW;
	}
}

/* ---------- columns ---------- */

/* The K values of a thread's rows for a column of the map. */
template <int K>
struct rhh_made_values
{
	uint64_t	low[K];
	uint64_t	high[K];		/* of 16 bytes only */
	bool		null[K];
};

template <typename T, int K>
RHH_DEV void
rhh_store_values(uint8_t *to, const bool *alive, const uint64_t *values, const uint32_t *place)
{
	RHH_UNROLL
	for (int k = 0; k < K; k++)
		if (alive[k])
			rhh_store_streaming((T *) to + place[k], (T) values[k]);
}

/* Stores values of rows that are alive at their places. */
template <int K>
RHH_DEV void
rhh_store_made(const rhh_row_columns &columns, const rhh_from &from, const bool *alive,
			   const rhh_made_values<K> &made, const uint32_t *place)
{
	const uint32_t nulls = columns.nulls_offset[from.column];
	uint8_t    *to = columns.base + columns.values_offset[from.column];

	switch (from.bytes)
	{
		case 1:
			rhh_store_values<uint8_t, K>(to, alive, made.low, place);
			break;
		case 2:
			rhh_store_values<uint16_t, K>(to, alive, made.low, place);
			break;
		case 4:
			rhh_store_values<uint32_t, K>(to, alive, made.low, place);
			break;
		case 8:
			rhh_store_values<uint64_t, K>(to, alive, made.low, place);
			break;
		default:
			RHH_UNROLL
			for (int k = 0; k < K; k++)
				if (alive[k])
					rhh_store_value(to, place[k], 16, made.low[k], made.high[k]);
			break;
	}
	if (nulls != 0)
	{
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			if (alive[k])
				columns.base[nulls + place[k]] = made.null[k];
	}
}

/* Gets the values that rows of a build side have; NULL where there is no such row. */
template <int K>
RHH_DEV void
rhh_build_values(const rhh_kept_view &kept, const rhh_from &from, const bool *alive,
				 const uint32_t *rows, const uint64_t *carried, rhh_made_values<K> &made)
{
	const bool	is_carried = from.null_bit == RHH_NEVER_NULL && from.at >= kept.carried_at &&
		from.at + from.bytes <= kept.carried_at + kept.carried_bytes;
	const uint32_t shift = is_carried ? 8 * (from.at - kept.carried_at) : 0;

	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		made.null[k] = rows[k] == RHH_NO_ROW;
		made.low[k] = carried[k] >> shift;
		made.high[k] = 0;
		if (!is_carried)
		{
			made.low[k] = 0;
			if (alive[k] && !made.null[k])
				made.null[k] = !rhh_fetch_kept(rhh_kept_at(kept, rows[k]), from, &made.low[k],
											   &made.high[k]);
		}
	}
}

/* The same of the batch. */
template <int K>
RHH_DEV void
rhh_batch_values(const rhh_rows &batch, const rhh_from &from, const rhh_some_rows<K> &some,
				 const bool *alive, rhh_made_values<K> &made)
{
	if (from.bytes <= 8)
		rhh_load_rows(batch, from.at, from.bytes, some, made.low);
	RHH_UNROLL
	for (int k = 0; k < K; k++)
	{
		made.null[k] = batch.nulls_offset[from.at] != 0 &&
			rhh_is_null(batch, from.at, some.row[k]);
		made.high[k] = 0;
		if (from.bytes > 8 && alive[k])
			(void) rhh_fetch(batch, from, some.row[k], &made.low[k], &made.high[k]);
	}
}

/*
 * Does the N joins of a stage, which is the only one, for the rows of a batch from first_row
 * on, and makes rows of what comes out.  The rest is as with rhh_join_kernel.
 */
template <int N>
static __global__ void __launch_bounds__(RHH_CUDA_PROBE_THREADS, RHH_CUDA_PROBE_BLOCKS)
rhh_probe_kernel(const rhh_join_plan *__restrict__ plan, const __grid_constant__ rhh_probe probe,
				 const __grid_constant__ rhh_rows batch, uint32_t first_row, uint32_t n_rows,
				 const __grid_constant__ rhh_row_columns columns, rhh_join_counts *counts,
				 uint64_t *joined)
{
	const int	K = RHH_CUDA_PROBE_ITEMS;
	__shared__ uint32_t counts_of[2][K * RHH_CUDA_PROBE_THREADS / RHH_WARP_SIZE];
	__shared__ uint32_t n_joined[N];
	__shared__ uint32_t block_at[2];
	uint32_t	n_mine[N];		/* that have come out of each join */
	uint32_t	turn = 0;		/* which shared memory it is that nobody reads any more */

	if (threadIdx.x < N)
		n_joined[threadIdx.x] = 0;
	RHH_UNROLL
	for (int j = 0; j < N; j++)
		n_mine[j] = 0;
	__syncthreads();
	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x * K; first < n_rows;
		 first += (uint64_t) gridDim.x * blockDim.x * K, turn ^= 1)
	{
		rhh_some_rows<K> some;
		rhh_probed<K, N> probed;
		uint32_t	place[K];
		uint32_t	n;

		RHH_UNROLL
		for (int k = 0; k < K; k++)
		{
			uint64_t	i = first + k * blockDim.x + threadIdx.x;

			probed.alive[k] = i < n_rows;
			some.row[k] = first_row + (probed.alive[k] ? (uint32_t) i : 0);
		}
		RHH_UNROLL
		for (int j = 0; j < N; j++)
		{
			const rhh_probe_join &join = probe.joins[j];
			uint64_t	keys[K];
			bool		found[K];

			RHH_UNROLL
			for (int k = 0; k < K; k++)
				found[k] = probed.alive[k];
			rhh_probe_keys(batch, join, some, keys, found);
			rhh_probe_rows<K>(plan->joins[j].build, join, keys, found, probed.rows[j],
							  probed.carried[j]);
			RHH_UNROLL
			for (int k = 0; k < K; k++)
			{
				if (join.kind != RHH_JOIN_LEFT && found[k] == (join.kind == RHH_JOIN_ANTI))
					probed.alive[k] = false;
				n_mine[j] += probed.alive[k];
			}
		}
		n = rhh_block_places<RHH_CUDA_PROBE_THREADS, K>(probed.alive, place, counts_of[turn]);
		if (threadIdx.x == 0 && n > 0)
			block_at[turn] = atomicAdd(&counts->n_rows, n);
		__syncthreads();
		RHH_UNROLL
		for (int k = 0; k < K; k++)
			place[k] += block_at[turn];
		for (uint32_t i = plan->first_column[0]; i < plan->first_column[1]; i++)
		{
			const rhh_from from = plan->columns[i];
			rhh_made_values<K> made;

			rhh_batch_values<K>(batch, from, some, probed.alive, made);
			rhh_store_made<K>(columns, from, probed.alive, made, place);
		}
		RHH_UNROLL
		for (int j = 0; j < N; j++)
			for (uint32_t i = plan->first_column[1 + j]; i < plan->first_column[2 + j]; i++)
			{
				const rhh_from from = plan->columns[i];
				rhh_made_values<K> made;

				rhh_build_values<K>(plan->joins[j].build, from, probed.alive, probed.rows[j],
									probed.carried[j], made);
				rhh_store_made<K>(columns, from, probed.alive, made, place);
			}
	}
	RHH_UNROLL
	for (int j = 0; j < N; j++)
		if (n_mine[j] > 0)
			atomicAdd(&n_joined[j], n_mine[j]);
	__syncthreads();
	if (threadIdx.x < N && n_joined[threadIdx.x] > 0)
		atomicAdd((unsigned long long *) &joined[threadIdx.x],
				  (unsigned long long) n_joined[threadIdx.x]);
}

#endif							/* RHH_PROBE_CUH */
