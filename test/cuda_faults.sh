#!/bin/bash
# cuda_faults.sh: has functions of the CUDA driver fail, one after the other and at many moments, while queries run.
#
#	--positions N	moments for each function (default 12)
#	--functions "LIST"	of the driver (default: all that can be made to fail)
#	--running		use the server that PGHOST, PGPORT, ... lead to, which has gpurhh preloaded and was started
#					with LD_LIBRARY_PATH=DIR:..., GPURHH_FAULTS=DIR/faults and GPURHH_LIBCUDA; --prepare DIR
#					makes DIR
#	--prepare DIR	does only that
#
# Memory cannot be allocated, pages cannot be registered, a copy, a kernel or an event fails: once, or from then on.
# Then each answer has to be PostgreSQL's, or the query has to fail with an error of the device (58000); and when
# nothing fails any more all answers have to be right again.  Where pages cannot be registered gpurhh_devices() has to say
# so.  test/cuda_faults.c is what fails.
#
# Needs a GPU.  Not part of "make check".  Ends with "N passed, N failed".
. "$(dirname "$0")/../scripts/lib.sh"

positions=12 running= prepare= functions=
while [ $# -gt 0 ]; do
	case $1 in
		--running) running=yes; shift ;;
		--positions | --prepare | --functions) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done

# make_library DIR: libcuda.so.1 and the file that tells it what to do
make_library()
{
	mkdir -p "$1"
	${CC:-cc} -O1 -Wall -shared -fPIC -Wl,-soname,libcuda_faults.so -o "$1/libcuda.so.1" test/cuda_faults.c -ldl ||
		die "could not build test/cuda_faults.c"
	head -c 64 /dev/zero >"$1/faults"
	chmod a+rx "$1" "$1/libcuda.so.1"
	chmod a+rw "$1/faults"
}

if [ -n "$prepare" ]; then
	make_library "$prepare"
	exit
fi
has_gpu || die "there is no GPU"
if [ -n "$running" ]; then
	faults=${GPURHH_FAULTS:?is not set}
	new_tmpdir work
else
	set_up_and_install
	new_tmpdir work
	make_library "$work/cuda"
	chmod a+rx "$work"
	faults=$work/cuda/faults
	export GPURHH_FAULTS=$faults
	GPURHH_LIBCUDA=${GPURHH_LIBCUDA:-$(ldconfig -p | awk '/libcuda\.so\.1 / && /x86-64/ { print $NF; exit }')}
	export GPURHH_LIBCUDA LD_LIBRARY_PATH=$work/cuda:${LD_LIBRARY_PATH:-}
	cluster_start cluster "shared_preload_libraries = 'gpurhh'" "shared_buffers = 1GB"
fi
sql() { psql -XqAt "$@"; }

end_service()
{
	sql -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'gpurhh%'" >/dev/null
	sleep 0.5
}

# fault NAME SKIP FAIL: the function fails FAIL times after SKIP calls
fault() { perl -e 'open my $f, "+<", $ARGV[0] or die; print $f pack("Z40 q q q", @ARGV[1 .. 3], 0)' "$faults" "$@"; }
calls() { perl -e 'open my $f, "<", $ARGV[0] or die; read $f, my $c, 64; print((unpack "Z40 q q q", $c)[3])' "$faults"; }

sql -c "CREATE EXTENSION IF NOT EXISTS gpurhh" -c "DROP TABLE IF EXISTS t, d" \
	-c "CREATE TABLE t AS SELECT (i::int8 * 7919 % 100000)::int4 AS k, i % 1000 AS v, (i % 977)::numeric(8, 2) / 4 AS n, 'string ' || i % 5000 AS s
		FROM generate_series(1, 200000) i" \
	-c "CREATE TABLE d AS SELECT i AS id, i % 100 AS a FROM generate_series(0, 99999, 2) i" \
	-c "SELECT pg_sleep(1)" -c "VACUUM (ANALYZE) t" -c "VACUUM (ANALYZE) d" >/dev/null || die "could not make the tables"

queries=(
	"SELECT count(*), sum(v), min(k) FROM t"
	"SELECT md5(string_agg(x::text, ' ' ORDER BY x)) FROM (SELECT v, count(*), sum(n), max(k) FROM t GROUP BY v) x"
	"SELECT md5(string_agg(x::text, ' ' ORDER BY x)) FROM (SELECT k, sum(v) FROM t GROUP BY k HAVING count(*) = 2 OFFSET 0) x"
	"SELECT count(*), sum(y + 1) FROM (SELECT k, sum(v) AS y FROM t GROUP BY k) x WHERE y % 2 = 0"
	"SELECT md5(string_agg(x::text, ' ' ORDER BY x)) FROM (SELECT d.a, sum(t.v + d.a), count(*) FROM t JOIN d ON d.id = t.k GROUP BY d.a) x"
	"SELECT md5(string_agg(x::text, ' ' ORDER BY x)) FROM (SELECT t.k, t.n, d.a FROM t LEFT JOIN d ON d.id = t.k WHERE t.v < 50) x"
	"SELECT md5(string_agg(x::text, ' ' ORDER BY x)) FROM (SELECT s, count(DISTINCT v) FROM t GROUP BY ROLLUP (s)) x"
)
{
	# with "auto" the next service would keep away from the GPU for a while
	echo "SET gpurhh.device = 'cuda:0'; SET work_mem = '256MB'; SET gpurhh.setup_cost = 0; SET gpurhh.row_cost = 0; SET gpurhh.group_cost = 0; SET gpurhh.read_pages = on;"
	for i in "${!queries[@]}"; do echo "\\echo Q$i"; echo "${queries[i]};"; done
} >"$work/script"
# run: what the queries answer, a line each; an error is a line with its SQLSTATE
run()
{
	{ echo "\\set VERBOSITY verbose"; echo "SET enable_gpu_hashagg = $1; SET enable_gpu_hashjoin = $1;"; cat "$work/script"; } >"$work/input"
	timeout 120 psql -XqAt -f "$work/input" 2>&1 | sed -E 's/^psql:[^ ]* //' >"$work/raw"
	sed -E 's/^(ERROR|FATAL|PANIC): *([0-9A-Z]{5}):.*/\1 \2/; /^(WARNING|DETAIL|HINT|LOCATION|CONTEXT|STATEMENT):/d' "$work/raw"
}

# judge FILE MAY_FAIL: counts the answers of FILE
judge()
{
	awk -v may="$2" '
		FNR == NR { want[FNR] = $0; n = FNR; next }
		{ if ($0 == want[++at]) { right += $0 !~ /^Q/; next }
		  if (may && $0 == "ERROR 58000") { errors++; next }
		  wrong = wrong " [" at ": " $0 "]" }
		END { if (at != n) wrong = wrong " [" at " lines instead of " n "]"; print right + 0, errors + 0, wrong }' "$work/expected" "$1"
}

passed=0 failed=0 all_errors=0
fault none 0 0
run off >"$work/expected"
grep -q ERROR "$work/expected" && { cat "$work/expected"; die "the queries fail"; }
run on >"$work/got"
read -r right errors wrong <<<"$(judge "$work/got" "")"
[ -z "$wrong" ] || die "without a fault: $wrong"

# check NAME: the answers, while something fails and afterwards
check()
{
	run on >"$work/got"
	fault none 0 0
	run on >"$work/again"
	cp "$work/raw" "$work/raw_again"
	read -r right errors wrong <<<"$(judge "$work/got" yes)"
	all_errors=$((all_errors + errors))
	read -r _ _ wrong_again <<<"$(judge "$work/again" "")"
	if [ -z "$wrong" ] && [ -z "$wrong_again" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		note "FAILED: $1:${wrong:+ $wrong}${wrong_again:+ afterwards: $wrong_again}"
		grep -E '^(ERROR|FATAL|PANIC|DETAIL):' "$work/raw_again" || true
	fi
}

# check_reason: what users are told when pages cannot be registered; the GPU is used as before, with columns
check_reason()
{
	local got

	end_service
	fault cuMemHostRegister 0 1000000000
	run on >/dev/null
	got=$(sql -c "SELECT state, detail FROM gpurhh_devices() WHERE device = 'cuda:0'")
	fault none 0 0
	if [[ $got == "open|it does not read pages of tables: "?* ]]; then
		passed=$((passed + 1))
		step "pages cannot be registered: $got"
	else
		failed=$((failed + 1))
		note "FAILED: pages cannot be registered, and gpurhh_devices() has: $got"
	fi
}

all_functions=$(sed -nE 's/^\tX\((\w+), [0-9]+\).*/\1/p' test/cuda_faults.c)
for name in ${functions:-$all_functions}; do
	grep -qx "$name" <<<"$all_functions" || die "$name is none of: $(tr '\n' ' ' <<<"$all_functions")"
	# a service that begins anew calls all of it
	end_service
	fault "$name" 1000000000 0
	run on >/dev/null
	n=$(calls)
	before=$all_errors
	last=-1
	for ((p = 0; p < positions && n > 0; p++)); do
		# more of them at the beginning
		skip=$((n * p * p / (positions * positions)))
		[ "$skip" != "$last" ] || continue
		last=$skip
		for times in 1 1000000000; do
			# while nothing has been registered yet, if that is what fails
			[ "$name" != cuMemHostRegister ] || end_service
			fault "$name" "$skip" "$times"
			check "$name after $skip calls, $times times"
		done
	done
	[ "$name" != cuMemHostRegister ] || check_reason
	step "$name: $n calls, $((all_errors - before)) queries failed with 58000"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
