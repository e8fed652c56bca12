/*
 * rhh_cpu_host.c
 *		Finds out what this process may use of its machine: memory and processors.
 *
 * In a container that is less than the machine has.  The limits are those of control
 * groups (Linux's Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst): of the
 * process's own group, and of all groups around it that can be seen.
 *
 *		/proc/self/cgroup		the group's path, in each hierarchy
 *		/proc/self/mountinfo	where hierarchies are mounted, and from which group
 *								on: containers often see their own as the root
 *
 *					version 2				version 1
 *		memory		memory.max, .high		memory.limit_in_bytes
 *		  used		memory.current			memory.usage_in_bytes
 *		processors	cpu.max					cpu.cfs_quota_us, cpu.cfs_period_us
 *
 * The available memory of a group is its limit less what it uses.  Pages of files are not
 * counted as used, as in the kernel's MemAvailable, because they are given back when memory
 * is short.  PostgreSQL's shared buffers are not such pages; as long as a part of them has
 * not been touched, nothing counts it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu/rhh_cpu_host.h"

#define MAX_CPUS 8192
#define PATH_BYTES 4096

/* ---------- files ---------- */

static FILE *
open_file(const char *root, const char *dir, const char *name)
{
	char		path[2 * PATH_BYTES];

	if ((size_t) snprintf(path, sizeof(path), "%s%s/%s", root, dir, name) >= sizeof(path))
		return NULL;
	return fopen(path, "r");
}

/*
 * Gets what follows a key up to the end of its line, without blanks and a colon in
 * between.  False: the key is not there.
 */
static bool
find_value(FILE *f, const char *key, char *value, size_t value_size)
{
	char		line[512];
	bool		found = false;

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
	{
		const size_t length = strlen(key);
		const char *p = line + length;

		found = strncmp(line, key, length) == 0 && (*p == ' ' || *p == '\t' || *p == ':');
		if (found)
		{
			p += strspn(p, " \t:");
			snprintf(value, value_size, "%.*s", (int) strcspn(p, "\n"), p);
		}
	}
	fclose(f);
	return found;
}

/*
 * Reads the n numbers with which a file begins; "max", and -1 in version 1, become
 * UINT64_MAX.  Numbers that are not there are left as they are.
 */
static void
read_numbers(const char *root, const char *dir, const char *name, uint64_t *numbers, int n)
{
	FILE	   *f = open_file(root, dir, name);
	char		word[32];

	if (f == NULL)
		return;
	for (int i = 0; i < n && fscanf(f, "%31s", word) == 1; i++)
	{
		char	   *end;
		uint64_t	number = strtoull(word, &end, 10);

		if (strcmp(word, "max") == 0 || word[0] == '-')
			numbers[i] = UINT64_MAX;
		else if (*end == '\0')
			numbers[i] = number;
		else
			break;
	}
	fclose(f);
}

/* ---------- one control group ---------- */

static uint64_t
stat_value(const char *root, const char *dir, const char *key)
{
	char		value[32];

	return find_value(open_file(root, dir, "memory.stat"), key, value, sizeof(value))
		? strtoull(value, NULL, 10) : 0;
}

static void
limit_memory(const char *root, const char *dir, bool v2, rhh_cpu_host *host)
{
	uint64_t	limit = UINT64_MAX;
	uint64_t	high = UINT64_MAX;	/* beyond it the kernel slows a group down */
	uint64_t	used = 0;
	uint64_t	files;

	read_numbers(root, dir, v2 ? "memory.max" : "memory.limit_in_bytes", &limit, 1);
	if (v2)
		read_numbers(root, dir, "memory.high", &high, 1);
	if (high < limit)
		limit = high;
	if (limit == UINT64_MAX)	/* version 1 has a somewhat smaller number, which does no harm */
		return;
	if (limit < host->total_bytes)
		host->total_bytes = limit;
	read_numbers(root, dir, v2 ? "memory.current" : "memory.usage_in_bytes", &used, 1);
	files = stat_value(root, dir, v2 ? "active_file" : "total_active_file") +
		stat_value(root, dir, v2 ? "inactive_file" : "total_inactive_file");
	used -= files < used ? files : used;
	limit -= used < limit ? used : limit;
	if (limit < host->available_bytes)
		host->available_bytes = limit;
}

static void
limit_cpus(const char *root, const char *dir, bool v2, rhh_cpu_host *host)
{
	uint64_t	quota[2] = {UINT64_MAX, 100000};	/* us of time in us */
	uint64_t	n;

	if (v2)
		read_numbers(root, dir, "cpu.max", quota, 2);
	else
	{
		read_numbers(root, dir, "cpu.cfs_quota_us", &quota[0], 1);
		read_numbers(root, dir, "cpu.cfs_period_us", &quota[1], 1);
	}
	if (quota[0] == UINT64_MAX || quota[1] == 0)
		return;
	n = quota[0] / quota[1] + (quota[0] % quota[1] != 0);
	if (n < host->n_cpus)
		host->n_cpus = n > 0 ? (uint32_t) n : 1;
}

/* ---------- where they are ---------- */

/* Is word among those of a list that commas separate? */
static bool
has_word(const char *list, const char *word)
{
	const size_t length = strlen(word);

	while (*list != '\0')
	{
		const size_t n = strcspn(list, ",\n");

		if (n == length && strncmp(list, word, n) == 0)
			return true;
		list += n;
		list += *list != '\0';
	}
	return false;
}

/*
 * Finds the group of the process in the hierarchy of a controller, in version 1, or, if
 * the controller is NULL, in version 2.
 */
static bool
find_group(const char *root, const char *controller, char *path)
{
	FILE	   *f = open_file(root, "/proc/self", "cgroup");
	char		line[PATH_BYTES];
	bool		found = false;

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
	{
		char	   *controllers = strchr(line, ':');	/* "4:memory:/path" */
		char	   *group = controllers ? strchr(controllers + 1, ':') : NULL;

		if (group == NULL)
			continue;
		*group++ = '\0';
		controllers++;
		found = controller ? has_word(controllers, controller) : *controllers == '\0';
		if (found)
			snprintf(path, PATH_BYTES, "%.*s", (int) strcspn(group, "\n"), group);
	}
	fclose(f);
	return found;
}

/* Decodes a path of mountinfo, where a blank is a backslash and three octal digits. */
static void
unescape(char *path)
{
	char	   *to = path;

	for (const char *from = path; *from != '\0';)
	{
		unsigned	c;
		int			n;

		if (sscanf(from, "\\%3o%n", &c, &n) == 1)
		{
			*to++ = (char) c;
			from += n;
		}
		else
			*to++ = *from++;
	}
	*to = '\0';
}

/* The part of a path below a directory, "" or "/..."; NULL if it is not below it. */
static const char *
below(const char *path, const char *directory)
{
	const size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	if (strncmp(path, directory, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/*
 * Finds where a hierarchy is mounted, and the directory of the group there.  Of several
 * mounts it takes the last one in which the group can be seen.  If there is none, the
 * directory is the mount point of the first: the nearest group that can be seen.
 */
static bool
find_mount(const char *root, const char *controller, const char *path, char *point, char *dir)
{
	FILE	   *f = open_file(root, "/proc/self", "mountinfo");
	char		line[3 * PATH_BYTES];
	bool		found = false;

	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL)
	{
		/* "36 35 98:0 /seen /point rw,noatime shared:1 - cgroup cgroup rw,memory" */
		const char *rest = strstr(line, " - ");
		const char *group;
		char		seen[PATH_BYTES];
		char		at[PATH_BYTES];
		char		type[32];
		char		options[512];

		if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", seen, at) != 2 ||
			sscanf(rest, " - %31s %*s %511s", type, options) != 2 ||
			strcmp(type, controller ? "cgroup" : "cgroup2") != 0 ||
			(controller && !has_word(options, controller)))
			continue;
		unescape(seen);
		unescape(at);
		group = below(path, seen);
		if (group && strncmp(group, "/..", 3) == 0)
			group = NULL;
		if (found && group == NULL)
			continue;
		found = true;
		snprintf(point, PATH_BYTES, "%s", at);
		snprintf(dir, 2 * PATH_BYTES, "%s%s", at, group ? group : "");
	}
	fclose(f);
	return found;
}

typedef void (*limit_by)(const char *root, const char *dir, bool v2, rhh_cpu_host *host);

/* Lowers *host to the limits of the process's group in a hierarchy and of those around it. */
static void
limit_by_groups(const char *root, const char *controller, limit_by limit, rhh_cpu_host *host)
{
	char		path[PATH_BYTES];
	char		point[PATH_BYTES];
	char		dir[2 * PATH_BYTES];

	if (!find_group(root, controller, path) || !find_mount(root, controller, path, point, dir))
		return;
	for (;;)
	{
		char	   *last = strrchr(dir, '/');

		limit(root, dir, controller == NULL, host);
		if (last == NULL || (size_t) (last - dir) < strlen(point))
			break;
		*last = '\0';
	}
}

/* ---------- all together ---------- */

void
rhh_cpu_host_look(const char *root, rhh_cpu_host *host)
{
	static const struct
	{
		const char *controller;
		limit_by	limit;
	}			limits[] = {
		{NULL, limit_memory}, {"memory", limit_memory}, {NULL, limit_cpus}, {"cpu", limit_cpus}
	};
	cpu_set_t	cpus[MAX_CPUS / CPU_SETSIZE];
	const long	pages = sysconf(_SC_PHYS_PAGES);
	const long	page_bytes = sysconf(_SC_PAGESIZE);
	const long	online = sysconf(_SC_NPROCESSORS_ONLN);
	char		value[64];

	host->total_bytes = pages > 0 && page_bytes > 0 ? (uint64_t) pages * (uint64_t) page_bytes : 0;
	host->available_bytes = host->total_bytes / 2;
	if (find_value(open_file(root, "/proc", "meminfo"), "MemAvailable", value, sizeof(value)))
		host->available_bytes = strtoull(value, NULL, 10) * 1024;
	host->n_cpus = online > 0 ? (uint32_t) online : 1;
	/* those that a container, taskset or numactl leave it */
	if (sched_getaffinity(0, sizeof(cpus), cpus) == 0 && CPU_COUNT_S(sizeof(cpus), cpus) > 0)
		host->n_cpus = (uint32_t) CPU_COUNT_S(sizeof(cpus), cpus);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		limit_by_groups(root, limits[i].controller, limits[i].limit, host);
}

/*
 * While the maps grow others take from what is available now: sessions their work_mem, the
 * kernel its cache.  And on a machine that has just been started nearly all memory may be
 * available.
 */
uint64_t
rhh_cpu_host_memory(const rhh_cpu_host *host)
{
	const uint64_t half = host->available_bytes / 2;

	return host->total_bytes > 0 && host->total_bytes / 4 < half ? host->total_bytes / 4 : half;
}

uint64_t
rhh_cpu_host_floor(const rhh_cpu_host *host)
{
	const uint64_t most = UINT64_C(4) << 30;

	return host->total_bytes / 16 < most ? host->total_bytes / 16 : most;
}

void
rhh_cpu_host_name(char *name, size_t size)
{
	if (!find_value(open_file("", "/proc", "cpuinfo"), "model name", name, size))
		snprintf(name, size, "CPU");
}
