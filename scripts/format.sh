#!/bin/bash
# format.sh [--check] [FILE …]: PostgreSQL's layout for src/, gpu/ and test/.
#
# clang-format (version 14, Debian 12's; others lay out a few things otherwise)
# does most of it, scripts/pgalign.pl what pgindent does beyond it.  pgindent
# itself needs pg_bsd_indent, which Debian does not have.  With --check nothing
# is written: it prints what would change and exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then check=yes; shift; fi
if [ $# = 0 ]; then
	set -- $(ls src/*.[ch] src/*/*.[ch] gpu/*.[ch] gpu/*/*.{c,h,cu,cuh} test/*.[ch] test/device/*.[ch] 2>/dev/null)
fi

clang_format=${CLANG_FORMAT:-$(command -v clang-format-14 || command -v clang-format || true)}
if [ -z "$clang_format" ]; then
	echo "clang-format is missing: apt-get install clang-format-14" >&2
	exit 1
fi
case $("$clang_format" --version) in
	*'version 14.'*) ;;
	*) echo "note: $("$clang_format" --version); the layout is that of version 14" >&2 ;;
esac

new=$(mktemp)
trap 'rm -f "$new"' EXIT
content() { sed -z 's/\\\n//g' "$1" | tr -d ' \t\n'; }

status=0
for f in "$@"; do
	"$clang_format" --style=file --assume-filename="$f" <"$f" | perl scripts/pgalign.pl "$f" >"$new"
	if cmp -s "$f" "$new"; then
		continue
	fi
	# A formatter's mistake must not reach the source.
	if ! cmp -s <(content "$f") <(content "$new"); then
		echo "$f: formatting would change more than white space; left as it is" >&2
		status=1
	elif [ -n "$check" ]; then
		diff -u --label "$f" --label "$f, formatted" "$f" "$new" || true
		status=1
	else
		cat "$new" >"$f"
		echo "formatted $f"
	fi
done
if [ -n "$check" ] && [ $status != 0 ]; then
	echo "run \"make format\""
fi
exit $status
