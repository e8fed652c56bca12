/*
 * rhh_cuda_memory.cuh
 *		The CUDA device's memory: lanes, which go from one map to the next; bodies,
 *		which count towards the limits on memory and are replaced when a map grows.
 */
#ifndef RHH_CUDA_MEMORY_CUH
#define RHH_CUDA_MEMORY_CUH

#include "cuda/rhh_cuda_cache.cuh"
#include "cuda/rhh_cuda_device.cuh"

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

/* Frees a lane, of which parts may be missing; errors no longer matter. */
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
	if (lane->copied)
		cudaEventDestroy(lane->copied);
	if (lane->up)
		cudaStreamDestroy(lane->up);
	if (lane->make)
		cudaStreamDestroy(lane->make);
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

/* Makes a lane without fixed memory. */
static rhh_lane *
rhh_lane_make(rhh_device *dev)
{
	rhh_lane   *lane = (rhh_lane *) calloc(1, sizeof(rhh_lane));
	bool		ok;

	if (lane == NULL)
		return NULL;
	ok = RHH_CUDA(dev, cudaStreamCreateWithFlags, &lane->up, cudaStreamNonBlocking) &&
		RHH_CUDA(dev, cudaStreamCreateWithFlags, &lane->make, cudaStreamNonBlocking) &&
		RHH_CUDA(dev, cudaEventCreateWithFlags, &lane->copied, cudaEventDisableTiming) &&
		/* before kernels that read pages, which wait for the bus most of the time */
		RHH_CUDA(dev, cudaStreamCreateWithPriority, &lane->run, cudaStreamNonBlocking, -1) &&
		RHH_CUDA(dev, cudaStreamCreateWithFlags, &lane->note, cudaStreamNonBlocking) &&
		RHH_CUDA(dev, cudaHostAlloc, (void **) &lane->snapshot,
				 (RHH_CUDA_IN_FLIGHT + 1) * sizeof(rhh_control) +
				 RHH_CUDA_IN_FLIGHT * sizeof(rhh_page_notes), cudaHostAllocDefault) &&
		rhh_step_events_make(dev, &lane->step);
	lane->page_notes = (rhh_page_notes *) (lane->snapshot + RHH_CUDA_IN_FLIGHT + 1);
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
 * Allocates device memory.  False, and *memory is NULL: there is none, or the device is
 * broken.
 */
static bool
rhh_malloc(rhh_device *dev, uint8_t **memory, uint64_t bytes)
{
	cudaError_t rc;

	bytes = rhh_rounded_bytes(bytes);
	*memory = rhh_take_spare(dev, bytes);
	if (*memory != NULL)
		return true;
	/* the limit is meant for all of it */
	if (dev->counted_bytes + dev->spare_bytes + bytes > dev->limit_bytes)
		(void) rhh_drop_spares(dev);
	rc = cudaMalloc((void **) memory, bytes);
	if (rc == cudaErrorMemoryAllocation && rhh_drop_spares(dev))
	{
		(void) cudaGetLastError();
		rc = cudaMalloc((void **) memory, bytes);
	}
	while (rc == cudaErrorMemoryAllocation && rhh_take_slab(dev))
	{
		(void) cudaGetLastError();
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
 * Gives a lane fixed memory for the batches of a spec.  False: there is not enough
 * memory, or the device is broken.
 */
static bool
rhh_lane_fit(rhh_device *dev, rhh_lane *lane, const rhh_map_spec *spec)
{
	/* behind columns that are made of pages is what is known of these */
	uint64_t	staging = spec->max_page_bytes == 0 ? rhh_align(spec->max_batch_bytes)
		: rhh_align(::max(spec->max_batch_bytes, spec->max_page_bytes)) + rhh_align(spec->max_batch_bytes);
	uint64_t	refused = rhh_align((spec->max_batch_rows + 31ULL) / 32 * 4);
	uint64_t	control = rhh_align(sizeof(rhh_control));
	uint64_t	reserves = rhh_align((uint64_t) dev->max_tiles * sizeof(rhh_reserve));
	uint64_t	orphans = rhh_align((uint64_t) rhh_orphan_cap(dev) * sizeof(rhh_orphan));
	uint64_t	looks = rhh_align((RHH_SKETCH_REGISTERS + RHH_CUDA_IN_FLIGHT * RHH_PASS_PARTS) *
								  sizeof(uint32_t) + RHH_CUDA_IN_FLIGHT * sizeof(rhh_page_counts));
	uint64_t	bytes;
	uint8_t    *p;

	if (staging < RHH_CUDA_MIN_STAGING_BYTES)
		staging = RHH_CUDA_MIN_STAGING_BYTES;
	bytes = RHH_CUDA_IN_FLIGHT * (staging + refused) + control + reserves + 2 * orphans + looks;
	if (!rhh_malloc(dev, &lane->fixed, bytes))
		return false;
	lane->fixed_bytes = bytes;
	p = lane->fixed;
	lane->staging = p;
	lane->staging_bytes = staging;
	p += RHH_CUDA_IN_FLIGHT * staging;
	lane->refused = p;
	lane->refused_bytes = refused;
	p += RHH_CUDA_IN_FLIGHT * refused;
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
	lane->page_counts = (rhh_page_counts *) (lane->sketch + RHH_SKETCH_REGISTERS + RHH_CUDA_IN_FLIGHT * RHH_PASS_PARTS);
	return true;
}

/* Takes a lane back from a map that has nothing in flight. */
static void
rhh_lane_return(rhh_device *dev, rhh_lane *lane)
{
	if (lane->fixed != NULL)
		rhh_give_spare(dev, lane->fixed, lane->fixed_bytes);
	if (lane->workspace != NULL)
		rhh_give_spare(dev, lane->workspace, lane->workspace_bytes);
	lane->fixed = lane->workspace = NULL;
	lane->fixed_bytes = lane->workspace_bytes = 0;
	if (dev->broken || dev->n_lanes >= RHH_CUDA_KEPT_LANES)
	{
		rhh_lane_free(lane);
		return;
	}
	lane->next = dev->lanes;
	dev->lanes = lane;
	dev->n_lanes++;
}

/* The rows of a batch that was uploaded, or lies on the device, as kernels see them. */
static rhh_rows
rhh_batch_rows(const rhh_map *t, int i)
{
	rhh_lane   *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	rhh_rows	rows;

	rows.base = batch->on_device ? batch->base
		: lane->staging + (uint64_t) i * lane->staging_bytes;
	rows.refused = (uint32_t *) (lane->refused + (uint64_t) i * lane->refused_bytes);
	rows.n_refused = &lane->ctl->refused[i];
	rows.ids = NULL;
	rows.byte_nulls = batch->n_pages > 0;
	rows.n_rows = batch->n_rows;
	rows.n_known = NULL;
	memcpy(rows.values_offset, batch->values_offset, sizeof(rows.values_offset));
	memcpy(rows.nulls_offset, batch->nulls_offset, sizeof(rows.nulls_offset));
	return rows;
}

/* ---------- memory that counts towards the limits ---------- */

/* Has the map, and have all maps together, room for so many bytes?  What is cached gives way. */
static bool
rhh_within_limits(const rhh_map *t, uint64_t bytes)
{
	return (t->spec.memory_limit_bytes == 0 ||
			t->stats.bytes + bytes <= t->spec.memory_limit_bytes) &&
		t->dev->counted_bytes + bytes <= t->dev->limit_bytes;
}

/*
 * Allocates memory for a map and counts it.  False, and *memory is NULL: it would exceed
 * a limit, or there is none, or the device is broken.
 */
static bool
rhh_counted_malloc(rhh_map *t, uint8_t **memory, uint64_t bytes)
{
	rhh_device *dev = t->dev;

	*memory = NULL;
	if (!rhh_within_limits(t, bytes))
		return false;
	while (dev->counted_bytes + rhh_slabs_bytes(dev) + bytes > dev->limit_bytes)
		if (!rhh_take_slab(dev))
			return false;
	if (!rhh_malloc(dev, memory, bytes))
		return false;
	t->dev->counted_bytes += bytes;
	t->stats.bytes += bytes;
	if (t->stats.bytes > t->stats.peak_bytes)
		t->stats.peak_bytes = t->stats.bytes;
	return true;
}

/* Gives such memory back, if there is any.  Nothing that uses it is queued any more. */
static void
rhh_counted_free(rhh_map *t, uint8_t *memory, uint64_t bytes)
{
	if (memory == NULL)
		return;
	rhh_give_spare(t->dev, memory, bytes);
	t->dev->counted_bytes -= bytes;
	t->stats.bytes -= bytes;
	t->dev->frees++;
}

/* ---------- bodies ---------- */

static double
rhh_slots_of(const rhh_map *t, const rhh_body *body)
{
	return (double) body->n_buckets * t->slots_per_bucket;
}

/* Says where everything is in a body of n_buckets; allocates nothing. */
static void
rhh_body_plan(const rhh_map *t, uint32_t n_buckets, rhh_body *body)
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
	at += rhh_align((uint64_t) body->group_cap * t->grouping.n_state_words * 8);
	body->keys_at = at;
	if (t->variant == VARIANT_8_VERIFY)
		at += rhh_align((uint64_t) body->group_cap * t->grouping.plan.n_words * 8);
	body->dead_at = at;
	at += rhh_align((body->group_cap + 31ULL) / 32 * 4);
	body->bytes = at;
}

/* Allocates the memory of a body.  False: it would exceed a limit, or there is none. */
static bool
rhh_body_alloc(rhh_map *t, rhh_body *body)
{
	return rhh_counted_malloc(t, &body->memory, body->bytes);
}

static void
rhh_body_free(rhh_map *t, rhh_body *body)
{
	rhh_counted_free(t, body->memory, body->bytes);
	memset(body, 0, sizeof(*body));
}

/* The map as kernels see it, with the given body and the given list of orphans. */
static rhh_view
rhh_view_of(const rhh_map *t, const rhh_body *body, uint32_t orphan_list)
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

/* Allocates the first body, as large as the estimate asks for, or smaller until it fits. */
static bool
rhh_first_body(rhh_map *t)
{
	double		slots = (double) t->spec.expected_groups * RHH_CUDA_START_SLACK / t->spec.load_factor;

	if (slots < RHH_CUDA_START_SLOTS)
		slots = RHH_CUDA_START_SLOTS;
	if (slots > RHH_CUDA_MAX_START_SLOTS)
		slots = RHH_CUDA_MAX_START_SLOTS;
	for (; slots >= RHH_CUDA_MIN_SLOTS; slots *= RHH_CUDA_START_LESS)
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

#endif							/* RHH_CUDA_MEMORY_CUH */
