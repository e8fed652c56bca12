#!/bin/bash
# page_tables_bench.sh: tables whose pages a device may not, or cannot, read at once: is giving it pages
# (gpurhh.read_pages = auto) ever slower than columns that sessions make?
#
#	--rows N		of the table (default 10000000), (k int4, v int4, w numeric)
#	--cases "LIST"	of these (default all):
#		vacuumed	all pages are all visible
#		marked		no page is, as there was no VACUUM, but it is known who has committed
#		updated		a tenth of the rows has been updated since VACUUM
#		deleted		a third has been deleted since VACUUM
#		changing	another session updates rows all the time
#		cold		no page is in shared buffers
#		large		the table has more pages than shared buffers: 1.5 times as many
#	--reps N		timed runs of each (default 5)
#	--out FILE		default bench/results/DATE-page-tables.csv
#	--running		use the server that PGHOST, PGPORT, … lead to, which has gpurhh preloaded, and
#					pg_prewarm, instead of a throw-away cluster.  1 GB of shared buffers will do: what
#					is cold or large is made by filling them
#	--cache-size S	gpurhh.cache_size of the throw-away cluster
#
# Queries: few, by 100 keys, and numerics, with a filter.  Modes: columns, read_pages = off; first, the cache has nothing
# of the table; again, it has what can be kept.  A row of the CSV is a run; the table at the end is of
# medians, and of these beside those of columns.  Ends with an error if modes do not agree on an answer.
. "$(dirname "$0")/../scripts/lib.sh"

rows=10000000 cases="vacuumed marked updated deleted changing cold large" reps=5 out= running= cache_size=
while [ $# -gt 0 ]; do
	case $1 in
		--running) running=yes; shift ;;
		--rows | --cases | --reps | --out | --cache-size)
			[ $# -ge 2 ] || die "$1 needs a value"
			name=${1#--}; declare "${name/-/_}=$2"; shift 2 ;;
		*) usage ;;
	esac
done
out=${out:-bench/results/$(date +%Y-%m-%d)-page-tables.csv}

psql=psql
if [ -z "$running" ]; then
	set_up_and_install
	cluster_start throw_away "shared_preload_libraries = 'gpurhh'" "autovacuum = off" "max_parallel_workers_per_gather = $(nproc)" \
		"max_worker_processes = $((2 * $(nproc) + 8))" "max_parallel_workers = $((2 * $(nproc)))" \
		"shared_buffers = 1GB" "max_wal_size = 20GB" ${cache_size:+"gpurhh.cache_size = '$cache_size'"}
	psql=$PGBIN/psql
fi
sql() { PGOPTIONS="-c client_min_messages=warning" "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }
sql -c "CREATE EXTENSION IF NOT EXISTS gpurhh" -c "CREATE EXTENSION IF NOT EXISTS pg_prewarm" ||
	die "cannot reach a server with gpurhh and pg_prewarm installed"
new_tmpdir work

{
	describe_server
	echo "# command: bench/page_tables_bench.sh --rows $rows --cases \"$cases\" --reps $reps${running:+ --running}${cache_size:+ --cache-size $cache_size}"
	echo "# times in ms"
	echo "case,query,mode,rep,ms,answer"
} >"$work/head"
mkdir -p "$(dirname "$out")"
cp "$work/head" "$out"

few="SELECT count(*), sum(s + 0) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) g"
numerics="SELECT md5(string_agg(g::text, ' ')) FROM (SELECT k % 4 AS k, count(*), sum(w), sum(w * (1 - w)) FROM t WHERE v < 900 GROUP BY 1 ORDER BY 1) g"

# fill N: the table t of N rows, of which nothing is marked
fill()
{
	local jobs i pids=()
	jobs=$(nproc)

	sql -c "DROP TABLE IF EXISTS t" -c "CREATE TABLE t (k int4, v int4, w numeric(10,2))"
	for ((i = 0; i < jobs; i++)); do
		sql -c "INSERT INTO t SELECT i % 100, i % 1000, (i % 10007) / 100.0
			FROM generate_series($1::int8 * $i / $jobs + 1, $1::int8 * ($i + 1) / $jobs) i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || die "could not fill the table"; done
	# what was committed asynchronously is not marked before it is written
	sql -c "SELECT pg_sleep(1)" -c "ANALYZE t" >/dev/null
}

# measure CASE: lines of the CSV for each query, mode and run
measure()
{
	local query mode rep

	for query in few numerics; do
		for mode in columns first again; do
			{
				echo "LOAD 'gpurhh'; SET jit = off; SET enable_gpu_hashagg = on;"
				echo "SET gpurhh.read_pages = $([ $mode = columns ] && echo off || echo auto);"
				for ((rep = 0; rep <= reps; rep++)); do
					[ $mode != first ] || echo "SELECT gpurhh_cache_drop('t') \\g /dev/null"
					[ "$1" != cold ] || echo "SELECT pg_prewarm('filler') \\g /dev/null"
					printf '%s\n' "\\timing on" "${!query};" "\\timing off"
				done
			} >"$work/script"
			sql -f "$work/script" >"$work/result" || die "$1 fails"
			timed_runs "$1,$query,$mode" <"$work/result" >>"$out"
		done
	done
}

for c in $cases; do
	step "$c"
	n=$rows
	if [ "$c" = large ]; then
		fill "$rows"
		n=$(sql -c "SELECT (1.5 * setting::int8 / relpages * $rows)::int8 FROM pg_settings, pg_class WHERE name = 'shared_buffers' AND relname = 't'")
	fi
	fill "$n"
	[ "$c" = marked ] || sql -c "VACUUM t"
	case $c in
		marked) sql -c "SELECT count(*) FROM t" >/dev/null ;;
		updated) sql -c "UPDATE t SET v = v WHERE v % 10 = 3" ;;
		deleted) sql -c "DELETE FROM t WHERE v % 3 = 1" ;;
		# (plain: else what it has is compressed)
		cold) sql -c "DROP TABLE IF EXISTS filler" -c "CREATE TABLE filler (x text) WITH (autovacuum_enabled = off)" \
			-c "ALTER TABLE filler ALTER x SET STORAGE PLAIN" -c "INSERT INTO filler SELECT repeat('x', 7000)
			FROM generate_series(1, (SELECT setting::int8 FROM pg_settings WHERE name = 'shared_buffers'))" ;;
	esac
	settle
	if [ "$c" = changing ]; then
		# until its table is gone
		sql -c "CREATE TABLE goes_on ()"
		(while sql -c "UPDATE t SET v = v WHERE ctid = ANY (ARRAY(SELECT format('(%s,%s)', (random() * relpages)::int, 1 + (random() * 100)::int)::tid
			FROM pg_class, generate_series(1, 100) WHERE relname = 't'))" \
			-c "SELECT FROM goes_on" >/dev/null 2>&1; do :; done) &
	fi
	measure "$c"
	if [ "$c" = changing ]; then
		sql -c "DROP TABLE goes_on"
		wait $!
	fi
done
sql -c "DROP TABLE IF EXISTS t, filler"

awk -F, '
	/^#/ || $1 == "case" { next }
	{
		key = sprintf("%-10s %-9s", $1, $2)
		if (!(key in seen)) { seen[key] = 1; order[++n] = key; answer[key] = $6 }
		if (answer[key] != $6) { print "DIFFERENT: " $0; bad = 1 }
		times[key, $3, ++count[key, $3]] = $5
	}
	function median(key, mode,   c, a, b, x, t)
	{
		c = count[key, mode]
		for (a = 1; a <= c; a++) t[a] = times[key, mode, a]
		for (a = 2; a <= c; a++)
			for (b = a; b > 1 && t[b] < t[b - 1]; b--) { x = t[b]; t[b] = t[b - 1]; t[b - 1] = x }
		return c ? t[int((c + 1) / 2)] : 0
	}
	END {
		printf "%-20s%10s%10s%10s%9s%9s\n", "", "columns", "first", "again", "first/c", "again/c"
		for (o = 1; o <= n; o++)
		{
			c = median(order[o], "columns"); f = median(order[o], "first"); a = median(order[o], "again")
			printf "%s%10.1f%10.1f%10.1f%9.2f%9.2f\n", order[o], c, f, a, f / c, a / c
		}
		exit bad
	}' "$out" || die "the answers differ"
echo "in $out"
