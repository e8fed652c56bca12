--
-- min() and max() of strings and enums over joins that the device does: a hidden key of all strings, which
-- the second level chooses from.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
\set helpers :srcdir '/sql/parallel.inc'
\i :helpers
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpurhh_test.wrapped = off;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE f AS SELECT g AS id, CASE WHEN g % 23 <> 0 THEN g % 60 END AS k, g % 7 AS g, CASE WHEN g % 11 <> 0 THEN 't' || g % 37 END AS t, (g % 13 || repeat(' ', g % 3))::char(5) AS c,
	repeat('long ', 5) || g % 500 AS lt, (ARRAY['sad', 'ok', 'happy', NULL])[g % 4 + 1]::mood AS m, repeat('key ', 4) || g % 60 AS lk FROM generate_series(1, 3000) g;
CREATE TABLE d AS SELECT g AS id, CASE WHEN g % 19 <> 0 THEN g % 80 END AS k, 'name ' || g % 9 AS name, CASE WHEN g % 7 <> 0 THEN 'u' || g % 17 END AS u, g % 6 AS e, 'another long name ' || g % 50 AS lu, repeat('key ', 4) || g % 80 AS lk FROM generate_series(1, 300) g;
CREATE TABLE e AS SELECT g AS id, chr(96 + g) AS s FROM generate_series(1, 5) g;
CREATE TABLE nothing (k int, t text);
ANALYZE f, d, e, nothing;
CREATE FUNCTION queries() RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT unnest(ARRAY['SELECT d.name, min(f.t) FROM f JOIN d ON f.k = d.k GROUP BY d.name', 'SELECT d.name, min(f.t), max(f.t), count(*) AS n, sum(f.id) FROM f JOIN d ON f.k = d.k GROUP BY d.name', 'SELECT f.g, min(d.u), max(f.t), max(d.name) AS name FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g',
		'SELECT f.g, min(d.u), max(f.c), min(f.c) AS c FROM f FULL JOIN d ON f.k = d.k GROUP BY f.g', 'SELECT f.g, min(f.lt), max(d.lu) FROM f JOIN d ON f.lk = d.lk GROUP BY f.g', 'SELECT min(f.lt), max(d.lu) FROM f JOIN d ON f.k = d.k', 'SELECT f.g, min(f.t) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND f.id < d.id) GROUP BY f.g',
		'SELECT f.g, d.e, min(f.t) FILTER (WHERE f.id % 2 = 0), max(d.u), grouping(f.g, d.e) AS sets FROM f JOIN d ON f.k = d.k GROUP BY ROLLUP (f.g, d.e)', 'SELECT f.t, min(f.t), max(d.u), min(e.s) AS s FROM f JOIN d ON f.k = d.k LEFT JOIN e ON d.e = e.id GROUP BY f.t', 'SELECT f.g, min(d.u COLLATE "C"), max(f.m) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g',
		'SELECT min(n.t), count(*) FROM f JOIN nothing n ON f.k = n.k', 'SELECT f.g, min(n.t), count(*) FROM f LEFT JOIN nothing n ON f.k = n.k GROUP BY f.g', 'SELECT f.g, min(f.t) FROM f JOIN d ON f.k = d.k GROUP BY f.g HAVING min(f.t) > ''t1'' AND count(*) > 3']) $f$;
SELECT q, joined(q) FROM queries() q;
-- an expression of a probe side is fed; one of both sides is core's; DISTINCT beside
SELECT joined(q) FROM unnest(ARRAY['SELECT f.g, min(CASE WHEN f.id > 9 THEN f.t END) FROM f JOIN d ON f.k = d.k GROUP BY f.g', 'SELECT f.g, min(f.t || d.u) FROM f JOIN d ON f.k = d.k GROUP BY f.g', 'SELECT f.g, max(f.t), min(DISTINCT d.u) FROM f JOIN d ON f.k = d.k GROUP BY f.g']) q;
-- a dictionary that is full, batches of few rows, memory for few groups; both sides have strings
SELECT s, q, joined(q, s) FROM unnest('{"work_mem=64kB, hash_mem_multiplier=1","gpurhh.batch_rows=64, gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1"}'::text[]) s, queries() q WHERE q ~ 'lt|FULL';

-- more strings than was thought, for which the dictionary has no room: rows of the probe side are left over, and a build side is core's
CREATE TABLE late (LIKE f) WITH (autovacuum_enabled = off);
INSERT INTO late SELECT * FROM f WHERE id <= 50;
ANALYZE late;
INSERT INTO late SELECT id + 50, k, g, t, c, 'very long ' || lt || id, m, lk FROM f;
SELECT joined(q, 'work_mem=64kB, hash_mem_multiplier=1') FROM unnest(ARRAY['SELECT l.g, min(l.lt), max(l.lt), count(*) FROM late l JOIN d ON l.k = d.k GROUP BY l.g', 'SELECT d.e, max(l.lt), min(d.u), count(*) FROM late l JOIN d ON l.k = d.k GROUP BY d.e', 'SELECT f.g, min(l.lt), count(*) FROM f LEFT JOIN late l ON f.id = l.id GROUP BY f.g']) q;

-- values that are not as their type declares
CREATE TABLE odd AS SELECT q.* FROM generate_series(1, 300) i, unnest(ARRAY[ROW(i % 60, i % 4, ((ARRAY['a', 'b ', 'cd      ', 'abcd', 'abcdefg', 'äé', 'longer than  '])[1 + i % 7])::bpchar)]) q(k int, g int, c char(4));
ANALYZE odd;
SELECT joined(q) FROM unnest(ARRAY['SELECT o.g, min(o.c), max(o.c) FROM odd o JOIN d ON o.k = d.k GROUP BY o.g', 'SELECT f.g, min(o.c), max(o.c), count(*) FROM f LEFT JOIN odd o ON o.k = f.k GROUP BY f.g']) q;

-- parallel
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpurhh.row_cost = 0.001;
ALTER TABLE f SET (parallel_workers = 2);
SELECT compare_parallel(q, 'enable_gpu_hashjoin=on'), analyze_json(q, 'enable_gpu_hashjoin=on') ->> 'Device Joins' FROM queries() q WHERE q ~ 'count.*sum|FULL';
