--
-- Keys that do not have the length or scale that is declared for them.  Core checks
-- a type modifier where a value is assigned or cast, and nowhere else: column
-- definition lists and records' fields, and so tables, may have other values.  What
-- is shown has to be what a row of the group had.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\set ECHO none
\i :helpers
\set ECHO all

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
