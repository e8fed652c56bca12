# Queries.pm: random queries over the tables of Tables.pm.
#
# A query is a hash that can be taken apart, so that one that fails can be made
# smaller (see smaller()):
#	kind		group, sets, distinct, plain (no GROUP BY), union
#	with, from	text; joins: what is joined to that, a text each
#	keys		[ { sql, class, shown } ]
#	sets		for kind sets: [ text with {0}, {1} … for the keys ]
#	outputs		[ { sql, compare => exact | float8 | float4 | spread, key => I } ]
#	where, having	[ text ]
#	above		what is above the grouping, with {} for it and {COLUMN} for one of
#				its columns
#	order		ordered by all keys, which are all shown; limit: a number of rows
#	mode		plain, cursor, prepare, ctas, lateral
#	cursor		{ options, steps, hold }: what is fetched, and the step before which
#				the transaction ends
#	writes		it changes the tables itself; changes: statements that do before it;
#				either way in a transaction that is rolled back
#	role		asked by a role that policies apply to, set early or late
#	settings	[ [ name, value ] ]
#	views		what view_1, view_2 … are; derived, distinct, plain_columns: see Shapes.pm
#
# An expression is { sql, class, shown, nosum }; see Tables.pm for these.

package Queries;

use strict;
use warnings;

use Exporter 'import';
use Shapes;
use Tables;

our @EXPORT = qw(random_query render smaller);

# ---------- expressions ----------

my $trim = 'trim_scale({})';

# What can be made of an expression of a class: [ text, class of the result,
# how it is shown, and of floats the width of the result if it is not 8: 4, or 0
# for the operand's ].
my %operators = (
	int => [
		[ '{} % 7', 'int' ], [ '{} / 10', 'int' ], [ '({})::int8 + 1', 'int' ], [ '({})::int8 * 3', 'int' ],
		[ 'coalesce({}, -1)', 'int' ], [ 'nullif({}, 0)', 'int' ], [ 'CASE WHEN {} > 0 THEN 1 WHEN {} = 0 THEN 0 END', 'int' ],
		[ '({} % 100)::int2', 'int' ], [ '{} & 3', 'int' ], [ '- ({} / 2)', 'int' ], [ 'abs({} / 2)', 'int' ],
		[ '{} + 1', 'int' ], [ '100 / ({} % 50)', 'int' ],
		[ '({})::text', 'text' ], [ "'k' || {}", 'text' ], [ '({} / 1000)::numeric(18, 2)', 'numeric' ], [ '({})::numeric', 'numeric' ],
		[ '({} % 1000)::float8', 'float', '({}) + 0' ], [ '({} % 1000)::float4', 'float', '({}) + 0', 4 ],
		[ '{} > 5', 'bool' ], [ '{} = 0', 'bool' ], [ '{} <> 1', 'bool' ], [ '{} BETWEEN -100 AND 1000', 'bool' ],
		[ '{} IN (1, 2, 3, -1)', 'bool' ], [ '{} NOT IN (0, 5)', 'bool' ], [ '{} % 2 = 0', 'bool' ] ],
	numeric => [
		[ '{} * 2', 'numeric', $trim ], [ 'round({}, 1)', 'numeric', $trim ], [ 'coalesce({}, 0)', 'numeric', $trim ],
		[ '- {}', 'numeric', $trim ], [ 'abs({})', 'numeric', $trim ], [ 'trim_scale({})', 'numeric', $trim ],
		[ '({} % 1000)::numeric(12, 2)', 'numeric' ], [ 'mod({}, 7)::int', 'int' ],
		[ '{} > 1', 'bool' ], [ '{} = 0', 'bool' ], [ '{} < 1000000', 'bool' ], [ '{} = 1.37', 'bool' ] ],
	float => [
		[ '{} * 2', 'float', '({}) + 0' ], [ '- {}', 'float', '({}) + 0', 0 ], [ '{} / 4', 'float', '({}) + 0' ],
		[ 'floor({})', 'float', '({}) + 0' ], [ 'abs({})', 'float', '({}) + 0', 0 ], [ 'coalesce({}, 1)', 'float', '({}) + 0', 0 ],
		[ '{} > 0', 'bool' ], [ '{} <= 1e6', 'bool' ], [ "{} = 'NaN'", 'bool' ], [ '{} <> 0.5', 'bool' ] ],
	text => [
		[ 'lower({})', 'text' ], [ 'upper({})', 'text' ], [ 'substr({}, 1, 2)', 'text' ], [ "{} || '!'", 'text' ],
		[ "coalesce({}, 'none')", 'text' ], [ 'md5({})', 'text' ], [ 'left({}, 1)', 'text' ], [ 'reverse({})', 'text' ],
		[ '{} COLLATE "C"', 'text' ], [ "nullif({}, '')", 'text' ], [ 'repeat({}, 20)', 'text' ], [ '({})::varchar(5)', 'text' ],
		[ 'length({})', 'int' ], [ 'octet_length({})', 'int' ], [ "({} || 'b')::char(6)", 'bpchar' ], [ "convert_to({}, 'UTF8')", 'bytea' ],
		[ "{} LIKE '%1%'", 'bool' ], [ "{} = 'x1'", 'bool' ], [ "{} <> ''", 'bool' ], [ '{} COLLATE "C" > \'m\'', 'bool' ] ],
	citext => [ [ '{} COLLATE "C"', 'text' ], [ 'length({})', 'int' ], [ "{} = 'A1'", 'bool' ] ],
	bpchar => [ [ '({})::text', 'text' ], [ 'length({})', 'int' ], [ "{} = 'c1'", 'bool' ], [ "{} || 'x'", 'text' ], [ '({})::char(12)', 'bpchar' ] ],
	bytea => [ [ 'length({})', 'int' ], [ "{} || '\\x00'", 'bytea' ], [ "{} > '\\x01'", 'bool' ], [ "encode({}, 'hex')", 'text' ] ],
	name => [ [ '({})::text', 'text' ], [ "{} = 'm1'", 'bool' ] ],
	bool => [
		[ 'NOT {}', 'bool' ], [ '{} IS TRUE', 'bool' ], [ '{} IS NOT FALSE', 'bool' ], [ 'coalesce({}, false)', 'bool' ],
		[ '({})::int', 'int' ], [ "CASE WHEN {} THEN 'yes' ELSE 'no' END", 'text' ], [ '{}', 'bool' ] ],
	uuid => [ [ "{} < '80000000-0000-0000-0000-000000000000'", 'bool' ], [ 'left({}::text, 2)', 'text' ] ],
	date => [
		[ "date_trunc('month', {})", 'timestamptz' ], [ 'extract(year from {})', 'numeric', $trim ], [ 'extract(dow from {})', 'numeric', $trim ],
		[ '({})::text', 'text' ], [ "{} > '2000-01-05'", 'bool' ], [ "{} - date '2000-01-01'", 'int' ], [ 'isfinite({})', 'bool' ],
		[ "greatest({}, '2000-01-01')", 'date' ] ],
	timestamp => [
		[ "date_trunc('month', {})", 'timestamp' ], [ "date_trunc('hour', {})", 'timestamp' ], [ 'extract(hour from {})', 'numeric', $trim ],
		[ 'extract(epoch from {})', 'numeric', $trim ], [ '({})::date', 'date' ], [ '({})::time', 'time' ], [ "to_char({}, 'YYYY-MM')", 'text' ],
		[ "{} > '2000-01-05'", 'bool' ], [ "{} = '2000-01-01'", 'bool' ], [ "date_part('year', {})", 'float', '({}) + 0' ] ],
	timestamptz => [
		[ "date_trunc('day', {})", 'timestamptz' ], [ 'extract(month from {})', 'numeric', $trim ], [ "{} AT TIME ZONE 'UTC'", 'timestamp' ],
		[ "{} < '2000-03-01 01:00+00'", 'bool' ], [ '({})::date', 'date' ] ],
	time => [ [ 'extract(hour from {})', 'numeric', $trim ], [ "{} > '12:00'", 'bool' ], [ "{} + interval '1 h'", 'time' ] ],
	timetz => [ [ "{} > '12:00+00'", 'bool' ], [ '({})::text', 'text' ] ],
	interval => [ [ '{} * 2', 'interval', 'justify_interval({})' ], [ "{} > '1 month'", 'bool' ], [ '- {}', 'interval', 'justify_interval({})' ] ],
	money => [ [ "{} > '0'", 'bool' ], [ '{} / 2', 'money' ], [ '({})::numeric', 'numeric', $trim ] ],
	macaddr => [ [ 'trunc({})', 'macaddr' ], [ '({})::text', 'text' ] ],
	char => [ [ '({})::int', 'int' ], [ "{} = 'A'", 'bool' ] ],
	enum => [ [ '({})::text', 'text' ], [ "{} > 'ok'", 'bool' ], [ "{} = 'happy'", 'bool' ] ],
	d_enum => [ [ '({})::text', 'text' ], [ '({})::mood', 'enum' ] ],
	oid => [ [ '({})::int8', 'int' ], [ '{} = 17', 'bool' ] ],
	inet => [ [ 'host({})', 'text' ], [ "set_masklen({}, 30)", 'inet' ] ],
	bit => [ [ '({})::text', 'text' ] ],
	lsn => [ [ '({})::text', 'text' ] ],
	jsonb => [ [ "({} ->> 'a')::int8", 'int' ], [ "{} -> 'a'", 'jsonb' ] ],
	array => [ [ '({})[1]', 'int' ] ],
	range => [ [ 'lower({})', 'int' ] ],
	composite => [ [ '({}).a', 'int' ], [ '({}).b', 'text' ] ],
);

# The same of two expressions, {} and {2}.
my %pairs_of = (
	int => [
		[ '{}::int8 + {2}::int8', 'int' ], [ '{} % 1000 - {2} % 1000', 'int' ], [ '({} % 1000) * ({2} % 1000)', 'int' ],
		[ 'coalesce({}, {2})', 'int' ], [ 'CASE WHEN {} > {2} THEN {} ELSE {2} END', 'int' ], [ '{} / nullif({2}, 0)', 'int' ],
		[ '{} < {2}', 'bool' ], [ '{} = {2}', 'bool' ], [ '{} >= {2}', 'bool' ], [ '{} IN ({2}, 3, NULL)', 'bool' ],
		[ '{} IS DISTINCT FROM {2}', 'bool' ], [ 'greatest({}, {2})', 'int' ] ],
	numeric => [
		[ '{} + {2}', 'numeric', $trim ], [ '{} - {2}', 'numeric', $trim ], [ '{} * {2}', 'numeric', $trim ],
		[ '{} * (1 - {2})', 'numeric', $trim ], [ 'coalesce({}, {2})', 'numeric', $trim ],
		[ 'CASE WHEN {} > {2} THEN {} ELSE {2} END', 'numeric', $trim ],
		[ '{} < {2}', 'bool' ], [ '{} = {2}', 'bool' ], [ '{} BETWEEN {2} AND {2} + 100', 'bool' ] ],
	float => [
		[ '{} + {2}', 'float', '({}) + 0' ], [ 'coalesce({}, {2})', 'float', '({}) + 0' ],
		[ '{} < {2}', 'bool' ], [ '{} = {2}', 'bool' ], [ '{} <> {2}', 'bool' ] ],
	text => [
		[ '{} || {2}', 'text' ], [ 'coalesce({}, {2})', 'text' ], [ 'CASE WHEN {} IS NULL THEN {2} ELSE {} END', 'text' ],
		[ '{} COLLATE "C" < {2} COLLATE "C"', 'bool' ], [ '{} COLLATE "C" = {2} COLLATE "C"', 'bool' ] ],
	bytea => [ [ '{} || {2}', 'bytea' ], [ '{} < {2}', 'bool' ] ],
	bool => [ [ '{} AND {2}', 'bool' ], [ '{} OR {2}', 'bool' ], [ '{} = {2}', 'bool' ], [ 'CASE WHEN {} THEN {2} END', 'bool' ] ],
	date => [ [ '{} < {2}', 'bool' ], [ 'coalesce({}, {2})', 'date' ], [ 'least({}, {2})', 'date' ] ],
	timestamp => [ [ '{} <= {2}', 'bool' ], [ 'coalesce({}, {2})', 'timestamp' ] ],
	timestamptz => [ [ '{} = {2}', 'bool' ], [ 'coalesce({}, {2})', 'timestamptz' ] ],
	uuid => [ [ '{} < {2}', 'bool' ], [ 'coalesce({}, {2})', 'uuid' ] ],
	money => [ [ '{} < {2}', 'bool' ], [ '{} / 4 + {2} / 4', 'money' ] ],
	time => [ [ '{} > {2}', 'bool' ] ],
);

# Of two different classes: [ class, class, text, class of the result, shown ].
my @mixed = (
	[ qw(date timestamp), '{} < {2}', 'bool' ], [ qw(timestamp date), '{} >= {2}', 'bool' ],
	[ qw(numeric int), '{} * ({2} % 1000)', 'numeric', $trim ], [ qw(int numeric), '{} % 1000 + {2}', 'numeric', $trim ],
	[ qw(numeric int), '{} > {2}', 'bool' ], [ qw(text int), "{} || {2}", 'text' ], [ qw(bool int), 'CASE WHEN {} THEN {2} ELSE -1 END', 'int' ],
	[ qw(bool numeric), 'CASE WHEN {} THEN {2} ELSE 0 END', 'numeric', $trim ], [ qw(bool text), "CASE WHEN {} THEN {2} ELSE 'else' END", 'text' ],
	[ qw(date int), "{} + ({2} % 100)::int", 'date' ],
);

sub column
{
	my ($q) = @_;
	my $c = pick(@{ $q->{columns} });

	return { sql => "$c->{from}.$c->{name}", class => $c->{info}{class}, shown => $c->{info}{shown} //
		($c->{info}{class} eq 'float' ? '({}) + 0' : undef),
		nosum => $c->{extremes} && $c->{info}{nosum}, type => $c->{type}, width => $c->{type} eq 'float4' ? 4 : 8 };
}

sub fill_in
{
	my ($text, $sql) = @_;

	return $text =~ s/\{\}/$sql/gr;
}

sub apply
{
	my ($e, @wanted) = @_;
	my @ops = grep { my $class = $_->[1]; !@wanted || grep { $_ eq $class } @wanted } @{ $operators{ $e->{class} } };
	my $op = @ops ? pick(@ops) : undef;

	return if !$op;
	return { sql => '(' . fill_in($op->[0], $e->{sql}) . ')', class => $op->[1], shown => $op->[2], nosum => $e->{nosum},
		width => !defined $op->[3] ? 8 : $op->[3] || $e->{width} };
}

# A column of a class, if there is one.
sub column_of
{
	my ($q, $class) = @_;
	my @c = grep { $_->{info}{class} eq $class } @{ $q->{columns} };

	return @c ? column({ columns => [ pick(@c) ] }) : undef;
}

sub of_two
{
	my ($op, $x, $y) = @_;
	my ($text, $class, $shown) = @$op;
	my $sql = $text =~ s/\{2\}/$y->{sql}/gr;

	$sql =~ s/\{\}/$x->{sql}/g;
	return { sql => "($sql)", class => $class, shown => $shown, nosum => $x->{nosum} || $y->{nosum}, width => 8 };
}

# undef where there are no columns for it.
sub pair
{
	my ($q) = @_;
	my ($x, $y);

	if (chance(0.3))
	{
		my $op = pick(@mixed);

		($x, $y) = (column_of($q, $op->[0]), column_of($q, $op->[1]));
		return $x && $y ? of_two([ @$op[ 2 .. $#$op ] ], $x, $y) : undef;
	}
	$x = column($q);
	return if !$pairs_of{ $x->{class} };
	$y = column_of($q, $x->{class});
	my $e = of_two(pick(@{ $pairs_of{ $x->{class} } }), $x, $y);
	$e->{width} = 4 if $x->{width} == 4 || $y->{width} == 4;
	return $e;
}

sub expression
{
	my ($q, $p_operator) = @_;

	return column($q) if $q->{plain_columns} && chance(0.95);
	my $e = chance(0.15) ? pair($q) // column($q) : column($q);

	while (chance($p_operator))
	{
		$e = apply($e) // $e;
		$p_operator /= 2;
	}
	return $e;
}

sub condition
{
	my ($q) = @_;
	my $e = chance(0.2) ? pair($q) // column($q) : column($q);

	return '(' . condition($q) . pick(' AND ', ' OR ', ' OR ') . condition($q) . ')' if chance(0.15);
	return 'NOT (' . condition($q) . ')' if chance(0.05);
	return "$e->{sql} IS " . pick('', 'NOT ') . 'NULL' if chance(0.12);
	return "$q->{id} % " . between(2, 9) . pick(' = ', ' <> ', ' < ') . between(0, 3) if chance(0.25);
	return pick('true', 'false', 'NULL::bool') if chance(0.02);
	$e = apply($e) // $e if chance(0.2) && $e->{class} ne 'bool';
	$e = apply($e, 'bool') // { sql => "$e->{sql} IS NOT NULL" };
	return $e->{sql};
}

# What a device computes of the output of joins, of columns of all tables.
my @compared = qw(int int int numeric numeric float bool bool date timestamp time money uuid uuid oid);

# Of two of them, which may be long.
sub of_strings
{
	my ($q, $x, $y) = @_;

	return "$x->{sql} " . pick('=', '<>') . ' ' . pick($y->{sql}, "CASE WHEN $q->{id} % 2 = 0 THEN $x->{sql} ELSE $y->{sql} END",
		"coalesce($y->{sql}, 'none')");
}

sub program_condition
{
	my ($q) = @_;
	my $class = pick(@compared);
	my ($x, $y) = (column_of($q, $class), column_of($q, $class));

	return '(' . program_condition($q) . pick(' AND ', ' OR ') . program_condition($q) . ')' if chance(0.25);
	return 'NOT (' . program_condition($q) . ')' if chance(0.07);
	return '(' . program_condition($q) . ') IS ' . pick('', 'NOT ') . pick(qw(TRUE FALSE UNKNOWN)) if chance(0.1);
	return column($q)->{sql} . ' IS ' . pick('', 'NOT ') . 'NULL' if !$x || chance(0.1);
	# computed of one table's rows, and read by what is computed of all
	my ($string, $other) = chance($q->{pages} ? 0.4 : 0.12) ? (column_of($q, 'text'), column_of($q, 'text')) : ();
	return of_strings($q, $string, $other) if $string && chance(0.4);
	return "$string->{sql} " . pick("= 'x1'", "<> ''", "IN ('x1', 'x2', NULL)", "IN ('', 'x3')", 'IS NULL') if $string;
	return "$x->{sql} % 10 IN (1, 3, " . pick('NULL', '5', '7, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25') . ')' if $class eq 'int' && chance(0.15);
	return "($y->{sql} <> 0 AND $x->{sql} % 1000 / $y->{sql} >= 0)" if $class eq 'int' && chance(0.15);
	return "$x->{sql} " . pick(qw(= <> < <= > >=)) . " $y->{sql}";
}

# The same of what a match of a join is, which may be an error for some pairs of rows.  What is of
# one table alone is no part of the join.
sub match_condition
{
	my ($q) = @_;
	my $class = pick(qw(int int int numeric date));
	my ($x, $y) = (column_of($q, $class), column_of($q, $class eq 'date' ? 'timestamp' : $class));

	return program_condition($q) if !$x || !$y || chance(0.5);
	return "$x->{sql} " . pick(qw(< >=)) . " $y->{sql}" if $class eq 'date';
	return program_condition($q) if ($x->{sql} =~ /^(\w+)/)[0] eq ($y->{sql} =~ /^(\w+)/)[0];
	$q->{errs} = 1;
	return "$x->{sql} " . pick('+', '-', '*') . " $y->{sql} > " . between(-9, 9) if $class eq 'numeric';
	return pick("$x->{sql} " . pick('+', '-', '*') . " $y->{sql} > " . between(-9, 9), "$x->{sql} % 1000 " . pick('+', '-', '*') . " ($y->{sql} % 1000) > " . between(-99, 99),
		"$x->{sql} / $y->{sql} < " . between(0, 9), "$x->{sql} % ($y->{sql} % 8 + " . between(1, 9) . ') < 2', "($y->{sql} = 0 OR $x->{sql} % 1000 / $y->{sql} >= 0)",
		"$x->{sql} % 1000 / ($y->{sql} % 100 - 100) < 0");
}

sub program_value
{
	my ($q) = @_;
	my $class = pick(qw(int int numeric));
	my ($x, $y) = (column_of($q, $class), column_of($q, $class));

	return "$q->{id} % 10" if !$x;
	return "coalesce($x->{sql}, $y->{sql})" if chance(0.2);
	return "CASE WHEN $y->{sql} <> 0 THEN $x->{sql} % 1000 / $y->{sql} END" if $class eq 'int' && chance(0.2);
	return 'CASE WHEN ' . program_condition($q) . " THEN $x->{sql} " . (chance(0.5) ? 'WHEN ' . program_condition($q) . " THEN $y->{sql} " : '') .
		pick('END', "ELSE $y->{sql} END", "ELSE $x->{sql} END");
}

sub program_key
{
	my ($q) = @_;

	my ($x, $y) = (column_of($q, 'uuid'), column_of($q, 'uuid'));
	my ($s1, $s2) = (column_of($q, 'text'), column_of($q, 'text'));

	return { sql => '(' . of_strings($q, $s1, $s2) . ')', class => 'bool' } if $q->{pages} && $s1 && chance(0.4);
	return { sql => "coalesce($x->{sql}, $y->{sql})", class => 'uuid' } if $x && chance(0.3);
	return { sql => '(' . program_condition($q) . ')', class => 'bool' } if chance(0.5);
	return { sql => 'CASE WHEN ' . program_condition($q) . ' THEN 1 WHEN ' . program_condition($q) . " THEN $q->{id} % 5 END", class => 'int' };
}

# ---------- aggregates ----------

my @spread = qw(stddev stddev_samp stddev_pop variance var_samp var_pop);
my %aggregates = (
	int => [ (qw(sum sum sum avg avg min min max max)) x 2, qw(bit_and bit_or bit_xor), pick_one(@spread) ],
	numeric => [ qw(sum sum sum avg avg min max), pick_one(@spread) ],
	float => [ qw(sum sum avg min max), pick_one(@spread) ],
	text => [qw(min max)], citext => [qw(min max)], bpchar => [qw(min max)],
	bool => [qw(bool_and bool_or every)],
	date => [qw(min max)], timestamp => [qw(min max)], timestamptz => [qw(min max)],
	time => [qw(min max)], timetz => [qw(min max)],
	interval => [qw(sum avg min max)], money => [qw(sum min max)],
	enum => [qw(min max)], oid => [qw(min max)], inet => [qw(min max)], lsn => [qw(min max)], array => [qw(min max)],
);
my @pairs = qw(corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy);

# A name that stands for one of many, chosen when it is used.
sub pick_one { return [@_]; }

sub aggregate
{
	my ($q) = @_;
	my ($name, $e, $compare, $sql);

	return aggregate_of_pairs($q) if $q->{pairs} && chance(0.9);
	my $filter = chance(0.2) ? ' FILTER (WHERE ' . condition($q) . ')' : '';
	my $distinct = chance($q->{p_distinct} // 0.1) ? 'DISTINCT ' : '';

	return { sql => "count(*)$filter", class => 'int', compare => 'exact' } if chance(0.15);
	$e = expression($q, 0.25);
	return { sql => "count($distinct$e->{sql})$filter", class => 'int', compare => 'exact' }
	  if chance(0.15) || !$aggregates{ $e->{class} };
	# those that nobody but core has
	if (chance(0.03) && !$e->{shown})
	{
		my ($text, $class) = @{ pick([ "string_agg({}::text, ',' ORDER BY {}::text)", 'text' ],
			[ 'array_agg({} ORDER BY {})', 'none' ], [ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY {})', $e->{class} ],
			[ 'max({}::text COLLATE "C")', 'text' ], [ 'count(DISTINCT {}::text)', 'int' ]) };
		return { sql => fill_in($text, $e->{sql}) . $filter, class => $class, compare => 'exact' };
	}
	# where an integer is the likeliest to be supported
	$e = column_of($q, 'int') // $e if $distinct && chance(0.5);
	if ($e->{class} =~ /^(float|int)$/ && ($e->{type} // '') ne 'wide' && chance(0.04))
	{
		# int8's extremes cancel out, and what core has left then is its rounding
		my $small = $e->{class} eq 'float' || ($e->{type} // '') =~ /^(int2|int4|small|d_int)$/;
		my @args = ($small ? "($e->{sql})::float8" : "(($e->{sql}) % 1000003)::float8", "($q->{id} % 16)::float8");

		$name = pick(@pairs);
		# of what can be NULL, too
		$args[1] = "nullif($q->{id} % 16, 3)::float8" if chance(0.4);
		@args = reverse @args if chance(0.5);
		return { sql => "$name(" . join(', ', @args) . ")$filter", class => 'float', compare => 'float8' };
	}
	$name = pick(@{ $aggregates{ $e->{class} } });
	$name = pick(@$name) if ref $name;
	$name = 'max' if $name eq 'sum' && $e->{nosum};
	$compare = $e->{class} ne 'float' || $name =~ /^(min|max)$/ ? 'exact' :
	  $name =~ /^(stddev|var)/ ? 'spread' :
	  $name eq 'sum' && $e->{width} == 4 ? 'float4' : 'float8';
	$distinct = '' if $compare ne 'exact' && $name !~ /sum|avg/;
	# by other collations it is refused
	$e->{sql} = "($e->{sql}) COLLATE \"C\"" if $e->{class} =~ /^(text|bpchar)$/ && chance(0.8);
	$sql = "$name($distinct$e->{sql})$filter";
	# a DISTINCT above may keep any one of equal intervals
	$sql = fill_in($e->{shown}, $sql) if $e->{shown} && ($name =~ /^(min|max)$/ || $e->{class} eq 'interval' || $distinct && $e->{class} eq 'numeric');
	return { sql => $sql, class => $e->{class}, compare => $compare, nosum => $e->{nosum} };
}

# The same of what a device computes of the output of joins.
sub program_aggregate
{
	my ($q) = @_;
	my $filter = chance(0.5) ? ' FILTER (WHERE ' . program_condition($q) . ')' : '';
	my $sql = pick(qw(count sum sum avg bool_and bool_or));

	return { sql => "count(*) FILTER (WHERE " . program_condition($q) . ')', compare => 'exact' } if chance(0.3);
	$sql .= '(' . ($sql =~ /bool/ ? program_condition($q) : program_value($q)) . ')';
	return { sql => $sql . $filter, compare => 'exact' };
}

# A condition on groups; none on floats, which may differ in the last digit.
sub having
{
	my ($q) = @_;
	my $a;

	return 'count(*) ' . pick('> 1', '% 2 = 1', '< 10', '>= 0') if chance(0.4);
	return pick('true', 'false') if chance(0.03);
	do { $a = aggregate($q) } while $a->{compare} ne 'exact';
	return "$a->{sql} IS " . pick('', 'NOT ') . 'NULL' if chance(0.25);
	$a = apply($a, 'bool') // { sql => "$a->{sql} IS NOT NULL" };
	return $a->{sql};
}

# ---------- queries ----------

sub columns_of
{
	my ($table, $alias) = @_;

	return map { { %$_, from => $alias } } @{ $table->{columns} };
}

# FROM and what can be used of it.
sub from
{
	my ($q, $t, $u) = @_;
	my $r = rand();
	my @t = columns_of($t, 't');
	my $inner = { columns => \@t, id => 't.id' };

	$q->{columns} = \@t;
	$q->{id} = 't.id';
	$q->{from} = 't';
	$q->{no_u} = $u->{n_rows} == 0;
	$q->{with} = '';
	return if chance(0.12) && protected_or_written($q, $inner, $t);
	return if chance(0.06) && many_pairs($q, $t, $u);
	if ($r < 0.10)
	{
		my $on = pick('t.j = u.j', 't.j = u.id', 't.id = u.id', 't.j = u.j AND t.id < u.id', 't.id % 40 = u.id');

		$q->{from} = 't ' . pick('JOIN', 'JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN') . " u ON $on";
		$q->{from} =~ s/FULL/LEFT/ if $on =~ /%/;
		push @{ $q->{columns} }, columns_of($u, 'u');
	}
	elsif ($r < 0.15)
	{
		push @{ $q->{where} }, pick('EXISTS (SELECT FROM u WHERE u.j = t.j)', 't.j NOT IN (SELECT u.id FROM u)',
			't.j = (SELECT min(j) FROM u)');
	}
	elsif ($r < 0.20)
	{
		$q->{from} = '(SELECT * FROM t WHERE ' . condition($inner) . ' ' . pick('', 'OFFSET 0', 'ORDER BY id') . ') t';
	}
	elsif ($r < 0.24)
	{
		$q->{with} = 'WITH w AS ' . pick('', 'MATERIALIZED ', 'NOT MATERIALIZED ') . '(SELECT * FROM t WHERE ' . condition($inner) . ') ';
		$q->{from} = 'w t';
	}
	elsif ($r < 0.30)
	{
		$q->{from} = '(SELECT * FROM t WHERE ' . condition($inner) . ' UNION ALL SELECT * FROM t' . pick('', ' WHERE ' . condition($inner)) . ') t';
	}
	elsif ($r < 0.33)
	{
		$q->{from} = 't, ' . pick('generate_series(1, 2) s', 'LATERAL (SELECT t.id % 3 AS x) s', '(VALUES (1), (2)) s(x)');
	}
	elsif ($r < 0.35)
	{
		$q->{from} = 't TABLESAMPLE ' . pick('BERNOULLI', 'SYSTEM') . ' (' . pick(0.5, 10, 50, 50, 99.5, 100) . ') REPEATABLE (' . between(1, 9) . ')';
	}
	elsif ($r < 0.38)
	{
		$q->{from} = '(SELECT j, id % 10 AS id, count(*) AS n, max(id) AS m FROM t GROUP BY 1, 2) t';
		$q->{columns} = [ map { { name => $_, from => 't', type => 'int8', info => $TYPES{int8} } } qw(j id n m) ];
	}
	elsif ($r < 0.40)
	{
		$q->{from} = '(SELECT DISTINCT ON (j) * FROM t ORDER BY j, id) t';
	}
	elsif ($r < 0.43)
	{
		# a side that is a grouping of its own
		$q->{from} = 't ' . pick('JOIN', 'JOIN', 'LEFT JOIN') . ' (SELECT j, count(*) AS n, max(id) AS m FROM u GROUP BY j) u ON u.j = ' . pick('t.j', 't.id');
		push @{ $q->{columns} }, map { { name => $_, from => 'u', type => 'int8', info => $TYPES{int8} } } qw(j n m);
	}
	return;
}

# Two tables that have many rows for each value of j, so that one of them may be grouped
# before they are joined.
sub many_pairs
{
	my ($q, $t, $u) = @_;
	my @u = columns_of($u, 'u');

	$q->{kind} = pick('group', 'group', 'plain');
	$q->{from} = pick('t JOIN u ON t.j = u.j', 't, u', 't JOIN u USING (j)');
	push @{ $q->{where} }, 't.j = u.j' if $q->{from} eq 't, u';
	# a third one, so that one of them may be grouped, and another may not
	$q->{from} .= pick(' JOIN u more ON more.j = u.j', ', t more') if $q->{from} !~ /USING/ && chance(0.3);
	push @{ $q->{where} }, pick('more.j = t.j AND more.id < 20', 'more.id = 3', 'more.id < 3', 'more.id < 0') if $q->{from} =~ /, t more/;
	push @{ $q->{where} }, 'more.id < 20' if $q->{from} =~ /u more/;
	push @{ $q->{where} }, pick('u.id % 3 <> 1', 't.j IN (1, 2, 3)', 'u.j < 4') if chance(0.4);
	push @{ $q->{where} }, pick('t.j < u.j + 5', 't.j <> 3', 't.id > 10') if chance(0.3);
	# one side is grouped, or the other
	$q->{pairs} = chance(0.5) ? [ $q->{columns}, \@u ] : [ \@u, $q->{columns} ];
	push @{ $q->{settings} }, [ 'gpurhh.row_cost' => 0.005 ];
	return 1;
}

# What can be computed without looking at each pair, and now and then what cannot.
sub aggregate_of_pairs
{
	my ($q) = @_;
	my ($outer, $inner) = map { { columns => $_, id => $_->[0]{from} . '.id' } } @{ $q->{pairs} };
	my ($x, $y) = map { column_of($_, pick('int', 'int', 'numeric')) // column($_) } $outer, $inner;
	my $filter = chance(0.2) ? ' FILTER (WHERE ' . condition($outer) . ')' : '';
	my $e = pick($x, $y);
	my $name;

	return { sql => "count(*)$filter", class => 'int', compare => 'exact' } if chance(0.2);
	return { sql => "count($e->{sql})$filter", class => 'int', compare => 'exact' } if chance(0.15);
	return { sql => "sum($x->{sql} * $y->{sql})$filter", class => 'numeric', compare => 'exact' }
	  if chance(0.3) && "$x->{class} $y->{class}" =~ /^(int|numeric) (int|numeric)$/;
	$name = $e->{class} =~ /^(int|numeric)$/ && !$e->{nosum} ? pick(qw(sum sum avg min max)) : pick(qw(min max));
	return { sql => "count($e->{sql})$filter", class => 'int', compare => 'exact' } if $e->{class} !~ /^(int|numeric|date)$/;
	return { sql => "$name($e->{sql})$filter", class => $e->{class}, compare => 'exact', nosum => 1 };
}

sub settings
{
	my ($t, $version) = @_;
	my $large = $t->{n_rows} > 10000;
	my @s;

	if (chance(0.3))
	{
		push @s, [ max_parallel_workers_per_gather => pick(1, 2, 2, 4) ], [ parallel_setup_cost => 0 ],
		  [ parallel_tuple_cost => pick(0, 0, 0.1) ], [ min_parallel_table_scan_size => 0 ];
		push @s, [ parallel_leader_participation => 'off' ] if chance(0.15);
	}
	else
	{
		push @s, [ max_parallel_workers_per_gather => 0 ];
	}
	push @s, [ $version >= 160000 ? 'debug_parallel_query' : 'force_parallel_mode', pick('on', 'regress') ] if chance(0.02);
	push @s, [ work_mem => pick('64kB', '64kB', '256kB', '64MB') ] if chance($large ? 0.6 : 0.35);
	push @s, [ hash_mem_multiplier => 1 ] if chance(0.1);
	push @s, [ 'enable_' . pick(qw(hashjoin mergejoin nestloop hashagg sort material memoize seqscan indexscan
		incremental_sort parallel_hash parallel_append tidscan)), 'off' ] if chance(0.15);
	push @s, [ enable_partitionwise_aggregate => 'on' ] if chance(0.2);
	push @s, [ enable_partitionwise_join => 'on' ] if chance(0.1);
	push @s, [ 'gpurhh.enable_hashjoin' => 'off' ] if chance(0.1);
	push @s, [ 'gpurhh.read_pages' => 'on' ] if chance(0.5);
	# a table has to be large for a device to refuse any of it
	if (chance($large ? 0.8 : 0.45))
	{
		push @s, [ 'gpurhh.batch_rows' => pick(64, 100, 100, 1000, 5000) ] if chance(0.5);
		push @s, [ 'gpurhh.max_probe_buckets' => pick(1, 1, 2, 20) ] if chance(0.4);
		push @s, [ 'gpurhh.load_factor' => pick('0.5', '0.95') ] if chance(0.3);
		push @s, [ 'gpurhh.device_memory' => pick('1MB', '2MB') ] if chance($large ? 0.7 : 0.3);
	}
	return \@s;
}

# What may be above a grouping; {} is it, {COLUMN} a column of it.
my @above = (
	'SELECT count(*) AS n, count({COLUMN}) AS m FROM ({}) s',
	'SELECT {COLUMN}::text, count(*) FROM ({}) s GROUP BY 1',
	'SELECT count(*) AS n, count({COLUMN}) AS m FROM ({}) s GROUP BY {COLUMN}',
	'SELECT s.*, count(*) OVER () FROM ({}) s',
	'SELECT s.*, u.id FROM ({}) s JOIN u ON u.id::text = s.{COLUMN}::text',
	'SELECT s.*, u.id FROM u LEFT JOIN ({}) s ON u.id::text = s.{COLUMN}::text',
	'SELECT * FROM ({}) s WHERE {COLUMN} IS NOT NULL',
	'SELECT DISTINCT {COLUMN}::text FROM ({}) s',
	'SELECT {COLUMN}::text FROM ({}) s UNION SELECT id::text FROM u',
	'SELECT {COLUMN}::text FROM ({}) s EXCEPT SELECT id::text FROM u',
	'SELECT id FROM u WHERE id::text IN (SELECT {COLUMN}::text FROM ({}) s)',
	'SELECT id, (SELECT max({COLUMN}::text) FROM ({}) s) FROM u',
	'WITH s AS MATERIALIZED ({}) SELECT * FROM s UNION ALL SELECT * FROM s',
	'SELECT * FROM ({}) s UNION ALL SELECT * FROM ({}) s2',
);

# And of a column that is an int8, which a device may make further groups of
# without the session (src/exec/chain.c).
my @above_counts = (
	'SELECT count(*), sum({COLUMN}), avg({COLUMN}), min({COLUMN}), max({COLUMN}) FROM ({}) s',
	'SELECT {COLUMN}, count(*), sum({COLUMN}), bit_xor({COLUMN}) FROM ({}) s GROUP BY {COLUMN}',
	'SELECT DISTINCT {COLUMN} FROM ({}) s',
	'SELECT n, count(*), sum({COLUMN}) FROM (SELECT {COLUMN}, count(*) AS n FROM ({}) s GROUP BY {COLUMN}) r GROUP BY n',
	'SELECT {COLUMN}, count(*) FROM ({}) s GROUP BY {COLUMN} HAVING count(*) > 1',
	'SELECT bool_or(x), bool_and(y), count(y), max({COLUMN}) FROM (SELECT s.*, true AS x, false AS y FROM ({}) s) s',
	'SELECT x, y, {COLUMN}, count(*) FROM (SELECT s.*, false AS x, true AS y FROM ({}) s) s GROUP BY x, y, {COLUMN}',
	# of which a program computes something
	'SELECT count(*), sum({COLUMN} + 1), min(-{COLUMN}), max({COLUMN} * {COLUMN}) FROM ({}) s WHERE {COLUMN} % 3 <> 1',
	'SELECT {COLUMN} / 5 AS a, {COLUMN} % 2 = 0 AS b, count(*) FILTER (WHERE {COLUMN} > 2), sum(CASE WHEN {COLUMN} <> 2 THEN 100 / ({COLUMN} - 2) END) FROM ({}) s GROUP BY 1, 2',
	'SELECT {COLUMN} > 4 AS a, count(*), sum(n * 2) FROM (SELECT {COLUMN}, count(*) + 1 AS n FROM ({}) s GROUP BY {COLUMN} HAVING count(*) < 5 OR {COLUMN} = 0) r WHERE n + {COLUMN} <> 7 GROUP BY 1',
	'SELECT max(100 / {COLUMN}), count(*) FROM ({}) s',
);

sub sets
{
	my ($n) = @_;
	my @all = map { "{$_}" } 0 .. $n - 1;
	my $r = rand();

	return [ 'ROLLUP (' . join(', ', @all) . ')' ] if $r < 0.3;
	return [ 'CUBE (' . join(', ', @all[ 0 .. ($n > 4 ? 3 : $n - 1) ]) . ')', @all[ 4 .. $n - 1 ] ] if $r < 0.5;
	return [ 'GROUPING SETS (' . join(', ', map { "($_)" } @all) . ', ())' ] if $r < 0.7;
	return [ 'ROLLUP (' . join(', ', @all[ 1 .. $n - 1 ]) . ')', $all[0] ] if $r < 0.85 && $n > 1;
	return [ 'GROUPING SETS ((' . join(', ', @all) . "), ($all[-1]), ($all[0]))" ];
}

# One query over the tables t and u.
sub random_query
{
	my ($t, $u, $version) = @_;
	my $q = { where => [], having => [], keys => [], outputs => [], settings => settings($t, $version), mode => 'plain' };
	my $r = rand();
	my $n_keys = pick(1, 1, 1, 2, 2, 3, chance(0.2) ? between(4, 9) : 2);
	my $n_aggregates = pick(0, 1, 1, 1, 2, 3, chance(0.2) ? between(5, 12) : 2);

	$q->{kind} = $r < 0.7 ? 'group' : $r < 0.78 ? 'sets' : $r < 0.86 ? 'distinct' : $r < 0.95 ? 'plain' : 'union';
	# what a device does with pages that it reads by itself
	my $pages = $t->{kind} =~ /plain|unlogged/ && chance(0.25);
	if ($pages)
	{
		@$q{qw(columns id from with plain_columns pages)} = ([ columns_of($t, 't') ], 't.id', 't', '', 1, 1);
		push @{ $q->{settings} }, [ 'gpurhh.read_pages' => 'on' ];
		$n_aggregates = pick(0, 0, 1) if $q->{kind} ne 'plain';
	}
	else
	{
		from($q, $t, $u);
	}
	if ($q->{from} eq 't' && !$q->{with} && chance(0.2))
	{
		join_tables($q, \&match_condition, t => $t, u => $u);
		# the joined rows themselves
		if (chance(0.3))
		{
			$q->{kind} = 'rows';
			$n_keys += 2;
		}
	}
	elsif ($q->{from} eq 't' && !$pages && chance(0.3))
	{
		$q->{icu} = grep { $_->{info}{icu} } @{ $q->{columns} };
		derive($q, \&expression);
		$q->{kind} = 'sets' if $q->{kind} ne 'plain' && chance(0.4);
		$n_keys++ if $n_keys == 1;
	}
	push @{ $q->{where} }, condition($q) foreach 1 .. ($pages ? pick(0, 0, 0, 0, 0, 1) : pick(0, 0, 0, 1, 1, 2));
	push @{ $q->{where} }, program_condition($q) if $q->{joins} ? chance(0.3) : $pages && chance(0.8);

	# several of them, with filters or sets
	$q->{p_distinct} = chance(0.15) ? 0.7 : 0.07;
	$n_aggregates ||= 2 if $q->{p_distinct} > 0.5;
	$n_keys = 0 if $q->{kind} eq 'plain';
	$n_keys ||= 1 if $q->{kind} ne 'plain';
	foreach (1 .. $n_keys)
	{
		push @{ $q->{keys} }, ($q->{joins} || $pages) && chance(0.2) ? program_key($q) :
		  $q->{pairs} && chance(0.7) ? { sql => pick('t.j', 'u.j', 't.id % 5', 't.id'), class => 'int' } :
		  derived_key($q) // expression($q, 0.3);
	}
	# many groups, or no table is full
	push @{ $q->{keys} }, { sql => pick($q->{id}, "$q->{id} / 2"), class => 'int' } if $n_keys && $t->{n_rows} > 10000 && chance(0.4);
	my $determined = $q->{kind} eq 'group' && $q->{from} eq 't' && $t->{key} && chance(0.5);
	push @{ $q->{keys} }, { sql => 't.id', class => 'int' } if $determined;

	$q->{order} = $q->{kind} =~ /group|distinct/ && chance(0.12);
	foreach my $i (0 .. $#{ $q->{keys} })
	{
		my $key = $q->{keys}[$i];

		next if !$q->{order} && $q->{kind} =~ /group|sets/ && chance(0.15);
		push @{ $q->{outputs} },
		  { sql => fill_in($key->{shown} // '{}', $key->{sql}), compare => 'exact', key => $i };
	}
	if ($determined)
	{
		push @{ $q->{outputs} }, map { { sql => "t.$_->{name}" . ($_->{info}{class} eq 'float' ? ' + 0' : ''), compare => 'exact', needs_key => $#{ $q->{keys} } } }
		  grep { chance(0.3) } @{ $t->{columns} };
	}
	determined_sets($q) if $determined && !$q->{order} && chance(0.4);
	if ($q->{kind} eq 'sets' && !$q->{sets})
	{
		$q->{sets} = sets(scalar @{ $q->{keys} });
		push @{ $q->{outputs} }, { sql => 'grouping(' . pick(@{ $q->{keys} })->{sql} . ')', compare => 'exact' } if chance(0.4);
	}
	if ($q->{kind} =~ /group|sets|plain/)
	{
		push @{ $q->{outputs} }, aggregate($q) foreach 1 .. $n_aggregates;
		push @{ $q->{outputs} }, map { program_aggregate($q) } 1 .. pick(1, 2) if $q->{joins} ? chance(0.5) : $pages && chance(0.7);
		push @{ $q->{outputs} }, { sql => 'count(*)', compare => 'exact' } if !@{ $q->{outputs} };
		while (chance(0.15)) { push @{ $q->{having} }, having($q); }
	}
	above_sets($q) if $q->{kind} eq 'sets' && !$determined && chance(0.35);
	$q->{limit} = pick(1, 3, 10, 100) if $q->{order} && chance(0.6);
	if (!$q->{order} && chance($pages ? 0.05 : 0.2))
	{
		my @exact = grep { $q->{outputs}[$_]{compare} eq 'exact' } 0 .. $#{ $q->{outputs} };

		$q->{above} = pick(@above);
		if (@exact)
		{
			my $column = pick(@exact);

			$q->{above_column} = 'o' . ($column + 1);
			$q->{above} = pick(@above_counts) if $q->{outputs}[$column]{sql} =~ /^count\(/ && chance(0.7);
		}
		else
		{
			$q->{above} = 'SELECT s.*, count(*) OVER () FROM ({}) s';
		}
	}
	$r = rand();
	# outer values as arguments, too
	push @{ $q->{outputs} }, { sql => "sum($q->{id} % 100 + coalesce({OUTER}, 0))", compare => 'exact' }
	  if $r >= 0.77 && $q->{kind} =~ /group|plain/ && chance(0.4);
	$q->{mode} = $r < 0.7 ? 'plain' : $r < 0.77 ? 'cursor' : $r < 0.86 ? 'prepare' : $r < 0.91 ? 'ctas' : $t->{n_rows} > 10000 ? 'plain' : 'lateral';
	push @{ $q->{settings} }, [ plan_cache_mode => pick('force_generic_plan', 'force_custom_plan') ] if $q->{mode} eq 'prepare';
	$q->{mode} = pick(qw(plain plain prepare)) if $pages && $q->{mode} eq 'lateral';
	surroundings($q, $t);
	return $q;
}

# ---------- who asks, and what was done before in the transaction ----------

# Rows that are the table's with other numbers.
sub insert_more
{
	my ($t, $where) = @_;
	my @names = map { $_->{name} } @{ $t->{columns} };
	my $first = between(5, 9) . '000000';

	return "INSERT INTO t (" . join(', ', @names) . ') SELECT ' . join(', ', map { $_ eq 'id' ? "id + $first" : $_ } @names)
	  . " FROM t WHERE $where";
}

# FROM what a view protects, or what the query itself writes.
sub protected_or_written
{
	my ($q, $inner, $t) = @_;
	my $where = condition($inner);

	if (chance(0.4))
	{
		$q->{from} = 't_' . pick('barrier', 'invoker') . ' t';
		return 1;
	}
	my $delete = "DELETE FROM t WHERE $where";
	my $update = 'UPDATE t SET j = ' . pick('j + 1', '3', 'NULL') . " WHERE $where";
	$q->{with} = 'WITH m AS (' . pick($delete, $update, insert_more($t, "id < 1000000 AND $where")) . ' RETURNING ';
	$q->{writes} = 1;
	if (chance(0.3))
	{
		# it reads what was there before
		$q->{with} .= 't.id) ';
		push @{ $q->{where} }, 'EXISTS (SELECT FROM m WHERE m.id = t.id)' if chance(0.3);
		return 1;
	}
	$q->{with} .= '*) ';
	$q->{from} = 'm t';
	return 1;
}

# One change of the table's rows that no other transaction sees.
sub change
{
	my ($t) = @_;

	return pick(
		'DELETE FROM t WHERE id % ' . between(2, 9) . ' = 1',
		'UPDATE t SET j = (j + 1) % 30 WHERE id % ' . between(1, 5) . ' = 0',
		# to other partitions, perhaps
		'UPDATE t SET id = id + 20000000 WHERE id % 5 = 2',
		insert_more($t, 'id < 1000000 AND id % ' . between(2, 9) . ' = 0'));
}

# Several of them, also in subtransactions that are rolled back or not.
sub changes
{
	my ($t) = @_;
	my @all;

	foreach my $i (1 .. between(1, 4))
	{
		my $one = change($t);

		$one = 'TRUNCATE t' if chance(0.08);
		if (chance(0.5)) { push @all, $one; }
		else { push @all, "SAVEPOINT s$i", $one, (chance(0.3) ? change($t) : ()), pick('ROLLBACK TO s', 'ROLLBACK TO s', 'RELEASE s') . $i; }
	}
	# several in a transaction must not insert the same
	my $n = 0;
	s/id \+ \d000000\b/"id + " . (30000000 + 10000000 * $n++)/e foreach grep { /^INSERT/ } @all;
	$n = 0;
	s/id \+ 20000000/"id + " . (200000000 + 100000000 * $n++)/e foreach @all;
	return \@all;
}

# What is fetched of a cursor.  Where rows come in any order, all have to come, as
# which are the first is open.
sub cursor
{
	my ($q, $t) = @_;
	my $ordered = $q->{order} && !$q->{above};
	my $c = { options => '', steps => [] };
	my $n = pick(1, 1, 2, 3, 7, 100, 300, 2000);
	my @steps;

	if (chance(0.4))
	{
		$c->{options} = 'SCROLL ';
		@steps = $ordered
		  ? map { pick("FETCH FORWARD $n FROM", 'FETCH PRIOR FROM', 'FETCH NEXT FROM', 'FETCH LAST FROM', 'FETCH FIRST FROM', "FETCH BACKWARD $n FROM",
				"FETCH ABSOLUTE $n FROM", 'FETCH RELATIVE -2 FROM', "MOVE $n FROM", 'MOVE BACKWARD ALL FROM', 'MOVE LAST FROM', 'FETCH ALL FROM') } 1 .. between(1, 8)
		  : ("MOVE $n FROM", 'MOVE ABSOLUTE 0 FROM', 'FETCH ALL FROM', pick('MOVE BACKWARD ALL FROM', 'MOVE FIRST FROM', 'FETCH BACKWARD ALL FROM'));
	}
	else
	{
		@steps = map { pick("FETCH $n FROM", 'FETCH NEXT FROM', $ordered ? ("MOVE $n FROM", 'MOVE NEXT FROM') : ()) } 1 .. between(1, 4);
		push @steps, 'FETCH ALL FROM' if !$ordered || chance(0.7);
	}
	$c->{steps} = [ map { "$_ c" } @steps ];
	if (chance(0.2)) { $c->{hold} = between(0, scalar @steps); }
	# it does not see what comes after it was declared
	elsif (chance(0.3) && $q->{from} !~ /TABLESAMPLE/)
	{
		splice @{ $c->{steps} }, between(0, $#steps), 0, change($t);
		$q->{writes} = 1;
	}
	return $c;
}

sub surroundings
{
	my ($q, $t) = @_;

	if ($q->{with} =~ /RETURNING/)
	{
		# such are for the top alone, and for no cursor
		$q->{mode} = 'plain' if $q->{mode} ne 'prepare' || $q->{with} =~ /INSERT/;
		delete $q->{above};
	}
	$q->{cursor} = cursor($q, $t) if $q->{mode} eq 'cursor';
	# a sample depends on where rows are, and changes that were rolled back take room
	$q->{changes} = changes($t) if chance(0.1) && $q->{from} !~ /TABLESAMPLE/ && !defined(($q->{cursor} // {})->{hold});
	$q->{role} = pick('early', 'early', 'late') if chance(0.1) && !$q->{writes};
	return;
}

# As the role, within a transaction that is rolled back.
sub surround
{
	my ($q, $r) = @_;
	my $role = $q->{role} ? "SET ROLE $ROLE" : undef;

	# what was prepared by another is planned anew
	if ($role && $q->{role} eq 'early') { unshift @{ $r->{before} }, $role; }
	elsif ($role) { push @{ $r->{before} }, $role; }
	push @{ $r->{after} }, 'RESET ROLE' if $role;
	if ($q->{changes} || $q->{writes})
	{
		unshift @{ $r->{before} }, 'BEGIN', @{ $q->{changes} // [] };
		@{ $r->{run} } = grep { $_ ne 'BEGIN' } @{ $r->{run} };
		@{ $r->{after} } = ('ROLLBACK', grep { $_ ne 'ROLLBACK' } @{ $r->{after} });
	}
	return;
}

sub render_cursor
{
	my ($q, $r, $text) = @_;
	my $c = $q->{cursor};
	my $hold = defined $c->{hold};
	my @steps = @{ $c->{steps} };

	$r->{explain} = "EXPLAIN (OPTIONS) DECLARE c $c->{options}CURSOR FOR $text";
	splice @steps, $c->{hold}, 0, 'COMMIT' if $hold;
	$r->{run} = [ 'BEGIN', "DECLARE c $c->{options}CURSOR " . ($hold ? 'WITH HOLD ' : '') . "FOR $text", @steps, 'CLOSE c' ];
	$r->{after} = ['ROLLBACK'];
	return;
}

# The query's text, without what mode adds.
sub select_text
{
	my ($q, @more_where) = @_;
	my @names = map { "o$_" } 1 .. @{ $q->{outputs} };
	my $outer = $q->{mode} eq 'prepare' ? '$1' : $q->{mode} eq 'lateral' ? 'v.x' : '5';
	my $list = join ', ', map { "$q->{outputs}[$_]{sql} AS $names[$_]" } 0 .. $#names;
	my @where = (@{ $q->{where} }, @more_where);
	my $where = join ' AND ', map { "($_)" } @where;
	my $sql = 'SELECT ' . ($q->{kind} =~ /distinct/ || $q->{distinct} ? 'DISTINCT ' : '') . "$list FROM " . join(' ', $q->{from}, @{ $q->{joins} // [] });

	$sql .= " WHERE $where" if $where ne '';
	if ($q->{kind} eq 'group')
	{
		$sql .= ' GROUP BY ' . join ', ', map { $_->{sql} } @{ $q->{keys} };
	}
	elsif ($q->{kind} eq 'sets')
	{
		$sql .= ' GROUP BY ' . join ', ', @{ $q->{sets} };
		$sql =~ s/\{(\d+)\}/$q->{keys}[$1]{sql}/g;
	}
	$sql .= ' HAVING ' . join ' AND ', map { "($_)" } @{ $q->{having} } if @{ $q->{having} };
	$sql = "$sql UNION $sql" if $q->{kind} eq 'union';
	if ($q->{order})
	{
		$sql .= ' ORDER BY ' . join ', ', map { $names[$_] } grep { defined $q->{outputs}[$_]{key} } 0 .. $#names;
		$sql .= " LIMIT $q->{limit}" if $q->{limit};
	}
	$sql = "$q->{with}$sql";
	$sql =~ s/\{OUTER\}/$outer/g;
	if ($q->{above})
	{
		my $column = $q->{above_column} // 'o1';
		my $inner = $sql;

		$sql = $q->{above} =~ s/\{COLUMN\}/$column/gr;
		$sql =~ s/\{\}/$inner/g;
	}
	return $sql;
}

# { before, explain, run, after }: lists of statements; explain is one, without
# its options; compare: how each column
# is; ordered: so are the rows.
sub render
{
	my ($q) = @_;
	my $text = $q->{mode} =~ /prepare|lateral/ ? undef : select_text($q);
	my @compare = map { $_->{compare} } @{ $q->{outputs} };
	my $r = { before => [], after => [], ordered => $q->{order} && !$q->{above} };

	if ($q->{mode} eq 'plain')
	{
		@$r{qw(explain run)} = ("EXPLAIN (OPTIONS) $text", [$text]);
	}
	elsif ($q->{mode} eq 'cursor')
	{
		render_cursor($q, $r, $text);
	}
	elsif ($q->{mode} eq 'prepare')
	{
		$text = select_text($q, "$q->{id} % 10 < \$1");
		$r->{before} = ["PREPARE p(int) AS $text"];
		$r->{explain} = 'EXPLAIN (OPTIONS) EXECUTE p(7)';
		$r->{run} = [ map { "EXECUTE p($_)" } 7, 0, 'NULL', 3 ];
		$r->{after} = ['DEALLOCATE ALL'];
	}
	elsif ($q->{mode} eq 'ctas')
	{
		$r->{explain} = "EXPLAIN (OPTIONS) CREATE TEMP TABLE made AS $text";
		$r->{run} = [ "CREATE TEMP TABLE made AS $text", 'SELECT * FROM made' ];
		$r->{after} = ['DROP TABLE IF EXISTS made'];
		$r->{ordered} = 0;
	}
	else
	{
		$text = select_text($q, "$q->{id} % 4 = v.x");
		$text = "SELECT v.x, q.* FROM (VALUES (1), (3), (NULL), (9), (1)) v(x) LEFT JOIN LATERAL ($text) q ON true";
		$r->{explain} = "EXPLAIN (OPTIONS) $text";
		$r->{run} = [$text];
		$r->{ordered} = 0;
	}
	@compare = () if $q->{above} && $q->{above} !~ /SELECT (s\.)?\* FROM|SELECT s\.\*,/;
	unshift @compare, 'exact' if $q->{mode} eq 'lateral';
	$r->{compare} = \@compare;
	surround($q, $r);
	# outside of all that: made and dropped by the tables' owner, whatever happens within
	foreach my $i (reverse 0 .. $#{ $q->{views} // [] })
	{
		my $n = $i + 1;

		unshift @{ $r->{before} }, "CREATE TEMP VIEW view_$n AS $q->{views}[$i]", $q->{role} ? "GRANT SELECT ON view_$n TO $ROLE" : ();
		push @{ $r->{after} }, "DROP VIEW IF EXISTS view_$n CASCADE";
	}
	return $r;
}

# ---------- making a query smaller ----------

sub copy
{
	my ($x) = @_;

	return [ map { copy($_) } @$x ] if ref $x eq 'ARRAY';
	return { map { $_ => copy($x->{$_}) } keys %$x } if ref $x eq 'HASH';
	return $x;
}

# Queries with one thing less each, the big things first.
sub smaller
{
	my ($q) = @_;
	my @all;
	my $try = sub {
		my ($change, @arguments) = @_;
		my $c = copy($q);

		$change->($c, @arguments);
		push @all, $c if @{ $c->{outputs} } && ($c->{kind} =~ /plain/ || @{ $c->{keys} });
	};

	$try->(sub { $_[0]{mode} = 'plain' }) if $q->{mode} ne 'plain';
	$try->(sub { delete $_[0]{$_[1]} }, $_) foreach grep { $q->{$_} } qw(changes role);
	foreach my $i (0 .. $#{ $q->{changes} // [] })
	{
		$try->(sub { splice @{ $_[0]{changes} }, $i, 1 }) if $q->{changes}[$i] !~ /^(SAVEPOINT|ROLLBACK|RELEASE)/;
	}
	$try->(sub { delete $_[0]{above} }) if $q->{above};
	$try->(sub { delete $_[0]{distinct} }) if $q->{distinct};
	$try->(sub { delete $_[0]{limit} }) if $q->{limit};
	$try->(sub { $_[0]{order} = 0 }) if $q->{order} && !$q->{limit};
	foreach my $part (qw(joins where having settings))
	{
		foreach my $i (0 .. $#{ $q->{$part} })
		{
			$try->(sub { splice @{ $_[0]{$part} }, $i, 1 });
		}
	}
	foreach my $i (reverse 0 .. $#{ $q->{outputs} })
	{
		next if defined $q->{outputs}[$i]{key} && ($q->{order} || $q->{kind} =~ /distinct|union/);
		$try->(sub { splice @{ $_[0]{outputs} }, $i, 1; $_[0]{above_column} = 'o1'; });
	}
	if ($q->{kind} eq 'group')
	{
		foreach my $i (reverse 0 .. $#{ $q->{keys} })
		{
			next if grep { defined $_->{needs_key} } @{ $q->{outputs} };
			$try->(sub {
				my ($c) = @_;
				splice @{ $c->{keys} }, $i, 1;
				@{ $c->{outputs} } = grep { !defined $_->{key} || $_->{key} != $i } @{ $c->{outputs} };
				$_->{key}-- foreach grep { defined $_->{key} && $_->{key} > $i } @{ $c->{outputs} };
				$c->{above_column} = 'o1';
			});
		}
	}
	return @all;
}

1;
