--
-- Joins that the device does, of rows that another plan makes: the probe side is no scan
-- whose pages are read.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET max_parallel_workers_per_gather = 0;

CREATE TABLE f AS SELECT CASE WHEN g % 11 <> 0 THEN g % 60 END AS k, g % 7 AS k2, g AS v, CASE WHEN g % 5 <> 0 THEN 't' || g % 40 END AS t, repeat('long ', g % 9) || g AS lt,
	(g % 90 / 7.0)::numeric(8, 3) AS n FROM generate_series(1, 3000) g;
CREATE INDEX f_v ON f (v);
CREATE TABLE d AS SELECT CASE WHEN g <= 45 THEN CASE WHEN g > 40 THEN g - 40 ELSE g END END AS k, g AS w, 'name' || g % 6 AS name, (g / 7.0)::numeric(8, 3) AS n FROM generate_series(1, 50) g;
CREATE TABLE e AS SELECT g % 5 AS k2, g AS u FROM generate_series(1, 12) g;
ANALYZE f, d, e;

-- a subquery with groups of its own, one that is limited, one that computes
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT d.name, sum(q.s) FROM (SELECT k, sum(v) AS s FROM f GROUP BY k) q JOIN d ON q.k = d.k GROUP BY d.name;
EXPLAIN (COSTS OFF) SELECT q.v, d.w FROM (SELECT * FROM f ORDER BY v LIMIT 500) q JOIN d ON q.k = d.k;
SELECT feed('SELECT d.name, sum(q.s) FROM (SELECT k, sum(v) AS s FROM f GROUP BY k) q JOIN d ON q.k = d.k GROUP BY d.name');
RESET enable_gpu_hashjoin;
SELECT joined('SELECT d.name, sum(q.s) FROM (SELECT k, sum(v) AS s FROM f GROUP BY k) q JOIN d ON q.k = d.k GROUP BY d.name', nodes => 2);
SELECT joined('SELECT d.name, count(*), sum(q.v + d.w) FROM (SELECT * FROM f ORDER BY v LIMIT 500) q JOIN d ON q.k = d.k GROUP BY d.name');
SELECT joined('SELECT d.name, count(*), min(q.k3) FROM (SELECT k + 1 AS k3, v FROM f LIMIT 9999) q JOIN d ON q.k3 = d.k GROUP BY d.name');
SELECT joined_rows('SELECT q.*, d.w FROM (SELECT * FROM f LIMIT 9999) q LEFT JOIN d ON q.k = d.k');
SELECT joined_rows('SELECT q.* FROM (SELECT * FROM f LIMIT 9999) q WHERE k IN (SELECT k FROM d)');
SELECT joined_rows('SELECT q.* FROM (SELECT * FROM f LIMIT 9999) q WHERE NOT EXISTS (SELECT FROM d WHERE d.k = q.k)');
SELECT joined_rows('SELECT q.v, d.w, e.u FROM (SELECT DISTINCT k, k2, v FROM f) q JOIN d ON q.k = d.k JOIN e ON q.k2 = e.k2');
SELECT joined_rows('SELECT q.v, d.w FROM (SELECT v, k, (row_number() OVER (PARTITION BY k2 ORDER BY v))::int AS r FROM f) q JOIN d ON q.r = d.w AND q.k < d.w');
-- functions, VALUES, WITH, a sample, rows of several subqueries, no rows
SELECT joined_rows('SELECT g, d.name FROM generate_series(1, 2000) g JOIN d ON g = d.k');
SELECT joined_rows('SELECT g.x, g.n, d.name FROM unnest(ARRAY[3, 5, NULL, 3, 44]) WITH ORDINALITY g(x, n) LEFT JOIN d ON g.x = d.k');
SELECT joined_rows('SELECT x.*, d.name FROM (VALUES (1, ''a''), (7, NULL), (NULL, ''c''), (7, ''d'')) x(k, t) LEFT JOIN d USING (k)');
SELECT joined_rows('WITH q AS MATERIALIZED (SELECT * FROM f) SELECT q.v, d.name FROM q JOIN d ON q.k = d.k');
SELECT joined_rows('SELECT f.v, d.name FROM f TABLESAMPLE BERNOULLI (60) REPEATABLE (3) JOIN d ON f.k = d.k');
SELECT joined_rows('SELECT q.v, d.w FROM (SELECT k, v FROM f UNION ALL SELECT DISTINCT k2, u FROM e UNION ALL SELECT * FROM generate_series(1, 9) g(k), generate_series(1, 3) h(v)) q JOIN d ON q.k = d.k');
SELECT joined_rows('SELECT q.v, d.w FROM (SELECT * FROM f WHERE v < 0 LIMIT 9999) q LEFT JOIN d ON q.k = d.k');
-- an index; joins that are core's, of each kind, also by conditions alone
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v BETWEEN 100 AND 900', 'enable_seqscan=off');
SELECT joined_rows('SELECT x.v, e.u, d.w FROM f x JOIN e ON x.v < e.u JOIN d ON x.k = d.k', 'enable_nestloop=on, join_collapse_limit=1');
SELECT joined_rows('SELECT x.v, y.u, d.w FROM f x FULL JOIN e y ON x.v = y.u LEFT JOIN d ON y.u = d.k', 'join_collapse_limit=1');
SELECT joined('SELECT d.name, count(*), sum(x.v), min(y.u) FROM f x FULL JOIN e y ON x.v = y.u LEFT JOIN d ON y.u = d.k GROUP BY d.name');
SELECT joined_rows('SELECT x.v, y.v AS yv, d.w FROM f x JOIN f y ON x.v = y.v AND x.lt = y.lt LEFT JOIN d ON x.k = d.k', 'enable_mergejoin=on, enable_gpu_hashjoin=on');
-- trees: a side that is a pipeline of its own
SET enable_gpu_hashjoin = on;
SET join_collapse_limit = 1;
EXPLAIN (COSTS OFF) SELECT f.v, d.w, e.u FROM f JOIN (d JOIN e ON d.w = e.u) ON f.k = d.k;
RESET enable_gpu_hashjoin;
SELECT joined_rows('SELECT f.v, d.w, e.u FROM f JOIN (d JOIN e ON d.w = e.u) ON f.k = d.k', nodes => 2);
SELECT joined_rows('SELECT f.v, d.w, e.u FROM f LEFT JOIN (d LEFT JOIN e ON d.w = e.u) ON f.k = d.k', nodes => 2);
SELECT joined('SELECT e.u, count(*), sum(f.v) FROM f JOIN (d JOIN e ON d.w = e.u) ON f.k = d.k GROUP BY e.u');
RESET join_collapse_limit;

-- columns of several of the probe side's tables in an expression; conditions on its strings
SELECT joined('SELECT d.name, sum(q.v * q.u + d.w) FROM (SELECT f.v, f.k, e.u FROM f, e WHERE f.k2 = e.k2 LIMIT 9999) q JOIN d ON q.k = d.k GROUP BY d.name');
SELECT joined('SELECT d.name, sum(q.v) FILTER (WHERE q.t = ''t3'' OR d.w > 9) FROM (SELECT * FROM f LIMIT 9999) q JOIN d ON q.k = d.k GROUP BY d.name');
SELECT joined('SELECT d.name, q.v / 7, count(*) FROM (SELECT * FROM f LIMIT 9999) q JOIN d ON q.k = d.k WHERE q.v % 2 = d.w % 2 GROUP BY 1, 2');
-- rows that no column can have, and errors: core's join has them in the end
-- not as they are declared
CREATE TABLE odd AS SELECT r.* FROM (SELECT json_agg(json_build_object('k', g % 60, 'n1', CASE g % 3 WHEN 0 THEN g / 7.0 WHEN 1 THEN round(g / 7.0, 3) ELSE 'NaN' END)) AS j FROM generate_series(1, 700) g) q, json_to_recordset(j) AS r(k int, n1 numeric(8, 3));
SELECT joined_rows('SELECT o.k, o.n1, d.w FROM (SELECT * FROM odd LIMIT 9999) o LEFT JOIN d ON o.k = d.k');
SELECT joined_rows('SELECT o.k, d.w FROM (SELECT * FROM odd LIMIT 9999) o JOIN d ON o.n1 = d.n');
SELECT joined('SELECT o.n1, d.w, count(*) FROM (SELECT * FROM odd LIMIT 9999) o JOIN d ON o.k = d.k GROUP BY 1, 2');
SELECT joined('SELECT d.name, sum(o.n1) FROM (SELECT * FROM odd LIMIT 9999) o JOIN d ON o.n1 = d.n GROUP BY 1');
-- more strings than the planner was told of
CREATE FUNCTION long_rows() RETURNS TABLE (k int, lt text) LANGUAGE plpgsql ROWS 100 AS 'BEGIN RETURN QUERY SELECT f.k, f.lt FROM f; END';
SELECT joined_rows('SELECT q.lt, d.w FROM long_rows() q LEFT JOIN d ON q.k = d.k', 'work_mem=64kB, hash_mem_multiplier=1');
SELECT (analyze_json('SELECT q.lt, d.w FROM long_rows() q LEFT JOIN d ON q.k = d.k', 'enable_gpu_hashjoin=on, enable_gpu_hashagg=off, work_mem=64kB, hash_mem_multiplier=1', 'GpuHashJoin') ->> 'Rows Left to the Host')::int > 0;
SELECT joined('SELECT q.lt, count(d.w) FROM (SELECT f.lt, f.k FROM f LIMIT 9999) q LEFT JOIN d ON q.k = d.k GROUP BY q.lt', 'work_mem=64kB, hash_mem_multiplier=1');
SET enable_gpu_hashjoin = on;
SELECT either('SELECT d.name, sum(100 / (q.v - d.w)) FROM (SELECT * FROM f LIMIT 9999) q JOIN d ON q.k = d.k GROUP BY d.name');
SELECT either('SELECT d.name, sum(q.x) FROM (SELECT k, 1 / (v - 2500) AS x FROM f LIMIT 9999) q JOIN d ON q.k = d.k GROUP BY d.name');
RESET enable_gpu_hashjoin;

-- small batches and blocks that come back; a build side that the device refuses
SELECT joined('SELECT q.v, count(*) FROM (SELECT * FROM f LIMIT 9999) q JOIN d ON q.k = d.k GROUP BY q.v', 'gpurhh.batch_rows=64, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT joined_rows('SELECT a.v, b.v AS bv FROM (SELECT * FROM f LIMIT 9999) a JOIN f b ON a.k2 = b.k2 WHERE b.v < 700', 'gpurhh.batch_rows=64');
-- a node below a node that both have batches with the service
SELECT joined_rows('SELECT q.v, q.n, d.w FROM (SELECT f.v, f.k, count(*) AS n FROM f JOIN e ON f.k2 = e.k2 GROUP BY f.v, f.k) q JOIN d ON q.k = d.k', 'enable_gpu_hashagg=on, gpurhh.batch_rows=64');
-- rescans with other parameters, and without
SELECT joined_rows('SELECT e.u, (SELECT count(*) || '' '' || max(s.w) FROM (SELECT q.v, d.w FROM (SELECT * FROM f WHERE v < 100 * e.u LIMIT 9999) q JOIN d ON q.k = d.k OFFSET 0) s) FROM e');
SELECT joined_rows('SELECT e.u, (SELECT count(*) || '' '' || max(s.w) FROM (SELECT q.v, d.w FROM generate_series(1, e.u * 10) q(v) LEFT JOIN d ON q.v = d.k WHERE q.v % 3 = e.k2 % 3 OFFSET 0) s) FROM e');
-- the recursive term of WITH is core's: its hash tables outlive an iteration
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) WITH RECURSIVE r AS (SELECT 1 AS k, 0 AS level UNION ALL SELECT d.w + 1, r.level + 1 FROM r JOIN d ON r.k = d.k WHERE r.level < 9) SELECT * FROM r;
SELECT joined_rows('WITH RECURSIVE r AS (SELECT 1 AS k, 0 AS level UNION ALL SELECT d.w + 1, r.level + 1 FROM r JOIN d ON r.k = d.k WHERE r.level < 9) SELECT r.*, e.u FROM r JOIN e ON e.k2 = r.level');

-- cursors: the rows below stop where the cursor rests
BEGIN;
DECLARE c CURSOR FOR SELECT q.v, d.w FROM (SELECT * FROM f ORDER BY v LIMIT 2500) q JOIN d ON q.k = d.k ORDER BY q.v, d.w;
FETCH 2 FROM c;
DECLARE c2 CURSOR FOR SELECT q.v IS NOT NULL AS x FROM (SELECT * FROM f LIMIT 9999) q JOIN d ON q.k = d.k;
FETCH 1 FROM c2;
FETCH 1 FROM c;
MOVE FORWARD ALL IN c2;
CLOSE c;
COMMIT;
RESET enable_gpu_hashjoin;

-- parallel plans: an index that all participants read, hash joins of core's with a table of
-- their own or a common one, with the leader and without
\set parallel 'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, min_parallel_index_scan_size=0, max_parallel_workers_per_gather=2'
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v BETWEEN 100 AND 2900', :'parallel' || ', seq_page_cost=1000, random_page_cost=0');
SELECT joined('SELECT d.name, sum(f.v) FROM f JOIN d ON f.k = d.k WHERE f.v BETWEEN 100 AND 2900 GROUP BY d.name', :'parallel' || ', seq_page_cost=1000, random_page_cost=0, parallel_leader_participation=off');
SELECT joined('SELECT d.name, sum(x.v), count(*) FROM f x LEFT JOIN f y ON x.v = y.v AND x.lt < y.lt || ''x'' JOIN d ON x.k = d.k GROUP BY d.name', :'parallel' || ', join_collapse_limit=1');
SELECT joined_rows('SELECT q.v, d.w FROM (SELECT k, v FROM f UNION ALL SELECT k2, v FROM f WHERE v > 2000) q JOIN d ON q.k = d.k', :'parallel');

SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
