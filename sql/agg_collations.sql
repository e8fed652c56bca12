--
-- Collations that conflict: a column of none, for those it comes from differ.
-- PostgreSQL raises an error when it compares such strings (42P22), and so it has
-- to be the one that does.  Here they were compared by their bytes.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE c (
	k int, a text COLLATE "C", b text COLLATE "POSIX", n text COLLATE nocase,
	ca char(3) COLLATE "C", cb char(3) COLLATE "POSIX", na name COLLATE "C", nb name COLLATE "POSIX", x bytea, y bytea);
INSERT INTO c SELECT i % 3, chr(65 + i % 5), chr(65 + i % 7), CASE WHEN i % 2 = 0 THEN 'x' ELSE 'X' END,
	chr(65 + i % 5), chr(65 + i % 7), chr(65 + i % 5), chr(65 + i % 7), chr(65 + i % 5)::bytea, chr(65 + i % 7)::bytea
FROM generate_series(1, 300) i;
-- subqueries give columns without a collation
\set mixed '(SELECT k, a || b AS ab, a || n AS an, CASE WHEN k = 1 THEN a ELSE b END AS case_ab, coalesce(a, n) AS coalesce_an, CASE WHEN k = 1 THEN na ELSE nb END AS nab, (CASE WHEN k = 1 THEN ca ELSE cb END)::char(3) AS cab FROM c) AS mixed'
\set appended '(SELECT k, a AS s FROM c UNION ALL SELECT k, n FROM c) AS appended'

-- grouping columns
SELECT x, either(format('SELECT %s, count(*) FROM %s GROUP BY 1', x, :'mixed')) FROM unnest('{ab,an,case_ab,coalesce_an,nab,cab}'::text[]) x;
SELECT either('SELECT s, count(*) FROM ' || :'appended' || ' GROUP BY s');
SELECT either('SELECT DISTINCT ab FROM ' || :'mixed');
SELECT either('SELECT DISTINCT s FROM ' || :'appended');
SELECT either('SELECT k, ab, count(*) FROM ' || :'mixed' || ' GROUP BY GROUPING SETS ((k), (k, ab))');
SELECT either(format('SELECT ab FROM %s UNION SELECT ab FROM %1$s', :'mixed'));
-- WHERE, FILTER, HAVING and arguments
SELECT either('SELECT k, count(*) FROM c WHERE a = b GROUP BY k');
SELECT either('SELECT k, count(*) FROM c WHERE a <> n GROUP BY k');
SELECT either('SELECT k, count(*) FROM c WHERE ca = cb GROUP BY k');
SELECT either('SELECT k, count(*) FROM c WHERE a || b IN (''AA'', ''BB'') GROUP BY k');
SELECT either('SELECT k, count(*) FROM ' || :'mixed' || ' WHERE an NOT IN (''AA'', ''BB'', ''CC'') GROUP BY k');
SELECT either('SELECT k, count(*) FROM ' || :'mixed' || ' WHERE case_ab = ANY (ARRAY[''A'', ''B'']) GROUP BY k');
SELECT either('SELECT k, count(*) FILTER (WHERE a = b) FROM c GROUP BY k');
SELECT either('SELECT k, sum(CASE WHEN a = n THEN 1 ELSE 0 END) FROM c GROUP BY k');
SELECT either('SELECT k, max(a) FROM c GROUP BY k HAVING max(a) = max(b)');
SELECT either('SELECT a, b, count(*) FROM c GROUP BY a, b HAVING a = b');
SELECT either('SELECT k, count(DISTINCT ab) FROM ' || :'mixed' || ' GROUP BY k');
SELECT either('SELECT k, count(DISTINCT an) FROM ' || :'mixed' || ' GROUP BY k');
SELECT either('SELECT k, max(ab) FROM ' || :'mixed' || ' GROUP BY k');
SELECT either('SELECT k, min(s) FROM ' || :'appended' || ' GROUP BY k');
-- no row, no comparison, no error
SELECT compare('SELECT k, count(*) FROM c WHERE k > 5 AND a = b GROUP BY k');
-- what does not compare them, or says how
SELECT compare('SELECT k, count(a || b), count(*) FROM c GROUP BY k');
SELECT compare('SELECT k, count(*) FROM c WHERE a || b IS NOT NULL GROUP BY k');
SELECT compare('SELECT (a || b) COLLATE "C", count(*) FROM c GROUP BY 1');
SELECT compare('SELECT k, count(*) FROM c WHERE a = b COLLATE "C" GROUP BY k');
SELECT compare('SELECT k, count(DISTINCT (a || b) COLLATE "C") FROM c GROUP BY k');
-- which bytea does not need
SELECT compare('SELECT x || y, count(*) FROM c GROUP BY 1');
SELECT compare('SELECT k, count(*) FROM c WHERE x = y AND x IN (''A'', ''B'') GROUP BY k');
SELECT analyze_json('SELECT k, count(*) FROM c WHERE x = y AND x IN (''A'', ''B'') GROUP BY k') ->> 'Feed';
SELECT analyze_json('SELECT k, count(*) FROM c WHERE a = ''A'' GROUP BY k') ->> 'Feed';

-- the aggregate's collation decides, also where its argument has become a simpler one of another
SELECT compare('SELECT k, count(DISTINCT CASE WHEN true THEN a || CASE WHEN k = 0 THEN ''x'' ELSE ''X'' END ELSE a COLLATE nocase END) FROM c GROUP BY k', nodes => 0);
SELECT compare('SELECT count(DISTINCT CASE WHEN true THEN ''abcdefgh'' || chr(65 + k % 2 * 32) ELSE n END) FROM c', nodes => 0);

SELECT group_by, reason FROM gpurhh_refusals('SELECT ab, count(*) FROM ' || :'mixed' || ' GROUP BY ab');
SELECT group_by, reason FROM gpurhh_refusals('SELECT k, count(DISTINCT ab) FROM ' || :'mixed' || ' GROUP BY k');

SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
