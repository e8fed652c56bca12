/*-------------------------------------------------------------------------
 *
 * compat.h
 *		What differs between PostgreSQL versions, 15 to 18.  The only file that
 *		looks at PG_VERSION_NUM.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_COMPAT_H
#define GPURHH_COMPAT_H

#include "postgres.h"

#include "access/heapam.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/dsm.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#if PG_VERSION_NUM < 150000
#error "gpurhh needs PostgreSQL 15 or later"
#endif

#include "utils/rel.h"
#if PG_VERSION_NUM < 170000
#include "utils/snapmgr.h"
#endif

/* core's scans read streams of pages, which look up buffers by themselves */
#if PG_VERSION_NUM >= 170000
#define GPURHH_SCANS_STREAM
#include "storage/read_stream.h"
#endif

/* Are stores of other processes seen in their order?  That a device finds the rows of a page relies on it. */
#ifdef __x86_64__
#define GPURHH_DEVICES_READ_IN_ORDER true
#else
#define GPURHH_DEVICES_READ_IN_ORDER false
#endif

/* sessions remember in which buffers pages are (scan/heap_walk.c) */
#if PG_VERSION_NUM < 160000
#define GPURHH_BUFFER_HINTS
#endif

#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#include "varatt.h"
#endif

#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "rewrite/rewriteManip.h"
#include "storage/waiteventset.h"
#endif

/* The grouping clause without what the planner found redundant. */
static inline List *
gpurhh_group_clause(PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	return root->processed_groupClause;
#else
	return root->parse->groupClause;
#endif
}

/* The same for SELECT DISTINCT. */
static inline List *
gpurhh_distinct_clause(PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	return root->processed_distinctClause;
#else
	return root->parse->distinctClause;
#endif
}

/*
 * An expression of a grouping's output as it is below the grouping, where no
 * grouping set has made its columns NULL.
 */
static inline Expr *
gpurhh_below_grouping(PlannerInfo *root, Expr *expr)
{
#if PG_VERSION_NUM >= 180000
	if (root->parse->hasGroupRTE && root->parse->groupingSets != NIL)
		return (Expr *) remove_nulling_relids((Node *) expr,
											  bms_make_singleton(root->group_rtindex),
											  NULL);
#endif
	return expr;
}

/* The relids of a query level's last join relation, with its outer joins' from 16 on. */
static inline Relids
gpurhh_all_relids(PlannerInfo *root)
{
#if PG_VERSION_NUM >= 160000
	return root->all_query_rels;
#else
	return root->all_baserels;
#endif
}

/* Is it an antijoin that returns rows of its inner side?  Only from 16 on there are such. */
static inline bool
gpurhh_is_right_anti(JoinType jointype)
{
#if PG_VERSION_NUM >= 160000
	return jointype == JOIN_RIGHT_ANTI;
#else
	return false;
#endif
}

/* The same for a semijoin, from 18 on. */
static inline bool
gpurhh_is_right_semi(JoinType jointype)
{
#if PG_VERSION_NUM >= 180000
	return jointype == JOIN_RIGHT_SEMI;
#else
	return false;
#endif
}

/* An expression of a query from the rewriter, of columns of tables and not of joins. */
static inline Node *
gpurhh_flatten_joined(Query *query, Node *expr)
{
#if PG_VERSION_NUM >= 180000
	if (query->hasGroupRTE)
		expr = flatten_group_exprs(NULL, query, expr);
#endif
#if PG_VERSION_NUM >= 160000
	return flatten_join_alias_vars(NULL, query, expr);
#else
	return flatten_join_alias_vars(query, expr);
#endif
}

/* Drops what such a query then has no need for: entries of joins and, from 18 on, of GROUP BY. */
static inline void
gpurhh_drop_join_entries(Query *query)
{
	ListCell   *lc;

	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_JOIN)
			rte->joinaliasvars = NIL;
	}
#if PG_VERSION_NUM >= 180000
	if (query->hasGroupRTE)
		query->rtable = list_delete_last(query->rtable);
	query->hasGroupRTE = false;
#endif
}

/* Can that be done? */
static inline bool
gpurhh_has_droppable_entries(Query *query)
{
#if PG_VERSION_NUM >= 180000
	return !query->hasGroupRTE ||
		llast_node(RangeTblEntry, query->rtable)->rtekind == RTE_GROUP;
#else
	return true;
#endif
}

/*
 * A ring for a scan whose pages stay pinned for a while: so many at a time.  Up to 15 there is no other one than that of COPY, of 16 MB,
 * where a page that has been changed meanwhile is written before its buffer is used again, as core's own ring for scans would not do.
 */
static inline BufferAccessStrategy
gpurhh_ring(int n_pages)
{
#if PG_VERSION_NUM >= 160000
	return GetAccessStrategyWithSize(BAS_BULKREAD, n_pages * (BLCKSZ / 1024));
#else
	return GetAccessStrategy(BAS_BULKWRITE);
#endif
}

/* Takes the permissions that a table's entry needs along, to a query that only has this one. */
static inline void
gpurhh_move_permissions(Query *from, RangeTblEntry *rte, Query *to)
{
#if PG_VERSION_NUM >= 160000
	if (rte->perminfoindex != 0)
	{
		to->rteperminfos = list_make1(copyObject(getRTEPermissionInfo(from->rteperminfos, rte)));
		rte->perminfoindex = 1;
	}
#endif
}

/*
 * Are there several tables, so that EXPLAIN says which one a column is of?
 * Core does not count the entry that 18 has for GROUP BY.
 */
static inline bool
gpurhh_several_tables(List *rtable)
{
	int			n = list_length(rtable);
#if PG_VERSION_NUM >= 180000
	ListCell   *lc;

	foreach(lc, rtable)
	{
		if (lfirst_node(RangeTblEntry, lc)->rtekind == RTE_GROUP)
		{
			n--;
			break;
		}
	}
#endif
	return n > 1;
}

/* 1: infinity, 2: -infinity, which 17 has; 0: neither. */
static inline int
gpurhh_interval_infinite(const Interval *interval)
{
#if PG_VERSION_NUM >= 170000
	if (INTERVAL_IS_NOEND(interval))
		return 1;
	if (INTERVAL_IS_NOBEGIN(interval))
		return 2;
#endif
	return 0;
}

static inline void
gpurhh_set_infinite(Interval *interval, bool negative)
{
#if PG_VERSION_NUM >= 170000
	if (negative)
		INTERVAL_NOBEGIN(interval);
	else
		INTERVAL_NOEND(interval);
#endif
}

/* What add_path() looks at before it compares costs. */
static inline void
gpurhh_inherit_disabled(Path *path, const Path *subpath)
{
#if PG_VERSION_NUM >= 180000
	path->disabled_nodes = subpath->disabled_nodes;
#endif
}

/*
 * EXPLAIN says of a node that it is disabled if it counts more disabled nodes than its children.
 * Those of a CustomScan it looks for in custom_plans alone, and ours has its child where other
 * nodes have theirs.  So a finished plan gets a node there, which nobody runs, that counts as
 * many as the child.
 */
static inline void
gpurhh_count_disabled_child(CustomScan *cscan)
{
#if PG_VERSION_NUM >= 180000
	int			disabled = outerPlan(&cscan->scan.plan)->disabled_nodes;

	if (disabled > 0)
	{
		Plan	   *count = &makeNode(Result)->plan;

		count->disabled_nodes = disabled;
		cscan->custom_plans = list_make1(count);
	}
#endif
}

static inline bool
gpurhh_is_disabled(const Path *path)
{
#if PG_VERSION_NUM >= 180000
	return path->disabled_nodes > 0;
#else
	return false;				/* what is costs so much that one sees it there */
#endif
}

/* How many nodes of a path are disabled; fewer are better, whatever they cost. */
static inline int
gpurhh_disabled_nodes(const Path *path)
{
#if PG_VERSION_NUM >= 180000
	return path->disabled_nodes;
#else
	return 0;					/* the cost says it */
#endif
}

/* Is a finished plan better than another? */
static inline bool
gpurhh_plan_is_better(const Plan *plan, const Plan *other)
{
#if PG_VERSION_NUM >= 180000
	if (plan->disabled_nodes != other->disabled_nodes)
		return plan->disabled_nodes < other->disabled_nodes;
#endif
	return plan->total_cost < other->total_cost;
}

/* The permission checks that running the query would make. */
static inline void
gpurhh_check_permissions(PlannedStmt *stmt)
{
#if PG_VERSION_NUM >= 160000
	ExecCheckPermissions(stmt->rtable, stmt->permInfos, true);
#else
	ExecCheckRTPerms(stmt->rtable, true);
#endif
}

/* May the user call the function? */
static inline AclResult
gpurhh_execute_aclcheck(Oid function, Oid user)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(ProcedureRelationId, function, user, ACL_EXECUTE);
#else
	return pg_proc_aclcheck(function, user, ACL_EXECUTE);
#endif
}

/* Memory for what a setting's check hook hands to its assign hook, or NULL. */
static inline void *
gpurhh_guc_malloc(size_t size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

/* A set of events that lives as long as the process. */
static inline WaitEventSet *
gpurhh_create_wait_event_set(int n_events)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, n_events);
#else
	return CreateWaitEventSet(TopMemoryContext, n_events);
#endif
}

/* Reads exactly size bytes, or raises an error. */
#if PG_VERSION_NUM >= 160000
#define gpurhh_buffile_read(file, ptr, size) BufFileReadExact(file, ptr, size)
#else
#define gpurhh_buffile_read(file, ptr, size) \
	do { \
		size_t		nread_ = BufFileRead(file, ptr, size); \
		\
		if (nread_ != (size)) \
			ereport(ERROR, \
					(errcode_for_file_access(), \
					 errmsg("could not read from a temporary file: read only %zu of %zu bytes", \
							nread_, (size_t) (size)))); \
	} while (0)
#endif

/* What a table's pages are known by, with their numbers. */
typedef struct RelationFile
{
	Oid			tablespace;
	Oid			database;
	Oid			number;
} RelationFile;

static inline RelationFile
gpurhh_relation_file(Relation rel)
{
#if PG_VERSION_NUM >= 160000
	return (RelationFile){rel->rd_locator.spcOid, rel->rd_locator.dbOid, rel->rd_locator.relNumber};
#else
	return (RelationFile){rel->rd_node.spcNode, rel->rd_node.dbNode, rel->rd_node.relNode};
#endif
}

/* By which shared buffers know a table's page (storage/buf_internals.h). */
#if PG_VERSION_NUM >= 160000
#define gpurhh_init_buffer_tag(tag, rel, block) InitBufferTag(tag, &(rel)->rd_locator, MAIN_FORKNUM, block)
#else
#define gpurhh_init_buffer_tag(tag, rel, block) INIT_BUFFERTAG(*(tag), (rel)->rd_node, MAIN_FORKNUM, block)
#endif

/* Has the current transaction made the table, or given it another file? */
static inline bool
gpurhh_is_new_file(Relation rel)
{
#if PG_VERSION_NUM >= 160000
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_newRelfilelocatorSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_newRelfilenodeSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

/* May a snapshot become too old for pages that it needs?  So it may up to 16. */
static inline bool
gpurhh_snapshots_get_old(void)
{
#if PG_VERSION_NUM >= 170000
	return false;
#else
	return OldSnapshotThresholdActive();
#endif
}

/* Raises an error if the page may have changed too much since the snapshot was taken; up to 16. */
static inline void
gpurhh_test_for_old_snapshot(Snapshot snapshot, Relation rel, Page page)
{
#if PG_VERSION_NUM < 170000
	TestForOldSnapshot(snapshot, rel, page);
#endif
}

/* As many times pgstat_count_heap_getnext(). */
static inline void
gpurhh_count_heap_tuples(Relation rel, int64 n)
{
	if (pgstat_should_count_relation(rel))
#if PG_VERSION_NUM >= 160000
		rel->pgstat_info->counts.tuples_returned += n;
#else
		rel->pgstat_info->t_counts.t_tuples_returned += n;
#endif
}

#endif							/* GPURHH_COMPAT_H */
