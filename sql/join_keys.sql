--
-- Joins by columns of two types, which the device does: integers and floats of different
-- width, numerics of different scale, strings of different kinds.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET max_parallel_workers_per_gather = 0;

-- the operators there are
SELECT opfname, count(*) FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = amopmethod
	WHERE amname = 'hash' AND amoplefttype <> amoprighttype AND amopopr < 10000 GROUP BY 1 ORDER BY 1;

-- each has values that the others have, too, twice, and some that they cannot have, and NULLs
CREATE TABLE f AS SELECT g AS id, g % 7 AS g,
	CASE WHEN g % 11 <> 0 THEN (ARRAY[-32768, 32767, -1, 0])[1 + g % 50] END::int2 AS x2,
	CASE WHEN g % 11 <> 0 THEN coalesce((ARRAY[-32768, 32767, -1, 0])[1 + g % 50], g % 60 - 30) END::int2 AS i2,
	CASE WHEN g % 12 <> 0 THEN coalesce((ARRAY[-32768, 32767, 65535, 65536, -65536, 2147483647, -2147483648])[1 + g % 53], g % 60 - 30) END::int4 AS i4,
	CASE WHEN g % 13 <> 0 THEN coalesce((ARRAY[-32768, 32767, 65535, 2147483647, -2147483648, 4294967295, 4294967296, 4294967301, -4294967296, 9223372036854775807, -9223372036854775808])[1 + g % 51], g % 60 - 30) END::int8 AS i8,
	CASE WHEN g % 14 <> 0 THEN coalesce(('{NaN,-0,0,infinity,-infinity,0.1,3e38,1e-45}'::float4[])[1 + g % 40], (g % 40) / 8.0) END::float4 AS f4,
	CASE WHEN g % 15 <> 0 THEN coalesce(('{NaN,-0,0,infinity,-infinity,0.1,0.10000000149011612,3e38,1e300,1e-300}'::float8[])[1 + g % 40], (g % 40) / 8.0) END::float8 AS f8
	FROM generate_series(1, 2000) g;
CREATE TABLE d AS SELECT * FROM f WHERE id <= 150 UNION ALL SELECT * FROM f WHERE id BETWEEN 20 AND 40;
CREATE TABLE e AS SELECT * FROM f WHERE id BETWEEN 101 AND 210;
ANALYZE f, d, e;

CREATE TABLE pairs AS SELECT l, r FROM unnest('{i2,i4,i8}'::text[]) l, unnest('{i2,i4,i8}'::text[]) r UNION ALL VALUES ('f4', 'f8'), ('f8', 'f4'), ('f4', 'f4'), ('f8', 'f8');
-- below a grouping, and where rows are returned; a build side of pages, and of rows
SELECT l, r, joined(format('SELECT f.g, count(*), sum(d.id), sum(f.id) FROM f JOIN d ON f.%I = d.%I GROUP BY f.g', l, r)) FROM pairs;
SELECT l, r, joined_rows(format('SELECT f.id, f.%I, d.id, d.%I FROM f JOIN d ON f.%1$I = d.%2$I', l, r)) FROM pairs;
SELECT l, r, joined(format('SELECT f.g, count(*), sum(s.id) FROM f JOIN (SELECT * FROM d OFFSET 0) s ON f.%I = s.%I GROUP BY f.g', l, r)) FROM pairs;
SELECT l, r, joined_rows(format('SELECT f.id, f.%I, s.id, s.%I FROM f LEFT JOIN (SELECT id, %2$I FROM d OFFSET 0) s ON f.%1$I = s.%2$I', l, r)) FROM pairs;
-- other kinds of joins
SELECT l, r, joined(format('SELECT f.g, count(*), count(d.id), sum(d.%2$I) FROM f LEFT JOIN d ON f.%1$I = d.%2$I GROUP BY f.g', l, r)) FROM pairs WHERE l ~ 'i';
SELECT l, r, joined(format('SELECT f.g, count(*), sum(f.id) FROM f WHERE f.%1$I IN (SELECT d.%2$I FROM d) GROUP BY f.g', l, r)) FROM pairs;
SELECT l, r, joined_rows(format('SELECT f.id, f.%1$I FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.%1$I = d.%2$I)', l, r)) FROM pairs;
-- the column that is a key is a grouping column, too, and a column of the output
SELECT l, r, joined(format('SELECT f.%1$I, d.%2$I, count(*) FROM f JOIN d ON f.%1$I = d.%2$I GROUP BY f.%1$I, d.%2$I', l, r)) FROM pairs WHERE l ~ 'i';
-- one table is joined by the same column as it is and wider
SELECT joined('SELECT f.g, count(*), sum(d.id), sum(e.id) FROM f JOIN d ON f.i4 = d.i4 JOIN e ON f.i4 = e.i8 GROUP BY f.g');
SELECT joined_rows('SELECT f.id, d.id, e.id FROM f JOIN d ON f.i2 = d.i8 JOIN e ON f.i2 = e.i4 AND f.i4 = e.i2');
-- columns that are equal to each other: the planner chooses by which of them it joins
SELECT joined('SELECT f.g, count(*), sum(d.id), sum(e.id) FROM f JOIN d ON f.i2 = d.i4 JOIN e ON d.i4 = e.i8 GROUP BY f.g');
SELECT joined_rows('SELECT f.id, d.id, e.id FROM f JOIN d ON f.i8 = d.i2 JOIN e ON d.i2 = e.i4');
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.i2 = d.i4 JOIN e ON d.i4 = e.i8 WHERE e.i8 = f.i4 GROUP BY f.g');
-- a key that a build side has brought, with a match and without
SELECT joined('SELECT f.g, count(*), sum(e.id) FROM f JOIN d ON f.id = d.id JOIN e ON d.i2 = e.i8 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), count(d.id), sum(e.id) FROM f LEFT JOIN d ON f.id = d.i8 LEFT JOIN e ON d.i4 = e.i2 GROUP BY f.g');
SELECT joined_rows('SELECT f.id, d.id, e.id FROM f LEFT JOIN d ON f.id = d.i8 LEFT JOIN e ON d.f4 = e.f8 AND d.id > 3');
SELECT joined_rows('SELECT f.id, s.id, e.id FROM f LEFT JOIN (SELECT id, i2, i8 FROM d OFFSET 0) s ON f.id = s.i8 LEFT JOIN e ON s.i2 = e.i4');
-- several keys, of which some differ
SELECT joined('SELECT f.g, count(*), sum(d.id) FROM f JOIN d ON f.g = d.g AND f.i4 = d.i8 AND f.f8 = d.f8 GROUP BY f.g');
SELECT joined_rows('SELECT f.id, d.id FROM f JOIN d ON f.i2 = d.i4 AND f.g = d.i8 AND f.i8 = d.i4');
-- keys that are computed below
SELECT joined('SELECT f.g, count(*) FROM f JOIN (SELECT (-id % 100)::int2 AS i2, -id::int4 AS i4 FROM d OFFSET 0) s ON f.i8 = s.i2 AND f.i2 = s.i4 GROUP BY f.g');
-- domains, partitions, columns that are computed below, tuples without the last column
CREATE DOMAIN whole AS int4 CHECK (value <> 77);
CREATE TABLE p (id int, w whole, i2 int2) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 (i2 int2, id int, w whole);
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (1000);
INSERT INTO p SELECT g, g % 30, g % 40 FROM generate_series(1, 200) g;
ALTER TABLE p ADD late int2 DEFAULT -3;
INSERT INTO p SELECT 300 + g, g % 30, g % 40, g % 5 FROM generate_series(1, 20) g;
ANALYZE p;
SELECT c, joined(format('SELECT p.i2 %% 5, count(*), sum(d.id) FROM p JOIN d ON p.%I = d.i8 GROUP BY 1', c)), joined(format('SELECT f.g, count(*), sum(p.id) FROM f JOIN p ON p.%I = f.i8 GROUP BY 1', c)) FROM unnest('{w,i2,late}'::text[]) c;
SELECT joined('SELECT f.g, count(*), sum(s.id) FROM f JOIN (SELECT i4, id FROM d UNION ALL SELECT i2::int4 + 1, id FROM e UNION ALL SELECT 5, 5) s ON f.i8 = s.i4 GROUP BY f.g');
SELECT joined_rows('SELECT f.id, s.id FROM f JOIN (SELECT f4, id FROM d UNION ALL SELECT -f4, id FROM e) s ON f.f8 = s.f4');

-- numerics: a value that is not as declared is core's to join, on the probe side and in a build side
CREATE TABLE nf AS SELECT g AS id, g % 5 AS g, CASE g % 100 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' ELSE ((g % 100 - 50) / 4.0)::text END::numeric(10, 2) AS n2,
	CASE g % 100 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' ELSE ((g % 100 - 50) / 8.0)::text END::numeric(12, 4) AS n4, (g % 20)::numeric(4) AS n0,
	CASE g % 10 WHEN 0 THEN 999999999999999.999 WHEN 1 THEN -999999999999999.999 ELSE g % 30 END::numeric(18, 3) AS n3, (g % 20)::numeric(18, 4) AS w4, (g % 20)::numeric(18, 0) AS w0, (g % 20)::numeric AS any FROM generate_series(1, 3000) g;
CREATE TABLE nd AS SELECT * FROM nf WHERE id <= 130;
ANALYZE nf, nd;
CREATE TABLE npairs AS SELECT * FROM (VALUES ('n2', 'n4'), ('n4', 'n2'), ('n0', 'n4'), ('n4', 'n0'), ('n0', 'n2'), ('w4', 'n2'), ('n2', 'w4'), ('n3', 'n3'), ('n0', 'w0')) n(l, r);
SELECT l, r, joined(format('SELECT f.g, count(*), sum(d.id) FROM nf f JOIN nd d ON f.%I = d.%I GROUP BY f.g', l, r)) FROM npairs;
SELECT l, r, joined_rows(format('SELECT f.id, f.%1$I, d.id, d.%2$I FROM nf f LEFT JOIN (SELECT * FROM nd OFFSET 0) d ON f.%1$I = d.%2$I', l, r)) FROM npairs;
SELECT l, r, joined(format('SELECT f.%1$I, d.%2$I, count(*) FROM nf f JOIN nd d ON f.%1$I = d.%2$I GROUP BY 1, 2', l, r)) FROM npairs;
-- the greater scale leaves too few digits, or is not known
SELECT r, joined_rows(format('SELECT f.id FROM nf f JOIN nd d ON f.n3 = d.%I', r), nodes => -1) FROM unnest('{n4,any}'::text[]) r;
SELECT joined_rows('SELECT f.id FROM nf f JOIN nd d ON f.w0 = d.n2', nodes => -1);
-- 9223372036854775.81 is 0.0020 at a scale of 4, modulo 2^64
INSERT INTO nd (id, g, n4) VALUES (131, 1, 0.0020);
CREATE TABLE odd AS SELECT q.* FROM generate_series(1, 400) i, unnest(ARRAY[ROW(i, i % 4, CASE i % 100 WHEN 3 THEN 'infinity' WHEN 4 THEN 'NaN' WHEN 5 THEN '1.5' WHEN 6 THEN '1.5000' WHEN 7 THEN '1.125' WHEN 8 THEN '123456789012345.00' WHEN 9 THEN '12345678901234567890.00' WHEN 10 THEN '9223372036854775.81' ELSE i % 100 / 4 || '.50' END::numeric, CASE i % 7 WHEN 1 THEN 1.0 ELSE i % 7 END::numeric)]) q(id int, g int, n2 numeric(10, 2), n0 numeric(4));
ANALYZE odd;
SELECT l, joined(format('SELECT f.g, count(*), sum(d.id) FROM odd f JOIN nd d ON f.%I = d.n4 GROUP BY f.g', l)) FROM unnest('{n2,n0}'::text[]) l;
SELECT l, joined_rows(format('SELECT f.id, f.%1$I, d.id FROM odd f LEFT JOIN nd d ON f.%1$I = d.n4', l)) FROM unnest('{n2,n0}'::text[]) l;
SELECT l, joined(format('SELECT f.g, count(*), sum(d.id) FROM nf f JOIN odd d ON d.%I = f.n4 GROUP BY f.g', l)) FROM unnest('{n2,n0}'::text[]) l;
SELECT joined_rows('SELECT f.id, s.id FROM nf f JOIN (SELECT n2, id FROM nd UNION ALL SELECT n2, -id FROM nf WHERE id < 200) s ON f.n4 = s.n2');

-- strings: character(n) is compared without its trailing blanks, whatever its length is
CREATE TABLE sf AS SELECT g AS id, g % 5 AS g, s::char(4) AS c4, s::char(6) AS c6, (s || repeat(' and more', g % 2))::char(40) AS c40, s::bpchar || repeat(' ', g % 3)::bpchar AS c, s || repeat(' ', g % 3) AS t, (s || repeat(' and more', g % 2) || repeat(' ', g % 3))::varchar(50) AS v, left(s, 9)::name AS nm
	FROM (SELECT g, (ARRAY['a', 'b  ', '', ' ', 'äé', 'abcd', NULL, 'a string of more bytes than a key has'])[1 + g % 8] AS s FROM generate_series(1, 1500) g) q;
ALTER TABLE sf ALTER c TYPE bpchar;
CREATE TABLE sd AS SELECT * FROM sf WHERE id <= 60;
ANALYZE sf, sd;
SELECT format_type(a.atttypid, a.atttypmod), l, r, joined(format('SELECT f.g, count(*), sum(d.id), max(f.id) FROM sf f JOIN sd d ON f.%I = d.%I GROUP BY f.g', l, r)) FROM unnest('{c4,c6,c40,c}'::text[]) l, unnest('{c4,c6,c40,c,v}'::text[]) r JOIN pg_attribute a ON attrelid = 'sd'::regclass AND attname = r;
SELECT l, r, joined_rows(format('SELECT f.id, f.%1$I, d.id, d.%2$I FROM sf f LEFT JOIN (SELECT * FROM sd OFFSET 0) d ON f.%1$I = d.%2$I', l, r)) FROM unnest('{c4,c6,c40,c,v}'::text[]) l, unnest('{c4,c40}'::text[]) r;
SELECT l, r, joined(format('SELECT f.%1$I, d.%2$I, count(*) FROM sf f JOIN sd d ON f.%1$I = d.%2$I GROUP BY 1, 2', l, r)) FROM (VALUES ('c4', 'c6'), ('c6', 'c4'), ('c40', 'v'), ('nm', 't'), ('t', 'nm')) s(l, r);
-- text has its blanks, and makes text of the other side: no column
SELECT joined('SELECT f.g, count(*) FROM sf f JOIN sd d ON f.v = d.t GROUP BY 1');
SELECT joined_rows('SELECT f.id FROM sf f JOIN sd d ON f.c4 = d.t', nodes => -1);
SELECT joined_rows('SELECT f.id, d.id FROM sf f JOIN sd d ON f.c6::text = d.c6::text', nodes => -1);
-- values that are not as their type declares
CREATE TABLE oddc AS SELECT q.* FROM generate_series(1, 300) i, unnest(ARRAY[ROW(i, i % 4, ((ARRAY['a', 'a ', 'a      ', 'abcd', 'abcdefg', 'äé', ' ', '', 'a string of more bytes than a key has  '])[1 + i % 9])::bpchar)]) q(id int, g int, c char(4));
ANALYZE oddc;
SELECT r, joined(format('SELECT f.g, count(*), sum(d.id) FROM oddc f JOIN sd d ON f.c = d.%I GROUP BY f.g', r)), joined(format('SELECT f.g, count(*), sum(d.id) FROM sf f JOIN oddc d ON d.c = f.%I GROUP BY f.g', r)) FROM unnest('{c4,c6,c40,c,v}'::text[]) r;
SELECT joined_rows('SELECT a.id, a.c, b.id, b.c FROM oddc a JOIN oddc b ON a.c = b.c WHERE b.id < 40');

-- two types with the same bytes, but not the same equality
CREATE TABLE o AS SELECT g::oid AS o, g AS i, g::float8 AS f8 FROM generate_series(1, 50) g;
ANALYZE o;
SELECT c, joined_rows(format('SELECT f.id FROM f JOIN o ON %s', c), nodes => -1) FROM unnest('{f.i4 = o.f8,f.i4 = o.o,f.i4 + 0 = o.i,f.f4 = o.i}'::text[]) c;

-- parallel plans
\set parallel 'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2'
SELECT l, r, joined(format('SELECT f.g, count(*), sum(d.id), sum(f.id) FROM f JOIN d ON f.%I = d.%I GROUP BY f.g', l, r), :'parallel') FROM pairs WHERE l <> r;
SELECT l, r, joined_rows(format('SELECT f.id, f.%I, d.id, d.%I FROM f LEFT JOIN d ON f.%1$I = d.%2$I', l, r), :'parallel' || ', parallel_leader_participation=off') FROM pairs WHERE l <> r;
SELECT joined('SELECT f.g, count(*), sum(d.id), sum(e.id) FROM f JOIN d ON f.i2 = d.i4 JOIN e ON d.i4 = e.i8 GROUP BY f.g', :'parallel' || ', join_collapse_limit=1');
SELECT joined('SELECT f.g, count(*), sum(d.id) FROM odd f JOIN nd d ON f.n2 = d.n4 GROUP BY f.g', :'parallel');
SELECT joined_rows('SELECT f.id, d.id FROM nf f JOIN odd d ON d.n2 = f.n4', :'parallel');
SELECT joined_rows('SELECT f.id, d.id FROM sf f JOIN oddc d ON d.c = f.v', :'parallel');
-- each participant reads a part of this build side
CREATE TABLE large AS SELECT (g % 30000)::int2 AS k, repeat('x', 300) AS t, g FROM generate_series(1, 40000) g;
ANALYZE large;
SELECT pg_relation_size('large') / current_setting('block_size')::int > 1024, joined('SELECT f.g, count(*), sum(l.g) FROM f JOIN large l ON f.i8 = l.k GROUP BY f.g', :'parallel');
