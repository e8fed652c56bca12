/*-------------------------------------------------------------------------
 *
 * service_state.h
 *		What the files of the device service share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SERVICE_STATE_H
#define GPURHH_SERVICE_STATE_H

#include <signal.h>

#include "storage/latch.h"

#include "cache/page_cache.h"
#include "channel/area.h"
#include "service/service.h"

typedef struct DeviceService DeviceService;

/* The service's part of the pages that a device has copies of; see service_cache.c. */
typedef struct ServiceCache ServiceCache;

/* How far a query's map is; see queries.c. */
typedef enum QueryMapState
{
	MAP_NONE,					/* no query, or not looked at yet */
	MAP_OPEN,
	MAP_DECLINED,				/* there is no map: batches go back as they come */
	MAP_MAKING_LEVEL,			/* its rows are made of the first map's groups */
	MAP_FINISHING,
	MAP_READING
} QueryMapState;

/* The first level on its way to the second; see service_levels.c. */
typedef struct LevelWork LevelWork;

/* An entry of the cache that is in use for a batch that is to come again. */
typedef struct HeldEntry
{
	uint32		entry;
	int			block;			/* the batch's */
} HeldEntry;

/* What the service keeps of a query beside the area's ChannelQuery. */
typedef struct ServiceQuery
{
	QueryMapState state;
	struct ServiceDevice *device;
	rhh_map    *map;			/* of the only level, or of the second */
	rhh_map    *first_map;		/* of the first of two levels; NULL: there is only
								 * one level, or this map has been read and freed */
	LevelWork  *level;			/* while rows are made of the first map's groups */
	int			in_flight;		/* commands that the device has not completed */
	int			n_probing;		/* maps of other queries that probe this one's */
	int			n_probed;		/* of the other queries whose maps this one's probes, */
	int			probed[RHH_MAX_JOINS];	/* the numbers */
	bool		cancelled;
	HeldEntry  *cached;			/* entries of the cache that are in use */
	uint32		n_cached;
	int			result_block;	/* which the device fills with result, or -1 */
	rhh_result	result;
} ServiceQuery;

typedef struct ServiceDevice
{
	DeviceService *service;
	const rhh_device_ops *ops;	/* NULL: of a kind that could not be loaded */
	int			ordinal;
	char		name[GPURHH_DEVICE_NAME_LEN];	/* "cpu", "cuda:0" */
	rhh_device_info info;
	rhh_device *device;			/* NULL: not open */
	bool		reads_pages;	/* out of shared buffers; see gpurhh_service_reads_pages() */
	char		no_pages[GPURHH_MESSAGE_LEN];	/* why it does not, where it is a GPU */
	char		problem[GPURHH_MESSAGE_LEN];	/* why it did not open */
} ServiceDevice;

/* The process's state.  At the start all but the area is zero. */
struct DeviceService
{
	ChannelArea *area;
	uint32		generation;		/* of this service, among those of the area */
	sigset_t	all_signals;	/* blocked around calls of devices */

	ServiceDevice devices[GPURHH_MAX_DEVICES];
	int			n_devices;
	char		no_gpu[GPURHH_MESSAGE_LEN]; /* why there is none, if there is none */
	WaitEventSet *wait_set;		/* the latch, and the devices that are open */

	/* an error of a device, to be reported once signals are let in again; or "" */
	char		device_error[GPURHH_MESSAGE_LEN];
	bool		cuda_error;		/* it was a GPU's */

	ServiceCache *cache;		/* NULL: there is none */
	ServiceQuery queries[GPURHH_MAX_QUERIES];	/* of the area's queries */
};

/* ---------- cuda_library.c ---------- */

extern const rhh_device_ops *gpurhh_load_cuda(char *why);

/* ---------- devices.c ---------- */

extern void gpurhh_service_find_devices(DeviceService *service);
extern bool gpurhh_service_reads_pages(ServiceDevice *dev);
extern void gpurhh_service_publish_devices(DeviceService *service);
extern void gpurhh_service_rebuild_wait_set(DeviceService *service);
extern int	gpurhh_service_memory_limit_mb(const DeviceService *service);
extern int	gpurhh_service_cpu_threads(const DeviceService *service);
extern ServiceDevice *gpurhh_service_choose_device(DeviceService *service,
												   const char *wanted,
												   char *note, Size note_len);
extern void gpurhh_service_note_device_error(ServiceDevice *dev,
											 const char *message);

/* ---------- queries.c ---------- */

extern bool gpurhh_service_advance_query(DeviceService *service, int q);
extern bool gpurhh_service_poll_device(ServiceDevice *dev);
extern void gpurhh_service_return_block(ChannelArea *area, ChannelQuery *query,
										int block);
extern void gpurhh_service_fail_query(ChannelQuery *query,
									  const char *message);
extern void gpurhh_service_fail(ServiceQuery *sq, ChannelQuery *query,
								rhh_status status, const rhh_error *err);
extern rhh_status gpurhh_service_make_map(ServiceQuery *sq,
										  const rhh_map_spec *wanted,
										  rhh_map **map, rhh_error *err);

/* ---------- service_cache.c ---------- */

extern void gpurhh_service_make_cache(DeviceService *service);
extern bool gpurhh_service_may_cache(DeviceService *service, const ServiceDevice *dev);
extern bool gpurhh_service_begin_cached(DeviceService *service, const ServiceQuery *sq, int block,
										rhh_batch *batch);
extern void gpurhh_service_undo_cached(DeviceService *service, int block);
extern void gpurhh_service_end_cached(DeviceService *service, ServiceQuery *sq,
									  const rhh_event *event);
extern void gpurhh_service_drop_cached(DeviceService *service, ServiceQuery *sq);

/* ---------- service_joins.c ---------- */

extern bool gpurhh_service_is_build(const ChannelQuery *query);
extern bool gpurhh_service_look_at_builds(DeviceService *service, int q,
										  const char **why);
extern void gpurhh_service_spoil_full(ChannelQuery *query, const char *why);
extern bool gpurhh_service_join_again(DeviceService *service, int q);
extern const char *gpurhh_service_start_joins(DeviceService *service, int q,
											  rhh_error *err);
extern void gpurhh_service_drop_leaves(rhh_map_spec *spec);
extern void gpurhh_service_end_joins(DeviceService *service, int q);

/* ---------- service_levels.c ---------- */

extern void gpurhh_service_start_level(ChannelArea *area, ServiceQuery *sq,
									   ChannelQuery *query);
extern bool gpurhh_service_make_level(ChannelArea *area, ServiceQuery *sq,
									  ChannelQuery *query);
extern void gpurhh_service_piece_fed(ServiceQuery *sq, const ChannelQuery *query,
									 const rhh_event *event);
extern void gpurhh_service_level_read(ServiceQuery *sq, rhh_status status);
extern void gpurhh_service_end_level(ServiceQuery *sq);

#endif							/* GPURHH_SERVICE_STATE_H */
