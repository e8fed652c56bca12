/*
 * run.c
 *		Running rows through tables, and comparing what comes out.
 *
 * A run is one table.  drive() takes any number of them on one device: each takes
 * its next step (run_step) whenever it can, and events go to the run whose table
 * they are of (run_event).
 *
 * Every run also checks that no key comes out twice where needs_merge is false,
 * that the bitmap of refused rows agrees with the count of them and is untouched
 * where there are none, that a batch's columns are untouched, and that the
 * statistics add up.
 *
 * Of a table with joins, the refused rows come back as columns.  They are aggregated like
 * any others, and the batch is submitted again until there is no more output.  In the end
 * come the rows of build sides that nothing has matched, where the joins return them.
 * Of rows that are made of groups none comes back: where an event says that some should, the
 * run looks only for what should not be in the table.
 */
#include <poll.h>
#include <stdarg.h>

#include "device_test.h"

#define STALL_SECONDS 300
#define GUARD_BYTES 64			/* behind the room for refused rows */
#define MAX_SLOT_PAGES 256

const run_options default_options = {
	.batch_rows = 0,.capacity_groups = 4096,.cancel_at_batch = -1
};

static void run_fault(run *run, const char *format,...) __attribute__((format(printf, 2, 3)));

/* The first fault is kept; the run ends as soon as nothing is in flight. */
static void
run_fault(run *run, const char *format,...)
{
	va_list		args;

	if (run->why[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(run->why, sizeof(run->why), format, args);
	va_end(args);
}

static uint32_t
align64(uint32_t n)
{
	return (n + 63) & ~63u;
}

/* Bytes that a batch of n rows can take, its bitmap of refused rows included. */
uint32_t
batch_room(const def *d, uint32_t n)
{
	uint32_t	bytes = 64;

	for (uint32_t c = 0; c < d->spec.n_columns; c++)
		bytes += align64(n * d->spec.column_bytes[c]) + align64((n + 7) / 8);
	return bytes + align64((n + 63) / 64 * 8);
}

static uint64_t
checksum(const uint8_t *p, uint32_t bytes)
{
	uint64_t	sum = bytes;

	for (uint32_t i = 0; i + 8 <= bytes; i += 8)
	{
		uint64_t	x;

		memcpy(&x, p + i, 8);
		sum = (sum << 5 | sum >> 59) ^ x * 0x9e3779b97f4a7c15ULL;
	}
	return sum;
}

static bool
all_zero(const uint8_t *p, uint32_t bytes)
{
	while (bytes > 0 && *p == 0)
		p++, bytes--;
	return bytes == 0;
}

/* Lays rows out as a batch.  Bitmaps of columns without a NULL are left out. */
void
fill_batch(rhh_batch *batch, uint8_t *base, const data *data, uint64_t first, uint32_t n)
{
	const rhh_map_spec *spec = &data->d->spec;
	uint32_t	at = 64;		/* offset 0 would say "no bitmap" */

	memset(batch, 0, sizeof(*batch));
	memset(base, 0, 64);
	batch->base = base;
	batch->n_rows = n;
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		uint32_t	bytes = n * spec->column_bytes[c];
		bool		any = false;

		batch->values_offset[c] = at;
		memcpy(base + at, data->values[c] + first * spec->column_bytes[c], bytes);
		batch->zero_columns |= (uint64_t) all_zero(base + at, bytes) << c;
		memset(base + at + bytes, 0xee, align64(bytes) - bytes);
		at += align64(bytes);
		for (uint32_t i = 0; data->nulls[c] != NULL && i < n && !any; i++)
			any = data->nulls[c][first + i] != 0;
		if (!any)
			continue;
		batch->nulls_offset[c] = at;
		bytes = align64((n + 7) / 8);
		/* bits behind the last row may be anything */
		memset(base + at, 0xff, bytes);
		for (uint32_t i = 0; i < n; i++)
			if (data->nulls[c][first + i] == 0)
				base[at + i / 8] &= (uint8_t) ~(1u << (i % 8));
		at += bytes;
	}
	batch->used_bytes = at;
	batch->refused_offset = at;
}

/* Bytes of the room for refused rows of a table with joins. */
static uint32_t
output_room(const run *run)
{
	const rhh_map_spec *spec = &run->d->spec;
	const uint32_t n = run->options.room_rows;

	return (uint32_t) (run->options.joined->spec.program != NULL ? rhh_output_bytes(spec, n)
					   : rhh_output_bad(spec, n));
}

/* Bytes of a slot's batch, with what is behind its columns for refused rows. */
static size_t
slot_bytes(const run *run, const slot *slot)
{
	return slot->batch.refused_offset +
		(run->options.joined != NULL ? output_room(run) + GUARD_BYTES :
		 (slot->batch.n_rows + 63) / 64 * 8);
}

void
run_start(run *run, device *device, const data *data, const run_options *options,
		  uint8_t *pool, size_t pool_bytes)
{
	const joined *joined = options->joined;
	rhh_error	err;
	rhh_map_spec spec = joined != NULL ? joined->d->spec : data->d->spec;
	uint32_t	room = batch_room(data->d, spec.max_batch_rows);

	memset(run, 0, sizeof(*run));
	run->n_passes = 1;
	run->device = device;
	run->data = data;
	run->d = joined != NULL ? joined->d : data->d;
	run->options = *options;
	if (run->options.room_rows == 0)
		run->options.room_rows = spec.max_batch_rows;
	if (joined != NULL)
		room += output_room(run) + GUARD_BYTES;
	if ((spec.flags & RHH_KEEP_ROWS) != 0)
		run->missing = need(data->n_rows);
	run->r.state = option_seed + data->n_rows;
	if (device->as_pages && options->source == NULL && !options->on_device && !option_on_device)
	{
		run->slot_pages = pages_for(data->d, spec.max_batch_rows);
		if (run->slot_pages > MAX_SLOT_PAGES)
			run->slot_pages = MAX_SLOT_PAGES;
		/* a device has a byte for each NULL */
		spec.max_page_bytes = room + data->d->spec.n_columns * align64(spec.max_batch_rows);
		room += pages_room(run->slot_pages);
	}
	room = (room + 4095) & ~4095u;
	run->n_slots = (uint32_t) (pool_bytes / room);
	if (run->n_slots > MAX_SLOTS)
		run->n_slots = MAX_SLOTS;
	if (options->in_flight > 0 && run->n_slots > options->in_flight)
		run->n_slots = options->in_flight;
	if (run->n_slots == 0)
		die("a case's batches do not fit the pool");
	/* as many slots as have pages, and if none has, rows come as columns */
	while (run->slot_pages > 0 && run->n_slots > 1 &&
		   device->used_pages + run->n_slots * run->slot_pages > device->n_pages)
		run->n_slots--;
	if (device->used_pages + run->n_slots * run->slot_pages > device->n_pages)
		run->slot_pages = 0;
	for (uint32_t i = 0; i < run->n_slots && run->slot_pages > 0; i++)
	{
		run->slots[i].first_page = device->used_pages;
		run->slots[i].page_rows = need(run->slot_pages * sizeof(uint64_t));
		run->slots[i].n_others = need(run->slot_pages * sizeof(uint32_t));
		run->slots[i].visible = need(run->slot_pages * sizeof(*run->slots[i].visible));
		device->used_pages += run->slot_pages;
	}
	device->n_page_runs += run->slot_pages > 0;
	for (uint32_t i = 0; i < run->n_slots; i++)
	{
		run->slots[i].base = pool + (size_t) i * room;
		if (options->source == NULL && (options->on_device || option_on_device))
			run->slots[i].on_device = device_alloc(device, room);
	}
	spec.max_batch_bytes = room;
	run->spec = spec;
	run->result.capacity_groups = options->capacity_groups;
	run->result.words = need((size_t) options->capacity_groups *
							 rhh_result_words(&spec) * sizeof(uint64_t));
	run->unique = map_new(&run->d->spec);
	run->outcome = map_new(&run->d->spec);
	if (device->ops->map_create(device->dev, &spec, &run->table, &err) != RHH_OK)
	{
		run_fault(run, "map_create: %d %s", err.status, err.message);
		run->table = NULL;
		run->done = true;
	}
	else if (joined != NULL &&
			 device->ops->map_join(run->table, &joined->spec, &err) != RHH_OK)
		run_fault(run, "map_join: %d %s", err.status, err.message);
}

void
run_end(run *run)
{
	if (run->table != NULL)
		run->device->ops->map_destroy(run->table);
	run->table = NULL;
	for (uint32_t i = 0; i < run->n_slots; i++)
	{
		device_free(run->device, run->slots[i].on_device);
		free(run->slots[i].page_rows);
		free(run->slots[i].n_others);
		free(run->slots[i].visible);
	}
	if (run->slot_pages > 0 && --run->device->n_page_runs == 0)
		run->device->used_pages = 0;
	free(run->bad);
	map_free(run->unique);
	map_free(run->outcome);
	free(run->missing);
	free(run->result.words);
}

static slot *
free_slot(run *run)
{
	for (uint32_t i = 0; i < run->n_slots; i++)
		if (!run->slots[i].busy)
			return &run->slots[i];
	return NULL;
}

/* A batch or a piece is in flight.  n: its rows; 0 if it was submitted before. */
static void
run_submitted(run *run, slot *slot, uint32_t n)
{
	slot->busy = true;
	slot->again = false;
	run->next_row += n;
	run->in_flight++;
	run->n_batches++;
	if (run->options.cancel_at_batch >= 0 &&
		(int64_t) run->n_batches > run->options.cancel_at_batch)
	{
		run->device->ops->map_cancel(run->table);
		run->cancelled = true;
	}
}

/* The next rows are made of another table's groups. */
static bool
run_feed_one(run *run)
{
	const run_options *options = &run->options;
	slot	   *slot = free_slot(run);
	rhh_feed	feed = {
		.source = options->source,
		.rows = options->row_spec,
		.set = (uint32_t) (run->next_row / options->n_groups),
		.first_group = run->next_row % options->n_groups
	};
	rhh_status	status;
	rhh_error	err;

	if (slot == NULL)
		return false;
	feed.refused = slot->base;
	memset(slot->base, 0xa5, (run->d->spec.max_batch_rows + 63) / 64 * 8);
	status = run->device->ops->map_feed(run->table, &feed, (uint64_t) (slot - run->slots),
										&err);
	if (status == RHH_BUSY)
		return false;
	if (status != RHH_OK || feed.n_groups == 0 ||
		feed.n_groups > run->d->spec.max_batch_rows ||
		feed.first_group + feed.n_groups > options->n_groups)
	{
		run_fault(run, "map_feed: %d %s, %u groups", status, status != RHH_OK ? err.message : "",
				  feed.n_groups);
		return false;
	}
	memset(&slot->batch, 0, sizeof(slot->batch));
	slot->batch.n_rows = feed.n_groups;
	slot->first_row = run->next_row;
	slot->checksum = checksum(slot->base, 0);
	run_submitted(run, slot, feed.n_groups);
	return true;
}

/* Notes that rows have to be submitted once more, as columns. */
static void
run_add_bad(run *run, uint64_t first, uint32_t n)
{
	run->bad = realloc(run->bad, (run->n_bad_pages + 1) * sizeof(bad_rows));
	if (run->bad == NULL)
		die("out of memory");
	run->bad[run->n_bad_pages++] = (bad_rows){.first = first, .n = n};
}

/*
 * A batch of pages has been given to a map that is thrown away, and which has put them into the cache: makes it
 * a batch of what is there now.  Those that were bad are left out, as nobody says what their slots have, and those without one;
 * their rows come as columns.
 */
static void
run_read_cached(run *run, slot *slot)
{
	rhh_batch  *batch = &slot->batch;
	rhh_page   *pages = (void *) (slot->base + batch->pages_offset);
	uint32_t   *slots = (void *) (slot->base + batch->slots_offset);
	uint32_t	n = 0;

	for (uint32_t p = 0; p < batch->n_pages; p++)
	{
		const bool	bad = pages[p].bad == RHH_PAGE_UNREAD || slots[p] == RHH_NO_SLOT;
		const uint32_t n_rows = rhh_page_count(slot->visible[p]);

		/* nothing of what was there is to be seen */
		memset(run->device->pages + 128 + (size_t) pages[p].number * RHH_PAGE_BYTES, 0x5a, RHH_PAGE_BYTES);
		if (bad)
		{
			if (n_rows > 0)
				run_add_bad(run, slot->page_rows[p], n_rows);
			continue;
		}
		/* a slot that there is not: that page is bad */
		slots[n] = below(&run->r, 32) == 0 ? RHH_MAX_SLABS * RHH_SLAB_PAGES - (uint32_t) below(&run->r, 2) : slots[p];
		slot->page_rows[n] = slot->page_rows[p];
		slot->n_others[n] = slot->n_others[p];
		memmove(slot->visible[n], slot->visible[p], sizeof(slot->visible[n]));
		n++;
	}
	/* nor is it known what there is */
	memset(pages, 0x5a, batch->n_pages * sizeof(rhh_page));
	batch->n_pages = n;
	batch->cached = true;
	batch->all_visible = false;
	batch->first_page = 0;
	batch->end_page = RHH_MAX_SLABS * RHH_SLAB_PAGES;
}

/* Puts the pages of a batch into the cache, by giving it to a map that is thrown away. */
static void
cache_pages(run *run, slot *slot)
{
	const rhh_device_ops *ops = run->device->ops;
	rhh_device *dev = run->device->dev;
	rhh_batch  *batch = &slot->batch;
	rhh_map_spec spec = run->spec;
	rhh_batch	given;
	rhh_map    *map;
	rhh_error	err;
	rhh_event	event = {.map = NULL};
	uint32_t   *slots;
	uint32_t	unused;

	/* maps may need the cache's memory */
	if (ops->lost_slab(dev, &unused))
		run->device->as_cached = false;
	if (!run->device->as_cached || batch->n_pages == 0)
		return;
	batch->slots_offset = batch->used_bytes - slot_numbers_room(run->slot_pages);
	slots = (void *) (slot->base + batch->slots_offset);
	for (uint32_t p = 0; p < batch->n_pages; p++)
		slots[p] = 2 * ((const rhh_page *) (slot->base + batch->pages_offset))[p].number + 1;
	/* where one page goes nowhere the device may do all in another way */
	if (below(&run->r, 2) == 0)
		slots[below(&run->r, batch->n_pages)] = RHH_NO_SLOT;
	/* or not all of a row */
	batch->parts = below(&run->r, 2) == 0;
	given = *batch;
	memset(spec.states, 0, sizeof(spec.states));
	memcpy(spec.column_bytes, run->data->d->spec.column_bytes, sizeof(spec.column_bytes));
	spec.n_columns = run->data->d->spec.n_columns;
	spec.n_states = 0;
	spec.n_keys = 1;
	spec.key_column[0] = 0;
	spec.flags = RHH_KEEP_ROWS | RHH_KEEP_UNMATCHED;
	spec.expected_groups = 1;
	spec.memory_limit_bytes = 0;
	spec.n_parts = spec.part = 0;
	if (ops->map_create(dev, &spec, &map, &err) != RHH_OK)
	{
		batch->slots_offset = 0;
		return;
	}
	if (ops->map_submit(map, &given, 0, &err) != RHH_OK)
		run_fault(run, "map_submit of pages to be cached: %d %s", err.status, err.message);
	else
		while (event.map != map)
		{
			uint32_t	n = 0;

			if (ops->poll(dev, &event, 1, &n, &err) != RHH_OK)
				die("a device failed while pages were put into its cache");
			if (n > 0 && event.map != map)
			{
				if (run->device->n_kept == LENGTH_OF(run->device->kept))
					die("too many events");
				run->device->kept[run->device->n_kept++] = event;
			}
			if (n == 0)
				event.map = NULL;
		}
	ops->map_destroy(map);
	run_read_cached(run, slot);
	/* nothing is left of it: its first row comes as a column, and the others by what is said to be bad */
	if (batch->n_pages == 0)
	{
		const bad_rows last = run->bad[--run->n_bad_pages];

		fill_batch(batch, slot->base, run->data, last.first, last.n);
		slot->first_row = last.first;
	}
}

static bool
run_submit_one(run *run)
{
	const rhh_device_ops *ops = run->device->ops;
	uint64_t	left = run->data->n_rows - run->next_row;
	uint32_t	n = run->options.batch_rows;
	slot	   *slot = free_slot(run);
	const uint32_t n_bad_pages = run->n_bad_pages;
	const bool	was_bad = run->n_bad_done < n_bad_pages;
	rhh_status	status;
	rhh_error	err;

	if (slot == NULL)
		return false;
	if (n == 0)
	{
		uint32_t	most = run->d->spec.max_batch_rows;

		/* mostly full ones, but often a few rows */
		n = below(&run->r, 4) == 0 ? 1 + (uint32_t) below(&run->r, 100) :
			1 + (uint32_t) below(&run->r, most);
		if (below(&run->r, 3) == 0 || n > most)
			n = most;
	}
	if (n > left)
		n = (uint32_t) left;
	slot->first_row = run->next_row;
	/* some come as columns all the same, and so do rows of bad pages */
	if (was_bad)
	{
		slot->first_row = run->bad[run->n_bad_done].first;
		n = run->bad[run->n_bad_done].n;
		fill_batch(&slot->batch, slot->base, run->data, slot->first_row, n);
	}
	else if (run->slot_pages > 0 && below(&run->r, 8) != 0)
	{
		n = fill_pages(run, slot, run->next_row, n);
		if (run->device->as_cached)
			cache_pages(run, slot);
	}
	else
		fill_batch(&slot->batch, slot->base, run->data, run->next_row, n);
	if (run->options.joined != NULL)
	{
		slot->batch.refused_rows = run->options.room_rows;
		memset(slot->base + slot->batch.refused_offset, 0xa5, output_room(run) + GUARD_BYTES);
	}
	else
		memset(slot->base + slot->batch.refused_offset, 0xa5, (n + 63) / 64 * 8);
	slot->checksum = checksum(slot->base, slot->batch.used_bytes);
	if (slot->on_device != NULL)
	{
		device_copy(run->device, slot->on_device, slot->base, slot_bytes(run, slot));
		slot->batch.base = slot->on_device;
		slot->batch.on_device = true;
	}
	status = ops->map_submit(run->table, &slot->batch, (uint64_t) (slot - run->slots), &err);
	if (status == RHH_BUSY)
	{
		/* the same rows come again, and so do those that were not put into the cache */
		run->n_bad_pages = n_bad_pages;
		return false;
	}
	if (status != RHH_OK)
	{
		run_fault(run, "map_submit: %d %s", err.status, err.message);
		return false;
	}
	if (was_bad)
	{
		run->n_bad_done++;
		n = 0;
	}
	run_submitted(run, slot, n);
	return true;
}

/* Submits a slot's batch, which is none of rows, or not for the first time. */
static bool
run_submit_slot(run *run, slot *slot)
{
	rhh_status	status;
	rhh_error	err;

	status = run->device->ops->map_submit(run->table, &slot->batch,
										  (uint64_t) (slot - run->slots), &err);
	if (status != RHH_OK && status != RHH_BUSY)
		run_fault(run, "map_submit: %d %s", err.status, err.message);
	return status == RHH_OK;
}

/*
 * Asks for the rows without a match of the next join that returns them.  False: there is
 * none.
 */
static bool
run_submit_unmatched(run *run)
{
	const joined *joined = run->options.joined;
	slot	   *slot = run->slots;
	uint32_t	j = run->unmatched;

	while (joined != NULL && j < joined->spec.n_joins &&
		   !rhh_returns_unmatched(joined->spec.joins[j].kind))
		j++;
	if (joined == NULL || j == joined->spec.n_joins)
		return false;
	memset(&slot->batch, 0, sizeof(slot->batch));
	slot->batch.base = slot->base;
	slot->batch.refused_rows = run->options.room_rows;
	slot->batch.unmatched = run->unmatched = j + 1;
	memset(slot->base, 0xa5, output_room(run) + GUARD_BYTES);
	slot->checksum = checksum(slot->base, 0);
	/* nothing is in flight, so no device is busy */
	if (run_submit_slot(run, slot))
		run_submitted(run, slot, 0);
	else
		run_fault(run, "the device is busy with nothing");
	return true;
}

/* Submits a batch again, of which there is more output. */
static bool
run_submit_again(run *run)
{
	slot	   *slot = run->slots;

	while (!slot->again)
		slot++;
	if (!run_submit_slot(run, slot))
		return false;
	run->n_again--;
	run->n_resubmitted++;
	run_submitted(run, slot, 0);
	return true;
}

/*
 * Looks whether the device says rightly that a row of the output is bad.  If it is, its
 * computed columns become what the reference has for them.
 */
static bool
take_bad_row(run *run, const rhh_program *program, data *output, uint64_t row, bool bad)
{
	if (program_run_row(program, output, row, false) != (bad ? PROGRAM_BAD : PROGRAM_GOOD))
		run_fault(run, "a row is handed back as %s, and is not", bad ? "bad" : "good");
	if (bad)
		program_put_nulls(program, output, row);
	return bad;
}

/* Is a slot's batch a piece that is made of groups, of which no row comes back? */
static bool
is_fed_program(const run *run, const slot *slot)
{
	return run->options.joined != NULL && run->options.source != NULL && slot->batch.refused_rows == 0;
}

/*
 * Looks what the event of such a piece says.  A bad row makes it say that some were refused, however many, and so
 * does a row without room.
 */
static void
run_fed_done(run *run, const slot *slot, const rhh_event *event)
{
	const joined *joined = run->options.joined;
	data		piece = {.d = run->d, .n_rows = slot->batch.n_rows};
	uint32_t	n_bad = 0;

	for (uint32_t c = 0; c < run->d->spec.n_columns; c++)
	{
		const uint16_t from = joined->spec.column[c];

		if (from == RHH_COMPUTED)
			continue;
		piece.values[c] = run->data->values[from] + slot->first_row * run->d->spec.column_bytes[c];
		if (run->data->nulls[from] != NULL)
			piece.nulls[c] = run->data->nulls[from] + slot->first_row;
	}
	for (uint32_t i = 0; i < piece.n_rows && joined->spec.program != NULL; i++)
		n_bad += program_run_row(joined->spec.program, &piece, i, false) == PROGRAM_BAD;
	if (n_bad > 0 && event->n_refused == 0)
		run_fault(run, "%u rows of a piece are bad, and the event does not say so", n_bad);
	if (event->n_refused > piece.n_rows)
		run_fault(run, "%u rows were refused of a piece of %u", event->n_refused, slot->batch.n_rows);
	if (event->more)
		run_fault(run, "there is more output of a piece of which no row comes back");
	run->n_refused += event->n_refused;
	run->n_bad += n_bad > 0 ? event->n_refused : 0;
	run->lacks_rows |= event->n_refused > 0;
}

/* Takes the rows of the output that the device has handed back. */
static void
run_output_done(run *run, slot *slot, const rhh_event *event)
{
	const rhh_map_spec *spec = &run->d->spec;
	const uint32_t room_rows = slot->batch.refused_rows;
	uint8_t    *room = slot->base + slot->batch.refused_offset;
	const uint8_t *guard = room + output_room(run);
	const rhh_program *program = run->options.joined->spec.program;
	const uint8_t *bad = room + rhh_output_bad(spec, room_rows);
	data		output = {.d = run->d, .n_rows = event->n_refused};

	for (uint32_t i = 0; i < GUARD_BYTES; i++)
		if (guard[i] != 0xa5)
			run_fault(run, "the device wrote behind the room for refused rows");
	if (event->n_refused > room_rows)
	{
		run_fault(run, "%u rows were refused, and there is room for %u", event->n_refused,
				  room_rows);
		return;
	}
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		const uint8_t *nulls = room + rhh_output_nulls(spec, room_rows, c);

		output.values[c] = room + rhh_output_values(spec, room_rows, c);
		output.nulls[c] = need(event->n_refused);
		for (uint32_t i = 0; i < event->n_refused; i++)
			output.nulls[c][i] = nulls[i / 8] >> (i % 8) & 1;
	}
	for (uint32_t i = 0; i < event->n_refused; i++)
	{
		if (program != NULL && take_bad_row(run, program, &output, i, bad[i / 8] >> (i % 8) & 1))
			run->n_bad++;
		map_row(run->outcome, &output, i);
	}
	for (uint32_t c = 0; c < spec->n_columns; c++)
		free(output.nulls[c]);
	run->n_refused += event->n_refused;
	if (event->more &&
		(event->n_refused == 0 || memcmp(&event->next, &slot->batch.from, sizeof(event->next)) == 0))
		run_fault(run, "there is more output, and the device does not get on with it");
	if (event->more && run->why[0] == '\0' && !run->cancelled)
	{
		slot->batch.from = event->next;
		slot->busy = slot->again = true;
		run->n_again++;
	}
}

/* A row of the data was refused. */
static void
run_row_refused(run *run, uint64_t row)
{
	if (run->missing != NULL)
		run->missing[row] = 1;
	else
		map_row(run->outcome, run->data, row);
}

/* Rows of a page were refused: those that are visible still. */
static uint32_t
run_page_refused(run *run, const rhh_page *page, const uint64_t *visible, uint64_t first_row)
{
	uint32_t	n = 0;

	for (uint32_t item = 0; item < RHH_PAGE_ITEMS; item++)
	{
		if ((page->visible[item / 64] >> item % 64 & 1) == 0)
			continue;
		if ((visible[item / 64] >> item % 64 & 1) == 0)
		{
			run_fault(run, "a row was refused that is none");
			break;
		}
		run_row_refused(run, first_row + rhh_page_rank(visible, item));
		n++;
	}
	if (n == 0)
		run_fault(run, "a page is bad of which no row was refused");
	return n;
}

/*
 * Takes what a batch's event says of its pages: rows of those that were not read are to be submitted
 * again.
 */
static void
run_pages_done(run *run, slot *slot, const rhh_event *event)
{
	const rhh_page *pages = (const void *) (slot->base + slot->batch.pages_offset);
	uint32_t	n_rows = 0;
	uint32_t	n_bad = 0;
	uint32_t	n_refused = 0;

	/* what pages of the cache have nobody says if all is well */
	if (slot->batch.cached && event->n_bad_pages == 0 && event->n_refused == 0 && !event->more)
	{
		for (uint32_t p = 0; p < slot->batch.n_pages; p++)
		{
			n_rows += rhh_page_count(slot->visible[p]);
			n_refused += slot->n_others[p];
		}
		if (rhh_is_beginning(&slot->batch.from) &&
			(event->n_rows != n_rows || event->n_dropped != n_refused))
			run_fault(run, "pages of the cache have %u rows and %u that are dropped, but the event has %u and %u",
					  n_rows, n_refused, event->n_rows, event->n_dropped);
		slot->batch.n_rows = event->n_rows;
		return;
	}
	for (uint32_t p = 0; p < slot->batch.n_pages; p++)
	{
		n_rows += pages[p].n_rows;
		if (pages[p].n_dropped != (pages[p].filtered ? slot->n_others[p] : 0))
			run_fault(run, "%u rows of a page were dropped, and not %u", pages[p].n_dropped, slot->n_others[p]);
		if (pages[p].bad == 0 && memcmp(pages[p].visible, slot->visible[p], sizeof(pages[p].visible)) != 0)
			run_fault(run, "a page has other rows");
		if (pages[p].bad == 0)
			continue;
		if (pages[p].bad == RHH_PAGE_UNREAD && pages[p].n_rows != 0)
			run_fault(run, "a page that was not read has rows");
		/* seen when the batch came before */
		if (slot->page_rows[p] == UINT64_MAX)
			continue;
		n_bad++;
		if (pages[p].bad == RHH_PAGE_REFUSED)
		{
			n_refused += run_page_refused(run, &pages[p], slot->visible[p], slot->page_rows[p]);
			continue;
		}
		/* all of its tuples were to be dropped */
		if (rhh_page_count(slot->visible[p]) == 0)
		{
			slot->page_rows[p] = UINT64_MAX;
			continue;
		}
		run_add_bad(run, slot->page_rows[p], rhh_page_count(slot->visible[p]));
		slot->page_rows[p] = UINT64_MAX;
	}
	if (slot->batch.cached && event->n_bad_pages == 0 && event->n_rows != n_rows)
		run_fault(run, "pages of the cache have %u rows, but the event has %u", n_rows, event->n_rows);
	if (n_bad != event->n_bad_pages)
		run_fault(run, "%u pages are bad, but the event has %u", n_bad, event->n_bad_pages);
	/* also for when it is submitted again */
	slot->batch.n_rows = n_rows;
	if (run->options.joined != NULL)
		return;
	if (n_refused != event->n_refused)
		run_fault(run, "%u rows of pages were refused, but the event has %u", n_refused,
				  event->n_refused);
	run->n_refused += n_refused;
}

static void
run_batch_done(run *run, const rhh_event *event)
{
	slot	   *slot = &run->slots[event->tag];
	const uint8_t *refused = slot->base + slot->batch.refused_offset;
	uint32_t	n_refused = 0;

	run->in_flight--;
	if (event->tag >= run->n_slots || !slot->busy)
	{
		run_fault(run, "event for a batch that is not in flight");
		return;
	}
	slot->busy = false;
	if (event->status != RHH_OK)
	{
		if (event->status != RHH_CANCELLED || !run->cancelled)
			run_fault(run, "batch ended with status %d", event->status);
		return;
	}
	if (slot->batch.on_device)
		device_copy(run->device, slot->base, slot->on_device, slot_bytes(run, slot));
	if (slot->batch.n_pages > 0)
		run_pages_done(run, slot, event);
	else if (event->n_bad_pages > 0)
		run_fault(run, "there are bad pages in a batch without pages");
	else if (checksum(slot->base, slot->batch.used_bytes) != slot->checksum)
		run_fault(run, "the device wrote to a batch's columns");
	if (is_fed_program(run, slot))
	{
		run_fed_done(run, slot, event);
		return;
	}
	if (run->options.joined != NULL && run->missing != NULL)
	{
		/* no row comes back of what is kept */
		if (event->more)
			run_fault(run, "a batch is to be submitted again, whose output is kept");
		run->n_refused += event->n_refused;
		return;
	}
	if (run->options.joined != NULL)
	{
		run_output_done(run, slot, event);
		return;
	}
	if (slot->batch.n_pages > 0)
		return;
	for (uint32_t i = 0; i < slot->batch.n_rows; i++)
	{
		if (event->n_refused == 0)
		{
			if (refused[i / 8] != 0xa5)
				run_fault(run, "the bitmap of refused rows was written to, but none was refused");
		}
		else if (refused[i / 8] >> (i % 8) & 1)
		{
			n_refused++;
			run_row_refused(run, slot->first_row + i);
		}
	}
	if (n_refused != event->n_refused)
		run_fault(run, "%u bits of refused rows are set, but the event has %u", n_refused,
				  event->n_refused);
	run->n_refused += event->n_refused;
}

static void
run_groups(run *run)
{
	const rhh_result *result = &run->result;
	uint32_t	n_words = rhh_result_words(&run->d->spec);
	uint64_t	group[MAX_WORDS];

	if (result->n_groups > result->capacity_groups)
	{
		run_fault(run, "more groups than the result has room for");
		return;
	}
	for (uint32_t i = 0; i < result->n_groups; i++)
	{
		for (uint32_t w = 0; w < n_words; w++)
			group[w] = result->words[(size_t) w * result->capacity_groups + i];
		if (result->needs_merge)
		{
			run->n_merge_groups++;
			if (run->unique->n_groups > 0)
				run_fault(run, "groups to merge came after groups that need none");
		}
		else
		{
			uint32_t	n_before = run->unique->n_groups;

			(void) map_get(run->unique, group);
			if (run->unique->n_groups == n_before)
				run_fault(run, "key %llx came out twice without needs_merge",
						  (unsigned long long) group[1]);
		}
		map_combine(run->outcome, group);
	}
	run->n_extracted += result->n_groups;
}

/* Begins anew to extract, if the run is to; forgets what came so far. */
static bool
run_rewind(run *run)
{
	rhh_error	err;

	if (!run->options.rewind || run->n_rewinds == 2 || run->stats.orphans > 0 ||
		(run->n_rewinds == 1 && !run->result.last))
		return false;
	run->n_rewinds++;
	if (run->device->ops->map_seek(run->table, 0, &err) != RHH_OK)
		run_fault(run, "map_seek: %d %s", err.status, err.message);
	map_free(run->unique);
	map_free(run->outcome);
	run->unique = map_new(&run->d->spec);
	run->outcome = map_new(&run->d->spec);
	return true;
}

void
run_event(run *run, const rhh_event *event)
{
	run->device->ops->map_stats(run->table, &run->stats);
	switch (event->kind)
	{
		case RHH_EVENT_BATCH:
			run_batch_done(run, event);
			break;
		case RHH_EVENT_FINISH:
			run->finishing = false;
			run->finish_status = event->status;
			if (event->status != RHH_OK &&
				!(run->options.finish_may_fail && event->status == RHH_NO_MEMORY))
				run_fault(run, "finish ended with status %d", event->status);
			run->finished = true;
			run->done |= run->missing != NULL;
			break;
		case RHH_EVENT_EXTRACT:
			run->extracting = false;
			if (event->status != RHH_OK)
				run_fault(run, "extract ended with status %d", event->status);
			else
				run_groups(run);
			if (event->status == RHH_OK && !run_rewind(run) && run->result.last)
				run->done = true;
			break;
	}
}

/* Whatever the run can do now. */
void
run_step(run *run)
{
	const rhh_device_ops *ops = run->device->ops;
	rhh_error	err;
	rhh_status	status;

	if (run->done)
		return;
	if (run->why[0] != '\0' || run->cancelled)
	{
		if (run->in_flight == 0 && !run->finishing && !run->extracting)
			run->done = true;
		return;
	}
	while (run->n_again > 0 && !run->cancelled && run_submit_again(run))
		;
	while ((run->next_row < run->data->n_rows || run->n_bad_done < run->n_bad_pages) &&
		   !run->cancelled &&
		   (run->options.source != NULL && (!run->options.mixed || below(&run->r, 2) == 0) ?
			run_feed_one(run) : run_submit_one(run)))
		;
	if (run->next_row < run->data->n_rows || run->in_flight > 0 || run->n_again > 0 ||
		run->n_bad_done < run->n_bad_pages || run->cancelled)
		return;
	if (!run->finished && !run->finishing && run_submit_unmatched(run))
		return;
	if (!run->finished && !run->finishing && run->options.next_pass != NULL &&
		run->options.next_pass(run->options.arg, run->table))
	{
		run->n_passes++;
		run->next_row = 0;
		run->unmatched = 0;
		return;
	}
	if (!run->finished)
	{
		if (run->finishing)
			return;
		if (run->options.n_conditions > 0 && run->in_flight == 0 &&
			ops->map_filter(run->table, run->options.conditions, run->options.n_conditions,
							&err) != RHH_OK)
			run_fault(run, "map_filter: %d %s", err.status, err.message);
		status = ops->map_finish(run->table, &err);
		if (status == RHH_OK)
			run->finishing = true;
		else if (status != RHH_BUSY)
			run_fault(run, "map_finish: %d %s", err.status, err.message);
	}
	else if (!run->extracting)
	{
		memset(run->result.words, 0xdb, (size_t) run->result.capacity_groups *
			   rhh_result_words(&run->d->spec) * sizeof(uint64_t));
		run->result.n_groups = UINT32_MAX;
		run->result.last = false;
		status = ops->map_extract(run->table, &run->result, 7, &err);
		if (status == RHH_OK)
			run->extracting = true;
		else if (status != RHH_BUSY)
			run_fault(run, "map_extract: %d %s", err.status, err.message);
	}
}

/* Drives runs on one device until all are done.  False: the device failed. */
bool
drive(device *device, run *runs, uint32_t n_runs)
{
	const rhh_device_ops *ops = device->ops;
	double		last_event_ms = now_ms();

	for (;;)
	{
		rhh_event	events[5];
		rhh_error	err;
		uint32_t	n = 0;
		bool		all_done = true;

		for (uint32_t i = 0; i < n_runs; i++)
		{
			run_step(&runs[i]);
			all_done &= runs[i].done;
		}
		if (all_done)
			return true;
		if (device->n_kept > 0)
			events[n++] = device->kept[--device->n_kept];
		else if (ops->poll(device->dev, events, 5, &n, &err) != RHH_OK)
		{
			run_fault(&runs[0], "poll: %d %s", err.status, err.message);
			return false;
		}
		for (uint32_t e = 0; e < n; e++)
		{
			uint32_t	i = 0;

			while (i < n_runs && runs[i].table != events[e].map)
				i++;
			if (i == n_runs)
				run_fault(&runs[0], "event for an unknown table");
			else
				run_event(&runs[i], &events[e]);
		}
		if (n > 0)
			last_event_ms = now_ms();
		else
		{
			struct pollfd fd = {.fd = ops->event_fd(device->dev), .events = POLLIN};

			if (now_ms() - last_event_ms > STALL_SECONDS * 1e3)
				die("the device reported nothing for too long");
			poll(&fd, 1, 5);
		}
	}
}

/* Is a row of the part that a table keeps?  NULL is of part 0. */
static bool
is_of_part(const run *run, uint64_t row, bool null_key)
{
	const rhh_map_spec *spec = &run->d->spec;
	uint64_t	hash = RHH_PART_START;

	if (spec->n_parts == 0)
		return true;
	for (uint32_t k = 0; k < spec->n_keys; k++)
	{
		uint64_t	v[2];

		get_value(run->data, spec->key_column[k], row, v);
		hash = rhh_part_word(hash, v[0]);
		if (spec->column_bytes[spec->key_column[k]] > 8)
			hash = rhh_part_word(hash, v[1]);
	}
	return (null_key ? 0 : rhh_part_of(hash, spec->n_parts)) == spec->part;
}

/* What a table that keeps rows says of them, once it is finished. */
static void
check_kept(run *run)
{
	const rhh_map_spec *spec = &run->d->spec;
	const rhh_map_stats *stats = &run->stats;
	map		   *keys = map_new(spec);
	const bool	keeps_null_keys = (spec->flags & RHH_KEEP_UNMATCHED) != 0;
	uint64_t	n_dropped = 0;
	uint64_t	n_kept = 0;
	uint64_t	n_null_keys = 0;	/* that are kept */

	for (uint64_t i = 0; i < run->data->n_rows; i++)
	{
		uint64_t	key[MAX_WORDS];
		bool		null_key = false;
		bool		dropped;

		for (uint32_t k = 0; k < spec->n_keys; k++)
			null_key |= is_null(run->data, spec->key_column[k], i);
		dropped = (!keeps_null_keys && null_key) || !is_of_part(run, i, null_key);
		if (dropped && run->missing[i])
			run_fault(run, "a row with NULL in its key, or of another part, was refused");
		n_dropped += dropped;
		if (dropped || run->missing[i])
			continue;
		n_kept++;
		if (null_key)
		{
			n_null_keys++;
			continue;
		}
		(void) row_key(run->data, i, key);
		(void) map_get(keys, key);
	}
	if (stats->rows != n_kept || stats->dropped_rows != n_dropped)
		run_fault(run, "%llu rows were kept and %llu dropped instead of %llu and %llu",
				  (unsigned long long) stats->rows, (unsigned long long) stats->dropped_rows,
				  (unsigned long long) n_kept, (unsigned long long) n_dropped);
	if (run->finish_status == RHH_OK && stats->groups != keys->n_groups + n_null_keys)
		run_fault(run, "statistics have %llu keys instead of %llu",
				  (unsigned long long) stats->groups,
				  (unsigned long long) (keys->n_groups + n_null_keys));
	/* each key is looked for from its home on, and rows with NULL in it are not looked for */
	if (run->finish_status == RHH_OK && (spec->flags & RHH_WANT_PROBE_STATS) != 0 &&
		(stats->probe_buckets_sum < keys->n_groups ||
		 stats->probe_buckets_sum > (uint64_t) keys->n_groups * stats->probe_buckets_max ||
		 (keys->n_groups == 0) != (stats->probe_buckets_max == 0) ||
		 stats->capacity_slots < keys->n_groups))
		run_fault(run, "%u keys in %llu slots: statistics have probes of %llu, at most %u",
				  keys->n_groups, (unsigned long long) stats->capacity_slots,
				  (unsigned long long) stats->probe_buckets_sum, stats->probe_buckets_max);
	map_free(keys);
}

/* What came out, compared with the reference. */
static void
check_groups(run *run, map *expected)
{
	const uint64_t left_out = run->stats.left_out;
	uint64_t	n_unwanted = 0;

	if (expected->n_groups != run->outcome->n_groups + left_out)
		run_fault(run, "%u groups, and %llu left out, instead of %u (%llu rows handed back)",
				  run->outcome->n_groups, (unsigned long long) left_out, expected->n_groups,
				  (unsigned long long) run->n_refused);
	for (uint32_t g = 0; g < expected->n_groups; g++)
		n_unwanted += !is_wanted(expected->spec, run->options.conditions, run->options.n_conditions,
								 map_group(expected, g));
	/* all but the group of NULL may be */
	if (run->n_refused > 0 ? left_out > 0 : left_out > n_unwanted)
		run_fault(run, "%llu groups were left out", (unsigned long long) left_out);
	if (run->n_refused == 0 && run->stats.orphans == 0 && left_out + 1 < n_unwanted)
		run_fault(run, "%llu groups were not left out",
				  (unsigned long long) (n_unwanted - left_out));
	for (uint32_t g = 0; g < expected->n_groups && run->why[0] == '\0'; g++)
	{
		uint64_t   *want = map_group(expected, g);
		uint64_t   *have = map_find(run->outcome, want);

		if (have == NULL && left_out > 0 &&
			!is_wanted(expected->spec, run->options.conditions, run->options.n_conditions, want))
			continue;
		if (have == NULL)
		{
			run_fault(run, "key %llx is missing", (unsigned long long) want[1]);
			break;
		}
		map_normalize(expected->spec, expected->key_words, want);
		map_normalize(expected->spec, expected->key_words, have);
		if (run->options.joined != NULL)
		{
			program_normalize(run->options.joined, expected->key_words, want);
			program_normalize(run->options.joined, expected->key_words, have);
		}
		for (uint32_t w = expected->key_words; w < expected->n_words; w++)
			if (have[w] != want[w])
				run_fault(run, "key %llx, word %u: %llx instead of %llx "
						  "(%llu rows handed back)",
						  (unsigned long long) want[1], w,
						  (unsigned long long) have[w], (unsigned long long) want[w],
						  (unsigned long long) run->n_refused);
	}
	if (run->stats.groups != run->unique->n_groups + left_out)
		run_fault(run, "statistics have %llu groups, %u came out",
				  (unsigned long long) run->stats.groups, run->unique->n_groups);
}

/*
 * The table lacks rows, of which nobody knows how many: no group has more of them than it should have.  Its first
 * state is their number.
 */
static void
check_lacking(run *run, const map *expected)
{
	for (uint32_t g = 0; g < run->outcome->n_groups; g++)
	{
		const uint64_t *have = map_group(run->outcome, g);
		const uint64_t *want = map_find(expected, have);

		if (want == NULL || have[expected->key_words] > want[expected->key_words])
			run_fault(run, "key %llx has %llu rows, and should have %llu", (unsigned long long) have[1],
					  (unsigned long long) have[expected->key_words],
					  (unsigned long long) (want == NULL ? 0 : want[expected->key_words]));
	}
	if (run->stats.groups != run->unique->n_groups)
		run_fault(run, "statistics have %llu groups, %u came out", (unsigned long long) run->stats.groups,
				  run->unique->n_groups);
}

/*
 * Aggregates the output of the joins, and compares what the statistics say of it.
 * Returns the number of its rows that no filter drops.
 */
static uint64_t
check_joined(run *run, map *expected)
{
	const rhh_map_stats *stats = &run->stats;
	const uint32_t n_joins = run->options.joined->spec.n_joins;
	uint64_t	rows[RHH_MAX_JOINS];
	uint64_t	n_dropped;
	uint64_t	n_bad_candidates;
	uint64_t	n_bad = join_expect(expected, run->options.joined, run->data, rows, &n_dropped,
									&n_bad_candidates);

	if (run->lacks_rows ? run->n_bad > 0 && n_bad == 0 : run->n_bad != n_bad)
		run_fault(run, "%llu rows were handed back as bad instead of %llu",
				  (unsigned long long) run->n_bad, (unsigned long long) n_bad);
	/* what a batch was submitted for once may count again when it is submitted again */
	if (run->n_resubmitted > 0 ? stats->probe_rows < run->data->n_rows * run->n_passes :
		stats->probe_rows != run->data->n_rows * run->n_passes)
		run_fault(run, "statistics have %llu rows of the probe side, not %llu",
				  (unsigned long long) stats->probe_rows,
				  (unsigned long long) (run->data->n_rows * run->n_passes));
	/* what comes into the join that is split comes in each pass */
	for (uint32_t j = 0; j < n_joins && j < run->options.split_join; j++)
		rows[j] *= run->n_passes;
	for (uint32_t j = 0; j < n_joins; j++)
		if (run->n_resubmitted > 0 ? stats->joined_rows[j] < rows[j] :
			stats->joined_rows[j] != rows[j])
			run_fault(run, "statistics have %llu rows of join %u, not %llu",
					  (unsigned long long) stats->joined_rows[j], j,
					  (unsigned long long) rows[j]);
	/* the rest of a piece with a bad row need not be looked at */
	if (run->lacks_rows ? stats->filtered_rows > n_dropped : stats->filtered_rows != n_dropped)
		run_fault(run, "statistics have %llu rows that the filter has dropped, not %llu",
				  (unsigned long long) stats->filtered_rows, (unsigned long long) n_dropped);
	/* the same pair may count several times */
	if ((stats->bad_candidates > 0) != (n_bad_candidates > 0))
		run_fault(run, "statistics have %llu pairs for which a condition is bad, not %llu",
				  (unsigned long long) stats->bad_candidates,
				  (unsigned long long) n_bad_candidates);
	return (n_joins == 0 ? run->data->n_rows : rows[n_joins - 1]) - n_dropped;
}

/* Compares with the reference; says in run->why what is wrong. */
void
run_check(run *run)
{
	const rhh_map_stats *stats = &run->stats;
	uint64_t	n_rows = run->data->n_rows;

	if (run->why[0] != '\0' || run->cancelled)
		return;
	if (run->missing != NULL)
		check_kept(run);
	else
	{
		map		   *expected = map_new(&run->d->spec);

		if (run->options.joined != NULL)
			n_rows = check_joined(run, expected);
		else
			for (uint64_t i = 0; i < n_rows; i++)
				map_row(expected, run->data, i);
		if (run->lacks_rows)
			check_lacking(run, expected);
		else
			check_groups(run, expected);
		map_free(expected);
	}

	if (run->lacks_rows ? stats->rows > n_rows : stats->rows + stats->refused_rows + stats->dropped_rows != n_rows)
		run_fault(run, "%llu rows, %llu refused and %llu dropped do not make %llu",
				  (unsigned long long) stats->rows,
				  (unsigned long long) stats->refused_rows,
				  (unsigned long long) stats->dropped_rows, (unsigned long long) n_rows);
	if (stats->refused_rows != run->n_refused)
		run_fault(run, "statistics have %llu refused rows, events %llu",
				  (unsigned long long) stats->refused_rows,
				  (unsigned long long) run->n_refused);
	if (run->d->spec.memory_limit_bytes > 0 &&
		stats->peak_bytes > run->d->spec.memory_limit_bytes)
		run_fault(run, "%llu bytes were held, %llu allowed",
				  (unsigned long long) stats->peak_bytes,
				  (unsigned long long) run->d->spec.memory_limit_bytes);
	if (run->missing == NULL && (run->d->spec.flags & RHH_WANT_PROBE_STATS) && stats->groups > 1 &&
		(stats->probe_buckets_max > run->d->spec.max_probe_buckets ||
		 stats->probe_buckets_sum + 1 < stats->groups))
		run_fault(run, "probe statistics: sum %llu, max %u of %llu groups",
				  (unsigned long long) stats->probe_buckets_sum,
				  stats->probe_buckets_max, (unsigned long long) stats->groups);
	if ((run->data->n_rows > 0 && stats->kernel_ns == 0) ||
		(stats->uploaded_bytes > 0 && stats->upload_ns == 0))
		run_fault(run, "times: upload %llu, kernel %llu, extract %llu",
				  (unsigned long long) stats->upload_ns,
				  (unsigned long long) stats->kernel_ns,
				  (unsigned long long) stats->extract_ns);
	if (run->options.no_failures && run->n_refused > run->n_bad)
		run_fault(run, "%llu rows were handed back of a table with room",
				  (unsigned long long) (run->n_refused - run->n_bad));
	if (run->n_refused - run->n_bad < run->options.min_failures)
		run_fault(run, "only %llu rows were handed back: the case tests nothing",
				  (unsigned long long) (run->n_refused - run->n_bad));
}

/* ---------- cases ---------- */

void
fault(context *ctx, const char *where, const char *why)
{
	if (ctx->why[0] == '\0' && why[0] != '\0')
		snprintf(ctx->why, sizeof(ctx->why), "%s%s%s", where,
				 where[0] != '\0' ? ": " : "", why);
}

/* Opens the CPU device once more, with so many threads, for *inner.  False: it does not open, which is a fault. */
bool
open_with_threads(context *ctx, uint32_t threads, device *device, context *inner)
{
	const rhh_device_config config = {.cpu_threads = threads, .look_rows = LOOK_ROWS, .carry_bytes = CARRY_BYTES};
	rhh_error	err;

	*device = *ctx->device;
	*inner = (context){.device = device, .seed = ctx->seed};
	if (device->ops->open(device->info.ordinal, &config, &device->dev, &err) == RHH_OK)
		return true;
	fault(ctx, "open", err.message);
	return false;
}

/* A fault of *inner is one of ctx. */
void
close_with_threads(context *ctx, const context *inner)
{
	fault(ctx, "", inner->why);
	inner->device->ops->close(inner->device->dev);
}

/* Waits for an event.  False: it tells of a failure, which is a fault of the case. */
bool
next_event(context *ctx, rhh_event *event)
{
	rhh_error	err;
	uint32_t	n = 0;

	while (n == 0)
	{
		if (ctx->device->ops->poll(ctx->device->dev, event, 1, &n, &err) != RHH_OK)
		{
			fault(ctx, "poll", err.message);
			return false;
		}
		if (n == 0)
			usleep(10);
	}
	if (event->status != RHH_OK)
		fault(ctx, "event", "a batch failed");
	return event->status == RHH_OK;
}

/* One table, checked.  stats may be NULL. */
void
check_table(context *ctx, const char *where, const def *d, uint64_t n_rows,
			const run_options *options, rhh_map_stats *stats)
{
	data	   *data;
	run			run;

	if (stats != NULL)
		memset(stats, 0, sizeof(*stats));
	if (ctx->why[0] != '\0')
		return;
	data = make_data(d, n_rows, ctx->seed++);
	run_start(&run, ctx->device, data, options, ctx->device->pool,
			  ctx->device->pool_bytes);
	(void) drive(ctx->device, &run, 1);
	run_check(&run);
	fault(ctx, where, run.why);
	if (stats != NULL)
		*stats = run.stats;
	run_end(&run);
	free_data(data);
}
