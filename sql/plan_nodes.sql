--
-- What a plan carries for the node reaches whoever executes it: as a copy in the
-- plan cache, and as text in parallel workers (src/plan/plan_nodes.c).  The queries
-- have every field of it: columns with parameters, filters, states over two
-- columns, determined columns, GROUPING(), sets, choices, DISTINCT.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
CREATE TYPE mood AS ENUM ('low', 'high');
ALTER TYPE mood ADD VALUE 'lowest' BEFORE 'low';
CREATE TABLE t (id int PRIMARY KEY, k int, c char(5), n numeric(9,2), f float8, m mood, s text COLLATE "C");
INSERT INTO t
	SELECT g, g % 7, 'c' || g % 3, g % 11 * 1.25, g / 3.0, (ARRAY['low', 'high', 'lowest']::mood[])[1 + g / 7 % 3], 'string ' || g % 13
	FROM generate_series(1, 2000) g;
VACUUM ANALYZE t;

CREATE TABLE queries (name text, query text);
INSERT INTO queries VALUES
	('keys', 'SELECT c, n, s, count(*) FROM t GROUP BY c, n, s'),
	('states', 'SELECT k, sum(n), max(f), count(*) FILTER (WHERE f > 100), avg(n) FILTER (WHERE k < 5) FROM t GROUP BY k'),
	('pairs', 'SELECT k, round(corr(f, id)::numeric, 6), regr_count(id, f) FROM t GROUP BY k'),
	('determined', 'SELECT id, c, f, count(*) FROM t GROUP BY id HAVING count(*) > 0'),
	('grouping', 'SELECT k, c, GROUPING(k, c), GROUPING(c), sum(n) FROM t GROUP BY CUBE (k, c)'),
	('sets', 'SELECT k, c, s, count(*) FROM t GROUP BY GROUPING SETS ((k), (c, s), (k, c, s), ())'),
	('choices', 'SELECT k, min(m), max(m), count(*) FROM t GROUP BY k'),
	('strings', 'SELECT k, min(s), max(s), sum(id) FROM t GROUP BY k'),
	('distinct', 'SELECT k, count(DISTINCT n), sum(DISTINCT n), sum(id) FROM t GROUP BY k'),
	('two distincts', 'SELECT k, count(DISTINCT s), count(DISTINCT c), sum(id) FROM t GROUP BY k');

-- In workers alone: with this setting the leader does not execute the node.
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET parallel_leader_participation = off;
CREATE FUNCTION is_parallel(query text) RETURNS bool
LANGUAGE sql SET enable_gpu_hashagg = on AS $f$
	SELECT bool_or(line LIKE '%Parallel Custom Scan (GpuHashAgg)%') FROM explained(query) AS line;
$f$;
SELECT name, is_parallel(query), compare(query) FROM queries;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;

-- In the plan cache: every execution is of a copy.
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION compare_cached(name text, query text) RETURNS text
LANGUAGE plpgsql SET enable_gpu_hashagg = off AS $f$
DECLARE
	-- 1 is for a parameter, so that the plan is kept
	statement text := format('(int) AS SELECT * FROM (%s) q WHERE $1 = 1', query);
	native text[] := rows_of(query);
	wrong text;
BEGIN
	PERFORM set_config('enable_gpu_hashagg', 'on', true);
	EXECUTE 'PREPARE cached ' || statement;
	IF count_nodes('EXECUTE cached (1)') = 0 THEN
		RETURN 'no node';
	END IF;
	FOR i IN 1..3 LOOP
		wrong := coalesce(wrong, difference(native, rows_of('EXECUTE cached (1)'), false));
	END LOOP;
	DEALLOCATE cached;
	RETURN coalesce(wrong, 'ok');
END $f$;
SELECT name, compare_cached(name, query) FROM queries;

-- As text for the server's log: nothing but that it can be written.
SET debug_print_plan = on;
SET enable_gpu_hashagg = on;
SELECT k, c, GROUPING(k, c), count(DISTINCT n), sum(n) FILTER (WHERE f > 100) FROM t WHERE k < 2 GROUP BY ROLLUP (k, c) ORDER BY 1, 2;
RESET debug_print_plan;
