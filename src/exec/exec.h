/*-------------------------------------------------------------------------
 *
 * exec.h
 *		The nodes at execution.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_EXEC_H
#define GPURHH_EXEC_EXEC_H

#include "nodes/extensible.h"

/* ---------- agg_exec.c ---------- */

extern void gpurhh_register_agg_methods(void);

/* ---------- join_exec.c ---------- */

extern void gpurhh_register_join_methods(void);

/* ---------- share_rows.c ---------- */

extern void gpurhh_register_share_methods(void);

#endif							/* GPURHH_EXEC_EXEC_H */
