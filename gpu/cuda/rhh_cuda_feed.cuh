/*
 * rhh_cuda_feed.cuh
 *		Rows for a map of the CUDA device that are made of another map's groups.
 *
 * The groups' words are written to the map's feed memory, and next to them the
 * columns of a batch.  From there on the rows are a batch that lies on the device, so
 * large pieces are looked at and aggregated before the map sees them.  There is one
 * piece at a time, which stays where it is until all its rows are in the map or have
 * been refused for good.
 *
 *		+------------------------+-------------------------------+
 *		| words of the groups,   | the batch: columns, bitmaps   |
 *		| n columns of n_groups  | of NULLs                      |
 *		+------------------------+-------------------------------+
 *
 * The memory is taken with the first piece, counts against the limits, and goes with
 * the map.  If there is none, pieces are made where host batches would be uploaded,
 * which are few rows at a time but always some.
 */
#ifndef RHH_CUDA_FEED_CUH
#define RHH_CUDA_FEED_CUH

#include "cuda/rhh_cuda_finish.cuh"

static_assert(RHH_CUDA_IN_FLIGHT * RHH_CUDA_MIN_STAGING_BYTES >=
			  (1 + 2 * RHH_MAX_KEYS + RHH_MAX_STATE_WORDS) * 8 + 256 + 64 + RHH_MAX_COLUMNS * 128,
			  "the words of a group and its row fit where batches are uploaded");

/*
 * Bytes that the words of n groups take, and behind them the batch.  0: a batch cannot
 * have so many.
 */
static uint64_t
rhh_feed_bytes(const rhh_map *t, const rhh_feed *feed, uint64_t null_keys, uint32_t n,
			   rhh_batch *batch)
{
	uint32_t	n_columns;
	const uint8_t *column_bytes = rhh_batch_column_bytes(t, &n_columns);
	uint64_t	bytes = rhh_group_rows_layout(column_bytes, n_columns, feed->rows, feed->set, null_keys, n, batch);

	return bytes == 0 ? 0 :
		rhh_align((uint64_t) n * feed->source->grouping.n_result_words * 8) + bytes;
}

/*
 * Memory for pieces of n groups, or of less.  False: there is none, or the device is
 * broken.  Where a piece found none the next one does not look again, unless some was
 * given back in between.
 */
static bool
rhh_feed_alloc(rhh_map *t, const rhh_feed *feed, uint32_t n)
{
	rhh_device *dev = t->dev;
	uint64_t	limit = t->spec.memory_limit_bytes;
	rhh_batch	batch;

	if (t->no_feed_memory_at == dev->frees)
		return false;
	for (; n >= RHH_CUDA_FEED_MIN_GROUPS; n /= 2)
	{
		uint64_t	bytes = rhh_feed_bytes(t, feed, UINT64_MAX, n, &batch);

		if (bytes == 0 || (limit != 0 && bytes > limit / RHH_CUDA_FEED_SHARE) ||
			bytes > dev->limit_bytes / RHH_CUDA_FEED_SHARE)
			continue;
		if (rhh_counted_malloc(t, &t->feed_memory, bytes))
		{
			t->feed_bytes = bytes;
			return true;
		}
		if (dev->broken)
			return false;
	}
	t->no_feed_memory_at = dev->frees;
	return false;
}

/* The keys that may be NULL: a single key is not if there is no group for that. */
static uint64_t
rhh_null_keys(const rhh_map *source)
{
	return source->grouping.plan.form == RHH_KEY_SINGLE && !source->seen.null_seen ? 0 : UINT64_MAX;
}

/*
 * Queues the kernels that make the rows of a piece of n groups, or of as many as there
 * is room for, sets feed->n_groups, and describes the rows as a batch.  Without feed
 * memory no host batch may be in flight.  False: the device is broken.
 */
static bool
rhh_make_rows(rhh_map *t, rhh_feed *feed, uint32_t n, rhh_batch *batch)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_map    *source = feed->source;
	bool		own = t->feed_memory != NULL;
	uint8_t    *memory = own ? t->feed_memory : lane->staging;
	uint64_t	room = own ? t->feed_bytes : RHH_CUDA_IN_FLIGHT * lane->staging_bytes;
	uint64_t	null_keys = rhh_null_keys(source);
	uint64_t	bytes;
	rhh_row_columns out;

	while ((bytes = rhh_feed_bytes(t, feed, null_keys, n, batch)) == 0 || bytes > room)
		n /= 2;
	feed->n_groups = n;
	batch->base = memory + rhh_align((uint64_t) n * source->grouping.n_result_words * 8);

	memset(&out, 0, sizeof(out));
	out.base = batch->base;
	memcpy(out.bytes, rhh_batch_column_bytes(t, &out.n_columns), sizeof(out.bytes));
	memcpy(out.values_offset, batch->values_offset, sizeof(out.values_offset));
	memcpy(out.nulls_offset, batch->nulls_offset, sizeof(out.nulls_offset));

	if (!rhh_launch_extract(t, source, false, feed->first_group, n, (uint64_t *) memory, n))
		return false;
	RHH_LAUNCH(rhh_rows_kernel, rhh_blocks(dev, n), RHH_CUDA_BLOCK_THREADS, 0, lane->run,
			   *feed->rows, out, feed->set, (const uint64_t *) memory, n, n);
	return rhh_launched(dev, "rhh_rows_kernel");
}

#endif							/* RHH_CUDA_FEED_CUH */
