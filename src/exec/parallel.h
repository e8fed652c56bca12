/*-------------------------------------------------------------------------
 *
 * parallel.h
 *		What the participants of a parallel plan share: their state, and files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_PARALLEL_H
#define GPURHH_EXEC_PARALLEL_H

#include "storage/buffile.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"

#include "channel/channel.h"
#include "exec/join_input.h"
#include "exec/node_stats.h"

/* ---------- shared_builds.c ---------- */

/* In a parallel plan's DSM segment. */
typedef struct SharedBuilds
{
	/* written by the leader before workers look */
	int			n;
	ChannelAddress queries[RHH_MAX_JOINS];
	Size		scans[RHH_MAX_JOINS];	/* where behind this a build side has its parallel scan;
										 * 0: it has none */
	Size		filters[RHH_MAX_JOINS]; /* the same of its key filter */
	bool		in_parts[RHH_MAX_JOINS];	/* its plan gives each participant a part */
	Size		nested[RHH_MAX_JOINS];	/* where behind this are the SharedBuilds of the joins that
										 * make it (nested_joins.c); 0: there are none */
	Size		probe_scan;		/* of such joins: where the parallel scan of their probe side is */

	LWLock		filters_lock;	/* guards the filters until build sides are complete */
	slock_t		mutex;			/* guards what follows */
	int			n_reading[RHH_MAX_JOINS];	/* participants that read a build side */
	bool		taken[RHH_MAX_JOINS];	/* nobody else is to read it */
} SharedBuilds;

extern Size gpurhh_builds_bytes(const JoinInput *joins, Snapshot snapshot);
extern void gpurhh_builds_init(SharedBuilds *builds);
extern void gpurhh_builds_start(SharedBuilds *builds, char *room, Size bytes,
								const JoinInput *joins, Snapshot snapshot);
extern bool gpurhh_builds_attach(SharedBuilds *builds, JoinInput *joins,
								 MemoryContext context);
extern bool gpurhh_builds_begin(SharedBuilds *builds, int j, ParallelTableScanDesc *scan);
extern bool gpurhh_builds_end(SharedBuilds *builds, int j);
extern void gpurhh_builds_restart(SharedBuilds *builds, int j, Relation table);
extern ParallelTableScanDesc gpurhh_builds_probe_scan(SharedBuilds *builds);
extern KeyFilter *gpurhh_builds_share_filter(SharedBuilds *builds, int j, KeyFilter *own);

/* ---------- agg_parallel.c ---------- */

/* In the parallel plan's DSM segment. */
typedef struct GpuAggShared GpuAggShared;

extern Size gpurhh_parallel_bytes(const JoinInput *joins, Snapshot snapshot);
extern void gpurhh_parallel_init(GpuAggShared *shared, Size bytes, dsm_segment *segment);
extern void gpurhh_parallel_start(GpuAggShared *shared, bool leader_emits,
								  Channel *channel, bool stays,
								  const JoinInput *joins, Snapshot snapshot,
								  dsa_pointer dictionary);
extern SharedBuilds *gpurhh_parallel_builds(GpuAggShared *shared);
extern JoinRounds *gpurhh_parallel_rounds(GpuAggShared *shared);
extern bool gpurhh_parallel_reads_alone(GpuAggShared *shared);
extern bool gpurhh_parallel_left_to_one(GpuAggShared *shared);
extern bool gpurhh_parallel_has_others(GpuAggShared *shared);
extern bool gpurhh_parallel_stays(GpuAggShared *shared);
extern bool gpurhh_parallel_stands_for_session(GpuAggShared *shared);
extern dsa_pointer gpurhh_parallel_dictionary(GpuAggShared *shared);
extern Channel *gpurhh_parallel_join(GpuAggShared *shared,
									 MemoryContext context);
extern bool gpurhh_parallel_attach(GpuAggShared *shared);
extern bool gpurhh_parallel_detach(GpuAggShared *shared,
								   GpuNodeCounts *counts);
extern void gpurhh_parallel_note_odd(GpuAggShared *shared);
extern bool gpurhh_parallel_any_odd(GpuAggShared *shared);
extern bool gpurhh_parallel_emits_later(GpuAggShared *shared);
extern bool gpurhh_parallel_may_emit(GpuAggShared *shared, Channel *channel,
									 bool one_emitter);
extern void gpurhh_parallel_add_counts(GpuAggShared *shared,
									   GpuNodeCounts *counts);
extern void gpurhh_parallel_note_alone(GpuAggShared *shared,
									   const GpuNodeStats *stats);
extern bool gpurhh_parallel_alone_stats(GpuAggShared *shared,
										GpuNodeStats *stats);
extern void gpurhh_parallel_counts(GpuAggShared *shared,
								   GpuNodeCounts *counts);
extern void gpurhh_parallel_save_late(GpuAggShared *shared, BufFile **file,
									  const rhh_batch *batch);
extern void gpurhh_parallel_close_file(BufFile **file, void *end, Size size);
extern void gpurhh_parallel_close_late(BufFile **file);
extern void gpurhh_parallel_read_late(GpuAggShared *shared,
									  Size block_bytes,
									  void (*add)(void *arg,
												  const rhh_batch *batch),
									  void *arg);

extern BufFile *gpurhh_parallel_create_deferred(GpuAggShared *shared,
												int *participant,
												int partition);
extern bool gpurhh_parallel_any_deferred(GpuAggShared *shared);
extern int	gpurhh_parallel_next_deferred(GpuAggShared *shared);
extern bool gpurhh_parallel_open_deferred(GpuAggShared *shared,
										  int participant, int partition,
										  BufFile **file);

extern BufFile *gpurhh_parallel_create_choices(GpuAggShared *shared);
extern bool gpurhh_parallel_any_choices(GpuAggShared *shared);
extern BufFile *gpurhh_parallel_open_choices(GpuAggShared *shared, int number);

extern BufFile *gpurhh_parallel_create_odd_arguments(GpuAggShared *shared);
extern bool gpurhh_parallel_any_odd_arguments(GpuAggShared *shared);
extern BufFile *gpurhh_parallel_open_odd_arguments(GpuAggShared *shared, int number);

/* ---------- deferred_rows.c ---------- */

#define GPURHH_DEFER_PARTITIONS 32

/* Rows whose strings a full dictionary did not take. */
typedef struct Deferred Deferred;

extern Deferred *gpurhh_deferred_create(MemoryContext context,
										GpuAggShared *shared);
extern void gpurhh_deferred_free(Deferred *deferred);
extern void gpurhh_deferred_save(Deferred *deferred, TupleTableSlot *slot,
								 uint32 hash);
extern void gpurhh_deferred_close(Deferred *deferred);
extern bool gpurhh_deferred_next(Deferred *deferred);
extern bool gpurhh_deferred_read(Deferred *deferred, TupleTableSlot *slot);

#endif							/* GPURHH_EXEC_PARALLEL_H */
