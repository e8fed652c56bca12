/*
 * rhh_cuda.cu
 *		The CUDA device: the state machine behind poll(), and the calls of
 *		rhh_device.h.
 *
 * Only this file of the device is compiled; it includes the others:
 *
 *		rhh_cuda_device.cuh		structs, errors, steps in streams
 *		rhh_cuda_spare.cuh		memory that was given back
 *		rhh_cuda_cache.cuh		copies of pages
 *		rhh_cuda_memory.cuh		lanes and bodies
 *		rhh_cuda_pages.cuh		reading pages
 *		rhh_cuda_keep.cuh		keeping rows, the build side of joins
 *		rhh_cuda_join.cuh		making rows by joins
 *		rhh_cuda_batch.cuh		how a batch is aggregated
 *		rhh_cuda_grow.cuh		growing
 *		rhh_cuda_finish.cuh		finishing and extracting
 *		rhh_cuda_feed.cuh		rows made of another map's groups
 *		rhh_cuda_open.cuh		finding, opening and closing devices
 *
 * rhh_groups.cuh and rhh_kernels.cuh have the groups, rhh_buckets.cuh has the table;
 * rhh_kept.cuh has rows that are kept, and rhh_joins.cuh and rhh_probe.cuh the joins with
 * them.
 *
 * Lifetimes.  A device has maps and kept lanes.  A lane is what a map needs whatever
 * its size: streams, events, pinned snapshots, and one allocation (the "fixed"
 * memory: upload buffers, bitmaps of refused rows, counters, lists of orphans).  When
 * a map ends, its lane is kept for the next map.  What depends on the number of groups
 * (slots, states, keys) is one further allocation, the "body" of the map, which is
 * replaced as a whole when the map grows.  A map that is fed another map's groups may
 * have a third allocation, its "feed memory"; one with joins has memory for pieces of
 * their output.  A map that keeps its rows has no body, but segments of rows, and in the
 * end an index.  The limits on memory apply to all of these, and while a map grows to its
 * old and its new body together.
 *
 * A lane has these streams:
 *
 *		up		uploads of batches; reading pages, or copying them to the cache
 *		make	making columns of pages that have just been copied
 *		run		kernels, growth, results: everything that touches the map
 *		note	waits for the end of a step in run and then wakes the caller, so
 *				that run need not wait for a callback
 *
 * Each step in run ends with a copy of the map's counters to a pinned snapshot, and
 * with an event.  poll() asks the events and never waits.
 *
 * The states of a batch in flight:
 *
 *		FREE -> QUEUED (uploading, kernel not launched) -> RUNNING -> READY
 *				  ^ |							  ^			|
 *			LOOKING-+							  +- REFUSED <--+--> COPYBACK -> READY
 *
 *	A batch that has pages is READING before it is QUEUED: columns are made of these.
 *	LOOKING: the number of its groups is estimated, to choose how to aggregate it.
 *	REFUSED: the map has refused some rows and will grow; then they run again.
 *	COPYBACK: the map cannot grow, and the bitmap of refused rows goes to the caller.
 *	READY: the event for the caller is due.
 *
 * With joins RUNNING makes a piece of the batch's output and takes it to the map; then the
 * batch is QUEUED again for the next piece.
 *
 * The states of a map:
 *
 *		BUILD -> DRAIN -> GROWING -> BUILD			(any number of times)
 *		BUILD -> FINISHING -> FINISHED <-> EXTRACTING
 *
 *	DRAIN: the map is to grow as soon as no kernel of a batch is in flight.  Batches
 *	that are submitted meanwhile are uploaded and stay QUEUED.  In this state there is
 *	always a batch that is REFUSED or QUEUED, so the caller has an event to wait for.
 *
 * An error of a CUDA call, other than that there is no memory, breaks the device: every
 * later call reports the first error, and close() frees what it can.
 *
 * The code uses no C++ runtime, so that a C linker can link it.  It has to be compiled
 * with -fno-exceptions -fno-threadsafe-statics (nvcc's launch stubs have statics).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef RHH_WITH_CUDA
#define RHH_WITH_CUDA			/* declares rhh_cuda_ops */
#endif
#include "rhh_check.h"
#include "rhh_device.h"
#include "rhh_keys.h"
#include "cuda/rhh_cuda_cache.cuh"
#include "cuda/rhh_cuda_device.cuh"
#include "cuda/rhh_cuda_spare.cuh"
#include "cuda/rhh_cuda_memory.cuh"
#include "cuda/rhh_cuda_pages.cuh"
#include "cuda/rhh_cuda_keep.cuh"
#include "cuda/rhh_cuda_join.cuh"
#include "cuda/rhh_cuda_batch.cuh"
#include "cuda/rhh_cuda_grow.cuh"
#include "cuda/rhh_cuda_finish.cuh"
#include "cuda/rhh_cuda_feed.cuh"
#include "cuda/rhh_cuda_open.cuh"

/* ---------- the state machine ---------- */

/* The kernel or the copy of a batch has ended.  False: the device is broken. */
static bool
rhh_batch_ended(rhh_map *t, int i)
{
	rhh_in_flight *f = &t->flights[i];
	const rhh_control *snapshot = &t->lane->snapshot[i];
	uint32_t	n_refused;		/* by the map; a program's bad rows were not given to it */

	if (f->state == BATCH_COPYBACK)
	{
		if (!t->cancelled)
			return rhh_rows_done(t, i, f->n_refused);
		rhh_resolve(t, i, RHH_CANCELLED, 0);
		return true;
	}
	rhh_add_time(t, t->lane->batch[i].start, t->lane->batch[i].stop, &t->stats.kernel_ns);
	if (!f->upload_counted)
		rhh_add_time(t, t->lane->upload[i], t->lane->uploaded[i], &t->stats.upload_ns);
	f->upload_counted = true;	/* a replay has no upload */
	rhh_see(t, snapshot, f->launch);
	if (t->dev->broken)
		return false;
	if (f->state == BATCH_LOOKING && !t->cancelled)
		return rhh_looked(t, i, snapshot);
	n_refused = snapshot->refused[i];
	f->n_refused = n_refused + snapshot->join[i].n_bad;
	if (t->cancelled)
	{
		rhh_resolve(t, i, RHH_CANCELLED, 0);
		return true;
	}
	if (f->n_refused == 0)
		return rhh_rows_done(t, i, 0);
	if (n_refused > 0 && t->kept == NULL && !f->refuse_all &&
		(t->mode == MAP_DRAIN || (rhh_may_grow(t) && rhh_growth_helps(t))))
	{
		f->state = BATCH_REFUSED;
		t->mode = MAP_DRAIN;
		return true;
	}
	return rhh_hand_back(t, i);
}

/* Refuses all rows of a batch without looking at them. */
static bool
rhh_refuse_batch(rhh_map *t, int i)
{
	uint8_t    *refused = t->lane->refused + (uint64_t) i * t->lane->refused_bytes;
	rhh_in_flight *f = &t->flights[i];

	f->n_refused = f->batch.n_rows;
	/* Bit by bit in the last byte: the next batch's bitmap may follow. */
	return RHH_CUDA(t->dev, cudaMemsetAsync, refused, 0xFF, f->n_refused / 8, t->lane->run) &&
		(f->n_refused % 8 == 0 ||
		 RHH_CUDA(t->dev, cudaMemsetAsync, refused + f->n_refused / 8,
				  (1 << f->n_refused % 8) - 1, 1, t->lane->run)) &&
		rhh_hand_back(t, i);
}

/*
 * The rows of a batch are known, and will be on the device when lane->uploaded is reached: starts
 * the batch, if the map is not about to grow.  False: the device is broken.
 */
static bool
rhh_begin_batch(rhh_map *t, int i)
{
	rhh_in_flight *f = &t->flights[i];
	const rhh_batch *batch = &f->batch;

	if (t->joins != NULL)
	{
		rhh_begin_joins(t, f);
		t->joins->unmatched = batch->unmatched;
		if (rhh_is_beginning(&batch->from) && batch->unmatched == 0)
			t->stats.probe_rows += batch->n_rows;
	}
	else
	{
		/* The two halves of a SUM_I128 are exact for up to so many rows. */
		if (t->has_i128 && t->rows_submitted + batch->n_rows > (uint64_t) 1 << 31)
			return RHH_CUDA(t->dev, cudaStreamWaitEvent, t->lane->run, t->lane->uploaded[i], 0) &&
				rhh_refuse_batch(t, i);
		t->rows_submitted += batch->n_rows;
	}
	f->state = BATCH_QUEUED;
	return t->mode != MAP_BUILD || rhh_start_batch(t, i);
}

/* The pages of a batch have been read.  False: the device is broken. */
static bool
rhh_batch_read(rhh_map *t, int i)
{
	rhh_in_flight *f = &t->flights[i];
	bool		again;

	if (!rhh_pages_read(t, i, &again))
		return false;
	if (again)
		return true;
	if (f->batch.n_rows > 0)
		return rhh_begin_batch(t, i);
	rhh_resolve(t, i, RHH_OK, 0);
	return true;
}

/* Takes a map as far as it gets without waiting.  False: the device is broken. */
static bool
rhh_advance(rhh_map *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	bool		running = false;

	if (t->mode == MAP_GROWING || t->mode == MAP_FINISHING ||
		t->mode == MAP_EXTRACTING)
	{
		if (!rhh_reached(dev, lane->step.done))
			return !dev->broken;
		if (t->mode == MAP_FINISHING && t->kept != NULL)
			return rhh_indexed(t);
		else if (t->mode == MAP_FINISHING)
			rhh_finished(t);
		else if (t->mode == MAP_EXTRACTING)
			rhh_extracted(t);
		else if (!t->cancelled)
		{
			if (!rhh_grown(t))
				return false;
		}
		else
		{
			rhh_body_free(t, &t->grown);
			t->mode = MAP_BUILD;
		}
	}

	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
	{
		rhh_in_flight *f = &t->flights[i];

		if ((f->state == BATCH_RUNNING || f->state == BATCH_LOOKING ||
			 f->state == BATCH_COPYBACK) &&
			rhh_reached(dev, lane->batch[i].done) && !rhh_batch_ended(t, i))
			return false;
		if (f->state == BATCH_READING && !t->cancelled &&
			rhh_reached(dev, lane->uploaded[i]) && !rhh_batch_read(t, i))
			return false;
		if (t->cancelled && t->mode != MAP_GROWING &&
			(f->state == BATCH_REFUSED ||
			 ((f->state == BATCH_QUEUED || f->state == BATCH_READING) &&
			  rhh_reached(dev, lane->uploaded[i]))))
			rhh_resolve(t, i, RHH_CANCELLED, 0);
		if (dev->broken)
			return false;
		running = running || f->state == BATCH_RUNNING;
	}

	if (t->mode == MAP_DRAIN && !running)
	{
		if (t->cancelled)
			t->mode = MAP_BUILD;
		else
			return rhh_grow(t);
	}
	return true;
}

/* Gives the events that are due, as far as there is room.  True if some are left. */
static bool
rhh_collect(rhh_map *t, rhh_event *events, uint32_t cap, uint32_t *n)
{
	rhh_event	ev;

	memset(&ev, 0, sizeof(ev));
	ev.map = t;
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
	{
		rhh_in_flight *f = &t->flights[i];

		if (f->state != BATCH_READY)
			continue;
		if (*n == cap)
			return true;
		ev.kind = RHH_EVENT_BATCH;
		ev.status = f->status;
		ev.tag = f->tag;
		ev.n_refused = f->n_refused;
		ev.n_bad_pages = f->n_bad_pages;
		ev.n_rows = f->batch.n_rows;
		ev.n_dropped = f->n_dropped;
		t->stats.bad_pages += f->n_bad_pages;
		ev.more = f->more;
		ev.next = f->at;
		events[(*n)++] = ev;
		f->state = BATCH_FREE;
		if (f->batch.n_pages > 0 && !rhh_batch_is_given(t, &f->batch, f->more))
			rhh_break(t->dev, "out of memory");
		if (f->source != NULL)
			t->feeding = false;
	}
	memset(&ev, 0, sizeof(ev));
	ev.map = t;
	ev.status = t->cancelled ? RHH_CANCELLED : RHH_OK;
	if (t->finish_ready)
	{
		if (*n == cap)
			return true;
		ev.kind = RHH_EVENT_FINISH;
		events[(*n)++] = ev;
		if (!t->cancelled)
			events[*n - 1].status = t->finish_status;
		t->finish_ready = false;
	}
	if (t->extract_ready)
	{
		if (*n == cap)
			return true;
		ev.kind = RHH_EVENT_EXTRACT;
		ev.tag = t->extract_tag;
		events[(*n)++] = ev;
		t->extract_ready = false;
	}
	return false;
}

static rhh_status
rhh_cuda_poll(rhh_device *dev, rhh_event *events, uint32_t cap, uint32_t *n,
			  rhh_error *err)
{
	uint64_t	count;
	bool		more = false;

	*n = 0;
	/* Reset before looking at the maps: what ends after this wakes the caller again. */
	while (read(dev->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	for (rhh_map *t = dev->maps; t != NULL; t = t->next)
		if (!rhh_advance(t))
			return rhh_broken(dev, err);
	for (rhh_map *t = dev->maps; t != NULL; t = t->next)
		more = rhh_collect(t, events, cap, n) || more;
	if (more)
		rhh_wake_fd(dev->event_fd);
	return RHH_OK;
}

/* ---------- a map ---------- */

static uint8_t
rhh_init_of(uint64_t start)
{
	return start == 0					 ? RHH_INIT_ZERO :
		start == UINT64_MAX ? RHH_INIT_ONES :
		start == (uint64_t) INT64_MAX ? RHH_INIT_MOST : RHH_INIT_LEAST;
}

static void
rhh_make_grouping(rhh_grouping *grouping, const rhh_map_spec *spec)
{
	uint32_t	word = 0;

	memset(grouping, 0, sizeof(*grouping));
	grouping->n_columns = (uint8_t) spec->n_columns;
	memcpy(grouping->column_bytes, spec->column_bytes, sizeof(grouping->column_bytes));
	rhh_key_plan_init(&grouping->plan, spec);
	grouping->n_states = (uint8_t) spec->n_states;
	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		rhh_grouping_state *out = &grouping->states[s];

		out->op = st->op;
		out->arg = st->arg_column;
		out->filter = st->filter_column;
		out->bytes = st->arg_column >= 0 ? spec->column_bytes[st->arg_column] : 0;
		out->word = (uint8_t) word;
		out->n_words = (uint8_t) rhh_state_words(spec, s);
		out->max_word = RHH_NO_WORD;
		grouping->init[word] = rhh_init_of(rhh_op_start(st->op));
		word += out->n_words;
	}
	grouping->n_state_words = (uint8_t) word;
	grouping->n_result_words = (uint16_t) rhh_result_words(spec);
	if (grouping->plan.form == RHH_KEY_WIDE)
		for (uint32_t k = 0; k < spec->n_keys; k++)
			for (uint32_t w = 0; w < rhh_key_words(spec, k); w++)
				grouping->word_key[grouping->plan.shift[k] + w] = (uint8_t) k;
}

/* Queues making the first body empty. */
static bool
rhh_empty_body(rhh_map *t)
{
	t->stats.capacity_slots = (uint64_t) rhh_slots_of(t, &t->body);
	return RHH_CUDA(t->dev, cudaMemsetAsync, t->body.memory, 0xFF,
					(uint64_t) t->body.n_buckets * RHH_LINE_BYTES, t->lane->run) &&
		rhh_fill(t, &t->body, 0);
}

static rhh_status
rhh_cuda_map_create(rhh_device *dev, const rhh_map_spec *spec, rhh_map **out,
					rhh_error *err)
{
	rhh_map    *t;
	rhh_lane   *lane;
	rhh_control start;

	*out = NULL;
	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	if (rhh_check_spec(spec, err) != RHH_OK)
		return err->status;
	t = (rhh_map *) calloc(1, sizeof(rhh_map));
	if (t == NULL)
		return rhh_fail(err, RHH_NO_MEMORY, "out of memory");
	t->dev = dev;
	t->spec = *spec;
	t->mode = MAP_BUILD;
	rhh_make_grouping(&t->grouping, spec);
	for (uint32_t s = 0; s < spec->n_states; s++)
		t->has_i128 = t->has_i128 || spec->states[s].op == RHH_SUM_I128;
	t->zero_states = true;
	for (uint32_t w = 0; w < t->grouping.n_state_words; w++)
		t->zero_states = t->zero_states && t->grouping.init[w] == RHH_INIT_ZERO;
	if (t->grouping.plan.form == RHH_KEY_WIDE ||
		(t->grouping.plan.bits > 32 && !dev->slot16))
		t->variant = VARIANT_8_VERIFY;
	else
		t->variant = t->grouping.plan.bits > 32 ? VARIANT_16 : VARIANT_8;
	t->slot_bytes = t->variant == VARIANT_16 ? 16 : 8;
	t->slots_per_bucket = RHH_LINE_BYTES / t->slot_bytes;

	/* A kept lane, or a new one. */
	if (dev->lanes != NULL)
	{
		lane = dev->lanes;
		dev->lanes = lane->next;
		lane->next = NULL;
		dev->n_lanes--;
	}
	else
		lane = rhh_lane_make(dev);
	t->lane = lane;
	if (lane == NULL || !rhh_lane_fit(dev, lane, spec) ||
		!((spec->flags & RHH_KEEP_ROWS) != 0 ? rhh_keep_rows(t) : rhh_first_body(t)))
	{
		rhh_map_free(t);
		if (dev->broken)
			return rhh_broken(dev, err);
		return rhh_fail(err, RHH_NO_MEMORY,
						"not even the smallest hash table fits the device memory allowed");
	}

	/* In the order of the stream, before everything else. */
	memset(&start, 0, sizeof(start));
	start.n_numbers = t->grouping.plan.form == RHH_KEY_SINGLE ? 1 : 0;
	lane->snapshot[RHH_CUDA_IN_FLIGHT] = start;
	if (!RHH_CUDA(dev, cudaMemcpyAsync, lane->ctl, &lane->snapshot[RHH_CUDA_IN_FLIGHT],
				  sizeof(start), cudaMemcpyHostToDevice, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, lane->reserves, 0,
				  (uint64_t) dev->max_tiles * sizeof(rhh_reserve), lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, lane->sketch, 0,
				  RHH_SKETCH_REGISTERS * sizeof(uint32_t), lane->run) ||
		(spec->max_page_bytes > 0 &&
		 !RHH_CUDA(dev, cudaMemsetAsync, lane->page_counts, 0,
				   RHH_CUDA_IN_FLIGHT * sizeof(rhh_page_counts), lane->up)) ||
		(t->kept == NULL && !rhh_empty_body(t)))
	{
		rhh_map_free(t);
		return rhh_broken(dev, err);
	}
	t->next = dev->maps;
	dev->maps = t;
	*out = t;
	return RHH_OK;
}

static bool
rhh_idle(const rhh_map *t)
{
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state != BATCH_FREE)
			return false;
	return true;
}

/* What rhh_check.h asks for. */
static rhh_map_state
rhh_state_of(const rhh_map *t)
{
	rhh_map_state state;

	state.spec = &t->spec;
	state.device = t->dev;
	state.n_pages = t->dev->n_pages;
	state.cancelled = t->cancelled;
	state.in_flight = !rhh_idle(t);
	state.finishing = t->mode >= MAP_FINISHING;
	state.finished = t->mode >= MAP_FINISHED && !t->finish_ready && t->finish_status == RHH_OK;
	state.extracting = t->mode == MAP_EXTRACTING || t->extract_ready;
	state.fed = t->fed;
	state.had_joins = t->had_joins;
	state.joins = t->joins != NULL ? &t->joins->spec : NULL;
	state.unmatched = t->joins != NULL ? t->joins->unmatched : 0;
	state.n_groups = t->n_main;
	state.n_orphans = t->n_orphans;
	return state;
}

/*
 * Makes memory for pieces of the joins' output, and if the map has left none, makes the map
 * smaller, if that is empty.
 */
static rhh_status
rhh_cuda_map_join(rhh_map *t, const rhh_join_spec *spec, rhh_error *err)
{
	rhh_device *dev = t->dev;
	const rhh_map_state state = rhh_state_of(t);
	rhh_map_state builds[RHH_MAX_JOINS];
	bool		made;

	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	/* with too many joins the check does not look at their build sides */
	for (uint32_t j = 0; j < spec->n_joins && spec->n_joins <= RHH_MAX_JOINS; j++)
		builds[j] = rhh_state_of(spec->joins[j].build);
	if (rhh_check_join(&state, spec, builds, err) != RHH_OK)
		return err->status;
	/* what was queued for the joins before uses their memory */
	if (t->joins != NULL && !RHH_CUDA(dev, cudaStreamSynchronize, t->lane->run))
		return rhh_broken(dev, err);
	rhh_joins_free(t);
	t->had_joins = true;
	if (rhh_joins_make(t, spec))
		return RHH_OK;
	/* the memory of the joins before was as much; and a map that keeps rows has none to give */
	if ((t->fed || t->kept != NULL) && !dev->broken)
		return rhh_fail(err, RHH_NO_MEMORY, "no device memory for what comes out of joins");
	if (dev->broken || !RHH_CUDA(dev, cudaStreamSynchronize, t->lane->run))
		return rhh_broken(dev, err);
	rhh_body_free(t, &t->body);
	made = rhh_joins_make(t, spec);
	if (!dev->broken && !rhh_first_body(t))
	{
		rhh_joins_free(t);
		made = false;
		if (!dev->broken && !rhh_first_body(t))
			rhh_break(dev, "memory that was given back could not be had again");
	}
	if (dev->broken || !rhh_empty_body(t))
		return rhh_broken(dev, err);
	return made ? RHH_OK : rhh_fail(err, RHH_NO_MEMORY, "no device memory for what comes out of joins");
}

/* A free place for a batch; RHH_CUDA_IN_FLIGHT: there is none. */
static int
rhh_free_flight(const rhh_map *t)
{
	int			i = 0;

	while (i < RHH_CUDA_IN_FLIGHT && t->flights[i].state != BATCH_FREE)
		i++;
	return i;
}

/* Does a batch come again only to be given refused rows? */
static bool
rhh_comes_for_spill(const rhh_map *t, const rhh_batch *batch)
{
	return t->joins != NULL && rhh_may_spill(t, batch) && batch->from.at[RHH_MAX_JOINS] != 0 &&
		(rhh_open_spill(t->joins) != NULL || (batch->from.at[RHH_MAX_JOINS] & RHH_AT_DONE) != 0);
}

/* Gives them to it, if they are still there. */
static void
rhh_give_spill(rhh_map *t, int i)
{
	rhh_in_flight *f = &t->flights[i];
	rhh_spill  *spill = rhh_open_spill(t->joins);

	f->piece_rows = rhh_piece_rows(t, &f->batch);
	f->at = f->batch.from;
	f->n_returned = 0;
	if (spill != NULL)
		rhh_drain(t, i, spill);
	f->more = rhh_next_position(t, i, (f->batch.from.at[RHH_MAX_JOINS] & RHH_AT_DONE) != 0);
	rhh_resolve(t, i, RHH_OK, f->n_returned);
	rhh_wake_fd(t->dev->event_fd);
}

/*
 * Queues a batch in a place that is free: uploads it, or has its pages read, unless it is on the
 * device already.  Rows that fail are marked in refused_to.
 */
static rhh_status
rhh_queue_batch(rhh_map *t, int i, const rhh_batch *batch, uint8_t *refused_to, rhh_map *source,
				uint64_t tag, rhh_error *err)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	rhh_page_plan plan;

	/* fed rows are there when their kernel has ended: until then their source is read */
	cudaStream_t from = source != NULL ? lane->run : lane->up;

	f->batch = *batch;
	f->refused_to = refused_to;
	f->source = source;
	f->tag = tag;
	f->n_refused = 0;
	f->n_bad_pages = 0;
	f->n_dropped = 0;
	f->recounted = f->told = !rhh_is_beginning(&batch->from);
	f->more = false;
	f->spill = NULL;
	f->method = METHOD_UNKNOWN;
	f->looked_at_all = false;
	f->upload_counted = batch->n_pages > 0;
	t->fed = true;
	f->kept = batch->n_pages > 0 && rhh_use_slabs(dev, batch, 1);
	if (rhh_comes_for_spill(t, batch))
	{
		rhh_give_spill(t, i);
		return RHH_OK;
	}
	if (batch->n_pages > 0)
	{
		if (rhh_plan_pages(t, batch, &plan) &&
			(batch->cached || rhh_register_slices(dev, batch->first_page, batch->end_page)))
			return rhh_launch_pages(t, i, plan) ? RHH_OK : rhh_broken(dev, err);
		rhh_give_up_pages(f);
		rhh_resolve(t, i, RHH_OK, 0);
		rhh_wake_fd(dev->event_fd);
		return RHH_OK;
	}
	if (!RHH_CUDA(dev, cudaEventRecord, lane->upload[i], from) ||
		(!batch->on_device &&
		 !RHH_CUDA(dev, cudaMemcpyAsync, lane->staging + (uint64_t) i * lane->staging_bytes,
				   batch->base, batch->used_bytes, cudaMemcpyHostToDevice, lane->up)) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->uploaded[i], from))
		return rhh_broken(dev, err);
	if (!batch->on_device)
		t->stats.uploaded_bytes += batch->used_bytes;
	return rhh_begin_batch(t, i) && (t->mode != MAP_DRAIN || rhh_advance(t)) ? RHH_OK
		: rhh_broken(dev, err);
}

/* A batch of rows of a build side without a match, of which there is no row to be looked at. */
static rhh_status
rhh_queue_nothing(rhh_map *t, int i, const rhh_batch *batch, uint64_t tag)
{
	t->flights[i].batch = *batch;
	t->flights[i].source = NULL;
	t->flights[i].tag = tag;
	t->flights[i].more = false;
	t->fed = true;
	t->joins->unmatched = batch->unmatched;
	rhh_resolve(t, i, RHH_OK, 0);
	rhh_wake_fd(t->dev->event_fd);
	return RHH_OK;
}

static rhh_status
rhh_cuda_map_submit(rhh_map *t, const rhh_batch *given, uint64_t tag, rhh_error *err)
{
	const rhh_map_state state = rhh_state_of(t);
	rhh_batch	copy = *given;
	rhh_batch  *batch = &copy;
	int			i;

	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (rhh_check_submit(&state, batch, err) != RHH_OK)
		return err->status;
	if (t->joins != NULL && batch->unmatched > 0)
		batch->n_rows = t->joins->plan.joins[batch->unmatched - 1].build.n_rows;
	if (t->joins != NULL && batch->from.at[0] >= batch->n_rows && batch->n_rows > 0 &&
		!rhh_comes_for_spill(t, batch))
		return rhh_fail(err, RHH_INVALID, "the batch has no such position");
	i = rhh_free_flight(t);
	/* a piece of fed rows may be where batches are uploaded */
	if (i == RHH_CUDA_IN_FLIGHT || (t->feeding && t->feed_memory == NULL))
		return rhh_fail(err, RHH_BUSY, "enough batches are in flight");
	if (batch->n_rows == 0)
		return rhh_queue_nothing(t, i, batch, tag);
	return rhh_queue_batch(t, i, batch, batch->base + batch->refused_offset, NULL, tag, err);
}

static rhh_status
rhh_cuda_map_feed(rhh_map *t, rhh_feed *feed, uint64_t tag, rhh_error *err)
{
	const rhh_map_state state = rhh_state_of(t);
	const rhh_map_state source = rhh_state_of(feed->source);
	uint32_t	n_groups;
	rhh_batch	batch;
	int			i;

	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (rhh_check_feed(&state, &source, feed, err) != RHH_OK)
		return err->status;
	if (feed->n_groups == 0)
		return RHH_OK;
	n_groups = ::min(feed->n_groups, RHH_CUDA_FEED_GROUPS);
	feed->n_groups = 0;
	i = rhh_free_flight(t);
	if (i == RHH_CUDA_IN_FLIGHT || t->feeding)
		return rhh_fail(err, RHH_BUSY, "another piece is in flight");
	if (t->feed_memory == NULL && !rhh_feed_alloc(t, feed, n_groups))
	{
		if (t->dev->broken)
			return rhh_broken(t->dev, err);
		if (state.in_flight)
			return rhh_fail(err, RHH_BUSY, "batches are in flight");
	}
	if (!rhh_make_rows(t, feed, n_groups, &batch))
		return rhh_broken(t->dev, err);
	t->feeding = true;
	return rhh_queue_batch(t, i, &batch, feed->refused, feed->source, tag, err);
}

static rhh_status
rhh_cuda_map_filter(rhh_map *t, const rhh_group_condition *conditions, uint32_t n, rhh_error *err)
{
	const rhh_map_state state = rhh_state_of(t);

	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (rhh_check_filter(&state, conditions, n, err) != RHH_OK)
		return err->status;
	t->filter.n = n;
	if (n > 0)
		memcpy(t->filter.conditions, conditions, n * sizeof(rhh_group_condition));
	return RHH_OK;
}

static rhh_status
rhh_cuda_map_finish(rhh_map *t, rhh_error *err)
{
	const rhh_map_state state = rhh_state_of(t);

	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (rhh_check_finish(&state, err) != RHH_OK)
		return err->status;
	if (!(t->kept != NULL ? rhh_start_index(t) : rhh_start_finish(t)))
		return rhh_broken(t->dev, err);
	/* an empty map is finished already */
	if (t->finish_ready)
		rhh_wake_fd(t->dev->event_fd);
	return RHH_OK;
}

static rhh_status
rhh_cuda_map_extract(rhh_map *t, rhh_result *result, uint64_t tag, rhh_error *err)
{
	const rhh_map_state state = rhh_state_of(t);

	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (rhh_check_extract(&state, result, err) != RHH_OK)
		return err->status;
	t->result = result;
	t->extract_tag = tag;
	if (!rhh_start_extract(t))
		return rhh_broken(t->dev, err);
	return RHH_OK;
}

static rhh_status
rhh_cuda_map_seek(rhh_map *t, uint64_t group, rhh_error *err)
{
	const rhh_map_state state = rhh_state_of(t);

	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (rhh_check_seek(&state, group, err) != RHH_OK)
		return err->status;
	t->n_main_done = group;
	return RHH_OK;
}

static void
rhh_cuda_map_stats(rhh_map *t, rhh_map_stats *stats)
{
	*stats = t->stats;
}

static void
rhh_cuda_map_cancel(rhh_map *t)
{
	/* A kernel that runs ends soon, and poll() then does the rest. */
	t->cancelled = true;
	rhh_wake_fd(t->dev->event_fd);

	/* Batches that are only being uploaded: nothing else would wake the caller. */
	if (rhh_enter(t->dev))
		for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
			if (t->flights[i].state == BATCH_QUEUED &&
				!rhh_wake_after(t, t->lane->uploaded[i]))
				break;
}

static void
rhh_cuda_map_destroy(rhh_map *t)
{
	rhh_map_free(t);
}

const rhh_device_ops rhh_cuda_ops = {
	RHH_KIND_CUDA,
	rhh_cuda_enumerate,
	rhh_cuda_open,
	rhh_cuda_close,
	rhh_cuda_info,
	rhh_cuda_register_pool,
	rhh_cuda_register_pages,
	rhh_cuda_reads_pages,
	rhh_cuda_cache_slab,
	rhh_cuda_lost_slab,
	rhh_cuda_event_fd,
	rhh_cuda_poll,
	rhh_cuda_map_create,
	rhh_cuda_map_join,
	rhh_cuda_map_submit,
	rhh_cuda_map_filter,
	rhh_cuda_map_finish,
	rhh_cuda_map_extract,
	rhh_cuda_map_feed,
	rhh_cuda_map_seek,
	rhh_cuda_map_stats,
	rhh_cuda_map_cancel,
	rhh_cuda_map_destroy
};
