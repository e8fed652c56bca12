/*
 * rhh_cuda_library.c
 *		The one symbol that the library with the CUDA device exports.
 */
#include "rhh_device.h"

extern __attribute__((visibility("default"))) const rhh_library rhh_cuda_library;

const rhh_library rhh_cuda_library = {
	.headers = RHH_HEADERS,
	.ops = &rhh_cuda_ops
};
