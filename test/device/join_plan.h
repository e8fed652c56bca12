/*
 * join_plan.h
 *		Plans: what a case with joins describes (join.c).
 *
 * A plan has the probe side, up to eight build sides, and the table that gets the output.
 * Columns are added in the order in which the interface numbers them: those of the probe
 * side, then for each join those of its build side.  Columns that a program computes are
 * the table's alone.
 */
#ifndef JOIN_PLAN_H
#define JOIN_PLAN_H

#include "device_test.h"

/* Of def.param: values of GEN_CUSTOM columns. */
#define UNIQUE 0x100			/* keys are the rows' numbers, a digit in each column */
#define HOT(n) (n)				/* of 256 rows so many have the first value in all */

#define MAX_BUILDS RHH_MAX_JOINS

typedef struct plan
{
	def			probe;
	def			builds[MAX_BUILDS];
	uint64_t	build_rows[MAX_BUILDS];
	def			table;
	rhh_join_spec spec;
	rhh_program program;		/* empty: the plan has none */
	rhh_program conditions[MAX_BUILDS]; /* of the joins; the same */
	uint64_t	float_states;	/* bit s: the argument of state s is a computed float */
	bool		may_fail;		/* a build side may be finished with RHH_NO_MEMORY */
} plan;

/* Build sides that are finished, and what their runs need. */
typedef struct sides
{
	run			runs[MAX_BUILDS];
	data	   *data[MAX_BUILDS];
	uint32_t	n;
	joined		joined;
	/* one may come in parts, one after the other: */
	uint32_t	split;			/* which one; MAX_BUILDS: none */
	def			part;			/* of which this is there */
	uint8_t    *missing;		/* rows that any part has refused */
	context    *ctx;
	const char *where;
} sides;

/* A def.custom: columns with GEN_CUSTOM have one of gen.n values. */
extern void custom_keys(data *data, uint64_t row, rng *r, uint64_t param);

extern void plan_init(plan *p);
extern uint16_t probe_column(plan *p, uint32_t bytes, gen_kind kind, uint64_t n,
							 uint32_t nulls_of_256);
extern def *plan_join(plan *p, rhh_join_kind kind, uint64_t n_rows, uint64_t param);
extern uint16_t join_key(plan *p, uint16_t with, uint32_t bytes, uint64_t n,
						 uint32_t nulls_of_256);
extern uint16_t join_column(plan *p, uint32_t bytes, gen_kind kind, uint64_t n,
							uint32_t nulls_of_256);
extern int	table_column(plan *p, uint16_t column);
extern void table_key(plan *p, uint16_t column);
extern void table_state(plan *p, rhh_state_op op, uint16_t column);
extern void table_states(plan *p, uint16_t column);

extern bool sides_start(context *ctx, const char *where, sides *sides, const plan *p);
extern void sides_end(sides *sides);
extern void check_plan(context *ctx, const char *where, const plan *p, uint64_t n_rows,
					   const run_options *options, rhh_map_stats *stats);

/* join_kept.c: the same of a plan whose build sides are there, with a map that keeps the output first. */
extern void check_kept_output(context *ctx, const char *where, const plan *p, const sides *sides,
							  const data *probe, const run_options *options, rhh_map_stats *stats);

extern void expect_error(context *ctx, const char *what, rhh_status got, rhh_status status,
						 const rhh_error *err, const char *message);

#endif
