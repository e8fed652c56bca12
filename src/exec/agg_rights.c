/*-------------------------------------------------------------------------
 *
 * agg_rights.c
 *		EXECUTE on the functions that the node computes in core's place.
 *
 * When core's nodes are started they check that the user may call each function
 * that they will call, and tell the object access hook.  Functions in WHERE, in
 * arguments and in HAVING have been looked at by then, whoever evaluates them:
 * the child and the node itself are prepared by core.  What is left are the
 * aggregates and their parts, as in ExecInitAgg(), and the equality of grouping
 * columns, as in ExecBuildGroupingEqual().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "exec/agg_state.h"
#include "plan/plan.h"

/* Raises an error if the user may not call the function; tells the access hook. */
static void
check_function(Oid function, Oid user, ObjectType kind)
{
	AclResult	result = gpurhh_execute_aclcheck(function, user);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, kind, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

/*
 * The user must be allowed to call the aggregate, and the owner of the aggregate to call
 * the functions that it is made of.
 */
static void
check_aggregate(Oid aggregate)
{
	HeapTuple	tuple;
	Oid			owner;
	Oid			transition;
	Oid			final;

	check_function(aggregate, GetUserId(), OBJECT_AGGREGATE);

	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(aggregate));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", aggregate);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);

	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggregate);
	transition = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggtransfn;
	final = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggfinalfn;
	ReleaseSysCache(tuple);

	if (OidIsValid(final))
		check_function(final, owner, OBJECT_FUNCTION);
	check_function(transition, owner, OBJECT_FUNCTION);
}

/* The user must be allowed to call the type's own equality, by which keys are compared. */
static void
check_equality(Oid type)
{
	Oid operator= lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;

	check_function(get_opcode(operator), GetUserId(), OBJECT_FUNCTION);
}

/*
 * Checks what a plan's node is about to compute, when it is started, in each
 * process that starts it.  As in core, EXPLAIN alone does not look at equality,
 * which is prepared with a hash table.
 */
void
gpurhh_check_rights(CustomScan *cscan, bool explain_only)
{
	List	   *outputs = gpurhh_plan_of(cscan)->outputs;
	ListCell   *lc,
			   *lc_output;

	forboth(lc, cscan->custom_scan_tlist, lc_output, outputs)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;
		const GpuPlanOutput *output = lfirst(lc_output);

		if (output->kind == GPU_OUTPUT_KEY && !explain_only)
			check_equality(exprType(expr));
	}
	/* a key may be an aggregate that has been computed below */
	forboth(lc, cscan->custom_scan_tlist, lc_output, outputs)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;
		const GpuPlanOutput *output = lfirst(lc_output);

		if (output->kind != GPU_OUTPUT_KEY && IsA(expr, Aggref))
			check_aggregate(((Aggref *) expr)->aggfnoid);
	}
}
