/*-------------------------------------------------------------------------
 *
 * join_path.c
 *		Joins that a device can do: which there are, and their paths.
 *
 * A pipeline reads rows, the probe side, and joins them with one build side after the
 * other, all of it on the device.  The probe side is a table whose pages are read, or
 * whatever path of core's is the cheapest for a relation, which is asked for its rows.  The
 * pipeline's path is a left-deep chain of core's HashPaths over that.  It is a valid path as
 * it stands: the executor takes the plan over where it can, and asks core's HashJoin for
 * rows where it cannot.  Above it is GpuHashAgg, so that only groups leave the device, or
 * GpuHashJoin, which returns the rows.
 *
 * Core's planner makes join relations of two, three and more relations, and asks a hook
 * for paths each time that it has found two parts to make one of.  Core would drop a
 * pipeline's path there, because it keeps what returns rows cheapest.  So for each join
 * relation the cheapest pipeline is remembered here, as a few pointers and its cost
 * (remember_join), and a path for GpuHashAgg is made only for the one relation that is
 * grouped at last (gpurhh_pipeline_path).  Where a relation's rows would come to more
 * than all that core has to do for them, nothing else happens.  Otherwise GpuHashJoin over
 * the pipeline joins core's paths for the relation (update_node).  Each path that core has more
 * of a relation makes it consider more joins of that.  So that happens only where all tables
 * have been joined (search_joins), or where core may have to join the rows; a pipeline that
 * has the rows for a build side makes such a path by itself.
 *
 * What is remembered belongs to one call of the planner.  It is in the planner's memory,
 * and is forgotten when the planner is done (gpurhh_begin_pipelines).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/geqo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"

#include "compat.h"
#include "expr/expr.h"
#include "plan/plan_info.h"
#include "settings.h"

static set_join_pathlist_hook_type prev_join_pathlist_hook = NULL;
static join_search_hook_type prev_join_search_hook = NULL;

/* How the rows of a relation come to the device. */
typedef struct Way
{
	Cost		cost;			/* of one participant, to feed and join all rows */
	Cost		builds_cost;	/* if one process reads all build sides by itself */
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
	OBSTACLE_PLAN				/* there was a path */
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

/* What is remembered of a relation.  NULL: there is none. */
struct GpuPipeline
{
	RelOptInfo *rel;
	Way		   *serial;			/* of a join relation with joins, of a table by pages */
	Way		   *partial;		/* the same for parallel plans */
	Way		   *partial_anew;	/* where one participant may have to begin anew, which
								 * GpuHashJoin does not: see begins_anew() */
	Compared	compared[2];	/* of the serial and of the partial paths */
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
	Obstacle	obstacle;		/* of a join relation, if somebody collects refusals */
	const char *unjoined;		/* then: why GpuHashJoin does not return its rows */
};

typedef struct RememberedRelation
{
	RelOptInfo *rel;
	GpuPipeline *pipeline;
	char		status;
} RememberedRelation;

/* What a join clause is to a device, apart from being a key. */
typedef enum ClauseUse
{
	CLAUSE_UNKNOWN,				/* nobody has asked, as of most keys */
	CLAUSE_CONDITION,			/* a condition that it can compute */
	CLAUSE_OF_CORE				/* one that it cannot */
} ClauseUse;

/*
 * What is remembered of a join clause, because the same one comes with many join
 * relations: can a device join by it, and by which columns, or compute it?
 */
typedef struct RememberedClause
{
	RestrictInfo *clause;
	bool		is_key;
	int			relids[2];		/* then: of the left column and of the right one */
	ClauseUse	use;
	const char *key_problem;	/* of an equality of columns: why it is no key; or NULL */
	const char *condition_problem;	/* with CLAUSE_OF_CORE */
	bool		may_be_bad;		/* of a condition: a device may have to ask core */
	char		status;
} RememberedClause;

static inline uint32
hash_pointer(const void *pointer)
{
	return (uint32) (((uint64) (uintptr_t) pointer *
					  UINT64CONST(0x9E3779B97F4A7C15)) >> 32);
}

#define SH_PREFIX remembered
#define SH_ELEMENT_TYPE RememberedRelation
#define SH_KEY_TYPE RelOptInfo *
#define SH_KEY rel
#define SH_HASH_KEY(tb, key) hash_pointer(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define SH_PREFIX clauses
#define SH_ELEMENT_TYPE RememberedClause
#define SH_KEY_TYPE RestrictInfo *
#define SH_KEY clause
#define SH_HASH_KEY(tb, key) hash_pointer(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* All that is remembered for a call of the planner. */
struct GpuPipelines
{
	PlannerGlobal *glob;		/* of that call; NULL: nothing is remembered yet */
	PlannerInfo *root;			/* the query level that was looked at last, */
	GpuPipeline **scans;		/* its base relations, by their relids; NULL: that one
								 * was not looked at; */
	bool		core_joins;		/* it may have joins that only core can do; */
	bool		runs_volatile;	/* and a volatile function is run for its joins' input */
	remembered_hash *relations; /* join relations */
	clauses_hash *clauses;
};

/* Of the call that is running, or NULL. */
static GpuPipelines *current = NULL;

/* ---------- what is remembered, and for how long ---------- */

/*
 * To be called around each call of the planner.  Returns what belongs to the call around
 * that, which is to be given to gpurhh_end_pipelines().
 */
GpuPipelines *
gpurhh_begin_pipelines(void)
{
	GpuPipelines *outer = current;

	current = palloc0(sizeof(GpuPipelines));
	return outer;
}

void
gpurhh_end_pipelines(GpuPipelines *outer)
{
	current = outer;
}

static void
start_remembering(PlannerInfo *root)
{
	current->glob = root->glob;
	current->root = NULL;
	current->relations = remembered_create(root->planner_cxt, 32, NULL);
	current->clauses = clauses_create(root->planner_cxt, 32, NULL);
}

/*
 * What is remembered for the query that is being planned.  Somebody may call
 * standard_planner() without the hooks while another query is being planned.  The two
 * have different PlannerGlobals, and what is remembered for the one is forgotten when
 * the other one goes on, because its memory may be gone.
 */
static inline GpuPipelines *
pipelines_of(PlannerInfo *root)
{
	if (current->glob != root->glob)
		start_remembering(root);
	return current;
}

static GpuPipeline *
lookup(PlannerInfo *root, RelOptInfo *rel)
{
	RememberedRelation *entry = remembered_lookup(pipelines_of(root)->relations, rel);

	return entry ? entry->pipeline : NULL;
}

static GpuPipeline *
make_pipeline(RelOptInfo *rel)
{
	GpuPipeline *pipeline = palloc0(sizeof(GpuPipeline));

	pipeline->rel = rel;
	return pipeline;
}

/* The join relation's pipeline; a new one has no way yet. */
static GpuPipeline *
lookup_or_make(PlannerInfo *root, RelOptInfo *rel)
{
	bool		found;
	RememberedRelation *entry = remembered_insert(pipelines_of(root)->relations, rel,
												  &found);

	if (!found)
		entry->pipeline = make_pipeline(rel);
	return entry->pipeline;
}

/* ---------- why not ---------- */

/* Notes what is in the way of a join relation's joins, for whoever asks. */
static void refuse(PlannerInfo *root, RelOptInfo *rel, Obstacle obstacle, const char *fmt,...)
	pg_attribute_printf(4, 5);

static void
refuse(PlannerInfo *root, RelOptInfo *rel, Obstacle obstacle, const char *fmt,...)
{
	GpuPipeline *pipeline;
	StringInfoData text;
	int			needed;

	if (!gpurhh_collects_refusals())
		return;
	pipeline = lookup_or_make(root, rel);
	if (pipeline->obstacle >= obstacle)
		return;
	initStringInfo(&text);
	do
	{
		va_list		args;

		va_start(args, fmt);
		needed = appendStringInfoVA(&text, fmt, args);
		va_end(args);
		if (needed > 0)
			enlargeStringInfo(&text, needed);
	} while (needed > 0);
	pipeline->obstacle = obstacle;
	pipeline->unjoined = text.data;
}

/*
 * Is it the recursive term of a WITH RECURSIVE?  That is run again for the rows of each
 * iteration; core keeps the tables of hash joins from one to the next, and a device the
 * maps of none.
 */
static bool
is_recursive_term(PlannerInfo *root)
{
	ListCell   *lc;

	if (root->parent_root == NULL || root->parent_root->wt_param_id < 0)
		return false;
	foreach(lc, root->parse->rtable)
	{
		if (lfirst_node(RangeTblEntry, lc)->self_reference)
			return true;
	}
	return false;
}

/*
 * Why no device is to do any of a query level's joins, or NULL.  The genetic search frees
 * its join relations, so nothing can be remembered of them.
 */
static const char *
level_problem(PlannerInfo *root)
{
	CmdType		command = root->parse->commandType;

	if (!enable_gpu_hashjoin)
		return "enable_gpu_hashjoin is off";
	if (!enable_hashjoin)
		return "enable_hashjoin is off";
	if (root->join_search_private != NULL)
		return "the genetic search orders them";
	if (is_recursive_term(root))
		return "the recursive term of WITH RECURSIVE is run again and again";
	if (command != CMD_SELECT && command != CMD_INSERT)
		return "UPDATE, DELETE and MERGE are not supported";
	return root->rowMarks != NIL ? "their rows are locked" : NULL;
}

static bool has_core_joins(PlannerInfo *root);

/* ---------- the probe side ---------- */

/*
 * Does a path read a table from its beginning to its end, or several tables so?  They
 * have to be heaps.
 */
static bool
is_full_scan(PlannerInfo *root, Path *path)
{
	RangeTblEntry *rte;
	ListCell   *lc;

	if (path->param_info != NULL)
		return false;
	if (IsA(path, AppendPath))
	{
		foreach(lc, ((AppendPath *) path)->subpaths)
		{
			if (!is_full_scan(root, lfirst(lc)))
				return false;
		}
		return ((AppendPath *) path)->subpaths != NIL;
	}
	if (path->pathtype != T_SeqScan || !IS_SIMPLE_REL(path->parent))
		return false;
	rte = planner_rt_fetch(path->parent->relid, root);
	return rte->rtekind == RTE_RELATION && gpurhh_is_heap(rte->relid);
}

/* The cheapest one of these paths that is such a scan; NULL: none is. */
static Path *
find_full_scan(PlannerInfo *root, List *paths)
{
	ListCell   *lc;

	/* they are sorted by cost */
	foreach(lc, paths)
	{
		if (is_full_scan(root, lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

static Way *
make_scan_way(PlannerInfo *root, Path *scan)
{
	Way		   *way;
	Cost		saving = 0;

	if (scan == NULL || !gpurhh_reads_pages(root, scan, &saving))
		return NULL;
	way = palloc0(sizeof(Way));
	way->cost = way->probe_cost = gpurhh_probe_scan_cost(root, scan);
	way->n_workers = scan->parallel_workers;
	way->probe = scan;
	way->probe_relids = scan->parent->relids;
	way->by_pages = true;
	return way;
}

/* The way of rows that a path is asked for; NULL: it is none that can be asked alone. */
static Way *
make_rows_way(Path *path, int n_workers)
{
	Way		   *way;

	if (path == NULL || path->param_info != NULL)
		return NULL;
	way = palloc0(sizeof(Way));
	way->cost = way->probe_cost = gpurhh_real_cost(path) + gpurhh_feed_rows_cost(path->rows);
	way->n_workers = n_workers;
	way->probe = path;
	way->probe_relids = path->parent->relids;
	return way;
}

/* Finds out what gives a relation's rows, which has all its paths. */
static void
find_rows(GpuPipeline *pipeline)
{
	RelOptInfo *rel = pipeline->rel;

	if (pipeline->knows_rows)
		return;
	pipeline->knows_rows = true;
	if (IS_DUMMY_REL(rel))
		return;
	pipeline->serial_rows = make_rows_way(rel->cheapest_total_path, 0);
	if (rel->consider_parallel && rel->partial_pathlist != NIL)
	{
		Path	   *partial = linitial(rel->partial_pathlist);

		pipeline->partial_rows = make_rows_way(partial, partial->parallel_workers);
	}
}

/* Finds out how a base relation's pages can be read, if they can. */
static void
find_scans(PlannerInfo *root, GpuPipeline *pipeline)
{
	RelOptInfo *rel = pipeline->rel;
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	Path	   *serial;
	Path	   *partial = NULL;
	ListCell   *lc;

	if (rte->rtekind != RTE_RELATION || rte->tablesample != NULL || IS_DUMMY_REL(rel))
		return;
	foreach(lc, rel->baserestrictinfo)
	{
		/* core puts a Result above the scan that evaluates it once */
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return;
	}
	serial = find_full_scan(root, rel->pathlist);
	if (rel->consider_parallel)
		partial = find_full_scan(root, rel->partial_pathlist);
	/* core has dropped them where an index is better, for the scan by itself */
	if (!rte->inh && gpurhh_is_heap(rte->relid))
	{
		if (serial == NULL)
			serial = create_seqscan_path(root, rel, NULL, 0);
		if (partial == NULL && rel->partial_pathlist != NIL)
		{
			int			n_workers = compute_parallel_worker(rel, rel->pages, -1,
															max_parallel_workers_per_gather);

			if (n_workers > 0)
				partial = create_seqscan_path(root, rel, NULL, n_workers);
		}
	}
	pipeline->serial = make_scan_way(root, serial);
	pipeline->partial = make_scan_way(root, partial);
}

static bool
has_volatile_walker(Node *node, PlannerInfo *root)
{
	if (node == NULL)
		return false;
	/* planned already, so its expressions are no longer below this node */
	if (IsA(node, SubPlan))
	{
		PlannerInfo *subroot = list_nth(root->glob->subroots, ((SubPlan *) node)->plan_id - 1);

		if (contain_volatile_functions((Node *) subroot->parse))
			return true;
	}
	return expression_tree_walker(node, has_volatile_walker, root);
}

static bool
has_volatile(PlannerInfo *root, Node *node)
{
	return contain_volatile_functions(node) || has_volatile_walker(node, root);
}

/*
 * Is a volatile function run to make the rows that a query level joins?  If a build side has
 * no room, core's joins read all sides from their beginning, so it would be run twice for
 * some of them: a sequence would go on, a notice come again.  Core keeps the rows of functions
 * in FROM, and of CTEs.
 */
static bool
runs_volatile(PlannerInfo *root)
{
	ListCell   *lc;

	if (has_volatile(root, (Node *) root->parse->jointree))
		return true;
	foreach(lc, root->parse->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (contain_volatile_functions((Node *) rte->subquery) ||
			has_volatile(root, (Node *) rte->values_lists) ||
			has_volatile(root, (Node *) rte->securityQuals))
			return true;
	}
	return false;
}

/* Finds out what there is to know of a query level, when that is another than before. */
static void
look_at_level(PlannerInfo *root)
{
	GpuPipelines *pipelines = pipelines_of(root);

	if (pipelines->root == root)
		return;
	pipelines->root = root;
	pipelines->scans = palloc0(sizeof(GpuPipeline *) * root->simple_rel_array_size);
	pipelines->core_joins = has_core_joins(root);
	pipelines->runs_volatile = runs_volatile(root);
}

/* The pipeline of a base relation of the level that was looked at; it may have no way. */
static GpuPipeline *
scan_of(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipelines *pipelines = pipelines_of(root);

	if (pipelines->scans[rel->relid] == NULL)
	{
		pipelines->scans[rel->relid] = make_pipeline(rel);
		find_scans(root, pipelines->scans[rel->relid]);
	}
	return pipelines->scans[rel->relid];
}

/* What is known of a relation as a probe side. */
static GpuPipeline *
find_outer(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipeline *pipeline = rel->reloptkind == RELOPT_BASEREL ? scan_of(root, rel) :
		lookup_or_make(root, rel);

	find_rows(pipeline);
	return pipeline;
}

/* ---------- what a device can join by ---------- */

/* The column that an operand is, whatever type it passes for; NULL: it is none. */
static Var *
column_of(Expr *operand)
{
	Var		   *var = (Var *) gpurhh_without_relabel((Node *) operand);

	return IsA(var, Var) && var->varattno > 0 ? var : NULL;
}

/* What there is to remember of a join clause. */
static RememberedClause *
look_at_clause(PlannerInfo *root, RestrictInfo *clause)
{
	bool		found;
	RememberedClause *entry = clauses_insert(pipelines_of(root)->clauses, clause, &found);
	OpExpr	   *op = (OpExpr *) clause->clause;
	GpuColumn	how[2];

	if (found)
		return entry;
	entry->is_key = false;
	entry->use = CLAUSE_UNKNOWN;
	entry->key_problem = NULL;
	if (!clause->can_join || !OidIsValid(clause->hashjoinoperator))
		return entry;
	for (int i = 0; i < 2; i++)
	{
		Var		   *column = column_of(list_nth(op->args, i));

		if (column == NULL)
			return entry;
		entry->relids[i] = column->varno;
	}
	entry->is_key = gpurhh_resolve_equality(op, how, &entry->key_problem);
	return entry;
}

/* Is a join clause something that a device can join the rows that come this way by? */
static bool
is_key(PlannerInfo *root, RelOptInfo *joinrel, const Way *outer, RelOptInfo *outerrel,
	   RelOptInfo *innerrel, JoinType jointype, RestrictInfo *clause)
{
	const RememberedClause *known = look_at_clause(root, clause);
	int			probe;

	if (!known->is_key)
		return false;
	/* it is of a WHERE above the outer join, not of its ON */
	if (IS_OUTER_JOIN(jointype) && RINFO_IS_PUSHED_DOWN(clause, joinrel->relids))
		return false;
	probe = bms_is_member(known->relids[0], outerrel->relids) ? 0 : 1;
	if (!bms_is_member(known->relids[probe], outerrel->relids) ||
		!bms_is_member(known->relids[1 - probe], innerrel->relids))
		return false;
	/* columns that are equal may stand for each other in clauses, but not here */
	return !bms_is_member(known->relids[probe], outer->hidden);
}

/* Do rows that come out of a join have columns of its outer relation? */
static bool
has_outer_columns(JoinType jointype)
{
	return !gpurhh_is_right_semi(jointype) && !gpurhh_is_right_anti(jointype);
}

/*
 * Does a join return rows of its inner relation when all others have come: those that nothing
 * matches, or, of a right semijoin, those that something does?
 */
static bool
returns_unmatched(JoinType jointype)
{
	return jointype == JOIN_RIGHT || jointype == JOIN_FULL || !has_outer_columns(jointype);
}

/* What a program is made of, as far as it is known when planning. */
typedef struct ProgramSketch
{
	rhh_program program;
	List	   *leaves;			/* Vars, and conditions that are fed */
	int			n_columns;		/* that these are */
	PlannerInfo *root;
	const Way  *way;			/* NULL: not known yet */
	bool		of_match;		/* it is what a match of the way's last join is */
	int			n_match_columns;	/* of leaves of other programs that are this */
} ProgramSketch;

static const char *expression_problem(PlannerInfo *root, const Way *way, Expr *expr,
									  bool strict, bool of_match);

/* Finds the table whose columns an expression has, in *table: 0: none, -1: several. */
static bool
find_table_walker(Node *node, int *table)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		int			varno = ((Var *) node)->varno;

		*table = *table == 0 || *table == varno ? varno : -1;
		return false;
	}
	return expression_tree_walker(node, find_table_walker, table);
}

static int
table_of(Node *expr)
{
	int			table = 0;

	(void) find_table_walker(expr, &table);
	return table;
}

/* Can an expression be computed of a side's rows before they are joined? */
static bool
is_fed(ProgramSketch *sketch, Expr *expr, bool strict)
{
	const char *problem;

	return sketch->way == NULL ?
		table_of((Node *) expr) > 0 && gpurhh_is_by_pages(expr, &problem) :
		expression_problem(sketch->root, sketch->way, expr, strict, sketch->of_match) == NULL;
}

/*
 * Is it a column that a device can compute with, or can it be made one?  *n_columns becomes how
 * many columns it takes.
 */
static bool
is_leaf(ProgramSketch *sketch, Node *expr, bool only_null, VectorType *type, int *n_columns)
{
	GpuColumn	how;

	*n_columns = 1;
	if (gpurhh_is_fed_condition((Expr *) expr))
	{
		*type = VECTOR_BOOL;
		return is_fed(sketch, (Expr *) expr, !contain_nonstrict_functions(expr));
	}
	if (!IsA(expr, Var) || ((Var *) expr)->varattno <= 0)
		return false;
	if (!gpurhh_resolve_operand(expr, only_null, &how))
	{
		*type = VECTOR_ANY;
		return only_null && is_fed(sketch, gpurhh_null_or_true(expr), true);
	}
	*type = gpurhh_encodings[how.encoding].vector;
	if (*type == VECTOR_DECIMAL)
		*n_columns = GPURHH_DECIMAL_LIMBS(how.parameter);
	if (*n_columns > 1)
		*type = VECTOR_DECIMAL128;
	return true;
}

/* gpurhh_vector_compile()'s question about an expression that a device is to compute. */
static bool
find_leaf(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	ProgramSketch *sketch = arg;
	int			n_columns;
	ListCell   *lc;

	if (!is_leaf(sketch, expr, only_null, type, &n_columns))
		return false;
	foreach(lc, sketch->leaves)
	{
		/* apart by as many columns as one can take */
		*column = foreach_current_index(lc) * GPURHH_MAX_LIMBS;
		if (equal(lfirst(lc), expr))
			return true;
	}
	if (sketch->n_columns + n_columns > RHH_MAX_COLUMNS)
		return false;
	*column = list_length(sketch->leaves) * GPURHH_MAX_LIMBS;
	sketch->leaves = lappend(sketch->leaves, expr);
	sketch->n_columns += n_columns;
	return true;
}

/* Adds an expression to a program.  False, with *why: no device can compute it. */
static bool
sketch_expression(ProgramSketch *sketch, Expr *expr, uint8 *number, VectorType *type,
				  const char **why)
{
	VectorExpr *compiled = gpurhh_vector_compile(expr, NULL, 1, find_leaf, sketch, why);

	return compiled != NULL &&
		gpurhh_vector_program(compiled, &sketch->program, number, type, why);
}

/* Can a device compute a clause? */
static bool
is_computed(PlannerInfo *root, RestrictInfo *clause)
{
	RememberedClause *known = look_at_clause(root, clause);

	if (known->use == CLAUSE_UNKNOWN)
	{
		ProgramSketch sketch = {.root = root};
		uint8		number;
		VectorType	type;

		known->use = sketch_expression(&sketch, clause->clause, &number, &type,
									   &known->condition_problem) ?
			CLAUSE_CONDITION : CLAUSE_OF_CORE;
		known->may_be_bad = rhh_program_may_be_bad(&sketch.program);
	}
	return known->use == CLAUSE_CONDITION;
}

/* Notes why a clause that is neither a key nor a condition is in the way. */
static void
refuse_clause(PlannerInfo *root, RelOptInfo *joinrel, RestrictInfo *clause)
{
	const RememberedClause *known = look_at_clause(root, clause);
	const char *text = gpurhh_clause_text(root, clause->clause);

	if (known->key_problem != NULL)
		refuse(root, joinrel, OBSTACLE_CLAUSE, "join key %s %s", text, known->key_problem);
	else if (known->use == CLAUSE_OF_CORE)
		refuse(root, joinrel, OBSTACLE_CLAUSE, "join condition %s %s", text,
			   known->condition_problem);
	else
		refuse(root, joinrel, OBSTACLE_CLAUSE,
			   "join condition %s has columns that rows do not have there", text);
}

/*
 * Is a clause of a join part of what a match is?  Without one there is a row, too, or none is
 * wanted, so it is not the same to drop rows that do not meet it.
 */
static bool
decides_matches(RelOptInfo *joinrel, JoinType jointype, RestrictInfo *clause)
{
	return jointype == JOIN_SEMI || gpurhh_is_right_semi(jointype) ||
		(IS_OUTER_JOIN(jointype) && !RINFO_IS_PUSHED_DOWN(clause, joinrel->relids));
}

/*
 * Can a device look whether a clause that is no key is met: for rows of the output, or, if it
 * decides what a match is, for pairs of rows?
 */
static bool
is_condition(PlannerInfo *root, RelOptInfo *joinrel, const Way *outer, JoinType jointype,
			 RestrictInfo *clause)
{
	/* above an antijoin there is nothing left of the other side to look at */
	if ((jointype == JOIN_ANTI || gpurhh_is_right_anti(jointype)) &&
		!decides_matches(joinrel, jointype, clause))
		return false;
	/* columns that are equal may stand for each other, as in is_key() */
	if (clause->pseudoconstant || bms_overlap(clause->clause_relids, outer->hidden))
		return false;
	return is_computed(root, clause);
}

/* Is it a condition that says what a match is, and may be an error for some rows? */
static bool
is_bad_match(PlannerInfo *root, RelOptInfo *joinrel, JoinType jointype, RestrictInfo *clause)
{
	return decides_matches(joinrel, jointype, clause) && !look_at_clause(root, clause)->is_key &&
		is_computed(root, clause) && look_at_clause(root, clause)->may_be_bad;
}

static bool
has_bad_match(PlannerInfo *root, RelOptInfo *joinrel, JoinType jointype, List *clauses)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		if (is_bad_match(root, joinrel, jointype, lfirst(lc)))
			return true;
	}
	return false;
}

/* May a device join by any two members of an equivalence class? */
static bool
is_class_of_keys(const EquivalenceClass *ec)
{
	ListCell   *lc;

	foreach(lc, ec->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);
		GpuColumn	column;
		const char *problem;

		if (member->em_is_child)
			continue;
		if (column_of(member->em_expr) == NULL ||
			!gpurhh_resolve_type((Node *) member->em_expr, &column, &problem))
			return false;
	}
	return true;
}

/*
 * May a query level have joins that only core can do?  This need not be exact: if it is
 * wrong, some paths are considered in vain, or not considered.
 */
static bool
has_core_joins(PlannerInfo *root)
{
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		if (lfirst_node(SpecialJoinInfo, lc)->jointype == JOIN_FULL)
			return true;
	}
	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst(lc);

		if (!ec->ec_has_const && bms_membership(ec->ec_relids) == BMS_MULTIPLE &&
			!is_class_of_keys(ec))
			return true;
	}
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rel_array[i] == NULL)
			continue;
		foreach(lc, root->simple_rel_array[i]->joininfo)
		{
			if (!look_at_clause(root, lfirst(lc))->is_key &&
				!is_computed(root, lfirst(lc)))
				return true;
		}
	}
	return false;
}

/*
 * Can a device join the rows that come this way by these clauses?  Then *keys become those
 * by whose equality it finds rows that may match, and *matches others that say whether they do.
 */
static bool
has_keys(PlannerInfo *root, RelOptInfo *joinrel, const Way *outer, RelOptInfo *outerrel,
		 RelOptInfo *innerrel, JoinType jointype, List *clauses, List **keys,
		 List **matches)
{
	ListCell   *lc;

	*keys = NIL;
	*matches = NIL;
	foreach(lc, clauses)
	{
		if (is_key(root, joinrel, outer, outerrel, innerrel, jointype, lfirst(lc)))
			*keys = lappend(*keys, lfirst(lc));
		else if (!is_condition(root, joinrel, outer, jointype, lfirst(lc)))
		{
			refuse_clause(root, joinrel, lfirst(lc));
			return false;
		}
		else if (decides_matches(joinrel, jointype, lfirst(lc)))
			*matches = lappend(*matches, lfirst(lc));
	}
	if (*keys == NIL)
	{
		foreach(lc, clauses)
		{
			if (look_at_clause(root, lfirst(lc))->key_problem != NULL)
				refuse_clause(root, joinrel, lfirst(lc));
		}
		refuse(root, joinrel, OBSTACLE_CLAUSE, "there is no equality of columns to join by");
	}
	else if (list_length(*keys) > RHH_MAX_KEYS)
		refuse(root, joinrel, OBSTACLE_CLAUSE, "there are more than %d join keys", RHH_MAX_KEYS);
	return *keys != NIL && list_length(*keys) <= RHH_MAX_KEYS;
}

/* ---------- joins ---------- */

/*
 * What it costs to feed a build side, in each pass, and to put it into its map.  In a parallel
 * plan all participants read a large table together; all else is asked for its rows by one.
 */
static Cost
build_cost(PlannerInfo *root, RelOptInfo *innerrel, Path *inner, int n_workers)
{
	double		n_passes = gpurhh_build_passes(inner);
	Cost		cost;

	if (innerrel->reloptkind == RELOPT_BASEREL)
	{
		GpuPipeline *scan = scan_of(root, innerrel);

		if (scan->serial != NULL && scan->serial->probe == inner)
		{
			cost = scan->serial->cost;
			if (n_workers > 0 && inner->pathtype == T_SeqScan &&
				innerrel->pages >= GPURHH_SHARED_BUILD_PAGES)
				cost /= gpurhh_parallel_divisor(n_workers);
			return n_passes * cost + gpurhh_build_cost(inner->rows);
		}
	}
	/* participants feed what each makes of it, and GpuHashJoin, in each, all rows */
	if (n_workers > 0 && gpurhh_shared_path(inner) != NULL)
		return inner->startup_cost + gpurhh_joins_undercharge(inner) +
			gpurhh_feed_rows_cost(inner->rows / gpurhh_parallel_divisor(n_workers)) +
			gpurhh_build_cost(inner->rows);
	/* what makes the rows is core's, and may have joins in it */
	return n_passes * (gpurhh_real_cost(inner) + gpurhh_feed_rows_cost(inner->rows)) +
		gpurhh_build_cost(inner->rows);
}

/*
 * What it costs to look at the rows with the same keys, of which further conditions say whether
 * they match, for so many rows of the probe side.  bad: they may be an error, so all are looked at.
 */
static Cost
matches_cost(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, List *keys,
			 double probe_rows, JoinType jointype, bool bad, const JoinPathExtraData *extra)
{
	double		candidates;		/* of a row */

	if ((jointype == JOIN_SEMI || jointype == JOIN_ANTI) && !bad)
		candidates = extra->semifactors.outer_match_frac * extra->semifactors.match_count;
	else
	{
		/* of an inner join, as what core knows may be of a semijoin the other way around */
		SpecialJoinInfo info = {
			.type = T_SpecialJoinInfo,
			.min_lefthand = outerrel->relids,
			.min_righthand = innerrel->relids,
			.syn_lefthand = outerrel->relids,
			.syn_righthand = innerrel->relids,
			.jointype = JOIN_INNER
		};

		candidates = innerrel->rows * clauselist_selectivity(root, keys, 0, JOIN_INNER, &info);
	}
	return gpurhh_condition_cost(probe_rows * Max(candidates, 1.0));
}

/* Can the probe side's rows be tested by these keys where they are read? See join_filter.c. */
static bool
tests_keys(const Way *outer, const RelOptInfo *innerrel, List *keys)
{
	Relids		relids = bms_union(outer->probe_relids, innerrel->relids);
	ListCell   *lc;

	foreach(lc, keys)
	{
		if (!bms_is_subset(lfirst_node(RestrictInfo, lc)->clause_relids, relids))
			return false;
	}
	return true;
}

/*
 * May one participant have to begin anew with core's joins when a device has done these joins in a
 * parallel plan?  It may if a row is found that no device takes, where a join returns rows without
 * a match, and if a condition that says what a match is turns out to be an error.
 */
static bool
begins_anew(const Way *way)
{
	return way->unmatched || way->may_be_bad;
}

/*
 * If joining inner to the rows that come the way outer is possible and cheaper than
 * *known, *known becomes that.
 */
static void
consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel, Way *outer,
			  RelOptInfo *innerrel, Path *inner, JoinType jointype,
			  JoinPathExtraData *extra, Way **known)
{
	double		probe_rows = outerrel->rows;
	double		n_passes;
	Cost		probe_cost;
	Cost		made;			/* to make the build side */
	Cost		saving = 0;		/* by a filter of the keys */
	bool		shares;
	bool		bad;			/* what a match of this join is may be */
	List	   *keys;
	List	   *matches;
	Cost		cost;
	Way		   *way;

	if (outer == NULL || outer->n_joins == RHH_MAX_JOINS || inner == NULL)
		return;
	/* nothing is saved of what rows cost that are asked for */
	if (!outer->by_pages && *known != NULL && outer->cost >= (*known)->cost)
		return;
	if (inner->param_info != NULL)
	{
		refuse(root, joinrel, OBSTACLE_CLAUSE, "%s depends on the rows of another side",
			   gpurhh_relation_names(root, innerrel->relids));
		return;
	}
	bad = has_bad_match(root, joinrel, jointype, extra->restrictlist);
	/* what gives rows may be something that cannot begin again in all participants */
	if (outer->n_workers > 0 && (bad || returns_unmatched(jointype)) && !outer->by_pages)
		return;
	/* nor is it known what participants have made of rows that they share when one begins anew */
	shares = outer->shares || gpurhh_shared_path(inner) != NULL;
	if (shares && (bad || begins_anew(outer) || returns_unmatched(jointype)))
		return;
	if (outer->n_workers > 0)
		probe_rows /= gpurhh_parallel_divisor(outer->n_workers);
	if (outer->by_pages && !begins_anew(outer) &&
		(jointype == JOIN_INNER || jointype == JOIN_SEMI || jointype == JOIN_RIGHT))
		saving = gpurhh_key_filter_saving(inner->rows, probe_rows, probe_rows *
										  joinrel->rows / outerrel->rows);
	probe_cost = gpurhh_probe_cost(inner->rows, probe_rows) - saving;
	/* what comes before is done once more in each further pass */
	n_passes = gpurhh_build_passes(inner);
	probe_cost += (n_passes - 1) * (outer->probe_cost + probe_cost);
	cost = outer->cost + probe_cost;
	if (*known != NULL && cost >= (*known)->cost)
		return;
	made = build_cost(root, innerrel, inner, outer->n_workers);
	cost += made;
	if (*known != NULL && cost >= (*known)->cost)
		return;
	if (!has_keys(root, joinrel, outer, outerrel, innerrel, jointype, extra->restrictlist,
				  &keys, &matches))
		return;
	if (saving > 0 && !tests_keys(outer, innerrel, keys))
	{
		probe_cost += saving;
		cost += saving;
		if (*known != NULL && cost >= (*known)->cost)
			return;
	}
	if (matches != NIL)
	{
		Cost		more = matches_cost(root, outerrel, innerrel, keys, probe_rows, jointype,
										bad, extra);

		probe_cost += more;
		cost += more;
		if (*known != NULL && cost >= (*known)->cost)
			return;
	}
	/* rows that do not meet conditions are dropped behind all joins, and would be matches */
	if (returns_unmatched(jointype) && outer->has_conditions)
	{
		refuse(root, joinrel, OBSTACLE_CLAUSE,
			   "a condition comes before a join that returns rows without a match");
		return;
	}
	if (*known == NULL)
		*known = palloc0(sizeof(Way));
	way = *known;
	way->path = NULL;
	way->cost = cost;
	way->builds_cost = outer->builds_cost +
		(outer->n_workers == 0 ? made : build_cost(root, innerrel, inner, 0));
	way->probe_cost = outer->probe_cost + probe_cost;
	way->n_workers = outer->n_workers;
	way->n_joins = outer->n_joins + 1;
	way->n_keys = outer->n_keys + list_length(keys);
	way->hidden = outer->hidden;
	if (jointype == JOIN_SEMI || jointype == JOIN_ANTI)
		way->hidden = bms_union(outer->hidden, innerrel->relids);
	else if (!has_outer_columns(jointype))
		way->hidden = outerrel->relids;
	way->probe_relids = outer->probe_relids;
	way->by_pages = outer->by_pages;
	way->shares = shares;
	way->outerrel = outerrel;
	way->outer = outer;
	way->inner = inner;
	way->jointype = jointype;
	way->clauses = extra->restrictlist;
	way->keys = keys;
	way->matches = matches;
	way->has_conditions = outer->has_conditions ||
		list_length(keys) + list_length(matches) < list_length(extra->restrictlist);
	way->unmatched = outer->unmatched || returns_unmatched(jointype);
	way->may_be_bad = outer->may_be_bad || bad;
	way->inner_unique = extra->inner_unique;
	way->semifactors = extra->semifactors;
}

/* Is there something to be gained for the query that is being planned? */
static bool
wants_pipelines(PlannerInfo *root)
{
	return current != NULL && level_problem(root) == NULL;
}

static const char *sketch_conditions(ProgramSketch *sketch);
static const char *leaf_problem(const ProgramSketch *sketch, int n_columns);
static bool may_leave_rows(RelOptInfo *rel, const Way *way, const ProgramSketch *sketch);
static bool returns_columns(const Way *way);
static bool returns_hidden(const RelOptInfo *rel, const Way *way);
static Path *make_path(PlannerInfo *root, RelOptInfo *rel, Way *way);

/* Has the way become cheaper, or core's path, since they were compared last? */
static bool
is_news(GpuPipeline *pipeline, const Way *way, List *paths)
{
	const Path *best = gpurhh_core_path(paths);
	Compared	now = {
		.cost = way->cost,
		.best = best,
		.best_cost = best != NULL ? best->total_cost : 0
	};
	Compared   *last = &pipeline->compared[way->n_workers > 0 ? 1 : 0];

	if (last->cost == now.cost && last->best == now.best && last->best_cost == now.best_cost)
		return false;
	*last = now;
	return true;
}

/* What GpuHashJoin really costs that returns a relation's rows, which come this way. */
static PathCost
node_cost(const RelOptInfo *rel, const Way *way)
{
	double		rows = rel->rows;
	PathCost	cost;

	if (way->n_workers > 0)
		rows /= gpurhh_parallel_divisor(way->n_workers);
	cost.startup = gpurhh_setup_cost + way->builds_cost;
	cost.total = cost.startup + way->probe_cost +
		gpurhh_return_rows_cost(rows, list_length(rel->reltarget->exprs));
	return cost;
}

/*
 * A path of GpuHashJoin that returns the pipeline's rows, which come this way, with its
 * real cost, if that is less than what these paths of the relation take; else NULL.
 */
static Path *
make_node(PlannerInfo *root, GpuPipeline *pipeline, Way *way, List *paths)
{
	RelOptInfo *rel = pipeline->rel;
	ProgramSketch sketch = {.root = root, .way = way};
	PathCost	cost = node_cost(rel, way);
	const char *why;

	why = gpurhh_join_cost_problem(paths, cost.total);
	if (why == NULL && !pipeline->knows_return)
	{
		pipeline->return_problem = gpurhh_return_problem(root, rel);
		pipeline->knows_return = true;
	}
	if (why == NULL)
		why = pipeline->return_problem;
	if (why == NULL && returns_hidden(rel, way))
		why = "a column is of a side that has none";
	if (why == NULL && !returns_columns(way))
		why = "an expression is computed below an outer join";
	if (why == NULL)
		why = sketch_conditions(&sketch);
	if (why == NULL)
		why = leaf_problem(&sketch, list_length(rel->reltarget->exprs));
	/* each participant has maps of its own, and would return all that it has not matched itself */
	if (why == NULL && way->unmatched && way->n_workers > 0)
		why = "a join returns rows without a match, and the plan is parallel";
	if (why == NULL && way->unmatched && may_leave_rows(rel, way, &sketch))
		why = "the probe side may have values that no device takes";
	/* rows may have been returned when the first error is found */
	if (why == NULL && way->may_be_bad)
		why = "a condition that decides what a match is might raise an error";
	if (why != NULL)
	{
		refuse(root, rel, OBSTACLE_NODE, "%s", why);
		return NULL;
	}
	refuse(root, rel, OBSTACLE_PLAN,
		   "another plan has the lower cost for the query as a whole");
	return gpurhh_make_join_path(rel, make_path(root, rel, way), way->n_joins,
								 way->n_workers, cost);
}

/*
 * Sees to it that the best such path for this way (NULL: none) is among these paths of the
 * relation, or none if what core would choose is better.
 */
static void
update_node(PlannerInfo *root, GpuPipeline *pipeline, Way *way, List **paths)
{
	Path	   *node;

	if (way == NULL || !is_news(pipeline, way, *paths))
		return;
	*paths = gpurhh_drop_join_paths(*paths);
	node = make_node(root, pipeline, way, *paths);
	if (node != NULL)
		gpurhh_add_join_path(pipeline->rel, node);
}

/* The same for serial and for partial paths. */
static void
update_nodes(PlannerInfo *root, GpuPipeline *pipeline)
{
	RelOptInfo *rel = pipeline->rel;

	update_node(root, pipeline, pipeline->serial, &rel->pathlist);
	if (rel->consider_parallel)
		update_node(root, pipeline, pipeline->partial, &rel->partial_pathlist);
}

/* The path by which the rows of a build side are made. */
static Path *
find_inner(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipeline *pipeline = rel->reloptkind == RELOPT_JOINREL ? lookup(root, rel) : NULL;

	if (pipeline == NULL || current->core_joins)
		return rel->cheapest_total_path;
	/* all its paths are known now */
	if (!pipeline->knows_node && pipeline->serial != NULL)
		pipeline->node = make_node(root, pipeline, pipeline->serial, rel->pathlist);
	pipeline->knows_node = true;
	return pipeline->node != NULL ? pipeline->node : rel->cheapest_total_path;
}

/*
 * The path by which all participants of a parallel plan make the rows of a build side together;
 * NULL: there is none.  A table's pages need no such path.
 */
static Path *
find_shared(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipeline *pipeline;
	Path	   *partial = NULL;

	if (!rel->consider_parallel ||
		(rel->reloptkind == RELOPT_BASEREL && rel->rtekind != RTE_SUBQUERY))
		return NULL;
	pipeline = rel->reloptkind == RELOPT_BASEREL ? scan_of(root, rel) : lookup(root, rel);
	if (pipeline == NULL)
		return NULL;
	if (pipeline->knows_shared)
		return pipeline->shared;
	pipeline->knows_shared = true;
	if (pipeline->partial != NULL && !current->core_joins)
		partial = make_node(root, pipeline, pipeline->partial, rel->partial_pathlist);
	if (partial == NULL && rel->partial_pathlist != NIL)
		partial = linitial(rel->partial_pathlist);
	if (partial != NULL)
		pipeline->shared = gpurhh_make_share_path(rel, partial);
	return pipeline->shared;
}

/* The path by which the rows of a build side are made in a parallel plan; NULL: none does. */
static Path *
find_parallel_inner(PlannerInfo *root, RelOptInfo *rel, Path *inner)
{
	Path	   *shared = find_shared(root, rel);

	if (!inner->parallel_safe)
		inner = get_cheapest_parallel_safe_total_inner(rel->pathlist);
	if (inner == NULL || (shared != NULL && gpurhh_real_cost(shared) < gpurhh_real_cost(inner)))
		inner = shared;
	return inner;
}

/*
 * Would a way that builds the rows of a join relation cost no less than the one that is known,
 * whatever the probe side is and whoever makes these rows?  This spares the work of finding that
 * out.
 */
static bool
is_hopeless(PlannerInfo *root, RelOptInfo *innerrel, const Way *known, bool partial)
{
	GpuPipeline *pipeline;
	Cost		least;

	if (known == NULL || innerrel->reloptkind != RELOPT_JOINREL)
		return false;
	pipeline = lookup_or_make(root, innerrel);
	find_rows(pipeline);
	if (pipeline->serial_rows == NULL)
		return false;
	least = pipeline->serial_rows->cost;
	if (pipeline->serial != NULL)
		least = Min(least, node_cost(innerrel, pipeline->serial).total);
	if (partial && pipeline->partial_rows != NULL)
		least = Min(least, pipeline->partial_rows->cost);
	if (partial && pipeline->partial != NULL)
		least = Min(least, node_cost(innerrel, pipeline->partial).total);
	return least >= known->cost;
}

/* Can rows of these two parts be joined by a device?  If it is cheaper, remembers how. */
static void
consider_parts(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	GpuPipeline *outer;
	GpuPipeline *pipeline;
	Path	   *inner;
	Way		  **known;

	if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
		jointype != JOIN_ANTI && !returns_unmatched(jointype))
		return;
	/* the other way around it is cheaper, see join_cost.c */
	if ((jointype == JOIN_INNER || jointype == JOIN_RIGHT || !has_outer_columns(jointype)) &&
		innerrel->rows > outerrel->rows * GPURHH_BUILD_RATIO)
	{
		refuse(root, joinrel, OBSTACLE_KIND, "the probe side is too small");
		return;
	}
	outer = find_outer(root, outerrel);
	pipeline = lookup_or_make(root, joinrel);
	inner = innerrel->cheapest_total_path;
	if (!is_hopeless(root, innerrel, pipeline->serial, false))
	{
		inner = find_inner(root, innerrel);
		consider_join(root, joinrel, outerrel, outer->serial, innerrel, inner, jointype, extra,
					  &pipeline->serial);
		consider_join(root, joinrel, outerrel, outer->serial_rows, innerrel, inner, jointype,
					  extra, &pipeline->serial);
	}

	if (!joinrel->consider_parallel ||
		(outer->partial == NULL && outer->partial_anew == NULL &&
		 outer->partial_rows == NULL))
		return;
	known = returns_unmatched(jointype) ||
		has_bad_match(root, joinrel, jointype, extra->restrictlist) ?
		&pipeline->partial_anew : &pipeline->partial;
	if (is_hopeless(root, innerrel, *known, true))
		return;
	inner = find_parallel_inner(root, innerrel, inner);
	consider_join(root, joinrel, outerrel, outer->partial, innerrel, inner, jointype, extra, known);
	consider_join(root, joinrel, outerrel, outer->partial_rows, innerrel, inner, jointype,
				  extra, known);
	consider_join(root, joinrel, outerrel, outer->partial_anew, innerrel, inner, jointype,
				  extra, &pipeline->partial_anew);
}

/*
 * The hook: core has made the paths of joinrel from these two parts.  It comes here
 * thousands of times for a query of many tables, so what is cheap to ask is asked first.
 */
static void
remember_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			  RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	GpuPipeline *pipeline;

	if (prev_join_pathlist_hook)
		prev_join_pathlist_hook(root, joinrel, outerrel, innerrel, jointype, extra);

	if (!wants_pipelines(root) || joinrel->reloptkind != RELOPT_JOINREL)
		return;
	if (!bms_is_empty(joinrel->lateral_relids))
	{
		refuse(root, joinrel, OBSTACLE_KIND, "they depend on the rows of another side");
		return;
	}
	/* where core is done before a device is set up, nothing else needs to be known */
	if (joinrel->pathlist != NIL &&
		((Path *) linitial(joinrel->pathlist))->total_cost < gpurhh_setup_cost)
	{
		refuse(root, joinrel, OBSTACLE_KIND,
			   "the estimated cost of %.0f of PostgreSQL's own plan is below gpurhh.setup_cost",
			   ((Path *) linitial(joinrel->pathlist))->total_cost);
		return;
	}
	look_at_level(root);
	if (current->runs_volatile)
	{
		refuse(root, joinrel, OBSTACLE_KIND, "a volatile function is run for their input");
		return;
	}
	consider_parts(root, joinrel, outerrel, innerrel, jointype, extra);
	if (!current->core_joins)
		return;
	pipeline = lookup(root, joinrel);
	if (pipeline != NULL)
		update_nodes(root, pipeline);
}

/*
 * The hook around the search for the order of joins, which is done as without it.  Then
 * all paths are known of the relation that has all tables, and GpuHashJoin over its
 * pipeline may be one of them.
 */
static RelOptInfo *
search_joins(PlannerInfo *root, int levels_needed, List *initial_rels)
{
	RelOptInfo *rel;
	GpuPipeline *pipeline;

	if (prev_join_search_hook)
		rel = prev_join_search_hook(root, levels_needed, initial_rels);
	else if (enable_geqo && levels_needed >= geqo_threshold)
		rel = geqo(root, levels_needed, initial_rels);
	else
		rel = standard_join_search(root, levels_needed, initial_rels);
	pipeline = gpurhh_find_pipeline(root, rel);
	if (pipeline != NULL)
	{
		update_nodes(root, pipeline);
		set_cheapest(rel);
	}
	return rel;
}

/*
 * Why no device does the joins of a query level, all paths of which have been made; NULL:
 * it has no joins.
 */
const char *
gpurhh_unjoined(PlannerInfo *root)
{
	RelOptInfo *rel = NULL;
	GpuPipeline *pipeline;
	const char *problem = level_problem(root);

	if (bms_num_members(root->all_baserels) > 1)
		rel = find_join_rel(root, gpurhh_all_relids(root));
	if (rel == NULL || IS_DUMMY_REL(rel))
		return NULL;
	pipeline = problem == NULL && current != NULL ? lookup(root, rel) : NULL;
	if (pipeline != NULL && pipeline->unjoined != NULL)
		problem = pipeline->unjoined;
	return problem != NULL ? problem : "the genetic search has ordered them";
}

/* ---------- for the grouping ---------- */

/* The cheaper way for a grouping in a parallel plan, or NULL. */
static Way *
cheapest_partial(const GpuPipeline *pipeline)
{
	Way		   *anew = pipeline->partial_anew;

	if (pipeline->partial == NULL ||
		(anew != NULL && anew->cost < pipeline->partial->cost))
		return anew;
	return pipeline->partial;
}

/* The pipeline that is remembered of a relation; NULL: there is none. */
GpuPipeline *
gpurhh_find_pipeline(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipeline *pipeline;

	if (!wants_pipelines(root) || rel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(rel))
		return NULL;
	pipeline = lookup(root, rel);
	return pipeline && (pipeline->serial || cheapest_partial(pipeline)) ? pipeline : NULL;
}

/*
 * Why an expression cannot be computed of one side's rows, before they are joined; NULL:
 * it can.  A side that has no row for some of the output would have to have NULL there,
 * which the expression need not be; if it is strict, it is.  of_match: the expression is of
 * what a match of the last join is, for which the build side has a row.
 */
static const char *
expression_problem(PlannerInfo *root, const Way *way, Expr *expr, bool strict, bool of_match)
{
	int			table = table_of((Node *) expr);
	const char *why;
	bool		missing = false;
	Cost		saving = 0;

	if (table < 0)
		return "an expression of several tables is computed after the join";
	if (!gpurhh_is_by_pages(expr, &why))
		return psprintf("an expression %s", why);
	for (; way->probe == NULL; way = way->outer)
	{
		if (bms_is_member(table, way->inner->parent->relids))
		{
			if (!of_match)
				missing |= way->jointype == JOIN_LEFT || way->jointype == JOIN_FULL;
			if ((!of_match && (way->jointype == JOIN_SEMI || way->jointype == JOIN_ANTI)) ||
				(missing && !strict))
				return "an expression is computed after an outer join";
			if (!gpurhh_reads_pages(root, way->inner, &saving))
				return "an expression of a build side is computed after the join";
			return NULL;
		}
		if (!of_match && !has_outer_columns(way->jointype))
			return "an expression is computed after an outer join";
		missing |= !of_match && returns_unmatched(way->jointype);
		of_match = false;
	}
	if (missing && (!strict || table == 0))
		return "an expression is computed after an outer join";
	return way->by_pages ? NULL : "an expression of rows that are fed is computed after the join";
}

/*
 * The clauses of the joins on this way that rows of the output have to meet, those of the first
 * join first: as one expression, or NULL.
 */
static Expr *
all_conditions(const Way *way)
{
	List	   *conditions = NIL;

	for (; way->probe == NULL; way = way->outer)
	{
		List	   *others = list_difference_ptr(way->clauses, way->keys);
		List	   *of_join = extract_actual_clauses(list_difference_ptr(others, way->matches),
													 false);

		conditions = list_concat(of_join, conditions);
	}
	return conditions == NIL ? NULL : make_ands_explicit(conditions);
}

/* Adds a column that is fed so to a program.  False: no device can compute it. */
static bool
sketch_column(ProgramSketch *sketch, Expr *expr, GpuColumn how)
{
	uint8		number;
	VectorType	type;
	const char *why;

	return sketch_expression(sketch, expr, &number, &type, &why) &&
		gpurhh_program_store(&sketch->program, number, type, how, 0, &why);
}

/*
 * Why a device cannot look whether what a join on the sketch's way finds by its keys is a match;
 * NULL: it can.
 */
static const char *
match_problem(ProgramSketch *sketch)
{
	for (const Way *way = sketch->way; way->probe == NULL; way = way->outer)
	{
		ProgramSketch of_join = {.root = sketch->root, .way = way, .of_match = true};
		Expr	   *condition = make_ands_explicit(extract_actual_clauses(way->matches, false));
		uint8		number;
		VectorType	type;
		const char *why;

		if (way->matches == NIL)
			continue;
		if (!sketch_expression(&of_join, condition, &number, &type, &why))
			return psprintf("a condition of the joins %s", why);
		/* it is not fed as it was thought to be, and nothing has been prepared for that */
		if (rhh_program_may_be_bad(&of_join.program) && !sketch->way->may_be_bad)
			return "a condition of an outer join may be an error for some rows";
		sketch->n_match_columns += of_join.n_columns;
	}
	return NULL;
}

/*
 * Adds the joins' conditions to a program, without those that say what a match is, which have
 * programs of their own.  Returns why a device cannot use them, or NULL: it can.
 */
static const char *
sketch_conditions(ProgramSketch *sketch)
{
	Expr	   *conditions = all_conditions(sketch->way);
	uint8		number;
	VectorType	type;
	const char *why = match_problem(sketch);

	if (why != NULL)
		return why;
	if (conditions == NULL || sketch_expression(sketch, conditions, &number, &type, &why))
		return NULL;
	return psprintf("a condition of the joins %s", why);
}

/*
 * Why a device cannot have all columns that a program reads, beside so many columns that
 * are fed for something else; NULL: it can.
 */
static const char *
leaf_problem(const ProgramSketch *sketch, int n_columns)
{
	ListCell   *lc;

	foreach(lc, sketch->leaves)
	{
		/* of others expression_problem() has found it out */
		if (IsA(lfirst(lc), Var) &&
			bms_is_member(((Var *) lfirst(lc))->varno, sketch->way->hidden))
			return "a column is of a side that has none";
	}
	if (n_columns + sketch->n_columns + sketch->n_match_columns + sketch->way->n_keys >
		RHH_MAX_COLUMNS)
		return "there are too many columns";
	return NULL;
}

/* Is one of the columns that expressions have of a table one that not every row can have? */
static bool
has_odd_column(List *exprs, Relids table)
{
	List	   *vars = pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES |
									   PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, vars)
	{
		Var		   *var = lfirst(lc);
		GpuColumn	column;
		const char *problem;

		if (bms_is_member(var->varno, table) &&
			(!gpurhh_resolve_bytes(var->vartype, &column, &problem) ||
			 gpurhh_is_string(column.encoding)))
			return true;
	}
	return false;
}

/*
 * May there be a row of the probe side that has something that no column can have, of what
 * is needed to return the rows of rel?  Or an expression that cannot be computed of it?
 */
static bool
may_leave_rows(RelOptInfo *rel, const Way *way, const ProgramSketch *sketch)
{
	List	   *exprs = list_concat_copy(rel->reltarget->exprs, sketch->leaves);
	Relids		probe = NULL;
	ListCell   *lc;

	for (; way->probe == NULL; way = way->outer)
	{
		exprs = list_concat(exprs, get_actual_clauses(way->keys));
		exprs = list_concat(exprs, get_actual_clauses(way->matches));
		probe = way->outerrel->relids;
	}
	foreach(lc, sketch->leaves)
	{
		if (!IsA(lfirst(lc), Var) &&
			bms_is_member(table_of(lfirst(lc)), probe))
			return true;
	}
	return has_odd_column(exprs, probe);
}

/*
 * Why a device cannot make the columns that are to be fed of the rows that come this
 * way, or drop those that do not meet the joins' conditions; NULL: it can.
 */
static const char *
column_problem(PlanInfo *info, const Way *way)
{
	ProgramSketch sketch = {.root = info->root, .way = way};
	const char *why = sketch_conditions(&sketch);
	ListCell   *lc;

	if (why != NULL)
		return why;
	foreach(lc, info->plan->columns)
	{
		const GpuPlanColumn *column = lfirst(lc);
		Expr	   *expr = list_nth(info->child_target->exprs, column->attribute);
		Var		   *var;

		if (gpurhh_is_candidate(column->encoding))
			return "an aggregate needs more than a column by itself";
		if (gpurhh_is_of_pair(column->encoding))
		{
			GpuColumn	pair = {.encoding = column->encoding, .parameter = column->parameter};

			if (!gpurhh_program_pair(&sketch.program, pair, 0, &why))
				return psprintf("an expression %s", why);
			continue;
		}
		if (IsA(expr, Const) && !way->unmatched &&
			gpurhh_is_single_key(column->encoding, (Const *) expr))
			continue;
		var = column_of(expr);
		if (var == NULL || gpurhh_encodings[column->encoding].role == ROLE_FILTER)
		{
			const char *problem = expression_problem(info->root, way, expr, false, false);
			GpuColumn	how = {.encoding = column->encoding, .parameter = column->parameter};

			if (problem != NULL && !sketch_column(&sketch, expr, how))
				return problem;
		}
		else if (bms_is_member(var->varno, way->hidden))
			return "a column is of a side that has none";
	}
	return leaf_problem(&sketch, list_length(info->plan->columns));
}

/* Do all join relations between the joins return columns and nothing else? */
static bool
returns_columns(const Way *way)
{
	ListCell   *lc;

	for (; way->outer->probe == NULL; way = way->outer)
	{
		foreach(lc, way->outerrel->reltarget->exprs)
		{
			if (!IsA(lfirst(lc), Var))
				return false;
		}
	}
	return true;
}

/* Does a relation return a column that no row has? */
static bool
returns_hidden(const RelOptInfo *rel, const Way *way)
{
	ListCell   *lc;

	if (way->hidden == NULL)
		return false;
	foreach(lc, rel->reltarget->exprs)
	{
		if (bms_is_member(lfirst_node(Var, lc)->varno, way->hidden))
			return true;
	}
	return false;
}

static Path *
make_path(PlannerInfo *root, RelOptInfo *rel, Way *way)
{
	JoinCostWorkspace workspace;
	JoinPathExtraData extra = {0};
	Path	   *outer;
	HashPath   *path;

	if (way->probe != NULL)
		return way->probe;
	if (way->path != NULL)
		return way->path;
	outer = make_path(root, way->outerrel, way->outer);
	/* the rest of it is for paths with parameters */
	extra.restrictlist = way->clauses;
	extra.inner_unique = way->inner_unique;
	extra.semifactors = way->semifactors;
	initial_cost_hashjoin(root, &workspace, way->jointype, way->keys, outer, way->inner,
						  &extra, false);
	path = create_hashjoin_path(root, rel, way->jointype, &workspace, &extra, outer,
								way->inner, false, way->clauses, NULL, way->keys);
	path->jpath.path.total_cost = way->cost;
	path->jpath.path.startup_cost = Min(path->jpath.path.startup_cost, way->cost);
	way->path = &path->jpath.path;
	return way->path;
}

/*
 * The path of the pipeline below a grouping that has been planned, with its real cost;
 * partial: for a parallel plan.  NULL: there is none, or the device cannot make what the
 * grouping needs; then *why says why.
 */
Path *
gpurhh_pipeline_path(PlanInfo *info, bool partial, const char **why)
{
	GpuPipeline *pipeline = info->pipeline;
	Way		   *way = partial ? cheapest_partial(pipeline) : pipeline->serial;

	if (way == NULL)
		return NULL;
	*why = column_problem(info, way);
	if (*why == NULL && !returns_columns(way))
		*why = "an expression is computed below an outer join";
	if (*why != NULL)
		return NULL;
	return make_path(info->root, pipeline->rel, way);
}

/* How many joins that path has, which a device does. */
int
gpurhh_pipeline_joins(const PlanInfo *info, bool partial)
{
	return partial ? cheapest_partial(info->pipeline)->n_joins : info->pipeline->serial->n_joins;
}

void
gpurhh_init_join_path(void)
{
	prev_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = remember_join;
	prev_join_search_hook = join_search_hook;
	join_search_hook = search_joins;
}
