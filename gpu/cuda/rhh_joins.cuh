/*
 * rhh_joins.cuh
 *		Joins the rows of a batch with the kept rows of other maps (rhh_kept.cuh), and
 *		makes the columns of a map of what comes out.
 *
 * Between joins a row is a tuple: the number of its row in each of the sides, of which
 * side 0 is the batch, and side 1 + j the build side of join j.  RHH_NO_ROW: a side has no
 * row, because RHH_JOIN_LEFT has found none, or because it comes before a row that nothing
 * has matched, and its columns are NULL.  Values are only
 * read as keys and when the columns are made.
 *
 * A join fans out if one tuple may become several: of kinds that have columns of the build
 * side, if that has several rows with the same key.  Joins are done in stages, each of which ends with a
 * join that fans out, or with the last join.
 *
 * Where a join has a condition, rows with the same key are candidates.  Whether a tuple has
 * a match is found out before anything comes out of it, by looking at candidates until one
 * is a match (rhh_drop_unmatched()); so no piece depends on the pieces before it.  If the
 * condition may be bad, each candidate is looked at somewhere, whatever comes out.  A join
 * that fans out makes tuples of all candidates of a tuple with a match, and drops those that
 * are none when they are made: between stages such a tuple has RHH_DROPPED for side 0, which
 * is no RHH_NO_ROW, as a row that nothing has matched has no row in that side either.
 *
 *		count		of a stage that fans out, finds the matches of its tuples and
 *					their number
 *		total		sums these up
 *		expand		makes tuples of the next stage, or columns, of a piece of the output
 *		join		of a last stage that does not fan out, makes columns at once
 *		hand back	gathers the rows that the map has refused
 *
 * Where rows of a build side without a match are asked for, each row that comes out of its
 * join with a row of it marks that one.  In the end the rows that are not marked come into
 * the stage behind the join, in which they are first.  Of a right semijoin or antijoin nothing
 * comes out but in the end; it marks all matches as soon as they are found
 * (rhh_mark_matches()), and of a right semijoin the rows that are marked come.
 *
 * How many rows came out is known to the device only; the kernels that follow in the
 * stream read it from there.  The host reads it with the counters, when the piece is done.
 */
#ifndef RHH_JOINS_CUH
#define RHH_JOINS_CUH

#include "cuda/rhh_kept.cuh"
#include "cuda/rhh_programs.cuh"

#define RHH_MAX_SIDES (1 + RHH_MAX_JOINS)
#define RHH_NEVER_NULL 0xFF
#define RHH_DROPPED 0xFFFFFFFEu /* no batch has so many rows */

/* Which column of which side something is. */
struct rhh_from
{
	uint16_t	at;				/* side 0: number of the column; else its place in the
								 * record */
	uint8_t		side;
	uint8_t		bytes;
	uint8_t		null_bit;		/* its NULL bit in the record, or RHH_NEVER_NULL */
	uint8_t		column;			/* of the map, which it becomes */
};

/* One join, as kernels see it. */
struct rhh_join_step
{
	rhh_kept_view build;
	uint8_t    *matched;		/* of each of its rows: not 0 if something has matched
								 * it; NULL: nobody asks */
	uint8_t		kind;			/* rhh_join_kind */
	bool		has_condition;
	bool		looks_at_all;	/* of the candidates: the condition may be bad for one
								 * behind a match, too */
	rhh_from	keys[RHH_MAX_KEYS];
	rhh_from	condition_columns[RHH_MAX_COLUMNS];
	rhh_program condition;
};

/*
 * All joins of a map, the columns of the map by side, and the program of which kernels here
 * use the filter.  It lies in device memory.
 */
struct rhh_join_plan
{
	rhh_join_step joins[RHH_MAX_JOINS];
	rhh_from	columns[RHH_MAX_COLUMNS];
	uint8_t		place[RHH_MAX_COLUMNS]; /* of a column of the map, among these */
	rhh_program program;
	uint64_t   *bad_candidates; /* counts those for which a condition was bad */
	uint32_t	n_sides;
	uint32_t	first_column[RHH_MAX_SIDES + 1];	/* of each side */
};

/*
 * Tuples as columns: the numbers of the sides' rows.  NULL where nobody asks for a side
 * any more.  A stage that fans out adds what its joins have found, which is the end of a
 * list for the last of them, and says for each tuple how many of the output come before
 * it: so many in its block of RHH_CUDA_BLOCK_THREADS tuples, and in the blocks before.
 */
struct rhh_tuples
{
	uint32_t   *sides[RHH_MAX_SIDES];
	uint64_t   *before;
	uint64_t   *blocks_before;
};

/* The tuples that come into a stage, and its joins. */
struct rhh_join_stage
{
	uint32_t	begin_join;
	uint32_t	end_join;
	bool		first;			/* tuple i is row first_row + i of the batch, or ... */
	uint32_t	side;			/* ... of this side, without a match, and NULLs before */
	uint32_t	first_row;
	uint32_t	n_tuples;		/* at most, unless it is the first stage */
	const uint64_t *total;		/* else: of what came out of the stage before, ... */
	uint64_t	from;			/* ... these are the tuples from here on */
	rhh_tuples	tuples;
};

/* The number of tuples that come into a stage. */
RHH_DEV uint32_t
rhh_stage_tuples(const rhh_join_stage &stage)
{
	uint64_t	total;

	if (stage.first)
		return stage.n_tuples;
	total = *stage.total;
	return stage.from >= total ? 0
		: total - stage.from < stage.n_tuples ? (uint32_t) (total - stage.from) : stage.n_tuples;
}

/* A tuple in the hands of one thread. */
struct rhh_tuple
{
	uint32_t	rows[RHH_MAX_SIDES];
};

/*
 * Gets tuple i.  False: it does not come into the stage, because a condition has dropped it, or
 * because it is a row of a build side that has a match, or of a right semijoin that has none.
 */
RHH_DEV bool
rhh_load_tuple(const rhh_join_plan &plan, const rhh_join_stage &stage, uint32_t i, rhh_tuple *tuple)
{
	for (uint32_t side = 0; side <= stage.begin_join; side++)
		tuple->rows[side] = !stage.first && stage.tuples.sides[side] != NULL
			? stage.tuples.sides[side][i] : RHH_NO_ROW;
	if (!stage.first)
		return tuple->rows[0] != RHH_DROPPED;
	tuple->rows[stage.side] = stage.first_row + i;
	if (stage.side == 0)
		return true;
	return (plan.joins[stage.side - 1].matched[stage.first_row + i] != 0) ==
		(plan.joins[stage.side - 1].kind == RHH_JOIN_RIGHT_SEMI);
}

/* Something has matched row `row` of the build side of a join. */
RHH_DEV void
rhh_mark_matched(const rhh_join_step &step, uint32_t row)
{
	/* once it is marked it is only read, by however many threads */
	if (step.matched != NULL && step.matched[row] == 0)
		step.matched[row] = 1;
}

/* ---------- values ---------- */

/*
 * Gets the value of a column in a row of the batch; *high of 16 bytes only.  False if it
 * is NULL.
 */
RHH_DEV bool
rhh_fetch(const rhh_rows &batch, const rhh_from &from, uint32_t row, uint64_t *low, uint64_t *high)
{
	if (rhh_is_null(batch, from.at, row))
		return false;
	*low = rhh_value(batch, from.at, from.bytes, row);
	if (from.bytes > 8)
		*high = rhh_value_high(batch, from.at, row);
	return true;
}

/* The same in a kept row. */
RHH_DEV bool
rhh_fetch_kept(const rhh_kept_row &row, const rhh_from &from, uint64_t *low, uint64_t *high)
{
	if (from.null_bit != RHH_NEVER_NULL &&
		(row.nulls[from.null_bit >> 3] >> (from.null_bit & 7) & 1))
		return false;
	*low = rhh_load_value(row.record + from.at, from.bytes);
	if (from.bytes > 8)
		*high = *(const uint64_t *) (row.record + from.at + 8);
	return true;
}

/* Makes row `to` of the columns of a tuple. */
RHH_DEV void
rhh_make_row(const rhh_join_plan &plan, const rhh_rows &batch,
			 const rhh_row_columns &columns, const rhh_tuple &tuple, uint32_t to)
{
	for (uint32_t side = 0; side < plan.n_sides; side++)
	{
		const uint32_t end = plan.first_column[side + 1];
		const uint32_t row = tuple.rows[side];
		rhh_kept_row kept = {NULL, NULL};

		if (plan.first_column[side] == end)
			continue;
		if (side > 0 && row != RHH_NO_ROW)
			kept = rhh_kept_at(plan.joins[side - 1].build, row);
		for (uint32_t i = plan.first_column[side]; i < end; i++)
		{
			const rhh_from from = plan.columns[i];
			uint64_t	low = 0,
						high = 0;
			bool		null = row == RHH_NO_ROW ||
				(side == 0 ? !rhh_fetch(batch, from, row, &low, &high)
				 : !rhh_fetch_kept(kept, from, &low, &high));

			rhh_store_value(columns.base + columns.values_offset[from.column], to, from.bytes, low,
							high);
			if (columns.nulls_offset[from.column] != 0)
				columns.base[columns.nulls_offset[from.column] + to] = null;
		}
	}
}

/* Gets the words of a column of a tuple, for a program.  Returns whether it is NULL. */
RHH_DEV bool
rhh_load_of_side(const rhh_join_plan &plan, const rhh_rows &batch, const rhh_tuple &tuple,
				 const rhh_from &from, uint64_t *words)
{
	const uint32_t row = tuple.rows[from.side];
	const uint32_t unused = from.bytes < 8 ? 64 - 8 * from.bytes : 0;
	uint64_t	low = 0,
				high = 0;

	if (row == RHH_NO_ROW ||
		(from.side == 0 ? !rhh_fetch(batch, from, row, &low, &high) :
		 !rhh_fetch_kept(rhh_kept_at(plan.joins[from.side - 1].build, row), from, &low, &high)))
		return true;
	words[0] = (uint64_t) ((int64_t) (low << unused) >> unused);
	words[1] = high;
	return false;
}

/* Loads columns of the map that a tuple has, for a program. */
struct rhh_load_of_tuple
{
	const rhh_join_plan &plan;
	const rhh_rows &batch;
	const rhh_tuple &tuple;

	__device__ RHH_INLINE bool operator()(uint32_t c, uint64_t *words) const
	{
		return rhh_load_of_side(plan, batch, tuple, plan.columns[plan.place[c]], words);
	}
};

/* Loads columns of a join's condition. */
struct rhh_load_of_pair
{
	const rhh_join_plan &plan;
	const rhh_rows &batch;
	const rhh_tuple &tuple;
	const rhh_join_step &step;

	__device__ RHH_INLINE bool operator()(uint32_t c, uint64_t *words) const
	{
		return rhh_load_of_side(plan, batch, tuple, step.condition_columns[c], words);
	}
};

/*
 * Is the candidate that a tuple has for join j a match, by the join's condition?  If that is bad,
 * it counts as none, and the caller has no use for the output.
 */
static __device__ RHH_NOINLINE bool
rhh_is_match(const rhh_join_plan &plan, const rhh_rows &batch, uint32_t j, const rhh_tuple &tuple)
{
	const rhh_join_step &step = plan.joins[j];
	const rhh_load_of_pair load = {plan, batch, tuple, step};
	const uint32_t filter = step.condition.filter;
	rhh_results results;

	rhh_run_ops(step.condition, filter + 1, load, &results);
	if ((results.flags[filter] & RHH_BAD) != 0)
		atomicAdd((unsigned long long *) plan.bad_candidates, 1ULL);
	return results.flags[filter] == 0 && results.words[filter][0] != 0;
}

/* Does the filter let a tuple pass, or is it bad, which is found out once more later? */
RHH_DEV bool
rhh_passes(const rhh_join_plan &plan, const rhh_rows &batch, const rhh_tuple &tuple)
{
	const rhh_load_of_tuple load = {plan, batch, tuple};
	const uint32_t filter = plan.program.filter;
	rhh_results results;

	rhh_run_ops(plan.program, filter + 1, load, &results);
	return (results.flags[filter] & RHH_BAD) != 0 ||
		(results.flags[filter] == 0 && results.words[filter][0] != 0);
}

/* ---------- joining ---------- */

/* Loads the values of the keys that a tuple has for a join. */
struct rhh_load_tuple_key
{
	const rhh_join_plan &plan;
	const rhh_rows &batch;
	const rhh_join_step &step;
	const rhh_tuple &tuple;

	__device__ RHH_INLINE bool operator()(uint32_t k, uint64_t *low, uint64_t *high) const
	{
		const rhh_from from = step.keys[k];
		const uint32_t row = tuple.rows[from.side];

		if (row == RHH_NO_ROW)
			return false;
		if (from.side == 0)
			return rhh_fetch(batch, from, row, low, high);
		return rhh_fetch_kept(rhh_kept_at(plan.joins[from.side - 1].build, row), from, low, high);
	}
};

/* What the slot of a tuple's key has for join j, see rhh_find_key(). */
RHH_DEV uint32_t
rhh_find_match(const rhh_join_plan &plan, const rhh_rows &batch, uint32_t j,
			   const rhh_tuple &tuple)
{
	const rhh_join_step &step = plan.joins[j];
	const rhh_load_tuple_key load = {plan, batch, step, tuple};
	uint64_t	key;
	uint32_t	fp;

	return rhh_make_key(step.build.plan, load, &key, &fp) ? rhh_find_key(step.build, key, fp, load)
		: RHH_NO_ROW;
}

/*
 * The tuples of a warp, as far as they are alive, have what rhh_find_match() has found for join
 * j, which has a condition.  Those of which no candidate is a match get RHH_NO_ROW instead.  A
 * lane looks at a few candidates by itself; at many of them the whole warp does.
 * Of joins that make tuples of candidates later, those behind a match are looked at then.
 */
RHH_DEV void
rhh_drop_unmatched(const rhh_join_plan &plan, const rhh_rows &batch, uint32_t j, bool alive,
				   rhh_tuple *tuple)
{
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t *lists = plan.joins[j].build.lists;
	const bool	all = plan.joins[j].looks_at_all;
	const uint32_t found = alive ? tuple->rows[1 + j] : RHH_NO_ROW;
	const uint32_t n = found == RHH_NO_ROW ? 0 : lists == NULL ? 1 : lists[found];
	uint32_t	many = __ballot_sync(RHH_WARP, n > RHH_WARP_SIZE);
	bool		any = false;

	for (uint32_t i = 0; n <= RHH_WARP_SIZE && i < n && (all || !any); i++)
	{
		tuple->rows[1 + j] = lists == NULL ? found : lists[found - n + i];
		any |= rhh_is_match(plan, batch, j, *tuple);
	}
	for (; many != 0; many &= many - 1)
	{
		const int	leader = __ffs((int) many) - 1;
		const uint32_t n_theirs = __shfl_sync(RHH_WARP, n, leader);
		const uint32_t begin = __shfl_sync(RHH_WARP, found, leader) - n_theirs;
		bool		any_theirs = false;
		rhh_tuple	theirs;

		for (uint32_t side = 0; side <= j; side++)
			theirs.rows[side] = __shfl_sync(RHH_WARP, tuple->rows[side], leader);
		for (uint32_t first = 0; first < n_theirs && (all || !any_theirs); first += RHH_WARP_SIZE)
		{
			bool		match = false;

			if (first + lane < n_theirs)
			{
				theirs.rows[1 + j] = lists[begin + first + lane];
				match = rhh_is_match(plan, batch, j, theirs);
			}
			any_theirs |= __ballot_sync(RHH_WARP, match) != 0;
		}
		if ((int) lane == leader)
			any = any_theirs;
	}
	tuple->rows[1 + j] = any ? found : RHH_NO_ROW;
}

/*
 * Marks the matches that the tuples of a warp, as far as they are alive, have among what
 * rhh_find_match() has found for join j, of which nothing comes out before the end.  Without a
 * condition the rows of a key are marked together, when the first tuple finds them.  A lane looks
 * at a few candidates by itself; at many of them the whole warp does.
 */
template <bool CONDITIONS>
RHH_DEV void
rhh_mark_matches(const rhh_join_plan &plan, const rhh_rows &batch, uint32_t j, bool alive,
				 rhh_tuple *tuple)
{
	const rhh_join_step &step = plan.joins[j];
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t *lists = step.build.lists;
	const bool	asks = CONDITIONS && step.has_condition;
	const uint32_t found = alive ? tuple->rows[1 + j] : RHH_NO_ROW;
	uint32_t	n = found == RHH_NO_ROW ? 0 : lists == NULL ? 1 : lists[found];
	uint32_t	many;

	/* another tuple has found them first, and marks them, or has done so */
	if (n > 0 && !asks && step.matched[lists == NULL ? found : lists[found - n]] != 0)
		n = 0;
	for (uint32_t i = 0; n <= RHH_WARP_SIZE && i < n; i++)
	{
		tuple->rows[1 + j] = lists == NULL ? found : lists[found - n + i];
		if (!asks || rhh_is_match(plan, batch, j, *tuple))
			rhh_mark_matched(step, tuple->rows[1 + j]);
	}
	many = __ballot_sync(RHH_WARP, n > RHH_WARP_SIZE);
	for (; many != 0; many &= many - 1)
	{
		const int	leader = __ffs((int) many) - 1;
		const uint32_t n_theirs = __shfl_sync(RHH_WARP, n, leader);
		const uint32_t begin = __shfl_sync(RHH_WARP, found, leader) - n_theirs;
		rhh_tuple	theirs;

		/* by a lane before, or another warp */
		if (!asks && __ballot_sync(RHH_WARP, step.matched[lists[begin]] != 0) != 0)
			continue;
		for (uint32_t side = 0; side <= j; side++)
			theirs.rows[side] = __shfl_sync(RHH_WARP, tuple->rows[side], leader);
		for (uint32_t i = lane; i < n_theirs; i += RHH_WARP_SIZE)
		{
			theirs.rows[1 + j] = lists[begin + i];
			if (!asks || ((step.looks_at_all || step.matched[theirs.rows[1 + j]] == 0) &&
						  rhh_is_match(plan, batch, j, theirs)))
				rhh_mark_matched(step, theirs.rows[1 + j]);
		}
	}
}

/*
 * Does join j for the tuples of a warp that are alive: puts what the slots of their keys have
 * into the tuples, and returns whether the lane's tuple has any output.  Of an inner or right
 * join that fans out its condition says more when the tuples are made.
 */
template <bool CONDITIONS>
RHH_DEV bool
rhh_join_tuple(const rhh_join_plan &plan, const rhh_rows &batch, uint32_t j, bool alive,
			   rhh_tuple *tuple)
{
	const rhh_join_step &step = plan.joins[j];

	if (alive)
	{
		const rhh_load_tuple_key load = {plan, batch, step, *tuple};

		alive = !rhh_is_of_other_part(step.build, load);
		tuple->rows[1 + j] = RHH_NO_ROW;
	}
	if (alive)
	{
		tuple->rows[1 + j] = rhh_find_match(plan, batch, j, *tuple);
	}
	if (step.kind == RHH_JOIN_RIGHT_SEMI || step.kind == RHH_JOIN_RIGHT_ANTI)
	{
		rhh_mark_matches<CONDITIONS>(plan, batch, j, alive, tuple);
		return false;
	}
	if (CONDITIONS && step.has_condition &&
		((step.kind != RHH_JOIN_INNER && step.kind != RHH_JOIN_RIGHT) || step.build.lists == NULL))
		rhh_drop_unmatched(plan, batch, j, alive, tuple);
	if (!alive)
		return false;
	/* rows in lists are marked when tuples are made of them */
	if (tuple->rows[1 + j] != RHH_NO_ROW && step.build.lists == NULL)
		rhh_mark_matched(step, tuple->rows[1 + j]);
	switch (step.kind)
	{
		case RHH_JOIN_LEFT:
		case RHH_JOIN_FULL:
			return true;
		case RHH_JOIN_ANTI:
			return tuple->rows[1 + j] == RHH_NO_ROW;
		default:
			return tuple->rows[1 + j] != RHH_NO_ROW;
	}
}

/* Counts the rows without a match that come into a stage as output of their join. */
RHH_DEV void
rhh_count_unmatched(const rhh_join_stage &stage, bool alive, uint32_t *n_joined)
{
	uint32_t	n;

	if (!stage.first || stage.side == 0)
		return;
	n = (uint32_t) __popc(__ballot_sync(RHH_WARP, alive));
	if ((threadIdx.x & 31) == 0 && n > 0)
		atomicAdd(&n_joined[stage.side - 1], n);
}

/*
 * Does the joins from begin up to, but without, end for the tuples of a warp; a lane
 * without one says !alive.  Adds the tuples that come out of each to n_joined, in shared
 * memory.  Returns whether the lane's tuple has come out of all.
 */
template <bool CONDITIONS>
RHH_DEV bool
rhh_join_tuples(const rhh_join_plan &plan, const rhh_rows &batch, uint32_t begin,
				uint32_t end, bool alive, rhh_tuple *tuple, uint32_t *n_joined)
{
	for (uint32_t j = begin; j < end; j++)
	{
		uint32_t	n;

		alive = rhh_join_tuple<CONDITIONS>(plan, batch, j, alive, tuple);
		n = (uint32_t) __popc(__ballot_sync(RHH_WARP, alive));
		if (n == 0)
			break;				/* the same for the whole warp */
		if ((threadIdx.x & 31) == 0)
			atomicAdd(&n_joined[j], n);
	}
	return alive;
}

/*
 * Does a tuple that comes out of the last stage pass the filter?  !alive: there is none.  All
 * lanes of a warp call it; *n_filtered, in shared memory, counts those that do not pass.
 */
RHH_DEV bool
rhh_filter_tuple(const rhh_join_plan &plan, const rhh_rows &batch, bool alive,
				 const rhh_tuple &tuple, uint32_t *n_filtered)
{
	const bool	passes = alive && rhh_passes(plan, batch, tuple);
	const uint32_t filtered = __ballot_sync(RHH_WARP, alive && !passes);

	if ((threadIdx.x & 31) == 0 && filtered != 0)
		atomicAdd(n_filtered, (uint32_t) __popc(filtered));
	return passes;
}

/*
 * Does a last stage that does not fan out, and makes rows of what comes out of it, and
 * passes the filter, if there is one (FILTER); *filtered counts what does not.  counts->n_rows, which the caller has zeroed,
 * becomes the number of these.  CONDITIONS: a join of the stage has one.
 */
template <bool FILTER, bool CONDITIONS>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_join_kernel(const rhh_join_plan *__restrict__ plan, const __grid_constant__ rhh_rows batch,
				const __grid_constant__ rhh_join_stage stage,
				const __grid_constant__ rhh_row_columns columns, rhh_join_counts *counts,
				uint64_t *joined, uint64_t *filtered)
{
	__shared__ uint32_t warp_sums[RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	__shared__ uint32_t n_joined[RHH_MAX_JOINS];
	__shared__ uint32_t n_filtered;
	__shared__ uint32_t block_at;
	const uint32_t n_tuples = rhh_stage_tuples(stage);

	if (threadIdx.x < RHH_MAX_JOINS)
		n_joined[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		n_filtered = 0;
	__syncthreads();
	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x; first < n_tuples;
		 first += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t	i = first + threadIdx.x;
		bool		alive = i < n_tuples;
		rhh_tuple	tuple;
		uint32_t	at,
					all;

		if (alive)
			alive = rhh_load_tuple(*plan, stage, (uint32_t) i, &tuple);
		rhh_count_unmatched(stage, alive, n_joined);
		alive = rhh_join_tuples<CONDITIONS>(*plan, batch, stage.begin_join, stage.end_join, alive, &tuple,
											n_joined);
		if (FILTER)
			alive = rhh_filter_tuple(*plan, batch, alive, tuple, &n_filtered);
		at = rhh_block_scan<RHH_CUDA_BLOCK_THREADS>((uint32_t) alive, warp_sums, &all);
		if (threadIdx.x == 0 && all > 0)
			block_at = atomicAdd(&counts->n_rows, all);
		__syncthreads();
		if (alive)
			rhh_make_row(*plan, batch, columns, tuple, block_at + at);
		__syncthreads();
	}
	if (threadIdx.x < RHH_MAX_JOINS && n_joined[threadIdx.x] > 0)
		atomicAdd((unsigned long long *) &joined[threadIdx.x],
				  (unsigned long long) n_joined[threadIdx.x]);
	if (FILTER && threadIdx.x == 0 && n_filtered > 0)
		atomicAdd((unsigned long long *) filtered, (unsigned long long) n_filtered);
}

/*
 * Does a stage that fans out, as far as what its joins find.  A block has
 * RHH_CUDA_BLOCK_THREADS tuples, whose sums it leaves in tuples.before, and in
 * tuples.blocks_before the number of the block's output.  CONDITIONS: a join of the stage has
 * one.
 */
template <bool CONDITIONS>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_join_count_kernel(const rhh_join_plan *__restrict__ plan, const __grid_constant__ rhh_rows batch,
					  const __grid_constant__ rhh_join_stage stage, uint64_t *joined)
{
	__shared__ uint64_t warp_sums[RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	__shared__ uint32_t n_joined[RHH_MAX_JOINS];
	const uint32_t last = stage.end_join - 1;
	const rhh_tuples &tuples = stage.tuples;
	const uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
	const bool	exists = i < rhh_stage_tuples(stage);
	bool		alive = exists;
	uint64_t	n = 0;
	uint64_t	before,
				all;
	rhh_tuple	tuple;

	if (threadIdx.x < RHH_MAX_JOINS)
		n_joined[threadIdx.x] = 0;
	__syncthreads();
	if (alive)
		alive = rhh_load_tuple(*plan, stage, (uint32_t) i, &tuple);
	rhh_count_unmatched(stage, alive, n_joined);
	alive = rhh_join_tuples<CONDITIONS>(*plan, batch, stage.begin_join, last, alive, &tuple,
										n_joined);
	if (rhh_join_tuple<CONDITIONS>(*plan, batch, last, alive, &tuple))
	{
		uint32_t	end = tuple.rows[stage.end_join];

		n = end == RHH_NO_ROW ? 1 : plan->joins[last].build.lists[end];
	}
	before = rhh_block_scan<RHH_CUDA_BLOCK_THREADS>(n, warp_sums, &all);
	if (exists)
	{
		tuples.before[i] = before;
		for (uint32_t side = stage.begin_join + 1; side <= stage.end_join; side++)
			if (tuples.sides[side] != NULL)
				tuples.sides[side][i] = alive ? tuple.rows[side] : RHH_NO_ROW;
	}
	if (threadIdx.x == 0)
		tuples.blocks_before[blockIdx.x] = all;
	if (threadIdx.x < last && n_joined[threadIdx.x] > 0)
		atomicAdd((unsigned long long *) &joined[threadIdx.x],
				  (unsigned long long) n_joined[threadIdx.x]);
}

/*
 * Makes of the number of each block's output that of the output before it, and stores the
 * number of all in *total, and adds it to *joined.  If joined is NULL, the output has candidates,
 * of which those that are matches are counted later.  One block.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_join_total_kernel(uint32_t n_blocks, uint64_t *blocks_before, uint64_t *total, uint64_t *joined)
{
	__shared__ uint64_t warp_sums[RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	uint64_t	sum = 0;

	for (uint32_t first = 0; first < n_blocks; first += blockDim.x)
	{
		uint32_t	b = first + threadIdx.x;
		uint64_t	n = b < n_blocks ? blocks_before[b] : 0;
		uint64_t	all;
		uint64_t	before = rhh_block_scan<RHH_CUDA_BLOCK_THREADS>(n, warp_sums, &all);

		if (b < n_blocks)
			blocks_before[b] = sum + before;
		sum += all;
		__syncthreads();
	}
	if (threadIdx.x == 0)
	{
		*total = sum;
		if (joined != NULL)
			atomicAdd((unsigned long long *) joined, (unsigned long long) sum);
	}
}

/* The last of n increasing numbers that is not greater than x; the first one is not. */
RHH_DEV uint32_t
rhh_last_not_above(const uint64_t *numbers, uint32_t n, uint64_t x)
{
	uint32_t	low = 0;

	while (n > 1)
	{
		uint32_t	half = n / 2;

		if (numbers[low + half] <= x)
			low += half;
		n -= half;
	}
	return low;
}

/*
 * Makes tuple number at of what comes out of a stage that fans out.  n_tuples come into it,
 * in n_blocks blocks.
 */
RHH_DEV void
rhh_expand_tuple(const rhh_join_plan &plan, const rhh_join_stage &stage, uint32_t n_tuples,
				 uint32_t n_blocks, uint64_t at, rhh_tuple *tuple)
{
	const uint32_t *lists = plan.joins[stage.end_join - 1].build.lists;
	const rhh_tuples &tuples = stage.tuples;
	const uint32_t block = rhh_last_not_above(tuples.blocks_before, n_blocks, at);
	uint32_t	i = block * RHH_CUDA_BLOCK_THREADS;
	uint32_t	end;

	/* of equal numbers the last one, so the tuple has output */
	at -= tuples.blocks_before[block];
	i += rhh_last_not_above(tuples.before + i,
							::min((uint32_t) RHH_CUDA_BLOCK_THREADS, n_tuples - i), at);
	at -= tuples.before[i];

	(void) rhh_load_tuple(plan, stage, i, tuple);
	for (uint32_t side = stage.begin_join + 1; side < stage.end_join; side++)
		tuple->rows[side] = tuples.sides[side] != NULL ? tuples.sides[side][i] : RHH_NO_ROW;
	end = tuples.sides[stage.end_join][i];
	if (end != RHH_NO_ROW)
		end = lists[end - lists[end] + at];
	tuple->rows[stage.end_join] = end;
}

/*
 * Makes at most most_rows rows of a stage that fans out, from row `from` of its output on:
 * tuples of the next stage, or, if this is the last one (COLUMNS), columns and their
 * number, counts->n_rows.  If there is a filter (FILTER), the rows are those of these that
 * pass it, and the caller has zeroed their number.  The same holds if the join that fans out has
 * a condition (CONDITION); then *joined counts its matches, and the next stage's tuples are
 * marked instead.  *filtered counts what does not pass.  total is that of this stage's output.
 */
template <bool COLUMNS, bool FILTER, bool CONDITION>
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_join_expand_kernel(const rhh_join_plan *__restrict__ plan, const __grid_constant__ rhh_rows batch,
					   const __grid_constant__ rhh_join_stage stage, const uint64_t *total,
					   uint64_t from, uint32_t most_rows, const __grid_constant__ rhh_tuples out,
					   const __grid_constant__ rhh_row_columns columns, rhh_join_counts *counts,
					   uint64_t *joined, uint64_t *filtered)
{
	__shared__ uint32_t warp_sums[RHH_CUDA_BLOCK_THREADS / RHH_WARP_SIZE];
	__shared__ uint32_t block_at;
	__shared__ uint32_t n_joined;
	__shared__ uint32_t n_filtered;
	const uint32_t n_tuples = rhh_stage_tuples(stage);
	const uint32_t n_blocks = (n_tuples + RHH_CUDA_BLOCK_THREADS - 1) / RHH_CUDA_BLOCK_THREADS;
	const uint64_t left = from < *total ? *total - from : 0;
	const uint32_t n = left < most_rows ? (uint32_t) left : most_rows;

	if (COLUMNS && !FILTER && !CONDITION && blockIdx.x == 0 && threadIdx.x == 0)
		counts->n_rows = n;
	if (CONDITION || FILTER)
	{
		if (threadIdx.x == 0)
			n_joined = n_filtered = 0;
		__syncthreads();
	}
	for (uint64_t first = (uint64_t) blockIdx.x * blockDim.x; first < n;
		 first += (uint64_t) gridDim.x * blockDim.x)
	{
		const uint64_t o = first + threadIdx.x;
		bool		alive = o < n;
		uint32_t	at = (uint32_t) o;
		uint32_t	all;
		rhh_tuple	tuple;

		if (alive)
			rhh_expand_tuple(*plan, stage, n_tuples, n_blocks, from + o, &tuple);
		/* of a row without a match LEFT makes a tuple, too */
		if (CONDITION && alive && tuple.rows[stage.end_join] != RHH_NO_ROW)
			alive = rhh_is_match(*plan, batch, stage.end_join - 1, tuple);
		if (alive && tuple.rows[stage.end_join] != RHH_NO_ROW)
			rhh_mark_matched(plan->joins[stage.end_join - 1], tuple.rows[stage.end_join]);
		if (CONDITION)
		{
			uint32_t	matches;

			matches = __ballot_sync(RHH_WARP, alive);
			if ((threadIdx.x & 31) == 0 && matches != 0)
				atomicAdd(&n_joined, (uint32_t) __popc(matches));
			if (!COLUMNS && !alive)
				tuple.rows[0] = RHH_DROPPED;
		}
		if (COLUMNS && (FILTER || CONDITION))
		{
			if (FILTER)
				alive = rhh_filter_tuple(*plan, batch, alive, tuple, &n_filtered);
			at = rhh_block_scan<RHH_CUDA_BLOCK_THREADS>((uint32_t) alive, warp_sums, &all);
			if (threadIdx.x == 0 && all > 0)
				block_at = atomicAdd(&counts->n_rows, all);
			__syncthreads();
			at += block_at;
			__syncthreads();
		}
		if (COLUMNS && alive)
			rhh_make_row(*plan, batch, columns, tuple, at);
		else if (!COLUMNS && o < n)
			for (uint32_t side = 0; side <= stage.end_join; side++)
				if (out.sides[side] != NULL)
					out.sides[side][o] = tuple.rows[side];
	}
	if (CONDITION || FILTER)
	{
		__syncthreads();
		if (CONDITION && threadIdx.x == 0 && n_joined > 0)
			atomicAdd((unsigned long long *) joined, (unsigned long long) n_joined);
		if (FILTER && threadIdx.x == 0 && n_filtered > 0)
			atomicAdd((unsigned long long *) filtered, (unsigned long long) n_filtered);
	}
}

/* ---------- refused rows ---------- */

/* Refuses all rows, of which only the device knows the number. */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_refuse_kernel(const __grid_constant__ rhh_rows rows)
{
	const uint32_t n = rhh_n_rows(rows);
	const uint32_t n_words = (n + 31) / 32;

	for (uint32_t w = blockIdx.x * blockDim.x + threadIdx.x; w < n_words;
		 w += gridDim.x * blockDim.x)
		rows.refused[w] = w == n / 32 ? (1u << n % 32) - 1 : UINT32_MAX;
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*rows.n_refused = n;
}

/*
 * Gathers the refused rows, and the bad ones, which are behind the others, as the columns
 * that the caller of a join's batch gets: with bitmaps of NULLs, and one of bad rows, which
 * have been zeroed.  counts->n_gathered, which is zero, counts them.
 */
static __global__ void __launch_bounds__(RHH_CUDA_BLOCK_THREADS)
rhh_hand_back_kernel(const __grid_constant__ rhh_rows rows,
					 const __grid_constant__ rhh_row_columns to, uint32_t *bad,
					 rhh_join_counts *counts)
{
	const uint32_t lane = threadIdx.x & 31;
	const uint32_t n_good = rhh_n_rows(rows);
	const uint32_t n = n_good + counts->n_bad;

	for (uint64_t first = blockIdx.x * blockDim.x + (threadIdx.x & ~31u); first < n;
		 first += gridDim.x * blockDim.x)
	{
		uint32_t	row = (uint32_t) first + lane;
		bool		is_bad = row >= n_good && row < n;
		uint32_t	taken = __ballot_sync(RHH_WARP, is_bad);
		uint32_t	at = 0;

		if (first < n_good)
			taken |= rows.refused[first >> 5];
		if (taken == 0)
			continue;			/* the same for the whole warp */
		if (lane == 0)
			at = atomicAdd(&counts->n_gathered, (uint32_t) __popc(taken));
		at = __shfl_sync(RHH_WARP, at, 0) + (uint32_t) __popc(taken & ((1u << lane) - 1));
		if ((taken >> lane & 1) == 0)
			continue;
		for (uint32_t c = 0; c < to.n_columns; c++)
		{
			uint32_t	bytes = to.bytes[c];

			rhh_store_value(to.base + to.values_offset[c], at, bytes,
							rhh_value(rows, c, bytes, row),
							bytes > 8 ? rhh_value_high(rows, c, row) : 0);
			if (rhh_is_null(rows, c, row))
				atomicOr((uint32_t *) (to.base + to.nulls_offset[c]) + (at >> 5),
						 1u << (at & 31));
		}
		if (is_bad)
			atomicOr(&bad[at >> 5], 1u << (at & 31));
	}
}

#endif							/* RHH_JOINS_CUH */
