--
-- Joins whose build side has no room in the device's memory, so that it comes in parts and the
-- probe side is read once for each: every kind of join, with duplicates and NULLs on both sides,
-- in chains, with rows that are left over or refused, and what cannot be done in this way.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET max_parallel_workers_per_gather = 0;
SET gpurhh.row_cost = 0.001;
SET work_mem = '64MB';

-- keys with duplicates, NULLs, and values that the other side lacks, on both sides
CREATE TABLE f AS SELECT CASE WHEN g % 37 <> 0 THEN g * 7 % 45000 END AS k, CASE WHEN g % 11 <> 0 THEN g % 7 END AS k2, g % 9 AS g, g AS id, CASE WHEN g % 5 <> 0 THEN g % 101 END AS v,
	(g % 300 / 100.0)::numeric(8, 2) AS n, 't' || g % 40 AS t, repeat('key ', 4) || g * 7 % 45000 AS lk, g % 20000 AS many FROM generate_series(1, 60000) g;
CREATE TABLE d AS SELECT CASE WHEN g % 17 <> 0 THEN g * 3 % 50000 END AS k, CASE WHEN g % 13 <> 0 THEN g % 7 END AS k2, g AS id, 'name ' || g % 12 AS name, CASE WHEN g % 6 <> 0 THEN g % 43 END AS w,
	g % 60 AS e, (g / 8.0)::numeric(9, 3) AS n3, repeat('key ', 4) || g * 3 % 50000 AS lk FROM generate_series(1, 60000) g;
CREATE TABLE e AS SELECT CASE WHEN g % 10 <> 0 THEN g END AS id, g * 10 AS y, 'e' || g % 5 AS s FROM generate_series(0, 70) g;
ANALYZE f, d, e;

-- what compare.inc's joined() says, and for each join whether its build side comes in parts
-- a GPU may find out only when the side is complete
CREATE FUNCTION no_room(answer text) RETURNS text LANGUAGE sql AS $f$
	SELECT regexp_replace(answer, 'the device had no (room for all rows of|memory to finish) a build side', 'no room for a build side', 'g') $f$;
CREATE FUNCTION passes(query text, settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', no_room(joined(query, used)), 'passes ' || regexp_replace(jsonb_path_query_array(n, '$.Joins[*].Passes')::text, '[2-9]|\d\d', 'several', 'g'))
	FROM concat_ws(', ', 'enable_gpu_hashjoin=on, gpurhh.device_memory=1MB', settings) used, analyze_json(query, used) n $f$;
SELECT m, passes('SELECT f.g, sum(d.w), count(*) FROM f JOIN d ON f.k = d.k GROUP BY f.g', 'gpurhh.device_memory=' || m) FROM unnest('{0,64MB,1MB}'::text[]) m;
SELECT m, joined('SELECT f.g, sum(d.w), count(*), sum(d.e), sum(d.id) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', 'gpurhh.device_memory=' || m) FROM unnest('{32MB,16MB,8MB,4MB,3MB,2MB}'::text[]) m;
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
SET gpurhh.device_memory = '1MB';
CREATE FUNCTION join_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Join|Key Filter' THEN
			RETURN NEXT regexp_replace(regexp_replace(line, '\d+(\.\d+)? (MB|passes|rows in)', 'several \2', 'g'), 'Removed by Key Filter: \d+', 'Removed by Key Filter: several');
		END IF;
	END LOOP;
END $f$;
SELECT join_lines('SELECT f.g, sum(d.w), count(*) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- a filter of keys has those of the whole side
CREATE TABLE p AS SELECT g AS id FROM generate_series(1, 200000) g;
ANALYZE p;
SELECT join_lines('SELECT sum(d.w), count(*) FROM p JOIN d ON p.id = d.k');
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;
RESET gpurhh.device_memory;

-- every kind
CREATE FUNCTION kinds(query text, settings text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT kind || ': ' || passes(replace(query, '@', kind), settings) FROM unnest('{INNER,LEFT,RIGHT,FULL}'::text[]) kind $f$;
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.v), count(f.id) FROM f @ JOIN d ON f.k = d.k GROUP BY d.name');
SELECT kinds('SELECT f.g, d.k2, sum(d.w), count(*), count(d.id), sum(f.v) FROM f @ JOIN d ON f.k = d.k AND f.k2 = d.k2 GROUP BY 1, 2');
SELECT kinds('SELECT f.k IS NULL, d.k IS NULL, count(*), count(f.id), count(d.id), sum(f.id), sum(d.id) FROM f @ JOIN d ON f.k = d.k GROUP BY 1, 2');
SELECT kinds('SELECT f.g, d.e, count(*), sum(f.n * d.n3), sum(f.v + d.w) FROM f @ JOIN d ON f.lk = d.lk GROUP BY 1, 2', 'gpurhh.device_memory=2MB');
SELECT passes('SELECT f.g, count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k) GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(f.v) FROM f WHERE k IN (SELECT k FROM d WHERE w > 3) GROUP BY f.g', 'gpurhh.device_memory=1MB');
SELECT passes('SELECT f.g, f.k IS NULL, count(*), sum(f.v) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k) GROUP BY 1, 2');
SELECT passes('SELECT f.g, count(*), sum(f.v), count(d.id) FROM f LEFT JOIN d ON d.k = f.k AND d.w < f.v GROUP BY f.g');
SELECT passes('SELECT f.g, count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k AND d.w < f.v) GROUP BY f.g');
SELECT passes('SELECT f.g, f.k IS NULL, count(*), sum(f.v) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k AND d.w < f.v) GROUP BY 1, 2');
SELECT passes('SELECT f.g, count(*), sum(f.v + d.w) FROM f JOIN d ON d.k = f.k AND d.w < f.v GROUP BY f.g');
SELECT passes('SELECT count(*), sum(f.v) FROM f LEFT JOIN d ON d.k = f.k WHERE d.id IS NULL');

-- joins before and behind the one whose build side comes in parts
SET join_collapse_limit = 1;
SELECT passes('SELECT e.s, e2.s, count(*), sum(f.v), sum(d.w), sum(e.y), sum(e2.y) FROM f JOIN e ON f.v = e.id JOIN d ON f.k = d.k JOIN e e2 ON d.w = e2.id GROUP BY 1, 2');
SELECT passes('SELECT e.s, e2.s, count(*), sum(f.v), sum(d.w), sum(e.y), sum(e2.y) FROM f LEFT JOIN e ON f.v = e.id LEFT JOIN d ON f.k = d.k LEFT JOIN e e2 ON d.w = e2.id GROUP BY 1, 2');
SELECT passes('SELECT e.s, count(*), sum(f.v), sum(d.w) FROM f LEFT JOIN e ON f.v = e.id FULL JOIN d ON f.k = d.k GROUP BY 1');
SELECT passes('SELECT f.g, count(*), sum(f.v), sum(e.y) FROM f JOIN e ON f.v = e.id WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k) AND EXISTS (SELECT FROM e x WHERE x.id = f.g) GROUP BY 1');
-- a key that is NULL because a join before has found nothing
SELECT passes('SELECT e.s, d.k IS NULL, count(*), sum(d.w) FROM f LEFT JOIN e ON f.v = e.id LEFT JOIN d ON e.y = d.k GROUP BY 1, 2');
RESET join_collapse_limit;

-- rows that are left over are joined once, by core
CREATE FUNCTION left_rows(query text) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', passes(query), 'left: ' || (analyze_json(query, 'enable_gpu_hashjoin=on, gpurhh.device_memory=1MB') ->> 'Rows Left to the Host')) $f$;
CREATE TABLE odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(id, k, CASE WHEN id % 6000 = 7 THEN 1.23456 ELSE n END) FROM (TABLE f UNION ALL TABLE f UNION ALL TABLE f) f)) q(id int, k int, n numeric(8, 2));
ANALYZE odd;
SELECT left_rows('SELECT d.name, sum(o.n), count(*), max(o.n), sum(d.w) FROM odd o JOIN d ON o.k = d.k GROUP BY d.name');
SELECT left_rows('SELECT d.name, sum(o.n), count(*), max(o.n), sum(d.w) FROM odd o LEFT JOIN d ON o.k = d.k GROUP BY d.name');
SELECT joined('SELECT o.k IS NULL, sum(o.n), count(*), max(o.n) FROM odd o WHERE NOT EXISTS (SELECT FROM d WHERE d.k = o.k AND d.w > 0) GROUP BY 1', 'gpurhh.device_memory=1MB');
-- an expression is computed for rows that have a match only: core looks at all rows of a page where one of them might raise an error
SELECT regexp_replace(left_rows('SELECT f.g, count(*), sum(1000 / (f.id - 74)), sum(d.w) FROM f JOIN d ON f.k = d.k GROUP BY f.g'), 'left: \d\d\d?$', 'left: a page');
SELECT either('SELECT f.g, count(*), sum(1000 / (f.id - 75)), sum(d.w) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- where there can be no such rows, the session gives up
SELECT kinds('SELECT d.name, sum(o.n), count(*), max(o.n), sum(d.w) FROM odd o @ JOIN d ON o.k = d.k GROUP BY d.name');
-- so it does if a part has no room, in whichever pass: a key that most rows have
CREATE TABLE once AS SELECT g AS k, g % 5 AS g FROM generate_series(1, 200000) g;
SELECT format('CREATE TABLE hot%s AS SELECT CASE WHEN g %% 3 > 0 THEN %1$s ELSE g END AS k, g AS id, g %% 99 AS v FROM generate_series(1, 75000) g', n), format('ANALYZE hot%s', n) FROM generate_series(1, 2) n \gexec
ANALYZE once;
SELECT n, passes(format('SELECT o.g, count(*), sum(h.id), sum(h.v) FROM once o LEFT JOIN hot%s h ON o.k = h.k GROUP BY o.g', n)) FROM generate_series(1, 2) n;

-- or if a side has other rows when it is read again, as a function is not what it is declared as: one row comes the first times only
CREATE FUNCTION comes(id int, times int) RETURNS bool STABLE COST 0.001 LANGUAGE plpgsql AS $f$
BEGIN
	PERFORM set_config('test.turn', (coalesce(nullif(current_setting('test.turn', true), ''), '0')::int + 1)::text, false);
	RETURN current_setting('test.turn')::int <= times;
END $f$;
SELECT analyze_json(q, 'enable_gpu_hashjoin=on, gpurhh.device_memory=1MB') -> 'Device Joins Declined' FROM (VALUES
	('SELECT f.g, count(*), sum(d.w), sum(f.v), sum(f.id), count(f.t) FROM f JOIN d ON f.k = d.k WHERE (f.id <> 100 OR comes(f.id, 1)) GROUP BY f.g'),
	('SELECT f.g, count(*), sum(d.w) FROM f LEFT JOIN d ON f.k = d.k AND (d.id <> 100 OR comes(d.id, 2)) GROUP BY f.g')) v(q);

-- groups that the device refuses in any of the passes
SELECT passes(q), (analyze_json(q, 'enable_gpu_hashjoin=on, gpurhh.device_memory=1MB') -> 'Host Rows')::int > 0 FROM (VALUES
	('SELECT f.many, count(*), sum(f.v + d.w), sum(d.id), sum(f.v) FROM f JOIN d ON f.k = d.k GROUP BY 1'), ('SELECT f.many, count(*), sum(f.v), sum(d.e), sum(d.id) FROM f LEFT JOIN d ON f.k = d.k GROUP BY 1'),
	('SELECT f.many, count(*), sum(f.v), sum(d.e), sum(d.id) FROM f FULL JOIN d ON f.k = d.k GROUP BY 1')) v(q);
-- and further levels
SELECT passes('SELECT f.g, d.e, count(*), count(DISTINCT d.w) FROM f JOIN d ON f.k = d.k GROUP BY ROLLUP (f.g, d.e)');
SELECT passes('SELECT f.g, min(d.name), sum(d.id), sum(d.w) FROM f JOIN d ON f.k = d.k GROUP BY 1');
SELECT passes('SELECT n, count(*) FROM (SELECT f.k, count(*) AS n FROM f JOIN d ON f.k = d.k GROUP BY f.k) q GROUP BY n');
-- few strings have room in the dictionary
SELECT passes('SELECT f.t, d.name, count(*) FROM f JOIN d ON f.k = d.k GROUP BY 1, 2', 'work_mem=64kB');

-- rescans, parameters, partitions, an index, a subquery
SELECT passes('SELECT v.x, q.* FROM generate_series(1, 3) v(x), LATERAL (SELECT f.g, count(*), sum(f.v), sum(d.w), sum(d.e), sum(d.id) FROM f JOIN d ON f.k = d.k AND d.id % 7 <> v.x GROUP BY f.g) q');
SELECT passes('SELECT v.x, (SELECT sum(d.w) + sum(d.e) + sum(d.id) FROM f JOIN d ON f.k = d.k WHERE f.g < v.x + 6) FROM generate_series(1, 3) v(x)');
CREATE TABLE parts (LIKE f) PARTITION BY RANGE (id);
CREATE TABLE part1 PARTITION OF parts FOR VALUES FROM (0) TO (30000);
CREATE TABLE part2 PARTITION OF parts FOR VALUES FROM (30000) TO (100000);
INSERT INTO parts SELECT * FROM f;
ANALYZE parts;
SELECT passes('SELECT p.g, sum(d.w), count(*) FROM parts p LEFT JOIN d ON p.k = d.k GROUP BY p.g');
SELECT passes('SELECT q.g, sum(d.w), count(*) FROM (SELECT k, g FROM f WHERE v < 90 UNION ALL SELECT k2, id FROM f WHERE id < 5) q JOIN d ON q.k = d.k GROUP BY q.g');
SELECT passes('SELECT f.g, sum(q.s), count(*) FROM f JOIN (SELECT k, w + 1 AS s, e FROM d OFFSET 0) q ON f.k = q.k GROUP BY f.g');
PREPARE p (int) AS SELECT f.g, sum(d.w), count(*) FROM f JOIN d ON f.k = d.k WHERE d.id > $1 AND f.id <> $1 GROUP BY f.g;
SET gpurhh.device_memory = '1MB';
CREATE TEMP TABLE core AS EXECUTE p(7);
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
CREATE TEMP TABLE ours AS EXECUTE p(7);
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;
RESET gpurhh.device_memory;
SELECT count(*) FROM (TABLE core EXCEPT ALL TABLE ours) q;
SELECT count(*) FROM (TABLE ours EXCEPT ALL TABLE core) q;

-- what cannot be read twice, or not in parts, is core's: what is volatile, samples, and LIMIT; in parallel plans all participants read in each pass (join_parallel)
SELECT passes('SELECT f.g, count(*) FROM f JOIN (SELECT k + (0 * random())::int AS k FROM d OFFSET 0) q ON f.k = q.k GROUP BY f.g');
SELECT passes('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k WHERE f.id + 0 * random() > 0 GROUP BY f.g');
SELECT passes('SELECT f.g, count(*) FROM f TABLESAMPLE SYSTEM (100) JOIN d ON f.k = d.k GROUP BY f.g');
SELECT passes('SELECT f.g, count(*) FROM f JOIN (SELECT * FROM d LIMIT 60000) q ON f.k = q.k AND f.k2 = q.k2 GROUP BY f.g');
\set parallel 'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2'
SELECT passes('SELECT f.g, count(*), sum(d.w) FROM f JOIN d ON f.k = d.k GROUP BY f.g', :'parallel');
-- two build sides without room (one of them may have, on a GPU); another join that returns rows without a match
SET join_collapse_limit = 1;
SELECT split_part(passes('SELECT f.g, count(*) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d d2 ON f.id = d2.id GROUP BY f.g'), ';', 1);
SELECT passes('SELECT d.name, count(*) FROM f FULL JOIN d ON f.k = d.k FULL JOIN d d2 ON f.id = d2.id GROUP BY d.name');
RESET join_collapse_limit;
