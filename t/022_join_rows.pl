# GpuHashJoin, which returns the rows of joins, when things go wrong: the service ends or the
# query is cancelled while sides are read, while rows are returned, and while a cursor
# rests; and when many cursors rest, of which none may keep a block that others need.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;
use Time::HiRes qw(usleep);

my $lost = qr/^ERROR:  58000: could not finish the query on the device/m;

my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	# two blocks
	"gpurhh.pool_size = '256kB'",
	'gpurhh.enable_hashjoin = on',
	"statement_timeout = '60s'",
	'max_parallel_workers_per_gather = 0',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0',
	'enable_mergejoin = off',
	'enable_nestloop = off');

# dim has four of five keys of t; same has 100 rows for each of its values.
$node->safe_psql('postgres', q{
CREATE TABLE dim AS SELECT i AS k, i % 50 AS g, 'a long name of row ' || i % 200 AS name FROM generate_series(0, 19999) i;
CREATE TABLE same AS SELECT i % 1000 AS v, i AS n FROM generate_series(1, 100000) i;
CREATE TABLE twice AS SELECT i * 2 AS k, 'name ' || i % 200 AS name FROM generate_series(0, 19999) i;
ANALYZE dim, same, twice;
});

my $joined = 'SELECT t.k, t.w, dim.name FROM t LEFT JOIN dim USING (k)';
my $many = 'SELECT t.w, same.n FROM t JOIN same USING (v) WHERE t.w <= 20000';
# rows of the probe side that another plan makes, and much that comes out of each of them
my $of_rows = 'SELECT q.w, same.n FROM (SELECT * FROM t ORDER BY w LIMIT 20000) q JOIN same USING (v)';
# a node above a node above a node, of which each has batches with the service
my $stacked = 'SELECT q.w, sum(q.n) FROM (SELECT s.w, s.v, same.n FROM (SELECT v, w, count(*) AS x FROM t WHERE w <= 5000 GROUP BY v, w) s JOIN same USING (v) LIMIT 1000000) q
	JOIN same USING (n) GROUP BY q.w';
# the build side has rows that nothing matches
my $full = 'SELECT t.w, twice.name FROM t FULL JOIN twice USING (k)';
my %gated = (
	build => q{SELECT t.w, g FROM t JOIN (SELECT stable_gate(k, 15000, 1)::int AS k, g FROM dim OFFSET 0) d USING (k)},
	between => q{SELECT t.w, g FROM t JOIN dim USING (k) WHERE v < (SELECT gate(500, 500, 1))},
	probe => q{SELECT t.w, g FROM t JOIN dim USING (k)
		WHERE CASE WHEN w <= 50000 THEN true ELSE v < (SELECT gate(500, 500, 1)) END},
	rows => q{SELECT t.w, g FROM (SELECT stable_gate(w, 50000, 1)::int AS w, k FROM t OFFSET 0) t JOIN dim USING (k)});
my @places = qw(build between probe rows);

my $admin = session($node);
my $s = session($node);
my %answer;

sub joins_of
{
	my ($sql, $options) = @_;

	return join ' ', $s->query("EXPLAIN ($options) $sql") =~ /GpuHashJoin.*?Device Joins: ([^\n]*)/sg;
}

# Without GpuHashAgg above.
sub new_s
{
	$s = session($node);
	$s->query($ON);
	$s->query('SET enable_gpu_hashagg = off');
	return;
}

sub next_query
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($s->query(digest_sql($joined)), $answer{$joined}, "$name: the next query");
	is(joins_of($joined, 'ANALYZE, COSTS OFF, TIMING OFF'), '1', 'on the device');
	return;
}

sub end_service
{
	my ($pid) = service_pids($node);

	$admin->query("SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { !alive($pid) }, "the end of process $pid"), 'the service ends');
	return;
}

$s->query($OFF);
$answer{$_} = $s->query(digest_sql($_)) foreach $joined, $many, $of_rows, $stacked, $full, values %gated;
new_s();
foreach my $sql ($joined, $many, $of_rows, values %gated)
{
	is(joins_of(digest_sql($sql), 'COSTS OFF'), '1', "planned: $sql");
	is($s->query(digest_sql($sql)), $answer{$sql}, 'the same rows');
}

# ---------- the service ends, and the query is cancelled ----------

foreach my $how ('the service ends', 'cancelled')
{
	foreach my $place (@places)
	{
		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$s->send(digest_sql($gated{$place}));
		ok(wait_for_gate($admin, $s), "$place: stopped");
		$how eq 'cancelled' ? $admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')') : end_service();
		$admin->query('COMMIT') if $how ne 'cancelled';
		my ($out, $err) = $s->result;
		$admin->query('COMMIT') if $how eq 'cancelled';
		like($err, $how eq 'cancelled' ? qr/57014/ : $lost, "$place: $how, an error");
		is($out, '', 'and no row');
		next_query("$place, $how");
	}
}

# ---------- cursors ----------

# What has been fetched of the session's memory may still come; then there is an error.
foreach my $sql ($joined, $many, $of_rows)
{
	is($s->query("BEGIN; DECLARE c CURSOR FOR $sql; SELECT n_rows FROM drain('c', 10)"), '10', 'a cursor rests');
	end_service();
	my ($out, $err) = $s->try("SELECT n_rows FROM drain('c', NULL)");
	like($err, $lost, 'the service has ended: an error');
	is($out, '', 'and no row');
	$s->query('ROLLBACK');
	next_query('a cursor');
}

# The same in the middle of rows of a build side that nothing has matched, which come last.
{
	my $tail = 'SELECT t.w, u.n FROM t FULL JOIN (SELECT v + 100000 AS v, n FROM same OFFSET 0) u ON t.v = u.v';

	is(joins_of($tail, 'ANALYZE, COSTS OFF, TIMING OFF'), '1', 'rows without a match come from the device');
	foreach my $how ('the service ends', 'closed', 'to its end')
	{
		is($s->query("BEGIN; DECLARE c CURSOR FOR $tail; SELECT n_rows FROM drain('c', 130000)"), '130000',
			'a cursor rests among rows without a match');
		end_service() if $how eq 'the service ends';
		my ($out, $err) = $how eq 'closed' ? $s->try('CLOSE c') : $s->try("SELECT n_rows FROM drain('c', NULL)");
		$how eq 'the service ends' ? like($err, $lost, 'the service has ended: an error') : is($err, '', $how);
		is($out, '70000', 'all rows') if $how eq 'to its end';
		$s->query('ROLLBACK');
		next_query("rows without a match, $how");
	}
}

# There are two blocks, and twelve cursors that rest in the middle.  Another session's
# joins, and the other cursors, go on.
{
	my $other = session($node);

	$s->query('BEGIN');
	foreach my $i (1 .. 12)
	{
		$s->query("DECLARE c$i CURSOR FOR " . ($i % 2 ? $joined : $many));
		is($s->query("SELECT n_rows FROM drain('c$i', 1000 * $i)"), 1000 * $i, "cursor $i rests");
	}
	$other->query($ON);
	is($other->query(digest_sql($joined)), $answer{$joined}, 'another session joins');
	is($other->query('SELECT count(*), count(name) FROM (SELECT name, count(*) FROM t JOIN dim USING (k) GROUP BY name) q'), '200|200',
		'and groups what it has joined');
	foreach my $i (1, 12, 6, 7)
	{
		my ($n) = $answer{ $i % 2 ? $joined : $many } =~ /^(\d+)/;

		is($s->query("SELECT n_rows FROM drain('c$i', NULL)"), $n - 1000 * $i, "cursor $i comes to its end");
	}
	$s->query('COMMIT');
	next_query('cursors');

	# more than a session may have queries: the rest is core's
	$s->query('BEGIN');
	foreach my $i (1 .. 20)
	{
		$s->query("DECLARE c$i CURSOR FOR $joined");
		$s->query("SELECT n_rows FROM drain('c$i', 10)");
	}
	like(joins_of($joined, 'ANALYZE, COSTS OFF, TIMING OFF'), qr/^0 \(too many queries of the session/, 'too many cursors');
	is($s->query(digest_sql($joined)), $answer{$joined}, 'the same rows all the same');
	is($s->query("SELECT n_rows FROM drain('c$_', NULL)"), 99_990, "cursor $_") foreach 1, 20;
	$s->query('COMMIT');
	next_query('too many cursors');
	$other->quit;
}

# A cursor of many rows keeps no more than a few blocks of them in memory, and none of
# the batches it has not come to.
{
	my $pid = $s->backend_pid;

	$s->query("BEGIN; DECLARE c CURSOR FOR $many");
	$s->query("SELECT n_rows FROM drain('c', 1000)");
	my $before = rss_kb($pid);
	$s->query("SELECT n_rows FROM drain('c', 1500000)");
	cmp_ok(rss_kb($pid) - $before, '<', 20_000, 'memory stays what it is');
	$s->query('COMMIT');
}

# ---------- parallel plans ----------

# ---------- sessions whose nodes wait for each other's rows, and two blocks for all ----------

{
	my @sessions = map { session($node) } 1 .. 4;

	$_->query($ON) foreach @sessions;
	# blocks come back with refused rows
	$_->query('SET gpurhh.max_probe_buckets = 1; SET gpurhh.load_factor = 0.95') foreach @sessions;
	is(() = $sessions[0]->query("EXPLAIN (COSTS OFF) $stacked") =~ /Custom Scan/g, 3, 'three nodes');
	foreach my $round (1 .. 3)
	{
		$sessions[$_]->send(digest_sql($_ % 2 ? $stacked : $of_rows)) foreach 0 .. $#sessions;
		foreach my $i (0 .. $#sessions)
		{
			my ($out, $err) = $sessions[$i]->result;

			is($out . $err, $answer{ $i % 2 ? $stacked : $of_rows }, "round $round: session $i has its rows");
		}
	}
	$_->quit foreach @sessions;
}

$s->query('SET max_parallel_workers_per_gather = 3');
foreach my $sql ($joined, $many, $full)
{
	like($s->query("EXPLAIN (COSTS OFF) $sql"), qr/Gather.*GpuHashJoin.*Parallel Seq Scan/s, 'a parallel plan');
	is($s->query(digest_sql($sql)), $answer{$sql}, 'the same rows');
}
# The service ends, or the query is cancelled, while participants join: who returns rows without a match must not
# do so of a part.
foreach my $how ('the service ends', 'cancelled')
{
	foreach my $ms (5, 20, 40, 80, 120, 160)
	{
		my ($pid) = service_pids($node);

		$s->send(digest_sql($full));
		usleep($ms * 1000);
		$admin->query('SELECT pg_' . ($how eq 'cancelled' ? 'cancel_backend(' . $s->backend_pid : "terminate_backend($pid") . ')');
		my ($out, $err) = $s->result;
		ok($err =~ ($how eq 'cancelled' ? qr/57014/ : $lost) ? $out eq '' : $out . $err eq $answer{$full}, "$how after $ms ms: an error, or all rows");
		ok($how eq 'cancelled' || wait_until(sub { !alive($pid) }, "the end of process $pid"), 'it has ended');
		is($s->query(digest_sql($full)), $answer{$full}, 'the next query');
	}
}
$s->query('RESET max_parallel_workers_per_gather');
next_query('parallel plans');

$_->quit foreach $s, $admin;
$node->stop;
done_testing();
