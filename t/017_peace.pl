# What one session does must not stop others: not by the keys it chooses, the
# cursors it leaves open, functions that sleep in the middle of its queries, or
# the memory it wants.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

# As packages of distributions start a server: its children are to be killed
# before itself where memory runs out.
my $adjusted = -w '/proc/self/oom_score_adj';
my $more = 0;
if ($adjusted)
{
	open my $fh, '<', '/proc/self/oom_score_adj' or die;
	$more = <$fh> + 1;
	$adjusted = $more <= 1000;
}
local $ENV{PG_OOM_ADJUST_FILE} = '/proc/self/oom_score_adj' if $adjusted;
local $ENV{PG_OOM_ADJUST_VALUE} = $more if $adjusted;

my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	"statement_timeout = '300s'");
my $admin = session($node);
my $s = session($node);
my $other = session($node);
$_->query($ON) foreach $s, $other;

# "Late Batches" of the query's GpuHashAggs, added up.
sub late_batches
{
	my ($session, $sql) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $sql");
	my @n = $plan =~ /"Late Batches": (\d+)/g;
	my $sum = 0;

	die "no GpuHashAgg in: $plan" if !@n;
	$sum += $_ foreach @n;
	return $sum;
}

# ---------- keys ----------

# unmix32() is the inverse of the hash without a seed: these keys were neighbours.
$admin->query(q{
CREATE FUNCTION unmix32(x bigint) RETURNS int LANGUAGE sql IMMUTABLE AS $$
	SELECT (CASE WHEN e >= 2147483648 THEN e - 4294967296 ELSE e END)::int
	FROM (SELECT x # (x >> 16) AS a) s1,
		LATERAL (SELECT (a::numeric * 1124208931 % 4294967296)::bigint AS b) s2,
		LATERAL (SELECT b # (b >> 15) # (b >> 30) AS c) s3,
		LATERAL (SELECT (c::numeric * 493478565 % 4294967296)::bigint AS d) s4,
		LATERAL (SELECT d # (d >> 16) AS e) s5 $$;
CREATE TABLE chosen AS SELECT unmix32(i) AS k FROM generate_series(0, 29999) i});
is(host_rows($s, 'SELECT k, count(*) FROM chosen GROUP BY k'), 0,
	'keys that somebody has chosen do not collide');
same_answer($s, 'SELECT k, count(*) FROM chosen GROUP BY k', 'and are right');
like(($other->try('SET gpurhh.max_probe_buckets = 65'))[1], qr/outside the valid range/,
	'a probe has a bound, whoever asks');

# ---------- cursors ----------

# Their groups are more than a block, so the device keeps each one's table.
my $many = 128;
$s->query('BEGIN');
$s->query(join ';', map { "DECLARE many_$_ CURSOR FOR $BY_K; FETCH 1 FROM many_$_" } 1 .. $many);
is(host_rows($other, $BY_K), 0, 'half-read cursors leave queries to other sessions');
like($s->query("EXPLAIN (ANALYZE, COSTS OFF) $BY_K"),
	qr/too many queries of the session use the device service/, 'and their own session is told');
$s->query('ROLLBACK');

# All groups of these are with the session after the first FETCH.
$s->query('BEGIN');
$s->query(join ';', map { "DECLARE few_$_ CURSOR FOR SELECT v, count(*) FROM t WHERE w < 1000 GROUP BY v; FETCH 1 FROM few_$_" } 1 .. $many);
is(host_rows($s, $BY_K), 0, 'cursors whose groups have been fetched keep nothing');
is($s->query("SELECT n_rows FROM drain('few_$_', NULL)"), 998, 'and go on') foreach 1, $many;
$s->query('ROLLBACK');

# ---------- blocks ----------

# Each call groups so many rows and stops in the middle of its input, before row stop_at, to
# call itself.  The last one sleeps.
$admin->query(q{
CREATE FUNCTION nest(depth int, n_rows int, stop_at int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	n_groups int;
BEGIN
	IF depth = 0 THEN
		PERFORM pg_advisory_xact_lock_shared(77);
		RETURN 0;
	END IF;
	SELECT count(*) INTO n_groups FROM (
		SELECT g, count(*) AS c FROM (
			SELECT i + CASE WHEN i = stop_at THEN nest(depth - 1, n_rows, stop_at) ELSE 0 END AS g
			FROM generate_series(1, n_rows) i) x
		GROUP BY g) y;
	RETURN n_groups - n_rows;
END $$});
$admin->query('SELECT pg_advisory_lock(77)');
$s->send('SELECT nest(20, 3, 2)');
ok(wait_for_gate($admin, $s), 'a function sleeps within GROUP BYs within GROUP BYs');
is(host_rows($other, $BY_K), 0, 'others get blocks');
same_answer($other, $BY_K, 'and their answer');
$admin->query('SELECT pg_advisory_unlock(77)');
is(($s->result)[0], '0', 'the function has an answer, too');

# More sessions than there are blocks, each with a row of its input.
my @sleepers = map { session($node) } 1 .. 18;
$admin->query('SELECT pg_advisory_lock(77)');
foreach my $sleeper (@sleepers)
{
	$sleeper->query($ON);
	$sleeper->send('SELECT g % 3 AS k, count(*) FROM (SELECT gate(i, 7, 77) AS g FROM generate_series(1, 9) i) x GROUP BY 1 ORDER BY 1');
}
ok(wait_for_gate($admin, $_), 'a session sleeps with a half-read input') foreach @sleepers;
# large, since small queries stay in their sessions where so many others read
is(host_rows($other, 'SELECT k, sum(v) FROM t, generate_series(1, 10) GROUP BY k'), 0, 'others get blocks');
$admin->query('SELECT pg_advisory_unlock(77)');
is(($_->result)[0], "0|3\n1|3\n2|3", 'it has its answer') foreach @sleepers;
$_->quit foreach @sleepers;

# Batches that the device refused wait for a session that sleeps: the last one of each of
# these was handed over just before the row that sleeps.  Others once waited for a second,
# and then did without the device.
$s->query("SET gpurhh.device_memory = '1MB'; SET gpurhh.batch_rows = 64");
$admin->query('SELECT pg_advisory_lock(77)');
$s->send('SELECT nest(20, 90000, 89985)');
ok(wait_for_gate($admin, $s), 'a function sleeps within GROUP BYs whose batches are refused');
is(late_batches($other, $BY_K), 0, 'others need not wait for its blocks');
is(host_rows($other, $BY_K), 0, 'and use the device');
cmp_ok($other->query('SELECT late_batches FROM gpurhh_stat'), '>', 0, 'it does without what it keeps too many of');
$admin->query('SELECT pg_advisory_unlock(77)');
is(($s->result)[0], '0', 'and has an answer, too');

# Of a parallel query, whose batches come back to one process, which sleeps.  What others
# free all the time is none of its blocks: its workers once waited as long as others ran.
# The pool has more blocks than such a query may have.
$_->quit foreach $s, $other, $admin;
$node->append_conf('postgresql.conf', "gpurhh.pool_size = '32MB'");
$node->restart;
($admin, $s, $other) = map { session($node) } 1 .. 3;
$_->query($ON) foreach $s, $other;
$s->query("SET gpurhh.device_memory = '1MB'; SET gpurhh.batch_rows = 64");
$s->query('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0.001; SET min_parallel_table_scan_size = 0; SET gpurhh.row_cost = 0.001');
$admin->query(q{
CREATE TABLE p WITH (parallel_workers = 2) AS SELECT i AS w FROM generate_series(1, 200000) i;
ANALYZE p;
CREATE FUNCTION stops_in(pid int, i int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
	IF pg_backend_pid() = pid THEN
		PERFORM pg_advisory_xact_lock_shared(77);
	END IF;
	RETURN i;
END $$});
my $leader = $s->backend_pid;
my $stops = "SELECT g, count(*) AS n FROM (SELECT stops_in($leader, w) AS g FROM p) x GROUP BY g";
like($s->query("EXPLAIN (COSTS OFF) $stops"), qr/^Gather\n.*Parallel Custom Scan \(GpuHashAgg\)/s, 'the leader emits');
$admin->query('SELECT pg_advisory_lock(77)');
$s->send("CREATE TABLE stopped AS $stops");
ok(wait_for_gate($admin, $s), 'the leader of a parallel query sleeps');
ok(wait_until(sub {
			$other->query($BY_K);
			$admin->query("SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $leader AND pid <> $leader") eq '0';
		}, 'the workers'), 'its workers come to their end');
$admin->query('SELECT pg_advisory_unlock(77)');
is(($s->result)[1], '', 'and so does it');
is($s->query('SELECT count(*), sum(g), sum(n) FROM stopped'), '200000|20000100000|200000', 'with the right groups');

# ---------- memory ----------

my ($service) = service_pids($node);
ok(defined $service, 'there is a service');
is($admin->query("SELECT free_bytes <= total_bytes / 4 FROM gpurhh_devices() WHERE device = 'cpu'"), 't',
	'by default the CPU device leaves most of the memory to others');
SKIP: {
	skip 'oom_score_adj cannot be set here', 1 if !$adjusted;
	open my $fh, '<', "/proc/$service/oom_score_adj" or die;
	is(<$fh> + 0, $more, 'the service is as likely to be killed as other children of the postmaster');
}

$_->quit foreach $s, $other, $admin;
$node->stop;
done_testing();
