--
-- Parallel plans: every participant feeds one table; all of them emit, or the
-- leader alone where the rows must go there anyway.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
\set helpers :srcdir '/sql/parallel.inc'
\i :helpers
\set parallel 'SET max_parallel_workers_per_gather = 3; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;'
:parallel

CREATE TABLE t WITH (parallel_workers = 3) AS
	SELECT g AS id, nullif(g % 1009, 5) AS k, nullif(g % 7, 3) AS k2, g::int8 * 1000003 AS w, md5((g % 501)::text)::uuid AS u,
		   g % 3 = 0 AS b, (g % 32)::int2 AS i2, g / 7.0::float8 AS f
	FROM generate_series(1, 30000) g;
CREATE INDEX ON t (id);
CREATE TABLE d WITH (parallel_workers = 3) AS SELECT g AS k, g % 10 AS c FROM generate_series(0, 1009) g;
ANALYZE t;
ANALYZE d;

-- The plans: the leader emits; all emit, below an aggregate, a sort, a join.
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT k, sum(w) FROM t GROUP BY k;
EXPLAIN (COSTS OFF) SELECT count(*), sum(s) FROM (SELECT k, sum(w) AS s FROM t GROUP BY k) q;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT u, sum(w) FROM t GROUP BY u, k2 ORDER BY 2;
RESET parallel_tuple_cost;
EXPLAIN (COSTS OFF) SELECT count(*), sum(s) FROM (SELECT k, sum(w) AS s FROM t GROUP BY k) q JOIN d USING (k);
SET enable_gpu_hashagg = off;

-- What it groups, and computes.
SELECT compare_parallel('SELECT k, count(*), sum(w), avg(i2), min(id), max(id) FROM t GROUP BY k');
SELECT compare_parallel('SELECT b, count(*), sum(i2) FROM t GROUP BY b');
SELECT compare_parallel('SELECT id, u, sum(w) FROM t GROUP BY id, u');
SELECT compare_parallel('SELECT k, k2, u, count(*) FILTER (WHERE b) AS c, count(f) AS d FROM t GROUP BY k, k2, u');
SELECT compare_parallel('SELECT k % 10 AS kk, sum(i2 + 1) FROM t WHERE id % 2 = 0 AND f > 10 GROUP BY k % 10 HAVING sum(i2 + 1) > 100');
SELECT compare_parallel('SELECT k, count(*) FROM t WHERE id < 0 GROUP BY k');
SELECT compare_parallel('SELECT k, count(*) FROM t WHERE id = 77 GROUP BY k');
SELECT compare_parallel('SELECT DISTINCT s FROM (SELECT k, sum(i2) # 0 AS s FROM t GROUP BY k) q', nodes => 2);

-- All have a part in it.
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t WHERE together(id) GROUP BY k', participants => 4);
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t WHERE together(id) GROUP BY id, u', participants => 4);
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t WHERE together(id) GROUP BY k', 'gpurhh.batch_rows=64', participants => 4);

-- What it reads: any partial plan.
SELECT compare_parallel('SELECT c, k2, count(*), sum(w) FROM t JOIN d USING (k) GROUP BY c, k2', 'enable_mergejoin=off, enable_nestloop=off');
SELECT compare_parallel('SELECT c, k2, count(*), sum(w) FROM t JOIN d USING (k) GROUP BY c, k2', 'enable_hashjoin=off, enable_nestloop=off');
SELECT compare_parallel('SELECT k, sum(w) FROM t WHERE id BETWEEN 100 AND 20000 GROUP BY k', 'enable_seqscan=off, enable_bitmapscan=off');
SELECT compare_parallel('SELECT k, sum(w) FROM t WHERE id BETWEEN 100 AND 20000 GROUP BY k', 'enable_seqscan=off, enable_indexscan=off');
SELECT compare_parallel('SELECT k, sum(v) FROM (SELECT k, i2::int AS v FROM t UNION ALL SELECT k, c FROM d) x GROUP BY k');
CREATE TABLE p (k int, v int) PARTITION BY RANGE (v);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (500) WITH (parallel_workers = 3);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (5000) WITH (parallel_workers = 3);
CREATE TABLE p3 PARTITION OF p DEFAULT WITH (parallel_workers = 3);
INSERT INTO p SELECT g % 100, g % 6000 FROM generate_series(1, 20000) g;
ANALYZE p;
SELECT compare_parallel('SELECT k, count(*), sum(v) FROM p GROUP BY k');
-- of other GpuHashAggs, and beside them
SELECT compare_parallel('SELECT s, count(*), sum(k) FROM (SELECT k, sum(i2) # 0 AS s FROM t GROUP BY k) x GROUP BY s', nodes => 2);
SELECT compare_parallel('SELECT x.k, c, s FROM (SELECT k, sum(i2) AS s FROM t GROUP BY k) x JOIN (SELECT k, count(*) AS c FROM t GROUP BY k) y ON x.k = y.k', 'enable_mergejoin=off, enable_nestloop=off', nodes => 2);
SELECT compare_parallel('SELECT k, sum(i2) AS s FROM t GROUP BY k UNION ALL SELECT c, count(*) FROM d GROUP BY c', nodes => 2);

-- Who takes part: not the leader; fewer workers than planned; none.
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001');
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t WHERE together(id) GROUP BY k', 'parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001', participants => 3);
SELECT compare_parallel('SELECT s, count(*) FROM (SELECT k, sum(i2) # 0 AS s FROM t GROUP BY k) x GROUP BY s', 'parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001', nodes => 2);
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'max_parallel_workers=1');
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'max_parallel_workers=1, parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001');
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'max_parallel_workers=0');
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'max_parallel_workers=0, parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001');

-- What the device refuses meets in one host table, which may spill.
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u', 'gpurhh.device_memory=1MB');
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u', 'gpurhh.device_memory=1MB, work_mem=64kB');
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, gpurhh.device_memory=2MB');
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u', 'gpurhh.device_memory=1MB, parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001');

SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t WHERE together(id) GROUP BY id, u', 'gpurhh.device_memory=1MB, gpurhh.batch_rows=1000', participants => 4);
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t WHERE together(id) GROUP BY id, u', 'gpurhh.device_memory=1MB, gpurhh.batch_rows=1000, work_mem=64kB, parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001', participants => 3);

-- Parameters, from outside and from another part of the query.
PREPARE q(int) AS SELECT count(*), sum(s) FROM (SELECT k, sum(w) AS s FROM t WHERE id > $1 GROUP BY k) q;
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
EXECUTE q(0);
EXECUTE q(29990);
SELECT count(*), sum(s) FROM (SELECT k, sum(w) AS s FROM t WHERE id > (SELECT max(c) FROM d) GROUP BY k) q;
SET enable_gpu_hashagg = off;
EXECUTE q(0);
EXECUTE q(29990);
SELECT count(*), sum(s) FROM (SELECT k, sum(w) AS s FROM t WHERE id > (SELECT max(c) FROM d) GROUP BY k) q;

-- Rescans: the participants' shared state is made anew each time.
SET enable_gpu_hashagg = on;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT x, q.n, q.s FROM (SELECT count(*) AS n, sum(s) AS s FROM (SELECT k, sum(w) AS s FROM t GROUP BY k) i) q RIGHT JOIN (VALUES (1), (2), (3)) v (x) ON true;
SELECT x, q.n, q.s FROM (SELECT count(*) AS n, sum(s) AS s FROM (SELECT k, sum(w) AS s FROM t GROUP BY k) i) q RIGHT JOIN (VALUES (1), (2), (3)) v (x) ON true;
SELECT x, q.n, q.s FROM generate_series(1, 4) x, LATERAL (SELECT count(*) AS n, sum(s) AS s FROM (SELECT k, sum(w) AS s FROM t WHERE id > x * 7000 GROUP BY k) i) q;
SELECT count(*), sum(s) FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT k, sum(w) AS s FROM t GROUP BY k) q ON true;
SET enable_gpu_hashagg = off;
SELECT x, q.n, q.s FROM generate_series(1, 4) x, LATERAL (SELECT count(*) AS n, sum(s) AS s FROM (SELECT k, sum(w) AS s FROM t WHERE id > x * 7000 GROUP BY k) i) q;
SELECT count(*), sum(s) FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT k, sum(w) AS s FROM t GROUP BY k) q ON true;
RESET enable_material;

-- Ends before the end: LIMIT, in the leader and below aggregates, and EXISTS.
SET enable_gpu_hashagg = on;
SELECT count(*), count(DISTINCT coalesce(k, -1)) FROM (SELECT k, sum(w) FROM t GROUP BY k LIMIT 10) q;
SELECT count(*) FROM (SELECT id, sum(w) FROM t GROUP BY id LIMIT 20001) q;
SELECT count(*) FROM (SELECT id, s FROM (SELECT id, sum(w) AS s FROM t GROUP BY id) i WHERE s > 5 LIMIT 3) q;
SELECT EXISTS (SELECT FROM t GROUP BY id OFFSET 100);
SELECT count(*) FROM (SELECT id, sum(w) FROM t GROUP BY id LIMIT 0) q;
-- a cursor runs the plan without workers
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT k, sum(w) FROM t GROUP BY k;
\set QUIET off
MOVE 100 IN c;
MOVE 10 IN c;
COMMIT;
MOVE ALL IN c;
\set QUIET on
CLOSE c;

-- An error in a worker's part ends the query, and nothing else.
SELECT sqlstate_of('SELECT count(*), sum(s) FROM (SELECT k, sum(1000 / (29000 - id)) AS s FROM t GROUP BY k) q');
SELECT count(*), sum(s) FROM (SELECT k, sum(w) AS s FROM t GROUP BY k) q;

-- All slots of the service's are taken, by groups that are more than a block: one
-- participant does it all on the host.
\set ECHO errors
\o /dev/null
BEGIN;
SET LOCAL enable_gpu_hashagg = on;
SELECT format('DECLARE c%s CURSOR FOR SELECT w, u, count(*) FROM t GROUP BY w, u', g) FROM generate_series(1, 128) g
\gexec
SELECT format('FETCH 1 FROM c%s', g) FROM generate_series(1, 128) g
\gexec
\o
\set ECHO all
SELECT replace(analyze_json('SELECT k, count(*), sum(w) FROM t GROUP BY k')->>'Device Declined', ' of the session', '');
SET LOCAL enable_gpu_hashagg = off;
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k');
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001');
ROLLBACK;

-- Core's own way to put workers everywhere; its name depends on the version.
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT compare('SELECT k, count(*), sum(w) FROM t GROUP BY k');
SELECT compare('SELECT k, sum(i2) AS s FROM t GROUP BY k HAVING sum(i2) > 400 ORDER BY s, k LIMIT 20', ordered => true);
SELECT compare('SELECT c, count(*) FROM t JOIN d USING (k) GROUP BY c');
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u');
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');

-- The smallest pool, which all participants and their results share.
\c
:session
:parallel
SELECT context <> 'postmaster' AS own_pool FROM pg_settings WHERE name = 'gpurhh.pool_size' \gset
\if :own_pool
SET gpurhh.pool_size = '256kB';
\endif
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u');
SELECT compare_parallel('SELECT k, count(*), sum(w) FROM t GROUP BY k', 'gpurhh.batch_rows=64');
SELECT compare_parallel('SELECT s, count(*), sum(k) FROM (SELECT k, sum(i2) # 0 AS s FROM t GROUP BY k) x GROUP BY s', 'gpurhh.batch_rows=64', nodes => 2);
SELECT compare_parallel('SELECT s, count(*), sum(k) FROM (SELECT k, sum(i2) # 0 AS s FROM t GROUP BY k) x GROUP BY s', 'gpurhh.batch_rows=64, parallel_leader_participation=off, parallel_tuple_cost=0.001, gpurhh.row_cost=0.001', nodes => 2);
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t GROUP BY id, u', 'gpurhh.batch_rows=256, gpurhh.device_memory=1MB, work_mem=64kB');
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t WHERE together(id) GROUP BY id, u', 'gpurhh.batch_rows=500', participants => 4);
SELECT compare_parallel('SELECT id, u, count(*), sum(w) FROM t WHERE together(id) GROUP BY id, u', 'gpurhh.batch_rows=500, gpurhh.device_memory=1MB, work_mem=64kB', participants => 4);
