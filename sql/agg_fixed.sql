--
-- Grouping columns of the less common types of fixed width, at their extremes,
-- alone and together, with rows and with pages fed.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- What could be taken for something else: all bits zero, all bits one, equal
-- moments in different zones, half of the bytes equal, NULL.
CREATE TABLE extremes (
	c "char", tz timetz, m money, mac macaddr, mac8 macaddr8, rc regclass, rp regproc, rt regtype,
	x xid, ci cid, x8 xid8, lsn pg_lsn, tid tid);
INSERT INTO extremes VALUES
	('', '00:00+00', '$0.00', '00:00:00:00:00:00', '00:00:00:00:00:00:00:00', 0, 0, 0, '0', '0', '0', '0/0', '(0,0)'),
	('a', '24:00+00', '-$0.01', 'ff:ff:ff:ff:ff:ff', 'ff:ff:ff:ff:ff:ff:ff:ff', 'pg_class', 'now', 'int4', '4294967295', '4294967295', '18446744073709551615', 'FFFFFFFF/FFFFFFFF', '(4294967295,65535)'),
	('\377', '24:00-15:59:59', '$0.01', '00:00:00:00:00:01', '00:00:00:00:00:00:00:01', 'pg_type', 'int4in', 'text', '2147483648', '2147483648', '9223372036854775808', '80000000/0', '(2147483648,32768)'),
	('\200', '00:00+15:59:59', '$92233720368547758.07', '01:00:00:00:00:00', '01:00:00:00:00:00:00:00', 'pg_proc', 'int4out', 'timetz', '2147483647', '2147483647', '9223372036854775807', '7FFFFFFF/FFFFFFFF', '(2147483647,32767)'),
	('\177', '00:00-15:59:59', '-$92233720368547758.08', '00:00:00:00:01:00', '00:00:00:ff:fe:00:00:00', 1, 1, 1, '1', '1', '1', '0/1', '(0,1)'),
	('\001', '24:00+15:59:59', '$42949672.95', '00:00:01:00:00:00', '00:00:00:00:00:00:01:00', 4294967295, 4294967295, 4294967295, '65536', '65536', '4294967296', '1/0', '(1,0)'),
	('b', '12:00+02', '$1.00', '00:00:00:00:01:01', '00:00:00:00:01:00:00:00', 2147483648, 2147483648, 2147483648, '3', '3', '3', '0/3', '(65536,0)'),
	('c', '11:00+01', '$2.00', '0a:00:2b:01:02:03', '0a:00:2b:ff:fe:01:02:03', 5, 5, 5, '4', '4', '4', '0/4', '(0,65535)'),
	('d', '10:00:00.000001+00', '$3.00', '0a:00:2b:01:02:04', '0a:00:2b:ff:fe:01:02:04', 6, 6, 6, '5', '5', '5', '0/5', '(65535,1)'),
	(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- each value some times, not next to each other
INSERT INTO extremes SELECT e.* FROM extremes e, generate_series(1, 6) g;
ANALYZE extremes;
CREATE TABLE columns AS SELECT attname::text AS c, attnum AS n FROM pg_attribute WHERE attrelid = 'extremes'::regclass AND attnum > 0;

SELECT c, compare(format('SELECT %I, count(*), count(%1$I) FROM extremes GROUP BY %1$I', c)),
	   analyze_json(format('SELECT %I, count(*) FROM extremes GROUP BY %1$I', c)) -> 'Feed' AS feed
FROM columns ORDER BY n;
-- the rows from core
SELECT c, compare(format('SELECT %I, count(*), count(%1$I) FROM (SELECT * FROM extremes ORDER BY c) x GROUP BY %1$I', c)) FROM columns ORDER BY n;
-- the values themselves, once, as a reader can check them
SET enable_gpu_hashagg = on;
SELECT tz, count(*) FROM extremes GROUP BY tz ORDER BY tz;
SELECT mac, mac8, count(*) FROM extremes GROUP BY mac, mac8 ORDER BY mac, mac8;
SELECT tid, lsn, x8, count(*) FROM extremes GROUP BY tid, lsn, x8 ORDER BY tid, lsn, x8;
RESET enable_gpu_hashagg;

-- Every pair of types, both ways round; money can only be sorted, and xid and
-- cid only be hashed, so core does not group by both.
SELECT count(*), result
FROM columns AS x, columns AS y,
	 compare(format('SELECT x.%I, y.%I, count(*) FROM (SELECT DISTINCT ON (c) * FROM extremes) x, extremes y GROUP BY 1, 2', x.c, y.c)) AS result
WHERE NOT ('m' IN (x.c, y.c) AND (x.c IN ('x', 'ci') OR y.c IN ('x', 'ci')))
GROUP BY result ORDER BY 1 DESC, 2;
SELECT compare('SELECT c, tz, mac, mac8, rc, rp, rt, x, ci, x8, lsn, tid, count(*) FROM extremes GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12');
-- 32 of them
SELECT compare(format('SELECT %s, count(*) FROM extremes a, (SELECT * FROM extremes LIMIT 5) b, (SELECT * FROM extremes LIMIT 3) c GROUP BY %1$s',
					  (SELECT string_agg(k, ', ') FROM (SELECT x || '.' || c AS k FROM columns, unnest('{a,b,c}'::text[]) x WHERE c NOT IN ('x', 'ci') ORDER BY n, x LIMIT 32) y)));

-- Many groups, and a column behind ones of odd widths; NULLs move all of them.
CREATE TABLE apart AS
	SELECT (g % 256 - 128)::int::"char" AS c, CASE WHEN g % 5 > 0 THEN ('0/' || to_hex(g))::pg_lsn END AS lsn,
		   (time '00:00' + g * interval '1.000001 s')::timetz AS tz, (g / 100.0)::numeric::money AS m,
		   (regexp_replace(lpad(to_hex(g::bigint * 7919), 12, '0'), '(..)', '\1:', 'g'))::text AS mac_text,
		   format('(%s,%s)', g / 100, g % 100 + 1)::tid AS tid, g::text::xid AS x
	FROM generate_series(1, 12000) g;
ALTER TABLE apart ADD mac macaddr, ADD mac8 macaddr8 DEFAULT '08:00:2b:01:02:03:04:05', ADD tz2 timetz DEFAULT '12:34:56.7+08', ADD tid2 tid DEFAULT '(1,2)';
SELECT compare('SELECT mac8, tz2, tid2, count(*) FROM apart GROUP BY mac8, tz2, tid2');
UPDATE apart SET mac = rtrim(mac_text, ':')::macaddr, mac8 = CASE WHEN x::text::int % 3 > 0 THEN rtrim(mac_text, ':')::macaddr::macaddr8 END WHERE tid < '(90,0)';
ANALYZE apart;
SELECT c, compare(format('SELECT %I, count(*) FROM apart GROUP BY %1$I', c))
FROM unnest('{c,lsn,tz,m,tid,x,mac,mac8,tz2,tid2}'::text[]) WITH ORDINALITY AS x (c, n) ORDER BY n;
SELECT compare('SELECT mac, mac8, tid, tz, lsn, count(*), count(mac8) FROM apart WHERE m > ''$1.00'' AND m <> ''$50.00'' GROUP BY mac, mac8, tid, tz, lsn');
SELECT compare('SELECT tz, count(*) FROM apart GROUP BY tz HAVING tz > ''01:00+00'' AND count(*) = 1');
SELECT compare('SELECT m, count(*) FROM apart GROUP BY m HAVING m BETWEEN ''$3.00'' AND ''$5.00''');
-- parallel, on the host, with rows that the device refuses
SELECT compare('SELECT mac, tz, m, count(*) FROM apart GROUP BY mac, tz, m', settings => 'min_parallel_table_scan_size=0,parallel_setup_cost=0,parallel_tuple_cost=0');
SELECT compare('SELECT mac, tz, tid, count(*) FROM apart GROUP BY mac, tz, tid', settings => 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95,work_mem=64kB');

-- boolean expressions are keys like others
SELECT compare('SELECT m > ''$50.00'', c IS NULL, tz < ''02:00+00'', lsn IS NULL OR tid < ''(3,1)'', count(*) FROM apart GROUP BY 1, 2, 3, 4');
SELECT compare('SELECT NOT (m > ''$50.00'') AND (mac IS NOT NULL), count(*) FROM apart GROUP BY 1');

-- determined by a key
CREATE TABLE k (id "char" PRIMARY KEY, tz timetz, m money, mac macaddr, mac8 macaddr8, tid tid, c "char", f4 float4, f8 float8);
INSERT INTO k SELECT DISTINCT ON (c) c, tz, m, mac, mac8, tid, CASE WHEN c <> 'b' THEN c END, CASE WHEN c > 'a' THEN '-0' ELSE 'NaN' END::float4, '-0' FROM extremes WHERE c IS NOT NULL;
SELECT compare('SELECT id, tz, m, mac, mac8, tid, c, f4, f8, f8 + 1, count(*) FROM k GROUP BY id');
