/*-------------------------------------------------------------------------
 *
 * plan.h
 *		What the planner decides about GpuHashAgg and GpuHashJoin, and tells others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_PLAN_PLAN_H
#define GPURHH_PLAN_PLAN_H

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#include "types/types.h"

/* ---------- plan_nodes.c ---------- */

/*
 * What a CustomScan of GpuHashAgg carries in custom_private, as its only member:
 * a GpuAggPlan.  It and its parts are nodes.  A field that is added to one of
 * these structs needs a line in its table in plan_nodes.c.
 */

/* A column that is fed to the device. */
typedef struct GpuPlanColumn
{
	ExtensibleNode node;
	GpuEncoding encoding;
	int			parameter;		/* of the encoding, see GpuColumn */
	int			attribute;		/* of the child plan, from 0 */
} GpuPlanColumn;

/* A transition state of each group of the first level. */
typedef struct GpuPlanState
{
	ExtensibleNode node;
	rhh_state_op op;
	int			arg_column;		/* number of a fed column; -1: it needs none */
	int			filter_column;	/* that tells which rows count; -1: all do */
} GpuPlanState;

/* A state of the values of a hidden key, which the last level makes. */
typedef struct GpuPlanHiddenState
{
	ExtensibleNode node;
	rhh_state_op op;
	int			hidden_key;		/* from 0, the first key that is not shown */
} GpuPlanHiddenState;

/* What a column of the scan tuple is. */
typedef enum GpuOutput
{
	GPU_OUTPUT_KEY,				/* a grouping column */
	GPU_OUTPUT_ANY,				/* a column that the grouping columns determine, or
								 * a value that the second level chose: it is in
								 * one state of RHH_ANY */
	GPU_OUTPUT_GROUPING,		/* GROUPING(): it is known from the set */
	GPU_OUTPUT_AGGREGATE		/* the result of an aggregate's states */
} GpuOutput;

/* A column of the scan tuple, and what of a group it is made of. */
typedef struct GpuPlanOutput
{
	ExtensibleNode node;
	GpuOutput	kind;
	GpuEncoding encoding;		/* of the value, or of the aggregate's argument */
	int			parameter;		/* of the encoding, see GpuColumn */
	int			key;			/* GPU_OUTPUT_KEY: its number; else -1 */
	Oid			aggregate;		/* GPU_OUTPUT_AGGREGATE: its function */
	List	   *states;			/* GPU_OUTPUT_ANY and _AGGREGATE: IntList of the
								 * states' numbers.  The states of the last level
								 * are numbered: first those of the rows, then
								 * those of the hidden keys. */
	List	   *value_of_set;	/* GPU_OUTPUT_GROUPING: IntList, a value for each
								 * grouping set */
} GpuPlanOutput;

/* What the node is to do. */
typedef struct GpuAggPlan
{
	ExtensibleNode node;
	List	   *columns;		/* of GpuPlanColumn */
	List	   *key_columns;	/* IntList: those that the first level groups by;
								 * first the shown keys, which are grouping columns,
								 * then the hidden ones */
	int			n_shown_keys;
	List	   *states;			/* of GpuPlanState */
	List	   *outputs;		/* of GpuPlanOutput: the columns of the scan tuple,
								 * in the order of custom_scan_tlist */
	List	   *sets;			/* of IntList: the keys of each grouping set, one
								 * that has all keys before all others; NIL: there
								 * is one set, of all keys */
	/* What hidden keys are for; one of these two, or both, are NIL. */
	List	   *choices;		/* IntList: of each hidden key which of its values
								 * is chosen, a GpuChoice */
	List	   *distinct_states;	/* of GpuPlanHiddenState: the hidden keys are
									 * arguments of aggregates with DISTINCT */
	/* Estimates; of a level that there is not, 0. */
	double		first_level_groups;
	double		second_level_groups;
	double		third_level_groups;
	bool		leader_emits;	/* of a parallel plan's participants, only the
								 * leader returns groups */
	int			n_joins;		/* of the HashJoins below, the child and the outer
								 * children of that, how many the node takes over:
								 * all, down to a scan; 0: there are none, or they
								 * are core's to do */
	bool		key_filters;	/* of their build sides, rows may be tested by filters */
} GpuAggPlan;

/* What a CustomScan of GpuHashJoin carries in the same way. */
typedef struct GpuJoinPlan
{
	ExtensibleNode node;
	List	   *columns;		/* of GpuPlanColumn: all columns of the child, in order */
	List	   *outputs;		/* of GpuPlanOutput: the same as columns of the scan tuple */
	int			n_joins;		/* of the HashJoins below, as in GpuAggPlan */
	bool		key_filters;	/* the same */
} GpuJoinPlan;

static inline const GpuPlanColumn *
gpurhh_plan_column(const GpuAggPlan *plan, int number)
{
	return (const GpuPlanColumn *) list_nth(plan->columns, number);
}

/* The fed column that is a key, given the key's number. */
static inline const GpuPlanColumn *
gpurhh_plan_key(const GpuAggPlan *plan, int key)
{
	return gpurhh_plan_column(plan, list_nth_int(plan->key_columns, key));
}

extern void gpurhh_register_plan_nodes(void);
extern const GpuAggPlan *gpurhh_plan_of(const CustomScan *cscan);
extern const GpuJoinPlan *gpurhh_join_plan_of(const CustomScan *cscan);

/* ---------- chain_plan.c ---------- */

extern bool gpurhh_output_is_stored(const GpuPlanOutput *output,
									const GpuColumn *column);
extern bool gpurhh_output_value(const GpuPlanOutput *output, Node *expr, GpuColumn *how,
								VectorType *type);
extern bool gpurhh_has_param(Node *node);
extern bool gpurhh_is_single_key(GpuEncoding encoding, const Const *constant);
extern bool gpurhh_has_one_level(const GpuAggPlan *plan);
extern bool gpurhh_can_chain(const GpuAggPlan *plan);

/* ---------- agg_path.c ---------- */

/* What CustomScans and their methods are known by. */
#define GPUAGG_NODE_NAME	"GpuHashAgg"

extern void gpurhh_init_agg_path(void);

/* ---------- join_node.c ---------- */

#define GPUJOIN_NODE_NAME	"GpuHashJoin"

/* ---------- share_path.c ---------- */

#define GPUSHARE_NODE_NAME	"GpuShareRows"

/* ---------- join_path.c ---------- */

/*
 * A table that is a build side, with at least so many pages, is read by all participants
 * of a parallel plan together.  It is as many as core reads with a worker
 * (min_parallel_table_scan_size).
 */
#define GPURHH_SHARED_BUILD_PAGES	1024

extern void gpurhh_init_join_path(void);

/* ---------- join_cost.c ---------- */

extern bool gpurhh_key_filter_pays(double build_rows, double probe_rows,
								   double joined_rows);

/* ---------- refusals.c ---------- */

typedef struct GpuRefusal
{
	int			statement;		/* 1-based */
	char	   *group_by;		/* NULL: it is of the joins of a query level */
	char	   *reason;
	int			grouping;		/* its number, which its paths have as well */
	const void *level;			/* of joins: the level's PlannerInfo, while the query is
								 * planned */
	bool		planned;		/* one of its paths became a plan, so it was not
								 * refused after all; of joins, a path of a node */
} GpuRefusal;

typedef struct GpuRefusalCollector
{
	int			statement;
	List	   *refusals;		/* of GpuRefusal */
	MemoryContext context;
} GpuRefusalCollector;

extern PlannedStmt *gpurhh_plan_and_collect(Query *query, const char *source,
											GpuRefusalCollector *collector);

/* ---------- finish_plan.c ---------- */

extern void gpurhh_init_finish_plan(void);

#endif							/* GPURHH_PLAN_PLAN_H */
