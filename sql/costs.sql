--
-- The planner's choice with the costs' defaults: small inputs stay with
-- PostgreSQL, large ones do not, whether core may use workers or not.  The
-- tables are empty but for their statistics.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
RESET gpurhh.setup_cost;
RESET gpurhh.row_cost;
RESET gpurhh.group_cost;
SET enable_gpu_hashagg = on;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;

-- a page of rows that says it is so many
CREATE TABLE t (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, g FROM generate_series(1, 200) g;
CREATE FUNCTION pretend(n_rows float8, n_groups float8) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('ALTER TABLE t ALTER k SET (n_distinct = %s)', n_groups);
	ANALYZE t;
	UPDATE pg_class SET reltuples = n_rows WHERE oid = 't'::regclass;
END $f$;
CREATE FUNCTION chosen(n_rows float8, n_groups float8) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN
	PERFORM pretend(n_rows, n_groups);
	RETURN CASE count_nodes('SELECT k, sum(v) FROM t GROUP BY k') WHEN 0 THEN 'core' ELSE 'gpurhh' END;
END $f$;

SELECT chosen(1e3, 10), chosen(1e3, 1e3), chosen(1e4, 100);
SELECT chosen(2e5, 100), chosen(2e5, 1e4), chosen(2e5, 1e5);
SELECT chosen(1e7, 1e5), chosen(1e7, 1e6), chosen(1e7, 1e7);
SET max_parallel_workers_per_gather = 0;
SELECT chosen(1e3, 10), chosen(1e3, 1e3), chosen(1e4, 100);
SELECT chosen(2e5, 100), chosen(2e5, 1e4), chosen(2e5, 1e5);
SELECT chosen(1e7, 100), chosen(1e7, 1e5), chosen(1e7, 1e6), chosen(1e7, 1e7);
-- its costs decide
SET gpurhh.setup_cost = 1e7;
SELECT chosen(1e7, 1e5);
RESET gpurhh.setup_cost;
SET gpurhh.row_cost = 1;
SELECT chosen(1e7, 1e5);
RESET gpurhh.row_cost;
SET gpurhh.group_cost = 1;
SELECT chosen(1e7, 1e7);
RESET gpurhh.group_cost;
-- and off is off
SET enable_gpu_hashagg = off;
SELECT chosen(1e7, 1e5);
