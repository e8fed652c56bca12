--
-- Every aggregate in every shape: without GROUP BY, of no rows, put together for
-- GROUPING SETS, beside a count(DISTINCT), in parallel.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- floats that are integers, whose sums do not depend on the order
CREATE TABLE t WITH (parallel_workers = 3) AS
	SELECT CASE WHEN g % 17 <> 0 THEN g % 13 END AS a, CASE WHEN g % 5 <> 0 THEN g % 4 END AS b, g % 50 AS x,
		(g % 300 - 150)::int2 AS i2, CASE WHEN g % 7 <> 0 THEN g * 31 % 1000 - 500 END AS i4, g * 1000000007::bigint AS i8,
		(g % 8)::float4 AS f4, (g % 64 - 30)::float8 AS f8, ((g % 977 - 300) / 4.0)::numeric(15,2) AS n, (g % 100)::numeric(8,3) AS n3,
		g % 1000 <> 0 AS bo, (g % 500)::text::money AS m, '2000-01-01'::date + g % 40 AS d, '10:00'::timetz + g % 50 * interval '1 second' AS tz,
		'2000-01-01'::timestamp + g % 70 * interval '1 hour' AS ts, g::oid AS o
	FROM generate_series(1, 12000) g;
ANALYZE t;
CREATE TABLE aggs (n serial, agg text);
INSERT INTO aggs (agg) SELECT format('%s(%s)', a, c) FROM unnest('{sum,avg}'::text[]) a, unnest('{i2,i4,i8,f4,f8,n,n3}'::text[]) c;
INSERT INTO aggs (agg) SELECT format('%s(%s)', a, c) FROM unnest('{min,max}'::text[]) a, unnest('{i2,i4,i8,f4,f8,n,n3,m,d,tz,ts,o}'::text[]) c;
INSERT INTO aggs (agg) SELECT format('%s(%s)', a, c) FROM unnest('{bit_and,bit_or,bit_xor}'::text[]) a, unnest('{i2,i4,i8}'::text[]) c;
INSERT INTO aggs (agg) SELECT format('%s(%s)', a, c) FROM unnest('{variance,var_pop,stddev,stddev_pop}'::text[]) a, unnest('{i2,i4,i8}'::text[]) c;
INSERT INTO aggs (agg) VALUES ('sum(m)'), ('bool_and(bo)'), ('bool_or(bo)'), ('every(bo)'), ('count(*)'), ('count(bo)'),
	('sum(i4) FILTER (WHERE bo)'), ('avg(n) FILTER (WHERE i4 > 0)');

-- all at once, some at a time, as columns are limited
CREATE FUNCTION all_of(query text, nodes int DEFAULT 1, settings text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql
SET enable_gpu_hashagg = off AS $f$
	SELECT DISTINCT regexp_replace(compare(format(query, string_agg(agg, ', ')), nodes => nodes, settings => settings), '^ok,', 'ok,')
	FROM aggs GROUP BY n % 8;
$f$;
SELECT all_of('SELECT %s FROM t');
SELECT all_of('SELECT %s FROM t WHERE x < 0');
SELECT all_of('SELECT %s FROM t WHERE i4 IS NULL');
SELECT all_of('SELECT a, %s FROM t GROUP BY a');
SELECT all_of('SELECT a, b, GROUPING(a, b), %s FROM t GROUP BY CUBE (a, b)');
SELECT all_of('SELECT a, b, %s FROM t WHERE x < 0 GROUP BY CUBE (a, b)');
SELECT all_of('SELECT a, count(DISTINCT x), %s FROM t GROUP BY a');
SELECT all_of('SELECT a, sum(DISTINCT i4), avg(DISTINCT i4), %s FROM t GROUP BY a');
SELECT all_of('SELECT count(DISTINCT x), %s FROM t');
SELECT all_of('SELECT count(DISTINCT x), %s FROM t WHERE x < 0');
SELECT all_of('SELECT a, b, %s FROM t GROUP BY CUBE (a, b)', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, work_mem=64kB');
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT all_of('SELECT %s FROM t');
SELECT all_of('SELECT a, b, %s FROM t GROUP BY CUBE (a, b)');
SELECT all_of('SELECT a, count(DISTINCT x), %s FROM t GROUP BY a');
RESET ALL;
:session
-- with DISTINCT where that is possible
SET enable_gpu_hashagg = on;
SELECT reason FROM aggs, gpurhh_refusals(format('SELECT a, %s FROM t GROUP BY a', regexp_replace(agg, '\((\w)', '(DISTINCT \1'))) WHERE agg NOT LIKE 'count(*)' AND agg !~ 'bit|var|stddev|f4|f8' ORDER BY n;
SELECT regexp_replace(agg, '\((\w)', '(DISTINCT \1'), compare(format('SELECT a, %s FROM t GROUP BY a', regexp_replace(agg, '\((\w)', '(DISTINCT \1')), nodes => 0) FROM aggs WHERE agg ~ '^(sum|avg)\((i|n)' ORDER BY n;
