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

/* ---------- plan_nodes.c ---------- */

/* What a CustomPath of GpuHashAgg carries in custom_private, as its only member. */
typedef struct GpuAggPath
{
	ExtensibleNode node;
	GpuAggPlan *plan;			/* what its plan would get */
	List	   *scan_tlist;		/* that plan's custom_scan_tlist */
	List	   *having;			/* conditions that are the node's to evaluate */
	int			grouping;		/* PlanInfo's */
} GpuAggPath;

extern void *gpurhh_make_node(const char *name);

#define gpurhh_make(type) ((type *) gpurhh_make_node(#type))

/* ---------- agg_path.c ---------- */

/* What is gathered about one GROUP BY. */
typedef struct PlanInfo
{
	PlannerInfo *root;
	int			grouping;		/* a number that no other grouping has that this
								 * session plans: its paths and its refusal are
								 * known by it */
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
	bool		told_by_reference;	/* some keys are equal, and the scan tuple's
									 * entries have their grouping references */
	List	   *distinct_args;	/* expressions that are hidden keys */
	bool		one_emitter;	/* some rows are nobody else's to return */
	List	   *redundant;		/* those that the planner took from the keys */
	List	   *aggrefs;		/* distinct Aggrefs of target list and HAVING */
	List	   *groupings;		/* GROUPING()s in them */
	List	   *determined;		/* Vars outside of both, and of redundant */

	PathTarget *child_target;	/* the columns to feed */
	List	   *scan_tlist;		/* custom_scan_tlist */
	GpuAggPlan *plan;			/* what the node is to do; its estimates and
								 * leader_emits are filled in with the paths */
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
