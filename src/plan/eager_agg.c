/*-------------------------------------------------------------------------
 *
 * eager_agg.c
 *		Groups a table before it is joined, where each of its rows would be joined with
 *		many others.
 *
 * A grouping of tables that have many rows for each value of their join columns
 *
 *		SELECT a.g, count(*), sum(a.x), sum(b.y), sum(a.x * b.y)
 *		FROM a JOIN b ON a.k = b.k GROUP BY a.g
 *
 * needs no pair of rows.  Of b it is enough to know how many rows there are for each k,
 * and the sum of their y:
 *
 *		SELECT a.g, sum(q.n), sum(a.x * q.n), sum(q.y), sum(a.x * q.y)
 *		FROM a JOIN (SELECT k, count(*) AS n, sum(y) AS y FROM b GROUP BY k) q ON a.k = q.k
 *		GROUP BY a.g
 *
 * This takes time linear in the rows.  It is the eager aggregation of Yan and Larson
 * ("Eager Aggregation and Lazy Aggregation", VLDB 1995), in their terms eager
 * group-by-count.  The query is written anew before it is planned: one level of it or
 * several, in each level one table after the other.  So what is planned is a query like any
 * other, and core could run it as well.
 *
 * The columns of b that are used outside of aggregates, in conditions with other tables
 * and as grouping columns, are those that b is grouped by.  Rows that are equal there are
 * joined with the same rows, whatever the conditions are.  For this, what is equal must be
 * the same (has_images).  b's own conditions move with it.  Aggregates of other
 * tables' columns count each row n times, those of b's columns are made of b's aggregates
 * (eager_sums.c).
 *
 * When one table has been grouped, others are grouped in the same way if they have many rows
 * for each of their groups.  Then few rows are joined at last; but grouping a table takes
 * longer than joining its rows with few others, so that is another plan to compare.
 *
 * Whether a level is a candidate is a guess from the statistics of its tables, because
 * nothing is planned yet.  If there is one, all of these queries are planned, and the plan that is
 * estimated to cost least is used (finish_plan.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parse_oper.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/eager.h"
#include "plan/plan_info.h"
#include "settings.h"

/* More tables than these are joined in the order in which they are written. */
#define MAX_TABLES		8
/* A table is worth grouping if it has so many rows for a group, */
#define MIN_GROUP_ROWS	4.0
/* and if it has so many pairs with another table for each row of both. */
#define MIN_PAIRS		4.0

/* A query level whose tables have inner joins only. */
typedef struct Level
{
	Query	   *query;
	List	   *tables;			/* RangeTblRefs */
	List	   *conditions;		/* of its joins and of WHERE; all hold */
	List	   *targets;		/* TargetEntries */
	Node	   *having;
	bool		has_grouped;	/* one of the tables has been grouped */
} Level;

/* ---------- which columns are used ---------- */

typedef struct UsedColumns
{
	int			table;
	bool		in_aggregates;	/* look at their arguments, too */
	Bitmapset  *columns;		/* of the table, by attribute numbers less
								 * FirstLowInvalidHeapAttributeNumber */
	bool		others;			/* there are columns of other tables */
} UsedColumns;

static bool
used_columns_walker(Node *node, UsedColumns *used)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) && ((Var *) node)->varlevelsup == 0)
	{
		const Var  *var = (Var *) node;

		if (var->varno == used->table)
			used->columns = bms_add_member(used->columns, var->varattno -
										   FirstLowInvalidHeapAttributeNumber);
		else
			used->others = true;
		return false;
	}
	if (IsA(node, Aggref) && ((Aggref *) node)->agglevelsup == 0 && !used->in_aggregates)
		return false;
	return expression_tree_walker(node, used_columns_walker, used);
}

/* The columns of a table in an expression. */
Bitmapset *
gpurhh_eager_columns(Node *expr, int table)
{
	UsedColumns used = {.table = table, .in_aggregates = true};

	used_columns_walker(expr, &used);
	return used.columns;
}

/* Does a condition have columns of this table, and of others? */
static bool
is_of_several(Node *condition, int table)
{
	UsedColumns used = {.table = table, .in_aggregates = true};

	used_columns_walker(condition, &used);
	return used.columns != NULL && used.others;
}

/* The columns of the table that it has to be grouped by. */
static Bitmapset *
find_group_columns(const Level *level, int table)
{
	UsedColumns used = {.table = table};
	ListCell   *lc;

	used_columns_walker((Node *) level->targets, &used);
	used_columns_walker(level->having, &used);
	foreach(lc, level->conditions)
	{
		if (is_of_several(lfirst(lc), table))
			used_columns_walker(lfirst(lc), &used);
	}
	return used.columns;
}

/*
 * Are values of a column that are equal the same in all that one can ask of them?  The
 * type's B-tree operator class says so; it is how B-trees know whether they may merge equal
 * entries.  Numerics have a scale besides; but not if all have the same one.
 */
static bool
has_images(Oid relid, AttrNumber attribute)
{
	Oid			type;
	int32		typmod;
	Oid			collation;
	TypeCacheEntry *cache;
	Oid			function;

	get_atttypetypmodcoll(relid, attribute, &type, &typmod, &collation);
	/* may end with more or fewer blanks, since a value need not be as its column declares */
	if (getBaseType(type) == BPCHAROID)
		return false;
	cache = lookup_type_cache(type, TYPECACHE_EQ_OPR | TYPECACHE_BTREE_OPFAMILY |
							  TYPECACHE_LT_OPR);
	if (!OidIsValid(cache->eq_opr) || !OidIsValid(cache->lt_opr) ||
		!OidIsValid(cache->btree_opf))
		return false;
	function = get_opfamily_proc(cache->btree_opf, cache->btree_opintype,
								 cache->btree_opintype, BTEQUALIMAGE_PROC);
	return OidIsValid(function) &&
		DatumGetBool(OidFunctionCall1Coll(function, collation,
										  ObjectIdGetDatum(cache->btree_opintype)));
}

static bool
have_images(Oid relid, const Bitmapset *columns)
{
	int			column = -1;

	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	attribute = column + FirstLowInvalidHeapAttributeNumber;

		if (attribute <= 0 || !has_images(relid, attribute))
			return false;
	}
	return true;
}

/* ---------- statistics ---------- */

static double
rows_of_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		rows = 0;

	if (HeapTupleIsValid(tuple))
	{
		rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return Max(rows, 0);
}

/* How many different values a column has; as many as rows if nobody knows. */
static double
distinct_values(const RangeTblEntry *rte, AttrNumber attribute, double rows)
{
	HeapTuple	tuple = NULL;
	double		distinct = -1;

	/* of the whole tree of tables, if there is one */
	if (rte->inh)
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
								Int16GetDatum(attribute), BoolGetDatum(true));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
								Int16GetDatum(attribute), BoolGetDatum(false));
	if (HeapTupleIsValid(tuple))
	{
		distinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
		ReleaseSysCache(tuple);
	}
	if (distinct == 0)
		distinct = -1;
	return distinct < 0 ? -distinct * rows : distinct;
}

static double
distinct_rows(const RangeTblEntry *rte, const Bitmapset *columns, double rows)
{
	double		groups = 1;
	int			column = -1;

	while ((column = bms_next_member(columns, column)) >= 0)
		groups *= distinct_values(rte, column + FirstLowInvalidHeapAttributeNumber, rows);
	return Max(Min(groups, rows), 1);
}

/* Is it a table of which there are statistics, and which can be moved into a subquery? */
static bool
is_plain_table(const RangeTblEntry *rte)
{
	return rte->rtekind == RTE_RELATION && rte->tablesample == NULL &&
		rte->securityQuals == NIL && rte->relkind != RELKIND_FOREIGN_TABLE;
}

/* Columns of two tables that a condition says are equal. */
typedef struct Equality
{
	int			tables[2];
	AttrNumber	attributes[2];
} Equality;

/* Is a condition one?  This is asked for each query, so what is cheap to know comes first. */
static bool
is_equality(const Level *level, Node *condition, Equality *equality)
{
	OpExpr	   *op = (OpExpr *) condition;

	if (!IsA(op, OpExpr) || list_length(op->args) != 2)
		return false;
	for (int i = 0; i < 2; i++)
	{
		Var		   *var = (Var *) gpurhh_without_relabel(list_nth(op->args, i));

		if (!IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0 ||
			!is_plain_table(rt_fetch(var->varno, level->query->rtable)))
			return false;
		equality->tables[i] = var->varno;
		equality->attributes[i] = var->varattno;
	}
	return equality->tables[0] != equality->tables[1] &&
		op_hashjoinable(op->opno, exprType(linitial(op->args)));
}

/*
 * How many pairs of rows two tables have for each row of both, if they are joined by the
 * equalities of their columns that there are, n in all; 0: so few that it does not matter.
 */
static double
pairs_of(const Level *level, const Equality *equalities, int n, const int tables[2])
{
	const RangeTblEntry *rtes[2];
	double		rows[2];
	Bitmapset  *columns[2] = {NULL, NULL};
	double		pairs;			/* if there were one value only */
	double		fewest = 1;		/* values that there are */
	int			first;

	for (int e = 0; e < n; e++)
	{
		const Equality *equality = &equalities[e];
		int			swap = equality->tables[0] == tables[1] ? 1 : 0;

		if (equality->tables[swap] != tables[0] || equality->tables[1 - swap] != tables[1])
			continue;
		for (int i = 0; i < 2; i++)
			columns[i] = bms_add_member(columns[i], equality->attributes[i ^ swap] -
										FirstLowInvalidHeapAttributeNumber);
	}
	for (int i = 0; i < 2; i++)
	{
		rtes[i] = rt_fetch(tables[i], level->query->rtable);
		rows[i] = rows_of_table(rtes[i]->relid);
	}
	/* most often one side is a key, that of the table with fewer rows */
	first = rows[0] <= rows[1] ? 0 : 1;
	pairs = rows[0] * rows[1];
	for (int i = 0; i < 2; i++)
	{
		int			side = i == 0 ? first : 1 - first;

		fewest = Max(fewest, distinct_rows(rtes[side], columns[side], rows[side]));
		if (pairs / fewest < MIN_PAIRS * (rows[0] + rows[1]) ||
			pairs / fewest * cpu_tuple_cost <= gpurhh_setup_cost)
			return 0;
	}
	return pairs / fewest / (rows[0] + rows[1]);
}

/*
 * The most pairs that each table has with another one, by the table's number, each as
 * pairs_of() has it.
 */
static double *
find_pairs(const Level *level)
{
	double	   *most = palloc0(sizeof(double) * (list_length(level->query->rtable) + 1));
	Equality   *equalities = palloc(sizeof(Equality) * Max(list_length(level->conditions), 1));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, level->conditions)
	{
		if (is_equality(level, lfirst(lc), &equalities[n]))
			n++;
	}
	for (int e = 0; e < n; e++)
	{
		const int  *tables = equalities[e].tables;
		double		pairs = pairs_of(level, equalities, n, tables);

		for (int i = 0; i < 2; i++)
			most[tables[i]] = Max(most[tables[i]], pairs);
	}
	return most;
}

/* The table that has most to gain from being grouped first; 0: there is none. */
static int
choose_table(const Level *level)
{
	int			best = 0;
	double		best_rows = MIN_GROUP_ROWS;
	const double *pairs = level->has_grouped ? NULL : find_pairs(level);
	ListCell   *lc;

	foreach(lc, level->tables)
	{
		int			table = lfirst_node(RangeTblRef, lc)->rtindex;
		const RangeTblEntry *rte = rt_fetch(table, level->query->rtable);
		double		rows;
		Bitmapset  *columns;

		if (!is_plain_table(rte) || (pairs != NULL && pairs[table] < MIN_PAIRS))
			continue;
		columns = find_group_columns(level, table);
		/* without GROUP BY there would be a row where the table has none */
		if (columns == NULL)
			continue;
		rows = rows_of_table(rte->relid);
		rows /= distinct_rows(rte, columns, rows);
		if (rows >= best_rows && have_images(rte->relid, columns))
		{
			best = table;
			best_rows = rows;
		}
	}
	return best;
}

/* ---------- a level ---------- */

/* Adds what is joined here, and by which conditions.  False: not by inner joins alone. */
static bool
flatten_joins(Node *node, Level *level)
{
	ListCell   *lc;

	if (IsA(node, RangeTblRef))
	{
		level->tables = lappend(level->tables, node);
		return true;
	}
	if (IsA(node, JoinExpr))
	{
		JoinExpr   *join = (JoinExpr *) node;

		if (join->jointype != JOIN_INNER || !flatten_joins(join->larg, level) ||
			!flatten_joins(join->rarg, level))
			return false;
		level->conditions = list_concat(level->conditions,
										make_ands_implicit((Expr *) join->quals));
		return true;
	}
	foreach(lc, castNode(FromExpr, node)->fromlist)
	{
		if (!flatten_joins(lfirst(lc), level))
			return false;
	}
	level->conditions = list_concat(level->conditions,
									make_ands_implicit((Expr *) ((FromExpr *) node)->quals));
	return true;
}

/* Can a level of a query be one whose tables are grouped before they are joined? */
static bool
look_at_level(Query *query, Level *level)
{
	ListCell   *lc;

	memset(level, 0, sizeof(Level));
	level->query = query;
	if (query->commandType != CMD_SELECT || !query->hasAggs || query->groupingSets != NIL ||
		query->hasSubLinks || query->setOperations != NULL || query->rowMarks != NIL ||
		!gpurhh_has_droppable_entries(query) || !flatten_joins((Node *) query->jointree, level) ||
		list_length(level->tables) < 2 || list_length(level->tables) > MAX_TABLES)
		return false;
	foreach(lc, query->rtable)
	{
		if (lfirst_node(RangeTblEntry, lc)->lateral)
			return false;
	}
	level->conditions = (List *) gpurhh_flatten_joined(query, (Node *) level->conditions);
	level->targets = (List *) gpurhh_flatten_joined(query, (Node *) query->targetList);
	level->having = gpurhh_flatten_joined(query, query->havingQual);
	return true;
}

/* The table's entry and conditions of its own, as a query without any result. */
static Query *
make_subquery(Level *level, int table)
{
	Query	   *subquery = makeNode(Query);
	RangeTblEntry *rte = copyObject(rt_fetch(table, level->query->rtable));
	RangeTblRef *ref = makeNode(RangeTblRef);
	List	   *own = NIL;
	ListCell   *lc;

	foreach(lc, level->conditions)
	{
		Node	   *condition = lfirst(lc);

		if (gpurhh_eager_columns(condition, table) == NULL || is_of_several(condition, table))
			continue;
		own = lappend(own, condition);
	}
	level->conditions = list_difference_ptr(level->conditions, own);
	own = copyObject(own);
	ChangeVarNodes((Node *) own, table, 1, 0);
	IncrementVarSublevelsUp((Node *) own, 1, 1);

	ref->rtindex = 1;
	subquery->commandType = CMD_SELECT;
	subquery->querySource = level->query->querySource;
	subquery->canSetTag = true;
	subquery->hasAggs = true;
	subquery->rtable = list_make1(rte);
	gpurhh_move_permissions(level->query, rte, subquery);
	subquery->jointree = makeFromExpr(list_make1(ref),
									  own == NIL ? NULL : (Node *) make_ands_explicit(own));
	return subquery;
}

/* Groups a subquery's only table by a column, which becomes the next one of its result. */
static void
add_group_column(Query *subquery, AttrNumber attribute)
{
	const RangeTblEntry *rte = linitial(subquery->rtable);
	SortGroupClause *clause = makeNode(SortGroupClause);
	TargetEntry *tle;
	Oid			type;
	int32		typmod;
	Oid			collation;

	get_atttypetypmodcoll(rte->relid, attribute, &type, &typmod, &collation);
	tle = makeTargetEntry((Expr *) makeVar(1, attribute, type, typmod, collation, 0),
						  list_length(subquery->targetList) + 1,
						  get_attname(rte->relid, attribute, false), false);
	tle->ressortgroupref = tle->resno;
	subquery->targetList = lappend(subquery->targetList, tle);
	clause->tleSortGroupRef = tle->resno;
	get_sort_group_operators(type, true, true, false, &clause->sortop, &clause->eqop, NULL,
							 &clause->hashable);
	subquery->groupClause = lappend(subquery->groupClause, clause);
}

/* The subquery as an entry in the place of the table's. */
static RangeTblEntry *
make_entry(Query *subquery)
{
	const RangeTblEntry *table = linitial(subquery->rtable);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	ListCell   *lc;

	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = subquery;
	rte->inFromCl = true;
	rte->eref = makeAlias(table->eref->aliasname, NIL);
	foreach(lc, subquery->targetList)
	{
		rte->eref->colnames = lappend(rte->eref->colnames,
									  makeString(lfirst_node(TargetEntry, lc)->resname));
	}
	/* so that EXPLAIN calls it by the name that the query knows */
	rte->alias = copyObject(rte->eref);
	return rte;
}

/* Groups a table of the level before it is joined.  False: an aggregate needs its rows. */
static bool
group_table(Level *level, int table)
{
	Query	   *query = level->query;
	Bitmapset  *columns = find_group_columns(level, table);
	EagerTable	eager = {.table = table};
	List	   *conditions = level->conditions;
	List	   *targets;
	Node	   *having;
	int			column = -1;

	eager.subquery = make_subquery(level, table);
	eager.group_columns = columns;
	while ((column = bms_next_member(columns, column)) >= 0)
		add_group_column(eager.subquery, column + FirstLowInvalidHeapAttributeNumber);
	targets = (List *) gpurhh_eager_sums(&eager, (Node *) level->targets);
	having = gpurhh_eager_sums(&eager, level->having);
	if (eager.failed)
	{
		/* the table's own are needed where they were */
		level->conditions = conditions;
		return false;
	}
	level->targets = targets;
	level->having = having;
	level->conditions = (List *) gpurhh_eager_sums(&eager, (Node *) level->conditions);
	lfirst(list_nth_cell(query->rtable, table - 1)) = make_entry(eager.subquery);
	return true;
}

/*
 * Writes a level anew, in place, with as many of its tables grouped as are worth it, or
 * one of them.  Returns their number.
 */
static int
rewrite_level(Query *query, bool only_one)
{
	Level		level;
	int			n = 0;
	int			table;

	if (!look_at_level(query, &level) || contain_volatile_functions((Node *) query))
		return 0;
	while ((n == 0 || !only_one) && (table = choose_table(&level)) != 0 &&
		   group_table(&level, table))
	{
		level.has_grouped = true;
		n++;
	}
	if (n == 0)
		return 0;
	query->targetList = level.targets;
	query->havingQual = level.having;
	query->jointree = makeFromExpr(level.tables, level.conditions == NIL ? NULL :
								   (Node *) make_ands_explicit(level.conditions));
	gpurhh_drop_join_entries(query);
	return n;
}

/* ---------- the query ---------- */

typedef struct Candidates
{
	bool		rewrite;		/* or look whether there is one? */
	bool		only_one;		/* table of each level */
	bool		found;
	int			n;				/* tables that were grouped */
} Candidates;

static bool
candidates_walker(Node *node, Candidates *candidates)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;
		Level		level;

		if (candidates->rewrite)
			candidates->n += rewrite_level(query, candidates->only_one);
		else if (look_at_level(query, &level) && choose_table(&level) != 0)
		{
			candidates->found = true;
			return true;
		}
		return query_tree_walker(query, candidates_walker, candidates, 0);
	}
	return expression_tree_walker(node, candidates_walker, candidates);
}

/*
 * Other queries with the same result, in which tables are grouped before they are joined;
 * NIL: nothing is to be gained by it, as far as one sees.  The query is to be as it comes
 * from the rewriter, and is left as it is.
 */
List *
gpurhh_group_early(Query *query)
{
	Candidates	candidates = {.rewrite = false};
	List	   *queries = NIL;
	int			n = 0;

	if (!gpurhh_enable_eager_aggregate || !enable_gpu_hashagg || !enable_gpu_hashjoin ||
		gpurhh_collects_refusals())
		return NIL;
	candidates_walker((Node *) query, &candidates);
	if (!candidates.found)
		return NIL;
	for (int i = 0; i < 2; i++)
	{
		Candidates	rewriting = {.rewrite = true, .only_one = i == 0};
		Query	   *other = copyObject(query);

		candidates_walker((Node *) other, &rewriting);
		if (rewriting.n > n)
			queries = lappend(queries, other);
		n = rewriting.n;
	}
	return queries;
}
