--
-- numeric of a declared scale: keys, sums, averages, minima and maxima.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- Every scale, alone and as one of two columns; negative ones, and such as are
-- greater than the precision.  Each has its extremes, zero, NaN and NULL.
CREATE FUNCTION scales_table(name text, precision_ int, scales int[]) RETURNS void
LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('CREATE TABLE %s (k int, %s)', name,
		(SELECT string_agg(format('n%s numeric(%s,%s)', i, precision_, s), ', ') FROM unnest(scales) WITH ORDINALITY AS x (s, i)));
	EXECUTE format('INSERT INTO %s SELECT g %% 5, %s FROM generate_series(-50, 50) g', name,
		(SELECT string_agg(format('(g * (10::numeric ^ %s - 1) / 50) * (''1e'' || -(%s))::numeric', precision_, s), ', ') FROM unnest(scales) s));
	EXECUTE format('INSERT INTO %s SELECT 6 + g %% 2, %s FROM generate_series(0, 9) g', name,
		(SELECT string_agg(format('(CASE g WHEN 9 THEN NULL WHEN 8 THEN ''NaN'' WHEN 7 THEN ''-0'' ELSE g::numeric - 3 END) * (''1e'' || -(%s))::numeric', s), ', ') FROM unnest(scales) s));
	EXECUTE format('INSERT INTO %s SELECT 8, %s', name, (SELECT string_agg('NULL', ', ') FROM unnest(scales)));
	EXECUTE format('INSERT INTO %s SELECT 9, %s', name, (SELECT string_agg('''NaN''', ', ') FROM unnest(scales)));
	EXECUTE 'ANALYZE ' || name;
END $f$;
SELECT scales_table('p18', 18, ARRAY(SELECT generate_series(0, 18)));
SELECT scales_table('p1', 1, ARRAY(SELECT generate_series(0, 6)));
SELECT scales_table('p7', 7, ARRAY(SELECT generate_series(0, 20, 3)));

SELECT t, i, compare(format('SELECT k, count(n%1$s), sum(n%1$s), avg(n%1$s), min(n%1$s), max(n%1$s) FROM %2$s GROUP BY k', i, t)),
	compare(format('SELECT n%1$s, count(*), sum(n%1$s) FROM %2$s GROUP BY n%1$s', i, t))
FROM (VALUES ('p1', 7), ('p7', 7), ('p18', 19)) AS x (t, n), generate_series(1, n) i;
SELECT compare('SELECT n1, n8, n19, k, sum(n2), avg(n19) FROM p18 GROUP BY n1, n8, n19, k');
SELECT compare(format('SELECT k, %s FROM p18 GROUP BY k', string_agg(format('sum(n%1$s), avg(n%1$s)', i), ', '))) FROM generate_series(1, 10) i;
SELECT compare(format('SELECT %s, count(*) FROM p7 GROUP BY %1$s', string_agg(format('n%s', i), ', '))) FROM generate_series(1, 7) i;
-- negative scales, and scales that only the long format has
CREATE TABLE odd_scales (k int, a numeric(3,-6), b numeric(15,-3), c numeric(3,70), d numeric(18,1000), e numeric(1,-17));
INSERT INTO odd_scales SELECT g % 4, g * 1e6, g * 1e15, g * 1e-70, g * 1e-1000, sign(g) * 1e17 FROM generate_series(-99, 99) g;
INSERT INTO odd_scales VALUES (5, NULL, NULL, NULL, NULL, NULL), (6, 'NaN', 'NaN', 'NaN', 'NaN', 'NaN'), (7, 999499999, 999999999999999499, 999e-70, 999999999999999999e-1000, 9e17),
	(7, -999499999, -999999999999999499, -999e-70, -999999999999999999e-1000, -9e17), (8, 0, 0, 0, 0, 0);
ANALYZE odd_scales;
SELECT c, compare(format('SELECT k, sum(%1$s), avg(%1$s), min(%1$s), max(%1$s) FROM odd_scales GROUP BY k', c)), compare(format('SELECT %1$s FROM odd_scales GROUP BY %1$s', c)) FROM unnest('{a,b,c,d,e}'::text[]) c;

-- As a reader can check it.
SET enable_gpu_hashagg = on;
SELECT k, count(n3), sum(n3), avg(n3), min(n3), max(n3) FROM p18 GROUP BY k ORDER BY k;
SELECT n3, count(*) FROM p18 WHERE k > 5 GROUP BY n3 ORDER BY n3;
SELECT feed('SELECT n3, sum(n3), avg(n3), min(n4) FROM p18 WHERE n5 < 3.5 GROUP BY n3');
RESET enable_gpu_hashagg;

-- NaN beside other values is the greatest, makes sums NaN, and is one group.
CREATE TABLE nans (k int, n numeric(6,2));
INSERT INTO nans VALUES (1, 'NaN'), (1, 1), (2, 'NaN'), (2, NULL), (3, 1), (3, 2), (4, NULL), (5, 9999.99), (5, 'NaN'), (6, 'NaN'), (6, 'NaN');
SELECT compare('SELECT k, sum(n), avg(n), min(n), max(n), count(n) FROM nans GROUP BY k');
SELECT compare('SELECT k, sum(n) FILTER (WHERE n <> ''NaN''), avg(n) FILTER (WHERE n < 5), max(n) FILTER (WHERE n <= 9999.99), min(n) FILTER (WHERE k > 4) FROM nans GROUP BY k');
SELECT compare('SELECT n, count(*), sum(k) FROM nans GROUP BY n');
SELECT compare('SELECT k, sum(n * n), sum(n + 1), sum(-n), sum(2.5 - n), avg(n * n * n) FROM nans GROUP BY k');
SELECT e, compare(format('SELECT k, sum(%s) FROM nans GROUP BY k', e)) FROM unnest('{2.5 - n,n - 7,-n,0 * n,n * 1.5,1e20 - n,n - 1e20,n * 1e20,n * 0e-20,(n * 1e15) * -n}'::text[]) e;
SELECT compare('SELECT k FROM nans GROUP BY k HAVING sum(n) = ''NaN''');
SELECT compare(format('SELECT k, sum(n) FROM nans WHERE n %s 1 GROUP BY k', op)), compare(format('SELECT k, sum(n) FROM nans WHERE 2.000 %s n GROUP BY k', op)),
	compare(format('SELECT k, sum(n) FROM nans WHERE n * n %s n + 0.001 GROUP BY k', op), nodes => 1)
FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op;

-- Averages' digits over many magnitudes, sums beyond 64 bits and beyond 128.
CREATE TABLE big (k int, a numeric(18,2), b numeric(36,6), c numeric(18,9), d numeric(18,0));
INSERT INTO big SELECT g % 97, (1 + g % 9) * 10::numeric ^ (g % 15), (3 + g % 6) * 10::numeric ^ (g % 30 - 5) * (g % 3 - 1), (7 + g) * 10::numeric ^ (g % 12 - 9), 999999999999999999 - g FROM generate_series(1, 3000) g;
INSERT INTO big SELECT 100, 9999999999999999.99, 999999999999999999999999999999.999999, 999999999.999999999, 999999999999999999 FROM generate_series(1, 2000);
INSERT INTO big SELECT 101, -9999999999999999.99, -999999999999999999999999999999.999999, -999999999.999999999, -999999999999999999 FROM generate_series(1, 2000);
INSERT INTO big SELECT 102, 9999999999999999.99 * (g % 2 * 2 - 1), 999999999999999999999999999999.999999 * (g % 2 * 2 - 1), 0, 0 FROM generate_series(1, 2000) g;
INSERT INTO big SELECT 103, 0, 0.000001, 0.000000001, 1 FROM generate_series(1, 7);
INSERT INTO big SELECT 104 + g % 50, g, g, 1.0 / g, 1 FROM generate_series(1, 500) g;
ANALYZE big;
SELECT c, compare(format('SELECT k, sum(%1$s), avg(%1$s), count(%1$s) FROM big GROUP BY k', c)) FROM unnest('{a,b,c,d}'::text[]) c;
SELECT compare('SELECT sum(a), avg(a), sum(b), avg(b), min(c), max(c), sum(d), avg(d) FROM big GROUP BY k % 2');
SELECT compare('SELECT k, sum(b), avg(b) FROM big WHERE b > 1000 OR b <= -0.5 GROUP BY k');
SET enable_gpu_hashagg = on;
SELECT k, sum(a), sum(b), sum(d), avg(b) FROM big WHERE k BETWEEN 100 AND 103 GROUP BY k ORDER BY k;
RESET enable_gpu_hashagg;

-- Expressions: their scale, and integers of up to three limbs.
SELECT e, compare(format('SELECT k, sum(%1$s), avg(%1$s), count(%1$s) FROM big GROUP BY k', e)), feed(format('SELECT k, sum(%s) FROM big GROUP BY k', e))
FROM unnest(ARRAY['a * c', 'a * d', 'a + c', 'c - a', '-a', 'a * 1.10', 'a + 1', '1 - c', 'a * (1 - c) * (1 + k)', 'a * (1 - c) * (1 + c)', 'a * a * a', 'b + b', 'b * c', 'b - a * d',
	'd * d * d', 'a * k', 'k::numeric', 'k::int8::numeric * a', '(a + 0.000) * c', '0 * a', 'a - a', '+a', 'abs(a - c)', 'CASE WHEN k > 100 THEN a * c END',
	'CASE WHEN k > 100 THEN a ELSE a + a END', 'CASE WHEN k > 100 THEN a ELSE b END', 'coalesce(a, a + d)', 'a::numeric(20,1)', 'a::numeric(19,1) * b', 'coalesce(nullif(k, 7)::numeric, k)']) e
WHERE e NOT IN ('CASE WHEN k > 100 THEN a ELSE b END', 'a * (1 - c) * (1 + c)');
SELECT reason FROM gpurhh_refusals('SELECT k, sum(a * (1 - c) * (1 + c)) FROM big GROUP BY k');
SELECT e, compare(format('SELECT %s, count(*) FROM big GROUP BY 1', e)) FROM unnest(ARRAY['-a', 'a::numeric(18,1)', 'k * 0.001', '-c', '2 - k', '-(k * 0.5) + 0.125']) e;
SELECT compare('SELECT k, min(c::numeric(18,8)), max(k * 1.5), min(-c), max(-d) FROM big GROUP BY k');
-- values that do not fit 128 bits, in few rows among others: core computes those
CREATE TABLE wide (k int, a numeric(18,0), b numeric(18,2), c numeric(18,2));
INSERT INTO wide SELECT g % 3, g, g % 100, 0.01 * g FROM generate_series(1, 1000) g;
INSERT INTO wide VALUES (1, 999999999999999999, 9999999999999999.99, 9999999999999999.99), (2, -999999999999999999, 9999999999999999.99, -9999999999999999.99), (2, 'NaN', 1, 1), (0, NULL, 1, 1);
SELECT compare('SELECT k, sum(a * b * c), avg(a * b * c), sum(a * b), sum(a * a * a), sum(b * b * b) FROM wide GROUP BY k');
SELECT compare('SELECT k, sum(a * b * c) FROM wide WHERE a * b * c > 5 OR a * b * c * c < 0 GROUP BY k');
SELECT feed('SELECT k, sum(a * b * c), avg(a * b * c) FROM wide WHERE a * b > 5 GROUP BY k');
-- second limbs that are 0 in all rows of a batch but few, the first, in the middle or the last
CREATE TABLE late (g int, a numeric(18,2));
INSERT INTO late SELECT g, CASE WHEN g IN (1, 1500, 3000) THEN 1234567890123456.78 ELSE g * 0.01 END FROM generate_series(1, 3000) g;
SELECT n, settings, compare(format('SELECT g %% %s, sum(a * a), sum(-a * a), count(*) FROM late WHERE g IN (%s) OR g NOT IN (1, 1500, 3000) GROUP BY 1', n, g), settings => settings)
FROM unnest(ARRAY[3, 1000]) n, unnest(ARRAY['0', '1', '1500', '3000', '1, 3000']) g, unnest(ARRAY[NULL, 'gpurhh.batch_rows=64']) settings;
SELECT feed('SELECT g % 3, sum(a * a) FROM late GROUP BY 1');

-- WHERE: constants of more and of less digits, and other columns
SELECT w, compare(format('SELECT k, count(*), sum(a) FROM big WHERE %s GROUP BY k', w)), feed(format('SELECT k, count(*) FROM big WHERE %s GROUP BY k', w))
FROM unnest(ARRAY['a > 5', 'a >= 5.000000000001', 'a BETWEEN 10 AND 99999.999', 'a = 3.00', 'a <> 3', 'a < c', 'a > b', 'a > 1e30', 'a < -1e30', 'a IS NULL', 'a IS NOT NULL AND NOT a < 7', 'a * c < 10', 'a = k', 'b < 1e-6',
	'b = 999999999999999999999999999999.999999', 'd > 1e17 OR c < 0.5', 'a < ''NaN''', 'a < ''Infinity''', 'a IN (1, 2, 3.00)', 'a IN (3.00, NULL)', 'a NOT IN (1, 2.000, 3)', 'a NOT IN (1, NULL)', 'a * c IN (0.0, 9)', 'a IN (3, ''NaN'')', 'nullif(a, 3) IN (4.5, 4)', 'nullif(a, 3) NOT IN (4.5, 4)', 'a > (SELECT avg(a) FROM big)', 'a / 2 > 7', 'round(a) = a']) w;

-- HAVING, ORDER BY, and expressions of the results
SELECT compare('SELECT k, sum(a), avg(a) FROM big GROUP BY k HAVING sum(a) > 1000 AND avg(c) < 50', settings => 'jit=off');
SELECT compare('SELECT k, sum(a) AS s FROM big GROUP BY k ORDER BY s DESC, k', ordered => true);
SELECT compare('SELECT a, sum(c) / count(*), round(avg(c), 3), sum(c)::numeric(20,2) FROM big GROUP BY a ORDER BY a DESC NULLS FIRST', ordered => true);
SELECT compare('SELECT sum(s), count(*) FROM (SELECT k, sum(a) AS s FROM big GROUP BY k) x', nodes => 1);
SELECT compare('SELECT k, sum(a) FILTER (WHERE c > 1), avg(a * c) FILTER (WHERE c > 1), sum(a * c * d) FILTER (WHERE a > 5), max(a) FILTER (WHERE false), sum(100 / c) FILTER (WHERE false) FROM big GROUP BY k', nodes => -1);
SELECT compare('SELECT k, sum(a) FILTER (WHERE c > 1), avg(a * c) FILTER (WHERE c > 1), sum(a * c * d) FILTER (WHERE a > 5), max(a) FILTER (WHERE false) FROM big GROUP BY k');

-- DISTINCT, GROUPING SETS, no GROUP BY
SELECT compare('SELECT k, sum(DISTINCT n), avg(DISTINCT n), count(DISTINCT n), sum(n) FROM nans GROUP BY k'), compare('SELECT k % 7, sum(DISTINCT a), avg(DISTINCT a), max(a) FROM big GROUP BY k % 7'),
	compare('SELECT sum(DISTINCT -c) FILTER (WHERE c < 0.5), avg(c * a) FROM big'), compare('SELECT DISTINCT a FROM big'), compare('SELECT sum(n), avg(n), min(n) FROM nans WHERE n < 0');
SELECT compare('SELECT k, a, sum(b), avg(c), max(d) FROM big GROUP BY ROLLUP (k, a)'), compare('SELECT sum(b * c), avg(a) FROM big');

-- Domains, NOT NULL or checked ones among them, and columns that a key determines
CREATE DOMAIN money2 AS numeric(12,2) CHECK (value > -1000000);
CREATE DOMAIN price AS money2 NOT NULL;
CREATE DOMAIN loose AS numeric;
CREATE TABLE domains (id int PRIMARY KEY, k int, m money2, p price, l loose);
INSERT INTO domains SELECT g, g % 10, CASE WHEN g % 11 > 0 THEN g / 7.0 END, g / 3.0, g / 9.0 FROM generate_series(1, 500) g;
ANALYZE domains;
SELECT compare('SELECT k, sum(m), avg(p), min(m), max(p), sum(m * p), count(l) FROM domains GROUP BY k');
SELECT compare('SELECT m, p, count(*) FROM domains GROUP BY m, p');
SELECT compare('SELECT id, m, p, count(*) FROM domains GROUP BY id');
SELECT feed('SELECT m, sum(p) FROM domains WHERE m < 30 GROUP BY m');

-- What is refused, and why
SELECT reason FROM gpurhh_refusals($$SELECT l FROM domains GROUP BY l$$);
CREATE TABLE loose_table (k int, n numeric, n19 numeric(19,2), n60 numeric(60,2));
SELECT q, (SELECT string_agg(reason, '; ') FROM gpurhh_refusals(q)) FROM unnest(ARRAY[
	'SELECT n FROM loose_table GROUP BY n', 'SELECT n19 FROM loose_table GROUP BY n19', 'SELECT k, sum(n) FROM loose_table GROUP BY k', 'SELECT k, avg(n * n19) FROM loose_table GROUP BY k',
	'SELECT k, min(n19) FROM loose_table GROUP BY k', 'SELECT k, sum(n60) FROM loose_table GROUP BY k', 'SELECT k, sum(n19 / 2) FROM loose_table GROUP BY k', 'SELECT k, stddev(n19) FROM loose_table GROUP BY k',
	'SELECT k, sum(CASE WHEN k > 5 THEN n19 ELSE 0 END) FROM loose_table GROUP BY k', 'SELECT k, variance(n19), var_pop(n19) FROM loose_table GROUP BY k', 'SELECT k, sum(n19 * n19 * n19) FROM loose_table GROUP BY k']) q;
SELECT compare('SELECT k, count(n), sum(n19), avg(n19), count(n60) FROM loose_table GROUP BY k');

-- ALTER TYPE: rows of the old scale are rewritten, of a lesser precision not
CREATE TABLE altered (k int, n numeric(8,2));
INSERT INTO altered SELECT g % 5, g / 7.0 FROM generate_series(1, 200) g;
SELECT compare('SELECT n, count(*) FROM altered GROUP BY n'), compare('SELECT k, sum(n) FROM altered GROUP BY k');
ALTER TABLE altered ALTER n TYPE numeric(12,2);
INSERT INTO altered SELECT g % 5, 9999999999.99 - g FROM generate_series(1, 20) g;
SELECT compare('SELECT n, count(*) FROM altered GROUP BY n'), compare('SELECT k, sum(n) FROM altered GROUP BY k');
ALTER TABLE altered ALTER n TYPE numeric(15,5);
SELECT compare('SELECT n, count(*) FROM altered GROUP BY n'), compare('SELECT k, sum(n), avg(n) FROM altered GROUP BY k');
ALTER TABLE altered ALTER n TYPE numeric;
SELECT compare('SELECT k, sum(n) FROM altered GROUP BY k', nodes => -1);
ALTER TABLE altered ALTER n TYPE numeric(15,1);
SELECT compare('SELECT n, count(*) FROM altered GROUP BY n'), compare('SELECT k, sum(n), avg(n) FROM altered GROUP BY k');
-- columns added later: rows that are too short for them
ALTER TABLE altered ADD late numeric(7,3) DEFAULT 12.5, ADD wide numeric(30,3) DEFAULT -1e20, ADD none numeric(5,1), ADD nan numeric(5,1) DEFAULT 'NaN';
INSERT INTO altered VALUES (1, 1, 2, 3, 4, 5), (2, NULL, NULL, NULL, NULL, NULL);
SELECT compare('SELECT k, sum(late), sum(wide), sum(none), sum(nan), max(nan), sum(late * wide) FROM altered GROUP BY k');
SELECT compare('SELECT late, none, nan, count(*) FROM altered WHERE late > 2.25 GROUP BY late, none, nan');
SELECT feed('SELECT k, sum(late), sum(wide), sum(none), sum(nan), max(nan), sum(late * wide) FROM altered WHERE late > 0 GROUP BY k');

-- Values that are not what is declared: see typmod_keys.sql and typmod_args.sql.
CREATE TABLE lying (k int, n numeric);
INSERT INTO lying VALUES (1, 1.25), (2, 1.234), (3, 1), (4, 'Infinity'), (5, 1e60), (6, 12345678901234567890.12), (7, 1.20), (8, 2305843009213693952.00), (9, 92233720368547758.08), (10, 1e-5);
UPDATE pg_attribute SET atttypmod = (10 << 16 | 2) + 4 WHERE attrelid = 'lying'::regclass AND attname = 'n';
SELECT k, compare(format('SELECT n, n + 1, sum(n), sum(n * 2) FROM lying WHERE k = %s GROUP BY n, n + 1', k)),
	compare(format('SELECT k, sum(n), min(n) FROM (SELECT * FROM lying WHERE k = %s OFFSET 0) x GROUP BY k', k)) FROM generate_series(1, 10) k;
DROP TABLE lying;

-- values out of line, and compressed
DO $$
BEGIN
	EXECUTE (SELECT format('CREATE TABLE toasted (k int, %s)', string_agg(format('n%s numeric(55,%s)', i, i % 50), ', ')) FROM generate_series(1, 99) i);
	EXECUTE (SELECT format('ALTER TABLE toasted %s', string_agg(format('ALTER n%s SET STORAGE %s', i, (ARRAY['EXTERNAL', 'EXTENDED', 'MAIN'])[1 + i % 3]), ', ')) FROM generate_series(1, 99) i);
	EXECUTE (SELECT format('INSERT INTO toasted SELECT g %% 3, %s FROM generate_series(1, 30) g', string_agg(format('%se-%s * sign(20.0 - g)', CASE WHEN i % 2 = 0 THEN repeat('12345', 11) ELSE '1' || repeat('0', 53) || '1' END, i % 50), ', ')) FROM generate_series(1, 99) i);
END $$;
SELECT compare(format('SELECT k, %s FROM toasted GROUP BY k', string_agg(format('sum(n%s)', i), ', '))) FROM generate_series(1, 12) i;
SELECT compare(format('SELECT k, %s FROM toasted GROUP BY k', string_agg(format('avg(n%s)', i), ', '))) FROM generate_series(88, 99) i;
SELECT pg_relation_size(reltoastrelid) > 0 AS out_of_line, (SELECT bool_or(pg_column_compression(n2) IS NOT NULL) FROM toasted) AS compressed FROM pg_class WHERE oid = 'toasted'::regclass;

-- Rows from other places than pages: joins, functions, VALUES, UNION ALL
SELECT compare('SELECT b.k, sum(b.a * d.m), sum(d.m * d.p * b.a), avg(d.p) FROM big b JOIN domains d ON d.id = b.k GROUP BY b.k');
SELECT compare('SELECT x::numeric(10,3), count(*), sum(x::numeric(10,3) * y::numeric(18,6) * 1e10) FROM (SELECT g / 7.0 AS x, g / 3.0 AS y FROM generate_series(1, 1000) g OFFSET 0) s GROUP BY 1');
SELECT compare('SELECT n, sum(n) FROM (VALUES (1.5::numeric(5,2)), (2.25::numeric(5,2)), (1.50)) AS v (n) GROUP BY n', nodes => -1);
SELECT compare('SELECT n, sum(n) FROM (VALUES (1.5::numeric(5,2)), (2.25::numeric(5,2)), (1.50::numeric(5,2))) AS v (n) GROUP BY n');
SELECT compare('SELECT n, sum(n) FROM (SELECT n3 AS n FROM p18 UNION ALL SELECT n3 FROM p18) u GROUP BY n');
SELECT compare('SELECT n, sum(n) FROM (SELECT n3 AS n FROM p18 UNION ALL SELECT n4 FROM p18) u GROUP BY n', nodes => -1);
SELECT compare('SELECT n, count(*) FROM json_to_recordset(''[{"n": 1.234}, {"n": 1.23}, {"n": null}]'') AS r (n numeric(5,2)) GROUP BY n');

-- parameters, prepared plans
CREATE TABLE many AS SELECT g % 1000 AS k, (g % 3333 / 7.0)::numeric(15,2) AS a, (g * 1.0 / 3)::numeric(15,2) AS b FROM generate_series(1, 20000) g;
ANALYZE many;
CREATE FUNCTION by_parameter(low numeric) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
	x numeric(9,1) := low;
BEGIN
	FOR r IN SELECT k % 3 AS k, sum(a), sum(a * x) FROM many WHERE a > x AND b > low GROUP BY k % 3 ORDER BY 1 LOOP
		RETURN NEXT r::text;
	END LOOP;
END $f$;
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
SELECT by_parameter(17.77);
SELECT by_parameter('NaN');
DISCARD PLANS;
SET enable_gpu_hashagg = off;
SELECT by_parameter(17.77);
RESET plan_cache_mode;

-- many groups; refused rows, spilled groups, no device memory
SELECT compare(q), compare(q, settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95'), compare(q, settings => 'gpurhh.device_memory=1MB, work_mem=64kB'), compare(q, settings => 'gpurhh.batch_rows=64')
FROM unnest(ARRAY['SELECT a, b, sum(a), sum(a * b * b), min(b) FROM many GROUP BY a, b', 'SELECT k, avg(a), sum(b), max(a * 1.5) FROM many GROUP BY k']) q;
-- parallel plans
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
SELECT compare(q), compare(q, settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, work_mem=64kB'), compare(q, settings => 'parallel_leader_participation=off')
FROM unnest(ARRAY['SELECT a, sum(a), sum(a * b * b), min(b) FROM many WHERE b > 10.5 GROUP BY a', 'SELECT sum(s), count(*) FROM (SELECT a, sum(b * b) AS s FROM many GROUP BY a) x']) q;
