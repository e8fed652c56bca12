/*
 * rhh_cuda_cache.cuh
 *		The CUDA device's memory for copies of pages: slabs of slots.
 *
 * A slab is one allocation: its pages, and then an rhh_page of each, with what was visible of it.  Kernels
 * find slabs by a table in the device's memory.
 *
 * Slabs are for memory that no map needs: where a map would exceed the device's limit, or there is no memory
 * for it, slabs are freed until it fits, but for those that batches in flight have slots of.  A batch that
 * is to come again, since what comes out of its joins is not complete, keeps its slabs until its map ends:
 * it has to find the same rows.
 */
#ifndef RHH_CUDA_CACHE_CUH
#define RHH_CUDA_CACHE_CUH

#include "rhh_pages.h"
#include "cuda/rhh_cuda_device.cuh"
#include "cuda/rhh_cuda_spare.cuh"
#include "cuda/rhh_read_pages.cuh"

#define RHH_SLAB_BYTES ((uint64_t) RHH_SLAB_PAGES * (RHH_PAGE_BYTES + sizeof(rhh_page)))

static uint64_t
rhh_slabs_bytes(const rhh_device *dev)
{
	return dev->n_slabs * RHH_SLAB_BYTES;
}

/* Tells kernels where slab i is.  False: the device is broken. */
static bool
rhh_publish_slab(rhh_device *dev, uint32_t i)
{
	return RHH_CUDA(dev, cudaMemcpy, dev->slab_table + i, &dev->slabs[i], sizeof(uint8_t *),
					cudaMemcpyHostToDevice);
}

/*
 * Frees a slab, of those that nobody uses the last one, so that a map can have its memory.  False: there is
 * none, or the device is broken.
 */
static bool
rhh_take_slab(rhh_device *dev)
{
	for (uint32_t i = RHH_MAX_SLABS; i-- > 0;)
	{
		uint8_t    *slab = dev->slabs[i];

		if (slab == NULL || dev->slab_uses[i] > 0)
			continue;
		dev->slabs[i] = NULL;
		dev->slab_lost[i] = 1;
		dev->n_slabs--;
		dev->frees++;
		return rhh_publish_slab(dev, i) && RHH_CUDA(dev, cudaFree, slab);
	}
	return false;
}

/* The slab behind the last one of a batch whose pages are in the cache; the first is that of its first page. */
static uint32_t
rhh_end_slab(const rhh_batch *batch)
{
	return (batch->end_page + RHH_SLAB_PAGES - 1) / RHH_SLAB_PAGES;
}

/*
 * A batch uses the slabs of its slots, or (n -1) does not any more.  Returns whether all of its pages go to slots, or are there.
 */
static bool
rhh_use_slabs(rhh_device *dev, const rhh_batch *batch, int n)
{
	const uint32_t *slots = (const uint32_t *) (batch->base + batch->slots_offset);
	uint32_t	n_slots = 0;

	/* what of these it has not is of no harm */
	for (uint32_t i = batch->first_page / RHH_SLAB_PAGES; batch->cached && i < rhh_end_slab(batch); i++)
		dev->slab_uses[i] += n;
	for (uint32_t p = 0; !batch->cached && batch->slots_offset != 0 && p < batch->n_pages; p++)
		if (slots[p] / RHH_SLAB_PAGES < RHH_MAX_SLABS)
		{
			dev->slab_uses[slots[p] / RHH_SLAB_PAGES] += n;
			n_slots++;
		}
	return batch->cached || n_slots == batch->n_pages;
}

/* The caller has the event of a batch.  False: there is no memory to note what it uses. */
static bool
rhh_batch_is_given(rhh_map *t, const rhh_batch *batch, bool more)
{
	rhh_device *dev = t->dev;

	if (!more || !batch->cached)
	{
		(void) rhh_use_slabs(dev, batch, -1);
		return true;
	}
	if (t->slab_uses == NULL)
		t->slab_uses = (uint32_t *) calloc(RHH_MAX_SLABS, sizeof(uint32_t));
	if (t->slab_uses == NULL)
		return false;
	for (uint32_t i = batch->first_page / RHH_SLAB_PAGES; i < rhh_end_slab(batch); i++)
		t->slab_uses[i]++;
	return true;
}

/* The map's batches do not come again. */
static void
rhh_release_slabs(rhh_map *t)
{
	for (uint32_t i = 0; t->slab_uses != NULL && i < RHH_MAX_SLABS; i++)
		t->dev->slab_uses[i] -= t->slab_uses[i];
	free(t->slab_uses);
	t->slab_uses = NULL;
}

static rhh_status
rhh_cuda_cache_slab(rhh_device *dev, uint32_t i, rhh_error *err)
{
	cudaError_t rc;

	if (!rhh_enter(dev))
		return rhh_broken(dev, err);
	if (i >= RHH_MAX_SLABS || dev->slabs[i] != NULL)
		return rhh_fail(err, RHH_INVALID, "there cannot be such a slab");
	if (dev->counted_bytes + rhh_slabs_bytes(dev) + RHH_SLAB_BYTES > dev->limit_bytes)
		return rhh_fail(err, RHH_NO_MEMORY, "the limit on the device's memory is reached");
	if (dev->slab_table == NULL)
	{
		rc = cudaMalloc((void **) &dev->slab_table, RHH_MAX_SLABS * sizeof(uint8_t *));
		if (rc == cudaSuccess)
			rc = cudaMemset(dev->slab_table, 0, RHH_MAX_SLABS * sizeof(uint8_t *));
	}
	else
		rc = cudaSuccess;
	if (rc == cudaSuccess)
		rc = cudaMalloc((void **) &dev->slabs[i], RHH_SLAB_BYTES);
	if (rc == cudaErrorMemoryAllocation && rhh_drop_spares(dev))
	{
		(void) cudaGetLastError();
		rc = cudaMalloc((void **) &dev->slabs[i], RHH_SLAB_BYTES);
	}
	if (rc == cudaErrorMemoryAllocation)
	{
		(void) cudaGetLastError();
		dev->slabs[i] = NULL;
		return rhh_fail(err, RHH_NO_MEMORY, "there is no device memory");
	}
	if (rc != cudaSuccess)
	{
		rhh_check(dev, rc, "cudaMalloc");
		dev->slabs[i] = NULL;
		return rhh_broken(dev, err);
	}
	dev->n_slabs++;
	return rhh_publish_slab(dev, i) ? RHH_OK : rhh_broken(dev, err);
}

static bool
rhh_cuda_lost_slab(rhh_device *dev, uint32_t *i)
{
	for (*i = 0; *i < RHH_MAX_SLABS; (*i)++)
		if (dev->slab_lost[*i])
		{
			dev->slab_lost[*i] = 0;
			return true;
		}
	return false;
}

/* Frees all slabs; errors no longer matter. */
static void
rhh_free_slabs(rhh_device *dev)
{
	for (uint32_t i = 0; i < RHH_MAX_SLABS; i++)
		if (dev->slabs[i] != NULL)
			(void) cudaFree(dev->slabs[i]);
	if (dev->slab_table != NULL)
		(void) cudaFree(dev->slab_table);
}

#endif							/* RHH_CUDA_CACHE_CUH */
