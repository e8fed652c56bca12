# Parallel plans when things go wrong: no block of the pool to be had, a worker
# or the service that ends in the middle, a cancel.  The query ends with the
# right rows or an error, and the pool has all its blocks again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_node('main',
	"session_preload_libraries = 'gpurhh'",
	"gpurhh.pool_size = '256kB'",
	"statement_timeout = '120s'",
	"max_parallel_workers = 16",
	"max_parallel_workers_per_gather = 3",
	"parallel_setup_cost = 0",
	"parallel_tuple_cost = 0.001",
	"gpurhh.row_cost = 0.001",
	"min_parallel_table_scan_size = 0");

$node->safe_psql('postgres', q{
CREATE TABLE p WITH (parallel_workers = 3) AS
	SELECT (i * 7919 % 25000)::int AS k, (i % 1000)::int AS v, i AS w FROM generate_series(1, 100000) i;
ANALYZE p;
CREATE FUNCTION slowly(i int, s float8) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	IF i % 500 = 0 THEN
		PERFORM pg_sleep(s);
	END IF;
	RETURN true;
END $$});

my $quick = 'SELECT k, sum(v) AS s, count(*) AS c FROM p GROUP BY k';
my $slow = 'SELECT k, sum(v) AS s, count(*) AS c FROM p WHERE slowly(w, 0.01) GROUP BY k';
my $very_slow = 'SELECT k, sum(v) AS s FROM p WHERE slowly(w, 0.5) GROUP BY k';

# a digest that workers do a part of, so that all participants emit
sub all_emit
{
	my ($sql) = @_;

	return "SELECT count(*), sum(k), sum(s) FROM ($sql) q";
}

# a digest that only the leader can compute
sub leader_emits
{
	my ($sql) = @_;

	return "SELECT count(*), md5(string_agg(q::text, ',' ORDER BY q::text)) FROM ($sql) q";
}

sub plan_properties
{
	my ($s, $sql) = @_;
	my $plan = $s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $sql");
	my %properties = $plan =~ /"(Host Rows|Participants|Workers Launched)": (\d+)/g;

	return \%properties;
}

# The workers that work for a session.
sub workers
{
	my ($admin, $s) = @_;
	my $pid = $s->backend_pid;

	return split /\n/, $admin->query("SELECT pid FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> $pid");
}

sub same_parallel_answer
{
	my ($s, $sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	subtest $name => sub {
		plan tests => 3;
		$s->query($OFF);
		my $expected = $s->query($sql);
		$s->query($ON);
		like($s->query("EXPLAIN (COSTS OFF) $sql"), qr/Parallel Custom Scan \(GpuHashAgg\)/, 'the plan');
		is($s->query($sql), $expected, 'the same rows');
		is($s->query($sql), $expected, 'and again');
	};
	return;
}

foreach my $mode ('private', 'shared')
{
	if ($mode eq 'shared')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
		$node->restart;
	}
	my $admin = session($node);
	my $s = session($node);

	# in a pool that lost a block nobody would get one to fill
	my $nothing_lost = sub {
		my ($after) = @_;

		same_parallel_answer($s, all_emit($quick), "$mode: the next query after $after");
		is(plan_properties($s, all_emit($quick))->{'Host Rows'}, 0, 'and the pool has all its blocks');
	};

	$s->query($ON);
	foreach my $participation ('on', 'off')
	{
		$s->query("SET parallel_leader_participation = $participation");
		same_parallel_answer($s, all_emit($quick), "$mode: all emit, leader $participation");
		same_parallel_answer($s, leader_emits($quick), "$mode: leader emits, leader $participation");
		cmp_ok(plan_properties($s, all_emit($slow))->{'Participants'}, '>=', 3, 'all take part');
		is(plan_properties($s, all_emit($quick))->{'Host Rows'}, 0, 'no help of the host');
	}
	$s->query('RESET parallel_leader_participation');

	# ---------- a worker ends ----------

	foreach my $digest (\&all_emit, \&leader_emits)
	{
		my @workers;

		$s->send($digest->($very_slow));
		wait_until(sub { @workers = workers($admin, $s); @workers == 3 }, 'three workers');
		$admin->query("SELECT pg_terminate_backend($workers[1])");
		my ($out, $err) = $s->result;
		like($err, qr/^(FATAL|ERROR):  57P01: terminating/m, "$mode: a worker is terminated, its query fails");
		$nothing_lost->('it');
	}

	# ---------- cancel ----------

	$s->send(all_emit($very_slow));
	wait_until(sub { workers($admin, $s) == 3 }, 'three workers');
	$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')');
	like(($s->result)[1], qr/57014: canceling statement due to user request/, "$mode: a query is cancelled");
	$nothing_lost->('it');
	$s->query("SET statement_timeout = '500ms'");
	like(($s->try(leader_emits($very_slow)))[1], qr/57014: canceling statement due to statement timeout/, 'and timed out');
	$s->reset_timeout;
	$nothing_lost->('it');

	# ---------- the service ends ----------

	$s->send(all_emit($slow));
	wait_until(sub { workers($admin, $s) == 3 }, 'three workers');
	# private: only this session's service is running
	$admin->query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gpurhh device service'");
	like(($s->result)[1], qr/58000: could not finish the query on the device/, "$mode: the service ends in the middle");
	$nothing_lost->('it');

	# the groups are there, and are returned slowly: an error, or all of them
	foreach my $wait_s (0.3, 0.6, 1)
	{
		my $slowly_out = 'SELECT count(*), sum(k), sum(s) FROM'
		  . " (SELECT k, sum(v) AS s FROM p GROUP BY k) q WHERE slowly(k, 0.1)";
		my $expected = $s->query("$OFF SELECT count(*), sum(k), sum(s) FROM (SELECT k, sum(v) AS s FROM p GROUP BY k) q");

		$s->query($ON);
		like($s->query("EXPLAIN (COSTS OFF) $slowly_out"), qr/Gather.*Parallel Custom Scan/s, "$mode: workers emit");
		$s->send($slowly_out);
		usleep($wait_s * 1_000_000);
		$admin->query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gpurhh device service'");
		my ($out, $err) = $s->result;
		ok( $err =~ /58000: could not finish the query on the device/ || ($err eq '' && $out eq $expected),
			"$mode: the service ends while groups are returned, after $wait_s s");
		$nothing_lost->('it');
	}

	# ---------- somebody else rests, with one of the pool's two blocks ----------

	if ($mode eq 'shared')
	{
		my $other = session($node);
		my $gated = 'SELECT g, count(*) FROM (SELECT gate(w, 90000, 1) AS g FROM t OFFSET 0) s GROUP BY 1';

		$other->query("$ON SET gpurhh.device_memory = '1MB'");
		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$other->send(digest_sql($gated));
		ok(wait_for_gate($admin, $other), 'a session stops with a refused batch');
		foreach my $participation ('on', 'off')
		{
			foreach my $digest (\&all_emit, \&leader_emits)
			{
				$s->query("SET parallel_leader_participation = $participation");
				same_parallel_answer($s, $digest->($quick), "the others' rows meet in one host table, leader $participation");
			}
			is(plan_properties($s, all_emit($slow))->{'Host Rows'}, 100000, 'all of them');
			cmp_ok(plan_properties($s, all_emit($slow))->{'Participants'}, '>=', 3, 'from all participants');
		}
		$s->query('RESET parallel_leader_participation');
		$admin->query('COMMIT');
		is(($other->result)[0], $s->query("$OFF " . digest_sql($gated)), 'and the one that stopped');
		$other->quit;
		$nothing_lost->('it');
	}
	$_->quit foreach $admin, $s;
}

# what participants could not hand over lay in files that are gone
my $data = $node->data_dir;
my @left = glob "$data/base/pgsql_tmp/*";
is("@left", '', 'no temporary file is left');

$node->stop;
done_testing();
