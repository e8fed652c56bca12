# Joins that the device does below GpuHashAgg, when things go wrong: the service ends, the
# query is cancelled, memory does not suffice, blocks of the pool are few; when the join
# is read anew, as parameters change; and in parallel plans.  Each time there is core's
# answer or a clear error, soon, and nothing stays taken: the pool has two blocks, so that
# one lost block would show as build sides for which no block became free.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;
use Time::HiRes qw(time usleep);

use constant QUERY_SLOTS => 128;
use constant SESSION_SLOTS => 32;	# that one session may have

# The promise is a fraction of a second; a test machine may be busy.
use constant SOON_S => 5;

my $lost = qr/^ERROR:  58000: could not finish the query on the device/m;
my $crashed = qr/terminating connection because of crash of another server process|server closed the connection/;

my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	"gpurhh.pool_size = '256kB'",
	'gpurhh.enable_hashjoin = on',
	'restart_after_crash = on',
	# a query that hangs is an error soon enough
	"statement_timeout = '60s'",
	'max_parallel_workers = 16',
	'max_parallel_workers_per_gather = 0',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0.001',
	'min_parallel_table_scan_size = 0');

# dim has four of five keys of t, and more rows than the pool has room for.
$node->safe_psql('postgres', q{
CREATE TABLE dim AS
	SELECT i AS k, i % 50 AS g, 'name ' || i % 200 AS name FROM generate_series(0, 19999) i;
CREATE TABLE few AS SELECT i AS k, i % 3 AS g FROM generate_series(0, 9) i;
CREATE TABLE none (k int, g int);
ANALYZE dim, few, none;
});

my $joined = 'SELECT g, count(*), sum(v), max(w) FROM t JOIN dim USING (k) GROUP BY g';
my $many = 'SELECT w, g, count(*), sum(v) FROM t LEFT JOIN dim USING (k) GROUP BY w, g';

# Each stops at a gate: when a part of its build side has been fed; when the device has
# the build side and nothing has been probed; when a part of the probe side has been fed.
my %gated = (
	build => q{SELECT g, count(*), sum(v) FROM t
		JOIN (SELECT stable_gate(k, 15000, 1)::int AS k, g FROM dim OFFSET 0) d USING (k) GROUP BY g},
	between => q{SELECT g, count(*), sum(v) FROM t JOIN dim USING (k)
		WHERE v < (SELECT gate(500, 500, 1)) GROUP BY g},
	probe => q{SELECT g, count(*), sum(v) FROM t JOIN dim USING (k)
		WHERE CASE WHEN w <= 50000 THEN true ELSE v < (SELECT gate(500, 500, 1)) END
		GROUP BY g});
my @places = qw(build between probe);

my $admin = session($node);
my $s = session($node);
my %answer;

# "Device Joins" of each GpuHashAgg that has joins below, with the reason of a 0.
sub device_joins
{
	my ($session, $sql) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");

	return $plan =~ /Device Joins: (.*)/g;
}

# A figure of EXPLAIN ANALYZE, added up over the plan's nodes.
sub figure
{
	my ($session, $sql, $name) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
	my $sum = 0;

	$sum += $_ foreach $plan =~ /\Q$name\E: (\d+)/g;
	return $sum;
}

# The device does the joins, n of them, and the rows are core's.
sub joins_right
{
	my ($session, $sql, $n, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$session->query($ON);
	is(join(', ', device_joins($session, $sql)), $n, "$name: on the device");
	same_answer($session, $sql, $name);
	return;
}

# The next query is right, and finds all blocks free.  The service frees what a query had
# after the query's end, so look more than once.
sub next_query
{
	my ($session, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($session->query(digest_sql($joined)), $answer{$joined}, "$name: the next query");
	ok(wait_until(sub {
				join(', ', device_joins($session, $joined)) eq '1'
				  && figure($session, $joined, 'Host Rows') == 0;
			}, 'all blocks to be free'), 'no block is lost');
	return;
}

# All slots are free: cursors of so many sessions find one for each query and build side.
sub all_slots_free
{
	my ($name) = @_;
	my @sessions;
	my $n = 0;

	ok(wait_until(sub {
				@sessions = map { session($node) } 1 .. QUERY_SLOTS / SESSION_SLOTS;
				$n = 0;
				foreach my $session (@sessions)
				{
					my $before = $session->query('SELECT queries FROM gpurhh_stat');

					$session->query($ON);
					$session->query(join ";\n", 'BEGIN',
						(map { "DECLARE c$_ CURSOR FOR $many; FETCH 1 FROM c$_" }
							1 .. SESSION_SLOTS / 2));
					$n += $session->query('SELECT queries FROM gpurhh_stat') - $before;
				}
				$_->quit foreach @sessions;
				return $n == QUERY_SLOTS;
			}, 'all slots to be free'), $name)
	  or diag("$n of " . QUERY_SLOTS);
	return;
}

sub end_service
{
	my ($pid) = service_pids($node);

	$admin->query("SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { !alive($pid) }, "the end of process $pid"), 'the service ends');
	return;
}

# Leaves the query of a place at its gate.
sub stop_at_gate
{
	my ($place) = @_;

	$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
	$s->send(digest_sql($gated{$place}));
	ok(wait_for_gate($admin, $s), "$place: stopped");
	return;
}

sub new_s
{
	$s = session($node);
	$s->query($ON);
	return;
}

$s->query($OFF);
$answer{$_} = $s->query(digest_sql($_)) foreach $joined, $many, values %gated;
joins_right($s, $_, 1, 'before') foreach $joined, $many, values %gated;
$s->query($ON);

# ---------- the service ends ----------

foreach my $place (@places)
{
	stop_at_gate($place);
	end_service();
	$admin->query('COMMIT');
	my ($out, $err) = $s->result;
	like($err, $lost, "$place: the service ends, an error");
	is($out, '', 'and no row');
	is($s->query(digest_sql($gated{$place})), $answer{ $gated{$place} }, 'the same query once more');
	next_query($s, $place);
}

# While the device joins: each row has 100 matches, so that it takes some time.
$admin->query('CREATE TABLE same AS SELECT i % 1000 AS v, i AS n FROM generate_series(1, 100000) i; ANALYZE same');
my $long = 'SELECT n % 7000 AS m, w % 2, count(*), sum(w) FROM t JOIN same USING (v) GROUP BY 1, 2';
joins_right($s, $long, 1, 'a long query');
$s->query($ON);
$answer{$long} = $s->query(digest_sql($long));
foreach my $n_probed (0, 20_000, 60_000)
{
	# a new service's figures start at zero
	$s->query($joined);
	my $rows = $admin->query('SELECT rows_fed FROM gpurhh_stat') + 100_000 + $n_probed;

	$s->send(digest_sql($long));
	wait_until(sub { $admin->query('SELECT coalesce(rows_fed, 0) FROM gpurhh_stat') > $rows }, 'rows to be probed');
	end_service();
	my ($out, $err) = $s->result;
	ok($err =~ $lost || ($err eq '' && $out eq $answer{$long}), "more than $n_probed rows probed: an error, or all groups")
	  or diag("$out $err");
}
next_query($s, 'the long query');

# Rows without a match, each of which has 100 in the next join: these take nearly all the time,
# and come when all rows have been fed.
my $tail = 'SELECT s.n % 7000 AS m, count(*), count(t.k), sum(u.n) FROM t
	FULL JOIN (SELECT v + 100000 AS v, n, v AS x FROM same OFFSET 0) u ON t.v = u.v LEFT JOIN same s ON u.x = s.v GROUP BY 1';
joins_right($s, $tail, 2, 'rows without a match');
$s->query($ON);
$answer{$tail} = $s->query(digest_sql($tail));
foreach my $how ('the service ends', 'cancelled')
{
	$s->query($joined);
	my $rows = $admin->query('SELECT rows_fed FROM gpurhh_stat') + 300_000;

	$s->send(digest_sql($tail));
	wait_until(sub { $admin->query('SELECT coalesce(rows_fed, 0) FROM gpurhh_stat') >= $rows }, 'all rows to be fed');
	$how eq 'cancelled' ? $admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')') : end_service();
	my ($out, $err) = $s->result;
	ok($err =~ ($how eq 'cancelled' ? qr/57014/ : $lost) || ($err eq '' && $out eq $answer{$tail}),
		"rows without a match, $how: an error, or all groups")
	  or diag("$out $err");
	next_query($s, "rows without a match, $how");
}

foreach my $n (1000, 60_000)
{
	is($s->query("BEGIN; DECLARE c CURSOR FOR $many; SELECT n_rows FROM drain('c', $n)"), $n, 'output: a part fetched');
	end_service();
	my ($out, $err) = $s->try("SELECT n_rows FROM drain('c', NULL)");
	like($err, $lost, 'the rest is an error');
	is($out, '', 'and no row');
	$s->query('ROLLBACK');
	next_query($s, 'output');
}

# ---------- killed ----------

foreach my $place (@places, 'output')
{
	if ($place eq 'output')
	{
		$s->query("BEGIN; DECLARE c CURSOR FOR $many; FETCH 1 FROM c");
	}
	else
	{
		stop_at_gate($place);
	}
	my ($pid) = service_pids($node);
	kill 'KILL', $pid;
	my ($out, $err) = $place eq 'output' ? $s->try("SELECT drain('c', NULL)") : $s->result;
	is($out, '', "$place: the service is killed, no row");
	like($err, $crashed, 'the connection ends');
	wait_until(sub { !alive($admin->backend_pid) });
	$_->quit foreach $s, $admin;
	ok(wait_for_server($node), 'the server comes back');
	$admin = session($node);
	new_s();
	next_query($s, $place);
}

# ---------- cancel ----------

# Stops the service while it sleeps, so that it holds no lock.
sub pause_service
{
	my ($pid) = service_pids($node);
	my $sleeps = sub {
		return $admin->query("SELECT wait_event_type IS NOT NULL FROM pg_stat_activity WHERE pid = $pid") eq 't';
	};

	wait_until(sub {
			return 0 if !$sleeps->();
			kill 'STOP', $pid;
			return 1 if $sleeps->();
			kill 'CONT', $pid;
			return 0;
		}, 'the service to sleep');
	return $pid;
}

sub waits_for_service
{
	my $pid = $s->backend_pid;

	return wait_until(sub {
			$admin->query("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid") eq 't';
		}, 'a session that waits for the service');
}

# Each leaves the session waiting in its own way, with a service that does not answer.
my $tiny = 'SELECT g, count(*) FROM t JOIN few USING (k) WHERE v < (SELECT gate(500, 500, 1)) AND w < 100 GROUP BY g';
my %stop = (
	# for a block for the build side
	building => sub {
		my $pid = pause_service();
		$s->send($joined);
		return $pid;
	},
	# to be told whether the device joins
	deciding => sub {
		my $pid = pause_service();
		$s->send('SELECT g, count(*) FROM t JOIN few USING (k) GROUP BY g');
		return $pid;
	},
	# for a block for the probe side
	probing => sub {
		stop_at_gate('between');
		my $pid = pause_service();
		$admin->query('COMMIT');
		return $pid;
	},
	# for the map
	finishing => sub {
		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$s->send($tiny);
		wait_for_gate($admin, $s);
		my $pid = pause_service();
		$admin->query('COMMIT');
		return $pid;
	},
	# for groups
	returning => sub {
		$s->query("BEGIN; DECLARE c CURSOR FOR $many; FETCH 1 FROM c");
		my $pid = pause_service();
		$s->send("SELECT drain('c', NULL)");
		return $pid;
	});

foreach my $where (qw(building deciding probing finishing returning))
{
	foreach my $how ('cancel', 'timeout', 'terminate')
	{
		$s->query("SET statement_timeout = '1s'") if $how eq 'timeout';
		my $pid = $stop{$where}->();
		ok(waits_for_service(), "$where, $how: waits for the service");
		my $began = time;
		$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')') if $how eq 'cancel';
		$admin->query('SELECT pg_terminate_backend(' . $s->backend_pid . ')') if $how eq 'terminate';
		my ($out, $err) = $s->result;
		cmp_ok(time - $began, '<', SOON_S, 'it ends soon');
		like($err, $how eq 'cancel' ? qr/57014: canceling statement due to user request/ :
			$how eq 'timeout' ? qr/57014: canceling statement due to statement timeout/ :
			qr/57P01: terminating connection due to administrator command/, 'with its error');
		is($out, '', 'and no row');
		kill 'CONT', $pid;
		if ($how eq 'terminate')
		{
			$s->quit;
			new_s();
		}
		$s->query('ROLLBACK');
		$s->reset_timeout;
		next_query($s, "$where, $how");
		is((service_pids($node))[0], $pid, 'the service is the same');
	}
}

# At a gate no process waits for the service, but there are batches with the device.
foreach my $place (@places)
{
	foreach my $how ('cancel', 'terminate')
	{
		stop_at_gate($place);
		$admin->query("SELECT pg_${how}_backend(" . $s->backend_pid . ')');
		like(($s->result)[1], $how eq 'cancel' ? qr/57014/ : qr/57P01/, "$place, $how: the error");
		$admin->query('COMMIT');
		if ($how eq 'terminate')
		{
			$s->quit;
			new_s();
		}
		next_query($s, "$place, $how");
	}
}
like(($s->try('SELECT g, sum(1 / (v - v + g - 20)) FROM t JOIN dim USING (k) GROUP BY g'))[1],
	qr/22012: division by zero/, 'an error of an expression of both sides');
like(($s->try('SELECT g, sum(1000 / v) FROM t JOIN dim USING (k) GROUP BY g'))[1],
	qr/22012: division by zero/, 'an error of the probe side, for a row with a match');
next_query($s, 'errors');
all_slots_free('no query and no build side has kept its slot');

# Cursors whose groups are all fetched need no build sides any more.
{
	my $n = SESSION_SLOTS + 8;

	$s->query('BEGIN');
	$s->query(join ';', map { "DECLARE c$_ CURSOR FOR $joined; FETCH 1 FROM c$_" } 1 .. $n);
	is(join(', ', device_joins($s, $joined)), '1', "$n cursors that have their last block leave room for a join");
	is($s->query("SELECT n_rows FROM drain('c$_', NULL)"), 49, 'and go on') foreach 1, $n;
	$s->query('COMMIT');
}

# ---------- memory ----------

$admin->query(q{
CREATE TABLE big AS SELECT i::bigint AS w, i % 50 AS g, i % 100000 AS h FROM generate_series(1, 500000) i;
CREATE TABLE fan AS SELECT i % 5 AS k, i AS n FROM generate_series(0, 49999) i;
ANALYZE big, fan;
});

# At 1 MB the build side does not fit (no room), all fits (fits), or the groups do not
# fit (refused); some rows have 10,000 matches.  At 64 MB all fits.
my %memory = (
	'SELECT few.g, count(*), sum(v) FROM t JOIN few USING (k) GROUP BY few.g' => 'fits',
	'SELECT w, few.g, count(*) FROM t LEFT JOIN few USING (k) GROUP BY w, few.g' => 'refused',
	'SELECT w % 7, count(*) FROM t WHERE EXISTS (SELECT FROM few WHERE few.k = t.k) GROUP BY 1' => 'fits',
	'SELECT w, count(*), sum(v) FROM t WHERE NOT EXISTS (SELECT FROM few WHERE few.k = t.k) GROUP BY w' => 'refused',
	$joined => 'fits',
	$many => 'refused',
	'SELECT g, count(*), sum(v) FROM t LEFT JOIN big USING (w) GROUP BY g' => 'no room',
	'SELECT h, count(*), sum(v) FROM t LEFT JOIN big USING (w) GROUP BY h' => 'no room',
	'SELECT w % 10, count(*), sum(n) FROM t JOIN (SELECT * FROM fan WHERE n < 100 OFFSET 0) f USING (k) GROUP BY 1' => 'fits',
	'SELECT w, n, count(*) FROM t JOIN (SELECT * FROM fan WHERE k < 2 OFFSET 0) f USING (k) GROUP BY w, n' => 'refused',
);
my $fan_out = 'SELECT w, n, few.g, count(*) FROM t JOIN (SELECT * FROM fan WHERE k < 2 OFFSET 0) f USING (k) JOIN few USING (k) GROUP BY w, n, few.g';

$memory{$fan_out} = 'refused';
foreach my $sql (sort keys %memory)
{
	my $digest = digest_sql($sql);

	$s->query($OFF);
	my $expected = $s->query($digest);
	$s->query($ON);
	# what each pass over the probe side costs has to be seen
	$s->query('SET gpurhh.row_cost = 0.001') if $memory{$sql} eq 'no room';
	foreach my $megabytes (1, 4, 64)
	{
		my $rung = $megabytes == 1 ? $memory{$sql} : $megabytes == 64 ? 'fits' : undef;

		$s->query("SET gpurhh.device_memory = '${megabytes}MB'");
		is($s->query($digest), $expected, "$megabytes MB: $sql");
		next if !defined $rung;
		my $plan = $s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
		my ($joins) = $plan =~ /Device Joins: (.*)/;
		my ($host_rows) = $plan =~ /Host Rows: (\d+)/;

		if ($rung eq 'no room')
		{
			like($joins, qr/^1$/, 'the device joins');
			like($plan, qr/, \d+ passes$/m, 'a build side comes in parts');
			next;
		}
		like($joins, qr/^[12]$/, 'the device joins');
		cmp_ok($host_rows, $rung eq 'refused' ? '>' : '==', 0, $rung eq 'refused' ? 'and refuses rows' : 'all rows');
	}
}
$s->query('RESET gpurhh.device_memory');

# ---------- few blocks, many sessions ----------

{
	my @queries = ($joined, $many, $fan_out,
		'SELECT name, count(*), sum(v) FROM t LEFT JOIN dim USING (k) GROUP BY name',
		'SELECT g, count(*) FROM t JOIN none USING (k) GROUP BY g');
	my @answers = map { $s->query("$OFF " . digest_sql($_)) } @queries;
	my @s = map { session($node) } 1 .. 10;
	my $wrong = 0;

	foreach my $i (0 .. $#s)
	{
		$s[$i]->query($ON);
		$s[$i]->query("SET gpurhh.device_memory = '1MB'") if $i % 2 == 0;
		# these rest on a cursor that is half read
		$s[$i]->query("BEGIN; DECLARE c CURSOR FOR $many; FETCH 1 FROM c") if $i % 3 == 0;
	}
	foreach my $round (0, 1)
	{
		$s[$_]->send(digest_sql($queries[ ($_ + $round) % @queries ])) foreach 0 .. $#s;
		foreach my $i (0 .. $#s)
		{
			my ($out, $err) = $s[$i]->result;

			next if $out eq $answers[ ($i + $round) % @queries ] && $err eq '';
			$wrong++;
			diag("session $i: $out $err, expected $answers[ ($i + $round) % @queries ]");
		}
	}
	is($wrong, 0, 'sessions that join at the same time have core\'s answers');
	$_->quit foreach @s;
	$s->query($ON);
	next_query($s, 'many sessions');
}

# A loop over groups that are half read, in which there are joins; the outer one has
# refused batches, too.
$admin->query(q{
CREATE FUNCTION nested(depth int, OUT n bigint, OUT s numeric) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	r record;
	i int := 0;
	inside record;
BEGIN
	n := 0;
	s := 0;
	FOR r IN SELECT w, d.g, count(*) AS c FROM t LEFT JOIN dim d USING (k) GROUP BY w, d.g LOOP
		i := i + 1;
		EXIT WHEN i > 20;
		SELECT count(*) AS n, sum(q.c) AS c INTO inside FROM
			(SELECT dim.g, count(*) AS c FROM t JOIN dim USING (k) WHERE t.w <= i * 1000 GROUP BY dim.g) q;
		n := n + inside.n;
		s := s + inside.c;
		SELECT count(*) AS n, sum(q.c) AS c INTO inside FROM
			(SELECT none.g, count(*) AS c FROM t LEFT JOIN none USING (k) WHERE t.w <= i * 1000 GROUP BY none.g) q;
		s := s + inside.c;
		IF i % 7 = 0 AND depth > 0 THEN
			SELECT * INTO inside FROM nested(depth - 1);
			s := s + inside.s;
		END IF;
	END LOOP;
END $$});
$s->query($OFF);
{
	my $expected = $s->query('SELECT * FROM nested(1)');

	$s->query($ON);
	foreach my $megabytes (1, 64)
	{
		$s->query("SET gpurhh.device_memory = '${megabytes}MB'");
		is($s->query('SELECT * FROM nested(1)'), $expected, "joins within a loop over groups, $megabytes MB");
	}
	$s->query('RESET gpurhh.device_memory');
	next_query($s, 'loops');
}

# Two sessions have their build sides, and then rest in the middle of the probe side, each
# with a batch that the device has refused, if they may.  If these were all blocks there
# are, nobody else could fetch a group.
{
	my $resting = q{SELECT w, g, count(*) FROM t LEFT JOIN dim USING (k)
		WHERE v >= (SELECT gate(0, 0, 2)) AND
			CASE WHEN w <= 90000 THEN true ELSE v < (SELECT gate(500, 500, 1)) END GROUP BY w, g};
	my @resting = map { session($node) } 1 .. 2;
	my $other_admin = session($node);

	$s->query($OFF);
	my $expected = $s->query(digest_sql($resting));
	$s->query($ON);
	$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
	$other_admin->query('BEGIN; SELECT pg_advisory_xact_lock(2)');
	foreach my $other (@resting)
	{
		$other->query("$ON SET gpurhh.device_memory = '1MB'; SET statement_timeout = 0");
		$other->send(digest_sql($resting));
		ok(wait_for_gate($admin, $other), 'a session has its build side');
	}
	$other_admin->query('COMMIT');
	foreach my $other (@resting)
	{
		my $pid = $other->backend_pid;

		ok(wait_until(sub {
					$admin->query("SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted AND pid = $pid") eq 't';
				}), 'and rests in the middle of the probe side');
	}
	$s->query("SET statement_timeout = '20s'");
	# many rows, as a session with few does them itself while others keep the device busy
	is(($s->try('SELECT count(*), sum(n) FROM (SELECT h, count(*) AS n FROM big GROUP BY h) q'))[0],
		'100000|500000', 'others go on');
	is(($s->try('SELECT g, count(*) FROM big LEFT JOIN none USING (g) GROUP BY g HAVING g = 7'))[0],
		'7|10000', 'also those that join');
	$s->reset_timeout;
	$admin->query('COMMIT');
	is(($_->result)[0], $expected, 'and so do they') foreach @resting;
	$_->quit foreach @resting, $other_admin;
	next_query($s, 'resting sessions');
}

# ---------- parameters and rescans ----------

$admin->query(q{
CREATE TABLE odd_dim AS SELECT * FROM unnest(ARRAY(
	SELECT ROW(g, g % 20, g % 7 + 0.125 * (g % 2)) FROM generate_series(0, 4999) g)) q(k int, g int, n numeric(10,2));
CREATE TABLE odd_t AS SELECT * FROM unnest(ARRAY(
	SELECT ROW(g % 7000, g, CASE WHEN g % 1000 = 0 THEN 1.125 ELSE g % 50 + 0.25 END) FROM generate_series(1, 50000) g)) q(k int, v int, n numeric(10,2));
CREATE TABLE strings AS SELECT k, w, md5((w % 20000)::text) || repeat('x', 30) AS s FROM t;
CREATE TABLE pages (k int, g int, filler text) WITH (fillfactor = 10);
INSERT INTO pages SELECT i, i % 50, repeat('x', 300) FROM generate_series(0, 4999) i;
ANALYZE odd_dim, odd_t, strings, pages;
});

# What each run of a rescan reads depends on a parameter of the build side, of the probe
# side, of both, or of neither.  LIMIT makes a plan that does not begin anew by itself.
my %sides = (
	build => ['t', '(SELECT * FROM dim WHERE g > i * 10 OFFSET 0)'],
	probe => ['(SELECT * FROM t WHERE w > i * 20000)', '(SELECT * FROM dim LIMIT 15000)'],
	both => ['(SELECT * FROM t WHERE w > i * 20000)', '(SELECT * FROM dim WHERE g <> i LIMIT 15000)'],
	neither => ['t', '(SELECT * FROM dim LIMIT 15000)'],
	'computed left' => ['(SELECT k, v, w, 1000 / v AS x FROM t WHERE v <> 0 AND w > i * 20000)', '(SELECT * FROM dim LIMIT 15000)'],
);
foreach my $side (sort keys %sides)
{
	my ($probe, $build) = @{ $sides{$side} };
	my $group = "SELECT d.g + i * 0 AS g, count(*) AS c, sum(t.v) AS s FROM $probe t JOIN $build d USING (k) GROUP BY d.g";
	my $lateral = "SELECT i, q.* FROM generate_series(1, 4) i, LATERAL ($group) q";
	my $subquery = "SELECT i, (SELECT sum(c * s) FROM ($group) q) FROM generate_series(1, 4) i";

	$s->query($ON);
	like($s->query("EXPLAIN $lateral"), qr/Device Joins: 1/, "rescans, $side: joins");
	# 64: the hash tables of core do not spill, so it keeps them
	foreach my $megabytes (64, 1)
	{
		$s->query("SET gpurhh.device_memory = '${megabytes}MB'; SET work_mem = '64MB'");
		same_answer($s, $lateral, "rescans, $side, $megabytes MB: LATERAL");
		same_answer($s, $subquery, 'a correlated subquery');
	}
	$s->query('RESET gpurhh.device_memory; RESET work_mem');
}

# Core joined in the first run, kept its Hash node's table, and left an exhausted plan; the
# next run took the build side for empty.
$s->query("$ON SET gpurhh.device_memory = '1MB'; SET work_mem = '64MB'; SET gpurhh.row_cost = 0.001");
my $kept = q{SELECT i, q.* FROM generate_series(1, 4) i, LATERAL (
	SELECT g, count(*), sum(v) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) t
	JOIN (SELECT k, g FROM dim UNION ALL SELECT x, x FROM generate_series(100000, 200000) x) d USING (k)
	WHERE w <> i * 20000 GROUP BY g) q};
like(join(', ', device_joins($s, $kept)), qr/^0 \(/, 'the device has no room for a build side');
same_answer($s, $kept, 'core joins in each run');
$s->query('RESET gpurhh.device_memory; RESET work_mem');

# ---------- subqueries, prepared statements, cursors ----------

joins_right($s, $_, 1, $_) foreach
	'SELECT g, count(*) FROM t JOIN dim USING (k) WHERE v < (SELECT max(g) * 3 FROM few) GROUP BY g',
	'SELECT g, count(*) FROM t JOIN (SELECT * FROM dim WHERE g > (SELECT max(g) FROM few)) d USING (k) GROUP BY g';
{
	my $execute = 'SELECT count(*), sum(hashtextextended(q::text, 0)) FROM held q';
	my $prepare = q{PREPARE p(int, int) AS
		SELECT d.g, count(*), sum(v) FROM t JOIN (SELECT * FROM dim WHERE g > $1) d USING (k) WHERE w > $2 GROUP BY d.g};
	my @answers;

	foreach my $mode ($OFF, $ON)
	{
		my @of_mode;

		$s->query("$mode SET plan_cache_mode = force_generic_plan; $prepare");
		like($s->query('EXPLAIN EXECUTE p(1, 1)'), qr/Device Joins: 1/, 'a generic plan') if $mode eq $ON;
		push @of_mode, $s->query("CREATE TEMP TABLE held AS EXECUTE p($_, $_ * 1000); $execute; DROP TABLE held") foreach 1, 30, 48, 49;
		$s->query("DEALLOCATE p; BEGIN; DECLARE c CURSOR WITH HOLD FOR $many; FETCH 1 FROM c; COMMIT");
		push @of_mode, $s->query("MOVE 0 FROM c; SELECT n_rows FROM drain('c', NULL); CLOSE c");
		push @answers, join ' ', @of_mode;
	}
	is($answers[1], $answers[0], 'prepared statements, and a cursor that is held');
	$s->query('RESET plan_cache_mode');
}

# ---------- rows that are left over ----------

my $no_error = q{SELECT g, count(*), sum(1000 / (t.k - 20000)) FROM t JOIN dim USING (k) GROUP BY g};
same_answer($s, $no_error, 'a division by zero without a match is none');
cmp_ok(figure($s, $no_error, 'Rows Left to the Host'), '>', 0, 'its row is left to core');
like(($s->try('SELECT g, count(*), sum(1000 / (t.k - 7)) FROM t JOIN dim USING (k) GROUP BY g'))[1],
	qr/^ERROR:  22012: division by zero/, 'with a match it is an error');
foreach my $join ('JOIN', 'LEFT JOIN')
{
	my $odd = "SELECT t.n, g, count(*), sum(t.n) FROM odd_t t $join dim USING (k) GROUP BY t.n, g";

	same_answer($s, $odd, "$join: numerics that are not as declared");
	cmp_ok(figure($s, $odd, 'Rows Left to the Host'), '>', 0, 'are left to core');
}
my $odd_build = 'SELECT g, count(*), sum(d.n) FROM t JOIN odd_dim d USING (k) GROUP BY g';
same_answer($s, $odd_build, 'the same of a build side');
like(join(', ', device_joins($s, $odd_build)), qr/^0 \(a build side has values that no device takes\)/, 'core joins all rows');
$s->query("SET work_mem = '64kB'; SET hash_mem_multiplier = 1");
foreach my $join ('JOIN', 'LEFT JOIN')
{
	my $full = "SELECT s, g, count(*), sum(w) FROM strings $join dim USING (k) GROUP BY s, g";

	same_answer($s, $full, "$join: strings beyond a dictionary");
	cmp_ok(figure($s, $full, 'Rows Left to the Host'), '>', 0, 'are left to core');
}
same_answer($s, 'SELECT s, count(*), sum(t.v) FROM t JOIN strings USING (w) GROUP BY s', 'strings beyond a dictionary, of a build side');
$s->query('RESET work_mem; RESET hash_mem_multiplier');
next_query($s, 'rows left over');

# ---------- parallel plans ----------

# The build side pages is large enough to be read by all participants.
$admin->query('ALTER TABLE t SET (parallel_workers = 3)');
cmp_ok($admin->query("SELECT relpages FROM pg_class WHERE relname = 'pages'"), '>=', 1024, 'a large build side');
my @parallel = (
	'SELECT p.g, count(*), sum(v) FROM t JOIN pages p USING (k) GROUP BY p.g',
	'SELECT w, p.g, count(*), sum(v) FROM t LEFT JOIN pages p USING (k) GROUP BY w, p.g',
	'SELECT w % 10, p.g, d.g, count(*) FROM t JOIN pages p USING (k) LEFT JOIN (SELECT k, max(g) AS g FROM dim GROUP BY k) d USING (k) GROUP BY 1, 2, 3',
	'SELECT v, count(*), sum(1000 / (t.k - 20000)) FROM t JOIN dim USING (k) GROUP BY v',
	'SELECT name, count(*) FROM t JOIN dim USING (k) GROUP BY name',
	'SELECT w % 10, count(*) FROM t JOIN none USING (k) GROUP BY 1',
	'SELECT w % 10, g, count(*) FROM t LEFT JOIN none USING (k) GROUP BY 1, 2',
	'SELECT g, count(*) FROM (SELECT * FROM t WHERE v < 0) t JOIN dim USING (k) GROUP BY g');
my @all = map { my $sql = $_; map { [$_, $sql] }
	# a digest that workers do a part of, so that all participants emit; one of the leader's
	"SELECT count(*), sum(hashtextextended(q::text, 0)::numeric) FROM ($sql) q",
	"SELECT count(*), md5(string_agg(q::text, ',' ORDER BY q::text)) FROM ($sql) q" } @parallel;
my $parallel_on = "$ON SET max_parallel_workers_per_gather = 3; SET gpurhh.row_cost = 0.001";

$s->query($OFF);
my @expected = map { $s->query($_->[0]) } @all;
my @hows = ('SET max_parallel_workers = 16', 'SET parallel_leader_participation = off',
	'SET max_parallel_workers = 0', "SET gpurhh.device_memory = '1MB'", "SET work_mem = '64kB'");
foreach my $h (0 .. $#hows)
{
	# each way with one of the two digests of a query, the first with both
	my @chosen = grep { $h == 0 || ($_ + int($_ / 2) + $h) % 2 == 0 } 0 .. $#all;
	my ($wrong, $n_parallel, $n_joins) = (0, 0, 0);

	$s->query("$parallel_on; $hows[$h]");
	foreach my $i (@chosen)
	{
		my $plan = $s->query("EXPLAIN (COSTS OFF) $all[$i][0]");
		my ($out, $err) = $s->try($all[$i][0]);

		$n_parallel++ if $plan =~ /Parallel Custom Scan \(GpuHashAgg\)/;
		$n_joins++ if $plan =~ /Device Joins/;
		next if $err eq '' && $out eq $expected[$i];
		$wrong++;
		diag("$all[$i][0]: $out $err, expected $expected[$i]");
	}
	is($wrong, 0, "parallel, $hows[$h]: core's answers");
	cmp_ok($n_parallel, '>=', 0.75 * @chosen, 'parallel plans');
	is($n_joins, scalar @chosen, 'with joins');
	$s->query('RESET max_parallel_workers; RESET parallel_leader_participation; RESET gpurhh.device_memory; RESET work_mem');
}
$s->query($parallel_on);
is(join(', ', device_joins($s, $parallel[0])), '1', 'the device joins in parallel plans');
$s->query('SET max_parallel_workers = 0');
is(join(', ', device_joins($s, $parallel[0])), '1', 'and without workers');
$s->query('RESET max_parallel_workers');

# A nested loop above a Gather runs it anew.
{
	my $again = q{SELECT i, sum(c * g) FROM generate_series(1, 3) i LEFT JOIN
		(SELECT p.g, count(*) AS c FROM t JOIN pages p USING (k) GROUP BY p.g) q ON q.g <> i GROUP BY i ORDER BY i};

	$s->query($OFF);
	my $right = $s->query($again);
	$s->query("$parallel_on; SET enable_material = off; RESET enable_sort");
	like($s->query("EXPLAIN (ANALYZE, COSTS OFF) $again"), qr/Nested Loop.*Gather[^\n]* loops=3\).*Parallel Custom Scan.*Device Joins: 1/s, 'a Gather that is rescanned');
	is($s->query($again), $right, 'joins anew');
	$s->query('RESET enable_material');
}

# The service ends, and the query is cancelled.
{
	my $slow = q{SELECT p.g, count(*), sum(v) FROM t JOIN
		(SELECT k, g FROM pages WHERE passes(k, 4000, 1)) p USING (k) GROUP BY p.g};

	$admin->query(q{CREATE FUNCTION passes(i bigint, at bigint, lock bigint) RETURNS bool
		LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 0.01 AS 'BEGIN RETURN gate(i, at, lock) = i; END'});
	foreach my $how ('the service ends', 'cancelled')
	{
		$s->query($parallel_on);
		$admin->query('BEGIN; SELECT pg_advisory_xact_lock(1)');
		$s->send($slow);
		my $pid = $s->backend_pid;

		ok(wait_until(sub {
					# the transaction sees workers that started later
					$admin->query('SELECT pg_stat_clear_snapshot()');
					return $admin->query("SELECT string_agg(wait_event_type, ' ' ORDER BY wait_event_type) FROM pg_stat_activity WHERE pid = $pid OR leader_pid = $pid") eq 'Extension Extension Extension Lock';
				}, 'participants to wait'), 'one participant reads the build side, and three wait for it');
		$how eq 'cancelled' ? $admin->query("SELECT pg_cancel_backend($pid)") : end_service();
		my ($out, $err) = $how eq 'cancelled' ? $s->result : do { $admin->query('COMMIT'); $s->result };
		like($err, $how eq 'cancelled' ? qr/57014/ : $lost, "parallel, $how: an error");
		$admin->query('COMMIT');
		next_query($s, $how);
	}
}

$_->quit foreach $s, $admin;

# Pages that are kept, of which the device gives back some, in passes: participants that are told to stop while they wait for a block for
# these pages' rows give it back.  It once stayed theirs, and of two blocks of a pool nobody may take the last one.
$node->append_conf('postgresql.conf', "gpurhh.cache_size = '64MB'");
$node->restart;
$s = session($node);
$s->query("$parallel_on; SET gpurhh.device_memory = '1MB'; SET statement_timeout = '20s'");
foreach my $i (grep { $all[$_][0] =~ /JOIN dim/ } 0 .. $#all)
{
	my ($out, $err) = $s->try($all[$i][0]);

	is("$out$err", $expected[$i], "kept pages, in passes: $all[$i][0]");
}
$s->quit;
$node->stop;
done_testing();
