/*-------------------------------------------------------------------------
 *
 * left_over.c
 *		Rows of the probe side that core joins, because no device can.
 *
 * A row may have something that no column can have: a numeric that is not as its type
 * declares, or a string for which the dictionary has no room.  Such rows are kept, and
 * go to disk if there are many.  When the scan has come to its end, core's joins are
 * asked for their rows after all; but the outer side of the lowest join is not the scan
 * then.  It is a node made here, which returns the rows that were kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "exec/join_input.h"

struct LeftOver
{
	Tuplestorestate *store;
	MemoryContext context;
};

/* A plan node that returns rows of a tuplestore. */
typedef struct LeftOverState
{
	PlanState	ps;				/* must be first */
	Tuplestorestate *store;
	TupleTableSlot *read;		/* as it is read */
	TupleTableSlot *row;		/* of the kind that the scan returns */
} LeftOverState;

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

/*
 * Has core join the rows, and calls add() with each row that comes out of the plan top.
 * lowest is the join whose outer side is the probe side; its build sides have not been
 * read by core, or have been rescanned.  The rows are gone then.
 */
void
gpurhh_left_over_join(LeftOver *rows, HashJoinState *lowest, PlanState *top, void *arg,
					  void (*add)(void *arg, TupleTableSlot *slot))
{
	PlanState  *scan = outerPlanState(lowest);
	EState	   *estate = scan->state;
	MemoryContext old = MemoryContextSwitchTo(rows->context);
	TupleDesc	desc = ExecGetResultType(scan);
	LeftOverState *state = palloc0(sizeof(LeftOverState));
	TupleTableSlot *slot;

	state->ps.type = nodeTag(scan);
	state->ps.plan = scan->plan;
	state->ps.state = estate;
	state->ps.ExecProcNode = next_row;
	state->store = rows->store;
	state->read = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	state->row = MakeSingleTupleTableSlot(desc, ExecGetResultSlotOps(scan, NULL));
	MemoryContextSwitchTo(old);

	/* an error ends the query, and then nothing looks at the plan any more */
	outerPlanState(lowest) = &state->ps;
	for (slot = ExecProcNode(top); !TupIsNull(slot); slot = ExecProcNode(top))
		add(arg, slot);
	outerPlanState(lowest) = scan;
	ExecDropSingleTupleTableSlot(state->read);
	ExecDropSingleTupleTableSlot(state->row);
	tuplestore_end(rows->store);
	rows->store = NULL;
}
