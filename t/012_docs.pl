# docs/settings.md lists every setting there is, with its default, and no other.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $doc = 'docs/settings.md';
plan skip_all => "$doc is not here" unless -e $doc;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
$node->start;

my %documented;
for my $line (split /\n/, slurp_file($doc))
{
	$documented{$1} = $2 if $line =~ /^\| `([a-z_.]+)` \| `([^`]*)` \|/;
}
my %known = map { split /\|/, $_, 2 } split /\n/,
  $node->safe_psql('postgres',
	q{SELECT name, current_setting(name) FROM pg_settings WHERE name ~ '^gpurhh\.|^enable_gpu'});

is_deeply([ sort keys %documented ], [ sort keys %known ], 'the settings are all documented');
for my $name (sort keys %known)
{
	is($documented{$name} // '', $known{$name}, "default of $name");
}
$node->stop;
done_testing();
