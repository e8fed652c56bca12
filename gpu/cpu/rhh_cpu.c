/*
 * rhh_cpu.c
 *		The CPU device: worker threads, commands, and the entry points.
 *
 * rhh_cpu_table.h describes how a map lies in memory, and rhh_cpu_batch.c what a thread
 * does with a batch.  This file connects them with the caller of rhh_device.h.
 *
 * Commands (batch, finish, extract) go into the list of their map, in the order in which
 * they are submitted.  They are cut into tasks, which any worker may take:
 *
 *		batch		one task to scan it; then one for each partition with rows
 *		finish		one for each partition, which takes the local tables' groups; of a
 *					map that keeps rows, one for some partitions
 *		extract		one for each piece of the result
 *
 * The rows of a piece that map_feed() is called for are made by the thread that scans
 * them, in memory that lasts until the last task of the command is done.  The same holds
 * for a piece of a join's output.  When it is done the command starts anew, with the task
 * to make and to scan the next piece, or if rows were refused, to hand them back:
 *
 *		PHASE_SCAN --scan--> PHASE_TASKS --last task--> PHASE_SCAN, or done
 *
 * Between two pieces it has no memory for rows, so that others can have it, but its join
 * state.
 *
 * With one worker a batch is one task.  No two tasks work on the same partition at the
 * same time.  Apart from that the tasks of a map run in any order, those of older commands
 * first, and a worker prefers partitions that other workers do not prefer.  A worker that
 * finds no task sleeps; one that takes a task and sees another one wakes the next worker.
 *
 * Maps take turns, a task at a time: a map from which a task is taken goes behind all
 * other maps that have tasks.  So a query with little to do is done soon, however much
 * others have submitted before it.
 *
 *		free --submit--> the map's list --last task--> done --poll()--> free
 *
 * Commands complete when they are done, in any order.  An eventfd wakes the caller.  A
 * command also serves as the event that poll() reports.
 *
 * Who owns what.  The caller's thread owns maps, free commands, and a command until it
 * is submitted.  The device's lock protects everything that decides what is done next:
 * the lists of commands and of maps, the phases and pending tasks of commands, the set of
 * busy partitions, and the free lists.  A worker owns its scratch memory, its local tables,
 * and what its task works on.  map_destroy() and close() give the memory of a map back;
 * nothing of it is in flight then.
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

#include "rhh_check.h"
#include "rhh_group_rows.h"
#include "cpu/rhh_cpu_host.h"
#include "cpu/rhh_cpu_join.h"
#include "cpu/rhh_cpu_pages.h"
#include "cpu/rhh_cpu_table.h"

#define MAX_COMMANDS 2048u
#define MAX_THREADS 256u

/* Batches leave some commands free for finishing and extracting. */
#define MAX_BATCHES (MAX_COMMANDS / 2)

#define MAX_TASKS 256u			/* of a command at a time */

typedef enum command_phase
{
	PHASE_SCAN,					/* a batch to be scanned, or all of it done */
	PHASE_SCANNING,
	PHASE_TASKS,				/* tasks are pending or running */
	PHASE_DONE
} command_phase;

typedef struct command
{
	struct command *next;		/* in the list it is on */
	rhh_event_kind kind;
	rhh_map    *map;
	uint64_t	tag;
	rhh_batch	batch;
	rhh_batch	given;			/* the caller's, if that has pages.  Then batch has the columns
								 * that are made of them, and room for refused rows */
	uint8_t    *page_rows;		/* in this memory; NULL: they are not made yet, or none */
	size_t		page_bytes;
	uint32_t	n_bad_pages;
	rhh_feed	feed;			/* a batch of another map's groups; else no source */
	rhh_row_spec feed_rows;		/* then: how the map's own columns are made of these */
	rhh_cpu_refused refused;
	rhh_cpu_join_state *join;	/* a batch to be joined */
	bool		handed_back;	/* what was refused of its output, or all of it */
	bool		no_memory;		/* finish: there was none */
	rhh_result *result;
	bool		merge;			/* extract: what found no room in a partition */
	uint64_t	first_group;	/* extract: of the map's, and how many */
	uint32_t	n_groups;
	atomic_bool skipped;		/* a worker found the map cancelled */

	/* under the device's lock once it is submitted */
	command_phase phase;
	uint32_t	n_tasks;		/* extract: pieces */
	uint32_t	n_unfinished;	/* tasks, in PHASE_TASKS */
	uint64_t	pending[MAX_TASKS / 64];	/* a bit for each task not taken */
	rhh_cpu_lists *lists;		/* a batch's, from its scan to its last task; a join's
								 * until rows of its piece are handed back */
	uint64_t	start_ns;		/* extract: of the first task */
} command;

typedef struct command_list
{
	command    *first;
	command    *last;			/* not valid where there is no first */
} command_list;

struct rhh_map
{
	rhh_device *dev;
	rhh_map    *next;			/* of the device's maps */
	rhh_map    *prev;
	rhh_cpu_layout layout;
	rhh_cpu_budget budget;
	atomic_bool cancelled;
	rhh_cpu_part *parts;
	rhh_cpu_local *locals;		/* one for each worker; NULL: only one worker */
	rhh_cpu_rows *rows;			/* that it keeps, and no partitions; NULL: it does not */
	rhh_cpu_joins *joins;		/* before it; NULL: none */
	bool		had_joins;		/* map_join was called */
	rhh_map_stats before;		/* what joins did that were there before them */
	uint64_t	pages;			/* read; the caller's thread only, as is */
	uint64_t	bad_pages;		/* this */
	uint32_t	unmatched;		/* rhh_batch's of the batch that came last */
	_Atomic uint32_t n_unmerged;	/* partitions that finish has not come to */
	_Atomic uint64_t n_orphans; /* groups that stay in local tables */
	_Atomic uint64_t extract_ns;
	_Atomic uint64_t left_out;	/* groups that nobody asks for, by */
	uint32_t	n_conditions;	/* these */
	rhh_group_condition conditions[RHH_MAX_CONDITIONS];

	/* under the lock */
	uint64_t	busy[RHH_CPU_MAX_PARTS / 64];	/* partitions */
	command_list commands;		/* submitted and not done, the oldest first */
	rhh_map    *later;			/* whose turn is next, if this has commands */
	rhh_map    *sooner;

	/* the caller's thread only */
	uint32_t	batches_in_flight;
	bool		fed;			/* a batch or a piece has come */
	bool		finishing;		/* map_finish was called */
	bool		finished;		/* and its event reported */
	bool		extracting;
	uint64_t	n_groups;		/* once finished */
	uint64_t	n_extracted;
	uint64_t	n_orphans_extracted;
};

typedef struct worker
{
	rhh_device *dev;
	uint32_t	number;
	pthread_t	thread;
	rhh_cpu_scratch scratch;
} worker;

/* What a worker has taken to do: a command's scan, or one of its tasks. */
typedef struct task
{
	command    *cmd;
	bool		scan;
	uint32_t	number;			/* of the partition or piece */
} task;

struct rhh_device
{
	uint32_t	n_workers;
	worker	   *workers;
	command    *commands;
	rhh_cpu_budget budget;
	rhh_cpu_reserve reserve;
	rhh_map    *maps;
	int			event_fd;
	const uint8_t *pages;		/* memory that has pages; NULL: none */
	uint32_t	n_pages;
	rhh_cpu_cache cache;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	uint32_t	n_waiting;		/* workers; under the lock, */
	bool		stopping;		/* like this, */
	rhh_map    *first_turn;		/* of the maps that have commands, */
	rhh_map    *last_turn;
	command_list done;			/* the commands to be reported, */
	rhh_cpu_lists *lists;
	rhh_cpu_lists **free_lists; /* and these */
	uint32_t	n_free_lists;

	/* the caller's thread only */
	command    *free_commands;
	uint32_t	n_commands;		/* submitted and not reported */
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

static void
fill_info(const char *root, rhh_device_info *info, rhh_device_state state)
{
	rhh_cpu_host host;

	rhh_cpu_host_look(root, &host);
	memset(info, 0, sizeof(*info));
	info->kind = RHH_KIND_CPU;
	info->state = state;
	info->total_bytes = host.total_bytes;
	info->free_bytes = host.available_bytes;
	info->free_known = true;
	info->n_threads = host.n_cpus;
	rhh_cpu_host_name(info->name, sizeof(info->name));
}

static void cpu_map_stats(rhh_map *map, rhh_map_stats *stats);

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

/* ---------- tasks ---------- */

/*
 * Writes groups of a finished map, counted through its partitions, to a result:
 * those from first + at to first + end - 1, the first of them at place at.
 */
static void
extract_groups(const rhh_map *map, uint64_t first, uint64_t at, uint64_t end,
			   const rhh_result *result)
{
	uint64_t	n_before = 0;	/* groups in the partitions before */

	for (uint32_t p = 0; p < map->layout.n_parts && at < end; p++)
	{
		const rhh_cpu_part *part = &map->parts[p];
		uint64_t	from = first + at - n_before;
		uint64_t	n;

		n_before += part->n_groups;
		if (from >= part->n_groups)
			continue;
		n = part->n_groups - from < end - at ? part->n_groups - from : end - at;
		rhh_cpu_part_extract(part, from, (uint32_t) n, result, (uint32_t) at);
		at += n;
	}
}

/* One piece of a range of groups. */
static void
run_extract(const command *cmd, uint32_t piece)
{
	const rhh_map *map = cmd->map;

	if (cmd->merge)
	{
		uint32_t	n = 0;

		for (uint32_t w = 0; w < map->dev->n_workers; w++)
			n = rhh_cpu_local_extract(&map->locals[w], cmd->result, n);
		return;
	}
	extract_groups(map, cmd->first_group,
				   (uint64_t) cmd->n_groups * piece / cmd->n_tasks,
				   (uint64_t) cmd->n_groups * (piece + 1) / cmd->n_tasks, cmd->result);
}

/*
 * Makes the rows of a piece that map_feed() was called for: takes the groups' words, some
 * groups at a time, so that they stay in the cache, and fills the batch's columns.  The
 * rows are with the batch's lists until its last task is done.  False: there is no memory, or the
 * program of the map is bad for a row.
 */
static bool
make_rows(command *cmd, rhh_cpu_scratch *scratch)
{
	const rhh_feed *feed = &cmd->feed;
	const rhh_row_spec *rows = &cmd->feed_rows;
	const rhh_map_spec *spec = &cmd->map->layout.spec;
	const uint64_t outside = rows->outside[feed->set];
	const uint32_t n_rows = feed->n_groups;
	rhh_result	some = {.capacity_groups = RHH_CPU_FEED_SOME_GROUPS};
	rhh_batch  *batch = &cmd->batch;
	rhh_cpu_joins *joins = cmd->map->joins;
	uint64_t	null_keys = 0;	/* that are NULL in any of the groups */

	if (!rhh_cpu_make_room(&scratch->group_words, &scratch->n_group_words,
						   some.capacity_groups *
						   rhh_result_words(&feed->source->layout.spec)))
		return false;
	batch->base = cmd->lists->rows;
	some.words = scratch->group_words;
	for (uint32_t c = 0; c < spec->n_columns; c++)
		if (batch->nulls_offset[c] != 0)
			memset(batch->base + batch->nulls_offset[c], 0, ((size_t) n_rows + 63) / 64 * 8);
	for (uint32_t row = 0; row < n_rows; row += some.capacity_groups)
	{
		const uint32_t n = n_rows - row < some.capacity_groups ?
			n_rows - row : some.capacity_groups;
		uint64_t	some_null = 0;

		extract_groups(feed->source, feed->first_group + row, 0, n, &some);
		for (uint32_t i = 0; i < n; i++)
			some_null |= some.words[i];
		null_keys |= some_null;
		for (uint32_t c = 0; c < spec->n_columns; c++)
		{
			rhh_group_rows_values(rows, c, spec->column_bytes[c], feed->set, some.words,
								  some.capacity_groups, n,
								  batch->base + batch->values_offset[c] +
								  (size_t) row * spec->column_bytes[c]);
			if (rhh_row_may_be_null(&rows->columns[c], rows->n_parts, outside, some_null))
				rhh_group_rows_nulls(rows, c, feed->set, some.words, some.capacity_groups, n,
									 batch->base + batch->nulls_offset[c], row);
		}
	}
	/* a column without a NULL is read faster if it has no bitmap */
	for (uint32_t c = 0; c < spec->n_columns; c++)
		if (!rhh_row_may_be_null(&rows->columns[c], rows->n_parts, outside, null_keys))
			batch->nulls_offset[c] = 0;
	return joins == NULL || rhh_cpu_join_compute(joins, spec, batch, scratch);
}

/*
 * Makes columns of a batch's pages, if it has any, and has not been here before.  False: there are
 * no rows.
 */
static bool
read_pages(command *cmd)
{
	rhh_map    *map = cmd->map;
	const rhh_map_spec *spec = &map->layout.spec;

	if (cmd->given.n_pages == 0 || cmd->page_rows != NULL)
		return true;
	cmd->page_rows =
		rhh_cpu_read_pages(map->dev->pages, &map->dev->cache, &map->dev->reserve, &cmd->given,
						   map->joins ? map->joins->spec.column_bytes : spec->column_bytes,
						   map->joins ? rhh_output_bytes(spec, cmd->given.refused_rows) :
						   (cmd->given.n_rows + 63) / 64 * 8,
						   &cmd->batch, &cmd->page_bytes, &cmd->n_bad_pages);
	if (cmd->join != NULL)
	{
		rhh_cpu_join_start(map->joins, cmd->join, &cmd->batch);
		cmd->join->at_end = cmd->page_rows == NULL;
	}
	else
		cmd->refused.bitmap = cmd->batch.base + cmd->batch.refused_offset;
	return cmd->page_rows != NULL;
}

/*
 * A batch with pages is done: tells the caller the refused rows, if there are any.
 */
static void
end_pages(command *cmd, bool refused)
{
	rhh_map    *map = cmd->map;
	const rhh_map_spec *spec = &map->layout.spec;
	const uint32_t room = cmd->given.refused_rows;

	map->pages += cmd->given.n_pages - cmd->n_bad_pages;
	if (refused && cmd->join != NULL && cmd->page_rows != NULL && map->rows == NULL)
		memcpy(cmd->given.base + cmd->given.refused_offset,
			   cmd->batch.base + cmd->batch.refused_offset,
			   map->joins->has_program ? rhh_output_bytes(spec, room) :
			   rhh_output_bad(spec, room));
	else if (refused && cmd->join == NULL)
		cmd->n_bad_pages += rhh_cpu_refuse_pages(&cmd->given, cmd->refused.bitmap);
	if (cmd->page_rows != NULL)
		rhh_cpu_give_pages(&map->dev->reserve, cmd->page_rows, cmd->page_bytes);
	cmd->page_rows = NULL;
	map->bad_pages += cmd->n_bad_pages;
}

/* All rows of a piece come back. */
static void
refuse_rows(command *cmd, _Atomic uint64_t *counter)
{
	const uint32_t n = cmd->feed.n_groups;

	memset(cmd->refused.bitmap, 0xFF, n / 8);
	if (n % 8 != 0)
		cmd->refused.bitmap[n / 8] = (uint8_t) ((1u << n % 8) - 1);
	atomic_store_explicit(&cmd->refused.n, n, memory_order_relaxed);
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Moves the local tables' groups of a partition into it; the last task frees those tables. */
static void
run_finish(rhh_map *map, uint32_t p)
{
	rhh_cpu_part *part = &map->parts[p];
	const uint32_t n_locals = map->locals != NULL ? map->dev->n_workers : 0;
	uint64_t	n_orphans = 0;

	for (uint32_t w = 0; w < n_locals; w++)
		if (map->locals[w].used)
			n_orphans += rhh_cpu_part_merge(part, p, &map->locals[w].part);
	if (n_orphans > 0)
		atomic_fetch_add_explicit(&map->n_orphans, n_orphans, memory_order_relaxed);
	if (map->layout.spec.flags & RHH_WANT_PROBE_STATS)
		rhh_cpu_part_probe_stats(part);
	rhh_cpu_part_free_slots(part);
	/* a group that is left in a local table may be a part of one of these */
	if (map->n_conditions > 0 && n_orphans == 0)
		atomic_fetch_add_explicit(&map->left_out,
								  rhh_cpu_part_filter(part, map->conditions, map->n_conditions),
								  memory_order_relaxed);
	if (atomic_fetch_sub_explicit(&map->n_unmerged, 1, memory_order_acq_rel) == 1 &&
		atomic_load_explicit(&map->n_orphans, memory_order_relaxed) == 0)
	{
		for (uint32_t w = 0; w < n_locals; w++)
			if (map->locals[w].used)
				rhh_cpu_part_free(&map->locals[w].part);
	}
}

static bool
make_piece(command *cmd, worker *self, uint32_t most)
{
	rhh_map    *map = cmd->map;

	return rhh_cpu_join_piece(map->joins, cmd->join, &map->layout.spec, &cmd->batch, most,
							  cmd->lists, &self->scratch, &map->cancelled);
}

/*
 * Keeps what comes out of the joins of a batch, a piece at a time, up to a piece of which a row is bad or has no
 * room.  False: the map was cancelled, and rows are missing.
 */
static bool
run_keep_joined(command *cmd, worker *self)
{
	rhh_map    *map = cmd->map;
	const rhh_batch *piece = &cmd->lists->piece;

	cmd->refused.bitmap = cmd->lists->refused;
	cmd->handed_back = true;
	do
	{
		if (!make_piece(cmd, self, cmd->batch.refused_rows))
			return false;
		cmd->refused.bytes = (piece->n_rows + 7) / 8;
		atomic_store_explicit(&cmd->refused.state, 0, memory_order_relaxed);
		if (piece->n_rows > 0 &&
			!rhh_cpu_rows_keep(map->rows, piece, &self->scratch, &cmd->refused, &map->cancelled))
			return false;
	} while (!cmd->join->at_end && cmd->join->n_bad == 0 &&
			 atomic_load_explicit(&cmd->refused.n, memory_order_relaxed) == 0);
	cmd->join->at_end = true;
	return true;
}

/*
 * Keeps the rows of a batch, or of a piece that map_feed() was called for.  False: the map
 * was cancelled, and rows are missing.
 */
static bool
run_keep(command *cmd, worker *self)
{
	rhh_map    *map = cmd->map;

	if (!read_pages(cmd))
		return true;
	if (cmd->join != NULL)
		return run_keep_joined(cmd, self);
	if (cmd->feed.source != NULL && !make_rows(cmd, &self->scratch))
	{
		refuse_rows(cmd, &map->rows->refused_rows);
		return true;
	}
	return rhh_cpu_rows_keep(map->rows, &cmd->batch, &self->scratch, &cmd->refused,
							 &map->cancelled);
}

/*
 * Returns the next rows of a join's output, as many as there is room for; after those that
 * a program has handed back there is none.  False: the map was cancelled, and rows are
 * missing.
 */
static bool
run_return(command *cmd, worker *self)
{
	rhh_map    *map = cmd->map;
	const uint32_t room = cmd->batch.refused_rows;
	uint32_t	n = 0;

	do
	{
		if (!make_piece(cmd, self, room - n))
			return false;
		rhh_cpu_join_return(map->joins, &map->layout.spec, &cmd->lists->piece,
							n + cmd->join->n_bad, &cmd->batch);
		n += cmd->lists->piece.n_rows;
	} while (!cmd->join->at_end && n < room && !map->joins->has_program);
	atomic_store_explicit(&cmd->refused.n, n, memory_order_relaxed);
	cmd->handed_back = n > 0;
	return true;
}

/*
 * Makes the next piece of a join's output, or hands the refused rows of the last one back.
 * False: the map was cancelled, and rows are missing.
 */
static bool
run_join(command *cmd, worker *self)
{
	rhh_map    *map = cmd->map;
	rhh_batch  *piece = &cmd->lists->piece;

	if (atomic_load_explicit(&cmd->refused.n, memory_order_relaxed) > 0)
	{
		rhh_cpu_join_hand_back(&map->layout.spec, piece, cmd->refused.bitmap,
							   cmd->join->n_bad, &cmd->batch);
		cmd->handed_back = true;
		return true;
	}
	if (!make_piece(cmd, self, cmd->batch.refused_rows))
		return false;
	cmd->refused.bitmap = cmd->lists->refused;
	cmd->refused.bytes = (piece->n_rows + 7) / 8;
	atomic_store_explicit(&cmd->refused.state, 0, memory_order_relaxed);
	return true;
}

/* The first task of a batch.  False: the map was cancelled, and rows are missing. */
static bool
run_scan(command *cmd, worker *self)
{
	rhh_map    *map = cmd->map;
	const rhh_batch *batch = &cmd->batch;
	rhh_cpu_local *local = NULL;
	rhh_cpu_part *part = &map->parts[0];

	/* no partition has rows yet */
	memset(cmd->lists->first, 0, (RHH_CPU_MAX_PARTS + 1) * sizeof(uint32_t));
	if (map->locals != NULL)
	{
		local = &map->locals[self->number];
		part = &local->part;
		if (part->layout == NULL)
			rhh_cpu_local_init(local, &map->layout, &map->budget);
	}
	if (cmd->feed.source != NULL && !make_rows(cmd, &self->scratch))
	{
		refuse_rows(cmd, &part->refused_rows);
		return true;
	}
	/* a program has dropped all */
	if (batch->n_rows == 0 && cmd->feed.source != NULL)
		return true;
	if (!read_pages(cmd))
		return true;
	if ((map->layout.spec.flags & RHH_RETURN_ROWS) != 0)
		return run_return(cmd, self);
	if (cmd->join != NULL)
	{
		if (!run_join(cmd, self))
			return false;
		batch = &cmd->lists->piece;
		if (cmd->handed_back || batch->n_rows == 0)
			return true;
	}
	if (local == NULL)
		return rhh_cpu_aggregate_all(part, batch, &self->scratch, &cmd->refused,
									 &map->cancelled);
	return rhh_cpu_scan(map->parts, local, batch, cmd->lists, &self->scratch,
						&cmd->refused, &map->cancelled);
}

/* A task for a map that keeps rows.  False: it was cancelled meanwhile. */
static bool
run_rows_task(const task *task, worker *self)
{
	command    *cmd = task->cmd;
	rhh_map    *map = cmd->map;

	if (task->scan)
		return run_keep(cmd, self);
	return cmd->no_memory || rhh_cpu_rows_finish(map->rows, task->number, &map->cancelled);
}

/* A task for a map that groups rows.  False: it was cancelled meanwhile. */
static bool
run_group_task(const task *task, worker *self, _Atomic uint64_t **busy_ns)
{
	command    *cmd = task->cmd;
	rhh_map    *map = cmd->map;
	rhh_cpu_part *part = &map->parts[task->number];

	if (task->scan && map->locals != NULL)
		part = &map->locals[self->number].part;
	*busy_ns = &part->busy_ns;
	if (task->scan)
		return run_scan(cmd, self);
	if (cmd->kind == RHH_EVENT_BATCH)
		return rhh_cpu_aggregate_list(part, task->number,
									  cmd->join != NULL ? &cmd->lists->piece : &cmd->batch,
									  cmd->lists, &self->scratch, &cmd->refused,
									  &map->cancelled);
	run_finish(map, task->number);
	return true;
}

static void
run_task(const task *task, worker *self)
{
	command    *cmd = task->cmd;
	rhh_map    *map = cmd->map;
	_Atomic uint64_t *busy_ns = NULL;
	uint64_t	start_ns = now_ns();
	bool		complete;

	if (atomic_load_explicit(&map->cancelled, memory_order_relaxed))
	{
		atomic_store_explicit(&cmd->skipped, true, memory_order_relaxed);
		return;
	}
	if (cmd->kind == RHH_EVENT_EXTRACT)
	{
		run_extract(cmd, task->number);
		return;
	}
	if (map->rows != NULL)
	{
		busy_ns = &map->rows->busy_ns;
		complete = run_rows_task(task, self);
	}
	else
		complete = run_group_task(task, self, &busy_ns);
	if (!complete)
		atomic_store_explicit(&cmd->skipped, true, memory_order_relaxed);
	atomic_fetch_add_explicit(busy_ns, now_ns() - start_ns, memory_order_relaxed);
}

/* ---------- workers ---------- */

static void
set_bits(uint64_t *bits, uint32_t n)
{
	for (uint32_t i = 0; i < MAX_TASKS / 64; i++)
		bits[i] = n >= 64 * (i + 1) ? UINT64_MAX : n <= 64 * i ? 0 :
			(UINT64_C(1) << (n - 64 * i)) - 1;
}

/*
 * Finds a pending task of a command that may run now.  It looks from number first on, and
 * then from 0.  The caller holds the lock, here and in the functions below.
 */
static bool
find_pending(const command *cmd, uint32_t first, uint32_t *number)
{
	for (uint32_t i = 0; i <= MAX_TASKS / 64; i++)
	{
		uint32_t	word = (first / 64 + i) % (MAX_TASKS / 64);
		uint64_t	ready = cmd->pending[word];

		if (cmd->kind != RHH_EVENT_EXTRACT)
			ready &= ~cmd->map->busy[word];
		if (i == 0)
			ready &= UINT64_MAX << first % 64;
		if (ready != 0)
		{
			*number = 64 * word + (uint32_t) __builtin_ctzll(ready);
			return true;
		}
	}
	return false;
}

/* A map joins the turns when it has commands, and leaves them when it has none. */
static void
join_turns(rhh_device *dev, rhh_map *map)
{
	map->later = NULL;
	map->sooner = dev->last_turn;
	if (dev->last_turn != NULL)
		dev->last_turn->later = map;
	else
		dev->first_turn = map;
	dev->last_turn = map;
}

static void
leave_turns(rhh_device *dev, rhh_map *map)
{
	if (map->sooner != NULL)
		map->sooner->later = map->later;
	else
		dev->first_turn = map->later;
	if (map->later != NULL)
		map->later->sooner = map->sooner;
	else
		dev->last_turn = map->sooner;
}

static void
append_command(command_list *list, command *cmd)
{
	cmd->next = NULL;
	if (list->first != NULL)
		list->last->next = cmd;
	else
		list->first = cmd;
	list->last = cmd;
}

static void
remove_command(command_list *list, command *cmd)
{
	command    *before = NULL;

	if (list->first == cmd)
		list->first = cmd->next;
	else
	{
		for (before = list->first; before->next != cmd; before = before->next)
			;
		before->next = cmd->next;
	}
	if (list->last == cmd)
		list->last = before;
}

/*
 * Finds the next task: of the map whose turn it is, and of its oldest command that has a
 * task that may run now.
 */
static bool
find_task(rhh_device *dev, const worker *self, task *task)
{
	for (rhh_map *map = dev->first_turn; map != NULL; map = map->later)
	{
		const uint32_t first = self->number * map->layout.n_parts / dev->n_workers;

		for (command *cmd = map->commands.first; cmd != NULL; cmd = cmd->next)
		{
			task->cmd = cmd;
			task->scan = cmd->phase == PHASE_SCAN;
			task->number = 0;
			if (task->scan && (cmd->lists != NULL || dev->n_free_lists > 0))
				return true;
			if (cmd->phase == PHASE_TASKS && find_pending(cmd, first, &task->number))
				return true;
		}
	}
	return false;
}

static void
take_task(rhh_device *dev, const task *task)
{
	command    *cmd = task->cmd;
	uint64_t	bit = UINT64_C(1) << task->number % 64;

	leave_turns(dev, cmd->map);
	join_turns(dev, cmd->map);
	if (task->scan)
	{
		cmd->phase = PHASE_SCANNING;
		if (cmd->lists == NULL)
			cmd->lists = dev->free_lists[--dev->n_free_lists];
		return;
	}
	cmd->pending[task->number / 64] &= ~bit;
	if (cmd->kind == RHH_EVENT_EXTRACT && cmd->start_ns == 0)
		cmd->start_ns = now_ns();
	if (cmd->kind != RHH_EVENT_EXTRACT)
		cmd->map->busy[task->number / 64] |= bit;
}

static void
signal_event(rhh_device *dev)
{
	uint64_t	one = 1;

	/* cannot fail: the counter would have to reach 2^64 */
	while (write(dev->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void
free_lists(rhh_device *dev, command *cmd)
{
	if (cmd->lists != NULL)
		dev->free_lists[dev->n_free_lists++] = cmd->lists;
	cmd->lists = NULL;
}

/*
 * A piece of a join's output is done.  False: so is the command.  Otherwise it is to be
 * scanned again, to make the next piece, or to hand back what was refused of this one.
 */
static bool
go_on_with_join(rhh_device *dev, command *cmd)
{
	const bool	refused = atomic_load_explicit(&cmd->refused.n, memory_order_relaxed) > 0;

	if (cmd->kind != RHH_EVENT_BATCH || cmd->join == NULL || cmd->handed_back ||
		atomic_load_explicit(&cmd->skipped, memory_order_relaxed) ||
		(!refused && (cmd->join->at_end || cmd->join->n_bad > 0)))
		return false;
	if (!refused)
		free_lists(dev, cmd);
	cmd->phase = PHASE_SCAN;
	return true;
}

/* All tasks of a command are done. */
static void
finish_command(rhh_device *dev, command *cmd)
{
	rhh_map    *map = cmd->map;

	free_lists(dev, cmd);
	if (cmd->kind == RHH_EVENT_EXTRACT && cmd->start_ns > 0)
		atomic_fetch_add_explicit(&map->extract_ns, now_ns() - cmd->start_ns,
								  memory_order_relaxed);
	cmd->phase = PHASE_DONE;
	remove_command(&map->commands, cmd);
	if (map->commands.first == NULL)
		leave_turns(dev, map);
	if (dev->done.first == NULL)
		signal_event(dev);
	append_command(&dev->done, cmd);
}

static void
finish_task(rhh_device *dev, const task *task)
{
	command    *cmd = task->cmd;
	const rhh_map *map = cmd->map;

	if (!task->scan)
	{
		if (cmd->kind != RHH_EVENT_EXTRACT)
			cmd->map->busy[task->number / 64] &=
				~(UINT64_C(1) << task->number % 64);
		cmd->n_unfinished--;
	}
	else
	{
		cmd->phase = PHASE_TASKS;
		if (map->locals != NULL &&
			!atomic_load_explicit(&cmd->skipped, memory_order_relaxed))
		{
			const uint32_t *first = cmd->lists->first;

			for (uint32_t p = 0; p < map->layout.n_parts; p++)
			{
				if (first[p] == first[p + 1])
					continue;
				cmd->pending[p / 64] |= UINT64_C(1) << p % 64;
				cmd->n_unfinished++;
			}
		}
	}
	if (cmd->n_unfinished == 0 && !go_on_with_join(dev, cmd))
		finish_command(dev, cmd);
}

static void *
worker_main(void *arg)
{
	worker	   *self = arg;
	rhh_device *dev = self->dev;
	task		mine,
				other;

	pthread_mutex_lock(&dev->lock);
	for (;;)
	{
		if (find_task(dev, self, &mine))
		{
			take_task(dev, &mine);
			if (dev->n_waiting > 0 && find_task(dev, self, &other))
				pthread_cond_signal(&dev->wake);
			pthread_mutex_unlock(&dev->lock);
			run_task(&mine, self);
			pthread_mutex_lock(&dev->lock);
			finish_task(dev, &mine);
		}
		else if (dev->stopping)
			break;
		else
		{
			dev->n_waiting++;
			pthread_cond_wait(&dev->wake, &dev->lock);
			dev->n_waiting--;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

/* ---------- commands ---------- */

/* Gets a free command to fill in and submit.  NULL: the map has `limit` in flight. */
static command *
new_command(rhh_map *map, rhh_event_kind kind, uint64_t tag, uint32_t limit)
{
	rhh_device *dev = map->dev;
	command    *cmd = dev->free_commands;

	if (dev->n_commands >= limit)
		return NULL;
	cmd->kind = kind;
	cmd->map = map;
	cmd->tag = tag;
	cmd->result = NULL;
	cmd->feed.source = NULL;
	cmd->given.n_pages = 0;
	cmd->page_rows = NULL;
	cmd->n_bad_pages = 0;
	cmd->lists = NULL;
	cmd->join = NULL;
	cmd->handed_back = false;
	cmd->no_memory = false;
	cmd->start_ns = 0;
	atomic_store_explicit(&cmd->refused.state, 0, memory_order_relaxed);
	atomic_store_explicit(&cmd->refused.n, 0, memory_order_relaxed);
	atomic_store_explicit(&cmd->skipped, false, memory_order_relaxed);
	return cmd;
}

/* Submits a command of n_tasks tasks; 0: it is a batch that is to be scanned first. */
static void
submit_command(rhh_device *dev, command *cmd, uint32_t n_tasks)
{
	rhh_map    *map = cmd->map;

	dev->free_commands = cmd->next;
	dev->n_commands++;
	cmd->phase = n_tasks == 0 ? PHASE_SCAN : PHASE_TASKS;
	cmd->n_tasks = cmd->n_unfinished = n_tasks;
	set_bits(cmd->pending, n_tasks);
	pthread_mutex_lock(&dev->lock);
	if (map->commands.first == NULL)
		join_turns(dev, map);
	append_command(&map->commands, cmd);
	if (dev->n_waiting > 0)
		pthread_cond_signal(&dev->wake);
	pthread_mutex_unlock(&dev->lock);
}

/* ---------- device ---------- */

static rhh_status
cpu_enumerate(rhh_device_info *infos, uint32_t cap, uint32_t *n, rhh_error *err)
{
	*n = 0;
	if (cap > 0)
	{
		fill_info("", &infos[0], RHH_STATE_AVAILABLE);
		*n = 1;
	}
	return succeed(err);
}

static void
free_map(rhh_map *map)
{
	if (map->parts != NULL)
	{
		for (uint32_t p = 0; p < map->layout.n_parts; p++)
			rhh_cpu_part_free(&map->parts[p]);
		free(map->parts);
	}
	if (map->locals != NULL)
	{
		for (uint32_t w = 0; w < map->dev->n_workers; w++)
			rhh_cpu_part_free(&map->locals[w].part);
		free(map->locals);
	}
	if (map->rows != NULL)
		rhh_cpu_rows_free(map->rows);
	free(map->rows);
	rhh_cpu_joins_free(map->joins);
	free(map);
}

/* The most batches that may be between their scan and their last task. */
static uint32_t
lists_of(const rhh_device *dev)
{
	return dev->n_workers + 2;
}

/* Stops the first n_started workers and frees the device. */
static void
free_device(rhh_device *dev, uint32_t n_started)
{
	pthread_mutex_lock(&dev->lock);
	dev->stopping = true;
	pthread_cond_broadcast(&dev->wake);
	pthread_mutex_unlock(&dev->lock);
	for (uint32_t i = 0; i < n_started; i++)
		pthread_join(dev->workers[i].thread, NULL);

	while (dev->maps != NULL)
	{
		rhh_map    *map = dev->maps;

		dev->maps = map->next;
		free_map(map);
	}
	for (uint32_t i = 0; i < dev->n_workers; i++)
		rhh_cpu_scratch_free(&dev->workers[i].scratch);
	for (uint32_t i = 0; dev->commands != NULL && i < MAX_COMMANDS; i++)
		if (dev->commands[i].page_rows != NULL)
			rhh_cpu_give_pages(&dev->reserve, dev->commands[i].page_rows, dev->commands[i].page_bytes);
	rhh_cpu_cache_free(&dev->cache);
	if (dev->lists != NULL)
	{
		for (uint32_t i = 0; i < lists_of(dev); i++)
			rhh_cpu_lists_free(&dev->lists[i]);
	}
	free(dev->lists);
	free(dev->free_lists);
	if (dev->event_fd >= 0)
		close(dev->event_fd);
	pthread_cond_destroy(&dev->wake);
	pthread_mutex_destroy(&dev->lock);
	if (dev->reserve.kept != NULL)
		rhh_cpu_reserve_free(&dev->reserve);
	free(dev->workers);
	free(dev->commands);
	free(dev);
}

static rhh_status
cpu_open(int32_t ordinal, const rhh_device_config *config, rhh_device **out,
		 rhh_error *err)
{
	rhh_device *dev;
	rhh_cpu_host host;
	uint32_t	n_workers = config->cpu_threads;
	bool		complete;

	*out = NULL;
	if (ordinal != 0)
		return fail(err, RHH_NO_DEVICE, "there is no CPU device %d", (int) ordinal);
	rhh_cpu_host_look(config->root ? config->root : "", &host);
	if (n_workers == 0)
		n_workers = host.n_cpus;
	if (n_workers > MAX_THREADS)
		n_workers = MAX_THREADS;

	dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return fail(err, RHH_NO_MEMORY, "could not allocate the CPU device");
	pthread_mutex_init(&dev->lock, NULL);
	pthread_cond_init(&dev->wake, NULL);
	dev->n_workers = n_workers;
	rhh_cpu_cache_init(&dev->cache, &dev->budget);
	dev->budget.limit_bytes = config->memory_limit_bytes > 0 ?
		config->memory_limit_bytes : rhh_cpu_host_memory(&host);
	dev->budget.root = config->root ? config->root : "";
	dev->budget.reserve = &dev->reserve;
	dev->budget.look_bytes = dev->budget.limit_bytes / RHH_CPU_LOOK_DIVISOR < RHH_CPU_LOOK_BYTES ?
		dev->budget.limit_bytes / RHH_CPU_LOOK_DIVISOR : RHH_CPU_LOOK_BYTES;
	dev->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dev->commands = calloc(MAX_COMMANDS, sizeof(command));
	dev->workers = calloc(n_workers, sizeof(worker));
	dev->lists = calloc(lists_of(dev), sizeof(rhh_cpu_lists));
	dev->free_lists = calloc(lists_of(dev), sizeof(rhh_cpu_lists *));
	complete = rhh_cpu_reserve_init(&dev->reserve, dev->budget.limit_bytes) &&
		dev->event_fd >= 0 && dev->commands != NULL && dev->workers != NULL &&
		dev->lists != NULL && dev->free_lists != NULL;
	for (uint32_t i = 0; complete && i < MAX_COMMANDS; i++)
	{
		dev->commands[i].next = dev->free_commands;
		dev->free_commands = &dev->commands[i];
	}
	for (uint32_t i = 0; complete && i < lists_of(dev); i++)
	{
		complete = rhh_cpu_lists_init(&dev->lists[i]);
		dev->free_lists[dev->n_free_lists++] = &dev->lists[i];
	}
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
	for (rhh_map *map = dev->maps; map != NULL; map = map->next)
		atomic_store_explicit(&map->cancelled, true, memory_order_relaxed);
	free_device(dev, dev->n_workers);
}

static rhh_status
cpu_info(rhh_device *dev, rhh_device_info *info, rhh_error *err)
{
	uint64_t	used = atomic_load_explicit(&dev->budget.used_bytes,
											memory_order_relaxed);
	uint64_t	room = dev->budget.limit_bytes > used ?
		dev->budget.limit_bytes - used : 0;

	fill_info(dev->budget.root, info, RHH_STATE_OPEN);
	info->n_threads = dev->n_workers;
	if (info->free_bytes > room)
		info->free_bytes = room;
	return succeed(err);
}

/* Does nothing: batches are read where they lie. */
static rhh_status
cpu_register_pool(rhh_device *dev, void *base, size_t bytes, rhh_error *err)
{
	(void) dev;
	(void) base;
	(void) bytes;
	return succeed(err);
}

/* How many groups have no slot; final once the map is finished. */
static uint64_t
n_orphans_of(rhh_map *map)
{
	return atomic_load_explicit(&map->n_orphans, memory_order_relaxed);
}

static rhh_status
cpu_register_pages(rhh_device *dev, void *base, uint32_t n_pages, rhh_error *err)
{
	dev->pages = base;
	dev->n_pages = n_pages;
	return succeed(err);
}

static bool
cpu_reads_pages(rhh_device *dev, rhh_error *err)
{
	(void) dev;
	return succeed(err) == RHH_OK;
}

/* Slabs are not taken back, and count as any memory does. */
static rhh_status
cpu_cache_slab(rhh_device *dev, uint32_t i, rhh_error *err)
{
	if (i >= RHH_MAX_SLABS || dev->cache.slabs[i] != NULL)
		return fail(err, RHH_INVALID, "slab %u cannot be made", (unsigned) i);
	if (!rhh_cpu_cache_add(&dev->cache, i))
		return fail(err, RHH_NO_MEMORY, "no memory for the cache");
	return succeed(err);
}

static bool
cpu_lost_slab(rhh_device *dev, uint32_t *i)
{
	(void) dev;
	(void) i;
	return false;
}

static int
cpu_event_fd(rhh_device *dev)
{
	return dev->event_fd;
}

/* What the event of a batch says of its output; gives the join state back. */
static void
report_join(command *cmd, rhh_event *event)
{
	event->n_refused += cmd->join->n_bad;
	event->more = event->status == RHH_OK && !cmd->join->at_end;
	if (event->more)
		rhh_cpu_join_position(cmd->map->joins, cmd->join, &event->next);
	cmd->join->next = cmd->map->joins->free_states;
	cmd->map->joins->free_states = cmd->join;
}

static rhh_status
cpu_poll(rhh_device *dev, rhh_event *events, uint32_t cap, uint32_t *n,
		 rhh_error *err)
{
	uint64_t	counter;
	bool		more;

	/* reset first: what completes after this makes it readable again */
	while (read(dev->event_fd, &counter, sizeof(counter)) < 0 && errno == EINTR)
		;
	for (*n = 0;; (*n)++)
	{
		command    *cmd;
		rhh_map    *map;
		rhh_event  *event = &events[*n];

		pthread_mutex_lock(&dev->lock);
		cmd = dev->done.first;
		if (cmd != NULL && *n < cap)
			remove_command(&dev->done, cmd);
		more = cmd != NULL && *n == cap;
		pthread_mutex_unlock(&dev->lock);
		if (cmd == NULL || more)
			break;
		map = cmd->map;
		event->kind = cmd->kind;
		event->status = atomic_load_explicit(&cmd->skipped, memory_order_relaxed) ?
			RHH_CANCELLED : RHH_OK;
		event->map = map;
		event->tag = cmd->tag;
		event->n_refused = atomic_load_explicit(&cmd->refused.n, memory_order_relaxed);
		event->more = false;
		event->n_bad_pages = event->n_rows = event->n_dropped = 0;
		switch (cmd->kind)
		{
			case RHH_EVENT_BATCH:
				map->batches_in_flight--;
				if (cmd->join != NULL)
					report_join(cmd, event);
				if (cmd->given.n_pages > 0)
					end_pages(cmd, event->n_refused > 0);
				event->n_bad_pages = cmd->n_bad_pages;
				event->n_rows = cmd->batch.n_rows;
				for (uint32_t p = 0; p < cmd->given.n_pages; p++)
					event->n_dropped += ((const rhh_page *) (const void *) (cmd->given.base + cmd->given.pages_offset))[p].n_dropped;
				break;
			case RHH_EVENT_FINISH:
				if (cmd->no_memory && event->status == RHH_OK)
					event->status = RHH_NO_MEMORY;
				map->finished = !cmd->no_memory;
				for (uint32_t p = 0; map->parts != NULL && p < map->layout.n_parts; p++)
					map->n_groups += map->parts[p].n_groups;
				break;
			case RHH_EVENT_EXTRACT:
				map->extracting = false;
				if (event->status != RHH_OK)
					break;
				if (cmd->merge)
					map->n_orphans_extracted += cmd->n_groups;
				else
					map->n_extracted += cmd->n_groups;
				cmd->result->n_groups = cmd->n_groups;
				cmd->result->needs_merge = cmd->merge;
				cmd->result->last = map->n_extracted == map->n_groups &&
					map->n_orphans_extracted == n_orphans_of(map);
				break;
		}
		cmd->next = dev->free_commands;
		dev->free_commands = cmd;
		dev->n_commands--;
	}
	if (more)
		signal_event(dev);
	return succeed(err);
}

/* ---------- maps ---------- */

/* Allocates zeroed memory for partitions, which are aligned to two cache lines. */
static void *
allocate_zeroed(size_t bytes)
{
	void	   *p;

	if (posix_memalign(&p, __alignof__(rhh_cpu_part), bytes) != 0)
		return NULL;
	return memset(p, 0, bytes);
}

/* Makes the partitions of a map that groups rows.  False: no memory. */
static bool
make_parts(rhh_map *map, uint64_t limit_bytes)
{
	const uint32_t n_workers = map->dev->n_workers;

	atomic_store_explicit(&map->n_unmerged, map->layout.n_parts, memory_order_relaxed);
	map->parts = allocate_zeroed(map->layout.n_parts * sizeof(rhh_cpu_part));
	if (n_workers > 1)
		map->locals = allocate_zeroed(n_workers * sizeof(rhh_cpu_local));
	if (map->parts == NULL || (n_workers > 1 && map->locals == NULL))
		return false;
	/* those not initialized are zero, and have nothing to free */
	for (uint32_t p = 0; p < map->layout.n_parts; p++)
		if (!rhh_cpu_part_init(&map->parts[p], &map->layout, &map->budget, limit_bytes))
			return false;
	return true;
}

/* Makes what a map has that keeps rows.  False: no memory. */
static bool
make_kept(rhh_map *map)
{
	rhh_cpu_rows *rows = malloc(sizeof(*rows));

	if (rows != NULL && rhh_cpu_rows_init(rows, &map->layout, &map->budget))
	{
		map->rows = rows;
		return true;
	}
	free(rows);
	return false;
}

static rhh_status
cpu_map_create(rhh_device *dev, const rhh_map_spec *spec, rhh_map **out,
			   rhh_error *err)
{
	rhh_map    *map;
	uint64_t	limit_bytes = dev->budget.limit_bytes;

	*out = NULL;
	if (rhh_check_spec(spec, err) != RHH_OK)
		return err->status;
	if (spec->memory_limit_bytes > 0 && spec->memory_limit_bytes < limit_bytes)
		limit_bytes = spec->memory_limit_bytes;

	map = calloc(1, sizeof(*map));
	if (map == NULL)
		return fail(err, RHH_NO_MEMORY, "could not allocate a map");
	map->dev = dev;
	map->budget.parent = &dev->budget;
	map->budget.limit_bytes = limit_bytes;
	rhh_cpu_layout_init(&map->layout, spec, dev->n_workers, limit_bytes);
	map->layout.reserve = &dev->reserve;
	if (!((spec->flags & RHH_KEEP_ROWS) != 0 ? make_kept(map) :
		  make_parts(map, limit_bytes)))
	{
		free_map(map);
		return fail(err, RHH_NO_MEMORY,
					"could not allocate the smallest hash table in %llu bytes",
					(unsigned long long) limit_bytes);
	}
	map->next = dev->maps;
	if (map->next != NULL)
		map->next->prev = map;
	dev->maps = map;
	*out = map;
	return succeed(err);
}

/* The most batches of one map in flight. */
static uint32_t
max_batches(const rhh_device *dev)
{
	return 2 * dev->n_workers > RHH_CPU_BATCHES_IN_FLIGHT ?
		2 * dev->n_workers : RHH_CPU_BATCHES_IN_FLIGHT;
}

/* What rhh_check.h asks for. */
static rhh_map_state
state_of(rhh_map *map)
{
	return (rhh_map_state){
		.spec = &map->layout.spec,
		.device = map->dev,
		.n_pages = map->dev->n_pages,
		.cancelled = atomic_load_explicit(&map->cancelled, memory_order_relaxed),
		.in_flight = map->batches_in_flight > 0,
		.finishing = map->finishing,
		.finished = map->finished,
		.extracting = map->extracting,
		.fed = map->fed,
		.had_joins = map->had_joins,
		.joins = map->joins != NULL ? &map->joins->spec : NULL,
		.unmatched = map->unmatched,
		.n_groups = map->n_groups,
		.n_orphans = n_orphans_of(map)
	};
}

static uint64_t
read_count(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Adds what the map's joins have done to a map's statistics. */
static void
add_join_stats(rhh_map *map, rhh_map_stats *stats)
{
	if (map->joins == NULL)
		return;
	stats->refused_rows += read_count(&map->joins->returned_rows);
	stats->probe_rows += read_count(&map->joins->probe_rows);
	for (uint32_t j = 0; j < map->joins->spec.n_joins; j++)
		stats->joined_rows[j] += read_count(&map->joins->joined_rows[j]);
	stats->filtered_rows += read_count(&map->joins->filtered_rows);
	stats->bad_candidates += read_count(&map->joins->bad_candidates);
}

/* Others take the place of the map's joins, if it has any. */
static void
forget_joins(rhh_map *map)
{
	add_join_stats(map, &map->before);
	rhh_cpu_joins_free(map->joins);
	map->joins = NULL;
}

static rhh_status
cpu_map_join(rhh_map *map, const rhh_join_spec *spec, rhh_error *err)
{
	const rhh_map_state state = state_of(map);
	rhh_map_state builds[RHH_MAX_JOINS];
	const rhh_cpu_rows *rows[RHH_MAX_JOINS];

	for (uint32_t j = 0; spec->n_joins <= RHH_MAX_JOINS && j < spec->n_joins; j++)
	{
		builds[j] = state_of(spec->joins[j].build);
		rows[j] = spec->joins[j].build->rows;
	}
	if (rhh_check_join(&state, spec, builds, err) != RHH_OK)
		return err->status;
	forget_joins(map);
	map->had_joins = true;
	map->unmatched = 0;
	for (uint32_t j = 0; j < spec->n_joins; j++)
		if (rhh_returns_unmatched(spec->joins[j].kind) &&
			(builds[j].spec->flags & RHH_SHARE_MATCHES) != 0 &&
			!rhh_cpu_rows_share_matches(spec->joins[j].build->rows))
			return fail(err, RHH_NO_MEMORY, "could not allocate the matches of a build side");
	map->joins = rhh_cpu_joins_make(spec, rows, state.spec, max_batches(map->dev), &map->budget);
	if (map->joins == NULL)
		return fail(err, RHH_NO_MEMORY, "could not allocate the joins of a map");
	return succeed(err);
}

/* A command for a batch, to be filled in and submitted.  NULL: see err. */
static command *
new_batch(rhh_map *map, uint64_t tag, rhh_error *err)
{
	command    *cmd = NULL;

	if (map->batches_in_flight == max_batches(map->dev) ||
		(cmd = new_command(map, RHH_EVENT_BATCH, tag, MAX_BATCHES)) == NULL)
		(void) fail(err, RHH_BUSY, "too many batches are in flight");
	return cmd;
}

static rhh_status
cpu_map_submit(rhh_map *map, const rhh_batch *batch, uint64_t tag,
			   rhh_error *err)
{
	const rhh_map_state state = state_of(map);
	command    *cmd;

	if (rhh_check_submit(&state, batch, err) != RHH_OK)
		return err->status;
	cmd = new_batch(map, tag, err);
	if (cmd == NULL)
		return err->status;
	cmd->batch = *batch;
	if (batch->n_pages > 0)
		cmd->given = *batch;
	if (map->joins != NULL)
	{
		cmd->join = map->joins->free_states;
		map->joins->free_states = cmd->join->next;
		map->unmatched = batch->unmatched;
		if (batch->unmatched > 0)
			cmd->batch.n_rows = map->joins->joins[batch->unmatched - 1].build->n_rows;
		cmd->join->n_bad = 0;
		cmd->join->at_end = false;
		/* where pages have to be read the rows are not known yet */
		if (batch->n_pages == 0)
			rhh_cpu_join_start(map->joins, cmd->join, &cmd->batch);
	}
	else
	{
		cmd->refused.bitmap = batch->base + batch->refused_offset;
		cmd->refused.bytes = (batch->n_rows + 7) / 8;
	}
	map->fed = true;
	map->batches_in_flight++;
	submit_command(map->dev, cmd, 0);
	return succeed(err);
}

static rhh_status
cpu_map_feed(rhh_map *map, rhh_feed *feed, uint64_t tag, rhh_error *err)
{
	const rhh_map_state state = state_of(map);
	const rhh_map_state source = state_of(feed->source);
	uint64_t	bytes;
	command    *cmd;

	if (rhh_check_feed(&state, &source, feed, err) != RHH_OK)
		return err->status;
	if (feed->n_groups == 0)
		return succeed(err);
	cmd = new_batch(map, tag, err);
	if (cmd == NULL)
	{
		feed->n_groups = 0;
		return err->status;
	}
	cmd->feed_rows = *feed->rows;
	if (map->joins != NULL)
		for (uint32_t c = 0; c < state.spec->n_columns; c++)
		{
			const uint16_t from = map->joins->spec.column[c];

			/* what is computed is NULL before */
			if (from == RHH_COMPUTED)
				cmd->feed_rows.columns[c] = (rhh_row_column){.kind = RHH_ROW_NULL, .part = -1};
			else
				cmd->feed_rows.columns[c] = feed->rows->columns[from];
		}
	if (feed->n_groups > RHH_CPU_PIECE_ROWS)
		feed->n_groups = RHH_CPU_PIECE_ROWS;
	/* which keys are NULL is only known once the groups have been read */
	while ((bytes = rhh_group_rows_layout(state.spec->column_bytes, state.spec->n_columns, &cmd->feed_rows,
										  feed->set, UINT64_MAX, feed->n_groups, &cmd->batch)) == 0 ||
		   (bytes > RHH_CPU_PIECE_BYTES && feed->n_groups > 1))
		feed->n_groups /= 2;
	cmd->feed = *feed;
	map->fed = true;
	cmd->refused.bitmap = feed->refused;
	cmd->refused.bytes = (feed->n_groups + 7) / 8;
	map->batches_in_flight++;
	submit_command(map->dev, cmd, 0);
	return succeed(err);
}

static rhh_status
cpu_map_filter(rhh_map *map, const rhh_group_condition *conditions, uint32_t n, rhh_error *err)
{
	const rhh_map_state state = state_of(map);

	if (rhh_check_filter(&state, conditions, n, err) != RHH_OK)
		return err->status;
	map->n_conditions = n;
	if (n > 0)
		memcpy(map->conditions, conditions, n * sizeof(rhh_group_condition));
	return succeed(err);
}

static rhh_status
cpu_map_finish(rhh_map *map, rhh_error *err)
{
	const rhh_map_state state = state_of(map);
	command    *cmd;

	if (rhh_check_finish(&state, err) != RHH_OK)
		return err->status;
	/* of a group that is here other rows may have been refused */
	if (map->n_conditions > 0)
	{
		rhh_map_stats stats;

		cpu_map_stats(map, &stats);
		if (stats.refused_rows > 0)
			map->n_conditions = 0;
	}
	cmd = new_command(map, RHH_EVENT_FINISH, 0, MAX_COMMANDS);
	if (cmd == NULL)
		return fail(err, RHH_BUSY, "too many commands are in flight");
	map->finishing = true;
	if (map->rows != NULL)
	{
		forget_joins(map);
		cmd->no_memory = !rhh_cpu_rows_start_finish(map->rows, map->dev->n_workers, MAX_TASKS);
		submit_command(map->dev, cmd, cmd->no_memory ? 1 : map->rows->n_tasks);
	}
	else
		submit_command(map->dev, cmd, map->layout.n_parts);
	return succeed(err);
}

static rhh_status
cpu_map_extract(rhh_map *map, rhh_result *result, uint64_t tag,
				rhh_error *err)
{
	const rhh_map_state state = state_of(map);
	const uint64_t n_orphans = state.n_orphans;
	const bool	merge = map->n_orphans_extracted < n_orphans;
	const uint64_t n_left = merge ? n_orphans - map->n_orphans_extracted :
		map->n_groups - map->n_extracted;
	const uint32_t n_workers = map->dev->n_workers;
	uint32_t	n_pieces;
	command    *cmd;

	if (rhh_check_extract(&state, result, err) != RHH_OK)
		return err->status;
	cmd = new_command(map, RHH_EVENT_EXTRACT, tag, MAX_COMMANDS);
	if (cmd == NULL)
		return fail(err, RHH_BUSY, "too many commands are in flight");
	cmd->result = result;
	cmd->merge = merge;
	cmd->first_group = map->n_extracted;
	cmd->n_groups = n_left < result->capacity_groups ?
		(uint32_t) n_left : result->capacity_groups;
	n_pieces = merge ? 1 : cmd->n_groups / RHH_CPU_EXTRACT_PIECE_GROUPS + 1;
	map->extracting = true;
	submit_command(map->dev, cmd, n_pieces < n_workers ? n_pieces : n_workers);
	return succeed(err);
}

static rhh_status
cpu_map_seek(rhh_map *map, uint64_t group, rhh_error *err)
{
	const rhh_map_state state = state_of(map);

	if (rhh_check_seek(&state, group, err) != RHH_OK)
		return err->status;
	map->n_extracted = group;
	return succeed(err);
}

/* Adds up what threads have done in a partition, or in a local table. */
static void
add_stats(rhh_map_stats *stats, const rhh_cpu_part *part)
{
	stats->rows += read_count(&part->rows);
	stats->refused_rows += read_count(&part->refused_rows);
	stats->kernel_ns += read_count(&part->busy_ns);
}

/*
 * kernel_ns is the threads' time, by the clock and so with waiting for a core, divided by
 * their number: what the device would have needed with all threads equally loaded.
 */
static void
cpu_map_stats(rhh_map *map, rhh_map_stats *stats)
{
	*stats = map->before;
	if (map->rows != NULL)
	{
		stats->rows = read_count(&map->rows->rows);
		stats->refused_rows += read_count(&map->rows->refused_rows);
		stats->dropped_rows = read_count(&map->rows->dropped_rows);
		stats->groups = read_count(&map->rows->groups);
		stats->kernel_ns = read_count(&map->rows->busy_ns);
		stats->capacity_slots = map->rows->n_buckets;
		if (map->layout.spec.flags & RHH_WANT_PROBE_STATS)
		{
			stats->probe_buckets_sum = read_count(&map->rows->probe_sum);
			stats->probe_buckets_max = atomic_load_explicit(&map->rows->probe_max,
															memory_order_relaxed);
		}
	}
	add_join_stats(map, stats);
	for (uint32_t p = 0; map->parts != NULL && p < map->layout.n_parts; p++)
	{
		const rhh_cpu_part *part = &map->parts[p];
		uint32_t	probe_max = atomic_load_explicit(&part->probe_max,
													 memory_order_relaxed);

		add_stats(stats, part);
		stats->groups += read_count(&part->groups);
		stats->capacity_slots += read_count(&part->slots);
		stats->failed_slots += read_count(&part->failed_slots);
		stats->rehashes += read_count(&part->rehashes);
		stats->probe_buckets_sum += read_count(&part->probe_sum);
		if (probe_max > stats->probe_buckets_max)
			stats->probe_buckets_max = probe_max;
	}
	if (map->locals != NULL)
	{
		for (uint32_t w = 0; w < map->dev->n_workers; w++)
			add_stats(stats, &map->locals[w].part);
	}
	stats->orphans = n_orphans_of(map);
	stats->pages = map->pages;
	stats->bad_pages = map->bad_pages;
	stats->left_out = read_count(&map->left_out);
	stats->kernel_ns /= map->dev->n_workers;
	stats->extract_ns = read_count(&map->extract_ns);
	stats->bytes = read_count(&map->budget.used_bytes);
	stats->peak_bytes = read_count(&map->budget.peak_bytes);
}

static void
cpu_map_cancel(rhh_map *map)
{
	atomic_store_explicit(&map->cancelled, true, memory_order_relaxed);
}

static void
cpu_map_destroy(rhh_map *map)
{
	if (map->prev != NULL)
		map->prev->next = map->next;
	else
		map->dev->maps = map->next;
	if (map->next != NULL)
		map->next->prev = map->prev;
	free_map(map);
}

const rhh_device_ops rhh_cpu_ops = {
	.kind = RHH_KIND_CPU,
	.enumerate = cpu_enumerate,
	.open = cpu_open,
	.close = cpu_close,
	.info = cpu_info,
	.register_pool = cpu_register_pool,
	.register_pages = cpu_register_pages,
	.reads_pages = cpu_reads_pages,
	.cache_slab = cpu_cache_slab,
	.lost_slab = cpu_lost_slab,
	.event_fd = cpu_event_fd,
	.poll = cpu_poll,
	.map_create = cpu_map_create,
	.map_join = cpu_map_join,
	.map_submit = cpu_map_submit,
	.map_filter = cpu_map_filter,
	.map_finish = cpu_map_finish,
	.map_extract = cpu_map_extract,
	.map_feed = cpu_map_feed,
	.map_seek = cpu_map_seek,
	.map_stats = cpu_map_stats,
	.map_cancel = cpu_map_cancel,
	.map_destroy = cpu_map_destroy
};
