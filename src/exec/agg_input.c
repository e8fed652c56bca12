/*-------------------------------------------------------------------------
 *
 * agg_input.c
 *		What GpuHashAgg groups: from the child to the device's table.
 *
 *		read_input		the child to its end, or this participant's part of it: by
 *						row or page into blocks of the pool, and on to the
 *						service.  Then waits until the table can be read, and has
 *						the device make the second level if it can.
 *		next_pass		rows that were deferred for their strings (deferred_rows.c),
 *						a part of them, into a new host table
 *
 * Batches that come back, wholly or in part, and all batches where there is no
 * device, go to the host table, also those of the third level (level_feed.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "exec/agg_state.h"
#include "settings.h"

/*
 * So many rows at most, by the estimate, does a session do itself where the load
 * is high.  24 sessions, 2 cores: at 100,000 rows the host table does twice as many
 * queries as the service, at 1,000,000 the service wins.
 */
#define STAY_ROWS	262144.0

/* Where the estimate was wrong, what comes after so many goes to the service. */
#define STAY_ROWS_MAX	(2 * STAY_ROWS)

/* ---------- rows that a device's table does not have ---------- */

static HostTable *
table_of(const HostSide *host)
{
	if (*host->table == NULL)
		*host->table = gpurhh_host_create(host->spec, host->context,
										  get_hash_memory_limit());
	return *host->table;
}

/* Adds a batch's rows that the device has refused, or all. */
void
gpurhh_add_on_host(const HostSide *host, const rhh_batch *batch, bool all_rows)
{
	uint64		rows = gpurhh_host_add_batch(table_of(host), batch, all_rows);

	*host->n_rows += rows;
	if (host->area != NULL)
		gpurhh_count_host_rows(host->area, rows);
}

/* Finishes what the device gave back so far. */
void
gpurhh_take_returned(const HostSide *host)
{
	rhh_batch	batch;
	bool		refused;

	while (gpurhh_channel_take_returned(host->channel, &batch, &refused))
	{
		gpurhh_add_on_host(host, &batch, refused);
		gpurhh_channel_give_back(host->channel);
	}
}

static HostSide
host_side(GpuAggState *state)
{
	return (HostSide){
		.table = &state->host,
		.spec = state->on_device ? &state->on_device->spec : &state->spec,
		.context = state->run_context,
		.channel = state->channel,
		.n_rows = &state->stats.counts.host_rows,
		.area = state->area
	};
}

HostTable *
gpurhh_agg_host_table(GpuAggState *state)
{
	HostSide	host = host_side(state);

	return table_of(&host);
}

static void
add_on_host(GpuAggState *state, const rhh_batch *batch)
{
	HostSide	host = host_side(state);

	gpurhh_add_on_host(&host, batch, true);
}

static void
take_returned(GpuAggState *state)
{
	HostSide	host = host_side(state);

	gpurhh_take_returned(&host);
}

/* ---------- blocks ---------- */

static Size
block_bytes(GpuAggState *state)
{
	/* a query that is opened later is of the shared area */
	if (state->stays)
		return gpurhh_shared_area()->block_bytes;
	return state->channel ? gpurhh_channel_block_bytes(state->channel) :
		GPURHH_MAX_BLOCK_BYTES;
}

/* A block of the pool; NULL: there is none. */
static char *
acquire_block(GpuAggState *state)
{
	char	   *base;

	for (;;)
	{
		/* having been late once, we do not wait each time */
		switch (gpurhh_channel_acquire(state->channel, state->waits, &base))
		{
			case CHANNEL_BLOCK:
				state->waits = true;
				return base;
			case CHANNEL_RETURNED:
				take_returned(state);
				continue;
			case CHANNEL_LATE:
				state->waits = false;
				return NULL;
		}
	}
}

/*
 * Where the next rows go: a block of the pool, or memory of our own where
 * there is no device, or no block, or none is to be held meanwhile.
 */
static char *
next_block(GpuAggState *state, char **own_block)
{
	if (state->channel != NULL && !state->copies)
	{
		char	   *base = acquire_block(state);

		state->in_pool = base != NULL;
		if (state->in_pool)
			return base;
	}
	state->in_pool = false;
	if (*own_block == NULL)
		*own_block = (char *)
			TYPEALIGN(64, MemoryContextAlloc(state->run_context,
											 block_bytes(state) + 64));
	return *own_block;
}

/* Copies a batch of our own into a block, and hands that over; false: there is none. */
static bool
submit_copy(GpuAggState *state, const rhh_batch *batch, const char *own_block)
{
	char	   *base = acquire_block(state);

	if (base == NULL)
		return false;
	memcpy(base, own_block, batch->used_bytes);
	gpurhh_channel_submit(state->channel, batch);
	return true;
}

/* The batch to the service, or into the host table.  last: no rows come after it. */
static void
hand_over(GpuAggState *state, Feed *feed, char *own_block, bool last)
{
	rhh_batch	batch;
	GpuNodeCounts *counts = &state->stats.counts;
	uint32		n_rows = feed->n_rows;
	bool		opened = false;
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
	if (state->stays && !last && (state->stayed_rows += n_rows) > STAY_ROWS_MAX)
	{
		state->channel = gpurhh_agg_open_query(state, state->run_context);
		state->stays = false;
		opened = true;
	}
	/* otherwise next_block() has asked for a block already */
	if ((state->copies || opened) && state->channel != NULL &&
		submit_copy(state, &batch, own_block))
		return;
	batch.base = (uint8_t *) own_block;
	old = MemoryContextSwitchTo(state->run_context);
	if (state->channel == NULL || gpurhh_channel_claim_finish(state->channel))
		add_on_host(state, &batch);
	else
		gpurhh_parallel_save_late(state->shared, &state->late_file, &batch);
	MemoryContextSwitchTo(old);
}

void
gpurhh_agg_set_limits(GpuAggState *state, rhh_map_spec *spec)
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
Channel *
gpurhh_agg_open_query(GpuAggState *state, MemoryContext context)
{
	rhh_map_spec *spec = &state->spec;
	LevelPlan  *plan = state->second_level ? gpurhh_level_plan(state->second_level) :
		NULL;
	const char *why = NULL;
	ChannelArea *area;
	Channel    *channel = NULL;

	gpurhh_agg_set_limits(state, spec);
	area = gpurhh_channel_attach(&why);
	if (area != NULL)
	{
		Feed		layout;

		gpurhh_feed_init(&layout, state->n_columns, state->columns,
						 area->block_bytes, gpurhh_batch_rows);
		/* if rows have been fed before, what runs below may have changed the setting */
		spec->max_batch_rows = Max(layout.capacity_rows, state->capacity_rows);
		spec->max_batch_bytes = area->block_bytes;
		if (plan != NULL)
		{
			gpurhh_agg_set_limits(state, &plan->spec);
			gpurhh_level_rows_init(&layout, plan, area->block_bytes,
								   gpurhh_batch_rows);
			plan->spec.max_batch_rows = layout.capacity_rows;
			plan->spec.max_batch_bytes = area->block_bytes;
		}
		channel = gpurhh_channel_open(area, spec, plan, state->copies, context,
									  &why);
	}
	if (channel == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("GpuHashAgg runs on the host: %s", why)));
		strlcpy(state->stats.device, "host", GPURHH_DEVICE_NAME_LEN);
		strlcpy(state->stats.refusal, why, GPURHH_MESSAGE_LEN);
	}
	else
		state->area = area;
	return channel;
}

/*
 * Is this session to do the query itself, without the service, as the load is
 * high and it has so few rows?
 */
bool
gpurhh_agg_stays(GpuAggState *state, double rows)
{
	if (rows > STAY_ROWS || !gpurhh_load_is_high())
		return false;
	strlcpy(state->stats.device, "host", GPURHH_DEVICE_NAME_LEN);
	strlcpy(state->stats.refusal, "other sessions keep the processors busy",
			GPURHH_MESSAGE_LEN);
	return true;
}

/* ---------- the child ---------- */

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
			hand_over(state, feed, *own_block, false);
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
			hand_over(state, feed, *own_block, false);
		gpurhh_feed_start(feed, next_block(state, own_block));
	}
}

void
gpurhh_agg_use_dictionary(GpuAggState *state, Dictionary *dictionary)
{
	state->dictionary = dictionary;
	state->emit.dictionary = dictionary;
}

/* This process's own dictionary. */
static void
make_dictionary(GpuAggState *state, double expected_strings)
{
	gpurhh_agg_use_dictionary(state,
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
 * in a participant's feed, and otherwise.  A string may be large: what make_choice()
 * makes is freed by its callers.
 */
static uint64 *
make_choice(GpuAggState *state, const Feed *feed, uint32 row, int column,
			const char *data, uint32 length, bool odd)
{
	uint64	   *words;

	words = MemoryContextAlloc(state->choice_context,
							   rhh_result_words(&state->spec) * sizeof(uint64));
	gpurhh_choice_group(&state->spec, &state->strings, state->n_shown_keys,
						feed, row, column, data, length, odd,
						state->choice_context, words);
	return words;
}

static void
save_choice(void *arg, const Feed *feed, uint32 row, int column,
			const char *data, uint32 length, bool odd)
{
	GpuAggState *state = arg;
	const uint64 *words = make_choice(state, feed, row, column, data, length,
									  odd);
	MemoryContext old = MemoryContextSwitchTo(state->run_context);

	gpurhh_choices_save(state->shared, &state->choice_file, &state->strings,
						words, rhh_result_words(&state->spec));
	MemoryContextSwitchTo(old);
	MemoryContextReset(state->choice_context);
}

static void
add_choice(void *arg, const Feed *feed, uint32 row, int column,
		   const char *data, uint32 length, bool odd)
{
	GpuAggState *state = arg;

	gpurhh_level_keep_strings(state->second_level);
	(void) gpurhh_level_add(state->second_level, NULL,
							make_choice(state, feed, row, column, data,
										length, odd),
							1, 1);
	MemoryContextReset(state->choice_context);
}

/* Where odd values go; made for the first one. */
static OddValues *
odd_values(GpuAggState *state)
{
	if (state->odd_arguments == NULL)
		state->odd_arguments = state->emit.odd_arguments = gpurhh_odd_create(state->odd_plan,
																			 state->run_context);
	return state->odd_arguments;
}

/* The feed's way to be rid of odd values of the row that it appends. */
static void
add_odd_row(void *arg, Feed *feed, TupleTableSlot *slot)
{
	GpuAggState *state = arg;

	gpurhh_odd_add_row(odd_values(state), feed, slot);
	feed->watched = gpurhh_odd_watched(state->odd_arguments);
}

/* A further level's way to be rid of odd values of DISTINCT. */
static void
add_odd_distinct(void *arg, const uint64 *group, int state_number, Datum value)
{
	GpuAggState *state = arg;

	gpurhh_odd_add(odd_values(state), NULL, group, 1,
				   gpurhh_odd_argument(state->odd_plan, state_number), value);
}

static void
note_odd(GpuAggState *state)
{
	GpuNodeCounts *counts = &state->stats.counts;
	uint64		n_values;
	uint64		n_compared;

	if (state->odd_arguments == NULL)
		return;
	gpurhh_odd_added(state->odd_arguments, &n_values, &n_compared);
	counts->odd_values += n_values;
	counts->odd_compared += n_compared;
	counts->odd_bytes = Max(counts->odd_bytes, gpurhh_odd_bytes(state->odd_arguments));
}

/* A participant's odd values go to who will emit their groups. */
static void
hand_over_odd(GpuAggState *state)
{
	if (state->odd_arguments == NULL || state->shared == NULL ||
		!gpurhh_parallel_has_others(state->shared))
		return;
	gpurhh_odd_save(state->odd_arguments, state->shared);
	gpurhh_odd_free(state->odd_arguments);
	state->odd_arguments = state->emit.odd_arguments = NULL;
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
	feed->odd_row = add_odd_row;
	feed->odd_arg = state;
	if (state->odd_arguments != NULL)
		feed->watched = gpurhh_odd_watched(state->odd_arguments);
	for (uint32 k = 0; k < state->spec.n_keys; k++)
		feed->columns[state->spec.key_column[k]].is_key = true;
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
	state->capacity_rows = feed.capacity_rows;
	if (state->pages != NULL)
	{
		gpurhh_page_feed_begin(state->pages);
		feed_pages(state, &feed, &own_block);
		gpurhh_agg_note_feed(state);
	}
	else
		feed_rows(state, &feed, &own_block);
	if (feed.base != NULL)
		hand_over(state, &feed, own_block, true);
	state->odd |= feed.strings.odd;
	gpurhh_parallel_close_late(&state->late_file);
	gpurhh_choices_close(&state->choice_file);
	note_odd(state);
	hand_over_odd(state);
	if (state->deferred != NULL)
		gpurhh_deferred_close(state->deferred);
	if (state->channel != NULL)
	{
		state->stats.counts.pool_wait_ms +=
			gpurhh_channel_pool_wait_ms(state->channel);
		state->stats.counts.late_batches +=
			gpurhh_channel_late_batches(state->channel);
	}
}

/* gpurhh_parallel_read_late()'s callback. */
static void
add_late_batch(void *arg, const rhh_batch *batch)
{
	add_on_host(arg, batch);
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
prepare_level(GpuAggState *state)
{
	if (state->odd || any_deferred(state) ||
		(state->shared != NULL && gpurhh_parallel_any_choices(state->shared)))
		gpurhh_level_keep_strings(state->second_level);
	if (state->odd)
		gpurhh_level_set_odd(state->second_level, add_odd_distinct, state);
	if (state->shared != NULL)
		gpurhh_choices_read(state->shared, &state->strings,
							rhh_result_words(&state->spec), state->second_level);
}

/*
 * Has the device make the second level, if it can: that is, if it has every row
 * of the first, and memory for another table.
 */
static void
level_on_device(GpuAggState *state)
{
	LevelPlan  *plan = gpurhh_level_plan(state->second_level);
	bool		wanted;

	if (plan == NULL || state->channel == NULL)
		return;
	wanted = !state->odd && state->host == NULL && !any_deferred(state) &&
		gpurhh_channel_complete(state->channel);
	gpurhh_channel_decide_level(state->channel, wanted);
	if (!wanted)
		return;
	/* what it refuses now is of the second level */
	state->on_device = plan;
	while (!gpurhh_channel_wait_finished(state->channel))
		take_returned(state);
	if (!gpurhh_channel_level_on_device(state->channel, &state->stats.second.table))
		state->on_device = NULL;
}

/*
 * Reads the input, or this participant's part of it, and waits until the table
 * can be read.  False: there are no groups for this participant to emit.
 */
bool
gpurhh_agg_read_input(GpuAggState *state)
{
	GpuAggShared *shared = state->shared;
	bool		attached = true;
	bool		last = true;
	instr_time	start;

	state->stayed_rows = 0;
	state->capacity_rows = 0;
	if (shared != NULL)
	{
		attached = gpurhh_parallel_attach(shared);
		state->stays = attached && gpurhh_parallel_stays(shared);
	}
	else
	{
		state->stays = gpurhh_agg_stays(state,
										outerPlan(state->css.ss.ps.plan)->plan_rows);
		state->area = NULL;
		if (!state->stays)
			state->channel = gpurhh_agg_open_query(state, state->run_context);
	}
	state->reading = gpurhh_load_begin(state->run_context);
	if (state->n_strings > 0)
	{
		state->pass_context = AllocSetContextCreate(state->run_context,
													"GpuHashAgg pass",
													ALLOCSET_DEFAULT_SIZES);
		if (state->shared_dictionary != NULL)
			gpurhh_agg_use_dictionary(state, state->shared_dictionary);
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
		{
			if (state->odd)
				gpurhh_parallel_note_odd(shared);
			last = gpurhh_parallel_detach(shared, &state->stats.counts);
		}
		if (last)
			note_dictionary(state);
		if (last && state->channel != NULL)
			gpurhh_channel_end_input(state->channel);
	}
	if (shared != NULL && !gpurhh_parallel_emits_later(shared))
	{
		gpurhh_load_end(state->reading);
		return false;
	}

	INSTR_TIME_SET_CURRENT(start);
	if (state->channel != NULL)
	{
		while (!gpurhh_channel_wait_finished(state->channel))
			take_returned(state);
	}
	gpurhh_load_end(state->reading);
	if (state->stays)
		gpurhh_load_count_stay();
	if (shared != NULL)
	{
		state->odd = gpurhh_parallel_any_odd(shared);
		if (!gpurhh_parallel_may_emit(shared, state->channel,
									  state->second_level != NULL || state->odd))
			return false;
		read_late(state);
		if (gpurhh_parallel_any_odd_arguments(shared))
		{
			gpurhh_odd_read(odd_values(state), shared);
			note_odd(state);
		}
	}
	if (state->second_level != NULL)
	{
		prepare_level(state);
		level_on_device(state);
	}
	state->stats.counts.fetch_ms += milliseconds_since(start);
	return true;
}

/* ---------- deferred rows ---------- */

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
			add_on_host(state, &batch);
		}
	} while (more);
	ExecClearTuple(state->deferred_slot);
	gpurhh_deferred_close(state->deferred);
	note_odd(state);
	gpurhh_dictionary_stats(state->dictionary, &n_strings, &bytes);
	state->stats.counts.dictionary_bytes =
		Max(state->stats.counts.dictionary_bytes, bytes);
	state->stats.counts.passes++;
	return true;
}

/* start_pass(), timed: it is no part of forming a row. */
bool
gpurhh_agg_next_pass(GpuAggState *state)
{
	instr_time	start;
	bool		started;

	INSTR_TIME_SET_CURRENT(start);
	started = start_pass(state);
	state->stats.counts.fetch_ms += milliseconds_since(start);
	return started;
}
