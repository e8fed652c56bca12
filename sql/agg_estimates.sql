--
-- Estimates that are wrong by a hundred times and more, both ways: they cost
-- time, and never an answer or an error.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- many groups where few were expected (volatile, so that it is not inlined)
CREATE FUNCTION many(n int) RETURNS TABLE (g int) LANGUAGE sql VOLATILE ROWS 10 AS 'SELECT generate_series(1, n)';
SELECT compare('SELECT g, count(*), sum(g) FROM many(60000) GROUP BY g');
SELECT compare('SELECT g % 30000, -g % 3, md5((g % 7)::text)::uuid, count(*), sum(g::int8) FROM many(60000) GROUP BY 1, 2, 3');
-- few where many were expected
CREATE FUNCTION few(n int) RETURNS TABLE (g int) LANGUAGE sql VOLATILE ROWS 10000000 AS 'SELECT generate_series(1, n)';
SELECT compare('SELECT g, count(*), sum(g) FROM few(3) GROUP BY g');
SELECT compare('SELECT g, count(*), sum(g) FROM few(0) GROUP BY g');
SELECT compare('SELECT g % 50, md5((g % 7)::text)::uuid, count(*), sum(g) FROM few(20000) GROUP BY 1, 2');
-- more than any memory holds
CREATE FUNCTION huge(n int) RETURNS TABLE (g int) LANGUAGE sql VOLATILE ROWS 1e18 AS 'SELECT generate_series(1, n)';
SELECT compare('SELECT g % 500, count(*), sum(g) FROM huge(10000) GROUP BY 1');
SELECT compare('SELECT a.g % 500, b.g % 3, count(*), sum(a.g) FROM huge(1000) a, huge(3) b GROUP BY 1, 2');
-- with the memory limited
SELECT compare('SELECT g % 50, count(*), sum(g) FROM huge(10000) GROUP BY 1', settings => 'gpurhh.device_memory=1MB');
SELECT compare('SELECT g, count(*), sum(g) FROM many(60000) GROUP BY g', settings => 'gpurhh.device_memory=1MB');

-- statistics of a table that has changed since
CREATE TABLE t (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g % 5, g FROM generate_series(1, 5000) g;
ANALYZE t;
INSERT INTO t SELECT g, g FROM generate_series(1, 50000) g;
SELECT compare('SELECT k, count(*), sum(v) FROM t GROUP BY k');
TRUNCATE t;
INSERT INTO t SELECT g, g FROM generate_series(1, 50000) g;
ANALYZE t;
UPDATE t SET k = k % 7;
SELECT compare('SELECT k, count(*), sum(v) FROM t GROUP BY k');
DELETE FROM t WHERE k <> 3;
SELECT compare('SELECT k, count(*), sum(v) FROM t GROUP BY k');
-- skew: nearly all rows in one group, a thousand others
TRUNCATE t;
INSERT INTO t SELECT CASE WHEN g % 50 = 0 THEN g END, g FROM generate_series(1, 50000) g;
SELECT compare('SELECT k, count(*), sum(v), min(v) FROM t GROUP BY k');
-- sorted, and backwards, and all of a group together
SELECT compare('SELECT g / 10, count(*), sum(g) FROM many(50000) GROUP BY 1');
SELECT compare('SELECT g, count(*) FROM generate_series(40000, 1, -1) g GROUP BY g');
-- keys that differ in their high bits only, or in one bit
SELECT compare('SELECT g::int8 << 40, count(*), sum(g) FROM many(20000) GROUP BY 1');
SELECT compare('SELECT 1::int8 << g % 64, count(*) FROM many(20000) GROUP BY 1');
SELECT compare('SELECT g::int8 * 4294967296 * 16, g % 3, count(*) FROM many(20000) GROUP BY 1, 2', settings => 'gpurhh.max_probe_buckets=2');
SELECT compare('SELECT ldexp::float8, count(*) FROM (SELECT 2::float8 ^ (g % 2000 - 1000) AS ldexp FROM many(20000)) x GROUP BY 1');
