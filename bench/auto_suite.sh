#!/bin/bash
# auto_suite.sh: what turning the node on costs or gains with the defaults of everything
# else, over many shapes of queries and sizes of tables.
#
#	--suite NAME	groupings (the default), joins, tpch (--rows are those of lineitem), or
#					planning: bench/suites/NAME.sh
#	--rows "LIST"	tables' sizes (default "1000 10000 100000 1000000 10000000",
#					planning: "1000 1000000")
#	--quick			up to 1,000,000 rows, three pairs of runs
#	--shapes REGEX	only those whose name matches
#	--reps N		timed pairs of runs (default 5; more for short queries, one for
#					those that take core more than 3 s)
#	--no-agg		without the third runs, those of enable_gpu_hashagg alone
#	--limit RATIO	slower than core by more than this is a failure (default 1.10,
#					planning: 1.05)
#	--device D		gpurhh.device (default auto)
#	--force			with gpurhh's costs at 0, so that the node is used wherever it can
#					be: what the defaults leave lying, and where they must
#	--logged		tables are logged, so that a device with a cache keeps their pages (default: they
#					are not)
#	--out FILE		default bench/results/DATE-auto-SUITE.csv
#	--running		use the server that PGHOST, PGPORT, … lead to, which has
#					gpurhh installed, instead of a throw-away cluster
#
# First the answers off and on are compared, as multisets of rows.  Then each query runs
# off and on in turn, in one session, planned anew each time, its rows consumed by an
# outer aggregate in the server, or by the table that it fills; the ratio is that of the
# medians, on to off.  On is enable_gpu_hashagg and enable_gpu_hashjoin; where that makes
# the device join, there is a third run each time with enable_gpu_hashagg alone
# (agg_ms).  One run each way warms up; where there is one pair, those for the answers do.
#
# Where the planner leaves a query to core both plans are one and the ratio is that of
# planning and of noise; it is taken up to 100,000 rows and is 1 by definition above
# ("same plan").  A failure is an answer that differs, or a ratio above the limit of a
# query that has a node, if the ratio of the best runs and measuring it again with
# twice the runs say so too, and if it is more than 0.2 ms.
#
# The suite "planning" measures the planner's time alone, of all queries, and a failure
# has to be more than 0.05 ms.
#
# The device service is running; starting it is not measured.
. "$(dirname "$0")/../scripts/lib.sh"

suite=groupings sizes= shapes=. reps= limit= device=auto out= running= force= quick= logged= no_agg=
while [ $# -gt 0 ]; do
	case $1 in
		--running | --force | --quick | --logged | --no-agg) name=${1#--}; declare "${name//-/_}=yes"; shift; continue ;;
		--rows) [ $# -ge 2 ] || die "$1 needs a value"; sizes=$2; shift 2 ;;
		--suite | --shapes | --reps | --limit | --device | --out)
			[ $# -ge 2 ] || die "$1 needs a value"
			declare "${1#--}=$2"; shift 2 ;;
		*) usage ;;
	esac
done
[ -e "bench/suites/$suite.sh" ] || die "there is no suite \"$suite\""
if [ "$suite" = planning ]; then
	: "${sizes:=1000 1000000}" "${limit:=1.05}"
	least_ms=0.05 most_pairs=400 enough_ms=1000 same_up_to=1e9
else
	: "${limit:=1.10}"
	least_ms=0.2 most_pairs=60 enough_ms=200 same_up_to=100000
fi
if [ -n "$quick" ]; then : "${sizes:=1000 10000 100000 1000000}" "${reps:=3}"; fi
: "${sizes:=1000 10000 100000 1000000 10000000}" "${reps:=5}"

persistence=UNLOGGED
[ -z "$logged" ] || persistence=
# Defines $list, the shapes as "name|query" or "name|settings; query", and make_tables N.
. "bench/suites/$suite.sh"

if [ -n "$running" ]; then
	psql=$(command -v psql || echo "${PGBIN:-}/psql")
else
	set_up_and_install
	ram_mb=$(awk '/MemTotal/ { printf "%d", $2 / 1024 }' /proc/meminfo)
	step "start a throw-away cluster"
	cluster_start cluster "shared_preload_libraries = 'gpurhh'" "shared_buffers = $((ram_mb / 4))MB" \
		"wal_level = minimal" "max_wal_senders = 0" "max_wal_size = 20GB" "autovacuum = off"
	psql=$PGBIN/psql
fi
free=
if [ -n "$force" ]; then free="-c gpurhh.setup_cost=0 -c gpurhh.row_cost=0 -c gpurhh.group_cost=0"; fi
sql() { PGOPTIONS="-c client_min_messages=warning -c jit=off -c work_mem=64MB -c search_path=gpurhh_auto -c gpurhh.device=$device $free" "$psql" -XqAt -v ON_ERROR_STOP=1 "$@"; }
sql -c "CREATE EXTENSION IF NOT EXISTS gpurhh SCHEMA public" -c "DROP SCHEMA IF EXISTS gpurhh_auto CASCADE" -c "CREATE SCHEMA gpurhh_auto" ||
	die "cannot reach a server with gpurhh installed"
new_tmpdir work

# A side is "off", "agg" or "on".  pairs() returns "plan|joins|off_ms|agg_ms|on_ms|best",
# the medians of n runs of each, and the ratio of the best ones; no times where a query
# that is core's is not to be timed.
sql <<'END'
CREATE FUNCTION set_side(side text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('enable_gpu_hashagg', (side <> 'off')::text, false);
	PERFORM set_config('enable_gpu_hashjoin', (side = 'on')::text, false);
END $$;

-- How many joins the device does; NULL: there is no node.
CREATE FUNCTION device_joins(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE line text; joins int;
BEGIN
	PERFORM set_side('on');
	FOR line IN EXECUTE CASE WHEN query ~ '^EXPLAIN' THEN '' ELSE 'EXPLAIN ' END || query LOOP
		joins := CASE WHEN line ~ 'GpuHash(Agg|Join)' THEN coalesce(joins, 0)
			ELSE joins + coalesce(substring(line FROM 'Device Joins: (\d+)')::int, 0) END;
	END LOOP;
	RETURN joins;
END $$;

-- The table that a query makes, or fills, instead of returning rows; or NULL.
CREATE FUNCTION made_by(query text) RETURNS text LANGUAGE sql AS $$
	SELECT substring(query FROM '^(?:CREATE TABLE|INSERT INTO) (\w+)')
$$;

CREATE FUNCTION undo(made text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF made = 'made' THEN
		DROP TABLE made;
	ELSIF made = 'target' THEN
		TRUNCATE target;
	END IF;
END $$;

-- All rows in any order; floats are added up in any order, too.
CREATE FUNCTION answer(query text, side text) RETURNS text LANGUAGE plpgsql
SET extra_float_digits = -6 AS $$
DECLARE result text; made text := made_by(query);
BEGIN
	PERFORM set_side(side);
	IF made IS NOT NULL THEN
		EXECUTE query;
		query := 'SELECT * FROM ' || made;
	END IF;
	EXECUTE format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended(q::text, 0)), 0) FROM (%s) q', query) INTO result;
	PERFORM undo(made);
	RETURN result;
END $$;

-- Milliseconds to plan what is explained, or else to run it.
CREATE FUNCTION once(query text, side text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE line text; begun timestamptz; ms float8;
BEGIN
	PERFORM set_side(side);
	IF query ~ '^EXPLAIN' THEN
		FOR line IN EXECUTE query LOOP
			IF line ~ '^Planning Time' THEN
				RETURN substring(line FROM '[\d.]+')::float8;
			END IF;
		END LOOP;
	END IF;
	begun := clock_timestamp();
	EXECUTE CASE WHEN made_by(query) IS NULL THEN format('SELECT count(q) FROM (%s) q', query) ELSE query END;
	ms := extract(epoch FROM clock_timestamp() - begun) * 1000;
	PERFORM undo(made_by(query));
	RETURN ms;
END $$;

CREATE FUNCTION median(ms float8[]) RETURNS text LANGUAGE sql AS $$
	SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY x)::numeric, 3)::text FROM unnest(ms) x
$$;

CREATE FUNCTION pairs(query text, n int, most int, enough_ms float8, same_too bool, agg_too bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	joins int := device_joins(query);
	first float8;
	off_ms float8[];
	agg_ms float8[];
	on_ms float8[];
BEGIN
	IF joins IS NULL AND NOT same_too THEN
		RETURN 'core|0||||1';
	END IF;
	IF query !~ '^EXPLAIN' AND answer(query, 'on') <> answer(query, 'off') THEN
		RAISE EXCEPTION 'the answers differ: % and %', answer(query, 'on'), answer(query, 'off');
	END IF;
	first := once(query, 'off');
	n := greatest(n, least(most, (enough_ms / first)::int));
	IF first > 3000 THEN
		n := 1;
	END IF;
	IF n = 1 THEN
		off_ms := ARRAY[first];
	ELSE
		PERFORM once(query, 'on');
	END IF;
	FOR i IN 1 .. n LOOP
		IF n > 1 THEN
			off_ms := off_ms || once(query, 'off');
		END IF;
		on_ms := on_ms || once(query, 'on');
		IF joins > 0 AND agg_too THEN
			agg_ms := agg_ms || once(query, 'agg');
		END IF;
	END LOOP;
	RETURN format('%s|%s|%s|%s|%s|%s', CASE WHEN joins IS NULL THEN 'core' ELSE 'gpurhh' END, coalesce(joins, 0),
		median(off_ms), median(agg_ms), median(on_ms),
		(SELECT round((min(r.a) / min(r.b))::numeric, 3) FROM unnest(on_ms, off_ms) AS r(a, b)));
END $$;
END

if [ -z "$out" ]; then out=bench/results/$(date +%Y-%m-%d)-auto-$suite.csv; fi
mkdir -p "$(dirname "$out")"
{
	echo "# gpurhh $(sql -c 'SELECT public.gpurhh_version()'), $(describe_commit)"
	echo "# $(sql -c 'SELECT version()')"
	echo "# $(describe_host)"
	sql -c "SELECT '# ' || name || ' = ' || current_setting(name) FROM pg_settings
		WHERE name ~ '^gpurhh.(device|.*cost)$' OR name IN ('work_mem', 'shared_buffers', 'max_parallel_workers_per_gather') ORDER BY 1"
	echo "# command: bench/auto_suite.sh --suite $suite --rows \"$sizes\" --shapes '$shapes' --reps $reps --limit $limit --device $device${force:+ --force}${logged:+ --logged}${no_agg:+ --no-agg}${running:+ --running}"
	echo "# medians in ms; agg: without enable_gpu_hashjoin; ratio: on / off; best: that of the best runs"
	echo "shape,rows,plan,joins,off_ms,agg_ms,on_ms,ratio,best"
} >"$out"

worse=0 wrong=0 measured=0 used=0
for n in $sizes; do
	n=$(printf %.0f "$n")
	step "tables of $n rows"
	make_tables "$n" >/dev/null

	while IFS='|' read -r name query; do
		[[ $name =~ $shapes ]] || continue
		settings=
		if [[ $query == *';'* ]]; then settings=${query%;*} query=${query##*; }; fi
		# what is set and updated is undone when the session ends
		pairs()
		{
			IFS='|' read -r plan joins off agg on best < <(sql -c "BEGIN" -c "$settings" \
				-c "SELECT pairs(\$q\$$query\$q\$, $1, $most_pairs, $enough_ms, $(awk -v n="$n" -v m=$same_up_to 'BEGIN { print n <= m ? "true" : "false" }'), $([ -n "$no_agg" ] && echo false || echo true))")
		}
		above()
		{
			awk -v o="$off" -v g="$on" -v b="$best" -v l="$limit" -v d=$least_ms 'BEGIN { exit !(g > o * l && b > l && g - o > d) }' &&
				{ [ "$plan" = gpurhh ] || [ "$suite" = planning ]; }
		}
		measured=$((measured + 1)) mark=
		if ! pairs "$reps"; then
			wrong=$((wrong + 1))
			echo "$name,$n,wrong,,,,,," >>"$out"
			printf '%-20s %9d  WRONG\n' "$name" "$n"
			continue
		fi
		if above; then pairs $((reps * 2)); fi
		if [ "$plan" = gpurhh ]; then used=$((used + 1)); fi
		if above; then worse=$((worse + 1)) mark='<- slower'; fi
		ratio=$(awk -v o="$off" -v g="$on" 'BEGIN { if (o == "") print "1"; else printf "%.3f", g / o }')
		echo "$name,$n,$plan,$joins,$off,$agg,$on,$ratio,$best" >>"$out"
		printf '%-20s %9d  %-6s %s %10s %10s %10s  %6s %s\n' "$name" "$n" "$plan" "$joins" "${off:-same plan}" "$agg" "$on" "$ratio" "$mark"
	done <<<"$list"
done
sql -c "DROP SCHEMA gpurhh_auto CASCADE"
echo
echo "$measured measured, $used with a node, $wrong with another answer, $worse slower than core by more than $limit; in $out"
if [ -z "$running" ]; then cluster_stop "$cluster"; fi
[ "$worse" = 0 ] && [ "$wrong" = 0 ]
