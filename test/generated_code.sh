#!/bin/bash
# generated_code.sh: what nvcc makes of rhh::table's slots of 16 bytes.
#
#	sm_90		each store into a slot is one compare-and-swap of 128 bits, and each
#				look at one a load of 128 bits: seen in SASS where cuobjdump or
#				nvdisasm is here, else in PTX that ptxas accepts
#	before		it does not compile, and the message says what to use instead,
#				while slots of 8 bytes do compile
#
# Needs nvcc (NVCC, that of the last build, or in PATH), no GPU.  Ends with "N
# passed, N failed"; with "0 passed, 0 failed" where there is no nvcc.
. "$(dirname "$0")/../scripts/lib.sh"

passed=0 failed=0

find_nvcc
if [ -z "$nvcc" ]; then
	note "left out: there is no nvcc"
	echo "0 passed, 0 failed"
	exit 0
fi
# Its other programs: what PATH has may be a link, or start an nvcc elsewhere.
toolkit=$("$nvcc" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
tool() # NAME: in the toolkit, or in PATH
{
	command -v "$toolkit/bin/$1" || command -v "$1"
}

new_tmpdir work

# use NAME KEY STATEMENT: a program with one use of a table, so that each is seen
# by itself.
use()
{
	cat >"$work/$1.cu" <<-END
		#include "table/rhh_table.cuh"
		typedef rhh::table<$2, $2> table;
		__global__ void
		use_$1(const __grid_constant__ table::ref r, $2 key, $2 value, int *out)
		{
			const table::ref::tile tile;
			$3
			*out = (int) (key + value);
		}
		cudaError_t
		bulk(table &t, $2 *keys)
		{
			$4
			return cudaSuccess;
		}
	END
}
use insert uint64_t 'r.insert(tile, &key, &value);' ''
use insert_if_absent uint64_t 'r.insert_if_absent(tile, &key, &value);' ''
use bulk_insert uint64_t '' 'return t.insert(keys, keys, 9, {}, nullptr);'
use short uint32_t 'r.insert(tile, &key, &value);' 'return t.insert(keys, keys, 9, {}, nullptr);'

compile() # ARCH OPTION NAME OUTPUT
{
	"$nvcc" -std=c++17 -O3 -arch="$1" -Igpu $2 -o "$work/$4" "$work/$3.cu" >"$work/log" 2>&1
}

# ---------- sm_90 ----------

# The code of the functions whose names match; PTX, or SASS of either program.
functions() # REGEX FILE
{
	awk -v re="$1" '/\.entry|Function :|^[ \t]*\.section|^\.text\./ { on = $0 ~ re } on' "$2"
}
has() { functions "$1" "$3" | grep -E "$2" >/dev/null; }
has_no() { [ -n "$(functions "$1" "$3")" ] && ! has "$@"; }

sass_of() # CUBIN
{
	local program

	if program=$(tool cuobjdump); then "$program" -sass "$1"
	elif program=$(tool nvdisasm); then "$program" "$1"
	else return 1; fi
}

for name in insert insert_if_absent bulk_insert; do
	kernel=use_${name}
	if [ $name = bulk_insert ]; then kernel=insert_kernel; fi
	check "$name compiles for sm_90" compile sm_90 -ptx $name $name.ptx
	check "$name: a compare-and-swap of 128 bits in PTX" has $kernel 'atom[.a-z]*\.cas\.b128' "$work/$name.ptx"
	check "$name: no compare-and-swap of 64 bits in PTX" has_no $kernel 'atom[.a-z]*\.cas\.b64' "$work/$name.ptx"
	check "$name: a load of 128 bits in PTX" has $kernel 'ld\.relaxed\.gpu\.global\.b128' "$work/$name.ptx"
	check "$name: ptxas makes code of it" "$(tool ptxas)" -arch=sm_90 -o "$work/$name.cubin" "$work/$name.ptx"
	if sass_of "$work/$name.cubin" >"$work/$name.sass" 2>&1; then
		check "$name: a compare-and-swap of 128 bits in SASS" has $kernel 'ATOMG?(\.[A-Z]+)*\.CAS\.128' "$work/$name.sass"
		check "$name: no compare-and-swap of 64 bits in SASS" has_no $kernel 'ATOMG?(\.[A-Z]+)*\.CAS\.64' "$work/$name.sass"
		check "$name: a load of 128 bits in SASS" has $kernel 'LDG?(\.[A-Z]+)*\.128\.STRONG\.GPU' "$work/$name.sass"
		seen="PTX and SASS"
	fi
done
note "looked at ${seen:-PTX only: neither cuobjdump nor nvdisasm is here}"

# ---------- before sm_90 ----------

# The newest that this nvcc knows
old=sm_$("$nvcc" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n | awk '$1 < 90' | tail -1)
refused() # NAME
{
	! compile "$old" -ptx "$1" old.ptx &&
		grep -q 'static assertion failed.*need the 128-bit compare-and-swap of sm_90' "$work/log" &&
		grep -q 'compile for sm_90, or use keys and values of 4 bytes' "$work/log"
}
for name in insert insert_if_absent bulk_insert; do
	check "$name of 16-byte slots for $old is refused, with what to use instead" refused $name
done
check "8-byte slots compile for $old" compile "$old" -ptx short old.ptx

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
