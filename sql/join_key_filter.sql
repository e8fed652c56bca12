--
-- Filters of the build side's keys: rows of the probe side that have no match are dropped
-- where its pages are read, and nothing else is.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET gpurhh.read_pages = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET max_parallel_workers_per_gather = 0;
-- hundreds of queries of few shapes, whose plans a subquery does not change
SET gpurhh_test.wrapped = off;
SET gpurhh.row_cost = 0.001;

-- The joins' filters and what they have removed; the answers are compared with the filters on and off.
CREATE FUNCTION filters(query text, settings text DEFAULT NULL, node text DEFAULT 'GpuHashAgg') RETURNS text LANGUAGE sql AS $f$
	SELECT string_agg(CASE WHEN j ->> 'Key Filter' ~ '^no' THEN j ->> 'Key Filter' ELSE (j ->> 'Key Filter') || ' removes ' || (j ->> 'Rows Removed by Key Filter') END, ', ' ORDER BY i)
	FROM concat_ws(', ', 'enable_gpu_hashjoin=on', settings) AS used, jsonb_array_elements(analyze_json(query, used, node) -> 'Joins') WITH ORDINALITY AS joins (j, i) $f$;
CREATE FUNCTION filtered(query text, settings text DEFAULT NULL, node text DEFAULT 'GpuHashAgg') RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', joined(query, settings, node), CASE WHEN off NOT LIKE 'ok%' THEN off END, filters(query, settings, node))
	FROM compare(query, settings => concat_ws(', ', 'enable_gpu_hashjoin=on', settings, 'gpurhh.enable_key_filter=off'), node => node) AS off $f$;
CREATE FUNCTION filtered_rows(query text, settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT filtered(query, concat_ws(', ', 'enable_gpu_hashagg=off', settings), 'GpuHashJoin') $f$;

-- the same values in many types; d has few of those that f has, some twice, and some that f lacks
CREATE TYPE color AS ENUM ('a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9');
CREATE FUNCTION make(name text, n int, step int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('CREATE TABLE %I AS SELECT g AS id, x AS k, nullif(x %% 50, 7) AS k2, x::int2 AS i2, x AS i4, x * 10000000000 AS i8, x::int8 AS i8s, x::oid AS o, x::float4 AS f4,
		CASE x %% 10 WHEN 3 THEN ''NaN'' WHEN 6 THEN CASE WHEN g %% 2 = 0 THEN ''-0'' ELSE ''0'' END ELSE (x / 4.0)::text END::float8 AS f8,
		(x / 100.0)::numeric(8, 2) AS n2, (x / 100.0)::numeric(12, 4) AS n4, ''t'' || x AS t, repeat(''long'', 4) || x AS lt, (''t'' || x)::varchar(20) AS v, (''t'' || x)::char(12) AS c,
		(''t'' || x)::char(7) AS c7, (''t'' || x)::name AS nm, md5(x::text)::uuid AS u, date ''2020-01-01'' + x AS dt, timestamp ''2020-01-01'' + x * interval ''1 hour'' AS ts, x * interval ''1 hour'' AS iv,
		(''a'' || x %% 10)::color AS e, ''10.0.0.0''::inet + x AS ip, g %% 7 AS g, g %% 100 AS v2 FROM (SELECT g, CASE WHEN g %% 31 <> 0 THEN g * %s %% 997 END AS x FROM generate_series(1, %s) g) q', name, step, n);
	EXECUTE 'ANALYZE ' || name;
END $f$;
SELECT make('f', 6000, 1);
SELECT make('d', 45, 23);
DELETE FROM d WHERE f8 = 0 AND id > 20 OR f8 = 'NaN' AND id > 20;
INSERT INTO d SELECT * FROM d WHERE id < 5;
UPDATE d SET i8 = -i8, u = NULL WHERE id % 4 = 0;
VACUUM ANALYZE d;

-- EXPLAIN, as it is in all versions
CREATE FUNCTION plan_of(query text, options text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
BEGIN
	FOR r IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		-- how many slots there are, and how long probes, depends on the map's seed
		RETURN NEXT regexp_replace(regexp_replace(replace(r."QUERY PLAN", '.00 loops', ' loops'), '\n +Disabled: false', '', 'g'), '((Build )?Table): .*', '\1');
	END LOOP;
END $f$;
SET enable_gpu_hashjoin = on;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT d.g, sum(f.v2) FROM f JOIN d ON f.k = d.k GROUP BY d.g;
EXPLAIN (COSTS OFF) SELECT d.g, sum(f.v2) FROM f LEFT JOIN d ON f.k = d.k GROUP BY d.g;
SELECT plan_of('SELECT d.g, sum(f.v2) FROM f JOIN d ON f.k = d.k GROUP BY d.g', 'COSTS OFF, FORMAT YAML');
-- whose figures of the table are shown
SET gpurhh.device = cpu;
SELECT plan_of('SELECT d.g, sum(f.v2) FROM f JOIN d ON f.k = d.k GROUP BY d.g', 'ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF');
SET enable_gpu_hashagg = off;
SELECT plan_of('SELECT d.g, f.v2 FROM f JOIN d ON f.k = d.k', 'ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF');
SET gpurhh.enable_key_filter = off;
SELECT plan_of('SELECT d.g, f.v2 FROM f JOIN d ON f.k = d.k', 'ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF');
RESET gpurhh.enable_key_filter;
RESET gpurhh.device;
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;

-- types of keys, and pairs of types
SELECT c, filtered(format('SELECT d.g, count(*), sum(f.id), sum(d.id) FROM f JOIN d ON f.%s = d.%s GROUP BY d.g', split_part(c, ' ', 1), split_part(c, ' ', 2)))
FROM unnest('{i2 i2,i4 i4,i8 i8,o o,f4 f4,f8 f8,n2 n2,n4 n4,t t,lt lt,v v,c c,nm nm,u u,dt dt,ts ts,iv iv,e e,ip ip,i2 i4,i4 i2,i2 i8s,i8s i2,i4 i8s,f4 f8,f8 f4,n2 n4,n4 n2,t v,v t,c c7,c7 c,nm t,t nm}'::text[]) c;
SELECT c, filtered_rows(format('SELECT f.id, d.id FROM f JOIN d ON f.%s = d.%s', split_part(c, ' ', 1), split_part(c, ' ', 2)))
FROM unnest('{i4 i4,f8 f8,n2 n4,lt lt,c7 c,u u,i2 i8s}'::text[]) c;
-- several keys
SELECT filtered('SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.k = d.k AND f.k2 = d.k2 GROUP BY d.g');
SELECT filtered('SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.lt = d.lt AND f.u = d.u AND f.n2 = d.n4 GROUP BY d.g');
SELECT filtered('SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.k2 = d.k AND f.c = d.v GROUP BY d.g');

-- kinds of joins: no filter where a row without a match comes out
SELECT filtered('SELECT f.g, count(*), sum(f.id) FROM f WHERE k IN (SELECT k FROM d) GROUP BY f.g');
SELECT filtered('SELECT f.g, count(*), sum(f.id) FROM f WHERE EXISTS (SELECT FROM d WHERE d.lt = f.lt AND d.v2 < f.v2) GROUP BY f.g');
SELECT filtered('SELECT d.id, count(*), count(f.id), sum(f.id) FROM f RIGHT JOIN d ON f.k = d.k GROUP BY d.id');
SELECT filtered('SELECT d.id, count(*), count(f.id), sum(f.id) FROM f LEFT JOIN d ON f.k = d.k GROUP BY d.id');
SELECT filtered('SELECT d.id, count(*), count(f.id), sum(f.id) FROM f FULL JOIN d ON f.k = d.k GROUP BY d.id');
SELECT filtered('SELECT f.g, count(*), sum(f.id) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k) GROUP BY f.g');
SELECT filtered_rows('SELECT f.id, d.id FROM f RIGHT JOIN d ON f.k = d.k');
SELECT filtered_rows('SELECT f.id, f.t FROM f WHERE k IN (SELECT k FROM d)');
-- chains: a key that a join has brought is not the scan's; not above a join that returns rows without a match
SELECT make('e', 30, 41);
SET join_collapse_limit = 1;
SELECT filtered('SELECT e.g, count(*), sum(f.id) FROM f JOIN d ON f.k = d.k JOIN e ON f.i4 = e.i4 GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id) FROM f JOIN d ON f.k = d.k JOIN e ON d.k2 = e.k2 GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id), sum(d.id) FROM f LEFT JOIN d ON f.k = d.k JOIN e ON f.lt = e.lt GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id), sum(d.id) FROM f RIGHT JOIN d ON f.k = d.k RIGHT JOIN e ON f.lt = e.lt GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id), sum(d.id) FROM f RIGHT JOIN d ON f.k = d.k LEFT JOIN e ON f.lt = e.lt GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id), sum(d.id) FROM f RIGHT JOIN d ON f.k = d.k FULL JOIN e ON d.lt = e.lt GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id), sum(d.id) FROM f FULL JOIN d ON f.k = d.k LEFT JOIN e ON f.lt = e.lt GROUP BY e.g');
SELECT filtered('SELECT e.g, count(*), sum(f.id) FROM f JOIN e ON f.k2 = e.k2 AND f.k < e.k + 20 WHERE f.k IN (SELECT k FROM d) AND NOT EXISTS (SELECT FROM d WHERE d.id = f.id) GROUP BY e.g');
RESET join_collapse_limit;

-- nothing to join with, and keys that are all NULL
SELECT filtered('SELECT d.id, count(*), count(f.id) FROM f RIGHT JOIN (SELECT * FROM d WHERE k IS NULL) d ON f.k = d.k GROUP BY d.id');
SELECT filtered('SELECT d.g, count(*) FROM f JOIN (SELECT * FROM d WHERE id < 0) d ON f.k = d.k GROUP BY d.g');

-- which forms a filter has: greatest and least keys, sparse ones, negative ones
CREATE TABLE wide AS SELECT g AS id, CASE g % 4 WHEN 0 THEN 9223372036854775807 - g WHEN 1 THEN -9223372036854775808 + g WHEN 2 THEN g * 1000003::bigint ELSE -g END AS k FROM generate_series(1, 20000) g;
CREATE TABLE narrow AS SELECT k, id % 5 AS g FROM wide WHERE id % 40 < 3;
ANALYZE wide, narrow;
SELECT filtered('SELECT n.g, count(*), sum(w.id) FROM wide w JOIN narrow n USING (k) GROUP BY n.g');
SELECT c, filtered('SELECT n.g, count(*), sum(w.id) FROM wide w JOIN (SELECT * FROM narrow WHERE ' || c || ') n USING (k) GROUP BY n.g')
FROM unnest('{k > 9000000000000000000,k < -9000000000000000000,k < 0 AND k > -20000,abs(k / 2) < 4000000000}'::text[]) c;

-- a bitmap that has many keys when it becomes a Bloom filter
CREATE TABLE grows AS SELECT CASE WHEN g <= 1000 THEN g * 3 - 1500 ELSE g * 1000003::bigint END AS k, g % 5 AS g FROM generate_series(1, 1500) g;
CREATE TABLE ways AS SELECT CASE WHEN g <= 10000 THEN g - 2000 ELSE (g - 9000) * 1000003::bigint END AS k, g AS id FROM generate_series(1, 20000) g;
ANALYZE grows, ways;
SELECT filtered('SELECT g.g, count(*), sum(w.id) FROM ways w JOIN grows g USING (k) GROUP BY g.g');

-- many more rows than were expected, so that the filter is full: a condition that the planner knows nothing of
CREATE FUNCTION yes(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 1 AS 'BEGIN RETURN $1 >= 0; END';
CREATE TABLE many AS SELECT g AS id, g * 77777777::bigint AS k, 'many and many' || g AS t FROM generate_series(1, 250000) g;
CREATE TABLE more AS SELECT g % 9 AS g, g * 77777777::bigint AS k, 'many and many' || g AS t FROM generate_series(100000, 400000) g;
ANALYZE many, more;
SELECT filtered('SELECT m.g, count(*), sum(p.id) FROM many p JOIN (SELECT * FROM more WHERE yes(g) AND yes(g + 1) AND yes(g + 2) AND yes(g + 3) AND yes(g + 4) AND yes(g + 5) AND yes(g + 6)) m USING (k) GROUP BY m.g');
SELECT filtered('SELECT m.g, count(*), sum(p.id) FROM many p JOIN (SELECT * FROM more WHERE yes(g) AND yes(g + 1) AND yes(g + 2) AND yes(g + 3) AND yes(g + 4) AND yes(g + 5) AND yes(g + 6)) m USING (t) GROUP BY m.g', 'work_mem=64MB');
-- a filter that drops nothing is not asked for long
CREATE TABLE all_match AS SELECT g % 20000 AS k, g AS id FROM generate_series(1, 250000) g;
CREATE TABLE twenty AS SELECT g AS k, g % 3 AS g FROM generate_series(0, 19999) g;
ANALYZE all_match, twenty;
SELECT filtered('SELECT t.g, count(*), sum(a.id) FROM all_match a JOIN (SELECT * FROM twenty WHERE yes(g) AND yes(g + 1)) t USING (k) GROUP BY t.g');
-- a table in which rows of one kind lie together: more than half have no match, and is found out in time
CREATE TABLE in_order AS SELECT CASE WHEN g > 400000 THEN g ELSE g % 20000 END AS k, g AS id FROM generate_series(1, 900000) g;
ANALYZE in_order;
SELECT filtered('SELECT t.g, count(*), sum(a.id) FROM in_order a JOIN (SELECT * FROM twenty WHERE yes(g) AND yes(g + 1)) t USING (k) GROUP BY t.g');

-- rows that are not as others: added columns, NULLs, values out of line, numerics and char(n) that are not as declared
ALTER TABLE f ADD late int DEFAULT 23, ADD lnull int, ADD big text DEFAULT repeat('x', 3000);
INSERT INTO f (id, k, g, v2, late, lnull, big) SELECT id, k, 1, 1, k * 20, k, string_agg(md5((id * n)::text), '') FROM d, generate_series(1, 200) n GROUP BY id, k;
ALTER TABLE d ADD big text;
UPDATE d SET big = (SELECT f.big FROM f WHERE f.id = d.id AND f.lnull IS NOT NULL LIMIT 1);
UPDATE d SET big = repeat('x', 3000) WHERE id = 7;
VACUUM ANALYZE f, d;
SELECT c, filtered(format('SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.%s = d.%s GROUP BY d.g', split_part(c, ' ', 1), split_part(c, ' ', 2))) FROM unnest('{lnull k,big big}'::text[]) c;
SELECT filtered('SELECT d.g, count(*), sum(f.id) FROM f JOIN (SELECT * FROM d WHERE yes(g) AND yes(g + 1) AND yes(g + 2)) d ON f.late = d.k GROUP BY d.g');
CREATE TABLE odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(id, CASE WHEN id % 1500 = 0 THEN 1.23456 WHEN id % 1499 = 0 THEN 'NaN' ELSE n2 END, CASE WHEN id % 700 = 0 THEN 't23' ELSE c END) FROM f)) q(id int, n2 numeric(8, 2), c char(12));
ANALYZE odd;
-- a page with such a numeric is not tested
SELECT c, regexp_replace(filtered(format('SELECT d.g, count(*), sum(o.id) FROM odd o JOIN d ON o.%s = d.%s GROUP BY d.g', split_part(c, ' ', 1), split_part(c, ' ', 2))), 'removes \d+', 'removes N') FROM unnest('{n2 n2,n2 n4,c c,c v}'::text[]) c;
SELECT c, filtered(format('SELECT d.g, count(*), sum(o.n2) FROM odd o JOIN d ON o.%s = d.%s GROUP BY d.g', split_part(c, ' ', 1), split_part(c, ' ', 2))) FROM unnest('{id id,c c}'::text[]) c;

-- conditions of the scan, expressions above it, and errors
SELECT filtered('SELECT d.g, count(*), sum(f.v2 * 2), sum(f.v2 + d.id) FROM f JOIN d ON f.k = d.k WHERE f.v2 > 10 AND f.t <> ''t23'' GROUP BY d.g');
SELECT filtered('SELECT d.g, sum(1000 / (f.k - 1)) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT same_error('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k WHERE 1000 / (f.k - 500) >= 0 GROUP BY d.g');
SET enable_gpu_hashjoin = on;
-- what the scan itself computes of all rows
SELECT same_error('SELECT d.g, sum(q.x) FROM (SELECT k, 1000 / (k - 500) AS x FROM f UNION ALL SELECT k, id FROM f) q JOIN d ON q.k = d.k GROUP BY d.g');
RESET enable_gpu_hashjoin;
SELECT filtered('SELECT d.g, sum(q.x) FROM (SELECT k, id AS x FROM f UNION ALL SELECT k, v2 FROM f WHERE id > 100) q JOIN d ON q.k = d.k GROUP BY d.g');
CREATE TABLE parts (k int, id int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (2000);
CREATE TABLE parts2 (t text, id int, x int, k int);
ALTER TABLE parts2 DROP x;
ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (2000) TO (9999);
INSERT INTO parts SELECT k, id, lt FROM f;
ANALYZE parts;
SELECT filtered('SELECT d.g, count(*), sum(p.id) FROM parts p JOIN d ON p.k = d.k GROUP BY d.g');
SELECT filtered('SELECT d.g, count(*), sum(p.id) FROM parts p JOIN d ON p.t = d.lt AND p.k = d.i8s GROUP BY d.g');

-- rescans: the build side changes, the probe side changes, both stay
SELECT filtered('SELECT e.id, (SELECT string_agg(q::text, '','' ORDER BY q) FROM (SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.k = d.k WHERE d.g = e.g GROUP BY 1 OFFSET 0) q) FROM e');
SELECT filtered('SELECT e.id, (SELECT string_agg(q::text, '','' ORDER BY q) FROM (SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.lt = d.lt WHERE f.g = e.g GROUP BY 1 OFFSET 0) q) FROM e');
SELECT filtered_rows('SELECT e.id, (SELECT sum(q.id) FROM (SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.g = e.g OFFSET 0) q), (SELECT sum(q.id) FROM (SELECT f.id FROM f JOIN d ON f.lt = d.lt WHERE f.g = e.g OFFSET 0) q) FROM e');

-- parallel plans, with build sides that all participants read, too
CREATE TABLE large AS SELECT g AS k, g % 11 AS g, repeat('x', 60) AS pad, 'a long string, ' || g AS t FROM generate_series(1, 100000) g;
CREATE TABLE facts AS SELECT g AS id, g * 13 % 1000000 AS k, 'a long string, ' || g * 13 % 1000000 AS t FROM generate_series(1, 200000) g;
VACUUM ANALYZE large, facts;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_parallel_hash = off;
SELECT filtered('SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT filtered('SELECT l.g, count(*), sum(f.id) FROM facts f JOIN large l ON f.k = l.k GROUP BY l.g');
SELECT filtered('SELECT l.g, count(*), sum(f.id) FROM facts f JOIN large l ON f.k = l.k WHERE l.k % 3 = 1 GROUP BY l.g');
SELECT regexp_replace(filtered('SELECT l.g, count(*), sum(f.id) FROM facts f JOIN large l ON f.t = l.t GROUP BY l.g'), 'removes \d+', 'removes N');
SELECT filtered_rows('SELECT f.id, d.id FROM f JOIN d ON f.lt = d.lt');
SELECT filtered('SELECT e.id, (SELECT string_agg(q::text, '','' ORDER BY q) FROM (SELECT d.g, count(*), sum(f.id) FROM f JOIN d ON f.k = d.k GROUP BY 1 OFFSET 0) q) FROM e');
SET enable_gpu_hashjoin = on;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT l.g, count(*), sum(f.id) FROM facts f JOIN large l ON f.k = l.k GROUP BY l.g;
