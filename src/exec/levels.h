/*-------------------------------------------------------------------------
 *
 * levels.h
 *		Levels: how groups are made of groups.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_LEVELS_H
#define GPURHH_EXEC_LEVELS_H

#include "exec/host_table.h"
#include "plan/plan.h"

/* ---------- levels.c ---------- */

/* Above the groups that a device makes of rows there are at most so many levels. */
#define GPURHH_MAX_LEVELS	2

/* How groups are made of the groups of the level below. */
typedef struct Level Level;

/*
 * Called once for each odd numeric that is a value of DISTINCT.  It is in no state of
 * the level.  group: the words of the group that it is in; state: one of the states
 * over the argument.
 */
typedef void (*LevelOdd)(void *arg, const uint64 *group, int state,
						 Datum value);

extern int	gpurhh_levels_create(Level **levels, const rhh_map_spec *first,
								 const GpuColumn *columns,
								 const GpuAggPlan *plan);
extern void gpurhh_level_keep_strings(Level *level);
extern void gpurhh_level_set_odd(Level *level, LevelOdd odd, void *arg);
extern bool gpurhh_level_keeps_strings(const Level *level);
extern const rhh_map_spec *gpurhh_level_spec(const Level *level);
extern int	gpurhh_level_n_sets(const Level *level);
extern void gpurhh_level_key(const Level *level, int set,
							 const uint64 *group, uint64 *key);
extern LevelPlan *gpurhh_level_plan(Level *level);
extern const uint64 *gpurhh_level_translate(Level *level,
											const uint64 *words,
											Size stride, uint32 n);
extern void gpurhh_level_start(Level *level, MemoryContext context);
extern bool gpurhh_level_makes_groups(const Level *level);
extern bool gpurhh_level_add(Level *level, const Dictionary *dictionary,
							 const uint64 *words, Size stride, uint32 n);
extern const uint64 *gpurhh_level_next_groups(Level *level, uint32 *n);
extern uint64 gpurhh_level_spilled(Level *level);
extern void gpurhh_level_end(Level *level);

#endif							/* GPURHH_EXEC_LEVELS_H */
