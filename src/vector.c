/*-------------------------------------------------------------------------
 *
 * vector.c
 *		Expressions evaluated over a chunk of rows at a time.
 *
 * gpurhh_vector_compile() makes a tree of nodes of an expression, or says why
 * it cannot; gpurhh_vector_evaluate() computes it for all rows of a chunk, one
 * node after the other, each with a loop over the rows.  Only built-in
 * functions are known that have neither side effects nor settings, so that the
 * order of evaluation cannot be seen - but for errors.
 *
 * No error is raised here.  Where a value of a row would raise one (or only
 * may), evaluation gives up, and the caller lets core evaluate the chunk row by
 * row: that raises the error that is the first in core's order, or none.  What
 * core does not evaluate must not count: "active" has a byte for each row that
 * tells whether core would come to this node for it, as left operands of AND
 * and OR and the conditions of CASE decide.  Parameters are read when the first
 * active row asks for them; the first use of one that an InitPlan gives is
 * left to core.
 *
 * Values of inactive rows, and of NULLs, are arbitrary but initialized.
 *
 * Memory: nodes and the results of all of them are made once, for chunks of at
 * most max_rows, in the context that gpurhh_vector_compile() is called in; what
 * parameters need is in a child of it that gpurhh_vector_reset() resets.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include <math.h>

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* Lists of IN that are longer are searched by halves. */
#define VECTOR_LINEAR_ITEMS 16

typedef enum VectorOp
{
	VECTOR_COLUMN,
	VECTOR_CONSTANT,			/* a constant or a parameter */
	/* comparisons; > and >= are made < and <= */
	VECTOR_EQ,
	VECTOR_NE,
	VECTOR_LT,
	VECTOR_LE,
	VECTOR_GT,
	VECTOR_GE,
	VECTOR_IN,					/* scalar = ANY (array) */
	VECTOR_NOT_IN,				/* scalar <> ALL (array) */
	/* arithmetic */
	VECTOR_ADD,
	VECTOR_SUBTRACT,
	VECTOR_MULTIPLY,
	VECTOR_DIVIDE,
	VECTOR_MODULO,
	VECTOR_NEGATE,
	VECTOR_CAST,
	VECTOR_DATE_CAST,			/* date to timestamp */
	VECTOR_RESCALE,				/* a decimal with more zeros */
	/* logic */
	VECTOR_AND,
	VECTOR_OR,
	VECTOR_NOT,
	VECTOR_IS_NULL,
	VECTOR_IS_NOT_NULL,
	VECTOR_IS_TRUE,
	VECTOR_IS_NOT_TRUE,
	VECTOR_IS_FALSE,
	VECTOR_IS_NOT_FALSE,
	VECTOR_CASE,				/* args: condition, result, ..., default */
	VECTOR_COALESCE
} VectorOp;

typedef struct VectorNode
{
	VectorOp	op;
	VectorType	type;			/* of the result */
	int			n_args;
	struct VectorNode **args;

	int			digits;			/* of decimals, at most */
	int			scale;			/* of decimals */

	int			column;			/* VECTOR_COLUMN */

	/* VECTOR_CONSTANT, and the array of VECTOR_IN */
	VectorType	given_type;		/* before it was widened */
	int			given_scale;	/* before it was rescaled */
	Node	   *constant;		/* a Const or Param */
	bool		known;			/* has been read */
	bool		is_null;
	int			n_items;
	bool		null_item;
	void	   *items;			/* of type */
	int64	   *sorted;			/* NULL: not sorted */

	void	   *values;			/* buffers for max_rows */
	uint8	   *nulls;
	uint8	   *active;			/* for arguments that not all rows come to */
	uint8	   *taken;
	Vector		result;
} VectorNode;

struct VectorExpr
{
	VectorNode *root;
	ExprContext *econtext;
	int			max_rows;
	uint8	   *no_nulls;		/* zeros */
	List	   *constants;		/* of VectorNode */
	MemoryContext constants_context;
};

/* ---------- what is known ---------- */

typedef struct VectorFunction
{
	Oid			function;
	VectorOp	op;
	VectorType	left;
	VectorType	right;
} VectorFunction;

#define COMPARISONS(left, right, eq, ne, lt, le, gt, ge) \
	{eq, VECTOR_EQ, left, right}, {ne, VECTOR_NE, left, right}, \
	{lt, VECTOR_LT, left, right}, {le, VECTOR_LE, left, right}, \
	{gt, VECTOR_GT, left, right}, {ge, VECTOR_GE, left, right}

/* The result of arithmetic, and what is compared, is the wider of both. */
static const VectorFunction functions[] = {
	COMPARISONS(VECTOR_BOOL, VECTOR_BOOL, F_BOOLEQ, F_BOOLNE, F_BOOLLT, F_BOOLLE, F_BOOLGT, F_BOOLGE),
	COMPARISONS(VECTOR_INT2, VECTOR_INT2, F_INT2EQ, F_INT2NE, F_INT2LT, F_INT2LE, F_INT2GT, F_INT2GE),
	COMPARISONS(VECTOR_INT2, VECTOR_INT4, F_INT24EQ, F_INT24NE, F_INT24LT, F_INT24LE, F_INT24GT, F_INT24GE),
	COMPARISONS(VECTOR_INT2, VECTOR_INT8, F_INT28EQ, F_INT28NE, F_INT28LT, F_INT28LE, F_INT28GT, F_INT28GE),
	COMPARISONS(VECTOR_INT4, VECTOR_INT2, F_INT42EQ, F_INT42NE, F_INT42LT, F_INT42LE, F_INT42GT, F_INT42GE),
	COMPARISONS(VECTOR_INT4, VECTOR_INT4, F_INT4EQ, F_INT4NE, F_INT4LT, F_INT4LE, F_INT4GT, F_INT4GE),
	COMPARISONS(VECTOR_INT4, VECTOR_INT8, F_INT48EQ, F_INT48NE, F_INT48LT, F_INT48LE, F_INT48GT, F_INT48GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT2, F_INT82EQ, F_INT82NE, F_INT82LT, F_INT82LE, F_INT82GT, F_INT82GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT4, F_INT84EQ, F_INT84NE, F_INT84LT, F_INT84LE, F_INT84GT, F_INT84GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT8, F_INT8EQ, F_INT8NE, F_INT8LT, F_INT8LE, F_INT8GT, F_INT8GE),
	COMPARISONS(VECTOR_OID, VECTOR_OID, F_OIDEQ, F_OIDNE, F_OIDLT, F_OIDLE, F_OIDGT, F_OIDGE),
	COMPARISONS(VECTOR_INT4, VECTOR_INT4, F_DATE_EQ, F_DATE_NE, F_DATE_LT, F_DATE_LE, F_DATE_GT, F_DATE_GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT8, F_TIME_EQ, F_TIME_NE, F_TIME_LT, F_TIME_LE, F_TIME_GT, F_TIME_GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT8, F_TIMESTAMP_EQ, F_TIMESTAMP_NE, F_TIMESTAMP_LT, F_TIMESTAMP_LE, F_TIMESTAMP_GT, F_TIMESTAMP_GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT8, F_TIMESTAMPTZ_EQ, F_TIMESTAMPTZ_NE, F_TIMESTAMPTZ_LT, F_TIMESTAMPTZ_LE, F_TIMESTAMPTZ_GT, F_TIMESTAMPTZ_GE),
	COMPARISONS(VECTOR_INT8, VECTOR_INT8, F_CASH_EQ, F_CASH_NE, F_CASH_LT, F_CASH_LE, F_CASH_GT, F_CASH_GE),
	COMPARISONS(VECTOR_FLOAT4, VECTOR_FLOAT4, F_FLOAT4EQ, F_FLOAT4NE, F_FLOAT4LT, F_FLOAT4LE, F_FLOAT4GT, F_FLOAT4GE),
	COMPARISONS(VECTOR_FLOAT4, VECTOR_FLOAT8, F_FLOAT48EQ, F_FLOAT48NE, F_FLOAT48LT, F_FLOAT48LE, F_FLOAT48GT, F_FLOAT48GE),
	COMPARISONS(VECTOR_FLOAT8, VECTOR_FLOAT4, F_FLOAT84EQ, F_FLOAT84NE, F_FLOAT84LT, F_FLOAT84LE, F_FLOAT84GT, F_FLOAT84GE),
	COMPARISONS(VECTOR_FLOAT8, VECTOR_FLOAT8, F_FLOAT8EQ, F_FLOAT8NE, F_FLOAT8LT, F_FLOAT8LE, F_FLOAT8GT, F_FLOAT8GE),
	/* enums: equal where their OIDs are, but ordered otherwise */
	{F_ENUM_EQ, VECTOR_EQ, VECTOR_OID, VECTOR_OID},
	{F_ENUM_NE, VECTOR_NE, VECTOR_OID, VECTOR_OID},
	COMPARISONS(VECTOR_UUID, VECTOR_UUID, F_UUID_EQ, F_UUID_NE, F_UUID_LT, F_UUID_LE, F_UUID_GT, F_UUID_GE),

	/* under a deterministic collation, see has_byte_equality() */
	{F_TEXTEQ, VECTOR_EQ, VECTOR_STRING, VECTOR_STRING},
	{F_TEXTNE, VECTOR_NE, VECTOR_STRING, VECTOR_STRING},
	{F_BYTEAEQ, VECTOR_EQ, VECTOR_STRING, VECTOR_STRING},
	{F_BYTEANE, VECTOR_NE, VECTOR_STRING, VECTOR_STRING},
	{F_BPCHAREQ, VECTOR_EQ, VECTOR_BPCHAR, VECTOR_BPCHAR},
	{F_BPCHARNE, VECTOR_NE, VECTOR_BPCHAR, VECTOR_BPCHAR},
	COMPARISONS(VECTOR_DECIMAL, VECTOR_DECIMAL, F_NUMERIC_EQ, F_NUMERIC_NE, F_NUMERIC_LT, F_NUMERIC_LE, F_NUMERIC_GT, F_NUMERIC_GE),

	{F_INT2PL, VECTOR_ADD, VECTOR_INT2, VECTOR_INT2},
	{F_INT2MI, VECTOR_SUBTRACT, VECTOR_INT2, VECTOR_INT2},
	{F_INT2MUL, VECTOR_MULTIPLY, VECTOR_INT2, VECTOR_INT2},
	{F_INT2DIV, VECTOR_DIVIDE, VECTOR_INT2, VECTOR_INT2},
	{F_INT2MOD, VECTOR_MODULO, VECTOR_INT2, VECTOR_INT2},
	{F_MOD_INT2_INT2, VECTOR_MODULO, VECTOR_INT2, VECTOR_INT2},
	{F_INT24PL, VECTOR_ADD, VECTOR_INT2, VECTOR_INT4},
	{F_INT24MI, VECTOR_SUBTRACT, VECTOR_INT2, VECTOR_INT4},
	{F_INT24MUL, VECTOR_MULTIPLY, VECTOR_INT2, VECTOR_INT4},
	{F_INT24DIV, VECTOR_DIVIDE, VECTOR_INT2, VECTOR_INT4},
	{F_INT28PL, VECTOR_ADD, VECTOR_INT2, VECTOR_INT8},
	{F_INT28MI, VECTOR_SUBTRACT, VECTOR_INT2, VECTOR_INT8},
	{F_INT28MUL, VECTOR_MULTIPLY, VECTOR_INT2, VECTOR_INT8},
	{F_INT28DIV, VECTOR_DIVIDE, VECTOR_INT2, VECTOR_INT8},
	{F_INT42PL, VECTOR_ADD, VECTOR_INT4, VECTOR_INT2},
	{F_INT42MI, VECTOR_SUBTRACT, VECTOR_INT4, VECTOR_INT2},
	{F_INT42MUL, VECTOR_MULTIPLY, VECTOR_INT4, VECTOR_INT2},
	{F_INT42DIV, VECTOR_DIVIDE, VECTOR_INT4, VECTOR_INT2},
	{F_INT4PL, VECTOR_ADD, VECTOR_INT4, VECTOR_INT4},
	{F_INT4MI, VECTOR_SUBTRACT, VECTOR_INT4, VECTOR_INT4},
	{F_INT4MUL, VECTOR_MULTIPLY, VECTOR_INT4, VECTOR_INT4},
	{F_INT4DIV, VECTOR_DIVIDE, VECTOR_INT4, VECTOR_INT4},
	{F_INT4MOD, VECTOR_MODULO, VECTOR_INT4, VECTOR_INT4},
	{F_MOD_INT4_INT4, VECTOR_MODULO, VECTOR_INT4, VECTOR_INT4},
	{F_INT48PL, VECTOR_ADD, VECTOR_INT4, VECTOR_INT8},
	{F_INT48MI, VECTOR_SUBTRACT, VECTOR_INT4, VECTOR_INT8},
	{F_INT48MUL, VECTOR_MULTIPLY, VECTOR_INT4, VECTOR_INT8},
	{F_INT48DIV, VECTOR_DIVIDE, VECTOR_INT4, VECTOR_INT8},
	{F_INT82PL, VECTOR_ADD, VECTOR_INT8, VECTOR_INT2},
	{F_INT82MI, VECTOR_SUBTRACT, VECTOR_INT8, VECTOR_INT2},
	{F_INT82MUL, VECTOR_MULTIPLY, VECTOR_INT8, VECTOR_INT2},
	{F_INT82DIV, VECTOR_DIVIDE, VECTOR_INT8, VECTOR_INT2},
	{F_INT84PL, VECTOR_ADD, VECTOR_INT8, VECTOR_INT4},
	{F_INT84MI, VECTOR_SUBTRACT, VECTOR_INT8, VECTOR_INT4},
	{F_INT84MUL, VECTOR_MULTIPLY, VECTOR_INT8, VECTOR_INT4},
	{F_INT84DIV, VECTOR_DIVIDE, VECTOR_INT8, VECTOR_INT4},
	{F_INT8PL, VECTOR_ADD, VECTOR_INT8, VECTOR_INT8},
	{F_INT8MI, VECTOR_SUBTRACT, VECTOR_INT8, VECTOR_INT8},
	{F_INT8MUL, VECTOR_MULTIPLY, VECTOR_INT8, VECTOR_INT8},
	{F_INT8DIV, VECTOR_DIVIDE, VECTOR_INT8, VECTOR_INT8},
	{F_INT8MOD, VECTOR_MODULO, VECTOR_INT8, VECTOR_INT8},
	{F_MOD_INT8_INT8, VECTOR_MODULO, VECTOR_INT8, VECTOR_INT8},
	{F_FLOAT4PL, VECTOR_ADD, VECTOR_FLOAT4, VECTOR_FLOAT4},
	{F_FLOAT4MI, VECTOR_SUBTRACT, VECTOR_FLOAT4, VECTOR_FLOAT4},
	{F_FLOAT4MUL, VECTOR_MULTIPLY, VECTOR_FLOAT4, VECTOR_FLOAT4},
	{F_FLOAT4DIV, VECTOR_DIVIDE, VECTOR_FLOAT4, VECTOR_FLOAT4},
	{F_FLOAT48PL, VECTOR_ADD, VECTOR_FLOAT4, VECTOR_FLOAT8},
	{F_FLOAT48MI, VECTOR_SUBTRACT, VECTOR_FLOAT4, VECTOR_FLOAT8},
	{F_FLOAT48MUL, VECTOR_MULTIPLY, VECTOR_FLOAT4, VECTOR_FLOAT8},
	{F_FLOAT48DIV, VECTOR_DIVIDE, VECTOR_FLOAT4, VECTOR_FLOAT8},
	{F_FLOAT84PL, VECTOR_ADD, VECTOR_FLOAT8, VECTOR_FLOAT4},
	{F_FLOAT84MI, VECTOR_SUBTRACT, VECTOR_FLOAT8, VECTOR_FLOAT4},
	{F_FLOAT84MUL, VECTOR_MULTIPLY, VECTOR_FLOAT8, VECTOR_FLOAT4},
	{F_FLOAT84DIV, VECTOR_DIVIDE, VECTOR_FLOAT8, VECTOR_FLOAT4},
	{F_FLOAT8PL, VECTOR_ADD, VECTOR_FLOAT8, VECTOR_FLOAT8},
	{F_FLOAT8MI, VECTOR_SUBTRACT, VECTOR_FLOAT8, VECTOR_FLOAT8},
	{F_FLOAT8MUL, VECTOR_MULTIPLY, VECTOR_FLOAT8, VECTOR_FLOAT8},
	{F_FLOAT8DIV, VECTOR_DIVIDE, VECTOR_FLOAT8, VECTOR_FLOAT8},
	{F_NUMERIC_ADD, VECTOR_ADD, VECTOR_DECIMAL, VECTOR_DECIMAL},
	{F_NUMERIC_SUB, VECTOR_SUBTRACT, VECTOR_DECIMAL, VECTOR_DECIMAL},
	{F_NUMERIC_MUL, VECTOR_MULTIPLY, VECTOR_DECIMAL, VECTOR_DECIMAL},
};

/* The date, an int4, is made a timestamp first. */
static const VectorFunction date_functions[] = {
	COMPARISONS(VECTOR_INT4, VECTOR_INT8, F_DATE_EQ_TIMESTAMP, F_DATE_NE_TIMESTAMP, F_DATE_LT_TIMESTAMP, F_DATE_LE_TIMESTAMP, F_DATE_GT_TIMESTAMP, F_DATE_GE_TIMESTAMP),
	COMPARISONS(VECTOR_INT8, VECTOR_INT4, F_TIMESTAMP_EQ_DATE, F_TIMESTAMP_NE_DATE, F_TIMESTAMP_LT_DATE, F_TIMESTAMP_LE_DATE, F_TIMESTAMP_GT_DATE, F_TIMESTAMP_GE_DATE),
};

/* Of one argument: left is its type, right the result's. */
static const VectorFunction unary_functions[] = {
	{F_INT2UM, VECTOR_NEGATE, VECTOR_INT2, VECTOR_INT2},
	{F_INT4UM, VECTOR_NEGATE, VECTOR_INT4, VECTOR_INT4},
	{F_INT8UM, VECTOR_NEGATE, VECTOR_INT8, VECTOR_INT8},
	{F_FLOAT4UM, VECTOR_NEGATE, VECTOR_FLOAT4, VECTOR_FLOAT4},
	{F_FLOAT8UM, VECTOR_NEGATE, VECTOR_FLOAT8, VECTOR_FLOAT8},
	{F_INT4_BOOL, VECTOR_CAST, VECTOR_BOOL, VECTOR_INT4},
	{F_INT4_INT2, VECTOR_CAST, VECTOR_INT2, VECTOR_INT4},
	{F_INT8_INT2, VECTOR_CAST, VECTOR_INT2, VECTOR_INT8},
	{F_INT8_INT4, VECTOR_CAST, VECTOR_INT4, VECTOR_INT8},
	{F_INT2_INT4, VECTOR_CAST, VECTOR_INT4, VECTOR_INT2},
	{F_INT2_INT8, VECTOR_CAST, VECTOR_INT8, VECTOR_INT2},
	{F_INT4_INT8, VECTOR_CAST, VECTOR_INT8, VECTOR_INT4},
	{F_FLOAT8_INT2, VECTOR_CAST, VECTOR_INT2, VECTOR_FLOAT8},
	{F_FLOAT8_INT4, VECTOR_CAST, VECTOR_INT4, VECTOR_FLOAT8},
	{F_FLOAT8_INT8, VECTOR_CAST, VECTOR_INT8, VECTOR_FLOAT8},
	{F_FLOAT8_FLOAT4, VECTOR_CAST, VECTOR_FLOAT4, VECTOR_FLOAT8},
	{F_NUMERIC_UMINUS, VECTOR_NEGATE, VECTOR_DECIMAL, VECTOR_DECIMAL},
	{F_NUMERIC_INT2, VECTOR_CAST, VECTOR_INT2, VECTOR_DECIMAL},
	{F_NUMERIC_INT4, VECTOR_CAST, VECTOR_INT4, VECTOR_DECIMAL},
	{F_NUMERIC_INT8, VECTOR_CAST, VECTOR_INT8, VECTOR_DECIMAL128},
};

/* Bytes of a value. */
static int
type_bytes(VectorType type)
{
	switch (type)
	{
		case VECTOR_ANY:
			return 0;
		case VECTOR_BOOL:
			return 1;
		case VECTOR_INT2:
			return 2;
		case VECTOR_INT4:
		case VECTOR_OID:
		case VECTOR_FLOAT4:
			return 4;
		case VECTOR_INT8:
		case VECTOR_FLOAT8:
		case VECTOR_DECIMAL:
			return 8;
		case VECTOR_UUID:
		case VECTOR_DECIMAL128:
			return 16;
		case VECTOR_STRING:
		case VECTOR_BPCHAR:
			return sizeof(struct varlena *);
	}
	return 0;					/* keep compiler quiet */
}

/* False where values of the SQL type cannot be in a vector. */
bool
gpurhh_vector_type(Oid type, VectorType *result)
{
	const char *problem;
	GpuColumn	column;

	/* its length matters only where it becomes a key */
	if (getBaseType(type) == BPCHAROID)
	{
		*result = VECTOR_BPCHAR;
		return true;
	}
	if (!gpurhh_resolve(type, -1, InvalidOid, &column, &problem))
		return false;
	*result = gpurhh_encodings[column.encoding].vector;
	return *result != VECTOR_ANY;
}

static inline bool
is_decimal(VectorType type)
{
	return type == VECTOR_DECIMAL || type == VECTOR_DECIMAL128;
}

/* How integers of so many digits are computed with. */
static VectorType
decimal_vector(int digits)
{
	return digits <= GPURHH_DECIMAL_DIGITS ? VECTOR_DECIMAL : VECTOR_DECIMAL128;
}

/*
 * The vector type of an expression's values, also of a numeric's, which depends
 * on what is known of its digits.
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

/* ---------- compilation ---------- */

typedef struct CompileContext
{
	VectorExpr *expr;
	VectorColumnFinder find_column;
	void	   *finder_arg;
	const char *why;			/* not NULL: cannot be done */
} CompileContext;

static VectorNode *compile(CompileContext *cx, Node *expr);

static VectorNode *
cannot(CompileContext *cx, const char *why)
{
	if (cx->why == NULL)
		cx->why = why;
	return NULL;
}

/* A node with buffers for its result. */
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
	node->values = (void *) TYPEALIGN(64, palloc0((Size) max_rows * Max(type_bytes(type), 1) + 64));
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

/* The node as one of the wider type. */
static VectorNode *
widened(CompileContext *cx, VectorNode *node, VectorType type)
{
	VectorNode *cast;

	if (node->type == type)
		return node;
	if (node->op == VECTOR_CONSTANT)
	{
		/* read as it is given, kept as it is needed */
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

/* The wider of two types that a function takes together. */
static VectorType
common_type(VectorType left, VectorType right)
{
	return type_bytes(left) >= type_bytes(right) ? left : right;
}

static const VectorFunction *
find_function(Oid function, const VectorFunction *table, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (table[i].function == function)
			return &table[i];
	}
	return NULL;
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

static bool
is_string(VectorType type)
{
	return type == VECTOR_STRING || type == VECTOR_BPCHAR;
}

/* Can it be computed by bytes?  Of strings that depends on the collation. */
static bool
has_byte_equality(const VectorFunction *function, Oid collation)
{
	return !is_string(function->left) || !OidIsValid(collation) ||
		get_collation_isdeterministic(collation);
}

/* The decimal node with a scale that is not less than its own. */
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

/* A function of two decimals; see gpurhh_decimal_type() for the result. */
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
compile_function(CompileContext *cx, Oid function, Oid collation, List *args)
{
	const VectorFunction *known;
	VectorNode *node;
	VectorNode *left;
	VectorNode *right;
	VectorType	common;
	bool		with_date = false;

	if (list_length(args) == 1)
	{
		known = find_function(function, unary_functions,
							  lengthof(unary_functions));
		if (known == NULL)
			return cannot(cx, "has a function or operator that is only evaluated row by row");
		left = compile(cx, linitial(args));
		if (left == NULL)
			return NULL;
		if (left->type != known->left &&
			!(is_decimal(left->type) && is_decimal(known->left)))
			return cannot(cx, "has a type that is only evaluated row by row");
		node = make_node(cx, known->op,
						 is_decimal(known->left) ? left->type : known->right, 1);
		node->args[0] = left;
		return node;
	}

	known = list_length(args) == 2 ?
		find_function(function, functions, lengthof(functions)) : NULL;
	if (known == NULL && list_length(args) == 2)
	{
		known = find_function(function, date_functions,
							  lengthof(date_functions));
		with_date = known != NULL;
	}
	if (known == NULL)
		return cannot(cx, "has a function or operator that is only evaluated row by row");
	if (!has_byte_equality(known, collation))
		return cannot(cx, "has a collation that is not deterministic");
	left = compile(cx, linitial(args));
	if (left == NULL)
		return NULL;
	right = compile(cx, lsecond(args));
	if (right == NULL)
		return NULL;
	if (is_decimal(known->left) && is_decimal(left->type) &&
		is_decimal(right->type))
	{
		bool		swap = known->op == VECTOR_GT || known->op == VECTOR_GE;

		return compile_decimal(cx, known->op == VECTOR_GT ? VECTOR_LT :
							   known->op == VECTOR_GE ? VECTOR_LE : known->op,
							   swap ? right : left, swap ? left : right);
	}
	/* what is declared is what comes, but for types of the same bytes */
	if (left->type != known->left || right->type != known->right)
		return cannot(cx, "has a type that is only evaluated row by row");
	common = common_type(known->left, known->right);
	if (with_date)
	{
		VectorNode **date = left->type == VECTOR_INT4 ? &left : &right;

		node = make_node(cx, VECTOR_DATE_CAST, VECTOR_INT8, 1);
		node->args[0] = *date;
		*date = node;
	}
	left = widened(cx, left, common);
	right = widened(cx, right, common);

	if (known->op >= VECTOR_EQ && known->op <= VECTOR_GE)
	{
		bool		swap = known->op == VECTOR_GT || known->op == VECTOR_GE;

		node = make_node(cx, known->op == VECTOR_GT ? VECTOR_LT :
						 known->op == VECTOR_GE ? VECTOR_LE : known->op,
						 VECTOR_BOOL, 2);
		node->args[0] = swap ? right : left;
		node->args[1] = swap ? left : right;
		return node;
	}
	node = make_node(cx, known->op, common, 2);
	node->args[0] = left;
	node->args[1] = right;
	return node;
}

/*
 * IN of decimals, each with a scale of its own: as that many comparisons.
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
	const VectorFunction *known = find_function(op->opfuncid, functions,
												lengthof(functions));
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
		return cannot(cx, "has a collation that is not deterministic");
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

/* A node of the type, if it is a decimal of less digits also. */
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

/* A result of CASE.  NULL is of any type, which for numeric says no scale. */
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

static VectorNode *
compile_node(CompileContext *cx, Node *expr)
{
	VectorType	type;
	int			column;

	check_stack_depth();
	if (expr == NULL)
		return cannot(cx, "has no value");
	if (cx->find_column(expr, false, &column, &type, cx->finder_arg))
	{
		VectorNode *node = make_node(cx, VECTOR_COLUMN, type, 0);

		node->column = column;
		return node;
	}
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
			switch (((BoolExpr *) expr)->boolop)
			{
				case AND_EXPR:
					return compile_list(cx, VECTOR_AND, VECTOR_BOOL,
										((BoolExpr *) expr)->args);
				case OR_EXPR:
					return compile_list(cx, VECTOR_OR, VECTOR_BOOL,
										((BoolExpr *) expr)->args);
				case NOT_EXPR:
					return compile_unary(cx, VECTOR_NOT,
										 linitial(((BoolExpr *) expr)->args));
			}
			break;
		case T_NullTest:
			{
				NullTest   *test = (NullTest *) expr;
				VectorOp	op = test->nulltesttype == IS_NULL ?
					VECTOR_IS_NULL : VECTOR_IS_NOT_NULL;

				/* a row is also "NULL" if all of its fields are */
				if (test->argisrow)
					return cannot(cx, "tests whether a row is NULL");
				if (cx->find_column((Node *) test->arg, true, &column, &type,
									cx->finder_arg))
				{
					VectorNode *node = make_node(cx, op, VECTOR_BOOL, 1);

					node->args[0] = make_node(cx, VECTOR_COLUMN, type, 0);
					node->args[0]->column = column;
					return node;
				}
				return compile_unary(cx, op, (Node *) test->arg);
			}
		case T_BooleanTest:
			{
				BooleanTest *test = (BooleanTest *) expr;
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
		case T_RelabelType:
			{
				VectorNode *arg = compile(cx, (Node *) ((RelabelType *) expr)->arg);

				/* a domain's value as one of the base type; not oid as int4 */
				if (arg == NULL)
					return NULL;
				if (!type_of_expression(expr, &type) || arg->type != type)
					return cannot(cx, "has a type that is only evaluated row by row");
				return arg;
			}
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

/* NULL: it cannot be done, and cx->why says why. */
static VectorNode *
compile(CompileContext *cx, Node *expr)
{
	VectorNode *node = compile_node(cx, expr);

	if (node != NULL && is_decimal(node->type))
	{
		if (!gpurhh_decimal_type(expr, &node->digits, &node->scale))
			return cannot(cx, "has a numeric of no known scale");
		node->given_scale = node->scale;
	}
	return node;
}

/*
 * Compiles expr, in whose columns' place stand vectors that find_column knows.
 * Parameters are evaluated in parent's expression context; without a parent it
 * is only found out whether it can be done.  NULL: it cannot be
 * done, and *why says why, to follow the expression's name: "has ...".
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

/* Of the results that gpurhh_vector_evaluate() gives. */
VectorType
gpurhh_vector_result_type(const VectorExpr *expr)
{
	return expr->root->type;
}

/* Parameters may have changed. */
void
gpurhh_vector_reset(VectorExpr *expr)
{
	ListCell   *lc;

	foreach(lc, expr->constants)
	{
		VectorNode *node = lfirst(lc);

		node->known = false;
		node->items = NULL;
		node->sorted = NULL;
	}
	MemoryContextReset(expr->constants_context);
}

/* ---------- constants ---------- */

static int64
datum_to_int64(VectorType type, Datum value)
{
	switch (type)
	{
		case VECTOR_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case VECTOR_INT2:
			return DatumGetInt16(value);
		case VECTOR_INT4:
			return DatumGetInt32(value);
		case VECTOR_OID:
			return DatumGetObjectId(value);
		default:
			return DatumGetInt64(value);
	}
}

/* Stores value, of type from, as element i of a vector of type to. */
static void
store_datum(VectorType from, VectorType to, Datum value, void *values, int i)
{
	switch (to)
	{
		case VECTOR_ANY:
			break;
		case VECTOR_BOOL:
			((uint8 *) values)[i] = (uint8) datum_to_int64(from, value);
			break;
		case VECTOR_INT2:
			((int16 *) values)[i] = (int16) datum_to_int64(from, value);
			break;
		case VECTOR_INT4:
			((int32 *) values)[i] = (int32) datum_to_int64(from, value);
			break;
		case VECTOR_OID:
			((uint32 *) values)[i] = (uint32) datum_to_int64(from, value);
			break;
		case VECTOR_INT8:
			((int64 *) values)[i] = datum_to_int64(from, value);
			break;
		case VECTOR_FLOAT4:
			((float4 *) values)[i] = DatumGetFloat4(value);
			break;
		case VECTOR_FLOAT8:
			((float8 *) values)[i] = from == VECTOR_FLOAT4 ?
				(float8) DatumGetFloat4(value) : DatumGetFloat8(value);
			break;
		case VECTOR_UUID:
			memcpy((char *) values + (Size) i * UUID_LEN,
				   DatumGetUUIDP(value)->data, UUID_LEN);
			break;
		case VECTOR_STRING:
		case VECTOR_BPCHAR:
			((struct varlena **) values)[i] = (struct varlena *) DatumGetPointer(value);
			break;
		case VECTOR_DECIMAL:
		case VECTOR_DECIMAL128:
			Assert(false);
			break;
	}
}

/* The bytes of a string that is not toasted, and their number. */
static inline const char *
string_bytes(VectorType type, const struct varlena *string, Size *length)
{
	const char *data = VARDATA_ANY(string);
	Size		n = VARSIZE_ANY_EXHDR(string);

	if (type == VECTOR_BPCHAR)
	{
		while (n > 0 && data[n - 1] == ' ')
			n--;
	}
	*length = n;
	return data;
}

/* In some order, of strings that are not toasted. */
static int
compare_strings(VectorType type, const struct varlena *a,
				const struct varlena *b)
{
	Size		a_length;
	Size		b_length;
	const char *a_data = string_bytes(type, a, &a_length);
	const char *b_data = string_bytes(type, b, &b_length);

	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return memcmp(a_data, b_data, a_length);
}

static int
compare_string_items(const void *a, const void *b, void *arg)
{
	return compare_strings(*(VectorType *) arg, *(struct varlena *const *) a,
						   *(struct varlena *const *) b);
}

static inline bool
is_toasted(const struct varlena *string)
{
	return VARATT_IS_COMPRESSED(string) || VARATT_IS_EXTERNAL(string);
}

/* The same without toast, to be given to free_plain(). */
static inline const struct varlena *
plain_string(const struct varlena *string)
{
	return unlikely(is_toasted(string)) ?
		detoast_attr(unconstify(struct varlena *, string)) : string;
}

static inline void
free_plain(const struct varlena *plain, const struct varlena *string)
{
	if (unlikely(plain != string))
		pfree(unconstify(struct varlena *, plain));
}

/*
 * A constant's or parameter's decimal, with the node's scale, in all elements.
 * False: it has not the scale that was announced, or is too large.
 */
static bool
store_decimal(VectorNode *node, Datum value, int n)
{
	int128		decimal;

	if (!gpurhh_decimal_read_as((const char *) PG_DETOAST_DATUM_PACKED(value),
								node->given_scale, node->scale, &decimal))
		return false;
	for (int i = 0; i < n; i++)
	{
		if (node->type == VECTOR_DECIMAL128)
			((int128 *) node->values)[i] = decimal;
		else
			((int64 *) node->values)[i] = gpurhh_decimal_narrow(decimal);
	}
	return true;
}

static int64
item_as_int64(VectorType type, const void *values, int i)
{
	switch (type)
	{
		case VECTOR_BOOL:
			return ((const uint8 *) values)[i];
		case VECTOR_INT2:
			return ((const int16 *) values)[i];
		case VECTOR_INT4:
			return ((const int32 *) values)[i];
		case VECTOR_OID:
			return ((const uint32 *) values)[i];
		default:
			return ((const int64 *) values)[i];
	}
}

static int
compare_int64(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return x < y ? -1 : x > y;
}

static bool
is_integer(VectorType type)
{
	return type == VECTOR_BOOL || type == VECTOR_INT2 || type == VECTOR_INT4 ||
		type == VECTOR_OID || type == VECTOR_INT8;
}

/* The array of an IN. */
static void
read_items(VectorNode *node, Datum array_datum)
{
	VectorType	type = node->args[0]->type;
	ArrayType  *array = is_string(type) ? DatumGetArrayTypePCopy(array_datum) :
		DatumGetArrayTypeP(array_datum);
	int16		len;
	bool		byval;
	char		align;
	Datum	   *datums;
	bool	   *nulls;
	int			n;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align, &datums,
					  &nulls, &n);
	node->items = palloc(Max((Size) n * type_bytes(type), 1));
	node->n_items = 0;
	node->null_item = false;
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			node->null_item = true;
		else
			store_datum(node->given_type, type, datums[i], node->items,
						node->n_items++);
	}
	if (is_string(type))
	{
		struct varlena **strings = node->items;

		for (int i = 0; i < node->n_items; i++)
			strings[i] = unconstify(struct varlena *, plain_string(strings[i]));
		qsort_arg(strings, node->n_items, sizeof(struct varlena *),
				  compare_string_items, &type);
	}
	if (node->n_items > VECTOR_LINEAR_ITEMS && is_integer(type))
	{
		node->sorted = palloc(sizeof(int64) * node->n_items);
		for (int i = 0; i < node->n_items; i++)
			node->sorted[i] = item_as_int64(type, node->items, i);
		qsort(node->sorted, node->n_items, sizeof(int64), compare_int64);
	}
}

/*
 * The value of a Const or Param.  Without an ExprState: the first one that is
 * evaluated lets JIT compile all of the query's.  False: core has to come to it
 * first, for the InitPlan that gives it has not run, or to raise an error.
 */
static bool
constant_value(ExprContext *econtext, Node *constant, Datum *value,
			   bool *is_null)
{
	Param	   *param = (Param *) constant;

	if (IsA(constant, Const))
	{
		*value = ((Const *) constant)->constvalue;
		*is_null = ((Const *) constant)->constisnull;
		return true;
	}
	if (param->paramkind == PARAM_EXEC)
	{
		ParamExecData *data = &econtext->ecxt_param_exec_vals[param->paramid];

		if (data->execPlan != NULL)
			return false;
		*value = data->value;
		*is_null = data->isnull;
		return true;
	}
	else
	{
		ParamListInfo list = econtext->ecxt_param_list_info;
		ParamExternData *data;
		ParamExternData workspace;

		if (list == NULL || param->paramid <= 0 ||
			param->paramid > list->numParams)
			return false;
		if (list->paramFetch != NULL)
			data = list->paramFetch(list, param->paramid, false, &workspace);
		else
			data = &list->params[param->paramid - 1];
		if (data->ptype != param->paramtype)
			return false;
		*value = data->value;
		*is_null = data->isnull;
		return true;
	}
}

/* Reads the node's constant or parameter; false: see constant_value(). */
static bool
read_constant(VectorExpr *expr, VectorNode *node)
{
	MemoryContext old;
	Datum		value;

	if (node->known)
		return true;
	if (!constant_value(expr->econtext, node->constant, &value, &node->is_null))
		return false;

	old = MemoryContextSwitchTo(expr->constants_context);
	if (node->op == VECTOR_CONSTANT)
	{
		/* it may be somebody's who does not keep it */
		if (is_string(node->type) && !node->is_null)
			value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
		if (!node->is_null && is_decimal(node->type) &&
			!store_decimal(node, value, expr->max_rows))
		{
			MemoryContextSwitchTo(old);
			return false;
		}
		for (int i = 0; i < expr->max_rows && !node->is_null &&
			 !is_decimal(node->type);
			 i++)
			store_datum(node->given_type, node->type, value, node->values, i);
		memset(node->nulls, node->is_null ? 1 : 0, expr->max_rows);
		node->result.nulls = node->is_null ? node->nulls : NULL;
	}
	else if (!node->is_null)
		read_items(node, value);
	MemoryContextSwitchTo(old);
	node->known = true;
	return true;
}

/* ---------- evaluation ---------- */

typedef struct EvalContext
{
	VectorExpr *expr;
	const Vector *columns;
	int			n;
} EvalContext;

static bool evaluate(EvalContext *cx, VectorNode *node, const uint8 *active);

/* Does core come to it for any row?  active NULL: for all. */
static inline bool
any_active(const uint8 *active, int n)
{
	return active == NULL || memchr(active, 1, n) != NULL;
}

/* The rows that core comes to, to take away from.  active NULL: all. */
static inline void
start_active(uint8 *left, const uint8 *active, int n)
{
	if (active)
		memcpy(left, active, n);
	else
		memset(left, 1, n);
}

static inline const uint8 *
nulls_of(const EvalContext *cx, const VectorNode *node)
{
	return node->result.nulls ? node->result.nulls : cx->expr->no_nulls;
}

/* NULL where an argument is. */
static void
strict_nulls(EvalContext *cx, VectorNode *node)
{
	const uint8 *left = node->args[0]->result.nulls;
	const uint8 *right = node->n_args > 1 ? node->args[1]->result.nulls : NULL;

	if (left == NULL)
		node->result.nulls = right;
	else if (right == NULL)
		node->result.nulls = left;
	else
	{
		uint8 *pg_restrict nulls = node->nulls;

		for (int i = 0; i < cx->n; i++)
			nulls[i] = left[i] | right[i];
		node->result.nulls = nulls;
	}
}

#define COMPARE_LOOP(condition) \
	do { \
		for (int i = 0; i < n; i++) \
			out[i] = (condition); \
	} while (0)

#define COMPARE(T, eq, lt, le) \
	do { \
		const T    *a = left; \
		const T    *b = right; \
		\
		switch (node->op) \
		{ \
			case VECTOR_EQ: \
				COMPARE_LOOP(eq); \
				break; \
			case VECTOR_NE: \
				COMPARE_LOOP(!(eq)); \
				break; \
			case VECTOR_LT: \
				COMPARE_LOOP(lt); \
				break; \
			default: \
				COMPARE_LOOP(le); \
				break; \
		} \
	} while (0)

#define COMPARE_INTEGERS(T) COMPARE(T, a[i] == b[i], a[i] < b[i], a[i] <= b[i])

/* NaN equals NaN and is greater than all else */
#define COMPARE_FLOATS(T) \
	COMPARE(T, \
			(a[i] == b[i]) | ((a[i] != a[i]) & (b[i] != b[i])), \
			(a[i] < b[i]) | ((b[i] != b[i]) & (a[i] == a[i])), \
			(a[i] <= b[i]) | (b[i] != b[i]))

/* What is NULL in a row, or not come to, may have no string. */
static void
compare_string_vectors(EvalContext *cx, VectorNode *node)
{
	VectorType	type = node->args[0]->type;
	const struct varlena *const *left = node->args[0]->result.values;
	const struct varlena *const *right = node->args[1]->result.values;
	const uint8 *nulls = node->result.nulls;
	uint8 *pg_restrict out = node->values;
	uint8		unequal = node->op == VECTOR_NE;

	for (int i = 0; i < cx->n; i++)
	{
		const struct varlena *a;
		const struct varlena *b;

		out[i] = 0;
		if ((nulls && nulls[i]) || left[i] == NULL || right[i] == NULL)
			continue;
		a = plain_string(left[i]);
		b = plain_string(right[i]);
		out[i] = (compare_strings(type, a, b) == 0) ^ unequal;
		free_plain(a, left[i]);
		free_plain(b, right[i]);
	}
}

static void
evaluate_comparison(EvalContext *cx, VectorNode *node)
{
	const void *left = node->args[0]->result.values;
	const void *right = node->args[1]->result.values;
	uint8 *pg_restrict out = node->values;
	int			n = cx->n;

	if (is_string(node->args[0]->type))
	{
		strict_nulls(cx, node);
		compare_string_vectors(cx, node);
		return;
	}
	switch (node->args[0]->type)
	{
		case VECTOR_ANY:
			break;
		case VECTOR_BOOL:
			COMPARE_INTEGERS(uint8);
			break;
		case VECTOR_INT2:
			COMPARE_INTEGERS(int16);
			break;
		case VECTOR_INT4:
			COMPARE_INTEGERS(int32);
			break;
		case VECTOR_OID:
			COMPARE_INTEGERS(uint32);
			break;
		case VECTOR_INT8:
		case VECTOR_DECIMAL:	/* NaN is the greatest integer */
			COMPARE_INTEGERS(int64);
			break;
		case VECTOR_DECIMAL128:
			COMPARE_INTEGERS(int128);
			break;
		case VECTOR_FLOAT4:
			COMPARE_FLOATS(float4);
			break;
		case VECTOR_FLOAT8:
			COMPARE_FLOATS(float8);
			break;
		case VECTOR_UUID:
			{
				const pg_uuid_t *a = left;
				const pg_uuid_t *b = right;

				switch (node->op)
				{
					case VECTOR_EQ:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) == 0);
						break;
					case VECTOR_NE:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) != 0);
						break;
					case VECTOR_LT:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) < 0);
						break;
					default:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) <= 0);
						break;
				}
				break;
			}
		case VECTOR_STRING:
		case VECTOR_BPCHAR:
			break;
	}
	strict_nulls(cx, node);
}

#define FIND_ITEMS(T, eq) \
	do { \
		const T    *a = scalars; \
		const T    *b = node->items; \
		\
		for (int j = 0; j < node->n_items; j++) \
		{ \
			for (int i = 0; i < n; i++) \
				out[i] |= (eq); \
		} \
	} while (0)

static bool
in_sorted(const VectorNode *node, int64 value)
{
	int			low = 0;
	int			high = node->n_items;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (node->sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < node->n_items && node->sorted[low] == value;
}

/* Items are sorted. */
static void
find_strings(VectorNode *node, const uint8 *nulls, int n)
{
	VectorType	type = node->args[0]->type;
	const struct varlena *const *strings = node->args[0]->result.values;
	uint8 *pg_restrict out = node->values;

	for (int i = 0; i < n; i++)
	{
		const struct varlena *plain;

		if (nulls[i] || strings[i] == NULL)
			continue;
		plain = plain_string(strings[i]);
		out[i] = bsearch_arg(&plain, node->items, node->n_items,
							 sizeof(struct varlena *), compare_string_items,
							 &type) != NULL;
		free_plain(plain, strings[i]);
	}
}

static bool
evaluate_in(EvalContext *cx, VectorNode *node)
{
	VectorNode *scalar = node->args[0];
	const void *scalars = scalar->result.values;
	const uint8 *scalar_nulls = nulls_of(cx, scalar);
	uint8 *pg_restrict out = node->values;
	uint8 *pg_restrict nulls = node->nulls;
	int			n = cx->n;

	if (!read_constant(cx->expr, node))
		return false;
	if (node->is_null)
	{
		memset(nulls, 1, n);
		node->result.nulls = nulls;
		return true;
	}
	memset(out, 0, n);
	if (node->n_items == 0 && !node->null_item)
	{
		/* of an empty list nothing is asked, not even whether it is NULL */
		if (node->op == VECTOR_NOT_IN)
			memset(out, 1, n);
		node->result.nulls = NULL;
		return true;
	}
	if (node->sorted != NULL)
	{
		for (int i = 0; i < n; i++)
			out[i] = in_sorted(node, item_as_int64(scalar->type, scalars, i));
	}
	else
	{
		switch (scalar->type)
		{
			case VECTOR_ANY:
				break;
			case VECTOR_BOOL:
				FIND_ITEMS(uint8, a[i] == b[j]);
				break;
			case VECTOR_INT2:
				FIND_ITEMS(int16, a[i] == b[j]);
				break;
			case VECTOR_INT4:
				FIND_ITEMS(int32, a[i] == b[j]);
				break;
			case VECTOR_OID:
				FIND_ITEMS(uint32, a[i] == b[j]);
				break;
			case VECTOR_INT8:
				FIND_ITEMS(int64, a[i] == b[j]);
				break;
			case VECTOR_FLOAT4:
				FIND_ITEMS(float4, (a[i] == b[j]) | ((a[i] != a[i]) & (b[j] != b[j])));
				break;
			case VECTOR_FLOAT8:
				FIND_ITEMS(float8, (a[i] == b[j]) | ((a[i] != a[i]) & (b[j] != b[j])));
				break;
			case VECTOR_UUID:
				FIND_ITEMS(pg_uuid_t, memcmp(&a[i], &b[j], UUID_LEN) == 0);
				break;
			case VECTOR_STRING:
			case VECTOR_BPCHAR:
				find_strings(node, scalar_nulls, n);
				break;
			case VECTOR_DECIMAL:
			case VECTOR_DECIMAL128:
				Assert(false);
				break;
		}
	}
	/* not found beside a NULL: it may be that one */
	for (int i = 0; i < n; i++)
		nulls[i] = scalar_nulls[i] | (node->null_item & !out[i]);
	node->result.nulls =
		node->null_item || scalar->result.nulls ? nulls : NULL;
	if (node->op == VECTOR_NOT_IN)
	{
		for (int i = 0; i < n; i++)
			out[i] = !out[i];
	}
	return true;
}

/*
 * Arithmetic: "bad" tells a value that raises an error, or may.  It is looked
 * for in all rows at once, and only if there is one, in the rows that count.
 */
#define CHECKED_LOOP(compute, bad) \
	do { \
		int			any_bad = 0; \
		\
		for (int i = 0; i < n; i++) \
		{ \
			compute; \
			any_bad |= (bad); \
		} \
		if (unlikely(any_bad)) \
		{ \
			for (int i = 0; i < n; i++) \
			{ \
				compute; \
				if ((bad) && (active == NULL || active[i]) && \
					!(nulls && nulls[i])) \
					return false; \
			} \
		} \
	} while (0)

#define INTEGER_ARITHMETIC(T, UT, multiply, MIN) \
	do { \
		const T    *a = node->args[0]->result.values; \
		const T    *b = node->args[1]->result.values; \
		T		   *pg_restrict r = node->values; \
		\
		switch (node->op) \
		{ \
			case VECTOR_ADD: \
				CHECKED_LOOP(r[i] = (T) ((UT) a[i] + (UT) b[i]), \
							 (T) ((a[i] ^ r[i]) & (b[i] ^ r[i])) < 0); \
				break; \
			case VECTOR_SUBTRACT: \
				CHECKED_LOOP(r[i] = (T) ((UT) a[i] - (UT) b[i]), \
							 (T) ((a[i] ^ b[i]) & (a[i] ^ r[i])) < 0); \
				break; \
			case VECTOR_MULTIPLY: \
				CHECKED_LOOP(T product; \
							 bool bad_ = multiply(a[i], b[i], &product); \
							 r[i] = bad_ ? 0 : product, \
							 bad_); \
				break; \
			case VECTOR_DIVIDE: \
				/* MIN / -1 overflows, and traps */ \
				CHECKED_LOOP(bool bad_ = b[i] == 0 || (b[i] == -1 && a[i] == MIN); \
							 r[i] = bad_ ? 0 : a[i] / b[i], \
							 bad_); \
				break; \
			default: \
				/* as core: anything % -1 is 0 */ \
				CHECKED_LOOP(bool bad_ = b[i] == 0; \
							 r[i] = bad_ || b[i] == -1 ? 0 : a[i] % b[i], \
							 bad_); \
				break; \
		} \
	} while (0)

/*
 * An infinite result may be an overflow, and one of 0 an underflow; also where
 * infinite or zero arguments make it neither, which is for core to see.
 */
#define FLOAT_ARITHMETIC(T) \
	do { \
		const T    *a = node->args[0]->result.values; \
		const T    *b = node->args[1]->result.values; \
		T		   *pg_restrict r = node->values; \
		\
		switch (node->op) \
		{ \
			case VECTOR_ADD: \
				CHECKED_LOOP(r[i] = a[i] + b[i], isinf(r[i])); \
				break; \
			case VECTOR_SUBTRACT: \
				CHECKED_LOOP(r[i] = a[i] - b[i], isinf(r[i])); \
				break; \
			case VECTOR_MULTIPLY: \
				CHECKED_LOOP(r[i] = a[i] * b[i], \
							 isinf(r[i]) || (r[i] == 0 && a[i] != 0 && b[i] != 0)); \
				break; \
			default: \
				CHECKED_LOOP(r[i] = a[i] / b[i], \
							 b[i] == 0 || isinf(r[i]) || (r[i] == 0 && a[i] != 0)); \
				break; \
		} \
	} while (0)

/*
 * Decimals: what does not fit the result's type is left to core, and so is all
 * arithmetic with NaN.
 */
#define DECIMAL_NAN(T) ((T) (sizeof(T) == 8 ? GPURHH_DECIMAL_NAN : GPURHH_DECIMAL128_NAN))

#define DECIMAL_LOOP(TA, TB, TR, overflows) \
	do { \
		const TA   *a = node->args[0]->result.values; \
		const TB   *b = node->args[1]->result.values; \
		TR		   *pg_restrict r = node->values; \
		\
		CHECKED_LOOP(TR result_; \
					 bool bad_ = overflows(a[i], b[i], &result_) | \
						 (a[i] == DECIMAL_NAN(TA)) | (b[i] == DECIMAL_NAN(TB)) || \
						 result_ == DECIMAL_NAN(TR); \
					 r[i] = bad_ ? 0 : result_, \
					 bad_); \
	} while (0)

/* a is mostly no larger than 64 bits, whatever its digits may be */
static inline bool
multiply_wide(int128 a, int128 b, int128 *result)
{
	if (likely(a == (int64) a && b == (int64) b))
	{
		*result = (int128) (int64) a * (int64) b;
		return false;
	}
	return __builtin_mul_overflow(a, b, result);
}

static inline bool
multiply_narrow(int64 a, int64 b, int128 *result)
{
	*result = (int128) a * b;
	return false;
}

static bool
evaluate_decimal(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	bool		wide = node->type == VECTOR_DECIMAL128;
	int			n = cx->n;
	const uint8 *nulls = node->result.nulls;

	switch (node->op)
	{
		case VECTOR_ADD:
			if (wide)
				DECIMAL_LOOP(int128, int128, int128, __builtin_add_overflow);
			else
				DECIMAL_LOOP(int64, int64, int64, __builtin_add_overflow);
			break;
		case VECTOR_SUBTRACT:
			if (wide)
				DECIMAL_LOOP(int128, int128, int128, __builtin_sub_overflow);
			else
				DECIMAL_LOOP(int64, int64, int64, __builtin_sub_overflow);
			break;
		default:
			Assert(node->op == VECTOR_MULTIPLY);
			if (!wide)
				DECIMAL_LOOP(int64, int64, int64, __builtin_mul_overflow);
			else if (node->args[0]->type == VECTOR_DECIMAL)
				DECIMAL_LOOP(int64, int64, int128, multiply_narrow);
			else if (node->args[1]->type == VECTOR_DECIMAL)
				DECIMAL_LOOP(int128, int64, int128, multiply_wide);
			else
				DECIMAL_LOOP(int128, int128, int128, multiply_wide);
			break;
	}
	return true;
}

/* Zeros behind the point, for what is added or compared. */
static bool
evaluate_rescale(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	int			zeros = node->scale - node->args[0]->scale;
	const void *values = node->args[0]->result.values;
	int128		power;
	int			n = cx->n;
	const uint8 *nulls;

	strict_nulls(cx, node);
	nulls = node->result.nulls;
	if (!gpurhh_decimal_power(zeros, &power))
		return false;

#define RESCALE_LOOP(T) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		T			factor = (T) power; \
		\
		CHECKED_LOOP(T result_; \
					 bool bad_ = __builtin_mul_overflow(a[i], factor, &result_) | \
						 (a[i] == DECIMAL_NAN(T)); \
					 r[i] = bad_ ? 0 : result_, \
					 bad_); \
	} while (0)

	if (node->type == VECTOR_DECIMAL128)
		RESCALE_LOOP(int128);
	else
		RESCALE_LOOP(int64);
	return true;
}

static bool
evaluate_arithmetic(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	int			n = cx->n;
	const uint8 *nulls;

	strict_nulls(cx, node);
	nulls = node->result.nulls;
	switch (node->type)
	{
		case VECTOR_DECIMAL:
		case VECTOR_DECIMAL128:
			return evaluate_decimal(cx, node, active);
		case VECTOR_INT2:
			INTEGER_ARITHMETIC(int16, uint16, pg_mul_s16_overflow, PG_INT16_MIN);
			break;
		case VECTOR_INT4:
			INTEGER_ARITHMETIC(int32, uint32, pg_mul_s32_overflow, PG_INT32_MIN);
			break;
		case VECTOR_INT8:
			INTEGER_ARITHMETIC(int64, uint64, pg_mul_s64_overflow, PG_INT64_MIN);
			break;
		case VECTOR_FLOAT4:
			FLOAT_ARITHMETIC(float4);
			break;
		case VECTOR_FLOAT8:
			FLOAT_ARITHMETIC(float8);
			break;
		default:
			elog(ERROR, "unexpected type of vector arithmetic: %d",
				 (int) node->type);
	}
	return true;
}

static bool
evaluate_negate(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	const void *values = node->args[0]->result.values;
	int			n = cx->n;
	const uint8 *nulls;

	strict_nulls(cx, node);
	nulls = node->result.nulls;

#define NEGATE_INTEGERS(T, UT, MIN) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		\
		CHECKED_LOOP(r[i] = (T) (0 - (UT) a[i]), a[i] == MIN); \
	} while (0)

#define NEGATE_FLOATS(T) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		\
		for (int i = 0; i < n; i++) \
			r[i] = -a[i]; \
	} while (0)

#define NEGATE_DECIMALS(T) \
	do { \
		const T    *a = values; \
		T		   *pg_restrict r = node->values; \
		\
		for (int i = 0; i < n; i++) \
			r[i] = a[i] == DECIMAL_NAN(T) ? a[i] : -a[i]; \
	} while (0)

	switch (node->type)
	{
		case VECTOR_INT2:
			NEGATE_INTEGERS(int16, uint16, PG_INT16_MIN);
			break;
		case VECTOR_INT4:
			NEGATE_INTEGERS(int32, uint32, PG_INT32_MIN);
			break;
		case VECTOR_INT8:
			NEGATE_INTEGERS(int64, uint64, PG_INT64_MIN);
			break;
		case VECTOR_FLOAT4:
			NEGATE_FLOATS(float4);
			break;
		case VECTOR_FLOAT8:
			NEGATE_FLOATS(float8);
			break;
		case VECTOR_DECIMAL:
			NEGATE_DECIMALS(int64);
			break;
		case VECTOR_DECIMAL128:
			NEGATE_DECIMALS(int128);
			break;
		default:
			elog(ERROR, "unexpected type of vector arithmetic: %d",
				 (int) node->type);
	}
	return true;
}

/* From one type to another; out of range is an error. */
#define CAST_LOOP(FROM, TO, bad) \
	do { \
		const FROM *a = values; \
		TO		   *pg_restrict r = node->values; \
		\
		CHECKED_LOOP(r[i] = (TO) a[i], bad); \
	} while (0)

static bool
evaluate_cast(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	VectorType	from = node->args[0]->type;
	VectorType	to = node->type;
	const void *values = node->args[0]->result.values;
	int			n = cx->n;
	const uint8 *nulls;

	strict_nulls(cx, node);
	nulls = node->result.nulls;
	if (from == VECTOR_BOOL && to == VECTOR_INT4)
		CAST_LOOP(uint8, int32, false);
	else if (from == VECTOR_INT2 && to == VECTOR_INT4)
		CAST_LOOP(int16, int32, false);
	else if (from == VECTOR_INT2 && to == VECTOR_INT8)
		CAST_LOOP(int16, int64, false);
	else if (from == VECTOR_INT4 && to == VECTOR_INT8)
		CAST_LOOP(int32, int64, false);
	else if (from == VECTOR_INT4 && to == VECTOR_INT2)
		CAST_LOOP(int32, int16, r[i] != a[i]);
	else if (from == VECTOR_INT8 && to == VECTOR_INT2)
		CAST_LOOP(int64, int16, r[i] != a[i]);
	else if (from == VECTOR_INT8 && to == VECTOR_INT4)
		CAST_LOOP(int64, int32, r[i] != a[i]);
	else if (from == VECTOR_INT2 && to == VECTOR_FLOAT8)
		CAST_LOOP(int16, float8, false);
	else if (from == VECTOR_INT4 && to == VECTOR_FLOAT8)
		CAST_LOOP(int32, float8, false);
	else if (from == VECTOR_INT8 && to == VECTOR_FLOAT8)
		CAST_LOOP(int64, float8, false);
	else if (from == VECTOR_FLOAT4 && to == VECTOR_FLOAT8)
		CAST_LOOP(float4, float8, false);
	else if (from == VECTOR_INT2 && to == VECTOR_DECIMAL)
		CAST_LOOP(int16, int64, false);
	else if (from == VECTOR_INT4 && to == VECTOR_DECIMAL)
		CAST_LOOP(int32, int64, false);
	else if (from == VECTOR_INT8 && to == VECTOR_DECIMAL128)
		CAST_LOOP(int64, int128, false);
	else if (from == VECTOR_DECIMAL && to == VECTOR_DECIMAL128)
	{
		const int64 *a = values;
		int128 *pg_restrict r = node->values;

		for (int i = 0; i < n; i++)
			r[i] = a[i] == GPURHH_DECIMAL_NAN ? GPURHH_DECIMAL128_NAN : a[i];
	}
	else
		elog(ERROR, "unexpected vector cast from %d to %d", (int) from,
			 (int) to);
	return true;
}

/*
 * A date beyond all timestamps is greater than each; core knows how to say that.
 */
static bool
evaluate_date_cast(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	const DateADT *a = node->args[0]->result.values;
	Timestamp *pg_restrict r = node->values;
	int			n = cx->n;
	const uint8 *nulls;

	strict_nulls(cx, node);
	nulls = node->result.nulls;
	CHECKED_LOOP(bool bad_ = a[i] >= TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE &&
				 !DATE_IS_NOEND(a[i]);
				 r[i] = DATE_IS_NOBEGIN(a[i]) ? DT_NOBEGIN :
				 DATE_IS_NOEND(a[i]) ? DT_NOEND :
				 bad_ ? 0 : a[i] * USECS_PER_DAY,
				 bad_);
	return true;
}

/*
 * AND and OR: an argument that decides (false for AND, true for OR) ends it, a
 * NULL among those that do not makes the result NULL.
 */
static bool
evaluate_and_or(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	uint8		deciding = node->op == VECTOR_OR;
	uint8 *pg_restrict decided = node->taken;
	uint8 *pg_restrict left = node->active;
	uint8 *pg_restrict nulls = node->nulls;
	uint8 *pg_restrict out = node->values;
	bool		any_nulls = false;
	int			n = cx->n;

	memset(decided, 0, n);
	memset(nulls, 0, n);
	start_active(left, active, n);
	for (int k = 0; k < node->n_args; k++)
	{
		VectorNode *arg = node->args[k];
		const uint8 *values;

		if (k > 0 && !any_active(left, n))
			break;
		if (!evaluate(cx, arg, left))
			return false;
		values = arg->result.values;
		if (arg->result.nulls)
		{
			const uint8 *arg_nulls = arg->result.nulls;

			any_nulls = true;
			for (int i = 0; i < n; i++)
			{
				decided[i] |= (values[i] == deciding) & !arg_nulls[i];
				nulls[i] |= arg_nulls[i];
			}
		}
		else
		{
			for (int i = 0; i < n; i++)
				decided[i] |= values[i] == deciding;
		}
		for (int i = 0; i < n; i++)
			left[i] &= !decided[i];
	}
	for (int i = 0; i < n; i++)
	{
		nulls[i] &= !decided[i];
		out[i] = decided[i] ? deciding : !deciding;
	}
	node->result.nulls = any_nulls ? nulls : NULL;
	return true;
}

#define TAKE_LOOP(T) \
	do { \
		const T    *from = arg->result.values; \
		T		   *pg_restrict to = node->values; \
		\
		for (int i = 0; i < n; i++) \
		{ \
			if (taken[i]) \
				to[i] = from[i]; \
		} \
	} while (0)

/* The rows in taken get arg's values. */
static void
take_values(EvalContext *cx, VectorNode *node, VectorNode *arg,
			const uint8 *taken)
{
	const uint8 *arg_nulls = nulls_of(cx, arg);
	int			n = cx->n;

	for (int i = 0; i < n; i++)
	{
		if (taken[i])
			node->nulls[i] = arg_nulls[i];
	}
	switch (type_bytes(node->type))
	{
		case 1:
			TAKE_LOOP(uint8);
			break;
		case 2:
			TAKE_LOOP(uint16);
			break;
		case 4:
			TAKE_LOOP(uint32);
			break;
		case 8:
			TAKE_LOOP(uint64);
			break;
		default:
			TAKE_LOOP(pg_uuid_t);
			break;
	}
}

/* Rows that take no value must not keep a pointer to another page's. */
static void
forget_strings(VectorNode *node, int n)
{
	if (is_string(node->type))
		memset(node->values, 0, sizeof(struct varlena *) * n);
}

static bool
evaluate_case(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	uint8	   *left = node->active;
	uint8	   *taken = node->taken;
	int			n = cx->n;

	start_active(left, active, n);
	memset(node->nulls, 0, n);
	forget_strings(node, n);
	node->result.nulls = node->nulls;
	for (int k = 0; k + 1 < node->n_args; k += 2)
	{
		VectorNode *condition = node->args[k];
		VectorNode *arg = node->args[k + 1];
		const uint8 *values;
		const uint8 *nulls;

		if (!any_active(left, n))
			return true;
		if (!evaluate(cx, condition, left))
			return false;
		values = condition->result.values;
		nulls = nulls_of(cx, condition);
		for (int i = 0; i < n; i++)
		{
			taken[i] = left[i] & (values[i] != 0) & !nulls[i];
			left[i] &= !taken[i];
		}
		if (!any_active(taken, n))
			continue;
		if (!evaluate(cx, arg, taken))
			return false;
		take_values(cx, node, arg, taken);
	}
	if (any_active(left, n))
	{
		VectorNode *arg = node->args[node->n_args - 1];

		if (!evaluate(cx, arg, left))
			return false;
		take_values(cx, node, arg, left);
	}
	return true;
}

static bool
evaluate_coalesce(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	uint8	   *left = node->active;
	uint8	   *taken = node->taken;
	int			n = cx->n;

	start_active(left, active, n);
	memset(node->nulls, 1, n);
	forget_strings(node, n);
	node->result.nulls = node->nulls;
	for (int k = 0; k < node->n_args; k++)
	{
		VectorNode *arg = node->args[k];
		const uint8 *nulls;

		if (!any_active(left, n))
			break;
		if (!evaluate(cx, arg, left))
			return false;
		nulls = nulls_of(cx, arg);
		for (int i = 0; i < n; i++)
		{
			taken[i] = left[i] & !nulls[i];
			left[i] &= !taken[i];
		}
		take_values(cx, node, arg, taken);
	}
	return true;
}

/* What asks for NULL, and NOT: never an error. */
static void
evaluate_test(EvalContext *cx, VectorNode *node)
{
	const uint8 *values = node->args[0]->result.values;
	const uint8 *nulls = nulls_of(cx, node->args[0]);
	uint8 *pg_restrict out = node->values;
	int			n = cx->n;

	node->result.nulls = NULL;
	switch (node->op)
	{
		case VECTOR_IS_NULL:
			for (int i = 0; i < n; i++)
				out[i] = nulls[i];
			break;
		case VECTOR_IS_NOT_NULL:
			for (int i = 0; i < n; i++)
				out[i] = !nulls[i];
			break;
		case VECTOR_IS_TRUE:
			for (int i = 0; i < n; i++)
				out[i] = !nulls[i] & (values[i] != 0);
			break;
		case VECTOR_IS_NOT_TRUE:
			for (int i = 0; i < n; i++)
				out[i] = nulls[i] | (values[i] == 0);
			break;
		case VECTOR_IS_FALSE:
			for (int i = 0; i < n; i++)
				out[i] = !nulls[i] & (values[i] == 0);
			break;
		case VECTOR_IS_NOT_FALSE:
			for (int i = 0; i < n; i++)
				out[i] = nulls[i] | (values[i] != 0);
			break;
		default:
			for (int i = 0; i < n; i++)
				out[i] = values[i] == 0;
			node->result.nulls = node->args[0]->result.nulls;
			break;
	}
}

/* False: core has to evaluate the chunk. */
static bool
evaluate(EvalContext *cx, VectorNode *node, const uint8 *active)
{
	switch (node->op)
	{
		case VECTOR_COLUMN:
			node->result = cx->columns[node->column];
			return true;
		case VECTOR_CONSTANT:
			return read_constant(cx->expr, node);
		case VECTOR_AND:
		case VECTOR_OR:
			return evaluate_and_or(cx, node, active);
		case VECTOR_CASE:
			return evaluate_case(cx, node, active);
		case VECTOR_COALESCE:
			return evaluate_coalesce(cx, node, active);
		default:
			break;
	}

	/* a strict function's arguments are all evaluated, NULL or not */
	for (int k = 0; k < node->n_args; k++)
	{
		if (!evaluate(cx, node->args[k], active))
			return false;
	}
	switch (node->op)
	{
		case VECTOR_EQ:
		case VECTOR_NE:
		case VECTOR_LT:
		case VECTOR_LE:
			evaluate_comparison(cx, node);
			return true;
		case VECTOR_IN:
		case VECTOR_NOT_IN:
			return evaluate_in(cx, node);
		case VECTOR_ADD:
		case VECTOR_SUBTRACT:
		case VECTOR_MULTIPLY:
		case VECTOR_DIVIDE:
		case VECTOR_MODULO:
			return evaluate_arithmetic(cx, node, active);
		case VECTOR_NEGATE:
			return evaluate_negate(cx, node, active);
		case VECTOR_CAST:
			return evaluate_cast(cx, node, active);
		case VECTOR_DATE_CAST:
			return evaluate_date_cast(cx, node, active);
		case VECTOR_RESCALE:
			return evaluate_rescale(cx, node, active);
		default:
			evaluate_test(cx, node);
			return true;
	}
}

/*
 * Computes the expression for the first n rows of the columns.  False: a value
 * may raise an error, core has to evaluate these rows.  active NULL: all rows
 * count, else those with a 1.  The result is valid until the next call.
 */
bool
gpurhh_vector_evaluate(VectorExpr *expr, const Vector *columns, int n,
					   const uint8 *active, Vector *result)
{
	EvalContext cx;

	Assert(n <= expr->max_rows);
	cx.expr = expr;
	cx.columns = columns;
	cx.n = n;
	if (!evaluate(&cx, expr->root, active))
		return false;
	*result = expr->root->result;
	return true;
}

/*
 * Clears in active, of n rows, what the condition (a boolean expression) does
 * not let pass, as WHERE and HAVING do; *n_left of them are left.  False: see
 * gpurhh_vector_evaluate().
 */
bool
gpurhh_vector_filter(VectorExpr *condition, const Vector *columns, int n,
					 uint8 *active, int *n_left)
{
	Vector		result;
	const uint8 *values;
	int			count = 0;

	if (!gpurhh_vector_evaluate(condition, columns, n, active, &result))
		return false;
	values = result.values;
	if (result.nulls)
	{
		for (int i = 0; i < n; i++)
		{
			active[i] &= (values[i] != 0) & !result.nulls[i];
			count += active[i];
		}
	}
	else
	{
		for (int i = 0; i < n; i++)
		{
			active[i] &= values[i] != 0;
			count += active[i];
		}
	}
	*n_left = count;
	return true;
}
