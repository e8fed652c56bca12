/*-------------------------------------------------------------------------
 *
 * agg_state.h
 *		What the files of the node GpuHashAgg share: agg_exec.c has its methods,
 *		agg_input.c reads what is grouped, agg_groups.c returns groups.
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
#include "exec/levels.h"
#include "exec/odd_arguments.h"
#include "exec/parallel.h"
#include "scan/scan.h"

typedef enum EmitPhase
{
	EMIT_NOT_READ,				/* the input has not been read */
	EMIT_DEVICE,
	EMIT_HOST,
	EMIT_LEVEL,
	EMIT_DONE
} EmitPhase;

typedef struct GpuAggState
{
	CustomScanState css;		/* must be first */

	/* from the plan */
	int			n_columns;
	GpuColumn	columns[RHH_MAX_COLUMNS];
	rhh_map_spec spec;
	PageFeed   *pages;			/* reads the child's pages; NULL: it cannot */
	Level	   *second_level;	/* the second level; NULL: there is none */
	int			n_shown_keys;	/* the first ones; others are the second level's */
	StringWords strings;		/* of the first level's groups */
	OddPlan    *odd_plan;		/* NULL: no argument can have odd values */
	Level	   *returned_level; /* of the run: what is being returned, or NULL */
	Emit		emit;
	ExprState  *having;			/* that emit computes; else it is ps.qual */
	bool		leader_emits;	/* alone, if the plan runs in parallel */
	int			n_strings;		/* columns that may need a dictionary: of strings,
								 * and numeric keys; below, 0: nothing is set */
	bool		has_candidates; /* some go through candidates.c */
	TupleTableSlot *deferred_slot;

	/* of a parallel plan, while its DSM segment lasts */
	GpuAggShared *shared;		/* NULL: not parallel */
	MemoryContext shared_context;
	Dictionary *shared_dictionary;	/* in shared_context, or NULL */

	/* of one execution, in run_context */
	MemoryContext run_context;
	EmitPhase	phase;
	Channel    *channel;		/* NULL: no device */
	bool		channel_shared; /* with participants; in shared_context */
	ChannelArea *area;			/* that counts what the run does, also once the
								 * channel has been closed; NULL: it had none */
	bool		has_table;		/* there are groups of a device to be read */
	LevelPlan  *on_device;		/* the second level, which the device makes; the
								 * host table is of it then */
	HostTable  *host;			/* NULL until it is needed */
	Dictionary *dictionary;		/* shared_dictionary, or in pass_context */
	Deferred   *deferred;		/* NULL: no row was */
	bool		odd;			/* a key may be odd (dictionary.c), */
	bool		merged;			/* and the groups have been put together */
	OddValues  *odd_arguments;	/* see odd_arguments.c; NULL: none yet */
	uint64		spilled_before; /* records, by host tables of earlier passes */
	MemoryContext pass_context; /* until the next pass over deferred rows */
	ChannelResult chunk;
	uint32		chunk_next;		/* next group in the chunk */

	BufFile    *late_file;		/* see agg_parallel.c */
	BufFile    *choice_file;	/* see refused_strings.c */
	MemoryContext choice_context;	/* of one string that goes there */
	bool		copies;			/* batches are made in memory of our own, as what
								 * gives rows may itself wait for a block */
	bool		stays;			/* no query was opened, for the load is high; but one
								 * is, if the input does not end soon: */
	uint64		stayed_rows;	/* after so many */
	uint32		capacity_rows;	/* of the batches fed */
	Reading    *reading;		/* see load.c */
	bool		in_pool;		/* the batch being made is in a block */
	bool		waits;			/* the last one found a block; a rescan does not
								 * wait anew where it did not */
	uint64		n_calls;		/* of exec_agg() */
	instr_time	emission_start; /* the input has been read */
	double		emit_ms_before; /* emit times until then */

	GpuNodeStats stats;
} GpuAggState;

static inline double
milliseconds_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

/* ---------- agg_exec.c ---------- */

extern void gpurhh_agg_note_feed(GpuAggState *state);
extern void gpurhh_agg_leave_query(GpuAggState *state);

/* ---------- agg_input.c ---------- */

extern void gpurhh_agg_set_limits(GpuAggState *state, rhh_map_spec *spec);
extern Channel *gpurhh_agg_open_query(GpuAggState *state,
									  MemoryContext context);
extern bool gpurhh_agg_stays(GpuAggState *state, double rows);
extern void gpurhh_agg_use_dictionary(GpuAggState *state,
									  Dictionary *dictionary);
extern HostTable *gpurhh_agg_host_table(GpuAggState *state);
extern bool gpurhh_agg_read_input(GpuAggState *state);
extern bool gpurhh_agg_next_pass(GpuAggState *state);

/* ---------- agg_groups.c ---------- */

extern void gpurhh_agg_note_device(GpuAggState *state);
extern const uint64 *gpurhh_agg_next_groups(GpuAggState *state, Size *stride,
											uint32 *n);

/* ---------- agg_rights.c ---------- */

extern void gpurhh_check_rights(CustomScan *cscan, bool explain_only);

/* ---------- refused_strings.c ---------- */

extern void gpurhh_choice_group(const rhh_map_spec *spec,
								const StringWords *strings, int n_shown_keys,
								const Feed *feed, uint32 row, int column,
								const char *data, uint32 length, bool odd,
								MemoryContext context, uint64 *words);
extern void gpurhh_choices_save(GpuAggShared *shared, BufFile **file,
								const StringWords *strings,
								const uint64 *words, int n_words);
extern void gpurhh_choices_close(BufFile **file);
extern void gpurhh_choices_read(GpuAggShared *shared,
								const StringWords *strings, int n_words,
								Level *level);

/* ---------- explain.c ---------- */

extern void gpurhh_explain_agg(CustomScanState *node, List *ancestors,
							   ExplainState *es, const GpuNodeStats *stats);

#endif							/* GPURHH_EXEC_AGG_STATE_H */
