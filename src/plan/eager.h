/*-------------------------------------------------------------------------
 *
 * eager.h
 *		A table that is grouped before it is joined.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_PLAN_EAGER_H
#define GPURHH_PLAN_EAGER_H

#include "nodes/parsenodes.h"

typedef struct EagerTable
{
	int			table;			/* its number in the range table */
	Bitmapset  *group_columns;	/* by attribute numbers less
								 * FirstLowInvalidHeapAttributeNumber */
	Query	   *subquery;		/* that groups it.  Its columns are these in their order,
								 * and then aggregates, as they are needed */
	bool		failed;			/* an aggregate needs rows that are not grouped */
} EagerTable;

/* ---------- eager_agg.c ---------- */

extern Bitmapset *gpurhh_eager_columns(Node *expr, int table);

/* ---------- eager_sums.c ---------- */

extern Node *gpurhh_eager_sums(EagerTable *eager, Node *expr);

#endif							/* GPURHH_PLAN_EAGER_H */
