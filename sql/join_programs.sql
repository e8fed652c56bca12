--
-- What programs compute of the joins' output: numerics of many digits, uuids, floats in order
-- and as keys, parameters, long lists, and where columns of any type are NULL.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- numerics of one, two and three limbs, NULLs, NaN, and the greatest and least ones
CREATE FUNCTION make(tab name, n int, odd int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('CREATE TABLE %I AS SELECT g AS id, g %% 50 AS k, g %% 7 AS g, g * 17 %% 23 - 11 AS i4, (g * 3 %% 17 - 8) * 5000000000 AS i8,'
		' ((g * 7 %% 31 - 15) / 4.0)::numeric(10, 2) AS n,'
		' (CASE WHEN g %% (%s + 2) <> 0 THEN (g * 7 %% 31 - 15) * CASE g %% 5 WHEN 0 THEN 1 WHEN 1 THEN 1000000007 ELSE 12345678901234567 END::numeric / 100 END)::numeric(20, 2) AS n2,'
		' (CASE WHEN g %% (%2$s + 3) <> 0 THEN (g * 11 %% 29 - 14) * CASE g %% 4 WHEN 0 THEN 1 WHEN 1 THEN 1000000007 WHEN 2 THEN 1234567890123456789012345678 ELSE 0 END::numeric / 10000 END)::numeric(36, 4) AS n36,'
		' (CASE WHEN g %% (%2$s + 4) <> 0 THEN (g * 11 %% 29 - 14) * CASE g %% 4 WHEN 0 THEN 1 WHEN 1 THEN 1000000007 WHEN 2 THEN 1000000000000000000000000000000000 ELSE 2 END::numeric END)::numeric(37, 0) AS n37,'
		' (CASE WHEN g %% 101 = 0 THEN ''NaN'' WHEN g %% (%2$s + 4) <> 0 THEN (g * 11 %% 29 - 14) * 1000000000000000000000::numeric END)::numeric(30, 3) AS nan,'
		' CASE WHEN g %% (%2$s + 4) <> 0 THEN CASE g %% 9 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' WHEN 2 THEN ''0'' WHEN 3 THEN ''infinity'' ELSE (g %% 5 - 2) / 4.0 END::float4 END AS f4,'
		' CASE WHEN g %% (%2$s + 5) <> 0 THEN CASE g %% 11 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' WHEN 2 THEN ''0'' WHEN 3 THEN ''-infinity'' ELSE (g %% 5 - 2) / 4.0 END::float8 END AS f8,'
		' CASE g %% 5 WHEN 0 THEN 4294967290::oid WHEN 1 THEN NULL ELSE (g %% 8)::oid END AS o, CASE WHEN g %% (%2$s + 2) <> 0 THEN g * 5 %% 3 = 0 END AS b,'
		' CASE WHEN g %% 3 <> 0 THEN md5((g %% 5)::text)::uuid END AS u, CASE WHEN g %% 4 <> 0 THEN ''text '' || g %% 6 END AS t, CASE WHEN g %% 4 <> 1 THEN ARRAY[g %% 3] END AS a,'
		' CASE WHEN g %% 3 <> 1 THEN g %% 4 * interval ''1 hour'' END AS iv, CASE WHEN g %% 4 <> 2 THEN ''10:00+02''::timetz END AS tz FROM generate_series(1, %3$s) g', tab, odd, n);
	EXECUTE format('ANALYZE %I', tab);
END $f$;
SELECT make('f', 3000, 3), make('d', 40, 2);

-- arithmetic and comparisons of numerics of each length
SELECT l, r, joined(format('SELECT f.g, sum(f.%1$I + d.%2$I), sum(f.%1$I - d.%2$I), avg(d.%2$I - f.%1$I), count(*) FILTER (WHERE f.%1$I < d.%2$I), count(*) FILTER (WHERE f.%1$I = d.%2$I), count(f.%1$I + d.%2$I) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', l, r))
FROM unnest('{n,n2,n36,n37,nan}'::text[]) l, unnest('{n,n2,n36,n37,nan}'::text[]) r;
SELECT c, joined(format('SELECT f.g, sum(%s) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', c))
FROM unnest(ARRAY['f.n * d.n2', 'd.n36 * f.n', 'f.n2 * d.n2', 'f.n37 * d.n', 'd.nan * f.n', '-d.n36 + f.n2', 'coalesce(d.n36, f.n36)', 'CASE WHEN f.n2 < d.n2 THEN d.n37 ELSE f.n37 END', 'coalesce(d.n36, 0.0000)', 'f.i8 * d.n2', 'd.n2 * d.n2 * f.n', 'f.n2 * f.i4 + d.i4']) c;
-- what does not fit 128 bits is core's to compute
SELECT joined('SELECT f.g, sum(f.n37 * (d.n * 1000000.5)), count(*) FILTER (WHERE f.n37 * (d.n * 1000000.5) > 0) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- one that is not as its type declares, of the probe side and of a build side
CREATE TABLE odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(id % 50, g, i4, n, CASE WHEN id % 97 = 5 THEN 1234567.123456789 ELSE n36 END) FROM f)) q(k int, g int, i4 int, n numeric(10, 2), n36 numeric(36, 4));
CREATE TABLE few_odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(id, i4, n, CASE WHEN id = 5 THEN 1234567.123456789 ELSE n36 END) FROM d)) q(k int, i4 int, n numeric(10, 2), n36 numeric(36, 4));
SELECT joined('SELECT f.g, sum(f.n36 * d.n), count(*) FILTER (WHERE d.n36 < f.n36) FROM odd f JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT f.g, sum(f.n36 * d.n), count(*) FILTER (WHERE d.n36 < f.n36) FROM f JOIN few_odd d ON f.k = d.k GROUP BY f.g');
-- sums of a subquery
SELECT joined('SELECT f.g, sum(f.n * q.s), sum(q.s) FROM f JOIN (SELECT k, sum(n2)::numeric(30, 2) AS s FROM d GROUP BY k) q ON f.k = q.k GROUP BY f.g');
SELECT joined('SELECT f.g, sum(f.i4 * q.s) FROM f JOIN (SELECT k, sum(i8)::numeric(30) AS s FROM d GROUP BY k) q ON f.k = q.k GROUP BY f.g');
-- what a match is, and conditions of ON and WHERE
SELECT c, joined(format('SELECT f.g, count(*), count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND %s GROUP BY f.g', c)), joined(format('SELECT f.g, count(*) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE f.k = d.k AND %s) GROUP BY f.g', c)),
	joined(format('SELECT f.g, count(*) FROM f JOIN d ON f.k = d.k AND %s GROUP BY f.g', c)), joined_rows(format('SELECT f.id, d.id AS x FROM f JOIN d ON f.k = d.k AND %s', c))
FROM unnest(ARRAY['f.n36 < d.n36', 'f.n2 <> d.n2', 'f.nan <= d.nan', 'f.u < d.u', 'f.u <> d.u', 'f.u IN (md5(''1'')::uuid, md5(''2'')::uuid) = d.b', 'f.t IS NULL = d.b', 'f.a IS NULL = (d.tz IS NULL)', 'd.iv IS NULL']) c;

-- uuids
SELECT joined(format('SELECT f.g, %s FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(format('count(*) FILTER (WHERE f.u %s d.u)', op), ', ') FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op)));
SELECT joined('SELECT f.g, count(DISTINCT coalesce(d.u, f.u)), sum(CASE WHEN coalesce(d.u, f.u) > md5(''3'')::uuid THEN f.i4 END), count(CASE WHEN f.b THEN f.u ELSE d.u END), count(*) FILTER (WHERE d.u IS NULL) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT CASE WHEN f.i4 < d.i4 THEN f.u ELSE d.u END, count(*), sum(f.i4) FROM f LEFT JOIN d ON f.k = d.k GROUP BY 1');
SELECT joined('SELECT CASE WHEN f.nan + d.nan > 0 THEN f.u ELSE d.u END, count(*), sum(f.i4) FROM f JOIN d ON f.k = d.k GROUP BY 1');
-- least and greatest, and keys, of what is computed
SELECT c, joined(format('SELECT f.g, min(%1$s), max(%1$s) FROM f JOIN d ON f.k = d.k GROUP BY f.g', c)), joined(format('SELECT %1$s, count(*), sum(f.i4) FROM f LEFT JOIN d ON f.k = d.k GROUP BY 1', c))
FROM unnest(ARRAY['f.f8 + d.f8', 'f.f4 * d.f4', 'coalesce(d.f4, f.f4) + 0.5', 'CASE WHEN d.b THEN f.f8 ELSE 1 END', 'coalesce(d.o, f.o)', 'f.n + d.n', 'CASE WHEN f.i4 > d.i4 THEN f.n ELSE d.n END', 'd.n - f.i4']) c;
SELECT joined('SELECT (f.n + d.n)::numeric, f.g, count(*) FROM odd f JOIN d ON f.k = d.k GROUP BY ROLLUP (1, 2)');
SELECT joined('SELECT f.f8 / d.f8 + 0, count(*) FROM f JOIN d ON f.k = d.k WHERE d.f8 <> 0 AND f.f8 BETWEEN -2 AND 2 GROUP BY 1');
-- where columns of other types are NULL, also of a row that is not there
SELECT c, joined(format('SELECT f.g, count(*) FILTER (WHERE f.%1$I IS NULL OR d.b), count(*) FILTER (WHERE d.%1$I IS NULL), sum(CASE WHEN d.%1$I IS NOT NULL THEN f.i4 ELSE d.i4 END) FROM f LEFT JOIN d ON f.k = d.k AND d.id > 20 GROUP BY f.g', c)) FROM unnest('{t,a,iv,tz,n37,u}'::text[]) c;
SELECT joined('SELECT f.g, sum(CASE WHEN d.t IS NULL THEN f.i4 WHEN d.t = ''text 1'' THEN d.i4 WHEN f.nan + d.nan < 0 THEN 5 END) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- lists
SELECT joined(format('SELECT f.g, sum(CASE WHEN f.i4 IN (%1$s) THEN d.i4 END), count(*) FILTER (WHERE d.i4 NOT IN (%1$s) OR f.b) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(i::text, ', ') FROM generate_series(1, 40, 2) i)));
-- parameters of the query, and values that it finds out itself
PREPARE p(int, float8, uuid, int[]) AS SELECT f.g, count(*), sum(f.i4 * $1 + d.i4), sum(f.f8 * $2) FILTER (WHERE d.f8 < $2), count(*) FILTER (WHERE f.i4 = ANY ($4) OR d.b) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 + $1 AND (f.u > $3 OR d.u < $3) GROUP BY f.g ORDER BY f.g;
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION executed(arguments text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	core text[];
	ours text[];
BEGIN
	SET LOCAL enable_gpu_hashagg = off;
	SET LOCAL enable_gpu_hashjoin = off;
	DEALLOCATE ALL;
	PREPARE p(int, float8, uuid, int[]) AS SELECT f.g, count(*), sum(f.i4 * $1 + d.i4), sum(CASE WHEN f.f8 BETWEEN -1 AND 1 THEN f.f8 * $2 END) FILTER (WHERE d.f8 < $2), count(*) FILTER (WHERE f.i4 = ANY ($4) OR d.b) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 + $1 AND (f.u > $3 OR d.u < $3) GROUP BY f.g ORDER BY f.g;
	core := rows_of('EXECUTE p(' || arguments || ')');
	SET LOCAL enable_gpu_hashagg = on;
	SET LOCAL enable_gpu_hashjoin = on;
	DEALLOCATE ALL;
	PREPARE p(int, float8, uuid, int[]) AS SELECT f.g, count(*), sum(f.i4 * $1 + d.i4), sum(CASE WHEN f.f8 BETWEEN -1 AND 1 THEN f.f8 * $2 END) FILTER (WHERE d.f8 < $2), count(*) FILTER (WHERE f.i4 = ANY ($4) OR d.b) FROM f JOIN d ON f.k = d.k AND f.i4 < d.i4 + $1 AND (f.u > $3 OR d.u < $3) GROUP BY f.g ORDER BY f.g;
	ours := rows_of('EXECUTE p(' || arguments || ')');
	RETURN concat_ws('; ', difference(core, ours, true), cardinality(core) || ' rows, ' || (analyze_json('EXECUTE p(' || arguments || ')', 'enable_gpu_hashjoin=on') ->> 'Device Joins') || ' joins');
END $f$;
SELECT a, executed(a) FROM unnest(ARRAY['3, 0.25, md5(''1'')::uuid, ''{1,2,3}''', 'NULL, 0.25, md5(''2'')::uuid, NULL', '-2, NULL, NULL, ''{}''', '5, ''infinity'', md5(''2'')::uuid, ''{1,NULL}''']) a;
SELECT sqlstate_of('EXECUTE p(2147483647, 1, NULL, NULL)');
RESET plan_cache_mode;
SELECT joined('SELECT f.g, sum(CASE WHEN f.i4 > (SELECT avg(i4)::int FROM d) THEN d.i4 END) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT f.g, sum(f.i4 + d.i4 + (SELECT max(i4) FROM d)) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT v.x, q.* FROM generate_series(1, 3) v(x), LATERAL (SELECT f.g, count(*), sum(CASE WHEN f.i4 > v.x THEN d.i4 END) FROM f JOIN d ON f.k = d.k GROUP BY f.g) q');
-- aggregates of two arguments: products that the device makes of the joins' output
SELECT a, joined(format('SELECT f.g, %s FROM f JOIN d ON f.k = d.k GROUP BY f.g', (SELECT string_agg(format('round(%s(%s)::numeric, 6)', n, a), ', ') FROM unnest('{corr,covar_pop,covar_samp,regr_avgx,regr_avgy,regr_count,regr_intercept,regr_r2,regr_slope,regr_sxx,regr_sxy,regr_syy}'::text[]) n)))
FROM unnest(ARRAY['f.i4, d.i4', 'd.i4, f.id', 'f.i4::float8 + d.i4, f.id / 4.0::float8', 'CASE WHEN f.b THEN f.i4::float8 END, CASE WHEN d.b THEN d.i4::float8 END', 'f.i4, f.i4']) a;
SELECT joined('SELECT f.g, round(regr_sxy(f.i4, d.i4) FILTER (WHERE d.b OR f.b)::numeric, 6), regr_count(f.i4, d.i4) FROM f LEFT JOIN d ON f.k = d.k AND d.id > 20 GROUP BY f.g');
-- bad rows
SELECT joined('SELECT f.g, round(covar_pop(CASE WHEN f.nan + d.nan > 0 THEN f.i4::float8 ELSE d.i4 END, d.id)::numeric, 6), count(*) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
SELECT either('SELECT f.g, covar_pop(f.i4::float8 / d.i4, d.id) FROM f JOIN d ON f.k = d.k GROUP BY f.g');
-- several participants
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE f SET (parallel_workers = 2);
SELECT joined('SELECT f.g, sum(f.nan * d.n), sum(f.n2 + d.n36), count(DISTINCT coalesce(d.u, f.u)), max(f.f8 + d.f8), count(*) FILTER (WHERE d.t IS NULL) FROM f LEFT JOIN d ON f.k = d.k GROUP BY f.g');
SELECT joined('SELECT f.n + d.n, f.f4 + d.f4, count(*) FROM f JOIN d ON f.k = d.k GROUP BY 1, 2');
