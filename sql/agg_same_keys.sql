--
-- Grouping columns of one expression, or constant, with GROUPING SETS: only their
-- grouping references tell which of them a set makes NULL.  Results were found by
-- the expression, so both columns showed the first one's.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- From 18 on PostgreSQL itself tells apart what grouping sets make NULL and what is below them, so the node does there
-- what it has to refuse on earlier versions (-1: no node; 1: at least one).  agg_same_keys_2.out is of 18.
SELECT CASE WHEN current_setting('server_version_num')::int < 180000 THEN -1 ELSE 1 END AS refused_before_18 \gset

CREATE TABLE t (id int PRIMARY KEY, g int, h int, v int, k int, s text);
INSERT INTO t SELECT i, nullif(i % 4, 3), i % 7, i, i % 3, 'a' || i % 5 FROM generate_series(1, 200) i;
CREATE VIEW twice AS SELECT g AS a, g AS b, v, k FROM t;
CREATE VIEW twice_of_twice AS SELECT a, b, a AS c, v FROM twice;

SELECT compare('SELECT g AS a, g AS b, count(*) FROM t GROUP BY a, ROLLUP (b)');
SELECT compare('SELECT g AS a, g AS b, count(*) FROM t GROUP BY GROUPING SETS ((a), (b))');
SELECT compare('SELECT g + 0 AS a, g + 0 AS b, sum(v) FROM t GROUP BY CUBE (a, b)');
SELECT compare('SELECT g + 2 AS a, g + (1 + 1) AS b, g + 2 + 1 AS c, sum(v) FROM t GROUP BY GROUPING SETS ((b), (a))');
SELECT compare('SELECT a, b, sum(v), GROUPING(a), GROUPING(b) FROM twice GROUP BY GROUPING SETS ((a), (b))', nodes => :refused_before_18);
SELECT compare('SELECT a, b, c, sum(v) FROM twice_of_twice GROUP BY CUBE (a, b, c)');
SELECT compare('SELECT a, b, sum(v) FROM twice GROUP BY GROUPING SETS ((a, b), (b)) HAVING a IS NULL OR b IS NOT NULL');
SELECT compare('SELECT k, ''x''::text AS c, count(*) FROM t GROUP BY CUBE (k, c)', nodes => :refused_before_18);
SELECT compare('SELECT g AS a, g AS b, g + 1 AS c, count(*) FROM t GROUP BY GROUPING SETS ((b), (a))');
SELECT compare('SELECT b, a, a * 2 + 1, max(v) - min(v) FROM twice GROUP BY GROUPING SETS ((a), (b), ()) HAVING a < 2 OR b > 0 OR max(v) > 150');
SELECT compare('SELECT a, b, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b)) ORDER BY b NULLS FIRST, a, 3 LIMIT 5', true, nodes => :refused_before_18);
SELECT compare('SELECT b + 1, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b)) ORDER BY sum(v) + b NULLS FIRST, 2', true, nodes => :refused_before_18);
SELECT compare('SELECT q.b, u.v FROM (SELECT a, b, sum(v) AS v FROM twice GROUP BY GROUPING SETS ((a), (b))) q JOIN t u ON u.id = q.b');
SELECT compare('SELECT q.a, u.b FROM (SELECT b, a FROM twice GROUP BY GROUPING SETS ((a), (b)) OFFSET 0) q LEFT JOIN twice u ON u.v = q.a');
SELECT compare('SELECT * FROM (SELECT b, a, sum(v) AS v FROM twice GROUP BY GROUPING SETS ((a), (b)) OFFSET 0) q ORDER BY v');
SELECT compare('SELECT v, a, b FROM (SELECT a, b, sum(v) AS v FROM twice GROUP BY GROUPING SETS ((a), (b))) q ORDER BY b, a', true);
SELECT compare('SELECT a, b, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b)) UNION ALL SELECT b, a, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b))', nodes => 2);
SELECT compare('SELECT a, b, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b)) UNION SELECT b, a, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b))', nodes => 2);
SELECT compare('SELECT ''x''::text AS c, NULL::int AS n, 2.5 AS d, count(*) FROM t GROUP BY GROUPING SETS ((c), (n), (d), ()) HAVING count(*) > 1', nodes => -1);
SELECT compare('SELECT k, c, count(*) FROM (SELECT k, ''x''::text AS c FROM t) q GROUP BY CUBE (k, c)');
SELECT compare('SELECT k, ''x''::text AS c, rank() OVER (PARTITION BY k ORDER BY count(*)) FROM t GROUP BY CUBE (k, c)', nodes => :refused_before_18);
SELECT compare('SELECT a, b, sum(v) FROM twice GROUP BY GROUPING SETS ((a), (b))', settings => 'max_parallel_workers_per_gather=2, parallel_setup_cost=0, parallel_tuple_cost=0, min_parallel_table_scan_size=0');
-- with one set, or none, both are what they are
SELECT compare('SELECT g AS a, g AS b, count(*) FROM t GROUP BY a, b');
SELECT compare('SELECT a, b, count(*) FROM twice GROUP BY GROUPING SETS ((a, b))');
SELECT compare('SELECT DISTINCT a, b, c FROM twice_of_twice');

-- DISTINCT above the sets, by core or by us, also with a window function between
-- (16 and 17 return fewer rows, which agg_same_keys_1.out has, whether the node is on or off: there PostgreSQL does not
-- compare columns that it takes for constant or equal, although the sets below make them NULL)
SELECT compare('SELECT DISTINCT k, ''x''::text AS c FROM t GROUP BY CUBE (k, c)', nodes => 0);
SELECT compare('SELECT DISTINCT g, extract(month FROM ''2004-02-29''::timestamp) AS m FROM t GROUP BY CUBE (g, extract(month FROM ''2004-02-29''::timestamp))', nodes => 0);
SELECT compare('SELECT DISTINCT a, b FROM twice GROUP BY CUBE (a, b)', nodes => 0);
SELECT compare('SELECT DISTINCT k, ''x''::text AS c, rank() OVER (PARTITION BY k ORDER BY count(*)) FROM t GROUP BY CUBE (k, c)', nodes => 0);
SELECT compare('SELECT DISTINCT a, b, rank() OVER (ORDER BY sum(v)) FROM twice GROUP BY GROUPING SETS ((a), (b), ())', nodes => 0);
SELECT compare('SELECT DISTINCT a, b, stddev(v ORDER BY v) FROM twice GROUP BY CUBE (a, b)', nodes => 0);
-- what no set makes NULL does no harm there
SELECT compare('SELECT DISTINCT k, 1 AS one, count(*), count(*) AS again FROM t GROUP BY CUBE (k, g)');
SELECT compare('SELECT DISTINCT k, k + 1, count(v) OVER (PARTITION BY k) FROM t GROUP BY CUBE (k, v)');

-- GROUPING() of a column that a grouped primary key determines, which is no key then
SELECT compare('SELECT id, GROUPING(h), count(v) FROM t GROUP BY h, id');
SELECT compare('SELECT id, GROUPING(h), count(v) FROM t GROUP BY GROUPING SETS ((h, id))');
SELECT compare('SELECT id, h, s, GROUPING(h, id, s), count(v) FROM t GROUP BY h, s, id');
SELECT compare('SELECT id, GROUPING(h, id), sum(v) FROM t GROUP BY h, id HAVING GROUPING(h) = 0 AND GROUPING(id, h) < 1');
SELECT compare('SELECT id, h, GROUPING(h), GROUPING(id), count(v) FROM t GROUP BY GROUPING SETS ((h, id), (id), ())');

-- what core takes for constant it leaves out where it sorts, but not where it hashes: so core has to do it
SELECT compare('SELECT DISTINCT k, g, max(id) FROM t WHERE k = 0 GROUP BY GROUPING SETS ((k), (g), ())', nodes => :refused_before_18);
SELECT compare('SELECT DISTINCT ON (k) k, g FROM t WHERE k = g GROUP BY CUBE (k, g) ORDER BY k, g', true, nodes => :refused_before_18);
SELECT compare('SELECT k, g, count(*) FROM t WHERE k = 1 GROUP BY CUBE (k, g) ORDER BY k, g LIMIT 3', true, nodes => :refused_before_18);
-- (from 16 on core leaves k out of the clause itself, and all rows are one partition)
SELECT compare('SELECT k, g, sum(count(*)) OVER (PARTITION BY k) FROM t WHERE k = 1 GROUP BY GROUPING SETS ((k, g), (g), (k))', nodes => 0);
SELECT compare('SELECT k, g, sum(count(*)) OVER (), rank() OVER (PARTITION BY g ORDER BY k) FROM t WHERE k = 1 GROUP BY CUBE (k, g)', nodes => :refused_before_18);
SELECT compare('SELECT k, g, count(*) FROM t WHERE k = 1 GROUP BY CUBE (k, g)');
SELECT compare('SELECT k, g, count(*) FROM t GROUP BY CUBE (k, g) ORDER BY k, g, 1, 3 LIMIT 7', true);

-- Of EXISTS core makes two plans and throws one away, whose columns it has not looked for.
CREATE TABLE outer_rows AS SELECT i AS x FROM generate_series(-1, 3) i;
SELECT compare('SELECT x FROM outer_rows o WHERE EXISTS (SELECT 1 FROM (SELECT g AS a, g AS b, count(*) FROM t GROUP BY GROUPING SETS ((a), (b))) s WHERE s.a = o.x) OR o.x < 0');

SET enable_gpu_hashagg = on;
SELECT group_by, reason FROM gpurhh_refusals('SELECT a, b, GROUPING(a), count(*) FROM twice GROUP BY GROUPING SETS ((a), (b))');
SELECT group_by, reason FROM gpurhh_refusals('SELECT DISTINCT k, ''x''::text AS c FROM t GROUP BY CUBE (k, c)');

SET client_min_messages = warning;
DROP SCHEMA gpurhh_test CASCADE;
