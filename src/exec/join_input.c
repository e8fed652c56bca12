/*-------------------------------------------------------------------------
 *
 * join_input.c
 *		Reads the sides of the hash joins below a node, so that the device does the
 *		joins instead of core.
 *
 * The child of the node is core's plan of a chain of hash joins (see join_tree.c), and
 * stays that: core's nodes are started, and can be asked for rows at any time.  But if a
 * device can do the joins, they are not asked.  The participants read the plans below
 * the Hash nodes and feed them to maps that keep rows, one for each join.  When all of
 * these are finished, they read the plan below the lowest join, the probe side: its pages
 * if it is a scan, else its rows.  The device joins them and groups what comes out.  No row
 * of the output leaves the device.
 *
 * If the device cannot do it (a build side has no room in its memory, for example), that
 * is known before the first row of the probe side is read, and the same to all participants:
 * see gpurhh_channel_wait_joins().  Then core's nodes are asked for rows after all, and
 * read the build sides once more.
 *
 * A row may have something that no column can have: a numeric that is not as its type
 * declares, or a string for which the dictionary has no room.  Or an expression is fed of
 * one side's columns, and its value for the row might be an error; whether the row has a
 * match, so that core would compute it, is not known yet.  Such a row of the probe side is
 * left over (left_over.c): core joins it in the end.  A build side with such a row is
 * not probed at all.
 *
 * If a join returns rows of its build side without a match, those come when all rows of the
 * scan have been joined, and the device makes them (gpurhh_join_unmatched()).  Then no row
 * can be left over, since core would return all that it does not match.  So the session
 * gives up at the first such row.
 *
 * The sides may be read several times, because a build side has no room and comes in parts: see
 * join_rounds.c.
 *
 * In a parallel plan the plan below a Hash node is complete in every participant, so that
 * each of them could do core's join by itself.  A large table is read by all of them
 * together, all the same: its pages are given out by a parallel scan that is the node's
 * own.  So is the plan below a GpuShareRows, which gives each of them all rows if core asks
 * (share_rows.c).  Any other build side is read by one participant, whichever asks first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "exec/join_input.h"
#include "exec/page_batches.h"
#include "settings.h"

/* Where what comes out comes back, a batch of pages has no more than so many times the rows of the one before. */
#define MORE_ROWS	4

/* A side while it is read. */
struct SideReader
{
	JoinReader *reader;
	JoinSide   *side;
	Channel    *channel;
	Feed		feed;
	bool		probes;			/* it is the probe side, */
	int			join;			/* or the build side of this join */
	uint32		room_offset;	/* probes: of refused rows of the output, in a block */
	uint32		room_rows;
	PageBatches *batches;		/* the device reads the side's pages; NULL: it does not */
	bool		by_columns;		/* or does not any more */
	char	   *own_memory;		/* NULL: batches are made in blocks of the pool */
	char	   *own_block;		/* in that: where they are made while the child may sleep */
	uint64		n_rows;			/* that have been fed */
	bool		skipped;		/* it is not to be read, because nothing would come out */
	KeyFilter  *filter;			/* a build side: its keys are added; or NULL */
	bool		spoiled;		/* is not to be read any further */
};

/* ---------- queries ---------- */

/*
 * The spec of a build side's map, or of its part, for a query that is opened now; pages: its batches may
 * have pages, cached: also from the cache.
 */
static rhh_map_spec
build_spec(const JoinInput *input, int j, Size block_bytes, bool pages, bool cached)
{
	const JoinParts *parts = &input->parts;
	const JoinStep *join = &input->joins[j];
	rhh_map_spec spec = join->spec;
	Feed		layout;

	gpurhh_feed_init(&layout, join->build.n_columns, join->build.columns, block_bytes,
					 gpurhh_batch_rows);
	spec.memory_limit_bytes = input->spec->memory_limit_bytes;
	spec.max_probe_buckets = input->spec->max_probe_buckets;
	spec.load_factor = input->spec->load_factor;
	spec.flags = input->spec->flags | RHH_KEEP_ROWS;
	if (rhh_keeps_build(input->join_spec.joins[j].kind))
		spec.flags |= RHH_KEEP_UNMATCHED;
	if (input->shares_matches && rhh_returns_unmatched(input->join_spec.joins[j].kind))
		spec.flags |= RHH_SHARE_MATCHES;
	spec.max_batch_rows = layout.capacity_rows;
	spec.max_batch_bytes = block_bytes;
	if (pages)
		gpurhh_page_batches_limits(&spec, cached);
	if (j == parts->join)
	{
		spec.n_parts = parts->n_parts;
		spec.part = parts->part;
		spec.expected_groups = Max(spec.expected_groups / parts->n_parts, 1);
	}
	return spec;
}

/* Does a session need the rows of build side j as columns, for a filter of its keys? */
static bool
needs_columns(const JoinInput *input, int j)
{
	return input->joins[j].filter_key.n > 0 && !input->probe_by_pages;
}

/*
 * Do the nested joins that make build side j spare more than a filter of its keys does, which needs its rows in the
 * session?  The one spares feeding the rows of the nested probe side, and the other those of the probe side
 * here; of these a string that goes to the dictionary takes ten times as long as the rest.
 */
static bool
nested_pays(const JoinInput *input, int j)
{
	const JoinInput *nested = gpurhh_nested_input(input->joins[j].nested);
	const double rows = input->probe.child->plan->plan_rows;

	return !needs_columns(input, j) ||
		rows * (1 + 10 * input->probe.n_strings) < nested->probe.child->plan->plan_rows;
}

/* Opens the query of a build side, or of its part.  False, with *why: that cannot be. */
bool
gpurhh_join_open_build(JoinInput *input, int j, ChannelArea *area, MemoryContext context, const char **why)
{
	const JoinStep *join = &input->joins[j];
	NestedJoins *nested = join->nested;
	const bool	reads_pages = gpurhh_channel_may_read_pages(area);
	const bool	pages = reads_pages && join->build.pages != NULL && !needs_columns(input, j);
	const bool	cached = pages && gpurhh_page_feed_may_cache(join->build.pages);
	rhh_map_spec spec = build_spec(input, j, area->block_bytes, pages, cached);

	if (nested != NULL)
	{
		gpurhh_nested_close(nested);
		/* a part is made of rows */
		if (reads_pages && input->parts.join != j && nested_pays(input, j))
			input->builds[j] = gpurhh_nested_open(nested, &spec, area, context);
		if (gpurhh_nested_is_on(nested))
			return true;
	}
	input->builds[j] = gpurhh_channel_open(area, &spec, NULL, NULL, NULL, pages,
										   join->build.pages == NULL, context, why);
	if (input->builds[j] != NULL && cached)
		gpurhh_channel_ask_for_cache(input->builds[j]);
	return input->builds[j] != NULL;
}

/*
 * Opens the queries of the build sides; the limits in the spec of the node's map have
 * been set.  They are closed with the context.  False, with *why: one could not be
 * opened.
 */
bool
gpurhh_join_open(JoinInput *input, ChannelArea *area, MemoryContext context,
				 const char **why)
{
	input->parts = (JoinParts){.join = -1};
	for (int j = 0; j < input->n_joins; j++)
	{
		if (!gpurhh_join_open_build(input, j, area, context, why))
		{
			gpurhh_join_close(input);
			return false;
		}
	}
	return true;
}

/*
 * Closes those queries that are open: the run does not need the build sides any more.  A
 * map that is probed stays until the map that probes it is gone.
 */
void
gpurhh_join_close(JoinInput *input)
{
	for (int j = 0; j < input->n_joins; j++)
	{
		if (input->builds[j] != NULL)
			gpurhh_channel_close(input->builds[j]);
		input->builds[j] = NULL;
		if (input->joins[j].nested != NULL)
			gpurhh_nested_close(input->joins[j].nested);
	}
	if (input->whole != NULL)
		gpurhh_channel_close(input->whole);
	input->whole = NULL;
}

/* Worker: takes part in the queries that the leader has opened. */
void
gpurhh_join_attach(JoinInput *input, const ChannelAddress *builds,
				   MemoryContext context)
{
	input->parts = (JoinParts){.join = -1};
	for (int j = 0; j < input->n_joins; j++)
		input->builds[j] = gpurhh_channel_join(&builds[j], false, context);
}

/*
 * Lays out the blocks of the probe side: columns first, then room for as many refused
 * rows of the output as there are rows, or as fit.
 */
static void
lay_out_probe(const JoinInput *input, Feed *feed, Size block_bytes,
			  uint32 *room_offset, uint32 *room_rows)
{
	const rhh_map_spec *map = &input->map_spec;
	const GpuColumn *columns = input->probe.columns;
	Size		row_bytes = 0;
	Size		output_bytes = 0;
	uint32		room;

	for (int c = 0; c < input->probe.n_columns; c++)
		row_bytes += gpurhh_encodings[columns[c].encoding].bytes;
	for (uint32 c = 0; c < map->n_columns; c++)
		output_bytes += map->column_bytes[c];
	*room_offset = TYPEALIGN_DOWN(64, block_bytes * row_bytes / (row_bytes + output_bytes));
	gpurhh_feed_init(feed, input->probe.n_columns, columns, *room_offset, gpurhh_batch_rows);
	for (room = feed->capacity_rows;
		 *room_offset + rhh_output_bytes(map, room) > block_bytes;)
		room -= room / 16 + 1;
	*room_rows = room;
}

/*
 * Before queries are opened: batches of the probe side are to have pages, if a device can make all columns
 * of these.  Returns whether they are.
 */
bool
gpurhh_join_want_pages(JoinInput *input, bool pages, Size block_bytes)
{
	Feed		feed;
	uint32		room_offset;
	uint32		room_rows;

	input->probe_by_pages = false;
	if (!pages)
		return false;
	lay_out_probe(input, &feed, block_bytes, &room_offset, &room_rows);
	for (int c = 0; c < input->probe.n_columns; c++)
		feed.columns[c].is_key = input->probe.is_key[c];
	input->probe_by_pages = gpurhh_page_feed_has_layouts(input->probe.pages, &feed);
	return input->probe_by_pages;
}

/* The most rows of the output that a device makes at a time, and the most that are fed. */
uint32
gpurhh_join_batch_rows(const JoinInput *input, Size block_bytes)
{
	Feed		layout;
	uint32		room_offset;
	uint32		room_rows;

	lay_out_probe(input, &layout, block_bytes, &room_offset, &room_rows);
	return Max(layout.capacity_rows, room_rows);
}

/* ---------- rows that no column can have ---------- */

/* A build side has such a row, or cannot go on. */
static void
spoil(SideReader *reader, const char *why)
{
	gpurhh_channel_spoil(reader->channel, why);
	reader->spoiled = true;
}

/* A hash of what a row has, whatever the bits of its header say of transactions. */
static uint64
hash_row(TupleTableSlot *slot)
{
	bool		own;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &own);
	const Size	header = offsetof(MinimalTupleData, t_bits);
	uint64		hash = hash_bytes_extended((unsigned char *) tuple + header,
										   tuple->t_len - header, 0);

	if (own)
		heap_free_minimal_tuple(tuple);
	return hash;
}

/* The row is not to be fed. */
static void
leave_row(SideReader *reader, TupleTableSlot *slot)
{
	JoinReader *node = reader->reader;

	if (!reader->probes || node->keeps)
	{
		spoil(reader, "a build side has values that no device takes");
		return;
	}
	if (rhh_last_unmatched(&node->input->join_spec) > 0)
	{
		strlcpy(node->why, "the probe side has values that no device takes", sizeof(node->why));
		node->gave_up = reader->spoiled = true;
		return;
	}
	node->left_rows++;
	node->left_hash += hash_row(slot);
	if (node->input->parts.probed)
		return;
	if (node->left_over == NULL)
		node->left_over = gpurhh_left_over_create(node->context);
	gpurhh_left_over_add(node->left_over, slot);
	node->counts->left_over++;
}

/* The feed calls this for a row of which a column cannot be computed. */
static void
leave_uncomputed_row(void *arg, TupleTableSlot *slot)
{
	leave_row(arg, slot);
}

/* And this for a row whose strings the dictionary does not take. */
static void
defer_row(void *arg, TupleTableSlot *slot, uint32 hash)
{
	leave_row(arg, slot);
}

/* And this for a row with a numeric that is not as its type declares. */
static bool
leave_odd_row(void *arg, Feed *feed, TupleTableSlot *slot)
{
	leave_row(arg, slot);
	return false;
}

/* ---------- batches ---------- */

/* A block of the pool; NULL: there is none. */
static char *
acquire_block(SideReader *reader)
{
	char	   *base;

	for (;;)
	{
		switch (gpurhh_channel_acquire(reader->channel, true, &base))
		{
			case CHANNEL_BLOCK:
				return base;
			case CHANNEL_RETURNED:
				reader->reader->take_returned(reader->reader->arg);
				continue;
			case CHANNEL_PAGES:
				gpurhh_page_batches_take(reader->batches);
				continue;
			case CHANNEL_LATE:
				return NULL;
		}
	}
}

/* Where the next rows go. */
static char *
next_block(SideReader *reader)
{
	JoinReader *node = reader->reader;
	Size		bytes = gpurhh_channel_block_bytes(reader->channel);
	char	   *base;

	if (reader->side->pages != NULL && !node->copies)
	{
		base = acquire_block(reader);
		if (base != NULL)
			return base;
		/* the probe side waits as long as it takes */
		spoil(reader, "no block of the pool became free");
	}
	if (reader->own_memory == NULL)
	{
		reader->own_memory = MemoryContextAlloc(node->context, bytes + 64);
		reader->own_block = (char *) TYPEALIGN(64, reader->own_memory);
	}
	return reader->own_block;
}

/* The session may sleep from here on: sees to it that others can go on meanwhile. */
void
gpurhh_join_settle(JoinReader *node)
{
	while (!gpurhh_channel_settle(node->channel))
		node->take_returned(node->arg);
}

/* Counts what is handed over of a side. */
static void
count_batch(SideReader *reader, const rhh_batch *batch)
{
	GpuNodeCounts *counts = reader->reader->counts;

	reader->n_rows += batch->n_rows;
	if (reader->probes)
	{
		reader->reader->n_given += batch->n_rows;
		counts->rows_fed += batch->n_rows;
		counts->bytes_fed += batch->used_bytes;
		counts->batches++;
	}
	else
	{
		counts->build_bytes[reader->join] += batch->used_bytes;
		counts->build_batches[reader->join]++;
	}
	if (!reader->probes || reader->reader->keeps)
		reader->spoiled |= gpurhh_channel_is_spoiled(reader->channel);
}

/* Gives the batch to the service. */
static void
hand_over(SideReader *reader)
{
	JoinReader *node = reader->reader;
	Feed	   *feed = &reader->feed;
	uint32		n_rows = feed->n_rows;
	bool		in_pool = feed->base != reader->own_block;
	rhh_batch	batch;

	if (reader->filter != NULL)
		gpurhh_key_filter_add(reader->filter, feed,
							  &reader->reader->input->joins[reader->join].filter_key);
	gpurhh_feed_finish(feed, &batch);
	if (n_rows == 0 || reader->spoiled)
	{
		if (in_pool)
			gpurhh_channel_drop_block(reader->channel);
		return;
	}
	if (reader->probes)
	{
		batch.refused_offset = reader->room_offset;
		batch.refused_rows = reader->room_rows;
	}
	if (!in_pool)
	{
		char	   *base = acquire_block(reader);

		if (base == NULL)
		{
			spoil(reader, "no block of the pool became free");
			return;
		}
		memcpy(base, reader->own_block, batch.used_bytes);
	}
	gpurhh_channel_submit(reader->channel, &batch);
	count_batch(reader, &batch);
	if (reader->probes && node->copies)
		gpurhh_join_settle(node);
}

/* ---------- sides ---------- */

/* Hands over the next full batch of a side whose rows are asked for; false: there is none. */
static bool
feed_rows(SideReader *reader)
{
	Feed	   *feed = &reader->feed;

	while (!reader->spoiled)
	{
		TupleTableSlot *slot = ExecProcNode(reader->side->child);

		if (TupIsNull(slot))
			return false;
		if (feed->base == NULL)
			gpurhh_feed_start(feed, next_block(reader));
		gpurhh_feed_slot(feed, slot);
		if (feed->n_rows == feed->capacity_rows)
		{
			hand_over(reader);
			return true;
		}
	}
	return false;
}

/* ---------- batches of pages (page_batches.h) ---------- */

static char *
acquire_for_pages(void *arg)
{
	return acquire_block(arg);
}

static char *
next_block_of_pages(void *arg)
{
	return next_block(arg);
}

static void
hand_over_pages(void *arg)
{
	hand_over(arg);
}

static void
count_pages(void *arg, const rhh_batch *batch)
{
	count_batch(arg, batch);
}

static void
recount_pages(void *arg, uint64 n_rows, uint64 n_wrong)
{
	SideReader *reader = arg;

	reader->n_rows -= n_rows + n_wrong;
	if (reader->probes)
	{
		reader->reader->n_given -= n_wrong;
		reader->reader->counts->rows_fed -= n_rows + n_wrong;
	}
}

static void
take_returned(void *arg)
{
	JoinReader *node = ((SideReader *) arg)->reader;

	node->take_returned(node->arg);
}

/* Prepares having the device read a side's pages; NULL: it does not. */
static PageBatches *
make_page_batches(SideReader *reader)
{
	const PageSide side = {
		.pages = reader->side->pages,
		.feed = &reader->feed,
		.channel = reader->channel,
		.room_offset = reader->room_offset,
		.room_rows = reader->room_rows,
		.counts = reader->probes ? &reader->reader->counts->pages :
			&reader->reader->counts->build_pages[reader->join],
		.spoiled = &reader->spoiled,
		.rows_limit = reader->probes && reader->reader->returns ? &reader->reader->most_rows : NULL,
		.arg = reader,
		.acquire_block = acquire_for_pages,
		.next_block = next_block_of_pages,
		.hand_over = hand_over_pages,
		.count = count_pages,
		.recount = recount_pages,
		.take_returned = reader->probes ? take_returned : NULL,
	};

	return gpurhh_page_batches_create(&side, reader->reader->context);
}

/* Hands over the next batch of a side; false: there is none. */
static bool
feed_batch(SideReader *reader)
{
	Feed	   *feed = &reader->feed;

	if (reader->side->pages == NULL)
		return feed_rows(reader);
	if (reader->batches != NULL && !reader->by_columns)
	{
		PagesGiven	given = gpurhh_page_batches_give(reader->batches);

		if (given != PAGES_AS_COLUMNS)
			return given == PAGES_GIVEN;
		reader->by_columns = true;
	}
	while (!reader->spoiled && gpurhh_page_feed_fill(reader->side->pages, feed))
	{
		if (feed->base != NULL)
		{
			hand_over(reader);
			return true;
		}
		gpurhh_feed_start(feed, next_block(reader));
	}
	return false;
}

static void
begin_side(SideReader *reader)
{
	JoinReader *node = reader->reader;
	Feed	   *feed = &reader->feed;

	feed->strings.dictionary = node->dictionary;
	feed->defer = defer_row;
	feed->defer_arg = reader;
	feed->odd_row = leave_odd_row;
	feed->odd_arg = reader;
	if (reader->side->computed != NIL)
		feed->leave_row = leave_uncomputed_row;
	feed->leave_arg = reader;
	for (int c = 0; c < reader->side->n_columns; c++)
		feed->columns[c].is_key = reader->side->is_key[c];
	if (reader->side->pages == NULL)
		return;
	gpurhh_page_feed_begin(reader->side->pages);
	/* a filter has all keys of a build side, or none */
	if (!node->copies && reader->filter == NULL)
		reader->batches = make_page_batches(reader);
}

/* Hands over what there is of the last batch. */
static void
end_side(SideReader *reader)
{
	JoinReader *node = reader->reader;

	if (reader->feed.base != NULL)
		hand_over(reader);
	if (reader->batches != NULL)
		gpurhh_page_batches_end(reader->batches);
	node->odd |= reader->feed.strings.odd;
	node->counts->pool_wait_ms += gpurhh_channel_pool_wait_ms(reader->channel);
	if (reader->own_memory != NULL)
		pfree(reader->own_memory);
	reader->own_memory = NULL;
}

/* gpurhh_join_read_build() where the rows, or their pages, are handed over here. */
static uint64
read_build_side(JoinReader *node, int j, ParallelTableScanDesc scan)
{
	JoinInput  *input = node->input;
	JoinStep   *join = &input->joins[j];
	SideReader *reader = MemoryContextAllocZero(node->context, sizeof(SideReader));
	bool		part;

	reader->reader = node;
	/* of a side that comes in parts it has all keys when the first part has been read */
	reader->filter = input->parts.n_passes == 0 ? node->filters[j] : NULL;
	reader->join = j;
	reader->side = &join->build;
	reader->channel = input->builds[j];
	gpurhh_feed_init(&reader->feed, join->build.n_columns, join->build.columns,
					 gpurhh_channel_block_bytes(reader->channel), gpurhh_batch_rows);
	if (scan != NULL)
		gpurhh_page_feed_share(join->build.pages, scan);
	part = node->begin_build != NULL && gpurhh_is_share_rows(join->build.child) &&
		gpurhh_share_rows_begin(join->build.child);
	begin_side(reader);
	while (feed_batch(reader))
		;
	end_side(reader);
	if (part)
		gpurhh_share_rows_end(join->build.child);
	if (scan != NULL)
		gpurhh_page_feed_share(join->build.pages, NULL);
	return reader->n_rows;
}

/*
 * Reads a build side, or a part of it.  scan: gives out its pages to all participants;
 * NULL: this one reads all of it, unless others take part in the plan that makes its rows.
 * Returns the number of rows that were fed; 0 where they do not come to the session.
 */
uint64
gpurhh_join_read_build(JoinReader *node, int j, ParallelTableScanDesc scan)
{
	JoinInput  *input = node->input;
	JoinStep   *join = &input->joins[j];
	PlanState  *hash = innerPlanState(join->node);
	uint64		n_rows = 0;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	/* what the join would do before it asks the Hash node for its table */
	if (hash->chgParam != NULL)
		ExecReScan(hash);
	join->started = true;
	if (gpurhh_nested_is_on(join->nested))
		gpurhh_nested_read(join->nested, node, input->builds[j]);
	else
		n_rows = read_build_side(node, j, scan);
	node->counts->build_ms[j] += milliseconds_since(start);
	return n_rows;
}

/*
 * How many rows the first batch of pages may have, of which about as many are expected to come out as a block has
 * room for: a LIMIT may need no more.
 */
static uint32
first_rows(const JoinInput *input, uint32 room_rows)
{
	const double fed = input->probe.child->plan->plan_rows;
	const double joined = input->joins[input->n_joins - 1].node->js.ps.plan->plan_rows;

	return Max(room_rows, Min(room_rows * fed / Max(joined, 1), UINT32_MAX));
}

static void
begin_probe(JoinReader *node)
{
	JoinInput  *input = node->input;
	SideReader *reader = MemoryContextAllocZero(node->context, sizeof(SideReader));

	node->probe = reader;
	reader->reader = node;
	reader->side = &input->probe;
	reader->channel = node->channel;
	reader->probes = true;
	node->copies |= input->probe.pages == NULL;
	lay_out_probe(input, &reader->feed, gpurhh_channel_block_bytes(reader->channel),
				  &reader->room_offset, &reader->room_rows);
	if (node->most_rows == 0)
		node->most_rows = first_rows(input, reader->room_rows);
	begin_side(reader);
	gpurhh_join_begin_tests(node);
}

/* Core is to read the build sides from the beginning. */
void
gpurhh_join_rewind_builds(JoinInput *input)
{
	for (int j = 0; j < input->n_joins; j++)
	{
		JoinStep   *join = &input->joins[j];

		if (join->started && gpurhh_nested_is_on(join->nested))
			gpurhh_nested_rewind(join->nested);
		if (join->started)
			ExecReScan(join->build.child);
		join->started = false;
	}
}

/* ---------- filters of keys ---------- */

/*
 * Has build side j a filter?  Not if batches of the probe side may have pages, whose rows are not tested; nor
 * if no session has its keys.
 * The one who opened the query has decided that for all participants.
 */
static bool
has_filter(const JoinReader *reader, int j)
{
	const bool	pages = reader->channel == NULL ? reader->input->probe_by_pages :
		gpurhh_channel_asked_for_pages(reader->channel);

	return reader->input->joins[j].filter_key.n > 0 &&
		!gpurhh_nested_is_on(reader->input->joins[j].nested) && !pages;
}

/* This participant adds keys of build side j to a filter. */
static void
make_filter(JoinReader *reader, int j)
{
	Size		bytes = gpurhh_join_filter_bytes(reader->input, j);

	if (!has_filter(reader, j))
		return;
	reader->filters[j] = MemoryContextAlloc(reader->context, bytes);
	gpurhh_join_init_filter(reader->input, j, reader->filters[j]);
}

/* It has added all that it has, or nothing. */
static void
use_filter(JoinReader *reader, int j)
{
	KeyFilter  *own = reader->filters[j];

	if (reader->share_filter == NULL || !has_filter(reader, j))
		return;
	reader->filters[j] = reader->share_filter(reader->arg, j, own);
	if (own != NULL && own != reader->filters[j])
		pfree(own);
}

/* ---------- build sides ---------- */

/*
 * Before anything else in a run: what ExecProcNode() would do first, as the plan is not asked
 * for a row.
 */
void
gpurhh_join_begin(JoinReader *reader)
{
	JoinInput  *input = reader->input;

	for (int j = input->n_joins - 1; j >= 0; j--)
	{
		PlanState  *node = &input->joins[j].node->js.ps;

		if (node->chgParam != NULL)
			ExecReScan(node);
	}
}

/*
 * Reads the build sides of the joins, or this participant's part of them, and says of each that
 * is complete then that it is.
 */
void
gpurhh_join_read_builds(JoinReader *reader)
{
	JoinInput  *input = reader->input;

	for (int j = 0; j < input->n_joins; j++)
	{
		ParallelTableScanDesc scan = NULL;

		if (reader->begin_build != NULL && !reader->begin_build(reader->arg, j, &scan))
		{
			use_filter(reader, j);
			continue;
		}
		make_filter(reader, j);
		(void) gpurhh_join_read_build(reader, j, scan);
		use_filter(reader, j);
		if (reader->end_build == NULL || reader->end_build(reader->arg, j))
			gpurhh_channel_end_input(input->builds[j]);
	}
}

/* ---------- the probe side ---------- */

/*
 * Does nothing come out, whatever the probe side has?  Core does not read that then, or not
 * more than a row; what it has may raise errors.  All build sides are finished.
 */
static bool
joins_nothing(const JoinInput *input)
{
	bool		nothing = false;

	for (int j = 0; j < input->n_joins && rhh_last_unmatched(&input->join_spec) == 0; j++)
	{
		uint8		kind = input->join_spec.joins[j].kind;
		rhh_map_stats build;
		char		device[GPURHH_DEVICE_NAME_LEN];
		char		why[GPURHH_MESSAGE_LEN];

		nothing |= (kind == RHH_JOIN_INNER || kind == RHH_JOIN_SEMI) &&
			gpurhh_channel_stats(input->builds[j], &build, device, why) &&
			build.rows == 0;
	}
	return nothing;
}

/*
 * Once the device does the joins: hands over the next batch of the probe side, or of this
 * participant's part of it.  Returns false if that was the last.  Then reader->left_over
 * has the rows that core has to join, which the caller does (gpurhh_left_over_next()) when there
 * are no further rounds.
 */
bool
gpurhh_join_probe(JoinReader *reader)
{
	bool		more;

	if (reader->probe == NULL)
	{
		begin_probe(reader);
		reader->probe->skipped = joins_nothing(reader->input);
		reader->probe->spoiled = reader->probe->skipped;
	}
	more = feed_batch(reader->probe);
	gpurhh_join_note_tests(reader, more);
	if (more)
		return true;
	end_side(reader->probe);
	return false;
}

/*
 * How many rows the next batches of pages may have: so many that the rows that come out of one fit a block, with
 * something to spare, by what came out until now.
 */
static void
limit_rows(JoinReader *reader)
{
	const double rows = reader->n_returned == 0 ? UINT32_MAX :
		0.75 * reader->probe->room_rows * reader->n_given / reader->n_returned;

	reader->most_rows = Max(Min(Min(rows, MORE_ROWS * (double) reader->most_rows), UINT32_MAX), 1);
}

/*
 * Waits until all that has been handed over is done, and has what came out taken.  Then this participant has no block,
 * and no page of a batch pinned, so the session may sleep.
 */
void
gpurhh_join_wait(JoinReader *reader)
{
	const SideReader *probe = reader->probe;

	if (probe->batches != NULL)
		gpurhh_page_batches_wait(probe->batches);
	while (gpurhh_channel_wait_returned(reader->channel))
		reader->take_returned(reader->arg);
	limit_rows(reader);
}

/*
 * Once all batches have been handed over: waits until they are done, and asks for the rows
 * without a match of the next join that returns them.  False: there is none.
 */
bool
gpurhh_join_unmatched(JoinReader *reader)
{
	const rhh_join_spec *spec = &reader->input->join_spec;
	const SideReader *probe = reader->probe;
	uint32		j = reader->unmatched;
	rhh_batch	batch = {0};
	char	   *base;

	while (j < spec->n_joins && !rhh_returns_unmatched(spec->joins[j].kind))
		j++;
	if (j == spec->n_joins)
		return false;
	while (gpurhh_channel_wait_returned(reader->channel))
		reader->take_returned(reader->arg);
	base = acquire_block(reader->probe);
	/* a query whose joins the device does waits for a block as long as it takes */
	if (base == NULL)
		elog(ERROR, "there is no block for rows without a match");
	batch.refused_offset = probe->room_offset;
	batch.refused_rows = probe->room_rows;
	batch.unmatched = reader->unmatched = j + 1;
	gpurhh_channel_submit(reader->channel, &batch);
	if (reader->copies)
		gpurhh_join_settle(reader);
	return true;
}

/*
 * How many rows of the probe side this participant has fed, or not because of filters, when it has
 * read it.  *skipped: it was not to be read.
 */
uint64
gpurhh_join_probed(const JoinReader *reader, bool *skipped)
{
	*skipped = reader->probe->skipped;
	return reader->probe->n_rows + reader->dropped_rows;
}

/* The probe side is not to be read any further in this round. */
void
gpurhh_join_stop_probe(JoinReader *reader)
{
	reader->probe->spoiled = true;
}

/* If this participant has read the probe side, it is to do so once more, from the beginning. */
void
gpurhh_join_rewind_probe(JoinReader *reader)
{
	if (reader->probe == NULL)
		return;
	ExecReScan(reader->input->probe.child);
	pfree(reader->probe);
	reader->probe = NULL;
}

/* Hands over a batch that gpurhh_channel_park() has returned. */
void
gpurhh_join_probe_again(JoinReader *reader, rhh_batch *batch)
{
	char	   *base = acquire_block(reader->probe);

	/* a query whose joins the device does waits for a block as long as it takes */
	Assert(base != NULL);
	memcpy(base, batch->base, batch->used_bytes);
	gpurhh_channel_submit(reader->channel, batch);
	pfree(batch->base);
	pfree(batch);
}

/* Adds what there is of a build side to what was there of it before. */
void
gpurhh_join_add_build(const JoinInput *input, int j, GpuJoinStats *stats)
{
	rhh_map_stats build;
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		why[GPURHH_MESSAGE_LEN];

	if (!gpurhh_channel_stats(input->builds[j], &build, device, why))
		return;
	stats->build_rows += build.rows;
	stats->keys += build.groups;
	stats->slots = Max(stats->slots, build.capacity_slots);
	stats->bytes = Max(stats->bytes, build.peak_bytes);
	stats->probe_sum += build.probe_buckets_sum;
	stats->probe_max = Max(stats->probe_max, build.probe_buckets_max);
	stats->upload_ns += build.upload_ns;
	stats->kernel_ns += build.kernel_ns;
}

/*
 * The node is rescanned.  Core does not know that the plans below the Hash nodes have been
 * read here.  And where it has read one itself, it may keep the Hash node's table and not
 * rescan the plan, which is read here the next time.
 */
void
gpurhh_join_rescan(JoinInput *input)
{
	for (int j = 0; j < input->n_joins; j++)
	{
		JoinStep   *join = &input->joins[j];

		if (join->nested != NULL)
			gpurhh_join_rescan(gpurhh_nested_input(join->nested));
		/* with changed parameters, the child is rescanned by its first use */
		if (join->build.child->chgParam == NULL)
			ExecReScan(join->build.child);
		join->started = false;
	}
}

/* For EXPLAIN: what the device did; map has the statistics of the node's map. */
void
gpurhh_join_note(const JoinInput *input, const rhh_map_stats *map, GpuJoinStats *stats)
{
	for (int j = 0; j < input->n_joins; j++)
	{
		stats[j] = (GpuJoinStats){.passes = 1};
		if (j == input->parts.join)
		{
			stats[j] = input->parts.sums;
			stats[j].passes = input->parts.n_passes + (input->parts.joining ? 1 : 0);
		}
		if (j != input->parts.join || input->parts.joining)
			gpurhh_join_add_build(input, j, &stats[j]);
		stats[j].rows = map->joined_rows[j];
		if (gpurhh_nested_is_on(input->joins[j].nested))
			gpurhh_nested_note(input->joins[j].nested, input->builds[j]);
	}
}
