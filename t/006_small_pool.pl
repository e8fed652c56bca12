# The smallest pool there is, two blocks, is enough for everything: nested
# GROUP BYs, many cursors half fetched, many sessions.  Nobody keeps a block while
# a child plan makes rows, and who finds that all blocks rest works without.

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
	# a query that hangs is an error soon enough
	"statement_timeout = '120s'");

# Each level reads the one below while that returns its groups.
my $nested = q{
SELECT b % 10 AS c, count(*), sum(n) FROM (
	SELECT a % 1000 AS b, count(*) AS n FROM (
		SELECT w % 30000 AS a, sum(v) FROM t GROUP BY 1) one
	GROUP BY 1) two
GROUP BY 1};

# Both sides of the join group at the same time.
my $joined = q{
SELECT x.k, x.s, y.s FROM
	(SELECT k, sum(v) AS s FROM t GROUP BY k) x JOIN
	(SELECT k, count(*) AS s FROM t WHERE w % 3 = 0 GROUP BY k) y USING (k)};

# The outer one's block is half full whenever the inner one runs anew.
my $lateral = q{
SELECT i % 3 AS a, sum(n) FROM generate_series(1, 3) i,
	LATERAL (SELECT w % 1000 AS b, count(*) + i AS n FROM t WHERE w <= i * 1000 GROUP BY 1) inside
GROUP BY 1};

foreach my $mode ('private', 'shared')
{
	if ($mode eq 'shared')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
		$node->restart;
	}
	my $s = session($node);

	# ---------- nested ----------

	$s->query($ON);
	is(uses_node($s, $nested), 3, "$mode: three levels");
	is(uses_node($s, $joined), 2, 'two beside each other');
	is(uses_node($s, $lateral), 2, 'one within the other');
	same_answer($s, $nested, 'three levels');
	same_answer($s, $joined, 'two beside each other');
	same_answer($s, $lateral, 'one within the other');
	is(host_rows($s, $BY_K), 0, 'one query alone needs no help of the host');

	# ---------- twenty cursors half fetched ----------

	$s->query($OFF);
	my $expected = $s->query(
		"SELECT count(*) * 20, sum(hashtextextended(q::text, 0)::numeric) * 20 FROM ($BY_K) q");
	$s->query($ON);
	$s->query(join ";\n", 'BEGIN', map { "DECLARE c$_ CURSOR FOR $BY_K" } 1 .. 20);
	# a part of each in turn, three times
	my $parts = join ', ',
	  map { my $n = $_; map { "('c$_', $n)" } 1 .. 20 } 1000, 5000, 'NULL';
	is( $s->query("SELECT sum(n_rows), sum(hash) FROM (VALUES $parts) p (c, n), LATERAL drain(c::refcursor, n)"),
		$expected, "$mode: twenty cursors in turn return their rows");
	$s->query('COMMIT');
	same_answer($s, $nested, 'the next query');

	# ---------- twenty sessions ----------

	my @queries = ($BY_K, $nested, $joined, $lateral);
	my @answers = map { $s->query("$OFF " . digest_sql($_)) } @queries;
	my @s = map { session($node) } 1 .. 20;
	my $wrong = 0;

	$_->query($ON) foreach @s;
	$s[$_]->send(digest_sql($queries[ $_ % @queries ])) foreach 0 .. $#s;
	foreach my $i (0 .. $#s)
	{
		my ($out, $err) = $s[$i]->result;

		next if $out eq $answers[ $i % @queries ] && $err eq '';
		$wrong++;
		diag("session $i: $out $err, expected $answers[ $i % @queries ]");
	}
	is($wrong, 0, "$mode: twenty sessions have core's answers");

	# ---------- somebody stops on the way ----------

	if ($mode eq 'shared')
	{
		my $admin = session($node);
		my $gated = q{SELECT g % 10, count(*)
			FROM (SELECT gate(w, 100, 1) AS g FROM t OFFSET 0) s GROUP BY 1};

		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$s[0]->send(digest_sql($gated));
		ok(wait_for_gate($admin, $s[0]), 'a session stops with a batch half full');
		same_answer($s, $_, 'the others go on') foreach $BY_K, $nested, $joined;
		# this one filled a block of the pool, and the others went to the host
		is(host_rows($s, $BY_K), 0, 'on the device');
		$admin->query('COMMIT');
		is(($s[0]->result)[0], $s->query("$OFF " . digest_sql($gated)), 'and the one that stopped');
		$s->query($ON);

		# A batch that the device refused waits for its session, which rests; so the
		# only other block is that of results.
		my $refused = q{SELECT g, count(*)
			FROM (SELECT gate(w, 90000, 1) AS g FROM t OFFSET 0) s GROUP BY 1};

		# of the whole table there are some 30 blocks of groups
		$s[1]->query('BEGIN; DECLARE c CURSOR FOR SELECT w, sum(v), count(*) FROM t GROUP BY w; FETCH 1 FROM c');
		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$s[0]->query("SET gpurhh.device_memory = '1MB'");
		$s[0]->send(digest_sql($refused));
		ok(wait_for_gate($admin, $s[0]), 'a session stops with a refused batch');
		same_answer($s, $BY_K, 'the others go on');
		like($s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $BY_K"),
			qr/Host Rows: 100000  Late Batches: \d+ \(no block of the pool became free\)/,
			'on the host, and are told why');
		cmp_ok($s->query('SELECT late_batches FROM gpurhh_stat'), '>', 0, 'so is gpurhh_stat');

		# The third level has batches of its own, which EXPLAIN did not count.
		my $third = 'SELECT k, count(DISTINCT v), count(DISTINCT w) FROM t GROUP BY k';
		my $late = $s->query('SELECT late_batches FROM gpurhh_stat');
		my ($shown) = $s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $third") =~ /"Late Batches": (\d+)/;
		is($shown, $s->query('SELECT late_batches FROM gpurhh_stat') - $late, 'of all levels');
		same_answer($s, $third, 'with the right groups');

		# Each time that a part of the cursor is read, the other block comes free, but only
		# for its next results.  A session once took that for one that it might have soon,
		# and waited as long as others read.
		my $n_read;

		$s->send(digest_sql($BY_K));
		do
		{
			usleep(250_000);
			$n_read = $s[1]->query("SELECT n_rows FROM drain('c', 3000)");
		} while ($n_read == 3000
			&& $s[2]->query('SELECT state FROM pg_stat_activity WHERE pid = ' . $s->backend_pid) eq 'active');
		is($n_read, 3000, 'one that waits for a block does without, also while others read results');
		is(($s->result)[0], $answers[0], 'with the right groups');
		$s[1]->query('COMMIT');

		$s->send($BY_K);
		ok(wait_until(sub {
					$admin->query("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = " . $s->backend_pid) eq 't';
				}), 'one waits for a block');
		$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')');
		like(($s->result)[1], qr/57014/, 'and is canceled');
		$admin->query('COMMIT');
		is(($s[0]->result)[0], $s->query("$OFF " . digest_sql($refused)), 'and the one that stopped');
		$s->query($ON);
		is(host_rows($s, $BY_K), 0, 'then there are blocks again');
		$admin->quit;
	}
	$_->quit foreach $s, @s;
}

$node->stop;
done_testing();
