--
-- gpurhh.read_pages: the device reads pages by itself.
--
-- It does so only if all sessions share a service (shared_preload_libraries), so the
-- outputs do not say how many pages it has read, but whether it has as it should.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_gpu_hashjoin = on;
SET gpurhh.read_pages = on;

-- compare(), and how many pages the device has read, as expected: "some", "all" (none has
-- been sent back), "back" (some have), "none"
CREATE FUNCTION paged(query text, expected text, settings text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $f$
DECLARE
	result text := compare(query, settings => concat_ws(',', 'enable_gpu_hashjoin=on', settings));
	node jsonb := analyze_json(query, concat_ws(',', 'enable_gpu_hashjoin=on', settings), 'GpuHashAgg');
	n int := coalesce((node ->> 'Device Pages')::int, 0);
	back int := coalesce((node ->> 'Device Pages Sent Back')::int, 0);
	shared bool := current_setting('shared_preload_libraries') ~ 'gpurhh';
	got text := CASE WHEN n = 0 THEN 'none' WHEN back = 0 THEN 'all' WHEN back < n THEN 'back' ELSE 'all back' END;
BEGIN
	IF NOT shared AND n = 0 OR got = expected OR expected = 'some' AND n > 0 THEN
		RETURN result || ', ' || expected;
	END IF;
	RETURN format('%s, %s of %s pages back, expected: %s', result, back, n, expected);
END $f$;

-- columns of all types that a device reads, NULLs, and others between them
CREATE TABLE t (
	k int4, filler text, v int4 NOT NULL, small int2, large int8, big numeric(14, 2), s varchar(20), d date, ts timestamp,
	f float8, b bool, u uuid, c "char", n numeric, r float4, later int4);
INSERT INTO t SELECT g % 50, CASE WHEN g % 7 > 0 THEN repeat('x', g % 60) END, g, CASE WHEN g % 5 > 0 THEN g % 300 END,
	CASE WHEN g % 3 > 0 THEN g * 5000000001 END, CASE WHEN g % 4 > 0 THEN (g - 9000) / 8.0 END, 's' || g % 10,
	date '2020-01-01' + g % 40, timestamp '2020-01-01' + g % 20 * interval '1 hour', g % 11 / 4.0,
	CASE WHEN g % 6 > 0 THEN g % 2 = 0 END, md5((g % 30)::text)::uuid, chr(65 + g % 9)::"char", g / 3.0, g % 13 / 4.0, g % 17
	FROM generate_series(1, 20000) g;
CREATE TABLE d AS SELECT g AS k, g::int2 AS small, g::int8 AS large, g * 2 AS x, (g / 2.0)::numeric(9, 2) AS p FROM generate_series(1, 40) g;
VACUUM ANALYZE t, d;

SELECT paged('SELECT k, count(*), sum(v), sum(small), sum(large), sum(big) FROM t GROUP BY k', 'all');
SELECT paged('SELECT small, count(large), min(v), max(large), sum(later) FROM t GROUP BY small', 'all');
SELECT paged('SELECT big, count(*) FROM t GROUP BY big', 'all');
SELECT paged('SELECT d, ts, count(*), min(v) FROM t GROUP BY d, ts', 'all');
SELECT paged('SELECT b, u, count(*), sum(v) FROM t GROUP BY b, u', 'all');
SELECT paged('SELECT c, count(b), bool_and(b), avg(large) FROM t GROUP BY c', 'all');
SELECT paged('SELECT k, sum(f), avg(r), stddev(v) FROM t GROUP BY k', 'all');
SELECT paged('SELECT v, sum(k) FROM t GROUP BY v', 'all');
SELECT paged('SELECT k, count(DISTINCT small), sum(v) FROM t GROUP BY k', 'all');
SELECT paged('SELECT k, small, sum(v) FROM t GROUP BY GROUPING SETS ((k), (small), ())', 'all');
-- (figures are those of the node above)
SELECT paged('SELECT s, count(*) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) q GROUP BY s', 'none');
-- short strings, floats as keys, and their extremes; the constant that is the key where there is none
SELECT paged('SELECT count(*), sum(v), min(f), max(r), min(large) FROM t', 'all');
SELECT paged('SELECT count(*) FROM t', 'all');
SELECT paged('SELECT s, sum(v) FROM t GROUP BY s', 'all');
SELECT paged('SELECT s::text, sum(v) FROM t GROUP BY 1', 'all');
SELECT paged('SELECT f, r, sum(v) FROM t GROUP BY f, r', 'all');
CREATE TABLE strings AS SELECT g, CASE WHEN g % 9 > 0 THEN repeat('x', g % 14) || g % 3 END AS t, left('abcdef' || g % 4, 7 - g % 3)::char(7) AS c, (CASE g % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN '-Infinity' ELSE (g % 7 - 3)::text END)::float8 AS f,
	(CASE g % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE (g % 5 - 2.5)::text END)::float4 AS r, (3000000000 + g % 5)::oid AS o FROM generate_series(1, 9000) g;
VACUUM ANALYZE strings;
SELECT paged('SELECT t, count(*), sum(g) FROM strings GROUP BY t', 'all');
SELECT paged('SELECT c, count(*), sum(g) FROM strings GROUP BY c', 'all');
SELECT paged('SELECT f + 0, count(*), sum(g) FROM (SELECT f, count(*), sum(g) AS g FROM strings GROUP BY f) s GROUP BY f', 'none');
SELECT paged('SELECT f, r, count(*), min(r), max(r), max(f), max(o), min(o), sum(f) FROM strings GROUP BY f, r HAVING max(f) <> 0 AND max(r) <> 0', 'all');
SELECT paged('SELECT o, min(f), max(f), min(r), count(DISTINCT f + 0) FROM strings GROUP BY o', 'all back');
SELECT paged('SELECT o, min(f), max(f) FROM strings GROUP BY o', 'all');
SELECT paged('SELECT a.t, count(*), count(b.o) FROM strings a LEFT JOIN (SELECT t, o FROM strings LIMIT 20) b ON a.t = b.t GROUP BY a.t', 'all', 'gpurhh.enable_key_filter=off');
-- others that are longer, or padded otherwise than is declared, come back
UPDATE strings SET t = repeat('long', 5) || g % 3 WHERE g % 200 = 0;
SELECT paged('SELECT t, count(*), sum(g) FROM strings GROUP BY t', 'back');
UPDATE strings SET c = 'ä' WHERE g % 300 = 1;
SELECT paged('SELECT c, t, count(*), sum(g) FROM strings GROUP BY c, t', 'back');
UPDATE strings SET t = repeat(t, 800) WHERE g % 100 = 7;
SELECT paged('SELECT t, count(*), sum(g) FROM strings GROUP BY t', 'back');
-- WHERE and expressions, of all types that they may have; NULLs in all places
SELECT paged('SELECT k, count(*), sum(v) FROM t WHERE v > 7 AND v % 3 = 1 GROUP BY k', 'all');
SELECT paged('SELECT k + 1, sum(v * 2), avg(v::float8 / 4) FROM t GROUP BY 1', 'all');
SELECT paged('SELECT count(*), sum(v) FROM t WHERE small < 100 OR large IS NULL', 'all');
SELECT paged('SELECT k, sum(big * 2), sum(big * large), sum(big * big * big) FROM t WHERE big > 17.5 GROUP BY k', 'all');
SELECT paged('SELECT small, sum(CASE WHEN b THEN v ELSE -1 END), count(*) FILTER (WHERE big < 3), sum(v) FILTER (WHERE d > ''2020-01-20'') FROM t WHERE ts <> ''2020-01-01 03:00'' GROUP BY small', 'all');
SELECT paged('SELECT k, count(*) FROM t WHERE u = ''c4ca4238-a0b9-2382-0dcc-509a6f75849b'' OR u > ''e0000000-0000-0000-0000-000000000000'' GROUP BY k', 'all');
SELECT paged('SELECT coalesce(small, 7), sum(coalesce(large, v)) FROM t WHERE f BETWEEN 0.5 AND 2 AND r < 3 GROUP BY 1', 'all');
SELECT paged('SELECT k, sum(f * r), min(f + 1), max(-r) FROM t WHERE k IN (1, 5, 7, NULL) GROUP BY k', 'all');
SELECT paged('SELECT b AND small > 5, count(n), count(filler), count(later) FROM t WHERE filler IS NOT NULL AND n IS NOT NULL GROUP BY 1', 'all');
SELECT paged('SELECT k, sum(v) FROM t WHERE v < 0 GROUP BY k', 'all');
SELECT paged('SELECT count(*), sum(v) FROM t WHERE v < 0', 'all');
SELECT paged('SELECT v, sum(k) FROM t WHERE v % 2 = 0 GROUP BY v', 'all');
SELECT paged('SELECT k, count(DISTINCT small + 1) FROM t WHERE b GROUP BY k', 'all');
SELECT paged('SELECT k, small, sum(v + 1) FROM t WHERE NOT b GROUP BY GROUPING SETS ((k), (small), ())', 'all');
-- strings
SELECT paged('SELECT k, count(*) FROM t WHERE s = ''s3'' GROUP BY k', 'all');
SELECT paged('SELECT s, count(*) FROM t WHERE s <> ''s3'' AND s IN (''s1'', ''s3'', ''s5'') GROUP BY s', 'all');
SELECT paged('SELECT c, count(*) FROM strings WHERE c = ''abcd'' OR t = repeat(''x'', 9) || ''1'' OR (t > ''x'') IS NULL GROUP BY c', 'none');
SELECT paged('SELECT c, count(*) FROM strings WHERE c IN (''abcdef'', ''abcdef0   '', NULL) OR t = ''xxxxxxxxxx1'' GROUP BY c', 'back');
-- others are longer, on either side; compressed; out of line
SELECT paged('SELECT k, count(*) FROM t WHERE filler <> ''xxxxx'' AND filler <> '''' GROUP BY k', 'all');
SELECT paged('SELECT k, count(*) FROM t WHERE filler <> ''xxxxxxxxxxxxxxxxxxxx'' GROUP BY k', 'none');
SELECT paged('SELECT k, count(*) FROM t WHERE filler IN (''xxxxx'', ''xxxxxxxxxxxxxxxxxxxx'') GROUP BY k', 'none');
-- most of a column to group by are long
CREATE TABLE long_keys AS SELECT 'a string of many bytes ' || g % 9 AS s, g AS v FROM generate_series(1, 3000) g;
VACUUM ANALYZE long_keys;
SELECT paged('SELECT s, sum(v) FROM long_keys GROUP BY s', 'none');
SELECT paged('SELECT v, count(*) FROM long_keys WHERE s <> ''x'' GROUP BY v', 'all');
-- of two long ones the device does not know whether they are equal
CREATE TABLE two AS SELECT g % 5 AS k, 'a long string no ' || g AS a, 'a long string no ' || (g - g % 2) AS b, ('a long string no ' || g)::char(30) AS c,
	('a long string no ' || (g - g % 2))::char(25) AS d, decode(md5(g::text), 'hex') AS e, decode(md5((g - g % 2)::text), 'hex') AS f FROM generate_series(1, 3000) g;
VACUUM ANALYZE two;
SELECT paged('SELECT k, count(*) FROM two WHERE a = b GROUP BY k', 'none');
SELECT paged('SELECT k, count(*) FROM two WHERE c = d GROUP BY k', 'none');
SELECT paged('SELECT k, count(*) FROM two WHERE e <> f GROUP BY k', 'none');
SELECT paged('SELECT a = b, count(*) FILTER (WHERE a <> b) FROM two GROUP BY 1', 'none');
SELECT paged('SELECT k, count(*) FROM two WHERE coalesce(a, ''x'') = coalesce(b, ''x'') GROUP BY k', 'none');
SELECT paged('SELECT k, sum(CASE WHEN a = ''x'' THEN 1 ELSE 2 END) FROM two WHERE coalesce(a, ''x'') <> ''x'' GROUP BY k', 'all');
SELECT paged('SELECT t.k, count(*) FROM t JOIN two USING (k) WHERE two.a = two.b OR t.v = 7 GROUP BY t.k', 'some', 'gpurhh.enable_key_filter=off');
-- joins of sides with WHERE, and of computed columns
SELECT paged('SELECT x, sum(v) FROM t JOIN d USING (k) WHERE v > 100 AND x < 60 GROUP BY x', 'all', 'gpurhh.enable_key_filter=off');
SELECT paged('SELECT x + 1, sum(v * 2), sum(v + x) FROM t LEFT JOIN d USING (k) WHERE v % 7 = 3 GROUP BY 1', 'all', 'gpurhh.enable_key_filter=off');
SELECT paged('SELECT a.k, count(*), sum(b.large) FROM t a JOIN t b ON a.v = b.v WHERE a.small < 100 AND b.small > 50 GROUP BY a.k', 'some', 'work_mem=64kB, hash_mem_multiplier=1, gpurhh.enable_key_filter=off');
-- where it reads both sides there is no filter of keys, which needs columns
SELECT paged('SELECT x, sum(v) FROM t JOIN d USING (k) WHERE p = 1.5 GROUP BY x', 'all');
SELECT CASE WHEN current_setting('shared_preload_libraries') ~ 'gpurhh' THEN j ->> 'Key Filter' ELSE 'not used (the device read the pages)' END
	FROM analyze_json('SELECT x, sum(v) FROM t JOIN d USING (k) WHERE p = 1.5 GROUP BY x', 'enable_gpu_hashjoin=on', 'GpuHashAgg') n, jsonb_array_elements(n -> 'Joins') j;
SELECT count(*) FILTER (WHERE coalesce((j ->> 'Build Pages')::int, 0) > 0 AND (j ->> 'Build Pages Sent Back')::int = 0 OR current_setting('shared_preload_libraries') !~ 'gpurhh') AS by_pages
	FROM analyze_json('SELECT x, sum(v) FROM t JOIN d USING (k) GROUP BY x', 'enable_gpu_hashjoin=on', 'GpuHashAgg') n, jsonb_array_elements(n -> 'Joins') j;
-- nor if it reads the probe side alone: in each pass the same rows of that are left to core
CREATE TABLE bf AS SELECT (g * 7919::int8 % 320000)::int AS k, CASE WHEN (g * 7919::int8 % 320000) % 20 <> 0 AND g % 1000 = 1 THEN 0 ELSE 5 END AS z,
	g AS id, repeat('q', 30) AS pad FROM generate_series(1, 60000) g;
CREATE TABLE bd AS SELECT g * 20 AS k, g % 3000 AS x, 'n' || g % 12 AS name, g AS y, g * 2 AS y2, repeat('long', 10) AS y3 FROM generate_series(1, 16000) g;
VACUUM ANALYZE bf, bd;
SELECT paged(q, 'back', s), joined(q, s || ', gpurhh.read_pages=on')
	FROM (VALUES ('SELECT bd.x, sum(1000 / bf.z), count(*), sum(y), sum(y2), count(y3) FROM bf JOIN bd ON bf.k = bd.k WHERE bd.name < ''n9'' GROUP BY 1',
		'gpurhh.device_memory=1MB, gpurhh.batch_rows=1000, enable_mergejoin=off, enable_nestloop=off, max_parallel_workers_per_gather=0')) v(q, s);
-- rows that WHERE has let through are refused, too
SELECT paged('SELECT v, k, sum(large + 1) FROM t WHERE k < 40 GROUP BY v, k', 'back', 'gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=1, work_mem=64kB, hash_mem_multiplier=1');
-- an error for some row: its page comes back, and core has the last word
SELECT paged('SELECT k, count(*) FROM t WHERE CASE WHEN v <> 500 THEN 10 / (v - 500) ELSE 0 END < 5 GROUP BY k', 'all');
SELECT paged('SELECT k, count(*) FROM t WHERE v <> 500 AND 10 / (v - 500) < 5 GROUP BY k', 'all');
SELECT same_error('SELECT k, count(*) FROM t WHERE 10 / (v - 500) < 5 GROUP BY k');
SELECT same_error('SELECT k, sum(v * 200000) FROM t GROUP BY k');
-- the error that comes first
CREATE TABLE er AS SELECT g, g % 5 AS k FROM generate_series(1, 20000) g;
VACUUM ANALYZE er;
SELECT same_error('SELECT k, count(*) FROM er WHERE CASE WHEN g < 5000 THEN 10 / (g - 500) ELSE 2147483000 + g END > 0 GROUP BY k');
-- its rows do not raise it for core: a product that devices do not know to have no remainder
SELECT paged('SELECT k, sum(f * 1e-320) FROM t GROUP BY k', 'some');
-- parameters
PREPARE p(int, numeric, text) AS SELECT b, count(*), sum(v + $1) FROM t WHERE v > $1 AND big < $2 AND s <> $3 GROUP BY b ORDER BY b;
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = off;
EXECUTE p(700, 1000, 's2');
SET enable_gpu_hashagg = on;
EXECUTE p(700, 1000, 's2');
EXECUTE p(700, 1000, NULL);
RESET plan_cache_mode;
-- what EXPLAIN says of the scan is what core says, also of pages that come back
SELECT same_figures('SELECT k, count(*), sum(v + 1) FROM t WHERE v > 7 AND small < 100 GROUP BY k');
SELECT same_figures('SELECT c, t, count(*) FROM strings WHERE g % 3 = 1 GROUP BY c, t');
-- what it does not read: the greatest numeric; functions that devices do not know
SELECT paged('SELECT k, max(big) FROM t GROUP BY k', 'none');
SELECT paged('SELECT k, sum(v) FROM t WHERE s LIKE ''s%'' GROUP BY k', 'none');
SELECT paged('SELECT k, sum(v) FROM t WHERE k = (SELECT 3) GROUP BY k', 'none');
SELECT paged('SELECT k, sum(v) FROM t GROUP BY k', 'none', 'gpurhh.read_pages=off');

-- rows of groups for which the device has no place come back with their pages
SELECT paged('SELECT v, k, sum(large) FROM t GROUP BY v, k', 'back', 'gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=1, work_mem=64kB, hash_mem_multiplier=1');
SELECT paged('SELECT v, count(DISTINCT small) FROM t GROUP BY v', 'back', 'gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=1, work_mem=64kB, hash_mem_multiplier=1');
-- pages come back while rows of others are being fed
CREATE TABLE bad AS SELECT g % 50 AS k, g % 3 AS l, (CASE WHEN g % 100 = 0 THEN 'NaN' ELSE g::numeric END)::numeric(12,2) AS n FROM generate_series(1, 50000) g;
VACUUM ANALYZE bad;
SELECT paged('SELECT k, count(*), count(n) FROM bad GROUP BY k', 'all back', 'gpurhh.batch_rows=1024');
SELECT paged('SELECT k, count(*), count(n) FROM bad GROUP BY k', 'all back', 'gpurhh.batch_rows=300');
SELECT paged('SELECT l, count(*), count(n), count(x) FROM bad LEFT JOIN d USING (k) GROUP BY l', 'all back', 'gpurhh.batch_rows=1024');
-- small batches
SELECT paged('SELECT k, sum(v) FROM t GROUP BY k', 'all', 'gpurhh.batch_rows=1024');

-- joins, of which the device reads the probe side, the build side, or both
SELECT paged('SELECT t.k, sum(v), count(x) FROM t JOIN d USING (k) GROUP BY t.k', 'all');
SELECT paged('SELECT x, sum(v) FROM t LEFT JOIN d USING (k) GROUP BY x', 'all');
SELECT paged('SELECT x, sum(v) FROM t LEFT JOIN d USING (k) GROUP BY x', 'all', 'gpurhh.enable_key_filter=off');
SELECT paged('SELECT x, sum(v * p) FROM t JOIN d ON t.small = d.large GROUP BY x', 'all');
SELECT paged('SELECT t.k, count(*) FROM t JOIN d ON t.large = d.k GROUP BY t.k', 'all');
SELECT paged('SELECT k, sum(v) FROM t WHERE k IN (SELECT k FROM d) GROUP BY k', 'all');
SELECT paged('SELECT x, sum(v) FROM t RIGHT JOIN d ON t.k = d.k AND v > x GROUP BY x', 'some');
SELECT paged('SELECT a.k, count(*), sum(b.large) FROM t a JOIN t b ON a.v = b.v GROUP BY a.k', 'all', 'gpurhh.enable_key_filter=off');
SELECT paged('SELECT a.k, count(*), sum(b.large) FROM t a JOIN t b ON a.v = b.v GROUP BY a.k', 'some', 'work_mem=64kB, hash_mem_multiplier=1, gpurhh.enable_key_filter=off');
SELECT joined_rows('SELECT t.v, x FROM t JOIN d USING (k)');

-- pages that come back: numerics of another scale, NaN, very long ones; values out of line
CREATE TABLE odd (k int4, n numeric(18, 2), v int4, t text);
CREATE FUNCTION odd_numeric(int) RETURNS numeric LANGUAGE sql AS 'SELECT $1 / 8.0';
INSERT INTO odd SELECT g % 9, CASE WHEN g % 500 = 3 THEN 'NaN' ELSE g / 4.0 END, g, CASE WHEN g % 1000 = 0 THEN (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i) END FROM generate_series(1, 5000) g;
VACUUM ANALYZE odd;
SELECT paged('SELECT k, sum(n), count(n), sum(v) FROM odd GROUP BY k', 'back');
SELECT paged('SELECT n, count(*) FROM odd GROUP BY n', 'back');
SELECT paged('SELECT k, sum(v), count(*) FROM odd GROUP BY k', 'all');
SELECT paged('SELECT x, sum(n) FROM odd JOIN d USING (k) GROUP BY x', 'back');
UPDATE odd SET n = 1234567890123456.78 WHERE v % 400 = 1;
SELECT paged('SELECT k, sum(n), count(n), sum(v) FROM odd GROUP BY k', 'back');
-- all of them
UPDATE odd SET n = 'NaN';
SELECT paged('SELECT k, sum(n), sum(v) FROM odd GROUP BY k', 'some');

-- partitions, whose columns are in another order, and other tables, one after the other
CREATE TABLE parts (k int4, v int4, n numeric(10, 2), s text) PARTITION BY RANGE (v);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (4000);
CREATE TABLE parts_2 (s text, gone int8, v int4, n numeric(10, 2), k int4);
ALTER TABLE parts_2 DROP gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (4000) TO (9000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (9000) TO (9001);
CREATE TABLE parts_4 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT g % 40, g, CASE WHEN g % 3000 = 17 THEN 'NaN' ELSE g / 4.0 END, 's' || g % 7 FROM generate_series(1, 15000) g;
VACUUM ANALYZE parts;
SELECT paged('SELECT k, count(*), sum(v) FROM parts GROUP BY k', 'all');
SELECT paged('SELECT s, count(*), sum(v + 1) FROM parts WHERE v % 3 = 1 AND s <> ''s2'' GROUP BY s', 'all');
SELECT paged('SELECT k, sum(n), count(n) FROM parts WHERE v > 100 GROUP BY k', 'back');
SELECT paged('SELECT k, sum(n), count(n) FROM parts GROUP BY k', 'back', 'gpurhh.batch_rows=1024');
SELECT paged('SELECT k, count(*) FROM parts WHERE v > 8000 GROUP BY k', 'all');
SELECT paged('SELECT v, sum(n * 2), count(*) FROM parts GROUP BY v', 'back', 'gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=1, work_mem=64kB, hash_mem_multiplier=1');
SELECT paged('SELECT k, sum(v) FROM (SELECT k, v FROM t UNION ALL SELECT k + 1, v * 2 FROM odd WHERE v < 3000 UNION ALL SELECT k, x FROM d) u GROUP BY k', 'all');
SELECT paged('SELECT k, sum(v) FROM (SELECT k, v FROM t UNION ALL SELECT k, length(s) FROM parts) u GROUP BY k', 'none');
-- a part of which the device reads: the other has no such layout
SELECT paged('SELECT k, count(*) FROM (SELECT k, s FROM t UNION ALL SELECT k, filler FROM t) u WHERE s <> ''s1'' OR s = ''xxxxxxxxxxxxxxxxxxxx'' GROUP BY k', 'none');
SELECT paged('SELECT k, min(a), sum(v) FROM (SELECT k, v, n AS a FROM parts UNION ALL SELECT k, v, 1.00::numeric(10, 2) FROM t) u GROUP BY k', 'none');
SELECT paged('SELECT x, sum(v), count(n) FROM parts JOIN d USING (k) WHERE n > 3 GROUP BY x', 'back', 'gpurhh.enable_key_filter=off');
SELECT paged('SELECT x, sum(v) FROM d LEFT JOIN parts USING (k) GROUP BY x', 'some', 'gpurhh.enable_key_filter=off');
SELECT paged('SELECT k, count(*), sum(v) FROM parts GROUP BY k', 'all', 'max_parallel_workers_per_gather=2, parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0');
SELECT same_figures('SELECT k, count(*) FROM parts WHERE v % 5 = 2 GROUP BY k');
-- what EXPLAIN says of the Append
SELECT j -> 'Plans' -> 0 ->> 'Node Type', (j -> 'Plans' -> 0 ->> 'Actual Rows')::numeric::int
	FROM analyze_json('SELECT k, count(n) FROM parts WHERE v % 5 = 2 GROUP BY k', 'enable_gpu_hashjoin=on', 'GpuHashAgg') j;
-- rows that are not visible, of pages that are not all visible; attributes that were dropped, or
-- added, with and without a default
DELETE FROM t WHERE v % 3 = 0;
UPDATE t SET v = v + 1, large = NULL WHERE v % 5 = 0;
SELECT paged('SELECT k, sum(v), count(large) FROM t GROUP BY k', 'all');
ALTER TABLE t DROP COLUMN filler;
SELECT paged('SELECT k, sum(v), count(large) FROM t GROUP BY k', 'all');
ALTER TABLE t ADD added int4, ADD fast int4 DEFAULT 7;
SELECT paged('SELECT k, sum(v), sum(added) FROM t GROUP BY k', 'all');
SELECT paged('SELECT k, sum(v), sum(added), sum(fast) FROM t GROUP BY k', 'some');
INSERT INTO t (k, v, added, fast) SELECT g % 50, g, g, g FROM generate_series(1, 3000) g;
SELECT paged('SELECT k, sum(v), sum(added), sum(fast) FROM t GROUP BY k', 'some');
BEGIN;
DECLARE old CURSOR FOR SELECT count(*), sum(v), count(DISTINCT k) FROM t;
UPDATE t SET v = v + 1;
SELECT paged('SELECT k, sum(v), count(*) FROM t GROUP BY k', 'all');
FETCH old;
ROLLBACK;
SELECT paged('SELECT k, sum(v), count(*) FROM t GROUP BY k', 'all');
-- generated columns, behind one of no fixed width, and generated anew; one of them is NULL in the pages from 18 on
SELECT CASE WHEN current_setting('server_version_num')::int < 180000 THEN 'STORED' ELSE 'VIRTUAL' END AS kind \gset
CREATE TABLE gen (k int4, t text, next int4 GENERATED ALWAYS AS (k + 1) :kind, twice int4 GENERATED ALWAYS AS (k * 2) STORED, quarter numeric(10, 2) GENERATED ALWAYS AS (k / 4.0) STORED,
	start text GENERATED ALWAYS AS (left(t, 3)) STORED);
INSERT INTO gen SELECT g % 40, CASE WHEN g % 11 > 0 THEN repeat('x', g % 9) END FROM generate_series(1, 5000) g;
VACUUM ANALYZE gen;
SELECT paged('SELECT twice, count(*), sum(quarter), count(start) FROM gen WHERE twice > 10 GROUP BY twice', 'all');
SELECT paged('SELECT start, twice + 1, sum(quarter * 2), max(next) FROM gen WHERE next <> 3 GROUP BY 1, 2', 'all');
UPDATE gen SET k = k + 1, t = 'y' WHERE k % 3 = 0;
SELECT paged('SELECT next, start, count(*), sum(quarter) FROM gen GROUP BY next, start', 'all');

-- Row level security: what may raise an error comes after the policy, also on the device, or all pages would come back.  A
-- security barrier has that stay above the view, so that the device does not read the pages; nor does it where a function
-- that leaks what it sees is called.
CREATE TABLE secured AS SELECT g % 5 AS k, g AS v, g % 3 AS level FROM generate_series(1, 3000) g;
VACUUM ANALYZE secured;
CREATE POLICY low ON secured USING (level < 2);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM secured WHERE level < 2;
CREATE FUNCTION leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $f$
BEGIN
	IF $1 % 3 = 2 THEN RAISE EXCEPTION 'leaked %', $1; END IF;
	RETURN true;
END $f$;
SELECT same_error('SELECT k, count(*) FROM secured WHERE 10 / (level - 2) < 0 GROUP BY k');
SELECT same_error('SELECT k, count(*) FROM secured WHERE leak(v) GROUP BY k');
SELECT paged('SELECT k, sum(v), max(level) FROM barred WHERE v <> 7 GROUP BY k', 'all');
SELECT paged('SELECT k, sum(v), max(level) FROM barred WHERE 10 / (level - 2) < 0 GROUP BY k', 'none');
SELECT paged('SELECT k, sum(v), max(level) FROM barred WHERE leak(v) GROUP BY k', 'none');
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpurhh_reader;
RESET client_min_messages;
CREATE ROLE regress_gpurhh_reader IN ROLE pg_read_all_settings;
GRANT USAGE ON SCHEMA gpurhh_test TO regress_gpurhh_reader;
GRANT SELECT ON secured TO regress_gpurhh_reader;
SET ROLE regress_gpurhh_reader;
SELECT paged('SELECT k, count(*), sum(v) FROM secured GROUP BY k', 'all');
SELECT paged('SELECT k, count(*), sum(v) FROM secured WHERE 10 / (level - 2) < 0 GROUP BY k', 'all');
SELECT paged('SELECT k, count(*), sum(v) FROM secured WHERE leak(v) GROUP BY k', 'none');
RESET ROLE;
REVOKE ALL ON secured FROM regress_gpurhh_reader;
REVOKE ALL ON SCHEMA gpurhh_test FROM regress_gpurhh_reader;
DROP ROLE regress_gpurhh_reader;

-- The collected statistics are those of core's scans, also of pages that come back.  (Where there is a cache pages are left
-- out, and the visibility map is read.)
CREATE TABLE counted (k int4, v int4, n numeric(10, 2)) WITH (autovacuum_enabled = off);
INSERT INTO counted SELECT g % 10, g, CASE WHEN g % 1000 = 0 THEN 'NaN' ELSE g / 4.0 END FROM generate_series(1, 5000) g;
VACUUM ANALYZE counted;
SELECT paged('SELECT k, sum(v) FROM counted WHERE v > 7 GROUP BY k', 'all');
SELECT paged('SELECT k, sum(n) FROM counted GROUP BY k', 'back');
CREATE VIEW counts AS SELECT seq_scan, seq_tup_read, heap_blks_hit, heap_blks_read FROM pg_stat_user_tables s LEFT JOIN
	(SELECT relid, heap_blks_hit, heap_blks_read FROM pg_statio_user_tables WHERE NOT EXISTS (SELECT FROM gpurhh_cache_files())
		AND NOT EXISTS (SELECT FROM gpurhh_devices() WHERE kind = 'cuda' AND state <> 'unusable')) blocks USING (relid) WHERE s.relname = 'counted';
\set flush 'SELECT pg_stat_force_next_flush();'
\set reset 'SELECT pg_stat_reset_single_table_counters(\'counted\'::regclass);'
\set run 'SELECT count(s) FROM (SELECT k, sum(v) AS s FROM counted WHERE v > 7 GROUP BY k) q; SELECT count(s) FROM (SELECT k, sum(n) AS s FROM counted GROUP BY k) q;'
:flush :reset
SET enable_gpu_hashagg = off;
:run :flush
CREATE TABLE core_counts AS SELECT * FROM counts;
:reset
SET enable_gpu_hashagg = on;
:run :flush
SELECT c.seq_scan, c.seq_tup_read, CASE WHEN c::text = core::text THEN 'same' ELSE core || ' became ' || c END FROM counts c, core_counts core;
RESET enable_gpu_hashagg;

-- tables that are not read so: temporary ones, partitions
CREATE TEMP TABLE temporary AS SELECT g % 5 AS k, g AS v FROM generate_series(1, 2000) g;
SELECT paged('SELECT k, sum(v) FROM temporary GROUP BY k', 'none');
CREATE TABLE parted (k int4, v int4) PARTITION BY RANGE (v);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (1000) TO (9000);
INSERT INTO parted SELECT g % 5, g FROM generate_series(1, 2000) g;
SELECT paged('SELECT k, sum(v) FROM parted GROUP BY k', 'all');
-- a subquery may sleep
SELECT paged('SELECT k, sum(v), (SELECT max(x) FROM d) FROM t GROUP BY k', 'none');
-- nothing in it
CREATE TABLE nothing (k int4, v int4);
SELECT paged('SELECT k, sum(v) FROM nothing GROUP BY k', 'none');

-- in parallel, and cancelled in the middle of it
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT paged('SELECT k, sum(v), count(large) FROM t GROUP BY k', 'all', 'max_parallel_workers_per_gather=2');
SELECT paged('SELECT v, sum(k) FROM t GROUP BY v', 'some', 'max_parallel_workers_per_gather=2, gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=1, work_mem=64kB, hash_mem_multiplier=1');
SELECT paged('SELECT x, sum(v), count(t.large) FROM t LEFT JOIN d USING (k) GROUP BY x', 'all', 'max_parallel_workers_per_gather=2');
SELECT paged('SELECT k, sum(n), count(n), sum(v) FROM odd GROUP BY k', 'some', 'max_parallel_workers_per_gather=2');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- some hundred rows with NULLs, then some without, beside a column that has NULLs everywhere
CREATE TABLE stretches (k int4, x numeric(9, 2), y numeric(9, 2));
INSERT INTO stretches SELECT g % 4, CASE WHEN g / 300 % 2 = 0 THEN g / 4.0 END, CASE WHEN g % 7 > 0 THEN g / 2.0 END FROM generate_series(1, 9000) g;
VACUUM ANALYZE stretches;
SELECT paged('SELECT k, sum(y * (1 - x)), sum(y - x), count(*) FROM stretches GROUP BY k', 'all');

VACUUM (FREEZE) t, odd;
SELECT paged('SELECT k, sum(v), count(*) FROM t GROUP BY k', 'all');
SELECT paged('SELECT k, sum(v) FROM t GROUP BY k', 'all', 'gpurhh.read_pages=on');

