/*-------------------------------------------------------------------------
 *
 * odd_arguments.h
 *		Odd values: numerics that do not have the scale which their type modifier
 *		declares.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_ODD_ARGUMENTS_H
#define GPURHH_EXEC_ODD_ARGUMENTS_H

#include "batch/batch.h"
#include "exec/levels.h"
#include "exec/parallel.h"

/* Which arguments may have odd values; the values of a run; those of a group. */
typedef struct OddPlan OddPlan;
typedef struct OddValues OddValues;
typedef struct OddState OddState;

/* The least or greatest of some values. */
typedef struct OddBest
{
	struct varlena *value;
	bool		ties;			/* it equals this integer by the power of 10 that
								 * was declared, */
	int64		integer;
	bool		later;			/* which came after it, from another row */
} OddBest;

/* The values of one argument in a group. */
struct OddState
{
	uint64		count;
	/* NULL where no aggregate asks for it, or there is no value: */
	void	   *sums;			/* core's state */
	OddBest		least;
	OddBest		greatest;
	struct varlena *last;
};

extern OddPlan *gpurhh_odd_plan(const rhh_map_spec *first,
								const GpuColumn *columns,
								const Level *level, List *outputs);
extern int	gpurhh_odd_argument(const OddPlan *plan, int state);
extern OddValues *gpurhh_odd_create(const OddPlan *plan,
									MemoryContext context);
extern void gpurhh_odd_add_row(OddValues *values, const Feed *feed,
							   TupleTableSlot *slot);
extern void gpurhh_odd_add(OddValues *values, const Dictionary *dictionary,
						   const uint64 *group, Size stride, int argument,
						   Datum value);
extern bool gpurhh_odd_watches(const OddPlan *plan);
extern const uint64 *gpurhh_odd_watched(const OddValues *values);
extern void gpurhh_odd_added(OddValues *values, uint64 *n_values,
							 uint64 *n_compared);
extern uint64 gpurhh_odd_bytes(const OddValues *values);
extern void gpurhh_odd_save(const OddValues *values, GpuAggShared *shared);
extern void gpurhh_odd_read(OddValues *values, GpuAggShared *shared);
extern const OddState *gpurhh_odd_find(OddValues *values,
									   const Dictionary *dictionary,
									   const uint64 *group, Size stride);
extern Datum gpurhh_odd_final(OddValues *values, const OddState *state,
							  PGFunction core_final, uint64 count,
							  const NumericSums *others);
extern void gpurhh_odd_free(OddValues *values);

#endif							/* GPURHH_EXEC_ODD_ARGUMENTS_H */
