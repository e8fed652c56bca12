# joins.sh: shapes of joins for auto_suite.sh: below aggregates, and (rows-...) those whose rows
# are needed as rows, by a sort, a window function, LIMIT, INSERT or the client.
#
# f is the fact table.  d has a tenth as many rows, e a tenth of those, tiny 10, and h as
# many as f; the columns that identify their rows are unique.  m has two rows for each
# key of d, and dup ten for each of tiny's.  empty is empty.  f.k, and k8, kt, kd, kn of
# other types, and a and b together, lead to d; f.k2 and d.e to e; f.s to tiny; f.id, in
# order, and f.u, in none, to h.  z is skewed.  c1, c2 and c3 are equal, which the planner
# does not know.  f.nope leads nowhere.  p is f's partitioned likeness.
#
# What the planner is told wrong: "under" is estimated a hundred times too low or more,
# "over" as much too high.

list=$(cat <<'END'
name|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
name-five|SELECT d.name, count(*), sum(f.v), avg(f.w), min(d.x), max(f.p) FROM f JOIN d ON d.id = f.k GROUP BY d.name
key|SELECT f.k, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.k
key-most|SELECT f.id, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.id
count|SELECT count(*) FROM f JOIN d ON d.id = f.k
sums|SELECT sum(f.v), sum(d.x) FROM f JOIN d ON d.id = f.k
product|SELECT sum(f.v * d.x) FROM f JOIN d ON d.id = f.k
product-numeric|SELECT d.name, sum(f.p * d.rate) FROM f JOIN d ON d.id = f.k GROUP BY d.name
int8|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id8 = f.k8 GROUP BY d.name
text|SELECT d.name, sum(f.v) FROM f JOIN d ON d.idt = f.kt GROUP BY d.name
date|SELECT d.name, sum(f.v) FROM f JOIN d ON d.idd = f.kd GROUP BY d.name
numeric|SELECT d.name, sum(f.v) FROM f JOIN d ON d.idn = f.kn GROUP BY d.name
two-keys|SELECT d.name, sum(f.v) FROM f JOIN d ON d.a = f.a AND d.b = f.b GROUP BY d.name
int4-int8|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id8 = f.k GROUP BY d.name
key-expression|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k + 0 GROUP BY d.name
and-greater|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k AND f.v > d.x GROUP BY d.name
having|SELECT f.k, count(*) FROM f JOIN d ON d.id = f.k GROUP BY f.k HAVING count(*) > 15
distinct|SELECT DISTINCT d.name, f.s FROM f JOIN d ON d.id = f.k
count-distinct|SELECT d.name, count(DISTINCT f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
rollup|SELECT d.name, f.s, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY ROLLUP (d.name, f.s)
filter|SELECT d.name, sum(f.v) FILTER (WHERE f.v < 500), count(*) FILTER (WHERE f.s = 3) FROM f JOIN d ON d.id = f.k GROUP BY d.name
min-text|SELECT f.s, min(d.name COLLATE "C") FROM f JOIN d ON d.id = f.k GROUP BY f.s
case|SELECT d.name, sum(CASE WHEN f.s < 5 THEN f.v ELSE 0 END) FROM f JOIN d ON d.id = f.k GROUP BY d.name
dim-half|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.x < 500 GROUP BY d.name
dim-hundredth|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.x < 10 GROUP BY d.name
dim-none|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.x < -1 GROUP BY d.name
dim-text|SELECT d.id, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.name LIKE '%7%' GROUP BY d.id
fact-half|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.v < 500 GROUP BY d.name
fact-hundredth|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.v < 10 GROUP BY d.name
both-tenth|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.v < 100 AND d.x < 100 GROUP BY d.name
index-fact-one|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.id = 500 GROUP BY d.name
index-fact-thousand|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.id BETWEEN 100 AND 1099 GROUP BY d.name
index-fact-tenth|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.id < (SELECT max(id) / 10 FROM f) GROUP BY d.name
index-dim-one|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.id = 7 GROUP BY d.name
index-dim-ten|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.id < 10 GROUP BY d.name
index-dim-thousand|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.id < 1000 GROUP BY d.name
index-huge-one|SELECT sum(f.v + h.y) FROM f JOIN h ON h.id = f.id WHERE f.id < 20
index-both|SELECT d.x, e.name, count(*) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e WHERE f.id < 300 GROUP BY d.x, e.name
sorted-count|SELECT count(*) FROM f JOIN h ON h.id = f.id
sorted-group|SELECT f.id, sum(h.y) FROM f JOIN h ON h.id = f.id GROUP BY f.id
sorted-order|SELECT f.id, sum(h.y) FROM f JOIN h ON h.id = f.id GROUP BY f.id ORDER BY f.id
sorted-limit|SELECT f.id, sum(h.y) FROM f JOIN h ON h.id = f.id GROUP BY f.id ORDER BY f.id LIMIT 10
sorted-only|SET enable_hashjoin = off; SELECT sum(h.y) FROM f JOIN h ON h.id = f.id
limit-first|SELECT f.id, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.id ORDER BY f.id LIMIT 10
limit-dim|SELECT d.id, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.id ORDER BY d.id LIMIT 10
limit-top|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name ORDER BY 2 DESC, 1 LIMIT 10
limit-top-key|SELECT f.k, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.k ORDER BY 2 DESC, 1 LIMIT 10
limit-any|SELECT count(*) FROM (SELECT f.k, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.k LIMIT 10) r
limit-distinct|SELECT count(*) FROM (SELECT DISTINCT f.s, d.name FROM f JOIN d ON d.id = f.k LIMIT 10) r
limit-below|SELECT d.name, count(*) FROM (SELECT k FROM f WHERE v < 500 ORDER BY id LIMIT 10) f JOIN d ON d.id = f.k GROUP BY d.name
exists-one|SELECT 1 WHERE EXISTS (SELECT d.name FROM f JOIN d ON d.id = f.k GROUP BY d.name)
tiny|SELECT tiny.name, sum(f.v) FROM f JOIN tiny ON tiny.id = f.s GROUP BY tiny.name
tiny-key|SELECT f.k, sum(tiny.x) FROM f JOIN tiny ON tiny.id = f.s GROUP BY f.k
tiny-one|SELECT sum(f.v) FROM f JOIN tiny ON tiny.id = f.s WHERE tiny.name = 'tiny 3'
tiny-probe|SELECT tiny.name, count(*), sum(d.x) FROM tiny JOIN d ON d.id = tiny.id GROUP BY tiny.name
tiny-values|SELECT r.x, sum(f.v) FROM f JOIN (VALUES (1, 10), (2, 20), (3, 30)) r(s, x) ON r.s = f.s GROUP BY r.x
dup|SELECT dup.x, count(*), sum(f.v) FROM f JOIN dup ON dup.id = f.s GROUP BY dup.x
huge|SELECT sum(h.y), sum(f.v) FROM f JOIN h ON h.id = f.u
huge-group|SELECT h.y, sum(f.v) FROM f JOIN h ON h.id = f.u GROUP BY h.y
huge-key|SELECT h.id, sum(f.v) FROM f JOIN h ON h.id = f.u GROUP BY h.id
huge-half|SELECT h.y, sum(f.v) FROM f JOIN h ON h.id = f.u WHERE h.y < 500 GROUP BY h.y
huge-spills|SET work_mem = '4MB'; SELECT h.y, sum(f.v) FROM f JOIN h ON h.id = f.u GROUP BY h.y
huge-below-few|SELECT sum(d.x), sum(h.y) FROM d JOIN h ON h.k = d.id WHERE d.x < 100
self-parent|SELECT count(*), sum(c.v - q.v) FROM f c JOIN f q ON q.id = c.k
self-id|SELECT c.s, sum(q.v) FROM f c JOIN f q ON q.id = c.id GROUP BY c.s
self-three|SELECT a.s, count(*) FROM f a JOIN f b ON b.id = a.u JOIN f c ON c.id = b.k GROUP BY a.s
left|SELECT d.name, sum(f.v) FROM f LEFT JOIN d ON d.id = f.k AND d.x < 500 GROUP BY d.name
left-count|SELECT count(*), count(d.x), sum(d.x) FROM f LEFT JOIN d ON d.id = f.k AND d.x < 500
left-build|SELECT d.id, count(f.id) FROM d LEFT JOIN f ON f.k = d.id GROUP BY d.id
left-none|SELECT f.s, count(*), count(d.id) FROM f LEFT JOIN d ON d.id = f.nope GROUP BY f.s
left-is-null|SELECT f.s, count(*) FROM f LEFT JOIN d ON d.id = f.k AND d.x < 500 WHERE d.id IS NULL GROUP BY f.s
full|SELECT count(*), count(d.id) FROM f FULL JOIN d ON d.id = f.u
in|SELECT f.s, sum(f.v) FROM f WHERE f.k IN (SELECT id FROM d WHERE x < 500) GROUP BY f.s
in-hundredth|SELECT f.s, sum(f.v) FROM f WHERE f.k IN (SELECT id FROM d WHERE x < 10) GROUP BY f.s
in-huge|SELECT f.s, sum(f.v) FROM f WHERE f.u IN (SELECT k FROM h WHERE y < 500) GROUP BY f.s
exists|SELECT f.k, count(*) FROM f WHERE EXISTS (SELECT FROM d WHERE d.id = f.k AND d.x < 500) GROUP BY f.k
exists-many|SELECT count(*), sum(x) FROM d WHERE EXISTS (SELECT FROM f WHERE f.k = d.id AND f.v < 50)
not-exists|SELECT f.s, count(*) FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.id = f.k AND d.x < 500) GROUP BY f.s
not-exists-huge|SELECT f.s, count(*) FROM f WHERE NOT EXISTS (SELECT FROM h WHERE h.id = f.u AND h.y < 500) GROUP BY f.s
not-in|SELECT f.s, count(*) FROM f WHERE f.k NOT IN (SELECT id FROM d WHERE x < 10) GROUP BY f.s
many|SELECT count(*), sum(m.x) FROM f JOIN m ON m.k = f.k
many-group|SELECT d.name, count(*) FROM f JOIN m ON m.k = f.k JOIN d ON d.id = f.k GROUP BY d.name
many-skew|SELECT count(*), sum(dup.x) FROM f JOIN dup ON dup.id = f.z
skew|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.z GROUP BY d.name
skew-key|SELECT f.z, sum(d.x) FROM f JOIN d ON d.id = f.z GROUP BY f.z
empty-build|SELECT empty.name, sum(f.v) FROM f JOIN empty ON empty.id = f.k GROUP BY empty.name
empty-left|SELECT f.s, count(empty.id) FROM f LEFT JOIN empty ON empty.id = f.k GROUP BY f.s
empty-probe|SELECT d.name, sum(empty.x) FROM empty JOIN d ON d.id = empty.id GROUP BY d.name
chain-three|SELECT e.name, sum(f.v) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e GROUP BY e.name
chain-three-hundredth|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e WHERE e.x < 10 GROUP BY d.name
chain-four|SELECT tiny.name, sum(f.v), sum(d.x) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e JOIN tiny ON tiny.id = e.g GROUP BY tiny.name
chain-huge|SELECT d.name, sum(f.v) FROM f JOIN h ON h.id = f.u JOIN d ON d.id = h.k GROUP BY d.name
star-three|SELECT e.name, tiny.name, sum(f.v) FROM f JOIN e ON e.id = f.k2 JOIN tiny ON tiny.id = f.s GROUP BY e.name, tiny.name
star-four|SELECT d.name, sum(f.v), sum(e.x) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = f.k2 JOIN tiny ON tiny.id = f.s GROUP BY d.name
star-filters|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = f.k2 JOIN tiny ON tiny.id = f.s WHERE d.x < 100 AND e.x < 100 AND tiny.x < 50 GROUP BY d.name
star-six|SELECT d.name, count(*), sum(d2.x), sum(e2.x) FROM f JOIN d ON d.id = f.k JOIN d d2 ON d2.id8 = f.k8 JOIN e ON e.id = f.k2 JOIN e e2 ON e2.id = f.c1 JOIN tiny ON tiny.id = f.s GROUP BY d.name
star-left|SELECT d.name, tiny.name, sum(f.v) FROM f LEFT JOIN d ON d.id = f.k LEFT JOIN tiny ON tiny.id = f.s GROUP BY d.name, tiny.name
star-exists|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE EXISTS (SELECT FROM e WHERE e.id = f.k2 AND e.x < 300) GROUP BY d.name
snowflake|SELECT e.name, tiny.name, sum(f.v) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e JOIN tiny ON tiny.id = f.s GROUP BY e.name, tiny.name
snowflake-six|SELECT e.name, count(*), sum(f.v) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e JOIN tiny ON tiny.id = e.g JOIN e e2 ON e2.id = f.k2 JOIN tiny t2 ON t2.id = e2.g WHERE t2.x < 50 GROUP BY e.name
cross|SELECT tiny.name, e.name, count(*) FROM tiny, e WHERE e.id < 1000 GROUP BY tiny.name, e.name
range|SELECT tiny.name, sum(d.x) FROM d JOIN tiny ON d.x BETWEEN tiny.x AND tiny.x + 9 GROUP BY tiny.name
or|SELECT tiny.name, count(*) FROM f JOIN tiny ON tiny.id = f.s OR tiny.x = f.v GROUP BY tiny.name
of-groups|SELECT d.name, sum(r.c) FROM d JOIN (SELECT k, count(*) AS c FROM f GROUP BY k) r ON r.k = d.id GROUP BY d.name
with-groups|SELECT f.s, sum(r.c) FROM f JOIN (SELECT k, count(*) AS c FROM h GROUP BY k) r ON r.k = f.k GROUP BY f.s
with-limit|SELECT f.s, sum(r.x) FROM f JOIN (SELECT id, x FROM d ORDER BY x, id LIMIT 100) r ON r.id = f.k GROUP BY f.s
cte|WITH c AS MATERIALIZED (SELECT f.v, d.name FROM f JOIN d ON d.id = f.k) SELECT name, sum(v) FROM c GROUP BY name
union-all|SELECT name, sum(v) FROM (SELECT d.name, f.v FROM f JOIN d ON d.id = f.k UNION ALL SELECT e.name, f.v FROM f JOIN e ON e.id = f.k2) r GROUP BY name
lateral|SELECT x, q.* FROM generate_series(1, 5) x, LATERAL (SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.s = x GROUP BY d.name) q
partitions|SELECT d.name, sum(p.v) FROM p JOIN d ON d.id = p.k GROUP BY d.name
partitions-pairwise|SET enable_partitionwise_join = on; SELECT a.s, sum(b.v) FROM p a JOIN p b ON b.id = a.id GROUP BY a.s
serial-name|SET max_parallel_workers_per_gather = 0; SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
serial-key|SET max_parallel_workers_per_gather = 0; SELECT f.k, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.k
serial-huge|SET max_parallel_workers_per_gather = 0; SELECT h.y, sum(f.v) FROM f JOIN h ON h.id = f.u GROUP BY h.y
serial-snowflake|SET max_parallel_workers_per_gather = 0; SELECT e.name, tiny.name, sum(f.v) FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e JOIN tiny ON tiny.id = f.s GROUP BY e.name, tiny.name
serial-sorted|SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM f JOIN h ON h.id = f.id
under-fact|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.c1 = 5 AND f.c2 = 5 AND f.c3 = 5 GROUP BY d.name
under-fact-huge|SELECT sum(h.y) FROM f JOIN h ON h.id = f.u WHERE f.v % 1 = 0
under-build|SELECT f.s, sum(h.y) FROM f JOIN h ON h.id = f.u WHERE h.y % 1 = 0 GROUP BY f.s
under-dim|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.x % 1 = 0 GROUP BY d.name
under-function|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE ten(f.s) = 10 GROUP BY d.name
under-keys|SELECT f.s, sum(q.v) FROM f JOIN (SELECT * FROM f WHERE id < 5000) q ON q.c1 = f.c1 AND q.c2 = f.c2 AND q.c3 = f.c3 AND q.id = f.id GROUP BY f.s
under-star|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k JOIN tiny ON tiny.id = f.s WHERE f.v % 1 = 0 AND d.x % 1 = 0 GROUP BY d.name
over-fact|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE f.v + 0 < 3 GROUP BY d.name
over-dim|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE d.x + 0 < 3 GROUP BY d.name
over-build|SELECT f.s, sum(h.y) FROM f JOIN h ON h.id = f.u WHERE h.y + 0 < 3 GROUP BY f.s
over-function|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k WHERE rare(f.v) GROUP BY d.name
over-join|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.nope GROUP BY d.name
over-groups|SELECT f.c1, f.c2, f.c3, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.c1, f.c2, f.c3
under-groups|SELECT f.id + f.v * 0, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY 1
stale-fact-small|UPDATE pg_class SET reltuples = reltuples / 100 WHERE relname = 'f'; SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
stale-fact-large|UPDATE pg_class SET reltuples = reltuples * 100 WHERE relname = 'f'; SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
stale-dim-small|UPDATE pg_class SET reltuples = reltuples / 100 WHERE relname = 'd'; SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
stale-dim-large|UPDATE pg_class SET reltuples = reltuples * 100 WHERE relname = 'd'; SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k GROUP BY d.name
stale-huge-small|UPDATE pg_class SET reltuples = reltuples / 100 WHERE relname = 'h'; SELECT h.y, sum(f.v) FROM f JOIN h ON h.id = f.u GROUP BY h.y
stale-huge-large|UPDATE pg_class SET reltuples = reltuples * 100 WHERE relname = 'h'; SELECT h.y, sum(f.v) FROM f JOIN h ON h.id = f.u GROUP BY h.y
stale-both|UPDATE pg_class SET reltuples = CASE relname WHEN 'f' THEN reltuples / 100 ELSE reltuples * 100 END WHERE relname IN ('f', 'd'); SELECT f.k, sum(d.x) FROM f JOIN d ON d.id = f.k GROUP BY f.k
right|SELECT d.x, count(f.id), sum(f.v) FROM f RIGHT JOIN d ON d.id = f.u GROUP BY d.x
right-none|SELECT d.x, count(f.id) FROM f RIGHT JOIN d ON d.id = f.nope GROUP BY d.x
right-star|SELECT e.name, count(f.id), count(*) FROM f JOIN d ON d.id = f.k RIGHT JOIN e ON e.id = d.e GROUP BY e.name
full-group|SELECT d.x, count(f.id), sum(f.v) FROM f FULL JOIN d ON d.id = f.u GROUP BY d.x
full-huge|SELECT count(*), count(f.id), count(h.id) FROM f FULL JOIN h ON h.id = f.u
left-condition|SELECT d.name, count(*) FROM f LEFT JOIN d ON d.id = f.k AND d.x < f.v GROUP BY d.name
exists-condition|SELECT f.s, count(*) FROM f WHERE EXISTS (SELECT FROM m WHERE m.k = f.k AND m.x > f.v) GROUP BY f.s
not-exists-condition|SELECT f.s, count(*) FROM f WHERE NOT EXISTS (SELECT FROM m WHERE m.k = f.k AND m.x > f.v) GROUP BY f.s
exists-skew|SELECT d.x, count(*) FROM d WHERE EXISTS (SELECT FROM f WHERE f.z = d.id AND f.v > d.x) GROUP BY d.x
int8-int4|SELECT d.name, sum(f.v) FROM f JOIN d ON d.id = f.k8 GROUP BY d.name
scales|SELECT d.name, sum(f.v) FROM f JOIN d ON d.idn4 = f.kn GROUP BY d.name
probe-groups|SELECT d.x, sum(r.c) FROM (SELECT k, count(*) AS c FROM f GROUP BY k) r JOIN d ON d.id = r.k GROUP BY d.x
probe-function|SELECT d.name, count(*) FROM generate_series(1, (SELECT max(id) FROM f)) g JOIN d ON d.id = g GROUP BY d.name
probe-union|SELECT d.name, sum(r.v) FROM (SELECT k, v FROM f UNION ALL SELECT k, y FROM h) r JOIN d ON d.id = r.k GROUP BY d.name
probe-distinct|SELECT d.name, count(*) FROM (SELECT DISTINCT k, s FROM f) r JOIN d ON d.id = r.k GROUP BY d.name
probe-sample|SELECT d.name, count(*) FROM f TABLESAMPLE SYSTEM (50) REPEATABLE (1) JOIN d ON d.id = f.k GROUP BY d.name
probe-limit|SELECT d.name, count(*) FROM (SELECT k FROM f ORDER BY id LIMIT 5000) r JOIN d ON d.id = r.k GROUP BY d.name
probe-random|SELECT d.name, count(*) FROM (SELECT k FROM f WHERE random() >= 0) r JOIN d ON d.id = r.k GROUP BY d.name
bushy|SELECT d.x, sum(h.y) FROM f JOIN d ON d.id = f.k JOIN h ON h.id = f.u JOIN d d2 ON d2.id = h.k WHERE d.x < 100 AND d2.x < 100 GROUP BY d.x
bushy-wide|SELECT d.x, e.name, sum(h.y) FROM f JOIN d ON d.id = f.k JOIN h ON h.id = f.u JOIN d d2 ON d2.id = h.k JOIN e ON e.id = d2.e WHERE e.x < 100 GROUP BY d.x, e.name
bushy-groups|SELECT count(*), sum(a.c * b.c) FROM (SELECT k, count(*) AS c FROM f GROUP BY k) a JOIN (SELECT k, count(*) AS c FROM h GROUP BY k) b ON b.k = a.k
left-huge|SELECT f.s, count(h.id), sum(h.y) FROM f LEFT JOIN h ON h.id = f.u AND h.y < 500 GROUP BY f.s
left-chain|SELECT e.name, count(*) FROM f LEFT JOIN d ON d.id = f.k AND d.x < 500 LEFT JOIN e ON e.id = d.e GROUP BY e.name
right-condition|SELECT d.x, count(f.id) FROM f RIGHT JOIN d ON d.id = f.k AND f.v < d.x GROUP BY d.x
in-condition-huge|SELECT count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM h WHERE h.id = f.u AND h.y > f.v)
rows|SELECT f.id, f.v, d.x FROM f JOIN d ON d.id = f.k
rows-text|SELECT f.id, f.kt, d.name FROM f JOIN d ON d.id = f.k
rows-many-columns|SELECT f.id, f.u, f.k8, f.kt, f.kd, f.kn, f.w, f.p, d.id8, d.idt, d.idd, d.idn, d.name FROM f JOIN d ON d.id = f.k
rows-huge|SELECT f.id, h.y FROM f JOIN h ON h.id = f.u
rows-dim-hundredth|SELECT f.id, d.x FROM f JOIN d ON d.id = f.k WHERE d.x < 10
rows-fact-hundredth|SELECT f.id, d.x FROM f JOIN d ON d.id = f.k WHERE f.v < 10
rows-index|SELECT f.id, d.x FROM f JOIN d ON d.id = f.k WHERE f.id BETWEEN 100 AND 1099
rows-sort|SELECT f.id, d.name FROM f JOIN d ON d.id = f.k ORDER BY d.x, f.id
rows-sorted|SELECT f.id, h.y FROM f JOIN h ON h.id = f.id ORDER BY f.id
rows-window|SELECT f.id, sum(f.v) OVER (PARTITION BY d.x) FROM f JOIN d ON d.id = f.k
rows-window-order|SELECT f.id, row_number() OVER (PARTITION BY d.x ORDER BY f.id) FROM f JOIN d ON d.id = f.k
rows-window-top|SELECT * FROM (SELECT f.id, d.x, row_number() OVER (PARTITION BY d.name ORDER BY f.v, f.id) AS n FROM f JOIN d ON d.id = f.k) r WHERE n <= 2
rows-limit|SELECT count(*) FROM (SELECT f.id, d.name FROM f JOIN d ON d.id = f.k LIMIT 10) r
rows-limit-thousand|SELECT count(*) FROM (SELECT f.id, d.name FROM f JOIN d ON d.id = f.k LIMIT 1000) r
rows-limit-filter|SELECT count(*) FROM (SELECT f.id, d.name FROM f JOIN d ON d.id = f.k WHERE d.x < 10 LIMIT 10) r
rows-limit-huge|SELECT count(*) FROM (SELECT f.id, h.y FROM f JOIN h ON h.id = f.u LIMIT 10) r
rows-offset|SELECT count(*) FROM (SELECT f.id, d.name FROM f JOIN d ON d.id = f.k OFFSET 500 LIMIT 10) r
rows-top|SELECT f.id, d.name FROM f JOIN d ON d.id = f.k ORDER BY f.v, f.id LIMIT 10
rows-top-dim|SELECT f.id, d.name FROM f JOIN d ON d.id = f.k ORDER BY d.x, f.id LIMIT 10
rows-top-index|SELECT f.id, d.name FROM f JOIN d ON d.id = f.k ORDER BY f.id LIMIT 10
rows-array|SELECT d.x, cardinality(array_agg(f.v)) FROM f JOIN d ON d.id = f.k GROUP BY d.x
rows-string|SELECT d.x, length(string_agg(f.kt, ',')) FROM f JOIN d ON d.id = f.k GROUP BY d.x
rows-create|CREATE TABLE made AS SELECT f.id, f.v, d.x FROM f JOIN d ON d.id = f.k
rows-create-text|CREATE TABLE made AS SELECT f.id, f.kt, d.name FROM f JOIN d ON d.id = f.k
rows-insert|INSERT INTO target SELECT f.id, d.x, d.name FROM f JOIN d ON d.id = f.k
rows-insert-tenth|INSERT INTO target SELECT f.id, d.x, d.name FROM f JOIN d ON d.id = f.k WHERE d.x < 100
rows-left|SELECT f.id, d.x FROM f LEFT JOIN d ON d.id = f.k AND d.x < 500
rows-left-condition|SELECT f.id, d.x FROM f LEFT JOIN d ON d.id = f.k AND d.x < f.v
rows-right|SELECT d.id, f.v FROM f RIGHT JOIN d ON d.id = f.u
rows-full|SELECT f.id, d.id AS d FROM f FULL JOIN d ON d.id = f.u
rows-in|SELECT f.id, f.v FROM f WHERE f.k IN (SELECT id FROM d WHERE x < 500)
rows-exists|SELECT f.id, f.v FROM f WHERE EXISTS (SELECT FROM m WHERE m.k = f.k AND m.x > f.v)
rows-not-exists|SELECT f.id, f.v FROM f WHERE NOT EXISTS (SELECT FROM d WHERE d.id = f.k AND d.x < 500)
rows-not-exists-condition|SELECT f.id, f.v FROM f WHERE NOT EXISTS (SELECT FROM m WHERE m.k = f.k AND m.x > f.v)
rows-many|SELECT f.id, m.x FROM f JOIN m ON m.k = f.k
rows-star|SELECT f.id, d.x, e.x AS y, tiny.name FROM f JOIN d ON d.id = f.k JOIN e ON e.id = f.k2 JOIN tiny ON tiny.id = f.s
rows-star-filters|SELECT f.id, d.name FROM f JOIN d ON d.id = f.k JOIN e ON e.id = f.k2 JOIN tiny ON tiny.id = f.s WHERE d.x < 100 AND e.x < 100 AND tiny.x < 50
rows-chain|SELECT f.id, e.name FROM f JOIN d ON d.id = f.k JOIN e ON e.id = d.e
rows-probe-groups|SELECT r.k, r.c, d.x FROM (SELECT k, count(*) AS c FROM f GROUP BY k) r JOIN d ON d.id = r.k
rows-build-groups|SELECT f.id, r.c FROM f JOIN (SELECT k, count(*) AS c FROM h GROUP BY k) r ON r.k = f.k
rows-union|SELECT f.id, d.x FROM f JOIN d ON d.id = f.k UNION ALL SELECT h.id, d.x FROM h JOIN d ON d.id = h.k
rows-distinct-random|SELECT DISTINCT d.name || f.s FROM f JOIN d ON d.id = f.k
rows-serial|SET max_parallel_workers_per_gather = 0; SELECT f.id, f.v, d.x FROM f JOIN d ON d.id = f.k
rows-spills|SET work_mem = '1MB'; SELECT f.id, h.y FROM f JOIN h ON h.id = f.u
rows-under-fact|SELECT f.id, d.x FROM f JOIN d ON d.id = f.k WHERE f.c1 = 5 AND f.c2 = 5 AND f.c3 = 5
rows-under-build|SELECT f.id, h.y FROM f JOIN h ON h.id = f.u WHERE h.y % 1 = 0
rows-under-matches|SELECT a.id, b.v FROM f a JOIN (SELECT * FROM f WHERE id < 500) b ON b.c1 = a.c1 AND b.c2 = a.c2 AND b.c3 = a.c3 WHERE a.s = 3
rows-over-fact|SELECT f.id, d.x FROM f JOIN d ON d.id = f.k WHERE f.v + 0 < 3
rows-over-build|SELECT f.id, h.y FROM f JOIN h ON h.id = f.u WHERE h.y + 0 < 3
rows-over-join|SELECT f.id, d.x FROM f JOIN d ON d.id = f.nope
rows-limit-unknown|SELECT count(*) FROM (SELECT f.id, d.name FROM f JOIN d ON d.id = f.k LIMIT (SELECT 10)) r
rows-limit-unknown-huge|SELECT count(*) FROM (SELECT f.id, h.y FROM f JOIN h ON h.id = f.u LIMIT (SELECT 10)) r
rows-limit-unknown-star|SELECT count(*) FROM (SELECT f.id, d.x, e.name FROM f JOIN d ON d.id = f.k JOIN e ON e.id = f.k2 LIMIT (SELECT 10)) r
rows-limit-tenth|SELECT count(*) FROM (SELECT f.id, d.name FROM f JOIN d ON d.id = f.k LIMIT (SELECT max(id) / 10 FROM f)) r
rows-limit-left|SELECT count(*) FROM (SELECT f.id, d.name FROM f LEFT JOIN d ON d.id = f.k AND d.x < 500 LIMIT 10) r
rows-limit-exists|SELECT count(*) FROM (SELECT f.id FROM f WHERE EXISTS (SELECT FROM m WHERE m.k = f.k AND m.x > f.v) LIMIT 10) r
rows-top-huge|SELECT f.id, h.y FROM f JOIN h ON h.id = f.u ORDER BY h.y, f.id LIMIT 10
rows-top-window|SELECT f.id, rank() OVER (ORDER BY d.x, f.id) FROM f JOIN d ON d.id = f.k LIMIT 10
rows-create-star|CREATE TABLE made AS SELECT f.id, d.x, e.name FROM f JOIN d ON d.id = f.k JOIN e ON e.id = f.k2 WHERE e.x < 500
rows-insert-huge|INSERT INTO target SELECT f.id, h.y, 'x' FROM f JOIN h ON h.id = f.u WHERE h.y < 500
rows-right-condition|SELECT d.id, f.v FROM f RIGHT JOIN d ON d.id = f.k AND f.v < d.x
rows-left-huge|SELECT f.id, h.y FROM f LEFT JOIN h ON h.id = f.u AND h.y < 500
rows-bushy|SELECT f.id, d.x, h.y FROM f JOIN d ON d.id = f.k JOIN h ON h.id = f.u JOIN d d2 ON d2.id = h.k WHERE d.x < 100 AND d2.x < 100
rows-bushy-groups|SELECT a.k, a.c, b.c AS d FROM (SELECT k, count(*) AS c FROM f GROUP BY k) a JOIN (SELECT k, count(*) AS c FROM h GROUP BY k) b ON b.k = a.k
rows-nested-left|SELECT f.id, r.name FROM f LEFT JOIN (SELECT d.id, e.name FROM d JOIN e ON e.id = d.e WHERE e.x < 500) r ON r.id = f.k
rows-stale-fact-small|UPDATE pg_class SET reltuples = reltuples / 100 WHERE relname = 'f'; SELECT f.id, d.x FROM f JOIN d ON d.id = f.k
rows-stale-fact-large|UPDATE pg_class SET reltuples = reltuples * 100 WHERE relname = 'f'; SELECT f.id, d.x FROM f JOIN d ON d.id = f.k
rows-stale-dim-small|UPDATE pg_class SET reltuples = reltuples / 100 WHERE relname = 'd'; SELECT f.id, d.x FROM f JOIN d ON d.id = f.k
rows-stale-huge-large|UPDATE pg_class SET reltuples = reltuples * 100 WHERE relname = 'h'; SELECT f.id, h.y FROM f JOIN h ON h.id = f.u
END
)

make_tables()
{
	local n=$1 nd=$(($1 / 10)) ne=$(($1 / 100)) i
	local columns="id int, u int, k int, k8 int8, kt text, kd date, kn numeric(10,2), a int, b int, c1 int, c2 int, c3 int, s int, k2 int, z int, nope int, v int, w int8, p numeric(12,2)"

	if [ $ne -lt 20 ]; then ne=20; fi
	sql -c "DROP TABLE IF EXISTS f, d, e, tiny, dup, h, m, empty, p, target" -c "DROP FUNCTION IF EXISTS rare, ten" \
		-c "CREATE FUNCTION rare(v int) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN v = 7; END'" \
		-c "CREATE FUNCTION ten(v int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN 10; END'" \
		-c "CREATE $persistence TABLE f ($columns)"
	sql -c "SELECT setseed(0.5)" \
		-c "INSERT INTO f SELECT id, 1 + floor(random() * $n), k, k, 'key ' || k, date '0001-01-01' + k, k / 100.0, k % 1000, k / 1000, c, c, c, floor(random() * 10),
				floor(random() * $ne), power(random(), 8) * ($nd - 1), -1 - k, floor(random() * 1000), k * 1000003::int8, (random() * 100000)::numeric(12, 2)
			FROM (SELECT g AS id, floor(random() * $nd)::int AS k, floor(random() * 20)::int AS c FROM generate_series(1, $n) g) r" \
		-c "CREATE INDEX ON f (id)" -c "CREATE INDEX ON f (k)" &
	JOBS=($!)
	sql -c "SELECT setseed(0.25)" -c "CREATE $persistence TABLE d (id int PRIMARY KEY, id8 int8, idt text, idd date, idn numeric(10,2), a int, b int, e int, x int, name text, rate numeric(6,4), idn4 numeric(12,4))" \
		-c "INSERT INTO d SELECT k, k, 'key ' || k, date '0001-01-01' + k, k / 100.0, k % 1000, k / 1000, k % $ne, floor(random() * 1000), 'name ' || k % 100, random(), k / 100.0
			FROM generate_series(0, $nd - 1) k" \
		-c "CREATE $persistence TABLE e (id int PRIMARY KEY, g int, x int, name text)" \
		-c "INSERT INTO e SELECT g, g % 10, floor(random() * 1000), 'name ' || g % 100 FROM generate_series(0, $ne - 1) g" \
		-c "CREATE $persistence TABLE tiny (id int PRIMARY KEY, x int, name text)" -c "INSERT INTO tiny SELECT g, g * 10, 'tiny ' || g FROM generate_series(0, 9) g" \
		-c "CREATE $persistence TABLE dup (id int, x int)" -c "INSERT INTO dup SELECT g % 10, g FROM generate_series(0, 99) g" \
		-c "CREATE $persistence TABLE h (id int PRIMARY KEY, k int, y int)" -c "INSERT INTO h SELECT g, floor(random() * $nd), floor(random() * 1000) FROM generate_series(1, $n) g" \
		-c "CREATE $persistence TABLE m (k int, x int)" -c "INSERT INTO m SELECT g / 2, g FROM generate_series(0, $nd * 2 - 1) g" \
		-c "CREATE $persistence TABLE empty (LIKE d)" \
		-c "CREATE $persistence TABLE target (id int, x int, name text)" \
		-c "CREATE $persistence TABLE p (id int, k int, s int, v int) PARTITION BY RANGE (id)"
	for i in 0 1 2 3; do
		sql -c "CREATE $persistence TABLE p_$i PARTITION OF p FOR VALUES FROM ($((n * i / 4))) TO ($((n * (i + 1) / 4 + (i == 3))))"
	done
	wait "${JOBS[0]}"
	sql -c "INSERT INTO p SELECT id, k, s, v FROM f" &
	JOBS=($!)
	for i in f d e tiny dup h m empty; do sql -c "VACUUM ANALYZE $i"; done
	wait "${JOBS[0]}"
	JOBS=()
	sql -c "VACUUM ANALYZE p"
}
