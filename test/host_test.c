/*
 * host_test.c
 *		What the CPU device thinks it may use of its machine (gpu/cpu/rhh_cpu_host.c).
 *
 * The files that it reads are written as kernels show them, to a machine without
 * groups, in containers with either version of control groups, and under a
 * service manager.  Then it is asked about this very process: with one processor
 * only, and, where groups can be made (as root), in one with little memory.
 *
 * Ends with "N passed, N failed".
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu/rhh_cpu_host.h"

#define MB ((uint64_t) 1 << 20)

static char root[256];			/* what is written; removed at the end */
static char group[256];			/* "": none was made */
static int	n_passed = 0;
static int	n_failed = 0;

static void
die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static void
check(const char *name, const char *what, uint64_t is, uint64_t expected)
{
	if (is == expected)
		n_passed++;
	else
	{
		n_failed++;
		printf("FAILED %s: %s is %" PRIu64 ", not %" PRIu64 "\n", name, what, is, expected);
	}
}

/* ---------- files ---------- */

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void) st;
	(void) flag;
	return ftw->level > 0 ? remove(path) : 0;
}

static void
empty_root(void)
{
	(void) nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
clean_up(void)
{
	empty_root();
	(void) rmdir(root);
	/* who was in the group may be gone only in a moment */
	for (int i = 0; group[0] != '\0' && i < 100 && rmdir(group) != 0 && errno == EBUSY; i++)
		usleep(10000);
}

/* A file below root, with the directories above it. */
static void __attribute__((format(printf, 2, 3)))
put(const char *path, const char *format, ...)
{
	char		name[512];
	va_list		args;
	FILE	   *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *p = name + 1; (p = strchr(p, '/')) != NULL; p++)
	{
		*p = '\0';
		if (mkdir(name, 0700) != 0 && errno != EEXIST)
			die(name);
		*p = '/';
	}
	f = fopen(name, "w");
	if (f == NULL)
		die(name);
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	if (fclose(f) != 0)
		die(name);
}

/* An empty root, but for these two files and half a TB of available memory. */
static void
start(const char *groups, const char *mounts)
{
	empty_root();
	put("/proc/meminfo", "MemTotal:       1073741824 kB\nMemFree:          524288 kB\nMemAvailable:   536870912 kB\n");
	put("/proc/self/cgroup", "%s", groups);
	put("/proc/self/mountinfo", "%s", mounts);
}

static const uint64_t NO_LIMIT = (uint64_t) 512 * 1024 * MB;

/* Compares with what is expected; machine: as much as the machine has. */
static void
expect(const char *name, uint64_t total, uint64_t available, uint32_t cpus)
{
	rhh_cpu_host machine;
	rhh_cpu_host host;

	rhh_cpu_host_look("/nowhere", &machine);
	rhh_cpu_host_look(root, &host);
	check(name, "memory", host.total_bytes, total < machine.total_bytes ? total : machine.total_bytes);
	check(name, "available memory", host.available_bytes, available);
	check(name, "processors", host.n_cpus, cpus < machine.n_cpus ? cpus : machine.n_cpus);
}

static const char *const V2_MOUNT =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"29 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static void
test_files(void)
{
	start("0::/\n", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n");
	expect("no groups", UINT64_MAX, NO_LIMIT, UINT32_MAX);

	start("0::/\n", V2_MOUNT);
	put("/sys/fs/cgroup/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/memory.max", "max\n");
	put("/sys/fs/cgroup/memory.current", "12345678\n");
	expect("version 2, no limits", UINT64_MAX, NO_LIMIT, UINT32_MAX);

	/* what a container with version 2 sees: itself as the root */
	start("0::/\n", V2_MOUNT);
	put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
	put("/sys/fs/cgroup/memory.max", "%" PRIu64 "\n", 512 * MB);
	put("/sys/fs/cgroup/memory.current", "%" PRIu64 "\n", 400 * MB);
	put("/sys/fs/cgroup/memory.stat", "anon 1\nfile %" PRIu64 "\nactive_file %" PRIu64
		"\ninactive_file %" PRIu64 "\n", 300 * MB, 100 * MB, 50 * MB);
	expect("version 2, container", 512 * MB, 262 * MB, 1);

	/* a service: its parents' limits hold as well, whichever is least */
	start("0::/system.slice/postgresql.service\n", V2_MOUNT);
	put("/sys/fs/cgroup/system.slice/postgresql.service/memory.max", "%" PRIu64 "\n", 900 * MB);
	put("/sys/fs/cgroup/system.slice/postgresql.service/memory.high", "%" PRIu64 "\n", 800 * MB);
	put("/sys/fs/cgroup/system.slice/postgresql.service/memory.current", "%" PRIu64 "\n", 100 * MB);
	put("/sys/fs/cgroup/system.slice/memory.max", "%" PRIu64 "\n", 1000 * MB);
	put("/sys/fs/cgroup/system.slice/memory.current", "%" PRIu64 "\n", 990 * MB);
	put("/sys/fs/cgroup/system.slice/cpu.max", "100000 100000\n");
	expect("version 2, service", 800 * MB, 10 * MB, 1);
	put("/sys/fs/cgroup/system.slice/memory.current", "%" PRIu64 "\n", 2000 * MB);
	expect("version 2, more used than there may be", 800 * MB, 0, 1);

	/* a container with version 1: paths are the machine's, mounts begin at its group */
	start("11:memory:/docker/0123\n10:cpuacct,cpu:/docker/0123\n1:name=systemd:/docker/0123\n0::/\n",
		  "31 22 0:30 /docker/0123 /sys/fs/cgroup/memory ro,nosuid master:17 - cgroup cgroup rw,memory\n"
		  "32 22 0:31 /docker/0123 /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:18 - cgroup cgroup rw,cpu,cpuacct\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "%" PRIu64 "\n", 256 * MB);
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "%" PRIu64 "\n", 100 * MB);
	put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 0\nactive_file 0\ntotal_inactive_file %" PRIu64
		"\ntotal_active_file 0\n", 60 * MB);
	put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "10000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	expect("version 1, container", 256 * MB, 216 * MB, 1);
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	expect("version 1, no limits", UINT64_MAX, NO_LIMIT, UINT32_MAX);

	/* a group that cannot be seen from here: what is mounted is nearest */
	start("0::/../other\n", V2_MOUNT);
	put("/sys/fs/cgroup/memory.max", "%" PRIu64 "\n", 64 * MB);
	put("/sys/fs/cgroup/memory.current", "0\n");
	expect("version 2, beyond the mount", 64 * MB, 64 * MB, UINT32_MAX);

	/* version 1, and version 2 for its processes only; half a processor more than one */
	start("5:memory:/a/b\n4:cpu:/a/b\n0::/a/b\n",
		  "29 22 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		  "30 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		  "31 22 0:28 /a /sys/fs/cgroup/cpu\\040x rw - cgroup none rw,cpu\n");
	put("/sys/fs/cgroup/unified/a/b/cgroup.procs", "1\n");
	put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "%" PRIu64 "\n", 300 * MB);
	put("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "0\n");
	put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "%" PRIu64 "\n", 200 * MB);
	put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "%" PRIu64 "\n", 50 * MB);
	put("/sys/fs/cgroup/cpu x/b/cpu.cfs_quota_us", "150000\n");
	put("/sys/fs/cgroup/cpu x/b/cpu.cfs_period_us", "100000\n");
	expect("both versions", 200 * MB, 150 * MB, 2);

	/* of several mounts the one in which the group is */
	start("0::/pods/one\n",
		  "29 22 0:26 /pods/two /mnt/two rw - cgroup2 cgroup2 rw\n"
		  "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		  "31 22 0:26 /pods/three /mnt/three rw - cgroup2 cgroup2 rw\n");
	put("/mnt/two/memory.max", "%" PRIu64 "\n", 1 * MB);
	put("/mnt/three/memory.max", "%" PRIu64 "\n", 1 * MB);
	put("/sys/fs/cgroup/pods/one/memory.max", "%" PRIu64 "\n", 70 * MB);
	put("/sys/fs/cgroup/pods/one/memory.current", "0\n");
	expect("several mounts", 70 * MB, 70 * MB, UINT32_MAX);

	/* nothing that one would expect */
	start("\n:\n::\n0:\nmemory\n4:memory\n0::\n", "\n - \n1 2 3 / - cgroup2\n1 2 3 / /sys/fs/cgroup rw - cgroup2 x rw\n");
	put("/sys/fs/cgroup/memory.max", "lots\n");
	put("/sys/fs/cgroup/cpu.max", "100000 0\n");
	put("/sys/fs/cgroup/memory.stat", "active_file");
	expect("nonsense", UINT64_MAX, NO_LIMIT, UINT32_MAX);
	put("/sys/fs/cgroup/memory.max", "1x\n");
	put("/sys/fs/cgroup/cpu.max", "lots 100000\n");
	expect("more nonsense", UINT64_MAX, NO_LIMIT, UINT32_MAX);
}

/* ---------- this process ---------- */

static void
test_affinity(void)
{
	cpu_set_t	before;
	cpu_set_t	one;
	rhh_cpu_host host;

	if (sched_getaffinity(0, sizeof(before), &before) != 0)
		return;
	CPU_ZERO(&one);
	for (int i = 0; CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		die("sched_setaffinity");
	rhh_cpu_host_look("", &host);
	check("taskset", "processors", host.n_cpus, 1);
	if (sched_setaffinity(0, sizeof(before), &before) != 0)
		die("sched_setaffinity");
}

/* Puts a child into a new group with 200 MB, if that can be, and asks what it may use. */
static void
test_group(const char *mount, const char *limit)
{
	char		name[512];
	int			status = 0;
	pid_t		pid;
	FILE	   *f;

	snprintf(group, sizeof(group), "%s/rhh_host_test.%d", mount, (int) getpid());
	if (mkdir(group, 0700) != 0)
	{
		printf("left out: no group can be made in %s\n", mount);
		group[0] = '\0';
		return;
	}
	snprintf(name, sizeof(name), "%s/%s", group, limit);
	f = fopen(name, "r+");
	if (f == NULL || fprintf(f, "%" PRIu64 "\n", 200 * MB) < 0 || fclose(f) != 0)
	{
		printf("left out: groups in %s have no %s\n", mount, limit);
		return;
	}
	pid = fork();
	if (pid == 0)
	{
		rhh_cpu_host host;

		snprintf(name, sizeof(name), "%s/cgroup.procs", group);
		f = fopen(name, "w");
		if (f == NULL || fprintf(f, "%d\n", (int) getpid()) < 0 || fclose(f) != 0)
			_exit(77);
		rhh_cpu_host_look("", &host);
		_exit(host.total_bytes == 200 * MB && host.available_bytes > 100 * MB &&
			  host.available_bytes <= 200 * MB ? 0 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("a child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("left out: %s does not let processes in\n", group);
	else
		check("a group of our own", "status", (uint64_t) status, 0);
}

int
main(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof(root), "%s/rhh_host_test.XXXXXX", tmp ? tmp : "/tmp");
	if (mkdtemp(root) == NULL)
		die(root);
	atexit(clean_up);
	test_files();
	test_affinity();
	if (access("/sys/fs/cgroup/memory", F_OK) == 0)
		test_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
	else
		test_group("/sys/fs/cgroup", "memory.max");
	printf("%d passed, %d failed\n", n_passed, n_failed);
	return n_failed > 0;
}
