--
-- Rescans: the node run again, with the same parameters and with others.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS SELECT g AS id, g % 23 AS k, g % 5 AS k2, g * 37 % 1009 AS v FROM generate_series(1, 2000) g;
CREATE TABLE o AS SELECT g AS i, nullif(g % 12, 5) AS a FROM generate_series(0, 40) g;
ANALYZE t, o;

-- with parameters that change, in the input, in HAVING, in the target list, in keys
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT k2, count(*), sum(v) FROM t WHERE k = a GROUP BY k2) x');
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT k2, count(*), sum(v) FROM t GROUP BY k2 HAVING count(*) > a * 36) x');
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT k2, count(*) + a, sum(v) FROM t GROUP BY k2) x');
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT k2 + a, count(*), sum(v) FROM t GROUP BY k2 + a) x');
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT k2, sum(v + a), count(*) FILTER (WHERE v > a * 100) FROM t GROUP BY k2) x');
-- no rows, then some, then none again
SELECT compare('SELECT i, x.* FROM o LEFT JOIN LATERAL (SELECT k2, count(*), sum(v) FROM t WHERE i % 3 = 1 AND k < i GROUP BY k2) x ON true');
-- many groups, then few, then many; and each time other keys
SELECT compare('SELECT i, count(*), sum(c), sum(s) FROM o, LATERAL (SELECT id % (i * 50 % 1001 + 1) + i * 10000 AS m, count(*) AS c, sum(v) AS s FROM t GROUP BY 1) x GROUP BY i', nodes => 2);
-- stopped by a LIMIT or an EXISTS before the end
SELECT compare('SELECT i, (SELECT count(*) FROM (SELECT id % 100, count(*) FROM t WHERE v > a GROUP BY id % 100 LIMIT i % 7) x) FROM o');
SELECT compare('SELECT i FROM o WHERE EXISTS (SELECT FROM t WHERE k = a GROUP BY k2 HAVING count(*) >= i % 20)');
SELECT compare('SELECT i, a = ANY (SELECT k FROM t WHERE k2 = i % 5 GROUP BY k) FROM o');
SELECT compare('SELECT i, (SELECT array_agg(s ORDER BY s) FROM (SELECT sum(v) AS s FROM t WHERE k = o.a GROUP BY k2) x) FROM o');

-- the inner side of a nested loop, with the same rows each time and without
-- anything between that keeps them
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT compare('SELECT i, x.* FROM o, (SELECT k2, count(*), sum(v) FROM t GROUP BY k2) x');
SELECT compare('SELECT i, x.* FROM o LEFT JOIN (SELECT k, count(*), sum(v) FROM t GROUP BY k) x ON x.k = a');
SELECT compare('SELECT i, x.*, y.* FROM o, (SELECT k2, sum(v) AS s FROM t GROUP BY k2) x, (SELECT k2, count(*) AS c FROM t GROUP BY k2) y WHERE i < 9', nodes => 2);
SELECT compare('SELECT i, x.*, y.* FROM o, LATERAL (SELECT k2, sum(v) AS s FROM t WHERE k > a GROUP BY k2) x, LATERAL (SELECT k, count(*) AS c FROM t WHERE v < x.s % 100 GROUP BY k) y WHERE i < 9', nodes => 2);
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT i, x.* FROM o LEFT JOIN (SELECT k, count(*), sum(v) FROM t GROUP BY k) x ON x.k = a;
RESET enable_gpu_hashagg;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

-- one grouping inside of another's input, rescanned with it
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT c, count(*), sum(s) FROM (SELECT k, count(*) AS c, sum(v) AS s FROM t WHERE k2 = a GROUP BY k) y GROUP BY c) x', nodes => 2);
-- below: a CTE, a function, a join, each with a parameter
SELECT compare('SELECT i, x.* FROM o, LATERAL (WITH c AS MATERIALIZED (SELECT k, k2, v FROM t WHERE k <> a) SELECT k2, count(*), sum(v) FROM c GROUP BY k2) x');
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT g % 3, count(*), sum(g) FROM generate_series(1, i) g GROUP BY 1) x');
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT t.k2, count(*), sum(t.v) FROM t JOIN o o2 ON t.k = o2.a WHERE o2.i < o.i GROUP BY t.k2) x');
-- an initplan's value, and one that is made anew each time
SELECT compare('SELECT i, x.* FROM o, LATERAL (SELECT k2, count(*) FROM t WHERE v > (SELECT avg(v) FROM t) GROUP BY k2 HAVING sum(v) > (SELECT max(o2.i) + o.i FROM o o2)) x');

-- with the host table, and with its files
SELECT compare('SELECT i, count(*), sum(c), sum(s) FROM o, LATERAL (SELECT g % (2000 - i) AS m, count(*) AS c, sum(g) AS s FROM generate_series(i, 4000) g GROUP BY 1) x WHERE i < 9 GROUP BY i',
			   settings => 'gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1, work_mem=64kB', nodes => 2);

-- EXPLAIN ANALYZE shows the rows of all runs
SELECT (j->>'Actual Loops')::int, j->>'Rows Fed' FROM analyze_json('SELECT i, x.* FROM o, LATERAL (SELECT k2, count(*) FROM t WHERE k = a GROUP BY k2) x WHERE i < 3') j;
-- never run
SELECT (j->>'Actual Loops')::int, j->>'Rows Fed', j->>'Device' FROM analyze_json('SELECT i, x.* FROM o, LATERAL (SELECT k2, count(*) FROM t WHERE k = a GROUP BY k2) x WHERE i < -3') j;
