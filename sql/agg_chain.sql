--
-- Groups of groups: where a node's rows are another node's groups, the device makes
-- the one's map of the other's, if each column is in a group's words as it is, or a
-- program can compute it.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- Is the answer right, and what was the upper node fed with?
CREATE FUNCTION chained(query text, settings text DEFAULT NULL) RETURNS text
LANGUAGE sql AS $f$
	SELECT concat_ws('; ', compare(query, settings => settings), j ->> 'Feed',
					 CASE WHEN (j ->> 'Host Rows')::int8 > 0 THEN 'host rows' END)
	FROM analyze_json(query, settings) j;
$f$;

CREATE TABLE t (id int PRIMARY KEY, a int, b int2, c int8, k uuid, s text, l text, v int, w int8, i2 int2, f float8, r float4,
	n numeric(12, 2), d date, ts timestamp, e money, p bool, o oid, h "char", ti time);
INSERT INTO t
	SELECT g, CASE WHEN g % 97 <> 0 THEN g % 4001 END, CASE WHEN g % 5 <> 0 THEN g % 4 END, g % 300 * 5000000000,
		md5((g % 500)::text)::uuid, CASE WHEN g % 11 <> 0 THEN 's' || g % 700 END, 'a longer string, number ' || g % 900,
		CASE WHEN g % 4001 % 10 <> 3 THEN (g * 7919::bigint % 4000000000 - 2000000000)::int END,
		(g - 10000) * 461168601842738::int8, g % 300 - 150, g % 100 / 8.0, CASE WHEN g % 50 = 7 THEN 'NaN' ELSE g % 64 / 4.0 END,
		(g * 31 % 100000 - 50000) / 100.0, '2000-01-01'::date + g % 40, '2000-01-01'::timestamp + g % 1000 * interval '1 hour',
		(g % 1000)::money, g % 19 <> 0, 4294967295 - g % 100, chr(65 + g % 26), '00:00'::time + g % 1440 * interval '1 minute'
	FROM generate_series(1, 20000) g;
CREATE TABLE empty (LIKE t);
VACUUM ANALYZE t;
ANALYZE empty;

-- what aggregates return, as arguments
SELECT chained('SELECT count(*), count(x), sum(x), avg(x), min(x), max(x), variance(x) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(*), count(x), sum(x), avg(x), min(x), max(x), bit_xor(x) FROM (SELECT a, b, count(v) AS x FROM t GROUP BY a, b) q');
SELECT chained('SELECT count(x), sum(x), avg(x), min(x), max(x) FROM (SELECT a, min(v) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(x), sum(x), avg(x), min(x), max(x) FROM (SELECT a, max(i2) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(x), sum(x), avg(x), min(x), max(x), bit_or(x) FROM (SELECT a, max(w) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(x), min(x), max(x) FROM (SELECT a, min(d) AS x FROM t WHERE v IS NOT NULL GROUP BY a) q');
SELECT chained('SELECT min(x), max(y), min(z), max(m) FROM (SELECT a, min(ts) AS x, max(ti) AS y, min(f) AS z, max(r) AS m FROM t GROUP BY a) q');
SELECT chained('SELECT max(x), min(y), max(z), sum(z) FROM (SELECT a, min(o) AS x, max(o) AS y, min(e) AS z FROM t GROUP BY a) q');
SELECT chained('SELECT bool_and(x), bool_or(y), count(x) FROM (SELECT a, bool_and(p) AS x, bool_or(p) AS y FROM t GROUP BY a) q');
SELECT chained('SELECT bit_and(x), bit_or(y), bit_xor(z) FROM (SELECT a, bit_and(v) AS x, bit_or(i2) AS y, bit_xor(w) AS z FROM t GROUP BY a) q');
SELECT chained('SELECT count(*), count(x) FROM (SELECT a, sum(v) AS x FROM t WHERE v IS NULL GROUP BY a) q');
-- as keys, and keys as keys and arguments
SELECT chained('SELECT x, count(*), sum(a) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q GROUP BY x');
SELECT chained('SELECT x, count(*), sum(a) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY x');
SELECT chained('SELECT b, count(*), sum(x), min(a), max(a), avg(a) FROM (SELECT a, b, sum(v) AS x FROM t GROUP BY a, b) q GROUP BY b');
SELECT chained('SELECT k, p, count(*), sum(x) FROM (SELECT a, k, p, count(*) AS x FROM t GROUP BY a, k, p) q GROUP BY k, p');
SELECT chained('SELECT c, d, h, sum(x), sum(b) FROM (SELECT b, c, d, h, a, max(v) AS x FROM t GROUP BY a, b, c, d, h) q GROUP BY c, d, h');
SELECT chained('SELECT f, r, count(*), sum(x) FROM (SELECT f, r, a, sum(i2) AS x FROM t GROUP BY f, r, a) q GROUP BY f, r');
SELECT chained('SELECT ts, o, e, ti, count(*) FROM (SELECT ts, o, e, ti, a FROM t GROUP BY ts, o, e, ti, a) q GROUP BY ts, o, e, ti');
SELECT chained('SELECT DISTINCT x FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT x, count(*) FROM (SELECT DISTINCT a, v AS x FROM t) q GROUP BY x');
SELECT chained('SELECT x, count(*) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY x HAVING count(*) > 1 OR x > 0');
SELECT chained('SELECT count(*) FROM (SELECT a, b FROM t GROUP BY a, b) q');
SELECT chained('SELECT s, count(*), sum(x) FROM (SELECT s, a, count(*) AS x FROM t GROUP BY s, a) q GROUP BY s');
SELECT chained('SELECT l, s, count(*), sum(x), count(s) FROM (SELECT s, l, a, count(*) AS x FROM t GROUP BY s, l, a) q GROUP BY l, s');
SELECT chained('SELECT s, max(x) FROM (SELECT l, s, a, count(*) AS x FROM t GROUP BY s, l, a) q GROUP BY s HAVING s > ''s3'' OR s IS NULL');
SELECT chained('SELECT c, m, count(*), sum(x) FROM (SELECT c, m, a, count(*) AS x FROM (SELECT s::char(6) AS c, l::name AS m, a FROM t) t GROUP BY c, m, a) q GROUP BY c, m');
SELECT chained('SELECT n, count(*), sum(x) FROM (SELECT n, a, count(*) AS x FROM t GROUP BY n, a) q GROUP BY n');
SELECT chained('SELECT a, sum(n), avg(n), min(n), max(n), variance(n), min(y), max(y) FROM (SELECT n, a, b, min(n) AS y FROM t GROUP BY n, a, b) q GROUP BY a');
SELECT chained('SELECT id, s, l, n, count(*) FROM (SELECT id, s, l, n, u FROM (SELECT t.*, id % 2 AS u FROM t) t GROUP BY id, s, l, n, u) q GROUP BY id, s, l, n');
SELECT chained('SELECT s, l, n, count(*) FROM (SELECT id, s, l, n, count(*) FROM t GROUP BY id) q GROUP BY s, l, n');
-- not all strings fit into the dictionary
SELECT chained('SELECT l, count(*), sum(x) FROM (SELECT l || id AS l, a, count(*) AS x FROM t GROUP BY 1, 2) q GROUP BY l', 'work_mem=64kB, hash_mem_multiplier=1');
-- other columns may be anything, if they are not needed
SELECT chained('SELECT count(*), sum(x) FROM (SELECT s, l, count(*) AS x, avg(w), sum(n) FROM t GROUP BY s, l) q');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT s AS k2, b, count(*) + 1 AS y, count(*) AS x FROM t GROUP BY s, b) q');
-- groups of groups of groups: two of the three are chained
SELECT chained('SELECT y, count(*) FROM (SELECT x, count(*) AS y FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q GROUP BY x) q2 GROUP BY y');
-- no input
SELECT chained('SELECT count(*), count(x), sum(x) FROM (SELECT a, sum(v) AS x FROM empty GROUP BY a) q');
SELECT chained('SELECT x, count(*) FROM (SELECT a, sum(v) AS x FROM empty GROUP BY a) q GROUP BY x');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT sum(v) AS x FROM t GROUP BY a % 1) q');

-- what a program computes: expressions above and below, conditions above and below
SELECT chained('SELECT sum(x + 1), min(-x), max(x * a), count(CASE WHEN x > 5 THEN x END) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(*), sum(s + 0) FROM (SELECT a, b, sum(v) AS s FROM t GROUP BY a, b) q');
SELECT chained('SELECT sum(y), max(z) FROM (SELECT a, count(*) * 2 AS y, max(v) - min(v) AS z FROM t WHERE v > 0 GROUP BY a) q');
SELECT chained('SELECT x % 7, a / 1000, count(*), sum(x), sum(a % 10) FROM (SELECT a, b, sum(v) AS x FROM t GROUP BY a, b) q GROUP BY 1, 2');
SELECT chained('SELECT count(*) FILTER (WHERE x > 4), sum(a) FILTER (WHERE x <= 4 OR a IS NULL), count(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT CASE WHEN x IS NULL THEN 0 WHEN x < 0 THEN -1 ELSE 1 END AS sign, count(*), max(coalesce(x, a)) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY 1');
SELECT chained('SELECT sum(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING count(*) > 4) q');
-- the conditions that the device has of HAVING are not on the groups of groups
SELECT chained('SELECT a % 1000, count(*) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING count(*) > 4) q GROUP BY 1');
SELECT chained('SELECT max(y) FROM (SELECT a, count(*) AS x, sum(v) AS y FROM t GROUP BY a HAVING count(*) BETWEEN -100 AND 1000) q');
SELECT chained('SELECT count(*), sum(x), min(a) FROM (SELECT a, b, count(*) AS x, sum(v) AS y FROM t GROUP BY a, b HAVING sum(v) + count(*) > 1000000 AND min(v) < 0 OR b IS NULL) q WHERE x > 0 AND y % 2 = 0');
SELECT chained('SELECT x, count(*) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING max(v) > 2147483646) q GROUP BY x');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING max(v) > 2147483646) q');
SELECT chained('SELECT s, l, count(*), sum(x - 1) FROM (SELECT s, l, a, count(*) AS x FROM t GROUP BY s, l, a HAVING count(*) < 9) q GROUP BY s, l');
SELECT chained('SELECT sum(n * 2), count(*), max(n) FROM (SELECT n, count(*) AS x FROM t GROUP BY n HAVING n > -100) q WHERE n + x < 400');
SELECT chained('SELECT round(corr(x, a)::numeric, 9), regr_count(x, a), regr_avgx(x + 1.5, a) FROM (SELECT a, count(*)::float8 AS x FROM t GROUP BY a) q');
SELECT chained('SELECT d, p AND x > 4, count(*), bool_and(p OR x > 3) FROM (SELECT d, p, a, count(*) AS x FROM t GROUP BY d, p, a) q WHERE d >= ''2000-01-05'' AND p IS NOT NULL GROUP BY 1, 2');
SELECT chained('SELECT sum(7), count(*), max(x + NULL::int) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(*), sum(x + 1) FROM (SELECT a, sum(v) AS x FROM empty GROUP BY a) q');
-- what is computed behind a condition may be bad
SELECT chained('SELECT sum(100 / (x - 4)) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING count(*) <> 4) q');
SELECT chained('SELECT sum(CASE WHEN x <> 4 THEN 100 / (x - 4) END) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
-- if it is bad elsewhere, core finds out what is wrong
SELECT same_error('SELECT sum(100 / (x - 4)) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT same_error('SELECT sum(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING 100 / (count(*) - 4) > 1) q');
SELECT same_error('SELECT sum(x * 9223372036854775807) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT max(y / 2) FROM (SELECT a, count(*) * ''infinity''::float8 AS y FROM t GROUP BY a) q');
-- rows that the map has no room for
SELECT chained('SELECT x % 100000, y + 1, count(*) FROM (SELECT a, c, k, max(v) AS x, sum(v) AS y FROM t GROUP BY a, c, k) q GROUP BY 1, 2', 'gpurhh.device=cpu, gpurhh.device_memory=1MB');

-- what the device does not chain
SELECT chained('SELECT s, max(l), sum(x) FROM (SELECT s, l, a, count(*) AS x FROM t GROUP BY s, l, a) q GROUP BY s');
SELECT chained('SELECT sum(x) FROM (SELECT a, sum(w) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT max(x) FROM (SELECT a, avg(v) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT sum(x) FROM (SELECT a, min(f) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT sum(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q WHERE x > 4 OR random() < 0');
SELECT chained('SELECT sum(y + 1) FROM (SELECT a, sum(n) AS y FROM t GROUP BY a) q');
SELECT chained('SELECT count(*) FROM (SELECT s, count(*) AS x FROM t GROUP BY s HAVING max(s) > ''s3'') q');
SELECT chained('SELECT count(DISTINCT x), count(*) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT x, b, count(*) FROM (SELECT a, b, count(*) AS x FROM t GROUP BY a, b) q GROUP BY ROLLUP (x, b)');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT a, b, count(*) AS x FROM t GROUP BY ROLLUP (a, b)) q');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT a, count(DISTINCT b) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT count(v) AS x FROM t) q');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a LIMIT 5000) q');

SELECT chained('SELECT bool_or(false), bool_and(true), count(*), count(false) FROM (SELECT a FROM t GROUP BY a) q');
SELECT chained('SELECT bool_or(false), bool_and(true), bool_and(false), count(*), max(x) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT y, z, count(*) FROM (SELECT a, true AS y, false AS z FROM t GROUP BY a) q GROUP BY y, z');
SELECT chained('SELECT bool_and(z), max(x) FROM (SELECT a, false AS z, count(*) AS x FROM t GROUP BY a) q');
SELECT chained('SELECT sum(7), count(*), max(NULL::int) FROM (SELECT a FROM t GROUP BY a) q');
-- rows that the upper map refuses; groups below that the host has
SELECT chained('SELECT a, b, count(*), sum(x), min(x), max(x), avg(x), variance(x), bit_or(x), bit_and(x), bit_xor(x), sum(y), variance(y), max(y), min(y), count(y)
	FROM (SELECT a, b, max(v) AS x, count(v) AS y FROM t GROUP BY a, b) q GROUP BY a, b', 'gpurhh.device=cpu, gpurhh.device_memory=1MB');
SELECT chained('SELECT a, b, count(*), sum(x), min(x) FROM (SELECT a, b, c, k, max(v) AS x FROM t GROUP BY a, b, c, k) q GROUP BY a, b',
	'gpurhh.device=cpu, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, gpurhh.device_memory=1MB');
SELECT chained('SELECT x, c, count(*) FROM (SELECT a, c, k, v, max(v) AS x FROM t GROUP BY a, c, k, v) q GROUP BY x, c',
	'gpurhh.device=cpu, gpurhh.device_memory=1MB');
-- odd values below
CREATE TABLE odd (a int, n numeric(10, 2), c char(4));
INSERT INTO odd SELECT g % 100, g / 100.0, 'x' FROM generate_series(1, 1000) g;
SELECT chained('SELECT n, sum(x) FROM (SELECT n, a, count(*) AS x FROM odd GROUP BY n, a) q GROUP BY n');
SELECT chained('SELECT n, c, sum(x) FROM (SELECT n, c, a, count(*) AS x FROM (SELECT a, (o.r).* FROM (SELECT a, json_populate_record(NULL::odd, json_build_object(''n'', n * 10, ''c'', c)) AS r FROM odd) o) p (a, b, n, c) GROUP BY n, c, a) q GROUP BY n, c');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT n, count(*) AS x FROM (SELECT a, (n::text || ''00'')::numeric AS n FROM odd) o GROUP BY n) q');

-- again and again
SELECT compare('SELECT d.g, q.* FROM generate_series(1, 4) d(g), LATERAL (SELECT count(*), sum(x) FROM (SELECT a, b, count(*) AS x FROM t WHERE b <> d.g GROUP BY a, b) i) q');
SELECT compare('SELECT d.g, (SELECT max(x) FROM (SELECT a, sum(v) AS x FROM t WHERE b = d.g GROUP BY a) i) FROM generate_series(0, 5) d(g)');
SELECT compare('SELECT d.g, q.* FROM generate_series(1, 3) d(g), LATERAL (SELECT x + d.g AS y, n FROM (SELECT x, count(*) AS n FROM (SELECT a, count(*) AS x FROM t GROUP BY a) i GROUP BY x) j OFFSET 0) q');
SET enable_gpu_hashagg = on;
-- a program has no parameters
SELECT compare('SELECT d.g, (SELECT sum(x + d.g) FROM (SELECT a, count(*) AS x FROM t GROUP BY a HAVING count(*) > d.g) i) FROM generate_series(3, 6) d(g)');
SELECT compare('SELECT d.g, (SELECT sum(x + 1) FROM (SELECT a, count(*) AS x FROM t WHERE b <> d.g GROUP BY a HAVING count(*) > 2) i) FROM generate_series(0, 3) d(g)');
PREPARE p(int) AS SELECT count(*), sum(x) FROM (SELECT a, count(*) AS x FROM t WHERE b > $1 GROUP BY a) q;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(0);
EXECUTE p(2);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT x, count(*) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q GROUP BY x ORDER BY x;
FETCH 1 FROM c;
MOVE BACKWARD 1 IN c;
FETCH ALL FROM c;
ROLLBACK;
-- a row of many, and then no more
SELECT count(*) FROM (SELECT x FROM (SELECT a, b, sum(v) AS x FROM t GROUP BY a, b) q GROUP BY x LIMIT 3) r;
-- the plan says so
EXPLAIN (COSTS OFF) SELECT x, count(*) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY x;
EXPLAIN (COSTS OFF, VERBOSE) SELECT sum(x + 1) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q;
SELECT j ->> 'Feed', j ->> 'Rows Fed', j ->> 'Groups' FROM analyze_json('SELECT x, count(*) FROM (SELECT a, count(*) AS x FROM t GROUP BY a) q GROUP BY x') j;
-- below, several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE t SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT x, count(*) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY x;
SELECT chained('SELECT x, count(*), sum(a) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY x');
SELECT chained('SELECT count(*), sum(x) FROM (SELECT s, l, count(*) AS x FROM t GROUP BY s, l) q');
SELECT chained('SELECT s, l, count(*), sum(x) FROM (SELECT s, l, a, count(*) AS x FROM t GROUP BY s, l, a) q GROUP BY s, l');
SELECT chained('SELECT a, b, count(*), sum(x), min(x), max(x), avg(x), variance(x), bit_or(x), bit_and(x), bit_xor(x), sum(y), variance(y), max(y), min(y), count(y)
	FROM (SELECT a, b, max(v) AS x, count(v) AS y FROM t GROUP BY a, b) q GROUP BY a, b', 'gpurhh.device=cpu, gpurhh.device_memory=1MB');
SELECT chained('SELECT x, count(*), sum(a) FROM (SELECT a, sum(v) AS x FROM t GROUP BY a) q GROUP BY x', 'parallel_leader_participation=off');
SELECT compare('SELECT d.g, q.* FROM generate_series(1, 3) d(g), LATERAL (SELECT x + d.g AS y, n FROM (SELECT x, count(*) AS n FROM (SELECT a, count(*) AS x FROM t GROUP BY a) i GROUP BY x) j OFFSET 0) q');
