/*-------------------------------------------------------------------------
 *
 * agg_exec.c
 *		Execution of GpuHashAgg.
 *
 * The first call reads all input: rows of the child go through the feed into
 * blocks of the pool and on to the device (read_input).  Batches that come
 * back, wholly or in part, and all batches where there is no device, are
 * finished in the host table.
 *
 * Then groups are returned, in phases:
 *
 *		EMIT_DEVICE		groups fetched from the device, a chunk at a time.  One
 *						whose key is in the host table too is merged there.
 *		EMIT_HOST		the host table's groups.  After these, where rows were
 *						deferred (agg_defer.c), the same again for each pass:
 *						its rows are read into a new host table
 *		EMIT_REGROUPED	groups made of all of those (agg_regroup.c)
 *		EMIT_DONE
 *
 * Where the device has made the second level too (regroup_on_device), it returns
 * that, and the host table is for what it refused of it.
 *
 * A group in either place is words (see rhh_result); agg_emit.c makes scan
 * tuples of them, and computes HAVING if it can.  ExecScan() applies it where
 * that cannot, and the projection, if any.
 *
 * In a parallel plan each participant runs through this with a part of the
 * input, and of the groups; agg_parallel.c says who does what.
 *
 * Memory: run_context holds everything of one execution (the channel, the
 * host table, the chunk); it is reset by a rescan and goes with the query's
 * context at an error, which closes the channel.  A parallel plan's channel is
 * opened before the workers start, which may be before the rescan, and is in
 * shared_context.  Values that a tuple points to are in the per-tuple context.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/nodeCustom.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"

/*
 * One call in so many is timed, see exec_agg().  A prime, to be out of step with
 * the windows that groups are decoded in.
 */
#define EMIT_SAMPLE 61

/* Pairs of looks at the clock of which the shortest is taken for its own time. */
#define CLOCK_PAIRS 100

typedef enum EmitPhase
{
	EMIT_NOT_READ,				/* the input has not been read */
	EMIT_DEVICE,
	EMIT_HOST,
	EMIT_REGROUPED,
	EMIT_DONE
} EmitPhase;

typedef struct GpuAggState
{
	CustomScanState css;		/* must be first */

	/* from the plan */
	int			n_columns;
	GpuColumn	columns[RHH_MAX_COLUMNS];
	rhh_table_spec spec;
	PageFeed   *pages;			/* reads the child's pages; NULL: it cannot */
	Regroup    *regroup;		/* the second level; NULL: there is none */
	int			n_shown_keys;	/* the first ones; others are the second level's */
	StringWords strings;		/* of the first level's groups */
	Regroup    *level;			/* of the run: what is being returned, or NULL */
	Emit		emit;
	ExprState  *having;			/* that emit computes; else it is ps.qual */
	bool		leader_emits;	/* alone, if the plan runs in parallel */
	int			n_strings;		/* columns of strings; below, 0: nothing is set */
	bool		has_candidates; /* some go through candidates.c */
	TupleTableSlot *deferred_slot;

	/* of a parallel plan, while its DSM segment lasts */
	GpuAggShared *shared;		/* NULL: not parallel */
	MemoryContext shared_context;
	Dictionary *shared_dictionary;	/* in shared_context, or NULL */

	/* of one execution, in run_context */
	MemoryContext run_context;
	EmitPhase	phase;
	Channel    *channel;		/* NULL: no device */
	bool		channel_shared; /* with participants; in shared_context */
	bool		has_table;		/* there are groups of a device to be read */
	RegroupPlan *on_device;		/* the second level, which the device makes; the
								 * host table is of it then */
	HostTable  *host;			/* NULL until it is needed */
	Dictionary *dictionary;		/* shared_dictionary, or in pass_context */
	Deferred   *deferred;		/* NULL: no row was */
	uint64		spilled_before; /* records, by host tables of earlier passes */
	MemoryContext pass_context; /* until the next pass over deferred rows */
	ChannelResult chunk;
	uint32		chunk_next;		/* next group in the chunk */

	BufFile    *late_file;		/* see agg_parallel.c */
	BufFile    *choice_file;	/* see agg_choices.c */
	MemoryContext choice_context;	/* of one string that goes there */
	bool		in_pool;		/* the last batch found a block; a rescan does not
								 * wait anew where it did not */
	uint64		n_calls;		/* of exec_agg() */

	GpuNodeStats stats;
} GpuAggState;

static void begin_agg(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_agg(CustomScanState *node);
static void end_agg(CustomScanState *node);
static void rescan_agg(CustomScanState *node);
static void explain_agg(CustomScanState *node, List *ancestors,
						ExplainState *es);
static Size estimate_dsm_agg(CustomScanState *node, ParallelContext *pcxt);
static void initialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
							   void *coordinate);
static void reinitialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
								 void *coordinate);
static void initialize_worker_agg(CustomScanState *node, shm_toc *toc,
								  void *coordinate);
static void shutdown_agg(CustomScanState *node);

const CustomScanMethods gpurhh_agg_scan_methods = {
	.CustomName = "GpuHashAgg",
	.CreateCustomScanState = gpurhh_create_agg_state,
};

static const CustomExecMethods agg_exec_methods = {
	.CustomName = "GpuHashAgg",
	.BeginCustomScan = begin_agg,
	.ExecCustomScan = exec_agg,
	.EndCustomScan = end_agg,
	.ReScanCustomScan = rescan_agg,
	.EstimateDSMCustomScan = estimate_dsm_agg,
	.InitializeDSMCustomScan = initialize_dsm_agg,
	.ReInitializeDSMCustomScan = reinitialize_dsm_agg,
	.InitializeWorkerCustomScan = initialize_worker_agg,
	.ShutdownCustomScan = shutdown_agg,
	.ExplainCustomScan = explain_agg,
};

void
gpurhh_register_agg_methods(void)
{
	RegisterCustomScanMethods(&gpurhh_agg_scan_methods);
}

Node *
gpurhh_create_agg_state(CustomScan *cscan)
{
	GpuAggState *state = (GpuAggState *) newNode(sizeof(GpuAggState),
												 T_CustomScanState);

	state->css.methods = &agg_exec_methods;
	return (Node *) state;
}

/* ---------- start ---------- */

/* Reads the plan's custom_private. */
static void
read_plan(GpuAggState *state, CustomScan *cscan)
{
	List	   *private = cscan->custom_private;
	rhh_table_spec *spec = &state->spec;
	ListCell   *lc;

	foreach(lc, (List *) list_nth(private, GPUAGG_PRIVATE_COLUMNS))
	{
		GpuColumn  *column = &state->columns[state->n_columns++];

		column->encoding = linitial_int(lfirst(lc));
		column->parameter = lsecond_int(lfirst(lc));
		column->attribute = lthird_int(lfirst(lc));
	}
	spec->n_columns = state->n_columns;
	for (int c = 0; c < state->n_columns; c++)
	{
		GpuEncoding encoding = state->columns[c].encoding;

		spec->column_bytes[c] = gpurhh_encodings[encoding].bytes;
		if (gpurhh_is_string(encoding))
			state->n_strings++;
		state->has_candidates |= gpurhh_is_candidate(encoding);
	}

	foreach(lc, (List *) list_nth(private, GPUAGG_PRIVATE_KEYS))
		spec->key_column[spec->n_keys++] = lfirst_int(lc);
	lc = list_head((List *) list_nth(private, GPUAGG_PRIVATE_STATES));
	while (lc != NULL)
	{
		List	   *states = list_nth(private, GPUAGG_PRIVATE_STATES);
		rhh_state_spec *to = &spec->states[spec->n_states++];

		to->op = lfirst_int(lc);
		lc = lnext(states, lc);
		to->arg_column = lfirst_int(lc);
		lc = lnext(states, lc);
		to->filter_column = lfirst_int(lc);
		lc = lnext(states, lc);
	}
	spec->expected_groups =
		Max(floatVal(list_nth(private, GPUAGG_PRIVATE_GROUPS)), 1.0);
	state->leader_emits =
		intVal(list_nth(private, GPUAGG_PRIVATE_LEADER_EMITS)) != 0;

	gpurhh_string_words_init(&state->strings, spec, state->columns);
	state->n_shown_keys =
		intVal(list_nth(private, GPUAGG_PRIVATE_SHOWN_KEYS));
	state->regroup =
		gpurhh_regroup_create(spec, state->columns, state->n_shown_keys,
							  list_nth(private, GPUAGG_PRIVATE_SETS),
							  list_nth(private, GPUAGG_PRIVATE_CHOICES),
							  list_nth(private, GPUAGG_PRIVATE_DISTINCT),
							  floatVal(list_nth(private, GPUAGG_PRIVATE_REGROUPED)),
							  floatVal(list_nth(private, GPUAGG_PRIVATE_TOP)));
	gpurhh_emit_init(&state->emit, list_nth(private, GPUAGG_PRIVATE_OUTPUTS),
					 state->regroup ? gpurhh_regroup_spec(state->regroup) : spec);
}

/* For EXPLAIN: how the input is read, or was. */
static void
note_feed(GpuAggState *state)
{
	state->stats.feed_pages = false;
	state->stats.feed_rows = true;
	if (state->pages != NULL)
		gpurhh_page_feed_ways(state->pages, &state->stats.feed_pages,
							  &state->stats.feed_rows);
	if (state->stats.feed_rows && state->stats.feed_why == NULL)
		state->stats.feed_why = "the scan's snapshot or direction is unusual";
}

static void
begin_agg(CustomScanState *node, EState *estate, int eflags)
{
	GpuAggState *state = (GpuAggState *) node;
	CustomScan *cscan = (CustomScan *) node->ss.ps.plan;

	read_plan(state, cscan);
	state->run_context = AllocSetContextCreate(estate->es_query_cxt,
											   "GpuHashAgg",
											   ALLOCSET_DEFAULT_SIZES);
	state->shared_context = AllocSetContextCreate(estate->es_query_cxt,
												  "GpuHashAgg channel",
												  ALLOCSET_SMALL_SIZES);
	state->choice_context = AllocSetContextCreate(estate->es_query_cxt,
												  "GpuHashAgg choice",
												  ALLOCSET_SMALL_SIZES);
	state->phase = EMIT_NOT_READ;
	state->in_pool = true;
	if (gpurhh_emit_having(&state->emit, cscan->scan.plan.qual, &node->ss.ps))
	{
		state->having = node->ss.ps.qual;
		node->ss.ps.qual = NULL;
	}

	/* all input is read before the first group is returned, and only once */
	outerPlanState(node) =
		ExecInitNode(outerPlan(cscan), estate,
					 eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD |
								EXEC_FLAG_MARK));
	state->pages = gpurhh_page_feed_create(outerPlanState(node),
										   state->n_columns, state->columns,
										   estate->es_query_cxt,
										   &state->stats.feed_why);
	note_feed(state);
	state->stats.strings = state->n_strings > 0;
	if (state->n_strings > 0)
		state->deferred_slot =
			ExecInitExtraTupleSlot(estate,
								   ExecGetResultType(outerPlanState(node)),
								   &TTSOpsMinimalTuple);
}

/* ---------- input ---------- */

static double
milliseconds_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

static HostTable *
host_table(GpuAggState *state)
{
	if (state->host == NULL)
		state->host = gpurhh_host_create(state->on_device ?
										 &state->on_device->spec : &state->spec,
										 state->run_context,
										 get_hash_memory_limit());
	return state->host;
}

static void
add_on_host(GpuAggState *state, const rhh_batch *batch, bool all_rows)
{
	uint64		rows = gpurhh_host_add_batch(host_table(state), batch, all_rows);

	state->stats.counts.host_rows += rows;
	if (state->channel != NULL)
		gpurhh_channel_count_host_rows(state->channel, rows);
}

/* Finishes what the device gave back so far. */
static void
take_returned(GpuAggState *state)
{
	rhh_batch	batch;
	bool		refused;

	while (gpurhh_channel_take_returned(state->channel, &batch, &refused))
	{
		add_on_host(state, &batch, refused);
		gpurhh_channel_give_back(state->channel);
	}
}

static Size
block_bytes(GpuAggState *state)
{
	return state->channel ? gpurhh_channel_block_bytes(state->channel) :
		GPURHH_MAX_BLOCK_BYTES;
}

/*
 * Where the next rows go: a block of the pool, or memory of our own where
 * there is no device, or no block for too long.
 */
static char *
next_block(GpuAggState *state, char **own_block)
{
	char	   *base;

	while (state->channel != NULL)
	{
		/* having been late once, we do not wait each time */
		switch (gpurhh_channel_acquire(state->channel, state->in_pool, &base))
		{
			case CHANNEL_BLOCK:
				state->in_pool = true;
				return base;
			case CHANNEL_RETURNED:
				take_returned(state);
				continue;
			case CHANNEL_LATE:
				break;
		}
		break;
	}
	state->in_pool = false;
	if (*own_block == NULL)
		*own_block = (char *)
			TYPEALIGN(64, MemoryContextAlloc(state->run_context,
											 block_bytes(state) + 64));
	return *own_block;
}

static void
hand_over(GpuAggState *state, Feed *feed, char *own_block)
{
	rhh_batch	batch;
	GpuNodeCounts *counts = &state->stats.counts;
	uint32		n_rows = feed->n_rows;
	MemoryContext old;

	if (n_rows == 0)
	{
		/* all rows since it was started have been deferred */
		if (state->in_pool)
			gpurhh_channel_drop_block(state->channel);
		feed->base = NULL;
		return;
	}
	gpurhh_feed_finish(feed, &batch);
	counts->rows_fed += n_rows;
	counts->bytes_fed += batch.used_bytes;
	counts->batches++;
	if (state->in_pool)
	{
		gpurhh_channel_submit(state->channel, &batch);
		return;
	}
	batch.base = (uint8_t *) own_block;
	old = MemoryContextSwitchTo(state->run_context);
	if (state->channel == NULL || gpurhh_channel_claim_finish(state->channel))
		add_on_host(state, &batch, true);
	else
		gpurhh_parallel_save_late(state->shared, &state->late_file, &batch);
	MemoryContextSwitchTo(old);
}

static void
set_limits(GpuAggState *state, rhh_table_spec *spec)
{
	spec->memory_limit_bytes = (uint64) gpurhh_device_memory_mb * 1024 * 1024;
	spec->max_probe_buckets = gpurhh_max_probe_buckets;
	spec->load_factor = gpurhh_load_factor;
	spec->flags = state->css.ss.ps.instrument ? RHH_WANT_PROBE_STATS : 0;
}

/*
 * Opens the query with the service.  NULL: it runs on the host, and the
 * statistics say why.
 */
static Channel *
open_query(GpuAggState *state, MemoryContext context)
{
	rhh_table_spec *spec = &state->spec;
	RegroupPlan *plan = state->regroup ? gpurhh_regroup_plan(state->regroup) :
		NULL;
	const char *why = NULL;
	ChannelArea *area;
	Channel    *channel = NULL;

	set_limits(state, spec);
	area = gpurhh_channel_attach(&why);
	if (area != NULL)
	{
		Feed		layout;

		gpurhh_feed_init(&layout, state->n_columns, state->columns,
						 area->block_bytes, gpurhh_batch_rows);
		spec->max_batch_rows = layout.capacity_rows;
		spec->max_batch_bytes = area->block_bytes;
		if (plan != NULL)
		{
			set_limits(state, &plan->spec);
			gpurhh_regroup_feed_init(&layout, plan, area->block_bytes,
									 gpurhh_batch_rows);
			plan->spec.max_batch_rows = layout.capacity_rows;
			plan->spec.max_batch_bytes = area->block_bytes;
		}
		channel = gpurhh_channel_open(area, spec, plan, context, &why);
	}
	if (channel == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("GpuHashAgg runs on the host: %s", why)));
		strlcpy(state->stats.device, "host", GPURHH_DEVICE_NAME_LEN);
		strlcpy(state->stats.refusal, why, GPURHH_MESSAGE_LEN);
	}
	return channel;
}

/* Reads the child row by row, until it has no more. */
static void
feed_rows(GpuAggState *state, Feed *feed, char **own_block)
{
	PlanState  *child = outerPlanState(&state->css);

	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(child);

		if (TupIsNull(slot))
			break;
		if (feed->base == NULL)
			gpurhh_feed_start(feed, next_block(state, own_block));
		gpurhh_feed_slot(feed, slot);
		if (feed->n_rows == feed->capacity_rows)
			hand_over(state, feed, *own_block);
	}
}

/* Reads the child's pages, until there are no more. */
static void
feed_pages(GpuAggState *state, Feed *feed, char **own_block)
{
	/* what fill() leaves are rows that have no block yet */
	while (gpurhh_page_feed_fill(state->pages, feed))
	{
		if (feed->base != NULL)
			hand_over(state, feed, *own_block);
		gpurhh_feed_start(feed, next_block(state, own_block));
	}
}

static void
use_dictionary(GpuAggState *state, Dictionary *dictionary)
{
	state->dictionary = dictionary;
	state->emit.dictionary = dictionary;
}

/* This process's own dictionary. */
static void
make_dictionary(GpuAggState *state, double expected_strings)
{
	use_dictionary(state,
				   gpurhh_dictionary_create(state->pass_context,
											get_hash_memory_limit(),
											state->n_strings,
											expected_strings));
}

static Deferred *
make_deferred(GpuAggState *state)
{
	/* whose dictionary is shared, those have files in common too */
	return gpurhh_deferred_create(state->run_context,
								  state->shared_dictionary != NULL ?
								  state->shared : NULL);
}

/* The feed's way to be rid of a row whose strings the dictionary does not take. */
static void
defer_row(void *arg, TupleTableSlot *slot, uint32 hash)
{
	GpuAggState *state = arg;

	if (state->deferred == NULL)
		state->deferred = make_deferred(state);
	gpurhh_deferred_save(state->deferred, slot, hash);
	state->stats.counts.deferred_rows++;
}

/*
 * The candidates' way to be rid of a string that the dictionary does not take,
 * in a participant's feed, and otherwise.
 */
static uint64 *
make_choice(GpuAggState *state, const Feed *feed, uint32 row, int column,
			const char *data, uint32 length)
{
	uint64	   *words;

	MemoryContextReset(state->choice_context);
	words = MemoryContextAlloc(state->choice_context,
							   rhh_result_words(&state->spec) * sizeof(uint64));
	gpurhh_choice_group(&state->spec, &state->strings, state->n_shown_keys,
						feed, row, column, data, length, state->choice_context,
						words);
	return words;
}

static void
save_choice(void *arg, const Feed *feed, uint32 row, int column,
			const char *data, uint32 length)
{
	GpuAggState *state = arg;
	const uint64 *words = make_choice(state, feed, row, column, data, length);
	MemoryContext old = MemoryContextSwitchTo(state->run_context);

	gpurhh_choices_save(state->shared, &state->choice_file, &state->strings,
						words, rhh_result_words(&state->spec));
	MemoryContextSwitchTo(old);
}

static void
add_choice(void *arg, const Feed *feed, uint32 row, int column,
		   const char *data, uint32 length)
{
	GpuAggState *state = arg;

	gpurhh_regroup_keep_strings(state->regroup);
	(void) gpurhh_regroup_add(state->regroup, NULL,
							  make_choice(state, feed, row, column, data,
										  length),
							  1, 1);
}

static void
init_feed(GpuAggState *state, Feed *feed, Size bytes, MemoryContext context,
		  CandidateRefused refused)
{
	gpurhh_feed_init(feed, state->n_columns, state->columns, bytes,
					 gpurhh_batch_rows);
	feed->strings.dictionary = state->dictionary;
	feed->defer = defer_row;
	feed->defer_arg = state;
	if (state->has_candidates)
		feed->candidates = gpurhh_candidates_create(context, &state->spec,
													state->columns,
													GPURHH_CANDIDATES_LIMIT,
													refused, state);
}

/* Reads the child to its end. */
static void
feed_child(GpuAggState *state)
{
	char	   *own_block = NULL;
	Feed		feed;

	init_feed(state, &feed, block_bytes(state), state->run_context,
			  state->shared != NULL ? save_choice : add_choice);
	if (state->pages != NULL)
	{
		gpurhh_page_feed_begin(state->pages);
		feed_pages(state, &feed, &own_block);
		note_feed(state);
	}
	else
		feed_rows(state, &feed, &own_block);
	if (feed.base != NULL)
		hand_over(state, &feed, own_block);
	gpurhh_parallel_close_late(&state->late_file);
	gpurhh_choices_close(&state->choice_file);
	if (state->deferred != NULL)
		gpurhh_deferred_close(state->deferred);
	if (state->channel != NULL)
		state->stats.counts.pool_wait_ms +=
			gpurhh_channel_pool_wait_ms(state->channel);
}

/* gpurhh_parallel_read_late()'s callback. */
static void
add_late_batch(void *arg, const rhh_batch *batch)
{
	add_on_host(arg, batch, true);
}

/* Finishes the rows for which participants got no block. */
static void
read_late(GpuAggState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->run_context);

	gpurhh_parallel_read_late(state->shared, block_bytes(state),
							  add_late_batch, state);
	MemoryContextSwitchTo(old);
}

static void
note_dictionary(GpuAggState *state)
{
	GpuNodeCounts *counts = &state->stats.counts;
	uint64		n_strings;
	uint64		bytes;

	if (state->dictionary == NULL)
		return;
	gpurhh_dictionary_stats(state->dictionary, &n_strings, &bytes);
	counts->dictionary_strings += n_strings;
	counts->dictionary_bytes = Max(counts->dictionary_bytes, bytes);
}

/* Is there a row that waits for a pass?  Once the input has been read. */
static bool
any_deferred(GpuAggState *state)
{
	return state->deferred != NULL ||
		(state->shared != NULL && gpurhh_parallel_any_deferred(state->shared));
}

/* The second level is about to be made: what it has to know of strings. */
static void
prepare_regroup(GpuAggState *state)
{
	if (any_deferred(state) ||
		(state->shared != NULL && gpurhh_parallel_any_choices(state->shared)))
		gpurhh_regroup_keep_strings(state->regroup);
	if (state->shared != NULL)
		gpurhh_choices_read(state->shared, &state->strings,
							rhh_result_words(&state->spec), state->regroup);
}

/*
 * Has the device make the second level, if it can: that is, if it has every row
 * of the first, and memory for another table.
 */
static void
regroup_on_device(GpuAggState *state)
{
	RegroupPlan *plan = gpurhh_regroup_plan(state->regroup);
	bool		wanted;

	if (plan == NULL || state->channel == NULL)
		return;
	wanted = state->host == NULL && !any_deferred(state) &&
		gpurhh_channel_complete(state->channel);
	gpurhh_channel_regroup(state->channel, wanted);
	if (!wanted)
		return;
	/* what it refuses now is of the second level */
	state->on_device = plan;
	while (!gpurhh_channel_wait_finished(state->channel))
		take_returned(state);
	if (!gpurhh_channel_regrouped(state->channel, &state->stats.second.table))
		state->on_device = NULL;
}

/*
 * Reads the input, or this participant's part of it, and waits until the table
 * can be read.  False: there are no groups for this participant to emit.
 */
static bool
read_input(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	bool		attached = true;
	bool		last = true;
	instr_time	start;

	if (shared != NULL)
		attached = gpurhh_parallel_attach(shared);
	else
		state->channel = open_query(state, state->run_context);
	if (state->n_strings > 0)
	{
		state->pass_context = AllocSetContextCreate(state->run_context,
													"GpuHashAgg pass",
													ALLOCSET_DEFAULT_SIZES);
		if (state->shared_dictionary != NULL)
			use_dictionary(state, state->shared_dictionary);
		else
			make_dictionary(state, state->spec.expected_groups);
	}

	if (attached)
	{
		INSTR_TIME_SET_CURRENT(start);
		feed_child(state);
		state->stats.counts.feed_ms += milliseconds_since(start);
		state->stats.counts.feeders++;
		if (shared == NULL)
			state->stats.counts.runs++;
		else
			last = gpurhh_parallel_detach(shared, &state->stats.counts);
		if (last)
			note_dictionary(state);
		if (last && state->channel != NULL)
			gpurhh_channel_end_input(state->channel);
	}
	if (shared != NULL && !gpurhh_parallel_emits_later(shared))
		return false;

	INSTR_TIME_SET_CURRENT(start);
	if (state->channel != NULL)
	{
		while (!gpurhh_channel_wait_finished(state->channel))
			take_returned(state);
	}
	if (shared != NULL)
	{
		if (!gpurhh_parallel_may_emit(shared, state->channel,
									  state->regroup != NULL))
			return false;
		read_late(state);
	}
	if (state->regroup != NULL)
	{
		prepare_regroup(state);
		regroup_on_device(state);
	}
	state->stats.counts.fetch_ms += milliseconds_since(start);
	return true;
}

/* Statistics of the device, as far as they are known now. */
static void
note_device_stats(GpuAggState *state)
{
	state->has_table = state->channel != NULL &&
		gpurhh_channel_stats(state->channel, &state->stats.table,
							 state->stats.device, state->stats.refusal);
	if (state->regroup != NULL)
		state->stats.second.place = state->channel != NULL &&
			gpurhh_channel_regrouped(state->channel,
									 &state->stats.second.table) ?
			GPU_LEVEL_DEVICE : GPU_LEVEL_HOST;
	state->stats.valid = true;
}

/* The same of the third level's table. */
static void
note_upper_stats(GpuAggState *state)
{
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		refusal[GPURHH_MESSAGE_LEN];

	state->has_table = gpurhh_channel_stats(state->channel,
											&state->stats.third.table, device,
											refusal);
	state->stats.third.place = GPU_LEVEL_DEVICE;
}

/* ---------- output ---------- */

/* The device's next chunk; false if there is none left. */
static bool
fetch_chunk(GpuAggState *state)
{
	ChannelResult *chunk = &state->chunk;
	instr_time	start;
	bool		fetched;

	/* groups that the host table takes do not return to anyone who would look */
	CHECK_FOR_INTERRUPTS();
	if (!state->has_table)
		return false;
	if (chunk->words == NULL)
		chunk->words = MemoryContextAlloc(state->run_context,
										  gpurhh_channel_block_bytes(state->channel));
	INSTR_TIME_SET_CURRENT(start);
	fetched = gpurhh_channel_fetch(state->channel, chunk);
	state->stats.counts.fetch_ms += milliseconds_since(start);
	state->chunk_next = 0;
	if (!fetched)
	{
		if (state->level == state->regroup)
			note_device_stats(state);
		else
			note_upper_stats(state);
		chunk->n_groups = 0;
	}
	return fetched;
}

/*
 * The device's next groups that are not the host table's to return: *n of them,
 * with the stride of the chunk.  NULL: there are no more.
 */
static const uint64 *
next_device_groups(GpuAggState *state, uint32 *n)
{
	ChannelResult *chunk = &state->chunk;

	for (;;)
	{
		const uint64 *words;

		if (chunk->words == NULL || state->chunk_next == chunk->n_groups)
		{
			if (!fetch_chunk(state))
				return NULL;
			continue;
		}
		words = chunk->words + state->chunk_next;
		if (!chunk->needs_merge &&
			(chunk->first_level || state->host == NULL ||
			 gpurhh_host_is_empty(state->host)))
		{
			*n = Min(chunk->n_groups - state->chunk_next, GPURHH_EMIT_WINDOW);
			state->chunk_next += *n;
			return words;
		}
		state->chunk_next++;
		*n = 1;
		if (chunk->needs_merge)
			gpurhh_host_merge(host_table(state), words,
							  chunk->capacity_groups);
		else if (!gpurhh_host_absorb(state->host, words,
									 chunk->capacity_groups))
			return words;
	}
}

/*
 * Groups the deferred rows of the next pass, with a new dictionary, in a new
 * host table.  False: there are no more.
 */
static bool
start_pass(GpuAggState *state)
{
	Feed		feed;
	rhh_batch	batch;
	char	   *block;
	bool		more;
	uint64		n_strings;
	uint64		bytes;

	if (state->n_strings == 0)
		return false;
	/* other participants may have some */
	if (state->deferred == NULL)
	{
		if (state->shared_dictionary == NULL)
			return false;
		state->deferred = make_deferred(state);
		gpurhh_deferred_close(state->deferred);
	}
	if (!gpurhh_deferred_next(state->deferred))
		return false;

	if (state->host != NULL)
	{
		state->spilled_before += gpurhh_host_spilled(state->host);
		gpurhh_host_free(state->host);
		state->host = NULL;
	}
	MemoryContextReset(state->pass_context);
	make_dictionary(state, 0);
	init_feed(state, &feed, GPURHH_MIN_BLOCK_BYTES, state->pass_context,
			  add_choice);
	block = (char *) TYPEALIGN(64, MemoryContextAlloc(state->pass_context,
													  GPURHH_MIN_BLOCK_BYTES + 64));
	do
	{
		gpurhh_feed_start(&feed, block);
		more = true;
		while (more && feed.n_rows < feed.capacity_rows)
		{
			more = gpurhh_deferred_read(state->deferred, state->deferred_slot);
			if (more)
				gpurhh_feed_slot(&feed, state->deferred_slot);
		}
		if (feed.n_rows > 0)
		{
			gpurhh_feed_finish(&feed, &batch);
			batch.base = (uint8_t *) block;
			state->stats.counts.rows_fed += batch.n_rows;
			add_on_host(state, &batch, true);
		}
	} while (more);
	ExecClearTuple(state->deferred_slot);
	gpurhh_deferred_close(state->deferred);
	gpurhh_dictionary_stats(state->dictionary, &n_strings, &bytes);
	state->stats.counts.dictionary_bytes =
		Max(state->stats.counts.dictionary_bytes, bytes);
	state->stats.counts.passes++;
	return true;
}

/* start_pass(), timed: it is no part of forming a row. */
static bool
next_pass(GpuAggState *state)
{
	instr_time	start;
	bool		started;

	INSTR_TIME_SET_CURRENT(start);
	started = start_pass(state);
	state->stats.counts.fetch_ms += milliseconds_since(start);
	return started;
}

/* This participant has no more groups. */
static void
end_emission(GpuAggState *state)
{
	state->phase = EMIT_DONE;
	if (state->shared != NULL)
		gpurhh_parallel_add_counts(state->shared, &state->stats.counts);
}

/* The next groups of the device, then of the host table; NULL: no more. */
static const uint64 *
next_first_level(GpuAggState *state, Size *stride, uint32 *n)
{
	const uint64 *words = NULL;

	CHECK_FOR_INTERRUPTS();
	if (state->phase == EMIT_DEVICE)
	{
		words = next_device_groups(state, n);
		*stride = state->chunk.capacity_groups;
		if (words != NULL)
			return words;
		state->phase = EMIT_HOST;
	}
	while (state->phase == EMIT_HOST && words == NULL)
	{
		*stride = 1;
		*n = 1;
		if (state->host != NULL)
		{
			words = gpurhh_host_next(state->host);
			state->stats.counts.host_spilled = state->spilled_before +
				gpurhh_host_spilled(state->host);
		}
		if (words == NULL && !next_pass(state))
		{
			state->phase = EMIT_REGROUPED;
			/* strings that are shown from here on are the level's own */
			if (state->level != NULL &&
				gpurhh_regroup_keeps_strings(state->level))
			{
				use_dictionary(state, NULL);
				MemoryContextReset(state->pass_context);
			}
		}
	}
	return words;
}

/* The next groups of the level that is returned. */
static const uint64 *
next_groups_of_level(GpuAggState *state, Size *stride, uint32 *n)
{
	Regroup    *level = state->level;
	const uint64 *words = NULL;

	while ((words = next_first_level(state, stride, n)) != NULL)
	{
		if (level == NULL)
			return words;
		if (state->on_device != NULL)
		{
			/* the first level's are those of a set as they are */
			if (state->phase == EMIT_DEVICE && state->chunk.first_level)
				return words;
			words = gpurhh_regroup_translate(level, words, *stride, *n);
			*stride = GPURHH_EMIT_WINDOW;
			return words;
		}
		if (gpurhh_regroup_add(level, state->dictionary, words, *stride, *n))
			return words;
	}
	if (state->phase == EMIT_REGROUPED && level != NULL)
	{
		*stride = GPURHH_EMIT_WINDOW;
		words = gpurhh_regroup_next(level, n);
	}
	return words;
}

/* Makes the third level of all groups of the second. */
static void
start_upper(GpuAggState *state)
{
	Regroup    *above = gpurhh_regroup_above(state->level);
	UpperFeed  *upper = NULL;
	Channel    *channel;
	const uint64 *words;
	Size		stride;
	uint32		n;

	/* a device knows strings by their numbers */
	if (gpurhh_regroup_plan(above) != NULL &&
		!gpurhh_regroup_keeps_strings(above))
	{
		set_limits(state, &gpurhh_regroup_plan(above)->spec);
		upper = gpurhh_upper_start(above, state->run_context);
	}
	while ((words = next_groups_of_level(state, &stride, &n)) != NULL)
	{
		if (upper != NULL)
			gpurhh_upper_add(upper, words, stride, n);
		else
			(void) gpurhh_regroup_add(above, state->dictionary, words, stride,
									  n);
	}

	/* one that participants may still come to goes with shared_context */
	if (state->channel != NULL && !state->channel_shared)
		gpurhh_channel_close(state->channel);
	if (state->host != NULL)
	{
		state->spilled_before += gpurhh_host_spilled(state->host);
		gpurhh_host_free(state->host);
	}
	state->host = NULL;
	state->channel = NULL;
	state->channel_shared = false;
	state->has_table = false;
	state->on_device = NULL;
	state->level = above;
	state->phase = EMIT_REGROUPED;
	state->stats.third.place = GPU_LEVEL_HOST;
	if (upper == NULL)
		return;
	channel = gpurhh_upper_finish(upper, &state->host,
								  &state->stats.counts.host_rows);
	state->channel = channel;
	state->on_device = gpurhh_regroup_plan(above);
	state->chunk.n_groups = state->chunk_next = 0;
	state->phase = EMIT_DEVICE;
	note_upper_stats(state);
}

/* The next groups to return. */
static const uint64 *
next_groups(GpuAggState *state, Size *stride, uint32 *n)
{
	GpuNodeCounts *counts = &state->stats.counts;
	double		fetch_ms = counts->fetch_ms;
	const uint64 *words;
	instr_time	start;

	if (state->level == NULL)
		return next_groups_of_level(state, stride, n);
	INSTR_TIME_SET_CURRENT(start);
	if (gpurhh_regroup_above(state->level) != NULL)
		start_upper(state);
	words = next_groups_of_level(state, stride, n);
	/* whatever it took, fetching included */
	counts->fetch_ms = fetch_ms + milliseconds_since(start);
	counts->host_spilled = state->spilled_before +
		(state->host ? gpurhh_host_spilled(state->host) : 0) +
		gpurhh_regroup_spilled(state->regroup);
	return words;
}

/* Decodes the next groups; false: there are none. */
static bool
next_window(GpuAggState *state)
{
	const uint64 *words;
	Size		stride;
	uint32		n;
	int			n_removed;

	if (state->phase == EMIT_DONE)
		return false;
	words = next_groups(state, &stride, &n);
	if (words == NULL)
	{
		end_emission(state);
		return false;
	}
	state->stats.counts.groups_returned += n;
	n_removed = gpurhh_emit_window(&state->emit, words, stride, n);
	InstrCountFiltered1(&state->css.ss.ps, n_removed);
	return true;
}

/* HAVING, for a group that could not be decided with its window. */
static bool
passes_having(GpuAggState *state, TupleTableSlot *slot)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	econtext->ecxt_scantuple = slot;
	if (ExecQual(state->having, econtext))
		return true;
	InstrCountFiltered1(&state->css.ss.ps, 1);
	ResetExprContext(econtext);
	return false;
}

/* ExecScan's access method: the next group as a scan tuple. */
static TupleTableSlot *
next_group(ScanState *ss)
{
	GpuAggState *state = (GpuAggState *) ss;
	Emit	   *emit = &state->emit;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	do
	{
		while (emit->next == emit->n_rows)
		{
			if (!next_window(state))
				return ExecClearTuple(slot);
		}
		if (emit->allocates)
		{
			MemoryContext old = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);

			gpurhh_emit_row(emit, slot);
			MemoryContextSwitchTo(old);
		}
		else
			gpurhh_emit_row(emit, slot);
	} while (unlikely(emit->recheck) && !passes_having(state, slot));
	return slot;
}

/*
 * Groups have no row version to recheck.  Older minor versions of PostgreSQL
 * call this in place of next_group() when they evaluate a query once more for
 * an updated row (EvalPlanQual), and expect the row in the slot.
 */
static bool
recheck_group(ScanState *ss, TupleTableSlot *slot)
{
	return !TupIsNull(next_group(ss));
}

/*
 * The next row.  Without HAVING and projection the scan tuple is the row, and
 * what ExecScan() does around it for every one of millions can be left out.
 */
static TupleTableSlot *
next_row(GpuAggState *state)
{
	ScanState  *ss = &state->css.ss;

	if (ss->ps.qual != NULL || ss->ps.ps_ProjInfo != NULL ||
		ss->ps.state->es_epq_active != NULL)
		return ExecScan(ss, next_group, recheck_group);

	if (state->emit.allocates)
		ResetExprContext(ss->ps.ps_ExprContext);
	return next_group(ss);
}

/*
 * What a sample would show if nothing were done in it.  Measured once by each
 * process; the shortest, so that it is never an interrupted one, and no more
 * is taken from a sample than the clock surely took.
 */
static double
clock_ms(void)
{
	static double shortest = -1.0;

	if (shortest < 0)
	{
		for (int i = 0; i < CLOCK_PAIRS; i++)
		{
			instr_time	start;
			double		ms;

			INSTR_TIME_SET_CURRENT(start);
			ms = milliseconds_since(start);
			shortest = i == 0 ? ms : Min(shortest, ms);
		}
	}
	return shortest;
}

/*
 * Looking at the clock twice takes as long as forming a row, so under EXPLAIN
 * ANALYZE one call in EMIT_SAMPLE is timed, and the clock's time subtracted.
 */
static TupleTableSlot *
exec_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuNodeCounts *counts = &state->stats.counts;
	instr_time	start;
	double		overhead_ms;
	double		fetch_ms;
	double		form_ms;
	TupleTableSlot *slot;

	if (state->phase == EMIT_NOT_READ)
	{
		state->phase = EMIT_DEVICE;
		state->level = state->regroup;
		state->stats.third.place = GPU_LEVEL_NONE;
		if (state->regroup != NULL)
			gpurhh_regroup_start(state->regroup, state->run_context);
		if (!read_input(state))
			end_emission(state);
		note_device_stats(state);
	}
	if (node->ss.ps.instrument == NULL ||
		state->n_calls++ % EMIT_SAMPLE != 0)
		return next_row(state);

	overhead_ms = clock_ms();
	fetch_ms = counts->fetch_ms;
	INSTR_TIME_SET_CURRENT(start);
	slot = next_row(state);
	form_ms = milliseconds_since(start) - overhead_ms -
		(counts->fetch_ms - fetch_ms);
	if (state->phase != EMIT_DONE)
		counts->form_ms += EMIT_SAMPLE * Max(form_ms, 0.0);
	return slot;
}

/* ---------- end ---------- */

static void
close_channel(GpuAggState *state)
{
	if (state->channel != NULL)
		gpurhh_channel_close(state->channel);
	state->channel = NULL;
	state->channel_shared = false;
}

/* Frees what one execution used, files and its own channel included. */
static void
release_run(GpuAggState *state)
{
	if (!state->channel_shared)
		close_channel(state);
	if (state->host != NULL)
		gpurhh_host_free(state->host);
	state->host = NULL;
	if (state->deferred != NULL)
		gpurhh_deferred_free(state->deferred);
	state->deferred = NULL;
	state->spilled_before = 0;
	state->pass_context = NULL;
	use_dictionary(state, NULL);
	if (state->regroup != NULL)
		gpurhh_regroup_end(state->regroup);
	state->on_device = NULL;
	memset(&state->chunk, 0, sizeof(state->chunk));
	state->chunk_next = 0;
	gpurhh_emit_reset(&state->emit);
	MemoryContextReset(state->run_context);
}

static void
end_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	close_channel(state);
	release_run(state);
	ExecEndNode(outerPlanState(node));
}

static void
rescan_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	release_run(state);
	state->phase = EMIT_NOT_READ;
	/* a child with changed parameters is rescanned by its first use */
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* ---------- parallel plans ---------- */

static Size
estimate_dsm_agg(CustomScanState *node, ParallelContext *pcxt)
{
	return gpurhh_parallel_bytes();
}

/*
 * Leader: a dictionary for the participants of the next run, in place of the
 * last run's.  InvalidDsaPointer: no strings, or no memory that can be shared
 * (then there are no workers).
 */
static dsa_pointer
share_dictionary(GpuAggState *state, int n_participants)
{
	dsa_area   *area = state->css.ss.ps.state->es_query_dsa;
	dsa_pointer last = gpurhh_parallel_dictionary(state->shared);

	if (state->n_strings == 0 || area == NULL)
		return InvalidDsaPointer;
	if (DsaPointerIsValid(last))
		gpurhh_dictionary_unshare(area, last);
	return gpurhh_dictionary_share(area,
								   get_hash_memory_limit() * n_participants,
								   state->n_strings,
								   state->spec.expected_groups);
}

static void
attach_dictionary(GpuAggState *state)
{
	dsa_pointer place = gpurhh_parallel_dictionary(state->shared);

	state->shared_dictionary = NULL;
	if (DsaPointerIsValid(place))
		state->shared_dictionary =
			gpurhh_dictionary_attach(state->css.ss.ps.state->es_query_dsa,
									 place, state->shared_context);
}

/*
 * Leader: opens the query that the participants of the next run share.  This
 * may come before rescan_agg() of the same run, or after it.
 */
static void
reinitialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
					 void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;

	close_channel(state);
	MemoryContextReset(state->shared_context);
	state->channel = open_query(state, state->shared_context);
	state->channel_shared = state->channel != NULL;
	gpurhh_parallel_start(state->shared,
						  state->leader_emits && parallel_leader_participation,
						  state->channel,
						  share_dictionary(state, pcxt->nworkers + 1));
	attach_dictionary(state);
}

static void
initialize_dsm_agg(CustomScanState *node, ParallelContext *pcxt,
				   void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;

	state->shared = coordinate;
	gpurhh_parallel_init(state->shared, pcxt->seg);
	reinitialize_dsm_agg(node, pcxt, coordinate);
}

static void
initialize_worker_agg(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuAggState *state = (GpuAggState *) node;

	state->shared = coordinate;
	state->channel = gpurhh_parallel_join(state->shared,
										  state->shared_context);
	state->channel_shared = state->channel != NULL;
	attach_dictionary(state);
}

/*
 * The DSM segment is about to go: keeps for EXPLAIN what the participants did.
 * Workers have added theirs before they returned their last row.
 */
static void
shutdown_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

	if (state->shared == NULL)
		return;
	gpurhh_parallel_add_counts(state->shared, &state->stats.counts);
	if (!IsParallelWorker())
	{
		gpurhh_parallel_counts(state->shared, &state->stats.counts);
		state->stats.parallel = true;
		/* unless the channel is of the third level, or has gone for it */
		if (state->stats.counts.runs > 0 &&
			(state->level == NULL || state->level == state->regroup))
			note_device_stats(state);
	}
	state->shared = NULL;
	state->shared_dictionary = NULL;
	use_dictionary(state, NULL);
}

static void
explain_agg(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuAggState *state = (GpuAggState *) node;

	gpurhh_explain_agg(node, ancestors, es, &state->stats);
}
