--
-- Eager aggregation: a table that is grouped before it is joined, where its rows would make
-- very many pairs.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- The answer is core's, and how many subqueries the plan has that the query has not.
CREATE FUNCTION early(query text, settings text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $f$
DECLARE
	used text := concat_ws(', ', 'enable_gpu_hashjoin=on', settings);
	before int;
	after int;
BEGIN
	PERFORM apply_settings('enable_gpu_hashagg=on, gpurhh.enable_eager_aggregate=off, ' || used);
	SELECT count(*) INTO before FROM explained(query) line WHERE line LIKE '%Seq Scan on % %\_1%';
	PERFORM apply_settings('gpurhh.enable_eager_aggregate=on');
	SELECT count(*) INTO after FROM explained(query) line WHERE line LIKE '%Seq Scan on % %\_1%';
	PERFORM apply_settings('enable_gpu_hashagg=off, enable_gpu_hashjoin=off');
	RETURN compare(query, settings => used, nodes => 0) || '; ' || after - before || ' grouped';
END $f$;

-- each value of k many times, and of the others, too; NULLs; keys that one side has alone
-- what a device costs less must be seen
SET gpurhh.row_cost = 0.005;
SET gpurhh.group_cost = 0.015;

CREATE TABLE a AS
	SELECT CASE WHEN g % 11 <> 0 THEN g % 12 END AS k, (g % 12)::int8 AS k8, g % 7 AS g, 'name ' || g % 5 AS t,
		(g % 100)::int2 AS i2, g % 1000 - 300 AS i4, CASE WHEN g % 3 <> 0 THEN g * 1000003::int8 END AS i8, (g / 7.0)::numeric(10, 2) AS n, g / 3.0 AS free, g::float8 AS f,
		g % 12 / 4.0::numeric(6, 2) AS k_free, (g % 12 / 4.0)::numeric(6, 2) AS kn, 'key ' || g % 12 AS kt, '2000-01-01'::date + g % 12 AS kd
	FROM generate_series(1, 900) g;
CREATE TABLE b AS
	SELECT CASE WHEN g % 13 <> 0 THEN g % 14 END AS k, (g % 14)::int2 AS k2, g % 5 AS g, 'text ' || g % 9 AS t,
		(g % 90)::int2 AS i2, CASE WHEN g % 4 <> 0 THEN g % 900 - 400 END AS i4, g * 999983::int8 AS i8, CASE WHEN g % 17 <> 0 THEN (g / 9.0)::numeric(10, 3) END AS n, g / 11.0 AS free, g::float8 AS f,
		(g % 14 / 4.0)::numeric(6, 2) AS kn, 'key ' || g % 14 AS kt, '2000-01-01'::date + g % 14 AS kd, g % 2 = 0 AS p
	FROM generate_series(1, 800) g;
CREATE TABLE c AS SELECT g % 10 AS k, g % 3 AS g, g AS x FROM generate_series(1, 600) g;
CREATE TABLE d AS SELECT g AS k, 'd ' || g % 4 AS name FROM generate_series(0, 20) g;
CREATE TABLE nothing (LIKE b);
CREATE VIEW of_b AS SELECT * FROM b WHERE p;
ANALYZE a;
ANALYZE b;
ANALYZE c;
ANALYZE d;

SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT a.g, count(*), sum(a.i4), sum(b.i4), sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k WHERE b.i2 > 5 GROUP BY a.g;
SET gpurhh.enable_eager_aggregate = off;
EXPLAIN (COSTS OFF) SELECT a.g, count(*), sum(a.i4), sum(b.i4), sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k WHERE b.i2 > 5 GROUP BY a.g;
RESET gpurhh.enable_eager_aggregate;
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;

-- each aggregate, of either side, with and without a filter and a grouping
SELECT x, early(format('SELECT a.g, %s FROM a JOIN b ON a.k = b.k GROUP BY a.g', x)), early(format('SELECT %s FROM a JOIN b ON a.k = b.k WHERE b.g < 3', x))
FROM unnest('{count(*),count(a.k),count(a.i8),count(b.i4),sum(a.i2),sum(a.i4),sum(a.i8),sum(a.n),sum(a.free),sum(b.i2),sum(b.i4),sum(b.i8),sum(b.n),sum(b.free),avg(a.i2),avg(a.i4),avg(a.i8),avg(a.n),avg(a.free),avg(b.i2),avg(b.i4),avg(b.i8),avg(b.n),avg(b.free)}'::text[]) x;
SELECT x, early(format('SELECT a.g, %s FROM a JOIN b ON a.k = b.k GROUP BY a.g', x))
FROM unnest('{min(a.i4),max(b.i4),min(b.t),max(a.t),min(b.f),max(b.kd),bool_and(b.p),bool_or(b.p),min(b.free),sum(a.i2 * b.i2),sum(a.i4 * b.i4),sum(b.i4 * a.i8),sum(a.i8 * b.i2),sum(a.n * b.n),sum(a.n * b.i4),sum(b.i8 * a.n),sum((a.i4 + 5) * b.i4),sum(a.i4 * b.i4::int8),sum(a.i4 + a.g),sum(a.k * b.k)}'::text[]) x;
SELECT x, early(format('SELECT a.g, %s FROM a JOIN b ON a.k = b.k GROUP BY a.g', x))
FROM unnest(ARRAY['count(*) FILTER (WHERE a.i4 > 100)', 'sum(b.i4) FILTER (WHERE a.i4 > 100)', 'sum(a.i4) FILTER (WHERE a.i4 > 10000)', 'count(b.i4) FILTER (WHERE a.t <> ''name 1'')', 'avg(a.i4) FILTER (WHERE a.i4 > 0)',
	'min(b.i4) FILTER (WHERE a.i4 > 0)', 'sum(a.i4) * 2 + count(*)', 'CASE WHEN count(*) > 9000 THEN sum(b.i4) END']) x;
-- not these
SELECT x, early(format('SELECT a.g, %s FROM a JOIN b ON a.k = b.k GROUP BY a.g', x))
FROM unnest(ARRAY['sum(a.i4 + b.i4)', 'sum(a.i4) FILTER (WHERE b.i4 > 0)', 'count(DISTINCT b.i4)', 'sum(a.f)', 'sum(b.f)', 'sum(a.free * b.free)', 'sum(b.i4 / 1)', 'sum(a.n * b.free)', 'string_agg(b.t, '','' ORDER BY b.t)', 'stddev(b.i4)', 'sum(b.i4 * b.i4)',
	'sum(a.i4 * (random() * 0)::int)', 'max(a.i4 + b.i4)', 'count(b.*)', 'sum((SELECT 1) * b.i4)']) x;

-- keys of each type; numerics are no such keys, since equal ones may have different scales
SELECT x, early(format('SELECT a.g, count(*), sum(b.i4) FROM a JOIN b ON %s GROUP BY a.g', x))
FROM unnest('{a.k = b.k,a.k8 = b.k2,a.kn = b.kn,a.kt = b.kt,a.kd = b.kd,a.k = b.k AND a.kt = b.kt,a.k = b.k AND a.g < b.g,a.k = b.k AND a.g + b.g = 4,a.k = b.k AND b.i4 > 0 AND a.i4 > 0,a.k = b.k AND b.k < 5,a.k_free = b.kn}'::text[]) x;
-- grouping columns of either side, and of expressions; conditions of groups
SELECT x, early(format('SELECT %s, count(*), sum(a.i4), sum(b.i4) FROM a JOIN b ON a.k = b.k GROUP BY %1$s HAVING sum(b.i4) IS NOT NULL', x))
FROM unnest('{a.k,b.k,b.g,a.t,b.p,a.g + b.g,a.free}'::text[]) x;
SELECT early('SELECT a.g, b.g AS h, count(*) AS n FROM a JOIN b USING (k) GROUP BY a.g, b.g HAVING count(*) > 100 AND min(b.i4) < 0 ORDER BY n DESC, 1, 2 LIMIT 5');
SELECT early('SELECT k, count(*) FROM a JOIN b USING (k) GROUP BY k');
SELECT early('SELECT DISTINCT count(*) FROM a NATURAL JOIN (SELECT k, i4 AS z FROM b) q GROUP BY g');
SELECT early('SELECT g, n, rank() OVER (ORDER BY n) FROM (SELECT a.g, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.g) q');
SELECT early('SELECT a.g, sum(sum(b.i4)) OVER (ORDER BY a.g) FROM a JOIN b ON a.k = b.k GROUP BY a.g');

-- several tables, of which one or two are grouped; a dimension is not
SELECT early('SELECT a.g, count(*), sum(a.i4), sum(b.i4), sum(c.x), sum(b.i4 * c.x) FROM a, b, c WHERE a.k = b.k AND a.k = c.k GROUP BY a.g');
SELECT early('SELECT d.name, count(*), sum(a.i4), sum(b.i4) FROM a JOIN b ON a.k = b.k JOIN d ON d.k = a.g GROUP BY d.name');
SELECT early('SELECT d.name, count(*), sum(b.i4) FROM d JOIN b ON d.k = b.k GROUP BY d.name');
SELECT early('SELECT x.g, count(*), sum(y.i4) FROM a x JOIN a y ON x.k = y.k GROUP BY x.g');
-- one that cannot be grouped when others are keeps its conditions
SELECT early('SELECT avg(b.i4), sum(b.i4) FROM b JOIN a ON a.k = b.k JOIN c ON c.k = b.k WHERE b.k IN (1, 3, 5)', 'enable_mergejoin=off, enable_nestloop=off');
-- one that no condition joins may have no row, and then there is none; it would have had a group of all its rows
CREATE TABLE emptied AS SELECT g AS x FROM generate_series(1, 600) g;
ANALYZE emptied;
DELETE FROM emptied;
SELECT early('SELECT max(a.i4) FROM a, b, c WHERE a.k = b.k AND c.x < 0');
SELECT early('SELECT a.g, max(a.i4), count(*) FROM a, b, c WHERE a.k = b.k AND c.x < 0 GROUP BY a.g');
SELECT early('SELECT a.g, count(*), sum(a.i4), sum(e.x) FROM a, b, emptied e WHERE a.k = b.k GROUP BY a.g');
SELECT early('SELECT count(*), sum(a.i4), max(b.i4), min(a.i4), avg(a.i4) FROM a, b, emptied e WHERE a.k = b.k');
-- other levels of a query, views, prepared statements
SELECT early('WITH q AS MATERIALIZED (SELECT a.g, count(*) AS n, sum(b.i4) FROM a JOIN b ON a.k = b.k GROUP BY a.g) SELECT * FROM q UNION ALL SELECT g, n, n FROM q WHERE n > 10000');
SELECT early('SELECT c.k, (SELECT sum(b.i4) FROM a JOIN b ON a.k = b.k WHERE b.g = c.k) FROM c WHERE c.x < 20');
SELECT early('SELECT a.g, count(*), sum(v.i4) FROM a JOIN of_b v ON a.k = v.k GROUP BY a.g');
CREATE FUNCTION of_more_than(x int) RETURNS TABLE (n bigint, s bigint) LANGUAGE plpgsql AS $f$
BEGIN
	RETURN QUERY SELECT count(*), sum(b.i4) FROM a JOIN b ON a.k = b.k WHERE b.g > x AND a.i4 > x GROUP BY a.g;
END $f$;
SET plan_cache_mode = force_generic_plan;
SELECT early('SELECT * FROM of_more_than(1) UNION ALL SELECT * FROM of_more_than(2)');
RESET plan_cache_mode;
-- no rows
SELECT early('SELECT count(*), sum(a.i4), sum(b.i4), min(b.t), avg(a.i4) FROM a JOIN b ON a.k = b.k WHERE b.g > 100');
SELECT early('SELECT a.g, count(*) FROM a JOIN nothing b ON a.k = b.k GROUP BY a.g');
-- outer joins, sublinks, locks and such stay as they are
SELECT early('SELECT a.g, count(*), sum(b.i4) FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.g');
SELECT early('SELECT a.g, count(*), sum(b.i4) FROM a JOIN b ON a.k = b.k WHERE EXISTS (SELECT FROM c WHERE c.k = a.k) GROUP BY a.g');
SELECT early('SELECT a.g, b.g, count(*) FROM a JOIN b ON a.k = b.k GROUP BY ROLLUP (a.g, b.g)');
SELECT early('SELECT a.g, count(*) FROM a JOIN b TABLESAMPLE SYSTEM (100) ON a.k = b.k GROUP BY a.g');

-- a product that is out of range is an error, as it is of the rows; sums of those that are not are none
UPDATE b SET i4 = 2147483647 WHERE g = 3 AND k = 4;
SELECT early('SELECT a.g, sum(a.i8), sum(b.i4) FROM a JOIN b ON a.k = b.k GROUP BY a.g');
SELECT q, either(q) FROM unnest('{"SELECT a.g, sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k GROUP BY a.g",
	"SELECT a.g, sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k WHERE a.k <> 4 GROUP BY a.g",
	"SELECT a.g, sum(b.i4 / (a.g - 3)) FROM a JOIN b ON a.k = b.k GROUP BY a.g"}'::text[]) q;
SET enable_gpu_hashjoin = on;
SELECT q, either(q) FROM unnest('{"SELECT a.g, sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k GROUP BY a.g",
	"SELECT a.g, sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k WHERE a.k <> 4 GROUP BY a.g",
	"SELECT a.g, sum(a.i8 * b.i8 * 100000000) FROM a JOIN b ON a.k = b.k GROUP BY a.g"}'::text[]) q;
-- what is not of rows that are joined is not computed
INSERT INTO b (k, i4, i8) SELECT 13, 2147483647, 9223372036854775807 FROM generate_series(1, 50);
SELECT either('SELECT a.g, sum(a.i4 * b.i4) FROM a JOIN b ON a.k = b.k WHERE a.k <> 4 GROUP BY a.g');
RESET enable_gpu_hashjoin;

-- whoever may not read a table may not read it this way, and a policy holds
CREATE ROLE regress_gpurhh_early;
SELECT format('GRANT USAGE ON SCHEMA %I TO regress_gpurhh_early', current_schema) \gexec
GRANT SELECT ON a TO regress_gpurhh_early;
GRANT SELECT (k, g) ON b TO regress_gpurhh_early;
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
SET ROLE regress_gpurhh_early;
SELECT a.g, sum(b.i4) FROM a JOIN b ON a.k = b.k GROUP BY a.g;
SELECT count(*) FROM (SELECT a.g, sum(b.g) FROM a JOIN b ON a.k = b.k GROUP BY a.g) q;
RESET ROLE;
RESET enable_gpu_hashagg;
RESET enable_gpu_hashjoin;
DROP OWNED BY regress_gpurhh_early;
DROP ROLE regress_gpurhh_early;
