--
-- sum() and avg() of intervals: months, days and time are summed each for itself,
-- and an average is core's division of the sum.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE intervals (k int, before text, i interval, j interval(0), n int);
INSERT INTO intervals
	SELECT g % 50, repeat('x', g % 5),
		CASE WHEN g % 11 <> 0 THEN make_interval(months => g * 7919 % 400 - 200, days => g * 104729 % 1000 - 500, secs => (g::bigint * 7541 % 20000003) / 997.0 - 5000) END,
		CASE g % 3 WHEN 0 THEN '1 mon -30 days'::interval WHEN 1 THEN '-1 day 24:00:00.6' END, g
	FROM generate_series(1, 5000) g;
-- as far as one value of a group can be, each field in both directions
CREATE TABLE extremes (LIKE intervals);
INSERT INTO extremes VALUES
	(100, '', '178956970 years 7 mons', NULL, 1), (101, '', '-178956970 years -8 mons', NULL, 1), (102, '', '2147483647 days', NULL, 1), (103, '', '-2147483648 days', NULL, 1),
	(104, '', '2562047788:00:54.775807', NULL, 1), (105, '', interval '-2562047788:00:54.775807' - interval '0.000001 s', NULL, 1), (106, '', '0', '0', 1), (107, '', NULL, NULL, 1),
	(108, '', '2562047788:00:54.775807', NULL, 1), (108, '', interval '-2562047788:00:54.775807' - interval '0.000001 s', NULL, 2), (108, '', '2147483647 days', NULL, 3), (108, '', '-2147483647 days', NULL, 3),
	(109, '', '1 mon', NULL, 1), (109, '', '0', NULL, 1), (109, '', '0', NULL, 1), (109, '', '-1 day', NULL, 1), (109, '', '0.000001 s', NULL, 1);
VACUUM ANALYZE intervals, extremes;

SELECT compare('SELECT k, sum(i), avg(i), count(i), count(*) FROM intervals GROUP BY k');
SELECT compare('SELECT k, sum(j), avg(j), sum(i), avg(i), sum(n), min(n) FROM intervals GROUP BY k');
SELECT compare('SELECT n, sum(i), avg(j) FROM intervals WHERE k < 100 GROUP BY n');
SELECT compare('SELECT k, sum(i) FILTER (WHERE n % 2 = 0), avg(i) FILTER (WHERE j IS NULL), sum(i) FROM intervals GROUP BY k');
SELECT compare('SELECT k % 7, sum(i), avg(i) FROM intervals WHERE k < 50 GROUP BY 1');
SELECT compare('SELECT k, sum(i * 2), avg(j - i), avg(n * interval ''1 h'') FROM intervals WHERE k < 50 GROUP BY k');
SELECT compare('SELECT k, avg(CASE WHEN n % 3 = 0 THEN i END), sum(make_interval(secs => n / 7.0)) FROM intervals GROUP BY k');
SELECT compare('SELECT k, justify_interval(sum(i)), extract(epoch FROM avg(i)), sum(i)::text FROM intervals WHERE k < 50 GROUP BY k');
SELECT compare('SELECT k, avg(i) FROM intervals GROUP BY k HAVING sum(i) > ''1 year'' OR avg(i) IS NULL');
SELECT compare('SELECT sum(i), avg(i) FROM intervals WHERE k < 50');
SELECT compare('SELECT sum(i), avg(i), count(*) FROM intervals WHERE n < 0');
SELECT compare('SELECT sum(i), avg(i) FROM intervals WHERE i IS NULL');
SELECT compare('SELECT k, n % 3, sum(i), avg(i) FROM intervals WHERE k < 50 GROUP BY CUBE (k, n % 3)');
SELECT compare('SELECT k, sum(i), count(DISTINCT n % 5), avg(i) FROM intervals GROUP BY k');
SELECT compare('SELECT g, x.* FROM generate_series(0, 4) g, LATERAL (SELECT k, sum(i), avg(i) FROM intervals WHERE k % 5 = g GROUP BY k) x');
SELECT compare('SELECT k, sum(i), avg(i) FROM intervals GROUP BY k', settings => s)
FROM unnest(ARRAY['gpurhh.batch_rows=64', 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95,gpurhh.batch_rows=64,work_mem=64kB']) s;
SELECT compare('SELECT n, k, sum(i), avg(i) FROM intervals WHERE k < 100 GROUP BY n, k', settings => 'gpurhh.device_memory=1MB,gpurhh.batch_rows=200,work_mem=64kB');
SELECT compare('SELECT k, sum(i), count(i) FROM extremes GROUP BY k');
-- dividing is not all that core can do with these
SELECT k, a = b AS same
FROM generate_series(100, 109) k,
	 LATERAL (SELECT sqlstate_of(format('SELECT k, avg(i) FROM extremes WHERE k = %s GROUP BY k', k)) AS a,
			  sqlstate_of(format('SET enable_gpu_hashagg = on; SELECT k, avg(i) FROM extremes WHERE k = %s GROUP BY k', k)) AS b) x;
SELECT DISTINCT compare(format('SELECT k, avg(i) FROM extremes WHERE k = %s GROUP BY k', k)) FROM generate_series(100, 109) k
WHERE sqlstate_of(format('SELECT k, avg(i) FROM extremes WHERE k = %s GROUP BY k', k)) = 'no error';
-- also for the plans below, whatever the server has
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT compare('SELECT k, sum(i), avg(i) FROM intervals GROUP BY k');
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT k, sum(i), avg(j) FROM intervals GROUP BY k;
SELECT k, sum(i), avg(i) FROM extremes WHERE k IN (106, 107, 109) GROUP BY k ORDER BY k;
RESET enable_gpu_hashagg;

-- A sum beyond the type is core's error.
CREATE TABLE overflows (what text, i interval);
INSERT INTO overflows VALUES ('months', '178956970 years 7 mons'), ('months', '1 mon'), ('less months', '-178956970 years -8 mons'), ('less months', '-1 mon'),
	('days', '2147483647 days'), ('days', '1 day'), ('less days', '-2147483648 days'), ('less days', '-1 day'),
	('time', '2562047788:00:54.775807'), ('time', '0.000001 s'), ('less time', interval '-2562047788:00:54.775807' - interval '0.000001 s'), ('less time', '-0.000001 s');
SELECT what, sqlstate_of(format('SELECT what, %s(i) FROM overflows WHERE what = %L GROUP BY what', a, what)) AS native,
	   sqlstate_of(format('SET enable_gpu_hashagg = on; SELECT what, %s(i) FROM overflows WHERE what = %L GROUP BY what', a, what)) AS gpu
FROM (SELECT DISTINCT what FROM overflows) w, unnest('{sum,avg}'::text[]) a ORDER BY 1, a;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT what, sum(i) FROM overflows GROUP BY what;
RESET enable_gpu_hashagg;

-- Infinite ones, where the server has them.
CREATE TABLE infinite AS
	SELECT g % 4 AS k, CASE WHEN g % 5 = 0 THEN (CASE WHEN current_setting('server_version_num')::int < 170000 THEN '3 days' WHEN g % 4 = 2 THEN '-infinity' ELSE 'infinity' END)::interval
			  WHEN g % 4 <> 3 OR g % 3 = 0 THEN g * interval '1 h' END AS i
	FROM generate_series(1, 200) g;
SELECT compare('SELECT k, sum(i), avg(i), count(i) FROM infinite GROUP BY k');
SELECT compare('SELECT k, sum(i) FILTER (WHERE i > ''0''), avg(i) FILTER (WHERE i < ''1 year'') FROM infinite GROUP BY k');
SELECT compare('SELECT sum(i), avg(i) FROM infinite WHERE k <> 2');
SELECT compare('SELECT k, sum(i), avg(i) FROM infinite WHERE k < 2 GROUP BY ROLLUP (k)');
SELECT sqlstate_of('SELECT sum(i) FROM infinite') = sqlstate_of('SET enable_gpu_hashagg = on; SELECT sum(i) FROM infinite') AS same;
