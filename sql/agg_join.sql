--
-- Joins below a grouping, which the device does: which are planned so, and whether the
-- answers are core's.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- The plan, of core's nodes and of ours.
CREATE FUNCTION plan_of(query text) RETURNS SETOF text
LANGUAGE plpgsql SET enable_gpu_hashagg = on SET enable_gpu_hashjoin = on AS $f$
BEGIN
	RETURN QUERY SELECT line FROM explained(query) AS line WHERE line !~ '^ *(Feed|Device):';
END $f$;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
-- a key of each type; equal ones that look different are 6 and 106 (-0), and 7 and 107 (NaN)
CREATE TABLE keys (k int, i2 int2, i4 int4, i8 int8, t text, vc varchar(30), bc char(8), nm name, dt date, ts timestamp, ti time, u uuid,
	n numeric(10, 2), f8 float8, f4 float4, p bool, e mood, o oid, lsn pg_lsn, h "char", y bytea);
INSERT INTO keys
	SELECT k, k, k, k * 5000000000, 'key ' || k, 'a longer key, number ' || k, 'c' || k, 'n' || k,
		'2000-01-01'::date + k, '2000-01-01'::timestamp + k * interval '1 hour', '12:00'::time + k * interval '1 minute', md5(k::text)::uuid, k / 100.0,
		CASE k % 100 WHEN 7 THEN 'NaN' WHEN 6 THEN (CASE k WHEN 6 THEN '-0' ELSE '0' END)::float8 ELSE k / 8.0 END,
		CASE k % 100 WHEN 7 THEN 'NaN' WHEN 6 THEN (CASE k WHEN 6 THEN '-0' ELSE '0' END)::float4 ELSE k / 8.0 END,
		k % 2 = 0, (enum_range(NULL::mood))[1 + k % 3], k, '0/0'::pg_lsn + k, chr(33 + k % 90)::"char", convert_to('y' || k, 'UTF8')
	FROM generate_series(0, 159) k;
INSERT INTO keys (k) VALUES (NULL);
-- the probe side: k of 0 to 119, one in 17 NULL
CREATE TABLE f AS
	SELECT g AS id, CASE WHEN g % 13 <> 0 THEN g % 97 END AS a, (g % 11)::int2 AS b, g * 31 % 1000 - 500 AS v, g * 1000003::int8 AS w, s.*
	FROM generate_series(1, 4000) g LEFT JOIN keys s ON g % 17 <> 0 AND s.k = g * 7 % 120;
-- a build side: k of 30 to 159, most of them once, those below 60 up to three times, and NULL twice
CREATE TABLE d AS
	SELECT row_number() OVER ()::int AS id, k % 7 AS g, k % 40 AS next, CASE WHEN k % 5 <> 0 THEN 'label ' || k % 9 END AS label, CASE WHEN k % 11 <> 0 THEN k * 3 END AS x, keys.*
	FROM keys, generate_series(1, 3) i WHERE k >= 30 AND (i = 1 OR k < 60 AND k % i = 0) OR k IS NULL AND i < 3;
CREATE TABLE d2 (id int PRIMARY KEY, g int, next int2, name text, z int8);
INSERT INTO d2 SELECT g, g % 5, g % 12, 'name ' || g % 8, g * 10000000000 FROM generate_series(0, 99) g;
CREATE TABLE d3 (id int2 PRIMARY KEY, g text, z numeric(6, 1));
INSERT INTO d3 SELECT g, 'group ' || g % 3, g / 10.0 FROM generate_series(0, 10) g;
CREATE TABLE empty (LIKE d);
VACUUM ANALYZE f;
VACUUM ANALYZE d;
VACUUM ANALYZE d2;
VACUUM ANALYZE d3;
ANALYZE empty;

-- the plan: a chain of hash joins down to a scan, nothing between
SELECT plan_of('SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT plan_of('SELECT d3.g, count(*), sum(d2.z) FROM f JOIN d2 ON f.a = d2.id LEFT JOIN d3 ON f.b = d3.id WHERE EXISTS (SELECT FROM d WHERE d.i8 = f.i8) GROUP BY d3.g HAVING count(*) > 3');
SELECT plan_of('SELECT DISTINCT d.g, f.b FROM f JOIN d ON f.k = d.k');
SELECT plan_of('SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE f.v > 0 AND d.g = 2');

-- each type of key, and each type of join
SELECT c, joined(format('SELECT d.g, count(*), sum(f.v), min(d.x), max(f.id) FROM f JOIN d ON f.%1$s = d.%1$s GROUP BY d.g', c))
FROM unnest('{i2,i4,i8,t,vc,bc,nm,dt,ts,ti,u,n,f8,f4,o,lsn,h,y}'::text[]) c;
SELECT c, joined(format('SELECT f.b, count(*), count(d.id), count(d.x), sum(d.x), avg(d.g) FROM f LEFT JOIN d ON f.%1$s = d.%1$s GROUP BY f.b', c))
FROM unnest('{i2,i4,i8,t,vc,bc,nm,dt,ts,ti,u,n,f8,f4,o,lsn,h,y}'::text[]) c;
SELECT c, joined(format('SELECT f.b, count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM d WHERE f.%1$s = d.%1$s) GROUP BY f.b', c))
FROM unnest('{i2,i4,i8,t,vc,bc,nm,dt,ts,ti,u,n,f8,f4,o,lsn,h,y}'::text[]) c;
SELECT c, joined(format('SELECT f.b, count(*), sum(f.v) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.%1$s = d.%1$s) GROUP BY f.b', c))
FROM unnest('{i2,i4,i8,t,vc,bc,nm,dt,ts,ti,u,n,f8,f4,o,lsn,h,y}'::text[]) c;
-- few values, many matches
SELECT j, c, joined(format('SELECT f.b, d.g, count(*), sum(f.v), sum(d.x) FROM f %s JOIN d ON f.%2$s = d.%2$s AND d.id %% 10 = 3 GROUP BY f.b, d.g', j, c))
FROM unnest('{INNER,LEFT}'::text[]) j, unnest('{p,e}'::text[]) c;
-- the key itself, from either side
SELECT c, joined(format('SELECT f.%1$s, count(*), sum(d.x) FROM f JOIN d ON f.%1$s = d.%1$s GROUP BY f.%1$s', c)) FROM unnest('{i2,t,vc,bc,u,n,dt,p,e}'::text[]) c;
SELECT c, joined(format('SELECT d.%1$s, count(*), sum(d.x) FROM f LEFT JOIN d ON f.%1$s = d.%1$s GROUP BY d.%1$s', c)) FROM unnest('{i2,t,vc,bc,u,n,dt}'::text[]) c;

-- several keys
SELECT joined('SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k AND f.t = d.t AND f.u = d.u GROUP BY d.g');
SELECT joined('SELECT d.g, count(*), sum(f.v) FROM f LEFT JOIN d ON f.k = d.k AND f.e = d.e AND f.n = d.n GROUP BY d.g');
SELECT joined('SELECT f.b, count(*) FROM f WHERE (f.k, f.p, f.dt) IN (SELECT k, p, dt FROM d) GROUP BY f.b');
SELECT joined('SELECT f.b, count(*) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE (f.k, f.p) = (d.k, d.p)) GROUP BY f.b');
-- the same column twice
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k AND f.k = d.i4 GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 = d.k GROUP BY d.g');

-- chains, of two to four
SELECT joined('SELECT d2.g, d.g, count(*), sum(f.v), sum(d2.z) FROM f JOIN d ON f.k = d.k JOIN d2 ON f.a = d2.id GROUP BY d2.g, d.g');
SELECT joined('SELECT d2.name, d3.g, count(*), sum(f.v), min(d.dt), max(d3.z) FROM f JOIN d ON f.k = d.k JOIN d2 ON f.a = d2.id JOIN d3 ON f.b = d3.id GROUP BY d2.name, d3.g');
SELECT joined('SELECT x.g, count(*), sum(f.v), sum(y.x) FROM f JOIN d ON f.k = d.k JOIN d2 x ON f.a = x.id JOIN d3 ON f.b = d3.id JOIN d y ON f.u = y.u GROUP BY x.g');
SELECT joined('SELECT x.g, count(*), count(d.g), count(x.g), count(y.label) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d2 x ON f.a = x.id LEFT JOIN d3 ON f.b = d3.id LEFT JOIN d y ON f.t = y.t GROUP BY x.g');
SELECT joined('SELECT count(*), sum(v), min(w) FROM f WHERE k IN (SELECT k FROM d) AND a NOT IN (SELECT id FROM d2 WHERE id IS NOT NULL) AND EXISTS (SELECT FROM d3 WHERE d3.id = f.b)');
SELECT joined('SELECT d2.g, count(*) FROM f JOIN d2 ON f.a = d2.id WHERE EXISTS (SELECT FROM d WHERE d.k = f.k) AND NOT EXISTS (SELECT FROM d3 WHERE d3.id = f.b AND d3.id > 5) GROUP BY d2.g');
-- a snowflake: a key from an earlier build side, or from a join that is one
SELECT joined('SELECT d3.g, count(*), sum(f.v) FROM f JOIN d2 ON f.a = d2.id JOIN d3 ON d2.next = d3.id GROUP BY d3.g');
SELECT joined('SELECT d3.g, d2.g, count(*), sum(d.x) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d2 ON d.next = d2.id LEFT JOIN d3 ON d2.next = d3.id GROUP BY d3.g, d2.g');
SELECT joined('SELECT d3.g, count(*), count(d3.g), sum(d2.z) FROM f LEFT JOIN (d2 JOIN d3 ON d2.next = d3.id) ON f.a = d2.id GROUP BY d3.g');
SELECT joined('SELECT f.b, count(*) FROM f LEFT JOIN d2 ON f.a = d2.id WHERE NOT EXISTS (SELECT FROM d3 WHERE d3.id = d2.next) GROUP BY f.b');
-- equal columns stand for each other, but not one that is inside of IN
SELECT joined('SELECT d2.g, count(*) FROM f JOIN d2 ON f.a = d2.id WHERE f.a IN (SELECT next FROM d) GROUP BY d2.g');
SELECT joined('SELECT d2.g, count(*), sum(f.v) FROM f JOIN d2 ON f.a = d2.id JOIN d ON d.x = d2.id GROUP BY d2.g');
-- the table itself
SELECT joined('SELECT x.b, count(*), sum(y.v) FROM f x JOIN f y ON x.id = y.v GROUP BY x.b');
SELECT joined('SELECT x.b, count(*), count(y.v), sum(z.v) FROM f x LEFT JOIN f y ON x.id = y.v LEFT JOIN f z ON y.id = z.a GROUP BY x.b');
SELECT joined('SELECT x.g, count(*) FROM d x JOIN d y ON x.next = y.k JOIN d z ON y.next = z.k GROUP BY x.g');
-- the build side is any plan
SELECT joined('SELECT q.n, count(*), sum(f.v) FROM f JOIN (SELECT k, count(*) AS n FROM d GROUP BY k) q ON f.k = q.k GROUP BY q.n');
SELECT joined('SELECT q.g, count(*), sum(f.v) FROM f JOIN (SELECT k, g FROM d ORDER BY id LIMIT 40) q ON f.k = q.k GROUP BY q.g');
SELECT joined('SELECT q.g, count(*) FROM f JOIN (SELECT k, g FROM d UNION ALL SELECT id, g FROM d2) q ON f.k = q.k GROUP BY q.g');
SELECT joined('SELECT q.c, count(*) FROM f JOIN generate_series(3, 50) q(c) ON f.k = q.c GROUP BY q.c');
SELECT joined('WITH q AS MATERIALIZED (SELECT k, g FROM d WHERE x > 100) SELECT q.g, count(*) FROM f JOIN q ON f.k = q.k GROUP BY q.g');
SELECT joined('SELECT q.y, count(*) FROM f JOIN (SELECT k, x * 2 AS y FROM d OFFSET 0) q ON f.k = q.k GROUP BY q.y');
SELECT joined('SELECT f.b, count(*) FROM f JOIN (VALUES (31, ''a''), (32, ''b''), (NULL, ''c'')) q(k, s) ON f.k = q.k GROUP BY f.b');
-- empty sides
SELECT joined('SELECT d.g, count(*) FROM f JOIN empty d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, f.b, count(*), count(d.x), sum(d.x) FROM f LEFT JOIN empty d ON f.k = d.k GROUP BY d.g, f.b');
SELECT joined('SELECT count(*), sum(f.v) FROM empty d JOIN f ON f.k = d.k');
SELECT joined('SELECT f.b, count(*) FROM f WHERE NOT EXISTS (SELECT FROM empty d WHERE f.k = d.k) GROUP BY f.b');
SELECT joined('SELECT d.g, count(*) FROM empty d LEFT JOIN d2 ON d.k = d2.id GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k WHERE f.id < 0 GROUP BY d.g');
SELECT joined('SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE d.k IS NULL');
-- conditions of either side; of ON and of WHERE
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k AND f.v > 0 AND d.x < 300 WHERE f.t <> ''key 40'' GROUP BY d.g');
SELECT joined('SELECT f.b, count(*), count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND d.x < 300 WHERE f.v > 0 GROUP BY f.b');
SELECT joined('SELECT f.b, count(*), count(d.id) FROM f LEFT JOIN d ON f.k = d.k WHERE d.x < 300 GROUP BY f.b');
SELECT joined('SELECT f.b, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE f.k = d.k AND d.x < 300 AND f.v > 0) GROUP BY f.b');
SELECT joined('SELECT f.b, count(*) FROM f LEFT JOIN d ON f.k = d.k WHERE d.k IS NULL GROUP BY f.b');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k AND f.k = 40 GROUP BY d.g');

-- groupings of all kinds
SELECT joined('SELECT d.g, f.b, grouping(d.g), count(*), sum(f.v) FROM f JOIN d ON f.k = d.k GROUP BY ROLLUP (d.g, f.b)');
SELECT joined('SELECT d.g, d.label, count(*) FROM f LEFT JOIN d ON f.k = d.k GROUP BY GROUPING SETS ((d.g), (d.label), ())');
SELECT joined('SELECT d.g, count(DISTINCT f.b), count(DISTINCT d.x), sum(DISTINCT f.v) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT count(DISTINCT d.label), count(*) FROM f LEFT JOIN d ON f.k = d.k');
SELECT joined('SELECT d.g, sum(f.v) FROM f JOIN d ON f.k = d.k GROUP BY d.g HAVING sum(f.v) > 0 AND count(d.x) > 10');
SELECT joined('SELECT DISTINCT d.g, d.label, f.b FROM f JOIN d ON f.k = d.k');
SELECT joined('SELECT d2.id, d2.name, d2.z, count(*) FROM f JOIN d2 ON f.a = d2.id GROUP BY d2.id');
SELECT joined('SELECT d.g, sum(f.w), avg(f.n), min(d.ts), variance(f.v), sum(d.n), max(d.f8), bool_and(f.p) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, avg(f.n), min(d.ts), variance(f.v), sum(d.n), max(d.f8), min(d.e), bool_and(f.p), bit_xor(f.w), count(*), count(1) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, corr(f.f8, d.f8) IS NULL, count(*) FROM f JOIN d ON f.k = d.k WHERE f.k > 50 GROUP BY d.g');
SELECT joined('SELECT d.g, min(d.label COLLATE "C") FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT n, count(*) FROM (SELECT d.g, f.b, count(*) AS n FROM f JOIN d ON f.k = d.k GROUP BY d.g, f.b) q GROUP BY n');
SELECT joined('SELECT * FROM d2 JOIN (SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k GROUP BY d.g) q USING (g)');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k GROUP BY d.g UNION ALL SELECT d2.g, count(*) FROM f JOIN d2 ON f.a = d2.id GROUP BY d2.g');
SELECT joined('SELECT d.g, f.b FROM f JOIN d ON f.k = d.k UNION SELECT d2.g, f.b FROM f JOIN d2 ON f.a = d2.id');

-- expressions
SELECT joined('SELECT d.g, sum(f.v * 2 + f.b), sum(d.x + 1) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, sum(f.v + d.x) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FILTER (WHERE f.v > 0), count(*) FILTER (WHERE d.x > 100) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT f.b, count(*) FILTER (WHERE d.x > 100), sum(coalesce(d.x, -1)) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.b');
SELECT joined('SELECT d.g + 1, f.b % 3, count(*) FROM f JOIN d ON f.k = d.k GROUP BY 1, 2');
SELECT joined('SELECT d.g, count(d.g + f.b) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, sum(f.v * d.x), avg(f.w - d.i8), min(f.v + d.x), max(-f.v - d.x), sum(f.b * d.i2 / 3), sum(f.v % d.k) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, sum(f.n * d.n), sum(f.n + d.n * 3), avg(f.n * (1 - d.n) * (1 + f.n)), max(f.n - d.n), sum(f.i8 * d.n) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, sum(f.f8 * d.f8), sum(f.f4 - d.f8), sum(f.f4 + d.f4), sum(f.v * d.f8) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT f.b, sum(f.v - d.x), count(f.v - d.x), sum(f.v + NULL::int + d.x) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.b');
SELECT joined('SELECT d2.name, sum(f.v * d.x + d2.g) FROM f JOIN d ON f.k = d.k JOIN d2 ON d.next = d2.id GROUP BY d2.name');
SELECT joined('SELECT f.id, sum(f.v * d.x) FROM f JOIN d ON f.k = d.k GROUP BY f.id', 'gpurhh.device_memory=1MB,gpurhh.max_probe_buckets=1');
-- what the device cannot compute is core's
SELECT either('SELECT d.g, sum(100 / (f.k - d.k)) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT either('SELECT d.g, sum(2000000 * f.v * d.x) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT f.tableoid::regclass, count(*) FROM f JOIN d ON f.k = d.k GROUP BY 1');
-- an error that core raises for rows that are joined, and for no others
SELECT either('SELECT d.g, sum(100 / (f.k - 40)) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, sum(100 / (f.k - 3)) FROM f JOIN d ON f.k = d.k GROUP BY d.g');

SELECT joined('SELECT d.g, count(*) FROM f LEFT JOIN d ON f.k = d.k AND f.v < d.x GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f RIGHT JOIN d ON f.k = d.k AND f.v > d.x GROUP BY d.g');
-- joins that are core's to do
SELECT joined('SELECT d3.g, count(*) FROM f JOIN d3 ON f.v < d3.id GROUP BY d3.g');
SELECT joined('SELECT d3.g, count(*) FROM f, d3 WHERE f.id < 50 GROUP BY d3.g');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k + 1 = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f RIGHT JOIN d ON f.k = d.k AND f.v > d.x GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f TABLESAMPLE BERNOULLI (50) REPEATABLE (3) JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT q.g, count(*) FROM f, LATERAL (SELECT d.g, d.x + f.k AS y FROM d WHERE d.k = f.k OFFSET 0) q GROUP BY q.g');
SELECT joined('SELECT d.g, count(*) FROM (SELECT k, v FROM f OFFSET 0) f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k AND random() >= 0 GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k WHERE now() > ''2000-01-01'' GROUP BY d.g');
SELECT joined('SELECT q.g, q.n FROM (SELECT d.g, count(*) AS n FROM f JOIN d ON f.k = d.k GROUP BY d.g) q, d2 WHERE d2.id = q.g FOR UPDATE OF d2');
-- NULL of a LEFT JOIN is no NULL of the column
SELECT joined('SELECT q.one, count(*), count(q.one) FROM f LEFT JOIN (SELECT k, 1 AS one FROM d) q ON f.k = q.k GROUP BY q.one');
SELECT joined('SELECT d3.g, count(*) FROM f LEFT JOIN (SELECT k, coalesce(g, 0) AS c FROM d) q ON f.k = q.k LEFT JOIN d3 ON q.c = d3.id GROUP BY d3.g');
-- collations: by bytes, and not
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.t = d.t COLLATE "C" GROUP BY d.g');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.t::varchar = d.t GROUP BY d.g');
-- the switches of joins, core's too
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k GROUP BY d.g', 'enable_hashjoin=off');
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k GROUP BY d.g', 'gpurhh.enable_hashjoin=off');

-- again and again
SELECT joined('SELECT v.x, (SELECT count(*) FROM f JOIN d ON f.k = d.k WHERE f.b = v.x) FROM generate_series(0, 4) v(x)');
SELECT joined('SELECT v.x, q.* FROM generate_series(1, 3) v(x), LATERAL (SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k AND d.id % 3 <> v.x GROUP BY d.g) q');
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
PREPARE p(int) AS SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k WHERE f.b < $1 GROUP BY d.g ORDER BY d.g;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE p(3);
EXECUTE p(3);
EXECUTE p(0);
EXECUTE p(NULL);
CREATE INDEX ON d (k);
EXECUTE p(1);
DEALLOCATE p;
RESET plan_cache_mode;
-- two at a time, and one that is not read to its end
BEGIN;
DECLARE c CURSOR FOR SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k GROUP BY d.g ORDER BY d.g;
DECLARE c2 CURSOR FOR SELECT d2.g, count(*) FROM f JOIN d2 ON f.a = d2.id GROUP BY d2.g ORDER BY d2.g;
FETCH 2 FROM c;
FETCH 1 FROM c2;
FETCH 2 FROM c;
ROLLBACK;
-- a plan that is made while another one is
CREATE FUNCTION groups_of(int) RETURNS int8 LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN (SELECT count(DISTINCT d.g) FROM f JOIN d ON f.k = d.k WHERE f.b = $1); END $f$;
SELECT joined('SELECT d.g, count(*) FROM f JOIN d ON f.k = d.k WHERE f.id > groups_of(3) GROUP BY d.g');
-- more joins than a device does, and more tables than the planner orders
SELECT joined('SELECT x.b, count(*) FROM f x ' || (SELECT string_agg(format('JOIN d2 y%1$s ON x.a = y%1$s.id', i), ' ') FROM generate_series(1, 8) i) || ' GROUP BY x.b', 'join_collapse_limit=1');
SELECT joined('SELECT x.b, count(*) FROM f x ' || (SELECT string_agg(format('JOIN d2 y%1$s ON x.a = y%1$s.id', i), ' ') FROM generate_series(1, 9) i) || ' GROUP BY x.b', 'join_collapse_limit=1');
SELECT joined('SELECT x.b, count(*) FROM f x JOIN d2 ON x.a = d2.id JOIN d3 ON x.b = d3.id GROUP BY x.b', 'geqo_threshold=2');

-- the second level's map refuses rows
SELECT DISTINCT joined('SELECT f.v, d.x, count(*), count(DISTINCT f.b) FROM f JOIN d ON f.k = d.k GROUP BY f.v, d.x', 'gpurhh.device_memory=1MB,gpurhh.max_probe_buckets=1,gpurhh.batch_rows=100') FROM generate_series(1, 40);
-- several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE f SET (parallel_workers = 2);
SELECT plan_of('SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k LEFT JOIN d2 ON f.a = d2.id GROUP BY d.g');
SELECT joined('SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k LEFT JOIN d2 ON f.a = d2.id GROUP BY d.g');
SELECT joined('SELECT d2.name, d3.g, count(*), sum(f.v), min(d.dt), max(d3.z) FROM f JOIN d ON f.k = d.k JOIN d2 ON f.a = d2.id JOIN d3 ON f.b = d3.id GROUP BY d2.name, d3.g');
SELECT joined('SELECT f.t, d.label, count(*) FROM f LEFT JOIN d ON f.vc = d.vc GROUP BY f.t, d.label');
SELECT joined('SELECT d.g, f.b, count(*), count(DISTINCT d.x) FROM f JOIN d ON f.k = d.k GROUP BY ROLLUP (d.g, f.b)');
SELECT joined('SELECT count(*), sum(v) FROM f WHERE k IN (SELECT k FROM d) AND NOT EXISTS (SELECT FROM d2 WHERE d2.id = f.a)');
SELECT joined('SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k GROUP BY d.g', 'parallel_leader_participation=off');
SELECT joined('SELECT v.x, q.* FROM generate_series(1, 3) v(x), LATERAL (SELECT d.g, count(*), sum(f.v) FROM f JOIN d ON f.k = d.k AND d.id % 3 <> v.x GROUP BY d.g) q');
-- partitions
CREATE TABLE part (id int, k int, v int) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (MINVALUE) TO (1500);
CREATE TABLE part_2 (v int, x text, k int, id int);
ALTER TABLE part_2 DROP x;
ALTER TABLE part ATTACH PARTITION part_2 FOR VALUES FROM (1500) TO (MAXVALUE);
INSERT INTO part SELECT id, k, v FROM f;
ANALYZE part;
SELECT plan_of('SELECT d.g, count(*), sum(part.v) FROM part JOIN d ON part.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, count(*), sum(part.v) FROM part JOIN d ON part.k = d.k GROUP BY d.g');
SET max_parallel_workers_per_gather = 0;
SELECT joined('SELECT d.g, count(*), sum(part.v) FROM part JOIN d ON part.k = d.k GROUP BY d.g');
SELECT joined('SELECT d.g, count(*), sum(part.v) FROM part LEFT JOIN d ON part.k = d.k WHERE part.id > 2000 GROUP BY d.g');
SELECT joined('SELECT f.b, count(*), sum(part.v) FROM f LEFT JOIN part ON f.k = part.k AND part.v > 0 GROUP BY f.b');
SELECT joined('SELECT x.v % 3, count(*) FROM part x JOIN part y ON x.id = y.id GROUP BY 1', 'enable_partitionwise_join=on');

-- why not, where that decides
SET gpurhh.row_cost = 1000;
SELECT regexp_replace(reason, '\d+', 'N', 'g') FROM gpurhh_refusals('SELECT d.g, count(f.t || d.t) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
SELECT regexp_replace(reason, '\d+', 'N', 'g') FROM gpurhh_refusals('SELECT d.g, sum(f.v) FROM f JOIN d ON f.k = d.k GROUP BY d.g');
