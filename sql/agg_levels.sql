--
-- Where EXPLAIN says that the levels above the first were made: the second by the
-- device, the third on the host, as it has more states than the device's tables.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS SELECT g % 50 AS k, g % 7 AS a, (g % 11)::numeric(5, 2) AS b, g::bigint AS v FROM generate_series(1, 20000) g;
ANALYZE t;
CREATE FUNCTION many_sums() RETURNS text LANGUAGE sql AS $f$
	SELECT 'SELECT k, sum(DISTINCT a), sum(DISTINCT b), ' || string_agg(format('sum(v + %s)', i), ', ') || ' FROM t GROUP BY k'
	FROM generate_series(1, 20) i;
$f$;
CREATE FUNCTION levels(query text) RETURNS text LANGUAGE sql AS $f$
	SELECT format('second level: %s, third level: %s, groups: %s, %s', j ->> 'Second Level', j ->> 'Third Level',
				  j ->> 'Second Level Groups', j ->> 'Third Level Groups')
	FROM analyze_json(query) AS j;
$f$;
SELECT levels(many_sums());
SELECT compare(many_sums());
SELECT levels('SELECT k, sum(DISTINCT a), sum(DISTINCT b), sum(v) FROM t GROUP BY k');
SELECT levels('SELECT k, sum(DISTINCT a), sum(v) FROM t GROUP BY k');
SELECT levels('SELECT k, sum(v) FROM t GROUP BY k');
-- the one set has no keys, but its group is the first level's
SELECT levels('SELECT count(*), sum(v) FROM t');

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT levels(many_sums());
SELECT compare(many_sums());
SELECT levels('SELECT k, sum(DISTINCT a), sum(DISTINCT b), sum(v) FROM t GROUP BY k');
