/*-------------------------------------------------------------------------
 *
 * channel.c
 *		Requests and batches between sessions and the device service.
 *
 * There is one area in shared memory for each service: a lock, a table of
 * queries, and the pool, cut into blocks of one size.  With
 * shared_preload_libraries the area is in main shared memory and all sessions
 * share its service; otherwise a session makes an area of its own in a DSM
 * segment when it first needs one, and keeps it until it ends.
 *
 * A query's life, session's side:
 *
 *		open -> { acquire -> fill -> submit }* -> end_input -> wait_finished
 *			 -> fetch* -> close
 *
 * Batches that the device refused, wholly or some rows of them, come back
 * whenever the session acquires or waits: it finishes those rows itself
 * (host_table.c) and gives the block back.
 *
 * Nobody holds a block while waiting for another one, but for a session whose
 * child plan is itself a user of the pool; so a session that gets no block for
 * LATE_MS works without one.  The last free block is kept for results that a
 * session waits for, and copies out at once; waiting for those is short.
 *
 * Lifetime.  A Channel is released by a reset callback of the memory context
 * it was opened for, so that an error, a cancel and a closed cursor release it
 * as a normal end does; what a terminated backend leaves is released when it
 * exits.  If the service still works for the query, the query's slot and
 * blocks are freed by the service, else by the session.
 *
 * Wakeups go through latches: the service's when there is something to do, the
 * owner's when something it may wait for has happened.  Every wait is
 * interruptible.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include <sys/statvfs.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/dsm.h"
#include "storage/dsm_impl.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

/* A session waits this long for a block before it does without. */
#define LATE_MS 1000

/* One query's blocks in use at a time: enough to keep a device busy. */
#define MAX_OUTSTANDING 16

/* A start that takes longer than this is taken for failed. */
#define START_TIMEOUT_MS 30000

struct Channel
{
	dlist_node	node;			/* in open_channels */
	ChannelArea *area;
	int			index;			/* of the query */
	int			filling;		/* block being filled, or -1 */
	int			returned;		/* block being finished, or -1 */
	bool		open;
	MemoryContextCallback callback;
};

static ChannelArea *shared_area = NULL;
static ChannelArea *private_area = NULL;
static dsm_segment *private_segment = NULL;

static dlist_head open_channels = DLIST_STATIC_INIT(open_channels);
static bool exit_callback_registered = false;

/* As main shared memory was asked for; the setting may change later. */
static Size shared_pool_bytes = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* ---------- the area ---------- */

static void
pool_shape(Size pool_bytes, Size *block_bytes, int *n_blocks)
{
	/* at least two blocks; sixteen or more where the blocks stay useful */
	*block_bytes = TYPEALIGN_DOWN(4096, pool_bytes / 16);
	*block_bytes = Max(*block_bytes, GPURHH_MIN_BLOCK_BYTES);
	*block_bytes = Min(*block_bytes, GPURHH_MAX_BLOCK_BYTES);
	*n_blocks = Max(2, Min(pool_bytes / *block_bytes, GPURHH_MAX_BLOCKS));
}

static Size
header_bytes(int n_blocks)
{
	/* blocks start on a page, as devices pin whole pages */
	return TYPEALIGN(4096, offsetof(ChannelArea, blocks) +
					 sizeof(ChannelBlock) * n_blocks);
}

/* The area's size for a pool of about this size. */
Size
gpurhh_channel_area_bytes(Size pool_bytes)
{
	Size		block_bytes;
	int			n_blocks;

	pool_shape(pool_bytes, &block_bytes, &n_blocks);
	/* a page more: the start of main shared memory's chunk is not aligned */
	return header_bytes(n_blocks) + block_bytes * n_blocks + 4096;
}

void
gpurhh_channel_area_init(ChannelArea *area, Size pool_bytes, bool shared)
{
	Size		header;

	memset(area, 0, sizeof(ChannelArea));
	area->magic = GPURHH_AREA_MAGIC;

	/*
	 * Numbers of tranches are never used again, too few for one in every
	 * session.  A private area's lock is seldom waited for, under any name.
	 */
	area->tranche_id = shared ? LWLockNewTrancheId() :
		LWTRANCHE_FIRST_USER_DEFINED;
	LWLockInitialize(&area->lock, area->tranche_id);
	area->shared = shared;
	area->service_state = SERVICE_STOPPED;
	pool_shape(pool_bytes, &area->block_bytes, &area->n_blocks);
	header = header_bytes(area->n_blocks);
	area->pool_offset =
		TYPEALIGN(4096, (uintptr_t) area + header) - (uintptr_t) area;
	area->free_head = -1;
	for (int i = area->n_blocks - 1; i >= 0; i--)
	{
		area->blocks[i].holder = BLOCK_NOBODY;
		area->blocks[i].next = area->free_head;
		area->free_head = i;
	}
	area->n_free = area->n_blocks;
}

char *
gpurhh_block_base(ChannelArea *area, int block)
{
	return (char *) area + area->pool_offset + area->block_bytes * block;
}

void
gpurhh_block_push(ChannelArea *area, BlockList *list, int block)
{
	area->blocks[block].next = -1;
	if (list->head < 0)
		list->head = block;
	else
		area->blocks[list->tail].next = block;
	list->tail = block;
}

/* -1: the list is empty. */
int
gpurhh_block_pop(ChannelArea *area, BlockList *list)
{
	int			block = list->head;

	if (block >= 0)
		list->head = area->blocks[block].next;
	return block;
}

/* Frees a block and wakes the sessions that wait for one. */
void
gpurhh_block_free(ChannelArea *area, int block)
{
	area->blocks[block].holder = BLOCK_NOBODY;
	area->blocks[block].next = area->free_head;
	area->free_head = block;
	area->n_free++;
	if (area->service_wants_block && area->service_latch != NULL)
	{
		area->service_wants_block = false;
		SetLatch(area->service_latch);
	}
	for (int i = 0; i < GPURHH_MAX_QUERIES; i++)
	{
		ChannelQuery *query = &area->queries[i];

		if (query->state == QUERY_ACTIVE && query->wants_block)
		{
			query->wants_block = false;
			SetLatch(query->owner_latch);
		}
	}
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	shared_pool_bytes = (Size) gpurhh_pool_size_kb * 1024;
	RequestAddinShmemSpace(gpurhh_channel_area_bytes(shared_pool_bytes));
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared_area = ShmemInitStruct("gpurhh channel",
								  gpurhh_channel_area_bytes(shared_pool_bytes),
								  &found);
	if (!found)
		gpurhh_channel_area_init(shared_area, shared_pool_bytes, true);
	LWLockRegisterTranche(shared_area->tranche_id, "gpurhh");
	LWLockRelease(AddinShmemInitLock);
}

void
gpurhh_init_channel(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

/* The area that all sessions share, or NULL without preload. */
ChannelArea *
gpurhh_shared_area(void)
{
	return shared_area;
}

/* The area that this session uses, or NULL if it has none yet. */
ChannelArea *
gpurhh_channel_peek(void)
{
	return shared_area ? shared_area : private_area;
}

/* The private service sees this and ends. */
static void
private_owner_exit(int code, Datum arg)
{
	ChannelArea *area = private_area;

	if (area == NULL)
		return;
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	area->owner_gone = true;
	if (area->service_latch != NULL)
		SetLatch(area->service_latch);
	LWLockRelease(&area->lock);
}

/*
 * How much of the wish there is room for; 0: not even for the smallest pool.
 * Containers often have a /dev/shm of 64 MB, and failing to grow it would raise
 * an error.
 */
static Size
private_pool_bytes(void)
{
	Size		pool_bytes = (Size) gpurhh_pool_size_kb * 1024;
	Size		least = 2 * GPURHH_MIN_BLOCK_BYTES;
	struct statvfs fs;

	if (dynamic_shared_memory_type == DSM_IMPL_POSIX &&
		statvfs("/dev/shm", &fs) == 0)
	{
		Size		room = (Size) fs.f_bavail * fs.f_frsize;

		/* twice: other sessions look at the same time */
		if (room < 2 * gpurhh_channel_area_bytes(least))
			return 0;
		pool_bytes = Min(pool_bytes, room / 4);
	}
	return Max(pool_bytes, least);
}

/*
 * The area that this session uses, made if there is none.  NULL, with the
 * reason: there is no room for one.
 */
ChannelArea *
gpurhh_channel_attach(const char **why)
{
	if (shared_area != NULL)
		return shared_area;
	if (private_area == NULL)
	{
		Size		pool_bytes = private_pool_bytes();
		ResourceOwner owner = CurrentResourceOwner;

		if (pool_bytes == 0)
		{
			*why = "there is no room in /dev/shm";
			return NULL;
		}
		/* the segment belongs to the session, not to a query */
		CurrentResourceOwner = NULL;
		PG_TRY();
		{
			private_segment =
				dsm_create(gpurhh_channel_area_bytes(pool_bytes),
						   DSM_CREATE_NULL_IF_MAXSEGMENTS);
		}
		PG_FINALLY();
		{
			CurrentResourceOwner = owner;
		}
		PG_END_TRY();
		if (private_segment == NULL)
		{
			*why = "no dynamic shared memory segment is free";
			return NULL;
		}
		gpurhh_channel_area_init(dsm_segment_address(private_segment),
								 pool_bytes, false);
		private_area = dsm_segment_address(private_segment);
		before_shmem_exit(private_owner_exit, (Datum) 0);
	}
	return private_area;
}

/*
 * Sees to it that the area's service runs, and waits until it does.  False,
 * with the reason: it cannot be started.
 */
bool
gpurhh_ensure_service(ChannelArea *area, const char **why)
{
	TimestampTz began = GetCurrentTimestamp();

	for (;;)
	{
		bool		start = false;
		TimestampTz now = GetCurrentTimestamp();

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		if (area->service_state == SERVICE_RUNNING)
		{
			LWLockRelease(&area->lock);
			return true;
		}
		if (area->service_state == SERVICE_STOPPED ||
			now - area->starting_since > START_TIMEOUT_MS * INT64CONST(1000))
		{
			area->service_state = SERVICE_STARTING;
			area->starting_since = now;
			start = true;
			if (!area->shared)
			{
				area->settings.device_memory_mb = gpurhh_device_memory_mb;
				area->settings.cpu_threads = gpurhh_cpu_threads;
				area->settings.idle_timeout_s = gpurhh_service_idle_timeout_s;
			}
		}
		LWLockRelease(&area->lock);

		if (start)
		{
			uint32		handle = area->shared ? 0 :
				dsm_segment_handle(private_segment);

			if (!gpurhh_start_service_worker(area, handle, why))
			{
				LWLockAcquire(&area->lock, LW_EXCLUSIVE);
				if (area->service_state == SERVICE_STARTING)
					area->service_state = SERVICE_STOPPED;
				LWLockRelease(&area->lock);
				return false;
			}
			continue;
		}
		if (TimestampDifferenceExceeds(began, now, START_TIMEOUT_MS))
		{
			*why = "the device service did not start in time";
			return false;
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 2, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

/* Has the service look at its devices again, and waits for it. */
void
gpurhh_refresh_devices(ChannelArea *area)
{
	int			wanted;
	uint32		generation;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	wanted = ++area->devices_wanted;
	generation = area->generation;
	if (area->service_latch != NULL)
		SetLatch(area->service_latch);
	LWLockRelease(&area->lock);
	for (;;)
	{
		bool		done;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		done = area->devices_seen - wanted >= 0 ||
			area->generation != generation ||
			area->service_state != SERVICE_RUNNING;
		LWLockRelease(&area->lock);
		if (done)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 5, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

/* ---------- a query, session's side ---------- */

static ChannelQuery *
channel_query(Channel *channel)
{
	return &channel->area->queries[channel->index];
}

/* Caller holds the lock. */
static void
wake_service(ChannelArea *area)
{
	if (area->service_latch != NULL)
		SetLatch(area->service_latch);
}

static void
release_channel(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	if (!channel->open)
		return;
	channel->open = false;
	dlist_delete(&channel->node);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (channel->filling >= 0)
		gpurhh_block_free(area, channel->filling);
	if (channel->returned >= 0)
	{
		gpurhh_block_free(area, channel->returned);
		query->n_outstanding--;
	}
	query->wants_block = false;
	if (area->service_state == SERVICE_RUNNING &&
		query->generation == area->generation)
	{
		query->state = QUERY_RELEASED;
		wake_service(area);
	}
	else
	{
		/* its service is gone, and freed what it had of the query */
		if (query->result_block >= 0)
			gpurhh_block_free(area, query->result_block);
		query->state = QUERY_FREE;
	}
	LWLockRelease(&area->lock);
}

static void
channel_reset_callback(void *arg)
{
	release_channel(arg);
}

/* Whatever a terminated session still had open. */
static void
release_all_channels(int code, Datum arg)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &open_channels)
		release_channel(dlist_container(Channel, node, iter.cur));
}

/*
 * Opens a query that lives until it is closed or the context is reset.  NULL,
 * with the reason: there is no service to be had, or too many queries.
 */
Channel *
gpurhh_channel_open(ChannelArea *area, const rhh_table_spec *spec,
					MemoryContext context, const char **why)
{
	Channel    *channel;
	ChannelQuery *query = NULL;

	if (!exit_callback_registered)
	{
		before_shmem_exit(release_all_channels, (Datum) 0);
		exit_callback_registered = true;
	}
	channel = MemoryContextAllocZero(context, sizeof(Channel));
	channel->area = area;
	channel->filling = -1;
	channel->returned = -1;

	while (query == NULL)
	{
		bool		full = false;

		if (!gpurhh_ensure_service(area, why))
			return NULL;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		/* it may have ended meanwhile: then start it again */
		if (area->service_state == SERVICE_RUNNING)
		{
			full = true;
			for (int i = 0; i < GPURHH_MAX_QUERIES; i++)
			{
				if (area->queries[i].state != QUERY_FREE)
					continue;
				channel->index = i;
				query = &area->queries[i];
				memset(query, 0, sizeof(ChannelQuery));
				query->state = QUERY_ACTIVE;
				query->generation = area->generation;
				query->owner_latch = MyLatch;
				strlcpy(query->device, gpurhh_device, sizeof(query->device));
				query->spec = *spec;
				query->queued.head = -1;
				query->returned.head = -1;
				query->result_block = -1;
				area->stats.queries++;
				wake_service(area);
				break;
			}
		}
		LWLockRelease(&area->lock);
		if (query == NULL && full)
		{
			*why = "too many queries use the device service";
			return NULL;
		}
	}

	channel->open = true;
	dlist_push_head(&open_channels, &channel->node);
	channel->callback.func = channel_reset_callback;
	channel->callback.arg = channel;
	MemoryContextRegisterResetCallback(context, &channel->callback);
	return channel;
}

Size
gpurhh_channel_block_bytes(Channel *channel)
{
	return channel->area->block_bytes;
}

/* Raises the error with which the service ended the query, if it did. */
static void
check_failure(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		failed;
	char		message[GPURHH_MESSAGE_LEN];

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	failed = query->failed;
	if (failed)
		memcpy(message, query->message, sizeof(message));
	LWLockRelease(&area->lock);
	if (!failed)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("could not finish the query on the device"),
			 errdetail("The device service reported: %s.", message),
			 errhint("Run the query again. If the error stays, set enable_gpu_hashagg to off or gpurhh.device to \"cpu\".")));
}

/* Waits for news of any kind; at most timeout_ms. */
static void
wait_for_news(Channel *channel, long timeout_ms)
{
	/* it may have failed long ago, and have woken us then */
	check_failure(channel);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 timeout_ms, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	check_failure(channel);
}

/*
 * Are all blocks that are in use held by this session's own queries, which
 * wait for the one that asks?  Then waiting is in vain.
 */
static bool
only_own_blocks(ChannelArea *area)
{
	int			n_own = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &open_channels)
	{
		if (dlist_container(Channel, node, iter.cur)->filling >= 0)
			n_own++;
	}
	return area->n_blocks - area->n_free == n_own;
}

/*
 * A block to fill (*base), or, before that, news of returned batches, which
 * the caller takes with gpurhh_channel_take_returned().  Where nothing of the
 * query's own is under way, waits for at most LATE_MS, or not at all.
 */
ChannelBlockResult
gpurhh_channel_acquire(Channel *channel, bool wait, char **base)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	TimestampTz began = 0;

	Assert(channel->filling < 0);
	for (;;)
	{
		bool		returned;
		bool		own;
		bool		in_vain;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		returned = query->returned.head >= 0;
		query->wants_block = false;
		if (!returned && area->n_free > 1 && !query->failed &&
			query->n_outstanding < MAX_OUTSTANDING)
		{
			channel->filling = area->free_head;
			area->free_head = area->blocks[channel->filling].next;
			area->n_free--;
			area->blocks[channel->filling].holder = BLOCK_SESSION;
		}
		else if (!returned)
			query->wants_block = true;
		LWLockRelease(&area->lock);

		if (returned)
			return CHANNEL_RETURNED;
		if (channel->filling >= 0)
		{
			*base = gpurhh_block_base(area, channel->filling);
			return CHANNEL_BLOCK;
		}
		if (began == 0)
			began = GetCurrentTimestamp();
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		/* with work of its own under way, a block will come back */
		own = query->n_outstanding > 0;
		in_vain = only_own_blocks(area);
		LWLockRelease(&area->lock);
		if (!own &&
			(!wait || in_vain ||
			 TimestampDifferenceExceeds(began, GetCurrentTimestamp(), LATE_MS)))
		{
			check_failure(channel);
			return CHANNEL_LATE;
		}
		wait_for_news(channel, 100);
	}
}

/* Hands the block that was acquired last to the service. */
void
gpurhh_channel_submit(Channel *channel, const rhh_batch *batch)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	ChannelBlock *block = &area->blocks[channel->filling];

	block->batch = *batch;
	block->refused = false;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (!query->failed)
	{
		gpurhh_block_push(area, &query->queued, channel->filling);
		block->holder = BLOCK_SERVICE;
		query->n_outstanding++;
		area->stats.rows_fed += batch->n_rows;
		channel->filling = -1;
		wake_service(area);
	}
	LWLockRelease(&area->lock);
	check_failure(channel);
}

/*
 * The next batch that came back, if any: its rows marked as failed, or all of
 * them if *refused, are the caller's to finish.  The caller then gives the
 * block back.
 */
bool
gpurhh_channel_take_returned(Channel *channel, rhh_batch *batch, bool *refused)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	Assert(channel->returned < 0);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	channel->returned = gpurhh_block_pop(area, &query->returned);
	if (channel->returned >= 0)
		area->blocks[channel->returned].holder = BLOCK_SESSION;
	LWLockRelease(&area->lock);
	if (channel->returned < 0)
		return false;
	*batch = area->blocks[channel->returned].batch;
	batch->base = (uint8_t *) gpurhh_block_base(area, channel->returned);
	*refused = area->blocks[channel->returned].refused;
	return true;
}

void
gpurhh_channel_give_back(Channel *channel)
{
	ChannelArea *area = channel->area;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_block_free(area, channel->returned);
	channel_query(channel)->n_outstanding--;
	LWLockRelease(&area->lock);
	channel->returned = -1;
}

/* No more batches. */
void
gpurhh_channel_end_input(Channel *channel)
{
	ChannelArea *area = channel->area;

	Assert(channel->filling < 0);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	channel_query(channel)->input_done = true;
	wake_service(area);
	LWLockRelease(&area->lock);
}

/*
 * Waits until the table can be read, or a batch has come back (false), which
 * the caller takes before it calls again.
 */
bool
gpurhh_channel_wait_finished(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	for (;;)
	{
		bool		returned;
		bool		finished;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		returned = query->returned.head >= 0;
		finished = query->finished;
		LWLockRelease(&area->lock);
		if (returned)
			return false;
		if (finished)
			return true;
		wait_for_news(channel, 1000);
	}
}

/*
 * Copies the next groups to the caller's memory.  While the caller makes rows
 * of them the service may fetch the ones after, if half of the pool is free: a
 * cursor that is left alone keeps that block.
 */
void
gpurhh_channel_fetch(Channel *channel, ChannelResult *result)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	uint32		n_words = rhh_result_words(&query->spec);
	uint32		stride;
	const uint64 *from;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->fetch_waits = true;
	if (query->result_block < 0)
	{
		query->fetch = true;
		wake_service(area);
	}
	LWLockRelease(&area->lock);
	for (;;)
	{
		bool		fetched;

		check_failure(channel);
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		fetched = query->fetched;
		LWLockRelease(&area->lock);
		if (fetched)
			break;
		wait_for_news(channel, 1000);
	}

	result->n_groups = query->result_groups;
	result->needs_merge = query->result_merge;
	result->last = query->result_last;
	stride = area->block_bytes / sizeof(uint64) / n_words;
	from = (const uint64 *) gpurhh_block_base(area, query->result_block);
	Assert(result->n_groups <= result->capacity_groups);
	for (uint32 w = 0; w < n_words; w++)
		memcpy(result->words + (Size) w * result->capacity_groups,
			   from + (Size) w * stride, result->n_groups * sizeof(uint64));

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_block_free(area, query->result_block);
	query->result_block = -1;
	query->fetched = false;
	area->stats.groups_returned += result->n_groups;
	query->fetch_waits = false;
	if (!result->last && area->n_free > area->n_blocks / 2 + 1)
	{
		query->fetch = true;
		wake_service(area);
	}
	LWLockRelease(&area->lock);
}

/*
 * What the device did so far, its name, and why it is not the one asked for.
 * False: no device has a table for the query.
 */
bool
gpurhh_channel_stats(Channel *channel, rhh_table_stats *stats, char *device,
					 char *refusal)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		refused;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	refused = query->refused;
	*stats = query->stats;
	memcpy(device, query->used_device, GPURHH_DEVICE_NAME_LEN);
	memcpy(refusal, query->message, GPURHH_MESSAGE_LEN);
	LWLockRelease(&area->lock);
	return !refused;
}

void
gpurhh_channel_count_host_rows(Channel *channel, uint64 rows)
{
	LWLockAcquire(&channel->area->lock, LW_EXCLUSIVE);
	channel->area->stats.host_rows += rows;
	LWLockRelease(&channel->area->lock);
}

void
gpurhh_channel_close(Channel *channel)
{
	release_channel(channel);
}
