#!/usr/bin/perl
# random_queries.pl: random queries over random tables, each with
# enable_gpu_hashagg and enable_gpu_hashjoin on and off; the answers have to be the same.
#
#	--queries N		how many (default 2000)
#	--seed S		a seed gives the same tables and queries everywhere (default 1)
#	--only R[.Q]	round R alone, or one query of it
#	--device D		gpurhh.device (default auto)
#	--jobs N		sessions at once (default 1)
#	--floor SHARE	fail if less than this share of the queries had one of the nodes
#					(default 0.6)
#	--print			print the statements of --only as a script, run nothing
#	--break-modifiers	columns with values that do not conform to their type's
#					modifier, as column definition lists let them in
#	--no-shrink		leave queries that fail as they are
#	--verbose		print every query, and why those without a node have none
#	--running		use the server that PGHOST, PGPORT, … lead to, which has
#					gpurhh installed, instead of a throw-away cluster
#
# A round is a schema with new tables (random/Tables.pm) and 40 queries over them
# (random/Queries.pm, random/Shapes.pm).  A query runs off, then on, in one session, with the same
# settings otherwise; EXPLAIN tells whether it has one of the nodes.  What the node
# refuses runs as core does both times: hence the floor.  Where the library is
# not preloaded each round is a session with a private service of random size.
#
# What has to be equal:
#
#	- The rows, as multisets and as text; their order too where the query orders
#	  by all of its keys.  Where equal values can be printed differently the
#	  query prints them alike (floats + 0, trim_scale(numeric), …), because which
#	  of them a group shows is open in core too.
#	- Sums, averages and statistics of floats, with a tolerance, for core's
#	  answers depend on the order of rows as well: 1e-9 of the larger value, or of
#	  1000 if both are smaller; sums of real 3e-3, as core rounds to 32 bits with
#	  each row, and joins make groups of 40,000.
#	- Not DISTINCT above GROUPING SETS with two columns that are one expression, where core's
#	  answer depends on its plan; nor what has no node of ours, and core answers in two ways.
#	- Errors, by SQLSTATE.  Left out is a query that fails on one side where it depends on
#	  core's plan which rows it looks at: if not all need be read (LIMIT, cursors, EXISTS and
#	  such above); if tables are joined and nothing comes out; and if they are joined by
#	  conditions that may be errors, and there are several joins, or a WHERE, or a join stops
#	  at the first match of a row.  Where both sides fail with
#	  different errors the plans are to blame if one is parallel, joins, or
#	  sorts (what is sorted by is computed of all rows, and what is not, later);
#	  otherwise it is a difference.
#
# A query that fails is made smaller as long as it fails, and printed with what it
# takes to see it again.  Ends with a summary, and with exit status 1 if anything
# differed, a session was lost, or the floor was not reached.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/random";
use Getopt::Long;
use IPC::Open3;
use Time::HiRes qw(time);
use Tables;
use Queries;

use constant QUERIES_A_ROUND => 40;

my %o = (queries => 2000, seed => 1, device => 'auto', jobs => 1, floor => 0.6, shrink => 1);
my @arguments = @ARGV;
GetOptions(\%o, 'queries=i', 'seed=i', 'only=s', 'device=s', 'jobs=i', 'floor=f', 'print', 'break-modifiers', 'shrink!', 'verbose', 'running')
  && !@ARGV
  or do
{
	open my $self, '<', $0;
	while (<$self>) { next if $. == 1; last if !/^#/; print STDERR s/^# ?//r; }
	exit 2;
};

break_modifiers() if $o{'break-modifiers'};
$ENV{PGCLIENTENCODING} = 'UTF8';
$ENV{PGOPTIONS} = '-c client_min_messages=error';

# Started by a shell with scripts/lib.sh, in a cluster of its own.
if (!$o{running} && !$o{print})
{
	exec 'bash', '-c', '. scripts/lib.sh; scripts/setup.sh; find_postgres; build; install_extension
		cluster_start cluster "shared_preload_libraries = \'gpurhh\'" "max_worker_processes = 64" "autovacuum = off" "gpurhh.cache_size = 16"
		PATH=$PGBIN:$PATH; "$@"', "$FindBin::RealBin/../scripts/random", $^X, "$FindBin::RealBin/$FindBin::RealScript", '--running', @arguments
	  if chdir "$FindBin::RealBin/..";
	die "cannot start a cluster";
}

# ---------- a session ----------

# Statements go to a psql that stays; it prints rows that end with RS, columns
# that end with US, and after each statement a mark with its SQLSTATE.
package Session
{
	my $MARK = "\x02";

	sub new
	{
		my ($class) = @_;
		my $self = bless {}, $class;

		open my $null, '>', '/dev/null' or die;
		$self->{pid} = IPC::Open3::open3($self->{in}, $self->{out}, '>&' . fileno $null,
			'psql', '-XAtq', '-F', "\x1f", '-R', "\x1e", '-P', "null=\x01", '-d', $ENV{PGDATABASE} // 'postgres', '-f', '-');
		binmode $self->{$_} foreach qw(in out);
		$self->{in}->autoflush(1);
		return $self;
	}

	# A list of [ SQLSTATE, output ]; after the connection was lost, ['lost'].
	sub run
	{
		my ($self, @statements) = @_;
		my @results;
		my $got;

		local $SIG{PIPE} = 'IGNORE';
		local $SIG{ALRM} = sub { die "no answer\n" };
		foreach my $sql (@statements)
		{
			alarm 180;
			print { $self->{in} } "$sql;\n\\echo $MARK:SQLSTATE\n";
			$got = '';
			until (length $got >= 7 && substr($got, -7) =~ /$MARK(\w{5})\n/)
			{
				if (!eval { sysread $self->{out}, $got, 1 << 20, length $got })
				{
					alarm 0;
					$self->quit;
					return @results, [ 'lost', $got ];
				}
			}
			push @results, [ substr($got, -6, 5), substr($got, 0, -7) ];
		}
		alarm 0;
		return @results;
	}

	sub quit
	{
		my ($self) = @_;

		close $self->{in};
		kill 'TERM', $self->{pid};
		close $self->{out};
		waitpid $self->{pid}, 0;
		return;
	}
}

# ---------- comparing ----------

# At least one, where split gives none of an empty string.
sub parts
{
	my ($separator, $text) = @_;

	return $text eq '' ? ('') : split $separator, $text, -1;
}

# The output of SELECTs as rows of columns.
sub rows
{
	my ($output) = @_;

	return [] if $output eq '';	# one row of an empty string is "\n"
	$output =~ s/\n\z//;
	return [ map { [ parts("\x1f", $_) ] } parts("\x1e", $output) ];
}

# $x is core's.
sub same_float
{
	my ($x, $y, $compare) = @_;

	return 1 if $x eq $y;
	# of equal values whose squares are large, core has its rounding left
	return 1 if $compare eq 'spread' && $y eq '0';
	return 0 if "$x$y" =~ /[\x01NI]/;	# NULL, NaN, Infinity
	my ($larger) = sort { $b <=> $a } abs $x, abs $y, 1000;
	return abs($x - $y) <= $larger * ($compare eq 'float4' ? 3e-3 : 1e-9);
}

sub same_row
{
	my ($x, $y, $compare) = @_;

	return 0 if @$x != @$y;
	foreach my $i (0 .. $#$x)
	{
		my $how = $compare->[$i] // 'exact';

		return 0 if $how eq 'exact' ? $x->[$i] ne $y->[$i] : !same_float($x->[$i], $y->[$i], $how);
	}
	return 1;
}

# undef, or how two lists of rows differ.
sub difference
{
	my ($expected, $got, $r) = @_;
	my $compare = $r->{compare};
	my (%by_key, @missing, @extra);
	my $key = sub { my ($row) = @_; join "\x1f", map { ($compare->[$_] // 'exact') eq 'exact' ? $row->[$_] : () } 0 .. $#$row };

	if ($r->{ordered} && @$expected == @$got)
	{
		foreach my $i (0 .. $#$got)
		{
			if (!same_row($expected->[$i], $got->[$i], $compare))
			{
				push @missing, $expected->[$i];
				push @extra, $got->[$i];
			}
		}
	}
	else
	{
		my %identical;
		my $whole = sub { join "\x1f", @{ $_[0] } };

		$identical{ $whole->($_) }++ foreach @$expected;
		my @others = grep { my $n = \$identical{ $whole->($_) }; !$$n || !$$n-- } @$got;
		foreach my $row (@$expected)
		{
			my $n = \$identical{ $whole->($row) };
			push @{ $by_key{ $key->($row) } }, $row if $$n && $$n--;
		}
		foreach my $row (@others)
		{
			my $candidates = $by_key{ $key->($row) } // [];
			my ($i) = grep { same_row($candidates->[$_], $row, $compare) } 0 .. $#$candidates;

			if (defined $i) { splice @$candidates, $i, 1; }
			else { push @extra, $row; }
		}
		@missing = map { @{ $by_key{$_} } } sort keys %by_key;
	}
	return if !@missing && !@extra;
	my $show = sub { join '', map { "\n      " . join(' | ', map { s/\x01/(null)/r =~ s/^(.{60}).+/$1…/sr } @$_) } @_[ 0 .. ($#_ > 2 ? 2 : $#_) ] };
	return sprintf "%d rows instead of %d%s\n   %d missing, as %s\n   %d extra, as %s",
	  scalar @$got, scalar @$expected, $r->{ordered} ? ', in order' : '',
	  scalar @missing, $show->(@missing), scalar @extra, $show->(@extra);
}

# ---------- one query ----------

my ($session, $version, $preloaded, $icu);

# In some rounds devices read the pages of all queries, where they can, so that copies of these are read again; and these may have
# first columns alone.
my @round_settings;

sub choose_round_settings
{
	my ($round) = @_;

	seed($o{seed}, $round, 0, 1);
	@round_settings = chance(0.4) ? 'SET gpurhh.read_pages = on' : 'RESET gpurhh.read_pages';
	push @round_settings, 'SET gpurhh.partial_copies = ' . (chance(0.5) ? 'on' : chance(0.7) ? 'auto' : 'off');
	return;
}

sub base_settings
{
	return ('RESET ALL', "SET search_path = $_[0], public", "SET datestyle = 'ISO, MDY'", "SET timezone = 'UTC'",
		'SET jit = off', "SET statement_timeout = '60s'", "SET gpurhh.device = '$o{device}'",
		'SET gpurhh.setup_cost = 0', 'SET gpurhh.row_cost = 0', 'SET gpurhh.group_cost = 0', @round_settings);
}

# joins: the setting of enable_gpu_hashjoin where the nodes are on
sub on_off
{
	my ($side, $joins) = @_;

	return ("SET enable_gpu_hashagg = $side", 'SET enable_gpu_hashjoin = ' . ($side eq 'on' ? $joins : 'off'));
}

# One side: { state, rows, plan }.
sub run_side
{
	my ($r, $side, $joins, $analyze) = @_;
	my $options = $analyze ? 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF' : 'COSTS OFF';
	my @on_off = on_off($side, $joins);
	my @results = $session->run(@on_off, @{ $r->{before} }, $r->{explain} =~ s/OPTIONS/$options/r,
		@{ $r->{run} }, @{ $r->{after} });
	my $n = @on_off + @{ $r->{before} };
	my %got = (state => '00000', output => '', plan => $results[$n] ? $results[$n][1] =~ tr/\x1e/\n/r : '');

	foreach my $result (@results)
	{
		if ($result->[0] ne '00000') { $got{state} = $result->[0]; last; }
	}
	if (@results < $n + 1 + @{ $r->{run} })
	{
		$got{state} = 'lost';
		return \%got;
	}
	$got{rows} = [ map { @{ rows($_->[1]) } } @results[ $n + 1 .. $n + @{ $r->{run} } ] ];
	return \%got;
}

# { problem, used, state, n_rows }
sub try_query
{
	my ($q, $schema) = @_;
	my $r = render($q);
	my %result;

	$session->run(base_settings($schema), map { "SET $_->[0] = '$_->[1]'" } @{ $q->{settings} });
	my $joins = (grep { $_->[0] eq 'gpurhh.enable_hashjoin' } @{ $q->{settings} }) ? 'off' : 'on';
	my $off = run_side($r, 'off', $joins);
	# now and then with ANALYZE, to see how rows came and where they were finished
	my $on = $off->{state} eq 'lost' ? $off : run_side($r, 'on', $joins, $q->{mode} ne 'ctas' && !$q->{writes} && $off->{state} eq '00000' && chance(0.25));
	%result = (state => $off->{state}, n_rows => scalar @{ $off->{rows} // [] }, plan => $on->{plan},
		used => scalar(() = $on->{plan} =~ /Custom Scan \(GpuHash(Agg|Join)\)/g));
	if ($off->{state} eq 'lost' || $on->{state} eq 'lost')
	{
		$result{problem} = 'the connection was lost, or no answer came in 3 minutes, with enable_gpu_hashagg = '
		  . ($off->{state} eq 'lost' ? 'off' : 'on');
		$result{lost} = 1;
	}
	elsif ($off->{state} =~ /^42(?!P2)/)	# 42P2x: two collations meet
	{
		$result{problem} = "SQLSTATE $off->{state}: this is no query";
	}
	elsif ($off->{state} ne $on->{state})
	{
		$result{problem} = "SQLSTATE $on->{state} instead of $off->{state}";
		delete $result{problem} if $off->{state} eq '57014' || excused($q, $off, $on);
		$result{excused} = 1 if !$result{problem};
	}
	elsif ($off->{state} eq '00000')
	{
		my $problem = difference($off->{rows}, $on->{rows}, $r);
		$result{problem} = $problem if $problem && !open_distinct($q, "$off->{plan}\n$on->{plan}") &&
			($result{used} || !varies($r, $off));
		$result{excused} = 1 if $problem && !$result{problem};
	}
	return \%result;
}

# Does core's own answer vary from run to run?  So it does where it sorts by one of two grouping columns that are the same
# expression, and a window tells its partitions apart by the other one.
sub varies
{
	my ($r, $off) = @_;

	for (1 .. 6)
	{
		my $again = run_side($r, 'off', 'off');

		return 1 if $again->{state} eq '00000' && difference($off->{rows}, $again->{rows}, $r);
	}
	return 0;
}

# Two sides have different errors, or one has none: may core's own have?
sub excused
{
	my ($q, $off, $on) = @_;

	# a join with nothing reads nothing of the other side, or all of it, as it is planned; so does p(0) of what is prepared
	return 1 if $q->{no_u} && $q->{from} =~ /JOIN/;
	return 1 if $q->{joins} && $q->{mode} eq 'prepare' && "$off->{state} $on->{state}" =~ /^(00000 22|22\d\d\d 00000)/;
	return 1 if $q->{joins} && grep { $_->{state} eq '00000' && @{ $_->{rows} // [] } < 2 } $off, $on;
	return 1 if $q->{errs} && "$off->{state} $on->{state}" =~ /^(00000 22|22\d\d\d 00000)/ && ($q->{several} || @{ $q->{where} } || "$off->{plan}$on->{plan}" =~ /Semi|Anti/);
	return 1 if $q->{limit} || $q->{mode} eq 'cursor' || $q->{above} || $q->{mode} eq 'lateral';
	return $off->{state} ne '00000' && $on->{state} ne '00000' && "$off->{plan}$on->{plan}" =~ /Gather|Join|Nested Loop|Sort/;
}

# Core takes two grouping columns that are the same expression for equal, which they are not in all sets:
# a DISTINCT above that sorts makes too few rows, and one that hashes does not.
sub open_distinct
{
	my ($q, $plans) = @_;

	return $q->{distinct} && $plans =~ /Unique/ && $plans =~ /(?:Hash|Group) Key: (?:.*, )?([^,\n]+), (?:.*, )?\1(?:,|$)/m;
}

# ---------- a round ----------

sub tables_of
{
	my ($round) = @_;
	my $schema = "gpurhh_random_$round";

	seed($o{seed}, $round);
	my ($t, $u) = random_tables($icu);
	my @private = ("SET gpurhh.pool_size = '" . pick('256kB', '1MB', '8MB') . "'", 'SET gpurhh.cpu_threads = ' . pick(1, 2, 4));
	my @sql = ("SELECT setseed(" . sprintf('%.6f', rand()) . ")", setup_sql($icu), @{ $t->{sql} }, @{ $u->{sql} },
		security_sql($schema, $t, $u), joined_table_sql($t));
	return ($t, $u, ["DROP SCHEMA IF EXISTS $schema CASCADE", "CREATE SCHEMA $schema", base_settings($schema),
			$preloaded ? () : @private, @sql]);
}

sub start_round
{
	my ($round) = @_;
	my ($t, $u, $sql) = tables_of($round);

	$session //= Session->new;
	my @results = $session->run("LOAD 'gpurhh'", @$sql);
	foreach my $i (0 .. $#results)
	{
		next if $results[$i][0] eq '00000';
		die "round $round: SQLSTATE $results[$i][0] of: " . ($sql->[ $i - 1 ] // '') . "\n";
	}
	return ($t, $u);
}

# The failure in as few parts as still fail.
sub shrink
{
	my ($q, $schema) = @_;
	my $budget = 150;
	my $again;

	do
	{
		$again = 0;
		foreach my $candidate (smaller($q))
		{
			last if $budget-- <= 0;
			my $result = try_query($candidate, $schema);
			last if $result->{lost};
			next if !$result->{problem} || $result->{state} =~ /^42/;
			$q = $candidate;
			$again = 1;
			last;
		}
	} while ($again && $budget > 0);
	return $q;
}

sub report
{
	my ($id, $q, $result, $schema) = @_;
	my $text;

	if ($o{shrink} && !$result->{lost})
	{
		my $small = shrink($q, $schema);
		my $again = try_query($small, $schema);
		($q, $result) = ($small, $again) if $again->{problem};
	}
	my $r = render($q);
	$text = "DIFFERENCE in query $id of seed $o{seed}: $result->{problem}\n";
	$text .= "   $_;\n" foreach (map { "SET $_->[0] = '$_->[1]'" } @{ $q->{settings} }), @{ $r->{before} }, @{ $r->{run} };
	$text .= $result->{plan} =~ s/^/      /mgr if $result->{plan};
	$text .= "\n   see it again: $0 --running --seed $o{seed} --only $id"
	  . ($o{device} eq 'auto' ? '' : " --device $o{device}") . ($o{'break-modifiers'} ? ' --break-modifiers' : '') . "; its statements: --print\n";
	print $text;
	return;
}

my %count;

# What is worth having been reached; those of ANALYZE are of a sample.
my %paths = (
	'fed by pages' => qr/Feed: pages/,
	'fed by rows' => qr/Feed: rows/,
	'pages read by the device' => qr/^ *Input: .* pages\b/m,
	'pages sent back' => qr/^ *Input: .* pages, .*[1-9]\d* sent back/m,
	'pages of the cache' => qr/^ *Input: .* pages, [1-9]\d* cached/m,
	'by groups' => qr/Feed: groups/,
	'joins on the device' => qr/Device Joins: [1-9]/,
	'joins in passes' => qr/rows joined, \d+ passes/,
	'joins in passes, in parallel' => qr/Parallel Custom Scan \(GpuHashAgg\).*rows joined, \d+ passes/s,
	'right and full joins in parallel' => qr/Parallel Custom Scan \(GpuHashAgg\).*Device Joins: [1-9].*Hash (Right|Full) Join/s,
	'key filters' => qr/Key Filter/,
	'joined rows returned' => qr/Custom Scan \(GpuHashJoin\)/,
	'joined rows returned, of pages' => qr/Custom Scan \(GpuHashJoin\)[^\n]*\n(?:(?! *->)[^\n]*\n)*? *Input: [^\n]* pages\b/,
	'build sides that stay' => qr/Rows: kept on the device/,
	'joined rows on the host' => qr/Rows Left to the Host: [1-9]/,
	'parallel' => qr/Parallel Custom Scan/,
	'rows on the host' => qr/Host Rows: [1-9]/,
	'spilled' => qr/Spilled Records: [1-9]/,
	'rehashed' => qr/Rehashes: [1-9]/,
);

# What happens to the tables before a query: seldom anything.
sub changes_before
{
	my ($round, $i, $t) = @_;

	seed($o{seed}, $round, $i, 1);
	return chance(0.1) ? random_changes($t) : ();
}

sub run_round
{
	my ($round, $n_queries, $only) = @_;
	my $schema = "gpurhh_random_$round";
	choose_round_settings($round);
	my ($t, $u) = start_round($round);

	foreach my $i (1 .. $n_queries)
	{
		$session->run("SET search_path = $schema, public", changes_before($round, $i, $t));
		next if defined $only && $i != $only;
		seed($o{seed}, $round, $i);
		my $q = random_query($t, $u, $version);
		my $begun = time;
		my $result = try_query($q, $schema);
		my $problem = $result->{problem};

		printf "%s %.3f s%s %s %d rows: %s\n", "$round.$i", time - $begun, $result->{used} ? ' gpurhh' : '',
		  $result->{state}, $result->{n_rows}, render($q)->{run}[0]
		  if $o{verbose};
		if ($result->{lost})
		{
			report("$round.$i", $q, $result, $schema);
			$count{different}++;
			undef $session;
			sleep 3;
			($t, $u) = start_round($round);
			next;
		}
		if ($o{verbose} && !$result->{used} && $result->{state} eq '00000')
		{
			my $query = render($q)->{run}[0];
			my ($why) = ($session->run("SELECT DISTINCT reason FROM gpurhh_refusals(\$qq\$$query\$qq\$)"))[0];
			print "   not used: ", $why->[1] =~ tr/\x1e/;/r;
		}
		$count{queries}++;
		$count{used}++ if $result->{used};
		foreach my $what (sort keys %paths)
		{
			$count{$what}++ if $result->{plan} =~ $paths{$what};
		}
		$count{failing}++ if $result->{state} ne '00000';
		$count{excused}++ if $result->{excused};
		$count{"error $result->{state}"}++ if $result->{state} ne '00000';
		$count{empty}++ if $result->{state} eq '00000' && $result->{n_rows} == 0;
		if ($problem)
		{
			$count{different}++;
			report("$round.$i", $q, $result, $schema);
		}
	}
	$session->run('RESET ALL', "DROP SCHEMA $schema CASCADE", "DISCARD TEMP");
	if (!$preloaded)
	{
		$session->quit;
		undef $session;
	}
	return;
}

# ---------- all of them ----------

$| = 1;
$session = Session->new;
my ($connected, $icus, $preload) = $session->run('SHOW server_version_num',
	"SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu' AND getdatabaseencoding() = 'UTF8'", 'SHOW shared_preload_libraries');
die "cannot reach a server: set PGHOST, PGPORT, PGUSER\n" if $connected->[0] ne '00000';
$version = $connected->[1] =~ s/\D//gr;
$icu = $icus->[1] > 0;
$preloaded = $preload->[1] =~ /gpurhh/;
$session->run('SET client_min_messages = error', 'CREATE EXTENSION IF NOT EXISTS gpurhh');
my ($only_round, $only_query) = split /\./, $o{only} // '';

if ($o{print})
{
	my ($t, $u, $sql) = tables_of($only_round // die "--print needs --only\n");

	print "LOAD 'gpurhh';\n", map { "$_;\n" } @$sql, map { changes_before($only_round, $_, $t) } 1 .. $only_query // 0;
	if (defined $only_query)
	{
		seed($o{seed}, $only_round, $only_query);
		my $q = random_query($t, $u, $version);
		my $r = render($q);
		choose_round_settings($only_round);
		print "$_;\n" foreach @round_settings;
		my @run = (@{ $r->{before} }, @{ $r->{run} }, @{ $r->{after} });
		print map { "$_;\n" } (map { "SET $_->[0] = '$_->[1]'" } @{ $q->{settings} }), on_off('off'), @run, on_off('on', 'on'), $r->{explain} =~ s/OPTIONS/COSTS OFF/r, @run;
	}
	exit 0;
}

my $rounds = int(($o{queries} + QUERIES_A_ROUND - 1) / QUERIES_A_ROUND);
my $started = time;

if (defined $only_round)
{
	$o{floor} = 0;
	run_round($only_round, QUERIES_A_ROUND, $only_query);
}
elsif ($o{jobs} <= 1)
{
	foreach my $round (1 .. $rounds)
	{
		my $left = $o{queries} - ($round - 1) * QUERIES_A_ROUND;
		run_round($round, $left < QUERIES_A_ROUND ? $left : QUERIES_A_ROUND);
	}
}
else
{
	# each has a share of the rounds, and hands its counts back through a pipe
	$session->quit;
	undef $session;
	my @pipes;
	foreach my $job (0 .. $o{jobs} - 1)
	{
		my $pid = open my $pipe, '-|';
		die "cannot fork: $!" if !defined $pid;
		if ($pid)
		{
			push @pipes, $pipe;
			next;
		}
		open my $counts, '>&', \*STDOUT;
		open STDOUT, '>&', \*STDERR;
		undef $session;
		foreach my $round (grep { $_ % $o{jobs} == $job } 1 .. $rounds)
		{
			run_round($round, QUERIES_A_ROUND);
		}
		print {$counts} map { "$_\t$count{$_}\n" } keys %count;
		print {$counts} "done\t1\n";
		close $counts;
		exit 0;
	}
	foreach my $pipe (@pipes)
	{
		while (<$pipe>)
		{
			my ($name, $n) = split /\t/;
			$count{$name} += $n;
		}
	}
	die "a session failed\n" if ($count{done} // 0) != $o{jobs};
}

# Where several run at once, the last one succeeds.
($session // Session->new)->run("DROP ROLE IF EXISTS $ROLE");

$count{$_} //= 0 foreach qw(queries used failing empty excused different);
my $share = $count{queries} ? $count{used} / $count{queries} : 0;
printf "seed %d: %d queries in %.0f s: %d different; %d (%.0f %%) with one of the nodes; %d with an error (%s), %d of them not comparable; %d without rows\n",
  $o{seed}, $count{queries}, time - $started, $count{different}, $count{used}, $share * 100, $count{failing},
  join(', ', map { /^error (.*)/ ? "$1: $count{$_}" : () } sort keys %count), $count{excused}, $count{empty};
print '   of those: ', join(', ', map { "$_ " . ($count{$_} // 0) } sort keys %paths), "\n";
if ($share < $o{floor})
{
	print "the floor of $o{floor} was not reached\n";
	exit 1;
}
exit($count{different} ? 1 : 0);
