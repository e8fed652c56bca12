--
-- Expressions over columns of pages as grouping columns, arguments and filters:
-- the same values as core's, and the same errors.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
SET max_parallel_workers_per_gather = 0;
CREATE TABLE e (k int4, b bool, s int2, i int4, l int8, r float4, dp float8, d date, u uuid, t text);
INSERT INTO e SELECT g % 10, CASE g % 3 WHEN 0 THEN true WHEN 1 THEN false END, nullif(g % 11 - 5, 0), nullif(g % 13 - 6, 1), nullif(g % 17 - 8, 2),
	CASE g % 8 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' WHEN 3 THEN NULL ELSE (g % 5)::float4 / 10 END,
	CASE g % 8 WHEN 1 THEN 'NaN' WHEN 2 THEN '-0' WHEN 3 THEN '-Infinity' WHEN 4 THEN NULL ELSE (g % 5)::float8 / 10 END,
	date '2024-01-01' + g % 5, CASE WHEN g % 4 > 0 THEN md5((g % 6)::text)::uuid END, CASE WHEN g % 5 > 0 THEN 'x' || g % 7 END
	FROM generate_series(1, 2000) g;
ANALYZE e;

-- Every operator on every pair of types, where no value raises an error.  -0 and
-- 0 are one group, of which core shows whichever comes first; hence the + 0.
CREATE FUNCTION check_arithmetic(a text, b text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
	result text;
	n int := 0;
BEGIN
	FOREACH result IN ARRAY ARRAY(
		SELECT e || ': ' || fed(format('SELECT x + 0, a, b FROM (SELECT %1$s AS x, count(%1$s) AS a, count(*) AS b FROM e GROUP BY 1) q', e))
		FROM unnest('{+,-,*,/}'::text[]) op, unnest(ARRAY[format('(%s %s %s)', a, op, b)]) e)
	LOOP
		IF result NOT LIKE '%: ok, % rows; pages' THEN
			RETURN NEXT result;
		ELSE
			n := n + 1;
		END IF;
	END LOOP;
	RETURN NEXT n || ' ok';
END $f$;
SELECT check_arithmetic('s', '3::int2');
SELECT check_arithmetic('s', '3');
SELECT check_arithmetic('s', '3::int8');
SELECT check_arithmetic('i', '(-3)::int2');
SELECT check_arithmetic('i', '-1');
SELECT check_arithmetic('i', '3::int8');
SELECT check_arithmetic('l', '3::int2');
SELECT check_arithmetic('l', '-1');
SELECT check_arithmetic('l', '3::int8');
SELECT check_arithmetic('3', '(k + 1)');
SELECT check_arithmetic('r', '3::float4');
SELECT check_arithmetic('r', '3::float8');
SELECT check_arithmetic('dp', '3::float4');
SELECT check_arithmetic('dp', '3::float8');
SELECT check_arithmetic('dp', '(i + 100)');
SELECT check_arithmetic('i', '0.5::float8');
SELECT check_arithmetic('-s', '(-k - 1)');
SELECT fed('SELECT s % 3::int2, i % -3, l % 4, mod(i, 5), -dp, -r, count(*) FROM e WHERE (dp = 0 OR r = 0) IS NOT TRUE GROUP BY 1, 2, 3, 4, 5, 6');
SELECT fed('SELECT s % (-1)::int2, i % -1, l % -1, count(*) FROM e GROUP BY 1, 2, 3');
SELECT fed('SELECT s::int4, i::int8, l::int4, i::int2, s::float8, l::float8, r::float8, b::int, count(*), sum(b::int) FROM e WHERE (r = 0) IS NOT TRUE GROUP BY 1, 2, 3, 4, 5, 6, 7, 8');
SELECT fed('SELECT k, sum(i * 2 + s), avg(l - 1), sum(coalesce(i, 0)), max(-l), count(i + s), min(coalesce(s, i, 7)) FROM e GROUP BY k');
SELECT fed('SELECT k % 3, sum(CASE WHEN b THEN i WHEN s > 0 THEN 1 ELSE -1 END), sum(CASE WHEN i > 0 THEN l END) FROM e GROUP BY 1');
SELECT fed('SELECT i > 2, b, i IS NULL, (s > 0 AND b), u = u, count(*) FROM e GROUP BY 1, 2, 3, 4, 5');
SELECT fed('SELECT k, count(*) FILTER (WHERE b), count(i) FILTER (WHERE s > 0 OR b IS NULL), sum(l) FILTER (WHERE i IN (1, 2)), sum(l + 1) FILTER (WHERE i % 2 = 0) FROM e GROUP BY k');
SELECT fed('SELECT CASE WHEN b THEN u END, coalesce(u, ''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11''), CASE WHEN i > 0 THEN d ELSE date ''infinity'' END, count(*) FROM e GROUP BY 1, 2, 3');
SELECT fed('SELECT k, sum(1), count(7), max(k) FROM e GROUP BY k');
SELECT fed('SELECT k, sum(i) FROM e WHERE i > 0 GROUP BY k HAVING sum(i) > 10');
SELECT compare('SELECT k % 3, i + s, sum(l * 2), count(*) FILTER (WHERE b) FROM e WHERE k <> 4 GROUP BY 1, 2', settings => 'gpurhh.batch_rows=64');
SELECT compare('SELECT o.g, q.* FROM generate_series(1, 4) o(g), LATERAL (SELECT k % o.g, sum(i + o.g), count(*) FILTER (WHERE i > o.g) FROM e GROUP BY 1) q');

-- beyond the range: errors of core
CREATE TABLE big (k int4, s int2, i int4, l int8, r float4, dp float8);
INSERT INTO big SELECT g % 3, 1, 1, 1, 1, 1 FROM generate_series(1, 300) g;
INSERT INTO big VALUES (0, 32767, 2147483647, 9223372036854775807, 3e38, 1e308), (1, -32768, -2147483648, -9223372036854775808, -3e38, -1e308), (2, 0, 0, 0, 1e-38, 1e-308), (0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO big SELECT g % 3, 1, 1, 1, 1, 1 FROM generate_series(1, 300) g;
SELECT e || ': ' || same_error(format('SELECT k, count(%s) FROM big GROUP BY k', e))
FROM unnest(ARRAY['s + 1::int2', 's - 1::int2', 's * 2::int2', '-s', 's / (-1)::int2', '1::int2 / s', '1::int2 % s', 's % (-1)::int2',
	'i + 1', 'i - 1', 'i * 2', '-i', 'i / -1', '1 / i', '1 % i', 'i % -1', 'i::int2', 's + 1', 's - i', 's * i', 's / -1', 'i / s',
	'l + 1', 'l - 1', 'l * 2', '-l', 'l / -1', '1 / l', '1 % l', 'l % -1', 'l::int4', 'l::int2', 'i + l', 'l * s', 'l / s', 'i * l',
	'r + r', 'r - 3e38::float4', 'r * 10::float4', 'r / 0.001::float4', 'r / 0::float4', 'r * 1e-20::float4', 'r * dp',
	'dp + dp', 'dp - 1e308', 'dp * 10', 'dp / 0.001', 'dp / 0', 'dp * 1e-100', 'dp / 1e100', 'i * dp', '-dp', '-r']) e;
-- the first in core's order: of rows, then of columns
SELECT same_error('SELECT k, count(1 / (i - 1)), count(l + 1) FROM big WHERE i <> 1 GROUP BY k');
SELECT same_error('SELECT k, count(l + 1), count(1 / i) FROM big WHERE i <> 1 GROUP BY k');
SELECT same_error('SELECT k, count(1 / i), count(s + 1::int2) FROM big GROUP BY k');
-- none where core does not come to it
SELECT fed('SELECT k, sum(i + 1), sum(10 / i) FROM big WHERE i BETWEEN 1 AND 1000 GROUP BY k');
SELECT fed('SELECT k, count(CASE WHEN i <> 0 THEN 10 / i END), count(CASE WHEN l < 1000 AND l > -1000 THEN l * 2 ELSE l END) FROM big GROUP BY k');
SELECT fed('SELECT k, sum(10 / i) FILTER (WHERE i <> 0), avg(i + 1) FILTER (WHERE i < 1000) FROM big GROUP BY k');
SELECT same_error('SELECT k, sum(coalesce(i, 1 / (k * 0))) FROM big GROUP BY k');
SELECT fed('SELECT k, sum(coalesce(i, 1 / (k * 0))) FROM big WHERE i IS NOT NULL GROUP BY k');
SELECT fed('SELECT k, count(i + NULL::int4), count(*) FROM big GROUP BY k');
SELECT fed('SELECT k, count((SELECT 1 WHERE false) + i) FROM big GROUP BY k');
SELECT fed('SELECT k, count(CASE WHEN i > 5000000000 THEN (SELECT (1 / (random() * 0)::int)) ELSE 1 END) FROM big GROUP BY k');
SELECT same_error('SELECT k, count(CASE WHEN i > 5 THEN (SELECT (1 / (random() * 0)::int)) ELSE 1 END) FROM big GROUP BY k');
-- infinite results that are none of an overflow
SELECT fed('SELECT r + r, dp * 2, dp - 1, r / 2::float4, dp * 0.5::float4, count(*) FROM e WHERE (dp = 0 OR r = 0) IS NOT TRUE GROUP BY 1, 2, 3, 4, 5');

-- what is left to core
SELECT fed('SELECT k, max(length(t)) FROM e GROUP BY k');
SELECT fed('SELECT d + 1, count(*) FROM e GROUP BY 1');
SELECT fed('SELECT k, sum(abs(i)) FROM e GROUP BY k');
SELECT fed('SELECT k, sum(dp::int) FROM e WHERE dp BETWEEN 0 AND 1 GROUP BY k');
SELECT fed('SELECT k, sum(i::numeric::int) FROM e GROUP BY k');
SELECT fed('SELECT k, count(t || ''x'') FROM e GROUP BY k');
SELECT fed('SELECT CASE k WHEN 1 THEN 2 ELSE 3 END, count(*) FROM e GROUP BY 1');
SELECT fed('SELECT k, sum(greatest(i, s)) FROM e GROUP BY k');
