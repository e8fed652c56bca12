--
-- Strings below a second level of groups, and the dictionary's memory: where
-- strings are only counted; otherwise the planner leaves the query to core unless it
-- expects room for them (where it is wrong: text_levels.sql).
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE longs (s text, s2 text, c char(40), k int, id int);
INSERT INTO longs SELECT md5((g % 4000)::text), CASE WHEN g % 9 > 0 THEN md5((g % 13)::text) END, md5((g % 3000)::text), g % 7, g FROM generate_series(1, 12000) g;
INSERT INTO longs SELECT NULL, md5(g::text), NULL, g % 7, g FROM generate_series(1, 100) g;
INSERT INTO longs SELECT 'short', 'short', 'short', g % 9, g FROM generate_series(1, 100) g;
ANALYZE longs;

CREATE FUNCTION figures(query text, processes int DEFAULT 1, settings text DEFAULT 'work_mem=64kB') RETURNS text
LANGUAGE sql AS $f$
	SELECT format('second level: %s, strings: %s, within the limit: %s, deferred: %s, passes: %s, rows: %s',
				  j ->> 'Second Level', (j ->> 'Dictionary Strings')::int > 0,
				  (j ->> 'Dictionary Memory')::int <= 64 * 2 * processes,
				  (j ->> 'Deferred Rows')::int > 0, (j ->> 'Passes')::int > 0, j ->> 'Rows Fed')
	FROM analyze_json(query, settings) AS j;
$f$;

-- only counted
SELECT compare('SELECT k, count(DISTINCT s), count(s), count(*), sum(id) FROM longs GROUP BY k', settings => 'work_mem=64kB');
SELECT figures('SELECT k, count(DISTINCT s), count(s), count(*), sum(id) FROM longs GROUP BY k');
SELECT figures('SELECT k, count(DISTINCT s), count(s), count(*), sum(id) FROM longs GROUP BY k', 1, 'work_mem=64MB');
SELECT compare('SELECT count(DISTINCT s), count(*), sum(id) FROM longs', settings => 'work_mem=64kB');
SELECT figures('SELECT count(DISTINCT s), count(*), sum(id) FROM longs');
SELECT compare('SELECT k, count(DISTINCT c), variance(id) FROM longs GROUP BY k', settings => 'work_mem=64kB');
SELECT compare('SELECT k, count(DISTINCT s) FILTER (WHERE id % 3 > 0), min(id) FROM longs GROUP BY k', settings => 'work_mem=64kB, gpurhh.batch_rows=64');
SELECT compare('SELECT k, id % 1000, count(DISTINCT s) FROM longs GROUP BY k, id % 1000', settings => 'work_mem=64kB');
SELECT compare('SELECT k, count(DISTINCT s) FROM longs GROUP BY k', settings => 'work_mem=64kB, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT q.g, w.* FROM generate_series(0, 3) q (g), LATERAL (SELECT k, count(DISTINCT s), sum(id) FROM longs WHERE id % 2 = q.g % 2 GROUP BY k) w', settings => 'work_mem=64kB');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT compare('SELECT k, count(DISTINCT s), count(*), sum(id) FROM longs GROUP BY k', settings => 'work_mem=64kB');
SELECT compare('SELECT k, count(DISTINCT s), count(*), sum(id) FROM longs GROUP BY k', settings => 'work_mem=64kB, parallel_leader_participation=off');
SELECT compare('SELECT k, count(DISTINCT s || id), count(*), sum(id) FROM longs GROUP BY k', settings => 'work_mem=64kB');
SELECT compare('SELECT k, count(DISTINCT s || id), count(*), sum(id) FROM longs GROUP BY k', settings => 'work_mem=64kB, parallel_leader_participation=off');
SELECT figures('SELECT k, count(DISTINCT s || id), count(*), sum(id) FROM longs GROUP BY k', 3);
RESET ALL;
:session
SET enable_gpu_hashagg = on;

-- with room for all
SELECT compare('SELECT s, k, count(*) FROM longs GROUP BY ROLLUP (s, k)');
SELECT compare('SELECT s2, count(DISTINCT s) FROM longs GROUP BY s2');
SELECT compare('SELECT k, count(DISTINCT s), count(DISTINCT c) FROM longs GROUP BY k');
SELECT compare('SELECT k, id % 3, count(DISTINCT s) FROM longs GROUP BY CUBE (k, id % 3)');
SET work_mem = '64kB';
SELECT q.query, regexp_replace(r.reason, '\d+ kB', 'N kB', 'g') FROM (VALUES
	('SELECT s, k, count(*) FROM longs GROUP BY ROLLUP (s, k)'), ('SELECT s2, count(DISTINCT s) FROM longs GROUP BY s2'),
	('SELECT k, count(DISTINCT s), count(DISTINCT c) FROM longs GROUP BY k'), ('SELECT k, id % 3, count(DISTINCT s) FROM longs GROUP BY CUBE (k, id % 3)'),
	('SELECT k, count(DISTINCT s) FROM longs GROUP BY k'), ('SELECT s2, k, count(*) FROM longs GROUP BY ROLLUP (s2, k)')) q (query)
	LEFT JOIN LATERAL gpurhh_refusals(q.query) r ON true;
RESET work_mem;
-- where the planner was wrong, it is an answer still
CREATE FUNCTION strings_of(int) RETURNS SETOF text LANGUAGE sql ROWS 10 AS 'SELECT md5(g::text) FROM generate_series(1, $1) g';
SELECT compare('SELECT s, length(s) % 2, count(*) FROM strings_of(4000) s GROUP BY ROLLUP (1, 2)', settings => 'work_mem=64kB');
SELECT compare('SELECT left(s, 1), count(DISTINCT s), count(DISTINCT s || s) FROM strings_of(4000) s GROUP BY 1', settings => 'work_mem=64kB');
-- the strings that are counted are shown, too; the planner knows of few
CREATE TABLE grown WITH (autovacuum_enabled = off) AS SELECT repeat('same ', 5) AS s, g % 5 AS a FROM generate_series(1, 1000) g;
ANALYZE grown;
INSERT INTO grown SELECT md5(g::text) || md5((g + 1)::text), g % 5 FROM generate_series(1, 3000) g;
SELECT compare('SELECT s, count(DISTINCT s) FROM grown GROUP BY s', settings => 'work_mem=64kB, hash_mem_multiplier=1');
