/*
 * rhh_cpu_join.c
 *		Joins the batches of a map of the CPU device with rows that other maps keep.
 *
 * rhh_cpu_join.h describes how these rows lie in memory.  Rows of a batch go through the
 * joins some hundreds at a time, in stages, so that the cache misses of a stage overlap:
 *
 *		take		takes the columns of the key from the batch, or from the records that
 *					joins before have found
 *		hash		makes fingerprints
 *		look up		prefetches the directory's entries; then looks at the filters, and
 *					prefetches the records of those rows whose keys may be there
 *		match		compares keys, and finds the first match and their number
 *		advance		makes the rows that come out of the join, up to some hundreds
 *
 * If a join has a condition, what these stages find are candidates only.  Then advance makes pairs
 * of a row and a candidate, runs the condition for them, and keeps those rows that come out.
 * A row may have more candidates than are looked at together, or than fit a piece; so whether
 * it has had a match is kept with the number of those that are done.  Candidates for which the
 * condition is bad are counted; then the caller has no use for the output.
 *
 * What comes out goes through the next join at once, and the rest of the rows before it
 * wait (rhh_cpu_level).  The rows that come out of the last join are written to a piece.
 * A level has the numbers of rows and records only; the columns are taken from where they
 * lie when a join or the piece needs them.
 *
 * Matching marks the rows of a build side of which those without a match, or those with one, are
 * asked for.  When all rows have come, these are looked for.  They go the same way, from the level
 * behind the join on; sides before that have no row.
 */
#include <stdlib.h>

#include "cpu/rhh_cpu_join.h"

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---------- the joins of a map ---------- */

/* Where column c of the joins' is. */
static rhh_cpu_source
find_source(const rhh_join_spec *spec, const rhh_cpu_rows *const *builds, uint32_t c)
{
	rhh_cpu_source source = {.null_bit = -1};
	const rhh_cpu_field *field;

	if (c < spec->n_columns)
	{
		source.column = (uint8_t) c;
		source.bytes = spec->column_bytes[c];
		return source;
	}
	c -= spec->n_columns;
	for (source.side = 1; c >= builds[source.side - 1]->layout->spec.n_columns; source.side++)
		c -= builds[source.side - 1]->layout->spec.n_columns;
	for (field = builds[source.side - 1]->fields; field->column != c; field++)
		;
	source.bytes = field->bytes;
	source.offset = field->offset;
	source.may_be_missing = rhh_keeps_outer(spec->joins[source.side - 1].kind);
	if (builds[source.side - 1]->any_nulls)
		source.null_bit = field->null_bit;
	return source;
}

/* Lays out a piece of n rows.  Returns its bytes. */
static size_t
lay_out_piece(rhh_cpu_joins *joins, uint32_t n)
{
	size_t		at = 64;		/* an offset of 0 says that there is no NULL */

	for (uint32_t c = 0; c < joins->n_columns; c++)
	{
		joins->values_offset[c] = (uint32_t) at;
		at += ((size_t) n * joins->columns[c].bytes + 63) / 64 * 64;
		joins->nulls_offset[c] = (uint32_t) at;
		at += ((size_t) n + 511) / 512 * 64;
	}
	joins->piece_rows = n;
	return at;
}

/* Does the map itself have to know which rows of a join's build side have a match? */
static bool
has_matches(const rhh_cpu_one_join *join)
{
	return rhh_returns_unmatched(join->kind) && join->build->matched == NULL;
}

/* Makes what says which rows of build sides have a match.  False: no memory. */
static bool
make_matched(rhh_cpu_joins *joins, rhh_cpu_budget *budget)
{
	uint64_t	bytes = 0;
	uint64_t	at = 0;

	for (uint32_t j = 0; j < joins->spec.n_joins; j++)
	{
		rhh_cpu_one_join *join = &joins->joins[j];

		if (has_matches(join))
			bytes += join->build->n_rows + UINT64_C(1);
		else if (rhh_returns_unmatched(join->kind))
			join->matched = join->build->matched;
	}
	if (bytes == 0)
		return true;
	if (!rhh_cpu_charge(budget, bytes))
		return false;
	joins->budget = budget;
	joins->charged_bytes = bytes;
	joins->matched = calloc(bytes, 1);
	for (uint32_t j = 0; joins->matched != NULL && j < joins->spec.n_joins; j++)
		if (has_matches(&joins->joins[j]))
		{
			joins->joins[j].matched = joins->matched + at;
			at += joins->joins[j].build->n_rows + 1;
		}
	return joins->matched != NULL;
}

/* What programs of the joins need in memory, and a bitmap of the rows that one drops. */
static size_t
scratch_bytes(const rhh_join_spec *spec)
{
	size_t		most = spec->program == NULL ? 0 : rhh_program_scratch(spec->program);
	bool		any = spec->program != NULL;

	for (uint32_t j = 0; j < spec->n_joins; j++)
	{
		const rhh_program *condition = spec->joins[j].condition;

		if (condition != NULL && rhh_program_scratch(condition) > most)
			most = rhh_program_scratch(condition);
		any |= condition != NULL;
	}
	return any ? (most + RHH_CPU_PIECE_ROWS / 8 + 63) / 64 * 64 : 0;
}

/* Copies the condition of join j. */
static void
make_condition(rhh_cpu_one_join *join, const rhh_join_spec *spec,
			   const rhh_cpu_rows *const *builds, uint32_t j)
{
	const rhh_join *from = &spec->joins[j];

	join->has_condition = from->condition != NULL;
	if (!join->has_condition)
		return;
	join->condition = *from->condition;
	join->may_be_bad = rhh_program_may_be_bad(&join->condition);
	join->n_columns = from->n_condition_columns;
	for (uint32_t c = 0; c < join->n_columns; c++)
	{
		rhh_cpu_source source = find_source(spec, builds, from->condition_column[c]);

		/* of a candidate there is a row */
		source.may_be_missing &= source.side != j + 1;
		join->columns[c] = source;
		join->column_bytes[c] = source.bytes;
	}
}

/*
 * Prepares joins that have been checked, for a map of this spec and with this budget, with
 * states for n_states batches in flight.  NULL: no memory.
 */
rhh_cpu_joins *
rhh_cpu_joins_make(const rhh_join_spec *spec, const rhh_cpu_rows *const *builds,
				   const rhh_map_spec *map, uint32_t n_states, rhh_cpu_budget *budget)
{
	const size_t scratch = scratch_bytes(spec);
	const size_t state_bytes = (sizeof(rhh_cpu_join_state) +
								(spec->n_joins + 1) * sizeof(rhh_cpu_level) + 63) / 64 * 64 +
		scratch;
	rhh_cpu_joins *joins = calloc(1, sizeof(*joins));

	if (joins == NULL)
		return NULL;
	joins->spec = *spec;
	joins->has_program = spec->program != NULL;
	if (joins->has_program)
		joins->program = *spec->program;
	joins->scratch_bytes = scratch;
	joins->state_bytes = state_bytes;
	joins->n_columns = map->n_columns;
	for (uint32_t j = 0; j < spec->n_joins; j++)
	{
		rhh_cpu_one_join *join = &joins->joins[j];

		join->build = builds[j];
		join->kind = spec->joins[j].kind;
		join->plan = builds[j]->layout->plan;
		for (uint32_t k = 0; k < join->plan.n_keys; k++)
		{
			join->plan.column[k] = (uint8_t) k;
			join->keys[k] = find_source(spec, builds, spec->joins[j].key_column[k]);
		}
		make_condition(join, spec, builds, j);
	}
	for (uint32_t c = 0; c < map->n_columns; c++)
	{
		if (spec->column[c] != RHH_COMPUTED)
			joins->columns[c] = find_source(spec, builds, spec->column[c]);
		else
			joins->columns[c] = (rhh_cpu_source){
				.side = RHH_CPU_COMPUTED, .bytes = map->column_bytes[c], .null_bit = -1
			};
	}
	joins->piece_rows = min_u32(map->max_batch_rows, RHH_CPU_PIECE_ROWS);
	while (lay_out_piece(joins, joins->piece_rows) > RHH_CPU_PIECE_BYTES)
		joins->piece_rows /= 2;
	joins->states = aligned_alloc(64, n_states * state_bytes);
	if (joins->states == NULL || !make_matched(joins, budget))
	{
		rhh_cpu_joins_free(joins);
		return NULL;
	}
	for (uint32_t i = 0; i < n_states; i++)
	{
		rhh_cpu_join_state *state = (void *) (joins->states + i * state_bytes);

		state->next = joins->free_states;
		joins->free_states = state;
	}
	return joins;
}

/* Frees the joins with all states.  joins may be NULL. */
void
rhh_cpu_joins_free(rhh_cpu_joins *joins)
{
	if (joins == NULL)
		return;
	if (joins->charged_bytes > 0)
		rhh_cpu_release(joins->budget, joins->charged_bytes);
	free(joins->matched);
	free(joins->states);
	free(joins);
}

/* ---------- how far the output is ---------- */

/*
 * In a position, beside the number of a row's candidates that are done: one of them was a
 * match.
 */
#define HAD_MATCH (UINT64_C(1) << 63)

/* Begins with the output of a batch at batch->from. */
void
rhh_cpu_join_start(rhh_cpu_joins *joins, rhh_cpu_join_state *state, const rhh_batch *batch)
{
	const uint64_t *from = batch->from.at;
	uint64_t	any = from[0];

	state->base = batch->unmatched;
	state->first_row = 0;
	state->next_row = from[0] < batch->n_rows ? (uint32_t) from[0] : batch->n_rows;
	state->depth = state->base;
	state->at_end = false;
	state->n_bad = 0;
	state->levels[state->base].n = state->levels[state->base].at = 0;
	for (uint32_t j = 0; j < joins->spec.n_joins; j++)
	{
		state->skip[j] = from[j + 1] & ~HAD_MATCH;
		state->skip_had_match[j] = (from[j + 1] & HAD_MATCH) != 0;
		any |= from[j + 1];
	}
	/* not of a batch that was submitted before: that does not begin at the beginning */
	if (any == 0 && state->base == 0)
		atomic_fetch_add_explicit(&joins->probe_rows, batch->n_rows, memory_order_relaxed);
}

/* Which match, or candidate, of its row before join `depth` a row of the next level has. */
static uint64_t
number_of_match(const rhh_cpu_joins *joins, const rhh_cpu_join_state *state, uint32_t depth,
				uint32_t row)
{
	const rhh_cpu_one_join *join = &joins->joins[depth];
	const rhh_cpu_level *level = &state->levels[depth];
	const uint32_t parent = level[1].parent[row];

	/* such a row comes out when all candidates are done */
	if (join->has_condition && level[1].record[row] == join->build->n_rows)
		return level->count[parent];
	return level[1].record[row] - level->first[parent];
}

/*
 * The position behind what has come out: a row of the batch, or of the build side whose rows
 * without a match it is, and for each join the number of the next match, of the row and the
 * matches before it.
 */
void
rhh_cpu_join_position(const rhh_cpu_joins *joins, const rhh_cpu_join_state *state,
					  rhh_position *next)
{
	uint32_t	depth = state->depth;
	uint32_t	row;

	memset(next, 0, sizeof(*next));
	next->at[0] = state->next_row;
	while (state->levels[depth].at == state->levels[depth].n)
		if (depth-- == state->base)
			return;
	row = state->levels[depth].at;
	next->at[depth + 1] = state->levels[depth].taken;
	if (state->levels[depth].had_match)
		next->at[depth + 1] |= HAD_MATCH;
	for (; depth > state->base; depth--)
	{
		next->at[depth] = number_of_match(joins, state, depth - 1, row);
		row = state->levels[depth].parent[row];
	}
	next->at[0] = depth == 0 ? state->first_row + row : state->levels[depth].record[row];
}

/* ---------- columns of a level ---------- */

/* The rows of one side that some rows of a level were made of. */
typedef struct side_view
{
	bool		none;			/* the side has none for any of them */
	const rhh_batch *batch;		/* side 0: the batch, and the numbers of its rows */
	const uint32_t *row;
	const uint8_t **record;		/* other sides: records */
	const uint8_t *missing;		/* and which record stands for none */
	uint32_t	n;
} side_view;

/* Looks at the first n rows of a level from one side.  It is the scratch memory's. */
static side_view
view_side(const rhh_cpu_joins *joins, const rhh_cpu_join_state *state,
		  const rhh_batch *batch, rhh_cpu_scratch *scratch, uint32_t depth, uint32_t side,
		  uint32_t n)
{
	const rhh_cpu_rows *build;
	uint32_t   *trace = scratch->join_trace;
	side_view	view = {.batch = batch, .n = n, .none = side < state->base};

	if (view.none)
		return view;
	/* which ones of level `side` these came of */
	if (depth == side)
		for (uint32_t i = 0; i < n; i++)
			trace[i] = i;
	else
		memcpy(trace, state->levels[depth].parent, n * sizeof(uint32_t));
	for (uint32_t d = depth; d > side + 1; d--)
	{
		const uint32_t *parent = state->levels[d - 1].parent;

		for (uint32_t i = 0; i < n; i++)
			trace[i] = parent[trace[i]];
	}
	if (side == 0)
	{
		for (uint32_t i = 0; i < n; i++)
			trace[i] += state->first_row;
		view.row = trace;
		return view;
	}
	build = joins->joins[side - 1].build;
	for (uint32_t i = 0; i < n; i++)
		scratch->join_record[i] = build->records +
			(size_t) build->stride * state->levels[side].record[trace[i]];
	view.record = scratch->join_record;
	view.missing = build->records + (size_t) build->stride * build->n_rows;
	return view;
}

/* Copies a column's values, which are anything where it is NULL. */
static void
take_values(const rhh_cpu_source *source, const side_view *view, void *to)
{
	if (view->none)
	{
		memset(to, 0, (size_t) view->n * source->bytes);
		return;
	}
	RHH_CPU_FOR_TYPE(source->bytes, {
		T		   *out = to;

		if (source->side == 0)
		{
			const T    *v = (const void *) rhh_cpu_values(view->batch, source->column);

			for (uint32_t i = 0; i < view->n; i++)
				out[i] = v[view->row[i]];
		}
		else
			for (uint32_t i = 0; i < view->n; i++)
				memcpy(&out[i], view->record[i] + source->offset, sizeof(T));
	})
}

static bool
may_be_null(const rhh_cpu_source *source, const rhh_batch *batch)
{
	if (source->side < batch->unmatched)
		return true;
	return source->side == 0 ? rhh_cpu_nulls(batch, source->column) != NULL :
		source->may_be_missing || source->null_bit >= 0;
}

/* Adds to is_null[], bytes of 0 and 1, where a column that may be NULL is. */
static void
take_nulls(const rhh_cpu_joins *joins, const rhh_cpu_source *source, const side_view *view,
		   uint8_t *is_null)
{
	if (view->none)
	{
		memset(is_null, 1, view->n);
		return;
	}
	if (source->side == 0)
	{
		const uint8_t *nulls = rhh_cpu_nulls(view->batch, source->column);

		for (uint32_t i = 0; i < view->n; i++)
			is_null[i] |= (uint8_t) rhh_cpu_bit(nulls, view->row[i]);
		return;
	}
	if (source->may_be_missing)
		for (uint32_t i = 0; i < view->n; i++)
			is_null[i] |= view->record[i] == view->missing;
	if (source->null_bit >= 0)
	{
		const uint32_t byte = joins->joins[source->side - 1].build->row_bytes +
			(uint32_t) source->null_bit / 8;

		for (uint32_t i = 0; i < view->n; i++)
			is_null[i] |= view->record[i][byte] >> source->null_bit % 8 & 1;
	}
}

/* ---------- take, hash ---------- */

/* The keys of a level's rows. */
typedef struct level_keys
{
	const uint8_t *keys;		/* as records have them, one behind the other */
	uint8_t		is_null[RHH_CPU_JOIN_ROWS]; /* 1: with NULL in it */
} level_keys;

/* Puts the columns of keys together as they are in records. */
static void
pack_keys(const rhh_cpu_one_join *join, const rhh_batch *columns, uint32_t start, uint32_t n,
		  uint8_t *keys)
{
	const size_t key_bytes = join->build->key_bytes;

	for (uint32_t k = 0; k < join->plan.n_keys; k++)
	{
		uint8_t    *to = keys + join->build->fields[k].offset;

		RHH_CPU_FOR_TYPE(join->plan.bytes[k], {
			const T    *v = (const void *) rhh_cpu_values(columns, k);

			for (uint32_t i = 0; i < n; i++)
				memcpy(to + i * key_bytes, &v[start + i], sizeof(T));
		})
	}
}

/*
 * Makes the keys of a level for its join, and their fingerprints.  Finds the rows of other parts
 * of the build side, whose keys are looked for no more than one with a NULL in it.
 */
static void
make_keys(const rhh_cpu_joins *joins, rhh_cpu_join_state *state, uint32_t depth,
		  const rhh_batch *batch, rhh_cpu_scratch *scratch, level_keys *keys)
{
	const rhh_cpu_one_join *join = &joins->joins[depth];
	const uint32_t n_keys = join->plan.n_keys;
	const uint32_t n = state->levels[depth].n;
	rhh_batch	columns;		/* of the key; only what hashing reads is set */
	uint32_t	start = 0;

	memset(keys->is_null, 0, n);
	if (depth == 0)
	{
		/* rows of the batch that are side by side, and are read where they lie */
		start = state->first_row;
		columns.base = batch->base;
	}
	else
		columns.base = scratch->join_values;
	for (uint32_t k = 0; k < n_keys; k++)
	{
		const rhh_cpu_source *source = &join->keys[k];
		side_view	view;

		columns.nulls_offset[k] = 0;
		columns.values_offset[k] = depth == 0 ? batch->values_offset[source->column] :
			k * RHH_CPU_JOIN_ROWS * 16;
		if (depth == 0 && !may_be_null(source, batch))
			continue;
		view = view_side(joins, state, batch, scratch, depth, source->side, n);
		if (depth > 0)
			take_values(source, &view, columns.base + columns.values_offset[k]);
		if (may_be_null(source, batch))
			take_nulls(joins, source, &view, keys->is_null);
	}
	for (uint32_t i = 0; i < n; i += RHH_CPU_RUN_ROWS)
	{
		uint32_t	m = min_u32(n - i, RHH_CPU_RUN_ROWS);

		rhh_cpu_hash_rows(&join->plan, &columns, scratch, start + i, m);
		memcpy(scratch->join_fp + i, scratch->fp, m * sizeof(uint32_t));
		if (!rhh_cpu_has_parts(join->build))
			continue;
		rhh_cpu_find_others(join->build, &join->plan, &columns, start + i, m, keys->is_null + i,
							state->levels[depth].other + i);
		for (uint32_t r = i; r < i + m; r++)
			keys->is_null[r] |= state->levels[depth].other[r];
	}
	if (n_keys == 1)
		keys->keys = rhh_cpu_values(&columns, 0) + (size_t) start * join->plan.bytes[0];
	else
	{
		pack_keys(join, &columns, start, n, scratch->join_keys);
		keys->keys = scratch->join_keys;
	}
}

/* ---------- look up, match ---------- */

/*
 * Asks for the entries of all rows, lists those whose keys may be there (join_row, and in
 * join_end the end of their bucket), and asks for the first records of their buckets.
 */
static uint32_t
look_up(const rhh_cpu_rows *build, rhh_cpu_level *level, const level_keys *keys,
		rhh_cpu_scratch *scratch)
{
	const uint32_t *fps = scratch->join_fp;
	const uint32_t n = level->n;
	uint32_t	m = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		const rhh_cpu_row_part *part = &build->parts[rhh_cpu_row_part_of(build, fps[i])];
		const rhh_cpu_entry *front = build->directory + part->first_entry +
			rhh_cpu_row_bucket(build, fps[i], part->n_buckets);

		scratch->join_entry[i] = front;
		__builtin_prefetch(front);
		__builtin_prefetch(front + 1);
	}
	for (uint32_t i = 0; i < n; i++)
	{
		const rhh_cpu_entry *front = scratch->join_entry[i];
		const uint32_t bits = rhh_cpu_filter_bits(fps[i]);

		level->first[i] = front->end;
		level->count[i] = 0;
		scratch->join_row[m] = i;
		scratch->join_end[m] = front[1].end;
		m += ((front[1].filter & bits) == bits) & (keys->is_null[i] ^ 1);
	}
	for (uint32_t i = 0; i < m; i++)
		__builtin_prefetch(build->records +
						   (size_t) build->stride * level->first[scratch->join_row[i]]);
	return m;
}

/* How many records from the first-th on, all in front of the end-th, have one key. */
static uint32_t
count_equal(const rhh_cpu_rows *build, uint32_t first, uint32_t end)
{
	const size_t stride = build->stride;
	const uint8_t *record = build->records + stride * first;
	uint32_t	n = 1;			/* known to have it */
	uint32_t	most = end - first;
	uint32_t	step = 1;

	while (n < most)
	{
		uint32_t	next = n + min_u32(step, most - n);

		if (rhh_cpu_same_key(record, record + stride * (next - 1), build->key_bytes))
		{
			n = next;
			step *= 2;
		}
		else
		{
			most = next - 1;
			step = 1;
		}
	}
	return n;
}

/*
 * Finds the matches of the rows that were listed, where each row of the build side has
 * another key.  Which rows match the first record of their bucket is random, so there are
 * no branches: those that do not are listed again, for the next record.
 */
static inline __attribute__((always_inline)) void
match_unique(const rhh_cpu_rows *build, rhh_cpu_level *level, const level_keys *keys,
			 rhh_cpu_scratch *scratch, uint32_t n, uint32_t key_bytes)
{
	const uint8_t *records = build->records;
	const size_t stride = build->stride;
	uint32_t   *rows = scratch->join_row;
	uint32_t   *ends = scratch->join_end;

	while (n > 0)
	{
		uint32_t	m = 0;

		for (uint32_t i = 0; i < n; i++)
		{
			const uint32_t row = rows[i];
			const uint32_t end = ends[i];
			const uint32_t at = level->first[row];
			const uint32_t same = rhh_cpu_same_key(records + stride * at,
												   keys->keys + (size_t) row * key_bytes,
												   key_bytes);

			level->count[row] = same;
			level->first[row] = at + (same ^ 1);
			rows[m] = row;
			ends[m] = end;
			m += (same ^ 1) & (at + 1 < end);
		}
		n = m;
	}
}

/* The same, and their number, where rows of the build side may have the same key. */
static void
match_many(const rhh_cpu_rows *build, rhh_cpu_level *level, const level_keys *keys,
		   const rhh_cpu_scratch *scratch, uint32_t n)
{
	const uint32_t key_bytes = build->key_bytes;
	const uint8_t *records = build->records;
	const size_t stride = build->stride;

	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t row = scratch->join_row[i];
		const uint32_t end = scratch->join_end[i];
		const uint8_t *key = keys->keys + (size_t) row * key_bytes;
		uint32_t	at = level->first[row];

		while (at < end && !rhh_cpu_same_key(records + stride * at, key, key_bytes))
			at += count_equal(build, at, end);
		level->first[row] = at;
		if (at < end)
			level->count[row] = count_equal(build, at, end);
	}
}

/*
 * Marks the rows of the build side that a level's rows match, if all that have the same key do.
 * The rows of a key are marked together, at the latest when the batch is done that was the first
 * to find them.
 */
static void
mark_matched(const rhh_cpu_one_join *join, const rhh_cpu_level *level)
{
	for (uint32_t i = 0; i < level->n; i++)
	{
		atomic_uchar *matched = join->matched + level->first[i];

		if (level->count[i] == 0 || atomic_load_explicit(matched, memory_order_relaxed) != 0)
			continue;
		for (uint32_t m = 0; m < level->count[i]; m++)
			atomic_store_explicit(matched + m, 1, memory_order_relaxed);
	}
}

/* How often rows come out follows from the number of their matches. */
static void
apply_kind(const rhh_cpu_one_join *join, rhh_cpu_level *level)
{
	uint32_t   *first = level->first;
	uint32_t   *count = level->count;

	switch (join->kind)
	{
		case RHH_JOIN_LEFT:
		case RHH_JOIN_FULL:
			for (uint32_t i = 0; i < level->n; i++)
			{
				first[i] = count[i] > 0 ? first[i] : join->build->n_rows;
				count[i] = count[i] > 0 ? count[i] : 1;
			}
			break;
		case RHH_JOIN_SEMI:
			for (uint32_t i = 0; i < level->n; i++)
				count[i] = count[i] > 0;
			break;
		case RHH_JOIN_ANTI:
			for (uint32_t i = 0; i < level->n; i++)
				count[i] = count[i] == 0;
			break;
		case RHH_JOIN_RIGHT_SEMI:
		case RHH_JOIN_RIGHT_ANTI:
			memset(count, 0, level->n * sizeof(*count));
			break;
	}
	if (rhh_cpu_has_parts(join->build))
		for (uint32_t i = 0; i < level->n; i++)
			count[i] = level->other[i] ? 0 : count[i];
	level->single = join->build->unique || !rhh_has_build_columns(join->kind) ||
		!rhh_has_outer_columns(join->kind);
}

/* Takes the rows of a level through all stages but the last. */
static void
probe(const rhh_cpu_joins *joins, rhh_cpu_join_state *state, uint32_t depth,
	  const rhh_batch *batch, rhh_cpu_scratch *scratch)
{
	const rhh_cpu_one_join *join = &joins->joins[depth];
	rhh_cpu_level *level = &state->levels[depth];
	level_keys	keys;
	uint32_t	n;

	make_keys(joins, state, depth, batch, scratch, &keys);
	n = look_up(join->build, level, &keys, scratch);
	if (!join->build->unique)
		match_many(join->build, level, &keys, scratch, n);
	else if (join->build->key_bytes == 4)
		match_unique(join->build, level, &keys, scratch, n, 4);
	else if (join->build->key_bytes == 8)
		match_unique(join->build, level, &keys, scratch, n, 8);
	else
		match_unique(join->build, level, &keys, scratch, n, join->build->key_bytes);
	if (join->matched != NULL && !join->has_condition)
		mark_matched(join, level);
	if (!join->has_condition)
		apply_kind(join, level);
	level->at = 0;
	level->taken = state->skip[depth];
	level->had_match = state->skip_had_match[depth];
	state->skip[depth] = 0;
	state->skip_had_match[depth] = false;
}

/* ---------- advance ---------- */

/* Makes up to `room` rows that come out of a level's join, in the next level. */
static void
advance(rhh_cpu_level *level, rhh_cpu_level *out, uint32_t room)
{
	uint32_t	at = level->at;
	uint64_t	taken = level->taken;
	uint32_t	n = 0;

	while (at < level->n && n < room)
	{
		if (level->single && taken == 0)
		{
			/* which rows come out is random, so there are no branches */
			const uint32_t end = at + min_u32(level->n - at, room - n);

			for (; at < end; at++)
			{
				out->parent[n] = at;
				out->record[n] = level->first[at];
				n += level->count[at];
			}
			continue;
		}
		if (taken < level->count[at])
		{
			const uint32_t first = level->first[at] + (uint32_t) taken;
			const uint32_t m = min_u32(level->count[at] - (uint32_t) taken, room - n);

			for (uint32_t i = 0; i < m; i++)
			{
				out->parent[n + i] = at;
				out->record[n + i] = first + i;
			}
			n += m;
			taken += m;
		}
		if (taken >= level->count[at])
		{
			at++;
			taken = 0;
		}
	}
	level->at = at;
	level->taken = taken;
	out->n = n;
}

/* ---------- rows without a match ---------- */

/*
 * Makes the next rows without a match, of a right semijoin with one, at most `most`, the level
 * that they come into.  Looks at so many rows of the build side that it is soon done; returns how
 * many probes that is worth.
 */
static uint32_t
find_unmatched(const rhh_cpu_joins *joins, rhh_cpu_join_state *state, const rhh_batch *batch,
			   uint32_t most)
{
	rhh_cpu_level *level = &state->levels[state->base];
	const rhh_cpu_one_join *join = &joins->joins[state->base - 1];
	const bool	with_match = join->kind == RHH_JOIN_RIGHT_SEMI;
	const uint32_t first = state->next_row;
	const uint32_t end = first + min_u32(batch->n_rows - first, RHH_CPU_LOOK_UNMATCHED);
	uint32_t	at = first;

	level->n = level->at = 0;
	for (; at < end && level->n < most; at++)
	{
		/* which rows these are is random, so there are no branches */
		level->record[level->n] = at;
		level->n += (atomic_load_explicit(&join->matched[at], memory_order_relaxed) != 0) == with_match;
	}
	state->first_row = first;
	state->next_row = at;
	return level->n + (at - first) / RHH_CPU_LOOKS_OF_PROBE;
}

/* ---------- advance, with a condition ---------- */

/* Sets bits from number at on, which are not set yet.  Returns whether any was. */
static bool
set_bits(uint8_t *bitmap, uint32_t at, const uint8_t *bits, uint32_t n)
{
	uint8_t		any = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		bitmap[(at + i) / 8] |= (uint8_t) (bits[i] << (at + i) % 8);
		any |= bits[i];
	}
	return any != 0;
}

/*
 * Makes up to `room` pairs of a level's rows and their candidates in the next level; a row
 * without candidates becomes one with the empty record, if it may come out.  Moves
 * level->at and level->taken behind them.
 */
static void
make_pairs(const rhh_cpu_one_join *join, rhh_cpu_level *level, rhh_cpu_level *out, uint32_t room)
{
	const bool	may_be_alone = rhh_keeps_outer(join->kind) || join->kind == RHH_JOIN_ANTI;
	uint32_t	n = 0;

	while (level->at < level->n && n < room)
	{
		const uint32_t at = level->at;
		const bool	alone = may_be_alone &&
			!(rhh_cpu_has_parts(join->build) && level->other[at]);
		const uint32_t taken = (uint32_t) level->taken;
		const uint32_t m = min_u32(level->count[at] - taken, room - n);

		for (uint32_t i = 0; i < m; i++)
		{
			out->parent[n + i] = at;
			out->record[n + i] = level->first[at] + taken + i;
		}
		n += m;
		if (m == 0 && alone)
		{
			out->parent[n] = at;
			out->record[n++] = join->build->n_rows;
		}
		level->taken += m;
		if (level->taken == level->count[at])
		{
			level->at++;
			level->taken = 0;
		}
	}
	out->n = n;
}

/*
 * Of n pairs in a level the condition of the join before was bad for those in bad, a bitmap.
 * Counts those that are candidates, and adds all to dropped.
 */
static void
count_bad(rhh_cpu_joins *joins, const rhh_cpu_one_join *join, const rhh_cpu_level *pairs,
		  const uint8_t *bad, uint8_t *dropped)
{
	uint64_t	n = 0;

	/* the empty record is no candidate, whatever the condition makes of it */
	for (uint32_t i = 0; i < pairs->n; i++)
		n += rhh_cpu_bit(bad, i) && pairs->record[i] != join->build->n_rows;
	for (uint32_t i = 0; i < (pairs->n + 7) / 8; i++)
		dropped[i] |= bad[i];
	atomic_fetch_add_explicit(&joins->bad_candidates, n, memory_order_relaxed);
}

/*
 * Runs the condition of a level's join for the pairs in the next level.  dropped, a bitmap,
 * gets those that are no match.
 */
static void
check_pairs(rhh_cpu_joins *joins, const rhh_cpu_join_state *state, uint32_t depth,
			const rhh_batch *batch, rhh_cpu_scratch *scratch, uint8_t *dropped)
{
	const rhh_cpu_one_join *join = &joins->joins[depth];
	const uint32_t n = state->levels[depth + 1].n;
	uint8_t    *program_scratch = (uint8_t *) state + joins->state_bytes - joins->scratch_bytes +
		RHH_CPU_PIECE_ROWS / 8;
	uint8_t		bitmaps[RHH_MAX_COLUMNS][RHH_CPU_JOIN_ROWS / 8];
	uint8_t		bad[RHH_CPU_JOIN_ROWS / 8];
	uint8_t    *values[RHH_MAX_COLUMNS];
	uint8_t    *nulls[RHH_MAX_COLUMNS];
	side_view	view = {.n = 0};
	uint32_t	side = 0;

	for (uint32_t c = 0; c < join->n_columns; c++)
	{
		const rhh_cpu_source *source = &join->columns[c];
		uint8_t		is_null[RHH_CPU_JOIN_ROWS] = {0};

		if (view.n == 0 || side != source->side)
			view = view_side(joins, state, batch, scratch, depth + 1, source->side, n);
		side = source->side;
		values[c] = scratch->join_values + c * RHH_CPU_JOIN_ROWS * 16;
		nulls[c] = NULL;
		take_values(source, &view, values[c]);
		if (!may_be_null(source, batch))
			continue;
		take_nulls(joins, source, &view, is_null);
		nulls[c] = bitmaps[c];
		memset(nulls[c], 0, sizeof(bitmaps[c]));
		(void) set_bits(nulls[c], 0, is_null, n);
	}
	if (rhh_program_run(&join->condition, join->column_bytes, values, nulls, n, program_scratch,
						bad, dropped).n_bad > 0)
		count_bad(joins, join, &state->levels[depth + 1], bad, dropped);
}

/*
 * advance() for a join with a condition.  Looks at up to `room` pairs, and returns how many;
 * so few rows may come out, or none.
 */
static uint32_t
advance_if(rhh_cpu_joins *joins, rhh_cpu_join_state *state, uint32_t depth,
		   const rhh_batch *batch, rhh_cpu_scratch *scratch, uint32_t room)
{
	const rhh_cpu_one_join *join = &joins->joins[depth];
	const uint32_t missing = join->build->n_rows;
	rhh_cpu_level *level = &state->levels[depth];
	rhh_cpu_level *out = level + 1;
	bool		matched = level->had_match;
	uint8_t		dropped[RHH_CPU_JOIN_ROWS / 8];
	uint32_t	n_pairs;
	uint32_t	n = 0;

	make_pairs(join, level, out, room);
	n_pairs = out->n;
	if (n_pairs > 0)
		check_pairs(joins, state, depth, batch, scratch, dropped);
	for (uint32_t i = 0; i < n_pairs; i++)
	{
		const uint32_t row = out->parent[i];
		const uint32_t record = out->record[i];
		const bool	is_match = record != missing && !rhh_cpu_bit(dropped, i);
		const bool	is_last = i + 1 < n_pairs ? out->parent[i + 1] != row : level->at != row;
		bool		comes_out;

		if (is_match && join->matched != NULL &&
			atomic_load_explicit(&join->matched[record], memory_order_relaxed) == 0)
			atomic_store_explicit(&join->matched[record], 1, memory_order_relaxed);
		switch (join->kind)
		{
			case RHH_JOIN_LEFT:
			case RHH_JOIN_FULL:
				comes_out = is_match || (is_last && !matched);
				break;
			case RHH_JOIN_SEMI:
				comes_out = is_match && !matched;
				break;
			case RHH_JOIN_ANTI:
				comes_out = is_last && !matched && !is_match;
				break;
			case RHH_JOIN_RIGHT_SEMI:
			case RHH_JOIN_RIGHT_ANTI:
				comes_out = false;
				break;
			default:
				comes_out = is_match;
				break;
		}
		/* there is no branch, and what is overwritten has been read */
		out->parent[n] = row;
		out->record[n] = is_match ? record : missing;
		n += comes_out;
		matched = !is_last && (matched || is_match);
	}
	out->n = n;
	/* one match decides for all that is left of a row's candidates, unless one of these is bad */
	if (matched && !join->may_be_bad && (join->kind == RHH_JOIN_SEMI || join->kind == RHH_JOIN_ANTI))
	{
		level->at++;
		level->taken = 0;
		matched = false;
	}
	level->had_match = matched;
	return n_pairs;
}

/* ---------- pieces ---------- */

/*
 * Writes the rows that have come out of the last join to the piece, from row at on.
 * Bitmaps of NULLs are zero so far.  any_null[] gets which columns are NULL in a row.
 */
static void
write_rows(const rhh_cpu_joins *joins, const rhh_cpu_join_state *state,
		   const rhh_batch *batch, rhh_cpu_scratch *scratch, const rhh_batch *piece,
		   uint32_t at, bool *any_null)
{
	const uint32_t n_joins = joins->spec.n_joins;
	const uint32_t n = state->levels[n_joins].n;

	for (uint32_t side = 0; side <= n_joins; side++)
	{
		side_view	view = {.n = 0};

		for (uint32_t c = 0; c < joins->n_columns; c++)
		{
			const rhh_cpu_source *source = &joins->columns[c];
			uint8_t		is_null[RHH_CPU_JOIN_ROWS];

			if (source->side != side)
				continue;
			if (view.n == 0)
				view = view_side(joins, state, batch, scratch, n_joins, side, n);
			take_values(source, &view, piece->base + joins->values_offset[c] +
						(size_t) at * source->bytes);
			if (!may_be_null(source, batch))
				continue;
			memset(is_null, 0, n);
			take_nulls(joins, source, &view, is_null);
			any_null[c] |= set_bits(piece->base + joins->nulls_offset[c], at, is_null, n);
		}
	}
}

/*
 * Copies the refused rows of a piece to the room that the caller's batch has for them,
 * behind the first n.
 */
void
rhh_cpu_join_hand_back(const rhh_map_spec *map, const rhh_batch *piece, const uint8_t *refused,
					   uint32_t n, const rhh_batch *batch)
{
	uint8_t    *room = batch->base + batch->refused_offset;

	for (uint32_t c = 0; c < map->n_columns; c++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(piece, c);
		const uint8_t *values = rhh_cpu_values(piece, c);
		uint8_t    *to = room + rhh_output_values(map, batch->refused_rows, c);
		uint8_t    *to_nulls = room + rhh_output_nulls(map, batch->refused_rows, c);
		const size_t bytes = map->column_bytes[c];
		uint32_t	at = n;

		for (uint32_t i = 0; i < piece->n_rows; i++)
		{
			if (!rhh_cpu_bit(refused, i))
				continue;
			memcpy(to + at * bytes, values + i * bytes, bytes);
			if (at % 8 == 0)
				to_nulls[at / 8] = 0;
			if (nulls != NULL)
				to_nulls[at / 8] |= (uint8_t) (rhh_cpu_bit(nulls, i) << at % 8);
			at++;
		}
	}
}

/* Takes the rows that have a bit out of a piece. */
static void
take_out(const rhh_map_spec *map, const rhh_batch *piece, const uint8_t *out)
{
	for (uint32_t c = 0; c < map->n_columns; c++)
	{
		uint8_t    *values = piece->base + piece->values_offset[c];
		uint8_t    *nulls = piece->nulls_offset[c] == 0 ? NULL :
			piece->base + piece->nulls_offset[c];
		const size_t bytes = map->column_bytes[c];
		uint32_t	n = 0;

		for (uint32_t i = 0; i < piece->n_rows; i++)
		{
			if (rhh_cpu_bit(out, i))
				continue;
			memmove(values + n * bytes, values + i * bytes, bytes);
			if (nulls != NULL && rhh_cpu_bit(nulls, i) != rhh_cpu_bit(nulls, n))
				nulls[n / 8] ^= (uint8_t) (1 << n % 8);
			n++;
		}
	}
}

/* Runs the program for rows that have all columns, and bitmaps of those that are computed. */
static rhh_program_rows
compute_rows(const rhh_cpu_joins *joins, const rhh_map_spec *map, const rhh_batch *rows, void *scratch,
			 uint8_t *bad, uint8_t *dropped)
{
	uint8_t    *values[RHH_MAX_COLUMNS];
	uint8_t    *nulls[RHH_MAX_COLUMNS];

	for (uint32_t c = 0; c < map->n_columns; c++)
	{
		values[c] = rows->base + rows->values_offset[c];
		nulls[c] = rows->nulls_offset[c] == 0 ? NULL : rows->base + rows->nulls_offset[c];
	}
	return rhh_program_run(&joins->program, map->column_bytes, values, nulls, rows->n_rows, scratch, bad,
						   dropped);
}

/*
 * Computes columns of rows that are made of groups, and takes those out that the program drops, if there is one.  The
 * columns that are computed are NULL columns so far.  False: it is bad for a row, or there is no memory.
 */
bool
rhh_cpu_join_compute(rhh_cpu_joins *joins, const rhh_map_spec *map, rhh_batch *rows,
					 rhh_cpu_scratch *scratch)
{
	uint64_t	bad[RHH_CPU_PIECE_ROWS / 64];
	uint64_t	dropped[RHH_CPU_PIECE_ROWS / 64];
	rhh_program_rows done;

	atomic_fetch_add_explicit(&joins->probe_rows, rows->n_rows, memory_order_relaxed);
	if (!joins->has_program)
		return true;
	if (!rhh_cpu_make_room(&scratch->program_words, &scratch->n_program_words,
						   (joins->scratch_bytes + 64) / sizeof(uint64_t)))
		return false;
	done = compute_rows(joins, map, rows, (void *) (((uintptr_t) scratch->program_words + 63) & ~(uintptr_t) 63),
						(uint8_t *) bad, (uint8_t *) dropped);
	atomic_fetch_add_explicit(&joins->filtered_rows, done.n_dropped, memory_order_relaxed);
	if (done.n_dropped > 0)
		take_out(map, rows, (const uint8_t *) dropped);
	rows->n_rows -= done.n_dropped;
	return done.n_bad == 0;
}

/*
 * Computes the columns of a piece that the program makes.  Takes rows out of the piece:
 * those that the program drops, and those for which it cannot be done, which are handed back
 * at once.
 */
static void
run_program(rhh_cpu_joins *joins, rhh_cpu_join_state *state, const rhh_map_spec *map,
			const rhh_batch *batch, rhh_batch *piece, uint8_t *bad)
{
	uint8_t    *dropped = (uint8_t *) state + joins->state_bytes - joins->scratch_bytes;
	uint8_t    *room;
	rhh_program_rows rows;

	for (uint32_t c = 0; c < map->n_columns; c++)
		if (joins->columns[c].side == RHH_CPU_COMPUTED)
			piece->nulls_offset[c] = joins->nulls_offset[c];
	rows = compute_rows(joins, map, piece, dropped + RHH_CPU_PIECE_ROWS / 8, bad, dropped);
	state->n_bad = rows.n_bad;
	room = batch->base + batch->refused_offset + rhh_output_bad(map, batch->refused_rows);
	memset(room, 0, (batch->refused_rows + 7) / 8);
	if (rows.n_bad + rows.n_dropped == 0)
		return;
	atomic_fetch_add_explicit(&joins->returned_rows, rows.n_bad, memory_order_relaxed);
	atomic_fetch_add_explicit(&joins->filtered_rows, rows.n_dropped, memory_order_relaxed);
	rhh_cpu_join_hand_back(map, piece, bad, 0, batch);
	for (uint32_t i = 0; i < rows.n_bad; i++)
		room[i / 8] |= (uint8_t) (1 << i % 8);
	for (uint32_t i = 0; i < (piece->n_rows + 7) / 8; i++)
		dropped[i] |= bad[i];
	take_out(map, piece, dropped);
	piece->n_rows -= rows.n_bad + rows.n_dropped;
}

/* Copies all rows of a piece to that room, behind the first n. */
void
rhh_cpu_join_return(rhh_cpu_joins *joins, const rhh_map_spec *map, const rhh_batch *piece,
					uint32_t n, const rhh_batch *batch)
{
	uint8_t    *room = batch->base + batch->refused_offset;

	for (uint32_t c = 0; c < map->n_columns; c++)
	{
		const uint8_t *nulls = rhh_cpu_nulls(piece, c);
		uint8_t    *to_nulls = room + rhh_output_nulls(map, batch->refused_rows, c);
		const size_t bytes = map->column_bytes[c];

		memcpy(room + rhh_output_values(map, batch->refused_rows, c) + n * bytes,
			   rhh_cpu_values(piece, c), piece->n_rows * bytes);
		for (uint32_t i = 0; i < piece->n_rows; i++)
		{
			const uint32_t at = n + i;
			const uint8_t bit = (uint8_t) (1 << at % 8);

			if (at % 8 == 0 && nulls == NULL && piece->n_rows - i >= 8)
			{
				const uint32_t n_bytes = (piece->n_rows - i) / 8;

				memset(to_nulls + at / 8, 0, n_bytes);
				i += n_bytes * 8 - 1;
			}
			else if (nulls != NULL && rhh_cpu_bit(nulls, i))
				to_nulls[at / 8] |= bit;
			else
				to_nulls[at / 8] &= (uint8_t) ~bit;
		}
	}
	atomic_fetch_add_explicit(&joins->returned_rows, piece->n_rows, memory_order_relaxed);
}

/*
 * Makes the next piece of a batch's output, of at most so many rows.  It may be empty if
 * few of very many rows come out.  state->at_end says whether that is all.  False: the map
 * was cancelled.
 */
bool
rhh_cpu_join_piece(rhh_cpu_joins *joins, rhh_cpu_join_state *state,
				   const rhh_map_spec *map, const rhh_batch *batch, uint32_t most,
				   rhh_cpu_lists *lists, rhh_cpu_scratch *scratch,
				   const atomic_bool *cancelled)
{
	const uint32_t n_joins = joins->spec.n_joins;
	const uint32_t room = min_u32(joins->piece_rows, most);
	rhh_batch  *piece = &lists->piece;
	bool		any_null[RHH_MAX_COLUMNS] = {false};
	uint64_t	n_out[RHH_MAX_JOINS] = {0};
	uint32_t	n = 0;
	uint32_t	n_probed = 0;	/* rows of all levels */

	state->n_bad = 0;
	piece->base = lists->rows;
	for (uint32_t c = 0; c < joins->n_columns; c++)
		if (may_be_null(&joins->columns[c], batch))
			memset(piece->base + joins->nulls_offset[c], 0, ((size_t) room + 7) / 8);
	while (n < room && n_probed < RHH_CPU_PIECE_PROBES)
	{
		const uint32_t depth = state->depth;
		rhh_cpu_level *level = &state->levels[depth];
		rhh_cpu_level *out = level + 1;
		bool		last = depth + 1 == n_joins;

		if (atomic_load_explicit(cancelled, memory_order_relaxed))
			return false;
		if (level->at == level->n && depth > state->base)
			state->depth--;
		else if (level->at == level->n && state->next_row == batch->n_rows)
			break;
		else if (n_joins == 0)
		{
			/* the rows as they are */
			state->first_row = state->next_row;
			level->n = min_u32(batch->n_rows - state->next_row,
							   min_u32(room - n, RHH_CPU_JOIN_ROWS));
			level->at = level->n;
			state->next_row += level->n;
			n_probed += level->n;
			write_rows(joins, state, batch, scratch, piece, n, any_null);
			n += level->n;
		}
		else if (level->at == level->n && depth == n_joins)
		{
			/* rows without a match of the last join */
			n_probed += find_unmatched(joins, state, batch, min_u32(room - n, RHH_CPU_JOIN_ROWS));
			level->at = level->n;
			n_out[depth - 1] += level->n;
			write_rows(joins, state, batch, scratch, piece, n, any_null);
			n += level->n;
		}
		else if (level->at == level->n && depth > 0)
		{
			n_probed += find_unmatched(joins, state, batch, RHH_CPU_JOIN_ROWS);
			n_out[depth - 1] += level->n;
			if (level->n > 0)
				probe(joins, state, depth, batch, scratch);
		}
		else if (level->at == level->n)
		{
			state->first_row = state->next_row;
			level->n = min_u32(batch->n_rows - state->next_row, RHH_CPU_JOIN_ROWS);
			state->next_row += level->n;
			n_probed += level->n;
			probe(joins, state, 0, batch, scratch);
		}
		else
		{
			const uint32_t most_out = last ? min_u32(room - n, RHH_CPU_JOIN_ROWS) :
				RHH_CPU_JOIN_ROWS;

			if (joins->joins[depth].has_condition)
				n_probed += advance_if(joins, state, depth, batch, scratch, most_out);
			else
				advance(level, out, most_out);
			n_out[depth] += out->n;
			if (last)
			{
				write_rows(joins, state, batch, scratch, piece, n, any_null);
				n += out->n;
			}
			else if (out->n > 0)
			{
				state->depth++;
				n_probed += out->n;
				probe(joins, state, depth + 1, batch, scratch);
			}
		}
	}
	state->at_end = state->next_row == batch->n_rows;
	for (uint32_t d = state->base; d <= state->depth; d++)
		state->at_end &= state->levels[d].at == state->levels[d].n;

	piece->n_rows = n;
	piece->zero_columns = 0;
	for (uint32_t c = 0; c < joins->n_columns; c++)
	{
		piece->values_offset[c] = joins->values_offset[c];
		/* a column without a NULL is read faster if it has no bitmap */
		piece->nulls_offset[c] = any_null[c] ? joins->nulls_offset[c] : 0;
	}
	for (uint32_t j = 0; j < n_joins; j++)
		atomic_fetch_add_explicit(&joins->joined_rows[j], n_out[j], memory_order_relaxed);
	if (joins->has_program && n > 0)
		run_program(joins, state, map, batch, piece, lists->refused);
	return true;
}
