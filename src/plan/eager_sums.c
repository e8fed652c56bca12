/*-------------------------------------------------------------------------
 *
 * eager_sums.c
 *		Aggregates over rows of a table that has been grouped before it was joined.
 *
 * A row of the grouped table stands for n rows.  So a row of the other tables that is
 * joined with it counts n times
 *
 *		count(*)		->	sum(n)
 *		sum(x)			->	sum(x * n)
 *		min(x), max(x)		as they are
 *
 * and what is of the grouped table's own columns has been computed of its rows:
 *
 *		count(y)		->	sum(count(y))
 *		sum(y)			->	sum(sum(y))
 *		min(y), max(y)	->	min(min(y)), max(max(y))
 *		sum(x * y)		->	sum(x * sum(y))
 *		avg				->	its sum divided by its count
 *
 * The results are the same to the last digit, and of the same types.  Sums of floats are
 * left alone, since they would be rounded in other places.  x is any expression; y is a
 * column, because an expression of rows that are joined with none is not computed
 * otherwise, and might raise an error.  Sums of integers are computed in types that they fit.
 * Core raises an error if one product x * y of integers is out of range; that is so for some y
 * of a group if it is so for the least or the greatest one.  So the products of these two are
 * computed as core does, by aggregates that are asked only whether there is any product.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_coerce.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "plan/eager.h"
#include "types/types.h"

/* A sum of bigints has no more digits: a table has less than 10^12 rows. */
#define SUM_DIGITS		31

/* What an aggregate's argument is made of. */
typedef enum ArgumentKind
{
	ARGUMENT_OUTER,				/* other tables' columns and those that are grouped by */
	ARGUMENT_INNER,				/* another column of the grouped table */
	ARGUMENT_PRODUCT,			/* an expression of the one kind by one of the other */
	ARGUMENT_OTHER
} ArgumentKind;

static Node *eager_sums_mutator(Node *node, EagerTable *eager);

/* ---------- columns of the subquery ---------- */

/* The column of the subquery that has this expression of the table's row. */
static Expr *
subquery_column(EagerTable *eager, Expr *expr, const char *name)
{
	List	  **columns = &eager->subquery->targetList;
	TargetEntry *tle = NULL;
	ListCell   *lc;

	foreach(lc, *columns)
	{
		if (equal(lfirst_node(TargetEntry, lc)->expr, expr))
			tle = lfirst(lc);
	}
	if (tle == NULL)
	{
		tle = makeTargetEntry(expr, list_length(*columns) + 1, pstrdup(name), false);
		*columns = lappend(*columns, tle);
	}
	return (Expr *) makeVar(eager->table, tle->resno, exprType((Node *) expr),
							exprTypmod((Node *) expr), exprCollation((Node *) expr), 0);
}

/* An expression of columns of the table alone, as one of the subquery's rows. */
static Expr *
in_subquery(EagerTable *eager, Expr *expr)
{
	Node	   *copy = copyObject((Node *) expr);

	ChangeVarNodes(copy, eager->table, 1, 0);
	return (Expr *) copy;
}

/* ---------- making expressions ---------- */

static Expr *
cast_to(Expr *expr, Oid type, int32 typmod)
{
	return (Expr *) coerce_to_target_type(NULL, (Node *) expr, exprType((Node *) expr), type,
										  typmod, COERCION_EXPLICIT, COERCE_EXPLICIT_CAST, -1);
}

static int32
numeric_typmod(int digits, int scale)
{
	return ((digits << 16) | scale) + VARHDRSZ;
}

static Expr *
apply(const char *operator, Expr * left, Expr *right)
{
	return make_op(NULL, list_make2(makeString("pg_catalog"), makeString(pstrdup(operator))),
				   (Node *) left, (Node *) right, NULL, -1);
}

/* A built-in aggregate; argument: NULL for count(*). */
static Expr *
aggregate(Oid function, Oid result_type, Expr *argument, Expr *filter)
{
	Aggref	   *agg = makeNode(Aggref);

	agg->aggfnoid = function;
	agg->aggtype = result_type;
	agg->aggfilter = copyObject(filter);
	agg->aggkind = AGGKIND_NORMAL;
	agg->aggsplit = AGGSPLIT_SIMPLE;
	agg->aggno = -1;
	agg->aggtransno = -1;
	agg->location = -1;
	if (argument == NULL)
		agg->aggstar = true;
	else
	{
		agg->args = list_make1(makeTargetEntry(argument, 1, NULL, false));
		agg->aggargtypes = list_make1_oid(exprType((Node *) argument));
	}
	return (Expr *) agg;
}

static Expr *
sum_of_int8(Expr *argument, Expr *filter)
{
	return aggregate(F_SUM_INT8, NUMERICOID, argument, filter);
}

static Expr *
sum_of_numeric(Expr *argument, Expr *filter)
{
	return aggregate(F_SUM_NUMERIC, NUMERICOID, argument, filter);
}

/* The number of the table's rows that a row of the subquery stands for. */
static Expr *
row_count(EagerTable *eager)
{
	return subquery_column(eager, aggregate(F_COUNT_, INT8OID, NULL, NULL), "count");
}

/* A sum of counts, as count() returns it: of no rows it is zero. */
static Expr *
count_of(Expr *counts, Expr *filter)
{
	CoalesceExpr *coalesce = makeNode(CoalesceExpr);

	coalesce->coalescetype = INT8OID;
	coalesce->args = list_make2(cast_to(sum_of_int8(counts, filter), INT8OID, -1),
								makeConst(INT8OID, -1, InvalidOid, 8, Int64GetDatum(0), false,
										  FLOAT8PASSBYVAL));
	coalesce->location = -1;
	return (Expr *) coalesce;
}

static Expr *
null_test(Expr *expr, NullTestType type)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = copyObject(expr);
	test->nulltesttype = type;
	test->location = -1;
	return (Expr *) test;
}

/* The filter, and that the expression is not NULL. */
static Expr *
filter_not_null(Expr *filter, Expr *expr)
{
	Expr	   *test = null_test(expr, IS_NOT_NULL);

	return filter == NULL ? test : make_andclause(list_make2(copyObject(filter), test));
}

static bool
is_small_integer(Oid type)
{
	return type == INT2OID || type == INT4OID;
}

static bool
is_integer(Oid type)
{
	return is_small_integer(type) || type == INT8OID;
}

/* ---------- sums ---------- */

/* The values of x, each as often as a row counts: a bigint of smaller integers, else numeric. */
static Expr *
times_rows(EagerTable *eager, Expr *x)
{
	Expr	   *n = row_count(eager);

	if (!is_small_integer(exprType((Node *) x)))
		n = cast_to(n, NUMERICOID, -1);
	if (exprType((Node *) x) == INT8OID)
		x = cast_to(x, NUMERICOID, -1);
	return apply("*", copyObject(x), n);
}

/*
 * The sum of values y of the table's rows, for each row of the subquery: a bigint of smaller
 * integers, else numeric.  That of bigints is declared with a scale, which devices want to know.
 * That of numerics is not: a value may have more digits than its column declares.
 */
static Expr *
inner_sum(EagerTable *eager, Expr *y)
{
	Oid			type = exprType((Node *) y);
	Expr	   *value = in_subquery(eager, y);
	Expr	   *sum;

	if (is_small_integer(type))
		sum = aggregate(type == INT2OID ? F_SUM_INT2 : F_SUM_INT4, INT8OID, value, NULL);
	else if (type == INT8OID)
		sum = cast_to(sum_of_int8(value, NULL), NUMERICOID, numeric_typmod(SUM_DIGITS, 0));
	else
		sum = sum_of_numeric(value, NULL);
	return subquery_column(eager, sum, "sum");
}

static Oid
max_function(Oid type, bool greatest)
{
	if (type == INT2OID)
		return greatest ? F_MAX_INT2 : F_MIN_INT2;
	if (type == INT4OID)
		return greatest ? F_MAX_INT4 : F_MIN_INT4;
	return greatest ? F_MAX_INT8 : F_MIN_INT8;
}

/* The least or the greatest value of an integer y of a group of the table's rows. */
static Expr *
inner_extreme(EagerTable *eager, Expr *y, bool greatest)
{
	Oid			type = exprType((Node *) y);

	return subquery_column(eager, aggregate(max_function(type, greatest), type,
											in_subquery(eager, y), NULL),
						   greatest ? "max" : "min");
}

/* The product with its inner operand replaced. */
static Expr *
with_operand(const OpExpr *product, int operand, Expr *outer, Expr *inner)
{
	OpExpr	   *result = copyObject((OpExpr *) product);

	result->args = operand == 1 ? list_make2(copyObject(outer), inner) :
		list_make2(inner, copyObject(outer));
	return (Expr *) result;
}

/* The sum of x * y over the rows of a group of the table's, x being the same for all of them. */
static Expr *
sum_of_products(EagerTable *eager, const OpExpr *product, Expr *x, Expr *y)
{
	Expr	   *sum = inner_sum(eager, y);

	if (!is_small_integer(product->opresulttype))
	{
		x = cast_to(x, NUMERICOID, -1);
		sum = cast_to(sum, NUMERICOID, -1);
	}
	return apply("*", x, sum);
}

/*
 * The greatest, or least, product of an integer y and an x, that is the same for all rows of
 * a group of the table's.  It raises an error if one of all products is out of range.
 */
static Expr *
extreme_of_products(EagerTable *eager, const OpExpr *product, int operand, Expr *x, Expr *y,
					bool greatest, Expr *filter)
{
	Oid			type = product->opresulttype;
	MinMaxExpr *result = makeNode(MinMaxExpr);

	for (int i = 0; i < 2; i++)
	{
		Expr	   *corner = with_operand(product, operand, x, inner_extreme(eager, y, i == 1));

		result->args = lappend(result->args, aggregate(max_function(type, greatest), type,
													   corner, filter));
	}
	result->minmaxtype = type;
	result->op = greatest ? IS_GREATEST : IS_LEAST;
	result->location = -1;
	return (Expr *) result;
}

/* The sum, and NULL where there is no product, which is looked at as core does. */
static Expr *
check_products(Expr *extreme, Expr *sum)
{
	CaseExpr   *check = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = null_test(extreme, IS_NULL);
	when->result = (Expr *) makeNullConst(exprType((Node *) sum), -1, InvalidOid);
	when->location = -1;
	check->casetype = exprType((Node *) sum);
	check->args = list_make1(when);
	check->defresult = sum;
	check->location = -1;
	return (Expr *) check;
}

/* ---------- arguments ---------- */

/* Are the table's columns that it has all grouped by?  Then it is the same for all rows. */
static bool
is_outer(const EagerTable *eager, Node *expr)
{
	return bms_is_subset(gpurhh_eager_columns(expr, eager->table), eager->group_columns);
}

/* A column of the table, perhaps cast to a type that has all its values? */
static bool
is_inner(const EagerTable *eager, Node *expr)
{
	const FuncExpr *cast = (FuncExpr *) expr;

	if (IsA(expr, FuncExpr) &&
		(cast->funcid == F_INT4_INT2 || cast->funcid == F_INT8_INT2 ||
		 cast->funcid == F_INT8_INT4 || cast->funcid == F_NUMERIC_INT2 ||
		 cast->funcid == F_NUMERIC_INT4 || cast->funcid == F_NUMERIC_INT8))
		expr = linitial(cast->args);
	expr = gpurhh_without_relabel(expr);
	return IsA(expr, Var) && ((Var *) expr)->varlevelsup == 0 &&
		((Var *) expr)->varno == eager->table && ((Var *) expr)->varattno > 0;
}

/*
 * Is no value infinite?  Of a numeric one may be, unless it is an integer by its making; and a
 * sum of infinite products is not what the product with a sum is.
 */
static bool
is_finite(Node *expr)
{
	int			digits;
	int			scale;

	return exprType(expr) != NUMERICOID ||
		(IsA(expr, FuncExpr) && exprTypmod(expr) < 0 &&
		 gpurhh_decimal_type(expr, &digits, &scale));
}

static bool
is_multiplication(Oid function)
{
	switch (function)
	{
		case F_INT2MUL:
		case F_INT24MUL:
		case F_INT28MUL:
		case F_INT42MUL:
		case F_INT4MUL:
		case F_INT48MUL:
		case F_INT82MUL:
		case F_INT84MUL:
		case F_INT8MUL:
		case F_NUMERIC_MUL:
			return true;
	}
	return false;
}

/* What an argument is; of a product which operand is the inner one, from 0. */
static ArgumentKind
kind_of(const EagerTable *eager, Node *expr, int *operand)
{
	const OpExpr *product = (OpExpr *) expr;

	if (is_outer(eager, expr))
		return ARGUMENT_OUTER;
	if (is_inner(eager, expr))
		return ARGUMENT_INNER;
	if (!IsA(expr, OpExpr) || !is_multiplication(product->opfuncid))
		return ARGUMENT_OTHER;
	for (int i = 0; i < 2; i++)
	{
		Node	   *inner = list_nth(product->args, i);
		Node	   *outer = list_nth(product->args, 1 - i);

		*operand = i;
		if (is_inner(eager, inner) && is_outer(eager, outer) &&
			is_finite(inner) && is_finite(outer))
			return ARGUMENT_PRODUCT;
	}
	return ARGUMENT_OTHER;
}

/* ---------- aggregates ---------- */

/* An expression of what the table is grouped by and other tables, as the level has it now. */
static Expr *
in_level(EagerTable *eager, Expr *expr)
{
	return (Expr *) eager_sums_mutator((Node *) expr, eager);
}

/* Is it min() or max() or such: one value of many, the same however often they come? */
static bool
is_extreme(Oid function)
{
	HeapTuple	tuple;
	bool		result;

	if (function >= FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", function);
	result = OidIsValid(((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop);
	ReleaseSysCache(tuple);
	return result;
}

/* The sum of values, in its widest type. */
static Expr *
make_sum(EagerTable *eager, Expr *argument, Expr *filter)
{
	const OpExpr *product = (OpExpr *) argument;
	int			operand;
	Expr	   *terms;

	switch (kind_of(eager, (Node *) argument, &operand))
	{
		case ARGUMENT_OUTER:
			terms = times_rows(eager, in_level(eager, argument));
			break;
		case ARGUMENT_INNER:
			terms = inner_sum(eager, argument);
			break;
		case ARGUMENT_PRODUCT:
			terms = sum_of_products(eager, product,
									in_level(eager, list_nth(product->args, 1 - operand)),
									list_nth(product->args, operand));
			break;
		default:
			eager->failed = true;
			return NULL;
	}
	return exprType((Node *) terms) == INT8OID ? sum_of_int8(terms, filter) :
		sum_of_numeric(terms, filter);
}

/* count(expression) */
static Expr *
make_count(EagerTable *eager, Expr *argument, Expr *filter)
{
	int			operand;

	switch (kind_of(eager, (Node *) argument, &operand))
	{
		case ARGUMENT_OUTER:
			argument = in_level(eager, argument);
			return count_of(row_count(eager), filter_not_null(filter, argument));
		case ARGUMENT_INNER:
			argument = in_subquery(eager, argument);
			return count_of(subquery_column(eager, aggregate(F_COUNT_ANY, INT8OID, argument,
															 NULL), "count"), filter);
		default:
			eager->failed = true;
			return NULL;
	}
}

/* min() and max() */
static Expr *
make_extreme(EagerTable *eager, const Aggref *aggref, Expr *argument, Expr *filter)
{
	const OpExpr *product = (OpExpr *) argument;
	int			operand;
	Aggref	   *result = copyObject((Aggref *) aggref);
	Aggref	   *inner;

	switch (kind_of(eager, (Node *) argument, &operand))
	{
		case ARGUMENT_OUTER:
			argument = in_level(eager, argument);
			break;
		case ARGUMENT_INNER:
			inner = copyObject((Aggref *) aggref);
			inner->aggfilter = NULL;
			linitial_node(TargetEntry, inner->args)->expr = in_subquery(eager, argument);
			argument = subquery_column(eager, (Expr *) inner,
									   get_func_name(aggref->aggfnoid));
			break;
		case ARGUMENT_PRODUCT:
			if (is_integer(product->opresulttype))
				return extreme_of_products(eager, product, operand,
										   in_level(eager, list_nth(product->args, 1 - operand)),
										   list_nth(product->args, operand),
										   aggref->aggfnoid == max_function(product->opresulttype,
																			true), filter);
			/* FALLTHROUGH */
		default:
			eager->failed = true;
			return NULL;
	}
	result->aggfilter = filter;
	linitial_node(TargetEntry, result->args)->expr = argument;
	return (Expr *) result;
}

/* The aggregate, of rows that are joined with the subquery's. */
static Expr *
make_aggregate(EagerTable *eager, const Aggref *aggref)
{
	Expr	   *filter = aggref->aggfilter;
	Expr	   *argument;

	eager->failed |= aggref->aggorder != NIL || aggref->aggdistinct != NIL ||
		aggref->aggdirectargs != NIL || aggref->aggvariadic ||
		list_length(aggref->args) > 1 || !is_outer(eager, (Node *) filter);
	if (eager->failed)
		return NULL;
	filter = in_level(eager, filter);
	if (aggref->aggfnoid == F_COUNT_)
		return count_of(row_count(eager), filter);
	if (aggref->args == NIL)
	{
		eager->failed = true;
		return NULL;
	}
	argument = linitial_node(TargetEntry, aggref->args)->expr;
	switch (aggref->aggfnoid)
	{
		case F_COUNT_ANY:
			return make_count(eager, argument, filter);
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
			{
				const OpExpr *product = (OpExpr *) argument;
				Expr	   *sum = make_sum(eager, argument, filter);
				int			operand;

				if (eager->failed)
					return NULL;
				if (aggref->aggtype != NUMERICOID)
					sum = cast_to(sum, INT8OID, -1);
				if (kind_of(eager, (Node *) argument, &operand) != ARGUMENT_PRODUCT ||
					!is_integer(product->opresulttype))
					return sum;
				return check_products(extreme_of_products(eager, product, operand,
														  in_level(eager,
																   list_nth(product->args,
																			1 - operand)),
														  list_nth(product->args, operand),
														  true, filter), sum);
			}
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
			{
				Expr	   *sum = make_sum(eager, argument, filter);
				Expr	   *count = eager->failed ? NULL : make_count(eager, argument, filter);

				if (eager->failed)
					return NULL;
				/* of no values there is no sum, either */
				return apply("/", sum, cast_to(count, NUMERICOID, -1));
			}
	}
	if (is_extreme(aggref->aggfnoid))
		return make_extreme(eager, aggref, argument, filter);
	eager->failed = true;
	return NULL;
}

static Node *
eager_sums_mutator(Node *node, EagerTable *eager)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref) && ((Aggref *) node)->agglevelsup == 0)
		return (Node *) make_aggregate(eager, (Aggref *) node);
	if (IsA(node, Var) && ((Var *) node)->varlevelsup == 0 &&
		((Var *) node)->varno == eager->table)
	{
		Var		   *var = copyObject((Var *) node);

		/* one that it is grouped by: the subquery's columns begin with these */
		var->varattno = bms_member_index(eager->group_columns, var->varattno -
										 FirstLowInvalidHeapAttributeNumber) + 1;
		Assert(var->varattno > 0);
		return (Node *) var;
	}
	return expression_tree_mutator(node, eager_sums_mutator, eager);
}

/*
 * An expression, of a level's target list and so on, as it is when the table has been
 * replaced by the subquery, to which the aggregates that it needs are added.  Sets failed
 * if that cannot be; then the result means nothing.
 */
Node *
gpurhh_eager_sums(EagerTable *eager, Node *expr)
{
	return eager_sums_mutator(expr, eager);
}
