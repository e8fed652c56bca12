/*-------------------------------------------------------------------------
 *
 * stage.h
 *		A stage of the node: it takes rows and makes groups of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_STAGE_H
#define GPURHH_EXEC_STAGE_H

#include "nodes/execnodes.h"

#include "channel/channel.h"
#include "exec/host_table.h"
#include "exec/levels.h"
#include "exec/node_stats.h"

/* What a stage returns groups of; see agg_groups.c for the order. */
typedef enum StagePhase
{
	STAGE_UNFED,				/* nothing yet: it has got no rows */
	STAGE_MAP,					/* the map on the device; groups that the host
								 * table has as well are merged there instead */
	STAGE_HOST,					/* the host table; in the first stage then also the
								 * host table of each pass over deferred rows */
	STAGE_MERGED,				/* a host table of all of the first stage's
								 * groups, where keys may be odd */
	STAGE_SOURCE,				/* the source: the level takes its groups, and
								 * those that are groups of this stage, too, are
								 * returned as they are */
	STAGE_LEVEL,				/* the level: what it made of the source's groups,
								 * or groups of no rows */
	STAGE_DONE
} StagePhase;

/*
 * A stage of one run.  See stage.c for what it consists of.
 *
 * gpurhh_stage_start() makes it, gpurhh_stage_release() frees all that it has.
 * Memory is in the context of the run, and so are handles of queries, which a
 * reset of the context closes; temporary files are the resource owner's.  So an
 * error releases everything as well.
 */
typedef struct AggStage AggStage;

struct AggStage
{
	/* what it is made of */
	AggStage   *source;			/* whose groups are its rows; NULL: the rows are
								 * the child's */
	Level	   *level;			/* how groups are made of these; NULL: of the
								 * child's rows */
	rhh_map_spec *map_spec;		/* of a device's map; NULL: no device can have it */
	MemoryContext context;		/* of the run */
	GpuNodeCounts *counts;		/* of the node */
	GpuLevelStats *stats;		/* of this level */

	StagePhase	phase;

	/* the map on the device */
	Channel    *channel;		/* the query that has it; NULL: there is none, or it
								 * has been left */
	bool		owns_channel;	/* else it is the parallel plan's */
	bool		in_source_query;	/* the map is in the source's query, channel is
									 * NULL */
	ChannelArea *area;			/* of the query, also after it has been left; NULL:
								 * there was none */
	bool		has_groups;		/* there are groups to be fetched */
	ChannelResult chunk;		/* those that were fetched last */
	uint32		chunk_next;		/* the next of them to return */

	/* the host's part */
	HostTable  *host;			/* refused rows; NULL until there is one */
	HostTable  *merged;			/* see STAGE_MERGED; NULL until that */
	uint64		spilled;		/* records that went to disk, of host tables that
								 * have been freed */

	/* whose program finishes rows that the device could not compute; NULL: it computes
	 * none */
	struct JoinInput *joins;
};

/* ---------- stage.c ---------- */

extern void gpurhh_set_limits(const CustomScanState *node, rhh_map_spec *spec);
extern void gpurhh_stage_start(AggStage *stage, AggStage *source, Level *level,
							   rhh_map_spec *map_spec, MemoryContext context,
							   GpuNodeCounts *counts, GpuLevelStats *stats);
extern void gpurhh_stage_use_query(AggStage *stage, Channel *channel, bool owns);
extern void gpurhh_stage_leave_query(AggStage *stage);
extern void gpurhh_stage_free_host(AggStage *stage);
extern void gpurhh_stage_release(AggStage *stage);
extern void gpurhh_stage_note_map(AggStage *stage);
extern uint64 gpurhh_stage_spilled(const AggStage *stage);
extern void gpurhh_stage_add_on_host(AggStage *stage, const rhh_batch *batch,
									 bool all_rows);
extern void gpurhh_stage_take_returned(AggStage *stage);
extern const uint64 *gpurhh_stage_next_of_map(AggStage *stage, Size *stride,
											  uint32 *n);
extern const uint64 *gpurhh_stage_next_of_host(AggStage *stage, HostTable *host);

/* ---------- level_feed.c ---------- */

/* Groups on their way to a stage's map that this session feeds. */
typedef struct LevelFeed LevelFeed;

extern LevelFeed *gpurhh_level_feed_start(AggStage *stage);
extern void gpurhh_level_feed_add(LevelFeed *feed, const uint64 *words,
								  Size stride, uint32 n);
extern void gpurhh_level_feed_finish(LevelFeed *feed);

#endif							/* GPURHH_EXEC_STAGE_H */
