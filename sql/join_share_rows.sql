--
-- Build sides that all participants of a parallel plan make together (GpuShareRows): groupings
-- and joins of their own.  Core joins after all where a side has rows that no device takes, or rows of
-- the probe side are left over; then it reads the files.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
CREATE TABLE f AS SELECT i AS id, i % 3001 AS k, i % 97 AS v, 'x' || i % 500 AS s, (i % 1000) * 0.01 AS n, repeat('long ', 5) || i % 5000 AS l FROM generate_series(1, 20000) i;
ALTER TABLE f ALTER n TYPE numeric(10,2);
CREATE TABLE d AS SELECT i AS id, i % 3000 AS k, i % 7 AS w, CASE WHEN i % 11 > 0 THEN repeat('y', i % 40) || i % 300 END AS t, CASE WHEN i % 5 > 0 THEN i % 3000 END AS o, repeat('long ', 5) || i AS l FROM generate_series(1, 30000) i;
CREATE TABLE c AS SELECT i AS k, i % 13 AS g, 'name ' || i AS name FROM generate_series(0, 2999) i;
ANALYZE f, d, c;
ALTER TABLE f SET (parallel_workers = 2);
ALTER TABLE d SET (parallel_workers = 2);
ALTER TABLE c SET (parallel_workers = 2);
-- whoever is asked for a complete side would make it alone
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_parallel_hash = off;
SET enable_hashagg = off;
SET enable_sort = off;
SET enable_nestloop = off;
SET gpurhh.row_cost = 0.0001;

-- compare() with such a node, the joins that a node is planned to do, and why they are not done
CREATE FUNCTION shared(query text, settings text DEFAULT NULL, node text DEFAULT 'GpuHashAgg') RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', compare(query, settings => used, node => 'GpuShareRows'),
		coalesce(analyze_json(query, used, node, 'COSTS ON') ->> 'Device Joins', '0') || ' joins',
		'not done: ' || (analyze_json(query, used, node) ->> 'Device Joins Declined'))
	FROM concat_ws(', ', 'enable_gpu_hashjoin=on', settings) AS used;
$f$;
\set of_groups 'SELECT f.v, q.m, count(*), sum(q.c), sum(f.n) FROM f JOIN (SELECT k, count(*) AS c, max(w) AS m FROM d GROUP BY k) q ON f.k = q.k GROUP BY f.v, q.m'
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) :of_groups;
RESET enable_gpu_hashjoin;
SELECT shared(:'of_groups');
SELECT shared(:'of_groups', 'parallel_leader_participation=off');
SELECT shared(:'of_groups', 'max_parallel_workers=0');
SELECT shared(:'of_groups', 'max_parallel_workers=1');
-- all participants make it
SELECT j -> 'Device Joins', j -> 'Joins' -> 0 -> 'Build Rows' FROM analyze_json(:'of_groups', 'enable_gpu_hashjoin=on') j;

-- other joins, keys and columns of all kinds, no rows, HAVING
SELECT shared('SELECT f.v, q.w, count(*) FROM f LEFT JOIN (SELECT o, max(w) AS w FROM d GROUP BY o) q ON f.k = q.o GROUP BY f.v, q.w');
SELECT shared('SELECT f.v, count(*), sum(f.n) FROM f WHERE f.k IN (SELECT k FROM d GROUP BY k HAVING sum(w) > 30) GROUP BY f.v');
SELECT shared('SELECT f.v, count(*) FROM f WHERE NOT EXISTS (SELECT FROM (SELECT o, count(*) AS c FROM d GROUP BY o) q WHERE q.o = f.k AND q.c > 9) GROUP BY f.v');
SELECT shared('SELECT f.v, count(*) FROM f JOIN (SELECT k, count(*) FROM d GROUP BY k HAVING count(*) > 1000) q ON f.k = q.k GROUP BY f.v');
SELECT shared('SELECT q.t, count(*), min(f.s) FROM f JOIN (SELECT t, k, avg(w) FROM d GROUP BY t, k) q ON f.k = q.k GROUP BY q.t');
SELECT shared('SELECT f.v, c.g, count(*) FROM f JOIN (SELECT k, count(*) FROM d GROUP BY k) q ON f.k = q.k JOIN c ON c.k = q.k GROUP BY f.v, c.g');
SELECT shared('SELECT f.v, count(*) FROM f JOIN (SELECT k, count(*) AS c FROM d GROUP BY k) q ON f.k = q.k JOIN (SELECT o, count(*) FROM d GROUP BY o) p ON f.k = p.o GROUP BY f.v', 'join_collapse_limit=1');

-- a side has strings that the dictionary does not take, so a part of its rows is not even fed
\set many 'FROM f WHERE NOT EXISTS (SELECT FROM (SELECT l, count(*) AS c FROM d GROUP BY l) q WHERE q.l = f.l AND q.c < f.v)'
\set no_room 'work_mem=64kB, hash_mem_multiplier=1, gpurhh.batch_rows=500'
SELECT DISTINCT shared('SELECT f.v, count(*) ' || :'many' || ' GROUP BY f.v', :'no_room') FROM generate_series(1, 3);
-- (whether the leader knows why the device has not joined depends on when workers end)
SELECT regexp_replace(shared('SELECT f.v, count(*) ' || :'many' || ' GROUP BY f.v', :'no_room' || ', parallel_leader_participation=off'), '; not done.*', '');
SELECT shared('SELECT f.v, count(*) ' || :'many' || ' GROUP BY f.v', :'no_room' || ', max_parallel_workers=0');
-- rows that are left over
\set left_over 'SELECT f.l, count(*), sum(q.m) FROM f JOIN (SELECT k, max(w) AS m FROM d GROUP BY k) q ON f.k = q.k GROUP BY f.l'
SELECT DISTINCT shared(:'left_over', 'work_mem=64kB, hash_mem_multiplier=1') FROM generate_series(1, 3);
SELECT (j ->> 'Rows Left to the Host')::int > 0 FROM analyze_json(:'left_over', 'enable_gpu_hashjoin=on, work_mem=64kB, hash_mem_multiplier=1') j;
SELECT shared('SELECT f.v, q.m, count(*), sum(1000 / (f.k - 3000)) FROM f JOIN (SELECT k, max(w) AS m FROM d GROUP BY k) q ON f.k = q.k GROUP BY f.v, q.m');
-- run anew by a nested loop
SELECT shared('SELECT i, q.v, q.c FROM generate_series(1, 3) i, (SELECT f.v, sum(q.c) AS c FROM f JOIN (SELECT k, count(*) AS c FROM d GROUP BY k) q ON f.k = q.k GROUP BY f.v) q WHERE q.v > i * 30', 'enable_nestloop=on, enable_material=off');
-- GpuHashJoin: each participant has a map of all rows
\set rows 'SELECT f.id, f.v, q.c FROM f JOIN (SELECT k, count(*) AS c FROM d GROUP BY k) q ON f.k = q.k'
SELECT shared(:'rows', node => 'GpuHashJoin');
SELECT shared(:'rows', 'parallel_leader_participation=off', node => 'GpuHashJoin');
-- a build side that has joins
SELECT shared('SELECT c.g, count(*), sum(f.v) FROM f JOIN (d JOIN c ON d.id = c.k) ON f.id = d.id GROUP BY c.g');

-- core's Append must not be asked again after its end, as it forgets where it is in a parallel plan
CREATE TABLE parts (i int, k int) PARTITION BY LIST (i);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT i % 2 + 1, i FROM generate_series(1, 40) i;
ANALYZE parts;
ALTER TABLE c SET (parallel_workers = 0);
SELECT shared('SELECT count(*), sum(f.v) FROM f LEFT JOIN (parts JOIN c ON (parts.k + c.k) % 7 + (parts.k * c.k) % 11 + (parts.k - c.k) % 5 + parts.k % 3 > 9) ON f.k = c.k AND c.g < 9', 'enable_nestloop=on');
ALTER TABLE c SET (parallel_workers = 2);

-- prepared, and as a table
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
PREPARE p AS SELECT sum(c) AS c, sum(m) AS m FROM (:of_groups) x(v, m, n, c, o);
EXECUTE p;
CREATE TABLE copied AS EXECUTE p;
TABLE copied;
-- the leader stops early
SELECT count(*) FROM (SELECT * FROM (:rows) x LIMIT 10) y;
SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
