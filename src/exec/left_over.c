/*-------------------------------------------------------------------------
 *
 * left_over.c
 *		Rows of the probe side that core joins, because no device can.
 *
 * A row may have something that no column can have: a numeric that is not as its type
 * declares, or a string for which the dictionary has no room.  Such rows are kept, and
 * go to disk if there are many.  When the scan has come to its end, core's joins are
 * asked for their rows after all; but the outer side of the lowest join is not the scan
 * then.  It is a node made here, which returns the rows that were kept.  It is in the plan
 * only while core runs, for others go through plans, too, and know no such node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "exec/join_input.h"

/* A plan node that returns rows of a tuplestore. */
typedef struct LeftOverState
{
	PlanState	ps;				/* must be first */
	Tuplestorestate *store;
	TupleTableSlot *read;		/* as it is read */
	TupleTableSlot *row;		/* of the kind that the scan returns */
} LeftOverState;

struct LeftOver
{
	Tuplestorestate *store;
	MemoryContext context;
	LeftOverState *state;		/* from the first row that is joined on */
};

/* The rows live in context, and so does what is returned. */
LeftOver *
gpurhh_left_over_create(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	LeftOver   *rows = palloc0(sizeof(LeftOver));

	rows->store = tuplestore_begin_heap(false, false, work_mem);
	rows->context = context;
	MemoryContextSwitchTo(old);
	return rows;
}

/* Copies a row of the probe side's plan. */
void
gpurhh_left_over_add(LeftOver *rows, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(rows->context);

	tuplestore_puttupleslot(rows->store, slot);
	MemoryContextSwitchTo(old);
}

static TupleTableSlot *
next_row(PlanState *ps)
{
	LeftOverState *state = (LeftOverState *) ps;

	CHECK_FOR_INTERRUPTS();
	if (!tuplestore_gettupleslot(state->store, true, false, state->read))
		return ExecClearTuple(state->row);
	/* the join's expressions were compiled for slots of the scan's kind */
	ExecForceStoreMinimalTuple(ExecFetchSlotMinimalTuple(state->read, NULL),
							   state->row, false);
	return state->row;
}

/* Makes the node that stands for scan. */
static LeftOverState *
make_state(LeftOver *rows, PlanState *scan)
{
	MemoryContext old = MemoryContextSwitchTo(rows->context);
	TupleDesc	desc = ExecGetResultType(scan);
	LeftOverState *state = palloc0(sizeof(LeftOverState));

	state->ps.type = nodeTag(scan);
	state->ps.plan = scan->plan;
	state->ps.state = scan->state;
	state->ps.ExecProcNode = next_row;
	state->store = rows->store;
	state->read = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	state->row = MakeSingleTupleTableSlot(desc, ExecGetResultSlotOps(scan, NULL));
	MemoryContextSwitchTo(old);
	return state;
}

/*
 * Has core join the rows: returns the next row that comes out of the plan top, or an empty
 * slot, and then the rows are gone.  lowest is the join whose outer side is the probe side;
 * its build sides have not been read by core, or have been rescanned before the first call.
 * filter: which parts of a build side the rows are joined with; NULL: with all.
 */
TupleTableSlot *
gpurhh_left_over_next(LeftOver *rows, PartFilter *filter, HashJoinState *lowest, PlanState *top)
{
	PlanState  *scan = outerPlanState(lowest);
	TupleTableSlot *slot;

	if (rows->state == NULL)
		rows->state = make_state(rows, scan);
	/* an error ends the query, and then nothing looks at the plan any more */
	outerPlanState(lowest) = &rows->state->ps;
	slot = filter != NULL ? gpurhh_part_filter_next(filter, top) : ExecProcNode(top);
	outerPlanState(lowest) = scan;
	if (TupIsNull(slot))
	{
		ExecDropSingleTupleTableSlot(rows->state->read);
		ExecDropSingleTupleTableSlot(rows->state->row);
		tuplestore_end(rows->store);
		rows->store = NULL;
	}
	return slot;
}

/* Frees rows that need not be joined any more, if they are not gone. */
void
gpurhh_left_over_free(LeftOver *rows)
{
	if (rows->store != NULL)
		tuplestore_end(rows->store);
	rows->store = NULL;
}
