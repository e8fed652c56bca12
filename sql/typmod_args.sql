--
-- Arguments of numeric that are not what their type modifier declares.  Core
-- believes no modifier when it executes: column definition lists, tables made of
-- them, and fields of record variables hold numerics of any scale, and infinities.
-- The node knows a scale by the modifier.  It took such a value for an error
-- (42804), even where WHERE or row security exclude the row.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- As it was found.
CREATE TABLE nc AS SELECT * FROM unnest(ARRAY[ROW(1, 1.2345::numeric, 'ab'::bpchar)]) q(k int, n numeric(10,2), c char(4));
SELECT compare('SELECT k, sum(n) FROM nc GROUP BY k'), compare('SELECT k, sum(n) FROM nc WHERE n > 1.23 GROUP BY k'), compare('SELECT k, sum(n) FROM nc WHERE n < 1.23 GROUP BY k'),
	compare('SELECT k, sum(n), avg(n), min(n), max(n), count(n), count(*), variance(n), stddev(n), var_pop(n), stddev_pop(n) FROM nc GROUP BY k');

-- Values of every kind: n, of one column of the device's, w of two and three if it
-- is multiplied.  Each group has what its number says, in an order of no meaning.
CREATE TABLE kinds (g int, n numeric, w numeric);
INSERT INTO kinds SELECT 0, i * 1.25, i * 1e20 + 0.1250 FROM generate_series(1.00, 9.00) i;	-- conforming
INSERT INTO kinds SELECT 1, i + 0.12345, i + 1e20 + 1e-9 FROM generate_series(1, 9) i;	-- more digits, alone
INSERT INTO kinds SELECT 2, i, i * 1000 FROM generate_series(1, 9) i;	-- less digits, alone
INSERT INTO kinds SELECT 3, CASE WHEN i % 3 = 0 THEN i + 0.001 ELSE i * 1.01 END, CASE WHEN i % 3 = 0 THEN i + 1e-30 ELSE i * 1.0001 END FROM generate_series(1, 30) i;
INSERT INTO kinds SELECT 4, CASE WHEN i % 3 = 0 THEN i * 1.1 ELSE i * 1.01 END, CASE WHEN i % 3 = 0 THEN i * 7 ELSE i * 1.0001 END FROM generate_series(1, 30) i;
INSERT INTO kinds VALUES (5, 'NaN', 'NaN'), (5, 1.234, 1.2), (6, 'Infinity', 'Infinity'), (6, 1.25, 1.2500), (7, '-Infinity', '-Infinity'), (8, 'Infinity', 'Infinity'), (8, '-Infinity', '-Infinity'), (8, 1.00, 1.0000),
	(9, 'NaN', 'NaN'), (9, 'Infinity', '-Infinity'), (10, NULL, NULL), (10, 2.5, 2.5), (11, NULL, NULL), (12, 1.25, NULL), (12, NULL, 1e-50), (13, -1.5, -1.5);
INSERT INTO kinds VALUES (14, 1e40, 1e100), (14, 1.25, 1.2500), (15, 1e-200, 1e-300), (15, 3.50, 3.5000), (16, 0, 0), (17, 0.0000, 0), (17, 0.000, 0.00), (18, 99999999999999999.99, 1e37), (18, -99999999999999999.99, -1e37);
-- more digits than are declared, with the scale that is
INSERT INTO kinds VALUES (19, 12345678901234567.89, 12345678901234567890123456789012.3456), (19, 2305843009213693952.00, 5316911983139663491615228241121378.3040), (19, 23058430092136939.51, -5316911983139663491615228241121378.3039),
	(20, 9223372036854775807.00, 170141183460469231731687303715884105.7270), (20, -9223372036854775808.00, -170141183460469231731687303715884105.7280), (20, 92233720368547758.07, 17014118346046923173168730371588410.5727), (21, 92233720368547758.07, 1), (21, 'NaN', 'NaN'), (22, -92233720368547758.08, 1), (22, 92233720368547758.07, 2), (22, 1.25, 3);
INSERT INTO kinds SELECT 30 + i % 300, CASE WHEN i % 7 = 0 THEN i / 8.0 ELSE round(i / 8.0, 2) END, CASE WHEN i % 11 = 0 THEN i / 3.0 ELSE round(i / 3.0, 4) END FROM generate_series(1, 3000) i;
CREATE TABLE odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(g, 'group ' || g, repeat('long ', 5) || g, n, w) FROM kinds)) q(k int, t text, l text, n numeric(10,2), w numeric(30,4));
ANALYZE odd;

-- Each aggregate, by itself and with others that share its states.
SELECT a, compare(format('SELECT k, %s FROM odd GROUP BY k', a)), compare(format('SELECT k, %s FROM (SELECT * FROM odd OFFSET 0) x GROUP BY k', a)),
	compare(format('SELECT t, l, %s FROM odd GROUP BY t, l', a))
FROM unnest('{sum(n),avg(n),min(n),max(n),count(n),variance(n),var_pop(n),stddev(n),stddev_pop(n),sum(w),avg(w),count(w),"sum(n),count(*),count(n),avg(n),max(n),min(n),stddev_samp(n),var_samp(n),sum(w),avg(w),min(k)"}'::text[]) a;
SELECT compare('SELECT sum(n), avg(n), min(n), max(n), count(n), variance(n), sum(w) FROM odd WHERE k < 5'), compare('SELECT sum(n), avg(n), min(n), max(n), count(n), variance(n), sum(w) FROM odd');

-- Expressions: their result may have another scale, or more digits, or the scale that is known again.
SELECT e, compare(format('SELECT k, sum(%1$s), avg(%1$s), count(%1$s), count(*) FROM odd GROUP BY k', e)), compare(format('SELECT t, sum(%1$s), avg(%1$s), count(%1$s), count(*) FROM (SELECT * FROM odd OFFSET 0) x GROUP BY t', e))
FROM unnest('{n * 2,n * (1 - n),-n,n + 1,n - 0.001,n * n * n,w * n,w * n * 2.5,w + n,abs(n),CASE WHEN k % 2 = 0 THEN n ELSE 0.00 END,"coalesce(n, 0.00)",CASE WHEN n > 5 THEN n END}'::text[]) e;
SELECT compare('SELECT k, min(n * 2), max(-n), stddev(n + 1.5), variance(n * 2) FROM odd WHERE k <> 20 GROUP BY k');

-- FILTER: by a column of its own, and within the argument
SELECT compare('SELECT k, sum(n) FILTER (WHERE k % 2 = 0), sum(n) FILTER (WHERE n > 1.2), count(n) FILTER (WHERE n < 3), avg(n) FILTER (WHERE w > 5), sum(n), min(n) FILTER (WHERE n <> 0), max(n) FILTER (WHERE false), sum(n * 2) FILTER (WHERE n > 3.333) FROM odd GROUP BY k'),
	compare('SELECT k, variance(n) FILTER (WHERE n < 20), count(n) FILTER (WHERE w IS NULL), avg(w * n) FILTER (WHERE n > 2 AND w > 1.23456789) FROM odd GROUP BY k');

-- WHERE: an odd value that it looks at, or excludes
SELECT op, compare(format('SELECT k, sum(n), count(*) FROM odd WHERE n %s 1.12345 GROUP BY k', op)), compare(format('SELECT k, sum(w), count(*) FROM odd WHERE 2.5 %s n GROUP BY k', op)), compare(format('SELECT k, sum(n) FROM odd WHERE n * n %s w GROUP BY k', op)),
	compare(format('SELECT k, count(*) FROM odd WHERE n %s ''Infinity'' GROUP BY k', op))
FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op;
SELECT compare('SELECT k, sum(n), sum(w) FROM odd WHERE k = 0 GROUP BY k'), compare('SELECT k, sum(n) FROM odd WHERE n IN (1.25, 2.5, 5) GROUP BY k'), compare('SELECT k, sum(n) FROM odd WHERE n IS NULL OR n < 0 GROUP BY k');

-- Core evaluates a page of which a row is odd; others are read as ever.
SELECT analyze_json('SELECT k, sum(n), sum(w) FROM odd WHERE n > 1.2 GROUP BY k') ->> 'Feed';
-- and says how many odd values there were: those of both arguments
SELECT j ->> 'Nonconforming Values', (j ->> 'Nonconforming Memory')::int > 0 FROM analyze_json('SELECT k, sum(n), avg(n), sum(w) FROM odd WHERE k < 6 GROUP BY k') j;
SELECT j ->> 'Nonconforming Values', j ->> 'Nonconforming Memory' FROM analyze_json('SELECT k, sum(n), sum(w) FROM odd WHERE k = 0 GROUP BY k') j;
-- A least or greatest odd value is kept, and rows that may equal it come to be compared, one by one, only where min() or max() asks for
-- it: sum() and variance() have a maximum, too, which tells NaN, and so every row of such a table went that way.
CREATE TABLE same AS SELECT * FROM unnest(ARRAY(SELECT ROW(i % 3, CASE WHEN i < 10 THEN 2 ELSE 2.00 END) FROM generate_series(1, 5000) i)) q(k int, n numeric(10,2));
ANALYZE same;
SELECT a, j ->> 'Nonconforming Values' AS odd, (j ->> 'Values Compared')::int > 1000 AS compared, compare(format('SELECT k, %s FROM same GROUP BY k', a))
FROM unnest('{sum(n),avg(n),variance(n),count(n),min(n),max(n),"sum(n), max(n)"}'::text[]) a, analyze_json(format('SELECT k, %s FROM same GROUP BY k', a)) j;
SELECT (j ->> 'Values Compared')::int > 1000 AS compared FROM analyze_json('SELECT k, count(DISTINCT n), sum(n) FROM same GROUP BY ROLLUP (k)') j;
DROP TABLE same;

-- Toasted ones, here compressed, have a plain copy each time that one is looked at.  Copies were kept until the end of the query, some 30 MB
-- of these rows; now all that the session has is a few MB.
CREATE TABLE toasted AS SELECT * FROM unnest(ARRAY(SELECT ROW(i % 3, repeat('1', 6000)::numeric) FROM generate_series(1, 8000) i)) q(k int, n numeric(10,2));
ANALYZE toasted;
SELECT max(pg_column_size(n)) < 200 AS compressed FROM toasted;
CREATE FUNCTION gpurhh_test.peak(grouping_query text) RETURNS text LANGUAGE plpgsql SET enable_gpu_hashagg = on AS $f$
DECLARE
	bytes numeric;
BEGIN
	-- while the query has all its memory: a row of it has been made
	EXECUTE format('SELECT max((SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE s IS NOT NULL)) FROM (%s OFFSET 0) x', grouping_query) INTO bytes;
	RETURN CASE WHEN bytes < 15e6 THEN 'little' ELSE pg_size_pretty(bytes) END;
END $f$;
SELECT q, analyze_json(q) ->> 'Rows Fed' AS fed, gpurhh_test.peak(q)
FROM unnest(ARRAY['SELECT k, sum(n) AS s FROM toasted GROUP BY k', 'SELECT k, sum(n) AS s FROM (SELECT * FROM toasted OFFSET 0) y GROUP BY k', 'SELECT k, count(*) AS s FROM toasted WHERE n > 1.5 GROUP BY k',
	'SELECT k, sum(n * 2) AS s FROM toasted GROUP BY k', 'SELECT n, count(*) AS s FROM toasted GROUP BY n', 'SELECT n, count(*) AS s FROM (SELECT * FROM toasted OFFSET 0) y GROUP BY n']) q;
SELECT compare('SELECT k, sum(n), avg(n), min(n) FROM toasted GROUP BY k'), compare('SELECT n, count(*) FROM toasted GROUP BY n');
DROP FUNCTION gpurhh_test.peak(text);
DROP TABLE toasted;

-- Row security excludes the odd rows.
CREATE TABLE guarded AS SELECT * FROM odd WHERE k < 5;
GRANT USAGE ON SCHEMA gpurhh_test TO PUBLIC;
GRANT SELECT ON guarded TO PUBLIC;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON guarded USING (k = 0 OR n = 3.03);
CREATE ROLE gpurhh_reader;
SET ROLE gpurhh_reader;
SELECT compare('SELECT k, sum(n), min(n), sum(w) FROM guarded GROUP BY k'), compare('SELECT k, sum(n) FROM guarded WHERE n > 2 GROUP BY k');
RESET ROLE;
DROP TABLE guarded;
DROP ROLE gpurhh_reader;

-- HAVING, by what it can be computed from a window of groups, and what not
SELECT compare('SELECT k, sum(n) FROM odd GROUP BY k HAVING count(n) > 8'), compare('SELECT k, sum(n) FROM odd GROUP BY k HAVING count(n) = 1'), compare('SELECT k, sum(n) FROM odd GROUP BY k HAVING sum(n) IS NULL'), compare('SELECT k FROM odd GROUP BY k HAVING sum(n) > 10.5'),
	compare('SELECT k FROM odd GROUP BY k HAVING variance(n) IS NOT NULL AND count(*) > 2'), compare('SELECT k FROM odd GROUP BY k HAVING max(n) = ''Infinity'' OR min(n) < 0');

-- GROUPING SETS, DISTINCT and minima of strings: further levels, made wherever they are
SELECT compare('SELECT k, t, sum(n), avg(n), min(n), max(n), count(n), variance(n), sum(w) FROM odd GROUP BY GROUPING SETS ((k, t), (t), ())'), compare('SELECT k % 7, l, sum(n), avg(w), count(n) FROM odd GROUP BY ROLLUP (k % 7, l)'),
	compare('SELECT k % 3, t, l, sum(n), GROUPING(t) FROM odd GROUP BY CUBE (k % 3, t, l)'), compare('SELECT t, k, sum(n), stddev(n) FROM odd GROUP BY GROUPING SETS ((t), (k))');
SELECT compare('SELECT k, count(DISTINCT t), sum(n), avg(w) FROM odd GROUP BY k'), compare('SELECT k % 10, count(DISTINCT t), count(DISTINCT k), sum(n), variance(n) FROM odd GROUP BY ROLLUP (k % 10)'), compare('SELECT count(DISTINCT k), sum(n), min(n) FROM odd'),
	compare('SELECT k % 10, min(l), max(t), sum(n), avg(n), count(n) FROM odd GROUP BY k % 10'), compare('SELECT k % 10, min(l), sum(w) FROM odd GROUP BY GROUPING SETS ((k % 10), ())');

-- A column that the grouping columns determine
CREATE TABLE determined AS SELECT * FROM unnest(ARRAY[ROW(1, 1.234::numeric), ROW(2, 1.25), ROW(3, 'Infinity'::numeric), ROW(4, NULL::numeric), ROW(5, 2::numeric), ROW(6, 1e30)]) q(id int, n numeric(10,2));
ALTER TABLE determined ADD PRIMARY KEY (id);
SELECT compare('SELECT id, n, count(*), sum(n) FROM determined GROUP BY id'), compare('SELECT d.id, n, count(*), max(n) FROM determined d JOIN generate_series(1, 3) ON true GROUP BY d.id');

-- Of equal values the last, whichever it is: in groups 0 to 3 the odd ones come first, last, in between, and alone
CREATE TABLE equals AS SELECT * FROM unnest(ARRAY(SELECT ROW(k, 'string ' || k, CASE WHEN odd THEN trim_scale(n) ELSE n END, n * 3) FROM
	(SELECT i % 4 AS k, i, CASE WHEN i < 2000 THEN (i % 7) * 0.50 ELSE (i / 4 % 7) * 0.50 END AS n,
		CASE i % 4 WHEN 0 THEN i < 1200 WHEN 1 THEN i >= 2800 WHEN 2 THEN i BETWEEN 1000 AND 3000 ELSE true END AS odd FROM generate_series(0, 3999) i) x ORDER BY i)) q(k int, t text, n numeric(10,2), w numeric(10,2));
ANALYZE equals;
SET enable_sort = off;
SELECT w, f, compare(format('SELECT k, min(n), max(n), sum(n), min(n) FILTER (WHERE w > 2), max(n) FILTER (WHERE w < 7) FROM %s %s GROUP BY k', f, w)), compare(format('SELECT t, max(n), min(n), min(n * 2), max(-n) FROM %s %s GROUP BY t', f, w)),
	compare(format('SELECT min(n), max(n), count(n) FROM %s %s', f, w)), compare(format('SELECT k, t, min(n), max(n) FROM %s %s GROUP BY GROUPING SETS ((k), (t), (k, t))', f, w))
FROM unnest('{"",WHERE n > 0.5,WHERE w < 9}'::text[]) w, unnest('{equals,(SELECT * FROM equals OFFSET 0) x}'::text[]) f;
RESET enable_sort;

-- Where the device does not take everything: a probe cap of 1, little memory, small batches; no room for strings, so that rows are deferred
SELECT s, compare('SELECT k, sum(n), avg(n), min(n), count(n), variance(n), sum(w) FROM odd GROUP BY k', settings => s), compare('SELECT t, l, sum(n), avg(w), max(n) FROM odd GROUP BY t, l', settings => s),
	compare('SELECT k % 100, l, sum(n), sum(w * n), count(n) FROM odd GROUP BY ROLLUP (k % 100, l)', settings => s), compare('SELECT k % 100, count(DISTINCT l), sum(n), min(l) FROM odd GROUP BY k % 100', settings => s, nodes => 0)
FROM unnest(ARRAY['gpurhh.max_probe_buckets=1', 'gpurhh.device_memory=1MB, work_mem=64kB, hash_mem_multiplier=1', 'gpurhh.batch_rows=64', 'gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1, gpurhh.batch_rows=64, work_mem=64kB, hash_mem_multiplier=1']) s;
CREATE TABLE many AS SELECT * FROM unnest(ARRAY(SELECT ROW(g, g % 5, 'a string that is a long one ' || g % 6000, CASE WHEN g % 5 = 0 THEN g / 8.0 ELSE g * 0.01 END) FROM generate_series(1, 12000) g)) q(k int, g int, l text, n numeric(10,2));
ANALYZE many;
-- the planner must not see that the strings are many
ALTER TABLE many ALTER l SET (n_distinct = 100);
ANALYZE many;
SELECT (analyze_json('SELECT l, sum(n), avg(n), max(n) FROM many GROUP BY l', 'work_mem=64kB, hash_mem_multiplier=1') ->> 'Passes')::int > 0;
SELECT compare('SELECT l, sum(n), avg(n), max(n), count(n), variance(n) FROM many GROUP BY l', settings => 'work_mem=64kB, hash_mem_multiplier=1'), compare('SELECT l, k % 2, sum(n), avg(n) FROM many GROUP BY ROLLUP (l, k % 2)', settings => 'work_mem=64kB, hash_mem_multiplier=1'),
	compare('SELECT g, min(l), max(l), sum(n) FROM many GROUP BY g', settings => 'work_mem=64kB, hash_mem_multiplier=1'), compare('SELECT l, count(DISTINCT k), sum(n) FROM many GROUP BY l', settings => 'work_mem=64kB, hash_mem_multiplier=1');

-- Parallel plans: whose rows they are, and who returns the groups
ALTER TABLE odd SET (parallel_workers = 3);
ALTER TABLE many SET (parallel_workers = 3);
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT s, compare('SELECT k, sum(n), avg(n), min(n), max(n), count(n), variance(n), sum(w) FROM odd GROUP BY k', settings => s), compare('SELECT l, sum(n), avg(w) FROM odd GROUP BY l ORDER BY l', settings => s),
	compare('SELECT t, k, sum(n), count(n) FROM odd GROUP BY CUBE (t, k)', settings => s), compare('SELECT l, sum(n), avg(n), max(n) FROM many GROUP BY l', settings => s || ', work_mem=64kB, hash_mem_multiplier=1'),
	compare('SELECT sum(s), count(*) FROM (SELECT l, sum(n) AS s FROM many GROUP BY l) x', settings => s), compare('SELECT k % 10, count(DISTINCT t), sum(n) FROM odd GROUP BY k % 10', settings => s)
FROM unnest(ARRAY['parallel_leader_participation=on', 'parallel_leader_participation=off', 'gpurhh.max_probe_buckets=1', 'gpurhh.batch_rows=64']) s;
CREATE FUNCTION plans_gather(query text) RETURNS bool LANGUAGE sql AS $f$ SELECT bool_or(line LIKE '%Gather%') FROM explained(query) line $f$;
SELECT plans_gather('SELECT k, sum(n) FROM odd GROUP BY k');
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;

-- Rescans: each run has its own
SELECT compare('SELECT x, (SELECT string_agg(s::text, '','' ORDER BY k) FROM (SELECT k, sum(n) AS s FROM odd WHERE k < x GROUP BY k OFFSET 0) y) FROM generate_series(0, 12, 3) x');

-- Fields of record variables: the plan has the modifiers of the first table's columns.
CREATE TABLE two_digits (n numeric(10,2), a numeric(10,2)[]);
CREATE TABLE five_digits (n numeric(10,5), a numeric(10,5)[]);
INSERT INTO two_digits VALUES (1.25, '{1.25,2.50}');
INSERT INTO five_digits VALUES (1.12345, '{1.12345,2}');
CREATE FUNCTION make_through(setting text, mode text) RETURNS void LANGUAGE plpgsql AS $m$
BEGIN
	EXECUTE format($f$
		CREATE FUNCTION through_%1$s_%2$s(q text) RETURNS text LANGUAGE plpgsql SET enable_gpu_hashagg = %1$s SET plan_cache_mode = force_%2$s_plan AS $b$
		DECLARE
			r record;
			result text := '';
			one text;
		BEGIN
			FOR i IN 1..4 LOOP
				IF i %% 2 = 1 THEN
					SELECT * INTO r FROM two_digits;
				ELSE
					SELECT * INTO r FROM five_digits;
				END IF;
				CASE q
					WHEN 'sum' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, sum(r.n) + max(r.n) AS s FROM odd WHERE k < 5 GROUP BY k) x;
					WHEN 'where' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, sum(n) AS s FROM odd WHERE n > r.n AND k < 5 GROUP BY k) x;
					WHEN 'expression' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, sum(n * (r.n + 1)) AS s FROM odd WHERE k < 5 GROUP BY k) x;
					WHEN 'element' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, sum(n - r.a[1]) + max(r.a[2]) AS s FROM odd WHERE k < 5 GROUP BY k) x;
					WHEN 'case' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, sum(CASE WHEN k > 1 THEN r.n ELSE 0.25::numeric(10,2) END) + max(coalesce(n, r.n)) AS s FROM odd WHERE k < 5 GROUP BY k) x;
					WHEN 'case in where' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, sum(n) AS s FROM odd WHERE k = 0 AND CASE WHEN n > 3 THEN r.n ELSE 0.25::numeric(10,2) END < 2.5 GROUP BY k) x;
					WHEN 'union' THEN SELECT string_agg(format('%%s %%s', k, s), ', ' ORDER BY k) INTO one FROM (SELECT k, avg(n) AS s FROM (SELECT 1 AS k, r.n AS n UNION ALL SELECT k, n FROM odd WHERE k < 5) y GROUP BY k) x;
				END CASE;
				result := result || one || E'\n';
			END LOOP;
			RETURN result;
		END $b$ $f$, setting, mode);
END $m$;
SELECT count(make_through(setting, mode)) FROM unnest('{on,off}'::text[]) setting, unnest('{generic,custom}'::text[]) mode;
SELECT q, length(through_off_generic(q)), through_on_generic(q) = through_off_generic(q), through_on_custom(q) = through_off_custom(q) FROM unnest('{sum,where,expression,element,case,case in where,union}'::text[]) q;
-- a parameter of more digits than are declared
CREATE TABLE many_digits (n numeric(10,2));
INSERT INTO many_digits VALUES (1.00);
DO $d$
DECLARE
	r record;
	found bigint;
BEGIN
	SET LOCAL enable_gpu_hashagg = on;
	SET LOCAL plan_cache_mode = force_generic_plan;
	FOR i IN 1..2 LOOP
		IF i = 1 THEN
			SELECT * INTO r FROM many_digits;
		ELSE
			SELECT * INTO r FROM (SELECT 184467440737095516.16 + 1 AS n) x;
		END IF;
		SELECT count(*) INTO found FROM (SELECT k, sum(odd.n) FROM odd WHERE odd.n < r.n AND k = 0 GROUP BY k) x;
		RAISE NOTICE '% groups below %', found, r.n;
	END LOOP;
END $d$;
