/*-------------------------------------------------------------------------
 *
 * service.c
 *		The device service: the one process that uses devices.
 *
 * A background worker, started by the first query that needs it (channel.c),
 * or with the server if gpurhh.service_start says so, and ended by itself when
 * idle for a while (not then), by SIGTERM, when the session it
 * is private to has gone, or by a device error.  This and service_levels.c are the
 * only callers of the device ABI (gpu/rhh_device.h).
 *
 * It is one loop over the queries in the area.  Each query goes through
 *
 *		NEW -> (table made) OPEN -> FINISHING -> READING -> gone
 *			-> (no table)	REFUSED						 -> gone
 *
 * and the loop does what can be done without waiting: makes tables, submits
 * queued batches, takes completions, asks for results.  If the session wants a
 * second level (levels.c), the query goes from READING to REGROUPING
 * (service_levels.c): the first table's groups become batches for a second table,
 * which are queued like a session's, and come back to it like them if they are
 * refused; then to
 * FINISHING and READING once more.  Devices work
 * asynchronously and make a descriptor readable when they have news, so the
 * loop sleeps on its latch and those descriptors.
 *
 * The CUDA device is in a library that this process alone loads
 * (cuda_library.c), when it starts.
 *
 * Devices start threads (CUDA's driver, the CPU device's workers), which must
 * never run PostgreSQL's signal handlers: all signals are blocked around
 * every piece of the loop that calls a device.
 *
 * A device error ends the queries that use the device, and then the process
 * with exit code 1 (any other would restart the cluster): a CUDA context that
 * has failed stays failed.  Whatever the reason for the exit, an exit callback
 * tells the sessions and frees the blocks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "common/pg_prng.h"
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

/* After an error of a GPU "auto" keeps to the CPU for this long. */
#define CUDA_PENALTY_MS 60000

/* The area that this process serves. */
static ChannelArea *area = NULL;
static uint32 generation;
static ServiceQuery queries[GPURHH_MAX_QUERIES];
static ServiceDevice devices[GPURHH_MAX_DEVICES];
static int	n_devices = 0;
static char no_gpu[GPURHH_MESSAGE_LEN]; /* why there is none, if there is none */
static WaitEventSet *wait_set = NULL;
static sigset_t all_signals;

/* An error of a device, to be reported once signals are let in again. */
static char device_error[GPURHH_MESSAGE_LEN] = "";
static bool cuda_error = false; /* it was a GPU's */

/* ---------- starting it with the server ---------- */

/*
 * Does this machine seem to have a GPU, and is the code for it installed?  The
 * postmaster asks, which must never call CUDA: its children would inherit what
 * that leaves behind.  So only files are looked for: those of the driver, of its
 * counterpart in Windows' subsystem for Linux, and of systems on a chip.
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
 * Has the server start the shared service, where the settings say so.
 *
 * It is started once.  If it ends, whatever the reason, the next query that
 * needs it starts another: a driver that crashes its process restarts the whole
 * cluster, and must not do so again and again.  A session that is quicker than
 * the server at the start does no harm, see claim_area().
 */
void
gpurhh_register_service(void)
{
	BackgroundWorker worker;

	/* pg_upgrade's servers run no queries worth a device */
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade ||
		gpurhh_service_start == SERVICE_START_OFF)
		return;
	if (gpurhh_service_start == SERVICE_START_AUTO &&
		(strcmp(gpurhh_device, "cpu") == 0 || !gpu_seems_here()))
		return;
	gpurhh_describe_service_worker(&worker, 0);
	RegisterBackgroundWorker(&worker);
}

/* ---------- devices ---------- */

/* Lists a kind's devices; where there are none, says why in none if that is given. */
static void
find_devices_of(const rhh_device_ops *ops, char *none)
{
	rhh_device_info infos[GPURHH_MAX_DEVICES];
	uint32		n = 0;
	rhh_error	err = {0};

	if (ops->enumerate(infos, lengthof(infos), &n, &err) != RHH_OK)
		n = 0;
	if (n == 0 && none != NULL)
		strlcpy(none, err.message, GPURHH_MESSAGE_LEN);
	for (uint32 i = 0; i < n && n_devices < GPURHH_MAX_DEVICES; i++)
	{
		ServiceDevice *dev = &devices[n_devices++];

		memset(dev, 0, sizeof(ServiceDevice));
		dev->ops = ops;
		dev->ordinal = infos[i].ordinal;
		dev->info = infos[i];
		if (infos[i].kind == RHH_KIND_CPU)
			strlcpy(dev->name, "cpu", sizeof(dev->name));
		else
			snprintf(dev->name, sizeof(dev->name), "cuda:%d",
					 infos[i].ordinal);
	}
}

/*
 * Lists the devices of all kinds, the CPU first.  Signals are blocked.  A CUDA
 * device that was installed and cannot be loaded is listed as the first GPU, to
 * tell why.
 */
static void
find_devices(void)
{
	const rhh_device_ops *cuda;
	char		why[GPURHH_MESSAGE_LEN];

	n_devices = 0;
	strlcpy(no_gpu, "gpurhh was built without CUDA", sizeof(no_gpu));
	find_devices_of(&rhh_cpu_ops, NULL);
	cuda = gpurhh_load_cuda(why);
	if (cuda != NULL)
		find_devices_of(cuda, no_gpu);
	else if (why[0] != '\0' && n_devices < GPURHH_MAX_DEVICES)
	{
		ServiceDevice *dev = &devices[n_devices++];

		memset(dev, 0, sizeof(ServiceDevice));
		strlcpy(dev->name, "cuda:0", sizeof(dev->name));
		dev->info.kind = RHH_KIND_CUDA;
		dev->info.state = RHH_STATE_UNUSABLE;
		strlcpy(dev->info.reason, why, sizeof(dev->info.reason));
		ereport(LOG,
				(errcode(ERRCODE_UNDEFINED_FILE),
				 errmsg("gpurhh cannot use GPUs: %s", why),
				 errhint("Install gpurhh and gpurhh_cuda of one build, with \"make install\".")));
	}
}

/* Puts what is known of the devices where sessions can read it. */
static void
publish_devices(void)
{
	for (int i = 0; i < n_devices; i++)
	{
		rhh_error	err = {0};

		if (devices[i].device != NULL)
			(void) devices[i].ops->info(devices[i].device, &devices[i].info,
										&err);
		else if (devices[i].info.kind == RHH_KIND_CPU)
		{
			rhh_device_info info;
			uint32		n = 0;

			/* free memory changes */
			if (devices[i].ops->enumerate(&info, 1, &n, &err) == RHH_OK && n == 1)
				devices[i].info = info;
		}
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	area->n_devices = n_devices;
	for (int i = 0; i < n_devices; i++)
	{
		area->devices[i] = devices[i].info;
		if (devices[i].problem[0] != '\0')
		{
			area->devices[i].state = RHH_STATE_UNUSABLE;
			strlcpy(area->devices[i].reason, devices[i].problem,
					sizeof(area->devices[i].reason));
		}
	}
	area->devices_seen = area->devices_wanted;
	LWLockRelease(&area->lock);
}

static void
rebuild_wait_set(void)
{
	if (wait_set != NULL)
		FreeWaitEventSet(wait_set);
	wait_set = gpurhh_create_wait_event_set(GPURHH_MAX_DEVICES + 2);
	AddWaitEventToSet(wait_set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(wait_set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
					  NULL);
	for (int i = 0; i < n_devices; i++)
	{
		if (devices[i].device != NULL)
			AddWaitEventToSet(wait_set, WL_SOCKET_READABLE,
							  devices[i].ops->event_fd(devices[i].device),
							  NULL, NULL);
	}
}

/* A private service's settings are its session's, the shared one's the files'. */
static int
memory_limit_mb(void)
{
	return area->shared ? gpurhh_device_memory_mb :
		area->settings.device_memory_mb;
}

static int
cpu_threads(void)
{
	return area->shared ? gpurhh_cpu_threads : area->settings.cpu_threads;
}

/* Opens the device if it is not; false, with dev->problem, if it cannot be. */
static bool
open_device(ServiceDevice *dev)
{
	rhh_device_config config = {0};
	rhh_error	err = {0};

	if (dev->device != NULL)
		return true;
	if (dev->info.state == RHH_STATE_UNUSABLE)
	{
		strlcpy(dev->problem, dev->info.reason, sizeof(dev->problem));
		return false;
	}
	config.memory_limit_bytes = (uint64) memory_limit_mb() * 1024 * 1024;
	config.cpu_threads = cpu_threads();
	if (dev->ops->open(dev->ordinal, &config, &dev->device, &err) != RHH_OK)
	{
		dev->device = NULL;
		strlcpy(dev->problem, err.message, sizeof(dev->problem));
		return false;
	}
	dev->problem[0] = '\0';
	/* where this fails copies are slower, and nothing else */
	(void) dev->ops->register_pool(dev->device, gpurhh_block_base(area, 0),
								   area->block_bytes * area->n_blocks, &err);
	rebuild_wait_set();
	return true;
}

/*
 * The device for a setting's value, open.  Where the GPU asked for cannot be
 * had the CPU device takes its place, and note says why.  NULL: none at all.
 */
static ServiceDevice *
choose_device(const char *wanted, char *note, Size note_len)
{
	bool		automatic = strcmp(wanted, "auto") == 0;
	bool		any_cuda = automatic || strcmp(wanted, "cuda") == 0;
	ServiceDevice *cpu = NULL;

	note[0] = '\0';
	for (int i = 0; i < n_devices; i++)
	{
		ServiceDevice *dev = &devices[i];

		if (dev->info.kind == RHH_KIND_CPU)
		{
			cpu = dev;
			continue;
		}
		if (!any_cuda && strcmp(wanted, dev->name) != 0)
			continue;
		/* who asks for no GPU need not hear of a library each time */
		if (automatic && dev->ops == NULL)
			continue;
		if (automatic && area->cuda_failed_at != 0 &&
			!TimestampDifferenceExceeds(area->cuda_failed_at,
										GetCurrentTimestamp(),
										CUDA_PENALTY_MS))
		{
			snprintf(note, note_len, "%s failed a short time ago", dev->name);
			continue;
		}
		if (open_device(dev))
			return dev;
		snprintf(note, note_len, "%s: %s", dev->name, dev->problem);
	}
	if (!automatic && note[0] == '\0' && strcmp(wanted, "cpu") != 0)
		snprintf(note, note_len, "there is no device %s: %s%s", wanted,
				 n_devices > 1 ? "the last one is " : no_gpu,
				 n_devices > 1 ? devices[n_devices - 1].name : "");
	if (cpu != NULL && open_device(cpu))
		return cpu;
	if (note[0] == '\0')
		snprintf(note, note_len, "%s", cpu ? cpu->problem : "no device");
	return NULL;
}

/* The device has failed, so the process will end; signals are blocked. */
static void
note_device_error(ServiceDevice *dev, const char *message)
{
	strlcpy(device_error, message, sizeof(device_error));
	cuda_error = dev->info.kind == RHH_KIND_CUDA;
}

/* ---------- queries ---------- */

/* Frees the blocks on a list.  The caller holds the lock. */
static void
free_blocks(BlockList *list)
{
	int			block;

	while ((block = gpurhh_block_pop(area, list)) >= 0)
		gpurhh_block_free(area, block);
}

/* Brings the area's view of a table's work up to date; lock held. */
static void
publish_stats(rhh_table_stats *before, const rhh_table_stats *now)
{
	ServiceStats *sum = &area->stats;

	sum->failed_slots += now->failed_slots - before->failed_slots;
	sum->rehashes += now->rehashes - before->rehashes;
	sum->bytes_uploaded += now->uploaded_bytes - before->uploaded_bytes;
	sum->upload_ns += now->upload_ns - before->upload_ns;
	sum->kernel_ns += now->kernel_ns - before->kernel_ns;
	sum->extract_ns += now->extract_ns - before->extract_ns;
	*before = *now;
}

/* Ends a query with an error that its session raises; lock held. */
static void
fail_query(ChannelQuery *query, const char *message)
{
	if (query->failed)
		return;
	query->failed = true;
	strlcpy(query->message, message, GPURHH_MESSAGE_LEN);
	ConditionVariableBroadcast(&query->news);
}

/* The same where its device has not done what it was asked for. */
void
gpurhh_service_fail(ServiceQuery *sq, ChannelQuery *query, rhh_status status,
					const rhh_error *err)
{
	if (status == RHH_DEVICE_ERROR)
		note_device_error(sq->device, err->message);
	fail_query(query, err->message);
}

/*
 * A table for a spec, whose hash nobody else knows: so nobody can choose keys that
 * collide, and have the device busy with them while others wait.
 */
rhh_status
gpurhh_service_make_table(ServiceQuery *sq, const rhh_table_spec *wanted,
						  rhh_table **table, rhh_error *err)
{
	rhh_table_spec spec = *wanted;

	spec.hash_seed = pg_prng_uint64(&pg_global_prng_state);
	return sq->device->ops->table_create(sq->device->device, &spec, table, err);
}

/* A new query: makes its table, or refuses it.  Signals are blocked. */
static void
start_query(int q)
{
	ServiceQuery *sq = &queries[q];
	ChannelQuery *query = &area->queries[q];
	char		note[GPURHH_MESSAGE_LEN];
	rhh_error	err = {0};

	memset(sq, 0, sizeof(ServiceQuery));
	sq->result_block = -1;
	sq->state = TABLE_REFUSED;
	sq->device = choose_device(query->device, note, sizeof(note));
	if (sq->device != NULL)
	{
		rhh_status	status;

		status = gpurhh_service_make_table(sq, &query->spec, &sq->table, &err);
		if (status == RHH_OK)
			sq->state = TABLE_OPEN;
		else
		{
			sq->table = NULL;
			strlcpy(note, err.message, sizeof(note));
			if (status == RHH_DEVICE_ERROR)
				note_device_error(sq->device, err.message);
		}
	}

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	strlcpy(query->message, note, GPURHH_MESSAGE_LEN);
	strlcpy(query->used_device,
			sq->state == TABLE_OPEN ? sq->device->name : "host",
			sizeof(query->used_device));
	query->refused = sq->state == TABLE_REFUSED;
	if (device_error[0] != '\0')
		fail_query(query, device_error);
	LWLockRelease(&area->lock);
}

/* Hands a batch back, wholly or with its failed rows marked; lock held. */
static void
return_block(ChannelQuery *query, int block)
{
	gpurhh_block_push(area, &query->returned, block);
	ConditionVariableBroadcast(&query->news);
}

/* Hands queued batches to the device, or back to the session. */
static bool
submit_batches(int q)
{
	ServiceQuery *sq = &queries[q];
	ChannelQuery *query = &area->queries[q];
	bool		progress = false;

	for (;;)
	{
		int			block;
		rhh_batch	batch;
		rhh_error	err = {0};
		rhh_status	status;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		block = query->queued.head;
		if (block >= 0 && sq->state == TABLE_REFUSED)
		{
			(void) gpurhh_block_pop(area, &query->queued);
			area->blocks[block].refused = true;
			return_block(query, block);
		}
		LWLockRelease(&area->lock);
		if (block < 0)
			return progress;
		progress = true;
		if (sq->state == TABLE_REFUSED)
			continue;

		batch = area->blocks[block].batch;
		batch.base = (uint8_t *) gpurhh_block_base(area, block);
		status = sq->device->ops->table_submit(sq->table, &batch,
											   (uint64) block, &err);
		if (status == RHH_BUSY)
			return false;
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		if (status == RHH_OK)
		{
			(void) gpurhh_block_pop(area, &query->queued);
			sq->in_flight++;
		}
		else
		{
			gpurhh_service_fail(sq, query, status, &err);
			free_blocks(&query->queued);
		}
		LWLockRelease(&area->lock);
		if (status != RHH_OK)
			return true;
	}
}

/* All batches are in: lets the table be reconciled, once they are through. */
static bool
finish_query(int q)
{
	ServiceQuery *sq = &queries[q];
	ChannelQuery *query = &area->queries[q];
	rhh_error	err = {0};
	rhh_status	status = RHH_OK;

	if (sq->in_flight > 0 || query->queued.head >= 0)
		return false;
	if (sq->state != TABLE_REFUSED)
		status = sq->device->ops->table_finish(sq->table, &err);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (sq->state == TABLE_REFUSED)
	{
		query->finished = true;
		query->all_extracted = true;
		ConditionVariableBroadcast(&query->news);
	}
	else if (status == RHH_OK)
		sq->in_flight++;
	else
		gpurhh_service_fail(sq, query, status, &err);
	LWLockRelease(&area->lock);
	sq->state = TABLE_FINISHING;
	return true;
}

/* ---------- results, the end ---------- */

/*
 * Fetches the next groups into a free block, if a participant waits for them,
 * or, ahead of need, while there are plenty of blocks and no more results lie
 * ready than there are participants.  Those may rest, so they take no more than
 * half of the session's share of the pool: the rest is for batches.
 */
static bool
extract_groups(int q)
{
	ServiceQuery *sq = &queries[q];
	ChannelQuery *query = &area->queries[q];
	rhh_error	err = {0};
	rhh_status	status;
	bool		needed;
	int			block = -1;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	needed = query->n_fetching > query->n_results;
	if (needed ||
		(query->n_results < query->n_participants &&
		 area->n_free > area->n_blocks / 2 + 1 &&
		 (!area->shared ||
		  2 * gpurhh_session_keeps(area, query) <
		  gpurhh_session_share(area, query))))
	{
		block = gpurhh_block_take(area, BLOCK_SERVICE);
		if (block >= 0)
			sq->result_block = block;
		else
			area->service_wants_block = true;
	}
	LWLockRelease(&area->lock);
	if (block < 0)
		return false;			/* the session's wish or a freed block wakes us */

	sq->result.words = (uint64_t *) gpurhh_block_base(area, block);
	sq->result.capacity_groups = area->block_bytes / sizeof(uint64) /
		rhh_result_words(gpurhh_result_spec(query, sq->first != NULL));
	status = sq->device->ops->table_extract(sq->first ? sq->first : sq->table,
											&sq->result, 0, &err);
	if (status == RHH_OK)
	{
		sq->in_flight++;
		return true;
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (status == RHH_DEVICE_ERROR)
		note_device_error(sq->device, err.message);
	fail_query(query, err.message);
	LWLockRelease(&area->lock);
	return true;
}

/*
 * The session has let go of the query: stops the device's work for it, and
 * once nothing is in flight frees the table, the blocks and the slot.
 */
static bool
drop_query(int q)
{
	ServiceQuery *sq = &queries[q];
	ChannelQuery *query = &area->queries[q];

	if (sq->in_flight > 0)
	{
		if (!sq->cancelled)
		{
			sq->cancelled = true;
			sq->device->ops->table_cancel(sq->table);
			if (sq->first != NULL)
				sq->device->ops->table_cancel(sq->first);
			return true;
		}
		return false;
	}
	if (sq->table != NULL)
		sq->device->ops->table_destroy(sq->table);
	if (sq->first != NULL)
		sq->device->ops->table_destroy(sq->first);
	gpurhh_service_end_regroup(sq);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	free_blocks(&query->queued);
	free_blocks(&query->returned);
	free_blocks(&query->results);
	/* an extraction that came to nothing */
	if (sq->state != TABLE_NONE && sq->result_block >= 0)
		gpurhh_block_free(area, sq->result_block);
	query->state = QUERY_FREE;
	LWLockRelease(&area->lock);
	memset(sq, 0, sizeof(ServiceQuery));
	return true;
}

/* Does what can be done for a query now; true if that was anything. */
static bool
advance_query(int q)
{
	ServiceQuery *sq = &queries[q];
	ChannelQuery *query = &area->queries[q];
	QueryState	state;
	bool		ours;
	bool		input_done;
	bool		failed;
	bool		all_extracted;
	QueryRegroup wanted;
	bool		progress = false;

	/*
	 * Most slots are free, and are passed by without the lock.  One that is
	 * claimed just now may be missed, but not for longer than this round: the
	 * state is written before SetLatch() and read after ResetLatch(), and each
	 * has a memory barrier between the latch and what it tells of.  So either
	 * we see the new state, or the latch stays set and there is another round.
	 * A state is an aligned word and zero is "free", so no other value is seen
	 * while the slot is being filled; whatever is not free is looked at below.
	 */
	if (*(volatile QueryState *) &query->state == QUERY_FREE)
		return false;

	LWLockAcquire(&area->lock, LW_SHARED);
	state = query->state;
	ours = query->generation == generation;
	input_done = query->input_done;
	failed = query->failed;
	all_extracted = query->all_extracted;
	wanted = query->regroup;
	LWLockRelease(&area->lock);

	if (state == QUERY_FREE || !ours)
		return false;
	if (state == QUERY_RELEASED)
		return drop_query(q);
	if (failed)
		return false;
	if (sq->state == TABLE_NONE)
	{
		start_query(q);
		progress = true;
	}
	if (sq->state == TABLE_OPEN || sq->state == TABLE_REFUSED)
	{
		if (submit_batches(q))
			progress = true;
		if (input_done && finish_query(q))
			progress = true;
	}
	if (sq->state == TABLE_REGROUPING)
	{
		if (gpurhh_service_regroup(area, sq, query))
			progress = true;
		if (submit_batches(q))
			progress = true;
		if (sq->regroup == NULL && finish_query(q))
			progress = true;
	}
	if (sq->state == TABLE_READING && sq->in_flight == 0)
	{
		if (wanted == REGROUP_WANTED)
		{
			gpurhh_service_start_regroup(area, sq, query);
			progress = true;
		}
		else if (wanted != REGROUP_UNDECIDED && !all_extracted &&
				 extract_groups(q))
			progress = true;
	}
	return progress;
}

/* A device's news.  Signals are blocked. */
static bool
poll_device(ServiceDevice *dev)
{
	rhh_event	events[64];
	uint32		n = 0;
	rhh_error	err = {0};

	if (dev->device == NULL)
		return false;
	if (dev->ops->poll(dev->device, events, lengthof(events), &n,
					   &err) == RHH_DEVICE_ERROR)
		note_device_error(dev, err.message);

	for (uint32 i = 0; i < n; i++)
	{
		rhh_event  *event = &events[i];
		rhh_table_stats stats;
		ServiceQuery *sq = NULL;
		ChannelQuery *query;
		bool		of_second;
		int			q;

		for (q = 0; q < GPURHH_MAX_QUERIES; q++)
		{
			if ((queries[q].table == event->table && queries[q].table != NULL) ||
				(queries[q].first == event->table && queries[q].first != NULL))
			{
				sq = &queries[q];
				break;
			}
		}
		if (sq == NULL)
			continue;			/* cannot happen */
		query = &area->queries[q];
		of_second = event->table == sq->table &&
			query->regroup == REGROUP_ON_DEVICE;
		sq->in_flight--;
		/* some devices add up what many threads did */
		dev->ops->table_stats(event->table, &stats);

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		switch (event->kind)
		{
			case RHH_EVENT_BATCH:
				{
					if (event->status == RHH_OK && event->n_failed > 0 &&
						query->state == QUERY_ACTIVE)
					{
						return_block(query, event->tag);
					}
					else
					{
						gpurhh_block_done(area, query, event->tag);
					}
					break;
				}
			case RHH_EVENT_FINISH:
				if (event->status != RHH_OK)
					break;
				sq->state = TABLE_READING;
				query->finished = true;
				ConditionVariableBroadcast(&query->news);
				break;
			case RHH_EVENT_EXTRACT:
				if (sq->state == TABLE_REGROUPING)
				{
					gpurhh_service_regroup_read(sq, event->status);
					break;
				}
				if (event->status != RHH_OK)
					break;
				area->blocks[sq->result_block].n_groups = sq->result.n_groups;
				area->blocks[sq->result_block].needs_merge =
					sq->result.needs_merge;
				area->blocks[sq->result_block].first_level = sq->first != NULL;
				gpurhh_block_push(area, &query->results, sq->result_block);
				sq->result_block = -1;
				query->n_results++;
				query->all_extracted = sq->result.last && sq->first == NULL;
				ConditionVariableBroadcast(&query->news);
				break;
		}
		if (event->status != RHH_OK && query->state == QUERY_ACTIVE)
			fail_query(query, event->status == RHH_DEVICE_ERROR &&
					   err.message[0] != '\0' ? err.message :
					   "the device gave up");
		else
			publish_stats(of_second ? &query->second_stats : &query->stats,
						  &stats);
		LWLockRelease(&area->lock);

		/* the second level's groups are next */
		if (event->kind == RHH_EVENT_EXTRACT && event->status == RHH_OK &&
			sq->state == TABLE_READING && sq->first != NULL && sq->result.last)
		{
			dev->ops->table_destroy(sq->first);
			sq->first = NULL;
		}
	}
	return n > 0;
}

/* ---------- the process ---------- */

/* Is this service to run all the time?  The files may change their mind. */
static bool
keeps_running(void)
{
	if (!area->shared || gpurhh_service_start == SERVICE_START_OFF)
		return false;
	if (gpurhh_service_start == SERVICE_START_ON)
		return true;
	for (int i = 0; i < n_devices; i++)
	{
		if (devices[i].info.kind == RHH_KIND_CUDA &&
			devices[i].info.state != RHH_STATE_UNUSABLE)
			return strcmp(gpurhh_device, "cpu") != 0;
	}
	return false;
}

/*
 * Tells the log what there is to work with: once after the server's start, as a
 * service that ends when idle may start often, and one of a session's own does.
 */
static void
log_start(void)
{
	StringInfoData found;
	const char *in_use = NULL;

	initStringInfo(&found);
	for (int i = 0; i < n_devices; i++)
	{
		const ServiceDevice *dev = &devices[i];
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
	if (n_devices == 1)
		appendStringInfo(&found, " and no GPU: %s", no_gpu);
	ereport(area->shared && generation == 1 ? LOG : DEBUG1,
			(errmsg("gpurhh %s device service is ready%s%s", GPURHH_VERSION,
					in_use ? " and has opened " : "", in_use ? in_use : ""),
			 errdetail("It found %s. The pool has %d blocks of %zu kB. gpurhh.device_memory is %d MB, gpurhh.cpu_threads is %d.",
					   found.data, area->n_blocks, area->block_bytes / 1024,
					   memory_limit_mb(), cpu_threads())));
	pfree(found.data);
}

/*
 * Whatever ends the service: stops the devices, tells the sessions, frees the
 * blocks that the service holds.  Blocks that sessions fill or read stay
 * theirs; they free them when they see the failure.
 */
static void
service_exit(int code, Datum arg)
{
	sigset_t	old;

	/* after this no thread and no copy touches the pool */
	sigprocmask(SIG_BLOCK, &all_signals, &old);
	for (int i = 0; i < n_devices; i++)
	{
		if (devices[i].device != NULL)
			devices[i].ops->close(devices[i].device);
		devices[i].device = NULL;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		ChannelQuery *query = &area->queries[q];

		if (query->state == QUERY_FREE || query->generation != generation)
			continue;
		query->queued.head = -1;
		query->returned.head = -1;
		query->results.head = -1;
		if (query->state == QUERY_ACTIVE)
			fail_query(query, device_error[0] != '\0' ? device_error :
					   "the device service ended");
		else
			query->state = QUERY_FREE;
	}
	/* unless closing the devices took so long that another has been started */
	if (area->generation == generation)
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

/* Makes this process the area's service; false if another one is. */
static bool
claim_area(void)
{
	bool		claimed = false;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (area->service_state != SERVICE_RUNNING && !area->owner_gone)
	{
		claimed = true;
		generation = ++area->generation;
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
 * Idle for long enough?  Then no session may open a query any more, and the
 * process is on its way out.
 */
static bool
retire_if_idle(TimestampTz *idle_since)
{
	int			timeout_s = area->shared ? gpurhh_service_idle_timeout_s :
		area->settings.idle_timeout_s;
	TimestampTz now = GetCurrentTimestamp();
	bool		retire = false;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		if (area->queries[q].state != QUERY_FREE &&
			area->queries[q].generation == generation)
		{
			*idle_since = 0;
			break;
		}
		if (q == GPURHH_MAX_QUERIES - 1 && *idle_since == 0)
			*idle_since = now;
	}
	if (area->owner_gone)
		retire = true;
	else if (timeout_s > 0 && *idle_since != 0 && !keeps_running() &&
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

/* One piece of work with the devices; true if there may be more at once. */
static bool
work(void)
{
	bool		progress = false;
	sigset_t	old;

	sigprocmask(SIG_BLOCK, &all_signals, &old);
	if (area->devices_wanted != area->devices_seen)
		publish_devices();
	for (int i = 0; i < n_devices && device_error[0] == '\0'; i++)
		progress |= poll_device(&devices[i]);
	for (int q = 0; q < GPURHH_MAX_QUERIES && device_error[0] == '\0'; q++)
		progress |= advance_query(q);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return progress;
}

void
gpurhh_service_main(Datum main_arg)
{
	dsm_handle	handle = DatumGetUInt32(main_arg);
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
	if (!claim_area())
		proc_exit(0);			/* two were started at the same time */

	sigfillset(&all_signals);
	before_shmem_exit(service_exit, (Datum) 0);
	sigprocmask(SIG_BLOCK, &all_signals, &old);
	find_devices();
	rebuild_wait_set();
	/* the first query then need not wait for that */
	if (keeps_running())
	{
		char		note[GPURHH_MESSAGE_LEN];

		(void) choose_device(gpurhh_device, note, sizeof(note));
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	publish_devices();
	log_start();

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
		if (work())
			continue;
		if (device_error[0] != '\0')
		{
			LWLockAcquire(&area->lock, LW_EXCLUSIVE);
			area->stats.device_errors++;
			if (cuda_error)
				area->cuda_failed_at = GetCurrentTimestamp();
			LWLockRelease(&area->lock);
			ereport(LOG,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("gpurhh device service ends after a device error: %s",
							device_error)));
			proc_exit(1);
		}
		if (retire_if_idle(&idle_since))
			proc_exit(0);
		(void) WaitEventSetWait(wait_set, 1000, occurred, lengthof(occurred),
								PG_WAIT_EXTENSION);
	}
}
