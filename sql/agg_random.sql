--
-- Four hundred GROUP BYs made at random, from a seed, over tables with every
-- supported type; each compared on against off.  Prints differences, and how
-- many there were of what.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

SELECT setseed(0.20);
CREATE TABLE a (id int PRIMARY KEY, k int, s int2, w int8, o oid, b bool, d date, t time, ts timestamp, tz timestamptz, u uuid, f4 float4, f8 float8, n numeric, txt text);
INSERT INTO a
	SELECT g, nullif((random() * 40)::int, 13), (random() * 65535 - 32768)::int2, ((random() - 0.5) * 1.8e19)::int8, (random() * 4294967295)::int8::oid,
		   (random() * 3)::int = 1, date '2000-01-01' + (random() * 200 - 100)::int, time '00:00' + (random() * 86399)::int * interval '1 s',
		   timestamp '2000-01-01' + (random() * 200 - 100)::int * interval '1 h', timestamptz '2000-01-01' + (random() * 2e9 - 1e9)::int * interval '1 s',
		   md5((random() * 300)::int::text)::uuid, ((random() * 9)::int - 4)::float4 / 2, (random() - 0.5)::float8 * 1e300, random()::numeric(10, 4), 'text ' || (random() * 9)::int
	FROM generate_series(1, 1500) g;
-- NULLs, and the extremes
UPDATE a SET w = CASE WHEN id % 3 = 0 THEN -1 ELSE 9223372036854775807 END, s = -32768, d = 'infinity', ts = '-infinity', f8 = 'NaN', f4 = 'Infinity', u = '00000000-0000-0000-0000-000000000000' WHERE id % 17 = 0;
UPDATE a SET w = -9223372036854775808, s = NULL, o = NULL, d = NULL, t = NULL, tz = NULL, u = NULL, f8 = NULL WHERE id % 13 = 0;
UPDATE a SET b = NULL, s = 32767, ts = NULL, f4 = NULL, txt = NULL, n = NULL, o = 4294967295 WHERE id % 11 = 0;
CREATE TABLE c (id int, k int, v int, w int8, b bool, u uuid);
INSERT INTO c SELECT g, nullif((random() * 30)::int, 7), (random() * 4294967295 - 2147483648)::int8::int, (random() * 1e15)::int8, random() < 0.4, md5((random() * 20)::int::text)::uuid FROM generate_series(1, 400) g;
ANALYZE a, c;

CREATE FUNCTION pick(choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $f$
	SELECT choices[1 + floor(random() * cardinality(choices))::int];
$f$;

CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql VOLATILE AS $f$
DECLARE
	joined bool := random() < 0.3;
	keys text[] := '{a.k,a.s,a.w,a.o,a.b,a.d,a.t,a.ts,a.tz,a.u,a.f4,a.f8,a.id,a.k % 5,a.s > 0,a.w / 1000000000000000,a.k + a.s::int,"date_trunc(''month'', a.ts)",isfinite(a.d),"coalesce(a.k, -1)",a.id % 50,"a.b IS NULL",length(a.txt),-a.f8,a.f4 * 2,a.id::int8 << 40}';
	args text[] := '{a.k,a.s,a.w,a.id,a.id - 700,a.s * 3,a.w / 3,a.w % 1000,-a.k,a.k::int8 * 4294967296,"nullif(a.id, 70)"}';
	times text[] := '{a.d,a.t,a.ts,a.tz,a.d + 1}';
	anything text[] := '{a.txt,a.n,a.b,a.u,a.f8,a.w,a,a.txt || a.txt}';
	conditions text[] := '{a.b,NOT a.b,a.k > 20,a.s < 0,a.w IS NULL,a.id % 3 = 0,a.txt LIKE ''%3'',a.f8 > 0,a.d < ''2000-01-01'',a.n > 0.5,a.u IS NOT NULL,"NULL",a.id < 0}';
	chosen_keys text[] := '{}';
	outputs text[] := '{}';
	aggregates text[] := '{}';
	one text;
	made text;
BEGIN
	IF joined THEN
		keys := keys || '{c.k,c.u,c.b,c.v % 9,c.id}'::text[];
		args := args || '{c.v,c.w,c.k,c.v - a.k,c.v::int8 * a.id}'::text[];
		conditions := conditions || '{c.b,c.k = a.k,c.v > 0}'::text[];
	END IF;
	FOR i IN 1 .. 1 + floor(random() * random() * 6)::int LOOP
		chosen_keys := chosen_keys || pick(keys);
	END LOOP;
	FOR i IN 0 .. floor(random() * 6)::int LOOP
		one := CASE floor(random() * 8)::int
			WHEN 0 THEN 'count(*)'
			WHEN 1 THEN format('count(%s)', pick(anything))
			WHEN 2 THEN format('%s(%s)', pick('{min,max,count}'), pick(times))
			ELSE format('%s(%s)', pick('{sum,avg,min,max,count}'), pick(args)) END;
		IF random() < 0.3 THEN
			one := one || format(' FILTER (WHERE %s)', pick(conditions));
		END IF;
		aggregates := aggregates || one;
	END LOOP;
	-- (floats are shown with 0 added: which of 0 and -0 a group shows is open)
	FOREACH one IN ARRAY chosen_keys LOOP
		IF random() < 0.8 THEN
			outputs := outputs || CASE WHEN one ~ '\.f[48]' THEN format('(%s) + 0', one) ELSE one END;
		END IF;
	END LOOP;
	outputs := outputs || aggregates;
	made := format('SELECT %s FROM a', array_to_string(outputs, ', '));
	IF joined THEN
		made := made || format(' %s JOIN c ON %s', pick('{"",LEFT,FULL}'), pick('{a.k = c.k,a.id = c.id,a.u = c.u,a.id = c.v % 2000}'));
	END IF;
	IF random() < 0.4 THEN
		made := made || ' WHERE ' || pick(conditions);
	END IF;
	made := made || ' GROUP BY ' || array_to_string(chosen_keys, ', ');
	IF random() < 0.3 THEN
		made := made || ' HAVING ' || pick(ARRAY['count(*) > 1', 'count(*) % 2 = 1', 'sum(a.id) > 5000', 'min(a.w) IS NULL', 'max(a.s) > 0 AND count(*) < 100', 'false', 'avg(a.k) > 20']);
	END IF;
	IF random() < 0.15 THEN
		made := format('SELECT x.*, count(*) OVER () FROM (%s) x', made);
	ELSIF random() < 0.15 THEN
		made := made || format(' ORDER BY %s', aggregates[1]);
	END IF;
	RETURN made;
END $f$;

CREATE FUNCTION random_settings() RETURNS text LANGUAGE sql VOLATILE AS $f$
	SELECT CASE WHEN random() < 0.5 THEN 'gpurhh.batch_rows=65536'
		ELSE concat_ws(', ', 'gpurhh.batch_rows=' || pick('{64,100,1000}'), 'gpurhh.max_probe_buckets=' || pick('{1,2,8}'),
					   'gpurhh.load_factor=' || pick('{0.5,0.8,0.95}'), CASE WHEN random() < 0.5 THEN 'gpurhh.device_memory=1MB, work_mem=64kB' END) END;
$f$;

-- A difference is shown with all that it takes to see it again: the query, the
-- settings, the rows.
CREATE TABLE tried (n int, query text, settings text, result text);
DO $$
DECLARE
	q text;
	s text;
	r text;
BEGIN
	FOR n IN 1 .. 400 LOOP
		q := random_query();
		s := random_settings();
		BEGIN
			r := compare(q, settings => s);
		EXCEPTION WHEN OTHERS THEN
			r := SQLSTATE || ' ' || SQLERRM;
			-- where it fails without the node, too, the query is to blame
			BEGIN
				PERFORM cardinality(rows_of(q));
			EXCEPTION WHEN OTHERS THEN
				r := CASE WHEN r = SQLSTATE || ' ' || SQLERRM THEN 'ok, the same error' ELSE r || ' instead of ' || SQLERRM END;
			END;
		END;
		INSERT INTO tried VALUES (n, q, s, r);
	END LOOP;
END $$;
SELECT * FROM tried WHERE result !~ '^ok' ORDER BY n LIMIT 10;
SELECT count(*) FILTER (WHERE result ~ '^ok'), count(*) FROM tried;
-- the random queries are worth something
SELECT count(*) FILTER (WHERE result ~ 'error') < 15, count(*) FILTER (WHERE result = 'ok, 0 rows') < 100, count(*) FILTER (WHERE result ~ '\d\d\d+ rows') > 60, count(DISTINCT query) > 350 FROM tried;
