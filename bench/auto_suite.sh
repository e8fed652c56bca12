#!/bin/bash
# auto_suite.sh: what turning enable_gpu_hashagg on costs or gains with the
# defaults of everything else, over many shapes of queries and sizes of tables.
#
#	--rows "LIST"	tables' sizes (default "1000 10000 100000 1000000 10000000")
#	--shapes REGEX	only those whose name matches
#	--reps N		timed pairs of runs (default 5; more for short queries, one for
#					those that take core more than 3 s)
#	--limit RATIO	slower than core by more than this is a failure (default 1.10)
#	--device D		gpurhh.device (default auto)
#	--force			with gpurhh's costs at 0, so that the node is used wherever it can
#					be: what the defaults leave lying, and where they must
#	--out FILE		default bench/results/DATE-auto-suite.csv
#	--running		use the server that PGHOST, PGPORT, … lead to, which has
#					gpurhh installed, instead of a throw-away cluster
#
# Each query runs off and on in turn, in one session, planned anew each time, its
# rows consumed by an outer aggregate in the server; the ratio is that of the
# medians, on to off.  Where the planner leaves a query to core both plans are one
# and the ratio is that of planning and of noise; it is taken up to 100,000 rows
# and is 1 by definition above ("same plan").  A failure is a ratio above the limit of a query that has
# a GpuHashAgg, if measuring it again with twice the runs says so too, and if it is more than
# 0.2 ms.
#
# The device service is running; starting it is not measured.
. "$(dirname "$0")/../scripts/lib.sh"

sizes="1000 10000 100000 1000000 10000000" shapes=. reps=5 limit=1.10 device=auto out= running= force=
while [ $# -gt 0 ]; do
	case $1 in
		--running) running=yes; shift; continue ;;
		--force) force=yes; shift; continue ;;
		--rows) [ $# -ge 2 ] || die "$1 needs a value"; sizes=$2; shift 2 ;;
		--shapes | --reps | --limit | --device | --out)
			[ $# -ge 2 ] || die "$1 needs a value"
			declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done

# ---------- the shapes: name|query, with T for the table ----------

# k1 has 10 values, k2 1,000, k3 one for 10 rows, k4 nearly as many as rows, z is
# skewed; s are 1,000 texts, n is a price, f a float8, d a date; p is the same in
# four partitions, u the dimension of k2.
list=$(cat <<'END'
few|SELECT k1, count(*) FROM T GROUP BY k1
few-sum|SELECT k1, sum(v) FROM T GROUP BY k1
thousand|SELECT k2, sum(v) FROM T GROUP BY k2
tenth|SELECT k3, sum(v) FROM T GROUP BY k3
most|SELECT k4, sum(v) FROM T GROUP BY k4
unique|SELECT id, sum(v) FROM T GROUP BY id
skewed|SELECT z, sum(v) FROM T GROUP BY z
bigint|SELECT w, count(*) FROM T GROUP BY w
five|SELECT k2, count(*), sum(v), avg(v), min(v), max(v) FROM T GROUP BY k2
five-tenth|SELECT k3, count(*), sum(v), avg(v), min(v), max(v) FROM T GROUP BY k3
sum-bigint|SELECT k2, sum(w), avg(w) FROM T GROUP BY k2
two-keys|SELECT k1, k2, sum(v) FROM T GROUP BY k1, k2
three-keys|SELECT k1, k2, k3, count(*) FROM T GROUP BY k1, k2, k3
six-keys|SELECT k1, k2, z, d, b, v % 3, count(*) FROM T GROUP BY 1, 2, 3, 4, 5, 6
date|SELECT d, count(*), sum(v) FROM T GROUP BY d
month|SELECT date_trunc('month', d), count(*) FROM T GROUP BY 1
text|SELECT s, count(*) FROM T GROUP BY s
text-key|SELECT s, k1, sum(v) FROM T GROUP BY s, k1
text-unique|SELECT s || id, count(*) FROM T GROUP BY 1
numeric-sum|SELECT k1, sum(n), avg(n) FROM T GROUP BY k1
numeric-tenth|SELECT k3, sum(n) FROM T GROUP BY k3
numeric-key|SELECT n, count(*) FROM T GROUP BY n
price|SELECT b, k1, sum(v), sum(n), sum(n * (1 - 0.05)), avg(n), count(*) FROM T WHERE d < '2024-01-01' GROUP BY b, k1
float-sum|SELECT k2, sum(f), avg(f) FROM T GROUP BY k2
stddev|SELECT k2, stddev(v) FROM T GROUP BY k2
boolean|SELECT b, count(*), sum(v) FROM T GROUP BY b
expression|SELECT v > 500, k1 % 3, sum(v * 2) FROM T GROUP BY 1, 2
filter|SELECT k2, count(*) FILTER (WHERE b), sum(v) FILTER (WHERE v > 500) FROM T GROUP BY k2
where-half|SELECT k2, sum(v) FROM T WHERE v < 500 GROUP BY k2
where-hundredth|SELECT k3, sum(v) FROM T WHERE v < 10 GROUP BY k3
where-text|SELECT k2, sum(v) FROM T WHERE s LIKE '%7%' GROUP BY k2
where-index|SELECT k1, sum(v) FROM T WHERE id < 500 GROUP BY k1
having|SELECT k3, count(*) FROM T GROUP BY k3 HAVING count(*) > 20
order|SELECT k2, sum(v) FROM T GROUP BY k2 ORDER BY k2
order-tenth|SELECT k3, sum(v) FROM T GROUP BY k3 ORDER BY k3
top|SELECT k3, sum(v) AS s FROM T GROUP BY k3 ORDER BY s DESC LIMIT 10
first|SELECT id, count(*) FROM T GROUP BY id ORDER BY id LIMIT 10
join|SELECT u.name, sum(v) FROM T JOIN u ON u.k2 = T.k2 GROUP BY u.name
join-key|SELECT T.k3, sum(u.x) FROM T JOIN u ON u.k2 = T.k2 GROUP BY T.k3
nested|SELECT c, count(*) FROM (SELECT k3, count(*) AS c FROM T GROUP BY k3) q GROUP BY c
distinct|SELECT DISTINCT k1, k2 FROM T
distinct-most|SELECT DISTINCT k4 FROM T
count-distinct|SELECT count(DISTINCT k2) FROM T
count-distinct-key|SELECT k1, count(DISTINCT v) FROM T GROUP BY k1
no-group|SELECT count(*), sum(v), avg(v) FROM T
no-group-where|SELECT sum(v) FROM T WHERE v < 100
min-index|SELECT min(id), max(id) FROM T
sets|SELECT k1, k2, sum(v) FROM T GROUP BY GROUPING SETS ((k1), (k2), ())
rollup|SELECT b, k1, k2, count(*) FROM T GROUP BY ROLLUP (b, k1, k2)
two-distincts|SELECT k2, count(DISTINCT v), count(DISTINCT k1) FROM T GROUP BY k2
distinct-tenth|SELECT k3, count(DISTINCT v), sum(v) FROM T GROUP BY k3
distinct-sets|SELECT b, k1, count(DISTINCT v) FROM T GROUP BY ROLLUP (b, k1)
distinct-text|SELECT k1, count(DISTINCT s || k2) FROM T GROUP BY k1
rollup-text|SELECT s || ' of the long texts', k1, sum(v) FROM T GROUP BY ROLLUP (1, k1)
cube-tenth|SELECT k1, k3, count(*) FROM T GROUP BY CUBE (k1, k3)
min-text|SELECT k2, min(s COLLATE "C"), max(s COLLATE "C") FROM T GROUP BY k2
partitions|SELECT k2, sum(v) FROM P GROUP BY k2
partitions-tenth|SELECT k3, sum(v) FROM P GROUP BY k3
union-all|SELECT k2, sum(v) FROM (SELECT k2, v FROM T UNION ALL SELECT k2, w FROM T) q GROUP BY k2
union|SELECT k2, b FROM T UNION SELECT k1, b FROM T
rescan|SELECT x, q.* FROM generate_series(1, 5) x, LATERAL (SELECT k1, sum(v) FROM T WHERE v % 5 = x GROUP BY k1) q
window|SELECT k2, sum(v), rank() OVER (ORDER BY sum(v)) FROM T GROUP BY k2
cte|WITH c AS MATERIALIZED (SELECT k2, v FROM T WHERE b) SELECT k2, sum(v) FROM c GROUP BY k2
of-groups|SELECT count(*), sum(s), max(s) FROM (SELECT k3, sum(v) AS s FROM T GROUP BY k3) r
of-groups-key|SELECT c, count(*), sum(s) FROM (SELECT k4, count(*) AS c, sum(v) AS s FROM T GROUP BY k4) r GROUP BY c
of-groups-most|SELECT k4, max(s) FROM (SELECT k4, k2, sum(v) AS s FROM T GROUP BY k4, k2) r GROUP BY k4
of-groups-text|SELECT s, count(*) FROM (SELECT s, k3 FROM T GROUP BY s, k3) r GROUP BY s
END
)

if [ -n "$running" ]; then
	psql=$(command -v psql || echo "${PGBIN:-}/psql")
else
	set_up_and_install
	ram_mb=$(awk '/MemTotal/ { printf "%d", $2 / 1024 }' /proc/meminfo)
	step "start a throw-away cluster"
	cluster_start cluster "shared_preload_libraries = 'gpurhh'" "shared_buffers = $((ram_mb / 4))MB" \
		"wal_level = minimal" "max_wal_senders = 0" "max_wal_size = 20GB" "autovacuum = off"
	psql=$PGBIN/psql
fi
free=
if [ -n "$force" ]; then free="-c gpurhh.setup_cost=0 -c gpurhh.row_cost=0 -c gpurhh.group_cost=0"; fi
sql() { PGOPTIONS="-c client_min_messages=warning -c jit=off -c work_mem=64MB -c search_path=gpurhh_auto $free" "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }
sql -c "CREATE EXTENSION IF NOT EXISTS gpurhh SCHEMA public" -c "DROP SCHEMA IF EXISTS gpurhh_auto CASCADE" -c "CREATE SCHEMA gpurhh_auto" ||
	die "cannot reach a server with gpurhh installed"
new_tmpdir work

# "plan|off_ms|on_ms" of a query, the medians of n pairs; none where n is 0.
sql <<'END'
CREATE FUNCTION node_in(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text; found bool := false;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		found := found OR line ~ 'GpuHashAgg';
	END LOOP;
	RETURN found;
END $$;
CREATE FUNCTION once(query text, side text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE begun timestamptz;
BEGIN
	PERFORM set_config('enable_gpu_hashagg', side, false);
	begun := clock_timestamp();
	EXECUTE query;
	RETURN extract(epoch FROM clock_timestamp() - begun) * 1000;
END $$;
CREATE FUNCTION pairs(query text, n int, same_too bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	node bool;
	first float8;
	off_ms float8[] := '{}';
	on_ms float8[] := '{}';
BEGIN
	PERFORM set_config('enable_gpu_hashagg', 'on', false);
	node := node_in(query);
	IF NOT node AND NOT same_too THEN
		RETURN 'core||';
	END IF;
	PERFORM once(query, 'on');
	first := once(query, 'off');
	n := greatest(n, least(60, (200 / first)::int));
	IF first > 3000 THEN
		n := 0;
		off_ms := ARRAY[first];
		on_ms := ARRAY[once(query, 'on')];
	END IF;
	FOR i IN 1 .. n LOOP
		off_ms := off_ms || once(query, 'off');
		on_ms := on_ms || once(query, 'on');
	END LOOP;
	RETURN concat_ws('|', CASE WHEN node THEN 'gpurhh' ELSE 'core' END,
		(SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY x)::numeric, 3) FROM unnest(off_ms) x),
		(SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY x)::numeric, 3) FROM unnest(on_ms) x));
END $$;
END

if [ -z "$out" ]; then out=bench/results/$(date +%Y-%m-%d)-auto-suite.csv; fi
mkdir -p "$(dirname "$out")"
{
	echo "# gpurhh $(sql -c 'SELECT public.gpurhh_version()'), $(describe_commit)"
	echo "# $(sql -c 'SELECT version()')"
	echo "# $(describe_host)"
	sql -c "SET gpurhh.device = '$device'" -c "SELECT '# ' || name || ' = ' || current_setting(name) FROM pg_settings
		WHERE name ~ '^gpurhh.(device|.*cost)$' OR name IN ('work_mem', 'shared_buffers', 'max_parallel_workers_per_gather') ORDER BY 1"
	echo "# command: bench/auto_suite.sh --rows \"$sizes\" --shapes '$shapes' --reps $reps --limit $limit --device $device${force:+ --force}${running:+ --running}"
	echo "# medians in ms; on / off"
	echo "shape,rows,plan,off_ms,on_ms,ratio"
} >"$out"

sql -c "CREATE TABLE u (k2 int PRIMARY KEY, name text, x int)" \
	-c "INSERT INTO u SELECT g, 'name ' || g % 100, g FROM generate_series(0, 999) g" -c "VACUUM ANALYZE u"

worse=0 measured=0 used=0
for n in $sizes; do
	n=$(printf %.0f "$n")
	step "tables of $n rows"
	columns="id int, k1 int, k2 int, k3 int, k4 int, z int, v int, b bool, d date, w int8, f float8, n numeric(12,2), s text"
	sql -c "DROP TABLE IF EXISTS t, p" -c "CREATE UNLOGGED TABLE t ($columns)" -c "SELECT setseed(0.5)" \
		-c "INSERT INTO t SELECT g, random() * 9.99 - 0.49, random() * 999.8 - 0.4, random() * $n / 10, random() * $n * 4, power(random(), 8) * $n / 4, floor(random() * 1000),
			random() < 0.4, date '2020-01-01' + floor(random() * 2000)::int, floor(random() * $n / 5) * 4294967311, random(), (random() * 100000)::numeric(12, 2), 'text ' || floor(random() * 1000)
			FROM generate_series(1, $n) g" \
		-c "CREATE INDEX ON t (id)" -c "VACUUM ANALYZE t" >/dev/null
	sql -c "CREATE UNLOGGED TABLE p ($columns) PARTITION BY RANGE (id)" >/dev/null
	for i in 0 1 2 3; do
		sql -c "CREATE UNLOGGED TABLE p_$i PARTITION OF p FOR VALUES FROM ($((n * i / 4))) TO ($((n * (i + 1) / 4 + (i == 3))))" >/dev/null
	done
	sql -c "INSERT INTO p SELECT * FROM t" -c "VACUUM ANALYZE p" >/dev/null

	while IFS='|' read -r name query; do
		[[ $name =~ $shapes ]] || continue
		query=$(sed -E 's/\bT\b/t/g; s/\bP\b/p/g' <<<"$query")
		query="SELECT count(q) FROM ($query) q"
		ask="SET gpurhh.device = '$device'; SELECT pairs(\$q\$$query\$q\$, $reps, $([ "$n" -le 100000 ] && echo true || echo false))"
		IFS='|' read -r plan off on < <(sql -c "${ask%%;*}" -c "${ask#*; }") || die "failed: $query"
		above() { awk -v o="$off" -v g="$on" -v l="$limit" 'BEGIN { exit !(g > o * l && g - o > 0.2) }'; }
		if [ "$plan" = gpurhh ] && above; then
			IFS='|' read -r plan off on < <(sql -c "${ask%%;*}" -c "$(sed "s/, $reps, /, $((reps * 2)), /" <<<"${ask#*; }")")
		fi
		measured=$((measured + 1)) mark=
		if [ "$plan" = gpurhh ]; then
			used=$((used + 1))
			if above; then worse=$((worse + 1)) mark='<- slower'; fi
		fi
		ratio=$(awk -v o="$off" -v g="$on" 'BEGIN { if (o == "") print "1"; else printf "%.3f", g / o }')
		echo "$name,$n,$plan,$off,$on,$ratio" >>"$out"
		printf '%-20s %9d  %-7s %10s %10s  %6s %s\n' "$name" "$n" "$plan" "${off:-same plan}" "$on" "$ratio" "$mark"
	done <<<"$list"
done
sql -c "DROP SCHEMA gpurhh_auto CASCADE"
echo
echo "$measured measured, $used with GpuHashAgg, $worse slower than core by more than $limit; in $out"
if [ -z "$running" ]; then cluster_stop "$cluster"; fi
[ "$worse" = 0 ]
