/*-------------------------------------------------------------------------
 *
 * grouping.c
 *		Decides whether the node can do a grouping, and how.  Nothing here executes.
 *
 * Every part of the grouping is looked at in turn: grouping columns and sets,
 * aggregates (grouping_aggregates.c), and the other columns that the output needs.
 * What the node cannot do exactly as core does it is refused, with the reason beside
 * the check.  What it can do is added to the plan (plan_build.c): columns that are fed
 * to the device, transition states, and columns of the scan tuple.
 *
 * GROUPING SETS and aggregates with DISTINCT take a second level, and perhaps a third.
 * The first level groups the rows by all grouping columns and by the arguments of
 * DISTINCT, which are hidden keys, and the others put those groups together to the
 * ones that are asked for (levels.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "compat.h"
#include "plan/plan_info.h"

/* ---------- what there is ---------- */

/*
 * Collects what the output needs besides the keys: aggregates, GROUPING()s, and what the
 * keys determine.  Returns true if GpuHashAgg cannot supply it.
 *
 * A whole expression is looked for among the grouping expressions before its parts are
 * looked at.  This matters for an expression that the planner has left out of GROUP BY
 * as redundant (PostgreSQL 16 and later): its value is the same in all rows of a group,
 * while those of the columns in it may differ.
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
		gpurhh_refuse(info, "an expression from below an outer join is used beside the grouping columns");
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

/*
 * Collects the sets of GROUPING SETS, ROLLUP and CUBE, which the planner has written
 * out.  A set of all grouping columns is put first, because its groups are those of the
 * first level (levels.c).
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

/* Collects the grouping columns and the grouping sets. */
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

/* Collects what the output needs.  Returns false if the node cannot supply it. */
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

/* ---------- keys and columns ---------- */

/* Adds a grouping column, or an argument of DISTINCT, as a key. */
bool
gpurhh_add_key(PlanInfo *info, SortGroupClause *clause, Expr *expr)
{
	Oid			type = exprType((Node *) expr);
	const char *problem;
	GpuColumn	column;
	int			number;

	if (!gpurhh_resolve_type((Node *) expr, &column, &problem))
		return gpurhh_refuse(info, "key column %s has type %s, which %s",
							 gpurhh_expression_text(info, expr), format_type_be(type),
							 problem);

	/* bytes decide equality for the type's own operator, and no other */
	if (clause->eqop != lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr)
		return gpurhh_refuse(info, "key column %s is compared by an operator that is not the default of type %s",
							 gpurhh_expression_text(info, expr),
							 format_type_be(type));
	/* an enum may have a default operator class that is somebody's own */
	if (clause->eqop >= FirstGenbkiObjectId)
		return gpurhh_refuse(info, "key column %s is compared by an operator that is not built in",
							 gpurhh_expression_text(info, expr));

	/* the projection must give the value that grouping gave */
	if (contain_volatile_functions((Node *) expr))
		return gpurhh_refuse(info, "key column %s is volatile",
							 gpurhh_expression_text(info, expr));
	if (expression_returns_set((Node *) expr))
		return gpurhh_refuse(info, "key column %s returns a set",
							 gpurhh_expression_text(info, expr));

	number = gpurhh_feed_column(info, expr, clause->tleSortGroupRef, column, true);
	info->plan->key_columns = lappend_int(info->plan->key_columns, number);
	return true;
}

/* Adds a GROUPING(): its value for each set has a bit for each argument outside of the set. */
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
	gpurhh_add_output(info, (Expr *) grouping, GPU_OUTPUT_GROUPING,
					  (GpuColumn){GPU_ENC_INT4})->value_of_set = values;
}

/*
 * Adds what the grouping columns determine: a column, because they contain its table's
 * primary key, or a grouping expression that the planner has left out as redundant.
 */
static bool
add_determined(PlanInfo *info, Expr *expr)
{
	const char *problem;
	GpuColumn	column;
	int			number;

	if (!gpurhh_resolve_type((Node *) expr, &column, &problem))
		return gpurhh_refuse(info, "column %s, which the grouping columns determine, has type %s",
							 gpurhh_expression_text(info, expr),
							 format_type_be(exprType((Node *) expr)));

	/* unlike a key it is not compared: its very bits come back, -0 too */
	column.encoding = gpurhh_as_stored(column.encoding);
	number = gpurhh_feed_column(info, expr, 0, column, false);
	gpurhh_add_output(info, expr, GPU_OUTPUT_ANY, column)->states =
		list_make1_int(gpurhh_add_state(info, RHH_ANY, number, -1));
	return true;
}

/*
 * Does core leave columns of this clause of DISTINCT, ORDER BY or a window out when it
 * sorts?  clause is what is asked for, pathkeys what core sorts by; grouped are the
 * expressions of GROUP BY.
 *
 * A column may be constant, or equal to another one, in the rows that are grouped.  In
 * the groups of GROUPING SETS it need not be, because sets make it NULL.  Core does not
 * know that, and leaves the column out where it sorts.  Then the result depends on the
 * order in which groups come, which is not the same for our node and core's.
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

/* loses_columns(), for any of the query's windows? */
static bool
windows_lose_columns(PlannerInfo *root, List *grouped)
{
	ListCell   *lc;

	foreach(lc, root->parse->windowClause)
	{
		WindowClause *window = lfirst_node(WindowClause, lc);
		List	   *clause = list_concat_copy(window->partitionClause,
											  window->orderClause);

		if (loses_columns(root, grouped, clause,
						  make_pathkeys_for_sortclauses(root, clause,
														root->processed_tlist)))
			return true;
	}
	return false;
}

/*
 * Two grouping columns may be equal expressions.  Where a grouping set makes one of them
 * NULL, their values differ all the same.  Likewise a constant that is a grouping column
 * is not constant any more.  Core tells these apart by their grouping references, but
 * only for its own nodes.  For ours gpurhh_note_keys() tells equal keys apart, but only
 * in the target list.  If that is not enough, refuses the grouping and returns false.
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
					  info->root->sort_pathkeys) ||
		windows_lose_columns(info->root, grouped))
		return gpurhh_refuse(info, "DISTINCT, ORDER BY or a window above GROUPING SETS has columns that the planner takes for constant or equal");
	foreach(lc, info->keys)
	{
		int			n_equal = 0;
		ListCell   *lc_other;

		foreach(lc_other, grouped)
			n_equal += equal(lfirst(lc_other), lfirst(lc)) ? 1 : 0;
		if (n_equal == 0)
			continue;
		if (!contain_var_clause(lfirst(lc)))
			return gpurhh_refuse(info, "key column %s of GROUPING SETS is constant",
								 gpurhh_expression_text(info, lfirst(lc)));
		if (n_equal == 1)
			continue;
		info->told_by_reference = true;

		/*
		 * GROUPING() of one of these equals GROUPING() of the other.  Core takes
		 * sorting by both for sorting by one.  And core takes a target list above
		 * that has the two in another order for the same list.
		 */
		if (info->groupings != NIL || parse->hasWindowFuncs ||
			parse->distinctClause != NIL || parse->sortClause != NIL)
			return gpurhh_refuse(info, "key column %s of GROUPING SETS is there more than once, and used by more than the result",
								 gpurhh_expression_text(info, lfirst(lc)));
	}
	return true;
}

/* Adds a column that returns this key to the scan tuple. */
static void
add_key_output(PlanInfo *info, int key)
{
	const GpuPlanColumn *fed = gpurhh_plan_key(info->plan, key);
	GpuColumn	column = {.encoding = fed->encoding, .parameter = fed->parameter};

	gpurhh_add_output(info, list_nth(info->keys, key), GPU_OUTPUT_KEY, column)->key = key;
}

/*
 * Adds a column to the scan tuple for each of the keys.  If keys are equal expressions,
 * the columns have the order of the target list.  For what is computed of such keys, core
 * takes the first one of the target list in its own nodes, and the first one of the scan
 * tuple in ours, so both have to be the same one.
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

/* Adds the columns and states for everything that was collected. */
static bool
add_columns(PlanInfo *info)
{
	ListCell   *lc,
			   *lc_key;

	if (!tell_keys_apart(info))
		return false;
	forboth(lc, info->clause, lc_key, info->keys)
	{
		if (!gpurhh_add_key(info, lfirst_node(SortGroupClause, lc), lfirst(lc_key)))
			return false;
	}
	add_key_outputs(info);
	if (!gpurhh_add_aggregates(info, TURN_OF_ROWS))
		return false;
	foreach(lc, info->determined)
	{
		if (!add_determined(info, lfirst(lc)))
			return false;
	}
	if (!gpurhh_add_aggregates(info, TURN_OF_CHOICES) ||
		!gpurhh_add_aggregates(info, TURN_OF_DISTINCT))
		return false;
	foreach(lc, info->groupings)
		add_grouping(info, lfirst_node(GroupingFunc, lc));

	/* a map has at least one key: for a single group, a constant */
	if (info->plan->key_columns == NIL)
	{
		Expr	   *one = (Expr *) makeBoolConst(true, false);

		info->plan->key_columns =
			list_make1_int(gpurhh_feed_column(info, one, 0,
											  (GpuColumn){GPU_ENC_BOOL}, true));
	}
	return true;
}

/*
 * Decides whether the node can do the grouping, and how: info->plan says it.  Returns
 * false if it cannot, and info->refusal says why.
 */
bool
gpurhh_plan_grouping(PlanInfo *info, List *having)
{
	GpuAggPlan *plan = gpurhh_make(GpuAggPlan);

	info->plan = plan;
	info->child_target = create_empty_pathtarget();
	collect_keys(info);
	if (!collect_outputs(info, having))
		return false;
	if (list_length(info->keys) > RHH_MAX_KEYS)
		return gpurhh_refuse(info, "there are more than %d grouping columns",
							 RHH_MAX_KEYS);
	if (!add_columns(info))
		return false;
	info->one_emitter = info->plan->sets != NIL || info->plan->choices != NIL ||
		info->distinct_args != NIL;

	if (list_length(info->plan->key_columns) > RHH_MAX_KEYS)
		return gpurhh_refuse(info, "there are more than %d grouping columns, arguments of DISTINCT, and minima and maxima of strings or enums",
							 RHH_MAX_KEYS);
	if (list_length(info->plan->columns) > RHH_MAX_COLUMNS)
		return gpurhh_refuse(info, "there are more than %d columns to feed",
							 RHH_MAX_COLUMNS);
	if (list_length(plan->states) + list_length(plan->choices) +
		list_length(plan->distinct_states) > RHH_MAX_STATES)
		return gpurhh_refuse(info, "there are more than %d transition states",
							 RHH_MAX_STATES);
	/* none has more than 3 words a state, all in all, so RHH_MAX_STATE_WORDS hold */
	return true;
}
