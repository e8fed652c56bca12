/*-------------------------------------------------------------------------
 *
 * join_sketch.c
 *		What a device can make of the rows that come a way: columns to feed, programs, and
 *		rows to return; and if it cannot, why.
 *
 * The programs themselves are made when the plan is run.  Here they are made as far as it
 * takes to know that they can be (ProgramSketch), and how many columns they read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"

#include "compat.h"
#include "expr/expr.h"
#include "plan/join_path.h"


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

/* The column that an operand is, whatever type it passes for; NULL: it is none. */
Var *
gpurhh_column_of(Expr *operand)
{
	Var		   *var = (Var *) gpurhh_without_relabel((Node *) operand);

	return IsA(var, Var) && var->varattno > 0 ? var : NULL;
}

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
		gpurhh_vector_program(compiled, &sketch->program, false, number, type, why);
}

/*
 * Can a device compute a join's condition, whatever way the rows come?  *may_be_bad: it may have
 * to ask core about some rows.
 */
bool
gpurhh_is_computed(PlannerInfo *root, Expr *condition, bool *may_be_bad, const char **why)
{
	ProgramSketch sketch = {.root = root};
	uint8		number;
	VectorType	type;
	bool		computed = sketch_expression(&sketch, condition, &number, &type, why);

	*may_be_bad = rhh_program_may_be_bad(&sketch.program);
	return computed;
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
		if (!of_match && !gpurhh_has_outer_columns(way->jointype))
			return "an expression is computed after an outer join";
		missing |= !of_match && gpurhh_returns_unmatched(way->jointype);
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
		ProgramSketch of_join;
		Expr	   *condition;
		uint8		number;
		VectorType	type;
		const char *why;

		if (way->matches == NIL)
			continue;
		of_join = (ProgramSketch){.root = sketch->root, .way = way, .of_match = true};
		condition = make_ands_explicit(extract_actual_clauses(way->matches, false));
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
may_leave_rows(const RelOptInfo *rel, const Way *way, const ProgramSketch *sketch)
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

/*
 * Why a device cannot make the columns that are to be fed of the rows that come this
 * way, or drop those that do not meet the joins' conditions; NULL: it can.
 */
const char *
gpurhh_columns_problem(PlanInfo *info, const Way *way)
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
		var = gpurhh_column_of(expr);
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
	why = leaf_problem(&sketch, list_length(info->plan->columns));
	if (why == NULL && !returns_columns(way))
		why = "an expression is computed below an outer join";
	return why;
}

/*
 * Why the rows of rel that come this way cannot be returned as rows, apart from the types of their
 * columns; NULL: they can.
 */
const char *
gpurhh_rows_problem(PlannerInfo *root, const RelOptInfo *rel, const Way *way)
{
	ProgramSketch sketch = {.root = root, .way = way};
	const char *why;

	if (returns_hidden(rel, way))
		return "a column is of a side that has none";
	if (!returns_columns(way))
		return "an expression is computed below an outer join";
	why = sketch_conditions(&sketch);
	if (why == NULL)
		why = leaf_problem(&sketch, list_length(rel->reltarget->exprs));
	if (why != NULL)
		return why;
	/* none can read its part of the probe side again */
	if (way->in_parts && way->n_workers > 0)
		return "a build side comes in parts, and the plan is parallel";
	if (way->unmatched && may_leave_rows(rel, way, &sketch))
		return "the probe side may have values that no device takes";
	/* rows may have been returned when the first error is found */
	if (way->may_be_bad)
		return "a condition that decides what a match is might raise an error";
	return NULL;
}
