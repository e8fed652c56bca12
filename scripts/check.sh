#!/bin/bash
# check.sh, or "make check": every test there is, in throw-away clusters:
#
#	includes			which folder of src/ includes which, as docs/design.md says
#	device_test			the devices' ABI without PostgreSQL, on each device
#						present; once more with AddressSanitizer and UBSan on
#						the CPU device; host_test, what that one may use
#	table_test			the CUDA table by itself, on a GPU where there is one;
#						it and the CUDA device once more with CUDA's threads
#						run on the CPU
#	generated_code		what nvcc, where there is one, makes of its widest slots
#	docs_examples		the programs in docs/table.md
#	pg_regress			sql/ against expected/, with nothing preloaded and
#						with shared_preload_libraries = 'gpurhh'; several at a time
#	TAP tests			t/*.pl, which start servers of their own; several at a time, but
#						for those that compare times or memory
#
# Ends with "N passed, N failed" (regression tests, TAP tests and device cases
# counted one by one) and exits with 1 if anything failed; before that line, what
# failed is said once more.  A part that cannot be built is one failure; a part for
# which something is missing here is left out, and said at the end; the others run
# all the same.
#
# Environment, or arguments of make: PG_CONFIG, WITH_CUDA, CUDA_ARCHS, CC, CXX,
# TMPDIR; CHECK="source device simt regress tap" picks parts, REGRESS_TESTS="functions"
# files of sql/, PROVE_TESTS="t/001_….pl" TAP files, TAP=no leaves those out;
# CACHE_SIZE="256MB" is gpurhh.cache_size of the servers that do not set it themselves,
# without the tests that look at plans, as other ones are chosen then;
# CI=true makes warnings errors and the lack of a tool a failure.
. "$(dirname "$0")/lib.sh"

passed=0 failed=0 parts_left_out=
count()
{
	passed=$((passed + $1)) failed=$((failed + $2))
	note "$1 passed, $2 failed"
}

# again WHAT: says at the end that this failed, and the few lines of its output, read from
# standard input, that tell why
again() { printf 'failed: %s\n%s\n' "$1" "$(head -40 | cut -c1-200 | sed 's/^/   /')" >>"$failures"; }

# leave_out WHAT WHY: a lack in CI is a failure
leave_out()
{
	note "left out: $2"
	parts_left_out+=${parts_left_out:+, }$1
	[ "${CI:-}" != true ] || { failed=$((failed + 1)); echo "$2" | again "$1"; }
}

# build_part GOAL …: true if they are built, else a failure of this part
build_part()
{
	if (build "$@"); then return 0; fi
	count 0 1
	again "the build of $*" </dev/null
	return 1
}

parts=" ${CHECK:-source device simt regress tap} "
part() { [[ $parts == *" $1 "* ]]; }
if [ "${TAP:-}" = no ]; then parts=${parts/ tap / }; fi

if [ "${CI:-}" = true ]; then export WERROR=1; fi
if part simt || part tap; then
	set_up_and_install --tests ${CI:+--ci}
else
	set_up_and_install
fi

new_tmpdir work
log=$work/log failures=$work/failures
touch "$failures"

# As many jobs as there are processors, up to 4: most keep one busy, or wait for servers.
at_a_time=$(nproc)
if [ "$at_a_time" -gt 4 ]; then at_a_time=4; fi

# beside MOST COUNTS STARTS NAME …: "STARTS NAME", which starts a job in the background and
# notes it in JOBS, for each name, so that no more than MOST run, and COUNTS after each end
beside()
{
	local most=$1 counts=$2 starts=$3 name n=0
	shift 3

	for name in "$@"; do
		if [ $n = "$most" ]; then
			wait -n || true
			n=$((n - 1))
			$counts
		fi
		$starts "$name"
		n=$((n + 1))
	done
	for (( ; n > 0; n--)); do
		wait -n || true
		$counts
	done
	JOBS=()
}

# ---------- what needs no server ----------

# device_test prints "ok …" or "not ok …" for each case; one that dies without a
# "not ok" is a failure too.
run_device_test()
{
	local status=0 ok bad

	"$@" >"$log" 2>&1 || status=$?
	ok=$(grep -c '^ok' "$log" || true)
	bad=$(grep -c '^not ok' "$log" || true)
	if [ $status != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
	if [ "$bad" != 0 ]; then
		grep -v '^ok' "$log" | tail -60
		note "exit status $status"
		{ grep -v '^ok' "$log" || true; } | tail -10 | again "$*"
	fi
	note "cases a device: $(sed -n 's/^\(not \)\{0,1\}ok \([a-z0-9:]*\) .*/\2/p' "$log" | sort | uniq -c | awk '{ printf "%s%s %d", sep, $2, $1; sep = ", " }')"
	count "$ok" "$bad"
}

run_program()
{
	run_counting "$log" "$@"
	[ "$run_failed" = 0 ] || tail -10 "$log" | again "$*"
	count "$run_passed" "$run_failed"
}

# Is there a compiler that makes a program of this?
compiles() # COMPILER [ARG …]
{
	echo 'int main(void) { return 0; }' | "$@" - -o "$work/compiles" >"$log" 2>&1
}

# In CI the devices' cases get an eighth of their rows, and a 64th where that is slow.
fewer= fewer_if_slow=--quick
if [ "${CI:-}" = true ]; then fewer=--quick fewer_if_slow=--tiny; fi

# Each of these is a job of its own.
includes() { run_program test/includes.sh; }
device_test() { run_device_test test/device_test $fewer; run_program test/host_test; }
device_test_asan()
{
	run_device_test env ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 test/device_test_asan $fewer_if_slow
	run_program test/host_test_asan
}
simt_tables() { run_program test/table_test_simt; run_program test/table_test_simt64; }
simt_devices() { run_device_test test/device_test_simt cuda --tiny; }
simt_on_device()
{
	local only

	for only in small_memory probe_caps 'cancel*' in_flight states wide_keys; do
		run_device_test test/device_test_simt cuda --tiny --on-device --only "$only"
	done
}
docs_examples() { run_program env CXX="${CXX:-g++}" test/docs_examples.sh; }
generated_code()
{
	run_program test/generated_code.sh
	sed -n '/^   /p' "$log"
}

declare -A titles=(
	[includes]="which folder of src/ includes which"
	[device_test]="device_test"
	[device_test_asan]="device_test, CPU device under AddressSanitizer and UBSan"
	[simt_tables]="the CUDA table on the CPU (simt), warps of 32 and of 64"
	[simt_devices]="the CUDA device on the CPU (simt)"
	[simt_on_device]="the same, where batches lie in the device's memory"
	[docs_examples]="the programs in docs/table.md, on the CPU"
	[generated_code]="what nvcc makes of slots of 16 bytes"
)

# The output and the counts of a job go to files.
start_job() # NAME
{
	note "begins: ${titles[$1]}"
	(
		passed=0 failed=0 log=$work/log-$1
		"$1"
		echo "$passed $failed" >"$work/counts-$1"
	) >"$work/out-$1" 2>&1 &
	JOBS+=($!)
}

# Counts the jobs that are done, and not counted yet.
count_jobs()
{
	local job counts

	for job in $jobs; do
		[ -s "$work/counts-$job" ] || continue
		step "${titles[$job]}"
		cat "$work/out-$job"
		read -r -a counts <"$work/counts-$job"
		rm "$work/counts-$job"
		passed=$((passed + counts[0])) failed=$((failed + counts[1]))
		jobs=${jobs/ $job / }
	done
}

# All are built first, side by side; what fails is built again by itself, and counted.
goals=
if part device; then goals+=" device-test device-test-asan"; fi
if part simt; then goals+=" simt-test"; fi
if [ -n "$goals" ] && (build --keep-going $goals) >"$log" 2>&1; then cat "$log"; fi
jobs=" "
if part source; then jobs+=" includes "; fi
if part device; then
	if build_part device-test; then jobs+=" device_test "; fi
	if ! compiles ${CC:-cc} -fsanitize=address,undefined -x c; then
		leave_out "the sanitizers" "this compiler has no AddressSanitizer"
	elif build_part device-test-asan; then
		jobs+=" device_test_asan "
	fi
fi
if part simt; then
	if ! compiles ${CXX:-g++} -std=c++17 -x c++; then
		leave_out "the CUDA code on the CPU" "there is no C++ compiler ${CXX:-g++}"
	else
		# what takes longest begins first
		if build_part simt-test; then jobs=" simt_devices  simt_tables  simt_on_device $jobs"; fi
		jobs+=" docs_examples "
	fi
	if [ "${WITH_CUDA:-}" = no ]; then
		note "what nvcc makes of slots of 16 bytes: left out, WITH_CUDA=no"
	else
		jobs+=" generated_code "
	fi
fi
beside "$at_a_time" count_jobs start_job $jobs
# who has left no counts has died
for job in $jobs; do
	step "${titles[$job]}"
	tail -60 "$work/out-$job"
	count 0 1
	tail -10 "$work/out-$job" | again "${titles[$job]}"
done

if part simt && has_gpu; then
	step "table_test on the GPU"
	if build_part table-test-cuda; then run_program test/table_test; fi
fi

# ---------- what the ordinary user needs, where it can read and write ----------

mkdir "$work/src"
for f in sql expected t test bench docs *.md gpurhh.control gpurhh--*.sql; do
	if [ -e "$f" ]; then cp -r "$f" "$work/src/"; fi
done
if [ -n "$RUN_AS" ]; then chown -R "$RUN_AS" "$work"; fi
pgxs_dir=$(cd "$(dirname "$("$PG_CONFIG" --pgxs)")/../.." && pwd)

# ---------- pg_regress ----------

regress=${REGRESS_TESTS:-$(ls sql/*.sql 2>/dev/null | sed 's,sql/\(.*\)\.sql,\1,' | xargs)}
if [ -n "${CACHE_SIZE:-}" ]; then
	show_plans=" agg_chain agg_choices agg_join agg_plain costs explain feed_append join_nested join_passes join_passes_rows join_read_pages parallel plan_nodes "
	regress=$(for t in $regress; do [[ $show_plans == *" $t "* ]] || echo "$t"; done | xargs)
	step "with gpurhh.cache_size = '$CACHE_SIZE'"
	note "left out, as they look at plans:${show_plans}t/018_load.pl"
fi
# These take the most time, so that they are a run of their own.  What they are about is the same
# with nothing preloaded: in CI they run with the library preloaded alone.
takes_long=" agg_distinct_more agg_ladder join_errors join_key_filter join_nested join_rows_unmatched join_parallel join_passes join_passes_rows join_right_full join_share_rows "
declare -A regress_runs=() regress_titles=(
	[plain]="pg_regress, nothing preloaded"
	[preload]="pg_regress, shared_preload_libraries = 'gpurhh'"
	[preload-long]="pg_regress, shared_preload_libraries = 'gpurhh', what takes long"
)
for t in $regress; do
	if [[ $takes_long != *" $t "* ]]; then
		regress_runs[plain]+=" $t"
		regress_runs[preload]+=" $t"
	else
		[ "${CI:-}" = true ] || regress_runs[plain]+=" $t"
		regress_runs[preload-long]+=" $t"
	fi
done

declare -A regress_clusters=() regress_servers=()
start_regress() # NAME
{
	note "begins: ${regress_titles[$1]}"
	as_user mkdir "$work/regress-$1"
	(
		status=0
		cd "$work/src"
		as_user "$pgxs_dir/src/test/regress/pg_regress" --bindir="$PGBIN" --inputdir="$work/src" \
			--outputdir="$work/regress-$1" ${regress_servers[$1]} --dbname=contrib_regression \
			--load-extension=gpurhh ${regress_runs[$1]} || status=$?
		echo $status >"$work/regress-$1.status"
	) >"$work/regress-$1.log" 2>&1 &
	JOBS+=($!)
}

# Counts the runs that are done, and not counted yet.
count_regress()
{
	local name status ok bad out

	for name in "${!regress_clusters[@]}"; do
		[ -s "$work/regress-$name.status" ] || continue
		step "${regress_titles[$name]}"
		out=$work/regress-$name.log
		status=$(cat "$work/regress-$name.status")
		# "test a ... ok" up to version 15, "ok 1 - a" from 16 on
		ok=$(grep -cE '^(test .*|     .*)\.\.\. ok|^ok [0-9]' "$out" || true)
		bad=$(grep -cE '^(test .*|     .*)\.\.\. FAILED|^not ok [0-9]' "$out" || true)
		if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
		if [ "$bad" != 0 ]; then
			cat "$out"
			head -400 "$work/regress-$name/regression.diffs" 2>/dev/null || true
			note "the server's log ends with:"
			tail -40 "${regress_clusters[$name]}/log"
			{
				grep -E 'FAILED|^not ok' "$out"
				grep '^[-+]' "$work/regress-$name/regression.diffs"
			} 2>&1 | again "pg_regress, $name" || true
		fi
		count "$ok" "$bad"
		cluster_stop "${regress_clusters[$name]}"
		unset "regress_clusters[$name]"
	done
}

# Each run has a server of its own.
run_regress()
{
	local name cluster names=()

	for name in preload-long preload plain; do
		[ -n "${regress_runs[$name]:-}" ] || continue
		names+=("$name")
		cluster_start cluster ${CACHE_SIZE:+"gpurhh.cache_size = '$CACHE_SIZE'"} \
			"shared_preload_libraries = '$([ "$name" = plain ] || echo gpurhh)'"
		regress_clusters[$name]=$cluster
		regress_servers[$name]="--host=$PGHOST --port=$PGPORT --user=$PGUSER"
	done
	beside "$at_a_time" count_regress start_regress "${names[@]}"
	# who has left no status has died
	for name in "${!regress_clusters[@]}"; do
		echo 1 >"$work/regress-$name.status"
	done
	count_regress
}
if part regress && [ -n "$regress" ]; then run_regress; fi

# ---------- TAP ----------

# The tests of one file, by prove, whose verbose output is the TAP itself: it and the exit
# status go to a directory of this file's own.
prove_one() # FILE DIRECTORY
{
	local status=0

	(cd "$work/src" && as_user env \
		PATH="$PGBIN:$PATH" TESTDIR="$2" TESTDATADIR="$2/tmp_check" \
		TESTLOGDIR="$2/tmp_check/log" PG_REGRESS="$pgxs_dir/src/test/regress/pg_regress" \
		PGHOST= PGPORT= PGUSER= PGDATABASE= \
		prove -v -I "$pgxs_dir/src/test/perl" -I . "$1") >"$2.log" 2>&1 || status=$?
	echo $status >"$2.status"
}

# Counts the tests of files that are done, and not counted yet.
count_proved()
{
	local t dir status ok bad f

	for t in $tap_tests; do
		dir=$work/tap-$(basename "$t" .pl)
		[ -s "$dir.status" ] || continue
		step "$t"
		status=$(cat "$dir.status")
		rm "$dir.status"
		ok=$(grep '^ok ' "$dir.log" | grep -vci '# skip' || true)
		bad=$(grep '^not ok ' "$dir.log" | grep -vci '# todo' || true)
		if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
		if [ "$bad" != 0 ]; then
			tail -100 "$dir.log"
			for f in "$dir"/tmp_check/log/*.log; do
				[ -e "$f" ] || continue
				note "$(basename "$f") ends with:"
				tail -40 "$f"
			done
			{ grep -E '^not ok|^#' "$dir.log" || tail -10 "$dir.log"; } | again "$t" || true
		fi
		grep -i '^ok .*# skip\|^1\.\.0 # skip' "$dir.log" | sed 's/^/   /' || true
		count "$ok" "$bad"
		rm -rf "$dir"
		proved+=" $t "
	done
}

# Files that compare how long things take, or what memory the machine has: each runs alone.
tap_alone=" t/007_memory.pl t/017_peace.pl t/018_load.pl "

# These take the most time, and so begin first.
tap_long="t/026_cache.pl t/015_random.pl t/021_joins.pl t/025_pages.pl t/020_settings.pl t/014_parallel.pl"

# Of the files that are to be run, in this order: the long ones, and the others.
in_order()
{
	local t

	for t in $tap_long; do [[ " $tap_tests " != *" $t "* ]] || echo "$t"; done
	for t in $tap_tests; do [[ " $tap_long " == *" $t "* ]] || echo "$t"; done
}

run_tap()
{
	local t alone= others=

	tap_tests=$(in_order | xargs)
	for t in $tap_tests; do
		if [[ $tap_alone == *" $t "* ]]; then alone+=" $t"; else others+=" $t"; fi
	done
	proved=
	beside "$at_a_time" count_proved start_proving $others
	beside 1 count_proved start_proving $alone
	# who has left no status, as the disk is full, or it was killed
	for t in $tap_tests; do
		if [[ $proved == *" $t "* ]]; then continue; fi
		step "$t"
		tail -40 "$work/tap-$(basename "$t" .pl).log" || true
		note "it did not end"
		count 0 1
		echo "it did not end" | again "$t"
	done
}

start_proving() # FILE
{
	local dir=$work/tap-$(basename "$1" .pl)

	note "begins: $1"
	as_user mkdir -p "$dir"
	prove_one "$1" "$dir" &
	JOBS+=($!)
}

tap_tests=${PROVE_TESTS:-$(ls t/*.pl 2>/dev/null | xargs)}
if [ -n "${CACHE_SIZE:-}" ]; then tap_tests=${tap_tests/t\/018_load.pl/}; fi
if [ "${TAP:-}" = no ]; then
	step "TAP tests"
	note "left out: TAP=no"
	parts_left_out+=${parts_left_out:+, }"the TAP tests"
elif part tap && [ -n "$tap_tests" ]; then
	if ! command -v prove >/dev/null ||
		! perl -I"$pgxs_dir/src/test/perl" -MIPC::Run -MPostgreSQL::Test::Cluster -e 1 2>"$log"; then
		step "TAP tests"
		sed -n '1p' "$log"
		leave_out "the TAP tests" "prove, IPC::Run or PostgreSQL::Test::Cluster is not here"
	else
		run_tap
	fi
fi

step "done"
cat "$failures"
[ -z "$parts_left_out" ] || note "without $parts_left_out: see above"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
