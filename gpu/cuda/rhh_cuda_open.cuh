/*
 * rhh_cuda_open.cuh
 *		Finding the CUDA devices, opening and closing one, and registering the
 *		caller's memory with it.
 */
#ifndef RHH_CUDA_OPEN_CUH
#define RHH_CUDA_OPEN_CUH

#include <sys/eventfd.h>
#include <unistd.h>

#include "cuda/rhh_cuda_finish.cuh"
#include "cuda/rhh_cuda_pages.cuh"
#include "cuda/rhh_cuda_memory.cuh"

/* The compute capability of the oldest code in here, as 10 * major + minor. */
static int
rhh_oldest_arch(void)
{
	static const int archs[] = {__CUDA_ARCH_LIST__};	/* ascending, 750 for 7.5 */

	return archs[0] / 10;
}

static void
rhh_fill_info(rhh_device_info *info, int ordinal, const cudaDeviceProp *prop)
{
	int			oldest = rhh_oldest_arch();
	int			mode = cudaComputeModeDefault;

	memset(info, 0, sizeof(*info));
	info->kind = RHH_KIND_CUDA;
	info->ordinal = ordinal;
	info->cc_major = prop->major;
	info->cc_minor = prop->minor;
	info->total_bytes = prop->totalGlobalMem;
	snprintf(info->name, sizeof(info->name), "%.*s", (int) sizeof(info->name) - 1,
			 prop->name);
	info->state = RHH_STATE_AVAILABLE;
	if (ordinal < RHH_MAX_ORDINALS && rhh_open_count[ordinal] > 0)
		info->state = RHH_STATE_OPEN;
	if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, ordinal) != cudaSuccess)
		(void) cudaGetLastError();
	if (prop->major * 10 + prop->minor < oldest)
	{
		info->state = RHH_STATE_UNUSABLE;
		snprintf(info->reason, sizeof(info->reason),
				 "compute capability %d.%d is below %d.%d, the lowest that this build supports",
				 prop->major, prop->minor, oldest / 10, oldest % 10);
	}
	else if (mode == cudaComputeModeProhibited)
	{
		info->state = RHH_STATE_UNUSABLE;
		snprintf(info->reason, sizeof(info->reason), "its compute mode prohibits using it");
	}
}

static rhh_status
rhh_cuda_enumerate(rhh_device_info *infos, uint32_t cap, uint32_t *n, rhh_error *err)
{
	int			count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	*n = 0;
	/* No driver, a driver that is too old, no device: in each case there are none. */
	if (rc != cudaSuccess)
	{
		int			driver = 0;

		(void) cudaGetLastError();
		/* CUDA says "too old" of a driver that is not there */
		if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
			snprintf(err->message, sizeof(err->message), "NVIDIA's driver was not found");
		else
			snprintf(err->message, sizeof(err->message), "%s", cudaGetErrorString(rc));
		return RHH_OK;
	}
	for (int i = 0; i < count && *n < cap; i++)
	{
		cudaDeviceProp prop;

		if (cudaGetDeviceProperties(&prop, i) != cudaSuccess)
		{
			rhh_device_info *info = &infos[(*n)++];

			memset(info, 0, sizeof(*info));
			info->kind = RHH_KIND_CUDA;
			info->ordinal = i;
			info->state = RHH_STATE_UNUSABLE;
			snprintf(info->reason, sizeof(info->reason), "%s",
					 cudaGetErrorString(cudaGetLastError()));
			continue;
		}
		rhh_fill_info(&infos[(*n)++], i, &prop);
	}
	return RHH_OK;
}

/* Lets the kernels have as much shared memory as the local tables take, and leaves room for these beside others. */
static bool
rhh_allow_shared(rhh_device *dev, rhh_variant variant)
{
	cudaError_t rc = cudaSuccess;

	RHH_BY_VARIANT(variant, {
		auto		kernel = rhh_aggregate_kernel<BYTES, VERIFY, true>;
		int			bytes = (int) (dev->local_bytes + sizeof(rhh_build_space));

		rc = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
		kernel = rhh_aggregate_kernel<BYTES, VERIFY, false>;
		if (rc == cudaSuccess)
			rc = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
	});
	if (rc == cudaSuccess)
		rc = cudaFuncSetAttribute(rhh_scatter_rows_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
								  (int) sizeof(rhh_scatter_space));
	return rhh_check(dev, rc, "cudaFuncSetAttribute");
}

/*
 * Makes the context, and makes CUDA start all its threads by using everything once.
 * This happens now because the caller has blocked signals now.
 */
static bool
rhh_warm_up(rhh_device *dev)
{
	rhh_lane   *lane;
	cudaFuncAttributes attr;
	size_t		free_bytes = 0,
				total_bytes = 0;
	rhh_map_spec spec;
	uint64_t	count;
	bool		ok;

	if (!RHH_CUDA(dev, cudaSetDevice, dev->ordinal) ||
		!RHH_CUDA(dev, cudaFree, NULL) ||
		!RHH_CUDA(dev, cudaMemGetInfo, &free_bytes, &total_bytes) ||
		!RHH_CUDA(dev, cudaStreamCreateWithFlags, &dev->ahead, cudaStreamNonBlocking) ||
		!RHH_CUDA(dev, cudaEventCreateWithFlags, &dev->copied, cudaEventDisableTiming))
		return false;
	if (dev->limit_bytes == 0)
		dev->limit_bytes = (uint64_t) (free_bytes * RHH_CUDA_FREE_SHARE);

	dev->local_bytes = rhh_aggregate_policy::LOCAL_BYTES;
	if (dev->local_bytes + sizeof(rhh_build_space) > dev->prop.sharedMemPerBlockOptin)
		dev->local_bytes = (uint32_t) (dev->prop.sharedMemPerBlockOptin - sizeof(rhh_build_space));
	if (!rhh_allow_shared(dev, VARIANT_8) || !rhh_allow_shared(dev, VARIANT_8_VERIFY) ||
		!rhh_allow_shared(dev, VARIANT_16))
		return false;

	/* Code made for an older device and translated has no 128-bit CAS either. */
	if (!RHH_CUDA(dev, cudaFuncGetAttributes, &attr,
				  (const void *) rhh_batch_kernel<16, false>))
		return false;
	dev->slot16 = dev->prop.major >= 9 && attr.ptxVersion >= 90;
#ifdef RHH_TEST_NO_SLOT16
	dev->slot16 = false;
#endif

	memset(&spec, 0, sizeof(spec));
	spec.max_batch_rows = 1;
	spec.max_batch_bytes = 1;
	lane = rhh_lane_make(dev);
	if (lane == NULL)
		return false;
	ok = RHH_CUDA(dev, cudaStreamAddCallback, lane->note, rhh_wake_callback,
				  (void *) (intptr_t) dev->event_fd, 0);
	if (ok && rhh_lane_fit(dev, lane, &spec))
	{
		ok = RHH_CUDA(dev, cudaMemsetAsync, lane->ctl, 0, sizeof(rhh_control), lane->run);
		RHH_LAUNCH(rhh_append_end_kernel, 1, 1, 0, lane->run, lane->ctl);
		ok = ok && rhh_launched(dev, "rhh_append_end_kernel") &&
			RHH_CUDA(dev, cudaMemcpyAsync, lane->snapshot, lane->ctl,
					 sizeof(rhh_control), cudaMemcpyDeviceToHost, lane->run) &&
			RHH_CUDA(dev, cudaStreamSynchronize, lane->run);
	}
	ok = ok && !dev->broken && RHH_CUDA(dev, cudaStreamSynchronize, lane->note);
	/* Nobody waits for this wake-up. */
	while (read(dev->event_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	rhh_lane_return(dev, lane);
	return ok;
}

static void
rhh_cuda_close(rhh_device *dev)
{
	while (dev->maps != NULL)
		rhh_map_free(dev->maps);
	(void) cudaSetDevice(dev->ordinal);
	rhh_lanes_drop(dev);
	(void) rhh_drop_spares(dev);
	rhh_free_slabs(dev);
	for (uint32_t i = 0; i < dev->n_pools; i++)
		(void) cudaHostUnregister(dev->pools[i]);
	rhh_unregister_slices(dev);
	if (dev->ahead)
		cudaStreamDestroy(dev->ahead);
	if (dev->copied)
		cudaEventDestroy(dev->copied);
	(void) cudaGetLastError();

	/*
	 * After an error a callback may still be about to write to the descriptor, so
	 * its number must not become that of another file.  The context stays: it
	 * belongs to the process, and ends with it.
	 */
	if (!dev->broken)
		close(dev->event_fd);
	if (dev->ordinal < RHH_MAX_ORDINALS && rhh_open_count[dev->ordinal] > 0 &&
		dev->n_sms > 0)
		rhh_open_count[dev->ordinal]--;
	free(dev);
}

static rhh_status
rhh_cuda_open(int32_t ordinal, const rhh_device_config *config, rhh_device **out,
			  rhh_error *err)
{
	rhh_device *dev;
	rhh_device_info info;
	int			count = 0;
	cudaError_t rc = cudaGetDeviceCount(&count);

	*out = NULL;
	if (rc != cudaSuccess || ordinal < 0 || ordinal >= count)
	{
		(void) cudaGetLastError();
		err->status = RHH_NO_DEVICE;
		if (rc != cudaSuccess)
			snprintf(err->message, sizeof(err->message), "no CUDA device: %s",
					 cudaGetErrorString(rc));
		else
			snprintf(err->message, sizeof(err->message),
					 "there is no CUDA device %d", (int) ordinal);
		return RHH_NO_DEVICE;
	}
	dev = (rhh_device *) calloc(1, sizeof(rhh_device));
	if (dev == NULL)
		return rhh_fail(err, RHH_NO_MEMORY, "out of memory");
	dev->ordinal = ordinal;
	dev->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->event_fd < 0)
	{
		free(dev);
		return rhh_fail(err, RHH_NO_MEMORY, "could not create an event descriptor");
	}
	dev->frees = 1;
	dev->limit_bytes = config->memory_limit_bytes;
	dev->look_rows = config->look_rows != 0 ? config->look_rows : RHH_CUDA_LOOK_ROWS;
	if (!RHH_CUDA(dev, cudaGetDeviceProperties, &dev->prop, ordinal))
	{
		rhh_broken(dev, err);
		(void) cudaGetLastError();
		rhh_cuda_close(dev);
		err->status = RHH_NO_DEVICE;
		return RHH_NO_DEVICE;
	}
	dev->carry_bytes = config->carry_bytes != 0 ? config->carry_bytes
		: (uint64_t) (dev->prop.l2CacheSize * RHH_CUDA_CARRY_CACHE);
	rhh_fill_info(&info, ordinal, &dev->prop);
	if (info.state == RHH_STATE_UNUSABLE)
	{
		rhh_cuda_close(dev);
		return rhh_fail(err, RHH_NO_DEVICE, info.reason);
	}
	dev->n_sms = dev->prop.multiProcessorCount;
	dev->max_tiles = (uint32_t) dev->n_sms * RHH_CUDA_BLOCKS_PER_SM *
		(RHH_CUDA_BLOCK_THREADS / RHH_GROUP_LANES);
	/* Counted before anything can fail, because close() counts down. */
	if (ordinal < RHH_MAX_ORDINALS)
		rhh_open_count[ordinal]++;
	if (!rhh_warm_up(dev))
	{
		if (dev->broken)
			*err = dev->error;
		else
			rhh_fail(err, RHH_NO_MEMORY, "out of memory");
		(void) cudaGetLastError();
		rhh_cuda_close(dev);
		return err->status;
	}
	*out = dev;
	return RHH_OK;
}

static rhh_status
rhh_cuda_info(rhh_device *dev, rhh_device_info *info, rhh_error *err)
{
	size_t		free_bytes = 0,
				total_bytes = 0;

	rhh_fill_info(info, dev->ordinal, &dev->prop);
	info->state = RHH_STATE_OPEN;
	if (!rhh_enter(dev) ||
		!RHH_CUDA(dev, cudaMemGetInfo, &free_bytes, &total_bytes))
		return rhh_broken(dev, err);
	info->free_bytes = free_bytes + rhh_slabs_bytes(dev);
	info->free_known = true;
	return RHH_OK;
}

static rhh_status
rhh_cuda_register_pool(rhh_device *dev, void *base, size_t bytes, rhh_error *err)
{
	struct cudaPointerAttributes known;

	if (!rhh_enter(dev))
		return rhh_broken(dev, err);

	/*
	 * Only whole pages are pinned.  Pinning rounds to pages, and if it pinned half
	 * of a neighbouring allocation, copies of that would fail.
	 */
	if (dev->n_pools == RHH_MAX_POOLS || bytes == 0 ||
		(uintptr_t) base % (uintptr_t) sysconf(_SC_PAGESIZE) != 0)
		return RHH_OK;
	/* another device of this process may have pinned it, for all devices */
	if (cudaPointerGetAttributes(&known, base) == cudaSuccess &&
		known.type != cudaMemoryTypeUnregistered)
		return RHH_OK;
	if (cudaHostRegister(base, bytes, cudaHostRegisterPortable) == cudaSuccess)
		dev->pools[dev->n_pools++] = base;
	else
		(void) cudaGetLastError();
	return RHH_OK;
}

static int
rhh_cuda_event_fd(rhh_device *dev)
{
	return dev->event_fd;
}

#endif							/* RHH_CUDA_OPEN_CUH */
