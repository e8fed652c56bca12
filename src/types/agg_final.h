/*-------------------------------------------------------------------------
 *
 * agg_final.h
 *		The arithmetic that makes results of states, for the methods in
 *		aggregates.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_TYPES_AGG_FINAL_H
#define GPURHH_TYPES_AGG_FINAL_H

#include "types/types.h"

/* ---------- agg_final.c ---------- */

extern Twice gpurhh_twice(const uint64 *words, Size stride);
extern float8 gpurhh_sum_of_deviations(Twice products, Twice x, Twice y,
									   uint64 count);
extern bool gpurhh_not_finite(uint64 flags, float8 *result);

extern Datum gpurhh_final_variance(bool sample, bool root, int128 sum,
								   uint64 count, const uint64 *squares,
								   int scale);
extern Datum gpurhh_final_squares(const uint64 *squares, int scale);
extern int64 gpurhh_final_money(uint64 low, uint64 high);
extern Datum gpurhh_final_interval(bool average, int128 time, int64 days,
								   int64 months, int infinite, uint64 count);
extern float8 gpurhh_final_sum_float(uint64 sum, uint64 flags, bool single);
extern float8 gpurhh_final_avg_float(uint64 sum, uint64 flags, uint64 count);
extern float8 gpurhh_final_variance_float(bool sample, bool root,
										  const uint64 *moments, Size stride,
										  uint64 count);

/* ---------- pair_final.c ---------- */

extern void *gpurhh_pair_final_create(const GpuAggregate *aggregate);
extern float8 gpurhh_pair_final(const AggregateResult *result,
								const uint64 *group, Size stride, bool *isnull);
extern float8 gpurhh_pair_avg(const AggregateResult *result,
							  const uint64 *group, Size stride);

#endif							/* GPURHH_TYPES_AGG_FINAL_H */
