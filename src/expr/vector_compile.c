/*-------------------------------------------------------------------------
 *
 * vector_compile.c
 *		Makes a tree of vector nodes of an expression, or says why it cannot.
 *
 * An expression is only compiled if all of it is known, by a row in
 * vector_functions.c or by a case in this file.  If some part is not, the caller has
 * core evaluate the whole expression.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "expr/vector.h"

/* The vector type in which decimals of so many digits are computed. */
static VectorType
decimal_vector(int digits)
{
	return digits <= GPURHH_DECIMAL_DIGITS ? VECTOR_DECIMAL : VECTOR_DECIMAL128;
}

/*
 * Finds the vector type of an expression's values.  For a numeric it depends on what
 * is known of its digits.
 */
static bool
type_of_expression(Node *expr, VectorType *result)
{
	int			digits;
	int			scale;

	if (gpurhh_vector_type(exprType(expr), result))
		return true;
	if (!gpurhh_decimal_type(expr, &digits, &scale))
		return false;
	*result = decimal_vector(digits);
	return true;
}

typedef struct CompileContext
{
	VectorExpr *expr;
	VectorColumnFinder find_column;
	void	   *finder_arg;
	const char *why;			/* not NULL: cannot be done */
} CompileContext;

static VectorNode *compile(CompileContext *cx, Node *expr);

/* Notes why the expression cannot be compiled.  The first reason stays. */
static VectorNode *
cannot(CompileContext *cx, const char *why)
{
	if (cx->why == NULL)
		cx->why = why;
	return NULL;
}

/* Makes a node with buffers for its result. */
static VectorNode *
make_node(CompileContext *cx, VectorOp op, VectorType type, int n_args)
{
	VectorNode *node = palloc0(sizeof(VectorNode));
	int			max_rows = cx->expr->max_rows;

	node->op = op;
	node->type = type;
	node->given_type = type;
	node->n_args = n_args;
	if (n_args > 0)
		node->args = palloc0(sizeof(VectorNode *) * n_args);
	if (op == VECTOR_COLUMN)
		return node;
	/* loops over whole vectors may be unrolled, so let them start aligned */
	node->values = (void *)
		TYPEALIGN(64, palloc0((Size) max_rows * Max(gpurhh_vector_bytes(type), 1) + 64));
	node->nulls = palloc0(max_rows);
	node->result.values = node->values;
	if (op == VECTOR_AND || op == VECTOR_OR || op == VECTOR_CASE ||
		op == VECTOR_COALESCE)
	{
		node->active = palloc0(max_rows);
		node->taken = palloc0(max_rows);
	}
	return node;
}

/* Makes a node that has the values of this one in a wider type. */
static VectorNode *
widened(CompileContext *cx, VectorNode *node, VectorType type)
{
	VectorNode *cast;

	if (node->type == type)
		return node;
	if (node->op == VECTOR_CONSTANT)
	{
		/* the constant is read as the type it has, and stored as the wider one */
		VectorType	given = node->given_type;

		cast = make_node(cx, VECTOR_CONSTANT, type, 0);
		cast->constant = node->constant;
		cast->given_type = given;
		cast->given_scale = node->given_scale;
		cast->scale = node->scale;
		cast->digits = node->digits;
		cx->expr->constants = lappend(list_delete_ptr(cx->expr->constants, node), cast);
		return cast;
	}
	cast = make_node(cx, VECTOR_CAST, type, 1);
	cast->args[0] = node;
	cast->scale = node->scale;
	cast->digits = node->digits;
	return cast;
}

/* The type in which a function of two types is computed: the wider one. */
static VectorType
common_type(VectorType left, VectorType right)
{
	return gpurhh_vector_bytes(left) >= gpurhh_vector_bytes(right) ? left : right;
}

static void
set_constant(CompileContext *cx, VectorNode *node, Node *expr)
{
	node->constant = expr;
	cx->expr->constants = lappend(cx->expr->constants, node);
}

static VectorNode *
compile_constant(CompileContext *cx, Node *expr)
{
	VectorType	type;
	VectorNode *node;

	if (!type_of_expression(expr, &type))
		return cannot(cx, "has a constant or parameter of a type that is only evaluated row by row");
	node = make_node(cx, VECTOR_CONSTANT, type, 0);
	set_constant(cx, node, expr);
	return node;
}

/*
 * Are two values of this function equal exactly if their bytes are?  For strings that
 * depends on the collation.  If there is none, because the collations of the operands
 * conflict, core raises an error, so the answer is no.  bytea needs no collation.
 */
static bool
has_byte_equality(const VectorFunction *function, Oid collation)
{
	if (!is_string(function->left) || function->function == F_BYTEAEQ ||
		function->function == F_BYTEANE)
		return true;
	return OidIsValid(collation) && get_collation_isdeterministic(collation);
}

/* Makes a node that has the decimals of this one with a scale that is not less. */
static VectorNode *
rescaled(CompileContext *cx, VectorNode *node, int scale)
{
	VectorNode *result;
	int			digits = node->digits + scale - node->scale;

	if (node->scale == scale)
		return node;
	if (node->op == VECTOR_CONSTANT)
	{
		result = make_node(cx, VECTOR_CONSTANT, decimal_vector(digits), 0);
		result->given_scale = node->given_scale;
		set_constant(cx, result, node->constant);
		cx->expr->constants = list_delete_ptr(cx->expr->constants, node);
	}
	else
	{
		result = make_node(cx, VECTOR_RESCALE, decimal_vector(digits), 1);
		result->args[0] = widened(cx, node, result->type);
	}
	result->scale = scale;
	result->digits = digits;
	return result;
}

/* A function of two decimals.  gpurhh_decimal_type() tells the scale of the result. */
static VectorNode *
compile_decimal(CompileContext *cx, VectorOp op, VectorNode *left,
				VectorNode *right)
{
	VectorNode *node;
	VectorType	type;

	if (op == VECTOR_MULTIPLY)
	{
		type = decimal_vector(left->digits + right->digits);
		/* with the wider one first */
		if (right->type == VECTOR_DECIMAL128)
		{
			VectorNode *swap = left;

			left = right;
			right = swap;
		}
	}
	else
	{
		int			scale = Max(left->scale, right->scale);

		left = rescaled(cx, left, scale);
		right = rescaled(cx, right, scale);
		type = decimal_vector(Max(left->digits, right->digits) +
							  (op == VECTOR_ADD || op == VECTOR_SUBTRACT ? 1 : 0));
		left = widened(cx, left, type);
		right = widened(cx, right, type);
		if (op != VECTOR_ADD && op != VECTOR_SUBTRACT)
			type = VECTOR_BOOL;
	}
	node = make_node(cx, op, type, 2);
	node->args[0] = left;
	node->args[1] = right;
	return node;
}

static VectorNode *
compile_unary_function(CompileContext *cx, Oid function, Node *arg_expr)
{
	const VectorFunction *known = gpurhh_vector_unary(function);
	VectorNode *node;
	VectorNode *arg;

	if (known == NULL)
		return cannot(cx, "has a function or operator that is only evaluated row by row");
	arg = compile(cx, arg_expr);
	if (arg == NULL)
		return NULL;
	if (arg->type != known->left &&
		!(is_decimal(arg->type) && is_decimal(known->left)))
		return cannot(cx, "has a type that is only evaluated row by row");
	node = make_node(cx, known->op,
					 is_decimal(known->left) ? arg->type : known->right, 1);
	node->args[0] = arg;
	return node;
}

/* The operation for an operator whose operands change places: a > b is b < a. */
static VectorOp
without_greater(VectorOp op)
{
	return op == VECTOR_GT ? VECTOR_LT : op == VECTOR_GE ? VECTOR_LE : op;
}

static VectorNode *
compile_binary_function(CompileContext *cx, Oid function, Oid collation,
						Node *left_expr, Node *right_expr)
{
	const VectorFunction *known = gpurhh_vector_binary(function);
	bool		with_date = false;
	bool		decimals;
	VectorOp	op;
	VectorNode *node;
	VectorNode *left;
	VectorNode *right;
	VectorType	common;

	if (known == NULL)
	{
		known = gpurhh_vector_with_date(function);
		with_date = known != NULL;
	}
	if (known == NULL)
		return cannot(cx, "has a function or operator that is only evaluated row by row");
	if (!has_byte_equality(known, collation))
		return cannot(cx, "has a collation that is not deterministic, or none");
	left = compile(cx, left_expr);
	if (left == NULL)
		return NULL;
	right = compile(cx, right_expr);
	if (right == NULL)
		return NULL;
	decimals = is_decimal(known->left) && is_decimal(left->type) &&
		is_decimal(right->type);
	/* an operand's type may only have the same bytes as the one that is declared */
	if (!decimals && (left->type != known->left || right->type != known->right))
		return cannot(cx, "has a type that is only evaluated row by row");

	op = without_greater(known->op);
	if (op != known->op)
	{
		VectorNode *swap = left;

		left = right;
		right = swap;
	}
	if (decimals)
		return compile_decimal(cx, op, left, right);
	if (with_date)
	{
		VectorNode **date = left->type == VECTOR_INT4 ? &left : &right;

		node = make_node(cx, VECTOR_DATE_CAST, VECTOR_INT8, 1);
		node->args[0] = *date;
		*date = node;
	}
	common = common_type(known->left, known->right);
	node = make_node(cx, op,
					 op >= VECTOR_EQ && op <= VECTOR_LE ? VECTOR_BOOL : common, 2);
	node->args[0] = widened(cx, left, common);
	node->args[1] = widened(cx, right, common);
	return node;
}

static VectorNode *
compile_function(CompileContext *cx, Oid function, Oid collation, List *args)
{
	switch (list_length(args))
	{
		case 1:
			return compile_unary_function(cx, function, linitial(args));
		case 2:
			return compile_binary_function(cx, function, collation,
										   linitial(args), lsecond(args));
		default:
			return cannot(cx, "has a function or operator that is only evaluated row by row");
	}
}

/*
 * IN with a list of decimals.  Each of them has a scale of its own, so the list
 * becomes as many comparisons.
 */
static VectorNode *
compile_decimal_in(CompileContext *cx, ScalarArrayOpExpr *op)
{
	Const	   *array = lsecond_node(Const, op->args);
	Datum	   *datums;
	bool	   *nulls;
	int			n;
	VectorNode *node;

	if (array->constisnull)
		return cannot(cx, "has a list of values that are not constant");
	deconstruct_array(DatumGetArrayTypeP(array->constvalue), NUMERICOID, -1,
					  false, TYPALIGN_INT, &datums, &nulls, &n);
	if (n == 0 || n > VECTOR_LINEAR_ITEMS)
		return cannot(cx, "has a list of no or many numerics");
	node = make_node(cx, op->useOr ? VECTOR_OR : VECTOR_AND, VECTOR_BOOL, n);
	for (int i = 0; i < n; i++)
	{
		Const	   *item = makeConst(NUMERICOID, -1, InvalidOid, -1, datums[i],
									 nulls[i], false);

		if (nulls[i])
			node->args[i] = compile(cx, makeBoolConst(false, true));
		else
			node->args[i] = compile_function(cx, op->opfuncid, op->inputcollid,
											 list_make2(linitial(op->args), item));
		if (node->args[i] == NULL)
			return NULL;
	}
	return node;
}

/* scalar = ANY (array), scalar <> ALL (array) */
static VectorNode *
compile_in(CompileContext *cx, ScalarArrayOpExpr *op)
{
	const VectorFunction *known = gpurhh_vector_binary(op->opfuncid);
	Node	   *array = lsecond(op->args);
	VectorNode *node;
	VectorNode *scalar;
	VectorType	item_type;
	Oid			element = get_element_type(exprType(array));

	if (known == NULL ||
		!((known->op == VECTOR_EQ && op->useOr) ||
		  (known->op == VECTOR_NE && !op->useOr)))
		return cannot(cx, "has a function or operator that is only evaluated row by row");
	if (!has_byte_equality(known, op->inputcollid))
		return cannot(cx, "has a collation that is not deterministic, or none");
	if (!IsA(array, Const) && !IsA(array, Param))
		return cannot(cx, "has a list of values that are not constant");
	if (element == NUMERICOID && IsA(array, Const))
		return compile_decimal_in(cx, op);
	if (!gpurhh_vector_type(element, &item_type))
		return cannot(cx, "has a type that is only evaluated row by row");
	scalar = compile(cx, linitial(op->args));
	if (scalar == NULL)
		return NULL;
	if (scalar->type != known->left || item_type != known->right)
		return cannot(cx, "has a type that is only evaluated row by row");

	node = make_node(cx, op->useOr ? VECTOR_IN : VECTOR_NOT_IN, VECTOR_BOOL, 1);
	node->args[0] = widened(cx, scalar, common_type(known->left, known->right));
	node->given_type = item_type;
	set_constant(cx, node, array);
	return node;
}

/* The node itself if it has the type; a decimal of 64 bits is widened to 128. */
static VectorNode *
as_type(CompileContext *cx, VectorNode *node, VectorType type)
{
	if (node == NULL || node->type == type)
		return node;
	if (node->type == VECTOR_DECIMAL && type == VECTOR_DECIMAL128)
		return widened(cx, node, type);
	return cannot(cx, "has a type that is only evaluated row by row");
}

static VectorNode *
compile_list(CompileContext *cx, VectorOp op, VectorType type, List *exprs)
{
	VectorNode *node = make_node(cx, op, type, list_length(exprs));
	ListCell   *lc;

	foreach(lc, exprs)
	{
		VectorNode *arg = as_type(cx, compile(cx, lfirst(lc)), type);

		if (arg == NULL)
			return NULL;
		node->args[foreach_current_index(lc)] = arg;
	}
	return node;
}

/*
 * Compiles a result of CASE.  A NULL among numerics has no scale, so its type is
 * that of the CASE.
 */
static VectorNode *
compile_branch(CompileContext *cx, Expr *expr, VectorType type)
{
	VectorNode *node;

	if (!is_decimal(type) || !IsA(expr, Const) || !((Const *) expr)->constisnull)
		return as_type(cx, compile(cx, (Node *) expr), type);
	node = make_node(cx, VECTOR_CONSTANT, type, 0);
	set_constant(cx, node, (Node *) expr);
	return node;
}

static VectorNode *
compile_case(CompileContext *cx, CaseExpr *expr)
{
	VectorNode *node;
	VectorType	type;
	ListCell   *lc;
	int			i = 0;

	if (expr->arg != NULL)
		return cannot(cx, "has a CASE with an operand");
	if (!type_of_expression((Node *) expr, &type))
		return cannot(cx, "has a type that is only evaluated row by row");
	node = make_node(cx, VECTOR_CASE, type, list_length(expr->args) * 2 + 1);
	foreach(lc, expr->args)
	{
		CaseWhen   *when = lfirst_node(CaseWhen, lc);
		VectorNode *condition = compile(cx, (Node *) when->expr);
		VectorNode *result;

		if (condition == NULL)
			return NULL;
		result = compile_branch(cx, when->result, type);
		if (result == NULL)
			return NULL;
		if (condition->type != VECTOR_BOOL)
			return cannot(cx, "has a type that is only evaluated row by row");
		node->args[i++] = condition;
		node->args[i++] = result;
	}
	/* the planner sees to it that there is a default */
	node->args[i] = compile_branch(cx, expr->defresult, type);
	return node->args[i] == NULL ? NULL : node;
}

static VectorNode *
compile_unary(CompileContext *cx, VectorOp op, Node *expr)
{
	VectorNode *node;
	VectorNode *arg = compile(cx, expr);

	if (arg == NULL)
		return NULL;
	if (op != VECTOR_IS_NULL && op != VECTOR_IS_NOT_NULL &&
		arg->type != VECTOR_BOOL)
		return cannot(cx, "has a type that is only evaluated row by row");
	node = make_node(cx, op, VECTOR_BOOL, 1);
	node->args[0] = arg;
	return node;
}

/* A column of the chunk, whose number and type the caller's finder has told. */
static VectorNode *
make_column(CompileContext *cx, int column, VectorType type)
{
	VectorNode *node = make_node(cx, VECTOR_COLUMN, type, 0);

	node->column = column;
	return node;
}

static VectorNode *
compile_null_test(CompileContext *cx, NullTest *test)
{
	VectorOp	op = test->nulltesttype == IS_NULL ? VECTOR_IS_NULL :
		VECTOR_IS_NOT_NULL;
	VectorNode *node;
	VectorType	type;
	int			column;

	/* a row is also "NULL" if all of its fields are */
	if (test->argisrow)
		return cannot(cx, "tests whether a row is NULL");
	/* of a column whose type no vector holds it may be known all the same */
	if (!cx->find_column((Node *) test->arg, true, &column, &type, cx->finder_arg))
		return compile_unary(cx, op, (Node *) test->arg);
	node = make_node(cx, op, VECTOR_BOOL, 1);
	node->args[0] = make_column(cx, column, type);
	return node;
}

static VectorNode *
compile_boolean_test(CompileContext *cx, BooleanTest *test)
{
	VectorOp	op = VECTOR_IS_TRUE;

	switch (test->booltesttype)
	{
		case IS_TRUE:
			op = VECTOR_IS_TRUE;
			break;
		case IS_NOT_TRUE:
			op = VECTOR_IS_NOT_TRUE;
			break;
		case IS_FALSE:
			op = VECTOR_IS_FALSE;
			break;
		case IS_NOT_FALSE:
			op = VECTOR_IS_NOT_FALSE;
			break;
		case IS_UNKNOWN:
			op = VECTOR_IS_NULL;
			break;
		case IS_NOT_UNKNOWN:
			op = VECTOR_IS_NOT_NULL;
			break;
	}
	return compile_unary(cx, op, (Node *) test->arg);
}

static VectorNode *
compile_logic(CompileContext *cx, BoolExpr *expr)
{
	if (expr->boolop == NOT_EXPR)
		return compile_unary(cx, VECTOR_NOT, linitial(expr->args));
	return compile_list(cx, expr->boolop == AND_EXPR ? VECTOR_AND : VECTOR_OR,
						VECTOR_BOOL, expr->args);
}

/* A value as one of another type that has the same bytes. */
static VectorNode *
compile_relabel(CompileContext *cx, RelabelType *expr)
{
	VectorNode *arg = compile(cx, (Node *) expr->arg);
	VectorType	type;

	/* a domain's value as one of the base type; not oid as int4 */
	if (arg == NULL)
		return NULL;
	if (!type_of_expression((Node *) expr, &type) || arg->type != type)
		return cannot(cx, "has a type that is only evaluated row by row");
	return arg;
}

/* Tells the kinds of expressions apart; each has a function of its own above. */
static VectorNode *
compile_node(CompileContext *cx, Node *expr)
{
	VectorType	type;
	int			column;

	check_stack_depth();
	if (expr == NULL)
		return cannot(cx, "has no value");
	if (cx->find_column(expr, false, &column, &type, cx->finder_arg))
		return make_column(cx, column, type);
	switch (nodeTag(expr))
	{
		case T_Const:
			return compile_constant(cx, expr);
		case T_Param:
			if (((Param *) expr)->paramkind != PARAM_EXTERN &&
				((Param *) expr)->paramkind != PARAM_EXEC)
				break;
			return compile_constant(cx, expr);
		case T_OpExpr:
			if (((OpExpr *) expr)->opretset)
				break;
			return compile_function(cx, ((OpExpr *) expr)->opfuncid,
									((OpExpr *) expr)->inputcollid,
									((OpExpr *) expr)->args);
		case T_FuncExpr:
			if (((FuncExpr *) expr)->funcretset)
				break;
			return compile_function(cx, ((FuncExpr *) expr)->funcid,
									((FuncExpr *) expr)->inputcollid,
									((FuncExpr *) expr)->args);
		case T_ScalarArrayOpExpr:
			return compile_in(cx, (ScalarArrayOpExpr *) expr);
		case T_BoolExpr:
			return compile_logic(cx, (BoolExpr *) expr);
		case T_NullTest:
			return compile_null_test(cx, (NullTest *) expr);
		case T_BooleanTest:
			return compile_boolean_test(cx, (BooleanTest *) expr);
		case T_RelabelType:
			return compile_relabel(cx, (RelabelType *) expr);
		case T_CaseExpr:
			return compile_case(cx, (CaseExpr *) expr);
		case T_CoalesceExpr:
			if (!type_of_expression(expr, &type))
				return cannot(cx, "has a type that is only evaluated row by row");
			return compile_list(cx, VECTOR_COALESCE, type,
								((CoalesceExpr *) expr)->args);
		case T_Var:
			return cannot(cx, "has a column that is only read row by row");
		default:
			break;
	}
	return cannot(cx, "has something that is only evaluated row by row");
}

/*
 * Do all results of CASE or COALESCE have the scale of its type modifier?  A constant
 * that the planner has put there may have another one.
 */
static bool
branches_have_scale(const VectorNode *node)
{
	for (int i = 0; i < node->n_args; i++)
	{
		const VectorNode *arg = node->args[i];
		bool		is_condition = node->op == VECTOR_CASE && i % 2 == 0 &&
			i < node->n_args - 1;
		bool		is_null = arg->op == VECTOR_CONSTANT &&
			IsA(arg->constant, Const) && ((Const *) arg->constant)->constisnull;

		if (!is_condition && !is_null && arg->scale != node->scale)
			return false;
	}
	return true;
}

/*
 * Compiles an expression and finds the scale of a decimal.  Returns NULL if that
 * cannot be done; then cx->why says why.
 */
static VectorNode *
compile(CompileContext *cx, Node *expr)
{
	VectorNode *node = compile_node(cx, expr);

	if (node != NULL && is_decimal(node->type))
	{
		if (!gpurhh_decimal_type(expr, &node->digits, &node->scale))
			return cannot(cx, "has a numeric of no known scale");
		node->given_scale = node->scale;
		if ((node->op == VECTOR_CASE || node->op == VECTOR_COALESCE) &&
			!branches_have_scale(node))
			return cannot(cx, "has a numeric of another scale than its type modifier says");
	}
	return node;
}

/*
 * Compiles expr.  find_column tells which parts of it are columns of the chunk.
 * Parameters are evaluated in the expression context of parent; without a parent the
 * result cannot be evaluated, and the caller only learns whether expr can be compiled.
 * Returns NULL if it cannot; then *why says why.  The text follows the name of the
 * expression and begins with a verb, as "has".
 */
VectorExpr *
gpurhh_vector_compile(Expr *expr, PlanState *parent, int max_rows,
					  VectorColumnFinder find_column, void *finder_arg,
					  const char **why)
{
	VectorExpr *result = palloc0(sizeof(VectorExpr));
	CompileContext cx = {0};

	result->econtext = parent ? parent->ps_ExprContext : NULL;
	result->max_rows = max_rows;
	result->no_nulls = palloc0(max_rows);
	cx.expr = result;
	cx.find_column = find_column;
	cx.finder_arg = finder_arg;
	result->root = compile(&cx, (Node *) expr);
	if (result->root == NULL)
	{
		*why = cx.why;
		return NULL;
	}
	result->constants_context = AllocSetContextCreate(CurrentMemoryContext,
													  "GpuHashAgg constants",
													  ALLOCSET_SMALL_SIZES);
	return result;
}

/* The type of the results that gpurhh_vector_evaluate() gives. */
VectorType
gpurhh_vector_result_type(const VectorExpr *expr)
{
	return expr->root->type;
}
