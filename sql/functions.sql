--
-- The functions and the view; the extension as an object.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

SELECT gpurhh_version() ~ '^\d+\.\d+\.\d+ \(cpu(, cuda)?\)$', split_part(gpurhh_version(), ' ', 1) = extversion FROM pg_extension WHERE extname = 'gpurhh';
SELECT extname, extversion, extnamespace::regnamespace, obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'gpurhh';
-- everything has a comment
SELECT count(*), count(obj_description(oid, 'pg_proc')) FROM pg_proc WHERE proname ~ '^gpurhh_';
SELECT obj_description('gpurhh_stat'::regclass) IS NOT NULL;

-- devices: the CPU is always there
SELECT device, kind, name <> '', compute_capability, total_bytes > 0, free_bytes BETWEEN 0 AND total_bytes, state IN ('available', 'open'), detail FROM gpurhh_devices() WHERE kind = 'cpu';
SELECT count(*) FROM gpurhh_devices() WHERE NOT (kind = 'cuda' AND device ~ '^cuda:\d+$' AND compute_capability ~ '^\d+\.\d$' AND total_bytes > 0 AND state IN ('available', 'open', 'unusable') OR kind = 'cpu');
SELECT count(*) - count(DISTINCT device) FROM gpurhh_devices();
SELECT count(*) > 0 FROM gpurhh_devices() a, gpurhh_devices() b WHERE a.device = b.device;

-- statistics: what a query adds to them
CREATE TABLE t AS SELECT g % 7 AS k, g AS v FROM generate_series(1, 1000) g;
ANALYZE t;
CREATE TEMP TABLE before AS SELECT * FROM gpurhh_stat;
SELECT compare('SELECT k, count(*) FROM t GROUP BY k');
-- compare() runs it twice on the node
SELECT a.queries - b.queries AS queries, a.rows_fed - b.rows_fed AS rows, a.groups_returned - b.groups_returned AS groups, a.host_rows - b.host_rows AS host, a.device_errors AS errors,
	   a.service_pid <> pg_backend_pid(), a.started_at <= now(), a.shared = (current_setting('shared_preload_libraries') ~ 'gpurhh') FROM gpurhh_stat a, before b;
DROP TABLE before;
CREATE TEMP TABLE before AS SELECT * FROM gpurhh_stat;
SELECT count_nodes('SELECT k, count(*) FROM t GROUP BY k'), count(*) FROM gpurhh_refusals('SELECT k, count(*) FROM t GROUP BY k');
SELECT compare('SELECT g, count(*) FROM generate_series(1, 40000) g GROUP BY g', settings => 'gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT a.queries - b.queries AS queries, a.rows_fed - b.rows_fed AS rows, a.groups_returned - b.groups_returned BETWEEN 1 AND 80000 AS groups, a.host_rows - b.host_rows BETWEEN 1 AND 80000 AS host, a.rehashes >= b.rehashes, a.failed_slots >= b.failed_slots,
	   a.kernel_ms > b.kernel_ms, a.extract_ms > b.extract_ms, a.pool_wait_ms >= b.pool_wait_ms, (a.upload_ms > b.upload_ms) = (a.bytes_uploaded > b.bytes_uploaded) FROM gpurhh_stat a, before b;
SELECT (gpurhh_stats()).queries = queries FROM gpurhh_stat;
-- with a service of its own, a session that has used none shows none
\c
:session
SELECT CASE WHEN shared THEN service_pid IS NOT NULL ELSE service_pid IS NULL AND queries = 0 END FROM gpurhh_stat;

-- anybody may read all of it
CREATE ROLE regress_gpurhh_nobody;
SET ROLE regress_gpurhh_nobody;
SELECT gpurhh_version() IS NOT NULL, (SELECT count(*) >= 1 FROM gpurhh_devices()), (SELECT count(*) FROM gpurhh_stat), (SELECT count(*) FROM gpurhh_refusals('SELECT 1'));
RESET ROLE;
DROP ROLE regress_gpurhh_nobody;

-- the extension moves to another schema, with all that it has, and back
CREATE SCHEMA gpurhh_elsewhere;
ALTER EXTENSION gpurhh SET SCHEMA gpurhh_elsewhere;
SELECT count(*) > 0 FROM gpurhh_elsewhere.gpurhh_devices();
SELECT count(*) FROM gpurhh_elsewhere.gpurhh_stat;
SELECT sqlstate_of('SELECT * FROM gpurhh_stat');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k');
ALTER EXTENSION gpurhh SET SCHEMA public;
DROP SCHEMA gpurhh_elsewhere;
-- it goes and comes again; what is loaded stays loaded, and the node works
DROP EXTENSION gpurhh;
SELECT sqlstate_of('SELECT gpurhh_version()');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k');
CREATE EXTENSION gpurhh SCHEMA public;
SELECT count(*) FROM gpurhh_stat;
-- what depends on it is protected
CREATE VIEW depends AS SELECT queries FROM gpurhh_stat;
SELECT left(sqlstate_of('DROP EXTENSION gpurhh'), 5);
DROP VIEW depends;
SELECT sqlstate_of('CREATE EXTENSION gpurhh');
-- a dump has the extension, and none of its parts
SELECT count(*) FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid WHERE e.extname = 'gpurhh' AND d.deptype = 'e' AND d.classid <> 'pg_type'::regclass;
