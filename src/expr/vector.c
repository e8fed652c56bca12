/*-------------------------------------------------------------------------
 *
 * vector.c
 *		Evaluates expressions for a chunk of rows at a time.
 *
 * gpurhh_vector_compile() makes a tree of nodes of an expression, or says why it
 * cannot.  gpurhh_vector_evaluate() computes the tree for all rows of a chunk: one
 * node after the other, each with a loop over the rows.  The functions that are known
 * are built-in ones that have no side effects and depend on no setting.  So nobody
 * can tell in which order they are evaluated, except by the errors they raise.
 *
 *		vector_functions.c	what is known: types and functions
 *		vector_compile.c	expressions -> nodes
 *		vector.c			evaluation, and logic: AND, CASE, IS NULL, ...
 *		vector_constant.c	constants and parameters
 *		vector_compare.c	comparisons and IN
 *		vector_arithmetic.c	arithmetic and casts
 *
 * Errors: no error is raised here.  If a value of some row would raise one, or might,
 * the evaluation gives up, and the caller has core evaluate the chunk row by row.
 * Core then raises the error that comes first in its order, or none.
 *
 * Values that core would not compute must not make the evaluation give up.  Which
 * these are follows from the operands of AND and OR and from the conditions of CASE.
 * So each node is given "active": a byte for each row, which is 1 if core would
 * evaluate this node for the row.  The values of other rows, and those of NULLs, are
 * arbitrary but initialized.
 *
 * Parameters are read when the first active row needs them.  If an InitPlan computes
 * the parameter and has not run yet, the chunk is left to core, which runs it.
 *
 * Memory: the nodes and their results are allocated once, for chunks of at most
 * max_rows rows, in the memory context in which gpurhh_vector_compile() is called.
 * The values of parameters are in a child of that context, which
 * gpurhh_vector_reset() resets.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/uuid.h"

#include "expr/vector.h"

static bool evaluate(VectorContext *cx, VectorNode *node, const uint8 *active);

/* Would core evaluate the node for any row?  A null pointer means: for all. */
static inline bool
any_active(const uint8 *active, int n)
{
	return active == NULL || memchr(active, 1, n) != NULL;
}

/* Copies the active rows to left, from which rows are then taken away. */
static inline void
start_active(uint8 *left, const uint8 *active, int n)
{
	if (active)
		memcpy(left, active, n);
	else
		memset(left, 1, n);
}

/* Makes the result of a strict function NULL in the rows in which an argument is. */
void
gpurhh_vector_strict_nulls(VectorContext *cx, VectorNode *node)
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

/*
 * AND and OR.  The first argument that decides the result of a row (false for AND,
 * true for OR) is the last that is evaluated for it.  If no argument decides and one
 * of them is NULL, the result is NULL.
 */
static bool
evaluate_and_or(VectorContext *cx, VectorNode *node, const uint8 *active)
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

/* Copies the values of arg to the result, in the rows that are in taken. */
static void
take_values(VectorContext *cx, VectorNode *node, VectorNode *arg,
			const uint8 *taken)
{
	const uint8 *arg_nulls = vector_nulls(cx, arg);
	int			n = cx->n;

	for (int i = 0; i < n; i++)
	{
		if (taken[i])
			node->nulls[i] = arg_nulls[i];
	}
	switch (gpurhh_vector_bytes(node->type))
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

/*
 * A row that takes no value keeps what an earlier chunk left there.  A pointer to a
 * string of another page must not stay.
 */
static void
forget_strings(VectorNode *node, int n)
{
	if (is_string(node->type))
		memset(node->values, 0, sizeof(struct varlena *) * n);
}

static bool
evaluate_case(VectorContext *cx, VectorNode *node, const uint8 *active)
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
		nulls = vector_nulls(cx, condition);
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
evaluate_coalesce(VectorContext *cx, VectorNode *node, const uint8 *active)
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
		nulls = vector_nulls(cx, arg);
		for (int i = 0; i < n; i++)
		{
			taken[i] = left[i] & !nulls[i];
			left[i] &= !taken[i];
		}
		take_values(cx, node, arg, taken);
	}
	return true;
}

/* NOT, and the tests for NULL and for truth.  These never raise an error. */
static void
evaluate_test(VectorContext *cx, VectorNode *node)
{
	const uint8 *values = node->args[0]->result.values;
	const uint8 *nulls = vector_nulls(cx, node->args[0]);
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

/* Computes a node.  Returns false if core has to evaluate the chunk. */
static bool
evaluate(VectorContext *cx, VectorNode *node, const uint8 *active)
{
	switch (node->op)
	{
		case VECTOR_COLUMN:
			node->result = cx->columns[node->column];
			return true;
		case VECTOR_CONSTANT:
			return gpurhh_vector_read_constant(cx->expr, node);
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

	/* core evaluates all arguments of a strict function, also after a NULL */
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
			gpurhh_vector_compare(cx, node);
			return true;
		case VECTOR_IN:
		case VECTOR_NOT_IN:
			return gpurhh_vector_in(cx, node);
		case VECTOR_ADD:
		case VECTOR_SUBTRACT:
		case VECTOR_MULTIPLY:
		case VECTOR_DIVIDE:
		case VECTOR_MODULO:
			return gpurhh_vector_arithmetic(cx, node, active);
		case VECTOR_NEGATE:
			return gpurhh_vector_negate(cx, node, active);
		case VECTOR_CAST:
			return gpurhh_vector_cast(cx, node, active);
		case VECTOR_DATE_CAST:
			return gpurhh_vector_date_cast(cx, node, active);
		case VECTOR_RESCALE:
			return gpurhh_vector_rescale(cx, node, active);
		default:
			evaluate_test(cx, node);
			return true;
	}
}

/*
 * Computes the expression for the first n rows of the columns.  active is a null
 * pointer if all rows count; else those count that have a 1.  Returns false if a
 * value might raise an error, so that core has to evaluate these rows.  The result is
 * valid until the next call.
 */
bool
gpurhh_vector_evaluate(VectorExpr *expr, const Vector *columns, int n,
					   const uint8 *active, Vector *result)
{
	VectorContext cx;

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
 * Evaluates a condition as WHERE and HAVING do: clears the bytes of active of those
 * of the n rows that do not pass, and stores in *n_left how many are left.  Returns
 * false in the same case as gpurhh_vector_evaluate().
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
