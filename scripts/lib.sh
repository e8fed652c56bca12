# lib.sh: what the scripts share.  Sourced, never run.
#
# A script that sources this gets strict mode, the repository in $ROOT as its
# working directory, and a clean-up at exit, Ctrl-C included: clusters are
# stopped and temporary directories deleted, whatever happened.
#
#	step TEXT …			a progress line
#	check_place			ends what cannot work here (setup.sh, before it installs)
#	find_postgres		PG_CONFIG, PGBIN, PGMAJOR of the PostgreSQL to use
#	build [ARG …]		make, quietly, with the log shown when it fails
#	install_extension	make install, unless what is installed is what was built
#	set_up_and_install [ARG …]	all of that: setup.sh ARG …, find_postgres, build,
#						install_extension
#	usage				prints the head of the script, and ends it
#	find_nvcc			the nvcc to use in $nvcc, or nothing
#	has_gpu				is there an NVIDIA GPU that its driver sees?
#	describe_commit, describe_host		a line each for the head of measurements
#	new_tmpdir VAR		a directory of the ordinary user's, deleted at exit
#	as_user CMD …		as an ordinary user: PostgreSQL refuses to run as root
#	cluster_start VAR [CONF-LINE …]		a throw-away cluster, its directory in
#						VAR, found by PGHOST, PGPORT, PGUSER and PGDATABASE
#	cluster_stop DIR
#	settle				has the server and the system write what they have to, before something
#						is timed
#	cluster_keep DIR [CONF-LINE …]		a cluster in DIR that stays up: made if there is
#						none yet, started unless it runs with what is installed

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# What somebody set up for psql and another server is not for these clusters.
unset PGDATA PGHOSTADDR PGOPTIONS PGSERVICE PGSERVICEFILE PGSSLMODE PGPASSFILE PGAPPNAME \
	PGCLIENTENCODING PGDATESTYLE PGTZ PGTARGETSESSIONATTRS PGREQUIREAUTH
export LC_ALL=C

# Container runtimes put NVIDIA's driver where ld.so does not look.
for d in /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do
	if [ -e $d/libcuda.so.1 ]; then
		export LD_LIBRARY_PATH=$d${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
		break
	fi
done

START=$SECONDS
step() { printf '== [%3ds] %s\n' $((SECONDS - START)) "$*"; }
note() { printf '   %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# The comment that a script begins with tells its options.
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }

# The nvcc that was asked for, that of the last build, one in PATH, or the toolkit's.
find_nvcc()
{
	for nvcc in "${NVCC:-}" "$(cat .build-nvcc 2>/dev/null || true)" nvcc /usr/local/cuda/bin/nvcc ''; do
		if [ -n "$nvcc" ] && command -v "$nvcc" >/dev/null; then break; fi
	done
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }

describe_commit() { echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes')"; }
describe_host() { echo "host: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), Linux $(uname -r)"; }

# settle: has the server, which sql, the caller's function, asks, and the system write what they have to: else that is timed, too
settle()
{
	sql -c "CHECKPOINT"
	sync
}

# describe_server: comments of a benchmark's CSV, about the server that sql, the caller's function, asks
describe_server()
{
	echo "# gpurhh $(sql -c 'SELECT gpurhh_version()'), $(describe_commit)"
	echo "# $(sql -c 'SELECT version()')"
	echo "# $(describe_host)"
	sql -c "SELECT '# device: ' || concat_ws(', ', device, kind, name, pg_size_pretty(total_bytes), state) FROM gpurhh_devices()"
	sql -c "LOAD 'gpurhh'" -c "SELECT '# ' || name || ' = ' || current_setting(name) FROM pg_settings
		WHERE name LIKE 'gpurhh.%' OR name IN ('shared_buffers', 'max_parallel_workers_per_gather') ORDER BY 1"
}

# timed_runs HEAD: of what psql has printed with \timing, a line HEAD,run,ms,answer for each run but the first
timed_runs()
{
	awk -v head="$1" '/^Time: / { if (n > 0) printf "%s,%d,%s,%s\n", head, n, $2, answer; n++; next }
		{ answer = $0; gsub(/,/, ";", answer) }'
}

# check NAME COMMAND …: one thing that passes or fails, counted in $passed and
# $failed; of what failed it shows the end of $check_log, if that is set.
check_log=
check()
{
	local name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $name"
		if [ -n "$check_log" ]; then tail -20 "$check_log"; fi
	fi
}

# read_counts LOG STATUS: of a program that wrote LOG and ended with STATUS, and that
# says "N passed, N failed" last, gives $run_passed and $run_failed.  Saying
# nothing, or another exit status than 0, is a failure too.
read_counts()
{
	local counts

	# make may have something to say after it
	counts=$(tail -20 "$1" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' | tail -1)
	read -r run_passed run_failed <<<"${counts:-0 1}"
	if [ "$2" != 0 ] && [ "$run_failed" = 0 ]; then run_failed=1; fi
}

# run_counting LOG COMMAND …: runs such a program, and shows the end of what failed.
run_counting()
{
	local log=$1 status=0
	shift
	"$@" >"$log" 2>&1 || status=$?
	read_counts "$log" $status
	if [ "$run_failed" != 0 ]; then tail -40 "$log"; note "exit status $status"; fi
}

# ---------- clean-up ----------

CLUSTERS=()
TMPDIRS=()
JOBS=()							# in the background, with what they have started

# Ends a process, and then what it has started: else it would go on with what comes next.
kill_tree()
{
	local child children

	children=$(pgrep -P "$1" || true)
	kill "$1" >/dev/null 2>&1 || true
	for child in $children; do kill_tree "$child"; done
}

clean_up()
{
	local status=$? d

	trap - EXIT
	trap '' INT TERM HUP
	for d in ${JOBS[@]+"${JOBS[@]}"}; do kill_tree "$d"; done
	if [ ${#JOBS[@]} -gt 0 ]; then wait; fi
	for d in ${CLUSTERS[@]+"${CLUSTERS[@]}"}; do
		pg_ctl -D "$d" -m immediate -w stop >/dev/null 2>&1 || true
	done
	for d in ${TMPDIRS[@]+"${TMPDIRS[@]}"}; do
		rm -rf "$d"
	done
	exit $status
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ---------- PostgreSQL and the user it runs as ----------

# With PG_CONFIG unset: the newest PostgreSQL in Debian's place, 15 or later, that
# has a server and what an extension is built with, else the pg_config in PATH.
find_postgres()
{
	local c

	if [ -z "${PG_CONFIG:-}" ]; then
		for c in $(ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | awk -F/ '$5 >= 15' | sort -t/ -k5 -rn) pg_config; do
			if [ -z "$(lacks "$c")" ]; then
				PG_CONFIG=$c
				break
			fi
		done
	fi
	[ -z "$(lacks "${PG_CONFIG:=pg_config}")" ] || return 1
	PGBIN=$("$PG_CONFIG" --bindir)
	PGMAJOR=$("$PG_CONFIG" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
	export PG_CONFIG PGBIN PGMAJOR
}

# Prints what the PostgreSQL of a pg_config lacks: "pg_config" (there is no such
# program, or it does not work), "server", or "headers".  Debian has PGXS in the
# client's package and the headers in another, so PGXS alone proves nothing.
lacks()
{
	local bin pgxs include

	if ! bin=$("$1" --bindir 2>/dev/null) || [ -z "$bin" ] || ! pgxs=$("$1" --pgxs 2>/dev/null) ||
		! include=$("$1" --includedir-server 2>/dev/null); then
		echo pg_config
	elif [ ! -x "$bin/postgres" ]; then
		echo server
	elif [ ! -e "$pgxs" ] || [ ! -e "$include/postgres.h" ]; then
		echo headers
	fi
}

# The version in whose directory of Debian's a pg_config is or leads to; nothing
# if it belongs to a PostgreSQL of another kind.
debian_version()
{
	local bin

	bin=$("$1" --bindir 2>/dev/null) || bin=$(dirname "$1")
	sed -n 's,^/usr/lib/postgresql/\([0-9]*\)/bin$,\1,p' <<<"$bin"
}

# A PG_CONFIG that no package can mend, and a directory that cannot be written,
# are for whoever called to mend: nothing should be installed for them.
check_place()
{
	if [ -n "${PG_CONFIG:-}" ] && [ -z "$(debian_version "$PG_CONFIG")" ]; then
		case $(lacks "$PG_CONFIG") in
			pg_config) die "PG_CONFIG is \"$PG_CONFIG\", which is no program that works as pg_config does" ;;
			server) die "PG_CONFIG is \"$PG_CONFIG\", whose PostgreSQL has no server: there is no $("$PG_CONFIG" --bindir)/postgres" ;;
			headers) die "PG_CONFIG is \"$PG_CONFIG\", whose PostgreSQL has no server headers: there is no $("$PG_CONFIG" --includedir-server)/postgres.h, or no PGXS" ;;
		esac
	fi
	if [ ! -w . ] && [ ! -e gpurhh.so ]; then
		die "$ROOT cannot be written by $(id -un), and the extension is built in it: copy it to a place that can be"
	fi
}

if [ "$(id -u)" = 0 ]; then
	if id postgres >/dev/null 2>&1; then RUN_AS=postgres; else RUN_AS=nobody; fi
else
	RUN_AS=
fi

as_user()
{
	if [ -n "$RUN_AS" ]; then
		setpriv --reuid "$RUN_AS" --regid "$(id -g "$RUN_AS")" --init-groups \
			env HOME="${TMPDIRS[0]:-/tmp}" USER="$RUN_AS" LOGNAME="$RUN_AS" "$@"
	else
		"$@"
	fi
}

# Sockets must fit into 107 bytes, and the user must be able to get there.
new_tmpdir()
{
	local base_=${TMPDIR:-/tmp} dir_

	if [ ${#base_} -gt 40 ]; then base_=/tmp; fi
	dir_=$(mktemp -d "$base_/gpurhh.XXXXXX")
	if [ -n "$RUN_AS" ]; then chown "$RUN_AS" "$dir_"; fi
	TMPDIRS+=("$dir_")
	printf -v "$1" %s "$dir_"
}

# ---------- build and install ----------

build()
{
	local log status=0

	log=$(mktemp)
	make -j"$(nproc)" PG_CONFIG="$PG_CONFIG" ${WITH_CUDA:+WITH_CUDA="$WITH_CUDA"} \
		${CUDA_ARCHS:+CUDA_ARCHS="$CUDA_ARCHS"} ${WERROR:+WERROR=1} "$@" >"$log" 2>&1 || status=$?
	sed -n 's/^gpurhh: /   /p; s/^nvcc: /   nvcc: /p' "$log"
	if [ $status != 0 ]; then
		cat "$log"
		rm -f "$log"
		die "the build failed (make $*)"
	fi
	if grep -E 'warning:' "$log"; then :; fi
	rm -f "$log"
}

install_extension()
{
	local lib share f same=yes

	lib=$("$PG_CONFIG" --pkglibdir)
	share=$("$PG_CONFIG" --sharedir)/extension
	cmp -s gpurhh.so "$lib/gpurhh.so" || same=no
	# there where the CUDA device was built, and only there
	[ ! -e gpurhh_cuda.so ] && [ ! -e "$lib/gpurhh_cuda.so" ] ||
		cmp -s gpurhh_cuda.so "$lib/gpurhh_cuda.so" || same=no
	for f in gpurhh.control gpurhh--*.sql; do
		cmp -s "$f" "$share/$f" || same=no
	done
	if [ $same = yes ]; then
		note "already installed in $lib"
	elif [ -w "$lib" ] && [ -w "$share" ]; then
		build install
		note "installed in $lib"
	else
		echo "Installing into $lib needs its owner. Run this, then $(basename "$0" .sh) again:"
		echo
		echo "    sudo make -C $(printf %q "$ROOT") install PG_CONFIG=$(printf %q "$PG_CONFIG")${WITH_CUDA:+ WITH_CUDA=$WITH_CUDA}${CUDA_ARCHS:+ CUDA_ARCHS=\"$CUDA_ARCHS\"}${WERROR:+ WERROR=1}"
		echo
		exit 1
	fi
}

set_up_and_install()
{
	scripts/setup.sh "$@"
	find_postgres || die "PostgreSQL's server development files are missing"
	step "build and install for $("$PG_CONFIG" --version)"
	build
	install_extension
}

# ---------- clusters ----------

# From a directory that the ordinary user can be in.
pg_ctl() { (cd / && as_user "$PGBIN/pg_ctl" "$@"); }

# cluster_make DIR [CONF-LINE …]: makes one in a directory of the ordinary user's
cluster_make()
{
	local dir=$1 i
	shift

	(cd / && as_user "$PGBIN/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync \
		>"$dir/initdb.log" 2>&1) || { cat "$dir/initdb.log"; die "initdb failed"; }
	{
		# The socket's directory is this cluster's own, so that any port is free.
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$dir'"
		echo "port = 5432"
		echo "fsync = off"
		for i in "$@"; do echo "$i"; done
	} >>"$dir/data/postgresql.conf"
}

# cluster_run DIR: starts it, and leads psql to it
cluster_run()
{
	pg_ctl -D "$1/data" -l "$1/log" -w -t 120 start >/dev/null ||
		{ tail -30 "$1/log"; die "the cluster did not start"; }
}
cluster_use() { export PGHOST=$1 PGPORT=5432 PGUSER=postgres PGDATABASE=postgres; }

cluster_start()
{
	local var_=$1 dir
	shift

	new_tmpdir dir
	cluster_make "$dir" "$@"
	cluster_run "$dir"
	CLUSTERS+=("$dir/data")
	cluster_use "$dir"
	printf -v "$var_" %s "$dir"
}

cluster_keep()
{
	local dir=$1 lib
	shift

	if [ ! -e "$dir/data/PG_VERSION" ]; then
		mkdir -p "$dir"
		if [ -n "$RUN_AS" ]; then chown "$RUN_AS" "$dir"; fi
		cluster_make "$dir" "$@"
	fi
	lib=$("$PG_CONFIG" --pkglibdir)/gpurhh.so
	if pg_ctl -D "$dir/data" status >/dev/null && [ "$lib" -nt "$dir/data/postmaster.pid" ]; then
		pg_ctl -D "$dir/data" -m fast -w -t 300 stop >/dev/null
	fi
	pg_ctl -D "$dir/data" status >/dev/null || cluster_run "$dir"
	cluster_use "$dir"
}

cluster_stop()
{
	local d rest=()

	pg_ctl -D "$1/data" -m fast -w -t 120 stop >/dev/null
	for d in "${CLUSTERS[@]}"; do
		if [ "$d" != "$1/data" ]; then rest+=("$d"); fi
	done
	CLUSTERS=(${rest[@]+"${rest[@]}"})
	rm -rf "$1"
}
