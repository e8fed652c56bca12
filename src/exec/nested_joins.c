/*-------------------------------------------------------------------------
 *
 * nested_joins.c
 *		A build side that other joins make, and that stays on the device.
 *
 *		GpuHashAgg
 *		  -> Hash Join
 *			   -> (any)						the probe side
 *			   -> Hash
 *					-> GpuShareRows			only in a parallel plan
 *						 -> GpuHashJoin
 *							  -> Hash Join	nested
 *								   -> Seq Scan	its probe side
 *								   -> Hash
 *										-> ...
 *
 * GpuHashJoin would have the device do the nested joins, and make rows of what comes out, which
 * would be fed to the map of the build side.  But a map can keep the output of joins itself
 * (rhh_device.h).  So where the device reads the pages of the nested probe side, the node above
 * opens the map of the build side with the nested joins before it, and reads their sides as it
 * reads its own (join_input.c).  No row of the build side comes to a session.
 *
 *		open -> (attach) -> read -> (rewind) -> close
 *
 * Where rows come to the session anyway, to be made columns or to be tested by the keys of the build
 * side (join_filter.c), GpuHashJoin is asked for them as any other plan is.
 *
 * If the device cannot do it all, or a row has something that no column can have, the query of the
 * build side is spoiled, and core joins.  Then GpuHashJoin is asked for rows after all.  In a parallel
 * plan it asks core's joins then, as the queries that it would share have not been opened; and nothing of
 * what participants share of the plan below may have been used up.  So the pages of the nested probe side
 * are given out by a parallel scan of our own, like those of build sides (shared_builds.c).
 *
 * The nested joins are none that return rows without a match, or that compute anything, nor may a match be
 * an error.  There nothing is gained but code.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"

#include "exec/join_input.h"
#include "exec/page_batches.h"
#include "exec/parallel.h"

struct NestedJoins
{
	PlanState  *child;			/* of the Hash node above */
	PlanState  *node;			/* the GpuHashJoin: that, or below it */
	JoinInput  *input;			/* its joins; what comes out are the columns of the build side */
	rhh_map_spec spec;			/* input's: has the limits of the node above */
	bool		on;				/* in this run the device keeps what comes out */
	SharedBuilds *shared;		/* with other participants; NULL: there are none */
};

/* ---------- start ---------- */

/*
 * Finds out whether a build side whose map has this spec is what comes out of joins that the device can
 * do; NULL: it is not.  What is returned is in context.
 */
NestedJoins *
gpurhh_nested_create(const JoinSide *build, const rhh_map_spec *spec, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	PlanState  *child = build->child;
	NestedJoins *nested = palloc0(sizeof(NestedJoins));
	GpuColumn	columns[RHH_MAX_COLUMNS];
	const char *why;
	int			n_joins;

	nested->child = child;
	nested->node = gpurhh_join_node_of(gpurhh_is_share_rows(child) ? outerPlanState(child) : child,
									   &n_joins);
	nested->spec = *spec;
	MemoryContextSwitchTo(old);
	if (nested->node == NULL)
		return NULL;
	for (int c = 0; c < build->n_columns; c++)
	{
		TargetEntry *entry = list_nth_node(TargetEntry, nested->node->plan->targetlist,
										   build->columns[c].attribute);
		Var		   *var = (Var *) entry->expr;

		/* the columns of the scan tuple are those of core's joins */
		if (!IsA(var, Var) || var->varno != INDEX_VAR)
			return NULL;
		columns[c] = build->columns[c];
		columns[c].attribute = var->varattno - 1;
	}
	nested->input = gpurhh_join_create(outerPlanState(nested->node), n_joins, &nested->spec, columns,
									   build->is_key, false, context, &why);
	if (nested->input == NULL || nested->input->may_be_bad ||
		gpurhh_join_has_program(&nested->input->program) ||
		rhh_last_unmatched(&nested->input->join_spec) > 0 ||
		nested->input->probe.pages == NULL || gpurhh_nested_table(nested) == NULL)
		return NULL;
	return nested;
}

/* How the device does its joins, by the dictionary of the node above. */
JoinInput *
gpurhh_nested_input(NestedJoins *nested)
{
	return nested->input;
}

/* The table that is the nested probe side. */
Relation
gpurhh_nested_table(const NestedJoins *nested)
{
	return gpurhh_page_feed_relation(nested->input->probe.pages);
}

/* Is the build side made so in this run?  nested NULL: it never is. */
bool
gpurhh_nested_is_on(const NestedJoins *nested)
{
	return nested != NULL && nested->on;
}

/* ---------- queries ---------- */

/*
 * Opens the queries of the nested build sides, and that of the build side, whose map is to have this
 * spec, in context.  NULL: GpuHashJoin is to be asked for rows.
 */
Channel *
gpurhh_nested_open(NestedJoins *nested, const rhh_map_spec *spec, ChannelArea *area, MemoryContext context)
{
	JoinInput  *input = nested->input;
	rhh_map_spec *map = &input->map_spec;
	const bool	cached = gpurhh_page_feed_may_cache(input->probe.pages);
	const char *why;
	Channel    *channel = NULL;

	/* a session that may sleep copies its batches, and pages cannot be copied */
	if (nested->node->state->es_plannedstmt->subplans != NIL ||
		!gpurhh_join_want_pages(input, true, area->block_bytes))
		return NULL;
	nested->spec = *spec;
	nested->spec.flags &= RHH_WANT_PROBE_STATS;
	*map = *spec;
	map->max_batch_rows = Max(map->max_batch_rows, gpurhh_join_batch_rows(input, area->block_bytes));
	gpurhh_page_batches_limits(map, cached);
	if (gpurhh_join_open(input, area, context, &why))
		channel = gpurhh_channel_open(area, map, NULL, &input->join_spec, input->builds, true, false, context,
									  &why);
	if (channel == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("rows of a build side come to the session: %s", why)));
		gpurhh_join_close(input);
		return NULL;
	}
	if (cached)
		gpurhh_channel_ask_for_cache(channel);
	gpurhh_channel_leave_joins(channel);
	nested->on = true;
	nested->shared = NULL;
	gpurhh_join_node_keep(nested->node, nested, true);
	return channel;
}

/*
 * The build side is made so by several participants, who share these build sides.  In a worker builds may be
 * NULL: then it is not.
 */
void
gpurhh_nested_share(NestedJoins *nested, SharedBuilds *builds)
{
	nested->on = builds != NULL;
	nested->shared = builds;
}

/* The run does not need them any more. */
void
gpurhh_nested_close(NestedJoins *nested)
{
	if (nested->on)
		gpurhh_join_close(nested->input);
	nested->on = false;
	nested->shared = NULL;
	gpurhh_join_node_keep(nested->node, nested, false);
}

/* ---------- reading ---------- */

/* The argument of JoinReader's functions. */
typedef struct NestedReading
{
	NestedJoins *nested;
	Channel    *channel;		/* the query of the build side */
} NestedReading;

/* JoinReader's questions about build sides that are shared. */
static bool
begin_build(void *arg, int j, ParallelTableScanDesc *scan)
{
	return gpurhh_builds_begin(((NestedReading *) arg)->nested->shared, j, scan);
}

static bool
end_build(void *arg, int j)
{
	return gpurhh_builds_end(((NestedReading *) arg)->nested->shared, j);
}

/* Is asked for whenever a row of the output may have come back, which none does. */
static void
take_returned(void *arg)
{
	rhh_batch	batch;
	bool		all_rows;
	const uint8 *bad;

	if (gpurhh_channel_take_returned(((NestedReading *) arg)->channel, &batch, &all_rows, &bad))
		elog(ERROR, "rows of a build side that the device keeps have come back");
}

/* What would be done first if the plan were asked for a row. */
static void
begin_nodes(NestedJoins *nested)
{
	if (nested->child->chgParam != NULL)
		ExecReScan(nested->child);
	if (nested->node->chgParam != NULL)
		ExecReScan(nested->node);
}

/*
 * Reads the nested sides, or this participant's part of them, for the node above; channel is the query of
 * the build side.
 */
void
gpurhh_nested_read(NestedJoins *nested, JoinReader *above, Channel *channel)
{
	GpuNodeStats *stats = gpurhh_join_node_stats(nested->node);
	ParallelTableScanDesc scan = nested->shared != NULL ? gpurhh_builds_probe_scan(nested->shared) : NULL;
	NestedReading reading = {.nested = nested, .channel = channel};
	/* it does not copy its batches, even if the node above does: the probe side is a table */
	JoinReader	reader = {
		.input = nested->input,
		.channel = channel,
		.dictionary = above->dictionary,
		.counts = &stats->counts,
		.context = above->context,
		.keeps = true,
		.arg = &reading,
		.take_returned = take_returned
	};
	instr_time	start;
	int			no_room;

	INSTR_TIME_SET_CURRENT(start);
	if (nested->shared != NULL)
	{
		reader.begin_build = begin_build;
		reader.end_build = end_build;
	}
	begin_nodes(nested);
	gpurhh_join_begin(&reader);
	gpurhh_join_read_builds(&reader);
	/* if not, the service has spoiled the build side */
	if (gpurhh_channel_wait_joins(channel, reader.why, &no_room))
	{
		if (scan != NULL)
			gpurhh_page_feed_share(nested->input->probe.pages, scan);
		while (gpurhh_join_probe(&reader))
			;
		if (scan != NULL)
			gpurhh_page_feed_share(nested->input->probe.pages, NULL);
	}
	above->odd |= reader.odd;
	stats->valid = true;
	stats->joins_done = stats->kept = !gpurhh_channel_is_spoiled(channel);
	/* those of a parallel plan the leader has counted */
	if (nested->shared == NULL)
		stats->counts.runs++;
	stats->counts.feeders++;
	stats->counts.feed_ms += milliseconds_since(start);
}

/* Core is to read the nested sides from the beginning. */
void
gpurhh_nested_rewind(NestedJoins *nested)
{
	gpurhh_join_rewind_builds(nested->input);
	ExecReScan(nested->input->probe.child);
}

/* For EXPLAIN of GpuHashJoin: what the device has done.  channel is as above, and is open. */
void
gpurhh_nested_note(NestedJoins *nested, Channel *channel)
{
	GpuNodeStats *stats = gpurhh_join_node_stats(nested->node);
	GpuLevelStats *level = &stats->levels[0];

	/* of a parallel plan there are sums, and these are of all participants */
	if (IsParallelWorker())
		return;
	(void) gpurhh_channel_stats(channel, &level->map, level->device, level->declined);
	gpurhh_join_note(nested->input, &level->map, stats->joins);
	stats->valid = stats->joins_done = stats->kept = true;
	gpurhh_page_feed_ways(nested->input->probe.pages, &stats->feed_pages, &stats->feed_rows);
}
