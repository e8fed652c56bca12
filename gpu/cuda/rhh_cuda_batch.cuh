/*
 * rhh_cuda_batch.cuh
 *		What the CUDA device does with a batch: it chooses how to aggregate the rows,
 *		for which it looks at them if there are many, queues the kernels, and hands
 *		refused rows back.
 */
#ifndef RHH_CUDA_BATCH_CUH
#define RHH_CUDA_BATCH_CUH

#include "cuda/rhh_cuda_join.cuh"
#include "cuda/rhh_cuda_keep.cuh"
#include "cuda/rhh_cuda_memory.cuh"
#include "cuda/rhh_cuda_pages.cuh"

/* False if there was no memory to grow and no map has given any back since. */
static bool
rhh_may_grow(const rhh_map *t)
{
	return t->no_memory_at != t->dev->frees;
}

/* How many distinct keys the map should have room for, by what has been seen. */
static double
rhh_expected(const rhh_map *t)
{
	double		estimate = (double) t->estimate * RHH_CUDA_ESTIMATE_SLACK;

	return estimate > (double) t->seen.placed ? estimate : (double) t->seen.placed;
}

/* The rows that the map gets of a batch, as the kernels see them. */
static rhh_rows
rhh_rows_of(const rhh_map *t, int i)
{
	return t->joins != NULL ? rhh_joined_rows(t, i) : rhh_batch_rows(t, i);
}

static uint32_t
rhh_record_bytes(const rhh_map *t)
{
	return rhh_record_words(t->grouping.n_state_words) * (uint32_t) sizeof(uint64_t);
}

/* The slots of the largest local table; 0 if there is no room for any. */
static uint32_t
rhh_most_local_slots(const rhh_map *t)
{
	uint32_t	room = t->dev->local_bytes - (uint32_t) sizeof(rhh_unit_flags);
	uint32_t	n = 16;

	while ((2 * n + 1) * rhh_record_bytes(t) <= room)
		n *= 2;
	return (n + 1) * rhh_record_bytes(t) <= room ? n : 0;
}

/* The number of groups that such a table is for. */
static double
rhh_most_local_groups(const rhh_map *t)
{
	return rhh_most_local_slots(t) * rhh_aggregate_policy::FILL;
}

/* How many bits of the fingerprint make parts so small that a local table holds one. */
static uint32_t
rhh_part_bits(const rhh_map *t, double groups)
{
	uint32_t	bits = 1;

	while (bits <= RHH_CUDA_MAX_PART_BITS &&
		   groups > rhh_most_local_groups(t) * (double) (UINT64_C(1) << bits))
		bits++;
	return bits;
}

/*
 * Lays out copies of the columns, and the numbers of the rows, in the workspace from *at
 * on, and moves *at behind them.
 */
static rhh_rows
rhh_moved_rows(const rhh_map *t, int i, uint8_t *workspace, uint64_t *at)
{
	rhh_rows	rows = rhh_rows_of(t, i);
	uint64_t	n = rows.n_rows;
	uint64_t	offset = 0;

	rows.byte_nulls = true;
	rows.base = workspace + *at;
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
	{
		rows.values_offset[c] = (uint32_t) offset;
		offset += rhh_align(n * t->spec.column_bytes[c]);
	}
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
		if (rows.nulls_offset[c] != 0)
		{
			rows.nulls_offset[c] = (uint32_t) offset;
			offset += rhh_align(n);
		}
	rows.ids = (uint32_t *) (workspace + *at + offset);
	*at += offset + rhh_align(n * sizeof(uint32_t));
	return rows;
}

/* Where everything that partitioning needs is in the workspace. */
struct rhh_partition_plan
{
	uint32_t	first_bits;
	uint32_t	second_bits;	/* 0: one pass does */
	rhh_rows	first;
	rhh_rows	second;
	uint32_t   *begins[2];		/* of parts, by pass */
	uint32_t   *ends[2];
	uint32_t   *counts;			/* of the second pass */
	rhh_unit   *units;
	uint32_t   *n_units;
	rhh_stash	stash;
	uint64_t	bytes;
};

/* Lays out the workspace.  It may be NULL, to find out how many bytes are needed. */
static rhh_partition_plan
rhh_plan_partition(const rhh_map *t, int i, uint8_t *workspace)
{
	const rhh_in_flight *f = &t->flights[i];
	uint32_t	bits = f->part_bits;
	uint64_t	n_parts = UINT64_C(1) << bits;
	uint64_t	n_rows = f->batch.n_rows;
	uint64_t	n_units = n_rows / ::min(rhh_scatter_policy::ROWS, (uint32_t) RHH_CUDA_UNIT_ROWS) + n_parts +
		RHH_PASS_PARTS;
	uint64_t	parts_bytes = rhh_align(n_parts * sizeof(uint32_t));
	uint64_t	at = 0;
	rhh_partition_plan p;

	memset(&p, 0, sizeof(p));
	p.first_bits = bits <= RHH_PASS_BITS ? bits : (bits + 1) / 2;
	p.second_bits = bits - p.first_bits;
	for (int pass = 0; pass < 2; pass++)
	{
		p.begins[pass] = (uint32_t *) (workspace + at);
		at += parts_bytes * RHH_CUDA_BEGIN_STRIDE;
		p.ends[pass] = (uint32_t *) (workspace + at);
		at += parts_bytes;
	}
	p.counts = (uint32_t *) (workspace + at);
	at += parts_bytes;
	p.n_units = (uint32_t *) (workspace + at);
	at += rhh_align(2 * sizeof(uint32_t));
	p.units = (rhh_unit *) (workspace + at);
	at += rhh_align(n_units * sizeof(rhh_unit));
	p.stash.room = (uint32_t) (f->groups / rhh_aggregate_policy::STASH_SHARE) + 8 * rhh_aggregate_policy::STASH_OF_PART;
	p.stash.n = (uint32_t *) (workspace + at);
	p.stash.count = p.stash.n + 2;
	at += rhh_align((2 + n_parts) * sizeof(uint32_t));
	p.stash.first = (uint32_t *) (workspace + at);
	at += parts_bytes;
	p.stash.records = (uint64_t *) (workspace + at);
	at += rhh_align((uint64_t) p.stash.room * rhh_record_bytes(t));
	p.first = rhh_moved_rows(t, i, workspace, &at);
	if (p.second_bits > 0)
		p.second = rhh_moved_rows(t, i, workspace, &at);
	p.bytes = at;
	return p;
}

/*
 * Gets a workspace for a batch.  False: the rows cannot be partitioned, or no memory.
 *
 * A workspace belongs to the lane, which outlives the map, so neither the map nor the
 * device counts it.  But none is allocated that would not fit the limits beside what
 * is counted.
 */
static bool
rhh_get_workspace(rhh_map *t, int i)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	uint64_t	columns_bytes = 0;
	uint64_t	bytes;

	for (uint32_t c = 0; c < t->spec.n_columns; c++)
		columns_bytes += rhh_align((uint64_t) batch->n_rows * t->spec.column_bytes[c]) +
			(batch->nulls_offset[c] != 0 ? rhh_align(batch->n_rows) : 0);
	if (columns_bytes > UINT32_MAX || t->flights[i].part_bits > RHH_CUDA_MAX_PART_BITS)
		return false;
	bytes = rhh_plan_partition(t, i, NULL).bytes;
	if (lane->workspace_bytes >= bytes)
		return true;
	if (!rhh_within_limits(t, bytes))
		return false;
	if (lane->workspace != NULL)
	{
		uint8_t    *old = lane->workspace;

		lane->workspace = NULL;
		lane->workspace_bytes = 0;
		/* Waits for the batch that uses it. */
		if (!RHH_CUDA(dev, cudaFree, old))
			return false;
	}
	if (!rhh_malloc(dev, &lane->workspace, bytes))
		return false;
	lane->workspace_bytes = bytes;
	return true;
}

/* Queues estimating the groups of a batch from a sample of its rows, or from all. */
static bool
rhh_launch_look(rhh_map *t, int i, bool all)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	rhh_rows	rows = rhh_rows_of(t, i);
	uint32_t	step = all ? 1 : (rows.n_rows - 1) / RHH_CUDA_LOOK_SAMPLE + 1;

	f->looked_at_all = all;
	if (!RHH_CUDA(dev, cudaStreamWaitEvent, lane->run, lane->uploaded[i], 0) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->batch[i].start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, lane->counts[i], 0,
				  RHH_PASS_PARTS * sizeof(uint32_t), lane->run))
		return false;
	RHH_LAUNCH(rhh_look_kernel, rhh_blocks(dev, rows.n_rows / step), RHH_CUDA_BLOCK_THREADS,
			   sizeof(rhh_look_space), lane->run,
			   t->grouping, rows, step, lane->sketch, lane->counts[i]);
	if (!rhh_launched(dev, "rhh_look_kernel"))
		return false;
	RHH_LAUNCH(rhh_estimate_kernel, 1, RHH_CUDA_BLOCK_THREADS,
			   sizeof(rhh_estimate_space), lane->run,
			   lane->sketch, &lane->ctl->estimate);
	f->state = BATCH_LOOKING;
	f->launch = ++t->launches;
	return rhh_launched(dev, "rhh_estimate_kernel") &&
		rhh_end_step(t, &lane->batch[i], &lane->snapshot[i]);
}

/*
 * What the rows of a batch are added to: all states but sums of columns that are 0 in all of them.  With joins the arguments are
 * columns of their output, and not the batch's.
 */
static rhh_grouping
rhh_batch_grouping(const rhh_map *t, int i)
{
	const uint64_t zeros = t->joins == NULL ? t->flights[i].batch.zero_columns : 0;
	rhh_grouping grouping = t->grouping;

	grouping.n_states = 0;
	for (uint32_t s = 0; s < t->grouping.n_states; s++)
	{
		const rhh_grouping_state &st = t->grouping.states[s];

		if ((st.op != RHH_SUM_I64 && st.op != RHH_SUM_I128) || (zeros >> st.arg & 1) == 0)
			grouping.states[grouping.n_states++] = st;
	}
	return grouping;
}

/* The sum to 128 bits of the same values as a maximum, which has none yet; NULL: there is no such sum. */
static rhh_grouping_state *
rhh_sum_beside(rhh_grouping *grouping, const rhh_grouping_state &max)
{
	for (uint32_t s = 0; s < grouping->n_states; s++)
	{
		rhh_grouping_state *st = &grouping->states[s];

		if (st->op == RHH_SUM_I128 && st->arg == max.arg && st->max_word == RHH_NO_WORD)
			return st;
	}
	return NULL;
}

/*
 * Can SIMPLE kernels aggregate these rows?  See rhh_update_rows().  Then *simple is the grouping for them.  It has no maxima, which
 * numerics have beside their sums, for NaN, but each of these sums has a word for its own.
 */
static bool
rhh_make_simple(const rhh_grouping &grouping, const rhh_rows &rows, rhh_grouping *simple)
{
	*simple = grouping;
	simple->n_states = 0;
	for (uint32_t s = 0; s < grouping.n_states; s++)
	{
		const rhh_grouping_state &st = grouping.states[s];
		const bool	sums = (st.op == RHH_SUM_I64 || st.op == RHH_SUM_I128) && st.bytes >= 4;

		if ((st.op != RHH_COUNT && !sums && st.op != RHH_MAX_I64) || st.filter >= 0 ||
			(st.arg >= 0 && rows.nulls_offset[st.arg] != 0))
			return false;
		if (st.op != RHH_MAX_I64)
			simple->states[simple->n_states++] = st;
	}
	for (uint32_t s = 0; s < grouping.n_states; s++)
	{
		const rhh_grouping_state &st = grouping.states[s];
		rhh_grouping_state *sum = st.op == RHH_MAX_I64 ? rhh_sum_beside(simple, st) : NULL;

		if (sum != NULL)
			sum->max_word = st.word;
		else if (st.op == RHH_MAX_I64)
			return false;
	}
	return true;
}

/*
 * Queues aggregating rows in shared memory and entering their groups into the map.  The
 * kernels leave some rows to the batch kernel.  groups: an estimate for one unit.
 */
static bool
rhh_launch_aggregate(rhh_map *t, int i, const rhh_grouping &of_batch, const rhh_view &view, const rhh_rows &rows,
					 const rhh_units &units, const rhh_stash &stash, uint32_t blocks,
					 double groups)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	uint32_t   *left = &lane->ctl->left[i];
	uint32_t	most_slots = rhh_most_local_slots(t);
	uint32_t	part_buckets = (view.n_buckets >> units.part_bits) + 1;
	uint32_t	n_slots = 16;
	uint32_t	n_copies = 1;
	size_t		shared;
	rhh_grouping simple_grouping;
	const bool	simple = rhh_make_simple(of_batch, rows, &simple_grouping);
	const rhh_grouping &grouping = simple ? simple_grouping : of_batch;
	auto		launch = [&](rhh_entering entering, size_t space) {
		RHH_BY_VARIANT(t->variant,
					   auto kernel = simple ? rhh_aggregate_kernel<BYTES, VERIFY, true>
					   : rhh_aggregate_kernel<BYTES, VERIFY, false>;
					   RHH_LAUNCH(kernel, blocks, rhh_aggregate_policy::THREADS, shared + space,
								  lane->run, grouping, view, rows, units, n_slots, n_copies,
								  entering, stash, left));
	};

	while (n_slots < most_slots && n_slots * rhh_aggregate_policy::FILL_FEW < groups)
		n_slots *= 2;
	while (n_copies < RHH_WARP_SIZE &&
		   2 * n_copies * (n_slots + 1) * rhh_record_bytes(t) <= rhh_aggregate_policy::COPIES_BYTES)
		n_copies *= 2;
	shared = rhh_aggregate_space_bytes(n_copies * (n_slots + 1),
									   rhh_record_words(t->grouping.n_state_words));
	if (!RHH_CUDA(dev, cudaMemsetAsync, rows.refused, 0, (rows.n_rows + 31ULL) / 32 * 4,
				  lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, left, 0, sizeof(uint32_t), lane->run))
		return false;

	/* An empty map is built, if each part's range of it fits a block. */
	if (units.part_bits > 0 && t->n_entering == 0 && part_buckets <= rhh_aggregate_policy::BUILD_BUCKETS &&
		part_buckets * t->slots_per_bucket <= rhh_aggregate_policy::BUILD_SLOTS)
	{
		if (!RHH_CUDA(dev, cudaMemsetAsync, stash.n, 0,
					  (2 + (UINT64_C(1) << units.part_bits)) * sizeof(uint32_t), lane->run))
			return false;
		launch(RHH_ENTER_BUILD, sizeof(rhh_build_space));
		launch(RHH_ENTER_SPLIT, 0);
		RHH_BY_VARIANT(t->variant,
					   RHH_LAUNCH((rhh_enter_stash_kernel<BYTES, VERIFY>),
								  ::min(blocks, (uint32_t) dev->n_sms * 2), RHH_CUDA_BLOCK_THREADS,
								  0, lane->run, t->grouping, view, rows, stash);
					   RHH_LAUNCH((rhh_leave_stash_kernel<BYTES, VERIFY>), blocks,
								  rhh_aggregate_policy::THREADS,
								  (2 * rhh_aggregate_policy::STASH_OF_PART + 1) * rhh_record_words(0) *
								  sizeof(uint64_t), lane->run, t->grouping, rows, units, stash, left));
	}
	else
		launch(RHH_ENTER_ALL, 0);
	t->n_entering++;
	return rhh_launched(dev, "rhh_aggregate_kernel");
}

static bool
rhh_launch_units(rhh_map *t, const rhh_partition_plan &p, const uint32_t *ends, uint32_t bits,
				 uint32_t unit_rows)
{
	uint32_t	n_parts = 1u << bits;

	if (!RHH_CUDA(t->dev, cudaMemsetAsync, p.n_units, 0, 2 * sizeof(uint32_t), t->lane->run))
		return false;
	RHH_LAUNCH(rhh_units_kernel, ::min(n_parts, (uint32_t) RHH_CUDA_UNITS_BLOCKS),
			   RHH_CUDA_UNITS_THREADS, 0, t->lane->run, ends, n_parts, unit_rows, p.units, p.n_units);
	return rhh_launched(t->dev, "rhh_units_kernel");
}

/* Queues moving the rows to their parts, and gives the units of these. */
static bool
rhh_launch_partition(rhh_map *t, int i, const rhh_partition_plan &p, uint32_t unit_rows,
					 rhh_units *units)
{
	rhh_device *dev = t->dev;
	cudaStream_t run = t->lane->run;
	rhh_rows	rows = rhh_rows_of(t, i);
	uint32_t	blocks = (uint32_t) dev->n_sms * 4;
	rhh_digit	digit = {32 - p.first_bits, p.first_bits};

	*units = {NULL, NULL, NULL, rows.n_rows, rhh_scatter_policy::ROWS, 0};
	RHH_LAUNCH(rhh_offsets_kernel, 1, RHH_PASS_PARTS, 0, run, t->lane->counts[i], NULL,
			   p.first_bits, RHH_PASS_BITS - p.first_bits, p.begins[0], p.ends[0]);
	RHH_LAUNCH(rhh_scatter_rows_kernel, blocks, rhh_scatter_policy::THREADS,
			   sizeof(rhh_scatter_space), run, t->grouping, rows, p.first, *units, digit, p.begins[0]);
	if (p.second_bits > 0)
	{
		*units = {p.units, p.n_units, NULL, 0, 0, p.first_bits};
		digit = {32 - p.first_bits - p.second_bits, p.second_bits};
		if (!RHH_CUDA(dev, cudaMemsetAsync, p.counts, 0,
					  sizeof(uint32_t) << (p.first_bits + p.second_bits), run) ||
			!rhh_launch_units(t, p, p.ends[0], p.first_bits, rhh_scatter_policy::ROWS))
			return false;
		RHH_LAUNCH(rhh_count_kernel, blocks, RHH_CUDA_BLOCK_THREADS,
				   RHH_PASS_PARTS * sizeof(uint32_t), run, t->grouping, p.first, *units, digit,
				   p.counts);
		RHH_LAUNCH(rhh_offsets_kernel, 1u << p.first_bits, RHH_PASS_PARTS, 0, run, p.counts,
				   p.ends[0], p.second_bits, 0, p.begins[1], p.ends[1]);
		RHH_LAUNCH(rhh_scatter_rows_kernel, blocks, rhh_scatter_policy::THREADS,
				   sizeof(rhh_scatter_space), run, t->grouping, p.first, p.second, *units, digit, p.begins[1]);
	}
	*units = {p.units, p.n_units, NULL, 0, 0, p.first_bits + p.second_bits};
	if (!rhh_launch_units(t, p, p.second_bits > 0 ? p.ends[1] : p.ends[0], units->part_bits,
						  unit_rows))
		return false;
	return rhh_launched(dev, "partitioning");
}

/* The map as a launch of so many tiles sees it: how many numbers each takes at a time. */
static rhh_view
rhh_view_for(const rhh_map *t, uint32_t n_tiles)
{
	rhh_view	view = rhh_view_of(t, &t->body, t->orphan_list);

	view.chunk = view.group_cap / RHH_CUDA_CHUNK_SHARE / n_tiles;
	if (view.chunk < 1)
		view.chunk = 1;
	if (view.chunk > RHH_CUDA_MAX_CHUNK)
		view.chunk = RHH_CUDA_MAX_CHUNK;
	return view;
}

/* Queues the kernels that take rows to the map, all or (replay) the refused ones. */
static bool
rhh_launch_rows(rhh_map *t, int i, bool replay)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	const rhh_grouping grouping = rhh_batch_grouping(t, i);
	rhh_rows	rows = rhh_rows_of(t, i);
	uint32_t	tiles_per_block = RHH_CUDA_BLOCK_THREADS / RHH_GROUP_LANES;
	uint32_t	blocks = rhh_blocks(dev, rows.n_rows);
	uint32_t	most_blocks = t->body.group_cap / RHH_CUDA_GROUPS_PER_TILE / tiles_per_block;
	bool		aggregate = !replay && f->method != METHOD_ROWS;
	const uint32_t *n_left = aggregate ? &lane->ctl->left[i] : NULL;

	if (blocks > most_blocks)
		blocks = most_blocks < 1 ? 1 : most_blocks;
	if (aggregate)
	{
		/* Each tile may take a number for the same group: have fewer of them. */
		uint32_t	agg_tiles = rhh_aggregate_policy::THREADS / RHH_GROUP_LANES;
		uint32_t	most = t->body.group_cap / 4 * 3 / agg_tiles;
		uint32_t	agg_blocks = (uint32_t) dev->n_sms * 2;
		double		groups = f->groups;
		rhh_units	units = {NULL, NULL, rows.n_known, rows.n_rows, 0, 0};
		rhh_rows	from = rows;
		rhh_stash	stash = {};

		if (agg_blocks > most)
			agg_blocks = most < 1 ? 1 : most;
		if (f->method == METHOD_PARTS)
		{
			rhh_partition_plan p = rhh_plan_partition(t, i, lane->workspace);
			uint32_t	bits = p.first_bits + p.second_bits;

			if (p.bytes > lane->workspace_bytes)
			{
				rhh_break(dev, "the workspace of a batch is too small");
				return false;
			}
			if (!rhh_launch_partition(t, i, p, ::max((uint32_t) RHH_CUDA_UNIT_ROWS, rows.n_rows / agg_blocks),
									  &units))
				return false;
			from = p.second_bits > 0 ? p.second : p.first;
			stash = p.stash;
			groups /= (double) (UINT64_C(1) << bits);
		}
		else
		{
			uint64_t	unit_rows = (rows.n_rows - 1) / agg_blocks + 1;

			if (unit_rows < RHH_CUDA_LOCAL_MIN_ROWS)
				unit_rows = RHH_CUDA_LOCAL_MIN_ROWS;
			if (unit_rows < RHH_CUDA_LOCAL_ROWS_PER_GROUP * groups)
				unit_rows = (uint64_t) (RHH_CUDA_LOCAL_ROWS_PER_GROUP * groups);
			units.unit_rows = (uint32_t) unit_rows;
		}
		if (!rhh_launch_aggregate(t, i, grouping, rhh_view_for(t, agg_blocks * agg_tiles), from, units,
								  stash, agg_blocks, groups))
			return false;
	}
	RHH_BY_VARIANT(t->variant,
				   RHH_LAUNCH((rhh_batch_kernel<BYTES, VERIFY>), blocks,
							  RHH_CUDA_BLOCK_THREADS, 0, lane->run,
							  grouping, rhh_view_for(t, blocks * tiles_per_block), rows,
							  replay || aggregate, n_left));
	t->n_entering++;
	return rhh_launched(dev, "rhh_batch_kernel");
}

/*
 * Queues everything that becomes of a batch, or of the next piece of what joins make of it;
 * or (replay) only of the rows that were refused.
 */
static bool
rhh_launch_batch(rhh_map *t, int i, bool replay)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];

	if (!RHH_CUDA(dev, cudaStreamWaitEvent, lane->run, lane->uploaded[i], 0) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->batch[i].start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, &lane->ctl->refused[i], 0, sizeof(uint32_t), lane->run) ||
		(t->joins != NULL && !replay && !rhh_launch_joins(t, i)) ||
		!(f->refuse_all ? rhh_launch_refuse(t, i)
		  : t->kept != NULL ? rhh_launch_keep(t, i, rhh_rows_of(t, i)) : rhh_launch_rows(t, i, replay)))
		return false;
	f->state = BATCH_RUNNING;
	f->launch = ++t->launches;
	return rhh_end_step(t, &lane->batch[i], &lane->snapshot[i]);
}

/*
 * Does the next step of a queued batch: looks at it, makes it wait until there is room
 * for its groups (then the map is to DRAIN), or runs it.
 */
static bool
rhh_start_batch(rhh_map *t, int i)
{
	rhh_in_flight *f = &t->flights[i];

	if (t->kept != NULL || (t->spec.flags & RHH_RETURN_ROWS) != 0)
		return rhh_launch_batch(t, i, false);
	if (f->method == METHOD_UNKNOWN)
	{
		uint64_t	groups = t->seen_launch > 0 ? t->seen.placed : t->spec.expected_groups;

		/* what joins make of a batch is not looked at: how many rows there are nobody knows */
		if (f->batch.on_device && t->joins == NULL && f->batch.n_rows >= t->dev->look_rows &&
			rhh_most_local_slots(t) > 0)
			return rhh_launch_look(t, i, false);
		/*
		 * So many rows are aggregated while nothing has been seen, whatever is expected: that
		 * costs little if there are many groups, and all rows in turn if there are few.
		 */
		if (t->seen_launch == 0 && f->batch.n_rows >= t->dev->look_rows)
			groups = 0;
		f->method = groups <= RHH_CUDA_LOCAL_MAX_GROUPS && groups <= rhh_most_local_groups(t)
			? METHOD_LOCAL : METHOD_ROWS;
		f->groups = t->seen_launch > 0 ? 2.0 * (double) groups : RHH_CUDA_LOCAL_MAX_GROUPS;
	}
	if (rhh_may_grow(t) && rhh_expected(t) > rhh_slots_of(t, &t->body) * t->spec.load_factor)
	{
		t->mode = MAP_DRAIN;
		return true;
	}
	return rhh_launch_batch(t, i, false);
}

/* The rows have been looked at: chooses how to aggregate them. */
static bool
rhh_looked(rhh_map *t, int i, const rhh_control *snapshot)
{
	rhh_in_flight *f = &t->flights[i];

	f->state = BATCH_QUEUED;
	t->estimate = snapshot->estimate;
	/* Kept with the batch: the workspace is made for this, and estimates change. */
	f->groups = rhh_expected(t);
	f->part_bits = rhh_part_bits(t, f->groups);
	if (rhh_expected(t) <= rhh_most_local_groups(t))
		f->method = METHOD_LOCAL;
	else if (!f->looked_at_all)
		return rhh_launch_look(t, i, true);
	else
		f->method = rhh_get_workspace(t, i) ? METHOD_PARTS : METHOD_ROWS;
	if (t->dev->broken)
		return false;
	return t->mode != MAP_BUILD || rhh_start_batch(t, i);
}

/* Starts the batches that are queued, as long as the map need not grow. */
static bool
rhh_launch_queued(rhh_map *t)
{
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->mode == MAP_BUILD && t->flights[i].state == BATCH_QUEUED &&
			!rhh_start_batch(t, i))
			return false;
	return true;
}

/* The batch is done: its event for the caller is due. */
static void
rhh_resolve(rhh_map *t, int i, rhh_status status, uint32_t n_refused)
{
	rhh_in_flight *f = &t->flights[i];

	f->state = BATCH_READY;
	f->status = status;
	f->n_refused = n_refused;
}

/*
 * The rows of a batch, or of a piece, are in the map, apart from those that were refused
 * and have been handed back.  Goes on with the next piece, or ends the batch.  False: the
 * device is broken.
 */
static bool
rhh_rows_done(rhh_map *t, int i, uint32_t n_refused)
{
	rhh_in_flight *f = &t->flights[i];
	uint32_t	n_rows = f->batch.n_rows;
	bool		more = false;

	if (t->joins != NULL)
	{
		const rhh_join_counts *counts = &t->lane->snapshot[i].join[i];

		if (!f->refuse_all)
			t->rows_submitted -= f->most_rows - counts->n_rows;
		n_rows = counts->n_rows + counts->n_bad;
		more = rhh_next_piece(t, i);
	}
	t->stats.refused_rows += n_refused;
	if (t->kept == NULL)		/* how many are kept the device knows */
		t->stats.rows += n_rows - n_refused;
	if (more && n_refused == 0)
	{
		f->state = BATCH_QUEUED;
		f->method = METHOD_UNKNOWN;
		return t->mode != MAP_BUILD || rhh_start_batch(t, i);
	}
	if (t->joins != NULL && n_refused > 0)
	{
		n_refused = f->n_returned;
		more = rhh_next_position(t, i, !more);
	}
	f->more = more;
	if (t->joins == NULL && f->batch.n_pages > 0 && n_refused > 0)
		f->n_bad_pages += rhh_refused_pages(&f->batch);
	rhh_resolve(t, i, RHH_OK, n_refused);
	return true;
}

/*
 * Queues telling the caller the refused rows: themselves, or a bitmap of them, or by their pages.  Where no row comes
 * back the batch is done.
 */
static bool
rhh_hand_back(rhh_map *t, int i)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];

	if (t->joins != NULL && (t->kept != NULL || f->source != NULL))
	{
		/*
		 * What else comes out of the batch has no room either, or nobody asks for it.  Its event is given by the poll() that
		 * has come here.
		 */
		t->stats.refused_rows += f->n_refused;
		rhh_resolve(t, i, RHH_OK, f->n_refused);
		return true;
	}
	f->state = BATCH_COPYBACK;
	if (t->joins != NULL)
	{
		if (!rhh_launch_hand_back(t, i))
			return false;
	}
	else if (f->batch.n_pages > 0)
	{
		if (!rhh_launch_refuse_pages(t, i))
			return false;
	}
	else if (!RHH_CUDA(dev, cudaMemcpyAsync, f->refused_to,
					   lane->refused + (uint64_t) i * lane->refused_bytes,
					   (f->batch.n_rows + 31ULL) / 32 * 4, cudaMemcpyDefault, lane->run))
		return false;
	return (!f->batch.cached || rhh_launch_tell_pages(t, i, lane->run)) &&
		RHH_CUDA(dev, cudaEventRecord, lane->batch[i].done, lane->run) &&
		rhh_wake_after(t, lane->batch[i].done);
}

#endif							/* RHH_CUDA_BATCH_CUH */
