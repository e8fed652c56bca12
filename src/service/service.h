/*-------------------------------------------------------------------------
 *
 * service.h
 *		The device service: a background worker, the only process that calls devices.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SERVICE_SERVICE_H
#define GPURHH_SERVICE_SERVICE_H

/* ---------- service.c ---------- */

extern void gpurhh_register_service(void);
extern PGDLLEXPORT void gpurhh_service_main(Datum main_arg);

/* ---------- cuda_library.c ---------- */

extern bool gpurhh_has_cuda_library(void);

#endif							/* GPURHH_SERVICE_SERVICE_H */
