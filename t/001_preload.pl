# One service for all sessions where the library is preloaded, one of its own
# for each session where it is not; the answers are the same.  A private
# service ends with its session, and sessions that use no device start none.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

my $node = new_node('main');

sub stat_row
{
	my ($s) = @_;

	return $s->query("SELECT coalesce(service_pid::text, 'none'), shared FROM gpurhh_stat");
}

# ---------- nothing preloaded ----------

{
	my $a = session($node);
	my $b = session($node);

	is($a->query('SHOW shared_preload_libraries'), '', 'nothing is preloaded');
	like(($a->try('SET enable_gpu_hashagg = on'))[1],
		qr/unrecognized configuration parameter/,
		'a session that has not loaded the library does not know the setting');
	$_->query("LOAD 'gpurhh'") foreach $a, $b;
	is(stat_row($a), 'none|f', 'no service before the first query');
	is(scalar(service_pids($node)), 0, 'none in pg_stat_activity');

	same_answer($a, $BY_K, 'session with a service of its own');
	my @one = service_pids($node);
	is(stat_row($a), "$one[0]|f", "gpurhh_stat tells the private service's pid");
	is(scalar(@one), 1, 'one service');
	is(stat_row($b), 'none|f', 'the other session has none');

	same_answer($b, $BY_K, 'second session');
	my @two = service_pids($node);
	is(scalar(@two), 2, 'two services');
	my ($second) = grep { $_ != $one[0] } @two;
	is(stat_row($b), "$second|f", 'the second session has its own');

	# whatever way a session goes, its service follows
	$a->quit;
	ok(wait_until(sub { join(' ', service_pids($node)) eq $second }),
		'a private service ends with its session');
	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $b->backend_pid . ')');
	ok(wait_until(sub { !service_pids($node) }),
		'and with a session that was terminated');
	$b->quit;
}

# ---------- session_preload_libraries ----------

$node->append_conf('postgresql.conf', "session_preload_libraries = 'gpurhh'");
$node->reload;
ok( wait_until(
		sub { $node->safe_psql('postgres', 'SHOW session_preload_libraries') eq 'gpurhh' }),
	'session_preload_libraries is set');
{
	my $a = session($node);
	my $b = session($node);

	is($a->query('SHOW enable_gpu_hashagg'), 'off', 'a new session knows the setting, off');
	is(scalar(service_pids($node)), 0, 'loading starts no service');
	same_answer($_, $BY_K, 'session_preload_libraries') foreach $a, $b;
	is(scalar(service_pids($node)), 2, 'two sessions, two services');
	like(stat_row($a), qr/^\d+\|f$/, 'not shared');
	$_->quit foreach $a, $b;
	ok(wait_until(sub { !service_pids($node) }), 'none is left');
}

# ---------- shared_preload_libraries ----------

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
$node->restart;
{
	my @s = map { session($node) } 1 .. 4;

	is(stat_row($s[0]), 'none|t', 'no service at server start');
	same_answer($_, $BY_K, 'shared service') foreach @s;
	my @pids = service_pids($node);
	is(scalar(@pids), 1, 'four sessions, one service');
	is(stat_row($_), "$pids[0]|t", 'which each of them sees') foreach @s;
	cmp_ok($s[3]->query('SELECT queries FROM gpurhh_stat'), '>=', 4,
		"its statistics count every session's queries");
	$_->quit foreach @s;

	my $late = session($node);
	same_answer($late, $BY_K, 'a later session');
	is(stat_row($late), "$pids[0]|t", 'uses the same service');
	is(join(' ', service_pids($node)), $pids[0], 'which outlives sessions');
	like($late->query(
			"SELECT state IS NULL, datname IS NULL, application_name FROM pg_stat_activity WHERE pid = $pids[0]"),
		qr/^[tf]\|t\|gpurhh device service$/, 'it belongs to no database');
	$late->quit;
}

# ---------- for all sessions, as README.md says ----------

# What is in a server's files it must know before it has loaded the library, or
# it does not start.  README.md once had enable_gpu_hashagg there.
{
	open(my $readme, '<', "$FindBin::RealBin/../README.md") or die "README.md: $!";
	my ($block) = join('', <$readme>) =~ /in `postgresql\.conf`:\n\n```\n(.*?)```/s;
	my $s;

	like($block, qr/^shared_preload_libraries = 'gpurhh'/m, 'README.md says what goes to postgresql.conf');
	$node->append_conf('postgresql.conf', $block);
	$node->stop;
	ok($node->start(fail_ok => 1), 'the server starts with it');
	$s = session($node);
	same_answer($s, $BY_K, 'and the node works');
	$s->quit;
}

$node->stop;
done_testing();
