#!/bin/bash
# plot_tables.sh PREFIX [OUT]: draws what bench/table_bench.sh measured.
#
# From PREFIX-timing.csv, PREFIX-bandwidth.csv and PREFIX-groupby.csv (those
# that are there) it makes, as .png and .svg, with gnuplot (Debian: gnuplot-nox)
#
#	OUT-timing		throughput against load factor, each table
#	OUT-bandwidth	operations/s against bytes of an operation, below the
#					ceilings that were measured
#	OUT-groupby		rows/s against groups, each method
#
# OUT is PREFIX unless given.  Points are medians of the repetitions.
set -euo pipefail

prefix=${1:?usage: plot_tables.sh PREFIX [OUT], PREFIX such as bench/results/2026-11-21-h100}
out=${2:-$prefix}
command -v gnuplot >/dev/null || { echo "plot_tables.sh: gnuplot is missing: apt-get install gnuplot-nox" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
drawn=

# medians KEY-COLUMNS X Y < CSV: "key x median" for each, in order of
# appearance; columns by their names, the key's joined by "|"
medians()
{
	awk -F, -v keys="$1" -v xname="$2" -v yname="$3" '
	function median(list, n,    v, i, j, x) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++) {
			x = v[i]
			for (j = i - 1; j > 0 && v[j] + 0 > x + 0; j--) v[j + 1] = v[j]
			v[j + 1] = x
		}
		return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
	}
	/^#/ { next }
	!n_columns { n_columns = NF; for (i = 1; i <= NF; i++) at[$i] = i; n_keys = split(keys, k, " "); next }
	{
		key = $at[k[1]]
		for (i = 2; i <= n_keys; i++) key = key "|" $at[k[i]]
		id = key " " $at[xname]
		if (!(id in values)) order[++n] = id
		values[id] = values[id] " " $at[yname]
	}
	END { for (i = 1; i <= n; i++) print order[i], median(values[order[i]]) }'
}

# curves MEDIANS PATTERN: gnuplot's plot arguments for the keys that match
# FIXED|…, titled by the key's first part
curves()
{
	awk -v fixed="$2" '{
		n = split($1, p, "|"); rest = p[2]
		for (i = 3; i <= n; i++) rest = rest "|" p[i]
		if (rest == fixed && !($1 in seen)) { seen[$1] = 1; key[++m] = $1; title[m] = p[1] }
	}
	END {
		for (i = 1; i <= m; i++) {
			gsub(/_/, " ", title[i])
			printf "%s\"< grep -F -- \\\"%s \\\" %s\" using 2:3 with linespoints lt %d pt %d title \"%s\"",
				(i > 1 ? ", " : ""), key[i], FILENAME, i, i, title[i]
		}
	}' "$1"
}

device() { sed -n '1s/^# device: //p' "$1"; }

# draw NAME WIDTH HEIGHT < commands: both formats
draw()
{
	local commands
	commands=$(cat)
	gnuplot <<-GNUPLOT
		set terminal pngcairo size $2,$3 noenhanced font "sans,10"
		set output "$out-$1.png"
		$commands
	GNUPLOT
	gnuplot <<-GNUPLOT
		set terminal svg size $2,$3 noenhanced font "sans,10" background rgb "white"
		set output "$out-$1.svg"
		$commands
	GNUPLOT
	echo "$out-$1.png $out-$1.svg"
}

# ---------- throughput against load factor ----------

if [ -e "$prefix-timing.csv" ]; then
	drawn=yes
	csv=$prefix-timing.csv
	# one block size: the default one, or the first there is
	block=$(awk -F, '!/^#/ && $7 ~ /^[0-9]+$/ { if ($7 == 256) { b = 256; exit } if (!b) b = $7 } END { print b }' "$csv")
	awk -F, -v b="$block" '/^#/ || $7 == "block_threads" || $7 == b' "$csv" | medians "table key_bytes op" load mops >"$work/timing"
	{
		echo "set multiplot layout 2,3 title \"$(device "$csv"): M operations/s against load (keys inserted / slots)\""
		echo "set grid; set yrange [0:*]; set xlabel 'load'; set key bottom left font ',8'"
		for bytes in 4 8; do
			for op in insert find_hit find_miss; do
				echo "set title '${op/_/ }, $bytes+$bytes bytes'"
				c=$(curves "$work/timing" "$bytes|$op")
				if [ -n "$c" ]; then echo "plot $c"; else echo "set multiplot next"; fi
			done
		done
		echo "unset multiplot"
	} | draw timing 1200 760
fi

# ---------- bytes against the ceilings ----------

if [ -e "$prefix-bandwidth.csv" ]; then
	drawn=yes
	csv=$prefix-bandwidth.csv
	awk -F, '!/^#/ && $1 != "ceiling" && $1 != "table" { print $1 "|" $2 "+" $2 "|" $3, $9, $8, $4 }' "$csv" >"$work/bandwidth"
	ceiling() { awk -F, -v n="$1" '$1 == "ceiling" && $3 == n { print $10 }' "$csv"; }
	rate() { awk -F, -v n="$1" '$1 == "ceiling" && $3 == n { print $8 }' "$csv"; }
	{
		echo "set title \"$(device "$csv"): operations/s against bytes of an operation; numbers are loads\""
		echo "set grid; set logscale xy; set xlabel 'bytes of an operation'; set ylabel 'M operations/s'"
		echo "set xrange [16:*]; set key outside right font ',8'; set samples 400"
		plot=
		i=0
		while read -r key; do
			i=$((i + 1))
			title=${key//|/ }
			plot+="${plot:+, }\"< grep -F -- \\\"$key \\\" $work/bandwidth\" using 2:3 with linespoints lt $i pt $i title \"${title//_/ }\""
			plot+=", \"< grep -F -- \\\"$key \\\" $work/bandwidth\" using 2:3:4 with labels offset 1,0.6 font ',7' notitle"
		done < <(awk '!seen[$1]++ { print $1 }' "$work/bandwidth")
		c=$(ceiling copy_kernel)
		if [ -n "$c" ]; then plot+="${plot:+, }$c * 1000 / x with lines lc black lw 2 title 'copy: $c GB/s'"; fi
		for n in read_32 read_64 read_128 cas_64 cas_128; do
			r=$(rate $n)
			if [ -n "$r" ]; then plot+=", $r with lines dt 2 lc rgb 'gray40' title '${n/_/ }: $r M/s'"; fi
		done
		echo "plot $plot"
	} | draw bandwidth 1100 600
fi

# ---------- group-by ----------

if [ -e "$prefix-groupby.csv" ]; then
	drawn=yes
	csv=$prefix-groupby.csv
	grep -v ^gpurhh_sum, "$csv" | medians "method key_bytes distribution" groups mrows_per_s >"$work/groupby"
	rows=$(awk -F, '!/^#/ && $6 ~ /^[0-9]+$/ { print $6 / 1e6; exit }' "$csv")
	{
		echo "set multiplot layout 2,2 title \"$(device "$csv"): GROUP BY of $rows million rows, sum and count: M rows/s against groups found\""
		echo "set grid; set logscale xy; set xlabel 'groups'; set format x '1e%L'; set key bottom left"
		for bytes in 4 8; do
			for distribution in uniform zipf; do
				echo "set title '$distribution, $bytes-byte keys'"
				c=$(curves "$work/groupby" "$bytes|$distribution")
				if [ -n "$c" ]; then echo "plot $c"; else echo "set multiplot next"; fi
			done
		done
		echo "unset multiplot"
	} | draw groupby 1100 760
fi

if [ -z "$drawn" ]; then echo "plot_tables.sh: no $prefix-timing.csv, -bandwidth.csv or -groupby.csv" >&2; exit 1; fi
