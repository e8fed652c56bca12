/*-------------------------------------------------------------------------
 *
 * levels.c
 *		The second level: groups made of groups.
 *
 * For GROUPING SETS a device groups by all grouping columns, and each of its
 * groups is then put into one group of every other set: the keys that are not in
 * the set are made NULL, and the states are combined.  For count(DISTINCT x) and
 * the like it groups by the grouping columns and x; each of those groups is one
 * value of x, and goes into a group of the grouping columns.  For min(x) of a
 * string x it does the same, but of x only what may be a group's least is there
 * (candidates.c), and the group keeps the least.
 *
 * A group is words, as in rhh_result.  The number of the set is in the upper half
 * of word 0, beside the NULL bits of the keys, and so a part of the key.  Set 0
 * may be what the first level has: then those groups are returned as they are.
 *
 * Where the device has every row, it makes the second level as well: its groups
 * become rows for another of its tables (level_rows.c, service_levels.c).
 * That table's keys and states differ somewhat: the set is a key of its own, keys
 * of no set are left out, and a state of several words is summed up digit by
 * digit.  So
 *
 *		plan		says what the table and its rows are, if it can be had
 *		translate	makes its groups what they are called above
 *
 * Otherwise - some rows are in the host's table, an aggregate's states are no
 * sums, or it chooses among values whose order no device knows - a host table
 * holds the second level, some 20 times as slowly:
 *
 *		add			takes the groups of the first level, some at a time
 *
 * In both cases, at the end,
 *
 *		next		returns the host table's groups, or where there were none at
 *					all, one for each set without a key, as aggregates over no
 *					rows give
 *
 * All groups of the first level must come to one process, or to the device.
 *
 * With several arguments of DISTINCT, or one and several sets, there is a third
 * level.  The first is grouped by all grouping columns and all arguments; the second
 * has a set, a part, for each set asked for and each argument: of its keys and that
 * argument.  The third puts the parts of a set together: each part has one
 * argument's values, and the first one has all other states too.  It is a Regroup
 * of its own above the second's, to which the session gives all of the second's
 * groups (level_feed.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "executor/nodeHash.h"
#include "miscadmin.h"

#include "exec/emit.h"
#include "exec/levels.h"
#include "rhh_states.h"

typedef struct RegroupSet
{
	uint64		outside;		/* NULL bits of the keys that are not in it */
	bool		empty;			/* has no key */
} RegroupSet;

/* A key of the first level that this level counts the values of. */
typedef struct RegroupHidden
{
	int			key;
	int			word;
	int			bytes;
	bool		numeric;		/* whose values may be odd */
} RegroupHidden;

/* How a state of the second level is made of the words of the device's. */
typedef struct RegroupState
{
	int			word;			/* of the group that is returned */
	int			from;			/* of the device's group */
	int			n_words;		/* to copy; 0: see op */
	uint8		op;				/* RHH_SUM_I128: two digits, RHH_SUM_SQUARES:
								 * three, RHH_SUM_F64 */
} RegroupState;

struct Regroup
{
	rhh_table_spec spec;		/* of the second level */
	int			n_words;
	int			n_key_words;	/* of shown keys, the word of NULL bits too */
	int			first_state;	/* word of the first level's states */
	uint32		n_states;
	int			n_hidden;		/* keys that only this level looks at: values of
								 * DISTINCT, or to choose from */
	RegroupHidden hidden[RHH_MAX_KEYS];
	int			hidden_of[RHH_MAX_STATES];	/* of the states over them */
	List	   *choices;		/* as in the plan */
	StringWords strings;		/* of its groups */
	int			n_parts;		/* of each set below, which is numbered by them;
								 * 0: there are no sets below */
	Regroup    *above;			/* the third level; NULL: there is none */
	int			n_sets;
	RegroupSet *sets;
	bool		first_is_set;	/* set 0 is the groups of the first level */

	/* where a device can make the second level */
	RegroupPlan *plan;			/* NULL: it cannot */
	int			n_kept_keys;	/* that its table has, the set's apart */
	int			kept_key[RHH_MAX_KEYS];
	int			kept_word[RHH_MAX_KEYS];	/* of the group that is returned */
	int			set_word;		/* of the device's group; 0: it has none */
	uint64		left_out;		/* NULL bits of the other keys */
	RegroupState states[RHH_MAX_STATES];

	uint64	   *group;			/* of the first level, in the second's words */
	uint64	   *records;		/* the same in sets, yet to be merged */
	int			n_records;
	uint64	   *window;			/* groups that next() returned */

	/* of one execution */
	MemoryContext context;
	bool		keeps_strings;
	RegroupOdd	odd;			/* where odd values of hidden keys go */
	void	   *odd_arg;
	HostTable  *host;			/* NULL until there is a group */
	uint64		n_taken;
	int			next_empty;		/* the next set to return a group of no rows of */
};

/* What the plan's outputs are made of: the last level's groups. */
const rhh_table_spec *
gpurhh_regroup_spec(const Regroup *regroup)
{
	return regroup->above ? &regroup->above->spec : &regroup->spec;
}

/* In how many of these is each group of the first level? */
int
gpurhh_regroup_n_sets(const Regroup *regroup)
{
	return regroup->above ? regroup->above->n_sets : regroup->n_sets;
}

/* The keys' words of the one in a set, from those of the first level's. */
void
gpurhh_regroup_key(const Regroup *regroup, int set, const uint64 *group,
				   uint64 *key)
{
	const Regroup *last = regroup->above ? regroup->above : regroup;
	uint64		outside = last->sets[set].outside;
	int			w = 1;

	memcpy(key, group, last->n_key_words * sizeof(uint64));
	key[0] &= (UINT64CONST(1) << last->spec.n_keys) - 1;
	key[0] |= outside | (uint64) set << GPURHH_SET_SHIFT;
	for (uint32 k = 0; k < last->spec.n_keys; k++)
	{
		int			n = rhh_key_words(&last->spec, k);

		if ((outside >> k) & 1)
			memset(&key[w], 0, sizeof(uint64) * n);
		w += n;
	}
}

/* ---------- on the device ---------- */

/*
 * What the device needs; the caller has to add limits to its spec.  NULL: the
 * second level is the host's.
 */
RegroupPlan *
gpurhh_regroup_plan(Regroup *regroup)
{
	return regroup->plan;
}

/* A column of the second level's rows; -1: there are too many. */
static int
add_column(RegroupPlan *plan, RegroupKind kind, int bytes, int key, int word,
		   int part)
{
	int			c = plan->spec.n_columns;

	if (c == RHH_MAX_COLUMNS)
		return -1;
	plan->spec.n_columns++;
	plan->spec.column_bytes[c] = bytes;
	plan->columns[c].kind = kind;
	plan->columns[c].key = key;
	plan->columns[c].word = word;
	plan->columns[c].part = part;
	return c;
}

static bool
add_state(RegroupPlan *plan, rhh_state_op op, int column)
{
	rhh_state_spec *state = &plan->spec.states[plan->spec.n_states];

	if (column < 0 || plan->spec.n_states == RHH_MAX_STATES)
		return false;
	plan->spec.n_states++;
	state->op = op;
	state->arg_column = column;
	state->filter_column = -1;
	return true;
}

static bool
add_word_state(RegroupPlan *plan, rhh_state_op op, RegroupKind kind, int word)
{
	return add_state(plan, op, add_column(plan, kind, sizeof(uint64), 0, word,
										  plan->n_parts > 0 ? 0 : -1));
}

/* The same of two words that are a number as two doubles. */
static bool
add_twice_state(RegroupPlan *plan, int word)
{
	return add_state(plan, RHH_SUM_TWICE_F64,
					 add_column(plan, REGROUP_WORD, 2 * sizeof(uint64), 0, word,
								plan->n_parts > 0 ? 0 : -1));
}

/* The states that combine the first level's states of this kind; false: none. */
static bool
plan_state(RegroupPlan *plan, uint8 op, int word, int n_words)
{
	switch (op)
	{
		case RHH_COUNT:
		case RHH_SUM_I64:
			return add_word_state(plan, RHH_SUM_I64, REGROUP_WORD, word);
		case RHH_MIN_I64:
		case RHH_MAX_I64:
		case RHH_AND:
		case RHH_OR:
		case RHH_XOR:
			/* one that no row touched changes nothing */
			return add_word_state(plan, op, REGROUP_WORD, word);
		case RHH_SUM_I128:
		case RHH_SUM_SQUARES:
			return add_word_state(plan, RHH_SUM_I128, REGROUP_WORD, word) &&
				(n_words == 2 ||
				 add_word_state(plan, RHH_SUM_I128, REGROUP_DIGIT1, word)) &&
				add_word_state(plan, RHH_SUM_I64,
							   n_words == 2 ? REGROUP_DIGIT1 : REGROUP_DIGIT2,
							   word);
		case RHH_ANY:
			return add_state(plan, RHH_ANY,
							 add_column(plan, REGROUP_ANY, 8 * (n_words - 1), 0,
										word, plan->n_parts > 0 ? 0 : -1));
		case RHH_SUM_F64:
			return add_word_state(plan, RHH_SUM_F64, REGROUP_WORD, word) &&
				add_word_state(plan, RHH_OR, REGROUP_WORD, word + 1);
		case RHH_SUM_TWICE_F64:
			return add_twice_state(plan, word);
		case RHH_MOMENTS_F64:
			/* whose words are then these states' */
			return add_twice_state(plan, word) &&
				add_twice_state(plan, word + 2) &&
				add_word_state(plan, RHH_OR, REGROUP_WORD, word + 4);
		default:
			return false;
	}
}

/* The device's table's keys: those of any set it makes, and the set. */
static bool
plan_keys(Regroup *regroup, RegroupPlan *plan)
{
	const rhh_table_spec *spec = &regroup->spec;
	uint64		in_any = 0;
	int			n_sets = plan->n_parts > 0 ? regroup->n_sets : plan->n_sets;
	int			word = 1;
	int			set_column;

	for (int set = 0; set < plan->n_sets; set++)
		in_any |= ~plan->outside[set];
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			bytes = spec->column_bytes[spec->key_column[k]];

		if ((in_any >> k) & 1)
		{
			regroup->kept_key[regroup->n_kept_keys] = k;
			regroup->kept_word[regroup->n_kept_keys++] = word;
			plan->spec.key_column[plan->spec.n_keys++] =
				add_column(plan, REGROUP_KEY, bytes, k, word, -1);
		}
		else
			regroup->left_out |= UINT64CONST(1) << k;
		word += rhh_key_words(spec, k);
	}
	/* a table has at least one key */
	if (n_sets == 1 && regroup->n_kept_keys > 0)
		return true;
	set_column = add_column(plan, REGROUP_SET, 1, 0, 0, -1);
	if (set_column < 0 || plan->spec.n_keys == RHH_MAX_KEYS)
		return false;
	plan->spec.key_column[plan->spec.n_keys++] = set_column;
	regroup->set_word = rhh_first_state_word(&plan->spec) - 1;
	return true;
}

/* The states of the hidden keys' values. */
static bool
plan_distinct(Regroup *regroup, RegroupPlan *plan)
{
	int			columns[RHH_MAX_KEYS];

	for (int h = 0; h < regroup->n_hidden; h++)
	{
		const RegroupHidden *hidden = &regroup->hidden[h];
		bool		only_count = true;

		for (uint32 s = regroup->n_states; s < regroup->spec.n_states; s++)
		{
			if (regroup->hidden_of[s] == h)
				only_count &= regroup->spec.states[s].op == RHH_COUNT;
		}
		columns[h] = add_column(plan, only_count ? REGROUP_IS_NULL : REGROUP_KEY,
								only_count ? 1 : hidden->bytes, hidden->key,
								only_count ? 0 : hidden->word,
								plan->n_parts > 0 ? h : -1);
	}
	for (uint32 s = regroup->n_states; s < regroup->spec.n_states; s++)
	{
		if (!add_state(plan, regroup->spec.states[s].op,
					   columns[regroup->hidden_of[s]]))
			return false;
	}
	return true;
}

/* Where each state comes from, once the device's table is known. */
static void
plan_translation(Regroup *regroup, const RegroupPlan *plan)
{
	const rhh_table_spec *spec = &regroup->spec;
	int			word = rhh_first_state_word(spec);
	int			from = rhh_first_state_word(&plan->spec);

	for (uint32 s = 0; s < spec->n_states; s++)
	{
		RegroupState *state = &regroup->states[s];
		uint8		op = spec->states[s].op;
		int			n_words = rhh_state_words(spec, s);

		state->word = word;
		state->from = from;
		state->n_words = n_words;
		if (s < regroup->n_states)
		{
			if (op == RHH_SUM_I128 || op == RHH_SUM_SQUARES)
			{
				state->op = n_words == 2 ? RHH_SUM_I128 : RHH_SUM_SQUARES;
				state->n_words = 0;
				from += 2 * n_words - 1;
			}
			else if (op == RHH_SUM_F64)
			{
				state->op = op;
				state->n_words = 0;
				from += 3;
			}
		}
		from += state->n_words;
		word += n_words;
	}
}

/* How a device would make the second level, if it can. */
static void
plan_device(Regroup *regroup, const rhh_table_spec *first,
			double expected_groups)
{
	RegroupPlan *plan = palloc0(sizeof(RegroupPlan));
	int			word = regroup->first_state;

	plan->keep_first = regroup->first_is_set;
	plan->first_set = regroup->first_is_set ? 1 : 0;
	plan->n_sets = regroup->n_sets - plan->first_set;
	if (plan->n_sets == 0 || plan->n_sets > GPURHH_REGROUP_MAX_SETS)
		return;
	plan->n_parts = regroup->n_parts;
	if (plan->n_parts > 0)
		plan->n_sets = 1;		/* a group is in the one that it says */
	for (int i = 0; i < plan->n_sets && plan->n_parts == 0; i++)
		plan->outside[i] = regroup->sets[plan->first_set + i].outside;
	plan->spec.expected_groups = Max(expected_groups, 1.0);
	if (!plan_keys(regroup, plan))
		return;
	for (uint32 s = 0; s < first->n_states; s++)
	{
		int			n_words = rhh_state_words(first, s);

		if (!plan_state(plan, first->states[s].op, word, n_words))
			return;
		word += n_words;
	}
	if (!plan_distinct(regroup, plan) ||
		rhh_all_state_words(&plan->spec) > RHH_MAX_STATE_WORDS)
		return;
	plan_translation(regroup, plan);
	regroup->plan = plan;
}

/* Puts a state of several of the device's together. */
static void
translate_state(const RegroupState *state, const uint64 *from, Size stride,
				uint64 *to, uint32 n)
{
	const uint64 *second = from + stride;
	const uint64 *third = second + stride;

	for (uint32 i = 0; i < n; i++)
	{
		switch (state->op)
		{
			case RHH_SUM_F64:
				/* partial sums that overflowed count as values there */
				to[i] = (second[i] & RHH_F64_NOT_FINITE) != 0 ?
					rhh_as_bits(INFINITY) : from[i];
				to[GPURHH_EMIT_WINDOW + i] = third[i];
				break;
			case RHH_SUM_I128:
				to[i] = from[i];
				to[GPURHH_EMIT_WINDOW + i] = second[i] + third[i];
				break;
			default:
				{
					uint128		high = (uint128) (int128) (int64) second[i] +
						((uint128) third[stride + i] << 64 | third[i]);

					to[i] = from[i];
					to[GPURHH_EMIT_WINDOW + i] = (uint64) high;
					to[2 * GPURHH_EMIT_WINDOW + i] = (uint64) (high >> 64) +
						third[2 * stride + i];
				}
				break;
		}
	}
}

/*
 * n groups of the device's second level, at most GPURHH_EMIT_WINDOW, as groups
 * to be returned: their words have the stride GPURHH_EMIT_WINDOW, and are valid
 * until the next call of this or of gpurhh_regroup_next().
 */
const uint64 *
gpurhh_regroup_translate(Regroup *regroup, const uint64 *words, Size stride,
						 uint32 n)
{
	const RegroupPlan *plan = regroup->plan;
	uint64	   *to = regroup->window;
	int			word = 1;

	Assert(n <= GPURHH_EMIT_WINDOW);
	regroup->n_taken += n;
	for (uint32 i = 0; i < n; i++)
	{
		uint64		set = regroup->set_word == 0 ? plan->first_set :
			words[regroup->set_word * stride + i];

		to[i] = regroup->left_out | set << GPURHH_SET_SHIFT;
	}
	for (int j = 0; j < regroup->n_kept_keys; j++)
	{
		int			k = regroup->kept_key[j];

		for (uint32 i = 0; i < n; i++)
			to[i] |= ((words[i] >> j) & 1) << k;
		for (uint32 w = 0; w < rhh_key_words(&regroup->spec, k); w++)
			memcpy(to + (regroup->kept_word[j] + w) * GPURHH_EMIT_WINDOW,
				   words + word++ * stride, n * sizeof(uint64));
	}
	for (uint32 s = 0; s < regroup->spec.n_states; s++)
	{
		const RegroupState *state = &regroup->states[s];
		const uint64 *from = words + state->from * stride;

		to = regroup->window + state->word * GPURHH_EMIT_WINDOW;
		for (int w = 0; w < state->n_words; w++)
			memcpy(to + w * GPURHH_EMIT_WINDOW, from + w * stride,
				   n * sizeof(uint64));
		if (state->n_words == 0)
			translate_state(state, from, stride, to, n);
	}
	return regroup->window;
}

/* ---------- life ---------- */

/* The sets, of keys below n_keys, or where there are none one of all of them. */
static void
make_sets(Regroup *regroup, int n_keys, List *sets)
{
	ListCell   *lc;

	regroup->n_sets = Max(list_length(sets), 1);
	regroup->sets = palloc0(sizeof(RegroupSet) * regroup->n_sets);
	foreach(lc, sets)
	{
		List	   *keys = lfirst(lc);
		RegroupSet *set = &regroup->sets[foreach_current_index(lc)];

		set->empty = keys == NIL;
		for (int k = 0; k < n_keys; k++)
		{
			if (!list_member_int(keys, k))
				set->outside |= UINT64CONST(1) << k;
		}
	}
}

/* A state of the values of hidden key h. */
static void
add_hidden_state(Regroup *regroup, rhh_state_op op, int h)
{
	rhh_table_spec *spec = &regroup->spec;
	rhh_state_spec *state = &spec->states[spec->n_states];

	regroup->hidden_of[spec->n_states++] = h;
	state->op = op;
	state->arg_column = spec->key_column[regroup->hidden[h].key];
	state->filter_column = -1;
}

/*
 * A level of the groups of first, its keys from n_keys on being hidden;
 * choices, distinct_states and n_parts: see gpurhh_regroup_create() and Regroup.
 */
static Regroup *
make_level(const rhh_table_spec *first, const GpuColumn *columns, int n_keys,
		   List *sets, List *choices, List *distinct_states, int n_parts,
		   double expected_groups)
{
	Regroup    *regroup = palloc0(sizeof(Regroup));
	rhh_table_spec *spec = &regroup->spec;
	ListCell   *lc;

	*spec = *first;
	regroup->n_states = first->n_states;
	regroup->n_parts = n_parts;
	regroup->choices = choices;
	if (distinct_states != NIL || choices != NIL)
	{
		regroup->n_hidden = first->n_keys - n_keys;
		spec->n_keys = n_keys;
	}
	for (int h = 0, word = rhh_first_state_word(spec); h < regroup->n_hidden; h++)
	{
		RegroupHidden *hidden = &regroup->hidden[h];

		hidden->key = n_keys + h;
		hidden->word = word;
		hidden->bytes = first->column_bytes[first->key_column[hidden->key]];
		hidden->numeric = columns[first->key_column[hidden->key]].encoding ==
			GPU_ENC_DECIMAL;
		word += rhh_key_words(first, hidden->key);
	}
	for (int h = 0; h < list_length(choices); h++)
		add_hidden_state(regroup, RHH_ANY, h);
	foreach(lc, distinct_states)
		add_hidden_state(regroup, linitial_int(lfirst(lc)),
						 lsecond_int(lfirst(lc)));
	gpurhh_string_words_init(&regroup->strings, spec, columns);
	regroup->n_words = rhh_result_words(spec);
	regroup->n_key_words = rhh_first_state_word(spec);
	regroup->first_state = rhh_first_state_word(first);

	make_sets(regroup, n_keys, sets);
	regroup->first_is_set = regroup->n_hidden == 0 &&
		regroup->sets[0].outside == 0;

	regroup->group = palloc0(sizeof(uint64) * regroup->n_words);
	regroup->records = palloc0(sizeof(uint64) * regroup->n_words *
							   GPURHH_EMIT_WINDOW);
	regroup->window = palloc0(sizeof(uint64) * regroup->n_words *
							  GPURHH_EMIT_WINDOW);
	/* a device knows no order but that of numbers */
	if (choices == NIL)
		plan_device(regroup, first, expected_groups);
	return regroup;
}

/* Each set with each hidden key. */
static List *
make_parts(List *sets, int n_shown_keys, int n_hidden)
{
	List	   *parts = NIL;
	ListCell   *lc;

	if (sets == NIL)
	{
		List	   *all = NIL;

		for (int k = 0; k < n_shown_keys; k++)
			all = lappend_int(all, k);
		sets = list_make1(all);
	}
	foreach(lc, sets)
	{
		for (int h = 0; h < n_hidden; h++)
			parts = lappend(parts, lappend_int(list_copy(lfirst(lc)),
											   n_shown_keys + h));
	}
	return parts;
}

/*
 * sets, choices, distinct_states, n_shown_keys, expected_groups, of the second
 * level, and expected_top, of the third: as in the plan.  NULL: there is no
 * second level.
 */
Regroup *
gpurhh_regroup_create(const rhh_table_spec *first, const GpuColumn *columns,
					  int n_shown_keys, List *sets, List *choices, List *distinct_states,
					  double expected_groups, double expected_top)
{
	int			n_hidden = first->n_keys - n_shown_keys;
	Regroup    *regroup;

	if (sets == NIL && choices == NIL && distinct_states == NIL)
		return NULL;
	if (distinct_states == NIL || (n_hidden == 1 && list_length(sets) <= 1))
		return make_level(first, columns, n_shown_keys, sets, choices, distinct_states,
						  0, expected_groups);
	regroup = make_level(first, columns, first->n_keys,
						 make_parts(sets, n_shown_keys, n_hidden), NIL, NIL, 0,
						 expected_groups);
	regroup->above = make_level(first, columns, n_shown_keys, sets, NIL,
								distinct_states, n_hidden, expected_top);
	return regroup;
}

/* The level that the session has to feed with this one's; NULL: this is the last. */
Regroup *
gpurhh_regroup_above(Regroup *regroup)
{
	return regroup->above;
}

/*
 * Groups come with strings of several dictionaries, so whose groups show strings
 * keep them.  Of the run; before the first group.
 */
void
gpurhh_regroup_keep_strings(Regroup *regroup)
{
	if (regroup->above != NULL)
		gpurhh_regroup_keep_strings(regroup->above);
	regroup->keeps_strings = regroup->strings.n + regroup->strings.n_numerics > 0;
}

/*
 * Groups come with odd numerics, which are given by their addresses.  Of the run;
 * before the first group.
 */
void
gpurhh_regroup_set_odd(Regroup *regroup, RegroupOdd odd, void *arg)
{
	if (regroup->above != NULL)
		gpurhh_regroup_set_odd(regroup->above, odd, arg);
	regroup->odd = odd;
	regroup->odd_arg = arg;
}

/* Do strings in what gpurhh_regroup_next() returns belong to no dictionary? */
bool
gpurhh_regroup_keeps_strings(const Regroup *regroup)
{
	return regroup->keeps_strings;
}

/* Before the first group, also of a rescan.  All of the run is in context. */
void
gpurhh_regroup_start(Regroup *regroup, MemoryContext context)
{
	if (regroup->above != NULL)
		gpurhh_regroup_start(regroup->above, context);
	regroup->context = context;
	regroup->keeps_strings = false;
	regroup->odd = NULL;
	regroup->host = NULL;
	regroup->n_taken = 0;
	regroup->n_records = 0;
	regroup->next_empty = 0;
}

/* What the run held; its files too. */
void
gpurhh_regroup_end(Regroup *regroup)
{
	if (regroup->above != NULL)
		gpurhh_regroup_end(regroup->above);
	if (regroup->host != NULL)
		gpurhh_host_free(regroup->host);
	regroup->host = NULL;
}

/* Records that went to disk, of all levels. */
uint64
gpurhh_regroup_spilled(Regroup *regroup)
{
	return (regroup->above ? gpurhh_regroup_spilled(regroup->above) : 0) +
		(regroup->host ? gpurhh_host_spilled(regroup->host) : 0);
}

/* ---------- on the host ---------- */

/* A state over the value of a hidden key, which is not NULL. */
static void
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
			return;
		case RHH_SUM_I64:
			to[0] = (uint64) value;
			return;
		case RHH_SUM_I128:
			to[0] = (uint64) value;
			to[1] = value < 0 ? ~UINT64CONST(0) : 0;
			return;
		case RHH_MAX_I64:
			/* asked for NaN, of which a NULL's 0 says nothing */
			to[0] = (uint64) value;
			return;
	}
	elog(ERROR, "unexpected transition state over DISTINCT: %d", (int) op);
}

/*
 * A group of the first level as one of the second, but for its set where the
 * first has none.
 */
static void
make_group(Regroup *regroup, const uint64 *words, Size stride)
{
	const rhh_table_spec *spec = &regroup->spec;
	uint64	   *to = regroup->group;
	int			number = GPURHH_SET_OF(words[0]);
	int			part = regroup->n_parts > 0 ? number % regroup->n_parts : 0;
	int			w;

	for (w = 0; w < regroup->n_key_words; w++)
		to[w] = words[w * stride];
	if (regroup->n_hidden > 0)
		to[0] &= (UINT64CONST(1) << spec->n_keys) - 1;
	if (regroup->n_parts > 0)
		to[0] |= (uint64) (number / regroup->n_parts) << GPURHH_SET_SHIFT;
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		int			n_words = rhh_state_words(spec, s);

		if (s >= regroup->n_states)
		{
			int			h = regroup->hidden_of[s];
			const RegroupHidden *hidden = &regroup->hidden[h];

			memset(&to[w], 0, n_words * sizeof(uint64));
			if ((regroup->n_parts > 0 && h != part) ||
				((words[0] >> hidden->key) & 1) != 0)
				;				/* no value */
			else if (regroup->choices != NIL)
			{
				to[w] = 1;
				for (int i = 1; i < n_words; i++)
					to[w + i] = words[(hidden->word + i - 1) * stride];
			}
			else if (hidden->numeric &&
					 gpurhh_decimal_is_odd(words[hidden->word * stride]))
				;				/* goes another way */
			else
				store_distinct(&to[w], spec->states[s].op,
							   words[hidden->word * stride], hidden->bytes);
		}
		else if (part > 0)
			rhh_state_init(spec->states[s].op, rhh_arg_bytes(spec, s), &to[w]);
		else
		{
			const uint64 *from = words +
				(regroup->first_state - regroup->n_key_words + w) * stride;

			for (int i = 0; i < n_words; i++)
				to[w + i] = from[i * stride];
		}
		w += n_words;
	}
}

static void
merge_records(Regroup *regroup, const Dictionary *dictionary)
{
	if (regroup->host == NULL)
	{
		regroup->host = gpurhh_host_create(&regroup->spec, regroup->context,
										   get_hash_memory_limit());
		if (regroup->keeps_strings)
		{
			gpurhh_host_keep_strings(regroup->host, &regroup->strings);
			dictionary = NULL;
		}
		gpurhh_host_choose(regroup->host, regroup->n_states,
						   regroup->choices, dictionary);
	}
	gpurhh_host_merge_records(regroup->host, regroup->records,
							  regroup->n_records);
	regroup->n_records = 0;
}

/* A record to be merged: the group as it is. */
static uint64 *
new_record(Regroup *regroup, const Dictionary *dictionary)
{
	uint64	   *record;

	if (regroup->n_records == GPURHH_EMIT_WINDOW)
		merge_records(regroup, dictionary);
	record = &regroup->records[(Size) regroup->n_records++ * regroup->n_words];
	return memcpy(record, regroup->group, sizeof(uint64) * regroup->n_words);
}

/* Adds the group to the one that it belongs to in a set. */
static uint64 *
add_to_set(Regroup *regroup, const Dictionary *dictionary, int number)
{
	const RegroupSet *set = &regroup->sets[number];
	const rhh_table_spec *spec = &regroup->spec;
	uint64	   *record = new_record(regroup, dictionary);
	int			w = 1;

	record[0] |= set->outside | (uint64) number << GPURHH_SET_SHIFT;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			n = rhh_key_words(spec, k);

		if ((set->outside >> k) & 1)
			memset(&record[w], 0, sizeof(uint64) * n);
		w += n;
	}
	return record;
}

/*
 * Odd values of the hidden keys of a group of the level below go to those who
 * know what to do with them; record is the group that they are in.
 */
static void
hand_over_odd(Regroup *regroup, const uint64 *words, Size stride,
			  const uint64 *record)
{
	int			part = regroup->n_parts > 0 ?
		GPURHH_SET_OF(words[0]) % regroup->n_parts : -1;
	bool		done[RHH_MAX_KEYS] = {false};

	for (uint32 s = regroup->n_states; s < regroup->spec.n_states; s++)
	{
		int			h = regroup->hidden_of[s];
		const RegroupHidden *hidden = &regroup->hidden[h];
		uint64		word = words[hidden->word * stride];

		if (!hidden->numeric || done[h] || (part >= 0 && h != part) ||
			((words[0] >> hidden->key) & 1) != 0 ||
			!gpurhh_decimal_is_odd(word))
			continue;
		/* one of its states stands for all */
		done[h] = true;
		regroup->odd(regroup->odd_arg, record, s,
					 gpurhh_dictionary_numeric(NULL, word));
	}
}

/* Or are all of its groups those of the level below? */
bool
gpurhh_regroup_makes_groups(const Regroup *regroup)
{
	return !regroup->first_is_set || regroup->n_sets > 1;
}

/*
 * Takes the next n groups of the level below, whose word w is at
 * words[w * stride + i], and whose strings are in the dictionary (NULL: given
 * by their addresses).  True: they are groups of set 0 too, and to be returned.
 */
bool
gpurhh_regroup_add(Regroup *regroup, const Dictionary *dictionary,
				   const uint64 *words, Size stride, uint32 n)
{
	int			first = regroup->first_is_set ? 1 : 0;

	regroup->n_taken += n;
	if (!gpurhh_regroup_makes_groups(regroup))
		return true;
	for (uint32 i = 0; i < n; i++)
	{
		make_group(regroup, words + i, stride);
		if (regroup->keeps_strings)
			gpurhh_strings_resolve(&regroup->strings, dictionary,
								   regroup->group);
		for (int set = first; set < (regroup->n_parts > 0 ? first + 1 : regroup->n_sets); set++)
		{
			const uint64 *record = regroup->n_parts > 0 ?
				new_record(regroup, dictionary) :
				add_to_set(regroup, dictionary, set);

			if (unlikely(regroup->odd != NULL))
				hand_over_odd(regroup, words + i, stride, record);
		}
	}
	merge_records(regroup, dictionary);
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
		{
			/* to load others would take the strings of those in the window */
			if (i > 0 && regroup->keeps_strings &&
				!gpurhh_host_next_is_loaded(regroup->host))
				break;
			record = gpurhh_host_next(regroup->host);
		}
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
