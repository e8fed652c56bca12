--
-- Strings that the dictionary's memory does not hold: their rows are kept in
-- files, and grouped in passes of their own.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE longs (k text, k2 text, id int, v int);
INSERT INTO longs SELECT md5((g % 5000)::text), CASE WHEN g % 9 > 0 THEN md5((g % 13)::text) END, g % 5000, g FROM generate_series(1, 13000) g;
INSERT INTO longs SELECT NULL, md5(g::text), NULL, g FROM generate_series(1, 100) g;
INSERT INTO longs SELECT 'short', 'short', g, g FROM generate_series(1, 100) g;
ANALYZE longs;

-- What EXPLAIN ANALYZE shows: strings in memory, and rows that were deferred.
CREATE FUNCTION figures(query text, processes int DEFAULT 1, settings text DEFAULT 'work_mem=64kB') RETURNS text
LANGUAGE sql AS $f$
	SELECT format('strings: %s, within the limit: %s, deferred: %s, passes: %s, rows: %s',
				  (j ->> 'Dictionary Strings')::int > 0,
				  (j ->> 'Dictionary Memory')::int <= 64 * 2 * processes,
				  (j ->> 'Deferred Rows')::int > 0, (j ->> 'Passes')::int > 0, j ->> 'Rows Fed')
	FROM analyze_json(query, settings) AS j;
$f$;
SELECT figures('SELECT k, count(*), sum(v) FROM longs GROUP BY k');
SELECT figures('SELECT k, count(*), sum(v) FROM longs GROUP BY k', 1, 'work_mem=64MB');
SELECT figures('SELECT k2, count(*), sum(v) FROM longs GROUP BY k2');

SELECT compare('SELECT k, count(*), sum(v), min(v), max(v), avg(v) FROM longs GROUP BY k', settings => 'work_mem=64kB');
SELECT compare('SELECT k, k2, count(*), sum(v) FROM longs GROUP BY k, k2', settings => 'work_mem=64kB');
SELECT compare('SELECT k2, k, id % 2, count(*) FILTER (WHERE v > 7), sum(v) FROM longs GROUP BY k2, k, id % 2', settings => 'work_mem=64kB');
SELECT compare('SELECT upper(k), count(*), sum(v) FROM longs WHERE v % 3 = 0 GROUP BY upper(k)', settings => 'work_mem=64kB');
SELECT compare('SELECT k, count(*) FROM longs GROUP BY k HAVING count(*) <> 2', settings => 'work_mem=64kB');
SELECT compare('SELECT k || v, count(*) FROM longs GROUP BY k || v', settings => 'work_mem=64kB');
-- batches of few rows, of which all may be deferred; rows that devices refuse
SELECT compare('SELECT k, count(*), sum(v) FROM longs GROUP BY k', settings => 'work_mem=64kB, gpurhh.batch_rows=64');
SELECT compare('SELECT k, count(*), sum(v) FROM longs GROUP BY k', settings => 'work_mem=64kB, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT k, count(*), sum(v) FROM longs GROUP BY k', settings => 'work_mem=64kB, gpurhh.device_memory=1MB');
-- strings that are longer than the limit
CREATE TABLE huge AS SELECT repeat(md5((g % 20)::text), 5000) AS h, g FROM generate_series(1, 60) g;
SELECT compare('SELECT md5(h), count(*), sum(g) FROM huge GROUP BY h', settings => 'work_mem=64kB');
SELECT compare('SELECT md5(h), count(*), sum(g) FROM huge GROUP BY h, h || ''x''', settings => 'work_mem=64kB');
-- what the keys determine
CREATE TABLE many_named (id int PRIMARY KEY, name text);
INSERT INTO many_named SELECT g, repeat('name ', 5) || g FROM generate_series(1, 5000) g;
SELECT compare('SELECT n.id, name, count(*), sum(v) FROM many_named n JOIN longs USING (id) GROUP BY n.id', settings => 'work_mem=64kB');

-- partitions, of different layouts
CREATE TABLE parted (k text, id int, v int) PARTITION BY LIST (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted_1 (v int, dropped text, id int, k text);
ALTER TABLE parted_1 DROP COLUMN dropped;
ALTER TABLE parted ATTACH PARTITION parted_1 FOR VALUES IN (1);
INSERT INTO parted SELECT k, v % 2, v FROM longs;
SELECT compare('SELECT k, count(*), sum(v) FROM parted GROUP BY k', settings => 'work_mem=64kB');
SELECT compare('SELECT k, count(*) FROM (SELECT k FROM longs UNION ALL SELECT upper(k) FROM longs UNION ALL SELECT name FROM many_named) x GROUP BY k', settings => 'work_mem=64kB');

-- Two levels of groups (more: text_distinct.sql, text_levels.sql).
SELECT compare('SELECT k2, count(DISTINCT k), sum(v) FROM longs GROUP BY k2', settings => 'work_mem=4MB');
SELECT compare('SELECT k, k2, id % 3, count(*), sum(v), GROUPING(k, k2) FROM longs GROUP BY CUBE (k, k2, id % 3)', settings => 'work_mem=4MB');
SELECT compare('SELECT DISTINCT k FROM longs', settings => 'work_mem=64kB');
SELECT compare('SELECT count(DISTINCT k) FROM longs', settings => 'work_mem=64kB');

-- Rescans, with other parameters, with passes left over.
SET work_mem = '64kB';
SELECT compare('SELECT x.i, y.* FROM generate_series(1, 3) AS x (i), LATERAL (SELECT k, count(*), sum(v * x.i) FROM longs WHERE v % 3 < x.i GROUP BY k) y');
SELECT compare('SELECT x.i, (SELECT count(*) FROM (SELECT k FROM longs WHERE id % 3 <> x.i GROUP BY k) y) FROM generate_series(1, 4) AS x (i)');
SET enable_gpu_hashagg = on;
SELECT count(*) FROM (SELECT k, count(*) FROM longs GROUP BY k LIMIT 4000) x;
-- A cursor that is left open, and goes on; two at once; closed half-read.
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM longs GROUP BY k;
MOVE 3000 c;
DECLARE d CURSOR FOR SELECT k, count(*) FROM longs GROUP BY k;
MOVE 4500 d;
MOVE 1500 c;
SELECT count(*) FROM (SELECT k FROM longs GROUP BY k) x;
MOVE ALL c;
CLOSE d;
MOVE ALL c;
COMMIT;
-- a cursor that outlives its transaction
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT k, count(*) FROM longs GROUP BY k;
MOVE 2500 h;
COMMIT;
MOVE ALL h;
CLOSE h;
-- An error in the middle of the input, one while groups come, ROLLBACK.
SELECT sqlstate_of('SELECT k, sum(1 / (12999 - v)) FROM longs GROUP BY k');
SELECT sqlstate_of('SELECT k, 1 / (count(*) - 2) FROM longs GROUP BY k');
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) FROM longs GROUP BY k;
MOVE 4000 c;
SAVEPOINT s;
SELECT 1 / 0;
ROLLBACK TO s;
MOVE 500 c;
ROLLBACK;
SELECT count(*) FROM (SELECT k FROM longs GROUP BY k) x;
RESET enable_gpu_hashagg;

-- Parallel: one dictionary, files of all participants; with the leader alone
-- emitting, and with all of them; without the leader; rescans.
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_tuple_cost = 10;
SELECT figures('SELECT k || k || k || k || k, count(*), sum(v) FROM longs GROUP BY 1', 4);
SELECT compare('SELECT k, count(*), sum(v) FROM longs GROUP BY k');
SELECT compare('SELECT k || k || k || k || k, count(*), sum(v) FROM longs GROUP BY 1');
SELECT compare('SELECT k, k2, count(*), sum(v) FROM longs GROUP BY k, k2');
SELECT compare('SELECT k, k2, count(*), sum(v) FROM longs GROUP BY k, k2', settings => 'work_mem=32MB');
SELECT compare('SELECT md5(h), count(*), sum(g) FROM huge GROUP BY h');
SELECT compare('SELECT count(*), min(k), max(k), sum(n), sum(s) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM longs GROUP BY k) x');
SELECT compare('SELECT count(*), min(k), max(k), sum(n), sum(s) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM longs GROUP BY k) x', settings => 'work_mem=32MB');
SELECT compare('SELECT count(*), min(k), max(k2), sum(n), sum(s) FROM (SELECT upper(k) AS k, k2, count(*) AS n, sum(v) AS s FROM longs GROUP BY upper(k), k2) x');
SELECT compare('SELECT k, count(*), sum(v) FROM longs GROUP BY k', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT count(*), min(k), max(k), sum(n), sum(s) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM longs GROUP BY k) x', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT count(*), min(k), max(k), sum(n), sum(s) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM longs GROUP BY k) x', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT count(*), min(k), max(k), sum(n), sum(s) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM longs GROUP BY k) x', settings => 'gpurhh.batch_rows=64');
SELECT compare('SELECT count(*), min(k), max(k), sum(n), sum(s) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM longs GROUP BY k) x', settings => 'max_parallel_workers=0');
SELECT compare('SELECT k2, count(DISTINCT k), sum(v) FROM longs GROUP BY k2', settings => 'work_mem=4MB');
SELECT compare('SELECT k, k2, count(*), sum(v) FROM longs GROUP BY ROLLUP (k2, k)', settings => 'work_mem=4MB');
SELECT compare('SELECT x.i, y.* FROM generate_series(1, 3) AS x (i) LEFT JOIN (SELECT count(*) AS c, k2, sum(n) FROM (SELECT k, k2, count(*) AS n FROM longs GROUP BY k, k2) z GROUP BY k2) y ON y.c % 3 <> x.i');
