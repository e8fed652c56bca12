/*
 * join_reference.c
 *		The output of joins as it should be.
 *
 * It shares no code with the devices: it walks chains of rows on the host, one row of
 * the probe side after the other, and aggregates each row of the output by itself
 * (reference.c).  Rows of a build side that nothing has matched come in the end.
 */
#include "device_test.h"

/* The rows of one side: of the probe side, or of a build side in chains by key. */
typedef struct side
{
	const data *data;
	uint32_t   *heads;			/* row + 1 */
	uint32_t   *next;
	uint32_t	n_heads;
	bool	   *matched;		/* or not there, as the device has refused it */
} side;

typedef struct reference
{
	const joined *joined;
	side		sides[RHH_MAX_JOINS + 1];	/* the probe side first */
	int64_t		row[RHH_MAX_JOINS + 1]; /* of each side; -1: NULLs instead of one */
	map		   *groups;
	data	   *output;			/* one row */
	data		pairs[RHH_MAX_JOINS];	/* one row: the columns of a join's condition */
	def			pair_defs[RHH_MAX_JOINS];
	uint64_t   *n_rows;			/* that came out of each join */
	uint64_t	n_bad;			/* for the program */
	uint64_t	n_dropped;		/* by its filter */
	uint64_t	n_bad_candidates;	/* for a join's condition */
} reference;

/* Where column c of the joins' columns is: the side, and the column there. */
static uint32_t
find_column(const joined *joined, uint32_t c, uint32_t *side)
{
	*side = 0;
	if (c < joined->spec.n_columns)
		return c;
	c -= joined->spec.n_columns;
	for (uint32_t j = 0; c >= joined->builds[j]->d->spec.n_columns; j++)
	{
		c -= joined->builds[j]->d->spec.n_columns;
		(*side)++;
	}
	(*side)++;
	return c;
}

/* A value of the row that is being joined.  False: it is NULL. */
static bool
joined_value(const reference *ref, uint32_t c, uint64_t v[2])
{
	uint32_t	s;
	uint32_t	column = find_column(ref->joined, c, &s);

	if (ref->row[s] < 0 || is_null(ref->sides[s].data, column, (uint64_t) ref->row[s]))
		return false;
	get_value(ref->sides[s].data, column, (uint64_t) ref->row[s], v);
	return true;
}

static uint64_t
add_to_hash(uint64_t hash, const uint64_t v[2])
{
	hash = (hash ^ v[0]) * 1099511628211ULL;
	hash = (hash ^ v[1] ^ hash >> 31) * 1099511628211ULL;
	return hash ^ hash >> 29;
}

/* Puts the rows of join j's build side into chains, apart from those with NULL in the key. */
static void
side_init(side *side, const joined *joined, uint32_t j)
{
	const data *data = joined->builds[j];
	const rhh_map_spec *spec = &data->d->spec;

	side->data = data;
	for (side->n_heads = 16; side->n_heads < data->n_rows; side->n_heads *= 2)
		;
	side->heads = need(side->n_heads * sizeof(uint32_t));
	side->next = need(data->n_rows * sizeof(uint32_t));
	side->matched = need(data->n_rows * sizeof(bool));
	for (uint64_t i = 0; i < data->n_rows; i++)
	{
		uint64_t	hash = 0;
		bool		left_out = joined->missing[j] != NULL && joined->missing[j][i];

		for (uint32_t k = 0; k < spec->n_keys; k++)
		{
			uint64_t	v[2];

			left_out |= is_null(data, spec->key_column[k], i);
			get_value(data, spec->key_column[k], i, v);
			hash = add_to_hash(hash, v);
		}
		if (left_out)
			continue;
		side->next[i] = side->heads[hash & (side->n_heads - 1)];
		side->heads[hash & (side->n_heads - 1)] = (uint32_t) i + 1;
	}
}

static void
aggregate_output(reference *ref)
{
	const joined *joined = ref->joined;
	const rhh_program *program = joined->spec.program;

	for (uint32_t c = 0; c < joined->d->spec.n_columns; c++)
	{
		uint64_t	v[2] = {0, 0};

		if (program != NULL && joined->spec.column[c] == RHH_COMPUTED)
			continue;
		ref->output->nulls[c][0] = !joined_value(ref, joined->spec.column[c], v);
		put_value(ref->output, c, 0, v[0], v[1]);
	}
	switch (program == NULL ? PROGRAM_GOOD : program_run_row(program, ref->output, 0, true))
	{
		case PROGRAM_GOOD:
			break;
		case PROGRAM_BAD:
			program_put_nulls(program, ref->output, 0);
			ref->n_bad++;
			break;
		case PROGRAM_DROPPED:
			ref->n_dropped++;
			return;
	}
	map_row(ref->groups, ref->output, 0);
}

/* Does the row have these values in the key of its build side? */
static bool
has_key(const data *data, uint64_t row, uint64_t values[][2])
{
	const rhh_map_spec *spec = &data->d->spec;

	for (uint32_t k = 0; k < spec->n_keys; k++)
	{
		uint64_t	v[2];

		get_value(data, spec->key_column[k], row, v);
		if (v[0] != values[k][0] || v[1] != values[k][1])
			return false;
	}
	return true;
}

/* Is the row that ref->row has of join j's build side a match, by the join's condition? */
static bool
is_match(reference *ref, uint32_t j)
{
	const rhh_join *join = &ref->joined->spec.joins[j];
	data	   *pair = &ref->pairs[j];
	program_row result;

	if (join->condition == NULL)
		return true;
	for (uint32_t c = 0; c < join->n_condition_columns; c++)
	{
		uint64_t	v[2] = {0, 0};

		pair->nulls[c][0] = !joined_value(ref, join->condition_column[c], v);
		put_value(pair, c, 0, v[0], v[1]);
	}
	result = program_run_row(join->condition, pair, 0, false);
	ref->n_bad_candidates += result == PROGRAM_BAD;
	return result == PROGRAM_GOOD;
}

static void join_rows(reference *ref, uint32_t j);

/* A row has come out of join j. */
static void
joined_row(reference *ref, uint32_t j)
{
	ref->n_rows[j]++;
	if (j + 1 == ref->joined->spec.n_joins)
		aggregate_output(ref);
	else
		join_rows(ref, j + 1);
}

/* Joins what ref->row has of the sides before join j. */
static void
join_rows(reference *ref, uint32_t j)
{
	const rhh_join *join = &ref->joined->spec.joins[j];
	const side *build = &ref->sides[j + 1];
	uint32_t	n_keys = build->data->d->spec.n_keys;
	uint64_t	values[RHH_MAX_KEYS][2];
	uint64_t	hash = 0;
	bool		any_null = false;
	bool		found = false;

	for (uint32_t k = 0; k < n_keys; k++)
	{
		any_null |= !joined_value(ref, join->key_column[k], values[k]);
		hash = any_null ? 0 : add_to_hash(hash, values[k]);
	}
	if (!any_null)
		for (uint32_t i = build->heads[hash & (build->n_heads - 1)]; i != 0;
			 i = build->next[i - 1])
		{
			if (!has_key(build->data, i - 1, values))
				continue;
			ref->row[j + 1] = i - 1;
			if (!is_match(ref, j))
				continue;
			found = true;
			/* the condition may be bad for those behind */
			if (join->kind == RHH_JOIN_SEMI || join->kind == RHH_JOIN_ANTI)
				continue;
			build->matched[i - 1] = true;
			if (rhh_has_outer_columns(join->kind))
				joined_row(ref, j);
		}
	ref->row[j + 1] = -1;
	if (found ? join->kind == RHH_JOIN_SEMI :
		join->kind == RHH_JOIN_LEFT || join->kind == RHH_JOIN_ANTI || join->kind == RHH_JOIN_FULL)
		joined_row(ref, j);
}

/* The rows of join j's build side that nothing has matched, or, of a right semijoin, something. */
static void
unmatched_rows(reference *ref, uint32_t j)
{
	const side *build = &ref->sides[j + 1];
	const uint8_t *missing = ref->joined->missing[j];

	for (uint64_t i = 0; i < build->data->n_rows; i++)
	{
		if (build->matched[i] != (ref->joined->spec.joins[j].kind == RHH_JOIN_RIGHT_SEMI) ||
			(missing != NULL && missing[i]))
			continue;
		for (uint32_t side = 0; side <= j; side++)
			ref->row[side] = -1;
		ref->row[j + 1] = (int64_t) i;
		joined_row(ref, j);
	}
}

/* The width of column c of the joins' columns. */
static uint8_t
joined_bytes(const joined *joined, uint32_t c)
{
	uint32_t	side;
	uint32_t	column = find_column(joined, c, &side);

	return side == 0 ? joined->spec.column_bytes[column] :
		joined->builds[side - 1]->d->spec.column_bytes[column];
}

/* Makes the row for the columns of join j's condition, if it has one. */
static void
pair_init(reference *ref, uint32_t j)
{
	const rhh_join *join = &ref->joined->spec.joins[j];
	data	   *pair = &ref->pairs[j];

	def_init(&ref->pair_defs[j]);
	pair->d = &ref->pair_defs[j];
	pair->n_rows = 1;
	for (uint32_t c = 0; c < join->n_condition_columns; c++)
	{
		uint8_t		bytes = joined_bytes(ref->joined, join->condition_column[c]);

		(void) def_column(&ref->pair_defs[j], bytes, GEN_CUSTOM, 0, 0);
		pair->values[c] = need(bytes);
		pair->nulls[c] = need(1);
	}
}

uint64_t
join_expect(map *m, const joined *joined, const data *probe, uint64_t *rows,
			uint64_t *n_dropped, uint64_t *n_bad_candidates)
{
	static reference ref;		/* too large for the stack */
	data		output = {.d = joined->d, .n_rows = 1};

	memset(&ref, 0, sizeof(ref));
	ref.joined = joined;
	ref.groups = m;
	ref.n_rows = rows;
	memset(rows, 0, RHH_MAX_JOINS * sizeof(*rows));
	ref.output = &output;
	for (uint32_t c = 0; c < joined->d->spec.n_columns; c++)
	{
		output.values[c] = need(joined->d->spec.column_bytes[c]);
		output.nulls[c] = need(1);
	}
	ref.sides[0].data = probe;
	for (uint32_t j = 0; j < joined->spec.n_joins; j++)
	{
		side_init(&ref.sides[j + 1], joined, j);
		pair_init(&ref, j);
	}
	for (uint64_t i = 0; i < probe->n_rows; i++)
	{
		ref.row[0] = (int64_t) i;
		if (joined->spec.n_joins == 0)
			aggregate_output(&ref);
		else
			join_rows(&ref, 0);
	}
	for (uint32_t j = 0; j < joined->spec.n_joins; j++)
		if (rhh_returns_unmatched(joined->spec.joins[j].kind))
			unmatched_rows(&ref, j);
	for (uint32_t j = 0; j < joined->spec.n_joins; j++)
	{
		free(ref.sides[j + 1].heads);
		free(ref.sides[j + 1].next);
		free(ref.sides[j + 1].matched);
		for (uint32_t c = 0; c < joined->spec.joins[j].n_condition_columns; c++)
		{
			free(ref.pairs[j].values[c]);
			free(ref.pairs[j].nulls[c]);
		}
	}
	for (uint32_t c = 0; c < joined->d->spec.n_columns; c++)
	{
		free(output.values[c]);
		free(output.nulls[c]);
	}
	*n_dropped = ref.n_dropped;
	*n_bad_candidates = ref.n_bad_candidates;
	return ref.n_bad;
}
