#!/bin/bash
# load_bench.sh: many sessions at once, core's plans against GpuHashAgg, in turn.
#
#	--sessions N	(default 24)
#	--seconds N		of each run (default 10)
#	--rounds N		runs of each mode, interleaved (default 3)
#	--rows "LIST"	rows of the table (default 20000 100000 1000000)
#	--costs "LIST"	of: zero default (default both).  zero: the node's costs and those
#					of parallel plans are 0, so that all is parallel, and the node's
#	--pools "LIST"	gpurhh.pool_size of each of a number of clusters (default 32MB 256kB)
#	--out FILE		default bench/results/DATE-cpu-N-cores-load.csv
#
# What the sessions do is in bench/load.pl.  A row of the CSV is a run: its
# transactions a second, and their median, 99th percentile and slowest in ms.  The
# table at the end is of medians over the rounds.
. "$(dirname "$0")/../scripts/lib.sh"

sessions=24 seconds=10 rounds=3 rows="20000 100000 1000000" costs="zero default" pools="32MB 256kB" out=
while [ $# -gt 0 ]; do
	case $1 in
		--sessions | --seconds | --rounds | --rows | --costs | --pools | --out)
			[ $# -ge 2 ] || die "$1 needs a value"
			declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done

set_up_and_install
out=${out:-bench/results/$(date +%Y-%m-%d)-cpu-$(nproc)-cores-load.csv}

describe()
{
	echo "# gpurhh, $(describe_commit)"
	echo "# $("$PG_CONFIG" --version)"
	echo "# $(describe_host)"
	echo "# command: bench/load_bench.sh --sessions $sessions --seconds $seconds --rounds $rounds --rows \"$rows\" --costs \"$costs\" --pools \"$pools\""
	echo "# tables are vacuumed and cached; times in ms"
	echo "pool,rows,costs,round,mode,load_average,transactions,per_second,median_ms,p99_ms,slowest_ms"
}
mkdir -p "$(dirname "$out")"
describe >"$out"

# run POOL ROWS COSTS ROUND MODE: a line of the CSV
run()
{
	local load figures

	load=$(cut -d' ' -f1 /proc/loadavg)
	figures=$(PATH=$PGBIN:$PATH bench/load.pl run "$2" "$3" "$5" "$sessions" "$seconds")
	echo "$1,$2,$3,$4,$5,$load,$figures" >>"$out"
	tail -1 "$out"
}

for pool in $pools; do
	cluster_start cluster "shared_preload_libraries = 'gpurhh'" "gpurhh.pool_size = '$pool'" \
		"shared_buffers = 512MB" "autovacuum = off" "max_connections = $((sessions + 20))" \
		"max_worker_processes = $((2 * sessions + 20))" "max_parallel_workers = $((2 * sessions))"
	"$PGBIN/psql" -Xq -v ON_ERROR_STOP=1 -c "CREATE EXTENSION gpurhh"
	for n in $rows; do
		PATH=$PGBIN:$PATH bench/load.pl make "$n"
		for cost in $costs; do
			step "$pool, $n rows, costs $cost"
			for ((round = 1; round <= rounds; round++)); do
				if ((round % 2)); then modes="off on"; else modes="on off"; fi
				for mode in $modes; do run "$pool" "$n" "$cost" "$round" "$mode"; done
			done
		done
	done
	cluster_stop "$cluster"
done

echo
echo "pool, rows, costs: transactions a second off, on; slowest ms off, on"
awk -F, '
	function median(list,   n, a, i, j, x) {
		n = split(list, a, " ")
		for (i = 2; i <= n; i++) { x = a[i] + 0; for (j = i - 1; j > 0 && a[j] + 0 > x; j--) a[j + 1] = a[j]; a[j + 1] = x }
		return (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2
	}
	/^#/ || $1 == "pool" { next }
	{ key = $1 ", " $2 ", " $3; if (!(key in seen)) { order[++n_keys] = key; seen[key] = 1 }
	  rate[key, $5] = rate[key, $5] " " $8; slow[key, $5] = slow[key, $5] " " $11 }
	END { for (i = 1; i <= n_keys; i++) { k = order[i]
		printf "%s: %.1f, %.1f; %.0f, %.0f\n", k, median(rate[k, "off"]), median(rate[k, "on"]), median(slow[k, "off"]), median(slow[k, "on"]) } }' "$out"
echo "written: $out"
