#!/usr/bin/perl
# core_suite.pl: compares what psql printed in two runs of PostgreSQL's regression
# suite, for core_suite.sh.
#
#	core_suite.pl [--settings NAME] [--known FILE] [--show N] SQL-DIR EXPECTED-DIR GOT-DIR
#
# psql -a prints each line of a script as it reads it, and what a statement
# returns after the line that ends it.  So the script's lines cut its output into
# blocks, one for each statement that printed something.  Two blocks have to be
# equal, but
#
#	- for the order of lines, unless the statement has an ORDER BY (of lines, so
#	  that a result's rows are a multiset);
#	- for blocks of statements that have EXPLAIN in their text, which show plans;
#	- for what core_suite.known lists.
#
# A line of that file is TEST<tab>WHAT<tab>SETTINGS<tab>PATTERN.  The pattern, a
# regular expression of Perl's, is looked for in the statement, in which white
# space counts as one blank.  WHAT is "order", where equal rows of an ORDER BY may
# change places, "plan", where a plan is shown, or "open", where the answer itself
# is open.  SETTINGS is "any" or some of core_suite.sh's, with commas between.  A
# comment above, which has to be there, gives the reason.
#
# Prints a failure for each test that differs, and "N passed, N failed".

use strict;
use warnings;

use Getopt::Long;

my %o = (settings => 'plain', show => 5);
GetOptions(\%o, 'settings=s', 'known=s', 'show=i') && @ARGV == 3
  or die "usage: core_suite.pl [--settings NAME] [--known FILE] [--show N] SQL-DIR EXPECTED-DIR GOT-DIR\n";
my ($sql_dir, $expected_dir, $got_dir) = @ARGV;

sub lines_of
{
	my ($file) = @_;

	open my $in, '<', $file or return;
	my @lines = <$in>;
	close $in;
	chomp @lines;
	return \@lines;
}

# Blocks { statement, lines } of an output.  psql does not print blank lines of
# scripts, outside of quotes, nor the rows of COPY FROM stdin; what is not found
# is passed over (it stands behind \q, say).
sub blocks
{
	my ($script, $output) = @_;
	my @blocks;
	my @statement;
	my $at = 0;
	my $copying = 0;
	my $take = sub {
		my ($end) = @_;
		my @lines = @$output[ $at .. $end - 1 ];

		if (grep { $_ ne '' } @lines)
		{
			push @blocks, { statement => join("\n", @statement), lines => \@lines };
			@statement = ();
		}
		elsif (@statement && $statement[-1] =~ /(;|\\g\w*)\s*(--.*)?$/)
		{
			# that one printed nothing
			@statement = ();
		}
		$at = $end;
	};

	foreach my $line (@$script)
	{
		my $end = $at;

		if ($copying)
		{
			$copying = $line ne '\\.';
			next;
		}
		next if $line eq '';
		$end++ while $end < @$output && $output->[$end] ne $line;
		next if $end >= @$output;
		$take->($end);
		push @statement, $line;
		$at++;
		$copying = $line =~ /^\s*\\?copy\b.*\bfrom\s+stdin\b/i;
	}
	$take->(scalar @$output);
	return \@blocks;
}

my @known;
if ($o{known})
{
	my $reason = '';

	foreach (@{ lines_of($o{known}) // die "cannot read $o{known}\n" })
	{
		if (/^#\s*(.*)/ || /^$/)
		{
			$reason = $1 // '';
			next;
		}
		my ($test, $what, $settings, $pattern) = /^(\S+)\t(order|plan|open)\t([\w,]+)\t(.+)$/ or die "$o{known}: cannot read: $_\n";
		die "$o{known}: no reason is given for: $_\n" if $reason eq '';
		push @known, { test => $test, what => $what, pattern => qr/$pattern/ } if grep { $_ eq 'any' || $_ eq $o{settings} } split /,/, $settings;
	}
}

# May they differ in order, or altogether?
sub allowed
{
	my ($test, $statement) = @_;
	my $text = $statement =~ s/\s+/ /gr;
	my %may = (order => $text !~ /\border by\b/i, any => $text =~ /\bexplain/i ? 1 : 0);

	foreach my $known (grep { $_->{test} eq $test && $text =~ $_->{pattern} } @known)
	{
		$may{ $known->{what} eq 'order' ? 'order' : 'any' } = 1;
	}
	return %may;
}

my ($passed, $failed, %count) = (0, 0);
my @tests = map { m{([^/]+)\.out$} ? $1 : () } sort glob "$expected_dir/*.out";
foreach my $test (@tests)
{
	my $script = lines_of("$sql_dir/$test.sql") // die "there is no $sql_dir/$test.sql\n";
	my $expected = blocks($script, lines_of("$expected_dir/$test.out"));
	my $got = blocks($script, lines_of("$got_dir/$test.out") // []);
	my @problems;
	my ($i, $j) = (0, 0);

	while ($i < @$expected || $j < @$got)
	{
		my ($x, $y) = ($expected->[$i], $got->[$j]);

		if (!$x || !$y || $x->{statement} ne $y->{statement})
		{
			# One printed something where the other did not.
			my $block = $x // $y;
			my $side = !$y || $x && grep({ $_->{statement} eq $y->{statement} } @$expected[ $i + 1 .. $#$expected ])
			  ? 'expected' : 'got';

			$block = $side eq 'expected' ? $x : $y;
			my %may = allowed($test, $block->{statement});
			push @problems, { statement => $block->{statement},
				$side => $block->{lines}, why => "printed only " . ($side eq 'expected' ? 'without' : 'with') . ' the node' } if !$may{any};
			$side eq 'expected' ? $i++ : $j++;
			next;
		}
		$i++;
		$j++;
		$count{blocks}++;
		next if "@{[ map { qq($_\n) } @{ $x->{lines} } ]}" eq "@{[ map { qq($_\n) } @{ $y->{lines} } ]}";
		my %may = allowed($test, $x->{statement});
		if ($may{any}) { $count{plans}++; next; }
		my $permuted = join("\n", sort @{ $x->{lines} }) eq join("\n", sort @{ $y->{lines} });
		if ($permuted && $may{order}) { $count{order}++; next; }
		push @problems, { statement => $x->{statement}, expected => $x->{lines}, got => $y->{lines},
			why => $permuted ? 'another order of rows' : 'another answer' };
	}
	if (!@problems) { $passed++; next; }
	$failed++;
	printf "FAILED %s: %d statements differ\n", $test, scalar @problems;
	foreach my $problem (splice @problems, 0, $o{show})
	{
		print "--- $problem->{why}: " . substr($problem->{statement} =~ s/\s+/ /gr, 0, 600) . "\n";
		my %there = map { my $side = $_; ($side => { map { $_ => 1 } @{ $problem->{$side} // [] } }) } qw(expected got);
		my @missing = grep { !$there{got}{$_} } @{ $problem->{expected} // [] };
		my @extra = grep { !$there{expected}{$_} } @{ $problem->{got} // [] };
		print map { "   - $_\n" } splice @missing, 0, 8;
		print map { "   + $_\n" } splice @extra, 0, 8;
	}
}
printf "   %d statements that print something; %d with other rows' order, %d showing plans or open\n",
  map { $count{$_} // 0 } qw(blocks order plans);
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
