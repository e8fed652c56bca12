#!/bin/bash
# run.sh, or "make table-test": the tests of bench/tables/ and of the table
# benchmark, without a GPU: on the CPU, by test/simt.h.
#
#	--cuda		the tables' tests by nvcc, on the GPU that is here
#	--memcheck	the same in compute-sanitizer, with fewer items, and rhh::table's
#
# Ends with "N passed, N failed", each test program's checks counted one by one.
. "$(dirname "$0")/../../../scripts/lib.sh"

cuda= memcheck= tests=(bench/tables/test/*_test.cu)
case ${1:-} in
	--cuda) cuda=yes ;;
	--memcheck) cuda=yes memcheck=yes; tests+=(test/table_test.cu) ;;
	'') ;;
	*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

new_tmpdir work
log=$work/log
passed=0 failed=0

# ---------- the tables ----------

for test in "${tests[@]}"; do
	step "$test"
	program=$work/$(basename "$test" .cu)
	if [ -n "$cuda" ]; then
		build=(${NVCC:-nvcc} -std=c++17 -O3 -arch=native ${memcheck:+-lineinfo -DTEST_SCALE=1}
			-Igpu -Itest -Ibench -Ibench/tables -o "$program" "$test")
	else
		build=(${CXX:-g++} -std=c++17 -O2 -Wall -Wextra ${WERROR:+-Werror} -Igpu -Itest -Ibench -Ibench/tables
			-o "$program" -x c++ "$test")
	fi
	if ! "${build[@]}" >"$log" 2>&1; then
		tail -40 "$log"
		failed=$((failed + 1))
		continue
	fi
	run_counting "$log" ${memcheck:+compute-sanitizer --tool memcheck --error-exitcode 9 --log-file "$work/memcheck"} "$program"
	if [ "$run_failed" != 0 ] && [ -n "$memcheck" ]; then head -40 "$work/memcheck"; fi
	note "$run_passed passed, $run_failed failed"
	passed=$((passed + run_passed)) failed=$((failed + run_failed))
done

if [ -n "$memcheck" ]; then echo "$passed passed, $failed failed"; exit $((failed > 0)); fi

# ---------- the benchmark ----------

# A run of everything that takes seconds.  Its figures say nothing; what is
# tested is that all of it runs, finds its answers right, and writes what the
# plots and the reader need.
step "bench/table_bench.sh --simt"
bench=(bench/table_bench.sh --simt --dir "$work" --name smoke)
tiny=(--table-bytes 32768 --rows 3000 --groups "5 2000" --reps 2 --loads "0.5 1.0")
if "${bench[@]}" "${tiny[@]}" >"$log" 2>&1; then
	passed=$((passed + 1))
else
	tail -40 "$log"
	failed=$((failed + 1))
fi
prefix=$(echo "$work"/*-smoke-run_info.txt)
prefix=${prefix%-run_info.txt}

# As many columns in each row as in the head, no infinite or negative number;
# so many rows of those where COLUMN is VALUE
csv_is_right()
{
	awk -F, '/^#/ { next }
		!n { n = NF; next }
		NF != n { print FILENAME ": " NF " columns: " $0; bad = 1 }
		{ for (i = 1; i <= NF; i++) if ($i ~ /^-?(nan|inf)$/ || $i ~ /^-[0-9]/) { print FILENAME ": " $0; bad = 1 } rows++ }
		END { exit bad || !rows }' "$1"
}
rows() # CSV COLUMN VALUE [COLUMN VALUE …]
{
	local csv=$prefix-$1.csv
	shift
	awk -F, -v want="$*" '/^#/ { next }
		!n { n = NF; for (i = 1; i <= NF; i++) at[$i] = i; m = split(want, w, " "); next }
		{ for (i = 1; i < m; i += 2) if ($at[w[i]] != w[i + 1]) next; count++ }
		END { print count + 0 }' "$csv"
}
is() { if [ "$1" != "$2" ]; then echo "is $1, not $2"; return 1; fi; }

check "run_info.txt names the device" grep -q '^device: simt' "$prefix-run_info.txt"
check "the log has the figures" grep -q 'M operations/s' "$prefix-log.txt"
for section in timing bandwidth remainders groupby papers-linear papers-linear-probes papers-incremental papers-mixtures; do
	check "$section.csv" csv_is_right "$prefix-$section.csv"
done
for table in linear_two_step linear_one_cas linear_reuse; do
	for bytes in 4 8; do
		for op in insert find_hit find_miss; do
			check "timings of $table" is "$(rows timing table $table key_bytes $bytes op $op drops 0)" 4
		done
	done
done
check "misses are absent" is "$(rows timing op find_miss)" \
	"$(awk -F, '$8 == "find_miss" && $10 == $14' "$prefix-timing.csv" | wc -l)"
check "every draw is another" is "$(awk -F, '$2 == 4 && $6 == 1 && $8 == "insert" && $1 == "linear_reuse" { print $11 }' "$prefix-timing.csv" | sort -u | wc -l)" 2
check "all tables get the same draws" is "$(awk -F, '$2 == 4 && $8 == "insert" { print $6, $9, $11 }' "$prefix-timing.csv" | sort -u | wc -l)" 4
# at load 1 a draw has 32 (1 - exp(-1/32)) = 0.985 distinct keys a slot
check "how many keys of a draw are distinct" \
	awk -F, '/^[^#t]/ && $6 == 1 && ($11 / $10 < 0.97 || $11 / $10 > 0.995) { bad = 1; print } END { exit bad }' "$prefix-timing.csv"
for method in sort atomics gpurhh gpurhh_sum; do
	check "group-by: $method" is "$(rows groupby method $method)" 16
done
check "uniform rows have all groups" is "$(rows groupby distribution uniform groups_asked 5 groups 5)" 16
# of 2000 groups 3000 uniform rows hit 2000 (1 - exp(-1.5)) = 1554, Zipf rows far fewer
check "Zipf rows have fewer groups" \
	awk -F, '$4 == 2000 && ($3 == "uniform" ? $5 < 1500 || $5 > 1610 : $5 < 650 || $5 > 950) { bad = 1; print } END { exit bad }' "$prefix-groupby.csv"
check "mixtures: three each" is "$(rows papers-mixtures table linear_one_cas)" 3
check "mixtures: not of inserts and erases with reuse" is "$(rows papers-mixtures table linear_reuse)" 0
check "batches: 64, 32 and 16 of them" is "$(rows papers-incremental table linear_reuse)" 112
# the lengths of probes are what theory says, within what so few slots allow
check "probe lengths" awk -F, '$5 == "insert" && $2 == 4 && $4 <= 0.8 && ($9 / $11 < 0.8 || $9 / $11 > 1.2) { bad = 1; print } END { exit bad }' "$prefix-papers-linear.csv"
check "bandwidth: every load, both widths" is "$(rows bandwidth table linear_one_cas)" 28
for table in robin_hood robin_hood_direct; do
	check "bandwidth: every load, both widths of $table" is "$(rows bandwidth table $table)" 28
done
check "bandwidth: nobody is turned away at 0.5" is "$(rows bandwidth load 0.5 turned_away 0)" 12
# an insert met its key, was turned away or is an entry; beyond a load of 1 the table is full
check "bandwidth: an overfull table is full, by its counters" \
	awk -F, '$1 ~ /^robin_hood/ && $3 == "insert_sum" && $4 > 1 {
		entries = $6 - $5 - $14; slots = 32768 / 2 / $2; rows++
		if (entries > slots || entries < 0.99 * slots) { bad = 1; print }
	} END { exit bad || rows != 12 }' "$prefix-bandwidth.csv"
# 64 bytes a bucket; 8 buckets at most, which misses in a full table all read
check "bandwidth: one bucket read at a load of 0.25" \
	awk -F, '$1 ~ /^robin_hood/ && $3 == "find" && $4 == 0.25 { rows++; if ($9 < 64 || $9 > 66) { bad = 1; print } }
		END { exit bad || rows != 4 }' "$prefix-bandwidth.csv"
check "bandwidth: eight buckets read in a full table without hints" \
	awk -F, '$1 == "robin_hood_direct" && $3 == "find" && $4 == 3 { rows++; if ($9 < 500 || $9 > 512) { bad = 1; print } }
		END { exit bad || rows != 2 }' "$prefix-bandwidth.csv"
# the bucket and its sector written back
check "bandwidth: inserts at a load of 0.25" \
	awk -F, '$1 ~ /^robin_hood/ && $3 == "insert_sum" && $4 == 0.25 { rows++; if ($9 < 96 || $9 > 103) { bad = 1; print } }
		END { exit bad || rows != 4 }' "$prefix-bandwidth.csv"
check "bandwidth: rows are turned away at 3" is "$(rows bandwidth load 3 turned_away 0)" 0

check "remainders: every width and bucket" is "$(rows remainders load 0.85)" 36
for bucket in 8 16 32; do
	check "remainders: half the memory, buckets of $bucket" \
		is "$(awk -F, -v b=$bucket '$5 == b && $3 == 32 && $13 > 0.499 && $13 < 0.501' "$prefix-remainders.csv" | wc -l)" 4
	check "remainders: less with 16 bits, buckets of $bucket" \
		is "$(awk -F, -v b=$bucket '$5 == b && $3 == 16 && $13 > 0.25 && $13 < 0.35' "$prefix-remainders.csv" | wc -l)" 4
	check "remainders: compared at one size, buckets of $bucket" \
		is "$(awk -F, -v b=$bucket '$5 == b { print $2, $6 }' "$prefix-remainders.csv" | sort -u | wc -l)" 1
done
check "--tables: only these" "${bench[@]}" --name some "${tiny[@]}" --loads 0.5 --reps 1 \
	--sections "timing papers remainders" --tables "robin_hood compact_iceberg_32_32_16_16" >"$log"
check "--tables: no others" is "$(cat "${prefix%-smoke}"-some-*.csv | cut -d, -f1 | grep -v '^#' | sort -u | tr '\n' ' ')" \
	"compact_iceberg_32_32_16_16 robin_hood table "

refused() # STATUS MESSAGE OPTION …
{
	local want=$1 message=$2 status=0
	shift 2
	"${bench[@]}" --name refused "$@" >"$log" 2>&1 || status=$?
	if [ $status != "$want" ] || ! grep -q -- "$message" "$log"; then
		tail -5 "$log"
		return 1
	fi
}
check "loads beyond all slots are given up" \
	refused 1 'distinct keys for 4096 slots, whatever is drawn' "${tiny[@]}" --loads 1.2 --sections timing
check "an unknown section" refused 1 'no section what' --sections what
check "an unknown table" refused 1 'no table what' --tables "robin_hood what"
check "an unknown option" refused 1 'unknown option' --what 1
check "a list that is none" refused 1 'not a list of numbers' --loads "0.5 x"
check "a block of 100 threads" refused 1 'a block has' --blocks 100
check "a table that is no power of two" refused 1 'power of two' --table-bytes 40000

if ! nvidia-smi -L >/dev/null 2>&1 && ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
	says=$(bench/table_bench.sh --dir "$work" 2>&1) && status=0 || status=$?
	check "without a GPU it says so and fails" \
		test $status != 0 -a -n "$(grep -E 'no NVIDIA GPU|no nvcc' <<<"$says")"
fi
if command -v gnuplot >/dev/null; then
	plots() { bench/plot_tables.sh "$prefix" >/dev/null; }
	no_plots() { ! bench/plot_tables.sh "$work/nothing" 2>/dev/null; }
	check "plots" plots
	for p in timing bandwidth groupby; do
		check "$p.png" test -s "$prefix-$p.png"
		check "$p.svg has curves" grep -q '<path' "$prefix-$p.svg"
	done
	check "plots of nothing" no_plots
else
	note "plots left out: gnuplot is not here"
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
