--
-- Joins below a parallel GpuHashAgg for which participants have to wait for each other: build sides
-- that have no room and come in parts, and RIGHT and FULL joins.  And what becomes of those that the
-- device cannot do after all: one participant asks core's joins for all rows.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
\set helpers :srcdir '/sql/parallel.inc'
\i :helpers
SET max_parallel_workers_per_gather = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpurhh.row_cost = 0.001;
-- each pass reads the pages once more
SET seq_page_cost = 0;
SET work_mem = '64MB';
SET gpurhh_test.wrapped = off;

-- keys with duplicates, NULLs, and values that the other side lacks, on both sides; d is read by all participants together
CREATE TABLE f WITH (parallel_workers = 3) AS SELECT CASE WHEN g % 37 <> 0 THEN g * 7 % 30000 END AS k, CASE WHEN g % 11 <> 0 THEN g % 7 END AS k2, g % 9 AS g, g AS id, CASE WHEN g % 5 <> 0 THEN g % 101 END AS v,
	(g % 300 / 100.0)::numeric(8, 2) AS n, 't' || g % 40 AS t, g % 20000 AS many FROM generate_series(1, 42000) g;
CREATE TABLE d WITH (fillfactor = 15) AS SELECT CASE WHEN g % 17 <> 0 THEN g * 3 % 36000 END AS k, CASE WHEN g % 13 <> 0 THEN g % 7 END AS k2, g AS id, 'name ' || g % 12 AS name, CASE WHEN g % 6 <> 0 THEN g % 43 END AS w,
	g % 60 AS e FROM generate_series(1, 40000) g;
CREATE TABLE e AS SELECT CASE WHEN g % 10 <> 0 THEN g END AS id, g * 10 AS y, 'e' || g % 5 AS s FROM generate_series(0, 70) g;
CREATE INDEX ON f (id);
ALTER FUNCTION together(int) COST 0.01;
ANALYZE f, d, e;
SELECT relpages >= 1024 FROM pg_class WHERE relname = 'd';

-- what compare_parallel() says, whether the build sides come in parts, and why the device has not done the joins, if it has not
CREATE FUNCTION in_parallel(query text, settings text DEFAULT NULL, participants int DEFAULT 1, nodes int DEFAULT 1) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', compare_parallel(query, used, nodes => nodes, participants => participants),
		'passes ' || regexp_replace(jsonb_path_query_array(n, '$.Joins[*].Passes')::text, '[2-9]|\d\d', 'several', 'g'),
		'not done: ' || regexp_replace(n ->> 'Device Joins Declined', 'the device had no (room for all rows of|memory to finish) a build side', 'no room for a build side'))
	FROM concat_ws(', ', 'enable_gpu_hashjoin=on', settings) used, analyze_json(query, used) n $f$;
CREATE FUNCTION kinds(query text, settings text DEFAULT NULL, kinds text[] DEFAULT '{INNER,FULL}') RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT kind || ': ' || in_parallel(replace(query, '@', kind), settings) FROM unnest(kinds) kind $f$;
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT d.name, sum(f.v), count(*) FROM f FULL JOIN d ON f.k = d.k GROUP BY d.name;
SET enable_gpu_hashagg = off;
-- what is known of matches all participants know (join_rows_unmatched has more)
SET enable_parallel_hash = off;
EXPLAIN (COSTS OFF) SELECT d.name, f.v FROM f FULL JOIN d ON f.k = d.k;
RESET enable_parallel_hash;
SET enable_gpu_hashjoin = off;

-- every kind, in one round and in several
\set joins 'SELECT d.name, f.g, sum(f.v) AS s, count(*), count(f.v) AS c, sum(d.w) AS w, sum(d.e) AS e, count(f.id) AS i FROM f @ JOIN d ON f.k = d.k GROUP BY 1, 2'
SELECT m, kinds(:'joins', 'gpurhh.device_memory=' || m, '{INNER,LEFT,RIGHT,FULL}') FROM unnest('{64MB,1MB}'::text[]) m;
SELECT m, in_parallel(replace(:'joins', '@', 'FULL'), 'gpurhh.device_memory=' || m) FROM unnest('{4MB}'::text[]) m;
-- all take part
\set all 'SELECT d.name, f.g, sum(f.v) AS s, count(*), count(f.v) AS c, sum(d.w) AS w, sum(d.e) AS e, count(f.id) AS i FROM (SELECT * FROM f WHERE together(id) IS NOT NULL) f @ JOIN d ON f.k = d.k GROUP BY 1, 2'
SELECT m, kind, in_parallel(replace(:'all', '@', kind), 'gpurhh.device_memory=' || m, 4) FROM unnest('{64MB,1MB}'::text[]) m, unnest('{INNER,LEFT}'::text[]) kind;
-- workers that do not start, or not all; a leader that does not take part
SELECT s, in_parallel(replace(:'joins', '@', 'FULL'), s || ', gpurhh.device_memory=2MB') FROM unnest('{max_parallel_workers=0,max_parallel_workers=1,parallel_leader_participation=off,"max_parallel_workers=0, parallel_leader_participation=off"}'::text[]) s;

-- joins before and behind the one whose build side comes in parts, and chains with unmatched rows
SET join_collapse_limit = 1;
SELECT in_parallel('SELECT e.s, d.name, e2.s AS s2, count(*), sum(f.v), sum(d.id) AS i, sum(e2.y) AS y FROM f LEFT JOIN e ON f.v = e.id LEFT JOIN d ON f.k = d.k LEFT JOIN e e2 ON d.w = e2.id GROUP BY 1, 2, 3', 'gpurhh.device_memory=1MB');
SELECT in_parallel('SELECT e.s, d.name, count(*), sum(f.v), sum(d.w) AS w, sum(d.id) AS i FROM f LEFT JOIN e ON f.v = e.id FULL JOIN d ON f.k = d.k GROUP BY 1, 2', 'gpurhh.device_memory=' || m) FROM unnest('{64MB,1MB}'::text[]) m;
SELECT in_parallel(format('SELECT e.s, e2.s AS s2, count(*), sum(f.v), sum(d.w) AS w FROM f %s JOIN d ON f.k = d.k %s JOIN e ON d.w = e.id %s JOIN e e2 ON d.e = e2.id GROUP BY 1, 2', a, b, a)) FROM unnest('{RIGHT,FULL}'::text[]) a, unnest('{LEFT,FULL}'::text[]) b WHERE a <> b;
-- two build sides without room: each participant asks core; with a join that returns rows without a match, one for all
SELECT in_parallel('SELECT d.name, d2.name AS n2, sum(d.w), sum(d2.w) AS w2, count(*) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d d2 ON f.id = d2.id GROUP BY 1, 2', 'gpurhh.device_memory=1MB');
SELECT in_parallel('SELECT d.name, sum(d.w), count(*) FROM f FULL JOIN d ON f.k = d.k FULL JOIN d d2 ON f.id = d2.id GROUP BY d.name', 'gpurhh.device_memory=1MB' || s) FROM unnest('{"",", max_parallel_workers=1",", parallel_leader_participation=off"}'::text[]) s;
RESET join_collapse_limit;
SELECT in_parallel('SELECT f.g, count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k AND d.w < f.v AND d.k2 < f.v AND d.e <> f.v) GROUP BY f.g', 'gpurhh.device_memory=1MB');
SELECT in_parallel('SELECT f.g, f.k IS NULL AS n, count(*), sum(f.v) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k AND d.k2 = f.k2) GROUP BY 1, 2', 'gpurhh.device_memory=1MB');

-- rows that are left over are joined once, by core; where there can be no such rows, all participants stop, and one begins anew
CREATE TABLE odd WITH (parallel_workers = 3) AS SELECT * FROM unnest(ARRAY(SELECT ROW(id, k, g, CASE WHEN id % 6000 = 7 THEN 1.23456 ELSE n END) FROM f)) q(id int, k int, g int, n numeric(8, 2));
ANALYZE odd;
\set odd 'SELECT d.name, o.g, sum(o.n), count(*), max(o.n), sum(d.w) AS w, sum(d.e) AS e FROM odd o @ JOIN d ON o.k = d.k GROUP BY 1, 2'
SELECT m, kinds(:'odd', 'gpurhh.device_memory=' || m) FROM unnest('{64MB,1MB}'::text[]) m;
SELECT s, in_parallel(replace(:'odd', '@', 'FULL'), s) FROM unnest('{max_parallel_workers=0,max_parallel_workers=1,parallel_leader_participation=off}'::text[]) s;
-- so they do if a part has no room, in whichever pass: a key that most rows have
CREATE TABLE once WITH (parallel_workers = 3) AS SELECT g AS k, g % 5 AS g FROM generate_series(1, 100000) g;
SELECT format('CREATE TABLE hot%s AS SELECT CASE WHEN g %% 3 > 0 THEN %1$s ELSE g END AS k, g AS id, g %% 99 AS v FROM generate_series(1, 75000) g', n), format('ANALYZE hot%s', n) FROM generate_series(1, 2) n \gexec
ANALYZE once;
SELECT n, in_parallel(format('SELECT o.g, count(*), sum(h.id), sum(h.v) AS v FROM once o LEFT JOIN hot%s h ON o.k = h.k GROUP BY o.g', n), 'gpurhh.device_memory=1MB' || s) FROM generate_series(1, 2) n, unnest('{"",", parallel_leader_participation=off"}'::text[]) s WHERE n = 1 OR s = '';

-- groups that the device refuses, and further levels, in small batches
-- (which of the limits is met first depends on who comes first)
SELECT regexp_replace(in_parallel('SELECT f.many, d.name, count(*), sum(f.v), sum(d.e) AS e, sum(d.id) AS i FROM f FULL JOIN d ON f.k = d.k GROUP BY 1, 2', 'gpurhh.device_memory=1MB'), '; passes.*', '');
SELECT in_parallel('SELECT f.g, d.e, count(*), count(DISTINCT d.w) AS w, sum(d.id) AS i FROM f FULL JOIN d ON f.k = d.k GROUP BY ROLLUP (f.g, d.e)', 'gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1, gpurhh.batch_rows=64');
-- appends and indexes as the probe side: what the participants share begins again
CREATE TABLE parts (LIKE f) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (10000) WITH (parallel_workers = 3);
CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (10000) TO (100000) WITH (parallel_workers = 0);
INSERT INTO parts SELECT * FROM f;
ANALYZE parts;
SELECT in_parallel(replace(replace(:'joins', 'FROM f', 'FROM parts f'), '@', 'FULL'), 'gpurhh.device_memory=1MB');
-- (from 18 on d's scan does not cost more for being disabled, and neither may the passes; a bitmap is shared, so core joins)
\set cheap 'enable_parallel_hash=off, random_page_cost=0, cpu_index_tuple_cost=0, cpu_tuple_cost=0.0001, gpurhh.row_cost=0.0001, gpurhh.device_memory=1MB'
SELECT in_parallel(replace(:'joins', '@ JOIN d ON f.k = d.k', 'LEFT JOIN d ON f.k = d.k WHERE f.id BETWEEN 100 AND 42000'), 'enable_seqscan=off, enable_bitmapscan=off, ' || :'cheap');
SELECT in_parallel(replace(:'joins', '@ JOIN d ON f.k = d.k', 'LEFT JOIN d ON f.k = d.k WHERE f.id BETWEEN 100 AND 42000'), 'enable_seqscan=off, enable_indexscan=off, ' || :'cheap');
