# gpurhh.read_pages, when things are not as they should be.  Batches then have, instead of columns, the
# numbers of buffers that the session has pinned; so answers have to be core's, and pins have to go,
#
#	- where there are few buffers, and where tables do not fit into them
#	- with 64 sessions at once, which together may pin only a part of the buffers
#	- while others insert, update, delete, prune, vacuum and freeze
#	- while many pages come back to the sessions
#	- when a query is cancelled, times out, is terminated, or loses the service, with pages pinned
#
# A pin that stays would be seen three ways: VACUUM (FREEZE) would wait for it; PostgreSQL warns of
# pins that are left at a transaction's end; and what gpurhh counts as pinned would leave too few
# for the next query, which EXPLAIN would then say has read no pages.
#
# To have pages pinned for as long as it takes, the service is stopped (SIGSTOP) amid a query whose
# joins take it seconds.  VACUUM (FREEZE) of the table then waits for a pin.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use List::Util qw(min max);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use constant MANY_SESSIONS => 64;
use constant FAT_ROWS => 5000;

my $lost = qr/^ERROR:  58000: could not finish the query on the device/m;

# An eighth of these 128 buffers may be pinned: two batches of eight, the fewest there are.  With fewer
# threads, or blocks, than sessions most of these would do without the CPU device (load.c).
my $node = new_node('main',
	"shared_preload_libraries = 'gpurhh'",
	'gpurhh.cpu_threads = ' . MANY_SESSIONS,
	"gpurhh.pool_size = '32MB'",
	'restart_after_crash = on',
	'shared_buffers = 1MB',
	'gpurhh.read_pages = on',
	'gpurhh.enable_hashjoin = on',
	# a query that hangs is an error soon enough
	"statement_timeout = '60s'",
	'max_connections = 100',
	'max_parallel_workers_per_gather = 0',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0',
	'enable_mergejoin = off',
	'enable_nestloop = off');

# f and d are larger than those buffers.  d lacks a quarter of f's w.  fat has what joins a row of victim (see
# hold_pages()) with many.
$node->safe_psql('postgres', q{
CREATE TABLE f AS
	SELECT (i * 7919 % 4000)::int AS k, i % 1000 AS v, (i % 8000)::bigint AS w, (i % 3000 / 4.0)::numeric(12, 2) AS n
	FROM generate_series(1, 30000) i;
CREATE TABLE d AS
	SELECT i::bigint AS w, i % 50 AS g, (i % 700 / 8.0)::numeric(12, 3) AS p FROM generate_series(1, 30000) i WHERE i % 4 > 0;
} . 'CREATE TABLE fat AS SELECT 1 AS one, i AS x FROM generate_series(1, ' . FAT_ROWS . q{) i;
ANALYZE f, d, fat;
CREATE EXTENSION pg_buffercache;
CREATE TABLE stop (yes bool);
});

my $grouped = 'SELECT k, sum(v), count(*), max(w) FROM f GROUP BY k';
# All but the last tell how many pages of f they have read; GpuHashJoin does not, whose build side may be.
my @queries = (
	$grouped,
	'SELECT w, sum(n), count(v) FROM f GROUP BY w',
	'SELECT g, sum(n), count(*), sum(p) FROM f LEFT JOIN d USING (w) GROUP BY g',
	'SELECT v, sum(p), count(*) FROM f JOIN d USING (w) GROUP BY v',
	'SELECT f.v, d.g, d.p FROM f LEFT JOIN d USING (w)');
my %answer;

my ($admin, $s, $vacuum);

sub connect_all
{
	($admin, $s, $vacuum) = map { session($node) } 1 .. 3;
	$s->query($ON);
	return;
}

sub restart_with
{
	my @conf = @_;

	$_->quit foreach $admin, $s, $vacuum;
	$node->append_conf('postgresql.conf', join("\n", @conf));
	$node->restart;
	connect_all();
	return;
}

# "Device Pages", and how many came back, of all nodes.
sub pages_of
{
	my ($session, $sql) = @_;
	my $plan = $session->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $sql");
	my ($n, $back) = (0, 0);

	$n += $_ foreach $plan =~ /"Device Pages": (\d+)/g;
	$back += $_ foreach $plan =~ /"Device Pages Sent Back": (\d+)/g;
	return ($n, $back);
}

sub answer_of
{
	my ($sql) = @_;

	if (!defined $answer{$sql})
	{
		$s->query($OFF);
		$answer{$sql} = $s->query(digest_sql($sql));
		$s->query($ON);
	}
	return $answer{$sql};
}

# The table's pages, all of which the query can be expected to have read.
sub table_pages
{
	my ($table) = @_;

	return $admin->query("SELECT pg_relation_size('$table') / current_setting('block_size')::int");
}

# Core's rows, of pages that the device has read.
sub right_by_pages
{
	my ($sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($s->query(digest_sql($sql)), answer_of($sql), "$name: core's answer");
	cmp_ok((pages_of($s, $sql))[0], '>', 0, 'of pages that the device has read');
	return;
}

# What these tests do on purpose.
my $expected_errors = qr/canceling\ statement\ due\ to\ (user\ request|statement\ timeout)
	|could\ not\ finish\ the\ query\ on\ the\ device
	|terminating\ connection\ (due\ to\ administrator\ command|because\ of\ crash)
	|terminating\ background\ worker
	|the\ database\ system\ is\ /x;

# There is nothing else in the log, from where the last call left off.
my $log_at = 0;
sub no_warning
{
	my ($name) = @_;
	my $log = substr(slurp_file($node->logfile), $log_at);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$log_at += length $log;
	is(join("\n", grep { /(WARNING|ERROR|FATAL|PANIC):|TRAP/ && !/$expected_errors/ } split /\n/, $log),
		'', "$name: no warnings or other errors in the log");
	return;
}

# Has the service open the CPU device, so that sessions know how many threads it has.
sub open_cpu_device
{
	$s->query($grouped);
	return;
}

# ---------- many sessions ----------

# Watches sessions until all have come to the end of their last query, which is EXPLAIN.  Returns how many pins they have had
# together, at most, on pages of the tables here.  A pin that goes to another page while the buffers are looked at may be
# counted twice; so what counts is the least of three looks in a row.
sub most_pinned
{
	my $pids = join ',', map { $_->backend_pid } @_;
	my $until = time + 180;
	my ($most, @last) = (0);

	while (time < $until)
	{
		my ($n_running, $pins) = split /\|/, $admin->query(qq{SELECT
			(SELECT count(*) FROM pg_stat_activity WHERE pid IN ($pids) AND NOT (state = 'idle' AND query LIKE 'EXPLAIN%')),
			(SELECT coalesce(sum(pinning_backends), 0) FROM pg_buffercache WHERE relforknumber = 0
				AND relfilenode IN (SELECT pg_relation_filenode(oid) FROM pg_class WHERE relname IN ('f', 'd', 'odd')))});

		return $most if $n_running == 0;
		push @last, $pins;
		shift @last if @last > 3;
		$most = max($most, min(@last)) if @last == 3;
		usleep 5_000;
	}
	return $most;
}

# All sessions together may have an eighth of the buffers pinned for the device.  Besides, each may have a page or two
# that it reads itself.
sub may_pin
{
	my ($n_sessions) = @_;

	return $admin->query("SELECT setting::int / 8 FROM pg_settings WHERE name = 'shared_buffers'") + 2 * $n_sessions;
}

# Each runs all queries, beginning at another one, and then the first with EXPLAIN.  Returns how many pins they had.
sub many_sessions
{
	my ($name, $n_sessions, $settings, @of) = @_;
	my @sessions = map { session($node) } 1 .. $n_sessions;
	my ($wrong, $by_pages) = (0, 0);

	answer_of($_) foreach @of;
	open_cpu_device();
	$_->query("$ON $settings") foreach @sessions;
	foreach my $i (0 .. $#sessions)
	{
		$sessions[$i]->send(join ";\n", (map { digest_sql($of[ ($i + $_) % @of ]) } 0 .. $#of),
			"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $of[0]");
	}
	my $pinned = most_pinned(@sessions);
	foreach my $i (0 .. $#sessions)
	{
		my ($out, $err) = $sessions[$i]->result;
		my $expected = join "\n", map { $answer{ $of[ ($i + $_) % @of ] } } 0 .. $#of;

		$by_pages++ if $out =~ /"Device Pages": [1-9]/;
		next if $out =~ /^\Q$expected\E\n\[/ && $err eq '';
		$wrong++;
		diag("session $i:\n$out\n$err\nexpected:\n$expected");
	}
	is($wrong, 0, "$name: $n_sessions sessions at once have core's answers");
	# the others find too few pins
	cmp_ok($by_pages, '>', 0, 'of pages that the device has read, for some of them');
	note("$by_pages sessions, $pinned pins at most");
	cmp_ok($pinned, '<=', may_pin($n_sessions), 'and they have pinned no more than they may');
	right_by_pages($grouped, "$name: after them");
	$_->quit foreach @sessions;
	return $pinned;
}

# ---------- writers ----------

# Each of these goes on until there is a row in stop.
sub writer_sql
{
	my ($statements) = @_;

	return qq{DO \$\$
	DECLARE
		r int;
	BEGIN
		FOR i IN 1 .. 1000000 LOOP
			r := 1 + random() * 29999;
			$statements
			COMMIT;
			EXIT WHEN EXISTS (SELECT FROM stop);
		END LOOP;
	END \$\$};
}

# Row versions that writers have made of w, by kind.
sub written
{
	return split /\|/, $admin->query(q{SELECT n_tup_ins, n_tup_hot_upd, n_tup_upd - n_tup_hot_upd, n_tup_del, vacuum_count
		FROM pg_stat_user_tables WHERE relname = 'w'});
}

# Readers compare what they see with on and with off, in the snapshot of one transaction, while others
# write and somebody vacuums.
sub with_writers
{
	my ($name, $n_readers, $rounds) = @_;
	my @of = ('SELECT k, sum(v), count(*), count(x) FROM w GROUP BY k',
		'SELECT g, count(*), sum(v), count(x) FROM w LEFT JOIN d ON w.k = d.w GROUP BY g',
		'SELECT id, v, x FROM w',
		'SELECT f.v, w.v, w.x FROM f JOIN w ON f.w = w.id');
	my $digests = join ";\n", map { digest_sql($_) } @of;
	my @readers = map { session($node) } 1 .. $n_readers;
	my @writers = map { session($node) } 1 .. 3;
	my ($different, $by_pages, $vacuum_errors) = (0, 0, '');

	# with room for versions on the same page
	$admin->query(q{DROP TABLE IF EXISTS w; TRUNCATE stop;
		CREATE TABLE w (id int, k int, v int, x bigint) WITH (fillfactor = 70);
		INSERT INTO w SELECT i, i % 2000, i % 777, CASE WHEN i % 3 > 0 THEN i END FROM generate_series(1, 30000) i;
		CREATE INDEX ON w (id);
		ANALYZE w});
	open_cpu_device();
	$writers[0]->send(writer_sql('UPDATE w SET v = v + 1, x = CASE WHEN x IS NULL THEN r END WHERE id BETWEEN r AND r + 20;'));
	$writers[1]->send(writer_sql('UPDATE w SET id = 30000 - id % 30000, v = v - 1 WHERE id BETWEEN r AND r + 10;'));
	$writers[2]->send(writer_sql(q{INSERT INTO w SELECT g, g % 2000, g, NULL FROM generate_series(r, r + 30) g;
		DELETE FROM w WHERE id BETWEEN 30000 - r AND 30010 - r;}));
	foreach my $round (1 .. $rounds)
	{
		foreach my $reader (@readers)
		{
			$reader->send("BEGIN ISOLATION LEVEL REPEATABLE READ; $OFF $digests; $ON $digests;"
					. "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) $of[0]; COMMIT");
		}
		# freezing waits for pins, and goes on
		$vacuum_errors .= ($vacuum->try($_))[1] foreach 'VACUUM w', 'VACUUM (FREEZE) w';
		foreach my $reader (@readers)
		{
			my ($out, $err) = $reader->result;
			my @lines = split /\n/, $out;
			my @off = splice @lines, 0, scalar @of;
			my @on = splice @lines, 0, scalar @of;

			$by_pages++ if "@lines" =~ /"Device Pages": [1-9]/;
			next if "@on" eq "@off" && "@on" =~ /^\d+\|/ && $err eq '';
			$different++;
			diag("round $round:\noff @off\non @on\n$err");
		}
	}
	$admin->query('INSERT INTO stop VALUES (true)');
	my $writers_errors = join '', map { ($_->result)[1] } @writers;
	$_->quit foreach @readers, @writers;
	is($different, 0, "$name: the same rows on and off in each snapshot, while others write");
	is($by_pages, $rounds * $n_readers, 'of pages that the device has read');
	is($writers_errors . $vacuum_errors, '', 'and writers are not in the way of anybody');
	ok( wait_until(sub {
			my ($ins, @more) = written();
			return $ins > 30000 && !grep { $_ == 0 } @more[ 0 .. 2 ];
		}), 'they have inserted, updated, on the same page and not, and deleted')
	  or diag(join ' ', written());
	is(($admin->try('VACUUM (FREEZE) w'))[1], '', 'no page of the table stays pinned');
	return;
}

# ---------- pages that are pinned while something happens ----------

my $held = 'SELECT v, sum(x), count(*) FROM victim JOIN fat USING (one) GROUP BY v';

# Has session s read a new table victim by pages, and stops the service when it has got some of them: they
# stay pinned until "something happens".  VACUUM (FREEZE) of the table waits.  Returns the service's pid.
sub hold_pages
{
	my ($name) = @_;
	my ($pid) = service_pids($node);
	my $backend = $s->backend_pid;

	$admin->query('CREATE TABLE victim AS SELECT 1 AS one, i AS v FROM generate_series(1, 50000) i; ANALYZE victim');
	my $rows = $admin->query('SELECT rows_fed FROM gpurhh_stat');
	$s->send($held);
	ok(wait_until(sub { $admin->query('SELECT rows_fed FROM gpurhh_stat') > $rows + FAT_ROWS }), "$name: pages are being read");
	kill 'STOP', $pid;
	ok(wait_until(sub {
			my $waits = $admin->query("SELECT wait_event_type FROM pg_stat_activity WHERE pid = $backend");

			return 1 if $waits eq 'Extension';
			# not while it has a lock
			kill 'CONT', $pid;
			usleep 1_000;
			kill 'STOP', $pid;
			return 0;
		}), 'and the session waits for the device');
	$vacuum->send('VACUUM (FREEZE) victim');
	ok(wait_until(sub {
			$admin->query('SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $vacuum->backend_pid) eq 'BufferPin';
		}), 'VACUUM waits for one of its pages');
	return $pid;
}

# The pages of victim are not pinned any more; and something else comes into their buffers.
sub pages_are_released
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(($vacuum->result)[1], '', "$name: VACUUM goes on");
	is(($admin->try('DROP TABLE victim'))[1], '', 'the table can be dropped');
	$admin->query($OFF . digest_sql('SELECT * FROM f'));
	return;
}

sub next_query
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	right_by_pages($grouped, "$name: the next query");
	right_by_pages($queries[2], 'and a join');
	return;
}

sub stopped_queries
{
	my $pid;

	# the service has started
	next_query('at first');

	# The transaction goes on after its subtransaction.
	$s->query('BEGIN; SAVEPOINT p');
	$pid = hold_pages('cancelled');
	$admin->query('SELECT pg_cancel_backend(' . $s->backend_pid . ')');
	like(($s->result)[1], qr/^ERROR:  57014: canceling statement due to user request/, 'an error');
	$s->query('ROLLBACK TO p');
	is(($vacuum->result)[1], '', 'VACUUM goes on, in the middle of the transaction');
	# The device still has the batches, and reads what is in those buffers now.
	$admin->query($OFF . digest_sql('SELECT * FROM d'));
	kill 'CONT', $pid;
	next_query('cancelled, in the same transaction');
	$s->query('COMMIT');
	$admin->query('DROP TABLE victim');
	is((service_pids($node))[0], $pid, 'the service is the same');

	$s->query("SET statement_timeout = '4s'");
	$pid = hold_pages('timed out');
	like(($s->result)[1], qr/^ERROR:  57014: canceling statement due to statement timeout/, 'an error');
	pages_are_released('timed out');
	kill 'CONT', $pid;
	$s->reset_timeout;
	next_query('timed out');
	is((service_pids($node))[0], $pid, 'the service is the same');

	$pid = hold_pages('terminated');
	$admin->query('SELECT pg_terminate_backend(' . $s->backend_pid . ')');
	like(($s->result)[1], qr/^FATAL:  57P01: terminating connection due to administrator command/, 'an error');
	pages_are_released('terminated');
	kill 'CONT', $pid;
	$s->quit;
	$s = session($node);
	$s->query($ON);
	next_query('terminated');
	is((service_pids($node))[0], $pid, 'the service is the same');

	foreach my $i (1 .. 2)
	{
		$pid = hold_pages('the service ends');
		kill 'TERM', $pid;
		kill 'CONT', $pid;
		my ($out, $err) = $s->result;
		like($err, $lost, 'an error');
		is($out, '', 'and no row');
		pages_are_released('the service ends');
		ok(wait_until(sub { !alive($pid) }), 'the service has ended');
		next_query('the service ends');
	}

	# At any moment; a query that is done in time has the right rows.
	my ($wrong, $n_stopped) = (0, 0);
	foreach my $ms (1 .. 20)
	{
		my $query = $ms % 2 ? $queries[1] : $queries[2];

		my $expected = answer_of($query);
		$s->query("SET statement_timeout = " . 3 * $ms);
		my ($out, $err) = $s->try(digest_sql($query));
		$s->reset_timeout;
		if ($err =~ /^ERROR:  57014/ && $out eq '') { $n_stopped++; }
		elsif ($err ne '' || $out ne $expected) { $wrong++; diag("$out $err, expected: $expected"); }
	}
	is($wrong, 0, 'timeouts at any moment: that error, or the right rows');
	cmp_ok($n_stopped, '>', 0, 'the first of them come too soon for the query');
	next_query('timeouts');
	is(($admin->try('VACUUM (FREEZE) f, d'))[1], '', 'no page stays pinned');
	# the service frees what a query had after the query's end
	ok(wait_until(sub { host_rows($s, $grouped) == 0 }), 'no block is lost');
	return;
}

# PostgreSQL then restarts everything.
sub killed_service
{
	# so that there is little to recover
	$admin->query('CHECKPOINT');
	my ($pid) = hold_pages('killed');

	kill 'KILL', $pid;
	my ($out, $err) = $s->result;
	is($out, '', 'no row');
	like($err, qr/terminating connection because of crash of another server process|server closed the connection/,
		'the connection ends');
	foreach my $session ($admin, $vacuum, $s)
	{
		wait_until(sub { !alive($session->backend_pid) });
		$session->quit;
	}
	ok(wait_for_server($node), 'the server comes back');
	connect_all();
	next_query('killed');
	is(($admin->try('VACUUM (FREEZE) victim'))[1], '', 'no page stays pinned');
	is(($admin->try('DROP TABLE victim'))[1], '', 'the table can be dropped');
	return;
}

# ---------- few buffers ----------

connect_all();
cmp_ok(table_pages($_), '>', 128, "$_ is larger than the buffers") foreach 'f', 'd';
same_answer($s, $_, "1 MB of buffers: $_") foreach @queries[ 0 .. 3 ];
is((pages_of($s, $_))[0], table_pages('f'), "the device reads all pages of the table: $_") foreach @queries[ 0 .. 2 ];
like($s->query("EXPLAIN (COSTS OFF) $queries[4]"), qr/GpuHashJoin/, 'a join that returns rows');
is($s->query(digest_sql($queries[4])), answer_of($queries[4]), 'has the same rows');
$s->query('SET max_parallel_workers_per_gather = 2');
foreach my $sql (@queries)
{
	like($s->query("EXPLAIN (COSTS OFF) $sql"), qr/Gather/, "parallel: $sql");
	is($s->query(digest_sql($sql)), answer_of($sql), 'the same rows');
}
cmp_ok((pages_of($s, $grouped))[0], '>', 0, 'the device reads pages for parallel plans');
$s->query('RESET max_parallel_workers_per_gather');

# A scan that is not read to its end, and cursors that rest.
$s->query("BEGIN; DECLARE c1 CURSOR FOR $grouped; DECLARE c2 CURSOR FOR $queries[4]; FETCH 1 FROM c1; FETCH 1 FROM c2");
next_query('beside cursors');
$s->query('CLOSE c1; COMMIT');
is($s->query("SELECT count(*) FROM ($queries[4] LIMIT 10) q"), '10', 'a part of the rows');
is(($admin->try('VACUUM (FREEZE) f, d'))[1], '', 'no page stays pinned');

my $pinned = many_sessions('1 MB of buffers', MANY_SESSIONS, '', @queries[ 0, 2, 4 ]);
# pages in the cache are not
cmp_ok($pinned, '>', 0, 'pages are seen to be pinned') if $admin->query('SELECT count(*) FROM gpurhh_cache_files()') == 0;
# (one reader: more would have too few pins for each other, and read no pages)
with_writers('1 MB of buffers', 1, 4);
# With two blocks, so that one that is lost would be missed; and with the CPU device, as a GPU would be
# done with the joins before it could be stopped.
restart_with("gpurhh.pool_size = '256kB'", "gpurhh.device = 'cpu'");
stopped_queries();
no_warning('1 MB of buffers');
killed_service();
no_warning('after the crash');

# With the fewest buffers that a server may have nothing can be pinned for the device.
restart_with('shared_buffers = 128kB', "gpurhh.pool_size = '32MB'", "gpurhh.device = 'auto'");
foreach my $sql (@queries)
{
	is($s->query(digest_sql($sql)), answer_of($sql), "128 kB of buffers: $sql");
}
is((pages_of($s, $grouped))[0], 0, 'the device reads no pages');
no_warning('128 kB of buffers');

# ---------- buffers enough ----------

restart_with('shared_buffers = 128MB');
same_answer($s, $_, "128 MB of buffers: $_") foreach @queries[ 0 .. 3 ];
is((pages_of($s, $grouped))[0], table_pages('f'), 'the device reads all pages');
many_sessions('128 MB of buffers', MANY_SESSIONS, '', @queries[ 0, 2, 4 ]);
with_writers('128 MB of buffers', 3, 3);

# ---------- pages that come back ----------

# Of 10 pages one or two have a value of n that a device does not read, of 10 pages eight or so one of m, and
# all have one of a.  These are NaN, have another scale than the type says (no cast has seen them), or are too
# long.  s is before them, of some rows out of line.
$admin->query(q{
CREATE TABLE odd (k int, s text, n numeric(12, 2), m numeric(12, 2), a numeric(12, 2), w bigint);
ALTER TABLE odd ALTER s SET STORAGE EXTERNAL;
INSERT INTO odd SELECT k, CASE WHEN w % 400 = 0 THEN repeat('x', 2500) WHEN w % 3 > 0 THEN 'y' || w % 1000 END, n, m, a, w
	FROM unnest(ARRAY(
		SELECT ROW(g % 300, CASE WHEN g % 1200 < 3 THEN o[1 + g % 3] ELSE (g / 4.0)::numeric(12, 2) END,
			CASE WHEN g % 200 = 0 THEN o[1 + g / 200 % 3] ELSE (g % 100 / 2.0)::numeric(12, 2) END,
			CASE WHEN g % 30 = 0 THEN o[1 + g / 30 % 3] ELSE 1 END, g::bigint)
		FROM generate_series(1, 30000) g, (SELECT '{NaN, 1.2345, 12345678901234567890.12}'::numeric[] AS o) o)) q(k int, n numeric(12, 2), m numeric(12, 2), a numeric(12, 2), w bigint);
VACUUM ANALYZE odd});

my %back = (
	'SELECT k, sum(n), count(*), sum(w) FROM odd GROUP BY k' => 'some',
	'SELECT n, count(*), sum(w) FROM odd GROUP BY n' => 'some',
	'SELECT k, sum(m), count(m) FROM odd GROUP BY k' => 'some',
	'SELECT k, sum(a), count(a) FROM odd GROUP BY k' => 'all',
	'SELECT k, count(*), sum(w) FROM odd GROUP BY k' => 'none',
	'SELECT g, sum(n), count(*), sum(m) FROM odd LEFT JOIN d USING (w) GROUP BY g' => 'some');
my @back = sort keys %back;
# odd is the build side, of which nothing is counted
my @builds = ('SELECT v, sum(o.n), count(*) FROM f LEFT JOIN odd o ON f.w = o.w GROUP BY v',
	'SELECT f.v, o.n, o.m FROM f LEFT JOIN odd o ON f.w = o.w');

foreach my $rows (1024, 300)
{
	$s->query("SET gpurhh.batch_rows = $rows");
	foreach my $sql (@back)
	{
		my ($n, $n_back) = pages_of($s, $sql);
		my $which = $n_back == 0 ? 'none' : $n_back == $n ? 'all' : 'some';

		is($s->query(digest_sql($sql)), answer_of($sql), "batches of $rows rows: $sql");
		cmp_ok($n, '>', 0, 'by pages');
		is($which, $back{$sql}, "of which $back{$sql} come back") or diag("$n_back of $n");
	}
	foreach my $sql (@builds)
	{
		is($s->query(digest_sql($sql)), answer_of($sql), "batches of $rows rows: $sql");
	}
}
$s->query('SET max_parallel_workers_per_gather = 2');
is($s->query(digest_sql($_)), answer_of($_), "in parallel: $_") foreach @back, @builds;
$s->query('RESET max_parallel_workers_per_gather; RESET gpurhh.batch_rows');
many_sessions('pages come back', 16, 'SET gpurhh.batch_rows = 1024', @back[ 0, 1 ], $builds[0]);
is(($admin->try('VACUUM (FREEZE) odd, f, d'))[1], '', 'no page stays pinned');
no_warning('128 MB of buffers');

$_->quit foreach $admin, $s, $vacuum;
$node->stop;
done_testing();
