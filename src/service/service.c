/*-------------------------------------------------------------------------
 *
 * service.c
 *		The device service: the one process that uses devices.
 *
 * It is a background worker.  Either the first query that needs it starts it
 * (channel/service_worker.c), or the server does at its own start, if
 * gpurhh.service_start says so.  It ends after it has been idle for a while (unless
 * the server started it), on SIGTERM, when the session that it is private to has
 * ended, or after a device error.  Only the files of this folder call the interface of
 * the devices (gpu/rhh_device.h).
 *
 * The service is one loop, which looks at each query in the area (queries.c) and at
 * each device (devices.c).  Devices work asynchronously, and make a descriptor
 * readable when they have completed something.  So the loop sleeps on its latch and
 * these descriptors.
 *
 * The CUDA device is in a library that this process alone loads
 * (cuda_library.c), when it starts.
 *
 * Devices start threads (those of CUDA's driver, and the CPU device's workers), and
 * none of these may run PostgreSQL's signal handlers.  So all signals are blocked
 * around every piece of the loop that calls a device.
 *
 * A device error ends the queries that use the device, and then the process, because
 * a CUDA context that has failed stays failed.  The exit code is 1; the server would
 * restart the whole cluster after any other.  An exit callback tells the sessions and
 * frees the blocks, whatever the reason for the exit is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "lib/stringinfo.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"

#include "compat.h"
#include "service/service_state.h"
#include "settings.h"

/* ---------- starting the service with the server ---------- */

/*
 * Does this machine seem to have a GPU, and is the code for it installed?
 *
 * This runs in the postmaster, which must never call CUDA, because its children
 * would inherit what a call leaves behind.  So it only looks for device files: of
 * the driver, of its counterpart in Windows' subsystem for Linux, and of systems on
 * a chip.
 */
static bool
gpu_seems_here(void)
{
	static const char *const files[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu"};

	for (int i = 0; i < lengthof(files); i++)
	{
		if (access(files[i], F_OK) == 0 && gpurhh_has_cuda_library())
			return true;
	}
	return false;
}

/*
 * Registers the shared service, so that the server starts it, if
 * gpurhh.service_start says so.
 *
 * The server starts it only once.  When it has ended, for whatever reason, the next
 * query that needs it starts another.  A driver that crashes its process makes the
 * whole cluster restart, and must not do so again and again.  If a session starts a
 * service first, claim_area() lets only one of the two go on.
 */
void
gpurhh_register_service(void)
{
	BackgroundWorker worker;

	/* pg_upgrade's servers run no queries worth a device */
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade ||
		gpurhh_service_start == SWITCH_OFF)
		return;
	if (gpurhh_service_start == SWITCH_AUTO &&
		(strcmp(gpurhh_device, "cpu") == 0 || !gpu_seems_here()))
		return;
	gpurhh_describe_service_worker(&worker, 0);
	RegisterBackgroundWorker(&worker);
}

/* ---------- the process ---------- */

/*
 * Is this service to run all the time?  This may change while it runs, when the
 * configuration files are read again.
 */
static bool
keeps_running(DeviceService *service)
{
	if (!service->area->shared || gpurhh_service_start == SWITCH_OFF)
		return false;
	if (gpurhh_service_start == SWITCH_ON)
		return true;
	for (int i = 0; i < service->n_devices; i++)
	{
		if (service->devices[i].info.kind == RHH_KIND_CUDA &&
			service->devices[i].info.state != RHH_STATE_UNUSABLE)
			return strcmp(gpurhh_device, "cpu") != 0;
	}
	return false;
}

/*
 * Writes to the server's log which devices were found, and the limits.  It is a LOG
 * message only for the first shared service after the server's start, because
 * services that end when idle, and those of single sessions, may start often.
 */
static void
log_start(DeviceService *service)
{
	ChannelArea *area = service->area;
	StringInfoData found;
	const char *in_use = NULL;

	initStringInfo(&found);
	for (int i = 0; i < service->n_devices; i++)
	{
		const ServiceDevice *dev = &service->devices[i];
		const rhh_device_info *info = &area->devices[i];

		appendStringInfo(&found, "%s%s (%s", i > 0 ? ", " : "", dev->name,
						 info->name);
		if (info->kind == RHH_KIND_CUDA)
			appendStringInfo(&found, ", compute capability %d.%d",
							 info->cc_major, info->cc_minor);
		if (info->total_bytes > 0)
			appendStringInfo(&found, ", " UINT64_FORMAT " MB",
							 (uint64) (info->total_bytes / (1024 * 1024)));
		if (info->state == RHH_STATE_UNUSABLE)
			appendStringInfo(&found, ", unusable: %s", info->reason);
		appendStringInfoChar(&found, ')');
		if (dev->device != NULL)
			in_use = dev->name;
	}
	if (service->n_devices == 1)
		appendStringInfo(&found, " and no GPU: %s", service->no_gpu);
	ereport(area->shared && service->generation == 1 ? LOG : DEBUG1,
			(errmsg("gpurhh %s device service is ready%s%s", GPURHH_VERSION,
					in_use ? " and has opened " : "", in_use ? in_use : ""),
			 errdetail("It found %s. The pool has %d blocks of %zu kB. gpurhh.device_memory is %d MB, gpurhh.cpu_threads is %d.",
					   found.data, area->n_blocks, area->block_bytes / 1024,
					   gpurhh_service_memory_limit_mb(service),
					   gpurhh_service_cpu_threads(service))));
	pfree(found.data);
}

/*
 * The exit callback, for whatever reason the service ends.  Closes the devices, tells
 * the sessions, and frees the blocks that the service holds.  Blocks that sessions
 * fill or read remain with the sessions, which free them when they see the failure.
 */
static void
service_exit(int code, Datum arg)
{
	DeviceService *service = (DeviceService *) DatumGetPointer(arg);
	ChannelArea *area = service->area;
	sigset_t	old;

	/* once devices are closed, no thread and no copy touches the pool */
	sigprocmask(SIG_BLOCK, &service->all_signals, &old);
	for (int i = 0; i < service->n_devices; i++)
	{
		if (service->devices[i].device != NULL)
			service->devices[i].ops->close(service->devices[i].device);
		service->devices[i].device = NULL;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		ChannelQuery *query = &area->queries[q];

		if (query->state == QUERY_FREE || query->generation != service->generation)
			continue;
		query->queued.head = -1;
		query->returned.head = -1;
		query->results.head = -1;
		if (query->state == QUERY_ACTIVE)
			gpurhh_service_fail_query(query, service->device_error[0] != '\0' ?
									  service->device_error :
									  "the device service ended");
		else
			query->state = QUERY_FREE;
	}
	/* unless closing the devices took so long that another has been started */
	if (area->generation == service->generation)
	{
		area->service_state = SERVICE_STOPPED;
		area->service_pid = 0;
		area->service_latch = NULL;
		for (int b = 0; b < area->n_blocks; b++)
		{
			if (area->blocks[b].holder == BLOCK_SERVICE)
				gpurhh_block_free(area, b);
		}
	}
	LWLockRelease(&area->lock);
}

/* Makes this process the area's service.  Returns false if there is another one. */
static bool
claim_area(DeviceService *service)
{
	ChannelArea *area = service->area;
	bool		claimed = false;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (area->service_state != SERVICE_RUNNING && !area->owner_gone)
	{
		claimed = true;
		service->generation = ++area->generation;
		area->service_state = SERVICE_RUNNING;
		area->service_pid = MyProcPid;
		area->service_latch = MyLatch;
		memset(&area->stats, 0, sizeof(area->stats));
		area->stats.started_at = GetCurrentTimestamp();
	}
	LWLockRelease(&area->lock);
	return claimed;
}

/*
 * Has the service been idle for so long that it should end, or has its session gone?
 * If so, returns true, and from then on no session can open a query.  *idle_since is
 * when the last query ended, or 0 while there is one.
 */
static bool
retire_if_idle(DeviceService *service, TimestampTz *idle_since)
{
	ChannelArea *area = service->area;
	int			timeout_s = area->shared ? gpurhh_service_idle_timeout_s :
		area->settings.idle_timeout_s;
	TimestampTz now = GetCurrentTimestamp();
	bool		retire = false;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		if (area->queries[q].state != QUERY_FREE &&
			area->queries[q].generation == service->generation)
		{
			*idle_since = 0;
			break;
		}
		if (q == GPURHH_MAX_QUERIES - 1 && *idle_since == 0)
			*idle_since = now;
	}
	if (area->owner_gone)
		retire = true;
	else if (timeout_s > 0 && *idle_since != 0 && !keeps_running(service) &&
			 TimestampDifferenceExceeds(*idle_since, now, timeout_s * 1000))
		retire = true;
	/* not stopped yet: the devices have to be closed first */
	if (retire)
	{
		area->service_state = SERVICE_STARTING;
		area->starting_since = now;
	}
	LWLockRelease(&area->lock);
	return retire;
}

/*
 * Looks once at every device and every query, and does what can be done without
 * waiting.  Returns whether there was anything to do; then there may be more.
 */
static bool
work(DeviceService *service)
{
	ChannelArea *area = service->area;
	bool		progress = false;
	sigset_t	old;

	sigprocmask(SIG_BLOCK, &service->all_signals, &old);
	if (area->devices_wanted != area->devices_seen)
		gpurhh_service_publish_devices(service);
	for (int i = 0; i < service->n_devices && service->device_error[0] == '\0'; i++)
		progress |= gpurhh_service_poll_device(&service->devices[i]);
	for (int q = 0; q < GPURHH_MAX_QUERIES && service->device_error[0] == '\0'; q++)
		progress |= gpurhh_service_advance_query(service, q);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return progress;
}

void
gpurhh_service_main(Datum main_arg)
{
	dsm_handle	handle = DatumGetUInt32(main_arg);
	DeviceService *service;
	ChannelArea *area = NULL;
	TimestampTz idle_since = 0;
	sigset_t	old;

	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	/* to no database: to be seen in pg_stat_activity, and be terminable */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	pgstat_report_appname("gpurhh device service");

	if (handle == 0)
		area = gpurhh_shared_area();
	else
	{
		dsm_segment *segment = dsm_attach(handle);

		if (segment != NULL)
		{
			dsm_pin_mapping(segment);
			area = dsm_segment_address(segment);
		}
	}
	if (area == NULL)
		proc_exit(0);			/* the session has gone already */
	if (area->magic != GPURHH_AREA_MAGIC)
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpurhh was updated after the session had loaded it"),
				 errhint("Reconnect to use the new version.")));
	service = MemoryContextAllocZero(TopMemoryContext, sizeof(DeviceService));
	service->area = area;
	if (!claim_area(service))
		proc_exit(0);			/* two were started at the same time */

	gpurhh_service_make_cache(service);
	sigfillset(&service->all_signals);
	before_shmem_exit(service_exit, PointerGetDatum(service));
	sigprocmask(SIG_BLOCK, &service->all_signals, &old);
	gpurhh_service_find_devices(service);
	gpurhh_service_rebuild_wait_set(service);
	/* the first query then need not wait for that */
	if (keeps_running(service))
	{
		char		note[GPURHH_MESSAGE_LEN];

		(void) gpurhh_service_choose_device(service, gpurhh_device, note, sizeof(note));
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	gpurhh_service_publish_devices(service);
	log_start(service);

	for (;;)
	{
		WaitEvent	occurred[GPURHH_MAX_DEVICES + 2];

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (work(service))
			continue;
		if (service->device_error[0] != '\0')
		{
			LWLockAcquire(&area->lock, LW_EXCLUSIVE);
			area->stats.device_errors++;
			if (service->cuda_error)
				area->cuda_failed_at = GetCurrentTimestamp();
			LWLockRelease(&area->lock);
			ereport(LOG,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("gpurhh device service ends after a device error: %s",
							service->device_error)));
			proc_exit(1);
		}
		if (retire_if_idle(service, &idle_since))
			proc_exit(0);
		(void) WaitEventSetWait(service->wait_set, 1000, occurred, lengthof(occurred),
								PG_WAIT_EXTENSION);
	}
}
