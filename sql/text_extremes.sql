--
-- min() and max() of strings, by collations that compare bytes.  Of a group's
-- strings only candidates are fed (candidates.c); the second level chooses.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

-- Lengths around 8 (compared at once) and 16 (the dictionary's), equal
-- beginnings, bytes beyond ASCII, blanks.
CREATE TABLE strings (n int, k int, t text COLLATE "C", v varchar(40) COLLATE "POSIX", c char(20) COLLATE "C", name name, plain text);
INSERT INTO strings
	SELECT row_number() OVER (), (row_number() OVER ()) % 7, x, x, x, x, x
	FROM unnest(ARRAY['', ' ', 'a', 'a ', 'a  ', 'A', 'ab', 'abcdefg', 'abcdefgh', 'abcdefgi', 'abcdefgh ', 'abcdefghi', E'abcdefgh\x01', 'abcdefg ',
					  'abcdefghijklmn', 'abcdefghijklmno', 'abcdefghijklmnop', 'abcdefghijklmnopq', 'abcdefghijklmnoP', 'abcdefghijklmnp',
					  'bbcdefghijklmnop', '0000000000000000', '00000000000000000', '000000000000000',
					  'ä', 'ääääääää', 'äääääääa', 'äääääääää', '日本語', '日本語日本語', E'\x7f', E'\x01', NULL]) AS x;
INSERT INTO strings SELECT n + 100, k + 1, repeat(t, 3), repeat(v, 2)::varchar(40), left(repeat(c, 2), 20), name, plain FROM strings;
INSERT INTO strings SELECT s.* FROM strings s, generate_series(1, 5) g ORDER BY (s.n * g) % 97;
VACUUM ANALYZE strings;

SELECT c, compare(format('SELECT k, min(%s), max(%1$s), count(*), sum(n) FROM strings GROUP BY k', c))
FROM unnest('{t,v,c,name,"plain COLLATE \"C\"","v::text","c::text","(c || t)::char(12)","t || n","nullif(t, ''a'')","NULL::text COLLATE \"C\""}'::text[]) WITH ORDINALITY AS x (c, i) ORDER BY i;
SELECT c, compare(format('SELECT n, min(%s), max(%1$s) FROM strings GROUP BY n', c)) FROM unnest('{t,v,c}'::text[]) AS c;
-- the longer ones only, each against each
SELECT compare('SELECT a.n, min(CASE WHEN a.t < b.t THEN a.t ELSE b.t END), max(b.t) FROM strings a, (SELECT DISTINCT t FROM strings WHERE length(t) > 7) b GROUP BY a.n');
-- by strings; the argument is also a key; of several; expressions over them
SELECT compare('SELECT t, min(v), max(t), min(t), max(c) FROM strings GROUP BY t');
SELECT compare('SELECT t, c, n % 3 = 0, min(v), max(v), min(plain COLLATE "C"), count(v), count(*) FROM strings GROUP BY 1, 2, 3');
SELECT compare('SELECT k, min(t) || ''|'' || max(t), length(min(c)), octet_length(max(c)), min(t) = max(t) FROM strings GROUP BY k');
SELECT compare('SELECT k, max(v) FILTER (WHERE n % 2 = 0), max(v), min(t) FILTER (WHERE n > 1000), min(DISTINCT t), max(DISTINCT t), min(t) FROM strings GROUP BY k');
SELECT compare('SELECT k, min(upper(t)), max(lower(v)), min(left(t, 1)), max(1000000 / n || t) FROM strings GROUP BY k');
SELECT compare('SELECT k, min(t) FROM strings GROUP BY k HAVING min(t) <> '''' AND max(t) > ''b''', nodes => 1);
SELECT compare('SELECT k, count(*) FROM strings GROUP BY k HAVING min(t) = '''' OR max(c) = ''z''');
SELECT compare('SELECT k, max(t) FROM strings GROUP BY k ORDER BY max(t), k LIMIT 3', ordered => true);
SELECT compare('SELECT array_agg(x ORDER BY k) FROM (SELECT k, (min(t), max(c)) AS x FROM strings GROUP BY k) y', nodes => 0);
-- without GROUP BY; of nothing; NULLs only
SELECT compare('SELECT min(t), max(t), min(c), max(v), count(*) FROM strings');
SELECT compare('SELECT min(t) FROM strings WHERE t > ''a''');
SELECT compare('SELECT min(t), max(c), count(*) FROM strings WHERE n < 0');
SELECT compare('SELECT k, min(t), max(c), count(*) FROM strings WHERE n < 0 GROUP BY k');
SELECT compare('SELECT k, min(t), max(c), count(*) FROM strings WHERE t IS NULL GROUP BY k');
SELECT compare('SELECT min(t), max(c), count(*) FROM strings WHERE t IS NULL');
-- grouping sets
SELECT compare('SELECT k, n % 5, min(t), max(v), count(*), sum(n), GROUPING(k) FROM strings GROUP BY ROLLUP (k, n % 5)');
SELECT compare('SELECT k, v, min(t), max(c), avg(n) FROM strings GROUP BY CUBE (k, v)');
SELECT compare('SELECT k, c, n % 2 = 0, min(t), max(t) FROM strings GROUP BY GROUPING SETS ((k, c), (n % 2 = 0), ())');
SELECT compare('SELECT k, min(t), max(t) FROM strings WHERE n < 0 GROUP BY ROLLUP (k)');
-- subplans and rescans
SELECT compare('SELECT g, x.* FROM generate_series(0, 8) g, LATERAL (SELECT k % 2, min(t), max(v), count(*) FROM strings WHERE k <> g GROUP BY k % 2) x');
SELECT compare('SELECT g, (SELECT max(t) FROM strings WHERE k = g GROUP BY k) FROM generate_series(0, 8) g');
SELECT compare('SELECT m, count(*) FROM (SELECT k, n, min(t) AS m FROM strings GROUP BY k, n) x GROUP BY m', nodes => 2);

-- bpchar's trailing blanks are no part of the value, and come back
CREATE TABLE blanks (k int, c char(6) COLLATE "C", d char(30) COLLATE "C", e bpchar COLLATE "C");
INSERT INTO blanks SELECT g % 3, rpad('x' || chr(30 + g % 5), g % 9), rpad('yyyyyyyyyyyyyyyy' || chr(g % 40 + 1), 16 + g % 9), rpad('e', g % 5) FROM generate_series(1, 200) g;
SELECT compare('SELECT k, min(c), max(c), octet_length(min(c)), min(d), max(d), octet_length(max(d)) FROM blanks GROUP BY k');
SELECT compare('SELECT min(c)::bytea, max(d)::bytea FROM blanks');

-- Many groups and strings in all orders: ascending, where each string is a
-- maximum when it comes; descending; any.  Small blocks; entries given away.
CREATE TABLE ordered (k int, j int, s text COLLATE "C", long text COLLATE "C", other text COLLATE "C");
INSERT INTO ordered
	SELECT g % 100, g % 5003, 's' || lpad(g::text, 8, '0'), 'a prefix that is common ' || lpad((100000 - g)::text, 8, '0'), md5(g::text)
	FROM generate_series(1, 20000) g;
INSERT INTO ordered SELECT g % 100, NULL, CASE WHEN g % 3 = 0 THEN 'x' END, NULL, repeat(md5(g::text), g % 100) FROM generate_series(1, 1000) g;
VACUUM ANALYZE ordered;
SELECT k, c, compare(format('SELECT %s, min(%s), max(%2$s), count(*) FROM ordered GROUP BY %1$s', k, c))
FROM unnest('{k,j,"j, k"}'::text[]) k, unnest('{s,long,other}'::text[]) c;
SELECT compare('SELECT j, min(s), max(s), max(long), min(other), sum(k) FROM ordered GROUP BY j', settings => s)
FROM unnest(ARRAY['gpurhh.batch_rows=64', 'gpurhh.batch_rows=1000,work_mem=1MB', 'gpurhh.max_probe_buckets=1,gpurhh.load_factor=0.95', 'gpurhh.device_memory=1MB,gpurhh.batch_rows=500']) s;
-- groups that do not fit: entries go to others, and the second level spills
SELECT compare('SELECT j, min(s), max(s), count(*) FROM ordered GROUP BY j', settings => 'work_mem=64kB,hash_mem_multiplier=1');
SELECT compare('SELECT j, k, s, min(s), max(s), count(*) FROM ordered GROUP BY j, k, s', settings => 'work_mem=64kB,hash_mem_multiplier=1,gpurhh.batch_rows=128');
SELECT (analyze_json('SELECT j, k, s, min(s), max(s), count(*) FROM ordered GROUP BY j, k, s', 'work_mem=64kB,hash_mem_multiplier=1')->>'Spilled Records')::int > 1000 AS spilled;
-- keys of too many bytes to be compared: every string is fed
SELECT compare('SELECT ' || string_agg(format('(s || %s)::varchar AS c%1$s', i), ', ') || ', min(s), max(s) FROM ordered WHERE j < 50 GROUP BY '
			   || string_agg(i::text, ', ')) FROM generate_series(1, 9) i;
-- by rows, and of what is computed in the scan
SELECT compare('SELECT o.k, min(o.s), max(p.long) FROM ordered o JOIN ordered p USING (j) GROUP BY o.k');
SELECT compare('SELECT k, max(CASE WHEN j % 2 = 0 THEN s ELSE long END), min(coalesce(s, long)) FROM ordered GROUP BY k');
-- all candidates: how few there are of 20000 strings; 100 groups, in ascending order
SELECT (analyze_json('SELECT k, min(s) FROM ordered GROUP BY k', 'gpurhh.batch_rows=5000')->>'Groups')::int BETWEEN 200 AND 400 AS few_candidates,
	   (analyze_json('SELECT k, max(s) FROM ordered GROUP BY k', 'gpurhh.batch_rows=5000')->>'Groups')::int BETWEEN 300 AND 800 AS one_a_block;

-- Long values: toasted, compressed, longer than there is memory for.
CREATE TABLE toasted (k int, t text COLLATE "C");
INSERT INTO toasted
	SELECT g % 3, CASE g % 5 WHEN 0 THEN repeat('long', 100000) WHEN 1 THEN repeat('long', 99999) || 'loNg'
			  WHEN 2 THEN repeat(md5((g % 10)::text), 100) WHEN 3 THEN (SELECT string_agg(md5((g % 10 * 1000 + i)::text), '') FROM generate_series(1, 300) i)
			  ELSE 'long' END
	FROM generate_series(1, 100) g;
SELECT compare('SELECT k, md5(min(t)), md5(max(t)), length(max(t)) FROM toasted GROUP BY k');

-- Partitions, and several processes.
CREATE TABLE parted (k int, s text COLLATE "C", l text COLLATE "C") PARTITION BY RANGE (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (3000);
CREATE TABLE parted2 (l text COLLATE "C", gone int, k int, s text COLLATE "C");
ALTER TABLE parted2 DROP gone;
ALTER TABLE parted ATTACH PARTITION parted2 FOR VALUES FROM (3000) TO (MAXVALUE);
INSERT INTO parted SELECT g % 6000, left(md5(g::text), 10), md5(g::text) FROM generate_series(1, 40000) g;
ANALYZE parted;
SELECT compare('SELECT k % 1000, min(s), max(l), count(*) FROM parted GROUP BY 1');
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT compare('SELECT k % 1000, min(s), max(l), count(*) FROM parted GROUP BY 1');
SELECT compare('SELECT j, min(s), max(long), count(*), sum(k) FROM ordered GROUP BY j');
SELECT compare('SELECT min(s), max(long), count(*), sum(k) FROM ordered');
SELECT compare('SELECT k, j % 10, min(s), max(other) FROM ordered GROUP BY ROLLUP (k, j % 10)');
SELECT compare('SELECT j, min(s), max(s), count(*) FROM ordered GROUP BY j', settings => 'parallel_leader_participation=off,work_mem=64kB');
RESET max_parallel_workers_per_gather;

-- Refused, each with its reason.  An error is core's.
CREATE COLLATION nondet (provider = icu, locale = 'und', deterministic = false);
SELECT reason FROM unnest(ARRAY['min(plain COLLATE "en-x-icu")', 'max(t COLLATE nondet)', 'min(e)', 'max(t), count(DISTINCT n)', 'min(t ORDER BY n)']) a,
	gpurhh_refusals(format('SELECT %s FROM (SELECT *, t::bpchar AS e FROM strings) x GROUP BY k', a));
SET work_mem = '64kB';
SELECT reason FROM gpurhh_refusals('SELECT j, min(other) FROM ordered GROUP BY j');
RESET work_mem;
SELECT sqlstate_of('SELECT k, min(t || 1 / (n - 20)) FROM strings GROUP BY k'), sqlstate_of('SET enable_gpu_hashagg = on; SELECT k, min(t || 1 / (n - 20)) FROM strings GROUP BY k');
