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

#include "executor/executor.h"
#include "nodes/pathnodes.h"
#include "storage/dsm.h"
#include "storage/latch.h"
#include "utils/resowner.h"

#if PG_VERSION_NUM < 150000
#error "gpurhh needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
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

#endif							/* GPURHH_COMPAT_H */
