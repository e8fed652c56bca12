--
-- Strings that the dictionary's memory does not hold, below levels of groups that
-- show them or choose among them: those levels keep them, and use files too.  The
-- planner knows of a few strings only, or it would leave the query to core.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- statistics of what was there before
CREATE TABLE grown (s text, s2 text, c char(40), k int, id int) WITH (autovacuum_enabled = off);
INSERT INTO grown SELECT repeat('same ', 5), NULL, 'same', g % 5, g FROM generate_series(1, 100) g;
ALTER TABLE grown ALTER id SET (n_distinct = 5);
ANALYZE grown;
INSERT INTO grown SELECT md5((g % 4000)::text), CASE WHEN g % 9 > 0 THEN md5((g % 1500)::text) END, md5((g % 3000)::text), g % 7, g FROM generate_series(1, 9000) g;
INSERT INTO grown SELECT NULL, md5(g::text), NULL, g % 7, g FROM generate_series(1, 100) g;
INSERT INTO grown SELECT 'short', 'short', 'short', g % 9, g FROM generate_series(1, 100) g;
INSERT INTO grown SELECT repeat(md5((g % 5)::text), 400), md5(g::text), md5(g::text), g % 9, g FROM generate_series(1, 30) g;
CREATE FUNCTION strings_of(int) RETURNS SETOF text LANGUAGE sql ROWS 10 AS 'SELECT md5(g::text) FROM generate_series(1, $1) g';

-- What EXPLAIN ANALYZE shows: memory in units of the limit of each process.
CREATE FUNCTION figures(query text, processes int DEFAULT 1, settings text DEFAULT 'work_mem=64kB') RETURNS text
LANGUAGE sql AS $f$
	SELECT format('second level: %s, strings: %s, within the limit: %s, deferred: %s, spilled: %s',
				  j ->> 'Second Level', (j ->> 'Dictionary Strings')::int > 0,
				  (j ->> 'Dictionary Memory')::int <= 128 * processes,
				  (j ->> 'Deferred Rows')::int > 0, (j ->> 'Spilled Records')::int > 0)
	FROM analyze_json(query, settings) AS j;
$f$;
SELECT figures('SELECT s, length(s) % 2, count(*) FROM strings_of(4000) s GROUP BY ROLLUP (1, 2)');
SELECT figures('SELECT left(s, 1), count(DISTINCT s), count(DISTINCT s || s) FROM strings_of(4000) s GROUP BY 1');
SELECT figures('SELECT s, s2, k, count(*) FROM grown GROUP BY CUBE (s, s2, k)');
SELECT figures('SELECT s, s2, k, count(*) FROM grown GROUP BY CUBE (s, s2, k)', 1, 'work_mem=64MB');
SELECT figures('SELECT s2, count(DISTINCT s) FROM grown GROUP BY s2');
SELECT figures('SELECT id, min(s COLLATE "C"), max(s COLLATE "C") FROM grown GROUP BY id');
SELECT figures('SELECT k, min(s COLLATE "C") FROM grown GROUP BY k');

SET work_mem = '64kB';
-- sets
SELECT compare('SELECT s, k, count(*), sum(id), min(id), max(id), avg(id), GROUPING(s, k) FROM grown GROUP BY ROLLUP (s, k)');
SELECT compare('SELECT s, s2, k, count(*), variance(id) FROM grown GROUP BY CUBE (s, s2, k)');
SELECT compare('SELECT s, c, k, count(*), sum(id::float8) FROM grown GROUP BY GROUPING SETS ((s, c), (c), (s), (k), ())');
SELECT compare('SELECT s, length(s) % 2, count(*) FROM strings_of(4000) s GROUP BY ROLLUP (1, 2) HAVING s IS NULL OR s > ''8''');
-- DISTINCT beside strings that are shown
SELECT compare('SELECT s2, count(DISTINCT s), count(*), sum(id) FROM grown GROUP BY s2');
SELECT compare('SELECT s, count(DISTINCT s) FROM grown GROUP BY s', settings => 'hash_mem_multiplier=1');
SELECT compare('SELECT c, s, sum(DISTINCT k), count(DISTINCT k) FROM grown GROUP BY c, s');
-- a third level, with strings and without
SELECT compare('SELECT k, count(DISTINCT s), count(DISTINCT c), sum(id) FROM grown GROUP BY k');
SELECT compare('SELECT s2, count(DISTINCT s), count(DISTINCT c), sum(id) FROM grown GROUP BY s2');
SELECT compare('SELECT s2, k, count(DISTINCT s), sum(DISTINCT id) FROM grown GROUP BY ROLLUP (s2, k)');
SELECT compare('SELECT count(DISTINCT s), count(DISTINCT c), sum(DISTINCT id), count(*) FROM grown');
-- minima and maxima
SELECT compare('SELECT k, min(s COLLATE "C"), max(s COLLATE "C"), count(*), sum(id) FROM grown GROUP BY k');
SELECT compare('SELECT id, min(s COLLATE "C"), max(s COLLATE "C"), max(s2 COLLATE "C"), count(*) FROM grown GROUP BY id');
SELECT compare('SELECT s, min(s2 COLLATE "C"), max(c COLLATE "C"), count(*) FROM grown GROUP BY s');
SELECT compare('SELECT s, c, max(s2 COLLATE "C") FROM grown GROUP BY s, c', settings => 'gpurhh.batch_rows=64');
SELECT compare('SELECT min(s COLLATE "C"), max(c COLLATE "C"), count(*) FROM (SELECT * FROM grown ORDER BY s DESC) x');
-- those of a group become longer, until they fit no longer
CREATE TABLE growing (k int, s text) WITH (autovacuum_enabled = off);
INSERT INTO growing SELECT g % 300, repeat(chr(32 + g / 300), 8 * (1 + g / 300)) || g FROM generate_series(1, 9000) g;
SELECT compare('SELECT k, max(s COLLATE "C"), count(*) FROM growing GROUP BY k', settings => 'work_mem=64kB, hash_mem_multiplier=1');
SELECT compare('SELECT md5(max(s COLLATE "C")), md5(min(s COLLATE "C")) FROM (SELECT repeat(md5(g::text), g) AS s FROM generate_series(1, 300) g) x', settings => 'hash_mem_multiplier=1');
-- what the keys determine
CREATE TABLE named (id int PRIMARY KEY, name text) WITH (autovacuum_enabled = off);
INSERT INTO named SELECT g, repeat('name ', 5) || g % 2 FROM generate_series(1, 100) g;
ANALYZE named;
INSERT INTO named SELECT g, repeat('name ', 5) || g FROM generate_series(101, 5000) g;
SELECT compare('SELECT n.id, name, count(*), count(DISTINCT k) FROM named n JOIN grown USING (id) GROUP BY n.id');
SELECT compare('SELECT n.id, name, count(DISTINCT s), count(DISTINCT k) FROM named n JOIN grown USING (id) GROUP BY n.id');
SELECT compare('SELECT n.id, name, min(s COLLATE "C") FROM named n JOIN (SELECT g AS id, md5(g::text) AS s FROM strings_of(1), generate_series(1, 3000) g) x USING (id) GROUP BY n.id');
-- rescans, and a cursor that is left
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 2) q (g), LATERAL (SELECT s, k, count(*), sum(id) FROM grown WHERE id % 3 <> q.g GROUP BY ROLLUP (s, k)) w');
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 2) q (g), LATERAL (SELECT s, min(s2 COLLATE "C") FROM grown WHERE id % 3 <> q.g GROUP BY s) w');
SET enable_gpu_hashagg = on;
BEGIN;
DECLARE c CURSOR FOR SELECT s, s2, k, count(*) FROM grown GROUP BY CUBE (s, s2, k);
MOVE 20000 c;
CLOSE c;
COMMIT;
-- an error in the input, and one while groups come
SELECT sqlstate_of('SELECT s, k, sum(1 / (8999 - id)) FROM grown GROUP BY ROLLUP (s, k)');
SELECT sqlstate_of('SELECT s, k, 1 / (count(*) - 9330) FROM grown GROUP BY ROLLUP (s, k)');
RESET enable_gpu_hashagg;
-- parallel plans
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT figures('SELECT s, s || id, k, count(*) FROM grown GROUP BY ROLLUP (s, s || id, k)', 3);
SELECT compare('SELECT s, s || id, k, count(*), sum(id) FROM grown GROUP BY ROLLUP (s, s || id, k)');
SELECT compare('SELECT s, s || id, k, count(*), sum(id) FROM grown GROUP BY ROLLUP (s, s || id, k)', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT k, count(DISTINCT s || id), count(DISTINCT c), sum(id) FROM grown GROUP BY k');
SELECT figures('SELECT id, min(c || id::text COLLATE "C"), max(s || s COLLATE "C") FROM grown GROUP BY id', 3);
SELECT compare('SELECT id, min(c || id::text COLLATE "C"), max(s || s COLLATE "C"), count(*) FROM grown GROUP BY id');
SELECT compare('SELECT s || id, min(c COLLATE "C"), max(s COLLATE "C"), count(*) FROM grown GROUP BY 1', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 2) q (g) LEFT JOIN (SELECT k, min(c || id::text COLLATE "C") AS m FROM grown GROUP BY k) w ON w.k % 3 <> q.g');
