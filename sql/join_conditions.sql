--
-- Conditions over columns of several tables that the device joins: as arguments of
-- aggregates, in FILTER, in ON and in WHERE.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
-- as many types as programs know; each column is NULL in some rows
CREATE FUNCTION make(tab name, n int, odd int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('CREATE TABLE %I AS SELECT g AS id, g %% 50 AS k, g %% 7 AS g,'
		' CASE WHEN g %% (%s + 1) <> 0 THEN (g * 31 %% 19 - 9)::int2 END AS i2, CASE WHEN g %% (%2$s + 2) <> 0 THEN g * 17 %% 23 - 11 END AS i4,'
		' CASE WHEN g %% (%2$s + 3) <> 0 THEN (g * 13 %% 23 - 11)::int8 * CASE g %% 3 WHEN 0 THEN 1 ELSE 5000000000 END END AS i8,'
		' CASE WHEN g %% (%2$s + 4) <> 0 THEN CASE g %% 9 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' WHEN 2 THEN ''0'' WHEN 3 THEN ''infinity'' ELSE (g %% 5 - 2) / 4.0 END::float4 END AS f4,'
		' CASE WHEN g %% (%2$s + 5) <> 0 THEN CASE g %% 11 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' WHEN 2 THEN ''0'' WHEN 3 THEN ''-infinity'' ELSE (g %% 5 - 2) / 4.0 END::float8 END AS f8,'
		' (CASE WHEN g %% (%2$s + 6) <> 0 THEN CASE g %% 29 WHEN 0 THEN ''NaN'' ELSE ((g * 7 %% 31 - 15) / 4.0)::text END::numeric END)::numeric(10, 2) AS n,'
		' (CASE WHEN g %% (%2$s + 7) <> 0 THEN (g * 7 %% 31 - 15) / 8.0 END)::numeric(18, 3) AS n3,'
		' CASE WHEN g %% (%2$s + 2) <> 0 THEN g * 5 %% 3 = 0 END AS b,'
		' CASE WHEN g %% (%2$s + 3) <> 0 THEN CASE g %% 17 WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity'' ELSE (''2020-01-01''::date + g %% 13)::text END::date END AS dt,'
		' CASE WHEN g %% (%2$s + 4) <> 0 THEN CASE g %% 19 WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity'' ELSE (''2020-01-01''::timestamp + g %% 25 * interval ''12 hours'')::text END::timestamp END AS ts,'
		' CASE WHEN g %% (%2$s + 5) <> 0 THEN time ''10:00'' + g %% 9 * interval ''1 hour'' END AS ti, (g %% 21 - 10)::money AS m,'
		' CASE g %% 5 WHEN 0 THEN 4294967290::oid WHEN 1 THEN NULL ELSE (g %% 8)::oid END AS o, (enum_range(NULL::mood))[1 + g %% 4] AS e,'
		' CASE WHEN g %% 3 <> 0 THEN md5((g %% 5)::text)::uuid END AS u, CASE WHEN g %% 4 <> 0 THEN ''text '' || g %% 6 END AS t FROM generate_series(1, %3$s) g', tab, odd, n);
	EXECUTE format('ANALYZE %I', tab);
END $f$;
SELECT make('f', 3000, 3), make('d', 40, 2), make('d2', 60, 5);
SELECT count(*) FROM f JOIN d USING (k);

-- each comparison of each type, as a filter and as a value; with a match and without
CREATE TABLE comparisons AS SELECT * FROM (VALUES ('i2', 'i2'), ('i2', 'i4'), ('i8', 'i2'), ('i4', 'i4'), ('i4', 'i8'), ('i8', 'i8'), ('f4', 'f4'), ('f4', 'f8'), ('f8', 'f4'),
	('f8', 'f8'), ('n', 'n'), ('n', 'n3'), ('n3', 'n'), ('b', 'b'), ('dt', 'dt'), ('dt', 'ts'), ('ts', 'dt'), ('ts', 'ts'), ('ti', 'ti'), ('m', 'm'), ('o', 'o'), ('i4', 'n')) c(l, r);
SELECT l, r, joined(format('SELECT f.g, %s FROM f JOIN d ON f.k = d.k GROUP BY f.g',
	(SELECT string_agg(format('count(*) FILTER (WHERE f.%I %s d.%I)', l, op, r), ', ') FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op))) FROM comparisons;
SELECT l, r, joined(format('SELECT f.g, %s FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g',
	(SELECT string_agg(format('sum(CASE WHEN f.%I %s d.%I THEN f.i4 ELSE d.i4 END), bool_or(f.%1$I %2$s d.%3$I)', l, op, r), ', ') FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op))) FROM comparisons;
SELECT joined('SELECT f.g, count(*) FILTER (WHERE f.e = d.e), count(*) FILTER (WHERE f.e <> d.e) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- a date after all timestamps is core's to compare
INSERT INTO d (k, g, dt) VALUES (1, 0, '300000-01-01');
SELECT joined('SELECT f.g, count(*) FILTER (WHERE f.ts < d.dt), count(*) FILTER (WHERE d.dt < f.ts) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- uuids, too; strings of two tables are core's to compare
SELECT c, joined(format('SELECT f.g, count(*) FILTER (WHERE f.%I <> d.%1$I) FROM f JOIN d ON f.k = d.k GROUP BY f.g', c)) FROM unnest('{u,t}'::text[]) c;

-- logic, with NULLs on both sides
CREATE FUNCTION logic(condition text) RETURNS text LANGUAGE sql AS $f$
	SELECT joined(format('SELECT f.g, count(*) FILTER (WHERE %1$s), count(%1$s), bool_and(%1$s), sum(CASE WHEN %1$s THEN f.i4 ELSE d.i2 END), sum((%1$s)::int) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', condition)) $f$;
SELECT c, logic(c) FROM unnest(ARRAY['f.b AND d.b', 'f.b OR d.b', 'NOT (f.b AND d.b)', 'f.b AND NOT d.b OR f.i4 > d.i4', 'f.b AND d.b AND f.i4 < d.i4 AND d.i2 > 0',
	'd.b IS TRUE', 'd.b IS NOT TRUE', 'd.b IS FALSE', 'd.b IS NOT FALSE', 'd.b IS UNKNOWN', 'd.b IS NOT UNKNOWN', '(f.b AND d.b) IS TRUE', '(f.b OR d.b) IS NOT TRUE', '(f.b AND d.b) IS FALSE',
	'(f.b AND d.b) IS NOT FALSE', '(f.b AND d.b) IS UNKNOWN', '(f.i4 < d.i4) IS NOT UNKNOWN', 'd.i4 IS NULL', 'd.n IS NOT NULL', 'd.u IS NULL', 'd.f8 IS NULL AND f.f8 IS NOT NULL',
	'(f.i4 + d.i4) IS NULL', '(f.n * d.n3 * d.n3) IS NOT NULL', 'f.b = d.b', 'f.b <> d.b', 'f.i4 BETWEEN d.i2 AND d.i4', 'f.i4 IN (1, 2, 3) AND d.i4 NOT IN (1, 2)', 'd.i4 IN (1, NULL, 3)', 'd.i4 NOT IN (1, NULL, 3)',
	'd.f8 IN (0, ''NaN'')', 'd.n IN (1, 1.25, -2.5)', 'd.dt IN (''2020-01-03'', ''infinity'') OR f.b', 'd.b', 'NULL::bool AND d.b', 'd.b OR NULL']) c;
SELECT c, joined(format('SELECT f.g, sum(%1$s), count(%1$s), min(%1$s) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d2 ON d.i2 = d2.i2 GROUP BY f.g', c))
FROM unnest(ARRAY['coalesce(d.i4, f.i4)', 'coalesce(d2.i4, d.i4, f.i4, 7)', 'CASE WHEN f.i4 < d.i4 THEN f.i8 WHEN d2.b THEN d2.i8 END', 'CASE WHEN d2.i4 > d.i4 THEN d2.n WHEN f.b THEN f.n ELSE d.n END',
	'CASE WHEN d.b THEN f.i2 ELSE d.i2 END', 'CASE WHEN d.b THEN NULL ELSE f.n + d.n END']) c;
SELECT joined('SELECT f.g, sum(CASE WHEN f.i4 < d.i4 THEN f.n * d.n3 END), count(coalesce(f.n * d.n3, f.n * f.n3)), avg(coalesce(f.n * d.n3, d.n * f.n3)) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT f.g, sum(CASE WHEN d.b THEN f.f8 ELSE d.f8 END), avg(coalesce(d.f4, f.f4)) FROM f LEFT JOIN d ON f.k = d.k WHERE f.f8 > -3 AND f.f4 < 3 GROUP BY f.g');
SELECT joined('SELECT f.g, min(CASE WHEN f.b THEN d.dt ELSE f.dt END), max(coalesce(d.ts, f.ts)), bit_or(coalesce(d.i2, f.i2)) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g');

-- what is not evaluated raises no error, and what is does
SELECT c, either(format('SELECT f.g, sum(%s) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', c)), joined(format('SELECT f.g, sum(%s) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', c))
FROM unnest(ARRAY['CASE WHEN d.i4 <> 0 THEN f.i4 / d.i4 END', 'CASE WHEN d.i4 = 0 THEN 0 WHEN f.i4 / d.i4 > 2 THEN 1 ELSE 2 END', 'CASE WHEN d.i4 <> 0 AND f.i4 / d.i4 > 1 THEN 1 ELSE 0 END',
	'CASE WHEN d.i4 = 0 OR d.i4 IS NULL OR f.i4 / d.i4 > 1 THEN 1 ELSE 0 END', 'coalesce(d.i4, f.i4 / d.i4)', 'coalesce(d.i4, 1 / (f.i4 - f.i4 + coalesce(d.i4, 1)))']) c;
SELECT c, either(format('SELECT f.g, sum(%s) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', c))
FROM unnest(ARRAY['f.i4 / d.i4', 'CASE WHEN f.i4 / d.i4 > 1 AND d.i4 <> 0 THEN 1 ELSE 0 END', 'CASE WHEN f.i4 / d.i4 > 2 OR d.i4 = 0 THEN 1 END', 'CASE WHEN f.b THEN f.i4 / d.i4 END', 'coalesce(f.i4 / d.i4, 0)',
	'CASE WHEN d.i4 <> 0 THEN 0 ELSE 1 / (d.i4 * f.i4) END', 'CASE WHEN (1 / d.i4 * f.i4) IS NULL THEN 1 END']) c;
SELECT joined('SELECT f.g, count(*) FILTER (WHERE d.i4 <> 0 AND f.i4 % d.i4 = 1), sum(f.i4 / d.i4) FILTER (WHERE d.i4 <> 0 AND f.b) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- NaN among numerics is core's to compute
SELECT joined('SELECT f.g, count(*) FILTER (WHERE f.n < d.n3), max(CASE WHEN f.n <= d.n THEN f.n + d.n END), bool_or(f.n + d.n > 2) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- and so are all rows of these
SELECT joined('SELECT f.g, sum(CASE WHEN f.b THEN f.n + d.n ELSE d.n - f.n END), count(*) FILTER (WHERE f.n - d.n > d.n3), bool_and(f.n - d.n = f.n3), count(coalesce(d.o, f.o)), bool_or(f.o < d.o) FROM f JOIN d ON f.k = d.k WHERE f.n = ''NaN'' GROUP BY f.g');

-- a build side that no expression is fed of: the device computes it
SELECT joined('SELECT f.g, sum(q.y + 1), count(*) FILTER (WHERE q.y > 3) FROM f JOIN (SELECT k, i4 * 2 AS y FROM d OFFSET 0) q ON f.k = q.k GROUP BY f.g');
-- too much for a program; a long list is looked through before the join
SELECT joined(format('SELECT f.g, sum(CASE %s END) FROM f JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(format('WHEN f.i4 + %s < d.i4 THEN f.i2', i), ' ') FROM generate_series(1, 20) i)));
SELECT joined(format('SELECT f.g, sum(CASE %s END) FROM f JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(format('WHEN f.i4 + %s < d.i4 THEN f.i2', i), ' ') FROM generate_series(1, 40) i)));
SELECT joined(format('SELECT f.g, %s FROM f JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(format('count(*) FILTER (WHERE f.i4 + %s < d.i4)', i), ', ') FROM generate_series(1, 24) i)));
SELECT joined(format('SELECT f.g, %s FROM f JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(format('count(*) FILTER (WHERE f.i4 + %s < d.i4)', i), ', ') FROM generate_series(1, 40) i)));
SELECT joined('SELECT f.g, sum(CASE WHEN f.i4 IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17) THEN d.i4 END) FROM f JOIN d ON f.k = d.k GROUP BY f.g');

-- conditions of ON and of WHERE, of inner joins and above outer ones
CREATE FUNCTION conditions(condition text) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws(' | ', joined(format('SELECT f.g, count(*), sum(d.i4), sum(f.i4 + d.i2) FROM f JOIN d ON f.k = d.k AND (%s) GROUP BY f.g', condition)),
		joined(format('SELECT f.g, count(*), sum(d.i4), count(d.b) FILTER (WHERE f.b) FROM f LEFT JOIN d ON f.k = d.k WHERE %s GROUP BY f.g', condition)),
		joined(format('SELECT d2.g, count(*), sum(f.i4) FROM f JOIN d ON f.k = d.k LEFT JOIN d2 ON f.i4 = d2.i4 WHERE %s GROUP BY d2.g', condition))) $f$;
SELECT c, conditions(c) FROM unnest(ARRAY['f.i4 < d.i4', 'f.i4 <> d.i2', 'f.i8 >= d.i8 AND f.i4 <> d.i4', 'f.n < d.n', 'f.n * 2 > d.n3', 'f.f8 = d.f8', 'f.f4 < d.f8', 'f.dt < d.ts', 'f.ts > d.dt', 'f.b OR d.b', 'f.b <> d.b',
	'(f.b AND d.b) IS NOT TRUE', 'f.i4 + d.i4 > 3', 'f.i4 BETWEEN d.i2 AND d.i4 + 5', 'f.e = d.e', 'f.m < d.m', 'f.o < d.o', 'CASE WHEN f.i4 > 0 THEN d.i4 > 0 ELSE d.b END', 'coalesce(f.i4 < d.i4, f.b)',
	'f.i4 IS NULL OR d.i4 IS NULL', 'd.i4 IS NULL OR f.i4 > d.i4', 'f.i4 < d.i4 AND f.i4 > d.i4', 'f.i8 = d.i4', 'f.u <> d.u', 'f.t <> d.t', 'random() < 2 OR f.b = d.b', 'f.i4 < d.i4 + extract(year from now())']) c;
-- all rows pass, and none
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 + d.i4 < 1000 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 + d.i4 > 1000 GROUP BY f.g');
SELECT joined('SELECT count(*), sum(f.i4) FROM f JOIN d ON f.k = d.k AND f.i4 + d.i4 > 1000');
-- of several joins, the lowest among them
SELECT joined('SELECT f.g, count(*), sum(d2.i4) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 JOIN d2 ON f.k = d2.k AND d2.i4 > d.i2 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(d2.i4) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 LEFT JOIN d2 ON f.i4 = d2.i4 WHERE d2.i4 IS NULL OR d2.i2 < d.i2 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(d2.i4) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d2 ON d.i4 = d2.i4 WHERE coalesce(d2.i2, f.i2) < coalesce(d.i2, 3) GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE EXISTS (SELECT FROM d2 WHERE d2.i4 = f.i4) AND NOT EXISTS (SELECT FROM d2 WHERE d2.i2 = d.i2 AND d2.id > 55) GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k JOIN d2 ON f.k = d2.k AND f.i4 + d.i4 < d2.i4 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f JOIN (d JOIN d2 ON d.i4 = d2.i4 AND d.i2 < d2.i2) ON f.k = d.k AND f.i2 < d2.i2 GROUP BY f.g', 'join_collapse_limit=1');
SELECT joined('SELECT x.g, count(*) FROM f x JOIN f y ON x.id = y.i4 AND x.i2 < y.i2 GROUP BY x.g');
-- a condition that says what a match is, for which there is another row without one
SELECT joined('SELECT f.g, count(*), count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE f.k = d.k AND f.i4 < d.i4) GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND f.i4 < d.i4) GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f LEFT JOIN d ON f.k = d.k AND f.i4 < d.i4 WHERE f.i2 < d.i2 OR d.i2 IS NULL GROUP BY f.g');
-- groupings of all kinds
SELECT joined('SELECT DISTINCT f.g, d.g FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4');
SELECT joined('SELECT f.g, d.g, count(*), sum(f.i4) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 GROUP BY ROLLUP (f.g, d.g)');
SELECT joined('SELECT f.g, count(DISTINCT d.i4), count(DISTINCT f.t) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 GROUP BY f.g');
SELECT joined('SELECT f.id, count(*), sum(d.i4) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 GROUP BY f.id', 'gpurhh.device_memory=1MB,gpurhh.max_probe_buckets=1,gpurhh.batch_rows=100');
-- keys that the device computes
SELECT c, joined(format('SELECT %1$s, count(*), sum(f.i4) FROM f LEFT JOIN d ON f.k = d.k GROUP BY 1', c)), joined(format('SELECT f.g, %1$s, count(*), sum(d.i4) FROM f JOIN d ON f.k = d.k AND f.i4 <> d.i4 GROUP BY ROLLUP (f.g, %1$s)', c))
FROM unnest(ARRAY['f.b AND d.b', 'f.i4 < d.i4', 'CASE WHEN f.i4 < d.i4 THEN 1 WHEN f.i4 > d.i4 THEN 2 END', 'f.i4 + d.i4', 'f.i8 % nullif(d.i2, 0)', 'CASE WHEN d.i2 <> 0 THEN f.i8 % d.i2 END', 'coalesce(d.i2, f.i2)',
	'coalesce(d.dt, f.dt)', 'coalesce(d.ts, f.ts)', 'coalesce(d.m, f.m)', 'coalesce(d.o, f.o)', 'coalesce(d.e, f.e)', 'coalesce(d.f8, f.f8)', 'f.n + d.n', 'coalesce(d.t, f.t)', 'coalesce(d.u, f.u)', 'f.n + d.n > 3']) c;
SELECT joined('SELECT DISTINCT f.i4 < d.i4, coalesce(d.i4, f.i4) FROM f LEFT JOIN d ON f.k = d.k');
SELECT joined('SELECT f.i4 * 100 + d.i4, count(*), count(DISTINCT f.i4 * d.i4) FROM f JOIN d ON f.k = d.k GROUP BY 1', 'gpurhh.device_memory=1MB,gpurhh.max_probe_buckets=1,gpurhh.batch_rows=100');
SELECT either('SELECT f.i4 / d.i4, count(*) FROM f JOIN d ON f.k = d.k GROUP BY 1');
-- bad rows: core decides whether there is such a row
SELECT either('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 / d.i4 > 0 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND d.i4 <> 0 AND f.i4 / d.i4 > 0 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(f.i4 / d.i4) FROM f JOIN d ON f.k = d.k AND CASE WHEN d.i4 <> 0 THEN f.i4 / d.i4 > 0 END GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(f.n) FROM f JOIN d ON f.k = d.k AND f.n + d.n < 3 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(f.n) FROM f JOIN d ON f.k = d.k AND f.n + d.n > 3 GROUP BY f.g', 'gpurhh.batch_rows=64');
SELECT joined('SELECT f.g, f.id % 3, count(*), sum(f.n), sum(f.n + d.n) FROM f JOIN d ON f.k = d.k AND (f.n + d.n > 3) IS NOT TRUE GROUP BY f.g, f.id % 3');
SELECT joined('SELECT f.g, f.t, count(*), count(d.n), max(f.o) FROM f JOIN d ON f.k = d.k AND f.n + d.n <> 3 AND f.n + d.n < 5 WHERE f.n = ''NaN'' GROUP BY f.g, f.t');
-- conditions on strings of one table are computed before the join
SELECT c, conditions(c) FROM unnest(ARRAY['f.t = ''text 1'' OR d.t = ''text 2''', '(f.t = ''text 1'' AND d.t = ''text 2'') IS NOT TRUE', 'f.t IN (''text 1'', ''text 3'') = d.t IN (''text 2'', ''text 4'', ''text 5'')',
	'f.t NOT IN (''text 1'', NULL) OR f.i4 > d.i4', 'f.i4 < d.i4 AND f.u <> md5(''1'')::uuid', 'd.u = md5(''2'')::uuid OR f.i4 > d.i4', 'd.u > f.u', 'd.t IS NULL OR f.t = ''text 1''', 'f.t IS NOT NULL AND f.t <> ''text 1'' OR d.b',
	'f.t <> d.t OR f.b', 'f.t LIKE ''%1'' OR d.b', 'f.t < ''text 3'' OR d.b', 'f.t COLLATE "C" = ''text 3'' OR d.b', 'upper(d.t) = ''TEXT 1'' OR f.b']) c;
SELECT joined('SELECT f.g, sum(CASE WHEN d.t = ''text 1'' THEN f.i4 WHEN f.t = ''text 2'' THEN d.i4 ELSE 0 END), count(*) FILTER (WHERE d.t <> ''text 1''), count(*) FILTER (WHERE d.t IN (''text 1'', ''text 2'') AND f.b) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FILTER (WHERE d.t IS NULL OR f.b) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT f.g, sum(CASE WHEN d.t = ''text 1'' THEN f.i4 END), count(*) FILTER (WHERE d.t = ''text 2'' AND f.n + d.n < 3) FROM f JOIN d ON f.k = d.k AND (d.t = ''text 1'' OR f.t <> ''text 2'' OR f.n + d.n < 5) GROUP BY f.g');
SELECT joined('SELECT f.g, sum(CASE WHEN q.t = ''text 1'' THEN f.i4 END) FROM f JOIN (SELECT k, t FROM d OFFSET 0) q ON f.k = q.k GROUP BY f.g');
SELECT joined('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k WHERE NOT EXISTS (SELECT FROM d2 WHERE d2.i4 = f.i4) AND (d.t = ''text 1'' OR f.t = ''text 2'') GROUP BY f.g');
-- the plan says what the condition is
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 LEFT JOIN d2 ON d.i2 = d2.i2 WHERE d2.i4 IS NULL OR d2.i4 > f.i4 GROUP BY f.g;
RESET enable_gpu_hashagg;
-- parameters of the query are in programs
PREPARE p(int) AS SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 + $1 GROUP BY f.g ORDER BY f.g;
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) EXECUTE p(3);
EXECUTE p(3);
RESET enable_gpu_hashagg;
-- several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE f SET (parallel_workers = 2);
SELECT joined('SELECT f.g, count(*), sum(f.i4 * d.i4) FILTER (WHERE f.b OR d.b) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 GROUP BY f.g');
SELECT joined('SELECT f.g, count(*), sum(f.n), sum(f.n + d.n) FROM f JOIN d ON f.k = d.k AND (f.n + d.n > 3) IS NOT TRUE GROUP BY f.g');
SELECT joined('SELECT f.i4 < d.i4, f.i4 + d.i4, count(*), sum(f.n + d.n) FROM f JOIN d ON f.k = d.k GROUP BY 1, 2');
-- bad rows come back to a participant that has read nothing, too
SELECT DISTINCT joined('SELECT f.g, count(*), sum(f.n), sum(f.n + d.n) FROM f JOIN d ON f.k = d.k AND f.i4 <> d.i4 GROUP BY f.g') FROM generate_series(1, 15);
SELECT joined('SELECT f.g, count(*), sum(d2.i4) FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN d2 ON d.i4 = d2.i4 WHERE coalesce(d2.i2, f.i2) < coalesce(d.i2, 3) GROUP BY f.g', 'join_collapse_limit=1');
SELECT joined('SELECT v.x, q.* FROM generate_series(1, 3) v(x), LATERAL (SELECT f.g, count(*), sum(f.i4) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 AND d.id % 3 <> v.x GROUP BY f.g) q');
