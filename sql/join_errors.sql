--
-- Conditions that say what a match is, and that may be an error for some rows: in the ON of outer joins, of
-- EXISTS and of NOT EXISTS.  The device does such joins.  If it meets a pair of rows for which the condition
-- is an error, or a number that devices do not have, core's joins are asked for everything.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
\set helpers :srcdir '/sql/parallel.inc'
\i :helpers
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET gpurhh_test.wrapped = off;

-- z is 0 in one row of f, and z of d in one row; big overflows with big of one row, and n is NaN in one
CREATE TABLE f AS SELECT g AS id, CASE WHEN g % 23 <> 0 THEN g % 60 END AS k, g % 7 AS g, CASE WHEN g % 11 <> 0 THEN CASE g WHEN 1501 THEN 0 ELSE g % 50 + 1 END END AS z, (g * 31 % 19)::int2 AS i2,
	CASE WHEN g % 13 <> 0 THEN CASE g WHEN 2000 THEN 2000000000 ELSE g * 17 END END AS big, CASE WHEN g = 777 THEN 'NaN' ELSE g % 90 / 4.0 END::numeric(10, 2) AS n, g % 5 AS e FROM generate_series(1, 3000) g;
CREATE TABLE d AS SELECT g AS id, CASE WHEN g % 19 <> 0 THEN g % 80 END AS k, CASE WHEN g % 7 <> 0 THEN CASE g WHEN 201 THEN 0 ELSE g % 40 + 1 END END AS z, (g * 29 % 23)::int2 AS i2,
	CASE WHEN g % 17 <> 0 THEN CASE g WHEN 260 THEN 2000000000 ELSE g * 5 END END AS big, (g % 30 / 8.0)::numeric(8, 3) AS n, g % 6 AS e FROM generate_series(1, 300) g;
CREATE TABLE e AS SELECT g AS id, g % 4 AS x FROM generate_series(0, 5) g;
CREATE TABLE u AS SELECT * FROM d WHERE id BETWEEN 190 AND 265;
ANALYZE f, d, e, u;

-- every kind of join: what is done where no pair is an error, and where one is that core has to say
CREATE FUNCTION queries(c text, build text) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT format(replace(q, '@', build), c) FROM unnest(ARRAY['SELECT f.g, count(*) AS n, count(d.id) AS m, sum(d.e) AS e_sum, sum(f.id) AS ids FROM f LEFT JOIN @ d ON f.k = d.k AND (%s) GROUP BY f.g',
		'SELECT f.g, d.e, count(*) AS n, count(d.id) AS m, sum(f.id) AS ids FROM f RIGHT JOIN @ d ON f.k = d.k AND (%s) GROUP BY f.g, d.e', 'SELECT f.g, d.e, count(*) AS n, count(d.id) AS m, sum(f.id) AS ids FROM f FULL JOIN @ d ON f.k = d.k AND (%s) GROUP BY f.g, d.e',
		'SELECT f.g, count(*) AS n, sum(f.id) AS ids FROM f WHERE EXISTS (SELECT FROM @ d WHERE f.k = d.k AND (%s)) GROUP BY f.g', 'SELECT f.g, count(*) AS n, sum(f.id) AS ids FROM f WHERE NOT EXISTS (SELECT FROM @ d WHERE f.k = d.k AND (%s)) GROUP BY f.g']) q $f$;
CREATE FUNCTION matches(c text, build text DEFAULT 'd', settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT string_agg(joined(q, settings), ' | ') FROM queries(c, build) q $f$;
CREATE FUNCTION fails(c text, build text DEFAULT 'd') RETURNS text LANGUAGE sql AS $f$
	SELECT string_agg(either(q), ' | ') FROM queries(c, build) q $f$;
SELECT c, matches(c) FROM unnest(ARRAY['f.big + d.e > 9000', 'f.id / (d.e + 1) - d.e > 300', 'f.i2 * d.i2 > 100', 'f.id % (d.i2 + 1) = 0', 'CASE WHEN d.z <> 0 THEN f.id / d.z > 100 END',
	'f.i2::float8 * d.e > 20', 'd.n * (f.e * 2 + 1) > 5', 'f.e + d.e > 3 OR f.id % (f.e + d.e + 1) = 1']) c;
SELECT c, matches(c, 'u') FROM unnest(ARRAY['f.i2 * d.i2 > 100', 'd.z <> 0 AND f.id / d.z > 100']) c;
-- NaN is nothing that devices compute with, and core has no error
SELECT c, matches(c) FROM unnest(ARRAY['f.n + d.n > 20']) c;
SET enable_gpu_hashjoin = on;
SELECT c, fails(c) FROM unnest(ARRAY['f.id / d.z > 100', 'd.e / f.z = 0', 'f.big + d.big > 1000', 'f.i2 * d.i2 * 100::int2 > 100::int2', 'd.z = 0 OR f.id / d.z > 100', 'd.z IS NULL OR f.id % d.z = 1']) c;
SELECT c, fails(c, 'u') FROM unnest(ARRAY['f.id / d.z > 100', 'f.big + d.big > 1000']) c;
-- behind a match, and before one: core finds either of them first
CREATE TABLE both_ways AS SELECT 1 AS k, g AS z FROM generate_series(0, 40) g;
CREATE TABLE many AS SELECT g % 2 AS k, g AS id, g % 3 AS g FROM generate_series(1, 1000) g;
ANALYZE both_ways, many;
SELECT c, kind, either(format('SELECT f.g, count(*) FROM many f WHERE %s (SELECT FROM both_ways b WHERE b.k = f.k AND %s) GROUP BY f.g', kind, c)) FROM unnest('{EXISTS,NOT EXISTS}'::text[]) kind, unnest('{f.id / b.z >= 0,f.id / (b.z - 40) <= 0,f.id / (b.z - 20) <= 0}'::text[]) c;
RESET enable_gpu_hashjoin;

-- chains: an error of a row that a join returns without a match, or that a later join drops; no key filter drops it before
SET join_collapse_limit = 1;
SELECT q, joined(q) FROM unnest(ARRAY['SELECT f.g, count(*), sum(e.x) FROM f FULL JOIN d ON f.k = d.k LEFT JOIN e ON d.e = e.id AND d.e + e.x > 2 GROUP BY f.g', 'SELECT f.g, count(*), sum(e.x) FROM f LEFT JOIN d ON f.k = d.k AND f.e + d.e > 2 JOIN e ON d.e = e.id AND f.e * e.x > 2 GROUP BY f.g',
	'SELECT f.g, count(*), sum(e.x) FROM f LEFT JOIN d ON f.k = d.k AND f.e + d.e > 2 FULL JOIN e ON d.e = e.id AND d.e / (e.x + 1) < 2 GROUP BY f.g', 'SELECT f.g, count(*), sum(d.e) FROM f LEFT JOIN d ON f.k = d.k AND f.e * d.e > 2 WHERE NOT EXISTS (SELECT FROM e WHERE e.id = f.e AND e.x + d.e > 7) GROUP BY f.g']) q;
SET enable_gpu_hashjoin = on;
SELECT q, either(q) FROM unnest(ARRAY['SELECT f.g, count(*), sum(e.x) FROM f FULL JOIN d ON f.k = d.k LEFT JOIN e ON d.e = e.id AND 10 / (d.id - 282) > e.x GROUP BY f.g', 'SELECT f.g, count(*), sum(e.x) FROM f LEFT JOIN d ON f.k = d.k AND f.id / d.z > 2 JOIN e ON f.z = e.id GROUP BY f.g',
	'SELECT f.g, count(*), sum(e.x) FROM f LEFT JOIN d ON f.k = d.k AND d.e / (f.id - 1900) < 2 JOIN e ON f.id = e.id GROUP BY f.g', 'SELECT f.g, count(*), sum(e.x) FROM f RIGHT JOIN d ON f.k = d.k AND f.id / d.z > 2 RIGHT JOIN e ON d.id = e.id GROUP BY f.g']) q;
RESET enable_gpu_hashjoin;

-- levels and nodes above, subqueries that are run again, and a prepared statement
SELECT joined(q) FROM unnest(ARRAY['SELECT f.g, count(DISTINCT d.e), sum(d.e) FROM f LEFT JOIN d ON f.k = d.k AND @ GROUP BY ROLLUP (f.g)', 'SELECT count(*), sum(c) FROM (SELECT f.g, f.e, count(d.id) AS c FROM f LEFT JOIN d ON f.k = d.k AND @ GROUP BY f.g, f.e) q',
	'SELECT x, (SELECT sum(c) FROM (SELECT f.g, count(d.id) AS c FROM f LEFT JOIN d ON f.k = d.k AND f.id % x = 0 AND @ GROUP BY f.g) q) FROM generate_series(1, 4) x']) t, unnest(ARRAY['f.e + d.e > 3', 'f.n + d.n > 20']) c, replace(t, '@', c) q;
SELECT joined('SELECT x, (SELECT sum(c) FROM (SELECT f.g, count(d.id) AS c FROM f LEFT JOIN d ON f.k = d.k AND f.n + d.n > 20 WHERE (x <> 3) = (f.id <> 777) GROUP BY f.g) q) FROM generate_series(1, 4) x');
PREPARE p(int) AS SELECT f.g, count(d.id) FROM f LEFT JOIN d ON f.k = d.k AND f.id / ($1 - d.e) > 10 GROUP BY f.g ORDER BY 1;
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
SET enable_gpu_hashjoin = on;
EXECUTE p(6);
EXECUTE p(3);
SET enable_gpu_hashagg = off;
EXECUTE p(6);
EXECUTE p(3);
RESET enable_gpu_hashjoin;
RESET plan_cache_mode;

-- whatever makes the rows of the probe side is read again
SELECT p, joined(format('SELECT f.g, count(*), count(d.id) FROM %s f LEFT JOIN d ON f.k = d.k AND f.n + d.n > 20 GROUP BY f.g', p)) FROM unnest(ARRAY['(SELECT * FROM f LIMIT 2500)', '(SELECT k, g, n, count(*) FROM f GROUP BY k, g, n)', '(SELECT *, row_number() OVER (ORDER BY id) FROM f)',
	'(SELECT f.* FROM f LEFT JOIN e ON f.e < e.id AND e.id = 3)', '(SELECT * FROM f UNION ALL SELECT * FROM f WHERE id > 2000)', '(WITH w AS MATERIALIZED (SELECT * FROM f) SELECT * FROM w)', '(SELECT f.k, f.g, f.n FROM f JOIN e ON f.e = e.id OFFSET 0)']) p;
SELECT joined('SELECT v.g, count(*), count(d.id) FROM (VALUES (1, 1, 1::numeric(10, 2)), (2, 1, ''NaN'')) v(k, g, n) LEFT JOIN d ON v.k = d.k AND v.n + d.n > 20 GROUP BY v.g');

-- GpuHashJoin has returned rows by then
SELECT joined_rows(q, nodes => -1) FROM queries('f.e + d.e > 3', 'd') q WHERE q ~ 'RIGHT JOIN' LIMIT 1;
SELECT joined_rows('SELECT f.id, d.id FROM f LEFT JOIN d ON f.k = d.k AND f.e + d.e > 3', nodes => -1);
SELECT joined_rows('SELECT f.id FROM f WHERE EXISTS (SELECT FROM d WHERE f.k = d.k AND f.e + d.e > 3)', nodes => -1);
SET enable_gpu_hashjoin = on;
SELECT refusal FROM gpurhh_refusals('SELECT f.id, d.id FROM f LEFT JOIN d ON f.k = d.k AND f.e + d.e > 3') refusal;
RESET enable_gpu_hashjoin;

-- few rows in a batch, rows that come back, and passes, with an error in one of them
SELECT matches(c, 'd', 'gpurhh.batch_rows=64, gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1') FROM unnest('{f.e + d.e > 3,f.n + d.n > 20}'::text[]) c;
CREATE TABLE large AS SELECT g AS id, g % 25000 AS k, CASE g WHEN 41234 THEN 0 ELSE g % 10 + 1 END AS z, g % 3 AS e FROM generate_series(1, 50000) g;
CREATE TABLE probe AS SELECT g AS id, g * 7 % 30000 AS k, g % 9 AS g FROM generate_series(1, 60000) g;
ANALYZE large, probe;
CREATE FUNCTION passes(query text) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', joined(query, used), 'passes ' || regexp_replace(jsonb_path_query_array(analyze_json(query, used), '$.Joins[*].Passes')::text, '[2-9]|\d\d', 'several', 'g')) FROM CAST('enable_gpu_hashjoin=on, gpurhh.device_memory=1MB' AS text) used $f$;
SELECT passes(format('SELECT p.g, count(*), count(l.id), sum(l.e) FROM probe p %s JOIN large l ON p.k = l.k AND p.id + l.e > 30 GROUP BY p.g', kind)) FROM unnest('{LEFT,FULL}'::text[]) kind;
SELECT passes(format('SELECT p.g, count(*), sum(p.id) FROM probe p WHERE %s (SELECT FROM large l WHERE p.k = l.k AND p.id + l.e > 30) GROUP BY p.g', kind)) FROM unnest('{NOT EXISTS}'::text[]) kind;
SET enable_gpu_hashjoin = on;
SET gpurhh.device_memory = '1MB';
SELECT either(format('SELECT p.g, count(*), count(l.id) FROM probe p %s JOIN large l ON p.k = l.k AND p.id / l.z > 30 GROUP BY p.g', kind)) FROM unnest('{LEFT,FULL}'::text[]) kind;
RESET gpurhh.device_memory;
RESET enable_gpu_hashjoin;

-- parallel: whoever has met the pair, all begin anew
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpurhh.row_cost = 0.001;
ALTER TABLE f SET (parallel_workers = 2);
CREATE FUNCTION in_parallel(query text, settings text DEFAULT NULL, participants int DEFAULT 1) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', compare_parallel(query, used, participants => participants), n ->> 'Device Joins' || ' joins', 'not done: ' || (n ->> 'Device Joins Declined')) FROM concat_ws(', ', 'enable_gpu_hashjoin=on', settings) used, analyze_json(query, used) n $f$;
SELECT c, in_parallel(q) FROM unnest('{f.e + d.e > 3,f.n + d.n > 20}'::text[]) c, queries(c, 'd') q WHERE q ~ 'FULL|NOT';
SELECT s, in_parallel(q, s) FROM unnest('{max_parallel_workers=1,parallel_leader_participation=off}'::text[]) s, queries('f.n + d.n > 20', 'd') q WHERE q ~ 'LEFT';
SET enable_gpu_hashjoin = on;
SELECT either(q) FROM queries('f.id / d.z > 100', 'd') q;
SELECT either(q) FROM queries('d.e / f.z = 0', 'd') q;
