--
-- GpuHashJoin: joins that the device does, and whose rows are returned.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_mergejoin = off;
SET enable_nestloop = off;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN little AS int2;
CREATE TABLE f AS SELECT CASE WHEN g % 11 <> 0 THEN g % 60 END AS k, g % 7 AS k2, g AS v, CASE WHEN g % 5 <> 0 THEN 't' || g END AS t, repeat('long ', g % 9) || g AS lt,
	g / 7.0 AS n, CASE g % 4 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN '0' ELSE (g / 4.0)::text END::float8 AS x FROM generate_series(1, 3000) g;
-- every key up to 40 once, some twice, and NULL; columns of each kind of type
CREATE TABLE d AS SELECT CASE WHEN g <= 45 THEN CASE WHEN g > 40 THEN g - 40 ELSE g END END AS k, g AS w, g % 2 = 0 AS b, 'a'::"char" AS ch, g::int2 AS i2, g::little AS dom, g * 5000000000 AS i8,
	CASE WHEN g % 3 = 0 THEN '-0' ELSE g::text END::float4 AS f4, g * interval '90 minutes' AS iv, point(g, -g) AS p, ('08:00:2b:01:02:' || lpad(g::text, 2, '0'))::macaddr AS mac,
	md5(g::text)::uuid AS u, ('name' || g)::name AS nm, ('c' || g)::char(6) AS c6, ('v' || g)::varchar(9) AS vc, (g / 8.0)::numeric(8, 3) AS n3, CASE WHEN g % 9 <> 0 THEN (10 ^ g)::numeric END AS big,
	ARRAY[g, NULL, g + 1] AS ai, jsonb_build_object('g', g) AS j, ('10:00+0' || g % 9)::timetz AS tz, '(1,2)'::tid AS tid, (enum_range(NULL::mood))[1 + g % 3] AS m, B'101' || g::bit(7) AS vb,
	'2020-01-01'::timestamptz + g * interval '1 day' AS ts, ('10.0.0.' || g)::inet AS ip, decode(md5(g::text), 'hex') AS by FROM generate_series(1, 50) g;
CREATE TABLE e AS SELECT g % 5 AS k2, g AS u FROM generate_series(1, 12) g;
CREATE TABLE nothing (k int, w int);
ANALYZE f, d, e, nothing;

EXPLAIN (COSTS OFF) SELECT f.v, d.w FROM f JOIN d ON f.k = d.k;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT f.v, d.w FROM f JOIN d ON f.k = d.k;
EXPLAIN (COSTS OFF) SELECT f.v, d.w, e.u FROM f JOIN d ON f.k = d.k LEFT JOIN e ON f.k2 = e.k2 ORDER BY 1, 2, 3 LIMIT 3;
RESET enable_gpu_hashjoin;

-- each kind of join, with duplicates on both sides, NULL keys, and empty sides
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k');
SELECT joined_rows('SELECT f.v, f.t, d.w FROM f LEFT JOIN d ON f.k = d.k');
SELECT joined_rows('SELECT f.v, f.t FROM f WHERE k IN (SELECT k FROM d)');
SELECT joined_rows('SELECT f.v, f.t FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k)');
SELECT joined_rows('SELECT f.v, f.t FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.k = f.k)');
SELECT joined_rows('SELECT f.v, f.t FROM f LEFT JOIN d ON f.k = d.k WHERE d.k IS NULL');
SELECT joined_rows('SELECT f.v, n.w FROM f JOIN nothing n ON f.k = n.k');
SELECT joined_rows('SELECT f.v, n.w FROM f LEFT JOIN nothing n ON f.k = n.k');
SELECT joined_rows('SELECT n.w, d.w FROM nothing n LEFT JOIN d ON d.k = n.k');
SELECT joined_rows('SELECT a.v, b.v FROM f a JOIN f b ON a.k = b.k WHERE b.v < 100');
-- several joins, by several keys, and of a column that a join has brought
SELECT joined_rows('SELECT f.v, d.w, e.u FROM f JOIN d ON f.k = d.k JOIN e ON f.k2 = e.k2');
SELECT joined_rows('SELECT f.v, d.w, e.u FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN e ON d.i2 = e.u WHERE e.u IS NULL OR e.k2 > 1');
SELECT joined_rows('SELECT f.v, d.w, e.u FROM f JOIN d ON f.k = d.k AND f.k2 = d.k JOIN e ON f.k2 = e.k2 WHERE NOT EXISTS (SELECT FROM e x WHERE x.u = d.w)', 'join_collapse_limit=1');
SELECT joined_rows('SELECT f.v FROM f JOIN d USING (k) WHERE f.k IN (SELECT u FROM e)');

-- columns of each type, of the build side and of the probe side, with and without a match
SELECT joined_rows('SELECT f.v, d.* FROM f JOIN d ON f.k = d.k');
SELECT joined_rows('SELECT f.v, d.* FROM f LEFT JOIN d ON f.k = d.k');
SELECT joined_rows('SELECT d.*, f.v FROM d JOIN f ON f.v = d.w');
SELECT joined_rows('SELECT f.* FROM f JOIN d ON f.k = d.k');
SELECT format_type(atttypid, NULL), joined_rows(format('SELECT f.v, d.%I FROM f LEFT JOIN d ON f.k = d.k AND d.w > 5', attname)) FROM pg_attribute WHERE attrelid = 'd'::regclass AND attnum > 1 ORDER BY attnum;
-- not these, as they may have to be aligned to 8 bytes, or are too wide; no columns at all
ALTER TABLE d ADD a8 int8[] DEFAULT '{1}', ADD bx box DEFAULT '(1,2),(3,4)';
SELECT c, joined_rows(format('SELECT f.v, %s FROM f JOIN d ON f.k = d.k', c), nodes => -1) FROM unnest('{d.a8,d.bx,d,d.ctid,d.tableoid}'::text[]) c;
SELECT joined_rows('SELECT 1 FROM f JOIN d ON f.k = d.k', nodes => -1);

-- conditions, of which some may raise errors
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k AND f.k2 < d.w WHERE d.b OR f.v > 100');
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v * d.w % 3 = 1 AND d.w <> 0 AND f.v / d.w > 2');
SELECT joined_rows('SELECT f.v, d.w FROM f LEFT JOIN d ON f.k = d.k WHERE d.w IS NULL OR f.v > 40 * d.w');
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v * 1000000 + d.w > 0 AND f.v < 2000');
SET enable_gpu_hashjoin = on;
SELECT sqlstate_of('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v / (d.w - 20) > 1');
SELECT sqlstate_of('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v * 1000000 + d.w > 0');
RESET enable_gpu_hashjoin;

-- above and below other nodes
SELECT joined_rows('SELECT f.v + d.w, upper(f.t) FROM f JOIN d ON f.k = d.k ORDER BY 1 LIMIT 20');
SELECT joined_rows('SELECT sum(f.v) OVER (PARTITION BY d.w ORDER BY f.v), d.w FROM f JOIN d ON f.k = d.k');
SELECT joined_rows('SELECT d.w, array_agg(f.t ORDER BY f.v) FROM f JOIN d ON f.k = d.k GROUP BY d.w');
SELECT joined_rows('SELECT f.v, s.n FROM f JOIN (SELECT k, count(*) AS n FROM d GROUP BY k) s ON f.k = s.k');
SELECT joined_rows('SELECT f.v, s.n FROM f JOIN (SELECT a.k, count(*) AS n FROM f a JOIN d b ON a.k = b.k GROUP BY a.k) s ON f.k = s.k');
SELECT joined_rows('SELECT v, w FROM (SELECT f.v, d.w FROM f JOIN d ON f.k = d.k UNION ALL SELECT f.v, e.u FROM f JOIN e ON f.k2 = e.k2) q WHERE v < 500');
SELECT joined_rows('SELECT e.u, (SELECT sum(q.w) FROM (SELECT d.w FROM f JOIN d ON f.k = d.k WHERE f.k2 = e.k2 OFFSET 0) q) FROM e');
SELECT joined_rows('WITH q AS MATERIALIZED (SELECT f.v, d.w FROM f JOIN d ON f.k = d.k) SELECT * FROM q a JOIN q b ON a.v = b.v WHERE b.w < 10');
-- subqueries in WHERE of a side, which run while it is read
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v < (SELECT 100 * max(u) FROM e) AND d.w > (SELECT min(u) FROM e)');

-- dictionaries, blocks and memory that are too small
SELECT joined_rows('SELECT a.v, b.v, a.lt FROM f a JOIN f b ON a.k2 = b.k2 AND a.v < b.k', 'gpurhh.batch_rows=64');
SELECT joined_rows('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k', 'gpurhh.batch_rows=64');
-- (with fewer rows expected than f has, which would be the build side of a right antijoin from 16 on)
CREATE FUNCTION many() RETURNS SETOF int LANGUAGE plpgsql STABLE ROWS 100 AS 'BEGIN RETURN QUERY SELECT generate_series(1000, 200000); END';
SELECT joined_rows('SELECT f.v, f.k FROM f WHERE NOT EXISTS (SELECT FROM many() g WHERE f.v = g)', 'gpurhh.device_memory=1MB');
-- strings that the planner does not expect: of the probe side they are core's to join, of a build side all is
CREATE TABLE s AS SELECT g AS v, 'x' AS lt FROM generate_series(1, 3000) g;
ANALYZE s;
UPDATE s SET lt = repeat('long ', 9) || v;
SELECT joined_rows('SELECT s.v, s.lt, d.w FROM s JOIN d ON s.v % 1 = 0 AND s.v = d.w', 'work_mem=64kB, hash_mem_multiplier=1');
SELECT joined_rows('SELECT s.v, s.lt, e.u FROM s LEFT JOIN e ON s.v = e.u', 'work_mem=64kB, hash_mem_multiplier=1');
SELECT analyze_json('SELECT s.v, s.lt, e.u FROM s LEFT JOIN e ON s.v = e.u', 'enable_gpu_hashagg=off, enable_gpu_hashjoin=on, work_mem=64kB, hash_mem_multiplier=1', 'GpuHashJoin') ->> 'Rows Left to the Host' > '0';
SELECT joined_rows('SELECT f.v, s.lt FROM f JOIN s ON f.v = s.v', 'work_mem=64kB, hash_mem_multiplier=1');
SELECT joined_rows('SELECT e.u, (SELECT max(q.lt) FROM (SELECT s.lt, d.w FROM s LEFT JOIN d ON s.v = d.w WHERE s.v < 2000 + e.u OFFSET 0) q) FROM e', 'work_mem=64kB, hash_mem_multiplier=1');

-- parallel plans, with the leader and without
\set parallel 'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2'
SELECT joined_rows('SELECT f.v, f.lt, d.w, d.j FROM f JOIN d ON f.k = d.k', :'parallel');
SELECT joined_rows('SELECT f.v, f.lt, d.w FROM f LEFT JOIN d ON f.k = d.k AND d.w > 9', :'parallel' || ', parallel_leader_participation=off');
SELECT joined_rows('SELECT f.v, s.lt FROM f JOIN s ON f.v = s.v', :'parallel' || ', work_mem=64kB, hash_mem_multiplier=1');
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT f.v, d.w FROM f JOIN d ON f.k = d.k;
ROLLBACK;

-- EXPLAIN ANALYZE has what all participants did.  One of them has read d, for all.
SELECT j ->> 'Device Joins', j -> 'Joins' -> 0 ->> 'Build Rows', j -> 'Joins' -> 0 ->> 'Rows Joined', j ->> 'Rows Fed', j ->> 'Feed', (j ->> 'Participants')::numeric BETWEEN 1 AND 3,
	jsonb_path_query_first(j, 'strict $.** ? (@."Relation Name" == "d")."Actual Loops"')
FROM unnest('{on,off}'::text[]) leader, analyze_json('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k', :'parallel' || ', enable_gpu_hashagg=off, enable_gpu_hashjoin=on, parallel_leader_participation=' || leader, 'GpuHashJoin') j;
SELECT j ->> 'Device Joins', j ->> 'Device Joins Declined', j ->> 'Feed'
FROM analyze_json('SELECT f.v, s.lt FROM f LEFT JOIN s ON f.v = s.v', :'parallel' || ', enable_gpu_hashagg=off, enable_gpu_hashjoin=on, parallel_leader_participation=off, work_mem=64kB, hash_mem_multiplier=1', 'GpuHashJoin') j;

-- cursors that rest, go back and end before the last row; prepared statements
SET enable_gpu_hashjoin = on;
BEGIN;
DECLARE a CURSOR FOR SELECT f.v, d.w FROM f JOIN d ON f.k = d.k ORDER BY d.w, f.v;
DECLARE b SCROLL CURSOR FOR SELECT f.k IS NOT NULL AS x FROM f JOIN d ON f.k = d.k;
DECLARE c CURSOR FOR SELECT a.v, b.v FROM f a JOIN f b ON a.k2 = b.k2;
FETCH 2 FROM a;
FETCH 2 FROM b;
MOVE 3000 FROM c;
FETCH 1 FROM a;
FETCH BACKWARD 1 FROM b;
MOVE FORWARD ALL IN c;
CLOSE a;
MOVE FORWARD ALL IN b;
COMMIT;
PREPARE p AS SELECT count(*), sum(v + w) FROM (SELECT f.v, d.w FROM f JOIN d ON f.k = d.k WHERE f.v > $1 OFFSET 0) q;
EXECUTE p(100);
EXECUTE p(2000);
-- rows that are updated or locked are core's
EXPLAIN (COSTS OFF) SELECT f.v, d.w FROM f JOIN d ON f.k = d.k FOR UPDATE OF f;
EXPLAIN (COSTS OFF) UPDATE f SET v = d.w FROM d WHERE f.k = d.k;
CREATE TABLE made AS SELECT f.v, d.w, f.lt FROM f JOIN d ON f.k = d.k;
INSERT INTO made SELECT f.v, d.w, f.lt FROM f JOIN d ON f.k = d.k;
SELECT count(*), count(DISTINCT made) FROM made;

-- what EXPLAIN ANALYZE says
SELECT j ->> 'Device Joins', j -> 'Joins' -> 0 ->> 'Rows Joined', j ->> 'Rows Fed', j ->> 'Feed', (j ->> 'Actual Rows')::numeric::int
FROM (SELECT analyze_json('SELECT f.v, d.w FROM f JOIN d ON f.k = d.k', 'enable_gpu_hashagg=off', 'GpuHashJoin') AS j) q;

-- Joins that core searches by themselves before the rest: a partial path of the node comes after core has gathered other
-- ones.  It once freed what a Gather was over, and a path that was made in its place was over that Gather, so
-- that planning did not end.  Now the Gather is made anew, over the node's path if that is better.
SET join_collapse_limit = 1;
RESET enable_nestloop;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpurhh.row_cost = 0.001;
EXPLAIN (COSTS OFF) SELECT e.u, f.v, d.w FROM e JOIN (f JOIN d ON f.k = d.k) ON d.w < e.u;
