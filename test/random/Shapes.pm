# Shapes.pm: shapes of queries that are told from others by the planner alone.
#
# Grouping columns that are equal to each other, or constant, come of a subquery
# or of views over views: what is one expression in the text is one grouping column
# to the parser, but two columns of a subquery are two, and become equal only when
# the planner pulls it up.
#
#	derive			FROM of a table with columns d1, d2 … that are equal, constant,
#					or of no collation because those that they come from conflict
#	derived_key		one of these as a grouping column; undef: there are none
#	above_sets		DISTINCT and window functions above GROUPING SETS
#	determined_sets	a primary key, what it determines, and GROUPING() of both
#	join_tables		t joined with one to three tables, mostly by equal columns, as a
#					device does it below a grouping: stars, chains, EXISTS and NOT EXISTS

package Shapes;

use strict;
use warnings;

use Exporter 'import';
use Tables;

our @EXPORT = qw(derive derived_key above_sets determined_sets join_tables);

my @constants = (
	{ sql => "'x'::text", class => 'text' }, { sql => "upper('c')", class => 'text' }, { sql => '7', class => 'int' },
	{ sql => '(1 + 1)', class => 'int' }, { sql => 'NULL::int', class => 'int' }, { sql => 'true', class => 'bool' },
	{ sql => "extract(month FROM timestamp '2004-02-29')", class => 'numeric', shown => 'trim_scale({})' },
	{ sql => "date '2000-01-01'", class => 'date' },
);

# A column of the subquery that is made of an expression.
sub derived
{
	my ($name, $e) = @_;

	return { name => $name, from => 't', type => ($e->{width} // 8) == 4 ? 'float4' : 'derived', extremes => 1,
		info => { class => $e->{class}, shown => $e->{shown}, nosum => $e->{nosum} } };
}

# As a subquery within a subquery, or as a view over a view.
sub nest
{
	my ($q, $inner, $outer) = @_;

	if (chance(0.5))
	{
		$q->{views} = [ "SELECT t.*, $inner FROM t", "SELECT t.*, $outer FROM view_1 t" ];
		$q->{from} = 'view_2 t';
	}
	else
	{
		$q->{from} = "(SELECT t.*, $outer FROM (SELECT t.*, $inner FROM t) t) t";
	}
	return;
}

# expression: makes a random one of the columns of a query.
sub derive
{
	my ($q, $expression) = @_;
	my @text = grep { $_->{info}{class} eq 'text' } @{ $q->{columns} };

	if (@text && chance(0.3))
	{
		my $x = pick(@text)->{name};
		my $other = chance(0.3) && $q->{icu} ? 'ignore_case' : '"POSIX"';

		# no view may have such a column
		$q->{from} = "(SELECT t.*, t.a1 || t.a2 AS d1, CASE WHEN t.id % 3 = 0 THEN t.a1 ELSE t.a2 END AS d2, coalesce(t.a1, t.a2) AS d3"
		  . " FROM (SELECT t.*, (t.$x)::text COLLATE \"C\" AS a1, (t.$x)::text COLLATE $other AS a2 FROM t) t) t";
		$q->{derived} = [ map { derived("d$_", { sql => "t.d$_", class => 'text' }) } 1 .. 3 ];
		push @{ $q->{where} }, pick('t.a1 = t.a2', 't.a1 <> t.a2 OR t.id % 2 = 0', "t.d1 IN ('a', 'x1x1')", "t.d2 NOT IN ('b')", "t.d3 = 'x1'")
		  if chance(0.4);
	}
	else
	{
		my $e = $expression->($q, 0.5);
		my $c = pick(@constants);

		nest($q, "$e->{sql} AS d1, $e->{sql} AS d2, $c->{sql} AS d3", 't.d1 AS d4, t.d3 AS d5');
		$q->{derived} = [ (map { derived("d$_", $e) } 1, 2, 4), map { derived("d$_", $c) } 3, 5 ];
	}
	push @{ $q->{columns} }, @{ $q->{derived} };
	return;
}

sub derived_key
{
	my ($q) = @_;
	my $c;

	return if !$q->{derived} || chance(0.2);
	$c = pick(@{ $q->{derived} });
	return { sql => "t.$c->{name}", class => $c->{info}{class},
		shown => $c->{info}{shown} // ($c->{info}{class} eq 'float' ? '({}) + 0' : undef), width => 8 };
}

sub above_sets
{
	my ($q) = @_;
	my $key = pick(@{ $q->{keys} })->{sql};

	push @{ $q->{outputs} }, { sql => pick("count(*) OVER (PARTITION BY $key)", "sum(count(*)) OVER (PARTITION BY $key)",
			'rank() OVER (ORDER BY count(*))', "dense_rank() OVER (PARTITION BY grouping($key) ORDER BY count(*))"), compare => 'exact' }
	  if chance(0.5);
	# of floats two rows may be one or two, depending on the last digit
	return if chance(0.4);
	@{ $q->{outputs} } = grep { $_->{compare} eq 'exact' } @{ $q->{outputs} };
	push @{ $q->{outputs} }, { sql => 'count(*)', compare => 'exact' } if !@{ $q->{outputs} };
	$q->{distinct} = 1;
	return;
}

# For a query whose last key is a primary key.
sub determined_sets
{
	my ($q) = @_;
	my $n = @{ $q->{keys} };

	push @{ $q->{outputs} }, { sql => 'grouping(' . join(', ', map { pick(@{ $q->{keys} })->{sql} } 1 .. between(1, 2)) . ')', compare => 'exact',
		needs_key => $n - 1 };
	if (chance(0.4))
	{
		my $all = join ', ', map { "{$_}" } 0 .. $n - 1;

		$q->{kind} = 'sets';
		$q->{sets} = [ chance(0.5) ? "GROUPING SETS (($all))" : "GROUPING SETS (($all), ({" . ($n - 1) . '}))' ];
	}
	return;
}

# By what a table is joined with the one that stands for {}: each row has a few matches,
# or none.  A column may be anything in d, which has rows of t; where t is large, few of
# them match.
sub join_condition
{
	my ($q, $name, $left, $right) = @_;

	if ($name eq 'd' && $left->{columns} && chance(0.7))
	{
		# a domain over an enum has no operators
		my $c = pick(grep { $_->{info}{class} ne 'd_enum' } @{ $left->{columns} });
		my $on = $c ? "$left->{alias}.$c->{name} = $right.$c->{name}" : "$left->{alias}.id = $right.id";

		$on .= " AND $right.j = $left->{alias}.j" if $q->{large} || chance(0.2);
		return $on;
	}
	return "$left->{alias}.id = $right.id" if $name eq 't' || chance(0.2);
	return "$left->{alias}." . pick("j = $right.id", "j = $right.id", "id = $right.id", $name eq 'u' ? "j = $right.j" : "id = $right.id",
		"id = $right.id AND $left->{alias}.j = $right.j");
}

# A side that is a join itself: of a table of this name, which others see, with another one.
sub nested_join
{
	my ($q, $name, $table, $visible, %tables) = @_;
	my $other = pick(qw(d d u t));
	my $alias = "n_$table->{alias}";
	my $columns = $tables{ $other eq 'd' ? 't' : $other }{columns};
	my $on = join_condition($q, $other, $table, $alias);
	my $kind = pick('JOIN', 'JOIN', 'JOIN', 'LEFT JOIN', 'EXISTS', 'NOT EXISTS', 'FULL JOIN');

	return "(SELECT * FROM $name $table->{alias} WHERE $kind (SELECT FROM $other $alias WHERE $on)) $table->{alias}" if $kind =~ /EXISTS/;
	push @{ $q->{columns} }, map { { %$_, from => $alias } } @$columns;
	push @$visible, { alias => $alias, columns => $other eq 'u' ? undef : $columns };
	return "($name $table->{alias} $kind $other $alias ON $on)";
}

# tables: by name; t is the first of them, and d has the columns of t.  condition: makes a
# condition over columns of several tables, which may say what a match of a join is, and sets errs
# if it may be an error.
sub join_tables
{
	my ($q, $condition, %tables) = @_;
	my @visible = ({ alias => 't', columns => $tables{t}{columns} });
	my $nested;

	$q->{large} = $tables{t}{n_rows} > 3000;
	$q->{joins} = [];
	# rows that another plan makes
	$q->{from} = pick('(SELECT * FROM t LIMIT 1000000) t', '(SELECT DISTINCT ON (id) * FROM t) t', '(SELECT * FROM t ORDER BY id LIMIT 2000) t') if chance(0.15);
	foreach my $i (1 .. pick(1, 1, 1, 2, 2, 3))
	{
		my $name = pick(qw(d d d u u t));
		my $columns = $tables{ $name eq 'd' ? 't' : $name }{columns};
		my $left = chance(0.7) ? $visible[0] : pick(@visible);
		my $alias = "$name$i";
		my $on = join_condition($q, $name, $left, $alias);
		my $kind = pick('JOIN', 'JOIN', 'JOIN', 'LEFT JOIN', 'LEFT JOIN', 'EXISTS', 'NOT EXISTS', 'RIGHT JOIN', 'FULL JOIN');

		$on .= " AND $alias.id % 3 <> 0" if chance(0.15);
		$on .= " AND $left->{alias}.id <= $alias.id" if chance(0.05);
		my @before = @{ $q->{columns} };

		push @{ $q->{columns} }, map { { %$_, from => $alias } } @$columns;
		if (chance(0.35))
		{
			my $all = $q->{columns};

			# of the two tables that are joined, more often than of any
			$q->{columns} = [ grep { $_->{from} eq $alias || $_->{from} eq $left->{alias} } @$all ] if chance(0.7);
			$on .= ' AND ' . $condition->($q);
			$q->{columns} = $all;
		}
		if ($kind =~ /EXISTS/)
		{
			$q->{columns} = \@before;
			push @{ $q->{where} }, "$kind (SELECT FROM $name $alias WHERE $on)";
			next;
		}
		my $table = { alias => $alias, columns => $name eq 'u' ? undef : $columns };

		push @visible, $table;
		if (chance(0.3))
		{
			push @{ $q->{joins} }, "$kind " . nested_join($q, $name, $table, \@visible, %tables) . " ON $on";
			$nested = 1;
			next;
		}
		$name = "(SELECT * FROM $name LIMIT 1000000)" if chance(0.1);
		push @{ $q->{joins} }, "$kind $name $alias ON $on";
	}
	# so that it may stay on the device
	if ($nested && chance(0.7))
	{
		my @plain = grep { $_->{info}{class} =~ /^(int|date)$/ } @{ $q->{columns} };

		$q->{columns} = \@plain if @plain > 1;
		push @{ $q->{settings} }, [ join_collapse_limit => 1 ], [ 'gpurhh.read_pages' => 'on' ], map { [ "enable_$_" => 'off' ] } qw(mergejoin nestloop);
		push @{ $q->{settings} }, [ 'gpurhh.enable_key_filter' => 'off' ] if chance(0.7);
	}
	$q->{several} = @visible > 2;
	# what is computed of both sides is computed after the join, which is core's then
	$q->{plain_columns} = chance(0.7);
	return;
}

1;
