/*
 * rhh_cuda_keep.cuh
 *		Maps of the CUDA device that keep their rows: memory for these, and the index
 *		that finishing makes.
 *
 * A batch's rows are appended by one kernel.  Before that the host sees to it that there
 * are segments for all of them; if there is no memory, the kernel refuses those for which
 * there is no room, and from then on there is no more room.
 *
 * Finishing takes one step if all keys are different, or two:
 *
 *		index	enters the keys; the host then knows how many there are
 *		lists	gathers the rows of each key
 *
 * The memory of segments, slots and lists counts towards the limits, and so does the
 * scratch memory that making the lists takes meanwhile.
 */
#ifndef RHH_CUDA_KEEP_CUH
#define RHH_CUDA_KEEP_CUH

#include "cuda/rhh_cuda_join.cuh"
#include "cuda/rhh_cuda_memory.cuh"

static uint64_t
rhh_segment_bytes(const rhh_kept *kept, uint32_t segment)
{
	uint32_t	n_rows = rhh_segment_rows(kept->view.first_bits, segment);

	return rhh_segment_nulls_at(kept->view.record_bytes, n_rows) +
		(uint64_t) n_rows * kept->view.null_bytes;
}

/* Where the columns of a row are in its record: the widest first. */
static void
rhh_lay_out_records(rhh_kept *kept, const rhh_map_spec *spec)
{
	rhh_record_layout *layout = &kept->layout;
	uint32_t	at = 0;
	uint32_t	align = 1;

	layout->n_columns = spec->n_columns;
	memcpy(layout->bytes, spec->column_bytes, sizeof(layout->bytes));
	for (uint32_t bytes = 16; bytes >= 1; bytes /= 2)
		for (uint32_t c = 0; c < spec->n_columns; c++)
			if (spec->column_bytes[c] == bytes)
			{
				layout->at[c] = (uint16_t) at;
				at += bytes;
				if (align < bytes)
					align = bytes;
			}
	/* 16 bytes are two words, so nothing needs to be aligned to more than 8 */
	if (align > 8)
		align = 8;
	kept->view.record_bytes = (at + align - 1) / align * align;
	kept->view.null_bytes = spec->n_columns <= 8 ? 1 : spec->n_columns <= 16 ? 2
		: spec->n_columns <= 32 ? 4 : 8;
	for (uint32_t k = 0; k < spec->n_keys; k++)
		kept->view.key_at[k] = layout->at[spec->key_column[k]];
}

/* Makes a map keep its rows.  False: there is no memory, or the device is broken. */
static bool
rhh_keep_rows(rhh_map *t)
{
	uint64_t	part = t->spec.expected_groups / 8;
	rhh_kept   *kept = (rhh_kept *) calloc(1, sizeof(rhh_kept));

	t->kept = kept;
	if (kept == NULL)
		return false;
	rhh_lay_out_records(kept, &t->spec);
	kept->view.plan = t->grouping.plan;
	kept->view.keeps_null_keys = (t->spec.flags & RHH_KEEP_UNMATCHED) != 0;
	kept->view.n_parts = t->spec.n_parts;
	kept->view.part = t->spec.part;
	kept->view.slot_words = 1;
	kept->view.first_bits = RHH_MIN_SEGMENT_BITS;
	while (kept->view.first_bits < RHH_CUDA_MAX_SEGMENT_BITS && part >> kept->view.first_bits != 0)
		kept->view.first_bits++;
	if (!rhh_counted_malloc(t, &kept->table, sizeof(kept->segments)))
		return false;
	kept->view.segments = (uint8_t *const *) kept->table;
	return true;
}

/* Frees what finishing needs only meanwhile, if there is any. */
static void
rhh_free_scratch(rhh_map *t)
{
	rhh_counted_free(t, t->kept->scratch, t->kept->scratch_bytes);
	t->kept->scratch = NULL;
}

/* Frees the rows of a map and their index, if it has any. */
static void
rhh_kept_free(rhh_map *t)
{
	rhh_kept   *kept = t->kept;

	if (kept == NULL)
		return;
	rhh_free_scratch(t);
	rhh_counted_free(t, kept->matched, kept->view.n_rows + 1ULL);
	rhh_counted_free(t, kept->lists, kept->lists_bytes);
	rhh_counted_free(t, kept->index, kept->index_bytes);
	for (uint32_t s = 0; s < kept->n_segments; s++)
		rhh_counted_free(t, kept->segments[s], rhh_segment_bytes(kept, s));
	rhh_counted_free(t, kept->table, sizeof(kept->segments));
	free(kept);
	t->kept = NULL;
}

/*
 * Gets segments until so many rows have room, or until there is no memory.  False: the
 * device is broken.
 */
static bool
rhh_kept_room(rhh_map *t, uint64_t n_rows)
{
	rhh_kept   *kept = t->kept;

	while (kept->room < n_rows && !kept->full)
	{
		uint32_t	s = kept->n_segments;
		uint64_t	room = (uint64_t) kept->room + rhh_segment_rows(kept->view.first_bits, s);

		if (kept->room == RHH_MAX_KEPT_ROWS ||
			!rhh_counted_malloc(t, &kept->segments[s], rhh_segment_bytes(kept, s)))
			kept->full = true;
		else
		{
			kept->n_segments++;
			kept->room = room < RHH_MAX_KEPT_ROWS ? (uint32_t) room : RHH_MAX_KEPT_ROWS;
			/* the source is not pinned, so it is read before the call returns */
			if (!RHH_CUDA(t->dev, cudaMemcpyAsync, kept->table + s * sizeof(kept->segments[s]),
						  &kept->segments[s], sizeof(kept->segments[s]), cudaMemcpyHostToDevice,
						  t->lane->run))
				return false;
		}
	}
	return !t->dev->broken;
}

/* Queues the kernel that keeps rows: of batch i, or of the piece that it has of joins' output. */
static bool
rhh_launch_keep(rhh_map *t, int i, const rhh_rows &rows)
{
	rhh_device *dev = t->dev;
	uint64_t	most = t->seen.kept + rows.n_rows;

	for (int other = 0; other < RHH_CUDA_IN_FLIGHT; other++)
		if (other != i && t->flights[other].state == BATCH_RUNNING)
			most += t->joins != NULL ? t->flights[other].most_rows : t->flights[other].batch.n_rows;
	if (!rhh_kept_room(t, most))
		return false;
	RHH_LAUNCH(rhh_keep_kernel, rhh_blocks(dev, (rows.n_rows - 1) / RHH_CUDA_KEEP_ITEMS + 1),
			   RHH_CUDA_BLOCK_THREADS, 0, t->lane->run, t->kept->view, t->kept->layout, rows,
			   t->kept->room, t->lane->ctl);
	return rhh_launched(dev, "rhh_keep_kernel");
}

/*
 * All rows have come: frees segments that have none.  There are some for all rows of each batch,
 * of which few are kept if the map has one of many parts; the index needs that memory.
 */
static void
rhh_free_unused_segments(rhh_map *t)
{
	rhh_kept   *kept = t->kept;

	while (kept->n_segments > 0 && kept->room < RHH_MAX_KEPT_ROWS)
	{
		const uint32_t last = kept->n_segments - 1;
		const uint32_t n_rows = rhh_segment_rows(kept->view.first_bits, last);

		if (kept->room - n_rows < t->stats.rows)
			break;
		rhh_counted_free(t, kept->segments[last], rhh_segment_bytes(kept, last));
		kept->room -= n_rows;
		kept->n_segments--;
	}
}

/* The map can be probed, or (RHH_NO_MEMORY) cannot. */
static bool
rhh_index_ready(rhh_map *t, rhh_status status)
{
	t->mode = MAP_FINISHED;
	t->finish_ready = true;
	t->finish_status = status;
	return true;
}

/*
 * Chooses carried_bytes bytes of a record that slots carry: from carried_at on, where most bytes
 * of columns that are no keys are.  False: nothing is worth carrying, and carried_bytes is 0.
 */
static bool
rhh_choose_carried(const rhh_map *t, rhh_kept_view *view, uint32_t carried_bytes)
{
	const rhh_record_layout *layout = &t->kept->layout;
	const rhh_key_plan *plan = &view->plan;
	uint32_t	most = 0;

	for (uint32_t at = 0; view->record_bytes % 4 == 0 && at < view->record_bytes; at += 4)
	{
		uint32_t	bytes = 0;

		for (uint32_t c = 0; c < layout->n_columns; c++)
			if (memchr(plan->column, (int) c, plan->n_keys) == NULL && layout->at[c] >= at &&
				layout->at[c] + layout->bytes[c] <= at + carried_bytes)
				bytes += layout->bytes[c];
		if (bytes > most)
		{
			most = bytes;
			view->carried_at = at;
		}
	}
	view->carried_bytes = most > 0 ? carried_bytes : 0;
	return most > 0;
}

/*
 * Allocates a direct index if the keys lie close enough together.  False: they do not, or there
 * is no memory, or the device is broken.
 */
static bool
rhh_direct_index_alloc(rhh_map *t)
{
	rhh_kept   *kept = t->kept;
	const uint64_t least = ~t->seen.least_key_inverted;
	const uint64_t most_slots = (uint64_t) (kept->view.n_rows * RHH_CUDA_DIRECT_SLOTS);

	/* without a key the least is above the greatest */
	if (kept->view.plan.form == RHH_KEY_WIDE || t->seen.greatest_key < least ||
		t->seen.greatest_key - least >= most_slots)
		return false;
	kept->view.n_slots = t->seen.greatest_key - least + 1;
	kept->index_bytes = kept->view.n_slots * sizeof(uint64_t);
	if ((kept->view.n_slots > kept->view.n_rows * RHH_CUDA_INDEX_SLOTS &&
		 !rhh_within_limits(t, (double) RHH_CUDA_CARRYING_SHARE * kept->index_bytes)) ||
		!rhh_counted_malloc(t, &kept->index, kept->index_bytes))
		return false;
	kept->view.direct = true;
	kept->view.least_key = least;
	kept->view.slot_words = 1;
	(void) rhh_choose_carried(t, &kept->view, 4);
	return true;
}

/*
 * Allocates an index of slots_of_row slots for each row, and at least one more, so that there
 * always is an empty one.  False: there is no memory, or the device is broken.
 */
static bool
rhh_index_alloc(rhh_map *t, uint32_t slot_words, double slots_of_row)
{
	rhh_kept   *kept = t->kept;
	const uint64_t bucket_slots = RHH_INDEX_BUCKET_WORDS / slot_words;

	kept->view.slot_words = slot_words;
	kept->view.n_slots =
		((uint64_t) (kept->view.n_rows * slots_of_row) / bucket_slots + 1) * bucket_slots;
	kept->index_bytes = kept->view.n_slots * slot_words * sizeof(uint64_t);
	return rhh_counted_malloc(t, &kept->index, kept->index_bytes);
}

/*
 * Allocates an index that is a hash table, the best for which there is memory.  False: there
 * is none, or the device is broken.
 */
static bool
rhh_hash_index_alloc(rhh_map *t)
{
	rhh_kept_view *view = &t->kept->view;
	const uint64_t narrow_bytes =	/* of slots that carry nothing */
		(uint64_t) (view->n_rows * RHH_CUDA_INDEX_SLOTS * sizeof(uint64_t));

	if (view->plan.form != RHH_KEY_WIDE && view->plan.bits <= 32 &&
		narrow_bytes + (uint64_t) view->n_rows * view->record_bytes > t->dev->carry_bytes &&
		rhh_within_limits(t, RHH_CUDA_CARRYING_SHARE * 2 * narrow_bytes) &&
		rhh_choose_carried(t, view, 8) && rhh_index_alloc(t, 2, RHH_CUDA_INDEX_SLOTS))
		return true;
	view->carried_bytes = 0;
	return (!t->dev->broken && rhh_index_alloc(t, 1, RHH_CUDA_INDEX_SLOTS)) ||
		(!t->dev->broken && rhh_index_alloc(t, 1, RHH_CUDA_INDEX_FEW_SLOTS));
}

/* Queues entering the keys of all rows into an index.  False: the device is broken. */
static bool
rhh_start_index(rhh_map *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_kept   *kept = t->kept;

	kept->view.n_rows = (uint32_t) t->stats.rows;
	/* the index needs that memory */
	rhh_joins_free(t);
	rhh_free_unused_segments(t);
	if (kept->view.n_rows == 0)
		return rhh_index_ready(t, RHH_OK);
	if (!rhh_direct_index_alloc(t) && !dev->broken && !rhh_hash_index_alloc(t) && !dev->broken)
		return rhh_index_ready(t, RHH_NO_MEMORY);
	if (dev->broken)
		return false;
	kept->view.slots = (uint64_t *) kept->index;
	t->stats.capacity_slots = kept->view.n_slots;
	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, kept->index, 0xFF, kept->index_bytes, lane->run))
		return false;
	RHH_LAUNCH((kept->view.direct		   ? rhh_index_kernel<RHH_DIRECT> :
				kept->view.slot_words == 2 ? rhh_index_kernel<2> : rhh_index_kernel<1>),
			   rhh_blocks(dev, kept->view.n_rows), RHH_CUDA_BLOCK_THREADS, 0, lane->run, kept->view,
			   (t->spec.flags & RHH_WANT_PROBE_STATS) != 0, lane->ctl);
	t->mode = MAP_FINISHING;
	t->launches++;
	return rhh_launched(dev, "rhh_index_kernel") &&
		rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

/* Queues gathering the rows of each key.  False: the device is broken. */
static bool
rhh_start_lists(rhh_map *t)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_kept   *kept = t->kept;
	const uint32_t n_rows = kept->view.n_rows;
	const uint32_t blocks = rhh_blocks(dev, n_rows);
	uint32_t   *lists,
			   *stands,
			   *counts;

	/* for each row its number, and for each key the number of its rows */
	kept->lists_bytes = (n_rows + t->seen.placed) * sizeof(uint32_t);
	kept->scratch_bytes = 2 * (uint64_t) n_rows * sizeof(uint32_t);
	if (!rhh_counted_malloc(t, &kept->lists, kept->lists_bytes) ||
		!rhh_counted_malloc(t, &kept->scratch, kept->scratch_bytes))
		return !dev->broken && rhh_index_ready(t, RHH_NO_MEMORY);
	lists = (uint32_t *) kept->lists;
	stands = (uint32_t *) kept->scratch;
	counts = stands + n_rows;
	if (!RHH_CUDA(dev, cudaEventRecord, lane->step.start, lane->run) ||
		!RHH_CUDA(dev, cudaMemsetAsync, counts, 0, n_rows * sizeof(uint32_t), lane->run))
		return false;
	RHH_LAUNCH(rhh_list_count_kernel, blocks, RHH_CUDA_BLOCK_THREADS, 0, lane->run, kept->view,
			   stands, counts);
	RHH_LAUNCH(rhh_list_place_kernel, blocks, RHH_CUDA_BLOCK_THREADS, 0, lane->run, n_rows, counts,
			   lists, &lane->ctl->listed);
	RHH_LAUNCH(rhh_list_fill_kernel, blocks, RHH_CUDA_BLOCK_THREADS, 0, lane->run, n_rows, stands,
			   counts, lists);
	RHH_LAUNCH(rhh_list_slots_kernel, rhh_blocks(dev, kept->view.n_slots), RHH_CUDA_BLOCK_THREADS,
			   0, lane->run, kept->view, counts);
	t->launches++;
	return rhh_launched(dev, "gathering the rows of keys") &&
		rhh_end_step(t, &lane->step, &lane->snapshot[RHH_CUDA_IN_FLIGHT]);
}

/* A step of finishing has ended.  False: the device is broken. */
static bool
rhh_indexed(rhh_map *t)
{
	rhh_kept   *kept = t->kept;

	rhh_add_time(t, t->lane->step.start, t->lane->step.stop, &t->stats.kernel_ns);
	rhh_see(t, &t->lane->snapshot[RHH_CUDA_IN_FLIGHT], t->launches);
	if (t->dev->broken)
		return false;
	if (kept->lists == NULL && t->seen.placed < kept->view.n_rows && !t->cancelled)
		return rhh_start_lists(t);
	kept->view.lists = (const uint32_t *) kept->lists;
	rhh_free_scratch(t);
	return !t->dev->broken && rhh_index_ready(t, RHH_OK);
}

#endif							/* RHH_CUDA_KEEP_CUH */
