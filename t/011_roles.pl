# An ordinary role may use all there is, and learns nothing by it: not what it
# has no right to read, nor what others run.  It cannot stop the service.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

my $node = new_node('main');
$node->safe_psql('postgres', q{
CREATE ROLE plain LOGIN;
CREATE ROLE signaller LOGIN IN ROLE pg_signal_backend;
GRANT SELECT ON t TO plain;
CREATE TABLE secret AS SELECT i AS k, i * 2 AS v, i::numeric AS n FROM generate_series(1, 100) i;
CREATE TABLE half_secret AS TABLE secret;
GRANT SELECT (k) ON half_secret TO plain;
CREATE TABLE rows_secret AS SELECT i % 10 AS k, i AS v, i % 2 = 0 AS visible FROM generate_series(1, 1000) i;
ALTER TABLE rows_secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON rows_secret USING (visible);
GRANT SELECT ON rows_secret TO plain;
CREATE TABLE touched (i int);
GRANT ALL ON touched TO plain;
CREATE FUNCTION touch(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS
$$ BEGIN INSERT INTO touched VALUES (i); RETURN i; END $$;
});

# ---------- an ordinary role, nothing preloaded ----------

my $s = session($node, user => 'plain');

# LOAD is a superuser's; a function of the extension loads the library
like(($s->try('SET enable_gpu_hashagg = on'))[1], qr/unrecognized configuration parameter/,
	'the library is not loaded');
like($s->query('SELECT gpurhh_version()'), qr/^\d+\.\d+\.\d+ \(cpu/, 'gpurhh_version()');
same_answer($s, $BY_K, 'an ordinary role, private service');
like($s->query('SELECT service_pid > 0, shared, queries > 0, rows_fed > 0 FROM gpurhh_stat'),
	qr/^t\|f\|t\|t$/, 'gpurhh_stat');
like($s->query('SELECT * FROM gpurhh_stats()'), qr/\|/, 'gpurhh_stats()');
like($s->query("SELECT device, kind FROM gpurhh_devices()"), qr/^cpu\|cpu$/m, 'gpurhh_devices()');
is($s->query(q{SELECT count(*) FROM gpurhh_refusals('SELECT ARRAY[k], sum(v) FROM t GROUP BY 1')}),
	1, 'gpurhh_refusals()');
foreach my $setting (split /\n/, $s->query(
		q{SELECT name FROM pg_settings WHERE (name LIKE 'gpurhh.%' OR name LIKE 'enable_gpu%') AND context IN ('user', 'superuser')}))
{
	my $error = ($s->try("SELECT set_config('$setting', current_setting('$setting'), false) IS NOT NULL"))[1];

	if ($setting eq 'gpurhh.pool_size' || $setting eq 'gpurhh.cpu_threads')
	{
		like($error, qr/permission denied to set parameter "$setting"/, "may not set $setting");
	}
	else
	{
		is($error, '', "may set $setting");
	}
}
$s->quit;

# ---------- a service shared with others ----------

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
$node->restart;
my $super = session($node);
$s = session($node, user => 'plain');
same_answer($super, $BY_K, 'a superuser');
same_answer($s, $BY_K, 'an ordinary role, the same service');
same_answer($s, 'SELECT k, count(*), sum(v) FROM rows_secret GROUP BY k', 'row-level security');
is($s->query('SELECT count(*), max(n) FROM (SELECT k, count(*) AS n FROM rows_secret GROUP BY k) q'),
	'5|100', 'shows the rows that the role may see');

# What the service did, in numbers.
is( $s->query(q{SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'gpurhh_stat'::regclass AND attnum > 0}),
	'service_pid integer, shared boolean, started_at timestamp with time zone, '
	  . join(', ', (map { "$_ bigint" } qw(queries rows_fed bytes_uploaded groups_returned
			failed_slots rehashes host_rows host_queries late_batches device_errors)),
		(map { "$_ double precision" } qw(pool_wait_ms upload_ms kernel_ms extract_ms))),
	'gpurhh_stat has no column that could hold a text');

# ---------- refusals ----------

my $denied = qr/^ERROR:  42501: permission denied for table (half_)?secret/;
foreach my $query (
	'SELECT n, sum(v) FROM secret GROUP BY n',
	'SELECT k, sum(v) FROM secret GROUP BY k',
	'SELECT k, sum(v) FROM half_secret GROUP BY k',
	'SELECT t.k, count(*) FROM t JOIN secret s ON s.k = t.k GROUP BY t.k',
	'SELECT k, count(*) FROM t WHERE k IN (SELECT k FROM secret) GROUP BY k',
	'EXPLAIN SELECT n, sum(v) FROM secret GROUP BY n',
	'CREATE TABLE x AS SELECT n, sum(v) FROM secret GROUP BY n',
	'DECLARE c CURSOR FOR SELECT n, sum(v) FROM secret GROUP BY n',
	'INSERT INTO touched SELECT v FROM secret GROUP BY v',
	'SELECT 1; SELECT n, sum(v) FROM secret GROUP BY n')
{
	my ($out, $err) = $s->try("SELECT * FROM gpurhh_refusals('$query')");

	like($err, $denied, "no right to: $query");
	is($out, '', 'and nothing is told');
}
is($s->query(q{SELECT count(*) FROM gpurhh_refusals('SELECT ARRAY[k], count(*) FROM half_secret GROUP BY 1')}),
	1, 'the right to a column is enough for that column');

# Only planned, whatever it is.
foreach my $query (
	'SELECT touch(k), sum(v) FROM t GROUP BY 1',
	'SELECT k::numeric, touch(1), sum(v) FROM t GROUP BY k',
	'INSERT INTO touched SELECT k FROM t GROUP BY k',
	'CREATE TABLE created AS SELECT k, sum(v) FROM t GROUP BY k',
	'EXPLAIN ANALYZE SELECT touch(k), sum(v) FROM t GROUP BY 1',
	'DELETE FROM touched',
	'DROP TABLE touched')
{
	my (undef, $err) = $s->try("SELECT count(*) FROM gpurhh_refusals('$query')");

	unlike($err, qr/ERROR/, "planned: $query");
}
is($super->query('SELECT count(*) FROM touched'), 0, 'and nothing was executed');
is($super->query("SELECT to_regclass('created') IS NULL"), 't', 'nor created');

# ---------- the service is nobody's to stop ----------

my ($pid) = service_pids($node);
my $signaller = session($node, user => 'signaller');
foreach my $role ($s, $signaller)
{
	foreach my $function ('pg_terminate_backend', 'pg_cancel_backend')
	{
		like(($role->try("SELECT $function($pid)"))[1], qr/^ERROR:  42501:/,
			"no right to $function the service");
	}
}
is(join(' ', service_pids($node)), $pid, 'the service goes on');

$_->quit foreach $s, $super, $signaller;
$node->stop;
done_testing();
