/*
 * rows.c
 *		The description of a case's table, and rows that are made up for it.
 *
 * Rows come from --seed and the case's own seed, so a failure can be had again.
 */
#include "device_test.h"

/* Each table has another hash, the first the one without a seed. */
void
def_init(def *d)
{
	static uint64_t n_tables = 0;

	memset(d, 0, sizeof(*d));
	d->spec.hash_seed = n_tables == 0 ? 0 : rhh_mix64(n_tables);
	n_tables++;
	d->spec.max_probe_buckets = 8;
	d->spec.load_factor = 0.8f;
	d->spec.max_batch_rows = 65536;
	d->spec.expected_groups = 1000;
}

int
def_column(def *d, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256)
{
	uint32_t	c = d->spec.n_columns++;

	d->spec.column_bytes[c] = (uint8_t) bytes;
	d->gens[c].kind = kind;
	d->gens[c].n = n;
	d->gens[c].nulls_of_256 = nulls_of_256;
	return (int) c;
}

int
def_key(def *d, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256)
{
	int			c = def_column(d, bytes, kind, n, nulls_of_256);

	d->spec.key_column[d->spec.n_keys++] = (uint8_t) c;
	return c;
}

void
def_state(def *d, rhh_state_op op, int arg, int filter)
{
	rhh_state_spec *st = &d->spec.states[d->spec.n_states++];

	st->op = (uint8_t) op;
	st->arg_column = (int8_t) arg;
	st->filter_column = (int8_t) filter;
}

/* count(*), sum(v), count(v) of an int4 with some NULLs: enough to be wrong. */
void
def_common_states(def *d)
{
	int			v = def_column(d, 4, GEN_EXTREME, 0, 30);

	def_state(d, RHH_COUNT, -1, -1);
	def_state(d, RHH_SUM_I64, v, -1);
	def_state(d, RHH_COUNT, v, -1);
}

/* The hash of a case's table. */
rhh_hash
hash_of(const def *d)
{
	rhh_hash	hash;

	rhh_hash_init(&hash, d->spec.hash_seed);
	return hash;
}

/* ---------- rows ---------- */

void
put_value(data *data, uint32_t c, uint64_t row, uint64_t low, uint64_t high)
{
	uint32_t	bytes = data->d->spec.column_bytes[c];
	uint64_t	v[2] = {low, high};

	memcpy(data->values[c] + row * bytes, v, bytes);	/* little-endian */
}

void
get_value(const data *data, uint32_t c, uint64_t row, uint64_t v[2])
{
	uint32_t	bytes = data->d->spec.column_bytes[c];

	v[0] = v[1] = 0;
	memcpy(v, data->values[c] + row * bytes, bytes);
}

bool
is_null(const data *data, uint32_t c, uint64_t row)
{
	return data->nulls[c] != NULL && data->nulls[c][row] != 0;
}

double
get_float(const data *data, uint32_t c, uint64_t row)
{
	const uint8_t *at = data->values[c] + row * data->d->spec.column_bytes[c];
	float		single;
	double		x;

	if (data->d->spec.column_bytes[c] == 4)
	{
		memcpy(&single, at, sizeof(single));
		return single;
	}
	memcpy(&x, at, sizeof(x));
	return x;
}

/*
 * Integers below 2^23 are floats of either width, and so are their sums; squares
 * of those beyond 2^27 are not.
 */
static void
put_float(data *data, uint32_t c, uint64_t row, rng *r, bool odd)
{
	static const double odd_ones[] = {
		NAN, INFINITY, -INFINITY, 0x1p510, -0x1p510, 0x1p513, -0x1p513, 0x1p520,
		-0x1p520, 0x1p600, -0x1p600, 0x1.8p600, 0x1p1023, 0x1p-1074
	};
	double		x = (double) below(r, 1 << 24) - (1 << 23);
	float		single;

	if (below(r, 4) == 0)
		x = -0.0;
	else if (below(r, 8) == 0 && data->d->spec.column_bytes[c] == 8)
		x += x < 0 ? -0x1p27 : 0x1p27;
	if (odd && below(r, 256) == 0)
		x = odd_ones[below(r, LENGTH_OF(odd_ones))];
	if (data->d->spec.column_bytes[c] == 4)
	{
		single = (float) x;
		memcpy(data->values[c] + row * 4, &single, 4);
	}
	else
		memcpy(data->values[c] + row * 8, &x, 8);
}

/*
 * A sum of the first, to 2^80, needs more digits than a double has; one of the
 * others is exact.
 */
static void
put_float_pair(data *data, uint32_t c, uint64_t row, rng *r)
{
	double		x[2] = {((double) below(r, 1 << 24) - (1 << 23)) * 0x1p40,
	(double) below(r, 1 << 24) - (1 << 23)};

	if (below(r, 4) == 0)
		x[0] *= 0x1p-40;
	memcpy(data->values[c] + row * sizeof(x), x, sizeof(x));
}

static void
generate_value(data *data, uint32_t c, uint64_t row, rng *r)
{
	static const uint64_t patterns[] = {
		0, UINT64_MAX, 1, 0x8000000000000000ULL, 0x7fffffffffffffffULL,
		0x80000000ULL, 0x7fffffffULL, 0xffffffffULL, 0xffffffff00000000ULL,
		0xfffffffeULL, 0xfffffffffffffffeULL, 0xdeadbeefULL, 0x80, 0x7f, 0xff,
		0x8000, 0x7fff, 0xffff, 0x100000000ULL, 0x8000000080000000ULL
	};
	const gen  *g = &data->d->gens[c];
	uint32_t	bytes = data->d->spec.column_bytes[c];
	uint64_t	x;

	switch (g->kind)
	{
		case GEN_UNIFORM:
		case GEN_SKEWED:
			x = g->kind == GEN_SKEWED && below(r, 2) == 0 ? 0 : below(r, g->n);
			x += c * 0x1234567;
			/* odd factor: a bijection of any width */
			put_value(data, c, row, x * 0x9e3779b97f4a7c15ULL, rhh_mix64(x));
			break;
		case GEN_PATTERN:
			x = patterns[below(r, LENGTH_OF(patterns))];
			put_value(data, c, row, x,
					  patterns[below(r, LENGTH_OF(patterns))]);
			break;
		case GEN_EXTREME:
			x = next_random(r);
			if (below(r, 3) == 0)
				x = UINT64_C(1) << (8 * (bytes < 8 ? bytes : 8) - 1);
			else if (below(r, 3) == 0)
				x = (UINT64_C(1) << (8 * (bytes < 8 ? bytes : 8) - 1)) - 1;
			put_value(data, c, row, x, x);
			break;
		case GEN_SMALL:
			put_value(data, c, row, (uint64_t) ((int64_t) below(r, 2001) - 1000), 0);
			break;
		case GEN_HUGE_POSITIVE:
			put_value(data, c, row, (uint64_t) INT64_MAX - below(r, 3), 0);
			break;
		case GEN_FLOAT:
		case GEN_FLOAT_ODD:
			put_float(data, c, row, r, g->kind == GEN_FLOAT_ODD);
			break;
		case GEN_FLOAT_PAIR:
			put_float_pair(data, c, row, r);
			break;
		case GEN_FILTER:
			put_value(data, c, row, below(r, 3) == 0 ? 0 : 1 + below(r, 255), 0);
			break;
		case GEN_ANY:
		case GEN_CUSTOM:
			break;
	}
	if (data->nulls[c] != NULL && g->kind != GEN_ANY)
	{
		/* who looks at some rows' NULLs at a time is to find none in some columns, and some in others */
		const bool	none = g->nulls_of_256 < 256 && (row / 256 + c) % 3 == 0;

		data->nulls[c][row] = below(r, 256) < g->nulls_of_256 && !none;
	}
}

/* The key's words as a result has them: NULL bits, then the columns'. */
uint32_t
row_key(const data *data, uint64_t row, uint64_t *words)
{
	const rhh_map_spec *spec = &data->d->spec;
	uint32_t	n = 1;

	words[0] = 0;
	for (uint32_t k = 0; k < spec->n_keys; k++)
	{
		uint64_t	v[2] = {0, 0};

		if (is_null(data, spec->key_column[k], row))
			words[0] |= UINT64_C(1) << k;
		else
			get_value(data, spec->key_column[k], row, v);
		words[n++] = v[0];
		if (spec->column_bytes[spec->key_column[k]] == 16)
			words[n++] = v[1];
	}
	return n;
}

/* Of some columns many rows that follow each other have 0, as the second limbs of numerics have. */
static void
clear_rows(data *data, rng *r)
{
	for (uint32_t c = 0; c < data->d->spec.n_columns; c++)
	{
		const uint64_t first = below(r, data->n_rows + 1);
		const uint64_t end = first + below(r, data->n_rows - first + 1);
		bool		is_key = false;

		/* of a key others may have been made */
		for (uint32_t k = 0; k < data->d->spec.n_keys; k++)
			is_key |= data->d->spec.key_column[k] == c;
		if (is_key || data->d->gens[c].kind != GEN_SMALL || below(r, 2) == 0)
			continue;
		memset(data->values[c] + first * data->d->spec.column_bytes[c], 0, (end - first) * data->d->spec.column_bytes[c]);
	}
}

data *
make_data(const def *d, uint64_t n_rows, uint64_t seed)
{
	const rhh_map_spec *spec = &d->spec;
	data	   *data = need(sizeof(*data));
	rng			r = {seed * 0x2545f4914f6cdd1dULL + option_seed};

	data->d = d;
	data->n_rows = n_rows;
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		data->values[c] = need(n_rows * spec->column_bytes[c]);
		if (d->gens[c].nulls_of_256 > 0)
			data->nulls[c] = need(n_rows);
	}
	for (uint64_t i = 0; i < n_rows; i++)
	{
		for (uint32_t c = 0; c < spec->n_columns; c++)
			generate_value(data, c, i, &r);
		if (d->custom != NULL)
			d->custom(data, i, &r, d->param);
		for (uint32_t c = 0; c < spec->n_columns; c++)
		{
			uint64_t	words[MAX_WORDS];
			uint64_t	hash = c;
			uint32_t	n;

			if (d->gens[c].kind != GEN_ANY)
				continue;
			n = row_key(data, i, words);
			for (uint32_t w = 0; w < n; w++)
				hash = rhh_mix64(hash ^ words[w]) + w;
			put_value(data, c, i, hash, ~hash);
			if (data->nulls[c] != NULL)
				data->nulls[c][i] = (hash >> 56) < d->gens[c].nulls_of_256;
		}
	}
	clear_rows(data, &r);
	return data;
}

void
free_data(data *data)
{
	for (uint32_t c = 0; c < data->d->spec.n_columns; c++)
	{
		free(data->values[c]);
		free(data->nulls[c]);
	}
	free(data);
}
