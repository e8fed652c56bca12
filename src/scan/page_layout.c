/*-------------------------------------------------------------------------
 *
 * page_layout.c
 *		Says how a device makes a feed's columns of the table's pages (gpu/rhh_pages.h).
 *
 * What heap_feed.c does with a page a device does by itself, if this file can say how.  A column that
 * is stored as it is fed, or nearly so, is a load.  WHERE, and what is computed, become a program
 * (vector_program.c), whose inputs are made of attributes, too.  So the layout has everything, and the
 * session takes back what the device could not do: pages with values or rows that it does not
 * understand, or for which core might raise an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "nodes/makefuncs.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "scan/heap_state.h"

/* What a layout is made of. */
typedef struct LayoutContext
{
	HeapFeed   *heap;
	const Feed *feed;
	rhh_page_layout *layout;
	const char *why;			/* it cannot be made */
} LayoutContext;

static bool
cannot(LayoutContext *cx, const char *why)
{
	cx->why = why;
	return false;
}

/* ---------- columns that are loaded ---------- */

/* A constant, as the key has where there is none: a small integer.  False: it is another one. */
static bool
layout_constant(const HeapColumn *column, const FeedColumn *fed, rhh_page_load *load)
{
	load->kind = RHH_PAGE_CONSTANT;
	load->not_null = true;
	load->parameter = column->constant;
	return column->is_constant && fed->order == ORDER_OF_BITS && fed->bytes <= sizeof(int64);
}

/* A string; false: most are too long by the statistics, if there are any, so that most pages would come back. */
static bool
layout_string(Relation rel, const HeapLoad *from, rhh_page_load *load)
{
	/* with a header of one byte */
	if (get_attavgwidth(RelationGetRelid(rel), from->attribute + 1) > RHH_PAGE_STRING_BYTES + 1)
		return false;

	load->kind = RHH_PAGE_STRING;
	load->parameter = from->parameter;
	load->blanks = from->string == DERIVED_BPCHAR	? RHH_PAGE_DECLARED :
		from->string == DERIVED_UNPADDED ? RHH_PAGE_NO_BLANKS : RHH_PAGE_ALL_COUNT;
	return from->string == DERIVED_STRING || from->string == DERIVED_BPCHAR ||
		from->string == DERIVED_UNPADDED;
}

/* How an attribute becomes a column of a feed; false: it is not simply loaded. */
static bool
layout_attribute(Relation rel, const HeapColumns *columns, const HeapColumn *column,
				 const FeedColumn *fed, rhh_page_load *load)
{
	const Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), column->attribute);
	const bool	stored = column->load >= 0 && !column->encode && !column->hash;

	load->kind = RHH_PAGE_VALUE;
	switch (fed->step)
	{
		case FEED_BEFORE:
			return stored && layout_string(rel, &columns->set.loads[column->load], load);
		case FEED_4_ORDERED:
		case FEED_8_ORDERED:
			load->order = fed->order == ORDER_OF_EQUALITY ? RHH_PAGE_EQUALITY :
				fed->order == ORDER_OF_FLOATS ? RHH_PAGE_FLOATS : RHH_PAGE_UNSIGNED;
			return stored && att->attlen == fed->bytes;
		case FEED_TRUTH:
		case FEED_1_BYTE:
		case FEED_2_BYTES:
		case FEED_4_BYTES:
		case FEED_8_BYTES:
		case FEED_16_BYTES:
			/* by its bytes */
			return fed->order == ORDER_OF_BITS && stored && att->attlen == fed->bytes;
		case FEED_WIDENED:
			return (column->info->vector == VECTOR_INT2 || column->info->vector == VECTOR_INT4) &&
				att->attlen > 0 && att->attlen < fed->bytes;
		case FEED_LIMB:
			load->kind = RHH_PAGE_DECIMAL;
			load->scale = column->scale;
			return column->scale >= 0 && column->scale <= 63 &&
				column->limb_of < 0 && GPURHH_DECIMAL_LIMBS(fed->parameter) == 1;
		default:
			return false;
	}
}

/* Adds the load of column c; false: it is not simply loaded. */
static bool
add_load(LayoutContext *cx, int c)
{
	rhh_page_layout *layout = cx->layout;
	const HeapColumns *fed = &cx->heap->fed;
	const HeapColumn *column = &fed->columns[c];
	rhh_page_load load = {.column = c};
	uint32		l = layout->n_loads;

	if (column->is_constant)
	{
		if (!layout_constant(column, &cx->feed->columns[c], &load))
			return false;
	}
	else
	{
		Relation	rel = cx->heap->scan->ss.ss_currentRelation;

		if (column->attribute < 0 || column->attribute >= RHH_PAGE_ATTRIBUTES)
			return false;
		load.attribute = column->attribute;
		load.not_null = TupleDescAttr(RelationGetDescr(rel), column->attribute)->attnotnull;
		if (!layout_attribute(rel, fed, column, &cx->feed->columns[c], &load))
			return false;
	}
	for (; l > 0 && layout->loads[l - 1].attribute > load.attribute; l--)
		layout->loads[l] = layout->loads[l - 1];
	layout->loads[l] = load;
	layout->n_loads++;
	return true;
}

/* ---------- what is computed ---------- */

/* The number of an input of the program, and of as many after it that are constants; -1: there are too many. */
static int
add_input(LayoutContext *cx, const rhh_page_load *input, int n_zeros)
{
	rhh_page_layout *layout = cx->layout;

	for (uint32 i = 0; i < layout->n_inputs; i++)
	{
		const rhh_page_load *other = &layout->inputs[i];

		if (other->attribute == input->attribute && other->kind == input->kind &&
			other->scale == input->scale && other->blanks == input->blanks)
			return i;
	}
	if (layout->n_inputs + 1 + n_zeros > RHH_PAGE_INPUTS)
		return -1;
	layout->inputs[layout->n_inputs] = *input;
	for (int i = 1; i <= n_zeros; i++)
		layout->inputs[layout->n_inputs + i] = (rhh_page_load){.kind = RHH_PAGE_CONSTANT};
	layout->n_inputs += 1 + n_zeros;
	return layout->n_inputs - 1 - n_zeros;
}

/* Finds an input for an expression, see vector.c. */
static bool
find_input(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	LayoutContext *cx = arg;
	Form_pg_attribute att = gpurhh_heap_attribute(cx->heap, expr);
	rhh_page_load input;
	int			n_zeros = 0;
	int			digits;
	int			scale;
	int			number;

	if (att == NULL || att->attnum > RHH_PAGE_ATTRIBUTES)
		return false;
	input = (rhh_page_load){.attribute = att->attnum - 1, .kind = RHH_PAGE_VALUE};
	if (only_null)
	{
		input.kind = RHH_PAGE_NOTHING;
		*type = VECTOR_ANY;
	}
	else if (gpurhh_vector_type(att->atttypid, type))
	{
		if (*type == VECTOR_STRING || *type == VECTOR_BPCHAR)
		{
			input.kind = RHH_PAGE_STRING_OR_LONG;
			input.blanks = *type == VECTOR_BPCHAR ? RHH_PAGE_NO_BLANKS : RHH_PAGE_ALL_COUNT;
		}
	}
	else if (gpurhh_decimal_type(expr, &digits, &scale) && digits <= GPURHH_DECIMAL128_DIGITS &&
			 scale >= 0 && scale <= 63)
	{
		input.kind = RHH_PAGE_DECIMAL;
		input.scale = scale;
		*type = digits <= GPURHH_DECIMAL_DIGITS ? VECTOR_DECIMAL : VECTOR_DECIMAL128;
		/* what has more than one limb comes back with its page */
		n_zeros = gpurhh_decimal_limbs(digits) - 1;
	}
	else
		return false;
	number = add_input(cx, &input, n_zeros);
	*column = cx->heap->fed.n + number;
	return number >= 0;
}

/* what: "the filter" or "an expression" */
static bool
compile(LayoutContext *cx, Expr *expr, const char *what, uint8 *number, VectorType *type)
{
	const char *why;
	VectorExpr *compiled = gpurhh_vector_compile(expr, &cx->heap->scan->ss.ps, 1, find_input, cx, &why);

	if (compiled != NULL && gpurhh_vector_program(compiled, &cx->layout->program, true, number, type, &why))
		return true;
	return cannot(cx, psprintf("%s %s", what, why));
}

/* Has the program drop the rows that do not pass WHERE. */
static bool
add_filter(LayoutContext *cx)
{
	List	   *quals = cx->heap->scan->ss.ps.plan->qual;
	rhh_program *program = &cx->layout->program;
	VectorType	type;

	if (quals == NIL)
		return true;
	if (!compile(cx, list_length(quals) == 1 ? linitial(quals) : make_ands_explicit(quals),
				 "the filter", &program->filter, &type))
		return false;
	program->has_filter = true;
	return true;
}

/* Has the program compute column c. */
static bool
add_result(LayoutContext *cx, int c)
{
	const HeapFeed *heap = cx->heap;
	const HeapColumn *column = &heap->fed.columns[c];
	rhh_program *program = &cx->layout->program;
	const char *why;
	uint8		number;
	VectorType	type;

	if (column->later)
		return cannot(cx, "a column is made of two others");
	/* which would have to be checked to be one limb */
	if (column->encoding == GPU_ENC_DECIMAL && column->computed && cx->feed->columns[c].is_key)
		return cannot(cx, "a numeric is computed to group by");
	if (!compile(cx, list_nth(heap->exprs, heap->given[c].attribute), "an expression", &number, &type))
		return false;
	if (!gpurhh_program_store(program, number, type, heap->given[c], c, &why))
		return cannot(cx, psprintf("a column %s", why));
	return true;
}

/* Puts inputs into the order of their attributes, and says which of them the filter reads. */
static void
finish_inputs(LayoutContext *cx)
{
	rhh_page_layout *layout = cx->layout;
	rhh_program *program = &layout->program;
	const int	n_columns = cx->heap->fed.n;
	rhh_page_load inputs[RHH_PAGE_INPUTS];
	uint8		place[RHH_PAGE_INPUTS];

	memcpy(inputs, layout->inputs, sizeof(inputs));
	for (uint32 i = 0; i < layout->n_inputs; i++)
	{
		place[i] = 0;
		for (uint32 j = 0; j < layout->n_inputs; j++)
			place[i] += inputs[j].attribute < inputs[i].attribute ||
				(inputs[j].attribute == inputs[i].attribute && j < i);
		layout->inputs[place[i]] = inputs[i];
	}
	for (uint32 i = 0; i < program->n_ops; i++)
	{
		rhh_op	   *op = &program->ops[i];

		if (!rhh_op_reads_column(op))
			continue;
		op->a = n_columns + place[op->a - n_columns];
		if (program->has_filter && i <= program->filter)
			layout->filter_inputs |= UINT32_C(1) << (op->a - n_columns);
	}
}

/* ---------- attributes ---------- */

/* This part of a column's values is few. */
#define FEW_NULLS 0.05

/* Do more than a few rows have a NULL, of any column, and so a longer header, by the statistics? */
static bool
has_nulls(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	/* with so few columns there is room for that in any header */
	if (SizeofHeapTupleHeader + BITMAPLEN(desc->natts) <= MAXALIGN(SizeofHeapTupleHeader))
		return false;
	for (int a = 0; a < desc->natts; a++)
	{
		HeapTuple	stats = TupleDescAttr(desc, a)->attnotnull ? NULL :
			SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(rel)), Int16GetDatum(a + 1), BoolGetDatum(false));
		bool		many;

		if (!HeapTupleIsValid(stats))
			continue;
		many = ((Form_pg_statistic) GETSTRUCT(stats))->stanullfrac > FEW_NULLS;
		ReleaseSysCache(stats);
		if (many)
			return true;
	}
	return false;
}

/*
 * How many bytes of a tuple, with its header, have the layout's attributes, by the statistics of those of no
 * fixed width; 0: there are none.
 */
static uint32
prefix_bytes(Relation rel, const rhh_page_layout *layout)
{
	const int	n_bits = has_nulls(rel) ? RelationGetDescr(rel)->natts : 0;
	Size		bytes = MAXALIGN(SizeofHeapTupleHeader + BITMAPLEN(n_bits));

	for (uint32 a = 0; a < layout->n_attributes; a++)
	{
		const rhh_page_attribute *attribute = &layout->attributes[a];
		int32		width = attribute->length;

		if (width < 0)
		{
			width = get_attavgwidth(RelationGetRelid(rel), a + 1);
			if (width <= 0)
				return 0;
			/* most are no longer; the average is rounded down */
			bytes += width + 1 + (width > 8 ? width / 4 : 0);
		}
		else
			bytes = TYPEALIGN(attribute->align, bytes) + width;
	}
	return Min(bytes, BLCKSZ);
}

/* The attributes from the first on, up to the last one that is needed. */
static void
layout_attributes(Relation rel, rhh_page_layout *layout)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (uint32 l = 0; l < layout->n_loads; l++)
	{
		if (layout->loads[l].kind != RHH_PAGE_CONSTANT)
			layout->n_attributes = Max(layout->n_attributes, layout->loads[l].attribute + 1);
	}
	for (uint32 i = 0; i < layout->n_inputs; i++)
	{
		if (layout->inputs[i].kind != RHH_PAGE_CONSTANT)
			layout->n_attributes = Max(layout->n_attributes, layout->inputs[i].attribute + 1);
	}
	for (uint32 a = 0; a < layout->n_attributes; a++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, a);
		bool		missing_null;

		(void) getmissingattr(desc, a + 1, &missing_null);
		layout->attributes[a] = (rhh_page_attribute){
			.length = att->attlen,
			.align = att_align_nominal(1, att->attalign),
			.missing_null = missing_null
		};
	}
	rhh_page_find_offsets(layout);
	layout->prefix_bytes = prefix_bytes(rel, layout);
}

/* Can a device read pages of the table at all? */
static bool
can_read(LayoutContext *cx)
{
#ifdef WORDS_BIGENDIAN
	return cannot(cx, "the machine is big-endian");
#endif
	if (BLCKSZ != RHH_PAGE_BYTES)
		return cannot(cx, "pages have another size than 8 kB");
	if (RelationUsesLocalBuffers(cx->heap->scan->ss.ss_currentRelation))
		return cannot(cx, "the table is temporary");
	if (cx->feed->candidates != NULL || cx->heap->fed.n != cx->feed->n_columns)
		return cannot(cx, "there are columns for the session alone");
	return true;
}

static bool
make_layout(LayoutContext *cx)
{
	/* the filter comes first, so that no more is computed for rows that it drops */
	if (!can_read(cx) || !add_filter(cx))
		return false;
	for (int c = 0; c < cx->heap->fed.n; c++)
	{
		if (!add_load(cx, c) && !add_result(cx, c))
			return false;
	}
	finish_inputs(cx);
	layout_attributes(cx->heap->scan->ss.ss_currentRelation, cx->layout);
	return true;
}

/*
 * Says how a device makes the feed's columns of the table's pages; false: it cannot, and *why says
 * why.
 */
bool
gpurhh_heap_feed_layout(HeapFeed *heap, const Feed *feed, rhh_page_layout *layout, const char **why)
{
	LayoutContext cx = {.heap = heap, .feed = feed, .layout = layout};
	MemoryContext temporary = AllocSetContextCreate(CurrentMemoryContext, "GpuHashAgg page layout",
													ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(temporary);
	bool		good;

	memset(layout, 0, sizeof(rhh_page_layout));
	good = make_layout(&cx);
	MemoryContextSwitchTo(old);
	if (!good)
		*why = pstrdup(cx.why);
	MemoryContextDelete(temporary);
	return good;
}
