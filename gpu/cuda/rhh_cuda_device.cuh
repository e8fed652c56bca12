/*
 * rhh_cuda_device.cuh
 *		What the parts of the CUDA device share: the structs of a device, its
 *		maps, their lanes and bodies; errors and how they break the device; waking
 *		the caller; and the steps that are queued in the streams of a lane.
 *
 * The parts are the files rhh_cuda_*.cuh.  They are compiled as one translation unit,
 * rhh_cuda.cu, which describes the lifetimes and the states at its head.  One unit,
 * because the kernels are static: each unit would have copies of its own, and what
 * cudaFuncSetAttribute sets for one copy would not hold for the others.
 */
#ifndef RHH_CUDA_DEVICE_CUH
#define RHH_CUDA_DEVICE_CUH

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rhh_device.h"
#include "cuda/rhh_cuda_tuning.h"
#include "cuda/rhh_probe.cuh"
#include "cuda/rhh_programs.cuh"
#include "cuda/rhh_kept.cuh"
#include "cuda/rhh_kernels.cuh"
#include "cuda/rhh_read_pages.cuh"

#define RHH_MAX_POOLS 8
#define RHH_MAX_ORDINALS 64

enum rhh_batch_state
{
	BATCH_FREE,
	BATCH_READING,
	BATCH_QUEUED,
	BATCH_LOOKING,
	BATCH_RUNNING,
	BATCH_REFUSED,
	BATCH_COPYBACK,
	BATCH_READY
};

/* How a batch is aggregated; see rhh_aggregate.cuh. */
enum rhh_method
{
	METHOD_UNKNOWN,
	METHOD_ROWS,				/* each row goes through the map by itself */
	METHOD_LOCAL,				/* in shared memory, rows in their own order */
	METHOD_PARTS				/* in shared memory, rows sorted into parts */
};

enum rhh_map_mode
{
	MAP_BUILD,
	MAP_DRAIN,
	MAP_GROWING,
	MAP_FINISHING,
	MAP_FINISHED,
	MAP_EXTRACTING
};

/* The bytes of a slot and whether keys are verified: kernels exist for three pairs. */
enum rhh_variant
{
	VARIANT_8,
	VARIANT_8_VERIFY,
	VARIANT_16
};

/* Runs a statement in which BYTES and VERIFY are those of the variant. */
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

/* A pair of events to time a step, and one for its end. */
struct rhh_step_events
{
	cudaEvent_t start;
	cudaEvent_t stop;
	cudaEvent_t done;
};

/* Memory that is kept for the next map, and its bytes. */
struct rhh_spare
{
	uint8_t    *memory;
	uint64_t	bytes;
};

struct rhh_lane
{
	rhh_lane   *next;			/* kept lanes */
	cudaStream_t up;
	cudaStream_t make;			/* kernels that make columns of pages which one in `up` has copied */
	cudaStream_t run;
	cudaStream_t note;
	cudaEvent_t copied;			/* the last pages of these */
	cudaEvent_t upload[RHH_CUDA_IN_FLIGHT]; /* before a batch's copy, for its time */
	cudaEvent_t uploaded[RHH_CUDA_IN_FLIGHT];
	rhh_step_events batch[RHH_CUDA_IN_FLIGHT];
	rhh_step_events step;		/* growth, finish, extract */
	rhh_control *snapshot;		/* pinned; one a batch, the last for steps */
	rhh_page_notes *page_notes; /* behind these; one a batch */

	/* The fixed memory, and where its parts are. */
	uint8_t    *fixed;
	uint64_t	fixed_bytes;
	uint8_t    *staging;		/* RHH_CUDA_IN_FLIGHT * staging_bytes */
	uint64_t	staging_bytes;
	uint8_t    *refused;		/* RHH_CUDA_IN_FLIGHT * refused_bytes */
	uint64_t	refused_bytes;
	rhh_control *ctl;
	rhh_reserve *reserves;
	rhh_orphan *orphans[2];
	uint32_t   *sketch;			/* of the map's batches */
	uint32_t   *counts[RHH_CUDA_IN_FLIGHT]; /* rows of parts, by looking */
	rhh_page_counts *page_counts;	/* of each batch whose pages find their places as they are read */

	/* For partitioning; one batch after the other uses it. */
	uint8_t    *workspace;
	uint64_t	workspace_bytes;
};

/* The slots, states, keys and marks of dead groups, in one allocation. */
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

struct rhh_spill;

struct rhh_in_flight
{
	rhh_batch_state state;
	rhh_status	status;
	rhh_batch	batch;
	uint64_t	tag;
	uint8_t    *refused_to;		/* the caller's bitmap of refused rows */
	rhh_map    *source;			/* of whose groups the rows are made; NULL: of none */
	uint64_t	launch;			/* number of its last launch */
	uint32_t	n_refused;		/* rows that are to be handed back */
	rhh_method	method;
	double		groups;			/* estimate of its groups, for aggregating it */
	uint32_t	part_bits;		/* METHOD_PARTS */
	bool		looked_at_all;	/* all rows were looked at, not only a sample */
	bool		upload_counted; /* its time is in the statistics */
	uint32_t	n_bad_pages;
	uint32_t	n_dropped;		/* rows of its pages */
	bool		recounted;		/* some of these are read once more, after the host has counted */
	bool		kept;			/* of all pages there will be copies in the cache */
	bool		told;			/* what is known of pages of the cache the caller has, too */
	uint64_t	limb_columns;	/* of its pages, of which the kernel notes whether they are not 0 */

	/* With joins: the piece of its output that is being made.  See rhh_cuda_join.cuh. */
	rhh_position at;			/* where the piece begins */
	uint32_t	stage;			/* the first stage that has to be done for it ... */
	bool		counted;		/* ... of which the output has been counted */
	uint32_t	piece_rows;		/* that its pieces, and what fans out before them, may have */
	uint32_t	most_rows;		/* of the piece */
	uint32_t	n_returned;		/* of the refused rows: handed back with this event */
	bool		refuse_all;		/* the map does not take its rows, or cannot */
	rhh_spill  *spill;			/* that its piece makes; NULL: none */
	bool		more;			/* for the event: at is where to go on */
};

/* Refused rows of a piece, for which the batch had no room; see rhh_cuda_join.cuh. */
struct rhh_spill
{
	rhh_spill  *next;
	uint32_t	n_rows;
	uint32_t	n_returned;		/* the first so many have been handed back */
	bool		complete;		/* they have all come from the device */
	uint8_t		rows[];			/* as rhh_output_values() of n_rows says */
};

/* The rows that a map keeps; see rhh_kept.cuh. */
struct rhh_kept
{
	rhh_kept_view view;
	rhh_record_layout layout;
	uint8_t    *table;			/* view.segments */
	uint8_t    *segments[RHH_MAX_SEGMENTS];
	uint32_t	n_segments;
	uint32_t	room;			/* rows that the segments hold */
	bool		full;			/* rows may have been refused: there will not be more room */

	uint8_t    *index;			/* slots */
	uint64_t	index_bytes;
	uint8_t    *lists;
	uint64_t	lists_bytes;
	uint8_t    *matched;		/* RHH_SHARE_MATCHES: rhh_join_step's of all maps that are joined
								 * with these rows; NULL: none is yet */
	uint8_t    *scratch;		/* while lists are made */
	uint64_t	scratch_bytes;
};

/* The joins of a map; see rhh_cuda_join.cuh. */
struct rhh_joins
{
	rhh_join_spec spec;
	rhh_join_plan plan;
	bool		has_program;	/* in the plan */
	bool		probes;			/* the probe kernel does them, by this: */
	rhh_probe	probe;
	uint32_t	n_stages;
	uint32_t	begin[RHH_MAX_JOINS + 1];	/* first join of each stage, and their number */
	bool		last_fans_out;	/* the last stage; all before it do */
	uint32_t	piece_rows;		/* the most that a piece has */

	uint8_t    *memory;
	uint64_t	bytes;
	uint8_t    *flights;		/* in it: for each batch in flight ... */
	uint64_t	flight_bytes;
	uint64_t	tuples_at[RHH_MAX_JOINS][RHH_MAX_SIDES];	/* ... tuples that come into a
															 * stage, and what it adds; 0:
															 * they are not kept */
	uint64_t	before_at[RHH_MAX_JOINS];
	uint64_t	blocks_before_at[RHH_MAX_JOINS];
	uint64_t	bad_at;			/* ... with a program: bitmap of bad rows, and */
	uint64_t	bad_list_at;	/* ... room for numbers of rows, to sort these out */
	uint64_t	columns_at;		/* ... the map's columns */
	uint32_t	values_at[RHH_MAX_COLUMNS];
	uint32_t	nulls_at[RHH_MAX_COLUMNS];
	uint8_t    *gathered;		/* refused rows, of one batch after the other */
	rhh_spill  *spills;			/* those that have to wait, in order */
	bool		small_pieces;	/* a piece has no more rows than its batch has room for refused ones */
	uint8_t    *matched;		/* which rows of build sides have a match; NULL: nobody asks */
	uint64_t	matched_bytes;
	uint32_t	unmatched;		/* rhh_batch's of the batch that came last */
};

struct rhh_map
{
	rhh_device *dev;
	rhh_map    *next;
	rhh_lane   *lane;
	rhh_map_spec spec;
	rhh_grouping grouping;
	rhh_variant variant;
	uint32_t	slots_per_bucket;
	uint32_t	slot_bytes;
	bool		has_i128;
	bool		zero_states;	/* all words of a new group's states are zero */

	rhh_map_mode mode;
	bool		cancelled;
	rhh_in_flight flights[RHH_CUDA_IN_FLIGHT];
	uint64_t	launches;
	uint64_t	seen_launch;	/* the launch after which seen was taken */
	rhh_control seen;			/* the newest snapshot */

	rhh_body	body;
	rhh_body	grown;			/* while GROWING */
	uint32_t	orphan_list;	/* which of the two is current */
	uint64_t	no_memory_at;	/* dev->frees when there was last no memory */

	/* Where rows of another map's groups are made, for one piece at a time. */
	uint8_t    *feed_memory;
	uint64_t	feed_bytes;
	uint64_t	no_feed_memory_at;	/* as no_memory_at */
	bool		feeding;		/* a piece is there */

	rhh_kept   *kept;			/* RHH_KEEP_ROWS, else NULL */
	rhh_joins  *joins;			/* NULL: none */
	bool		had_joins;		/* map_join was called */
	uint32_t   *slab_uses;		/* by batches that are to come again; NULL: there are none */
	bool		fed;			/* has been given rows */

	uint64_t	rows_submitted;
	uint64_t	estimate;		/* of the groups, by looking; 0: has not looked */
	uint64_t	n_entering;		/* launches that entered groups; 0: map is empty */

	/* Extracting. */
	rhh_group_filter filter;
	bool		finish_ready;
	rhh_status	finish_status;
	bool		extract_ready;
	rhh_result *result;
	uint64_t	extract_tag;
	const uint8_t *list;		/* the live slots, compacted */
	uint64_t	n_main;			/* compacted slots and the NULL group */
	uint64_t	n_main_done;
	uint32_t	n_orphans;
	uint32_t	n_orphans_done;
	uint32_t	n_extracting;

	double		page_rows;		/* rows that a page of the last batch of pages had; 0: there was none */
	rhh_map_stats stats;
};

struct rhh_device
{
	int			ordinal;
	int			event_fd;
	cudaStream_t ahead;			/* copies of which pages batches have, while those of batches before are read */
	cudaEvent_t copied;			/* the last one of these */
	int			n_sms;
	uint32_t	max_tiles;		/* of a launch */
	uint32_t	look_rows;
	uint64_t	carry_bytes;	/* see rhh_device_config */
	uint32_t	local_bytes;	/* of shared memory for a local table */
	bool		slot16;
	cudaDeviceProp prop;

	rhh_map    *maps;
	rhh_lane   *lanes;			/* kept */
	uint32_t	n_lanes;
	rhh_spare	spares[RHH_CUDA_MOST_SPARES];	/* the one that came first comes first */
	uint32_t	n_spares;
	uint64_t	spare_bytes;	/* of all of them */
	uint64_t	limit_bytes;
	uint64_t	counted_bytes;	/* bodies and feed memory of all maps */
	uint64_t	frees;			/* counts allocations that were freed */

	void	   *pools[RHH_MAX_POOLS];
	uint32_t	n_pools;

	/* memory of the host that has pages; see rhh_cuda_pages.cuh */
	uint8_t    *pages;
	uint32_t	n_pages;
	uint8_t    *slices;			/* 1: registered */
	uint32_t	n_slices;
	cudaError_t pages_failed;	/* of one that could not be; then nothing is tried any more */

	/* copies of pages; see rhh_cuda_cache.cuh */
	uint8_t    *slabs[RHH_MAX_SLABS];
	uint32_t	n_slabs;		/* of these, that there are */
	uint32_t	slab_uses[RHH_MAX_SLABS];	/* by batches in flight, and those that are to come again */
	uint8_t		slab_lost[RHH_MAX_SLABS];	/* and the caller does not know yet */
	uint8_t   **slab_table;		/* the device's copy of slabs; NULL: there has been none */

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
 * Wakes the caller; called by a thread of CUDA's.  It is queued by
 * cudaStreamAddCallback, not by cudaLaunchHostFunc, because only the former calls it
 * after an error too, and the caller has to wake up to hear of the error.
 */
static void CUDART_CB
rhh_wake_callback(cudaStream_t stream, cudaError_t rc, void *arg)
{
	(void) stream;
	(void) rc;
	rhh_wake_fd((int) (intptr_t) arg);
}

/* Breaks the device.  Only the first error is kept: later ones are its consequences. */
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

/* Every call does this first, because the thread may drive other devices too. */
static bool
rhh_enter(rhh_device *dev)
{
	return !dev->broken && RHH_CUDA(dev, cudaSetDevice, dev->ordinal);
}

/* ---------- launching ---------- */

/* The blocks for the work of so many threads, at most as many as may be alive at once. */
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

/* Queues waking the caller when an event of the lane is reached. */
static bool
rhh_wake_after(rhh_map *t, cudaEvent_t done)
{
	rhh_device *dev = t->dev;

	return RHH_CUDA(dev, cudaStreamWaitEvent, t->lane->note, done, 0) &&
		RHH_CUDA(dev, cudaStreamAddCallback, t->lane->note, rhh_wake_callback,
				 (void *) (intptr_t) dev->event_fd, 0);
}

/* Ends a step in run: queues copying the counters, the event, and waking the caller. */
static bool
rhh_end_step(rhh_map *t, rhh_step_events *ev, rhh_control *snapshot)
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

/* Adds the time between two events, which must both have been reached, to *ns. */
static void
rhh_add_time(rhh_map *t, cudaEvent_t start, cudaEvent_t stop, uint64_t *ns)
{
	float		ms = 0;

	if (RHH_CUDA(t->dev, cudaEventElapsedTime, &ms, start, stop))
		*ns += (uint64_t) (ms * 1e6f);
}

/*
 * Takes over the counters of a snapshot, unless they are older than those seen: steps
 * end in the order of their launches, but poll() may look at them in another order.
 */
static void
rhh_see(rhh_map *t, const rhh_control *snapshot, uint64_t launch)
{
	if (launch < t->seen_launch)
		return;
	t->seen = *snapshot;
	t->seen_launch = launch;
	t->stats.failed_slots = t->seen.cap_hits;
	t->stats.merged_duplicates = t->seen.merged;
	t->stats.orphans = t->seen.orphans[t->orphan_list];
	t->stats.groups = t->seen.placed + t->seen.null_seen;
	if (t->kept != NULL)
	{
		t->stats.rows = t->seen.kept < t->kept->room ? t->seen.kept : t->kept->room;
		t->stats.dropped_rows = t->seen.dropped;
	}
	memcpy(t->stats.joined_rows, t->seen.joined, sizeof(t->stats.joined_rows));
	t->stats.filtered_rows = t->seen.filtered;
	t->stats.bad_candidates = t->seen.bad_candidates;
	t->stats.probe_buckets_sum = t->seen.probe_sum;
	t->stats.probe_buckets_max = t->seen.probe_max;
	if (t->seen.overrun && t->mode != MAP_GROWING)
		rhh_break(t->dev, "the list of displaced entries ran over");
}

#endif							/* RHH_CUDA_DEVICE_CUH */
