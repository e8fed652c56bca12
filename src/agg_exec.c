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
 *		EMIT_HOST		the host table's groups
 *		EMIT_DONE
 *
 * A group in either place is words (see rhh_result); form_tuple() makes a scan
 * tuple of them.  ExecScan() applies HAVING and the projection, if any.
 *
 * Memory: run_context holds everything of one execution (the channel, the
 * host table, the chunk); it is reset by a rescan and goes with the query's
 * context at an error, which closes the channel.  Values that a tuple points
 * to are in the per-tuple context.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "executor/executor.h"
#include "executor/nodeCustom.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/uuid.h"

/* One call in so many is timed, see exec_agg(). */
#define EMIT_SAMPLE 64

typedef enum EmitPhase
{
	EMIT_NOT_READ,				/* the input has not been read */
	EMIT_DEVICE,
	EMIT_HOST,
	EMIT_DONE
} EmitPhase;

/* How one column of the scan tuple is made of a group's words. */
typedef struct OutputColumn
{
	GpuFinal	final;
	GpuEncoding encoding;		/* of keys, determined columns, min and max */
	int			word;			/* first word of the key or state */
	int			count_word;		/* word of the count, or -1 */
	int			null_bit;		/* keys: bit of word 0 */
} OutputColumn;

typedef struct GpuAggState
{
	CustomScanState css;		/* must be first */

	/* from the plan */
	int			n_columns;
	GpuEncoding encodings[RHH_MAX_COLUMNS];
	rhh_table_spec spec;
	int			n_outputs;
	OutputColumn *outputs;
	bool		allocates;		/* some values are in the per-tuple context */
	HeapFeed   *heap;			/* reads the child's pages; NULL: it cannot */

	/* of one execution, in run_context */
	MemoryContext run_context;
	EmitPhase	phase;
	Channel    *channel;		/* NULL: no device */
	bool		has_table;		/* there are groups of a device to be read */
	HostTable  *host;			/* NULL until it is needed */
	ChannelResult chunk;
	uint32		chunk_next;		/* next group in the chunk */

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
	int			state_word[RHH_MAX_STATES];
	int			key_word[RHH_MAX_KEYS];
	int			word;
	Feed		layout;
	ListCell   *lc;

	foreach(lc, (List *) list_nth(private, GPUAGG_PRIVATE_COLUMNS))
		state->encodings[state->n_columns++] = lfirst_int(lc);
	/* only for the columns' widths; the blocks' size is not known yet */
	gpurhh_feed_init(&layout, state->n_columns, state->encodings,
					 GPURHH_MIN_BLOCK_BYTES, 64);
	spec->n_columns = state->n_columns;
	for (int c = 0; c < state->n_columns; c++)
		spec->column_bytes[c] = layout.columns[c].bytes;

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

	word = 1;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		key_word[k] = word;
		word += rhh_key_words(spec, k);
	}
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		state_word[s] = word;
		word += rhh_state_words(spec, s);
	}

	state->n_outputs =
		list_length((List *) list_nth(private, GPUAGG_PRIVATE_OUTPUTS));
	state->outputs = palloc0(sizeof(OutputColumn) * state->n_outputs);
	foreach(lc, (List *) list_nth(private, GPUAGG_PRIVATE_OUTPUTS))
	{
		List	   *from = lfirst(lc);
		OutputColumn *to = &state->outputs[foreach_current_index(lc)];
		const GpuType *type = gpurhh_find_type((Oid) lsecond_int(from));
		int			first = lthird_int(from);
		int			second = lfourth_int(from);

		to->final = linitial_int(from);
		to->encoding = type ? type->encoding : GPU_ENC_INT8;
		to->count_word = second >= 0 ? state_word[second] : -1;
		if (to->final == GPU_FINAL_KEY)
		{
			to->word = key_word[first];
			to->null_bit = first;
		}
		else
			to->word = state_word[first];
		if (type == NULL || to->encoding == GPU_ENC_UUID)
			state->allocates = true;	/* numeric is not in the table of types */
	}
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
	state->phase = EMIT_NOT_READ;
	state->in_pool = true;

	/* all input is read before the first group is returned, and only once */
	outerPlanState(node) =
		ExecInitNode(outerPlan(cscan), estate,
					 eflags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD |
								EXEC_FLAG_MARK));
	state->heap = gpurhh_heap_feed_create(outerPlanState(node),
										  state->n_columns, state->encodings,
										  estate->es_query_cxt,
										  &state->stats.feed_why);
	state->stats.feed_pages = state->heap != NULL;
}

/* ---------- input ---------- */

static HostTable *
host_table(GpuAggState *state)
{
	if (state->host == NULL)
		state->host = gpurhh_host_create(&state->spec, state->run_context,
										 get_hash_memory_limit());
	return state->host;
}

static void
add_on_host(GpuAggState *state, const rhh_batch *batch, bool all_rows)
{
	uint64		rows = 0;

	gpurhh_host_add_batch(host_table(state), batch, all_rows);
	if (all_rows)
		rows = batch->n_rows;
	else
		rows = pg_popcount((const char *) batch->base + batch->failed_offset,
						   (batch->n_rows + 7) / 8);
	state->stats.host_rows += rows;
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

/*
 * Where the next rows go: a block of the pool, or memory of our own where
 * there is no device, or no block for too long.
 */
static char *
next_block(GpuAggState *state, char **own_block, Size block_bytes,
		   bool *in_pool)
{
	char	   *base;

	while (state->channel != NULL)
	{
		/* having been late once, we do not wait each time */
		switch (gpurhh_channel_acquire(state->channel, *in_pool, &base))
		{
			case CHANNEL_BLOCK:
				*in_pool = true;
				return base;
			case CHANNEL_RETURNED:
				take_returned(state);
				continue;
			case CHANNEL_LATE:
				break;
		}
		break;
	}
	*in_pool = false;
	if (*own_block == NULL)
		*own_block = (char *) TYPEALIGN(64, palloc(block_bytes + 64));
	return *own_block;
}

static void
hand_over(GpuAggState *state, Feed *feed, char *own_block, bool in_pool)
{
	rhh_batch	batch;
	uint32		n_rows = feed->n_rows;

	gpurhh_feed_finish(feed, &batch);
	state->stats.rows_fed += n_rows;
	state->stats.bytes_fed += batch.used_bytes;
	state->stats.batches++;
	if (in_pool)
		gpurhh_channel_submit(state->channel, &batch);
	else
	{
		batch.base = (uint8_t *) own_block;
		add_on_host(state, &batch, true);
	}
}

static void
read_input(GpuAggState *state)
{
	PlanState  *child = outerPlanState(&state->css);
	const char *why = NULL;
	ChannelArea *area;
	Size		block_bytes;
	Feed		feed;
	char	   *own_block = NULL;
	rhh_table_spec *spec = &state->spec;

	spec->memory_limit_bytes = (uint64) gpurhh_device_memory_mb * 1024 * 1024;
	spec->max_probe_buckets = gpurhh_max_probe_buckets;
	spec->load_factor = gpurhh_load_factor;
	spec->flags = state->css.ss.ps.instrument ? RHH_WANT_PROBE_STATS : 0;
	area = gpurhh_channel_attach(&why);
	block_bytes = area ? area->block_bytes : GPURHH_MAX_BLOCK_BYTES;
	gpurhh_feed_init(&feed, state->n_columns, state->encodings, block_bytes,
					 gpurhh_batch_rows);
	spec->max_batch_rows = feed.capacity_rows;
	spec->max_batch_bytes = block_bytes;

	if (area != NULL)
		state->channel = gpurhh_channel_open(area, spec, state->run_context,
											 &why);
	if (state->channel == NULL)
	{
		ereport(DEBUG1,
				(errmsg_internal("GpuHashAgg runs on the host: %s", why)));
		strlcpy(state->stats.device, "host", GPURHH_DEVICE_NAME_LEN);
		strlcpy(state->stats.refusal, why, GPURHH_MESSAGE_LEN);
	}

	if (state->heap != NULL && !gpurhh_heap_feed_begin(state->heap))
	{
		state->stats.feed_pages = false;
		state->stats.feed_why = "the scan's snapshot or direction is unusual";
	}
	for (;;)
	{
		TupleTableSlot *slot = NULL;

		if (!state->stats.feed_pages)
			slot = ExecProcNode(child);
		else if (gpurhh_heap_feed_fill(state->heap, &feed))
		{
			if (feed.base != NULL)
				hand_over(state, &feed, own_block, state->in_pool);
		}
		else
			break;
		if (!state->stats.feed_pages && TupIsNull(slot))
			break;
		if (feed.base == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(state->run_context);

			gpurhh_feed_start(&feed, next_block(state, &own_block, block_bytes,
												&state->in_pool));
			MemoryContextSwitchTo(old);
		}
		if (slot == NULL)
			continue;
		gpurhh_feed_slot(&feed, slot);
		if (feed.n_rows == feed.capacity_rows)
			hand_over(state, &feed, own_block, state->in_pool);
	}
	if (feed.base != NULL)
		hand_over(state, &feed, own_block, state->in_pool);

	if (state->channel != NULL)
	{
		gpurhh_channel_end_input(state->channel);
		while (!gpurhh_channel_wait_finished(state->channel))
			take_returned(state);
	}
}

/* Statistics of the device, as far as they are known now. */
static void
note_device_stats(GpuAggState *state)
{
	state->has_table = state->channel != NULL &&
		gpurhh_channel_stats(state->channel, &state->stats.table,
							 state->stats.device, state->stats.refusal);
	state->stats.valid = true;
}

/* ---------- output ---------- */

/* A 128-bit two's complement integer as a numeric. */
static Datum
numeric_from_words(uint64 low, uint64 high)
{
	/* fits 64 bits: the high word is the low word's sign */
	if (high == (uint64) ((int64) low >> 63))
		return NumericGetDatum(int64_to_numeric((int64) low));
	else
	{
		/* (high * 2^32 + upper half of low) * 2^32 + lower half of low */
		Datum		two32 = NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32));
		Datum		sum = NumericGetDatum(int64_to_numeric((int64) high));

		sum = DirectFunctionCall2(numeric_mul, sum, two32);
		sum = DirectFunctionCall2(numeric_add, sum,
								  NumericGetDatum(int64_to_numeric((int64) (low >> 32))));
		sum = DirectFunctionCall2(numeric_mul, sum, two32);
		return DirectFunctionCall2(numeric_add, sum,
								   NumericGetDatum(int64_to_numeric((int64) (low & 0xffffffff))));
	}
}

/* A value of an encoding, from its word, or words. */
static inline Datum
datum_from_words(GpuEncoding encoding, const uint64 *words, Size stride)
{
	switch (encoding)
	{
		case GPU_ENC_BOOL:
		case GPU_ENC_FILTER:
			return BoolGetDatum(words[0] != 0);
		case GPU_ENC_INT2:
			return Int16GetDatum((int16) words[0]);
		case GPU_ENC_INT4:
			return Int32GetDatum((int32) words[0]);
		case GPU_ENC_INT8:
			return Int64GetDatum((int64) words[0]);
		case GPU_ENC_FLOAT4:
			{
				uint32		bits = (uint32) words[0];
				float4		value;

				memcpy(&value, &bits, sizeof(value));
				return Float4GetDatum(value);
			}
		case GPU_ENC_FLOAT8:
			{
				float8		value;

				memcpy(&value, &words[0], sizeof(value));
				return Float8GetDatum(value);
			}
		case GPU_ENC_UUID:
			{
				pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

				memcpy(uuid->data, &words[0], 8);
				memcpy(uuid->data + 8, &words[stride], 8);
				return UUIDPGetDatum(uuid);
			}
	}
	return (Datum) 0;			/* keep compiler quiet */
}

/*
 * Fills the scan slot from a group whose word w is words[w * stride].  The
 * current context is the per-tuple one.
 */
static inline void
form_tuple(GpuAggState *state, TupleTableSlot *slot, const uint64 *words,
		   Size stride)
{
	for (int i = 0; i < state->n_outputs; i++)
	{
		const OutputColumn *output = &state->outputs[i];
		const uint64 *at = words + output->word * stride;
		Datum	   *value = &slot->tts_values[i];
		uint64		count = 0;

		slot->tts_isnull[i] = false;
		if (output->count_word >= 0)
		{
			count = words[output->count_word * stride];
			if (count == 0)
			{
				*value = (Datum) 0;
				slot->tts_isnull[i] = true;
				continue;
			}
		}
		switch (output->final)
		{
			case GPU_FINAL_KEY:
				if ((words[0] & (UINT64CONST(1) << output->null_bit)) != 0)
				{
					*value = (Datum) 0;
					slot->tts_isnull[i] = true;
				}
				else
					*value = datum_from_words(output->encoding, at, stride);
				break;
			case GPU_FINAL_ANY:
				if (at[0] == 0)
				{
					*value = (Datum) 0;
					slot->tts_isnull[i] = true;
				}
				else
					*value = datum_from_words(output->encoding, at + stride,
											  stride);
				break;
			case GPU_FINAL_COUNT:
			case GPU_FINAL_SUM_INT8:
				*value = Int64GetDatum((int64) at[0]);
				break;
			case GPU_FINAL_SUM_NUMERIC:
				*value = numeric_from_words(at[0], at[stride]);
				break;
			case GPU_FINAL_AVG_INT8:
				/* as int8_avg() does it */
				*value = DirectFunctionCall2(numeric_div,
											 NumericGetDatum(int64_to_numeric((int64) at[0])),
											 NumericGetDatum(int64_to_numeric((int64) count)));
				break;
			case GPU_FINAL_AVG_NUMERIC:
				*value = DirectFunctionCall2(numeric_div,
											 numeric_from_words(at[0], at[stride]),
											 NumericGetDatum(int64_to_numeric((int64) count)));
				break;
			case GPU_FINAL_MIN:
			case GPU_FINAL_MAX:
				*value = datum_from_words(output->encoding, at, stride);
				break;
		}
	}
	ExecStoreVirtualTuple(slot);
}

static double
milliseconds_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_MILLISEC(now);
}

/* The device's next chunk; false if there is none left. */
static bool
fetch_chunk(GpuAggState *state)
{
	ChannelResult *chunk = &state->chunk;
	instr_time	start;

	/* groups that the host table takes do not return to anyone who would look */
	CHECK_FOR_INTERRUPTS();
	if (!state->has_table || chunk->last)
		return false;
	if (chunk->words == NULL)
	{
		Size		bytes = gpurhh_channel_block_bytes(state->channel);

		chunk->capacity_groups =
			bytes / sizeof(uint64) / rhh_result_words(&state->spec);
		chunk->words = MemoryContextAlloc(state->run_context, bytes);
	}
	INSTR_TIME_SET_CURRENT(start);
	gpurhh_channel_fetch(state->channel, chunk);
	state->stats.fetch_ms += milliseconds_since(start);
	state->chunk_next = 0;
	if (chunk->last)
		note_device_stats(state);
	return true;
}

/* The next group of the device that is not the host table's to return. */
static const uint64 *
next_device_group(GpuAggState *state)
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
		words = chunk->words + state->chunk_next++;
		if (chunk->needs_merge)
			gpurhh_host_merge(host_table(state), words,
							  chunk->capacity_groups);
		else if (state->host == NULL || gpurhh_host_is_empty(state->host) ||
				 !gpurhh_host_absorb(state->host, words,
									 chunk->capacity_groups))
			return words;
	}
}

/* ExecScan's access method: the next group as a scan tuple. */
static TupleTableSlot *
next_group(ScanState *ss)
{
	GpuAggState *state = (GpuAggState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	const uint64 *words = NULL;
	Size		stride = 1;
	MemoryContext old;

	ExecClearTuple(slot);
	if (state->phase == EMIT_DEVICE)
	{
		words = next_device_group(state);
		stride = state->chunk.capacity_groups;
		if (words == NULL)
			state->phase = EMIT_HOST;
	}
	if (state->phase == EMIT_HOST)
	{
		if (state->host != NULL)
		{
			words = gpurhh_host_next(state->host);
			stride = 1;
			state->stats.host_spilled = gpurhh_host_spilled(state->host);
		}
		if (words == NULL)
			state->phase = EMIT_DONE;
	}
	if (words == NULL)
		return slot;

	state->stats.groups_returned++;
	old = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);
	form_tuple(state, slot, words, stride);
	MemoryContextSwitchTo(old);
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

	CHECK_FOR_INTERRUPTS();
	if (state->allocates)
		ResetExprContext(ss->ps.ps_ExprContext);
	return next_group(ss);
}

/*
 * Looking at the clock twice takes as long as forming a row, so under EXPLAIN
 * ANALYZE one call in EMIT_SAMPLE is timed.
 */
static TupleTableSlot *
exec_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;
	GpuNodeStats *stats = &state->stats;
	instr_time	start;
	double		fetch_ms;
	TupleTableSlot *slot;

	if (state->phase == EMIT_NOT_READ)
	{
		INSTR_TIME_SET_CURRENT(start);
		read_input(state);
		stats->feed_ms += milliseconds_since(start);
		note_device_stats(state);
		state->phase = EMIT_DEVICE;
	}
	if (node->ss.ps.instrument == NULL ||
		state->n_calls++ % EMIT_SAMPLE != 0)
		return next_row(state);

	fetch_ms = stats->fetch_ms;
	INSTR_TIME_SET_CURRENT(start);
	slot = next_row(state);
	stats->form_ms += EMIT_SAMPLE *
		(milliseconds_since(start) - (stats->fetch_ms - fetch_ms));
	return slot;
}

/* ---------- end ---------- */

/* Frees what one execution used, files and channel included. */
static void
release_run(GpuAggState *state)
{
	if (state->channel != NULL)
		gpurhh_channel_close(state->channel);
	state->channel = NULL;
	if (state->host != NULL)
		gpurhh_host_free(state->host);
	state->host = NULL;
	memset(&state->chunk, 0, sizeof(state->chunk));
	state->chunk_next = 0;
	MemoryContextReset(state->run_context);
}

static void
end_agg(CustomScanState *node)
{
	GpuAggState *state = (GpuAggState *) node;

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

static void
explain_agg(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuAggState *state = (GpuAggState *) node;

	gpurhh_explain_agg(node, ancestors, es, state->spec.n_keys, &state->stats);
}
