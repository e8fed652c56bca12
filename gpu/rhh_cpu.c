/*
 * rhh_cpu.c
 *		The CPU device: worker threads, commands, and the entry points.
 *
 * rhh_cpu_table.h describes a table, rhh_cpu_batch.c what a thread does with a
 * batch.  Here is what stands between them and rhh_device.h's caller.
 *
 * Commands (batch, finish, extract) go into a ring, in the order of their
 * submission.  EVERY worker runs every command in that order, for its own
 * partition of the command's table, and does not wait for the others, so it may
 * be some commands ahead of them:
 *
 *			  polled     completed     worker 1   worker 0      submitted
 *				v            v            v          v              v
 *		  ------+------------+------------+----------+--------------+------
 *		   free | events for |  some have |  none has run it yet    | free
 *				|  poll()    |  run it    |                         |
 *
 * The last worker to run a command completes it: commands complete in order,
 * and what a later command (finish) reads all earlier ones have written.  An
 * eventfd tells the caller.  A command's slot is its event, too, and is free
 * again when poll() has reported it.
 *
 * Who owns what: the caller's thread owns tables, the ring's submitted and
 * polled ends and everything in a command until it is submitted; a worker owns
 * its scratch and its partition of each table.  A table's memory is given back
 * by table_destroy() or by close(), and there is nothing in flight for it then.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "rhh_cpu_table.h"

#define RING_COMMANDS 2048u		/* a power of two */
#define MAX_THREADS 256u

/* Batches leave a part of the ring to commands that must not be refused. */
#define RING_BATCHES (RING_COMMANDS / 2)

typedef struct command
{
	rhh_event_kind kind;
	rhh_table  *table;
	uint64_t	tag;
	rhh_batch	batch;
	rhh_cpu_failed failed;
	rhh_result *result;
	uint64_t	first_group;	/* extract: of the table's, and how many */
	uint32_t	n_groups;
	_Atomic uint32_t n_running; /* workers that have not run it yet */
	atomic_bool skipped;		/* a worker found the table cancelled */
} command;

struct rhh_table
{
	rhh_device *dev;
	rhh_table  *next;			/* of the device's tables */
	rhh_table  *prev;
	rhh_cpu_layout layout;
	rhh_cpu_budget budget;
	atomic_bool cancelled;
	rhh_cpu_part *parts;		/* one for each worker */

	/* the caller's thread only */
	uint32_t	batches_in_flight;
	bool		finishing;		/* table_finish was called */
	bool		finished;		/* and its event reported */
	bool		extracting;
	uint64_t	n_groups;		/* once finished */
	uint64_t	n_extracted;
};

typedef struct worker
{
	rhh_device *dev;
	uint32_t	number;
	pthread_t	thread;
	rhh_cpu_scratch scratch;
} worker;

struct rhh_device
{
	uint32_t	n_workers;
	worker	   *workers;
	command    *ring;
	rhh_cpu_budget budget;
	rhh_cpu_reserve reserve;
	rhh_table  *tables;
	int			event_fd;

	/* submitted and stopping change under the lock, with a broadcast */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	_Atomic uint64_t submitted;
	bool		stopping;
	_Atomic uint64_t completed;
	uint64_t	polled;			/* the caller's thread only */
};

/* ---------- errors ---------- */

static rhh_status __attribute__((format(printf, 3, 4)))
fail(rhh_error *err, rhh_status status, const char *format, ...)
{
	va_list		args;

	err->status = status;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	return status;
}

static rhh_status
succeed(rhh_error *err)
{
	err->status = RHH_OK;
	err->message[0] = '\0';
	return RHH_OK;
}

/* ---------- the machine ---------- */

/* "key   : value" or "key: value kB" of a file under /proc; false: not there. */
static bool
read_proc(const char *path, const char *key, char *value, size_t value_size)
{
	FILE	   *f = fopen(path, "r");
	char		line[512];
	bool		found = false;

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
	{
		const char *p = line + strlen(key);

		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		p += strspn(p, " \t");
		if (*p != ':')
			continue;
		p++;
		p += strspn(p, " \t");
		snprintf(value, value_size, "%.*s", (int) strcspn(p, "\n"), p);
		found = true;
	}
	fclose(f);
	return found;
}

static uint64_t
physical_bytes(void)
{
	long		pages = sysconf(_SC_PHYS_PAGES);
	long		page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 ? (uint64_t) pages * (uint64_t) page_bytes : 0;
}

static uint64_t
available_bytes(void)
{
	char		value[64];

	if (read_proc("/proc/meminfo", "MemAvailable", value, sizeof(value)))
		return strtoull(value, NULL, 10) * 1024;
	return physical_bytes() / 2;
}

static void
fill_info(rhh_device_info *info, rhh_device_state state)
{
	memset(info, 0, sizeof(*info));
	info->kind = RHH_KIND_CPU;
	info->state = state;
	info->total_bytes = physical_bytes();
	info->free_bytes = available_bytes();
	info->free_known = true;
	if (!read_proc("/proc/cpuinfo", "model name", info->name, sizeof(info->name)))
		snprintf(info->name, sizeof(info->name), "CPU");
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

/* ---------- workers ---------- */

/* This worker's share of a range of groups, counted through the partitions. */
static void
run_extract(const command *cmd, uint32_t number)
{
	const rhh_table *table = cmd->table;
	const uint32_t n_workers = table->dev->n_workers;
	uint64_t	first = 0;
	uint64_t	end = cmd->n_groups;

	if (cmd->n_groups >= RHH_CPU_EXTRACT_SPLIT_GROUPS)
	{
		first = end * number / n_workers;
		end = end * (number + 1) / n_workers;
	}
	else if (number != cmd->tag % n_workers)
		return;

	for (uint32_t p = 0; p < n_workers && first < end; p++)
	{
		const rhh_cpu_part *part = &table->parts[p];
		uint64_t	n_before = 0;	/* groups in the partitions before */
		uint64_t	from;
		uint64_t	n;

		for (uint32_t q = 0; q < p; q++)
			n_before += table->parts[q].n_groups;
		from = cmd->first_group + first - n_before;
		if (from >= part->n_groups)
			continue;
		n = part->n_groups - from < end - first ? part->n_groups - from : end - first;
		rhh_cpu_part_extract(part, from, (uint32_t) n, cmd->result, (uint32_t) first);
		first += n;
	}
}

static void
run_command(command *cmd, worker *self)
{
	rhh_table  *table = cmd->table;
	rhh_cpu_part *part = &table->parts[self->number];
	uint64_t	start_ns;

	if (atomic_load_explicit(&table->cancelled, memory_order_relaxed))
	{
		atomic_store_explicit(&cmd->skipped, true, memory_order_relaxed);
		return;
	}
	switch (cmd->kind)
	{
		case RHH_EVENT_BATCH:
			start_ns = now_ns();
			if (!rhh_cpu_aggregate(part, self->number, &cmd->batch, &self->scratch,
								   &cmd->failed, &table->cancelled))
				atomic_store_explicit(&cmd->skipped, true, memory_order_relaxed);
			rhh_cpu_count(&part->busy_ns, now_ns() - start_ns);
			break;
		case RHH_EVENT_FINISH:
			if (table->layout.spec.flags & RHH_WANT_PROBE_STATS)
				rhh_cpu_part_probe_stats(part);
			rhh_cpu_part_free_slots(part);
			break;
		case RHH_EVENT_EXTRACT:
			run_extract(cmd, self->number);
			break;
	}
}

static void
signal_event(rhh_device *dev)
{
	uint64_t	one = 1;

	/* cannot fail: the counter would have to reach 2^64 */
	while (write(dev->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *
worker_main(void *arg)
{
	worker	   *self = arg;
	rhh_device *dev = self->dev;

	for (uint64_t next = 0;; next++)
	{
		command    *cmd = &dev->ring[next % RING_COMMANDS];

		if (next == atomic_load_explicit(&dev->submitted, memory_order_acquire))
		{
			bool		stop;

			pthread_mutex_lock(&dev->lock);
			while (next == atomic_load_explicit(&dev->submitted, memory_order_relaxed) &&
				   !dev->stopping)
				pthread_cond_wait(&dev->wake, &dev->lock);
			stop = next == atomic_load_explicit(&dev->submitted, memory_order_relaxed);
			pthread_mutex_unlock(&dev->lock);
			if (stop)
				return NULL;
		}
		run_command(cmd, self);

		/*
		 * The last one completes it.  It runs the next command only after, and
		 * nobody completes that without it, so completed goes up by ones.
		 */
		if (atomic_fetch_sub_explicit(&cmd->n_running, 1, memory_order_acq_rel) == 1)
		{
			atomic_store_explicit(&dev->completed, next + 1, memory_order_release);
			signal_event(dev);
		}
	}
}

/* ---------- commands ---------- */

/* A command to be filled in and submitted.  NULL: no more than limit at once. */
static command *
new_command(rhh_table *table, rhh_event_kind kind, uint64_t tag, uint32_t limit)
{
	rhh_device *dev = table->dev;
	uint64_t	submitted = atomic_load_explicit(&dev->submitted, memory_order_relaxed);
	command    *cmd = &dev->ring[submitted % RING_COMMANDS];

	if (submitted - dev->polled >= limit)
		return NULL;
	cmd->kind = kind;
	cmd->table = table;
	cmd->tag = tag;
	cmd->result = NULL;
	atomic_store_explicit(&cmd->failed.state, 0, memory_order_relaxed);
	atomic_store_explicit(&cmd->failed.n, 0, memory_order_relaxed);
	atomic_store_explicit(&cmd->n_running, dev->n_workers, memory_order_relaxed);
	atomic_store_explicit(&cmd->skipped, false, memory_order_relaxed);
	return cmd;
}

static void
submit_command(rhh_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	atomic_fetch_add_explicit(&dev->submitted, 1, memory_order_release);
	pthread_cond_broadcast(&dev->wake);
	pthread_mutex_unlock(&dev->lock);
}

/* ---------- device ---------- */

static rhh_status
cpu_enumerate(rhh_device_info *infos, uint32_t cap, uint32_t *n, rhh_error *err)
{
	*n = 0;
	if (cap > 0)
	{
		fill_info(&infos[0], RHH_STATE_AVAILABLE);
		*n = 1;
	}
	return succeed(err);
}

static void
free_table(rhh_table *table)
{
	if (table->parts != NULL)
	{
		for (uint32_t p = 0; p < table->dev->n_workers; p++)
			rhh_cpu_part_free(&table->parts[p]);
		free(table->parts);
	}
	free(table);
}

/* Stops the n_started first workers and frees the device. */
static void
free_device(rhh_device *dev, uint32_t n_started)
{
	pthread_mutex_lock(&dev->lock);
	dev->stopping = true;
	pthread_cond_broadcast(&dev->wake);
	pthread_mutex_unlock(&dev->lock);
	for (uint32_t i = 0; i < n_started; i++)
		pthread_join(dev->workers[i].thread, NULL);

	while (dev->tables != NULL)
	{
		rhh_table  *table = dev->tables;

		dev->tables = table->next;
		free_table(table);
	}
	for (uint32_t i = 0; i < dev->n_workers; i++)
		rhh_cpu_scratch_free(&dev->workers[i].scratch);
	if (dev->event_fd >= 0)
		close(dev->event_fd);
	pthread_cond_destroy(&dev->wake);
	pthread_mutex_destroy(&dev->lock);
	if (dev->reserve.kept != NULL)
		rhh_cpu_reserve_free(&dev->reserve);
	free(dev->workers);
	free(dev->ring);
	free(dev);
}

static rhh_status
cpu_open(int32_t ordinal, const rhh_device_config *config, rhh_device **out,
		 rhh_error *err)
{
	rhh_device *dev;
	uint32_t	n_workers = config->cpu_threads;
	bool		complete;

	*out = NULL;
	if (ordinal != 0)
		return fail(err, RHH_NO_DEVICE, "there is no CPU device %d", (int) ordinal);
	if (n_workers == 0)
	{
		long		n = sysconf(_SC_NPROCESSORS_ONLN);

		n_workers = n > 0 ? (uint32_t) n : 1;
	}
	if (n_workers > MAX_THREADS)
		n_workers = MAX_THREADS;

	dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return fail(err, RHH_NO_MEMORY, "could not allocate the CPU device");
	pthread_mutex_init(&dev->lock, NULL);
	pthread_cond_init(&dev->wake, NULL);
	dev->n_workers = n_workers;
	dev->budget.limit_bytes = config->memory_limit_bytes > 0 ?
		config->memory_limit_bytes : available_bytes() / 10 * 8;
	dev->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dev->ring = calloc(RING_COMMANDS, sizeof(command));
	dev->workers = calloc(n_workers, sizeof(worker));
	complete = rhh_cpu_reserve_init(&dev->reserve, dev->budget.limit_bytes) &&
		dev->event_fd >= 0 && dev->ring != NULL && dev->workers != NULL;
	if (dev->workers == NULL)
		dev->n_workers = 0;
	for (uint32_t i = 0; i < dev->n_workers; i++)
		complete &= rhh_cpu_scratch_init(&dev->workers[i].scratch);
	if (!complete)
	{
		free_device(dev, 0);
		return fail(err, RHH_NO_MEMORY, "could not allocate the CPU device");
	}
	for (uint32_t i = 0; i < n_workers; i++)
	{
		worker	   *w = &dev->workers[i];
		int			rc;

		w->dev = dev;
		w->number = i;
		rc = pthread_create(&w->thread, NULL, worker_main, w);
		if (rc != 0)
		{
			free_device(dev, i);
			return fail(err, RHH_NO_DEVICE,
						"could not start worker thread %u of %u: %s",
						(unsigned) i + 1, (unsigned) n_workers, strerror(rc));
		}
	}
	*out = dev;
	return succeed(err);
}

static void
cpu_close(rhh_device *dev)
{
	/* so that queued batches are skipped */
	for (rhh_table *table = dev->tables; table != NULL; table = table->next)
		atomic_store_explicit(&table->cancelled, true, memory_order_relaxed);
	free_device(dev, dev->n_workers);
}

static rhh_status
cpu_info(rhh_device *dev, rhh_device_info *info, rhh_error *err)
{
	uint64_t	used = atomic_load_explicit(&dev->budget.used_bytes,
											memory_order_relaxed);
	uint64_t	room = dev->budget.limit_bytes > used ?
		dev->budget.limit_bytes - used : 0;

	fill_info(info, RHH_STATE_OPEN);
	if (info->free_bytes > room)
		info->free_bytes = room;
	return succeed(err);
}

/* Batches are read where they lie. */
static rhh_status
cpu_register_pool(rhh_device *dev, void *base, size_t bytes, rhh_error *err)
{
	(void) dev;
	(void) base;
	(void) bytes;
	return succeed(err);
}

static int
cpu_event_fd(rhh_device *dev)
{
	return dev->event_fd;
}

static rhh_status
cpu_poll(rhh_device *dev, rhh_event *events, uint32_t cap, uint32_t *n,
		 rhh_error *err)
{
	uint64_t	counter;
	uint64_t	completed;

	/* first, so that what completes from here on makes it readable again */
	while (read(dev->event_fd, &counter, sizeof(counter)) < 0 && errno == EINTR)
		;
	completed = atomic_load_explicit(&dev->completed, memory_order_acquire);
	for (*n = 0; *n < cap && dev->polled < completed; (*n)++, dev->polled++)
	{
		command    *cmd = &dev->ring[dev->polled % RING_COMMANDS];
		rhh_table  *table = cmd->table;
		rhh_event  *event = &events[*n];

		event->kind = cmd->kind;
		event->status = atomic_load_explicit(&cmd->skipped, memory_order_relaxed) ?
			RHH_CANCELLED : RHH_OK;
		event->table = table;
		event->tag = cmd->tag;
		event->n_failed = atomic_load_explicit(&cmd->failed.n, memory_order_relaxed);
		switch (cmd->kind)
		{
			case RHH_EVENT_BATCH:
				table->batches_in_flight--;
				break;
			case RHH_EVENT_FINISH:
				table->finished = true;
				for (uint32_t p = 0; p < dev->n_workers; p++)
					table->n_groups += table->parts[p].n_groups;
				break;
			case RHH_EVENT_EXTRACT:
				table->extracting = false;
				if (event->status != RHH_OK)
					break;
				table->n_extracted += cmd->n_groups;
				cmd->result->n_groups = cmd->n_groups;
				cmd->result->needs_merge = false;
				cmd->result->last = table->n_extracted == table->n_groups;
				break;
		}
	}
	if (dev->polled < completed)
		signal_event(dev);
	return succeed(err);
}

/* ---------- tables ---------- */

static bool
is_width(uint32_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static rhh_status
check_state(const rhh_table_spec *spec, uint32_t s, rhh_error *err)
{
	const rhh_state_spec *st = &spec->states[s];
	uint32_t	bytes;

	if (st->op < RHH_COUNT || st->op > RHH_ANY)
		return fail(err, RHH_INVALID, "state %u has unknown operation %u",
					(unsigned) s, (unsigned) st->op);
	if (st->filter_column >= 0 &&
		((uint32_t) st->filter_column >= spec->n_columns ||
		 spec->column_bytes[st->filter_column] != 1))
		return fail(err, RHH_INVALID,
					"filter of state %u is not a column of bytes", (unsigned) s);
	if (st->arg_column < 0)
	{
		if (st->op == RHH_COUNT)
			return succeed(err);
		return fail(err, RHH_INVALID, "state %u has no argument", (unsigned) s);
	}
	if ((uint32_t) st->arg_column >= spec->n_columns)
		return fail(err, RHH_INVALID, "argument of state %u is not a column",
					(unsigned) s);
	bytes = spec->column_bytes[st->arg_column];
	if (st->op != RHH_COUNT && st->op != RHH_ANY &&
		bytes != 2 && bytes != 4 && bytes != 8)
		return fail(err, RHH_INVALID,
					"argument of state %u has %u bytes, not 2, 4 or 8",
					(unsigned) s, (unsigned) bytes);
	return succeed(err);
}

static rhh_status
check_spec(const rhh_table_spec *spec, rhh_error *err)
{
	if (spec->n_columns < 1 || spec->n_columns > RHH_MAX_COLUMNS)
		return fail(err, RHH_INVALID, "a table cannot have %u columns",
					(unsigned) spec->n_columns);
	if (spec->n_keys < 1 || spec->n_keys > RHH_MAX_KEYS)
		return fail(err, RHH_INVALID, "a table cannot have %u keys",
					(unsigned) spec->n_keys);
	if (spec->n_states > RHH_MAX_STATES)
		return fail(err, RHH_INVALID, "a table cannot have %u states",
					(unsigned) spec->n_states);
	for (uint32_t c = 0; c < spec->n_columns; c++)
		if (!is_width(spec->column_bytes[c]))
			return fail(err, RHH_INVALID, "column %u cannot have %u bytes",
						(unsigned) c, (unsigned) spec->column_bytes[c]);
	for (uint32_t k = 0; k < spec->n_keys; k++)
		if (spec->key_column[k] >= spec->n_columns)
			return fail(err, RHH_INVALID, "key %u is not a column", (unsigned) k);
	for (uint32_t s = 0; s < spec->n_states; s++)
		if (check_state(spec, s, err) != RHH_OK)
			return err->status;
	if (spec->max_probe_buckets < 1)
		return fail(err, RHH_INVALID, "the probe cap is zero");
	if (!(spec->load_factor >= 0.5f && spec->load_factor <= 0.95f))
		return fail(err, RHH_INVALID, "load factor %g is not between 0.5 and 0.95",
					(double) spec->load_factor);
	if (spec->max_batch_rows < 1)
		return fail(err, RHH_INVALID, "batches cannot have any rows");
	return succeed(err);
}

static rhh_status
cpu_table_create(rhh_device *dev, const rhh_table_spec *spec, rhh_table **out,
				 rhh_error *err)
{
	rhh_table  *table;
	uint64_t	limit_bytes = dev->budget.limit_bytes;
	size_t		parts_bytes = dev->n_workers * sizeof(rhh_cpu_part);
	void	   *parts;

	*out = NULL;
	if (check_spec(spec, err) != RHH_OK)
		return err->status;
	if (spec->memory_limit_bytes > 0 && spec->memory_limit_bytes < limit_bytes)
		limit_bytes = spec->memory_limit_bytes;

	table = calloc(1, sizeof(*table));
	if (table == NULL)
		return fail(err, RHH_NO_MEMORY, "could not allocate a table");
	if (posix_memalign(&parts, __alignof__(rhh_cpu_part), parts_bytes) != 0)
	{
		free(table);
		return fail(err, RHH_NO_MEMORY, "could not allocate a table");
	}
	memset(parts, 0, parts_bytes);
	table->dev = dev;
	table->parts = parts;
	table->budget.parent = &dev->budget;
	table->budget.limit_bytes = limit_bytes;
	rhh_cpu_layout_init(&table->layout, spec, dev->n_workers, limit_bytes);
	table->layout.reserve = &dev->reserve;
	for (uint32_t p = 0; p < dev->n_workers; p++)
	{
		if (!rhh_cpu_part_init(&table->parts[p], &table->layout, &table->budget,
							   limit_bytes))
		{
			/* those not initialized are zero, and have nothing to free */
			free_table(table);
			return fail(err, RHH_NO_MEMORY,
						"could not allocate the smallest table in %llu bytes",
						(unsigned long long) limit_bytes);
		}
	}
	table->next = dev->tables;
	if (table->next != NULL)
		table->next->prev = table;
	dev->tables = table;
	*out = table;
	return succeed(err);
}

static rhh_status
check_batch(const rhh_table_spec *spec, const rhh_batch *batch, rhh_error *err)
{
	uint64_t	bitmap_bytes = ((uint64_t) batch->n_rows + 7) / 8;

	if (batch->n_rows < 1 || batch->n_rows > spec->max_batch_rows)
		return fail(err, RHH_INVALID, "a batch cannot have %u rows",
					(unsigned) batch->n_rows);
	if (batch->base == NULL || (uintptr_t) batch->base % 64 != 0)
		return fail(err, RHH_INVALID, "the batch is not aligned to 64 bytes");
	if (spec->max_batch_bytes > 0 && batch->used_bytes > spec->max_batch_bytes)
		return fail(err, RHH_INVALID, "a batch cannot have %u bytes",
					(unsigned) batch->used_bytes);
	if (batch->failed_offset < batch->used_bytes)
		return fail(err, RHH_INVALID,
					"the bitmap of failed rows overlaps the batch");
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		uint64_t	values_end = batch->values_offset[c] +
			(uint64_t) batch->n_rows * spec->column_bytes[c];

		if (batch->values_offset[c] % 64 != 0 || batch->nulls_offset[c] % 64 != 0)
			return fail(err, RHH_INVALID, "column %u is not aligned to 64 bytes",
						(unsigned) c);
		if (values_end > batch->used_bytes ||
			(batch->nulls_offset[c] != 0 &&
			 batch->nulls_offset[c] + bitmap_bytes > batch->used_bytes))
			return fail(err, RHH_INVALID, "column %u does not end in the batch",
						(unsigned) c);
	}
	return succeed(err);
}

static rhh_status
cpu_table_submit(rhh_table *table, const rhh_batch *batch, uint64_t tag,
				 rhh_error *err)
{
	command    *cmd;

	if (table->finishing)
		return fail(err, RHH_INVALID, "the table is finished");
	if (check_batch(&table->layout.spec, batch, err) != RHH_OK)
		return err->status;
	if (atomic_load_explicit(&table->cancelled, memory_order_relaxed))
		return fail(err, RHH_CANCELLED, "the table was cancelled");
	if (table->batches_in_flight == RHH_CPU_BATCHES_IN_FLIGHT ||
		(cmd = new_command(table, RHH_EVENT_BATCH, tag, RING_BATCHES)) == NULL)
		return fail(err, RHH_BUSY, "too many batches are in flight");
	cmd->batch = *batch;
	cmd->failed.bitmap = batch->base + batch->failed_offset;
	cmd->failed.bytes = (batch->n_rows + 7) / 8;
	table->batches_in_flight++;
	submit_command(table->dev);
	return succeed(err);
}

static rhh_status
cpu_table_finish(rhh_table *table, rhh_error *err)
{
	if (table->finishing)
		return fail(err, RHH_INVALID, "the table is finished");
	if (table->batches_in_flight > 0)
		return fail(err, RHH_INVALID, "batches are in flight");
	if (new_command(table, RHH_EVENT_FINISH, 0, RING_COMMANDS) == NULL)
		return fail(err, RHH_BUSY, "too many commands are in flight");
	table->finishing = true;
	submit_command(table->dev);
	return succeed(err);
}

static rhh_status
cpu_table_extract(rhh_table *table, rhh_result *result, uint64_t tag,
				  rhh_error *err)
{
	uint64_t	n_left = table->n_groups - table->n_extracted;
	command    *cmd;

	if (!table->finished)
		return fail(err, RHH_INVALID, "the table is not finished");
	if (table->extracting)
		return fail(err, RHH_INVALID, "groups are being extracted");
	if (result->capacity_groups < 1)
		return fail(err, RHH_INVALID, "the result has no room");
	if (atomic_load_explicit(&table->cancelled, memory_order_relaxed))
		return fail(err, RHH_CANCELLED, "the table was cancelled");
	cmd = new_command(table, RHH_EVENT_EXTRACT, tag, RING_COMMANDS);
	if (cmd == NULL)
		return fail(err, RHH_BUSY, "too many commands are in flight");
	cmd->result = result;
	cmd->first_group = table->n_extracted;
	cmd->n_groups = n_left < result->capacity_groups ?
		(uint32_t) n_left : result->capacity_groups;
	table->extracting = true;
	submit_command(table->dev);
	return succeed(err);
}

/*
 * busy_ns is the threads' time (by the clock, waiting for a core included)
 * divided by their number: the device's time, had all been equally loaded.
 */
static void
cpu_table_stats(rhh_table *table, rhh_table_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	for (uint32_t p = 0; p < table->dev->n_workers; p++)
	{
		rhh_cpu_part *part = &table->parts[p];
		uint32_t	probe_max = atomic_load_explicit(&part->probe_max,
													 memory_order_relaxed);

		stats->rows += atomic_load_explicit(&part->rows, memory_order_relaxed);
		stats->failed_rows += atomic_load_explicit(&part->failed_rows,
												   memory_order_relaxed);
		stats->groups += atomic_load_explicit(&part->groups, memory_order_relaxed);
		stats->capacity_slots += atomic_load_explicit(&part->slots,
													  memory_order_relaxed);
		stats->failed_slots += atomic_load_explicit(&part->failed_slots,
													memory_order_relaxed);
		stats->rehashes += atomic_load_explicit(&part->rehashes,
												memory_order_relaxed);
		stats->busy_ns += atomic_load_explicit(&part->busy_ns, memory_order_relaxed);
		stats->probe_buckets_sum += atomic_load_explicit(&part->probe_sum,
														 memory_order_relaxed);
		if (probe_max > stats->probe_buckets_max)
			stats->probe_buckets_max = probe_max;
	}
	stats->busy_ns /= table->dev->n_workers;
	stats->bytes = atomic_load_explicit(&table->budget.used_bytes,
										memory_order_relaxed);
	stats->peak_bytes = atomic_load_explicit(&table->budget.peak_bytes,
											 memory_order_relaxed);
}

static void
cpu_table_cancel(rhh_table *table)
{
	atomic_store_explicit(&table->cancelled, true, memory_order_relaxed);
}

static void
cpu_table_destroy(rhh_table *table)
{
	if (table->prev != NULL)
		table->prev->next = table->next;
	else
		table->dev->tables = table->next;
	if (table->next != NULL)
		table->next->prev = table->prev;
	free_table(table);
}

const rhh_device_ops rhh_cpu_ops = {
	.kind = RHH_KIND_CPU,
	.enumerate = cpu_enumerate,
	.open = cpu_open,
	.close = cpu_close,
	.info = cpu_info,
	.register_pool = cpu_register_pool,
	.event_fd = cpu_event_fd,
	.poll = cpu_poll,
	.table_create = cpu_table_create,
	.table_submit = cpu_table_submit,
	.table_finish = cpu_table_finish,
	.table_extract = cpu_table_extract,
	.table_stats = cpu_table_stats,
	.table_cancel = cpu_table_cancel,
	.table_destroy = cpu_table_destroy
};
