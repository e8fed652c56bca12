#!/bin/bash
# setup.sh [--tests] [--ci]: installs what building and trying gpurhh needs and
# is missing.  Debian and Ubuntu, as root; otherwise it says what to run.
#
#	--tests		also what the tests need (IPC::Run, for the TAP tests)
#	--ci		also the second compiler and the formatter
#
# Says nothing and touches nothing when everything is there.  The PostgreSQL
# chosen is the one installed, else the distribution's default; the cluster that
# Debian would create and start for a new one is not created.
. "$(dirname "$0")/lib.sh"

want_tests= want_ci=
for a in "$@"; do
	case $a in
		--tests) want_tests=yes ;;
		--ci) want_tests=yes want_ci=yes ;;
		*) die "usage: setup.sh [--tests] [--ci]" ;;
	esac
done

have() { command -v "$1" >/dev/null; }

# Prints the packages that are missing; optional ones (without which something
# is left out, and says so) only if asked for.
missing()
{
	local v

	have make || echo make
	have gcc || have cc || echo gcc
	[ -e /usr/include/stdio.h ] || echo libc6-dev
	if ! find_postgres; then
		v=$(ls /usr/lib/postgresql 2>/dev/null | grep -E '^[0-9]+$' | sort -n | tail -1)
		if [ -z "$v" ]; then
			v=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -1)
		fi
		echo "postgresql-${v:-VERSION} postgresql-server-dev-${v:-VERSION}"
	fi
	if [ -n "$want_ci" ]; then
		have clang || echo clang
		have clang-format || echo clang-format
	fi
}

missing_for_tap()
{
	[ -n "$want_tests" ] || return 0
	have prove || echo perl
	perl -MIPC::Run -e 1 2>/dev/null || echo libipc-run-perl
}

need=$(missing | xargs)
tap=$(missing_for_tap | xargs)
[ -n "$need$tap" ] || exit 0

if ! have apt-get; then
	[ -n "$need" ] || exit 0		# check.sh says what it leaves out
	die "missing, in Debian's names: $need (no apt-get here: install them your system's way)"
fi

if [ "$(id -u)" != 0 ]; then
	case "$need" in *VERSION*) need="postgresql postgresql-server-dev-all" ;; esac
	echo "Some packages are missing. Run this, then the same command again:"
	echo
	echo "    sudo apt-get update && sudo apt-get install -y" $need $tap
	echo
	exit 1
fi

step "installing $need${tap:+ $tap}"
log=$(mktemp)
TMPDIRS+=("$log")

# An installation in a fresh container has no package lists yet.
if ! apt-get install -s $need $tap >/dev/null 2>&1 || [[ $need == *VERSION* ]]; then
	apt-get update >"$log" 2>&1 || true
	need=$(missing | xargs)
fi

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
	apt_install $need || { tail -20 "$log"; die "apt-get could not install: $need"; }
fi
if [ -n "$tap" ]; then
	apt_install $tap || note "apt-get could not install $tap: the TAP tests will be left out"
fi
find_postgres || die "PostgreSQL's server development files are still missing"
