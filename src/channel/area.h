/*-------------------------------------------------------------------------
 *
 * area.h
 *		What sessions and the device service share: the area and its queries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_CHANNEL_AREA_H
#define GPURHH_CHANNEL_AREA_H

#include "port/atomics.h"
#include "postmaster/bgworker.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/timestamp.h"

#include "batch/batch.h"
#include "rhh_pages.h"
#include "rhh_program.h"

/* ---------- channel_area.c ---------- */

typedef struct ChannelArea ChannelArea;

#define GPURHH_MAX_QUERIES	128
#define GPURHH_SESSION_QUERIES (GPURHH_MAX_QUERIES / 4) /* where all share them */
#define GPURHH_MAX_BLOCKS	2048
#define GPURHH_MAX_DEVICES	17	/* the CPU and sixteen GPUs */
#define GPURHH_DEVICE_NAME_LEN 32
#define GPURHH_MESSAGE_LEN	256

/* Changes with the layout, as far as a number can. */
#define GPURHH_AREA_MAGIC \
	((uint32) (0x67707500 ^ (sizeof(ChannelArea) << 8) ^ \
			   (sizeof(ChannelQuery) << 4) ^ sizeof(ChannelBlock)))
#define GPURHH_MIN_BLOCK_BYTES	((Size) 128 * 1024)
#define GPURHH_MAX_BLOCK_BYTES	((Size) 1024 * 1024)

typedef enum ServiceState
{
	SERVICE_STOPPED,
	SERVICE_STARTING,
	SERVICE_RUNNING
} ServiceState;

/* Who has to free a block. */
typedef enum BlockHolder
{
	BLOCK_NOBODY,				/* on the free list */
	BLOCK_SESSION,				/* fills it, finishes refused rows, or reads
								 * groups from it */
	BLOCK_SERVICE,				/* queued, with a device, or on the way back */
	BLOCK_READ					/* of pages that have been read: the session that has
								 * pinned them frees it */
} BlockHolder;

typedef struct ChannelBlock
{
	int			next;			/* in the list it is on; -1 ends it */
	BlockHolder holder;
	bool		all_rows;		/* as returned: no row of the batch was taken */
	bool		needs_merge;	/* as results: see rhh_result */
	bool		first_level;	/* and are not of the second, but of the first */
	bool		more;			/* as returned: the output of the batch's joins goes on
								 * at batch.from, see rhh_batch */
	uint32		n_refused;		/* as returned: rows of that output */
	bool		unread;			/* the device has yet to read its pages */
	uint64		pinned;			/* its pages are pinned by the participant that knows this number;
								 * 0: it has none, or nobody cares any more */
	uint32		cache_offset;	/* where its CacheRequest is; 0: it has none */
	bool		cache_begun;	/* the service's: it has done what that asks for, in so far */
	/* the service's, of pages of the cache: */
	uint32		n_bad_pages;
	uint32		n_rows;			/* if that is 0: their rows, without those that were dropped, */
	uint32		n_dropped;		/* and these */
	uint32		n_groups;
	rhh_batch	batch;			/* base is not valid across processes */
} ChannelBlock;

typedef struct BlockList
{
	int			head;
	int			tail;
} BlockList;

typedef enum QueryState
{
	QUERY_FREE,
	QUERY_ACTIVE,
	QUERY_RELEASED				/* the session is done; the service cleans up */
} QueryState;

/* Who makes the second level of a query. */
typedef enum QueryLevel
{
	QUERY_LEVEL_NONE,			/* there is none, or the session makes it from the
								 * groups that it fetches */
	QUERY_LEVEL_UNDECIDED,		/* the session has not decided yet; until then no
								 * groups are extracted */
	QUERY_LEVEL_WANTED,			/* the device, if it has memory for it */
	QUERY_LEVEL_ON_DEVICE		/* the device; what is fetched is of both levels */
} QueryLevel;

/* Joins whose output are the rows of a query's map. */
typedef struct ChannelJoins
{
	rhh_join_spec spec;			/* the build sides are in other queries: */
	int			build[RHH_MAX_JOINS];	/* their numbers in the area; -1: the session is
										 * about to open another one */
	uint64		serial[RHH_MAX_JOINS];
	bool		has_program;	/* spec's pointer to it is not valid across processes */
	rhh_program program;
	bool		has_condition[RHH_MAX_JOINS];	/* the same of these */
	rhh_program conditions[RHH_MAX_JOINS];
} ChannelJoins;

/* Whether the device does a query's joins. */
typedef enum QueryJoins
{
	QUERY_JOINS_NONE,			/* there are none */
	QUERY_JOINS_UNDECIDED,		/* not before all build sides are finished */
	QUERY_JOINS_NO_ROOM,		/* nor before the session has said what to do about a
								 * build side that has no room */
	QUERY_JOINS_ON_DEVICE,		/* batches are rows of the probe side */
	QUERY_JOINS_OFF				/* the device cannot: batches are rows of the output */
} QueryJoins;

/*
 * One query's conversation with the service.  Its participants (the processes
 * that have it open: one, or those of a parallel plan) write the spec, the
 * batches and their wishes; the service answers, and wakes those who wait.
 */
typedef struct ChannelQuery
{
	QueryState	state;			/* the service looks for QUERY_FREE unlocked */
	uint32		generation;		/* the service's that it was opened with */
	uint64		serial;			/* no other query of the area has it */
	int			session_pid;	/* of a worker: its leader's */
	int			n_participants;
	ConditionVariable news;		/* of anything that one may wait for */
	char		device[GPURHH_DEVICE_NAME_LEN]; /* asked for */
	rhh_map_spec spec;
	QueryLevel	level;
	LevelPlan	level_plan;		/* unless QUERY_LEVEL_NONE from the start */
	QueryJoins	join_state;
	ChannelJoins joins;			/* unless QUERY_JOINS_NONE */
	char		joins_message[GPURHH_MESSAGE_LEN];	/* why QUERY_JOINS_OFF or NO_ROOM */
	int			no_room_join;	/* QUERY_JOINS_NO_ROOM: of which join */
	bool		joins_unwanted; /* the session does the joins if a build side has no room */
	int			n_unjoined;		/* batches that are returned, or with the finisher, and
								 * whose output is not complete */
	bool		pages_asked;	/* by who has opened it: batches shall have pages */
	bool		pages;			/* they may; before it has started, whether that is wanted */
	bool		pages_on_cpu;	/* also if its device is the CPU, */
	bool		by_cpu;			/* service: as it is */
	bool		cache_asked;	/* by who has opened it: pages may be cached ... */
	bool		cache;			/* ... and service: the device may have them */
	bool		started;		/* service: it has a map, or is declined */
	bool		spoiled;		/* of a build side: it cannot be probed */
	bool		no_room;		/* and the reason is that it has no room in memory */
	char		spoiled_message[GPURHH_MESSAGE_LEN];	/* why */

	BlockList	queued;			/* to the service */
	BlockList	returned;		/* to the finisher, with refused rows */
	int			n_outstanding;	/* queued, with the device, or returned */
	int			n_unread;		/* of these: batches of pages that have not been read */
	uint64		n_done;			/* batches that are not outstanding any more */
	bool		sleeps;			/* the plan that gives its rows may sleep, and then
								 * nobody takes the batches that are returned */
	bool		at_limit;		/* a participant waits until n_outstanding is lower */
	bool		at_share;		/* a participant waits because the session keeps as
								 * many blocks as it may keep */
	int			finisher_pid;	/* the participant that takes returned batches
								 * into its host table; 0: there is none yet */

	uint32		n_conditions;	/* on the groups that are wanted */
	rhh_group_condition conditions[RHH_MAX_CONDITIONS];
	bool		has_parts;		/* sessions may have rows of the map's groups, so
								 * conditions cannot be applied to these */
	bool		left_out_counted;	/* a participant counts the groups that they leave out */
	bool		input_done;		/* no more batches will come */
	bool		finished;		/* service: the map can be read */
	bool		declined;		/* service: no device has a map for it, so all
								 * batches come back */
	bool		failed;			/* service: ends in an error, see message */
	char		message[GPURHH_MESSAGE_LEN];	/* why declined or failed */

	int			n_fetching;		/* participants that wait for groups */
	BlockList	results;		/* to whichever participant comes first */
	int			n_results;
	bool		all_extracted;	/* service: no results after those */

	char		used_device[GPURHH_DEVICE_NAME_LEN];
	rhh_map_stats stats;
	rhh_map_stats second_stats; /* of the second level's map */
} ChannelQuery;

/* Whose groups a query's results are: the first level's, or what was made of it. */
static inline const rhh_map_spec *
gpurhh_result_spec(const ChannelQuery *query, bool first_level)
{
	return query->level == QUERY_LEVEL_ON_DEVICE && !first_level ?
		&query->level_plan.spec : &query->spec;
}

/*
 * One query's blocks in use at a time: enough to keep a device busy, while each
 * participant has one under way and one that waits for it.
 */
static inline int
gpurhh_most_outstanding(const ChannelQuery *query)
{
	return 14 + 2 * query->n_participants;
}

/* Is what comes back of a query rows of its output, as columns?  So it is where the device joins. */
static inline bool
gpurhh_returns_columns(const ChannelQuery *query)
{
	return query->join_state == QUERY_JOINS_ON_DEVICE;
}

/* Cumulative since the service started. */
typedef struct ServiceStats
{
	TimestampTz started_at;
	uint64		queries;
	uint64		rows_fed;
	uint64		bytes_uploaded;
	uint64		groups_returned;
	uint64		failed_slots;
	uint64		rehashes;
	uint64		host_rows;
	uint64		host_queries;	/* that stayed with a session, see load.c */
	uint64		late_batches;	/* for which the pool had no block */
	uint64		device_errors;
	uint64		pool_wait_us;	/* sessions' waiting for free blocks */
	uint64		upload_ns;
	uint64		kernel_ns;
	uint64		extract_ns;
} ServiceStats;

/* What a private service cannot read from its own configuration. */
typedef struct ServiceSettings
{
	int			device_memory_mb;
	int			cpu_threads;
	int			idle_timeout_s;
} ServiceSettings;

/*
 * The shared area: in main shared memory with preload, else in a DSM segment
 * of the session.  The lock guards everything but the blocks' contents, and
 * is held for a few instructions at a time.
 */
struct ChannelArea
{
	uint32		magic;			/* a service of another build keeps away */
	LWLock		lock;
	int			tranche_id;
	bool		shared;			/* one for all sessions */
	uint32		segment;		/* private: dsm_handle of the segment that it is in */
	bool		owner_gone;		/* private: the session ended */

	ServiceState service_state;
	int			service_pid;
	struct Latch *service_latch;
	uint32		generation;		/* grows with each service */
	TimestampTz starting_since;
	ServiceSettings settings;
	ServiceStats stats;
	TimestampTz cuda_failed_at; /* 0: never; "auto" then keeps away a while */

	int			devices_wanted; /* requests to look again, and answers */
	int			devices_seen;
	int			n_devices;
	rhh_device_info devices[GPURHH_MAX_DEVICES];

	Size		pool_offset;	/* from the area's start */
	Size		block_bytes;
	int			n_blocks;
	int			n_free;
	int			free_head;		/* last freed first: it is warm in caches */
	uint64		n_freed;		/* how often a block came free to be filled */
	bool		service_wants_block;	/* wake the service when one is freed */
	bool		any_at_share;	/* some query may be at_share */
	uint64		want_block[GPURHH_MAX_QUERIES / 64];	/* a bit for each query
														 * that waits for one */
	int			next_waiter;	/* query whose turn it is, if it waits */
	pg_atomic_uint32 n_reading; /* sessions, see load.c */
	pg_atomic_uint32 n_pinned;	/* pages of batches, by all sessions */
	uint64		last_pinned;	/* the last of ChannelBlock's */
	uint64		last_serial;

	ChannelQuery queries[GPURHH_MAX_QUERIES];
	ChannelBlock blocks[FLEXIBLE_ARRAY_MEMBER];
};

extern void gpurhh_init_channel(void);
extern ChannelArea *gpurhh_channel_attach(const char **why);
extern ChannelArea *gpurhh_channel_peek(void);
extern ChannelArea *gpurhh_shared_area(void);
extern int	gpurhh_private_pool_kb(void);
extern bool gpurhh_ensure_service(ChannelArea *area, const char **why);
extern void gpurhh_refresh_devices(ChannelArea *area);
extern uint32 gpurhh_area_segment(ChannelArea *area);
extern ChannelArea *gpurhh_area_in_segment(uint32 handle);

/* Used by both ends; the caller holds the lock. */
extern void gpurhh_block_push(ChannelArea *area, BlockList *list, int block);
extern int	gpurhh_block_pop(ChannelArea *area, BlockList *list);
extern void gpurhh_block_free(ChannelArea *area, int block);
extern void gpurhh_block_done(ChannelArea *area, ChannelQuery *query,
							  int block);
extern void gpurhh_query_spoil(ChannelQuery *query, const char *why);
extern int	gpurhh_block_take(ChannelArea *area, BlockHolder holder);
extern int	gpurhh_session_share(const ChannelArea *area,
								 const ChannelQuery *query);
extern int	gpurhh_session_keeps(const ChannelArea *area,
								 const ChannelQuery *query);
extern char *gpurhh_block_base(ChannelArea *area, int block);
extern void gpurhh_wake_service(ChannelArea *area);
extern void gpurhh_count_host_rows(ChannelArea *area, uint64 rows);

/* ---------- service_worker.c ---------- */

extern void gpurhh_describe_service_worker(BackgroundWorker *worker,
										   uint32 dsm_handle);
extern bool gpurhh_start_service_worker(ChannelArea *area, uint32 dsm_handle,
										const char **why);

#endif							/* GPURHH_CHANNEL_AREA_H */
