--
-- Aggregates of two floats: corr, covar_..., regr_....  Core's change with the order
-- of the rows, so they are compared in ten digits; and where it matters whether a
-- sum is 0, exactly.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE p AS
	SELECT g % 17 AS k, g % 1999 AS many, (sin(g) * 1000 + g % 10)::float8 AS x, (sin(g) * 30 + cos(g * 7) + 100)::float8 AS y,
		   (g % 5000 - 2500) / 64.0::float8 AS e, (g % 64) / 8.0::float4 AS f, g % 100 AS i, 1.7e9 + g % 1000 / 8.0::float8 AS epoch
	FROM generate_series(1, 20000) g;
UPDATE p SET x = NULL WHERE many % 5 = 1 OR k = 5;
UPDATE p SET y = NULL WHERE many % 7 = 3 OR k = 6;
ANALYZE p;

-- so many digits of a number, or what it is instead; noise around 0 is 0
CREATE FUNCTION digits(x float8, n int DEFAULT 10, noise float8 DEFAULT 1e-9) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT CASE WHEN abs(x) < noise THEN '0' WHEN x IS NULL OR x::text IN ('NaN', 'Infinity', '-Infinity') THEN x::text ELSE to_char(x, '9.' || repeat('9', n - 1) || 'EEEE') END $$;
-- all of them over two expressions
CREATE FUNCTION pairs(y text, x text, n int DEFAULT 10) RETURNS text LANGUAGE sql AS
	$$ SELECT string_agg(format(CASE WHEN a = 'regr_count' THEN '%s(%s, %s)' ELSE 'digits(%s(%s, %s), %s)' END, a, y, x, n), ', ' ORDER BY i)
	   FROM unnest('{regr_count,regr_avgx,regr_avgy,regr_sxx,regr_syy,regr_sxy,covar_pop,covar_samp,corr,regr_r2,regr_slope,regr_intercept}'::text[]) WITH ORDINALITY u (a, i) $$;

SET enable_gpu_hashagg = on;
-- Of numbers that everything about is exact: core's to the last bit.
SELECT k, regr_count(i, k), regr_avgx(i, k), regr_avgy(i, k), regr_sxx(i, k), regr_syy(e, k) FROM p WHERE k IN (0, 16) GROUP BY k ORDER BY k;
SELECT regr_count(y, x), regr_avgx(y, x), regr_avgy(y, x), regr_sxx(y, x), regr_syy(y, x), regr_sxy(y, x), covar_pop(y, x), digits(covar_samp(y, x)), digits(corr(y, x)), digits(regr_r2(y, x)), digits(regr_slope(y, x)), digits(regr_intercept(y, x))
FROM (VALUES (1, 2), (2, 4), (3, 9), (4, 17), (NULL, 1000), (1000, NULL)) v (x, y);
SELECT compare('SELECT k, ' || pairs('y', 'x') || ' FROM p GROUP BY k');
SELECT compare('SELECT many, ' || pairs('y', 'x') || ' FROM p GROUP BY many');
SELECT compare('SELECT k, ' || pairs('e', 'x') || ', ' || pairs('x', 'e') || ' FROM p GROUP BY k');
SELECT compare('SELECT k, ' || pairs('i', 'f') || ' FROM p GROUP BY k');
SELECT compare('SELECT k, ' || pairs('x', 'x') || ' FROM p GROUP BY k');
-- values that are large and differ little; core itself is exact to as many digits
SELECT compare('SELECT k, ' || pairs('y', 'epoch', 5) || ' FROM p GROUP BY k');
SELECT compare('SELECT k, digits(corr(epoch, epoch + 5)), digits(regr_r2(epoch, epoch)), digits(regr_slope(epoch * 2, epoch)), digits(regr_sxy(epoch, epoch), 5) FROM p GROUP BY k');
-- exact, as is core, because sums of these are; others are not told from rounding there
SELECT compare('SELECT g % 3, ' || pairs('y', 'x', 15) || ' FROM (SELECT g, 1700000000000000 + g * g % 7 AS x, g * 3 % 5 AS y FROM generate_series(1, 9) g) v GROUP BY g % 3');
SELECT compare('SELECT k, corr(x, y), regr_sxx(y, x) > 0 FROM (VALUES (1, 1.0::float8, 0.0::float8), (1, 1.0000000000000002, 1), (2, 3, 4), (2, 3, 5), (3, 3, 3)) v (k, x, y) GROUP BY k');

-- Large ones that differ in a millionth of a thousandth: nearer to the truth than core.
CREATE TABLE far AS SELECT g % 2 AS k, 1700000000000000 + g::int8 * g * 7919 % 1000003 AS x, 900000000000000 + g::int8 * g * 104729 % 1000033 AS y FROM generate_series(1, 100000) g;
CREATE TABLE truth AS SELECT k, (count(*) * sum(x::numeric * x) - sum(x) ^ 2) / count(*) AS sxx, (count(*) * sum(x::numeric * y) - sum(x) * sum(y)) / count(*) AS sxy, (count(*) * sum(y::numeric * y) - sum(y) ^ 2) / count(*) AS syy FROM far GROUP BY k;
SET enable_gpu_hashagg = off;
CREATE TABLE cores AS SELECT k, regr_sxx(y, x) AS sxx, regr_sxy(y, x) AS sxy, corr(x, y) AS corr FROM far GROUP BY k;
SET enable_gpu_hashagg = on;
CREATE TABLE ours AS SELECT k, regr_sxx(y, x) AS sxx, regr_sxy(y, x) AS sxy, corr(x, y) AS corr FROM far GROUP BY k;
SELECT k, abs(o.sxx / t.sxx - 1) < 1e-8 AS sxx, abs(o.sxy - t.sxy) / sqrt(t.sxx * t.syy) < 1e-8 AS sxy, abs(o.corr - t.sxy / sqrt(t.sxx * t.syy)) < 1e-8 AS corr, abs(c.sxx / t.sxx - 1) < 1e-7 AS cores FROM truth t JOIN ours o USING (k) JOIN cores c USING (k) ORDER BY k;

-- and where nothing is left but rounding, no correlation is beyond 1
SELECT bool_and(abs(corr) < 1.000001) FROM (SELECT n, corr(1.7e15 + g * g % 3, 9e14 + g * 7 % 5) FROM generate_series(1, 10) n, generate_series(1, 1000 * n) g GROUP BY n) v;
-- expressions, filters, other aggregates of the same columns, HAVING
SELECT analyze_json('SELECT k, corr(x, y), regr_slope(e * 2, i), covar_pop(f, y) FILTER (WHERE many > 5), avg(x), stddev(y) FROM p GROUP BY k') -> 'Feed';
SELECT compare('SELECT k, ' || pairs('e * 2', 'i') || ', regr_count(x, y) FILTER (WHERE many > 5), digits(covar_pop(f, y) FILTER (WHERE many > 5 AND f < 3)), digits(avg(x)), digits(stddev(y)), digits(corr(y, x)), count(x), max(y) FROM p GROUP BY k');
SELECT compare('SELECT k, digits(corr(100 / e, x) FILTER (WHERE e > 1)) FROM p GROUP BY k');
SELECT compare('SELECT k, digits(corr(x, y)) FROM p GROUP BY k HAVING regr_count(x, y) > 100 AND corr(x, y) > 0.9 AND regr_slope(y, x) IS NOT NULL');
SELECT compare('SELECT many, regr_count(x, y) FROM p GROUP BY many HAVING regr_sxx(x, y) IS NULL');
SELECT compare('SELECT k, digits(corr(x, 1)), digits(regr_r2(1, x)), digits(regr_slope(NULL::float8, x)), regr_count(x, NULL), regr_count(1, 2) FROM p GROUP BY k');

-- One row, two, equal values, none; x or y the same in all.  Sums of these are
-- exact, so core knows them as equal too.
CREATE TABLE few AS
	SELECT format('%s rows, %s, %s', n, tx, ty) AS k,
		   CASE tx WHEN 'equal' THEN 2.5 WHEN 'different' THEN i * i WHEN 'zeros' THEN CASE WHEN i % 2 = 0 THEN 0 ELSE '-0'::float8 END WHEN 'line' THEN i END AS x,
		   CASE ty WHEN 'equal' THEN -7 WHEN 'different' THEN 20 - i % 3 WHEN 'zeros' THEN 0 WHEN 'line' THEN i * 2 + 3 END::float8 AS y
	FROM unnest('{1,2,3,4,100}'::int[]) n, generate_series(1, n) i, unnest('{equal,different,zeros,nulls,line}'::text[]) tx, unnest('{equal,different,zeros,nulls,line}'::text[]) ty;
SELECT compare('SELECT k, ' || pairs('y', 'x', 14) || ' FROM few GROUP BY k');
SELECT k, digits(corr(y, x)), digits(regr_r2(y, x)), digits(regr_slope(y, x)), digits(regr_intercept(y, x)), digits(regr_sxx(y, x)), digits(covar_samp(y, x)) FROM few WHERE k ~ '^[14] rows' AND k !~ 'nulls|zeros' GROUP BY k ORDER BY k;
-- Known to differ: 0.1 * 6 is not 0.1 added up six times, so it is not constant to core.
SET enable_gpu_hashagg = off;
SELECT k, corr(g, 0.1) IS NULL FROM (SELECT k, g FROM generate_series(5, 6) k, generate_series(1, k) g) v GROUP BY k ORDER BY k;
SET enable_gpu_hashagg = on;
SELECT k, corr(g, 0.1) IS NULL FROM (SELECT k, g FROM generate_series(5, 6) k, generate_series(1, k) g) v GROUP BY k ORDER BY k;
SELECT k, corr(g, 0.1), regr_slope(g, 0.1), regr_r2(0.1, g), regr_sxx(g, 0.1) FROM (SELECT 1 AS k, g FROM generate_series(1, 1000) g) v GROUP BY k;

-- Special values, one by one and together.
CREATE TABLE special AS
	SELECT i AS mask, v.x::float8, v.y::float8
	FROM generate_series(1, 511) i,
		 (VALUES (1, 'NaN', '1'), (2, 'Infinity', '2'), (4, '-Infinity', '3'), (8, '0', 'NaN'), (16, '-0', '5'),
			 (32, '1.5', '7'), (64, '-1.5', 'Infinity'), (128, '5e-324', '2'), (256, '7', '-Infinity')) v (bit, x, y)
	WHERE i & v.bit > 0;
SELECT compare('SELECT mask, ' || pairs('y', 'x') || ' FROM special GROUP BY mask');
SELECT compare('SELECT mask, ' || pairs('1', 'x') || ' FROM special GROUP BY mask');
SELECT compare('SELECT mask, ' || pairs('x', 'y * y') || ' FROM special GROUP BY mask');

-- Extremes: what overflows is an error, here and there.
CREATE TABLE big (k int, x float8, y float8);
INSERT INTO big VALUES
	(1, 1.7e308, 1), (2, 1.7e308, 1), (2, 1.7e308, 2), (3, 1e160, 1), (3, -1e160, 2), (4, 1, 1e200), (4, 2, 1), (5, 1e170, 3e175), (5, 2e170, 1e175),
	(6, 1.7e308, 1), (6, 'Infinity', 2), (7, 1.7e308, 'NaN'), (7, 1e306, 5), (8, 1e100, 1e100), (8, 2e100, 1e101), (8, 5e100, 7e99), (9, 3e152, -3e152), (9, 1e152, 2e152),
	(10, 1e-100, 1e-90), (10, 2e-100, 3e-90), (10, 5e-100, -1e-90), (11, 1e120, 1e-120), (11, 3e120, 2e-120), (11, 4e120, 0), (12, NULL, 1e300), (12, 1e300, NULL), (12, 1, 2), (12, 2, 5);
SELECT k, a, either(format('SELECT k, %s(y, x) FROM big WHERE k = %s GROUP BY k', a, k))
FROM generate_series(1, 12) k, unnest('{regr_count,regr_avgx,regr_avgy,regr_sxx,corr}'::text[]) a;
-- products whose squares are beyond a double, and below one
SELECT compare('SELECT k, ' || replace(pairs('y', 'x'), ', 10)', ', 10, 0)') || ' FROM big WHERE k IN (8, 9, 10, 11, 12) GROUP BY k');
SELECT k, digits(corr(y, x)), digits(regr_slope(y, x)), digits(covar_pop(y, x)) FROM big WHERE k IN (8, 9, 11, 12) GROUP BY k ORDER BY k;

-- parallel plans, a rescan, rows that the device refuses, a spill, no rows
SELECT compare('SELECT many, ' || pairs('y', 'x') || ' FROM p GROUP BY many', settings => 'min_parallel_table_scan_size=0,parallel_setup_cost=0,parallel_tuple_cost=0');
SELECT compare('SELECT many, ' || pairs('y', 'x') || ' FROM p GROUP BY many', settings => 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95,work_mem=64kB');
SELECT compare('SELECT many, ' || pairs('y', 'x') || ' FROM p GROUP BY many', settings => 'gpurhh.device_memory=1MB,work_mem=64kB');
SELECT compare('SELECT many, k, ' || pairs('y', 'x') || ' FROM p GROUP BY many, k', settings => 'gpurhh.device_memory=1MB,gpurhh.batch_rows=64,work_mem=64kB');
SELECT compare('SELECT z, s FROM generate_series(1, 4) z, LATERAL (SELECT k, digits(regr_slope(e + z, x)) AS s, regr_count(e, y) FROM p WHERE many < z * 100 GROUP BY k) v');
SELECT compare('SELECT k, ' || pairs('y', 'x') || ' FROM p WHERE k > 100 GROUP BY k');
SELECT compare('SELECT ' || pairs('y', 'x') || ' FROM p WHERE k > 100');
SELECT compare('SELECT ' || pairs('y', 'x') || ' FROM p');
-- on the second level, made by the device and by the host, and the third; by rows; through dictionary passes
SELECT analyze_json('SELECT k, many % 5, corr(x, y), stddev(x) FROM p GROUP BY ROLLUP (k, many % 5)') -> 'Second Level';
SELECT compare('SELECT k, many % 5, ' || pairs('y', 'x') || ' FROM p GROUP BY ROLLUP (k, many % 5)', settings => 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95,work_mem=64kB');
SELECT compare('SELECT k, count(DISTINCT i), count(DISTINCT many % 9), digits(variance(y)), ' || pairs('y', 'x') || ' FROM p GROUP BY CUBE (k)');
SELECT compare('SELECT mask, x + 0, ' || pairs('y', 'x') || ' FROM special GROUP BY ROLLUP (mask, x + 0)');
SELECT k, either(format('SELECT x, k, %s(y, x) FROM big WHERE k = %s GROUP BY GROUPING SETS ((x, k), (k))', a, k)) FROM generate_series(1, 12) k, unnest('{corr,regr_avgx}'::text[]) a;
SELECT compare('SELECT k, many % 5, ' || pairs('y', 'x') || ' FROM p GROUP BY ROLLUP (k, many % 5)');
SELECT compare('SELECT k, count(DISTINCT many), sum(DISTINCT i), ' || pairs('y', 'x') || ' FROM p GROUP BY k');
SELECT compare('SELECT k, min(i::text COLLATE "C"), ' || pairs('y', 'x') || ' FROM p GROUP BY k');
SELECT compare('SELECT a.k, ' || pairs('b.y', 'a.x') || ' FROM p a JOIN p b ON a.many = b.many AND a.k = b.k AND a.i <= b.i GROUP BY a.k');
SELECT compare('SELECT repeat(many::text, 20), ' || pairs('y', 'x') || ' FROM p GROUP BY 1', settings => 'work_mem=64kB, hash_mem_multiplier=1');

-- sums that overflow on the first level do so on the second
SELECT a, either(format('SELECT k, count(DISTINCT i %% 2), %s FROM (SELECT 1 AS k, i, CASE WHEN i %% 4 < 2 THEN 3e153 ELSE -3e153 END::float8 AS x FROM generate_series(1, 100) i) v GROUP BY k', a)) FROM unnest('{stddev(x),"corr(x, i)","covar_pop(i, x)"}'::text[]) a;

-- 64 states, and more; refusals
SELECT compare(format('SELECT k, %s FROM p GROUP BY k', string_agg(format('digits(corr(x, e * e + %s * x))', i), ', '))) FROM generate_series(1, 7) i;
SELECT reason FROM gpurhh_refusals((SELECT format('SELECT k, %s FROM p GROUP BY k', string_agg(format('corr(x, e + %s)', i), ', ')) FROM generate_series(1, 9) i));
SELECT reason FROM gpurhh_refusals('SELECT k, corr(DISTINCT x, y) FROM p GROUP BY k; SELECT k, regr_count(x, y ORDER BY x) FROM p GROUP BY k; SELECT k, corr(x, random()) FROM p GROUP BY k; SELECT k, string_agg(k::text, '','') FROM p GROUP BY k; SELECT k, json_object_agg(i, x) FROM p GROUP BY k; SELECT k, covar_pop(x, y) FILTER (WHERE random() > 2) FROM p GROUP BY k');
