--
-- Conditions that say what a match is: in the ON of left joins, of EXISTS and of NOT EXISTS.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

SET max_parallel_workers_per_gather = 0;
-- hundreds of queries of few shapes, whose plans a subquery does not change
SET gpurhh_test.wrapped = off;
-- f is the probe side; d has many rows of a key, u one; each column is NULL in some rows
CREATE FUNCTION make(tab name, n int, keys int, odd int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('CREATE TABLE %I AS SELECT g AS id, CASE WHEN g %% (%s + 8) <> 0 THEN g %% %s END AS k, g %% 7 AS g,'
		' CASE WHEN g %% (%2$s + 1) <> 0 THEN (g * 31 %% 19 - 9)::int2 END AS i2, CASE WHEN g %% (%2$s + 2) <> 0 THEN g * 17 %% 23 - 11 END AS i4,'
		' CASE WHEN g %% (%2$s + 3) <> 0 THEN (g * 13 %% 23 - 11)::int8 * CASE g %% 3 WHEN 0 THEN 1 ELSE 5000000000 END END AS i8,'
		' CASE WHEN g %% (%2$s + 5) <> 0 THEN CASE g %% 11 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' WHEN 2 THEN ''0'' WHEN 3 THEN ''-infinity'' ELSE (g %% 5 - 2) / 4.0 END::float8 END AS f8,'
		' CASE WHEN g %% (%2$s + 4) <> 0 THEN ((g %% 5 - 2) / 4.0)::float4 END AS f4,'
		' (CASE WHEN g %% (%2$s + 6) <> 0 THEN CASE g %% 29 WHEN 0 THEN ''NaN'' ELSE ((g * 7 %% 31 - 15) / 4.0)::text END::numeric END)::numeric(10, 2) AS n,'
		' (CASE WHEN g %% (%2$s + 7) <> 0 THEN (g * 7 %% 31 - 15) / 8.0 END)::numeric(18, 3) AS n3,'
		' CASE WHEN g %% (%2$s + 2) <> 0 THEN g * 5 %% 3 = 0 END AS b,'
		' CASE WHEN g %% (%2$s + 3) <> 0 THEN CASE g %% 17 WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity'' ELSE (''2020-01-01''::date + g %% 13)::text END::date END AS dt,'
		' CASE WHEN g %% (%2$s + 4) <> 0 THEN ''2020-01-01''::timestamp + g %% 25 * interval ''12 hours'' END AS ts,'
		' CASE WHEN g %% 4 <> 0 THEN ''text '' || g %% 6 END AS t FROM generate_series(1, %4$s) g', tab, odd, keys, n);
	EXECUTE format('ANALYZE %I', tab);
END $f$;
SELECT make('f', 3000, 50, 3), make('d', 300, 60, 2), make('u', 40, 60, 5), make('d2', 200, 37, 4);

-- each condition in each kind of join: groups and rows; of many rows of a key, and of one
CREATE FUNCTION matches(condition text, settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws(' | ', joined(format('SELECT f.g, count(*), count(d.id), sum(d.i4), sum(f.i4) FROM f LEFT JOIN d ON f.k = d.k AND (%s) GROUP BY f.g', condition), settings),
		joined(format('SELECT f.g, count(*), sum(f.id) FROM f WHERE EXISTS (SELECT FROM d WHERE f.k = d.k AND (%s)) GROUP BY f.g', condition), settings),
		joined(format('SELECT f.g, count(*), sum(f.id) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND (%s)) GROUP BY f.g', condition), settings),
		joined(format('SELECT f.g, count(*), count(d.id), sum(d.i4) FROM f LEFT JOIN u d ON f.k = d.k AND (%s) GROUP BY f.g', condition), settings),
		joined(format('SELECT f.g, count(*), sum(f.id) FROM f WHERE EXISTS (SELECT FROM u d WHERE f.k = d.k AND (%s)) GROUP BY f.g', condition), settings),
		joined(format('SELECT f.g, count(*), sum(f.id) FROM f WHERE NOT EXISTS (SELECT FROM u d WHERE f.k = d.k AND (%s)) GROUP BY f.g', condition), settings)) $f$;
CREATE FUNCTION match_rows(condition text, settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws(' | ', joined_rows(format('SELECT f.id, d.id, d.i4, d.t FROM f LEFT JOIN d ON f.k = d.k AND (%s)', condition), settings),
		joined_rows(format('SELECT f.id, f.t FROM f WHERE EXISTS (SELECT FROM d WHERE f.k = d.k AND (%s))', condition), settings),
		joined_rows(format('SELECT f.id, f.t FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND (%s))', condition), settings)) $f$;
SELECT c, matches(c) FROM unnest(ARRAY['f.i4 < d.i4', 'f.i4 <> d.i2', 'f.i8 >= d.i8 AND f.i4 <> d.i4', 'f.n < d.n', 'f.n = d.n', 'f.f8 = d.f8', 'f.f4 < d.f8', 'f.f8 > d.f8', 'f.dt < d.dt', 'f.ts >= d.ts', 'f.b OR d.b',
	'f.b <> d.b', '(f.b AND d.b) IS NOT TRUE', 'f.i4 BETWEEN d.i2 AND d.i4', 'CASE WHEN f.i4 > 0 THEN d.i4 > 0 ELSE d.b END', 'f.i4 IS NULL OR d.i4 IS NULL', 'd.i4 IS NULL OR f.i4 > d.i4',
	'f.i4 < d.i4 AND f.i4 > d.i4', 'f.i8 = d.i4', 'f.id <> d.id', 'f.i4 IN (1, 2, 3) AND d.i4 NOT IN (1, 2)', 'f.i4 IS DISTINCT FROM d.i4', 'NOT (f.b AND d.b)']) c;
-- of one side alone: of the build side's it is part of the scan
SELECT c, matches(c) FROM unnest(ARRAY['f.i4 > 3', 'd.i4 > 3', 'f.b', 'NOT f.b', 'f.i4 IS NULL', 'd.b IS NULL', 'f.t = ''text 1''', 'd.t = ''text 1''', 'f.t IS NULL', 'f.i4 > 3 AND d.i4 > 3', 'f.i4 > 100', 'f.i4 > -100',
	'f.t LIKE ''%1'' OR f.i4 > d.i4', 'd.t IN (''text 2'', ''text 3'') OR f.i4 > d.i4', 'd.t IS NULL OR f.i4 > d.i4', '(f.t = ''text 1'') = (d.t = ''text 1'')', '(d.t <> ''text 1'') IS NOT FALSE AND f.i4 > 0']) c;
SELECT c, match_rows(c) FROM unnest(ARRAY['f.i4 < d.i4', 'f.i4 <> d.i2', 'f.n < d.n', 'f.b', 'f.i4 IS NULL OR d.i4 IS NULL', 'f.i4 > 100', 'f.id <> d.id', 'd.t IN (''text 2'', ''text 3'') OR f.i4 > d.i4', 'f.i8 = d.i4']) c;
-- constants
SELECT c, matches(c) FROM unnest(ARRAY['true', 'false', 'NULL', 'f.b OR NULL', 'f.b AND NULL', 'coalesce(d.b, true)', '1 = 2 OR f.i4 < d.i4']) c;

-- there may be an error, and core is asked where there is a number that devices do not have (see join_errors)
SELECT c, matches(c) FROM unnest(ARRAY['f.i4 + d.i4 > 3', 'f.i4 / d.i4 > 0 AND d.i4 <> 0', 'f.n * 2 > d.n3', 'f.ts < d.dt']) c;
-- core's: no comparison; a subquery
SELECT c, matches(c) FROM unnest(ARRAY['f.t <> d.t', 'random() < 2', 'f.id < 20 AND f.i4 < (SELECT max(i2) FROM u WHERE u.k = d.k)', 'f::text <> d::text']) c;
CREATE FUNCTION fails(condition text) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws(' | ', either(format('SELECT f.g, count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND (%s) GROUP BY f.g', condition)),
		either(format('SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE f.k = d.k AND (%s)) GROUP BY f.g', condition)),
		either(format('SELECT f.g, count(*) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND (%s)) GROUP BY f.g', condition))) $f$;
SELECT c, fails(c) FROM unnest(ARRAY['f.i4 / d.i4 > 0', 'd.i4 = 0 OR f.i4 / d.i4 > 0', 'f.i4 * 1000000000 > d.i4']) c;

-- chains: before and behind other joins, with conditions of the others' columns
SELECT joined(q) FROM unnest(ARRAY[
	'SELECT f.g, count(*), count(d.id), sum(d2.i4) FROM f JOIN d2 ON f.k = d2.k LEFT JOIN d ON f.k = d.k AND d.i4 < d2.i4 GROUP BY f.g',
	'SELECT f.g, count(*), count(d.id), sum(d2.i4) FROM f LEFT JOIN d2 ON f.k = d2.k AND f.i4 < d2.i4 LEFT JOIN d ON f.k = d.k AND d.i4 < d2.i4 GROUP BY f.g',
	'SELECT f.g, count(*), count(d.id), sum(d2.i4) FROM f LEFT JOIN d2 ON f.k = d2.k AND f.i4 < d2.i4 LEFT JOIN d ON d2.k = d.k AND (d2.i4 IS NULL OR d.b) GROUP BY f.g',
	'SELECT f.g, count(*), count(d.id), sum(d2.i4) FROM f LEFT JOIN d2 ON f.k = d2.k AND f.i4 < d2.i4 LEFT JOIN d ON f.k = d.k AND (d2.i4 IS NULL OR d.b) WHERE d.i2 IS NULL OR d.i2 < d2.i2 GROUP BY f.g',
	'SELECT f.g, count(*), sum(u.i4) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 LEFT JOIN u ON d.i4 = u.i4 AND d.i2 > f.i2 GROUP BY f.g',
	'SELECT f.g, count(*), sum(u.i4) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 JOIN u ON d.i4 = u.i4 AND d.i2 > f.i2 GROUP BY f.g',
	'SELECT f.g, count(*), sum(d2.i4) FROM f LEFT JOIN (d JOIN d2 ON d.i4 = d2.i4 AND d.i2 < d2.i2) ON f.k = d.k AND f.i2 < d2.i2 GROUP BY f.g',
	'SELECT f.g, count(*), sum(d.i4) FROM f JOIN d ON f.k = d.k WHERE EXISTS (SELECT FROM d2 WHERE d2.k = f.k AND d2.i4 > d.i4) GROUP BY f.g',
	'SELECT f.g, count(*), sum(d.i4) FROM f JOIN d ON f.k = d.k WHERE NOT EXISTS (SELECT FROM d2 WHERE d2.k = f.k AND d2.i4 > d.i4) GROUP BY f.g',
	'SELECT f.g, count(*), sum(d.i4) FROM f LEFT JOIN d ON f.k = d.k AND d.i4 > f.i4 WHERE NOT EXISTS (SELECT FROM d2 WHERE d2.k = f.k AND d2.i4 = d.i4) GROUP BY f.g',
	'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k AND d.i4 > f.i4) AND NOT EXISTS (SELECT FROM d2 WHERE d2.k = f.k AND d2.i4 = f.i4) GROUP BY f.g',
	'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM d JOIN d2 ON d.i4 = d2.i4 WHERE d.k = f.k AND d2.i4 > f.i4) GROUP BY f.g',
	'SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE d.k = f.k AND d.i4 > f.i4 AND EXISTS (SELECT FROM d2 WHERE d2.k = d.k AND d2.i4 > d.i4)) GROUP BY f.g',
	'SELECT f.g, count(*), count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE d.id IS NULL GROUP BY f.g',
	'SELECT f.g, count(*) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE d.k IS NULL AND f.b GROUP BY f.g',
	'SELECT f.g, count(*), count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE d.b IS NOT TRUE GROUP BY f.g',
	'SELECT f.g, count(*), sum(f.i4 + d.i2), count(*) FILTER (WHERE f.i2 > d.i2) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE f.i2 < d.i2 OR d.i2 IS NULL GROUP BY f.g',
	'SELECT f.g, d.t, count(*) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 AND d.t <> ''text 2'' GROUP BY f.g, d.t',
	'SELECT f.g, count(DISTINCT d.i4) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 GROUP BY ROLLUP (f.g)']) q;
-- core makes joins of these from version 17 on
SELECT regexp_replace(joined(q), '\d joins', 'N joins') FROM unnest(ARRAY[
	'SELECT f.g, count(*) FROM f WHERE f.k IN (SELECT d.k FROM d WHERE d.i4 > f.i4) GROUP BY f.g',
	'SELECT f.g, count(*) FROM f WHERE f.k = ANY (SELECT d.k FROM d WHERE d.i4 <> f.i4 AND d.b) GROUP BY f.g']) q;
SELECT joined_rows(q) FROM unnest(ARRAY[
	'SELECT f.id, d.id, d2.id FROM f LEFT JOIN d2 ON f.k = d2.k AND f.i4 = d2.i4 LEFT JOIN d ON f.k = d.k AND d.i4 < d2.i4',
	'SELECT f.id, d.id FROM f JOIN d ON f.k = d.k WHERE NOT EXISTS (SELECT FROM d2 WHERE d2.k = f.k AND d2.i4 > d.i4)',
	'SELECT f.id, d.id FROM f LEFT JOIN d ON f.k = d.k AND f.i4 = d.i4 WHERE EXISTS (SELECT FROM d2 WHERE d2.k = f.k AND d2.i4 > d.i4)']) q;

-- many pieces: batches of few rows, little memory, so that rows come back
SELECT c, matches(c, s), match_rows(c, s) FROM unnest(ARRAY['f.i4 < d.i4', 'f.i4 = d.i4', 'f.i4 > 100', 'f.id <> d.id']) c, unnest(ARRAY['gpurhh.batch_rows=100', 'gpurhh.device_memory=1MB,gpurhh.max_probe_buckets=1,gpurhh.batch_rows=100']) s;
-- and very many candidates of a row
CREATE TABLE hot AS SELECT 1 AS k, g AS x, g % 3 AS y FROM generate_series(1, 20000) g;
CREATE TABLE probe AS SELECT CASE WHEN g % 10 < 9 THEN 1 ELSE 2 END AS k, g * 211 AS x, g % 4 AS y, g % 5 AS g FROM generate_series(1, 200) g;
ANALYZE hot, probe;
SELECT c, joined(format('SELECT p.g, count(*), count(h.x), sum(h.x) FROM probe p LEFT JOIN hot h ON p.k = h.k AND (%s) GROUP BY p.g', c)),
	joined(format('SELECT p.g, count(*), sum(p.x) FROM probe p WHERE EXISTS (SELECT FROM hot h WHERE p.k = h.k AND (%s)) GROUP BY p.g', c)),
	joined(format('SELECT p.g, count(*), sum(p.x) FROM probe p WHERE NOT EXISTS (SELECT FROM hot h WHERE p.k = h.k AND (%s)) GROUP BY p.g', c)),
	joined_rows(format('SELECT p.x, h.x FROM probe p LEFT JOIN hot h ON p.k = h.k AND (%s)', c)),
	joined_rows(format('SELECT p.x FROM probe p WHERE NOT EXISTS (SELECT FROM hot h WHERE p.k = h.k AND (%s))', c))
FROM unnest(ARRAY['p.x = h.x', 'p.x >= h.x AND p.x = h.x', 'p.x < h.x AND p.y = h.y', 'p.x > h.x AND p.x < h.x']) c;

-- rows that are left over to core: to multiply infinity may be an error, and a division is one only where there is a match
CREATE TABLE odd AS SELECT g AS id, g % 20 AS k, g % 3 AS g, CASE g % 10 WHEN 7 THEN 'infinity'::float8 ELSE g % 17 END AS x, 'x' || g % 9 AS t FROM generate_series(1, 1000) g;
CREATE TABLE odd_build AS SELECT g % 30 AS k, (g % 13)::numeric AS n, 'x' || g % 9 AS t, g % 11 AS i FROM generate_series(1, 60) g;
ANALYZE odd, odd_build;
SELECT c, joined(format('SELECT o.g, count(*), count(b.k), sum(o.x * 2) FROM odd o LEFT JOIN odd_build b ON o.k = b.k AND %s GROUP BY o.g', c)), joined(format('SELECT o.g, count(*), sum(o.x * 2) FROM odd o WHERE EXISTS (SELECT FROM odd_build b WHERE o.k = b.k AND %s) GROUP BY o.g', c)),
	joined(format('SELECT o.g, count(*), sum(o.x * 2) FROM odd o WHERE NOT EXISTS (SELECT FROM odd_build b WHERE o.k = b.k AND %s) GROUP BY o.g', c)) FROM unnest(ARRAY['o.id % 9 > b.i', '(o.t = ''x3'' OR b.i > 3)', '(b.t = ''x3'' OR o.id < 500)', 'o.x < b.i', 'o.x > b.n', '(10 / (b.i + 1) > 1) = (o.id > 5)']) c;
SELECT either('SELECT o.g, sum(100 / (o.k - 3)) FROM odd o WHERE EXISTS (SELECT FROM odd_build b WHERE o.k = b.k AND (o.k <> 3 OR b.i > 100)) GROUP BY o.g');
SELECT either('SELECT o.g, sum(100 / (o.k - 3)) FROM odd o WHERE EXISTS (SELECT FROM odd_build b WHERE o.k = b.k AND (o.k <> 3 OR b.i > 1)) GROUP BY o.g');
SELECT either('SELECT o.g, sum(100 / (o.k - 3)) FROM odd o WHERE NOT EXISTS (SELECT FROM odd_build b WHERE o.k = b.k AND (o.k = 3 OR b.i > 1)) GROUP BY o.g');
SELECT joined('SELECT o.g, count(*), count(b.k) FROM odd o LEFT JOIN (SELECT k, i + 1 AS i FROM odd_build OFFSET 0) b ON o.k = b.k AND o.id > b.i GROUP BY o.g');

-- rescans, and conditions with parameters
SELECT joined('SELECT x, (SELECT sum(c) FROM (SELECT f.g, count(d.id) AS c FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE f.g <> x GROUP BY f.g) q) FROM generate_series(1, 3) x');
SELECT joined('SELECT x, (SELECT sum(c) FROM (SELECT f.g, count(d.id) AS c FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 AND (f.i2 < x OR d.b) GROUP BY f.g) q) FROM generate_series(1, 3) x');
PREPARE p(int) AS SELECT f.g, count(d.id) AS c FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 AND (f.i2 < $1 OR d.b) GROUP BY f.g ORDER BY 1;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(2);
SET enable_gpu_hashagg = off;
EXECUTE p(2);
RESET enable_gpu_hashagg;
RESET plan_cache_mode;

-- what EXPLAIN counts: rows that match
SELECT analyze_json('SELECT f.g, count(*) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND f.i4 < d.i4) GROUP BY f.g', 'enable_gpu_hashjoin=on')->>'Device Joins';

-- parallel
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT c, matches(c), match_rows(c) FROM unnest(ARRAY['f.i4 < d.i4', 'f.b', 'd.t IN (''text 2'', ''text 3'') OR f.i4 > d.i4']) c;
