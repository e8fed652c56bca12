/*
 * common.c
 *		What every file of device_test uses: memory, the clock, numbers of rows.
 *
 * A device's memory is the host's for the CPU device.  For the CUDA device it
 * comes from test/device_memory.cu, because these files are C and know nothing of
 * CUDA's headers.
 */
#include "device_test.h"

uint64_t	option_seed = 1;
uint32_t	option_threads = 0;
bool		option_quick = false;
bool		option_on_device = false;
uint32_t	option_divisor = 1;

void
die(const char *what)
{
	fprintf(stderr, "device_test: %s\n", what);
	exit(2);
}

void *
need(size_t bytes)
{
	void	   *p = calloc(1, bytes > 0 ? bytes : 1);

	if (p == NULL)
		die("out of memory");
	return p;
}

/* ---------- a device's memory ---------- */

#ifdef RHH_WITH_CUDA
extern int	test_device_alloc(void **memory, size_t bytes);
extern int	test_device_free(void *memory);
extern int	test_device_copy(void *to, const void *from, size_t bytes);
#endif

void *
device_alloc(const device *device, size_t bytes)
{
	void	   *p = NULL;

	if (device->ops->kind == RHH_KIND_CPU)
	{
		if (posix_memalign(&p, 64, bytes) != 0)
			die("out of memory");
		return p;
	}
#ifdef RHH_WITH_CUDA
	if (test_device_alloc(&p, bytes))
		die("out of device memory");
#endif
	return p;
}

void
device_free(const device *device, void *p)
{
	if (device->ops->kind == RHH_KIND_CPU)
		free(p);
#ifdef RHH_WITH_CUDA
	else if (p != NULL && test_device_free(p))
		die("could not free device memory");
#endif
}

void
device_copy(const device *device, void *to, const void *from, size_t bytes)
{
	if (device->ops->kind == RHH_KIND_CPU)
		memcpy(to, from, bytes);
#ifdef RHH_WITH_CUDA
	else if (test_device_copy(to, from, bytes))
		die("could not copy to or from the device");
#endif
}

double
clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}

double
now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* Rows of a case, fewer with --quick and --tiny. */
uint64_t
rows(uint64_t n)
{
	return option_divisor > 1 ? n / option_divisor + 1 : n;
}

/* Of a case that must fill something: not so few with --tiny. */
uint64_t
enough_rows(uint64_t n)
{
	return option_divisor > 8 ? n / 8 + 1 : rows(n);
}

/*
 * Of a case that has very many combinations: is the next one left out?  With --tiny two of three are,
 * which ones depends on the seed.  *n counts them.
 */
bool
left_out(uint32_t *n)
{
	return option_divisor > 8 && (option_seed + (*n)++) % 3 != 0;
}
