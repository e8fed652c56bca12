/*-------------------------------------------------------------------------
 *
 * share_rows.c
 *		The node GpuShareRows: each participant of a parallel plan gets all rows of a plan
 *		that they run together.
 *
 * A partial plan gives each participant some of its rows.  The plan below a Hash node of
 * ours has to be complete in each, so that each can do core's join by itself.  This node
 * stands between the two.  It is what makes the groups of a GpuHashAgg, or the rows of other
 * joins, a build side that all participants make together.
 *
 *		attach -> read the child to its end, and write its rows to a file -> detach
 *
 * Once one participant has come to the child's end and all that have attached have detached,
 * the files have all rows; nobody attaches any more.  Then each participant reads all files,
 * as often as it likes.  Whoever attaches returns no row to the executor before it detaches,
 * so it cannot be stuck in front of a full tuple queue, and others may wait for it.
 *
 * Where the device does the joins it has one map for all participants, and needs each row
 * once.  So join_input.c has each participant feed the rows while it writes them
 * (gpurhh_share_rows_begin, gpurhh_share_rows_end), and nobody waits here.  The files are
 * read only if core has to join rows.
 *
 * Files and counters are in the parallel plan's DSM segment, or go with it.  Where there is
 * none, the participant that there is gets all rows of the child, and they go through.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "pgstat.h"
#include "storage/buffile.h"
#include "storage/condition_variable.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"

#include "compat.h"
#include "exec/exec.h"
#include "exec/join_input.h"
#include "plan/plan.h"

/* In the parallel plan's DSM segment. */
typedef struct RowsShared
{
	SharedFileSet files;
	dsm_handle	segment;		/* that this lies in */
	ConditionVariable complete; /* closed has been set */

	slock_t		mutex;			/* guards what follows */
	int			n_attached;
	int			n_files;		/* which are complete when closed is set */
	bool		closed;
} RowsShared;

typedef enum SharePhase
{
	SHARE_UNREAD,				/* this participant has asked the child for nothing */
	SHARE_PART,					/* it reads its part, and returns that */
	SHARE_ALL					/* it returns the rows of all files */
} SharePhase;

typedef struct ShareState
{
	CustomScanState css;		/* must be first */
	RowsShared *shared;			/* NULL: nobody else runs the plan */
	SharePhase	phase;
	bool		attached;
	bool		ended;			/* the child has no more rows: not all nodes can be asked again */
	BufFile    *file;			/* that is written, or read; NULL: none yet */
	int			next_file;		/* to be read after that */
	MinimalTuple tuple;			/* memory for a row that is read, and its size */
	Size		tuple_bytes;
} ShareState;

static Node *create_share_state(CustomScan *cscan);
static void begin_share(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_share(CustomScanState *node);
static void end_share(CustomScanState *node);
static void rescan_share(CustomScanState *node);
static Size estimate_dsm_share(CustomScanState *node, ParallelContext *pcxt);
static void initialize_dsm_share(CustomScanState *node, ParallelContext *pcxt,
								 void *coordinate);
static void reinitialize_dsm_share(CustomScanState *node, ParallelContext *pcxt,
								   void *coordinate);
static void initialize_worker_share(CustomScanState *node, shm_toc *toc, void *coordinate);
static void shutdown_share(CustomScanState *node);

static const CustomScanMethods share_scan_methods = {
	.CustomName = GPUSHARE_NODE_NAME,
	.CreateCustomScanState = create_share_state,
};

static const CustomExecMethods share_exec_methods = {
	.CustomName = GPUSHARE_NODE_NAME,
	.BeginCustomScan = begin_share,
	.ExecCustomScan = exec_share,
	.EndCustomScan = end_share,
	.ReScanCustomScan = rescan_share,
	.EstimateDSMCustomScan = estimate_dsm_share,
	.InitializeDSMCustomScan = initialize_dsm_share,
	.ReInitializeDSMCustomScan = reinitialize_dsm_share,
	.InitializeWorkerCustomScan = initialize_worker_share,
	.ShutdownCustomScan = shutdown_share,
};

void
gpurhh_register_share_methods(void)
{
	RegisterCustomScanMethods(&share_scan_methods);
}

static Node *
create_share_state(CustomScan *cscan)
{
	ShareState *state = (ShareState *) newNode(sizeof(ShareState), T_CustomScanState);

	state->css.methods = &share_exec_methods;
	return (Node *) state;
}

static void
begin_share(CustomScanState *node, EState *estate, int eflags)
{
	outerPlanState(node) = ExecInitNode(outerPlan(node->ss.ps.plan), estate, eflags);
}

/* Is a plan such a node? */
bool
gpurhh_is_share_rows(const PlanState *node)
{
	return IsA(node, CustomScanState) &&
		((const CustomScanState *) node)->methods == &share_exec_methods;
}

/* ---------- this participant's part ---------- */

/* Begins with the part, unless the rows are complete: then the part is empty. */
static void
attach(ShareState *state)
{
	RowsShared *shared = state->shared;

	SpinLockAcquire(&shared->mutex);
	state->attached = !shared->closed;
	if (state->attached)
		shared->n_attached++;
	SpinLockRelease(&shared->mutex);
	state->ended = !state->attached;
	state->phase = SHARE_PART;
}

static BufFile *
create_file(ShareState *state)
{
	RowsShared *shared = state->shared;
	char		name[32];
	MemoryContext old;
	BufFile    *file;
	int			number;

	/* so that the files outlive a leader that goes first */
	if (IsParallelWorker())
		SharedFileSetAttach(&shared->files, dsm_find_mapping(shared->segment));
	SpinLockAcquire(&shared->mutex);
	number = shared->n_files++;
	SpinLockRelease(&shared->mutex);
	snprintf(name, sizeof(name), "rows.%d", number);
	old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	file = BufFileCreateFileSet(&shared->files.fs, name);
	MemoryContextSwitchTo(old);
	return file;
}

/* Returns the child's next row, as this node's, after it has been written; NULL: there is none. */
static TupleTableSlot *
next_of_part(ShareState *state)
{
	TupleTableSlot *result = state->css.ss.ss_ScanTupleSlot;
	int			natts = result->tts_tupleDescriptor->natts;
	TupleTableSlot *slot;
	MinimalTuple tuple;
	bool		should_free;

	if (state->ended)
		return NULL;
	slot = ExecProcNode(outerPlanState(state));
	state->ended = TupIsNull(slot);
	if (state->ended)
		return NULL;
	if (state->file == NULL)
		state->file = create_file(state);
	tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	BufFileWrite(state->file, tuple, tuple->t_len);
	if (should_free)
		pfree(tuple);
	Assert(slot->tts_tupleDescriptor->natts == natts);
	slot_getallattrs(slot);
	ExecClearTuple(result);
	memcpy(result->tts_values, slot->tts_values, natts * sizeof(Datum));
	memcpy(result->tts_isnull, slot->tts_isnull, natts * sizeof(bool));
	return ExecStoreVirtualTuple(result);
}

/* Ends the part.  What is left of the child's rows is for the others as well. */
static void
detach(ShareState *state)
{
	RowsShared *shared = state->shared;
	bool		last;

	while (next_of_part(state) != NULL)
		CHECK_FOR_INTERRUPTS();
	if (state->file != NULL)
	{
		uint32		end = 0;

		BufFileWrite(state->file, &end, sizeof(end));
		BufFileExportFileSet(state->file);
		BufFileClose(state->file);
		state->file = NULL;
	}
	state->phase = SHARE_ALL;
	state->next_file = 0;
	if (!state->attached)
		return;
	state->attached = false;
	SpinLockAcquire(&shared->mutex);
	last = --shared->n_attached == 0;
	shared->closed |= last;
	SpinLockRelease(&shared->mutex);
	if (last)
		ConditionVariableBroadcast(&shared->complete);
}

/*
 * The rows that the node returns next are this participant's part.  False: there are no other
 * participants, so they are all.
 */
bool
gpurhh_share_rows_begin(PlanState *node)
{
	ShareState *state = (ShareState *) node;

	if (state->shared == NULL)
		return false;
	/* what ExecProcNode() would do first */
	if (node->chgParam != NULL)
		ExecReScan(node);
	attach(state);
	return true;
}

/* That is done; not all of them need have been asked for.  From here on it returns all rows. */
void
gpurhh_share_rows_end(PlanState *node)
{
	detach((ShareState *) node);
}

/* ---------- all rows ---------- */

static bool
is_closed(RowsShared *shared)
{
	bool		closed;

	SpinLockAcquire(&shared->mutex);
	closed = shared->closed;
	SpinLockRelease(&shared->mutex);
	return closed;
}

static void
wait_for_others(RowsShared *shared)
{
	ConditionVariablePrepareToSleep(&shared->complete);
	while (!is_closed(shared))
		ConditionVariableSleep(&shared->complete, PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
}

/* Opens the next file; false: there is none. */
static bool
open_file(ShareState *state)
{
	RowsShared *shared = state->shared;
	char		name[32];
	MemoryContext old;

	wait_for_others(shared);
	if (state->next_file == shared->n_files)
		return false;
	snprintf(name, sizeof(name), "rows.%d", state->next_file++);
	old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	state->file = BufFileOpenFileSet(&shared->files.fs, name, O_RDONLY, false);
	MemoryContextSwitchTo(old);
	return true;
}

static void
close_file(ShareState *state)
{
	if (state->file != NULL)
		BufFileClose(state->file);
	state->file = NULL;
}

/* The next row of all files; NULL: that were all. */
static TupleTableSlot *
next_of_all(ShareState *state)
{
	TupleTableSlot *result = state->css.ss.ss_ScanTupleSlot;
	uint32		length;

	CHECK_FOR_INTERRUPTS();
	for (;;)
	{
		if (state->file == NULL && !open_file(state))
			return NULL;
		gpurhh_buffile_read(state->file, &length, sizeof(length));
		if (length > 0)
			break;
		close_file(state);
	}
	ExecClearTuple(result);
	if (length > state->tuple_bytes)
	{
		if (state->tuple != NULL)
			pfree(state->tuple);
		state->tuple_bytes = 2 * (Size) length;
		state->tuple = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt,
										  state->tuple_bytes);
	}
	state->tuple->t_len = length;
	gpurhh_buffile_read(state->file, (char *) state->tuple + sizeof(length),
						length - sizeof(length));
	/* the slot is virtual, and refers to the tuple */
	ExecForceStoreMinimalTuple(state->tuple, result, false);
	return result;
}

/* ---------- the executor ---------- */

static TupleTableSlot *
exec_share(CustomScanState *node)
{
	ShareState *state = (ShareState *) node;

	if (state->shared == NULL)
	{
		TupleTableSlot *slot = ExecProcNode(outerPlanState(node));

		return TupIsNull(slot) ? NULL : ExecCopySlot(node->ss.ss_ScanTupleSlot, slot);
	}
	if (state->phase == SHARE_UNREAD)
	{
		attach(state);
		detach(state);
	}
	return state->phase == SHARE_PART ? next_of_part(state) : next_of_all(state);
}

static void
rescan_share(CustomScanState *node)
{
	ShareState *state = (ShareState *) node;
	PlanState  *child = outerPlanState(node);

	Assert(!state->attached);
	close_file(state);
	state->next_file = 0;
	ExecClearTuple(node->ss.ss_ScanTupleSlot);
	/* a new run of all participants; the child is rescanned by its first use */
	if (child->chgParam != NULL)
		state->phase = SHARE_UNREAD;
	else if (state->shared == NULL)
		ExecReScan(child);
}

static void
end_share(CustomScanState *node)
{
	close_file((ShareState *) node);
	ExecEndNode(outerPlanState(node));
}

/* ---------- parallel plans ---------- */

static Size
estimate_dsm_share(CustomScanState *node, ParallelContext *pcxt)
{
	return sizeof(RowsShared);
}

static void
initialize_dsm_share(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	ShareState *state = (ShareState *) node;
	RowsShared *shared = coordinate;

	/* without a segment there are no workers */
	if (pcxt->seg == NULL)
		return;
	memset(shared, 0, sizeof(RowsShared));
	SharedFileSetInit(&shared->files, pcxt->seg);
	shared->segment = dsm_segment_handle(pcxt->seg);
	ConditionVariableInit(&shared->complete);
	SpinLockInit(&shared->mutex);
	state->shared = shared;
	state->phase = SHARE_UNREAD;
}

/* Leader: before the workers of each further run start.  Nobody else uses the state now. */
static void
reinitialize_dsm_share(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	ShareState *state = (ShareState *) node;
	RowsShared *shared = state->shared;

	if (shared == NULL)
		return;
	close_file(state);
	if (shared->n_files > 0)
		SharedFileSetDeleteAll(&shared->files);
	shared->n_attached = shared->n_files = 0;
	shared->closed = false;
	state->phase = SHARE_UNREAD;
}

static void
initialize_worker_share(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	((ShareState *) node)->shared = coordinate;
}

/* The DSM segment is about to go. */
static void
shutdown_share(CustomScanState *node)
{
	ShareState *state = (ShareState *) node;

	close_file(state);
	state->shared = NULL;
}
