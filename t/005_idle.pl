# A service with nothing to do ends after gpurhh.service_idle_timeout, and the
# next query starts another; 0 keeps it.  An open query keeps it too.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

# Longer than the service needs to look up (1 s) and to find itself idle (1 s).
use constant LONG_S => 3;

my $node = new_node('main',
	"session_preload_libraries = 'gpurhh'",
	"gpurhh.service_idle_timeout = '1s'");

foreach my $mode ('private', 'shared')
{
	if ($mode eq 'shared')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
		$node->append_conf('postgresql.conf', "gpurhh.service_idle_timeout = '1s'");
		$node->restart;
	}
	my $s = session($node);
	my $pid = sub {
		return $s->query('SELECT service_pid FROM gpurhh_stat');
	};

	# ---------- idle ----------

	my @pids;
	for my $round (1 .. 2)
	{
		same_answer($s, $BY_K, "$mode: round $round");
		push @pids, $pid->();
		isnt($pids[-1], '', 'there is a service');
		ok(wait_until(sub { !alive($pids[-1]) }), 'which ends when idle');
		is($pid->(), '', 'and gpurhh_stat says so');
		is(scalar(service_pids($node)), 0, 'as does pg_stat_activity');
	}
	isnt($pids[1], $pids[0], 'the second was another one');
	is($s->query('SELECT count(*) > 0 FROM gpurhh_devices()'), 't',
		'gpurhh_devices() starts one too');

	# ---------- a query is open ----------

	$s->query($OFF);
	my $expected = (split /\|/, $s->query(digest_sql($BY_K)))[0];
	$s->query($ON);
	is($s->query("BEGIN; DECLARE c CURSOR FOR $BY_K; SELECT n_rows FROM drain('c', 1000)"),
		1000, 'half a cursor');
	my $before = $pid->();
	$s->query('SELECT pg_sleep(' . LONG_S . ')');
	is($pid->(), $before, 'an open query keeps the service');
	is($s->query("SELECT n_rows FROM drain('c', NULL)"), $expected - 1000, 'and finds its groups');
	$s->query('COMMIT');

	# ---------- never ----------

	# A private service takes its session's setting when it starts, the shared
	# one the configuration's whenever that is read.
	if ($mode eq 'private')
	{
		ok(wait_until(sub { !alive($before) }), 'ends after the query');
		$s->query('SET gpurhh.service_idle_timeout = 0');
	}
	else
	{
		$node->append_conf('postgresql.conf', 'gpurhh.service_idle_timeout = 0');
		$node->reload;
		ok(wait_until(sub { $s->query('SHOW gpurhh.service_idle_timeout') eq '0' }), 'reloaded');
	}
	same_answer($s, $BY_K, 'no timeout');
	$before = $pid->();
	$s->query('SELECT pg_sleep(' . LONG_S . ')');
	is($pid->(), $before, "$mode: 0 keeps the service");
	$s->quit;
}

$node->stop;
done_testing();
