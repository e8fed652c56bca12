--
-- GROUPING SETS, ROLLUP, CUBE.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t (id int PRIMARY KEY, a int, b int, c bigint, u uuid, v int, w bigint, d date, txt text);
INSERT INTO t
	SELECT g, CASE WHEN g % 17 <> 0 THEN g % 13 END, CASE WHEN g % 5 <> 0 THEN g % 4 END, g % 3 * 4000000007::bigint, md5((g % 6)::text)::uuid,
		CASE WHEN g % 7 <> 0 THEN g * 31 % 1000 - 500 END, g * 1000000007::bigint, '2000-01-01'::date + g % 40, 'text ' || g % 11
	FROM generate_series(1, 30000) g;
CREATE TABLE empty (LIKE t);
VACUUM ANALYZE t;
ANALYZE empty;

SELECT compare('SELECT a, b, count(*), sum(v) FROM t GROUP BY ROLLUP (a, b)');
SELECT compare('SELECT a, b, c, count(*), count(v), sum(v), sum(w), avg(v), avg(w), min(v), max(w), min(d) FROM t GROUP BY CUBE (a, b, c)');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS ((a), (b))');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS ((a), (b), ())');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS ((a, b), (a), (a), (b, a), (), ())');
SELECT compare('SELECT a, u, count(*), max(v) FROM t GROUP BY CUBE (a, u)');
SELECT compare('SELECT u, a, count(*), max(v) FROM t GROUP BY ROLLUP (u, a)');
SELECT compare('SELECT a, b, c, count(*) FROM t GROUP BY a, ROLLUP (b, c)');
SELECT compare('SELECT a, b, c, count(*) FROM t GROUP BY ROLLUP (a), CUBE (b, c)');
SELECT compare('SELECT a, b, c, count(*) FROM t GROUP BY ROLLUP ((a, b), c)');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a, b)');
SELECT compare('SELECT a + 1, b, count(*) FROM t GROUP BY ROLLUP (a + 1, b)');
SELECT compare('SELECT (a + 1) * 2, a + 1, count(*) FROM t GROUP BY ROLLUP (a + 1)');
SELECT compare('SELECT a FROM t GROUP BY CUBE (a)');
SELECT compare('SELECT count(*) FROM t GROUP BY GROUPING SETS ((), ())');
SELECT compare('SELECT sum(v) FROM t GROUP BY GROUPING SETS ((a), ())');
-- a key that is NULL is not a key that is left out
SELECT compare('SELECT a, b, GROUPING(a), GROUPING(b), GROUPING(a, b), GROUPING(b, a), count(*) FROM t GROUP BY CUBE (a, b)');
SELECT compare('SELECT a, GROUPING(a), count(*) FROM t GROUP BY a');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b) HAVING GROUPING(b) = 1');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b) HAVING count(*) > 2000 OR a IS NULL');
SELECT compare('SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b) ORDER BY GROUPING(a, b), a, b', ordered => true);
SELECT compare('SELECT a, b, sum(count(*)) OVER (PARTITION BY GROUPING(a, b)) FROM t GROUP BY ROLLUP (a, b)');
SELECT compare('SELECT DISTINCT GROUPING(a, b) FROM t GROUP BY ROLLUP (a, b)', nodes => 2);
-- FILTER, WHERE, joins, DISTINCT, the primary key
SELECT compare('SELECT a, b, sum(v) FILTER (WHERE c > 0), count(*) FILTER (WHERE v < 0) FROM t WHERE d > ''2000-01-15'' GROUP BY CUBE (a, b)');
SELECT compare('SELECT x.a, y.b, count(*) FROM t x JOIN t y ON x.id = y.c GROUP BY ROLLUP (x.a, y.b)', nodes => 0);
SELECT compare('SELECT a, b, count(*) FROM t WHERE a = 3 GROUP BY ROLLUP (a, b)');
SELECT compare('SELECT id, v, b, count(*) FROM t WHERE id < 100 GROUP BY id, ROLLUP (b)');
-- no rows: a row for each empty set, and no other
SELECT compare('SELECT a, b, GROUPING(a, b), count(*), sum(v) FROM empty GROUP BY ROLLUP (a, b)');
SELECT compare('SELECT a, b, count(*) FROM empty GROUP BY GROUPING SETS ((a), (b))');
SELECT compare('SELECT a, b, count(*) FROM empty GROUP BY GROUPING SETS ((a), (), (b), ())');
SELECT compare('SELECT a, count(*) FROM empty GROUP BY ROLLUP (a) HAVING count(*) > 0');
SELECT compare('SELECT a FROM empty GROUP BY ROLLUP (a)');
-- without a key or an aggregate it is not a grouping
SELECT compare('SELECT 1 FROM t GROUP BY ()', nodes => -1);
SELECT compare('SELECT 1 FROM t GROUP BY GROUPING SETS ((), ())', nodes => -1);

-- rescans, generic plans
SELECT compare('SELECT x.g, y.* FROM generate_series(0, 3) x (g), LATERAL (SELECT a, b, count(*) FROM t WHERE t.c = x.g * 4000000007::bigint GROUP BY ROLLUP (a, b)) y');
SELECT compare('SELECT x.g, (SELECT sum(n) FROM (SELECT a, b, count(*) AS n FROM t WHERE t.c = x.g * 4000000007::bigint GROUP BY ROLLUP (a, b)) y) FROM generate_series(0, 3) x (g)', nodes => 2);
SET enable_gpu_hashagg = on;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT b, c, GROUPING(b, c), count(*) FROM t WHERE a = $1 GROUP BY ROLLUP (b, c) ORDER BY 1, 2, 3;
EXECUTE q (3);
EXECUTE q (-3);
DEALLOCATE q;
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT a, b, GROUPING(a), count(*) FROM t GROUP BY ROLLUP (a, b);
EXPLAIN (COSTS OFF, VERBOSE) SELECT a, count(DISTINCT v) FROM t GROUP BY GROUPING SETS ((a), ());
RESET enable_gpu_hashagg;

-- parallel
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT compare('SELECT a, b, c, count(*), sum(v) FROM t GROUP BY CUBE (a, b, c)');
SELECT compare('SELECT a, b, c, count(*), sum(v) FROM t GROUP BY CUBE (a, b, c)', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT a, b, count(*), sum(v) FROM t WHERE v > 10000 GROUP BY CUBE (a, b)', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT a, b, count(*), sum(v) FROM t WHERE v > 10000 GROUP BY CUBE (a, b)');
RESET ALL;
:session

-- many groups; to disk; what the device refuses
CREATE TABLE many AS SELECT g * 7919 % 20000 AS a, g % 3000 AS b, g AS w FROM generate_series(1, 60000) g;
ANALYZE many;
SELECT compare('SELECT a, b, sum(w), count(*) FROM many GROUP BY CUBE (a, b)');
SELECT compare('SELECT a, b, sum(w), count(*) FROM many GROUP BY CUBE (a, b)', settings => 'work_mem=64kB, hash_mem_multiplier=1');
SELECT compare('SELECT a, b, sum(w), count(*) FROM many GROUP BY ROLLUP (a, b)', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, work_mem=64kB');
SET enable_gpu_hashagg = on;
SELECT * FROM gpurhh_refusals('SELECT a, txt, count(*) FROM t GROUP BY ROLLUP (a, txt)');
SELECT * FROM gpurhh_refusals('SELECT a, b, count(DISTINCT v), count(*) FROM t GROUP BY CUBE (a, b)');
-- a constant is a column that a set may lack, from version 18 on; before, refused
SELECT compare('SELECT 5, a, count(*) FROM t GROUP BY ROLLUP (1, a)', nodes => 0);
