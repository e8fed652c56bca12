--
-- SELECT DISTINCT, and aggregates with DISTINCT.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_gpu_hashagg = on;

CREATE TABLE t (id int PRIMARY KEY, k int, v int, w bigint, s smallint, d date, f float8, b bool, txt text);
INSERT INTO t
	SELECT g, CASE WHEN g % 17 <> 0 THEN g % 13 END, CASE WHEN g % 7 <> 0 THEN g * 31 % 1000 - 500 END, g % 50 * 4000000007::bigint, (g % 300 - 150)::int2,
		'2000-01-01'::date + g % 40, (g % 9) / 8.0 - 0.5, g % 3 = 0, 'text ' || g % 11
	FROM generate_series(1, 30000) g;
CREATE TABLE empty (LIKE t);
VACUUM ANALYZE t;
ANALYZE empty;

-- SELECT DISTINCT
SELECT compare('SELECT DISTINCT k FROM t');
SELECT compare('SELECT DISTINCT k, d FROM t');
SELECT compare('SELECT DISTINCT f, b, s, w FROM t');
SELECT compare('SELECT DISTINCT k + 1, v / 100 FROM t');
SELECT compare('SELECT DISTINCT k FROM empty');
SELECT compare('SELECT DISTINCT k FROM t WHERE v > 490');
SELECT compare('SELECT DISTINCT k FROM t WHERE v > 4900');
SELECT compare('SELECT DISTINCT k FROM t ORDER BY k', ordered => true);
SELECT compare('SELECT DISTINCT k FROM t ORDER BY k DESC NULLS LAST LIMIT 3', ordered => true, nodes => 0);
SELECT compare('SELECT DISTINCT k, 5 AS five FROM t');
SELECT compare('SELECT DISTINCT k, k AS again FROM t');
SELECT compare('SELECT DISTINCT a.k, b.s FROM t a JOIN t b ON a.id = b.w');
SELECT compare('SELECT count(*) FROM (SELECT DISTINCT k, d FROM t) x', nodes => 2);
SELECT compare('SELECT DISTINCT k FROM t WHERE k = 3', nodes => 0);
SELECT compare('SELECT DISTINCT k, v FROM t WHERE k = 3');
-- of what the query computes below it
SELECT compare('SELECT DISTINCT count(*), count(v) FROM t GROUP BY k', nodes => 2);
SELECT compare('SELECT DISTINCT count(*) > 1 FROM t GROUP BY k HAVING count(v) > 1600', nodes => 2);
SELECT compare('SELECT DISTINCT sum(v) OVER (PARTITION BY k), k FROM t');
SELECT compare('SELECT DISTINCT count(*), rank() OVER (ORDER BY k) > 5 FROM t GROUP BY k', nodes => 2);
SELECT compare('SELECT DISTINCT (SELECT count(*) FROM empty) + k FROM t', nodes => 2);
SELECT compare('SELECT DISTINCT x.g, y.k FROM generate_series(1, 3) x (g), LATERAL (SELECT DISTINCT k FROM t WHERE t.k > x.g * 4) y');
SELECT compare('SELECT k FROM t WHERE id IN (SELECT DISTINCT w FROM t)', nodes => 0);
-- refused
SELECT * FROM gpurhh_refusals('SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v');
SELECT * FROM gpurhh_refusals('SELECT DISTINCT f::numeric, k FROM t');
SELECT * FROM gpurhh_refusals('SELECT DISTINCT k + (random() * 0)::int FROM t');
SELECT * FROM gpurhh_refusals('SELECT DISTINCT generate_series(1, k % 3) FROM t');
SELECT compare('SELECT DISTINCT generate_series(1, k % 3), k FROM t', nodes => 0);

-- aggregates with DISTINCT
SELECT compare('SELECT k, count(DISTINCT v) FROM t GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT v), sum(DISTINCT v), avg(DISTINCT v) FROM t GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT w), sum(DISTINCT w), avg(DISTINCT w) FROM t GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT s), sum(DISTINCT s), avg(DISTINCT s) FROM t GROUP BY k');
SELECT compare(format('SELECT k, count(DISTINCT %s) FROM t GROUP BY k', c)) FROM unnest('{id,k,v,w,s,d,f,b}'::text[]) c;
-- besides others, which are put together
SELECT compare('SELECT k, count(DISTINCT v), count(*), count(v), sum(v), avg(v), min(v), max(w), sum(w), avg(w), sum(s), min(d) FROM t GROUP BY k');
SELECT compare('SELECT b, s, sum(w), count(DISTINCT k), max(v), avg(w) FROM t GROUP BY b, s');
SELECT compare('SELECT count(DISTINCT v), sum(v), count(*) FROM t');
SELECT compare('SELECT count(DISTINCT v), sum(DISTINCT v), count(*), sum(w) FROM empty');
SELECT compare('SELECT k, count(DISTINCT v), count(*) FROM empty GROUP BY k');
SELECT compare('SELECT k, min(DISTINCT v), max(DISTINCT w) FROM t GROUP BY k');
SELECT compare('SELECT k, min(DISTINCT v), count(DISTINCT w) FROM t GROUP BY k');
-- FILTER
SELECT compare('SELECT k, count(DISTINCT v) FILTER (WHERE b), sum(w) FILTER (WHERE s > 0), count(*) FROM t GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT v) FILTER (WHERE b), sum(DISTINCT v) FILTER (WHERE b) FROM t GROUP BY k');
SELECT compare('SELECT count(DISTINCT 10 / v) FILTER (WHERE v <> 0) FROM t');
-- HAVING, ORDER BY, expressions, the primary key's other columns
SELECT compare('SELECT k FROM t GROUP BY k HAVING count(DISTINCT v) > 120');
SELECT compare('SELECT k, count(DISTINCT v) + 1 FROM t GROUP BY k ORDER BY count(DISTINCT v) DESC, k', ordered => true);
SELECT compare('SELECT id, v, s, count(DISTINCT k) FROM t GROUP BY id');
SELECT compare('SELECT k + 1, count(DISTINCT v * 2 + s) FROM t GROUP BY k + 1');
SELECT compare('SELECT k, count(DISTINCT k), sum(DISTINCT k), count(*) FROM t GROUP BY k');
SELECT compare('SELECT DISTINCT count(DISTINCT v) FROM t GROUP BY k', nodes => 2);
-- extremes: sums of 128 bits, the sign
CREATE TABLE extremes AS SELECT g % 3 AS k, x FROM generate_series(1, 30) g, unnest('{9223372036854775807, 9223372036854775806, -9223372036854775808, -1, 0, NULL}'::bigint[]) x;
ANALYZE extremes;
SELECT compare('SELECT k, sum(DISTINCT x), avg(DISTINCT x), count(DISTINCT x), sum(x), count(*) FROM extremes GROUP BY k');
SELECT compare('SELECT sum(DISTINCT x), avg(DISTINCT x) FROM extremes WHERE x < 0');
SELECT compare('SELECT sum(DISTINCT x::int), avg(DISTINCT x::int), sum(DISTINCT x::int2) FROM extremes WHERE x BETWEEN -1 AND 0', nodes => 0);
SELECT compare('SELECT sum(DISTINCT x::int2) FROM extremes WHERE x BETWEEN -1 AND 0');
SELECT compare('SELECT sum(DISTINCT f), count(DISTINCT f) FROM t', nodes => 0);
-- refused
SELECT r.reason FROM unnest('{count(DISTINCT v)\, count(DISTINCT w),count(DISTINCT v)\, count(DISTINCT v) FILTER (WHERE b),sum(DISTINCT f::numeric),count(DISTINCT v + (random() * 0)::int),string_agg(DISTINCT txt\, txt),
	count(DISTINCT (v\, w)),count(DISTINCT v ORDER BY v)}'::text[]) WITH ORDINALITY AS x (agg, o),
	gpurhh_refusals(format('SELECT k, %s FROM t GROUP BY k', agg)) r ORDER BY o;

-- rescans, generic plans, cursors
SELECT compare('SELECT x.g, y.* FROM generate_series(-1, 14) x (g), LATERAL (SELECT count(DISTINCT v), sum(v), count(*) FROM t WHERE t.k = x.g) y');
SELECT compare('SELECT x.g, y.* FROM generate_series(0, 3) x (g), LATERAL (SELECT s, count(DISTINCT v) FROM t WHERE t.k = x.g GROUP BY s HAVING count(DISTINCT v) > x.g) y');
SET enable_gpu_hashagg = on;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(DISTINCT v), count(*) FROM t WHERE k = $1;
EXECUTE q (3);
EXECUTE q (-3);
EXECUTE q (4);
DEALLOCATE q;
RESET plan_cache_mode;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(DISTINCT v) FROM t GROUP BY k;
MOVE 4 FROM c;
MOVE ALL FROM c;
COMMIT;
EXPLAIN (COSTS OFF) SELECT DISTINCT k, d FROM t;
EXPLAIN (COSTS OFF) SELECT k, count(DISTINCT v), sum(w) FROM t GROUP BY k;
RESET enable_gpu_hashagg;

-- parallel
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT compare('SELECT DISTINCT k, d FROM t');
SELECT compare('SELECT k, count(DISTINCT v), sum(w) FROM t GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT v), sum(w) FROM t GROUP BY k', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT count(DISTINCT v), sum(w) FROM t');
SELECT compare('SELECT DISTINCT k, d FROM t', settings => 'parallel_leader_participation=off');
RESET ALL;
:session

-- many groups of both levels; the second one's to disk; what the device refuses
CREATE TABLE many AS SELECT g * 7919 % 40000 AS k, g % 3000 AS v, g AS w FROM generate_series(1, 120000) g;
ANALYZE many;
SELECT compare('SELECT k, count(DISTINCT v), sum(w), count(*) FROM many GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT v), sum(w), count(*) FROM many GROUP BY k', settings => 'work_mem=64kB, hash_mem_multiplier=1');
\set on_host 'work_mem=64kB, hash_mem_multiplier=1, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95'
SELECT compare('SELECT k, count(DISTINCT v), sum(w), count(*) FROM many GROUP BY k', settings => :'on_host');
SELECT (analyze_json('SELECT k, count(DISTINCT v), sum(w) FROM many GROUP BY k', :'on_host') ->> 'Spilled Records')::int > 1000;
SELECT compare('SELECT k, count(DISTINCT v), sum(w), count(*) FROM many GROUP BY k', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT DISTINCT k, v FROM many', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, work_mem=64kB');
