/*-------------------------------------------------------------------------
 *
 * plan_build.c
 *		Adds to the plan of a grouping what it is made of: columns to feed, transition
 *		states, and columns of the scan tuple.
 *
 * Columns to feed and states are numbered, and each function for these returns the
 * number of what it was asked for.  If the plan has an equal one already, that one's
 * number is returned and nothing is added.  So aggregates share columns and states.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "optimizer/tlist.h"

#include "compat.h"
#include "plan/plan_info.h"

/* The number of a node in the list, to which it is added if it has no equal one. */
static int
number_in(List **list, void *node)
{
	ListCell   *lc;

	foreach(lc, *list)
	{
		if (equal(lfirst(lc), node))
			return foreach_current_index(lc);
	}
	*list = lappend(*list, node);
	return list_length(*list) - 1;
}

/*
 * The column to feed that holds expr.  sortgroupref is not 0 if expr is a grouping
 * column; such a column is always a new one.
 *
 * A numeric that is both a key and an argument is fed in two columns, because they
 * differ where a value does not have the scale that its type declares.  The key's
 * column then has a number that stands for the value (dictionary.c), and the
 * argument's column is NULL (odd_arguments.c).
 */
int
gpurhh_feed_column(PlanInfo *info, Expr *expr, Index sortgroupref, GpuColumn column,
				   bool is_key)
{
	PathTarget *target = info->child_target;
	int			attribute = -1;
	GpuPlanColumn *fed;
	ListCell   *lc;

	if (info->stage == UPPERREL_GROUP_AGG)
		expr = gpurhh_below_grouping(info->root, expr);
	foreach(lc, info->plan->columns)
	{
		const GpuPlanColumn *other = lfirst(lc);

		if (sortgroupref != 0 || other->encoding != column.encoding ||
			other->parameter != column.parameter ||
			!equal(list_nth(target->exprs, other->attribute), expr))
			continue;
		if (column.encoding != GPU_ENC_DECIMAL ||
			is_key == list_member_int(info->plan->key_columns,
									  foreach_current_index(lc)))
			return foreach_current_index(lc);
		attribute = other->attribute;
	}
	if (attribute < 0)
	{
		add_column_to_pathtarget(target, expr, sortgroupref);
		attribute = list_length(target->exprs) - 1;
	}
	fed = gpurhh_make(GpuPlanColumn);
	fed->encoding = column.encoding;
	fed->parameter = column.parameter;
	fed->attribute = attribute;
	info->plan->columns = lappend(info->plan->columns, fed);
	return list_length(info->plan->columns) - 1;
}

/*
 * The column to feed that is derived from another fed column: another limb of a
 * numeric, one of an interval's fields, or what is made of that column and a second
 * one.
 */
int
gpurhh_derive_column(PlanInfo *info, int number, GpuEncoding part, int parameter)
{
	GpuPlanColumn *column = copyObject(list_nth(info->plan->columns, number));

	column->encoding = part;
	column->parameter = parameter;
	return number_in(&info->plan->columns, column);
}

/* The state over the column arg of those rows that the column filter lets pass. */
int
gpurhh_add_state(PlanInfo *info, rhh_state_op op, int arg, int filter)
{
	GpuPlanState *state = gpurhh_make(GpuPlanState);

	state->op = op;
	state->arg_column = arg;
	state->filter_column = filter;
	return number_in(&info->plan->states, state);
}

/*
 * The state of the values of a hidden key, which the last level makes.  These states
 * are numbered behind those of the rows, so all of those have to be there.
 */
int
gpurhh_add_hidden_state(PlanInfo *info, rhh_state_op op, int hidden_key)
{
	GpuPlanHiddenState *state = gpurhh_make(GpuPlanHiddenState);

	state->op = op;
	state->hidden_key = hidden_key;
	return list_length(info->plan->states) +
		number_in(&info->plan->distinct_states, state);
}

/*
 * Adds a column to the scan tuple.  The caller fills in the fields of the result
 * that its kind has: key, states or value_of_set.
 */
GpuPlanOutput *
gpurhh_add_output(PlanInfo *info, Expr *expr, GpuOutput kind, GpuColumn column)
{
	GpuPlanOutput *output = gpurhh_make(GpuPlanOutput);
	TargetEntry *tle;

	tle = makeTargetEntry(expr, list_length(info->scan_tlist) + 1, NULL, false);
	info->scan_tlist = lappend(info->scan_tlist, tle);
	output->kind = kind;
	output->encoding = column.encoding;
	output->parameter = column.parameter;
	output->key = -1;
	if (kind == GPU_OUTPUT_AGGREGATE)
		output->aggregate = castNode(Aggref, expr)->aggfnoid;
	info->plan->outputs = lappend(info->plan->outputs, output);
	return output;
}
