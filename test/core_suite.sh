#!/bin/bash
# core_suite.sh, or "make check-core": PostgreSQL's own regression suite with
# GpuHashAgg forced on wherever it can be planned; the answers have to be those
# that the suite has without it.
#
# The suite runs in throw-away clusters that differ only in enable_gpu_hashagg and
# enable_gpu_hashjoin;
# core_suite.pl compares what psql printed, statement by statement, and
# core_suite.known lists the statements whose answers are open, with the reason of
# each.  So nothing but plans and the order of rows may differ.  The settings
# are, one after the other:
#
#	plain		all costs of the node are zero
#	small		besides: batches of 64 rows, a probe cap of 1, and 1 MB of device
#				memory, so that much is finished on the host
#	parallel	besides plain: parallel plans wherever they can be made
#	workers		besides parallel: whatever can be is run in a worker, so that functions
#				are which group rows (starting one for each query takes minutes)
#	joins		besides plain: joins on the device, and core's costs such that it does
#				all that it can, nothing but hash joins of sequential scans being left
#	joins_small, joins_parallel		both
#
# Each is compared with a run without the node that has the same settings of core's.
#
# The tests are those of PG_CONFIG's major version, from:
#
#	CORE_SOURCE		a directory with PostgreSQL's source, or its archive
#	apt-get source	of the newest version that can be had of the same major, with
#					sources of its own, made from those where apt has the package
#					from; apt's configuration and lists stay as they are
#
# Other environment, or arguments of make: PG_CONFIG, WITH_CUDA, TMPDIR;
# CORE_SETTINGS="plain small parallel workers joins joins_small joins_parallel" picks settings; CORE_TESTS="aggregates …"
# picks tests (test_setup and create_index, which make the tables, come first);
# CORE_KEEP=DIR keeps what the runs printed; CORE_OPTIONAL=yes leaves everything out
# where the source cannot be had, instead of failing.
#
# Ends with "N passed, N failed": a test for each settings is one, and so is, for
# each settings, that enough queries were given to the device, and that enough joins
# were planned there: a suite in which the node is not used proves nothing.
. "$(dirname "$0")/../scripts/lib.sh"

# How many queries the device has to get from the whole suite, for each settings:
# two thirds of those that it got when this was written.
floor_plain=1800
floor_small=1800
floor_parallel=1700
floor_workers=1700
floor_joins=7000
floor_joins_small=7000
floor_joins_parallel=8000
# How many plans with joins on the device the suite has to show, for each such
# settings: of 18 it shows some 200, of earlier versions fewer.
floor_shown=80

set_up_and_install

new_tmpdir work
log=$work/log
passed=0 failed=0

# ---------- the source ----------

# apt-get with lists and sources of this script's own.
private_apt()
{
	apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/apt/sources" \
		-o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
		-o APT::Sandbox::User=root "$@"
}

# Where apt has the package from, but for sources: copies of the machine's files,
# so that their keys and options are kept.
private_sources()
{
	local uris uri f

	uris=$(apt-cache madison "postgresql-$PGMAJOR" | awk '{ print $5 }' | sort -u)
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		[ -r "$f" ] || continue
		for uri in $uris; do
			if grep -qF "$uri" "$f"; then
				sed -e 's/^deb\([[:space:]]\)/deb-src\1/' -e 's/^Types:.*/Types: deb-src/' "$f" >"$work/apt/sources/$(basename "$f")"
				break
			fi
		done
	done
}

fetch_source()
{
	local version versions

	command -v apt-get >/dev/null && command -v apt-cache >/dev/null || return 1
	versions=$(apt-cache madison "postgresql-$PGMAJOR" | awk '{ print $3 }' | sort -u -V -r)
	[ -n "$versions" ] || return 1
	mkdir -p "$work/apt/sources" "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
	private_sources
	# One source that cannot be reached need not be the one that is wanted; mirrors
	# list what they do not hold, too.
	private_apt update >>"$log" 2>&1 || true
	for version in $versions; do
		(cd "$work/apt" && private_apt source --download-only --only-source "postgresql-$PGMAJOR=$version") >>"$log" 2>&1 || continue
		CORE_SOURCE=$(ls "$work"/apt/*.orig.tar.* | grep -v '\.asc$' | tail -1)
		return 0
	done
	return 1
}

# A small machine has Perl, and no bzip2.
decompress() { perl -MIO::Uncompress::AnyUncompress=:all -e 'anyuncompress("-" => "-") or die "$AnyUncompressError\n"'; }

unpack_source()
{
	mkdir "$work/regress"
	if [ -d "$CORE_SOURCE" ]; then
		cp -r "$CORE_SOURCE/src/test/regress/." "$work/regress/"
	else
		decompress <"$CORE_SOURCE" | tar -x -C "$work/regress" --strip-components=4 --wildcards '*/src/test/regress'
	fi
	[ -e "$work/regress/parallel_schedule" ] || die "$CORE_SOURCE has no src/test/regress/parallel_schedule"
}

step "the source of PostgreSQL $PGMAJOR"
if [ -z "${CORE_SOURCE:-}" ] && ! fetch_source; then
	tail -5 "$log" 2>/dev/null || true
	if [ "${CORE_OPTIONAL:-}" = yes ]; then
		note "LEFT OUT: the source package cannot be had here"
		echo "0 passed, 0 failed"
		exit 0
	fi
	die "the source package of postgresql-$PGMAJOR cannot be had: name a directory or an archive by CORE_SOURCE="
fi
unpack_source
note "$(basename "$CORE_SOURCE")"

# The C functions of the tests, and those that they take from contrib/spi.
mkdir "$work/lib"
${CC:-cc} -O2 -fPIC -shared -w -I"$("$PG_CONFIG" --includedir-server)" -o "$work/lib/regress.so" "$work/regress/regress.c" ||
	die "the suite's C functions could not be built"
for f in refint autoinc; do
	if [ -e "$("$PG_CONFIG" --pkglibdir)/$f.so" ]; then cp "$("$PG_CONFIG" --pkglibdir)/$f.so" "$work/lib/"; fi
done
if [ -n "$RUN_AS" ]; then chown -R "$RUN_AS" "$work"; fi
pg_regress=$(dirname "$("$PG_CONFIG" --pgxs)")/../../src/test/regress/pg_regress

# ---------- running it ----------

conf_plain=("gpurhh.setup_cost = 0" "gpurhh.row_cost = 0" "gpurhh.group_cost = 0")
conf_small=("${conf_plain[@]}" "gpurhh.batch_rows = 64" "gpurhh.max_probe_buckets = 1" "gpurhh.device_memory = '1MB'")
# Indexes of catalogs that workers build have deadlocks with other tests, in core.
conf_parallel=("${conf_plain[@]}" "max_parallel_maintenance_workers = 0" "parallel_setup_cost = 0" "parallel_tuple_cost = 0"
	"min_parallel_table_scan_size = 0" "min_parallel_index_scan_size = 0" "max_parallel_workers = 32")
conf_joins=("${conf_plain[@]}" "enable_nestloop = off" "enable_mergejoin = off" "enable_indexscan = off"
	"enable_indexonlyscan = off" "enable_bitmapscan = off")
conf_joins_small=("${conf_small[@]}" "${conf_joins[@]}")
conf_joins_parallel=("${conf_parallel[@]}" "${conf_joins[@]}")
if [ "$PGMAJOR" -ge 16 ]; then force=debug_parallel_query; else force=force_parallel_mode; fi
conf_workers=("${conf_parallel[@]}" "$force = regress")

# run_suite NAME HASHAGG HASHJOIN CONF-LINE …, each of the two "on" or "off": what psql
# printed goes to $work/NAME/results; gives $device_queries.
run_suite()
{
	local name=$1 hashagg=$2 hashjoin=$3 cluster tests
	shift 3

	# The service's counters last as long as it does.
	cluster_start cluster "shared_preload_libraries = 'gpurhh'" "max_worker_processes = 64" "max_connections = 60" \
		"gpurhh.service_idle_timeout = 0" "log_min_messages = fatal" "$@"
	as_user mkdir "$work/$name"
	as_user "$PGBIN/psql" -Xq -c "CREATE EXTENSION gpurhh" -c "ALTER ROLE ALL SET enable_gpu_hashagg = $hashagg" \
		-c "ALTER ROLE ALL SET enable_gpu_hashjoin = $hashjoin"
	tests=(--schedule="$work/regress/parallel_schedule")
	if [ -n "${CORE_TESTS:-}" ]; then tests=(test_setup create_index $CORE_TESTS); fi
	# What pg_regress thinks of it does not matter: plans and their order differ.
	(cd "$work/$name" && as_user timeout -k 10 "${CORE_TIMEOUT:-3600}" "$pg_regress" --bindir="$PGBIN" \
		--inputdir="$work/regress" --outputdir="$work/$name" --dlpath="$work/lib" --max-concurrent-tests=20 \
		--host="$PGHOST" --port="$PGPORT" --user="$PGUSER" --dbname=regression "${tests[@]}") >"$work/$name/log" 2>&1 || true
	device_queries=$(as_user "$PGBIN/psql" -XAtq -c "SELECT queries FROM gpurhh_stat" || echo 0)
	cp "$cluster/log" "$work/$name/server.log"
	cluster_stop "$cluster"
}

keep()
{
	if [ -n "${CORE_KEEP:-}" ]; then
		mkdir -p "$CORE_KEEP"
		cp -r "$work/$1" "$CORE_KEEP/"
	fi
}

for settings in ${CORE_SETTINGS:-plain small parallel workers joins joins_small joins_parallel}; do
	conf="conf_$settings[@]"
	floor="floor_$settings"
	off=off hashjoin=off
	case $settings in
		parallel | workers | joins | joins_parallel) off=off-$settings ;;
		joins_small) off=off-joins ;;
	esac
	case $settings in joins*) hashjoin=on ;; esac
	if [ ! -d "$work/$off" ]; then
		step "without the node${off#off}"
		run_suite "$off" off off "${!conf}"
		keep "$off"
		[ -n "$(ls "$work/$off/results" 2>/dev/null)" ] || { cat "$work/$off/log"; die "the suite did not run"; }
	fi
	step "with the node: $settings"
	run_suite "$settings" on $hashjoin "${!conf}"
	keep "$settings"
	status=0
	run_counting "$log" perl test/core_suite.pl --settings "$settings" --known test/core_suite.known \
		"$work/regress/sql" "$work/$off/results" "$work/$settings/results"
	if [ "$run_failed" = 0 ]; then grep '^   ' "$log" || true; fi
	passed=$((passed + run_passed)) failed=$((failed + run_failed))
	note "$run_passed passed, $run_failed failed; $device_queries queries on the device"
	if [ -n "${CORE_TESTS:-}" ]; then floor_wanted=1; else floor_wanted=${!floor}; fi
	if [ "$device_queries" -ge "$floor_wanted" ]; then
		passed=$((passed + 1))
	else
		echo "FAILED: the device got $device_queries queries, less than $floor_wanted"
		failed=$((failed + 1))
	fi
	if [ $hashjoin = on ] && [ -z "${CORE_TESTS:-}" ]; then
		shown=$(cat "$work/$settings"/results/*.out | grep -c 'Device Joins:' || true)
		if [ "$shown" -ge "$floor_shown" ]; then
			passed=$((passed + 1))
		else
			echo "FAILED: $shown plans show joins on the device, less than $floor_shown"
			failed=$((failed + 1))
		fi
	fi
done

step "done"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
