--
-- WHERE on columns of pages: every operator, NULLs, parameters, row-level security.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET max_parallel_workers_per_gather = 0;
CREATE TABLE f (k int4, b bool, s int2, i int4, l int8, o oid, d date, tm time, ts timestamp, tz timestamptz, r float4, dp float8, u uuid, t text);
INSERT INTO f SELECT g % 10, CASE g % 3 WHEN 0 THEN true WHEN 1 THEN false END, nullif(g % 11 - 5, 0), nullif(g % 13 - 6, 1), nullif(g % 17 - 8, 2), nullif(4294967290 + g % 5, 4294967292)::oid,
	CASE g % 9 WHEN 0 THEN '-infinity' WHEN 1 THEN 'infinity' ELSE date '2024-01-01' + g % 5 END, time '10:00' + g % 4 * interval '1 h',
	CASE g % 9 WHEN 0 THEN 'infinity' ELSE timestamp '2024-01-01' + g % 5 * interval '1 d' END, timestamptz '2024-01-01' + g % 6 * interval '1 d',
	CASE g % 8 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' WHEN 3 THEN NULL WHEN 4 THEN '-Infinity' ELSE (g % 5)::float4 / 10 END,
	CASE g % 8 WHEN 1 THEN 'NaN' WHEN 2 THEN '-0' WHEN 3 THEN 'Infinity' WHEN 4 THEN NULL WHEN 5 THEN '-Infinity' ELSE (g % 5)::float8 / 10 END,
	CASE WHEN g % 4 > 0 THEN md5((g % 6)::text)::uuid END, CASE WHEN g % 5 > 0 THEN 'x' || g % 7 END
	FROM generate_series(1, 2000) g;
ANALYZE f;

-- every operator of every type, with a value, NaN, and a column; both ways round
CREATE FUNCTION check_operators(column_name text, other text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	result text;
	n int := 0;
BEGIN
	FOREACH result IN ARRAY ARRAY(
		SELECT format(template, column_name, op, other) || ': ' || fed(format('SELECT k, count(*), sum(i) FROM f WHERE ' || template || ' GROUP BY k', column_name, op, other))
		FROM unnest('{=,<>,<,<=,>,>=}'::text[]) op, unnest(ARRAY['%1$s %2$s %3$s', '%3$s %2$s %1$s', 'NOT %1$s %2$s %3$s']) template)
	LOOP
		IF result NOT LIKE '%: ok, % rows; pages' THEN
			RETURN NEXT result;
		ELSE
			n := n + 1;
		END IF;
	END LOOP;
	RETURN NEXT n || ' ok';
END $f$;
SELECT check_operators('b', 'coalesce(b, false)');
SELECT check_operators('s', '2::int2');
SELECT check_operators('s', '2');
SELECT check_operators('s', '2::int8');
SELECT check_operators('i', '2::int2');
SELECT check_operators('i', '2');
SELECT check_operators('i', '-3000000000');
SELECT check_operators('l', '2::int2');
SELECT check_operators('l', '2');
SELECT check_operators('l', '2::int8');
SELECT check_operators('s', 'i');
SELECT check_operators('s', 'l');
SELECT check_operators('i', 'l');
SELECT check_operators('o', '4294967293::oid');
SELECT check_operators('d', 'date ''2024-01-03''');
SELECT check_operators('d', 'date ''infinity''');
SELECT check_operators('tm', 'time ''12:00''');
SELECT check_operators('ts', 'timestamp ''2024-01-03''');
SELECT check_operators('tz', 'timestamptz ''2024-01-03''');
SELECT check_operators('r', '0.2::float4');
SELECT check_operators('r', '0.2::float8');
SELECT check_operators('r', 'float4 ''NaN''');
SELECT check_operators('dp', '0.2::float4');
SELECT check_operators('dp', '0.2::float8');
SELECT check_operators('dp', 'float8 ''NaN''');
SELECT check_operators('dp', 'float8 ''0''');
SELECT check_operators('r', 'dp');
SELECT check_operators('dp', 'dp');
SELECT check_operators('u', format('uuid %L', md5('3')));

-- what core makes of booleans
SELECT fed('SELECT k, count(*) FROM f WHERE b GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE NOT b GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE b IS TRUE GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE b IS NOT TRUE GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE b IS FALSE GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE b IS NOT FALSE GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE b IS UNKNOWN GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE b IS NOT UNKNOWN GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE (i > 3) IS NOT TRUE GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE (i > 3) = b GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i IS NULL AND u IS NOT NULL AND t IS NOT NULL GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE t IS NULL GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i BETWEEN -2 AND s AND ts < tz::timestamp + interval ''1 s'' GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i BETWEEN -2 AND s GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i NOT BETWEEN -2 AND 2 OR s IS NULL GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE NOT (i > 0 AND s > 0) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE NOT (i > 0 OR s > 0 OR b) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE (i > 0 OR b) AND (s > 0 OR l IS NULL) OR (u IS NULL AND NOT b) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE CASE WHEN b THEN i > 0 WHEN b IS NULL THEN NULL ELSE s > 0 END GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE coalesce(b, i > 0, false) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE coalesce(i, s, l) > 2 GROUP BY k');

-- lists
SELECT fed('SELECT k, count(*) FROM f WHERE i IN (1, 2, 3) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i IN (1, 2, NULL) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i NOT IN (1, 2, 3) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE (i IN (1, 2, NULL)) IS NULL GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE (i NOT IN (1, 2, NULL)) IS NULL GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i = ANY (ARRAY[-1, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 2]) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i <> ALL (ARRAY[-1, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 2]) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE l = ANY (ARRAY[-1, 0, 4]) AND s = ANY (ARRAY[-1, 0, 4, -3]) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE dp IN (0.1, ''NaN'', 0) AND r NOT IN (0.2::float4, ''Infinity'') GROUP BY k');
SELECT fed(format('SELECT k, count(*) FROM f WHERE u IN (%L, %L) AND d IN (date ''2024-01-02'', ''infinity'') GROUP BY k', md5('3')::uuid, md5('4')::uuid));
SELECT fed('SELECT k, count(*) FROM f WHERE tm IN (time ''10:00'', ''11:00'') AND ts NOT IN (timestamp ''2024-01-02'', ''infinity'') AND o IN (4294967290, 4294967293) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE (i = ANY (''{}''::int[])) IS FALSE GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i = ANY (NULL::int[]) IS NULL GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i > ANY (ARRAY[1, 2]) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i IN (s, 2) GROUP BY k');

-- parameters: of a prepared statement, of a subquery, from an outer query; NULL and changing
SET plan_cache_mode = force_generic_plan;
SET enable_gpu_hashagg = on;
PREPARE p (int, int[], float8, uuid, bool) AS SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM f WHERE i > $1 AND i <> ALL ($2) AND (dp < $3) IS NOT FALSE AND (u = $4 OR b = $5) GROUP BY k) q;
CREATE FUNCTION prepared(arguments text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	r record;
BEGIN
	FOR r IN EXECUTE 'EXECUTE p(' || arguments || ')' LOOP
		RETURN NEXT r::text;
	END LOOP;
END $f$;
EXPLAIN (COSTS OFF) EXECUTE p(1, '{3}', 0.3, NULL, true);
SELECT prepared('-1, ''{3}'', 0.3, NULL, true');
SELECT prepared('-1, ''{3,NULL}'', 0.3, NULL, true');
SELECT prepared('NULL, ''{3}'', 0.3, NULL, true');
SELECT prepared('-2, ''{}'', NULL, NULL, false');
SELECT prepared('-2, NULL, NULL, NULL, false');
DEALLOCATE p;
SET enable_gpu_hashagg = off;
PREPARE p (int, int[], float8, uuid, bool) AS SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM f WHERE i > $1 AND i <> ALL ($2) AND (dp < $3) IS NOT FALSE AND (u = $4 OR b = $5) GROUP BY k) q;
SELECT prepared('-1, ''{3}'', 0.3, NULL, true');
SELECT prepared('-1, ''{3,NULL}'', 0.3, NULL, true');
SELECT prepared('NULL, ''{3}'', 0.3, NULL, true');
SELECT prepared('-2, ''{}'', NULL, NULL, false');
SELECT prepared('-2, NULL, NULL, NULL, false');
RESET plan_cache_mode;
RESET enable_gpu_hashagg;
CREATE FUNCTION in_plpgsql(low int) RETURNS SETOF record LANGUAGE plpgsql AS $f$
DECLARE
	high int := low + 3;
BEGIN
	RETURN QUERY SELECT k, count(*) FROM f WHERE i BETWEEN low AND high GROUP BY k;
	high := NULL;
	RETURN QUERY SELECT k, count(*) FROM f WHERE i > high GROUP BY k;
END $f$;
SELECT compare('SELECT * FROM in_plpgsql(-1) AS (k int, c int8)', nodes => 0);
SELECT fed('SELECT k, count(*) FROM f WHERE i > (SELECT 2) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i > (SELECT max(i) - 2 FROM f) AND l < (SELECT 3) GROUP BY k');
SELECT compare('SELECT o.g, q.* FROM generate_series(-3, 3) o(g), LATERAL (SELECT k, count(*) FROM f WHERE i > o.g AND s < o.g GROUP BY k) q');
SELECT compare('SELECT o.g, (SELECT count(*) FROM (SELECT k FROM f WHERE i = o.g OR l = o.g GROUP BY k) q) FROM (VALUES (1), (NULL), (3)) o(g)');
-- a subquery runs, and fails, only where core comes to it
SELECT same_error('SELECT k, count(*) FROM f WHERE i > (SELECT (1 / (random() * 0)::int)) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i > 100 AND s = (SELECT (1 / (random() * 0)::int)) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i IS NULL OR i IS NOT NULL OR s = (SELECT (1 / (random() * 0)::int)) GROUP BY k');
CREATE TABLE nothing (k int, v int);
SELECT fed('SELECT k, count(*) FROM nothing WHERE v = (SELECT (1 / (random() * 0)::int)) GROUP BY k');
SELECT compare('SELECT k, count(*) FROM nothing WHERE v > 3 GROUP BY k');

-- arithmetic in WHERE; errors are core's, and only where core has them
SELECT fed('SELECT k, count(*) FROM f WHERE i % 3 = 0 AND s * 2 > l - 1 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE s <> -1 AND 10 / (s + 1) > 2 GROUP BY k');
SELECT same_error('SELECT k, count(*) FROM f WHERE 10 / (s + 1) > 2 AND s <> -1 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE s = -1 OR 10 / (s + 1) > 2 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE CASE WHEN s <> -1 THEN 10 / (s + 1) > 2 END GROUP BY k');
SELECT same_error('SELECT 100 / (k - 3), count(*) FROM f WHERE k = 3 OR 10 / (s + 1) > 2 GROUP BY 1');
SELECT same_error('SELECT 100 / (k - 2), sum(2147483647 + i) FROM f WHERE 10 / (k - 7) IS NOT NULL GROUP BY 1');

-- what is left to core
SELECT fed('SELECT k, count(*) FROM f WHERE t = ''x1'' GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE t LIKE ''x%'' AND i > 2 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i > 2 AND random() >= 0 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE d < timestamptz ''2024-01-03'' GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i IS DISTINCT FROM 3 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i = (SELECT max(x.i) FROM f x WHERE x.k = f.k) GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE i::numeric / 1 > 2 GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE CASE i WHEN 1 THEN true ELSE b END GROUP BY k');
SELECT fed('SELECT k, count(*) FROM f WHERE f IS NOT NULL GROUP BY k');

-- row-level security: the policy comes first, and a function that leaks sees no other row
CREATE TABLE secured (k int4, v int4, owner_name name DEFAULT 'nobody', level int4);
INSERT INTO secured SELECT g % 5, g, 'nobody', g % 3 FROM generate_series(1, 300) g;
CREATE POLICY low ON secured USING (level < 2);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $f$
BEGIN
	IF $1 % 3 = 2 THEN RAISE EXCEPTION 'leaked %', $1; END IF;
	RETURN true;
END $f$;
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_gpurhh_reader;
RESET client_min_messages;
CREATE ROLE regress_gpurhh_reader;
GRANT USAGE, CREATE ON SCHEMA gpurhh_test TO regress_gpurhh_reader;
GRANT SELECT ON secured TO regress_gpurhh_reader;
SELECT fed('SELECT k, count(*), sum(v) FROM secured GROUP BY k');
SET ROLE regress_gpurhh_reader;
SELECT fed('SELECT k, count(*), sum(v) FROM secured GROUP BY k');
SELECT fed('SELECT k, count(*), sum(v) FROM secured WHERE v > 30 AND level <> 0 GROUP BY k');
SELECT fed('SELECT k, count(*), sum(v) FROM secured WHERE leak(v) GROUP BY k');
SELECT fed('SELECT k, count(*), max(v) FROM secured WHERE 10 / (level - 2) < 0 GROUP BY k');
SET row_security = off;
SELECT sqlstate_of('SELECT k, count(*) FROM secured GROUP BY k');
RESET row_security;
SELECT sum(c) FROM (SELECT k, count(*) AS c FROM secured GROUP BY k) q;
RESET ROLE;
SELECT same_error('SELECT k, count(*) FROM secured WHERE leak(v) GROUP BY k');
REVOKE ALL ON secured FROM regress_gpurhh_reader;
SET ROLE regress_gpurhh_reader;
SELECT sqlstate_of('SELECT k, count(*) FROM secured GROUP BY k');
RESET ROLE;
REVOKE ALL ON SCHEMA gpurhh_test FROM regress_gpurhh_reader;
DROP ROLE regress_gpurhh_reader;
