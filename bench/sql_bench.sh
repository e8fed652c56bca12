#!/bin/bash
# sql_bench.sh: GROUP BY in SQL, PostgreSQL's own plans against GpuHashAgg, in
# one run: serial, parallel as the planner chooses, and gpurhh.
#
#	--rows N		rows in each table (default 10000000; 50M on large machines)
#	--groups "LIST"	distinct keys asked for (default "100 10000 1000000 10000000")
#	--cases "LIST"	of: sum five bigint twokeys half ctas dirty wide text md5 q1 distinct
#					sets cube nested join joinexpr joinrows semi anti left skew zipf pairs star
#					(default: the first four; all but sum, nested, q1 and those that
#					join have 1,000,000 groups).  half: WHERE takes away half of the rows; ctas: CREATE TABLE AS;
#					dirty: a table that is not marked all-visible; wide: 16
#					columns, a text first; text: keys as 'key123456'; md5: of 32
#					characters; q1: TPC-H's query 1, over a table as its
#					lineitem (6 groups); distinct: count(DISTINCT v) of 1000 values;
#					sets: GROUPING SETS of two columns, with 100,000 and 100 values,
#					each alone and both together; cube: CUBE of these and a third
#					column with 7 values; nested: as sum, but the device may make
#					the outer aggregate of its groups, too; join, semi, anti, left:
#					with a table of as many rows as --groups says, of which each
#					key has a match (semi, anti: half of the keys have); joinexpr:
#					as join, the sum of an expression over columns of both tables;
#					joinrows: as join, the joined rows themselves, which come to the
#					server;
#					skew: as join, half of the rows have one key; zipf: as join, the n-th
#					key has a share of the rows in proportion to 1/n; pairs: with another
#					table of as many rows and the same 1000 keys, so there are a
#					thousandth of the square of the rows in pairs; star: with three tables
#					of 10,000, 1,000 and 100 rows, grouped by a text of one
#					tpch: queries in the shape of TPC-H's, which have tables of their
#					own (bench/suites/tpch.sh), or some of them: tpch-q1 tpch-q3 tpch-q4 tpch-q5 tpch-q6 tpch-q10 tpch-q12 tpch-q13
#					tpch-q18 tpch-q21
#	--scale S		of those tables (default 1: lineitem has 6,000,000 rows)
#	--load-only		make those tables, and measure nothing
#	--modes "LIST"	of: serial parallel gpurhh (default all), as the planner
#					chooses, or parallel:N, gpurhh:N: with N workers; gpurhh-pages,
#					gpurhh-pages:N: the same with gpurhh.read_pages on
#	--pool SIZE		gpurhh.pool_size of the throw-away cluster
#	--reps N		timed runs of each, interleaved, after one that is not
#					counted (default 5)
#	--core-once		time core's plans by the run that gives their answer, and no
#					more: minutes saved where they take half a minute each
#	--device D		gpurhh.device (default auto)
#	--out FILE		default bench/results/DATE-MACHINE.csv
#	--explain DIR	what EXPLAIN says of each case in each mode, and why there is no
#					node, in DIR/CASE-MODE.txt; with ANALYZE unless it is timed once
#	--cluster DIR	a cluster in DIR that stays up when this ends, and which is used
#					again, with the TPC-H tables that it has, if they are of that scale
#	--running		use the server that PGHOST, PGPORT, … lead to, which has
#					gpurhh installed, instead of a throw-away cluster
#
# Keys are uniform over the number of groups asked for; each query computes its
# groups and consumes all of them in the server, under an outer aggregate, whose
# "+ 0" keeps the device from making that, too.
# Every number is a row of the CSV: one for each run, and one (rep "explain")
# from EXPLAIN (ANALYZE, TIMING OFF) with the times that GpuHashAgg's stages took
# (feed, pool wait and emit: the participants' average).  The table printed at the end is of medians.  Ends
# with an error if the three modes do not agree on an answer.
. "$(dirname "$0")/../scripts/lib.sh"

rows=10000000 groups="100 10000 1000000 10000000" cases="sum five bigint twokeys"
modes="serial parallel gpurhh" reps=5 device=auto out= running= pool= core_once=
scale=1 load_only= explain= cluster=
while [ $# -gt 0 ]; do
	case $1 in
		--running) running=yes; shift; continue ;;
		--core-once) core_once=yes; shift; continue ;;
		--load-only) load_only=yes; shift; continue ;;
		--rows | --groups | --cases | --modes | --reps | --device | --out | --pool | --scale | --explain | --cluster)
			[ $# -ge 2 ] || die "$1 needs a value"
			declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done
rows=$(printf %.0f "$rows")

if [ -n "$running" ]; then
	psql=$(command -v psql || echo "${PGBIN:-}/psql")
else
	set_up_and_install
	ram_mb=$(awk '/MemTotal/ { printf "%d", $2 / 1024 }' /proc/meminfo)
	conf=("shared_preload_libraries = 'gpurhh'" "wal_level = minimal" "max_wal_senders = 0"
		"max_wal_size = 20GB" "autovacuum = off" "max_worker_processes = $(($(nproc) + 8))"
		"max_parallel_workers = $(nproc)" ${pool:+"gpurhh.pool_size = '$pool'"})
	if [ -n "$cluster" ]; then
		step "use the cluster in $cluster"
		# a scan of a table larger than a quarter of this leaves the table where it was
		cluster_keep "$cluster" "${conf[@]}" "shared_buffers = $((ram_mb * 3 / 8))MB"
	else
		step "start a throw-away cluster"
		cluster_start throw_away "${conf[@]}" "shared_buffers = $((ram_mb / 4))MB"
	fi
	psql=$PGBIN/psql
fi
schema=public
sql() { PGOPTIONS="-c client_min_messages=warning -c search_path=$schema,public" "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }

sql -c "CREATE EXTENSION IF NOT EXISTS gpurhh" -c "SELECT 1" >/dev/null || die "cannot reach a server with gpurhh installed"
new_tmpdir work

# The same for all modes: enough work_mem that nothing spills, no JIT.
settings="LOAD 'gpurhh'; SET work_mem = '1GB'; SET jit = off; SET gpurhh.device = '$device';"

# one_of PATTERN: is such a case asked for?
one_of()
{
	local c

	for c in $cases; do
		# shellcheck disable=SC2053
		if [[ $c == $1 ]]; then return 0; fi
	done
	return 1
}

# ---------- TPC-H's tables ----------

if one_of 'tpch*'; then
	. bench/suites/tpch.sh
	schema=gpurhh_tpch
	if [ "$(sql -c "SELECT obj_description(to_regnamespace('gpurhh_tpch'), 'pg_namespace')")" != "scale $scale" ]; then
		step "make the tables of scale $scale"
		sql -c "DROP SCHEMA IF EXISTS gpurhh_tpch CASCADE" -c "CREATE SCHEMA gpurhh_tpch"
		make_tables "$(awk -v s="$scale" 'BEGIN { printf "%.0f", s * 6e6 }')" || die "could not make the tables"
		sql -c "COMMENT ON SCHEMA gpurhh_tpch IS 'scale $scale'"
	fi
	sql -c "SELECT '   ' || relname || ': ' || pg_size_pretty(pg_relation_size(oid)) FROM pg_class
		WHERE relnamespace = 'gpurhh_tpch'::regnamespace AND relkind = 'r' ORDER BY oid"
	schema=public
	if [ -n "$load_only" ]; then step "made"; exit 0; fi
fi

# ---------- the machine ----------

describe()
{
	echo "# gpurhh $(sql -c 'SELECT gpurhh_version()'), $(describe_commit)"
	echo "# $(sql -c 'SELECT version()')"
	echo "# $(describe_host)"
	sql -c "$settings" -c "SELECT '# device: ' || concat_ws(', ', device, kind, name,
		'compute capability ' || nullif(compute_capability::text, ''),
		pg_size_pretty(total_bytes), state, nullif(detail, '')) FROM gpurhh_devices()"
	sql -c "$settings" -c "SELECT '# ' || name || ' = ' || current_setting(name) FROM pg_settings
		WHERE name LIKE 'gpurhh.%' OR name IN ('work_mem', 'hash_mem_multiplier', 'shared_buffers',
			'max_parallel_workers_per_gather', 'jit', 'shared_preload_libraries') ORDER BY 1"
	echo "# command: bench/sql_bench.sh --rows $rows --groups \"$groups\" --cases \"$cases\" --modes \"$modes\" --reps $reps --device $device${pool:+ --pool $pool}${core_once:+ --core-once}${running:+ --running}$(if one_of 'tpch*'; then echo " --scale $scale"; fi)"
	if one_of 'tpch*'; then echo "# queries in the shape of TPC-H's, on data of our own: no results of TPC-H"; fi
	echo "# tables are unlogged, vacuumed and cached; keys uniform and at random; times in ms"
}
describe >"$work/machine"

if [ -z "$out" ]; then
	kind=$(sed -n 's/^# device: cuda[^,]*, cuda, \([^,]*\),.*open.*/\1/p; s/^# device: cuda:0, cuda, \([^,]*\),.*/\1/p' "$work/machine" | head -1)
	case $device in cpu) kind= ;; esac
	kind=$(tr 'A-Z ' 'a-z-' <<<"${kind:-cpu-$(nproc)-cores}" | tr -cd 'a-z0-9-')
	out=bench/results/$(date +%Y-%m-%d)-$kind.csv
fi
mkdir -p "$(dirname "$out")"
{ cat "$work/machine"; echo "case,rows,groups_asked,groups,mode,rep,ms,feed_ms,pool_wait_ms,upload_ms,kernel_ms,extract_ms,emit_ms,participants,plan"; } >"$out"
cat "$work/machine"

# ---------- tables ----------

# load COLUMNS EXPRESSIONS [ANALYZE]: table t, filled by all cores, and vacuumed
# but where only ANALYZE is asked for
load()
{
	local jobs i pids=()

	jobs=$(nproc)
	if [ "$jobs" -gt 16 ]; then jobs=16; fi
	sql -c "DROP TABLE IF EXISTS t" -c "CREATE UNLOGGED TABLE t ($1)"
	for ((i = 0; i < jobs; i++)); do
		sql -c "SELECT setseed($i / 100.0)" -c "INSERT INTO t SELECT $2
			FROM generate_series($rows::int8 * $i / $jobs + 1, $rows::int8 * ($i + 1) / $jobs) i" >/dev/null &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || die "could not fill the table"; done
	sql -c "${3:-VACUUM (ANALYZE)} t" -c "SELECT count(*) FROM t" >/dev/null
}

# ---------- one case ----------

tables=t						# that the workers share
mode_settings()
{
	local t

	case $1 in
		serial) echo "SET enable_gpu_hashagg = off; SET max_parallel_workers_per_gather = 0;" ;;
		parallel | parallel:*) echo "SET enable_gpu_hashagg = off; RESET max_parallel_workers_per_gather;" ;;
		gpurhh | gpurhh:*) echo "SET enable_gpu_hashagg = on; SET enable_gpu_hashjoin = on; SET gpurhh.read_pages = off; RESET max_parallel_workers_per_gather;" ;;
		gpurhh-pages | gpurhh-pages:*) echo "SET enable_gpu_hashagg = on; SET enable_gpu_hashjoin = on; SET gpurhh.read_pages = on; RESET max_parallel_workers_per_gather;" ;;
		*) die "no such mode: $1" ;;
	esac
	for t in $tables; do
		case $1 in
			*:*) echo "SET max_parallel_workers_per_gather = ${1#*:}; ALTER TABLE $t SET (parallel_workers = ${1#*:});" ;;
			*) echo "ALTER TABLE $t RESET (parallel_workers);" ;;
		esac
	done
}

# timed_once MODE RUN ANSWER: is the run that gives the answer the timed one?
timed_once() { [[ -n $core_once && $1 != gpurhh* && $2 = "$3" ]]; }

# measure NAME GROUPS CONSUME QUERY [ctas]
measure()
{
	local name=$1 asked=$2 query="SELECT $3 FROM ($4) q" mode rep found run answer analyze
	run="$query;" answer="$query;"
	if [ "${5:-}" = ctas ]; then
		query=$4
		run="CREATE TABLE created AS $4;"
		answer="$run SELECT $3 FROM created; DROP TABLE created;"
	fi

	{
		echo "$settings"
		cat <<-'SQL'
		CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE j json;
		BEGIN
			EXECUTE 'EXPLAIN (FORMAT JSON, COSTS OFF) ' || query INTO j;
			RETURN (SELECT string_agg(concat_ws(' ', nullif(n ->> 'Partial Mode', 'Simple'),
						n ->> 'Strategy', coalesce(n ->> 'Custom Plan Provider', n ->> 'Node Type')), ' < ' ORDER BY o)
				FROM jsonb_path_query(j::jsonb, 'strict $.** ? (@."Node Type" != "")') WITH ORDINALITY p (n, o));
		END $$;
		CREATE FUNCTION pg_temp.times_of(query text) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE j json; node jsonb;
		BEGIN
			EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO j;
			node := jsonb_path_query_first(j::jsonb, 'strict $.** ? (@."Custom Plan Provider" == "GpuHashAgg")') - 'Plans';
			RETURN concat_ws('|', j -> 0 ->> 'Execution Time',
				coalesce((SELECT string_agg(coalesce((SELECT value #>> '{}' FROM jsonb_each(node)
						WHERE key ~* ('^' || w)), ''), '|' ORDER BY o)
					FROM unnest(ARRAY['feed time', 'pool wait', 'upload', 'kernel', 'extract', 'emit', 'participants']) WITH ORDINALITY u (w, o)), '||||||'),
				node);
		END $$;
		SQL
		for mode in $modes; do
			mode_settings "$mode"
			echo "SELECT '@plan|$mode|' || pg_temp.plan_of(\$q\$$query\$q\$);"
			if timed_once "$mode" "$run" "$answer"; then
				printf '\\echo @time %s 1\n\\echo @answer %s\n\\timing on\n%s\n\\timing off\n' "$mode" "$mode" "$answer"
			else
				echo "\\echo @answer $mode"
				echo "$answer"
			fi
		done
		for ((rep = 1; rep <= reps; rep++)); do
			for mode in $modes; do
				if timed_once "$mode" "$run" "$answer"; then continue; fi
				mode_settings "$mode"
				echo "\\echo @time $mode $rep"
				echo "\\timing on"
				echo "$run"
				echo "\\timing off"
				if [ "$run" != "$answer" ]; then echo "DROP TABLE created;"; fi
			done
		done
		for mode in $modes; do
			case $mode in
				gpurhh*)
					mode_settings "$mode"
					echo "SELECT '@explain|$mode|' || pg_temp.times_of(\$q\$$query\$q\$);" ;;
			esac
		done
	} >"$work/script"
	sql -f "$work/script" >"$work/result" || die "failed: $query"

	# the modes' answers, which must be one
	if [ "$(awk '/^@/ { want = /^@answer/ ; next } want && !/^Time: /' "$work/result" | sort -u | wc -l)" != 1 ]; then
		grep -A1 '^@answer' "$work/result"
		die "the answers differ: $query"
	fi
	found=$(awk '/^@answer/ { getline; print; exit }' "$work/result" | cut -d'|' -f1)

	awk -v pre="$name,$rows,$asked,$found" '
		function quoted(s) { gsub(/"/, "\"\"", s); return "\"" s "\"" }
		/^@plan/ { split($0, f, "|"); plan[f[2]] = f[3] }
		/^@time/ { mode = $2; rep = $3 }
		/^Time: / { print pre "," mode "," rep "," $2 ",,,,,,,," quoted(plan[mode]) }
		/^@explain/ {
			split($0, f, "|")
			printf "%s,%s,explain", pre, f[2]
			for (i = 3; i <= 10; i++) printf ",%s", f[i]
			print "," quoted(plan[f[2]])
			print "# explain " pre "," f[2] ": " f[11]
		}' "$work/result" >>"$out"
	step "$name, $rows rows, $found groups: $(summary "$name" "$asked")"
	if [ -n "$explain" ]; then
		mkdir -p "$explain"
		for mode in $modes; do
			{
				echo "$settings"
				mode_settings "$mode"
				if timed_once "$mode" "$run" "$answer"; then analyze=; else analyze="ANALYZE, TIMING OFF, "; fi
				echo "EXPLAIN (${analyze}SETTINGS) $4;"
				if [[ $mode == gpurhh* ]]; then echo "SELECT DISTINCT '-- ' || reason FROM gpurhh_refusals(\$q\$$4\$q\$);"; fi
			} | sql >"$explain/$name-$asked-${mode/:/-}.txt"
		done
	fi
	if grep '^@plan|gpurhh' "$work/result" | grep -qv GpuHashAgg; then
		note "note: the planner did not choose GpuHashAgg in all of its modes"
	fi
}

# median CASE ASKED MODE
median()
{
	awk -F, -v c="$1" -v a="$2" -v m="$3" '$1 == c && $3 == a && $5 == m && $6 != "explain" { print $7 }' "$out" |
		sort -n | awk '{ v[NR] = $1 } END { if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}
summary()
{
	local m t
	for m in $modes; do
		t=$(median "$1" "$2" "$m")
		printf '%s %.0f ms  ' "$m" "$t"
	done
}

# ---------- the cases ----------

key() { echo "floor(random() * $1)::$2"; }
value="floor(random() * 1000)::int4"

if one_of sum || one_of nested; then
	for g in $groups; do
		g=$(printf %.0f "$g")
		load "k int4, v int4" "$(key "$g" int4), $value"
		if one_of sum; then measure sum "$g" "count(*), sum(k), sum(s # 0)" "SELECT k, sum(v) AS s FROM t GROUP BY k"; fi
		if one_of nested; then measure nested "$g" "count(*), sum(k), sum(s)" "SELECT k, sum(v) AS s FROM t GROUP BY k"; fi
		if [ "$g" = 1000000 ] && one_of five; then
			measure five "$g" "count(*), sum(k), sum(a), sum(b), sum(c), sum(d), sum(e # 0)" \
				"SELECT k, count(*) AS a, sum(v) AS b, avg(v) AS c, min(v) AS d, max(v) AS e FROM t GROUP BY k"
			five_done=yes
		fi
	done
fi
if one_of five && [ -z "${five_done:-}" ]; then
	load "k int4, v int4" "$(key 1000000 int4), $value"
	measure five 1000000 "count(*), sum(k), sum(a), sum(b), sum(c), sum(d), sum(e # 0)" \
		"SELECT k, count(*) AS a, sum(v) AS b, avg(v) AS c, min(v) AS d, max(v) AS e FROM t GROUP BY k"
fi
if one_of bigint; then
	load "k int8, v int4" "$(key 1000000 int8) * 4294967311, $value"
	measure bigint 1000000 "count(*), sum(k), sum(s # 0)" "SELECT k, sum(v) AS s FROM t GROUP BY k"
fi
if one_of twokeys; then
	load "k1 int4, k2 int4, v int4" "$(key 1000 int4), $(key 1000 int4), $value"
	measure twokeys 1000000 "count(*), sum(k1), sum(k2), sum(s # 0)" "SELECT k1, k2, sum(v) AS s FROM t GROUP BY k1, k2"
fi
sum_query="SELECT k, sum(v) AS s FROM t GROUP BY k"
if one_of half || one_of ctas; then
	load "k int4, v int4" "$(key 1000000 int4), $value"
	if one_of half; then
		measure half 1000000 "count(*), sum(k), sum(s # 0)" "SELECT k, sum(v) AS s FROM t WHERE v < 500 GROUP BY k"
	fi
	if one_of ctas; then measure ctas 1000000 "count(*), sum(k), sum(s # 0)" "$sum_query" ctas; fi
fi
if one_of dirty; then
	load "k int4, v int4" "$(key 1000000 int4), $value" ANALYZE
	measure dirty 1000000 "count(*), sum(k), sum(s # 0)" "$sum_query"
fi
if one_of wide; then
	load "a text, b int4, k int4, v int4, c int8, d int8, e int8, f float8, g float8, h text, i int4, j int4, l int4, m int4, n int4, o int4" \
		"'text ' || i % 1000, i, $(key 1000000 int4), $value, i, i, i, i, i, 'more text', i, i, i, i, i, i"
	measure wide 1000000 "count(*), sum(k), sum(s # 0)" "$sum_query"
fi
if one_of text; then
	load "k text, v int4" "'key' || $(key 1000000 int4), $value"
	measure text 1000000 "count(*), sum(length(k)), sum(s # 0)" "$sum_query"
fi
if one_of md5; then
	load "k text, v int4" "md5(($(key 1000000 int4))::text), $value"
	measure md5 1000000 "count(*), sum(length(k)), sum(s # 0)" "$sum_query"
fi
if one_of q1; then
	load "l_orderkey int8, l_partkey int4, l_suppkey int4, l_linenumber int4,
		l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2),
		l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date,
		l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44)" \
		"i / 4, $(key 200000 int4), $(key 10000 int4), i % 7,
		1 + floor(random() * 50), (90000 + floor(random() * 10400000)) / 100, floor(random() * 11) / 100, floor(random() * 9) / 100,
		substr('RANN', 1 + floor(random() * 4)::int4, 1), substr('OF', 1 + floor(random() * 2)::int4, 1),
		date '1992-01-02' + floor(random() * 2526)::int4, date '1992-01-31' + floor(random() * 2466)::int4, date '1992-01-03' + floor(random() * 2554)::int4,
		'DELIVER IN PERSON', 'TRUCK', 'regular deposits ' || i % 10000"
	measure q1 6 "count(*), md5(string_agg(q::text, ',' ORDER BY l_returnflag, l_linestatus))" \
		"SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
			sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
			avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
		FROM t WHERE l_shipdate <= date '1998-12-01' - interval '90 days' GROUP BY l_returnflag, l_linestatus"
fi
if one_of distinct; then
	load "k int4, v int4" "$(key 1000000 int4), $value"
	measure distinct 1000000 "count(*), sum(k), sum(c)" "SELECT k, count(DISTINCT v) AS c FROM t GROUP BY k"
fi
if one_of sets || one_of cube; then
	load "a int4, b int4, c int4, v int4" "$(key 100000 int4), $(key 100 int4), $(key 7 int4), $value"
	if one_of sets; then
		measure sets 10000000 "count(*), sum(a), sum(b), sum(s)" \
			"SELECT a, b, sum(v) AS s FROM t GROUP BY GROUPING SETS ((a, b), (a), (b))"
	fi
	if one_of cube; then
		measure cube 70000000 "count(*), sum(a), sum(b), sum(c), sum(s)" \
			"SELECT a, b, c, sum(v) AS s FROM t GROUP BY CUBE (a, b, c)"
	fi
fi
# build_side ROWS: table u, a row for each key from 0, in no order
build_side()
{
	sql -c "DROP TABLE IF EXISTS u" \
		-c "CREATE UNLOGGED TABLE u AS SELECT k::int4, floor(random() * 1000)::int4 AS w FROM generate_series(0, $1 - 1) k ORDER BY random()" \
		-c "VACUUM (ANALYZE) u" -c "SELECT count(*) FROM u" >/dev/null
}
if one_of join || one_of joinexpr || one_of joinrows || one_of semi || one_of anti || one_of left || one_of skew || one_of zipf; then
	for g in $groups; do
		g=$(printf %.0f "$g")
		build_side "$g"
		load "k int4, v int4" "$(key "$g" int4), $value"
		if one_of join; then measure join "$g" "min(a), min(b # 0)" "SELECT sum(v) AS a, sum(w) AS b FROM t JOIN u USING (k)"; fi
		if one_of joinrows; then measure joinrows "$g" "min(a # 0)" "SELECT v AS a, w AS b FROM t JOIN u USING (k) OFFSET 0"; fi
		if one_of joinexpr; then measure joinexpr "$g" "min(a # 0)" "SELECT sum(v + w) AS a FROM t JOIN u USING (k)"; fi
		if one_of left; then measure left "$g" "min(a), min(b # 0)" "SELECT sum(v) AS a, sum(w) AS b FROM t LEFT JOIN u USING (k)"; fi
		if one_of semi; then
			measure semi "$g" "min(a # 0)" "SELECT sum(v) AS a FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k AND w < 500)"
		fi
		if one_of anti; then
			measure anti "$g" "min(a # 0)" "SELECT sum(v) AS a FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.k = t.k AND w < 500)"
		fi
		if one_of skew; then
			load "k int4, v int4" "CASE WHEN random() < 0.5 THEN 1 ELSE $(key "$g" int4) END, $value"
			measure skew "$g" "min(a), min(b # 0)" "SELECT sum(v) AS a, sum(w) AS b FROM t JOIN u USING (k)"
		fi
		if one_of zipf; then
			load "k int4, v int4" "floor(0.5 + 0.5 * (2 * $g + 1) ^ random())::int4 - 1, $value"
			measure zipf "$g" "min(a), min(b # 0)" "SELECT sum(v) AS a, sum(w) AS b FROM t JOIN u USING (k)"
		fi
	done
	sql -c "DROP TABLE u"
fi
if one_of pairs; then
	load "k int4, w int4" "$(key 1000 int4), $value"
	sql -c "DROP TABLE IF EXISTS u" -c "ALTER TABLE t RENAME TO u"
	load "k int4, v int4" "$(key 1000 int4), $value"
	tables="t u"
	measure pairs 1000 "min(a), min(b), min(c), min(d # 0)" \
		"SELECT count(*) AS a, sum(v) AS b, sum(w) AS c, sum(v * w) AS d FROM t JOIN u USING (k)"
	tables=t
fi
if one_of star; then
	load "a int4, b int4, c int4, v int4" "$(key 10000 int4), $(key 1000 int4), $(key 100 int4), $value"
	for d in "a 10000" "b 1000" "c 100"; do
		sql -c "DROP TABLE IF EXISTS d${d% *}" \
			-c "CREATE UNLOGGED TABLE d${d% *} AS SELECT i AS ${d% *}, 'name ' || i % 200 AS name_${d% *}, i % 10 AS x_${d% *} FROM generate_series(0, ${d#* } - 1) i" \
			-c "VACUUM (ANALYZE) d${d% *}"
	done
	measure star 200 "count(*), sum(n), min(s # 0)" \
		"SELECT name_b, count(*) AS n, sum(v) AS s FROM t JOIN da USING (a) JOIN db USING (b) JOIN dc USING (c) WHERE x_a < 5 AND x_c < 8 GROUP BY name_b"
	sql -c "DROP TABLE da, db, dc"
fi
sql -c "DROP TABLE IF EXISTS t"
if one_of 'tpch*'; then
	schema=gpurhh_tpch tables="lineitem orders customer"
	rows=$(sql -c "SELECT reltuples::int8 FROM pg_class WHERE oid = 'lineitem'::regclass")
	while IFS='|' read -r name query; do
		if one_of tpch || one_of "tpch-$name"; then
			measure "tpch-$name" "$scale" "count(*), md5(string_agg(q::text, ','))" "$query"
		fi
	done <<<"$list"
fi

# ---------- the table ----------

# A line for each case and each of our modes, beside core's.
echo
printf '%-8s %10s %10s %10s %10s %-10s %9s %9s %9s | %8s %8s %8s %8s %8s %8s %s\n' \
	case rows groups serial parallel mode gpurhh /serial /parallel feed wait upload kernel extract emit by
awk -F, '!/^#/ && $1 != "case" && $5 ~ /^gpurhh/ { print $1 "," $2 "," $3 "," $4 "," $5 }' "$out" | awk '!seen[$0]++' |
while IFS=, read -r c r a found mode; do
	s=$(median "$c" "$a" serial)
	p=${mode/-pages/}
	p=$(median "$c" "$a" "${p/gpurhh/parallel}")
	p=${p:-$(median "$c" "$a" parallel)}
	g=$(median "$c" "$a" "$mode")
	times=$(awk -F, -v c="$c" -v a="$a" -v m="$mode" '$1 == c && $3 == a && $5 == m && $6 == "explain" {
		print $8 "," $9 "," $10 "," $11 "," $12 "," $13 "," $14 }' "$out")
	awk -v c="$c" -v r="$r" -v f="$found" -v s="$s" -v p="$p" -v m="$mode" -v g="$g" -v t="$times" '
		function ms(x) { return x == "" ? "-" : sprintf("%.0f", x) }
		function ratio(x, y) { return x == "" || y == "" ? "-" : sprintf("%.1fx", x / y) }
		BEGIN {
			split(t, e, ",")
			printf "%-8s %10d %10d %10s %10s %-10s %9s %9s %9s | %8s %8s %8s %8s %8s %8s %s\n", c, r, f, ms(s), ms(p), m, ms(g),
				ratio(s, g), ratio(p, g), ms(e[1]), ms(e[2]), ms(e[3]), ms(e[4]), ms(e[5]), ms(e[6]), e[7]
		}'
done
echo
echo "times in ms, medians of $reps; the runs are in $out"
if [ -z "$running$cluster" ]; then cluster_stop "$throw_away"; fi
