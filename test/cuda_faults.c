/*
 * cuda_faults.c
 *		A libcuda.so.1 that passes everything on to the driver's, and fails when it is told to.
 *
 * cuda_faults.sh builds it, and has the server find it in place of the driver's library.  The runtime gets the
 * driver's functions by cuGetProcAddress(), so that is where those get others put before them that may fail.
 * What is to fail stands in a file, $GPURHH_FAULTS, that the script changes while the server runs.
 *
 * The driver's library is $GPURHH_LIBCUDA.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file: which function fails, after how many calls of it, and how often; and how often it was called. */
typedef struct control
{
	char		name[40];
	_Atomic int64_t skip;
	_Atomic int64_t fail;
	_Atomic int64_t calls;
} control;

/* The functions, and the errors that they give: out of memory, of the operating system, and an illegal address. */
#define FAULTS(X) \
	X(cuMemAlloc, 2) \
	X(cuMemHostRegister, 304) \
	X(cuMemcpyAsync, 700) \
	X(cuMemcpyHtoDAsync, 700) \
	X(cuMemcpyDtoHAsync, 700) \
	X(cuMemcpyDtoDAsync, 700) \
	X(cuMemsetD8Async, 700) \
	X(cuMemsetD32Async, 700) \
	X(cuLaunchKernel, 719) \
	X(cuLaunchKernelEx, 719) \
	X(cuEventRecord, 700) \
	X(cuStreamSynchronize, 700)

typedef uintptr_t word;
typedef int (*any_function)(word, word, word, word, word, word, word, word, word, word, word, word);
typedef int (*get_address)(const char *, void **, int, uint64_t, void *);

static void *driver;
static control *told;

static void __attribute__((constructor))
begin(void)
{
	const char *path = getenv("GPURHH_FAULTS");
	const char *library = getenv("GPURHH_LIBCUDA");
	int			fd = path != NULL ? open(path, O_RDWR) : -1;

	driver = library != NULL ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (driver == NULL)
		fprintf(stderr, "cuda_faults: no driver: %s\n", library != NULL ? dlerror() : "GPURHH_LIBCUDA is not set");
	if (fd < 0)
		return;
	told = mmap(NULL, sizeof(control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (told == MAP_FAILED)
		told = NULL;
	close(fd);
}

/* Is this call to fail? */
static int
fails(const char *name)
{
	if (told == NULL || strcmp(told->name, name) != 0)
		return 0;
	atomic_fetch_add(&told->calls, 1);
	return atomic_fetch_sub(&told->skip, 1) <= 0 && atomic_fetch_sub(&told->fail, 1) > 0;
}

/* None of these takes more than 12 arguments, or a float. */
#define DEFINE(function, error) \
	static any_function real_##function; \
	static int \
	faulty_##function(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, \
					  word l) \
	{ \
		return fails(#function) ? error : real_##function(a, b, c, d, e, f, g, h, i, j, k, l); \
	}
FAULTS(DEFINE)

/* Puts a function that may fail before the driver's. */
static void
put_before(const char *symbol, void **function)
{
#define PUT(name, error) \
	if (strcmp(symbol, #name) == 0 && *function != NULL) \
	{ \
		real_##name = (any_function) *function; \
		*function = (void *) faulty_##name; \
	}
	FAULTS(PUT)
}

int
cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, void *status)
{
	const get_address real = driver != NULL ? (get_address) dlsym(driver, "cuGetProcAddress_v2") : NULL;
	const int	result = real != NULL ? real(symbol, function, version, flags, status) : 500;

	/* so is this one asked for again */
	if (result == 0 && strcmp(symbol, "cuGetProcAddress") == 0)
		*function = (void *) cuGetProcAddress_v2;
	else if (result == 0)
		put_before(symbol, function);
	return result;
}

int
cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

int
cuInit(unsigned flags)
{
	int			(*real) (unsigned) = driver != NULL ? (int (*)(unsigned)) dlsym(driver, "cuInit") : NULL;

	return real != NULL ? real(flags) : 100;
}

int
cuDriverGetVersion(int *version)
{
	int			(*real) (int *) = driver != NULL ? (int (*)(int *)) dlsym(driver, "cuDriverGetVersion") : NULL;

	return real != NULL ? real(version) : 100;
}
