#!/bin/bash
# key_filter_bench.sh: what the filters of joins' build sides cost and gain.
#
#	--rows N		rows of the fact table (default 10000000); the dimension has a tenth
#	--reps N		rounds (default 5), in which the device without filters and the
#					device with them take turns
#	--out FILE		default bench/results/DATE-key-filter.csv
#	--running		use the server that PGHOST, PGPORT, … lead to, which has gpurhh
#					installed, instead of a throw-away cluster
#
# In each shape a condition on the dimension leaves 1, 10, 50 or 100 percent of its rows,
# so that as many rows of the fact table have a match.  "wrong" is a condition of which the
# planner thinks that it leaves few, and that leaves all.  Serial plans; the best
# runs and the medians in ms.
. "$(dirname "$0")/../scripts/lib.sh"

rows=10000000 reps=5 out= running=
while [ $# -gt 0 ]; do
	case $1 in
		--running) running=yes; shift ;;
		--rows | --reps | --out) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done
: "${out:=bench/results/$(date +%Y-%m-%d)-key-filter.csv}"
if [ -n "$running" ]; then
	psql=$(command -v psql)
else
	set_up_and_install
	cluster_start cluster "shared_preload_libraries = 'gpurhh'" "shared_buffers = 1GB" "autovacuum = off"
	psql=$PGBIN/psql
fi
sql() { PGOPTIONS="-c client_min_messages=warning -c jit=off -c work_mem=256MB -c max_parallel_workers_per_gather=0 -c search_path=gpurhh_filter" "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }
sql <<END
CREATE EXTENSION IF NOT EXISTS gpurhh SCHEMA public;
DROP SCHEMA IF EXISTS gpurhh_filter CASCADE;
CREATE SCHEMA gpurhh_filter;
CREATE TABLE f AS SELECT g AS id, g * 7919::bigint % ($rows / 10) AS k, 'customer no. ' || g * 7919::bigint % ($rows / 10) AS t, g % 1000 AS v FROM generate_series(1, $rows) g;
CREATE TABLE d AS SELECT g::bigint AS k, 'customer no. ' || g AS t, g % 10 AS g, g * 17 % 100 AS x FROM generate_series(0, $rows / 10 - 1) g;
CREATE FUNCTION yes(int) RETURNS bool LANGUAGE plpgsql IMMUTABLE COST 1 AS 'BEGIN RETURN \$1 >= 0; END';
VACUUM ANALYZE f, d;
CREATE FUNCTION once(query text, device bool, filter bool) RETURNS float8 LANGUAGE plpgsql AS \$\$
DECLARE begun timestamptz;
BEGIN
	PERFORM set_config('enable_gpu_hashagg', device::text, false), set_config('enable_gpu_hashjoin', device::text, false), set_config('gpurhh.enable_key_filter', filter::text, false);
	begun := clock_timestamp();
	EXECUTE format('SELECT count(*) FROM (%s OFFSET 0) q', query);
	RETURN extract(epoch FROM clock_timestamp() - begun) * 1000;
END \$\$;
CREATE FUNCTION times(query text, n int) RETURNS text LANGUAGE sql AS \$\$
	SELECT format('%s,%s,%s,%s', round(min(off)::numeric, 1), round(min(filter)::numeric, 1), round((percentile_cont(0.5) WITHIN GROUP (ORDER BY off))::numeric, 1), round((percentile_cont(0.5) WITHIN GROUP (ORDER BY filter))::numeric, 1))
	FROM (SELECT once(query, true, false) AS off, once(query, true, true) AS filter FROM generate_series(1, n) OFFSET 0) r
\$\$;
END
echo "# $(lscpu | sed -n 's/^Model name: *//p'), $(nproc) processors; $rows rows; $reps runs; serial plans" >"$out"
echo "shape,matches,best_off_ms,best_on_ms,off_ms,on_ms" >>"$out"
while IFS='|' read -r name query; do
	for part in '1|d.x < 1' '10|d.x < 10' '50|d.x < 50' '100|d.x < 100' 'wrong|yes(d.x) AND yes(d.g)'; do
		# once before it is measured: the service starts, and pages get into memory
		line=$(sql -c "LOAD 'gpurhh'; DO \$\$BEGIN PERFORM once(\$q\$${query/@/${part#*|}}\$q\$, true, true); END\$\$" \
			-c "SELECT times(\$q\$${query/@/${part#*|}}\$q\$, $reps)")
		echo "$name,${part%%|*},$line" | tee -a "$out"
	done
done <<'END'
sum|SELECT d.g, sum(f.v) FROM f JOIN d ON f.k = d.k WHERE @ GROUP BY d.g
sum-text|SELECT d.g, sum(f.v) FROM f JOIN d ON f.t = d.t WHERE @ GROUP BY d.g
sum-two-keys|SELECT d.g, sum(f.v) FROM f JOIN d ON f.k = d.k AND f.t = d.t WHERE @ GROUP BY d.g
semi|SELECT f.v, count(*) FROM f WHERE f.k IN (SELECT k FROM d WHERE @) GROUP BY f.v
rows|SELECT f.id, f.v, d.g FROM f JOIN d ON f.k = d.k WHERE @
END
