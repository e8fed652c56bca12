/*-------------------------------------------------------------------------
 *
 * part_filter.c
 *		Has core do a join for the rows of some parts of its build side.
 *
 * A build side without room comes in parts, and GpuHashJoin returns the rows of one part before it
 * can know whether the next ones have room (join_rounds.c).  If one has not, core joins the rest: its
 * join has the whole build side, but gets only those rows of its outer side whose keys are of other
 * parts than those that are done.  So each row of the output is made once, whatever the kind of the
 * join is, because what a join makes of a row of its outer side depends on that row and on the build
 * side alone.  Where the join also returns rows of the build side in the end, core gets only those of
 * the other parts.
 *
 * The part of a key follows from the bytes with which it is fed (rhh_part_word()), so it is fed here
 * as well, a row at a time.  Strings have the numbers that they have in the dictionary of the run.
 *
 * Rows of the probe side that are left over have been kept, and have not been joined at all yet.  They
 * are among the rows of the other parts, so with core's joins of the rest they have been joined with
 * these.  After that they are joined with the parts that are done (gpurhh_part_filter_turn()).  If the
 * key itself cannot be fed, it is of a done part: the row is left over for certain, because at least
 * one pass has read all of the probe side.
 *
 * The rows come from nodes made here, which are in the plan only while core runs, as in left_over.c.
 * They also count the rows of both sides, which must be those of the passes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "exec/join_input.h"
#include "rhh_keys.h"

/* A plan node that returns its child's rows, or some of them. */
typedef struct FilterState
{
	PlanState	ps;				/* must be first */
	PartFilter *filter;
	PlanState  *child;
	bool		filters;
	Feed		feed;			/* filters: of the columns of the key, one row at a time */
	char	   *block;
	const char *side;			/* NULL: its rows are not counted */
	uint64		n_rows;			/* that the child has returned, */
	uint64		expected;		/* and has to return */
} FilterState;

struct PartFilter
{
	HashJoinState *lowest;		/* the join with the probe side, */
	HashJoinState *join;		/* and the one whose build side came in parts */
	uint64		done;			/* see JoinParts */
	bool		wants_done;		/* rows of done parts are returned, and not the others */
	FilterState probe;
	FilterState outer;
	FilterState build;
};

/* The feed's callbacks: the row is not fed. */
static void
ignore_row(void *arg, TupleTableSlot *slot, uint32 hash)
{
}

static bool
ignore_odd_row(void *arg, Feed *feed, TupleTableSlot *slot)
{
	return false;
}

/* Is the row of a done part? */
static bool
is_done(FilterState *state, TupleTableSlot *slot)
{
	Feed	   *feed = &state->feed;
	uint64		hash = RHH_PART_START;

	gpurhh_feed_start(feed, state->block);
	gpurhh_feed_slot(feed, slot);
	if (feed->n_rows == 0)
		return true;
	for (int c = 0; c < feed->n_columns; c++)
	{
		const FeedColumn *column = &feed->columns[c];
		uint64		words[2] = {0};

		/* of the one row */
		if (column->any_null)
			return (state->filter->done & 1) != 0;
		memcpy(words, state->block + column->values_offset, column->bytes);
		hash = rhh_part_word(hash, words[0]);
		if (column->bytes > sizeof(uint64))
			hash = rhh_part_word(hash, words[1]);
	}
	return (state->filter->done >> rhh_part_of(hash, RHH_MAX_PARTS) & 1) != 0;
}

static TupleTableSlot *
next_row(PlanState *ps)
{
	FilterState *state = (FilterState *) ps;

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(state->child);

		CHECK_FOR_INTERRUPTS();
		if (TupIsNull(slot))
		{
			/* what is left over is not all of the probe side */
			if (state->side != NULL && state->n_rows != state->expected &&
				!state->filter->wants_done)
				gpurhh_join_raise_other_rows(state->side);
			return slot;
		}
		state->n_rows++;
		if (!state->filters || is_done(state, slot) == state->filter->wants_done)
			return slot;
	}
}

/* Has a node filter its child's rows, of which these columns are the key. */
static void
init_keys(FilterState *state, int n_keys, const GpuColumn *keys, Dictionary *dictionary)
{
	/* room for a row of such columns, each with its NULLs, at multiples of 64 bytes */
	Size		bytes = 64 * (2 * n_keys + 1);

	state->filters = true;
	gpurhh_feed_init(&state->feed, n_keys, keys, bytes, 1);
	state->feed.strings.dictionary = dictionary;
	state->feed.defer = ignore_row;
	state->feed.odd_row = ignore_odd_row;
	state->block = palloc(bytes);
}

/*
 * Makes a filter for the rest of a run, in context, from what is known of the parts: core gets the
 * rows of the parts that are not done.  dictionary is that of the run.
 */
PartFilter *
gpurhh_part_filter_create(const JoinInput *input, Dictionary *dictionary, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	PartFilter *filter = palloc0(sizeof(PartFilter));
	const JoinParts *parts = &input->parts;
	const JoinStep *join = &input->joins[parts->join];
	GpuColumn	keys[RHH_MAX_KEYS];

	filter->lowest = input->joins[0].node;
	filter->join = join->node;
	filter->done = parts->done;
	filter->probe.filter = filter->outer.filter = filter->build.filter = filter;
	filter->probe.side = "the probe side";
	filter->probe.expected = parts->probe_rows + parts->left_rows;
	filter->build.side = "a build side";
	filter->build.expected = parts->build_rows;
	init_keys(&filter->outer, join->spec.n_keys, join->outer_keys, dictionary);
	for (uint32 k = 0; k < join->spec.n_keys; k++)
		keys[k] = join->build.columns[join->spec.key_column[k]];
	if (rhh_returns_unmatched(input->join_spec.joins[parts->join].kind))
		init_keys(&filter->build, join->spec.n_keys, keys, dictionary);
	MemoryContextSwitchTo(old);
	return filter;
}

/* Puts the node into the plan, above its child. */
static PlanState *
place(FilterState *state, PlanState *child)
{
	state->child = child;
	state->ps.type = nodeTag(child);
	state->ps.plan = child->plan;
	state->ps.state = child->state;
	state->ps.ExecProcNode = next_row;
	return &state->ps;
}

/* Returns the next row that comes out of the plan top, or an empty slot. */
TupleTableSlot *
gpurhh_part_filter_next(PartFilter *filter, PlanState *top)
{
	PlanState  *hash = innerPlanState(filter->join);
	PlanState  *build = outerPlanState(hash);
	PlanState  *probe = outerPlanState(filter->lowest);
	PlanState  *outer;
	TupleTableSlot *slot;

	/* an error ends the query, and then nothing looks at the plan any more */
	outerPlanState(filter->lowest) = place(&filter->probe, probe);
	outer = outerPlanState(filter->join);
	outerPlanState(filter->join) = place(&filter->outer, outer);
	outerPlanState(hash) = place(&filter->build, build);
	slot = ExecProcNode(top);
	outerPlanState(hash) = build;
	outerPlanState(filter->join) = outer;
	outerPlanState(filter->lowest) = probe;
	return slot;
}

/* Has core forget the hash table of the join, by telling it that something has changed below. */
static void
forget_table(PartFilter *filter)
{
	PlanState  *hash = innerPlanState(filter->join);
	int			unused = list_length(hash->state->es_plannedstmt->paramExecTypes);
	/* it is looked at when the node is asked for its table */
	MemoryContext old = MemoryContextSwitchTo(hash->state->es_query_cxt);

	hash->chgParam = bms_add_member(hash->chgParam, unused);
	MemoryContextSwitchTo(old);
}

/*
 * Before the first row.  Core may have kept a hash table of the whole build side from an earlier run, which
 * it must not use if the rows of parts that are done would come out of it.
 */
void
gpurhh_part_filter_begin(PartFilter *filter, PlanState *top)
{
	PlanState  *hash = innerPlanState(filter->join);

	if (!filter->build.filters)
		return;
	forget_table(filter);
	ExecReScan(top);
	/* while its child is the plan's, and not the filter */
	if (hash->chgParam != NULL)
		ExecReScan(hash);
}

/* The rest has been joined.  From now on core gets the rows of the parts that are done. */
void
gpurhh_part_filter_turn(PartFilter *filter, PlanState *top)
{
	Assert(!filter->build.filters);
	filter->wants_done = true;
	ExecReScan(top);
}

/*
 * The filter is not needed any more, and the plan is about to be rescanned.  Core may keep the hash
 * table of a join for that, but must not if the table lacks rows.
 */
void
gpurhh_part_filter_end(PartFilter *filter)
{
	if (filter->build.filters)
		forget_table(filter);
}
