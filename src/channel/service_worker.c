/*-------------------------------------------------------------------------
 *
 * service_worker.c
 *		Starts the background worker that is the device service.
 *
 * The shared service starts with the server, or with the first query that needs
 * it; a private one with the first query of its session.  What the worker does is
 * in service/, of which this file only knows the name of the function to call.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"

#include "channel/area.h"
#include "compat.h"

/*
 * Fills in the worker that is the device service of an area.  dsm_handle: of the
 * segment that the area is in; 0: it is in main shared memory.
 */
void
gpurhh_describe_service_worker(BackgroundWorker *worker, uint32 dsm_handle)
{
	memset(worker, 0, sizeof(BackgroundWorker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_ConsistentState;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, "gpurhh", BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, "gpurhh_service_main", BGW_MAXLEN);
	strlcpy(worker->bgw_name, "gpurhh device service", BGW_MAXLEN);
	strlcpy(worker->bgw_type, "gpurhh device service", BGW_MAXLEN);
	worker->bgw_main_arg = UInt32GetDatum(dsm_handle);
}

/*
 * Registers the worker and waits until it serves the area.  False, with the
 * reason: the server has no room for it, or it has ended.
 */
bool
gpurhh_start_service_worker(ChannelArea *area, uint32 dsm_handle,
							const char **why)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;
	pid_t		pid;

	gpurhh_describe_service_worker(&worker, dsm_handle);
	worker.bgw_notify_pid = MyProcPid;

	if (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		*why = "no background worker slot is free, see max_worker_processes";
		return false;
	}
	for (;;)
	{
		bool		running;
		BgwHandleStatus status = GetBackgroundWorkerPid(handle, &pid);

		LWLockAcquire(&area->lock, LW_SHARED);
		running = area->service_state == SERVICE_RUNNING;
		LWLockRelease(&area->lock);
		if (running)
			return true;
		if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED)
		{
			*why = "the device service ended while it started, see the server log";
			return false;
		}
		/* a signal tells of its start and end, nothing of the area's state */
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 2, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}
