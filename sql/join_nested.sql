--
-- Build sides that other joins make: where the device reads pages it keeps what comes out of these joins, and no
-- row comes to a session (exec/nested_joins.c).
--
-- It does so only if all sessions share a service (shared_preload_libraries), so the outputs do not say
-- where rows are kept, but whether they are as they should.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
CREATE TABLE l (id int, o int, q numeric(10, 2), s varchar(12), d date, x text);
INSERT INTO l SELECT i, i % 9001, (i % 500) * 0.25, 'line ' || i % 7, date '2020-01-01' + i % 90, repeat('long ', 20) || i % 4000 FROM generate_series(1, 60000) i;
CREATE TABLE o (id int, c int, w int, n numeric(12, 3), s varchar(12), x text, sc text);
INSERT INTO o SELECT i, CASE WHEN i % 9 > 0 THEN i % 701 END, i % 11, (i % 77) / 8.0, CASE WHEN i % 4 > 0 THEN 'order ' || i % 5 END, repeat('long ', 5) || i % 3000, 'name ' || i % 700 FROM generate_series(1, 6000) i;
CREATE TABLE c (id int, g int, name text, long text, r int);
INSERT INTO c SELECT i, i % 13, 'name ' || i, repeat('long ', 6) || i % 50, i % 25 FROM generate_series(1, 700) i;
CREATE TABLE r (id int, name text);
INSERT INTO r SELECT i, 'region ' || i % 6 FROM generate_series(0, 24) i;
VACUUM ANALYZE l, o, c, r;
ALTER TABLE l SET (parallel_workers = 2);
ALTER TABLE o SET (parallel_workers = 2);
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET enable_hashagg = off;
SET enable_sort = off;
SET enable_parallel_hash = off;
SET join_collapse_limit = 1;
SET gpurhh.row_cost = 0.0001;
SET gpurhh.read_pages = on;
SET max_parallel_workers_per_gather = 0;

-- compare(), with so many nodes of joins in the plan, and whether the device keeps the rows of the first of
-- them, as expected: "kept", "rows" (the session gets them)
CREATE FUNCTION nested(query text, expected text, settings text DEFAULT NULL, nodes int DEFAULT 1) RETURNS text
LANGUAGE plpgsql AS $f$
DECLARE
	used text := concat_ws(', ', 'enable_gpu_hashjoin=on', settings);
	result text := compare(query, settings => used, node => 'GpuHashJoin', nodes => nodes);
	got text := CASE WHEN analyze_json(query, used, 'GpuHashJoin') ->> 'Rows' ~ '^kept' THEN 'kept' ELSE 'rows' END;
BEGIN
	IF current_setting('shared_preload_libraries') !~ 'gpurhh' AND got = 'rows' OR got = expected THEN
		RETURN concat_ws(', ', result, expected);
	END IF;
	RETURN format('%s, %s, expected: %s', result, got, expected);
END $f$;

\set query 'SELECT c.g, count(*), sum(l.q), sum(o.w), max(o.n) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY c.g'
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) :query;
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;
SELECT nested(:'query', 'kept');
-- the session makes columns
SELECT nested(:'query', 'rows', 'gpurhh.read_pages=off');
-- columns of all kinds, of both nested sides, and NULLs
SELECT nested('SELECT o.s, c.name, count(*), sum(l.q), sum(o.n) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY o.s, c.name', 'kept');
SELECT nested('SELECT c.long, o.n, count(*), min(o.w) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY c.long, o.n', 'kept');
SELECT nested('SELECT l.s, count(*), count(o.s), sum(c.g) FROM l LEFT JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY l.s', 'kept');
SELECT nested('SELECT l.s, count(*) FROM l WHERE NOT EXISTS (SELECT FROM o JOIN c ON o.c = c.id WHERE l.o = o.id) GROUP BY l.s', 'kept');
SELECT nested('SELECT l.s, count(*) FROM l WHERE l.o IN (SELECT o.id FROM o JOIN c ON o.c = c.id WHERE c.g < 4) GROUP BY l.s', 'kept');
-- keys that are strings, and several rows for a key
SELECT nested('SELECT c.g, count(*), sum(l.q) FROM l JOIN (o JOIN c ON o.sc = c.name) ON l.o = o.w GROUP BY c.g', 'kept');
SELECT nested('SELECT c.g, count(*), sum(o.n), sum(l.id) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.c GROUP BY c.g', 'kept');
SELECT nested('SELECT c.g, count(*), sum(l.id) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.s = c.name GROUP BY c.g', 'kept');
-- of the nested probe side the device reads no long strings
SELECT nested('SELECT c.g, count(*), sum(l.id) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.x = o.x GROUP BY c.g', 'rows');
-- other kinds of nested joins, but none with a condition
SELECT nested('SELECT c.g, o.s, count(*), sum(l.q) FROM l LEFT JOIN (o LEFT JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY c.g, o.s', 'kept');
SELECT nested('SELECT o.w, count(*) FROM l JOIN (SELECT * FROM o WHERE EXISTS (SELECT FROM c WHERE o.c = c.id AND c.g > 7)) o ON l.o = o.id GROUP BY o.w', 'kept');
SELECT nested('SELECT o.w, count(*) FROM l JOIN (SELECT * FROM o WHERE NOT EXISTS (SELECT FROM c WHERE o.c = c.id AND c.g > 7)) o ON l.o = o.id GROUP BY o.w', 'kept');
SELECT nested('SELECT c.g, count(*) FROM l JOIN (o JOIN c ON o.c = c.id AND o.w < c.g) ON l.o = o.id GROUP BY c.g', 'rows');
-- no row
SELECT nested('SELECT c.g, count(*) FROM l JOIN (o JOIN c ON o.c = c.id AND c.g > 100) ON l.o = o.id GROUP BY c.g', 'kept');
SELECT nested('SELECT l.s, count(*), count(o.id) FROM l LEFT JOIN (o JOIN c ON o.c = c.id AND c.name = ''nobody'') ON l.o = o.id GROUP BY l.s', 'kept');
-- joins in a build side of joins in a build side, and several of them
SELECT nested('SELECT r.name, count(*), sum(l.q) FROM l JOIN (o JOIN (c JOIN r ON c.r = r.id) ON o.c = c.id) ON l.o = o.id GROUP BY r.name', 'kept', nodes => 2);
SELECT nested('SELECT c.g, d.g, count(*), sum(l.q) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id JOIN (o p JOIN c d ON p.c = d.id) ON l.id = p.id GROUP BY c.g, d.g', 'kept', nodes => 2);
-- the node above is GpuHashJoin
SELECT nested('SELECT l.id, l.s, c.name FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id', 'rows', 'enable_gpu_hashagg=off, gpurhh.enable_key_filter=off', 2);

-- rows that the transaction has changed itself
BEGIN;
UPDATE o SET w = w + 100, c = c + 1 WHERE id % 50 = 0;
DELETE FROM o WHERE id % 60 = 1;
INSERT INTO o SELECT id + 100000, c, w FROM o WHERE id % 70 = 0;
SELECT nested('SELECT o.w, c.g, count(*), sum(l.q) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY o.w, c.g', 'kept');
ROLLBACK;
-- run anew, also with other parameters
SELECT nested('SELECT i, q.* FROM generate_series(1, 3) i, LATERAL (SELECT c.g, count(*), sum(l.q) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY c.g OFFSET 0) q WHERE q.g > i * 3', 'kept', 'enable_nestloop=on, enable_material=off');
SELECT nested('SELECT i, q.* FROM generate_series(1, 4) i, LATERAL (SELECT c.g, count(*), sum(l.q), sum(o.w), max(o.n) FROM l JOIN (o JOIN c ON o.c = c.id AND c.g <> i * 3) ON l.o = o.id GROUP BY c.g OFFSET 0) q', 'kept', 'enable_nestloop=on, enable_material=off');

-- what no column can have, or has no room, is left to core: of a nested side all of it, and rows of the probe side
\set few 'work_mem=256kB, hash_mem_multiplier=1, gpurhh.enable_key_filter=off'
\set fewer 'work_mem=64kB, hash_mem_multiplier=1, gpurhh.enable_key_filter=off'
CREATE TABLE odd AS SELECT i AS id, i % 700 AS c, i % 11 AS w, (i % 100)::numeric(6, 2) / 4 AS n FROM generate_series(1, 6000) i;
ALTER TABLE odd ALTER n TYPE numeric(6, 2);
UPDATE pg_attribute SET atttypmod = (6 << 16 | 1) + 4 WHERE attrelid = 'odd'::regclass AND attname = 'n';
CREATE TABLE longer AS SELECT id, g, ('long long long ' || id) AS x FROM c;
VACUUM ANALYZE odd, longer;
UPDATE longer SET x = repeat(x, 30);
VACUUM longer;
\set numerics 'SELECT c.g, count(*), sum(odd.n) FROM l JOIN (odd JOIN c ON odd.c = c.id) ON l.o = odd.id GROUP BY c.g'
\set strings 'SELECT longer.x, count(*), sum(l.q), sum(o.n) FROM l JOIN (o JOIN longer ON o.c = longer.id) ON l.o = o.id GROUP BY longer.x'
\set left_over 'SELECT l.x, count(*), sum(o.w) FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY l.x'
SELECT nested(:'numerics', 'rows');
SELECT nested(:'strings', 'kept');
SELECT nested(:'strings', 'rows', :'few');
SELECT nested(:'left_over', 'kept', :'few');
-- and what has no room on the device
CREATE TABLE wide AS SELECT i AS id, i % 701 AS c, i * 1::int8 AS a1, i * 2::int8 AS a2, i * 3::int8 AS a3, i * 4::int8 AS a4, i * 5::int8 AS a5, i * 6::int8 AS a6, i * 7::int8 AS a7, i * 8::int8 AS a8, i * 9::int8 AS a9, i * 10::int8 AS a10, i * 11::int8 AS a11, i * 12::int8 AS a12 FROM generate_series(1, 12000) i;
VACUUM ANALYZE wide;
\set wide 'SELECT c.g, count(*), sum(a1), sum(a2), sum(a3), sum(a4), sum(a5), sum(a6), sum(a7), sum(a8), sum(a9), sum(a10), sum(a11), sum(a12) FROM l JOIN (wide w JOIN c ON w.c = c.id) ON l.id = w.id GROUP BY c.g'
SELECT nested(:'wide', 'kept');
SELECT nested(:'wide', 'rows', 'gpurhh.device_memory=1MB');

-- all of it by several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) :query;
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;
SELECT nested(:'query', 'kept');
SELECT nested(:'query', 'kept', 'parallel_leader_participation=off');
SELECT nested(:'query', 'kept', 'max_parallel_workers=0');
SELECT nested(:'query', 'rows', 'gpurhh.read_pages=off');
SELECT nested('SELECT r.name, count(*), sum(l.q) FROM l JOIN (o JOIN (c JOIN r ON c.r = r.id) ON o.c = c.id) ON l.o = o.id GROUP BY r.name', 'kept');
SELECT nested('SELECT o.w, count(*), sum(l.q) FROM l JOIN (SELECT * FROM o WHERE id IN (SELECT o FROM l GROUP BY o HAVING sum(q) > 60)) o ON l.o = o.id GROUP BY o.w', 'kept');
SELECT nested('SELECT c.g, o.s, count(*), sum(l.q) FROM l LEFT JOIN (o LEFT JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY c.g, o.s', 'kept');
-- core joins after all, all of it or rows that are left over: nothing that participants share has been used up
CREATE FUNCTION in_parallel(query text, settings text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql AS $f$
	-- (what the leader knows of it depends on when workers end)
	SELECT DISTINCT regexp_replace(nested(query, 'kept', settings), '(ok, \d+ rows?).*', '\1') FROM generate_series(1, 3);
$f$;
SELECT in_parallel(:'numerics');
SELECT in_parallel(:'left_over', :'fewer');
-- (so many rows that several participants take part before it is known, and afterwards)
CREATE TABLE big AS SELECT i AS id, i % 700 AS c, i % 11 AS w, (i % 100 + CASE WHEN i > 140000 THEN 0.25 ELSE 0 END)::numeric(6, 2) AS n FROM generate_series(1, 150000) i;
ALTER TABLE big SET (parallel_workers = 2);
UPDATE pg_attribute SET atttypmod = (6 << 16 | 1) + 4 WHERE attrelid = 'big'::regclass AND attname = 'n';
VACUUM ANALYZE big;
\set many_numerics 'SELECT c.g, count(*), sum(big.n) FROM l JOIN (big JOIN c ON big.c = c.id AND c.g = 3) ON l.id = big.id GROUP BY c.g'
\set many_left_over 'SELECT l.x, count(*), sum(b.w) FROM l JOIN (SELECT * FROM big WHERE id IN (SELECT o FROM l GROUP BY o HAVING sum(q) > 60)) b ON l.o = b.id GROUP BY l.x'
SELECT in_parallel(:'many_numerics');
SELECT in_parallel(:'many_numerics', 'parallel_leader_participation=off');
-- (a grouping that participants share, in joins that make a build side of joins that make a build side)
ALTER TABLE odd SET (parallel_workers = 2);
CREATE TABLE p AS SELECT id, id % 5 AS w FROM o;
ALTER TABLE p SET (parallel_workers = 2);
ANALYZE p;
SELECT in_parallel('SELECT o.w, count(*), sum(odd.n) FROM l JOIN (odd JOIN (SELECT * FROM o WHERE id IN (SELECT o FROM l GROUP BY o HAVING sum(q) > 60)) o ON odd.id = o.id) ON l.o = odd.id GROUP BY o.w', 'gpurhh.enable_key_filter=off');
SELECT in_parallel('SELECT o.w, l.x, count(*) FROM l JOIN (p JOIN (o JOIN (SELECT w, sum(n) AS s FROM o GROUP BY w) a ON a.w = o.w) ON p.id = o.id) ON l.o = p.id GROUP BY l.x, o.w', :'fewer');
SELECT in_parallel(:'many_left_over', :'fewer');
SELECT in_parallel(:'many_left_over', :'fewer' || ', parallel_leader_participation=off');
-- run anew by a nested loop
SELECT nested('SELECT i, q.g, q.n FROM generate_series(1, 3) i, (SELECT c.g, count(*) AS n FROM l JOIN (o JOIN c ON o.c = c.id) ON l.o = o.id GROUP BY c.g) q WHERE q.g > i * 3', 'kept', 'enable_nestloop=on, enable_material=off');
SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
