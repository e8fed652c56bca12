/*
 * rhh_check.c
 *		Checks whether calls keep the rules of rhh_device.h.
 *
 * The devices trust what has been checked: with wrong offsets or column numbers they
 * would read and write out of bounds.  The contents of bitmaps and the values are not
 * checked, since any contents are safe.
 */
#include <stdarg.h>
#include <stdio.h>

#include "rhh_check.h"
#include "rhh_pages.h"
#include "rhh_program.h"

static rhh_status __attribute__((format(printf, 2, 3)))
invalid(rhh_error *err, const char *format, ...)
{
	va_list		args;

	err->status = RHH_INVALID;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	return RHH_INVALID;
}

static rhh_status
cancelled(rhh_error *err)
{
	err->status = RHH_CANCELLED;
	snprintf(err->message, sizeof(err->message), "the map was cancelled");
	return RHH_CANCELLED;
}

static bool
is_width(uint32_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/* Only -1 stands for no column; other negative numbers are wrong. */
static bool
is_column_or_none(const rhh_map_spec *spec, int8_t column)
{
	return column >= -1 && column < (int) spec->n_columns;
}

static rhh_status
check_state(const rhh_map_spec *spec, uint32_t s, rhh_error *err)
{
	const rhh_state_spec *st = &spec->states[s];
	uint32_t	bytes;

	if (st->op < RHH_COUNT || st->op > RHH_SUM_TWICE_F64)
		return invalid(err, "state %u has unknown operation %u",
					   (unsigned) s, (unsigned) st->op);
	if (!is_column_or_none(spec, st->filter_column) ||
		(st->filter_column >= 0 && spec->column_bytes[st->filter_column] != 1))
		return invalid(err, "filter of state %u is not a column of bytes", (unsigned) s);
	if (!is_column_or_none(spec, st->arg_column))
		return invalid(err, "argument of state %u is not a column", (unsigned) s);
	if (st->arg_column < 0)
		return st->op == RHH_COUNT ? RHH_OK :
			invalid(err, "state %u has no argument", (unsigned) s);
	bytes = spec->column_bytes[st->arg_column];
	if (!rhh_op_takes(st->op, bytes))
		return invalid(err, "argument of state %u cannot have %u bytes",
					   (unsigned) s, (unsigned) bytes);
	return RHH_OK;
}

rhh_status
rhh_check_spec(const rhh_map_spec *spec, rhh_error *err)
{
	if (spec->n_columns < 1 || spec->n_columns > RHH_MAX_COLUMNS)
		return invalid(err, "a map cannot have %u columns", (unsigned) spec->n_columns);
	if (spec->n_keys < 1 || spec->n_keys > RHH_MAX_KEYS)
		return invalid(err, "a map cannot have %u keys", (unsigned) spec->n_keys);
	if ((spec->flags & (RHH_KEEP_ROWS | RHH_RETURN_ROWS)) != 0 && spec->n_states > 0)
		return invalid(err, "a map that keeps or returns rows has no states");
	if ((spec->flags & RHH_KEEP_ROWS) != 0 && (spec->flags & RHH_RETURN_ROWS) != 0)
		return invalid(err, "a map cannot keep rows and return them");
	if ((spec->flags & RHH_KEEP_ROWS) == 0 && (spec->flags & RHH_KEEP_UNMATCHED) != 0)
		return invalid(err, "a map that keeps no rows keeps none without a match");
	if ((spec->flags & RHH_KEEP_ROWS) == 0 && (spec->flags & RHH_SHARE_MATCHES) != 0)
		return invalid(err, "a map that keeps no rows has no matches to share");
	if ((spec->n_parts & (spec->n_parts - 1)) != 0 || spec->n_parts > RHH_MAX_PARTS)
		return invalid(err, "a map cannot have %u parts", (unsigned) spec->n_parts);
	if (spec->part >= spec->n_parts && spec->part > 0)
		return invalid(err, "there is no part %u of %u", (unsigned) spec->part,
					   (unsigned) spec->n_parts);
	if ((spec->flags & RHH_KEEP_ROWS) == 0 && spec->n_parts > 0)
		return invalid(err, "a map that keeps no rows has no parts");
	if (spec->n_states > RHH_MAX_STATES)
		return invalid(err, "a map cannot have %u states", (unsigned) spec->n_states);
	for (uint32_t c = 0; c < spec->n_columns; c++)
		if (!is_width(spec->column_bytes[c]))
			return invalid(err, "column %u cannot have %u bytes",
						   (unsigned) c, (unsigned) spec->column_bytes[c]);
	for (uint32_t k = 0; k < spec->n_keys; k++)
		if (spec->key_column[k] >= spec->n_columns)
			return invalid(err, "key %u is not a column", (unsigned) k);
	for (uint32_t s = 0; s < spec->n_states; s++)
		if (check_state(spec, s, err) != RHH_OK)
			return err->status;
	if (rhh_all_state_words(spec) > RHH_MAX_STATE_WORDS)
		return invalid(err, "a map cannot have %u words of states",
					   (unsigned) rhh_all_state_words(spec));
	if (spec->max_probe_buckets < 1)
		return invalid(err, "the probe cap is zero");
	if (!(spec->load_factor >= 0.5f && spec->load_factor <= 0.95f))
		return invalid(err, "load factor %g is not between 0.5 and 0.95",
					   (double) spec->load_factor);
	if (spec->max_batch_rows < 1)
		return invalid(err, "batches cannot have any rows");
	return RHH_OK;
}

/* Can the map be given rows?  joined: those of a batch. */
static rhh_status
check_takes_rows(const rhh_map_state *map, bool joined, rhh_error *err)
{
	if (map->cancelled)
		return cancelled(err);
	if (map->finishing)
		return invalid(err, "a map that is being finished takes no rows");
	if ((map->spec->flags & RHH_RETURN_ROWS) != 0 && !joined)
		return invalid(err, "a map that returns rows takes those of joins only");
	return RHH_OK;
}

/* Of the n columns up to those of join j's own build side some are usable. */
static rhh_status
check_condition(const rhh_join *join, uint32_t j, uint32_t n, const uint8_t *bytes,
				const bool *usable, rhh_error *err)
{
	uint8_t		column_bytes[RHH_MAX_COLUMNS];
	const char *why;

	if (join->n_condition_columns > RHH_MAX_COLUMNS)
		return invalid(err, "the condition of join %u cannot have %u columns", (unsigned) j,
					   (unsigned) join->n_condition_columns);
	for (uint32_t c = 0; c < join->n_condition_columns; c++)
	{
		if (join->condition_column[c] >= n || !usable[join->condition_column[c]])
			return invalid(err, "column %u of the condition of join %u is not one of its sides'",
						   (unsigned) c, (unsigned) j);
		column_bytes[c] = bytes[join->condition_column[c]];
	}
	if (!rhh_program_check(join->condition, join->n_condition_columns, column_bytes, &why))
		return invalid(err, "%s", why);
	if (!join->condition->has_filter || join->condition->n_results > 0)
		return invalid(err, "the condition of join %u is not a filter alone", (unsigned) j);
	return RHH_OK;
}

rhh_status
rhh_check_join(const rhh_map_state *map, const rhh_join_spec *joins,
			   const rhh_map_state *builds, rhh_error *err)
{
	uint8_t		bytes[RHH_MAX_COLUMNS * (RHH_MAX_JOINS + 1)];	/* of all columns */
	bool		usable[RHH_MAX_COLUMNS * (RHH_MAX_JOINS + 1)];
	uint32_t	n = 0;
	const char *why;

	if (check_takes_rows(map, true, err) != RHH_OK)
		return err->status;
	if (map->fed && !map->had_joins)
		return invalid(err, "joins come before the first rows");
	if (map->in_flight)
		return invalid(err, "batches of the joins before are in flight");
	if (joins->n_joins > RHH_MAX_JOINS)
		return invalid(err, "a map cannot have %u joins", (unsigned) joins->n_joins);
	if (joins->n_columns < 1 || joins->n_columns > RHH_MAX_COLUMNS)
		return invalid(err, "a batch cannot have %u columns", (unsigned) joins->n_columns);
	for (uint32_t c = 0; c < joins->n_columns; c++)
	{
		if (!is_width(joins->column_bytes[c]))
			return invalid(err, "column %u cannot have %u bytes",
						   (unsigned) c, (unsigned) joins->column_bytes[c]);
		usable[n] = true;
		bytes[n++] = joins->column_bytes[c];
	}
	for (uint32_t j = 0; j < joins->n_joins; j++)
	{
		const rhh_join *join = &joins->joins[j];
		const rhh_map_spec *build = builds[j].spec;

		if (join->kind < RHH_JOIN_INNER || join->kind > RHH_JOIN_RIGHT_ANTI)
			return invalid(err, "join %u has unknown kind %u",
						   (unsigned) j, (unsigned) join->kind);
		if (builds[j].cancelled)
			return cancelled(err);
		if (builds[j].device != map->device)
			return invalid(err, "the build side of join %u is in another device", (unsigned) j);
		if ((build->flags & RHH_KEEP_ROWS) == 0 || !builds[j].finished)
			return invalid(err, "the build side of join %u is not a finished map that keeps rows",
						   (unsigned) j);
		if (rhh_keeps_build(join->kind) && (build->flags & RHH_KEEP_UNMATCHED) == 0)
			return invalid(err, "the build side of join %u does not keep all rows", (unsigned) j);
		for (uint32_t i = 0; i < j && (build->flags & RHH_SHARE_MATCHES) != 0; i++)
			if (joins->joins[i].build == join->build)
				return invalid(err, "joins %u and %u have one build side, which shares matches",
							   (unsigned) i, (unsigned) j);
		for (uint32_t k = 0; k < build->n_keys; k++)
		{
			uint32_t	column = join->key_column[k];

			if (column >= n || !usable[column])
				return invalid(err, "key %u of join %u is not a column before it",
							   (unsigned) k, (unsigned) j);
			if (bytes[column] != build->column_bytes[build->key_column[k]])
				return invalid(err, "key %u of join %u has columns of different widths",
							   (unsigned) k, (unsigned) j);
		}
		for (uint32_t c = 0; c < build->n_columns; c++)
		{
			usable[n] = true;
			bytes[n++] = build->column_bytes[c];
		}
		if (join->condition != NULL &&
			check_condition(join, j, n, bytes, usable, err) != RHH_OK)
			return err->status;
		/* above the join */
		for (uint32_t c = 0; c < n - build->n_columns && !rhh_has_outer_columns(join->kind); c++)
			usable[c] = false;
		for (uint32_t c = 1; c <= build->n_columns; c++)
			usable[n - c] = rhh_has_build_columns(join->kind);
	}
	if (joins->program != NULL &&
		!rhh_program_check(joins->program, map->spec->n_columns, map->spec->column_bytes, &why))
		return invalid(err, "%s", why);
	for (uint32_t c = 0; c < map->spec->n_columns; c++)
	{
		if (joins->column[c] == RHH_COMPUTED && joins->program != NULL)
		{
			bool		computed = false;

			for (uint32_t r = 0; r < joins->program->n_results; r++)
				computed = computed || joins->program->results[r].column == c;
			if (!computed)
				return invalid(err, "column %u is computed by no program", (unsigned) c);
			continue;
		}
		if (joins->column[c] >= n || !usable[joins->column[c]])
			return invalid(err, "column %u is not one of the joins' output", (unsigned) c);
		if (bytes[joins->column[c]] != map->spec->column_bytes[c])
			return invalid(err, "column %u has another width than in the joins' output",
						   (unsigned) c);
	}
	if (joins->program == NULL)
		return RHH_OK;
	for (uint32_t r = 0; r < joins->program->n_results; r++)
		if (joins->column[joins->program->results[r].column] != RHH_COMPUTED)
			return invalid(err, "column %u is computed, and a column of a side",
						   (unsigned) joins->program->results[r].column);
	return RHH_OK;
}

/* Can rows of a build side without a match be asked for? */
static rhh_status
check_unmatched(const rhh_map_state *map, const rhh_batch *batch, rhh_error *err)
{
	const rhh_join_spec *joins = map->joins;
	const unsigned j = batch->unmatched - 1;

	if (j >= joins->n_joins || !rhh_returns_unmatched(joins->joins[j].kind))
		return invalid(err, "join %u has no rows without a match", j);
	if (map->in_flight)
		return invalid(err, "other batches are in flight");
	for (uint32_t before = map->unmatched; before < j; before++)
		if (rhh_returns_unmatched(joins->joins[before].kind))
			return invalid(err, "rows without a match of join %u come first", (unsigned) before);
	return RHH_OK;
}

/*
 * Can values of so many bytes be made as a load says?  It is not of an attribute before *least, which
 * becomes its own; constants have none.
 */
static bool
is_load(const rhh_page_layout *layout, const rhh_page_load *load, uint32_t bytes, uint32_t *least,
		const char **why)
{
	int			length;

	*why = "cannot be a constant";
	if (load->kind == RHH_PAGE_CONSTANT)
		return load->attribute == 0 && bytes <= 8;
	*why = "is not in the order of attributes";
	if (load->attribute >= layout->n_attributes || load->attribute < *least)
		return false;
	*least = load->attribute;
	length = layout->attributes[load->attribute].length;
	*why = "has no such order";
	if (load->order > RHH_PAGE_UNSIGNED ||
		(load->order != RHH_PAGE_AS_STORED &&
		 (load->kind != RHH_PAGE_VALUE || (uint32_t) length != bytes || (bytes != 4 && bytes != 8))))
		return false;
	*why = "cannot be made of its attribute";
	switch (load->kind)
	{
		case RHH_PAGE_DECIMAL:
			return length == -1 && bytes == 8 && load->scale <= 63;
		case RHH_PAGE_STRING:
			return length == -1 && bytes == 16 && load->blanks <= RHH_PAGE_DECLARED;
		case RHH_PAGE_STRING_OR_LONG:
			return length == -1 && bytes == 16 && load->blanks <= RHH_PAGE_NO_BLANKS;
		case RHH_PAGE_NOTHING:
			return bytes <= 8;
		case RHH_PAGE_VALUE:
			return length >= 1 && is_width((uint32_t) length) &&
				((uint32_t) length == bytes || ((uint32_t) length < bytes && bytes <= 8));
		default:
			return false;
	}
}

/* Has the filter of a layout's program all inputs that it reads, in filter_inputs? */
static bool
has_filter_inputs(const rhh_page_layout *layout, uint32_t n_columns)
{
	const rhh_program *program = &layout->program;

	for (uint32_t i = 0; program->has_filter && i <= program->filter; i++)
		if (rhh_op_reads_column(&program->ops[i]) &&
			(layout->filter_inputs >> (program->ops[i].a - n_columns) & 1) == 0)
			return false;
	return true;
}

/* The inputs and the program of a layout, whose results are added to columns, a bit for each. */
static rhh_status
check_layout_program(const rhh_page_layout *layout, uint32_t n_columns, const uint8_t *column_bytes,
					 uint64_t *columns, rhh_error *err)
{
	const rhh_program *program = &layout->program;
	uint8_t		bytes[RHH_MAX_COLUMNS + RHH_PAGE_INPUTS];
	uint32_t	least = 0;
	const char *why;

	memcpy(bytes, column_bytes, n_columns);
	for (uint32_t i = 0; i < layout->n_inputs; i++)
	{
		const rhh_page_load *input = &layout->inputs[i];

		if (input->kind != RHH_PAGE_CONSTANT && input->attribute >= layout->n_attributes)
			return invalid(err, "input %u has no attribute", (unsigned) i);
		bytes[n_columns + i] = (uint8_t) rhh_page_input_bytes(layout, i);
		if (!is_load(layout, input, bytes[n_columns + i], &least, &why))
			return invalid(err, "input %u %s", (unsigned) i, why);
	}
	if (program->n_ops == 0)
		return program->n_results == 0 && !program->has_filter ? RHH_OK :
			invalid(err, "a program has no operations");
	if (!rhh_program_check(program, n_columns + layout->n_inputs, bytes, &why))
		return invalid(err, "%s", why);
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (rhh_op_reads_column(&program->ops[i]) && program->ops[i].a < n_columns)
			return invalid(err, "the program of a layout reads what is no input");
	if (!has_filter_inputs(layout, n_columns))
		return invalid(err, "the filter of a layout reads an input that is not said to be its");
	for (uint32_t r = 0; r < program->n_results; r++)
	{
		const uint32_t c = program->results[r].column;

		if (c >= n_columns || (*columns >> c & 1) != 0)
			return invalid(err, "result %u has no column of its own", (unsigned) r);
		*columns |= (uint64_t) 1 << c;
	}
	return RHH_OK;
}

/* Can columns of these widths be made as a layout says? */
static rhh_status
check_layout(const rhh_page_layout *layout, uint32_t n_columns, const uint8_t *column_bytes,
			 rhh_error *err)
{
	uint64_t	columns = 0;
	uint32_t	least = 0;
	const char *why;

	if (layout->n_attributes > RHH_PAGE_ATTRIBUTES)
		return invalid(err, "columns cannot be made of %u attributes",
					   (unsigned) layout->n_attributes);
	for (uint32_t a = 0; a < layout->n_attributes; a++)
	{
		const rhh_page_attribute *attribute = &layout->attributes[a];

		if (attribute->align < 1 || attribute->align > 8 ||
			(attribute->align & (attribute->align - 1)) != 0 || attribute->length < -2 ||
			attribute->length == 0)
			return invalid(err, "attribute %u has no such length or alignment", (unsigned) a);
	}
	if (layout->n_inputs > RHH_PAGE_INPUTS || layout->program.n_results > RHH_MAX_RESULTS ||
		layout->n_loads > n_columns || layout->n_loads + layout->program.n_results != n_columns)
		return invalid(err, "%u of %u columns are made of attributes, and %u are computed of %u inputs",
					   (unsigned) layout->n_loads, (unsigned) n_columns,
					   (unsigned) layout->program.n_results, (unsigned) layout->n_inputs);
	for (uint32_t l = 0; l < layout->n_loads; l++)
	{
		const rhh_page_load *load = &layout->loads[l];

		if (load->column >= n_columns || (columns >> load->column & 1) != 0)
			return invalid(err, "load %u has no column of its own", (unsigned) l);
		columns |= (uint64_t) 1 << load->column;
		if (load->kind == RHH_PAGE_STRING_OR_LONG)
			return invalid(err, "column %u cannot be made of its attribute", (unsigned) load->column);
		if (!is_load(layout, load, column_bytes[load->column], &least, &why))
			return invalid(err, "column %u %s", (unsigned) load->column, why);
	}
	return check_layout_program(layout, n_columns, column_bytes, &columns, err);
}

/* Of a batch that has pages, what others do not have. */
static rhh_status
check_pages(const rhh_map_state *map, const rhh_batch *batch, uint32_t n_columns,
			const uint8_t *column_bytes, rhh_error *err)
{
	const rhh_page_layout *layout = (const void *) (batch->base + batch->layout_offset);
	uint32_t	values_offset[RHH_MAX_COLUMNS];
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];

	if (map->spec->max_page_bytes == 0)
		return invalid(err, "the map takes no pages");
	if (map->n_pages == 0 && !batch->cached)
		return invalid(err, "the device knows no memory with pages");
	if (batch->on_device)
		return invalid(err, "pages are not in the device's memory");
	if (batch->zero_columns != 0)
		return invalid(err, "of pages no column is known to be 0");
	if (batch->first_page > batch->end_page ||
		batch->end_page > (batch->cached ? RHH_MAX_SLABS * RHH_SLAB_PAGES : map->n_pages))
		return invalid(err, "there is no page %u", (unsigned) batch->end_page);
	if (batch->cached && batch->slots_offset == 0)
		return invalid(err, "pages of the cache have no slots");
	if (batch->slots_offset % 4 != 0 ||
		(batch->slots_offset != 0 &&
		 batch->slots_offset + (uint64_t) batch->n_pages * sizeof(uint32_t) > batch->used_bytes))
		return invalid(err, "the numbers of slots do not lie in the batch");
	if (batch->pages_offset % 64 != 0 || batch->layout_offset % 8 != 0)
		return invalid(err, "what says where rows are is not aligned");
	if (batch->pages_offset + (uint64_t) batch->n_pages * sizeof(rhh_page) > batch->used_bytes ||
		batch->layout_offset + (uint64_t) sizeof(rhh_page_layout) > batch->used_bytes)
		return invalid(err, "what says where rows are does not end in the batch");
	if (check_layout(layout, n_columns, column_bytes, err) != RHH_OK)
		return err->status;
	if (rhh_page_columns(layout, column_bytes, batch->n_rows, true, values_offset, nulls_offset) >
		map->spec->max_page_bytes)
		return invalid(err, "the rows of a batch's pages cannot have so many bytes");
	return RHH_OK;
}

rhh_status
rhh_check_submit(const rhh_map_state *map, const rhh_batch *batch, rhh_error *err)
{
	const rhh_map_spec *spec = map->spec;
	const rhh_join_spec *joins = map->joins;
	uint32_t	n_columns = joins != NULL ? joins->n_columns : spec->n_columns;
	const uint8_t *column_bytes = joins != NULL ? joins->column_bytes : spec->column_bytes;
	uint64_t	bitmap_bytes = ((uint64_t) batch->n_rows + 7) / 8;

	if (check_takes_rows(map, joins != NULL, err) != RHH_OK)
		return err->status;
	if (joins == NULL && map->had_joins)
		return invalid(err, "the map has no joins any more");
	if (joins != NULL && batch->unmatched < map->unmatched)
		return invalid(err, "no batch comes behind rows without a match");
	if (joins != NULL && batch->unmatched > 0)
	{
		if (check_unmatched(map, batch, err) != RHH_OK)
			return err->status;
		n_columns = 0;
	}
	else if (batch->n_rows < 1 || batch->n_rows > spec->max_batch_rows)
		return invalid(err, "a batch cannot have %u rows", (unsigned) batch->n_rows);
	if (batch->base == NULL || (uintptr_t) batch->base % 64 != 0)
		return invalid(err, "the batch is not aligned to 64 bytes");
	if (!batch->on_device && batch->used_bytes > spec->max_batch_bytes)
		return invalid(err, "a batch cannot have %u bytes", (unsigned) batch->used_bytes);
	if (batch->refused_offset < batch->used_bytes)
		return invalid(err, "the bitmap of refused rows overlaps the batch");
	if (joins != NULL)
	{
		if (batch->refused_rows < 1 || batch->refused_rows > spec->max_batch_rows)
			return invalid(err, "a batch cannot have room for %u refused rows",
						   (unsigned) batch->refused_rows);
		if (batch->refused_offset % 64 != 0)
			return invalid(err, "the room for refused rows is not aligned to 64 bytes");
	}
	if (batch->n_pages > 0 && (joins == NULL || batch->unmatched == 0))
		return check_pages(map, batch, n_columns, column_bytes, err);
	for (uint32_t c = 0; c < n_columns; c++)
	{
		uint64_t	values_end = batch->values_offset[c] +
			(uint64_t) batch->n_rows * column_bytes[c];

		if (batch->values_offset[c] % 64 != 0 || batch->nulls_offset[c] % 64 != 0)
			return invalid(err, "column %u is not aligned to 64 bytes", (unsigned) c);
		if (values_end > batch->used_bytes ||
			(batch->nulls_offset[c] != 0 &&
			 batch->nulls_offset[c] + bitmap_bytes > batch->used_bytes))
			return invalid(err, "column %u does not end in the batch", (unsigned) c);
	}
	return RHH_OK;
}

/* Has column c of the rows, of bytes bytes, a meaning for groups of this spec? */
static rhh_status
check_row_column(const rhh_map_spec *source, const rhh_row_column *column, uint32_t c,
				 uint32_t bytes, rhh_error *err)
{
	uint32_t	n_words = 0;	/* that are read from the first one on */

	switch (column->kind)
	{
		case RHH_ROW_KEY:
		case RHH_ROW_WORD:
			n_words = bytes > 8 ? 2 : 1;
			break;
		case RHH_ROW_ANY:
			n_words = bytes > 8 ? 3 : 2;
			break;
		case RHH_ROW_DIGIT1:
			n_words = 2;
			break;
		case RHH_ROW_DIGIT2:
			n_words = 3;
			break;
		case RHH_ROW_SET:
		case RHH_ROW_KEY_IS_NULL:
		case RHH_ROW_NULL:
			break;
		default:
			return invalid(err, "column %u is made in an unknown way", (unsigned) c);
	}
	if ((column->kind == RHH_ROW_KEY || column->kind == RHH_ROW_KEY_IS_NULL) &&
		column->key >= source->n_keys)
		return invalid(err, "column %u is made of no key", (unsigned) c);
	if ((n_words > 0 && (uint64_t) column->word + n_words > rhh_result_words(source)) ||
		column->null_word >= rhh_result_words(source))
		return invalid(err, "column %u is made of words behind the group's", (unsigned) c);
	if ((column->kind == RHH_ROW_SET && bytes != 1) ||
		((column->kind == RHH_ROW_DIGIT1 || column->kind == RHH_ROW_DIGIT2) && bytes != 8))
		return invalid(err, "column %u cannot have %u bytes", (unsigned) c, (unsigned) bytes);
	return RHH_OK;
}

rhh_status
rhh_check_feed(const rhh_map_state *map, const rhh_map_state *source, rhh_feed *feed,
			   rhh_error *err)
{
	const rhh_map_spec *spec = map->spec;
	const rhh_row_spec *rows = feed->rows;
	const uint8_t *bytes = map->joins != NULL ? map->joins->column_bytes : spec->column_bytes;
	const uint32_t n_columns = map->joins != NULL ? map->joins->n_columns : spec->n_columns;
	uint64_t	n_groups;

	feed->n_groups = 0;
	if (check_takes_rows(map, false, err) != RHH_OK)
		return err->status;
	if (source->cancelled)
		return cancelled(err);
	if ((map->joins != NULL ? map->joins->n_joins > 0 || (spec->flags & RHH_KEEP_ROWS) != 0 : map->had_joins) ||
		(source->spec->flags & RHH_KEEP_ROWS) != 0)
		return invalid(err, "groups are neither joined nor made of rows that are kept");
	if (source->device != map->device)
		return invalid(err, "the groups to feed are in another device");
	if (!source->finished)
		return invalid(err, "the groups to feed are not finished");
	if (source->n_orphans > 0)
		return invalid(err, "groups without a slot cannot be fed");
	if (rows == NULL)
		return invalid(err, "there is no description of the rows to feed");
	if (rows->n_sets > RHH_MAX_SETS || feed->set >= rows->n_sets)
		return invalid(err, "there is no set %u", (unsigned) feed->set);
	/* set numbers are in groups that the caller has made, not in those of a map */
	if (rows->n_parts > 0)
		return invalid(err, "groups of a map have no set numbers");
	if ((uint64_t) rows->first_set + rows->n_sets > UINT8_MAX + 1)
		return invalid(err, "set numbers from %u on do not fit a byte",
					   (unsigned) rows->first_set);
	if (feed->refused == NULL)
		return invalid(err, "there is no bitmap for rows that are refused");
	for (uint32_t c = 0; c < n_columns; c++)
		if (check_row_column(source->spec, &rows->columns[c], c, bytes[c], err) != RHH_OK)
			return err->status;
	if (feed->first_group >= source->n_groups)
		return RHH_OK;
	if (source->extracting)
	{
		err->status = RHH_BUSY;
		snprintf(err->message, sizeof(err->message), "groups are being extracted");
		return RHH_BUSY;
	}
	n_groups = source->n_groups - feed->first_group;
	feed->n_groups = n_groups < spec->max_batch_rows ?
		(uint32_t) n_groups : spec->max_batch_rows;
	return RHH_OK;
}

/* Has a state one integer that a condition can look at? */
static bool
has_integer(const rhh_map_spec *spec, uint32_t state)
{
	return state < spec->n_states &&
		(spec->states[state].op == RHH_COUNT || spec->states[state].op == RHH_SUM_I64 ||
		 spec->states[state].op == RHH_SUM_I128 || spec->states[state].op == RHH_MIN_I64 ||
		 spec->states[state].op == RHH_MAX_I64);
}

rhh_status
rhh_check_filter(const rhh_map_state *map, const rhh_group_condition *conditions, uint32_t n,
				 rhh_error *err)
{
	const rhh_map_spec *spec = map->spec;

	if (map->cancelled)
		return cancelled(err);
	if (map->finishing)
		return invalid(err, "the map is being finished already");
	if (n > RHH_MAX_CONDITIONS)
		return invalid(err, "groups cannot have %u conditions", (unsigned) n);
	for (uint32_t c = 0; c < n; c++)
	{
		if (!has_integer(spec, conditions[c].state) || conditions[c].comparison < RHH_EQUAL ||
			conditions[c].comparison > RHH_GREATER_OR_EQUAL)
			return invalid(err, "condition %u compares nothing that there is", (unsigned) c);
		if (conditions[c].except_state >= 0 &&
			(!has_integer(spec, (uint32_t) conditions[c].except_state) ||
			 rhh_state_words(spec, (uint32_t) conditions[c].except_state) != 1))
			return invalid(err, "condition %u excepts nothing that there is", (unsigned) c);
	}
	return RHH_OK;
}

rhh_status
rhh_check_finish(const rhh_map_state *map, rhh_error *err)
{
	if (map->cancelled)
		return cancelled(err);
	if (map->finishing)
		return invalid(err, "the map is being finished already");
	if (map->in_flight)
		return invalid(err, "batches are in flight");
	if (map->joins != NULL && map->unmatched < rhh_last_unmatched(map->joins))
		return invalid(err, "rows without a match have not been asked for");
	return RHH_OK;
}

rhh_status
rhh_check_extract(const rhh_map_state *map, const rhh_result *result, rhh_error *err)
{
	if (map->cancelled)
		return cancelled(err);
	if (!map->finished)
		return invalid(err, "the map is not finished");
	if ((map->spec->flags & RHH_KEEP_ROWS) != 0)
		return invalid(err, "a map that keeps rows has no groups");
	if (map->extracting)
		return invalid(err, "groups are being extracted");
	if (result->words == NULL || result->capacity_groups < 1)
		return invalid(err, "the result has no room for a group");
	return RHH_OK;
}

rhh_status
rhh_check_seek(const rhh_map_state *map, uint64_t group, rhh_error *err)
{
	if (map->cancelled)
		return cancelled(err);
	if (!map->finished)
		return invalid(err, "the map is not finished");
	if ((map->spec->flags & RHH_KEEP_ROWS) != 0)
		return invalid(err, "a map that keeps rows has no groups");
	if (map->extracting)
		return invalid(err, "groups are being extracted");
	if (map->n_orphans > 0)
		return invalid(err, "groups without a slot come out once");
	if (group > map->n_groups)
		return invalid(err, "there are not so many groups");
	return RHH_OK;
}
