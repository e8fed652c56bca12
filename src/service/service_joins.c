/*-------------------------------------------------------------------------
 *
 * service_joins.c
 *		Queries whose rows the device joins.
 *
 * Each build side is a query of its own, whose map keeps its rows.  A session feeds it
 * as it feeds any query, and fetches nothing from it.  If the device refuses one of its
 * rows, the build side is of no use (spoiled), and no batch of it goes back.
 *
 * A query that probes has no map before all its build sides are finished.  Then the
 * service makes the map and tells the device of the joins, or decides that the joins are
 * off; a session that waits for that in gpurhh_channel_wait_joins() is told.  If they
 * are off, the map takes rows like any other: the session joins them by itself.
 *
 * If a build side has no room in memory, that is for the session to decide, too.  It is told by
 * QUERY_JOINS_NO_ROOM.  The session may close that query, open another one for a part of the
 * rows, and put it in the place of the first.  Once this is finished the service makes the map, or
 * tells the device of other joins for the map that is there (gpurhh_service_join_again()).
 *
 * The device may read the map of a build side until all maps that probe it are
 * destroyed, or have other joins.  So queries are counted in n_probing of their build sides, and
 * a build side that its session has closed stays until that is 0.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/lwlock.h"

#include "service/service_state.h"

/* Is the query's map the build side of joins? */
bool
gpurhh_service_is_build(const ChannelQuery *query)
{
	return (query->spec.flags & RHH_KEEP_ROWS) != 0;
}

/*
 * A row of a build side, or what finishing needs, has no room in memory.  The caller holds the
 * lock.
 */
void
gpurhh_service_spoil_full(ChannelQuery *query, const char *why)
{
	query->no_room |= !query->spoiled;
	gpurhh_query_spoil(query, why);
}

/* What is known of the build sides of a query. */
typedef struct BuildsState
{
	bool		all;			/* all are finished */
	int			no_room;		/* the first join whose build side has no room; -1: none */
	const char *no_room_why;
	const char *why;			/* why one cannot be probed, for another reason */
} BuildsState;

/* The caller holds the lock. */
static BuildsState
look_at_builds(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	const ChannelJoins *joins = &area->queries[q].joins;
	BuildsState state = {.all = true, .no_room = -1};
	const ServiceDevice *device = service->queries[q].map != NULL ?
		service->queries[q].device : NULL;

	for (uint32 j = 0; j < joins->spec.n_joins && state.why == NULL; j++)
	{
		const ChannelQuery *build;
		const ServiceQuery *sq;

		if (joins->build[j] < 0)
		{
			state.all = false;
			if (area->queries[q].joins_unwanted)
				state.why = "a build side has been closed";
			continue;
		}
		build = &area->queries[joins->build[j]];
		sq = &service->queries[joins->build[j]];
		if (build->state != QUERY_ACTIVE || build->serial != joins->serial[j] ||
			build->failed)
			state.why = "a build side has been closed";
		else if (build->spoiled && build->no_room && state.no_room < 0)
		{
			state.no_room = j;
			state.no_room_why = build->spoiled_message;
		}
		else if (build->spoiled)
			state.why = build->spoiled_message;
		else if (!build->finished)
			state.all = false;
		else if (device != NULL && sq->device != device)
			state.why = "the build sides are on different devices";
		else
			device = sq->device;
	}
	return state;
}

/*
 * Can it be decided whether the device does the joins of query q?  If so, *why is NULL
 * if all build sides can be probed, else the reason why one cannot.  If one has no room, the
 * session is told, and asked.
 */
bool
gpurhh_service_look_at_builds(DeviceService *service, int q, const char **why)
{
	ChannelArea *area = service->area;
	ChannelQuery *query = &area->queries[q];
	BuildsState builds;

	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	builds = look_at_builds(service, q);
	*why = builds.why;
	if (builds.no_room >= 0 && query->joins_unwanted && builds.why == NULL)
		*why = builds.no_room_why;
	else if (builds.no_room >= 0 && builds.why == NULL)
	{
		builds.all = false;
		if (query->join_state == QUERY_JOINS_UNDECIDED)
		{
			query->join_state = QUERY_JOINS_NO_ROOM;
			query->no_room_join = builds.no_room;
			strlcpy(query->joins_message, builds.no_room_why, GPURHH_MESSAGE_LEN);
			ConditionVariableBroadcast(&query->news);
		}
	}
	LWLockRelease(&area->lock);
	return builds.all || *why != NULL;
}

/*
 * The joins are off: the map gets no columns that only a program would read.  Those are
 * the last ones, behind all that keys and states have.
 */
void
gpurhh_service_drop_leaves(rhh_map_spec *spec)
{
	int			n_columns = 0;

	for (uint32 k = 0; k < spec->n_keys; k++)
		n_columns = Max(n_columns, spec->key_column[k] + 1);
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		n_columns = Max(n_columns, spec->states[s].arg_column + 1);
		n_columns = Max(n_columns, spec->states[s].filter_column + 1);
	}
	spec->n_columns = n_columns;
}

/*
 * Tells the device of the joins of query q, whose map has been made.  Returns NULL, or
 * why the device does not do them; *err has its error then.
 */
const char *
gpurhh_service_start_joins(DeviceService *service, int q, rhh_error *err)
{
	ServiceQuery *sq = &service->queries[q];
	const ChannelJoins *joins = &service->area->queries[q].joins;
	rhh_join_spec spec = joins->spec;

	spec.program = joins->has_program ? &joins->program : NULL;
	for (uint32 j = 0; j < spec.n_joins; j++)
	{
		spec.joins[j].build = service->queries[joins->build[j]].map;
		spec.joins[j].condition = joins->has_condition[j] ? &joins->conditions[j] : NULL;
	}
	if (sq->device->ops->map_join(sq->map, &spec, err) != RHH_OK)
		return err->message;
	for (uint32 j = 0; j < spec.n_joins; j++)
	{
		service->queries[joins->build[j]].n_probing++;
		sq->probed[sq->n_probed++] = joins->build[j];
	}
	return NULL;
}

/* The map of query q is destroyed, or gets other joins: it does not probe its build sides any more. */
void
gpurhh_service_end_joins(DeviceService *service, int q)
{
	ServiceQuery *sq = &service->queries[q];

	for (int i = 0; i < sq->n_probed; i++)
		service->queries[sq->probed[i]].n_probing--;
	sq->n_probed = 0;
}

/*
 * Query q has a map, and its session is putting another build side in the place of one.  Tells
 * the device of it if it is finished.  Returns whether it could be decided what becomes of the
 * joins.
 */
bool
gpurhh_service_join_again(DeviceService *service, int q)
{
	ChannelArea *area = service->area;
	ServiceQuery *sq = &service->queries[q];
	ChannelQuery *query = &area->queries[q];
	const char *why;
	rhh_error	err = {0};

	/* nothing of the query is in flight, so the device does not read the old ones */
	gpurhh_service_end_joins(service, q);
	if (!gpurhh_service_look_at_builds(service, q, &why))
		return false;
	if (why == NULL)
		why = gpurhh_service_start_joins(service, q, &err);
	if (err.status == RHH_DEVICE_ERROR)
		gpurhh_service_note_device_error(sq->device, err.message);
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	query->join_state = why ? QUERY_JOINS_OFF : QUERY_JOINS_ON_DEVICE;
	strlcpy(query->joins_message, why ? why : "", GPURHH_MESSAGE_LEN);
	ConditionVariableBroadcast(&query->news);
	if (service->device_error[0] != '\0')
		gpurhh_service_fail_query(query, service->device_error);
	LWLockRelease(&area->lock);
	return true;
}
