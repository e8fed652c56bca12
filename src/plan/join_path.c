/*-------------------------------------------------------------------------
 *
 * join_path.c
 *		Joins that a device can do: which there are, and their paths.
 *
 * A pipeline reads one table, the probe side, and joins its rows with one build side
 * after the other, all of it on the device.  Its path is a left-deep chain of core's
 * HashPaths over a sequential scan.  It is a valid path as it stands: the executor takes
 * the plan over where it can, and asks core's HashJoin for rows where it cannot.  Above it
 * is GpuHashAgg, so that only groups leave the device, or GpuHashJoin, which returns the
 * rows.
 *
 * Core's planner makes join relations of two, three and more relations, and asks a hook
 * for paths each time that it has found two parts to make one of.  Core would drop a
 * pipeline's path there, because it keeps what returns rows cheapest.  So for each join
 * relation the cheapest pipeline is remembered here, as a few pointers and its cost
 * (remember_join), and a path for GpuHashAgg is made only for the one relation that is
 * grouped at last (gpurhh_pipeline_path).  Where a relation's rows would come to more
 * than all that core has to do for them, nothing else happens.  Otherwise GpuHashJoin over
 * the pipeline joins core's paths for the relation (add_node).
 *
 * What is remembered belongs to one call of the planner.  It is in the planner's memory,
 * and is forgotten when the planner is done (gpurhh_begin_pipelines).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/typcache.h"

#include "compat.h"
#include "expr/expr.h"
#include "plan/plan_info.h"
#include "settings.h"

static set_join_pathlist_hook_type prev_join_pathlist_hook = NULL;

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
	Path	   *scan;			/* a base relation: of the probe side */
	/* a join relation: */
	GpuPipeline *outer;
	Path	   *inner;			/* of the build side */
	JoinType	jointype;
	List	   *clauses;		/* all of them, and those that are keys */
	List	   *keys;
	bool		has_conditions; /* one of the joins, this one or one below */
	bool		unmatched;		/* one of the joins returns rows of its build side that
								 * nothing matches */
	bool		inner_unique;	/* JoinPathExtraData's */
	SemiAntiJoinFactors semifactors;
} Way;

/* What is remembered of a relation. */
struct GpuPipeline
{
	RelOptInfo *rel;
	Way		   *serial;			/* NULL: there is none */
	Way		   *partial;		/* for parallel plans; the same */
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
	GpuPipeline **scans;		/* and its base relations, by their relids; NULL: that
								 * one was not looked at */
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

/*
 * What is remembered for the query that is being planned.  Somebody may call
 * standard_planner() without the hooks while another query is being planned.  The two
 * have different PlannerGlobals, and what is remembered for the one is forgotten when
 * the other one goes on, because its memory may be gone.
 */
static GpuPipelines *
pipelines_of(PlannerInfo *root)
{
	if (current->glob != root->glob)
	{
		current->glob = root->glob;
		current->root = NULL;
		current->relations = remembered_create(root->planner_cxt, 32, NULL);
		current->clauses = clauses_create(root->planner_cxt, 32, NULL);
	}
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
	way->scan = scan;
	return way;
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

/* The pipeline of a base relation, which may have no way. */
static GpuPipeline *
scan_of(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipelines *pipelines = pipelines_of(root);

	if (pipelines->root != root)
	{
		pipelines->root = root;
		pipelines->scans = palloc0(sizeof(GpuPipeline *) * root->simple_rel_array_size);
	}
	if (pipelines->scans[rel->relid] == NULL)
	{
		pipelines->scans[rel->relid] = make_pipeline(rel);
		find_scans(root, pipelines->scans[rel->relid]);
	}
	return pipelines->scans[rel->relid];
}

/* The pipeline whose rows are a relation's; NULL: there is none. */
static GpuPipeline *
find_outer(PlannerInfo *root, RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL ? scan_of(root, rel) : lookup(root, rel);
}

/* ---------- what a device can join by ---------- */

static Expr *
strip_relabels(Expr *expr)
{
	while (expr && IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

/* The column that an operand is, whatever type it passes for; NULL: it is none. */
static Var *
column_of(Expr *operand)
{
	Var		   *var = (Var *) strip_relabels(operand);

	return IsA(var, Var) && var->varattno > 0 ? var : NULL;
}

/*
 * Is it the equality of bytes that an operator computes of two columns?  Both have to
 * be fed in the same encoding, as columns and as what they pass for: a varchar that
 * passes for a bpchar is compared without its trailing blanks.
 */
static bool
compares_bytes(OpExpr *op, Var *columns[2])
{
	Oid			type = exprType(linitial(op->args));
	GpuColumn	found[4];
	const char *problem;

	if (exprType(lsecond(op->args)) != type || op->opno >= FirstGenbkiObjectId ||
		op->opno != lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr)
		return false;
	for (int i = 0; i < 2; i++)
	{
		if (!gpurhh_resolve_type((Node *) columns[i], &found[i], &problem) ||
			!gpurhh_resolve_type(list_nth(op->args, i), &found[i + 2], &problem))
			return false;
	}
	/* values are compared by the operator's collation, which need not be a column's */
	if (gpurhh_is_string(found[0].encoding) &&
		!gpurhh_resolve(type, exprTypmod(linitial(op->args)), op->inputcollid,
						&found[2], &problem))
		return false;
	for (int i = 1; i < 4; i++)
	{
		if (found[i].encoding != found[0].encoding ||
			found[i].parameter != found[0].parameter)
			return false;
	}
	return true;
}

/* What there is to remember of a join clause. */
static RememberedClause *
look_at_clause(PlannerInfo *root, RestrictInfo *clause)
{
	bool		found;
	RememberedClause *entry = clauses_insert(pipelines_of(root)->clauses, clause, &found);
	OpExpr	   *op = (OpExpr *) clause->clause;
	Var		   *columns[2];

	if (found)
		return entry;
	entry->is_key = false;
	entry->use = CLAUSE_UNKNOWN;
	if (!clause->can_join || !OidIsValid(clause->hashjoinoperator))
		return entry;
	for (int i = 0; i < 2; i++)
	{
		columns[i] = column_of(list_nth(op->args, i));
		if (columns[i] == NULL)
			return entry;
		entry->relids[i] = columns[i]->varno;
	}
	entry->is_key = compares_bytes(op, columns);
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

/* Does a join return rows of its inner relation that nothing matches? */
static bool
returns_unmatched(JoinType jointype)
{
	return jointype == JOIN_RIGHT || jointype == JOIN_FULL;
}

/* What a program is made of, as far as it is known when planning. */
typedef struct ProgramSketch
{
	rhh_program program;
	List	   *leaves;			/* Vars, and conditions that are fed */
	PlannerInfo *root;
	const Way  *way;			/* NULL: not known yet */
} ProgramSketch;

static const char *expression_problem(PlannerInfo *root, const Way *way, Expr *expr,
									  bool strict);

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

/* Is it a column that a device can compute with, or can it be made one? */
static bool
is_leaf(ProgramSketch *sketch, Node *expr, bool only_null, VectorType *type)
{
	GpuColumn	how;
	const char *problem;

	if (gpurhh_is_fed_condition((Expr *) expr))
	{
		*type = VECTOR_BOOL;
		return sketch->way == NULL ?
			table_of(expr) > 0 && gpurhh_is_by_pages((Expr *) expr, &problem) :
			expression_problem(sketch->root, sketch->way, (Expr *) expr,
							   !contain_nonstrict_functions(expr)) == NULL;
	}
	if (!IsA(expr, Var) || ((Var *) expr)->varattno <= 0 ||
		!gpurhh_resolve_type(expr, &how, &problem) || gpurhh_is_string(how.encoding))
		return false;
	*type = gpurhh_encodings[how.encoding].vector;
	return *type != VECTOR_ANY || only_null;
}

/* gpurhh_vector_compile()'s question about an expression that a device is to compute. */
static bool
find_leaf(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	ProgramSketch *sketch = arg;
	ListCell   *lc;

	if (!is_leaf(sketch, expr, only_null, type))
		return false;
	foreach(lc, sketch->leaves)
	{
		*column = foreach_current_index(lc);
		if (equal(lfirst(lc), expr))
			return true;
	}
	*column = list_length(sketch->leaves);
	sketch->leaves = lappend(sketch->leaves, expr);
	return *column < RHH_MAX_COLUMNS;
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

/*
 * Can a device drop the rows of the output that do not meet a clause?  Not where the clause
 * says what a match is, without which there is a row too (or none is wanted).
 */
static bool
is_condition(PlannerInfo *root, RelOptInfo *joinrel, const Way *outer, JoinType jointype,
			 RestrictInfo *clause)
{
	RememberedClause *known;

	if (jointype != JOIN_INNER &&
		((jointype != JOIN_LEFT && !returns_unmatched(jointype)) ||
		 !RINFO_IS_PUSHED_DOWN(clause, joinrel->relids)))
		return false;
	/* columns that are equal may stand for each other, as in is_key() */
	if (clause->pseudoconstant || bms_overlap(clause->clause_relids, outer->hidden))
		return false;
	known = look_at_clause(root, clause);
	if (known->use == CLAUSE_UNKNOWN)
	{
		ProgramSketch sketch = {.root = root};
		uint8		number;
		VectorType	type;
		const char *why;

		known->use = sketch_expression(&sketch, clause->clause, &number, &type, &why) ?
			CLAUSE_CONDITION : CLAUSE_OF_CORE;
	}
	return known->use == CLAUSE_CONDITION;
}

/*
 * Can a device join the rows that come this way by these clauses?  Then *keys become those
 * by whose equality it finds matches; the others are conditions.
 */
static bool
has_keys(PlannerInfo *root, RelOptInfo *joinrel, const Way *outer, RelOptInfo *outerrel,
		 RelOptInfo *innerrel, JoinType jointype, List *clauses, List **keys)
{
	ListCell   *lc;

	*keys = NIL;
	foreach(lc, clauses)
	{
		if (is_key(root, joinrel, outer, outerrel, innerrel, jointype, lfirst(lc)))
			*keys = lappend(*keys, lfirst(lc));
		else if (!is_condition(root, joinrel, outer, jointype, lfirst(lc)))
			return false;
	}
	return *keys != NIL && list_length(*keys) <= RHH_MAX_KEYS;
}

/* ---------- joins ---------- */

/*
 * What it costs to feed a build side and to put it into its map.  In a parallel plan all
 * participants read a large table together; all else is asked for its rows by one.
 */
static Cost
build_cost(PlannerInfo *root, RelOptInfo *innerrel, Path *inner, int n_workers)
{
	Cost		cost;

	if (innerrel->reloptkind == RELOPT_BASEREL)
	{
		GpuPipeline *scan = scan_of(root, innerrel);

		if (scan->serial != NULL && scan->serial->scan == inner)
		{
			cost = scan->serial->cost;
			if (n_workers > 0 && inner->pathtype == T_SeqScan &&
				innerrel->pages >= GPURHH_SHARED_BUILD_PAGES)
				cost /= gpurhh_parallel_divisor(n_workers);
			return cost + gpurhh_build_cost(inner->rows);
		}
	}
	/* what makes the rows is core's, and may have joins in it */
	return inner->total_cost + gpurhh_joins_undercharge(inner) +
		gpurhh_feed_rows_cost(inner->rows) + gpurhh_build_cost(inner->rows);
}

/*
 * If joining inner to the rows that come the way outer is possible and cheaper than
 * *known, *known becomes that.
 */
static void
consider_join(PlannerInfo *root, RelOptInfo *joinrel, GpuPipeline *from, Way *outer,
			  RelOptInfo *innerrel, Path *inner, JoinType jointype,
			  JoinPathExtraData *extra, Way **known)
{
	RelOptInfo *outerrel = from->rel;
	double		probe_rows = outerrel->rows;
	Cost		probe_cost;
	List	   *keys;
	Cost		cost;
	Way		   *way;

	if (outer == NULL || outer->n_joins == RHH_MAX_JOINS || inner == NULL ||
		inner->param_info != NULL)
		return;
	if (outer->n_workers > 0)
		probe_rows /= gpurhh_parallel_divisor(outer->n_workers);
	probe_cost = gpurhh_probe_cost(inner->rows, probe_rows);
	cost = outer->cost + probe_cost;
	if (*known == NULL || cost < (*known)->cost)
		cost += build_cost(root, innerrel, inner, outer->n_workers);
	if (*known != NULL && cost >= (*known)->cost)
		return;
	if (!has_keys(root, joinrel, outer, outerrel, innerrel, jointype, extra->restrictlist,
				  &keys))
		return;
	/* rows that do not meet conditions are dropped behind all joins, and would be matches */
	if (returns_unmatched(jointype) && outer->has_conditions)
		return;
	if (*known == NULL)
		*known = palloc0(sizeof(Way));
	way = *known;
	way->cost = cost;
	way->builds_cost = outer->builds_cost + build_cost(root, innerrel, inner, 0);
	way->probe_cost = outer->probe_cost + probe_cost;
	way->n_workers = outer->n_workers;
	way->n_joins = outer->n_joins + 1;
	way->n_keys = outer->n_keys + list_length(keys);
	way->hidden = jointype == JOIN_SEMI || jointype == JOIN_ANTI ?
		bms_union(outer->hidden, innerrel->relids) : outer->hidden;
	way->outer = from;
	way->inner = inner;
	way->jointype = jointype;
	way->clauses = extra->restrictlist;
	way->keys = keys;
	way->has_conditions = outer->has_conditions ||
		list_length(keys) < list_length(extra->restrictlist);
	way->unmatched = outer->unmatched || returns_unmatched(jointype);
	way->inner_unique = extra->inner_unique;
	way->semifactors = extra->semifactors;
}

/* Is there something to be gained for the query that is being planned? */
static bool
wants_pipelines(PlannerInfo *root)
{
	Query	   *parse = root->parse;

	if (!enable_gpu_hashjoin || !enable_hashjoin || current == NULL)
		return false;
	/* the genetic search frees its join relations */
	return root->join_search_private == NULL && root->rowMarks == NIL &&
		(parse->commandType == CMD_SELECT || parse->commandType == CMD_INSERT);
}

static const char *sketch_conditions(ProgramSketch *sketch);
static const char *leaf_problem(const ProgramSketch *sketch, int n_columns);
static bool may_leave_rows(RelOptInfo *rel, const Way *way, const ProgramSketch *sketch);
static bool returns_columns(const Way *way);
static Path *make_path(PlannerInfo *root, RelOptInfo *rel, Way *way);

/*
 * Adds a path of GpuHashJoin that returns the rows of a relation, which come this way
 * (NULL: none), if it is better than what core has just made, or was found before.
 */
static void
add_node(PlannerInfo *root, RelOptInfo *rel, Way *way)
{
	ProgramSketch sketch = {.root = root, .way = way};
	double		rows = rel->rows;
	PathCost	cost;

	if (way == NULL)
		return;
	if (way->n_workers > 0)
		rows /= gpurhh_parallel_divisor(way->n_workers);
	cost.startup = gpurhh_setup_cost + way->builds_cost;
	cost.total = cost.startup + way->probe_cost +
		gpurhh_return_rows_cost(rows, list_length(rel->reltarget->exprs));
	if (!gpurhh_join_path_is_better(rel, way->n_workers, cost.total))
		return;
	if (!gpurhh_can_return(root, rel, way->hidden) || !returns_columns(way) ||
		sketch_conditions(&sketch) != NULL ||
		leaf_problem(&sketch, list_length(rel->reltarget->exprs)) != NULL ||
		(way->unmatched && may_leave_rows(rel, way, &sketch)))
		return;
	gpurhh_add_join_path(root, rel, make_path(root, rel, way), way->n_joins, way->n_workers,
						 cost);
}

/* Can rows of these two parts be joined by a device?  If it is cheaper, remembers how. */
static void
consider_parts(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	GpuPipeline *outer;
	GpuPipeline *pipeline;
	Path	   *inner = innerrel->cheapest_total_path;

	if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
		jointype != JOIN_ANTI && !returns_unmatched(jointype))
		return;
	/* the other way around it is cheaper, see join_cost.c */
	if ((jointype == JOIN_INNER || (jointype == JOIN_RIGHT && find_outer(root, innerrel) != NULL)) &&
		innerrel->rows > outerrel->rows * GPURHH_BUILD_RATIO)
		return;
	outer = find_outer(root, outerrel);
	if (outer == NULL || (outer->serial == NULL && outer->partial == NULL))
		return;
	pipeline = lookup_or_make(root, joinrel);
	consider_join(root, joinrel, outer, outer->serial, innerrel, inner, jointype, extra,
				  &pipeline->serial);
	/*
	 * If core had to join after all, each participant would return all rows that it has
	 * not matched itself.
	 */
	if (outer->partial == NULL || !joinrel->consider_parallel || returns_unmatched(jointype))
		return;
	if (!inner->parallel_safe)
		inner = get_cheapest_parallel_safe_total_inner(innerrel->pathlist);
	consider_join(root, joinrel, outer, outer->partial, innerrel, inner, jointype, extra,
				  &pipeline->partial);
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

	if (!wants_pipelines(root) || joinrel->reloptkind != RELOPT_JOINREL ||
		!bms_is_empty(joinrel->lateral_relids))
		return;
	/* where core is done before a device is set up, nothing else needs to be known */
	if (joinrel->pathlist != NIL &&
		((Path *) linitial(joinrel->pathlist))->total_cost < gpurhh_setup_cost)
		return;
	consider_parts(root, joinrel, outerrel, innerrel, jointype, extra);
	pipeline = lookup(root, joinrel);
	if (pipeline == NULL)
		return;
	/* core may have made a better path, to whose scale the node's is to be brought */
	add_node(root, joinrel, pipeline->serial);
	if (joinrel->consider_parallel)
		add_node(root, joinrel, pipeline->partial);
}

/* ---------- for the grouping ---------- */

/* The pipeline that is remembered of a relation; NULL: there is none. */
GpuPipeline *
gpurhh_find_pipeline(PlannerInfo *root, RelOptInfo *rel)
{
	GpuPipeline *pipeline;

	if (!wants_pipelines(root) || rel->reloptkind != RELOPT_JOINREL || IS_DUMMY_REL(rel))
		return NULL;
	pipeline = lookup(root, rel);
	return pipeline && (pipeline->serial || pipeline->partial) ? pipeline : NULL;
}

/* What comes before a join's output. */
static Way *
below(const Way *way)
{
	return way->n_workers > 0 ? way->outer->partial : way->outer->serial;
}

/*
 * Why an expression cannot be computed of one side's rows, before they are joined; NULL:
 * it can.  A side that has no row for some of the output would have to have NULL there,
 * which the expression need not be; if it is strict, it is.
 */
static const char *
expression_problem(PlannerInfo *root, const Way *way, Expr *expr, bool strict)
{
	int			table = table_of((Node *) expr);
	const char *why;
	bool		missing = false;
	Cost		saving = 0;

	if (table < 0)
		return "an expression of several tables is computed after the join";
	if (!gpurhh_is_by_pages(expr, &why))
		return psprintf("an expression %s", why);
	while (way->scan == NULL)
	{
		if (bms_is_member(table, way->inner->parent->relids))
		{
			missing |= way->jointype == JOIN_LEFT || way->jointype == JOIN_FULL;
			if (way->jointype == JOIN_SEMI || way->jointype == JOIN_ANTI || (missing && !strict))
				return "an expression is computed after an outer join";
			if (!gpurhh_reads_pages(root, way->inner, &saving))
				return "an expression of a build side is computed after the join";
			return NULL;
		}
		missing |= returns_unmatched(way->jointype);
		way = below(way);
	}
	if (missing && (!strict || table == 0))
		return "an expression is computed after an outer join";
	return NULL;
}

/*
 * The clauses of the joins on this way that are conditions, those of the first join first:
 * as one expression, or NULL.
 */
static Expr *
all_conditions(const Way *way)
{
	List	   *conditions = NIL;

	for (; way->scan == NULL; way = below(way))
	{
		List	   *of_join = extract_actual_clauses(list_difference_ptr(way->clauses, way->keys),
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
 * Adds the joins' conditions to a program.  Returns why a device cannot drop the rows that
 * do not meet them, or NULL: it can.
 */
static const char *
sketch_conditions(ProgramSketch *sketch)
{
	Expr	   *conditions = all_conditions(sketch->way);
	uint8		number;
	VectorType	type;
	const char *why;

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
	if (n_columns + list_length(sketch->leaves) + sketch->way->n_keys > RHH_MAX_COLUMNS)
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
	const Way  *bottom = way;
	ListCell   *lc;

	for (; way->scan == NULL; way = below(way))
	{
		exprs = list_concat(exprs, get_actual_clauses(way->keys));
		bottom = way;
	}
	foreach(lc, sketch->leaves)
	{
		if (!IsA(lfirst(lc), Var) &&
			bms_is_member(table_of(lfirst(lc)), bottom->outer->rel->relids))
			return true;
	}
	return has_odd_column(exprs, bottom->outer->rel->relids);
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

		if (gpurhh_is_of_pair(column->encoding) || gpurhh_is_candidate(column->encoding))
			return "an aggregate needs more than a column by itself";
		if (IsA(expr, Const) && !way->unmatched &&
			gpurhh_is_single_key(column->encoding, (Const *) expr))
			continue;
		var = column_of(expr);
		if (var == NULL || gpurhh_encodings[column->encoding].role == ROLE_FILTER)
		{
			const char *problem = expression_problem(info->root, way, expr, false);
			GpuColumn	how = {.encoding = column->encoding, .parameter = column->parameter};

			/* a numeric as a key has to be one that its type declares */
			if (problem != NULL &&
				((column->encoding == GPU_ENC_DECIMAL &&
				  list_member_int(info->plan->key_columns, foreach_current_index(lc))) ||
				 !sketch_column(&sketch, expr, how)))
				return problem;
		}
		else if (bms_is_member(var->varno, way->hidden))
			return "a column is of a side that has none";
	}
	return leaf_problem(&sketch, list_length(info->plan->columns));
}

/* Do all join relations below return columns and nothing else? */
static bool
returns_columns(const Way *way)
{
	ListCell   *lc;

	for (; way->outer->rel->reloptkind == RELOPT_JOINREL; way = below(way))
	{
		foreach(lc, way->outer->rel->reltarget->exprs)
		{
			if (!IsA(lfirst(lc), Var))
				return false;
		}
	}
	return true;
}

static Path *
make_path(PlannerInfo *root, RelOptInfo *rel, Way *way)
{
	JoinCostWorkspace workspace;
	JoinPathExtraData extra = {0};
	Path	   *outer;
	HashPath   *path;

	if (way->scan != NULL)
		return way->scan;
	outer = make_path(root, way->outer->rel, below(way));
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
	return &path->jpath.path;
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
	Way		   *way = partial ? pipeline->partial : pipeline->serial;

	if (way == NULL)
		return NULL;
	*why = column_problem(info, way);
	if (*why == NULL && !returns_columns(way))
		*why = "an expression is computed below an outer join";
	if (*why != NULL)
		return NULL;
	return make_path(info->root, pipeline->rel, way);
}

void
gpurhh_init_join_path(void)
{
	prev_join_pathlist_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = remember_join;
}
