#!/bin/bash
# machines.sh [--quick] [NAME …]: "make demo" and "make check" on the
# machines that newcomers have.
#
# By hand and before a release, as root, with mmdebstrap and a way to Debian's
# archive; each of these is a fresh Debian 12 of its own, in a directory:
#
#	bare			nothing but make; "make check" runs all there is
#	plain			"apt-get install postgresql", whose server runs on port 5432
#	other-headers	the same, and an old release's server headers
#	no-root			the same, by an ordinary user, who is told what to run
#	ci				compilers and a server, and no headers: what .ci/run sets up
#
# Anywhere, root or not, in copies of a checkout that is built and installed;
# with --quick, as .ci/run calls it, only these:
#
#	space			a path with spaces
#	client			PGHOST and others set for psql and another server
#	port			a server on port 5432
#	locale			another locale, of another encoding where there is one
#	shm				/dev/shm of 64 MB, as containers have it (root only)
#	pg-config		a PG_CONFIG that is wrong
#	read-only		a checkout that cannot be written
#	compiler		no C++ compiler, and a part whose build fails
#	installcheck	"make installcheck" as root and not, on clusters of SQL_ASCII
#					and LATIN1
#
# CHECK is what "make check" runs on the bare machine (default: all).  Ends with
# "N passed, N failed".
#
# Nothing is mounted outside of a mount namespace, and no process started outside
# of a process namespace: both go with the command that made them, so the
# directories can be deleted at any time.
. "$(dirname "$0")/../scripts/lib.sh"

quick= wanted=" "
for a in "$@"; do
	case $a in
		--quick) quick=yes ;;
		-*) usage ;;
		*) wanted+="$a " ;;
	esac
done

# As the build was, in CI: other flags would build all anew in each copy.
if [ "${CI:-}" = true ]; then export WERROR=1; fi

passed=0 failed=0
new_tmpdir work
chmod 755 "$work"
out=$work/out

machine() # NAME: is it wanted?
{
	[[ $wanted == " " || $wanted == *" $1 "* ]] || return 1
	step "$1"
}

# expect WHAT STATUS REGEX COMMAND …: the command exits with STATUS (0, or 1 for
# any other), and prints a line that matches (any or none, if REGEX is empty); its
# output stays in $out.
expect()
{
	local what=$1 status=$2 regex=$3 rc=0
	shift 3
	"$@" </dev/null >"$out" 2>&1 || rc=$?
	if [ $((rc != 0)) = "$status" ] && { [ -z "$regex" ] || grep -qE -- "$regex" "$out"; }; then
		# with the number of tests, where it is make check that passed
		note "ok: $what$(sed -n '$s/^[0-9]* passed, 0 failed$/ (&)/p' "$out")"
		passed=$((passed + 1))
	else
		tail -40 "$out"
		note "FAILED: $what (exit status $rc)"
		failed=$((failed + 1))
	fi
}

# also WHAT REGEX, never WHAT REGEX: a line of what the last command printed
# matches, or none does
also() { expect_lines yes "$@"; }
never() { expect_lines no "$@"; }
expect_lines()
{
	local found=no
	if grep -E -- "$3" "$out" >"$work/lines"; then found=yes; fi
	if [ $found = "$1" ]; then
		note "ok: $2"
		passed=$((passed + 1))
	else
		cat "$work/lines"
		note "FAILED: $2"
		failed=$((failed + 1))
	fi
}

# The smallest demonstration in which the planner chooses the node everywhere,
# and a check that goes through all of check.sh but takes no time.
DEMO="make demo DEMO_ROWS=1000000"
CHECK_SOME="make check CHECK='regress tap' REGRESS_TESTS='functions agg_keys text_keys' PROVE_TESTS=t/009_no_driver.pl"
DEMO_OK='answers equal'
CHECK_OK='^[1-9][0-9]* passed, 0 failed$'

# copy_source DIR: what a clone would have
copy_source()
{
	mkdir -p "$1"
	if git -c safe.directory='*' rev-parse HEAD >/dev/null 2>&1; then
		git -c safe.directory='*' ls-files -z -co --exclude-standard |
			while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
			tar -c --null -T - | tar -x -C "$1" --no-same-owner
	else
		tar -c --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude='*.d' --exclude='./.build-*' . |
			tar -x -C "$1" --no-same-owner
	fi
}

# ---------- fresh machines ----------

fresh_possible=yes
if [ -n "$quick" ] || [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null ||
	! unshare --mount --pid --fork true 2>/dev/null; then
	fresh_possible=
fi

# make_machine NAME: its root in $root, with this source in /src
make_machine()
{
	local apt=()

	# This machine's way to the archive.
	if [ ! -e "$work/bookworm.tar" ]; then
		note "a Debian 12"
		apt-config dump Acquire::http::Proxy | grep . >"$work/apt.conf" || true
		if [ -s "$work/apt.conf" ]; then apt=(--aptopt="$work/apt.conf"); fi
		if ! mmdebstrap --quiet --variant=minbase --include=make "${apt[@]}" bookworm "$work/bookworm.tar" ${MIRROR:+"$MIRROR"} >"$out" 2>&1; then
			cat "$out"
			die "mmdebstrap failed (MIRROR names another archive)"
		fi
	fi
	root=$work/$1
	mkdir "$root"
	tar -x -C "$root" -f "$work/bookworm.tar"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	copy_source "$root/src"
	chmod 755 "$root"
}

# in_machine COMMAND: by bash in $root's /src, as root, with /dev/shm of $shm; the
# shell outside of the chroot is the process namespace's first process, which
# reaps what daemons leave.
shm=50%
in_machine()
{
	unshare --mount --pid --fork --kill-child --propagation private bash -c '
		mount -t proc proc "$1/proc" && mount -t tmpfs -o "mode=1777,size=$2" tmpfs "$1/dev/shm" || exit 99
		chroot "$1" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LANG=C.UTF-8 CI= ${WITH_CUDA:+WITH_CUDA="$WITH_CUDA"} bash -c "cd /src && $3"
		exit $?' - "$root" "$shm" "$1"
}
end_machine()
{
	rm -rf --one-file-system "$root"
}

apt_get="apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -q -y"

if [ -n "$fresh_possible" ]; then
	if machine bare; then
		make_machine bare
		expect "make demo" 0 "$DEMO_OK" in_machine "$DEMO"
		expect "make check" 0 "$CHECK_OK" in_machine "make check${CHECK:+ CHECK='$CHECK'}"
		never "nothing was left out" 'left out: (there|prove|this)'
		shm=64m
		expect "make demo, /dev/shm of 64 MB" 0 "$DEMO_OK" in_machine "$DEMO"
		shm=50%
		# capitals of i that C has not, and bytes that UTF8 has not
		in_machine "$apt_get --no-install-recommends locales && localedef -i tr_TR -f ISO-8859-9 tr_TR.ISO-8859-9" >"$out" 2>&1 ||
			{ cat "$out"; die "apt-get install locales failed"; }
		expect "make demo, in Turkish" 0 "$DEMO_OK" in_machine "env LANG=tr_TR.ISO-8859-9 LC_ALL=tr_TR.ISO-8859-9 $DEMO"
		expect "some of make check, in Turkish" 0 "$CHECK_OK" in_machine "env LANG=tr_TR.ISO-8859-9 LC_ALL=tr_TR.ISO-8859-9 $CHECK_SOME"
		end_machine
	fi
	if machine plain; then
		make_machine plain
		in_machine "$apt_get postgresql" >"$out" 2>&1 || { cat "$out"; die "apt-get install postgresql failed"; }
		expect "make demo beside the server on port 5432" 0 "$DEMO_OK" \
			in_machine "pg_ctlcluster 15 main start; $DEMO"
		expect "some of make check" 0 "$CHECK_OK" in_machine "pg_ctlcluster 15 main start; $CHECK_SOME"
		expect "make installcheck as root, in Debian's own cluster" 0 'All [0-9]+ tests passed|# All [0-9]+ tests passed' \
			in_machine "pg_ctlcluster 15 main start; make installcheck REGRESS='functions agg_keys'"
		end_machine
	fi
	# Debian 11's headers, as an upgrade leaves them, without Debian 11's server
	if machine other-headers; then
		make_machine other-headers
		in_machine "$apt_get postgresql && cd /tmp &&
			sed 's/bookworm/bullseye/' /etc/apt/sources.list | head -1 >/etc/apt/sources.list.d/old.list &&
			apt-get update -q && apt-get download -q postgresql-client-13 postgresql-server-dev-13 &&
			for p in *.deb; do dpkg -x \$p /; done && rm /etc/apt/sources.list.d/old.list && apt-get update -q &&
			[ -e /usr/include/postgresql/13/server/postgres.h ]" >"$out" 2>&1 || { cat "$out"; die "Debian 11's packages could not be had"; }
		expect "make demo" 0 "$DEMO_OK" in_machine "$DEMO"
		end_machine
	fi
	if machine no-root; then
		make_machine no-root
		in_machine "$apt_get postgresql && useradd -m newcomer && chown -R newcomer /src" >"$out" 2>&1 || { cat "$out"; die "apt-get install postgresql failed"; }
		by_user="setpriv --reuid newcomer --regid newcomer --clear-groups env HOME=/home/newcomer USER=newcomer LOGNAME=newcomer"
		# runs what was printed, as sudo would
		printed() { sed -n 's/^    sudo /sudo /p' "$out" | sed 's/\bsudo //g'; }
		expect "make demo says what to install" 1 '^    sudo apt-get update && sudo apt-get install -y .*postgresql-server-dev-15' in_machine "$by_user $DEMO"
		never "and nothing of what is there" 'install -y.* postgresql-15'
		expect "that can be run" 0 '' in_machine "DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; $(printed)"
		expect "make demo says how to install the extension" 1 '^    sudo make -C /src install' in_machine "$by_user $DEMO"
		expect "that can be run" 0 '' in_machine "$(printed)"
		expect "make demo" 0 "$DEMO_OK" in_machine "$by_user $DEMO"
		expect "some of make check, what is missing left out" 0 "$CHECK_OK" in_machine "$by_user $CHECK_SOME"
		end_machine
	fi
	if machine ci; then
		make_machine ci
		in_machine "$apt_get gcc g++ postgresql" >"$out" 2>&1 || { cat "$out"; die "apt-get install postgresql failed"; }
		expect "setup.sh --ci installs what is missing" 0 'installing .*postgresql-server-dev-15.*clang' in_machine "scripts/setup.sh --ci"
		expect "nothing is missing then" 0 '' in_machine "scripts/setup.sh --ci"
		never "and nothing said" .
		expect "make format-check" 0 '' in_machine "make format-check"
		expect "a build by clang" 0 '' in_machine "make CC=clang WITH_CUDA=no WERROR=1"
		expect "CI=true make check lacks nothing" 0 "$CHECK_OK" in_machine "CI=true ${CHECK_SOME/regress tap/simt regress tap}"
		end_machine
	fi
elif [ -z "$quick" ]; then
	note "left out: bare, plain, other-headers, no-root, ci (they need root, mmdebstrap and namespaces)"
fi

# ---------- circumstances ----------

# copy_tree DIR: this checkout as it is built, the ordinary user's
copy_tree()
{
	mkdir -p "$1"
	tar -c --exclude=./.git --exclude=./tmp_check --exclude=./test/device_test_* --exclude=./bench/results . | tar -x -C "$1"
	if [ -n "$RUN_AS" ]; then chown -R "$RUN_AS" "$1"; fi
}
# there DIR COMMAND: by bash in the directory, by the ordinary user
there()
{
	(cd "$1" && as_user env CI= TMPDIR=/tmp bash -c "$2")
}

# Built, installed and copied for the first of them.
tree=
circumstance() # NAME
{
	machine "$1" || return 1
	[ -z "$tree" ] || return 0
	set_up_and_install
	tree=$work/tree
	copy_tree "$tree"
}

if circumstance space; then
	copy_tree "$work/path with spaces/gpu rhh"
	expect "make demo" 0 "$DEMO_OK" there "$work/path with spaces/gpu rhh" "$DEMO"
	expect "some of make check" 0 "$CHECK_OK" there "$work/path with spaces/gpu rhh" "$CHECK_SOME"
	expect "a build" 0 '' there "$work/path with spaces/gpu rhh" "touch src/guc.c && make"
fi

if circumstance client; then
	elsewhere="PGHOST=203.0.113.1 PGHOSTADDR=203.0.113.1 PGPORT=1 PGUSER=nobody PGDATABASE=none PGOPTIONS='-c work_mem=64kB'
		PGCLIENTENCODING=LATIN1 PGTZ=Asia/Tokyo PGDATESTYLE=German PGSSLMODE=require PGSERVICE=none"
	elsewhere=$(xargs -n 1 <<<"$elsewhere" | sed "s/.*/'&'/" | xargs -d '\n')
	expect "make demo" 0 "$DEMO_OK" there "$tree" "env $elsewhere $DEMO"
	expect "some of make check" 0 "$CHECK_OK" there "$tree" "env $elsewhere $CHECK_SOME"
fi

if circumstance port; then
	# a server of ours, unless there is one
	cluster=
	if (exec 3<>/dev/tcp/127.0.0.1/5432) 2>/dev/null; then
		note "there is a server"
	else
		cluster_start cluster "listen_addresses = '127.0.0.1'"
	fi
	expect "make demo" 0 "$DEMO_OK" there "$tree" "$DEMO"
	if [ -n "$cluster" ]; then
		expect "that server is still there" 0 1 "$PGBIN/psql" -XAtc 'SELECT 1'
		cluster_stop "$cluster"
	fi
fi

if circumstance locale; then
	# Turkish has another capital i than C has
	locale=$(locale -a 2>/dev/null | grep -iE '^(tr_TR|de_DE|fr_FR|en_US)' | sort -r | head -1) || true
	: "${locale:=C.UTF-8}"
	note "$locale"
	expect "make demo" 0 "$DEMO_OK" there "$tree" "env LANG=$locale LC_ALL=$locale $DEMO"
	expect "some of make check" 0 "$CHECK_OK" there "$tree" "env LANG=$locale LC_ALL=$locale $CHECK_SOME"
fi

if circumstance shm; then
	if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
		note "left out: needs root and namespaces"
	else
		small_shm() { unshare --mount --propagation private bash -c 'mount -t tmpfs -o mode=1777,size=64m tmpfs /dev/shm || exit 99; "$@"' - "$@"; }
		export -f as_user there
		export RUN_AS
		expect "make demo" 0 "$DEMO_OK" small_shm bash -c "TMPDIRS=(/tmp); there '$tree' \"$DEMO\""
	fi
fi

if circumstance pg-config; then
	log_of_apt() { stat -c %Y /var/lib/dpkg/status 2>/dev/null || true; }
	before=$(log_of_apt)
	printf '#!/bin/sh\necho /nowhere\n' >"$work/not_pg_config"
	chmod 755 "$work/not_pg_config"
	for goal in demo check; do
		expect "make $goal: no such program" 1 'PG_CONFIG is ".*", which is no program' \
			there "$tree" "make $goal PG_CONFIG=/no/such/pg_config"
	done
	never "nothing was going to be installed" 'apt-get|installing'
	expect "make demo: one without a server" 1 'whose PostgreSQL has no server' \
		there "$tree" "make demo PG_CONFIG='$work/not_pg_config'"
	# one without headers, as the client's package of Debian has it
	cat >"$work/pg_config" <<-END
		#!/bin/sh
		if [ "\$1" = --includedir-server ]; then echo /nowhere; else exec '$PG_CONFIG' "\$@"; fi
	END
	chmod 755 "$work/pg_config"
	if [ -z "$(debian_version "$PG_CONFIG")" ]; then
		expect "make demo: no headers" 1 'has no server headers: there is no /nowhere/postgres.h' there "$tree" "make demo PG_CONFIG='$work/pg_config'"
	fi
	expect "make: no headers" 1 'server development files are missing \(asked .*\): run scripts/setup.sh' there "$tree" "make PG_CONFIG='$work/pg_config'"
	never "no compiler was asked" 'postgres.h: No such file'
	expect "all the while dpkg has changed nothing" 0 "^$before\$" log_of_apt
fi

if circumstance read-only; then
	copy_source "$work/clean"
	chmod -R a-w "$work/clean"
	if [ -z "$RUN_AS" ] && [ -w "$work/clean" ]; then
		note "left out: this user writes everywhere"
	else
		for goal in demo check; do
			expect "make $goal" 1 'cannot be written by .*: copy it to a place that can be' there "$work/clean" "make $goal PG_CONFIG='$PG_CONFIG'"
		done
		expect "make" 1 'cannot be written, and the extension is built in it' there "$work/clean" "make PG_CONFIG='$PG_CONFIG'"
		never "no compiler was asked" 'cannot open output|ld:|Error [0-9]'
	fi
	chmod -R u+w "$work/clean"
fi

if circumstance compiler; then
	# as the copy was built: an ordinary user could not install another
	check="make check CHECK='simt regress' REGRESS_TESTS=functions PG_CONFIG='$PG_CONFIG'${WITH_CUDA:+ WITH_CUDA=$WITH_CUDA}"
	expect "no C++ compiler: that part alone is left out" 0 'without the CUDA code on the CPU' there "$tree" "$check CXX=no-such-compiler"
	also "and the others have run" '^   1 passed, 0 failed$'
	expect "in CI it is a failure" 1 'are missing|, 1 failed$' there "$tree" "CI=true $check CXX=no-such-compiler"
	copy_tree "$work/broken"
	echo '#error not today' >>"$work/broken/test/table_test.cu"
	expect "what cannot be built is a failure" 1 'the build failed' there "$work/broken" "$check"
	also "and the others have run" '^   1 passed, 0 failed$'
fi

if circumstance installcheck; then
	for encoding in SQL_ASCII LATIN1; do
		new_tmpdir dir
		(cd / && as_user "$PGBIN/initdb" -D "$dir/data" -U postgres -A trust -E $encoding --locale=C --no-sync) >"$out"
		printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$dir'" "fsync = off" >>"$dir/data/postgresql.conf"
		pg_ctl -D "$dir/data" -l "$dir/log" -w start >/dev/null
		CLUSTERS+=("$dir/data")
		some="installcheck REGRESS='functions text_keys agg_keys' TAP_TESTS= PG_CONFIG='$PG_CONFIG' PGHOST='$dir' PGPORT=5432"
		if [ "$(id -u)" = 0 ]; then
			expect "$encoding, as root" 0 'All 3 tests passed' bash -c "unset PGUSER; make ${WITH_CUDA:+WITH_CUDA=$WITH_CUDA} $some"
		fi
		expect "$encoding, PGUSER set" 0 'All 3 tests passed' there "$tree" "make ${WITH_CUDA:+WITH_CUDA=$WITH_CUDA} $some PGUSER=postgres"
		cluster_stop "$dir"
	done
fi

step "done"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
