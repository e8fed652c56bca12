--
-- Variances and standard deviations of numerics of a declared scale and up to 18
-- digits: exact, with core's digits.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t (k int, a numeric(5, 2), b numeric(18, 0), c numeric(18, 18), d numeric(15, 4), e numeric(3, -2), f numeric(19, 1), g numeric);
INSERT INTO t
	SELECT x % 100, (x * 7919 % 100000 - 50000) / 100.0, x::numeric * 99991 - 17, x / 5003.0, CASE WHEN x % 7 <> 0 THEN x * x / 3.0 END, x % 300 * 100, x, x
	FROM generate_series(1, 5000) x;
-- few values, equal values, NaN, extremes, zero
INSERT INTO t (k, a, b, c, d) VALUES
	(200, 1.5, 1, 0.1, 2), (201, 1.5, 1, 0.1, 2), (201, 1.5, 1, 0.1, 2), (202, 'NaN', 'NaN', 'NaN', 'NaN'), (203, 'NaN', 1, 0.3, 'NaN'), (203, 7, 'NaN', 0.4, 1),
	(204, 999.99, 999999999999999999, 0.999999999999999999, 99999999999.9999), (204, -999.99, -999999999999999999, -0.999999999999999999, -99999999999.9999),
	(205, NULL, NULL, NULL, NULL), (206, 0, 0, 0, 0), (206, 0, 0, 0, 0), (207, 0.01, 1, 0.000000000000000001, 0.0001), (207, 0.02, 2, 0.000000000000000002, 0.0002), (207, 0.02, 2, 0.000000000000000003, 0.0002);
VACUUM ANALYZE t;
SELECT c, compare(format('SELECT k, variance(%s), var_samp(%1$s), var_pop(%1$s), stddev(%1$s), stddev_samp(%1$s), stddev_pop(%1$s) FROM t GROUP BY k', c))
FROM unnest('{a,b,c,d,e,a + 1,a * 2.50,-c}'::text[]) c;
SELECT c, compare(format('SELECT variance(%s), stddev_pop(%1$s), sum(%1$s), avg(%1$s), max(%1$s) FROM t WHERE k < 200', c)) FROM unnest('{a,b,c,d,e}'::text[]) c;
SELECT compare('SELECT k % 3, k % 5, variance(a), stddev(d) FILTER (WHERE b > 1000), var_pop(c), count(*) FROM t GROUP BY CUBE (1, 2)');
SELECT compare('SELECT k, variance(a), stddev(b), stddev_pop(d) FROM t GROUP BY k', settings => 'gpurhh.max_probe_buckets=1,gpurhh.batch_rows=64,work_mem=64kB');
SELECT compare('SELECT k, stddev(a) FROM t GROUP BY k HAVING variance(a) > 100');
SELECT compare('SELECT variance(a), stddev(b) FROM t WHERE k < 0');
SELECT reason FROM unnest('{variance(f),stddev(g),var_pop(a / 3)}'::text[]) a, gpurhh_refusals(format('SELECT k, %s FROM t GROUP BY k', a));
