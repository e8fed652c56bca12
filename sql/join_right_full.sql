--
-- RIGHT and FULL joins that the device does: rows of a build side that nothing has
-- matched come in the end, once each, and go through later joins as other rows do.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET max_parallel_workers_per_gather = 0;
-- with no cost at all a GpuHashAgg over a GpuHashJoin is as good as one that joins
SET gpurhh.row_cost = 0.001;

-- keys with duplicates, NULLs, and values that the other side lacks, on both sides
CREATE TABLE f AS SELECT CASE WHEN g % 37 <> 0 THEN g * 7 % 400 END AS k, CASE WHEN g % 11 <> 0 THEN g % 20 END AS k2, g % 9 AS g, g AS id, CASE WHEN g % 5 <> 0 THEN g % 101 END AS v,
	CASE WHEN g % 8 <> 0 THEN (g % 50 / 4.0)::float8 END AS x, (g % 300 / 100.0)::numeric(8, 2) AS n, 't' || g % 40 AS t, CASE WHEN g % 7 <> 0 THEN g % 3 = 0 END AS b FROM generate_series(1, 4000) g;
CREATE TABLE d AS SELECT CASE WHEN g % 17 <> 0 THEN g * 3 % 500 END AS k, CASE WHEN g % 13 <> 0 THEN g % 30 END AS k2, g AS id, 'name ' || g % 12 AS name, CASE WHEN g % 6 <> 0 THEN g % 43 END AS w,
	g % 60 AS e, (g / 8.0)::numeric(8, 3) AS n3, repeat('long ', g % 9) || g AS lt, g % 4 = 0 AS b FROM generate_series(1, 400) g;
CREATE TABLE e AS SELECT CASE WHEN g % 10 <> 0 THEN g END AS id, g * 10 AS y, g % 9 AS g, 'e' || g % 5 AS s FROM generate_series(0, 80) g;
-- each key once
CREATE TABLE u AS SELECT nullif(g * 4, 40) AS k, g AS z FROM generate_series(0, 150) g;
CREATE TABLE nothing (k int, w int);
CREATE TABLE nulls AS SELECT NULL::int AS k, g AS w FROM generate_series(1, 50) g;
ANALYZE f, d, e, u, nothing, nulls;
SET enable_gpu_hashjoin = on;
SET enable_gpu_hashagg = on;
-- the smaller table becomes the build side
EXPLAIN (COSTS OFF) SELECT d.name, sum(f.v) FROM d LEFT JOIN f ON f.k = d.k GROUP BY d.name;
EXPLAIN (COSTS OFF) SELECT d.name, sum(f.v) FROM f FULL JOIN d ON f.k = d.k GROUP BY d.name;
SET enable_gpu_hashagg = off;
EXPLAIN (COSTS OFF) SELECT d.name, f.v FROM d LEFT JOIN f ON f.k = d.k;
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;

-- both kinds, with groups of each side, one key and several, unique keys, empty sides and keys that are all NULL
CREATE FUNCTION kinds(query text) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT kind || ': ' || joined(replace(query, '@', kind)) FROM unnest('{RIGHT,FULL}'::text[]) kind $f$;
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.v), count(f.id) FROM f @ JOIN d ON f.k = d.k GROUP BY d.name');
SELECT kinds('SELECT f.g, sum(d.w), count(*), count(d.id) FROM f @ JOIN d ON f.k = d.k GROUP BY f.g');
SELECT kinds('SELECT d.name, f.g, sum(f.v), count(*), count(f.v) FROM f @ JOIN d ON f.k = d.k AND f.k2 = d.k2 GROUP BY 1, 2');
SELECT kinds('SELECT f.k, d.k, f.k2, d.k2, count(*), sum(f.id), sum(d.id) FROM f @ JOIN d ON f.k = d.k AND f.k2 = d.k2 GROUP BY 1, 2, 3, 4');
SELECT kinds('SELECT f.k, u.k, count(*), sum(f.id), sum(u.z) FROM f @ JOIN u ON f.k = u.k GROUP BY 1, 2');
SELECT kinds('SELECT count(*), count(f.id), count(d.id), sum(f.id), sum(d.id) FROM f @ JOIN d ON f.k = d.k');
SELECT kinds('SELECT f.g, n.w, count(*) FROM f @ JOIN nothing n ON f.k = n.k GROUP BY 1, 2');
SELECT kinds('SELECT f.g, n.w, count(*) FROM f @ JOIN nulls n ON f.k = n.k GROUP BY 1, 2');
SELECT kinds('SELECT d.name, count(n.w), count(*) FROM nothing n @ JOIN d ON n.k = d.k GROUP BY 1');
SELECT kinds('SELECT n.w, count(d.id), count(*) FROM d @ JOIN nulls n ON n.k = d.k GROUP BY 1');
SELECT kinds('SELECT n.w, m.w, count(*) FROM nulls n @ JOIN nulls m ON n.k = m.k GROUP BY 1, 2');
SELECT kinds('SELECT d.name, count(*), count(a.id), sum(a.id) FROM (SELECT * FROM f WHERE id < 0) a @ JOIN d ON a.k = d.k GROUP BY 1');
-- a small table with all its rows, and what a larger one has for them
SELECT joined('SELECT d.name, count(f.id), sum(f.v), max(f.x) FROM d LEFT JOIN f ON f.k = d.k GROUP BY d.name');

-- expressions of one side and of both, where columns are NULL because a side is missing
SELECT kinds('SELECT coalesce(f.k, d.k), sum(f.v), count(*), count(f.v) FROM f @ JOIN d ON f.k = d.k GROUP BY 1');
SELECT kinds('SELECT d.name, sum(f.v + d.w), sum(coalesce(f.v, -1)), sum(coalesce(d.w, -7)), count(f.v IS NULL OR NULL) FROM f @ JOIN d ON f.k = d.k GROUP BY 1');
SELECT kinds('SELECT d.name, count(*) FILTER (WHERE f.b), count(*) FILTER (WHERE f.b IS NOT TRUE), count(*) FILTER (WHERE f.v IS NULL), sum(f.v) FILTER (WHERE d.w > 20), count(*) FILTER (WHERE f.v > d.w) FROM f @ JOIN d ON f.k = d.k GROUP BY 1');
SELECT kinds('SELECT d.name, count(f.t = ''t7''), count(*) FILTER (WHERE f.t = ''t7''), count(*) FILTER (WHERE (f.t = ''t7'') IS NOT TRUE), sum(CASE WHEN f.t = ''t8'' THEN d.w END) FROM f @ JOIN d ON f.k = d.k GROUP BY 1');
SELECT kinds('SELECT d.name, count(*) FILTER (WHERE f.t IS DISTINCT FROM ''t7'') FROM f @ JOIN d ON f.k = d.k GROUP BY 1');
SELECT kinds('SELECT d.name, f.t, sum(f.n), avg(f.n * d.n3), max(f.x), min(f.n), count(*) FROM f @ JOIN d ON f.k = d.k GROUP BY 1, 2');
SELECT kinds('SELECT f.b, d.b, sum(2), count(*), sum(f.v * 2), sum(d.w - 1), avg(f.x) FROM f @ JOIN d ON f.k = d.k GROUP BY 1, 2');
SELECT kinds('SELECT d.name, 7 AS seven, count(*) FROM f @ JOIN d ON f.k = d.k GROUP BY 1, 2');
SELECT kinds('SELECT d.name, count(DISTINCT f.v), sum(DISTINCT f.g), grouping(f.g) FROM f @ JOIN d ON f.k = d.k GROUP BY GROUPING SETS ((d.name), (d.name, f.g), ())');

-- WHERE above the join, of one side, of both, and such that some rows raise an error if they are asked
SELECT kinds('SELECT d.name, sum(f.v), count(*) FROM f @ JOIN d ON f.k = d.k WHERE f.v IS NULL OR d.w < 20 OR d.w IS NULL GROUP BY 1');
SELECT kinds('SELECT d.name, sum(f.v), count(*) FROM f @ JOIN d ON f.k = d.k WHERE f.id IS NULL GROUP BY 1');
SELECT kinds('SELECT f.g, sum(f.v), count(*) FROM f @ JOIN d ON f.k = d.k WHERE d.id IS NULL OR f.id IS NULL GROUP BY 1');
SELECT kinds('SELECT d.name, f.g, count(*) FROM f @ JOIN d ON f.k = d.k WHERE coalesce(f.v, 0) + coalesce(d.w, 0) > 40 GROUP BY 1, 2');
SELECT kinds('SELECT d.name, count(*) FROM f @ JOIN d ON f.k = d.k WHERE CASE WHEN d.w <> 0 THEN coalesce(f.id, 9) / d.w > 5 ELSE true END GROUP BY 1');
-- in their ON, where conditions say what a match is: of both sides, of one, such that there is none, or that any is one
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.id), count(d.id) FROM f @ JOIN d ON f.k = d.k AND f.v > d.w GROUP BY 1');
SELECT kinds('SELECT d.name, f.g, sum(f.v), count(*), sum(d.w) FROM f @ JOIN d ON f.k = d.k AND f.k2 = d.k2 AND f.v <> d.w GROUP BY 1, 2');
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.v > 30 GROUP BY 1');
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND d.w < 20 GROUP BY 1');
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.v > 30 AND d.w < 20 GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id), count(d.id) FROM f @ JOIN d ON f.k = d.k AND (f.b OR d.b) GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id), count(d.id) FROM f @ JOIN d ON f.k = d.k AND (f.v IS NULL OR d.w IS NULL) GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id), count(d.id) FROM f @ JOIN d ON f.k = d.k AND f.id < 0 GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id), count(d.id) FROM f @ JOIN d ON f.k = d.k AND d.id > 0 GROUP BY 1');
SELECT kinds('SELECT f.k, u.k, count(*), sum(f.id), sum(u.z) FROM f @ JOIN u ON f.k = u.k AND f.v < u.z GROUP BY 1, 2');
SELECT kinds('SELECT d.name, n.w, count(*), count(d.id) FROM d @ JOIN nulls n ON d.k = n.k AND d.w < n.w GROUP BY 1, 2');
SELECT kinds('SELECT d.name, count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.t = ''t7'' AND d.name <> ''name 3'' GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.n < d.n3 GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.x > 5 GROUP BY 1');
-- and above it, too
SELECT kinds('SELECT d.name, sum(f.v), count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.v > d.w WHERE coalesce(f.v, 0) + coalesce(d.w, 0) > 40 GROUP BY 1');
-- many candidates for each row, of which few are matches
SELECT kinds('SELECT d.name, count(*), count(f.id), count(d.id), sum(f.id) FROM f @ JOIN d ON f.k2 = d.k2 AND f.id < d.id GROUP BY 1');
SELECT kinds('SELECT f.g, count(*), count(a.id), sum(a.id), count(f.id) FROM (SELECT * FROM f WHERE id % 4 = 0) a @ JOIN f ON a.k2 = f.k2 AND a.id <= f.id AND a.id >= f.id GROUP BY 1');
-- a condition that might be an error says so only where core asks it
SELECT kinds('SELECT d.name, count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.v / nullif(d.w, 0) > 1 GROUP BY 1');
SELECT kinds('SELECT d.name, count(*), count(f.id) FROM f @ JOIN d ON f.k = d.k AND f.v + 1 > d.w GROUP BY 1');
SELECT kinds('SELECT d.name, sum(f.v), count(*) FROM (SELECT * FROM f WHERE v > 30) f @ JOIN (SELECT * FROM d WHERE w < 30) d ON f.k = d.k GROUP BY 1');

-- chains: rows without a match of one join are matches of the next, or not
CREATE FUNCTION chains(query text) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT a || ', ' || b || ': ' || joined(replace(replace(query, '@1', a), '@2', b))
	FROM unnest('{"",LEFT,RIGHT,FULL}'::text[]) a, unnest('{"",LEFT,RIGHT,FULL}'::text[]) b WHERE a || b ~ 'RIGHT|FULL' $f$;
SELECT chains('SELECT d.name, e.y, sum(f.v), count(*), count(f.v) FROM f @1 JOIN d ON f.k = d.k @2 JOIN e ON d.e = e.id GROUP BY 1, 2');
SELECT chains('SELECT d.name, e.s, sum(f.v + e.y), count(*), count(d.id) FROM f @1 JOIN d ON f.k = d.k @2 JOIN e ON f.g = e.g GROUP BY 1, 2');
SELECT chains('SELECT e.s, count(*), count(f.id), count(d.id), count(u.z), sum(u.z - coalesce(e.y, 3)) FROM f @1 JOIN d ON f.k = d.k @2 JOIN e ON d.e = e.id FULL JOIN u ON d.k = u.k GROUP BY 1');
SELECT chains('SELECT e.s, count(*), count(f.id), count(d.id), count(u.z) FROM f @1 JOIN d ON f.k = d.k @2 JOIN e ON d.e = e.id LEFT JOIN u ON e.id = u.k AND f.k2 = u.z GROUP BY 1');
SELECT chains('SELECT e.s, count(*), count(f.id), count(d.id) FROM f @1 JOIN d ON f.k = d.k @2 JOIN e ON d.e = e.id WHERE NOT EXISTS (SELECT FROM u WHERE u.k = f.k) GROUP BY 1');
SELECT chains('SELECT e.s, count(*), count(f.id), count(d.id) FROM f @1 JOIN d ON f.k = d.k @2 JOIN e ON d.e = e.id WHERE EXISTS (SELECT FROM u WHERE u.k = d.k) GROUP BY 1');
SELECT chains('SELECT d.name, e.y, sum(f.v), count(*), count(f.v) FROM f @1 JOIN d ON f.k = d.k AND f.k2 <= d.k2 @2 JOIN e ON d.e = e.id AND d.w < e.y GROUP BY 1, 2');
-- a condition before such a join would drop rows that match; behind it, it drops rows of the output
SELECT joined('SELECT e.s, count(*), count(f.id), count(d.id) FROM f JOIN d ON f.k = d.k AND f.v < d.w RIGHT JOIN e ON d.e = e.id GROUP BY 1');
SELECT joined('SELECT e.s, count(*), count(q.id) FROM (SELECT f.id, d.e FROM f LEFT JOIN d ON f.k = d.k WHERE d.w IS NULL OR f.v < d.w) q FULL JOIN e ON q.e = e.id GROUP BY 1');
SELECT joined('SELECT e.s, count(*), count(f.id), count(d.id) FROM f RIGHT JOIN d ON f.k = d.k JOIN e ON d.e = e.id AND coalesce(f.v, 0) < e.y GROUP BY 1', 'gpurhh.enable_key_filter=off');

-- joined rows
SELECT kind || ': ' || joined_rows(format('SELECT f.k, f.v, f.x, f.b, d.* FROM f %s JOIN d ON f.k = d.k', kind)) FROM unnest('{RIGHT,FULL}'::text[]) kind;
SELECT kind || ': ' || joined_rows(format('SELECT f.k, f.v, u.* FROM f %s JOIN u ON f.k = u.k', kind)) FROM unnest('{RIGHT,FULL}'::text[]) kind;
SELECT kind || ': ' || joined_rows(format('SELECT f.id, d.id FROM f %s JOIN d ON f.k = d.k WHERE coalesce(f.v, 0) + coalesce(d.w, 0) > 40', kind)) FROM unnest('{RIGHT,FULL}'::text[]) kind;
SELECT kind || ': ' || joined_rows(format('SELECT f.id, d.lt, e.y FROM f %s JOIN d ON f.k = d.k FULL JOIN e ON d.e = e.id', kind)) FROM unnest('{LEFT,RIGHT,FULL}'::text[]) kind;
SELECT kind || ': ' || joined_rows(format('SELECT f.id, d.id FROM f %s JOIN d ON f.k = d.k AND f.v > d.w', kind)) FROM unnest('{RIGHT,FULL}'::text[]) kind;
SELECT kind || ': ' || joined_rows(format('SELECT f.id, d.id, e.y FROM f %s JOIN d ON f.k2 = d.k2 AND f.v > d.w FULL JOIN e ON d.e = e.id AND e.y > d.w', kind)) FROM unnest('{LEFT,RIGHT,FULL}'::text[]) kind;
SELECT joined_rows('SELECT f.id, d.id FROM f FULL JOIN d ON f.k = d.k', 'gpurhh.batch_rows=64');
SELECT joined_rows('SELECT f.id, d.id FROM f FULL JOIN d ON f.k2 = d.k2 AND f.v > d.w', 'gpurhh.batch_rows=64');
SELECT joined_rows('SELECT f.id, n.w FROM f FULL JOIN nulls n ON f.k = n.k');
SELECT joined_rows('SELECT n.k, n.w, d.id FROM nothing n FULL JOIN d ON n.k = d.k');
-- not with strings or numerics of the probe side, of which a row might have to be core's
SELECT joined_rows('SELECT f.id, f.t, d.id FROM f FULL JOIN d ON f.k = d.k', nodes => -1);
SELECT joined_rows('SELECT f.id, f.n, d.id FROM f FULL JOIN d ON f.k = d.k', nodes => -1);
SELECT joined_rows('SELECT f.id, d.id FROM f FULL JOIN d ON f.k = d.k WHERE f.t = ''t7'' OR d.w > 3', nodes => -1);

-- the device has no room for groups, for build sides, or has little memory
SELECT kinds('SELECT f.id, d.id, d.name, sum(f.v) FROM f @ JOIN d ON f.k = d.k GROUP BY 1, 2, 3');
SELECT joined('SELECT f.id, d.id, d.name, sum(f.v), count(*) FROM f FULL JOIN d ON f.k = d.k GROUP BY 1, 2, 3', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, gpurhh.batch_rows=64');
SELECT joined('SELECT a.id, b.id, sum(a.v), count(*) FROM f a FULL JOIN f b ON a.k = b.k AND a.k2 = b.k2 GROUP BY 1, 2', 'gpurhh.device_memory=1MB');
SELECT joined('SELECT a.g, count(b.g) FROM generate_series(1, 200000) a(g) FULL JOIN generate_series(150000, 350000) b(g) ON a.g = b.g GROUP BY 1', 'gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1');
SELECT joined_rows('SELECT a.g, b.g AS h FROM generate_series(1, 200000) a(g) FULL JOIN generate_series(150000, 350000) b(g) ON a.g = b.g', 'gpurhh.device_memory=1MB');

-- a row of the probe side that no device takes: all is core's, even where groups have been made
CREATE TABLE strange (LIKE f);
INSERT INTO strange SELECT * FROM f;
ALTER TABLE strange ALTER t TYPE text;
ANALYZE strange;
UPDATE strange SET t = repeat('long ', 9) || id;
SELECT kinds('SELECT s.t, d.name, count(*), sum(s.v) FROM strange s @ JOIN d ON s.k = d.k GROUP BY 1, 2');
SELECT joined(format('SELECT s.t, d.name, count(*), sum(s.v) FROM strange s %s JOIN d ON s.k = d.k GROUP BY 1, 2', kind), 'work_mem=64kB, hash_mem_multiplier=1') FROM unnest('{RIGHT,FULL}'::text[]) kind;
SELECT joined('SELECT s.t, d.name, count(*), sum(s.v) FROM strange s FULL JOIN d ON s.k = d.k GROUP BY 1, 2', 'work_mem=64kB, hash_mem_multiplier=1, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, gpurhh.batch_rows=64');
-- a numeric that is not as its type declares
CREATE TABLE odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(id, CASE WHEN id = 3990 THEN 1.23456 ELSE n END) FROM f)) q(id int, n numeric(8, 2));
ANALYZE odd;
-- the row has no match, and a filter of the keys would drop it
SET gpurhh.enable_key_filter = off;
SELECT kinds('SELECT d.name, sum(o.n), count(*), max(o.n) FROM odd o @ JOIN d ON o.id = d.id GROUP BY 1');
CREATE TABLE parts (LIKE odd) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (1) TO (2000);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (2000) TO (9999);
INSERT INTO parts SELECT * FROM odd;
ANALYZE parts;
SELECT kinds('SELECT d.name, sum(o.n), count(*), max(o.n) FROM parts o @ JOIN d ON o.id = d.id GROUP BY 1');
RESET gpurhh.enable_key_filter;
SELECT joined('SELECT d.name, count(*), count(o.id) FROM parts o FULL JOIN d ON o.id = d.id GROUP BY 1');
-- in some runs of several
SELECT joined('SELECT e.id, (SELECT string_agg(q::text, '','' ORDER BY q) FROM (SELECT d.name, count(o.id), sum(o.n) FROM (SELECT * FROM odd WHERE id % 9 = e.g) o FULL JOIN d ON o.id = d.id GROUP BY 1 OFFSET 0) q) FROM e WHERE id < 30');
-- an expression of the probe side that raises an error, or would
SELECT kinds('SELECT d.name, sum(100 / (f.id - 4000)) FROM (SELECT * FROM f WHERE id < 4000) f @ JOIN d ON f.k = d.k GROUP BY 1');
SELECT kinds('SELECT d.name, count(n.w), sum(100 / (f.id - 3700)) FROM f JOIN nulls n ON f.k = n.k @ JOIN d ON n.k = d.k GROUP BY 1');
SET enable_gpu_hashjoin = on;
SELECT sqlstate_of('SELECT d.name, sum(100 / (f.id - 3)) FROM f FULL JOIN d ON f.k = d.k GROUP BY 1');
RESET enable_gpu_hashjoin;

-- read again, from parameters and with other ones; prepared statements, limits and cursors
SELECT joined('SELECT e.id, q.* FROM e LEFT JOIN LATERAL (SELECT count(*), sum(f.v), sum(d.w), count(d.id) FROM (SELECT * FROM f WHERE f.g = e.g) f FULL JOIN d ON f.k = d.k) q ON true', nodes => 1);
SELECT joined_rows('SELECT e.id, (SELECT sum(q.w) FROM (SELECT d.w FROM (SELECT * FROM f WHERE f.g = e.g) f RIGHT JOIN d ON f.k = d.k OFFSET 0) q) FROM e');
SELECT joined('SELECT e.id, (SELECT string_agg(q::text, '','' ORDER BY q) FROM (SELECT d.name, count(f.id), sum(f.n) FROM (SELECT * FROM f WHERE f.g = e.g) f FULL JOIN d ON f.k = d.k GROUP BY 1 OFFSET 0) q) FROM e WHERE id < 12', nodes => 1);
SET enable_gpu_hashjoin = on;
SET enable_gpu_hashagg = off;
SELECT count(*) FROM (SELECT f.id, d.id FROM f FULL JOIN d ON f.k = d.k LIMIT 100) q;
SELECT count(*) FROM (SELECT f.id, d.id FROM f FULL JOIN d ON f.k = d.k OFFSET 1500 LIMIT 100000) q;
BEGIN;
DECLARE a CURSOR FOR SELECT f.id IS NULL AS alone FROM f RIGHT JOIN d ON f.k = d.k;
DECLARE b SCROLL CURSOR FOR SELECT f.id IS NULL AS a, d.id IS NULL AS b FROM f FULL JOIN d ON f.k = d.k;
DECLARE c CURSOR FOR SELECT 1 AS x FROM f a FULL JOIN f b ON a.k2 = b.k2;
FETCH 1 FROM a;
MOVE 3000 FROM b;
MOVE 1000 FROM c;
MOVE FORWARD ALL IN a;
MOVE FORWARD ALL IN b;
FETCH BACKWARD 1 FROM b;
MOVE 100000 IN c;
CLOSE a;
MOVE FORWARD ALL IN c;
ROLLBACK;
RESET enable_gpu_hashjoin;
RESET enable_gpu_hashagg;

-- in parallel plans
SELECT joined('SELECT d.name, sum(f.v), count(*), count(f.v) FROM f FULL JOIN d ON f.k = d.k GROUP BY d.name',
	'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2');
SELECT joined('SELECT d.name, sum(f.v), count(*), count(f.v) FROM d LEFT JOIN f ON f.k = d.k GROUP BY d.name',
	'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2, enable_gpu_hashagg=on');

-- NOT EXISTS and EXISTS of a large table: from PostgreSQL 16 and 18 on, the small one is the build side of a right antijoin
-- or semijoin, and its rows come in the end; before, the large one is the build side
CREATE FUNCTION exist(query text) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT kind || ': ' || regexp_replace(joined(replace(query, '@', kind)), ';.*', '') FROM unnest('{EXISTS,NOT EXISTS}'::text[]) kind $f$;
CREATE FUNCTION has_join(kind text, version int, query text) RETURNS bool LANGUAGE plpgsql SET enable_gpu_hashjoin = on AS $f$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
	RETURN current_setting('server_version_num')::int / 10000 < version OR (plan::text ~ ('"Join Type": "' || kind || '"') AND plan::text ~ '"Device Joins": 1');
END $f$;
SELECT has_join('Right Anti', 16, 'SELECT d.name, count(*) FROM d WHERE NOT EXISTS (SELECT FROM f WHERE f.k = d.k) GROUP BY 1');
SELECT has_join('Right Semi', 18, 'SELECT d.name, count(*) FROM d WHERE EXISTS (SELECT FROM f WHERE f.k = d.k) GROUP BY 1');
SELECT has_join('Right Anti', 16, 'SELECT d.name, count(*) FROM d WHERE NOT EXISTS (SELECT FROM f WHERE f.k = d.k AND f.v > d.w) GROUP BY 1');
SELECT has_join('Right Semi', 18, 'SELECT d.name, count(*) FROM d WHERE EXISTS (SELECT FROM f WHERE f.k = d.k AND f.v > d.w) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w), sum(d.n3) FROM d WHERE @ (SELECT FROM f WHERE f.k = d.k) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w) FROM d WHERE @ (SELECT FROM f WHERE f.k = d.k AND f.k2 = d.k2) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w) FROM d WHERE @ (SELECT FROM f WHERE f.k = d.k AND f.v > d.w) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w) FROM d WHERE @ (SELECT FROM f WHERE f.k2 = d.k2 AND f.id <= d.id AND f.id >= d.id) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w) FROM d WHERE @ (SELECT FROM f WHERE f.k2 = d.k2 AND f.id < d.w) GROUP BY 1');
SELECT exist('SELECT n.w, count(*) FROM nulls n WHERE @ (SELECT FROM f WHERE f.k = n.k) GROUP BY 1');
SELECT exist('SELECT u.z, count(*) FROM u WHERE @ (SELECT FROM f WHERE f.k = u.k AND f.v < u.z) GROUP BY 1');
SELECT exist('SELECT e.s, count(*), sum(e.y), sum(d.w) FROM d JOIN e ON d.e = e.id WHERE @ (SELECT FROM f WHERE f.k = d.k) GROUP BY 1');
SELECT exist('SELECT e.s, count(*), sum(e.y), sum(d.w) FROM d FULL JOIN e ON d.e = e.id WHERE @ (SELECT FROM f WHERE f.k = d.k) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w) FROM d WHERE @ (SELECT FROM f JOIN e ON f.g = e.g WHERE f.k = d.k) GROUP BY 1');
SELECT exist('SELECT d.name, count(*), sum(d.w) FROM d WHERE @ (SELECT FROM f WHERE f.k = d.k) AND @ (SELECT FROM f g WHERE g.k2 = d.k2 AND g.v = d.w) GROUP BY 1');
SELECT exist('SELECT d.id, d.name, count(*) FROM d WHERE @ (SELECT FROM f WHERE f.k = d.k AND f.t = ''t7'') GROUP BY 1, 2');
SELECT regexp_replace(joined('SELECT d.name, count(*) FROM d LEFT JOIN f ON f.k = d.k WHERE f.k IS NULL GROUP BY 1'), ';.*', '');
SELECT kind || ': ' || regexp_replace(joined_rows(format('SELECT d.id, d.lt FROM d WHERE %s (SELECT FROM f WHERE f.k = d.k)', kind)), ';.*', '') FROM unnest('{EXISTS,NOT EXISTS}'::text[]) kind;
SELECT kind || ': ' || regexp_replace(joined_rows(format('SELECT d.id, d.lt, e.y FROM d LEFT JOIN e ON d.e = e.id WHERE %s (SELECT FROM f WHERE f.k2 = d.k2 AND f.id = d.w)', kind), 'gpurhh.batch_rows=64'), ';.*', '') FROM unnest('{EXISTS,NOT EXISTS}'::text[]) kind;

-- what EXPLAIN ANALYZE says
SELECT j ->> 'Device Joins', j -> 'Joins' -> 0 ->> 'Rows Joined', j ->> 'Rows Fed', j ->> 'Feed', (j ->> 'Actual Rows')::numeric::int
FROM (SELECT analyze_json('SELECT f.v, d.w FROM f FULL JOIN d ON f.k = d.k', 'enable_gpu_hashagg=off, enable_gpu_hashjoin=on', 'GpuHashJoin') AS j) q;
