--
-- Aggregates without GROUP BY: one row, also of no rows.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t (id int PRIMARY KEY, k int, v int, w bigint, s smallint, d date, f float8, txt text);
INSERT INTO t
	SELECT g, g % 13, CASE WHEN g % 7 <> 0 THEN g * 31 % 1000 - 500 END, g * 1000000007::bigint, (g % 300)::int2,
		'2000-01-01'::date + g % 4000, g / 8.0, 'text ' || g % 11
	FROM generate_series(1, 30000) g;
CREATE TABLE empty (LIKE t);
CREATE TABLE nulls AS SELECT g AS id, NULL::int AS k, NULL::int AS v, NULL::bigint AS w, NULL::date AS d FROM generate_series(1, 1000) g;
VACUUM ANALYZE t;
ANALYZE empty;
ANALYZE nulls;

-- one row of many
SELECT compare('SELECT count(*) FROM t');
SELECT compare('SELECT count(*), count(v), count(txt), sum(v), sum(w), avg(v), avg(w), min(v), max(w), min(d), max(d), sum(s) FROM t');
SELECT compare('SELECT sum(v) + count(*) * 2, -max(v) FROM t');
SELECT compare('SELECT sum(v * 2 + k), count(*) FILTER (WHERE v > 0), sum(w) FILTER (WHERE k = 3) FROM t');
SELECT compare('SELECT sum(v) FROM t WHERE k = 3 AND v > 100');
SELECT compare('SELECT 1, ''constant'', sum(v) FROM t');
SELECT compare('SELECT sum(v), count(*) FROM nulls');
-- none is left of what was written
SELECT compare('SELECT CASE WHEN false THEN count(*) END, 5 FROM t', nodes => 0);
SELECT compare('SELECT 5 FROM t WHERE k > 1000 HAVING true OR count(*) > 3', nodes => 0);

-- of no rows: an empty table, nothing that passes WHERE, or WHERE false
SELECT compare('SELECT count(*), count(v), sum(v), sum(w), avg(v), min(v), max(d) FROM empty');
SELECT compare('SELECT count(*), sum(v), min(w) FROM t WHERE v > 100000');
SELECT compare('SELECT count(*), sum(v), min(w) FROM t WHERE k = 1 AND false');
SELECT compare('SELECT coalesce(sum(v), -1), count(*) + 5 FROM empty');
-- a grouping that has a key has no row then
SELECT compare('SELECT k, count(*) FROM empty GROUP BY k');
SELECT compare('SELECT count(*) FROM empty GROUP BY 1 + 1', nodes => 0);
SELECT compare('SELECT count(*) FROM empty GROUP BY k, v HAVING count(*) = 0');

-- HAVING
SELECT compare('SELECT sum(v) FROM t HAVING count(*) > 10');
SELECT compare('SELECT sum(v) FROM t HAVING count(*) < 10');
SELECT compare('SELECT sum(v) FROM empty HAVING count(*) = 0');
SELECT compare('SELECT sum(v) FROM empty HAVING sum(v) IS NOT NULL');
SELECT compare('SELECT count(*) FROM empty HAVING sum(v) > 0');
SELECT compare('SELECT 1 FROM t HAVING count(*) > 10');
-- without an aggregate it is not a grouping
SELECT compare('SELECT 1 FROM t HAVING true', nodes => -1);

-- GROUP BY of what is constant
SELECT compare('SELECT k, count(*), sum(v) FROM t WHERE k = 3 GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM t WHERE k = 3000 GROUP BY k');
SELECT compare('SELECT k, s, count(*) FROM t WHERE k = 3 AND s = 16 GROUP BY k, s');
SELECT compare('SELECT 7 AS seven, count(*) FROM t GROUP BY seven');
SELECT compare('SELECT count(*), sum(v) FROM t GROUP BY ()');
SELECT compare('SELECT count(*), sum(v) FROM empty GROUP BY ()');

-- where the rows come from, and where the row goes
SELECT compare('SELECT count(*), sum(a.v), min(b.w) FROM t a JOIN t b ON a.id = b.k');
SELECT compare('SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) x', nodes => 2);
SELECT compare('SELECT (SELECT sum(v) FROM t), (SELECT count(*) FROM empty)', nodes => 2);
SELECT compare('SELECT id, v FROM t WHERE v > (SELECT avg(v) FROM t) + 490');
SELECT compare('SELECT sum(count(*)) OVER (), sum(v) FROM t');
SELECT compare('SELECT count(*) FROM t LIMIT 1');
SELECT compare('SELECT count(*) FROM t OFFSET 1');
SELECT compare('SELECT sum(v) FROM t UNION ALL SELECT count(*) FROM empty UNION ALL SELECT sum(v) FROM nulls', nodes => 3);
SELECT compare('SELECT count(*) AS c FROM t ORDER BY c');
SELECT compare('SELECT x.k, y.c, y.s FROM generate_series(-1, 14) x (k), LATERAL (SELECT count(*) AS c, sum(v) AS s FROM t WHERE t.k = x.k) y');
SELECT compare('SELECT x.k, (SELECT count(*) FROM t WHERE t.k = x.k) FROM generate_series(-1, 14) x (k)');

-- an index has the minimum sooner
SET gpurhh.setup_cost = 1000;
SELECT compare('SELECT min(id), max(id) FROM t', nodes => -1);
SET gpurhh.setup_cost = 0;
SELECT compare('SELECT min(id), max(id), count(*) FROM t');

-- prepared, with a generic plan; cursors
SET enable_gpu_hashagg = on;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(*), sum(v), min(w) FROM t WHERE k = $1;
EXECUTE q (3);
EXECUTE q (-3);
EXECUTE q (NULL);
EXECUTE q (4);
DEALLOCATE q;
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT count(*), sum(v) FROM t;
FETCH 1 FROM c;
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH FORWARD 1 FROM c;
COMMIT;

-- parallel: one participant returns the row, whoever takes part
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM t;
SELECT compare('SELECT count(*), sum(v), min(w) FROM t');
SELECT compare('SELECT count(*), sum(v), min(w) FROM t WHERE v > 100000');
SELECT compare('SELECT count(*), sum(v) FROM t HAVING count(*) > 100');
SELECT compare('SELECT count(*), sum(v), min(w) FROM t', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT count(*), sum(v), min(w) FROM t WHERE v > 100000', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT x.k, y.c FROM generate_series(-1, 14) x (k), LATERAL (SELECT count(*) AS c FROM t WHERE t.k = x.k) y');
-- planned with the leader, run without
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(*), sum(v) FROM t WHERE k < $1;
EXECUTE q (5);
EXECUTE q (-5);
SET parallel_leader_participation = off;
EXECUTE q (5);
EXECUTE q (-5);
SET max_parallel_workers = 0;
EXECUTE q (5);
EXECUTE q (-5);
DEALLOCATE q;
RESET ALL;
:session

-- rows that the device refuses, no device at all
SELECT compare('SELECT count(*), sum(v), min(w) FROM t', settings => 'gpurhh.batch_rows=64');
SELECT analyze_json('SELECT count(*), sum(v) FROM t') - 'Plans' @> '{"Feed": "pages", "Groups": 1}';
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v) FROM t HAVING min(v) < 0;
RESET enable_gpu_hashagg;
SELECT * FROM gpurhh_refusals('SELECT count(*), string_agg(txt, txt) FROM t');
