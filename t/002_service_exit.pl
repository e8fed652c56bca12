# The service ends in the middle of queries and between them, by SIGTERM and by
# SIGKILL.  A query that was using it gets an error (58000), never wrong rows,
# and never hangs; the next one works, on a new service; and nothing stays
# taken: the pool here has two blocks, so that one lost block would show as
# rows finished on the host, and the query slots are used up many times over.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use constant QUERY_SLOTS => 128;
use constant SESSION_SLOTS => 32;	# that one session may have

my $lost = qr/ERROR:  58000: could not finish the query on the device/;

my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	"gpurhh.pool_size = '256kB'",
	'restart_after_crash = on');

# Stops at row 75,000, with batches before it at the device.
my $gated = q{SELECT g % 5000 AS k, count(*), sum(g)
	FROM (SELECT gate(w, 75000, 1) AS g FROM t OFFSET 0) s GROUP BY 1};
my $cursor = "DECLARE c CURSOR FOR $BY_K";
my $small = 'SELECT i % 10 AS k, count(*) FROM (SELECT generate_series(1, 100) AS i) s GROUP BY 1';

my $admin = session($node);
my $s = session($node);
my ($out, $err);

sub end_service
{
	my ($pid) = service_pids($node);

	$admin->query("SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { !alive($pid) }, "the end of process $pid"), 'the service ends');
	return;
}

# All blocks are free: no row has to be finished on the host.  The service
# frees what a query had after the query's end, so look more than once.
sub all_blocks_free
{
	my ($session, $name) = @_;

	ok(wait_until(sub { host_rows($session, $BY_K) == 0 }, 'all blocks to be free'), $name);
	return;
}

# Opens n cursors and fetches a row from each.
sub open_cursors
{
	my ($session, $n, $query) = @_;

	$session->query(
		join ";\n", 'BEGIN',
		(map { "DECLARE c$_ CURSOR FOR $query" } 1 .. $n),
		(map { "FETCH 1 FROM c$_" } 1 .. $n));
	return;
}

# Takes as many slots as there are, by cursors that are half read, in as many
# sessions as it takes.  They go with the sessions.
sub take_all_slots
{
	my @sessions = map { session($node) } 1 .. QUERY_SLOTS / SESSION_SLOTS;

	foreach my $session (@sessions)
	{
		$session->query($ON);
		open_cursors($session, SESSION_SLOTS, $BY_K);
	}
	return @sessions;
}

# All slots are free: so many queries at once find one each.
sub all_slots_free
{
	my ($session, $name) = @_;

	# a new service's figures start at zero
	$session->query($small);
	my $before = $session->query('SELECT queries FROM gpurhh_stat');
	my @sessions;

	# a private service's slots are all one session's
	if ($name =~ /^private/) { open_cursors($session, QUERY_SLOTS, $BY_K); }
	else { @sessions = take_all_slots(); }
	is($session->query('SELECT queries FROM gpurhh_stat') - $before, QUERY_SLOTS, $name);
	$session->query('ROLLBACK');
	$_->quit foreach @sessions;
	return;
}

# ---------- between queries ----------

same_answer($s, $BY_K, 'before');
end_service();
same_answer($s, $BY_K, 'after a clean exit between queries');

# ---------- in the middle of the input ----------

$s->query($OFF);
my $expected = $s->query(digest_sql($gated));
$s->query($ON);
is($s->query(digest_sql($gated)), $expected, 'the gated query, with the gate open');
for my $i (1 .. 3)
{
	$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
	$s->send(digest_sql($gated));
	ok(wait_for_gate($admin, $s), "feed $i: stopped in the middle");
	end_service();
	$admin->query('COMMIT');
	($out, $err) = $s->result;
	like($err, $lost, "feed $i: an error");
	like($err, qr/DETAIL:  The device service reported: the device service ended\./,
		'which says why');
	is($out, '', 'and no row');
	is($s->query(digest_sql($gated)), $expected, 'the next query is right');
	all_blocks_free($s, 'no block is lost');
}

# ---------- while the session waits for the device, and at any moment ----------

for my $i (1 .. 10)
{
	my $rows = $admin->query('SELECT rows_fed FROM gpurhh_stat');

	$s->send('SELECT count(*) FROM (SELECT i % 100000 AS k, sum(i) FROM endless() GROUP BY 1) q');
	wait_until(sub { $admin->query('SELECT rows_fed FROM gpurhh_stat') > $rows + 50_000 * $i });
	end_service();
	($out, $err) = $s->result;
	like($err, $lost, "running feed $i: an error");
}
all_blocks_free($s, 'no block is lost');

# ---------- in the middle of the output ----------

# The groups of the second are in a map of the query below it.
for my $of ($BY_K, 'SELECT k, sum(n), count(*), max(s) FROM (SELECT k, v, count(*) AS n, sum(v) AS s FROM t GROUP BY k, v) q GROUP BY k')
{
	$s->query($OFF);
	$expected = $s->query(digest_sql($of));
	$s->query($ON);
	like($s->query("EXPLAIN $of"), qr/Feed: groups/, 'groups of groups') if $of ne $BY_K;
	for my $i (1 .. 3)
	{
		my $n = $s->query("BEGIN; DECLARE c CURSOR FOR $of; SELECT n_rows FROM drain('c', " . $i * 1000 . ')');

		is($n, $i * 1000, "output $i: a part fetched");
		end_service();
		($out, $err) = $s->try("SELECT n_rows FROM drain('c', NULL)");
		like($err, $lost, 'the rest is an error');
		is($out, '', 'and no row');
		$s->query('ROLLBACK');
		is($s->query(digest_sql($of)), $expected, 'the next query is right');
		all_blocks_free($s, 'no block is lost');
	}
}
$s->query($OFF);
$expected = $s->query(digest_sql($BY_K));
$s->query($ON);

# A cursor that has all its rows needs no service any more.
$s->query("BEGIN; $cursor");
my $half = $s->query("SELECT * FROM drain('c', 12500)");
my $rest = $s->query("SELECT * FROM drain('c', NULL)");
end_service();
is($s->query("SELECT * FROM drain('c', NULL)"), '0|0', 'a cursor at its end stays there');
$s->query('COMMIT');
{
	my @half = split /\|/, $half;
	my @rest = split /\|/, $rest;
	my @all = split /\|/, $expected;

	is($half[0] + $rest[0], $all[0], 'its halves are the whole');
}

# ---------- several sessions at once ----------

{
	my @others = map { session($node) } 1 .. 6;

	$_->query($ON) foreach @others;
	$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
	$_->send(digest_sql($gated)) foreach @others;
	ok(wait_for_gate($admin, $_), 'stopped') foreach @others;
	end_service();
	$admin->query('COMMIT');
	$s->query($OFF);
	$expected = $s->query(digest_sql($gated));
	$s->query($ON);
	foreach my $other (@others)
	{
		($out, $err) = $other->result;
		# with two blocks, some finish all on the host
		ok($err =~ $lost || $out eq $expected, 'an error, or the right answer');
	}
	$_->send(digest_sql($gated)) foreach @others;
	is(($_->result)[0], $expected, 'the next query is right') foreach @others;
	$_->quit foreach @others;
}
all_blocks_free($s, 'no block is lost');

# ---------- slots ----------

all_slots_free($s, 'all slots can be used');
open_cursors($s, 20, $BY_K);
end_service();
$s->query('ROLLBACK');
all_slots_free($s, 'all slots can be used after the service ended under open cursors');
all_blocks_free($s, 'and all blocks');

# One query more than there are slots is done on the host.
{
	$admin->query($OFF);
	$expected = $admin->query(digest_sql($small));
	$admin->query($ON);
	my @sessions = take_all_slots();
	like($admin->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $small"),
		qr/Device: host \(too many queries use the device service\)/,
		'EXPLAIN tells that the slots are used up');
	is($admin->query(digest_sql($small)), $expected, 'the answer is right');
	$_->quit foreach @sessions;
}

# ---------- groups that nobody takes any more ----------

# The service ends when it has put groups into a block for a query whose session
# has just let go of it.  Each process is stopped where it would go on too soon.
{
	my ($pid) = service_pids($node);

	$s->query("BEGIN; $cursor; SELECT n_rows FROM drain('c', 10)");
	kill 'STOP', $pid;
	$s->send("SELECT n_rows FROM drain('c', NULL)");
	usleep 300_000;
	kill 'STOP', $s->backend_pid;
	kill 'CONT', $pid;
	usleep 300_000;
	kill 'STOP', $pid;
	usleep 100_000;
	kill 'INT', $s->backend_pid;
	kill 'CONT', $s->backend_pid;
	like(($s->result)[1], qr/^ERROR:  57014:/, 'cancelled while its groups are ready');
	$s->query('ROLLBACK');
	kill 'TERM', $pid;
	kill 'CONT', $pid;
	ok(wait_until(sub { !alive($pid) }), 'then the service ends');

	my $n;
	for (1 .. 5)
	{
		$n = host_rows($s, $BY_K);
		last if $n == 0;
	}
	is($n, 0, 'its block is not lost');
}

# ---------- killed ----------

# PostgreSQL then restarts everything, as after any such death.
sub kill_service
{
	my ($pid) = service_pids($node);

	kill 'KILL', $pid;
	foreach my $session ($s, $admin)
	{
		# ends by the crash
		wait_until(sub { !alive($session->backend_pid) });
		$session->quit;
	}
	ok(wait_for_server($node), 'the server comes back');
	$s = session($node);
	$admin = session($node);
	return;
}

same_answer($s, $BY_K, 'before the kill');
kill_service();
is($s->query('SELECT service_pid IS NULL, shared FROM gpurhh_stat'), 't|t', 'a new area, no service');
same_answer($s, $BY_K, 'after SIGKILL between queries');

$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
$s->send(digest_sql($gated));
ok(wait_for_gate($admin, $s), 'stopped in the middle');
my ($pid) = service_pids($node);
kill 'KILL', $pid;
($out, $err) = $s->result;
is($out, '', 'no row of a query in the middle');
like($err, qr/terminating connection because of crash of another server process|server closed the connection/,
	'its connection ends');
wait_until(sub { !alive($admin->backend_pid) });
$_->quit foreach $s, $admin;
ok(wait_for_server($node), 'the server comes back');
$s = session($node);
$admin = session($node);
same_answer($s, $BY_K, 'after SIGKILL in the middle of a query');
all_slots_free($s, 'all slots are free');
all_blocks_free($s, 'all blocks are free');

# ---------- the same for a private service ----------

$_->quit foreach $s, $admin;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->append_conf('postgresql.conf', "session_preload_libraries = 'gpurhh'");
$node->restart;
$s = session($node);
$admin = session($node);
same_answer($s, $BY_K, 'private: before');
end_service();
same_answer($s, $BY_K, 'private: after a clean exit between queries');

$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
$s->send(digest_sql($gated));
ok(wait_for_gate($admin, $s), 'private: stopped in the middle');
end_service();
$admin->query('COMMIT');
($out, $err) = $s->result;
like($err, $lost, 'private: an error');
$s->query("BEGIN; $cursor; SELECT n_rows FROM drain('c', 1000)");
end_service();
like(($s->try("SELECT n_rows FROM drain('c', NULL)"))[1], $lost,
	'private: an error in the middle of the output');
$s->query('ROLLBACK');
same_answer($s, $BY_K, 'private: the next query');
all_slots_free($s, 'private: all slots are free');
all_blocks_free($s, 'private: all blocks are free');

kill_service();
same_answer($s, $BY_K, 'private: after SIGKILL');

$_->quit foreach $s, $admin;
# ---------- with groups fetched ahead of need ----------

# Where there are plenty of blocks the last groups may have left the device before
# anybody asked for them.  If they go with the service, that is no end of the
# groups.
$_->quit foreach $admin, $s;
$node->stop;
$node = new_node('roomy',
	"shared_preload_libraries = 'gpurhh'",
	"max_parallel_workers_per_gather = 3",
	"parallel_setup_cost = 0",
	"min_parallel_table_scan_size = 0");
$node->safe_psql('postgres', q{
CREATE TABLE p WITH (parallel_workers = 3) AS SELECT i::int AS k FROM generate_series(1, 50000) i;
ANALYZE p;
CREATE FUNCTION slowly(i int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	IF i % 2000 = 0 THEN
		PERFORM pg_sleep(0.1);
	END IF;
	RETURN true;
END $$});
$admin = session($node);
$s = session($node);
$s->query($ON);
for my $n (5000, 12_000, 20_000)
{
	$s->query("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT w % $n, count(*) FROM t GROUP BY 1; FETCH 1 FROM c; SELECT pg_sleep(0.2)");
	end_service();
	($out, $err) = $s->try("SELECT n_rows FROM drain('c', NULL)");
	ok($err =~ $lost || ($err eq '' && $out eq $n - 1), "cursor on $n groups: an error, or all of them")
	  or diag("$out $err");
	$s->query('ROLLBACK');
}
for my $wait_s (0.2, 0.4, 0.6)
{
	my $all_emit = 'SELECT count(*), sum(k), sum(n) FROM (SELECT k, count(*) AS n FROM p GROUP BY k) q WHERE slowly(k)';

	like($s->query("EXPLAIN (COSTS OFF) $all_emit"), qr/Gather.*Parallel Custom Scan/s, 'all participants emit');
	$s->send($all_emit);
	usleep($wait_s * 1_000_000);
	end_service();
	($out, $err) = $s->result;
	ok($err =~ $lost || ($err eq '' && $out eq '50000|1250025000|50000'), 'they return an error, or all groups')
	  or diag("$out $err");
}

$node->stop;
done_testing();
