--
-- Cursors: groups that are fetched a few at a time, or never.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

SET enable_gpu_hashagg = on;
SET cursor_tuple_fraction = 1;
CREATE TABLE t AS SELECT g AS id, g % 500 AS k, g % 7 AS k2, g * 37 % 1009 AS v FROM generate_series(1, 5000) g;
CREATE TABLE fetched (k int, c int8, s int8);
ANALYZE t;
-- what all of the groups of the cursors below should be, made natively
SET enable_gpu_hashagg = off;
CREATE TABLE expected AS SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;

-- Fetches n rows and says how many of them are right; they must be different.
CREATE FUNCTION fetched(c refcursor, n int) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
	found_rows int := 0;
	good int;
BEGIN
	TRUNCATE fetched;
	FOR i IN 1 .. n LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		INSERT INTO fetched VALUES (r.k, r.c, r.s);
		found_rows := found_rows + 1;
	END LOOP;
	SELECT count(*) INTO good FROM (TABLE fetched INTERSECT TABLE expected) x;
	RETURN format('%s rows, %s of them right', found_rows, good);
END $f$;

-- in parts, to the end and beyond
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('c', 1);
SELECT fetched('c', 99);
SELECT fetched('c', 300);
SELECT fetched('c', 300);
SELECT fetched('c', 300);
CLOSE c;
COMMIT;

-- closed before anything is fetched, and in the middle; left open at the end
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
CLOSE c;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('c', 10);
CLOSE c;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('c', 10);
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('c', 10);
ROLLBACK;

-- several at once, each where it was, with other queries between them
BEGIN;
DECLARE a CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
DECLARE b CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
DECLARE d CURSOR FOR SELECT k2 AS k, count(*) AS c, sum(v) AS s FROM t GROUP BY k2;
SELECT fetched('a', 200);
SELECT fetched('b', 450);
SELECT fetched('d', 3);
SELECT count(*) FROM (SELECT k2, v, count(*) FROM t GROUP BY k2, v) x;
SELECT fetched('a', 200);
SELECT fetched('d', 100);
CLOSE b;
SELECT fetched('a', 200);
COMMIT;

-- beyond the transaction
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('h', 100);
COMMIT;
SELECT fetched('h', 300);
SELECT fetched('h', 300);
CLOSE h;
DECLARE h CURSOR WITH HOLD FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('h', 1000);
CLOSE h;

-- both ways: the rows are the same ones backwards
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k ORDER BY k;
FETCH 2 FROM s;
FETCH LAST FROM s;
FETCH BACKWARD 2 FROM s;
FETCH ABSOLUTE 3 FROM s;
FETCH PRIOR FROM s;
FETCH FIRST FROM s;
FETCH RELATIVE 100 FROM s;
MOVE FORWARD ALL FROM s;
FETCH FROM s;
FETCH -1 FROM s;
CLOSE s;
-- without a sort, which keeps its rows anyway: something has to keep them
EXPLAIN (COSTS OFF) DECLARE s SCROLL CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
DECLARE s SCROLL CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('s', 400);
MOVE BACKWARD 50 FROM s;
SELECT fetched('s', 20);
MOVE ABSOLUTE 0 FROM s;
SELECT fetched('s', 1000);
COMMIT;
BEGIN;
DECLARE n NO SCROLL CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('n', 5);
FETCH PRIOR FROM n;
ROLLBACK;

-- an error elsewhere, and a subtransaction rolled back, while one is open
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('c', 100);
SAVEPOINT s1;
SELECT k2, sum(v / (k - 499)) FROM t GROUP BY k2;
ROLLBACK TO s1;
SELECT fetched('c', 100);
-- one opened in the subtransaction goes with it
DECLARE d CURSOR FOR SELECT k2 AS k, count(*) AS c, sum(v) AS s FROM t GROUP BY k2;
SELECT fetched('d', 2);
ROLLBACK TO s1;
SELECT fetched('c', 1000);
SELECT fetched('d', 1);
ROLLBACK;
-- one opened before, read for the first time in a subtransaction that fails
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SAVEPOINT s1;
SELECT fetched('c', 100);
ROLLBACK TO s1;
SELECT fetched('c', 100);
COMMIT;
-- one opened in a subtransaction that is released
BEGIN;
SAVEPOINT s1;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM t GROUP BY k;
SELECT fetched('c', 100);
RELEASE s1;
SELECT fetched('c', 1000);
COMMIT;

-- an error in a cursor's own input, at its first row and after some
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(1000 / (id - 4000)) AS s FROM t GROUP BY k;
SAVEPOINT s1;
FETCH c;
ROLLBACK TO s1;
FETCH c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT k, 1 / (k - 77) AS c, sum(v) AS s FROM t WHERE k BETWEEN 70 AND 80 GROUP BY k;
FETCH ALL FROM c;
ROLLBACK;

-- with the host table and its files underneath
SET gpurhh.device_memory = '1MB';
SET gpurhh.max_probe_buckets = 1;
SET work_mem = '64kB';
SET enable_gpu_hashagg = off;
CREATE TABLE large AS SELECT g AS id, g % 30000 AS k, g AS v FROM generate_series(1, 60000) g;
ANALYZE large;
DROP TABLE expected;
CREATE TABLE expected AS SELECT k, count(*) AS c, sum(v) AS s FROM large GROUP BY k;
SET enable_gpu_hashagg = on;
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM large GROUP BY k;
SELECT fetched('c', 100);
SAVEPOINT s1;
SELECT fetched('c', 20000);
ROLLBACK TO s1;
DECLARE d CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM large GROUP BY k;
SELECT fetched('d', 25000);
SELECT fetched('c', 30000);
SELECT fetched('d', 30000);
COMMIT;
-- files made in a subtransaction that is rolled back, read afterwards
BEGIN;
DECLARE c CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM large GROUP BY k;
SAVEPOINT s1;
SELECT fetched('c', 100);
RELEASE s1;
SELECT fetched('c', 30000);
DECLARE d CURSOR FOR SELECT k, count(*) AS c, sum(v) AS s FROM large GROUP BY k;
SAVEPOINT s2;
SELECT fetched('d', 100);
ROLLBACK TO s2;
SELECT count(*) FROM (SELECT k, count(*) FROM large GROUP BY k) x;
COMMIT;
