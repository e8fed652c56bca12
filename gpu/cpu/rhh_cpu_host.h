/*
 * rhh_cpu_host.h
 *		What this process may use of its machine.
 */
#ifndef RHH_CPU_HOST_H
#define RHH_CPU_HOST_H

#include <stddef.h>
#include <stdint.h>

typedef struct rhh_cpu_host
{
	uint64_t	total_bytes;	/* of memory; 0 if not known */
	uint64_t	available_bytes;	/* of these, what nobody needs at the moment */
	uint32_t	n_cpus;			/* at least 1 */
} rhh_cpu_host;

/*
 * Fills *host.  root is a prefix for each path that is read: "" except in tests.  What
 * cannot be read is no limit.
 */
void		rhh_cpu_host_look(const char *root, rhh_cpu_host *host);

/* The memory for all maps, if nobody has said how much. */
uint64_t	rhh_cpu_host_memory(const rhh_cpu_host *host);

/*
 * How much has to stay available, whatever the limit is: other processes grow, too, and if
 * nothing is left the kernel kills one of them.
 */
uint64_t	rhh_cpu_host_floor(const rhh_cpu_host *host);

/* The processor's name, "CPU" if it has none; cut to size bytes. */
void		rhh_cpu_host_name(char *name, size_t size);

#endif
