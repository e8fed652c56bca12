/*
 * rhh_page_plan.cuh
 *		What the kernel that reads pages is told of a layout (rhh_pages.h): each attribute once, what becomes
 *		of it, and the program's operations with places for their results.
 *
 * A tuple is walked once for what is needed, in the order of its attributes, whether that becomes a column, an
 * input of the program, or both.  The program has *cells*, of 16 bytes each, for inputs, constants and
 * results; a cell is used again when nothing needs what it has any more, so that a thread's cells stay in the
 * first level of cache, and what is only a column's needs none.  Constants keep theirs, which are filled once for
 * all rows that a thread has.
 *
 * There are two passes: of a row that may be dropped only what the filter needs is made and computed first, and for those
 * that are left all that rows need.
 *
 * A filter is cut into what it connects by AND.  Where that says that a value is in a *range* no operation is
 * needed, and the first value that is not ends the row; the other *conditions* are computed, in their order.
 */
#ifndef RHH_PAGE_PLAN_CUH
#define RHH_PAGE_PLAN_CUH

#include "rhh_pages.h"

#define RHH_PAGE_CELLS	64u
#define RHH_PAGE_STEPS	96u
#define RHH_NO_CELL		UINT8_MAX
#define RHH_NO_COLUMN	UINT8_MAX
#define RHH_NO_RANGE	UINT8_MAX
#define RHH_PAGE_RANGES	8u
#define RHH_PAGE_CONDITIONS	16u

#define RHH_PASS_FILTER	1
#define RHH_PASS_ROW	2

/* A value that is made of an attribute.  This and the next are aligned so that they are loaded at once. */
struct alignas(16) rhh_page_fetch
{
	rhh_page_load load;			/* its column: RHH_NO_COLUMN if it becomes none */
	uint8_t		cell;			/* RHH_NO_CELL */
	uint8_t		bytes;			/* of the column, or the input */
	uint8_t		passes;
	uint8_t		range;			/* in which the filter wants it; RHH_NO_RANGE */
};

/* An operation. */
struct alignas(8) rhh_page_step
{
	uint8_t		code;
	uint8_t		to;				/* the cell of its result, or RHH_NO_CELL; ... */
	uint8_t		a;				/* ... and those of operands */
	uint8_t		b;
	uint8_t		c;
	uint8_t		passes;
	uint8_t		column;			/* where its result is stored at once; RHH_NO_COLUMN */
	bool		is_limb;		/* of a number, but the first, and stored at once: it is noted whether it is not 0 */
};

struct rhh_page_plan
{
	uint8_t		n_fetches;
	uint8_t		n_filter_fetches;	/* of these, up to the last one that the filter needs */
	uint8_t		n_attributes;
	uint8_t		last_known;
	uint8_t		n_steps;
	uint8_t		n_filter_steps; /* which come first */
	uint8_t		n_constants;
	uint8_t		n_results;
	bool		all_plain;		/* all there is are columns that are plain ... */
	uint8_t		plain_attributes;	/* ... in a tuple without NULLs that has so many attributes, ... */
	uint16_t	plain_bytes;	/* ... and so many bytes of them */
	bool		has_filter;
	uint8_t		n_ranges;
	uint8_t		n_conditions;
	uint8_t		condition[RHH_PAGE_CONDITIONS]; /* of the filter: their cells */
	uint64_t	limb_columns;	/* of steps that are limbs */
	rhh_page_fetch fetches[RHH_MAX_COLUMNS];
	rhh_page_attribute attributes[RHH_PAGE_ATTRIBUTES];
	rhh_page_step steps[RHH_PAGE_STEPS];
	struct
	{
		int64_t		least;
		int64_t		greatest;
	}			ranges[RHH_PAGE_RANGES];
	uint8_t		constant_cell[RHH_MAX_CONSTANTS];
	uint64_t	null_constants; /* a bit for each cell of one */
	uint64_t	constants[RHH_MAX_CONSTANTS][2];
	struct
	{
		uint8_t		cell;
		uint8_t		column;
	}			results[RHH_MAX_RESULTS];	/* that are stored when all has been computed */
};

/* Is the result a limb of a number, but the first one? */
static bool
rhh_is_high_limb(uint8_t code)
{
	return code == RHH_OP_LIMB_2_OF_2 || code == RHH_OP_LIMB_2_OF_3 || code == RHH_OP_LIMB_3_OF_3;
}

/* How many operands an operation has. */
static uint32_t
rhh_n_operands(uint8_t code)
{
#define RHH_HAS_N 1
#define RHH_HAS_W 1
#define RHH_HAS__ 0
#define RHH_COUNT_STRICT(name, r, a, b) 1 + RHH_HAS_##b,
#define RHH_COUNT_LOGIC(name, r, a, b, c) 1 + RHH_HAS_##b + RHH_HAS_##c,
	static const uint8_t n[] = {
		0, 0, 0, 0, 0, RHH_OPERATIONS(RHH_COUNT_STRICT) RHH_LOGIC(RHH_COUNT_LOGIC)
	};

	return n[code];
#undef RHH_HAS_N
#undef RHH_HAS_W
#undef RHH_HAS__
#undef RHH_COUNT_STRICT
#undef RHH_COUNT_LOGIC
}

/*
 * What rhh_plan_program() knows of a program: the order of its operations, which passes need a value, and the last
 * one in that order that does.
 */
struct rhh_page_needs
{
	uint8_t		order[RHH_MAX_OPS]; /* what the filter needs comes first */
	uint32_t	n_ordered;
	uint8_t		passes[RHH_MAX_OPS];
	uint8_t		input_passes[RHH_PAGE_INPUTS];
	uint32_t	last[RHH_MAX_OPS];	/* 0: none does; the first one has no operands that are computed */
	uint32_t	input_last[RHH_PAGE_INPUTS];
	uint8_t		column[RHH_MAX_OPS];	/* where an operation's result is stored at once; RHH_NO_COLUMN */
};

/* An input is to be in a range. */
struct rhh_input_range
{
	uint32_t	input;
	int64_t		least;
	int64_t		greatest;
};

/* What the filter of a program asks for. */
struct rhh_page_filter
{
	uint8_t		conditions[RHH_PAGE_CONDITIONS];	/* operations that are to be true */
	uint32_t	n_conditions;
	rhh_input_range ranges[RHH_PAGE_CONDITIONS];	/* of no more than RHH_PAGE_RANGES inputs */
	uint32_t	n_ranges;
};

/* a / b, rounded down, of b > 0 */
static int64_t
rhh_floor_quotient(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Does an operation say that an input, or as a timestamp a date, compares with a constant?  Then *range says that. */
static bool
rhh_find_range(const rhh_program *program, uint32_t n_columns, uint32_t i, rhh_input_range *range)
{
	const int64_t day = INT64_C(86400000000);
	const rhh_op *op = &program->ops[i];
	const bool	constant_first = program->ops[op->a].code == RHH_OP_CONSTANT;
	const rhh_op *constant = &program->ops[constant_first ? op->a : op->b];
	const rhh_op *value = &program->ops[constant_first ? op->b : op->a];
	const bool	date = value->code == RHH_OP_DATE_AS_TIMESTAMP;
	int64_t		c;

	if ((op->code != RHH_OP_EQ_INT8 && op->code != RHH_OP_LT_INT8 && op->code != RHH_OP_LE_INT8) ||
		constant->code != RHH_OP_CONSTANT || program->null_constant[constant->a] != 0)
		return false;
	if (date)
		value = &program->ops[value->a];
	c = (int64_t) program->constants[constant->a][0];
	/* the ends of time, and what is not less or greater than any number */
	if (value->code != RHH_OP_COLUMN || c == INT64_MIN || c == INT64_MAX)
		return false;
	range->input = value->a - n_columns;
	range->least = op->code == RHH_OP_EQ_INT8 || constant_first ? c + (op->code == RHH_OP_LT_INT8) : INT64_MIN;
	range->greatest = op->code == RHH_OP_EQ_INT8 || !constant_first ? c - (op->code == RHH_OP_LT_INT8) : INT64_MAX;
	/* days whose beginning is */
	if (date && range->least != INT64_MIN)
		range->least = -rhh_floor_quotient(-range->least, day);
	if (date && range->greatest != INT64_MAX)
		range->greatest = rhh_floor_quotient(range->greatest, day);
	return true;
}

/* What an operation connects by AND, in order; false: it is more than there is room for. */
static bool
rhh_find_conjuncts(const rhh_program *program, uint32_t i, uint8_t *conjuncts, uint32_t *n)
{
	if (program->ops[i].code == RHH_OP_AND)
		return rhh_find_conjuncts(program, program->ops[i].a, conjuncts, n) &&
			rhh_find_conjuncts(program, program->ops[i].b, conjuncts, n);
	if (*n == RHH_PAGE_CONDITIONS)
		return false;
	conjuncts[(*n)++] = (uint8_t) i;
	return true;
}

/* May one of these be bad? */
static bool
rhh_conditions_may_be_bad(const rhh_program *program, const uint8_t *conditions, uint32_t n)
{
	rhh_program part = *program;
	bool		needed[RHH_MAX_OPS] = {false};

	for (uint32_t i = 0; i < n; i++)
		needed[conditions[i]] = true;
	for (uint32_t i = program->n_ops; i-- > 0;)
	{
		const rhh_op *op = &program->ops[i];
		const uint8_t operands[] = {op->a, op->b, op->c};

		if (!needed[i])
			part.ops[i].code = RHH_OP_COLUMN;
		for (uint32_t o = 0; needed[i] && o < rhh_n_operands(op->code); o++)
			needed[operands[o]] = true;
	}
	return rhh_program_may_be_bad(&part);
}

static void
rhh_cut_filter(const rhh_program *program, uint32_t n_columns, rhh_page_filter *filter)
{
	uint8_t		conjuncts[RHH_PAGE_CONDITIONS];
	rhh_input_range found[RHH_PAGE_CONDITIONS];
	bool		is_range[RHH_PAGE_CONDITIONS];
	uint32_t	n = 0;
	uint32_t	inputs = 0;		/* a bit for each that has a range */
	bool		in_order;

	memset(filter, 0, sizeof(*filter));
	if (!program->has_filter)
		return;
	if (!rhh_find_conjuncts(program, program->filter, conjuncts, &n))
	{
		filter->conditions[filter->n_conditions++] = program->filter;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		is_range[i] = rhh_find_range(program, n_columns, conjuncts[i], &found[i]);
		if (!is_range[i])
			filter->conditions[filter->n_conditions++] = conjuncts[i];
	}
	/* what comes behind a condition that is bad does not matter any more */
	in_order = rhh_conditions_may_be_bad(program, filter->conditions, filter->n_conditions);
	filter->n_conditions = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t with = is_range[i] ? inputs | 1u << found[i].input : inputs;

		if (!is_range[i] || (in_order && filter->n_conditions > 0) ||
			__builtin_popcount(with) > (int) RHH_PAGE_RANGES)
			filter->conditions[filter->n_conditions++] = conjuncts[i];
		else
		{
			filter->ranges[filter->n_ranges++] = found[i];
			inputs = with;
		}
	}
}

static void
rhh_find_passes(const rhh_program *program, const rhh_page_filter *filter, uint32_t n_columns, rhh_page_needs *needs)
{
	for (uint32_t i = 0; i < filter->n_conditions; i++)
		needs->passes[filter->conditions[i]] |= RHH_PASS_FILTER;
	for (uint32_t r = 0; r < filter->n_ranges; r++)
		needs->input_passes[filter->ranges[r].input] |= RHH_PASS_FILTER;
	for (uint32_t r = 0; r < program->n_results; r++)
		needs->passes[program->results[r].op] |= RHH_PASS_ROW;
	for (uint32_t i = program->n_ops; i-- > 0;)
	{
		const rhh_op *op = &program->ops[i];
		const uint8_t operands[] = {op->a, op->b, op->c};

		for (uint32_t o = 0; o < rhh_n_operands(op->code); o++)
			needs->passes[operands[o]] |= needs->passes[i];
		if (rhh_op_reads_column(op))
			needs->input_passes[op->a - n_columns] |= needs->passes[i];
	}
}

static void
rhh_find_needs(const rhh_program *program, const rhh_page_filter *filter, uint32_t n_columns, rhh_page_needs *needs)
{
	memset(needs, 0, sizeof(*needs));
	rhh_find_passes(program, filter, n_columns, needs);
	for (uint32_t filters = 2; filters-- > 0;)
		for (uint32_t i = 0; i < program->n_ops; i++)
			if (needs->passes[i] != 0 && ((needs->passes[i] & RHH_PASS_FILTER) != 0) == (filters != 0))
				needs->order[needs->n_ordered++] = (uint8_t) i;
	memset(needs->column, RHH_NO_COLUMN, sizeof(needs->column));
	for (uint32_t r = 0; r < program->n_results; r++)
	{
		const uint8_t i = program->results[r].op;
		const uint8_t code = program->ops[i].code;
		const bool	is_step = code != RHH_OP_COLUMN && code != RHH_OP_CONSTANT && code != RHH_OP_CONSTANT128;

		/* a row has no place yet while it is filtered; and of two columns that are the same each is stored later */
		if (is_step && needs->passes[i] == RHH_PASS_ROW && needs->column[i] == RHH_NO_COLUMN && needs->last[i] == 0)
			needs->column[i] = program->results[r].column;
		else
		{
			needs->column[i] = RHH_NO_COLUMN;
			needs->last[i] = RHH_MAX_OPS;
		}
	}
	/* conditions are looked at when all of them have been computed */
	for (uint32_t i = 0; i < filter->n_conditions; i++)
		needs->last[filter->conditions[i]] = RHH_MAX_OPS;
	for (uint32_t at = needs->n_ordered; at-- > 0;)
	{
		const uint8_t i = needs->order[at];
		const rhh_op *op = &program->ops[i];
		const uint8_t operands[] = {op->a, op->b, op->c};

		for (uint32_t o = 0; o < rhh_n_operands(op->code); o++)
			needs->last[operands[o]] = ::max(needs->last[operands[o]], at);
		if (rhh_op_reads_column(op))
		{
			/* what only passes an input on is the same value */
			const uint32_t last = op->code == RHH_OP_COLUMN ? ::max(needs->last[i], at) : at;

			needs->input_last[op->a - n_columns] = ::max(needs->input_last[op->a - n_columns], last);
		}
	}
}

/*
 * Adds a value to what is made of tuples, or to one that is made of the same attribute in the same way.  One that
 * becomes two columns is made twice.
 */
static rhh_page_fetch *
rhh_add_fetch(rhh_page_plan *plan, const rhh_page_load *load, uint32_t bytes, bool is_column)
{
	const bool	constant = load->kind == RHH_PAGE_CONSTANT;
	/* integers are stored by their low bytes */
	const bool	any_bytes = load->kind == RHH_PAGE_VALUE && load->order == RHH_PAGE_AS_STORED;
	uint32_t	n = plan->n_fetches;
	rhh_page_fetch *f;

	for (uint32_t i = 0; i < n && !constant; i++)
	{
		f = &plan->fetches[i];
		if (f->load.attribute == load->attribute && f->load.kind == load->kind &&
			f->load.scale == load->scale && f->load.order == load->order &&
			f->load.blanks == load->blanks && f->load.parameter == load->parameter &&
			(any_bytes || f->bytes == bytes) && !(is_column && f->load.column != RHH_NO_COLUMN))
		{
			f->bytes = (uint8_t)::max((uint32_t) f->bytes, bytes);
			f->load.not_null |= load->not_null;
			return f;
		}
	}
	if (n == RHH_MAX_COLUMNS)
		return NULL;
	/* in the order of attributes, and then constants */
	while (n > 0 && !constant && (plan->fetches[n - 1].load.kind == RHH_PAGE_CONSTANT ||
								  plan->fetches[n - 1].load.attribute > load->attribute))
		n--;
	f = &plan->fetches[n];
	memmove(f + 1, f, (plan->n_fetches - n) * sizeof(*f));
	plan->n_fetches++;
	f->load = *load;
	f->load.column = RHH_NO_COLUMN;
	f->cell = RHH_NO_CELL;
	f->range = RHH_NO_RANGE;
	f->bytes = (uint8_t) bytes;
	f->passes = 0;
	return f;
}

/* Takes a cell that is free, a bit of *used; RHH_NO_CELL: there is none. */
static uint8_t
rhh_take_cell(uint64_t *used)
{
	for (uint8_t cell = 0; cell < RHH_PAGE_CELLS; cell++)
		if ((*used >> cell & 1) == 0)
		{
			*used |= (uint64_t) 1 << cell;
			return cell;
		}
	return RHH_NO_CELL;
}

/* The filter wants a value that is in a range, too. */
static void
rhh_add_range(rhh_page_plan *plan, rhh_page_fetch *f, int64_t least, int64_t greatest)
{
	if (f->range == RHH_NO_RANGE)
	{
		f->range = plan->n_ranges++;
		plan->ranges[f->range].least = INT64_MIN;
		plan->ranges[f->range].greatest = INT64_MAX;
	}
	plan->ranges[f->range].least = ::max(plan->ranges[f->range].least, least);
	plan->ranges[f->range].greatest = ::min(plan->ranges[f->range].greatest, greatest);
}

/* The program of a layout of n_columns columns.  False: it needs too many cells, steps, or inputs. */
static bool
rhh_plan_program(rhh_page_plan *plan, const rhh_page_layout *layout, uint32_t n_columns)
{
	const rhh_program *program = &layout->program;
	rhh_page_filter filter;
	rhh_page_needs needs;
	uint8_t		cells[RHH_MAX_OPS];
	uint8_t		input_cells[RHH_PAGE_INPUTS];
	uint64_t	used = 0;

	rhh_cut_filter(program, n_columns, &filter);
	rhh_find_needs(program, &filter, n_columns, &needs);
	memset(cells, RHH_NO_CELL, sizeof(cells));
	memset(input_cells, RHH_NO_CELL, sizeof(input_cells));
	for (uint32_t i = 0; i < program->n_ops; i++)
	{
		const rhh_op *op = &program->ops[i];

		if (needs.passes[i] == 0 || (op->code != RHH_OP_CONSTANT && op->code != RHH_OP_CONSTANT128))
			continue;
		if (plan->n_constants == RHH_MAX_CONSTANTS || (cells[i] = rhh_take_cell(&used)) == RHH_NO_CELL)
			return false;
		plan->constant_cell[plan->n_constants] = cells[i];
		plan->null_constants |= (uint64_t) (program->null_constant[op->a] != 0) << cells[i];
		memcpy(plan->constants[plan->n_constants++], program->constants[op->a], sizeof(plan->constants[0]));
	}
	for (uint32_t i = 0; i < layout->n_inputs; i++)
	{
		rhh_page_fetch *f;

		if (needs.input_passes[i] == 0)
			continue;
		f = rhh_add_fetch(plan, &layout->inputs[i], rhh_page_input_bytes(layout, i), false);
		if (f == NULL)
			return false;
		f->passes |= needs.input_passes[i];
		for (uint32_t r = 0; r < filter.n_ranges; r++)
			if (filter.ranges[r].input == i)
				rhh_add_range(plan, f, filter.ranges[r].least, filter.ranges[r].greatest);
		if (f->cell == RHH_NO_CELL && (f->cell = rhh_take_cell(&used)) == RHH_NO_CELL)
			return false;
		input_cells[i] = f->cell;
		/* of several that have the same value nobody knows which one is the last that is needed */
		for (uint32_t j = 0; j < i; j++)
			if (input_cells[j] == f->cell)
				needs.input_last[i] = needs.input_last[j] = RHH_MAX_OPS;
	}
	for (uint32_t at = 0; at < needs.n_ordered; at++)
	{
		const uint8_t i = needs.order[at];
		const rhh_op *op = &program->ops[i];
		const uint8_t operands[] = {op->a, op->b, op->c};
		const uint32_t n_operands = rhh_n_operands(op->code);
		rhh_page_step *step = &plan->steps[plan->n_steps];

		/* a constant has its cell */
		if (cells[i] != RHH_NO_CELL)
			continue;
		if (op->code != RHH_OP_COLUMN && plan->n_steps == RHH_PAGE_STEPS)
			return false;
		if (op->code == RHH_OP_COLUMN)
		{
			cells[i] = input_cells[op->a - n_columns];
			continue;
		}
		step->code = op->code;
		step->passes = needs.passes[i];
		step->a = rhh_op_reads_column(op) ? input_cells[op->a - n_columns] : cells[op->a];
		step->b = n_operands > 1 ? cells[op->b] : step->a;
		step->c = n_operands > 2 ? cells[op->c] : step->a;
		if (rhh_op_reads_column(op) && needs.input_last[op->a - n_columns] == at)
			used &= ~((uint64_t) 1 << step->a);
		for (uint32_t o = 0; o < n_operands; o++)
		{
			const rhh_op *from = &program->ops[operands[o]];
			const uint32_t last = from->code == RHH_OP_COLUMN ? needs.input_last[from->a - n_columns] :
				needs.last[operands[o]];

			if (last == at && from->code != RHH_OP_CONSTANT && from->code != RHH_OP_CONSTANT128)
				used &= ~((uint64_t) 1 << cells[operands[o]]);
		}
		step->column = needs.column[i];
		step->is_limb = rhh_is_high_limb(op->code) && step->column != RHH_NO_COLUMN;
		if (step->is_limb)
			plan->limb_columns |= (uint64_t) 1 << step->column;
		step->to = RHH_NO_CELL;
		if (needs.last[i] != 0 && (step->to = cells[i] = rhh_take_cell(&used)) == RHH_NO_CELL)
			return false;
		plan->n_steps++;
	}
	for (uint32_t i = 0; i < plan->n_fetches; i++)
		if ((plan->fetches[i].passes & RHH_PASS_FILTER) != 0)
			plan->n_filter_fetches = (uint8_t) (i + 1);
	while (plan->n_filter_steps < plan->n_steps && (plan->steps[plan->n_filter_steps].passes & RHH_PASS_FILTER) != 0)
		plan->n_filter_steps++;
	plan->has_filter = program->has_filter;
	plan->n_conditions = (uint8_t) filter.n_conditions;
	for (uint32_t i = 0; i < filter.n_conditions; i++)
		plan->condition[i] = cells[filter.conditions[i]];
	for (uint32_t r = 0; r < program->n_results; r++)
	{
		if (needs.column[program->results[r].op] != RHH_NO_COLUMN)
			continue;
		plan->results[plan->n_results].cell = cells[program->results[r].op];
		plan->results[plan->n_results++].column = program->results[r].column;
	}
	return true;
}

/* Where an attribute begins that has an offset, in tuples without NULLs. */
RHH_HD uint32_t
rhh_plain_begin(const rhh_page_attribute *a)
{
	return ((uint32_t) a->offset + a->align - 1) & ~((uint32_t) a->align - 1);
}

/*
 * A value is *plain* if its bytes are stored as they are, at a place that is known where no attribute is NULL, and that is a
 * multiple of their number, up to 8; or a constant.
 */
static void
rhh_find_plain(rhh_page_plan *plan)
{
	plan->all_plain = plan->n_steps == 0 && plan->n_results == 0 && !plan->has_filter;
	for (uint32_t i = 0; i < plan->n_fetches; i++)
	{
		const rhh_page_load *load = &plan->fetches[i].load;
		const rhh_page_attribute *a = &plan->attributes[load->attribute];

		if (load->kind == RHH_PAGE_CONSTANT)
			continue;
		if (load->kind != RHH_PAGE_VALUE || load->order != RHH_PAGE_AS_STORED || load->attribute > plan->last_known ||
			a->length != a->align || rhh_plain_begin(a) + a->align > RHH_PAGE_BYTES)
			plan->all_plain = false;
		plan->plain_attributes = (uint8_t)::max((uint32_t) plan->plain_attributes, load->attribute + 1u);
		plan->plain_bytes = (uint16_t)::max((uint32_t) plan->plain_bytes, rhh_plain_begin(a) + a->align);
	}
}

/*
 * Makes the plan of a layout, which is valid, for columns of these widths.  False: it needs more cells or values
 * than there is room for.
 */
static bool
rhh_page_plan_make(rhh_page_plan *plan, const rhh_page_layout *layout, const uint8_t *column_bytes)
{
	memset(plan, 0, sizeof(*plan));
	plan->n_attributes = (uint8_t) layout->n_attributes;
	plan->last_known = (uint8_t) layout->last_known;
	memcpy(plan->attributes, layout->attributes, layout->n_attributes * sizeof(rhh_page_attribute));
	for (uint32_t l = 0; l < layout->n_loads; l++)
	{
		rhh_page_fetch *f = rhh_add_fetch(plan, &layout->loads[l], column_bytes[layout->loads[l].column],
										  true);

		if (f == NULL)
			return false;
		f->load.column = layout->loads[l].column;
		f->passes |= RHH_PASS_ROW;
	}
	if (!rhh_plan_program(plan, layout, layout->n_loads + layout->program.n_results))
		return false;
	rhh_find_plain(plan);
	return true;
}

#endif							/* RHH_PAGE_PLAN_CUH */
