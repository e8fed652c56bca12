#!/usr/bin/perl
# pgalign.pl ORIGINAL <FORMATTED: the part of pgindent's layout that
# clang-format cannot do, as a filter behind it.
#
#	- declared names start 12 columns after the declaration's indentation, stars
#	  before them, whatever the declarations around are;
#	- comments behind code start in column 32, or at the next tab stop, and the
#	  lines they go on in follow;
#	- line breaks inside a statement are the author's, as ORIGINAL has them, even
#	  where clang-format would join or split; so are #defines of several lines
#	  and the column of a #define's value;
#	- a space after the name of a pointer to a function; "fmt,..." may stay.
#
# Both texts are cut into segments: the fewest lines of each that are the same
# but for white space, mostly one and one.  Segments make up statements, and a
# statement in which clang-format moved a line break is taken from ORIGINAL,
# indented as FORMATTED has it.  Only white space changes: format.sh checks.
use strict;
use warnings;

use constant TAB     => 4;
use constant NAME    => 12;		# pgindent -di12
use constant COMMENT => 32;		# pgindent -c33

# ---------- white space and columns ----------

sub column						# behind a string that starts in column $col
{
	my ($s, $col) = @_;
	for my $c (split //, $s)
	{
		$col += $c eq "\t" ? TAB - $col % TAB : 1;
	}
	return $col;
}

sub indentation
{
	my ($s) = @_;
	$s =~ /^(\s*)/;
	return column($1, 0);
}

sub pad							# white space from column to column
{
	my ($from, $to) = @_;
	my $s = '';
	return ' ' if $to - $from == 1;
	while ($from + TAB - $from % TAB <= $to)
	{
		$s .= "\t";
		$from += TAB - $from % TAB;
	}
	return $s . ' ' x ($to - $from);
}

sub indent						# a line, anew
{
	my ($line, $to) = @_;
	$line =~ s/^\s+//;
	return $line eq '' ? '' : pad(0, $to < 0 ? 0 : $to) . $line;
}

# ---------- code ----------

sub without_strings
{
	my ($s) = @_;
	$s =~ s/"(?:[^"\\]|\\.)*"/""/g;
	$s =~ s/'(?:[^'\\]|\\.)*'/''/g;
	return $s;
}

sub bare						# nor comments
{
	my ($s) = @_;
	$s = without_strings($s);
	$s =~ s{/\*.*?(?:\*/|$)}{}g;
	$s =~ s{//.*}{};
	$s =~ s/\s+$//;
	return $s;
}

sub parens
{
	my ($s) = @_;
	return ($s =~ tr/([//) - ($s =~ tr/)]//);
}

sub goes_on						# is a statement that stands so far unfinished?
{
	my ($code) = @_;
	return 1 if $code =~ m{(?:[=+\-*/%&|^?<>,!~]|\breturn)$} && $code !~ /(?:\+\+|--)$/;
	return $code =~ / :$/ || $code =~ /__launch_bounds__\([^()]*\)$/;
}

# Column behind the innermost parenthesis that is open at the line's end, given
# those that were open before it; updates them.
sub open_parens
{
	my ($line, $open) = @_;
	my $code = without_strings_keeping_columns($line);
	my $col = 0;
	for my $c (split //, $code)
	{
		$col = column($c, $col);
		push @$open, $col if $c eq '(' || $c eq '[';
		pop @$open if $c eq ')' || $c eq ']';
	}
}

sub without_strings_keeping_columns
{
	my ($s) = @_;
	$s =~ s/("(?:[^"\\]|\\.)*")/'"' . '.' x (length($1) - 2) . '"'/ge;
	$s =~ s/('(?:[^'\\]|\\.)*')/"'" . '.' x (length($1) - 2) . "'"/ge;
	$s =~ s{(/\*.*?(?:\*/|$))}{'.' x length $1}ge;
	$s =~ s{//.*}{};
	return $s;
}

sub content
{
	my ($s) = @_;
	$s =~ s/\\$//;
	$s =~ s/\s+//g;
	return $s;
}

# ---------- segments ----------

open(my $fh, '<', $ARGV[0]) or die "$ARGV[0]: $!";
my @original = map { s/\s+$//r } <$fh>;
close $fh;
my @formatted = map { s/\s+$//r } <STDIN>;

my @segments;					# {o => [lines], f => [lines]}
my ($i, $j) = (0, 0);
while ($j < @formatted)
{
	if (content($formatted[$j]) eq '' && $formatted[$j] !~ /\\/)
	{
		push @segments, {o => [], f => [$formatted[$j++]]};
		next;
	}
	$i++ while $i < @original && content($original[$i]) eq '';

	my (@o, @f);
	my ($a, $b, $at) = ('', '', $i);
	do
	{
		if (length $a <= length $b)
		{
			die "pgalign.pl: $ARGV[0]: out of step\n" if $i >= @original;
			$a .= content($original[$i]);
			push @o, $original[$i++];
		}
		if (length $b < length $a)
		{
			die "pgalign.pl: $ARGV[0]: out of step\n" if $j >= @formatted;
			$b .= content($formatted[$j]);
			push @f, $formatted[$j++];
		}
	} until length $a == length $b;

	# backslashes of a macro that clang-format moved to lines of their own
	push @f, $formatted[$j++] while $j < @formatted && $formatted[$j] eq '\\';
	push @segments, {o => \@o, f => \@f, at => $at};
}

# Are all line breaks of a list of lines inside of a statement?
sub breaks_inside
{
	my ($depth, $code) = (shift, '');
	while (@_ > 1)
	{
		$code .= bare(shift);
		next if $_[0] =~ /^\s*\}[;,]*$/ && $code !~ /[;{]$/;	# the end of a list
		return 0 if $depth + parens($code) <= 0 && !goes_on($code) && $_[0] !~ m{^\s*(?:[?:&|+*/=<>]|-[^-])};
		return 0 if $code =~ /[;{}]$/;
	}
	return 1;
}

# ---------- declarations ----------

my $word      = qr/[A-Za-z_][\w:]*(?:<[^;()]*>)?/;
my $qualifier = qr/(?:static|const|volatile|extern|unsigned|signed|struct|union|enum|long|short|__shared__|__constant__|__device__|_Thread_local|thread_local|PGDLLIMPORT)/;
my $type      = qr/(?:$qualifier\s+)*$word(?:\s+(?:long|int|char|double|const|volatile))*/;
my $not_type  = qr/^(?:return|goto|else|case|default|do|typedef|using|namespace|template|typename|new|delete|sizeof|if|for|while|switch|public|private|break|continue)\b/;
my $no_name   = qr/(?:^|\s)(?:struct|union|enum|static|extern|const|volatile)$/;

# The line with the declared name where it belongs, and the column for further
# names; or nothing where it declares nothing.
sub align_declaration
{
	my ($line) = @_;
	my ($indent, $t, $stars, $name, $rest);

	if ($line =~ /^(\s*)($type)\s+(\**)($word)(\s*(?:[;,=\[]|:\s*\d).*)$/)
	{
		($indent, $t, $stars, $name, $rest) = ($1, $2, $3, $4, $5);
	}
	elsif ($line =~ /^(\s*)($type)\s+(\**)(\(\*\w+(?:\[\w*\])?\)) ?(\(.*)$/)
	{
		($indent, $t, $stars, $name, $rest) = ($1, $2, $3, $4, " $5");
	}
	elsif ($line =~ /^()($type)\s+(\**)($word)(\(.*)$/)
	{
		($indent, $t, $stars, $name, $rest) = ($1, $2, $3, $4, $5);
	}
	else
	{
		return;
	}
	return if $t =~ $not_type || $t =~ $no_name || $name =~ /^operator/;

	my $base = column($indent, 0);
	my $end  = $base + length $t;
	my $at   = $base + NAME - length $stars;

	$at = $end + 1 if $at <= $end;
	my $space = pad($end, $at);
	$space = ' ' x ($at - $end) if $space =~ /^\t +$/ && $end % TAB == TAB - 1;
	return ($indent . $t . $space . $stars . $name . $rest, $base + NAME);
}

# ---------- the lines, anew ----------

my $in_comment = 0;				# inside a comment of several lines
my $stars_at   = -1;			# that began behind code: the column of its stars

sub emit
{
	my ($line, $verbatim) = @_;

	if ($in_comment)
	{
		$line = indent($line, $stars_at) if $stars_at >= 0 && $line =~ /^\s*\*/;
		$in_comment = 0 if $line =~ m{\*/};
	}
	else
	{
		$stars_at = -1;
		if (!$verbatim && $line =~ m{^(.*?\S)\s*(/\*(?:(?!\*/).)*(?:\*/)?)$}
			&& without_strings($1) !~ m{/[/*]|"[^"]*$})
		{
			my ($code, $comment) = ($1, $2);
			my $end = column($code, 0);
			my $at = $end < COMMENT ? COMMENT : $end + TAB - $end % TAB;

			$line = $code . pad($end, $at) . $comment;
			$stars_at = $at + 1;
		}
		(my $rest = without_strings($line)) =~ s{/\*.*?\*/}{}g;
		$in_comment = 1 if $rest =~ m{/\*} && $rest !~ m{//.*/\*};
	}
	print "$line\n";
}

my $n = 0;
while ($n < @segments)
{
	my $first = $segments[$n];
	my @o = @{$first->{o}};
	my @f = @{$first->{f}};

	# white space, comments, directives
	if ($in_comment || !@o || bare($f[0]) eq '')
	{
		emit($_) for @f;
		$n++;
		next;
	}
	if ($f[0] =~ /^\s*#/)
	{
		my $define = $f[0] =~ /^\s*#\s*define\b/;

		if ($o[-1] =~ /\\$/ || @o > 1)
		{
			# a directive of several lines
			my $at = $first->{at};
			$at++ while $original[$at] =~ /\\$/;
			emit($_, 1) for @original[$first->{at} .. $at];
			$n++ while $n < @segments && defined $segments[$n]{at} && $segments[$n]{at} <= $at;
		}
		else
		{
			emit($define ? $o[0] : $_) for $define ? $o[0] : @f;
			$n++;
		}
		next;
	}

	# the statement: this segment and those it goes on in
	my $end = $n;
	my $depth = 0;
	my $code = '';
	my $author = 0;				# line breaks are from ORIGINAL
	my $block = 0;				# there are braces inside the parentheses
	my $comment = 0;
	while (1)
	{
		my $s = $segments[$end];

		$author = 1 if (@{$s->{o}} > 1 || @{$s->{f}} > 1) && @{$s->{o}} > 0
			&& ($s->{o}[0] =~ /__launch_bounds__/
				|| breaks_inside($depth, @{$s->{o}}) && breaks_inside($depth, @{$s->{f}}));
		for (@{$s->{f}})
		{
			if ($comment)
			{
				$comment = 0 if m{\*/};
				next;
			}
			my $b = bare($_);
			$depth += parens($b);
			$block = 1 if $depth > 0 && $b =~ /[{}]$/;
			$code = $b if $b ne '';
			(my $rest = without_strings($_)) =~ s{/\*.*?\*/}{}g;
			$comment = 1 if $rest =~ m{/\*};
		}
		last if $end + 1 >= @segments || $segments[$end + 1]{f}[0] =~ /^\s*#/;
		last if $depth <= 0 && !$comment && !goes_on($code)
			&& ($code =~ /[;{}]$/ || $segments[$end + 1]{f}[0] !~ m{^\s*(?:<<|>>|&&|\|\||[?:|/=]\s)});
		$end++;
	}

	my $was = $o[0];			# the first line, before and after
	my $now;
	my $names_at = -1;			# column of further declarators
	my $shift = 0;				# how far what follows the declared name moved
	my $before = '';			# the line before, bare
	my @open;					# columns behind open parentheses
	for my $k ($n .. $end)
	{
		my $s = $segments[$k];
		my $keep = $author && @{$s->{o}};
		my @lines = $keep ? @{$s->{o}} : @{$s->{f}};

		for my $l (0 .. $#lines)
		{
			my $line = $lines[$l];

			if ($in_comment)
			{
				emit($line);
				next;
			}
			if ($k == $n && $l == 0)
			{
				$line = $keep && (@{$s->{f}} > 1 || @{$s->{o}} > 1) ? indent($line, indentation($f[0])) : $f[0];

				my ($aligned, $at) = align_declaration($line);
				if (defined $aligned)
				{
					$shift = column($aligned, 0) - column($line, 0);
					$line = $aligned;
					$names_at = $at if bare($line) =~ /,$/ && bare($line) !~ /[{(]/;
				}
				elsif ($line =~ /^\s*\}\s+\w/ && content($was) eq content($line))
				{
					# "} name": typedef or variable?  The author knows.
					$line = indent($was, indentation($line));
				}
				$now = $line;
			}
			elsif ($block)
			{
				my ($aligned) = $before =~ /[;{}]$/ ? align_declaration($line) : ();
				$line = defined $aligned ? $aligned : indent($line, indentation($line) + $shift);
			}
			elsif (@open)
			{
				$line = indent($line, $open[-1]);
			}
			elsif ($names_at >= 0 && $line =~ /^\s*(\**)(?=\w)/)
			{
				$line = indent($line, $names_at - length $1);
			}
			elsif ($keep)
			{
				$line = indent($line, indentation($line) + indentation($now) - indentation($was));
			}
			elsif ($l == 0 && @{$s->{o}} && $line !~ /^\s*[{}]/)
			{
				# outside of parentheses a continuation is where the author has it
				$line = indent($line, indentation($s->{o}[0]) + indentation($now) - indentation($was));
			}
			$line =~ s/, \.\.\.\)/,...)/g if grep { /,\.\.\.\)/ } @{$s->{o}};
			$line =~ s/(\S)  +\?/$1 ?/ unless without_strings($line) =~ m{["'].*\?|/\*.*\?};
			open_parens($line, \@open);
			$before = bare($line) if bare($line) ne '';
			emit($line);
		}
	}
	$n = $end + 1;
}
