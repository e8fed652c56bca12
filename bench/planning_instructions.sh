#!/bin/bash
# planning_instructions.sh: how many instructions the planner takes with the nodes, and
# without them, for the queries of bench/suites/planning.sh, by valgrind's callgrind.
#
# Unlike times these are the same on a machine that is busy.  Parallel plans are considered.
# It fails where a query takes more than 5 % and more than 180,000 instructions more, which
# is some 50 µs.
#
#	--rows N		of the fact table (default 100000: device plans are chosen)
#	--shapes REGEX	only those whose name matches
#	--set "SETTING; …"	for the nodes as well as without: "SET gpurhh.row_cost = 1" has
#					the same joins considered, and lost
#
# Needs valgrind.
. "$(dirname "$0")/../scripts/lib.sh"

rows=100000 shapes=. set=
while [ $# -gt 0 ]; do
	case $1 in
		--rows | --shapes | --set) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done
command -v valgrind >/dev/null || die "valgrind is not here"
. bench/suites/planning.sh
set_up_and_install
step "tables of $rows rows"
cluster_start cluster "shared_preload_libraries = 'gpurhh'" "autovacuum = off"
psql=$PGBIN/psql
export PGOPTIONS="-c client_min_messages=warning -c jit=off -c work_mem=64MB -c search_path=gpurhh_auto,public"
sql() { "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }
sql -c "CREATE EXTENSION gpurhh SCHEMA public" -c "CREATE SCHEMA gpurhh_auto"
make_tables "$rows" >/dev/null

# Each query is planned three times a side, so that the catalog is in the caches at last.
step "planning under callgrind"
queries=$(while IFS='|' read -r name query; do
	[[ $name =~ $shapes ]] || continue
	settings=
	if [[ $query == *';'* ]]; then settings="${query%;*};" query=${query##*; }; fi
	for side in off on; do
		echo "BEGIN; SET enable_gpu_hashagg = $side; SET enable_gpu_hashjoin = $side; $set; $settings"
		for i in 1 2 3; do echo "\\echo == $name $side"; echo "${query/(SUMMARY)/};"; done
		echo "ROLLBACK;"
	done
done <<<"$list")
pg_ctl -D "$cluster/data" -m fast -w stop >/dev/null
(cd / && as_user valgrind --tool=callgrind --toggle-collect=planner --dump-after=planner \
	--callgrind-out-file="$cluster/out.%p" "$PGBIN/postgres" -D "$cluster/data") >"$cluster/valgrind" 2>&1 &
for ((i = 0; i < 120; i++)); do sql -c "SELECT" >/dev/null 2>&1 && break; sleep 1; done
sql <<<"$queries" >"$cluster/plans" || die "a query failed"
pg_ctl -D "$cluster/data" -m fast -w stop >/dev/null
wait

# The session is the process with the most dumps, one for each query.
session=$(for f in "$cluster"/out.*.*; do f=${f##*/out.}; echo "${f%.*}"; done | sort | uniq -c | sort -n | tail -1 | awk '{ print $2 }')
i=0
grep '^==' "$cluster/plans" | while read -r _ name side; do
	i=$((i + 1))
	echo "$name $side $(awk '/^(summary|totals):/ { n = $2 } END { print n }' "$cluster/out.$session.$i")"
done | awk -v plans="$cluster/plans" '
	BEGIN {
		while ((getline line <plans) > 0) {
			if (line ~ /^==/) { split(line, f, " "); query = f[2] f[3] }
			else if (line ~ /GpuHash/) node[query] = 1
		}
		printf "%-20s %6s %12s %12s %9s %7s\n", "shape", "plan", "off", "on", "more", "%"
	}
	{ n[$1, $2] = $3; if (!($1 in seen)) { seen[$1] = 1; names[++k] = $1 } }
	END {
		for (i = 1; i <= k; i++) {
			name = names[i]; off = n[name, "off"]; more = n[name, "on"] - off
			bad = more > off * 0.05 && more > 180000
			worse += bad
			printf "%-20s %6s %12d %12d %9d %7.2f%s\n", name, (name "on") in node ? "gpurhh" : "core", off, off + more, more, 100 * more / off, bad ? " <- more" : ""
		}
		printf "%d measured, %d take more\n", k, worse
		exit worse > 0 || k == 0
	}'
