/*
 * rhh_cuda_join.cuh
 *		Maps of the CUDA device whose rows are the output of joins: memory for pieces
 *		of it, and the kernels that make a piece.
 *
 * A batch is uploaded as any other.  Then pieces of its output are made, one after the
 * other, and each is aggregated, as rows that the device has made in its own memory.  The
 * next piece is made as soon as the one before is in the map, while the caller knows
 * nothing of it; if rows of a piece were refused they are handed to the caller, and the
 * batch's event says where to go on.  A batch in flight has
 *
 *		+-------------------+------------------------+-------------------+
 *		| a piece: columns, | tuples that come into  | into stage 1, ... |
 *		| bytes of NULLs    | stage 0, what it finds |                   |
 *		+-------------------+------------------------+-------------------+
 *
 * which is the memory of the map, counts towards the limits, and is there from map_join
 * on.  A position (rhh_position) is, if stages are counted from 0,
 *
 *		at[0]		the first row of the batch that comes into stage 0; it takes up to
 *					piece_rows of them at a time.  Of rows of a build side without a
 *					match it is the first of all its rows, and their first stage is
 *					the one behind the join.
 *		at[1 + s]	of what comes out of stage s, which fans out: the row from which on the
 *					piece, or the next stage, takes up to the piece's rows
 *
 * So a batch costs the host one round trip for each piece, and no more, if nothing fans
 * out.
 *
 * Of a piece more rows may be refused than the caller has room for.  That is rare, as a map grows while it
 * can; so the rows that have no room are a *spill*: they wait in memory of the host, and are handed back with whichever
 * batch comes again next.  As long as there are any, every event says more, so one does come again.  Then the
 * position has
 *
 *		at[RHH_MAX_JOINS]	how often the batch came, and flags, RHH_AT_DONE and RHH_AT_SMALL
 *
 * Pieces of batches that come after that are as small as the room is, as those of columns are if the map returns all rows.
 * A batch that comes again has them as it had them, since positions are counted in pieces.
 */
#ifndef RHH_CUDA_JOIN_CUH
#define RHH_CUDA_JOIN_CUH

#include "cuda/rhh_cuda_memory.cuh"

/* In a position that is not the beginning: the batch's own output is complete; its pieces are small. */
#define RHH_AT_DONE		1
#define RHH_AT_SMALL	2
#define RHH_AT_TIMES	4

/* ---------- what map_join prepares ---------- */

/* Which column of which side a number of rhh_join_spec is. */
static rhh_from
rhh_from_number(const rhh_join_spec *spec, uint32_t number)
{
	rhh_from	from;
	uint32_t	side = 0;
	uint32_t	n_columns = spec->n_columns;

	memset(&from, 0, sizeof(from));
	while (number >= n_columns)
	{
		number -= n_columns;
		n_columns = spec->joins[side++].build->spec.n_columns;
	}
	from.side = (uint8_t) side;
	if (side == 0)
	{
		from.at = (uint16_t) number;
		from.bytes = spec->column_bytes[number];
		from.null_bit = RHH_NEVER_NULL;
	}
	else
	{
		const rhh_map *build = spec->joins[side - 1].build;

		from.at = build->kept->layout.at[number];
		from.bytes = build->spec.column_bytes[number];
		from.null_bit = (build->seen.null_columns >> number & 1) != 0 ? (uint8_t) number
			: RHH_NEVER_NULL;
	}
	return from;
}

static void
rhh_make_join_plan(rhh_join_plan *plan, const rhh_map_spec *map, const rhh_join_spec *spec)
{
	uint32_t	n = 0;

	plan->n_sides = 1 + spec->n_joins;
	for (uint32_t j = 0; j < spec->n_joins; j++)
	{
		const rhh_map *build = spec->joins[j].build;

		plan->joins[j].build = build->kept->view;
		plan->joins[j].kind = spec->joins[j].kind;
		for (uint32_t k = 0; k < build->spec.n_keys; k++)
			plan->joins[j].keys[k] = rhh_from_number(spec, spec->joins[j].key_column[k]);
		plan->joins[j].has_condition = spec->joins[j].condition != NULL;
		if (!plan->joins[j].has_condition)
			continue;
		plan->joins[j].condition = *spec->joins[j].condition;
		plan->joins[j].looks_at_all = rhh_program_may_be_bad(spec->joins[j].condition) &&
			(!rhh_has_build_columns(spec->joins[j].kind) ||
			 !rhh_has_outer_columns(spec->joins[j].kind));
		for (uint32_t c = 0; c < spec->joins[j].n_condition_columns; c++)
			plan->joins[j].condition_columns[c] =
				rhh_from_number(spec, spec->joins[j].condition_column[c]);
	}
	for (uint32_t side = 0; side < plan->n_sides; side++)
	{
		plan->first_column[side] = n;
		for (uint32_t c = 0; c < map->n_columns; c++)
		{
			rhh_from	from;

			if (spec->column[c] == RHH_COMPUTED)
				continue;
			from = rhh_from_number(spec, spec->column[c]);
			from.column = (uint8_t) c;
			if (from.side != side)
				continue;
			plan->place[c] = (uint8_t) n;
			plan->columns[n++] = from;
		}
	}
	plan->first_column[plan->n_sides] = n;
	if (spec->program != NULL)
		plan->program = *spec->program;
}

/* Cuts the joins into stages. */
static void
rhh_make_stages(rhh_joins *joins)
{
	const rhh_join_spec *spec = &joins->spec;

	joins->n_stages = 0;
	for (uint32_t j = 0; j < spec->n_joins; j++)
	{
		uint8_t		kind = spec->joins[j].kind;

		joins->last_fans_out = rhh_has_build_columns(kind) && rhh_has_outer_columns(kind) &&
			spec->joins[j].build->kept->view.lists != NULL;
		if (joins->last_fans_out || j == spec->n_joins - 1)
			joins->begin[++joins->n_stages] = j + 1;
	}
}

/* Can the probe kernel do a join?  Then this is what it needs. */
static bool
rhh_make_probe_join(const rhh_join_step *step, rhh_probe_join *join)
{
	const rhh_kept_view *build = &step->build;
	const rhh_key_plan *plan = &build->plan;

	if ((step->kind != RHH_JOIN_INNER && step->kind != RHH_JOIN_LEFT &&
		 step->kind != RHH_JOIN_SEMI && step->kind != RHH_JOIN_ANTI) ||
		step->has_condition || step->matched != NULL || build->n_parts > 1 || build->n_slots == 0 ||
		plan->form == RHH_KEY_WIDE)
		return false;
	for (uint32_t k = 0; k < plan->n_keys; k++)
	{
		if (step->keys[k].side != 0)
			return false;
		join->keys[k] = step->keys[k];
		join->shift[k] = plan->shift[k];
	}
	join->slots = build->slots;
	join->n_buckets = rhh_index_buckets(*build);
	join->direct = build->direct;
	join->n_slots = build->n_slots;
	join->least_key = build->least_key;
	join->wide_slots = build->slot_words == 2;
	join->verifies = plan->bits > 32;
	join->kind = step->kind;
	join->n_keys = plan->n_keys;
	join->key_bits = plan->bits;
	join->hash = plan->hash;
	return true;
}

/* Finds out whether the probe kernel can do all joins.  Their stages are known. */
static void
rhh_make_probe(rhh_joins *joins)
{
	joins->probes = joins->n_stages == 1 && !joins->last_fans_out &&
		joins->spec.n_joins <= RHH_CUDA_PROBE_JOINS &&
		!(joins->has_program && joins->plan.program.has_filter);
	for (uint32_t j = 0; j < joins->spec.n_joins && joins->probes; j++)
		joins->probes = rhh_make_probe_join(&joins->plan.joins[j], &joins->probe.joins[j]);
}

static bool
rhh_fans_out(const rhh_joins *joins, uint32_t stage)
{
	return stage + 1 < joins->n_stages || (stage + 1 == joins->n_stages && joins->last_fans_out);
}

/*
 * The stage that the rows of a batch come into first.  Behind the last join it is one more
 * than there are, which has no joins.
 */
static uint32_t
rhh_first_stage(const rhh_joins *joins, const rhh_in_flight *f)
{
	uint32_t	stage = 0;

	while (stage < joins->n_stages && joins->begin[stage + 1] <= f->batch.unmatched)
		stage++;
	return stage;
}

/* The stage that makes columns of them. */
static uint32_t
rhh_last_stage(const rhh_joins *joins, const rhh_in_flight *f)
{
	return joins->n_stages == 0 ? 0 : ::max(rhh_first_stage(joins, f), joins->n_stages - 1);
}

/* Has a join from begin up to, but without, end a condition? */
static bool
rhh_has_condition(const rhh_joins *joins, uint32_t begin, uint32_t end)
{
	for (uint32_t j = begin; j < end; j++)
		if (joins->plan.joins[j].has_condition)
			return true;
	return false;
}

/* Does anything need to know the row that a tuple has in a side? */
static bool
rhh_side_is_used(const rhh_joins *joins, uint32_t side)
{
	const rhh_join_plan *plan = &joins->plan;

	for (uint32_t j = side; j < joins->spec.n_joins; j++)
	{
		for (uint32_t k = 0; k < joins->spec.joins[j].build->spec.n_keys; k++)
			if (plan->joins[j].keys[k].side == side)
				return true;
		for (uint32_t c = 0; c < joins->spec.joins[j].n_condition_columns; c++)
			if (plan->joins[j].condition_columns[c].side == side)
				return true;
	}
	return plan->first_column[side] != plan->first_column[side + 1];
}

/*
 * Says where everything is in memory for pieces of so many rows.  Offsets of 0 say that
 * something is not there; columns come first.
 */
static void
rhh_lay_out_joins(const rhh_map *t, rhh_joins *joins, uint32_t piece_rows)
{
	uint64_t	at = 0;

	joins->piece_rows = piece_rows;
	joins->columns_at = 0;
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
	{
		joins->values_at[c] = (uint32_t) at;
		at += rhh_align((uint64_t) piece_rows * t->spec.column_bytes[c]);
		joins->nulls_at[c] = (uint32_t) at;
		at += rhh_align(piece_rows);
	}
	memset(joins->tuples_at, 0, sizeof(joins->tuples_at));
	for (uint32_t s = 0; s < joins->n_stages; s++)
	{
		bool		fans_out = rhh_fans_out(joins, s);
		uint32_t	last = joins->begin[fans_out ? s + 1 : s];

		/* rows of the batch are known by their numbers until the first join fans out */
		for (uint32_t side = s == 0 ? 1 : 0; side <= last; side++)
			if (side == 0 || (fans_out && side == last) || rhh_side_is_used(joins, side))
			{
				joins->tuples_at[s][side] = at;
				at += rhh_align((uint64_t) piece_rows * sizeof(uint32_t));
			}
		if (!fans_out)
			continue;
		joins->before_at[s] = at;
		at += rhh_align((uint64_t) piece_rows * sizeof(uint64_t));
		joins->blocks_before_at[s] = at;
		at += rhh_align((piece_rows / RHH_CUDA_BLOCK_THREADS + 1) * sizeof(uint64_t));
	}
	if (joins->has_program)
	{
		joins->bad_at = at;
		at += rhh_align((piece_rows + 31ULL) / 32 * sizeof(uint32_t));
		joins->bad_list_at = at;
		at += rhh_align((uint64_t) piece_rows * sizeof(uint32_t));
	}
	joins->flight_bytes = at;
	joins->bytes = rhh_align(sizeof(rhh_join_plan)) +
		rhh_align(rhh_output_bytes(&t->spec, piece_rows)) +
		RHH_CUDA_IN_FLIGHT * joins->flight_bytes;
}

/* Allocates memory for pieces.  False: there is none, or the device is broken. */
static bool
rhh_joins_alloc(rhh_map *t, rhh_joins *joins)
{
	uint64_t	limit = t->spec.memory_limit_bytes;
	uint32_t	most = ::min(t->spec.max_batch_rows, (uint32_t) RHH_CUDA_PIECE_ROWS);

	/* offsets in a piece have 32 bits; it has a byte for each NULL, and there it is a bit */
	while (rhh_output_bytes(&t->spec, most) > UINT32_MAX / 2)
		most /= 2;
	if (limit == 0 || limit > t->dev->limit_bytes)
		limit = t->dev->limit_bytes;
	for (uint32_t n = most;; n /= 2)
	{
		bool		fewest = n / 2 < RHH_CUDA_MIN_PIECE_ROWS;

		rhh_lay_out_joins(t, joins, n);
		if ((fewest || joins->bytes <= limit / RHH_CUDA_PIECE_SHARE) &&
			rhh_counted_malloc(t, &joins->memory, joins->bytes))
			return true;
		if (fewest || t->dev->broken)
			return false;
	}
}

/* The first spill that has rows to be handed back; NULL: there is none. */
static rhh_spill *
rhh_open_spill(const rhh_joins *joins)
{
	rhh_spill  *spill = joins->spills;

	while (spill != NULL && !spill->complete)
		spill = spill->next;
	return spill;
}

/* Frees the joins of a map, if it has any. */
static void
rhh_joins_free(rhh_map *t)
{
	if (t->joins == NULL)
		return;
	while (t->joins->spills != NULL)
	{
		rhh_spill  *spill = t->joins->spills;

		t->joins->spills = spill->next;
		free(spill);
	}
	rhh_counted_free(t, t->joins->matched, t->joins->matched_bytes);
	rhh_counted_free(t, t->joins->memory, t->joins->bytes);
	free(t->joins);
	t->joins = NULL;
}

/*
 * The same of a build side that shares matches: none has, and what is allocated stays for all maps that
 * are joined with it.
 */
static bool
rhh_share_matches(rhh_map *build)
{
	rhh_kept   *kept = build->kept;
	const uint64_t bytes = kept->view.n_rows + 1ULL;

	/* others use it on streams of their own */
	return kept->matched != NULL ||
		(rhh_counted_malloc(build, &kept->matched, bytes) &&
		 RHH_CUDA(build->dev, cudaMemsetAsync, kept->matched, 0, bytes, build->lane->run) &&
		 RHH_CUDA(build->dev, cudaStreamSynchronize, build->lane->run));
}

/*
 * Allocates what says which rows of build sides have a match, if anybody asks; none has.
 * False: there is no memory, or the device is broken.
 */
static bool
rhh_matched_alloc(rhh_map *t, rhh_joins *joins)
{
	uint64_t	at = 0;

	for (uint32_t j = 0; j < joins->spec.n_joins; j++)
	{
		rhh_map    *build = joins->spec.joins[j].build;

		if (!rhh_returns_unmatched(joins->spec.joins[j].kind) ||
			(build->spec.flags & RHH_SHARE_MATCHES) == 0)
			continue;
		if (!rhh_share_matches(build))
			return false;
		joins->plan.joins[j].matched = build->kept->matched;
	}
	for (uint32_t j = 0; j < joins->spec.n_joins; j++)
		if (rhh_returns_unmatched(joins->spec.joins[j].kind) && joins->plan.joins[j].matched == NULL)
			joins->matched_bytes += rhh_align(joins->plan.joins[j].build.n_rows + 1ULL);
	if (joins->matched_bytes == 0)
		return true;
	if (!rhh_counted_malloc(t, &joins->matched, joins->matched_bytes) ||
		!RHH_CUDA(t->dev, cudaMemsetAsync, joins->matched, 0, joins->matched_bytes,
				  t->lane->run))
		return false;
	for (uint32_t j = 0; j < joins->spec.n_joins; j++)
		if (rhh_returns_unmatched(joins->spec.joins[j].kind) && joins->plan.joins[j].matched == NULL)
		{
			joins->plan.joins[j].matched = joins->matched + at;
			at += rhh_align(joins->plan.joins[j].build.n_rows + 1ULL);
		}
	return true;
}

/*
 * Gives an empty map joins.  False: there is no memory, and the map has none; or the device
 * is broken.
 */
static bool
rhh_joins_make(rhh_map *t, const rhh_join_spec *spec)
{
	rhh_joins  *joins = (rhh_joins *) calloc(1, sizeof(rhh_joins));
	uint8_t    *p;

	if (joins == NULL)
		return false;
	joins->spec = *spec;
	joins->has_program = spec->program != NULL;
	joins->spec.program = NULL; /* the caller's, who may free it */
	for (uint32_t j = 0; j < spec->n_joins; j++)
		if (spec->joins[j].condition == NULL)
			joins->spec.joins[j].n_condition_columns = 0;
		else
			joins->spec.joins[j].condition = NULL;	/* the same */
	rhh_make_join_plan(&joins->plan, &t->spec, spec);
	joins->plan.bad_candidates = &t->lane->ctl->bad_candidates;
	rhh_make_stages(joins);
	if (!rhh_matched_alloc(t, joins) || !rhh_joins_alloc(t, joins))
	{
		rhh_counted_free(t, joins->matched, joins->matched_bytes);
		free(joins);
		return false;
	}
	rhh_make_probe(joins);
	t->joins = joins;
	p = joins->memory + rhh_align(sizeof(rhh_join_plan));
	joins->gathered = p;
	p += rhh_align(rhh_output_bytes(&t->spec, joins->piece_rows));
	joins->flights = p;
	/* the plan stays where it is for as long as the map has joins */
	return RHH_CUDA(t->dev, cudaMemcpyAsync, joins->memory, &joins->plan,
					sizeof(rhh_join_plan), cudaMemcpyHostToDevice, t->lane->run);
}

/* ---------- pieces ---------- */

/* The rows of the piece that a batch has, as the kernels see them. */
static rhh_rows
rhh_joined_rows(const rhh_map *t, int i)
{
	const rhh_joins *joins = t->joins;
	const rhh_join_plan *plan = &joins->plan;
	const rhh_in_flight *f = &t->flights[i];
	rhh_rows	rows = rhh_batch_rows(t, i);

	rows.base = joins->flights + i * joins->flight_bytes + joins->columns_at;
	rows.byte_nulls = true;
	rows.n_rows = f->most_rows;
	rows.n_known = &t->lane->ctl->join[i].n_rows;
	/* those that are computed, and then the others */
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
	{
		rows.values_offset[c] = joins->values_at[c];
		rows.nulls_offset[c] = joins->nulls_at[c];
	}
	for (uint32_t n = 0; n < plan->first_column[plan->n_sides]; n++)
	{
		const rhh_from *from = &plan->columns[n];
		bool		has_nulls = from->side == 0 ? f->batch.nulls_offset[from->at] != 0
			: from->null_bit != RHH_NEVER_NULL || rhh_keeps_outer(plan->joins[from->side - 1].kind);

		if (!has_nulls && from->side >= f->batch.unmatched)
			rows.nulls_offset[from->column] = 0;
	}
	return rows;
}

/* Columns as kernels that write them see them, without their base and offsets. */
static rhh_row_columns
rhh_columns_of(const rhh_map *t)
{
	rhh_row_columns columns;

	memset(&columns, 0, sizeof(columns));
	columns.n_columns = t->spec.n_columns;
	memcpy(columns.bytes, t->spec.column_bytes, sizeof(columns.bytes));
	return columns;
}

/* The tuples that a batch has at a stage, for which there may be no memory. */
static rhh_tuples
rhh_tuples_at(const rhh_map *t, int i, uint32_t stage)
{
	const rhh_joins *joins = t->joins;
	uint8_t    *memory = joins->flights + i * joins->flight_bytes;
	rhh_tuples	tuples;

	memset(&tuples, 0, sizeof(tuples));
	for (uint32_t side = 0; side < RHH_MAX_SIDES; side++)
		if (joins->tuples_at[stage][side] != 0)
			tuples.sides[side] = (uint32_t *) (memory + joins->tuples_at[stage][side]);
	tuples.before = (uint64_t *) (memory + joins->before_at[stage]);
	tuples.blocks_before = (uint64_t *) (memory + joins->blocks_before_at[stage]);
	return tuples;
}

/*
 * May a batch have pieces with more rows than it has room for?  Where all rows come back each piece has such, unless
 * there are few of them; but a batch of pages would have these read again for each.
 */
static bool
rhh_may_spill(const rhh_map *t, const rhh_batch *batch)
{
	/* refused rows come back by eights; and the position needs a place of its own */
	return t->kept == NULL && ((t->spec.flags & RHH_RETURN_ROWS) == 0 || batch->n_pages > 0) &&
		batch->refused_rows >= 8 && t->joins->n_stages + 1 < RHH_MAX_JOINS;
}

/* The rows that a piece of a batch, and what fans out before that, may have. */
static uint32_t
rhh_piece_rows(const rhh_map *t, const rhh_batch *batch)
{
	const bool	small = batch->from.at[RHH_MAX_JOINS] == 0 ? t->joins->small_pieces
		: (batch->from.at[RHH_MAX_JOINS] & RHH_AT_SMALL) != 0;

	/* of rows that are kept none comes back, nor of those that are made of groups */
	if (t->kept == NULL && batch->refused_rows > 0 && (!rhh_may_spill(t, batch) || small))
		return ::min(t->joins->piece_rows, batch->refused_rows);
	return t->joins->piece_rows;
}

/* The rows of the batch that come into its first stage at a time. */
static uint32_t
rhh_first_tuples(const rhh_map *t, const rhh_in_flight *f)
{
	uint32_t	most = rhh_fans_out(t->joins, rhh_first_stage(t->joins, f)) ? t->joins->piece_rows
		: f->piece_rows;

	return ::min(f->batch.n_rows - (uint32_t) f->at.at[0], most);
}

/* Begins with the output of a batch, or where its caller says. */
static void
rhh_begin_joins(const rhh_map *t, rhh_in_flight *f)
{
	f->at = f->batch.from;
	f->piece_rows = rhh_piece_rows(t, &f->batch);
	f->stage = rhh_first_stage(t->joins, f);
	f->counted = false;
	f->more = false;
}

/* Queues computing columns of a piece, whose others are there, and sorting out bad rows. */
static bool
rhh_launch_program(rhh_map *t, int i, const rhh_row_columns &columns)
{
	rhh_device *dev = t->dev;
	cudaStream_t run = t->lane->run;
	const rhh_joins *joins = t->joins;
	uint8_t    *memory = joins->flights + i * joins->flight_bytes;
	uint32_t   *bad = (uint32_t *) (memory + joins->bad_at);
	rhh_join_counts *counts = &t->lane->ctl->join[i];

	if (!RHH_CUDA(dev, cudaMemsetAsync, &counts->n_bad, 0, sizeof(uint32_t), run))
		return false;
	RHH_LAUNCH(rhh_compute_kernel, rhh_blocks(dev, t->flights[i].most_rows), RHH_CUDA_BLOCK_THREADS,
			   0, run, joins->plan.program, columns, bad, counts);
	RHH_LAUNCH(rhh_bad_last_kernel, 1, RHH_CUDA_BLOCK_THREADS, 0, run, columns, bad,
			   (uint32_t *) (memory + joins->bad_list_at), joins->piece_rows, counts);
	return rhh_launched(dev, "rhh_compute_kernel");
}

/* Queues the probe kernel, which does all joins. */
static void
rhh_launch_probe(rhh_map *t, const rhh_join_plan *plan, const rhh_rows &batch,
				 const rhh_join_stage &stage, const rhh_row_columns &columns,
				 rhh_join_counts *counts)
{
	const uint32_t n_joins = t->joins->spec.n_joins;
	const uint32_t block_rows = RHH_CUDA_PROBE_ITEMS * RHH_CUDA_PROBE_THREADS;
	const uint32_t blocks = ::min((stage.n_tuples - 1) / block_rows + 1,
								  (uint32_t) t->dev->n_sms * RHH_CUDA_PROBE_BLOCKS);
	auto		kernel = n_joins == 1 ? rhh_probe_kernel<1> : n_joins == 2 ? rhh_probe_kernel<2>
		: n_joins == 3 ? rhh_probe_kernel<3> : rhh_probe_kernel<4>;

	RHH_LAUNCH(kernel, blocks, RHH_CUDA_PROBE_THREADS, 0, t->lane->run, plan, t->joins->probe,
			   batch, stage.first_row, stage.n_tuples, columns, counts, t->lane->ctl->joined);
}

/* Queues the kernels that make a piece of a batch's output. */
static bool
rhh_launch_joins(rhh_map *t, int i)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const rhh_joins *joins = t->joins;
	rhh_in_flight *f = &t->flights[i];
	const rhh_join_plan *plan = (const rhh_join_plan *) joins->memory;
	rhh_join_counts *counts = &lane->ctl->join[i];
	const uint32_t piece_rows = f->piece_rows;
	const uint32_t first_tuples = rhh_first_tuples(t, f);
	const bool	filters = joins->has_program && joins->plan.program.has_filter;
	const uint32_t first_stage = rhh_first_stage(joins, f);
	const uint32_t last_stage = rhh_last_stage(joins, f);
	const rhh_rows batch = rhh_batch_rows(t, i);
	rhh_row_columns columns = rhh_columns_of(t);
	rhh_rows	rows;

	f->most_rows = rhh_fans_out(joins, first_stage) ? piece_rows : first_tuples;
	rows = rhh_joined_rows(t, i);
	columns.base = (uint8_t *) rows.base;
	memcpy(columns.values_offset, rows.values_offset, sizeof(columns.values_offset));
	memcpy(columns.nulls_offset, rows.nulls_offset, sizeof(columns.nulls_offset));

	for (uint32_t s = f->stage; s <= last_stage; s++)
	{
		rhh_join_stage stage;
		uint32_t	last;
		bool		conditions;
		bool		last_has_one;

		memset(&stage, 0, sizeof(stage));
		stage.first = s == first_stage;
		stage.side = f->batch.unmatched;
		stage.begin_join = stage.first ? f->batch.unmatched : joins->begin[s];
		stage.end_join = s < joins->n_stages ? joins->begin[s + 1] : joins->spec.n_joins;
		last = stage.end_join - 1;
		stage.first_row = (uint32_t) f->at.at[0];
		stage.n_tuples = stage.first ? first_tuples : piece_rows;
		stage.total = stage.first ? NULL : &counts->totals[s - 1];
		stage.from = stage.first ? 0 : f->at.at[s];
		if (s < joins->n_stages)
			stage.tuples = rhh_tuples_at(t, i, s);
		conditions = rhh_has_condition(joins, stage.begin_join, stage.end_join);
		last_has_one = rhh_has_condition(joins, last, stage.end_join);
		if (s == last_stage && (filters || last_has_one || !rhh_fans_out(joins, s)) &&
			!RHH_CUDA(dev, cudaMemsetAsync, &counts->n_rows, 0, sizeof(uint32_t), lane->run))
			return false;
		if (joins->probes && stage.first && f->batch.unmatched == 0)
		{
			rhh_launch_probe(t, plan, batch, stage, columns, counts);
			break;
		}
		if (!rhh_fans_out(joins, s))
		{
			RHH_LAUNCH((filters ? (conditions ? rhh_join_kernel<true, true>
								   : rhh_join_kernel<true, false>)
						: (conditions ? rhh_join_kernel<false, true>
						   : rhh_join_kernel<false, false>)),
					   rhh_blocks(dev, stage.n_tuples), RHH_CUDA_BLOCK_THREADS, 0, lane->run, plan,
					   batch, stage, columns, counts, lane->ctl->joined, &lane->ctl->filtered);
			break;
		}
		if (s > f->stage || !f->counted)
		{
			uint32_t	n_blocks = (stage.n_tuples - 1) / RHH_CUDA_BLOCK_THREADS + 1;

			RHH_LAUNCH((conditions ? rhh_join_count_kernel<true> : rhh_join_count_kernel<false>),
					   n_blocks, RHH_CUDA_BLOCK_THREADS, 0, lane->run, plan, batch, stage,
					   lane->ctl->joined);
			RHH_LAUNCH(rhh_join_total_kernel, 1, RHH_CUDA_BLOCK_THREADS, 0, lane->run, n_blocks,
					   stage.tuples.blocks_before, &counts->totals[s],
					   last_has_one ? NULL : &lane->ctl->joined[last]);
		}
		if (s == last_stage)
			RHH_LAUNCH((filters ? (last_has_one ? rhh_join_expand_kernel<true, true, true>
								   : rhh_join_expand_kernel<true, true, false>)
						: (last_has_one ? rhh_join_expand_kernel<true, false, true>
						   : rhh_join_expand_kernel<true, false, false>)),
					   rhh_blocks(dev, piece_rows), RHH_CUDA_BLOCK_THREADS, 0, lane->run, plan, batch,
					   stage, &counts->totals[s], f->at.at[1 + s], piece_rows, stage.tuples, columns,
					   counts, &lane->ctl->joined[last], &lane->ctl->filtered);
		else
			RHH_LAUNCH((last_has_one ? rhh_join_expand_kernel<false, false, true>
						: rhh_join_expand_kernel<false, false, false>), rhh_blocks(dev, piece_rows),
					   RHH_CUDA_BLOCK_THREADS, 0, lane->run, plan, batch, stage,
					   &counts->totals[s], f->at.at[1 + s], piece_rows, rhh_tuples_at(t, i, s + 1),
					   columns, counts, &lane->ctl->joined[last], &lane->ctl->filtered);
	}
	if (!rhh_launched(dev, "joining") ||
		(joins->has_program && !rhh_launch_program(t, i, columns)))
		return false;

	/* The two halves of a SUM_I128 are exact for up to so many rows. */
	f->refuse_all = (t->spec.flags & RHH_RETURN_ROWS) != 0 ||
		(t->has_i128 && t->rows_submitted + f->most_rows > (uint64_t) 1 << 31);
	if (!f->refuse_all)
		t->rows_submitted += f->most_rows;
	return true;
}

/* Queues refusing all rows of the piece. */
static bool
rhh_launch_refuse(rhh_map *t, int i)
{
	rhh_rows	rows = rhh_joined_rows(t, i);

	RHH_LAUNCH(rhh_refuse_kernel, rhh_blocks(t->dev, rows.n_rows), RHH_CUDA_BLOCK_THREADS, 0,
			   t->lane->run, rows);
	return rhh_launched(t->dev, "rhh_refuse_kernel");
}

/*
 * The rows of a piece are in the map, or have been handed back.  Finds where the next one
 * begins; false: there is none.
 */
static bool
rhh_next_piece(rhh_map *t, int i)
{
	const rhh_joins *joins = t->joins;
	const rhh_join_counts *counts = &t->lane->snapshot[i].join[i];
	rhh_in_flight *f = &t->flights[i];
	const uint32_t first_stage = rhh_first_stage(joins, f);
	uint32_t	first_tuples = rhh_first_tuples(t, f);

	/* of the stages that have output left the last one */
	for (uint32_t s = joins->n_stages; s-- > first_stage;)
	{
		uint64_t   *at = &f->at.at[1 + s];

		if (rhh_fans_out(joins, s) && *at < counts->totals[s] &&
			counts->totals[s] - *at > f->piece_rows)
		{
			*at += f->piece_rows;
			f->stage = s;
			f->counted = true;
			return true;
		}
		*at = 0;
	}
	f->stage = first_stage;
	f->counted = false;
	f->at.at[0] += first_tuples;
	return f->at.at[0] < f->batch.n_rows;
}

/* Queues copying the first n refused rows, which have been gathered, to where room says that rows are. */
static bool
rhh_launch_return(rhh_map *t, uint8_t *to, uint32_t room, uint32_t n)
{
	rhh_device *dev = t->dev;
	cudaStream_t run = t->lane->run;
	const rhh_joins *joins = t->joins;
	const uint32_t all = joins->piece_rows;

	for (uint32_t c = 0; c < t->spec.n_columns; c++)
		if (!RHH_CUDA(dev, cudaMemcpyAsync, to + rhh_output_values(&t->spec, room, c),
					  joins->gathered + rhh_output_values(&t->spec, all, c),
					  (uint64_t) n * t->spec.column_bytes[c], cudaMemcpyDefault, run) ||
			!RHH_CUDA(dev, cudaMemcpyAsync, to + rhh_output_nulls(&t->spec, room, c),
					  joins->gathered + rhh_output_nulls(&t->spec, all, c), (n + 7ULL) / 8, cudaMemcpyDefault,
					  run))
			return false;
	return !joins->has_program ||
		RHH_CUDA(dev, cudaMemcpyAsync, to + rhh_output_bad(&t->spec, room),
				 joins->gathered + rhh_output_bad(&t->spec, all), (n + 7ULL) / 8, cudaMemcpyDefault, run);
}

/* Queues making a spill of all refused rows of the piece, of which the first n_returned are handed back with it. */
static bool
rhh_launch_spill(rhh_map *t, int i, uint32_t n_returned)
{
	rhh_in_flight *f = &t->flights[i];
	rhh_spill **end = &t->joins->spills;
	rhh_spill  *spill = (rhh_spill *) calloc(1, sizeof(rhh_spill) + rhh_output_bytes(&t->spec, f->n_refused));

	if (spill == NULL)
	{
		rhh_break(t->dev, "out of memory");
		return false;
	}
	spill->n_rows = f->n_refused;
	spill->n_returned = n_returned;
	while (*end != NULL)
		end = &(*end)->next;
	*end = f->spill = spill;
	t->joins->small_pieces = (t->spec.flags & RHH_RETURN_ROWS) == 0;
	return rhh_launch_return(t, spill->rows, spill->n_rows, spill->n_rows);
}

/* Hands the next rows of a spill back with a batch. */
static void
rhh_drain(rhh_map *t, int i, rhh_spill *spill)
{
	rhh_in_flight *f = &t->flights[i];
	const uint32_t room = f->batch.refused_rows;
	const uint32_t n = ::min(spill->n_rows - spill->n_returned, room & ~7u);
	uint8_t    *to = f->batch.base + f->batch.refused_offset;

	for (uint32_t c = 0; c < t->spec.n_columns; c++)
	{
		memcpy(to + rhh_output_values(&t->spec, room, c),
			   spill->rows + rhh_output_values(&t->spec, spill->n_rows, c) +
			   (uint64_t) spill->n_returned * t->spec.column_bytes[c],
			   (uint64_t) n * t->spec.column_bytes[c]);
		memcpy(to + rhh_output_nulls(&t->spec, room, c),
			   spill->rows + rhh_output_nulls(&t->spec, spill->n_rows, c) + spill->n_returned / 8, (n + 7ULL) / 8);
	}
	if (t->joins->has_program)
		memcpy(to + rhh_output_bad(&t->spec, room),
			   spill->rows + rhh_output_bad(&t->spec, spill->n_rows) + spill->n_returned / 8, (n + 7ULL) / 8);
	f->n_returned = n;
	spill->n_returned += n;
	if (spill->n_returned == spill->n_rows)
	{
		rhh_spill **at = &t->joins->spills;

		while (*at != spill)
			at = &(*at)->next;
		*at = spill->next;
		free(spill);
	}
}

/*
 * Queues gathering the refused and the bad rows of the piece, and copying them to the caller, as far as there is
 * room for them.
 */
static bool
rhh_launch_hand_back(rhh_map *t, int i)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const rhh_joins *joins = t->joins;
	rhh_in_flight *f = &t->flights[i];
	const uint32_t room = f->batch.refused_rows;
	const bool	spills = f->n_refused > room;
	rhh_join_counts *counts = &lane->ctl->join[i];
	const uint64_t bad_at = rhh_output_bad(&t->spec, joins->piece_rows);
	rhh_rows	rows = rhh_joined_rows(t, i);
	rhh_row_columns columns = rhh_columns_of(t);

	columns.base = joins->gathered;
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
	{
		columns.values_offset[c] = (uint32_t) rhh_output_values(&t->spec, joins->piece_rows, c);
		columns.nulls_offset[c] = (uint32_t) rhh_output_nulls(&t->spec, joins->piece_rows, c);
	}
	if (!RHH_CUDA(dev, cudaMemsetAsync, &counts->n_gathered, 0, sizeof(uint32_t), lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, joins->gathered, 0,
				  rhh_output_bytes(&t->spec, joins->piece_rows), lane->run))
		return false;
	RHH_LAUNCH(rhh_hand_back_kernel, rhh_blocks(dev, rows.n_rows), RHH_CUDA_BLOCK_THREADS, 0,
			   lane->run, rows, columns, (uint32_t *) (joins->gathered + bad_at), counts);
	f->n_returned = spills ? room & ~7u : f->n_refused;
	return rhh_launched(dev, "rhh_hand_back_kernel") &&
		rhh_launch_return(t, f->batch.base + f->batch.refused_offset, room, f->n_returned) &&
		(!spills || rhh_launch_spill(t, i, f->n_returned));
}

/*
 * A batch has been given refused rows, and its own output is complete if done.  Says in the position how it goes
 * on; returns whether the batch has to come again.
 */
static bool
rhh_next_position(rhh_map *t, int i, bool done)
{
	rhh_in_flight *f = &t->flights[i];

	if (!rhh_may_spill(t, &f->batch))
		return !done;
	if (f->spill != NULL)
		f->spill->complete = true;
	f->spill = NULL;
	f->at.at[RHH_MAX_JOINS] = (f->batch.from.at[RHH_MAX_JOINS] / RHH_AT_TIMES + 1) * RHH_AT_TIMES +
		(done ? RHH_AT_DONE : 0) + (f->piece_rows < t->joins->piece_rows ? RHH_AT_SMALL : 0);
	return !done || rhh_open_spill(t->joins) != NULL;
}

#endif							/* RHH_CUDA_JOIN_CUH */
