# Where settings are kept: in the server's files, for a role or a database, by
# a client, in a dump.  Where the library is not preloaded, PostgreSQL meets
# them before it knows them: enable_gpu_hashagg then was a warning at each login,
# a fatal error, or kept the server from starting, so gpurhh.enable_hashagg is
# there.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main');

# A new connection's answer, and whatever else it was told.
sub login
{
	my ($node, $sql, $options) = @_;
	my ($rc, $out, $err);
	local $ENV{PGOPTIONS} = $options if defined $options;

	$rc = $node->psql('postgres', $sql, stdout => \$out, stderr => \$err);
	return join('|', $out, $err);
}

# README.md's statement that turns the node on for a database.
my ($for_database) = slurp_file("$FindBin::RealBin/../README.md") =~
  /^(ALTER DATABASE \w+ SET gpurhh\.enable_hashagg = on;)/m;
$for_database =~ s/DATABASE \w+/DATABASE postgres/;

# LOAD is what a session does that has found nothing preloaded.
my %modes = (
	'nothing preloaded' => [ '', "LOAD 'gpurhh';" ],
	'session_preload_libraries' => [ "session_preload_libraries = 'gpurhh'", '' ],
	'shared_preload_libraries' => [ "shared_preload_libraries = 'gpurhh'", '' ]);
my $show = 'SHOW enable_gpu_hashagg; SHOW gpurhh.enable_hashagg';

foreach my $mode (sort keys %modes)
{
	my ($conf, $load) = @{ $modes{$mode} };
	my $free = 'SET gpurhh.setup_cost = 0; SET gpurhh.row_cost = 0; SET gpurhh.group_cost = 0; SET enable_hashagg = off; SET enable_sort = off;';

	$node->append_conf('postgresql.conf',
		"session_preload_libraries = ''\nshared_preload_libraries = ''\n$conf\n");
	$node->restart;
	is(login($node, "$load $show"), "off\noff|", "$mode: off at first");

	# by a client
	is(login($node, "$load $show", '-c gpurhh.enable_hashagg=on'), "on\non|", "$mode: PGOPTIONS");
	like(login($node, "$load $free EXPLAIN $BY_K", '-c gpurhh.enable_hashagg=on'), qr/GpuHashAgg.*\|$/s,
		"$mode: the node is planned");

	# for a role, a database, both, all
	foreach my $where ('ROLE CURRENT_USER', 'DATABASE postgres', 'ROLE CURRENT_USER IN DATABASE postgres', 'ROLE ALL')
	{
		is(login($node, "$load ALTER $where SET gpurhh.enable_hashagg = on"), '|', "$mode: ALTER $where");
		is(login($node, "$load $show"), "on\non|", "$mode: and a session has it on, without a warning");
		is(login($node, "$load $show", '-c gpurhh.enable_hashagg=off'), "off\noff|", 'unless its client says otherwise');
		is(login($node, "$load SET enable_gpu_hashagg = off; $show; RESET enable_gpu_hashagg; $show"),
			"off\noff\non\non|", 'or it itself, by the short name');
		$node->safe_psql('postgres', "ALTER $where RESET gpurhh.enable_hashagg");
	}

	# in the server's files
	is(login($node, "LOAD 'gpurhh'; ALTER SYSTEM SET gpurhh.enable_hashagg = on"), '|', "$mode: ALTER SYSTEM");
	$node->stop;
	ok($node->start(fail_ok => 1), 'the server starts with it');
	is(login($node, "$load $show"), "on\non|", 'and sessions have it on');
	is(login($node, "$load $show", '-c gpurhh.enable_hashagg=off'), "off\noff|", 'unless their client says otherwise');

	# what one session says holds when the files change
	my $s = session($node);
	$s->query("$load SET enable_gpu_hashagg = off");
	$node->safe_psql('postgres', 'ALTER SYSTEM SET gpurhh.enable_hashagg = off; SELECT pg_reload_conf()');
	ok(wait_until(sub { login($node, "$load $show") eq "off\noff|" }), 'the files are read again');
	$node->safe_psql('postgres', 'ALTER SYSTEM SET gpurhh.enable_hashagg = on; SELECT pg_reload_conf()');
	ok(wait_until(sub { login($node, "$load $show") eq "on\non|" }), 'and again');
	ok(wait_until(sub { $s->query(q{SELECT count(*) FROM pg_settings WHERE name = 'gpurhh.enable_hashagg' AND reset_val = 'on'}) eq 1 }),
		'by this session too');
	is($s->query($show), "off\noff", 'which keeps what it has SET');
	is($s->query("RESET enable_gpu_hashagg; $show"), "on\non", 'until it lets go of it');
	$s->quit;
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpurhh.enable_hashagg');
	$node->restart;

	# the short name
	like(login($node, "LOAD 'gpurhh'; ALTER SYSTEM SET enable_gpu_hashagg = on"),
		qr/ERROR:  parameter "enable_gpu_hashagg" cannot be set in configuration files\nDETAIL: .*\nHINT:  Set gpurhh\.enable_hashagg instead\.$/,
		"$mode: the short name is not for files, and the hint names the other");
}

# ---------- a session's parallel workers ----------

# The node of shared_preload_libraries, last in the order.  Where a session has
# set both names, a worker cannot know the order: its own plans are core's then.
{
	my $s = session($node);

	$s->query(q{
		CREATE FUNCTION in_worker() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
		$$ BEGIN RETURN current_setting('enable_gpu_hashagg') || ' ' || (pg_backend_pid() <> current_setting('test.pid')::int); END $$});
	$s->query(q{SELECT set_config('test.pid', pg_backend_pid()::text, false),
		set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
	is($s->query('SELECT in_worker()'), 'off true', 'a parallel worker: off');
	foreach my $name ('enable_gpu_hashagg', 'gpurhh.enable_hashagg')
	{
		is($s->query("SET $name = on; SELECT in_worker()"), 'on true', "on by $name");
		is($s->query("SET $name = off; SELECT in_worker()"), 'off true', 'and off');
		$s->query("RESET $name");
	}
	$s->query('ALTER DATABASE postgres SET gpurhh.enable_hashagg = on');
	my $later = session($node);
	$later->query(q{SELECT set_config('test.pid', pg_backend_pid()::text, false),
		set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')});
	is($later->query('SELECT in_worker()'), 'on true', 'on by the database');
	is($later->query('SET enable_gpu_hashagg = off; SELECT in_worker()'), 'off true', 'off by the session');
	is($later->query('SET gpurhh.enable_hashagg = on; SHOW enable_gpu_hashagg; SELECT in_worker()'), "on\noff true",
		'off in a worker that cannot know');
	$s->query('ALTER DATABASE postgres RESET gpurhh.enable_hashagg');
	$_->quit foreach $s, $later;
}

# ---------- dump and restore ----------

# What README.md recommends is in the dump, and a server that has no library
# loaded takes it.  What PostgreSQL leaves out of dumps, README.md says.
{
	my $dump = $node->basedir . '/dump.sql';
	my $restored = PostgreSQL::Test::Cluster->new('restored');
	my $err;

	ok($for_database, 'README.md says how to turn it on for a database');
	$node->safe_psql('postgres', q{
		ALTER ROLE ALL SET gpurhh.enable_hashagg = on;
		CREATE ROLE somebody LOGIN SUPERUSER;
		ALTER ROLE somebody SET gpurhh.enable_hashagg = on;
		CREATE FUNCTION with_setting() RETURNS text LANGUAGE sql SET gpurhh.enable_hashagg = on
			AS $$ SELECT current_setting('gpurhh.enable_hashagg') $$;
		CREATE DATABASE another;});
	$node->safe_psql('another', $for_database =~ s/postgres/another/r);
	$node->command_ok([ 'pg_dumpall', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dumpall');
	unlike(slurp_file($dump), qr/ALTER ROLE ALL/, 'PostgreSQL does not dump what was set for all roles');

	$restored->init;
	$restored->start;
	$restored->psql('postgres', "\\i $dump", stderr => \$err, on_error_stop => 0);
	$err =~ s/^.*role "\w+" already exists\n?//m;
	is($err, '', 'a server without the library restores it');
	$restored->append_conf('postgresql.conf', "session_preload_libraries = 'gpurhh'");
	$restored->restart;
	is($restored->safe_psql('another', 'SHOW enable_gpu_hashagg'), 'on', 'for the database it is on');
	is($restored->safe_psql('postgres', 'SHOW enable_gpu_hashagg'), 'off', 'not for another one');
	is($restored->safe_psql('postgres', 'SELECT with_setting()'), 'on', 'nor but in a function that says so');
	is($restored->safe_psql('postgres', 'SHOW enable_gpu_hashagg', extra_params => [ '-U', 'somebody' ]), 'on',
		'for the role it is on');
	$restored->stop;
}

$node->stop;
done_testing();
