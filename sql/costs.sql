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

-- pages of one row each, which say that they have so many
CREATE TABLE t (k int, v int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE t ALTER filler SET STORAGE PLAIN;
INSERT INTO t SELECT g, g, repeat('x', 7000) FROM generate_series(1, 300) g;
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
-- which is not believed if so many rows need more pages
DELETE FROM t WHERE k > 1;
VACUUM t;
SELECT chosen(2e5, 100), chosen(1e6, 1e5);
SELECT reason FROM gpurhh_refusals('SELECT k, sum(v) FROM t GROUP BY k');
-- (that of a partition)
CREATE TABLE part (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (1000000);
INSERT INTO part SELECT g, g FROM generate_series(1, 200) g;
ANALYZE part;
UPDATE pg_class SET reltuples = 2e5 WHERE oid = 'part_1'::regclass;
SELECT count_nodes('SELECT k, sum(v) FROM part GROUP BY k');
SELECT reason FROM gpurhh_refusals('SELECT k, sum(v) FROM part GROUP BY k');
DROP TABLE part;
INSERT INTO t SELECT g, g, repeat('x', 7000) FROM generate_series(2, 300) g;
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

-- Core's paths stay in the list beside ours.  For the first groups in order a scan of
-- an index is cheaper; for most of them, and for all, ours is.  Core charges its hashed
-- aggregate less than ours costs, and still that is never chosen.
SET enable_gpu_hashagg = on;
CREATE INDEX ON t (k);
CREATE FUNCTION plan_for(clauses text) RETURNS text LANGUAGE sql AS $f$
	SELECT string_agg(substring(line FROM '(GpuHashAgg|HashAggregate|GroupAggregate|Sort|Index)'), ', ')
	FROM explained('SELECT k, sum(v) FROM t GROUP BY k ' || clauses) AS line
	WHERE line ~ '->|^[A-Z]';
$f$;
SELECT pretend(1e6, 1e5);
-- more than core charges for hashing, and less than hashing costs
SET gpurhh.row_cost = 0.03;
SET work_mem = '64MB';
SET enable_bitmapscan = off;
SET cpu_index_tuple_cost = 0.08;
SELECT clauses, plan_for(clauses)
FROM (VALUES (''), ('LIMIT 10'), ('LIMIT 10000'), ('LIMIT 30000'), ('LIMIT 90000'), ('ORDER BY k'), ('ORDER BY k LIMIT 10')) AS c (clauses);

-- Joins.  Core reads an index instead of the fact table, which the device does not do;
-- the table's scan, which it does, is then not among core's paths.
RESET gpurhh.row_cost;
RESET work_mem;
RESET enable_bitmapscan;
RESET cpu_index_tuple_cost;
SET enable_gpu_hashjoin = on;
SET parallel_setup_cost = 0;
CREATE TABLE f (k int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO f SELECT g * 7919 % 20000, repeat('f', 60) FROM generate_series(1, 200000) g;
CREATE TABLE d (id int PRIMARY KEY, x int) WITH (autovacuum_enabled = off);
INSERT INTO d SELECT g, g % 100 FROM generate_series(0, 19999) g;
CREATE INDEX ON f (k);
VACUUM ANALYZE f;
VACUUM ANALYZE d;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f JOIN d ON d.id = f.k;
-- A merge join really costs less than ours here, but core charges more for it than for a
-- hash join, which really costs more.  It is that one that ours has to beat.
SET max_parallel_workers_per_gather = 0;
SET gpurhh.row_cost = 0.01;
EXPLAIN (COSTS OFF) SELECT f.k, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.k;
-- Nor is it known to core what the hashed aggregate costs that is a build side.  In a parallel
-- plan all participants make ours together.
SET max_parallel_workers_per_gather = 2;
DROP INDEX f_k_idx;
RESET gpurhh.row_cost;
EXPLAIN (COSTS OFF) SELECT d.x, f.k, count(*) FROM f JOIN d ON d.id = f.k
WHERE f.k IN (SELECT k FROM f GROUP BY k HAVING count(*) > 9) GROUP BY d.x, f.k;

-- Several keys: core takes them for independent of each other, and where they are not, many more rows
-- come than it says.  A serial plan that is only little better than a parallel one is not taken then;
-- it is where one key is as selective.
SET parallel_setup_cost = 3000;
SET enable_mergejoin = off;
CREATE TABLE dependent (id int, one int, a int, b int, c int) WITH (autovacuum_enabled = off);
INSERT INTO dependent SELECT g, g % 8000, g % 20, g % 20, g % 20 FROM generate_series(1, 200000) g;
CREATE TABLE few (id int, one int, a int, b int, c int) WITH (autovacuum_enabled = off);
INSERT INTO few SELECT g, g % 8000, g % 20, g % 20, g % 20 FROM generate_series(1, 500) g;
VACUUM ANALYZE dependent;
VACUUM ANALYZE few;
SELECT keys, line FROM (VALUES ('one'), ('a, b, c')) AS k (keys),
	LATERAL explained(format('SELECT count(q) FROM (SELECT d.id, few.id AS other FROM dependent d JOIN few USING (%s)) q', keys)) AS line;
SET parallel_setup_cost = 0;
RESET enable_mergejoin;

-- LIMIT: nested loops over all of both tables, in the order of the result, would be the
-- cheapest if as many groups came of each row as the statistics say.  They are not taken at
-- their word (limit_path.c).
SET min_parallel_table_scan_size = 0;
SET jit = off;
CREATE TABLE o (k int, price int) WITH (autovacuum_enabled = off);
INSERT INTO o SELECT g, g FROM generate_series(1, 200) g;
DROP INDEX t_k_idx;
SELECT pretend(6e7, 4e5);
ANALYZE o;
UPDATE pg_class SET reltuples = 1.5e6 WHERE oid = 'o'::regclass;
SELECT bool_or(line ~ 'Nested Loop') AS nested_loop, bool_or(line ~ 'GpuHashAgg') AS gpu_hashagg
FROM explained('SELECT o.price, o.k, sum(t.v) FROM o JOIN t USING (k)
	WHERE o.k IN (SELECT k FROM t GROUP BY k HAVING sum(v) > 300)
	GROUP BY o.price, o.k ORDER BY o.price, o.k LIMIT 1') AS line;
