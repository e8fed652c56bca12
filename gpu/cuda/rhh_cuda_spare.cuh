/*
 * rhh_cuda_spare.cuh
 *		Memory of the CUDA device that maps have given back, for the next ones.
 *
 * cudaMalloc takes some 0.1 ms, and cudaFree waits for what all maps have running.  So memory is kept, up
 * to a share of the limit, and whoever asks for as many bytes gets it.  So that this happens often, sizes
 * are rounded up, by an eighth at most if they are large.
 *
 * What is given back nobody uses any more: all kernels and copies that did have ended.
 */
#ifndef RHH_CUDA_SPARE_CUH
#define RHH_CUDA_SPARE_CUH

#include "cuda/rhh_cuda_device.cuh"

/* The bytes that are allocated for so many. */
static uint64_t
rhh_rounded_bytes(uint64_t bytes)
{
	uint64_t	step = RHH_CUDA_LEAST_SPARE / 8;

	while (step * 16 <= bytes)
		step *= 2;
	return (bytes + step - 1) / step * step;
}

/* Forgets spare s, whose memory is the caller's now. */
static uint8_t *
rhh_take_spare_at(rhh_device *dev, uint32_t s)
{
	uint8_t    *memory = dev->spares[s].memory;

	dev->spare_bytes -= dev->spares[s].bytes;
	dev->n_spares--;
	memmove(&dev->spares[s], &dev->spares[s + 1], (dev->n_spares - s) * sizeof(rhh_spare));
	return memory;
}

/* Memory of just so many bytes, which have been rounded; NULL: there is none to spare. */
static uint8_t *
rhh_take_spare(rhh_device *dev, uint64_t bytes)
{
	/* what came last may still be in the L2 cache */
	for (uint32_t s = dev->n_spares; s-- > 0;)
		if (dev->spares[s].bytes == bytes)
			return rhh_take_spare_at(dev, s);
	return NULL;
}

/* Frees all that is kept.  False: there was none. */
static bool
rhh_drop_spares(rhh_device *dev)
{
	const bool	any = dev->n_spares > 0;

	while (dev->n_spares > 0)
		rhh_check(dev, cudaFree(rhh_take_spare_at(dev, 0)), "cudaFree");
	return any;
}

/* Keeps memory that was allocated for so many bytes, in place of what has been kept for longest, or frees it. */
static void
rhh_give_spare(rhh_device *dev, uint8_t *memory, uint64_t bytes)
{
	const uint64_t most = dev->limit_bytes / RHH_CUDA_SPARE_SHARE;

	bytes = rhh_rounded_bytes(bytes);
	if (dev->broken || bytes < RHH_CUDA_LEAST_SPARE || bytes > most)
	{
		rhh_check(dev, cudaFree(memory), "cudaFree");
		return;
	}
	while (dev->n_spares == RHH_CUDA_MOST_SPARES || dev->spare_bytes + bytes > most)
		rhh_check(dev, cudaFree(rhh_take_spare_at(dev, 0)), "cudaFree");
	dev->spares[dev->n_spares].memory = memory;
	dev->spares[dev->n_spares++].bytes = bytes;
	dev->spare_bytes += bytes;
}

#endif							/* RHH_CUDA_SPARE_CUH */
