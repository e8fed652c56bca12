--
-- EXPLAIN of the node, in all formats.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

SET enable_gpu_hashagg = on;
CREATE TABLE t (id int PRIMARY KEY, k int, k2 int2, v int, w int8, u uuid);
INSERT INTO t SELECT g, g % 7, g % 3, g, g, md5((g % 5)::text)::uuid FROM generate_series(1, 1000) g;
ANALYZE t;
CREATE FUNCTION plan_of(query text, options text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
BEGIN
	FOR r IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		RETURN NEXT r."QUERY PLAN";
	END LOOP;
END $f$;
-- the same where it is one row: JSON, XML, YAML
CREATE FUNCTION document_of(query text, options text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	result text;
BEGIN
	EXECUTE format('EXPLAIN (%s) %s', options, query) INTO result;
	RETURN result;
END $f$;

-- keys, aggregates, filters, the device that was asked for
EXPLAIN (COSTS OFF) SELECT k, count(*), sum(v) FROM t GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k FROM t GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k + 1, k2, avg(w) FILTER (WHERE v > 3) + 1, count(u), min(v) FROM t WHERE v > 5 GROUP BY k + 1, k2 HAVING max(v) > 100 AND k2 > 0;
EXPLAIN (COSTS OFF) SELECT a.k, b.k2, sum(a.v + b.v) FROM t a JOIN t b USING (v) GROUP BY a.k, b.k2;
EXPLAIN (COSTS OFF) SELECT id, k, u, count(*) FROM t GROUP BY id;
SELECT line FROM plan_of('SELECT k, sum(v) * 2 AS twice, rank() OVER (ORDER BY sum(v)) FROM t GROUP BY k ORDER BY twice LIMIT 3', 'COSTS OFF') line WHERE line !~ ' Window: ';
EXPLAIN (COSTS OFF) SELECT DISTINCT count(*) FROM t GROUP BY k;
SELECT regexp_replace(regexp_replace(line, ' \(returns \$1\)$', ''), '\(InitPlan 2\)\.col1', '$1')
FROM plan_of('SELECT k, (SELECT max(x.v) FROM t x WHERE x.k = t.k) FROM t GROUP BY k HAVING count(*) > (SELECT 5)', 'COSTS OFF') line;
EXPLAIN (COSTS OFF) INSERT INTO t (id, v) SELECT k + 10000, count(*) FROM t GROUP BY k;
EXPLAIN (COSTS OFF) SELECT x.k2, count(*) FROM (SELECT k, k2, count(*) AS c FROM t GROUP BY k, k2) x GROUP BY x.k2;
SET gpurhh.device = 'cpu';
EXPLAIN (COSTS OFF, VERBOSE) SELECT k, count(*), sum(v) FROM t GROUP BY k;
EXPLAIN (COSTS OFF, VERBOSE) SELECT k + 1, count(*) FILTER (WHERE v > 3) + 1, 7 FROM t GROUP BY k + 1 HAVING sum(v) > 3;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, u, count(*) FROM t GROUP BY id;
EXPLAIN (COSTS OFF, VERBOSE) SELECT a.k, x.s FROM t a LEFT JOIN (SELECT k, sum(v) AS s FROM t GROUP BY k) x ON x.k = a.k;

-- SETTINGS shows those that are not as usual (the server's configuration may add
-- others to these)
SELECT setting[1] FROM plan_of('SELECT k FROM t GROUP BY k', 'COSTS OFF, SETTINGS') line, regexp_matches(line, '(?:enable_gpu\S+|gpurhh\.(?:device|\w+_cost)) = ''[^'']*''', 'g') setting WHERE line ~ '^Settings: ' ORDER BY 1;

-- ANALYZE: what happened, without the figures that depend on the machine
SELECT CASE WHEN line ~ '^ +(Input|Table|Probe Length):' THEN regexp_replace(regexp_replace(line, '\d+\.\d+', 'N.N', 'g'), '\d+ slots', 'N slots') ELSE replace(line, '.00 loops', ' loops') END
FROM plan_of('SELECT k, count(*), sum(v) FROM t GROUP BY k HAVING sum(v) > 71300', 'ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF') line;
SELECT CASE WHEN line ~ '^ +(Input|Table|Probe Length):' THEN regexp_replace(regexp_replace(line, '\d+\.\d+', 'N.N', 'g'), '\d+ slots', 'N slots') ELSE replace(line, '.00 loops', ' loops') END
FROM plan_of('SELECT k, count(*), sum(v) FROM t WHERE v < 0 GROUP BY k', 'ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF') line;
SELECT count(*) FROM plan_of('SELECT k, count(*), sum(v) FROM t GROUP BY k', 'ANALYZE, COSTS OFF, BUFFERS') line WHERE line ~ '^ +Feed Time: \d+\.\d{3} ms  Pool Wait: \d+\.\d{3} ms  Emit Time: \d+\.\d{3} ms$';
SELECT count(*) FROM plan_of('SELECT k, count(*), sum(v) FROM t GROUP BY k', 'ANALYZE, COSTS OFF, BUFFERS') line WHERE line ~ '^ +Upload Time: \d+\.\d{3} ms  Kernel Time: \d+\.\d{3} ms  Extract Time: \d+\.\d{3} ms$';
SELECT count(*) FROM plan_of('SELECT k, count(*), sum(v) FROM t GROUP BY k', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF') line WHERE line ~ 'Feed Time';
SELECT count(*) > 0 FROM plan_of('SELECT k, count(*), sum(v) FROM t GROUP BY k', 'ANALYZE, COSTS OFF, BUFFERS') line WHERE line ~ 'Buffers: shared hit';

-- JSON: the node's properties, before and after it ran
SELECT string_agg(key, ', ' ORDER BY key COLLATE "C") FROM jsonb_object_keys(first_node(document_of('SELECT k, count(*) FROM t GROUP BY k', 'FORMAT JSON, COSTS OFF')::jsonb)) key WHERE key <> 'Disabled';
SELECT string_agg(key, ', ' ORDER BY key COLLATE "C") FROM jsonb_object_keys(first_node(document_of('SELECT k, count(*) FROM t GROUP BY k', 'ANALYZE, BUFFERS OFF, FORMAT JSON, COSTS OFF')::jsonb)) key WHERE key <> 'Disabled';
SELECT string_agg(key, ', ' ORDER BY key COLLATE "C") FROM jsonb_object_keys(first_node(document_of('SELECT k FROM t GROUP BY k', 'ANALYZE, BUFFERS OFF, FORMAT JSON, COSTS OFF, TIMING OFF, SUMMARY OFF, VERBOSE')::jsonb)) key WHERE key <> 'Disabled';
SELECT j->'Group Key', j->'Aggregates', j->'Device', j->'Rows Fed', j->'Batches', j->'Groups', j->'Failed Slots', j->'Host Rows', j->'Spilled Records', (j->'Actual Rows')::float8, (j->'Longest Probe Length')::int BETWEEN 1 AND 21
FROM analyze_json('SELECT k, k2, count(*), sum(v) FROM t GROUP BY k, k2') j;
SELECT key, jsonb_typeof(value) FROM jsonb_each(analyze_json('SELECT k, k2, count(*), sum(v) FROM t GROUP BY k, k2')) WHERE key ~ 'Fed|Batches|Groups|Slots|Load|Memory|Probe|Rehashes|Duplicates|Host|Device' ORDER BY key COLLATE "C";
-- no rows
SELECT j->'Rows Fed', j->'Batches', j->'Groups', j->'Bytes Fed', j->'Average Probe Length' FROM analyze_json('SELECT k, count(*) FROM t WHERE v < 0 GROUP BY k') j;
-- several runs
SELECT j->'Actual Loops', j->'Rows Fed' FROM analyze_json('SELECT * FROM generate_series(1, 3) g, LATERAL (SELECT k2, count(*) FROM t WHERE k = g GROUP BY k2) x') j;

-- YAML and XML
SELECT count(*) FROM document_of('SELECT k, count(*) FROM t GROUP BY k', 'ANALYZE, FORMAT YAML, COSTS OFF') x, regexp_split_to_table(x, E'\n') line WHERE line ~ '^ +(Group Key: ?|Aggregates: ?|- "k"|- "count\(\*\)"|Device: "cpu"|Rows Fed: 1000|Groups: 7|Host Rows: 0|Load: [0-9.]+)$';
SELECT x ~ '<Group-Key>\s*<Item>k</Item>\s*</Group-Key>.*<Aggregates>\s*<Item>count\(\*\)</Item>.*<Device>cpu</Device>.*<Rows-Fed>1000</Rows-Fed>'
FROM document_of('SELECT k, count(*) FROM t GROUP BY k', 'ANALYZE, FORMAT XML, COSTS OFF') x;

-- joins that the device does, step by step: what comes in and goes out, the maps of the build
-- sides, filters; figures that depend on the device or on the hash function's seed are replaced
CREATE TABLE f AS SELECT g AS id, g % 40 AS k, g % 11 AS k2, g AS v FROM generate_series(1, 4000) g;
CREATE TABLE d AS SELECT g % 20 AS k, g AS w FROM generate_series(1, 40) g;
CREATE TABLE e AS SELECT nullif(g, 6) AS k2, 'e' || g AS name, g AS u FROM generate_series(1, 6) g;
ANALYZE f, d, e;
CREATE FUNCTION join_plan(query text, options text DEFAULT 'SUMMARY OFF') RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT regexp_replace(regexp_replace(regexp_replace(replace(line, '.00 loops', ' loops'), '\d+\.\d+', 'N.N', 'g'), '\d+ slots', 'N slots'), '\d+ longest', 'N longest')
	FROM plan_of(query, 'ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, ' || options) line WHERE line !~ '(Planning|Execution) Time' $f$;
SET enable_gpu_hashjoin = on;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpurhh.row_cost = 0.001;
SELECT join_plan('SELECT e.name, sum(f.v + d.w) FROM f JOIN d ON f.k = d.k LEFT JOIN e ON f.k2 = e.k2 WHERE f.v % 3 = 0 AND f.v + d.w > 1000 GROUP BY e.name');
SELECT join_plan('SELECT e.name, sum(f.v + d.w) FROM f JOIN d ON f.k = d.k LEFT JOIN e ON f.k2 = e.k2 WHERE f.v % 3 = 0 AND f.v + d.w > 1000 GROUP BY e.name', 'SUMMARY ON, VERBOSE');
SET enable_gpu_hashagg = off;
SELECT join_plan('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k WHERE f.v + d.w > 1000');
SELECT join_plan('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k WHERE f.v + d.w > 1000', 'SUMMARY ON');
SELECT join_plan('SELECT f.id, e.u FROM f FULL JOIN e ON f.k2 = e.k2');
-- the same as properties; of several runs it is the last one, but for what is fed
CREATE FUNCTION join_properties(query text, node text, VARIADIC path text[]) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT key || ': ' || CASE WHEN key ~ 'Slots|Load|Probe|Memory|Time|Bytes' THEN jsonb_typeof(value) ELSE value::text END
	FROM jsonb_each(analyze_json(query, NULL, node) #> path) WHERE jsonb_typeof(value) <> 'array' AND key ~ '^(Build|Average|Longest|Key|Pass|Rows (In|Joined|Removed by (Key|Join)|Fed|Left)|(Upload|Kernel|Fetch) Time)' ORDER BY key COLLATE "C" $f$;
SELECT join_properties('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k WHERE f.v + d.w > 1000', 'GpuHashJoin', 'Joins', '0');
SELECT join_properties('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k WHERE f.v + d.w > 1000', 'GpuHashJoin', VARIADIC '{}');
SELECT j -> 'Actual Loops', j #> '{Joins,0,Rows In}', j #> '{Joins,0,Rows Joined}', j -> 'Rows Fed' FROM analyze_json('SELECT (SELECT sum(q.w) FROM (SELECT d.w FROM f JOIN d ON f.k = d.k WHERE f.k2 <> e.u OFFSET 0) q) FROM e WHERE u < 4', NULL, 'GpuHashJoin') j;
SELECT count(*) FROM document_of('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k WHERE f.v + d.w > 1000', 'ANALYZE, FORMAT YAML, COSTS OFF') x, regexp_split_to_table(x, E'\n') line WHERE line ~ '^ +((- )?Build Rows: 40|Build Keys: 20|Rows In: 2000|Rows Joined: 4000|Rows Removed by Join Filter: 989|Key Filter: ".*"|Build Slots: \d+)$';
SELECT x ~ '<Joins>\s*<Join>\s*<Build-Rows>40</Build-Rows>.*<Build-Keys>20</Build-Keys>.*<Rows-Joined>4000</Rows-Joined>.*</Join>\s*</Joins>\s*<Rows-Removed-by-Join-Filter>\d+</Rows-Removed-by-Join-Filter>'
FROM document_of('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k WHERE f.v + d.w > 1000', 'ANALYZE, FORMAT XML, COSTS OFF') x;
-- from version 18 on: a node is not disabled because what is below it is
SET enable_seqscan = off;
CREATE FUNCTION disabled_nodes(query text) RETURNS bigint LANGUAGE sql AS $f$
	SELECT count(*) FROM (SELECT line, lag(line) OVER (ORDER BY n) AS above FROM plan_of(query, 'COSTS OFF') WITH ORDINALITY p (line, n)) q WHERE above ~ 'Custom Scan' AND line ~ 'Disabled' $f$;
SELECT disabled_nodes('SELECT f.id, d.w FROM f JOIN d ON f.k = d.k');
SET enable_gpu_hashagg = on;
SELECT disabled_nodes('SELECT f.id, count(*) FROM f GROUP BY f.id');
SELECT disabled_nodes('SELECT d.w, sum(q.n) FROM (SELECT k, count(*) AS n FROM f GROUP BY k) q JOIN d ON d.k = q.k GROUP BY d.w');
RESET enable_seqscan;
RESET enable_gpu_hashjoin;
RESET enable_mergejoin;
RESET enable_nestloop;
SET gpurhh.row_cost = 0;
SET enable_gpu_hashagg = on;

-- the names of columns and tables that need quotes
CREATE TABLE "Odd Name" ("Key, \" int, "value""" int);
INSERT INTO "Odd Name" VALUES (1, 1);
EXPLAIN (COSTS OFF, VERBOSE) SELECT "Key, \", sum("value""") FROM "Odd Name" GROUP BY 1;
SELECT j->'Group Key', j->'Aggregates' FROM analyze_json('SELECT "Key, \", sum("value""") FROM "Odd Name" GROUP BY 1') j;

-- without ANALYZE nothing is run
SELECT queries AS before FROM gpurhh_stat \gset
EXPLAIN (COSTS OFF) SELECT k, sum(1 / (v - v)) FROM t GROUP BY k;
SELECT queries - :before FROM gpurhh_stat;
