--
-- Expressions of grouping columns that core evaluates below the node, at the
-- extremes of their arguments: date_trunc, extract, boolean expressions, CASE.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE times (ts timestamp, tz timestamptz, d date, t time, z timetz, n int, f float8, txt text, b bool);
INSERT INTO times
	SELECT timestamp '1997-11-03' + g * interval '1 day 7:03:17.654321', timestamptz '1999-12-30 22:00+00' + g * interval '7:07:07.000007',
		date '1995-01-01' + g * 3, time '00:00' + g * interval '83.25 s', (time '00:00' + g * interval '83 s')::timetz, g % 50 - 10, g % 7 / 2.0, 'x' || g % 4, g % 3 = 0
	FROM generate_series(1, 3000) g;
INSERT INTO times (ts, tz, d, n) VALUES
	('infinity', 'infinity', 'infinity', 1), ('-infinity', '-infinity', '-infinity', 2), ('infinity', '-infinity', 'infinity', 3), (NULL, NULL, NULL, 4),
	('4714-11-24 00:00:00 BC', '4714-11-24 00:00:00+00 BC', '4714-11-24 BC', 5), ('294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', '5874897-12-31', 6),
	('0001-12-31 23:59:59.999999 BC', '0001-12-31 23:59:59.999999+00 BC', '0001-12-31 BC', 7), ('0001-01-01', '0001-01-01 00:00+00', '0001-01-01', 8),
	('2000-01-01', '2000-01-01 00:00+00', '2000-01-01', NULL), ('1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999+00', '1999-12-31', 9);
VACUUM ANALYZE times;

SELECT u, compare(format('SELECT date_trunc(%L, ts), count(*), sum(n), min(ts), max(tz) FROM times WHERE ts > ''0003-01-01 BC'' GROUP BY 1', u))
FROM unnest('{microseconds,second,minute,hour,day,week,month,quarter,year,decade,century,millennium}'::text[]) u;
SELECT u, compare(format('SELECT date_trunc(%L, tz), date_trunc(%1$L, ts::date), count(*) FROM times WHERE ts < ''200000-01-01'' AND tz > ''0003-01-01 BC'' GROUP BY 1, 2', u)) FROM unnest('{day,month,year}'::text[]) u;
SELECT sqlstate_of('SELECT date_trunc(''century'', ts), count(*) FROM times GROUP BY 1') = sqlstate_of('SET enable_gpu_hashagg = on; SELECT date_trunc(''century'', ts), count(*) FROM times GROUP BY 1') AS same;
SELECT compare('SELECT date_trunc(''month'', tz, ''Asia/Tokyo''), count(*) FROM times WHERE tz BETWEEN ''1000-01-01'' AND ''200000-01-01'' GROUP BY 1');
SELECT compare('SELECT date_trunc(''day'', tz), count(*) FROM times WHERE isfinite(tz) AND tz < ''200000-01-01'' GROUP BY 1');

SET timezone = 'America/St_Johns';
SELECT compare('SELECT date_trunc(''day'', tz), extract(hour FROM tz), count(*) FROM times WHERE tz < ''200000-01-01'' AND tz > ''1000-01-01'' GROUP BY 1, 2');
SET timezone = 'UTC';
-- every field of extract() that is an integer, or has a second's digits; as
-- text, which shows the digits
SELECT u, compare(format('SELECT extract(%s FROM ts), count(*), sum(n), min(ts) FROM times GROUP BY 1', u)), compare(format('SELECT extract(%s FROM tz), count(*) FROM times GROUP BY 1', u))
FROM unnest('{microseconds,milliseconds,second,minute,hour,day,dow,isodow,doy,week,month,quarter,year,isoyear,decade,century,millennium}'::text[]) u;
SELECT u, compare(format('SELECT extract(%s FROM d), extract(%1$s FROM ts), count(*) FROM times GROUP BY 1, 2', u)) FROM unnest('{day,dow,isodow,doy,week,month,quarter,year,isoyear,decade,century,millennium}'::text[]) u;
SELECT u, compare(format('SELECT extract(%s FROM t), extract(%1$s FROM z), count(*) FROM times GROUP BY 1, 2', u)) FROM unnest('{microseconds,milliseconds,second,minute,hour}'::text[]) u;
SELECT compare('SELECT n, min(extract(year FROM ts)), max(extract(year FROM tz)), min(extract(century FROM d)), count(extract(year FROM ts)), count(DISTINCT extract(year FROM d)) FROM times GROUP BY n');
SELECT compare('SELECT n, sum(extract(month FROM ts)), avg(extract(second FROM ts)), max(extract(dow FROM tz)), stddev(extract(hour FROM t)), sum(DISTINCT extract(day FROM d)) FROM times GROUP BY n');
SELECT compare('SELECT extract(year FROM ts), extract(month FROM ts), count(*) FROM times GROUP BY CUBE (1, 2) HAVING count(*) > 1');
SELECT compare('SELECT DISTINCT extract(year FROM ts), extract(hour FROM tz) FROM times');
SELECT compare('SELECT extract(year FROM ts) FROM times UNION SELECT extract(day FROM d) FROM times', nodes => 0);
SELECT compare('SELECT extract(year FROM ts) + 1 = 2000, extract(month FROM ts) * 2, count(*) FROM times GROUP BY 1, 2');
SELECT compare('SELECT extract(year FROM ts), count(*) FROM times GROUP BY 1', settings => 'gpurhh.max_probe_buckets=1,gpurhh.batch_rows=64,work_mem=64kB');
SELECT reason FROM unnest('{sum(extract(year FROM ts)),avg(extract(year FROM ts)),stddev(extract(isoyear FROM d)),sum(DISTINCT extract(year FROM ts))}'::text[]) a, gpurhh_refusals(format('SELECT n, %s FROM times GROUP BY n', a));
SELECT r.group_by, r.reason FROM unnest('{extract(epoch FROM ts),extract(julian FROM ts),extract(year FROM ts - tz),extract(year FROM ts) + 1}'::text[]) a, gpurhh_refusals(format('SELECT %s, count(*) FROM times GROUP BY 1', a)) r;
-- a field that the type has not is an error
SELECT sqlstate_of('SELECT extract(hour FROM d), count(*) FROM times GROUP BY 1') = sqlstate_of('SET enable_gpu_hashagg = on; SELECT extract(hour FROM d), count(*) FROM times GROUP BY 1') AS same;

-- boolean expressions, CASE
SELECT e, compare(format('SELECT %s, count(*), sum(n), max(f) FROM times GROUP BY 1', e))
FROM unnest(ARRAY['n > 5', 'n > 5 AND b', 'n IS NULL OR f > 1', 'NOT b', 'txt LIKE ''x1%''', 'ts > ''2000-01-01'' AND tz IS NOT NULL', 'isfinite(ts)', 'd = ts::date', 'txt IN (''x1'', ''x2'')', 'b IS NOT TRUE', 'n = ANY (ARRAY[1, 2, NULL])',
	'(n, f) > (1, 0.5)', 'n BETWEEN 1 AND 3', 'txt < ''x2'' COLLATE "C"', 'n IS DISTINCT FROM 3',
	'CASE WHEN n < 0 THEN ''negative'' WHEN n = 0 THEN ''zero'' WHEN n > 0 THEN ''positive'' END', 'CASE n WHEN 1 THEN ''one'' WHEN 2 THEN ''two'' ELSE txt END', 'CASE WHEN b THEN ts END', 'CASE WHEN n <> 0 THEN 100 / n END',
	'CASE WHEN ts > ''2000-01-01'' THEN extract(month FROM ts) ELSE extract(day FROM ts) END', 'coalesce(txt, ''none'') || n', 'nullif(n, 3)', 'greatest(n, 0)', 'width_bucket(n, 0, 40, 4)', 'to_char(ts, ''YYYY-MM'')', 'ts::date', 'tz AT TIME ZONE ''UTC''', 'make_date(2000, 1, 1 + abs(n % 28))']) WITH ORDINALITY AS x (e, o) ORDER BY o;
