--
-- The ladder that rows climb when the device's table does not take them: grow,
-- hand back to the host's table, and from there to temporary files.  Settings
-- reach each rung, EXPLAIN ANALYZE shows that it was reached, and the answer
-- stays the same.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers

CREATE TABLE t AS
	SELECT (g * 7919) % 30011 AS k, nullif(g % 11, 4) AS k2, md5((g * 7919 % 30011)::text)::uuid AS u, g AS v,
		   (g % 1000 - 500)::int2 AS i2, date '2000-01-01' - 20000 + g AS d
	FROM generate_series(1, 45000) g;
ANALYZE t;
-- the same rows, of which the planner expects ten
CREATE FUNCTION unexpected() RETURNS SETOF t LANGUAGE sql VOLATILE ROWS 10 AS 'SELECT * FROM t';

-- Which rungs a query reached: growth, the probe cap, the host, its files.
CREATE FUNCTION rungs(query text, settings text) RETURNS text LANGUAGE sql AS $f$
	SELECT format('%s%s%s%s%s%s', CASE WHEN j->>'Device' = 'host' THEN 'no device, ' END,
				  CASE WHEN (j->>'Rehashes')::int8 > 0 THEN 'grew, ' END,
				  CASE WHEN (j->>'Failed Slots')::int8 > 0 THEN 'met the cap, ' END,
				  CASE WHEN (j->>'Host Rows')::int8 > 0 THEN 'host, ' END,
				  CASE WHEN (j->>'Spilled Records')::int8 > 0 THEN 'files, ' END,
				  CASE WHEN (j->>'Host Rows')::int8 < (j->>'Rows Fed')::int8 AND (j->>'Groups')::int8 > 0 THEN 'device' END)
	FROM analyze_json(query, settings) AS j;
$f$;
-- So many groups are compared by their number and their hashes' sums.
CREATE FUNCTION compare_sums(query text, settings text) RETURNS text LANGUAGE sql AS $f$
	SELECT regexp_replace(compare(format('SELECT count(*), sum(hash_record_extended(q, 0)), sum(hash_record_extended(q, 1)) FROM (%s) AS q', query), settings => settings), '^ok.*', 'ok');
$f$;
CREATE FUNCTION climb(query text, settings text) RETURNS text LANGUAGE sql AS $f$
	SELECT rungs(query, settings) || ': ' || compare_sums(query, settings);
$f$;

-- narrow keys, wide ones, and every state that has to be combined
\set packed 'SELECT k, count(*), sum(v), avg(v::int8), min(v), max(v) FROM t GROUP BY k'
\set wide 'SELECT u, k2, count(*), count(k2), sum(v::int8), avg(v) FILTER (WHERE v % 3 = 0), min(v), max(-v), sum(i2), avg(i2), min(i2), max(i2), min(d), max(d) FROM t GROUP BY u, k2'
\set guessed 'SELECT k, k2, count(*), sum(v), max(v) FROM unexpected() GROUP BY k, k2'

-- What is printed has to be the same for every device and any number of
-- threads, hence the patterns.

-- nothing special: all on the device
SELECT climb(:'packed', NULL) ~ '^(grew, )?device: ok$';
SELECT climb(:'wide', 'gpurhh.device_memory=0') ~ '^(grew, )?device: ok$';
-- more groups than were expected
SELECT climb(:'guessed', 'gpurhh.load_factor=0.5') ~ '^grew, .*device: ok$';
-- the probe cap: it grows, and what meets the cap all the same goes to the host
SELECT climb(:'packed', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95') ~ 'device: ok$';
SELECT climb(:'wide', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95') ~ 'device: ok$';
SELECT climb(:'guessed', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95') ~ '^grew, met the cap, .*device: ok$';
SELECT climb(:'packed', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.5') ~ 'device: ok$';
-- no memory to grow
SELECT climb(:'packed', 'gpurhh.device_memory=1MB') ~ 'host, .*: ok$';
SELECT climb(:'wide', 'gpurhh.device_memory=1MB') ~ 'host, .*: ok$';
SELECT climb(:'guessed', 'gpurhh.device_memory=1MB') ~ 'host, .*: ok$';
SELECT climb(:'packed', 'gpurhh.device_memory=1MB, gpurhh.load_factor=0.95') ~ 'host, .*: ok$';
-- nor on the host
SELECT climb(:'packed', 'gpurhh.device_memory=1MB, work_mem=256kB, hash_mem_multiplier=1') ~ 'host, files, .*: ok$';
SELECT climb(:'wide', 'gpurhh.device_memory=1MB, work_mem=256kB, hash_mem_multiplier=1') ~ 'host, files, .*: ok$';
SELECT climb(:'guessed', 'gpurhh.device_memory=1MB, work_mem=256kB, hash_mem_multiplier=1, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95') ~ 'host, files, .*: ok$';
SELECT climb(:'packed', 'gpurhh.device_memory=1MB, work_mem=64kB, gpurhh.batch_rows=64') ~ 'host, files, .*: ok$';

-- The CPU device, which keeps a part of the groups even in 1 MB.
SET gpurhh.device = 'cpu';
SELECT climb(:'packed', NULL) ~ '^(grew, )?device: ok$';
SELECT climb(:'guessed', NULL) ~ '^grew, device: ok$';
SELECT climb(:'packed', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95') ~ '^(grew, )?met the cap, host, device: ok$';
SELECT climb(:'wide', 'gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95') ~ '^(grew, )?met the cap, host, device: ok$';
SELECT climb(:'guessed', 'gpurhh.device_memory=1MB') ~ '^grew, (met the cap, )?host, (files, )?device: ok$';
SELECT climb(:'guessed', 'gpurhh.device_memory=1MB, gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=1') ~ '^grew, met the cap, host, (files, )?device: ok$';
SELECT climb(:'guessed', 'gpurhh.device_memory=1MB, work_mem=64kB') ~ '^grew, (met the cap, )?host, files, device: ok$';
RESET gpurhh.device;

-- A device that is not there: the CPU device, and a word about it and why.
SELECT j->>'Device', j->>'Device Declined' ~ '^there is no device cuda:99: .' FROM analyze_json('SELECT k, count(*) FROM t GROUP BY k', 'gpurhh.device=cuda:99') j;
SELECT climb(:'packed', 'gpurhh.device=cuda:99') ~ '^(grew, )?device: ok$';

-- The table gets no fuller than it may.
SELECT lf, (j->>'Load')::float8 BETWEEN 0.1 AND lf FROM unnest('{0.5,0.7,0.95}'::float8[]) lf, analyze_json(:'guessed', 'gpurhh.load_factor=' || lf) j;
SELECT n, (j->>'Longest Probe Length')::int <= n FROM unnest('{1,2,3,8}'::int[]) n, analyze_json(:'guessed', 'gpurhh.load_factor=0.95, gpurhh.max_probe_buckets=' || n) j;

-- Groups of which some rows are with the device and some with the host; sums
-- that need more than 64 bits; no value at all.
SELECT compare_sums('SELECT k % 9001, k2, sum(v * 9000000000000::int8), avg(v * 9000000000000::int8), count(*) FILTER (WHERE v < 100), min(v) FILTER (WHERE v < 100), sum(v) FILTER (WHERE NULL) FROM t GROUP BY 1, 2', s)
FROM unnest('{"gpurhh.device_memory=1MB", "gpurhh.device_memory=1MB, work_mem=64kB", "gpurhh.device_memory=1MB, gpurhh.batch_rows=64, gpurhh.max_probe_buckets=1"}'::text[]) s;
-- Keys that first meet the cap and go to the host's files, and that the device
-- takes later, once it has grown: in the output both have to meet.  Many wide
-- columns fill the host's memory with few groups.
SELECT rungs(q, s) ~ '^grew, met the cap, host, files, device$', compare_sums(q, s) FROM (SELECT
	format('SELECT %s, %s FROM (SELECT x.k, x.v, %s FROM unexpected() AS x, generate_series(1, 2)) AS y GROUP BY %1$s',
		   (SELECT string_agg('u' || g, ', ') FROM generate_series(1, 8) g),
		   (SELECT string_agg(format('sum(v::int8 + %s)', g), ', ') FROM generate_series(1, 18) g),
		   (SELECT string_agg('x.u AS u' || g, ', ') FROM generate_series(1, 8) g)) AS q,
	'gpurhh.device=cpu, gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95, work_mem=64kB, hash_mem_multiplier=1'::text AS s) AS q;
-- columns that the key determines, of 1 to 16 bytes, through all of it
CREATE TABLE determined AS SELECT g AS id, g % 2 = 0 AS b, (g - 15000)::int2 AS i2, g * -7 AS i4, -g::int8 << 33 AS i8, md5(g::text)::uuid AS u, nullif(g % 5, 0)::float4 AS f4, -g / 7.0::float8 AS f8 FROM generate_series(1, 30000) g;
ALTER TABLE determined ADD PRIMARY KEY (id);
ANALYZE determined;
SELECT compare_sums('SELECT d.id, b, i2, i4, i8, u, f4, f8, count(*), sum(s) FROM determined d, generate_series(1, 2) s GROUP BY d.id', s)
FROM unnest('{"gpurhh.device_memory=0", "gpurhh.device_memory=1MB", "gpurhh.device_memory=1MB, work_mem=64kB", "gpurhh.max_probe_buckets=1, gpurhh.load_factor=0.95"}'::text[]) s;
-- above it all: HAVING, ORDER BY, LIMIT and a join
SELECT compare('SELECT k, count(*), sum(v) FROM t GROUP BY k HAVING sum(v) % 3 = 0 ORDER BY sum(v) DESC, k LIMIT 500', ordered => true, settings => 'gpurhh.device_memory=1MB, work_mem=64kB');
SELECT compare('SELECT x.k, x.c, y.c FROM (SELECT k, count(*) AS c FROM t GROUP BY k) x JOIN (SELECT k2, count(*) AS c FROM t GROUP BY k2) y ON x.k = y.k2', nodes => 2, settings => 'gpurhh.device_memory=1MB, work_mem=64kB');
