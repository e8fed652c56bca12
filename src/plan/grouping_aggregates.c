/*-------------------------------------------------------------------------
 *
 * grouping_aggregates.c
 *		Which aggregates of a grouping the node can do, and how.
 *
 * An aggregate becomes columns that are fed, transition states over them, and a column
 * of the scan tuple.  What an aggregate's states are is in its row in
 * types/aggregates.c; what all aggregates have to satisfy is here, with the reason for
 * the refusal beside each check.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"

#include "compat.h"
#include "plan/plan_info.h"

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

/* Checks what the node asks of every aggregate, whichever it is. */
static bool
usual_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	const char *text = gpurhh_expression_text(info, aggref);

	if (known == NULL)
	{
		const char *problem = gpurhh_aggregate_problem(aggref->aggfnoid);

		return gpurhh_refuse(info, "aggregate %s is not supported%s%s", text,
							 problem ? ": " : "", problem ? problem : "");
	}
	/*
	 * The node does not sort arguments.  For most aggregates the order makes no
	 * difference, but a sum of floats depends on it, and computing what the rows are
	 * sorted by may raise an error.
	 */
	if (aggref->aggorder != NIL)
		return gpurhh_refuse(info, "aggregate %s has ORDER BY", text);
	if (aggref->aggsplit != AGGSPLIT_SIMPLE)
		return gpurhh_refuse(info, "aggregate %s is partial", text);

	/* equal expressions share a column, so each must have one value a row */
	if (contain_volatile_functions((Node *) aggref))
		return gpurhh_refuse(info, "aggregate %s has a volatile argument or filter",
							 text);
	if (expression_returns_set((Node *) aggref->args) ||
		expression_returns_set((Node *) aggref->aggfilter))
		return gpurhh_refuse(info, "aggregate %s has an argument that returns a set",
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

/*
 * Adds the states of an aggregate and returns their numbers.  The column tells which
 * parts its argument has.
 */
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
			gpurhh_derive_column(info, fed->source, state->part, fed->parameter);
		states = lappend_int(states,
							 gpurhh_add_state(info, state->op, number, fed->filter));
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

/*
 * Finds out how an argument of an aggregate travels in a column.  Returns false if it
 * cannot be fed.
 */
static bool
resolve_argument(PlanInfo *info, Aggref *aggref, const GpuAggregate *known,
				 Expr *arg, GpuColumn *column)
{
	const char *problem;

	return gpurhh_resolve_argument(known, (Node *) arg, aggref->inputcollid,
								   column, &problem) ||
		gpurhh_refuse(info, "aggregate %s has an argument %s",
					  gpurhh_expression_text(info, aggref), problem);
}

/*
 * For count(arg) over joins that the device does, where no expression can be computed:
 * can a column count the rows in which it is not NULL?  If so, *column is its encoding.
 * In a numeric's column, values that do not conform to the declared scale are NULL.
 */
static bool
counts_by_column(PlanInfo *info, Expr *arg, GpuColumn *column)
{
	const char *problem;

	return info->joined && IsA(arg, Var) &&
		gpurhh_resolve_type((Node *) arg, column, &problem) &&
		column->encoding != GPU_ENC_DECIMAL;
}

/* Adds an aggregate of one argument, or of none. */
static bool
add_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	Expr	   *filter = aggref->aggfilter;
	GpuColumn	column = {GPU_ENC_NONE};
	GpuColumn	fed_as;
	FedArguments fed = {.columns = {-1, -1}, .source = -1, .filter = -1};

	if (aggref->aggdistinct != NIL &&
		known->family->distinct != DISTINCT_CHANGES_NOTHING)
		return gpurhh_refuse(info, "aggregate %s has DISTINCT",
							 gpurhh_expression_text(info, aggref));

	if (!aggref->aggstar)
	{
		Expr	   *arg = linitial_node(TargetEntry, aggref->args)->expr;

		if (!resolve_argument(info, aggref, known, arg, &column))
			return false;
		if (known->encoding != GPU_ENC_NONE)
			column.encoding = known->encoding;
		if (column.encoding == GPU_ENC_NONE && counts_by_column(info, arg, &fed_as))
			fed.columns[0] = gpurhh_feed_column(info, arg, 0, fed_as, false);
		else if (column.encoding == GPU_ENC_NONE)
		{
			filter = not_null(filter, arg);
			info->counts_expressions = true;
		}
		else
		{
			/* a NULL is what the state passes over, so no filter is needed */
			if (filter != NULL && !IsA(arg, Var) && !IsA(arg, Const))
			{
				arg = guarded(filter, arg);
				filter = NULL;
			}
			fed.source = fed.columns[0] = gpurhh_feed_column(info, arg, 0, column, false);
			fed.parameter = column.parameter;
		}
	}
	if (filter != NULL)
		fed.filter = gpurhh_feed_column(info, filter, 0,
										(GpuColumn){GPU_ENC_FILTER}, false);
	gpurhh_add_output(info, (Expr *) aggref, GPU_OUTPUT_AGGREGATE, column)->states =
		add_states(info, known, &column, &fed);
	return true;
}

/*
 * Adds an aggregate of two arguments, which is over the rows in which neither is
 * NULL (pairs.c).
 */
static bool
add_pair_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	GpuColumn	column;
	FedArguments fed;

	if (aggref->aggdistinct != NIL)
		return gpurhh_refuse(info, "aggregate %s has DISTINCT",
							 gpurhh_expression_text(info, aggref));
	for (int i = 0; i < 2; i++)
	{
		Expr	   *arg = list_nth_node(TargetEntry, aggref->args, i)->expr;

		if (!resolve_argument(info, aggref, known, arg, &column))
			return false;
		column.encoding = known->encoding;
		if (aggref->aggfilter != NULL)
			arg = guarded(aggref->aggfilter, arg);
		fed.columns[i] = gpurhh_feed_column(info, arg, 0, column, false);
	}
	/* in one order, so that corr(x, y) and corr(y, x) share all columns and states */
	fed.source = Min(fed.columns[0], fed.columns[1]);
	fed.parameter = GPURHH_PAIR(fed.source, Max(fed.columns[0], fed.columns[1]));
	fed.filter = gpurhh_derive_column(info, fed.source, GPU_ENC_BOTH, fed.parameter);
	gpurhh_add_output(info, (Expr *) aggref, GPU_OUTPUT_AGGREGATE, column)->states =
		add_states(info, known, &column, &fed);
	return true;
}

/*
 * Adds a min() or max() of values whose order no device knows.  Its argument becomes
 * a hidden key, behind the shown ones, so that each value is a group of its own.  Of
 * strings only some are fed (candidates.c), unless the device joins the rows: then nobody
 * knows which group a string will be in when it is fed, or whether its row has a match.  To
 * be called when all states of the first level are there, because this state is numbered
 * behind them.
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
	if (known->encoding != GPU_ENC_NONE && !info->joined)
		column.encoding = known->encoding;
	number = gpurhh_feed_column(info, arg, 0, column, true);
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
	gpurhh_add_output(info, (Expr *) aggref, GPU_OUTPUT_ANY, shown)->states =
		list_make1_int(list_length(plan->states) + at);
	return true;
}

/*
 * Adds an aggregate with DISTINCT.  Its argument becomes a hidden key, behind the
 * shown ones, so that each value is a group of its own.  To be called when all states
 * of the first level are there, because these states are numbered behind them.
 */
static bool
add_distinct_aggregate(PlanInfo *info, Aggref *aggref, const GpuAggregate *known)
{
	const char *text = gpurhh_expression_text(info, aggref);
	Expr	   *arg = linitial_node(TargetEntry, aggref->args)->expr;
	List	   *states = NIL;
	GpuColumn	column;
	const char *problem;
	ListCell   *lc;
	int			hidden_key = 0;

	if (aggref->aggfilter != NULL)
		arg = guarded(aggref->aggfilter, arg);
	if (info->plan->choices != NIL)
		return gpurhh_refuse(info, "aggregate %s has DISTINCT, and there are minima or maxima of strings or enums",
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
		if (!gpurhh_add_key(info, clause, arg))
			return false;
	}

	/* gpurhh_add_key() has seen to it that it can be */
	(void) gpurhh_resolve_type((Node *) arg, &column, &problem);
	for (int i = 0; i < GPU_MAX_OPERANDS && known->states[i].op != 0; i++)
	{
		if (gpurhh_state_is_used(&known->states[i], &column))
			states = lappend_int(states,
								 gpurhh_add_hidden_state(info, known->states[i].op, hidden_key));
	}

	/*
	 * The values are compared by the aggregate's collation, which need not be
	 * the argument's any more where the planner has simplified that.
	 */
	if (gpurhh_is_string(column.encoding) &&
		!gpurhh_resolve(exprType((Node *) arg), exprTypmod((Node *) arg),
						aggref->inputcollid, &column, &problem))
		return gpurhh_refuse(info, "aggregate %s has an argument of type %s, which %s",
							 text, format_type_be(exprType((Node *) arg)), problem);
	if (column.encoding == GPU_ENC_YEARS &&
		known->family->argument != AGGREGATE_OF_NULLS)
		return gpurhh_refuse(info, "aggregate %s has an argument that may be infinite",
							 text);
	gpurhh_add_output(info, (Expr *) aggref, GPU_OUTPUT_AGGREGATE, column)->states = states;
	return true;
}

/* When an aggregate is added. */
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

/* Adds the aggregates whose turn it is. */
bool
gpurhh_add_aggregates(PlanInfo *info, AggregateTurn turn)
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
