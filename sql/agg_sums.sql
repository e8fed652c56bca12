--
-- Sums and averages beyond 2^31 and 2^63, both ways; digits; extremes.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t (k int, i2 int2, i4 int4, i8 int8);
INSERT INTO t
	-- up beyond the type's range, and down, and there and back
	SELECT 1, 32767, 2147483647, 9223372036854775807 FROM generate_series(1, 500) UNION ALL
	SELECT 2, -32768, -2147483648, -9223372036854775808 FROM generate_series(1, 500) UNION ALL
	SELECT 3, 32767, 2147483647, 9223372036854775807 FROM generate_series(1, 300) UNION ALL
	SELECT 3, -32768, -2147483648, -9223372036854775808 FROM generate_series(1, 300) UNION ALL
	-- by one only: 2^31 - 1, 2^31, -2^31 and -2^31 - 1, and so on
	VALUES (4, 32767, 2147483647, 9223372036854775807), (4, 1, 1, 1),
		   (5, -32768, -2147483648, -9223372036854775808), (5, -1, -1, -1),
		   (6, 32767, 2147483647, 9223372036854775807), (6, 0, 0, 0),
		   (7, -32768, -2147483648, -9223372036854775808), (7, NULL, NULL, NULL),
		   -- 2^64 - 2, -2^64, and their neighbours: the low word is all ones or all zeros
		   (8, 1, 1, 9223372036854775807), (8, 1, 1, 9223372036854775807),
		   (9, 1, 1, 9223372036854775807), (9, 1, 1, 9223372036854775807), (9, 1, 1, 1),
		   (10, 1, 1, 9223372036854775807), (10, 1, 1, 9223372036854775807), (10, 1, 1, 2),
		   (11, 1, 1, 9223372036854775807), (11, 1, 1, 9223372036854775807), (11, 1, 1, 3),
		   (12, 1, 1, -9223372036854775808), (12, 1, 1, -9223372036854775808),
		   (13, 1, 1, -9223372036854775808), (13, 1, 1, -9223372036854775808), (13, 1, 1, -1),
		   (14, 1, 1, -9223372036854775808), (14, 1, 1, -9223372036854775808), (14, 1, 1, 1),
		   -- halves, thirds, sevenths
		   (15, 1, 1, 1), (15, 2, 2, 2),
		   (16, 1, 1, 1), (16, 0, 0, 0), (16, 0, 0, 0),
		   (17, -1, -1, -1), (17, 0, 0, 0), (17, 0, 0, 0), (17, 0, 0, 0), (17, 0, 0, 0), (17, 0, 0, 0), (17, 0, 0, 0),
		   (18, NULL, NULL, NULL), (19, 0, 0, 0), (20, -1, -1, -1),
		   (21, 1, 1, 4294967296), (21, 1, 1, -4294967296), (22, 1, 1, 4294967295), (22, 1, 1, 1),
		   (23, 1, 1, -4294967295), (23, 1, 1, -1), (NULL, 1, 1, 1);
ANALYZE t;

SELECT format('%s(%s)', a, c), compare(format('SELECT k, %s(%s) FROM t GROUP BY k', a, c))
FROM unnest('{count,sum,avg,min,max}'::text[]) WITH ORDINALITY AS x (a, n), unnest('{i2,i4,i8}'::text[]) WITH ORDINALITY AS y (c, m)
ORDER BY n, m;
SELECT compare('SELECT k, sum(i2), sum(i4), sum(i8), avg(i2), avg(i4), avg(i8), min(i2), min(i4), min(i8), max(i2), max(i4), max(i8), count(*), count(i2), count(i4), count(i8) FROM t GROUP BY k');
SELECT compare('SELECT k, pg_typeof(sum(i2)), pg_typeof(sum(i4)), pg_typeof(sum(i8)), pg_typeof(avg(i2)), pg_typeof(avg(i4)), pg_typeof(avg(i8)), pg_typeof(max(i2)), pg_typeof(count(*)) FROM t GROUP BY k');

-- as a reader can check it
SET enable_gpu_hashagg = on;
SELECT k, sum(i2), sum(i4), sum(i8) FROM t GROUP BY k ORDER BY k;
SELECT k, avg(i2), avg(i4), avg(i8) FROM t GROUP BY k ORDER BY k;
SELECT k, scale(sum(i8)), scale(avg(i4)), min(i8), max(i8) FROM t WHERE k > 14 GROUP BY k ORDER BY k;
RESET enable_gpu_hashagg;

-- each with a filter of its own, one that is never true, and one that is NULL
SELECT format('%s(%s)', a, c), compare(format('SELECT k, %s(%s) FILTER (WHERE i4 > 0), %1$s(%2$s) FILTER (WHERE i8 < 0), %1$s(%2$s) FILTER (WHERE i2 > 99999), %1$s(%2$s) FILTER (WHERE NULL::bool), %1$s(%2$s) FROM t GROUP BY k', a, c))
FROM unnest('{count,sum,avg,min,max}'::text[]) WITH ORDINALITY AS x (a, n), unnest('{i2,i4,i8}'::text[]) WITH ORDINALITY AS y (c, m)
ORDER BY n, m;
SELECT compare('SELECT count(*) FILTER (WHERE k > 3), k % 3, count(*) FILTER (WHERE i4 IS NULL), count(*) FROM t GROUP BY k % 3');
SELECT compare('SELECT k % 3, sum(i4) FILTER (WHERE k IN (SELECT 2 * g FROM generate_series(1, 9) g)) FROM t GROUP BY k % 3');

-- a filter guards its argument: it is not evaluated where the filter is not true
SELECT format('%s(%s)', a, c), compare(format('SELECT k, %s(1000 / %s) FILTER (WHERE %2$s <> 0), %1$s(1000 / %2$s) FILTER (WHERE %2$s > 0), %1$s(1000 / (%2$s %% 7)) FILTER (WHERE %2$s %% 7 <> 0 AND k > 3) FROM t GROUP BY k', a, c))
FROM unnest('{count,sum,avg,min,max}'::text[]) WITH ORDINALITY AS x (a, n), unnest('{i2,i4,i8}'::text[]) WITH ORDINALITY AS y (c, m)
ORDER BY n, m;
SELECT compare('SELECT k, count((1000 / i4)::text) FILTER (WHERE i4 <> 0), count((1000 / i4)::numeric) FILTER (WHERE i4 <> 0) FROM t GROUP BY k');
SELECT compare('SELECT k, sum(CASE WHEN i4 <> 0 THEN 1000 / i4 END), sum(1000 / nullif(i4, 0)) FILTER (WHERE i8 > 0) FROM t GROUP BY k');
SELECT sqlstate_of('SET LOCAL enable_gpu_hashagg = on; SELECT k, sum(1000 / i4) FILTER (WHERE i4 > 0 OR k = 19) FROM t GROUP BY k');

-- arguments that are expressions; the same argument under different aggregates
SELECT compare('SELECT k, sum(i4 / 2), sum(i4::int8), sum(i4::int8 * 2), avg(i2 + 1), min(-i2::int4), max(k), sum(k), avg(1), sum(NULL::int8) FROM t GROUP BY k');
SELECT compare('SELECT k, sum(i8), sum(i8) + 1, avg(i8) / 3, sum(i8) - avg(i8) * count(i8), sum(i8) FILTER (WHERE true) FROM t GROUP BY k');
SELECT compare('SELECT i8, sum(i8), avg(i8), min(i8), max(i8), count(i8) FROM t GROUP BY i8');
SELECT compare('SELECT sum(i4), avg(i4) FROM t GROUP BY i4 % 10');
SELECT compare('SELECT k FROM t GROUP BY k');
SELECT compare('SELECT k FROM t GROUP BY k HAVING sum(i8) > 9223372036854775807 OR avg(i4) < 0');

-- Extremes of dates and times, infinite ones and those before 2000, which are
-- negative numbers inside, among them.
CREATE TABLE times AS
	SELECT g % 7 AS k, date '2000-01-01' + (g * 37 % 2001 - 1000) AS d, time '00:00' + (g * 7919 % 86400) * interval '1 s' AS t,
		   timestamp '2000-01-01' + (g * 37 % 2001 - 1000) * interval '1.000001 h' AS ts,
		   timestamptz '2000-01-01' + (g * 41 % 2001 - 1000) * interval '1.000001 h' AS tz
	FROM generate_series(1, 3000) g;
INSERT INTO times VALUES (0, 'infinity', '24:00', 'infinity', 'infinity'), (1, '-infinity', '00:00', '-infinity', '-infinity'),
	(8, 'infinity', NULL, 'infinity', 'infinity'), (8, '-infinity', NULL, '-infinity', '-infinity'),
	(9, '4713-01-01 BC', '00:00', '4713-01-01 BC', '4713-01-01 BC'), (9, '5874897-12-31', '24:00', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999'),
	(10, NULL, NULL, NULL, NULL);
SELECT compare('SELECT k, min(d), max(d), min(t), max(t), min(ts), max(ts), min(tz), max(tz) FROM times GROUP BY k');
SELECT compare(format('SELECT k, %s FROM times GROUP BY k', string_agg(format('%s(%s) FILTER (WHERE %2$s < %L), %1$s(%2$s) FILTER (WHERE isfinite(ts))', a, c, lim), ', ')))
FROM unnest('{min,max,count}'::text[]) a, (VALUES ('d', '2000-01-01'), ('t', '12:00'), ('ts', '2000-01-01'), ('tz', '2000-01-01')) AS c (c, lim);
SET enable_gpu_hashagg = on;
SELECT k, min(d), max(d), min(t), max(t), min(ts), max(ts), min(tz), max(tz) FROM times WHERE k > 7 GROUP BY k ORDER BY k;
RESET enable_gpu_hashagg;

-- Sums of many rows in one group, and of many groups at once.
SELECT compare('SELECT g % 2, sum(g::int8 * 1000000000000), sum(-g::int8 * 1000000000000), avg(g::int8 * 1000000000000), sum(g), avg(g) FROM generate_series(1, 200000) g GROUP BY g % 2');
SELECT compare('SELECT g % 5003, sum(g::int8 * 400000000000000), avg(g::int8 * 400000000000000), avg(g), sum(-g) FROM generate_series(1, 20000) g GROUP BY g % 5003');
