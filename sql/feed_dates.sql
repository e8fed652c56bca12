--
-- WHERE that compares dates with timestamps, on pages: infinite ones, and dates
-- beyond all timestamps.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET max_parallel_workers_per_gather = 0;
CREATE TABLE f (k int, d date, ts timestamp);
INSERT INTO f SELECT g % 10, date '1999-12-31' + g % 5, timestamp '2000-01-01' + (g % 7 - 3) * interval '12 hours' + (g % 3 - 1) * interval '1 us' FROM generate_series(1, 1000) g;
INSERT INTO f SELECT 11, d, ts FROM (VALUES ('infinity'::date), ('-infinity'), ('4713-11-24 BC'), ('294276-12-31'), (NULL)) AS x (d), (VALUES ('infinity'::timestamp), ('-infinity'), ('4713-11-24 BC'), ('294276-12-31 23:59:59.999999'), (NULL)) AS y (ts);
CREATE FUNCTION check_operators(a text, b text, OUT condition text, OUT result text) RETURNS SETOF record LANGUAGE sql AS $f$
	SELECT c, fed(format('SELECT k, d, ts, count(*) FROM f WHERE %s GROUP BY k, d, ts', c))
	FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op, format('%s %s %s', a, op, b) c;
$f$;
SELECT * FROM check_operators('d', 'ts');
SELECT * FROM check_operators('ts', 'd');
SELECT * FROM check_operators('d', 'timestamp ''2000-01-02''');
SELECT * FROM check_operators('d', '(date ''2000-01-02'' - interval ''36 hours'')');
SELECT * FROM check_operators('timestamp ''infinity''', 'd');
SELECT * FROM check_operators('ts', 'date ''2000-01-01''');
-- core alone knows how to compare these
INSERT INTO f SELECT 12, '5874897-12-31', ts FROM f WHERE k > 8;
SELECT * FROM check_operators('d', 'ts');
SELECT * FROM check_operators('ts', 'date ''294277-01-01''');
SELECT fed('SELECT k, count(*) FROM f WHERE CASE WHEN d < ''200000-01-01'' THEN d >= ts ELSE true END GROUP BY k');
