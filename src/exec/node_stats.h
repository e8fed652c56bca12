/*-------------------------------------------------------------------------
 *
 * node_stats.h
 *		What a node counts and measures, for EXPLAIN.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_NODE_STATS_H
#define GPURHH_EXEC_NODE_STATS_H

#include "nodes/pg_list.h"
#include "portability/instr_time.h"

#include "channel/area.h"
#include "exec/levels.h"

/* The first, whose groups are made of rows, and one for each level of groups. */
#define GPURHH_MAX_STAGES	(1 + GPURHH_MAX_LEVELS)

typedef struct GpuNodeCounts GpuNodeCounts;

/* Why a page comes back that the device was to read by itself, so that a session reads it. */
typedef enum BackReason
{
	BACK_VALUES,				/* it has values that the device does not read, or an expression of them may raise an error */
	BACK_NOT_FOUND,				/* the device has not found its rows, or too many of them */
	BACK_REFUSED,				/* the device's table has refused rows of it */
	BACK_UNREAD,				/* none of its batch was read: its copies were gone, or the query had ended there */
	N_BACK_REASONS
} BackReason;

/* Pages that the device was to read by itself. */
typedef struct PageCounts
{
	uint64		all;
	uint64		cached;			/* those of them that were read from the cache, */
	uint64		back[N_BACK_REASONS];	/* and those that came back */
} PageCounts;

/* What a node did: sums over its runs, and the participants of each. */
struct GpuNodeCounts
{
	uint64		runs;
	uint64		feeders;		/* participants that read a part of the input */
	uint64		declined;		/* of GpuHashJoin: runs of theirs in which core joined, */
	uint64		rests;			/* and those in which it joined what had no room */
	uint64		rows_fed;
	uint64		bytes_fed;
	uint64		batches;
	PageCounts	pages;			/* of the input, with joins of the probe side */
	uint64		host_rows;		/* added to host tables: refused rows and others */
	uint64		host_spilled;	/* records it wrote to disk */
	uint64		late_batches;	/* for which the pool had no block */
	uint64		groups_returned;
	uint64		dictionary_strings;
	uint64		dictionary_bytes;	/* the most of any run */
	uint64		deferred_rows;	/* written, once or more often */
	uint64		passes;			/* that read them */
	uint64		left_over;		/* rows of a join's probe side that core joined */
	uint64		output_bytes;	/* of GpuHashJoin: of joined rows, to temporary files */
	uint64		build_bytes[RHH_MAX_JOINS]; /* that were fed of a join's build side, */
	uint64		build_batches[RHH_MAX_JOINS];
	PageCounts	build_pages[RHH_MAX_JOINS];
	double		build_ms[RHH_MAX_JOINS];	/* and the wall time to read and hand over these */
	uint64		key_filtered[RHH_MAX_JOINS];	/* rows that a join's key filter dropped */
	uint8		key_filters[RHH_MAX_JOINS]; /* KeyFilterForm: the best of any run */
	uint64		odd_values;		/* see odd_arguments.c */
	uint64		odd_compared;	/* others that may equal one of these */
	uint64		odd_bytes;		/* the most of any run */
	double		feed_ms;		/* wall time to read and hand over the input, of all
								 * sides */
	double		pool_wait_ms;	/* of that: waiting for a free block; of the third
								 * level it is of fetch_ms */
	double		fetch_ms;		/* wall time to wait for groups and copy them;
								 * of the host table and of levels, too */
	double		form_ms;		/* to make rows of them, by sampling */
};

/* Where the groups of a level above the first were made. */
typedef enum GpuLevelPlace
{
	GPU_LEVEL_NONE,				/* there is none, or not by this process */
	GPU_LEVEL_HOST,
	GPU_LEVEL_DEVICE
} GpuLevelPlace;

/* Of one level of groups. */
typedef struct GpuLevelStats
{
	GpuLevelPlace place;		/* unused in the first level, which is where device
								 * says */
	rhh_map_stats map;			/* the device's, if it has one */
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		declined[GPURHH_MESSAGE_LEN];	/* why the device that was asked for
												 * has no map; "": it has one */
} GpuLevelStats;

/* Of a join that the device did. */
typedef struct GpuJoinStats
{
	uint64		build_rows;		/* that the map has: those without NULL in a key */
	uint64		keys;			/* different ones of these */
	uint64		slots;			/* of the map; of parts the most */
	uint64		bytes;
	uint64		probe_sum;		/* lengths of the searches for all keys, one for each */
	uint64		probe_max;
	uint64		upload_ns;		/* of the map */
	uint64		kernel_ns;
	uint64		rows;			/* that came out of the join */
	uint64		passes;			/* over the probe side, as the build side came in parts */
} GpuJoinStats;

/* For EXPLAIN ANALYZE. */
typedef struct GpuNodeStats
{
	bool		valid;			/* the input has been read */
	bool		feed_groups;	/* the device makes the rows of the child's groups;
								 * then pages and rows do not count */
	bool		feed_pages;		/* pages are read */
	bool		feed_rows;		/* rows are asked for; perhaps both */
	const char *feed_why;		/* why rows */
	int			n_joins;		/* that the device does, or would do */
	bool		joins_done;		/* it did; then pages and rows are the probe side's */
	bool		kept;			/* of GpuHashJoin: and the device kept what came out for a node above */
	const char *joins_why;		/* why it did not, or did not in a run */
	const char *rest_why;		/* why core joined the rest in a run */
	bool		key_filter[RHH_MAX_JOINS];	/* the join is to have one */
	GpuNodeCounts counts;
	bool		parallel;
	bool		strings;		/* are among the columns */
	bool		numerics;		/* are among the arguments */
	GpuLevelStats levels[GPURHH_MAX_STAGES];
	GpuJoinStats joins[RHH_MAX_JOINS];
} GpuNodeStats;

/* ---------- node_stats.c ---------- */

extern void gpurhh_add_counts(GpuNodeCounts *sum, GpuNodeCounts *counts);
extern void gpurhh_add_joins(GpuJoinStats *sums, const GpuJoinStats *joins, int n_joins);
extern void gpurhh_add_level(GpuLevelStats *sum, const GpuLevelStats *level);

/* ---------- explain.c ---------- */

struct CustomScanState;
struct ExplainState;

extern void gpurhh_explain_agg(struct CustomScanState *node, List *ancestors,
							   struct ExplainState *es, const GpuNodeStats *stats);
extern void gpurhh_explain_join(struct ExplainState *es, const GpuNodeStats *stats);

static inline double
milliseconds_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

#endif							/* GPURHH_EXEC_NODE_STATS_H */
