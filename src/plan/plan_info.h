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

/* The same of GpuHashJoin. */
typedef struct GpuJoinPath
{
	ExtensibleNode node;
	List	   *columns;		/* Vars, all that the join relation's paths return */
	int			n_joins;		/* see GpuJoinPlan */
	Cost		real_cost;		/* of all rows; the path's cost is on core's scale */
} GpuJoinPath;

extern void *gpurhh_make_node(const char *name, Size bytes);

#define gpurhh_make(type) ((type *) gpurhh_make_node(#type, sizeof(type)))

/* ---------- a grouping, for all files ---------- */

/* What join_memory.c remembers of a relation's joins. */
typedef struct GpuPipeline GpuPipeline;
typedef struct GpuPipelines GpuPipelines;

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
	GpuPipeline *pipeline;		/* joins that a device could do; NULL: there are none */
	const char *unjoined;		/* why no device does those; NULL: it may */
	bool		joined;			/* the inputs are these: chains of HashPaths */
	bool		counts_expressions; /* rows are counted by expressions, some of which
									 * could be columns if it were joined */

	List	   *keys;			/* grouping expressions */
	bool		told_by_reference;	/* some keys are equal, and the scan tuple's
									 * entries have their grouping references */
	List	   *distinct_args;	/* expressions that are hidden keys */
	bool		one_emitter;	/* only one participant of a parallel plan may
								 * return groups */
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

extern bool gpurhh_refuse(PlanInfo *info, const char *fmt,...) pg_attribute_printf(2, 3);
extern const char *gpurhh_expression_text(PlanInfo *info, void *expr);
extern const char *gpurhh_clause_text(PlannerInfo *root, void *expr);
extern const char *gpurhh_relation_names(PlannerInfo *root, Relids relids);
extern void gpurhh_report_refusal(PlanInfo *info);
extern void gpurhh_report_joins(PlannerInfo *root);
extern void gpurhh_note_planned(PlannerInfo *root, int grouping, bool joins);
extern bool gpurhh_collects_refusals(void);
extern GpuRefusalCollector *gpurhh_begin_collecting(void);
extern void gpurhh_end_collecting(GpuRefusalCollector *outer);

/* ---------- plan_build.c ---------- */

extern int	gpurhh_feed_column(PlanInfo *info, Expr *expr, Index sortgroupref,
							   GpuColumn column, bool is_key);
extern int	gpurhh_derive_column(PlanInfo *info, int number, GpuEncoding part,
								 int parameter);
extern int	gpurhh_add_state(PlanInfo *info, rhh_state_op op, int arg,
							 int filter);
extern int	gpurhh_add_hidden_state(PlanInfo *info, rhh_state_op op,
									int hidden_key);
extern GpuPlanOutput *gpurhh_add_output(PlanInfo *info, Expr *expr,
										GpuOutput kind, GpuColumn column);

/* ---------- grouping.c ---------- */

extern bool gpurhh_plan_grouping(PlanInfo *info, List *having);
extern bool gpurhh_add_key(PlanInfo *info, SortGroupClause *clause, Expr *expr);

/* ---------- grouping_aggregates.c ---------- */

/*
 * When an aggregate is added.  Those that are made of the rows come first, because
 * the states that the second level makes for the others are numbered behind theirs.
 */
typedef enum AggregateTurn
{
	TURN_OF_ROWS,
	TURN_OF_CHOICES,
	TURN_OF_DISTINCT
} AggregateTurn;

extern bool gpurhh_add_aggregates(PlanInfo *info, AggregateTurn turn);

/* ---------- agg_path.c ---------- */

extern const GpuAggPath *gpurhh_agg_path(const Path *path);

/* ---------- chain_plan.c ---------- */

extern bool gpurhh_chains(PlanInfo *info, int *n_workers);

/* ---------- agg_union.c ---------- */

extern bool gpurhh_find_union(PlanInfo *info, RelOptInfo *output_rel);

/* ---------- agg_estimate.c ---------- */

/* How many groups there will be; of all participants of a parallel plan. */
typedef struct GroupEstimate
{
	double		first_level;	/* groups that the first level makes */
	double		second_level;	/* and the others, or 0 */
	double		third_level;
	double		taken_by_levels;	/* groups that are put into those of the next
									 * level, all in all */
	double		emitted;		/* groups that are returned */
	double		choices;		/* what minima and maxima of strings and enums
								 * cost beyond that, in units of a group's cost */
	double		string_bytes;	/* memory for their strings */
	double		key_string_bytes;	/* memory for the strings of keys, where
									 * further levels have to keep those of
									 * several passes */
} GroupEstimate;

extern void gpurhh_estimate_groups(PlanInfo *info, GroupEstimate *groups);

/* ---------- agg_cost.c ---------- */

typedef struct PathCost
{
	Cost		startup;
	Cost		total;
} PathCost;

/* One of core's paths. */
typedef struct CorePathCost
{
	PathCost	charged;		/* what core charges for it */
	PathCost	real;			/* what it really costs */
} CorePathCost;

extern double gpurhh_parallel_divisor(int n_workers);
extern void gpurhh_cost_agg_path(PlanInfo *info, Path *path,
								 ProjectionPath *subpath,
								 const GroupEstimate *groups, double n_groups);
extern PathCost gpurhh_on_core_scale(PathCost ours, const CorePathCost *core,
									 int n_core);
extern const char *gpurhh_fit_costs(PlanInfo *info, RelOptInfo *output_rel,
									Path *ours, Path *partial);
extern Cost gpurhh_agg_undercharge(const AggPath *agg);
extern bool gpurhh_core_is_cheap(PlanInfo *info, RelOptInfo *output_rel, double share);
extern double gpurhh_possible_share(PlannerInfo *root, Relids relids);

/* why there is no path if that share makes core cheap */
#define GPURHH_TOO_FEW_ROWS "the tables have too few pages for the rows that are estimated"

/* ---------- page_cost.c ---------- */

extern bool gpurhh_is_heap(Oid relation);
extern bool gpurhh_is_by_pages(Expr *expr, const char **why);
extern bool gpurhh_reads_pages(PlannerInfo *root, Path *path, Cost *saving);
extern Cost gpurhh_page_feed_saving(PlannerInfo *root, ProjectionPath *projection);
extern bool gpurhh_uses_gpu(void);
extern int	gpurhh_cpu_cache_threads(void);
extern bool gpurhh_has_device_pages(PlannerInfo *root, const RelOptInfo *rel);
extern Cost gpurhh_device_pages(PlannerInfo *root, Path *scan, List *columns, Cost cost, double *share);

/* ---------- join_cost.c ---------- */

/*
 * Of an inner join the smaller side is built, or one that is at most so many times as
 * large: a row that is built costs more than so many that are probed.
 */
#define GPURHH_BUILD_RATIO	4

extern Cost gpurhh_probe_scan_cost(const Path *scan, Cost saving);
extern Cost gpurhh_feed_rows_cost(double rows);
extern double gpurhh_build_passes(const Path *inner);
extern Cost gpurhh_build_cost(double build_rows);
extern double gpurhh_probe_factor(double build_rows);
extern Cost gpurhh_key_filter_saving(double build_rows, double probe_factor,
									 double probe_rows, double joined_rows);
extern Cost gpurhh_condition_cost(double pairs);
extern Cost gpurhh_return_rows_cost(double rows, int n_columns);
extern Cost gpurhh_joins_undercharge(const Path *path);
extern Cost gpurhh_real_cost(const Path *path);

/* ---------- join_node.c ---------- */

extern const GpuJoinPath *gpurhh_join_path(const Path *path);

/* ---------- limit_path.c ---------- */

extern void gpurhh_add_limit_path(PlannerInfo *root, RelOptInfo *input_rel,
								  RelOptInfo *final_rel, const FinalPathExtraData *extra);

/* ---------- share_path.c ---------- */

extern Path *gpurhh_make_share_path(RelOptInfo *rel, Path *partial);
extern const Path *gpurhh_shared_path(const Path *path);

/* ---------- join_memory.c ---------- */

extern GpuPipelines *gpurhh_begin_pipelines(void);
extern void gpurhh_end_pipelines(GpuPipelines *outer);
extern const char *gpurhh_unjoined(PlannerInfo *root);

/* ---------- join_path.c ---------- */

extern GpuPipeline *gpurhh_find_pipeline(PlannerInfo *root, RelOptInfo *rel);
extern Path *gpurhh_pipeline_path(PlanInfo *info, bool partial, const char **why);
extern int	gpurhh_pipeline_joins(const PlanInfo *info, bool partial);
extern double gpurhh_pipeline_rows_share(const PlanInfo *info, bool partial);
extern void gpurhh_note_unjoined(PlanInfo *info);

/* ---------- eager_agg.c ---------- */

extern List *gpurhh_group_early(Query *query);

/* ---------- finish_plan.c ---------- */

extern void gpurhh_note_plan(CustomScan *cscan, Plan *child);
extern void gpurhh_note_keys(CustomScan *cscan);

#endif							/* GPURHH_PLAN_PLAN_INFO_H */
