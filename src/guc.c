/*-------------------------------------------------------------------------
 *
 * guc.c
 *		Every setting.  docs/settings.md says the same in prose, and a test
 *		compares the two.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include <limits.h>

#include "utils/guc.h"

bool		enable_gpu_hashagg = false;
char	   *gpurhh_device = NULL;
int			gpurhh_device_memory_mb = 0;
int			gpurhh_pool_size_kb = 32 * 1024;
int			gpurhh_batch_rows = 65536;
double		gpurhh_load_factor = 0.8;
int			gpurhh_max_probe_buckets = 8;
int			gpurhh_cpu_threads = 0;
int			gpurhh_service_idle_timeout_s = 60;
double		gpurhh_setup_cost = 1000.0;
double		gpurhh_row_cost = 0.005;
double		gpurhh_group_cost = 0.015;

/* "auto", "cpu", "cuda" or "cuda:N" */
static bool
check_device(char **newval, void **extra, GucSource source)
{
	const char *name = *newval;

	if (strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0 ||
		strcmp(name, "cuda") == 0)
		return true;
	if (strncmp(name, "cuda:", 5) == 0)
	{
		size_t		digits = strspn(name + 5, "0123456789");

		if (digits > 0 && digits <= 3 && name[5 + digits] == '\0' &&
			(name[5] != '0' || digits == 1))
			return true;
	}
	GUC_check_errdetail("Valid values are \"auto\", \"cpu\", \"cuda\" and \"cuda:N\", where N is a device number.");
	return false;
}

/*
 * What a session sets for itself may cost it much, and others little: what takes
 * of what all share, memory in /dev/shm and threads, is for superusers.
 */
void
gpurhh_init_guc(void)
{
	/*
	 * A server reads its files before it loads libraries, and starts with no name
	 * in them that it does not know, unless that has a prefix.
	 */
	DefineCustomBoolVariable("enable_gpu_hashagg",
							 "Enables the planner's use of GpuHashAgg plans.",
							 NULL,
							 &enable_gpu_hashagg, false,
							 PGC_USERSET, GUC_EXPLAIN | GUC_DISALLOW_IN_AUTO_FILE,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("gpurhh.device",
							   "Chooses the device that groups rows.",
							   "\"auto\" is the first usable GPU, or the CPU device where there is none.",
							   &gpurhh_device, "auto",
							   PGC_USERSET, GUC_EXPLAIN,
							   check_device, NULL, NULL);

	DefineCustomIntVariable("gpurhh.device_memory",
							"Limits the device memory of a query, and of a device service.",
							"A service takes its limit from the configuration files, or a private one from its session. Zero leaves the choice to the device.",
							&gpurhh_device_memory_mb, 0, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.pool_size",
							"Sets the memory for batches between sessions and the device service.",
							"Read when the server starts with the library preloaded, otherwise when a session first uses a device.",
							&gpurhh_pool_size_kb, 32 * 1024, 256, 2 * 1024 * 1024,
							PGC_SUSET, GUC_UNIT_KB | GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.batch_rows",
							"Sets the most rows that a batch holds.",
							"A batch also has to fit a block of the pool.",
							&gpurhh_batch_rows, 65536, 64, 1024 * 1024,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.load_factor",
							 "Sets how full a device's hash table may get before it grows.",
							 NULL,
							 &gpurhh_load_factor, 0.8, 0.5, 0.95,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	/*
	 * The device works for all sessions: how long it may be busy with one row is
	 * bounded, whoever asks.
	 */
	DefineCustomIntVariable("gpurhh.max_probe_buckets",
							"Sets how many buckets a row's probe may visit before the device refuses it.",
							NULL,
							&gpurhh_max_probe_buckets, 8, 1, 64,
							PGC_USERSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.cpu_threads",
							"Sets how many threads the CPU device uses.",
							"Read when the device is opened. Zero is one for each processor that the server may use.",
							&gpurhh_cpu_threads, 0, 0, 256,
							PGC_SUSET, GUC_EXPLAIN,
							NULL, NULL, NULL);

	DefineCustomIntVariable("gpurhh.service_idle_timeout",
							"Sets how long a device service with nothing to do keeps running.",
							"Zero keeps it running.",
							&gpurhh_service_idle_timeout_s, 60, 0, INT_MAX / 1000,
							PGC_USERSET, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.setup_cost",
							 "Sets the planner's estimate of the cost of starting to use a device.",
							 NULL,
							 &gpurhh_setup_cost, 1000.0, 0.0, 1.0e10,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.row_cost",
							 "Sets the planner's estimate of the cost of feeding a row to a device.",
							 NULL,
							 &gpurhh_row_cost, 0.005, 0.0, 1.0e10,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	DefineCustomRealVariable("gpurhh.group_cost",
							 "Sets the planner's estimate of the cost of returning a group from a device.",
							 NULL,
							 &gpurhh_group_cost, 0.015, 0.0, 1.0e10,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, NULL, NULL);

	MarkGUCPrefixReserved("gpurhh");
}
