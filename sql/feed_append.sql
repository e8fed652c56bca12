--
-- Pages of several scans: partitions, inheritance, UNION ALL.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
-- The lines of a plan that say how it reads.
CREATE FUNCTION feeds(query text) RETURNS SETOF text LANGUAGE plpgsql SET enable_gpu_hashagg = on AS $f$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		IF line ~ 'Feed:' THEN
			RETURN NEXT ltrim(line);
		END IF;
	END LOOP;
END $f$;

-- partitions whose columns are elsewhere: dropped, added, in another order
CREATE TABLE p (id int, k int, v int, w bigint, txt text, d date) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10000);
CREATE TABLE p2 (gone text, w bigint, d date, v int, also_gone int, k int, txt text, id int);
ALTER TABLE p2 DROP COLUMN gone;
ALTER TABLE p2 DROP COLUMN also_gone;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10000) TO (20000);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20000) TO (30000) PARTITION BY LIST (k);
CREATE TABLE p3a PARTITION OF p3 FOR VALUES IN (0, 1, 2, 3, 4, 5);
CREATE TABLE p3b PARTITION OF p3 DEFAULT;
CREATE TABLE p4 PARTITION OF p FOR VALUES FROM (30000) TO (40000);
INSERT INTO p SELECT g, CASE WHEN g % 17 <> 0 THEN g % 13 END, CASE WHEN g % 7 <> 0 THEN g * 31 % 1000 - 500 END, g * 1000000007::bigint,
	'text ' || g % 11, '2000-01-01'::date + g % 40 FROM generate_series(0, 29999) g;
ALTER TABLE p ADD COLUMN late int DEFAULT 5;
UPDATE p SET late = v WHERE k = 3;
VACUUM ANALYZE p;

SELECT feeds('SELECT k, count(*), sum(v) FROM p GROUP BY k');
SELECT compare('SELECT k, count(*), count(txt), sum(v), avg(w), min(d), max(late) FROM p GROUP BY k');
SELECT compare('SELECT late, count(*) FROM p GROUP BY late');
SELECT compare('SELECT txt IS NULL, d, count(*) FROM p GROUP BY 1, 2');
SELECT compare('SELECT count(*), sum(v), sum(late), min(v), max(late), avg(w), min(d) FROM p');
SELECT compare('SELECT DISTINCT k, d FROM p');
SELECT compare('SELECT k, d, count(*), sum(w) FROM p GROUP BY CUBE (k, d)');
SELECT compare('SELECT k, count(DISTINCT v) FROM p GROUP BY k');
-- expressions above the Append, conditions below it
SELECT feeds('SELECT k + 1, sum(v * 2 + late), count(*) FILTER (WHERE v > 0) FROM p WHERE d > ''2000-01-10'' GROUP BY k + 1');
SELECT compare('SELECT k + 1, sum(v * 2 + late), count(*) FILTER (WHERE v > 0) FROM p WHERE d > ''2000-01-10'' GROUP BY k + 1');
SELECT compare('SELECT k, sum(CASE WHEN v <> 0 THEN 1000 / v END), sum(1000 / v) FILTER (WHERE v <> 0) FROM p GROUP BY k');
SELECT compare('SELECT k, sum(v) FROM p WHERE v > 400 OR late < 0 GROUP BY k');
-- whole rows, system columns, functions: by rows
SELECT feeds('SELECT tableoid, count(*) FROM p GROUP BY tableoid');
SELECT compare('SELECT tableoid, count(*) FROM p GROUP BY tableoid');
SELECT feeds('SELECT k, count(*) FROM p WHERE txt LIKE ''text 3'' GROUP BY k');
SELECT compare('SELECT k, count(*) FROM p WHERE txt LIKE ''text 3'' GROUP BY k');

-- errors come as they do without the node
CREATE FUNCTION on_and_off(statement text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	expected text;
	got text;
BEGIN
	SET LOCAL enable_gpu_hashagg = off;
	expected := sqlstate_of(statement);
	SET LOCAL enable_gpu_hashagg = on;
	got := sqlstate_of(statement);
	RETURN CASE WHEN got = expected THEN got ELSE got || ' instead of ' || expected END;
END $f$;
SELECT on_and_off('SELECT k, sum(1000 / v) FROM p GROUP BY k');
SELECT on_and_off('SELECT k, sum(2147483647 + v) FROM p WHERE v > 490 GROUP BY k');
SELECT on_and_off('SELECT k, sum(v) FROM p WHERE 1000 / v > 3 GROUP BY k');
SELECT on_and_off('SELECT 1000 / v, count(*) FROM p WHERE v <> 0 GROUP BY 1000 / v');

-- a partition that is read another way
CREATE INDEX ON p1 (id);
ANALYZE p1;
SET random_page_cost = 0.1;
SELECT feeds('SELECT k, count(*), sum(v) FROM p WHERE id > 9900 GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM p WHERE id > 9900 GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v + 1), count(*) FILTER (WHERE v > 0) FROM p WHERE id > 9900 GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM p WHERE id > 9900 GROUP BY k', settings => 'gpurhh.batch_rows=64');
RESET random_page_cost;
DROP INDEX p1_id_idx;

-- pruned when it is planned: to some, to one, to none
SELECT feeds('SELECT k, count(*) FROM p WHERE id < 15000 GROUP BY k');
SELECT compare('SELECT k, count(*) FROM p WHERE id < 15000 GROUP BY k');
SELECT feeds('SELECT k, count(*), sum(v * 2) FROM p WHERE id BETWEEN 12000 AND 15000 GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v * 2) FROM p WHERE id BETWEEN 12000 AND 15000 GROUP BY k');
SELECT compare('SELECT k, count(*) FROM p WHERE id < -5 GROUP BY k', nodes => 0);
SELECT compare('SELECT k, count(*) FROM p WHERE id > 35000 GROUP BY k', nodes => 0);
-- the scans below, with their figures
CREATE FUNCTION scanned(query text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Append|Scan on|Removed' THEN
			RETURN NEXT regexp_replace(ltrim(line), 'rows=(\d+)\.00', 'rows=\1');
		END IF;
	END LOOP;
END $f$;
-- when it starts, and while it runs
SET enable_gpu_hashagg = on;
SET plan_cache_mode = force_generic_plan;
PREPARE q (int, int) AS SELECT count(*), sum(v), count(DISTINCT k) FROM p WHERE id >= $1 AND id < $2;
EXECUTE q (0, 40000);
EXECUTE q (5000, 15000);
EXECUTE q (12000, 13000);
EXECUTE q (-10, -5);
EXECUTE q (35000, 36000);
SELECT scanned('EXECUTE q (12000, 13000)');
DEALLOCATE q;
RESET plan_cache_mode;
RESET enable_gpu_hashagg;
SELECT compare('SELECT k, count(*), sum(v) FROM p WHERE id < (SELECT 15000) GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM p WHERE id < (SELECT -15000) GROUP BY k');
SELECT compare('SELECT x.g, y.* FROM generate_series(-1, 5) x (g), LATERAL (SELECT k, count(*), sum(v) FROM p WHERE id >= x.g * 8000 AND id < x.g * 8000 + 3000 GROUP BY k) y');
SELECT compare('SELECT x.g, y.* FROM generate_series(-1, 5) x (g), LATERAL (SELECT count(*), sum(v + x.g), min(v), max(v), avg(v), min(w), max(w) FROM p WHERE id >= x.g * 8000 AND id < x.g * 8000 + 3000) y');
SELECT compare('SELECT x.g, y.* FROM generate_series(-1, 5) x (g), LATERAL (SELECT k, count(*), sum(v) FROM p WHERE v > x.g * 100 GROUP BY k) y');
-- the figures of the scans are those that they have without it
SET enable_gpu_hashagg = on;
SELECT scanned('SELECT k, sum(v * 2) FROM p WHERE d > ''2000-01-10'' AND id < (SELECT 15000) GROUP BY k');
SET enable_gpu_hashagg = off;
SELECT scanned('SELECT k, sum(v * 2) FROM p WHERE d > ''2000-01-10'' AND id < (SELECT 15000) GROUP BY k');

-- inheritance, UNION ALL
CREATE TABLE parent (k int, v int);
CREATE TABLE child (extra text, w bigint) INHERITS (parent);
INSERT INTO parent SELECT g % 10, g FROM generate_series(1, 5000) g;
INSERT INTO child SELECT g % 12, g, 'extra ' || g, g FROM generate_series(1, 5000) g;
ANALYZE parent;
ANALYZE child;
SELECT feeds('SELECT k, count(*), sum(v) FROM parent GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM parent GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v + 1) FROM parent WHERE v > 300 GROUP BY k');
SELECT feeds('SELECT k, count(*), sum(v) FROM (SELECT k, v FROM parent UNION ALL SELECT k, late FROM p) x GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM (SELECT k, v FROM parent UNION ALL SELECT k, late FROM p) x GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v * 3), sum(c) FROM (SELECT k, v, 1 AS c FROM parent UNION ALL SELECT v, k, 2 FROM p WHERE d > ''2000-01-20'') x GROUP BY k');
SELECT compare('SELECT k, sum(v) FROM (SELECT k + 1 AS k, v * 2 AS v FROM parent UNION ALL SELECT v, k FROM p) x GROUP BY k');
-- what a part computes may raise an error, also where nobody asks for it
SELECT on_and_off('SELECT k, sum(v) FROM (SELECT k, 10 / (k - 3) AS v FROM parent UNION ALL SELECT k, v FROM child) x GROUP BY k');
SELECT on_and_off('SELECT k, sum(CASE WHEN k <> 3 THEN v END) FROM (SELECT k, 10 / (k - 3) AS v FROM parent UNION ALL SELECT k, v FROM child) x GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM (SELECT k, v FROM parent UNION ALL SELECT g % 5, g FROM generate_series(1, 1000) g) x GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v * 2) FROM (SELECT k, v FROM parent UNION ALL SELECT k, count(*)::int FROM child GROUP BY k) x GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM (SELECT k, v FROM parent UNION ALL (SELECT k, v FROM child LIMIT 100)) x GROUP BY k');

-- aggregation by partition: one node above it all wins, or core does it
SET enable_partitionwise_aggregate = on;
SELECT compare('SELECT id, count(*), sum(v) FROM p GROUP BY id');
SELECT compare('SELECT k, count(*), sum(v) FROM p GROUP BY k');
SELECT compare('SELECT id, k, count(DISTINCT v), sum(v) FROM p GROUP BY id, k');
SELECT compare('SELECT DISTINCT id, v FROM p');
SELECT compare('SELECT count(*), sum(v) FROM p', nodes => 0);
SET gpurhh.setup_cost = 1e9;
SELECT compare('SELECT id, count(*), sum(v) FROM p GROUP BY id', nodes => -1);
SET gpurhh.setup_cost = 0;
RESET enable_partitionwise_aggregate;

-- parallel: the Append hands out its children
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT d, v, count(*), sum(v * 2) FROM p GROUP BY d, v;
RESET enable_gpu_hashagg;
SELECT compare('SELECT k, count(*), sum(v), avg(w) FROM p GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v * 2) FILTER (WHERE late > 0) FROM p GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM p GROUP BY k', settings => 'parallel_leader_participation=off');
SELECT compare('SELECT k, count(*), sum(v) FROM p GROUP BY k', settings => 'enable_parallel_append=off');
SELECT compare('SELECT k, count(*), sum(v) FROM p WHERE id < (SELECT 15000) GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM (SELECT k, v FROM parent UNION ALL SELECT k, late FROM p) x GROUP BY k');
-- some partitions are for one participant each
ALTER TABLE p1 SET (parallel_workers = 0);
ALTER TABLE p3a SET (parallel_workers = 0);
SELECT compare('SELECT k, count(*), sum(v) FROM p GROUP BY k');
SELECT compare('SELECT count(*), sum(v), sum(late), min(v), max(late), avg(w), min(d) FROM p');
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
PREPARE q (int, int) AS SELECT count(*), sum(v) FROM p WHERE id >= $1 AND id < $2;
EXECUTE q (0, 40000);
EXECUTE q (5000, 15000);
EXECUTE q (-10, -5);
DEALLOCATE q;
RESET ALL;
