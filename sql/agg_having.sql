--
-- HAVING: computed for a window of groups before they are rows, where it can
-- be; by core, row by row, where not.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS
	SELECT nullif(g % 3000, 17) AS k, (g % 7)::int2 AS i2, nullif(g % 11, 3) AS i4, nullif(g::int8 * 1000003, 30000090) AS w, g % 3 = 0 AS b,
		   CASE g % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN -0.0 ELSE g % 50 END::float8 AS f, (g % 9)::float4 AS f4,
		   date '2024-01-01' + g % 100 AS d, md5((g % 20)::text)::uuid AS u, (g % 13)::oid AS o
	FROM generate_series(1, 20000) g;
ANALYZE t;

-- on each kind of column; more groups than a window has
SELECT h, compare('SELECT k, i2, b, count(*), count(i4), sum(i4), sum(w), avg(i2), min(i2), max(d), min(w) FROM (SELECT *, k % 100 AS kk FROM t) t (k0, i2, i4, w, b, f, f4, d, u, o, k) GROUP BY k, i2, b HAVING ' || h)
FROM unnest(ARRAY[
	'count(*) > 9', 'count(*) < 0', 'count(*) = 9 AND k > 50', 'k IS NULL', 'k IS NOT NULL AND i2 = 3', 'b', 'NOT b', 'b IS NOT TRUE', 'b AND count(*) > 1',
	'sum(i4) > 45', 'sum(i4) IS NULL', 'sum(i4) IS NOT NULL OR k < 50', 'NOT (sum(i4) > 45)', 'count(i4) BETWEEN 7 AND 8', 'k IN (1, 2, 3, NULL)', 'k NOT IN (1, 2, 3)',
	'min(i2) > 3::int8', 'max(d) > date ''2024-02-01''', 'min(w) > 1000000000', 'sum(i4) + count(*) > 7', 'k % 10 = 3', 'CASE WHEN b THEN count(*) > 2 ELSE k < 5 END',
	-- sums that are numerics
	'sum(w) > 500000', 'sum(w) = 0', 'sum(w) > 1e30', 'sum(w) * 100000000000000000000 > 5', 'sum(w) > 500000 OR k IS NULL', 'sum(w) IS NULL',
	-- these core computes: averages, functions, mixtures
	'avg(i2) > 2.5', 'abs(k) < 10', 'count(*) > 1 AND avg(i2) > 2.5', 'k::text LIKE ''1%''', 'sum(w) > 500000 AND avg(i2) > 2.5',
	-- constants
	'true', 'false', 'NULL::bool'
	]) WITH ORDINALITY AS x (h, n) ORDER BY n;
SELECT h, compare('SELECT f, f4, u, o, count(*) FROM t GROUP BY f, f4, u, o HAVING ' || h)
FROM unnest(ARRAY[
	'f > 10', 'f = ''NaN''', 'f <> ''NaN''', 'f < ''Infinity''', 'f >= ''Infinity''', 'f = 0', 'f4 < 3', 'f4 = f', 'f + f4 > 20',
	'u > ''80000000-0000-0000-0000-000000000000''', 'u IS NOT NULL AND count(*) > 1', 'o > 4294967295', 'o = 7', 'count(*) FILTER (WHERE b) = 0'
	]) WITH ORDINALITY AS x (h, n) ORDER BY n;

-- sums of numerics, of one scale, of several words, and where some values are not as declared
CREATE TABLE n AS
	SELECT g % 1500 AS k, (CASE WHEN g % 1500 % 7 > 0 THEN (g % 1000 - 300) / 8.0 END)::numeric(10, 3) AS a, (g * 37 % 400)::numeric(8, 1) AS b,
		   (g % 100 * 1e30)::numeric(38, 4) AS wide, nullif(g % 1500, 20) * 1000000000000000 AS w
	FROM generate_series(1, 15000) g;
ANALYZE n;
SELECT h, compare('SELECT k, count(*), sum(a), sum(wide) FROM n GROUP BY k HAVING ' || h)
FROM unnest(ARRAY[
	'sum(a) > 100', 'sum(a) < -5.1234567', 'sum(a) = 125', 'sum(a) <> 125.0000', 'sum(a) IS NULL', 'sum(a) IS NOT NULL', 'sum(a) BETWEEN 1 AND 50.5',
	'sum(a) > sum(b)', 'sum(a) + 1 > sum(b) * 2', '-sum(a) > 3', 'sum(a) IN (62.5, 125, NULL)', 'sum(a) NOT IN (62.5, 125)', 'sum(a) > NULL', 'sum(a) < ''NaN''', 'sum(a) = ''NaN''',
	'sum(a) > ''Infinity''', 'CASE WHEN sum(a) > 5 THEN count(*) > 2 ELSE false END', 'coalesce(sum(a), 7) > 6', 'abs(sum(a)) > 3', 'sum(a) > count(*)', 'sum(a)::int > 30',
	'sum(wide) > 5e31', 'sum(w) >= 1000000000000000000', 'sum(w) - sum(a) > 1', 'sum(a) > 1e-20', 'sum(a) > 1e36', 'sum(a) * sum(b) > 10000', 'round(sum(a), 1) = 125',
	'sum(a) FILTER (WHERE b > 100) > 50', 'sum(DISTINCT a) > 50'
	]) WITH ORDINALITY AS x (h, n) ORDER BY n;
CREATE TABLE odd AS
	SELECT * FROM unnest(ARRAY(SELECT ROW(k, CASE k % 300 WHEN 7 THEN 'NaN' WHEN 8 THEN 1.23456 ELSE k END::numeric) FROM n)) q (k int, x numeric(9, 2));
SELECT h, compare('SELECT k, count(*), sum(x) FROM odd GROUP BY k HAVING ' || h)
FROM unnest(ARRAY['sum(x) > 100', 'sum(x) > 12.345', 'sum(x) = ''NaN''', 'sum(x) < ''NaN''', 'count(*) > 3 AND sum(x) > 12']) WITH ORDINALITY AS x (h, n) ORDER BY n;
UPDATE n SET a = 'NaN' WHERE k % 100 = 3;
SELECT h, compare('SELECT k, count(*), sum(a) FROM n GROUP BY k HAVING ' || h)
FROM unnest(ARRAY['sum(a) > 100', 'sum(a) = ''NaN''', 'sum(a) < ''NaN''', 'count(*) > 3 AND sum(a) > 0']) WITH ORDINALITY AS x (h, n) ORDER BY n;

-- what the device leaves out is counted, once
SELECT h, p, (j ->> 'Rows Removed by Filter')::int * (j ->> 'Actual Loops')::int + (j ->> 'Actual Rows')::numeric * (j ->> 'Actual Loops')::int BETWEEN 1498 AND 1502
FROM unnest('{sum(a) > 100,sum(w) >= 1000000000000000000,count(*) > 20,count(b) < 10 AND sum(b) > 1,count(*) > 3 AND avg(b) > 5}'::text[]) h, unnest('{0,2}'::int[]) p,
	analyze_json('SELECT k, count(*), sum(b) FROM n GROUP BY k HAVING ' || h, 'max_parallel_workers_per_gather=' || p) j;

-- an error is core's, and comes only where core would come to it
SELECT e, sqlstate_of('SELECT count(*) FROM (SELECT k, sum(i4) FROM t GROUP BY k HAVING ' || h || ') q')
FROM (SELECT set_config('enable_gpu_hashagg', e, false) AS e FROM unnest('{on,off}'::text[]) e) s,
	 unnest(ARRAY['100 / (count(*) - count(*)) > 1', '(k * 1000000) > 5', '(1000 / k) > 5', '(k = 0 OR 1000 / k > 5)', 'CASE WHEN k = 0 THEN false ELSE 1000 / k > 5 END', '(sum(i4) * 9223372036854775807) > 1']) h;
SET enable_gpu_hashagg = off;
-- sums that overflow are errors of groups for which HAVING is not true, too
CREATE TABLE large AS SELECT g % 300 AS k, CASE g % 300 WHEN 7 THEN 1e308 ELSE g END::float8 AS f, CASE g % 300 WHEN 7 THEN interval '100000000 years' ELSE interval '1 day' END AS i FROM generate_series(1, 1500) g;
ANALYZE large;
SELECT a, same_error('SELECT k, ' || a || ' FROM large GROUP BY k HAVING count(*) > 100')
FROM unnest(ARRAY['sum(f)', 'avg(f)', 'stddev(f)', 'var_pop(f)', 'sum(least(f, 3e38)::float4)', 'regr_sxx(f, k)', 'corr(k, f)', 'sum(i)', 'avg(i)']) a;
SELECT compare('SELECT k, sum(f), avg(i) FROM large WHERE k <> 7 GROUP BY k HAVING count(*) > 4');
-- (cheap conditions first, as core has them: no group comes to the overflow)
SELECT compare('SELECT k FROM t GROUP BY k HAVING sum(i4) * 1000000000000000000 > 5 AND max(d) = ''2000-01-20''');
SELECT compare('SELECT k FROM t GROUP BY k HAVING sum(i4) * 1000000000000000000 + k * 2 > 5 AND k + 1 > 0 AND max(d) = ''2000-01-20''');

-- parameters: of statements, of a query around, of an InitPlan, anew for each scan
PREPARE q(int, int) AS SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > $1 AND k < $2 ORDER BY k NULLS FIRST LIMIT 3;
SET plan_cache_mode = force_generic_plan;
SELECT set_config('enable_gpu_hashagg', 'on', false);
EXECUTE q(6, 500);
EXECUTE q(5, 500);
EXECUTE q(NULL, 500);
SET enable_gpu_hashagg = off;
EXECUTE q(6, 500);
EXECUTE q(5, 500);
EXECUTE q(NULL, 500);
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > (SELECT max(i2) FROM t)');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING k < (SELECT count(*) FROM t WHERE i2 = 3)');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING k IN (SELECT i4 FROM t)');
SELECT compare('SELECT x, c FROM generate_series(4, 7) x, LATERAL (SELECT k, count(*) AS c FROM t GROUP BY k HAVING count(*) >= x AND k % 100 < x) q');
SELECT compare('SELECT k, (SELECT count(*) FROM (SELECT i4 FROM t s GROUP BY i4 HAVING count(*) > 100 * o.k) q) FROM (SELECT DISTINCT k FROM t WHERE k < 30) o');

-- groups of the host's, and those merged, go the same way
SELECT compare('SELECT k, u, count(*), sum(i4) FROM t GROUP BY k, u HAVING sum(i4) > 3 AND k % 2 = 0', settings => 'gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT w, u, count(*) FROM t GROUP BY w, u HAVING count(*) = 1 AND w > 5000000000', settings => 'gpurhh.device_memory=1MB, work_mem=64kB');

-- what it removed
SELECT (j->>'Actual Rows')::numeric::int, j->>'Rows Removed by Filter', j->>'Filter' FROM analyze_json('SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > 6') j;
SELECT (j->>'Actual Rows')::numeric::int, j->>'Rows Removed by Filter', j->>'Filter' FROM analyze_json('SELECT k, avg(i2) FROM t GROUP BY k HAVING avg(i2) > 4.2') j;
