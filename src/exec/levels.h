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

/* ---------- levels.c ---------- */

/* Makes groups of a first level's groups. */
typedef struct Regroup Regroup;

/*
 * A value of DISTINCT is an odd numeric: it is in no state, but this is called once
 * for the group that it is in, given by its words, and for one of its states.
 */
typedef void (*RegroupOdd)(void *arg, const uint64 *group, int state,
						   Datum value);

extern Regroup *gpurhh_regroup_create(const rhh_table_spec *first,
									  const GpuColumn *columns,
									  int n_shown_keys, List *sets,
									  List *choices, List *distinct_states,
									  double expected_groups,
									  double expected_top);
extern Regroup *gpurhh_regroup_above(Regroup *regroup);
extern void gpurhh_regroup_keep_strings(Regroup *regroup);
extern void gpurhh_regroup_set_odd(Regroup *regroup, RegroupOdd odd, void *arg);
extern bool gpurhh_regroup_keeps_strings(const Regroup *regroup);
extern const rhh_table_spec *gpurhh_regroup_spec(const Regroup *regroup);
extern int	gpurhh_regroup_n_sets(const Regroup *regroup);
extern void gpurhh_regroup_key(const Regroup *regroup, int set,
							   const uint64 *group, uint64 *key);
extern RegroupPlan *gpurhh_regroup_plan(Regroup *regroup);
extern const uint64 *gpurhh_regroup_translate(Regroup *regroup,
											  const uint64 *words,
											  Size stride, uint32 n);
extern void gpurhh_regroup_start(Regroup *regroup, MemoryContext context);
extern bool gpurhh_regroup_makes_groups(const Regroup *regroup);
extern bool gpurhh_regroup_add(Regroup *regroup, const Dictionary *dictionary,
							   const uint64 *words, Size stride, uint32 n);
extern const uint64 *gpurhh_regroup_next(Regroup *regroup, uint32 *n);
extern uint64 gpurhh_regroup_spilled(Regroup *regroup);
extern void gpurhh_regroup_end(Regroup *regroup);

/* ---------- level_feed.c ---------- */

/* Groups on their way to a level that this session feeds. */
typedef struct UpperFeed UpperFeed;

extern UpperFeed *gpurhh_upper_start(Regroup *regroup, MemoryContext context);
extern void gpurhh_upper_add(UpperFeed *upper, const uint64 *words,
							 Size stride, uint32 n);
extern Channel *gpurhh_upper_finish(UpperFeed *upper, HostTable **host,
									GpuNodeCounts *counts);

#endif							/* GPURHH_EXEC_LEVELS_H */
