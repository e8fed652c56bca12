--
-- GpuHashJoin over a build side that has no room in the device's memory: rows come out of each of
-- several passes.  Where a later part has no room either, core joins the rest.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64MB';
SET gpurhh_test.wrapped = off;

-- keys with duplicates, NULLs, and values that the other side lacks; a key that most rows have; and rows of d that are wide
CREATE TABLE f (k int, k2 int, b bigint, id int, v int, n numeric(9, 3), lk text, u1 uuid, u2 uuid);
SELECT string_agg('u' || i || ' uuid', ', ') AS wide, string_agg('d.u' || i, ', ') AS wide_columns, string_agg('f.u2 <> d.u' || i, ' AND ') AS differs FROM generate_series(3, 16) i \gset
CREATE TABLE d (LIKE f, :wide) WITH (autovacuum_enabled = off);
CREATE FUNCTION fill(name text, n int, step int, most int, hot int, uuids int) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
	EXECUTE format('INSERT INTO %I SELECT CASE WHEN g %% 37 <> 0 THEN x END, CASE WHEN g %% 11 <> 0 THEN g %% 7 END, x * 100000007::bigint, g, CASE WHEN g %% 5 <> 0 THEN g %% 101 END, x / 8.0, $$a key $$ || lpad(x::text, 12, $$-$$), %s '
		'FROM generate_series(1, $1) g, LATERAL (SELECT CASE WHEN $4 > 0 AND g %% 8 > 0 THEN $4 ELSE g * $2 %% $3 END) l(x)', name, (SELECT string_agg(format('lpad(to_hex(g * %s), 32, $$0$$)::uuid', i), ', ') FROM generate_series(1, uuids) i)) USING n, step, most, hot;
	EXECUTE 'ANALYZE ' || name;
END $f$;
SELECT fill('f', 4500, 7, 3500, 0, 2), fill('d', 5000, 11, 4000, 0, 16);
SELECT format('CREATE TABLE hot%s (LIKE d) WITH (autovacuum_enabled = off)', h), format('SELECT fill($$hot%s$$, 5500, 11, 4000, %1$s, 16)', h) FROM generate_series(1, 2) h \gexec
CREATE TABLE e AS SELECT CASE WHEN g % 10 <> 0 THEN g END AS id, g * 10 AS y FROM generate_series(0, 100) g;
ANALYZE e;
-- the planner takes them for small, and for the build sides
UPDATE pg_class SET reltuples = 500 WHERE relname ~ '^(d|hot.)$' AND relnamespace = 'gpurhh_test'::regnamespace;
SELECT 'f.id, f.v, d.id AS did, ' || :'wide_columns' AS columns \gset

-- what joined_rows() says, in how many passes, and who has joined the rest
CREATE FUNCTION passes(query text, settings text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', regexp_replace(joined_rows(query, used), 'the device had no (room for all rows of|memory to finish) a build side', 'no room for a build side'),
		'passes ' || regexp_replace(jsonb_path_query_array(n, '$.Joins[*].Passes')::text, '[2-9]|\d\d', 'several', 'g'), 'the rest is core''s: ' || (n ->> 'Rest Joined by PostgreSQL'))
	FROM concat_ws(', ', 'enable_gpu_hashagg=off, enable_gpu_hashjoin=on, gpurhh.device_memory=1MB', settings) used, analyze_json(query, used, 'GpuHashJoin') n $f$;
CREATE FUNCTION kinds(query text, settings text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql AS $f$
	SELECT kind || ': ' || passes(replace(query, '@', kind), settings) FROM unnest('{INNER,LEFT,RIGHT,FULL}'::text[]) kind $f$;

-- every kind, and keys of several types
SELECT m, joined_rows('SELECT ' || :'columns' || ' FROM f JOIN d ON f.k = d.k', 'gpurhh.device_memory=' || m) FROM unnest('{0,2MB}'::text[]) m;
SELECT kinds('SELECT ' || :'columns' || ' FROM f @ JOIN d ON f.k = d.k');
SELECT kinds('SELECT ' || :'columns' || ' FROM f @ JOIN d ON f.b = d.b AND f.k2 = d.k2 AND f.v < d.v');
SELECT key, passes(format('SELECT %s, d.lk, d.n FROM f LEFT JOIN d ON f.%s = d.%2$s', :'columns', key)) FROM unnest('{lk,n}'::text[]) key;
SELECT passes(format('SELECT f.* FROM f WHERE %s (SELECT FROM d WHERE d.k = f.k AND d.v < f.v AND %s)', kind, :'differs')) FROM unnest('{EXISTS,NOT EXISTS}'::text[]) kind;
-- joins before and behind the one whose build side comes in parts
SET join_collapse_limit = 1;
SELECT passes('SELECT ' || :'columns' || ', e.y, e2.y AS y2 FROM f JOIN e ON f.v = e.id LEFT JOIN d ON f.k = d.k LEFT JOIN e e2 ON d.v = e2.id');
-- a key that is NULL because a join before has found nothing
SELECT passes('SELECT ' || :'columns' || ', e.y FROM f LEFT JOIN e ON f.v = e.id LEFT JOIN d ON e.y = d.k');
RESET join_collapse_limit;

-- what EXPLAIN shows; a LIMIT in the first pass
SET enable_gpu_hashjoin = on;
SET gpurhh.device_memory = '1MB';
SET cpu_operator_cost = 1;
CREATE FUNCTION join_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Join' THEN
			RETURN NEXT regexp_replace(regexp_replace(line, '\(actual rows=[^)]*\)', '(ran)'), '\d+(\.\d+)? (build rows|keys|MB|passes|rows in|rows joined)', 'several \2', 'g');
		END IF;
	END LOOP;
END $f$;
\set wide 'SELECT ' :columns ' FROM f LEFT JOIN d ON f.k = d.k'
SELECT join_lines(:'wide');
SELECT join_lines(:'wide' || ' LIMIT 600');
SELECT join_lines('SELECT ' || :'columns' || ' FROM f LEFT JOIN hot2 d ON f.k = d.k');
RESET cpu_operator_cost;

-- cursors over passes, beside each other, and one over passes and what core does then
CREATE FUNCTION fetched(cursor refcursor, n int) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE r record;
BEGIN
	FOR i IN 1 .. n LOOP
		FETCH cursor INTO r;
		EXIT WHEN NOT FOUND;
		RETURN NEXT ROW(r.id, r.did, r.u3)::text;
	END LOOP;
END $f$;
BEGIN;
CREATE TEMP TABLE expected ON COMMIT DROP AS SELECT 'd' AS name, ROW(f.id, d.id, d.u3)::text AS r FROM f LEFT JOIN d ON f.k = d.k UNION ALL SELECT 'hot2', ROW(f.id, d.id, d.u3)::text FROM f FULL JOIN hot2 d ON f.k = d.k;
DECLARE a CURSOR FOR :wide;
DECLARE b SCROLL CURSOR FOR :wide;
DECLARE c CURSOR FOR SELECT :columns FROM f FULL JOIN hot2 d ON f.k = d.k;
CREATE TEMP TABLE fetches (name text, cursor text, r text) ON COMMIT DROP;
INSERT INTO fetches SELECT 'd', 'a', fetched('a', 1900);
INSERT INTO fetches SELECT 'd', 'b', fetched('b', 3800);
INSERT INTO fetches SELECT 'hot2', 'c', fetched('c', 300);
-- the cursors do not see this
DELETE FROM d;
DELETE FROM f WHERE id % 2 = 0;
INSERT INTO fetches SELECT 'd', 'a', fetched('a', 100000);
INSERT INTO fetches SELECT 'd', 'b', fetched('b', 100000);
INSERT INTO fetches SELECT 'hot2', 'c', fetched('c', 100000);
MOVE ABSOLUTE 0 IN b;
INSERT INTO fetches SELECT 'd', 'b again', fetched('b', 100000);
SELECT f.cursor, difference((SELECT array_agg(e.r) FROM expected e WHERE e.name = f.name), array_agg(f.r), false) FROM fetches f GROUP BY f.name, 1 ORDER BY 1;
ROLLBACK;
RESET enable_gpu_hashjoin;
RESET gpurhh.device_memory;

-- rescans
SELECT passes('SELECT x, q.* FROM generate_series(1, 2) x, LATERAL (SELECT ' || :'columns' || ' FROM f JOIN d ON f.k = d.k AND d.id % 7 <> x OFFSET 0) q');
SELECT passes('SELECT x, (SELECT count(q) FROM (SELECT ' || :'columns' || ' FROM f LEFT JOIN d ON f.k = d.k OFFSET 0) q WHERE q.id > x) FROM generate_series(1, 2) x');
SELECT passes('SELECT x, q.* FROM generate_series(1, 2) x, LATERAL (SELECT x AS y, ' || :'columns' || ' FROM f FULL JOIN hot2 d ON f.k = d.k OFFSET 0) q');

-- rows that are left over are joined once, by core, with the whole build side
CREATE TABLE odd AS SELECT * FROM unnest(ARRAY(SELECT ROW(id, CASE WHEN id % 1000 = 7 THEN 1.23456 WHEN id % 1000 = 8 THEN 11.1250000 ELSE n END, k, v) FROM f)) q(id int, n numeric(9, 3), k int, v int);
ANALYZE odd;
CREATE FUNCTION left_rows(query text) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', passes(query), 'left: ' || (analyze_json(query, 'enable_gpu_hashagg=off, enable_gpu_hashjoin=on, gpurhh.device_memory=1MB', 'GpuHashJoin') ->> 'Rows Left to the Host')) $f$;
SELECT left_rows('SELECT ' || :'columns' || ', f.n FROM odd f LEFT JOIN d ON f.n = d.n');

-- a part that has no room: a key that most rows have; core does all joins if it is of the first part, else the rest
SELECT h, kinds(format('SELECT %s FROM f @ JOIN hot%s d ON f.k = d.k', :'columns', h)) AS answer FROM generate_series(1, 2) h;
SELECT passes(format('SELECT f.* FROM f WHERE %s (SELECT FROM hot2 d WHERE d.k = f.k AND d.v < f.v AND %s)', kind, :'differs')) FROM unnest('{EXISTS,NOT EXISTS}'::text[]) kind;
-- the first part has no rows, so that the probe side has not been read when the next one has no room: core does all
CREATE TABLE same (LIKE d) WITH (autovacuum_enabled = off);
INSERT INTO same SELECT * FROM hot2 WHERE k = 2;
ANALYZE same;
UPDATE pg_class SET reltuples = 500 WHERE relname = 'same' AND relnamespace = 'gpurhh_test'::regnamespace;
SELECT passes('SELECT ' || :'columns' || ' FROM f JOIN same d ON f.k = d.k');
-- the part of a long string is another one each time
SELECT split_part(passes('SELECT ' || :'columns' || ' FROM f LEFT JOIN hot1 d ON f.lk = d.lk AND f.n = d.n'), ';', 1);
-- rows that are left over are joined with the parts that are done after that
SELECT left_rows('SELECT ' || :'columns' || ', f.n FROM odd f LEFT JOIN hot2 d ON f.n = d.n');
CREATE TABLE few WITH (autovacuum_enabled = off) AS SELECT id, k, v, lk || repeat(id::text, 5) AS lk FROM f;
ANALYZE few;
-- more strings than the planner expects
UPDATE pg_class SET reltuples = 800 WHERE relname = 'few' AND relnamespace = 'gpurhh_test'::regnamespace;
SET work_mem = '64kB';
SELECT left_rows('SELECT ' || :'columns' || ', f.n FROM odd f JOIN hot2 d ON f.n = d.n');
SELECT regexp_replace(left_rows('SELECT ' || :'columns' || ', f.lk FROM few f LEFT JOIN hot2 d ON f.k = d.k'), 'left: [1-9]\d+', 'left: many');
SET work_mem = '64MB';
SET join_collapse_limit = 1;
SELECT left_rows('SELECT ' || :'columns' || ', f.n, e.y, e2.y AS y2 FROM odd f LEFT JOIN e ON f.v = e.id LEFT JOIN hot2 d ON f.k = d.k AND f.n = d.n LEFT JOIN e e2 ON d.v = e2.id');
-- another build side has no room: that is known before the first row
SELECT passes(format('SELECT %s, %s FROM f LEFT JOIN d ON f.k = d.k LEFT JOIN hot2 h ON f.id = h.id', :'columns', replace(:'wide_columns', 'd.', 'h.')));
RESET join_collapse_limit;

-- filters of keys drop the same rows in each pass, and core need not have them for the rest
CREATE TABLE p AS SELECT g AS id, g % 97 AS v, g * 100000007::bigint AS b FROM generate_series(1, 30000) g;
ANALYZE p;
CREATE FUNCTION filtered(query text) RETURNS text LANGUAGE sql AS $f$
	SELECT concat_ws('; ', passes(query), 'filter: ' || (j ->> 'Key Filter') || CASE WHEN (j ->> 'Rows Removed by Key Filter')::int >= 20000 * (j ->> 'Passes')::int THEN ', in each pass' END)
	FROM jsonb_array_elements(analyze_json(query, 'enable_gpu_hashagg=off, enable_gpu_hashjoin=on, gpurhh.device_memory=1MB', 'GpuHashJoin') -> 'Joins') j WHERE j ->> 'Passes' <> '1' $f$;
SET gpurhh.row_cost = 0.001;
SELECT filtered(format('SELECT %s FROM p f %s d ON f.id = d.k', :'columns', other)) FROM unnest('{JOIN d,RIGHT JOIN d,JOIN hot2}'::text[]) other;
SELECT filtered(format('SELECT %s FROM p f JOIN hot2 d ON f.id = d.k AND f.b = d.b', :'columns'));
SET gpurhh.row_cost = 0;

-- a side has other rows when it is read again, in a pass or by core, as a function is not what it is declared as
CREATE FUNCTION comes(id int, times int) RETURNS bool STABLE COST 0.001 LANGUAGE plpgsql AS $f$
BEGIN
	PERFORM set_config('test.turn', (coalesce(nullif(current_setting('test.turn', true), ''), '0')::int + 1)::text, true);
	RETURN current_setting('test.turn')::int <= times;
END $f$;
CREATE FUNCTION has_come() RETURNS bool STABLE COST 0.001 LANGUAGE sql AS $f$ SELECT coalesce(current_setting('test.turn', true), '') <> '' $f$;
SET enable_gpu_hashjoin = on;
SET gpurhh.device_memory = '1MB';
SELECT sqlstate_of('SELECT ' || :'columns' || ' FROM (SELECT * FROM f WHERE (id <> 100 OR comes(id, 1))) f LEFT JOIN d ON f.k = d.k');
SELECT sqlstate_of('SELECT ' || :'columns' || ' FROM (SELECT * FROM f WHERE (id <> 100 OR comes(id, 99))) f LEFT JOIN d ON f.k = d.k AND (d.id <> 100 OR NOT has_come())');
SELECT sqlstate_of(format('SELECT %s FROM (SELECT * FROM f WHERE (id <> 100 OR comes(id, %s))) f LEFT JOIN hot2 d ON f.k = d.k', :'columns', n -> 'Joins' -> 0 -> 'Passes'))
	FROM analyze_json('SELECT ' || :'columns' || ' FROM f LEFT JOIN hot2 d ON f.k = d.k', 'enable_gpu_hashagg=off', 'GpuHashJoin') n;
RESET enable_gpu_hashjoin;
RESET gpurhh.device_memory;

-- what cannot be read twice is core's: samples, and parts that participants of a parallel plan get
SELECT passes('SELECT ' || :'columns' || ' FROM f TABLESAMPLE SYSTEM (100) LEFT JOIN d ON f.k = d.k');
SELECT passes('SELECT ' || :'columns' || ' FROM f LEFT JOIN d ON f.k = d.k', 'parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0, max_parallel_workers_per_gather=2');
