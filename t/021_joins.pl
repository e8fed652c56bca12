# Joins that the device does below GpuHashAgg, when things go wrong: the service ends, the
# query is cancelled, memory does not suffice, blocks of the pool are few; when the join
# is read anew, as parameters change; and in parallel plans.  Each time there is core's
# answer or a clear error, soon, and nothing stays taken: the pool has two blocks, so that
# one lost block would show as build sides for which no block became free.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;
use Time::HiRes qw(time usleep);

use constant QUERY_SLOTS => 128;
use constant SESSION_SLOTS => 32;	# that one session may have

# The promise is a fraction of a second; a test machine may be busy.
use constant SOON_S => 5;

my $lost = qr/^ERROR:  58000: could not finish the query on the device/m;
my $crashed = qr/terminating connection because of crash of another server process|server closed the connection/;

my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	"gpurhh.pool_size = '256kB'",
	'gpurhh.enable_hashjoin = on',
	'restart_after_crash = on',
	# a query that hangs is an error soon enough
	"statement_timeout = '60s'",
	'max_parallel_workers = 16',
	'max_parallel_workers_per_gather = 0',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0.001',
	'min_parallel_table_scan_size = 0');

# dim has four of five keys of t, and more rows than the pool has room for.
$node->safe_psql('postgres', q{
CREATE TABLE dim AS
	SELECT i AS k, i % 50 AS g, 'name ' || i % 200 AS name FROM generate_series(0, 19999) i;
CREATE TABLE few AS SELECT i AS k, i % 3 AS g FROM generate_series(0, 9) i;
CREATE TABLE none (k int, g int);
ANALYZE dim, few, none;
});

my $joined = 'SELECT g, count(*), sum(v), max(w) FROM t JOIN dim USING (k) GROUP BY g';
my $many = 'SELECT w, g, count(*), sum(v) FROM t LEFT JOIN dim USING (k) GROUP BY w, g';

# Each stops at a gate: when a part of its build side has been fed; when the device has
# the build side and nothing has been probed; when a part of the probe side has been fed.
my %gated = (
	build => q{SELECT g, count(*), sum(v) FROM t
		JOIN (SELECT gate(k, 15000, 1)::int AS k, g FROM dim OFFSET 0) d USING (k) GROUP BY g},
	between => q{SELECT g, count(*), sum(v) FROM t JOIN dim USING (k)
		WHERE v < (SELECT gate(500, 500, 1)) GROUP BY g},
	probe => q{SELECT g, count(*), sum(v) FROM t JOIN dim USING (k)
		WHERE CASE WHEN w <= 50000 THEN true ELSE v < (SELECT gate(500, 500, 1)) END
		GROUP BY g});
my @places = qw(build between probe);

my $admin = session($node);
my $s = session($node);
my %answer;

# "Device Joins" of each GpuHashAgg that has joins below, with the reason of a 0.
sub device_joins
{
	my ($session, $sql) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");

	return $plan =~ /Device Joins: (.*)/g;
}

# A figure of EXPLAIN ANALYZE, added up over the plan's nodes.
sub figure
{
	my ($session, $sql, $name) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
	my $sum = 0;

	$sum += $_ foreach $plan =~ /\Q$name\E: (\d+)/g;
	return $sum;
}

# The device does the joins, n of them, and the rows are core's.
sub joins_right
{
	my ($session, $sql, $n, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$session->query($ON);
	is(join(', ', device_joins($session, $sql)), $n, "$name: on the device");
	same_answer($session, $sql, $name);
	return;
}

# The next query is right, and finds all blocks free.  The service frees what a query had
# after the query's end, so look more than once.
sub next_query
{
	my ($session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($session->query(digest_sql($joined)), $answer{$joined}, "$name: the next query");
	ok(wait_until(sub {
				join(', ', device_joins($session, $joined)) eq '1'
				  && figure($session, $joined, 'Host Rows') == 0;
			}, 'all blocks to be free'), 'no block is lost');
	return;
}

# All slots are free: cursors of so many sessions find one for each query and build side.
sub all_slots_free
{
	my ($name) = @_;
	my @sessions;
	my $n = 0;

	ok(wait_until(sub {
				@sessions = map { session($node) } 1 .. QUERY_SLOTS / SESSION_SLOTS;
				$n = 0;
				foreach my $session (@sessions)
				{
					my $before = $session->query('SELECT queries FROM gpurhh_stat');

					$session->query($ON);
					$session->query(join ";\n", 'BEGIN',
						(map { "DECLARE c$_ CURSOR FOR $many; FETCH 1 FROM c$_" }
							1 .. SESSION_SLOTS / 2));
					$n += $session->query('SELECT queries FROM gpurhh_stat') - $before;
				}
				$_->quit foreach @sessions;
				return $n == QUERY_SLOTS;
			}, 'all slots to be free'), $name)
	  or diag("$n of " . QUERY_SLOTS);
	return;
}

sub end_service
{
	my ($pid) = service_pids($node);

	$admin->query("SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { !alive($pid) }, "the end of process $pid"), 'the service ends');
	return;
}

# Leaves the query of a place at its gate.
sub stop_at_gate
{
	my ($place) = @_;

	$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
	$s->send(digest_sql($gated{$place}));
	ok(wait_for_gate($admin, $s), "$place: stopped");
	return;
}

sub new_s
{
	$s = session($node);
	$s->query($ON);
	return;
}

$s->query($OFF);
$answer{$_} = $s->query(digest_sql($_)) foreach $joined, $many, values %gated;
joins_right($s, $_, 1, 'before') foreach $joined, $many, values %gated;
$s->query($ON);

# ---------- the service ends ----------

foreach my $place (@places)
{
	stop_at_gate($place);
	end_service();
	$admin->query('COMMIT');
	my ($out, $err) = $s->result;
	like($err, $lost, "$place: the service ends, an error");
	is($out, '', 'and no row');
	is($s->query(digest_sql($gated{$place})), $answer{ $gated{$place} }, 'the same query once more');
	next_query($s, $place);
}

# While the device joins: each row has 100 matches, so that it takes some time.
$admin->query('CREATE TABLE same AS SELECT i % 1000 AS v, i AS n FROM generate_series(1, 100000) i; ANALYZE same');
my $long = 'SELECT n % 7000 AS m, w % 2, count(*), sum(w) FROM t JOIN same USING (v) GROUP BY 1, 2';
joins_right($s, $long, 1, 'a long query');
$s->query($ON);
$answer{$long} = $s->query(digest_sql($long));
foreach my $n_probed (0, 20_000, 60_000)
{
	# a new service's figures start at zero
	$s->query($joined);
	my $rows = $admin->query('SELECT rows_fed FROM gpurhh_stat') + 100_000 + $n_probed;

	$s->send(digest_sql($long));
	wait_until(sub { $admin->query('SELECT coalesce(rows_fed, 0) FROM gpurhh_stat') > $rows }, 'rows to be probed');
	end_service();
	my ($out, $err) = $s->result;
	ok($err =~ $lost || ($err eq '' && $out eq $answer{$long}), "more than $n_probed rows probed: an error, or all groups")
	  or diag("$out $err");
}
next_query($s, 'the long query');

foreach my $n (1000, 60_000)
{
	is($s->query("BEGIN; DECLARE c CURSOR FOR $many; SELECT n_rows FROM drain('c', $n)"), $n, 'output: a part fetched');
	end_service();
	my ($out, $err) = $s->try("SELECT n_rows FROM drain('c', NULL)");
	like($err, $lost, 'the rest is an error');
	is($out, '', 'and no row');
	$s->query('ROLLBACK');
	next_query($s, 'output');
}

# ---------- killed ----------

foreach my $place (@places, 'output')
{
	if ($place eq 'output')
	{
		$s->query("BEGIN; DECLARE c CURSOR FOR $many; FETCH 1 FROM c");
	}
	else
	{
		stop_at_gate($place);
	}
	my ($pid) = service_pids($node);
	kill 'KILL', $pid;
	my ($out, $err) = $place eq 'output' ? $s->try("SELECT drain('c', NULL)") : $s->result;
	is($out, '', "$place: the service is killed, no row");
	like($err, $crashed, 'the connection ends');
	wait_until(sub { !alive($admin->backend_pid) });
	$_->quit foreach $s, $admin;
	ok($node->poll_query_until('postgres', 'SELECT true'), 'the server comes back');
	$admin = session($node);
	new_s();
	next_query($s, $place);
}

# ---------- cancel ----------

# Stops the service while it sleeps, so that it holds no lock.
sub pause_service
{
	my ($pid) = service_pids($node);
	my $sleeps = sub {
		return $admin->query("SELECT wait_event_type IS NOT NULL FROM pg_stat_activity WHERE pid = $pid") eq 't';
	};

	wait_until(sub {
			return 0 if !$sleeps->();
			kill 'STOP', $pid;
			return 1 if $sleeps->();
			kill 'CONT', $pid;
			return 0;
		}, 'the service to sleep');
	return $pid;
}

sub waits_for_service
{
	my $pid = $s->backend_pid;

	return wait_until(sub {
			$admin->query("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid") eq 't';
		}, 'a session that waits for the service');
}

# Each leaves the session waiting in its own way, with a service that does not answer.
my $tiny = 'SELECT g, count(*) FROM t JOIN few USING (k) WHERE v < (SELECT gate(500, 500, 1)) AND w < 100 GROUP BY g';
my %stop = (
	# for a block for the build side
	building => sub {
		my $pid = pause_service();
		$s->send($joined);
		return $pid;
	},
	# to be told whether the device joins
	deciding => sub {
		my $pid = pause_service();
		$s->send('SELECT g, count(*) FROM t JOIN few USING (k) GROUP BY g');
		return $pid;
	},
	# for a block for the probe side
	probing => sub {
		stop_at_gate('between');
		my $pid = pause_service();
		$admin->query('COMMIT');
		return $pid;
	},
	# for the map
	finishing => sub {
		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$s->send($tiny);
		wait_for_gate($admin, $s);
		my $pid = pause_service();
		$admin->query('COMMIT');
		return $pid;
	},
	# for groups
	returning => sub {
		$s->query("BEGIN; DECLARE c CURSOR FOR $many; FETCH 1 FROM c");
		my $pid = pause_service();
		$s->send("SELECT drain('c', NULL)");
		return $pid;
	});

foreach my $where (qw(building deciding probing finishing returning))
{
	foreach my $how ('cancel', 'timeout', 'terminate')
	{
		$s->query("SET statement_timeout = '2s'") if $how eq 'timeout';
		my $pid = $stop{$where}->();
		ok(waits_for_service(), "$where, $how: waits for the service");
		my $began = time;
		$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')') if $how eq 'cancel';
		$admin->query('SELECT pg_terminate_backend(' . $s->backend_pid . ')') if $how eq 'terminate';
		my ($out, $err) = $s->result;
		cmp_ok(time - $began, '<', SOON_S, 'it ends soon');
		like($err, $how eq 'cancel' ? qr/57014: canceling statement due to user request/ :
			$how eq 'timeout' ? qr/57014: canceling statement due to statement timeout/ :
			qr/57P01: terminating connection due to administrator command/, 'with its error');
		is($out, '', 'and no row');
		kill 'CONT', $pid;
		if ($how eq 'terminate')
		{
			$s->quit;
			new_s();
		}
		$s->query('ROLLBACK; RESET statement_timeout');
		next_query($s, "$where, $how");
		is((service_pids($node))[0], $pid, 'the service is the same');
	}
}

# At a gate no process waits for the service, but there are batches with the device.
foreach my $place (@places)
{
	foreach my $how ('cancel', 'terminate')
	{
		stop_at_gate($place);
		$admin->query("SELECT pg_${how}_backend(" . $s->backend_pid . ')');
		like(($s->result)[1], $how eq 'cancel' ? qr/57014/ : qr/57P01/, "$place, $how: the error");
		$admin->query('COMMIT');
		if ($how eq 'terminate')
		{
			$s->quit;
			new_s();
		}
		next_query($s, "$place, $how");
	}
}
like(($s->try('SELECT g, sum(1 / (v - v + g - 20)) FROM t JOIN dim USING (k) GROUP BY g'))[1],
	qr/22012: division by zero/, 'an error of an expression of both sides');
like(($s->try('SELECT g, sum(1000 / v) FROM t JOIN dim USING (k) GROUP BY g'))[1],
	qr/22012: division by zero/, 'an error of the probe side, for a row with a match');
next_query($s, 'errors');
all_slots_free('no query and no build side has kept its slot');

# Cursors whose groups are all fetched need no build sides any more.
{
	my $n = SESSION_SLOTS + 8;

	$s->query('BEGIN');
	$s->query(join ';', map { "DECLARE c$_ CURSOR FOR $joined; FETCH 1 FROM c$_" } 1 .. $n);
	is(join(', ', device_joins($s, $joined)), '1', "$n cursors that have their last block leave room for a join");
	is($s->query("SELECT n_rows FROM drain('c$_', NULL)"), 49, 'and go on') foreach 1, $n;
	$s->query('COMMIT');
}

$_->quit foreach $s, $admin;
$node->stop;
done_testing();
