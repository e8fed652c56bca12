--
-- Prepared statements: custom and generic plans, parameters, invalidation.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t (id int, k int, k2 int, v int);
INSERT INTO t SELECT g, nullif(g % 23, 7), g % 5, g * 37 % 1009 - 500 FROM generate_series(1, 3000) g;
ANALYZE t;

-- A prepared statement's rows, with enable_gpu_hashagg as it is when the plan
-- is made: EXECUTE plans anew where a custom plan is made.
CREATE FUNCTION executed(statement text, gpu bool) RETURNS text[]
LANGUAGE plpgsql SET enable_gpu_hashagg = off AS $f$
DECLARE
	has_node bool;
BEGIN
	PERFORM set_config('enable_gpu_hashagg', gpu::text, true);
	has_node := count_nodes('EXECUTE ' || statement) > 0;
	IF has_node <> gpu THEN
		RAISE 'GpuHashAgg is%planned', CASE WHEN has_node THEN ' ' ELSE ' not ' END;
	END IF;
	RETURN rows_of('EXECUTE ' || statement);
END $f$;
-- The same of a native one, named like it with _native behind it.
CREATE FUNCTION compare_prepared(statement text) RETURNS text
LANGUAGE plpgsql AS $f$
DECLARE
	expected text[] := executed(regexp_replace(statement, '^\w+', '\&_native'), false);
	got text[] := executed(statement, true);
BEGIN
	RETURN coalesce(difference(expected, got, false), format('ok, %s rows', cardinality(got)));
END $f$;

\set q 'SELECT k, k2 + $3 AS e, count(*), sum(v + $2) FILTER (WHERE v > $1) FROM t WHERE v > $1 GROUP BY k, k2 + $3 HAVING count(*) > $2'
PREPARE p (int, int, int) AS :q;
PREPARE p_native (int, int, int) AS :q;

SET plan_cache_mode = force_custom_plan;
SELECT compare_prepared('p (0, 3, 1)');
SELECT compare_prepared('p (-1000, 40, 2)');
SELECT compare_prepared('p (NULL, 0, 0)');
SELECT compare_prepared('p (0, 0, NULL)');

-- A generic plan is made once and kept: one with the node, one without.
SET plan_cache_mode = force_generic_plan;
SELECT compare_prepared('p (0, 3, 1)');
SELECT compare_prepared('p (-1000, 40, 2)');
SELECT compare_prepared('p (499, 0, 2)');
SELECT compare_prepared('p (NULL, 0, 0)');
SELECT compare_prepared('p (0, NULL, 0)');
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) EXECUTE p (1, 2, 3);
EXPLAIN (COSTS OFF, VERBOSE) EXECUTE p (1, 2, 3);
SET enable_gpu_hashagg = off;
SELECT name, generic_plans > 3, custom_plans > 3 FROM pg_prepared_statements ORDER BY name;

-- What makes a plan invalid: the table changes below it.
INSERT INTO t VALUES (3001, 7, 7, 100), (3002, NULL, NULL, 100);
SELECT compare_prepared('p (0, 0, 1)');
CREATE INDEX t_v ON t (v);
SELECT compare_prepared('p (490, 0, 1)');
ALTER TABLE t ADD COLUMN extra text DEFAULT 'x';
SELECT compare_prepared('p (0, 0, 1)');
ALTER TABLE t DROP COLUMN id;
SELECT compare_prepared('p (0, 0, 1)');
DELETE FROM t WHERE k2 IS NULL;
ALTER TABLE t ALTER COLUMN k2 SET NOT NULL;
SELECT compare_prepared('p (0, 0, 1)');
ANALYZE t;
SELECT compare_prepared('p (0, 0, 1)');
TRUNCATE t;
SELECT compare_prepared('p (0, 0, 1)');
INSERT INTO t (k, k2, v) VALUES (1, 1, 1), (1, 1, 2);
SELECT compare_prepared('p (0, 0, 1)');
-- a key that becomes one that no device can group, and back
DEALLOCATE ALL;
PREPARE p AS SELECT count(*), sum(v) FROM t GROUP BY k;
PREPARE p_native AS SELECT count(*), sum(v) FROM t GROUP BY k;
SELECT compare_prepared('p');
ALTER TABLE t ALTER COLUMN k TYPE numeric;
SELECT compare_prepared('p');
SET enable_gpu_hashagg = on;
EXECUTE p;
ALTER TABLE t ALTER COLUMN k TYPE int8;
SET enable_gpu_hashagg = off;
SELECT compare_prepared('p');
DEALLOCATE ALL;

-- auto: five custom plans, then the generic one, if it costs no more
RESET plan_cache_mode;
INSERT INTO t (k, k2, v) SELECT g % 10, g % 3, g FROM generate_series(1, 1000) g;
PREPARE p (int) AS SELECT k, count(*), sum(v) FROM t WHERE k2 = $1 GROUP BY k;
PREPARE p_native (int) AS SELECT k, count(*), sum(v) FROM t WHERE k2 = $1 GROUP BY k;
SELECT g, compare_prepared(format('p (%s)', g % 4)) FROM generate_series(1, 12) g;
DEALLOCATE ALL;

-- PL/pgSQL's plans are prepared ones as well
SET enable_gpu_hashagg = on;
CREATE FUNCTION largest(minimum int) RETURNS int8 LANGUAGE plpgsql AS $f$
DECLARE
	result int8;
BEGIN
	SELECT max(x.s) INTO result FROM (SELECT k, sum(v) AS s FROM t WHERE v > minimum GROUP BY k) x;
	RETURN result;
END $f$;
SELECT g, largest(g) FROM generate_series(0, 900, 100) g;
SET plan_cache_mode = force_generic_plan;
SELECT g, largest(g) FROM generate_series(0, 900, 300) g;
ALTER TABLE t ALTER COLUMN v TYPE int8;
SELECT g, largest(g) FROM generate_series(0, 900, 300) g;
DROP TABLE t;
SELECT largest(1);
CREATE TABLE t (k date, v int2);
INSERT INTO t VALUES ('2020-01-01', 5), ('2020-01-01', 6), ('infinity', 2);
SELECT largest(1);
