/*-------------------------------------------------------------------------
 *
 * channel.h
 *		A session's end of a query with the device service.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_CHANNEL_CHANNEL_H
#define GPURHH_CHANNEL_CHANNEL_H

#include "cache/page_cache.h"
#include "channel/area.h"

/* ---------- channel.c ---------- */

/* Names a query to other processes. */
typedef struct ChannelAddress
{
	uint32		segment;		/* dsm_handle; 0: the shared area */
	int			index;
	uint64		serial;
} ChannelAddress;

/* A participant's handle of an open query; owned by a memory context. */
typedef struct Channel Channel;

typedef enum ChannelBlockResult
{
	CHANNEL_BLOCK,				/* a block to fill */
	CHANNEL_RETURNED,			/* rows that the device refused */
	CHANNEL_PAGES,				/* pages that have been read */
	CHANNEL_LATE				/* none to be had for a while */
} ChannelBlockResult;

typedef struct ChannelResult
{
	uint64	   *words;			/* column-major, stride capacity_groups; the
								 * caller's, and of a block's size */
	uint32		capacity_groups;
	uint32		n_groups;
	bool		needs_merge;
	bool		first_level;	/* there is a second, and these are not of it */
	bool		last;			/* there are no more, for any participant */
} ChannelResult;

/* A participant's batch of pages that have been read. */
typedef struct PagesRead
{
	const rhh_page *pages;
	uint32		n;
	bool		all_bad;		/* nothing has been read of them */
	const CacheRequest *request;	/* that the batch had; NULL: none */
	uint32		n_bad;			/* of pages of the cache; if it is 0: */
	uint32		n_rows;			/* their rows, without those that were dropped, */
	uint32		n_dropped;		/* and these */
} PagesRead;

extern Channel *gpurhh_channel_open(ChannelArea *area,
									const rhh_map_spec *spec,
									const LevelPlan *level_plan,
									const rhh_join_spec *joins,
									Channel *const *builds, bool pages,
									bool sleeps, MemoryContext context,
									const char **why);
extern ChannelAddress gpurhh_channel_address(Channel *channel);
extern Channel *gpurhh_channel_join(const ChannelAddress *address,
									bool may_finish, MemoryContext context);
extern Size gpurhh_channel_block_bytes(Channel *channel);
extern ChannelBlockResult gpurhh_channel_acquire(Channel *channel, bool wait,
												 char **base);
extern void gpurhh_channel_submit(Channel *channel, const rhh_batch *batch);
extern void gpurhh_channel_submit_pages(Channel *channel, const rhh_batch *batch,
										uint32 cache_offset);
extern void gpurhh_channel_drop_block(Channel *channel);
extern bool gpurhh_channel_may_read_pages(ChannelArea *area);
extern bool gpurhh_channel_asked_for_pages(Channel *channel);
extern bool gpurhh_channel_reads_pages(Channel *channel);
extern bool gpurhh_channel_cpu_reads(Channel *channel);
extern void gpurhh_channel_ask_for_cache(Channel *channel);
extern bool gpurhh_channel_has_cache(Channel *channel);
extern void gpurhh_channel_want_groups(Channel *channel, const rhh_group_condition *conditions,
									   int n);
extern void gpurhh_channel_has_parts(Channel *channel);
extern uint64 gpurhh_channel_count_left_out(Channel *channel);
extern int	gpurhh_channel_n_unread(Channel *channel);
extern void *gpurhh_channel_keep(Channel *channel, Size bytes, void (*released)(void *kept));
extern uint32 gpurhh_channel_pin_pages(Channel *channel, uint32 n);
extern void gpurhh_channel_unpin_pages(Channel *channel, uint32 n);
extern bool gpurhh_channel_take_pages(Channel *channel, PagesRead *read);
extern void gpurhh_channel_end_pages(Channel *channel, uint64 n_rows);
extern bool gpurhh_channel_wait_pages(Channel *channel);
extern bool gpurhh_channel_take_returned(Channel *channel, rhh_batch *batch,
										 bool *all_rows, const uint8 **bad);
extern void gpurhh_channel_give_back(Channel *channel);
extern rhh_batch *gpurhh_channel_park(Channel *channel, MemoryContext context);
extern bool gpurhh_channel_wait_returned(Channel *channel);
extern bool gpurhh_channel_wait_told(Channel *channel, bool (*is_done)(void *arg), void *arg);
extern void gpurhh_channel_tell(Channel *channel);
extern bool gpurhh_channel_settle(Channel *channel);
extern void gpurhh_channel_spoil(Channel *channel, const char *why);
extern bool gpurhh_channel_is_spoiled(Channel *channel);
extern bool gpurhh_channel_wait_joins(Channel *channel, char *why, int *no_room);
extern void gpurhh_channel_leave_build(Channel *channel, int j);
extern void gpurhh_channel_join_again(Channel *channel, int j, Channel *build);
extern void gpurhh_channel_leave_joins(Channel *channel);
extern bool gpurhh_channel_joins_on_device(Channel *channel);
extern void gpurhh_channel_end_input(Channel *channel);
extern bool gpurhh_channel_wait_finished(Channel *channel);
extern double gpurhh_channel_pool_wait_ms(Channel *channel);
extern uint64 gpurhh_channel_late_batches(Channel *channel);
extern bool gpurhh_channel_claim_finish(Channel *channel);
extern bool gpurhh_channel_may_emit(Channel *channel, bool only_one);
extern bool gpurhh_channel_complete(Channel *channel);
extern void gpurhh_channel_decide_level(Channel *channel, bool wanted);
extern bool gpurhh_channel_level_on_device(Channel *channel,
										   rhh_map_stats *stats);
extern bool gpurhh_channel_fetch(Channel *channel, ChannelResult *result);
extern bool gpurhh_channel_stats(Channel *channel, rhh_map_stats *stats,
								 char *device, char *why);
extern ChannelArea *gpurhh_channel_area(Channel *channel);
extern void gpurhh_channel_close(Channel *channel);

/* ---------- load.c ---------- */

/* A node's run that is reading its input. */
typedef struct Reading Reading;

extern Reading *gpurhh_load_begin(MemoryContext context);
extern void gpurhh_load_end(Reading *reading);
extern bool gpurhh_load_is_high(void);
extern void gpurhh_load_count_stay(void);

#endif							/* GPURHH_CHANNEL_CHANNEL_H */
