# Joins below a parallel GpuHashAgg, whose participants wait for each other between two passes over
# the probe side (join_rounds.c), when things go wrong in a later pass while all but one wait: the
# query is cancelled, one of its workers is terminated, the service ends or is killed.  There is an
# error, nobody waits for ever, and nothing stays taken: the pool has two blocks.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

my $lost = qr/^ERROR:  58000: could not finish the query on the device/m;
my $crashed = qr/terminating connection because of crash of another server process|server closed the connection/;

my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	"gpurhh.pool_size = '256kB'",
	"gpurhh.device_memory = '1MB'",
	'gpurhh.enable_hashjoin = on',
	'restart_after_crash = on',
	# a query that hangs is an error soon enough
	"statement_timeout = '120s'",
	"work_mem = '64MB'",
	'max_worker_processes = 16',
	'max_parallel_workers = 16',
	'max_parallel_workers_per_gather = 3',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0.001',
	'min_parallel_table_scan_size = 0',
	# from 16 on core has full joins in parallel, which the node would only be fed from
	'enable_parallel_hash = off',
	'enable_mergejoin = off');

$node->safe_psql('postgres', q{
CREATE TABLE dim WITH (parallel_workers = 3) AS
	SELECT i * 3 % 50000 AS k, i % 50 AS g, i % 77 AS e, i AS id FROM generate_series(1, 45000) i;
ALTER TABLE t SET (parallel_workers = 3);
ANALYZE dim;
CREATE FUNCTION hold(i bigint, at bigint) RETURNS bool STABLE PARALLEL SAFE COST 0.001 LANGUAGE plpgsql AS $f$
BEGIN
	IF i = at THEN
		PERFORM pg_advisory_lock_shared(1);
		PERFORM pg_advisory_unlock_shared(1);
	END IF;
	RETURN true;
END $f$;
});

# Where the participant stops for which the others wait: while it reads the probe side, or, where
# rows without a match are returned, the build side.
my %sides = (
	INNER => '(SELECT * FROM t WHERE hold(w, 60000) IS NOT NULL) t JOIN dim',
	FULL => 't FULL JOIN (SELECT * FROM dim WHERE hold(id, 20) IS NOT NULL) dim');
my %joined = map {
	my $sql = "SELECT g, e, count(*), sum(v), sum(id) FROM $sides{$_} USING (k) GROUP BY g, e";

	($_ => "SELECT count(*), md5(string_agg(q::text, ',' ORDER BY q::text)) FROM ($sql) q") } keys %sides;
my $parallel_on = "$ON; SET gpurhh.row_cost = 0.001";
my $admin = session($node);
my $s = session($node);
my %answer;

sub n_passes
{
	my ($sql) = @_;
	my $plan = $s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");

	return 0 if $plan !~ /Parallel Custom Scan \(GpuHashAgg\)/ || $plan !~ /Device Joins: 1$/m;
	return $plan =~ /rows joined, (\d+) passes/ ? $1 : 1;
}

# What the participants of the query wait for: one at the gate, the others for it.
sub wait_for_others
{
	my $pid = $s->backend_pid;

	return wait_until(sub {
			# the transaction sees workers that started later
			$admin->query('SELECT pg_stat_clear_snapshot()');
			return $admin->query("SELECT string_agg(wait_event_type, ' ' ORDER BY wait_event_type) FROM pg_stat_activity WHERE pid = $pid OR leader_pid = $pid") eq 'Extension Extension Extension Lock';
		}, 'participants to wait');
}

$s->query($OFF);
$answer{$_} = $s->query($joined{$_}) foreach sort keys %joined;
foreach my $participation (qw(on off))
{
	$s->query("$parallel_on; SET parallel_leader_participation = $participation");
	foreach my $kind (sort keys %joined)
	{
		cmp_ok(n_passes($joined{$kind}), '>', 2, "$kind, leader $participation: passes");
		is($s->query($joined{$kind}), $answer{$kind}, 'and the answer');
	}
}

my @hows = ('cancelled', 'a worker that waits is terminated', 'a worker, of those at the gate the first, is terminated',
	'the service ends', 'killed');
foreach my $h (0 .. $#hows)
{
	my $how = $hows[$h];
	my $kind = (sort keys %joined)[$h % 2];
	my ($service) = service_pids($node);
	my $pid = $s->backend_pid;

	$s->query("$parallel_on; SET parallel_leader_participation = on");
	$admin->query('SELECT pg_advisory_lock(1)');
	$s->send($joined{$kind});
	ok(wait_for_others(), "$kind: all wait for one in the first pass");
	# whoever is at the gate gets the lock first
	$admin->query('SELECT pg_advisory_unlock(1), pg_advisory_lock(1)');
	ok(wait_for_others(), 'and in a later one');
	if ($how eq 'cancelled')
	{
		$admin->query("SELECT pg_cancel_backend($pid)");
	}
	elsif ($how =~ /worker/)
	{
		my $order = $how =~ /waits/ ? 'DESC' : 'ASC';

		is($admin->query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid = $pid ORDER BY wait_event_type <> 'Lock' $order LIMIT 1"), 't', $how);
	}
	elsif ($how eq 'killed')
	{
		kill 'KILL', $service;
	}
	else
	{
		$admin->query("SELECT pg_terminate_backend($service)");
		ok(wait_until(sub { !alive($service) }, "the end of process $service"), $how);
		$admin->query('SELECT pg_advisory_unlock(1)');
	}
	my ($out, $err) = $s->result;
	is($out, '', "$kind, $how: no row");
	like($err, $how eq 'cancelled' ? qr/57014/ : $how =~ /worker/ ? qr/57P01/ : $how eq 'killed' ? $crashed : $lost,
		'and the error');
	if ($how eq 'killed')
	{
		wait_until(sub { !alive($admin->backend_pid) });
		$_->quit foreach $s, $admin;
		ok(wait_for_server($node), 'the server comes back');
		$admin = session($node);
		$s = session($node);
		$s->query($parallel_on);
	}
	elsif ($how ne 'the service ends')
	{
		$admin->query('SELECT pg_advisory_unlock(1)');
	}
	is($s->query($joined{$kind}), $answer{$kind}, 'the next query');
	cmp_ok(n_passes($joined{$kind}), '>', 1, 'no block is lost, and no place of a query');
}

# Each pass has a query of its own with the service, and gives it back.
my $before = $s->query('SELECT queries FROM gpurhh_stat');
is($s->query($joined{FULL}), $answer{FULL}, 'again') foreach 1 .. 8;
cmp_ok($s->query('SELECT queries FROM gpurhh_stat') - $before, '>', 32, 'more passes than a session may have queries');

$_->quit foreach $s, $admin;
$node->stop;
done_testing();
