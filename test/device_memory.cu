/*
 * device_memory.cu
 *		Memory of the current CUDA device for device_test, which is C and knows
 *		nothing of CUDA; by nvcc or with simt.h.  0: done.
 */
#include <stddef.h>

#include "table/rhh_tile.cuh"

extern "C" int
test_device_alloc(void **memory, size_t bytes)
{
	return cudaMalloc(memory, bytes) != cudaSuccess;
}

extern "C" int
test_device_free(void *memory)
{
	return cudaFree(memory) != cudaSuccess;
}

/* To or from the device, or within it. */
extern "C" int
test_device_copy(void *to, const void *from, size_t bytes)
{
	return cudaMemcpy(to, from, bytes, cudaMemcpyDefault) != cudaSuccess;
}
