# Pages that stay (docs/design.md): a device keeps copies of pages, and scans read these where the visibility map
# vouches for them.  A copy that is not what the page is now would be a wrong answer, and nothing else would tell of
# it.  So whatever can change a page is done here, between scans, and while snapshots and cursors from before are
# held; each answer is compared with core's in the same snapshot; and what EXPLAIN says of pages from the cache has to
# be what the visibility map says, as scans that read everything anew would be right, too.
#
#	- what is cached and what is not, the view, loading and dropping, rights
#	- each way in which pages change, also by files that come, go and come again, databases, a crash, a standby
#	- caches that are smaller than the tables; none
#	- at random: writers against readers, for GPURHH_CACHE_SECONDS (15; an hour is 3600), from GPURHH_CACHE_SEED
#
# The CPU device has a cache for this, of gpurhh.cache_size.  GPURHH_CACHE_DEVICE=cuda:0 is for the parts that do not depend on how
# large that is; GPURHH_CACHE_PARTS='rows change|VACUUM|at random': those whose names this matches.  All others on a GPU:
# 'what is|where|partial|rights|kinds|not in|partitions|rows|locks|hint|VACUUM|trunc|long|standby|files|data|service|wal|crash|larger|fail|pins|random'.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

# The cache has its entries for so many pages.
use constant CHUNK => 32;
use constant CHUNK_BYTES => CHUNK * 8192;

my $seconds = $ENV{GPURHH_CACHE_SECONDS} || 15;
my $seed = $ENV{GPURHH_CACHE_SEED} || int(time * 1000) % 1_000_000_000;
my $device = $ENV{GPURHH_CACHE_DEVICE} || 'cpu';
my $only = $ENV{GPURHH_CACHE_PARTS} || '.';

my $EXPLAIN = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON)';

my $node = new_node('main', { allows_streaming => 1 },
	"shared_preload_libraries = 'gpurhh'",
	# room for all that is here, also for files that are gone: these give way only after half a minute
	'gpurhh.cache_size = 512MB',
	# the cache ends with the service
	'gpurhh.service_idle_timeout = 0',
	"gpurhh.device = '$device'",
	'gpurhh.cpu_threads = 8',
	"gpurhh.pool_size = '16MB'",
	'gpurhh.read_pages = on',
	'gpurhh.enable_hashjoin = on',
	'shared_buffers = 64MB',
	'max_wal_size = 1GB',
	# a query that hangs is an error soon enough
	"statement_timeout = '60s'",
	'max_parallel_workers_per_gather = 0',
	'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0',
	'enable_mergejoin = off',
	'enable_nestloop = off',
	'jit = off');

# Other tables have the rows of base, which are joined with d by k, and with f by id.
$node->safe_psql('postgres', q{
CREATE TABLE base AS
	SELECT i AS id, i * 7919 % 400 AS k, i % 1000 AS v, i * 13::bigint AS w, 'y' || i % 300 AS s,
		(i % 3000 / 4.0)::numeric(12, 2) AS n, CASE WHEN i % 3 > 0 THEN i::bigint END AS x
	FROM generate_series(1, 3000) i;
CREATE TABLE d AS SELECT i AS k, i % 30 AS g FROM generate_series(0, 399) i WHERE i % 7 > 0;
CREATE TABLE f AS SELECT i % 9000 AS id, i % 40 AS v FROM generate_series(1, 12000) i;
VACUUM ANALYZE base, d, f;
});

# What is copied into tables.
my $dir = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', "COPY base TO '$dir/all'; COPY (SELECT * FROM base WHERE id % 2 = 0) TO '$dir/half';"
		. "COPY (SELECT id + 7000, k, v, w, s, n, x FROM base LIMIT 3) TO '$dir/few';"
		. "COPY (SELECT i, i % 400, i % 1000, i, 'y', 1, 1 FROM generate_series(1, 60000) i) TO '$dir/many'");

# It tells what the visibility map says; without it some numbers are not looked at.
my $has_visibility = $node->safe_psql('postgres',
	"SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_visibility'");
$node->safe_psql('postgres', 'CREATE EXTENSION pg_visibility') if $has_visibility;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');

# Settings by which it is worth it that several processes return groups, to an aggregate.  A device reads pages of the cache as
# fast for one as for several, so else there is one.
my $PARALLEL = 'SET max_parallel_workers_per_gather = 2; SET gpurhh.group_cost = 0.05';

# The session that looks, and others.
my ($admin, $s, $writer, $old, $cursors);

sub connect_all
{
	($admin, $s, $writer, $old, $cursors) = map { session($node) } 1 .. 5;
	return;
}

sub disconnect_all
{
	$_->quit foreach $admin, $s, $writer, $old, $cursors;
	return;
}

sub restart_with
{
	my @conf = @_;

	disconnect_all();
	$node->append_conf('postgresql.conf', join("\n", @conf, ''));
	$node->restart;
	connect_all();
	return;
}

sub min { return $_[0] < $_[1] ? $_[0] : $_[1]; }

sub pick { return $_[ int rand @_ ]; }

# ---------- a look at a table ----------

# Queries over a table like base.
sub queries
{
	my ($t) = @_;

	return ("SELECT id, k, v, w, s, n, x, count(*) FROM $t GROUP BY id, k, v, w, s, n, x",
		"SELECT s, count(*), sum(w), min(v), max(x) FROM $t WHERE v < 700 AND s <> 'y7' GROUP BY s",
		"SELECT g, count(*), sum(t.v), sum(t.n) FROM $t t JOIN d USING (k) GROUP BY g",
		"SELECT f.v, count(*), sum(t.w), max(t.k) FROM f LEFT JOIN $t t USING (id) GROUP BY f.v");
}

# The first of them, which has all of each row.
sub rows_sql { return (queries(@_))[0]; }

# How many of the table's pages have rows, or are all visible by the map, which a session does not look at; and how many
# are all visible.
sub visible_sql
{
	my ($t, @parts) = @_;

	return 'SELECT sum(n), sum(v) FROM (' . join(' UNION ALL ', map { visible_sql($_) } @parts) . ') q(n, v)' if @parts;
	my $pages = "(SELECT DISTINCT (ctid::text::point)[0]::bigint AS blkno, true AS has_rows FROM $t) p";

	return "SELECT count(*), -1 FROM $pages" if !$has_visibility;
	return "SELECT count(*), count(*) FILTER (WHERE all_visible) FROM $pages FULL JOIN pg_visibility_map('$t') USING (blkno)"
	  . ' WHERE has_rows OR all_visible';
}

# Why pages come back.
my @REASONS = (' Back for Values', ' Back with Rows Not Found', ' Back with Rows Refused', ' Back Not Read');
my @COUNTS = map { my $side = $_; map { "$side Pages$_" } '', ' Cached', ' Sent Back', @REASONS } 'Device', 'Build';

# What a plan says of the pages of its nodes, added up.
sub counts_of
{
	my ($plan) = @_;
	my %n;

	foreach my $what (@COUNTS)
	{
		$n{$what} = 0;
		$n{$what} += $_ foreach $plan =~ /"$what": (\d+)/g;
	}
	return \%n;
}

sub explained
{
	my ($session, $sql) = @_;

	return counts_of($session->query("$ON $EXPLAIN $sql"));
}

# "Device Pages" that came back, for each reason.
sub reasons
{
	my ($session, $sql) = @_;
	my $n = explained($session, $sql);

	return join ', ', map { $n->{"Device Pages$_"} . $_ } grep { $n->{"Device Pages$_"} > 0 } @REASONS;
}

# "Device Pages", how many of them were cached, and sent back.
sub device_pages
{
	my ($session, $sql) = @_;
	my $n = explained($session, $sql);

	return join ' ', @$n{ map { "Device Pages$_" } '', ' Cached', ' Sent Back' };
}

# Those of the table's that were cached, of a first scan.
sub cached_at_first
{
	my ($session, $t) = @_;

	return (split / /, device_pages($session, rows_sql($t)))[1];
}

# Looks at a table by its queries, off and then on, in one snapshot; all of that is one test.  Returns core's answers.
#
#	inside		the session is in a transaction, and stays there
#	expect		answers that these have to be
#	cached		so many pages have to come from the cache in the end; -1: any number; if not given, those that the
#				map vouches for
#	back		pages may be sent back
#	queries		other ones
#	parts		the table's partitions
sub looks_right
{
	my ($session, $t, $name, %o) = @_;
	my @q = $o{queries} ? @{ $o{queries} } : queries($t);
	my @digests = map { digest_sql($_) } @q;
	my ($first, @more) = @digests;
	my @lines = split /\n/, $session->query(
		join ";\n", $o{inside} ? () : 'BEGIN ISOLATION LEVEL REPEATABLE READ',
		$OFF . visible_sql($t, @{ $o{parts} // [] }), @digests, $ON . $first, @more,
		(map { "$EXPLAIN $_" } @q),
		$o{inside} ? () : 'COMMIT');
	my ($n_pages, $n_visible) = split /\|/, shift @lines;
	my @off = splice @lines, 0, scalar @q;
	my @on = splice @lines, 0, scalar @q;
	my @plans = split /^\]\n?/m, join "\n", @lines, '';
	my @wrong;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$n_visible = $o{cached} if defined $o{cached};
	foreach my $i (0 .. $#q)
	{
		my $n = counts_of($plans[$i]);
		# the planner says which side of a join is which
		my $side = $plans[$i] =~ /"Relation Name": "(\w+)"/ && $1 =~ /\A[df]\z/ ? 'Build' : 'Device';
		my ($all, $cached, $back) = @$n{ map { "$side Pages$_" } '', ' Cached', ' Sent Back' };

		push @wrong, "$q[$i]: off $off[$i], on $on[$i]" if $off[$i] ne $on[$i];
		push @wrong, "$q[$i]: core has $off[$i], and had $o{expect}[$i]" if $o{expect} && $off[$i] ne $o{expect}[$i];
		push @wrong, "$q[$i]: $all pages read, of $n_pages" if $all != $n_pages;
		push @wrong, "$q[$i]: $cached pages from the cache, not $n_visible" if $n_visible >= 0 && $cached != $n_visible;
		push @wrong, "$q[$i]: $back pages sent back" if $back != 0 && !$o{back};
		$back -= $n->{"$side Pages$_"} foreach @REASONS;
		push @wrong, "$q[$i]: pages sent back for no reason" if $back != 0;
	}
	is(join("\n", @wrong), '', $name);
	return \@off;
}

# The same of other queries, without a word of where their pages are from.
sub same_rows
{
	my ($session, $name, @sql) = @_;
	my ($first, @more) = map { digest_sql($_) } @sql;
	my @lines = split /\n/, $session->query(
		join ";\n", 'BEGIN ISOLATION LEVEL REPEATABLE READ', $OFF . $first, @more, $ON . $first, @more, 'COMMIT');
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(join("\n", @lines[ @sql .. $#lines ]), join("\n", @lines[ 0 .. $#sql ]), $name);
	return;
}

# ---------- tables ----------

# A new table with base's rows, or others, vacuumed; nothing of it is cached.
sub fresh
{
	my ($t, $from) = @_;

	$from //= 'base';
	# with room for versions on the same page
	$admin->query("DROP TABLE IF EXISTS $t CASCADE; CREATE TABLE $t (LIKE base) WITH (fillfactor = 70);"
			. "INSERT INTO $t SELECT * FROM $from; CREATE INDEX ${t}_id ON $t (id); VACUUM $t");
	return table_pages($t);
}

# Base's rows n times.
sub repeated
{
	my ($n) = @_;

	return "base UNION ALL SELECT id + 3000 * i, k, v + i, w, s, n, x FROM base, generate_series(1, $n - 1) i";
}

sub table_pages
{
	my ($t) = @_;

	return $admin->query("SELECT pg_relation_size('$t') / current_setting('block_size')::int");
}

# What the view says of a table; '' if nothing.
sub viewed
{
	my ($t, $columns) = @_;

	return $admin->query("SELECT $columns FROM gpurhh_cache WHERE relation = '$t'::regclass");
}

sub fails_with
{
	my ($session, $sql, $state, $name) = @_;
	my ($out, $err) = $session->try($sql);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	like($err, qr/^ERROR:  $state:/m, $name // $sql);
	return;
}

# ---------- where pages are ----------

# Before 16 sessions remember in which buffers the pages of a table are.  Of one that took most of them a third of these notes once
# fell on the places of others, and were forgotten in each scan.
sub hints
{
	plan skip_all => 'from 16 on there are no hints' if $node->pg_version >= 16;
	$admin->query(q{CREATE TABLE wide (k int, pad text); ALTER TABLE wide ALTER pad SET STORAGE PLAIN;
		INSERT INTO wide SELECT i % 10, repeat('x', 3800) FROM generate_series(1, 13000) i; VACUUM ANALYZE wide});
	foreach my $read_pages ('off', 'on')
	{
		# the first finds out
		foreach my $scan (1, 2)
		{
			$admin->query("SELECT gpurhh_cache_drop('wide')");
			my $there = $admin->query("SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('wide') AND relforknumber = 0");
			my (undef, undef, $messages) = $node->psql('postgres', "$ON SET gpurhh.read_pages = $read_pages;"
					. 'SET client_min_messages = debug2; SELECT k, count(*) FROM wide GROUP BY k');
			my ($found, $pages) = $messages =~ /(\d+) of (\d+) pages were in the buffers that hints named/;
			is($pages, 6500, "pages were read, gpurhh.read_pages = $read_pages");
			cmp_ok($there, '>', 5000, 'most of them were in buffers');
			cmp_ok($found, '>', 0.97 * $there, 'and nearly all of these were where they had been found') if $scan == 2;
		}
	}
	$admin->query('DROP TABLE wide');
	return;
}

# ---------- what is cached ----------

sub scans
{
	my $n = fresh('c');
	my ($rows, $where, $join, $built) = queries('c');

	is(device_pages($s, $rows), "$n 0 0", 'the first scan of a table');
	is(device_pages($s, $rows), "$n $n 0", 'the second has all pages from the cache');
	is(device_pages($s, $where), "$n $n 0", 'other columns and WHERE, too');
	is(device_pages($s, 'SELECT s, count(*) FROM c WHERE v < 0 GROUP BY s'), "$n $n 0", 'and a WHERE that drops all rows');
	is(device_pages($s, 'SELECT count(*), sum(w) FROM c'), "$n $n 0", 'no keys');
	is(explained($s, $built)->{'Build Pages Cached'}, $n, 'as a build side');
	is(viewed('c', 'database, bytes, pages, misses'),
		join('|', 'postgres', int(($n + CHUNK - 1) / CHUNK) * CHUNK_BYTES, $n, $n), 'the view');
	is(viewed('c', "age BETWEEN '0' AND '1 minute'"), 't', 'and how long ago it was');
	my $hits = viewed('c', 'hits');
	device_pages($s, $rows) foreach 1 .. 3;
	is(viewed('c', 'hits') - $hits, 3 * $n, 'hits are counted');
	looks_right($s, 'c', 'the rows');

	$admin->query('CREATE TABLE dirty (LIKE base); INSERT INTO dirty SELECT * FROM base');
	looks_right($s, 'dirty', 'a table that was not vacuumed', cached => 0);
	is(viewed('dirty', '*'), '', 'is not in the view');
	$admin->query('VACUUM dirty');
	looks_right($s, 'dirty', 'once it was it comes to the cache');
	$admin->query("UPDATE dirty SET v = v + 1 WHERE id BETWEEN 300 AND 900; SELECT gpurhh_cache_drop('dirty')");
	looks_right($s, 'dirty', 'what has changed does not');
	is(viewed('dirty', 'pages'), $admin->query("SELECT count(*) FROM pg_visibility_map('dirty') WHERE all_visible"),
		'only pages are kept of which all rows are visible') if $has_visibility;

	is($admin->query("SELECT gpurhh_cache_drop('c')"), $n, 'dropped');
	is(viewed('c', '*'), '', 'not in the view any more');
	is($admin->query("SELECT gpurhh_cache_drop('c')"), 0, 'dropped again');
	is(device_pages($s, $rows), "$n 0 0", 'read anew');
	is(device_pages($s, $rows), "$n $n 0", 'cached anew');

	# rows are counted as if the session had read them
	$admin->query("SELECT gpurhh_cache_drop('c')");
	my @counts = map { join ', ', $s->query("$ON $EXPLAIN $where") =~ /"(?:Rows Fed|Actual Rows|Rows Removed by Filter)": \d+/g } 1, 2;
	is($counts[1], $counts[0], 'EXPLAIN counts the same rows');

	$admin->query("SELECT gpurhh_cache_drop('c')");
	my $settings = "SELECT string_agg(name || setting, ' ' ORDER BY name) FROM pg_settings WHERE source = 'session'";
	$s->query('SET gpurhh.read_pages = off; SET max_parallel_workers_per_gather = 2; SET enable_indexscan = on');
	my $before = $s->query($settings);
	is($s->query("SELECT gpurhh_cache_load('c')"), $n, 'loaded, whatever the settings');
	is($s->query($settings), $before, 'and these are as they were');
	$s->query('RESET ALL');
	is(device_pages($s, $rows), "$n $n 0", 'so the first scan has it from the cache');
	is($s->query("SELECT gpurhh_cache_load('c')"), $n, 'loaded again');
	is($s->query("BEGIN READ ONLY; SELECT gpurhh_cache_load('c'); COMMIT"), $n, 'in a transaction that is read-only');
	$admin->query(q{CREATE SCHEMA "Sch""ema"; CREATE TABLE "Sch""ema"."Ta ""ble" AS SELECT * FROM base;
		VACUUM "Sch""ema"."Ta ""ble"});
	cmp_ok($s->query(q{SELECT gpurhh_cache_load('"Sch""ema"."Ta ""ble"')}), '>', 0, 'a name with quotes');
	$admin->query('CREATE TABLE empty (LIKE base); VACUUM empty');
	is($s->query("SELECT gpurhh_cache_load('empty')"), 0, 'an empty table');
	looks_right($s, 'empty', 'which has no rows');
	is($s->query('SELECT gpurhh_cache_load(NULL) IS NULL AND gpurhh_cache_drop(NULL) IS NULL'), 't', 'NULL');
	return;
}

# What the planner takes a query to cost, in the session that looks.
sub plan_cost
{
	my ($sql) = @_;

	return $s->query("$ON EXPLAIN $sql") =~ /\.\.([\d.]+)/ ? $1 : die 'no cost';
}

# Copies of pages need not have all columns of a row.
sub partial_copies
{
	my $n = fresh('c');
	my ($one, $first, $two) = map { "SELECT $_, count(*) FROM c GROUP BY $_" } 'k', 'id', 'k, v';
	my $pages = 'pages, partial_pages';

	$s->query('SET gpurhh.partial_copies = on');
	is(device_pages($s, $one), "$n 0 0", 'the first scan of a table');
	is(viewed('c', $pages), "$n|$n", 'its pages are there with their first columns');
	my %kept = map { $_ => plan_cost($_) } $one, $two;
	is(device_pages($s, $_), "$n $n 0", "$_: from the cache") foreach $one, $first, 'SELECT count(*), sum(k) FROM c WHERE k <> 7';
	is(device_pages($s, $two), "$n 0 0", 'a query that needs one more reads them again');
	is(viewed('c', $pages), "$n|0", 'as a whole');
	looks_right($s, 'c', 'the rows');
	is(device_pages($s, $_), "$n $n 0", "$_: from the cache") foreach $one, $two, rows_sql('c');

	my $of_all = plan_cost($two);
	$admin->query("SELECT gpurhh_cache_drop('c')");
	cmp_ok($kept{$one}, '<', plan_cost($one), 'the planner knows that they are there');
	is($kept{$two}, plan_cost($two), 'and who needs more of them');
	cmp_ok($of_all, '<', $kept{$two}, 'until they are there as a whole');

	foreach my $whole ('off', 'auto', 'on')
	{
		$admin->query("SELECT gpurhh_cache_drop('c')");
		$s->query('SET gpurhh.partial_copies = on');
		device_pages($s, $one);
		is(viewed('c', $pages), "$n|$n", 'first columns');
		$s->query("SET gpurhh.partial_copies = $whole");
		# where only whole ones will do the others are not taken
		is(device_pages($s, $one), $whole eq 'off' ? "$n 0 0" : "$n $n 0", "the next scan, $whole");
		is(viewed('c', $pages), $whole eq 'off' ? "$n|0" : "$n|$n", 'and what is there then');
		is($s->query("SELECT gpurhh_cache_load('c')"), $n, 'loaded');
		is(viewed('c', $pages), "$n|0", 'as a whole');
		is(device_pages($s, rows_sql('c')), "$n $n 0", 'so any scan has it from the cache');
	}
	$admin->query("SELECT gpurhh_cache_drop('c')");
	is(device_pages($s, $_), "$n 0 0", $_) foreach $one, $two;
	is(viewed('c', $pages), "$n|0", 'a table that is read again is there as a whole');
	$admin->query('UPDATE c SET v = v + 1 WHERE id % 500 = 0; VACUUM c');
	$n = table_pages('c');
	is((split / /, device_pages($s, $one))[1], 0, 'what has changed is read again');
	is(viewed('c', $pages), "$n|$n", 'with the first columns, as nobody has asked for more since');

	# count(*) needs no column, not even the first one
	$admin->query("SELECT gpurhh_cache_drop('c')");
	is(device_pages($s, 'SELECT count(*) FROM c'), "$n 0 0", 'count(*)');
	same_rows($s, 'and then the first column', $first);
	is(viewed('c', $pages), "$n|0", 'for which pages were read again');

	# pages that some queries cannot read, beside whole copies
	$admin->query("UPDATE c SET s = repeat('z', 20) WHERE id = 1; VACUUM c; SELECT gpurhh_cache_drop('c')");
	$n = table_pages('c');
	device_pages($s, $_) foreach 'SELECT s, count(*) FROM c GROUP BY s', $two;
	is(device_pages($s, $two), "$n $n 0", 'come to the cache with a query that can');
	$n = fresh('c');
	device_pages($s, $one);

	# what is in use stays as it is
	$s->query("$ON SET gpurhh.batch_rows = 300; BEGIN; DECLARE resting CURSOR FOR SELECT c.id, c.k, f.v FROM c JOIN f USING (id); FETCH 1 FROM resting");
	$writer->query('SET gpurhh.partial_copies = on');
	foreach my $again (1, 2)
	{
		looks_right($writer, 'c', "more is needed while a cursor rests, $again", cached => -1);
	}
	my @rest = split /\n/, $s->query('FETCH ALL FROM resting; COMMIT; RESET ALL');
	is(1 + @rest, $s->query('SELECT count(*) FROM c JOIN f USING (id)'), 'and the cursor goes on');
	$writer->query('RESET ALL');
	looks_right($s, 'c', 'in the end') foreach 1, 2;
	return;
}

sub rights
{
	my ($load, $drop, $view) = ("SELECT gpurhh_cache_load('c')", "SELECT gpurhh_cache_drop('c')", 'SELECT * FROM gpurhh_cache');

	$admin->query(q{
		CREATE ROLE nobody; CREATE ROLE reader; CREATE ROLE watcher IN ROLE pg_monitor;
		GRANT SELECT ON c TO reader;
		CREATE VIEW v AS SELECT * FROM c;
		CREATE TABLE parted (LIKE base) PARTITION BY RANGE (id);
		CREATE UNLOGGED TABLE unlogged AS SELECT * FROM base;
		CREATE MATERIALIZED VIEW m AS SELECT * FROM base;
		CREATE TABLE part (LIKE base);
		CREATE TABLE secret AS SELECT 1 AS i; ALTER TABLE secret ENABLE ROW LEVEL SECURITY; GRANT SELECT ON secret TO reader;
		VACUUM unlogged, m, secret});
	$s->query('SET ROLE nobody');
	fails_with($s, $_, 42501, "nobody: $_") foreach $view, 'SELECT * FROM gpurhh_cache_files()', $load, $drop;
	$s->query('RESET ROLE; SET ROLE reader');
	fails_with($s, $_, 42501, "who may read the table: $_") foreach $view, $drop;
	is($s->query($load), table_pages('c'), 'may load it');
	is($s->query("SELECT gpurhh_cache_load('secret') >= 0"), 't', 'also where policies hide rows');
	$s->query('RESET ROLE; SET ROLE watcher');
	cmp_ok($s->query('SELECT count(*) FROM gpurhh_cache'), '>', 0, 'members of pg_monitor see the view');
	fails_with($s, $_, 42501, "and may not: $_") foreach $load, $drop;
	$s->query('RESET ROLE');
	$admin->query('GRANT EXECUTE ON FUNCTION gpurhh_cache_drop(regclass) TO nobody');
	is($s->query("SET ROLE nobody; $drop; RESET ROLE"), table_pages('c'), 'dropping can be granted');

	foreach my $what ('v', 'parted', 'c_id')
	{
		fails_with($s, "SELECT gpurhh_cache_$_('$what')", 42809) foreach 'load', 'drop';
	}
	$s->query('CREATE TEMP TABLE temporary AS SELECT * FROM base; VACUUM temporary');
	fails_with($s, "SELECT gpurhh_cache_load('$_')", 55000) foreach 'unlogged', 'temporary', 'pg_class', 'pg_proc';
	foreach my $made ('CREATE TABLE mine (LIKE base)',
		'CREATE TABLE mine AS SELECT * FROM base',
		'SAVEPOINT a; CREATE TABLE mine (LIKE base); RELEASE a',
		'TRUNCATE part; ALTER TABLE part RENAME TO mine',
		'ALTER TABLE part ALTER k TYPE bigint; ALTER TABLE part RENAME TO mine',
		'ALTER TABLE part RENAME TO mine; SAVEPOINT a; TRUNCATE mine; SAVEPOINT b; TRUNCATE mine; ROLLBACK TO b',
		'REFRESH MATERIALIZED VIEW m; ALTER TABLE m RENAME TO mine')
	{
		$s->query("BEGIN; $made");
		fails_with($s, "SELECT gpurhh_cache_load('mine')", 55000, "in its transaction: $made");
		$s->query('ROLLBACK');
	}
	$s->query('BEGIN ISOLATION LEVEL SERIALIZABLE');
	fails_with($s, $load, 55000, 'in a serializable transaction');
	$s->query('ROLLBACK');

	# not by scans either
	looks_right($s, 'c', 'a table');
	looks_right($s, 'm', 'a materialized view');
	foreach my $change ('VACUUM unlogged', 'UPDATE unlogged SET v = v + 1 WHERE id % 70 = 1', 'VACUUM unlogged',
		'DELETE FROM unlogged WHERE id % 90 = 1', 'VACUUM unlogged')
	{
		$admin->query($change);
		looks_right($s, 'unlogged', "an unlogged table, $change", cached => 0) foreach 1, 2;
	}
	$s->query('BEGIN ISOLATION LEVEL SERIALIZABLE');
	looks_right($s, 'c', 'in a serializable transaction', inside => 1, cached => 0);
	$s->query('COMMIT');
	# pages of these no device reads
	foreach my $sql ('SELECT relkind, count(*) FROM pg_class GROUP BY relkind', 'SELECT k, count(*) FROM temporary GROUP BY k')
	{
		same_rows($s, $sql, $sql);
		is(explained($s, $sql)->{'Device Pages Cached'}, 0, 'none are cached') foreach 1, 2;
	}
	is($admin->query("SELECT count(*) FROM gpurhh_cache WHERE relation::text IN ('unlogged', 'pg_class', 'temporary')"), 0,
		'nor in the view');
	return;
}

# ---------- kinds of scans ----------

sub kinds_of_scans
{
	my $n = fresh('big', repeated(12));
	my ($rows, $where, $join, $built) = queries('big');

	# of several batches
	looks_right($s, 'big', 'many pages');
	foreach my $set ('SET gpurhh.batch_rows = 300', 'SET gpurhh.batch_rows = 2000', $PARALLEL)
	{
		$s->query($set);
		looks_right($s, 'big', "with $set");
		$admin->query("SELECT gpurhh_cache_drop('big')");
		looks_right($s, 'big', "with $set, from the beginning");
		$s->query('RESET ALL');
	}
	# a chunk may have more rows than a batch
	$s->query('SET gpurhh.batch_rows = 210');
	looks_right($s, 'c', 'with batches that are too small', cached => 0);
	$s->query('RESET ALL');
	$s->query("$PARALLEL; SET parallel_leader_participation = off");
	like($s->query("$ON EXPLAIN (COSTS OFF) " . digest_sql($rows)), qr/Gather.*Parallel Custom Scan/s, 'a parallel plan');
	looks_right($s, 'big', 'workers alone');
	$s->query('RESET ALL');

	# what the device reads takes as long whoever hands it over, also where it is not kept yet
	$s->query('SET max_parallel_workers_per_gather = 2');
	foreach my $sql ($where, $join, $built)
	{
		foreach my $kept ('', 'not ')
		{
			$admin->query("SELECT gpurhh_cache_drop('big')") if $kept;
			unlike($s->query("$ON EXPLAIN (COSTS OFF) $sql"), qr/Gather/, "${kept}kept, one process: $sql");
			explained($s, $sql);
		}
	}
	# no leader is needed for that
	$s->query('SET parallel_leader_participation = off');
	unlike($s->query("$ON EXPLAIN (COSTS OFF) $_"), qr/Gather/, "one process, which is no leader: $_") foreach $where, $join;
	$s->query('RESET parallel_leader_participation');
	$s->query('SET gpurhh.read_pages = off');
	like($s->query("$ON EXPLAIN (COSTS OFF) $where"), qr/Gather/, 'sessions make columns: several');
	$s->query('RESET ALL');

	# the map has no place for rows: these alone are fed, of their pages
	foreach my $set ('gpurhh.max_probe_buckets = 1', "gpurhh.device_memory = '1MB'")
	{
		$s->query("SET $set");
		looks_right($s, 'big', "with $set", back => 1, queries => [ $rows, $where, $join ]);
		# (a GPU finds places for all in the first bucket, too)
		like(reasons($s, $rows), qr/^\d+ Back with Rows Refused$/, 'pages came back') if $device eq 'cpu' || $set !~ /probe/;
		same_rows($s, "joins with $set", $built, 'SELECT t.id, t.w, f.v FROM f JOIN big t USING (id)',
			'SELECT t.v, count(*), sum(u.w) FROM c t JOIN big u USING (k) GROUP BY t.v');
		$s->query('RESET ALL');
	}
	# a build side in parts, so that the probe side is read several times
	my $parts = 'SELECT t.v, count(*), sum(u.w), max(u.x), sum(u.n), max(u.v), min(u.k)
		FROM big t JOIN big u ON t.id = u.id GROUP BY t.v';
	$s->query("SET gpurhh.device_memory = '1MB'");
	like($s->query("$ON $EXPLAIN $parts"), qr/"Passes": ([2-9]|\d\d)/, 'a join in several passes') if $device eq 'cpu';
	same_rows($s, 'has the same rows', $parts);
	$s->query('RESET ALL');

	# joins that return rows; a table that is joined with itself
	same_rows($s, 'joined rows', map { $_, "SELECT count(*), count(DISTINCT q.id) FROM ($_ LIMIT 700) q" }
			'SELECT t.id, t.s, d.g FROM big t JOIN d USING (k)', 'SELECT t.id, t.s, u.w FROM big t LEFT JOIN c u USING (id)');
	same_rows($s, 'joined with itself', 'SELECT t.s, count(*), sum(u.w) FROM c t JOIN c u ON t.id = u.w GROUP BY t.s',
		'SELECT t.s, count(*), sum(u.w) FROM c t FULL JOIN c u ON t.id = u.v GROUP BY t.s');
	is(explained($s, 'SELECT t.id, t.s, u.w FROM big t JOIN c u USING (id)')->{'Build Pages Cached'}, table_pages('c'),
		'the build side of joined rows is from the cache');

	# more than once in a query, and once for each row of another table
	same_rows($s, 'subqueries',
		'SELECT o.i, q.* FROM generate_series(1, 5) o(i), LATERAL (SELECT k, count(*), sum(w) FROM c WHERE v > o.i GROUP BY k) q',
		'SELECT o.i, (SELECT sum(n) FROM (SELECT k, count(*) AS n FROM c WHERE v < o.i GROUP BY k) q) FROM generate_series(1, 5) o(i)',
		'SELECT k, count(*) FROM c WHERE w > (SELECT avg(w) FROM big) GROUP BY k',
		'SELECT k, sum(v) FROM c GROUP BY k UNION ALL SELECT k, sum(v) FROM c WHERE v < 300 GROUP BY k',
		'SELECT k, count(*) FROM c WHERE EXISTS (SELECT FROM big WHERE big.id = c.v) GROUP BY k');

	my $prepared = '(int, text) AS SELECT k, count(*), sum(w) FROM c WHERE v < $1 AND s <> $2 GROUP BY k';
	my $pages = table_pages('c');
	$s->query("SET plan_cache_mode = force_generic_plan; $ON PREPARE p$prepared; $OFF PREPARE q$prepared");
	foreach my $change ('SELECT', 'UPDATE c SET v = 2 WHERE id % 700 = 1', 'VACUUM c', 'SELECT')
	{
		$admin->query($change);
		foreach my $values ("500, 'y1'", "20, 'no'", "0, ''")
		{
			# (plans are made anew after VACUUM)
			my ($on, $off) = map { join "\n", sort split /\n/, $s->query($_) } "$ON EXECUTE p($values)", "$OFF EXECUTE q($values)";

			is($on, $off, "prepared, after $change: $values");
		}
	}
	is(counts_of($s->query("$ON $EXPLAIN EXECUTE p(500, '')"))->{'Device Pages Cached'}, $pages, 'from the cache');
	$s->query('DEALLOCATE ALL; RESET ALL');

	# VACUUM has counted pages that are not all visible any more: once the planner believed it
	$s->query('SET max_parallel_workers_per_gather = 2');
	$admin->query('DELETE FROM big WHERE id % 10 = 3');
	like($s->query("$ON EXPLAIN (COSTS OFF) $where"), qr/Gather/, 'no page is all visible: several');
	$admin->query('VACUUM big');
	unlike($s->query("$ON EXPLAIN (COSTS OFF) $where"), qr/Gather/, 'all visible again: one');
	$s->query('RESET ALL');
	return;
}

# Pages that are not in shared buffers are read by processes.
sub not_in_buffers
{
	fresh('big', repeated(12));
	$admin->query('ANALYZE big');
	my (undef, $where, $join) = queries('big');

	restart_with();
	$s->query('SET max_parallel_workers_per_gather = 2');
	# that tells which device has the cache
	$s->query("$ON SELECT k, count(*) FROM c GROUP BY k");
	is($s->query('SELECT count(*) FROM gpurhh_cache'), 1, 'a device keeps pages, of another table');
	foreach my $sql ($where, $join)
	{
		like($s->query("$ON EXPLAIN (COSTS OFF) $sql"), qr/Gather/, "several processes: $sql");
	}
	$s->query("$OFF SELECT count(*) FROM $_") foreach 'big', 'd';
	foreach my $sql ($where, $join)
	{
		# (where processes cost nothing, two feed a GPU faster than one)
		unlike($s->query("$ON EXPLAIN (COSTS OFF) $sql"), qr/Gather/, "one process, in buffers: $sql") if $device eq 'cpu';
	}
	$s->query('RESET ALL');
	return;
}

# Below an Append.
sub partitions
{
	my @parts = map { "p$_" } 1 .. 4;

	$admin->query(q{
		DROP TABLE IF EXISTS parted, part;
		CREATE TABLE parted (LIKE base) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
		CREATE TABLE p2 (x bigint, gone int, s text, n numeric(12, 2), v int, w bigint, k int, id int);
		ALTER TABLE p2 DROP gone;
		ALTER TABLE parted ATTACH PARTITION p2 FOR VALUES FROM (1000) TO (2500);
		CREATE TABLE p3 PARTITION OF parted FOR VALUES FROM (2500) TO (2600);
		CREATE TABLE p4 PARTITION OF parted DEFAULT;
		INSERT INTO parted SELECT * FROM base;
		VACUUM parted});
	looks_right($s, 'parted', 'partitions', parts => \@parts);
	$s->query($PARALLEL);
	looks_right($s, 'parted', 'in parallel', parts => \@parts);
	$s->query('RESET ALL');
	$admin->query('UPDATE parted SET v = v + 1 WHERE id % 1000 = 7; DELETE FROM p3');
	looks_right($s, 'parted', 'changed', parts => \@parts);
	$admin->query('VACUUM p3, p2');
	looks_right($s, 'parted', 'of which two were vacuumed', parts => \@parts);
	same_rows($s, 'UNION ALL', 'SELECT k, count(*), sum(v) FROM
		(SELECT * FROM p1 UNION ALL SELECT * FROM c UNION ALL SELECT * FROM p1) q GROUP BY k');
	is($s->query("SELECT gpurhh_cache_load('p4')"), table_pages('p4'), 'a partition is loaded by itself');

	# one of them cannot be cached
	$admin->query('ALTER TABLE p3 SET UNLOGGED;
		INSERT INTO parted SELECT 2500 + i, i, i, i, i, i, i FROM generate_series(1, 90) i; VACUUM parted');
	looks_right($s, 'parted', 'one is unlogged', parts => \@parts, cached => 0);
	$admin->query('UPDATE parted SET v = v + 1 WHERE id % 100 = 7');
	looks_right($s, 'parted', 'one is unlogged, and all have changed', parts => \@parts, cached => 0);
	return;
}

# ---------- kinds of pages ----------

sub kinds_of_pages
{
	# values that a device does not take, on some pages: long and toasted strings, NaN, another scale
	$admin->query(q{
		CREATE TABLE odd (LIKE base);
		INSERT INTO odd SELECT * FROM unnest(ARRAY(
			SELECT ROW(id, k, v, w,
				CASE WHEN id BETWEEN 300 AND 310 THEN repeat('long', 9) || id WHEN id = 2000 THEN repeat(md5(id::text), 3000) ELSE s END,
				CASE WHEN id BETWEEN 2500 AND 2502 THEN ('{NaN,1.2345,12345678901234567890.12}'::numeric[])[id - 2499] ELSE n END, x)
			FROM base ORDER BY id)) q(id int, k int, v int, w bigint, s text, n numeric(12, 2), x bigint);
		VACUUM odd});
	my @q = queries('odd');
	my $plain = 'SELECT k, sum(v), max(w), count(x) FROM odd GROUP BY k';
	my $n = table_pages('odd');

	# a page is kept by the first query that can read it
	foreach my $first ($plain, $q[0])
	{
		$admin->query("SELECT gpurhh_cache_drop('odd')");
		foreach my $i (1 .. 3)
		{
			cmp_ok(explained($s, $first)->{'Device Pages Sent Back'}, $first eq $plain ? '==' : '>', 0, 'sent back, or not');
			same_rows($s, "odd values, $i", $plain, @q);
		}
	}
	is(device_pages($s, $plain), "$n $n 0", 'columns without such values are from the cache');
	like(reasons($s, $_), qr/^\d+ Back for Values$/, "copies are sent back: $_") foreach @q[ 0, 1 ];
	$admin->query('UPDATE odd SET v = v + 5000 WHERE id IN (5, 305, 2000, 2501)');
	same_rows($s, 'odd values, changed', $plain, @q);
	$admin->query('VACUUM odd');
	same_rows($s, 'odd values, vacuumed', $plain, @q) foreach 1, 2;

	# the last page of a chunk has a NULL, then what the device does not take; those behind it have neither
	$admin->query('CREATE TABLE flat AS SELECT * FROM ' . repeated(4) . q{ ORDER BY id;
		CREATE TABLE holes (LIKE base);
		WITH last AS (SELECT id, row_number() OVER (ORDER BY id) AS r FROM flat WHERE (ctid::text::point)[0] = 31)
		INSERT INTO holes SELECT id, k, v, CASE WHEN r BETWEEN 2 AND 4 THEN NULL ELSE w END,
			CASE WHEN r = 5 THEN repeat('long', 9) ELSE s END, n, x FROM flat LEFT JOIN last USING (id) ORDER BY id;
		VACUUM holes});
	my $holes = 'SELECT s, count(*), count(w), sum(w) FROM holes GROUP BY s';
	same_rows($s, "a page with a NULL is sent back, $_", $holes, queries('holes')) foreach 1 .. 3;
	cmp_ok(explained($s, $holes)->{'Device Pages Sent Back'}, '>', 0, 'it is');

	# a column that was added later is in no page
	my @y = ('SELECT y, count(*), sum(y), count(z) FROM c GROUP BY y', 'SELECT k, sum(y) FROM c WHERE y < 8 GROUP BY k',
		'SELECT k, count(z), sum(v) FROM c GROUP BY k');
	$n = fresh('c');
	looks_right($s, 'c', 'before there is another column');
	$admin->query("ALTER TABLE c ADD y int DEFAULT 7, ADD z int");
	looks_right($s, 'c', 'columns were added');
	same_rows($s, 'of which all rows have the default', @y);
	is(device_pages($s, $y[0]), "$n $n $n", 'pages come back');
	$admin->query('UPDATE c SET y = 8, z = 3 WHERE id % 400 = 3');
	same_rows($s, 'or not', @y);
	$admin->query('VACUUM c');
	same_rows($s, 'or not, vacuumed', @y) foreach 1, 2;
	$admin->query('ALTER TABLE c DROP y; ALTER TABLE c ADD y text');
	same_rows($s, 'dropped and added', 'SELECT y, count(*) FROM c GROUP BY y');
	looks_right($s, 'c', 'columns were dropped');

	# one row a page; as many rows as a page can have; NULLs alone; many columns
	my %kinds = (wide => 'SELECT v, count(*), sum(id) FROM wide GROUP BY v',
		narrow => 'SELECT v, count(*) FROM narrow GROUP BY v',
		nulls => 'SELECT v, s, count(*), sum(n) FROM nulls GROUP BY v, s',
		columns => 'SELECT c20, sum(c119), count(*) FROM columns WHERE c100 < 50 GROUP BY c20');
	my $columns = join ', ', map { "c$_ int" } 1 .. 120;
	my $values = join ', ', map { "i % $_" } 1 .. 120;
	$admin->query("
		CREATE TABLE wide (id int, v int, fat text);
		ALTER TABLE wide ALTER fat SET STORAGE PLAIN;
		INSERT INTO wide SELECT i, i % 10, repeat('x', 5000) FROM generate_series(1, 50) i;
		CREATE TABLE narrow AS SELECT (i % 50)::smallint AS v FROM generate_series(1, 20000) i;
		CREATE TABLE nulls AS SELECT NULL::int AS v, NULL::text AS s, NULL::numeric(10, 2) AS n FROM generate_series(1, 20000) i;
		CREATE TABLE columns ($columns);
		INSERT INTO columns SELECT $values FROM generate_series(1, 1000) i;
		CREATE TABLE none ();
		INSERT INTO none SELECT FROM generate_series(1, 3000);
		VACUUM wide, narrow, nulls, columns, none");
	looks_right($s, $_, "kind of page: $_", queries => [ $kinds{$_} ]) foreach sort keys %kinds;
	same_rows($s, 'no columns', 'SELECT count(*) FROM none');
	return;
}

# ---------- rows and pages change ----------

# Cursors over c: one that has not begun, and one that is amid its rows.
sub open_cursors
{
	my $joined = 'SELECT t.id, t.v, t.w, t.s, d.g FROM c t JOIN d USING (k)';

	$cursors->query("BEGIN; $ON DECLARE grouped CURSOR FOR " . rows_sql('c') . "; DECLARE joined CURSOR FOR $joined");
	return {
		first => $cursors->query("SELECT * FROM drain('joined', 5)"),
		grouped => $s->query($OFF . digest_sql(rows_sql('c'))),
		joined => $s->query($OFF . digest_sql($joined)) };
}

# Adds up results of drain(); the hashes are large for Perl.
sub drained
{
	my (@parts) = @_;

	return $admin->query('SELECT sum(n), sum(h) FROM (VALUES ' . join(',', map { '(' . s/\|/,/r . ')' } @parts) . ') q(n, h)');
}

sub cursors_are_right
{
	my ($c, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is(drained($c->{first}, $cursors->query("SELECT * FROM drain('joined', NULL)")), $c->{joined}, "$name: a cursor that had begun");
	is($cursors->query("SELECT * FROM drain('grouped', NULL)"), $c->{grouped}, "$name: a cursor that had not");
	$cursors->query('COMMIT');
	return;
}

# Takes c, all of which is cached, from one state to the next by the statements, and looks after each: by the
# session that makes the change, by another, and by one whose snapshot is from before.  Then vacuums.
sub changed
{
	my ($name, @steps) = @_;
	my $before = looks_right($s, 'c', "$name: before");
	my %rows = (queries => [ rows_sql('c') ]);

	$old->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	looks_right($old, 'c', "$name: the old snapshot, at first", inside => 1, expect => $before, %rows);
	my $c = open_cursors();
	foreach my $step (@steps)
	{
		$writer->query($step);
		looks_right($writer, 'c', "$name: its session, after: $step", inside => 1, %rows);
		looks_right($s, 'c', "$name: another session", %rows);
		looks_right($old, 'c', "$name: the old snapshot", inside => 1, expect => $before, %rows);
	}
	cursors_are_right($c, $name);
	# (to truncate it would wait for the old snapshot's lock)
	$admin->query('VACUUM (TRUNCATE off) c');
	looks_right($old, 'c', "$name: the old snapshot, after VACUUM", inside => 1, expect => $before);
	looks_right($s, 'c', "$name: VACUUM while there was an old snapshot", %rows);
	$old->query('COMMIT');
	$admin->query('VACUUM c');
	looks_right($s, 'c', "$name: VACUUM");
	return;
}

# Each makes statements with another number each time, for other rows.
my @row_changes = (
	insert => sub { "INSERT INTO c SELECT id + $_[0] * 10000, k, v, w, s, n, x FROM base WHERE id % 40 = $_[0]" },
	'update on the same page' => sub { "UPDATE c SET v = v + 1000, n = n + 1 WHERE id % 400 = $_[0]" },
	'update of an indexed column' => sub { "UPDATE c SET id = id + 20000 WHERE id % 400 = 20 + $_[0]" },
	'update to other pages' => sub { "UPDATE c SET s = 'z' || k WHERE id BETWEEN $_[0] * 400 AND $_[0] * 400 + 300" },
	delete => sub { "DELETE FROM c WHERE id % 350 = $_[0]" },
	'delete of whole pages' => sub { "DELETE FROM c WHERE id BETWEEN 600 * $_[0] - 400 AND 600 * $_[0]" },
	'delete of a whole chunk' => sub { $_[0] == 1 ? 'DELETE FROM c WHERE id < 2600' : "DELETE FROM c WHERE id % 5 = $_[0]" },
	'on conflict do update' => sub {
		"INSERT INTO c SELECT id + 2900, k, v, w, s, n, x FROM base WHERE id % 20 = $_[0]
			ON CONFLICT (id) DO UPDATE SET v = c.v + 1, w = excluded.w" },
	'on conflict do nothing' => sub {
		"INSERT INTO c SELECT id + 2800, k, v, w, s, n, x FROM base WHERE id BETWEEN $_[0] * 50 AND $_[0] * 250
			ON CONFLICT DO NOTHING" },
	merge => sub {
		"MERGE INTO c USING (SELECT * FROM base WHERE id % 100 = $_[0]) q ON c.id = q.id + 2500
			WHEN MATCHED AND q.id % 200 = $_[0] THEN DELETE WHEN MATCHED THEN UPDATE SET v = -1
			WHEN NOT MATCHED THEN INSERT VALUES (q.id + 2500, 1, 2, 3, 'm', 4, 5)" },
	'for update' => sub { "SELECT count(*) FROM (SELECT FROM c WHERE id % 300 = $_[0] FOR UPDATE) q" });

sub rows_change
{
	for (my $i = 0; $i < @row_changes; $i += 2)
	{
		my ($name, $sql) = @row_changes[ $i, $i + 1 ];

		subtest $name => sub {
			fresh('c');
			$admin->query('DROP INDEX c_id; CREATE UNIQUE INDEX c_id ON c (id)');
			changed($name, $sql->(1));
			changed("$name, rolled back", 'BEGIN; ' . $sql->(2), 'ROLLBACK');
			changed("$name, to a savepoint", 'BEGIN; SAVEPOINT a; ' . $sql->(3), 'ROLLBACK TO a', 'COMMIT');
			$admin->query('VACUUM (FREEZE) c');
			looks_right($s, 'c', 'frozen');
			changed("$name, of frozen rows, some rolled back",
				'BEGIN; SAVEPOINT a; ' . $sql->(4),
				'ROLLBACK TO a; ' . $sql->(5),
				'SAVEPOINT b; SAVEPOINT c; ' . $sql->(6) . '; RELEASE c', 'COMMIT');
			done_testing();
		};
	}
	return;
}

sub locks
{
	fresh('c');
	changed('locks of one', 'BEGIN; SELECT count(*) FROM (SELECT FROM c WHERE id % 30 = 1 FOR KEY SHARE) q');
	$s->query('BEGIN; SELECT count(*) FROM (SELECT FROM c WHERE id % 20 = 1 FOR SHARE) q; COMMIT');
	$writer->query('UPDATE c SET v = 0 WHERE id % 40 = 1; COMMIT');
	changed('locks of two, and an update', 'DELETE FROM c WHERE id % 60 = 1');
	changed('locks to a savepoint', 'BEGIN; SAVEPOINT a; SELECT count(*) FROM (SELECT FROM c WHERE id % 30 = 2 FOR UPDATE) q',
		'ROLLBACK TO a; UPDATE c SET v = 7 WHERE id % 30 = 2', 'COMMIT');
	return;
}

# Core's scans set hint bits, and prune pages that are full.
sub hint_bits_and_pruning
{
	fresh('c');
	changed('hint bits', 'INSERT INTO c SELECT 10000 + id, k, v, w, s, n, x FROM base WHERE id < 900',
		'SET enable_indexscan = off; SELECT count(*) FROM c; RESET enable_indexscan');
	changed('pruned', 'UPDATE c SET v = v + 1 WHERE id % 4 = 1', 'UPDATE c SET v = v + 1 WHERE id % 4 = 2', 'SELECT count(*) FROM c',
		'UPDATE c SET v = v + 1 WHERE id % 4 = 1', 'SELECT count(*) FROM c');
	# nobody needs old versions here
	fresh('c');
	looks_right($s, 'c', 'before');
	foreach my $i (1 .. 4)
	{
		$writer->query("UPDATE c SET v = v + $i WHERE id % 3 = 1; SELECT count(*) FROM c; UPDATE c SET v = v - 1 WHERE id % 6 = 1");
		looks_right($s, 'c', "pruned at once, $i") foreach 1, 2;
		$admin->query('VACUUM c') if $i == 2;
	}
	return;
}

sub vacuums
{
	fresh('c');
	looks_right($s, 'c', 'before');
	foreach my $vacuum ('VACUUM c', 'VACUUM (FREEZE) c', 'VACUUM (DISABLE_PAGE_SKIPPING) c',
		'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) c', 'VACUUM (INDEX_CLEANUP off) c', 'ANALYZE c')
	{
		my $some = 'id % 700 = ' . length $vacuum;

		$admin->query($vacuum);
		looks_right($s, 'c', "$vacuum, nothing to do");
		$admin->query("DELETE FROM c WHERE $some");
		looks_right($s, 'c', 'deleted');
		$admin->query($vacuum);
		looks_right($s, 'c', $vacuum);
		$admin->query("INSERT INTO c SELECT id + 5000, k, v, w, s, n, x FROM base WHERE $some");
		looks_right($s, 'c', "$vacuum, inserted in place of these");
	}
	return;
}

# VACUUM gives the end of the file back, and other rows come there.
sub truncation
{
	my $n = fresh('c');

	looks_right($s, 'c', 'before');
	foreach my $i (1 .. 3)
	{
		$admin->query('DELETE FROM c WHERE id > 1500');
		# a snapshot, and no lock
		$old->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
		$admin->query('VACUUM c');
		cmp_ok(table_pages('c'), '<', $n, 'VACUUM truncates');
		looks_right($s, 'c', 'truncated');
		my $left = looks_right($old, 'c', 'a snapshot from before', inside => 1);
		$writer->query("BEGIN; INSERT INTO c SELECT id, k, v + $i, w + $i, s, n, x FROM base WHERE id > 1500");
		looks_right($_, 'c', 'grown again, uncommitted', inside => 1) foreach $writer, $old;
		looks_right($s, 'c', 'grown again, in another session');
		$writer->query('COMMIT');
		looks_right($s, 'c', 'grown again');
		$admin->query('VACUUM (TRUNCATE off) c');
		looks_right($old, 'c', 'the snapshot, at last', inside => 1, expect => $left);
		$old->query('COMMIT');
		looks_right($s, 'c', 'grown again, vacuumed while there was a snapshot');
		$admin->query('VACUUM c');
		looks_right($s, 'c', 'grown again, vacuumed');
	}
	$admin->query('DELETE FROM c; VACUUM c');
	is(table_pages('c'), 0, 'nothing is left');
	looks_right($s, 'c', 'nothing');
	$admin->query('INSERT INTO c SELECT * FROM base WHERE id % 2 = 1; VACUUM c');
	looks_right($s, 'c', 'something');
	return;
}

sub truncated_map
{
	plan skip_all => 'pg_visibility is not here' if !$has_visibility;
	fresh('c');
	looks_right($s, 'c', 'before');
	$admin->query("SELECT pg_truncate_visibility_map('c')");
	looks_right($s, 'c', 'no map', cached => 0);
	$admin->query('UPDATE c SET v = v + 1 WHERE id % 500 = 1');
	looks_right($s, 'c', 'no map, and changed', cached => 0);
	$admin->query('VACUUM c');
	looks_right($s, 'c', 'a new map');
	return;
}

# Two, of many batches; one begins later.
sub long_cursors
{
	my $sql = 'SELECT t.id, t.v, t.w, t.s, d.g FROM c t JOIN d USING (k)';
	my %meanwhile = (
		1 => 'UPDATE c SET v = 1 WHERE id % 40 = 1',
		2 => "SELECT gpurhh_cache_drop('c')",
		3 => 'VACUUM (TRUNCATE off) c; DELETE FROM c WHERE id BETWEEN 20000 AND 26000',
		5 => "SELECT gpurhh_cache_load('c')",
		6 => 'VACUUM (TRUNCATE off) c; UPDATE c SET w = w + 1');
	my (@a, @b);

	fresh('c', repeated(10));
	looks_right($s, 'c', 'before');
	my $before = $s->query($OFF . digest_sql($sql));
	$old->query("$ON SET gpurhh.batch_rows = 300; BEGIN; DECLARE a CURSOR FOR $sql; DECLARE b CURSOR FOR $sql");
	foreach my $i (0 .. 9)
	{
		my $n = $i < 9 ? 2000 : 'NULL';

		push @a, $old->query("SELECT * FROM drain('a', $n)");
		push @b, $old->query("SELECT * FROM drain('b', $n)") if $i > 4;
		next if !$meanwhile{$i};
		$writer->query($meanwhile{$i});
		looks_right($s, 'c', "meanwhile: $meanwhile{$i}");
	}
	is(drained(@a), $before, 'a cursor has the rows from before');
	is(drained(@b), $before, 'one that began later, too');
	$old->query('COMMIT; RESET ALL');
	$admin->query('VACUUM c');
	looks_right($s, 'c', 'in the end');
	return;
}

# ---------- files ----------

# Changes c by statements that keep everybody away from it; a snapshot from before, without a lock, looks once that is
# done.  Behind each statement is what may come from the cache then; undef: what the map vouches for.
sub replaced
{
	my ($name, @steps) = @_;
	my $rows = [ (queries('c'))[ 0, 3 ] ];

	subtest $name => sub {
		my $amid = 0;

		fresh('c');
		looks_right($s, 'c', 'before');
		$old->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
		while (my ($sql, $cached) = splice @steps, 0, 2)
		{
			$writer->query($sql);
			$amid = ($amid || $sql =~ /\ABEGIN/) && $sql !~ /(COMMIT|ROLLBACK)\z/;
			looks_right($writer, 'c', "its session, after: $sql", inside => 1, cached => $cached, queries => $rows);
			looks_right($s, 'c', 'another session', cached => $cached) if !$amid;
		}
		looks_right($old, 'c', 'a snapshot from before', inside => 1);
		$old->query('COMMIT');
		$writer->query('INSERT INTO c SELECT 50000 + id, k, v, w, s, n, x FROM base WHERE id % 50 = 1; VACUUM c');
		looks_right($s, 'c', 'inserted and vacuumed');
		done_testing();
	};
	return;
}

sub files_change
{
	my $others = 'INSERT INTO c SELECT id, v, k, w, s, n, x FROM base';
	my $some = 'UPDATE c SET v = 4 WHERE id % 70 = 3';
	my ($few, $half, $all) = map { "COPY c FROM '$dir/$_' (FREEZE)" } 'few', 'half', 'all';

	mkdir "$dir/ts" or die;
	$admin->query("CREATE TABLESPACE ts LOCATION '$dir/ts'");

	replaced('VACUUM FULL', 'DELETE FROM c WHERE id % 3 = 1', undef, 'VACUUM FULL c', undef, 'VACUUM c', undef);
	replaced('CLUSTER', 'UPDATE c SET id = -id', undef, 'CLUSTER c USING c_id', undef, 'VACUUM c', undef);
	replaced('CLUSTER, rolled back', 'BEGIN; CLUSTER c USING c_id', 0, $some, 0, 'ROLLBACK', undef);
	replaced('TRUNCATE', 'TRUNCATE c', undef, $others, undef, 'VACUUM c', undef);
	replaced('TRUNCATE, rolled back', 'BEGIN; TRUNCATE c', 0, $others, 0, 'ROLLBACK', undef);
	replaced('TRUNCATE to a savepoint', 'BEGIN; SAVEPOINT a; TRUNCATE c', 0, $others, 0, 'ROLLBACK TO a', undef, $some, undef,
		'COMMIT', undef);
	replaced('another type', 'ALTER TABLE c ALTER k TYPE bigint', undef, 'VACUUM c', undef);
	replaced('another type, in a transaction', 'BEGIN; ALTER TABLE c ALTER k TYPE bigint', 0, $some, 0, 'COMMIT', undef,
		'ALTER TABLE c ALTER k TYPE int USING k + 1', undef);
	replaced('columns', 'ALTER TABLE c ADD y int DEFAULT 3', undef, 'ALTER TABLE c DROP y, ADD y float DEFAULT random()', undef,
		'ALTER TABLE c DROP y', undef, 'VACUUM FULL c', undef);
	replaced('tablespaces', 'ALTER TABLE c SET TABLESPACE ts', undef, $some, undef,
		'BEGIN; ALTER TABLE c SET TABLESPACE pg_default', 0, 'COMMIT', undef, 'VACUUM c', undef);
	replaced('unlogged and logged', 'ALTER TABLE c SET UNLOGGED', 0, $some, 0, 'VACUUM c', 0, 'ALTER TABLE c SET LOGGED', undef,
		'VACUUM c', undef);
	replaced('dropped and made', 'DROP TABLE c; CREATE TABLE c AS SELECT * FROM base WHERE id % 2 = 1', undef, 'VACUUM c', undef,
		'BEGIN; DROP TABLE c; CREATE TABLE c AS SELECT * FROM base', 0, 'ROLLBACK', undef);

	# COPY FREEZE puts rows into a page that is all visible, and the map keeps its LSN; only who has made the file, and
	# keeps others away from it, can know
	foreach my $workers ('0', '2', '2, and one with the whole query')
	{
		$writer->query('SET max_parallel_workers_per_gather = ' . int($workers =~ s/,.*//r) . '; SET parallel_leader_participation = off');
		$writer->query('SET ' . ($node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode') . ' = on') if $workers =~ /whole/;
		replaced("COPY FREEZE, workers: $workers", "BEGIN; TRUNCATE c; $few", 0, $few, 0, $half, 0, $few, 0, 'COMMIT', undef);
		# (TRUNCATE keeps the file here)
		replaced("a table of the transaction, workers: $workers", "BEGIN; DROP TABLE c; CREATE TABLE c (LIKE base); $few", 0, $few, 0,
			'TRUNCATE c', 0, $half, 0, "TRUNCATE c; $few", 0, $all, 0, 'COMMIT', undef);
		replaced("COPY FREEZE and savepoints, workers: $workers",
			"BEGIN; SAVEPOINT a; TRUNCATE c; $few", 0, 'RELEASE a; SAVEPOINT b; TRUNCATE c', 0, 'ROLLBACK TO b', 0, 'COMMIT', undef,
			"BEGIN; SAVEPOINT a; TRUNCATE c; $few", 0, $few, 0, 'ROLLBACK TO a', undef, 'COMMIT', undef);
	}
	$writer->query('RESET ALL');
	subtest 'COPY FREEZE, build sides in parts' => \&freeze_and_passes;
	subtest 'a materialized view' => \&materialized_view;
	return;
}

# A worker may be the one that begins with the next part of a build side.
sub freeze_and_passes
{
	my $join = 'SELECT t.v, max(u.n), sum(u.w), max(u.k), max(u.v) FROM c t JOIN c u USING (id) GROUP BY t.v';

	fresh('c');
	$writer->query("$PARALLEL; SET parallel_leader_participation = off; SET gpurhh.device_memory = '1MB';"
			. "BEGIN; TRUNCATE c; COPY c FROM '$dir/many' (FREEZE)");
	my $n = table_pages_in($writer, 'c');
	my $plan = $writer->query("$ON $EXPLAIN $join");
	like($plan, qr/"Passes": [2-9]/, 'several passes');
	is(counts_of($plan)->{'Build Pages Cached'}, 0, 'pages of a new file are not cached');
	$writer->query("COPY c FROM '$dir/few' (FREEZE)");
	is(table_pages_in($writer, 'c'), $n, 'there are more rows in the same pages');
	is($writer->query($ON . digest_sql($join)), $writer->query($OFF . digest_sql($join)), 'the transaction sees them');
	$writer->query('COMMIT; RESET ALL');
	looks_right($s, 'c', 'others see them');
	return;
}

sub table_pages_in
{
	my ($session, $t) = @_;

	return $session->query("SELECT pg_relation_size('$t') / current_setting('block_size')::int");
}

sub materialized_view
{
	fresh('c');
	$admin->query('CREATE UNIQUE INDEX ON m (id); VACUUM m');
	looks_right($s, 'm', 'before');
	$admin->query('REFRESH MATERIALIZED VIEW m');
	looks_right($s, 'm', 'made anew');
	$admin->query('UPDATE base SET v = v + 1 WHERE id % 60 = 1; REFRESH MATERIALIZED VIEW CONCURRENTLY m');
	looks_right($s, 'm', 'brought up to date');
	$admin->query('VACUUM m');
	looks_right($s, 'm', 'vacuumed');
	$writer->query('BEGIN; REFRESH MATERIALIZED VIEW m');
	looks_right($writer, 'm', 'in the transaction', inside => 1, cached => 0);
	$writer->query('ROLLBACK');
	looks_right($s, 'm', 'not made anew');
	return;
}

# A new table has the number of another one's file, which takes a server that upgrades.
sub files_again
{
	fresh('c');
	my ($oid, $file, $type, $array) = split /\|/, $admin->query('SELECT c.oid, relfilenode, reltype, typarray
		FROM pg_class c JOIN pg_type t ON t.oid = reltype WHERE relname = \'c\'');
	my $columns = $admin->query("SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'c'::regclass AND attnum > 0");

	disconnect_all();
	$node->stop;
	$node->command_ok([ 'pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-b --cluster-name=main', 'start' ],
		'a server that upgrades');
	$node->_update_pid(1);
	connect_all();
	# which late minor releases ask for, too
	my $versions = $admin->query("SELECT count(*) FROM pg_proc WHERE proname = 'binary_upgrade_set_next_attribute_versions'") ?
	  "SELECT binary_upgrade_set_next_attribute_versions(array_fill('0/1'::pg_lsn, ARRAY[7]));" : '';
	looks_right($s, 'c', 'a table');
	foreach my $i (1 .. 3)
	{
		$admin->query('DROP TABLE c; CHECKPOINT');
		$admin->query("SELECT binary_upgrade_set_next_heap_pg_class_oid('$oid'), binary_upgrade_set_next_heap_relfilenode('$file'),
			binary_upgrade_set_next_pg_type_oid('$type'), binary_upgrade_set_next_array_pg_type_oid('$array'); $versions
			CREATE TABLE c ($columns)");
		is($admin->query("SELECT oid, relfilenode FROM pg_class WHERE relname = 'c'"), "$oid|$file", 'another table with its file');
		looks_right($s, 'c', 'is empty');
		$admin->query("INSERT INTO c SELECT id, k, v + $i, w, s, n, x FROM base");
		looks_right($s, 'c', 'is full', cached => 0);
		$admin->query('VACUUM c');
		is(cached_at_first($s, 'c'), 0, 'nothing of it is cached');
		looks_right($s, 'c', 'is vacuumed');
	}
	disconnect_all();
	$node->stop;
	$node->start;
	connect_all();
	return;
}

sub in_database
{
	my ($database) = @_;

	$s->query("\\c $database");
	return;
}

# The copies of a database have the same files, with the same LSNs.
sub databases
{
	my $oid = 60000;
	my $change = 'UPDATE c SET v = v + 1 WHERE id % 90 = 1';

	$admin->query('CREATE DATABASE template');
	in_database('template');
	$s->query('CREATE EXTENSION pg_visibility') if $has_visibility;
	$s->query(q{
		CREATE TABLE base AS SELECT i AS id, i % 400 AS k, i % 1000 AS v, i * 7::bigint AS w, 'y' || i % 300 AS s,
			1.5::numeric(12, 2) AS n, i::bigint AS x FROM generate_series(1, 3000) i;
		CREATE TABLE c (LIKE base) WITH (fillfactor = 70);
		INSERT INTO c SELECT * FROM base;
		CREATE TABLE d AS SELECT i AS k, i % 30 AS g FROM generate_series(0, 399) i;
		CREATE TABLE f AS SELECT i % 9000 AS id, i % 40 AS v FROM generate_series(1, 12000) i;
		VACUUM c, d, f});
	looks_right($s, 'c', 'a table of the template');
	my $n = table_pages_in($s, 'c');
	is($admin->query("SELECT count(*) FROM gpurhh_cache WHERE database = 'template' AND relation IS NULL AND pages = $n"), 1,
		'the view of another database');
	foreach my $strategy ('file_copy', 'wal_log')
	{
		my $make = "CREATE DATABASE copy TEMPLATE template STRATEGY $strategy OID " . ++$oid;

		subtest "CREATE DATABASE, $strategy" => sub {
			in_database('postgres');
			$admin->query($make);
			in_database('copy');
			is(cached_at_first($s, 'c'), 0, 'nothing is cached of the copy');
			looks_right($s, 'c', 'the copy');
			# What is cached under the LSN of the template is true of the next copy; where there is something newer, which
			# is not, that stays until it is old.
			foreach my $i (1 .. 3)
			{
				$s->query($change);
				looks_right($s, 'c', 'changed', cached => -1);
				$s->query('VACUUM c') if $i == 2;
				looks_right($s, 'c', 'changed and vacuumed') if $i == 2;
				in_database('postgres');
				$admin->query('DROP DATABASE copy');
				if ($i == 3)
				{
					in_database('template');
					$s->query('UPDATE c SET w = w + 1 WHERE id % 70 = 1');
					looks_right($s, 'c', 'the template, changed');
					$s->query('VACUUM c');
					looks_right($s, 'c', 'the template, changed and vacuumed');
					in_database('postgres');
				}
				$admin->query($make);
				in_database('copy');
				looks_right($s, 'c', "made again, $i", cached => -1) foreach 1, 2;
			}
			# this keeps the files' numbers, too
			in_database('postgres');
			$admin->query('ALTER DATABASE copy SET TABLESPACE ts');
			in_database('copy');
			is(cached_at_first($s, 'c'), 0, 'nothing is cached in another tablespace');
			looks_right($s, 'c', 'in another tablespace', cached => -1);
			$s->query($change);
			looks_right($s, 'c', 'in another tablespace, changed', cached => -1);
			$s->query('VACUUM c');
			looks_right($s, 'c', 'in another tablespace, changed and vacuumed');
			in_database('postgres');
			$admin->query('ALTER DATABASE copy SET TABLESPACE pg_default');
			in_database('copy');
			looks_right($s, 'c', 'and back', cached => -1);
			in_database('postgres');
			$admin->query('DROP DATABASE copy');
			done_testing();
		};
	}
	in_database('postgres');
	return;
}

# ---------- servers ----------

sub service_ends
{
	my ($pid) = service_pids($node);

	fresh('c');
	looks_right($s, 'c', 'before the service ends');
	$admin->query("SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { !alive($pid) }), 'the service has ended');
	is(cached_at_first($s, 'c'), 0, 'nothing is cached');
	looks_right($s, 'c', 'by the next service');
	return;
}

sub crash
{
	fresh('c');
	$admin->query('CHECKPOINT');
	looks_right($s, 'c', 'before the crash');
	$writer->query('BEGIN; UPDATE c SET v = v + 1 WHERE id % 300 = 1');
	$admin->query('DELETE FROM c WHERE id % 300 = 2; VACUUM c; UPDATE c SET w = w + 1 WHERE id % 300 = 3');
	my $rows = looks_right($s, 'c', 'just before the crash');
	$node->stop('immediate');
	disconnect_all();
	$node->start;
	connect_all();
	is($admin->query('SELECT count(*) FROM gpurhh_cache'), 0, 'nothing is cached after the crash');
	is(cached_at_first($s, 'c'), 0, 'nothing at all');
	looks_right($s, 'c', 'after the crash', expect => $rows);
	$admin->query('VACUUM c');
	looks_right($s, 'c', 'after the crash, vacuumed', expect => $rows);
	return;
}

# A crash after which pages do not say any more that who has added their rows has committed.
sub crash_without_marks
{
	restart_with('wal_log_hints = off');
	fresh('unmarked', repeated(40));
	# VACUUM does not wait until what it has logged is on disk
	$admin->query("SELECT pg_logical_emit_message(true, 'unmarked', 'is vacuumed')");
	$node->stop('immediate');
	disconnect_all();
	$node->start;
	connect_all();
	my $counts = explained($s, rows_sql('unmarked'));
	my ($n, $back, $lost) = @$counts{ map { "Device Pages$_" } '', ' Sent Back', ' Back with Rows Not Found' };
	ok($back > 0 && $back < $n / 2, "some pages are sent back, and then sessions look at them: $back of $n");
	is($lost, $back, 'because their rows were not found');
	same_rows($s, 'those are right', queries('unmarked'));
	restart_with('wal_log_hints = on');
	return;
}

sub standby
{
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	my ($t, $held);
	my $catch_up = sub {
		my ($name) = @_;
		my $rows = looks_right($s, 'c', "$name on the primary");

		$node->wait_for_catchup($standby);
		looks_right($t, 'c', "$name on the standby, $_", cached => 0, expect => $rows) foreach 1, 2;
		return $rows;
	};

	fresh('c');
	$node->backup('b');
	$standby->init_from_backup($node, 'b', has_streaming => 1);
	$standby->start;
	($t, $held) = map { session($standby) } 1 .. 2;
	$catch_up->('at first');
	$admin->query('UPDATE c SET v = v + 1 WHERE id % 200 = 1; DELETE FROM c WHERE id % 200 = 3; VACUUM c');
	$catch_up->('changed');
	is($t->query('SELECT count(*) FROM gpurhh_cache'), 0, 'it has no cache');
	fails_with($t, "SELECT gpurhh_cache_load('c')", 55000, 'nothing can be loaded');
	is($t->query("SELECT gpurhh_cache_drop('c')"), 0, 'and nothing is dropped');
	$admin->query('INSERT INTO c SELECT id + 10000, k, v, w, s, n, x FROM base WHERE id < 100; VACUUM c');
	my $rows = $catch_up->('changed again');
	$held->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
	looks_right($held, 'c', 'a snapshot of the standby', inside => 1, cached => 0, expect => $rows);

	$standby->promote;
	ok($standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), 'promoted');
	looks_right($held, 'c', 'that snapshot now', inside => 1, cached => 0, expect => $rows);
	looks_right($t, 'c', 'another one', expect => $rows);
	looks_right($held, 'c', 'and once pages are cached', inside => 1, cached => 0, expect => $rows);
	$t->query('UPDATE c SET v = v + 1 WHERE id % 200 = 5');
	looks_right($t, 'c', 'changed after the promotion');
	$t->query('VACUUM c');
	looks_right($t, 'c', 'vacuumed after the promotion');
	looks_right($held, 'c', 'the old snapshot', inside => 1, cached => 0, expect => $rows);
	$_->quit foreach $t, $held;
	$standby->stop;
	no_warning($standby);
	return;
}

# Files that a transaction makes may not be in the WAL; then the map has no LSN.
sub minimal_wal
{
	my ($freeze, $twice) = map { "COPY c FROM '$dir/$_' (FREEZE)" } 'all', 'few';

	restart_with('wal_level = minimal', 'max_wal_senders = 0');
	fresh('c');
	looks_right($s, 'c', 'wal_level = minimal');
	$writer->query("BEGIN; TRUNCATE c; $freeze");
	looks_right($writer, 'c', 'in the transaction', inside => 1, cached => 0);
	$writer->query($twice);
	looks_right($writer, 'c', 'in the transaction, twice', inside => 1, cached => 0);
	$writer->query('COMMIT');
	looks_right($s, 'c', 'small files are put into the WAL at the end');
	$writer->query("SET wal_skip_threshold = 0; BEGIN; TRUNCATE c; $freeze; $twice; COMMIT");
	looks_right($s, 'c', 'the map has no LSN', cached => 0);
	$admin->query('UPDATE c SET v = v + 1 WHERE id % 90 = 1');
	# from 17.12 on what clears a bit moves the LSN, too
	looks_right($s, 'c', 'none yet, or since the update', cached => $node->pg_version >= 17 ? undef : 0);
	$admin->query('VACUUM c');
	looks_right($s, 'c', 'now it has');
	$writer->query('BEGIN; CREATE TABLE e (LIKE base); INSERT INTO e SELECT * FROM base; COMMIT');
	looks_right($s, 'e', 'a table of a transaction', cached => 0);
	$admin->query('VACUUM e');
	looks_right($s, 'e', 'a table of a transaction, vacuumed');
	# here the map has the LSN that it had in another file
	$writer->query("BEGIN; ALTER TABLE c SET TABLESPACE ts; $freeze");
	looks_right($writer, 'c', 'its pages were copied', inside => 1, cached => 0);
	$writer->query("$twice; COMMIT; RESET ALL");
	looks_right($s, 'c', 'its pages were copied, and more written');
	$admin->query('UPDATE c SET v = v + 1 WHERE id % 90 = 1');
	looks_right($s, 'c', 'and updated');
	return;
}

# A table with two pages of the map, where the last blocks alone of those of the first page have rows.
sub large_table
{
	my $per_map = 32672;
	my $row = "i, i % 400, i % 1000, i, 'y', 1, i, repeat('x', 4500)";

	# (it is not in the WAL, with wal_level = minimal)
	$admin->query("BEGIN; CREATE TABLE large (LIKE base); ALTER TABLE large ADD fat text; ALTER TABLE large ALTER fat SET STORAGE PLAIN;
		INSERT INTO large SELECT $row FROM generate_series(1, $per_map + 128) i; DELETE FROM large WHERE id <= $per_map - 100; COMMIT;
		VACUUM large");
	is(table_pages('large'), $per_map + 128, 'a large table');
	looks_right($s, 'large', 'its end');
	$admin->query("DELETE FROM large WHERE id = $per_map + 50");
	looks_right($s, 'large', 'the second page of the map changes');
	$admin->query('VACUUM large');
	is(cached_at_first($s, 'large'), $per_map, 'those of the first page are still cached');
	looks_right($s, 'large', 'the second page of the map has changed');
	$admin->query("DELETE FROM large WHERE id = $per_map - 50; VACUUM large");
	is(cached_at_first($s, 'large'), 128, 'those of the second page are still cached');
	looks_right($s, 'large', 'the first page of the map has changed');
	$admin->query("DELETE FROM large WHERE id > $per_map - 10; VACUUM large");
	looks_right($s, 'large', 'truncated to one page of the map');
	$admin->query("INSERT INTO large SELECT $row FROM generate_series(1, 300) i; VACUUM large");
	looks_right($s, 'large', 'grown again');
	$admin->query('DROP TABLE large');
	return;
}

# A table of 1.5 times the buffers does not drive its own pages out of these, nor others': once each page that had to be read took a
# buffer from anybody, since those of the ring by which core reads such tables were still pinned.
sub larger_than_buffers
{
	my $n = 12288;
	my $read;

	$admin->query("CREATE TABLE larger (LIKE base); ALTER TABLE larger ADD fat text; ALTER TABLE larger ALTER fat SET STORAGE PLAIN;
		INSERT INTO larger SELECT i, i % 400, i % 1000, i, 'y', 1, i, repeat('x', 7500) FROM generate_series(1, $n) i; VACUUM ANALYZE larger");
	is(table_pages('larger'), $n, 'a table that is larger than shared buffers');
	for my $scan (1 .. 4)
	{
		$s->query("SELECT gpurhh_cache_drop('larger')");
		my $plan = $s->query("$ON EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) SELECT k, sum(v) FROM larger GROUP BY k");

		like($plan, qr/"Device Pages": [1-9]/, 'the device reads its pages');
		($read) = $plan =~ /"Shared Read Blocks": (\d+)/;
	}
	cmp_ok($read, '<', 0.66 * $n, 'most of its pages that were in shared buffers still are');
	looks_right($s, 'larger', 'it is right');
	$admin->query('DROP TABLE larger');
	return;
}

# ---------- small caches ----------

# The cache has no more than so many chunks.
sub is_within
{
	my ($n_chunks) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is($admin->query('SELECT sum(bytes) <= ' . $n_chunks * CHUNK_BYTES . ', bool_and(pages BETWEEN 1 AND bytes / ' . CHUNK_BYTES / CHUNK . ')
		FROM gpurhh_cache'), 't|t', 'no more than there may be');
	return;
}

# Tables are larger than the cache; only what is dropped gives way at once.
sub small_caches
{
	my @t = map { "t$_" } 1 .. 4;
	my $drop = 'SELECT sum(gpurhh_cache_drop(oid)) FROM pg_class WHERE relname IN (' . join(',', map { "'$_'" } @t, 'd', 'f') . ')';

	fresh($_, repeated(5)) foreach @t;
	foreach my $mb (1, 2)
	{
		my $n_chunks = $mb * 1024 * 1024 / CHUNK_BYTES;
		my $most = min($n_chunks * CHUNK, table_pages('t3'));

		restart_with("gpurhh.cache_size = ${mb}MB", 'shared_buffers = ' . ($mb == 1 ? '2MB' : '64MB'));
		foreach my $t (@t)
		{
			looks_right($s, $t, "$mb MB: $t", cached => -1);
			is_within($n_chunks);
		}
		my $cached = cached_at_first($s, 't1');
		ok($cached > 0 && $cached < table_pages('t1') + $mb - 1, 'a part of a table is cached') or diag($cached);
		foreach my $i (1 .. 6)
		{
			my ($t, $u) = @t[ $i % 4, ($i + 1) % 4 ];

			$admin->query("SELECT gpurhh_cache_drop('$t'), gpurhh_cache_load('$u')");
			$admin->query("UPDATE $u SET v = v + 1 WHERE id % 900 = $i");
			looks_right($s, $u, "$mb MB: $u, in place of $t", cached => -1);
			$admin->query("VACUUM $u") if $i % 2;
			looks_right($s, $t, "$mb MB: $t, dropped", cached => -1);
			is_within($n_chunks);
		}

		# what queries had in use when they were cancelled can be used again, from the first chunk on, which is no short one
		my $n_cancelled = 0;
		$admin->query('SET synchronize_seqscans = off; VACUUM t1, t2, t3');
		foreach my $i (1 .. 30)
		{
			my $t = $t[ $i % 3 ];
			my ($out, $err) = $s->try("$ON SET statement_timeout = " . (1 + $i / 2) . '; '
					. join('; ', (queries($t))[ 0, 3 ]));

			$s->reset_timeout;
			$n_cancelled += () = $err =~ /^ERROR:  57014/mg;
			$admin->query("SELECT gpurhh_cache_drop('$t')") if $i % 5 == 0;
		}
		cmp_ok($n_cancelled, '>', 0, "$mb MB: queries are cancelled");
		my $loaded = 0;
		# (the service may not know yet that they have ended)
		foreach (1 .. 100)
		{
			($loaded) = $admin->query("$drop; SELECT gpurhh_cache_load('t3')") =~ /^(\d+)\z/m;
			last if $loaded == $most;
			usleep 50_000;
		}
		is($loaded, $most, 'and the whole cache can be used');
		looks_right($s, $_, "$mb MB: $_, in the end", cached => -1) foreach @t;
		left_to_the_session($drop) if $mb == 1;
	}
	return;
}

# So many pages come back that the rest is read by the session, also pages that the scan had left out.
sub left_to_the_session
{
	my ($drop) = @_;
	my $sql = 'SELECT s, count(*), sum(w) FROM long GROUP BY s';

	$admin->query("$drop; CREATE TABLE long (LIKE base);
		ALTER TABLE long ALTER s SET STORAGE PLAIN;
		INSERT INTO long SELECT * FROM base;
		INSERT INTO long SELECT id, k, v, w, repeat('long', 400) || id, n, x FROM base;
		VACUUM long");
	$s->query('SET synchronize_seqscans = off');
	foreach my $i (1 .. 3)
	{
		same_rows($s, "many pages come back, $i", $sql);
		my $n = explained($s, $sql);
		ok($n->{'Device Pages'} > 0 && $n->{'Device Pages'} < table_pages('long'), 'the session has read some') or diag(%$n);
		is($n->{'Device Pages Cached'}, 0, 'also those that are cached');
	}
	cmp_ok(viewed('long', 'pages'), '>', 0, 'and there are some');
	$s->query('RESET ALL');
	return;
}

# Queries fail while the device is still to read pages that they have pinned: others are in these buffers by then.  The
# service is stopped meanwhile, as if it were busy.
sub failed_queries
{
	my $grouped = 'SELECT k, sum(v) AS s, sum(w) FROM t1 GROUP BY k';
	my @calls = ($grouped, 'SELECT within()', 'SELECT caught()', "SELECT gpurhh_cache_load('t1')",
		"SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL gpurhh.group_cost = 0.05; SELECT count(*), sum(s) FROM ($grouped) q");
	my ($failed, $wrong, $held, $pinned) = (0, 0, 0, 0);

	fresh('t1', repeated(300));
	fresh('t2', '(SELECT id, k, v + 1000000, w, s, n, x FROM (SELECT * FROM ' . repeated(300) . ') p) q');
	$admin->query("CREATE FUNCTION within() RETURNS numeric LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT sum(s) FROM ($grouped) q); END'");
	$admin->query(q{CREATE FUNCTION caught() RETURNS numeric LANGUAGE plpgsql AS
		'BEGIN RETURN within(); EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(0.3); RAISE; END'});
	restart_with('shared_buffers = 4MB', 'gpurhh.cpu_threads = 1', 'gpurhh.cache_size = 256MB');
	my $pid = $s->backend_pid;
	my $digest = digest_sql($grouped);
	my $expected = $admin->query($OFF . $digest);

	$admin->query($ON . $digest);
	my $service = $admin->query("SELECT pid FROM pg_stat_activity WHERE application_name = 'gpurhh device service'");
	foreach my $i (0 .. 5 * @calls - 1)
	{
		my $call = $calls[ $i % @calls ];

		$admin->query("SELECT gpurhh_cache_drop('t1'), gpurhh_cache_drop('t2')");
		$s->query("BEGIN; $ON");
		$s->send($call);
		usleep(1000 * (2 + rand 50));
		kill 'STOP', $service;
		$admin->query("SELECT pg_cancel_backend($pid)");
		# it may have to wait for the service
		usleep 50_000;
		# by the index, and so into any buffers
		$admin->query($OFF . 'BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SELECT sum(v) FROM t2 WHERE id > 0; COMMIT');
		kill 'CONT', $service;
		my (undef, $err) = $s->result;
		$pinned += pinned('t1');
		# what it had has gone although the transaction block has not ended
		my ($n) = split / /, device_pages($admin, rows_sql('t2'));
		$s->query('ROLLBACK');
		my $now = $s->query($ON . $digest);
		$failed += $err ne '';
		$held += $n == 0;
		$wrong += $now ne $expected;
		diag("$call: $now instead of $expected") if $now ne $expected;
	}
	cmp_ok($failed, '>', @calls, 'queries fail');
	is($wrong, 0, 'and nothing is kept that was not theirs');
	is($held, 0, 'nor anything of theirs');
	is($pinned, 0, 'nor pinned');

	# a cursor that has begun in a subtransaction goes on when that fails
	$s->query("BEGIN; $ON");
	$s->query("DECLARE c CURSOR FOR $grouped; SAVEPOINT a; SAVEPOINT b; FETCH 3 FROM c; RELEASE b");
	$s->try('SELECT 1 / 0');
	my @rows = split /\n/, $s->query('ROLLBACK TO a; FETCH ALL FROM c');
	is(@rows, 397, 'a cursor goes on after a subtransaction that has failed');
	$s->query('COMMIT');
	return;
}

# Pages of a table that are pinned.
sub pinned
{
	my ($t) = @_;

	return $admin->query("SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0 AND relfilenode = pg_relation_filenode('$t')");
}

# Sends the session a query of a table, and stops the service when some of its pages are pinned.  It may be stopped with a lock
# that our nodes wait for, so $admin looks without them.
sub send_and_stop
{
	my ($session, $service, $t) = @_;

	for (;;)
	{
		$admin->query("$OFF SELECT gpurhh_cache_drop('$t')");
		$session->send($ON . digest_sql(rows_sql($t)));
		usleep(1000 * (1 + rand 20));
		kill 'STOP', $service;
		usleep 50_000;
		return if pinned($t) > 0;
		kill 'CONT', $service;
		$session->result;
	}
}

# Pages at which no session looks have pins that core does not know of.
sub pins
{
	my $vacuum = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'BufferPin' AND query LIKE 'VACUUM%'";

	fresh('p', repeated(300));
	my $expected = $s->query($OFF . digest_sql(rows_sql('p')));
	$s->query($ON . digest_sql(rows_sql('p')));
	my ($service) = service_pids($node);

	send_and_stop($s, $service, 'p');
	$writer->send('VACUUM (FREEZE) p');
	ok(wait_until(sub { $admin->query($vacuum) == 1 }), 'VACUUM waits for a pin');
	kill 'CONT', $service;
	is(($s->result)[0], $expected, 'the query ends');
	is(($writer->result)[1], '', 'and so does VACUUM');
	is(pinned('p'), 0, 'no page is pinned');

	my $other = session($node);
	my $pid = $other->backend_pid;
	$admin->query('UPDATE p SET v = v WHERE id % 1000 = 1; VACUUM p');
	send_and_stop($other, $service, 'p');
	$admin->query("SELECT pg_terminate_backend($pid)");
	usleep 50_000;
	kill 'CONT', $service;
	ok(wait_until(sub { !alive($pid) }), 'a session is terminated');
	is(pinned('p'), 0, 'and has left no pin');
	looks_right($s, 'p', 'after that', cached => -1);
	return;
}

# Places in the cache are given to others after a scan has found its pages there, and before the device reads them: a
# session is stopped amid its scan, of a table of which the cache has the beginning.
sub given_away
{
	my $sql = digest_sql('SELECT k, sum(v), count(*), sum(w) FROM t1 GROUP BY k');
	my $pid;
	my $wrong = 0;

	fresh('t1', repeated(20));
	fresh($_, repeated(4)) foreach 't2', 't3';
	restart_with('gpurhh.cache_size = 1MB', 'shared_buffers = 2MB', 'synchronize_seqscans = off');
	$pid = $s->backend_pid;
	foreach my $i (1 .. 20)
	{
		# t2 or t3 gets them; after that maybe t1 again, but for pages that have changed, of which the scan needs what was
		my $back = "SELECT gpurhh_cache_drop('t2'), gpurhh_cache_drop('t3'), gpurhh_cache_load('t1')";
		my $change = "SELECT gpurhh_cache_drop('t1'), gpurhh_cache_load('t" . (2 + $i % 2) . "')";

		$change .= "; DELETE FROM t1 WHERE id % 1500 < 800 AND id % 80 = $i; $back" if $i % 4 > 1;
		$admin->query("VACUUM t1; $back");
		my $expected = $s->query("BEGIN ISOLATION LEVEL REPEATABLE READ; $OFF $sql; $ON");
		$s->send("$sql; COMMIT");
		usleep(1000 * rand 30);
		kill 'STOP', $pid;
		# it may have a lock that others need
		my $waker = fork // die;
		exec 'sh', '-c', "sleep 1; kill -CONT $pid" if $waker == 0;
		$admin->query($change);
		# which may not be sh yet, and would stop the server where it handles a signal
		kill 'KILL', $waker;
		waitpid $waker, 0;
		kill 'CONT', $pid;
		my ($out, $err) = $s->result;
		next if $out eq $expected && $err eq '';
		$wrong++;
		diag("$change: $out $err, expected: $expected");
	}
	is($wrong, 0, 'the same rows where the cache has other pages by then');
	return;
}

# Of two tables that fill the cache the one that was used less often gives way, once it was not used for a while.
sub who_gives_way
{
	restart_with('gpurhh.cache_size = 1MB', 'shared_buffers = 64MB');
	my @n = map { fresh($_) } 't1', 't2', 't3';
	# (else a third one would find room)
	is(join(' ', map { int(($_ + CHUNK - 1) / CHUNK) } @n), '2 2 2', 'two of them fill it');
	foreach (1 .. 4)
	{
		cached_at_first($s, 't1');
		usleep 1_100_000;
	}
	# the other one later, so that it would stay if only that mattered
	cached_at_first($s, 't2');
	is(cached_at_first($s, 't3'), 0, 'the third one is not there');
	is(cached_at_first($s, 't3'), 0, 'nor does it get a place at once');
	my $until = time + 70;
	my $cached = 0;
	while ($cached < $n[2] && time < $until)
	{
		sleep 1;
		$cached = cached_at_first($s, 't3');
	}
	is($cached, $n[2], 'but after half a minute');
	is($s->query("SELECT pages FROM gpurhh_cache WHERE relation = 't1'::regclass"), $n[0], 'the one that was used often is still there');
	is($s->query("SELECT sum(pages) FROM gpurhh_cache WHERE relation = 't2'::regclass"), '', 'and the other one is not');
	return;
}

# With gpurhh.read_pages = auto the CPU device gets pages that it keeps, and no others.
sub auto_on_cpu
{
	restart_with('gpurhh.read_pages = auto', 'gpurhh.cache_size = 4MB');
	my $n = fresh('c');
	is(device_pages($s, rows_sql('c')), "$n 0 0", 'pages that can be kept');
	is(device_pages($s, rows_sql('c')), "$n $n 0", 'and are');
	looks_right($s, 'c', 'they have the same rows');
	$admin->query('UPDATE c SET v = v + 1 WHERE id % 700 = 1');
	looks_right($s, 'c', 'some of them changed', cached => -1);
	$admin->query('VACUUM c');
	looks_right($s, 'c', 'vacuumed');

	# the visibility map says that they cannot be kept, so no page is given to the device for nothing
	$admin->query('DROP TABLE IF EXISTS loose; CREATE TABLE loose (LIKE base) WITH (autovacuum_enabled = off);'
			. 'INSERT INTO loose SELECT * FROM ' . repeated(40));
	my ($read, $cached) = split / /, device_pages($s, rows_sql('loose'));
	is($read, 0, 'a table that was not vacuumed');
	is($cached, 0, 'nothing of it is cached');
	same_rows($s, 'has the same rows', queries('loose'));

	# the cache has room for a part
	$admin->query('VACUUM loose');
	device_pages($s, rows_sql('loose')) foreach 1, 2;
	($read, $cached) = split / /, device_pages($s, rows_sql('loose'));
	cmp_ok($cached, '>', 0, 'a part is cached');
	cmp_ok($read, '<', table_pages('loose'), 'the rest comes as columns');
	same_rows($s, 'all of it has the same rows', queries('loose'));

	$s->query("SET gpurhh.read_pages = off");
	is(device_pages($s, rows_sql('c')), '0 0 0', 'off');
	restart_with('gpurhh.read_pages = on');
	return;
}

sub no_cache
{
	foreach my $conf ('gpurhh.cache_size = -1', 'gpurhh.cache_size = 0', 'old_snapshot_threshold = 10min')
	{
		next if $conf =~ /old/ && $node->pg_version >= 17;
		restart_with('gpurhh.cache_size = 16MB', $conf);
		fresh('c');
		looks_right($s, 'c', "$conf, $_", cached => 0) foreach 1, 2;
		is($admin->query('SELECT count(*) FROM gpurhh_cache'), 0, 'the view is empty');
		if ($conf =~ /-1/)
		{
			is($s->query("SELECT gpurhh_cache_load('c'), gpurhh_cache_drop('c')"), '0|0', 'nothing is loaded');
		}
		else { fails_with($s, "SELECT gpurhh_cache_load('c')", 55000); }
		fails_with($s, "SELECT gpurhh_cache_drop('c')", 55000) if $conf =~ / 0/;
	}
	return;
}

# ---------- at random ----------

# Tables with few rows a page, and the numbers of rows that they have at first.
my %random_tables;
# They may get other files.  What a small cache has of files that are gone would leave little room for half a minute.
my $new_files;

sub random_table { return pick(sort keys %random_tables); }

sub random_rows
{
	my ($from, $to) = @_;

	return "(id, k, v, w, s, n, x) SELECT g, g * 7919 % 400, g % 1000, g * " . int(rand 1000) . "::bigint, 'r' || g % 300,"
	  . "(g % 3000 / 4.0)::numeric(12, 2), CASE WHEN g % 3 > 0 THEN g END FROM generate_series($from, $to) g";
}

sub fill_random_tables
{
	foreach my $i (1 .. 4)
	{
		my $rows = int(20 * (50 + rand 30 * $i * $i));

		$random_tables{"r$i"} = $rows;
		$admin->query("DROP TABLE IF EXISTS r$i; CREATE TABLE r$i (LIKE base, fat char(250) DEFAULT 'fat') WITH (fillfactor = "
				. pick(40, 70, 90, 100) . "); INSERT INTO r$i " . random_rows(1, $rows) . "; CREATE INDEX r${i}_id ON r$i (id);"
				. pick('VACUUM ANALYZE', 'VACUUM (FREEZE)', 'ANALYZE') . " r$i");
	}
	return;
}

# A change of some rows.
sub random_change
{
	my ($t) = @_;
	my $rows = $random_tables{$t};
	my $from = int rand 1.1 * $rows;
	my $to = $from + int rand pick(1, 20, 200);
	my $range = "id BETWEEN $from AND $to";
	my $block = int rand $rows / 20;
	my $blocks = "ctid >= '($block,0)'" . pick('', map { " AND ctid < '(" . ($block + $_) . ",0)'" } 2, 5);
	my $p = rand 100;

	return "UPDATE $t SET v = v + 1, w = w + $to WHERE $range" if $p < 25;
	return "UPDATE $t SET id = $rows - id, k = (k + 1) % 400 WHERE $range" if $p < 37;
	return "UPDATE $t SET s = left('z' || md5(id::text), 2 + id % 13), x = CASE WHEN x IS NULL THEN id END WHERE $range" if $p < 47;
	return "INSERT INTO $t " . random_rows($from, $to) if $p < 62;
	return "DELETE FROM $t WHERE $range" if $p < 75;
	return "DELETE FROM $t WHERE $blocks" if $p < 80;
	return "UPDATE $t SET v = v - 1 WHERE $blocks" if $p < 83;
	return "SELECT count(*) FROM (SELECT FROM $t WHERE $range FOR " . pick('UPDATE', 'SHARE', 'KEY SHARE') . ') q' if $p < 92;
	return "COPY $t (id, k, v, w, s, n, x) FROM '$dir/" . pick('few', 'few', 'half') . "'";
}

# TRUNCATE, and what comes then.
sub random_refill
{
	my ($t) = @_;
	my @copies = map { "COPY $t (id, k, v, w, s, n, x) FROM '$dir/$_' (FREEZE)" } map { pick('few', 'few', 'half', 'all') } 0 .. rand 4;

	return join '; ', 'BEGIN', "TRUNCATE $t", @copies, pick("INSERT INTO $t " . random_rows(1, $random_tables{$t}), random_change($t)),
	  pick('COMMIT', 'COMMIT', 'ROLLBACK');
}

sub random_statement
{
	my $t = random_table();
	my $end = pick('COMMIT', 'COMMIT', 'ROLLBACK');
	my $p = rand 100;

	return random_change($t) if $p < 50;
	return join '; ', 'BEGIN', (map { random_change(pick($t, random_table())) } 0 .. rand 3), $end if $p < 70;
	return join '; ', 'BEGIN', random_change($t), 'SAVEPOINT a', random_change($t), pick('ROLLBACK TO a', 'RELEASE a'),
	  random_change($t), $end if $p < 85;
	return pick('VACUUM', 'VACUUM (FREEZE)') . " $t" if $p < 88;
	return "SELECT gpurhh_cache_drop('$t')" if $p < 92;
	return "SELECT gpurhh_cache_load('$t')" if $p < 94;
	return random_change($t) if !$new_files;
	return random_refill($t) if $p < 97;
	return pick("VACUUM FULL $t", "CLUSTER $t USING ${t}_id", "ALTER TABLE $t ALTER v TYPE int USING v + 1",
		"BEGIN; CLUSTER $t USING ${t}_id; " . random_change($t) . '; ROLLBACK');
}

sub random_vacuum
{
	return 'VACUUM ' . pick('(TRUNCATE off)', '(TRUNCATE off)', '', '(FREEZE)', '(FREEZE, TRUNCATE off)', '(DISABLE_PAGE_SKIPPING)',
		'(INDEX_CLEANUP off)', '(ANALYZE)') . ' ' . random_table();
}

# A look at tables in one snapshot: one or two queries are run off, on, and on again, in any order, and maybe after a while.
sub random_look
{
	my ($t, $u) = (random_table(), random_table());
	my @all = (queries($t), "SELECT t.v, count(*), sum(u.w), min(t.w) FROM $t t JOIN $u u USING (id) GROUP BY t.v",
		"SELECT t.id, t.w, t.v, u.w, u.s FROM $t t LEFT JOIN $u u USING (id)");
	my @q = map { splice @all, int rand @all, 1 } 0 .. rand 2;
	my $digests = join ";\n", map { digest_sql($_) } @q;
	my @runs = map { (rand 15 < 1 ? 'DO $$ BEGIN PERFORM pg_sleep(' . rand(0.3) . '); END $$;' : '') . "$_ $digests" }
	  @{ pick([ $OFF, $ON, $ON ], [ $ON, $OFF, $ON ], [ $ON, $ON, $OFF ]) };
	my $set = pick('', '', '', map { "$_;" } $PARALLEL, 'SET gpurhh.batch_rows = 300',
		'SET gpurhh.max_probe_buckets = 1', "SET gpurhh.device_memory = '1MB'");

	$set .= ' SET gpurhh.partial_copies = ' . pick('on', 'on', 'off', 'auto') . ';';
	return { q => \@q,
		sql => "\\echo look\n$set BEGIN ISOLATION LEVEL REPEATABLE READ; " . join(";\n", @runs) . ";\n$EXPLAIN $q[0]; COMMIT; RESET ALL" };
}

# Writers against readers, in rounds, of which each session gets its statements at once.
sub random_sessions
{
	my ($name, $for) = @_;
	my @writers = map { session($node) } 1 .. 3;
	my @readers = map { session($node) } 1 .. 4;
	my ($vacuum, $hasty) = map { session($node) } 1 .. 2;
	my $until = time + $for;
	my ($n_rounds, $n_looks, $n_pages, $n_cached, $different) = (0) x 5;
	my @errors;
	# what was not expected
	my $errors_of = sub {
		my ($session, $expected) = @_;

		push @errors, grep { /^(ERROR|FATAL|PANIC|WARNING)/ && !/^ERROR:  ($expected)/ } split /\n/, ($session->result)[1];
	};

	fill_random_tables();
	$_->query("SET lock_timeout = '300ms'; SET deadlock_timeout = '100ms'") foreach @writers;
	while (time < $until)
	{
		my @looks = map { [ map { random_look() } 1 .. 12 ] } @readers;

		$_->send(join ";\n", map { random_statement() } 1 .. 60) foreach @writers;
		$vacuum->send(join ";\n", map { random_vacuum() } 1 .. 20);
		# some queries end before they are done
		$hasty->send($ON . join ";\n", map { 'SET statement_timeout = ' . int(1 + rand 20), queries(random_table()) } 1 .. 5);
		foreach my $i (0 .. $#readers)
		{
			$readers[$i]->send(join ";\n", map { $_->{sql} } @{ $looks[$i] });
		}
		foreach my $i (0 .. $#readers)
		{
			my ($out, $err) = $readers[$i]->result;
			my (undef, @results) = split /^look\n/m, $out;

			foreach my $look (@{ $looks[$i] })
			{
				my @lines = split /\n/, shift(@results) // '';
				my $n = @{ $look->{q} };
				my @runs = map { join "\n", map { $_ // 'nothing' } splice @lines, 0, $n } 1 .. 3;
				my $pages = counts_of(join "\n", @lines);

				$n_looks++;
				$n_pages += $pages->{'Device Pages'} + $pages->{'Build Pages'};
				$n_cached += $pages->{'Device Pages Cached'} + $pages->{'Build Pages Cached'};
				next if $runs[0] eq $runs[1] && $runs[1] eq $runs[2] && $runs[0] =~ /\A(\d+\|-?\d+\n?){$n}\z/;
				diag("seed $seed, round $n_rounds:\n" . join("\n\n", $look->{sql}, @runs)) if ++$different < 10;
			}
			push @errors, $err if $err ne '';
		}
		# locks that are not to be had, and what follows
		$errors_of->($_, '55P03|40P01|25P02|3B001') foreach @writers, $vacuum;
		$errors_of->($hasty, '57014');
		note("$name: $n_rounds rounds, $n_looks looks, $n_cached of $n_pages pages from the cache") if ++$n_rounds % 20 == 0;
		fill_random_tables() if $n_rounds % 100 == 0;
	}
	$_->quit foreach @writers, @readers, $vacuum, $hasty;
	is($different, 0, "$name, seed $seed: the same rows on and off in each snapshot, while others write");
	cmp_ok($n_cached, '>', 0, 'of pages from the cache');
	is(join("\n", @errors), '', 'and nobody has errors');
	note("$n_rounds rounds, $n_looks looks, $n_cached of $n_pages pages from the cache");
	foreach my $t (sort keys %random_tables)
	{
		same_rows($s, "$name: $t in the end", queries($t)) foreach 1, 2;
		$admin->query("VACUUM $t");
		same_rows($s, "$name: $t in the end, vacuumed", queries($t)) foreach 1, 2;
	}
	return;
}

sub at_random
{
	srand $seed;
	note("GPURHH_CACHE_SEED=$seed");
	# a GPU gets memory for it in larger pieces
	my ($small, $large) = $device eq 'cpu' ? ('4MB', '64MB') : ('512MB', '1GB');

	foreach my $conf ([ 'shared_buffers = 8MB', "gpurhh.cache_size = $small", 'synchronize_seqscans = on' ],
		[ 'shared_buffers = 128MB', "gpurhh.cache_size = $large" ])
	{
		$new_files = $conf->[1] =~ /$large/;
		# (the log of an hour would be large)
		restart_with(@$conf, $seconds > 60 ? 'log_statement = none' : ());
		random_sessions(join(', ', @$conf), $seconds / 2);
	}
	return;
}

# ---------- all of it ----------

# Nothing is leaked, and nobody crashes.
sub no_warning
{
	my ($n) = @_;
	my @lines = grep { /(WARNING|PANIC):|TRAP|terminated by signal|could not finish the query/ } split /\n/, slurp_file($n->logfile);

	is(join("\n", grep { !/because of crash|immediate shutdown/ } @lines), '', 'no warnings in the log of ' . $n->name);
	return;
}

my @parts = (
	'what is cached' => \&scans,
	'where pages are' => \&hints,
	'partial copies' => \&partial_copies,
	rights => \&rights,
	'kinds of scans' => \&kinds_of_scans,
	'not in buffers' => \&not_in_buffers,
	partitions => \&partitions,
	'kinds of pages' => \&kinds_of_pages,
	'rows change' => \&rows_change,
	locks => \&locks,
	'hint bits and pruning' => \&hint_bits_and_pruning,
	VACUUM => \&vacuums,
	truncation => \&truncation,
	'a truncated map' => \&truncated_map,
	'long cursors' => \&long_cursors,
	# (a backup has no tablespaces)
	'a standby' => \&standby,
	'files change' => \&files_change,
	'files come again' => \&files_again,
	databases => \&databases,
	'the service ends' => \&service_ends,
	'a crash' => \&crash,
	'a crash without marks' => \&crash_without_marks,
	'wal_level = minimal' => \&minimal_wal,
	'a large table' => \&large_table,
	'a table larger than shared buffers' => \&larger_than_buffers,
	'small caches' => \&small_caches,
	'places that are given away' => \&given_away,
	'who gives way' => \&who_gives_way,
	'queries that fail' => \&failed_queries,
	pins => \&pins,
	'at random' => \&at_random,
	'by itself' => \&auto_on_cpu,
	'no cache' => \&no_cache);

connect_all();
while (my ($name, $sub) = splice @parts, 0, 2)
{
	subtest $name => sub { $sub->(); done_testing(); }
	  if $name =~ /$only/;
}
disconnect_all();
$node->stop;
no_warning($node);
done_testing();
