/* gpurhh--0.1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION gpurhh" to load this file. \quit

-- A C function's creation loads the library, so that the settings are known in
-- the session that creates the extension.

CREATE FUNCTION gpurhh_version() RETURNS text
LANGUAGE C STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'gpurhh_version';
COMMENT ON FUNCTION gpurhh_version() IS
'version of gpurhh, and the kinds of devices it was built for';

CREATE FUNCTION gpurhh_devices(
	OUT device text,
	OUT kind text,
	OUT name text,
	OUT compute_capability text,
	OUT total_bytes bigint,
	OUT free_bytes bigint,
	OUT state text,
	OUT detail text)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'gpurhh_devices';
COMMENT ON FUNCTION gpurhh_devices() IS
'devices that the device service can use; starts the service if need be';

CREATE FUNCTION gpurhh_stats(
	OUT service_pid integer,
	OUT shared boolean,
	OUT started_at timestamp with time zone,
	OUT queries bigint,
	OUT rows_fed bigint,
	OUT bytes_uploaded bigint,
	OUT groups_returned bigint,
	OUT failed_slots bigint,
	OUT rehashes bigint,
	OUT host_rows bigint,
	OUT host_queries bigint,
	OUT late_batches bigint,
	OUT device_errors bigint,
	OUT pool_wait_ms double precision,
	OUT upload_ms double precision,
	OUT kernel_ms double precision,
	OUT extract_ms double precision)
RETURNS record
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'gpurhh_stats';
COMMENT ON FUNCTION gpurhh_stats() IS
'what the device service did since it was last started';

CREATE VIEW gpurhh_stat AS SELECT * FROM gpurhh_stats();
COMMENT ON VIEW gpurhh_stat IS
'what the device service did since it was last started';
GRANT SELECT ON gpurhh_stat TO PUBLIC;

CREATE FUNCTION gpurhh_cache_files(
	OUT tablespace oid,
	OUT database oid,
	OUT filenode oid,
	OUT bytes bigint,
	OUT pages bigint,
	OUT partial_pages bigint,
	OUT hits bigint,
	OUT misses bigint,
	OUT used_at timestamp with time zone)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'gpurhh_cache_files';
COMMENT ON FUNCTION gpurhh_cache_files() IS
'files of tables of which the device has pages in its memory';

CREATE VIEW gpurhh_cache AS
SELECT d.datname AS database,
	c.oid::regclass AS relation,
	f.bytes,
	f.pages,
	f.partial_pages,
	f.hits,
	f.misses,
	date_trunc('second', now() - f.used_at) AS age
FROM gpurhh_cache_files() f
	LEFT JOIN pg_database d ON d.oid = f.database
	LEFT JOIN pg_class c ON d.datname = current_database() AND c.relfilenode = f.filenode
		AND coalesce(nullif(c.reltablespace, 0), d.dattablespace) = f.tablespace;
COMMENT ON VIEW gpurhh_cache IS
'tables of which the device has pages in its memory';
REVOKE ALL ON FUNCTION gpurhh_cache_files() FROM PUBLIC;
REVOKE ALL ON gpurhh_cache FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpurhh_cache_files() TO pg_monitor;
GRANT SELECT ON gpurhh_cache TO pg_monitor;

CREATE FUNCTION gpurhh_cache_load(regclass) RETURNS bigint
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'gpurhh_cache_load';
COMMENT ON FUNCTION gpurhh_cache_load(regclass) IS
'reads a table into the memory of the device, and returns how many of its pages are there then';

CREATE FUNCTION gpurhh_cache_drop(regclass) RETURNS bigint
LANGUAGE C VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'gpurhh_cache_drop';
COMMENT ON FUNCTION gpurhh_cache_drop(regclass) IS
'drops the pages of a table from the memory of the device, and returns how many there were';
REVOKE ALL ON FUNCTION gpurhh_cache_drop(regclass) FROM PUBLIC;

CREATE FUNCTION gpurhh_refusals(
	query text,
	OUT statement integer,
	OUT group_by text,
	OUT reason text)
RETURNS SETOF record
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'gpurhh_refusals';
COMMENT ON FUNCTION gpurhh_refusals(text) IS
'plans the statements of a text and tells which GROUP BYs do not use GpuHashAgg, and which joins no node does, and why';
