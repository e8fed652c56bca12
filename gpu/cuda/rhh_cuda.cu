/*
 * rhh_cuda.cu
 *		The CUDA device: memory, streams, launches, and the state machine behind
 *		poll().  The groups are in rhh_groups.cuh and rhh_kernels.cuh, the
 *		table in rhh_buckets.cuh.
 *
 * Lifetimes.  A device has tables and kept lanes.  A lane is what a table works
 * with whatever its size: three streams, events, pinned snapshots and one
 * allocation (the "fixed" memory: upload buffers, bitmaps of failed rows,
 * counters, lists of orphans); it goes from table to table.  What depends on
 * the number of groups (slots, states, keys) is one further allocation, the
 * table's "body", replaced as a whole by growing.  The limits on memory are on
 * bodies; while growing, on the old and the new one together.
 *
 * Streams of a lane:
 *
 *		up		uploads of batches
 *		run		kernels, growth, results; everything that touches the table
 *		note	waits for the end of a step in run and then wakes the caller,
 *				so that run need not wait for a callback
 *
 * Each step in run ends with a copy of the table's counters to a pinned
 * snapshot and an event; poll() asks the events and never waits.
 *
 * A batch in flight:
 *
 *		FREE -> QUEUED (uploading, kernel not launched) -> RUNNING -> READY
 *				  ^ |							  ^			|
 *			LOOKING-+							  +- FAILED <---+--> COPYBACK -> READY
 *
 *	LOOKING: its groups are estimated, to choose how to aggregate it.
 *	FAILED: some rows failed and the table will grow; they run again afterwards.
 *	COPYBACK: it cannot grow, the bitmap of failed rows goes to the caller.
 *	READY: the caller's event is due.
 *
 * A table:
 *
 *		BUILD -> DRAIN -> GROWING -> BUILD			(any number of times)
 *		BUILD -> FINISHING -> FINISHED <-> EXTRACTING
 *
 *	DRAIN: wants to grow, once no kernel of a batch is in flight.  Batches
 *	submitted meanwhile are uploaded and stay QUEUED.  There is always a batch
 *	FAILED or QUEUED then, so the caller has an event to wait for.
 *
 * An error of a CUDA call other than a refused allocation breaks the device:
 * every later call reports the first error, and close() frees what it can.
 * There is no C++ runtime in here, so that a C linker can link it: compile with
 * -fno-exceptions -fno-threadsafe-statics (nvcc's launch stubs have statics).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#ifndef RHH_WITH_CUDA
#define RHH_WITH_CUDA			/* declares rhh_cuda_ops */
#endif
#include "rhh_device.h"
#include "rhh_keys.h"
#include "cuda/rhh_cuda_tuning.h"
#include "cuda/rhh_kernels.cuh"

#define RHH_MAX_POOLS 8
#define RHH_MAX_ORDINALS 64

enum rhh_batch_state
{
	BATCH_FREE,
	BATCH_QUEUED,
	BATCH_LOOKING,
	BATCH_RUNNING,
	BATCH_FAILED,
	BATCH_COPYBACK,
	BATCH_READY
};

/* How a batch is aggregated; see rhh_aggregate.cuh. */
enum rhh_method
{
	METHOD_UNKNOWN,
	METHOD_ROWS,				/* each row for itself */
	METHOD_LOCAL,				/* in shared memory, rows as they come */
	METHOD_PARTS				/* in shared memory, partitioned */
};

enum rhh_table_mode
{
	TABLE_BUILD,
	TABLE_DRAIN,
	TABLE_GROWING,
	TABLE_FINISHING,
	TABLE_FINISHED,
	TABLE_EXTRACTING
};

/* Slot bytes and verification: the three pairs that kernels exist for. */
enum rhh_variant
{
	VARIANT_8,
	VARIANT_8_VERIFY,
	VARIANT_16
};

/* Runs a statement with BYTES and VERIFY as the variant has them. */
#define RHH_BY_VARIANT(variant, ...) \
	do { \
		switch (variant) \
		{ \
			case VARIANT_8: \
				{ enum { BYTES = 8 }; const bool VERIFY = false; __VA_ARGS__; } \
				break; \
			case VARIANT_8_VERIFY: \
				{ enum { BYTES = 8 }; const bool VERIFY = true; __VA_ARGS__; } \
				break; \
			case VARIANT_16: \
				{ enum { BYTES = 16 }; const bool VERIFY = false; __VA_ARGS__; } \
				break; \
		} \
	} while (0)

/* An event pair for the time of a step, and one for its end. */
struct rhh_step_events
{
	cudaEvent_t start;
	cudaEvent_t stop;
	cudaEvent_t done;
};

struct rhh_lane
{
	rhh_lane   *next;			/* kept lanes */
	cudaStream_t up;
	cudaStream_t run;
	cudaStream_t note;
	cudaEvent_t upload[RHH_CUDA_IN_FLIGHT]; /* before a batch's copy, for its time */
	cudaEvent_t uploaded[RHH_CUDA_IN_FLIGHT];
	rhh_step_events batch[RHH_CUDA_IN_FLIGHT];
	rhh_step_events step;		/* growth, finish, extract */
	rhh_control *snapshot;		/* pinned; one a batch, the last for steps */

	/* The fixed memory, and where its parts are. */
	uint8_t    *fixed;
	uint64_t	fixed_bytes;
	uint8_t    *staging;		/* RHH_CUDA_IN_FLIGHT * staging_bytes */
	uint64_t	staging_bytes;
	uint8_t    *failed;			/* RHH_CUDA_IN_FLIGHT * failed_bytes */
	uint64_t	failed_bytes;
	rhh_control *ctl;
	rhh_reserve *reserves;
	rhh_orphan *orphans[2];
	uint32_t   *sketch;			/* of the table's batches */
	uint32_t   *counts[RHH_CUDA_IN_FLIGHT]; /* rows of parts, by looking */

	/* For partitioning; one batch after the other uses it. */
	uint8_t    *workspace;
	uint64_t	workspace_bytes;
};

/* Slots, states, keys and dead marks in one allocation. */
struct rhh_body
{
	uint8_t    *memory;
	uint64_t	bytes;
	uint64_t	states_at;
	uint64_t	keys_at;
	uint64_t	dead_at;
	uint32_t	n_buckets;
	uint32_t	group_cap;
};

struct rhh_in_flight
{
	rhh_batch_state state;
	rhh_status	status;
	rhh_batch	batch;
	uint64_t	tag;
	uint64_t	launch;			/* number of its last launch */
	uint32_t	n_failed;
	rhh_method	method;
	double		groups;			/* that its rows may have, to aggregate it */
	uint32_t	part_bits;		/* METHOD_PARTS */
	bool		looked_at_all;	/* not only at a sample */
	bool		upload_counted; /* its time is in the statistics */
};

struct rhh_table
{
	rhh_device *dev;
	rhh_table  *next;
	rhh_lane   *lane;
	rhh_table_spec spec;
	rhh_program prog;
	rhh_variant variant;
	uint32_t	slots_per_bucket;
	uint32_t	slot_bytes;
	bool		has_i128;
	bool		zero_states;	/* their words begin as zero */

	rhh_table_mode mode;
	bool		cancelled;
	rhh_in_flight flights[RHH_CUDA_IN_FLIGHT];
	uint64_t	launches;
	uint64_t	seen_launch;	/* the launch that seen is of */
	rhh_control seen;			/* the newest snapshot */

	rhh_body	body;
	rhh_body	grown;			/* while GROWING */
	uint32_t	orphan_list;	/* which of the two is current */
	uint64_t	refused_at;		/* dev->frees when memory was last refused */

	uint64_t	rows_submitted;
	uint64_t	estimate;		/* of groups, by looking; 0: has not looked */
	uint64_t	n_entering;		/* launches that entered groups; 0: it is empty */

	/* Extracting. */
	bool		finish_ready;
	bool		extract_ready;
	rhh_result *result;
	uint64_t	extract_tag;
	const uint8_t *list;		/* the live slots, compacted */
	uint64_t	n_main;			/* compacted slots and the NULL group */
	uint64_t	n_main_done;
	uint32_t	n_orphans;
	uint32_t	n_orphans_done;
	uint32_t	n_extracting;

	rhh_table_stats stats;
};

struct rhh_device
{
	int			ordinal;
	int			event_fd;
	int			n_sms;
	uint32_t	max_tiles;		/* of a launch */
	uint32_t	look_rows;
	uint32_t	local_bytes;	/* of shared memory for a local table */
	bool		slot16;
	cudaDeviceProp prop;

	rhh_table  *tables;
	rhh_lane   *lanes;			/* kept */
	uint32_t	n_lanes;
	uint64_t	limit_bytes;
	uint64_t	body_bytes;		/* of all tables */
	uint64_t	frees;			/* counts bodies freed */

	void	   *pools[RHH_MAX_POOLS];
	uint32_t	n_pools;

	bool		broken;
	rhh_error	error;
};

static int32_t rhh_open_count[RHH_MAX_ORDINALS];

/* ---------- errors and waking the caller ---------- */

static rhh_status
rhh_fail(rhh_error *err, rhh_status status, const char *message)
{
	err->status = status;
	snprintf(err->message, sizeof(err->message), "%s", message);
	return status;
}

static void
rhh_wake_fd(int fd)
{
	uint64_t	one = 1;

	/* EAGAIN: the counter is full, so the descriptor is readable. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/*
 * Called by a CUDA thread.  cudaStreamAddCallback, not cudaLaunchHostFunc,
 * because only the former is called after an error too, so that the caller
 * wakes up to hear of it.
 */
static void CUDART_CB
rhh_wake_callback(cudaStream_t stream, cudaError_t rc, void *arg)
{
	(void) stream;
	(void) rc;
	rhh_wake_fd((int) (intptr_t) arg);
}

/* The first error is the one to report; what follows it is its consequence. */
static bool
rhh_check(rhh_device *dev, cudaError_t rc, const char *call)
{
	if (rc == cudaSuccess)
		return true;
	if (!dev->broken)
	{
		dev->broken = true;
		dev->error.status = RHH_DEVICE_ERROR;
		snprintf(dev->error.message, sizeof(dev->error.message),
				 "CUDA call %s failed: %s", call, cudaGetErrorString(rc));
		rhh_wake_fd(dev->event_fd);
	}
	return false;
}

#define RHH_CUDA(dev, call, ...) rhh_check(dev, call(__VA_ARGS__), #call)

static void
rhh_break(rhh_device *dev, const char *message)
{
	if (!dev->broken)
	{
		dev->broken = true;
		rhh_fail(&dev->error, RHH_DEVICE_ERROR, message);
		rhh_wake_fd(dev->event_fd);
	}
}

static rhh_status
rhh_broken(rhh_device *dev, rhh_error *err)
{
	*err = dev->error;
	return dev->error.status;
}

/* Every entry point: this thread may drive other devices too. */
static bool
rhh_enter(rhh_device *dev)
{
	return !dev->broken && RHH_CUDA(dev, cudaSetDevice, dev->ordinal);
}

/* ---------- lanes ---------- */

static uint64_t
rhh_align(uint64_t bytes)
{
	return (bytes + 255) & ~(uint64_t) 255;
}

static uint32_t
rhh_orphan_cap(const rhh_device *dev)
{
	return dev->max_tiles + RHH_CUDA_ORPHANS;
}

/* Frees as much of it as there is; errors no longer matter. */
static void
rhh_lane_free(rhh_lane *lane)
{
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
	{
		if (lane->upload[i])
			cudaEventDestroy(lane->upload[i]);
		if (lane->uploaded[i])
			cudaEventDestroy(lane->uploaded[i]);
		if (lane->batch[i].start)
			cudaEventDestroy(lane->batch[i].start);
		if (lane->batch[i].stop)
			cudaEventDestroy(lane->batch[i].stop);
		if (lane->batch[i].done)
			cudaEventDestroy(lane->batch[i].done);
	}
	if (lane->step.start)
		cudaEventDestroy(lane->step.start);
	if (lane->step.stop)
		cudaEventDestroy(lane->step.stop);
	if (lane->step.done)
		cudaEventDestroy(lane->step.done);
	if (lane->up)
		cudaStreamDestroy(lane->up);
	if (lane->run)
		cudaStreamDestroy(lane->run);
	if (lane->note)
		cudaStreamDestroy(lane->note);
	if (lane->snapshot)
		cudaFreeHost(lane->snapshot);
	if (lane->fixed)
		cudaFree(lane->fixed);
	if (lane->workspace)
		cudaFree(lane->workspace);
	free(lane);
	(void) cudaGetLastError();
}

static bool
rhh_step_events_make(rhh_device *dev, rhh_step_events *ev)
{
	return RHH_CUDA(dev, cudaEventCreate, &ev->start) &&
		RHH_CUDA(dev, cudaEventCreate, &ev->stop) &&
		RHH_CUDA(dev, cudaEventCreateWithFlags, &ev->done, cudaEventDisableTiming);
}

/* A lane without fixed memory. */
static rhh_lane *
rhh_lane_make(rhh_device *dev)
{
	rhh_lane   *lane = (rhh_lane *) calloc(1, sizeof(rhh_lane));
	bool		ok;

	if (lane == NULL)
		return NULL;
	ok = RHH_CUDA(dev, cudaStreamCreateWithFlags, &lane->up, cudaStreamNonBlocking) &&
		RHH_CUDA(dev, cudaStreamCreateWithFlags, &lane->run, cudaStreamNonBlocking) &&
		RHH_CUDA(dev, cudaStreamCreateWithFlags, &lane->note, cudaStreamNonBlocking) &&
		RHH_CUDA(dev, cudaHostAlloc, (void **) &lane->snapshot,
				 (RHH_CUDA_IN_FLIGHT + 1) * sizeof(rhh_control), cudaHostAllocDefault) &&
		rhh_step_events_make(dev, &lane->step);
	for (int i = 0; ok && i < RHH_CUDA_IN_FLIGHT; i++)
		ok = RHH_CUDA(dev, cudaEventCreate, &lane->upload[i]) &&
			RHH_CUDA(dev, cudaEventCreate, &lane->uploaded[i]) &&
			rhh_step_events_make(dev, &lane->batch[i]);
	if (!ok)
	{
		rhh_lane_free(lane);
		return NULL;
	}
	return lane;
}

static void
rhh_lanes_drop(rhh_device *dev)
{
	while (dev->lanes != NULL)
	{
		rhh_lane   *lane = dev->lanes;

		dev->lanes = lane->next;
		rhh_lane_free(lane);
	}
	dev->n_lanes = 0;
}

/*
 * False and NULL: there is no memory, or the device is broken.
 */
static bool
rhh_malloc(rhh_device *dev, uint8_t **memory, uint64_t bytes)
{
	cudaError_t rc = cudaMalloc((void **) memory, bytes);

	if (rc == cudaErrorMemoryAllocation && dev->lanes != NULL)
	{
		/* What is kept for speed should not cost a table its room. */
		(void) cudaGetLastError();
		rhh_lanes_drop(dev);
		rc = cudaMalloc((void **) memory, bytes);
	}
	if (rc == cudaSuccess)
		return true;
	*memory = NULL;
	if (rc == cudaErrorMemoryAllocation)
		(void) cudaGetLastError();
	else
		rhh_check(dev, rc, "cudaMalloc");
	return false;
}

/*
 * Fixed memory for batches of some size.  False: refused, or the device is
 * broken.
 */
static bool
rhh_lane_fit(rhh_device *dev, rhh_lane *lane, const rhh_table_spec *spec)
{
	uint64_t	staging = rhh_align(spec->max_batch_bytes);
	uint64_t	failed = rhh_align((spec->max_batch_rows + 31ULL) / 32 * 4);
	uint64_t	control = rhh_align(sizeof(rhh_control));
	uint64_t	reserves = rhh_align((uint64_t) dev->max_tiles * sizeof(rhh_reserve));
	uint64_t	orphans = rhh_align((uint64_t) rhh_orphan_cap(dev) * sizeof(rhh_orphan));
	uint64_t	looks = rhh_align((RHH_SKETCH_REGISTERS + RHH_CUDA_IN_FLIGHT * RHH_PASS_PARTS) *
								  sizeof(uint32_t));
	uint64_t	bytes;
	uint8_t    *p;

	if (staging < RHH_CUDA_MIN_STAGING_BYTES)
		staging = RHH_CUDA_MIN_STAGING_BYTES;
	bytes = RHH_CUDA_IN_FLIGHT * (staging + failed) + control + reserves + 2 * orphans + looks;
	if (lane->fixed_bytes < bytes)
	{
		if (lane->fixed != NULL)
		{
			p = lane->fixed;
			lane->fixed = NULL;
			lane->fixed_bytes = 0;
			if (!RHH_CUDA(dev, cudaFree, p))
				return false;
		}
		if (!rhh_malloc(dev, &lane->fixed, bytes))
			return false;
		lane->fixed_bytes = bytes;
	}
	p = lane->fixed;
	lane->staging = p;
	lane->staging_bytes = staging;
	p += RHH_CUDA_IN_FLIGHT * staging;
	lane->failed = p;
	lane->failed_bytes = failed;
	p += RHH_CUDA_IN_FLIGHT * failed;
	lane->ctl = (rhh_control *) p;
	p += control;
	lane->reserves = (rhh_reserve *) p;
	p += reserves;
	lane->orphans[0] = (rhh_orphan *) p;
	p += orphans;
	lane->orphans[1] = (rhh_orphan *) p;
	p += orphans;
	lane->sketch = (uint32_t *) p;
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		lane->counts[i] = lane->sketch + RHH_SKETCH_REGISTERS + i * RHH_PASS_PARTS;
	return true;
}

/* Back from a table that has nothing in flight. */
static void
rhh_lane_return(rhh_device *dev, rhh_lane *lane)
{
	if (dev->broken || dev->n_lanes >= RHH_CUDA_KEPT_LANES)
	{
		rhh_lane_free(lane);
		return;
	}
	lane->next = dev->lanes;
	dev->lanes = lane;
	dev->n_lanes++;
}

/* ---------- bodies ---------- */

static double
rhh_slots_of(const rhh_table *t, const rhh_body *body)
{
	return (double) body->n_buckets * t->slots_per_bucket;
}

/* Lays out a body of n_buckets, without memory. */
static void
rhh_body_plan(const rhh_table *t, uint32_t n_buckets, rhh_body *body)
{
	double		slots = (double) n_buckets * t->slots_per_bucket;
	double		cap = slots * t->spec.load_factor * RHH_CUDA_NUMBER_SLACK;
	uint64_t	at = (uint64_t) n_buckets * RHH_LINE_BYTES;

	if (cap > slots * RHH_CUDA_FULL)
		cap = slots * RHH_CUDA_FULL;
	if (cap > RHH_MAX_GROUPS)
		cap = RHH_MAX_GROUPS;
	memset(body, 0, sizeof(*body));
	body->n_buckets = n_buckets;
	body->group_cap = (uint32_t) cap;
	body->states_at = at;
	at += rhh_align((uint64_t) body->group_cap * t->prog.n_state_words * 8);
	body->keys_at = at;
	if (t->variant == VARIANT_8_VERIFY)
		at += rhh_align((uint64_t) body->group_cap * t->prog.plan.n_words * 8);
	body->dead_at = at;
	at += rhh_align((body->group_cap + 31ULL) / 32 * 4);
	body->bytes = at;
}

/* Memory for it within the limits; false if refused. */
static bool
rhh_body_alloc(rhh_table *t, rhh_body *body)
{
	rhh_device *dev = t->dev;

	if ((t->spec.memory_limit_bytes != 0 &&
		 t->stats.bytes + body->bytes > t->spec.memory_limit_bytes) ||
		dev->body_bytes + body->bytes > dev->limit_bytes)
		return false;
	if (!rhh_malloc(dev, &body->memory, body->bytes))
		return false;
	dev->body_bytes += body->bytes;
	t->stats.bytes += body->bytes;
	if (t->stats.bytes > t->stats.peak_bytes)
		t->stats.peak_bytes = t->stats.bytes;
	return true;
}

static void
rhh_body_free(rhh_table *t, rhh_body *body)
{
	if (body->memory == NULL)
		return;
	rhh_check(t->dev, cudaFree(body->memory), "cudaFree");
	t->dev->body_bytes -= body->bytes;
	t->stats.bytes -= body->bytes;
	t->dev->frees++;
	memset(body, 0, sizeof(*body));
}

/* The table as kernels see it, in some body and with some list of orphans. */
static rhh_view
rhh_view_of(const rhh_table *t, const rhh_body *body, uint32_t orphan_list)
{
	rhh_lane   *lane = t->lane;
	rhh_view	v;

	v.slots = body->memory;
	v.states = (uint64_t *) (body->memory + body->states_at);
	v.keys = (uint64_t *) (body->memory + body->keys_at);
	v.dead = (uint32_t *) (body->memory + body->dead_at);
	v.orphans = lane->orphans[orphan_list];
	v.n_orphans = &lane->ctl->orphans[orphan_list];
	v.ctl = lane->ctl;
	v.reserves = lane->reserves;
	v.n_buckets = body->n_buckets;
	v.max_dist = t->spec.max_probe_buckets < body->n_buckets
		? t->spec.max_probe_buckets : body->n_buckets;
	if (v.max_dist > RHH_MAX_DIST)
		v.max_dist = RHH_MAX_DIST;
	v.group_cap = body->group_cap;
	v.chunk = 1;
	v.orphan_cap = rhh_orphan_cap(t->dev);
	v.orphan_limit = v.orphan_cap - t->dev->max_tiles;
	return v;
}

/* ---------- launching ---------- */

/* Blocks for so many threads' work, as many as may be alive at once. */
static uint32_t
rhh_blocks(const rhh_device *dev, uint64_t threads)
{
	uint64_t	blocks = (threads + RHH_CUDA_BLOCK_THREADS - 1) / RHH_CUDA_BLOCK_THREADS;
	uint64_t	most = (uint64_t) dev->n_sms * RHH_CUDA_BLOCKS_PER_SM;

	return (uint32_t) (blocks < 1 ? 1 : blocks > most ? most : blocks);
}

static bool
rhh_launched(rhh_device *dev, const char *kernel)
{
	return rhh_check(dev, cudaGetLastError(), kernel);
}

/* Wakes the caller when an event of the lane is reached. */
static bool
rhh_wake_after(rhh_table *t, cudaEvent_t done)
{
	rhh_device *dev = t->dev;

	return RHH_CUDA(dev, cudaStreamWaitEvent, t->lane->note, done, 0) &&
		RHH_CUDA(dev, cudaStreamAddCallback, t->lane->note, rhh_wake_callback,
				 (void *) (intptr_t) dev->event_fd, 0);
}

/* Ends what was queued in run: counters to the host, event, wake-up. */
static bool
rhh_end_step(rhh_table *t, rhh_step_events *ev, rhh_control *snapshot)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;

	return RHH_CUDA(dev, cudaEventRecord, ev->stop, lane->run) &&
		RHH_CUDA(dev, cudaMemcpyAsync, snapshot, lane->ctl, sizeof(rhh_control),
				 cudaMemcpyDeviceToHost, lane->run) &&
		RHH_CUDA(dev, cudaEventRecord, ev->done, lane->run) &&
		rhh_wake_after(t, ev->done);
}

/* Has an event been reached?  False on an error too, which breaks the device. */
static bool
rhh_reached(rhh_device *dev, cudaEvent_t event)
{
	cudaError_t rc = cudaEventQuery(event);

	if (rc == cudaErrorNotReady)
	{
		(void) cudaGetLastError();
		return false;
	}
	return rhh_check(dev, rc, "cudaEventQuery");
}

/* Both events must have been reached. */
static void
rhh_add_time(rhh_table *t, cudaEvent_t start, cudaEvent_t stop, uint64_t *ns)
{
	float		ms = 0;

	if (RHH_CUDA(t->dev, cudaEventElapsedTime, &ms, start, stop))
		*ns += (uint64_t) (ms * 1e6f);
}

/*
 * Takes over a snapshot.  Steps end in the order of their launches, but poll()
 * may look at them in another.
 */
static void
rhh_see(rhh_table *t, const rhh_control *snapshot, uint64_t launch)
{
	if (launch < t->seen_launch)
		return;
	t->seen = *snapshot;
	t->seen_launch = launch;
	t->stats.failed_slots = t->seen.cap_hits;
	t->stats.merged_duplicates = t->seen.merged;
	t->stats.orphans = t->seen.orphans[t->orphan_list];
	t->stats.groups = t->seen.placed + t->seen.null_seen;
	if (t->seen.overrun && t->mode != TABLE_GROWING)
		rhh_break(t->dev, "the list of displaced entries ran over");
}

/* ---------- how a batch is aggregated ---------- */

/* Has memory been refused, and none been given back since? */
static bool
rhh_may_grow(const rhh_table *t)
{
	return t->refused_at != t->dev->frees;
}

/* Distinct keys that the table should have room for, by what was seen. */
static double
rhh_expected(const rhh_table *t)
{
	double		estimate = (double) t->estimate * RHH_CUDA_ESTIMATE_SLACK;

	return estimate > (double) t->seen.placed ? estimate : (double) t->seen.placed;
}

/* A batch's rows as its kernels see them. */
static rhh_rows
rhh_rows_of(const rhh_table *t, int i)
{
	rhh_lane   *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	rhh_rows	rows;

	rows.base = batch->on_device ? batch->base
		: lane->staging + (uint64_t) i * lane->staging_bytes;
	rows.failed = (uint32_t *) (lane->failed + (uint64_t) i * lane->failed_bytes);
	rows.n_failed = &lane->ctl->failed[i];
	rows.ids = NULL;
	rows.byte_nulls = false;
	rows.n_rows = batch->n_rows;
	memcpy(rows.values_offset, batch->values_offset, sizeof(rows.values_offset));
	memcpy(rows.nulls_offset, batch->nulls_offset, sizeof(rows.nulls_offset));
	return rows;
}

static uint32_t
rhh_record_bytes(const rhh_table *t)
{
	return rhh_record_words(t->prog.n_state_words) * (uint32_t) sizeof(uint64_t);
}

/* The largest local table, and the groups that it is for: 0 if it is none. */
static uint32_t
rhh_most_local_slots(const rhh_table *t)
{
	uint32_t	room = t->dev->local_bytes - RHH_LOCAL_EXTRA_WORDS * (uint32_t) sizeof(uint64_t);
	uint32_t	n = 16;

	while ((2 * n + 1) * rhh_record_bytes(t) <= room)
		n *= 2;
	return (n + 1) * rhh_record_bytes(t) <= room ? n : 0;
}

static double
rhh_most_local_groups(const rhh_table *t)
{
	return rhh_most_local_slots(t) * RHH_CUDA_LOCAL_FILL;
}

/* Bits of the fingerprint that make parts whose groups a local table holds. */
static uint32_t
rhh_part_bits(const rhh_table *t, double groups)
{
	uint32_t	bits = 1;

	while (bits <= RHH_CUDA_MAX_PART_BITS &&
		   groups > rhh_most_local_groups(t) * (double) (UINT64_C(1) << bits))
		bits++;
	return bits;
}

/* Copies of columns, and their rows' numbers, behind *at of the workspace. */
static rhh_rows
rhh_moved_rows(const rhh_table *t, int i, uint8_t *workspace, uint64_t *at)
{
	rhh_rows	rows = rhh_rows_of(t, i);
	uint64_t	n = rows.n_rows;
	uint64_t	offset = 0;

	rows.byte_nulls = true;
	rows.base = workspace + *at;
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
	{
		rows.values_offset[c] = (uint32_t) offset;
		offset += rhh_align(n * t->spec.column_bytes[c]);
	}
	for (uint32_t c = 0; c < t->spec.n_columns; c++)
		if (rows.nulls_offset[c] != 0)
		{
			rows.nulls_offset[c] = (uint32_t) offset;
			offset += rhh_align(n);
		}
	rows.ids = (uint32_t *) (workspace + *at + offset);
	*at += offset + rhh_align(n * sizeof(uint32_t));
	return rows;
}

/* What partitioning needs, in the workspace. */
struct rhh_partition_plan
{
	uint32_t	first_bits;
	uint32_t	second_bits;	/* 0: one pass does */
	rhh_rows	first;
	rhh_rows	second;
	uint32_t   *begins[2];		/* of parts, by pass */
	uint32_t   *ends[2];
	uint32_t   *counts;			/* of the second pass */
	rhh_unit   *units;
	uint32_t   *n_units;
	rhh_stash	stash;
	uint64_t	bytes;
};

/* Where it would be in a workspace (which may be NULL, to know its size). */
static rhh_partition_plan
rhh_plan_partition(const rhh_table *t, int i, uint8_t *workspace)
{
	const rhh_in_flight *f = &t->flights[i];
	uint32_t	bits = f->part_bits;
	uint64_t	n_parts = UINT64_C(1) << bits;
	uint64_t	n_rows = f->batch.n_rows;
	uint64_t	n_units = n_rows / ::min((uint32_t) RHH_SCATTER_ROWS, (uint32_t) RHH_CUDA_UNIT_ROWS) + n_parts +
		RHH_PASS_PARTS;
	uint64_t	parts_bytes = rhh_align(n_parts * sizeof(uint32_t));
	uint64_t	at = 0;
	rhh_partition_plan p;

	memset(&p, 0, sizeof(p));
	p.first_bits = bits <= RHH_PASS_BITS ? bits : (bits + 1) / 2;
	p.second_bits = bits - p.first_bits;
	for (int pass = 0; pass < 2; pass++)
	{
		p.begins[pass] = (uint32_t *) (workspace + at);
		at += parts_bytes * RHH_CUDA_BEGIN_STRIDE;
		p.ends[pass] = (uint32_t *) (workspace + at);
		at += parts_bytes;
	}
	p.counts = (uint32_t *) (workspace + at);
	at += parts_bytes;
	p.n_units = (uint32_t *) (workspace + at);
	at += rhh_align(2 * sizeof(uint32_t));
	p.units = (rhh_unit *) (workspace + at);
	at += rhh_align(n_units * sizeof(rhh_unit));
	p.stash.room = (uint32_t) (f->groups / RHH_CUDA_STASH_SHARE) + 8 * RHH_STASH_OF_PART;
	p.stash.n = (uint32_t *) (workspace + at);
	p.stash.count = p.stash.n + 2;
	at += rhh_align((2 + n_parts) * sizeof(uint32_t));
	p.stash.first = (uint32_t *) (workspace + at);
	at += parts_bytes;
	p.stash.records = (uint64_t *) (workspace + at);
	at += rhh_align((uint64_t) p.stash.room * rhh_record_bytes(t));
	p.first = rhh_moved_rows(t, i, workspace, &at);
	if (p.second_bits > 0)
		p.second = rhh_moved_rows(t, i, workspace, &at);
	p.bytes = at;
	return p;
}

/* Can the batch's columns be moved?  False also if there is no memory. */
static bool
rhh_get_workspace(rhh_table *t, int i)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	uint64_t	columns_bytes = 0;
	uint64_t	bytes;

	for (uint32_t c = 0; c < t->spec.n_columns; c++)
		columns_bytes += rhh_align((uint64_t) batch->n_rows * t->spec.column_bytes[c]) +
			(batch->nulls_offset[c] != 0 ? rhh_align(batch->n_rows) : 0);
	if (columns_bytes > UINT32_MAX || t->flights[i].part_bits > RHH_CUDA_MAX_PART_BITS)
		return false;
	bytes = rhh_plan_partition(t, i, NULL).bytes;
	if (lane->workspace_bytes >= bytes)
		return true;
	if ((t->spec.memory_limit_bytes != 0 &&
		 t->stats.bytes + bytes > t->spec.memory_limit_bytes) ||
		dev->body_bytes + bytes > dev->limit_bytes)
		return false;
	if (lane->workspace != NULL)
	{
		uint8_t    *old = lane->workspace;

		lane->workspace = NULL;
		lane->workspace_bytes = 0;
		/* Waits for the batch that uses it. */
		if (!RHH_CUDA(dev, cudaFree, old))
			return false;
	}
	if (!rhh_malloc(dev, &lane->workspace, bytes))
		return false;
	lane->workspace_bytes = bytes;
	return true;
}

/* Looks at a sample of a batch's rows, or at all, to know their groups. */
static bool
rhh_launch_look(rhh_table *t, int i, bool all)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	rhh_rows	rows = rhh_rows_of(t, i);
	uint32_t	step = all ? 1 : (rows.n_rows - 1) / RHH_CUDA_LOOK_SAMPLE + 1;

	f->looked_at_all = all;
	if (!RHH_CUDA(dev, cudaStreamWaitEvent, lane->run, lane->uploaded[i], 0) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->batch[i].start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, lane->counts[i], 0,
				  RHH_PASS_PARTS * sizeof(uint32_t), lane->run))
		return false;
	RHH_LAUNCH(rhh_look_kernel, rhh_blocks(dev, rows.n_rows / step), RHH_CUDA_BLOCK_THREADS,
			   (RHH_SKETCH_REGISTERS + RHH_PASS_PARTS) * sizeof(uint32_t), lane->run,
			   t->prog, rows, step, lane->sketch, lane->counts[i]);
	if (!rhh_launched(dev, "rhh_look_kernel"))
		return false;
	RHH_LAUNCH(rhh_estimate_kernel, 1, RHH_CUDA_BLOCK_THREADS,
			   2 * RHH_CUDA_BLOCK_THREADS * sizeof(float), lane->run,
			   lane->sketch, &lane->ctl->estimate);
	f->state = BATCH_LOOKING;
	f->launch = ++t->launches;
	return rhh_launched(dev, "rhh_estimate_kernel") &&
		rhh_end_step(t, &lane->batch[i], &lane->snapshot[i]);
}

/* Are the rows' states those that SIMPLE kernels are for?  See rhh_update_rows. */
static bool
rhh_is_simple(const rhh_table *t, const rhh_rows &rows)
{
	for (uint32_t s = 0; s < t->prog.n_states; s++)
	{
		const rhh_program_state &st = t->prog.states[s];

		if ((st.op != RHH_COUNT && (st.op != RHH_SUM_I64 || st.bytes < 4)) || st.filter >= 0 ||
			(st.arg >= 0 && rows.nulls_offset[st.arg] != 0))
			return false;
	}
	return true;
}

/*
 * Rows aggregated in shared memory and entered into the table; some are left to
 * the batch kernel.  groups: of a unit.
 */
static bool
rhh_launch_aggregate(rhh_table *t, int i, const rhh_view &view, const rhh_rows &rows,
					 const rhh_units &units, const rhh_stash &stash, uint32_t blocks,
					 double groups, bool simple)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	uint32_t   *left = &lane->ctl->left[i];
	uint32_t	most_slots = rhh_most_local_slots(t);
	uint32_t	part_buckets = (view.n_buckets >> units.part_bits) + 1;
	uint32_t	n_slots = 16;
	uint32_t	n_copies = 1;
	size_t		shared;
	auto		launch = [&](rhh_entering entering, size_t space) {
		RHH_BY_VARIANT(t->variant,
					   auto kernel = simple ? rhh_aggregate_kernel<BYTES, VERIFY, true>
					   : rhh_aggregate_kernel<BYTES, VERIFY, false>;
					   RHH_LAUNCH(kernel, blocks, RHH_CUDA_AGGREGATE_THREADS, shared + space,
								  lane->run, t->prog, view, rows, units, n_slots, n_copies,
								  entering, stash, left));
	};

	while (n_slots < most_slots && n_slots * RHH_CUDA_LOCAL_FILL_FEW < groups)
		n_slots *= 2;
	while (n_copies < RHH_WARP_SIZE &&
		   2 * n_copies * (n_slots + 1) * rhh_record_bytes(t) <= RHH_CUDA_LOCAL_COPIES_BYTES)
		n_copies *= 2;
	shared = (size_t) n_copies * (n_slots + 1) * rhh_record_bytes(t) +
		RHH_LOCAL_EXTRA_WORDS * sizeof(uint64_t);
	if (!RHH_CUDA(dev, cudaMemsetAsync, rows.failed, 0, (rows.n_rows + 31ULL) / 32 * 4,
				  lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, left, 0, sizeof(uint32_t), lane->run))
		return false;

	/* An empty table is built. */
	if (units.part_bits > 0 && t->n_entering == 0 && part_buckets <= RHH_CUDA_BUILD_BUCKETS &&
		part_buckets * t->slots_per_bucket <= RHH_CUDA_BUILD_SLOTS)
	{
		if (!RHH_CUDA(dev, cudaMemsetAsync, stash.n, 0,
					  (2 + (UINT64_C(1) << units.part_bits)) * sizeof(uint32_t), lane->run))
			return false;
		launch(RHH_ENTER_BUILD, sizeof(rhh_build_space));
		launch(RHH_ENTER_SPLIT, 0);
		RHH_BY_VARIANT(t->variant,
					   RHH_LAUNCH((rhh_enter_stash_kernel<BYTES, VERIFY>),
								  ::min(blocks, (uint32_t) dev->n_sms * 2), RHH_CUDA_BLOCK_THREADS,
								  0, lane->run, t->prog, view, rows, stash);
					   RHH_LAUNCH((rhh_leave_stash_kernel<BYTES, VERIFY>), blocks,
								  RHH_CUDA_AGGREGATE_THREADS,
								  (2 * RHH_STASH_OF_PART + 1) * rhh_record_words(0) *
								  sizeof(uint64_t), lane->run, t->prog, rows, units, stash, left));
	}
	else
		launch(RHH_ENTER_ALL, 0);
	t->n_entering++;
	return rhh_launched(dev, "rhh_aggregate_kernel");
}

static bool
rhh_launch_units(rhh_table *t, const rhh_partition_plan &p, const uint32_t *ends, uint32_t bits,
				 uint32_t unit_rows)
{
	uint32_t	n_parts = 1u << bits;

	if (!RHH_CUDA(t->dev, cudaMemsetAsync, p.n_units, 0, 2 * sizeof(uint32_t), t->lane->run))
		return false;
	RHH_LAUNCH(rhh_units_kernel, ::min(n_parts, (uint32_t) RHH_CUDA_UNITS_BLOCKS),
			   RHH_CUDA_UNITS_THREADS, 0, t->lane->run, ends, n_parts, unit_rows, p.units, p.n_units);
	return rhh_launched(t->dev, "rhh_units_kernel");
}

/* Moves the rows to their parts, of which it gives the units. */
static bool
rhh_launch_partition(rhh_table *t, int i, const rhh_partition_plan &p, uint32_t unit_rows,
					 rhh_units *units)
{
	rhh_device *dev = t->dev;
	cudaStream_t run = t->lane->run;
	rhh_rows	rows = rhh_rows_of(t, i);
	uint32_t	blocks = (uint32_t) dev->n_sms * 4;
	rhh_digit	digit = {32 - p.first_bits, p.first_bits};

	*units = {NULL, NULL, rows.n_rows, RHH_SCATTER_ROWS, 0};
	RHH_LAUNCH(rhh_offsets_kernel, 1, RHH_PASS_PARTS, 0, run, t->lane->counts[i], NULL,
			   p.first_bits, RHH_PASS_BITS - p.first_bits, p.begins[0], p.ends[0]);
	RHH_LAUNCH(rhh_scatter_rows_kernel, blocks, RHH_CUDA_SCATTER_THREADS, RHH_SCATTER_SHARED, run,
			   t->prog, rows, p.first, *units, digit, p.begins[0]);
	if (p.second_bits > 0)
	{
		*units = {p.units, p.n_units, 0, 0, p.first_bits};
		digit = {32 - p.first_bits - p.second_bits, p.second_bits};
		if (!RHH_CUDA(dev, cudaMemsetAsync, p.counts, 0,
					  sizeof(uint32_t) << (p.first_bits + p.second_bits), run) ||
			!rhh_launch_units(t, p, p.ends[0], p.first_bits, RHH_SCATTER_ROWS))
			return false;
		RHH_LAUNCH(rhh_count_kernel, blocks, RHH_CUDA_BLOCK_THREADS,
				   RHH_PASS_PARTS * sizeof(uint32_t), run, t->prog, p.first, *units, digit,
				   p.counts);
		RHH_LAUNCH(rhh_offsets_kernel, 1u << p.first_bits, RHH_PASS_PARTS, 0, run, p.counts,
				   p.ends[0], p.second_bits, 0, p.begins[1], p.ends[1]);
		RHH_LAUNCH(rhh_scatter_rows_kernel, blocks, RHH_CUDA_SCATTER_THREADS, RHH_SCATTER_SHARED,
				   run, t->prog, p.first, p.second, *units, digit, p.begins[1]);
	}
	*units = {p.units, p.n_units, 0, 0, p.first_bits + p.second_bits};
	if (!rhh_launch_units(t, p, p.second_bits > 0 ? p.ends[1] : p.ends[0], units->part_bits,
						  unit_rows))
		return false;
	return rhh_launched(dev, "partitioning");
}

/* The body as a launch of some tiles sees it: they take numbers in chunks. */
static rhh_view
rhh_view_for(const rhh_table *t, uint32_t n_tiles)
{
	rhh_view	view = rhh_view_of(t, &t->body, t->orphan_list);

	view.chunk = view.group_cap / RHH_CUDA_CHUNK_SHARE / n_tiles;
	if (view.chunk < 1)
		view.chunk = 1;
	if (view.chunk > RHH_CUDA_MAX_CHUNK)
		view.chunk = RHH_CUDA_MAX_CHUNK;
	return view;
}

/* Queues a batch's kernels, for all its rows or those that failed. */
static bool
rhh_launch_batch(rhh_table *t, int i, bool replay)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	rhh_rows	rows = rhh_rows_of(t, i);
	uint32_t	tiles_per_block = RHH_CUDA_BLOCK_THREADS / RHH_GROUP_LANES;
	uint32_t	blocks = rhh_blocks(dev, rows.n_rows);
	uint32_t	most_blocks = t->body.group_cap / RHH_CUDA_GROUPS_PER_TILE / tiles_per_block;
	bool		aggregate = !replay && f->method != METHOD_ROWS;
	const uint32_t *n_left = aggregate ? &lane->ctl->left[i] : NULL;

	if (blocks > most_blocks)
		blocks = most_blocks < 1 ? 1 : most_blocks;
	if (!RHH_CUDA(dev, cudaStreamWaitEvent, lane->run, lane->uploaded[i], 0) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->batch[i].start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, rows.n_failed, 0, sizeof(uint32_t), lane->run))
		return false;
	if (aggregate)
	{
		/* Tiles take a number each for groups that all of them have. */
		uint32_t	agg_tiles = RHH_CUDA_AGGREGATE_THREADS / RHH_GROUP_LANES;
		uint32_t	most = t->body.group_cap / 4 * 3 / agg_tiles;
		uint32_t	agg_blocks = (uint32_t) dev->n_sms * 2;
		double		groups = f->groups;
		rhh_units	units = {NULL, NULL, rows.n_rows, 0, 0};
		rhh_rows	from = rows;
		rhh_stash	stash = {};

		if (agg_blocks > most)
			agg_blocks = most < 1 ? 1 : most;
		if (f->method == METHOD_PARTS)
		{
			rhh_partition_plan p = rhh_plan_partition(t, i, lane->workspace);
			uint32_t	bits = p.first_bits + p.second_bits;

			if (p.bytes > lane->workspace_bytes)
			{
				rhh_break(dev, "the workspace of a batch is too small");
				return false;
			}
			if (!rhh_launch_partition(t, i, p, ::max((uint32_t) RHH_CUDA_UNIT_ROWS, rows.n_rows / agg_blocks),
									  &units))
				return false;
			from = p.second_bits > 0 ? p.second : p.first;
			stash = p.stash;
			groups /= (double) (UINT64_C(1) << bits);
		}
		else
		{
			uint64_t	unit_rows = (rows.n_rows - 1) / agg_blocks + 1;

			if (unit_rows < RHH_CUDA_LOCAL_MIN_ROWS)
				unit_rows = RHH_CUDA_LOCAL_MIN_ROWS;
			if (unit_rows < RHH_CUDA_LOCAL_ROWS_PER_GROUP * groups)
				unit_rows = (uint64_t) (RHH_CUDA_LOCAL_ROWS_PER_GROUP * groups);
			units.unit_rows = (uint32_t) unit_rows;
		}
		if (!rhh_launch_aggregate(t, i, rhh_view_for(t, agg_blocks * agg_tiles), from, units,
								  stash, agg_blocks, groups, rhh_is_simple(t, rows)))
			return false;
	}
	RHH_BY_VARIANT(t->variant,
				   RHH_LAUNCH((rhh_batch_kernel<BYTES, VERIFY>), blocks,
							  RHH_CUDA_BLOCK_THREADS, 0, lane->run,
							  t->prog, rhh_view_for(t, blocks * tiles_per_block), rows,
							  replay || aggregate, n_left));
	t->n_entering++;
	f->state = BATCH_RUNNING;
	f->launch = ++t->launches;
	return rhh_launched(dev, "rhh_batch_kernel") &&
		rhh_end_step(t, &lane->batch[i], &lane->snapshot[i]);
}

/*
 * The next step of a queued batch: to look at it, to wait until there is room for
 * its groups (then the table is to DRAIN), or to run.
 */
static bool
rhh_start_batch(rhh_table *t, int i)
{
	rhh_in_flight *f = &t->flights[i];

	if (f->method == METHOD_UNKNOWN)
	{
		uint64_t	groups = t->seen_launch > 0 ? t->seen.placed : t->spec.expected_groups;

		if (f->batch.on_device && f->batch.n_rows >= t->dev->look_rows &&
			rhh_most_local_slots(t) > 0)
			return rhh_launch_look(t, i, false);
		f->method = groups <= RHH_CUDA_LOCAL_MAX_GROUPS && groups <= rhh_most_local_groups(t)
			? METHOD_LOCAL : METHOD_ROWS;
		f->groups = t->seen_launch > 0 ? 2.0 * (double) groups : RHH_CUDA_LOCAL_MAX_GROUPS;
	}
	if (rhh_may_grow(t) && rhh_expected(t) > rhh_slots_of(t, &t->body) * t->spec.load_factor)
	{
		t->mode = TABLE_DRAIN;
		return true;
	}
	return rhh_launch_batch(t, i, false);
}

/* The rows have been looked at, and it is known how to aggregate them. */
static bool
rhh_looked(rhh_table *t, int i, const rhh_control *snapshot)
{
	rhh_in_flight *f = &t->flights[i];

	f->state = BATCH_QUEUED;
	t->estimate = snapshot->estimate;
	/* Kept: what is known may have changed when it is launched, and the workspace is for this. */
	f->groups = rhh_expected(t);
	f->part_bits = rhh_part_bits(t, f->groups);
	if (rhh_expected(t) <= rhh_most_local_groups(t))
		f->method = METHOD_LOCAL;
	else if (!f->looked_at_all)
		return rhh_launch_look(t, i, true);
	else
		f->method = rhh_get_workspace(t, i) ? METHOD_PARTS : METHOD_ROWS;
	if (t->dev->broken)
		return false;
	return t->mode != TABLE_BUILD || rhh_start_batch(t, i);
}

/* As far as there is room for them. */
static bool
rhh_launch_queued(rhh_table *t)
{
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->mode == TABLE_BUILD && t->flights[i].state == BATCH_QUEUED &&
			!rhh_start_batch(t, i))
			return false;
	return true;
}

/* The caller's event is due. */
static void
rhh_resolve(rhh_table *t, int i, rhh_status status, uint32_t n_failed)
{
	rhh_in_flight *f = &t->flights[i];

	f->state = BATCH_READY;
	f->status = status;
	f->n_failed = n_failed;
	if (status == RHH_OK)
	{
		t->stats.rows += f->batch.n_rows - n_failed;
		t->stats.failed_rows += n_failed;
	}
}

/* The failed rows go back to the caller. */
static bool
rhh_hand_back(rhh_table *t, int i)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];

	f->state = BATCH_COPYBACK;
	return RHH_CUDA(dev, cudaMemcpyAsync, f->batch.base + f->batch.failed_offset,
					lane->failed + (uint64_t) i * lane->failed_bytes,
					(f->batch.n_rows + 31ULL) / 32 * 4, cudaMemcpyDefault,
					lane->run) &&
		RHH_CUDA(dev, cudaEventRecord, lane->batch[i].done, lane->run) &&
		rhh_wake_after(t, lane->batch[i].done);
}

/* ---------- growing ---------- */

/*
 * Would growing help rows that failed?  Not where the table is far from full:
 * then keys crowd together, and twice the slots need not spread them.
 */
static bool
rhh_growth_helps(const rhh_table *t)
{
	return t->seen.n_numbers >= t->body.group_cap ||
		(double) t->seen.placed >= rhh_slots_of(t, &t->body) * t->spec.load_factor / 2;
}

static bool
rhh_body_try(rhh_table *t, double slots)
{
	double		buckets = slots / t->slots_per_bucket + 1;

	if (buckets > 2.0e9 / t->slots_per_bucket * 2)
		buckets = 2.0e9 / t->slots_per_bucket * 2;
	if (buckets <= t->body.n_buckets * 1.4)
		return false;
	rhh_body_plan(t, (uint32_t) buckets, &t->grown);
	return rhh_body_alloc(t, &t->grown);
}

/* Nothing grows: the rows that waited for it go back, the others go on. */
static bool
rhh_grow_refused(rhh_table *t)
{
	t->mode = TABLE_BUILD;
	t->refused_at = t->dev->frees;
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state == BATCH_FAILED && !rhh_hand_back(t, i))
			return false;
	return rhh_launch_queued(t);
}

/* Initial states of the numbers from first on. */
static bool
rhh_fill(rhh_table *t, const rhh_body *body, uint64_t first)
{
	uint64_t	n = body->group_cap - first;

	if (t->prog.n_state_words == 0 || n == 0)
		return true;
	if (t->zero_states)
		return RHH_CUDA(t->dev, cudaMemsetAsync,
						body->memory + body->states_at + first * t->prog.n_state_words * 8, 0,
						n * t->prog.n_state_words * 8, t->lane->run);
	RHH_LAUNCH(rhh_fill_kernel, rhh_blocks(t->dev,
										   n * t->prog.n_state_words), RHH_CUDA_BLOCK_THREADS, 0, t->lane->run,
			   t->prog, (uint64_t *) (body->memory + body->states_at), first, n);
	return rhh_launched(t->dev, "rhh_fill_kernel");
}

/*
 * With no kernel in flight: makes a larger body and moves everything there.
 * The old one is only read, and stays the table's until the rehash is known to
 * have ended well.
 */
static bool
rhh_grow(rhh_table *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	double		slots = rhh_slots_of(t, &t->body);
	double		want = slots * (slots < RHH_CUDA_FOURFOLD_SLOTS ? 4 : 2);
	double		need = (double) t->seen.placed;
	uint32_t	list = 1 - t->orphan_list;
	uint64_t	n_numbers = t->seen.n_numbers;
	uint32_t	n_orphans = t->seen.orphans[t->orphan_list];
	rhh_view	view;

	/* Of a batch that was looked at the groups are known, else each may be one. */
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state == BATCH_FAILED && !t->flights[i].looked_at_all)
			need += t->flights[i].n_failed;
	if (need < rhh_expected(t))
		need = rhh_expected(t);
	need /= t->spec.load_factor;
	if (need > want)
		want = need;
	if (!rhh_may_grow(t) ||
		!(rhh_body_try(t, want) ||
		  (!dev->broken && rhh_body_try(t, 2 * slots)) ||
		  (!dev->broken && rhh_body_try(t, 1.5 * slots))))
		return !dev->broken && rhh_grow_refused(t);

	t->mode = TABLE_GROWING;
	if (n_numbers > t->body.group_cap)
		n_numbers = t->body.group_cap;
	view = rhh_view_of(t, &t->grown, list);
	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, t->grown.memory, 0xFF,
				  (uint64_t) t->grown.n_buckets * RHH_LINE_BYTES, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, view.n_orphans, 0, sizeof(uint32_t), lane->run) ||
		!RHH_CUDA(dev, cudaMemcpyAsync, view.states,
				  t->body.memory + t->body.states_at,
				  n_numbers * t->prog.n_state_words * 8,
				  cudaMemcpyDeviceToDevice, lane->run) ||
		!rhh_fill(t, &t->grown, n_numbers))
		return false;
	if (t->variant == VARIANT_8_VERIFY &&
		!RHH_CUDA(dev, cudaMemcpyAsync, view.keys, t->body.memory + t->body.keys_at,
				  n_numbers * t->prog.plan.n_words * 8,
				  cudaMemcpyDeviceToDevice, lane->run))
		return false;
	RHH_BY_VARIANT(t->variant,
				   RHH_LAUNCH((rhh_rehash_kernel<BYTES, VERIFY>),
							  rhh_blocks(dev, (uint64_t) t->body.n_buckets * RHH_GROUP_LANES), RHH_CUDA_BLOCK_THREADS, 0, lane->run,
							  t->prog, view, rhh_view_of(t,
														 &t->body, t->orphan_list), lane->orphans[t->orphan_list], n_orphans));
	t->launches++;
	return rhh_launched(dev, "rhh_rehash_kernel") &&
		rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

/* The rehash has ended. */
static bool
rhh_grown(rhh_table *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const rhh_control *snapshot = &lane->snapshot[RHH_CUDA_IN_FLIGHT];

	rhh_add_time(t, lane->step.start, lane->step.stop, &t->stats.kernel_ns);
	if (snapshot->overrun)
	{
		/*
		 * More orphans than their list holds (max_probe_buckets is tiny and
		 * the sizes do not divide).  Keep the old body and its list.
		 */
		rhh_body_free(t, &t->grown);
		return RHH_CUDA(dev, cudaMemsetAsync, &lane->ctl->overrun, 0,
						sizeof(uint32_t), lane->run) &&
			rhh_grow_refused(t);
	}
	rhh_body_free(t, &t->body);
	t->body = t->grown;
	memset(&t->grown, 0, sizeof(t->grown));
	t->orphan_list = 1 - t->orphan_list;
	t->stats.capacity_slots = (uint64_t) rhh_slots_of(t, &t->body);
	t->stats.rehashes++;
	t->mode = TABLE_BUILD;
	rhh_see(t, snapshot, t->launches);
	if (dev->broken)
		return false;
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state == BATCH_FAILED && !rhh_launch_batch(t, i, true))
			return false;
	return rhh_launch_queued(t);
}

/* ---------- finishing and extracting ---------- */

static bool
rhh_reconcile(rhh_table *t, const rhh_view *view)
{
	rhh_device *dev = t->dev;
	cudaStream_t run = t->lane->run;
	uint32_t	n_orphans = t->seen.orphans[t->orphan_list];
	uint32_t	list = 1 - t->orphan_list;

	if (n_orphans > 0)
	{
		uint32_t	blocks = rhh_blocks(dev, (uint64_t) n_orphans * RHH_GROUP_LANES);

		RHH_BY_VARIANT(t->variant,
					   RHH_LAUNCH((rhh_reconcile_kernel<BYTES, VERIFY>), blocks,
								  RHH_CUDA_BLOCK_THREADS, 0, run, t->prog, *view, n_orphans));
		if (!rhh_launched(dev, "rhh_reconcile_kernel") ||
			!RHH_CUDA(dev, cudaMemsetAsync, &view->ctl->orphans[list], 0,
					  sizeof(uint32_t), run))
			return false;
		RHH_BY_VARIANT(t->variant,
					   RHH_LAUNCH((rhh_orphans_kernel<BYTES, VERIFY>), blocks,
								  RHH_CUDA_BLOCK_THREADS, 0, run,
								  t->prog, *view, n_orphans, t->lane->orphans[list], &view->ctl->orphans[list]));
		if (!rhh_launched(dev, "rhh_orphans_kernel"))
			return false;
		t->orphan_list = list;
	}
	return true;
}

/* Queues reconciling and compacting. */
static bool
rhh_start_finish(rhh_table *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_view	view = rhh_view_of(t, &t->body, t->orphan_list);
	uint64_t	n_slots = (uint64_t) view.n_buckets * t->slots_per_bucket;
	uint8_t    *scratch = lane->staging;
	uint64_t	chunk = RHH_CUDA_IN_FLIGHT * lane->staging_bytes / t->slot_bytes;
	bool		probe_stats = (t->spec.flags & RHH_WANT_PROBE_STATS) != 0;

	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, view.dead, 0,
				  (view.group_cap + 31ULL) / 32 * 4, lane->run) ||
		!rhh_reconcile(t, &view))
		return false;
	if (lane->workspace_bytes / t->slot_bytes > chunk)
	{
		scratch = lane->workspace;
		chunk = lane->workspace_bytes / t->slot_bytes;
	}
	/* Extracting overwrites the staging. */
	t->list = scratch == lane->workspace && n_slots <= chunk ? scratch : t->body.memory;
	for (uint64_t first = 0; first < n_slots; first += chunk)
	{
		uint64_t	n = n_slots - first < chunk ? n_slots - first : chunk;

		RHH_BY_VARIANT(t->variant,
					   (void) VERIFY;
					   RHH_LAUNCH((rhh_compact_kernel<BYTES>),
								  rhh_blocks(dev, n / RHH_CUDA_COMPACT_ITEMS),
								  RHH_CUDA_BLOCK_THREADS, 0, lane->run, view, first, n,
								  scratch, probe_stats));
		if (t->list != scratch)
			RHH_LAUNCH(rhh_append_kernel, rhh_blocks(dev, n), RHH_CUDA_BLOCK_THREADS, 0,
					   lane->run, view.ctl, (uint64_t *) view.slots,
					   (const uint64_t *) scratch, t->slot_bytes / 8);
		RHH_LAUNCH(rhh_append_end_kernel, 1, 1, 0, lane->run, view.ctl);
		if (!rhh_launched(dev, "rhh_compact_kernel"))
			return false;
	}
	t->mode = TABLE_FINISHING;
	t->launches++;
	return rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

static void
rhh_finished(rhh_table *t)
{
	rhh_add_time(t, t->lane->step.start, t->lane->step.stop, &t->stats.kernel_ns);
	rhh_see(t, &t->lane->snapshot[RHH_CUDA_IN_FLIGHT], t->launches);
	t->n_main = t->seen.live + t->seen.null_seen;
	t->n_orphans = t->seen.orphans[t->orphan_list];
	t->stats.groups = t->n_main;	/* the orphans are counted apart */
	t->stats.probe_buckets_sum = t->seen.probe_sum;
	t->stats.probe_buckets_max = t->seen.probe_max;
	t->mode = TABLE_FINISHED;
	t->finish_ready = true;
}

/* Queues the next orphans, or once they are out, groups of the compacted slots. */
static bool
rhh_start_extract(rhh_table *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_result *result = t->result;
	bool		orphans = t->n_orphans_done < t->n_orphans;
	uint64_t	first = orphans ? t->n_orphans_done : t->n_main_done;
	uint64_t	left = (orphans ? t->n_orphans : t->n_main) - first;
	uint32_t	n = left < result->capacity_groups
		? (uint32_t) left : result->capacity_groups;
	uint64_t	scratch_words = RHH_CUDA_IN_FLIGHT * lane->staging_bytes / 8;
	uint64_t	piece = scratch_words / t->prog.n_result_words;
	uint64_t	null_at = t->seen.null_seen ? t->n_main - 1 : UINT64_MAX;
	rhh_view	view = rhh_view_of(t, &t->body, t->orphan_list);

	if (piece > n)
		piece = n;
	t->n_extracting = n;
	t->mode = TABLE_EXTRACTING;
	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run))
		return false;
	for (uint32_t done = 0; done < n; done += (uint32_t) piece)
	{
		uint32_t	m = n - done < piece ? n - done : (uint32_t) piece;

		RHH_BY_VARIANT(t->variant,
					   RHH_LAUNCH((rhh_extract_kernel<BYTES, VERIFY>), rhh_blocks(dev, m),
								  RHH_CUDA_BLOCK_THREADS, 0, lane->run,
								  t->prog, view, t->list, orphans, first + done, m, null_at, (uint64_t *) lane->staging, (uint32_t) piece));
		if (!rhh_launched(dev, "rhh_extract_kernel") ||
			!RHH_CUDA(dev, cudaMemcpy2DAsync, result->words + done,
					  (size_t) result->capacity_groups * 8, lane->staging,
					  piece * 8, (size_t) m * 8, t->prog.n_result_words,
					  cudaMemcpyDeviceToHost, lane->run))
			return false;
	}
	t->launches++;
	return rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

static void
rhh_extracted(rhh_table *t)
{
	bool		orphans = t->n_orphans_done < t->n_orphans;

	if (t->n_extracting > 0)
		rhh_add_time(t, t->lane->step.start, t->lane->step.stop, &t->stats.extract_ns);
	if (orphans)
		t->n_orphans_done += t->n_extracting;
	else
		t->n_main_done += t->n_extracting;
	t->result->n_groups = t->n_extracting;
	t->result->needs_merge = orphans && t->n_extracting > 0;
	t->result->last = t->n_main_done == t->n_main &&
		t->n_orphans_done == t->n_orphans;
	t->mode = TABLE_FINISHED;
	t->extract_ready = true;
}

/* ---------- the state machine ---------- */

/* A batch's kernel or copy has ended. */
static bool
rhh_batch_ended(rhh_table *t, int i)
{
	rhh_in_flight *f = &t->flights[i];
	const rhh_control *snapshot = &t->lane->snapshot[i];

	if (f->state == BATCH_COPYBACK)
	{
		rhh_resolve(t, i, t->cancelled ? RHH_CANCELLED : RHH_OK, f->n_failed);
		return true;
	}
	rhh_add_time(t, t->lane->batch[i].start, t->lane->batch[i].stop, &t->stats.kernel_ns);
	if (!f->upload_counted)
		rhh_add_time(t, t->lane->upload[i], t->lane->uploaded[i], &t->stats.upload_ns);
	f->upload_counted = true;	/* a replay has none */
	rhh_see(t, snapshot, f->launch);
	if (t->dev->broken)
		return false;
	if (f->state == BATCH_LOOKING && !t->cancelled)
		return rhh_looked(t, i, snapshot);
	f->n_failed = snapshot->failed[i];
	if (t->cancelled || f->n_failed == 0)
	{
		rhh_resolve(t, i, t->cancelled ? RHH_CANCELLED : RHH_OK, 0);
		return true;
	}
	if (t->mode == TABLE_DRAIN || (rhh_may_grow(t) && rhh_growth_helps(t)))
	{
		f->state = BATCH_FAILED;
		t->mode = TABLE_DRAIN;
		return true;
	}
	return rhh_hand_back(t, i);
}

/* Takes a table as far as it gets without waiting.  False: broken. */
static bool
rhh_advance(rhh_table *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	bool		running = false;

	if (t->mode == TABLE_GROWING || t->mode == TABLE_FINISHING ||
		t->mode == TABLE_EXTRACTING)
	{
		if (!rhh_reached(dev, lane->step.done))
			return !dev->broken;
		if (t->mode == TABLE_FINISHING)
			rhh_finished(t);
		else if (t->mode == TABLE_EXTRACTING)
			rhh_extracted(t);
		else if (!t->cancelled)
		{
			if (!rhh_grown(t))
				return false;
		}
		else
		{
			rhh_body_free(t, &t->grown);
			t->mode = TABLE_BUILD;
		}
	}

	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
	{
		rhh_in_flight *f = &t->flights[i];

		if ((f->state == BATCH_RUNNING || f->state == BATCH_LOOKING ||
			 f->state == BATCH_COPYBACK) &&
			rhh_reached(dev, lane->batch[i].done) && !rhh_batch_ended(t, i))
			return false;
		if (t->cancelled && t->mode != TABLE_GROWING &&
			(f->state == BATCH_FAILED ||
			 (f->state == BATCH_QUEUED && rhh_reached(dev, lane->uploaded[i]))))
			rhh_resolve(t, i, RHH_CANCELLED, 0);
		if (dev->broken)
			return false;
		running = running || f->state == BATCH_RUNNING;
	}

	if (t->mode == TABLE_DRAIN && !running)
	{
		if (t->cancelled)
			t->mode = TABLE_BUILD;
		else
			return rhh_grow(t);
	}
	return true;
}

/* The events that are due, as far as there is room; true if some are left. */
static bool
rhh_collect(rhh_table *t, rhh_event *events, uint32_t cap, uint32_t *n)
{
	rhh_event	ev;

	memset(&ev, 0, sizeof(ev));
	ev.table = t;
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
		ev.n_failed = f->n_failed;
		events[(*n)++] = ev;
		f->state = BATCH_FREE;
	}
	ev.status = t->cancelled ? RHH_CANCELLED : RHH_OK;
	ev.n_failed = 0;
	if (t->finish_ready)
	{
		if (*n == cap)
			return true;
		ev.kind = RHH_EVENT_FINISH;
		ev.tag = 0;
		events[(*n)++] = ev;
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
	/* Before looking: what ends after this wakes the caller again. */
	while (read(dev->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	for (rhh_table *t = dev->tables; t != NULL; t = t->next)
		if (!rhh_advance(t))
			return rhh_broken(dev, err);
	for (rhh_table *t = dev->tables; t != NULL; t = t->next)
		more = rhh_collect(t, events, cap, n) || more;
	if (more)
		rhh_wake_fd(dev->event_fd);
	return RHH_OK;
}

/* ---------- the device ---------- */

/* The compute capability of the oldest code in here, as 10 * major + minor. */
static int
rhh_oldest_arch(void)
{
	static const int archs[] = {__CUDA_ARCH_LIST__};	/* ascending, 750 for 7.5 */

	return archs[0] / 10;
}

static void
rhh_fill_info(rhh_device_info *info, int ordinal, const cudaDeviceProp *prop)
{
	int			oldest = rhh_oldest_arch();
	int			mode = cudaComputeModeDefault;

	memset(info, 0, sizeof(*info));
	info->kind = RHH_KIND_CUDA;
	info->ordinal = ordinal;
	info->cc_major = prop->major;
	info->cc_minor = prop->minor;
	info->total_bytes = prop->totalGlobalMem;
	snprintf(info->name, sizeof(info->name), "%.*s", (int) sizeof(info->name) - 1,
			 prop->name);
	info->state = RHH_STATE_AVAILABLE;
	if (ordinal < RHH_MAX_ORDINALS && rhh_open_count[ordinal] > 0)
		info->state = RHH_STATE_OPEN;
	if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, ordinal) != cudaSuccess)
		(void) cudaGetLastError();
	if (prop->major * 10 + prop->minor < oldest)
	{
		info->state = RHH_STATE_UNUSABLE;
		snprintf(info->reason, sizeof(info->reason),
				 "compute capability %d.%d is below %d.%d, the lowest that this build supports",
				 prop->major, prop->minor, oldest / 10, oldest % 10);
	}
	else if (mode == cudaComputeModeProhibited)
	{
		info->state = RHH_STATE_UNUSABLE;
		snprintf(info->reason, sizeof(info->reason), "its compute mode prohibits using it");
	}
}

static rhh_status
rhh_cuda_enumerate(rhh_device_info *infos, uint32_t cap, uint32_t *n, rhh_error *err)
{
	int			count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	*n = 0;
	/* No driver, too old a driver, no device: all of them mean none. */
	if (rc != cudaSuccess)
	{
		int			driver = 0;

		(void) cudaGetLastError();
		/* without a driver CUDA calls it too old */
		if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
			snprintf(err->message, sizeof(err->message), "NVIDIA's driver was not found");
		else
			snprintf(err->message, sizeof(err->message), "%s", cudaGetErrorString(rc));
		return RHH_OK;
	}
	for (int i = 0; i < count && *n < cap; i++)
	{
		cudaDeviceProp prop;

		if (cudaGetDeviceProperties(&prop, i) != cudaSuccess)
		{
			rhh_device_info *info = &infos[(*n)++];

			memset(info, 0, sizeof(*info));
			info->kind = RHH_KIND_CUDA;
			info->ordinal = i;
			info->state = RHH_STATE_UNUSABLE;
			snprintf(info->reason, sizeof(info->reason), "%s",
					 cudaGetErrorString(cudaGetLastError()));
			continue;
		}
		rhh_fill_info(&infos[(*n)++], i, &prop);
	}
	return RHH_OK;
}

static void rhh_cuda_close(rhh_device *dev);

/* Lets a kernel have as much shared memory as the local tables are given. */
static bool
rhh_allow_shared(rhh_device *dev, rhh_variant variant)
{
	cudaError_t rc = cudaSuccess;

	RHH_BY_VARIANT(variant, {
		auto		kernel = rhh_aggregate_kernel<BYTES, VERIFY, true>;
		int			bytes = (int) (dev->local_bytes + sizeof(rhh_build_space));

		rc = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
		kernel = rhh_aggregate_kernel<BYTES, VERIFY, false>;
		if (rc == cudaSuccess)
			rc = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
	});
	if (rc == cudaSuccess)
		rc = cudaFuncSetAttribute(rhh_scatter_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
								  (int) RHH_SCATTER_SHARED);
	return rhh_check(dev, rc, "cudaFuncSetAttribute");
}

/*
 * Makes the context and, by using everything once, whatever threads CUDA
 * starts for it: the caller has signals masked now.
 */
static bool
rhh_warm_up(rhh_device *dev)
{
	rhh_lane   *lane;
	cudaFuncAttributes attr;
	size_t		free_bytes = 0,
				total_bytes = 0;
	rhh_table_spec spec;
	uint64_t	count;
	bool		ok;

	if (!RHH_CUDA(dev, cudaSetDevice, dev->ordinal) ||
		!RHH_CUDA(dev, cudaFree, NULL) ||
		!RHH_CUDA(dev, cudaMemGetInfo, &free_bytes, &total_bytes))
		return false;
	if (dev->limit_bytes == 0)
		dev->limit_bytes = (uint64_t) (free_bytes * RHH_CUDA_FREE_SHARE);

	dev->local_bytes = RHH_CUDA_LOCAL_BYTES;
	if (dev->local_bytes + sizeof(rhh_build_space) > dev->prop.sharedMemPerBlockOptin)
		dev->local_bytes = (uint32_t) (dev->prop.sharedMemPerBlockOptin - sizeof(rhh_build_space));
	if (!rhh_allow_shared(dev, VARIANT_8) || !rhh_allow_shared(dev, VARIANT_8_VERIFY) ||
		!rhh_allow_shared(dev, VARIANT_16))
		return false;

	/* Code made for an older device and translated has no 128-bit CAS either. */
	if (!RHH_CUDA(dev, cudaFuncGetAttributes, &attr,
				  (const void *) rhh_batch_kernel<16, false>))
		return false;
	dev->slot16 = dev->prop.major >= 9 && attr.ptxVersion >= 90;
#ifdef RHH_TEST_NO_SLOT16
	dev->slot16 = false;
#endif

	memset(&spec, 0, sizeof(spec));
	spec.max_batch_rows = 1;
	spec.max_batch_bytes = 1;
	lane = rhh_lane_make(dev);
	if (lane == NULL)
		return false;
	ok = RHH_CUDA(dev, cudaStreamAddCallback, lane->note, rhh_wake_callback,
				  (void *) (intptr_t) dev->event_fd, 0);
	if (ok && rhh_lane_fit(dev, lane, &spec))
	{
		ok = RHH_CUDA(dev, cudaMemsetAsync, lane->ctl, 0, sizeof(rhh_control), lane->run);
		RHH_LAUNCH(rhh_append_end_kernel, 1, 1, 0, lane->run, lane->ctl);
		ok = ok && rhh_launched(dev, "rhh_append_end_kernel") &&
			RHH_CUDA(dev, cudaMemcpyAsync, lane->snapshot, lane->ctl,
					 sizeof(rhh_control), cudaMemcpyDeviceToHost, lane->run) &&
			RHH_CUDA(dev, cudaStreamSynchronize, lane->run);
	}
	ok = ok && !dev->broken && RHH_CUDA(dev, cudaStreamSynchronize, lane->note);
	/* The wake-up was nobody's. */
	while (read(dev->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	rhh_lane_return(dev, lane);
	return ok;
}

static rhh_status
rhh_cuda_open(int32_t ordinal, const rhh_device_config *config, rhh_device **out,
			  rhh_error *err)
{
	rhh_device *dev;
	rhh_device_info info;
	int			count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	*out = NULL;
	if (rc != cudaSuccess || ordinal < 0 || ordinal >= count)
	{
		(void) cudaGetLastError();
		err->status = RHH_NO_DEVICE;
		if (rc != cudaSuccess)
			snprintf(err->message, sizeof(err->message), "no CUDA device: %s",
					 cudaGetErrorString(rc));
		else
			snprintf(err->message, sizeof(err->message),
					 "there is no CUDA device %d", (int) ordinal);
		return RHH_NO_DEVICE;
	}
	dev = (rhh_device *) calloc(1, sizeof(rhh_device));
	if (dev == NULL)
		return rhh_fail(err, RHH_NO_MEMORY, "out of memory");
	dev->ordinal = ordinal;
	dev->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->event_fd < 0)
	{
		free(dev);
		return rhh_fail(err, RHH_NO_MEMORY, "could not create an event descriptor");
	}
	dev->frees = 1;
	dev->limit_bytes = config->memory_limit_bytes;
	dev->look_rows = config->look_rows != 0 ? config->look_rows : RHH_CUDA_LOOK_ROWS;
	if (!RHH_CUDA(dev, cudaGetDeviceProperties, &dev->prop, ordinal))
	{
		rhh_broken(dev, err);
		(void) cudaGetLastError();
		rhh_cuda_close(dev);
		err->status = RHH_NO_DEVICE;
		return RHH_NO_DEVICE;
	}
	rhh_fill_info(&info, ordinal, &dev->prop);
	if (info.state == RHH_STATE_UNUSABLE)
	{
		rhh_cuda_close(dev);
		return rhh_fail(err, RHH_NO_DEVICE, info.reason);
	}
	dev->n_sms = dev->prop.multiProcessorCount;
	dev->max_tiles = (uint32_t) dev->n_sms * RHH_CUDA_BLOCKS_PER_SM *
		(RHH_CUDA_BLOCK_THREADS / RHH_GROUP_LANES);
	/* Counted first: close() takes it back. */
	if (ordinal < RHH_MAX_ORDINALS)
		rhh_open_count[ordinal]++;
	if (!rhh_warm_up(dev))
	{
		if (dev->broken)
			*err = dev->error;
		else
			rhh_fail(err, RHH_NO_MEMORY, "out of memory");
		(void) cudaGetLastError();
		rhh_cuda_close(dev);
		return err->status;
	}
	*out = dev;
	return RHH_OK;
}

static rhh_status
rhh_cuda_info(rhh_device *dev, rhh_device_info *info, rhh_error *err)
{
	size_t		free_bytes = 0,
				total_bytes = 0;

	rhh_fill_info(info, dev->ordinal, &dev->prop);
	info->state = RHH_STATE_OPEN;
	if (!rhh_enter(dev) ||
		!RHH_CUDA(dev, cudaMemGetInfo, &free_bytes, &total_bytes))
		return rhh_broken(dev, err);
	info->free_bytes = free_bytes;
	info->free_known = true;
	return RHH_OK;
}

static rhh_status
rhh_cuda_register_pool(rhh_device *dev, void *base, size_t bytes, rhh_error *err)
{
	struct cudaPointerAttributes known;

	if (!rhh_enter(dev))
		return rhh_broken(dev, err);

	/*
	 * Whole pages only: pinning rounds to pages, and a neighbour's half-pinned
	 * allocation would make its copies fail.
	 */
	if (dev->n_pools == RHH_MAX_POOLS || bytes == 0 ||
		(uintptr_t) base % (uintptr_t) sysconf(_SC_PAGESIZE) != 0)
		return RHH_OK;
	/* another device of this process may have pinned it, for all devices */
	if (cudaPointerGetAttributes(&known, base) == cudaSuccess &&
		known.type != cudaMemoryTypeUnregistered)
		return RHH_OK;
	if (cudaHostRegister(base, bytes, cudaHostRegisterPortable) == cudaSuccess)
		dev->pools[dev->n_pools++] = base;
	else
		(void) cudaGetLastError();
	return RHH_OK;
}

static int
rhh_cuda_event_fd(rhh_device *dev)
{
	return dev->event_fd;
}

/* ---------- the table ---------- */

static const char *
rhh_spec_fault(const rhh_table_spec *spec)
{
	if (spec->n_columns < 1 || spec->n_columns > RHH_MAX_COLUMNS)
		return "invalid number of columns";
	if (spec->n_keys < 1 || spec->n_keys > RHH_MAX_KEYS)
		return "invalid number of keys";
	if (spec->n_states > RHH_MAX_STATES)
		return "invalid number of transition states";
	for (uint32_t c = 0; c < spec->n_columns; c++)
		if (spec->column_bytes[c] != 1 && spec->column_bytes[c] != 2 &&
			spec->column_bytes[c] != 4 && spec->column_bytes[c] != 8 &&
			spec->column_bytes[c] != 16)
			return "invalid width of a column";
	for (uint32_t k = 0; k < spec->n_keys; k++)
		if (spec->key_column[k] >= spec->n_columns)
			return "key column out of range";
	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];

		if (st->op < RHH_COUNT || st->op > RHH_SUM_TWICE_F64)
			return "unknown transition state";
		if (st->arg_column < -1 || st->arg_column >= (int) spec->n_columns ||
			(st->arg_column < 0 && st->op != RHH_COUNT))
			return "argument column out of range";
		if (st->arg_column >= 0 &&
			!rhh_op_takes(st->op, spec->column_bytes[st->arg_column]))
			return "invalid width of an argument";
		if (st->filter_column < -1 || st->filter_column >= (int) spec->n_columns)
			return "filter column out of range";
		if (st->filter_column >= 0 && spec->column_bytes[st->filter_column] != 1)
			return "invalid width of a filter column";
	}
	if (rhh_all_state_words(spec) > RHH_MAX_STATE_WORDS)
		return "too many words of transition states";
	if (spec->max_probe_buckets < 1)
		return "invalid maximum probe distance";
	if (!(spec->load_factor >= 0.5f && spec->load_factor <= 0.95f))
		return "invalid load factor";
	if (spec->max_batch_rows < 1)
		return "invalid size of a batch";
	return NULL;
}

static uint8_t
rhh_init_of(uint64_t start)
{
	return start == 0					 ? RHH_INIT_ZERO :
		start == UINT64_MAX ? RHH_INIT_ONES :
		start == (uint64_t) INT64_MAX ? RHH_INIT_MOST : RHH_INIT_LEAST;
}

static void
rhh_make_program(rhh_program *prog, const rhh_table_spec *spec)
{
	uint32_t	word = 0;

	memset(prog, 0, sizeof(*prog));
	prog->n_columns = (uint8_t) spec->n_columns;
	memcpy(prog->column_bytes, spec->column_bytes, sizeof(prog->column_bytes));
	rhh_key_plan_init(&prog->plan, spec);
	prog->n_states = (uint8_t) spec->n_states;
	for (uint32_t s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *st = &spec->states[s];
		rhh_program_state *out = &prog->states[s];

		out->op = st->op;
		out->arg = st->arg_column;
		out->filter = st->filter_column;
		out->bytes = st->arg_column >= 0 ? spec->column_bytes[st->arg_column] : 0;
		out->word = (uint8_t) word;
		out->n_words = (uint8_t) rhh_state_words(spec, s);
		prog->init[word] = rhh_init_of(rhh_op_start(st->op));
		word += out->n_words;
	}
	prog->n_state_words = (uint8_t) word;
	prog->n_result_words = (uint16_t) rhh_result_words(spec);
	if (prog->plan.form == RHH_KEY_WIDE)
		for (uint32_t k = 0; k < spec->n_keys; k++)
			for (uint32_t w = 0; w < rhh_key_words(spec, k); w++)
				prog->word_key[prog->plan.shift[k] + w] = (uint8_t) k;
}

/* Unlinks it and frees everything; whatever runs is waited for. */
static void
rhh_table_free(rhh_table *t)
{
	rhh_device *dev = t->dev;

	for (rhh_table **p = &dev->tables; *p != NULL; p = &(*p)->next)
		if (*p == t)
		{
			*p = t->next;
			break;
		}
	/* After an error these return at once, with the error. */
	(void) cudaSetDevice(dev->ordinal);
	if (t->lane != NULL)
	{
		RHH_CUDA(dev, cudaStreamSynchronize, t->lane->up);
		RHH_CUDA(dev, cudaStreamSynchronize, t->lane->run);
		RHH_CUDA(dev, cudaStreamSynchronize, t->lane->note);
	}
	rhh_body_free(t, &t->grown);
	rhh_body_free(t, &t->body);
	if (t->lane != NULL)
		rhh_lane_return(dev, t->lane);
	free(t);
}

/* The largest start that fits and is not larger than the estimate asks for. */
static bool
rhh_first_body(rhh_table *t)
{
	double		slots = (double) t->spec.expected_groups / t->spec.load_factor;

	if (slots < RHH_CUDA_START_SLOTS)
		slots = RHH_CUDA_START_SLOTS;
	if (slots > RHH_CUDA_MAX_START_SLOTS)
		slots = RHH_CUDA_MAX_START_SLOTS;
	for (; slots >= RHH_CUDA_MIN_SLOTS; slots /= 2)
	{
		rhh_body_plan(t, (uint32_t) (slots / t->slots_per_bucket), &t->body);
		if (rhh_body_alloc(t, &t->body))
			return true;
		if (t->dev->broken)
			break;
	}
	memset(&t->body, 0, sizeof(t->body));
	return false;
}

static rhh_status
rhh_cuda_table_create(rhh_device *dev, const rhh_table_spec *spec, rhh_table **out,
					  rhh_error *err)
{
	const char *fault = rhh_spec_fault(spec);
	rhh_table  *t;
	rhh_lane   *lane;
	rhh_control start;

	*out = NULL;
	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	if (fault != NULL)
		return rhh_fail(err, RHH_INVALID, fault);
	t = (rhh_table *) calloc(1, sizeof(rhh_table));
	if (t == NULL)
		return rhh_fail(err, RHH_NO_MEMORY, "out of memory");
	t->dev = dev;
	t->spec = *spec;
	t->mode = TABLE_BUILD;
	rhh_make_program(&t->prog, spec);
	for (uint32_t s = 0; s < spec->n_states; s++)
		t->has_i128 = t->has_i128 || spec->states[s].op == RHH_SUM_I128;
	t->zero_states = true;
	for (uint32_t w = 0; w < t->prog.n_state_words; w++)
		t->zero_states = t->zero_states && t->prog.init[w] == RHH_INIT_ZERO;
	if (t->prog.plan.form == RHH_KEY_WIDE ||
		(t->prog.plan.bits > 32 && !dev->slot16))
		t->variant = VARIANT_8_VERIFY;
	else
		t->variant = t->prog.plan.bits > 32 ? VARIANT_16 : VARIANT_8;
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
	if (lane == NULL || !rhh_lane_fit(dev, lane, spec) || !rhh_first_body(t))
	{
		rhh_table_free(t);
		if (dev->broken)
			return rhh_broken(dev, err);
		return rhh_fail(err, RHH_NO_MEMORY,
						"not even the smallest hash table fits the device memory allowed");
	}
	t->stats.capacity_slots = (uint64_t) rhh_slots_of(t, &t->body);

	/* In the order of the stream, before everything else. */
	memset(&start, 0, sizeof(start));
	start.n_numbers = t->prog.plan.form == RHH_KEY_SINGLE ? 1 : 0;
	lane->snapshot[RHH_CUDA_IN_FLIGHT] = start;
	if (!RHH_CUDA(dev, cudaMemcpyAsync, lane->ctl, &lane->snapshot[RHH_CUDA_IN_FLIGHT],
				  sizeof(start), cudaMemcpyHostToDevice, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, lane->reserves, 0,
				  (uint64_t) dev->max_tiles * sizeof(rhh_reserve), lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, lane->sketch, 0,
				  RHH_SKETCH_REGISTERS * sizeof(uint32_t), lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, t->body.memory, 0xFF,
				  (uint64_t) t->body.n_buckets * RHH_LINE_BYTES, lane->run) ||
		!rhh_fill(t, &t->body, 0))
	{
		rhh_table_free(t);
		return rhh_broken(dev, err);
	}
	t->next = dev->tables;
	dev->tables = t;
	*out = t;
	return RHH_OK;
}

static const char *
rhh_batch_fault(const rhh_table_spec *spec, const rhh_batch *batch)
{
	if (batch->base == NULL || (uintptr_t) batch->base % 64 != 0)
		return "batch is not aligned";
	if (batch->n_rows < 1 || batch->n_rows > spec->max_batch_rows ||
		(!batch->on_device && batch->used_bytes > spec->max_batch_bytes))
		return "invalid size of a batch";
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		uint64_t	values_end = batch->values_offset[c] +
			(uint64_t) batch->n_rows * spec->column_bytes[c];
		uint64_t	nulls_end = batch->nulls_offset[c] == 0 ? 0
			: batch->nulls_offset[c] + (batch->n_rows + 7ULL) / 8;

		if (batch->values_offset[c] % 64 != 0 || batch->nulls_offset[c] % 64 != 0)
			return "column of a batch is not aligned";
		if (values_end > batch->used_bytes || nulls_end > batch->used_bytes)
			return "column of a batch is out of range";
	}
	return NULL;
}

/* All rows fail, without a look at them. */
static bool
rhh_refuse_batch(rhh_table *t, int i)
{
	uint8_t    *failed = t->lane->failed + (uint64_t) i * t->lane->failed_bytes;
	rhh_in_flight *f = &t->flights[i];

	f->n_failed = f->batch.n_rows;
	/* Behind whole bytes may be another batch's bitmap. */
	return RHH_CUDA(t->dev, cudaMemsetAsync, failed, 0xFF, f->n_failed / 8, t->lane->run) &&
		(f->n_failed % 8 == 0 ||
		 RHH_CUDA(t->dev, cudaMemsetAsync, failed + f->n_failed / 8,
				  (1 << f->n_failed % 8) - 1, 1, t->lane->run)) &&
		rhh_hand_back(t, i);
}

static rhh_status
rhh_cuda_table_submit(rhh_table *t, const rhh_batch *batch, uint64_t tag, rhh_error *err)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const char *fault;
	rhh_in_flight *f;
	int			i = 0;

	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	if (t->cancelled)
		return rhh_fail(err, RHH_CANCELLED, "the hash table was cancelled");
	if (t->mode != TABLE_BUILD && t->mode != TABLE_DRAIN && t->mode != TABLE_GROWING)
		return rhh_fail(err, RHH_INVALID, "the hash table is finished");
	fault = rhh_batch_fault(&t->spec, batch);
	if (fault != NULL)
		return rhh_fail(err, RHH_INVALID, fault);
	while (i < RHH_CUDA_IN_FLIGHT && t->flights[i].state != BATCH_FREE)
		i++;
	if (i == RHH_CUDA_IN_FLIGHT)
		return rhh_fail(err, RHH_BUSY, "enough batches are in flight");

	f = &t->flights[i];
	f->batch = *batch;
	f->tag = tag;
	f->n_failed = 0;

	/* The halves of a SUM_I128 are exact for so many rows. */
	if (t->has_i128 && t->rows_submitted + batch->n_rows > (uint64_t) 1 << 31)
		return rhh_refuse_batch(t, i) ? RHH_OK : rhh_broken(dev, err);
	t->rows_submitted += batch->n_rows;

	f->state = BATCH_QUEUED;
	f->method = METHOD_UNKNOWN;
	f->looked_at_all = false;
	f->upload_counted = false;
	if (!RHH_CUDA(dev, cudaEventRecord, lane->upload[i], lane->up) ||
		(!batch->on_device &&
		 !RHH_CUDA(dev, cudaMemcpyAsync, lane->staging + (uint64_t) i * lane->staging_bytes,
				   batch->base, batch->used_bytes, cudaMemcpyHostToDevice, lane->up)) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->uploaded[i], lane->up))
		return rhh_broken(dev, err);
	if (!batch->on_device)
		t->stats.uploaded_bytes += batch->used_bytes;
	if ((t->mode == TABLE_BUILD && !rhh_start_batch(t, i)) ||
		(t->mode == TABLE_DRAIN && !rhh_advance(t)))
		return rhh_broken(dev, err);
	return RHH_OK;
}

static bool
rhh_idle(const rhh_table *t)
{
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state != BATCH_FREE)
			return false;
	return true;
}

static rhh_status
rhh_cuda_table_finish(rhh_table *t, rhh_error *err)
{
	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (t->cancelled)
		return rhh_fail(err, RHH_CANCELLED, "the hash table was cancelled");
	if (t->mode != TABLE_BUILD || !rhh_idle(t))
		return rhh_fail(err, RHH_INVALID, "batches are in flight or the hash table is finished");
	if (!rhh_start_finish(t))
		return rhh_broken(t->dev, err);
	return RHH_OK;
}

static rhh_status
rhh_cuda_table_extract(rhh_table *t, rhh_result *result, uint64_t tag, rhh_error *err)
{
	if (!rhh_enter(t->dev))
		return rhh_broken(t->dev, err);
	if (t->cancelled)
		return rhh_fail(err, RHH_CANCELLED, "the hash table was cancelled");
	if (t->mode != TABLE_FINISHED || t->finish_ready || t->extract_ready)
		return rhh_fail(err, RHH_INVALID, "the hash table is not ready for extracting");
	if (result->words == NULL || result->capacity_groups < 1)
		return rhh_fail(err, RHH_INVALID, "no room for a group");
	t->result = result;
	t->extract_tag = tag;
	if (!rhh_start_extract(t))
		return rhh_broken(t->dev, err);
	return RHH_OK;
}

static rhh_status
rhh_cuda_table_rewind(rhh_table *t, rhh_error *err)
{
	if (t->mode != TABLE_FINISHED || t->finish_ready || t->extract_ready)
		return rhh_fail(err, RHH_INVALID, "the hash table is not ready for extracting");
	if (t->n_orphans > 0)
		return rhh_fail(err, RHH_INVALID, "groups without a slot come out once");
	t->n_main_done = 0;
	return RHH_OK;
}

static void
rhh_cuda_table_stats(rhh_table *t, rhh_table_stats *stats)
{
	*stats = t->stats;
}

static void
rhh_cuda_table_cancel(rhh_table *t)
{
	/* A kernel runs to its end, which is near; poll() does the rest. */
	t->cancelled = true;
	rhh_wake_fd(t->dev->event_fd);

	/* Uploads of batches without a kernel have nobody else to tell of them. */
	if (rhh_enter(t->dev))
		for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
			if (t->flights[i].state == BATCH_QUEUED &&
				!rhh_wake_after(t, t->lane->uploaded[i]))
				break;
}

static void
rhh_cuda_table_destroy(rhh_table *t)
{
	rhh_table_free(t);
}

static void
rhh_cuda_close(rhh_device *dev)
{
	while (dev->tables != NULL)
		rhh_table_free(dev->tables);
	(void) cudaSetDevice(dev->ordinal);
	rhh_lanes_drop(dev);
	for (uint32_t i = 0; i < dev->n_pools; i++)
		(void) cudaHostUnregister(dev->pools[i]);
	(void) cudaGetLastError();

	/*
	 * After an error a callback may still be under way with the descriptor's
	 * number, which must not become another file's.  The context stays: it is
	 * the process's, and goes with it.
	 */
	if (!dev->broken)
		close(dev->event_fd);
	if (dev->ordinal < RHH_MAX_ORDINALS && rhh_open_count[dev->ordinal] > 0 &&
		dev->n_sms > 0)
		rhh_open_count[dev->ordinal]--;
	free(dev);
}

const rhh_device_ops rhh_cuda_ops = {
	RHH_KIND_CUDA,
	rhh_cuda_enumerate,
	rhh_cuda_open,
	rhh_cuda_close,
	rhh_cuda_info,
	rhh_cuda_register_pool,
	rhh_cuda_event_fd,
	rhh_cuda_poll,
	rhh_cuda_table_create,
	rhh_cuda_table_submit,
	rhh_cuda_table_finish,
	rhh_cuda_table_extract,
	rhh_cuda_table_rewind,
	rhh_cuda_table_stats,
	rhh_cuda_table_cancel,
	rhh_cuda_table_destroy
};
