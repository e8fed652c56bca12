/*-------------------------------------------------------------------------
 *
 * join_path.h
 *		What the files share that plan joins.
 *
 * join_path.c has the hooks.  It asks join_probe.c for what is read first, and join_way.c for
 * each join more; join_clauses.c says by which clauses a device can join, join_sketch.c
 * what columns it can make of the rows.  join_node.c makes paths of GpuHashJoin.  What is
 * remembered of a relation meanwhile, join_memory.c keeps.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_PLAN_JOIN_PATH_H
#define GPURHH_PLAN_JOIN_PATH_H

#include "compat.h"
#include "plan/plan_info.h"

/* How the rows of a relation come to the device. */
typedef struct Way
{
	Cost		cost;			/* of one participant, to feed and join all rows */
	Cost		builds_cost;	/* of one participant, for all build sides */
	Cost		probe_cost;		/* of one participant, for all but the build sides */
	int			n_workers;		/* that share the probe side; 0: one process reads it */
	int			n_joins;
	int			n_keys;			/* of all joins together */
	Relids		hidden;			/* relations whose columns no row has: they are inside
								 * of EXISTS and such */
	Path	   *path;			/* of this way; NULL: it has not been made */
	Path	   *probe;			/* the probe side, and nothing is joined with it yet */
	Relids		probe_relids;	/* of that, or of the one that is below the joins */
	bool		by_pages;		/* that is a scan whose pages are read */
	double		device_share;	/* what part of them by the device itself, which then joins their rows at the same rate
								 * however many processes hand pages over, */
	int			device_threads; /* it is charged as if it had so many threads */
	bool		shares;			/* a build side is made by all participants together */
	/* or a join: */
	RelOptInfo *outerrel;
	struct Way *outer;
	Path	   *inner;			/* of the build side */
	JoinType	jointype;
	List	   *clauses;		/* all of them, those that are keys, */
	List	   *keys;
	List	   *matches;		/* and others that say what a match is */
	bool		has_conditions; /* rows are dropped by a condition of this join or of one
								 * below */
	bool		unmatched;		/* one of the joins returns rows of its build side in the
								 * end */
	bool		in_parts;		/* a build side is expected to come in parts */
	bool		may_be_bad;		/* what a match of one of them is may be an error for some
								 * rows: the device may have to leave all to core */
	bool		inner_unique;	/* JoinPathExtraData's */
	SemiAntiJoinFactors semifactors;
} Way;

/*
 * How far the planner got with a join relation, when something was in the way.  It tries
 * several orders; what is told is the reason of the try that got farthest.
 */
typedef enum Obstacle
{
	OBSTACLE_NONE,
	OBSTACLE_KIND,				/* the kind of the join, or the order of its sides */
	OBSTACLE_CLAUSE,			/* keys and conditions */
	OBSTACLE_NODE,				/* cost and columns of GpuHashJoin */
	OBSTACLE_PLAN,				/* there was a path */
	OBSTACLE_GROUPING			/* what a grouping that has the node needs of them */
} Obstacle;

/*
 * What GpuHashJoin was compared with last, so that nothing is compared twice: how cheaply a
 * device does the joins, and the cheapest path that there was.
 */
typedef struct Compared
{
	Cost		cost;
	const Path *best;
	Cost		best_cost;
} Compared;

/* What it takes to build one side of a join, by the path that gives its rows. */
typedef struct BuildSide
{
	Path	   *path;			/* NULL: the rest is not known yet */
	double		n_passes;
	Cost		feed_cost;		/* of one process, in each pass */
	Cost		map_cost;
	double		probe_factor;	/* gpurhh_probe_factor() */
	bool		by_participants;	/* of a parallel plan, each of which reads a part of it; */
	Cost		pages_cost;		/* then: what core charges each of them for all its pages */
	bool		shares;			/* or each makes a part of the rows, and feeds that: */
	Cost		make_cost;		/* what one of them takes to make them */
} BuildSide;

/* What is remembered of a relation.  NULL: there is none. */
struct GpuPipeline
{
	RelOptInfo *rel;
	Way		   *serial;			/* of a join relation with joins, of a table by pages */
	Way		   *partial;		/* the same for parallel plans */
	Way		   *partial_anew;	/* where one participant may have to do all that is left: see
								 * gpurhh_begins_anew() */
	Compared	compared[3];	/* by each of these */
	bool		knows_node;		/* the next one is known: */
	Path	   *node;			/* GpuHashJoin for a build side; NULL: core's is better */
	bool		knows_shared;	/* the next one is known: */
	Path	   *shared;			/* for a build side in parallel plans; NULL: there is none */
	bool		knows_return;	/* the next one is known: */
	const char *return_problem; /* why its columns cannot be returned, or NULL */
	/* of whatever gives its rows: found when they are asked for as a probe side */
	bool		knows_rows;
	Way		   *serial_rows;
	Way		   *partial_rows;
	BuildSide	build;			/* as a build side, */
	BuildSide	parallel_build; /* and as one in parallel plans */
	Obstacle	obstacle;		/* of a join relation, if somebody collects refusals */
	const char *unjoined;		/* then: why GpuHashJoin does not return its rows */
};

/* How many of the last relations are found without their hash table. */
#define RECENT_RELATIONS	64

/* All that is remembered for a call of the planner. */
struct GpuPipelines
{
	PlannerGlobal *glob;		/* of that call; NULL: nothing is remembered yet */
	PlannerInfo *root;			/* the query level that was looked at last; */
	bool		wanted;			/* a device may do joins of it; */
	double		possible_share; /* gpurhh_possible_share() of all of it; */
	bool		knows_joins;	/* the next ones are known: */
	bool		core_joins;		/* it may have joins that only core can do; */
	bool		runs_volatile;	/* and a volatile function is run for its joins' input */
	GpuPipeline **scans;		/* its base relations, by their relids; NULL: that one was
								 * not looked at */
	struct remembered_hash *relations;	/* join relations; NULL: there are none */
	GpuPipeline **recent;		/* some of them, by their hash; or NULL */
	struct clauses_hash *clauses;	/* NULL: none was looked at */
};

/* Of the call that is running, or NULL. */
extern GpuPipelines *gpurhh_pipelines;

/* A hash of what is remembered by its address. */
static inline uint32
gpurhh_hash_pointer(const void *pointer)
{
	return (uint32) (((uint64) (uintptr_t) pointer *
					  UINT64CONST(0x9E3779B97F4A7C15)) >> 32);
}

/* Do rows that come out of a join have columns of its outer relation? */
static inline bool
gpurhh_has_outer_columns(JoinType jointype)
{
	return !gpurhh_is_right_semi(jointype) && !gpurhh_is_right_anti(jointype);
}

/*
 * Does a join return rows of its inner relation when all others have come: those that nothing
 * matches, or, of a right semijoin, those that something does?
 */
static inline bool
gpurhh_returns_unmatched(JoinType jointype)
{
	return jointype == JOIN_RIGHT || jointype == JOIN_FULL || !gpurhh_has_outer_columns(jointype);
}

/*
 * May one participant have to begin anew with core's joins when a device has done these joins in a
 * parallel plan?  It may if a row is found that no device takes, where a join returns rows without
 * a match, and if a condition that says what a match is turns out to be an error.  GpuHashJoin does not
 * begin anew: it does joins where that cannot be.
 */
static inline bool
gpurhh_begins_anew(const Way *way)
{
	return way->unmatched || way->may_be_bad;
}

/* Two parts that core makes a join relation of, and a device may, too. */
typedef struct JoinParts
{
	RelOptInfo *joinrel;
	RelOptInfo *outerrel;
	RelOptInfo *innerrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
	bool		knows_bad;		/* the next one is known: */
	bool		bad;			/* see gpurhh_has_bad_match() */
	/* what gpurhh_has_keys() has found out last; it is the same for most ways */
	bool		knows_keys;
	bool		has_keys;
	Relids		hidden;			/* Way's */
	List	   *keys;
	List	   *matches;
} JoinParts;

/* ---------- join_memory.c ---------- */

extern void gpurhh_look_at_level(PlannerInfo *root);
extern void gpurhh_look_at_joins(GpuPipelines *level);
extern GpuPipeline *gpurhh_make_pipeline(RelOptInfo *rel);
extern GpuPipeline *gpurhh_find_remembered(GpuPipelines *level, RelOptInfo *rel, bool make);
extern void gpurhh_refuse_joins(PlannerInfo *root, RelOptInfo *rel, Obstacle obstacle,
								const char *fmt,...) pg_attribute_printf(4, 5);

/* ---------- join_probe.c ---------- */

extern GpuPipeline *gpurhh_make_scan(GpuPipelines *level, RelOptInfo *rel);
extern void gpurhh_find_rows(GpuPipeline *pipeline);

/* ---------- join_clauses.c ---------- */

extern bool gpurhh_has_core_joins(GpuPipelines *level);
extern bool gpurhh_has_bad_match(GpuPipelines *level, JoinParts *parts);
extern bool gpurhh_has_keys(GpuPipelines *level, JoinParts *parts, Relids hidden);

/* ---------- join_sketch.c ---------- */

extern Var *gpurhh_column_of(Expr *operand);
extern bool gpurhh_is_computed(PlannerInfo *root, Expr *condition, bool *may_be_bad,
							   const char **why);
extern const char *gpurhh_columns_problem(PlanInfo *info, const Way *way);
extern const char *gpurhh_rows_problem(PlannerInfo *root, const RelOptInfo *rel,
									   const Way *way);

/* ---------- join_way.c ---------- */

extern const BuildSide *gpurhh_look_at_build(GpuPipeline *inner, Path *path, bool parallel);
extern double gpurhh_rows_share(const Way *way);
extern void gpurhh_consider_join(GpuPipelines *level, JoinParts *parts, Way *outer,
								 const BuildSide *build, Way **known);
extern Path *gpurhh_make_way_path(PlannerInfo *root, RelOptInfo *rel, Way *way);

/* ---------- join_node.c ---------- */

extern PathCost gpurhh_node_cost(const RelOptInfo *rel, const Way *way);
extern Path *gpurhh_make_join_path(PlannerInfo *root, GpuPipeline *pipeline, Way *way,
								   List *paths);
extern void gpurhh_update_nodes(PlannerInfo *root, GpuPipeline *pipeline);

/* ---------- what is asked for each pair of relations ---------- */

/*
 * The query level that is being planned, if a device may do joins of it; else NULL.
 *
 * Somebody may call standard_planner() without the hooks while another query is being planned.
 * The two have different PlannerGlobals, and what is remembered for the one is forgotten when
 * the other one goes on, because its memory may be gone.
 */
static inline GpuPipelines *
gpurhh_joins_of_level(PlannerInfo *root)
{
	GpuPipelines *level = gpurhh_pipelines;

	if (level == NULL)
		return NULL;
	if (level->root != root || level->glob != root->glob)
		gpurhh_look_at_level(root);
	return level->wanted ? level : NULL;
}

/* What is remembered of a join relation; NULL: nothing, unless make. */
static inline GpuPipeline *
gpurhh_remembered(GpuPipelines *level, RelOptInfo *rel, bool make)
{
	if (level->recent != NULL)
	{
		GpuPipeline *recent = level->recent[gpurhh_hash_pointer(rel) % RECENT_RELATIONS];

		if (recent != NULL && recent->rel == rel)
			return recent;
	}
	return gpurhh_find_remembered(level, rel, make);
}

/* The pipeline of a base relation or of a join relation of the level; it may have no way. */
static inline GpuPipeline *
gpurhh_pipeline_of(GpuPipelines *level, RelOptInfo *rel)
{
	if (rel->reloptkind != RELOPT_BASEREL)
		return gpurhh_remembered(level, rel, true);
	if (level->scans[rel->relid] != NULL)
		return level->scans[rel->relid];
	return gpurhh_make_scan(level, rel);
}

#endif							/* GPURHH_PLAN_JOIN_PATH_H */
