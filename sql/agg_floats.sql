--
-- Aggregates over floats.  sum and avg of numbers whose sums are exact are core's
-- to the last bit, in any order of the rows; others, and variances, are compared
-- in twelve digits (four of a sum of reals, which core rounds with each addition).
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE f AS
	SELECT g % 17 AS k, g % 1999 AS many, (g % 1000 - 500) / 8.0::float4 AS e4, (g % 5000 - 2500) / 64.0::float8 AS e8,
		   (sin(g) * 1000)::float4 AS r4, (sin(g) * exp(g % 40))::float8 AS r8, 1.7e9 + g % 1000 / 8.0::float8 AS epoch
	FROM generate_series(1, 20000) g;
UPDATE f SET e4 = NULL, e8 = NULL, r4 = NULL, r8 = NULL WHERE many % 7 = 3 OR k = 5;
ANALYZE f;

SELECT k, sum(e4), sum(e8), avg(e4), avg(e8), min(r4), max(r4), min(r8), max(r8) FROM f WHERE k < 6 GROUP BY k ORDER BY k;
SELECT compare('SELECT k, sum(e4), sum(e8), avg(e4), avg(e8), min(e4), max(e4), min(e8), max(e8), count(e8) FROM f GROUP BY k');
SELECT compare('SELECT many, sum(e4), sum(e8), avg(e4), avg(e8), min(r4), max(r4), min(r8), max(r8) FROM f GROUP BY many');
SELECT compare('SELECT k, sum(e8) FILTER (WHERE e8 > 0), avg(e4 * 2), max(-e8), sum(CASE WHEN many < 1000 THEN e8 END), min(e8 + e4) FROM f GROUP BY k');
SELECT compare('SELECT k, sum(e8), max(r8) FROM f GROUP BY k HAVING sum(e8) > 0 AND max(r4) < 999.995 AND min(e4) IS NOT NULL');
SELECT compare('SELECT e8, sum(e8), avg(e8), min(e8), max(e8) FROM f GROUP BY e8');
SELECT analyze_json('SELECT k, sum(e4 * 2), avg(e8 + 1), min(e4), max(-e8), stddev(e8), bool_and(e8 > 0) FROM f GROUP BY k') -> 'Feed';

-- twelve digits of a number, or what it is instead
CREATE FUNCTION digits(x float8, n int DEFAULT 12) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$ SELECT CASE WHEN x = 0 OR x IS NULL OR x::text IN ('NaN', 'Infinity', '-Infinity') THEN x::text ELSE to_char(x, '9.' || repeat('9', n - 1) || 'EEEE') END $$;
SELECT compare('SELECT k, digits(sum(abs(r4)), 4), digits(avg(r4)), digits(sum(r8)), digits(avg(r8)) FROM f GROUP BY k');
-- Core rounds a sum of reals to 32 bits with each row, which after 40000 may leave
-- three digits; here it is rounded once.
SET enable_gpu_hashagg = on;
SELECT k, count(*), sum(x) = sum(x::float8)::real AS rounded_once
FROM (SELECT g % 2 AS k, (307.375 + g % 5)::real AS x FROM generate_series(1, 80000) g) y GROUP BY k ORDER BY k;
SET enable_gpu_hashagg = off;
SELECT k, count(*), sum(x) = sum(x::float8)::real AS rounded_once
FROM (SELECT g % 2 AS k, (307.375 + g % 5)::real AS x FROM generate_series(1, 80000) g) y GROUP BY k ORDER BY k;
RESET enable_gpu_hashagg;
SELECT compare('SELECT k, digits(variance(r4)), digits(var_pop(r8)), digits(stddev(r4)), digits(stddev_pop(r8)), digits(stddev_samp(e8)), digits(var_samp(e4)) FROM f GROUP BY k');
SELECT compare('SELECT many, digits(variance(e4)), digits(var_pop(e8)), digits(stddev(e4)), digits(stddev_pop(r8)), digits(stddev_samp(r8)), digits(var_samp(r4)) FROM f GROUP BY many');
-- where the values are large and differ little; core itself is exact to as many
SELECT compare('SELECT k, digits(variance(epoch), 8), digits(stddev_pop(epoch), 8) FROM f GROUP BY k');
SELECT k, digits(var_pop(x)) FROM (SELECT 1 AS k, x FROM unnest('{100000003,100000004,100000006,100000007}'::float8[]) x) y GROUP BY k;
SELECT compare('SELECT k, var_pop(x), stddev(x), var_samp(x) FROM (SELECT g % 3 AS k, x FROM unnest(''{100000003,100000004,100000006,100000007,0.1,0.1,1e-160,7,7,7}''::float8[]) WITH ORDINALITY u (x, g)) y WHERE x > 10 GROUP BY k');
-- one value, equal values, none
SELECT compare('SELECT g, var_pop(x), var_samp(x), stddev_pop(x), stddev_samp(x), avg(x), sum(x) FROM (SELECT g, CASE WHEN g > 1 THEN 0.1::float8 END AS x FROM generate_series(1, 4) g, generate_series(1, g - 1)) y GROUP BY g');

-- Special values, one by one and together, NaN and zeros of either sign.
CREATE TABLE special AS
	SELECT i AS mask, v.x::float8 AS f8, v.x4::float4 AS f4
	FROM generate_series(1, 1023) i,
		 (VALUES (1, 'NaN', 'NaN'), (2, 'Infinity', 'Infinity'), (4, '-Infinity', '-Infinity'), (8, '0', '0'), (16, '-0', '-0'),
			 (32, '1.5', '1.5'), (64, '-1.5', '-1.5'), (128, '5e-324', '1e-45'), (256, '-5e-324', '-1e-45'), (512, '1e100', '1e30')) v (bit, x, x4)
	WHERE i & v.bit > 0;
INSERT INTO special SELECT mask, -f8, -f4 FROM special WHERE f8 = 'NaN';
-- (1.5 takes 5e-324 in, and -1.5 does not give it back: that depends on the order)
SELECT compare('SELECT mask, sum(f8), avg(f8), sum(f4), avg(f4) FROM special WHERE mask & 96 < 96 OR mask & 384 = 0 GROUP BY mask');
SELECT compare('SELECT mask, min(f8), max(f8), min(f4), max(f4) FROM special WHERE mask & 24 <> 24 GROUP BY mask');
SELECT compare('SELECT mask, min(f8) + 0, max(f8) + 0, min(f4) + 0, max(f4) + 0 FROM special GROUP BY mask');
SELECT compare('SELECT mask, sum(f8), avg(f8), sum(f4), avg(f4) FROM special WHERE f8 = 0 GROUP BY mask');
SELECT compare('SELECT mask, digits(var_pop(f8)), digits(stddev(f8)), digits(var_samp(f4)), digits(stddev_pop(f4)) FROM special WHERE mask < 512 GROUP BY mask');
SELECT f8, count(*), min(f8), max(f8) FROM special WHERE mask & 24 <> 24 GROUP BY f8 ORDER BY f8;

-- Extremes: what overflows is an error, here and there.
CREATE TABLE big (k int, f8 float8, f4 float4);
INSERT INTO big VALUES
	(1, 1.7e308, 3.4e38), (1, 1.7e308, 3.4e38), (2, 1.7e308, 3.4e38), (3, -1.7e308, -3.4e38), (3, -1.7e308, -3.4e38),
	(4, 1e160, 1e38), (4, -1e160, -1e38), (5, 1e200, 1e38), (5, 1, 1), (6, 1e200, 1e38), (6, 2e200, 2e38), (7, 1e170, 1e38), (7, 3e175, 2e38), (8, 1e160, 0), (8, 2, 1),
	(9, 1.7e308, 3e38), (9, 'Infinity', 'Infinity'), (10, 1e150, 1e37), (10, -1e150, -1e37), (11, 3e38, 3e38), (11, 3e38, 1e38),
	(12, 1e200, 1), (12, 1e200, 1), (13, 1.7e308, 3e38), (13, 'NaN', 'NaN'), (14, 3e153, 1), (14, 1e-300, 2);
SELECT k, either(format('SELECT k, sum(f8) FROM big WHERE k = %s GROUP BY k', k)) AS sum8, either(format('SELECT k, sum(f4) FROM big WHERE k = %s GROUP BY k', k)) AS sum4
FROM generate_series(1, 14) k;
SELECT k, either(format('SELECT k, avg(f8) FROM big WHERE k = %s GROUP BY k', k)) AS avg8, either(format('SELECT k, avg(f4) FROM big WHERE k = %s GROUP BY k', k)) AS avg4
FROM generate_series(1, 14) k;
SELECT k, either(format('SELECT k, stddev(f8) FROM big WHERE k = %s GROUP BY k', k)) AS dev8, either(format('SELECT k, var_pop(f4) FROM big WHERE k = %s GROUP BY k', k)) AS var4
FROM generate_series(1, 14) k WHERE k <> 12;
-- Known to differ: core's sum of squares of equal values is 0, whatever they
-- are, if it is lucky with rounding; here their squares are not representable.
SELECT either('SELECT k, stddev(f8) FROM big WHERE k = 12 GROUP BY k');
SELECT compare('SELECT k, sum(f8), avg(f8), min(f8), max(f8), sum(f4), digits(stddev(f4), 7) FROM big WHERE k IN (2, 9, 13) GROUP BY k');
SELECT compare('SELECT k, min(f8), max(f8), min(f4), max(f4) FROM big GROUP BY k');

-- parallel plans, a rescan, rows that the device refuses, a spill
SELECT compare('SELECT many, sum(e4), sum(e8), avg(e8), min(r8), max(r4), digits(variance(r8)) FROM f GROUP BY many', settings => 'min_parallel_table_scan_size=0,parallel_setup_cost=0,parallel_tuple_cost=0');
SELECT compare('SELECT many, sum(e4), sum(e8), avg(e8), min(r8), max(r4), digits(variance(r8)) FROM f GROUP BY many', settings => 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95,work_mem=64kB');
SELECT compare('SELECT many, sum(e4), sum(e8), avg(e8), min(r8), max(r4), digits(variance(r8)) FROM f GROUP BY many', settings => 'gpurhh.device_memory=1MB,work_mem=64kB');
SELECT compare('SELECT x, s FROM generate_series(1, 4) x, LATERAL (SELECT k, sum(e8 + x) AS s, avg(e4) FROM f WHERE many < x * 100 GROUP BY k) y');
SELECT compare('SELECT k, avg(e8), sum(e8), stddev(e8) FROM f WHERE k > 100 GROUP BY k');
SELECT compare('SELECT sum(e4), avg(e8), sum(e8), stddev(e8), min(e4), max(e8) FROM f WHERE k > 100');
SELECT compare('SELECT sum(e4), avg(e8), sum(e8), digits(stddev(e8)), min(e4), max(e8) FROM f');
SELECT compare('SELECT k, many % 5, sum(e4), avg(e8), sum(e8), digits(stddev(e8)), min(e4), max(e8) FROM f GROUP BY ROLLUP (k, many % 5)');
