--
-- any_value(): some value of a group that is not NULL, of every type that a state
-- of one word holds, to the last bit.  It came with PostgreSQL 16; before that the
-- same queries are run with min(), whose rows are as many.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE FUNCTION compare_any(query text, nodes int DEFAULT 1) RETURNS text LANGUAGE sql AS $f$
	SELECT CASE WHEN current_setting('server_version_num')::int >= 160000 THEN compare(query, nodes => nodes)
		   ELSE compare(regexp_replace(replace(query, 'any_value(DISTINCT', 'min(DISTINCT'), 'any_value\([^()]*\)', 'min(i4)', 'g')) END;
$f$;
CREATE TYPE color AS ENUM ('red', 'green', 'blue');
CREATE DOMAIN small AS int CHECK (value < 1000000);
-- all values of a key are equal, so that it is known which one is returned
CREATE TABLE t AS
	SELECT g AS id, k, k % 2 = 0 AS b, chr(65 + k % 26)::"char" AS c, (k * 7919 % 65536 - 32768)::int2 AS i2, (k * 7919 - 30000)::int AS i4, k * 6364136223846793 - 5e18::int8 AS i8,
		   (2147483648 + k)::oid AS o, date '2000-01-01' - k AS d, timestamp '2000-01-01' + k * interval '1.5 h' AS ts, ('00:00+0' || k % 10)::timetz AS tz,
		   CASE k % 4 WHEN 0 THEN '-0'::float4 WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE (k * -0.1)::float4 END AS f4,
		   CASE k % 5 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE (k * -1e300)::float8 END AS f8,
		   CASE WHEN k % 9 = 0 THEN 'NaN' ELSE k / 7.0 END::numeric(12,3) AS n, (k * 1.25)::numeric::money AS m, format('(%s,7)', k)::tid AS tid,
		   format('08:00:2b:01:02:%s', lpad(to_hex(k % 256), 2, '0'))::macaddr AS mac, (ARRAY['red', 'green', 'blue'])[k % 3 + 1]::color AS e, k::small AS dom,
		   k::text AS s, k::text::numeric AS free, md5(k::text)::uuid AS u
	FROM generate_series(1, 20000) g, LATERAL (SELECT g % 997 AS k) x;
-- some rows are NULL of each key, and all of some
UPDATE t SET b = NULL, c = NULL, i2 = NULL, i4 = NULL, i8 = NULL, o = NULL, d = NULL, ts = NULL, tz = NULL, f4 = NULL, f8 = NULL, n = NULL, m = NULL, tid = NULL,
	mac = NULL, e = NULL, dom = NULL WHERE id % 3 = 0 OR k % 11 = 5;
ANALYZE t;

SELECT compare_any('SELECT k, any_value(b), any_value(c), any_value(i2), any_value(i4), any_value(i8), any_value(o) FROM t GROUP BY k');
SELECT compare_any('SELECT k, any_value(d), any_value(ts), any_value(tz), any_value(f4), any_value(f8), any_value(n) FROM t GROUP BY k');
SELECT compare_any('SELECT k, any_value(m), any_value(tid), any_value(mac), any_value(e), any_value(dom), count(*), sum(i4) FROM t GROUP BY k');
SELECT compare_any('SELECT k, any_value(DISTINCT i4), any_value(f8) FILTER (WHERE id % 2 = 0), any_value(i8) FILTER (WHERE false) FROM t GROUP BY k');
SELECT compare_any('SELECT k, any_value(i4), count(DISTINCT id % 5) FROM t GROUP BY k HAVING any_value(i4) > 0');
SELECT compare_any('SELECT any_value(i4), any_value(f4) FROM t WHERE k = 3');
SELECT compare_any('SELECT any_value(i4), any_value(f4) FROM t WHERE k < 0');
-- of several values it is one of them
SELECT compare_any('SELECT j, x = ANY (xs) AS one_of_them, f = ANY (fs) AS and_here FROM (SELECT k % 10 AS j, any_value(i4) AS x, any_value(f8)::float8 AS f FROM t GROUP BY 1) g JOIN (SELECT k % 10 AS j, array_agg(i4) AS xs, array_agg(f8) || array_agg(i4)::float8[] AS fs FROM t GROUP BY 1) a USING (j)');
SELECT compare_any('SELECT j, l, x IS NULL AS nothing FROM (SELECT k % 10 AS j, k % 3 AS l, any_value(i4) AS x FROM t GROUP BY ROLLUP (1, 2)) g');
-- strings, what has no known scale, and uuid, which takes two words, stay with core
SELECT compare_any('SELECT k, any_value(s) FROM t GROUP BY k', -1);
SELECT compare_any('SELECT k, any_value(u) FROM t GROUP BY k', -1);
SELECT compare_any('SELECT k, any_value(free) FROM t GROUP BY k', -1);
