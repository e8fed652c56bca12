--
-- Types beside the plain ones, as grouping columns and arguments: domains and
-- enums, which are rules of types.c and not rows.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- The labels' order is neither that of their OIDs nor the alphabet's.
CREATE TYPE mood AS ENUM ('sad', 'happy');
ALTER TYPE mood ADD VALUE 'ok' BEFORE 'happy';
ALTER TYPE mood ADD VALUE 'awful' BEFORE 'sad';
CREATE TYPE lonely AS ENUM ('one');
CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN even_percent AS percent CHECK (VALUE % 2 = 0);
CREATE DOMAIN day AS date NOT NULL;
CREATE DOMAIN feeling AS mood DEFAULT 'ok';
CREATE DOMAIN ratio AS float8;
CREATE DOMAIN ident AS uuid;
CREATE TABLE t AS
	SELECT CASE WHEN g % 9 > 0 THEN (enum_range(NULL::mood))[1 + g % 4] END AS m, 'one'::lonely AS l,
		   (g % 101)::percent AS p, CASE WHEN g % 7 > 0 THEN (g % 51 * 2)::even_percent END AS ep, (date '1999-12-30' + g % 5)::day AS d,
		   (enum_range(NULL::mood))[1 + g * g % 4]::feeling AS f, (CASE g % 4 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' ELSE (g % 3)::text END)::ratio AS r,
		   md5((g % 10)::text)::uuid::ident AS u, g AS v
	FROM generate_series(1, 5000) g;
ANALYZE t;

SELECT c, compare(format('SELECT %I, count(*), count(%1$I), sum(v) FROM t GROUP BY %1$I', c))
FROM unnest('{m,l,p,ep,d,f,u}'::text[]) WITH ORDINALITY AS x (c, n) ORDER BY n;
SELECT compare('SELECT r + 0, count(*) FROM t GROUP BY r');
SELECT compare('SELECT m, p, ep, d, f, u, count(*) FROM t GROUP BY m, p, ep, d, f, u');
-- the values themselves, and what they are sorted by
SET enable_gpu_hashagg = on;
SELECT m, count(*) FROM t GROUP BY m ORDER BY m;
SELECT f, pg_typeof(f), count(*) FROM t GROUP BY f ORDER BY f DESC;
SELECT pg_typeof(ep), pg_typeof(d), min(ep), max(d) FROM t GROUP BY ep, d ORDER BY 3, 4 LIMIT 1;
RESET enable_gpu_hashagg;
-- values outlive their labels' transaction, and the type's next label
BEGIN;
ALTER TYPE mood ADD VALUE 'new' AFTER 'ok';
SELECT compare('SELECT m, count(*) FROM t GROUP BY m');
ROLLBACK;

-- expressions, WHERE and HAVING over them
SELECT compare('SELECT m = ''ok'', count(*) FROM t GROUP BY m = ''ok''');
SELECT compare('SELECT p + 1, ep::int, count(*) FROM t GROUP BY 1, 2');
SELECT compare('SELECT m, count(*) FROM t WHERE m <> ''sad'' AND p > 3 AND d >= ''2000-01-01'' GROUP BY m');
SELECT compare('SELECT m, count(*) FROM t WHERE m < ''ok'' GROUP BY m');
SELECT compare('SELECT m, count(*) FROM t WHERE m IN (''ok'', ''awful'') GROUP BY m');
SELECT compare('SELECT m, p, count(*) FROM t GROUP BY m, p HAVING m > ''sad'' AND p < 50');
SELECT compare('SELECT m, p, count(*) FROM t GROUP BY m, p HAVING m = ''sad'' OR p IS NULL');
SELECT compare('SELECT d, sum(p), avg(ep), min(ep), max(d), count(m), count(*) FILTER (WHERE m = ''ok'') FROM t GROUP BY d');
SELECT compare('SELECT coalesce(m, ''ok''), CASE WHEN p > 3 THEN f ELSE ''sad'' END, count(*) FROM t GROUP BY 1, 2');
SELECT analyze_json('SELECT m, p, sum(ep), count(*) FROM t WHERE m <> ''sad'' AND p > 3 GROUP BY m, p') -> 'Feed';

-- determined by a key
CREATE TABLE k (id percent PRIMARY KEY, m mood, f feeling, d day);
INSERT INTO k SELECT DISTINCT ON (p) p, m, f, d FROM t;
SELECT compare('SELECT id, m, f, d, count(*) FROM k GROUP BY id');

-- a domain has the base type's reasons, too
CREATE DOMAIN document AS jsonb;
CREATE DOMAIN span AS interval;
SELECT reason FROM gpurhh_refusals('SELECT to_jsonb(v)::document, count(*) FROM t GROUP BY 1; SELECT v * interval ''1 day''::span, count(*) FROM t GROUP BY 1; SELECT (v * interval ''1 day'')::span, count(*) FROM t GROUP BY 1');
