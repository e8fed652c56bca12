--
-- Names as grouping columns; min() and max() of enums, whose order only core
-- knows: each value is a group, and the second level chooses (levels.c).
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- Lengths up to a name's own, around 16, where the dictionary begins.
CREATE TABLE names (n name, k int, before text, after name);
INSERT INTO names
	SELECT CASE WHEN g % 17 <> 0 THEN (repeat('x', g % 9 * 8) || g % 5)::name END, g % 7, repeat('b', g % 40), CASE WHEN g % 3 = 0 THEN 'after' || g % 2 END
	FROM generate_series(1, 3000) g;
INSERT INTO names VALUES ('', 1, '', 'ä'), (repeat('y', 63), 1, NULL, NULL), (repeat('ä', 31), 2, NULL, ''), (repeat('z', 15), 3, 'b', 'ä');
ALTER TABLE names ADD added name DEFAULT 'of a column that was added';
INSERT INTO names SELECT n, k, NULL, after, NULL FROM names WHERE k = 1;
VACUUM ANALYZE names;
SELECT compare('SELECT n, count(*), count(after), sum(k) FROM names GROUP BY n');
SELECT compare('SELECT n, after, added, k, count(n) FROM names GROUP BY n, after, added, k');
SELECT compare('SELECT n, count(*) FROM names WHERE k < 3 AND before IS NOT NULL GROUP BY n HAVING n <> ''''');
SELECT compare('SELECT k, count(DISTINCT n), count(DISTINCT n) FILTER (WHERE n < ''x'') FROM names GROUP BY k', nodes => 0);
SELECT compare('SELECT k, count(DISTINCT n) FROM names GROUP BY k');
SELECT compare('SELECT DISTINCT after FROM names');
SELECT compare('SELECT n, after, count(*) FROM names GROUP BY CUBE (n, after)');
SELECT compare('SELECT n, length(n), octet_length(n::text), n::text, count(*) FROM names GROUP BY n');
SELECT compare('SELECT k, min(n), max(after), min(n COLLATE "POSIX") FROM names GROUP BY k');
SELECT compare('SELECT n, count(*) FROM names GROUP BY n', settings => 'work_mem=64kB,hash_mem_multiplier=1,gpurhh.batch_rows=64');
SELECT regexp_replace(compare('SELECT relname, count(*) FROM pg_class GROUP BY relname'), '\d+', 'N');
SELECT regexp_replace(compare('SELECT attname, atttypid, count(*) FROM pg_attribute GROUP BY 1, 2', settings => 'work_mem=64kB,hash_mem_multiplier=1'), '\d+', 'N');
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT n, added, count(*) FROM names GROUP BY n, added;
RESET enable_gpu_hashagg;

-- Enums: values in the order in which they were made, and others between them,
-- whose numbers are not in order.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'worst' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok';
ALTER TYPE mood ADD VALUE 'better' AFTER 'ok';
CREATE TYPE other AS ENUM ('one');
CREATE DOMAIN d_mood AS mood CHECK (VALUE <> 'worst');
CREATE TABLE moods (k int, m mood, d d_mood, o other, n int);
INSERT INTO moods
	SELECT g % 300, CASE WHEN g % 5 <> 0 THEN (enum_range(NULL::mood))[1 + g * 7 / 300 % 6] END, (enum_range('sad'::mood, NULL))[1 + g / 300 % 5],
		CASE WHEN g % 300 = 5 THEN 'one'::other END, g
	FROM generate_series(1, 5000) g;
VACUUM ANALYZE moods;
SELECT compare('SELECT k, min(m), max(m), count(*) FROM moods GROUP BY k');
SELECT compare('SELECT k, min(m), max(d::mood), min(d::mood), max(o), sum(n), count(m) FROM moods GROUP BY k');
SELECT compare('SELECT m, min(m), max(m), min(d::mood) FROM moods GROUP BY m');
SELECT compare('SELECT m, max(d::mood) FILTER (WHERE n % 2 = 0), max(DISTINCT d::mood), min(CASE WHEN k > 2 THEN m END) FROM moods GROUP BY m');
SELECT compare('SELECT min(m), max(d::mood), max(o) FROM moods');
SELECT compare('SELECT min(m), max(d::mood), max(o), count(*) FROM moods WHERE n < 0');
SELECT compare('SELECT k % 10, min(m), max(d::mood), min(m::text COLLATE "C") FROM moods GROUP BY 1');
SELECT compare('SELECT k % 10, o, min(m), max(d::mood), count(*) FROM moods GROUP BY ROLLUP (1, o)');
SELECT compare('SELECT k, max(m) FROM moods GROUP BY k HAVING max(m) > ''ok'' AND min(d::mood) = ''sad''');
SELECT compare('SELECT k, max(m)::text, max(m) = ''happy'' FROM moods GROUP BY k');
SELECT compare('SELECT g, (SELECT max(m) FROM moods WHERE k = g) FROM generate_series(0, 8) g');
SELECT compare('SELECT k, min(m), max(d::mood), count(*) FROM moods GROUP BY k', settings => 'work_mem=64kB,hash_mem_multiplier=1,gpurhh.max_probe_buckets=1,gpurhh.batch_rows=64');
-- also for the plans below, whatever the server has
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT compare('SELECT k, min(m), max(d::mood), count(*) FROM moods GROUP BY k');

-- A plan does not know the order: a value that is added later is in its place.
PREPARE greatest AS SELECT k % 2, min(m), max(m) FROM moods WHERE k < 10 GROUP BY 1 ORDER BY 1;
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
EXECUTE greatest;
ALTER TYPE mood ADD VALUE 'worse' BEFORE 'worst';
ALTER TYPE mood ADD VALUE 'best' AFTER 'happy';
INSERT INTO moods VALUES (2, 'best'), (3, 'worse');
EXPLAIN (COSTS OFF) EXECUTE greatest;
EXECUTE greatest;
RESET enable_gpu_hashagg;

-- Two types, each with values whose OIDs are not in order: each has a memory of its own.
CREATE TYPE tone AS ENUM ('low', 'high');
ALTER TYPE tone ADD VALUE 'lowest' BEFORE 'low';
CREATE TABLE tones AS
	SELECT k, m, (ARRAY['low', 'high', 'lowest', NULL])[1 + k % 4]::tone AS t FROM moods;
SELECT compare('SELECT min(m), max(t), min(t) FROM tones');
SELECT compare('SELECT m, t, min(t), max(m) FROM tones GROUP BY CUBE (m, t)');
