/*-------------------------------------------------------------------------
 *
 * cuda_library.c
 *		Loading the CUDA device, which is a library of its own.
 *
 * gpurhh_cuda.so lies beside gpurhh.so and has all that is of CUDA: kernels for
 * every GPU supported, tens of megabytes, and CUDA's runtime.  Only the device service
 * loads it, so that sessions neither map it nor can touch CUDA by mistake.
 *
 * It is found by the place of this library, whatever way that was found, and
 * loaded by dlopen(): it has nothing of PostgreSQL in it, so no magic block
 * either.  Instead it tells of what headers it was made, and one made of others
 * is not used: both must have come from the same build, or from one whose
 * interface was the same.  Once in use it stays: CUDA has threads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <unistd.h>

#include "service/service_state.h"

/* The library's path; false if the linker does not tell. */
static bool
cuda_library_path(char *path)
{
	Dl_info		self;
	const char *suffix;
	int			len;

	if (dladdr((void *) gpurhh_load_cuda, &self) == 0 || self.dli_fname == NULL)
		return false;
	suffix = strrchr(self.dli_fname, '.');
	if (suffix == NULL)
		return false;
	len = snprintf(path, MAXPGPATH, "%.*s_cuda%s",
				   (int) (suffix - self.dli_fname), self.dli_fname, suffix);
	return len < MAXPGPATH;
}

/* Is it there?  Whether it can be used, only the service can tell. */
bool
gpurhh_has_cuda_library(void)
{
	char		path[MAXPGPATH];

	return cuda_library_path(path) && access(path, R_OK) == 0;
}

/*
 * The CUDA device's entry points, or NULL with the reason in why, which has room
 * for GPURHH_MESSAGE_LEN bytes; an empty one if this build has no CUDA device and
 * none has been put beside it.  Signals are blocked: the library's constructors
 * run here.
 */
const rhh_device_ops *
gpurhh_load_cuda(char *why)
{
	char		path[MAXPGPATH];
	void	   *handle;
	const rhh_library *library;

	why[0] = '\0';
	if (!gpurhh_has_cuda_library())
	{
#ifdef RHH_WITH_CUDA
		strlcpy(why, "the library gpurhh_cuda is not installed", GPURHH_MESSAGE_LEN);
#endif
		return NULL;
	}
	(void) cuda_library_path(path);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
	{
		/* the loader's message begins with the path */
		snprintf(why, GPURHH_MESSAGE_LEN, "could not load library %s", dlerror());
		return NULL;
	}
	library = dlsym(handle, RHH_LIBRARY_SYMBOL);
	if (library == NULL || library->ops == NULL ||
		strncmp(library->headers, RHH_HEADERS, sizeof(library->headers)) != 0)
	{
		(void) dlclose(handle);
		strlcpy(why, "the library gpurhh_cuda is of another build than gpurhh",
				GPURHH_MESSAGE_LEN);
		return NULL;
	}
	return library->ops;
}
