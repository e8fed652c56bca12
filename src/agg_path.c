/*-------------------------------------------------------------------------
 *
 * agg_path.c
 *		Which GROUP BYs GpuHashAgg can do, and how.  Nothing here executes.
 *
 * The planner's hook is called once core has made its own grouping paths.  It
 *
 *		1. looks at every part of the query's grouping (build_plan_info); what
 *		   cannot be done exactly is refused, with the reason beside the check;
 *		2. puts a projection of [grouping columns, aggregates' arguments,
 *		   filters] on top of the cheapest input path: the columns that are
 *		   fed to the device ("child columns");
 *		3. has agg_cost.c make the paths and compare costs.
 *
 * The CustomScan's scan tuple (custom_scan_tlist) is [grouping columns,
 * aggregates, determined columns]; HAVING is its qual, and its target list is
 * computed from the scan tuple by core's own projection.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

GpuRefusalCollector *gpurhh_refusal_collector = NULL;

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
 * holds, a value from outside of the query, or a field of a row whose type
 * would be looked up in the plan, by a parameter.
 */
static Node *
printable_mutator(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, PlaceHolderVar))
		return printable_mutator((Node *) ((PlaceHolderVar *) node)->phexpr,
								 context);
	if ((IsA(node, Param) && ((Param *) node)->paramkind != PARAM_EXTERN) ||
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
		refuse(info, "GROUPING() is not supported");
		return true;
	}
	if (IsA(node, PlaceHolderVar))
	{
		refuse(info, "an expression from below an outer join is used beside the grouping columns");
		return true;
	}
	return expression_tree_walker(node, collect_outputs_walker, info);
}

/* The child column that holds expr, added if need be. */
static int
child_column(PlanInfo *info, Expr *expr, Index sortgroupref, GpuColumn column)
{
	PathTarget *target = info->child_target;
	List	   *travels = list_make2_int(column.encoding, column.parameter);
	ListCell   *lc_expr,
			   *lc_column;
	int			i = 0;

	forboth(lc_expr, target->exprs, lc_column, info->columns)
	{
		if (sortgroupref == 0 && equal(lfirst(lc_column), travels) &&
			equal(lfirst(lc_expr), expr))
			return i;
		i++;
	}
	add_column_to_pathtarget(target, expr, sortgroupref);
	info->columns = lappend(info->columns, travels);
	return i;
}

/* The number of the state, added if no equal one is there. */
static int
device_state(PlanInfo *info, rhh_state_op op, int arg, int filter)
{
	ListCell   *lc = list_head(info->states);

	for (int i = 0; i < info->n_states; i++)
	{
		int			this_op = lfirst_int(lc);
		int			this_arg;
		int			this_filter;

		lc = lnext(info->states, lc);
		this_arg = lfirst_int(lc);
		lc = lnext(info->states, lc);
		this_filter = lfirst_int(lc);
		lc = lnext(info->states, lc);
		if (this_op == (int) op && this_arg == arg && this_filter == filter)
			return i;
	}
	info->states = lappend_int(info->states, op);
	info->states = lappend_int(info->states, arg);
	info->states = lappend_int(info->states, filter);
	return info->n_states++;
}

/* A column of the scan tuple; operands: IntList of keys' or states' numbers. */
static void
add_output(PlanInfo *info, Expr *expr, GpuFinal final, GpuColumn column,
		   List *operands)
{
	TargetEntry *tle;

	tle = makeTargetEntry(expr, list_length(info->scan_tlist) + 1, NULL, false);
	info->scan_tlist = lappend(info->scan_tlist, tle);
	info->outputs = lappend(info->outputs,
							list_concat(list_make3_int(final, column.encoding,
													   column.parameter),
										operands));
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

	/* the projection must give the value that grouping gave */
	if (contain_volatile_functions((Node *) expr))
		return refuse(info, "key column %s is volatile",
					  expression_text(info, expr));
	if (expression_returns_set((Node *) expr))
		return refuse(info, "key column %s returns a set",
					  expression_text(info, expr));

	number = child_column(info, expr, clause->tleSortGroupRef, column);
	info->key_columns = lappend_int(info->key_columns, number);
	add_output(info, expr, GPU_FINAL_KEY, column,
			   list_make1_int(list_length(info->key_columns) - 1));
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

/* One aggregate. */
static bool
add_aggregate(PlanInfo *info, Aggref *aggref)
{
	const GpuAggregate *known = gpurhh_find_aggregate(aggref->aggfnoid);
	const char *text = expression_text(info, aggref);
	Expr	   *arg = NULL;
	Expr	   *filter = aggref->aggfilter;
	int			arg_column = -1;
	int			filter_column = -1;
	GpuColumn	column = {GPU_ENC_NONE};
	List	   *operands = NIL;

	if (aggref->aggdistinct != NIL)
		return refuse(info, "aggregate %s has DISTINCT", text);
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
		expression_returns_set((Node *) filter))
		return refuse(info, "aggregate %s has an argument that returns a set",
					  text);

	if (!aggref->aggstar)
	{
		const char *problem;
		Oid			argtype;
		bool		resolved;

		arg = linitial_node(TargetEntry, aggref->args)->expr;
		argtype = exprType((Node *) arg);
		resolved = gpurhh_resolve_type((Node *) arg, &column, &problem);
		if (known->argtype == InvalidOid && !resolved)
		{
			/* count(x) of any other type: only whether x is NULL is fed */
			NullTest   *test = makeNode(NullTest);

			test->arg = arg;
			test->nulltesttype = IS_NOT_NULL;
			test->argisrow = false;
			test->location = -1;
			filter = filter ? guarded(filter, (Expr *) test) : (Expr *) test;
		}
		else if (!resolved ||
				 (known->argtype != InvalidOid && known->argtype != argtype))
			return refuse(info, "aggregate %s has an argument of type %s",
						  text, format_type_be(argtype));
		else
		{
			/* a NULL is what the state passes over, so no filter is needed */
			if (filter != NULL && !IsA(arg, Var) && !IsA(arg, Const))
			{
				arg = guarded(filter, arg);
				filter = NULL;
			}
			if (known->encoding != GPU_ENC_NONE)
				column.encoding = known->encoding;
			arg_column = child_column(info, arg, 0, column);
		}
	}
	if (filter != NULL)
		filter_column = child_column(info, filter, 0,
									 (GpuColumn){GPU_ENC_FILTER});

	for (int i = 0; i < GPU_MAX_OPERANDS && known->states[i] != 0; i++)
		operands = lappend_int(operands,
							   device_state(info, known->states[i], arg_column,
											filter_column));
	add_output(info, (Expr *) aggref, known->final, column, operands);
	return true;
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
	if (column.encoding == GPU_ENC_FLOAT4)
		column.encoding = GPU_ENC_FLOAT4_RAW;
	else if (column.encoding == GPU_ENC_FLOAT8)
		column.encoding = GPU_ENC_FLOAT8_RAW;
	number = child_column(info, expr, 0, column);
	add_output(info, expr, GPU_FINAL_ANY, column,
			   list_make1_int(device_state(info, RHH_ANY, number, -1)));
	return true;
}

/*
 * Decides whether the grouping can be done, and how.  False: info->refusal
 * says why not.
 */
static bool
build_plan_info(PlanInfo *info, RelOptInfo *output_rel, List *having)
{
	PlannerInfo *root = info->root;
	Query	   *parse = root->parse;
	ListCell   *lc;

	if (parse->groupingSets != NIL)
		return refuse(info, "GROUPING SETS, ROLLUP and CUBE are not supported");
	if (gpurhh_group_clause(root) == NIL)
		return refuse(info, "all grouping columns are constant");
	if (list_length(gpurhh_group_clause(root)) > RHH_MAX_KEYS)
		return refuse(info, "there are more than %d grouping columns",
					  RHH_MAX_KEYS);

	info->child_target = create_empty_pathtarget();
	foreach(lc, gpurhh_group_clause(root))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		info->keys = lappend(info->keys,
							 get_sortgroupclause_expr(clause,
													  root->processed_tlist));
	}
	foreach(lc, parse->groupClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node	   *expr = get_sortgroupclause_expr(clause, root->processed_tlist);

		if (!list_member(gpurhh_group_clause(root), clause) &&
			contain_var_clause(expr))
			info->redundant = lappend(info->redundant, expr);
	}
	if (collect_outputs_walker((Node *) output_rel->reltarget->exprs, info) ||
		collect_outputs_walker((Node *) having, info))
		return false;

	{
		ListCell   *lc_key;

		forboth(lc, gpurhh_group_clause(root), lc_key, info->keys)
		{
			if (!add_key(info, lfirst_node(SortGroupClause, lc),
						 lfirst(lc_key)))
				return false;
		}
	}
	foreach(lc, info->aggrefs)
	{
		if (!add_aggregate(info, lfirst_node(Aggref, lc)))
			return false;
	}
	foreach(lc, info->determined)
	{
		if (!add_determined(info, lfirst(lc)))
			return false;
	}

	if (list_length(info->child_target->exprs) > RHH_MAX_COLUMNS)
		return refuse(info, "there are more than %d columns to feed",
					  RHH_MAX_COLUMNS);
	if (info->n_states > RHH_MAX_STATES)
		return refuse(info, "there are more than %d transition states",
					  RHH_MAX_STATES);
	/* none has more than 6 words with its RHH_COUNT, so RHH_MAX_STATE_WORDS hold */
	return true;
}

/*
 * Tells whoever wants to know why a GROUP BY does not use the node.  A path that
 * was added may still lose to another one for the query as a whole: that stands
 * as the reason until the path is made a plan.
 */
static void
report_refusal(PlanInfo *info)
{
	GpuRefusalCollector *collector = gpurhh_refusal_collector;
	StringInfoData group_by;
	ListCell   *lc;

	if (!info->explain || (info->refusal == NULL && collector == NULL))
		return;

	initStringInfo(&group_by);
	foreach(lc, info->root->parse->groupClause)
	{
		Node	   *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, lc),
													info->root->processed_tlist);

		appendStringInfo(&group_by, "%s%s", group_by.len > 0 ? ", " : "",
						 expression_text(info, expr));
	}
	if (info->refusal != NULL)
		ereport(DEBUG1,
				(errmsg_internal("GpuHashAgg is not used for GROUP BY %s: %s",
								 group_by.data, info->refusal)));
	if (collector != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(collector->context);
		GpuRefusal *refusal = palloc0(sizeof(GpuRefusal));

		refusal->statement = collector->statement;
		refusal->group_by = pstrdup(group_by.data);
		refusal->reason = pstrdup(info->refusal ? info->refusal :
								  "another plan has the lower cost for the query as a whole");
		refusal->path_columns = info->columns;
		collector->refusals = lappend(collector->refusals, refusal);
		MemoryContextSwitchTo(old);
	}
}

static void
upper_paths_hook(PlannerInfo *root, UpperRelationKind stage,
				 RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	PlanInfo	info = {0};
	List	   *having;

	if (prev_upper_paths_hook)
		prev_upper_paths_hook(root, stage, input_rel, output_rel, extra);

	/* partitions' own groupings are parts of the one reported at the top */
	if (stage != UPPERREL_GROUP_AGG || IS_OTHER_REL(input_rel))
		return;
	if (!enable_gpu_hashagg && gpurhh_refusal_collector == NULL)
		return;
	/* aggregates without GROUP BY are not what the node is about */
	if (root->parse->groupClause == NIL && root->parse->groupingSets == NIL)
		return;

	info.root = root;
	info.explain = gpurhh_refusal_collector != NULL ||
		message_level_is_interesting(DEBUG1);
	having = (List *) ((GroupPathExtraData *) extra)->havingQual;
	if (build_plan_info(&info, output_rel, having))
	{
		const char *refusal = gpurhh_add_agg_paths(&info, input_rel,
												   output_rel, having);

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
