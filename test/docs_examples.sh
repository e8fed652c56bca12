#!/bin/bash
# docs_examples.sh: the programs in docs/table.md compile, run, and print what the
# block behind each says.
#
# They run on the CPU (simt.h); where nvcc is, it must compile them as well, for
# sm_90, and where there is a GPU too, what it compiled must print the same.  Ends
# with "N passed, N failed".
. "$(dirname "$0")/../scripts/lib.sh"

passed=0 failed=0

new_tmpdir work
check_log=$work/log

# Blocks by number: N.cu, and what follows it as N.out
awk -v dir="$work" '
	/^```/ && to { close(to); to = ""; next }
	/^```cuda$/ { n++; to = dir "/" n ".cu"; next }
	/^```$/ { to = n ? dir "/" n ".out" : "/dev/null"; next }
	/^```/ { to = "/dev/null"; next }
	to { print >to }' docs/table.md

by_cxx()
{
	# A C++ compiler does not know <<<blocks, threads>>>.
	sed -E 's/\b(\w+)<<<([^,]+), ([^>]+)>>>\((.*)\);/RHH_LAUNCH(\1, \2, \3, 0, nullptr, \4);/' "$1.cu" >"$1.cc"
	${CXX:-c++} -std=c++17 -O1 -Wall -Wextra -Werror -Igpu -Itest -x c++ -o "$1.simt" "$1.cc" >"$work/log" 2>&1
}
by_nvcc()
{
	"$nvcc" -std=c++17 -arch=sm_90 -Igpu -o "$1.gpu" "$1.cu" >"$work/log" 2>&1
}
prints() # PROGRAM EXPECTED
{
	"$1" >"$work/log" 2>&1 && diff "$work/log" "$2"
}

find_nvcc
check "docs/table.md has two programs" test -e "$work/2.out"
for cu in "$work"/*.cu; do
	program=${cu%.cu}
	name="program $(basename "$program") of docs/table.md"
	check "$name compiles by $(basename "${CXX:-c++}")" by_cxx "$program"
	check "$name prints what it says" prints "$program.simt" "$program.out"
	if [ -n "$nvcc" ]; then
		check "$name compiles by nvcc" by_nvcc "$program"
		if has_gpu; then
			check "$name prints what it says on the GPU" prints "$program.gpu" "$program.out"
		fi
	fi
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
