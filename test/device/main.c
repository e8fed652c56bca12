/*
 * main.c
 *		device_test: the same cases on every device, through the device ABI alone.
 *
 *		device_test [cpu|cuda|all] [--seed N] [--quick | --tiny] [--list]
 *					[--on-device] [--only PATTERN] [--threads N]
 *		device_test [cpu|cuda|all] --bench [--rows N] [--threads N] [--repeat N]
 *					[--estimate FACTOR] [--on-device] [--only PATTERN]
 *
 * What the files here share is explained in device_test.h, which also lists the
 * cases.  Each topic has a file of its own; this one reads the options and runs
 * the cases on each device.
 *
 * Cases are quick and many rather than big; "--quick" divides their rows by 8,
 * "--tiny" by 64 (for devices that are not fast: sanitizers, and
 * device_test_simt, whose CUDA device runs on the CPU, see simt.h).  With
 * "--on-device" batches lie in the device's memory, and are looked at before they
 * are aggregated; of "--bench" those of joins do.
 */
#include <fnmatch.h>

#include "device_test.h"

#define POOL_BYTES ((size_t) 64 << 20)
#define TEST_PAGES 8192u

typedef struct test_case
{
	const char *name;
	void		(*test) (context *ctx);
} test_case;

#define LIST_CASE(name) {#name, case_##name},
static const test_case cases[] = {DEVICE_CASES(LIST_CASE)};
#undef LIST_CASE

static uint32_t
test_device(device *device, const char *only, uint32_t *n_passed)
{
	rhh_device_config config = {.cpu_threads = option_threads, .look_rows = LOOK_ROWS, .carry_bytes = CARRY_BYTES};
	uint32_t	n_failed = 0;
	rhh_error	err;

	if (device->ops->open(device->info.ordinal, &config, &device->dev, &err) != RHH_OK)
	{
		printf("not ok %s open: %s\n", device->name, err.message);
		return 1;
	}
	device->pool_bytes = POOL_BYTES;
	if (posix_memalign((void **) &device->pool, 4096, device->pool_bytes) != 0)
		die("out of memory");
	memset(device->pool, 0, device->pool_bytes);
	if (device->ops->register_pool(device->dev, device->pool, device->pool_bytes,
								   &err) != RHH_OK)
	{
		printf("not ok %s register_pool: %s\n", device->name, err.message);
		n_failed++;
	}
	/* as shared buffers, which need not begin where a page of the system does */
	device->n_pages = TEST_PAGES;
	if (posix_memalign((void **) &device->pages, 4096, (TEST_PAGES + 1) * (size_t) RHH_PAGE_BYTES) != 0)
		die("out of memory");
	memset(device->pages, 0, (TEST_PAGES + 1) * (size_t) RHH_PAGE_BYTES);
	if (device->ops->register_pages(device->dev, device->pages + 128, device->n_pages,
									&err) != RHH_OK)
	{
		printf("not ok %s register_pages: %s\n", device->name, err.message);
		n_failed++;
	}
	/* twice as many slots as there are pages */
	for (uint32_t i = 0; i <= TEST_PAGES * 2 / RHH_SLAB_PAGES; i++)
		if (device->ops->cache_slab(device->dev, i, &err) != RHH_OK)
		{
			printf("not ok %s cache_slab: %s\n", device->name, err.message);
			n_failed++;
		}
	for (size_t i = 0; i < LENGTH_OF(cases); i++)
	{
		context		ctx;
		double		start_ms = now_ms();

		if (only != NULL && fnmatch(only, cases[i].name, 0) != 0)
			continue;
		memset(&ctx, 0, sizeof(ctx));
		ctx.device = device;
		ctx.seed = option_seed * 1000 + 1;
		cases[i].test(&ctx);
		if (ctx.why[0] != '\0')
		{
			printf("not ok %s %s: %s\n", device->name, cases[i].name, ctx.why);
			n_failed++;
		}
		else
		{
			printf("ok %s %s (%.0f ms)\n", device->name, cases[i].name,
				   now_ms() - start_ms);
			(*n_passed)++;
		}
		fflush(stdout);
	}
	device->ops->close(device->dev);
	free(device->pool);
	free(device->pages);
	return n_failed;
}

int
main(int argc, char **argv)
{
	static const rhh_device_ops *const kinds[] = {
		&rhh_cpu_ops,
#ifdef RHH_WITH_CUDA
		&rhh_cuda_ops,
#endif
	};
	const char *which = "all";
	const char *only = NULL;
	bool		run_bench = false;
	uint64_t	bench_rows = 10000000;
	double		estimate = 1.0;
	int			repeat = 3;
	uint32_t	n_devices = 0,
				n_passed = 0,
				n_failed = 0;

	for (int i = 1; i < argc; i++)
	{
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--on-device") == 0)
			option_on_device = true;
		else if (strcmp(argv[i], "--quick") == 0 || strcmp(argv[i], "--tiny") == 0)
		{
			option_quick = true;
			option_divisor = strcmp(argv[i], "--tiny") == 0 ? 64 : 8;
		}
		else if (strcmp(argv[i], "--bench") == 0)
			run_bench = true;
		else if (strcmp(argv[i], "--list") == 0)
		{
			for (size_t c = 0; c < LENGTH_OF(cases); c++)
				printf("%s\n", cases[c].name);
			return 0;
		}
		else if (argv[i][0] != '-')
			which = argv[i];
		else if (value == NULL)
			die("an option lacks its value or is unknown");
		else if (i++, strcmp(argv[i - 1], "--seed") == 0)
			option_seed = strtoull(value, NULL, 0);
		else if (strcmp(argv[i - 1], "--threads") == 0)
			option_threads = (uint32_t) strtoul(value, NULL, 0);
		else if (strcmp(argv[i - 1], "--only") == 0)
			only = value;
		else if (strcmp(argv[i - 1], "--rows") == 0)
			bench_rows = strtoull(value, NULL, 0);
		else if (strcmp(argv[i - 1], "--repeat") == 0)
			repeat = atoi(value) > 0 ? atoi(value) : 1;
		else if (strcmp(argv[i - 1], "--estimate") == 0)
			estimate = strtod(value, NULL);
		else
			die("unknown option");
	}
	if (strcmp(which, "all") != 0 && strcmp(which, "cpu") != 0 && strcmp(which, "cuda") != 0)
		die("the device is one of cpu, cuda, all");
	if (run_bench)
		printf("device,case,rows,groups,threads,ns_per_row,cpu_ns_per_row,extract_ns_per_group,M_rows_per_s,M_rows_per_s_of_kernels\n");

	for (size_t k = 0; k < LENGTH_OF(kinds); k++)
	{
		rhh_device_info infos[16];
		rhh_error	err;
		uint32_t	n = 0;

		if (strcmp(which, kinds[k]->kind == RHH_KIND_CPU ? "cuda" : "cpu") == 0)
			continue;
		if (kinds[k]->enumerate(infos, 16, &n, &err) != RHH_OK)
		{
			printf("not ok enumerate: %s\n", err.message);
			n_failed++;
			continue;
		}
		for (uint32_t i = 0; i < n; i++)
		{
			char		name[32];
			device		device = {.ops = kinds[k], .info = infos[i], .name = name};

			if (infos[i].state == RHH_STATE_UNUSABLE)
			{
				fprintf(stderr, "%s is not usable: %s\n", infos[i].name, infos[i].reason);
				continue;
			}
			if (kinds[k]->kind == RHH_KIND_CPU)
				snprintf(name, sizeof(name), "cpu");
			else
				snprintf(name, sizeof(name), "cuda:%d", (int) infos[i].ordinal);
			n_devices++;
			if (run_bench)
			{
				bench(&device, bench_rows, estimate, repeat, only);
				bench_joins(&device, bench_rows, estimate, repeat, only);
				bench_pages(&device, repeat, only);
			}
			else
				n_failed += test_device(&device, only, &n_passed);
		}
	}
	if (n_devices == 0)
		fprintf(stderr, "no device\n");
	if (!run_bench)
		printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed > 0 || n_devices == 0 ? 1 : 0;
}
