# Pages that are read while others write: what is visible, serialization
# conflicts, VACUUM, rechecked rows.  The buffers are so few that scans use a
# ring of them and are synchronized.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

my $node = new_node('main', "shared_buffers = '1MB'", 'max_parallel_workers_per_gather = 0');
$node->safe_psql('postgres', q{
CREATE TABLE w AS SELECT i % 100 AS k, i AS v FROM generate_series(1, 20000) i;
CREATE TABLE other (i int);
CREATE TABLE skew (k int, v int);
CREATE TABLE target (k int PRIMARY KEY, v bigint);
ANALYZE w;
});
my $by_k = 'SELECT k, count(*), sum(v) FROM w GROUP BY k';

my $a = session($node);
my $b = session($node);
$a->query("LOAD 'gpurhh'; $ON");
like($a->query("EXPLAIN $by_k"), qr/Feed: pages/, 'pages are read');

# ---------- what others have not committed ----------

same_answer($a, $by_k, 'nobody else');
$b->query('BEGIN; INSERT INTO w SELECT 1, 1 FROM generate_series(1, 1000)');
same_answer($a, $by_k, 'rows that are being inserted');
$b->query('DELETE FROM w WHERE k = 2; UPDATE w SET v = v + 1 WHERE k < 10');
same_answer($a, $by_k, 'rows that are being deleted and updated');
$b->query('COMMIT');
same_answer($a, $by_k, 'and now committed');
$a->query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
my $before = $a->query(digest_sql($by_k));
$b->query('DELETE FROM w WHERE k = 3; INSERT INTO w SELECT 200, i FROM generate_series(1, 100) i; VACUUM w');
is($a->query(digest_sql($by_k)), $before, 'a snapshot does not move');
same_answer($a, $by_k, 'with it');
$a->query('COMMIT');
same_answer($a, $by_k, 'and without it');

# ---------- serializable transactions ----------

# Each reads all and writes a row.  The second one sees the version that the
# first one, which has committed, replaced: only its reading can tell, as its
# writing reads nothing.  EXPLAIN reads, too, and tells whether the device has
# read the pages.
sub write_skew
{
	my ($settings) = @_;
	my $read = 'SELECT count(*) FROM (SELECT k, sum(v) FROM skew GROUP BY k) q';

	$_->query($settings) foreach $a, $b;
	$a->query('TRUNCATE skew; INSERT INTO skew SELECT i % 10, i FROM generate_series(1, 1000) i; VACUUM skew');
	my $nodes = uses_node($a, $read);
	$_->query("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM other") foreach $a, $b;
	$b->query("$read; UPDATE skew SET v = 0 WHERE v = 5; COMMIT");
	my ($out, $err) = $a->try("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $read; INSERT INTO skew VALUES (6, 6); COMMIT");
	$a->try('ROLLBACK');
	return ($nodes, $out =~ /Input: .*, \d+ pages/ ? 1 : 0, $err);
}

# And in the other order: both have read before either writes.
sub write_skew_later
{
	my ($settings) = @_;
	my $read = 'SELECT count(*) FROM (SELECT k, sum(v) FROM skew GROUP BY k) q';

	$_->query($settings) foreach $a, $b;
	$a->query('TRUNCATE skew; INSERT INTO skew SELECT i % 10, i FROM generate_series(1, 1000) i');
	$_->query("BEGIN ISOLATION LEVEL SERIALIZABLE; $read") foreach $a, $b;
	$b->query("INSERT INTO skew VALUES (1, 1)");
	my ($out, $err) = $a->try("INSERT INTO skew VALUES (2, 2); COMMIT");
	my ($out_b, $err_b) = $b->try('COMMIT');
	$_->try('ROLLBACK') foreach $a, $b;
	return "$err$err_b";
}

sub conflicts_are_found
{
	my ($name, $settings, $expected_nodes, $expected_pages) = @_;
	my ($nodes, $pages, $err) = write_skew($settings);

	is($nodes > 0 ? 1 : 0, $expected_nodes, "$name: the plan");
	is($pages, $expected_pages, "$name: whether the device has read the pages");
	like($err, qr/^ERROR:  40001/m, "$name: a conflict with what has been written is found");
	like(write_skew_later($settings), qr/^ERROR:  40001/m, "$name: one with what will be written");
	return;
}

$b->query("LOAD 'gpurhh'");
conflicts_are_found('off', $OFF, 0, 0);
conflicts_are_found('on', $ON, 1, 0);

# ---------- an error in the middle leaves nothing behind ----------

my (undef, $err) = $a->try('SELECT k, count(1 / (v - 9050)) FROM w GROUP BY k');
like($err, qr/22012: division by zero/, 'an error');
unlike($err, qr/WARNING/, 'with no leaked pin');
is(($a->try('VACUUM (FREEZE) w'))[1], '', 'VACUUM gets its lock');
same_answer($a, $by_k, 'afterwards');

# ---------- UPDATE and VACUUM while pages are read ----------

$a->query('TRUNCATE skew; INSERT INTO skew SELECT i % 10, i FROM generate_series(1, 20000) i; ' . $ON);
my $sums = 'SELECT sum(c), sum(s) FROM (SELECT k, count(*) AS c, sum(v) AS s FROM skew WHERE v <> 0 GROUP BY k) q';
my $expected = $a->query($sums);
my ($n, $wrong) = (0, 0);
$b->send(join("\n", map {
			"UPDATE skew SET k = k + 1 WHERE v % 7 = $_ % 7; VACUUM skew;"
			  . "BEGIN; DELETE FROM skew WHERE v % 5 = 1; ROLLBACK;"
		} 1 .. 20) . "\n\\! touch " . $node->data_dir . "/done");
until (-e $node->data_dir . '/done' || $n > 5000)
{
	$wrong++ if $a->query($sums) ne $expected;
	$n++;
}
is($wrong, 0, "rows are never lost or seen twice");
note "$n queries";
is(($b->result)[1], '', 'the writer went through');

# ---------- rechecked rows ----------

sub update_after_wait
{
	my ($settings, $update) = @_;

	$a->query($settings);
	$b->query('TRUNCATE target; INSERT INTO target SELECT i, 0 FROM generate_series(0, 9) i; BEGIN; UPDATE target SET v = -1 WHERE k IN (3, 4)');
	my $nodes = uses_node($a, $update);
	$a->send($update);
	wait_until(sub {
			$b->query('SELECT wait_event_type = \'Lock\' FROM pg_stat_activity WHERE pid = ' . $a->backend_pid) eq 't';
		}, 'the row lock');
	$b->query('COMMIT');
	my ($out, $err) = $a->result;
	return ($nodes, $err . $b->query('SELECT k, v FROM target ORDER BY k'));
}

$b->query('RESET enable_hashagg; RESET enable_sort');
foreach my $update (
	'UPDATE target SET v = target.v + q.s FROM (SELECT k, sum(v) AS s FROM skew GROUP BY k) q WHERE q.k = target.k',
	'UPDATE target t SET v = v + (SELECT sum(s) FROM (SELECT sum(v) AS s FROM skew WHERE skew.k % 10 = t.k GROUP BY skew.k) q)')
{
	my ($none, $core) = update_after_wait($OFF, $update);
	my ($nodes, $ours) = update_after_wait($ON, $update);

	ok($none == 0 && $nodes > 0, 'the plans');
	is($ours, $core, 'a row that was waited for is rechecked');
}

# ---------- serializable transactions, where the device reads the pages ----------

$_->quit foreach $a, $b;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'\ngpurhh.read_pages = on\n");
$node->restart;
$a = session($node);
$b = session($node);
conflicts_are_found('by pages', $ON, 1, 1);

$a->quit;
$b->quit;
$node->stop;

done_testing();
