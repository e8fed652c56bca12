--
-- Plan shapes around GpuHashAgg: what is above it, below it and beside it.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t (id int PRIMARY KEY, k int, k2 int2, v int, w int8, f float8, d date, txt text);
INSERT INTO t SELECT g, nullif(g % 23, 7), (g % 5)::int2, g * 37 % 1009 - 500, g::int8 * 1000003, (g % 9)::float8 / 2, date '2020-01-01' + g % 31, 'text ' || g % 3
	FROM generate_series(1, 4000) g;
CREATE TABLE dim (k int PRIMARY KEY, name text, grp int NOT NULL, u uuid, n numeric);
INSERT INTO dim SELECT g, 'name ' || g, g % 4, md5(g::text)::uuid, g / 3.0 FROM generate_series(0, 29) g;
CREATE INDEX t_k ON t (k);
ANALYZE t, dim;

-- ---------- target list and grouping ----------

SELECT compare('SELECT k, k2, count(*) + 1, sum(v) * 2 - k, -avg(v), k * 10 + k2, 7, NULL, now() IS NULL FROM t GROUP BY k, k2');
SELECT compare('SELECT count(*), sum(v) FROM t GROUP BY k');
SELECT compare('SELECT 1 FROM t GROUP BY k');
SELECT compare('SELECT k, k, k2, k FROM t GROUP BY k, k2');
SELECT compare('SELECT k + 1, (k + 1) * 2, abs(k + 1), count(*) FROM t GROUP BY k + 1');
SELECT compare('SELECT k2, k + 1, count(*) FROM t GROUP BY 2, 1');
SELECT compare('SELECT k AS x, count(*) AS y FROM t GROUP BY x ORDER BY y, x', ordered => true);
SELECT compare('SELECT k > 10, v % 2 = 0, count(*) FROM t GROUP BY k > 10, v % 2 = 0');
SELECT compare('SELECT CASE WHEN k < 5 THEN 0 WHEN k < 9 THEN 1 END, sum(v) FROM t GROUP BY 1');
SELECT compare($$ SELECT date_trunc('month', d), d - date '2020-01-01', extract(day FROM d)::int, count(*) FROM t GROUP BY 1, 2, 3 $$);
SELECT compare('SELECT f, f * 2, round(f), sum(v) FROM t GROUP BY f');
SELECT compare('SELECT length(txt), count(txt) FROM t GROUP BY 1');
SELECT compare('SELECT coalesce(sum(v) FILTER (WHERE v > 0), 0), greatest(min(v), max(v), k), row(k, sum(v)), array[min(v), max(v)] FROM t GROUP BY k');
SELECT compare('SELECT k FROM t GROUP BY k, k2, f');
SELECT compare('SELECT t.*::text IS NULL, count(*) FROM t GROUP BY 1');
SELECT compare('SELECT 1 AS one, count(*) FROM t GROUP BY one', nodes => 0);
SELECT compare('SELECT k, count(*) FROM t WHERE k = 5 GROUP BY k', nodes => 0);
SELECT compare('SELECT k, k2, count(*) FROM t WHERE k = 5 GROUP BY k, k2');

-- a domain is no key, but a cast is, and its values can be summed up
CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
SELECT compare('SELECT x::int, sum(x), avg(x), max(x), count(x) FROM (SELECT (g % 11)::percent AS x FROM generate_series(1, 100) g) y GROUP BY x::int');

-- ---------- HAVING ----------

SELECT compare('SELECT k, sum(v) FROM t GROUP BY k HAVING count(*) > 173');
SELECT compare('SELECT k FROM t GROUP BY k HAVING sum(v) > 0 AND k > 3 OR k IS NULL');
SELECT compare('SELECT k + 1, count(*) FROM t GROUP BY k + 1 HAVING k + 1 > 3 AND max(v) > min(v) + (k + 1)');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING false');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM t)');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING EXISTS (SELECT FROM dim WHERE dim.k = t.k AND dim.n < count(t.v))');
SELECT compare('SELECT k, count(*) FROM t GROUP BY k HAVING k IN (SELECT grp FROM dim GROUP BY grp)', nodes => 2);
SELECT compare('SELECT k, count(*), (SELECT name FROM dim WHERE dim.k = t.k) FROM t GROUP BY k');
SELECT compare('SELECT k, (SELECT max(x.v) FROM t x WHERE x.k = t.k AND x.v < avg(t.v)) FROM t GROUP BY k');

-- ---------- above: ORDER BY, LIMIT, DISTINCT, window functions ----------

SELECT compare('SELECT k, sum(v) FROM t GROUP BY k ORDER BY k', ordered => true);
SELECT compare('SELECT k, sum(v) FROM t GROUP BY k ORDER BY k DESC NULLS LAST', ordered => true);
SELECT compare('SELECT k, sum(v) FROM t GROUP BY k ORDER BY sum(v), k', ordered => true);
SELECT compare('SELECT k, k2 FROM t GROUP BY k, k2 ORDER BY count(*) FILTER (WHERE v > 0), k, k2', ordered => true);
SELECT compare('SELECT k, sum(v) FROM t GROUP BY k ORDER BY k + sum(v), 1 LIMIT 5', ordered => true);
SELECT compare('SELECT k, sum(v) FROM t GROUP BY k ORDER BY k LIMIT 5 OFFSET 3', ordered => true);
SELECT compare('SELECT count(*) FROM (SELECT v FROM t GROUP BY v LIMIT 7) x');
SELECT compare('SELECT v, sum(k) FROM t GROUP BY v ORDER BY 1 LIMIT 0', ordered => true);
SELECT compare('SELECT k, sum(v) FROM t GROUP BY k ORDER BY sum(v) FETCH FIRST 3 ROWS WITH TIES', ordered => true);
SELECT compare('SELECT DISTINCT count(*) FROM t GROUP BY k, k2');
SELECT compare('SELECT DISTINCT ON (k2) k2, k, sum(v) FROM t GROUP BY k, k2 ORDER BY k2, sum(v), k', ordered => true);
SELECT compare('SELECT DISTINCT k, sum(v) OVER (PARTITION BY k) FROM t GROUP BY k, v');
SELECT compare('SELECT k, sum(v), rank() OVER (ORDER BY sum(v), k), sum(count(*)) OVER (ORDER BY k) FROM t GROUP BY k');
SELECT compare('SELECT k, k2, sum(v), sum(sum(v)) OVER (PARTITION BY k ORDER BY k2), lag(count(*)) OVER w FROM t GROUP BY k, k2 WINDOW w AS (PARTITION BY k2 ORDER BY k)');
SELECT compare('SELECT k2, generate_series(1, k2) FROM t GROUP BY k2');
SELECT compare('SELECT k2, generate_series(1, count(*)) FROM t GROUP BY k2');
SELECT compare('SELECT k, unnest(array[min(v), max(v)]), sum(w) FROM t GROUP BY k ORDER BY k, 2', ordered => true);
SELECT compare('SELECT generate_series(1, 3) AS g, count(*) FROM t GROUP BY g', nodes => -1);

-- ---------- below: joins, subqueries, CTEs ----------

SELECT compare('SELECT dim.grp, count(*), sum(v) FROM t JOIN dim USING (k) GROUP BY dim.grp');
SELECT compare('SELECT grp, count(*), count(t.k), sum(v) FROM dim LEFT JOIN t ON t.k = dim.k AND t.v > 300 GROUP BY grp');
SELECT compare('SELECT t.k, dim.grp, count(*), count(name) FROM t FULL JOIN dim ON t.k = dim.k AND t.k2 = 1 GROUP BY t.k, dim.grp');
SELECT compare('SELECT dim.u, sum(t.v) FROM dim LEFT JOIN t USING (k) GROUP BY dim.u');
SELECT compare('SELECT a.k2, b.k2, count(*), sum(a.v - b.v) FROM t a, t b WHERE a.id = b.v GROUP BY a.k2, b.k2');
SELECT compare('SELECT x.k, count(*), sum(x.s) FROM (SELECT k, v + 1 AS s FROM t WHERE v > 0 ORDER BY v) x GROUP BY x.k');
SELECT compare('SELECT x.k, count(*), sum(x.id) FROM (SELECT k, id FROM t ORDER BY id LIMIT 999) x GROUP BY x.k');
SELECT compare('WITH c AS MATERIALIZED (SELECT k, v FROM t WHERE v > 0) SELECT k, sum(v) FROM c GROUP BY k');
SELECT compare('WITH c AS NOT MATERIALIZED (SELECT k, v FROM t WHERE v > 0) SELECT k, sum(v) FROM c GROUP BY k');
SELECT compare('WITH c AS MATERIALIZED (SELECT k, sum(v) AS s FROM t GROUP BY k) SELECT a.k, a.s, b.s FROM c a JOIN c b ON a.k = b.k + 1');
SELECT compare('WITH c AS NOT MATERIALIZED (SELECT k, sum(v) AS s FROM t GROUP BY k) SELECT a.k, a.s, b.s FROM c a JOIN c b ON a.k = b.k + 1', nodes => 2);
-- (EXPLAIN does not show what a work table's scan evaluates)
SELECT compare('WITH RECURSIVE c (n, s) AS (SELECT 1, 0::int8 UNION ALL SELECT n + 1, s + (SELECT max(x) FROM (SELECT sum(v) + n AS x FROM t WHERE k2 = n % 5 GROUP BY k) y) FROM c WHERE n < 9) SELECT * FROM c', nodes => 0);
SELECT compare('WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) SELECT n % 7, count(*), sum(n) FROM c GROUP BY n % 7');
SELECT compare('SELECT column1, count(*), sum(column2) FROM (VALUES (1, 2), (1, 3), (NULL, 4)) v GROUP BY column1');
SELECT compare('SELECT g % 3, count(*), sum(g) FROM generate_series(1, 100) g GROUP BY 1');
SELECT compare('SELECT relkind = chr(114), count(*) FROM pg_class GROUP BY 1');
SELECT compare('SELECT k, count(*) FROM t TABLESAMPLE BERNOULLI (50) REPEATABLE (7) GROUP BY k');
SELECT compare('SELECT x, count(*) FROM (SELECT generate_series(1, k2) AS x FROM t) y GROUP BY x');

-- expressions made null by an outer join: in keys, in arguments, in filters
SELECT compare('SELECT t.k, count(x.c), sum(x.c), count(*) FROM t LEFT JOIN (SELECT k, 1 AS c FROM dim WHERE grp = 1) x ON x.k = t.k GROUP BY t.k');
SELECT compare('SELECT x.c, count(*), sum(v) FROM t LEFT JOIN (SELECT k, k * 0 + 1 AS c FROM dim WHERE grp = 1) x ON x.k = t.k GROUP BY x.c');
SELECT compare('SELECT coalesce(x.c, -1), count(*), sum(v) FROM t LEFT JOIN (SELECT k, coalesce(grp, 0) AS c FROM dim WHERE grp = 1) x ON x.k = t.k GROUP BY coalesce(x.c, -1)');
SELECT compare('SELECT k2, count(*) FILTER (WHERE x.b), count(*) FILTER (WHERE x.b IS NULL), max(x.m) FROM t LEFT JOIN (SELECT k, true AS b, coalesce(grp, 1) AS m FROM dim WHERE grp < 2) x ON x.k = t.k GROUP BY k2');
SELECT compare('SELECT x.c, x.c + 1, x.k, count(*) FROM t LEFT JOIN (SELECT k, coalesce(k, 3) AS c FROM dim WHERE k < 9) x ON x.k = t.k GROUP BY x.c, x.k');

-- ---------- functional dependency ----------

SELECT compare('SELECT k, grp, u, count(*) FROM dim GROUP BY k');
SELECT compare('SELECT dim.k, dim.grp, dim.u, grp * 2 + dim.k, count(*), sum(v) FROM dim JOIN t USING (k) GROUP BY dim.k');
SELECT compare('SELECT dim.k, dim.grp, dim.u, count(t.k), sum(v) FROM dim LEFT JOIN t USING (k) GROUP BY dim.k');
-- the determined columns are NULL where the outer join found nothing
SELECT compare('SELECT dim.k, dim.grp, dim.u, count(*), sum(v) FROM t LEFT JOIN dim ON t.k = dim.k AND dim.k < 5 GROUP BY dim.k');
SELECT compare('SELECT t.id, t.k, t.k2, t.w, t.f, t.d, dim.grp, count(*) FROM t LEFT JOIN dim USING (k) WHERE t.id < 50 GROUP BY t.id, dim.k');
SELECT compare('SELECT dim.k, max(v) FROM dim JOIN t USING (k) GROUP BY dim.k HAVING dim.grp > 1');
SELECT compare('SELECT k, tableoid, grp + 1, count(*) FROM dim GROUP BY k');
SELECT compare('SELECT dim.k, name FROM dim JOIN t USING (k) GROUP BY dim.k');

-- ---------- set operations, nested groupings ----------

SELECT compare('SELECT k, count(*) FROM t GROUP BY k UNION ALL SELECT k2, count(*) FROM t GROUP BY k2', nodes => 2);
SELECT compare('SELECT k FROM t GROUP BY k UNION SELECT grp FROM dim GROUP BY grp', nodes => 2);
SELECT compare('SELECT k FROM t GROUP BY k INTERSECT SELECT grp FROM dim GROUP BY grp', nodes => 2);
SELECT compare('SELECT k FROM t GROUP BY k EXCEPT ALL SELECT grp FROM dim GROUP BY grp', nodes => 2);
SELECT compare('SELECT k, count(*), sum(n) FROM (SELECT k, 1 AS n FROM t UNION ALL SELECT grp, 2 FROM dim) x GROUP BY k');
SELECT compare('SELECT c, count(*) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) x GROUP BY c', nodes => 2);
SELECT compare('SELECT m, sum(s), max(c) FROM (SELECT k % 4 AS m, s, c FROM (SELECT k, k2, sum(v) AS s, count(*) AS c FROM t GROUP BY k, k2) x) y GROUP BY m', nodes => 2);
SELECT compare('SELECT max(c), count(*) FROM (SELECT k, count(*) AS c FROM t GROUP BY k) x');
SELECT compare('SELECT a.k, a.s, b.c FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) a JOIN (SELECT grp AS k, count(*) AS c FROM dim GROUP BY grp) b USING (k)', nodes => 2);
SELECT compare('SELECT a.k, count(*), sum(b.s) FROM t a LEFT JOIN (SELECT k, sum(v) AS s FROM t GROUP BY k) b ON a.k = b.k GROUP BY a.k', nodes => 2);

-- ---------- LATERAL, correlated subqueries ----------

SELECT compare('SELECT dim.k, x.* FROM dim, LATERAL (SELECT k2, count(*), sum(v) FROM t WHERE t.k = dim.k GROUP BY k2) x');
SELECT compare('SELECT dim.k, x.* FROM dim LEFT JOIN LATERAL (SELECT k2, dim.k + k2 AS s, sum(v) FROM t WHERE t.k < dim.k GROUP BY k2 HAVING sum(v) > dim.grp * 100) x ON true');
SELECT compare('SELECT dim.k, x.* FROM dim, LATERAL (SELECT t.k % dim.k AS r, count(*) FROM t GROUP BY 1) x WHERE dim.k > 25');
SELECT compare('SELECT dim.k, x.* FROM dim, LATERAL (SELECT k2, count(*) AS c FROM t GROUP BY k2 ORDER BY k2 LIMIT dim.grp) x');
SELECT compare('SELECT k, (SELECT count(*) FROM (SELECT k2, sum(v) FROM t WHERE t.k = dim.k GROUP BY k2) x) FROM dim');
SELECT compare('SELECT k, (SELECT string_agg(s::text, chr(44) ORDER BY s) FROM (SELECT sum(v) AS s FROM t WHERE t.k = dim.k GROUP BY k2) x) FROM dim');
SELECT compare('SELECT k, (SELECT sum(v + dim.k) FROM t WHERE t.id <= dim.k GROUP BY dim.k) FROM dim', nodes => 0);
SELECT compare('SELECT name FROM dim WHERE k IN (SELECT k FROM t GROUP BY k HAVING sum(v) > 0)');
SELECT compare('SELECT name FROM dim WHERE k NOT IN (SELECT k FROM t WHERE k IS NOT NULL GROUP BY k HAVING sum(v) > 0)');
SELECT compare('SELECT name FROM dim WHERE EXISTS (SELECT FROM t WHERE t.k = dim.k GROUP BY k2 HAVING count(*) > 34)');
SELECT compare('SELECT name FROM dim WHERE k > ALL (SELECT count(*) / 10 FROM t WHERE t.k2 = dim.grp GROUP BY k)');
SELECT compare('SELECT name FROM dim WHERE (k, grp) IN (SELECT k, min(k2) FROM t GROUP BY k)');
SELECT compare('SELECT array(SELECT count(*) FROM t GROUP BY k2 ORDER BY k2)');

-- ---------- partitions, inheritance, views, row security ----------

CREATE TABLE parted (k int, v int) PARTITION BY LIST (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES IN (0, 1, 2);
CREATE TABLE parted2 (v int, dropped text, k int);
ALTER TABLE parted2 DROP COLUMN dropped;
ALTER TABLE parted ATTACH PARTITION parted2 FOR VALUES IN (3, 4);
CREATE TABLE parted3 PARTITION OF parted DEFAULT;
INSERT INTO parted SELECT nullif(g % 7, 6), g FROM generate_series(1, 3000) g;
ANALYZE parted;
SELECT compare('SELECT k, count(*), sum(v) FROM parted GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM parted WHERE k < 3 GROUP BY k');
SELECT compare('SELECT k, count(*), sum(v) FROM parted WHERE k > 99 GROUP BY k');
SELECT compare('SELECT tableoid, count(*), sum(v) FROM parted GROUP BY tableoid');
SELECT compare('SELECT k, count(*), sum(v) FROM parted GROUP BY k', settings => 'enable_partitionwise_aggregate=on');
CREATE VIEW v AS SELECT k, k2, sum(v) AS s, count(*) AS c FROM t GROUP BY k, k2;
SELECT compare('SELECT k, sum(c), max(s) FROM v WHERE k2 > 2 GROUP BY k', nodes => 2);
SELECT compare('SELECT c FROM v WHERE k = 3');

-- ---------- parallel plans below ----------

SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT compare('SELECT k, count(*), sum(v) FROM t WHERE w > 0 GROUP BY k', nodes => 0);
-- a Gather is below the node, never above it
CREATE TABLE wide AS SELECT g AS k, g % 3 AS v FROM generate_series(1, 5000) g;
ALTER TABLE wide SET (parallel_workers = 2);
ANALYZE wide;
SET enable_gpu_hashagg = on;
SET cpu_tuple_cost = 1;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT k, sum(v) FROM wide WHERE abs(v) >= 0 GROUP BY k;
CREATE TEMP TABLE with_gather AS SELECT k, sum(v) FROM wide WHERE abs(v) >= 0 GROUP BY k;
RESET enable_gpu_hashagg;
CREATE TEMP TABLE without AS SELECT k, sum(v) FROM wide WHERE abs(v) >= 0 GROUP BY k;
SELECT count(*) FROM (TABLE with_gather EXCEPT ALL TABLE without) x;
SELECT count(*) FROM (TABLE without EXCEPT ALL TABLE with_gather) x;
RESET cpu_tuple_cost;
RESET parallel_leader_participation;
RESET max_parallel_workers_per_gather;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;

-- ---------- statements that store their rows ----------

CREATE FUNCTION stored(statement text, tab text) RETURNS text
LANGUAGE plpgsql SET enable_gpu_hashagg = off AS $f$
DECLARE
	expected text[];
	got text[];
BEGIN
	EXECUTE statement;
	expected := rows_of('SELECT * FROM ' || tab);
	EXECUTE CASE WHEN statement LIKE 'CREATE TABLE%' THEN 'DROP TABLE ' ELSE 'DELETE FROM ' END || tab;
	PERFORM set_config('enable_gpu_hashagg', 'on', true);
	IF count_nodes(statement) = 0 THEN
		RETURN 'no GpuHashAgg';
	END IF;
	EXECUTE statement;
	got := rows_of('SELECT * FROM ' || tab);
	EXECUTE CASE WHEN statement LIKE 'CREATE TABLE%' THEN 'DROP TABLE ' ELSE 'DELETE FROM ' END || tab;
	RETURN coalesce(difference(expected, got, false), 'ok, ' || cardinality(got) || ' rows');
END $f$;
CREATE TABLE target (a int8 PRIMARY KEY, b numeric DEFAULT 7, c text);
SELECT stored('CREATE TABLE created AS SELECT k, count(*) AS c, avg(v) AS a FROM t GROUP BY k', 'created');
SELECT stored('CREATE TABLE created AS WITH x AS (SELECT k, sum(w) AS s FROM t GROUP BY k) SELECT s % 5 AS m, count(*) FROM x GROUP BY s % 5', 'created');
SELECT stored('INSERT INTO target (a, c) SELECT coalesce(k, -1), sum(v) FROM t GROUP BY k', 'target');
SELECT stored('INSERT INTO target (a) SELECT sum(w) FROM t GROUP BY k', 'target');
SELECT stored('INSERT INTO target SELECT k2, count(*), min(d) FROM t GROUP BY k2 ON CONFLICT (a) DO UPDATE SET b = target.b + 1', 'target');
SELECT stored('WITH x AS (INSERT INTO target SELECT k2, avg(v), max(d) FROM t GROUP BY k2 RETURNING *) SELECT * FROM x', 'target');
SET enable_gpu_hashagg = on;
CREATE MATERIALIZED VIEW matview AS SELECT k2, count(*) AS c, sum(v) AS s FROM t GROUP BY k2;
SELECT k2, c FROM matview ORDER BY k2;
REFRESH MATERIALIZED VIEW matview;
RESET enable_gpu_hashagg;
SELECT * FROM matview EXCEPT ALL SELECT k2, count(*) AS c, sum(v) AS s FROM t GROUP BY k2;
INSERT INTO target SELECT g FROM generate_series(0, 9) g;
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) UPDATE target SET b = x.s FROM (SELECT k2, sum(v) AS s FROM t GROUP BY k2) x WHERE x.k2 = a;
UPDATE target SET b = x.s FROM (SELECT k2, sum(v) AS s FROM t GROUP BY k2) x WHERE x.k2 = a;
DELETE FROM target WHERE a IN (SELECT k FROM t WHERE k BETWEEN 5 AND 7 GROUP BY k);
RESET enable_gpu_hashagg;
SELECT a, b = coalesce((SELECT sum(v) FROM t WHERE k2 = a), 7) FROM target ORDER BY a;
COPY (SELECT k2, count(*) FROM t GROUP BY k2 ORDER BY 1) TO stdout;

-- ---------- PL/pgSQL ----------

CREATE FUNCTION loops() RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
	inner_r record;
	n int8 := 0;
	total int8 := 0;
BEGIN
	FOR r IN SELECT k, sum(v) AS s, count(*) AS c FROM t GROUP BY k LOOP
		n := n + r.c;
		-- a second one while the first is open, each time anew
		FOR inner_r IN SELECT k2, sum(w) AS s FROM t WHERE k IS NOT DISTINCT FROM r.k GROUP BY k2 LOOP
			total := total + inner_r.s;
			EXIT WHEN r.k = 3;
		END LOOP;
	END LOOP;
	PERFORM k, count(*) FROM t GROUP BY k;
	SELECT n + max(x.c) INTO n FROM (SELECT k2, count(*) AS c FROM t GROUP BY k2) x;
	RETURN n || ' ' || (total > 0);
END $f$;
SELECT loops();
SET enable_gpu_hashagg = on;
SELECT loops(), loops();
RESET enable_gpu_hashagg;
CREATE FUNCTION groups_of(i int) RETURNS TABLE (k2 int2, s int8) LANGUAGE plpgsql AS $f$
BEGIN
	RETURN QUERY SELECT t.k2, sum(v) FROM t WHERE k < i GROUP BY t.k2;
END $f$;
CREATE FUNCTION groups_sql(i int) RETURNS TABLE (k2 int2, s int8) LANGUAGE sql STABLE AS $f$
	SELECT t.k2, sum(v) FROM t WHERE k < i GROUP BY t.k2
$f$;
SELECT compare('SELECT k2, sum(s), count(*) FROM generate_series(1, 20) g, groups_of(g) GROUP BY k2');
SELECT compare('SELECT k2, sum(s), count(*) FROM generate_series(1, 20) g, groups_sql(g) GROUP BY k2', nodes => 2);
-- a volatile function in the input runs its own GROUP BY for each row
CREATE FUNCTION largest(i int) RETURNS int8 LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
	result int8;
BEGIN
	SELECT max(x.c) INTO result FROM (SELECT t.k2, count(*) AS c FROM t WHERE k = i GROUP BY t.k2) x;
	RETURN result;
END $f$;
SELECT compare('SELECT l, count(*), sum(l) FROM (SELECT largest(g % 20) AS l FROM generate_series(1, 200) g) x GROUP BY l');
