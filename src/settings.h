/*-------------------------------------------------------------------------
 *
 * settings.h
 *		What the settings are set to; guc.c defines them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SETTINGS_H
#define GPURHH_SETTINGS_H

#define GPURHH_VERSION "0.1.0"

extern bool enable_gpu_hashagg;
extern bool enable_gpu_hashjoin;
extern bool gpurhh_enable_eager_aggregate;
extern bool gpurhh_enable_key_filter;
extern char *gpurhh_device;
extern int	gpurhh_device_memory_mb;
extern int	gpurhh_pool_size_kb;
extern int	gpurhh_batch_rows;
extern double gpurhh_load_factor;
extern int	gpurhh_max_probe_buckets;
extern int	gpurhh_cpu_threads;
extern int	gpurhh_service_idle_timeout_s;
extern int	gpurhh_service_start;	/* AutoSwitch: does the shared service start with the server? */
extern int	gpurhh_read_pages;	/* AutoSwitch: do devices read pages by themselves? */
extern int	gpurhh_cache_size_mb;	/* -1: the service decides; 0: there is no cache */
extern int	gpurhh_partial_copies;	/* AutoSwitch: need copies of pages not have all of a row? */
extern double gpurhh_setup_cost;
extern double gpurhh_row_cost;
extern double gpurhh_group_cost;

typedef enum AutoSwitch
{
	SWITCH_AUTO,				/* where there is a GPU for it */
	SWITCH_ON,
	SWITCH_OFF
} AutoSwitch;

extern void gpurhh_init_guc(void);

#endif							/* GPURHH_SETTINGS_H */
