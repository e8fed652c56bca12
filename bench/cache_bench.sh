#!/bin/bash
# cache_bench.sh: the first and the second time of a query: pages out of shared buffers, and
# pages that the GPU has kept (gpurhh.cache_size).
#
#	--rows N		of the table t, (k int4, v int4) (default 50000000)
#	--groups "LIST"	distinct keys (default "100 10000 1000000 10000000")
#	--joins "LIST"	rows of the table that t is joined with (default "1000000 10000000"); none: "-"
#	--tpch S		queries in the shape of TPC-H's, at this scale (default 0: none)
#	--reps N		timed runs of each (default 5)
#	--core-reps N	those of core, which take longest (default as many)
#	--modes "LIST"	of: duckdb core columns first first:1 again again:1 (default all but the first two).
#					duckdb: DuckDB, with all cores, of copies of the tables in a database of its own;
#					core: PostgreSQL's own plans; columns: sessions make columns; first: the cache has
#					nothing of the tables; again: it has them.  With the processes that the planner
#					takes, or with :1 one
#	--out FILE		default bench/results/DATE-cache.csv
#	--running		use the server that PGHOST, PGPORT, … lead to, which has gpurhh preloaded,
#					instead of a throw-away cluster
#
# Keys are uniform and at random.  Tables are logged, vacuumed and in shared buffers.  Each query's
# rows are consumed in the server.  A row of the CSV is a run; the table at the end is of medians.
# Ends with an error if the modes do not agree on an answer; DuckDB's to queries of TPC-H's shape are
# not compared, as it has other types there.  DuckDB is asked through node, with the package
# @duckdb/node-api: "npm install --prefix DIR @duckdb/node-api", and NODE_PATH=DIR/node_modules.
. "$(dirname "$0")/../scripts/lib.sh"

rows=50000000 groups="100 10000 1000000 10000000" joins="1000000 10000000" tpch=0 reps=5 core_reps=
modes="columns first first:1 again again:1" out= running=
while [ $# -gt 0 ]; do
	case $1 in
		--running) running=yes; shift ;;
		--rows | --groups | --joins | --tpch | --reps | --modes | --out)
			[ $# -ge 2 ] || die "$1 needs a value"
			declare "${1#--}=$2"; shift 2 ;;
		--core-reps) [ $# -ge 2 ] || die "$1 needs a value"; core_reps=$2; shift 2 ;;
		*) usage ;;
	esac
done
out=${out:-bench/results/$(date +%Y-%m-%d)-cache.csv}
[ "$joins" != - ] || joins=

psql=psql
if [ -z "$running" ]; then
	set_up_and_install
	ram_mb=$(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
	cluster_start throw_away "shared_preload_libraries = 'gpurhh'" "autovacuum = off" "max_parallel_workers_per_gather = $(nproc)" \
		"max_worker_processes = $((2 * $(nproc) + 8))" "max_parallel_workers = $((2 * $(nproc)))" \
		"shared_buffers = $((ram_mb / 4))MB" "max_wal_size = 20GB"
	psql=$PGBIN/psql
fi
schema=public
sql() { PGOPTIONS="-c client_min_messages=warning -c search_path=$schema,public" "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }
sql -c "CREATE EXTENSION IF NOT EXISTS gpurhh" -c "SELECT 1" >/dev/null || die "cannot reach a server with gpurhh installed"
new_tmpdir work
duckdb() { node bench/duckdb.cjs "$work/duckdb"; }
duckdb_version=
if [[ " $modes " == *" duckdb "* ]]; then
	duckdb_version=$(duckdb <<<"SELECT version()") || die "there is no DuckDB: see the head of this file"
fi

{
	describe_server
	[ -z "$duckdb_version" ] || echo "# DuckDB ${duckdb_version%%$'\n'*}"
	echo "# command: bench/cache_bench.sh --rows $rows --groups \"$groups\" --joins \"$joins\" --tpch $tpch --reps $reps${core_reps:+ --core-reps $core_reps} --modes \"$modes\"${running:+ --running}"
	if [ "$tpch" != 0 ]; then echo "# queries in the shape of TPC-H's, on data of our own: no results of TPC-H"; fi
	echo "# tables are logged, vacuumed and in shared buffers; times in ms"
	echo "case,size,mode,rep,ms,answer"
} >"$work/head"
mkdir -p "$(dirname "$out")"
cp "$work/head" "$out"

mode_settings()
{
	local node=on

	[ "$1" != core ] || node=off
	echo "LOAD 'gpurhh'; SET jit = off; SET work_mem = '1GB'; SET enable_gpu_hashagg = $node; SET enable_gpu_hashjoin = $node;"
	echo "SET gpurhh.read_pages = $([ "${1%:1}" = columns ] && echo off || echo on);"
	case $1 in *:1) echo "SET max_parallel_workers_per_gather = 0;" ;; esac
}

# to_duckdb TABLES: sees to it that DuckDB has them as they are
declare -A duckdb_has
to_duckdb()
{
	local t file pages columns values jobs i pids

	jobs=$(nproc)
	for t in "$@"; do
		# without the blanks of char(n), which DuckDB takes for part of the value
		IFS='|' read -r file pages columns values < <(sql -c "SELECT pg_relation_filenode('$t'), pg_relation_size('$t') / current_setting('block_size')::int8,
				string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum),
				string_agg(attname || CASE WHEN atttypid = 'bpchar'::regtype THEN '::text' ELSE '' END, ', ' ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = '$t'::regclass AND attnum > 0 AND NOT attisdropped")
		[ "${duckdb_has[$t]:-}" != "$file" ] || continue
		pids=()
		for ((i = 0; i < jobs; i++)); do
			sql -c "COPY (SELECT $values FROM $t WHERE ctid >= '($((pages * i / jobs)),0)' AND ctid < '($((pages * (i + 1) / jobs)),0)')
				TO STDOUT (FORMAT csv)" >"$work/$t.$i.csv" &
			pids+=($!)
		done
		for i in "${pids[@]}"; do wait "$i" || die "cannot copy $t"; done
		duckdb <<-END >/dev/null || die "DuckDB cannot read $t"
			CREATE OR REPLACE TABLE $t ($columns)
			COPY $t FROM '$work/$t.*.csv' (FORMAT csv, HEADER false, AUTO_DETECT false, DELIMITER ',', QUOTE '"', ESCAPE '"')
		END
		rm "$work/$t".*.csv
		duckdb_has[$t]=$file
	done
}

# measure_duckdb CASE SIZE TABLES QUERY: the same of DuckDB
measure_duckdb()
{
	local rep tables query=$4 answer=cat

	# groups that a device returns are the same question to it, in an operator that it does not have
	[ "$1" != returned ] || return 0
	read -ra tables <<<"$3"
	to_duckdb "${tables[@]}"
	if [[ $query =~ ^"SELECT md5(string_agg(x::text, ' ')) FROM ("(.*)") x"$ ]]; then
		query=${BASH_REMATCH[1]} answer="sed -E /^Time:/!s/.*/-/"
	fi
	for ((rep = 0; rep <= reps; rep++)); do echo "$query"; done | duckdb >"$work/result" || die "$1 fails in DuckDB"
	$answer "$work/result" | timed_runs "$1,$2,duckdb" >>"$out"
}

# measure CASE SIZE TABLES QUERY: a line of the CSV for each run
measure()
{
	local mode rep t n

	for mode in $modes; do
		n=$reps
		[ "$mode" != core ] || n=${core_reps:-$reps}
		if [ "$mode" = duckdb ]; then
			measure_duckdb "$@"
			continue
		fi
		{
			mode_settings "$mode"
			for ((rep = 0; rep <= n; rep++)); do
				case $mode in
					first*) for t in $3; do echo "SELECT gpurhh_cache_drop('$t') \\g /dev/null"; done ;;
				esac
				echo "\\timing on"
				echo "$4;"
				echo "\\timing off"
			done
		} >"$work/script"
		sql -f "$work/script" >"$work/result" || die "$1 fails"
		timed_runs "$1,$2,$mode" <"$work/result" >>"$out"
	done
}

if [ -n "$groups" ]; then
	jobs=$(nproc)
	for g in $groups; do
		step "$g groups"
		pids=()
		sql -c "DROP TABLE IF EXISTS t" -c "CREATE TABLE t (k int4, v int4)"
		for ((i = 0; i < jobs; i++)); do
			sql -c "SELECT setseed($i / 100.0)" -c "INSERT INTO t SELECT (random() * $g)::int4 % $g, i % 1000
				FROM generate_series($rows::int8 * $i / $jobs + 1, $rows::int8 * ($i + 1) / $jobs) i" >/dev/null &
			pids+=($!)
		done
		for i in "${pids[@]}"; do wait "$i" || die "could not fill the table"; done
		# what was committed asynchronously is not marked as visible to all before it is written
		sql -c "SELECT pg_sleep(1)" -c "VACUUM (ANALYZE) t" -c "SELECT count(*) FROM t" >/dev/null
		settle
		measure sum "$g" t "SELECT count(*), sum(s + 0) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) g"
		# a device does not know this operator, so the groups are returned
		measure returned "$g" t "SELECT count(*), sum(s # 0) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) g"
		[ "$g" = 1000000 ] || continue
		measure count - t "SELECT count(*) FROM t"
		measure total - t "SELECT sum(v) FROM t"
	done
	for n in $joins; do
		step "join with $n rows"
		sql -c "DROP TABLE IF EXISTS d" -c "CREATE TABLE d AS SELECT i::int4 AS id, (i % 1000)::int4 AS a FROM generate_series(0, $n - 1) i" \
			-c "SELECT pg_sleep(1)" -c "VACUUM (ANALYZE) d" -c "SELECT count(*) FROM d" >/dev/null
		settle
		measure join "$n" "t d" "SELECT count(*), sum(s + 0) FROM (SELECT d.a, sum(t.v) AS s FROM t JOIN d ON d.id = t.k GROUP BY d.a) g"
	done
fi
if [ "$tpch" != 0 ]; then
	persistence=
	. bench/suites/tpch.sh
	schema=gpurhh_tpch_logged
	if [ "$(sql -c "SELECT obj_description(to_regnamespace('$schema'), 'pg_namespace')")" != "scale $tpch" ]; then
		step "make the tables of scale $tpch"
		sql -c "DROP SCHEMA IF EXISTS $schema CASCADE" -c "CREATE SCHEMA $schema"
		make_tables "$(awk -v s="$tpch" 'BEGIN { printf "%.0f", s * 6e6 }')" || die "could not make the tables"
		sql -c "SELECT pg_sleep(1)" -c "VACUUM" -c "COMMENT ON SCHEMA $schema IS 'scale $tpch'" >/dev/null
	fi
	settle
	for q in q1 q3 q5 q6 q12 q18; do
		step "$q"
		measure "$q" "$tpch" "lineitem orders customer supplier nation region" \
			"SELECT md5(string_agg(x::text, ' ')) FROM ($(grep "^$q|" <<<"$list" | cut -d'|' -f2-)) x"
	done
fi

# ---------- the table, and whether all agree ----------

awk -F, -v modes="$modes" '
	/^#/ || $1 == "case" { next }
	{
		key = sprintf("%-6s %10s", $1, $2)
		if (!(key in seen)) { seen[key] = 1; order[++n] = key }
		if (!(key in answer) && $6 != "-") answer[key] = $6
		if ($6 != "-" && answer[key] != $6) { print "DIFFERENT: " $0; bad = 1 }
		times[key, $3, ++count[key, $3]] = $5
	}
	END {
		split(modes, m, " ")
		printf "%-17s", ""
		for (i = 1; i in m; i++) printf "%10s", m[i]
		print ""
		for (o = 1; o <= n; o++)
		{
			printf "%s", order[o]
			for (i = 1; i in m; i++)
			{
				c = count[order[o], m[i]]
				for (a = 1; a <= c; a++) t[a] = times[order[o], m[i], a]
				for (a = 2; a <= c; a++)
					for (b = a; b > 1 && t[b] < t[b - 1]; b--) { x = t[b]; t[b] = t[b - 1]; t[b - 1] = x }
				printf "%10.1f", c ? t[int((c + 1) / 2)] : 0
			}
			print ""
		}
		exit bad
	}' "$out" || die "the answers differ"
echo "in $out"
