#!/bin/bash
# demo.sh, or "make demo": GROUP BY queries over 10 million rows, planned by
# PostgreSQL itself and through GpuHashAgg, with both plans, both times and the
# answers compared.  Sets up, builds and installs what is missing first; runs in
# a throw-away cluster and leaves nothing running.  Exits with 1 if any answer
# differs or GpuHashAgg was not used.
#
# Environment: DEMO_ROWS (default 10000000), DEMO_DEVICE (gpurhh.device, default
# auto), PG_CONFIG, WITH_CUDA, CUDA_ARCHS, TMPDIR.
. "$(dirname "$0")/lib.sh"

rows=${DEMO_ROWS:-10000000}
device=${DEMO_DEVICE:-auto}

set_up_and_install

# Enough memory that neither side spills: the same setting for both.
ram_mb=$(awk '/MemTotal/ { printf "%d", $2 / 1024 }' /proc/meminfo)
at_most() { echo $(($1 < $2 ? $1 : $2)); }
work_mem=$(at_most 1024 $((ram_mb / 8)))
shared_buffers=$(at_most 2048 $((ram_mb / 4)))

step "start a throw-away cluster, nothing preloaded (work_mem ${work_mem} MB for both)"
cluster_start cluster "shared_buffers = ${shared_buffers}MB" "work_mem = ${work_mem}MB" \
	"wal_level = minimal" "max_wal_senders = 0" "max_wal_size = 4GB" "autovacuum = off"

# One session does it all, as a user would: what is printed is what it answers.
coproc PSQL { exec 2>&1; as_user "$PGBIN/psql" -XqAt -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -v rows="$rows"; }
session=$PSQL_PID

# Runs SQL in the session, its output in $answer; an error ends the demo.
get()
{
	local line

	answer=
	printf '%s\n;\nSELECT %s;\n' "$1" "'-- answered --'" >&"${PSQL[1]}" || die "the session is gone"
	while IFS= read -r line <&"${PSQL[0]}"; do
		if [ "$line" = '-- answered --' ]; then
			answer=${answer%$'\n'}
			return
		fi
		answer+=$line$'\n'
	done
	die "failed: $1"$'\n'"$answer"
}

# The blocks of demo.sql.
load= titles=() consumes=() queries=()
while IFS= read -r line; do
	case $line in
		'-- load:'*) block=load text= ;;
		'-- title: '*) block=query text= titles+=("${line#-- title: }") ;;
		'-- consume: '*) consumes+=("${line#-- consume: }") ;;
		'-- end')
			if [ $block = load ]; then load=$text; else queries+=("${text%;*}"); fi
			block= ;;
		*) text+=$line$'\n' ;;
	esac
done <scripts/demo.sql

step "load $rows rows into a plain table"
get "SELECT setseed(0.5)"
get "$load"
get "VACUUM (ANALYZE) sales"

step "CREATE EXTENSION gpurhh, in this session"
get "CREATE EXTENSION gpurhh"
get "SET gpurhh.device = '$device'"
get "SELECT format('   %-8s %s%s%s', device, name,
		' (compute capability ' || nullif(compute_capability, '') || ')', ', ' || state ||
		coalesce(': ' || nullif(detail, ''), ''))
	FROM gpurhh_devices()"
echo "$answer"

failed=0
summary=()

# time_query on|off RUNS SQL: $ms is the best of so many runs, $rows_out how many
# rows the query gave.
time_query()
{
	local run t

	get "SET enable_gpu_hashagg = $1"
	ms=
	for ((run = 0; run < $2; run++)); do
		get '\timing on'$'\n'"$3;"$'\n''\timing off'
		t=$(sed -n 's/^Time: \([0-9]*\)\..*/\1/p' <<<"$answer")
		if [ -z "$ms" ] || [ "$t" -lt "$ms" ]; then ms=$t; fi
	done
	[ "$ms" -gt 0 ] || ms=1
	rows_out=${answer%%|*}
}

# answers_differ QUERY: compares the multisets of rows.  Small results row by
# row, as they are printed; large ones by number and the exact sum of a 64-bit
# hash of each row.
answers_differ()
{
	local native gpurhh

	if [ "$rows_out" -le 200000 ]; then
		get "SET enable_gpu_hashagg = off; CREATE TEMP TABLE native AS SELECT q::text FROM ($1) q"
		get "SET enable_gpu_hashagg = on; CREATE TEMP TABLE gpurhh AS SELECT q::text FROM ($1) q"
		get "SELECT count(*) FROM ((TABLE native EXCEPT ALL TABLE gpurhh)
			UNION ALL (TABLE gpurhh EXCEPT ALL TABLE native)) d"
		native=0 gpurhh=$answer
		get "DROP TABLE native; DROP TABLE gpurhh"
	else
		get "SET enable_gpu_hashagg = off; SELECT count(*), sum(hash_record_extended(q, 1)) FROM ($1) q"
		native=$answer
		get "SET enable_gpu_hashagg = on; SELECT count(*), sum(hash_record_extended(q, 1)) FROM ($1) q"
		gpurhh=$answer
	fi
	[ "$native" != "$gpurhh" ]
}

tenths() { echo $(($1 / 10)).$(($1 % 10)); }

for i in "${!queries[@]}"; do
	query=${queries[i]}
	timed="SELECT ${consumes[i]} FROM ($query) q"
	echo
	step "${titles[i]}"
	sed '/^$/d; s/^/   /' <<<"$query"

	get "SET enable_gpu_hashagg = off"
	get "EXPLAIN (COSTS OFF) $timed"
	native_plan=$answer
	get "SET enable_gpu_hashagg = on"
	get "EXPLAIN (COSTS OFF) $timed"
	gpurhh_plan=$answer

	# One run each where PostgreSQL takes long, else the better of two.
	time_query off 1 "$timed"
	native_ms=$ms runs=1
	if [ "$ms" -lt 3000 ]; then
		runs=2
		time_query off 1 "$timed"
		if [ "$ms" -lt "$native_ms" ]; then native_ms=$ms; fi
	fi
	native_out=$rows_out
	printf '\n   PostgreSQL: %d ms\n' "$native_ms"
	sed 's/^/      /' <<<"$native_plan"
	time_query on $runs "$timed"
	gpurhh_ms=$ms
	printf '   gpurhh: %d ms\n' "$gpurhh_ms"
	sed 's/^/      /' <<<"$gpurhh_plan"

	verdict="answers equal"
	if [ "$rows_out" != "$native_out" ] || answers_differ "$query"; then
		verdict="ANSWERS DIFFER"
		failed=1
	fi
	if [[ $gpurhh_plan != *GpuHashAgg* ]] || [[ $native_plan == *GpuHashAgg* ]]; then
		verdict+=", BUT GpuHashAgg WAS NOT USED"
		failed=1
	fi
	ratio=$(tenths $((native_ms * 10 / gpurhh_ms)))
	printf '   ratio %s, %s (%d rows)\n' "$ratio" "$verdict" "$native_out"
	summary+=("$(printf '%9d  %9d  %9d  %6s  %s' "$native_out" "$native_ms" "$gpurhh_ms" "$ratio" "$verdict")")
done

echo
step "summary, $rows rows on $(nproc) cores, $("$PG_CONFIG" --version)"
get "SELECT string_agg(format('%s (%s)', name, device), ', ') FROM gpurhh_devices() WHERE state = 'open'"
[ -z "$answer" ] || note "device: $answer"
printf '   %9s  %9s  %9s  %6s\n' 'rows out' 'native ms' 'gpurhh ms' ratio
printf '   %s\n' "${summary[@]}"

printf '\\q\n' >&"${PSQL[1]}"
wait "$session" || true
cluster_stop "$cluster"
[ $failed = 0 ] || die "answers differ, or GpuHashAgg was not used: see above"
