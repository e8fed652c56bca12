/*-------------------------------------------------------------------------
 *
 * host_table.h
 *		A table of groups on the host: of the rows that a device's map refuses, and
 *		of levels that no device makes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_HOST_TABLE_H
#define GPURHH_EXEC_HOST_TABLE_H

#include "nodes/pg_list.h"

#include "batch/batch.h"

/* ---------- host_table.c ---------- */

typedef struct HostTable HostTable;

extern HostTable *gpurhh_host_create(const rhh_map_spec *spec,
									 MemoryContext parent, Size memory_limit);
extern uint64 gpurhh_host_add_batch(HostTable *host, const rhh_batch *batch,
									bool all_rows);
extern void gpurhh_host_merge(HostTable *host, const uint64 *words,
							  Size stride);
extern void gpurhh_host_merge_records(HostTable *host, uint64 *records,
									  int n);
extern bool gpurhh_host_absorb(HostTable *host, const uint64 *words,
							   Size stride);
extern bool gpurhh_host_is_empty(HostTable *host);
extern const uint64 *gpurhh_host_next(HostTable *host);
extern uint64 gpurhh_host_spilled(HostTable *host);
extern void gpurhh_host_load_group(const rhh_map_spec *spec,
								   const rhh_batch *batch, uint32 row,
								   uint64 *record);
extern void gpurhh_host_keep_strings(HostTable *host,
									 const StringWords *strings);
extern bool gpurhh_host_next_is_loaded(HostTable *host);
extern void gpurhh_host_choose(HostTable *host, uint32 first_state,
							   List *choices, const Dictionary *dictionary);
extern void gpurhh_host_free(HostTable *host);

#endif							/* GPURHH_EXEC_HOST_TABLE_H */
