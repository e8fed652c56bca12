--
-- Keys that do not have the length or scale that is declared for them.  Core checks
-- a type modifier where a value is assigned or cast, and nowhere else: column
-- definition lists and records' fields, and so tables, may have other values.  What
-- is shown has to be what a row of the group had.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- ---------- char(n) ----------

-- c and l: equal values have the same blanks; by k, odd or not.  m: equal values have
-- different ones in rows of different k2, or even of one.
CREATE TABLE odd_chars AS
SELECT * FROM unnest(ARRAY(
	SELECT ROW(g % 7, g % 3, g,
			   (ARRAY['ab', 'cd  ', 'efghij', 'ä', 'äé  ', '', 'x     ', NULL])[1 + g % 8]::bpchar,
			   CASE WHEN g % 4 > 0 THEN rpad('a string that is too long for a key ' || g % 11, 38 + g % 11 % 4, ' ') ELSE 'short ' || g % 5 END::bpchar,
			   (CASE WHEN g % 2 = 0 THEN 'yes' ELSE 'a word that is too long, too' END || repeat(' ', g % 3))::bpchar,
			   (CASE WHEN g % 2 = 0 THEN 'yes' ELSE 'a word that is too long, too' END || repeat(' ', g % 5))::bpchar)
	FROM generate_series(1, 3000) g)) q(k int, k2 int, v int, c char(4), l char(40), m char(30), n char(30));
ANALYZE odd_chars;
-- the same where every value conforms, and where only the last one does not
CREATE TABLE some_chars AS SELECT k, k2, v, c::char(6) AS c, l::char(40) AS l FROM odd_chars WHERE v < 2500;
INSERT INTO some_chars SELECT q.* FROM unnest(ARRAY[ROW(1, 1, 2600, 'ab'::bpchar, 'last'::bpchar)]) q(k int, k2 int, v int, c char(6), l char(40));
SELECT count(*) FROM some_chars WHERE octet_length(c) < 6;
UPDATE some_chars SET k = 100 WHERE octet_length(c) = 2;
ANALYZE some_chars;

CREATE TABLE determining (id int PRIMARY KEY, c char(4), l char(40));
INSERT INTO determining SELECT v, c, l FROM odd_chars WHERE char_length(c) <= 4 OR c IS NULL;

SELECT c, octet_length(c), count(*) FROM odd_chars WHERE k = 1 GROUP BY c ORDER BY c;
SET enable_gpu_hashagg = on;
SELECT c, octet_length(c), count(*) FROM odd_chars WHERE k = 1 GROUP BY c ORDER BY c;
RESET enable_gpu_hashagg;
SELECT compare('SELECT c, octet_length(c), count(*), sum(v) FROM odd_chars GROUP BY c');
SELECT compare('SELECT l, octet_length(l), count(*), sum(v) FROM odd_chars GROUP BY l');
SELECT compare('SELECT k, c, l, count(*) FROM odd_chars GROUP BY k, c, l');
SELECT compare('SELECT k, c, l, count(*) FROM some_chars GROUP BY k, c, l');
SELECT compare('SELECT c, count(*) FROM some_chars WHERE k = 100 GROUP BY c');
SELECT compare('SELECT DISTINCT c, l FROM odd_chars');
SELECT compare('SELECT c FROM odd_chars UNION SELECT c FROM determining WHERE id < 10');
-- equal values with different blanks are one group, which shows one of them
SELECT compare('SELECT m::text, count(*), sum(v) FROM odd_chars GROUP BY m');
SELECT compare('SELECT m, octet_length(m), k2, count(*) FROM odd_chars GROUP BY m, k2');
SELECT compare('SELECT n::text, octet_length(n) BETWEEN 3 AND 32, k2, m, count(*) FROM odd_chars GROUP BY n, k2, m');
SELECT compare('SELECT c::text, count(*) FROM some_chars GROUP BY c');
SELECT compare('SELECT m::text, count(*) FROM odd_chars GROUP BY m HAVING count(*) > 1 AND m <> ''x''');
SELECT compare('SELECT count(*), sum(n) FROM (SELECT n, count(*) FROM odd_chars GROUP BY n) q(c, n)');
-- expressions: by rows, and by pages
SELECT compare('SELECT CASE WHEN k > 3 THEN m ELSE n END::text, k, count(*) FROM odd_chars GROUP BY CASE WHEN k > 3 THEN m ELSE n END, k');
SELECT compare('SELECT c, count(*) FROM (SELECT c FROM odd_chars OFFSET 0) q GROUP BY c');
-- minima and maxima
SELECT compare('SELECT k, min(c COLLATE "C"), max(l COLLATE "C"), count(*) FROM odd_chars GROUP BY k');
SELECT compare('SELECT min(c COLLATE "C"), octet_length(max(c COLLATE "C")), max(l COLLATE "C") FROM odd_chars');
SELECT compare('SELECT k, min(c COLLATE "C"), max(l COLLATE "C") FROM some_chars GROUP BY k');
SELECT compare('SELECT c, min(l COLLATE "C"), max(l COLLATE "C") FROM odd_chars GROUP BY c', settings => 'gpurhh.batch_rows=64');
SELECT compare('SELECT k, max(n COLLATE "C")::text FROM odd_chars GROUP BY k');
-- further levels
SELECT compare('SELECT k, count(DISTINCT c), count(DISTINCT l) FROM odd_chars GROUP BY k');
SELECT compare('SELECT count(DISTINCT n), count(DISTINCT m), count(*) FROM odd_chars');
SELECT compare('SELECT k2, count(DISTINCT n), sum(v) FROM odd_chars GROUP BY k2');
SELECT compare('SELECT k, c, l, count(*), sum(v) FROM odd_chars GROUP BY CUBE (k, c, l)');
SELECT compare('SELECT n::text, k2, m::text, count(*), grouping(n, m) FROM odd_chars GROUP BY CUBE (n, k2, m)');
SELECT compare('SELECT c, k, count(DISTINCT n), count(DISTINCT m), sum(v) FROM odd_chars GROUP BY ROLLUP (c, k)');
-- columns that the keys determine
SELECT compare('SELECT id, c, l, count(*) FROM determining GROUP BY id');
SELECT compare('SELECT id, o.c, o.l, count(*) FROM determining d JOIN odd_chars o ON o.v = id GROUP BY id, o.c, o.l');
-- rows that devices refuse, little memory, deferred strings
SELECT compare('SELECT k, c, l, v % 5, count(*) FROM odd_chars GROUP BY k, c, l, v % 5', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT k, l, v, count(*) FROM odd_chars GROUP BY k, l, v', settings => 'work_mem=64kB');
CREATE TABLE many_odd AS
SELECT * FROM unnest(ARRAY(
	SELECT ROW(g % 4000, (md5((g % 4000)::text) || repeat(' ', g % 4000 % 9))::bpchar, (md5((g % 4000)::text) || repeat(' ', g % 9))::bpchar)
	FROM generate_series(1, 9000) g)) q(k int, c char(36), m char(36));
ANALYZE many_odd;
SELECT compare('SELECT c, count(*), sum(k) FROM many_odd GROUP BY c', settings => 'work_mem=64kB');
SELECT compare('SELECT m::text, count(*), sum(k) FROM many_odd GROUP BY m', settings => 'work_mem=64kB');
SELECT compare('SELECT m::text, c, count(*) FROM many_odd GROUP BY GROUPING SETS ((m, c), (m), (c))', settings => 'work_mem=256kB');
SELECT compare('SELECT k % 10, count(DISTINCT m), count(DISTINCT c) FROM many_odd GROUP BY k % 10', settings => 'work_mem=1MB');
SELECT (analyze_json('SELECT m::text, count(*) FROM many_odd GROUP BY m', 'work_mem=64kB') ->> 'Deferred Rows')::int > 0 AS deferred;
-- the planner thinks that there are few values
CREATE TABLE unknown_odd (k int, c char(36), m char(36)) WITH (autovacuum_enabled = off);
INSERT INTO unknown_odd SELECT k, c, m FROM many_odd ORDER BY m DESC;
SELECT compare('SELECT k, min(c COLLATE "C"), max(c COLLATE "C"), min(m COLLATE "C")::text FROM unknown_odd GROUP BY k', settings => 'work_mem=256kB, hash_mem_multiplier=1');
SELECT compare('SELECT k, min(c COLLATE "C"), max(c COLLATE "C"), min(m COLLATE "C")::text FROM unknown_odd GROUP BY k', settings => 'work_mem=256kB, hash_mem_multiplier=1, gpurhh.batch_rows=64');
SELECT (analyze_json('SELECT k, min(c COLLATE "C"), max(c COLLATE "C") FROM unknown_odd GROUP BY k', 'work_mem=256kB, hash_mem_multiplier=1') ->> 'Spilled Records')::int > 0 AS spilled;
-- toasted
CREATE TABLE toasted AS SELECT q.* FROM unnest(ARRAY(
	SELECT ROW(g, (repeat(md5((g % 6)::text), 3000 * (1 + g % 2)) || repeat(' ', g % 3))::bpchar) FROM generate_series(1, 30) g)) q(k int, c char(96000));
SELECT compare('SELECT md5(c::text), octet_length(c), count(*) FROM toasted GROUP BY c, k % 3');
SELECT compare('SELECT md5(max(c COLLATE "C")::text), octet_length(min(c COLLATE "C")), k % 6 FROM toasted GROUP BY k % 6');
-- records
CREATE FUNCTION by_record(value bpchar) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	rec record;
	result text := '';
BEGIN
	SELECT c, ARRAY[c] AS arr INTO rec FROM (VALUES (NULL::char(4))) q(c);
	FOR i IN 1..8 LOOP
		IF i = 4 THEN
			SELECT value AS c, ARRAY[value] AS arr INTO rec;
		END IF;
		result := (SELECT format('[%s] %s, ', (q)::text, octet_length(c)) FROM (SELECT rec.c, count(*) FROM generate_series(1, 3) GROUP BY rec.c) q) ||
			(SELECT format('%s, ', octet_length(max(c COLLATE "C"))) FROM (SELECT rec.c FROM generate_series(1, 3)) q) ||
			(SELECT format('%s', octet_length(c)) FROM (SELECT DISTINCT rec.arr[1] AS c FROM generate_series(1, 3)) q);
	END LOOP;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $f$;
SELECT by_record('ab');
SET enable_gpu_hashagg = on;
SELECT by_record('ab');
RESET enable_gpu_hashagg;
-- parallel plans: where all emit, and where the leader does
\set parallel 'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=3'
SELECT compare('SELECT c, l, octet_length(c), count(*) FROM odd_chars GROUP BY c, l', settings => :'parallel');
SELECT compare('SELECT n::text, k2, count(*), sum(v) FROM odd_chars GROUP BY n, k2', settings => :'parallel');
SELECT compare('SELECT count(*), sum(q.n) FROM (SELECT m::text AS c, count(*) AS n FROM odd_chars GROUP BY m) q', settings => :'parallel');
SELECT compare('SELECT m::text, count(*), sum(k) FROM many_odd GROUP BY m', settings => :'parallel' || ', work_mem=64kB');
SELECT compare('SELECT m::text, c, count(*) FROM many_odd GROUP BY GROUPING SETS ((m, c), (m), (c))', settings => :'parallel' || ', work_mem=256kB');
SELECT compare('SELECT k, min(c COLLATE "C"), max(c COLLATE "C"), min(m COLLATE "C")::text FROM unknown_odd GROUP BY k', settings => :'parallel' || ', work_mem=256kB, hash_mem_multiplier=1');
SELECT compare('SELECT k, c, count(*) FROM odd_chars GROUP BY k, c', settings => :'parallel' || ', parallel_leader_participation=off');
SELECT compare('SELECT k, c, l, count(*) FROM some_chars GROUP BY k, c, l', settings => :'parallel');

-- ---------- numeric ----------

-- n: equal values have the same digits; m: they have not.  w has values that no word
-- holds, and e is regular.
CREATE TABLE odd_numerics AS
SELECT * FROM unnest(ARRAY(
	SELECT ROW(g % 7, g % 3, g,
			   (ARRAY[1.2345, 1.2, 1.20, 'NaN', 'Infinity', '-Infinity', 100, -3.50, NULL, 12345678901234567890.12, 0, -0.000001, 1e100])[1 + g % 13],
			   (ARRAY[1.5, 1.50, 1.500, 7, 7.00])[1 + g % 5],
			   (ARRAY[1e30, 1e30 + 0.5, -1e20, 1.10, 'Infinity', 1e-30, 5000000000000000.00])[1 + g % 7],
			   round(g % 10 / 4.0, 2))
	FROM generate_series(1, 3000) g)) q(k int, k2 int, v int, n numeric(10,2), m numeric(10,2), w numeric(18,3), e numeric(10,2));
DELETE FROM odd_numerics WHERE n = 1.2 AND scale(n) = 2;
ANALYZE odd_numerics;
-- only the last row is odd
CREATE TABLE some_numerics AS SELECT k, k2, v, e AS n FROM odd_numerics;
INSERT INTO some_numerics SELECT q.* FROM unnest(ARRAY[ROW(100, 1, 2600, 0.5)]) q(k int, k2 int, v int, n numeric(10,2));
ANALYZE some_numerics;

SELECT compare('SELECT n, count(*), sum(v) FROM odd_numerics GROUP BY n');
SELECT compare('SELECT w, k2, count(*), sum(v) FROM odd_numerics GROUP BY w, k2');
SELECT compare('SELECT n, e, k, count(*) FROM odd_numerics GROUP BY n, e, k');
SELECT compare('SELECT k, n, count(*) FROM some_numerics GROUP BY k, n');
SELECT compare('SELECT n::float8, count(*), sum(v) FROM some_numerics GROUP BY n');
SELECT compare('SELECT m::float8, scale(m) BETWEEN 0 AND 3, count(*) FROM odd_numerics GROUP BY m');
SELECT compare('SELECT m, v % 5, count(*) FROM odd_numerics GROUP BY m, v % 5');
SELECT compare('SELECT DISTINCT n, w FROM odd_numerics');
SELECT compare('SELECT n FROM odd_numerics UNION SELECT e + 1000 FROM odd_numerics', nodes => 0);
SELECT compare('SELECT n FROM odd_numerics WHERE v < 2000 UNION SELECT n FROM odd_numerics WHERE v % 2 = 0');
SELECT compare('SELECT n, count(*) FROM odd_numerics WHERE n > 1.2 GROUP BY n HAVING n < 200 OR count(*) < 0');
SELECT compare('SELECT n, count(*) FROM odd_numerics WHERE n < 1e200 AND v > 5 GROUP BY n');
SELECT compare('SELECT n, count(*) FROM (SELECT n FROM odd_numerics OFFSET 0) q GROUP BY n');
-- expressions: of odd operands they are odd; and what is beyond a key
SELECT compare('SELECT n + 1.00, count(*) FROM odd_numerics GROUP BY 1');
SELECT compare('SELECT n - e, -n, count(*) FROM odd_numerics GROUP BY n - e, -n');
SELECT compare('SELECT CASE WHEN k > 2 THEN n ELSE e END, k, count(*) FROM odd_numerics GROUP BY 1, 2');
SELECT compare('SELECT coalesce(n, e) AS c, abs(n), count(*) FROM odd_numerics GROUP BY 1, 2');
CREATE TABLE long_numerics AS
SELECT q.* FROM unnest(ARRAY(SELECT ROW(g, (g % 50) * 100000000.) FROM generate_series(1, 200) g)) q(k int, n numeric(9,0));
SELECT compare('SELECT n * n, count(*) FROM long_numerics GROUP BY 1');
SELECT compare('SELECT n, count(*) FROM long_numerics GROUP BY 1');
-- a key that is an argument too
SELECT compare('SELECT n, count(n), sum(n), avg(n), min(n), max(n) FROM odd_numerics GROUP BY n');
SELECT compare('SELECT n, sum(w), max(e) FROM odd_numerics GROUP BY n');
SELECT compare('SELECT m::float8, sum(m) FROM odd_numerics GROUP BY m');
-- further levels
SELECT compare('SELECT k, count(DISTINCT n), count(DISTINCT m), count(DISTINCT w) FROM odd_numerics GROUP BY k');
SELECT compare('SELECT count(DISTINCT m), count(*) FROM odd_numerics');
SELECT compare('SELECT k, sum(DISTINCT n), avg(DISTINCT n), count(DISTINCT n), sum(v) FROM odd_numerics WHERE n < ''Infinity'' GROUP BY k');
SELECT compare('SELECT sum(DISTINCT n), avg(DISTINCT n), sum(DISTINCT e) FROM odd_numerics');
SELECT compare('SELECT k, sum(DISTINCT m)::float8, sum(DISTINCT e), sum(DISTINCT n) FILTER (WHERE n <> ''NaN'' AND n < 1000) FROM odd_numerics GROUP BY k');
SELECT compare('SELECT k, k2, sum(DISTINCT n), count(DISTINCT m), sum(w) FROM odd_numerics GROUP BY CUBE (k, k2)');
SELECT compare('SELECT n, w, e, count(*), sum(v), grouping(n, w, e) FROM odd_numerics GROUP BY CUBE (n, w, e)');
SELECT compare('SELECT n, k, sum(DISTINCT w) FROM odd_numerics GROUP BY ROLLUP (n, k)');
-- with strings
SELECT compare('SELECT q.n, c, l, count(*) FROM odd_numerics q JOIN odd_chars USING (v) GROUP BY q.n, c, l');
SELECT compare('SELECT q.n, min(c COLLATE "C"), max(l COLLATE "C"), sum(w) FROM odd_numerics q JOIN odd_chars USING (v) GROUP BY q.n');
-- columns that the keys determine
CREATE TABLE determining_n (id int PRIMARY KEY, n numeric(10,2));
INSERT INTO determining_n SELECT v, n FROM odd_numerics WHERE abs(n) < 1000;
SELECT compare('SELECT id, n, count(*) FROM determining_n GROUP BY id');
-- rows that devices refuse, little memory, deferred rows
SELECT compare('SELECT k, n, w, v % 5, count(*) FROM odd_numerics GROUP BY k, n, w, v % 5', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT k, n, v, count(*), sum(n) FROM odd_numerics GROUP BY k, n, v', settings => 'work_mem=64kB, gpurhh.batch_rows=64');
CREATE TABLE many_numerics AS
SELECT * FROM unnest(ARRAY(SELECT ROW(g % 4000, nullif(g % 4000 % 7, 3), (g % 4000 + 0.1234) * 3, round(g % 4000 / 3.0, 3 + g % 5), md5((g % 3000)::text))
						   FROM generate_series(1, 9000) g)) q(k int, o int, n numeric(10,2), m numeric(10,3), t text);
ANALYZE many_numerics;
SELECT compare('SELECT n, o, count(*), sum(k), sum(n) FROM many_numerics GROUP BY n, o', settings => 'work_mem=64kB');
SELECT (analyze_json('SELECT n, o, count(*) FROM many_numerics GROUP BY n, o', 'work_mem=64kB') ->> 'Spilled Records')::int > 0 AS spilled;
SELECT compare('SELECT m::float8, count(*), sum(k) FROM many_numerics GROUP BY m', settings => 'work_mem=64kB');
SELECT compare('SELECT n, o, t, count(*), sum(n) FROM many_numerics GROUP BY n, o, t', settings => 'work_mem=64kB');
SELECT compare('SELECT t, m::float8, o, count(*) FROM many_numerics GROUP BY t, m, o', settings => 'work_mem=64kB, gpurhh.batch_rows=64');
SELECT compare('SELECT k % 10, count(DISTINCT m), sum(DISTINCT n) FROM many_numerics GROUP BY k % 10', settings => 'work_mem=1MB');
-- the error was raised for rows that are excluded
SELECT compare('SELECT n, count(*) FROM odd_numerics WHERE scale(n) = 2 GROUP BY n');
-- records
CREATE FUNCTION by_numeric(value numeric) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	rec record;
	result text := '';
BEGIN
	SELECT n, ARRAY[n] AS arr INTO rec FROM (VALUES (NULL::numeric(10,2))) q(n);
	FOR i IN 1..8 LOOP
		IF i = 4 THEN
			SELECT value AS n, ARRAY[value] AS arr INTO rec;
		END IF;
		result := (SELECT format('%s, ', q) FROM (SELECT rec.n, count(*) FROM generate_series(1, 3) GROUP BY rec.n) q) ||
			(SELECT format('%s, %s, ', count(DISTINCT n), sum(DISTINCT n)) FROM (SELECT rec.n FROM generate_series(1, 3)) q) ||
			(SELECT format('%s', n) FROM (SELECT DISTINCT rec.arr[1] AS n FROM generate_series(1, 3)) q);
	END LOOP;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $f$;
SELECT by_numeric(1.2345);
SET enable_gpu_hashagg = on;
SELECT by_numeric(1.2345);
RESET enable_gpu_hashagg;
-- parallel plans
SELECT compare('SELECT n, w, count(*) FROM odd_numerics GROUP BY n, w', settings => :'parallel');
SELECT compare('SELECT n, sum(n), sum(w), count(*) FROM odd_numerics GROUP BY n', settings => :'parallel' || ', parallel_leader_participation=off');
SELECT compare('SELECT k, n, count(*) FROM some_numerics GROUP BY k, n', settings => :'parallel');
SELECT compare('SELECT count(*), sum(q.c) FROM (SELECT m, count(*) AS c FROM odd_numerics GROUP BY m) q', settings => :'parallel');
SELECT compare('SELECT k, sum(DISTINCT n), count(DISTINCT m), count(*) FROM odd_numerics GROUP BY k', settings => :'parallel');
SELECT compare('SELECT n, o, t, count(*), sum(n) FROM many_numerics GROUP BY n, o, t', settings => :'parallel' || ', work_mem=64kB');
SELECT compare('SELECT m::float8, o, count(*) FROM many_numerics GROUP BY m, o', settings => :'parallel' || ', work_mem=64kB');

-- fields of a record variable, whose plan is kept or made anew: they are parameters or constants
CREATE TABLE five (c char(5), n numeric(8,2));
CREATE TABLE three (c char(3), n numeric(8,4));
INSERT INTO five VALUES ('ab', 1.25);
INSERT INTO three VALUES ('ab', 1.2345);
CREATE FUNCTION key_fields() RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
BEGIN
	FOR i IN 1..4 LOOP
		IF i % 2 = 1 THEN SELECT * INTO r FROM five; ELSE SELECT * INTO r FROM three; END IF;
		RETURN QUERY SELECT format('<%s> %s', q.c, q.n) FROM (SELECT CASE WHEN k > 5 THEN r.n ELSE 0.25::numeric(8,2) END AS c, count(*) AS n FROM odd_numerics GROUP BY 1) q;
		RETURN QUERY SELECT format('<%s> %s', q.c, q.n) FROM (SELECT r.n + e AS c, count(*) AS n FROM odd_numerics GROUP BY 1) q;
		RETURN QUERY SELECT format('<%s> %s', q.c, q.n) FROM (SELECT coalesce(r.n, e) AS c, count(DISTINCT r.n + e) AS n FROM odd_numerics GROUP BY 1) q;
		RETURN QUERY SELECT format('<%s> %s %s', q.c, octet_length(q.c), q.n) FROM (SELECT CASE WHEN k > 3 THEN r.c ELSE 'x'::char(5) END AS c, count(*) AS n FROM odd_numerics GROUP BY 1) q;
	END LOOP;
END $f$;
SET plan_cache_mode = force_generic_plan;
SELECT compare('SELECT * FROM key_fields()', nodes => 0);
SET plan_cache_mode = force_custom_plan;
SELECT compare('SELECT * FROM key_fields()', nodes => 0);
RESET plan_cache_mode;
