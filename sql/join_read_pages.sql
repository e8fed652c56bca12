--
-- GpuHashJoin whose probe side's pages the device reads (exec/join_exec.c, exec/join_output.c).
--
-- It does so only if all sessions share a service (shared_preload_libraries), so the outputs do not say
-- how many pages it has read, but whether it has as it should.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
CREATE TABLE l (id int, o int, f int, a numeric(10, 2), s varchar(12), d date, x text);
INSERT INTO l SELECT i, i % 9001, i % 40, CASE WHEN i % 6 > 0 THEN (i % 500) * 0.25 END, 'line ' || i % 7, date '2020-01-01' + i % 90, repeat('long ', 5) || i % 300 FROM generate_series(1, 60000) i;
CREATE TABLE o (id int, later int, c int, w int, n numeric(12, 3), s varchar(12));
INSERT INTO o SELECT i, i + 5000, i % 701, i % 11, (i % 77) / 8.0, CASE WHEN i % 4 > 0 THEN 'order ' || i % 5 END FROM generate_series(1, 6000) i;
CREATE TABLE c (id int, g int, name text);
INSERT INTO c SELECT i, i % 13, 'name ' || i FROM generate_series(1, 700) i;
VACUUM ANALYZE l, o, c;
ALTER TABLE l SET (parallel_workers = 2);
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET enable_parallel_hash = off;
SET join_collapse_limit = 1;
SET gpurhh.row_cost = 0.0001;
SET gpurhh.read_pages = on;
SET max_parallel_workers_per_gather = 0;

-- compare(), and how many pages the device has read of the probe side, as expected: "all" (none has been sent
-- back), "back" (some have), "none"
CREATE FUNCTION paged(query text, expected text, settings text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $f$
DECLARE
	used text := concat_ws(', ', 'enable_gpu_hashjoin=on, enable_gpu_hashagg=off', settings);
	result text := compare(query, settings => used, node => 'GpuHashJoin');
	node jsonb := analyze_json(query, used, 'GpuHashJoin');
	n int := coalesce((node ->> 'Device Pages')::int, 0);
	back int := coalesce((node ->> 'Device Pages Sent Back')::int, 0);
	got text := CASE WHEN n = 0 THEN 'none' WHEN back = 0 THEN 'all' WHEN back < n THEN 'back' ELSE 'all back' END;
BEGIN
	IF current_setting('shared_preload_libraries') !~ 'gpurhh' AND n = 0 OR got = expected THEN
		RETURN concat_ws(', ', result, expected);
	END IF;
	RETURN format('%s, %s of %s pages back, expected: %s', result, back, n, expected);
END $f$;

SELECT paged('SELECT l.id, l.a, l.s, l.d, o.w, o.n, o.s FROM l JOIN o ON l.o = o.id', 'all');
SELECT paged('SELECT l.id, l.a, o.n FROM l JOIN o ON l.o = o.id', 'none', 'gpurhh.read_pages=off');
-- rows that WHERE drops, and what is computed
SELECT paged('SELECT l.id, o.w FROM l JOIN o ON l.o = o.id WHERE l.d < date ''2020-01-20'' AND l.f > 3', 'all');
SELECT paged('SELECT l.id * 2 + o.w, l.a * o.n FROM l JOIN o ON l.o = o.id WHERE l.a > 30', 'all');
SELECT paged('SELECT l.id, o.w FROM l JOIN o ON l.o = o.id WHERE l.f > 100', 'none');
-- few rows, or none, come out of many; and several joins
SELECT paged('SELECT l.id, c.name FROM l JOIN c ON l.o = c.id WHERE c.g = 5 AND c.id < 100', 'all');
SELECT paged('SELECT l.id, c.name, o.s FROM l JOIN o ON l.o = o.id JOIN c ON o.c = c.id WHERE c.g < 3', 'all');
SELECT paged('SELECT l.id, c.name FROM l JOIN c ON l.o = c.id WHERE c.g > 100', 'none');
-- other kinds of joins
SELECT paged('SELECT l.id, o.w, o.s FROM l LEFT JOIN o ON l.o = o.id AND o.w > 4', 'all');
SELECT paged('SELECT l.id FROM l WHERE EXISTS (SELECT FROM o WHERE l.o = o.id AND o.w = 3)', 'all');
SELECT paged('SELECT l.id, l.s FROM l WHERE NOT EXISTS (SELECT FROM o WHERE l.o = o.id AND o.w <> 3)', 'all');
SELECT paged('SELECT l.id, o.id, o.s FROM l RIGHT JOIN o ON l.o = o.later', 'all');
SELECT paged('SELECT l.id, o.id, l.d FROM l FULL JOIN o ON l.o = o.later', 'all');
SELECT paged('SELECT l.id, o.w FROM l JOIN o ON l.o = o.id AND l.f + 1 < o.w', 'all');

-- More comes out of a batch than there is room for.  The first ones have as many rows as one that nothing is known of;
-- what is too much for the memory goes to a file, and later ones have fewer rows.
CREATE TABLE few AS SELECT i % 40 AS f, i AS v, i::int8 AS w FROM generate_series(1, 6000) i;
CREATE TABLE fan AS SELECT i AS id, CASE WHEN i < 9000 THEN i % 40 ELSE -1 END AS f FROM generate_series(1, 9600) i;
VACUUM ANALYZE few, fan;
SELECT paged('SELECT l.id, few.v FROM l JOIN few ON l.f = few.f AND few.v < 120', 'all');
SELECT paged('SELECT count(*), sum(id), sum(v), count(w) FROM (SELECT fan.id, few.v, few.w FROM fan JOIN few ON fan.f = few.f OFFSET 0) q', 'all', 'work_mem=4GB');
SELECT paged('SELECT count(*), sum(id), sum(v), count(w) FROM (SELECT fan.id, few.v, few.w FROM fan LEFT JOIN few ON fan.f = few.f OFFSET 0) q', 'all', 'work_mem=4GB');
SELECT (node ->> 'Joined Rows on Disk')::int > 1000 OR current_setting('shared_preload_libraries') !~ 'gpurhh' AS on_disk
	FROM analyze_json('SELECT count(*), sum(v) FROM (SELECT fan.id, few.v FROM fan JOIN few ON fan.f = few.f OFFSET 0) q', 'enable_gpu_hashjoin=on, enable_gpu_hashagg=off', 'GpuHashJoin') node;

-- a cursor that rests: no page of a batch is pinned meanwhile, but those that core's scan has looked ahead for (from 17 on)
CREATE EXTENSION pg_buffercache;
CREATE FUNCTION pinned() RETURNS text LANGUAGE sql AS $f$
	SELECT CASE WHEN count(*) < 100 THEN 'few' ELSE count(*)::text END FROM pg_buffercache WHERE pinning_backends > 0 AND relfilenode = pg_relation_filenode('l')
$f$;
SET enable_gpu_hashjoin = on;
BEGIN;
DECLARE cur NO SCROLL CURSOR FOR SELECT l.id, o.w, l.s FROM l JOIN o ON l.o = o.id WHERE l.id % 100 = 7;
FETCH 3 FROM cur;
SELECT pinned();
MOVE 100 IN cur;
SELECT pinned();
DELETE FROM l WHERE id % 200 = 7;
UPDATE l SET s = 'changed' WHERE id % 200 = 107;
MOVE 290 IN cur;
FETCH ALL FROM cur;
SELECT pinned();
ROLLBACK;
-- what a transaction has changed itself is read from shared buffers
BEGIN;
DELETE FROM l WHERE id % 10 = 3;
UPDATE l SET o = o + 1, s = 'new' WHERE id % 10 = 4;
INSERT INTO l SELECT id + 100000, o, f, a, s FROM l WHERE id % 10 = 5;
RESET enable_gpu_hashjoin;
SELECT paged('SELECT l.id, l.s, o.w FROM l JOIN o ON l.o = o.id', 'all');
ROLLBACK;
-- a LIMIT needs few rows; the node is run anew, also with other parameters
SELECT paged('SELECT count(*), count(w) FROM (SELECT l.id, o.w FROM l JOIN o ON l.o = o.id OFFSET 0 LIMIT 10) q', 'all');
SELECT paged('SELECT i, q.* FROM generate_series(1, 3) i, LATERAL (SELECT l.id, o.w FROM l JOIN o ON l.o = o.id AND o.w = i OFFSET 0) q WHERE q.id % 3 = 0', 'all', 'enable_nestloop=on, enable_material=off');
SELECT paged('SELECT i, count(q.id), count(q.w) FROM generate_series(1, 3) i, LATERAL (SELECT l.id, o.w FROM l JOIN o ON l.o = o.id LIMIT 100 * i) q GROUP BY i', 'all', 'enable_nestloop=on, enable_material=off');

-- pages that come back: strings that are longer than the device reads; and rows that no column can have are left to core
CREATE TABLE mixed (id int, o int, s text, n numeric(6, 2));
INSERT INTO mixed SELECT i, i % 9001, CASE WHEN i % 997 = 0 THEN repeat('long ', 6) || i ELSE 'short ' || i % 100 END, (i % 100) / 4.0 FROM generate_series(1, 30000) i;
VACUUM ANALYZE mixed;
SELECT paged('SELECT mixed.id, mixed.s, o.w FROM mixed JOIN o ON mixed.o = o.id', 'back');
SELECT paged('SELECT mixed.id, mixed.s, o.w FROM mixed JOIN o ON mixed.o = o.id', 'back', 'work_mem=64kB, hash_mem_multiplier=1');
SELECT paged('SELECT mixed.id, mixed.s, o.w FROM mixed LEFT JOIN o ON mixed.o = o.id AND o.w < 4', 'back', 'work_mem=64kB, hash_mem_multiplier=1');
UPDATE mixed SET id = id WHERE id % 900 = 1;
VACUUM mixed;
UPDATE pg_attribute SET atttypmod = (6 << 16 | 1) + 4 WHERE attrelid = 'mixed'::regclass AND attname = 'n';
CREATE TABLE p AS SELECT i AS id, (i / 2.0)::numeric(6, 1) AS n FROM generate_series(1, 40) i;
ANALYZE p;
-- of a numeric that is returned all bytes are; of a key the value
SELECT paged('SELECT mixed.id, mixed.n * o.n FROM mixed JOIN o ON mixed.o = o.id', 'all');
SELECT paged('SELECT mixed.id, p.id FROM mixed JOIN p ON mixed.n = p.n', 'all back');
-- most strings are long, so it makes columns
SELECT paged('SELECT l.id, l.x, o.w FROM l JOIN o ON l.o = o.id', 'none');

-- build sides that come in parts, so that the probe side is read several times
CREATE TABLE wide AS SELECT i AS id, i + 50000 AS later, i * 1::int8 AS a1, i * 2::int8 AS a2, i * 3::int8 AS a3, i * 4::int8 AS a4, i * 5::int8 AS a5, i * 6::int8 AS a6, i * 7::int8 AS a7, i * 8::int8 AS a8 FROM generate_series(1, 30000) i;
VACUUM ANALYZE wide;
SELECT paged('SELECT l.id, a1, a2, a3, a4, a5, a6, a7, a8 FROM l JOIN wide ON l.id = wide.id', 'all', 'gpurhh.device_memory=1MB');
SELECT paged('SELECT l.id, a1, a2, a3, a4, a5, a6, a7, a8 FROM l LEFT JOIN wide ON l.id = wide.id', 'all', 'gpurhh.device_memory=1MB');
SELECT paged('SELECT l.id, wide.id, a1, a2, a3, a4, a5, a6, a7, a8 FROM l RIGHT JOIN wide ON l.id = wide.later', 'all', 'gpurhh.device_memory=1MB');

-- several participants, each with a query of its own
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpurhh.row_cost = 0.01;
SELECT paged('SELECT l.id, l.a, l.s, o.w, o.n, o.s FROM l JOIN o ON l.o = o.id', 'all');
SELECT paged('SELECT l.id, c.name, o.s FROM l JOIN o ON l.o = o.id JOIN c ON o.c = c.id WHERE c.g < 3', 'all');
SELECT paged('SELECT l.id, o.w, o.s FROM l LEFT JOIN o ON l.o = o.id AND o.w > 4', 'all');
SELECT paged('SELECT l.id, o.id, o.s FROM l RIGHT JOIN o ON l.o = o.later', 'all');
SELECT paged('SELECT l.id, few.v FROM l JOIN few ON l.f = few.f AND few.v < 120', 'all');
SELECT paged('SELECT mixed.id, mixed.s, o.w FROM mixed JOIN o ON mixed.o = o.id', 'back', 'work_mem=64kB, hash_mem_multiplier=1');
-- where rows came as columns there would be a filter of the keys
SELECT paged('SELECT mixed.id, mixed.s, o.c FROM mixed JOIN o ON mixed.o = o.id AND o.w = 3', 'back');
