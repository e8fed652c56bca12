/*
 * rhh_cuda_library.c
 *		What the library with the CUDA device shows to whoever loads it; all
 *		else in it is hidden.
 */
#include "rhh_device.h"

extern __attribute__((visibility("default"))) const rhh_library rhh_cuda_library;

const rhh_library rhh_cuda_library = {
	.headers = RHH_HEADERS,
	.ops = &rhh_cuda_ops
};
