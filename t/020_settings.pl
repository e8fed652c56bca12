# Where settings are kept: in the server's files, for a role or a database, by
# a client, in a dump.  Where the library is not preloaded, PostgreSQL meets
# them before it knows them: enable_gpu_hashagg then was a warning at each login,
# a fatal error, or kept the server from starting, so gpurhh.enable_hashagg is
# there.  And gpurhh.service_start: who comes first waits for the CUDA context
# otherwise.

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

# README.md's first example gives what README.md shows, typed as it stands.
{
	my ($sql, $shown) = slurp_file("$FindBin::RealBin/../README.md") =~ /^```sql\n(.*?)```\n\n```\n(.*?)\n```/ms;

	$node->safe_psql('postgres', 'CREATE DATABASE readme');
	is($node->safe_psql('readme', $sql), $shown, "README.md's first example");
	$node->safe_psql('postgres', 'DROP DATABASE readme');
}

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

	# The pool's size was taken without a word where it could not be changed.
	$s = session($node);
	$s->query($load);
	if ($mode eq 'shared_preload_libraries')
	{
		like(($s->try('SET gpurhh.pool_size = 300'))[1],
			qr/^ERROR:  55P02: parameter "gpurhh.pool_size" cannot be changed without restarting the server$/m,
			"$mode: the pool is the server's");
	}
	else
	{
		is($s->query("SET gpurhh.pool_size = '64MB'; SHOW gpurhh.pool_size; SET gpurhh.pool_size = 300; SHOW gpurhh.pool_size"),
			"64MB\n300kB", "$mode: the session chooses its pool's size");
		like(($s->try("SET gpurhh.pool_size = '$_'"))[1], qr/^ERROR:  22023: /, "not $_") foreach '255kB', '3GB', '0';
		same_answer($s, $BY_K, 'which it uses');
		like(($s->try("SET gpurhh.pool_size = '1MB'"))[1],
			qr/^ERROR:  55P02: parameter "gpurhh.pool_size" cannot be changed now\nDETAIL: .*\nHINT: /m, 'and then has');
		is(($s->try("SET gpurhh.pool_size = '300kB'"))[1], '', 'this is what it is');
		is(($s->try("ALTER ROLE CURRENT_USER SET gpurhh.pool_size = '1MB'"))[1], '', 'another session may have another');
		is(($s->try("ALTER SYSTEM SET gpurhh.pool_size = '1MB'"))[1], '', 'and so may all others');
		$s->query('ALTER SYSTEM RESET gpurhh.pool_size');
		is(($s->try('ALTER ROLE CURRENT_USER RESET gpurhh.pool_size; RESET gpurhh.pool_size'))[1], '', 'RESET is always possible');
	}
	$s->quit;

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

# ---------- gpurhh.service_start ----------

# Longer than the service needs to look up (1 s) and to find itself idle (1 s).
use constant LONG_S => 3;

# How often a service has said what it found.
sub ready_lines
{
	return scalar(() = slurp_file($node->logfile) =~
		/LOG:  gpurhh \d+\.\d+\.\d+ device service is ready.*\n.*DETAIL:  It found cpu \(.*\. The pool has \d+ blocks of \d+ kB\. gpurhh\.device_memory is -?\d+ MB, gpurhh\.cpu_threads is 2\./g);
}

$node->append_conf('postgresql.conf', "gpurhh.service_idle_timeout = '1s'\ngpurhh.service_start = on\n");
{
	my $ready = ready_lines();
	my ($s, $first, $second);

	$node->restart;
	ok(wait_until(sub { scalar(service_pids($node)) == 1 }), 'a service before any query');
	($first) = service_pids($node);
	ok(wait_until(sub { ready_lines() > $ready }), 'the log says what it found');
	$s = session($node);
	is($s->query("SELECT state FROM gpurhh_devices() WHERE device = 'cpu'"), 'open', 'its device is open')
	  if $s->query("SELECT count(*) FROM gpurhh_devices()") eq 1;
	is($s->query('SELECT queries, service_pid FROM gpurhh_stat'), "0|$first", 'and had nothing to do');
	same_answer($s, $BY_K, 'the first query');
	sleep LONG_S;
	is(join(' ', service_pids($node)), $first, 'it stays where nobody needs it');

	# whoever ends it, the next query starts another, which stays too
	$s->query("SELECT pg_terminate_backend($first)");
	ok(wait_until(sub { !alive($first) }), 'terminated');
	same_answer($s, $BY_K, 'the next query');
	($second) = service_pids($node);
	sleep LONG_S;
	is(join(' ', service_pids($node)), $second, 'has one that stays');

	$s->query("ALTER SYSTEM SET gpurhh.service_start = off; SELECT pg_reload_conf()");
	ok(wait_until(sub { !service_pids($node) }), 'unless the files change their mind');
	same_answer($s, $BY_K, 'then it is as it was: a query starts one');
	ok(wait_until(sub { !service_pids($node) }), 'that ends when idle');
	is(ready_lines(), $ready + 1, 'the log says once what was found');
	like(($s->try('SET gpurhh.service_start = on'))[1], qr/^ERROR:  55P02: parameter "gpurhh.service_start" cannot be changed now/,
		'a session has no say in it');
	$s->query('ALTER SYSTEM RESET gpurhh.service_start');
	$s->quit;

	# A process that dies restarts the cluster, which starts no service then: it
	# might be what died.
	$node->append_conf('postgresql.conf', 'restart_after_crash = on');
	$node->restart;
	ok(wait_until(sub { scalar(service_pids($node)) == 1 }), 'a service again');
	($first) = service_pids($node);
	kill 'KILL', $first;
	ok(wait_until(sub { slurp_file($node->logfile) =~ /all server processes terminated; reinitializing/ }), 'the cluster restarts');
	ok(wait_for_server($node), 'and is there again');
	sleep 1;
	is(scalar(service_pids($node)), 0, 'without a service');
	$s = session($node);
	same_answer($s, $BY_K, 'until a query needs one');
	$s->quit;

	# servers for other purposes
	$ready = ready_lines();
	$node->stop;
	my $log = $node->basedir . '/upgrade.log';
	command_ok([ 'pg_ctl', '-D', $node->data_dir, '-l', $log, '-w', '-o', '-b', 'start' ], 'started as by pg_upgrade');
	sleep 1;
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'gpurhh device service'}), 0,
		'there is no service');
	command_ok([ 'pg_ctl', '-D', $node->data_dir, '-w', 'stop' ], 'stopped');
	unlike(slurp_file($log), qr/device service is ready/, 'nor was there one');
	my ($out, $err);
	IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
		'<', \'SELECT 6 * 7 AS answer', '>', \$out, '2>', \$err);
	like($out, qr/answer = "42"/, 'a single user');
	unlike($err, qr/device service|ERROR|FATAL/, 'has none');

	# no room for it
	$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
	ok($node->start(fail_ok => 1), 'a server with no room for workers starts');
	$s = session($node);
	same_answer($s, $BY_K, 'and is right');
	is(scalar(service_pids($node)), 0, 'without a service');
	$s->quit;
	$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
}

# A machine without a GPU has nothing to prepare.
foreach my $conf ('', 'gpurhh.device = cpu')
{
	$node->append_conf('postgresql.conf', "gpurhh.service_start = auto\n$conf\n");
	$node->restart;
	sleep 1;

	my $gpu = -e '/dev/nvidiactl' && $node->safe_psql('postgres',
		q{SELECT count(*) > 0 FROM gpurhh_devices() WHERE kind = 'cuda' AND state <> 'unusable'}) eq 't';
	is(scalar(service_pids($node)), ($gpu ? 1 : 0), $gpu ? 'auto: with a GPU' : 'auto: without a GPU') if !$conf;
	is(scalar(service_pids($node)), 0, 'auto: not where gpurhh.device is cpu') if $conf && !$gpu;
}

$node->stop;
done_testing();
