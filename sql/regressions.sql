--
-- Bugs that were found, each with what it was.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_gpu_hashagg = on;
CREATE TABLE t AS SELECT g % 10 AS k, g % 4 AS v, nullif(g % 7, 3) AS w, 'x' || g AS txt FROM generate_series(1, 2000) g;
ANALYZE t;

-- The argument was evaluated where FILTER excludes the row, and raised an error
-- that core does not; also where the filter is NULL, and for count() of a type
-- of which only "is it NULL" is fed.
SELECT compare('SELECT k, sum(10 / v) FILTER (WHERE v <> 0) FROM t GROUP BY k');
SELECT compare('SELECT k, sum(10 / (w - 5)) FILTER (WHERE w < 5), count(*) FILTER (WHERE w < 5) FROM t GROUP BY k');
SELECT compare('SELECT k, count((10 / v)::text) FILTER (WHERE v <> 0), count((10 / (w - 5))::numeric) FILTER (WHERE w <> 5) FROM t GROUP BY k');
SELECT compare('SELECT k, sum(v) FILTER (WHERE w > 2), sum(v + 0) FILTER (WHERE w > 2), avg(v * 2) FILTER (WHERE NULL) FROM t GROUP BY k');
-- but an error that core raises is raised
SELECT sqlstate_of('SELECT k, sum(10 / v) FROM t GROUP BY k');

-- Texts for refusals were made for every aggregate of every query, and some
-- expressions have none before the plan is finished: the query failed with
-- "unrecognized node type".
SELECT compare('SELECT t.k, sum(x.c), count(x.c) FROM t LEFT JOIN (SELECT k, 1 AS c FROM t WHERE v = 1 AND k < 5 LIMIT 20) x ON x.k = t.k GROUP BY t.k');
SELECT compare('SELECT t.k, sum(x.c) FROM t LEFT JOIN (SELECT DISTINCT k, 1 AS c FROM t WHERE k < 5) x ON x.k = t.k GROUP BY t.k');
SELECT compare('SELECT k, sum(v + (SELECT 1)) FROM t GROUP BY k');
SELECT compare('SELECT o.k, l.s FROM (SELECT DISTINCT k FROM t) o, LATERAL (SELECT v, sum(w + o.k) AS s FROM t WHERE t.k = o.k GROUP BY v) l');
SELECT reason FROM gpurhh_refusals('SELECT t.k, array_agg(x.c) FROM t LEFT JOIN (SELECT k, txt AS c FROM t WHERE k < 5) x ON x.k = t.k GROUP BY t.k');
SELECT reason FROM gpurhh_refusals('SELECT t.k, max(x.c) FROM t LEFT JOIN (SELECT DISTINCT k, 1.5 AS c FROM t) x ON x.k = t.k GROUP BY t.k');
SELECT reason FROM gpurhh_refusals('SELECT k, array_agg(v::text || (SELECT 1)) FROM t GROUP BY k');
SELECT reason FROM gpurhh_refusals('WITH r AS MATERIALIZED (SELECT ROW(k, txt) AS r, k FROM t) SELECT k, array_agg(r::text) FROM r GROUP BY k');

-- A column that the key determines came back as a key does: with 0 for -0.
CREATE TABLE f (id int PRIMARY KEY, x float8, y float4);
INSERT INTO f VALUES (1, '-0', '-0'), (2, 'NaN', '-Infinity'), (3, NULL, 1e-40);
SELECT compare('SELECT id, x, y, atan2(x, -1) FROM f GROUP BY id');

-- A path that was added and then lost to another one was not told of.
CREATE TABLE s (k int, v int);
INSERT INTO s SELECT g / 2, g FROM generate_series(1, 20000) g;
CREATE INDEX ON s (k);
VACUUM ANALYZE s;
SET gpurhh.setup_cost = 10;
SELECT * FROM gpurhh_refusals('SELECT k, count(*) FROM s GROUP BY k ORDER BY k LIMIT 1');
SET gpurhh.setup_cost = 0;
SELECT * FROM gpurhh_refusals('SELECT k, count(*) FROM t GROUP BY k');

-- From version 16 on a grouping expression that WHERE fixes is no key, and it
-- was computed of columns of which each was some row's of the group: not always
-- of the same one.
CREATE TABLE sums (k int, a int, b int);
INSERT INTO sums SELECT g % 1000, CASE WHEN g % 3 > 0 THEN g % 7 END, CASE WHEN g % 3 <> 1 THEN 7 - g % 7 END FROM generate_series(1, 20000) g;
ANALYZE sums;
SELECT compare('SELECT a + b, k, count(*) FROM sums WHERE a + b = 7 GROUP BY a + b, k');
SELECT compare('SELECT (a IS NULL) AS n, k, count(*) FROM sums WHERE (a IS NULL) = (k < 500) GROUP BY (a IS NULL), (k < 500), k');
SELECT compare('SELECT coalesce(a, 7) + coalesce(b, 7) - 7, k, sum(a) FROM sums WHERE coalesce(a, 7) + coalesce(b, 7) = 7 GROUP BY coalesce(a, 7) + coalesce(b, 7), k');
SELECT compare('SELECT coalesce(a, b - b) + coalesce(b, 0), k, sum(a) FROM sums WHERE coalesce(a, b - b) + coalesce(b, 0) = 4 GROUP BY coalesce(a, b - b) + coalesce(b, 0), k');

-- A window function below DISTINCT has no text but in the WindowAgg's own
-- columns, in version 18: EXPLAIN failed with "could not find window clause",
-- and so did the text of a refusal.
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF, FORMAT JSON) SELECT DISTINCT k, sum(v) OVER (PARTITION BY k) FROM t \g /dev/null
EXPLAIN (COSTS OFF, VERBOSE, FORMAT JSON) SELECT DISTINCT k % 3, rank() OVER (ORDER BY k) > 5 FROM t WHERE v > 1 \g /dev/null
RESET enable_gpu_hashagg;
SELECT reason FROM gpurhh_refusals('SELECT DISTINCT k, to_jsonb(sum(v) OVER (PARTITION BY k)) FROM t');

-- An enum's default operator class may be somebody's own: what it holds for
-- equal came as different groups.
CREATE TYPE letter AS ENUM ('a', 'A', 'b');
DO $do$
BEGIN
	FOR i IN 1..5 LOOP
		EXECUTE format('CREATE FUNCTION letter_%s(letter, letter) RETURNS bool LANGUAGE sql IMMUTABLE AS $f$ SELECT lower($1::text) %s lower($2::text) $f$', i, ('{<,<=,=,>=,>}'::text[])[i]);
		EXECUTE format('CREATE OPERATOR %s (LEFTARG = letter, RIGHTARG = letter, PROCEDURE = letter_%s)', ('{<,<=,=,>=,>}'::text[])[i], i);
	END LOOP;
END $do$;
CREATE FUNCTION letter_cmp(letter, letter) RETURNS int LANGUAGE sql IMMUTABLE AS $f$ SELECT bttextcmp(lower($1::text), lower($2::text)) $f$;
CREATE OPERATOR CLASS letter_ops DEFAULT FOR TYPE letter USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 letter_cmp(letter, letter);
CREATE TABLE letters AS SELECT (ARRAY['a', 'A', 'b'])[1 + g % 3]::letter AS l FROM generate_series(1, 30) g;
SELECT compare('SELECT lower(l::text), c FROM (SELECT l, count(*) AS c FROM letters GROUP BY l) x', nodes => -1);
SELECT compare('SELECT lower(l::text) FROM (SELECT DISTINCT l FROM letters) x', nodes => -1);
SELECT compare('SELECT lower(l::text) FROM (SELECT l FROM letters UNION SELECT l FROM letters) x', nodes => -1);
SELECT reason FROM gpurhh_refusals('SELECT l, count(*) FROM letters GROUP BY l');

-- A field of a record variable has the length and scale of its first row's, as
-- far as a plan knows: of another table's rows, it was padded to that length, and
-- a numeric of another scale was an error.
CREATE TABLE five (c char(5), n numeric(8,2));
CREATE TABLE three (c char(3), n numeric(8,4));
INSERT INTO five VALUES ('ab', 1.25);
INSERT INTO three VALUES ('ab', 1.2345);
CREATE FUNCTION fields(strings bool) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
BEGIN
	FOR i IN 1..4 LOOP
		IF i % 2 = 1 THEN
			SELECT * INTO r FROM five;
		ELSE
			SELECT * INTO r FROM three;
		END IF;
		IF strings THEN
			RETURN QUERY SELECT format('<%s> %s', q.c, q.n) FROM (SELECT CASE WHEN k > 5 THEN r.c ELSE 'x'::char(5) END AS c, count(*) AS n FROM t GROUP BY 1) q;
		ELSE
			RETURN QUERY SELECT format('<%s> %s', q.c, q.n) FROM (SELECT k, max(CASE WHEN k > 5 THEN r.n ELSE 0.25::numeric(8,2) END) AS c, sum(k + r.n) AS n FROM t GROUP BY k) q;
		END IF;
	END LOOP;
END $f$;
SET plan_cache_mode = force_generic_plan;
SELECT compare('SELECT * FROM fields(true)', nodes => 0);
SELECT compare('SELECT * FROM fields(false)', nodes => 0);
SET plan_cache_mode = force_custom_plan;
SELECT compare('SELECT * FROM fields(true)', nodes => 0);
SELECT compare('SELECT * FROM fields(false)', nodes => 0);
RESET plan_cache_mode;
-- a constant that keeps what its type says is no such thing
SELECT compare('SELECT CASE WHEN k > 5 THEN ''ab''::char(5) ELSE ''x''::char(5) END AS c, sum(v * 1.5::numeric(5,2)) FROM t GROUP BY 1');
-- The probe side was read although nothing can come out, where core reads no more than a row:
-- a condition of it raised an error.
CREATE TABLE nothing (k int, x int);
ANALYZE nothing;
SELECT joined('SELECT t.k, sum(n.x) FROM t JOIN nothing n ON t.k = n.k WHERE 10 / (t.v - 2) < 100 GROUP BY t.k', 'enable_mergejoin=off, enable_nestloop=off');
SELECT joined_rows('SELECT t.k, t.v FROM t WHERE 10 / (v - 2) < 100 AND EXISTS (SELECT FROM nothing n WHERE t.k = n.k)', 'enable_mergejoin=off, enable_nestloop=off');

-- Where a build side had no room, core read it once more, and a volatile function was run
-- twice for its rows.
CREATE SEQUENCE runs;
CREATE FUNCTION counted(int) RETURNS bool LANGUAGE plpgsql COST 0.01 AS 'BEGIN RETURN nextval(''runs'') > 0; END';
CREATE TABLE wide_build AS SELECT g AS k, g AS x FROM generate_series(1, 60000) g;
ANALYZE wide_build;
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
SET gpurhh.row_cost = 0;
SET gpurhh.device_memory = '1MB';
SET gpurhh.max_probe_buckets = 1;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT count(*), count(DISTINCT x) FROM (SELECT b.k, sum(b.x) AS x FROM wide_build a JOIN wide_build b ON a.k = b.k WHERE counted(b.x) GROUP BY b.k) q;
SELECT last_value FROM runs;
SELECT reason FROM gpurhh_refusals('SELECT a.k, b.x FROM wide_build a JOIN wide_build b ON a.k = b.k WHERE counted(b.x)');
SELECT reason FROM gpurhh_refusals('SELECT a.k, b.x FROM wide_build a JOIN (SELECT k, nextval(''runs'') AS x FROM wide_build) b ON a.k = b.k');
SELECT reason FROM gpurhh_refusals('SELECT a.k, b.x FROM wide_build a JOIN wide_build b ON a.k = b.k WHERE b.x > (SELECT min(v) FROM t WHERE counted(v) AND t.k = b.k)');
RESET enable_nestloop;
RESET enable_mergejoin;
RESET gpurhh.max_probe_buckets;
RESET gpurhh.device_memory;
RESET gpurhh.row_cost;
RESET enable_gpu_hashjoin;
RESET enable_gpu_hashagg;
