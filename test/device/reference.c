/*
 * reference.c
 *		The groups as they should be: a map of groups on the host.
 *
 * It shares no code with the devices.  A row goes into it by map_row(), which
 * does what the comments of rhh_device.h say of each state, and a device's group
 * by map_combine().  So the outcome of a run is the device's groups combined with
 * the rows that the device handed back, and it is the same for a table with room
 * and for one that is out of memory.
 */
#include "device_test.h"

map *
map_new(const rhh_map_spec *spec)
{
	map		   *m = need(sizeof(*m));

	m->spec = spec;
	m->n_words = rhh_result_words(spec);
	m->key_words = rhh_first_state_word(spec);
	m->n_heads = 1024;
	m->heads = need(m->n_heads * sizeof(uint32_t));
	return m;
}

void
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

uint64_t *
map_group(const map *m, uint32_t g)
{
	return m->words + (size_t) g * m->n_words;
}

uint64_t *
map_find(const map *m, const uint64_t *key)
{
	for (uint32_t g = m->heads[map_head(m, key)]; g != 0; g = m->next[g - 1])
		if (memcmp(map_group(m, g - 1), key, m->key_words * sizeof(uint64_t)) == 0)
			return map_group(m, g - 1);
	return NULL;
}

/* Finds the key's group or makes one whose states no row has touched. */
uint64_t *
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
void
map_normalize(const rhh_map_spec *spec, uint32_t key_words, uint64_t *group)
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
void
map_row(map *m, const data *data, uint64_t row)
{
	const rhh_map_spec *spec = m->spec;
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
void
map_combine(map *m, const uint64_t *from)
{
	const rhh_map_spec *spec = m->spec;
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
