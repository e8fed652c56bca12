/*-------------------------------------------------------------------------
 *
 * vector.h
 *		What the files of this folder share: the nodes of compiled expressions,
 *		and the functions that evaluate each kind of node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_VECTOR_H
#define GPURHH_VECTOR_H

#include "expr/expr.h"

/* A list of IN that has more items is searched by halves. */
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

	/* decimals only: the most digits that values have, and their scale */
	int			digits;
	int			scale;

	int			column;			/* VECTOR_COLUMN: its number */

	/* VECTOR_CONSTANT, and the array of VECTOR_IN */
	VectorType	given_type;		/* before it was widened */
	int			given_scale;	/* before it was rescaled */
	Node	   *constant;		/* a Const or Param */
	bool		known;			/* its value has been read */
	bool		is_null;
	int			n_items;
	bool		null_item;
	void	   *items;			/* an array of the type of args[0] */
	int64	   *sorted;			/* NULL: not sorted */

	void	   *values;			/* buffers for max_rows */
	uint8	   *nulls;
	uint8	   *active;			/* the rows for which the next argument counts */
	uint8	   *taken;			/* the rows that have their result, or take it */
	Vector		result;
} VectorNode;

struct VectorExpr
{
	VectorNode *root;
	ExprContext *econtext;
	int			max_rows;
	uint8	   *no_nulls;		/* max_rows zeros */
	List	   *constants;		/* the nodes with constants and parameters */
	MemoryContext constants_context;
};

/* The chunk of rows that is being computed. */
typedef struct VectorContext
{
	VectorExpr *expr;
	const Vector *columns;
	int			n;				/* rows */
} VectorContext;

static inline bool
is_string(VectorType type)
{
	return type == VECTOR_STRING || type == VECTOR_BPCHAR;
}

static inline bool
is_decimal(VectorType type)
{
	return type == VECTOR_DECIMAL || type == VECTOR_DECIMAL128;
}

/* The bytes that tell NULLs, also of a result that has no NULL. */
static inline const uint8 *
vector_nulls(const VectorContext *cx, const VectorNode *node)
{
	return node->result.nulls ? node->result.nulls : cx->expr->no_nulls;
}

/* ---------- vector.c ---------- */

extern void gpurhh_vector_strict_nulls(VectorContext *cx, VectorNode *node);

/* ---------- vector_functions.c ---------- */

/* A built-in function that vectors can compute. */
typedef struct VectorFunction
{
	Oid			function;
	VectorOp	op;
	VectorType	left;
	VectorType	right;			/* of one argument: the result's */
} VectorFunction;

extern int	gpurhh_vector_bytes(VectorType type);
extern const VectorFunction *gpurhh_vector_binary(Oid function);
extern const VectorFunction *gpurhh_vector_with_date(Oid function);
extern const VectorFunction *gpurhh_vector_unary(Oid function);

/* ---------- vector_constant.c ---------- */

extern bool gpurhh_vector_read_constant(VectorExpr *expr, VectorNode *node);
extern void gpurhh_vector_store_datum(VectorType from, VectorType to,
									  Datum value, void *values, int i);

/* ---------- vector_compare.c ---------- */

extern void gpurhh_vector_compare(VectorContext *cx, VectorNode *node);
extern bool gpurhh_vector_in(VectorContext *cx, VectorNode *node);
extern void gpurhh_vector_read_items(VectorNode *node, Datum array_datum);

/* ---------- vector_arithmetic.c ---------- */

extern bool gpurhh_vector_arithmetic(VectorContext *cx, VectorNode *node,
									 const uint8 *active);
extern bool gpurhh_vector_negate(VectorContext *cx, VectorNode *node,
								 const uint8 *active);
extern bool gpurhh_vector_cast(VectorContext *cx, VectorNode *node,
							   const uint8 *active);
extern bool gpurhh_vector_date_cast(VectorContext *cx, VectorNode *node,
									const uint8 *active);
extern bool gpurhh_vector_rescale(VectorContext *cx, VectorNode *node,
								  const uint8 *active);

#endif							/* GPURHH_VECTOR_H */
