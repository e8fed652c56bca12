/*
 * memory.c
 *		Tables that have too little memory, and memory that the device must give back
 *		or leave to the machine.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "device_test.h"

void
case_small_memory(context *ctx)
{
	rhh_map    *table;
	rhh_error	err;
	def			d;

	for (uint64_t kb = 1024; kb <= 4096; kb *= 2)
	{
		run_options options = default_options;
		char		where[64];

		def_init(&d);
		def_key(&d, 4, GEN_UNIFORM, 1000, 0);
		def_common_states(&d);
		d.spec.memory_limit_bytes = kb << 10;
		d.spec.expected_groups = UINT64_C(1) << 40;
		d.spec.max_batch_rows = 4096;
		options.no_failures = true;
		snprintf(where, sizeof(where), "%llu kB", (unsigned long long) kb);
		check_table(ctx, where, &d, 50000, &options, NULL);
	}
	def_init(&d);
	def_key(&d, 4, GEN_UNIFORM, 1000, 0);
	d.spec.memory_limit_bytes = 64;
	if (ctx->device->ops->map_create(ctx->device->dev, &d.spec, &table, &err) !=
		RHH_NO_MEMORY)
		fault(ctx, "", "a table was made in 64 bytes");
}

void
case_over_subscription(context *ctx)
{
	static const int percent[] = {50, 75, 90, 100, 120, 150, 300};
	static const uint8_t shapes[][3] = {{4}, {8}, {4, 4}, {16, 4}};
	uint32_t	n_tables = 0;

	for (int s = 0; s < 4; s++)
		for (int i = 0; i < 7; i++)
		{
			run_options options = default_options;
			rhh_map_stats stats;
			char		where[64];
			def			d;
			uint64_t	limit = (uint64_t) (option_quick ? 1 : 4) << 20;
			uint64_t	stride;

			if (left_out(&n_tables))
				continue;
			def_init(&d);
			def_common_states(&d);
			for (int k = 0; k < 3 && shapes[s][k] != 0; k++)
				def_key(&d, shapes[s][k], GEN_UNIFORM, 1, k == 0 ? 2 : 0);
			/* about what a group takes: key, states, slot */
			stride = 16 + 8u * rhh_result_words(&d.spec);
			d.gens[d.spec.key_column[0]].n = limit / stride * (uint64_t) percent[i] / 100;
			d.spec.memory_limit_bytes = limit;
			d.spec.max_batch_rows = 8192;
			if (percent[i] >= 300)
				options.min_failures = 1;
			snprintf(where, sizeof(where), "shape %d at %d %%", s, percent[i]);
			check_table(ctx, where, &d, enough_rows(600000), &options, &stats);
		}
}

/* A device of its own, with little memory: all of it comes back each time. */
void
case_memory_returned(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_device_config config = {.memory_limit_bytes = UINT64_C(64) << 20,
	.cpu_threads = option_threads,.look_rows = LOOK_ROWS,.carry_bytes = CARRY_BYTES};
	device		device = *ctx->device;
	rhh_device_info before,
				after;
	rhh_error	err;

	if (ops->open(device.info.ordinal, &config, &device.dev, &err) != RHH_OK)
	{
		fault(ctx, "open", err.message);
		return;
	}
	(void) ops->register_pool(device.dev, device.pool, device.pool_bytes, &err);
	(void) ops->info(device.dev, &before, &err);
	for (int i = 0; i < 30 && ctx->why[0] == '\0'; i++)
	{
		run_options options = default_options;
		context		inner = {.device = &device, .seed = ctx->seed++};
		def			d;

		def_init(&d);
		def_key(&d, i % 2 ? 4 : 8, GEN_UNIFORM, 100000, 1);
		def_common_states(&d);
		if (i % 5 == 4)
			options.cancel_at_batch = 3;
		else if (i == 0)
			options.no_failures = true;
		check_table(&inner, "", &d, rows(300000), &options, NULL);
		fault(ctx, "", inner.why);
	}
	(void) ops->info(device.dev, &after, &err);
	if (before.free_known && after.free_known &&
		after.free_bytes + (UINT64_C(8) << 20) < before.free_bytes)
		fault(ctx, "", "free memory of the device has shrunk");
	ops->close(device.dev);
}

/* Sets what a machine whose files are in a directory says to be available. */
static void
say_available(context *ctx, const char *root, uint64_t bytes)
{
	char		name[96];
	FILE	   *f;

	snprintf(name, sizeof(name), "%s/proc/meminfo", root);
	f = fopen(name, "w");
	if (f == NULL || fprintf(f, "MemAvailable: %llu kB\n", (unsigned long long) (bytes / 1024)) < 0 ||
		fclose(f) != 0)
		fault(ctx, "", "could not write a file");
}

/*
 * A machine of which only this process takes memory: what it says to be available
 * follows what is resident of the process.  A thread writes that into a fifo in place of
 * the file, each time that somebody opens it.
 */
typedef struct live_machine
{
	const char *fifo;
	uint64_t	all_bytes;		/* available and resident */
	atomic_bool stop;
	pthread_t	thread;
} live_machine;

static uint64_t
resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE	   *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%*u %llu", &pages) != 1)
		die("/proc/self/statm");
	fclose(f);
	return pages * (uint64_t) sysconf(_SC_PAGESIZE);
}

static void *
live_main(void *arg)
{
	live_machine *live = arg;

	while (!atomic_load(&live->stop))
	{
		int			fd = open(live->fifo, O_WRONLY);	/* waits for a reader */

		if (fd < 0)
			die(live->fifo);
		dprintf(fd, "MemAvailable: %llu kB\n",
				(unsigned long long) (live->all_bytes - resident_bytes()) / 1024);
		close(fd);
		usleep(5000);			/* so that the reader has closed it */
	}
	return NULL;
}

static void
live_start(live_machine *live, const char *fifo, uint64_t available_bytes)
{
	live->fifo = fifo;
	live->all_bytes = available_bytes + resident_bytes();
	atomic_init(&live->stop, false);
	(void) signal(SIGPIPE, SIG_IGN);
	if (unlink(fifo) != 0 || mkfifo(fifo, 0600) != 0 ||
		pthread_create(&live->thread, NULL, live_main, live) != 0)
		die(fifo);
}

static void
live_stop(live_machine *live)
{
	int			fd;

	atomic_store(&live->stop, true);
	fd = open(live->fifo, O_RDONLY | O_NONBLOCK);
	(void) pthread_join(live->thread, NULL);
	close(fd);
}

#define KEPT_MAPS 6

/*
 * What the CPU device keeps of freed maps for the next ones is no reason to lend nothing
 * to them: where it is what the machine lacks, the device gives it back.  It once kept up
 * to 1 GB, and sent the rows of all maps that needed pieces of other sizes to the host.
 */
void
case_kept_memory(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const uint64_t mb = UINT64_C(1) << 20;
	char		root[] = "/tmp/rhh_device_test.XXXXXX";
	char		proc[64];
	char		meminfo[96];
	/* of this limit an eighth is kept, and lent before the device looks again */
	rhh_device_config config = {.cpu_threads = 1, .root = root, .memory_limit_bytes = 128 * mb};
	device		device = *ctx->device;
	context		inner = {.device = &device, .seed = ctx->seed++};
	live_machine live;
	rhh_device_info info;
	rhh_map_stats stats;
	rhh_map    *maps[KEPT_MAPS] = {NULL};
	rhh_error	err;
	uint64_t	floor_bytes;
	uint64_t	all_slots = 0;
	def			d;

	if (ctx->device->info.kind != RHH_KIND_CPU)
		return;
	if (mkdtemp(root) == NULL)
		die("mkdtemp");
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", proc);
	if (mkdir(proc, 0700) != 0)
		die(proc);
	say_available(ctx, root, UINT64_C(1) << 40);
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK ||
		ops->info(device.dev, &info, &err) != RHH_OK)
		die(err.message);
	floor_bytes = info.total_bytes / 16 < 4096 * mb ? info.total_bytes / 16 : 4096 * mb;

	/* the map whose memory is kept */
	def_init(&d);
	def_key(&d, 8, GEN_UNIFORM, 10000000, 0);
	def_common_states(&d);
	check_table(&inner, "", &d, 600000, &default_options, &stats);
	fault(ctx, "", inner.why);
	if (stats.peak_bytes < 32 * mb)
		fault(ctx, "", "a test of large tables has a small one");

	/*
	 * Maps of 4 MB of slots each, in pieces of another size than those kept, and
	 * untouched.  4 MB are missing for what the device wants to see for the fourth.
	 */
	live_start(&live, meminfo, floor_bytes + 12 * mb);
	d.spec.expected_groups = 360000;
	for (int i = 0; i < KEPT_MAPS; i++)
	{
		if (ops->map_create(device.dev, &d.spec, &maps[i], &err) != RHH_OK)
		{
			fault(ctx, "the machine lacks what is kept", err.message);
			continue;
		}
		ops->map_stats(maps[i], &stats);
		if (i == 0)
			all_slots = stats.capacity_slots;
		else if (stats.capacity_slots != all_slots)
			fault(ctx, "", "the machine lacks what is kept, and a map is smaller for it");
	}
	if (all_slots * 8 < 3 * mb || all_slots * 8 > 5 * mb)
		fault(ctx, "", "the maps have other sizes than this test is made for");
	for (int i = 0; i < KEPT_MAPS; i++)
		if (maps[i] != NULL)
			ops->map_destroy(maps[i]);
	ops->close(device.dev);
	live_stop(&live);
	(void) unlink(meminfo);
	(void) rmdir(proc);
	(void) rmdir(root);
}

/*
 * The CPU device lends no memory that the machine needs: not by default, and not
 * below a limit either if others have taken it since.  One large table leaves room
 * for small ones.
 */
void
case_machine_memory(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const uint64_t mb = UINT64_C(1) << 20;
	char		root[] = "/tmp/rhh_device_test.XXXXXX";
	char		proc[64];
	char		meminfo[96];
	/* what a small table takes grows with the threads, and the limits here are small */
	rhh_device_config config = {.cpu_threads = 2, .root = root};
	device		device = *ctx->device;
	context		inner = {.device = &device, .seed = ctx->seed++};
	rhh_device_info info;
	rhh_map_stats stats;
	rhh_map    *table;
	rhh_error	err;
	uint64_t	total;
	def			d;

	if (ctx->device->info.kind != RHH_KIND_CPU)
		return;
	if (mkdtemp(root) == NULL)
		die("mkdtemp");
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(meminfo, sizeof(meminfo), "%s/meminfo", proc);
	if (mkdir(proc, 0700) != 0)
		die(proc);
	say_available(ctx, root, 1000 * mb);

	/* by default */
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK ||
		ops->info(device.dev, &info, &err) != RHH_OK)
		die(err.message);
	total = info.total_bytes;
	if (info.free_bytes > 500 * mb || info.free_bytes > total / 4)
		fault(ctx, "default", "takes more than half of what is available");
	ops->close(device.dev);

	/* others take it meanwhile: a table stops growing, and goes on when they give it back */
	def_init(&d);
	def_key(&d, 8, GEN_UNIFORM, 10000000, 0);
	def_common_states(&d);
	config.memory_limit_bytes = 32 * mb;
	say_available(ctx, root, total);
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK)
		die(err.message);
	check_table(&inner, "", &d, 400000, &default_options, &stats);
	if (stats.peak_bytes < 12 * mb)
		fault(ctx, "", "a test of large tables has a small one");
	say_available(ctx, root, total / 16);
	check_table(&inner, "", &d, 400000, &default_options, &stats);
	if (stats.peak_bytes > 10 * mb)
		fault(ctx, "", "the device takes the last memory of the machine");
	say_available(ctx, root, total);
	usleep(200000);
	check_table(&inner, "", &d, 400000, &default_options, &stats);
	if (stats.peak_bytes < 12 * mb)
		fault(ctx, "", "the device does not see that there is memory again");
	fault(ctx, "", inner.why);

	/* a table of all there is */
	d.spec.max_batch_rows = 65536;
	config.memory_limit_bytes = 32 * mb;
	ops->close(device.dev);
	if (ops->open(0, &config, &device.dev, &err) != RHH_OK)
		die(err.message);
	{
		data	   *data = make_data(&d, 1500000, ctx->seed++);
		run_options options = default_options;
		def			small;
		run			run;

		run_start(&run, &device, data, &options, device.pool, device.pool_bytes);
		while (!run.finishing && !run.finished)
		{
			rhh_event	event;
			uint32_t	n;

			run_step(&run);
			if (ops->poll(device.dev, &event, 1, &n, &err) != RHH_OK)
				die(err.message);
			if (n > 0)
				run_event(&run, &event);
		}
		ops->map_stats(run.table, &stats);
		if (stats.refused_rows == 0)
			fault(ctx, "", "the limit is not reached");
		def_init(&small);
		def_key(&small, 4, GEN_UNIFORM, 10, 0);
		if (ops->map_create(device.dev, &small.spec, &table, &err) != RHH_OK)
			fault(ctx, "", "a large table leaves no room for a small one");
		ops->close(device.dev);
		run.table = NULL;
		run_end(&run);
		free_data(data);
	}
	(void) unlink(meminfo);
	(void) rmdir(proc);
	(void) rmdir(root);
}
