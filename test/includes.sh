#!/bin/bash
# includes.sh: does each folder of src/ and of gpu/ include only what the table in
# docs/design.md, "The folders", says that it may?
#
# Also: src/ includes no CUDA header, gpu/ none of PostgreSQL's, and of the headers
# of gpu/ src/ includes only those that are for it.  The .c files beside the folders
# (settings, SQL functions, _PG_init) may include all of them; the headers beside
# the folders may include none.
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

check "docs/design.md has the folders that there are" \
	"$(diff <(cut -d: -f1 <<<"$rows" | sort) <(sort <<<"$folders") | sed -n 's/^[<>]/&/p' || true)"

while IFS=: read -r folder allowed; do
	pattern="$folder"
	for a in $allowed; do
		[ "$a" = - ] || pattern+="|$a"
	done
	check "src/$folder/ includes only what it may" \
		"$(grep -nE "^#include \"($(tr '\n' '|' <<<"$folders" | sed 's/|$//'))/" "src/$folder"/*.[ch] |
			grep -vE "#include \"($pattern)/" || true)"
done <<<"$rows"

check "the headers beside the folders include none of them" \
	"$(grep -nE '^#include "[a-z]+/[a-z_]+\.h"' src/*.h |
		grep -E "\"($(tr '\n' '|' <<<"$folders" | sed 's/|$//'))/" || true)"
check "src/ includes only rhh_device.h, rhh_states.h, rhh_hash.h and rhh_group_rows.h of gpu/" \
	"$(grep -nE '^#include [<"](.*/)?(rhh_|cuda)' -r src --include='*.[ch]' |
		grep -vE '"rhh_(device|states|hash|group_rows)\.h"' || true)"

# The same for gpu/.  What the last column allows is a folder, or gpu/ for all
# headers that stand beside the folders, or one of these by its name.
rows=$(sed -n 's/^| `gpu\/\([a-z]*\)\/*` |.*| \([^|]*\) |$/\1: \2/p' docs/design.md | tr -d '`,')
check "docs/design.md has the folders of gpu/ that there are" \
	"$(diff <(cut -d: -f1 <<<"$rows" | sort) <((echo && cd gpu && ls -d */ | tr -d /) | sort) | sed -n 's/^[<>]/&/p' || true)"
while IFS=: read -r folder allowed; do
	pattern="${folder:+$folder/}[a-z_]+\.c?u?h"
	for a in $allowed; do
		case $a in
			-) ;;
			gpu/) pattern+="|[a-z_]+\.h" ;;
			*/) pattern+="|$a[a-z_]+\.c?u?h" ;;
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
