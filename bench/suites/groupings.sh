# groupings.sh: shapes of groupings for auto_suite.sh.

# k1 has 10 values, k2 1,000, k3 one for 10 rows, k4 nearly as many as rows, z is
# skewed; s are 1,000 texts, n is a price, f a float8, d a date; p is the same in
# four partitions, u the dimension of k2.
list=$(cat <<'END'
few|SELECT k1, count(*) FROM t GROUP BY k1
few-sum|SELECT k1, sum(v) FROM t GROUP BY k1
thousand|SELECT k2, sum(v) FROM t GROUP BY k2
tenth|SELECT k3, sum(v) FROM t GROUP BY k3
most|SELECT k4, sum(v) FROM t GROUP BY k4
unique|SELECT id, sum(v) FROM t GROUP BY id
skewed|SELECT z, sum(v) FROM t GROUP BY z
bigint|SELECT w, count(*) FROM t GROUP BY w
five|SELECT k2, count(*), sum(v), avg(v), min(v), max(v) FROM t GROUP BY k2
five-tenth|SELECT k3, count(*), sum(v), avg(v), min(v), max(v) FROM t GROUP BY k3
sum-bigint|SELECT k2, sum(w), avg(w) FROM t GROUP BY k2
two-keys|SELECT k1, k2, sum(v) FROM t GROUP BY k1, k2
three-keys|SELECT k1, k2, k3, count(*) FROM t GROUP BY k1, k2, k3
six-keys|SELECT k1, k2, z, d, b, v % 3, count(*) FROM t GROUP BY 1, 2, 3, 4, 5, 6
date|SELECT d, count(*), sum(v) FROM t GROUP BY d
month|SELECT date_trunc('month', d), count(*) FROM t GROUP BY 1
text|SELECT s, count(*) FROM t GROUP BY s
text-key|SELECT s, k1, sum(v) FROM t GROUP BY s, k1
text-unique|SELECT s || id, count(*) FROM t GROUP BY 1
numeric-sum|SELECT k1, sum(n), avg(n) FROM t GROUP BY k1
numeric-tenth|SELECT k3, sum(n) FROM t GROUP BY k3
numeric-key|SELECT n, count(*) FROM t GROUP BY n
price|SELECT b, k1, sum(v), sum(n), sum(n * (1 - 0.05)), avg(n), count(*) FROM t WHERE d < '2024-01-01' GROUP BY b, k1
float-sum|SELECT k2, sum(f), avg(f) FROM t GROUP BY k2
stddev|SELECT k2, stddev(v) FROM t GROUP BY k2
boolean|SELECT b, count(*), sum(v) FROM t GROUP BY b
expression|SELECT v > 500, k1 % 3, sum(v * 2) FROM t GROUP BY 1, 2
filter|SELECT k2, count(*) FILTER (WHERE b), sum(v) FILTER (WHERE v > 500) FROM t GROUP BY k2
where-half|SELECT k2, sum(v) FROM t WHERE v < 500 GROUP BY k2
where-hundredth|SELECT k3, sum(v) FROM t WHERE v < 10 GROUP BY k3
where-text|SELECT k2, sum(v) FROM t WHERE s LIKE '%7%' GROUP BY k2
where-index|SELECT k1, sum(v) FROM t WHERE id < 500 GROUP BY k1
having|SELECT k3, count(*) FROM t GROUP BY k3 HAVING count(*) > 20
order|SELECT k2, sum(v) FROM t GROUP BY k2 ORDER BY k2
order-tenth|SELECT k3, sum(v) FROM t GROUP BY k3 ORDER BY k3
top|SELECT k3, sum(v) AS s FROM t GROUP BY k3 ORDER BY s DESC LIMIT 10
first|SELECT id, count(*) FROM t GROUP BY id ORDER BY id LIMIT 10
join|SELECT u.name, sum(v) FROM t JOIN u ON u.k2 = t.k2 GROUP BY u.name
join-key|SELECT t.k3, sum(u.x) FROM t JOIN u ON u.k2 = t.k2 GROUP BY t.k3
nested|SELECT c, count(*) FROM (SELECT k3, count(*) AS c FROM t GROUP BY k3) q GROUP BY c
distinct|SELECT DISTINCT k1, k2 FROM t
distinct-most|SELECT DISTINCT k4 FROM t
count-distinct|SELECT count(DISTINCT k2) FROM t
count-distinct-key|SELECT k1, count(DISTINCT v) FROM t GROUP BY k1
no-group|SELECT count(*), sum(v), avg(v) FROM t
no-group-where|SELECT sum(v) FROM t WHERE v < 100
min-index|SELECT min(id), max(id) FROM t
sets|SELECT k1, k2, sum(v) FROM t GROUP BY GROUPING SETS ((k1), (k2), ())
rollup|SELECT b, k1, k2, count(*) FROM t GROUP BY ROLLUP (b, k1, k2)
two-distincts|SELECT k2, count(DISTINCT v), count(DISTINCT k1) FROM t GROUP BY k2
distinct-tenth|SELECT k3, count(DISTINCT v), sum(v) FROM t GROUP BY k3
distinct-sets|SELECT b, k1, count(DISTINCT v) FROM t GROUP BY ROLLUP (b, k1)
distinct-text|SELECT k1, count(DISTINCT s || k2) FROM t GROUP BY k1
rollup-text|SELECT s || ' of the long texts', k1, sum(v) FROM t GROUP BY ROLLUP (1, k1)
cube-tenth|SELECT k1, k3, count(*) FROM t GROUP BY CUBE (k1, k3)
min-text|SELECT k2, min(s COLLATE "C"), max(s COLLATE "C") FROM t GROUP BY k2
partitions|SELECT k2, sum(v) FROM p GROUP BY k2
partitions-tenth|SELECT k3, sum(v) FROM p GROUP BY k3
union-all|SELECT k2, sum(v) FROM (SELECT k2, v FROM t UNION ALL SELECT k2, w FROM t) q GROUP BY k2
union|SELECT k2, b FROM t UNION SELECT k1, b FROM t
rescan|SELECT x, q.* FROM generate_series(1, 5) x, LATERAL (SELECT k1, sum(v) FROM t WHERE v % 5 = x GROUP BY k1) q
window|SELECT k2, sum(v), rank() OVER (ORDER BY sum(v)) FROM t GROUP BY k2
cte|WITH c AS MATERIALIZED (SELECT k2, v FROM t WHERE b) SELECT k2, sum(v) FROM c GROUP BY k2
of-groups|SELECT count(*), sum(s), max(s) FROM (SELECT k3, sum(v) AS s FROM t GROUP BY k3) r
of-groups-key|SELECT c, count(*), sum(s) FROM (SELECT k4, count(*) AS c, sum(v) AS s FROM t GROUP BY k4) r GROUP BY c
of-groups-most|SELECT k4, max(s) FROM (SELECT k4, k2, sum(v) AS s FROM t GROUP BY k4, k2) r GROUP BY k4
of-groups-text|SELECT s, count(*) FROM (SELECT s, k3 FROM t GROUP BY s, k3) r GROUP BY s
END
)

make_tables()
{
	local n=$1 i
	local columns="id int, k1 int, k2 int, k3 int, k4 int, z int, v int, b bool, d date, w int8, f float8, n numeric(12,2), s text"

	sql -c "DROP TABLE IF EXISTS t, p, u" \
		-c "CREATE TABLE u (k2 int PRIMARY KEY, name text, x int)" \
		-c "INSERT INTO u SELECT g, 'name ' || g % 100, g FROM generate_series(0, 999) g" -c "VACUUM ANALYZE u" \
		-c "CREATE $persistence TABLE t ($columns)" -c "SELECT setseed(0.5)" \
		-c "INSERT INTO t SELECT g, random() * 9.99 - 0.49, random() * 999.8 - 0.4, random() * $n / 10, random() * $n * 4, power(random(), 8) * $n / 4, floor(random() * 1000),
			random() < 0.4, date '2020-01-01' + floor(random() * 2000)::int, floor(random() * $n / 5) * 4294967311, random(), (random() * 100000)::numeric(12, 2), 'text ' || floor(random() * 1000)
			FROM generate_series(1, $n) g" \
		-c "CREATE INDEX ON t (id)" -c "VACUUM ANALYZE t" \
		-c "CREATE $persistence TABLE p ($columns) PARTITION BY RANGE (id)"
	for i in 0 1 2 3; do
		sql -c "CREATE $persistence TABLE p_$i PARTITION OF p FOR VALUES FROM ($((n * i / 4))) TO ($((n * (i + 1) / 4 + (i == 3))))"
	done
	sql -c "INSERT INTO p SELECT * FROM t" -c "VACUUM ANALYZE p"
}
