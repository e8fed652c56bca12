--
-- Aggregates beside count, sum, avg, min and max of integers and timestamps:
-- bits and booleans, variances of integers in core's digits, minima and maxima of
-- other types, money.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS
	SELECT g % 13 AS k, g % 1777 AS many, (g * 7919 % 65536 - 32768)::int2 AS i2, (g::int8 * 2654435761 % 4294967296 - 2147483648)::int4 AS i4,
		   (g * 6364136223846793005::numeric % 9223372036854775807)::int8 AS i8, g % 3 = 0 AS b, (g % 9999 - 5000)::int AS small,
		   (time '00:00' + g * interval '4.3 s')::timetz AS tz, format('(%s,%s)', g * 7919 % 1000, g % 100 + 1)::tid AS tid,
		   (g::int8 * 2654435761 % 4294967296)::oid AS o, ('0/' || to_hex(g))::pg_lsn AS lsn, (g * 31 % 977)::text::xid8 AS x8, ((g - 5000) / 100.0)::numeric::money AS m
	FROM generate_series(1, 20000) g;
UPDATE t SET tz = (tz::time || '+03')::timetz WHERE many % 5 = 2;
UPDATE t SET i2 = NULL, i4 = NULL, i8 = NULL, b = NULL, tz = NULL, tid = NULL, o = NULL, lsn = NULL, x8 = NULL, m = NULL WHERE many % 7 = 3 OR k = 5;
UPDATE t SET i2 = -32768, i4 = -2147483648, i8 = -9223372036854775808, o = 4294967295, lsn = 'FFFFFFFF/FFFFFFFF', x8 = '18446744073709551615', m = '-92233720368547758.08' WHERE many = 11;
UPDATE t SET i2 = 32767, i4 = 2147483647, i8 = 9223372036854775807, o = 2147483648, lsn = '80000000/0', x8 = '9223372036854775808', m = '92233720368547758.07' WHERE many = 12;
ANALYZE t;

-- bits and booleans
SELECT compare('SELECT many, bit_and(i2), bit_or(i2), bit_xor(i2), bit_and(i4), bit_or(i4), bit_xor(i4), bit_and(i8), bit_or(i8), bit_xor(i8) FROM t GROUP BY many');
SELECT compare('SELECT k, bit_and(i2), bit_or(i2), bit_xor(i2), bit_and(i4), bit_or(i4), bit_xor(i4), bit_and(i8), bit_or(i8), bit_xor(i8) FROM t GROUP BY k');
SELECT compare('SELECT small, bool_and(b), bool_or(b), every(b), bool_and(i4 > 0) FILTER (WHERE b), bool_or(NOT b), count(b) FROM t GROUP BY small');
SELECT compare('SELECT k, bool_and(b), bool_or(b), every(small > -6000), bit_or(small) FILTER (WHERE small < 0) FROM t GROUP BY k');
SELECT compare('SELECT k, bit_xor(i4) FROM t GROUP BY k HAVING bool_or(b) AND bit_and(i2) IS NOT NULL AND bit_xor(i4) <> 0');

SELECT compare('SELECT k, bit_and(DISTINCT i2), bit_or(DISTINCT i4), bool_and(DISTINCT b), every(DISTINCT b), min(DISTINCT o), max(DISTINCT tz), count(DISTINCT tz) FROM t GROUP BY k');

-- variances, to the last digit: of few values and of many, equal ones, extremes
SELECT compare('SELECT k, var_pop(i2), var_samp(i2), variance(i2), stddev_pop(i2), stddev_samp(i2), stddev(i2) FROM t GROUP BY k');
SELECT compare('SELECT k, var_pop(i4), var_samp(i4), variance(i4), stddev_pop(i4), stddev_samp(i4), stddev(i4) FROM t GROUP BY k');
SELECT compare('SELECT k, var_pop(i8), var_samp(i8), variance(i8), stddev_pop(i8), stddev_samp(i8), stddev(i8) FROM t GROUP BY k');
SELECT compare('SELECT many, var_pop(i2), stddev(i2), variance(i4), stddev_pop(i4), var_samp(i8), stddev(i8), sum(i4), avg(i8) FROM t GROUP BY many');
SELECT compare('SELECT small, var_pop(small), stddev(small), variance(many), stddev_pop(many) FROM t GROUP BY small');
SELECT compare('SELECT k, many, var_pop(i8), var_samp(i8), stddev_pop(i4), stddev_samp(i4) FROM t GROUP BY k, many');
SELECT k, var_pop(small), stddev(small), var_samp(i8) FROM t WHERE k < 3 GROUP BY k ORDER BY k;
-- square roots whose digits beyond the variance's scale are many, and all kinds of scales
CREATE TABLE spread AS SELECT g AS k, g::int8 * g % 100003 * v AS i8, (g % 1000 * v)::int AS i4 FROM generate_series(1, 3000) g, unnest('{0,1,3,4}'::int[]) v;
INSERT INTO spread SELECT k, i8 * 9000000000000, i4 * 100000 FROM spread WHERE k % 3 = 0;
SELECT compare('SELECT k, stddev_pop(i8), stddev_samp(i8), stddev_pop(i4), stddev_samp(i4), var_pop(i8), var_samp(i4) FROM spread GROUP BY k');
SELECT compare('SELECT k, stddev(x), var_pop(x) FROM (SELECT 1 AS k, 9223372036854775807 - g AS x FROM generate_series(0, 3) g UNION ALL SELECT 2, -9223372036854775808 UNION ALL SELECT 2, 9223372036854775807 UNION ALL SELECT 3, -9223372036854775808) y GROUP BY k');

-- minima and maxima, unsigned ones too
SELECT compare('SELECT many, min(tz), max(tz), min(tid), max(tid), min(o), max(o) FROM t GROUP BY many');
SELECT compare('SELECT many, min(lsn), max(lsn), min(m), max(m) FROM t GROUP BY many');
SELECT compare('SELECT k, min(tz), max(tz), min(tid), max(tid), min(o), max(o), min(lsn), max(lsn), min(m), max(m) FROM t GROUP BY k');
SELECT compare('SELECT k, min(x8), max(x8) FROM t GROUP BY k');
SELECT k, min(o), max(o), min(lsn), max(lsn), min(x8), max(x8), max(tz) FROM t WHERE k < 3 GROUP BY k ORDER BY k;
SELECT compare('SELECT k, min(o), max(tz) FROM t GROUP BY k HAVING min(o) < 1000000 AND max(tz) > ''12:00+00'' AND max(lsn) IS NOT NULL');

-- sums of money wrap, or do not, as core has them
SELECT compare('SELECT many, sum(m), count(m) FROM t WHERE many NOT IN (11, 12) GROUP BY many');
SELECT compare('SELECT k, sum(m), sum(m) FILTER (WHERE b), sum(m + ''$1.00'') FROM t WHERE many NOT IN (11, 12) GROUP BY k');
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN
	RETURN (rows_of(query))::text;
EXCEPTION WHEN numeric_value_out_of_range THEN
	RETURN SQLSTATE || SQLERRM;
END $f$;
SELECT outcome('SELECT many, sum(m) FROM t WHERE many IN (11, 12) GROUP BY many ORDER BY many') AS core \gset
SET enable_gpu_hashagg = on;
SELECT outcome('SELECT many, sum(m) FROM t WHERE many IN (11, 12) GROUP BY many ORDER BY many') = :'core';
RESET enable_gpu_hashagg;

-- how they are fed; parallel plans, refused rows, a spill, no device memory
SELECT analyze_json('SELECT k, bool_and(b), bit_or(i4), stddev(i8), min(tz), max(o), min(lsn), sum(m), max(tid), bool_or(i4 > 3) FROM t WHERE many > 12 GROUP BY k') -> 'Feed';
SELECT compare('SELECT many, bit_xor(i8), bool_or(b), stddev(i8), variance(i4), min(tz), max(o) FROM t GROUP BY many', settings => 'min_parallel_table_scan_size=0,parallel_setup_cost=0,parallel_tuple_cost=0');
SELECT compare('SELECT many, bit_xor(i8), bool_or(b), stddev(i8), variance(i4), min(tz), max(o) FROM t GROUP BY many', settings => 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95,work_mem=64kB');
SELECT compare('SELECT many, bit_and(i8), bool_and(b), stddev(i8), variance(i4), min(tz), max(o) FROM t GROUP BY many', settings => 'gpurhh.device_memory=1MB,work_mem=64kB');
SELECT compare('SELECT x, s FROM generate_series(1, 4) x, LATERAL (SELECT k, bit_xor(i4 # x) AS s, stddev(i4) FROM t WHERE many < x * 100 GROUP BY k) y');
SELECT compare('SELECT k, bit_and(i4), bool_and(b), stddev(i8) FROM t WHERE k > 100 GROUP BY k');

-- refused, and why
CREATE TYPE mood AS ENUM ('sad', 'happy');
SET enable_gpu_hashagg = on;
SELECT reason FROM gpurhh_refusals('SELECT k, min(''sad''::mood) FROM t GROUP BY k; SELECT k, sum(small * interval ''1 day'') FROM t GROUP BY k; SELECT k, max(small * interval ''1 day'') FROM t GROUP BY k; SELECT k, corr(DISTINCT small, i4) FROM t GROUP BY k; SELECT k, bit_xor(DISTINCT i4) FROM t GROUP BY k; SELECT k, stddev(DISTINCT i4) FROM t GROUP BY k');

-- without rows, and without groups
SELECT compare('SELECT bit_and(i2), bit_or(i4), bit_xor(i8), bool_and(b), bool_or(b), stddev(i4), var_pop(i8), min(tz), max(o), min(lsn), sum(m), max(tid) FROM t WHERE many > 12');
SELECT compare('SELECT bit_and(i2), bit_or(i4), bit_xor(i8), bool_and(b), bool_or(b), stddev(i4), var_pop(i8), min(tz), max(o), min(lsn), sum(m), max(tid) FROM t WHERE k > 100');
SELECT compare('SELECT k, b, bit_and(i2), bool_and(b), stddev(i4), var_pop(i8), min(tz), max(o), sum(m) FROM t WHERE many NOT IN (11, 12) GROUP BY CUBE (k, b)');
