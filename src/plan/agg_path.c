/*-------------------------------------------------------------------------
 *
 * agg_path.c
 *		Which groupings GpuHashAgg can do, and how.  Nothing here executes.
 *
 * A grouping is a GROUP BY, aggregates without one, or a SELECT DISTINCT or
 * UNION, which is a GROUP BY of all columns.  The planner's hook is called once core has
 * made its own paths for it, and
 *
 *		1. looks at every part of the query's grouping (build_plan_info); what
 *		   cannot be done exactly is refused, with the reason beside the check;
 *		2. puts a projection of [grouping columns, aggregates' arguments,
 *		   filters] on top of the cheapest input path: the columns that are
 *		   fed to the device ("child columns");
 *		3. has agg_cost.c make the paths and compare costs.
 *
 * GROUPING SETS and aggregates with DISTINCT take a second level, and perhaps a
 * third: the rows are grouped by all grouping columns and the arguments of DISTINCT,
 * and those groups are put together to the ones asked for (levels.c).
 *
 * The CustomScan's scan tuple (custom_scan_tlist) is [grouping columns,
 * aggregates, determined columns]; HAVING is its qual, and its target list is
 * computed from the scan tuple by core's own projection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/plan_info.h"
#include "settings.h"

static create_upper_paths_hook_type prev_upper_paths_hook = NULL;

/* Notes the first reason; always false, to be returned. */
static bool refuse(PlanInfo *info, const char *fmt,...) pg_attribute_printf(2, 3);

static bool
refuse(PlanInfo *info, const char *fmt,...)
{
	StringInfoData buf;

	if (info->refusal != NULL)
		return false;
	initStringInfo(&buf);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&buf, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&buf, needed);
	}
	info->refusal = buf.data;
	return false;
}

/*
 * Replaces what only a finished plan gives a text to: a placeholder by what it
 * holds; and by a parameter a value from outside of the query, a field of a row
 * whose type would be looked up in the plan, and a window function's value.
 */
static Node *
printable_mutator(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, PlaceHolderVar))
		return printable_mutator((Node *) ((PlaceHolderVar *) node)->phexpr,
								 context);
	if (IsA(node, WindowFunc) ||
		(IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN) ||
		(IsA(node, FieldSelect) &&
		 exprType((Node *) ((FieldSelect *) node)->arg) == RECORDOID))
	{
		Param	   *param = makeNode(Param);

		param->paramkind = PARAM_EXTERN;
		param->paramid = 0;
		param->paramtype = exprType(node);
		param->paramtypmod = exprTypmod(node);
		param->paramcollid = exprCollation(node);
		param->location = -1;
		return (Node *) param;
	}
	return expression_tree_mutator(node, printable_mutator, context);
}

/*
 * An expression as the user may have written it.  Nothing where nobody reads
 * it: deparsing opens every relation of the query.
 */
static const char *
expression_text(PlanInfo *info, void *expr)
{
	PlannedStmt *shell;
	List	   *names;
	List	   *context;

	if (!info->explain)
		return "";
	if (info->stage == UPPERREL_SETOP && IsA(expr, Var))
		return get_tle_by_resno(info->root->parse->targetList,
								((Var *) expr)->varattno)->resname;
	/* what deparsing looks at of a PlannedStmt is its range table */
	shell = makeNode(PlannedStmt);
	shell->rtable = info->root->parse->rtable;
	names = select_rtable_names_for_explain(shell->rtable, NULL);
	context = deparse_context_for_plan_tree(shell, names);
	return deparse_expression(printable_mutator(expr, NULL), context,
							  gpurhh_several_tables(shell->rtable), false);
}

/*
 * Sorts what the output needs into aggregates and what the keys determine.  A
 * grouping expression is found whole before its parts are looked at: of a
 * redundant one (in PostgreSQL 16 and later) all rows of a group have the same
 * value, but not of the columns in it.
 */
static bool
collect_outputs_walker(Node *node, PlanInfo *info)
{
	if (node == NULL)
		return false;
	if (list_member(info->keys, node))
		return false;
	if (IsA(node, Var) || list_member(info->redundant, node))
	{
		info->determined = list_append_unique(info->determined, node);
		return false;
	}
	if (IsA(node, Aggref))
	{
		info->aggrefs = list_append_unique(info->aggrefs, node);
		return false;
	}
	if (IsA(node, GroupingFunc))
	{
		info->groupings = list_append_unique(info->groupings, node);
		return false;
	}
	if (IsA(node, PlaceHolderVar))
	{
		refuse(info, "an expression from below an outer join is used beside the grouping columns");
		return true;
	}
	return expression_tree_walker(node, collect_outputs_walker, info);
}

/* The key that a sort and group reference stands for. */
static int
key_of_ref(PlanInfo *info, Index ref)
{
	ListCell   *lc;

	foreach(lc, info->clause)
	{
		if (lfirst_node(SortGroupClause, lc)->tleSortGroupRef == ref)
			return foreach_current_index(lc);
	}
	elog(ERROR, "grouping reference %u not found", ref);
	return -1;					/* keep compiler quiet */
}

/* The number of the node in the list, where it is added if no equal one is there. */
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
 * The fed column that holds expr, added if need be.  A numeric that is a key and
 * an argument is fed in two columns: of values that have not their declared scale
 * the one has to hold something, and the other NULL (odd_arguments.c).
 */
static int
child_column(PlanInfo *info, Expr *expr, Index sortgroupref, GpuColumn column,
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
 * The fed column that is made of what is in one: another of a numeric's limbs, or
 * an interval's fields; or of that and another column.
 */
static int
other_column(PlanInfo *info, int number, GpuEncoding part, int parameter)
{
	GpuPlanColumn *column = copyObject(list_nth(info->plan->columns, number));

	column->encoding = part;
	column->parameter = parameter;
	return number_in(&info->plan->columns, column);
}

/* The number of the state, added if no equal one is there. */
static int
device_state(PlanInfo *info, rhh_state_op op, int arg, int filter)
{
	GpuPlanState *state = gpurhh_make(GpuPlanState);

	state->op = op;
	state->arg_column = arg;
	state->filter_column = filter;
	return number_in(&info->plan->states, state);
}

/*
 * Adds a column to the scan tuple.  The caller fills in the fields of the result
 * that its kind has: key, states or value_of_set.
 */
static GpuPlanOutput *
add_output(PlanInfo *info, Expr *expr, GpuOutput kind, GpuColumn column)
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

/* One grouping column. */
static bool
add_key(PlanInfo *info, SortGroupClause *clause, Expr *expr)
{
	Oid			type = exprType((Node *) expr);
	const char *problem;
	GpuColumn	column;
	int			number;

	if (!gpurhh_resolve_type((Node *) expr, &column, &problem))
		return refuse(info, "key column %s has type %s, which %s",
					  expression_text(info, expr), format_type_be(type),
					  problem);

	/* bytes decide equality for the type's own operator, and no other */
	if (clause->eqop != lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr)
		return refuse(info, "key column %s is compared by an operator that is not the default of type %s",
					  expression_text(info, expr),
					  format_type_be(type));
	/* an enum may have a default operator class that is somebody's own */
	if (clause->eqop >= FirstGenbkiObjectId)
		return refuse(info, "key column %s is compared by an operator that is not built in",
					  expression_text(info, expr));

	/* the projection must give the value that grouping gave */
	if (contain_volatile_functions((Node *) expr))
		return refuse(info, "key column %s is volatile",
					  expression_text(info, expr));
	if (expression_returns_set((Node *) expr))
		return refuse(info, "key column %s returns a set",
					  expression_text(info, expr));

	number = child_column(info, expr, clause->tleSortGroupRef, column, true);
	info->plan->key_columns = lappend_int(info->plan->key_columns, number);
	return true;
}

/*
 * CASE WHEN filter THEN arg END.  Core does not evaluate the argument where the
 * filter is not true, and it may raise an error there.
 */
static Expr *
guarded(Expr *filter, Expr *arg)
{
	CaseExpr   *result = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);

	when->expr = filter;
	when->result = arg;
	when->location = -1;
	result->casetype = exprType((Node *) arg);
	result->casecollid = exprCollation((Node *) arg);
	result->args = list_make1(when);
	result->defresult = (Expr *) makeNullConst(result->casetype,
											   exprTypmod((Node *) arg),
											   result->casecollid);
	result->location = -1;
	return (Expr *) result;
}

/* What all aggregates that are supported have in common. */
static bool
usual_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	const char *text = expression_text(info, aggref);

	if (known == NULL)
	{
		const char *problem = gpurhh_aggregate_problem(aggref->aggfnoid);

		return refuse(info, "aggregate %s is not supported%s%s", text,
					  problem ? ": " : "", problem ? problem : "");
	}
	/* sum(x ORDER BY y) is just sum(x), but core must sort to be itself */
	if (aggref->aggorder != NIL)
		return refuse(info, "aggregate %s has ORDER BY", text);
	if (aggref->aggsplit != AGGSPLIT_SIMPLE)
		return refuse(info, "aggregate %s is partial", text);

	/* equal expressions share a column, so each must have one value a row */
	if (contain_volatile_functions((Node *) aggref))
		return refuse(info, "aggregate %s has a volatile argument or filter",
					  text);
	if (expression_returns_set((Node *) aggref->args) ||
		expression_returns_set((Node *) aggref->aggfilter))
		return refuse(info, "aggregate %s has an argument that returns a set",
					  text);
	return true;
}

/* The columns that an aggregate's states are over. */
typedef struct FedArguments
{
	int			columns[2];		/* of each argument; -1: it is not fed */
	int			source;			/* that from which parts are made, */
	int			parameter;		/* and these parts' parameter */
	int			filter;			/* of the rows that count; -1: all do */
} FedArguments;

/* The states of an aggregate; the column tells which of an argument's parts it has. */
static List *
add_states(PlanInfo *info, const GpuAggregate *known, const GpuColumn *column,
		   const FedArguments *fed)
{
	List	   *states = NIL;

	for (int i = 0; i < GPU_MAX_OPERANDS && known->states[i].op != 0; i++)
	{
		const AggregateState *state = &known->states[i];
		int			number;

		if (!gpurhh_state_is_used(state, column))
			continue;
		number = state->part == GPU_ENC_NONE ? fed->columns[state->argument] :
			other_column(info, fed->source, state->part, fed->parameter);
		states = lappend_int(states,
							 device_state(info, state->op, number, fed->filter));
	}
	return states;
}

/* x IS NOT NULL, of rows that the filter, which may be NULL, lets pass. */
static Expr *
not_null(Expr *filter, Expr *x)
{
	NullTest   *test = makeNode(NullTest);

	test->arg = x;
	test->nulltesttype = IS_NOT_NULL;
	test->argisrow = false;
	test->location = -1;
	return filter ? guarded(filter, (Expr *) test) : (Expr *) test;
}

/* How an argument of an aggregate travels; false: it cannot be fed. */
static bool
resolve_argument(PlanInfo *info, Aggref *aggref, const GpuAggregate *known,
				 Expr *arg, GpuColumn *column)
{
	const char *problem;

	return gpurhh_resolve_argument(known, (Node *) arg, aggref->inputcollid,
								   column, &problem) ||
		refuse(info, "aggregate %s has an argument %s",
			   expression_text(info, aggref), problem);
}

/* One aggregate of one argument, or none. */
static bool
add_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	Expr	   *filter = aggref->aggfilter;
	GpuColumn	column = {GPU_ENC_NONE};
	FedArguments fed = {.columns = {-1, -1}, .source = -1, .filter = -1};

	if (aggref->aggdistinct != NIL &&
		known->family->distinct != DISTINCT_CHANGES_NOTHING)
		return refuse(info, "aggregate %s has DISTINCT",
					  expression_text(info, aggref));

	if (!aggref->aggstar)
	{
		Expr	   *arg = linitial_node(TargetEntry, aggref->args)->expr;

		if (!resolve_argument(info, aggref, known, arg, &column))
			return false;
		if (known->encoding != GPU_ENC_NONE)
			column.encoding = known->encoding;
		if (column.encoding == GPU_ENC_NONE)
			filter = not_null(filter, arg);
		else
		{
			/* a NULL is what the state passes over, so no filter is needed */
			if (filter != NULL && !IsA(arg, Var) && !IsA(arg, Const))
			{
				arg = guarded(filter, arg);
				filter = NULL;
			}
			fed.source = fed.columns[0] = child_column(info, arg, 0, column, false);
			fed.parameter = column.parameter;
		}
	}
	if (filter != NULL)
		fed.filter = child_column(info, filter, 0,
								  (GpuColumn){GPU_ENC_FILTER}, false);
	add_output(info, (Expr *) aggref, GPU_OUTPUT_AGGREGATE, column)->states =
		add_states(info, known, &column, &fed);
	return true;
}

/*
 * One aggregate of two arguments, over the rows in which neither is NULL; see
 * pairs.c.
 */
static bool
add_pair_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	GpuColumn	column;
	FedArguments fed;

	if (aggref->aggdistinct != NIL)
		return refuse(info, "aggregate %s has DISTINCT",
					  expression_text(info, aggref));
	for (int i = 0; i < 2; i++)
	{
		Expr	   *arg = list_nth_node(TargetEntry, aggref->args, i)->expr;

		if (!resolve_argument(info, aggref, known, arg, &column))
			return false;
		column.encoding = known->encoding;
		if (aggref->aggfilter != NULL)
			arg = guarded(aggref->aggfilter, arg);
		fed.columns[i] = child_column(info, arg, 0, column, false);
	}
	/* in one order, so that corr(x, y) and corr(y, x) share all columns and states */
	fed.source = Min(fed.columns[0], fed.columns[1]);
	fed.parameter = GPURHH_PAIR(fed.source, Max(fed.columns[0], fed.columns[1]));
	fed.filter = other_column(info, fed.source, GPU_ENC_BOTH, fed.parameter);
	add_output(info, (Expr *) aggref, GPU_OUTPUT_AGGREGATE, column)->states =
		add_states(info, known, &column, &fed);
	return true;
}

/*
 * The number of the state over a hidden key, added if it is not there.  These
 * states follow those of the rows.
 */
static int
distinct_state(PlanInfo *info, rhh_state_op op, int hidden_key)
{
	GpuPlanHiddenState *state = gpurhh_make(GpuPlanHiddenState);

	state->op = op;
	state->hidden_key = hidden_key;
	return list_length(info->plan->states) +
		number_in(&info->plan->distinct_states, state);
}

/*
 * min() or max() of what has no order that a device knows: its argument becomes a
 * hidden key, behind those that are shown, so that each of its values is a group
 * of its own.  Of strings only some are fed, see candidates.c.  To be called
 * once all states of the first level are there, which come before its own.
 */
static bool
add_choice(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	Expr	   *arg = linitial_node(TargetEntry, aggref->args)->expr;
	GpuAggPlan *plan = info->plan;
	GpuChoice	choice = known->family->choice;
	GpuColumn	shown;
	GpuColumn	column;
	int			number;
	int			at;

	if (!resolve_argument(info, aggref, known, arg, &shown))
		return false;
	if (aggref->aggfilter != NULL)
		arg = guarded(aggref->aggfilter, arg);
	column = shown;
	if (known->encoding != GPU_ENC_NONE)
		column.encoding = known->encoding;
	number = child_column(info, arg, 0, column, true);
	for (at = 0; at < list_length(plan->choices); at++)
	{
		if (list_nth_int(plan->key_columns, plan->n_shown_keys + at) == number &&
			list_nth_int(plan->choices, at) == (int) choice)
			break;
	}
	if (at == list_length(plan->choices))
	{
		plan->key_columns = lappend_int(plan->key_columns, number);
		plan->choices = lappend_int(plan->choices, choice);
	}
	add_output(info, (Expr *) aggref, GPU_OUTPUT_ANY, shown)->states =
		list_make1_int(list_length(plan->states) + at);
	return true;
}

/*
 * An aggregate with DISTINCT: its argument becomes a key, one of the last and
 * hidden ones, so that each of its values is a group of its own.  To be called
 * once all other states are there, which come before its own.
 */
static bool
add_distinct_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	const char *text = expression_text(info, aggref);
	Expr	   *arg = linitial_node(TargetEntry, aggref->args)->expr;
	List	   *states = NIL;
	GpuColumn	column;
	const char *problem;
	ListCell   *lc;
	int			hidden_key = 0;

	if (aggref->aggfilter != NULL)
		arg = guarded(aggref->aggfilter, arg);
	if (info->plan->choices != NIL)
		return refuse(info, "aggregate %s has DISTINCT, and there are minima or maxima of strings or enums",
					  text);
	foreach(lc, info->distinct_args)
	{
		if (equal(lfirst(lc), arg))
			break;
		hidden_key++;
	}
	if (lc == NULL)
	{
		SortGroupClause *clause =
			copyObject(linitial_node(SortGroupClause, aggref->aggdistinct));

		clause->tleSortGroupRef = 0;
		info->distinct_args = lappend(info->distinct_args, arg);
		if (!add_key(info, clause, arg))
			return false;
	}

	/* add_key() has seen to it that it can be */
	(void) gpurhh_resolve_type((Node *) arg, &column, &problem);
	for (int i = 0; i < GPU_MAX_OPERANDS && known->states[i].op != 0; i++)
	{
		if (gpurhh_state_is_used(&known->states[i], &column))
			states = lappend_int(states,
								 distinct_state(info, known->states[i].op, hidden_key));
	}

	/*
	 * The values are compared by the aggregate's collation, which need not be
	 * the argument's any more where the planner has simplified that.
	 */
	if (gpurhh_is_string(column.encoding) &&
		!gpurhh_resolve(exprType((Node *) arg), exprTypmod((Node *) arg),
						aggref->inputcollid, &column, &problem))
		return refuse(info, "aggregate %s has an argument of type %s, which %s",
					  text, format_type_be(exprType((Node *) arg)), problem);
	if (column.encoding == GPU_ENC_YEARS &&
		known->family->argument != AGGREGATE_OF_NULLS)
		return refuse(info, "aggregate %s has an argument that may be infinite",
					  text);
	add_output(info, (Expr *) aggref, GPU_OUTPUT_AGGREGATE, column)->states = states;
	return true;
}

/*
 * The order in which aggregates are added: first those that are made of the rows,
 * then those that the second level makes, whose states follow.
 */
typedef enum AggregateTurn
{
	TURN_OF_ROWS,
	TURN_OF_CHOICES,
	TURN_OF_DISTINCT
} AggregateTurn;

static AggregateTurn
turn_of(const Aggref *aggref, const GpuAggregate *known)
{
	if (known == NULL)
		return TURN_OF_ROWS;
	if (known->family->argument == AGGREGATE_CHOICE)
		return TURN_OF_CHOICES;
	return aggref->aggdistinct != NIL &&
		known->family->distinct == DISTINCT_BY_LEVEL ?
		TURN_OF_DISTINCT : TURN_OF_ROWS;
}

/* The aggregates whose turn it is. */
static bool
add_aggregates(PlanInfo *info, AggregateTurn turn)
{
	ListCell   *lc;

	foreach(lc, info->aggrefs)
	{
		Aggref	   *aggref = lfirst_node(Aggref, lc);
		const GpuAggregate *known = gpurhh_find_aggregate(aggref->aggfnoid);
		bool		added;

		if (turn_of(aggref, known) != turn)
			continue;
		if (!usual_aggregate(info, aggref, known))
			return false;
		if (turn == TURN_OF_CHOICES)
			added = add_choice(info, aggref, known);
		else if (turn == TURN_OF_DISTINCT)
			added = add_distinct_aggregate(info, aggref, known);
		else if (known->family->argument == AGGREGATE_OF_PAIRS)
			added = add_pair_aggregate(info, aggref, known);
		else
			added = add_aggregate(info, aggref, known);
		if (!added)
			return false;
	}
	return true;
}

/* GROUPING(): a value for each set, a bit for each argument not in the set. */
static void
add_grouping(PlanInfo *info, GroupingFunc *grouping)
{
	List	   *sets = info->plan->sets;
	List	   *values = NIL;
	int			n_sets = Max(list_length(sets), 1);

	for (int set = 0; set < n_sets; set++)
	{
		int			value = 0;
		ListCell   *lc;

		foreach(lc, grouping->refs)
		{
			value <<= 1;
			/* with one set of all an argument need not be a key: the planner
			 * takes those away that a grouped primary key determines */
			if (sets != NIL &&
				!list_member_int(list_nth(sets, set),
								 key_of_ref(info, lfirst_int(lc))))
				value |= 1;
		}
		values = lappend_int(values, value);
	}
	add_output(info, (Expr *) grouping, GPU_OUTPUT_GROUPING,
			   (GpuColumn){GPU_ENC_INT4})->value_of_set = values;
}

/*
 * A bare column that the grouping columns determine (they hold a key), or a
 * redundant grouping expression.
 */
static bool
add_determined(PlanInfo *info, Expr *expr)
{
	const char *problem;
	GpuColumn	column;
	int			number;

	if (!gpurhh_resolve_type((Node *) expr, &column, &problem))
		return refuse(info, "column %s, which the grouping columns determine, has type %s",
					  expression_text(info, expr),
					  format_type_be(exprType((Node *) expr)));

	/* unlike a key it is not compared: its very bits come back, -0 too */
	if (column.encoding == GPU_ENC_BPCHAR)
		column.encoding = GPU_ENC_STRING;
	if (column.encoding == GPU_ENC_FLOAT4)
		column.encoding = GPU_ENC_FLOAT4_RAW;
	else if (column.encoding == GPU_ENC_FLOAT8)
		column.encoding = GPU_ENC_FLOAT8_RAW;
	number = child_column(info, expr, 0, column, false);
	add_output(info, expr, GPU_OUTPUT_ANY, column)->states =
		list_make1_int(device_state(info, RHH_ANY, number, -1));
	return true;
}

/*
 * The sets of GROUPING SETS, ROLLUP and CUBE, which the planner has written out.
 * Those of all columns come first: the first level has the groups of one.
 */
static void
collect_sets(PlanInfo *info)
{
	Query	   *parse = info->root->parse;
	ListCell   *lc;

	if (info->stage != UPPERREL_GROUP_AGG)
		return;
	foreach(lc, parse->groupingSets)
	{
		List	   *set = NIL;
		ListCell   *lc_ref;

		foreach(lc_ref, (List *) lfirst(lc))
			set = list_append_unique_int(set,
										 key_of_ref(info, lfirst_int(lc_ref)));
		if (list_length(set) == list_length(info->keys))
			info->plan->sets = lcons(set, info->plan->sets);
		else
			info->plan->sets = lappend(info->plan->sets, set);
	}
	/* with no GROUP BY at all there is a row even where there is no input */
	if (parse->groupingSets == NIL && info->full_clause == NIL)
		info->plan->sets = list_make1(NIL);
}

/* The grouping columns, and what it is that is grouped by them. */
static void
collect_keys(PlanInfo *info)
{
	List	   *tlist = info->root->processed_tlist;
	ListCell   *lc;

	if (info->stage == UPPERREL_SETOP)
	{
		info->keys = info->target->exprs;
		info->plan->n_shown_keys = list_length(info->keys);
		return;
	}
	foreach(lc, info->clause)
		info->keys = lappend(info->keys,
							 get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc),
													  tlist));
	foreach(lc, info->full_clause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, tlist);

		if (!list_member(info->clause, clause) && contain_var_clause(expr))
			info->redundant = lappend(info->redundant, expr);
	}
	collect_sets(info);
	info->plan->n_shown_keys = list_length(info->keys);
}

/* What the output needs.  False: it cannot be had. */
static bool
collect_outputs(PlanInfo *info, List *having)
{
	ListCell   *lc;

	if (info->stage == UPPERREL_GROUP_AGG)
		return !collect_outputs_walker((Node *) info->target->exprs, info) &&
			!collect_outputs_walker((Node *) having, info);

	/* below DISTINCT and UNION everything is computed: aggregates are columns to it */
	foreach(lc, info->target->exprs)
	{
		Node	   *expr = lfirst(lc);

		if (!list_member(info->keys, expr) &&
			(contain_var_clause(expr) || contain_agg_clause(expr) ||
			 contain_window_function(expr)))
			info->determined = list_append_unique(info->determined, expr);
	}
	return true;
}

/*
 * What is constant, or equal to another column, where it comes from need not be so
 * behind the sets.  Core takes it for that, and leaves such columns out where it
 * sorts: which row is the first, or which one of several it returns, depends on
 * the order in which they come.
 */
static bool
loses_columns(PlannerInfo *root, List *grouped, List *clause, List *pathkeys)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, clause)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc),
													root->processed_tlist);

		if (list_member(grouped, expr) || contain_var_clause(expr) ||
			contain_agg_clause(expr) || contain_window_function(expr))
			columns = list_append_unique(columns, expr);
	}
	return list_length(pathkeys) < list_length(columns);
}

/*
 * Where a grouping set makes columns NULL, core tells equal expressions apart by
 * their grouping references, and so constants from what they are in a set.  It does
 * so for its own nodes alone.  For ours gpurhh_note_keys() tells equal keys apart,
 * but in the target list only.  False: that is not enough.
 */
static bool
tell_keys_apart(PlanInfo *info)
{
	Query	   *parse = info->root->parse;
	bool		below = info->stage == UPPERREL_DISTINCT && parse->groupingSets != NIL;
	List	   *grouped = get_sortgrouplist_exprs(parse->groupClause,
												  info->root->processed_tlist);
	ListCell   *lc;

	if (!below && list_length(info->plan->sets) < 2)
		return true;
	if (loses_columns(info->root, grouped, parse->distinctClause,
					  info->root->distinct_pathkeys) ||
		loses_columns(info->root, grouped, parse->sortClause,
					  info->root->sort_pathkeys))
		return refuse(info, "DISTINCT or ORDER BY above GROUPING SETS has columns that the planner takes for constant or equal");
	foreach(lc, info->keys)
	{
		int			n_equal = 0;
		ListCell   *lc_other;

		foreach(lc_other, grouped)
			n_equal += equal(lfirst(lc_other), lfirst(lc)) ? 1 : 0;
		if (n_equal == 0)
			continue;
		if (!contain_var_clause(lfirst(lc)))
			return refuse(info, "key column %s of GROUPING SETS is constant",
						  expression_text(info, lfirst(lc)));
		if (n_equal == 1)
			continue;
		info->told_by_reference = true;

		/*
		 * GROUPING()s of either are equal.  Sorting by both is sorting by one to
		 * core.  And target lists of nodes above that have the columns in
		 * another order pass for the same.
		 */
		if (info->groupings != NIL || parse->hasWindowFuncs ||
			parse->distinctClause != NIL || parse->sortClause != NIL)
			return refuse(info, "key column %s of GROUPING SETS is there more than once, and used by more than the result",
						  expression_text(info, lfirst(lc)));
	}
	return true;
}

/* A column of the scan tuple for a key. */
static void
add_key_output(PlanInfo *info, int key)
{
	const GpuPlanColumn *fed = gpurhh_plan_key(info->plan, key);
	GpuColumn	column = {.encoding = fed->encoding, .parameter = fed->parameter};

	add_output(info, list_nth(info->keys, key), GPU_OUTPUT_KEY, column)->key = key;
}

/*
 * The same for all keys.  Of equal ones core takes the first of the target list
 * for what is computed of them, so that order has to be the scan tuple's.
 */
static void
add_key_outputs(PlanInfo *info)
{
	ListCell   *lc;

	if (!info->told_by_reference)
	{
		for (int k = 0; k < info->plan->n_shown_keys; k++)
			add_key_output(info, k);
		return;
	}
	foreach(lc, info->root->processed_tlist)
	{
		Index		ref = lfirst_node(TargetEntry, lc)->ressortgroupref;
		ListCell   *lc_clause;

		foreach(lc_clause, info->clause)
		{
			if (ref == 0 || lfirst_node(SortGroupClause, lc_clause)->tleSortGroupRef != ref)
				continue;
			add_key_output(info, foreach_current_index(lc_clause));
			llast_node(TargetEntry, info->scan_tlist)->ressortgroupref = ref;
		}
	}
}

/* The columns and states for everything that was collected. */
static bool
add_columns(PlanInfo *info)
{
	ListCell   *lc,
			   *lc_key;

	if (!tell_keys_apart(info))
		return false;
	forboth(lc, info->clause, lc_key, info->keys)
	{
		if (!add_key(info, lfirst_node(SortGroupClause, lc), lfirst(lc_key)))
			return false;
	}
	add_key_outputs(info);
	if (!add_aggregates(info, TURN_OF_ROWS))
		return false;
	foreach(lc, info->determined)
	{
		if (!add_determined(info, lfirst(lc)))
			return false;
	}
	if (!add_aggregates(info, TURN_OF_CHOICES) ||
		!add_aggregates(info, TURN_OF_DISTINCT))
		return false;
	foreach(lc, info->groupings)
		add_grouping(info, lfirst_node(GroupingFunc, lc));

	/* a device's table has at least one key: for a single group, a constant */
	if (info->plan->key_columns == NIL)
	{
		Expr	   *one = (Expr *) makeBoolConst(true, false);

		info->plan->key_columns =
			list_make1_int(child_column(info, one, 0,
										(GpuColumn){GPU_ENC_BOOL}, true));
	}
	return true;
}

/*
 * Decides whether the grouping can be done, and how.  False: info->refusal
 * says why not.
 */
static bool
build_plan_info(PlanInfo *info, List *having)
{
	GpuAggPlan *plan = gpurhh_make(GpuAggPlan);

	info->plan = plan;
	info->child_target = create_empty_pathtarget();
	collect_keys(info);
	if (!collect_outputs(info, having))
		return false;
	if (list_length(info->keys) > RHH_MAX_KEYS)
		return refuse(info, "there are more than %d grouping columns",
					  RHH_MAX_KEYS);
	if (!add_columns(info))
		return false;
	info->one_emitter = info->plan->sets != NIL || info->plan->choices != NIL ||
		info->distinct_args != NIL;

	if (list_length(info->plan->key_columns) > RHH_MAX_KEYS)
		return refuse(info, "there are more than %d grouping columns, arguments of DISTINCT, and minima and maxima of strings or enums",
					  RHH_MAX_KEYS);
	if (list_length(info->plan->columns) > RHH_MAX_COLUMNS)
		return refuse(info, "there are more than %d columns to feed",
					  RHH_MAX_COLUMNS);
	if (list_length(plan->states) + list_length(plan->choices) +
		list_length(plan->distinct_states) > RHH_MAX_STATES)
		return refuse(info, "there are more than %d transition states",
					  RHH_MAX_STATES);
	/* none has more than 3 words a state, all in all, so RHH_MAX_STATE_WORDS hold */
	return true;
}

/* The grouping as the user may have written it. */
static char *
grouping_text(PlanInfo *info)
{
	StringInfoData text;
	ListCell   *lc;

	initStringInfo(&text);
	if (info->stage == UPPERREL_DISTINCT)
		appendStringInfoString(&text, "DISTINCT ");
	else if (info->stage == UPPERREL_SETOP)
		appendStringInfoString(&text, "UNION ");
	else if (info->full_clause == NIL)
		appendStringInfoString(&text, "()");
	foreach(lc, info->full_clause)
	{
		Node	   *expr = info->stage == UPPERREL_SETOP ?
			list_nth(info->target->exprs, foreach_current_index(lc)) :
			get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc),
									 info->root->processed_tlist);

		appendStringInfo(&text, "%s%s",
						 foreach_current_index(lc) > 0 ? ", " : "",
						 expression_text(info, expr));
	}
	return text.data;
}

/*
 * Tells whoever wants to know why a grouping does not use the node.  A path that
 * was added may still lose to another one for the query as a whole: that stands
 * as the reason until the path is made a plan.
 */
static void
report_refusal(PlanInfo *info)
{
	GpuRefusalCollector *collector = gpurhh_refusal_collector;
	char	   *text;

	if (!info->explain || (info->refusal == NULL && collector == NULL))
		return;

	text = grouping_text(info);
	if (info->refusal != NULL)
		ereport(DEBUG1,
				(errmsg_internal("GpuHashAgg is not used for %s%s: %s",
								 info->stage == UPPERREL_GROUP_AGG ? "GROUP BY " :
								 info->stage == UPPERREL_DISTINCT ? "SELECT " : "",
								 text, info->refusal)));
	if (collector != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(collector->context);
		GpuRefusal *refusal = palloc0(sizeof(GpuRefusal));

		refusal->statement = collector->statement;
		refusal->group_by = pstrdup(text);
		refusal->reason = pstrdup(info->refusal ? info->refusal :
								  "another plan has the lower cost for the query as a whole");
		refusal->grouping = info->grouping;
		collector->refusals = lappend(collector->refusals, refusal);
		MemoryContextSwitchTo(old);
	}
}

/*
 * What the query groups at this stage of planning.  False: nothing, or nothing
 * that a node would be made for.
 */
static bool
find_grouping(PlanInfo *info, RelOptInfo *input_rel, RelOptInfo *output_rel)
{
	Query	   *parse = info->root->parse;

	if (info->stage == UPPERREL_SETOP)
		return gpurhh_find_union(info, output_rel);

	/* partitions' own groupings are parts of the one reported at the top */
	if (input_rel == NULL || IS_OTHER_REL(input_rel))
		return false;
	info->input_rel = input_rel;
	info->input = input_rel->cheapest_total_path;
	if (input_rel->partial_pathlist != NIL)
		info->partial_input = linitial(input_rel->partial_pathlist);
	switch (info->stage)
	{
		case UPPERREL_GROUP_AGG:
			info->clause = gpurhh_group_clause(info->root);
			info->full_clause = parse->groupClause;
			info->target = output_rel->reltarget;
			/* HAVING alone, or empty sets alone, need no input */
			return parse->groupClause != NIL || parse->hasAggs;
		case UPPERREL_DISTINCT:
			info->clause = gpurhh_distinct_clause(info->root);
			info->full_clause = parse->distinctClause;
			info->target = info->input->pathtarget;
			/* where all columns are constant, core returns the first row */
			return info->clause != NIL;
		default:
			return false;
	}
}

static void
upper_paths_hook(PlannerInfo *root, UpperRelationKind stage,
				 RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	static int	n_groupings = 0;
	PlanInfo	info = {0};
	List	   *having = NIL;
	bool		can_do;

	if (prev_upper_paths_hook)
		prev_upper_paths_hook(root, stage, input_rel, output_rel, extra);

	if (!enable_gpu_hashagg && gpurhh_refusal_collector == NULL)
		return;
	info.root = root;
	info.grouping = ++n_groupings;
	info.stage = stage;
	info.explain = gpurhh_refusal_collector != NULL ||
		message_level_is_interesting(DEBUG1);
	if (!find_grouping(&info, input_rel, output_rel))
		return;
	/* who asks for reasons is told that of the first thing that is in the way */
	if (!info.explain && gpurhh_core_is_cheap(&info, output_rel))
		return;
	if (stage == UPPERREL_GROUP_AGG)
		having = (List *) ((GroupPathExtraData *) extra)->havingQual;

	if (stage == UPPERREL_DISTINCT && root->parse->hasDistinctOn)
		can_do = refuse(&info, "DISTINCT ON is not supported");
	else
		can_do = build_plan_info(&info, having);
	if (can_do)
	{
		const char *refusal = gpurhh_add_agg_paths(&info, output_rel, having);

		if (refusal != NULL)
			refuse(&info, "%s", refusal);
	}
	report_refusal(&info);
}

void
gpurhh_init_agg_path(void)
{
	prev_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths_hook;
}
