--
-- Errors and cancels in the middle of the input, of the output, of a rescan:
-- nothing stays behind, and the next query works.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

SET enable_gpu_hashagg = on;
CREATE TABLE t AS SELECT g AS id, g % 997 AS k, g AS v FROM generate_series(1, 50000) g;
ANALYZE t;
\set next 'SELECT k % 7 AS k, count(*), sum(v) FROM t GROUP BY 1 ORDER BY 1 LIMIT 2'
:next;

-- at row 1, in the first batch, at a batch's end, in the last batch, at the last row
SELECT n, sqlstate_of(format('SELECT k, count(*), sum(1 / (id - %s)) FROM t GROUP BY k', n)) FROM unnest('{1,2,1000,32768,49999,50000}'::int[]) n;
:next;
SET gpurhh.batch_rows = 64;
SELECT n, sqlstate_of(format('SELECT k, count(*), sum(1 / (id - %s)) FROM t GROUP BY k', n)) FROM unnest('{1,63,64,65,128,129,25000,50000}'::int[]) n;
:next;
RESET gpurhh.batch_rows;
-- in a key, in a filter, in WHERE, in HAVING, in an output column
SELECT sqlstate_of('SELECT 1 / (id - 777), count(*) FROM t GROUP BY 1');
SELECT sqlstate_of('SELECT k, count(*) FILTER (WHERE 1 / (id - 777) = 0) FROM t GROUP BY k');
SELECT sqlstate_of('SELECT k, count(*) FROM t WHERE 1 / (id - 777) = 0 GROUP BY k');
SELECT sqlstate_of('SELECT k, count(*) FROM t GROUP BY k HAVING 1 / (sum(v) - sum(v)) = 0');
SELECT sqlstate_of('SELECT k, 1 / (max(v) - 49500) FROM t GROUP BY k');
SELECT sqlstate_of('SELECT k, sum(v)::int2 FROM t GROUP BY k');
:next;
-- uncaught, too
SELECT k, sum(1 / (id - 40000)) FROM t GROUP BY k;
:next;

-- many in a row, in subtransactions and out of them: no query is left open
DO $$
DECLARE
	n int := 0;
BEGIN
	FOR i IN 1 .. 300 LOOP
		BEGIN
			PERFORM k, sum(1 / (id - i)) FROM t WHERE id <= i + 70 GROUP BY k;
		EXCEPTION WHEN division_by_zero THEN
			n := n + 1;
		END;
	END LOOP;
	RAISE NOTICE '% errors', n;
END $$;
:next;
-- more at once than the service has room for
DO $$
DECLARE
	n int := 0;
	total int := 0;
	c refcursor;
	r record;
BEGIN
	FOR i IN 1 .. 200 LOOP
		c := NULL;
		OPEN c FOR SELECT k % 3 AS k, count(*) AS n FROM t WHERE id <= 90 + i GROUP BY 1;
		FETCH c INTO r;
		total := total + r.n;
	END LOOP;
	RAISE NOTICE '% rows in 200 groups', total BETWEEN 200 * 30 AND 200 * 100;
END $$;
:next;
SELECT j->>'Device' <> 'host' FROM analyze_json('SELECT k, count(*) FROM t GROUP BY k') j;

-- a savepoint rolled back; a query in a failed subtransaction's place
BEGIN;
:next;
SAVEPOINT s;
SELECT k, sum(1 / (id - 40000)) FROM t GROUP BY k;
ROLLBACK TO s;
:next;
SAVEPOINT s2;
INSERT INTO t VALUES (0, 0, 1000000);
:next;
ROLLBACK TO s2;
:next;
COMMIT;

-- an error in a grouping inside of another's input, and the other way round
SELECT sqlstate_of('SELECT c, count(*) FROM (SELECT k, sum(1 / (id - 40000)) AS c FROM t GROUP BY k) x GROUP BY c');
SELECT sqlstate_of('SELECT 1 / (c - 51), count(*) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) x GROUP BY 1');
SELECT sqlstate_of('SELECT g, x.* FROM generate_series(1, 9) g, LATERAL (SELECT k % 5, sum(1 / (id - g * 10000)) FROM t WHERE id < 45000 GROUP BY 1) x');
:next;

-- cancelled by a timeout: while it waits for input, while it works, while it returns groups
CREATE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN PERFORM pg_sleep(0.01); RETURN n; END';
SET statement_timeout = '100ms';
SELECT sqlstate_of('SELECT k, count(*) FROM (SELECT slow(k) AS k FROM t) x GROUP BY k');
SELECT sqlstate_of('SELECT a.id * 1000 + b.id % 1000 AS k, count(*), sum(a.v + b.v) FROM t a, t b GROUP BY 1 HAVING count(*) < 0');
SELECT sqlstate_of('SELECT slow(k), count(*) FROM t GROUP BY k');
RESET statement_timeout;
:next;
-- on the host, and in its files
SET gpurhh.device_memory = '1MB';
SET work_mem = '64kB';
SET statement_timeout = '300ms';
SELECT sqlstate_of('SELECT a.id * 1000 + b.id % 1000 AS k, count(*), sum(a.v + b.v) FROM t a, t b GROUP BY 1 HAVING count(*) < 0');
RESET statement_timeout;
SELECT sqlstate_of('SELECT k, id, sum(1 / (id - 49999)) FROM t GROUP BY k, id');
SELECT sqlstate_of('SELECT id, 1 / (count(*) - 1) FROM t GROUP BY id');
RESET gpurhh.device_memory;
RESET work_mem;
:next;
-- temporary files have an end
SET temp_file_limit = '64kB';
SET gpurhh.device = 'cpu';
SET gpurhh.device_memory = '1MB';
SET work_mem = '64kB';
SELECT replace(sqlstate_of('SELECT id, count(*) FROM t GROUP BY id'), '"', '');
RESET temp_file_limit;
RESET gpurhh.device;
SELECT count(*) FROM (SELECT id, count(*) FROM t GROUP BY id) x;
RESET gpurhh.device_memory;
RESET work_mem;
SELECT j->>'Device' <> 'host' FROM analyze_json('SELECT k, count(*) FROM t GROUP BY k') j;
-- nothing of it counts as a device's error
SELECT device_errors FROM gpurhh_stat;
