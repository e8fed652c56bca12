# A query can be stopped at any moment: by cancel, by terminate, by
# statement_timeout and by the loss of its client, while it feeds the device and
# while it returns groups.  Each takes effect soon, the next query is right, and
# the service gets its memory back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Time::HiRes qw(time);
use Test::More;

# The promise is a fraction of a second; a test machine may be busy.
use constant SOON_S => 5;

my $cancelled = qr/^ERROR:  57014: canceling statement due to user request/;
my $timed_out = qr/^ERROR:  57014: canceling statement due to statement timeout/;
my $terminated = qr/^FATAL:  57P01: terminating connection due to administrator command/;

my %query = (
	# a million groups, more than there is time for; marked when all are there
	feeding => q{SELECT count(*) FROM (
		SELECT i % 1000000 AS k, sum(i), count(*) FROM (
			SELECT CASE WHEN i = 1100000 THEN mark(i, 2) ELSE i END AS i
			FROM endless() OFFSET 0) s
		GROUP BY 1) q},
	# has its groups soon, and returns them for minutes; marked at the first
	returning => q{SELECT count(*) FROM
		(SELECT k, sum(v) AS s FROM t GROUP BY k) q,
		LATERAL (SELECT generate_series(1, 200000 + mark((q.s * 0)::int, 2))) r});

my $node = new_node('main',
	"session_preload_libraries = 'gpurhh'",
	"client_connection_check_interval = '100ms'");

sub new_session
{
	my $s = session($node);

	$s->query($ON);
	return $s;
}

foreach my $mode ('private', 'shared')
{
	if ($mode eq 'shared')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
		$node->restart;
	}
	my $admin = session($node);
	my $s = new_session();
	my ($out, $err, $began);

	# the service goes with a session only if it is the session's
	my $service_stays = sub {
		my ($pid) = @_;
		return $mode eq 'shared' ? alive($pid) : wait_until(sub { !alive($pid) });
	};
	my $service_pid = sub {
		return $s->query('SELECT service_pid FROM gpurhh_stat');
	};

	same_answer($s, $BY_K, "$mode: before");
	foreach my $where ('feeding', 'returning')
	{
		my $sql = $query{$where};

		cmp_ok(uses_node($s, $sql), '>', 0, "$mode: the $where query uses the node");

		$s->send($sql);
		ok(wait_for_mark($admin, $s), "$mode, $where: in the middle");
		$began = time;
		$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')');
		($out, $err) = $s->result;
		cmp_ok(time - $began, '<', SOON_S, 'cancel takes effect soon');
		like($err, $cancelled, 'with the error of a cancel');
		same_answer($s, $BY_K, 'the next query');

		$s->query("SET statement_timeout = '1s'");
		$began = time;
		($out, $err) = $s->try($sql);
		cmp_ok(time - $began, '<', 1 + SOON_S,
			"$mode, $where: statement_timeout takes effect soon");
		like($err, $timed_out, 'with its error');
		$s->reset_timeout;
		same_answer($s, $BY_K, 'the next query');

		my $pid = $service_pid->();
		$s->send($sql);
		ok(wait_for_mark($admin, $s), "$mode, $where: in the middle");
		$began = time;
		$admin->query('SELECT pg_terminate_backend(' . $s->backend_pid . ')');
		ok(wait_until(sub { !alive($s->backend_pid) }), 'terminated');
		cmp_ok(time - $began, '<', SOON_S, 'soon');
		($out, $err) = $s->result;
		like($err, $terminated, 'with its error');
		ok($service_stays->($pid), 'the service stays if it is shared, and ends if not');
		$s->quit;
		$s = new_session();
		same_answer($s, $BY_K, 'the next query');

		$pid = $service_pid->();
		$s->send($sql);
		ok(wait_for_mark($admin, $s), "$mode, $where: in the middle");
		$began = time;
		$s->kill_client;
		ok(wait_until(sub { !alive($s->backend_pid) }), 'ends without its client');
		cmp_ok(time - $began, '<', SOON_S, 'soon');
		ok($service_stays->($pid), 'the service stays if it is shared, and ends if not');
		$s = new_session();
		same_answer($s, $BY_K, 'the next query');
	}

	# ---------- a cursor half fetched ----------

	my $half = "BEGIN; DECLARE c CURSOR FOR $BY_K; SELECT n_rows FROM drain('c', 1000)";

	is($s->query($half), 1000, "$mode: half a cursor");
	$s->query('ROLLBACK');
	is($s->query($half), 1000, 'half a cursor');
	like(($s->try('SELECT 1/0'))[1], qr/division by zero/, 'an error in its transaction');
	$s->query('ROLLBACK');
	is($s->query($half), 1000, 'half a cursor');
	$s->query("SET statement_timeout = '300ms'");
	like(($s->try("SELECT drain('c', 1000), pg_sleep(60)"))[1], $timed_out, 'a timeout beside it');
	$s->query('ROLLBACK');
	$s->reset_timeout;
	is($s->query($half), 1000, 'half a cursor');
	is($s->query("SAVEPOINT p; SELECT n_rows FROM drain('c', 1000)"), 1000, 'more of it');
	like(($s->try('SELECT 1/0'))[1], qr/division by zero/, 'an error in a subtransaction');
	is($s->query("ROLLBACK TO p; SELECT n_rows > 20000 FROM drain('c', NULL)"), 't',
		'the cursor goes on');
	$s->query('COMMIT');
	is($s->query($half), 1000, 'half a cursor');
	my $pid = $service_pid->();
	$s->kill_client;
	ok(wait_until(sub { !alive($s->backend_pid) }), 'its session ends without its client');
	ok($service_stays->($pid), 'the service stays if it is shared, and ends if not');
	$s = new_session();
	same_answer($s, $BY_K, 'the next query');

	# ---------- errors of the query's own ----------

	like(($s->try('SELECT k, sum(1 / (75000 - w)) FROM t GROUP BY k'))[1],
		qr/^ERROR:  22012: division by zero/, "$mode: an error in the input");
	like(($s->try('SELECT k, 1 / (sum(v) - sum(v)) FROM t GROUP BY k'))[1],
		qr/^ERROR:  22012: division by zero/, 'an error in the output');
	same_answer($s, $BY_K, 'the next query');

	# ---------- memory ----------

	# Each of these queries has tens of megabytes when it is stopped.
  SKIP:
	{
		skip 'the system does not tell the memory of a process', 2
		  if !defined rss_kb($$);

		$pid = $service_pid->();
		my $cycles = sub {
			my ($n) = @_;

			for (1 .. $n)
			{
				$s->send($query{feeding});
				wait_for_mark($admin, $s);
				$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')');
				(undef, $err) = $s->result;
				die "not cancelled: $err" if $err !~ $cancelled;
			}
			# what a query had is freed after its end
			$s->query(digest_sql($BY_K));
		};
		$cycles->(5);
		my $first = rss_kb($pid);
		$cycles->(20);
		ok(wait_until(sub { rss_kb($pid) < $first + 40 * 1024 }),
			"$mode: the service's memory does not grow with stopped queries")
		  or diag("from $first kB to " . rss_kb($pid) . ' kB');
		is($service_pid->(), $pid, 'and it is still the same');
	}

	$_->quit foreach $s, $admin;
}

$node->stop;
done_testing();
