# Two, then twenty sessions at once, with a service of their own each and with
# one for all: every answer is core's.  Where the server has no worker left for
# a service, sessions quietly run on the host, and EXPLAIN ANALYZE says so.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

my $node = new_node('main', "session_preload_libraries = 'gpurhh'");

# Unlike queries, so that sessions are at unlike points at any time.
my @queries = (
	$BY_K,
	'SELECT v, count(*), avg(w), min(w), max(w) FROM t GROUP BY v',
	'SELECT w, count(v) FROM t GROUP BY w',
	'SELECT k % 7 AS a, v % 11 AS b, sum(w) FILTER (WHERE v > 500) FROM t GROUP BY 1, 2',
	"SELECT w % 1000, count(*) FROM t WHERE k < 100 GROUP BY 1 HAVING count(*) > 0");
my @expected;
{
	my $s = session($node);
	@expected = map { $s->query(digest_sql($_)) } @queries;
	$s->quit;
}

# n sessions at once, each of which runs all queries, beginning at another one.
sub at_once
{
	my ($n, $name) = @_;
	my @s = map { session($node) } 1 .. $n;
	my $wrong = 0;

	$_->query($ON) foreach @s;
	cmp_ok(uses_node($s[0], digest_sql($_)), '>', 0, "$name: the node is planned") foreach @queries;
	foreach my $i (0 .. $#s)
	{
		$s[$i]->send(join ";\n",
			map { digest_sql($queries[ ($i + $_) % @queries ]) } 0 .. $#queries);
	}
	foreach my $i (0 .. $#s)
	{
		my ($out, $err) = $s[$i]->result;
		my $expected = join "\n", map { $expected[ ($i + $_) % @queries ] } 0 .. $#queries;

		next if $out eq $expected && $err eq '';
		$wrong++;
		diag("session $i:\n$out\n$err\nexpected:\n$expected");
	}
	is($wrong, 0, "$name: $n sessions at once have core's answers");
	return @s;
}

sub services
{
	return scalar(service_pids($node));
}

my @s;
foreach my $n (2, 20)
{
	@s = at_once($n, 'private');
	is(services(), $n, "$n services");
	$_->quit foreach @s;
	ok(wait_until(sub { services() == 0 }), 'which end with their sessions');
}

# ---------- no worker for a service ----------

# One of the two is the logical replication launcher's.
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->restart;
my $no_worker = qr/Device: host \(no background worker slot is free, see max_worker_processes\)/;
@s = at_once(20, 'one worker for twenty services');
cmp_ok(services(), '<=', 1, 'one service at most');
my @device = map { $_->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $BY_K") } @s;
is(scalar(grep { /$no_worker/ } @device), 20 - services(),
	'EXPLAIN ANALYZE tells the others why they run on the host');
my ($poor) = grep { $device[$_] =~ /$no_worker/ } 0 .. $#s;
like($device[$poor], qr/Host Rows: 100000/, 'all rows are finished there');
like(($s[$poor]->try('SELECT * FROM gpurhh_devices()'))[1],
	qr/^ERROR:  53000: could not start the device service\n.*DETAIL:  .*max_worker_processes.*\nHINT:/s,
	'gpurhh_devices() cannot do without a service');
$_->quit foreach @s;

# Where a worker is free again the next query has a device.
ok(wait_until(sub { services() == 0 }), 'the service has ended');
my $s = session($node);
$s->query($ON);
ok( wait_until(sub { host_rows($s, $BY_K) == 0 }), 'a later session finds a worker');
$s->quit;

# ---------- one service for all ----------

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
foreach my $n (2, 20)
{
	@s = at_once($n, 'shared');
	is(services(), 1, 'one service');
	$_->quit foreach @s;
}

$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->restart;
@s = at_once(5, 'shared, no worker');
is(services(), 0, 'no service');
like($s[0]->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $BY_K"), $no_worker,
	'EXPLAIN ANALYZE tells why');
$_->quit foreach @s;

$node->stop;
done_testing();
