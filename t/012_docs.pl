# docs/settings.md lists every setting there is, with its default, and no other;
# docs/supported.md every type and aggregate that is planned, and no other.

use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'docs/ is not here' unless -e 'docs/settings.md' && -e 'docs/supported.md';

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
$node->start;

my %documented;
for my $line (split /\n/, slurp_file('docs/settings.md'))
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

# ---------- types and aggregates ----------

# What is supported is asked of the planner: a GROUP BY of a column of each type,
# and each aggregate of columns of its argument types.
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpurhh;
	CREATE TYPE mood AS ENUM ('sad', 'happy');

	-- What a column has to be for its type to be supported, if it ever is: of
	-- known scale, length, collation.
	CREATE FUNCTION declared(type regtype) RETURNS text LANGUAGE sql AS $$
		SELECT CASE type::text
			WHEN 'anyenum' THEN 'mood'
			WHEN '"any"' THEN 'int4'
			WHEN 'anyarray' THEN 'int4[]'
			WHEN 'numeric' THEN 'numeric(12, 2)'
			WHEN 'character' THEN 'char(5) COLLATE "C"'
			ELSE type::text || CASE WHEN typcollation <> 0 THEN ' COLLATE "C"' ELSE '' END END
		FROM pg_type WHERE oid = type
	$$;

	-- NULL: there can be no such column, or no such query.
	CREATE FUNCTION planned(columns text[], query text) RETURNS bool LANGUAGE plpgsql AS $$
	DECLARE
		line text;
		result bool := false;
	BEGIN
		EXECUTE 'CREATE TEMP TABLE t (k int, ' ||
			(SELECT string_agg(format('c%s %s', i, c), ', ') FROM unnest(columns) WITH ORDINALITY u (c, i)) || ')';
		FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
			result := result OR line ~ 'GpuHashAgg';
		END LOOP;
		DROP TABLE t;
		RETURN result;
	EXCEPTION WHEN invalid_table_definition OR undefined_function OR undefined_object OR feature_not_supported OR syntax_error THEN
		RETURN NULL;
	END $$;
});

my $free = 'SET client_min_messages = error; SET enable_gpu_hashagg = on;
	SET gpurhh.setup_cost = 0; SET gpurhh.row_cost = 0; SET gpurhh.group_cost = 0;';

sub rows_of
{
	my ($query) = @_;

	return [ split /\n/, $node->safe_psql('postgres', "$free $query") ];
}

# Types as the documentation names them: quoted, or the word "enums".
sub types_in
{
	my ($text) = @_;
	my @names = $text =~ /`([^`]+)`/g;

	s/\(.*\)// foreach @names;
	push @names, 'anyenum' if $text =~ /\benums\b/;
	push @names, '"any"' if $text =~ /\bany type\b/;
	return @names;
}

# SQL for a list of (key, type) as "key type", with the server's names of types.
sub named
{
	my (@pairs) = @_;

	return rows_of('SELECT DISTINCT concat_ws(\' \', name, types::regtype[]::text) AS row FROM (VALUES '
		  . join(', ', map { "('$_->[0]', '{" . join(',', map { s/"/\\"/gr } @$_[ 1 .. $#$_ ]) . "}'::text[])" } @pairs)
		  . ') v (name, types) ORDER BY row');
}

my $supported = slurp_file('docs/supported.md');
my ($keys) = $supported =~ /^## Grouping columns\n(.*?)^Not/ms;
my ($table) = $supported =~ /^\| aggregate \|[^\n]*\n\|---[^\n]*\n(.*?)\n\n/ms;
my @documented_keys = map { types_in($_) } $keys =~ /^(- .*(?:\n  .*)*)$/mg;
my @documented_aggregates;

foreach my $line (split /\n/, $table)
{
	my (undef, $aggregates, $types) = split /\s*\|\s*/, $line;

	foreach my $aggregate ($aggregates =~ /`([^`]+)`/g)
	{
		my ($name, $arguments) = $aggregate =~ /^(\w+)\((.*)\)$/ or die "what is $aggregate?";

		if ($arguments eq '*') { push @documented_aggregates, [$name]; next; }
		push @documented_aggregates, [ $name, ($_) x (1 + $arguments =~ tr/,//) ] foreach types_in($types);
	}
}

is_deeply(
	rows_of(q{
		SELECT concat_ws(' ', 'key', ARRAY[type]::text) AS row
		FROM (SELECT oid::regtype FROM pg_type WHERE typtype IN ('b', 'r') AND typcategory <> 'A' OR typname = 'anyenum') u (type)
		WHERE planned(ARRAY[declared(type)], 'SELECT c1 FROM t GROUP BY c1') ORDER BY row}),
	named(map { [ 'key', $_ ] } @documented_keys),
	'the types of grouping columns are all documented');

# Of these, those that this server has.
sub existing
{
	my ($rows) = @_;

	return rows_of('SELECT row FROM unnest(ARRAY[' . join(',', map { "'$_'" } @$rows) . q{]) WITH ORDINALITY u (row, i)
		WHERE EXISTS (SELECT FROM pg_proc, LATERAL (SELECT string_to_array(proargtypes::text, ' ')::oid[]::regtype[]) t (types)
			WHERE prokind = 'a' AND concat_ws(' ', proname, types::text) = row) ORDER BY i});
}

is_deeply(
	rows_of(q{
		SELECT DISTINCT concat_ws(' ', proname, types::text) AS row
		FROM pg_aggregate, pg_proc, LATERAL (SELECT string_to_array(proargtypes::text, ' ')::oid[]::regtype[]) u (types),
			LATERAL (SELECT array_agg(declared(type)), string_agg('c' || i, ', ')
				FROM unnest(types) WITH ORDINALITY n (type, i)) c (columns, list)
		WHERE pg_proc.oid = aggfnoid AND aggkind = 'n'
			AND planned(coalesce(columns, '{int}'), format('SELECT k, %I(%s) FROM t GROUP BY k', proname, coalesce(list, '*')))
		ORDER BY row}),
	existing(named(@documented_aggregates)),
	'the aggregates are all documented');

$node->stop;
done_testing();
