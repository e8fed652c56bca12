/*-------------------------------------------------------------------------
 *
 * plan_info.h
 *		What the files of the planner share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_PLAN_PLAN_INFO_H
#define GPURHH_PLAN_PLAN_INFO_H

#include "nodes/pathnodes.h"

#include "plan/plan.h"
#include "types/types.h"

/* ---------- agg_path.c ---------- */

/* What is gathered about one GROUP BY. */
typedef struct PlanInfo
{
	PlannerInfo *root;
	bool		explain;		/* somebody will read the reason */
	char	   *refusal;		/* not NULL: why it cannot be done */

	UpperRelationKind stage;	/* of planning: what groups */
	List	   *clause;			/* of SortGroupClause */
	List	   *full_clause;	/* the same before the planner reduced it */
	PathTarget *target;			/* what is to be computed */
	RelOptInfo *input_rel;		/* what below is of */
	Path	   *input;
	Path	   *partial_input;	/* for parallel plans; may be NULL */

	List	   *keys;			/* grouping expressions */
	int			n_shown_keys;	/* the first of the keys; hidden ones follow */
	List	   *sets;			/* of IntList: which of keys; NIL: one set of all.
								 * One that has all is the first. */
	bool		told_by_reference;	/* some keys are equal, and the scan tuple's
									 * entries have their grouping references */
	List	   *choices;		/* hidden keys: IntList of GpuChoice; or else: */
	List	   *distinct_args;	/* hidden keys: of count(DISTINCT), ... */
	List	   *distinct_states;	/* IntLists of op and hidden key, from 0 */
	bool		one_emitter;	/* some rows are nobody else's to return */
	List	   *redundant;		/* those that the planner took from the keys */
	List	   *aggrefs;		/* distinct Aggrefs of target list and HAVING */
	List	   *groupings;		/* GROUPING()s in them */
	List	   *determined;		/* Vars outside of both, and of redundant */

	PathTarget *child_target;	/* the columns to feed */
	List	   *columns;		/* those fed: IntList of encoding, parameter and
								 * attribute (number in child_target) */
	List	   *key_columns;	/* IntList */
	List	   *states;			/* IntList: op, argument, filter; repeated */
	int			n_states;
	List	   *scan_tlist;		/* custom_scan_tlist */
	List	   *outputs;		/* parallel: IntLists, see plan.h */
} PlanInfo;

/* ---------- refusals.c ---------- */

extern void gpurhh_note_plan(CustomScan *cscan, Plan *child);
extern void gpurhh_note_keys(CustomScan *cscan);

/* ---------- agg_union.c ---------- */

extern bool gpurhh_find_union(PlanInfo *info, RelOptInfo *output_rel);

/* ---------- agg_cost.c ---------- */

extern bool gpurhh_core_is_cheap(PlanInfo *info, RelOptInfo *output_rel);
extern const char *gpurhh_add_agg_paths(PlanInfo *info,
										RelOptInfo *output_rel,
										List *having);

#endif							/* GPURHH_PLAN_PLAN_INFO_H */
