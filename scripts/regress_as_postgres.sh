#!/bin/bash
# regress_as_postgres.sh PG_REGRESS ARG …: "make installcheck" as root.
#
# pg_regress connects as the user that it runs as, and servers have no role
# "root".  So it runs as the user postgres, who can connect to Debian's servers as
# the superuser postgres, with the tests in a copy that this user can read and
# write; what failed comes back to where "make installcheck" leaves it.
. "$(dirname "$0")/lib.sh"

[ "$RUN_AS" = postgres ] ||
	die "there is no user postgres to run the tests as: set PGUSER to a superuser of the server's that root can connect as"
new_tmpdir work
cp -r sql expected "$work/"
chown -R postgres "$work"

status=0
(cd "$work" && as_user "$1" --inputdir=. "${@:2}") || status=$?
for f in regression.diffs regression.out; do
	rm -f "$f"
	if [ -s "$work/$f" ]; then cp "$work/$f" "$f"; fi
done
if [ -s regression.diffs ]; then note "they are also in $ROOT/regression.diffs"; fi
exit $status
