--
-- Batches: of few rows, of rows of every width, in a pool of few blocks.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS
	SELECT g % 1009 AS k, nullif(g % 7, 3) AS k2, g::int8 * 1000003 AS w, md5((g % 501)::text)::uuid AS u, g % 3 = 0 AS b, (g % 32)::int2 AS i2
	FROM generate_series(1, 5000) g;
ANALYZE t;

-- Around a batch's end: one row less, just so many, one row more.
SELECT n, compare(format('SELECT k, count(*), sum(w) FROM (SELECT * FROM t LIMIT %s) x GROUP BY k', n), settings => 'gpurhh.batch_rows=64'),
	   (j->>'Rows Fed')::int = n, (j->>'Batches')::int
FROM unnest('{0,1,63,64,65,127,128,129,4096}'::int[]) n,
	 analyze_json(format('SELECT k, count(*) FROM (SELECT * FROM t LIMIT %s) x GROUP BY k', n), 'gpurhh.batch_rows=64') j;
SELECT rows, compare('SELECT k, k2, u, count(*), sum(w), avg(i2), count(*) FILTER (WHERE b) FROM t GROUP BY k, k2, u', settings => 'gpurhh.batch_rows=' || rows)
FROM unnest('{64,65,100,127,1000,65536,1048576}'::int[]) rows;

-- More batches than there are blocks.
SELECT compare('SELECT g % 777, count(*), sum(g) FROM generate_series(1, 200000) g GROUP BY 1', settings => 'gpurhh.batch_rows=64');

-- As many columns as a batch can have: the rows get wide, the batches short.
SELECT compare(format('SELECT k %% 10, %s FROM t GROUP BY k %% 10', string_agg(format('sum(w + %s)', g), ', '))) FROM generate_series(1, 31) g;
SELECT compare(format('SELECT k %% 10, %s FROM t GROUP BY k %% 10', string_agg(format('count(*) FILTER (WHERE w %% %s = 0)', g), ', '))) FROM generate_series(2, 64) g;
SELECT compare(format('SELECT %s, count(*), max(w) FROM (SELECT %s, w FROM t) x GROUP BY %1$s', string_agg('u' || g, ', '), string_agg(format('md5((k %% %s)::text)::uuid AS u%1$s', g), ', '))) FROM generate_series(1, 32) g;

-- The smallest pool: two blocks.  A pool is made when a session first needs
-- one, or at the server's start.
\c
:session
SELECT context <> 'postmaster' AS own_pool FROM pg_settings WHERE name = 'gpurhh.pool_size' \gset
\if :own_pool
SET gpurhh.pool_size = '256kB';
\endif
SELECT compare('SELECT g % 777, count(*), sum(g) FROM generate_series(1, 100000) g GROUP BY 1');
SELECT compare('SELECT k, k2, u, count(*), sum(w), avg(i2) FROM t GROUP BY k, k2, u');
SELECT compare('SELECT g, count(*) FROM generate_series(1, 30000) g GROUP BY g');
SELECT compare('SELECT k, k2, u, count(*), sum(w), avg(i2) FROM t GROUP BY k, k2, u', settings => 'gpurhh.batch_rows=64, gpurhh.device_memory=1MB, gpurhh.max_probe_buckets=1');
SELECT compare(format('SELECT %s, count(*), max(w) FROM (SELECT %s, w FROM t) x GROUP BY %1$s', string_agg('u' || g, ', '), string_agg(format('md5((k %% %s)::text)::uuid AS u%1$s', g), ', '))) FROM generate_series(1, 32) g;
-- several queries share it: groupings inside of groupings' inputs, open cursors
SELECT compare('SELECT c, count(*), max(s) FROM (SELECT k2, count(*) AS c, max(s) AS s FROM (SELECT k, k2, sum(i2) AS s FROM t GROUP BY k, k2) x GROUP BY k2) y GROUP BY c', nodes => 3);
-- (one that waits for a block of its own session's waits in vain, for a second)
CREATE FUNCTION largest(i int) RETURNS int8 LANGUAGE sql VOLATILE AS $f$
	SELECT max(c) FROM (SELECT k2, count(*) AS c FROM t WHERE k = i GROUP BY k2) x;
$f$;
SELECT compare('SELECT l, count(*), sum(l) FROM (SELECT largest(g) AS l FROM generate_series(1, 1) g) x GROUP BY l');
SET enable_gpu_hashagg = on;
BEGIN;
DECLARE a CURSOR FOR SELECT g, count(*) FROM generate_series(1, 20000) g GROUP BY g;
DECLARE b CURSOR FOR SELECT g, count(*) FROM generate_series(1, 20000) g GROUP BY g;
DECLARE c CURSOR FOR SELECT g, count(*) FROM generate_series(1, 20000) g GROUP BY g;
MOVE 10 IN a;
MOVE 10 IN b;
MOVE 10 IN c;
SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) x;
\set QUIET off
MOVE ALL IN b;
MOVE ALL IN a;
MOVE ALL IN c;
\set QUIET on
COMMIT;

-- One of an odd size.
\c
:session
SELECT context <> 'postmaster' AS own_pool FROM pg_settings WHERE name = 'gpurhh.pool_size' \gset
\if :own_pool
SET gpurhh.pool_size = '1234kB';
\endif
SELECT compare('SELECT g % 7777, count(*), sum(g) FROM generate_series(1, 100000) g GROUP BY 1');
