/*-------------------------------------------------------------------------
 *
 * devices.c
 *		The devices of the device service: which there are, and opening them.
 *
 * All devices are listed when the service starts, the CPU first.  One is opened
 * with the first query that wants it, or at the start where the service starts with
 * the server, and stays open until the process ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "service/service_state.h"
#include "settings.h"

/* After an error of a GPU "auto" keeps to the CPU for this long. */
#define CUDA_PENALTY_MS 60000

/*
 * Adds all devices of a kind to the list.  If there are none, writes the reason to
 * none, unless that is NULL.
 */
static void
find_devices_of(DeviceService *service, const rhh_device_ops *ops, char *none)
{
	rhh_device_info infos[GPURHH_MAX_DEVICES];
	uint32		n = 0;
	rhh_error	err = {0};

	if (ops->enumerate(infos, lengthof(infos), &n, &err) != RHH_OK)
		n = 0;
	if (n == 0 && none != NULL)
		strlcpy(none, err.message, GPURHH_MESSAGE_LEN);
	for (uint32 i = 0; i < n && service->n_devices < GPURHH_MAX_DEVICES; i++)
	{
		ServiceDevice *dev = &service->devices[service->n_devices++];

		memset(dev, 0, sizeof(ServiceDevice));
		dev->service = service;
		dev->ops = ops;
		dev->ordinal = infos[i].ordinal;
		dev->info = infos[i];
		if (infos[i].kind == RHH_KIND_CPU)
			strlcpy(dev->name, "cpu", sizeof(dev->name));
		else
			snprintf(dev->name, sizeof(dev->name), "cuda:%d",
					 infos[i].ordinal);
	}
}

/*
 * Lists the devices of all kinds, the CPU first.  If the CUDA device's library was
 * installed and cannot be loaded, it is listed as an unusable first GPU, so that
 * gpurhh_devices() says why.  Signals are blocked.
 */
void
gpurhh_service_find_devices(DeviceService *service)
{
	const rhh_device_ops *cuda;
	char		why[GPURHH_MESSAGE_LEN];

	service->n_devices = 0;
	strlcpy(service->no_gpu, "gpurhh was built without CUDA",
			sizeof(service->no_gpu));
	find_devices_of(service, &rhh_cpu_ops, NULL);
	cuda = gpurhh_load_cuda(why);
	if (cuda != NULL)
		find_devices_of(service, cuda, service->no_gpu);
	else if (why[0] != '\0' && service->n_devices < GPURHH_MAX_DEVICES)
	{
		ServiceDevice *dev = &service->devices[service->n_devices++];

		memset(dev, 0, sizeof(ServiceDevice));
		dev->service = service;
		strlcpy(dev->name, "cuda:0", sizeof(dev->name));
		dev->info.kind = RHH_KIND_CUDA;
		dev->info.state = RHH_STATE_UNUSABLE;
		strlcpy(dev->info.reason, why, sizeof(dev->info.reason));
		ereport(LOG,
				(errcode(ERRCODE_UNDEFINED_FILE),
				 errmsg("gpurhh cannot use GPUs: %s", why),
				 errhint("Install gpurhh and gpurhh_cuda of one build, with \"make install\".")));
	}
}

/* Writes what is known of the devices to the area, where sessions can read it. */
void
gpurhh_service_publish_devices(DeviceService *service)
{
	ChannelArea *area = service->area;

	for (int i = 0; i < service->n_devices; i++)
	{
		ServiceDevice *dev = &service->devices[i];
		rhh_error	err = {0};

		if (dev->device != NULL)
		{
			(void) dev->ops->info(dev->device, &dev->info, &err);
			if (!gpurhh_service_reads_pages(dev) && dev->no_pages[0] != '\0')
				snprintf(dev->info.reason, sizeof(dev->info.reason), "it does not read pages of tables: %s", dev->no_pages);
		}
		else if (dev->info.kind == RHH_KIND_CPU)
		{
			rhh_device_info info;
			uint32		n = 0;

			/* free memory changes */
			if (dev->ops->enumerate(&info, 1, &n, &err) == RHH_OK && n == 1)
				dev->info = info;
		}
	}
	LWLockAcquire(&area->lock, LW_EXCLUSIVE);
	area->n_devices = service->n_devices;
	for (int i = 0; i < service->n_devices; i++)
	{
		const ServiceDevice *dev = &service->devices[i];

		area->devices[i] = dev->info;
		if (dev->problem[0] != '\0')
		{
			area->devices[i].state = RHH_STATE_UNUSABLE;
			strlcpy(area->devices[i].reason, dev->problem,
					sizeof(area->devices[i].reason));
		}
	}
	area->devices_seen = area->devices_wanted;
	LWLockRelease(&area->lock);
}

/* Makes the set of events that end the service's sleep: its latch, and open devices. */
void
gpurhh_service_rebuild_wait_set(DeviceService *service)
{
	WaitEventSet *set = gpurhh_create_wait_event_set(GPURHH_MAX_DEVICES + 2);

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; i < service->n_devices; i++)
	{
		const ServiceDevice *dev = &service->devices[i];

		if (dev->device != NULL)
			AddWaitEventToSet(set, WL_SOCKET_READABLE,
							  dev->ops->event_fd(dev->device), NULL, NULL);
	}
	if (service->wait_set != NULL)
		FreeWaitEventSet(service->wait_set);
	service->wait_set = set;
}

/*
 * A private service has its session's settings, which are in the area.  The shared
 * service has those of the configuration files.
 */
int
gpurhh_service_memory_limit_mb(const DeviceService *service)
{
	const ChannelArea *area = service->area;

	return area->shared ? gpurhh_device_memory_mb :
		area->settings.device_memory_mb;
}

int
gpurhh_service_cpu_threads(const DeviceService *service)
{
	const ChannelArea *area = service->area;

	return area->shared ? gpurhh_cpu_threads : area->settings.cpu_threads;
}

static void
note_no_pages(ServiceDevice *dev, const char *why)
{
	dev->reads_pages = false;
	strlcpy(dev->no_pages, why, sizeof(dev->no_pages));
	ereport(LOG,
			(errmsg("gpurhh: %s cannot read pages of tables: %s", dev->name, why)));
}

/*
 * Tells a device of shared buffers, which only a service that all sessions share is known to see
 * where they do.
 */
static void
register_pages(ServiceDevice *dev)
{
	rhh_error	err = {0};

	dev->reads_pages = false;
	dev->no_pages[0] = '\0';
	if (!dev->service->area->shared)
	{
		if (dev->info.kind == RHH_KIND_CUDA)
			strlcpy(dev->no_pages, "gpurhh is not in shared_preload_libraries", sizeof(dev->no_pages));
	}
	else if (BLCKSZ != RHH_PAGE_BYTES)
		strlcpy(dev->no_pages, "they have another size than 8 kB", sizeof(dev->no_pages));
	else if (dev->ops->register_pages(dev->device, BufferBlocks, NBuffers, &err) != RHH_OK)
		note_no_pages(dev, err.message);
	else
		dev->reads_pages = true;
}

/* Does an open device read pages of tables? */
bool
gpurhh_service_reads_pages(ServiceDevice *dev)
{
	rhh_error	err = {0};

	if (dev->reads_pages && !dev->ops->reads_pages(dev->device, &err))
		note_no_pages(dev, err.message);
	return dev->reads_pages;
}

/* Opens a device that is not open yet.  Returns false, with dev->problem, on failure. */
static bool
open_device(ServiceDevice *dev)
{
	DeviceService *service = dev->service;
	ChannelArea *area = service->area;
	rhh_device_config config = {0};
	rhh_error	err = {0};

	if (dev->device != NULL)
		return true;
	if (dev->info.state == RHH_STATE_UNUSABLE)
	{
		strlcpy(dev->problem, dev->info.reason, sizeof(dev->problem));
		return false;
	}
	config.memory_limit_bytes =
		(uint64) gpurhh_service_memory_limit_mb(service) * 1024 * 1024;
	config.cpu_threads = gpurhh_service_cpu_threads(service);
	if (dev->ops->open(dev->ordinal, &config, &dev->device, &err) != RHH_OK)
	{
		dev->device = NULL;
		strlcpy(dev->problem, err.message, sizeof(dev->problem));
		return false;
	}
	dev->problem[0] = '\0';
	/* if this fails, copies are slower, and nothing else changes */
	(void) dev->ops->register_pool(dev->device, gpurhh_block_base(area, 0),
								   area->block_bytes * area->n_blocks, &err);
	register_pages(dev);
	gpurhh_service_rebuild_wait_set(service);
	/* sessions want to know how many threads it has */
	gpurhh_service_publish_devices(service);
	return true;
}

/*
 * Returns the device that gpurhh.device = wanted asks for, opened.  If that is a GPU
 * that cannot be had, returns the CPU device, and writes the reason to note.
 * Returns NULL, also with the reason, if no device can be opened.
 */
ServiceDevice *
gpurhh_service_choose_device(DeviceService *service, const char *wanted,
							 char *note, Size note_len)
{
	ChannelArea *area = service->area;
	bool		automatic = strcmp(wanted, "auto") == 0;
	bool		any_cuda = automatic || strcmp(wanted, "cuda") == 0;
	ServiceDevice *cpu = NULL;

	note[0] = '\0';
	for (int i = 0; i < service->n_devices; i++)
	{
		ServiceDevice *dev = &service->devices[i];

		if (dev->info.kind == RHH_KIND_CPU)
		{
			cpu = dev;
			continue;
		}
		if (!any_cuda && strcmp(wanted, dev->name) != 0)
			continue;
		/* "auto" asks for no GPU, so a missing library is nothing to report */
		if (automatic && dev->ops == NULL)
			continue;
		if (automatic && area->cuda_failed_at != 0 &&
			!TimestampDifferenceExceeds(area->cuda_failed_at,
										GetCurrentTimestamp(),
										CUDA_PENALTY_MS))
		{
			snprintf(note, note_len, "%s failed a short time ago", dev->name);
			continue;
		}
		if (open_device(dev))
			return dev;
		snprintf(note, note_len, "%s: %s", dev->name, dev->problem);
	}
	if (!automatic && note[0] == '\0' && strcmp(wanted, "cpu") != 0)
		snprintf(note, note_len, "there is no device %s: %s%s", wanted,
				 service->n_devices > 1 ? "the last one is " : service->no_gpu,
				 service->n_devices > 1 ?
				 service->devices[service->n_devices - 1].name : "");
	if (cpu != NULL && open_device(cpu))
		return cpu;
	if (note[0] == '\0')
		snprintf(note, note_len, "%s", cpu ? cpu->problem : "no device");
	return NULL;
}

/*
 * Notes that a device has failed, which ends the process as soon as signals are
 * let in again.
 */
void
gpurhh_service_note_device_error(ServiceDevice *dev, const char *message)
{
	strlcpy(dev->service->device_error, message,
			sizeof(dev->service->device_error));
	dev->service->cuda_error = dev->info.kind == RHH_KIND_CUDA;
}
