/*-------------------------------------------------------------------------
 *
 * odd_arguments.c
 *		Odd values: numerics among the arguments of aggregates that do not have the
 *		scale which is declared for them.
 *
 * A device sums integers, and to make integers of numerics the scale of an argument must
 * be known when the query is planned (decimal.c).  The type modifier tells it.  But core
 * applies a modifier only where a value is assigned or cast.  What a function with a
 * column definition list returns, fields of record variables, and tables made of these
 * may hold numerics of any scale, and infinities.  So each value is checked when it
 * is fed.  An odd value is fed as NULL: its row is in its group, and counts for
 * everything that does not depend on the value.  The value itself is added here to what
 * is known of its argument in its group:
 *
 *		count		how many
 *		sums		core's own state of sum(), or of variance() if there is one
 *		least, greatest
 *		last		for a column that the grouping columns determine
 *
 * Of equal values, such as 1.2 and 1.20, core's min() and max() return the one that came
 * last.  So if the least or greatest odd value equals a value that is not odd, the feed
 * watches for the integer of that value, and rows that have it come here as well.
 *
 * An argument is a fed column and, if it has a FILTER, the column of that.  The group is
 * the one that is returned, with the number of its grouping set.  So a value is added to
 * one group of each set, and it does not matter where and by how many levels the groups
 * are made.  When a group is about to be returned, agg_emit.c puts what is here together
 * with what the device has.  If no odd value was met, that costs one look at a pointer
 * for each window of groups.
 *
 * In groups, strings are numbers of a dictionary, and each pass over deferred rows has a
 * dictionary of its own.  Here they are strings, as in string_words.c.
 *
 * In a parallel plan each participant writes what it has to a file before it detaches,
 * and the participants that return groups read all of the files.
 *
 * All memory is in a context below the caller's.  Nothing goes to disk, because core
 * keeps its states of numeric in memory as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

#include "compat.h"
#include "exec/odd_arguments.h"
#include "plan/plan.h"

typedef struct OddArgument
{
	int			column;			/* of limb 0 */
	int			filter;			/* -1: none */
	int			parameter;		/* of the column */
	bool		distinct;		/* the values of a hidden key */
	bool		sums;			/* which parts of the state aggregates ask for */
	bool		squares;
	bool		least;
	bool		greatest;
	bool		last;
} OddArgument;

struct OddPlan
{
	const rhh_map_spec *first;
	const rhh_map_spec *last;	/* of the groups that are returned */
	const Level *level;			/* that last is of; NULL: last is first */
	int			n_arguments;
	OddArgument arguments[RHH_MAX_STATES];
	int			of_state[RHH_MAX_STATES];	/* argument of a state of last, or -1 */
	int			n_key_words;	/* of last */
	StringWords strings;		/* in these */
};

typedef struct OddGroup
{
	uint64	   *key;
	OddState   *states;			/* of each argument */
	uint32		hash;
	char		status;
} OddGroup;

struct oddgroups_hash;

struct OddValues
{
	const OddPlan *plan;
	MemoryContext context;		/* of all that stays */
	MemoryContext scratch;		/* of one value */
	struct oddgroups_hash *groups;
	WindowAggState *caller;		/* what core's functions of aggregates ask for:
								 * it says in which context states are */
	uint64	   *first_group;	/* words of one group of the first level */
	uint64	   *key;			/* and of a key */
	uint64		n_values;		/* see gpurhh_odd_added() */
	uint64		n_compared;
	uint64	   *watched;		/* see gpurhh_is_watched(); NULL: no integer is */
};

#define SH_PREFIX oddgroups
#define SH_ELEMENT_TYPE OddGroup
#define SH_KEY_TYPE uint64 *
#define SH_KEY key
#define SH_HASH_KEY(tb, key) \
	gpurhh_strings_hash(&((OddPlan *) (tb)->private_data)->strings, key, \
						((OddPlan *) (tb)->private_data)->n_key_words)
#define SH_EQUAL(tb, a, b) \
	gpurhh_strings_equal(&((OddPlan *) (tb)->private_data)->strings, a, b, \
						 ((OddPlan *) (tb)->private_data)->n_key_words)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* ---------- the plan ---------- */

/* The number of an argument, added if it is not there. */
static int
find_argument(OddPlan *plan, int column, int filter, bool distinct)
{
	OddArgument *argument;

	for (int a = 0; a < plan->n_arguments; a++)
	{
		argument = &plan->arguments[a];
		if (argument->column == column && argument->filter == filter &&
			argument->distinct == distinct)
			return a;
	}
	argument = &plan->arguments[plan->n_arguments];
	argument->column = column;
	argument->filter = filter;
	argument->distinct = distinct;
	return plan->n_arguments++;
}

/*
 * Finds the arguments that may have odd values: numerics.  NULL: there are none.
 * first: the spec of the first level; level: the last level, NULL if there is only the
 * first.  These and columns have to last as long as the result.
 */
OddPlan *
gpurhh_odd_plan(const rhh_map_spec *first, const GpuColumn *columns,
				const Level *level, List *outputs)
{
	OddPlan    *plan = palloc0(sizeof(OddPlan));
	bool		returned[RHH_MAX_STATES] = {false};
	ListCell   *lc;

	/*
	 * sum() and others have a maximum as well, which tells NaN.  The value that it
	 * is, nobody asks for; to watch for it would cost every row that equals it.
	 */
	foreach(lc, outputs)
	{
		const GpuPlanOutput *output = lfirst(lc);

		if (output->kind == GPU_OUTPUT_AGGREGATE &&
			gpurhh_find_aggregate(output->aggregate)->family->argument == AGGREGATE_OF_VALUES)
			returned[linitial_int(output->states)] = true;
	}
	plan->first = first;
	plan->level = level;
	plan->last = level ? gpurhh_level_spec(level) : first;
	plan->n_key_words = rhh_first_state_word(plan->last);
	gpurhh_string_words_init(&plan->strings, plan->last, columns);
	plan->strings.n = plan->strings.n_keys;
	for (uint32 s = 0; s < plan->last->n_states; s++)
	{
		const rhh_state_spec *state = &plan->last->states[s];
		OddArgument *argument;

		plan->of_state[s] = -1;
		if (state->arg_column < 0 ||
			columns[state->arg_column].encoding != GPU_ENC_DECIMAL)
			continue;
		plan->of_state[s] = find_argument(plan, state->arg_column,
										  state->filter_column,
										  s >= first->n_states);
		argument = &plan->arguments[plan->of_state[s]];
		argument->parameter = columns[state->arg_column].parameter;
		argument->sums |= state->op == RHH_SUM_I128;
		argument->squares |= state->op == RHH_SUM_SQUARES;
		argument->least |= state->op == RHH_MIN_I64 && returned[s];
		argument->greatest |= state->op == RHH_MAX_I64 && returned[s];
		argument->last |= state->op == RHH_ANY;
	}
	if (plan->n_arguments > 0)
		return plan;
	pfree(plan);
	return NULL;
}

/*
 * The argument of a state of the groups that are returned; -1: it has no odd
 * values.  plan may be NULL.
 */
int
gpurhh_odd_argument(const OddPlan *plan, int state)
{
	return plan == NULL ? -1 : plan->of_state[state];
}

/* ---------- core's states ---------- */

/* Calls one of core's functions of aggregates; states that it makes are in context. */
static Datum
call_core(PGFunction function, WindowAggState *caller, MemoryContext context,
		  Datum state, Datum value)
{
	LOCAL_FCINFO(fcinfo, 2);

	caller->curaggcontext = context;
	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, (Node *) caller, NULL);
	fcinfo->args[0].value = state;
	fcinfo->args[0].isnull = state == (Datum) 0;
	fcinfo->args[1].value = value;
	fcinfo->args[1].isnull = value == (Datum) 0;
	return function(fcinfo);
}

/* Adds a value to core's state of sum() or variance(), if an aggregate asks for it. */
static void
accumulate(OddValues *values, const OddArgument *argument, OddState *state,
		   Datum value)
{
	if (argument->sums || argument->squares)
		state->sums = DatumGetPointer(call_core(argument->squares ? numeric_accum :
												numeric_avg_accum,
												values->caller, values->context,
												PointerGetDatum(state->sums),
												value));
}

/* ---------- values ---------- */

/* Makes what holds the odd values of one run, in a context below context. */
OddValues *
gpurhh_odd_create(const OddPlan *plan, MemoryContext context)
{
	OddValues  *values;
	MemoryContext old;

	context = AllocSetContextCreate(context, "GpuHashAgg odd values",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	values = palloc0(sizeof(OddValues));
	values->plan = plan;
	values->context = context;
	values->scratch = AllocSetContextCreate(context, "GpuHashAgg odd value",
											ALLOCSET_DEFAULT_SIZES);
	values->groups = oddgroups_create(context, 64, unconstify(OddPlan *, plan));
	values->caller = makeNode(WindowAggState);
	values->first_group = palloc(rhh_result_words(plan->first) * sizeof(uint64));
	values->key = palloc(plan->n_key_words * sizeof(uint64));
	MemoryContextSwitchTo(old);
	return values;
}

/* Frees all of them. */
void
gpurhh_odd_free(OddValues *values)
{
	MemoryContextDelete(values->context);
}

/* May min() or max() of a numeric be asked for, so that the feed may have to watch? */
bool
gpurhh_odd_watches(const OddPlan *plan)
{
	for (int a = 0; plan != NULL && a < plan->n_arguments; a++)
	{
		if (plan->arguments[a].least || plan->arguments[a].greatest)
			return true;
	}
	return false;
}

/* The integers that a feed has to watch for; they may change with each row. */
const uint64 *
gpurhh_odd_watched(const OddValues *values)
{
	return values->watched;
}

/*
 * How many odd values were added since the last call, without those of files, and how
 * many values that are not odd came here because they may equal one.
 */
void
gpurhh_odd_added(OddValues *values, uint64 *n_values, uint64 *n_compared)
{
	*n_values = values->n_values;
	*n_compared = values->n_compared;
	values->n_values = values->n_compared = 0;
}

/* How much memory they take. */
uint64
gpurhh_odd_bytes(const OddValues *values)
{
	return MemoryContextMemAllocated(values->context, true);
}

/*
 * Makes values->key comparable with other keys: words of keys that are NULL become 0, and
 * strings that have a number in the dictionary are replaced by their addresses.
 * dictionary: NULL if the strings are given by their addresses already.
 */
static void
finish_key(OddValues *values, const Dictionary *dictionary)
{
	const OddPlan *plan = values->plan;
	uint64	   *key = values->key;
	int			w = 1;

	for (uint32 k = 0; k < plan->last->n_keys; k++)
	{
		int			n = rhh_key_words(plan->last, k);

		if ((key[0] >> k) & 1)
			memset(&key[w], 0, n * sizeof(uint64));
		w += n;
	}
	gpurhh_strings_resolve(&plan->strings, dictionary, key);
}

/* The states of the group whose key is in values->key. */
static OddState *
find_states(OddValues *values)
{
	const OddPlan *plan = values->plan;
	bool		found;
	OddGroup   *group = oddgroups_insert(values->groups, values->key, &found);

	if (!found)
	{
		Size		bytes = plan->n_key_words * sizeof(uint64);

		group->key = MemoryContextAlloc(values->context, bytes);
		memcpy(group->key, values->key, bytes);
		gpurhh_strings_copy(&plan->strings, values->context, group->key);
		group->states = MemoryContextAllocZero(values->context,
											   plan->n_arguments * sizeof(OddState));
	}
	return group->states;
}

/* Copies a value into the context of all values. */
static struct varlena *
copy_value(OddValues *values, Datum value)
{
	Size		bytes = VARSIZE_ANY(DatumGetPointer(value));

	return memcpy(MemoryContextAlloc(values->context, bytes),
				  DatumGetPointer(value), bytes);
}

/* Puts a value in the place of another one. */
static void
replace_value(OddValues *values, struct varlena **place, Datum value)
{
	struct varlena *copy = copy_value(values, value);

	if (*place != NULL)
		pfree(*place);
	*place = copy;
}

/* Finds out whether a least or greatest value equals one that is not odd. */
static void
watch(OddValues *values, const OddArgument *argument, OddBest *best)
{
	uint32		bit;

	best->later = false;
	best->ties = gpurhh_decimal_integer((const char *) best->value,
										GPURHH_DECIMAL_SCALE(argument->parameter),
										&best->integer);
	if (!best->ties)
		return;
	if (values->watched == NULL)
		values->watched = MemoryContextAllocZero(values->context,
												 (1 << GPURHH_WATCHED_BITS) / 8);
	bit = gpurhh_watched_bit(best->integer);
	values->watched[bit / 64] |= UINT64CONST(1) << (bit % 64);
}

/*
 * Keeps the least of values or the greatest, of equal ones the last.  True: it is
 * the new one.
 */
static bool
keep_best(OddValues *values, const OddArgument *argument, PGFunction better,
		  OddBest *best, Datum value)
{
	if (best->value != NULL)
	{
		value = DirectFunctionCall2(better, PointerGetDatum(best->value), value);
		if (DatumGetPointer(value) == (Pointer) best->value)
			return false;
	}
	replace_value(values, &best->value, value);
	watch(values, argument, best);
	return true;
}

/* Adds a value, which is a plain varlena, to an argument in a group. */
static void
add_value(OddValues *values, int number, OddState *state, Datum value)
{
	const OddArgument *argument = &values->plan->arguments[number];

	state->count++;
	accumulate(values, argument, state, value);
	if (argument->least)
		(void) keep_best(values, argument, numeric_smaller, &state->least, value);
	if (argument->greatest)
		(void) keep_best(values, argument, numeric_larger, &state->greatest, value);
	if (argument->last)
		replace_value(values, &state->last, value);
}

/*
 * Adds a value of an argument to a group that will be returned, whose keys' words
 * are group[w * stride], and whose strings are in the dictionary (NULL: given by
 * their addresses).
 */
void
gpurhh_odd_add(OddValues *values, const Dictionary *dictionary,
			   const uint64 *group, Size stride, int argument, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(values->scratch);

	values->n_values++;
	for (int w = 0; w < values->plan->n_key_words; w++)
		values->key[w] = group[w * stride];
	finish_key(values, dictionary);
	add_value(values, argument, &find_states(values)[argument],
			  PointerGetDatum(PG_DETOAST_DATUM(value)));
	MemoryContextSwitchTo(old);
	MemoryContextReset(values->scratch);
}

/* Makes values->key that of the row's group in a set. */
static void
make_key(OddValues *values, const Dictionary *dictionary, int set)
{
	const OddPlan *plan = values->plan;

	if (plan->level != NULL)
		gpurhh_level_key(plan->level, set, values->first_group, values->key);
	else
		memcpy(values->key, values->first_group,
			   plan->n_key_words * sizeof(uint64));
	finish_key(values, dictionary);
}

/* Adds a value of a row to its group in each set. */
static void
add_to_sets(OddValues *values, const Dictionary *dictionary, int n_sets,
			int argument, Datum value)
{
	value = PointerGetDatum(PG_DETOAST_DATUM(value));
	values->n_values++;
	for (int set = 0; set < n_sets; set++)
	{
		make_key(values, dictionary, set);
		add_value(values, argument, &find_states(values)[argument], value);
	}
}

/*
 * Notes a value that is not odd, by its integer: in each set's group where it equals the
 * least or greatest odd value, it came later than that.
 */
static void
note_regular(OddValues *values, const Dictionary *dictionary, int n_sets,
			 int argument, int64 integer)
{
	values->n_compared++;
	for (int set = 0; set < n_sets; set++)
	{
		OddGroup   *group;
		OddState   *state;

		make_key(values, dictionary, set);
		group = oddgroups_lookup(values->groups, values->key);
		if (group == NULL)
			continue;
		state = &group->states[argument];
		state->least.later |= state->least.ties && state->least.integer == integer;
		state->greatest.later |= state->greatest.ties &&
			state->greatest.integer == integer;
	}
}

/*
 * Adds the odd values of the row that the feed is about to append, and is in slot.  The
 * row is in the feed's block already, with NULL in place of its odd values.
 */
void
gpurhh_odd_add_row(OddValues *values, const Feed *feed, TupleTableSlot *slot)
{
	const OddPlan *plan = values->plan;
	const Dictionary *dictionary = feed->strings.dictionary;
	int			n_sets = plan->level ? gpurhh_level_n_sets(plan->level) : 1;
	uint32		row = feed->n_rows;
	MemoryContext old = MemoryContextSwitchTo(values->scratch);
	rhh_batch	batch;

	gpurhh_feed_describe(feed, &batch);
	batch.base = (uint8_t *) feed->base;
	gpurhh_host_load_group(plan->first, &batch, row, values->first_group);
	for (int a = 0; a < plan->n_arguments; a++)
	{
		const OddArgument *argument = &plan->arguments[a];
		int			n_limbs = GPURHH_DECIMAL_LIMBS(argument->parameter);
		int			attribute = feed->columns[argument->column].attribute;
		Datum		value = slot->tts_values[attribute];
		int64		limbs[GPURHH_MAX_LIMBS];

		if (argument->distinct || slot->tts_isnull[attribute] ||
			(argument->filter >= 0 &&
			 feed->base[feed->columns[argument->filter].values_offset + row] == 0))
			continue;
		if (!gpurhh_decimal_read(DatumGetPointer(value),
								 GPURHH_DECIMAL_SCALE(argument->parameter),
								 n_limbs, limbs))
			add_to_sets(values, dictionary, n_sets, a, value);
		else if ((argument->least || argument->greatest) && n_limbs == 1 &&
				 values->watched != NULL &&
				 gpurhh_is_watched(values->watched, limbs[0]))
			note_regular(values, dictionary, n_sets, a, limbs[0]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(values->scratch);
}

/* ---------- files ---------- */

static void
write_varlena(BufFile *file, const struct varlena *value)
{
	uint32		bytes = value ? VARSIZE(value) : 0;

	BufFileWrite(file, &bytes, sizeof(bytes));
	if (value != NULL)
		BufFileWrite(file, unconstify(struct varlena *, value), bytes);
}

/* In the current context. */
static struct varlena *
read_varlena(BufFile *file)
{
	uint32		bytes;
	struct varlena *value;

	gpurhh_buffile_read(file, &bytes, sizeof(bytes));
	if (bytes == 0)
		return NULL;
	value = palloc(bytes);
	gpurhh_buffile_read(file, value, bytes);
	return value;
}

static void
write_best(BufFile *file, const OddBest *best)
{
	bool		later = best->later;

	write_varlena(file, best->value);
	BufFileWrite(file, &later, sizeof(later));
}

/*
 * Reads what write_best() wrote, and keeps it if it is better than what there is.  Of
 * two participants' values nobody knows which came later.
 */
static void
read_best(OddValues *values, BufFile *file, const OddArgument *argument,
		  PGFunction better, OddBest *best)
{
	struct varlena *value = read_varlena(file);
	bool		later;

	gpurhh_buffile_read(file, &later, sizeof(later));
	if (value != NULL &&
		keep_best(values, argument, better, best, PointerGetDatum(value)))
		best->later = later;
}

static void
write_state(const OddValues *values, BufFile *file,
			const OddArgument *argument, const OddState *state)
{
	struct varlena *sums = NULL;

	BufFileWrite(file, unconstify(uint64 *, &state->count),
				 sizeof(state->count));
	if (state->count == 0)
		return;
	if (state->sums != NULL)
		sums = (struct varlena *)
			DatumGetPointer(call_core(argument->squares ? numeric_serialize :
									  numeric_avg_serialize,
									  values->caller, CurrentMemoryContext,
									  PointerGetDatum(state->sums), (Datum) 0));
	write_varlena(file, sums);
	write_best(file, &state->least);
	write_best(file, &state->greatest);
	write_varlena(file, state->last);
}

/* Makes core's state of what numeric_serialize() or numeric_avg_serialize() wrote. */
static Datum
deserialize(WindowAggState *caller, bool squares, struct varlena *written)
{
	return call_core(squares ? numeric_deserialize : numeric_avg_deserialize,
					 caller, CurrentMemoryContext, PointerGetDatum(written),
					 (Datum) 0);
}

/* Adds a state that was written to one in memory. */
static void
read_state(OddValues *values, BufFile *file, const OddArgument *argument,
		   OddState *state)
{
	uint64		count;
	struct varlena *value;

	gpurhh_buffile_read(file, &count, sizeof(count));
	if (count == 0)
		return;
	state->count += count;
	value = read_varlena(file);
	if (value != NULL)
		state->sums = DatumGetPointer(call_core(argument->squares ? numeric_combine :
												numeric_avg_combine,
												values->caller, values->context,
												PointerGetDatum(state->sums),
												deserialize(values->caller,
															argument->squares,
															value)));
	read_best(values, file, argument, numeric_smaller, &state->least);
	read_best(values, file, argument, numeric_larger, &state->greatest);
	value = read_varlena(file);
	if (value != NULL)
		replace_value(values, &state->last, PointerGetDatum(value));
}

/* Writes all to a file, before the participant detaches. */
void
gpurhh_odd_save(const OddValues *values, GpuAggShared *shared)
{
	const OddPlan *plan = values->plan;
	BufFile    *file = gpurhh_parallel_create_odd_arguments(shared);
	MemoryContext old = MemoryContextSwitchTo(values->scratch);
	oddgroups_iterator iterator;
	OddGroup   *group;
	char		more = 1;

	oddgroups_start_iterate(values->groups, &iterator);
	while ((group = oddgroups_iterate(values->groups, &iterator)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		BufFileWrite(file, &more, sizeof(more));
		BufFileWrite(file, group->key, plan->n_key_words * sizeof(uint64));
		gpurhh_strings_write(&plan->strings, file, group->key);
		for (int a = 0; a < plan->n_arguments; a++)
			write_state(values, file, &plan->arguments[a], &group->states[a]);
		MemoryContextReset(values->scratch);
	}
	MemoryContextSwitchTo(old);
	more = 0;
	gpurhh_parallel_close_file(&file, &more, sizeof(more));
}

/* Adds what all participants have written, once the input is closed. */
void
gpurhh_odd_read(OddValues *values, GpuAggShared *shared)
{
	const OddPlan *plan = values->plan;
	BufFile    *file;

	for (int i = 0; (file = gpurhh_parallel_open_odd_arguments(shared, i)) != NULL; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(values->scratch);

		for (;;)
		{
			OddState   *states;
			char		more;

			CHECK_FOR_INTERRUPTS();
			gpurhh_buffile_read(file, &more, sizeof(more));
			if (more == 0)
				break;
			gpurhh_buffile_read(file, values->key,
								plan->n_key_words * sizeof(uint64));
			gpurhh_strings_read(&plan->strings, file, values->key,
								values->scratch);
			states = find_states(values);
			for (int a = 0; a < plan->n_arguments; a++)
				read_state(values, file, &plan->arguments[a], &states[a]);
			MemoryContextReset(values->scratch);
		}
		MemoryContextSwitchTo(old);
		BufFileClose(file);
	}
}

/* ---------- results ---------- */

/*
 * The states of a group that is about to be returned, one for each argument, as
 * gpurhh_odd_add() takes the group.  NULL: it has no odd value.
 */
const OddState *
gpurhh_odd_find(OddValues *values, const Dictionary *dictionary,
				const uint64 *group, Size stride)
{
	OddGroup   *found;

	for (int w = 0; w < values->plan->n_key_words; w++)
		values->key[w] = group[w * stride];
	finish_key(values, dictionary);
	found = oddgroups_lookup(values->groups, values->key);
	return found ? found->states : NULL;
}

/*
 * Writes, in core's format, the state of count values that are not odd and have these
 * sums.
 */
static struct varlena *
write_others(uint64 count, const NumericSums *others)
{
	StringInfoData buf;
	int			n_nan = others->nan ? 1 : 0;
	int			scale = DatumGetInt32(DirectFunctionCall1(numeric_scale, others->sum));

	/* as numeric_serialize() and numeric_avg_serialize() do it */
	pq_begintypsend(&buf);
	pq_sendint64(&buf, count - n_nan);
	gpurhh_decimal_serialize(&buf, others->sum);
	if (others->squares != (Datum) 0)
		gpurhh_decimal_serialize(&buf, others->squares);
	pq_sendint32(&buf, scale);	/* the greatest one, */
	pq_sendint64(&buf, count);	/* and how many have it */
	pq_sendint64(&buf, n_nan);
	pq_sendint64(&buf, 0);		/* infinities */
	pq_sendint64(&buf, 0);
	return pq_endtypsend(&buf);
}

/*
 * What core_final, core's final function, makes of a group's odd values and count
 * others, whose sums are given if there are any.  In the current context.
 */
Datum
gpurhh_odd_final(OddValues *values, const OddState *state,
				 PGFunction core_final, uint64 count, const NumericSums *others)
{
	WindowAggState *caller = values->caller;
	Datum		all = PointerGetDatum(state->sums);

	if (count > 0)
	{
		bool		with_squares = others->squares != (Datum) 0;

		all = call_core(with_squares ? numeric_combine : numeric_avg_combine,
						caller, CurrentMemoryContext,
						deserialize(caller, with_squares,
									write_others(count, others)),
						all);
	}
	return call_core(core_final, caller, CurrentMemoryContext, all, (Datum) 0);
}
