/*-------------------------------------------------------------------------
 *
 * shared_builds.c
 *		Build sides of joins that the participants of a parallel plan read together.
 *
 * The leader opens the query of each build side before workers start, and all who take
 * part feed it.  A build side that is a large table has a parallel scan, which gives out its
 * pages; of one whose plan gives each participant a part (share_rows.c) each reads its
 * part; any other is read by one participant, whichever asks first.
 *
 *		begin -> read -> share_filter -> end
 *
 * Once a participant has come to the end and all that have begun have ended, the build side
 * is complete, and the last one says so to the service.  A participant that comes later
 * reads nothing.  So nobody is waited for who has not begun.
 *
 * A build side that other joins make on the device (nested_joins.c) has build sides, and a probe side,
 * that are shared in the same way.
 *
 * The shared state is in the parallel plan's DSM segment, with the scans and the key
 * filters behind it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/lwlock.h"
#include "storage/spin.h"

#include "compat.h"
#include "exec/parallel.h"

static Size
scan_bytes(Relation table, Snapshot snapshot)
{
	return MAXALIGN(table_parallelscan_estimate(table, snapshot));
}

/* How many bytes scans, read under the snapshot, and filters take; joins NULL: there are none. */
Size
gpurhh_builds_bytes(const JoinInput *joins, Snapshot snapshot)
{
	Size		bytes = 0;

	for (int j = 0; joins != NULL && j < joins->n_joins; j++)
	{
		Relation	table = gpurhh_join_shared_table(joins, j);
		NestedJoins *nested = joins->joins[j].nested;

		if (table != NULL)
			bytes += scan_bytes(table, snapshot);
		if (nested != NULL)
			bytes += MAXALIGN(sizeof(SharedBuilds)) + scan_bytes(gpurhh_nested_table(nested), snapshot) +
				gpurhh_builds_bytes(gpurhh_nested_input(nested), snapshot);
		bytes += MAXALIGN(gpurhh_join_filter_bytes(joins, j));
	}
	return bytes;
}

/* Leader: before the workers of the first run start. */
void
gpurhh_builds_init(SharedBuilds *builds)
{
	memset(builds, 0, sizeof(SharedBuilds));
	SpinLockInit(&builds->mutex);
	LWLockInitialize(&builds->filters_lock, LWTRANCHE_PARALLEL_QUERY_DSA);
}

/* Makes a parallel scan at *room, and moves that behind it.  Returns where behind builds it is. */
static Size
make_scan(SharedBuilds *builds, char **room, Relation table, Snapshot snapshot)
{
	char	   *scan = *room;

	table_parallelscan_initialize(table, (ParallelTableScanDesc) scan, snapshot);
	*room += scan_bytes(table, snapshot);
	return scan - (char *) builds;
}

/*
 * Starts with build sides whose queries have been opened, and with those of the joins that make them.  Makes
 * at *room what takes as many bytes as were estimated, and moves that behind it.
 */
static void
start_builds(SharedBuilds *builds, char **room, const JoinInput *joins, Snapshot snapshot)
{
	builds->n = joins->n_joins;
	for (int j = 0; j < builds->n; j++)
	{
		NestedJoins *nested = joins->joins[j].nested;
		Size		filter_bytes = MAXALIGN(gpurhh_join_filter_bytes(joins, j));

		builds->queries[j] = gpurhh_channel_address(joins->builds[j]);
		builds->n_reading[j] = 0;
		builds->taken[j] = false;
		builds->in_parts[j] = gpurhh_is_share_rows(joins->joins[j].build.child);
		builds->scans[j] = builds->nested[j] = 0;
		builds->filters[j] = filter_bytes > 0 ? *room - (char *) builds : 0;
		if (filter_bytes > 0)
			gpurhh_join_init_filter(joins, j, (KeyFilter *) *room);
		*room += filter_bytes;
		if (gpurhh_nested_is_on(nested))
		{
			SharedBuilds *below = (SharedBuilds *) *room;

			builds->in_parts[j] = true;
			builds->nested[j] = *room - (char *) builds;
			*room += MAXALIGN(sizeof(SharedBuilds));
			gpurhh_builds_init(below);
			below->probe_scan = make_scan(below, room, gpurhh_nested_table(nested), snapshot);
			start_builds(below, room, gpurhh_nested_input(nested), snapshot);
			gpurhh_nested_share(nested, below);
		}
	}
}

/* Then makes the scans of tables that are build sides, as far as there is room. */
static void
start_scans(SharedBuilds *builds, char **room, const char *end, const JoinInput *joins, Snapshot snapshot)
{
	for (int j = 0; j < builds->n; j++)
	{
		Relation	table = gpurhh_join_shared_table(joins, j);

		if (builds->nested[j] != 0)
			start_scans((SharedBuilds *) ((char *) builds + builds->nested[j]), room, end,
						gpurhh_nested_input(joins->joins[j].nested), snapshot);
		/* a table that has grown since gets no scan, and one participant reads it */
		if (table != NULL && *room + scan_bytes(table, snapshot) <= end)
			builds->scans[j] = make_scan(builds, room, table, snapshot);
	}
}

/*
 * Leader: before the workers of each run start.  joins: their queries have been opened; NULL:
 * there are none.  room: memory in the same segment, so many bytes as were estimated, in which
 * scans and filters are made.
 */
void
gpurhh_builds_start(SharedBuilds *builds, char *room, Size bytes, const JoinInput *joins,
					Snapshot snapshot)
{
	const char *end = room + bytes;

	builds->n = 0;
	if (joins == NULL)
		return;
	start_builds(builds, &room, joins, snapshot);
	Assert(room <= end);
	start_scans(builds, &room, end, joins, snapshot);
}

/*
 * Worker: takes part in the queries that the leader has opened, until the context is reset.  False:
 * there are none.  joins is NULL if no device can do them here.
 */
bool
gpurhh_builds_attach(SharedBuilds *builds, JoinInput *joins, MemoryContext context)
{
	if (builds->n == 0)
		return false;
	if (joins == NULL || joins->n_joins != builds->n)
		elog(ERROR, "participants of a parallel plan disagree on joins");
	gpurhh_join_attach(joins, builds->queries, context);
	for (int j = 0; j < builds->n; j++)
	{
		NestedJoins *nested = joins->joins[j].nested;
		SharedBuilds *below = builds->nested[j] == 0 ? NULL :
			(SharedBuilds *) ((char *) builds + builds->nested[j]);

		if (nested != NULL)
			gpurhh_nested_share(nested, below);
		if (below != NULL)
			(void) gpurhh_builds_attach(below, gpurhh_nested_input(nested), context);
	}
	return true;
}

/* What gives out the pages of the probe side of joins that make a build side. */
ParallelTableScanDesc
gpurhh_builds_probe_scan(SharedBuilds *builds)
{
	return (ParallelTableScanDesc) ((char *) builds + builds->probe_scan);
}

static ParallelTableScanDesc
scan_of(SharedBuilds *builds, int j)
{
	return builds->scans[j] == 0 ? NULL :
		(ParallelTableScanDesc) ((char *) builds + builds->scans[j]);
}

/*
 * Is a participant to read build side j?  If so, *scan gives out its pages, or is NULL:
 * the participant reads all of it, or the part that its plan gives to it.
 */
bool
gpurhh_builds_begin(SharedBuilds *builds, int j, ParallelTableScanDesc *scan)
{
	bool		reads;

	*scan = scan_of(builds, j);
	SpinLockAcquire(&builds->mutex);
	reads = !builds->taken[j];
	if (reads)
		builds->n_reading[j]++;
	if (*scan == NULL && !builds->in_parts[j])
		builds->taken[j] = true;
	SpinLockRelease(&builds->mutex);
	return reads;
}

/*
 * A participant has read build side j, or its part of it.  True: nothing is left of it, and
 * nobody reads any more.
 */
bool
gpurhh_builds_end(SharedBuilds *builds, int j)
{
	bool		last;

	SpinLockAcquire(&builds->mutex);
	builds->taken[j] = true;
	last = --builds->n_reading[j] == 0;
	SpinLockRelease(&builds->mutex);
	return last;
}

/*
 * While no participant reads: build side j, whose table this is, is to be read once more by all
 * of them.
 */
void
gpurhh_builds_restart(SharedBuilds *builds, int j, Relation table)
{
	if (builds->scans[j] != 0)
		table_parallelscan_reinitialize(table, scan_of(builds, j));
	SpinLockAcquire(&builds->mutex);
	Assert(builds->n_reading[j] == 0);
	builds->taken[j] = false;
	SpinLockRelease(&builds->mutex);
}

/*
 * Adds the keys of build side j that a participant has fed, unless own is NULL, and returns the
 * filter that has all of them when the build side is complete.  To be called between
 * gpurhh_builds_begin() and gpurhh_builds_end() if there are such keys.
 */
KeyFilter *
gpurhh_builds_share_filter(SharedBuilds *builds, int j, KeyFilter *own)
{
	KeyFilter  *filter = (KeyFilter *) ((char *) builds + builds->filters[j]);

	if (builds->filters[j] == 0)
		elog(ERROR, "participants of a parallel plan disagree on a key filter");
	if (own != NULL)
	{
		LWLockAcquire(&builds->filters_lock, LW_EXCLUSIVE);
		gpurhh_key_filter_merge(filter, own);
		LWLockRelease(&builds->filters_lock);
	}
	return filter;
}
