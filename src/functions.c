/*-------------------------------------------------------------------------
 *
 * functions.c
 *		SQL functions: version, devices, statistics, the cache, refusals.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/analyze.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "cache/page_cache.h"
#include "channel/area.h"
#include "compat.h"
#include "plan/plan.h"
#include "scan/scan.h"
#include "service/service.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(gpurhh_version);
PG_FUNCTION_INFO_V1(gpurhh_devices);
PG_FUNCTION_INFO_V1(gpurhh_stats);
PG_FUNCTION_INFO_V1(gpurhh_cache_files);
PG_FUNCTION_INFO_V1(gpurhh_cache_load);
PG_FUNCTION_INFO_V1(gpurhh_cache_drop);
PG_FUNCTION_INFO_V1(gpurhh_refusals);

Datum
gpurhh_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(gpurhh_has_cuda_library() ?
									 GPURHH_VERSION " (cpu, cuda)" :
									 GPURHH_VERSION " (cpu)"));
}

static const char *
device_state_text(rhh_device_state state)
{
	switch (state)
	{
		case RHH_STATE_AVAILABLE:
			return "available";
		case RHH_STATE_OPEN:
			return "open";
		case RHH_STATE_UNUSABLE:
			return "unusable";
	}
	return "unknown";
}

/* One row for each device that the service sees; starts the service. */
Datum
gpurhh_devices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *why = NULL;
	ChannelArea *area = gpurhh_channel_attach(&why);
	rhh_device_info infos[GPURHH_MAX_DEVICES];
	int			n;

	if (area == NULL || !gpurhh_ensure_service(area, &why))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the device service"),
				 errdetail("The reason is: %s.", why),
				 errhint("You may need to increase max_worker_processes, or to free space in /dev/shm.")));
	gpurhh_refresh_devices(area);

	LWLockAcquire(&area->lock, LW_SHARED);
	n = area->n_devices;
	memcpy(infos, area->devices, sizeof(infos));
	LWLockRelease(&area->lock);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		rhh_device_info *info = &infos[i];
		bool		cuda = info->kind == RHH_KIND_CUDA;
		Datum		values[8];
		bool		nulls[8] = {0};

		values[0] = CStringGetTextDatum(cuda ? psprintf("cuda:%d", info->ordinal) : "cpu");
		values[1] = CStringGetTextDatum(cuda ? "cuda" : "cpu");
		values[2] = CStringGetTextDatum(info->name);
		values[3] = CStringGetTextDatum(psprintf("%d.%d", info->cc_major,
												 info->cc_minor));
		nulls[3] = !cuda;
		values[4] = Int64GetDatum((int64) info->total_bytes);
		values[5] = Int64GetDatum((int64) info->free_bytes);
		nulls[5] = !info->free_known;
		values[6] = CStringGetTextDatum(device_state_text(info->state));
		values[7] = CStringGetTextDatum(info->reason);
		nulls[7] = info->reason[0] == '\0';
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * What the service did since it started, one row; figures of a service that
 * has ended stay until the next one starts.  Starts none.
 */
Datum
gpurhh_stats(PG_FUNCTION_ARGS)
{
	ChannelArea *area = gpurhh_channel_peek();
	ServiceStats stats = {0};
	int			pid = 0;
	TupleDesc	tupdesc;
	Datum		values[17];
	bool		nulls[17] = {0};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (area != NULL)
	{
		LWLockAcquire(&area->lock, LW_SHARED);
		stats = area->stats;
		pid = area->service_pid;
		LWLockRelease(&area->lock);
	}
	values[0] = Int32GetDatum(pid);
	nulls[0] = pid == 0;
	values[1] = BoolGetDatum(area != NULL && area->shared);
	values[2] = TimestampTzGetDatum(stats.started_at);
	nulls[2] = stats.started_at == 0;
	values[3] = Int64GetDatum((int64) stats.queries);
	values[4] = Int64GetDatum((int64) stats.rows_fed);
	values[5] = Int64GetDatum((int64) stats.bytes_uploaded);
	values[6] = Int64GetDatum((int64) stats.groups_returned);
	values[7] = Int64GetDatum((int64) stats.failed_slots);
	values[8] = Int64GetDatum((int64) stats.rehashes);
	values[9] = Int64GetDatum((int64) stats.host_rows);
	values[10] = Int64GetDatum((int64) stats.host_queries);
	values[11] = Int64GetDatum((int64) stats.late_batches);
	values[12] = Int64GetDatum((int64) stats.device_errors);
	values[13] = Float8GetDatum(stats.pool_wait_us / 1.0e3);
	values[14] = Float8GetDatum(stats.upload_ns / 1.0e6);
	values[15] = Float8GetDatum(stats.kernel_ns / 1.0e6);
	values[16] = Float8GetDatum(stats.extract_ns / 1.0e6);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/* ---------- the cache ---------- */

/* The cache; an error if there is none. */
static PageCache *
cache_or_error(void)
{
	PageCache  *cache = gpurhh_page_cache();

	if (cache == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there is no cache of pages"),
				 errhint("Add gpurhh to shared_preload_libraries, and set gpurhh.cache_size to anything but 0.")));
	return cache;
}

/* One row for each table of which the cache has pages; none if there is no cache. */
Datum
gpurhh_cache_files(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PageCache  *cache = gpurhh_page_cache();
	CacheRelation *relations = palloc(GPURHH_CACHE_RELATIONS * sizeof(CacheRelation));
	int			n = 0;

	if (cache != NULL)
	{
		LWLockAcquire(&cache->lock, LW_SHARED);
		n = cache->device[0] == '\0' ? 0 : cache->n_relations;
		memcpy(relations, cache->relations, n * sizeof(CacheRelation));
		LWLockRelease(&cache->lock);
	}
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		const CacheRelation *relation = &relations[i];
		Datum		values[9];
		bool		nulls[9] = {0};

		if (relation->n_pages == 0)
			continue;
		values[0] = ObjectIdGetDatum(relation->file.tablespace);
		values[1] = ObjectIdGetDatum(relation->file.database);
		values[2] = ObjectIdGetDatum(relation->file.number);
		values[3] = Int64GetDatum((int64) relation->n_entries * GPURHH_CACHE_PAGES * BLCKSZ);
		values[4] = Int64GetDatum(relation->n_pages);
		values[5] = Int64GetDatum(relation->n_partial);
		values[6] = Int64GetDatum((int64) relation->hits);
		values[7] = Int64GetDatum((int64) relation->misses);
		values[8] = TimestampTzGetDatum((TimestampTz) relation->used_at * USECS_PER_SEC);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static void
set_for_load(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* Opens a table whose pages can be cached, which the user may do something with. */
static Relation
open_cacheable(Oid relid, AclMode mode)
{
	Relation	rel = relation_open(relid, AccessShareLock);
	AclResult	result = mode == ACL_NO_RIGHTS ? ACLCHECK_OK : pg_class_aclcheck(relid, GetUserId(), mode);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(rel->rd_rel->relkind), RelationGetRelationName(rel));
	if (!RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind) || rel->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table of access method heap", RelationGetRelationName(rel)),
				 errdetail("Only pages of such tables, or partitions, and materialized views are cached.")));
	return rel;
}

/* Reads a table, without its children, into the cache.  Returns how many of its pages are there then. */
Datum
gpurhh_cache_load(PG_FUNCTION_ARGS)
{
	Relation	rel;
	RelationFile file;
	int			level;
	char	   *query;

	(void) cache_or_error();
	rel = open_cacheable(PG_GETARG_OID(0), ACL_SELECT);
	file = gpurhh_relation_file(rel);
	level = NewGUCNestLevel();
	if (!gpurhh_may_cache(rel))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pages of \"%s\" cannot be cached now", RelationGetRelationName(rel)),
				 errdetail("No pages are cached of unlogged and temporary tables, of system catalogs, and of tables that the transaction has made; nor in serializable transactions, during recovery, or with old_snapshot_threshold.")));
	query = psprintf("SELECT count(*) FROM ONLY %s",
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												RelationGetRelationName(rel)));
	set_for_load("gpurhh.enable_hashagg", "on");
	set_for_load("enable_gpu_hashagg", "on");
	set_for_load("gpurhh.read_pages", "on");
	set_for_load("gpurhh.partial_copies", "off");
	set_for_load("gpurhh.setup_cost", "0");
	set_for_load("gpurhh.row_cost", "0");
	set_for_load("max_parallel_workers_per_gather", "0");
	set_for_load("enable_indexscan", "off");
	set_for_load("enable_indexonlyscan", "off");
	set_for_load("enable_bitmapscan", "off");
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	/* not read-only, so the snapshot is of now */
	if (SPI_execute(query, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the table");
	SPI_finish();
	AtEOXact_GUC(true, level);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64(gpurhh_cache_pages(&file, GPURHH_ALL_ATTRIBUTES));
}

/* Drops what the cache has of a table.  Returns how many pages that was. */
Datum
gpurhh_cache_drop(PG_FUNCTION_ARGS)
{
	Relation	rel;
	RelationFile file;
	uint64		n;

	(void) cache_or_error();
	rel = open_cacheable(PG_GETARG_OID(0), ACL_NO_RIGHTS);
	file = gpurhh_relation_file(rel);
	n = gpurhh_cache_forget(&file);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64((int64) n);
}

static void plan_query(Query *query, const char *source,
					   GpuRefusalCollector *collector);

/* Plans a statement as it was parsed; its parameters may be of any type. */
static void
plan_raw_statement(RawStmt *raw, const char *source,
				   GpuRefusalCollector *collector)
{
	Oid		   *param_types = NULL;
	int			n_params = 0;
	ListCell   *lc;

	foreach(lc, pg_analyze_and_rewrite_varparams(raw, source, &param_types,
												 &n_params, NULL))
		plan_query(lfirst_node(Query, lc), source, collector);
}

/*
 * Plans a query, or the one inside a utility statement such as EXPLAIN or
 * CREATE TABLE AS; other statements have nothing to plan.
 */
static void
plan_query(Query *query, const char *source, GpuRefusalCollector *collector)
{
	List	   *queries = list_make1(query);
	ListCell   *lc;

	if (query->commandType == CMD_UTILITY)
	{
		Node	   *utility = query->utilityStmt;
		RawStmt    *raw = makeNode(RawStmt);

		/* these two hold what is analyzed only when they are executed */
		if (IsA(utility, PrepareStmt))
			raw->stmt = copyObject(((PrepareStmt *) utility)->query);
		else if (IsA(utility, CopyStmt))
			raw->stmt = copyObject(((CopyStmt *) utility)->query);
		if (raw->stmt != NULL)
		{
			plan_raw_statement(raw, source, collector);
			return;
		}
		query = UtilityContainsQuery(utility);
		if (query == NULL)
			return;
		query = copyObject(query);
		AcquireRewriteLocks(query, true, false);
		queries = pg_rewrite_query(query);
	}
	foreach(lc, queries)
	{
		query = lfirst_node(Query, lc);
		if (query->commandType == CMD_UTILITY)
			continue;
		/* what EXPLAIN would refuse to show, is not told here either */
		gpurhh_check_permissions(gpurhh_plan_and_collect(query, source,
														 collector));
	}
}

/*
 * Plans the statements of a text, as if enable_gpu_hashagg were on, and returns
 * each GROUP BY that does not become a GpuHashAgg, with the reason; where there
 * is no other, that the setting is off.  Of what functions do that planning
 * evaluates nothing is told.
 */
Datum
gpurhh_refusals(PG_FUNCTION_ARGS)
{
	char	   *source = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	GpuRefusalCollector collector = {0};
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	collector.context = CurrentMemoryContext;
	foreach(lc, pg_parse_query(source))
	{
		collector.statement++;
		plan_raw_statement(lfirst_node(RawStmt, lc), source, &collector);
	}

	foreach(lc, collector.refusals)
	{
		GpuRefusal *refusal = lfirst(lc);
		Datum		values[3];
		bool		nulls[3] = {0};

		if (refusal->planned && (enable_gpu_hashagg || refusal->group_by == NULL))
			continue;
		values[0] = Int32GetDatum(refusal->statement);
		nulls[1] = refusal->group_by == NULL;
		if (!nulls[1])
			values[1] = CStringGetTextDatum(refusal->group_by);
		values[2] = CStringGetTextDatum(refusal->planned ?
										"enable_gpu_hashagg is off" :
										refusal->reason);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
