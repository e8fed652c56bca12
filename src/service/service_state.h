/*-------------------------------------------------------------------------
 *
 * service_state.h
 *		What the files of the device service share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_SERVICE_STATE_H
#define GPURHH_SERVICE_STATE_H

#include "channel/area.h"
#include "service/service.h"

typedef enum TableState
{
	TABLE_NONE,					/* no query, or not looked at yet */
	TABLE_OPEN,
	TABLE_REFUSED,				/* batches go back as they come */
	TABLE_REGROUPING,			/* batches come from the first table's groups */
	TABLE_FINISHING,
	TABLE_READING
} TableState;

/* The first level on its way to the second; see service_levels.c. */
typedef struct RegroupWork RegroupWork;

/* What the service keeps of a query beside the area's ChannelQuery. */
typedef struct ServiceQuery
{
	TableState	state;
	struct ServiceDevice *device;
	rhh_table  *table;			/* the one that is filled, or read last */
	rhh_table  *first;			/* of a second level: the first one's; NULL: it
								 * has gone, or there is none */
	RegroupWork *regroup;		/* while it is put into the second one */
	int			in_flight;		/* batches, finish or extract */
	bool		cancelled;
	int			result_block;	/* being filled with result, or -1 */
	rhh_result	result;
} ServiceQuery;

typedef struct ServiceDevice
{
	const rhh_device_ops *ops;	/* NULL: of a kind that could not be loaded */
	int			ordinal;
	char		name[GPURHH_DEVICE_NAME_LEN];	/* "cpu", "cuda:0" */
	rhh_device_info info;
	rhh_device *device;			/* NULL: not open */
	char		problem[GPURHH_MESSAGE_LEN];	/* why it did not open */
} ServiceDevice;

/* ---------- cuda_library.c ---------- */

extern const rhh_device_ops *gpurhh_load_cuda(char *why);

/* ---------- service.c ---------- */

extern void gpurhh_service_fail(ServiceQuery *sq, ChannelQuery *query,
								rhh_status status, const rhh_error *err);
extern rhh_status gpurhh_service_make_table(ServiceQuery *sq,
											const rhh_table_spec *wanted,
											rhh_table **table, rhh_error *err);

/* ---------- service_levels.c ---------- */

extern void gpurhh_service_start_regroup(ChannelArea *area, ServiceQuery *sq,
										 ChannelQuery *query);
extern bool gpurhh_service_regroup(ChannelArea *area, ServiceQuery *sq,
								   ChannelQuery *query);
extern void gpurhh_service_regroup_read(ServiceQuery *sq, rhh_status status);
extern void gpurhh_service_end_regroup(ServiceQuery *sq);

#endif							/* GPURHH_SERVICE_STATE_H */
