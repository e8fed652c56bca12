/*-------------------------------------------------------------------------
 *
 * cuda_library.c
 *		Loading the CUDA device, which is a library of its own.
 *
 * gpurhh_cuda.so lies in the same directory as gpurhh.so.  It contains CUDA's
 * runtime and the kernels for every supported GPU, tens of megabytes.  Only the device
 * service loads it, so that sessions do not map it, and cannot call CUDA by mistake.
 *
 * The service looks for it beside gpurhh.so, wherever the server found that, and
 * loads it with dlopen().  PostgreSQL's own loader would ask for a magic block, which
 * a library without any PostgreSQL code does not have.  Instead the library contains a
 * digest of the headers it was compiled with.  One with another digest is not used,
 * because its interface may differ.  Once loaded the library stays, because CUDA has
 * started threads in it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <unistd.h>

#include "service/service_state.h"

/*
 * Writes the library's path to path.  Returns false if the dynamic linker does not
 * tell where gpurhh.so is.
 */
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

/* Is the library installed?  Only the service can tell whether it can be used. */
bool
gpurhh_has_cuda_library(void)
{
	char		path[MAXPGPATH];

	return cuda_library_path(path) && access(path, R_OK) == 0;
}

/*
 * Loads the library and returns the CUDA device's entry points.
 *
 * On failure returns NULL and writes the reason to why, which has room for
 * GPURHH_MESSAGE_LEN bytes.  The reason is empty if gpurhh was built without CUDA and
 * no library is installed.  Signals are blocked, because the library's constructors
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
