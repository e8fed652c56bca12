/*
 * rhh_cuda_pages.cuh
 *		Batches of the CUDA device that have pages: reading these out of the host's memory.
 *
 * For kernels to read memory of the host it has to be registered with CUDA, which pins it.  That takes
 * some 100 ms for a gigabyte, so a slice is registered when the first batch has pages in it, and stays
 * so.  If a slice cannot be registered, nothing is tried any more: all pages of later batches are bad.
 *
 * What is uploaded of other batches is here made by a kernel, in the stream for uploads and where
 * uploads go.  The host has to know how many rows there are, so the batch is READING until the
 * kernel has ended; then it is QUEUED as others are.  Pages of the cache are read in the same way.  Which pages a batch has is
 * copied to the device ahead, in another stream, so that nothing is between two of these kernels.
 *
 * Where all pages of a batch are to be kept in the cache, one kernel copies them there, in the stream for uploads, and another one makes
 * columns of the copies, in a stream for that: so the bus need not wait for what is done with pages.
 */
#ifndef RHH_CUDA_PAGES_CUH
#define RHH_CUDA_PAGES_CUH

#include "cuda/rhh_cuda_memory.cuh"
#include "cuda/rhh_read_plain.cuh"

static rhh_page *
rhh_pages_of(const rhh_batch *batch)
{
	return (rhh_page *) (batch->base + batch->pages_offset);
}

static const rhh_page_layout *
rhh_layout_of(const rhh_batch *batch)
{
	return (const rhh_page_layout *) (batch->base + batch->layout_offset);
}

/* Where in the device's memory is what the batch, which has pages, has at this offset. */
static uint8_t *
rhh_on_device(const rhh_map *t, int i, uint32_t offset)
{
	const rhh_lane *lane = t->lane;
	const uint64_t behind = lane->staging_bytes - rhh_align(t->spec.max_batch_bytes);

	return lane->staging + (uint64_t) i * lane->staging_bytes + behind + offset;
}

/* Where kernels say what becomes of a batch's pages: in the caller's memory, unless they are in the cache. */
static rhh_page *
rhh_outcomes(const rhh_map *t, int i)
{
	const rhh_batch *batch = &t->flights[i].batch;

	return batch->cached ? (rhh_page *) rhh_on_device(t, i, batch->pages_offset) : rhh_pages_of(batch);
}

/* Queues telling the caller what is known of pages of the cache. */
static bool
rhh_launch_tell_pages(rhh_map *t, int i, cudaStream_t stream)
{
	const rhh_batch *batch = &t->flights[i].batch;

	return RHH_CUDA(t->dev, cudaMemcpyAsync, rhh_pages_of(batch), rhh_outcomes(t, i),
					(uint64_t) batch->n_pages * sizeof(rhh_page), cudaMemcpyDeviceToHost, stream);
}

/* Where pages of a batch go in the cache, or lie there, unless these say it. */
static rhh_page_slots
rhh_cache_slots_of(const rhh_map *t, int i)
{
	const rhh_batch *batch = &t->flights[i].batch;

	return {t->dev->slab_table, batch->slots_offset == 0 || t->flights[i].told ? NULL
		: (const uint32_t *) rhh_on_device(t, i, batch->slots_offset)};
}

/* What is known of a batch's pages; NULL: nothing is yet, as they are in the cache. */
static const rhh_page *
rhh_known_pages(const rhh_map *t, int i)
{
	const rhh_batch *batch = &t->flights[i].batch;

	return batch->cached && !t->flights[i].told ? NULL : (const rhh_page *) rhh_on_device(t, i, batch->pages_offset);
}

/* Queues a copy of what the batch has from this offset on, for the kernel that reads pages. */
static bool
rhh_copy_ahead(const rhh_map *t, int i, uint32_t offset, uint64_t bytes)
{
	return RHH_CUDA(t->dev, cudaMemcpyAsync, rhh_on_device(t, i, offset), t->flights[i].batch.base + offset, bytes,
					cudaMemcpyHostToDevice, t->dev->ahead);
}

/*
 * Queues telling the kernel that reads a batch's pages which they are.  It could look into the caller's memory; but where
 * many blocks ask for parts of the same 128 bytes there, one waits for the other: that took an H200 some 150 us more for a batch of
 * 12,000 pages of the cache (2026-11-27-h200-slots-of-host.csv).
 */
static bool
rhh_copy_pages_ahead(const rhh_map *t, int i)
{
	const rhh_batch *batch = &t->flights[i].batch;

	return (rhh_known_pages(t, i) == NULL ||
			rhh_copy_ahead(t, i, batch->pages_offset, (uint64_t) batch->n_pages * sizeof(rhh_page))) &&
		(rhh_cache_slots_of(t, i).numbers == NULL ||
		 rhh_copy_ahead(t, i, batch->slots_offset, (uint64_t) batch->n_pages * sizeof(uint32_t))) &&
		RHH_CUDA(t->dev, cudaEventRecord, t->dev->copied, t->dev->ahead) &&
		RHH_CUDA(t->dev, cudaStreamWaitEvent, t->lane->up, t->dev->copied, 0);
}

/* Slice i of the memory that has pages: *begin becomes its first byte.  Returns its bytes. */
static uint64_t
rhh_page_slice(const rhh_device *dev, uint32_t i, uint8_t **begin)
{
	const uintptr_t first = (uintptr_t) dev->pages & ~(uintptr_t) (RHH_CUDA_OS_PAGE - 1);
	const uintptr_t end = ((uintptr_t) dev->pages + (uint64_t) dev->n_pages * RHH_PAGE_BYTES +
						   RHH_CUDA_OS_PAGE - 1) & ~(uintptr_t) (RHH_CUDA_OS_PAGE - 1);
	const uintptr_t from = first + (uint64_t) i * RHH_CUDA_PAGE_SLICE;

	*begin = (uint8_t *) from;
	return end - from < RHH_CUDA_PAGE_SLICE ? end - from : RHH_CUDA_PAGE_SLICE;
}

/* Sees to it that kernels can read pages from first up to, but without, end.  False: they cannot. */
static bool
rhh_register_slices(rhh_device *dev, uint32_t first, uint32_t end)
{
	uint8_t    *begin;
	uint32_t	i;
	uint32_t	last;

	(void) rhh_page_slice(dev, 0, &begin);
	i = (uint32_t) ((uint64_t) (dev->pages + (uint64_t) first * RHH_PAGE_BYTES - begin) /
					RHH_CUDA_PAGE_SLICE);
	last = (uint32_t) ((uint64_t) (dev->pages + (uint64_t) end * RHH_PAGE_BYTES - 1 - begin) /
					   RHH_CUDA_PAGE_SLICE);
	for (; i <= last && dev->pages_failed == cudaSuccess; i++)
	{
		uint64_t	bytes;

		if (dev->slices[i])
			continue;
		bytes = rhh_page_slice(dev, i, &begin);
		dev->pages_failed = cudaHostRegister(begin, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
		if (dev->pages_failed != cudaSuccess)
			(void) cudaGetLastError();
		else
			dev->slices[i] = 1;
	}
	return dev->pages_failed == cudaSuccess;
}

/* Gives up what has been registered. */
static void
rhh_unregister_slices(rhh_device *dev)
{
	for (uint32_t i = 0; i < dev->n_slices; i++)
		if (dev->slices[i])
		{
			uint8_t    *begin;

			(void) rhh_page_slice(dev, i, &begin);
			(void) cudaHostUnregister(begin);
		}
	free(dev->slices);
	dev->slices = NULL;
	dev->n_slices = 0;
}

static rhh_status
rhh_cuda_register_pages(rhh_device *dev, void *base, uint32_t n_pages, rhh_error *err)
{
	int			same_addresses = 0;
	uint8_t    *begin;

	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	if (!RHH_CUDA(dev, cudaDeviceGetAttribute, &same_addresses,
				  cudaDevAttrCanUseHostPointerForRegisteredMem, dev->ordinal))
		return rhh_broken(dev, err);
	if (!same_addresses)
		return rhh_fail(err, RHH_NO_DEVICE, "the GPU has other addresses for memory of the host");
	if ((uintptr_t) base % sizeof(uint4) != 0)
		return rhh_fail(err, RHH_NO_DEVICE, "pages are not aligned to 16 bytes");
	dev->pages = (uint8_t *) base;
	dev->n_pages = n_pages;
	(void) rhh_page_slice(dev, 0, &begin);
	dev->n_slices = (uint32_t) ((dev->pages + (uint64_t) n_pages * RHH_PAGE_BYTES - begin) /
								RHH_CUDA_PAGE_SLICE + 1);
	dev->slices = (uint8_t *) calloc(dev->n_slices, 1);
	if (dev->slices == NULL)
	{
		dev->n_pages = 0;
		return rhh_fail(err, RHH_NO_MEMORY, "out of memory");
	}
	return RHH_OK;
}

static bool
rhh_cuda_reads_pages(rhh_device *dev, rhh_error *err)
{
	if (dev->pages_failed == cudaSuccess)
		return true;
	(void) rhh_fail(err, RHH_NO_DEVICE, cudaGetErrorString(dev->pages_failed));
	return false;
}

/* The columns that batches of the map have. */
static const uint8_t *
rhh_batch_column_bytes(const rhh_map *t, uint32_t *n_columns)
{
	*n_columns = t->joins != NULL ? t->joins->spec.n_columns : t->spec.n_columns;
	return t->joins != NULL ? t->joins->spec.column_bytes : t->spec.column_bytes;
}

/* CUDA 12 takes no more for each architecture that it knows. */
static_assert(sizeof(rhh_page_plan) + sizeof(rhh_row_columns) + sizeof(rhh_page_slots) + 64 <= 4096,
			  "the arguments of the kernels that read pages take more than 4 kB");

/* Do a batch's pages find their places among its rows as they are read? */
static bool
rhh_are_placed(const rhh_batch *batch, const rhh_page_layout *layout)
{
	return batch->cached || batch->all_visible || layout->program.has_filter;
}

/*
 * Are a batch's pages copied to the cache, all of them, and columns made of the copies?  The second time there may be pages whose
 * copies are not to be read: those that were bad.
 */
static bool
rhh_are_copied_first(const rhh_in_flight *f)
{
	return f->kept && !f->batch.cached && !f->recounted;
}

/* Are a batch's pages, all of which go to the cache, copied in parts?  These have at least tuples' headers. */
static bool
rhh_copies_parts(const rhh_batch *batch)
{
	return batch->parts && rhh_layout_of(batch)->prefix_bytes >= 24;
}

/*
 * How many per cent of what an SM can have of shared memory it gets while pages of a batch are copied to the cache, or columns are
 * made of copies that have just been.  Both happen at once: where one of the kernels had the caches that suit it best there would be
 * no shared memory for the blocks of the other, which would wait until that one has ended, half of the time, and the bus with it.
 */
static int
rhh_copying_share(const rhh_batch *batch)
{
	return rhh_copies_parts(batch) ? RHH_CUDA_PARTS_SHARED : (int) cudaSharedmemCarveoutMaxShared;
}

/* Queues making columns of pages of shared buffers.  False: the device is broken. */
template <bool COMPUTES>
static bool
rhh_launch_reading(const rhh_map *t, int i, const rhh_page_plan &plan, const rhh_row_columns &columns,
				   const rhh_page_layout *layout, cudaStream_t stream)
{
	rhh_device *dev = t->dev;
	const rhh_lane *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	const uint32_t blocks = COMPUTES ? RHH_CUDA_PAGE_BLOCKS_COMPUTING : RHH_CUDA_PAGE_BLOCKS;

	RHH_LAUNCH((rhh_read_pages_kernel<COMPUTES>), ::min(batch->n_pages, (uint32_t) dev->n_sms * blocks),
			   RHH_CUDA_PAGE_THREADS, sizeof(rhh_page_space), stream,
			   dev->pages, batch->first_page, batch->end_page, rhh_known_pages(t, i), rhh_outcomes(t, i),
			   batch->n_pages, rhh_cache_slots_of(t, i), plan, columns, batch->n_rows, layout->prefix_bytes,
			   rhh_are_placed(batch, layout) ? lane->page_counts + i : NULL, &lane->page_notes[i]);
	return rhh_launched(dev, "rhh_read_pages_kernel");
}

/*
 * How many pages of the cache, of so many rows, a block has at a time: so many that few of its threads have no row, and no more than
 * that takes, as they are to stay in the SM's cache from one pass to the next.
 */
static uint32_t
rhh_cached_run(double rows)
{
	const double threads = RHH_CUDA_CACHED_THREADS;
	uint32_t	run = 1;
	double		best = 0;

	for (uint32_t n = 1; n <= RHH_CUDA_CACHED_RUN; n++)
	{
		const double with_row = n * rows / (ceil(n * rows / threads) * threads);

		if (with_row > best * RHH_CUDA_CACHED_GAIN)
		{
			best = with_row;
			run = n;
		}
	}
	return run;
}

/*
 * Prepares a kernel that makes columns of a batch's pages of the cache, which may have come there only a moment ago: the share of shared
 * memory that it gets.  *first and *end become the range of slots that they have to be in.  False: the device is broken.
 */
static bool
rhh_prepare_cached(rhh_device *dev, const void *kernel, const rhh_batch *batch, uint32_t *first, uint32_t *end)
{
	*first = batch->cached ? batch->first_page : 0;
	*end = batch->cached ? batch->end_page : UINT32_MAX;
	return RHH_CUDA(dev, cudaFuncSetAttribute, kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
					batch->cached ? (int) cudaSharedmemCarveoutDefault : rhh_copying_share(batch));
}

/* Queues making columns of pages of the cache.  False: the device is broken. */
template <bool COMPUTES>
static bool
rhh_launch_reading_cached(const rhh_map *t, int i, const rhh_page_plan &plan, const rhh_row_columns &columns,
						  const rhh_page_layout *layout, cudaStream_t stream)
{
	rhh_device *dev = t->dev;
	const rhh_lane *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	const uint32_t run_pages = rhh_cached_run(t->page_rows > 0 ? t->page_rows : (double) batch->n_rows / batch->n_pages);
	const uint32_t blocks = batch->cached ? ::min((uint32_t) RHH_CUDA_CACHED_BLOCKS, RHH_CUDA_CACHED_PAGES / run_pages)
		: rhh_copies_parts(batch) ? RHH_CUDA_COPIED_BLOCKS_PARTS : RHH_CUDA_COPIED_BLOCKS;
	uint32_t	first,
				end;

	if (!rhh_prepare_cached(dev, (const void *) rhh_read_cached_kernel<COMPUTES>, batch, &first, &end))
		return false;
	RHH_LAUNCH((rhh_read_cached_kernel<COMPUTES>), ::min((batch->n_pages - 1) / run_pages + 1, (uint32_t) dev->n_sms * blocks),
			   RHH_CUDA_CACHED_THREADS, sizeof(rhh_cached_pages), stream, first, end,
			   rhh_known_pages(t, i), rhh_outcomes(t, i), batch->n_pages, run_pages, rhh_cache_slots_of(t, i), plan, columns, batch->n_rows,
			   rhh_are_placed(batch, layout) ? lane->page_counts + i : NULL, &lane->page_notes[i]);
	return rhh_launched(dev, "rhh_read_cached_kernel");
}

/* The same where all columns are plain. */
static bool
rhh_launch_reading_plain(const rhh_map *t, int i, const rhh_page_plan &plan, const rhh_row_columns &columns,
						 const rhh_page_layout *layout, cudaStream_t stream)
{
	rhh_device *dev = t->dev;
	const rhh_lane *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	const uint32_t pages_of_block = RHH_CUDA_PLAIN_THREADS / RHH_WARP_SIZE;
	const uint32_t blocks = batch->cached ? RHH_CUDA_PLAIN_BLOCKS : RHH_CUDA_PLAIN_COPIED_BLOCKS;
	uint32_t	first,
				end;

	if (!rhh_prepare_cached(dev, (const void *) rhh_read_plain_kernel, batch, &first, &end))
		return false;
	RHH_LAUNCH(rhh_read_plain_kernel, ::min((batch->n_pages - 1) / pages_of_block + 1, (uint32_t) dev->n_sms * blocks),
			   RHH_CUDA_PLAIN_THREADS, 0, stream, first, end,
			   rhh_known_pages(t, i), rhh_outcomes(t, i), batch->n_pages, rhh_cache_slots_of(t, i), plan, columns, batch->n_rows,
			   rhh_are_placed(batch, layout) ? lane->page_counts + i : NULL, &lane->page_notes[i]);
	return rhh_launched(dev, "rhh_read_plain_kernel");
}

/* What of a batch's pages is copied to the cache. */
static rhh_page_parts
rhh_parts_of(const rhh_batch *batch)
{
	const rhh_page_layout *layout = rhh_layout_of(batch);
	rhh_page_parts parts;

	memset(&parts, 0, sizeof(parts));
	if (!rhh_copies_parts(batch))
		return parts;
	parts.prefix_bytes = layout->prefix_bytes;
	parts.n_attributes = layout->n_attributes;
	parts.last_known = layout->last_known;
	memcpy(parts.attributes, layout->attributes, layout->n_attributes * sizeof(rhh_page_attribute));
	return parts;
}

/*
 * Queues copying a batch's pages out of shared buffers to the cache.  The columns are made of these copies, in another stream, while
 * the bus brings pages of the next batch.  False: the device is broken.
 */
static bool
rhh_launch_copying(rhh_map *t, int i)
{
	const rhh_device *dev = t->dev;
	const rhh_lane *lane = t->lane;
	const rhh_batch *batch = &t->flights[i].batch;
	const rhh_page_parts parts = rhh_parts_of(batch);

	if (!RHH_CUDA(t->dev, cudaFuncSetAttribute, rhh_copy_pages_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
				  rhh_copying_share(batch)))
		return false;
	RHH_LAUNCH(rhh_copy_pages_kernel, ::min(batch->n_pages, (uint32_t) dev->n_sms * RHH_CUDA_PAGE_BLOCKS),
			   RHH_CUDA_PAGE_THREADS, sizeof(rhh_page_space), lane->up,
			   dev->pages, batch->first_page, batch->end_page, rhh_known_pages(t, i), batch->n_pages, rhh_cache_slots_of(t, i),
			   parts, lane->page_counts + i);
	return rhh_launched(t->dev, "rhh_copy_pages_kernel") &&
		RHH_CUDA(t->dev, cudaEventRecord, lane->copied, lane->up) &&
		RHH_CUDA(t->dev, cudaStreamWaitEvent, lane->make, lane->copied, 0);
}

/* The plan for a batch's pages.  False: there is none (rhh_page_plan_make()). */
static bool
rhh_plan_pages(const rhh_map *t, const rhh_batch *batch, rhh_page_plan *plan)
{
	uint32_t	n_columns;

	return rhh_page_plan_make(plan, rhh_layout_of(batch), rhh_batch_column_bytes(t, &n_columns));
}

/* Queues reading a batch's pages, and waking the caller then.  Slices are registered. */
static bool
rhh_launch_pages(rhh_map *t, int i, const rhh_page_plan &plan)
{
	rhh_device *dev = t->dev;
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	rhh_batch  *batch = &f->batch;
	const rhh_page_layout *layout = rhh_layout_of(batch);
	const bool	copies = rhh_are_copied_first(f);
	cudaStream_t stream = copies ? lane->make : lane->up;
	bool		launched;
	rhh_row_columns columns;
	const uint8_t *column_bytes;

	memset(&columns, 0, sizeof(columns));
	column_bytes = rhh_batch_column_bytes(t, &columns.n_columns);
	memcpy(columns.bytes, column_bytes, columns.n_columns);
	columns.base = lane->staging + (uint64_t) i * lane->staging_bytes;
	(void) rhh_page_columns(layout, columns.bytes, batch->n_rows, true, batch->values_offset,
							batch->nulls_offset);
	memcpy(columns.values_offset, batch->values_offset, sizeof(columns.values_offset));
	memcpy(columns.nulls_offset, batch->nulls_offset, sizeof(columns.nulls_offset));
	memset(&lane->page_notes[i], 0, sizeof(lane->page_notes[i]));
	f->limb_columns = plan.limb_columns;
	if (!rhh_copy_pages_ahead(t, i) ||
		!RHH_CUDA(dev, cudaEventRecord, lane->upload[i], lane->up) ||
		(copies && !rhh_launch_copying(t, i)))
		return false;
	if ((batch->cached || copies) && plan.all_plain)
		launched = rhh_launch_reading_plain(t, i, plan, columns, layout, stream);
	else if (batch->cached || copies)
		launched = layout->program.n_ops > 0 ? rhh_launch_reading_cached<true>(t, i, plan, columns, layout, stream)
			: rhh_launch_reading_cached<false>(t, i, plan, columns, layout, stream);
	else
		launched = layout->program.n_ops > 0 ? rhh_launch_reading<true>(t, i, plan, columns, layout, stream)
			: rhh_launch_reading<false>(t, i, plan, columns, layout, stream);
	f->state = BATCH_READING;
	return launched &&
		(!batch->cached || !f->told || rhh_launch_tell_pages(t, i, stream)) &&
		RHH_CUDA(dev, cudaEventRecord, lane->uploaded[i], stream) &&
		rhh_wake_after(t, lane->uploaded[i]);
}

/* The rows of a batch's pages, of which none is bad. */
static uint32_t
rhh_count_filtered(const rhh_batch *batch)
{
	const rhh_page *pages = rhh_pages_of(batch);
	uint32_t	n_rows = 0;

	for (uint32_t p = 0; p < batch->n_pages; p++)
		n_rows += pages[p].n_rows;
	return n_rows;
}

/* A batch's pages cannot be read: all are bad. */
static void
rhh_give_up_pages(rhh_in_flight *f)
{
	rhh_page   *pages = rhh_pages_of(&f->batch);

	if (f->batch.cached && !f->told)
		memset(pages, 0, f->batch.n_pages * sizeof(rhh_page));
	for (uint32_t p = 0; p < f->batch.n_pages; p++)
	{
		const bool	unknown = (f->batch.cached || (f->batch.all_visible && pages[p].all_visible != 0)) &&
			pages[p].bad == 0 && pages[p].filtered == 0;

		if (pages[p].n_rows == 0 && !unknown)
			continue;
		pages[p].bad = RHH_PAGE_UNREAD;
		pages[p].n_rows = 0;
		f->n_bad_pages++;
	}
	f->batch.n_rows = 0;
}

/* Counts the rows of pages that are not bad.  Those that are have no rows from now on. */
static uint32_t
rhh_count_page_rows(rhh_in_flight *f)
{
	rhh_page   *pages = rhh_pages_of(&f->batch);
	uint32_t	n_rows = 0;

	for (uint32_t p = 0; p < f->batch.n_pages; p++)
	{
		pages[p].first_row = n_rows;
		if (pages[p].n_rows > 0 && pages[p].bad != 0)
		{
			pages[p].n_rows = 0;
			f->n_bad_pages++;
		}
		n_rows += pages[p].n_rows;
	}
	return n_rows;
}

/*
 * The pages of a batch have been read.  If some were bad, *again says that the others are read once
 * more.  False: the device is broken.
 */
static bool
rhh_pages_read(rhh_map *t, int i, bool *again)
{
	rhh_lane   *lane = t->lane;
	rhh_in_flight *f = &t->flights[i];
	const rhh_page_notes *notes = &lane->page_notes[i];
	const rhh_page_layout *layout = rhh_layout_of(&f->batch);
	const bool	parts = rhh_are_copied_first(f) && rhh_copies_parts(&f->batch);
	rhh_page_plan plan;

	rhh_add_time(t, lane->upload[i], lane->uploaded[i], &t->stats.upload_ns);
	if (!f->batch.cached)
		t->stats.uploaded_bytes += (uint64_t) f->batch.n_pages * (parts ? 24 : RHH_PAGE_BYTES);
	*again = notes->any_bad != 0;
	if (*again && f->batch.cached && !f->told)
	{
		/* before they are counted */
		f->told = true;
		return rhh_launch_tell_pages(t, i, lane->up) &&
			RHH_CUDA(t->dev, cudaEventRecord, lane->uploaded[i], lane->up) &&
			rhh_wake_after(t, lane->uploaded[i]);
	}
	if (*again)
	{
		f->recounted = true;
		f->batch.n_rows = rhh_count_page_rows(f);
		*again = f->batch.n_rows > 0;
		return !*again || (rhh_plan_pages(t, &f->batch, &plan) && rhh_launch_pages(t, i, plan));
	}
	/* pages that have been read before have their places already */
	if (rhh_are_placed(&f->batch, layout))
	{
		f->batch.n_rows = f->recounted ? rhh_count_filtered(&f->batch) : notes->placed;
		f->n_dropped = notes->dropped;
	}
	t->page_rows = (double) (f->batch.n_rows + f->n_dropped) / f->batch.n_pages;
	if (parts)
		t->stats.uploaded_bytes += (uint64_t) (f->batch.n_rows + f->n_dropped) * (4 + layout->prefix_bytes - 16);
	/* a column without a NULL is read faster if it has none of their bytes */
	for (uint32_t c = 0; c < RHH_MAX_COLUMNS; c++)
		if ((notes->null_columns >> c & 1) == 0)
			f->batch.nulls_offset[c] = 0;
	f->batch.zero_columns = f->limb_columns & ~notes->limb_columns;
	t->stats.pages += f->batch.n_pages - f->n_bad_pages;
	return !t->dev->broken;
}

/* Queues telling a batch's pages which of their rows were refused. */
static bool
rhh_launch_refuse_pages(rhh_map *t, int i)
{
	const rhh_batch *batch = &t->flights[i].batch;

	RHH_LAUNCH(rhh_refuse_pages_kernel, rhh_blocks(t->dev, batch->n_pages), RHH_CUDA_BLOCK_THREADS, 0,
			   t->lane->run, rhh_outcomes(t, i), batch->n_pages,
			   (const uint32_t *) (t->lane->refused + (uint64_t) i * t->lane->refused_bytes));
	return rhh_launched(t->dev, "rhh_refuse_pages_kernel");
}

/* Pages of which rows were refused. */
static uint32_t
rhh_refused_pages(const rhh_batch *batch)
{
	const rhh_page *pages = rhh_pages_of(batch);
	uint32_t	n = 0;

	for (uint32_t p = 0; p < batch->n_pages; p++)
		n += pages[p].bad == RHH_PAGE_REFUSED;
	return n;
}

#endif							/* RHH_CUDA_PAGES_CUH */
