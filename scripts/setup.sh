#!/bin/bash
# setup.sh [--tests] [--ci]: installs what building and trying gpurhh needs and
# is missing.  Debian and Ubuntu, as root; otherwise it says what to run.
#
#	--tests		also what parts of the tests need and are left out without: a C++
#				compiler (the CUDA code on the CPU), IPC::Run (the TAP tests)
#	--ci		all of that, and the second compiler and the formatter; what
#				cannot be had is a failure
#
# Says nothing and touches nothing when everything is there.  The PostgreSQL is
# that of PG_CONFIG, else the newest that is installed if that is 15 or later, else
# the distribution's default; what is installed of it is not upgraded, and the
# cluster that Debian would create and start for a new one is not created.
. "$(dirname "$0")/lib.sh"

want_tests= want_ci=
for a in "$@"; do
	case $a in
		--tests) want_tests=yes ;;
		--ci) want_tests=yes want_ci=yes ;;
		*) die "usage: setup.sh [--tests] [--ci]" ;;
	esac
done
check_place

have() { command -v "$1" >/dev/null; }

# Prints the packages of the PostgreSQL to use that are missing.
missing_of_postgres()
{
	local v=

	if find_postgres; then return; fi
	if [ -n "$given" ]; then
		v=$(debian_version "$given")
	else
		v=$(ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null | cut -d/ -f5 | awk '$1 >= 15' | sort -n | tail -1)
		if [ -z "$v" ]; then
			v=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -1)
		fi
	fi
	[ -x "/usr/lib/postgresql/$v/bin/postgres" ] || echo "postgresql-${v:-VERSION}"
	[ -n "$v" ] && [ -e "/usr/include/postgresql/$v/server/postgres.h" ] || echo "postgresql-server-dev-${v:-VERSION}"
}

# Prints the packages without which nothing works, or in CI not all.
missing()
{
	have make || echo make
	have gcc || have cc || echo gcc
	[ -e /usr/include/stdio.h ] || echo libc6-dev
	missing_of_postgres
	if [ -n "$want_ci" ]; then
		have clang || echo clang
		have clang-format || have clang-format-14 || echo clang-format
		missing_for_tests
	fi
}

# Prints the packages without which parts of the tests are left out.
missing_for_tests()
{
	[ -n "$want_tests" ] || return 0
	have "${CXX:-g++}" || echo g++
	have prove || echo perl
	perl -MIPC::Run -e 1 2>/dev/null || echo libipc-run-perl
}

given=${PG_CONFIG:-}
need=$(missing | xargs)
for_tests=
if [ -z "$want_ci" ]; then for_tests=$(missing_for_tests | xargs); fi
[ -n "$need$for_tests" ] || exit 0

if ! have apt-get; then
	[ -n "$need" ] || exit 0		# check.sh says what it leaves out
	die "missing, in Debian's names: $need (no apt-get here: install them your system's way)"
fi

if [ "$(id -u)" != 0 ]; then
	if [ -z "$need" ]; then
		note "some tests will be left out; for them: sudo apt-get update && sudo apt-get install -y $for_tests"
		exit 0
	fi
	need=${need/postgresql-VERSION/postgresql}
	need=${need/postgresql-server-dev-VERSION/postgresql-server-dev-all}
	echo "Some packages are missing. Run this, then the same command again:"
	echo
	echo "    sudo apt-get update && sudo apt-get install -y" $need $for_tests
	echo
	exit 1
fi

log=$(mktemp)
TMPDIRS+=("$log")

# An installation in a fresh container has no package lists yet, others have old
# ones, whose files may have gone from the archive.
update()
{
	apt-get update >"$log" 2>&1 || true
	need=$(missing | xargs)
}
if [[ $need == *VERSION* ]] || ! apt-get install -s $need $for_tests >/dev/null 2>&1; then update; fi
step "installing $need${for_tests:+ $for_tests}"

# No cluster of Debian's own: a file that is there only while apt-get runs.
conf=/etc/postgresql-common/createcluster.d/gpurhh-setup.conf
if [[ $need == *postgresql* ]]; then
	mkdir -p "$(dirname $conf)"
	echo 'create_main_cluster = false' >$conf
	TMPDIRS+=("$conf")
fi

apt_install()
{
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1
}

if [ -n "$need" ]; then
	apt_install $need || { update; apt_install $need; } ||
		{ tail -20 "$log"; die "apt-get could not install: $need"; }
fi
# One at a time: a package that cannot be had does not keep out the others.
for p in $for_tests; do
	apt_install "$p" || note "apt-get could not install $p: some tests will be left out"
done
PG_CONFIG=$given
find_postgres || die "PostgreSQL's server development files are still missing"
