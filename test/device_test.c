/*
 * device_test.c
 *		The same cases on every device, through the device ABI alone.
 *
 *		device_test [cpu|cuda|all] [--seed N] [--quick | --tiny] [--list]
 *					[--on-device] [--only PATTERN] [--threads N]
 *		device_test [cpu|cuda|all] --bench [--rows N] [--threads N] [--repeat N]
 *					[--estimate FACTOR] [--only PATTERN]
 *
 * A case makes rows (make_data), puts them through one or several tables
 * (struct run, drive) and compares with a reference that shares no code with the
 * devices: a chained map of groups on the host (struct map).
 *
 * What is compared is never the device's result alone but the result combined
 * with the rows that it handed back, so the same check holds for a table with
 * room and for one that is out of memory.  Every run also checks that no key
 * comes out twice where needs_merge is false, that the bitmap of failed rows
 * agrees with the count of them and is untouched where there are none, that a
 * batch's columns are untouched, and that the statistics add up.
 *
 * Rows come from --seed, so a failure can be had again.  Cases are quick and
 * many rather than big; "--quick" divides their rows by 8, "--tiny" by 64 (for
 * devices that are not fast: sanitizers, and device_test_simt, whose CUDA device
 * runs on the CPU, see simt.h).  With "--on-device" batches lie in the device's
 * memory, and are looked at before they are aggregated.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fnmatch.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rhh_device.h"
#include "rhh_keys.h"
#include "rhh_states.h"

#define MAX_WORDS (RHH_MAX_KEY_WORDS + RHH_MAX_STATE_WORDS)
#define POOL_BYTES ((size_t) 64 << 20)
#define MAX_SLOTS 12
#define STALL_SECONDS 300

/* Batches on a device are looked at from so many rows on: most of ours. */
#define LOOK_ROWS 500

typedef struct device
{
	const rhh_device_ops *ops;
	rhh_device_info info;
	rhh_device *dev;
	uint8_t    *pool;
	size_t		pool_bytes;
	const char *name;
} device;

static uint64_t option_seed = 1;
static uint32_t option_threads = 0;
static bool option_quick = false;
static bool option_on_device = false;
static uint32_t option_divisor = 1;

static void
die(const char *what)
{
	fprintf(stderr, "device_test: %s\n", what);
	exit(2);
}

static void *
need(size_t bytes)
{
	void	   *p = calloc(1, bytes > 0 ? bytes : 1);

	if (p == NULL)
		die("out of memory");
	return p;
}

/* ---------- a device's memory ---------- */

#ifdef RHH_WITH_CUDA
extern int	test_device_alloc(void **memory, size_t bytes);
extern int	test_device_free(void *memory);
extern int	test_device_copy(void *to, const void *from, size_t bytes);
#endif

static void *
device_alloc(const device *device, size_t bytes)
{
	void	   *p = NULL;

	if (device->ops->kind == RHH_KIND_CPU)
	{
		if (posix_memalign(&p, 64, bytes) != 0)
			die("out of memory");
		return p;
	}
#ifdef RHH_WITH_CUDA
	if (test_device_alloc(&p, bytes))
		die("out of device memory");
#endif
	return p;
}

static void
device_free(const device *device, void *p)
{
	if (device->ops->kind == RHH_KIND_CPU)
		free(p);
#ifdef RHH_WITH_CUDA
	else if (p != NULL && test_device_free(p))
		die("could not free device memory");
#endif
}

static void
device_copy(const device *device, void *to, const void *from, size_t bytes)
{
	if (device->ops->kind == RHH_KIND_CPU)
		memcpy(to, from, bytes);
#ifdef RHH_WITH_CUDA
	else if (test_device_copy(to, from, bytes))
		die("could not copy to or from the device");
#endif
}

static double
clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}

static double
now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* Rows of a case, fewer with --quick and --tiny. */
static uint64_t
rows(uint64_t n)
{
	return option_divisor > 1 ? n / option_divisor + 1 : n;
}

/* Of a case that must fill something: not so few with --tiny. */
static uint64_t
enough_rows(uint64_t n)
{
	return option_divisor > 8 ? n / 8 + 1 : rows(n);
}

/* ---------- random numbers ---------- */

typedef struct rng
{
	uint64_t	state;
} rng;

static uint64_t
next_random(rng *r)
{
	r->state += 0x9e3779b97f4a7c15ULL;
	return rhh_mix64(r->state);
}

static uint64_t
below(rng *r, uint64_t n)
{
	return (uint64_t) (((unsigned __int128) next_random(r) * n) >> 64);
}

/* ---------- what a case describes ---------- */

typedef enum gen_kind
{
	GEN_UNIFORM,				/* one of n values, spread over the width */
	GEN_SKEWED,					/* the same, half of the rows the first of them */
	GEN_PATTERN,				/* zero, all ones, sign bits, ... */
	GEN_EXTREME,				/* an argument: often the least or the greatest */
	GEN_SMALL,					/* an argument of -1000 to 1000 */
	GEN_HUGE_POSITIVE,			/* near INT64_MAX: sums leave 63 bits */
	GEN_FLOAT,					/* integers, whose sums are exact; -0 */
	GEN_FLOAT_ODD,				/* also NaN, infinities, large ones */
	GEN_FLOAT_PAIR,				/* two integers each, whose sums need both */
	GEN_FILTER,
	GEN_ANY,					/* a function of the keys */
	GEN_CUSTOM					/* def.custom() sets it */
} gen_kind;

typedef struct gen
{
	gen_kind	kind;
	uint32_t	nulls_of_256;	/* for ANY: keys, not rows */
	uint64_t	n;
} gen;

typedef struct data data;

typedef struct def
{
	rhh_table_spec spec;
	gen			gens[RHH_MAX_COLUMNS];
	void		(*custom) (data *data, uint64_t row, rng *r, uint64_t param);
	uint64_t	param;
} def;

struct data
{
	const def  *d;
	uint64_t	n_rows;
	uint8_t    *values[RHH_MAX_COLUMNS];
	uint8_t    *nulls[RHH_MAX_COLUMNS]; /* a byte a row; NULL: none */
};

/* Each table has another hash, the first the one without a seed. */
static void
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

static int
def_column(def *d, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256)
{
	uint32_t	c = d->spec.n_columns++;

	d->spec.column_bytes[c] = (uint8_t) bytes;
	d->gens[c].kind = kind;
	d->gens[c].n = n;
	d->gens[c].nulls_of_256 = nulls_of_256;
	return (int) c;
}

static int
def_key(def *d, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256)
{
	int			c = def_column(d, bytes, kind, n, nulls_of_256);

	d->spec.key_column[d->spec.n_keys++] = (uint8_t) c;
	return c;
}

static void
def_state(def *d, rhh_state_op op, int arg, int filter)
{
	rhh_state_spec *st = &d->spec.states[d->spec.n_states++];

	st->op = (uint8_t) op;
	st->arg_column = (int8_t) arg;
	st->filter_column = (int8_t) filter;
}

/* count(*), sum(v), count(v) of an int4 with some NULLs: enough to be wrong. */
static void
def_common_states(def *d)
{
	int			v = def_column(d, 4, GEN_EXTREME, 0, 30);

	def_state(d, RHH_COUNT, -1, -1);
	def_state(d, RHH_SUM_I64, v, -1);
	def_state(d, RHH_COUNT, v, -1);
}

/* ---------- rows ---------- */

static void
put_value(data *data, uint32_t c, uint64_t row, uint64_t low, uint64_t high)
{
	uint32_t	bytes = data->d->spec.column_bytes[c];
	uint64_t	v[2] = {low, high};

	memcpy(data->values[c] + row * bytes, v, bytes);	/* little-endian */
}

static void
get_value(const data *data, uint32_t c, uint64_t row, uint64_t v[2])
{
	uint32_t	bytes = data->d->spec.column_bytes[c];

	v[0] = v[1] = 0;
	memcpy(v, data->values[c] + row * bytes, bytes);
}

static bool
is_null(const data *data, uint32_t c, uint64_t row)
{
	return data->nulls[c] != NULL && data->nulls[c][row] != 0;
}

static double
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
		x = odd_ones[below(r, sizeof(odd_ones) / sizeof(odd_ones[0]))];
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
			x = patterns[below(r, sizeof(patterns) / sizeof(patterns[0]))];
			put_value(data, c, row, x,
					  patterns[below(r, sizeof(patterns) / sizeof(patterns[0]))]);
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
		data->nulls[c][row] = below(r, 256) < g->nulls_of_256;
}

/* The key's words as a result has them: NULL bits, then the columns'. */
static uint32_t
row_key(const data *data, uint64_t row, uint64_t *words)
{
	const rhh_table_spec *spec = &data->d->spec;
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

static data *
make_data(const def *d, uint64_t n_rows, uint64_t seed)
{
	const rhh_table_spec *spec = &d->spec;
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
	return data;
}

static void
free_data(data *data)
{
	for (uint32_t c = 0; c < data->d->spec.n_columns; c++)
	{
		free(data->values[c]);
		free(data->nulls[c]);
	}
	free(data);
}

/* ---------- reference ---------- */

/* Groups by key; a group is a result's words. */
typedef struct map
{
	const rhh_table_spec *spec;
	uint32_t	n_words;
	uint32_t	key_words;
	uint32_t	n_groups;
	uint32_t	room;
	uint64_t   *words;			/* n_groups times n_words */
	uint32_t   *next;			/* chains of group + 1 */
	uint32_t	n_heads;
	uint32_t   *heads;
} map;

static map *
map_new(const rhh_table_spec *spec)
{
	map		   *m = need(sizeof(*m));

	m->spec = spec;
	m->n_words = rhh_result_words(spec);
	m->key_words = rhh_first_state_word(spec);
	m->n_heads = 1024;
	m->heads = need(m->n_heads * sizeof(uint32_t));
	return m;
}

static void
map_free(map *m)
{
	if (m == NULL)
		return;
	free(m->words);
	free(m->next);
	free(m->heads);
	free(m);
}

static uint32_t
map_head(const map *m, const uint64_t *key)
{
	uint64_t	h = 14695981039346656037ULL;

	for (uint32_t w = 0; w < m->key_words; w++)
	{
		h = (h ^ key[w]) * 1099511628211ULL;
		h ^= h >> 29;
	}
	return (uint32_t) (h * 0xd6e8feb86659fd93ULL >> 32) & (m->n_heads - 1);
}

static uint64_t *
map_group(const map *m, uint32_t g)
{
	return m->words + (size_t) g * m->n_words;
}

static uint64_t *
map_find(const map *m, const uint64_t *key)
{
	for (uint32_t g = m->heads[map_head(m, key)]; g != 0; g = m->next[g - 1])
		if (memcmp(map_group(m, g - 1), key, m->key_words * sizeof(uint64_t)) == 0)
			return map_group(m, g - 1);
	return NULL;
}

/* Finds the key's group or makes one whose states no row has touched. */
static uint64_t *
map_get(map *m, const uint64_t *key)
{
	uint64_t   *group = map_find(m, key);
	uint32_t	head;

	if (group != NULL)
		return group;
	if (m->n_groups == m->room)
	{
		m->room = m->room == 0 ? 1024 : 2 * m->room;
		m->words = realloc(m->words, (size_t) m->room * m->n_words * sizeof(uint64_t));
		m->next = realloc(m->next, m->room * sizeof(uint32_t));
		if (m->words == NULL || m->next == NULL)
			die("out of memory");
		free(m->heads);
		m->n_heads = 2 * m->room;
		m->heads = need(m->n_heads * sizeof(uint32_t));
		for (uint32_t g = 0; g < m->n_groups; g++)
		{
			head = map_head(m, map_group(m, g));
			m->next[g] = m->heads[head];
			m->heads[head] = g + 1;
		}
	}
	group = map_group(m, m->n_groups);
	memset(group, 0, m->n_words * sizeof(uint64_t));
	memcpy(group, key, m->key_words * sizeof(uint64_t));
	for (uint32_t s = 0, w = m->key_words; s < m->spec->n_states; s++)
	{
		switch (m->spec->states[s].op)
		{
			case RHH_MIN_I64:
				group[w] = (uint64_t) INT64_MAX;
				break;
			case RHH_MAX_I64:
			case RHH_SUM_F64:
				group[w] = (uint64_t) INT64_MIN;
				break;
			case RHH_AND:
				group[w] = UINT64_MAX;
				break;
		}
		w += rhh_state_words(m->spec, s);
	}
	head = map_head(m, key);
	m->next[m->n_groups] = m->heads[head];
	m->heads[head] = ++m->n_groups;
	return group;
}

static void
add_i128(uint64_t *state, uint64_t low, uint64_t high)
{
	uint64_t	sum = state[0] + low;

	state[1] += high + (sum < low ? 1 : 0);
	state[0] = sum;
}

/* The sums of MOMENTS and SUM_TWICE are integers here, kept as such. */
static void
add_integer(uint64_t *state, __int128 x)
{
	unsigned __int128 sum = (unsigned __int128) state[1] << 64 | state[0];

	sum += (unsigned __int128) x;
	state[0] = (uint64_t) sum;
	state[1] = (uint64_t) (sum >> 64);
}

static __int128
sum_of_two(const uint64_t *state)
{
	return (__int128) rhh_as_double(state[0]) + (__int128) rhh_as_double(state[1]);
}

static void
add_float(uint64_t *state, uint8_t op, double x)
{
	uint64_t	flags = rhh_f64_flags(x);

	if (op == RHH_SUM_F64)
	{
		state[1] |= flags;
		if (isfinite(x))
			state[0] = rhh_as_bits(rhh_as_double(state[0]) + x);
		return;
	}
	state[4] |= flags;
	if (fabs(x) < 0x1p510)
	{
		add_integer(&state[0], (__int128) x);
		add_integer(&state[2], (__int128) x * (__int128) x);
	}
}

/* Sums of large values depend on the order, and are not compared. */
static void
map_normalize(const rhh_table_spec *spec, uint32_t key_words, uint64_t *group)
{
	for (uint32_t s = 0, w = key_words; s < spec->n_states;
		 w += rhh_state_words(spec, s), s++)
	{
		if (spec->states[s].op == RHH_SUM_F64 &&
			(group[w + 1] & ~(uint64_t) (RHH_F64_NOT_FINITE | RHH_F64_SMALL)) != 0)
			group[w] = 0;
	}
}

static void
add_u192(uint64_t *state, uint32_t n_words, uint64_t low, uint64_t high)
{
	unsigned __int128 sum = (unsigned __int128) state[0] + low;

	state[0] = (uint64_t) sum;
	sum = (sum >> 64) + state[1] + high;
	state[1] = (uint64_t) sum;
	if (n_words > 2)
		state[2] += (uint64_t) (sum >> 64);
}

/* One row, as the ABI's comments define the states. */
static void
map_row(map *m, const data *data, uint64_t row)
{
	const rhh_table_spec *spec = m->spec;
	uint64_t	key[MAX_WORDS];
	uint64_t   *group;

	row_key(data, row, key);
	group = map_get(m, key);
	for (uint32_t s = 0, w = m->key_words; s < spec->n_states;
		 w += rhh_state_words(spec, s), s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		uint64_t	v[2] = {0, 0};
		int64_t		x = 0;

		if (st->filter_column >= 0 &&
			data->values[st->filter_column][row] == 0)
			continue;
		if (st->arg_column >= 0)
		{
			uint32_t	bytes = spec->column_bytes[st->arg_column];

			if (is_null(data, (uint32_t) st->arg_column, row))
				continue;
			get_value(data, (uint32_t) st->arg_column, row, v);
			if (bytes == 1)
				x = (int8_t) v[0];
			else if (bytes == 2)
				x = (int16_t) v[0];
			else if (bytes == 4)
				x = (int32_t) v[0];
			else
				x = (int64_t) v[0];
		}
		switch (st->op)
		{
			case RHH_COUNT:
				group[w]++;
				break;
			case RHH_SUM_I64:
				group[w] += (uint64_t) x;
				break;
			case RHH_SUM_I128:
				add_i128(&group[w], (uint64_t) x, x < 0 ? UINT64_MAX : 0);
				break;
			case RHH_MIN_I64:
				if (x < (int64_t) group[w])
					group[w] = (uint64_t) x;
				break;
			case RHH_MAX_I64:
				if (x > (int64_t) group[w])
					group[w] = (uint64_t) x;
				break;
			case RHH_ANY:
				group[w] = 1;
				group[w + 1] = v[0];
				if (rhh_state_words(spec, s) == 3)
					group[w + 2] = v[1];
				break;
			case RHH_AND:
				group[w] &= (uint64_t) x;
				break;
			case RHH_OR:
				group[w] |= (uint64_t) x;
				break;
			case RHH_XOR:
				group[w] ^= (uint64_t) x;
				break;
			case RHH_SUM_SQUARES:
				{
					/* of a 64-bit number there is no rounding in steps of 2^32 */
					uint64_t	size = x < 0 ? 0 - (uint64_t) x : (uint64_t) x;
					uint64_t	low = size & 0xffffffff,
								high = size >> 32;
					uint64_t	middle = low * high;

					add_u192(&group[w], rhh_state_words(spec, s), low * low, high * high);
					add_u192(&group[w], rhh_state_words(spec, s), middle << 33, middle >> 31);
					break;
				}
			case RHH_SUM_F64:
			case RHH_MOMENTS_F64:
				add_float(&group[w], st->op,
						  get_float(data, (uint32_t) st->arg_column, row));
				break;
			case RHH_SUM_TWICE_F64:
				add_integer(&group[w], sum_of_two(v));
				break;
		}
	}
}

/* Combines a group of the device's with what is known of its key. */
static void
map_combine(map *m, const uint64_t *from)
{
	const rhh_table_spec *spec = m->spec;
	uint64_t   *group = map_get(m, from);

	for (uint32_t s = 0, w = m->key_words; s < spec->n_states;
		 w += rhh_state_words(spec, s), s++)
	{
		switch (spec->states[s].op)
		{
			case RHH_COUNT:
			case RHH_SUM_I64:
				group[w] += from[w];
				break;
			case RHH_SUM_I128:
				add_i128(&group[w], from[w], from[w + 1]);
				break;
			case RHH_MIN_I64:
				if ((int64_t) from[w] < (int64_t) group[w])
					group[w] = from[w];
				break;
			case RHH_MAX_I64:
				if ((int64_t) from[w] > (int64_t) group[w])
					group[w] = from[w];
				break;
			case RHH_ANY:
				if (from[w] != 0)
					memcpy(&group[w], &from[w],
						   rhh_state_words(spec, s) * sizeof(uint64_t));
				break;
			case RHH_AND:
				group[w] &= from[w];
				break;
			case RHH_OR:
				group[w] |= from[w];
				break;
			case RHH_XOR:
				group[w] ^= from[w];
				break;
			case RHH_SUM_SQUARES:
				add_u192(&group[w], rhh_state_words(spec, s), from[w], from[w + 1]);
				if (rhh_state_words(spec, s) > 2)
					group[w + 2] += from[w + 2];
				break;
			case RHH_SUM_F64:
				group[w] = rhh_as_bits(rhh_as_double(group[w]) + rhh_as_double(from[w]));
				group[w + 1] |= from[w + 1];
				break;
			case RHH_MOMENTS_F64:
				add_integer(&group[w], sum_of_two(&from[w]));
				add_integer(&group[w + 2], sum_of_two(&from[w + 2]));
				group[w + 4] |= from[w + 4];
				break;
			case RHH_SUM_TWICE_F64:
				add_integer(&group[w], sum_of_two(&from[w]));
				break;
		}
	}
}

/* ---------- running rows through a table ---------- */

typedef struct run_options
{
	uint32_t	batch_rows;		/* 0: of random size */
	uint32_t	capacity_groups;
	uint32_t	in_flight;		/* batches at once, 0: as many as there are slots */
	int64_t		cancel_at_batch;	/* -1: never */
	bool		on_device;		/* batches lie in the device's memory */
	bool		no_failures;	/* rows handed back are an error */
	bool		rewind;			/* after the first groups, and after the last */
	uint64_t	min_failures;	/* fewer are an error: the case tests nothing */
} run_options;

static const run_options default_options = {
	.batch_rows = 0,.capacity_groups = 4096,.cancel_at_batch = -1
};

typedef struct slot
{
	uint8_t    *base;
	uint8_t    *on_device;		/* its copy there, or NULL */
	bool		busy;
	uint64_t	first_row;
	rhh_batch	batch;
	uint64_t	checksum;
} slot;

typedef struct run
{
	device	   *device;
	const data *data;
	const def  *d;
	run_options options;
	rhh_table  *table;
	rng			r;
	slot		slots[MAX_SLOTS];
	uint32_t	n_slots;
	uint64_t	next_row;
	uint32_t	in_flight;
	uint64_t	n_batches;
	uint64_t	n_failed;
	bool		cancelled;
	bool		finishing;
	bool		finished;
	bool		extracting;
	bool		done;
	uint64_t	n_extracted;
	uint32_t	n_rewinds;
	uint64_t	n_merge_groups;
	rhh_result	result;
	map		   *unique;			/* groups that need no merge */
	map		   *outcome;		/* all of it */
	rhh_table_stats stats;		/* after the last event */
	char		why[400];		/* "": no fault so far */
} run;

static void run_fault(run *run, const char *format,...) __attribute__((format(printf, 2, 3)));

/* The first fault is kept; the run ends as soon as nothing is in flight. */
static void
run_fault(run *run, const char *format,...)
{
	va_list		args;

	if (run->why[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(run->why, sizeof(run->why), format, args);
	va_end(args);
}

static uint32_t
align64(uint32_t n)
{
	return (n + 63) & ~63u;
}

/* Bytes that a batch of n rows can take, its bitmap of failed rows included. */
static uint32_t
batch_room(const def *d, uint32_t n)
{
	uint32_t	bytes = 64;

	for (uint32_t c = 0; c < d->spec.n_columns; c++)
		bytes += align64(n * d->spec.column_bytes[c]) + align64((n + 7) / 8);
	return bytes + align64((n + 63) / 64 * 8);
}

static uint64_t
checksum(const uint8_t *p, uint32_t bytes)
{
	uint64_t	sum = bytes;

	for (uint32_t i = 0; i + 8 <= bytes; i += 8)
	{
		uint64_t	x;

		memcpy(&x, p + i, 8);
		sum = (sum << 5 | sum >> 59) ^ x * 0x9e3779b97f4a7c15ULL;
	}
	return sum;
}

/* Lays rows out as a batch.  Bitmaps of columns without a NULL are left out. */
static void
fill_batch(rhh_batch *batch, uint8_t *base, const data *data, uint64_t first, uint32_t n)
{
	const rhh_table_spec *spec = &data->d->spec;
	uint32_t	at = 64;		/* offset 0 would say "no bitmap" */

	memset(batch, 0, sizeof(*batch));
	memset(base, 0, 64);
	batch->base = base;
	batch->n_rows = n;
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		uint32_t	bytes = n * spec->column_bytes[c];
		bool		any = false;

		batch->values_offset[c] = at;
		memcpy(base + at, data->values[c] + first * spec->column_bytes[c], bytes);
		memset(base + at + bytes, 0xee, align64(bytes) - bytes);
		at += align64(bytes);
		for (uint32_t i = 0; data->nulls[c] != NULL && i < n && !any; i++)
			any = data->nulls[c][first + i] != 0;
		if (!any)
			continue;
		batch->nulls_offset[c] = at;
		bytes = align64((n + 7) / 8);
		/* bits behind the last row may be anything */
		memset(base + at, 0xff, bytes);
		for (uint32_t i = 0; i < n; i++)
			if (data->nulls[c][first + i] == 0)
				base[at + i / 8] &= (uint8_t) ~(1u << (i % 8));
		at += bytes;
	}
	batch->used_bytes = at;
	batch->failed_offset = at;
}

static void
run_start(run *run, device *device, const data *data, const run_options *options,
		  uint8_t *pool, size_t pool_bytes)
{
	rhh_error	err;
	rhh_table_spec spec = data->d->spec;
	uint32_t	room = batch_room(data->d, spec.max_batch_rows);

	memset(run, 0, sizeof(*run));
	run->device = device;
	run->data = data;
	run->d = data->d;
	run->options = *options;
	run->r.state = option_seed + data->n_rows;
	room = (room + 4095) & ~4095u;
	run->n_slots = (uint32_t) (pool_bytes / room);
	if (run->n_slots > MAX_SLOTS)
		run->n_slots = MAX_SLOTS;
	if (options->in_flight > 0 && run->n_slots > options->in_flight)
		run->n_slots = options->in_flight;
	if (run->n_slots == 0)
		die("a case's batches do not fit the pool");
	for (uint32_t i = 0; i < run->n_slots; i++)
	{
		run->slots[i].base = pool + (size_t) i * room;
		if (options->on_device || option_on_device)
			run->slots[i].on_device = device_alloc(device, room);
	}
	spec.max_batch_bytes = room;
	run->result.capacity_groups = options->capacity_groups;
	run->result.words = need((size_t) options->capacity_groups *
							 rhh_result_words(&spec) * sizeof(uint64_t));
	run->unique = map_new(&run->d->spec);
	run->outcome = map_new(&run->d->spec);
	if (device->ops->table_create(device->dev, &spec, &run->table, &err) != RHH_OK)
	{
		run_fault(run, "table_create: %d %s", err.status, err.message);
		run->table = NULL;
		run->done = true;
	}
}

static void
run_end(run *run)
{
	if (run->table != NULL)
		run->device->ops->table_destroy(run->table);
	run->table = NULL;
	for (uint32_t i = 0; i < run->n_slots; i++)
		device_free(run->device, run->slots[i].on_device);
	map_free(run->unique);
	map_free(run->outcome);
	free(run->result.words);
}

static bool
run_submit_one(run *run)
{
	const rhh_device_ops *ops = run->device->ops;
	uint64_t	left = run->data->n_rows - run->next_row;
	uint32_t	n = run->options.batch_rows;
	slot	   *slot = NULL;
	rhh_status	status;
	rhh_error	err;

	for (uint32_t i = 0; i < run->n_slots && slot == NULL; i++)
		if (!run->slots[i].busy)
			slot = &run->slots[i];
	if (slot == NULL)
		return false;
	if (n == 0)
	{
		uint32_t	most = run->d->spec.max_batch_rows;

		/* mostly full ones, but often a few rows */
		n = below(&run->r, 4) == 0 ? 1 + (uint32_t) below(&run->r, 100) :
			1 + (uint32_t) below(&run->r, most);
		if (below(&run->r, 3) == 0 || n > most)
			n = most;
	}
	if (n > left)
		n = (uint32_t) left;
	slot->first_row = run->next_row;
	fill_batch(&slot->batch, slot->base, run->data, run->next_row, n);
	memset(slot->base + slot->batch.failed_offset, 0xa5, (n + 63) / 64 * 8);
	slot->checksum = checksum(slot->base, slot->batch.used_bytes);
	if (slot->on_device != NULL)
	{
		device_copy(run->device, slot->on_device, slot->base,
					slot->batch.failed_offset + (n + 63) / 64 * 8);
		slot->batch.base = slot->on_device;
		slot->batch.on_device = true;
	}
	status = ops->table_submit(run->table, &slot->batch, (uint64_t) (slot - run->slots), &err);
	if (status == RHH_BUSY)
		return false;
	if (status != RHH_OK)
	{
		run_fault(run, "table_submit: %d %s", err.status, err.message);
		return false;
	}
	slot->busy = true;
	run->next_row += n;
	run->in_flight++;
	run->n_batches++;
	if (run->options.cancel_at_batch >= 0 &&
		(int64_t) run->n_batches > run->options.cancel_at_batch)
	{
		ops->table_cancel(run->table);
		run->cancelled = true;
	}
	return true;
}

static void
run_batch_done(run *run, const rhh_event *event)
{
	slot	   *slot = &run->slots[event->tag];
	const uint8_t *failed = slot->base + slot->batch.failed_offset;
	uint32_t	n_failed = 0;

	run->in_flight--;
	if (event->tag >= run->n_slots || !slot->busy)
	{
		run_fault(run, "event for a batch that is not in flight");
		return;
	}
	slot->busy = false;
	if (event->status != RHH_OK)
	{
		if (event->status != RHH_CANCELLED || !run->cancelled)
			run_fault(run, "batch ended with status %d", event->status);
		return;
	}
	if (slot->on_device != NULL)
		device_copy(run->device, slot->base, slot->on_device,
					slot->batch.failed_offset + (slot->batch.n_rows + 63) / 64 * 8);
	if (checksum(slot->base, slot->batch.used_bytes) != slot->checksum)
		run_fault(run, "the device wrote to a batch's columns");
	for (uint32_t i = 0; i < slot->batch.n_rows; i++)
	{
		if (event->n_failed == 0)
		{
			if (failed[i / 8] != 0xa5)
				run_fault(run, "the bitmap of failed rows was written to, but none failed");
		}
		else if (failed[i / 8] >> (i % 8) & 1)
		{
			n_failed++;
			map_row(run->outcome, run->data, slot->first_row + i);
		}
	}
	if (n_failed != event->n_failed)
		run_fault(run, "%u bits of failed rows are set, but %u failed", n_failed,
				  event->n_failed);
	run->n_failed += event->n_failed;
}

static void
run_groups(run *run)
{
	const rhh_result *result = &run->result;
	uint32_t	n_words = rhh_result_words(&run->d->spec);
	uint64_t	group[MAX_WORDS];

	if (result->n_groups > result->capacity_groups)
	{
		run_fault(run, "more groups than the result has room for");
		return;
	}
	for (uint32_t i = 0; i < result->n_groups; i++)
	{
		for (uint32_t w = 0; w < n_words; w++)
			group[w] = result->words[(size_t) w * result->capacity_groups + i];
		if (result->needs_merge)
		{
			run->n_merge_groups++;
			if (run->unique->n_groups > 0)
				run_fault(run, "groups to merge came after groups that need none");
		}
		else
		{
			uint32_t	n_before = run->unique->n_groups;

			(void) map_get(run->unique, group);
			if (run->unique->n_groups == n_before)
				run_fault(run, "key %llx came out twice without needs_merge",
						  (unsigned long long) group[1]);
		}
		map_combine(run->outcome, group);
	}
	run->n_extracted += result->n_groups;
}

/* Begins anew to extract, if the run is to; forgets what came so far. */
static bool
run_rewind(run *run)
{
	rhh_error	err;

	if (!run->options.rewind || run->n_rewinds == 2 || run->stats.orphans > 0 ||
		(run->n_rewinds == 1 && !run->result.last))
		return false;
	run->n_rewinds++;
	if (run->device->ops->table_rewind(run->table, &err) != RHH_OK)
		run_fault(run, "table_rewind: %d %s", err.status, err.message);
	map_free(run->unique);
	map_free(run->outcome);
	run->unique = map_new(&run->d->spec);
	run->outcome = map_new(&run->d->spec);
	return true;
}

static void
run_event(run *run, const rhh_event *event)
{
	run->device->ops->table_stats(run->table, &run->stats);
	switch (event->kind)
	{
		case RHH_EVENT_BATCH:
			run_batch_done(run, event);
			break;
		case RHH_EVENT_FINISH:
			run->finishing = false;
			if (event->status != RHH_OK)
				run_fault(run, "finish ended with status %d", event->status);
			run->finished = true;
			break;
		case RHH_EVENT_EXTRACT:
			run->extracting = false;
			if (event->status != RHH_OK)
				run_fault(run, "extract ended with status %d", event->status);
			else
				run_groups(run);
			if (event->status == RHH_OK && !run_rewind(run) && run->result.last)
				run->done = true;
			break;
	}
}

/* Whatever the run can do now. */
static void
run_step(run *run)
{
	const rhh_device_ops *ops = run->device->ops;
	rhh_error	err;
	rhh_status	status;

	if (run->done)
		return;
	if (run->why[0] != '\0' || run->cancelled)
	{
		if (run->in_flight == 0 && !run->finishing && !run->extracting)
			run->done = true;
		return;
	}
	while (run->next_row < run->data->n_rows && !run->cancelled && run_submit_one(run))
		;
	if (run->next_row < run->data->n_rows || run->in_flight > 0)
		return;
	if (!run->finished)
	{
		if (run->finishing)
			return;
		status = ops->table_finish(run->table, &err);
		if (status == RHH_OK)
			run->finishing = true;
		else if (status != RHH_BUSY)
			run_fault(run, "table_finish: %d %s", err.status, err.message);
	}
	else if (!run->extracting)
	{
		memset(run->result.words, 0xdb, (size_t) run->result.capacity_groups *
			   rhh_result_words(&run->d->spec) * sizeof(uint64_t));
		run->result.n_groups = UINT32_MAX;
		run->result.last = false;
		status = ops->table_extract(run->table, &run->result, 7, &err);
		if (status == RHH_OK)
			run->extracting = true;
		else if (status != RHH_BUSY)
			run_fault(run, "table_extract: %d %s", err.status, err.message);
	}
}

/* Drives runs on one device until all are done.  False: the device failed. */
static bool
drive(device *device, run *runs, uint32_t n_runs)
{
	const rhh_device_ops *ops = device->ops;
	double		last_event_ms = now_ms();

	for (;;)
	{
		rhh_event	events[5];
		rhh_error	err;
		uint32_t	n = 0;
		bool		all_done = true;

		for (uint32_t i = 0; i < n_runs; i++)
		{
			run_step(&runs[i]);
			all_done &= runs[i].done;
		}
		if (all_done)
			return true;
		if (ops->poll(device->dev, events, 5, &n, &err) != RHH_OK)
		{
			run_fault(&runs[0], "poll: %d %s", err.status, err.message);
			return false;
		}
		for (uint32_t e = 0; e < n; e++)
		{
			uint32_t	i = 0;

			while (i < n_runs && runs[i].table != events[e].table)
				i++;
			if (i == n_runs)
				run_fault(&runs[0], "event for an unknown table");
			else
				run_event(&runs[i], &events[e]);
		}
		if (n > 0)
			last_event_ms = now_ms();
		else
		{
			struct pollfd fd = {.fd = ops->event_fd(device->dev), .events = POLLIN};

			if (now_ms() - last_event_ms > STALL_SECONDS * 1e3)
				die("the device reported nothing for too long");
			poll(&fd, 1, 5);
		}
	}
}

/* Compares with the reference; says in run->why what is wrong. */
static void
run_check(run *run)
{
	const rhh_table_stats *stats = &run->stats;
	map		   *expected;

	if (run->why[0] != '\0' || run->cancelled)
		return;
	expected = map_new(&run->d->spec);
	for (uint64_t i = 0; i < run->data->n_rows; i++)
		map_row(expected, run->data, i);
	if (expected->n_groups != run->outcome->n_groups)
		run_fault(run, "%u groups instead of %u (%llu rows handed back)",
				  run->outcome->n_groups, expected->n_groups,
				  (unsigned long long) run->n_failed);
	for (uint32_t g = 0; g < expected->n_groups && run->why[0] == '\0'; g++)
	{
		uint64_t   *want = map_group(expected, g);
		uint64_t   *have = map_find(run->outcome, want);

		if (have == NULL)
		{
			run_fault(run, "key %llx is missing", (unsigned long long) want[1]);
			break;
		}
		map_normalize(expected->spec, expected->key_words, want);
		map_normalize(expected->spec, expected->key_words, have);
		for (uint32_t w = expected->key_words; w < expected->n_words; w++)
			if (have[w] != want[w])
				run_fault(run, "key %llx, word %u: %llx instead of %llx "
						  "(%llu rows handed back)",
						  (unsigned long long) want[1], w,
						  (unsigned long long) have[w], (unsigned long long) want[w],
						  (unsigned long long) run->n_failed);
	}
	map_free(expected);

	if (stats->rows + stats->failed_rows != run->data->n_rows)
		run_fault(run, "%llu rows and %llu failed rows do not make %llu",
				  (unsigned long long) stats->rows,
				  (unsigned long long) stats->failed_rows,
				  (unsigned long long) run->data->n_rows);
	if (stats->failed_rows != run->n_failed)
		run_fault(run, "statistics have %llu failed rows, events %llu",
				  (unsigned long long) stats->failed_rows,
				  (unsigned long long) run->n_failed);
	if (stats->groups != run->unique->n_groups)
		run_fault(run, "statistics have %llu groups, %u came out",
				  (unsigned long long) stats->groups, run->unique->n_groups);
	if (run->d->spec.memory_limit_bytes > 0 &&
		stats->peak_bytes > run->d->spec.memory_limit_bytes)
		run_fault(run, "%llu bytes were held, %llu allowed",
				  (unsigned long long) stats->peak_bytes,
				  (unsigned long long) run->d->spec.memory_limit_bytes);
	if ((run->d->spec.flags & RHH_WANT_PROBE_STATS) && stats->groups > 1 &&
		(stats->probe_buckets_max > run->d->spec.max_probe_buckets ||
		 stats->probe_buckets_sum + 1 < stats->groups))
		run_fault(run, "probe statistics: sum %llu, max %u of %llu groups",
				  (unsigned long long) stats->probe_buckets_sum,
				  stats->probe_buckets_max, (unsigned long long) stats->groups);
	if ((run->data->n_rows > 0 && stats->kernel_ns == 0) ||
		(stats->uploaded_bytes > 0 && stats->upload_ns == 0))
		run_fault(run, "times: upload %llu, kernel %llu, extract %llu",
				  (unsigned long long) stats->upload_ns,
				  (unsigned long long) stats->kernel_ns,
				  (unsigned long long) stats->extract_ns);
	if (run->options.no_failures && run->n_failed > 0)
		run_fault(run, "%llu rows were handed back of a table with room",
				  (unsigned long long) run->n_failed);
	if (run->n_failed < run->options.min_failures)
		run_fault(run, "only %llu rows were handed back: the case tests nothing",
				  (unsigned long long) run->n_failed);
}

/* ---------- cases ---------- */

/* A case says in why what is wrong; "" is right. */
typedef struct context
{
	device	   *device;
	uint64_t	seed;
	char		why[512];
} context;

static void
fault(context *ctx, const char *where, const char *why)
{
	if (ctx->why[0] == '\0' && why[0] != '\0')
		snprintf(ctx->why, sizeof(ctx->why), "%s%s%s", where,
				 where[0] != '\0' ? ": " : "", why);
}

/* One table, checked.  stats may be NULL. */
static void
check_table(context *ctx, const char *where, const def *d, uint64_t n_rows,
			const run_options *options, rhh_table_stats *stats)
{
	data	   *data;
	run			run;

	if (stats != NULL)
		memset(stats, 0, sizeof(*stats));
	if (ctx->why[0] != '\0')
		return;
	data = make_data(d, n_rows, ctx->seed++);
	run_start(&run, ctx->device, data, options, ctx->device->pool,
			  ctx->device->pool_bytes);
	(void) drive(ctx->device, &run, 1);
	run_check(&run);
	fault(ctx, where, run.why);
	if (stats != NULL)
		*stats = run.stats;
	run_end(&run);
	free_data(data);
}

static void
case_key_widths(context *ctx)
{
	static const uint32_t widths[] = {1, 2, 4, 8, 16};
	run_options options = default_options;

	options.no_failures = true;
	for (int i = 0; i < 5; i++)
		for (int nulls = 0; nulls < 2; nulls++)
			for (int pattern = 0; pattern < 2; pattern++)
			{
				char		where[64];
				def			d;

				def_init(&d);
				def_key(&d, widths[i], pattern ? GEN_PATTERN : GEN_UNIFORM, 3000,
						nulls ? 40 : 0);
				def_common_states(&d);
				d.spec.flags = RHH_WANT_PROBE_STATS;
				snprintf(where, sizeof(where), "%u bytes, nulls %d, patterns %d",
						 widths[i], nulls, pattern);
				check_table(ctx, where, &d, rows(100000), &options, NULL);
			}
}

/* Keys of the columns' given widths, of few values and of patterns. */
static void
check_key_shapes(context *ctx, const uint8_t (*shapes)[6], size_t n_shapes, uint64_t n_values)
{
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < n_shapes; i++)
		for (int pattern = 0; pattern < 2; pattern++)
		{
			char		where[64];
			def			d;

			def_init(&d);
			for (int k = 0; k < 6 && shapes[i][k] != 0; k++)
				def_key(&d, shapes[i][k], pattern ? GEN_PATTERN : GEN_UNIFORM, n_values,
						k != 1 ? 30 : 0);
			def_common_states(&d);
			snprintf(where, sizeof(where), "shape %d, patterns %d", (int) i, pattern);
			check_table(ctx, where, &d, rows(60000), &options, NULL);
		}
}

static void
case_packed_keys(context *ctx)
{
	static const uint8_t shapes[][6] = {
		{1, 1}, {2, 1}, {4, 2}, {4, 1, 2}, {1, 4}, {2, 2, 2}, {1, 1, 1, 1},
		{1, 1, 1, 4}, {2, 4, 1}
	};

	check_key_shapes(ctx, shapes, sizeof(shapes) / sizeof(shapes[0]), 20);
}

static void
case_wide_keys(context *ctx)
{
	static const uint8_t shapes[][6] = {
		{4, 4}, {8, 4}, {8, 8}, {16, 1}, {16, 16}, {4, 4, 4, 4}, {8, 1, 16, 2},
		{1, 2, 4, 8, 16}
	};

	check_key_shapes(ctx, shapes, sizeof(shapes) / sizeof(shapes[0]), 12);
}

static void
case_32_keys(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int width = 0; width < 2; width++)
	{
		def			d;

		def_init(&d);
		/* each but a few the same in all rows, so that groups have several */
		for (uint32_t k = 0; k < RHH_MAX_KEYS; k++)
			def_key(&d, width == 0 ? 1u << (k % 5) : 16, GEN_UNIFORM,
					k % 8 == 3 ? 5 : 1, k % 8 == 5 ? 20 : 0);
		def_common_states(&d);
		d.spec.max_batch_rows = 4096;
		check_table(ctx, width == 0 ? "mixed" : "16 bytes", &d, rows(40000),
					&options, NULL);
	}
}

/* The NULL of a column must not be any value of it. */
static void
case_null_is_not_zero(context *ctx)
{
	static const uint8_t shapes[][3] = {{1}, {2}, {4}, {8}, {16}, {4, 2}, {8, 8}, {16, 4}};
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
	{
		def			d;

		def_init(&d);
		for (int k = 0; k < 3 && shapes[i][k] != 0; k++)
			def_key(&d, shapes[i][k], GEN_CUSTOM, 0, 128);
		def_common_states(&d);
		/* values stay zero; generate_value() still draws the NULLs */
		check_table(ctx, "", &d, 5000, &options, NULL);
	}
}

static void
case_all_null(context *ctx)
{
	static const uint8_t shapes[][3] = {{1}, {4}, {8}, {16}, {4, 2}, {8, 8}};
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
	{
		def			d;

		def_init(&d);
		for (int k = 0; k < 3 && shapes[i][k] != 0; k++)
			def_key(&d, shapes[i][k], GEN_UNIFORM, 1000, 256);
		def_common_states(&d);
		check_table(ctx, "", &d, 20000, &options, NULL);
	}
}

static const rhh_state_op integer_ops[] = {
	RHH_COUNT, RHH_SUM_I64, RHH_SUM_I128, RHH_MIN_I64, RHH_MAX_I64, RHH_AND, RHH_OR,
	RHH_XOR, RHH_SUM_SQUARES
};

#define N_INTEGER_OPS (sizeof(integer_ops) / sizeof(integer_ops[0]))

static void
case_states(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (uint32_t o = 0; o < N_INTEGER_OPS; o++)
		for (int variant = 0; variant < 4; variant++)
		{
			char		where[64];
			def			d;
			int			filter;

			def_init(&d);
			def_key(&d, 4, GEN_UNIFORM, 200, 10);
			filter = def_column(&d, 1, GEN_FILTER, 0, 0);
			for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
				def_state(&d, integer_ops[o],
						  def_column(&d, bytes, GEN_EXTREME, 0, variant & 1 ? 90 : 0),
						  variant & 2 ? filter : -1);
			snprintf(where, sizeof(where), "op %d, nulls %d, filter %d", integer_ops[o],
					 variant & 1, variant >> 1);
			check_table(ctx, where, &d, rows(50000), &options, NULL);
		}
}

/* In one group, in few, and in many, some of which have no place at first. */
static void
case_floats(context *ctx)
{
	static const uint64_t groups[] = {1, 50, 30000};
	run_options options = default_options;

	for (int g = 0; g < 3; g++)
		for (int variant = 0; variant < 8; variant++)
		{
			char		where[64];
			def			d;
			int			filter;

			def_init(&d);
			def_key(&d, 4, GEN_UNIFORM, groups[g], 10);
			filter = def_column(&d, 1, GEN_FILTER, 0, 0);
			for (uint32_t bytes = 4; bytes <= 8; bytes *= 2)
			{
				int			v = def_column(&d, bytes, variant & 4 ? GEN_FLOAT_ODD : GEN_FLOAT,
										   0, variant & 1 ? 90 : 0);

				def_state(&d, RHH_SUM_F64, v, variant & 2 ? filter : -1);
				def_state(&d, RHH_MOMENTS_F64, v, variant & 2 ? filter : -1);
				def_state(&d, RHH_SUM_SQUARES, v, -1);
				def_state(&d, RHH_AND, v, -1);
				def_state(&d, RHH_OR, v, -1);
				def_state(&d, RHH_XOR, v, -1);
			}
			def_state(&d, RHH_SUM_TWICE_F64,
					  def_column(&d, 16, GEN_FLOAT_PAIR, 0, variant & 1 ? 90 : 0),
					  variant & 2 ? filter : -1);
			/* few are first aggregated by the block, where that is expected to pay */
			if (g == 2)
				d.spec.max_probe_buckets = 1;
			else
				d.spec.expected_groups = groups[g];
			snprintf(where, sizeof(where), "%llu groups, nulls %d, filter %d, odd %d",
					 (unsigned long long) groups[g], variant & 1, variant >> 1 & 1,
					 variant >> 2);
			check_table(ctx, where, &d, rows(60000), &options, NULL);
		}
}

static void
case_any(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int nulls = 0; nulls < 2; nulls++)
	{
		def			d;
		int			filter;

		def_init(&d);
		def_key(&d, 8, GEN_UNIFORM, 5000, 10);
		filter = def_column(&d, 1, GEN_FILTER, 0, 0);
		for (uint32_t bytes = 1; bytes <= 16; bytes *= 2)
		{
			int			c = def_column(&d, bytes, GEN_ANY, 0, nulls ? 60 : 0);

			def_state(&d, RHH_ANY, c, -1);
			def_state(&d, RHH_ANY, c, filter);
			def_state(&d, RHH_COUNT, c, -1);
		}
		check_table(ctx, nulls ? "with nulls" : "", &d, rows(80000), &options, NULL);
	}
}

/* Neighbouring states with the same and with other arguments and filters. */
static void
case_many_states(context *ctx)
{
	run_options options = default_options;
	rng			r = {ctx->seed};

	options.no_failures = true;
	for (int round = 0; round < 6; round++)
	{
		def			d;
		int			args[6];
		int			filters[3];

		def_init(&d);
		def_key(&d, round % 2 ? 8 : 4, GEN_UNIFORM, 700, 5);
		for (int i = 0; i < 6; i++)
			args[i] = def_column(&d, 2u << (i % 3), GEN_EXTREME, 0, i < 3 ? 40 : 0);
		filters[0] = -1;
		filters[1] = def_column(&d, 1, GEN_FILTER, 0, 0);
		filters[2] = def_column(&d, 1, GEN_FILTER, 0, 0);
		while (d.spec.n_states < RHH_MAX_STATES)
		{
			int			arg = args[below(&r, 6)];
			int			filter = filters[below(&r, 3)];
			uint32_t	n = 1 + (uint32_t) below(&r, 3);

			while (n-- > 0 && d.spec.n_states < RHH_MAX_STATES)
				def_state(&d, integer_ops[below(&r, N_INTEGER_OPS)], arg, filter);
			if (below(&r, 4) == 0 && d.spec.n_states < RHH_MAX_STATES)
				def_state(&d, RHH_COUNT, -1, filter);
		}
		d.spec.max_batch_rows = 20000;
		check_table(ctx, "", &d, rows(30000), &options, NULL);
	}
}

static void
case_no_states(context *ctx)
{
	static const uint8_t widths[] = {4, 8, 16};
	run_options options = default_options;

	options.no_failures = true;
	for (int i = 0; i < 3; i++)
	{
		def			d;

		def_init(&d);
		def_key(&d, widths[i], GEN_UNIFORM, 30000, 3);
		check_table(ctx, "", &d, rows(100000), &options, NULL);
	}
}

/* Sums that leave 63 bits on either side, in few groups. */
static void
case_sum_i128_overflow(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int kind = 0; kind < 2; kind++)
		for (uint64_t groups = 1; groups <= 100; groups *= 10)
		{
			def			d;
			int			v;

			def_init(&d);
			def_key(&d, 4, GEN_UNIFORM, groups, 0);
			v = def_column(&d, 8, kind == 0 ? GEN_HUGE_POSITIVE : GEN_EXTREME, 0, 0);
			def_state(&d, RHH_SUM_I128, v, -1);
			def_state(&d, RHH_SUM_I64, v, -1);
			def_state(&d, RHH_MIN_I64, v, -1);
			def_state(&d, RHH_MAX_I64, v, -1);
			check_table(ctx, "", &d, rows(200000), &options, NULL);
		}
}

/* From each key once to one key only. */
static void
case_duplicates(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 16; bytes *= 2)
		for (uint64_t groups = 1; groups <= (option_divisor > 8 ? 10000u : 10000000u);
			 groups *= 10)
		{
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_UNIFORM, groups, 0);
			def_common_states(&d);
			d.spec.expected_groups = groups;
			snprintf(where, sizeof(where), "%d bytes, %llu groups", bytes,
					 (unsigned long long) groups);
			check_table(ctx, where, &d, groups == 1 ? rows(1000000) : rows(300000),
						&options, NULL);
		}
}

/* One key in most rows, the others in few: Zipf's extreme. */
static void
custom_skew(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	n = UINT64_C(1) << below(r, param);

	put_value(data, 0, row, below(r, n) * 0x9e3779b97f4a7c15ULL, 0);
}

static void
case_skew(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 8; bytes *= 2)
	{
		def			d;

		def_init(&d);
		def_key(&d, (uint32_t) bytes, GEN_CUSTOM, 0, 0);
		def_common_states(&d);
		d.custom = custom_skew;
		d.param = 18;
		check_table(ctx, "", &d, rows(500000), &options, NULL);
	}
}

/* Keys 0, 1, 2, ... and multiples: neighbouring values, as serials have. */
static void
custom_sequence(data *data, uint64_t row, rng *r, uint64_t param)
{
	(void) r;
	put_value(data, 0, row, (row % 50000) * param, 0);
}

static void
case_sequences(context *ctx)
{
	static const uint64_t steps[] = {1, 2, 8, 1024, 65536, UINT64_C(1) << 32, UINT64_MAX};
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 4; bytes <= 8; bytes *= 2)
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		{
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_sequence;
			d.param = steps[i];
			check_table(ctx, "", &d, rows(120000), &options, NULL);
		}
}

static void
case_load_factors(context *ctx)
{
	static const float factors[] = {0.5f, 0.75f, 0.85f, 0.95f};
	run_options options = default_options;

	options.no_failures = true;
	for (int i = 0; i < 4; i++)
		for (int of_expected = 5; of_expected <= 20; of_expected += 5)
			for (int bytes = 4; bytes <= 8; bytes += 4)
			{
				char		where[64];
				def			d;

				def_init(&d);
				d.spec.load_factor = factors[i];
				d.spec.expected_groups = rows(40000);
				d.spec.flags = RHH_WANT_PROBE_STATS;
				d.spec.max_probe_buckets = 64;
				def_key(&d, (uint32_t) bytes, GEN_UNIFORM,
						d.spec.expected_groups * (uint64_t) of_expected / 10, 0);
				def_common_states(&d);
				snprintf(where, sizeof(where), "load factor %.2f, %d0 %% of the estimate",
						 (double) factors[i], of_expected);
				check_table(ctx, where, &d, rows(200000), &options, NULL);
			}
}

static void
case_over_subscription(context *ctx)
{
	static const int percent[] = {50, 75, 90, 100, 120, 150, 300};
	static const uint8_t shapes[][3] = {{4}, {8}, {4, 4}, {16, 4}};

	for (int s = 0; s < 4; s++)
		for (int i = 0; i < 7; i++)
		{
			run_options options = default_options;
			rhh_table_stats stats;
			char		where[64];
			def			d;
			uint64_t	limit = (uint64_t) (option_quick ? 1 : 4) << 20;
			uint64_t	stride;

			def_init(&d);
			def_common_states(&d);
			for (int k = 0; k < 3 && shapes[s][k] != 0; k++)
				def_key(&d, shapes[s][k], GEN_UNIFORM, 1, k == 0 ? 2 : 0);
			/* about what a group takes: key, states, slot */
			stride = 16 + 8u * rhh_result_words(&d.spec);
			d.gens[d.spec.key_column[0]].n = limit / stride * (uint64_t) percent[i] / 100;
			d.spec.memory_limit_bytes = limit;
			d.spec.max_batch_rows = 8192;
			if (percent[i] >= 300)
				options.min_failures = 1;
			snprintf(where, sizeof(where), "shape %d at %d %%", s, percent[i]);
			check_table(ctx, where, &d, enough_rows(600000), &options, &stats);
		}
}

static void
case_probe_caps(context *ctx)
{
	for (uint32_t cap = 1; cap <= 8; cap++)
		for (int bytes = 4; bytes <= 8; bytes += 4)
		{
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_UNIFORM, 50000, 0);
			def_common_states(&d);
			d.spec.max_probe_buckets = cap;
			d.spec.load_factor = 0.9f;
			d.spec.flags = RHH_WANT_PROBE_STATS;
			snprintf(where, sizeof(where), "cap %u, %d bytes", cap, bytes);
			check_table(ctx, where, &d, rows(200000), &default_options, NULL);
		}
}

/* Estimates that are wrong by a factor, in both directions. */
static void
case_estimates(context *ctx)
{
	run_options options = default_options;
	uint64_t	groups = enough_rows(600000);

	options.no_failures = true;
	for (int bytes = 4; bytes <= 8; bytes += 4)
		for (int i = 0; i < 6; i++)
		{
			const uint64_t expected[] = {0, 1, groups / 100, groups, groups * 100,
			UINT64_MAX};
			rhh_table_stats stats;
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_UNIFORM, groups, 0);
			def_common_states(&d);
			d.spec.expected_groups = expected[i];
			d.spec.max_probe_buckets = 32;
			snprintf(where, sizeof(where), "%d bytes, %llu expected", bytes,
					 (unsigned long long) expected[i]);
			check_table(ctx, where, &d, enough_rows(1200000), &options, &stats);
			if (expected[i] <= 1 && stats.rehashes == 0)
				fault(ctx, where, "the table did not grow");
		}
}

static void
case_empty(context *ctx)
{
	static const uint8_t widths[] = {4, 8, 16};

	for (int i = 0; i < 3; i++)
	{
		rhh_table_stats stats;
		def			d;

		def_init(&d);
		def_key(&d, widths[i], GEN_UNIFORM, 10, 0);
		def_common_states(&d);
		check_table(ctx, "", &d, 0, &default_options, &stats);
		if (stats.groups != 0 || stats.rows != 0)
			fault(ctx, "", "an empty table has groups or rows");
	}
}

static void
case_one_row(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (int bytes = 1; bytes <= 16; bytes *= 2)
		for (int nulls = 0; nulls <= 256; nulls += 256)
		{
			def			d;

			def_init(&d);
			def_key(&d, (uint32_t) bytes, GEN_PATTERN, 0, (uint32_t) nulls);
			def_common_states(&d);
			check_table(ctx, "", &d, 1, &options, NULL);
		}
}

static void
case_batch_sizes(context *ctx)
{
	static const uint32_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1023,
	1024, 1025, 4095, 65535, 65536};
	run_options options = default_options;

	options.no_failures = true;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		char		where[64];
		def			d;
		uint64_t	n = sizes[i] * UINT64_C(40) + 13;

		def_init(&d);
		def_key(&d, i % 2 ? 4 : 8, GEN_UNIFORM, 500, 20);
		def_key(&d, 2, GEN_UNIFORM, 5, i % 3 ? 20 : 0);
		def_common_states(&d);
		options.batch_rows = sizes[i];
		snprintf(where, sizeof(where), "%u rows", sizes[i]);
		check_table(ctx, where, &d, n > rows(200000) ? rows(200000) : n, &options, NULL);
	}
}

/* Fewer at once than the device takes, and more (RHH_BUSY). */
static void
case_in_flight(context *ctx)
{
	run_options options = default_options;

	options.no_failures = true;
	for (uint32_t n = 1; n <= MAX_SLOTS; n += n < 4 ? 1 : 4)
	{
		def			d;

		def_init(&d);
		def_key(&d, 4, GEN_UNIFORM, 20000, 1);
		def_common_states(&d);
		d.spec.max_batch_rows = 3000;
		options.in_flight = n;
		check_table(ctx, "", &d, rows(200000), &options, NULL);
	}
}

static void
case_extract_chunks(context *ctx)
{
	static const uint32_t chunks[] = {1, 7, 256, 1000, 65536};
	run_options options = default_options;

	options.no_failures = true;
	options.rewind = true;
	for (int i = 0; i < 5; i++)
		for (int shape = 0; shape < 4; shape++)
		{
			static const uint8_t shapes[][2] = {{4, 0}, {8, 0}, {4, 2}, {16, 8}};
			def			d;

			def_init(&d);
			def_key(&d, shapes[shape][0], GEN_UNIFORM, chunks[i] > 7 ? 40000 : 1500, 10);
			if (shapes[shape][1] != 0)
				def_key(&d, shapes[shape][1], GEN_UNIFORM, 3, 0);
			def_common_states(&d);
			options.capacity_groups = chunks[i];
			check_table(ctx, "", &d, chunks[i] > 7 ? rows(150000) : 10000, &options, NULL);
		}
}

/* The hash of a case's table. */
static rhh_hash
hash_of(const def *d)
{
	rhh_hash	hash;

	rhh_hash_init(&hash, d->spec.hash_seed);
	return hash;
}

/* 64-bit keys, and WIDE ones, with few fingerprints among them. */
static void
custom_collide_64(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	n_fp = param >> 32;
	uint64_t	per_fp = param & UINT32_MAX;
	uint64_t	fp = (below(r, n_fp) * 0x9e3779b9U) & UINT32_MAX;
	rhh_hash	with = hash_of(data->d);

	put_value(data, 0, row, rhh_unhash64(&with, fp << 32 | below(r, per_fp)), 0);
}

static void
custom_collide_wide(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	n_fp = param >> 32;
	uint64_t	per_fp = param & UINT32_MAX;
	uint64_t	fp = (below(r, n_fp) * 0x9e3779b9U) & UINT32_MAX;
	uint64_t	first = 5 + below(r, 3);
	rhh_hash	with = hash_of(data->d);
	uint64_t	hash = rhh_hash_word(&with, rhh_hash_word(&with, RHH_WIDE_START, 0), first);

	put_value(data, 0, row, first, 0);
	put_value(data, 1, row, rhh_unhash64(&with, (fp << 32 | below(r, per_fp)) ^
										 rhh_hash64(&with, hash + RHH_WIDE_START)) ^ hash, 0);
}

static void
case_colliding_fingerprints(context *ctx)
{
	static const struct
	{
		uint64_t	n_fp;
		uint64_t	per_fp;
	}			shapes[] = {{1, 2}, {1, 100}, {1, 5000}, {50, 20}, {20000, 2}, {1000, 9}};

	for (int wide = 0; wide < 2; wide++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
			for (uint32_t cap = 1; cap <= 64; cap *= 8)
			{
				rhh_table_stats stats;
				char		where[64];
				def			d;

				def_init(&d);
				def_key(&d, 8, GEN_CUSTOM, 0, 0);
				if (wide)
					def_key(&d, 8, GEN_CUSTOM, 0, 0);
				def_common_states(&d);
				d.custom = wide ? custom_collide_wide : custom_collide_64;
				d.param = shapes[i].n_fp << 32 | shapes[i].per_fp;
				d.spec.max_probe_buckets = cap;
				d.spec.max_batch_rows = 10000;
				snprintf(where, sizeof(where), "%s, %llu times %llu, cap %u",
						 wide ? "wide" : "8 bytes", (unsigned long long) shapes[i].n_fp,
						 (unsigned long long) shapes[i].per_fp, cap);
				check_table(ctx, where, &d, rows(60000), &default_options, &stats);
				/* keys that no table can take must not make it grow on */
				if (stats.capacity_slots > 4000000)
					fault(ctx, where, "the table grew without bound");
			}
}

/* 4-byte keys that all have nearly the same home bucket. */
static void
custom_crowd(data *data, uint64_t row, rng *r, uint64_t param)
{
	rhh_hash	with = hash_of(data->d);

	put_value(data, 0, row, rhh_unhash32(&with, (uint32_t) (below(r, param) << 3)), 0);
}

static void
case_crowded_bucket(context *ctx)
{
	for (uint64_t n = 5; n <= 50000; n *= 10)
		for (uint32_t cap = 2; cap <= 8; cap += 6)
		{
			rhh_table_stats stats;
			def			d;

			def_init(&d);
			def_key(&d, 4, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_crowd;
			d.param = n;
			d.spec.max_probe_buckets = cap;
			check_table(ctx, "", &d, rows(100000), &default_options, &stats);
			if (stats.capacity_slots > 4000000)
				fault(ctx, "", "the table grew without bound");
		}
}

/*
 * A hash is a bijection whatever its seed, and keys that somebody has chosen
 * because they collide do not do so in a table of another seed.
 */
static void
custom_chosen(data *data, uint64_t row, rng *r, uint64_t param)
{
	rhh_hash	known;
	uint64_t	fp = below(r, param);

	rhh_hash_init(&known, 0);
	if (data->d->spec.column_bytes[0] == 4)
		put_value(data, 0, row, rhh_unhash32(&known, (uint32_t) fp << 3), 0);
	else
		put_value(data, 0, row, rhh_unhash64(&known, fp), 0);
	if (data->d->spec.n_keys > 1)
	{
		uint64_t	before = rhh_hash_word(&known, rhh_hash_word(&known, RHH_WIDE_START, 0), 5);

		put_value(data, 0, row, 5, 0);
		put_value(data, 1, row, rhh_unhash64(&known, fp ^ rhh_hash64(&known, before + RHH_WIDE_START)) ^
				  before, 0);
	}
}

/* The highest bits of fingerprints that are compared, and for how many seeds. */
#define AGREEING_BITS 10
#define SEEDS_TRIED 65536

/* The fingerprint of a key of two words, without NULLs unless nulls says otherwise. */
static uint32_t
wide_fingerprint(const rhh_hash *hash, uint64_t nulls, uint64_t first,
				 uint64_t second)
{
	uint64_t	h = rhh_hash_word(hash, RHH_WIDE_START, nulls);

	h = rhh_hash_word(hash, h, first);
	return (uint32_t) (rhh_hash_word(hash, h, second) >> 32);
}

/*
 * Two keys that are alike in some way agree in their highest bits for no more seeds
 * than the bound of rhh_hash.h says, which is proved for keys of at most 64 bits
 * only.  Were they random, it would be half as many.
 */
static void
check_agreeing(context *ctx)
{
	static const char *const ways[] = {
		"32 bits, neighbours", "32 bits, the highest bit", "64 bits, neighbours",
		"64 bits, the highest bit", "wide, the last word", "wide, the last word's highest bit",
		"wide, the first word", "wide, the first word's highest bit", "wide, both words alike",
		"wide, both words against each other", "wide, words exchanged", "wide, NULL for 0",
		"wide, any two"
	};
	const uint64_t high = UINT64_C(1) << 63;
	rng			r = {12};
	int			n_agreeing[sizeof(ways) / sizeof(ways[0])] = {0};

	for (uint64_t seed = 1; seed <= SEEDS_TRIED; seed++)
	{
		uint64_t	x = seed % 2 ? seed / 2 : next_random(&r);
		uint64_t	y = seed % 2 ? seed / 3 : next_random(&r);
		rhh_hash	hash;
		uint32_t	wide;
		uint32_t	pairs[sizeof(ways) / sizeof(ways[0])][2];
		int			n = 0;

		rhh_hash_init(&hash, next_random(&r) | 1);
		wide = wide_fingerprint(&hash, 0, x, y);
#define PAIR(a, b) (pairs[n][0] = (a), pairs[n++][1] = (b))
		PAIR(rhh_fingerprint(&hash, (uint32_t) x, 32), rhh_fingerprint(&hash, (uint32_t) (x + 1), 32));
		PAIR(rhh_fingerprint(&hash, (uint32_t) x, 32), rhh_fingerprint(&hash, (uint32_t) x ^ 0x80000000U, 32));
		PAIR(rhh_fingerprint(&hash, x, 64), rhh_fingerprint(&hash, x + 1, 64));
		PAIR(rhh_fingerprint(&hash, x, 64), rhh_fingerprint(&hash, x ^ high, 64));
		PAIR(wide, wide_fingerprint(&hash, 0, x, y + 1));
		PAIR(wide, wide_fingerprint(&hash, 0, x, y ^ high));
		PAIR(wide, wide_fingerprint(&hash, 0, x + 1, y));
		PAIR(wide, wide_fingerprint(&hash, 0, x ^ high, y));
		PAIR(wide, wide_fingerprint(&hash, 0, x + 1, y + 1));
		PAIR(wide, wide_fingerprint(&hash, 0, x + 1, y - 1));
		PAIR(wide, wide_fingerprint(&hash, 0, y, x == y ? x + 1 : x));
		PAIR(wide_fingerprint(&hash, 0, 0, y), wide_fingerprint(&hash, 1, 0, y));
		PAIR(wide, wide_fingerprint(&hash, 0, next_random(&r), next_random(&r)));
#undef PAIR
		for (int i = 0; i < n; i++)
			n_agreeing[i] += (pairs[i][0] ^ pairs[i][1]) >> (32 - AGREEING_BITS) == 0;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (n_agreeing[i] > 2 * SEEDS_TRIED >> AGREEING_BITS)
			fault(ctx, ways[i], "keys agree for too many seeds");
}

static void
case_seeds(context *ctx)
{
	rng			r = {11};

	check_agreeing(ctx);
	for (uint64_t seed = 0; seed < 1000; seed++)
	{
		rhh_hash	hash;
		uint64_t	x = next_random(&r);

		rhh_hash_init(&hash, seed);
		if (seed == 0 && (rhh_hash64(&hash, x) != rhh_mix64(x) ||
						  rhh_hash32(&hash, (uint32_t) x) != rhh_mix32((uint32_t) x)))
			fault(ctx, "", "without a seed the hash is another one");
		if (rhh_unhash64(&hash, rhh_hash64(&hash, x)) != x ||
			rhh_unhash32(&hash, rhh_hash32(&hash, (uint32_t) x)) != (uint32_t) x)
			fault(ctx, "", "a key does not come back from its hash");
	}
	for (int shape = 0; shape < 3; shape++)
		for (int i = 0; i < 4; i++)
		{
			run_options options = default_options;
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, shape == 0 ? 4 : 8, GEN_CUSTOM, 0, 0);
			if (shape == 2)
				def_key(&d, 8, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_chosen;
			d.param = rows(200000) / 4;
			if (d.spec.hash_seed == 0)
				d.spec.hash_seed = 1;
			options.no_failures = true;
			snprintf(where, sizeof(where), "chosen keys, shape %d", shape);
			check_table(ctx, where, &d, rows(200000), &options, NULL);
		}
}

/*
 * Displacement stress.  In waves, so that in every batch some hundred keys are
 * new, are hammered at once, and find a table so full that inserting them, and
 * the many keys seen once around them, moves others all the time.  A device that
 * carries displaced entries where nobody else sees them makes copies here.
 *
 * param: hot keys of a wave; the other half of the rows are of keys that recur
 * seldom.
 */
static void
custom_waves(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	wave = row / 20000;
	uint64_t	x = below(r, 2) == 0 ?
		(wave << 20) + below(r, param) : (UINT64_C(1) << 31) + below(r, 400000);

	put_value(data, 0, row, x * 0x9e3779b97f4a7c15ULL, 0);
	if (data->d->spec.n_keys > 1)
		put_value(data, 1, row, ~x, 0);
}

static void
stress(context *ctx, uint32_t bytes, uint32_t n_keys, uint64_t n_rows, int seeds)
{
	static const uint32_t caps[] = {8, 2};
	static const uint64_t hot[] = {50, 300, 3000};

	for (int seed = 0; seed < seeds; seed++)
		for (int cap = 0; cap < 2; cap++)
			for (int h = 0; h < 3; h++)
				for (int limited = 0; limited < 2; limited++)
				{
					char		where[80];
					def			d;

					def_init(&d);
					for (uint32_t k = 0; k < n_keys; k++)
						def_key(&d, bytes, GEN_CUSTOM, 0, 0);
					def_common_states(&d);
					d.custom = custom_waves;
					d.param = hot[h];
					d.spec.max_probe_buckets = caps[cap];
					d.spec.load_factor = 0.95f;
					/* one stays near full, the other is near full before it grows */
					d.spec.memory_limit_bytes = limited ? UINT64_C(6) << 20 : 0;
					d.spec.expected_groups = limited ? 120000 : 1000;
					snprintf(where, sizeof(where), "cap %u, %llu hot keys, %s, seed %d",
							 caps[cap], (unsigned long long) hot[h],
							 limited ? "limited" : "growing", seed);
					check_table(ctx, where, &d, n_rows, &default_options, NULL);
				}
}

static void
case_displacement_4(context *ctx)
{
	stress(ctx, 4, 1, rows(1000000), option_quick ? 1 : 3);
}

static void
case_displacement_8(context *ctx)
{
	stress(ctx, 8, 1, rows(500000), option_quick ? 1 : 2);
}

static void
case_displacement_wide(context *ctx)
{
	stress(ctx, 8, 2, rows(500000), option_quick ? 1 : 2);
}

/*
 * The same in the small, for a test without a GPU (simt.h), whose tables are never
 * near full: 60 keys whose homes are 8 to 16 neighbouring buckets of a table of
 * the least size, more of them as rows go by.  So the keys that are inserted
 * anew, many times each, are those that are being displaced.
 *
 * param: seed of the keys.
 */
#define CROWD_KEYS 60

static uint64_t crowd[CROWD_KEYS];

static void
custom_crowd_rows(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	x = crowd[below(r, row / 20 < CROWD_KEYS ? row / 20 + 1 : CROWD_KEYS)];

	(void) param;
	put_value(data, 0, row, x, 0);
	if (data->d->spec.n_keys > 1)
		put_value(data, 1, row, ~x, 0);
}

static void
make_crowd(const rhh_hash *with, uint32_t bytes, uint32_t n_keys, uint64_t seed)
{
	uint64_t	x = seed << 32;

	for (int i = 0; i < CROWD_KEYS; x++)
	{
		uint64_t	key = bytes == 4 ? (uint32_t) (x ^ x >> 20) : x;
		uint32_t	fp = rhh_fingerprint(with, key, bytes * 8);

		if (n_keys > 1)
		{
			uint64_t	hash = rhh_hash_word(with, RHH_WIDE_START, 0);

			hash = rhh_hash_word(with, rhh_hash_word(with, hash, key), ~key);
			fp = (uint32_t) (hash >> 32);
		}
		if (fp < 1u << 24)
			crowd[i++] = key;
	}
}

static void
case_displacement_crowd(context *ctx)
{
	run_options options = default_options;

	options.batch_rows = 3000;
	for (int kind = 0; kind < 3; kind++)
		for (uint64_t round = 0; round < 20; round++)
		{
			rhh_table_stats stats;
			char		where[80];
			def			d;

			rhh_hash	hash;

			def_init(&d);
			hash = hash_of(&d);
			make_crowd(&hash, kind == 0 ? 4 : 8, kind == 2 ? 2 : 1, round + 1);
			for (int k = 0; k <= kind / 2; k++)
				def_key(&d, kind == 0 ? 4 : 8, GEN_CUSTOM, 0, 0);
			def_common_states(&d);
			d.custom = custom_crowd_rows;
			d.param = round;
			d.spec.max_probe_buckets = 64;
			snprintf(where, sizeof(where), "kind %d, round %d", kind, (int) round);
			check_table(ctx, where, &d, 3000, &options, &stats);
			if (stats.orphans != 0)
				fault(ctx, where, "a group came out without a slot, though there is room for all");
		}
}

/* Many tables at once from one caller. */
static void
case_interleaved(context *ctx)
{
	enum
	{
		N = 20
	};
	static run	runs[N];
	def			defs[N];
	data	   *all[N];
	size_t		share = ctx->device->pool_bytes / N & ~(size_t) 4095;

	for (int i = 0; i < N; i++)
	{
		run_options options = default_options;
		def		   *d = &defs[i];

		def_init(d);
		def_key(d, 1u << (i % 5), GEN_UNIFORM, 200u << (i % 9), i % 3 ? 10 : 0);
		if (i % 4 == 3)
			def_key(d, 4, GEN_UNIFORM, 3, 0);
		def_common_states(d);
		d->spec.max_batch_rows = 1000 + 700 * (uint32_t) i;
		if (i % 5 == 0)
			d->spec.memory_limit_bytes = 1 << 20;
		options.capacity_groups = 100 + 300 * (uint32_t) i;
		if (i % 7 == 5)
			options.cancel_at_batch = i;
		all[i] = make_data(d, rows(60000 + 5000 * (uint64_t) i), ctx->seed++);
		run_start(&runs[i], ctx->device, all[i], &options,
				  ctx->device->pool + share * (size_t) i, share);
	}
	(void) drive(ctx->device, runs, N);
	for (int i = 0; i < N; i++)
	{
		char		where[32];

		run_check(&runs[i]);
		snprintf(where, sizeof(where), "table %d", i);
		fault(ctx, where, runs[i].why);
		run_end(&runs[i]);
		free_data(all[i]);
	}
}

/*
 * Distributions that change the way rows go, where a device has several: the CPU
 * device's threads have a local table each in front of shared partitions.
 */
typedef enum mode
{
	MODE_FEW,					/* what a local table holds */
	MODE_OVERFLOW,				/* few, then too many, then few again */
	MODE_SKEW_GROWTH,			/* one key, and ever new ones */
	MODE_LATE,					/* some, then new ones only */
	MODE_END
} mode;

static void
custom_modes(data *data, uint64_t row, rng *r, uint64_t param)
{
	uint64_t	quarter = row * 4 / data->n_rows;
	uint64_t	x = below(r, 500);

	switch ((mode) param)
	{
		case MODE_OVERFLOW:
			if (quarter == 1 || quarter == 2)
				x = below(r, 60000);
			break;
		case MODE_SKEW_GROWTH:
			x = below(r, 5) != 0 ? 7 : row / 3;
			break;
		case MODE_LATE:
			x = quarter == 0 ? below(r, 60) : 10000 + row;
			break;
		default:
			break;
	}
	for (uint32_t k = 0; k < data->d->spec.n_keys; k++)
		put_value(data, data->d->spec.key_column[k], row, x * 0x9e3779b97f4a7c15ULL,
				  rhh_mix64(x));
}

/* Each mode with room, without, with a small probe cap, and cancelled. */
static void
check_modes(context *ctx, uint32_t threads)
{
	static const uint8_t shapes[][4] = {{4}, {2, 1}, {8}, {4, 2}, {4, 4}, {16, 8}};
	const bool	several = ctx->device->info.kind == RHH_KIND_CPU && threads > 1;

	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (int m = 0; m < MODE_END; m++)
			for (int limit = 0; limit < 4; limit++)
			{
				run_options options = default_options;
				rhh_table_stats stats;
				char		where[96];
				def			d;

				def_init(&d);
				for (int k = 0; k < 4 && shapes[s][k] != 0; k++)
					def_key(&d, shapes[s][k], GEN_CUSTOM, 0, k == 0 ? 4 : 0);
				def_common_states(&d);
				d.custom = custom_modes;
				d.param = (uint64_t) m;
				d.spec.max_batch_rows = 4096;
				d.spec.expected_groups = 100;
				d.spec.max_probe_buckets = 64;
				options.no_failures = limit == 0;
				if (limit == 1)
					d.spec.memory_limit_bytes = UINT64_C(768) << 10;
				if (limit == 2)
				{
					d.spec.max_probe_buckets = 1;
					d.spec.load_factor = 0.95f;
				}
				if (limit == 3)
					options.cancel_at_batch = 7 + m;
				snprintf(where, sizeof(where), "%u threads, shape %d, mode %d, limit %d",
						 threads, (int) s, m, limit);
				check_table(ctx, where, &d, 100000, &options, &stats);
				if (limit == 1 && m == MODE_LATE && shapes[s][0] > 2)
				{
					if (stats.failed_rows == 0)
						fault(ctx, where, "no row was handed back: the case tests nothing");
					if (several && threads < 8 && stats.orphans == 0)
						fault(ctx, where, "all local groups found room: the case tests nothing");
				}
			}
}

static void
case_modes(context *ctx)
{
	static const uint32_t threads[] = {1, 2, 3, 8};
	const rhh_device_ops *ops = ctx->device->ops;

	if (ctx->device->info.kind != RHH_KIND_CPU)
	{
		if (option_divisor <= 8)
			check_modes(ctx, 0);
		return;
	}
	for (int i = 0; i < (option_quick ? 2 : 4) && ctx->why[0] == '\0'; i++)
	{
		rhh_device_config config = {.cpu_threads = threads[i], .look_rows = LOOK_ROWS};
		device		device = *ctx->device;
		context		inner = {.device = &device, .seed = ctx->seed};
		rhh_error	err;

		if (option_quick && i == 1)
			config.cpu_threads = 3;
		if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
		{
			fault(ctx, "open", err.message);
			return;
		}
		check_modes(&inner, config.cpu_threads);
		fault(ctx, "", inner.why);
		ops->close(device.dev);
	}
}

/* The next event, and false if it is none that was asked for. */
static bool
next_event(context *ctx, rhh_event *event)
{
	rhh_error	err;
	uint32_t	n = 0;

	while (n == 0)
	{
		if (ctx->device->ops->poll(ctx->device->dev, event, 1, &n, &err) != RHH_OK)
		{
			fault(ctx, "poll", err.message);
			return false;
		}
		if (n == 0)
			usleep(10);
	}
	if (event->status != RHH_OK)
		fault(ctx, "event", "a batch failed");
	return event->status == RHH_OK;
}

/*
 * A batch of one table does not wait for all batches that others have handed in
 * before.  Which are done first is counted, not how long it takes; but whoever is
 * late to submit sees others done, so the best of several attempts counts.  On a
 * GPU each table has a stream of its own.
 */
static void
case_turns(context *ctx)
{
	enum
	{
		N = 30,
		BATCHES = 4
	};
	const rhh_device_ops *ops = ctx->device->ops;
	bool		in_turn = ctx->device->info.kind != RHH_KIND_CPU;
	data	   *data;
	rhh_batch	batch;
	rhh_error	err;
	def			d;

	def_init(&d);
	def_key(&d, 8, GEN_UNIFORM, 1000000, 0);
	def_common_states(&d);
	data = make_data(&d, 65536, ctx->seed++);
	fill_batch(&batch, ctx->device->pool, data, 0, 65536);
	d.spec.max_batch_bytes = batch.used_bytes;
	for (int attempt = 0; attempt < 10 && !in_turn; attempt++)
	{
		rhh_table  *tables[N + 1];
		rhh_table  *last;
		rhh_event	event;
		int			n_in_flight = 0,
					n_before = 0,
					n_others;
		bool		ok = true;

		for (int i = 0; i <= N; i++)
		{
			if (ops->table_create(ctx->device->dev, &d.spec, &tables[i], &err) != RHH_OK)
			{
				fault(ctx, "table_create", err.message);
				return;
			}
		}
		last = tables[N];
		for (int b = 0; b < BATCHES; b++)
			for (int i = 0; i < N; i++)
				n_in_flight += ops->table_submit(tables[i], &batch, 0, &err) == RHH_OK;
		for (uint32_t n = 1; n > 0; n_in_flight -= (int) n)
			(void) ops->poll(ctx->device->dev, &event, 1, &n, &err);
		n_others = n_in_flight;
		if (ops->table_submit(last, &batch, 0, &err) != RHH_OK)
			fault(ctx, "table_submit", err.message);
		else
			n_in_flight++;
		for (bool seen = false; n_in_flight > 0 && ok; n_in_flight--)
		{
			ok = next_event(ctx, &event);
			seen |= ok && event.table == last;
			n_before += !seen;
		}
		in_turn = n_before < n_others / 2;
		for (int i = 0; i <= N; i++)
			ops->table_destroy(tables[i]);
	}
	if (!in_turn)
		fault(ctx, "", "a table's only batch waited for those of all others");
	free_data(data);
}

/* Cancelled with batches in flight; then the device works as before. */
static void
case_cancel(context *ctx)
{
	for (int at = 0; at < 10; at += 3)
	{
		run_options options = default_options;
		def			d;

		def_init(&d);
		def_key(&d, 8, GEN_UNIFORM, 1000000, 0);
		def_common_states(&d);
		options.cancel_at_batch = at;
		check_table(ctx, "cancelled", &d, rows(800000), &options, NULL);
		options = default_options;
		options.no_failures = true;
		check_table(ctx, "after", &d, rows(50000), &options, NULL);
	}
}

/* Cancelled while groups come out: no event but OK or CANCELLED, and no hang. */
static void
case_cancel_extract(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	run_options options = default_options;
	data	   *data;
	run			run;
	def			d;

	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 100000, 0);
	def_common_states(&d);
	options.capacity_groups = 100;
	data = make_data(&d, rows(300000), ctx->seed++);
	run_start(&run, ctx->device, data, &options, ctx->device->pool,
			  ctx->device->pool_bytes);
	for (bool cancelled = false; !run.done;)
	{
		rhh_event	event;
		rhh_error	err;
		uint32_t	n;

		run_step(&run);
		if (!cancelled && run.n_extracted >= 1000)
		{
			ops->table_cancel(run.table);
			cancelled = run.cancelled = true;
		}
		if (ops->poll(ctx->device->dev, &event, 1, &n, &err) != RHH_OK)
		{
			fault(ctx, "poll", err.message);
			break;
		}
		if (n == 0)
			usleep(100);
		else if (event.status == RHH_CANCELLED && cancelled)
			run.extracting = false;
		else
			run_event(&run, &event);
	}
	fault(ctx, "", run.why);
	run_end(&run);
	free_data(data);
}

/* A device of its own, with little memory: all of it comes back each time. */
static void
case_memory_returned(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_device_config config = {.memory_limit_bytes = UINT64_C(64) << 20,
	.cpu_threads = option_threads,.look_rows = LOOK_ROWS};
	device		device = *ctx->device;
	rhh_device_info before,
				after;
	rhh_error	err;

	if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
	{
		fault(ctx, "open", err.message);
		return;
	}
	(void) ops->register_pool(device.dev, device.pool, device.pool_bytes, &err);
	(void) ops->info(device.dev, &before, &err);
	for (int i = 0; i < 30 && ctx->why[0] == '\0'; i++)
	{
		run_options options = default_options;
		context		inner = {.device = &device, .seed = ctx->seed++};
		def			d;

		def_init(&d);
		def_key(&d, i % 2 ? 4 : 8, GEN_UNIFORM, 100000, 1);
		def_common_states(&d);
		if (i % 5 == 4)
			options.cancel_at_batch = 3;
		else if (i == 0)
			options.no_failures = true;
		check_table(&inner, "", &d, rows(300000), &options, NULL);
		fault(ctx, "", inner.why);
	}
	(void) ops->info(device.dev, &after, &err);
	if (before.free_known && after.free_known &&
		after.free_bytes + (UINT64_C(8) << 20) < before.free_bytes)
		fault(ctx, "", "free memory of the device has shrunk");
	ops->close(device.dev);
}

/* Sets what a machine whose files are in a directory says to be available. */
static void
say_available(context *ctx, const char *root, uint64_t bytes)
{
	char		name[96];
	FILE	   *f;

	snprintf(name, sizeof(name), "%s/proc/meminfo", root);
	f = fopen(name, "w");
	if (f == NULL || fprintf(f, "MemAvailable: %llu kB\n", (unsigned long long) (bytes / 1024)) < 0 ||
		fclose(f) != 0)
		fault(ctx, "", "could not write a file");
}

/*
 * The CPU device lends no memory that the machine needs: not by default, and not
 * below a limit either if others have taken it since.  One large table leaves room
 * for small ones.
 */
static void
case_machine_memory(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const uint64_t mb = UINT64_C(1) << 20;
	char		root[] = "/tmp/rhh_device_test.XXXXXX";
	char		proc[64];
	char		meminfo[96];
	/* what a small table takes grows with the threads, and the limits here are small */
	rhh_device_config config = {.cpu_threads = 2, .root = root};
	device		device = *ctx->device;
	context		inner = {.device = &device, .seed = ctx->seed++};
	rhh_device_info info;
	rhh_table_stats stats;
	rhh_table  *table;
	rhh_error	err;
	uint64_t	total;
	def			d;

	if (ctx->device->info.kind != RHH_KIND_CPU)
		return;
	if (mkdtemp(root) == NULL)
		die("mkdtemp");
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", proc);
	if (mkdir(proc, 0700) != 0)
		die(proc);
	say_available(ctx, root, 1000 * mb);

	/* by default */
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK ||
		ops->info(device.dev, &info, &err) != RHH_OK)
		die(err.message);
	total = info.total_bytes;
	if (info.free_bytes > 500 * mb || info.free_bytes > total / 4)
		fault(ctx, "default", "takes more than half of what is available");
	ops->close(device.dev);

	/* others take it meanwhile: a table stops growing, and goes on when they give it back */
	def_init(&d);
	def_key(&d, 8, GEN_UNIFORM, 10000000, 0);
	def_common_states(&d);
	config.memory_limit_bytes = 32 * mb;
	say_available(ctx, root, total);
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK)
		die(err.message);
	check_table(&inner, "", &d, 400000, &default_options, &stats);
	if (stats.peak_bytes < 12 * mb)
		fault(ctx, "", "a test of large tables has a small one");
	say_available(ctx, root, total / 16);
	check_table(&inner, "", &d, 400000, &default_options, &stats);
	if (stats.peak_bytes > 10 * mb)
		fault(ctx, "", "the device takes the last memory of the machine");
	say_available(ctx, root, total);
	usleep(200000);
	check_table(&inner, "", &d, 400000, &default_options, &stats);
	if (stats.peak_bytes < 12 * mb)
		fault(ctx, "", "the device does not see that there is memory again");
	fault(ctx, "", inner.why);

	/* a table of all there is */
	d.spec.max_batch_rows = 65536;
	config.memory_limit_bytes = 32 * mb;
	ops->close(device.dev);
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK)
		die(err.message);
	{
		data	   *data = make_data(&d, 1500000, ctx->seed++);
		run_options options = default_options;
		def			small;
		run			run;

		run_start(&run, &device, data, &options, device.pool, device.pool_bytes);
		while (!run.finishing && !run.finished)
		{
			rhh_event	event;
			uint32_t	n;

			run_step(&run);
			if (ops->poll(device.dev, &event, 1, &n, &err) != RHH_OK)
				die(err.message);
			if (n > 0)
				run_event(&run, &event);
		}
		ops->table_stats(run.table, &stats);
		if (stats.failed_rows == 0)
			fault(ctx, "", "the limit is not reached");
		def_init(&small);
		def_key(&small, 4, GEN_UNIFORM, 10, 0);
		if (ops->table_create(device.dev, &small.spec, &table, &err) != RHH_OK)
			fault(ctx, "", "a large table leaves no room for a small one");
		ops->close(device.dev);
		run.table = NULL;
		run_end(&run);
		free_data(data);
	}
	(void) unlink(meminfo);
	(void) rmdir(proc);
	(void) rmdir(root);
}

/* close() with tables and batches in flight: nothing leaks, nothing hangs. */
static void
case_close_busy(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;

	for (int i = 0; i < 4; i++)
	{
		rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS};
		device		device = *ctx->device;
		run_options options = default_options;
		rhh_error	err;
		data	   *data;
		run			run;
		def			d;

		if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
		{
			fault(ctx, "open", err.message);
			return;
		}
		def_init(&d);
		def_key(&d, 8, GEN_UNIFORM, 1000000, 0);
		def_common_states(&d);
		data = make_data(&d, rows(400000), ctx->seed++);
		run_start(&run, &device, data, &options, device.pool, device.pool_bytes);
		run_step(&run);
		ops->close(device.dev);
		run.table = NULL;
		fault(ctx, "", run.why);
		run_end(&run);
		free_data(data);
	}
}

static void
case_small_memory(context *ctx)
{
	rhh_table  *table;
	rhh_error	err;
	def			d;

	for (uint64_t kb = 1024; kb <= 4096; kb *= 2)
	{
		run_options options = default_options;
		char		where[64];

		def_init(&d);
		def_key(&d, 4, GEN_UNIFORM, 1000, 0);
		def_common_states(&d);
		d.spec.memory_limit_bytes = kb << 10;
		d.spec.expected_groups = UINT64_C(1) << 40;
		d.spec.max_batch_rows = 4096;
		options.no_failures = true;
		snprintf(where, sizeof(where), "%llu kB", (unsigned long long) kb);
		check_table(ctx, where, &d, 50000, &options, NULL);
	}
	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 1000, 0);
	d.spec.memory_limit_bytes = 64;
	if (ctx->device->ops->table_create(ctx->device->dev, &d.spec, &table, &err) !=
		RHH_NO_MEMORY)
		fault(ctx, "", "a table was made in 64 bytes");
}

static void
expect_invalid(context *ctx, const def *d, const char *what)
{
	rhh_table  *table = NULL;
	rhh_error	err = {RHH_OK, ""};

	if (ctx->device->ops->table_create(ctx->device->dev, &d->spec, &table, &err) !=
		RHH_INVALID || err.status != RHH_INVALID || err.message[0] == '\0')
		fault(ctx, what, "was not refused");
}

static void
case_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	def			good,
				d;
	rhh_table  *table;
	rhh_batch	batch;
	rhh_error	err;
	uint8_t    *pool = ctx->device->pool;

	def_init(&good);
	def_key(&good, 4, GEN_UNIFORM, 10, 0);
	def_common_states(&good);
	good.spec.max_batch_bytes = 1 << 20;

#define INVALID(what) d = good, what, expect_invalid(ctx, &d, #what)
	INVALID(d.spec.n_keys = 0);
	INVALID(d.spec.n_keys = RHH_MAX_KEYS + 1);
	INVALID(d.spec.n_columns = RHH_MAX_COLUMNS + 1);
	INVALID(d.spec.n_states = RHH_MAX_STATES + 1);
	INVALID(d.spec.key_column[0] = 2);
	INVALID(d.spec.column_bytes[0] = 3);
	INVALID(d.spec.states[0].op = 99);
	INVALID(d.spec.states[1].arg_column = -1);
	INVALID(d.spec.states[1].arg_column = 2);
	INVALID(d.spec.states[1].filter_column = 0);
	INVALID(d.spec.states[1].filter_column = 9);
	INVALID(d.spec.column_bytes[1] = 16);
	INVALID(d.spec.max_probe_buckets = 0);
	INVALID(d.spec.load_factor = 0.2f);
	INVALID(d.spec.load_factor = 1.0f);
	INVALID(d.spec.max_batch_rows = 0);
#undef INVALID

	if (ops->table_create(ctx->device->dev, &good.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "table_create", err.message);
		return;
	}
	memset(&batch, 0, sizeof(batch));
	batch.base = pool;
	batch.n_rows = 16;
	batch.values_offset[0] = 64;
	batch.values_offset[1] = 128;
	batch.used_bytes = batch.failed_offset = 192;
#define INVALID(what) \
	do { \
		rhh_batch	b = batch; \
		what; \
		if (ops->table_submit(table, &b, 0, &err) != RHH_INVALID) \
			fault(ctx, #what, "was not refused"); \
	} while (0)
	INVALID(b.n_rows = 0);
	INVALID(b.n_rows = good.spec.max_batch_rows + 1);
	INVALID(b.n_rows = 17);
	INVALID(b.values_offset[1] = 192);
	INVALID(b.values_offset[1] = 100);
	INVALID(b.nulls_offset[1] = 192);
#undef INVALID
	ops->table_destroy(table);
	if (ops->open(12345, &(rhh_device_config){.cpu_threads = 1},
				  &(rhh_device *){NULL}, &err) != RHH_NO_DEVICE)
		fault(ctx, "", "device 12345 was opened");
}

/*
 * Both devices refuse and accept the same.  They once had checks of their own: the
 * CPU device took a column of -2 for none, and refused batches in the device's memory
 * that are larger than those in host memory may be; the CUDA device let the bitmap of
 * failed rows lie over the columns.
 */
static void
case_same_checks(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	def			good,
				d;
	rhh_table  *table;
	rhh_batch	batch;
	rhh_error	err;
	rhh_event	event;
	uint8_t    *host = ctx->device->pool;
	uint8_t    *memory;

	def_init(&good);
	def_key(&good, 4, GEN_UNIFORM, 10, 0);
	def_common_states(&good);
	good.spec.max_batch_bytes = 128;

	d = good;
	d.spec.states[1].filter_column = -2;
	expect_invalid(ctx, &d, "filter_column = -2");
	d = good;
	for (uint32_t s = 0; s < d.spec.n_states; s++)
		if (d.spec.states[s].op == RHH_COUNT)
			d.spec.states[s].arg_column = -2;
	expect_invalid(ctx, &d, "arg_column = -2");

	if (ops->table_create(ctx->device->dev, &good.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "table_create", err.message);
		return;
	}
	memset(host, 0, 512);
	memset(&batch, 0, sizeof(batch));
	batch.base = host;
	batch.n_rows = 16;
	for (uint32_t c = 1; c < good.spec.n_columns; c++)
		batch.values_offset[c] = batch.values_offset[c - 1] + 128;
	batch.used_bytes = batch.values_offset[good.spec.n_columns - 1] + 128;
	batch.failed_offset = batch.used_bytes;
	if (ops->table_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "a batch in host memory", "was not refused, though it is too large");

	memory = device_alloc(ctx->device, 512);
	device_copy(ctx->device, memory, host, 512);
	batch.base = memory;
	batch.on_device = true;
	batch.failed_offset = batch.used_bytes - 64;
	if (ops->table_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "a bitmap of failed rows over the columns", "was not refused");
	batch.failed_offset = batch.used_bytes;
	if (ops->table_submit(table, &batch, 7, &err) != RHH_OK)
		fault(ctx, "a batch in the device's memory", err.message);
	else if (next_event(ctx, &event) &&
			 (event.kind != RHH_EVENT_BATCH || event.tag != 7 || event.n_failed != 0))
		fault(ctx, "a batch in the device's memory", "was not aggregated");
	ops->table_destroy(table);
	device_free(ctx->device, memory);
}

typedef struct test_case
{
	const char *name;
	void		(*test) (context *ctx);
} test_case;

/*
 * Keys must find their bucket at once where there is room: with more buckets
 * than 2^16 a partition once took its keys by bits that also chose their home,
 * and used half of its buckets.
 */
static void
case_bucket_use(context *ctx)
{
	for (int bytes = 4; bytes <= 8; bytes += 4)
	{
		rhh_table_stats stats;
		char		where[64];
		def			d;

		def_init(&d);
		def_key(&d, (uint32_t) bytes, GEN_UNIFORM, UINT64_C(1) << 32, 0);
		d.spec.expected_groups = rows(3000000);
		d.spec.flags = RHH_WANT_PROBE_STATS;
		snprintf(where, sizeof(where), "%d bytes", bytes);
		check_table(ctx, where, &d, rows(3000000), &default_options, &stats);
		/* 4 slots a bucket: about 1.4 */
		if ((double) stats.probe_buckets_sum > 1.6 * (double) stats.groups)
		{
			char		why[96];

			snprintf(why, sizeof(why), "%.2f buckets are read for a key at a load of %.2f",
					 (double) stats.probe_buckets_sum / (double) stats.groups,
					 (double) stats.groups / (double) stats.capacity_slots);
			fault(ctx, where, why);
		}
	}
}

/*
 * Batches that are worth partitioning, with many groups and few, with frequent
 * keys and NULLs, where rows are refused and where memory ends.
 */
static void
case_large_batches(context *ctx)
{
	static const struct
	{
		uint8_t		widths[2];
		uint64_t	groups;
		uint32_t	cap;
		uint64_t	limit_bytes;
	}			shapes[] = {
		{{4}, 700000, 64, 0},
		{{8}, 700000, 64, 0},
		{{16, 2}, 100000, 64, 0},
		{{4, 2}, 3000, 8, 0},
		{{4}, 10, 8, 0},
		{{1}, 200, 8, 0},
		{{4}, 700000, 1, 0},
		{{8}, 400000, 2, 4 << 20},
		{{16}, 50000, 1, 2 << 20}
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int skewed = 0; skewed < 2; skewed++)
		{
			run_options options = default_options;
			/* what is to crowd a table needs more */
			bool		crowded = shapes[i].cap <= 2;
			uint64_t	n = crowded ? enough_rows(1 << 20) : rows(1 << 20);
			char		where[64];
			def			d;

			def_init(&d);
			def_key(&d, shapes[i].widths[0], skewed ? GEN_SKEWED : GEN_UNIFORM,
					crowded ? enough_rows(shapes[i].groups) : rows(shapes[i].groups),
					i % 2 ? 20 : 0);
			if (shapes[i].widths[1] != 0)
				def_key(&d, shapes[i].widths[1], GEN_UNIFORM, 3, 30);
			def_common_states(&d);
			d.spec.max_batch_rows = (uint32_t) (n / 2 + 7);
			d.spec.max_probe_buckets = shapes[i].cap;
			d.spec.memory_limit_bytes = shapes[i].limit_bytes;
			options.on_device = true;
			options.batch_rows = i % 3 ? d.spec.max_batch_rows : 0;
			options.no_failures = shapes[i].cap == 64 && shapes[i].limit_bytes == 0;
			snprintf(where, sizeof(where), "shape %d%s", (int) i, skewed ? ", skewed" : "");
			check_table(ctx, where, &d, n, &options, NULL);
		}
}

static const test_case cases[] = {
	{"empty", case_empty},
	{"one_row", case_one_row},
	{"invalid", case_invalid},
	{"same_checks", case_same_checks},
	{"key_widths", case_key_widths},
	{"packed_keys", case_packed_keys},
	{"wide_keys", case_wide_keys},
	{"32_keys", case_32_keys},
	{"null_is_not_zero", case_null_is_not_zero},
	{"all_null", case_all_null},
	{"states", case_states},
	{"floats", case_floats},
	{"any", case_any},
	{"many_states", case_many_states},
	{"no_states", case_no_states},
	{"sum_i128_overflow", case_sum_i128_overflow},
	{"duplicates", case_duplicates},
	{"skew", case_skew},
	{"modes", case_modes},
	{"sequences", case_sequences},
	{"batch_sizes", case_batch_sizes},
	{"in_flight", case_in_flight},
	{"extract_chunks", case_extract_chunks},
	{"estimates", case_estimates},
	{"load_factors", case_load_factors},
	{"probe_caps", case_probe_caps},
	{"colliding_fingerprints", case_colliding_fingerprints},
	{"crowded_bucket", case_crowded_bucket},
	{"seeds", case_seeds},
	{"bucket_use", case_bucket_use},
	{"small_memory", case_small_memory},
	{"over_subscription", case_over_subscription},
	{"displacement_4", case_displacement_4},
	{"displacement_8", case_displacement_8},
	{"displacement_wide", case_displacement_wide},
	{"displacement_crowd", case_displacement_crowd},
	{"large_batches", case_large_batches},
	{"interleaved", case_interleaved},
	{"turns", case_turns},
	{"cancel", case_cancel},
	{"cancel_extract", case_cancel_extract},
	{"memory_returned", case_memory_returned},
	{"machine_memory", case_machine_memory},
	{"close_busy", case_close_busy}
};

/* ---------- benchmark ---------- */

typedef struct bench_shape
{
	const char *name;
	uint8_t		key_bytes[3];
	uint64_t	groups;
	bool		skewed;			/* 80 % of the rows have one key */
	bool		five;			/* five states instead of two */
} bench_shape;

static const bench_shape bench_shapes[] = {
	{"4/100", {4}, 100, false, false},
	{"4/1e4", {4}, 10000, false, false},
	{"4/1e5", {4}, 100000, false, false},
	{"4/1e6", {4}, 1000000, false, false},
	{"4/1e7", {4}, 10000000, false, false},
	{"4/1e6 skewed", {4}, 1000000, true, false},
	{"4/1e6 five", {4}, 1000000, false, true},
	{"4+4/1e6", {4, 4}, 1000000, false, false},
	{"8/100", {8}, 100, false, false},
	{"8/1e6", {8}, 1000000, false, false},
	{"8/1e7", {8}, 10000000, false, false},
	{"16/1e6", {16}, 1000000, false, false},
};

/* What bench_one() measures, in a run. */
typedef struct bench_times
{
	double		build_ms;
	double		build_cpu_ms;	/* of all threads */
	double		extract_ms;
} bench_times;

static void
custom_bench_skew(data *data, uint64_t row, rng *r, uint64_t param)
{
	if (below(r, 100) < param)
		put_value(data, 0, row, 42, 0);
}

/* All rows as batches in memory that the device knows, before the clock runs. */
static void
bench_one(device *device, const bench_shape *shape, uint64_t n_rows, double estimate,
		  int repeat)
{
	enum
	{
		BATCH_ROWS = 65536,
		CHUNK = 65536
	};
	const rhh_device_ops *ops = device->ops;
	rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS};
	uint32_t	n_batches = (uint32_t) ((n_rows + BATCH_ROWS - 1) / BATCH_ROWS);
	rhh_batch  *batches = need(n_batches * sizeof(rhh_batch));
	bench_times best = {1e12, 1e12, 1e12};
	uint64_t	n_groups = 0;
	rhh_table_stats stats;
	rhh_error	err;
	rhh_result	result;
	size_t		room;
	uint8_t    *pool;
	def			d;
	int			v;

	def_init(&d);
	for (int k = 0; shape->key_bytes[k] != 0; k++)
		def_key(&d, shape->key_bytes[k], GEN_UNIFORM, k == 0 ? shape->groups : 1, 0);
	if (shape->skewed)
	{
		d.custom = custom_bench_skew;
		d.param = 80;
	}
	v = def_column(&d, 4, GEN_SMALL, 0, 0);
	def_state(&d, RHH_SUM_I64, v, -1);
	def_state(&d, RHH_COUNT, v, -1);
	if (shape->five)
	{
		def_state(&d, RHH_COUNT, -1, -1);
		def_state(&d, RHH_MIN_I64, v, -1);
		def_state(&d, RHH_MAX_I64, v, -1);
	}
	d.spec.expected_groups = (uint64_t) ((double) shape->groups * estimate);
	d.spec.max_probe_buckets = 16;
	d.spec.max_batch_rows = BATCH_ROWS;

	room = batch_room(&d, BATCH_ROWS);
	d.spec.max_batch_bytes = (uint32_t) room;
	if (posix_memalign((void **) &pool, 4096, room * n_batches) != 0)
		die("out of memory");
	for (uint32_t i = 0; i < n_batches; i++)
	{
		uint64_t	n = n_rows - (uint64_t) i * BATCH_ROWS;
		data	   *data = make_data(&d, n < BATCH_ROWS ? n : BATCH_ROWS, i + 1);

		fill_batch(&batches[i], pool + room * i, data, 0, (uint32_t) data->n_rows);
		free_data(data);
	}
	memset(&result, 0, sizeof(result));
	result.capacity_groups = CHUNK;
	result.words = need((size_t) CHUNK * rhh_result_words(&d.spec) * sizeof(uint64_t));

	if (ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK)
		die(err.message);
	(void) ops->register_pool(device->dev, pool, room * n_batches, &err);
	for (int r = 0; r < repeat; r++)
	{
		rhh_table  *table;
		uint32_t	submitted = 0,
					in_flight = 0;
		bool		finished = false,
					finishing = false,
					last = false;
		bench_times t = {0};
		double		start_ms = now_ms();
		double		start_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);

		if (ops->table_create(device->dev, &d.spec, &table, &err) != RHH_OK)
			die(err.message);
		n_groups = 0;
		result.n_groups = 0;
		while (!last)
		{
			struct pollfd fd = {.fd = ops->event_fd(device->dev), .events = POLLIN};
			rhh_event	events[16];
			uint32_t	n;

			while (submitted < n_batches &&
				   ops->table_submit(table, &batches[submitted], 0, &err) == RHH_OK)
				submitted++, in_flight++;
			if (submitted == n_batches && in_flight == 0 && !finishing)
				finishing = ops->table_finish(table, &err) == RHH_OK;
			if (ops->poll(device->dev, events, 16, &n, &err) != RHH_OK)
				die(err.message);
			for (uint32_t e = 0; e < n; e++)
			{
				if (events[e].status != RHH_OK)
					die("a command failed");
				if (events[e].kind == RHH_EVENT_BATCH)
					in_flight--;
				else
				{
					if (events[e].kind == RHH_EVENT_FINISH)
					{
						t.build_ms = now_ms() - start_ms;
						t.build_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) -
							start_cpu_ms;
						start_ms = now_ms();
						finished = true;
					}
					else
					{
						n_groups += result.n_groups;
						last = result.last;
					}
					if (finished && !last &&
						ops->table_extract(table, &result, 0, &err) != RHH_OK)
						die(err.message);
				}
			}
			if (n == 0)
				poll(&fd, 1, 10);
		}
		t.extract_ms = now_ms() - start_ms;
		ops->table_stats(table, &stats);
		ops->table_destroy(table);
		if (t.build_ms < best.build_ms)
			best.build_ms = t.build_ms;
		if (t.build_cpu_ms < best.build_cpu_ms)
			best.build_cpu_ms = t.build_cpu_ms;
		if (t.extract_ms < best.extract_ms)
			best.extract_ms = t.extract_ms;
		if (getenv("BENCH_VERBOSE") != NULL)
			fprintf(stderr, "# build %.1f ms (cpu %.1f, upload %.1f, kernel %.1f), "
					"extract %.1f (device %.1f), rehashes %llu, slots %llu, "
					"failed %llu, orphans %llu, peak %.1f MB\n", t.build_ms,
					t.build_cpu_ms, (double) stats.upload_ns / 1e6,
					(double) stats.kernel_ns / 1e6, t.extract_ms,
					(double) stats.extract_ns / 1e6,
					(unsigned long long) stats.rehashes,
					(unsigned long long) stats.capacity_slots,
					(unsigned long long) stats.failed_rows,
					(unsigned long long) stats.orphans, (double) stats.peak_bytes / 1e6);
	}
	ops->close(device->dev);
	printf("%s,%s,%llu,%llu,%u,%.1f,%.1f,%.1f,%.1f\n", device->name, shape->name,
		   (unsigned long long) n_rows, (unsigned long long) n_groups, option_threads,
		   best.build_ms * 1e6 / (double) n_rows, best.build_cpu_ms * 1e6 / (double) n_rows,
		   best.extract_ms * 1e6 / (double) n_groups,
		   (double) n_rows / best.build_ms / 1e3);
	fflush(stdout);
	free(pool);
	free(result.words);
	free(batches);
}

static void
bench(device *device, uint64_t n_rows, double estimate, int repeat, const char *only)
{
	for (size_t i = 0; i < sizeof(bench_shapes) / sizeof(bench_shapes[0]); i++)
		if (only == NULL || fnmatch(only, bench_shapes[i].name, 0) == 0)
			bench_one(device, &bench_shapes[i], n_rows, estimate, repeat);
}

/* ---------- main ---------- */

static uint32_t
test_device(device *device, const char *only, uint32_t *n_passed)
{
	rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS};
	uint32_t	n_failed = 0;
	rhh_error	err;

	if (device->ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK)
	{
		printf("not ok %s open: %s\n", device->name, err.message);
		return 1;
	}
	device->pool_bytes = POOL_BYTES;
	if (posix_memalign((void **) &device->pool, 4096, device->pool_bytes) != 0)
		die("out of memory");
	memset(device->pool, 0, device->pool_bytes);
	if (device->ops->register_pool(device->dev, device->pool, device->pool_bytes,
								   &err) != RHH_OK)
	{
		printf("not ok %s register_pool: %s\n", device->name, err.message);
		n_failed++;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		context		ctx;
		double		start_ms = now_ms();

		if (only != NULL && fnmatch(only, cases[i].name, 0) != 0)
			continue;
		memset(&ctx, 0, sizeof(ctx));
		ctx.device = device;
		ctx.seed = option_seed * 1000 + 1;
		cases[i].test(&ctx);
		if (ctx.why[0] != '\0')
		{
			printf("not ok %s %s: %s\n", device->name, cases[i].name, ctx.why);
			n_failed++;
		}
		else
		{
			printf("ok %s %s (%.0f ms)\n", device->name, cases[i].name,
				   now_ms() - start_ms);
			(*n_passed)++;
		}
		fflush(stdout);
	}
	device->ops->close(device->dev);
	free(device->pool);
	return n_failed;
}

int
main(int argc, char **argv)
{
	static const rhh_device_ops *const kinds[] = {
		&rhh_cpu_ops,
#ifdef RHH_WITH_CUDA
		&rhh_cuda_ops,
#endif
	};
	const char *which = "all";
	const char *only = NULL;
	bool		run_bench = false;
	uint64_t	bench_rows = 10000000;
	double		estimate = 1.0;
	int			repeat = 3;
	uint32_t	n_devices = 0,
				n_passed = 0,
				n_failed = 0;

	for (int i = 1; i < argc; i++)
	{
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--on-device") == 0)
			option_on_device = true;
		else if (strcmp(argv[i], "--quick") == 0 || strcmp(argv[i], "--tiny") == 0)
		{
			option_quick = true;
			option_divisor = strcmp(argv[i], "--tiny") == 0 ? 64 : 8;
		}
		else if (strcmp(argv[i], "--bench") == 0)
			run_bench = true;
		else if (strcmp(argv[i], "--list") == 0)
		{
			for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
				printf("%s\n", cases[c].name);
			return 0;
		}
		else if (argv[i][0] != '-')
			which = argv[i];
		else if (value == NULL)
			die("an option lacks its value or is unknown");
		else if (i++, strcmp(argv[i - 1], "--seed") == 0)
			option_seed = strtoull(value, NULL, 0);
		else if (strcmp(argv[i - 1], "--threads") == 0)
			option_threads = (uint32_t) strtoul(value, NULL, 0);
		else if (strcmp(argv[i - 1], "--only") == 0)
			only = value;
		else if (strcmp(argv[i - 1], "--rows") == 0)
			bench_rows = strtoull(value, NULL, 0);
		else if (strcmp(argv[i - 1], "--repeat") == 0)
			repeat = atoi(value) > 0 ? atoi(value) : 1;
		else if (strcmp(argv[i - 1], "--estimate") == 0)
			estimate = strtod(value, NULL);
		else
			die("unknown option");
	}
	if (strcmp(which, "all") != 0 && strcmp(which, "cpu") != 0 && strcmp(which, "cuda") != 0)
		die("the device is one of cpu, cuda, all");
	if (run_bench)
		printf("device,case,rows,groups,threads,ns_per_row,cpu_ns_per_row,extract_ns_per_group,M_rows_per_s\n");

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
	{
		rhh_device_info infos[16];
		rhh_error	err;
		uint32_t	n = 0;

		if (strcmp(which, kinds[k]->kind == RHH_KIND_CPU ? "cuda" : "cpu") == 0)
			continue;
		if (kinds[k]->enumerate(infos, 16, &n, &err) != RHH_OK)
		{
			printf("not ok enumerate: %s\n", err.message);
			n_failed++;
			continue;
		}
		for (uint32_t i = 0; i < n; i++)
		{
			char		name[32];
			device		device = {.ops = kinds[k], .info = infos[i], .name = name};

			if (infos[i].state == RHH_STATE_UNUSABLE)
			{
				fprintf(stderr, "%s is not usable: %s\n", infos[i].name, infos[i].reason);
				continue;
			}
			if (kinds[k]->kind == RHH_KIND_CPU)
				snprintf(name, sizeof(name), "cpu");
			else
				snprintf(name, sizeof(name), "cuda:%d", (int) infos[i].ordinal);
			n_devices++;
			if (run_bench)
				bench(&device, bench_rows, estimate, repeat, only);
			else
				n_failed += test_device(&device, only, &n_passed);
		}
	}
	if (n_devices == 0)
		fprintf(stderr, "no device\n");
	if (!run_bench)
		printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed > 0 || n_devices == 0 ? 1 : 0;
}
