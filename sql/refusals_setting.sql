--
-- gpurhh_refusals() whatever enable_gpu_hashagg is.
--
-- It had no row for a grouping that the setting alone kept from the node.  And the
-- functions that planning evaluates planned their own queries as if the setting
-- were on, and kept these plans: they used a node while it was off.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS SELECT i % 10 AS k, i::numeric AS n, i AS v FROM generate_series(1, 1000) i;
CREATE FUNCTION body() RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RETURN (SELECT sum(c) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) AS q); END $$;
CREATE FUNCTION refused_body() RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RETURN (SELECT sum(c) FROM (SELECT n, count(*) AS c FROM t GROUP BY n) AS q); END $$;
CREATE FUNCTION queries_of_body() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := (SELECT queries FROM gpurhh_stat);
BEGIN
	PERFORM body();
	RETURN (SELECT queries FROM gpurhh_stat) - before;
END $$;

SET enable_gpu_hashagg = off;
SELECT * FROM gpurhh_refusals('SELECT k, count(*) FROM t GROUP BY k; SELECT n, count(*) FROM t GROUP BY n; SELECT DISTINCT k FROM t; SELECT sum(v) FROM (SELECT n, sum(v) AS v FROM t GROUP BY n) q');
-- of a function's body nothing is told, and its plan follows the setting
SELECT * FROM gpurhh_refusals('SELECT v + body() FROM t WHERE v > refused_body()');
SELECT * FROM gpurhh_refusals('SELECT v, body(), count(*) FROM t WHERE v > refused_body() GROUP BY v');
SELECT queries_of_body();

SET enable_gpu_hashagg = on;
SELECT * FROM gpurhh_refusals('SELECT k, count(*) FROM t GROUP BY k; SELECT n, count(*) FROM t GROUP BY n; SELECT DISTINCT k FROM t');
SELECT * FROM gpurhh_refusals('SELECT v, body(), count(*) FROM t WHERE v > refused_body() GROUP BY v');
DISCARD PLANS;
CREATE OR REPLACE FUNCTION body() RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RETURN (SELECT sum(c) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) AS q); END $$;
SELECT * FROM gpurhh_refusals('SELECT v, body(), count(*) FROM t GROUP BY v');
SELECT queries_of_body();
-- an error leaves nothing behind
SELECT sqlstate_of('SELECT * FROM gpurhh_refusals(''SELECT v / 0, 1 / 0, count(*) FROM t GROUP BY v'')');
SELECT * FROM gpurhh_refusals('SELECT body()');
SET enable_gpu_hashagg = off;
SELECT count_nodes('SELECT k, count(*) FROM t GROUP BY k');

SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
