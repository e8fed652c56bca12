/*-------------------------------------------------------------------------
 *
 * gpurhh.c
 *		Start of the library: what is registered, in order.
 *
 * Loading costs a session nothing more: the device service and the pool come
 * into being with the first query that uses them (channel.c), or, with
 * shared_preload_libraries, the pool at server start, and the service too if
 * gpurhh.service_start says so.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "cache/page_cache.h"
#include "channel/area.h"
#include "exec/exec.h"
#include "plan/plan.h"
#include "scan/scan.h"
#include "service/service.h"
#include "settings.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	gpurhh_init_guc();
	gpurhh_init_channel();
	gpurhh_init_buffer_hints();
	gpurhh_init_page_cache();
	gpurhh_register_service();
	gpurhh_register_agg_methods();
	gpurhh_register_join_methods();
	gpurhh_register_share_methods();
	gpurhh_register_plan_nodes();
	gpurhh_init_agg_path();
	gpurhh_init_join_path();
	gpurhh_init_finish_plan();
}
