# Random queries (test/random_queries.pl) have core's answers, with a service for
# all sessions and with private ones.  RANDOM_QUERIES and RANDOM_SEED run others
# than CI's.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $script = "$FindBin::RealBin/../test/random_queries.pl";
my $queries = $ENV{RANDOM_QUERIES} // 2000;
my $seed = $ENV{RANDOM_SEED} // 1;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', join("\n",
	"autovacuum = off", "max_worker_processes = 40",
	"gpurhh.cpu_threads = 2", "gpurhh.pool_size = '4MB'", ''));
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
delete local $ENV{PGDATABASE};
my $out;

sub run_queries
{
	my ($name, $n, $this_seed, @more) = @_;
	my $ok = IPC::Run::run([ $^X, $script, '--running', '--queries', $n, '--seed', $this_seed, '--jobs', 2, @more ],
		'>', \$out, '2>&1');

	ok($ok, "$name: $n queries have core's answers");
	$ok ? note $out : diag $out;
	return;
}

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'\ngpurhh.cache_size = 16");
$node->start;
run_queries('one service for all', int($queries / 2), $seed);
run_queries('values that do not conform to their modifiers', int($queries / 2), $seed + 2, '--break-modifiers');
# as large as a few of the tables, whose pages then come and go
$node->append_conf('postgresql.conf', 'gpurhh.cache_size = 1');
$node->restart;
run_queries('a cache that is full', int($queries / 8), $seed + 3);
# pages are read, and none kept
$node->append_conf('postgresql.conf', 'gpurhh.cache_size = 0');
$node->restart;
run_queries('no cache', int($queries / 8), $seed + 4);
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
run_queries('private services', int($queries / 4), $seed + 1);
$node->stop;
done_testing();
