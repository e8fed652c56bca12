/*-------------------------------------------------------------------------
 *
 * channel.c
 *		Requests and batches between sessions and the device service.
 *
 * They meet in an area of shared memory (channel_area.c), which has an array of
 * queries, and the pool's blocks.
 *
 * A query's life, session's side:
 *
 *		open -> { acquire -> fill -> submit }* -> end_input -> wait_finished
 *			 -> fetch* -> close
 *
 * The processes of a parallel plan join the query that their leader opened,
 * and do the same; the last of them to have read its part ends the input.
 *
 * Batches that the device refused, wholly or some rows of them, come back
 * whenever a session acquires or waits: it finishes those rows itself
 * (host_table.c) and gives the block back.  Of several participants it is
 * always the same one, the finisher, as the rows must meet in one host table:
 * the first one to whom a batch comes back, and that may be it.
 *
 * Nobody waits for anything while holding a block to fill.  A session that asks a
 * child plan for rows fills memory of its own, and copies that into a block when it is
 * full (agg_input.c).  So a block that is being filled, or that a device works on, will
 * become free whatever other sessions do.  As long as there is such a block, a session
 * that needs one waits.
 *
 * Two kinds of blocks may stay in use for any time, because they wait for a session
 * that may be resting: results that it has not fetched, and refused batches that it has
 * not taken.  If all other blocks are of these kinds, a session waits until no block
 * has been freed for LATE_MS, and then goes on without one.  If all of them belong to
 * its own outer queries, it does not wait at all, because those cannot go on before the
 * inner query ends.
 *
 * The last free block of the pool is not filled with a batch.  It is kept for results
 * that a session is waiting for.  Such a session copies the result and frees the block
 * at once, so the next one does not wait for it long.
 *
 * A session cannot go on without a block if the device joins its rows, because no
 * one else can.  So such a query may have the last free block, if it has no other, and
 * waits as long as it takes.  What feeds it is a scan, which does not sleep, so the
 * session's share is no limit for it, and its block comes back as soon as the device is
 * done with it.  But WHERE may have a subquery that is run for the first row that needs
 * its result, and core may have rows to join at the end.  Before the session goes on to
 * these, it takes its batches back (gpurhh_channel_settle()).
 *
 * Joins.  Each build side is a query of its own, whose map keeps rows.  The query that
 * probes is opened with the numbers of these.  Its map is made when all of them are
 * finished; then the service decides whether the device does the joins
 * (gpurhh_channel_wait_joins()), and nobody has fed a row until then.  So all
 * participants come to the same answer, without another barrier.  If a build side has no room, a
 * session may put another one in its place, which has a part of its rows.  When all batches
 * are done it does the same with the next part, and feeds the rows once more.
 *
 * What one session does must not stop others.  So a session may have open no more than a
 * quarter of the queries that all sessions share, and it may keep only its share of the
 * pool's blocks (gpurhh_session_share()).  The share is a limit for queries whose rows
 * come from a plan that may sleep.  By the time it sleeps, the device may have refused
 * all batches that were handed over, and their blocks then wait until it wakes.  Other
 * queries take refused batches back soon, and gpurhh_most_outstanding() is the only limit for
 * their blocks.
 *
 * Lifetime.  A Channel is released by a reset callback of the memory context
 * it was opened for, so that an error, a cancel and a closed cursor release it
 * as a normal end does; what a terminated backend leaves is released when it
 * exits.  With the last participant the query goes: if the service still works
 * for it, its slot and blocks are freed by the service, else by the session.
 *
 * Wakeups go through the service's latch when there is something to do, and
 * the query's condition variable when something has happened that a
 * participant may wait for.  Every wait is interruptible.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "channel/channel.h"
#include "settings.h"

/* If no block has been freed for so long, a session goes on without one. */
#define LATE_MS 1000

/*
 * A participant's batches of pages that are outstanding, or have been read: more than any one can
 * have at a time.
 */
#define MAX_PAGE_BLOCKS 256

/*
 * Pages that all sessions together may have pinned: an eighth of the buffers.  What others pin, or have
 * to evict, has room beside that.
 */
#define MAX_PINNED ((uint32) NBuffers / 8)

struct Channel
{
	dlist_node	node;			/* in open_channels */
	ChannelArea *area;
	int			index;			/* of the query */
	int			filling;		/* block being filled, or -1 */
	uint32		n_pinned;		/* counted in the area's n_pinned */
	int			unpinning;		/* block of pages whose pins are being released, or -1 */
	int			n_page_blocks;	/* blocks whose pages this participant has pinned: */
	int			page_blocks[MAX_PAGE_BLOCKS];
	uint64		pinned[MAX_PAGE_BLOCKS];	/* their number */
	int			returned;		/* block being finished, or -1 */
	int			reading;		/* result being copied, or -1 */
	bool		fetching;		/* counted in the query's n_fetching */
	bool		may_finish;		/* may become the finisher */
	double		pool_wait_ms;
	uint64		late_batches;
	bool		open;
	ResourceOwner owner;		/* of the pins */
	void	   *kept;			/* see gpurhh_channel_keep(); NULL: nothing */
	void		(*released) (void *kept);
	MemoryContextCallback callback;
};

static dlist_head open_channels = DLIST_STATIC_INIT(open_channels);
static bool callbacks_registered = false;

static ChannelQuery *
channel_query(Channel *channel)
{
	return &channel->area->queries[channel->index];
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
	if (channel->reading >= 0)
		gpurhh_block_free(area, channel->reading);
	if (channel->returned >= 0)
		gpurhh_block_done(area, query, channel->returned);
	/* pins that core knows of go with the transaction, or have gone */
	for (int i = 0; i < channel->n_page_blocks; i++)
	{
		ChannelBlock *block = &area->blocks[channel->page_blocks[i]];

		if (block->pinned != channel->pinned[i])
			continue;
		if (block->holder == BLOCK_READ)
			gpurhh_block_done(area, query, channel->page_blocks[i]);
		else
			block->pinned = 0;
	}
	pg_atomic_fetch_sub_u32(&area->n_pinned, channel->n_pinned);
	if (channel->fetching)
		query->n_fetching--;
	if (--query->n_participants == 0)
	{
		if (area->service_state == SERVICE_RUNNING &&
			query->generation == area->generation)
		{
			query->state = QUERY_RELEASED;
			gpurhh_wake_service(area);
		}
		else
		{
			/* its service is gone, and freed what it had of the query */
			query->state = QUERY_FREE;
		}
	}
	LWLockRelease(&area->lock);
	if (channel->kept != NULL)
		channel->released(channel->kept);
}

static void
channel_reset_callback(void *arg)
{
	release_channel(arg);
}

/* Releases whatever a terminated session still has open. */
static void
release_all_channels(int code, Datum arg)
{
	dlist_mutable_iter iter;

	/*
	 * This process may be waiting on the condition variable of one of these queries,
	 * which another session may use as soon as it is released.
	 */
	ConditionVariableCancelSleep();
	dlist_foreach_modify(iter, &open_channels)
		release_channel(dlist_container(Channel, node, iter.cur));
}

/*
 * A transaction that has failed releases its pins, but not yet the memory of queries within functions: in a
 * transaction block that goes with ROLLBACK.  Until then nobody would wait for these queries, and what a device read
 * of their pages would be what is in these buffers later.  Called before the pins are released.
 */
static void
abort_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		release_all_channels(0, (Datum) 0);
}

static bool
is_below(ResourceOwner owner, ResourceOwner top)
{
	while (owner != NULL && owner != top)
		owner = ResourceOwnerGetParent(owner);
	return owner != NULL;
}

/* The same of a subtransaction.  A query whose owner is outside goes on, also if it has begun in here, as a cursor may. */
static void
end_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	const ResourceOwner owner = CurTransactionResourceOwner;
	dlist_mutable_iter iter;

	if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	dlist_foreach_modify(iter, &open_channels)
	{
		Channel    *channel = dlist_container(Channel, node, iter.cur);

		if (event == SUBXACT_EVENT_ABORT_SUB && is_below(channel->owner, owner))
			release_channel(channel);
		else if (event == SUBXACT_EVENT_COMMIT_SUB && channel->owner == owner)
			channel->owner = ResourceOwnerGetParent(owner);
	}
}

static Channel *
make_channel(ChannelArea *area, bool may_finish, MemoryContext context)
{
	Channel    *channel = MemoryContextAllocZero(context, sizeof(Channel));

	if (!callbacks_registered)
	{
		before_shmem_exit(release_all_channels, (Datum) 0);
		RegisterXactCallback(abort_transaction, NULL);
		RegisterSubXactCallback(end_subtransaction, NULL);
		callbacks_registered = true;
	}
	channel->area = area;
	channel->filling = -1;
	channel->returned = -1;
	channel->reading = -1;
	channel->unpinning = -1;
	channel->may_finish = may_finish;
	return channel;
}

/* From here on the query counts as open, and a reset of the context releases it. */
static void
open_channel(Channel *channel, MemoryContext context)
{
	channel->open = true;
	channel->owner = CurrentResourceOwner;
	dlist_push_head(&open_channels, &channel->node);
	channel->callback.func = channel_reset_callback;
	channel->callback.arg = channel;
	MemoryContextRegisterResetCallback(context, &channel->callback);
}

/* The process whose queries are counted together: a worker's count as its leader's. */
static int
session_pid(void)
{
	return MyProc->lockGroupLeader ? MyProc->lockGroupLeader->pid : MyProcPid;
}

/* Has the session as many queries open as it may?  Lock held. */
static bool
too_many_of_session(ChannelArea *area)
{
	int			pid = session_pid();
	int			n = 0;

	/* a private area has nobody else */
	if (!area->shared)
		return false;
	for (int i = 0; i < GPURHH_MAX_QUERIES; i++)
		n += area->queries[i].state != QUERY_FREE &&
			area->queries[i].session_pid == pid;
	return n >= GPURHH_SESSION_QUERIES;
}

/* Does the CPU device read pages?  Without a cache that is for tests. */
static bool
cpu_may_read(void)
{
	return gpurhh_read_pages == SWITCH_ON || (gpurhh_read_pages == SWITCH_AUTO && gpurhh_cache_size_mb > 0);
}

/*
 * Opens a query that lives until it is closed or the context is reset.  Returns
 * NULL, with the reason, if no service can be had or too many queries are open.
 *
 * level_plan describes a second level, which the device makes if
 * gpurhh_channel_decide_level() asks for it; NULL if there is none.  joins describes
 * joins whose output are the rows; their build sides are in the queries builds, which
 * have to stay open as long as this one.  NULL: there are none.  pages says whether batches are to
 * have pages, see gpurhh_channel_reads_pages().  sleeps says that
 * the source of the rows may take any time between two batches.
 */
Channel *
gpurhh_channel_open(ChannelArea *area, const rhh_map_spec *spec,
					const LevelPlan *level_plan, const rhh_join_spec *joins,
					Channel *const *builds, bool pages, bool sleeps,
					MemoryContext context, const char **why)
{
	Channel    *channel = make_channel(area, true, context);
	ChannelQuery *query = NULL;

	while (query == NULL)
	{
		bool		full = false;
		bool		too_many = false;

		if (!gpurhh_ensure_service(area, why))
			return NULL;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		/* it may have ended meanwhile: then start it again */
		if (area->service_state == SERVICE_RUNNING)
		{
			full = true;
			too_many = too_many_of_session(area);
			for (int i = 0; i < GPURHH_MAX_QUERIES && !too_many; i++)
			{
				if (area->queries[i].state != QUERY_FREE)
					continue;
				channel->index = i;
				query = &area->queries[i];
				memset(query, 0, sizeof(ChannelQuery));
				query->state = QUERY_ACTIVE;
				query->generation = area->generation;
				query->serial = ++area->last_serial;
				query->session_pid = session_pid();
				query->n_participants = 1;
				ConditionVariableInit(&query->news);
				strlcpy(query->device, gpurhh_device, sizeof(query->device));
				query->spec = *spec;
				query->pages = query->pages_asked = pages;
				query->pages_on_cpu = cpu_may_read();
				query->sleeps = sleeps;
				if (level_plan != NULL)
				{
					query->level = QUERY_LEVEL_UNDECIDED;
					query->level_plan = *level_plan;
				}
				if (joins != NULL)
				{
					query->join_state = QUERY_JOINS_UNDECIDED;
					query->joins.spec = *joins;
					query->joins.has_program = joins->program != NULL;
					if (joins->program != NULL)
						query->joins.program = *joins->program;
					for (uint32 j = 0; j < joins->n_joins; j++)
					{
						const rhh_program *condition = joins->joins[j].condition;

						query->joins.has_condition[j] = condition != NULL;
						if (condition != NULL)
							query->joins.conditions[j] = *condition;
						query->joins.build[j] = builds[j]->index;
						query->joins.serial[j] = channel_query(builds[j])->serial;
					}
				}
				query->queued.head = -1;
				query->returned.head = -1;
				query->results.head = -1;
				area->stats.queries++;
				gpurhh_wake_service(area);
				break;
			}
		}
		LWLockRelease(&area->lock);
		if (query == NULL && full)
		{
			*why = too_many ? "too many queries of the session use the device service" :
				"too many queries use the device service";
			return NULL;
		}
	}

	open_channel(channel, context);
	return channel;
}

/* The address by which gpurhh_channel_join() finds the query in another process. */
ChannelAddress
gpurhh_channel_address(Channel *channel)
{
	ChannelAddress address = {0};

	address.segment = gpurhh_area_segment(channel->area);
	address.index = channel->index;
	address.serial = channel_query(channel)->serial;
	return address;
}

/*
 * Opens, in a worker, the query that the leader opened.  may_finish: rows that
 * the device refuses may come to this participant.
 */
Channel *
gpurhh_channel_join(const ChannelAddress *address, bool may_finish,
					MemoryContext context)
{
	ChannelArea *area = gpurhh_area_in_segment(address->segment);
	Channel    *channel;
	ChannelQuery *query;
	bool		joined;

	if (area == NULL || area->magic != GPURHH_AREA_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not attach to the leader's device service")));

	channel = make_channel(area, may_finish, context);
	channel->index = address->index;
	query = channel_query(channel);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	joined = query->state == QUERY_ACTIVE && query->serial == address->serial;
	if (joined)
		query->n_participants++;
	LWLockRelease(&area->lock);
	if (!joined)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the leader of the parallel query has ended")));
	open_channel(channel, context);
	return channel;
}

ChannelArea *
gpurhh_channel_area(Channel *channel)
{
	return channel->area;
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

/*
 * Waits for news of any kind, at most timeout_ms.  Call it in a loop that checks
 * what it waits for.  The first call returns at once; it only makes sure that no
 * news is missed from then on.  Call ConditionVariableCancelSleep() after the loop.
 */
static void
wait_for_news(Channel *channel, long timeout_ms)
{
	/* it may have failed long ago, and have woken us then */
	check_failure(channel);
	(void) ConditionVariableTimedSleep(&channel_query(channel)->news,
									   timeout_ms, PG_WAIT_EXTENSION);
	check_failure(channel);
}

/*
 * May refused rows come to this participant?  The caller holds the lock.
 */
static bool
may_finish(Channel *channel)
{
	int			finisher_pid = channel_query(channel)->finisher_pid;

	return finisher_pid == MyProcPid ||
		(finisher_pid == 0 && channel->may_finish);
}

/*
 * Makes this participant the finisher until the query ends.  Returns false if it
 * may not be the finisher.
 */
bool
gpurhh_channel_claim_finish(Channel *channel)
{
	ChannelArea *area = channel->area;
	bool		claimed;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	claimed = may_finish(channel);
	if (claimed)
		channel_query(channel)->finisher_pid = MyProcPid;
	LWLockRelease(&area->lock);
	return claimed;
}

/* How many blocks are on the list? */
static int
count_blocks(ChannelArea *area, const BlockList *list)
{
	int			n = 0;

	for (int block = list->head; block >= 0; block = area->blocks[block].next)
		n++;
	return n;
}

/* What keeps a participant from a block. */
typedef enum Obstacle
{
	OBSTACLE_NONE,
	OBSTACLE_QUERY,				/* the query has as many as it may have */
	OBSTACLE_SESSION,			/* its session keeps as many as it may keep */
	OBSTACLE_POOL				/* no block is free */
} Obstacle;

/* What a participant may hope for. */
typedef struct Outlook
{
	bool		comes;			/* a block comes, whatever other sessions do */
	bool		may_come;		/* some other process may free one */
	uint64		n_freed;		/* grows with each that comes free to be filled */
} Outlook;

/*
 * Will any of the blocks that are in the way become free?  Blocks that are being
 * filled, copied or finished, or that a device works on, will.  Of the blocks that
 * rest, those of other queries of the same session will not: the query that runs
 * within another one has to end before the other goes on.  A result that somebody
 * waits for does not rest.
 *
 * One block of the pool is kept for results.  If all others rest, that block goes
 * from one reader of results to the next and never comes to us.  The caller holds
 * the lock.
 */
static Outlook
look_ahead(Channel *channel, Obstacle obstacle)
{
	ChannelArea *area = channel->area;
	const ChannelQuery *query = channel_query(channel);
	Outlook		outlook = {0};
	int			n_used = 0;
	int			n_resting = 0;

	for (int q = 0; q < GPURHH_MAX_QUERIES; q++)
	{
		const ChannelQuery *other = &area->queries[q];
		bool		of_session = other->session_pid == query->session_pid;
		int			n_returned;
		int			n_results;

		if (other->state != QUERY_ACTIVE || other->failed ||
			(obstacle == OBSTACLE_QUERY && other != query) ||
			(obstacle == OBSTACLE_SESSION && !(of_session && other->sleeps)))
			continue;
		n_returned = count_blocks(area, &other->returned);
		n_results = Max(other->n_results - other->n_fetching, 0);
		n_used += other->n_outstanding + other->n_results;
		n_resting += n_returned + n_results;
		outlook.n_freed += other->n_done;
		outlook.may_come |= n_returned + n_results > 0 &&
			(other == query || !of_session);
	}
	outlook.comes = n_used > n_resting;
	if (obstacle == OBSTACLE_POOL)
	{
		outlook.comes = area->n_blocks - n_resting > 1;
		outlook.n_freed = area->n_freed;
	}
	return outlook;
}

/*
 * The first of the participant's blocks of pages that have been read; -1: there is none.  The
 * caller holds the lock.
 */
static int
find_read(Channel *channel)
{
	for (int i = 0; i < channel->n_page_blocks; i++)
	{
		const ChannelBlock *block = &channel->area->blocks[channel->page_blocks[i]];

		if (block->pinned == channel->pinned[i] && block->holder == BLOCK_READ)
			return i;
	}
	return -1;
}

/*
 * Looks once for a block; the caller holds the lock.  OBSTACLE_NONE means that
 * there is a block, or that returned batches, or pages that have been read, are to be taken
 * first.
 */
static Obstacle
try_acquire(Channel *channel, ChannelBlockResult *result)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	if (query->returned.head >= 0 && may_finish(channel))
	{
		*result = CHANNEL_RETURNED;
		return OBSTACLE_NONE;
	}
	if (find_read(channel) >= 0)
	{
		*result = CHANNEL_PAGES;
		return OBSTACLE_NONE;
	}
	if (query->n_outstanding >= gpurhh_most_outstanding(query) || channel->n_page_blocks == MAX_PAGE_BLOCKS)
	{
		query->at_limit = true;
		return OBSTACLE_QUERY;
	}
	/* a private area has nobody else; rows that the device joins are those of a scan */
	if (query->sleeps && area->shared && query->join_state != QUERY_JOINS_ON_DEVICE &&
		gpurhh_session_keeps(area, query) >= gpurhh_session_share(area, query))
	{
		query->at_share = area->any_at_share = true;
		return OBSTACLE_SESSION;
	}
	if (!query->failed &&
		(area->n_free > 1 ||
		 (area->n_free > 0 && query->join_state == QUERY_JOINS_ON_DEVICE &&
		  query->n_outstanding == 0)))
	{
		channel->filling = gpurhh_block_take(area, BLOCK_SESSION);
		*result = CHANNEL_BLOCK;
		return OBSTACLE_NONE;
	}
	/* such a query may have the last free block as soon as it has no other */
	query->at_limit |= query->join_state == QUERY_JOINS_ON_DEVICE;
	area->want_block[channel->index / 64] |=
		UINT64CONST(1) << (channel->index % 64);
	return OBSTACLE_POOL;
}

/*
 * Gets a block to fill (*base).  If batches have been returned, the result says so
 * instead, and the caller takes them with gpurhh_channel_take_returned() first.  So it does
 * with pages that it has pinned and that have been read (gpurhh_channel_take_pages()).
 *
 * While a block is sure to come, waits for it.  Otherwise another process may free
 * one: waits for that until LATE_MS have passed since a block that is in the way
 * was last freed.  Does not wait for others if wait is false.  If the device joins the
 * query's rows, waits as long as it takes.
 */
ChannelBlockResult
gpurhh_channel_acquire(Channel *channel, bool wait, char **base)
{
	ChannelArea *area = channel->area;
	ChannelBlockResult result = CHANNEL_LATE;
	TimestampTz began = 0;
	TimestampTz still_since = 0;
	uint64		n_freed = 0;

	Assert(channel->filling < 0);
	for (;;)
	{
		TimestampTz now;
		Obstacle	obstacle;
		Outlook		outlook = {.comes = true};

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		obstacle = try_acquire(channel, &result);
		if (obstacle != OBSTACLE_NONE && began != 0)
			outlook = look_ahead(channel, obstacle);
		if (channel_query(channel)->join_state == QUERY_JOINS_ON_DEVICE)
			outlook.comes = true;
		LWLockRelease(&area->lock);
		if (obstacle == OBSTACLE_NONE)
			break;
		now = GetCurrentTimestamp();
		if (began == 0)
			began = now;
		if (outlook.comes || outlook.n_freed != n_freed)
			still_since = now;
		n_freed = outlook.n_freed;
		if (!outlook.comes &&
			(!wait || !outlook.may_come ||
			 TimestampDifferenceExceeds(still_since, now, LATE_MS)))
		{
			check_failure(channel);
			break;
		}
		wait_for_news(channel, 100);
	}
	ConditionVariableCancelSleep();

	if (began != 0)
	{
		uint64		waited_us = GetCurrentTimestamp() - began;

		channel->pool_wait_ms += waited_us / 1000.0;
		channel->late_batches += result == CHANNEL_LATE ? 1 : 0;
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		area->stats.pool_wait_us += waited_us;
		area->stats.late_batches += result == CHANNEL_LATE ? 1 : 0;
		LWLockRelease(&area->lock);
	}
	if (result == CHANNEL_BLOCK)
		*base = gpurhh_block_base(area, channel->filling);
	return result;
}

/* How long this participant waited in all for blocks to fill. */
double
gpurhh_channel_pool_wait_ms(Channel *channel)
{
	return channel->pool_wait_ms;
}

/* For how many batches it had none. */
uint64
gpurhh_channel_late_batches(Channel *channel)
{
	return channel->late_batches;
}

/* Hands the block that was acquired last to the service. */
void
gpurhh_channel_submit(Channel *channel, const rhh_batch *batch)
{
	gpurhh_channel_submit_pages(channel, batch, 0);
}

/* The same for a batch of pages.  cache_offset: where its CacheRequest is; 0: it has none. */
void
gpurhh_channel_submit_pages(Channel *channel, const rhh_batch *batch, uint32 cache_offset)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	ChannelBlock *block = &area->blocks[channel->filling];

	block->batch = *batch;
	block->all_rows = false;
	block->more = false;
	block->cache_offset = cache_offset;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (!query->failed)
	{
		if (batch->n_pages > 0)
		{
			Assert(channel->n_page_blocks < MAX_PAGE_BLOCKS);
			block->pinned = ++area->last_pinned;
			block->unread = true;
			query->n_unread++;
			channel->page_blocks[channel->n_page_blocks] = channel->filling;
			channel->pinned[channel->n_page_blocks++] = block->pinned;
		}
		gpurhh_block_push(area, &query->queued, channel->filling);
		block->holder = BLOCK_SERVICE;
		query->n_outstanding++;
		area->stats.rows_fed += batch->n_rows;
		channel->filling = -1;
		gpurhh_wake_service(area);
	}
	LWLockRelease(&area->lock);
	check_failure(channel);
}

/* Gives back the block that was acquired last; nothing was put into it. */
void
gpurhh_channel_drop_block(Channel *channel)
{
	ChannelArea *area = channel->area;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_block_free(area, channel->filling);
	LWLockRelease(&area->lock);
	channel->filling = -1;
}

/* ---------- pages ---------- */

/* Is it worth asking for a query of which batches have pages?  They need a service for all sessions. */
bool
gpurhh_channel_may_read_pages(ChannelArea *area)
{
	bool		any_gpu = false;

	if (!area->shared || gpurhh_read_pages == SWITCH_OFF || cpu_may_read())
		return area->shared && gpurhh_read_pages != SWITCH_OFF;
	if (strcmp(gpurhh_device, "cpu") == 0)
		return false;
	LWLockAcquire(&area->lock, LW_SHARED);
	for (int i = 0; i < area->n_devices; i++)
		any_gpu |= area->devices[i].kind != RHH_KIND_CPU &&
			area->devices[i].state != RHH_STATE_UNUSABLE;
	LWLockRelease(&area->lock);
	return any_gpu;
}

/* Was the query opened so that batches may have pages? */
bool
gpurhh_channel_asked_for_pages(Channel *channel)
{
	return channel_query(channel)->pages_asked;
}

/* May batches have pages?  Waits until the service has begun with the query. */
bool
gpurhh_channel_reads_pages(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		started;
	bool		pages;

	for (;;)
	{
		LWLockAcquire(&area->lock, LW_SHARED);
		started = query->started || !query->pages;
		pages = query->pages;
		LWLockRelease(&area->lock);
		if (started)
			break;
		wait_for_news(channel, 1000);
	}
	ConditionVariableCancelSleep();
	return pages;
}

/* Once that is so: is it the CPU that reads them? */
bool
gpurhh_channel_cpu_reads(Channel *channel)
{
	return channel_query(channel)->by_cpu;
}

/*
 * By who has opened the query, before others join it: its pages may be kept in the cache, and read from there.
 * Only the leader of a parallel plan knows whether that is so of a table.
 */
void
gpurhh_channel_ask_for_cache(Channel *channel)
{
	ChannelArea *area = channel->area;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	channel_query(channel)->cache_asked = true;
	LWLockRelease(&area->lock);
}

/* May they, as far as is known once gpurhh_channel_reads_pages() has said that there are any? */
bool
gpurhh_channel_has_cache(Channel *channel)
{
	return channel_query(channel)->cache_asked && channel_query(channel)->cache;
}

/* Batches of the query's whose pages the device has yet to read, a moment ago. */
int
gpurhh_channel_n_unread(Channel *channel)
{
	return channel_query(channel)->n_unread;
}

/*
 * Memory of so many bytes that lasts as long as the channel, and is the same each time.  At first all of it is 0.  When the
 * channel is released, in whatever way, released() is called with it.
 */
void *
gpurhh_channel_keep(Channel *channel, Size bytes, void (*released)(void *kept))
{
	if (channel->kept == NULL)
	{
		channel->released = released;
		channel->kept = MemoryContextAllocZero(GetMemoryChunkContext(channel), bytes);
	}
	return channel->kept;
}

/* Before pages are pinned for a batch: how many of n may be. */
uint32
gpurhh_channel_pin_pages(Channel *channel, uint32 n)
{
	ChannelArea *area = channel->area;
	uint32		before = pg_atomic_fetch_add_u32(&area->n_pinned, n);
	uint32		most = before < MAX_PINNED ? Min(n, MAX_PINNED - before) : 0;

	if (channel->n_page_blocks == MAX_PAGE_BLOCKS)
		most = 0;
	pg_atomic_fetch_sub_u32(&area->n_pinned, n - most);
	channel->n_pinned += most;
	return most;
}

/* So many are not pinned any more, or have not been. */
void
gpurhh_channel_unpin_pages(Channel *channel, uint32 n)
{
	Assert(channel->n_pinned >= n);
	channel->n_pinned -= n;
	pg_atomic_fetch_sub_u32(&channel->area->n_pinned, n);
}

/*
 * Takes a batch of the participant's whose pages have been read; false if there is none.  Of these
 * the caller releases the pins, unless they were to be read from the cache, and sees to the rows of those that
 * are bad, or of all of them if all_bad is set.
 * Then it calls gpurhh_channel_end_pages().
 */
bool
gpurhh_channel_take_pages(Channel *channel, PagesRead *read)
{
	ChannelArea *area = channel->area;
	const ChannelBlock *block;
	const char *base;
	int			i;

	Assert(channel->unpinning < 0);
	if (channel->n_page_blocks == 0)
		return false;
	LWLockAcquire(&area->lock, LW_SHARED);
	i = find_read(channel);
	LWLockRelease(&area->lock);
	if (i < 0)
		return false;
	channel->unpinning = i;
	block = &area->blocks[channel->page_blocks[i]];
	base = gpurhh_block_base(area, channel->page_blocks[i]);
	read->pages = (const rhh_page *) (base + block->batch.pages_offset);
	read->n = block->batch.n_pages;
	read->all_bad = block->all_rows;
	read->request = block->cache_offset == 0 ? NULL : (const CacheRequest *) (base + block->cache_offset);
	read->n_bad = block->n_bad_pages;
	read->n_rows = block->n_rows;
	read->n_dropped = block->n_dropped;
	return true;
}

/* The block is free.  n_rows: so many that were counted were not there. */
void
gpurhh_channel_end_pages(Channel *channel, uint64 n_rows)
{
	ChannelArea *area = channel->area;
	int			i = channel->unpinning;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_block_done(area, channel_query(channel), channel->page_blocks[i]);
	area->stats.rows_fed -= n_rows;
	LWLockRelease(&area->lock);
	channel->n_page_blocks--;
	channel->page_blocks[i] = channel->page_blocks[channel->n_page_blocks];
	channel->pinned[i] = channel->pinned[channel->n_page_blocks];
	channel->unpinning = -1;
}

/*
 * Waits until pages of the participant's have been read, or a batch has come back, which the caller
 * is to take; false: it has no more pages that have been handed over.
 */
bool
gpurhh_channel_wait_pages(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		any;

	if (channel->n_page_blocks == 0)
		return false;
	for (;;)
	{
		LWLockAcquire(&area->lock, LW_SHARED);
		any = (query->returned.head >= 0 && may_finish(channel)) || find_read(channel) >= 0;
		LWLockRelease(&area->lock);
		if (any)
			break;
		/* while others keep the device busy there is no news of each batch */
		wait_for_news(channel, 20);
	}
	ConditionVariableCancelSleep();
	return true;
}

/* ---------- batches that come back ---------- */

/*
 * Takes the next batch that came back; false if there is none.  The caller finishes
 * the rows that are marked as refused, or all rows if *all_rows is set, and then gives
 * the block back.  If the device joins the query's rows, *batch has rows of the output,
 * all of which it has refused.  If it also computes columns of them, *bad is a bitmap of
 * the rows for which it could not do that, else NULL.
 */
bool
gpurhh_channel_take_returned(Channel *channel, rhh_batch *batch, bool *all_rows,
							 const uint8 **bad)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	Assert(channel->returned < 0);
	*bad = NULL;
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (may_finish(channel))
		channel->returned = gpurhh_block_pop(area, &query->returned);
	if (channel->returned >= 0)
	{
		query->finisher_pid = MyProcPid;
		area->blocks[channel->returned].holder = BLOCK_SESSION;
	}
	LWLockRelease(&area->lock);
	if (channel->returned < 0)
		return false;
	*batch = area->blocks[channel->returned].batch;
	batch->base = (uint8_t *) gpurhh_block_base(area, channel->returned);
	*all_rows = area->blocks[channel->returned].all_rows;
	/* rows of a second level come back as they are, whatever is below the first */
	if (gpurhh_returns_columns(query) && !*all_rows)
	{
		const rhh_map_spec *spec = &query->spec;
		uint32		room = batch->refused_rows;

		batch->n_rows = area->blocks[channel->returned].n_refused;
		batch->zero_columns = 0;
		for (uint32 c = 0; c < spec->n_columns; c++)
		{
			batch->values_offset[c] = batch->refused_offset +
				rhh_output_values(spec, room, c);
			batch->nulls_offset[c] = batch->refused_offset +
				rhh_output_nulls(spec, room, c);
		}
		if (query->joins.has_program)
			*bad = batch->base + batch->refused_offset + rhh_output_bad(spec, room);
		*all_rows = true;
	}
	return true;
}

/*
 * The batch that was taken last is finished.  If the output of its joins is not
 * complete, it goes to the device once more, else its block is free.
 */
void
gpurhh_channel_give_back(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	ChannelBlock *block = &area->blocks[channel->returned];

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (block->more && !query->failed)
	{
		block->more = false;
		query->n_unjoined--;
		gpurhh_block_push(area, &query->queued, channel->returned);
		block->holder = BLOCK_SERVICE;
		gpurhh_wake_service(area);
	}
	else
		gpurhh_block_done(area, query, channel->returned);
	LWLockRelease(&area->lock);
	channel->returned = -1;
}

/*
 * The batch that was taken last is finished, and its block is free.  If the output of its
 * joins is not complete, returns a copy of the batch in context, to be submitted again in
 * another block; else NULL.
 */
rhh_batch *
gpurhh_channel_park(Channel *channel, MemoryContext context)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	ChannelBlock *block = &area->blocks[channel->returned];
	rhh_batch  *batch = NULL;

	if (block->more)
	{
		batch = MemoryContextAlloc(context, sizeof(rhh_batch));
		*batch = block->batch;
		batch->base = MemoryContextAlloc(context, batch->used_bytes);
		memcpy(batch->base, gpurhh_block_base(area, channel->returned), batch->used_bytes);
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (block->more && !query->failed)
		query->n_unjoined--;
	block->more = false;
	gpurhh_block_done(area, query, channel->returned);
	LWLockRelease(&area->lock);
	channel->returned = -1;
	return batch;
}

/*
 * Waits until a batch has come back, which the caller is to take; false: none of those that
 * were handed over is left.  What comes back to another participant, that one has to take
 * meanwhile.
 */
bool
gpurhh_channel_wait_returned(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		returned;
	bool		none_left;

	for (;;)
	{
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		returned = query->returned.head >= 0 && may_finish(channel);
		none_left = query->n_outstanding == 0 && !query->failed;
		query->at_limit |= !returned && !none_left;
		LWLockRelease(&area->lock);
		if (returned || none_left)
			break;
		wait_for_news(channel, 100);
	}
	ConditionVariableCancelSleep();
	return returned;
}

/*
 * Waits for something that another participant does, and then tells by gpurhh_channel_tell().
 * Returns false if a batch has come back first; the caller takes it and calls again, because
 * that other participant may wait for that.
 */
bool
gpurhh_channel_wait_told(Channel *channel, bool (*is_done)(void *arg), void *arg)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		returned;
	bool		done;

	for (;;)
	{
		LWLockAcquire(&area->lock, LW_SHARED);
		returned = query->returned.head >= 0 && may_finish(channel);
		LWLockRelease(&area->lock);
		done = is_done(arg);
		if (returned || done)
			break;
		wait_for_news(channel, 1000);
	}
	ConditionVariableCancelSleep();
	return !returned;
}

/* Wakes the participants that wait so, and others to no effect. */
void
gpurhh_channel_tell(Channel *channel)
{
	ConditionVariableBroadcast(&channel_query(channel)->news);
}

/*
 * To be called by a session that may sleep now, if the device joins its rows.  Waits
 * until the batches that it has handed over leave a block to results, and are not more
 * than the session may keep.  Returns false if a batch has come back first; the caller
 * takes it and calls again.
 */
bool
gpurhh_channel_settle(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		returned;
	bool		settled;

	for (;;)
	{
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		returned = query->returned.head >= 0 && may_finish(channel);
		settled = query->n_outstanding == 0 ||
			(area->n_free > 0 &&
			 (!area->shared ||
			  gpurhh_session_keeps(area, query) <= gpurhh_session_share(area, query)));
		query->at_limit |= !settled;
		LWLockRelease(&area->lock);
		if (settled || returned)
			break;
		wait_for_news(channel, 100);
	}
	ConditionVariableCancelSleep();
	return settled;
}

/*
 * Says that the rows of a build side will not be complete.  It cannot be probed then,
 * and the queries that were to probe it are told so.  The caller ends the input all the
 * same.
 */
void
gpurhh_channel_spoil(Channel *channel, const char *why)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_query_spoil(query, why);
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/* Will a build side not be probed, so that it need not be read any further? */
bool
gpurhh_channel_is_spoiled(Channel *channel)
{
	ChannelArea *area = channel->area;
	bool		spoiled;

	LWLockAcquire(&area->lock, LW_SHARED);
	spoiled = channel_query(channel)->spoiled;
	LWLockRelease(&area->lock);
	return spoiled;
}

/*
 * Waits until the service has decided whether the device does the query's joins.
 * True: it does, and batches are rows of the probe side.  False: it does not, *why
 * (GPURHH_MESSAGE_LEN bytes) says why not, and batches are rows of the joins' output; or the
 * build side of join *no_room has no room, and that is decided when the caller has either given
 * it another one (gpurhh_channel_join_again()), or called gpurhh_channel_leave_joins().
 */
bool
gpurhh_channel_wait_joins(Channel *channel, char *why, int *no_room)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	QueryJoins	state;

	for (;;)
	{
		LWLockAcquire(&area->lock, LW_SHARED);
		state = query->join_state;
		memcpy(why, query->joins_message, GPURHH_MESSAGE_LEN);
		*no_room = state == QUERY_JOINS_NO_ROOM ? query->no_room_join : -1;
		LWLockRelease(&area->lock);
		if (state != QUERY_JOINS_UNDECIDED)
			break;
		wait_for_news(channel, 1000);
	}
	ConditionVariableCancelSleep();
	return state == QUERY_JOINS_ON_DEVICE;
}

/*
 * The build side of join j is to be another one.  No batch of the query is outstanding.  From now
 * on the old one is not probed, so its query may be closed, and its memory is free soon.
 */
void
gpurhh_channel_leave_build(Channel *channel, int j)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	Assert(query->n_outstanding == 0);
	query->joins.build[j] = -1;
	query->join_state = QUERY_JOINS_UNDECIDED;
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/* This is it.  Once it is finished the service decides anew. */
void
gpurhh_channel_join_again(Channel *channel, int j, Channel *build)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->joins.build[j] = build->index;
	query->joins.serial[j] = channel_query(build)->serial;
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/* If a build side has no room, the device is not to do the joins. */
void
gpurhh_channel_leave_joins(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->joins_unwanted = true;
	if (query->join_state == QUERY_JOINS_NO_ROOM)
		query->join_state = QUERY_JOINS_UNDECIDED;
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/* Does the device do the query's joins, as far as is known now? */
bool
gpurhh_channel_joins_on_device(Channel *channel)
{
	ChannelArea *area = channel->area;
	bool		on_device;

	LWLockAcquire(&area->lock, LW_SHARED);
	on_device = channel_query(channel)->join_state == QUERY_JOINS_ON_DEVICE;
	LWLockRelease(&area->lock);
	return on_device;
}

/*
 * Only groups that fulfil the conditions are wanted, unless a participant says before the end of its
 * input that it has rows which may belong to them (gpurhh_channel_has_parts()).
 */
void
gpurhh_channel_want_groups(Channel *channel, const rhh_group_condition *conditions, int n)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->n_conditions = n;
	memcpy(query->conditions, conditions, n * sizeof(rhh_group_condition));
	LWLockRelease(&area->lock);
}

void
gpurhh_channel_has_parts(Channel *channel)
{
	ChannelArea *area = channel->area;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	channel_query(channel)->has_parts = true;
	LWLockRelease(&area->lock);
}

/* No more batches. */
void
gpurhh_channel_end_input(Channel *channel)
{
	ChannelArea *area = channel->area;

	Assert(channel->filling < 0);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	channel_query(channel)->input_done = true;
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/*
 * Waits until the map can be read, or the query has been declined, which means that
 * there is none.  Returns false if a batch has come back first; the caller takes it and
 * calls again.
 */
bool
gpurhh_channel_wait_finished(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		returned;
	bool		finished;

	for (;;)
	{
		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		returned = query->returned.head >= 0 && may_finish(channel);
		/* what came back may have gone with a service that ended since */
		finished = query->finished && !query->failed;
		LWLockRelease(&area->lock);
		if (returned || finished)
			break;
		wait_for_news(channel, 1000);
	}
	ConditionVariableCancelSleep();
	return !returned;
}

/*
 * Does this participant emit groups?  To be asked once the map can be read.
 *
 * All participants emit, unless a host table has some of the rows or the groups
 * have to be merged in one process (only_one).  Then only the finisher emits; if
 * there is none yet, the first participant that may be the finisher becomes it.
 */
bool
gpurhh_channel_may_emit(Channel *channel, bool only_one)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		may_emit = true;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	/* not so any more if the finisher has asked for a second level since */
	Assert(query->finished || query->finisher_pid != 0);
	if (only_one || query->finisher_pid != 0 || query->stats.orphans > 0)
	{
		may_emit = may_finish(channel);
		if (may_emit)
			query->finisher_pid = MyProcPid;
	}
	LWLockRelease(&area->lock);
	return may_emit;
}

/*
 * Does the map have all rows that were submitted, and every group once?  To be asked
 * once the map can be read.
 */
bool
gpurhh_channel_complete(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		complete;

	LWLockAcquire(&area->lock, LW_SHARED);
	complete = !query->declined && query->stats.refused_rows == 0 &&
		query->stats.orphans == 0;
	LWLockRelease(&area->lock);
	return complete;
}

/*
 * Decides who makes the second level; to be called before the first group is
 * fetched.  If wanted, the device is to make it: then the caller waits again until
 * the map can be read, and asks gpurhh_channel_level_on_device() whether the device has
 * made the level.
 */
void
gpurhh_channel_decide_level(Channel *channel, bool wanted)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	Assert(query->level == QUERY_LEVEL_UNDECIDED);
	query->level = wanted ? QUERY_LEVEL_WANTED : QUERY_LEVEL_NONE;
	if (wanted)
		query->finished = false;
	gpurhh_wake_service(area);
	LWLockRelease(&area->lock);
}

/* Has the device made the second level?  If so, *stats tells what that took. */
bool
gpurhh_channel_level_on_device(Channel *channel, rhh_map_stats *stats)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		on_device;

	LWLockAcquire(&area->lock, LW_SHARED);
	on_device = query->level == QUERY_LEVEL_ON_DEVICE;
	*stats = query->second_stats;
	LWLockRelease(&area->lock);
	return on_device;
}

/*
 * Copies the next groups to the caller's memory; returns false if there are none.
 *
 * While the participants make rows of these groups, the service already fetches
 * the following ones.  It does so only while half of the pool is free, because a
 * cursor that is not fetched from keeps those blocks.
 */
bool
gpurhh_channel_fetch(Channel *channel, ChannelResult *result)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	uint32		n_words;
	const uint64 *from;
	int			block;

	for (;;)
	{
		bool		none_left;

		LWLockAcquire(&area->lock, LW_EXCLUSIVE);
		block = gpurhh_block_pop(area, &query->results);
		/* those that a service took along when it ended are not "none" */
		none_left = block < 0 && query->all_extracted &&
			query->n_results == 0;
		if (block >= 0)
		{
			query->n_results--;
			area->blocks[block].holder = BLOCK_SESSION;
			channel->reading = block;
			area->stats.groups_returned += area->blocks[block].n_groups;
			result->last = query->all_extracted && query->n_results == 0;
		}
		if ((block < 0 && !none_left) != channel->fetching)
		{
			query->n_fetching += channel->fetching ? -1 : 1;
			channel->fetching = !channel->fetching;
		}
		/* there is room for one more result, or need of one */
		if (!query->all_extracted)
			gpurhh_wake_service(area);
		LWLockRelease(&area->lock);
		if (block >= 0 || none_left)
			break;
		wait_for_news(channel, 1000);
	}
	ConditionVariableCancelSleep();
	if (block < 0)
		return false;

	result->n_groups = area->blocks[block].n_groups;
	result->needs_merge = area->blocks[block].needs_merge;
	result->first_level = area->blocks[block].first_level;
	n_words = rhh_result_words(gpurhh_result_spec(query, result->first_level));
	result->capacity_groups = area->block_bytes / sizeof(uint64) / n_words;
	from = (const uint64 *) gpurhh_block_base(area, block);
	Assert(result->n_groups <= result->capacity_groups);
	for (uint32 w = 0; w < n_words; w++)
		memcpy(result->words + (Size) w * result->capacity_groups,
			   from + (Size) w * result->capacity_groups,
			   result->n_groups * sizeof(uint64));

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	gpurhh_block_free(area, block);
	LWLockRelease(&area->lock);
	channel->reading = -1;
	return true;
}

/*
 * Tells what the device did so far, its name, and why it is not the one asked for.
 * Returns false if no device has a map for the query.
 */
bool
gpurhh_channel_stats(Channel *channel, rhh_map_stats *stats, char *device,
					 char *why)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	bool		declined;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	declined = query->declined;
	*stats = query->stats;
	memcpy(device, query->used_device, GPURHH_DEVICE_NAME_LEN);
	memcpy(why, query->message, GPURHH_MESSAGE_LEN);
	LWLockRelease(&area->lock);
	return !declined;
}

/*
 * How many groups the device has left out of a map that is finished.  One participant is told, the
 * first that asks; the others get 0.
 */
uint64
gpurhh_channel_count_left_out(Channel *channel)
{
	ChannelArea *area = channel->area;
	ChannelQuery *query = channel_query(channel);
	uint64		left_out = 0;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	if (query->finished && !query->declined && !query->left_out_counted)
		left_out = query->stats.left_out;
	query->left_out_counted = true;
	LWLockRelease(&area->lock);
	return left_out;
}

void
gpurhh_channel_close(Channel *channel)
{
	release_channel(channel);
}
