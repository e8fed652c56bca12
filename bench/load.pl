#!/usr/bin/perl
# load.pl: the load of many sessions, for bench/load_bench.sh, which measures, and
# t/018_load.pl, which sees that nothing gets worse.
#
#	bench/load.pl make ROWS
#		makes the table of so many rows, tROWS, and reads it once
#	bench/load.pl run ROWS COSTS MODE SESSIONS SECONDS
#		one run of pgbench, with COSTS (zero: the node's costs and those of parallel
#		plans are 0, so that all is parallel, and the node's; or default) and the
#		node MODE (on, off); prints "transactions,per_second,median_ms,p99_ms,slowest_ms"
#
# psql and pgbench are those of PATH, the server that of PGHOST, PGPORT and so on.
#
# Sessions take queries in random order: many and few groups, groups of groups, a
# join of two groupings, and transactions with half-read cursors, whose client
# thinks for 20 ms.

use strict;
use warnings;

use File::Temp qw(tempdir);

# name => [share, script]; pgbench puts the number of rows in
my %scripts = (
	many => [ 2, 'SELECT count(*), sum(k), sum(s) FROM (SELECT k, sum(v) AS s FROM t:rows GROUP BY k) q;' ],
	few => [ 2, 'SELECT w % 10 AS a, count(*), sum(v), max(k) FROM t:rows WHERE v < 900 GROUP BY 1;' ],
	nested => [ 1, 'SELECT b % 10 AS c, count(*), sum(n) FROM (SELECT k % 1000 AS b, count(*) AS n FROM t:rows GROUP BY 1) one GROUP BY 1;' ],
	joined => [ 1, 'SELECT count(*), sum(x.s), sum(y.s) FROM (SELECT k, sum(v) AS s FROM t:rows GROUP BY k) x
JOIN (SELECT k, count(*) AS s FROM t:rows WHERE w % 3 = 0 GROUP BY k) y USING (k);' ],
	cursors => [ 2, q{BEGIN;
DECLARE a CURSOR FOR SELECT k, sum(v), count(*), max(w) FROM t:rows GROUP BY k;
DECLARE b CURSOR FOR SELECT k, v % 2 AS odd, count(*) FROM t:rows GROUP BY 1, 2;
FETCH FORWARD 100 FROM a;
FETCH FORWARD 100 FROM b;
\sleep 20 ms
FETCH FORWARD 100 FROM a;
SELECT v, count(*), avg(w) FROM t:rows GROUP BY v;
FETCH FORWARD 100 FROM b;
COMMIT;} ]);

my %costs = (
	default => [],
	zero => [ qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size
		  gpurhh.setup_cost gpurhh.row_cost gpurhh.group_cost) ]);

my $dir = tempdir(CLEANUP => 1);

sub make
{
	my ($rows) = @_;
	my $keys = int($rows / 4);

	system('psql', '-XqAt', '-o', '/dev/null', '-v', 'ON_ERROR_STOP=1', '-c',
		"CREATE TABLE t$rows AS SELECT (i * 7919 % $keys)::int AS k, (i % 1000)::int AS v, i AS w"
		  . " FROM generate_series(1::bigint, $rows) i",
		'-c', "VACUUM ANALYZE t$rows", '-c', "SELECT count(*) FROM t$rows") == 0
	  or die "could not make t$rows\n";
	return;
}

sub run
{
	my ($rows, $costs, $mode, $sessions, $seconds) = @_;
	my (@files, $out, @ms);

	die "no costs \"$costs\"\n" if !$costs{$costs};
	foreach my $name (sort keys %scripts)
	{
		my ($share, $script) = @{ $scripts{$name} };

		open my $fh, '>', "$dir/$name" or die "$dir/$name: $!\n";
		print $fh "$script\n";
		close $fh or die "$dir/$name: $!\n";
		push @files, '-f', "$dir/$name\@$share";
	}
	local $ENV{PGOPTIONS} = join ' ', "-c enable_gpu_hashagg=$mode -c jit=off", map { "-c $_=0" } @{ $costs{$costs} };
	open my $pipe, '-|', "pgbench -n -c $sessions -j 2 -T $seconds -D rows=$rows -l --log-prefix=$dir/log @files 2>&1"
	  or die "pgbench: $!\n";
	{ local $/; $out = <$pipe>; }
	close $pipe or die "pgbench failed: $out\n";
	my ($rate) = $out =~ /^tps = ([0-9.]+)/m or die "no rate in: $out\n";
	foreach my $log (glob "$dir/log.*")
	{
		open my $fh, '<', $log or die "$log: $!\n";
		push @ms, map { (split ' ')[2] / 1000 } <$fh>;
	}
	@ms = sort { $a <=> $b } @ms;
	die "no transaction ended\n" if !@ms;
	printf "%d,%.1f,%.1f,%.1f,%.1f\n", scalar @ms, $rate, $ms[ int((@ms + 1) / 2) - 1 ],
	  $ms[ int(@ms * 0.99 + 0.5) - 1 ], $ms[-1];
	return;
}

my ($what, @args) = @ARGV;

if (($what // '') eq 'make' && @args == 1) { make(@args); }
elsif (($what // '') eq 'run' && @args == 5) { run(@args); }
else { die "usage: bench/load.pl make ROWS | run ROWS COSTS MODE SESSIONS SECONDS\n"; }
