/*-------------------------------------------------------------------------
 *
 * levels.h
 *		Groups that are made of groups.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_LEVELS_H
#define GPURHH_EXEC_LEVELS_H

#include "exec/host_table.h"
#include "exec/node_stats.h"
#include "plan/plan.h"

/* ---------- levels.c ---------- */

/* Makes groups of a first level's groups. */
typedef struct Level Level;

/*
 * A value of DISTINCT is an odd numeric: it is in no state, but this is called once
 * for the group that it is in, given by its words, and for one of its states.
 */
typedef void (*LevelOdd)(void *arg, const uint64 *group, int state,
						 Datum value);

extern Level *gpurhh_level_create(const rhh_map_spec *first,
								  const GpuColumn *columns,
								  const GpuAggPlan *plan);
extern Level *gpurhh_level_next(Level *level);
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

/* ---------- level_feed.c ---------- */

/* Groups on their way to a level that this session feeds. */
typedef struct LevelFeed LevelFeed;

extern LevelFeed *gpurhh_level_feed_start(Level *level, MemoryContext context);
extern void gpurhh_level_feed_add(LevelFeed *feed, const uint64 *words,
								  Size stride, uint32 n);
extern Channel *gpurhh_level_feed_finish(LevelFeed *feed, HostTable **host,
										 GpuNodeCounts *counts);

#endif							/* GPURHH_EXEC_LEVELS_H */
