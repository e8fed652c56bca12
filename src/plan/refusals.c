/*-------------------------------------------------------------------------
 *
 * refusals.c
 *		Why a grouping is refused, and who is told.
 *
 * A check that fails notes its reason in the PlanInfo (gpurhh_refuse).  When the
 * grouping has been looked at, the reason goes into a message at level DEBUG1, and
 * to the function gpurhh_refusals(), if that is what has the query planned: it plans
 * a query with a collector, and each grouping of the query leaves a GpuRefusal there.
 *
 * A grouping that was given a path leaves one too, since the path may still lose to
 * another plan for the query as a whole.  If it becomes a plan, the GpuRefusal is
 * marked as planned (gpurhh_note_planned).  What tells path and refusal apart from
 * those of other groupings is the grouping's number.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "plan/plan_info.h"

/* Who asked for the refusals of the query that is planned next, or NULL. */
static GpuRefusalCollector *asking_collector = NULL;

/* Who asked for those of the query that is being planned, or NULL. */
static GpuRefusalCollector *collector = NULL;

/* ---------- a reason ---------- */

/*
 * Notes why the grouping cannot be done, unless a reason has been noted before.
 * Returns false always, so that a check can return what it returns.
 */
bool
gpurhh_refuse(PlanInfo *info, const char *fmt,...)
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
 * Makes an expression printable that only a finished plan would give a text to.  A
 * placeholder becomes what it holds.  A parameter $0 stands for a value from
 * outside of the query, for a field of a row whose type would be looked up in the
 * plan, and for a window function's value.
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

/* An expression of a query level as the user may have written it. */
static const char *
deparse(PlannerInfo *root, void *expr)
{
	PlannedStmt *shell = makeNode(PlannedStmt);
	List	   *names;
	List	   *context;

	/* what deparsing looks at of a PlannedStmt is its range table */
	shell->rtable = root->parse->rtable;
	names = select_rtable_names_for_explain(shell->rtable, NULL);
	context = deparse_context_for_plan_tree(shell, names);
	return deparse_expression(printable_mutator(expr, NULL), context,
							  gpurhh_several_tables(shell->rtable), false);
}

/*
 * An expression as the user may have written it, for a reason.  An empty string if
 * nobody will read the reason: deparsing opens every relation of the query.
 */
const char *
gpurhh_expression_text(PlanInfo *info, void *expr)
{
	if (!info->explain)
		return "";
	if (info->stage == UPPERREL_SETOP && IsA(expr, Var))
		return get_tle_by_resno(info->root->parse->targetList,
								((Var *) expr)->varattno)->resname;
	return deparse(info->root, expr);
}

/* The same of what joins need, for those who collect refusals. */
const char *
gpurhh_clause_text(PlannerInfo *root, void *expr)
{
	return collector == NULL ? "" : deparse(root, expr);
}

/* The names of base relations, as "t, d", for the same. */
const char *
gpurhh_relation_names(PlannerInfo *root, Relids relids)
{
	StringInfoData text;
	int			relid = -1;

	if (collector == NULL)
		return "";
	initStringInfo(&text);
	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		/* outer joins have numbers, too */
		if (root->simple_rel_array[relid] != NULL)
			appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "",
							 quote_identifier(root->simple_rte_array[relid]->eref->aliasname));
	}
	return text.data;
}

/* ---------- who is told ---------- */

/* The whole grouping as the user may have written it. */
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
						 gpurhh_expression_text(info, expr));
	}
	return text.data;
}

/*
 * Tells whoever asked how a grouping ended: why it is refused or, where it was
 * given a path, what stands as the reason until the path becomes a plan.
 */
void
gpurhh_report_refusal(PlanInfo *info)
{
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

/* Tells who collects refusals why no device does the joins of a query level. */
void
gpurhh_report_joins(PlannerInfo *root)
{
	const char *why = gpurhh_unjoined(root);
	MemoryContext old;
	GpuRefusal *refusal;

	if (collector == NULL || why == NULL)
		return;
	old = MemoryContextSwitchTo(collector->context);
	refusal = palloc0(sizeof(GpuRefusal));
	refusal->statement = collector->statement;
	refusal->reason = psprintf("joins of %s: %s",
							   gpurhh_relation_names(root, root->all_baserels), why);
	refusal->level = root;
	collector->refusals = lappend(collector->refusals, refusal);
	MemoryContextSwitchTo(old);
}

/*
 * Notes that a path has become a plan for a query level: for the grouping of this number (0: it is
 * of GpuHashJoin), with joins that a device does, or without.
 */
void
gpurhh_note_planned(PlannerInfo *root, int grouping, bool joins)
{
	ListCell   *lc;

	if (collector == NULL)
		return;
	foreach(lc, collector->refusals)
	{
		GpuRefusal *refusal = lfirst(lc);

		if (refusal->level == NULL ? refusal->grouping == grouping :
			joins && refusal->level == root)
			refusal->planned = true;
	}
}

/* Is somebody collecting the refusals of the query that is being planned? */
bool
gpurhh_collects_refusals(void)
{
	return collector != NULL;
}

/*
 * To be called around the planning of each query.  Returns the collector of the
 * query that is being planned, which is to be given to gpurhh_end_collecting().
 *
 * Planning may evaluate functions that plan queries of their own, and keep those
 * plans.  They follow the settings, whoever asks about the query around them: so a
 * collector is for the next query that is planned, and for no other.
 */
GpuRefusalCollector *
gpurhh_begin_collecting(void)
{
	GpuRefusalCollector *outer = collector;

	collector = asking_collector;
	asking_collector = NULL;
	return outer;
}

void
gpurhh_end_collecting(GpuRefusalCollector *outer)
{
	collector = outer;
}

/*
 * Plans a query as if enable_gpu_hashagg were on, and has the collector told
 * what is refused.
 */
PlannedStmt *
gpurhh_plan_and_collect(Query *query, const char *source,
						GpuRefusalCollector *asking)
{
	PlannedStmt *result;

	asking_collector = asking;
	PG_TRY();
	{
		result = pg_plan_query(query, source, CURSOR_OPT_PARALLEL_OK, NULL);
	}
	PG_FINALLY();
	{
		asking_collector = NULL;
	}
	PG_END_TRY();
	return result;
}
