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
 * The device may read the map of a build side until all maps that probe it are
 * destroyed.  So queries are counted in n_probing of their build sides, and a build side
 * that its session has closed stays until that is 0.
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
 * Can it be decided whether the device does the joins of query q?  If so, *why is NULL
 * if all build sides can be probed, else the reason why one cannot.
 */
bool
gpurhh_service_look_at_builds(DeviceService *service, int q, const char **why)
{
	ChannelArea *area = service->area;
	const ChannelJoins *joins = &area->queries[q].joins;
	bool		all = true;

	*why = NULL;
	LWLockAcquire(&area->lock, LW_SHARED);
	for (uint32 j = 0; j < joins->spec.n_joins && *why == NULL; j++)
	{
		const ChannelQuery *build = &area->queries[joins->build[j]];
		const ServiceQuery *sq = &service->queries[joins->build[j]];

		if (build->state != QUERY_ACTIVE || build->serial != joins->serial[j] ||
			build->failed)
			*why = "a build side has been closed";
		else if (build->spoiled)
			*why = build->spoiled_message;
		else if (!build->finished)
			all = false;
		else if (sq->device != service->queries[joins->build[0]].device)
			*why = "the build sides are on different devices";
	}
	LWLockRelease(&area->lock);
	return all || *why != NULL;
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
		service->queries[joins->build[j]].n_probing++;
	return NULL;
}

/* The map of query q is destroyed: its build sides are not probed by it any more. */
void
gpurhh_service_end_joins(DeviceService *service, int q)
{
	const ChannelQuery *query = &service->area->queries[q];

	if (query->join_state != QUERY_JOINS_ON_DEVICE)
		return;
	for (uint32 j = 0; j < query->joins.spec.n_joins; j++)
		service->queries[query->joins.build[j]].n_probing--;
}
