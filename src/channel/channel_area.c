/*-------------------------------------------------------------------------
 *
 * channel_area.c
 *		Where sessions and a device service meet in shared memory.
 *
 * There is one area for each service: a lock, an array of queries (channel.c),
 * and the pool, cut into blocks of one size.  With shared_preload_libraries the
 * area is in main shared memory and all sessions share its service; otherwise a
 * session makes an area of its own in a DSM segment when it first needs one,
 * and keeps it until it ends.
 *
 * A block is always in one of three places.  It is on the free list; or it is on a list
 * of a query: of queued batches, of returned batches or of results; or a process holds
 * it, which then has to free it or to put it on one of these lists.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/statvfs.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/dsm.h"
#include "storage/dsm_impl.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/resowner.h"

#include "channel/area.h"
#include "settings.h"

/* A start that takes longer than this is taken for failed. */
#define START_TIMEOUT_MS 30000

static ChannelArea *shared_area = NULL;
static ChannelArea *private_area = NULL;
static int	private_pool_kb = 0;
static dsm_segment *private_segment = NULL;

/* The pool's size when main shared memory was requested; the setting may change later. */
static Size shared_pool_bytes = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* ---------- its layout, and blocks ---------- */

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
static Size
area_bytes(Size pool_bytes)
{
	Size		block_bytes;
	int			n_blocks;

	pool_shape(pool_bytes, &block_bytes, &n_blocks);
	/* a page more: the start of main shared memory's chunk is not aligned */
	return header_bytes(n_blocks) + block_bytes * n_blocks + 4096;
}

static void
init_area(ChannelArea *area, Size pool_bytes, bool shared)
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
	pg_atomic_init_u32(&area->n_reading, 0);
	pg_atomic_init_u32(&area->n_pinned, 0);
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

/* Wakes a query that waits for a block, and each time another one. */
static void
wake_waiter(ChannelArea *area)
{
	for (int i = 0; i < GPURHH_MAX_QUERIES; i++)
	{
		int			q = (area->next_waiter + i) % GPURHH_MAX_QUERIES;
		uint64		bit = UINT64CONST(1) << (q % 64);

		if ((area->want_block[q / 64] & bit) == 0)
			continue;
		area->want_block[q / 64] &= ~bit;
		area->next_waiter = q + 1;
		ConditionVariableBroadcast(&area->queries[q].news);
		break;
	}
}

/*
 * Frees a block and wakes one query that waits for a block.  If that query does
 * not take it, the others notice, because they look again after a short time.
 */
void
gpurhh_block_free(ChannelArea *area, int block)
{
	area->blocks[block].holder = BLOCK_NOBODY;
	area->blocks[block].pinned = 0;
	area->blocks[block].next = area->free_head;
	area->free_head = block;
	area->n_free++;
	if (area->service_wants_block && area->service_latch != NULL)
	{
		area->service_wants_block = false;
		SetLatch(area->service_latch);
	}
	/* the last one is kept for results */
	if (area->n_free > 1)
	{
		area->n_freed++;
		wake_waiter(area);
	}
}

/*
 * How many blocks a session may keep while it rests: a quarter of the pool, so
 * that the others have some.  A parallel query may keep more, two blocks for each
 * participant (one under way and one that waits), as long as half of the pool is
 * left for others.
 */
int
gpurhh_session_share(const ChannelArea *area, const ChannelQuery *query)
{
	return Max(Max(area->n_blocks / 4, 1),
			   Min(2 * query->n_participants, area->n_blocks / 2));
}

/*
 * How many blocks does the query's session keep, or might it keep once it rests?
 * These are results that nobody fetches, and batches of queries that may sleep: the
 * device may still refuse such a batch, and then its block waits until the query
 * takes it back.  The caller holds the lock.
 */
int
gpurhh_session_keeps(const ChannelArea *area, const ChannelQuery *query)
{
	int			n = 0;

	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		const ChannelQuery *other = &area->queries[q];

		/* the blocks of one that failed are free, or will be without the session */
		if (other->state == QUERY_ACTIVE && !other->failed &&
			other->session_pid == query->session_pid)
			n += other->n_results + (other->sleeps ? other->n_outstanding : 0);
	}
	return n;
}

/* Wakes the queries of a session that wait until it keeps less. */
static void
wake_session(ChannelArea *area, int session_pid)
{
	bool		any = false;

	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		ChannelQuery *query = &area->queries[q];

		if (query->state != QUERY_ACTIVE || !query->at_share)
			continue;
		if (query->session_pid == session_pid)
		{
			query->at_share = false;
			ConditionVariableBroadcast(&query->news);
		}
		else
			any = true;
	}
	area->any_at_share = any;
}

/* Who waits for pages to be read is woken when no more batches of them are left than a device takes. */
#define FEW_UNREAD 4

/*
 * Frees the block of a batch that its query has no more to do with.
 *
 * Who waits for a block is woken when the query has a part of its blocks less than it may have, not at
 * each block: all participants wait for the same news, and would all ask for the same block.
 */
void
gpurhh_block_done(ChannelArea *area, ChannelQuery *query, int block)
{
	const int	most = gpurhh_most_outstanding(query);

	if (area->blocks[block].unread)
	{
		area->blocks[block].unread = false;
		query->n_unread--;
	}
	if (area->blocks[block].holder != BLOCK_READ && area->blocks[block].pinned != 0)
	{
		/* somebody has to unpin its pages first */
		area->blocks[block].holder = BLOCK_READ;
		if (query->n_unread <= FEW_UNREAD)
			ConditionVariableBroadcast(&query->news);
		return;
	}
	query->n_outstanding--;
	query->n_done++;
	if (query->at_limit && query->n_outstanding <= most - most / 4)
	{
		query->at_limit = false;
		ConditionVariableBroadcast(&query->news);
	}
	if (area->any_at_share)
		wake_session(area, query->session_pid);
	gpurhh_block_free(area, block);
}

/*
 * Says why a build side cannot be probed; the first reason stays.  The caller holds the
 * lock.
 */
void
gpurhh_query_spoil(ChannelQuery *query, const char *why)
{
	if (query->spoiled)
		return;
	query->spoiled = true;
	strlcpy(query->spoiled_message, why, GPURHH_MESSAGE_LEN);
}

/* A free block, if there is one, for a holder; -1: there is none. */
int
gpurhh_block_take(ChannelArea *area, BlockHolder holder)
{
	int			block = area->free_head;

	if (block >= 0)
	{
		area->free_head = area->blocks[block].next;
		area->n_free--;
		area->blocks[block].holder = holder;
		area->blocks[block].unread = false;
		area->blocks[block].cache_offset = 0;
		area->blocks[block].cache_begun = false;
	}
	return block;
}

/* Has the service look at what it can do; the caller holds the lock. */
void
gpurhh_wake_service(ChannelArea *area)
{
	if (area->service_latch != NULL)
		SetLatch(area->service_latch);
}

/* Rows of a query of the area's have been finished on the host. */
void
gpurhh_count_host_rows(ChannelArea *area, uint64 rows)
{
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	area->stats.host_rows += rows;
	LWLockRelease(&area->lock);
}

/* ---------- finding it ---------- */

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	shared_pool_bytes = (Size) gpurhh_pool_size_kb * 1024;
	RequestAddinShmemSpace(area_bytes(shared_pool_bytes));
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared_area = ShmemInitStruct("gpurhh channel",
								  area_bytes(shared_pool_bytes),
								  &found);
	if (!found)
		init_area(shared_area, shared_pool_bytes, true);
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

/* The gpurhh.pool_size that the session's own pool was made by; 0: no such pool. */
int
gpurhh_private_pool_kb(void)
{
	return private_pool_kb;
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
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/*
 * The size of a private pool: gpurhh.pool_size, or as much of it as there is room
 * for; 0 if there is no room for the smallest pool.  Containers often have a
 * /dev/shm of 64 MB, and making a segment that does not fit would raise an error.
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
		if (room < 2 * area_bytes(least))
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
				dsm_create(area_bytes(pool_bytes),
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
		init_area(dsm_segment_address(private_segment),
				  pool_bytes, false);
		private_area = dsm_segment_address(private_segment);
		private_area->segment = dsm_segment_handle(private_segment);
		private_pool_kb = gpurhh_pool_size_kb;
		before_shmem_exit(private_owner_exit, (Datum) 0);
	}
	return private_area;
}

/* The area's name for other processes: its segment's handle, or 0 for the shared area. */
uint32
gpurhh_area_segment(ChannelArea *area)
{
	return area->shared ? 0 : area->segment;
}

/* The area that has this name in another process; NULL if it no longer exists. */
ChannelArea *
gpurhh_area_in_segment(uint32 handle)
{
	dsm_segment *segment;

	if (handle == 0)
		return shared_area;
	segment = dsm_find_mapping(handle);
	if (segment == NULL)
	{
		segment = dsm_attach(handle);
		/* contexts may be reset after resource owners are released */
		if (segment != NULL)
			dsm_pin_mapping(segment);
	}
	return segment ? dsm_segment_address(segment) : NULL;
}

/* ---------- its service ---------- */

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
			if (!gpurhh_start_service_worker(area, gpurhh_area_segment(area),
											 why))
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
	gpurhh_wake_service(area);
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
