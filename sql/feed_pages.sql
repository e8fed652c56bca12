--
-- Heap pages as input: every way in which a tuple can lie in a page, and every
-- way in which it can be invisible.
--
\getenv srcdir PG_ABS_SRCDIR
\set helpers :srcdir '/sql/compare.inc'
\i :helpers
\pset null ''
SET max_parallel_workers_per_gather = 0;

-- all types, at fixed offsets
CREATE TABLE f (b bool, s int2, i int4, l int8, o oid, d date, tm time, ts timestamp, tz timestamptz, r float4, dp float8, u uuid);
INSERT INTO f SELECT g % 2 = 0, g % 5, g % 7, g % 11, g % 13, date '2024-01-01' + g % 17, time '10:00' + g % 19 * interval '1 s',
	timestamp '2024-01-01' + g % 23 * interval '1 h', timestamptz '2024-01-01' + g % 29 * interval '1 h',
	(CASE g % 5 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE (g % 3)::text END)::float4,
	(CASE g % 7 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' WHEN 3 THEN '0' ELSE (g % 3)::text END)::float8, md5((g % 31)::text)::uuid
	FROM generate_series(1, 3000) g;
ANALYZE f;
SELECT fed('SELECT b, count(*), sum(i) FROM f GROUP BY b');
SELECT fed('SELECT s, count(b), avg(l), min(d), max(tm) FROM f GROUP BY s');
SELECT fed('SELECT o, d, max(ts), min(tz), count(u) FROM f GROUP BY o, d');
SELECT fed('SELECT tm, ts, tz, count(*) FROM f GROUP BY tm, ts, tz');
-- -0 and 0 are one group, of which core shows whichever comes first
SELECT fed('SELECT r + 0, dp + 0, c, s FROM (SELECT r, dp, count(*) AS c, sum(s) AS s FROM f GROUP BY r, dp) q');
SELECT fed('SELECT u, i, sum(l) FROM f GROUP BY u, i');
SELECT fed('SELECT u, u AS again, max(l), sum(l), avg(i) FROM f GROUP BY u');
-- not normalised where it is not compared
CREATE TABLE p (id int PRIMARY KEY, r float4, dp float8);
INSERT INTO p VALUES (1, '-0', '-0'), (2, 'NaN', 'NaN'), (3, NULL, 1), (4, 1e-40, NULL);
SELECT fed('SELECT id, r, dp, count(*) FROM p GROUP BY id');

-- NULLs: few, many, only, and in the first and last attribute
CREATE TABLE n (a int4, b int8, c text, d int2, e uuid, z int4);
INSERT INTO n SELECT nullif(g % 3, 0), nullif(g % 5, 1), nullif(repeat('x', g % 11), ''), nullif(g % 4, 2),
	CASE WHEN g % 6 > 1 THEN md5((g % 9)::text)::uuid END, nullif(g % 2, 1) FROM generate_series(1, 2000) g;
INSERT INTO n SELECT NULL, NULL, NULL, NULL, NULL, NULL FROM generate_series(1, 500);
INSERT INTO n (a, b) SELECT 1, 2 FROM generate_series(1, 500);
ANALYZE n;
SELECT fed('SELECT a, count(*), count(a), sum(b) FROM n GROUP BY a');
SELECT fed('SELECT a, b, d, e, z, count(*), sum(z) FROM n GROUP BY a, b, d, e, z');
SELECT fed('SELECT z, count(c), count(e), avg(d), max(b) FROM n GROUP BY z');
SELECT fed('SELECT e, count(*) FILTER (WHERE c IS NULL), count(c) FROM n GROUP BY e');
SELECT compare('SELECT a, b, d, e, z, count(*), sum(z) FROM n GROUP BY a, b, d, e, z', settings => 'gpurhh.batch_rows=64');
-- NULLs in a table whose first columns have none
CREATE TABLE ln (k int4, v int8, w int4, a int4, b int4, c int4, d int4, e int4, t text);
INSERT INTO ln SELECT g % 7, g, nullif(g % 10, 0), 1, NULL, 2, nullif(g % 3, 1), nullif(g % 100, 0), CASE WHEN g % 2 = 0 THEN 'x' END FROM generate_series(1, 2000) g;
ANALYZE ln;
SELECT fed('SELECT k, sum(v), count(*) FROM ln GROUP BY k');
SELECT fed('SELECT k, sum(w), count(b), sum(c), sum(d), count(e), count(t) FROM ln GROUP BY k');

-- behind attributes of no fixed width: short, long, compressed and toasted
CREATE TABLE v (t text, k int4, j jsonb, l int8, c char, s int2, nm name, w int4);
ALTER TABLE v ALTER t SET STORAGE EXTERNAL;
INSERT INTO v SELECT CASE g % 50 WHEN 0 THEN repeat('x', 9000) WHEN 1 THEN repeat('y', 300) ELSE repeat('z', g % 13) END, g % 10,
	CASE WHEN g % 3 > 0 THEN jsonb_build_object('a', repeat('q', g % 700)) END, g, g % 3, g % 8, g % 4, g FROM generate_series(1, 1500) g;
ANALYZE v;
SELECT fed('SELECT k, sum(l), avg(s), sum(w) FROM v GROUP BY k');
SELECT fed('SELECT s, count(t), count(j), count(nm), count(c) FROM v GROUP BY s');
SELECT fed('SELECT w % 10, count(*) FROM v WHERE j IS NOT NULL AND t IS NOT NULL GROUP BY 1');

-- dropped columns, and columns that came later: with and without a default, constant or not
CREATE TABLE d (x int4, k int4, y text, v int8);
INSERT INTO d SELECT g, g % 5, 'y' || g, g FROM generate_series(1, 500) g;
ALTER TABLE d DROP COLUMN x;
INSERT INTO d SELECT g % 5, 'z', g FROM generate_series(1, 500) g;
ALTER TABLE d DROP COLUMN y;
SELECT fed('SELECT k, sum(v) FROM d GROUP BY k');
ALTER TABLE d ADD COLUMN fast int4 DEFAULT 42, ADD COLUMN none int8, ADD COLUMN fu uuid DEFAULT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', ADD COLUMN fb bool DEFAULT true,
	ADD COLUMN fs int2 DEFAULT -7, ADD COLUMN ff float8 DEFAULT '-0', ADD COLUMN ft text DEFAULT 'text', ADD COLUMN late int8 DEFAULT 9999999999;
INSERT INTO d SELECT g % 5, g, g, g, NULL, false, 3, g % 3, NULL, g FROM generate_series(1, 500) g;
SELECT fed('SELECT k, fast, none, count(*) FROM d GROUP BY k, fast, none');
SELECT fed('SELECT fu, fb, fs, ff + 0, count(ft), sum(late), max(fs) FROM d GROUP BY fu, fb, fs, ff + 0');
SELECT fed('SELECT late, count(*) FROM d WHERE fast = 42 AND fb AND ff = 0 AND ft IS NOT NULL GROUP BY late');
ALTER TABLE d ALTER fast SET DEFAULT 43, ADD COLUMN vol float8 DEFAULT random();
SELECT fed('SELECT fast, count(vol), count(*) FROM d GROUP BY fast');
UPDATE d SET v = v + 1 WHERE v < 100;
SELECT fed('SELECT fast, late, sum(v), count(none) FROM d GROUP BY fast, late');
ALTER TABLE d DROP COLUMN fast, DROP COLUMN late;
SELECT fed('SELECT fu, fb, count(*), sum(v) FROM d GROUP BY fu, fb');
-- attributes that were stored before all others are missing
CREATE TABLE m (k int4);
INSERT INTO m SELECT g % 3 FROM generate_series(1, 100) g;
ALTER TABLE m ADD COLUMN v int4 DEFAULT 5, ADD COLUMN w int4;
SELECT fed('SELECT w, v, count(*) FROM m GROUP BY w, v');
INSERT INTO m SELECT g % 3, g % 2, g % 5 FROM generate_series(1, 100) g;
SELECT fed('SELECT w, v, count(*), sum(k) FROM m GROUP BY w, v');
-- a stored generated column
CREATE TABLE gen (k int4, g2 int4 GENERATED ALWAYS AS (k * 2) STORED);
INSERT INTO gen SELECT g % 4 FROM generate_series(1, 100) g;
SELECT fed('SELECT g2, count(*) FROM gen GROUP BY g2');

-- versions: updated (HOT and not), deleted, aborted, in a subtransaction, of this transaction
CREATE TABLE x (k int4, v int4) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO x SELECT g % 10, g FROM generate_series(1, 3000) g;
CREATE INDEX ON x (k);
UPDATE x SET v = v + 10000 WHERE v % 3 = 0;
UPDATE x SET k = k + 1 WHERE v % 5 = 0;
DELETE FROM x WHERE v % 7 = 0;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
SELECT same_figures('SELECT k, count(*), sum(v) FROM x GROUP BY k');
BEGIN;
INSERT INTO x SELECT 99, g FROM generate_series(1, 100) g;
SAVEPOINT s1;
DELETE FROM x WHERE k = 3;
INSERT INTO x SELECT 98, g FROM generate_series(1, 100) g;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
ROLLBACK TO s1;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
UPDATE x SET v = -v WHERE k = 99;
UPDATE x SET v = v - 1 WHERE k = 99;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
ROLLBACK;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
-- all visible, then some pages no more
VACUUM x;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
SELECT same_figures('SELECT k, count(*), sum(v) FROM x GROUP BY k');
DELETE FROM x WHERE v = 10;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
VACUUM (FREEZE) x;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
UPDATE x SET v = v + 1;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
-- locked rows
BEGIN;
SELECT count(*) FROM (SELECT 1 FROM x WHERE k = 2 FOR UPDATE) q;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
COMMIT;
-- a cursor sees what it saw when it was declared
BEGIN;
SET LOCAL enable_gpu_hashagg = on;
DECLARE c CURSOR FOR SELECT k, count(*), sum(v) FROM x WHERE k < 3 GROUP BY k;
DELETE FROM x WHERE k < 2;
SELECT count(*) FROM x WHERE k < 2;
FETCH ALL c \g | sort
COMMIT;
BEGIN;
SET LOCAL enable_gpu_hashagg = on;
DECLARE h CURSOR WITH HOLD FOR SELECT k, count(*) FROM x WHERE k IN (2, 3) GROUP BY k;
COMMIT;
DELETE FROM x WHERE k = 2;
FETCH ALL h \g | sort
CLOSE h;
-- only dead rows, and none at all
DELETE FROM x;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
SELECT same_figures('SELECT k, count(*), sum(v) FROM x GROUP BY k');
VACUUM x;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
TRUNCATE x;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');

-- a repeatable snapshot
INSERT INTO x SELECT g % 10, g FROM generate_series(1, 300) g;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
DELETE FROM x WHERE k = 1;
SELECT fed('SELECT k, count(*), sum(v) FROM x GROUP BY k');
ROLLBACK;

-- kinds of tables
CREATE TEMP TABLE tmp AS SELECT g % 6 AS k, g AS v FROM generate_series(1, 2000) g;
SELECT fed('SELECT k, sum(v) FROM tmp GROUP BY k');
SELECT same_figures('SELECT k, sum(v) FROM tmp GROUP BY k');
CREATE UNLOGGED TABLE unl AS SELECT g % 6 AS k, g AS v FROM generate_series(1, 2000) g;
SELECT fed('SELECT k, sum(v) FROM unl GROUP BY k');
CREATE MATERIALIZED VIEW mv AS SELECT k, v FROM unl;
SELECT fed('SELECT k, sum(v) FROM mv GROUP BY k');
SELECT fed('SELECT relam, count(*) FROM pg_class GROUP BY relam');
CREATE SEQUENCE sq;
SELECT fed('SELECT last_value, count(*) FROM sq GROUP BY last_value');
CREATE TABLE part (k int4, v int4) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (5);
CREATE TABLE part2 (v int4, gone text, k int4);
ALTER TABLE part2 DROP COLUMN gone;
ALTER TABLE part ATTACH PARTITION part2 FOR VALUES FROM (5) TO (10);
INSERT INTO part SELECT g % 10, g FROM generate_series(1, 1000) g;
ANALYZE part;
SELECT fed('SELECT k, sum(v) FROM part GROUP BY k');
SELECT fed('SELECT k, sum(v) FROM part WHERE k > 6 GROUP BY k');
CREATE TABLE parent (k int4, v int4);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent SELECT g % 3, g FROM generate_series(1, 300) g;
INSERT INTO child SELECT g % 3, g, 'e' FROM generate_series(1, 300) g;
SELECT fed('SELECT k, sum(v) FROM parent GROUP BY k');
SELECT fed('SELECT k, sum(v) FROM ONLY parent GROUP BY k');
SELECT fed('SELECT k, sum(v) FROM child GROUP BY k');

-- what stays with rows
SELECT fed('SELECT k, count(ctid), count(x) FROM x GROUP BY k');
SELECT fed('SELECT tableoid, count(*) FROM x GROUP BY tableoid');
SELECT fed('SELECT k, sum(v) FROM x TABLESAMPLE system (100) GROUP BY k');
SELECT fed('SELECT x.k, sum(x.v) FROM x JOIN x y USING (v) GROUP BY x.k');
SELECT fed('SELECT k, count(*) FROM (SELECT k FROM x LIMIT 100) q GROUP BY k');
SELECT fed('SELECT k, count(*) FROM (SELECT k FROM x FOR UPDATE) q GROUP BY k');
SELECT fed('SELECT k, count(*) FROM generate_series(1, 10) k GROUP BY k');
SELECT fed('SELECT k, count(*) FROM x WHERE ctid = ''(0,1)'' GROUP BY k');

-- figures of EXPLAIN ANALYZE, and the collected statistics
SELECT same_figures('SELECT k, count(*) FROM f, LATERAL (SELECT f.s AS k) q GROUP BY k');
SELECT same_figures('SELECT s, count(*) FROM f WHERE i > 3 GROUP BY s');
SELECT same_figures('SELECT s, count(*) FROM f WHERE i > 300 GROUP BY s');
SELECT same_figures('SELECT s % 3, count(*), sum(i + l) FROM f WHERE i > 3 AND s IN (1, 2) GROUP BY 1');
SELECT same_figures('SELECT z, count(c) FROM n WHERE a = 1 OR b = 2 GROUP BY z');
SELECT same_figures('SELECT o.g, (SELECT count(*) FROM (SELECT k FROM x WHERE k < o.g GROUP BY k) q) FROM generate_series(1, 5) o(g)');
CREATE TABLE counted AS SELECT g % 10 AS k FROM generate_series(1, 1000) g;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset_single_table_counters('counted'::regclass);
SET enable_gpu_hashagg = on;
SELECT count(*) FROM (SELECT k, count(*) FROM counted WHERE k > 4 GROUP BY k) q;
SELECT count(*) FROM (SELECT k, count(*) FROM counted GROUP BY k) q;
SELECT pg_stat_force_next_flush();
SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'counted';
RESET enable_gpu_hashagg;

-- rescans, of which each reads all pages again, and pages that span blocks
SELECT compare('SELECT o.g, q.k, q.s FROM generate_series(1, 4) o(g), LATERAL (SELECT k, sum(v) AS s FROM x WHERE v % o.g = 0 AND k <> o.g GROUP BY k) q');
SELECT compare('SELECT o.g, (SELECT sum(s) FROM (SELECT sum(v) AS s FROM x WHERE k < o.g GROUP BY k) q) FROM generate_series(1, 4) o(g)');
SELECT compare('SELECT u, i, b, sum(l), max(ts) FROM f GROUP BY u, i, b', settings => 'gpurhh.batch_rows=64');
SELECT compare('SELECT k, sum(v) FROM x WHERE v % 2 = 0 GROUP BY k', settings => 'gpurhh.batch_rows=64');
