/*
 * rhh_cuda_finish.cuh
 *		Finishing a map of the CUDA device, reading it and ending it: orphans are merged
 *		into the groups of their keys, live slots are compacted, and groups are extracted;
 *		in the end a map gives its memory back.
 */
#ifndef RHH_CUDA_FINISH_CUH
#define RHH_CUDA_FINISH_CUH

#include "cuda/rhh_cuda_join.cuh"
#include "cuda/rhh_cuda_keep.cuh"
#include "cuda/rhh_cuda_memory.cuh"

/* Queues merging the orphans into groups with a slot, then among themselves. */
static bool
rhh_reconcile(rhh_map *t, const rhh_view *view)
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
								  RHH_CUDA_BLOCK_THREADS, 0, run, t->grouping, *view, n_orphans));
		if (!rhh_launched(dev, "rhh_reconcile_kernel") ||
			!RHH_CUDA(dev, cudaMemsetAsync, &view->ctl->orphans[list], 0,
					  sizeof(uint32_t), run))
			return false;
		RHH_BY_VARIANT(t->variant,
					   RHH_LAUNCH((rhh_orphans_kernel<BYTES, VERIFY>), blocks,
								  RHH_CUDA_BLOCK_THREADS, 0, run,
								  t->grouping, *view, n_orphans, t->lane->orphans[list], &view->ctl->orphans[list]));
		if (!rhh_launched(dev, "rhh_orphans_kernel"))
			return false;
		t->orphan_list = list;
	}
	return true;
}

/* Queues reconciling and compacting. */
static bool
rhh_start_finish(rhh_map *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_view	view = rhh_view_of(t, &t->body, t->orphan_list);
	uint64_t	n_slots = (uint64_t) view.n_buckets * t->slots_per_bucket;
	uint8_t    *scratch = lane->staging;
	uint64_t	chunk = RHH_CUDA_IN_FLIGHT * lane->staging_bytes / t->slot_bytes;
	bool		probe_stats = (t->spec.flags & RHH_WANT_PROBE_STATS) != 0;
	rhh_group_filter filter = t->filter;

	/* of a group that is here other rows may have been refused; orphans are merged before */
	if (t->stats.refused_rows > 0)
		filter.n = 0;
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
								  RHH_CUDA_BLOCK_THREADS, 0, lane->run, t->grouping, view, filter,
								  first, n, scratch, probe_stats));
		if (t->list != scratch)
			RHH_LAUNCH(rhh_append_kernel, rhh_blocks(dev, n), RHH_CUDA_BLOCK_THREADS, 0,
					   lane->run, view.ctl, (uint64_t *) view.slots,
					   (const uint64_t *) scratch, t->slot_bytes / 8);
		RHH_LAUNCH(rhh_append_end_kernel, 1, 1, 0, lane->run, view.ctl);
		if (!rhh_launched(dev, "rhh_compact_kernel"))
			return false;
	}
	t->mode = MAP_FINISHING;
	t->launches++;
	return rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

/* Reconciling and compacting have ended. */
static void
rhh_finished(rhh_map *t)
{
	rhh_add_time(t, t->lane->step.start, t->lane->step.stop, &t->stats.kernel_ns);
	rhh_see(t, &t->lane->snapshot[RHH_CUDA_IN_FLIGHT], t->launches);
	t->n_main = t->seen.live + t->seen.null_seen;
	t->n_orphans = t->seen.orphans[t->orphan_list];
	t->stats.groups = t->n_main + t->seen.left_out; /* the orphans are counted apart */
	t->stats.left_out = t->seen.left_out;
	t->mode = MAP_FINISHED;
	t->finish_ready = true;
}

/*
 * Queues a kernel, in the stream of map t, that writes the words of n groups of a
 * finished map, orphans or compacted slots, as columns of stride words.  t is the
 * map itself, or one that is fed its groups.
 */
static bool
rhh_launch_extract(rhh_map *t, rhh_map *source, bool orphans, uint64_t first, uint32_t n,
				   uint64_t *words, uint32_t stride)
{
	rhh_device *dev = t->dev;
	uint64_t	null_at = source->seen.null_seen ? source->n_main - 1 : UINT64_MAX;
	rhh_view	view = rhh_view_of(source, &source->body, source->orphan_list);

	RHH_BY_VARIANT(source->variant,
				   RHH_LAUNCH((rhh_extract_kernel<BYTES, VERIFY>), rhh_blocks(dev, n),
							  RHH_CUDA_BLOCK_THREADS, 0, t->lane->run, source->grouping, view,
							  source->list, orphans, first, n, null_at, words, stride));
	return rhh_launched(dev, "rhh_extract_kernel");
}

/* Queues the next orphans, or once they are out, groups of the compacted slots. */
static bool
rhh_start_extract(rhh_map *t)
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
	uint64_t	piece = scratch_words / t->grouping.n_result_words;

	if (piece > n)
		piece = n;
	t->n_extracting = n;
	t->mode = MAP_EXTRACTING;
	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run))
		return false;
	for (uint32_t done = 0; done < n; done += (uint32_t) piece)
	{
		uint32_t	m = n - done < piece ? n - done : (uint32_t) piece;

		if (!rhh_launch_extract(t, t, orphans, first + done, m, (uint64_t *) lane->staging,
								(uint32_t) piece) ||
			!RHH_CUDA(dev, cudaMemcpy2DAsync, result->words + done,
					  (size_t) result->capacity_groups * 8, lane->staging,
					  piece * 8, (size_t) m * 8, t->grouping.n_result_words,
					  cudaMemcpyDeviceToHost, lane->run))
			return false;
	}
	t->launches++;
	return rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

/* The extraction has ended: fills in the rest of the result. */
static void
rhh_extracted(rhh_map *t)
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
	t->mode = MAP_FINISHED;
	t->extract_ready = true;
}

/* Ends a map: waits for what is running, and frees everything. */
static void
rhh_map_free(rhh_map *t)
{
	rhh_device *dev = t->dev;

	for (rhh_map **p = &dev->maps; *p != NULL; p = &(*p)->next)
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
		RHH_CUDA(dev, cudaStreamSynchronize, t->lane->make);
		RHH_CUDA(dev, cudaStreamSynchronize, t->lane->run);
		RHH_CUDA(dev, cudaStreamSynchronize, t->lane->note);
	}
	rhh_body_free(t, &t->grown);
	rhh_body_free(t, &t->body);
	rhh_counted_free(t, t->feed_memory, t->feed_bytes);
	rhh_joins_free(t);
	rhh_kept_free(t);
	rhh_release_slabs(t);
	if (t->lane != NULL)
		rhh_lane_return(dev, t->lane);
	free(t);
}

#endif							/* RHH_CUDA_FINISH_CUH */
