--
-- Right and full joins in a parallel plan of GpuHashJoin: all participants return what
-- comes of their parts of the probe side, and the last one the rows without a match.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
CREATE TABLE f AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN i * 7919 % 3000 END AS k, i % 97 AS v, 'x' || i % 500 AS s FROM generate_series(1, 20000) i;
CREATE TABLE d AS SELECT i AS id, CASE WHEN i % 11 > 0 THEN i % 4000 END AS k, i % 13 AS x, repeat('y', i % 30) || i % 300 AS t FROM generate_series(1, 6000) i;
CREATE TABLE e AS SELECT nullif(i, 9) AS x, i * 3 AS y FROM generate_series(5, 60) i;
ANALYZE f, d, e;
ALTER TABLE f SET (parallel_workers = 2);
ALTER TABLE d SET (parallel_workers = 2);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_parallel_hash = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpurhh.row_cost = 0.0001;
SET gpurhh.batch_rows = 500;

\set full 'SELECT f.id, f.v, d.id AS d, d.t FROM f FULL JOIN d ON f.k = d.k'
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) :full;
RESET enable_gpu_hashjoin;
CREATE FUNCTION parallel_rows(query text, settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT joined_rows(query, settings) || CASE WHEN EXISTS (SELECT FROM explained(query) line WHERE line ~ 'Parallel Custom Scan \(GpuHashJoin\)') THEN ', parallel' ELSE '' END
	FROM set_config('enable_gpu_hashjoin', 'on', true);
$f$;
-- with all participants, without the leader, with the leader alone
SELECT parallel_rows(:'full', s) FROM unnest('{parallel_leader_participation=on,parallel_leader_participation=off,max_parallel_workers=0,max_parallel_workers=1}'::text[]) s;
SELECT DISTINCT parallel_rows(:'full') FROM generate_series(1, 10);
-- other joins, one behind the other, and what is above in each participant
SELECT parallel_rows('SELECT f.id, d.id AS d, d.x FROM f RIGHT JOIN (SELECT * FROM d WHERE x > 3) d ON f.k = d.k');
SELECT parallel_rows('SELECT f.id, d.id AS d, e.y FROM f RIGHT JOIN d ON f.k = d.k LEFT JOIN e ON e.x = d.x');
SELECT parallel_rows('SELECT f.id, d.id AS d, e.y FROM f FULL JOIN d ON f.k = d.k FULL JOIN e ON e.x = d.x');
SELECT parallel_rows('SELECT f.id, d.id AS d, e.y FROM f JOIN d ON f.k = d.k FULL JOIN e ON e.x = d.x AND e.y = f.v');
SELECT parallel_rows('SELECT d.x, array_agg(f.v ORDER BY f.v), count(*) FROM f FULL JOIN d ON f.k = d.k GROUP BY d.x');
SELECT parallel_rows('SELECT f.id, d.id AS d FROM f FULL JOIN d ON f.k = d.k ORDER BY f.id, d.id');
SELECT parallel_rows('SELECT f.id, e.y FROM f FULL JOIN e ON f.v = e.x');
SELECT parallel_rows('SELECT f.id, e.y FROM f FULL JOIN (SELECT * FROM e WHERE y < 0) e ON f.v = e.x');
SELECT parallel_rows('SELECT f.id, e.y FROM (SELECT * FROM f WHERE v < 0) f FULL JOIN e ON f.v = e.x');
-- participants that are late have nothing to do
SELECT DISTINCT parallel_rows('SELECT f.id, e.y FROM f FULL JOIN e ON f.v = e.x', 'gpurhh.batch_rows=100000') FROM generate_series(1, 5);
-- run anew by a nested loop
SELECT parallel_rows('SELECT i, q.* FROM generate_series(1, 3) i, (SELECT f.id, e.y FROM f FULL JOIN e ON f.v = e.x) q WHERE q.y > i * 30 OR q.id > 19990', 'enable_nestloop=on, enable_material=off');
-- the leader stops early
SET enable_gpu_hashjoin = on;
SELECT count(*) FROM (SELECT * FROM (:full) x LIMIT 10) y;
RESET enable_gpu_hashjoin;
-- One participant has core do all of it if a build side has no room.  With right statistics, which
-- autovacuum may bring, a serial plan in several passes would be chosen.
CREATE TABLE wide WITH (autovacuum_enabled = off) AS SELECT i % 4000 AS k, i AS id, md5(i::text)::uuid AS u1, md5(i::text)::uuid AS u2, md5(i::text)::uuid AS u3, md5(i::text)::uuid AS u4, md5(i::text)::uuid AS u5, md5(i::text)::uuid AS u6, md5(i::text)::uuid AS u7, md5(i::text)::uuid AS u8, md5(i::text)::uuid AS u9, md5(i::text)::uuid AS u10, md5(i::text)::uuid AS u11, md5(i::text)::uuid AS u12 FROM generate_series(1, 15000) i;
ANALYZE wide;
UPDATE pg_class SET reltuples = 1500 WHERE oid = 'wide'::regclass;
SELECT DISTINCT parallel_rows('SELECT f.id, wide.* FROM f FULL JOIN wide ON f.k = wide.k', 'gpurhh.device_memory=1MB, parallel_leader_participation=' || leader)
FROM unnest('{on,on,on,off,off}'::text[]) leader;
-- values of the probe side that no device may take: rows would be left over, which cannot be
SET enable_gpu_hashjoin = on;
SELECT reason FROM gpurhh_refusals('SELECT f.id, d.id AS d FROM f FULL JOIN d ON f.s = d.t');
SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
