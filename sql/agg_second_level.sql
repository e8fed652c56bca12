--
-- The second level of groups: made by the device where it has all rows of the
-- first, else by the host.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- Who made it, and whether what it refused was finished on the host.
CREATE FUNCTION made_by(query text, settings text DEFAULT NULL) RETURNS text
LANGUAGE sql AS $f$
	SELECT concat_ws(', ', j ->> 'Second Level', j ->> 'Second Level Groups' || ' groups',
					 CASE WHEN (j ->> 'Host Rows')::int8 > 0 THEN 'host rows' END)
	FROM analyze_json(query, settings) j;
$f$;

-- sums of x pass 2^63 and 2^64 within groups and between them, to both sides
CREATE TABLE t (id int PRIMARY KEY, a int, b int, c smallint, u uuid, s text, l text, x bigint, y int, z smallint,
	n numeric(15, 2), m numeric(30, 4), f float8, r real, d date, p bool, e money);
INSERT INTO t
	SELECT g, CASE WHEN g % 17 <> 0 THEN g % 13 END, CASE WHEN g % 5 <> 0 THEN g % 4 END, g % 6, md5((g % 6)::text)::uuid,
		CASE WHEN g % 11 <> 0 THEN 's' || g % 7 END, 'a longer string, number ' || g % 9,
		CASE WHEN g % 7 <> 0 THEN (CASE WHEN g % 26 < 13 THEN 1 ELSE -1 END) * (9223372036854775807 - g) END,
		CASE WHEN g % 3 <> 0 THEN (g * 7919::bigint % 4000000000 - 2000000000)::int END, g % 300 - 150,
		(g * 31 % 100000 - 50000) / 100.0, CASE WHEN g % 4 <> 0 THEN (g - 10000) * 12345678901234567890.1234 END,
		g % 100 / 8.0, g % 64 / 4.0, '2000-01-01'::date + g % 40, g % 19 <> 0, (g % 1000)::money
	FROM generate_series(1, 20000) g;
CREATE TABLE empty (LIKE t);
VACUUM ANALYZE t;
ANALYZE empty;

-- every state, combined from those of the first level
SELECT compare('SELECT a, b, count(*), count(x), sum(x), avg(x), sum(y), sum(z), avg(z), min(x), max(x), min(f), max(r), min(d) FROM t GROUP BY CUBE (a, b)');
SELECT compare('SELECT a, count(DISTINCT b), count(*), count(x), sum(x), avg(x), sum(y), sum(z), avg(z), min(x), max(x), min(f), max(r), min(d) FROM t GROUP BY a');
SELECT compare('SELECT a, c, stddev(x), var_pop(x), variance(y), stddev_pop(y), var_samp(z) FROM t GROUP BY ROLLUP (a, c)');
SELECT compare('SELECT a, count(DISTINCT y), stddev(x), var_pop(x), variance(y), stddev_pop(y), var_samp(z) FROM t GROUP BY a');
SELECT compare('SELECT c, a, sum(n), avg(n), sum(m), avg(m), sum(e), min(e), min(n) FROM t GROUP BY ROLLUP (c, a)');
SELECT compare('SELECT c, count(DISTINCT a), sum(n), avg(n), sum(m), avg(m), sum(e) FROM t GROUP BY c');
SELECT compare('SELECT a, b, sum(f), avg(f), sum(r), bool_and(p), bool_or(p), bit_and(x), bit_or(y), bit_xor(z), bit_xor(x) FROM t GROUP BY CUBE (a, b)');
SELECT compare('SELECT a, sum(f), avg(f), sum(r), bool_and(p), bool_or(p), bit_and(x), bit_or(y), bit_xor(z), bit_xor(x), count(DISTINCT l) FROM t GROUP BY a');
SELECT compare('SELECT id, s, l, u, y, x, count(DISTINCT a) FROM t WHERE id < 500 GROUP BY id', settings => 'enable_indexscan=off, enable_bitmapscan=off');
SELECT compare('SELECT id, b, l, u, y, count(*) FROM t WHERE id < 500 GROUP BY id, ROLLUP (b)');
SELECT compare('SELECT c, sum(x) FILTER (WHERE y > 0), count(*) FILTER (WHERE p), sum(m) FILTER (WHERE a > 3), count(DISTINCT y) FROM t GROUP BY c');
SELECT made_by('SELECT a, b, sum(x), variance(x), sum(m), sum(f), bit_xor(x) FROM t GROUP BY CUBE (a, b)');
SELECT made_by('SELECT a, count(DISTINCT b), sum(x), variance(x), sum(m), sum(f), bit_xor(x) FROM t GROUP BY a');
-- over DISTINCT values
SELECT compare('SELECT a, sum(DISTINCT x), avg(DISTINCT x), count(DISTINCT x) FROM t GROUP BY a');
SELECT compare('SELECT a, sum(DISTINCT y), avg(DISTINCT y), count(DISTINCT y), count(y) FROM t GROUP BY a');
SELECT compare('SELECT a, sum(DISTINCT z), avg(DISTINCT z) FROM t GROUP BY a');
SELECT compare('SELECT a, sum(DISTINCT n), avg(DISTINCT n), count(DISTINCT n) FROM t GROUP BY a');
SELECT compare('SELECT b, s, count(DISTINCT u) FROM t GROUP BY b, s');
SELECT compare('SELECT count(DISTINCT y), sum(x), avg(m), stddev(x) FROM t');
SELECT compare('SELECT count(DISTINCT u), count(*) FROM t');
SELECT compare('SELECT count(DISTINCT s), min(x) FROM t WHERE s IS NULL');
SELECT compare('SELECT b, sum(DISTINCT y), avg(DISTINCT y) FROM t WHERE y IS NULL GROUP BY b');
SELECT compare('SELECT a, b, c, z, count(DISTINCT y) FROM t GROUP BY a, b, c, z');
SELECT made_by('SELECT count(DISTINCT u), count(*) FROM t');
-- floats that are none, and sums that do not fit
CREATE TABLE floats (a int, b int, f float8);
INSERT INTO floats VALUES (1, 1, 'Infinity'), (1, 2, 1), (2, 1, '-Infinity'), (2, 2, 'Infinity'), (3, 1, 'NaN'), (3, 2, 2), (4, 1, '-0'), (4, 2, '-0'),
	(5, 1, 1e308), (5, 2, -1e308), (6, 1, NULL), (6, 2, NULL);
ANALYZE floats;
SELECT compare('SELECT a, sum(f), min(f), max(f), count(DISTINCT b) FROM floats GROUP BY a');
SELECT compare('SELECT a, b, sum(f) FROM floats WHERE a <> 5 GROUP BY GROUPING SETS ((a), (b))');
INSERT INTO floats VALUES (7, 1, 1.7e308), (7, 1, 1.7e308), (7, 2, 1);
SET enable_gpu_hashagg = on;
SELECT sqlstate_of('SELECT a, count(DISTINCT b), sum(f) FROM floats GROUP BY a');
SELECT sqlstate_of('SELECT a, b, sum(f) FROM floats GROUP BY GROUPING SETS ((a), (b))');
SELECT sqlstate_of('SELECT a, count(DISTINCT b), sum(f) FROM floats WHERE b = 1 AND a = 7 GROUP BY a');
RESET enable_gpu_hashagg;
INSERT INTO floats VALUES (7, 2, 'Infinity');
SELECT compare('SELECT a, b, sum(f) FROM floats WHERE a = 7 AND f > 1e308 AND b = 2 GROUP BY CUBE (a, b)');
-- keys of 16 bytes, keys that no set of the second level has, sets without a key
SELECT compare('SELECT u, s, l, GROUPING(l, s, u), count(*) FROM t GROUP BY ROLLUP (u, s, l)');
SELECT compare('SELECT a, b, c, u, count(*), GROUPING(u, c, b, a) FROM t GROUP BY GROUPING SETS ((a, b, c, u), (b), (c))');
SELECT compare('SELECT a, b, c, u, count(*), GROUPING(u, c, b, a) FROM t GROUP BY GROUPING SETS ((a, b, c, u), (c))');
SELECT compare('SELECT a, b, c, u, count(*) FROM t GROUP BY GROUPING SETS ((a, b), (c), (u, b), (), ())');
SELECT compare('SELECT a, b, sum(x) FROM t GROUP BY GROUPING SETS ((a, b), ())');
SELECT compare('SELECT a, b, sum(x) FROM t GROUP BY ROLLUP (a, b) HAVING sum(x) IS NULL OR GROUPING(b) = 1');
-- where the host has to: more sets than the device gets; rows that it has
SELECT compare('SELECT a, b, c, s, z % 2, y % 3, id % 5, count(*) FROM t WHERE id < 200 GROUP BY CUBE (a, b, c, s, z % 2, y % 3, id % 5)');
SELECT made_by('SELECT a, b, c, s, z % 2, y % 3, id % 5, count(*) FROM t WHERE id < 200 GROUP BY CUBE (a, b, c, s, z % 2, y % 3, id % 5)');
SELECT made_by('SELECT a, b, c, s, z % 2, y % 3, count(*) FROM t WHERE id < 200 GROUP BY CUBE (a, b, c, s, z % 2, y % 3)');
SELECT compare('SELECT a, round(stddev(f)::numeric, 9), count(DISTINCT b) FROM t GROUP BY a');
SELECT made_by('SELECT a, stddev(f), count(DISTINCT b) FROM t GROUP BY a');
-- no rows
SELECT compare('SELECT a, b, GROUPING(a, b), count(*), sum(x) FROM empty GROUP BY CUBE (a, b)');
SELECT compare('SELECT count(DISTINCT y), sum(DISTINCT y), count(*) FROM t WHERE y > 2000000100');
SELECT compare('SELECT a, count(DISTINCT x) FROM empty GROUP BY a');

-- rescans, cursors, batches of all sizes
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 6) q (g), LATERAL (SELECT a, b, count(*), sum(x) FROM t WHERE c = q.g GROUP BY CUBE (a, b)) w');
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 6) q (g), LATERAL (SELECT b, count(DISTINCT y), sum(x) FROM t WHERE c = q.g GROUP BY b) w');
SELECT compare('SELECT a, b, c, count(*), sum(x) FROM t GROUP BY CUBE (a, b, c)', settings => 'gpurhh.batch_rows=64');
SELECT compare('SELECT a, b, count(DISTINCT y), sum(x) FROM t GROUP BY a, b', settings => 'gpurhh.batch_rows=64');
SET enable_gpu_hashagg = on;
BEGIN;
DECLARE one CURSOR FOR SELECT id, a, count(*) FROM t GROUP BY ROLLUP (id, a);
DECLARE two CURSOR FOR SELECT y, count(DISTINCT a) FROM t GROUP BY y;
MOVE 100 FROM one;
MOVE 300 FROM two;
MOVE 19950 FROM one;
MOVE ALL FROM one;
MOVE ALL FROM two;
COMMIT;
BEGIN;
DECLARE one CURSOR FOR SELECT id, a, count(*) FROM t GROUP BY ROLLUP (id, a);
MOVE 100 FROM one;
ROLLBACK;
RESET enable_gpu_hashagg;

-- parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT compare('SELECT a, b, c, count(*), sum(x) FROM t GROUP BY CUBE (a, b, c)');
SELECT compare('SELECT a, b, c, count(*), sum(x) FROM t GROUP BY CUBE (a, b, c)', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT a, count(DISTINCT y), sum(x), avg(m) FROM t GROUP BY a');
SELECT compare('SELECT a, count(DISTINCT y), sum(x), avg(m) FROM t GROUP BY a', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT a, b, count(*) FROM empty GROUP BY CUBE (a, b)', settings => 'parallel_leader_participation=off');
SELECT made_by('SELECT a, count(DISTINCT y), sum(x), avg(m) FROM t GROUP BY a');
SELECT made_by('SELECT a, count(DISTINCT y), sum(x), avg(m) FROM t GROUP BY a', 'parallel_leader_participation=off');
RESET ALL;
:session

-- many groups of both levels; what the device refuses of the first, or of the second
CREATE TABLE many AS SELECT g * 7919 % 40000 AS k, g % 3000 AS v, g AS w FROM generate_series(1, 120000) g;
ANALYZE many;
SELECT compare('SELECT k, count(DISTINCT v), sum(w), count(*) FROM many GROUP BY k');
SELECT made_by('SELECT k, count(DISTINCT v), sum(w), count(*) FROM many GROUP BY k');
SELECT compare('SELECT k, v, sum(w), count(*) FROM many GROUP BY CUBE (k, v)');
SELECT made_by('SELECT k, v, sum(w), count(*) FROM many GROUP BY CUBE (k, v)');
SELECT compare('SELECT k, count(DISTINCT v), sum(w) FROM many GROUP BY k', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT split_part(made_by('SELECT k, count(DISTINCT v), sum(w) FROM many GROUP BY k', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95'), ',', 1);
-- (where that begins depends on the number of threads)
CREATE FUNCTION cube_of(size int) RETURNS text
LANGUAGE sql AS $f$
	SELECT format('SELECT g %% %s AS a, g %% 3 AS b, g %% 5 AS c, g %% 2 AS d, count(*), sum(g) FROM generate_series(1, 20000) g GROUP BY CUBE (1, 2, 3, 4)', size);
$f$;
SELECT DISTINCT left(compare(cube_of(size), settings => 'gpurhh.device=cpu, gpurhh.device_memory=1MB'), 2) FROM unnest('{340,980,1220,1360,4001}'::int[]) size;
SELECT count(*) FILTER (WHERE made_by LIKE 'device%host rows') > 0, count(*) FILTER (WHERE made_by = 'host, host rows') > 0
	FROM (SELECT generate_series(900, 1300, 20) UNION ALL SELECT 4001) s (size), made_by(cube_of(size), 'gpurhh.device=cpu, gpurhh.device_memory=1MB');
