/*-------------------------------------------------------------------------
 *
 * expr.h
 *		Expressions that are computed for a chunk of rows at a time; vector.c
 *		explains how.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXPR_EXPR_H
#define GPURHH_EXPR_EXPR_H

#include "nodes/execnodes.h"

#include "rhh_program.h"
#include "types/types.h"

/* One column of a chunk of rows. */
typedef struct Vector
{
	const void *values;			/* an array of the column's VectorType */
	const uint8 *nulls;			/* a byte for each row, 1 if it is NULL; a null
								 * pointer if no row is NULL */
} Vector;

typedef struct VectorExpr VectorExpr;

/*
 * Tells whether expr is a column of the chunk, and if so stores its number and its
 * type.  With only_null the caller does not need the values but only asks which of
 * them are NULL; then the type may be VECTOR_ANY.
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
extern bool gpurhh_is_fed_condition(Expr *expr);
extern Expr *gpurhh_null_or_true(Node *expr);
extern bool gpurhh_vector_program(VectorExpr *expr, rhh_program *program,
								  bool strings, uint8 *number,
								  VectorType *type, const char **why);
extern bool gpurhh_program_store(rhh_program *program, uint8 number,
								 VectorType type, GpuColumn how, int column,
								 const char **why);
extern bool gpurhh_program_pair(rhh_program *program, GpuColumn how, int column,
								const char **why);
extern bool gpurhh_vector_evaluate(VectorExpr *expr, const Vector *columns,
								   int n, const uint8 *active,
								   Vector *result);
extern bool gpurhh_vector_filter(VectorExpr *condition, const Vector *columns,
								 int n, uint8 *active, int *n_left);

#endif							/* GPURHH_EXPR_EXPR_H */
