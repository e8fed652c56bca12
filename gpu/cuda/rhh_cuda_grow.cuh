/*
 * rhh_cuda_grow.cuh
 *		Growing a map of the CUDA device: whether that would help, how large the new
 *		body is, and moving everything there.
 */
#ifndef RHH_CUDA_GROW_CUH
#define RHH_CUDA_GROW_CUH

#include "cuda/rhh_cuda_batch.cuh"

/*
 * Would growing give the refused rows a place?  Not if the map is far from full: then
 * keys crowd together, and twice as many slots need not spread them.
 */
static bool
rhh_growth_helps(const rhh_map *t)
{
	return t->seen.n_numbers >= t->body.group_cap ||
		(double) t->seen.placed >= rhh_slots_of(t, &t->body) * t->spec.load_factor / 2;
}

static bool
rhh_body_try(rhh_map *t, double slots)
{
	double		buckets = slots / t->slots_per_bucket + 1;

	if (buckets > 2.0e9 / t->slots_per_bucket * 2)
		buckets = 2.0e9 / t->slots_per_bucket * 2;
	if (buckets <= t->body.n_buckets * 1.4)
		return false;
	rhh_body_plan(t, (uint32_t) buckets, &t->grown);
	return rhh_body_alloc(t, &t->grown);
}

/* The map cannot grow: the refused rows go back to the caller, the others go on. */
static bool
rhh_grow_refused(rhh_map *t)
{
	t->mode = MAP_BUILD;
	t->no_memory_at = t->dev->frees;
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state == BATCH_REFUSED && !rhh_hand_back(t, i))
			return false;
	return rhh_launch_queued(t);
}

/* Queues initialising the states of the group numbers from first on. */
static bool
rhh_fill(rhh_map *t, const rhh_body *body, uint64_t first)
{
	uint64_t	n = body->group_cap - first;

	if (t->grouping.n_state_words == 0 || n == 0)
		return true;
	if (t->zero_states)
		return RHH_CUDA(t->dev, cudaMemsetAsync,
						body->memory + body->states_at + first * t->grouping.n_state_words * 8, 0,
						n * t->grouping.n_state_words * 8, t->lane->run);
	RHH_LAUNCH(rhh_fill_kernel, rhh_blocks(t->dev,
										   n * t->grouping.n_state_words), RHH_CUDA_BLOCK_THREADS, 0, t->lane->run,
			   t->grouping, (uint64_t *) (body->memory + body->states_at), first, n);
	return rhh_launched(t->dev, "rhh_fill_kernel");
}

/*
 * Makes a larger body and queues moving everything there, while no kernel is in flight.
 * The old body is only read, and stays the map's until the rehash is known to have ended
 * well.
 */
static bool
rhh_grow(rhh_map *t)
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

	/* If a batch has been looked at its groups are known; else each row may be one. */
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state == BATCH_REFUSED && !t->flights[i].looked_at_all)
			need += t->flights[i].n_refused;
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

	t->mode = MAP_GROWING;
	if (n_numbers > t->body.group_cap)
		n_numbers = t->body.group_cap;
	view = rhh_view_of(t, &t->grown, list);
	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, t->grown.memory, 0xFF,
				  (uint64_t) t->grown.n_buckets * RHH_LINE_BYTES, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, view.n_orphans, 0, sizeof(uint32_t), lane->run) ||
		!RHH_CUDA(dev, cudaMemcpyAsync, view.states,
				  t->body.memory + t->body.states_at,
				  n_numbers * t->grouping.n_state_words * 8,
				  cudaMemcpyDeviceToDevice, lane->run) ||
		!rhh_fill(t, &t->grown, n_numbers))
		return false;
	if (t->variant == VARIANT_8_VERIFY &&
		!RHH_CUDA(dev, cudaMemcpyAsync, view.keys, t->body.memory + t->body.keys_at,
				  n_numbers * t->grouping.plan.n_words * 8,
				  cudaMemcpyDeviceToDevice, lane->run))
		return false;
	RHH_BY_VARIANT(t->variant,
				   RHH_LAUNCH((rhh_rehash_kernel<BYTES, VERIFY>),
							  rhh_blocks(dev, (uint64_t) t->body.n_buckets * RHH_GROUP_LANES), RHH_CUDA_BLOCK_THREADS, 0, lane->run,
							  t->grouping, view, rhh_view_of(t,
															 &t->body, t->orphan_list), lane->orphans[t->orphan_list], n_orphans));
	t->launches++;
	return rhh_launched(dev, "rhh_rehash_kernel") &&
		rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

/* The rehash has ended: the new body replaces the old one, if all is well. */
static bool
rhh_grown(rhh_map *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	const rhh_control *snapshot = &lane->snapshot[RHH_CUDA_IN_FLIGHT];

	rhh_add_time(t, lane->step.start, lane->step.stop, &t->stats.kernel_ns);
	if (snapshot->overrun)
	{
		/*
		 * There are more orphans than their list can hold, because max_probe_buckets
		 * is tiny and the sizes do not divide.  Keep the old body and its list.
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
	t->mode = MAP_BUILD;
	rhh_see(t, snapshot, t->launches);
	if (dev->broken)
		return false;
	for (int i = 0; i < RHH_CUDA_IN_FLIGHT; i++)
		if (t->flights[i].state == BATCH_REFUSED && !rhh_launch_batch(t, i, true))
			return false;
	return rhh_launch_queued(t);
}

#endif							/* RHH_CUDA_GROW_CUH */
