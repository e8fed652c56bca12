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
#						with shared_preload_libraries = 'gpurhh'
#	TAP tests			t/*.pl, which start servers of their own
#
# Several of these run at a time, but for those that compare times or memory.
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

# ---------- jobs ----------

# A job is a function of those below, with its argument, which runs tests and counts them.
jobs=() jobs_alone=()
declare -A titles=()

# run_jobs MOST JOB …: runs them in the background, no more than MOST at a time; what a job
# prints is shown when it has ended, and one that has left no counts has died.
run_jobs()
{
	local most=$1 running=0 job file
	shift

	mkdir -p "$work/jobs"
	pending=("$@")
	for job in "$@"; do
		if [ $running = "$most" ]; then
			wait -n || true
			running=$((running - 1))
			count_jobs
		fi
		start_job "$job"
		running=$((running + 1))
	done
	for (( ; running > 0; running--)); do
		wait -n || true
		count_jobs
	done
	JOBS=()
	for job in ${pending[@]+"${pending[@]}"}; do
		file=$(job_file "$job")
		step "$(title "$job")"
		tail -n 60 "$file.log" "$file.out" || true
		note "it did not end"
		count 0 1
		tail -qn 10 "$file.log" "$file.out" 2>&1 | again "$(title "$job")" || true
	done
}

title() { echo "${titles[$1]:-${1#run_prove }}"; }
job_file() { echo "$work/jobs/${1//[\/ ]/-}"; }

start_job() # JOB
{
	local file

	file=$(job_file "$1")
	note "begins: $(title "$1")"
	(
		passed=0 failed=0 log=$file.log
		$1
		echo "$passed $failed" >"$file.counts"
	) >"$file.out" 2>&1 &
	JOBS+=($!)
}

# Counts those that are done, and not counted yet.
count_jobs()
{
	local job file counts rest=()

	for job in ${pending[@]+"${pending[@]}"}; do
		file=$(job_file "$job")
		if [ -s "$file.counts" ]; then
			step "$(title "$job")"
			cat "$file.out"
			read -r -a counts <"$file.counts"
			rm "$file.counts"
			passed=$((passed + counts[0])) failed=$((failed + counts[1]))
		else
			rest+=("$job")
		fi
	done
	pending=(${rest[@]+"${rest[@]}"})
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

includes() { run_program test/includes.sh; }
device_test() { run_device_test test/device_test $fewer; run_program test/host_test; }
device_test_asan()
{
	run_device_test env ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 test/device_test_asan $fewer_if_slow
	run_program test/host_test_asan
}
gpu_tables() { run_program test/table_test; }
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

titles=(
	[includes]="which folder of src/ includes which"
	[device_test_asan]="device_test, CPU device under AddressSanitizer and UBSan"
	[gpu_tables]="table_test on the GPU"
	[simt_tables]="the CUDA table on the CPU (simt), warps of 32 and of 64"
	[simt_devices]="the CUDA device on the CPU (simt)"
	[simt_on_device]="the same, where batches lie in the device's memory"
	[docs_examples]="the programs in docs/table.md, on the CPU"
	[generated_code]="what nvcc makes of slots of 16 bytes"
)

# All are built first, side by side; what fails is built again by itself, and counted.
goals=
if part device; then goals+=" device-test device-test-asan"; fi
if part simt; then goals+=" simt-test"; fi
if [ -n "$goals" ] && (build --keep-going $goals) >"$log" 2>&1; then cat "$log"; fi
if part simt; then
	if ! compiles ${CXX:-g++} -std=c++17 -x c++; then
		leave_out "the CUDA code on the CPU" "there is no C++ compiler ${CXX:-g++}"
	else
		# what takes longest begins first
		if build_part simt-test; then jobs+=(simt_devices simt_tables simt_on_device); fi
		jobs+=(docs_examples)
	fi
	if [ "${WITH_CUDA:-}" = no ]; then
		note "what nvcc makes of slots of 16 bytes: left out, WITH_CUDA=no"
	else
		jobs+=(generated_code)
	fi
fi
if part source; then jobs+=(includes); fi
if part device; then
	if build_part device-test; then jobs+=(device_test); fi
	if ! compiles ${CC:-cc} -fsanitize=address,undefined -x c; then
		leave_out "the sanitizers" "this compiler has no AddressSanitizer"
	elif build_part device-test-asan; then
		jobs+=(device_test_asan)
	fi
fi

if part simt && has_gpu && build_part table-test-cuda; then jobs_alone+=(gpu_tables); fi

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
declare -A regress_runs=() regress_clusters=()
titles+=(
	["run_regress plain"]="pg_regress, nothing preloaded"
	["run_regress preload"]="pg_regress, shared_preload_libraries = 'gpurhh'"
	["run_regress preload-long"]="pg_regress, shared_preload_libraries = 'gpurhh', what takes long"
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

run_regress() # RUN
{
	local status=0 ok bad

	cluster_use "${regress_clusters[$1]}"
	as_user mkdir "$work/regress-$1"
	(
		cd "$work/src"
		as_user "$pgxs_dir/src/test/regress/pg_regress" --bindir="$PGBIN" --inputdir="$work/src" \
			--outputdir="$work/regress-$1" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
			--dbname=contrib_regression --load-extension=gpurhh ${regress_runs[$1]}
	) >"$log" 2>&1 || status=$?
	# "test a ... ok" up to version 15, "ok 1 - a" from 16 on
	ok=$(grep -cE '^(test .*|     .*)\.\.\. ok|^ok [0-9]' "$log" || true)
	bad=$(grep -cE '^(test .*|     .*)\.\.\. FAILED|^not ok [0-9]' "$log" || true)
	if [ $status != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
	if [ "$bad" != 0 ]; then
		cat "$log"
		head -400 "$work/regress-$1/regression.diffs" 2>/dev/null || true
		note "the server's log ends with:"
		tail -40 "${regress_clusters[$1]}/log"
		{
			grep -E 'FAILED|^not ok' "$log"
			grep '^[-+]' "$work/regress-$1/regression.diffs"
		} 2>&1 | again "pg_regress, $1" || true
	fi
	count "$ok" "$bad"
}

# Each run has a server of its own.
if part regress; then
	for run in preload-long preload plain; do
		[ -n "${regress_runs[$run]:-}" ] || continue
		cluster_start cluster ${CACHE_SIZE:+"gpurhh.cache_size = '$CACHE_SIZE'"} \
			"shared_preload_libraries = '$([ $run = plain ] || echo gpurhh)'"
		regress_clusters[$run]=$cluster
		jobs+=("run_regress $run")
	done
fi

# ---------- TAP ----------

# The tests of one file, by prove, whose verbose output is the TAP itself, in a directory
# of this file's own.
run_prove() # FILE
{
	local dir status=0 ok bad f

	dir=$work/tap-$(basename "$1" .pl)
	as_user mkdir "$dir"
	(cd "$work/src" && as_user env \
		PATH="$PGBIN:$PATH" TESTDIR="$dir" TESTDATADIR="$dir/tmp_check" \
		TESTLOGDIR="$dir/tmp_check/log" PG_REGRESS="$pgxs_dir/src/test/regress/pg_regress" \
		PGHOST= PGPORT= PGUSER= PGDATABASE= \
		prove -v -I "$pgxs_dir/src/test/perl" -I . "$1") >"$log" 2>&1 || status=$?
	ok=$(grep '^ok ' "$log" | grep -vci '# skip' || true)
	bad=$(grep '^not ok ' "$log" | grep -vci '# todo' || true)
	if [ $status != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
	if [ "$bad" != 0 ]; then
		# what a test died of is before all of what prove prints
		grep -vE '^ *(ok |[0-9]+\.\.|# Subtest)' "$log" >"$dir.failed" || true
		tail -100 "$dir.failed"
		for f in "$dir"/tmp_check/log/*.log; do
			[ -e "$f" ] || continue
			note "$(basename "$f") ends with:"
			tail -40 "$f"
		done
		again "$1" <"$dir.failed"
	fi
	grep -i '^ok .*# skip\|^1\.\.0 # skip' "$log" | sed 's/^/   /' || true
	count "$ok" "$bad"
	rm -rf "$dir"
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
		for t in $(in_order); do
			if [[ $tap_alone == *" $t "* ]]; then jobs_alone+=("run_prove $t"); else jobs+=("run_prove $t"); fi
		done
	fi
fi

# As many as there are processors, up to 4: most keep one busy, or wait for servers.
run_jobs $(($(nproc) < 4 ? $(nproc) : 4)) ${jobs[@]+"${jobs[@]}"}
for cluster in ${regress_clusters[@]+"${regress_clusters[@]}"}; do cluster_stop "$cluster"; done
run_jobs 1 ${jobs_alone[@]+"${jobs_alone[@]}"}

step "done"
cat "$failures"
[ -z "$parts_left_out" ] || note "without $parts_left_out: see above"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
