# Joins whose build side has no room in the device's memory and comes in parts, when things go
# wrong in the second pass, while the build side is read or the probe side: the service ends, is
# killed, or the query is cancelled.  There is core's answer or a clear error, and nothing stays
# taken: the pool has two blocks, and each pass needs a query of the service.

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
	"statement_timeout = '60s'",
	"work_mem = '64MB'",
	'enable_mergejoin = off',
	'max_parallel_workers_per_gather = 0');

# The functions are declared as what they are not: a volatile one would leave the join to core.
$node->safe_psql('postgres', q{
CREATE TABLE dim AS
	SELECT i * 3 % 50000 AS k, i % 50 AS g, i % 77 AS e, i AS id FROM generate_series(1, 45000) i;
CREATE TABLE more AS SELECT * FROM t UNION ALL SELECT k + 25000, v, w FROM t;
ANALYZE dim, more;
CREATE FUNCTION gate_at(turn int) RETURNS bool STABLE COST 0.001 LANGUAGE plpgsql AS $f$
BEGIN
	PERFORM set_config('gate.turns', (coalesce(nullif(current_setting('gate.turns', true), ''), '0')::int + 1)::text, false);
	IF current_setting('gate.turns')::int = turn THEN
		PERFORM pg_advisory_xact_lock(1);
	END IF;
	RETURN true;
END $f$;
});

my $joined = 'SELECT g, e, count(*), sum(v), sum(id) FROM more JOIN dim USING (k) GROUP BY g, e';

# Each stops when a part of a side has been fed in the second pass.  The build side is read at
# least once more before that, when it has no room; then its first rows are fed, too.
my %gated = (
	build => q{SELECT g, e, count(*), sum(v), sum(id) FROM more
		JOIN (SELECT * FROM dim WHERE id <> 20 OR gate_at(3 + 0 * e)) d USING (k) GROUP BY g, e},
	probe => q{SELECT g, e, count(*), sum(v), sum(id) FROM more JOIN dim USING (k)
		WHERE (w <> 60000 OR gate_at(3 + 0 * v)) GROUP BY g, e});
my @places = qw(build probe);

# What the probe side costs has to be seen, or passes over it do not differ from core's joins.
$ON .= '; SET gpurhh.row_cost = 0.001';

my $admin = session($node);
my $s = session($node);
my %answer;

# How many passes a query takes, of which no group is on the host; 0: it is not the device that
# joins.
sub n_passes
{
	my ($session, $sql) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");

	return 0 if $plan !~ /Device Joins: 1$/m || $plan !~ /Host Rows: 0$/m;
	return $plan =~ /rows joined, (\d+) passes/ ? $1 : 1;
}

sub new_s
{
	$s = session($node);
	$s->query($ON);
	return;
}

sub next_query
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($s->query(digest_sql($joined)), $answer{$joined}, "$name: the next query");
	ok(wait_until(sub { n_passes($s, $joined) > 1 }, 'all blocks to be free'), 'no block is lost');
	return;
}

# Leaves the query of a place at its gate.
sub stop_at_gate
{
	my ($place) = @_;

	$s->query(q{SET gate.turns = '0'});
	$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
	$s->send(digest_sql($gated{$place}));
	ok(wait_for_gate($admin, $s), "$place: stopped");
	return;
}

$s->query($OFF);
$answer{$_} = $s->query(digest_sql($_)) foreach $joined, values %gated;
$s->query($ON);
cmp_ok(n_passes($s, $_), '>', 2, 'passes') foreach $joined, values %gated;
same_answer($s, $_, 'rows') foreach $joined, values %gated;
$s->query($ON);

foreach my $place (@places)
{
	foreach my $how ('the service ends', 'cancelled', 'killed')
	{
		my ($pid) = service_pids($node);

		stop_at_gate($place);
		if ($how eq 'cancelled')
		{
			$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')');
		}
		elsif ($how eq 'killed')
		{
			kill 'KILL', $pid;
		}
		else
		{
			$admin->query("SELECT pg_terminate_backend($pid)");
			ok(wait_until(sub { !alive($pid) }, "the end of process $pid"), 'the service ends');
			$admin->query('COMMIT');
		}
		my ($out, $err) = $s->result;
		is($out, '', "$place: $how, no row");
		like($err, $how eq 'cancelled' ? qr/57014/ : $how eq 'killed' ? $crashed : $lost, 'and the error');
		if ($how eq 'killed')
		{
			wait_until(sub { !alive($admin->backend_pid) });
			$_->quit foreach $s, $admin;
			ok(wait_for_server($node), 'the server comes back');
			$admin = session($node);
			new_s();
		}
		elsif ($how eq 'cancelled')
		{
			$admin->query('COMMIT');
		}
		next_query("$place: $how");
	}
}

# Each pass has a query of its own with the service, and gives it back.
my $before = $s->query('SELECT queries FROM gpurhh_stat');
is($s->query(digest_sql($joined)), $answer{$joined}, 'again') foreach 1 .. 12;
cmp_ok($s->query('SELECT queries FROM gpurhh_stat') - $before, '>', 32, 'more passes than a session may have queries');
cmp_ok(n_passes($s, $joined), '>', 1, 'all slots are free');

# Several sessions at once, with two blocks for all of them.
my @sessions = map { session($node) } 1 .. 4;
$_->query($ON) foreach @sessions;
$_->send(digest_sql($joined)) foreach @sessions;
is(($_->result)[0], $answer{$joined}, 'one of several sessions') foreach @sessions;
$_->quit foreach @sessions;

$_->quit foreach $s, $admin;
$node->stop;
done_testing();
