--
-- gpurhh_refusals(): why a GROUP BY does not use GpuHashAgg, and why no device does joins.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_gpu_hashagg = on;

CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (x int, y int);
-- its equal values may have different bytes
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t (
	id int PRIMARY KEY, k int, k2 int, v int, f8 float8, n numeric, txt text COLLATE nocase, vc varchar(5) COLLATE nocase, bc bpchar, by text[], nm name,
	j jsonb, iv interval, arr int[], dom positive, en mood, inet inet, m money, tz timetz, c "char", pt point, bits bit(3), pair pair, range int4range);
CREATE TABLE dim (k int PRIMARY KEY, grp int, name text COLLATE nocase);

-- nothing refused
SELECT * FROM gpurhh_refusals('SELECT k, k2, count(*), sum(v), avg(v), min(v), max(v) FROM t GROUP BY k, k2');
SELECT * FROM gpurhh_refusals('SELECT * FROM t');
SELECT * FROM gpurhh_refusals('SELECT count(*) FROM t');
SELECT * FROM gpurhh_refusals('');
SELECT * FROM gpurhh_refusals('-- nothing');
SELECT * FROM gpurhh_refusals(NULL);

-- types of grouping columns
SELECT r.group_by, r.reason FROM unnest('{n,txt,vc,bc,by,nm,j,iv,arr,inet,bits,pair,range}'::text[]) WITH ORDINALITY AS x (col, o),
	gpurhh_refusals(format('SELECT %I, count(*) FROM t GROUP BY %1$I', col)) r ORDER BY o;
SELECT * FROM gpurhh_refusals('SELECT k, txt, count(*) FROM t GROUP BY k, txt');
SELECT * FROM gpurhh_refusals('SELECT lower(txt), count(*) FROM t GROUP BY lower(txt)');
SELECT * FROM gpurhh_refusals('SELECT v + n, count(*) FROM t GROUP BY 1');
SELECT * FROM gpurhh_refusals('SELECT x.v + x.n, count(*) FROM t x GROUP BY 1');
SELECT * FROM gpurhh_refusals('SELECT x.v + y.n, count(*) FROM t x, t y GROUP BY 1');
-- other properties of grouping columns
SELECT * FROM gpurhh_refusals('SELECT random(), count(*) FROM t GROUP BY 1');
SELECT * FROM gpurhh_refusals('SELECT k + (random() * 0)::int, count(*) FROM t GROUP BY 1');
SELECT * FROM gpurhh_refusals('SELECT generate_series(1, k), count(*) FROM t GROUP BY 1');
-- the grouping clause's collation decides
SELECT * FROM gpurhh_refusals('SELECT txt COLLATE "C", count(*) FROM t GROUP BY 1');
SELECT * FROM gpurhh_refusals('SELECT nm::text COLLATE nocase, count(*) FROM t GROUP BY 1');

-- aggregates
SELECT r.reason FROM unnest('{sum(n),sum(f8),avg(n),avg(f8),min(n),max(txt),max(f8),min(iv),min(arr),string_agg(txt\, txt),array_agg(k),bool_and(v > 0),stddev(v),count(DISTINCT v),
	sum(DISTINCT v),sum(v ORDER BY k),count(v ORDER BY k),sum(v + (random() * 0)::int),count(*) FILTER (WHERE random() < 2),percentile_cont(0.5) WITHIN GROUP (ORDER BY v),
	max(id::oid),sum(m),min(c::text COLLATE nocase),mode() WITHIN GROUP (ORDER BY k),corr(DISTINCT v\, k),bit_and(v)}'::text[]) WITH ORDINALITY AS x (agg, o),
	gpurhh_refusals(format('SELECT k, %s FROM t GROUP BY k', agg)) r ORDER BY o;
SELECT * FROM gpurhh_refusals('SELECT k FROM t GROUP BY k HAVING max(txt) > $$a$$');
SELECT * FROM gpurhh_refusals('SELECT k FROM t GROUP BY k ORDER BY sum(n)');
SELECT * FROM gpurhh_refusals('SELECT k, sum(count(*)) OVER (), sum(sum(n)) OVER () FROM t GROUP BY k');
-- a user's own aggregate, of a supported one's name
CREATE FUNCTION larger(int, int, int) RETURNS int LANGUAGE sql AS 'SELECT greatest($1, $2, $3)';
CREATE AGGREGATE sum(int, int) (sfunc = larger, stype = int);
SELECT * FROM gpurhh_refusals('SELECT k, sum(v, v) FROM t GROUP BY k');
DROP AGGREGATE sum(int, int);

-- the rest of a query
SELECT * FROM gpurhh_refusals('SELECT k, k2, count(*) FROM t GROUP BY ROLLUP (k, k2)');
SELECT * FROM gpurhh_refusals('SELECT k, k2, count(*) FROM t GROUP BY CUBE (k, k2)');
SELECT * FROM gpurhh_refusals('SELECT k, k2, count(*) FROM t GROUP BY GROUPING SETS ((k), (k2), ())');
SELECT * FROM gpurhh_refusals('SELECT count(*) FROM t GROUP BY ()');
SELECT * FROM gpurhh_refusals('SELECT k, GROUPING(k), count(*) FROM t GROUP BY k');
SELECT * FROM gpurhh_refusals('SELECT id, txt, count(*) FROM t GROUP BY id');
SELECT * FROM gpurhh_refusals('SELECT d.k, d.name, sum(v) FROM t JOIN dim d USING (k) GROUP BY d.k');
SELECT group_by IS NOT NULL, reason FROM gpurhh_refusals(format('SELECT count(*) FROM t GROUP BY %s', (SELECT string_agg('v + ' || g, ', ') FROM generate_series(1, 33) g)));
SELECT * FROM gpurhh_refusals(format('SELECT k, %s FROM t GROUP BY k', (SELECT string_agg(format('sum(v + %s)', g), ', ') FROM generate_series(1, 64) g)));
SELECT * FROM gpurhh_refusals(format('SELECT k, %s FROM t GROUP BY k', (SELECT string_agg(format('sum(v + %s), min(v + %1$s)', g), ', ') FROM generate_series(1, 22) g)));
SELECT * FROM gpurhh_refusals('SELECT x.k, coalesce(x.c, 1) + x.c, count(*) FROM t LEFT JOIN (SELECT k, grp, coalesce(grp, 3) AS c FROM dim) x ON x.k = t.k GROUP BY x.k, x.c');
-- costs: the numbers are not for a test
SELECT statement, group_by, regexp_replace(reason, '\d+', 'N', 'g') FROM gpurhh_refusals('SELECT k, count(*) FROM t GROUP BY k');
SET gpurhh.setup_cost = 1e6;
SELECT statement, group_by, regexp_replace(reason, '\d+', 'N', 'g') FROM gpurhh_refusals('SELECT k, count(*) FROM t GROUP BY k');
SET gpurhh.setup_cost = 0;
-- only the first reason is told
SELECT * FROM gpurhh_refusals('SELECT txt, sum(n), max(txt) FROM t GROUP BY txt, n');

-- several GROUP BYs, several statements; enable_gpu_hashagg does not matter
SELECT * FROM gpurhh_refusals('SELECT txt, count(*) FROM t GROUP BY txt UNION ALL SELECT name, count(*) FROM dim GROUP BY name') ORDER BY group_by;
SELECT * FROM gpurhh_refusals('SELECT c, count(*) FROM (SELECT txt, sum(n) AS c FROM t GROUP BY txt) x GROUP BY c') ORDER BY group_by;
SELECT * FROM gpurhh_refusals('SELECT k, (SELECT max(s) FROM (SELECT sum(n) AS s FROM t x WHERE x.k = t.k GROUP BY x.k2) y) FROM t GROUP BY k');
SELECT * FROM gpurhh_refusals('WITH c AS MATERIALIZED (SELECT n, count(*) FROM t GROUP BY n) SELECT * FROM c');
SELECT * FROM gpurhh_refusals('SELECT 1; SELECT txt FROM t GROUP BY txt;; SELECT k FROM t GROUP BY k; SELECT n FROM t GROUP BY n');
SET enable_gpu_hashagg = on;
SELECT * FROM gpurhh_refusals('SELECT txt FROM t GROUP BY txt');
RESET enable_gpu_hashagg;

-- statements with a query inside
SELECT r.* FROM unnest('{EXPLAIN, EXPLAIN ANALYZE, EXPLAIN (VERBOSE\, COSTS OFF), CREATE TABLE x AS, CREATE MATERIALIZED VIEW x AS, DECLARE c CURSOR FOR, INSERT INTO dim (name), EXPLAIN INSERT INTO dim (name), EXPLAIN CREATE TABLE x AS}'::text[]) s,
	gpurhh_refusals(s || ' SELECT txt FROM t GROUP BY txt') r;
SELECT * FROM gpurhh_refusals('UPDATE dim SET grp = x.c FROM (SELECT txt, count(*) AS c FROM t GROUP BY txt) x WHERE x.txt = name');
SELECT * FROM gpurhh_refusals('DELETE FROM dim WHERE name IN (SELECT txt FROM t GROUP BY txt HAVING count(*) > 1)');
-- COPY and PREPARE hold a query that is not analyzed yet
SELECT * FROM gpurhh_refusals('COPY (SELECT txt FROM t GROUP BY txt) TO STDOUT');
SELECT * FROM gpurhh_refusals('PREPARE q AS SELECT txt FROM t GROUP BY txt');
-- statements without one
SELECT * FROM gpurhh_refusals('VACUUM; SHOW work_mem; BEGIN; SET work_mem = 64; CREATE TABLE x (a int)');
PREPARE p AS SELECT txt FROM t GROUP BY txt;
SELECT * FROM gpurhh_refusals('EXECUTE p; EXPLAIN EXECUTE p');
DEALLOCATE p;
SELECT current_setting('work_mem') <> '64kB';
-- a view, a rule
CREATE VIEW v AS SELECT txt, count(*) FROM t GROUP BY txt;
SELECT statement, replace(group_by, 't.', ''), replace(reason, 't.', '') FROM gpurhh_refusals('SELECT * FROM v');
CREATE RULE r AS ON INSERT TO dim DO ALSO DELETE FROM dim WHERE name IN (SELECT txt FROM t GROUP BY txt);
SELECT statement, group_by, reason FROM gpurhh_refusals('INSERT INTO dim VALUES (1, 1, 1)');
DROP RULE r ON dim;

-- nothing is ever executed
CREATE FUNCTION boom() RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RAISE ''was executed''; END';
SELECT * FROM gpurhh_refusals('SELECT txt, boom() FROM t GROUP BY txt; INSERT INTO dim SELECT boom(), 1, txt FROM t GROUP BY txt; CREATE TABLE made AS SELECT txt, boom() FROM t GROUP BY txt; DROP TABLE t; EXPLAIN ANALYZE SELECT txt, boom() FROM t GROUP BY txt');
SELECT count(*) FROM t;
SELECT to_regclass('made');

-- errors, and that all is well after them
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT FROM WHERE') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT 1; SELECT nothing FROM t GROUP BY k') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT v FROM t GROUP BY k') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT k FROM nowhere GROUP BY k') $$);
-- a parameter may be of any type
SELECT * FROM gpurhh_refusals('SELECT k + $1, max(txt) FROM t WHERE v = $2 GROUP BY 1');
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT txt, 1 / 0 FROM t GROUP BY txt') $$);
SELECT * FROM gpurhh_refusals('SELECT txt FROM t GROUP BY txt');

-- what one may not read is not planned, as with EXPLAIN
CREATE ROLE regress_gpurhh_nobody;
GRANT USAGE ON SCHEMA gpurhh_test TO regress_gpurhh_nobody;
GRANT SELECT ON dim TO regress_gpurhh_nobody;
GRANT SELECT (k) ON t TO regress_gpurhh_nobody;
SET ROLE regress_gpurhh_nobody;
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT txt, count(*) FROM t GROUP BY txt') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('SELECT k, count(txt) FROM t GROUP BY k') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('EXPLAIN SELECT txt, count(*) FROM t GROUP BY txt') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('CREATE TABLE x AS SELECT txt, count(*) FROM t GROUP BY txt') $$);
SELECT sqlstate_of($$ SELECT * FROM gpurhh_refusals('INSERT INTO dim SELECT k FROM t GROUP BY k') $$);
SELECT * FROM gpurhh_refusals('SELECT name, count(*) FROM dim GROUP BY name');
SELECT * FROM gpurhh_refusals('SELECT k, sum(k / 2.0) FROM t GROUP BY k');
RESET ROLE;
DROP OWNED BY regress_gpurhh_nobody;
DROP ROLE regress_gpurhh_nobody;

-- joins that no device does, of a query level whose grouping, if any, is refused
CREATE FUNCTION settled(settings text, query text, OUT reason text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	reasons text[];
BEGIN
	BEGIN
		PERFORM apply_settings(settings);
		reasons := ARRAY(SELECT r.reason FROM gpurhh_refusals(query) r);
		RAISE EXCEPTION SQLSTATE 'GPU00';
	EXCEPTION WHEN SQLSTATE 'GPU00' THEN
		NULL;
	END;
	RETURN QUERY SELECT unnest(reasons);
END $f$;
CREATE TABLE f AS SELECT g AS id, g % 100 AS k, g::numeric AS n, g::numeric(18, 2) AS n2, g::numeric(18, 10) AS n10, ARRAY[g]::int8[] AS a8, repeat('x', 20) AS s FROM generate_series(1, 3000) g;
CREATE TABLE d AS SELECT * FROM f WHERE id <= 500;
ANALYZE f, d;
SET max_parallel_workers_per_gather = 0;
SET enable_gpu_hashjoin = on;
CREATE TABLE queries (o serial, q text);
INSERT INTO queries (q) SELECT format('SELECT f.id, d.id FROM f JOIN d ON %s', c) FROM unnest('{f.id = d.id,f.n = d.n,f.n2 = d.n10,f.id < d.id,f.id + 1 = d.id,f.id = d.id AND lower(f.s) < d.s,f.id = d.id AND random() < 2}'::text[]) c;
INSERT INTO queries (q) SELECT format('SELECT %s FROM f JOIN d ON f.id = d.id', c) FROM unnest('{d.a8,1,d.ctid,d}'::text[]) c;
INSERT INTO queries (q) VALUES ('SELECT f.id, d.id FROM f FULL JOIN d ON f.id = d.id'), ('SELECT f.id, d.id FROM f LEFT JOIN d ON f.id = d.id AND lower(f.s) < d.s'),
	('SELECT x.id FROM (SELECT id FROM f OFFSET 0) x JOIN (SELECT id FROM d OFFSET 0) y ON x.id = y.id'), ('SELECT f.id, q.s FROM f, LATERAL (SELECT d.s || f.s AS s FROM d WHERE d.id = f.id OFFSET 0) q'),
	('SELECT f.id, d.id FROM f JOIN d ON f.id = d.id FOR UPDATE'), ('UPDATE f SET k = d.k FROM d WHERE d.id = f.id'),
	-- below a grouping that is refused, or not; in a query level of their own
	('SELECT f.n, count(*) FROM f JOIN d ON f.n = d.n GROUP BY f.n'), ('SELECT f.k, count(*) FROM f JOIN d ON f.n = d.n GROUP BY f.k'),
	('SELECT k, count(*) FROM (SELECT f.k FROM f JOIN d ON f.n = d.n OFFSET 0) q GROUP BY k'), ('SELECT f.n, count(*) FROM f JOIN d ON f.id = d.id GROUP BY f.n'),
	-- the first join is done, or none is
	('SELECT f.id, d.id, e.id FROM f JOIN d ON f.id = d.id JOIN d e ON f.n = e.n'), ('SELECT f.id, d.id, e.id FROM f JOIN d ON f.n = d.n LEFT JOIN d e ON f.n = e.n'),
	-- the grouping has the node, over core's join or GpuHashJoin
	('SELECT f.k, count(f.s || d.s) FROM f JOIN d ON f.n = d.n GROUP BY f.k'), ('SELECT f.k, count(f.s || d.s) FROM f JOIN d ON f.id = d.id GROUP BY f.k'),
	('SELECT f.k, count(f.a8 || d.a8) FROM f JOIN d ON f.id = d.id GROUP BY f.k'),
	-- without a join
	('SELECT f.id FROM f LEFT JOIN dim ON f.id = dim.k'), ('SELECT f.id, d.id FROM f JOIN d ON f.id = d.id WHERE false');
SELECT o, replace(q, 'SELECT ', ''), r.group_by, r.reason FROM queries, gpurhh_refusals(q) r ORDER BY o, group_by;
-- settings, costs and memory
SELECT s, regexp_replace(reason, '\d+', 'N', 'g') FROM unnest('{gpurhh.setup_cost=1e6,gpurhh.row_cost=10,geqo_threshold=2,enable_hashjoin=off,enable_gpu_hashjoin=off,work_mem=64kB}'::text[]) s, settled(s, 'SELECT f.id, f.s, d.s FROM f JOIN d ON f.id = d.id');
SET enable_gpu_hashjoin = off;

-- the same words at DEBUG1, for whoever cannot call a function
SET enable_gpu_hashagg = on;
SET client_min_messages = debug1;
EXPLAIN (COSTS OFF) SELECT txt, count(*) FROM t GROUP BY txt;
RESET client_min_messages;
