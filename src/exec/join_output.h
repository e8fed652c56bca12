/*-------------------------------------------------------------------------
 *
 * join_output.h
 *		Rows that have come out of a device's joins, until they are returned.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_JOIN_OUTPUT_H
#define GPURHH_EXEC_JOIN_OUTPUT_H

#include "rhh_device.h"

typedef struct JoinOutput JoinOutput;

extern JoinOutput *gpurhh_join_output_create(const rhh_map_spec *group, Size block_bytes,
											 MemoryContext context);
extern void gpurhh_join_output_end(JoinOutput *output);
extern uint64 gpurhh_join_output_add(JoinOutput *output, const rhh_batch *batch);
extern bool gpurhh_join_output_is_full(const JoinOutput *output);
extern bool gpurhh_join_output_any(const JoinOutput *output);
extern uint64 *gpurhh_join_output_window(JoinOutput *output, uint32 *n);

#endif							/* GPURHH_EXEC_JOIN_OUTPUT_H */
