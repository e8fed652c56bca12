/*-------------------------------------------------------------------------
 *
 * agg_state.h
 *		The state of the node GpuHashAgg, which its files share.
 *
 * The state consists of structs of different lifetimes, each of which says who
 * makes it and what frees it:
 *
 *		AggPlan			as long as the node
 *		AggParallel		of a parallel plan
 *		AggRun			one execution of the node: until its end or a rescan
 *			AggInput		while the child is read
 *			AggPass			until the next pass over deferred rows
 *			AggStage		one for each level of groups (stage.h)
 *
 * agg_exec.c has the node's methods, agg_input.c reads what is grouped, and
 * agg_groups.c returns groups.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_AGG_STATE_H
#define GPURHH_EXEC_AGG_STATE_H

#include "commands/explain.h"
#include "nodes/execnodes.h"
#include "portability/instr_time.h"

#include "batch/batch.h"
#include "channel/channel.h"
#include "compat.h"
#include "exec/emit.h"
#include "exec/host_table.h"
#include "exec/join_input.h"
#include "exec/levels.h"
#include "exec/odd_arguments.h"
#include "exec/page_batches.h"
#include "exec/parallel.h"
#include "exec/stage.h"
#include "scan/scan.h"

/*
 * What the plan says.  read_plan() makes it in the query's context when the node is
 * started, and nothing in it changes but the limits in the maps' specs, which are
 * those of the settings at the time when a query is opened.
 */
typedef struct AggPlan
{
	int			n_columns;
	GpuColumn	columns[RHH_MAX_COLUMNS];
	rhh_map_spec spec;			/* of the first stage's map */
	int			n_shown_keys;	/* the first ones; others are for further levels */
	StringWords strings;		/* of the first stage's groups */
	int			n_levels;		/* of groups above the first */
	Level	   *levels[GPURHH_MAX_LEVELS];
	OddPlan    *odd_plan;		/* NULL: no argument can have odd values */
	bool		leader_emits;	/* alone, if the plan runs in parallel */
	int			n_strings;		/* columns that may need a dictionary: of strings,
								 * and numeric keys; if 0, there is none */
	bool		has_candidates; /* some go through candidates.c */
	int			n_conditions;	/* of HAVING, that a device can look at */
	rhh_group_condition conditions[RHH_MAX_CONDITIONS];
} AggPlan;

/*
 * A participant's end of a parallel plan.  The methods that initialize the plan's
 * DSM segment make it, the leader's anew for each run.  What is in the context
 * goes with the next run, or with the node; shutdown_agg() forgets what lies in
 * the segment before that is detached.
 */
typedef struct AggParallel
{
	MemoryContext context;
	GpuAggShared *shared;		/* NULL: not parallel, or the segment has gone */
	Size		bytes;			/* of the leader's: that were estimated for shared */
	Dictionary *dictionary;		/* of all participants; NULL: there is none */
	Channel    *channel;		/* the query that all feed; NULL: no device, or one
								 * participant reads alone.  The first stage uses
								 * it; only close_shared_query() closes it */
} AggParallel;

/*
 * While the child is read.  gpurhh_agg_read_input() fills it in and needs it no more
 * when it returns; release_run() ends what an error left.
 */
typedef struct AggInput
{
	Reading    *reading;		/* counts this session as busy (load.c) */
	TupleTableSlot *first_row;	/* of the child, which has been asked for it; NULL:
								 * it has not, or there is none */
	bool		asked;			/* the child has been asked for the first row */
	bool		last;			/* this participant was the last one to read */
	bool		stays;			/* the query is the session's own, as the load is
								 * high; if the input does not end soon, a query is
								 * opened with the service all the same */
	uint64		stayed_rows;	/* that were read until then */
	uint32		capacity_rows;	/* of the batches that are fed */
	bool		joined;			/* the device does the joins below, and has been given
								 * all rows of the probe side */
	bool		alone;			/* in a parallel plan, this participant has begun anew with
								 * all rows, in a query of its own (ROUNDS_ALONE) */
	bool		in_pool;		/* the batch that is made now is in a block */
	PageBatches *batches;		/* the device reads pages of the child; NULL: it does not */
	char	   *own_block;		/* of this session, where batches are made that are
								 * in none; NULL until it is needed */
	BufFile    *late_file;		/* see agg_parallel.c */
	BufFile    *choice_file;	/* see unnumbered_strings.c */
	MemoryContext choice_context;	/* of one string that goes there */
} AggInput;

/*
 * The rows that are read at a time: all of the child's, and then, in each pass, a
 * part of those that were deferred.  The dictionary is new for each of them.  It is not
 * the first stage's, because groups of further stages have strings by its numbers, too.
 * Once a level, or STAGE_MERGED, keeps all strings itself, there is none any more.
 */
typedef struct AggPass
{
	MemoryContext context;		/* in the run's; reset by the next pass.  NULL: no
								 * column needs a dictionary */
	Dictionary *dictionary;		/* in context, or the parallel plan's; NULL: there
								 * is none, or strings are kept elsewhere */
} AggPass;

/*
 * Between a node and the node above it that groups its groups (chain.c).  The node above
 * makes it when it is started; it lasts as long as both.
 */
typedef struct AggChain
{
	struct GpuAggState *below;
	LevelPlan	plan;			/* the map of the node above, and how its rows are
								 * made of groups of the node below */
	bool		offered;		/* the query of the node below was opened with it */
	AggStage   *above;			/* the first stage of the node above; NULL: that does
								 * not ask for its input now */
	bool		taken;			/* in this run the device has made the map */
} AggChain;

/* What is left to do in a run. */
typedef enum AggPhase
{
	AGG_UNREAD,					/* to read the input */
	AGG_RETURNING,				/* to return groups */
	AGG_DONE					/* nothing */
} AggPhase;

/*
 * One execution.  start_run() makes it for the first row, release_run() frees it: at
 * a rescan, or at the end.  An error resets context, which closes queries, and
 * the resource owner closes temporary files.
 */
typedef struct AggRun
{
	MemoryContext context;		/* as long as the node, and empty between runs */
	AggPhase	phase;
	int			n_stages;		/* 0: the run has not been started */
	AggStage	stages[GPURHH_MAX_STAGES];
	AggInput	input;
	AggPass		pass;
	Deferred   *deferred;		/* rows for later passes; NULL: there are none */
	bool		odd;			/* a key may be odd (dictionary.c) */
	OddValues  *odd_values;		/* see odd_arguments.c; NULL: none yet */
	uint64		spilled_noted;	/* records on disk that have been counted */
} AggRun;

/* For EXPLAIN ANALYZE: time to form rows, by sampling (exec_agg()). */
typedef struct AggClock
{
	uint64		n_calls;		/* of exec_agg(), in all runs */
	instr_time	emission_start; /* of this run: the input had been read */
	double		emit_ms_before; /* emit times until then */
} AggClock;

typedef struct GpuAggState
{
	CustomScanState css;		/* must be first */

	AggPlan		plan;
	AggParallel parallel;
	AggRun		run;

	/* as long as the node */
	PageFeed   *pages;			/* reads the child's pages; NULL: it cannot */
	JoinInput  *joins;			/* the device may do the joins below; NULL: it cannot */
	bool		joins_open;		/* the query of this run was opened with them */
	AggChain   *chain_below;	/* the child's groups may be this node's rows without
								 * coming here; NULL: they may not */
	AggChain   *chain_above;	/* this node's groups may be those of a node above */
	bool		copies;			/* batches are made in memory of our own and then
								 * copied, as what gives rows may itself wait for a
								 * block */
	bool		waits;			/* the last batch found a block.  Where it did not,
								 * a rescan does not wait anew */
	TupleTableSlot *deferred_slot;
	Emit		emit;
	ExprState  *having;			/* that emit computes; else it is ps.qual */
	AggClock	clock;
	GpuNodeStats stats;
} GpuAggState;

/* ---------- agg_exec.c ---------- */

extern bool gpurhh_is_agg(const PlanState *node);
extern void gpurhh_agg_note_feed(GpuAggState *state);

/* ---------- agg_input.c ---------- */

extern Channel *gpurhh_agg_open_query(GpuAggState *state, bool joins,
									  MemoryContext context);
extern void gpurhh_agg_note_joins_why(GpuAggState *state, const char *why);
extern bool gpurhh_agg_stays(GpuAggState *state, double rows);
extern void gpurhh_agg_end_pass(GpuAggState *state);
extern bool gpurhh_agg_read_input(GpuAggState *state);
extern bool gpurhh_agg_next_pass(GpuAggState *state);

/* ---------- chain.c ---------- */

extern void gpurhh_chain_create(GpuAggState *above);
extern LevelPlan *gpurhh_chain_plan(const GpuAggState *below);
extern bool gpurhh_chain_give(GpuAggState *below, bool whole);
extern bool gpurhh_chain_take(GpuAggState *above, TupleTableSlot **row);

/* ---------- agg_groups.c ---------- */

extern void gpurhh_agg_note_device(GpuAggState *state);
extern const uint64 *gpurhh_agg_next_groups(GpuAggState *state, Size *stride,
											uint32 *n);

/* ---------- agg_rights.c ---------- */

extern void gpurhh_check_rights(CustomScan *cscan, bool explain_only);

/* ---------- unnumbered_strings.c ---------- */

extern void gpurhh_unnumbered_group(const rhh_map_spec *spec,
									const StringWords *strings, int n_shown_keys,
									const Feed *feed, uint32 row, int column,
									const char *data, uint32 length, bool odd,
									MemoryContext context, uint64 *words);
extern void gpurhh_unnumbered_save(GpuAggShared *shared, BufFile **file,
								   const StringWords *strings,
								   const uint64 *words, int n_words);
extern void gpurhh_unnumbered_close(BufFile **file);
extern void gpurhh_unnumbered_read(GpuAggShared *shared,
								   const StringWords *strings, int n_words,
								   Level *level);

#endif							/* GPURHH_EXEC_AGG_STATE_H */
