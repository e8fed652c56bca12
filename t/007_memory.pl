# Memory that does not suffice costs time and never an answer: the table grows,
# then rows are finished on the host, then the host spills to disk.  EXPLAIN
# ANALYZE shows each rung of that ladder.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('main', "session_preload_libraries = 'gpurhh'");

# 100,000 groups, of which the planner of the second knows nothing.
my $many = 'SELECT w, sum(v), count(*), min(k), max(k), avg(w) FROM t GROUP BY w';
my $unknown = q{SELECT i / 2 AS h, sum(i), count(*)
	FROM (SELECT generate_series(1, 200000) AS i) s GROUP BY 1};
# more than one copy of each, wide keys, NULLs, and few groups of many rows
my @queries = (
	$many, $unknown, $BY_K,
	'SELECT w, k, v % 3, nullif(v, 0), count(*), avg(w) FROM t GROUP BY 1, 2, 3, 4',
	'SELECT md5(w::text)::uuid, count(*), sum(w) FROM t GROUP BY 1',
	'SELECT v % 10, sum(w), count(*) FROM t GROUP BY 1');

# The figures of EXPLAIN ANALYZE's node, by name.
sub figures
{
	my ($s, $sql) = @_;
	my $plan = $s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT yaml) $sql");
	my %figures = $plan =~ /^\s+([A-Z][A-Za-z ]+): "?([^"\n]*)"?$/mg;

	die "no GpuHashAgg in: $plan" if !defined $figures{'Host Rows'};
	return \%figures;
}

# How many temporary files there are.
sub temp_files
{
	my @files = glob($node->data_dir . '/base/pgsql_tmp/*');

	return scalar @files;
}

# How many seconds the query takes.
sub seconds
{
	my ($s, $sql) = @_;
	my $start = time;

	$s->query($sql);
	return time - $start;
}

# ---------- the limit is the session's ----------

my $s = session($node);

# The table grows.
$s->query("$ON SET work_mem = '64MB'");
my $f = figures($s, $unknown);
cmp_ok($f->{'Rehashes'}, '>', 0, 'a table of unknown size grows');
is($f->{'Host Rows'}, 0, 'and that suffices');
is($f->{'Groups'}, 100001, 'for all groups');
same_answer($s, $unknown, 'a table that grew');

# Rows fail by the probe cap.
$s->query('SET gpurhh.max_probe_buckets = 1; SET gpurhh.load_factor = 0.95');
$f = figures($s, $many);
cmp_ok($f->{'Failed Slots'}, '>', 0, 'a probe of one bucket fails at times');
cmp_ok($f->{'Longest Probe Length'}, '<=', 1, 'and is never longer');
same_answer($s, $_, 'short probes in a full table') foreach @queries;
$s->query('RESET gpurhh.max_probe_buckets; RESET gpurhh.load_factor');

# The device's memory does not suffice.
$s->query("SET gpurhh.device_memory = '1MB'");
$f = figures($s, $many);
cmp_ok($f->{'Host Rows'}, '>', 0, '1 MB does not suffice, the host helps');
cmp_ok($f->{'Device Memory'}, '<=', 1024 * 1024, 'the device keeps its limit');
is($f->{'Spilled Records'}, 0, 'the host has memory enough');
same_answer($s, $_, 'device and host') foreach $many, $unknown;

# It suffices for the first level's groups, but not for those of the second level, which
# are six times as many.  The second map refuses most rows; the service makes these once
# more and returns them to the session, in at most 12 blocks at a time.  When it had to
# wait for one of these blocks, it once was not woken when the session gave one back, and
# slept for up to a second.  The query, whose small batches fill many blocks, then took
# some 100 times as long as without the node.  Now it takes 1 to 2 times as long, also
# on a busy machine.
{
	my $cube = 'SELECT w, -w, k, count(*) FROM t WHERE w <= 10000 GROUP BY CUBE (1, 2, 3)';
	my $batch_rows = 256;
	my $most_times = 20;
	my ($times, @attempts);

	$s->query("SET gpurhh.device = 'cpu'; SET gpurhh.batch_rows = $batch_rows");
	$f = figures($s, $cube);
	is($f->{'Second Level'}, 'device', 'the device makes the second level');
	cmp_ok($f->{'Host Rows'}, '>', 8 * 12 * $batch_rows, 'and refuses many times 12 blocks of rows');
	foreach my $attempt (1 .. 3)
	{
		my $off = seconds($s, "$OFF " . digest_sql($cube));
		my $on = seconds($s, "$ON " . digest_sql($cube));

		$times = $on / $off;
		push @attempts, sprintf 'off %.3f s, on %.3f s, %.1f times', $off, $on, $times;
		note $attempts[-1];
		# the machine may have been busy with something else, for one of them alone
		last if $times < $most_times;
	}
	cmp_ok($times, '<', $most_times, 'the service does not sleep while the session gives back blocks')
		or diag(join("\n", @attempts));
	same_answer($s, $cube, 'with the right groups');
	$s->query('RESET gpurhh.device; RESET gpurhh.batch_rows');
}

# Nor does the host's.
$s->query("SET work_mem = '64kB'; SET hash_mem_multiplier = 1");
$f = figures($s, $many);
cmp_ok($f->{'Spilled Records'}, '>', 0, '64 kB do not suffice, the host spills');
# Taking the device's groups into the host table, and loading its files, was once
# counted 61 times, as if the row that came next had taken that long to make: more
# than there was.
cmp_ok($f->{'Emit Time'}, '<=', $f->{'Execution Time'}, 'emitting takes no longer than the query');
same_answer($s, $_, 'device, host and disk') foreach @queries;

# Rows of passes over deferred rows are the host's, too; gpurhh_stat did not count them,
# as the query has left the service by then.
my $strings = "SELECT md5(w::text), count(*) FROM t GROUP BY 1";
my $host_rows = $s->query('SELECT host_rows FROM gpurhh_stat');
$f = figures($s, $strings);
cmp_ok($f->{'Passes'}, '>', 0, 'a dictionary that is full leaves rows to passes');
is($s->query('SELECT host_rows FROM gpurhh_stat') - $host_rows, $f->{'Host Rows'}, 'gpurhh_stat counts as EXPLAIN does');

# All of it at once.
$s->query('SET gpurhh.max_probe_buckets = 1; SET gpurhh.load_factor = 0.95');
same_answer($s, $_, 'device, host and disk, short probes') foreach $many, $unknown;
$s->query('RESET gpurhh.max_probe_buckets; RESET gpurhh.load_factor');

# A query that is left in the middle of spilled groups leaves no file.
is($s->query("BEGIN; DECLARE c CURSOR FOR $many; SELECT n_rows FROM drain('c', 60000)"),
	60000, 'a part of a cursor');
cmp_ok(temp_files(), '>', 0, 'has temporary files');
$s->query('ROLLBACK');
is(temp_files(), 0, 'which go with it');
$s->quit;

# ---------- the limit is the configuration's ----------

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
$node->append_conf('postgresql.conf', "gpurhh.device_memory = '1MB'");
# the smallest table has a part for each thread, so that what one leaves is too little
$node->append_conf('postgresql.conf', "gpurhh.cpu_threads = 64");
$node->restart;
$s = session($node);
$s->query($ON);
# a session cannot have what the service has not
$s->query("SET gpurhh.device_memory = '1GB'");
$f = figures($s, $many);
cmp_ok($f->{'Host Rows'}, '>', 0, 'the limit of a service binds its sessions');
cmp_ok($f->{'Device Memory'}, '<=', 1024 * 1024, 'in total');
same_answer($s, $_, "the service's limit") foreach @queries;

# The limit is for all tables together.
{
	my $other = session($node);
	my $few = 'SELECT v, count(*) FROM t GROUP BY v';

	# what the host has in files would be compared with all groups of the device first
	$other->query("$ON SET work_mem = '64MB'");
	is($other->query("BEGIN; DECLARE c CURSOR FOR $many; SELECT n_rows FROM drain('c', 10)"),
		10, 'a session has taken what memory there is');
	same_answer($s, $_, 'another session finds little or none') foreach $few, $many;

	# A query without a table once kept its place while its cursor rested.
	like($s->query("EXPLAIN (ANALYZE, COSTS OFF) $many"), qr/Device: host/, 'none, in fact');
	$s->query('BEGIN');
	$s->query(join ';', map { "DECLARE c$_ CURSOR FOR $many; FETCH 1 FROM c$_" } 1 .. 40);
	unlike($s->query("EXPLAIN (ANALYZE, COSTS OFF) $many"), qr/too many queries/, 'cursors without tables leave room for other queries');
	is($s->query("SELECT n_rows FROM drain('c$_', NULL)"), 99999, 'and go on') foreach 1, 40;
	$s->query('COMMIT');
	$other->query('COMMIT');
	ok(wait_until(sub { host_rows($s, $few) == 0 }), 'until the first is done');
	$other->quit;
}
$s->quit;

$node->stop;
done_testing();
