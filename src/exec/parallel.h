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

#include "channel/channel.h"
#include "exec/join_input.h"
#include "exec/node_stats.h"

/* ---------- agg_parallel.c ---------- */

/* In the parallel plan's DSM segment. */
typedef struct GpuAggShared GpuAggShared;

extern Size gpurhh_parallel_bytes(const JoinInput *joins, Snapshot snapshot);
extern void gpurhh_parallel_init(GpuAggShared *shared, Size bytes, dsm_segment *segment);
extern void gpurhh_parallel_start(GpuAggShared *shared, bool leader_emits,
								  Channel *channel, bool stays,
								  const JoinInput *joins, Snapshot snapshot,
								  dsa_pointer dictionary);
extern const ChannelAddress *gpurhh_parallel_builds(GpuAggShared *shared);
extern bool gpurhh_parallel_begin_build(GpuAggShared *shared, int j,
										ParallelTableScanDesc *scan);
extern bool gpurhh_parallel_end_build(GpuAggShared *shared, int j);
extern void gpurhh_parallel_restart_build(GpuAggShared *shared, int j, Relation table);
extern JoinRounds *gpurhh_parallel_rounds(GpuAggShared *shared);
extern bool gpurhh_parallel_reads_alone(GpuAggShared *shared);
extern bool gpurhh_parallel_left_to_one(GpuAggShared *shared);
extern KeyFilter *gpurhh_parallel_share_filter(GpuAggShared *shared, int j,
											   KeyFilter *own);
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
