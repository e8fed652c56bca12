/*-------------------------------------------------------------------------
 *
 * agg_regroup.c
 *		The second level: groups made of groups, on the host.
 *
 * For GROUPING SETS a device groups by all grouping columns, and each of its
 * groups is then put into one group of every other set: the keys that are not in
 * the set are made NULL, and the states are combined.  For count(DISTINCT x) and
 * the like it groups by the grouping columns and x; each of those groups is one
 * value of x, and goes into a group of the grouping columns.  For min(x) of a
 * string x it does the same, but of x only what may be a group's least is there
 * (candidates.c), and the group keeps the least.
 *
 * A group is words, as in rhh_result, and a host table holds them.  The number
 * of the set is in the upper half of word 0, beside the NULL bits of the keys,
 * and so a part of the key.  Set 0 may be what the first level has: then those
 * groups are returned as they are.
 *
 *		add		takes the groups of the first level, some at a time
 *		next	returns the others: and where there were none at all, one for
 *				each set without a key, as aggregates over no rows give
 *
 * All groups of the first level must come to one process.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "executor/nodeHash.h"

typedef struct RegroupSet
{
	uint64		outside;		/* NULL bits of the keys that are not in it */
	bool		empty;			/* has no key */
} RegroupSet;

struct Regroup
{
	rhh_table_spec spec;		/* of the second level */
	int			n_words;
	int			n_key_words;	/* of shown keys, the word of NULL bits too */
	int			first_state;	/* word of the first level's states */
	int			n_state_words;
	uint32		n_states;
	List	   *choices;		/* as in the plan */
	const Dictionary *dictionary;
	bool		has_distinct;
	int			distinct_key;	/* number, word and bytes in the first level */
	int			distinct_word;
	int			distinct_bytes;
	int			n_sets;
	RegroupSet *sets;
	bool		first_is_set;	/* set 0 is the groups of the first level */

	uint64	   *group;			/* of the first level, in the second's words */
	uint64	   *records;		/* the same in sets, yet to be merged */
	int			n_records;
	uint64	   *window;			/* groups that next() returned */

	/* of one execution */
	MemoryContext context;
	HostTable  *host;			/* NULL until there is a group */
	uint64		n_taken;
	int			next_empty;		/* the next set to return a group of no rows of */
};

/* What the plan's outputs are made of. */
const rhh_table_spec *
gpurhh_regroup_spec(Regroup *regroup)
{
	return &regroup->spec;
}

/*
 * sets, choices, distinct_ops, n_shown_keys: as in the plan.  NULL: there is no
 * second level.
 */
Regroup *
gpurhh_regroup_create(const rhh_table_spec *first, int n_shown_keys,
					  List *sets, List *choices, List *distinct_ops)
{
	Regroup    *regroup;
	rhh_table_spec *spec;
	ListCell   *lc;

	if (sets == NIL && choices == NIL && distinct_ops == NIL)
		return NULL;
	regroup = palloc0(sizeof(Regroup));
	spec = &regroup->spec;
	*spec = *first;
	if (distinct_ops != NIL || choices != NIL)
		spec->n_keys = n_shown_keys;
	regroup->choices = choices;
	foreach(lc, choices)
	{
		rhh_state_spec *state = &spec->states[spec->n_states++];

		state->op = RHH_ANY;
		state->arg_column =
			first->key_column[n_shown_keys + foreach_current_index(lc)];
		state->filter_column = -1;
	}
	if (distinct_ops != NIL)
	{
		int			key = first->n_keys - 1;

		regroup->has_distinct = true;
		regroup->distinct_key = key;
		regroup->distinct_word = rhh_first_state_word(first) -
			rhh_key_words(first, key);
		regroup->distinct_bytes = first->column_bytes[first->key_column[key]];
		foreach(lc, distinct_ops)
		{
			rhh_state_spec *state = &spec->states[spec->n_states++];

			state->op = lfirst_int(lc);
			state->arg_column = first->key_column[key];
			state->filter_column = -1;
		}
	}
	regroup->n_words = rhh_result_words(spec);
	regroup->n_key_words = rhh_first_state_word(spec);
	regroup->first_state = rhh_first_state_word(first);
	regroup->n_state_words = rhh_result_words(first) - regroup->first_state;

	regroup->n_states = first->n_states;

	regroup->n_sets = Max(list_length(sets), 1);
	regroup->sets = palloc0(sizeof(RegroupSet) * regroup->n_sets);
	foreach(lc, sets)
	{
		List	   *keys = lfirst(lc);
		RegroupSet *set = &regroup->sets[foreach_current_index(lc)];

		set->empty = keys == NIL;
		for (int k = 0; k < n_shown_keys; k++)
		{
			if (!list_member_int(keys, k))
				set->outside |= UINT64CONST(1) << k;
		}
	}
	regroup->first_is_set = !regroup->has_distinct && choices == NIL &&
		regroup->sets[0].outside == 0;

	regroup->group = palloc0(sizeof(uint64) * regroup->n_words);
	regroup->records = palloc0(sizeof(uint64) * regroup->n_words *
							   GPURHH_EMIT_WINDOW);
	regroup->window = palloc0(sizeof(uint64) * regroup->n_words *
							  GPURHH_EMIT_WINDOW);
	return regroup;
}

/* Before the first group, also of a rescan.  All of the run is in context. */
void
gpurhh_regroup_start(Regroup *regroup, MemoryContext context)
{
	regroup->context = context;
	regroup->host = NULL;
	regroup->n_taken = 0;
	regroup->n_records = 0;
	regroup->next_empty = 0;
}

/* Where the groups' strings are; before the first group. */
void
gpurhh_regroup_use_dictionary(Regroup *regroup, const Dictionary *dictionary)
{
	regroup->dictionary = dictionary;
}

/* What the run held; its files too. */
void
gpurhh_regroup_end(Regroup *regroup)
{
	if (regroup->host != NULL)
		gpurhh_host_free(regroup->host);
	regroup->host = NULL;
}

/* Records that went to disk. */
uint64
gpurhh_regroup_spilled(Regroup *regroup)
{
	return regroup->host ? gpurhh_host_spilled(regroup->host) : 0;
}

/* A state over the value of the hidden key, which is not NULL. */
static int
store_distinct(uint64 *to, uint8 op, uint64 word, int bytes)
{
	int64		value;

	switch (bytes)
	{
		case 2:
			value = (int16) word;
			break;
		case 4:
			value = (int32) word;
			break;
		default:
			value = (int64) word;
			break;
	}
	switch (op)
	{
		case RHH_COUNT:
			to[0] = 1;
			return 1;
		case RHH_SUM_I64:
			to[0] = (uint64) value;
			return 1;
		case RHH_SUM_I128:
			to[0] = (uint64) value;
			to[1] = value < 0 ? ~UINT64CONST(0) : 0;
			return 2;
		case RHH_MAX_I64:
			/* asked for NaN, of which a NULL's 0 says nothing */
			to[0] = (uint64) value;
			return 1;
	}
	elog(ERROR, "unexpected transition state over DISTINCT: %d", (int) op);
	return 0;					/* keep compiler quiet */
}

/* A group of the first level as one of the second, but for its set. */
static void
make_group(Regroup *regroup, const uint64 *words, Size stride)
{
	const rhh_table_spec *spec = &regroup->spec;
	uint64	   *to = regroup->group;
	const uint64 *key;
	bool		no_value;
	uint32		s;
	int			w;

	for (w = 0; w < regroup->n_key_words; w++)
		to[w] = words[w * stride];
	for (int i = 0; i < regroup->n_state_words; i++)
		to[w++] = words[(regroup->first_state + i) * stride];
	key = words + regroup->n_key_words * stride;
	for (int i = 0; i < list_length(regroup->choices); i++)
	{
		int			n = rhh_state_words(spec, regroup->n_states + i) - 1;

		to[w++] = ((to[0] >> (spec->n_keys + i)) & 1) ^ 1;
		for (int j = 0; j < n; j++, key += stride)
			to[w++] = *key;
	}
	if (!regroup->has_distinct)
	{
		to[0] &= (UINT64CONST(1) << spec->n_keys) - 1;
		return;
	}

	no_value = (to[0] >> regroup->distinct_key) & 1;
	to[0] &= (UINT64CONST(1) << spec->n_keys) - 1;
	memset(&to[w], 0, sizeof(uint64) * (regroup->n_words - w));
	if (no_value)
		return;
	for (s = regroup->n_states + list_length(regroup->choices);
		 s < spec->n_states; s++)
		w += store_distinct(&to[w], spec->states[s].op,
							words[regroup->distinct_word * stride],
							regroup->distinct_bytes);
}

static void
merge_records(Regroup *regroup)
{
	if (regroup->host == NULL)
	{
		regroup->host = gpurhh_host_create(&regroup->spec, regroup->context,
										   get_hash_memory_limit());
		gpurhh_host_choose(regroup->host, regroup->n_states,
						   regroup->choices, regroup->dictionary);
	}
	gpurhh_host_merge_records(regroup->host, regroup->records,
							  regroup->n_records);
	regroup->n_records = 0;
}

/* Adds the group to the one that it belongs to in a set. */
static void
add_to_set(Regroup *regroup, int number)
{
	const RegroupSet *set = &regroup->sets[number];
	const rhh_table_spec *spec = &regroup->spec;
	uint64	   *record = &regroup->records[(Size) regroup->n_records++ *
										   regroup->n_words];
	int			w = 1;

	memcpy(record, regroup->group, sizeof(uint64) * regroup->n_words);
	record[0] |= set->outside | (uint64) number << GPURHH_SET_SHIFT;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			n = rhh_key_words(spec, k);

		if ((set->outside >> k) & 1)
			memset(&record[w], 0, sizeof(uint64) * n);
		w += n;
	}
	if (regroup->n_records == GPURHH_EMIT_WINDOW)
		merge_records(regroup);
}

/*
 * Takes the next n groups of the first level, whose word w is at
 * words[w * stride + i].  True: they are groups of set 0 too, and to be
 * returned.
 */
bool
gpurhh_regroup_add(Regroup *regroup, const uint64 *words, Size stride,
				   uint32 n)
{
	int			first = regroup->first_is_set ? 1 : 0;

	regroup->n_taken += n;
	if (first < regroup->n_sets)
	{
		for (uint32 i = 0; i < n; i++)
		{
			make_group(regroup, words + i, stride);
			for (int set = first; set < regroup->n_sets; set++)
				add_to_set(regroup, set);
		}
		if (regroup->n_records > 0)
			merge_records(regroup);
	}
	return regroup->first_is_set;
}

/* A group of no rows; its counts are 0, which makes all else NULL. */
static bool
next_empty_group(Regroup *regroup, uint64 *record)
{
	while (regroup->n_taken == 0 && regroup->next_empty < regroup->n_sets)
	{
		int			number = regroup->next_empty++;

		if (!regroup->sets[number].empty)
			continue;
		memset(record, 0, sizeof(uint64) * regroup->n_words);
		record[0] = regroup->sets[number].outside | (uint64) number << GPURHH_SET_SHIFT;
		return true;
	}
	return false;
}

/*
 * Once the first level has no more: the next groups, *n of them with stride
 * GPURHH_EMIT_WINDOW, valid until the next call.  NULL: there are none.
 */
const uint64 *
gpurhh_regroup_next(Regroup *regroup, uint32 *n)
{
	uint32		i;

	for (i = 0; i < GPURHH_EMIT_WINDOW; i++)
	{
		const uint64 *record = NULL;

		if (regroup->host != NULL)
			record = gpurhh_host_next(regroup->host);
		else if (next_empty_group(regroup, regroup->records))
			record = regroup->records;
		if (record == NULL)
			break;
		for (int w = 0; w < regroup->n_words; w++)
			regroup->window[w * GPURHH_EMIT_WINDOW + i] = record[w];
	}
	*n = i;
	return i > 0 ? regroup->window : NULL;
}
