--
-- Strings as grouping columns: text, varchar, bpchar, bytea and domains over
-- them.  Up to 15 bytes are a key themselves, longer ones are in a dictionary.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE DOMAIN word AS text CHECK (VALUE <> 'forbidden');
CREATE DOMAIN short_code AS char(4);

-- All lengths around the limit, with equal beginnings, equal ends, and blanks.
CREATE TABLE strings (t text, v varchar(40), c char(20), b bytea, w word, s short_code, n int);
INSERT INTO strings
	SELECT x, x, x, convert_to(x, 'UTF8'), x, left(x, 4), row_number() OVER ()
	FROM unnest(ARRAY['', ' ', '  ', 'a', 'a ', 'a  ', 'A', 'b', 'ab', 'abc', 'abcd', 'abcdefg', 'abcdefgh', 'abcdefghi',
					  'abcdefghijklmn', 'abcdefghijklmno', 'abcdefghijklmnop', 'abcdefghijklmnopq',
					  'bbcdefghijklmno', 'bbcdefghijklmnop', 'abcdefghijklmnoP', '0000000000000000', '00000000000000000',
					  'ä', 'ääääääää', 'äääääääa', 'äääääääää', '日本語', '日本語日本', '日本語日本語', E'\\', E'a\nb', NULL]) AS x;
INSERT INTO strings SELECT repeat(t, 3), repeat(v, 2)::varchar(40), left(repeat(c, 2), 20), b || b, repeat(w, 3), s, n + 100 FROM strings;
-- each value some times, not next to each other
INSERT INTO strings SELECT s.* FROM strings s, generate_series(1, 5) g;
ANALYZE strings;

SELECT c, compare(format('SELECT %I, count(*), count(%1$I), sum(n) FROM strings GROUP BY %1$I', c))
FROM unnest('{t,v,c,b,w,s}'::text[]) WITH ORDINALITY AS x (c, i) ORDER BY i;

-- the values themselves, once, as a reader can check them
SET enable_gpu_hashagg = on;
SELECT '<' || t || '>', count(*) FROM strings WHERE n < 100 GROUP BY t ORDER BY t COLLATE "C";
SELECT '<' || c::bytea::text || '>', octet_length(c), count(*) FROM strings WHERE n < 5 GROUP BY c ORDER BY c COLLATE "C";
RESET enable_gpu_hashagg;

-- Every pair of types, both ways round; with others; all together.
SELECT count(*), result
FROM unnest('{t,v,c,b,w,s,n}'::text[]) AS x (c1), unnest('{t,v,c,b,w,s,n}'::text[]) AS y (c2),
	 compare(format('SELECT x.%I, y.%I, count(*), min(x.n), max(y.n) FROM (SELECT * FROM strings WHERE n %% 3 = 0) x, (SELECT DISTINCT * FROM strings) y GROUP BY 1, 2', c1, c2)) AS r,
	 regexp_replace(r, '\d+', 'N') AS result
GROUP BY result ORDER BY 1 DESC, 2;
SELECT compare('SELECT t, v, c, b, w, s, n % 7, n % 2 = 0, count(*), sum(n), avg(n), min(n), max(n) FROM strings GROUP BY 1, 2, 3, 4, 5, 6, 7, 8');
SELECT compare('SELECT t, count(*) FILTER (WHERE n > 50), sum(n) FILTER (WHERE c > ''b'') FROM strings GROUP BY t');
SELECT compare('SELECT n % 3, count(t), count(v), count(c), count(b), count(w) FILTER (WHERE t > ''b'') FROM strings GROUP BY 1');

-- Up to 32 columns of strings.
SELECT compare('SELECT ' || string_agg(format('left(t, %s) AS c%1$s', i), ', ') || ', count(*) FROM strings GROUP BY '
			   || string_agg(i::text, ', ')) FROM generate_series(1, 32) i;

-- Bytes that could be taken for a key of the dictionary: 0xFF at place 15, and
-- lengths at place 15 of what is longer; zeros behind and within.
CREATE TABLE bytes (b bytea);
INSERT INTO bytes
	SELECT decode(x, 'hex') FROM unnest(ARRAY[
		'', '00', '0000', '0000000000000000000000000000', '000000000000000000000000000000', '00000000000000000000000000000000',
		'000000000000000000000000000000ff', '0000000000000000000000000000000f', '00000000000000000000000000000001',
		'ffffffffffffffffffffffffffffff', 'ffffffffffffffffffffffffffffffff', 'ffffffffffffffffffffffffffffffffff',
		'61626300000000000000000000000003', '616263', '61626300', 'ff', '00ff', 'ff00']) AS x;
INSERT INTO bytes SELECT b || decode(repeat('00', g), 'hex') FROM bytes, generate_series(1, 20) g;
INSERT INTO bytes SELECT b FROM bytes;
SELECT compare('SELECT b, count(*) FROM bytes GROUP BY b');
SELECT compare('SELECT b, length(b), count(*) FROM bytes GROUP BY b, length(b)');

-- Trailing blanks: not a part of bpchar's value, but of text's.
CREATE TABLE blanks (c char(6), d char(30), t text);
INSERT INTO blanks SELECT rpad('x', g % 9), rpad('yyyyyyyyyyyyyyyy', 16 + g % 9), rpad('x', g % 9) FROM generate_series(1, 200) g;
SELECT compare('SELECT c, octet_length(c), count(*) FROM blanks GROUP BY c');
SELECT compare('SELECT c, d, octet_length(d), count(*) FROM blanks GROUP BY c, d');
SELECT compare('SELECT t, octet_length(t), count(*) FROM blanks GROUP BY t');
SELECT compare('SELECT c::text, count(*) FROM blanks GROUP BY c::text');
SELECT compare('SELECT c || ''|'', count(*) FROM blanks GROUP BY c || ''|''');
SELECT compare('SELECT upper(t) || t, count(*), octet_length(upper(t) || t) FROM blanks GROUP BY upper(t) || t');

-- Long values: toasted, compressed, in the row; with short and long headers.
CREATE TABLE toasted (i int, t text, b bytea, s text);
ALTER TABLE toasted ALTER s SET STORAGE PLAIN;
INSERT INTO toasted
	SELECT g, CASE g % 5 WHEN 0 THEN repeat('long', 250000) WHEN 1 THEN repeat('long', 249999) || 'loNg'
			  WHEN 2 THEN repeat(md5((g % 10)::text), 100) WHEN 3 THEN (SELECT string_agg(md5((g % 10 * 1000 + i)::text), '') FROM generate_series(1, 300) i)
			  ELSE 'short' END,
		   decode(repeat(md5((g % 7)::text), 5 + g % 7 * 30), 'hex'), repeat('s', 100 + g % 50)
	FROM generate_series(1, 100) g;
SELECT compare('SELECT t, count(*), sum(i) FROM toasted GROUP BY t');
SELECT compare('SELECT b, s, count(*), sum(i) FROM toasted GROUP BY b, s');
SELECT compare('SELECT t, b, count(*) FROM toasted GROUP BY t, b', settings => 'work_mem=64kB');

-- Pages: columns before and behind others of no fixed width, NULLs among them,
-- rows that are older than a column, dropped columns.
CREATE TABLE pages (a text, i2 int2, k text, i8 int8, d bytea, i4 int4, b bool, c char(3), last text);
INSERT INTO pages SELECT repeat('a', g % 300), g, 'k' || g % 50, g, decode(repeat('0f', g % 40), 'hex'), g, g % 2 = 0, g % 11, 'last of the columns ' || g % 13
	FROM generate_series(1, 4000) g;
SELECT k, compare(format('SELECT %s, count(*), sum(i4), sum(i8), max(i2), count(last) FROM pages GROUP BY %1$s', k))
FROM unnest('{a,k,d,c,last,"last, k, a, d","b, c, k","k, i2"}'::text[]) WITH ORDINALITY AS x (k, n) ORDER BY n;
INSERT INTO pages SELECT NULL, g, 'k' || g % 50, g, NULL, g, g % 2 = 0, g % 11, NULL FROM generate_series(1, 500) g;
INSERT INTO pages SELECT repeat('a', g % 300), NULL, NULL, g, decode(repeat('0f', g % 40), 'hex'), NULL, NULL, NULL, 'x' FROM generate_series(1, 500) g;
ALTER TABLE pages ADD added text DEFAULT 'the default of a column that was added', ADD added2 text DEFAULT 'short', ADD added3 text;
INSERT INTO pages SELECT 'new', 1, 'k', 1, 'new', 1, true, 'new', 'new', 'added' || g % 3 FROM generate_series(1, 500) g;
ALTER TABLE pages DROP COLUMN d;
SELECT k, compare(format('SELECT %s, count(*), sum(i4), sum(i8), max(i2), count(last) FROM pages GROUP BY %1$s', k))
FROM unnest('{a,k,c,last,"last, k, a","b, c, k",added,added2,added3,"added, added2, added3, k"}'::text[]) WITH ORDINALITY AS x (k, n) ORDER BY n;
SELECT compare('SELECT k, count(*), sum(i4) FROM pages WHERE i2 > 100 AND last IS NOT NULL GROUP BY k');

-- EXPLAIN says so: pages also where the key is a column cast without a change.
SET enable_gpu_hashagg = on;
EXPLAIN (COSTS OFF) SELECT k, sum(i4) FROM pages GROUP BY k;
EXPLAIN (COSTS OFF) SELECT v::text, sum(n) FROM strings GROUP BY v::text;
EXPLAIN (COSTS OFF, VERBOSE) SELECT upper(k), sum(i4) FROM pages GROUP BY upper(k);
RESET enable_gpu_hashagg;

-- WHERE, HAVING and expressions, by pages: =, <>, IN, CASE, COALESCE.
CREATE TABLE filtered (n int, t text, v varchar(30), c char(12), b bytea, w word, big text);
INSERT INTO filtered
	SELECT g, x, x, left(x, 12), convert_to(x, 'UTF8'), x, CASE WHEN g % 3 = 0 THEN repeat(x, 3000) END
	FROM generate_series(1, 2000) g,
		 LATERAL (SELECT (ARRAY['one', 'two ', 'a longer string, ' || g % 5, '', NULL, 'one  ', 'ONE', 'thirteen', 'äöü'])[1 + g % 9] AS x) y;
CREATE FUNCTION by_pages(query text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
	n int;
BEGIN
	SET LOCAL enable_gpu_hashagg = on;
	SELECT count(*) INTO n FROM explained(query) AS line WHERE line LIKE '%Feed: pages%';
	SET LOCAL enable_gpu_hashagg = off;
	RETURN compare(query) || CASE n WHEN 0 THEN ', by rows' ELSE ', by pages' END;
END $f$;
SELECT condition, by_pages(format('SELECT n %% 7, count(*), sum(n) FROM filtered WHERE %s GROUP BY n %% 7', condition))
FROM unnest(ARRAY[$$t = 'one'$$, $$t <> 'one'$$, $$'one' = t$$, 't = v', 't = v AND v <> t', $$v = 'one'$$, 'v <> t', $$c = 'one'$$, $$c <> 'one '$$, $$c = 'one   '$$,
				  'c = v', 'c::text = t', $$b = '\x6f6e65'$$, $$b <> '\x'$$, $$w = 'ONE'$$, 'w <> t', 't = big', $$big = repeat('one', 3000)$$, $$big <> repeat('one', 3000)$$,
				  $$t IN ('one', '', 'two')$$, $$t NOT IN ('one', '', 'two ')$$, $$t IN ('one', NULL)$$, $$t NOT IN ('one', NULL)$$, $$c IN ('one', 'two')$$,
				  $$v IN ('one', 'two ')$$, $$b IN ('\x', '\x6f6e65')$$, $$big IN (repeat('one', 3000), '')$$, $$t = ANY ('{}')$$, $$t = 'a longer string, 3'$$,
				  $$t = ANY ('{one,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"a longer string, 1"}')$$,
				  $$t = 'one' OR n < 100$$, 't IS NULL', $$coalesce(t, 'none') = 'none'$$, $$n > 5 AND CASE WHEN n % 2 = 0 THEN t WHEN n % 5 = 0 THEN v END = 'one'$$,
				  $$t = (SELECT 'thirteen'::text)$$, $$(t = 'one') IS NOT TRUE$$, $$t > 'one'$$, $$t LIKE 'o%'$$, $$lower(t) = 'one'$$, $$t COLLATE "C" = 'one'$$]) WITH ORDINALITY AS x (condition, i) ORDER BY i;
SELECT key, by_pages(format('SELECT %s, count(*), sum(n) FROM filtered GROUP BY 1', key))
FROM unnest(ARRAY[$$CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd, and this is longer' END$$, $$CASE WHEN n % 3 = 0 THEN t WHEN t = 'one' THEN 'the first' END$$, $$coalesce(t, v, 'none')$$,
				  $$coalesce(big, 'none')$$, $$coalesce(b, '\x00')$$, 't::varchar', 'v::text', $$CASE WHEN n > 10 THEN t ELSE (1 / (n - n + 1))::text END$$]) WITH ORDINALITY AS x (key, i) ORDER BY i;
SELECT by_pages($$SELECT t, count(*) FROM filtered GROUP BY t HAVING t = 'one' OR t IN ('', 'a longer string, 2') OR t IS NULL$$);
SELECT by_pages($$SELECT c, count(*) FROM filtered GROUP BY c HAVING c = 'one'$$);
SELECT by_pages($$SELECT t, count(*) FROM filtered WHERE t <> '' GROUP BY t HAVING t <> 'one' AND count(*) > 100$$);
SELECT compare($$SELECT x.i, y.* FROM unnest(ARRAY['one', NULL, 'a longer string, 4']) AS x (i), LATERAL (SELECT t, count(*) FROM filtered WHERE t = x.i OR v = ANY (ARRAY[x.i, '']) GROUP BY t) y$$);
-- what may raise an error, behind conditions on strings
SELECT by_pages($$SELECT t, count(*), sum(CASE WHEN t = 'one' THEN 1 / (n % 9) ELSE 0 END) FROM filtered WHERE n % 9 <> 0 OR t <> 'one' GROUP BY t$$);

-- What the grouping columns determine.
CREATE TABLE named (id int PRIMARY KEY, name text, code char(20), other varchar(50));
INSERT INTO named SELECT g, repeat('name ', g % 10) || g, 'c' || g, CASE WHEN g % 3 = 0 THEN 'other than that' || g END FROM generate_series(1, 300) g;
CREATE TABLE uses (id int, n int);
INSERT INTO uses SELECT g % 320, g FROM generate_series(1, 5000) g;
SELECT compare('SELECT named.id, name, code, other, count(*), sum(n) FROM named JOIN uses USING (id) GROUP BY named.id');
SELECT compare('SELECT named.id, name, code, other, count(*), sum(n) FROM uses LEFT JOIN named USING (id) GROUP BY named.id');
SELECT compare('SELECT named.id, name, code, other, count(*), sum(n) FROM uses LEFT JOIN named USING (id) GROUP BY named.id', settings => 'work_mem=64kB');

-- Collations: deterministic ones, whichever they are; the grouping clause's
-- decides.
CREATE COLLATION deterministic (provider = icu, locale = 'und');
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE collated (d text COLLATE deterministic, x text COLLATE nocase, c text COLLATE "C");
INSERT INTO collated SELECT y, y, y FROM unnest('{a,A,ä,Ä,b,B}'::text[]) y, generate_series(1, 3);
SELECT compare('SELECT d, count(*) FROM collated GROUP BY d');
SELECT compare('SELECT c, count(*) FROM collated GROUP BY c');
SELECT compare('SELECT x COLLATE "C", count(*) FROM collated GROUP BY x COLLATE "C"');
SELECT compare('SELECT x, count(*) FROM collated GROUP BY x', nodes => -1);
SELECT by_pages('SELECT c, count(*) FROM collated WHERE x = ''a'' GROUP BY c');
SELECT by_pages('SELECT c, count(*) FROM collated WHERE x IN (''a'', ''ä'') GROUP BY c');
SELECT by_pages('SELECT c, count(*) FROM collated WHERE d = x COLLATE nocase AND x = ''B'' COLLATE "C" GROUP BY c');
SELECT by_pages('SELECT x COLLATE "C", count(*) FROM collated WHERE x COLLATE "C" IN (''a'', ''b'') GROUP BY x COLLATE "C"');
SELECT compare('SELECT d COLLATE nocase, count(*) FROM collated GROUP BY d COLLATE nocase', nodes => -1);
SELECT reason FROM gpurhh_refusals('SELECT x, count(*) FROM collated GROUP BY x');
SELECT reason FROM gpurhh_refusals('SELECT c::bpchar, count(*) FROM blanks GROUP BY c::bpchar');
SELECT reason FROM gpurhh_refusals('SELECT t::bpchar, count(*) FROM blanks GROUP BY t::bpchar');

-- Sizes: no row, one row, one group, all groups apart; HAVING on a string.
CREATE TABLE no_strings (LIKE strings);
SELECT compare('SELECT t, count(*) FROM no_strings GROUP BY t');
SELECT compare('SELECT t, count(*) FROM (SELECT t FROM strings LIMIT 1) x GROUP BY t');
SELECT compare('SELECT ''the same long string'' || left(t, 0), count(*) FROM strings GROUP BY 1');
CREATE TABLE distinct_strings AS SELECT md5(g::text) AS long, 'key' || g AS short, g FROM generate_series(1, 20000) g;
SELECT compare('SELECT long, count(*), sum(g) FROM distinct_strings GROUP BY long');
SELECT compare('SELECT short, count(*), sum(g) FROM distinct_strings GROUP BY short');
SELECT compare('SELECT short, long, count(*), sum(g) FROM distinct_strings GROUP BY short, long');
SELECT compare('SELECT left(long, 2), count(*) FROM distinct_strings GROUP BY 1 HAVING left(long, 2) > ''8'' AND count(*) > 78');
SELECT compare('SELECT t, count(*) FROM strings GROUP BY t HAVING t IS NULL');
SELECT compare('SELECT t, count(*) FROM strings GROUP BY t HAVING t LIKE ''a%''');

-- What the device refuses, with strings.
SELECT compare('SELECT long, count(*), sum(g) FROM distinct_strings GROUP BY long', settings => 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95');
SELECT compare('SELECT long, count(*), sum(g) FROM distinct_strings GROUP BY long', settings => 'gpurhh.device_memory=1MB, work_mem=64kB');
