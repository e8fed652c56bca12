--
-- Grouping columns: every type at its extremes, alone and together.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
\pset null ''

-- One column for each type, with what could be taken for something else: all
-- bits zero, all bits one, the extremes, NULL.
CREATE TABLE extremes (
	i2 int2, i4 int4, i8 int8, o oid, b bool, d date, t time,
	ts timestamp, tz timestamptz, u uuid, f4 float4, f8 float8);
INSERT INTO extremes VALUES
	(0, 0, 0, 0, false, '2000-01-01', '00:00', '2000-01-01', '2000-01-01', '00000000-0000-0000-0000-000000000000', 0, 0),
	(-1, -1, -1, 4294967295, true, '1999-12-31', '24:00', '1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '-Infinity', '-Infinity'),
	(1, 1, 1, 1, NULL, '2000-01-02', '00:00:00.000001', '2000-01-01 00:00:00.000001', '2000-01-01 00:00:00.000001', '00000000-0000-0000-0000-000000000001', 'Infinity', 'Infinity'),
	(32767, 2147483647, 9223372036854775807, 2147483647, true, 'infinity', '23:59:59.999999', 'infinity', 'infinity', '00000000-0000-0000-ffff-ffffffffffff', 'NaN', 'NaN'),
	(-32768, -2147483648, -9223372036854775808, 2147483648, false, '-infinity', '12:34:56', '-infinity', '-infinity', 'ffffffff-ffff-ffff-0000-000000000000', 3.4028235e38, 1.7976931348623157e308),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(255, 65535, 4294967295, 65535, true, '4713-01-01 BC', '00:00:01', '4713-01-01 BC', '4713-01-01 BC', '00000000-0000-0001-0000-000000000000', 1e-45, 5e-324),
	(256, 65536, 4294967296, 65536, false, '5874897-12-31', '00:01:00', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999', '01000000-0000-0000-0000-000000000000', -1e-45, -5e-324),
	(-256, -65536, -4294967296, 4294901760, true, '1970-01-01', '01:00:00', '1970-01-01', '1970-01-01', '00000000-0000-0000-0000-000000000100', 1.5, 1.5);
-- each value some times, not next to each other
INSERT INTO extremes SELECT e.* FROM extremes e, generate_series(1, 6) g;
ANALYZE extremes;

SELECT c, compare(format('SELECT %I, count(*), count(%1$I) FROM extremes GROUP BY %1$I', c))
FROM unnest('{i2,i4,i8,o,b,d,t,ts,tz,u,f4,f8}'::text[]) WITH ORDINALITY AS x (c, n) ORDER BY n;

-- the values themselves, once, as a reader can check them
SET enable_gpu_hashagg = on;
SELECT i4, count(*) FROM extremes GROUP BY i4 ORDER BY i4;
SELECT f8, count(*) FROM extremes GROUP BY f8 ORDER BY f8;
SELECT u, count(*) FROM extremes GROUP BY u ORDER BY u;
RESET enable_gpu_hashagg;

-- Floats: 0 and -0 are one key, all NaNs are one key; a group shows any of
-- its values, so -0 is made 0 in the output.
CREATE TABLE floats (f4 float4, f8 float8);
INSERT INTO floats VALUES
	(0, 0), ('-0', '-0'), (0, '-0'), ('-0', 0), ('NaN', 'NaN'), (NULL, NULL),
	('Infinity' , 'Infinity'), ('-Infinity', '-Infinity'), (1, 1), (-1, -1);
-- other NaNs: with a sign, by arithmetic
INSERT INTO floats SELECT -f4, -f8 FROM floats;
INSERT INTO floats SELECT f4 - f4, f8 - f8 FROM floats WHERE f8 = 'Infinity';
SELECT compare('SELECT f4 + 0, count(*) FROM floats GROUP BY f4');
SELECT compare('SELECT f8 + 0, count(*) FROM floats GROUP BY f8');
SELECT compare('SELECT f4 + 0, f8 + 0, count(*) FROM floats GROUP BY f4, f8');
SELECT compare('SELECT f8 + 0, count(*) FROM floats GROUP BY f8 HAVING f8 >= 0 AND f8 <= 0');
SELECT compare('SELECT -f8, count(*) FROM floats WHERE f8 <> 0 GROUP BY -f8');

-- Sizes: no row, one row, one group, all groups apart.
CREATE TABLE nothing (LIKE extremes);
CREATE TABLE single AS SELECT * FROM extremes LIMIT 1;
CREATE TABLE same AS SELECT e.* FROM (SELECT * FROM extremes LIMIT 1) e, generate_series(1, 3000);
CREATE TABLE apart AS
	SELECT (g - 6000)::int2 AS i2, g * 7919 AS i4, g * 1000003::int8 * 999983 AS i8, g::oid AS o, g % 2 = 0 AS b,
		   date '1999-01-01' + g AS d, time '00:00' + g * interval '1.000001 s' AS t,
		   timestamp '1999-12-31' + g * interval '1.000001 s' AS ts, timestamptz '1999-12-31' + g * interval '1.000001 s' AS tz,
		   md5(g::text)::uuid AS u, (g::float4 / 3)::float4 AS f4, g::float8 / 3 AS f8
	FROM generate_series(1, 12000) g;
ANALYZE nothing, single, same, apart;
SELECT t || '.' || c, compare(format('SELECT %I, count(*) FROM %I GROUP BY %1$I', c, t))
FROM unnest('{nothing,single,same}'::text[]) WITH ORDINALITY AS y (t, m),
	 unnest('{i2,i4,i8,o,b,d,t,ts,tz,u,f4,f8}'::text[]) WITH ORDINALITY AS x (c, n) ORDER BY m, n;
SELECT 'apart.' || c, compare(format('SELECT %I, count(*) FROM apart GROUP BY %1$I', c))
FROM unnest('{i2,i4,i8,o,b,d,t,ts,tz,u,f4,f8}'::text[]) WITH ORDINALITY AS x (c, n) ORDER BY n;
-- the same keys again and again, in another order
SELECT compare('SELECT i8, u, count(*), sum(i4) FROM (SELECT * FROM apart UNION ALL SELECT * FROM (SELECT * FROM apart ORDER BY u) x) y GROUP BY i8, u');

-- Every pair of types, both ways round: two keys of together 2 to 32 bytes.
SELECT count(*), result
FROM unnest('{i2,i4,i8,o,b,d,t,ts,tz,u,f4,f8}'::text[]) AS x (c1),
	 unnest('{i2,i4,i8,o,b,d,t,ts,tz,u,f4,f8}'::text[]) AS y (c2),
	 compare(format('SELECT x.%I, y.%I, count(*) FROM (SELECT DISTINCT * FROM extremes) x, extremes y GROUP BY 1, 2', c1, c2)) AS result
GROUP BY result ORDER BY 1 DESC, 2;

-- Up to 64 bits of keys fit one slot (with a bit for each NULL); beyond, they
-- are compared word by word.
SELECT compare('SELECT i2, b, count(*) FROM extremes GROUP BY i2, b');
SELECT compare('SELECT i4, i2, b, count(*) FROM extremes GROUP BY i4, i2, b');
SELECT compare('SELECT x.i2, y.i2, z.i2, count(*) FROM extremes x, extremes y, extremes z WHERE x.d = y.d AND y.d = z.d GROUP BY x.i2, y.i2, z.i2');
SELECT compare('SELECT x.i4, y.i4, count(*) FROM extremes x, extremes y GROUP BY x.i4, y.i4');
SELECT compare('SELECT x.i8, y.i2, count(*) FROM extremes x, extremes y GROUP BY x.i8, y.i2');
SELECT compare('SELECT i2, i4, i8, o, b, d, t, ts, tz, u, f4, f8, count(*) FROM extremes GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12');
SELECT compare('SELECT i2, i4, i8, o, b, d, t, ts, tz, u, f4, f8, count(*) FROM apart GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12');

-- Keys whose bytes side by side are the same though the values are not.
CREATE TABLE shifted (a int2, b int2, c int4, d int8);
INSERT INTO shifted
	SELECT a, b, c, d FROM
	unnest('{0,1,256,-1,NULL}'::int2[]) a, unnest('{0,1,256,-1,NULL}'::int2[]) b,
	unnest('{0,1,65536,-1,NULL}'::int4[]) c, unnest('{0,1,4294967296,-1,NULL}'::int8[]) d;
INSERT INTO shifted SELECT * FROM shifted;
SELECT compare('SELECT a, b, count(*) FROM shifted GROUP BY a, b');
SELECT compare('SELECT a, b, c, count(*) FROM shifted GROUP BY a, b, c');
SELECT compare('SELECT a, b, c, d, count(*) FROM shifted GROUP BY a, b, c, d');
SELECT compare('SELECT d, c, b, a, count(*) FROM shifted GROUP BY d, c, b, a');
SELECT compare('SELECT d, count(*) FROM shifted GROUP BY d, d + 1, c');
SELECT compare('SELECT c, count(*) FROM shifted GROUP BY c, c, c');

-- Many keys: from 1 to 32 of them, the last alone telling rows apart.
SELECT count(*), result
FROM unnest('{bool,int2,int4,int8,float8,uuid}'::text[]) AS type, unnest('{1,2,3,4,5,7,8,9,12,16,31,32}'::int[]) AS n,
	 LATERAL (SELECT string_agg(format('(%s)::%s AS k%s',
									   CASE type WHEN 'bool' THEN format('(g >> %s) & 1', i % 9)
												 WHEN 'uuid' THEN format('md5(((g >> %s) & 1)::text)', i % 9)
												 ELSE format('CASE WHEN g %% 7 <> %s THEN (g >> %s) & 1 END', i % 40, i % 9) END, type, i), ', ') AS columns,
					 string_agg('k' || i, ', ') AS keys FROM generate_series(1, n) AS i) AS c,
	 regexp_replace(compare(format('SELECT %s, count(*), sum(g) FROM (SELECT %s, g FROM generate_series(0, 599) g) x GROUP BY %1$s', keys, columns)),
					'\d+', 'N') AS result
GROUP BY result ORDER BY 1 DESC, 2;

-- More rows than a batch, with more and fewer groups than were planned for.
CREATE TABLE many AS SELECT g % 1000 AS few, g % 29999 AS several, g AS one, (g % 3 = 0) AS b FROM generate_series(1, 70000) g;
SELECT compare('SELECT few, count(*), sum(one) FROM many GROUP BY few');
SELECT compare('SELECT several, count(*), min(one), max(one) FROM many GROUP BY several');
SELECT compare('SELECT b, count(*), avg(one) FROM many GROUP BY b');
SELECT compare('SELECT few, several, count(*), sum(one) FROM many GROUP BY few, several');
SELECT compare('SELECT one::int8 * 4294967296, b, count(*) FROM many GROUP BY 1, 2');
