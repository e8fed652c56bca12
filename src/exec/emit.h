/*-------------------------------------------------------------------------
 *
 * emit.h
 *		How groups become rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_EMIT_H
#define GPURHH_EXEC_EMIT_H

#include "nodes/execnodes.h"

#include "exec/odd_arguments.h"

/* Groups decoded at a time: enough to forget the setup, few enough for L1. */
#define GPURHH_EMIT_WINDOW 256

typedef struct EmitColumn EmitColumn;

/* How groups become rows, and the window of groups that become rows now. */
typedef struct Emit
{
	int			n_columns;
	EmitColumn *columns;
	bool		allocates;		/* some values need memory */
	int			n_quals;		/* of HAVING; 0: it is not computed here */
	VectorExpr **quals;
	Vector	   *vectors;		/* what it looks at */
	bool		having_numerics;	/* results that are numerics among that */

	OddValues  *odd_arguments;	/* the caller sets this before the groups that
								 * have some; NULL: none has */

	/* the window */
	const Dictionary *dictionary;	/* of its groups' strings */
	const uint64 *words;
	Size		stride;
	uint32		next;			/* row */
	uint32		n_rows;
	bool		recheck;		/* core has to evaluate HAVING for each */
	uint8		active[GPURHH_EMIT_WINDOW];
	uint16		rows[GPURHH_EMIT_WINDOW];	/* that passed HAVING, if any */
	const OddState *odd_states[GPURHH_EMIT_WINDOW]; /* if odd_arguments is not NULL */
} Emit;

extern void gpurhh_emit_init(Emit *emit, List *outputs,
							 const rhh_map_spec *spec, const OddPlan *odd);
extern bool gpurhh_emit_having(Emit *emit, List *having, PlanState *parent);
extern int	gpurhh_emit_conditions(const Emit *emit, const rhh_map_spec *spec, List *having,
								   rhh_group_condition *conditions);
extern void gpurhh_emit_reset(Emit *emit);
extern int	gpurhh_emit_window(Emit *emit, const Dictionary *dictionary,
							   const uint64 *words, Size stride, uint32 n);
extern void gpurhh_emit_row(Emit *emit, ScanState *ss);

#endif							/* GPURHH_EXEC_EMIT_H */
