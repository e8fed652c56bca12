/*-------------------------------------------------------------------------
 *
 * load.c
 *		Whether other sessions keep the processors busy.
 *
 * The CPU device uses all processors for one query.  If as many other sessions are
 * grouping as there are processors, that gains nothing.  It even costs time: each
 * trip to the service and back switches between processes, and if the system gives
 * each process the same share of the time, the service has one share for the work
 * of all sessions.  Then a session does a small query itself (agg_input.c).
 *
 * A session is counted while one of its nodes reads its input or waits for its
 * first groups.  A session that returns groups, or that has left a cursor half
 * read, is not counted.  Of the processes of a parallel plan one stands for the
 * session: the leader, or if the leader takes no part, the first worker
 * (agg_parallel.c).  The count is in the shared area; private services do not know of
 * other sessions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/ipc.h"

#include "channel/channel.h"
#include "settings.h"

struct Reading
{
	bool		open;
	MemoryContextCallback callback;
};

/* Nodes of this process that are reading. */
static int	n_open = 0;
static bool exit_callback_registered = false;

static void
end_reading(void *arg)
{
	gpurhh_load_end(arg);
}

/* An exit callback, as the memory contexts of a terminated session are not reset. */
static void
end_all(int code, Datum arg)
{
	if (n_open > 0)
		pg_atomic_fetch_sub_u32(&gpurhh_shared_area()->n_reading, 1);
	n_open = 0;
}

/*
 * A node begins to read its input, in the process that stands for its session.  The
 * caller says when it ends; a reset of the context ends it at the latest.  Returns NULL
 * if no session is counted.
 */
Reading *
gpurhh_load_begin(MemoryContext context)
{
	Reading    *reading;

	if (gpurhh_shared_area() == NULL)
		return NULL;
	if (!exit_callback_registered)
	{
		before_shmem_exit(end_all, (Datum) 0);
		exit_callback_registered = true;
	}
	reading = MemoryContextAllocZero(context, sizeof(Reading));
	reading->open = true;
	reading->callback.func = end_reading;
	reading->callback.arg = reading;
	MemoryContextRegisterResetCallback(context, &reading->callback);
	if (n_open++ == 0)
		pg_atomic_fetch_add_u32(&gpurhh_shared_area()->n_reading, 1);
	return reading;
}

void
gpurhh_load_end(Reading *reading)
{
	if (reading == NULL || !reading->open)
		return;
	reading->open = false;
	if (n_open > 0 && --n_open == 0)
		pg_atomic_fetch_sub_u32(&gpurhh_shared_area()->n_reading, 1);
}

/*
 * The number of the CPU device's threads, if that device serves the session's
 * queries.  0 if a GPU serves them, or if no service has looked for devices yet.
 */
static uint32
cpu_device_threads(ChannelArea *area)
{
	bool		is_cpu = true;
	uint32		n_threads = 0;

	LWLockAcquire(&area->lock, LW_SHARED);
	for (int i = 0; i < area->n_devices; i++)
	{
		if (area->devices[i].kind == RHH_KIND_CPU)
			n_threads = area->devices[i].n_threads;
		else
			is_cpu &= area->devices[i].state == RHH_STATE_UNUSABLE;
	}
	LWLockRelease(&area->lock);
	return is_cpu || strcmp(gpurhh_device, "cpu") == 0 ? n_threads : 0;
}

/* Do other sessions keep the processors busy that the device would use? */
bool
gpurhh_load_is_high(void)
{
	ChannelArea *area = gpurhh_shared_area();
	uint32		n_others;
	uint32		n_threads;

	if (area == NULL)
		return false;
	n_others = pg_atomic_read_u32(&area->n_reading);
	if (n_open > 0)
		n_others--;
	if (n_others == 0)
		return false;
	n_threads = cpu_device_threads(area);
	/* with fewer blocks than that they would wait for these */
	return n_threads > 0 && n_others >= Min(n_threads, area->n_blocks);
}

/* Counts a query that was not sent to the service because the load is high. */
void
gpurhh_load_count_stay(void)
{
	ChannelArea *area = gpurhh_shared_area();

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	area->stats.host_queries++;
	LWLockRelease(&area->lock);
}
