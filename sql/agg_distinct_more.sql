--
-- DISTINCT over several arguments, with several filters, with GROUPING SETS: three
-- levels of groups.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- Who made the second level and the third, and whether rows were finished on the host.
CREATE FUNCTION made_by(query text, settings text DEFAULT NULL) RETURNS text
LANGUAGE sql AS $f$
	SELECT concat_ws(', ', j ->> 'Second Level', CASE WHEN j ? 'Third Level Groups' THEN 'device' ELSE 'host' END,
					 CASE WHEN (j ->> 'Host Rows')::int8 > 0 THEN 'host rows' END)
	FROM analyze_json(query, settings) j;
$f$;

CREATE TABLE t (id int, a int, b int, c smallint, u uuid, s text, x bigint, y int, n numeric(15, 2), m numeric(30, 4), f float8, p bool);
INSERT INTO t
	SELECT g, CASE WHEN g % 17 <> 0 THEN g % 13 END, CASE WHEN g % 5 <> 0 THEN g % 4 END, g % 6, md5((g % 31)::text)::uuid,
		CASE WHEN g % 11 <> 0 THEN repeat('s', g % 3 * 10) || g % 19 END,
		CASE WHEN g % 7 <> 0 THEN (CASE WHEN g % 26 < 13 THEN 1 ELSE -1 END) * (9223372036854775807 - g % 50) END,
		CASE WHEN g % 3 <> 0 THEN g * 7919 % 500 - 250 END, (g * 31 % 1000 - 500) / 100.0,
		(g % 100 - 50) * 12345678901234567890.1234, g % 100 / 8.0, g % 19 <> 0
	FROM generate_series(1, 12000) g;
CREATE TABLE empty (LIKE t);
ANALYZE t;
ANALYZE empty;

-- several arguments
SELECT compare('SELECT a, count(DISTINCT b), count(DISTINCT y) FROM t GROUP BY a');
SELECT compare('SELECT a, count(DISTINCT b), sum(DISTINCT y), avg(DISTINCT x), count(DISTINCT u), count(DISTINCT s), sum(DISTINCT n), count(*), count(x), sum(x), sum(m), min(x), max(f), variance(x) FROM t GROUP BY a');
SELECT compare('SELECT count(DISTINCT b), sum(DISTINCT y), avg(DISTINCT x), count(DISTINCT u), count(DISTINCT s), avg(DISTINCT n), count(*), avg(x) FROM t');
SELECT compare('SELECT s, u, count(DISTINCT y), count(DISTINCT a), bit_xor(x), bool_and(p), sum(f) FROM t GROUP BY s, u');
SELECT compare('SELECT a, count(DISTINCT y), count(DISTINCT y + 1), count(DISTINCT (y + 1) % 3), sum(y) FROM t GROUP BY a HAVING count(DISTINCT y) > 200');
-- an argument that is a key too, and one that others are made of
SELECT compare('SELECT a, count(DISTINCT a), count(DISTINCT b) FROM t GROUP BY a');
-- filters
SELECT compare('SELECT a, count(DISTINCT y), count(DISTINCT y) FILTER (WHERE b = 1), count(DISTINCT y) FILTER (WHERE b = 2), sum(DISTINCT y) FILTER (WHERE b = 2), count(*) FROM t GROUP BY a');
SELECT compare('SELECT count(DISTINCT 100 / y) FILTER (WHERE y <> 0), count(DISTINCT x) FILTER (WHERE p), count(*) FILTER (WHERE NOT p) FROM t');
SELECT compare('SELECT a, count(DISTINCT y) FILTER (WHERE false), count(DISTINCT x) FROM t GROUP BY a');
-- with GROUPING SETS
SELECT compare('SELECT a, b, count(DISTINCT y), count(*), GROUPING(a, b) FROM t GROUP BY CUBE (a, b)');
SELECT compare('SELECT a, b, count(DISTINCT y), sum(DISTINCT x), count(DISTINCT s), count(*), sum(x), avg(m), variance(x), GROUPING(b) FROM t GROUP BY ROLLUP (a, b)');
SELECT compare('SELECT a, b, u, count(DISTINCT y), sum(x) FROM t GROUP BY GROUPING SETS ((a), (b), (u, b), (), ())');
SELECT compare('SELECT a, b, sum(DISTINCT n), min(y) FROM t GROUP BY GROUPING SETS ((a), (b)) HAVING sum(DISTINCT n) < 0');
SELECT compare('SELECT s, count(DISTINCT u), count(DISTINCT s) FROM t GROUP BY GROUPING SETS ((s), ())');
SELECT compare('SELECT a, count(DISTINCT a) FROM t GROUP BY ROLLUP (a)');
-- no rows, and values that are all NULL
SELECT compare('SELECT count(DISTINCT y), sum(DISTINCT x), count(*) FROM t WHERE y > 1000');
SELECT compare('SELECT a, count(DISTINCT y), count(DISTINCT x) FROM empty GROUP BY a');
SELECT compare('SELECT a, b, count(DISTINCT y), sum(DISTINCT x), count(*), GROUPING(a, b) FROM t WHERE y > 1000 GROUP BY CUBE (a, b)');
SELECT compare('SELECT b, count(DISTINCT y), sum(DISTINCT x) FROM t WHERE y IS NULL AND x IS NULL GROUP BY b');
-- who makes what
SELECT made_by('SELECT a, count(DISTINCT b), sum(DISTINCT y), variance(x), sum(m) FROM t GROUP BY a');
SELECT made_by('SELECT a, b, count(DISTINCT y), sum(f) FROM t GROUP BY CUBE (a, b)');
SELECT made_by('SELECT a, count(DISTINCT b), count(DISTINCT y), stddev(f) FROM t GROUP BY a');
SELECT made_by('SELECT a, b, c, p, y % 2, x % 3, count(DISTINCT y), count(DISTINCT u) FROM t GROUP BY CUBE (a, b, c, p, y % 2, x % 3)');
SELECT compare('SELECT a, count(DISTINCT b), count(DISTINCT y), round(stddev(f)::numeric, 9) FROM t GROUP BY a');
SELECT compare('SELECT a, b, c, p, y % 2, x % 3, count(DISTINCT y), count(DISTINCT u) FROM t WHERE id < 300 GROUP BY CUBE (a, b, c, p, y % 2, x % 3)');

-- rescans, cursors, prepared statements, small batches
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 6) q (g), LATERAL (SELECT b, count(DISTINCT y), sum(DISTINCT x), count(*) FROM t WHERE c = q.g GROUP BY ROLLUP (b)) w');
SELECT compare('SELECT q.g, (SELECT count(DISTINCT y) + count(DISTINCT b) FROM t WHERE c = q.g) FROM generate_series(0, 6) q (g)');
SELECT compare('SELECT a, b, count(DISTINCT y), count(DISTINCT x), sum(x) FROM t GROUP BY CUBE (a, b)', settings => 'gpurhh.batch_rows=64');
SET enable_gpu_hashagg = on;
BEGIN;
DECLARE one CURSOR FOR SELECT y, b, count(DISTINCT a), count(DISTINCT u) FROM t GROUP BY ROLLUP (y, b);
DECLARE two CURSOR FOR SELECT id, count(DISTINCT a), count(DISTINCT b) FROM t GROUP BY id;
MOVE 100 FROM one;
MOVE 300 FROM two;
MOVE ALL FROM one;
MOVE ALL FROM two;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(DISTINCT y), count(DISTINCT b), count(*) FROM t WHERE a = $1;
EXECUTE q (3);
EXECUTE q (-3);
EXECUTE q (4);
DEALLOCATE q;
RESET plan_cache_mode;
RESET enable_gpu_hashagg;
EXPLAIN (COSTS OFF) SELECT a, count(DISTINCT b), count(DISTINCT y) FROM t GROUP BY ROLLUP (a);
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT a, count(DISTINCT b), count(DISTINCT y) FROM t GROUP BY ROLLUP (a);
SELECT sqlstate_of('SELECT a, count(DISTINCT b), count(DISTINCT 1 / (y % 10)) FROM t GROUP BY a');
RESET enable_gpu_hashagg;

-- parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT compare('SELECT a, count(DISTINCT y), sum(DISTINCT x), count(DISTINCT s), avg(m) FROM t GROUP BY a');
SELECT compare('SELECT a, count(DISTINCT y), sum(DISTINCT x), count(DISTINCT s), avg(m) FROM t GROUP BY a', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT a, b, count(DISTINCT y), sum(x) FROM t GROUP BY CUBE (a, b)');
SELECT compare('SELECT a, b, count(DISTINCT y), sum(x) FROM t WHERE y > 1000 GROUP BY CUBE (a, b)', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT count(DISTINCT y), count(DISTINCT x) FROM t');
SELECT compare('SELECT q.g, (SELECT count(DISTINCT y) + count(DISTINCT b) FROM t WHERE c = q.g) FROM generate_series(0, 6) q (g)');
SELECT made_by('SELECT a, count(DISTINCT y), sum(DISTINCT x), avg(m) FROM t GROUP BY a');
RESET ALL;
:session

-- many groups of all levels; what the device refuses; the host's to disk
CREATE TABLE many AS SELECT g * 7919 % 20000 AS k, g % 3000 AS v, g % 701 AS w, g AS x FROM generate_series(1, 60000) g;
ANALYZE many;
SELECT compare('SELECT k, count(DISTINCT v), count(DISTINCT w), sum(x) FROM many GROUP BY k');
SELECT made_by('SELECT k, count(DISTINCT v), count(DISTINCT w), sum(x) FROM many GROUP BY k');
\set on_host 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95'
SELECT compare('SELECT k, count(DISTINCT v), count(DISTINCT w), sum(x) FROM many GROUP BY k', settings => :'on_host');
SELECT made_by('SELECT k, count(DISTINCT v), count(DISTINCT w), sum(x) FROM many GROUP BY k', :'on_host');
SELECT compare('SELECT k, w, count(DISTINCT v), sum(x) FROM many GROUP BY ROLLUP (w, k)', settings => :'on_host' || ', work_mem=64kB, hash_mem_multiplier=1');
SELECT compare('SELECT k, count(DISTINCT v), count(DISTINCT w), round(stddev(x::float8)::numeric, 6) FROM many GROUP BY k', settings => 'work_mem=64kB, hash_mem_multiplier=1');
SELECT compare('SELECT k, count(DISTINCT v), count(DISTINCT w), sum(x) FROM many GROUP BY k', settings => 'gpurhh.device=cpu, gpurhh.device_memory=1MB');
SELECT made_by('SELECT k, count(DISTINCT v), count(DISTINCT w), sum(x) FROM many GROUP BY k', 'gpurhh.device=cpu, gpurhh.device_memory=1MB');
