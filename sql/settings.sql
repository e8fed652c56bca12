--
-- Settings: every one with its unit, what it refuses, and how.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

RESET gpurhh.setup_cost;
RESET gpurhh.row_cost;
RESET gpurhh.group_cost;

\pset format aligned
\pset tuples_only off
-- the costs are measured, and so may change; what may set the sizes of pool and cache depends on preload: t/020_settings.pl
SELECT name, CASE WHEN name NOT LIKE '%\_cost' THEN boot_val END AS boot_val, unit, min_val, max_val, CASE WHEN name NOT IN ('gpurhh.pool_size', 'gpurhh.cache_size') THEN context END AS context, vartype
FROM pg_settings WHERE name LIKE 'enable\_gpu%' OR name LIKE 'gpurhh.%' ORDER BY name COLLATE "C";
SELECT count(*) FROM pg_settings WHERE (name LIKE 'enable\_gpu%' OR name LIKE 'gpurhh.%') AND short_desc ~ '^[A-Z].*\.$' AND coalesce(extra_desc, 'X.') ~ '\.$';
\pset format unaligned
\pset tuples_only on

-- with units
SET gpurhh.device_memory = '3GB';
SHOW gpurhh.device_memory;
SET gpurhh.device_memory = 1500;
SHOW gpurhh.device_memory;
SET gpurhh.service_idle_timeout = '5min';
SHOW gpurhh.service_idle_timeout;
SET gpurhh.service_idle_timeout = 7;
SHOW gpurhh.service_idle_timeout;
SET gpurhh.batch_rows = 64;
SHOW gpurhh.batch_rows;
SET gpurhh.load_factor = 0.95;
SHOW gpurhh.load_factor;
SET gpurhh.max_probe_buckets = 1;
SHOW gpurhh.max_probe_buckets;
SET gpurhh.cpu_threads = 2;
SHOW gpurhh.cpu_threads;
SET gpurhh.row_cost = 0.25;
SHOW gpurhh.row_cost;
SELECT v, set_config('gpurhh.device', v, false) FROM unnest('{cpu,cuda,cuda:0,cuda:12,auto,CPU,Auto,CUDA:7}'::text[]) v;
SHOW gpurhh.device;
RESET ALL;
SHOW enable_gpu_hashagg;
SHOW gpurhh.device;
:session

-- values that are refused
SELECT s || ' = ' || v, regexp_replace(sqlstate_of(format('SET %s = %L', s, v)), '\((\d+) ?\w* \.\. (\d+) ?\w*\)$', '(\1 .. \2)')
FROM (VALUES (1, 'enable_gpu_hashagg', 'maybe'), (1, 'enable_gpu_hashjoin', 'maybe'),
			 (2, 'gpurhh.device', 'gpu'), (2, 'gpurhh.device', ''), (2, 'gpurhh.device', 'cuda:'), (2, 'gpurhh.device', 'cuda:x'), (2, 'gpurhh.device', 'cuda:-1'), (2, 'gpurhh.device', 'cuda:0 '), (2, 'gpurhh.device', 'cuda:1234'), (2, 'gpurhh.device', 'cuda:007'), (2, 'gpurhh.device', 'cpu:0'),
			 (3, 'gpurhh.device_memory', '-1'), (3, 'gpurhh.device_memory', '1XB'), (3, 'gpurhh.device_memory', '1000000TB'), (3, 'gpurhh.device_memory', '3min'),
			 (5, 'gpurhh.batch_rows', '63'), (5, 'gpurhh.batch_rows', '1048577'), (5, 'gpurhh.batch_rows', '1kB'),
			 (6, 'gpurhh.load_factor', '0.49'), (6, 'gpurhh.load_factor', '0.96'), (6, 'gpurhh.load_factor', 'NaN'), (6, 'gpurhh.load_factor', 'full'),
			 (7, 'gpurhh.max_probe_buckets', '0'), (7, 'gpurhh.max_probe_buckets', '65'),
			 (8, 'gpurhh.cpu_threads', '-1'), (8, 'gpurhh.cpu_threads', '257'),
			 (9, 'gpurhh.service_idle_timeout', '-1'), (9, 'gpurhh.service_idle_timeout', '1MB'), (9, 'gpurhh.service_idle_timeout', '2147484'),
			 (10, 'gpurhh.setup_cost', '-1'), (10, 'gpurhh.row_cost', 'cheap'), (10, 'gpurhh.group_cost', '1e11')) AS x (n, s, v)
ORDER BY n;
-- the prefix is ours
SELECT sqlstate_of('SET gpurhh.no_such_thing = 1');
SELECT sqlstate_of('SHOW gpurhh.no_such_thing');

-- the switch: off, nothing is different; on, it is; SET LOCAL ends
CREATE TABLE t AS SELECT g % 7 AS k, g AS v FROM generate_series(1, 1000) g;
ANALYZE t;
SELECT count_nodes('SELECT k, count(*) FROM t GROUP BY k');
BEGIN;
SET LOCAL enable_gpu_hashagg = on;
SELECT count_nodes('SELECT k, count(*) FROM t GROUP BY k');
COMMIT;
-- that of joins has two names as well, which one setting follows
SELECT current_setting('enable_gpu_hashjoin'), current_setting('gpurhh.enable_hashjoin'), current_setting('enable_gpu_hashagg');
SET gpurhh.enable_hashjoin = on;
SELECT current_setting('enable_gpu_hashjoin'), current_setting('gpurhh.enable_hashjoin'), current_setting('enable_gpu_hashagg');
SET enable_gpu_hashjoin = off;
SELECT current_setting('enable_gpu_hashjoin'), current_setting('gpurhh.enable_hashjoin');
RESET enable_gpu_hashjoin;
RESET gpurhh.enable_hashjoin;
SHOW gpurhh.enable_hashjoin;
SELECT count_nodes('SELECT k, count(*) FROM t GROUP BY k');
-- It has two names, of which the one that was set last counts, and both show it.
\set switch 'SELECT current_setting(\'enable_gpu_hashagg\'), current_setting(\'gpurhh.enable_hashagg\'), count_nodes(\'SELECT k, count(*) FROM t GROUP BY k\');'
SET gpurhh.enable_hashagg = on;
:switch
SET enable_gpu_hashagg = off;
:switch
SET gpurhh.enable_hashagg = on;
:switch
RESET gpurhh.enable_hashagg;
:switch
RESET enable_gpu_hashagg;
:switch
SET enable_gpu_hashagg = on;
SET gpurhh.enable_hashagg = off;
:switch
RESET gpurhh.enable_hashagg;
:switch
RESET ALL;
:session
:switch
-- what ends takes back its own, in whatever order the names were set
BEGIN;
SET LOCAL gpurhh.enable_hashagg = on;
:switch
SET LOCAL enable_gpu_hashagg = off;
:switch
COMMIT;
:switch
BEGIN;
SET LOCAL gpurhh.enable_hashagg = on;
SET enable_gpu_hashagg = off;
:switch
COMMIT;
:switch
BEGIN;
SET enable_gpu_hashagg = on;
SAVEPOINT s;
SET gpurhh.enable_hashagg = off;
:switch
SET enable_gpu_hashagg = on;
:switch
ROLLBACK TO s;
:switch
SET LOCAL gpurhh.enable_hashagg = off;
:switch
COMMIT;
:switch
BEGIN;
SET gpurhh.enable_hashagg = on;
SET enable_gpu_hashagg = off;
SET gpurhh.enable_hashagg = off;
ROLLBACK;
:switch
-- a function's SET is the later one while it runs, whatever its session has set
CREATE FUNCTION nodes_off() RETURNS int LANGUAGE plpgsql SET gpurhh.enable_hashagg = off AS $$ BEGIN RETURN count_nodes('SELECT k, count(*) FROM t GROUP BY k'); END $$;
CREATE FUNCTION nodes_on() RETURNS int LANGUAGE plpgsql SET gpurhh.enable_hashagg = on AS $$ BEGIN RETURN count_nodes('SELECT k, count(*) FROM t GROUP BY k') + 10 * nodes_off(); END $$;
SELECT s, nodes_on(), nodes_off(), current_setting('gpurhh.enable_hashagg') FROM set_config('enable_gpu_hashagg', 'on', false) s;
SELECT s, nodes_on(), nodes_off(), current_setting('gpurhh.enable_hashagg') FROM set_config('enable_gpu_hashagg', 'off', false) s;
SET gpurhh.enable_hashagg = maybe;

SET enable_gpu_hashagg = on;
-- the costs decide
SELECT s, count_nodes('SELECT k, count(*) FROM t GROUP BY k') FROM set_config('gpurhh.setup_cost', '1e10', false) s;
SELECT s, count_nodes('SELECT k, count(*) FROM t GROUP BY k') FROM set_config('gpurhh.setup_cost', '0', false) s;
SELECT s, count_nodes('SELECT k, count(*) FROM t GROUP BY k') FROM set_config('gpurhh.row_cost', '100', false) s;
SELECT s, count_nodes('SELECT k, count(*) FROM t GROUP BY k') FROM set_config('gpurhh.row_cost', '0', false) s;
SELECT s, count_nodes('SELECT k, count(*) FROM t GROUP BY k') FROM set_config('gpurhh.group_cost', '10000', false) s;
SELECT s, count_nodes('SELECT k, count(*) FROM t GROUP BY k') FROM set_config('gpurhh.group_cost', '0', false) s;
-- with those that are built in, a thousand rows stay with PostgreSQL
RESET gpurhh.setup_cost;
RESET gpurhh.row_cost;
RESET gpurhh.group_cost;
SELECT count_nodes('SELECT k, count(*) FROM t GROUP BY k');
-- and ten million do not: by an estimate only
CREATE FUNCTION large() RETURNS SETOF t LANGUAGE sql VOLATILE ROWS 10000000 AS 'SELECT * FROM t';
SELECT count_nodes('SELECT k, count(*), sum(v) FROM large() GROUP BY k');
:session

-- every value gives the same answer
SELECT s, compare('SELECT k, v % 300, count(*), sum(v) FROM t GROUP BY 1, 2', settings => s)
FROM unnest('{gpurhh.device=cpu,gpurhh.device=auto,gpurhh.device=cuda,gpurhh.device_memory=1MB,gpurhh.device_memory=1TB,gpurhh.batch_rows=64,gpurhh.batch_rows=1048576,gpurhh.load_factor=0.5,gpurhh.load_factor=0.95,
	gpurhh.max_probe_buckets=1,gpurhh.max_probe_buckets=64,gpurhh.cpu_threads=1,gpurhh.service_idle_timeout=0}'::text[]) s;
-- threads of the CPU device: a private service reads them when it starts
\c
:session
SET gpurhh.device = 'cpu';
SET gpurhh.cpu_threads = 1;
SELECT compare('SELECT k, v % 300, count(*), sum(v) FROM t GROUP BY 1, 2');
\c
:session
SET gpurhh.device = 'cpu';
SET gpurhh.cpu_threads = 7;
SELECT compare('SELECT k, v % 300, count(*), sum(v) FROM t GROUP BY 1, 2');
\c
:session
SET gpurhh.device = 'cpu';
SET gpurhh.cpu_threads = 256;
SELECT compare('SELECT k, v % 300, count(*), sum(v) FROM t GROUP BY 1, 2');
-- a service that is to end at once when idle, and starts again
\c
:session
SET gpurhh.service_idle_timeout = 1;
SELECT compare('SELECT k, count(*) FROM t GROUP BY k');
SELECT FROM pg_sleep(1.5);
SELECT compare('SELECT k, count(*) FROM t GROUP BY k');
-- anybody may set them, but for those that take of what all share
CREATE ROLE regress_gpurhh_nobody;
GRANT USAGE ON SCHEMA gpurhh_test TO regress_gpurhh_nobody;
SET ROLE regress_gpurhh_nobody;
SELECT s, sqlstate_of(format('SET %s = %s', s, v)) FROM (VALUES ('enable_gpu_hashagg', 'on'), ('gpurhh.device', 'cpu'), ('gpurhh.device_memory', '0'), ('gpurhh.load_factor', '0.7'), ('gpurhh.max_probe_buckets', '64'), ('gpurhh.cpu_threads', '64')) x (s, v);
RESET ROLE;
DROP OWNED BY regress_gpurhh_nobody;
DROP ROLE regress_gpurhh_nobody;
