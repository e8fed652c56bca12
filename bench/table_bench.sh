#!/bin/bash
# table_bench.sh, or "make table-bench": the hash tables of gpu/ and
# bench/tables/ on one NVIDIA GPU: builds bench/table_bench.cu and runs it.
#
#	--name NAME			of the machine, in the results' names (default: the GPU's)
#	--dir DIR			where results go (default bench/results)
#	--sweep-blocks		timings with blocks of 64, 128, 256, 512 and 1024 threads
#	--quick				3 repetitions, loads 0.5 and 0.85: about a minute
#	--simt				without a GPU: the same program on the CPU, tiny, which
#						says nothing about speed; for tests
#	--build				only build, print the program's path
#	--help
#
# Other options go to the program: --sections "timing bandwidth papers remainders
# groupby", --tables "robin_hood linear_reuse" (names as in the CSV files), --reps
# N, --loads "0.5 0.85", --rows N, --groups "10 1000", --table-bytes N, … (all in
# the head of bench/table_bench.cu).  The default set takes about 3
# minutes on an H100.
#
# Results are DIR/DATE-NAME-*.csv, DIR/DATE-NAME-run_info.txt (device, driver,
# clocks, compiler, commit, command) and DIR/DATE-NAME-log.txt.
# bench/plot_tables.sh DIR/DATE-NAME draws them.
#
# Environment: NVCC, CUDA_ARCH (such as 90; default: the GPU's), CXX.
. "$(dirname "$0")/../scripts/lib.sh"

name= dir=bench/results simt= only_build= args=()
while [ $# -gt 0 ]; do
	case $1 in
		--name | --dir)
			[ $# -ge 2 ] || die "$1 needs a value"
			declare "${1#--}=$2"; shift 2 ;;
		--sweep-blocks) args+=(--blocks "64 128 256 512 1024"); shift ;;
		--quick) args+=(--reps 3 --loads "0.5 0.85"); shift ;;
		--simt) simt=yes; shift ;;
		--build) only_build=yes; shift ;;
		--help | -h) usage ;;
		--*)
			[ $# -ge 2 ] || die "unknown option, or without a value: $1"
			args+=("$1" "$2"); shift 2 ;;
		*) die "not an option: $1" ;;
	esac
done

# ---------- build ----------

out=bench/build
program=$out/table_bench${simt:+_simt}
mkdir -p "$out"

# Anything newer than the program?
stale() { [ ! -x "$program" ] || [ -n "$(find bench/*.cu* bench/tables/*.cuh gpu test/simt.h -newer "$program" ! -name '*.[od]' -print -quit)" ]; }

includes="-Igpu -Ibench -Ibench/tables"
if [ -n "$simt" ]; then
	compiler=${CXX:-g++}
	if stale; then
		step "build for the CPU, by $compiler"
		for f in gpu/*.c gpu/cpu/*.c; do
			${CC:-cc} -std=gnu11 -O2 -pthread -Igpu -c -o "$out/$(basename "$f" .c)_simt.o" "$f"
		done
		$compiler -std=c++17 -O1 -Wall -Wextra ${WERROR:+-Werror} $includes -Itest -x c++ bench/table_bench.cu \
			-x none "$out"/rhh_*_simt.o -lpthread -o "$program"
	fi
else
	nvcc=
	for n in "${NVCC:-}" nvcc /usr/local/cuda/bin/nvcc; do
		if [ -n "$n" ] && command -v "$n" >/dev/null; then nvcc=$n; break; fi
	done
	[ -n "$nvcc" ] || die "no nvcc in NVCC, PATH or /usr/local/cuda/bin; the benchmark needs the CUDA toolkit"
	if [ -z "$only_build" ] && ! nvidia-smi -L >/dev/null 2>&1 && ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
		die "no NVIDIA GPU here; nothing was measured (--simt runs the program on the CPU, for tests)"
	fi
	arch=${CUDA_ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ')}
	case $arch in *[!0-9]* | '') arch=native ;; *) arch=sm_$arch ;; esac
	# -arch is part of what the program was built from
	if [ "$(cat "$out/arch" 2>/dev/null)" != "$arch" ] || stale; then
		step "build for $arch (a minute or two)"
		shared=()
		# together, for they take long
		$nvcc -std=c++17 -O3 -lineinfo -arch="$arch" $includes -DRHH_WITH_CUDA --Werror all-warnings \
			-Xcompiler -Wall -c -o "$out/table_bench.o" bench/table_bench.cu &
		pids=($!)
		$nvcc -std=c++17 -O3 -lineinfo -arch="$arch" $includes -DRHH_WITH_CUDA -Xcompiler -Wall \
			-c -o "$out/rhh_cuda.o" gpu/cuda/rhh_cuda.cu &
		pids+=($!)
		for f in gpu/*.c; do
			${CC:-cc} -std=gnu11 -O2 -Igpu -c -o "$out/$(basename "$f" .c).o" "$f"
			shared+=("$out/$(basename "$f" .c).o")
		done
		for p in "${pids[@]}"; do wait "$p" || die "the build failed"; done
		$nvcc -arch="$arch" -o "$program" "$out/table_bench.o" "$out/rhh_cuda.o" "${shared[@]}" -lpthread
		echo "$arch" >"$out/arch"
	fi
fi
if [ -n "$only_build" ]; then echo "$program"; exit 0; fi

# ---------- run ----------

info=$("$program" --info) || die "no CUDA device can be used; nothing was measured"
if [ -z "$name" ]; then
	name=$(sed -n 's/^device: \([^,]*\),.*/\1/p' <<<"$info" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
fi
mkdir -p "$dir"
prefix=$dir/$(date +%Y-%m-%d)-$name

gpu_now()
{
	nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw,power.limit \
		--format=csv 2>/dev/null || echo "nvidia-smi is not here"
}
{
	date -u '+%Y-%m-%d %H:%M:%S UTC'
	echo "gpurhh, $(describe_commit)"
	echo "command: bench/table_bench.sh${simt:+ --simt} ${args[*]@Q}"
	echo "$(describe_host)"
	echo "$info"
	if [ -n "$simt" ]; then
		$compiler --version | head -1
	else
		$nvcc --version | sed -n '/release/p'
		echo "built for $arch"
		echo "before:"; gpu_now
	fi
} >"$prefix-run_info.txt"
sed 's/^/   /' "$prefix-run_info.txt"

step "measure; results go to $prefix-*"
status=0
"$program" --prefix "$prefix" ${args[@]+"${args[@]}"} 2>&1 | tee "$prefix-log.txt" || status=$?
if [ -z "$simt" ]; then { echo "after:"; gpu_now; } >>"$prefix-run_info.txt"; fi
if [ $status != 0 ]; then echo "ended with status $status" >>"$prefix-run_info.txt"; die "the program ended with status $status: see $prefix-log.txt"; fi
step "done: $prefix-*; draw them with bench/plot_tables.sh $prefix"
