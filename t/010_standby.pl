# Queries use the device on a hot standby as they do on its primary, and go on
# doing so when it is promoted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $primary = new_node('primary', { allows_streaming => 1 },
	"session_preload_libraries = 'gpurhh'");

$primary->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'b', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', 'INSERT INTO t SELECT -i, i, -i FROM generate_series(1, 10000) i');
$primary->wait_for_catchup($standby);

my $on_primary = session($primary);
my $s = session($standby);
is($s->query('SELECT pg_is_in_recovery()'), 't', 'a standby');
same_answer($s, $BY_K, 'private service on a standby');
is($s->query(digest_sql($BY_K)), $on_primary->query($ON . digest_sql($BY_K)),
	'it answers as its primary does');
is($s->query("SELECT count(*) > 0 FROM gpurhh_devices()"), 't', 'it has devices');
$s->quit;

$standby->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'\ngpurhh.service_start = on");
$standby->restart;
ok(wait_until(sub { scalar(service_pids($standby)) == 1 }), 'the service starts with a standby too');
$s = session($standby);
same_answer($s, $BY_K, 'shared service on a standby');
$s->query("BEGIN; DECLARE c CURSOR FOR $BY_K; SELECT n_rows FROM drain('c', 1000)");
my ($service) = service_pids($standby);

$standby->promote;
ok( $standby->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()'), 'promoted');
is($s->query("SELECT n_rows FROM drain('c', NULL)"),
	$s->query("SELECT count(DISTINCT k) - 1000 FROM t"), 'a cursor goes on');
$s->query('COMMIT');
$s->query('INSERT INTO t VALUES (1, 1, 1)');
same_answer($s, $BY_K, 'after the promotion');
is(join(' ', service_pids($standby)), $service, 'on the same service');

$_->quit foreach $s, $on_primary;
$standby->stop;
$primary->stop;
done_testing();
