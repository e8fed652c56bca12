/*-------------------------------------------------------------------------
 *
 * plan.h
 *		What the planner decides about GpuHashAgg, and tells others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_PLAN_PLAN_H
#define GPURHH_PLAN_PLAN_H

#include "nodes/plannodes.h"

/* ---------- agg_path.c ---------- */

/* What CustomScans and their methods are known by. */
#define GPUAGG_NODE_NAME	"GpuHashAgg"

/* What the CustomScan's custom_private holds; see agg_path.c. */
enum GpuAggPrivateIndex
{
	GPUAGG_PRIVATE_COLUMNS,		/* List of IntList: of each fed column the
								 * encoding, parameter and attribute */
	GPUAGG_PRIVATE_KEYS,		/* IntList: fed columns that are keys */
	GPUAGG_PRIVATE_STATES,		/* IntList: op, argument, filter; repeated */
	GPUAGG_PRIVATE_OUTPUTS,		/* List of IntList: GpuOutput, encoding, parameter,
								 * aggregate's function or 0, operands; a
								 * GROUPING()'s are its values */
	GPUAGG_PRIVATE_GROUPS,		/* Float: estimated number of groups */
	GPUAGG_PRIVATE_LEADER_EMITS,	/* Integer: of a parallel plan's participants,
									 * only the leader */
	GPUAGG_PRIVATE_SHOWN_KEYS,	/* Integer: keys that are outputs, the first */
	GPUAGG_PRIVATE_SETS,		/* List of IntList: keys of each grouping set;
								 * NIL: one, of all keys */
	GPUAGG_PRIVATE_CHOICES,		/* IntList: of each key behind the shown ones, a
								 * GpuChoice; or else: */
	GPUAGG_PRIVATE_DISTINCT,	/* List of IntList: of each state over a hidden
								 * key its op and the key, from 0 */
	GPUAGG_PRIVATE_SECOND_LEVEL,	/* Float: estimated groups of the second level */
	GPUAGG_PRIVATE_THIRD_LEVEL, /* Float: of the third */
	GPUAGG_PRIVATE_LAST = GPUAGG_PRIVATE_THIRD_LEVEL
};

/* What a column of the scan tuple is made of. */
typedef enum GpuOutput
{
	GPU_OUTPUT_KEY,				/* a grouping column */
	GPU_OUTPUT_ANY,				/* a column that the grouping columns determine, or
								 * a value that the second level chose: it is in
								 * one state of RHH_ANY */
	GPU_OUTPUT_GROUPING,		/* GROUPING(): known from the set */
	GPU_OUTPUT_AGGREGATE		/* an aggregate's states */
} GpuOutput;

/* Where the operands begin in a list of GPUAGG_PRIVATE_OUTPUTS. */
#define GPU_OUTPUT_FIRST_OPERAND 4

extern void gpurhh_init_agg_path(void);

/* ---------- refusals.c ---------- */

typedef struct GpuRefusal
{
	int			statement;		/* 1-based */
	char	   *group_by;
	char	   *reason;
	void	   *path_columns;	/* of a path that was added: it tells the path */
	bool		planned;		/* and the path was chosen, so: no refusal */
} GpuRefusal;

typedef struct GpuRefusalCollector
{
	int			statement;
	List	   *refusals;		/* of GpuRefusal */
	MemoryContext context;
} GpuRefusalCollector;

/*
 * While not NULL, the query that is being planned, and no other that is planned
 * meanwhile, has its refusals collected here.
 */
extern GpuRefusalCollector *gpurhh_refusal_collector;

extern PlannedStmt *gpurhh_plan_and_collect(Query *query, const char *source,
											GpuRefusalCollector *collector);
extern void gpurhh_init_agg_plan(void);

#endif							/* GPURHH_PLAN_PLAN_H */
