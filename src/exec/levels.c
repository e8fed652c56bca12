/*-------------------------------------------------------------------------
 *
 * levels.c
 *		Levels: how groups are made of groups.
 *
 * The first level are the groups that a device makes of rows, and is not described
 * here.  Some queries need a second level.  There are three kinds:
 *
 *		GROUPING SETS	The first level is grouped by all grouping columns.  Each of
 *						its groups is put into one group of every other set: the keys
 *						that are not in the set become NULL, and states are combined.
 *		DISTINCT		For count(DISTINCT x) and the like the first level is grouped
 *						by the grouping columns and by x, which is called a hidden key.
 *						Each of its groups is one value of x, and is put into a group
 *						of the grouping columns alone.
 *		choices			For min(x) and max(x) of a string or an enum x is a hidden key
 *						as well, and the group of the second level keeps the least or
 *						greatest value.  Of strings only those are fed that may be the
 *						least or greatest of a group (candidates.c).
 *
 * A group is an array of words, in the order of rhh_result.  Word 0 has the NULL bits of
 * the keys in its lower half, and the number of the group's set in its upper half.  Word
 * 0 is compared when keys are, so groups of different sets are different groups.
 *
 * If set 0 has all keys of the first level, its groups are those of the first level.
 * They are returned as they are, and are not put into this level.
 *
 * There are two ways to make a level.  If the device can, it makes the groups of the
 * level below rows of another of its maps (level_rows.c, service_levels.c).  The keys
 * and states of that map differ somewhat from the level's: the set is a key of its own,
 * keys that are in no set are left out, and a state of several words is summed up digit
 * by digit.  For this there are
 *
 *		plan			says what the map and its rows are, if a device can have it
 *		translate		makes groups of the level of groups of the map
 *
 * A device cannot have it where states cannot be added up, or where it would have to
 * choose among values whose order it does not know.  And it does not make the second
 * level if some rows of the first are on the host.  Then the level has a host table,
 * which takes about ten times as long (measured on the CPU device with 2 cores: 5 to 13
 * times):
 *
 *		add				puts groups of the level below into it, some at a time
 *
 * In both cases, after all groups of the level below,
 *
 *		next			returns the groups of the host table.  If there was no group
 *						at all it returns one for each set without keys, which is what
 *						aggregates over no rows give.
 *
 * All groups of the level below must come to one process, or be on the device.
 *
 * A third level is needed for several arguments with DISTINCT, or for one and several
 * sets.  Then the first level is grouped by all grouping columns and all of these
 * arguments.  The second level has one set, called a part, for each pair of a set that
 * is asked for and an argument, with the keys of that set and the argument.  The third
 * level puts the parts of a set together: from each part it takes the values of one
 * argument, and from the first part all other states as well.
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

typedef struct LevelSet
{
	uint64		outside;		/* NULL bits of the keys that are not in it */
	bool		empty;			/* has no key */
} LevelSet;

/* A key of the level below whose values this level counts, sums up or chooses from. */
typedef struct LevelHidden
{
	int			key;
	int			word;
	int			bytes;
	bool		numeric;		/* whose values may be odd */
} LevelHidden;

/* How a state of the level is made of the words of a group of the device's map. */
typedef struct LevelState
{
	int			word;			/* of the group that is returned */
	int			from;			/* of the device's group */
	int			n_words;		/* to copy; 0: see op */
	uint8		op;				/* RHH_SUM_I128: two digits, RHH_SUM_SQUARES:
								 * three, RHH_SUM_F64 */
} LevelState;

struct Level
{
	rhh_map_spec spec;			/* of its groups */
	int			n_words;
	int			n_key_words;	/* of shown keys, the word of NULL bits too */
	int			first_state;	/* word of the states in a group of the level
								 * below */
	uint32		n_states;
	int			n_hidden;		/* keys that only this level looks at: values of
								 * DISTINCT, or to choose from */
	LevelHidden hidden[RHH_MAX_KEYS];
	int			hidden_of[RHH_MAX_STATES];	/* of the states over them */
	List	   *choices;		/* as in the plan */
	StringWords strings;		/* of its groups */
	int			n_parts;		/* of each set below, which is numbered by them;
								 * 0: there are no sets below */
	int			n_sets;
	LevelSet   *sets;
	bool		first_is_set;	/* set 0 is the groups of the level below */

	/* where a device can make the level */
	LevelPlan  *plan;			/* NULL: it cannot */
	int			n_kept_keys;	/* that its map has, the set's apart */
	int			kept_key[RHH_MAX_KEYS];
	int			kept_word[RHH_MAX_KEYS];	/* of the group that is returned */
	int			set_word;		/* of the device's group; 0: it has none */
	uint64		left_out;		/* NULL bits of the other keys */
	LevelState	states[RHH_MAX_STATES];

	uint64	   *group;			/* of the level below, in words of this one */
	uint64	   *records;		/* the same in sets, yet to be merged */
	int			n_records;
	uint64	   *window;			/* groups that next() returned */

	/* of one execution */
	MemoryContext context;
	bool		keeps_strings;
	LevelOdd	odd;			/* where odd values of hidden keys go */
	void	   *odd_arg;
	HostTable  *host;			/* NULL until there is a group */
	uint64		n_taken;
	int			next_empty;		/* the next set to return a group of no rows of */
};

/* The spec of the level's groups.  Of the last level, outputs are made of these. */
const rhh_map_spec *
gpurhh_level_spec(const Level *level)
{
	return &level->spec;
}

/* How many sets the level has; each group of the first level is in one of each. */
int
gpurhh_level_n_sets(const Level *level)
{
	return level->n_sets;
}

/*
 * The words of the keys of the group, in one of the last level's sets, that a group
 * of the first level goes to.
 */
void
gpurhh_level_key(const Level *level, int set, const uint64 *group,
				 uint64 *key)
{
	uint64		outside = level->sets[set].outside;
	int			w = 1;

	memcpy(key, group, level->n_key_words * sizeof(uint64));
	key[0] &= (UINT64CONST(1) << level->spec.n_keys) - 1;
	key[0] |= outside | (uint64) set << GPURHH_SET_SHIFT;
	for (uint32 k = 0; k < level->spec.n_keys; k++)
	{
		int			n = rhh_key_words(&level->spec, k);

		if ((outside >> k) & 1)
			memset(&key[w], 0, sizeof(uint64) * n);
		w += n;
	}
}

/* ---------- on the device ---------- */

/*
 * What a device needs to know to make the level's map.  The caller has to set the limits
 * in its spec.  NULL: no device can make it.
 */
LevelPlan *
gpurhh_level_plan(Level *level)
{
	return level->plan;
}

/* Adds a column to the rows of the level's map; -1: there are too many. */
static int
add_column(LevelPlan *plan, rhh_row_kind kind, int bytes, int key, int word,
		   int part)
{
	int			c = plan->spec.n_columns;

	if (c == RHH_MAX_COLUMNS)
		return -1;
	plan->spec.n_columns++;
	plan->spec.column_bytes[c] = bytes;
	plan->rows.columns[c].kind = kind;
	plan->rows.columns[c].key = key;
	plan->rows.columns[c].word = word;
	plan->rows.columns[c].part = part;
	return c;
}

/* Adds a state over a column.  False: there are too many states, or columns. */
static bool
add_state(LevelPlan *plan, rhh_state_op op, int column)
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

/* Adds a state over a new column, which is a word of the groups below. */
static bool
add_word_state(LevelPlan *plan, rhh_state_op op, rhh_row_kind kind, int word)
{
	return add_state(plan, op, add_column(plan, kind, sizeof(uint64), 0, word,
										  plan->rows.n_parts > 0 ? 0 : -1));
}

/* Adds a state that sums up a number which is two words, each of them a double. */
static bool
add_twice_state(LevelPlan *plan, int word)
{
	return add_state(plan, RHH_SUM_TWICE_F64,
					 add_column(plan, RHH_ROW_WORD, 2 * sizeof(uint64), 0, word,
								plan->rows.n_parts > 0 ? 0 : -1));
}

/*
 * Adds the states that combine states of this kind of the level below, whose first word
 * is given.  False: a device cannot combine them.
 */
static bool
plan_state(LevelPlan *plan, uint8 op, int word, int n_words)
{
	switch (op)
	{
		case RHH_COUNT:
		case RHH_SUM_I64:
			return add_word_state(plan, RHH_SUM_I64, RHH_ROW_WORD, word);
		case RHH_MIN_I64:
		case RHH_MAX_I64:
		case RHH_AND:
		case RHH_OR:
		case RHH_XOR:
			/* one that no row touched changes nothing */
			return add_word_state(plan, op, RHH_ROW_WORD, word);
		case RHH_SUM_I128:
		case RHH_SUM_SQUARES:
			return add_word_state(plan, RHH_SUM_I128, RHH_ROW_WORD, word) &&
				(n_words == 2 ||
				 add_word_state(plan, RHH_SUM_I128, RHH_ROW_DIGIT1, word)) &&
				add_word_state(plan, RHH_SUM_I64,
							   n_words == 2 ? RHH_ROW_DIGIT1 : RHH_ROW_DIGIT2,
							   word);
		case RHH_ANY:
			return add_state(plan, RHH_ANY,
							 add_column(plan, RHH_ROW_ANY, 8 * (n_words - 1), 0,
										word, plan->rows.n_parts > 0 ? 0 : -1));
		case RHH_SUM_F64:
			return add_word_state(plan, RHH_SUM_F64, RHH_ROW_WORD, word) &&
				add_word_state(plan, RHH_OR, RHH_ROW_WORD, word + 1);
		case RHH_SUM_TWICE_F64:
			return add_twice_state(plan, word);
		case RHH_MOMENTS_F64:
			/* whose words are then these states' */
			return add_twice_state(plan, word) &&
				add_twice_state(plan, word + 2) &&
				add_word_state(plan, RHH_OR, RHH_ROW_WORD, word + 4);
		default:
			return false;
	}
}

/*
 * Adds the keys of the device's map: all that are in any set which it makes, and the
 * number of the set.  False: there are too many.
 */
static bool
plan_keys(Level *level, LevelPlan *plan)
{
	const rhh_map_spec *spec = &level->spec;
	uint64		in_any = 0;
	int			n_sets = plan->rows.n_parts > 0 ? level->n_sets : plan->rows.n_sets;
	int			word = 1;
	int			set_column;

	for (int set = 0; set < plan->rows.n_sets; set++)
		in_any |= ~plan->rows.outside[set];
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			bytes = spec->column_bytes[spec->key_column[k]];

		if ((in_any >> k) & 1)
		{
			level->kept_key[level->n_kept_keys] = k;
			level->kept_word[level->n_kept_keys++] = word;
			plan->spec.key_column[plan->spec.n_keys++] =
				add_column(plan, RHH_ROW_KEY, bytes, k, word, -1);
		}
		else
			level->left_out |= UINT64CONST(1) << k;
		word += rhh_key_words(spec, k);
	}
	/* a map has at least one key */
	if (n_sets == 1 && level->n_kept_keys > 0)
		return true;
	set_column = add_column(plan, RHH_ROW_SET, 1, 0, 0, -1);
	if (set_column < 0 || plan->spec.n_keys == RHH_MAX_KEYS)
		return false;
	plan->spec.key_column[plan->spec.n_keys++] = set_column;
	level->set_word = rhh_first_state_word(&plan->spec) - 1;
	return true;
}

/* Adds the states over the values of hidden keys.  False: there are too many. */
static bool
plan_distinct(Level *level, LevelPlan *plan)
{
	int			columns[RHH_MAX_KEYS];

	for (int h = 0; h < level->n_hidden; h++)
	{
		const LevelHidden *hidden = &level->hidden[h];
		bool		only_count = true;

		for (uint32 s = level->n_states; s < level->spec.n_states; s++)
		{
			if (level->hidden_of[s] == h)
				only_count &= level->spec.states[s].op == RHH_COUNT;
		}
		columns[h] = add_column(plan, only_count ? RHH_ROW_KEY_IS_NULL : RHH_ROW_KEY,
								only_count ? 1 : hidden->bytes, hidden->key,
								only_count ? 0 : hidden->word,
								plan->rows.n_parts > 0 ? h : -1);
	}
	for (uint32 s = level->n_states; s < level->spec.n_states; s++)
	{
		if (!add_state(plan, level->spec.states[s].op,
					   columns[level->hidden_of[s]]))
			return false;
	}
	return true;
}

/* Notes where in a group of the map, whose spec is complete, each state comes from. */
static void
plan_translation(Level *level, const LevelPlan *plan)
{
	const rhh_map_spec *spec = &level->spec;
	int			word = rhh_first_state_word(spec);
	int			from = rhh_first_state_word(&plan->spec);

	for (uint32 s = 0; s < spec->n_states; s++)
	{
		LevelState *state = &level->states[s];
		uint8		op = spec->states[s].op;
		int			n_words = rhh_state_words(spec, s);

		state->word = word;
		state->from = from;
		state->n_words = n_words;
		if (s < level->n_states)
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

/*
 * Finds out whether a device can make the level, from groups of first, and sets
 * level->plan if it can.
 */
static void
plan_device(Level *level, const rhh_map_spec *first,
			double expected_groups)
{
	LevelPlan  *plan = palloc0(sizeof(LevelPlan));
	int			word = level->first_state;

	plan->keep_first = level->first_is_set;
	plan->rows.first_set = level->first_is_set ? 1 : 0;
	plan->rows.n_sets = level->n_sets - plan->rows.first_set;
	if (plan->rows.n_sets == 0 || plan->rows.n_sets > RHH_MAX_SETS)
		return;
	plan->rows.n_parts = level->n_parts;
	if (plan->rows.n_parts > 0)
		plan->rows.n_sets = 1;	/* a group is in the one that it says */
	for (int i = 0; i < plan->rows.n_sets && plan->rows.n_parts == 0; i++)
		plan->rows.outside[i] = level->sets[plan->rows.first_set + i].outside;
	plan->spec.expected_groups = Max(expected_groups, 1.0);
	if (!plan_keys(level, plan))
		return;
	for (uint32 s = 0; s < first->n_states; s++)
	{
		int			n_words = rhh_state_words(first, s);

		if (!plan_state(plan, first->states[s].op, word, n_words))
			return;
		word += n_words;
	}
	if (!plan_distinct(level, plan) ||
		rhh_all_state_words(&plan->spec) > RHH_MAX_STATE_WORDS)
		return;
	plan_translation(level, plan);
	level->plan = plan;
}

/*
 * Makes a state of the level, for n groups, of several states of the map.  from: the
 * first word of these; to: that of the state, with stride GPURHH_EMIT_WINDOW.
 */
static void
translate_state(const LevelState *state, const uint64 *from, Size stride,
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
 * Makes groups of the level of n groups of its map, at most GPURHH_EMIT_WINDOW, whose
 * word w is at words[w * stride + i].  In the result the stride is GPURHH_EMIT_WINDOW.
 * It is valid until the next call of this or of gpurhh_level_next_groups().
 */
const uint64 *
gpurhh_level_translate(Level *level, const uint64 *words, Size stride,
					   uint32 n)
{
	const LevelPlan *plan = level->plan;
	uint64	   *to = level->window;
	int			word = 1;

	Assert(n <= GPURHH_EMIT_WINDOW);
	level->n_taken += n;
	for (uint32 i = 0; i < n; i++)
	{
		uint64		set = level->set_word == 0 ? plan->rows.first_set :
			words[level->set_word * stride + i];

		to[i] = level->left_out | set << GPURHH_SET_SHIFT;
	}
	for (int j = 0; j < level->n_kept_keys; j++)
	{
		int			k = level->kept_key[j];

		for (uint32 i = 0; i < n; i++)
			to[i] |= ((words[i] >> j) & 1) << k;
		for (uint32 w = 0; w < rhh_key_words(&level->spec, k); w++)
			memcpy(to + (level->kept_word[j] + w) * GPURHH_EMIT_WINDOW,
				   words + word++ * stride, n * sizeof(uint64));
	}
	for (uint32 s = 0; s < level->spec.n_states; s++)
	{
		const LevelState *state = &level->states[s];
		const uint64 *from = words + state->from * stride;

		to = level->window + state->word * GPURHH_EMIT_WINDOW;
		for (int w = 0; w < state->n_words; w++)
			memcpy(to + w * GPURHH_EMIT_WINDOW, from + w * stride,
				   n * sizeof(uint64));
		if (state->n_words == 0)
			translate_state(state, from, stride, to, n);
	}
	return level->window;
}

/* ---------- life ---------- */

/* Makes the sets, of the first n_keys keys.  NIL: there is one, of all of these. */
static void
make_sets(Level *level, int n_keys, List *sets)
{
	ListCell   *lc;

	level->n_sets = Max(list_length(sets), 1);
	level->sets = palloc0(sizeof(LevelSet) * level->n_sets);
	foreach(lc, sets)
	{
		List	   *keys = lfirst(lc);
		LevelSet   *set = &level->sets[foreach_current_index(lc)];

		set->empty = keys == NIL;
		for (int k = 0; k < n_keys; k++)
		{
			if (!list_member_int(keys, k))
				set->outside |= UINT64CONST(1) << k;
		}
	}
}

/* Adds a state over the values of hidden key h. */
static void
add_hidden_state(Level *level, rhh_state_op op, int h)
{
	rhh_map_spec *spec = &level->spec;
	rhh_state_spec *state = &spec->states[spec->n_states];

	level->hidden_of[spec->n_states++] = h;
	state->op = op;
	state->arg_column = spec->key_column[level->hidden[h].key];
	state->filter_column = -1;
}

/*
 * Makes a level of groups of first, of whose keys those from n_keys on are hidden.
 * For the other parameters see gpurhh_levels_create() and Level.
 */
static Level *
make_level(const rhh_map_spec *first, const GpuColumn *columns, int n_keys,
		   List *sets, List *choices, List *distinct_states, int n_parts,
		   double expected_groups)
{
	Level	   *level = palloc0(sizeof(Level));
	rhh_map_spec *spec = &level->spec;
	ListCell   *lc;

	*spec = *first;
	level->n_states = first->n_states;
	level->n_parts = n_parts;
	level->choices = choices;
	if (distinct_states != NIL || choices != NIL)
	{
		level->n_hidden = first->n_keys - n_keys;
		spec->n_keys = n_keys;
	}
	for (int h = 0, word = rhh_first_state_word(spec); h < level->n_hidden; h++)
	{
		LevelHidden *hidden = &level->hidden[h];

		hidden->key = n_keys + h;
		hidden->word = word;
		hidden->bytes = first->column_bytes[first->key_column[hidden->key]];
		hidden->numeric = columns[first->key_column[hidden->key]].encoding ==
			GPU_ENC_DECIMAL;
		word += rhh_key_words(first, hidden->key);
	}
	for (int h = 0; h < list_length(choices); h++)
		add_hidden_state(level, RHH_ANY, h);
	foreach(lc, distinct_states)
	{
		const GpuPlanHiddenState *state = lfirst(lc);

		add_hidden_state(level, state->op, state->hidden_key);
	}
	gpurhh_string_words_init(&level->strings, spec, columns);
	level->n_words = rhh_result_words(spec);
	level->n_key_words = rhh_first_state_word(spec);
	level->first_state = rhh_first_state_word(first);

	make_sets(level, n_keys, sets);
	level->first_is_set = level->n_hidden == 0 &&
		level->sets[0].outside == 0;

	level->group = palloc0(sizeof(uint64) * level->n_words);
	level->records = palloc0(sizeof(uint64) * level->n_words *
							 GPURHH_EMIT_WINDOW);
	level->window = palloc0(sizeof(uint64) * level->n_words *
							GPURHH_EMIT_WINDOW);
	/* a device knows no order but that of numbers */
	if (choices == NIL)
		plan_device(level, first, expected_groups);
	return level;
}

/* The second level's sets, if there is a third: each set with each hidden key. */
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
 * Makes the levels above the first, of which there are at most GPURHH_MAX_LEVELS, and
 * returns how many there are.  first: the spec of the first level, whose keys from
 * the plan's n_shown_keys on are hidden.  It and columns have to stay.
 */
int
gpurhh_levels_create(Level **levels, const rhh_map_spec *first,
					 const GpuColumn *columns, const GpuAggPlan *plan)
{
	int			n_shown_keys = plan->n_shown_keys;
	int			n_hidden = first->n_keys - n_shown_keys;

	if (plan->sets == NIL && plan->choices == NIL && plan->distinct_states == NIL)
		return 0;
	if (plan->distinct_states == NIL ||
		(n_hidden == 1 && list_length(plan->sets) <= 1))
	{
		levels[0] = make_level(first, columns, n_shown_keys, plan->sets,
							   plan->choices, plan->distinct_states, 0,
							   plan->second_level_groups);
		return 1;
	}
	levels[0] = make_level(first, columns, first->n_keys,
						   make_parts(plan->sets, n_shown_keys, n_hidden), NIL, NIL, 0,
						   plan->second_level_groups);
	levels[1] = make_level(first, columns, n_shown_keys, plan->sets, NIL,
						   plan->distinct_states, n_hidden, plan->third_level_groups);
	return 2;
}

/*
 * Groups will come with strings of several dictionaries, so if the level's groups have
 * strings, the level keeps these itself.  For this run; before the first group.
 */
void
gpurhh_level_keep_strings(Level *level)
{
	level->keeps_strings = level->strings.n + level->strings.n_numerics > 0;
}

/*
 * Groups may come with odd numerics, which are given by their addresses; odd is called
 * for those of hidden keys.  For this run; before the first group.
 */
void
gpurhh_level_set_odd(Level *level, LevelOdd odd, void *arg)
{
	level->odd = odd;
	level->odd_arg = arg;
}

/* Does the level keep the strings of its groups itself, apart from any dictionary? */
bool
gpurhh_level_keeps_strings(const Level *level)
{
	return level->keeps_strings;
}

/*
 * Begins a run: before its first group, also after a rescan.  What the run needs is
 * in context, which must last until gpurhh_level_end().
 */
void
gpurhh_level_start(Level *level, MemoryContext context)
{
	level->context = context;
	level->keeps_strings = false;
	level->odd = NULL;
	level->host = NULL;
	level->n_taken = 0;
	level->n_records = 0;
	level->next_empty = 0;
}

/* Frees what the run held, files included. */
void
gpurhh_level_end(Level *level)
{
	if (level->host != NULL)
		gpurhh_host_free(level->host);
	level->host = NULL;
}

/* How many records the level has written to disk in this run. */
uint64
gpurhh_level_spilled(Level *level)
{
	return level->host ? gpurhh_host_spilled(level->host) : 0;
}

/* ---------- on the host ---------- */

/* Stores the state of one value, which is not NULL, of a hidden key. */
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
 * Makes level->group of a group of the level below: a group of this level, but without
 * a set if the level below has none.
 */
static void
make_group(Level *level, const uint64 *words, Size stride)
{
	const rhh_map_spec *spec = &level->spec;
	uint64	   *to = level->group;
	int			number = GPURHH_SET_OF(words[0]);
	int			part = level->n_parts > 0 ? number % level->n_parts : 0;
	int			w;

	for (w = 0; w < level->n_key_words; w++)
		to[w] = words[w * stride];
	if (level->n_hidden > 0)
		to[0] &= (UINT64CONST(1) << spec->n_keys) - 1;
	if (level->n_parts > 0)
		to[0] |= (uint64) (number / level->n_parts) << GPURHH_SET_SHIFT;
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		int			n_words = rhh_state_words(spec, s);

		if (s >= level->n_states)
		{
			int			h = level->hidden_of[s];
			const LevelHidden *hidden = &level->hidden[h];

			memset(&to[w], 0, n_words * sizeof(uint64));
			if ((level->n_parts > 0 && h != part) ||
				((words[0] >> hidden->key) & 1) != 0)
				;				/* no value */
			else if (level->choices != NIL)
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
				(level->first_state - level->n_key_words + w) * stride;

			for (int i = 0; i < n_words; i++)
				to[w + i] = from[i * stride];
		}
		w += n_words;
	}
}

/* Puts the records that wait into the host table, which is made if there is none. */
static void
merge_records(Level *level, const Dictionary *dictionary)
{
	if (level->host == NULL)
	{
		level->host = gpurhh_host_create(&level->spec, level->context,
										 get_hash_memory_limit());
		if (level->keeps_strings)
		{
			gpurhh_host_keep_strings(level->host, &level->strings);
			dictionary = NULL;
		}
		gpurhh_host_choose(level->host, level->n_states,
						   level->choices, dictionary);
	}
	gpurhh_host_merge_records(level->host, level->records,
							  level->n_records);
	level->n_records = 0;
}

/* Adds level->group to the records that wait to be merged; returns the record. */
static uint64 *
new_record(Level *level, const Dictionary *dictionary)
{
	uint64	   *record;

	if (level->n_records == GPURHH_EMIT_WINDOW)
		merge_records(level, dictionary);
	record = &level->records[(Size) level->n_records++ * level->n_words];
	return memcpy(record, level->group, sizeof(uint64) * level->n_words);
}

/* Adds level->group to these records as a group of a set; returns the record. */
static uint64 *
add_to_set(Level *level, const Dictionary *dictionary, int number)
{
	const LevelSet *set = &level->sets[number];
	const rhh_map_spec *spec = &level->spec;
	uint64	   *record = new_record(level, dictionary);
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
 * Calls level->odd for the odd values of hidden keys in a group of the level below.
 * record: the group of this level that the values are in.
 */
static void
hand_over_odd(Level *level, const uint64 *words, Size stride,
			  const uint64 *record)
{
	int			part = level->n_parts > 0 ?
		GPURHH_SET_OF(words[0]) % level->n_parts : -1;
	bool		done[RHH_MAX_KEYS] = {false};

	for (uint32 s = level->n_states; s < level->spec.n_states; s++)
	{
		int			h = level->hidden_of[s];
		const LevelHidden *hidden = &level->hidden[h];
		uint64		word = words[hidden->word * stride];

		if (!hidden->numeric || done[h] || (part >= 0 && h != part) ||
			((words[0] >> hidden->key) & 1) != 0 ||
			!gpurhh_decimal_is_odd(word))
			continue;
		/* one of its states stands for all */
		done[h] = true;
		level->odd(level->odd_arg, record, s,
				   gpurhh_dictionary_numeric(NULL, word));
	}
}

/* Does the level make groups?  Else all of its groups are those of the level below. */
bool
gpurhh_level_makes_groups(const Level *level)
{
	return !level->first_is_set || level->n_sets > 1;
}

/*
 * Takes the next n groups of the level below, whose word w is at
 * words[w * stride + i], and whose strings are in the dictionary (NULL: they are given
 * by their addresses).  True: the groups are also those of set 0, so the caller has to
 * return them.
 */
bool
gpurhh_level_add(Level *level, const Dictionary *dictionary,
				 const uint64 *words, Size stride, uint32 n)
{
	int			first = level->first_is_set ? 1 : 0;

	level->n_taken += n;
	if (!gpurhh_level_makes_groups(level))
		return true;
	for (uint32 i = 0; i < n; i++)
	{
		make_group(level, words + i, stride);
		if (level->keeps_strings)
			gpurhh_strings_resolve(&level->strings, dictionary,
								   level->group);
		for (int set = first; set < (level->n_parts > 0 ? first + 1 : level->n_sets); set++)
		{
			const uint64 *record = level->n_parts > 0 ?
				new_record(level, dictionary) :
				add_to_set(level, dictionary, set);

			if (unlikely(level->odd != NULL))
				hand_over_odd(level, words + i, stride, record);
		}
	}
	merge_records(level, dictionary);
	return level->first_is_set;
}

/*
 * Makes the next group of no rows; false: there are no more.  Its counts are 0, which
 * makes all else NULL.
 */
static bool
next_empty_group(Level *level, uint64 *record)
{
	while (level->n_taken == 0 && level->next_empty < level->n_sets)
	{
		int			number = level->next_empty++;

		if (!level->sets[number].empty)
			continue;
		memset(record, 0, sizeof(uint64) * level->n_words);
		record[0] = level->sets[number].outside | (uint64) number << GPURHH_SET_SHIFT;
		return true;
	}
	return false;
}

/*
 * The level's next groups, once it has taken all of the level below: *n of them, with
 * stride GPURHH_EMIT_WINDOW.  They are valid until the next call.  NULL: there are no
 * more.
 */
const uint64 *
gpurhh_level_next_groups(Level *level, uint32 *n)
{
	uint32		i;

	for (i = 0; i < GPURHH_EMIT_WINDOW; i++)
	{
		const uint64 *record = NULL;

		if (level->host != NULL)
		{
			/* to load others would take the strings of those in the window */
			if (i > 0 && level->keeps_strings &&
				!gpurhh_host_next_is_loaded(level->host))
				break;
			record = gpurhh_host_next(level->host);
		}
		else if (next_empty_group(level, level->records))
			record = level->records;
		if (record == NULL)
			break;
		for (int w = 0; w < level->n_words; w++)
			level->window[w * GPURHH_EMIT_WINDOW + i] = record[w];
	}
	*n = i;
	return i > 0 ? level->window : NULL;
}
