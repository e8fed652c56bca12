/*-------------------------------------------------------------------------
 *
 * expr.h
 *		Expressions that are computed for a chunk of rows at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXPR_EXPR_H
#define GPURHH_EXPR_EXPR_H

#include "nodes/execnodes.h"

#include "types/types.h"

/* One column of a chunk of rows. */
typedef struct Vector
{
	const void *values;			/* of the column's or expression's type */
	const uint8 *nulls;			/* a byte for each row, 1: NULL; or NULL: none
								 * is */
} Vector;

typedef struct VectorExpr VectorExpr;

/*
 * Whether expr is a column: then its number and type are stored.  only_null:
 * its values are not needed, VECTOR_ANY will do.
 */
typedef bool (*VectorColumnFinder)(Node *expr, bool only_null, int *column,
								   VectorType *type, void *arg);

extern bool gpurhh_vector_type(Oid type, VectorType *result);
extern VectorExpr *gpurhh_vector_compile(Expr *expr, PlanState *parent,
										 int max_rows,
										 VectorColumnFinder find_column,
										 void *finder_arg, const char **why);
extern VectorType gpurhh_vector_result_type(const VectorExpr *expr);
extern void gpurhh_vector_reset(VectorExpr *expr);
extern bool gpurhh_vector_evaluate(VectorExpr *expr, const Vector *columns,
								   int n, const uint8 *active,
								   Vector *result);
extern bool gpurhh_vector_filter(VectorExpr *condition, const Vector *columns,
								 int n, uint8 *active, int *n_left);

#endif							/* GPURHH_EXPR_EXPR_H */
