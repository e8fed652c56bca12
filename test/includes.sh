#!/bin/bash
# includes.sh: does each folder of src/ and of gpu/ include only what the table in
# docs/design.md, "The folders", says that it may: of the folders in its last column
# the headers that those have for others?
#
# Also: src/ includes no CUDA header, gpu/ none of PostgreSQL's, and of the headers
# of gpu/ src/ includes only those that are for it.  The .c files beside the folders
# (settings, SQL functions, _PG_init) may include what any folder offers; the headers
# beside the folders may include none.
#
# Prints "ok" or "not ok" for each folder, the lines that are wrong, and at the end
# "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0 failed=0

# check WHAT BAD: BAD are lines, none if all is well
check()
{
	if [ -z "$2" ]; then
		echo "ok - $1"
		passed=$((passed + 1))
	else
		echo "not ok - $1"
		sed 's/^/#   /' <<<"$2"
		failed=$((failed + 1))
	fi
}

# Lines of the table: | `src/scan/` | … | `batch/`, `expr/` |
rows=$(sed -n 's/^| `src\/\([a-z]*\)\/` |.*| \([^|]*\) |$/\1: \2/p' docs/design.md | tr -d '`,/')
folders=$(cd src && ls -d */ | tr -d /)
any_folder=$(tr '\n' '|' <<<"$folders" | sed 's/|$//')

# The headers that folders have for others, one a line: plan/plan.h.  The folder of
# those that stand beside the folders of gpu/ is empty.
offered() # src|gpu
{
	sed -n 's/^| `'"$1"'\/\([a-z]*\/*\)` |[^|]*| \([^|]*\) |[^|]*|$/\1:\2/p' docs/design.md | tr -d '`,' |
		while IFS=: read -r folder names; do
			for name in $names; do
				[ "$name" = - ] || echo "$folder$name"
			done
		done
}
src_headers=$(offered src)
gpu_headers=$(offered gpu)
# As a pattern for grep -E: those of a folder, or all
pattern_of() # HEADERS [FOLDER/]
{
	{ grep "^${2:-}" <<<"$1" || true; } | sed 's/\./\\./g' | tr '\n' '|' | sed 's/|$//'
}

check "docs/design.md has the folders that there are" \
	"$(diff <(cut -d: -f1 <<<"$rows" | sort) <(sort <<<"$folders") | sed -n 's/^[<>]/&/p' || true)"

check "docs/design.md has headers that there are" \
	"$(ls $(sed 's/^/src\//' <<<"$src_headers") $(sed 's/^/gpu\//' <<<"$gpu_headers") 2>&1 >/dev/null || true)"
check "each folder of src/ has a header for others" \
	"$(diff <(cut -d/ -f1 <<<"$src_headers" | sort -u) <(sort <<<"$folders") | sed -n 's/^[<>]/&/p' || true)"

while IFS=: read -r folder allowed; do
	pattern="$folder/[a-z_]+\.h"
	for a in $allowed; do
		[ "$a" = - ] || pattern+="|$(pattern_of "$src_headers" "$a/")"
	done
	check "src/$folder/ includes only what it may" \
		"$(grep -nE "^#include \"($any_folder)/" "src/$folder"/*.[ch] |
			grep -vE "#include \"($pattern)\"" || true)"
done <<<"$rows"

check "the files beside the folders include only headers that folders have for others" \
	"$(grep -nE "^#include \"($any_folder)/" src/*.c |
		grep -vE "#include \"($(pattern_of "$src_headers"))\"" || true)"
check "the headers beside the folders include none of them" \
	"$(grep -nE "^#include \"($any_folder)/" src/*.h || true)"
check "src/ includes only the headers that gpu/ has for others" \
	"$(grep -nE '^#include [<"](.*/)?(rhh_|cuda)' -r src --include='*.[ch]' |
		grep -vE "\"($(pattern_of "$(grep -v / <<<"$gpu_headers")"))\"" || true)"

# The same for gpu/.  What the last column allows is what a folder offers, or gpu/ for
# all headers that stand beside the folders, or one of these by its name.
rows=$(sed -n 's/^| `gpu\/\([a-z]*\)\/*` |.*| \([^|]*\) |$/\1: \2/p' docs/design.md | tr -d '`,')
check "docs/design.md has the folders of gpu/ that there are" \
	"$(diff <(cut -d: -f1 <<<"$rows" | sort) <((echo && cd gpu && ls -d */ | tr -d /) | sort) | sed -n 's/^[<>]/&/p' || true)"
while IFS=: read -r folder allowed; do
	pattern="${folder:+$folder/}[a-z_]+\.c?u?h"
	for a in $allowed; do
		case $a in
			-) ;;
			gpu/) pattern+="|[a-z_]+\.h" ;;
			*/) pattern+="|$(pattern_of "$gpu_headers" "$a")" ;;
			*) pattern+="|${a//./\\.}" ;;
		esac
	done
	# simt.h stands in for CUDA where there is no nvcc
	check "gpu/${folder:+$folder/} includes only what it may" \
		"$(grep -InE '^[ 	]*#[ ]*include "' gpu/${folder:+"$folder/"}*.* |
			grep -vE "\"($pattern|simt\.h)\"" || true)"
done <<<"$rows"
check "gpu/ includes no header of PostgreSQL's" \
	"$(grep -nE '^#include "(postgres|fmgr|c)\.h"|^#include "[a-z]+/' -r gpu |
		grep -vE '"(table|cuda|cpu)/' || true)"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
