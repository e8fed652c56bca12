#!/bin/bash
# table_tune.sh: what the constants of gpu/table/rhh_table_tuning.h are worth, on one
# NVIDIA GPU.
#
#	--out FILE		CSV (default: standard output)
#	--bin DIR		programs: built there, or, if one is there, used as it is
#					(default bench/build)
#	--build			only build
#	--slots N		of the table (default 2^27)
#	NAME …			these choices only
#
# A choice is a program: bench/table_tune.cu with other constants (-D).  Each is run
# after the other; the columns are: choice, bytes of a key, operation, load before,
# keys as a share of the slots, ms, M keys/s.  Environment: NVCC, CUDA_ARCH (90).
. "$(dirname "$0")/../scripts/lib.sh"

# name, then what differs from rhh_table_tuning.h
choices='
default
merge_always		-DRHH_MERGE_SLOTS_PER_ITEM=1000000 -DRHH_MERGE_SLOTS_PER_ITEM_HIGH=1000000 -DRHH_MERGE_SLOTS_PER_ITEM_FULL=1000000
merge_never			-DRHH_MERGE_SLOTS_PER_ITEM=0 -DRHH_MERGE_SLOTS_PER_ITEM_HIGH=0 -DRHH_MERGE_SLOTS_PER_ITEM_FULL=0
build_always		-DRHH_BUILD_SLOTS_PER_ITEM=1000000
build_never			-DRHH_BUILD_SLOTS_PER_ITEM=0
hints_always		-DRHH_HINTS_SLOTS_PER_KEY=1000000
hints_seldom		-DRHH_HINTS_SLOTS_PER_KEY=1
l2_divisor_1		-DRHH_PARTITION_L2_DIVISOR=1
l2_divisor_4		-DRHH_PARTITION_L2_DIVISOR=4
threads_128			-DRHH_TABLE_BLOCK_THREADS=128
threads_512			-DRHH_TABLE_BLOCK_THREADS=512
build_threads_128	-DRHH_BUILD_THREADS=128
build_threads_512	-DRHH_BUILD_THREADS=512
build_blocks_4		-DRHH_BUILD_BLOCKS_PER_SM=4
parts_8k			-DRHH_PART_BYTES=8192 -DRHH_SORT_BYTES=12288 -DRHH_MERGE_BYTES=20480
items_1				-DRHH_TABLE_ITEMS=1
items_2				-DRHH_TABLE_ITEMS=2
items_8				-DRHH_TABLE_ITEMS=8
'

out=/dev/stdout bin=bench/build only_build= slots=$((1 << 27)) wanted=
while [ $# -gt 0 ]; do
	case $1 in
		--out | --bin | --slots) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
		--build) only_build=yes; shift ;;
		--help | -h) usage ;;
		--*) die "unknown option: $1" ;;
		*) wanted="$wanted $1 "; shift ;;
	esac
done

mkdir -p "$bin"
[ -n "$only_build" ] || echo "choice,key_bytes,op,load,keys_per_slot,ms,mops" >"$out"
while read -r name defines; do
	[ -n "$name" ] || continue
	[ -z "$wanted" ] || [[ $wanted == *" $name "* ]] || continue
	if [ ! -x "$bin/tune_$name" ]; then
		step "build $name" >&2
		# shellcheck disable=SC2086
		${NVCC:-nvcc} -std=c++17 -O3 -arch=sm_"${CUDA_ARCH:-90}" -Igpu -Ibench -Ibench/tables $defines \
			-o "$bin/tune_$name" bench/table_tune.cu
	fi
	[ -n "$only_build" ] || "$bin/tune_$name" "$name" "$slots" >>"$out"
done <<<"$choices"
