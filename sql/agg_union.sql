--
-- UNION: what is appended is grouped by all columns.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE a (id int, k int, v int, d date, txt text);
CREATE TABLE b (v bigint, k int, d date, u uuid);
INSERT INTO a SELECT g, CASE WHEN g % 17 <> 0 THEN g % 13 END, g * 31 % 1000, '2000-01-01'::date + g % 40, 'text ' || g % 11 FROM generate_series(1, 20000) g;
INSERT INTO b SELECT g * 37 % 1500, CASE WHEN g % 11 <> 0 THEN g % 17 END, '2000-01-20'::date + g % 40, md5((g % 20)::text)::uuid FROM generate_series(1, 20000) g;
CREATE TABLE empty (LIKE a);
VACUUM ANALYZE a;
VACUUM ANALYZE b;
ANALYZE empty;

SELECT compare('SELECT k FROM a UNION SELECT k FROM b');
SELECT compare('SELECT k, d FROM a UNION SELECT k, d FROM b');
SELECT compare('SELECT v FROM a UNION SELECT v FROM b');
SELECT compare('SELECT k + 1, v FROM a WHERE v > 100 UNION SELECT k, 5 FROM b UNION SELECT k, v FROM a');
SELECT compare('SELECT k FROM a UNION SELECT k FROM empty');
SELECT compare('SELECT k FROM empty UNION SELECT id FROM empty');
SELECT compare('SELECT k FROM a WHERE k > 100 UNION SELECT k FROM b WHERE k > 200');
SELECT compare('SELECT k, NULL::int FROM a UNION SELECT NULL, k FROM b');
-- above and below it
SELECT compare('SELECT k, d FROM a UNION SELECT k, d FROM b ORDER BY d DESC, k', ordered => true);
SELECT compare('(SELECT k FROM a UNION SELECT k FROM b) ORDER BY k LIMIT 3', ordered => true, nodes => 0);
SELECT compare('SELECT k, count(*) FROM (SELECT k, d FROM a UNION SELECT k, d FROM b) x GROUP BY k', nodes => 2);
SELECT compare('SELECT k, count(*) FROM a GROUP BY k UNION SELECT k, count(*) FROM b GROUP BY k', nodes => 3);
SELECT compare('SELECT x.k, a.v FROM (SELECT k, d FROM a UNION SELECT k, d FROM b) x JOIN a ON a.id = x.k');
SELECT compare('WITH x AS MATERIALIZED (SELECT k, d FROM a UNION SELECT k, d FROM b) SELECT * FROM x UNION ALL SELECT * FROM x');
SELECT compare('SELECT * FROM generate_series(1, 3) g, LATERAL (SELECT k FROM a WHERE k > g * 3 UNION SELECT k FROM b WHERE k < g) x');
-- with other set operations
SELECT compare('SELECT k FROM a UNION ALL (SELECT k FROM b UNION SELECT id FROM empty)');
SELECT compare('(SELECT k, v FROM a UNION ALL SELECT k, v FROM b) UNION SELECT 1, 2');
SELECT compare('(SELECT k, d FROM a UNION SELECT k, d FROM b) EXCEPT SELECT k, d FROM b WHERE k > 3', nodes => 0);
SELECT compare('(SELECT k, d FROM a EXCEPT SELECT k, d FROM b) UNION SELECT k, d FROM b WHERE k > 3');
SELECT compare('(SELECT k, d FROM a INTERSECT SELECT k, d FROM b) UNION (SELECT k, d FROM b EXCEPT SELECT k, d FROM a)');
SELECT compare('SELECT k FROM a UNION ALL SELECT k FROM b', nodes => -1);
SELECT compare('SELECT k FROM a EXCEPT SELECT k FROM b', nodes => -1);
SELECT compare('WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n % 100 + 1 FROM r) SELECT * FROM r', nodes => -1);
-- columns whose types differ in the parts of a part
SELECT compare('SELECT v FROM a UNION (SELECT v FROM b UNION SELECT id FROM a)');
SELECT compare('SELECT v::bigint FROM a UNION (SELECT id FROM a UNION SELECT k FROM a)');
-- EXPLAIN finds the columns in the parts, also within a subquery
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF, VERBOSE) SELECT k, d FROM a UNION SELECT k, d FROM b ORDER BY d;
-- (from version 17 on, a merge join would have it sorted, by core)
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT x.d FROM b y, (SELECT k + 1 AS e, d FROM a UNION SELECT k, d FROM b) x WHERE y.k = x.e;
RESET enable_mergejoin;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(*), count(k) FROM (SELECT k, d FROM a WHERE v < $1 UNION SELECT k, d FROM b WHERE v < $1) x;
EXECUTE q (500);
EXECUTE q (-1);
EXPLAIN (COSTS OFF, VERBOSE) EXECUTE q (500);
DEALLOCATE q;
-- a function that is planned, and fails, while a UNION is being planned
CREATE FUNCTION planned() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
	PERFORM k FROM a UNION SELECT k FROM b;
	BEGIN
		PERFORM 1 / (SELECT min(x.k) - min(x.k) FROM (SELECT k FROM a UNION SELECT k FROM b) x);
	EXCEPTION WHEN division_by_zero THEN
		RETURN 5;
	END;
	RETURN 6;
END $f$;
EXPLAIN (COSTS OFF, VERBOSE) SELECT k FROM a UNION (SELECT k FROM b WHERE k < planned());
RESET plan_cache_mode;
RESET enable_gpu_hashagg;
-- refused
SELECT * FROM gpurhh_refusals('SELECT k, j FROM (SELECT k, NULL::jsonb AS j FROM a) x UNION SELECT k, ''{}'' FROM b');

-- parallel
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT compare('SELECT k, d FROM a UNION SELECT k, d FROM b');
SELECT compare('SELECT k, v FROM a UNION SELECT k, v::int FROM b');
SELECT compare('SELECT k, d FROM a UNION SELECT k, d FROM b', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT count(*) FROM (SELECT k, d FROM a UNION SELECT k, d FROM b) x', nodes => 2);
RESET ALL;
:session
SELECT compare('SELECT id, k FROM a UNION SELECT v, k FROM b', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, work_mem=64kB');
