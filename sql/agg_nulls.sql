--
-- NULL as a key, as an argument, as a filter's result; groups without a value.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- k2: never NULL, k3: always NULL; the arguments: NULL in whole groups, in
-- parts of groups, from some row on
CREATE TABLE t AS
	SELECT CASE WHEN g % 5 <> 0 THEN g % 5 END AS k1, g % 3 AS k2, NULL::int AS k3,
		   CASE WHEN g % 7 <> 3 THEN (g % 7)::int2 END AS i2,
		   CASE WHEN g % 5 > 1 THEN g END AS i4,
		   CASE WHEN g > 2500 THEN -g::int8 END AS i8,
		   CASE WHEN g % 11 = 0 THEN date '2020-01-01' + g END AS d,
		   CASE WHEN g % 2 = 0 THEN time '00:00' + g * interval '1 s' END AS tm,
		   CASE WHEN g % 5 = 4 THEN timestamp '2020-01-01' + g * interval '1 s' END AS ts,
		   CASE WHEN g % 5 = 4 AND g < 500 THEN timestamptz '2020-01-01' - g * interval '1 s' END AS tz,
		   CASE g % 3 WHEN 0 THEN true WHEN 1 THEN false END AS b,
		   CASE WHEN g % 13 <> 0 THEN 'text ' || g % 4 END AS txt,
		   CASE WHEN g % 17 = 0 THEN md5(g::text)::uuid END AS u,
		   NULL::numeric AS n
	FROM generate_series(1, 5000) g;
ANALYZE t;

-- as keys
SELECT compare('SELECT k1, count(*) FROM t GROUP BY k1');
SELECT compare('SELECT k3, count(*) FROM t GROUP BY k3');
SELECT compare('SELECT k1, k2, k3, count(*) FROM t GROUP BY k1, k2, k3');
SELECT compare('SELECT k3, k1, count(*) FROM t GROUP BY k3, k1');
SELECT compare('SELECT u, count(*) FROM t GROUP BY u');
SELECT compare('SELECT k1, u, d, ts, b, count(*) FROM t GROUP BY k1, u, d, ts, b');
SELECT compare('SELECT b, b IS NULL, b IS TRUE, count(*) FROM t GROUP BY b');
SELECT compare('SELECT nullif(k2, 0), nullif(k2, 1), count(*) FROM t GROUP BY nullif(k2, 0), nullif(k2, 1)');
-- the value below a NULL must not tell groups apart
SELECT compare('SELECT CASE WHEN i4 % 2 = 0 THEN i4 END, count(*) FROM t WHERE i4 < 100 GROUP BY 1');

-- as arguments: all aggregates by each grouping, the last with no group at all
CREATE FUNCTION every_aggregate(filter text) RETURNS text
LANGUAGE sql AS $f$
	SELECT 'count(*)' || filter || string_agg(format(', %s(%s)%s', a, c, filter), '')
	FROM unnest('{count,sum,avg,min,max}'::text[]) a, unnest('{i2,i4,i8}'::text[]) c;
$f$;
CREATE FUNCTION every_extreme(filter text) RETURNS text
LANGUAGE sql AS $f$
	SELECT string_agg(format('%s(%s)%s', a, c, filter), ', ')
	FROM unnest('{count,min,max}'::text[]) a, unnest('{d,tm,ts,tz}'::text[]) c;
$f$;
SELECT by, filter, compare(format('SELECT %s, %s FROM t %s GROUP BY %1$s', by, every_aggregate(filter), w)),
	   compare(format('SELECT %s, %s FROM t %s GROUP BY %1$s', by, every_extreme(filter), w))
FROM unnest('{k1,k2,k3,"k1, k2","k1, k2, i4"}'::text[]) AS by,
	 (VALUES ('', ''), (' FILTER (WHERE b)', ''), (' FILTER (WHERE NOT b)', ''), (' FILTER (WHERE NULL)', ''),
			 (' FILTER (WHERE k1 = 4 OR k1 IS NULL)', ''), ('', 'WHERE i8 < 0'), ('', 'WHERE false AND b')) AS f (filter, w);

-- the same as a reader can check it
SET enable_gpu_hashagg = on;
SELECT k1, count(*), count(i4), sum(i4), avg(i4), min(i4), max(i4), min(ts), max(tz) FROM t GROUP BY k1 ORDER BY k1;
SELECT k1, count(*) FILTER (WHERE b), sum(i4) FILTER (WHERE b IS NULL), max(i8) FILTER (WHERE b AND k2 > 5) FROM t GROUP BY k1 ORDER BY k1;
RESET enable_gpu_hashagg;

-- count() of what cannot be a key
SELECT compare('SELECT k1, count(txt), count(n), count(b), count(u), count(t), count(t.*) FROM t GROUP BY k1');
SELECT compare('SELECT k1, count(txt) FILTER (WHERE b), count(txt) FILTER (WHERE NOT b), count(n) FILTER (WHERE b) FROM t GROUP BY k1');
SELECT compare('SELECT k1, count(row(k2, NULL)), count(array[k3]), count(NULL), count(1), count(k3) FROM t GROUP BY k1');
SELECT compare($$ SELECT k1, count(nullif(txt, 'text 1')), count(txt || NULL) FROM t GROUP BY k1 $$);
-- a composite of nothing but NULLs is not NULL to count()
SELECT compare('SELECT k1, count(row(NULL, NULL)), count(x) FROM t LEFT JOIN (SELECT 1 AS a, NULL::int AS b) x ON x.a = k1 GROUP BY k1');

-- NULLs by an outer join
SELECT compare('SELECT x.k1, y.k2, count(*), count(y.i4), sum(y.i4) FROM t x LEFT JOIN t y ON x.i4 = y.i4 + 1 GROUP BY x.k1, y.k2');
SELECT compare('SELECT y.k1, y.k2, count(*), count(x.i4), count(y.i4), min(y.i8) FROM t x FULL JOIN t y ON x.i4 = y.i4 + 2500 GROUP BY y.k1, y.k2');

-- the first NULL of a batch, and of a column, at each place of a bitmap's byte
SELECT count(*), result FROM generate_series(0, 129) AS at,
	compare(format('SELECT k, count(*), count(v), sum(v) FROM (SELECT nullif(g, %s) %% 4 AS k, nullif(g, %1$s + 1) AS v FROM generate_series(0, 130) g) x GROUP BY k', at)) AS result
GROUP BY result;
SELECT count(*), result FROM generate_series(0, 129, 3) AS at,
	compare(format('SELECT k, count(*), count(v), sum(v) FROM (SELECT nullif(g, %s) %% 4 AS k, nullif(g, %1$s + 1) AS v FROM generate_series(0, 130) g) x GROUP BY k', at),
			settings => 'gpurhh.batch_rows=64') AS result
GROUP BY result;
