/*
 * pages.c
 *		Rows as PostgreSQL's heap pages, and the cases of batches that have pages.
 *
 * With device.as_pages runs write their rows into pages and submit these.  The tuples have
 * other attributes between those that become columns, of all lengths and alignments, NULL or not;
 * pages have line pointers without a visible row, and a page here and there is made bad.  With as_all_visible the device
 * finds the rows of most pages.  In half of the runs there is a program, too: it computes some columns,
 * and drops rows that are no rows of the data.  So all cases of joins can be had with pages, and the reference does not know of it.
 */
#include <sys/mman.h>

#include "join_plan.h"
#include "page_rows.h"

#define MAX_FILLERS 4			/* attributes before that of a column */

/* The kinds of attributes that no column is made of. */
typedef enum filler
{
	FILLER_INT4,
	FILLER_INT2,
	FILLER_CHAR,
	FILLER_INT8,
	FILLER_VARLENA,
	FILLER_CSTRING
} filler;

static const rhh_page_attribute filler_attributes[] = {
	[FILLER_INT4] = {.length = 4, .align = 4},
	[FILLER_INT2] = {.length = 2,.align = 2},
	[FILLER_CHAR] = {.length = 1,.align = 1},
	[FILLER_INT8] = {.length = 8,.align = 8},
	[FILLER_VARLENA] = {.length = -1,.align = 4},
	[FILLER_CSTRING] = {.length = -2,.align = 1}
};

static void
put_filler(tuple *t, filler kind, rng *r)
{
	const uint64_t value = next_random(r);

	if (below(r, 16) == 0)
		put_null(t);
	else if (kind == FILLER_CSTRING)
		put_attribute(t, "text", 5, 1);
	else if (kind == FILLER_VARLENA)
		put_varlena(t, "some text or other", (uint32_t) below(r, 18), below(r, 4) != 0);
	else
		put_attribute(t, &value, (uint32_t) filler_attributes[kind].length,
					  filler_attributes[kind].align);
}

static uint32_t
row_bytes(const def *d)
{
	uint32_t	bytes = 0;

	for (uint32_t c = 0; c < d->spec.n_columns; c++)
		bytes += d->spec.column_bytes[c];
	return bytes;
}

/* Pages that surely have room for so many rows, with fillers. */
uint32_t
pages_for(const def *d, uint32_t n_rows)
{
	const uint32_t fillers = d->spec.n_columns < RHH_MAX_COLUMNS / 2 ? d->spec.n_columns :
		RHH_MAX_COLUMNS / 2;
	const uint32_t bytes = HEADER_BYTES + 40 + 4 + 8 * d->spec.n_columns + row_bytes(d) +
		fillers * MAX_FILLERS * 24;

	/* an eighth of the line pointers has no row, and the last page of a batch is not full */
	return n_rows / ((RHH_PAGE_BYTES - 64) / bytes * 3 / 4) + 2;
}

/* What a batch needs to say where pages go in the cache; the last part of what it has. */
uint32_t
slot_numbers_room(uint32_t n_pages)
{
	return (n_pages * (uint32_t) sizeof(uint32_t) + 63) / 64 * 64;
}

/* What a batch needs to say where they are. */
uint32_t
pages_room(uint32_t n_pages)
{
	return (uint32_t) (64 + n_pages * sizeof(rhh_page) + (sizeof(rhh_page_layout) + 63) / 64 * 64) +
		slot_numbers_room(n_pages);
}

/* An attribute of 2 bytes that says whether a tuple is a row: from 1 to 100, or 101, of which the filter is bad. */
#define MOST_KEPT 100
#define BAD_KEPT 101

/*
 * Has the program drop rows that are none, by the attribute that says so, which is its input number
 * `input`; operation 0 becomes its value.
 */
static void
make_filter(rhh_page_layout *layout, uint32_t n_columns, uint32_t input)
{
	rhh_program *program = &layout->program;
	const uint8_t kept = add_op(program, RHH_OP_COLUMN, n_columns + input, 0, 0);
	const uint8_t one = add_constant(program, 1);
	const uint8_t less = add_op(program, RHH_OP_LT_INT8, add_constant(program, 0), kept, 0);
	const uint8_t distance = add_op(program, RHH_OP_SUB_INT8, kept, add_constant(program, BAD_KEPT), 0);
	const uint8_t quotient = add_op(program, RHH_OP_DIV_INT8, one, distance, 0);
	const uint8_t never = add_op(program, RHH_OP_EQ_INT8, quotient, one, 0);

	layout->filter_inputs |= (uint32_t) 1 << input;
	program->filter = add_op(program, RHH_OP_AND, less, add_op(program, RHH_OP_NOT, never, 0, 0), 0);
	program->has_filter = true;
}

/*
 * And rows of which a string is GONE, or NULL; the strings are input number `input`, and the next input is
 * whether they are.
 */
#define GONE "gone"

static void
make_text_filter(rhh_page_layout *layout, uint32_t n_columns, uint32_t input)
{
	rhh_program *program = &layout->program;
	const uint8_t text = add_op(program, RHH_OP_COLUMN_OF_BYTES, n_columns + input, 0, 0);
	const uint8_t null = add_op(program, RHH_OP_COLUMN_IS_NULL, n_columns + input + 1, 0, 0);
	uint64_t	stored[2] = {0, (uint64_t) strlen(GONE) << 56};
	uint8_t		gone;

	memcpy(stored, GONE, strlen(GONE));
	rhh_order_bytes(stored[0], stored[1], program->constants[program->n_constants]);
	gone = add_op(program, RHH_OP_EQ_DECIMAL128, text,
				  add_op(program, RHH_OP_CONSTANT128, program->n_constants++, 0, 0), 0);
	gone = add_op(program, RHH_OP_OR, null, gone, 0);
	layout->filter_inputs |= (uint32_t) 3 << input;
	program->filter = add_op(program, RHH_OP_AND, program->filter, add_op(program, RHH_OP_NOT, gone, 0, 0), 0);
}

/* Has the program compute a column of an input, with the same value. */
static void
make_result(rhh_page_layout *layout, uint32_t n_columns, uint32_t input, uint32_t column)
{
	rhh_program *program = &layout->program;
	uint8_t		value = add_op(program, rhh_page_input_bytes(layout, input) == 16 ?
							   RHH_OP_COLUMN_OF_BYTES : RHH_OP_COLUMN, n_columns + input, 0, 0);

	value = rhh_page_input_bytes(layout, input) == 16 ? add_op(program, RHH_OP_AS_BYTES, value, 0, 0) :
		add_op(program, RHH_OP_IF, program->filter, value, 0);
	program->results[program->n_results].op = value;
	program->results[program->n_results++].column = (uint8_t) column;
}

/*
 * Puts the attributes that say whether a tuple is a row of the data, a number and a string; of a few that
 * are, not whether it is.
 */
static void
put_kept(tuple *t, bool is_row, rng *r)
{
	const uint64_t why = is_row ? 0 : 1 + below(r, 4);
	const int16_t kept = (int16_t) (why == 1					  ? -(int) below(r, 3) :
									is_row && below(r, 4000) == 0 ? BAD_KEPT : 1 + (int) below(r, MOST_KEPT));

	if (why == 2)
		put_null(t);
	else
		put_attribute(t, &kept, 2, 2);
	if (why == 3)
		put_null(t);
	else if (why == 4)
		put_varlena(t, GONE, (uint32_t) strlen(GONE), below(r, 2) != 0);
	else
	{
		const uint32_t length = (uint32_t) below(r, 26);

		/* GONE is a part of most */
		put_varlena(t, GONE " or not, and long enough", length == strlen(GONE) ? length + 1 : length,
					below(r, 2) != 0);
	}
}

/*
 * Lays rows of the data out as a batch with pages, as many of n as have room.  Returns how many.
 */
uint32_t
fill_pages(run *run, slot *slot, uint64_t first, uint32_t n)
{
	const data *data = run->data;
	const rhh_map_spec *spec = &data->d->spec;
	rhh_batch  *batch = &slot->batch;
	rhh_page   *pages;
	rhh_page_layout *layout;
	filler		fillers[RHH_PAGE_ATTRIBUTES];
	uint32_t	order[RHH_MAX_COLUMNS];
	uint32_t	n_done = 0;
	uint32_t	n_others = 0;	/* tuples that are to be dropped */
	rng			kinds = {.state = data->n_rows};	/* the same in all batches of a run */
	const bool	computes = below(&kinds, 2) == 0;
	const uint32_t kept_before = (uint32_t) below(&kinds, spec->n_columns); /* which column */
	int32_t		kept_attribute = -1;
	uint32_t	kept_input = 0;
	uint8_t		made_by[RHH_PAGE_ATTRIBUTES];	/* a column's number */
	uint8_t		computed[RHH_PAGE_INPUTS];	/* the columns that inputs become, but for the three that say so */

	memset(batch, 0, sizeof(*batch));
	memset(made_by, UINT8_MAX, sizeof(made_by));
	memset(slot->base, 0, pages_room(run->slot_pages));
	batch->base = slot->base;
	batch->layout_offset = 64;
	batch->pages_offset = 64 + (uint32_t) (sizeof(rhh_page_layout) + 63) / 64 * 64;
	layout = (void *) (slot->base + batch->layout_offset);
	pages = (void *) (slot->base + batch->pages_offset);

	/* the columns in some order, with other attributes between them */
	for (uint32_t c = 0; c < spec->n_columns; c++)
	{
		const uint32_t at = (uint32_t) below(&kinds, c + 1);

		order[c] = order[at];
		order[at] = c;
	}
	for (uint32_t i = 0; i < spec->n_columns; i++)
	{
		const uint32_t c = order[i];
		const uint32_t bytes = spec->column_bytes[c];

		for (uint64_t f = below(&kinds, MAX_FILLERS + 1);
			 f > 0 && spec->n_columns < RHH_MAX_COLUMNS / 2; f--)
		{
			fillers[layout->n_attributes] = (filler) below(&kinds, FILLER_CSTRING + 1);
			layout->attributes[layout->n_attributes] =
				filler_attributes[fillers[layout->n_attributes]];
			layout->n_attributes++;
		}
		if (computes && i == kept_before)
		{
			kept_attribute = (int32_t) layout->n_attributes;
			kept_input = layout->n_inputs;
			layout->inputs[layout->n_inputs++] = (rhh_page_load){
				.attribute = (uint8_t) layout->n_attributes, .kind = RHH_PAGE_VALUE
			};
			layout->attributes[layout->n_attributes++] = (rhh_page_attribute){.length = 2, .align = 2};
			for (uint8_t kind = RHH_PAGE_STRING_OR_LONG; kind != 0;
				 kind = kind == RHH_PAGE_STRING_OR_LONG ? RHH_PAGE_NOTHING : 0)
				layout->inputs[layout->n_inputs++] = (rhh_page_load){
					.attribute = (uint8_t) layout->n_attributes, .kind = kind
				};
			layout->attributes[layout->n_attributes++] = (rhh_page_attribute){.length = -1, .align = 4};
		}
		made_by[layout->n_attributes] = (uint8_t) c;
		if (computes && below(&kinds, 2) == 0 && layout->n_inputs < RHH_PAGE_INPUTS - 4)
		{
			computed[layout->n_inputs] = (uint8_t) c;
			layout->inputs[layout->n_inputs++] = (rhh_page_load){
				.attribute = (uint8_t) layout->n_attributes, .kind = RHH_PAGE_VALUE,
				.not_null = data->nulls[c] == NULL
			};
		}
		else
			layout->loads[layout->n_loads++] = (rhh_page_load){
				.attribute = (uint8_t) layout->n_attributes, .column = (uint8_t) c,
				.kind = RHH_PAGE_VALUE, .not_null = data->nulls[c] == NULL
			};
		layout->attributes[layout->n_attributes++] = (rhh_page_attribute){
			.length = (int16_t) bytes, .align = (uint8_t) (bytes == 16 ? 1 : bytes)
		};
	}
	rhh_page_find_offsets(layout);
	if (computes)
	{
		make_filter(layout, spec->n_columns, kept_input);
		make_text_filter(layout, spec->n_columns, kept_input + 1);
		for (uint32_t i = 0; i < layout->n_inputs; i++)
			if (i < kept_input || i > kept_input + 2)
				make_result(layout, spec->n_columns, i, computed[i]);
	}
	/* nobody said, or too little, or all of it */
	layout->prefix_bytes = below(&run->r, 3) == 0 ? 0 : (uint32_t) below(&run->r, 400);

	batch->first_page = slot->first_page;
	while (n_done + n_others < n && batch->n_pages < run->slot_pages)
	{
		rhh_page   *page = &pages[batch->n_pages];
		const bool	found = run->device->as_all_visible && below(&run->r, 4) != 0;
		uint64_t   *visible = slot->visible[batch->n_pages];	/* rows of the data */
		uint8_t    *memory;
		uint32_t	item = 0;

		page->number = slot->first_page + batch->n_pages;
		page->first_row = n_done + n_others;
		slot->page_rows[batch->n_pages] = first + n_done;
		memset(visible, 0, sizeof(page->visible));
		memory = run->device->pages + 128 + (size_t) page->number * RHH_PAGE_BYTES;
		page_clear(memory);
		while (n_done + n_others < n)
		{
			tuple		t;
			const uint64_t kind = below(&run->r, 16);
			const bool	is_row = kind > 0 || !computes || n_done == 0;

			if (kind == 1 || (kind == 0 && !computes))
			{
				if (!page_add_item(memory, 0, 0))
					break;
				item++;
				continue;
			}
			t.n = t.n_attributes = 0;
			t.any_null = false;
			memset(t.present, 0, sizeof(t.present));
			for (uint32_t a = 0; a < layout->n_attributes; a++)
			{
				const uint32_t c = made_by[a];

				/* with the one behind it */
				if ((int32_t) a == kept_attribute)
					put_kept(&t, is_row, &run->r);
				else if (kept_attribute >= 0 && (int32_t) a == kept_attribute + 1)
					continue;
				else if (c == UINT8_MAX)
					put_filler(&t, fillers[a], &run->r);
				else if (is_null(data, c, first + n_done))
					put_null(&t);
				else
					put_attribute(&t, data->values[c] + (first + n_done) * spec->column_bytes[c],
								  spec->column_bytes[c], layout->attributes[a].align);
			}
			if (!page_add(memory, &t))
				break;
			page->visible[item / 64] |= (uint64_t) 1 << item % 64;
			visible[item / 64] |= (uint64_t) is_row << item % 64;
			item++;
			page->n_rows++;
			n_done += is_row;
			n_others += !is_row;
		}
		slot->n_others[batch->n_pages] = page->n_rows - rhh_page_count(visible);
		/* a tuple that ends behind the page, or of somebody who may not have committed, or a line pointer that is dead */
		if (below(&run->r, 16) == 0 && page->n_rows > 0)
		{
			uint32_t	at = 0;

			while ((page->visible[at / 64] >> at % 64 & 1) == 0)
				at++;
			if (below(&run->r, 2) == 0)
				memory[HEADER_BYTES + 4 * at + 3] = 0xff;
			else if (found)
				memory[page_tuple(memory, at) + 21] = 0;
			else
				memory[HEADER_BYTES + 4 * at + 1] |= 0x80, memory[HEADER_BYTES + 4 * at + 2] |= 1;
		}
		batch->n_pages += page->n_rows > 0;
		if (page->n_rows == 0)
			break;
		if (found)
		{
			page_set_all_visible(memory);
			page->all_visible = 1;
			page->n_rows = 0;
			memset(page->visible, 0, sizeof(page->visible));
			batch->all_visible = true;
		}
	}
	batch->end_page = slot->first_page + batch->n_pages;
	batch->n_rows = n_done + n_others;
	/* fewer than there are: some pages find no room */
	if (batch->all_visible && below(&run->r, 8) == 0)
		batch->n_rows -= (uint32_t) below(&run->r, batch->n_rows);
	batch->used_bytes = batch->refused_offset = pages_room(run->slot_pages);
	return n_done;
}

/* ---------- cases ---------- */

static void
with_pages(context *ctx, const char *what, void (*test)(context *ctx))
{
	char		why[sizeof(ctx->why)];

	if (ctx->why[0] != '\0')
		return;
	ctx->device->as_pages = true;
	test(ctx);
	ctx->device->as_pages = false;
	memcpy(why, ctx->why, sizeof(why));
	ctx->why[0] = '\0';
	fault(ctx, what, why);
}

/* Rows that are only aggregated. */
static void
no_joins(context *ctx)
{
	for (uint32_t nulls = 0; nulls <= 40; nulls += 40)
	{
		static rhh_map_stats stats;
		plan		p;
		uint16_t	k,
					v;

		plan_init(&p);
		k = probe_column(&p, 4, GEN_UNIFORM, 700, nulls);
		v = probe_column(&p, 8, GEN_SMALL, 0, nulls);
		(void) probe_column(&p, 16, GEN_PATTERN, 0, nulls);
		(void) probe_column(&p, 2, GEN_PATTERN, 0, 0);
		p.table.spec.max_batch_rows = 3000;
		table_key(&p, k);
		table_states(&p, v);
		check_plan(ctx, "grouped", &p, rows(60000), &default_options, &stats);
		if (ctx->why[0] == '\0' && ctx->device->as_pages && !option_on_device &&
			(stats.pages == 0 || (stats.bad_pages == 0 && !option_quick)))
			fault(ctx, "grouped", "no page was read, or none was bad");
	}
}

void
case_pages_no_joins(context *ctx)
{
	no_joins(ctx);
	with_pages(ctx, "pages", no_joins);
}

/* Slabs that maps of earlier cases needed the memory of come back. */
static void
slabs_back(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	uint32_t	i;
	rhh_error	err;

	while (ops->lost_slab(ctx->device->dev, &i))
		if (ops->cache_slab(ctx->device->dev, i, &err) != RHH_OK)
			fault(ctx, "cache_slab", err.message);
}

/* Rows of the cache, from pages of which nothing is left elsewhere. */
void
case_pages_cached(context *ctx)
{
	static void (*const tests[])(context * ctx) = {
		no_joins, case_states, case_all_null, case_probe_caps, case_join_kinds, case_join_columns, case_join_fan_out,
		case_join_returned, case_join_program_filter, case_join_program_bad, case_join_cancel
	};
	const uint32_t divisor = option_divisor;

	/* each batch is read twice, and alone, the first time */
	option_divisor = divisor < 8 ? 8 : divisor;
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
	{
		slabs_back(ctx);
		ctx->device->as_cached = true;
		with_pages(ctx, "cached", tests[i]);
		if (!ctx->device->as_cached)
			fault(ctx, "cached", "slabs were lost");
		ctx->device->as_cached = false;
	}
	option_divisor = divisor;
}

void
case_pages_grouped(context *ctx)
{
	with_pages(ctx, "states", case_states);
	with_pages(ctx, "keys", case_packed_keys);
	with_pages(ctx, "nulls", case_all_null);
	with_pages(ctx, "memory", case_small_memory);
	with_pages(ctx, "probes", case_probe_caps);
	with_pages(ctx, "128 bits", case_sum_i128_overflow);
}

void
case_pages_joins(context *ctx)
{
	with_pages(ctx, "kinds", case_join_kinds);
	with_pages(ctx, "nulls", case_join_nulls);
	with_pages(ctx, "columns", case_join_columns);
	with_pages(ctx, "several", case_join_several);
	with_pages(ctx, "fan_out", case_join_fan_out);
	with_pages(ctx, "unmatched", case_join_unmatched);
	ctx->n_parts = 4;
	with_pages(ctx, "4 parts", case_join_kinds);
	ctx->n_parts = 0;
}

void
case_pages_refused(context *ctx)
{
	with_pages(ctx, "returned", case_join_returned);
	with_pages(ctx, "build_refused", case_join_build_refused);
}

void
case_pages_programs(context *ctx)
{
	with_pages(ctx, "filter", case_join_program_filter);
	with_pages(ctx, "bad", case_join_program_bad);
}

void
case_pages_cancel(context *ctx)
{
	with_pages(ctx, "cancel", case_join_cancel);
}

/* Makes a batch at base of n pages, whose numbers the caller has to say, and of which one column is made. */
static rhh_page *
one_value_pages(uint8_t *base, rhh_batch *batch, uint32_t n)
{
	rhh_page_layout *layout = (void *) base;

	memset(batch, 0, sizeof(*batch));
	memset(base, 0, 1 << 16);
	batch->base = base;
	batch->pages_offset = (uint32_t) (sizeof(rhh_page_layout) + 63) / 64 * 64;
	batch->n_pages = n;
	batch->n_rows = 1000;
	batch->used_bytes = batch->refused_offset = batch->pages_offset + 64 * n;
	batch->refused_rows = 64;
	layout->n_attributes = layout->n_loads = 1;
	layout->attributes[0] = (rhh_page_attribute){.length = 4, .align = 4};
	rhh_page_find_offsets(layout);
	layout->loads[0] = (rhh_page_load){.kind = RHH_PAGE_VALUE, .not_null = true};
	return (rhh_page *) (base + batch->pages_offset);
}

/*
 * Batches that name slots that there are not: their pages are bad, and nothing else happens, nor does it if nobody
 * has filled them.  And what a page has, a slot has too, from before a filter drops rows.
 */
void
case_pages_slots(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	static const uint32_t numbers[] = {0, RHH_SLAB_PAGES - 1, RHH_MAX_SLABS * RHH_SLAB_PAGES - 1, RHH_MAX_SLABS * RHH_SLAB_PAGES, UINT32_MAX};
	uint8_t    *base = ctx->device->pool;
	plan		p;
	rhh_map    *table;
	rhh_error	err;
	rhh_event	event;
	rhh_batch	batch;
	rhh_page   *pages;

	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 1, 0);
	table_key(&p, 0);
	p.table.spec.max_batch_bytes = p.table.spec.max_page_bytes = 1 << 20;
	if (ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
	if (ops->map_join(table, &p.spec, &err) != RHH_OK)
		fault(ctx, "map_join", err.message);
	pages = one_value_pages(base, &batch, LENGTH_OF(numbers));
	batch.cached = true;
	batch.end_page = RHH_MAX_SLABS * RHH_SLAB_PAGES;
	batch.slots_offset = batch.used_bytes;
	batch.used_bytes = batch.refused_offset = batch.slots_offset + 64;
	memcpy(base + batch.slots_offset, numbers, sizeof(numbers));
	if (ops->map_submit(table, &batch, 0, &err) != RHH_OK)
		fault(ctx, "map_submit", err.message);
	else if (next_event(ctx, &event))
	{
		/* the first two have slots, of which other cases may have filled some */
		for (uint32_t i = 2; i < batch.n_pages; i++)
			if (pages[i].bad != RHH_PAGE_UNREAD || pages[i].n_rows != 0)
				fault(ctx, "slots", "a page that is nowhere is not bad");
		if (event.n_bad_pages < batch.n_pages - 2)
			fault(ctx, "slots", "the event has too few bad pages");
	}
	batch.end_page++;
	if (ops->map_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "slots", "the cache has no such pages");
	batch.slots_offset = 0;
	batch.end_page--;
	if (ops->map_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "slots", "pages of the cache are nowhere");
	batch.cached = false;
	batch.end_page = 1;
	batch.slots_offset = batch.used_bytes;
	if (ops->map_submit(table, &batch, 0, &err) != RHH_INVALID)
		fault(ctx, "slots", "numbers of slots are behind the batch");
	ops->map_destroy(table);
}

/*
 * Memory of pages that cannot be made readable, here since nothing is there: the pages of a batch are bad, and so are
 * those of the next one; the device says why, and does all else.
 */
void
case_pages_unreadable(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const size_t n_bytes = 64 * (size_t) RHH_PAGE_BYTES;
	rhh_device_config config = {.memory_limit_bytes = UINT64_C(64) << 20};
	device		own = *ctx->device;
	device *const others = ctx->device;
	plan		p;
	rhh_map    *table = NULL;
	rhh_error	err;
	rhh_event	event;
	void	   *nothing;

	/* the CPU device reads any memory as it is */
	if (ops->kind == RHH_KIND_CPU)
		return;
	nothing = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nothing == MAP_FAILED || munmap(nothing, n_bytes) != 0)
		die("no memory");
	if (ops->open(ctx->device->info.ordinal, &config, &own.dev, &err) != RHH_OK)
	{
		fault(ctx, "open", err.message);
		return;
	}
	ctx->device = &own;
	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 1, 0);
	table_key(&p, 0);
	p.table.spec.max_batch_bytes = p.table.spec.max_page_bytes = 1 << 20;
	if (ops->register_pages(own.dev, nothing, 64, &err) != RHH_OK || !ops->reads_pages(own.dev, &err))
		fault(ctx, "register_pages", "it is tried too early");
	else if (ops->map_create(own.dev, &p.table.spec, &table, &err) != RHH_OK || ops->map_join(table, &p.spec, &err) != RHH_OK)
		fault(ctx, "map", err.message);
	for (int b = 0; b < 2 && ctx->why[0] == '\0'; b++)
	{
		rhh_batch	batch;
		rhh_page   *pages = one_value_pages(own.pool, &batch, 3);

		batch.end_page = batch.n_rows = 3;
		for (uint32_t i = 0; i < batch.n_pages; i++)
		{
			pages[i].number = pages[i].first_row = i;
			pages[i].n_rows = pages[i].visible[0] = 1;
		}
		if (ops->map_submit(table, &batch, 0, &err) != RHH_OK)
			fault(ctx, "map_submit", err.message);
		else if (next_event(ctx, &event) && event.n_bad_pages != batch.n_pages)
			fault(ctx, "unreadable", "a page that cannot be read is not bad");
		if (ops->reads_pages(own.dev, &err) || err.message[0] == '\0')
			fault(ctx, "unreadable", "the device does not say so");
	}
	if (table != NULL)
		ops->map_destroy(table);
	ops->close(own.dev);
	ctx->device = others;
}

/* ---------- pages whose rows the device finds ---------- */

/* The same runs, with most pages so; then from the cache, where they were put so. */
void
case_pages_all_visible(context *ctx)
{
	static void (*const tests[])(context * ctx) = {
		no_joins, case_states, case_small_memory, case_probe_caps, case_join_kinds, case_join_returned, case_join_program_filter,
		case_join_program_bad
	};
	const uint32_t divisor = option_divisor;

	option_divisor = divisor < 8 ? 8 : divisor;
	ctx->device->as_all_visible = true;
	for (size_t i = 0; i < LENGTH_OF(tests); i++)
		with_pages(ctx, "all visible", tests[i]);
	slabs_back(ctx);
	ctx->device->as_cached = true;
	with_pages(ctx, "cached", no_joins);
	with_pages(ctx, "cached", case_join_program_filter);
	ctx->device->as_cached = ctx->device->as_all_visible = false;
	option_divisor = divisor;
}

/* What a page is like. */
typedef enum found_kind
{
	FOUND_NAMED,				/* the caller says which rows it has, and the page nothing */
	FOUND_FULL,
	FOUND_GAPS,					/* line pointers without a tuple, of all kinds, between the others */
	FOUND_EMPTY,				/* no line pointer */
	FOUND_DEAD,					/* none that is not dead */
	FOUND_LAST,					/* as full */
	FOUND_NAMED_LAST,
	/* and bad ones */
	FOUND_UNMARKED,				/* the page does not say that all are visible */
	FOUND_UNCOMMITTED,			/* a tuple of somebody who may not have committed */
	FOUND_ADDED,				/* a tuple where there was none by the header */
	FOUND_FEW_LINES,			/* it ends in the header */
	FOUND_MANY_LINES,
	FOUND_BEFORE,				/* it is before first_page */
	FOUND_BEHIND				/* it is not before end_page */
} found_kind;

#define FOUND_PAGES 8			/* one of each kind, and perhaps a bad one before the last two */
#define FOUND_FIRST 100u		/* where they are */
#define FOUND_VALUES (RHH_PAGE_ITEMS * FOUND_PAGES)
#define FOUND_LEAST 83			/* of rows that a filter keeps */
#define FOUND_ROOM 1000u		/* of those that come back at once */

typedef struct found_options
{
	found_kind	odd;			/* the bad page; FOUND_NAMED: there is none */
	bool		wide;			/* few rows to a page */
	bool		filters;
	uint32_t	prefix_bytes;
	bool		kept;			/* all have slots */
	bool		parts;			/* and not all of a row goes there */
	bool		cached;			/* all but one have, unless all do, and they come from the cache in the end */
	bool		short_of_room;
	bool		unsaid;			/* the batch does not say that there are such pages: they have no rows */
} found_options;

/* The value of the row at a line pointer, and whether it is kept. */
static uint32_t
found_value(uint32_t p, uint32_t item)
{
	return item * FOUND_PAGES + p;
}

static bool
found_keeps(const found_options *o, uint32_t value)
{
	return !o->filters || value > FOUND_LEAST;
}

/* Lays page p out; page->visible become its rows, and page->n_rows how many. */
static void
make_found(uint8_t *memory, found_kind kind, uint32_t p, bool wide, rhh_page *page)
{
	const uint32_t lines = kind == FOUND_EMPTY ? 0 : kind == FOUND_GAPS || kind == FOUND_DEAD ? 140 : 120;

	page_clear(memory);
	for (uint32_t item = 0; item < lines; item++)
	{
		/* unused, redirected, dead */
		const uint32_t state = kind == FOUND_DEAD ? 3 : kind != FOUND_GAPS || item % 3 > 0 ? 1 : item / 3 % 3 + (item / 3 % 3 > 0);
		const uint32_t value = found_value(p, item);
		const uint32_t pointer = state << 15 | (state == 2);
		tuple		t;

		tuple_clear(&t);
		put_attribute(&t, &value, 4, 4);
		put_varlena(&t, memory, wide ? 300 : 3, false);
		if (state == 1 ? !page_add(memory, &t) : !page_add_item(memory, 0, 0))
			break;
		if (state != 1)
			memcpy(memory + HEADER_BYTES + 4 * item, &pointer, 4);
		else
			page->visible[item / 64] |= (uint64_t) 1 << item % 64;
	}
	page->n_rows = rhh_page_count(page->visible);
	if (kind != FOUND_NAMED && kind != FOUND_NAMED_LAST && kind != FOUND_UNMARKED)
		page_set_all_visible(memory);
	if (kind == FOUND_UNCOMMITTED)
		memory[page_tuple(memory, page->n_rows / 2) + 21] = 0;
	if (kind == FOUND_ADDED)
		put_2_bytes(memory + 14, rhh_page_2_bytes(memory + 14) + 8);
	if (kind == FOUND_FEW_LINES)
		put_2_bytes(memory + 12, HEADER_BYTES - 1);
	if (kind == FOUND_MANY_LINES)
		put_2_bytes(memory + 12, HEADER_BYTES + 4 * RHH_PAGE_ITEMS + 4);
}

/* Submits the batch until all rows have come back: times[] becomes how often each value has.  Returns how many pages are bad. */
static uint32_t
return_found(context *ctx, rhh_map *map, const rhh_map_spec *spec, rhh_batch *batch, uint8_t *times, rhh_event *first)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const rhh_page *pages = (const rhh_page *) (batch->base + batch->pages_offset);
	const uint8_t *out = batch->base + batch->refused_offset;
	uint32_t	n_bad = 0;
	rhh_event	event = {.more = true};
	rhh_error	err;

	memset(times, 0, FOUND_VALUES);
	for (bool again = false; event.more && ctx->why[0] == '\0'; again = true)
	{
		if (ops->map_submit(map, batch, 0, &err) != RHH_OK)
			fault(ctx, "map_submit", err.message);
		else if (next_event(ctx, &event))
		{
			for (uint32_t r = 0; r < event.n_refused; r++)
			{
				uint32_t	value;

				memcpy(&value, out + rhh_output_values(spec, FOUND_ROOM, 0) + 4 * r, 4);
				if (value < FOUND_VALUES)
					times[value]++;
				else
					fault(ctx, "found", "a row of no page");
			}
			if (!again)
				*first = event;
			n_bad += event.n_bad_pages;
			batch->from = event.next;
			batch->n_rows = 0;
			for (uint32_t p = 0; p < batch->n_pages; p++)
				batch->n_rows += pages[p].n_rows;
		}
	}
	return n_bad;
}

/* What the device has found is as it was made, and so is each row that came back. */
static void
check_found(context *ctx, const found_options *o, const rhh_batch *batch, const rhh_page *made, const found_kind *kinds,
			const uint8_t *times, uint32_t n_bad)
{
	const rhh_page *pages = (const rhh_page *) (batch->base + batch->pages_offset);
	bool		taken[FOUND_VALUES] = {false};
	uint32_t	n_rows = 0;
	char		what[96];

	snprintf(what, sizeof(what), "bad %d, wide %d, filters %d, prefix %u, kept %d, parts %d, cached %d, short %d", (int) o->odd, o->wide,
			 o->filters, o->prefix_bytes, o->kept, o->parts, batch->cached, o->short_of_room);
	for (uint32_t p = 0; p < batch->n_pages; p++)
	{
		/* which pages find no room depends on which come first */
		const bool	bad = kinds[p] > FOUND_NAMED_LAST || (o->short_of_room && made[p].n_rows > 0 && pages[p].bad != 0);
		uint64_t	visible[RHH_PAGE_ITEMS / 64] = {0};
		uint32_t	n;

		for (uint32_t item = 0; item < RHH_PAGE_ITEMS; item++)
		{
			const uint32_t value = found_value(p, item);
			const bool	kept = !bad && (made[p].visible[item / 64] >> item % 64 & 1) != 0 && found_keeps(o, value);

			visible[item / 64] |= (uint64_t) kept << item % 64;
			if (times[value] != kept)
				fault(ctx, what, kept ? "a row has not come once" : "a row has come that is none");
		}
		n = rhh_page_count(visible);
		n_bad -= bad;
		if (pages[p].bad != (bad ? RHH_PAGE_UNREAD : 0) || pages[p].n_rows != n)
			fault(ctx, what, bad ? "a page is not bad" : "a page is bad, or has not its rows");
		else if (!bad && (memcmp(pages[p].visible, visible, sizeof(visible)) != 0 || pages[p].n_dropped != made[p].n_rows - n ||
						  (pages[p].filtered == 0 && (o->filters || batch->cached || (!o->unsaid && pages[p].all_visible != 0)))))
			fault(ctx, what, "a page does not say what has become of its rows");
		for (uint32_t r = pages[p].first_row; r < pages[p].first_row + n && ctx->why[0] == '\0'; r++)
		{
			if (r >= batch->n_rows || taken[r])
				fault(ctx, what, "rows are not where their pages say");
			else
				taken[r] = true;
		}
		n_rows += n;
	}
	if (n_bad != 0)
		fault(ctx, what, "the events do not count the bad pages");
	if (n_rows == 0)
		fault(ctx, what, "no page has rows");
}

/* A batch becomes one of the copies of its pages, of which nothing is left where they were. */
static void
become_cached(uint8_t *memory, rhh_batch *batch)
{
	memset(memory, 0x5a, batch->n_pages * (size_t) RHH_PAGE_BYTES);
	batch->cached = true;
	batch->all_visible = false;
	batch->first_page = 0;
	batch->end_page = RHH_MAX_SLABS * RHH_SLAB_PAGES;
	batch->from = (rhh_position){{0}};
	batch->n_rows = FOUND_VALUES;
}

/* A batch of pages of all kinds and perhaps a bad one, and a batch of those that it has put into the cache. */
static void
run_found(context *ctx, rhh_map *map, const rhh_map_spec *spec, const found_options *o)
{
	uint8_t    *memory = ctx->device->pages + 128 + (size_t) FOUND_FIRST * RHH_PAGE_BYTES;
	rhh_page	made[FOUND_PAGES] = {{0}};
	found_kind	kinds[FOUND_PAGES];
	uint8_t		times[FOUND_VALUES];
	rhh_event	event = {.n_rows = 0};
	rhh_batch	batch;
	rhh_page   *pages = one_value_pages(ctx->device->pool, &batch, FOUND_NAMED_LAST + 1 + (o->odd != FOUND_NAMED));
	rhh_page_layout *layout = (void *) batch.base;
	uint32_t   *slots;
	uint32_t	room;
	uint32_t	n_bad;

	layout->prefix_bytes = o->prefix_bytes;
	if (o->filters)
	{
		layout->inputs[layout->n_inputs++] = layout->loads[0];
		layout->filter_inputs = 1;
		layout->program.filter = add_op(&layout->program, RHH_OP_LT_INT8, add_constant(&layout->program, FOUND_LEAST),
										add_op(&layout->program, RHH_OP_COLUMN, 1, 0, 0), 0);
		layout->program.has_filter = true;
	}
	batch.all_visible = !o->unsaid;
	batch.parts = o->parts;
	batch.first_page = FOUND_FIRST;
	batch.end_page = FOUND_FIRST + batch.n_pages;
	batch.n_rows = 0;
	for (uint32_t p = 0; p < batch.n_pages; p++)
	{
		kinds[p] = o->odd != FOUND_NAMED && p == FOUND_LAST ? o->odd : (found_kind) (p - (o->odd != FOUND_NAMED && p > FOUND_LAST));
		pages[p].number = kinds[p] == FOUND_BEFORE ? FOUND_FIRST - 1 : kinds[p] == FOUND_BEHIND ? batch.end_page : FOUND_FIRST + p;
		make_found(memory + ((size_t) pages[p].number - FOUND_FIRST) * RHH_PAGE_BYTES, kinds[p], p, o->wide, &made[p]);
		pages[p].all_visible = kinds[p] != FOUND_NAMED && kinds[p] != FOUND_NAMED_LAST;
		if (!pages[p].all_visible)
		{
			pages[p].n_rows = made[p].n_rows;
			pages[p].first_row = batch.n_rows;
			memcpy(pages[p].visible, made[p].visible, sizeof(made[p].visible));
		}
		else if (o->unsaid)
			made[p] = (rhh_page){0};
		batch.n_rows += made[p].n_rows;
	}
	if (o->short_of_room)
		batch.n_rows /= 2;
	room = batch.n_rows;
	batch.refused_rows = FOUND_ROOM;
	slots = (void *) (batch.base + batch.used_bytes);
	for (uint32_t p = 0; p < batch.n_pages; p++)
		slots[p] = p + 1 == batch.n_pages && !o->kept ? RHH_NO_SLOT : 3 * p + 1;
	if (o->cached || o->kept)
		batch.slots_offset = batch.used_bytes;
	batch.used_bytes = batch.refused_offset = batch.used_bytes + 64;
	n_bad = return_found(ctx, map, spec, &batch, times, &event);
	check_found(ctx, o, &batch, made, kinds, times, n_bad);
	if (batch.n_rows > room || (o->short_of_room && n_bad == (o->odd != FOUND_NAMED)))
		fault(ctx, "found", "pages have found room that there is not");
	if (!o->cached)
		return;
	become_cached(memory, &batch);
	batch.n_pages -= !o->kept;
	memset(pages, 0x5a, batch.n_pages * sizeof(rhh_page));
	n_bad = return_found(ctx, map, spec, &batch, times, &event);
	check_found(ctx, o, &batch, made, kinds, times, n_bad);
	for (uint32_t p = 0; p < batch.n_pages; p++)
	{
		event.n_rows -= pages[p].n_rows;
		event.n_dropped -= pages[p].n_dropped;
	}
	if (event.n_rows != 0 || event.n_dropped != 0)
		fault(ctx, "found", "the event has not the rows of pages in the cache");
	/* a layout with one more attribute, which the slots have only if they have all of a row */
	layout->attributes[layout->n_attributes++] = (rhh_page_attribute){.length = -1, .align = 4};
	rhh_page_find_offsets(layout);
	batch.from = (rhh_position){{0}};
	batch.n_rows = FOUND_VALUES;
	n_bad = return_found(ctx, map, spec, &batch, times, &event);
	if (n_bad != (o->parts && o->prefix_bytes >= 24 && ctx->device->ops->kind != RHH_KIND_CPU ? batch.n_pages : 0))
		fault(ctx, "found", "pages have not all attributes, and are not bad, or they have, and are");
}

/*
 * Pages that came to the cache by a layout without attributes, as that of count(*), have none: once such a copy counted as one of the
 * first attribute, which was not there.
 */
static void
run_counted(context *ctx, rhh_map *map, const rhh_map_spec *spec)
{
	uint8_t    *memory = ctx->device->pages + 128 + (size_t) FOUND_FIRST * RHH_PAGE_BYTES;
	rhh_page	made[2] = {{0}};
	uint8_t		times[FOUND_VALUES];
	rhh_event	event = {.n_rows = 0};
	rhh_batch	batch;
	rhh_page   *pages = one_value_pages(ctx->device->pool, &batch, LENGTH_OF(made));
	rhh_page_layout *layout = (void *) batch.base;
	const rhh_page_load load = layout->loads[0];
	uint32_t   *slots = (void *) (batch.base + batch.used_bytes);

	layout->n_attributes = 0;
	layout->prefix_bytes = 24;
	layout->loads[0] = (rhh_page_load){.kind = RHH_PAGE_CONSTANT, .not_null = true};
	batch.n_rows = 0;
	for (uint32_t p = 0; p < batch.n_pages; p++)
	{
		make_found(memory + (size_t) p * RHH_PAGE_BYTES, FOUND_FULL, p, false, &made[p]);
		pages[p].number = FOUND_FIRST + p;
		pages[p].all_visible = 1;
		batch.n_rows += made[p].n_rows;
		slots[p] = 3 * p + 1;
	}
	batch.all_visible = batch.parts = true;
	batch.first_page = FOUND_FIRST;
	batch.end_page = FOUND_FIRST + batch.n_pages;
	batch.refused_rows = FOUND_ROOM;
	batch.slots_offset = batch.used_bytes;
	batch.used_bytes = batch.refused_offset = batch.used_bytes + 64;
	if (return_found(ctx, map, spec, &batch, times, &event) != 0)
		fault(ctx, "counted", "a page is bad");
	layout->n_attributes = 1;
	layout->loads[0] = load;
	become_cached(memory, &batch);
	if (return_found(ctx, map, spec, &batch, times, &event) != (ctx->device->ops->kind != RHH_KIND_CPU ? batch.n_pages : 0))
		fault(ctx, "counted", "copies have an attribute that was not copied, or, of whole pages, have not");
}

/* Pages whose rows the device finds, of all kinds, beside others in a batch. */
void
case_pages_found(context *ctx)
{
	static const uint32_t prefixes[] = {0, 8, 28, 4000};
	const rhh_device_ops *ops = ctx->device->ops;
	plan		p;
	rhh_map    *map;
	rhh_error	err;

	slabs_back(ctx);
	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 1, 0);
	table_key(&p, 0);
	p.table.spec.flags = RHH_RETURN_ROWS;
	p.table.spec.max_batch_bytes = p.table.spec.max_page_bytes = 1 << 20;
	if (ops->map_create(ctx->device->dev, &p.table.spec, &map, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
	if (ops->map_join(map, &p.spec, &err) != RHH_OK)
		fault(ctx, "map_join", err.message);
	for (uint32_t odd = FOUND_NAMED_LAST; odd <= FOUND_BEHIND; odd++)
		for (uint32_t i = 0; i < 8 * LENGTH_OF(prefixes) && ctx->why[0] == '\0'; i++)
		{
			found_options o = {
				.odd = odd == FOUND_NAMED_LAST ? FOUND_NAMED : (found_kind) odd, .filters = (i & 1) != 0,
				.wide = (i & 2) != 0, .short_of_room = (i & 4) != 0, .prefix_bytes = prefixes[i / 8]
			};

			run_found(ctx, map, &p.table.spec, &o);
			if (ctx->why[0] != '\0')
				break;
			/* of bad pages nobody says what their slots have */
			for (int way = 0; way < 3 && ctx->why[0] == '\0'; way++)
			{
				o.kept = way > 0;
				o.parts = way > 1;
				o.cached = o.odd == FOUND_NAMED && !o.short_of_room;
				if (o.kept || o.cached)
					run_found(ctx, map, &p.table.spec, &o);
			}
		}
	for (int kept = 0; kept < 2 && ctx->why[0] == '\0'; kept++)
		run_found(ctx, map, &p.table.spec, &(found_options){.odd = FOUND_NAMED, .unsaid = true, .kept = kept != 0});
	if (ctx->why[0] == '\0')
		run_counted(ctx, map, &p.table.spec);
	ops->map_destroy(map);
}

/* ---------- what is computed of two numbers ---------- */

#define PAIR_PAGES 3
#define PAIR_ROWS 40			/* of a page */
#define PAIRS (PAIR_PAGES * PAIR_ROWS)
#define PAIR_NULL INT64_MIN

/* Lays out pages of the key 7 and these numbers, or NULLs, which are inputs n_columns and n_columns + 1 of *batch's program. */
static rhh_page *
make_pairs(context *ctx, rhh_batch *batch, const int64_t (*pairs)[2])
{
	uint8_t    *memory = ctx->device->pages + 128 + (size_t) FOUND_FIRST * RHH_PAGE_BYTES;
	rhh_page   *pages = one_value_pages(ctx->device->pool, batch, PAIR_PAGES);
	rhh_page_layout *layout = (void *) batch->base;

	layout->n_attributes = 3;
	for (uint8_t i = 0; i < 2; i++)
	{
		layout->attributes[1 + i] = (rhh_page_attribute){.length = 8, .align = 8};
		layout->inputs[layout->n_inputs++] = (rhh_page_load){.attribute = 1 + i, .kind = RHH_PAGE_VALUE};
	}
	rhh_page_find_offsets(layout);
	batch->n_rows = 0;
	batch->first_page = FOUND_FIRST;
	batch->end_page = FOUND_FIRST + PAIR_PAGES;
	for (uint32_t p = 0; p < PAIR_PAGES; p++)
	{
		page_clear(memory + (size_t) p * RHH_PAGE_BYTES);
		pages[p].number = FOUND_FIRST + p;
		pages[p].first_row = batch->n_rows;
		for (; pages[p].n_rows < PAIR_ROWS; pages[p].n_rows++, batch->n_rows++)
		{
			const int32_t key = 7;
			tuple		t;

			tuple_clear(&t);
			put_attribute(&t, &key, 4, 4);
			for (uint32_t i = 0; i < 2; i++)
			{
				if (pairs[batch->n_rows][i] == PAIR_NULL)
					put_null(&t);
				else
					put_attribute(&t, &pairs[batch->n_rows][i], 8, 8);
			}
			if (!page_add(memory + (size_t) p * RHH_PAGE_BYTES, &t))
				die("a page has too little room");
			pages[p].visible[0] |= UINT64_C(1) << pages[p].n_rows;
		}
	}
	return pages;
}

/* A map of one key and sums of n columns. */
static rhh_map *
pairs_map(context *ctx, int n)
{
	rhh_map    *map;
	rhh_error	err;
	def			d;

	def_init(&d);
	(void) def_key(&d, 4, GEN_CUSTOM, 1, 0);
	for (int sum = 0; sum < n; sum++)
		def_state(&d, RHH_SUM_I128, def_column(&d, 8, GEN_SMALL, 0, 0), -1);
	d.spec.max_batch_bytes = d.spec.max_page_bytes = 1 << 20;
	d.spec.max_batch_rows = 2000;
	d.spec.expected_groups = 1;
	if (ctx->device->ops->map_create(ctx->device->dev, &d.spec, &map, &err) == RHH_OK)
		return map;
	fault(ctx, "map_create", err.message);
	return NULL;
}

/*
 * Limbs of products as columns 1 and 2, and the first limb of twice the product, which is computed in between, as column 3.  From
 * first_great up to, but without, end_great products have two limbs.  One page may be bad, and a row have a NULL.  sums become those
 * of the columns in the other pages.
 */
static void
make_limbs(context *ctx, rhh_batch *batch, uint32_t first_great, uint32_t end_great, uint32_t bad_page, uint32_t null_row,
		   rhh_int128 sums[3])
{
	int64_t		pairs[PAIRS][2];
	rhh_program *program;
	uint8_t		product;
	uint8_t		twice;

	sums[0] = sums[1] = sums[2] = 0;
	for (uint32_t row = 0; row < PAIRS; row++)
	{
		rhh_int128	number;
		int64_t		limb;

		for (uint32_t i = 0; i < 2; i++)
			pairs[row][i] = (int64_t) (row * 7 + i + 1) * (row % 3 == 0 ? -1 : 1) *
				(row >= first_great && row < end_great ? INT64_C(1) << 40 : 1);
		if (row == null_row)
			pairs[row][1] = PAIR_NULL;
		if (row / PAIR_ROWS == bad_page || row == null_row)
			continue;
		number = (rhh_int128) pairs[row][0] * pairs[row][1];
		(void) rhh_do_LIMB_1_OF_2(number, 0, &limb);
		sums[0] += limb;
		(void) rhh_do_LIMB_2_OF_2(number, 0, &limb);
		sums[1] += limb;
		(void) rhh_do_LIMB_1_OF_2(2 * number, 0, &limb);
		sums[2] += limb;
	}
	(void) make_pairs(ctx, batch, pairs);
	if (bad_page < PAIR_PAGES)
		memset(ctx->device->pages + 128 + (size_t) (FOUND_FIRST + bad_page) * RHH_PAGE_BYTES + 24, 0, 4);
	program = &((rhh_page_layout *) (void *) batch->base)->program;
	product = add_op(program, RHH_OP_MUL_TO_DECIMAL128, add_op(program, RHH_OP_COLUMN, 4, 0, 0),
					 add_op(program, RHH_OP_COLUMN, 5, 0, 0), 0);
	program->results[0].op = add_op(program, RHH_OP_LIMB_1_OF_2, product, 0, 0);
	twice = add_op(program, RHH_OP_ADD_DECIMAL128, product, product, 0);
	program->results[1].op = add_op(program, RHH_OP_LIMB_2_OF_2, product, 0, 0);
	program->results[2].op = add_op(program, RHH_OP_LIMB_1_OF_2, twice, 0, 0);
	for (uint8_t r = 0; r < 3; r++)
		program->results[r].column = 1 + r;
	program->n_results = 3;
}

/*
 * Has a batch's pages read out of shared buffers, and, if there they lie in memory that is not NULL, put into slots of the cache, and read
 * from there; and the map's groups extracted.  n_bad: how many pages were bad, each time.  False: something is wrong.
 */
static bool
read_batch(context *ctx, rhh_map *map, rhh_batch *batch, uint8_t *memory, uint32_t n_bad[2], rhh_result *result)
{
	const rhh_device_ops *ops = ctx->device->ops;
	const uint32_t n_rows = batch->n_rows;
	uint32_t   *slots = (void *) (batch->base + batch->used_bytes);
	rhh_event	event;
	rhh_error	err;

	if (memory != NULL)
	{
		for (uint32_t p = 0; p < batch->n_pages; p++)
			slots[p] = 3 * p + 1;
		batch->slots_offset = batch->used_bytes;
		batch->used_bytes = batch->refused_offset = batch->used_bytes + 64;
	}
	for (int cached = 0; cached <= (memory != NULL); cached++)
	{
		if (cached)
		{
			become_cached(memory, batch);
			batch->n_rows = n_rows;
		}
		if (ops->map_submit(map, batch, 0, &err) != RHH_OK)
			fault(ctx, "map_submit", err.message);
		else if (next_event(ctx, &event) && event.n_refused > 0)
			fault(ctx, cached ? "pages of the cache" : "pages", "rows are refused");
		if (ctx->why[0] != '\0')
			return false;
		n_bad[cached] = event.n_bad_pages;
	}
	if (ops->map_finish(map, &err) != RHH_OK)
		fault(ctx, "map_finish", err.message);
	else if (next_event(ctx, &event) && ops->map_extract(map, result, 0, &err) != RHH_OK)
		fault(ctx, "map_extract", err.message);
	return ctx->why[0] == '\0' && next_event(ctx, &event);
}

/*
 * Limbs but the first are 0 in most batches, which a device may find out and not add them up.  Here they are in all rows, in all
 * but one, or in none; also where a page is bad, so that the others are read once more, whether it has that row or not, and
 * with a row for which they are NULL, if it is that one or another.
 */
void
case_pages_limbs(context *ctx)
{
	static const struct
	{
		uint32_t	first_great;
		uint32_t	end_great;
		uint32_t	bad_page;
		uint32_t	null_row;
	}			ways[] = {
		{0, 0, PAIR_PAGES, PAIRS}, {50, 51, PAIR_PAGES, PAIRS}, {0, PAIRS, PAIR_PAGES, PAIRS}, {50, 51, 1, PAIRS},
		{50, 51, 0, PAIRS}, {0, 0, PAIR_PAGES, 30}, {50, 51, PAIR_PAGES, 30}, {50, 51, PAIR_PAGES, 50}, {50, 51, 0, 50}
	};
	uint8_t    *memory = ctx->device->pages + 128 + (size_t) FOUND_FIRST * RHH_PAGE_BYTES;
	uint64_t	words[64];

	slabs_back(ctx);
	/* also from copies that have just been made, and from those alone */
	for (uint32_t w = 0; w < 2 * LENGTH_OF(ways) && ctx->why[0] == '\0'; w++)
	{
		const uint32_t way = w / 2;
		const bool	twice = w % 2 != 0;
		const uint32_t bad = ways[way].bad_page < PAIR_PAGES;
		rhh_result	result = {.words = words, .capacity_groups = 1};
		rhh_map    *map = pairs_map(ctx, 3);
		uint32_t	n_bad[2] = {bad, bad};
		rhh_int128	sums[3];
		rhh_batch	batch;

		if (map == NULL)
			return;
		make_limbs(ctx, &batch, ways[way].first_great, ways[way].end_great, ways[way].bad_page, ways[way].null_row, sums);
		if ((sums[1] != 0) != (ways[way].end_great > 0 && ways[way].bad_page != 1 && ways[way].null_row != 50))
			fault(ctx, "limbs", "the rows are not as they are to be");
		if (read_batch(ctx, map, &batch, twice ? memory : NULL, n_bad, &result) && (n_bad[0] != bad || n_bad[1] != bad))
			fault(ctx, twice ? "limbs of kept pages" : "limbs", "not the one page is bad");
		for (int i = 0; i < 3; i++)
			sums[i] *= 1 + twice;
		if (ctx->why[0] == '\0' && (result.n_groups != 1 || words[1] != 7 || memcmp(&words[2], sums, sizeof(sums)) != 0))
			fault(ctx, twice ? "limbs of kept pages" : "limbs", "other sums");
		ctx->device->ops->map_destroy(map);
	}
}

/*
 * x * y + (x - 1000) where x >= 1000, which is bad for one row.  Of pages whose rows come in parts a device tries that once more with all
 * of the row; by then x - 1000 is where x was.  Once the row had a sum then, and its page was good.
 */
void
case_pages_bad_once_more(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	rhh_map    *map = pairs_map(ctx, 1);
	int64_t		pairs[PAIRS][2];
	rhh_page_layout *layout;
	rhh_program *program;
	rhh_page   *pages;
	rhh_batch	batch;
	rhh_event	event;
	rhh_error	err;
	uint8_t		x,
				thousand,
				product,
				rest;

	if (map == NULL)
		return;
	for (uint32_t row = 0; row < PAIRS; row++)
	{
		pairs[row][0] = 900 + 10 * (row % PAIR_ROWS);
		pairs[row][1] = row == PAIR_ROWS + 10 ? INT64_MAX : 2;
	}
	pages = make_pairs(ctx, &batch, pairs);
	layout = (void *) batch.base;
	layout->prefix_bytes = 48;
	layout->filter_inputs = 1;
	program = &layout->program;
	x = add_op(program, RHH_OP_COLUMN, 2, 0, 0);
	thousand = add_constant(program, 1000);
	program->filter = add_op(program, RHH_OP_LE_INT8, thousand, x, 0);
	program->has_filter = true;
	product = add_op(program, RHH_OP_MUL_INT8, x, add_op(program, RHH_OP_COLUMN, 3, 0, 0), 0);
	rest = add_op(program, RHH_OP_SUB_INT8, x, thousand, 0);
	program->results[0].op = add_op(program, RHH_OP_ADD_INT8, product, rest, 0);
	program->results[0].column = 1;
	program->n_results = 1;
	if (ops->map_submit(map, &batch, 0, &err) != RHH_OK)
		fault(ctx, "map_submit", err.message);
	else if (next_event(ctx, &event) &&
			 (event.n_bad_pages != 1 || pages[0].bad != 0 || pages[1].bad != RHH_PAGE_UNREAD || pages[2].bad != 0))
		fault(ctx, "bad once more", "not the one page is bad");
	ops->map_destroy(map);
}

/* ---------- integers at known places ---------- */

#define PLAIN_PAGES 7
#define PLAIN_SUMS 5
#define PLAIN_ODD_ROW 140		/* of which line pointer something is wrong */

typedef enum plain_kind
{
	PLAIN_GOOD,
	PLAIN_SHORT,				/* the tuple ends before its last attribute does */
	PLAIN_FEW_LINES,			/* the page says that it has no such line pointer */
	PLAIN_DEAD,					/* the line pointer has no tuple */
	PLAIN_HEADER,				/* attributes begin at no multiple of 8 */
	PLAIN_OUTSIDE,				/* the tuple ends behind the page */
	PLAIN_FEWER					/* the tuple says that it has only three attributes; the others are NULL, and all is well */
} plain_kind;

/*
 * Makes a page of the key 7 and integers of 2, 1, 4 and 8 bytes, some of which are NULL, or are not stored; some rows are not visible.
 * Adds its rows to sums, the last one of which is that of the constant 3, unless the page is bad.
 */
static void
make_plain(uint8_t *memory, plain_kind kind, rng *r, rhh_page *page, rhh_int128 *sums)
{
	static const uint32_t bytes[] = {2, 1, 4, 8};
	const bool	good = kind == PLAIN_GOOD || kind == PLAIN_FEWER;

	page_clear(memory);
	for (uint32_t item = 0;; item++)
	{
		const bool	odd = item == PLAIN_ODD_ROW && kind != PLAIN_GOOD;
		const uint32_t n_stored = !odd && below(r, 8) == 0 ? below(r, 4) : 4;
		const bool	visible = odd || below(r, 20) > 0;
		const int32_t key = 7;
		int64_t		values[4] = {0};
		tuple		t;

		tuple_clear(&t);
		put_attribute(&t, &key, 4, 4);
		for (uint32_t a = 0; a < n_stored; a++)
		{
			/* of so many bits, with its sign */
			values[a] = (int64_t) next_random(r) >> (64 - 8 * bytes[a]);
			if (!odd && below(r, 12) == 0)
				put_null(&t);
			else
				put_attribute(&t, &values[a], bytes[a], bytes[a]);
			if ((t.present[(a + 1) / 8] >> (a + 1) % 8 & 1) == 0)
				values[a] = 0;
		}
		if (!page_add(memory, &t))
			break;
		if (!visible)
			continue;
		page->visible[item / 64] |= UINT64_C(1) << item % 64;
		page->n_rows++;
		for (uint32_t a = 0; a < 4 && good; a++)
			sums[a] += odd && a >= 2 ? 0 : values[a];
		sums[4] += good ? 3 : 0;
	}
	if (kind != PLAIN_GOOD)
	{
		uint8_t    *pointer = memory + 24 + 4 * PLAIN_ODD_ROW;
		const uint32_t offset = rhh_page_4_bytes(pointer) & 0x7fff;
		uint32_t	changed = rhh_page_4_bytes(pointer);

		if (kind == PLAIN_SHORT)
			changed -= 8u << 17;
		if (kind == PLAIN_DEAD)
			changed |= 3u << 15;
		if (kind == PLAIN_OUTSIDE)
			changed = (changed & ~0x7fffu) | (RHH_PAGE_BYTES - 8);
		memcpy(pointer, &changed, 4);
		if (kind == PLAIN_FEW_LINES)
			put_2_bytes(memory + 12, 24 + 4 * (rhh_page_lines(page->visible) - 1));
		if (kind == PLAIN_HEADER)
			memory[offset + 22] = 28;
		if (kind == PLAIN_FEWER)
			put_2_bytes(memory + offset + 18, 3);
	}
}

/* The layout of these columns. */
static void
plain_layout(rhh_page_layout *layout)
{
	for (uint8_t a = 1; a < 5; a++)
	{
		const uint8_t bytes = a == 1 ? 2 : a == 2 ? 1 : a == 3 ? 4 : 8;

		layout->attributes[a] = (rhh_page_attribute){.length = bytes, .align = bytes, .missing_null = true};
		layout->loads[a] = (rhh_page_load){.attribute = a, .column = a, .kind = RHH_PAGE_VALUE};
	}
	layout->loads[5] = (rhh_page_load){.column = 5, .kind = RHH_PAGE_CONSTANT, .parameter = 3, .not_null = true};
	layout->n_attributes = 5;
	layout->n_loads = 6;
	rhh_page_find_offsets(layout);
}

/*
 * Rows whose columns are all integers that are stored as they are, which a device may read in a way of their own: NULLs, rows that are
 * shorter, constants, columns that are wider than what is stored, several rows for each thread of a warp; and pages in which something is
 * wrong.  They are read where they are, from copies that have just been made, and from the cache.
 */
void
case_pages_plain(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	uint8_t    *memory = ctx->device->pages + 128 + (size_t) FOUND_FIRST * RHH_PAGE_BYTES;
	rng			r = {.state = option_seed};

	slabs_back(ctx);
	for (int odd = PLAIN_GOOD; odd <= PLAIN_FEWER && ctx->why[0] == '\0'; odd++)
	{
		rhh_int128	sums[PLAIN_SUMS] = {0};
		uint64_t	words[64];
		rhh_result	result = {.words = words, .capacity_groups = 1};
		rhh_map    *map = pairs_map(ctx, PLAIN_SUMS);
		rhh_page	made[PLAIN_PAGES] = {{0}};
		const uint32_t one = odd != PLAIN_GOOD && odd != PLAIN_FEWER;
		uint32_t	n_bad[2] = {0};
		rhh_batch	batch;
		rhh_page   *pages = one_value_pages(ctx->device->pool, &batch, PLAIN_PAGES);

		if (map == NULL)
			return;
		plain_layout((void *) batch.base);
		batch.first_page = FOUND_FIRST;
		batch.end_page = FOUND_FIRST + PLAIN_PAGES;
		batch.n_rows = 0;
		for (uint32_t p = 0; p < PLAIN_PAGES; p++)
		{
			make_plain(memory + (size_t) p * RHH_PAGE_BYTES, p == 3 ? (plain_kind) odd : PLAIN_GOOD, &r, &made[p], sums);
			made[p].number = FOUND_FIRST + p;
			made[p].first_row = batch.n_rows;
			batch.n_rows += made[p].n_rows;
		}
		memcpy(pages, made, sizeof(made));
		if (read_batch(ctx, map, &batch, memory, n_bad, &result) && (n_bad[0] != one || n_bad[1] != one))
			fault(ctx, "plain", "not the one page is bad");
		for (uint32_t i = 0; i < PLAIN_SUMS; i++)
			sums[i] *= 2;
		if (ctx->why[0] == '\0' &&
			(result.n_groups != 1 || words[1] != 7 || memcmp(&words[2], sums, sizeof(sums)) != 0))
			fault(ctx, "plain", "other sums");
		ops->map_destroy(map);
	}
}

#define GARBAGE_ROUNDS 40
#define GARBAGE_PAGES 4
#define GARBAGE_GROUPS 2000		/* keys may be anything */

/* What came of pages: how many groups and bad pages, and sums over all groups, the first of which is that of their keys. */
typedef struct garbage
{
	uint32_t	n_groups;
	uint32_t	n_bad;
	rhh_int128	sums[1 + PLAIN_SUMS];
} garbage;

/* Changes bits of line pointers, of tuples and of the page's header. */
static void
spoil(uint8_t *memory, rng *r)
{
	const uint32_t lines = ((uint32_t) memory[12] + 256u * memory[13] - 24) / 4;
	const uint32_t n = 1 + (uint32_t) below(r, 6);

	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t pointer = 24 + 4 * (uint32_t) below(r, lines);
		const uint32_t tuple = rhh_page_4_bytes(memory + pointer) & 0x7fff;
		const uint32_t what = (uint32_t) below(r, 8);
		const uint32_t at = what == 0 ? 12 + (uint32_t) below(r, 4) : what < 4 ? pointer + (uint32_t) below(r, 4)
			: tuple + 16 + (uint32_t) below(r, 32);

		memory[at % RHH_PAGE_BYTES] ^= (uint8_t) (1u << below(r, 8));
	}
}

/* Has pages of the layout read out of shared buffers, copied to the cache, and read from there.  False: something is wrong. */
static bool
read_garbage(context *ctx, const rhh_page *made, const uint8_t (*memory)[RHH_PAGE_BYTES], bool general, garbage *got)
{
	const rhh_device_ops *ops = ctx->device->ops;
	uint8_t    *at = ctx->device->pages + 128 + (size_t) FOUND_FIRST * RHH_PAGE_BYTES;
	static uint64_t words[GARBAGE_GROUPS * 16];
	rhh_result	result = {.words = words, .capacity_groups = GARBAGE_GROUPS};
	rhh_map    *map = pairs_map(ctx, PLAIN_SUMS);
	rhh_batch	batch;
	rhh_page   *pages = one_value_pages(ctx->device->pool, &batch, GARBAGE_PAGES);
	rhh_page_layout *layout = (void *) batch.base;
	const uint32_t n_words = 2 + 2 * PLAIN_SUMS;	/* what says which keys are NULL, the key, and sums of two words */
	uint32_t	n_bad[2];

	memset(got, 0, sizeof(*got));
	if (map == NULL)
		return false;
	plain_layout(layout);
	if (general)
	{
		/* a filter that drops nothing */
		rhh_program *program = &layout->program;
		const uint8_t one = add_constant(program, 1);

		program->filter = add_op(program, RHH_OP_LE_INT8, one, add_constant(program, 2), 0);
		program->has_filter = true;
	}
	memcpy(at, memory, GARBAGE_PAGES * RHH_PAGE_BYTES);
	memcpy(pages, made, GARBAGE_PAGES * sizeof(rhh_page));
	batch.first_page = FOUND_FIRST;
	batch.end_page = FOUND_FIRST + GARBAGE_PAGES;
	batch.n_rows = made[GARBAGE_PAGES - 1].first_row + made[GARBAGE_PAGES - 1].n_rows;
	if (read_batch(ctx, map, &batch, at, n_bad, &result))
	{
		got->n_bad = n_bad[0] + n_bad[1];
		got->n_groups = result.n_groups;
		for (uint32_t g = 0; g < result.n_groups; g++)
		{
			const uint64_t *group = &words[(size_t) g * n_words];

			got->sums[0] += (rhh_int128) group[0] * 1000003 + (rhh_int128) group[1];
			for (uint32_t i = 0; i < PLAIN_SUMS; i++)
			{
				rhh_int128	sum;

				memcpy(&sum, &group[2 + 2 * i], sizeof(sum));
				got->sums[1 + i] += sum;
			}
		}
	}
	ops->map_destroy(map);
	return ctx->why[0] == '\0';
}

/* Pages of which some bits are wrong: the way for integers at known places makes the same of them as the general one. */
void
case_pages_garbage(context *ctx)
{
	static uint8_t memory[GARBAGE_PAGES][RHH_PAGE_BYTES];
	rng			r = {.state = option_seed};
	uint32_t	n_bad = 0;

	slabs_back(ctx);
	for (int round = 0; round < GARBAGE_ROUNDS && ctx->why[0] == '\0'; round++)
	{
		rhh_int128	sums[PLAIN_SUMS] = {0};
		rhh_page	made[GARBAGE_PAGES] = {{0}};
		uint32_t	n_rows = 0;
		garbage		plain,
					general;

		for (uint32_t p = 0; p < GARBAGE_PAGES; p++)
		{
			make_plain(memory[p], PLAIN_GOOD, &r, &made[p], sums);
			made[p].number = FOUND_FIRST + p;
			made[p].first_row = n_rows;
			n_rows += made[p].n_rows;
			if (p % 2 == 1)
				spoil(memory[p], &r);
		}
		if (read_garbage(ctx, made, memory, false, &plain) && read_garbage(ctx, made, memory, true, &general) &&
			memcmp(&plain, &general, sizeof(plain)) != 0)
			fault(ctx, "garbage", "two ways make different things of it");
		n_bad += plain.n_bad;
	}
	if (ctx->why[0] == '\0' && (n_bad == 0 || n_bad == 2 * GARBAGE_ROUNDS * GARBAGE_PAGES / 2))
		fault(ctx, "garbage", "of all pages the same is thought");
}

/* ---------- values ---------- */

/* A numeric in PostgreSQL's short format; returns its bytes. */
static uint32_t
make_decimal(uint8_t *to, bool negative, uint32_t scale, int weight, const uint16_t *digits,
			 uint32_t n)
{
	put_2_bytes(to, 0x8000u | (negative ? 0x2000u : 0) | scale << 7 | ((uint32_t) weight & 0x7f));
	for (uint32_t i = 0; i < n; i++)
		put_2_bytes(to + 2 + 2 * i, digits[i]);
	return 2 + 2 * n;
}

/* Numerics, what they are at scale 2, and whether that is made of them. */
static const struct
{
	bool		negative;
	uint32_t	scale;
	int			weight;
	uint32_t	n;
	uint16_t	digits[5];
	bool		good;
	int64_t		value;
} decimals[] = {
	{false, 2, 0, 0, {0}, true, 0},
	{false, 2, 0, 1, {7}, true, 700},
	{true, 2, 0, 1, {7}, true, -700},
	{false, 2, -1, 1, {2500}, true, 25},
	{false, 2, -1, 1, {1}, false, 0},	/* 0.0001 */
	{false, 2, -1, 1, {100}, true, 1},
	{false, 2, 0, 2, {12, 3400}, true, 1234},
	{false, 2, 0, 2, {12, 3401}, false, 0},
	{false, 2, 1, 2, {12, 3401}, true, 12340100},
	{false, 2, 1, 1, {12}, true, 12000000},
	{true, 2, 2, 4, {9999, 9999, 9999, 9900}, true, -99999999999999},
	{false, 2, 3, 4, {9999, 9999, 9999, 9999}, true, 999999999999999900},
	{false, 2, 3, 1, {1}, true, 100000000000000},
	{false, 2, 4, 1, {2000}, false, 0}, /* 2e21 in cents */
	{false, 2, 63, 1, {1}, false, 0},
	{false, 2, -64, 1, {1}, false, 0},
	{false, 2, 3, 5, {1, 2, 3, 4, 5}, false, 0},
	{false, 3, 0, 1, {7}, false, 0},
	{false, 0, 0, 1, {7}, false, 0},
	{false, 2, 0, 1, {10000}, true, 1000000}	/* no number has this digit; core adds it up, too */
};

static void
check_decimals(context *ctx)
{
	for (size_t i = 0; i < LENGTH_OF(decimals); i++)
	{
		uint8_t		plain[16];
		uint8_t		value[32];
		const uint32_t n = make_decimal(plain, decimals[i].negative, decimals[i].scale,
										decimals[i].weight, decimals[i].digits, decimals[i].n);

		for (int form = 0; form < 3; form++)
		{
			char		where[32];
			const uint32_t header = form == 0 ? (n + 1) << 1 | 1 : (n + 4) << 2 | (form == 2 ? 2 : 0);
			const uint32_t header_bytes = form == 0 ? 1 : 4;
			int64_t		result = 0;
			bool		good;

			snprintf(where, sizeof(where), "numeric %u, form %d", (unsigned) i, form);
			memcpy(value, &header, 4);
			memcpy(value + header_bytes, plain, n);
			good = rhh_page_decimal(value, header_bytes + n, 2, &result);
			/* a compressed one is none */
			if (good != (decimals[i].good && form != 2) ||
				(good && result != decimals[i].value))
				fault(ctx, where, "another value");
			for (uint32_t less = 0; less < header_bytes + 2; less++)
				if (less > 0 && form == 1 && rhh_page_decimal(value, less, 2, &result))
					fault(ctx, where, "it was made of too few bytes");
		}
	}
}

/*
 * One page with attributes that are short, NULL, wide, missing: what is made of each tuple, by
 * a map that returns its rows.
 */
typedef struct value_row
{
	int32_t		number;			/* int2 at first, widened */
	int64_t		cents;
	int64_t		added;			/* int8 that was added later */
	bool		cents_null;
	bool		added_null;
} value_row;

/* Strings, what is made of them if all blanks count, and whether that and other things are. */
static const struct
{
	const char *text;
	bool		good;
	bool		no_blanks;		/* and of them without blanks */
	bool		declared;		/* and if they are a char(6) */
} strings[] = {
	{"", true, true, false},
	{"a", true, true, false},
	{"abcdef", true, true, true},
	{"abc   ", true, true, true},
	{"      ", true, true, true},
	{"       ", true, true, false},
	{"abcdefghijklmno", true, true, false},
	{"abcdefghijklmnop", false, false, false},
	{"abcdefghijklmn  ", false, true, false},
	{"\303\244bcd ", true, true, false}
};

static void
check_strings(context *ctx)
{
	for (size_t i = 0; i < LENGTH_OF(strings); i++)
		for (int form = 0; form < 4; form++)
			for (uint32_t blanks = 0; blanks <= RHH_PAGE_DECLARED; blanks++)
			{
				const char *text = strings[i].text;
				const uint32_t n = (uint32_t) strlen(text);
				/* short, plain, compressed, out of line */
				const uint32_t header = form == 0 ? (n + 1) << 1 | 1 : form == 3 ? 1 : (n + 4) << 2 | (form == 2 ? 2 : 0);
				const uint32_t header_bytes = form == 0 || form == 3 ? 1 : 4;
				const bool	good = form < 2 &&
					(blanks == RHH_PAGE_ALL_COUNT ? strings[i].good :
					 blanks == RHH_PAGE_NO_BLANKS ? strings[i].no_blanks : strings[i].declared);
				uint32_t	length = n;
				uint8_t		value[32];
				uint8_t		expected[16] = {0};
				uint64_t	words[2];
				char		where[40];

				while (blanks != RHH_PAGE_ALL_COUNT && length > 0 && text[length - 1] == ' ')
					length--;
				if (good)
				{
					memcpy(expected, text, length);
					expected[15] = (uint8_t) length;
				}
				memcpy(value, &header, 4);
				memcpy(value + header_bytes, text, n);
				snprintf(where, sizeof(where), "string %u, form %d, blanks %u", (unsigned) i, form, blanks);
				if (rhh_page_string(value, header_bytes + n, blanks, 6, &words[0], &words[1]) != good ||
					(good && memcmp(words, expected, 16) != 0))
					fault(ctx, where, "another key");
				if (!good)
					memset(expected, 0xff, sizeof(expected));
				if (blanks != RHH_PAGE_DECLARED &&
					(rhh_page_string_or_long(value, header_bytes + n, blanks, &words[0], &words[1]) != (form < 2) ||
					 memcmp(words, expected, 16) != 0))
					fault(ctx, where, "another key where it may be long");
			}
}

/* The orders of floats and of numbers without a sign: of each pair, and of what is equal. */
static void
check_orders(context *ctx)
{
	static const double values[] = {-INFINITY, -1e300, -2.5, -1e-300, -0.0, 0.0, 1e-300, 0.1, 3, 1e300, INFINITY, NAN};

	for (size_t i = 0; i < LENGTH_OF(values); i++)
		for (size_t j = 0; j < LENGTH_OF(values); j++)
			for (int bytes = 4; bytes <= 8; bytes += 4)
			{
				const double v[2] = {bytes == 4 ? (float) values[i] : values[i], bytes == 4 ? (float) values[j] : values[j]};
				uint64_t	bits[2] = {0, 0};
				uint64_t	ordered[2];
				uint64_t	equal[2];
				int64_t		numbers[2];

				for (int k = 0; k < 2; k++)
				{
					const float single = (float) v[k];

					if (bytes == 4)
						memcpy(&bits[k], &single, 4);
					else
						memcpy(&bits[k], &v[k], 8);
					/* any NaN is NaN */
					if (isnan(v[k]) && k == 0)
						bits[k] |= 1 | UINT64_C(1) << (8 * bytes - 1);
					ordered[k] = rhh_page_ordered(bits[k], (uint32_t) bytes, RHH_PAGE_FLOATS);
					equal[k] = rhh_page_ordered(bits[k], (uint32_t) bytes, RHH_PAGE_EQUALITY);
					numbers[k] = bytes == 4 ? (int32_t) ordered[k] : (int64_t) ordered[k];
				}
				if ((v[0] < v[1] || (isnan(v[1]) && !isnan(v[0]))) && numbers[0] >= numbers[1])
					fault(ctx, "orders", "floats are in another order");
				if ((v[0] == v[1] || (isnan(v[0]) && isnan(v[1]))) != (equal[0] == equal[1]))
					fault(ctx, "orders", "equal floats differ, or others do not");
			}
	if ((int32_t) rhh_page_ordered(5, 4, RHH_PAGE_UNSIGNED) >= (int32_t) rhh_page_ordered(UINT32_MAX, 4, RHH_PAGE_UNSIGNED))
		fault(ctx, "orders", "numbers without a sign are in another order");
}

static void
check_values(context *ctx, bool missing_null, bool texts)
{
	const rhh_device_ops *ops = ctx->device->ops;
	device	   *device = ctx->device;
	uint8_t    *memory = device->pages + 128 + (size_t) 5 * RHH_PAGE_BYTES;
	uint8_t    *base = device->pool;
	static const uint8_t key[16] = {'t', 'e', 'x', 't', [15] = 4};
	value_row	expected[40];
	uint32_t	n = 0;
	plan		p;
	rhh_map    *table;
	rhh_error	err;
	rhh_event	event;
	rhh_batch	batch;
	rhh_page   *page;
	rhh_page_layout *layout;
	const uint32_t room = 64;

	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 1, 0);
	(void) probe_column(&p, 8, GEN_CUSTOM, 1, 0);
	(void) probe_column(&p, 8, GEN_CUSTOM, 1, 0);
	table_key(&p, 0);
	(void) table_column(&p, 1);
	(void) table_column(&p, 2);
	if (texts)
	{
		(void) probe_column(&p, 16, GEN_CUSTOM, 1, 0);
		(void) probe_column(&p, 8, GEN_CUSTOM, 1, 0);
		(void) probe_column(&p, 8, GEN_CUSTOM, 1, 0);
		for (uint16_t c = 3; c < 6; c++)
			(void) table_column(&p, c);
	}
	p.table.spec.flags = RHH_RETURN_ROWS;
	p.table.spec.max_batch_bytes = p.table.spec.max_page_bytes = 1 << 20;
	if (ops->map_create(device->dev, &p.table.spec, &table, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
	if (ops->map_join(table, &p.spec, &err) != RHH_OK)
		fault(ctx, "map_join", err.message);

	memset(&batch, 0, sizeof(batch));
	memset(base, 0, 1 << 16);
	batch.base = base;
	batch.layout_offset = 0;
	batch.pages_offset = (uint32_t) (sizeof(rhh_page_layout) + 63) / 64 * 64;
	batch.n_pages = 1;
	batch.first_page = 5;
	batch.end_page = 6;
	batch.used_bytes = batch.refused_offset = batch.pages_offset + 64;
	batch.refused_rows = room;
	layout = (void *) base;
	page = (void *) (base + batch.pages_offset);
	page->number = 5;
	layout->n_attributes = 4;
	layout->attributes[0] = (rhh_page_attribute){.length = 2, .align = 2};
	layout->attributes[1] = (rhh_page_attribute){.length = -1, .align = 4};
	layout->attributes[2] = (rhh_page_attribute){.length = -1, .align = 4};
	layout->attributes[3] = (rhh_page_attribute){.length = 8, .align = 8, .missing_null = missing_null};
	rhh_page_find_offsets(layout);
	layout->n_loads = 3;
	layout->loads[0] = (rhh_page_load){.attribute = 0, .column = 0, .kind = RHH_PAGE_VALUE, .not_null = true};
	layout->loads[1] = (rhh_page_load){.attribute = 2, .column = 1, .kind = RHH_PAGE_DECIMAL, .scale = 2};
	layout->loads[2] = (rhh_page_load){.attribute = 3, .column = 2, .kind = RHH_PAGE_VALUE};
	if (texts)
	{
		/* loads are in the order of their attributes, and a constant has none */
		memmove(layout->loads + 3, layout->loads + 1, 2 * sizeof(rhh_page_load));
		layout->loads[1] = layout->loads[0];
		layout->loads[0] = (rhh_page_load){.column = 4, .kind = RHH_PAGE_CONSTANT, .parameter = -7, .not_null = true};
		layout->loads[2] = (rhh_page_load){.attribute = 1, .column = 3, .kind = RHH_PAGE_STRING};
		layout->loads[5] = (rhh_page_load){.attribute = 3, .column = 5, .kind = RHH_PAGE_VALUE, .order = RHH_PAGE_UNSIGNED};
		layout->n_loads = 6;
	}
	page_clear(memory);
	for (size_t i = 0; i < LENGTH_OF(decimals); i++)
	{
		tuple		t;
		uint8_t		plain[16];
		const int16_t number = (int16_t) (i % 2 == 0 ? -300 - (int) i : (int) i);
		const int64_t added = -5000000000 * (int64_t) i;
		const bool	has_added = i % 3 != 0;

		if (!decimals[i].good || (!has_added && !missing_null))
			continue;
		memset(&t, 0, sizeof(t));
		put_attribute(&t, &number, 2, 2);
		/* of 18 bytes, out of line, and of no use here */
		if (i % 4 == 0 && !texts)
			put_attribute(&t, "\1\22 and 16 bytes...", 18, 1);
		else
			put_varlena(&t, "text", 4, i % 4 == 1);
		if (i % 5 == 4)
			put_null(&t);
		else
			put_varlena(&t, plain, make_decimal(plain, decimals[i].negative, decimals[i].scale,
												decimals[i].weight, decimals[i].digits,
												decimals[i].n), i % 4 < 3);
		if (has_added)
			put_attribute(&t, &added, 8, 8);
		if (!page_add(memory, &t))
			fault(ctx, "values", "the page is full");
		page->visible[0] |= (uint64_t) 1 << n;
		expected[n++] = (value_row){
			.number = number, .cents = i % 5 == 4 ? 0 : decimals[i].value, .cents_null = i % 5 == 4,
			.added = has_added ? added : 0, .added_null = !has_added
		};
	}
	page->n_rows = batch.n_rows = n;
	if (ops->map_submit(table, &batch, 0, &err) != RHH_OK)
		fault(ctx, "map_submit", err.message);
	else if (next_event(ctx, &event))
	{
		const rhh_map_spec *spec = &p.table.spec;
		const uint8_t *out = base + batch.refused_offset;

		if (event.n_bad_pages > 0 || event.n_refused != n || event.more)
			fault(ctx, "values", "the rows have not come back");
		/* in any order; numbers are all different */
		for (uint32_t i = 0; i < n && ctx->why[0] == '\0'; i++)
		{
			uint32_t	r = 0;
			int32_t		number;
			int64_t		cents,
						added;

			do
				memcpy(&number, out + rhh_output_values(spec, room, 0) + 4 * r, 4);
			while (number != expected[i].number && ++r < n);
			if (r == n)
			{
				fault(ctx, "values", "a row is missing");
				break;
			}
			memcpy(&cents, out + rhh_output_values(spec, room, 1) + 8 * r, 8);
			memcpy(&added, out + rhh_output_values(spec, room, 2) + 8 * r, 8);
			if ((out[rhh_output_nulls(spec, room, 1) + r / 8] >> r % 8 & 1) != expected[i].cents_null ||
				(!expected[i].cents_null && cents != expected[i].cents))
				fault(ctx, "values", "a numeric differs");
			if ((out[rhh_output_nulls(spec, room, 2) + r / 8] >> r % 8 & 1) != expected[i].added_null ||
				(!expected[i].added_null && added != expected[i].added))
				fault(ctx, "values", "what was added later differs");
			if (!texts)
				continue;
			if (memcmp(out + rhh_output_values(spec, room, 3) + 16 * r, key, 16) != 0)
				fault(ctx, "values", "a string differs");
			memcpy(&cents, out + rhh_output_values(spec, room, 4) + 8 * r, 8);
			if (cents != -7)
				fault(ctx, "values", "a constant differs");
			memcpy(&cents, out + rhh_output_values(spec, room, 5) + 8 * r, 8);
			if (!expected[i].added_null && cents != (expected[i].added ^ INT64_MIN))
				fault(ctx, "values", "a number without a sign differs");
		}
	}
	ops->map_destroy(table);
}

void
case_pages_values(context *ctx)
{
	check_decimals(ctx);
	check_strings(ctx);
	check_orders(ctx);
	for (int texts = 0; texts < 2; texts++)
	{
		check_values(ctx, true, texts != 0);
		check_values(ctx, false, texts != 0);
	}
}

/* ---------- pages with anything in them ---------- */

/* Whatever is in a page, nothing outside of it is read, and a row's values are somewhere in it. */
void
case_pages_broken(context *ctx)
{
	rng			r = {.state = option_seed};
	uint64_t	n_good = 0;
	uint8_t    *page = device_alloc(&(struct device){.ops = &rhh_cpu_ops}, RHH_PAGE_BYTES);

	for (uint64_t round = 0; round < rows(40000); round++)
	{
		rhh_page_layout layout;

		memset(&layout, 0, sizeof(layout));
		page_clear(page);
		layout.n_attributes = 6;
		for (uint32_t a = 0; a < layout.n_attributes; a++)
		{
			layout.attributes[a] = filler_attributes[below(&r, FILLER_CSTRING + 1)];
			layout.loads[layout.n_loads++] = (rhh_page_load){
				.attribute = (uint8_t) a,
				.kind = layout.attributes[a].length < 0 ? RHH_PAGE_DECIMAL : RHH_PAGE_VALUE
			};
		}
		rhh_page_find_offsets(&layout);
		for (uint32_t i = 0; i < 20; i++)
		{
			tuple		t;

			memset(&t, 0, sizeof(t));
			for (uint32_t a = 0; a < layout.n_attributes; a++)
				put_filler(&t, layout.attributes[a].length == -1 ? FILLER_VARLENA :
						   layout.attributes[a].length == -2 ? FILLER_CSTRING : FILLER_INT8, &r);
			(void) page_add(page, &t);
		}
		for (uint64_t flips = below(&r, 200); flips > 0; flips--)
			page[below(&r, 4) == 0 ? below(&r, 128) : RHH_PAGE_BYTES - 1 - below(&r, 1500)] =
				(uint8_t) next_random(&r);
		for (uint32_t item = 0; item < RHH_PAGE_ITEMS; item++)
		{
			rhh_page_tuple tuple;

			if (!rhh_page_find(page, item, round % 4 == 0 ? 40 : RHH_PAGE_BYTES, &tuple))
				continue;
			for (uint32_t l = 0; l < layout.n_loads; l++)
			{
				bool		null;
				uint64_t	low,
							high;

				if (!rhh_page_load_value(&layout, &layout.loads[l], 8, &tuple, &null, &low, &high))
					break;
				n_good++;
				if (tuple.length > 0 &&
					(tuple.data < page || tuple.begin + tuple.length > tuple.n_bytes ||
					 tuple.data + tuple.n_bytes > page + RHH_PAGE_BYTES))
				{
					fault(ctx, "broken", "a value outside the page");
					round = UINT64_MAX - 1;
				}
			}
		}
	}
	if (n_good == 0)
		fault(ctx, "broken", "no value was found");
	free(page);
}

/* ---------- rules ---------- */

void
case_pages_invalid(context *ctx)
{
	const rhh_device_ops *ops = ctx->device->ops;
	uint8_t    *base = ctx->device->pool;
	plan		p;
	rhh_map    *table;
	rhh_map    *plain;
	rhh_map_spec none;
	rhh_error	err;
	rhh_page_layout *layout = (void *) base;

	plan_init(&p);
	(void) probe_column(&p, 4, GEN_CUSTOM, 1, 0);
	(void) probe_column(&p, 8, GEN_CUSTOM, 1, 0);
	table_key(&p, 0);
	p.table.spec.max_batch_bytes = p.table.spec.max_page_bytes = 1 << 16;
	none = p.table.spec;
	none.max_page_bytes = 0;
	if (ops->map_create(ctx->device->dev, &p.table.spec, &table, &err) != RHH_OK ||
		ops->map_create(ctx->device->dev, &none, &plain, &err) != RHH_OK ||
		ops->map_join(table, &p.spec, &err) != RHH_OK)
	{
		fault(ctx, "map_create", err.message);
		return;
	}
#define INVALID(map, change, message) \
	do { \
		rhh_batch	b = {.base = base,.n_rows = 10,.n_pages = 1,.first_page = 3,.end_page = 4, \
			.pages_offset = (uint32_t) (sizeof(rhh_page_layout) + 63) / 64 * 64,.refused_rows = 1}; \
		memset(base, 0, 4096); \
		layout->n_attributes = 2; \
		layout->attributes[0] = (rhh_page_attribute){.length = 4,.align = 4}; \
		layout->attributes[1] = (rhh_page_attribute){.length = -1,.align = 4}; \
		layout->n_loads = 2; \
		layout->loads[0] = (rhh_page_load){.attribute = 0,.column = 0,.kind = RHH_PAGE_VALUE}; \
		layout->loads[1] = (rhh_page_load){.attribute = 1,.column = 1,.kind = RHH_PAGE_DECIMAL}; \
		b.used_bytes = b.refused_offset = b.pages_offset + 64; \
		change; \
		expect_error(ctx, #change, ops->map_submit(map, &b, 0, &err), RHH_INVALID, &err, message); \
	} while (0)
	INVALID(plain, b.n_rows = 10, "the map takes no pages");
	INVALID(table, b.n_rows = 0, "a batch cannot have 0 rows");
	INVALID(table, b.on_device = true, "pages are not in the device's memory");
	INVALID(table, b.zero_columns = 1, "of pages no column is known to be 0");
	INVALID(table, b.end_page = ctx->device->n_pages + 1, "there is no page 8193");
	INVALID(table, b.first_page = 5, "there is no page 4");
	INVALID(table, b.pages_offset += 8, "what says where rows are is not aligned");
	INVALID(table, b.layout_offset = 4, "what says where rows are is not aligned");
	INVALID(table, b.n_pages = 2, "what says where rows are does not end in the batch");
	INVALID(table, layout->n_attributes = 0, "column 0 is not in the order of attributes");
	INVALID(table, layout->n_attributes = 129, "columns cannot be made of 129 attributes");
	INVALID(table, layout->attributes[1].align = 3, "attribute 1 has no such length or alignment");
	INVALID(table, layout->attributes[0].length = 0, "attribute 0 has no such length or alignment");
	INVALID(table, layout->n_loads = 1, "1 of 2 columns are made of attributes, and 0 are computed of 0 inputs");
	INVALID(table, layout->loads[1].column = 0, "load 1 has no column of its own");
	INVALID(table, layout->loads[1].column = 2, "load 1 has no column of its own");
	INVALID(table, layout->loads[1].attribute = 2, "column 1 is not in the order of attributes");
	INVALID(table, (layout->n_attributes = 3, layout->attributes[2] = layout->attributes[0],
					layout->loads[0].attribute = 2), "column 1 is not in the order of attributes");
	INVALID(table, layout->attributes[0].length = 8, "column 0 cannot be made of its attribute");
	INVALID(table, layout->attributes[0].length = 3, "column 0 cannot be made of its attribute");
	INVALID(table, layout->attributes[1].length = 4, "column 1 cannot be made of its attribute");
	INVALID(table, layout->loads[0].kind = RHH_PAGE_NOTHING + 1, "column 0 cannot be made of its attribute");
	INVALID(table, layout->loads[0].kind = RHH_PAGE_STRING, "column 0 cannot be made of its attribute");
	INVALID(table, layout->loads[0].order = 4, "column 0 has no such order");
	INVALID(table, (layout->loads[0].order = 1, layout->attributes[0].length = 2), "column 0 has no such order");
	INVALID(table, (layout->loads[0].order = 1, layout->loads[0].kind = RHH_PAGE_DECIMAL), "column 0 has no such order");
	INVALID(table, (layout->loads[1].attribute = 1, layout->loads[1].kind = RHH_PAGE_CONSTANT), "column 1 cannot be a constant");
	INVALID(table, layout->n_inputs = RHH_PAGE_INPUTS + 1,
			"2 of 2 columns are made of attributes, and 0 are computed of 25 inputs");
	INVALID(table, (layout->n_inputs = 1, layout->inputs[0] = (rhh_page_load){.attribute = 2, .kind = RHH_PAGE_VALUE}),
			"input 0 has no attribute");
	INVALID(table, (layout->n_inputs = 1, layout->inputs[0] = (rhh_page_load){.attribute = 1, .kind = RHH_PAGE_VALUE}),
			"input 0 cannot be made of its attribute");
	INVALID(table, (layout->n_inputs = 2, layout->inputs[0] = layout->loads[1], layout->inputs[1] = layout->loads[0]),
			"input 1 is not in the order of attributes");
	INVALID(table, layout->program.has_filter = true, "a program has no operations");
	INVALID(table, add_op(&layout->program, RHH_OP_COLUMN, 2, 0, 0), "a program reads what is no column, or its own result");
	INVALID(table, (layout->n_inputs = 1, layout->inputs[0] = layout->loads[0],
					add_op(&layout->program, RHH_OP_COLUMN, 1, 0, 0)),
			"the program of a layout reads what is no input");
	INVALID(table, (layout->n_inputs = 1, layout->inputs[0] = layout->loads[0],
					make_filter(layout, 2, 0), layout->filter_inputs = 0),
			"the filter of a layout reads an input that is not said to be its");
	INVALID(table, (layout->n_inputs = 1, layout->inputs[0] = layout->loads[0], layout->n_loads = 1,
					make_filter(layout, 2, 0), make_result(layout, 2, 0, 0)),
			"result 0 has no column of its own");
	INVALID(table, b.n_rows = 8000, "the rows of a batch's pages cannot have so many bytes");
#undef INVALID
	ops->map_destroy(table);
	ops->map_destroy(plain);
}
