#!/bin/bash
# plot_workers.sh CSV [CASE] > FILE.svg: rows/s against participants.
#
# Reads a CSV of sql_bench.sh with modes gpurhh:N; each point is the median of
# its runs, and named after the stage that binds: "pool" times are the device's
# (its upload or its kernels, whichever took longer), else it is the feed.
set -euo pipefail
csv=${1:?usage: plot_workers.sh CSV [CASE]} case=${2:-sum}

awk -F, -v want="$case" '
function median(list, n,    v, i, j, x) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] + 0 > x + 0; j--) v[j + 1] = v[j]
		v[j + 1] = x
	}
	return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
}
/^# host: / { host = $0; sub(/^# host: /, "", host) }
/^# device: / && !/^# device: cpu/ { device = $0; sub(/^# device: /, "", device) }
/^# device: cpu/ && device == "" { device = "CPU device" }
/^#/ || $1 != want || $5 !~ /^gpurhh:/ { next }
{
	nw = substr($5, 8) + 0; g = $4; key = g " " nw; rows = $2
	if (!(g in groups_seen)) { groups_seen[g] = 1; group[++n_groups] = g }
	if (nw > max_w) max_w = nw
	if ($6 == "explain") {
		if ($9 > $8 / 2) bind[key] = $10 > $11 ? "upload" : "kernels"
		else if ($13 > $8) bind[key] = "emit"
		else bind[key] = "feed"
	} else
		ms[key] = ms[key] " " $7
	if (!((g, nw) in seen)) { seen[g, nw] = 1; workers[g] = workers[g] " " nw }
}
END {
	if (n_groups == 0) { print "no rows of mode gpurhh:N" > "/dev/stderr"; exit 1 }
	for (k in ms) {
		rate[k] = rows / median(ms[k]) / 1000
		if (rate[k] > top) top = rate[k]
	}
	W = 760; H = 440; L = 70; R = 150; T = 40; B = 60
	step = 10 ^ int(log(top) / log(10)); while (top / step < 4) step /= 2
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n", W, H
	printf "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
	printf "<text x=\"%d\" y=\"18\" font-size=\"14\">%d million rows, SELECT k, sum(v) ... GROUP BY k: million rows/s against participants</text>\n", L, rows / 1e6
	printf "<text x=\"%d\" y=\"34\" fill=\"#555\">%s; %s</text>\n", L, device, host
	for (y = 0; y <= top * 1.05; y += step) {
		py = H - B - y / (top * 1.05) * (H - T - B)
		printf "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", L, py, W - R, py, L - 6, py + 4, y
	}
	split("#1f77b4 #d62728 #2ca02c #9467bd #ff7f0e #8c564b", colour, " ")
	for (i = 1; i <= n_groups; i++) {
		g = group[i]; n = split(workers[g], w, " "); points = ""
		for (j = 1; j <= n; j++) {
			px = L + (w[j] + 1) / (max_w + 1) * (W - L - R)
			py = H - B - rate[g " " w[j]] / (top * 1.05) * (H - T - B)
			points = points sprintf(" %.1f,%.1f", px, py)
			printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/><text x=\"%.1f\" y=\"%.1f\" font-size=\"9\" fill=\"%s\" text-anchor=\"middle\">%s</text>\n", px, py, colour[i], px, py - 6, colour[i], bind[g " " w[j]]
			if (i == 1)
				printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", px, H - B + 18, w[j] + 1
		}
		printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\"/>\n", points, colour[i]
		printf "<text x=\"%d\" y=\"%d\" fill=\"%s\">%d groups</text>\n", W - R + 10, T + 20 * i, colour[i], g
	}
	printf "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">participants (leader and workers); at each point the stage that binds</text>\n</svg>\n", (L + W - R) / 2, H - 15
}' "$csv"
