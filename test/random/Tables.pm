# Tables.pm: random tables, as SQL.
#
# A column has a type, and its values are made from a number n that tells them
# apart: how many different n there are, how they are distributed, how many
# are NULL, and how many are one of the type's extreme values is chosen at
# random for each column.
#
# A type has
#	sql			its name in CREATE TABLE
#	class		what expressions and aggregates take it (Queries.pm)
#	value		an expression of n
#	extremes	literals
#	shown		where equal values can be printed differently (1.0 and 1.00), which
#				of them a group shows is open: an expression of {} that prints
#				equal values alike
#	nosum		sums of its extremes depend on their order
#	needs		server_version_num from which it is there

package Tables;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(seed pick chance between %TYPES setup_sql random_tables random_changes joined_table_sql security_sql break_modifiers $ROLE);

# ---------- random numbers: the same for a seed everywhere ----------

# Seeds that differ in a bit give unlike sequences.
sub seed
{
	my $x = 1;

	foreach my $n (@_)
	{
		$x = ($x * 69069 + $n * 7919 + 12345) % 4294967291;
		$x = ($x ^ ($x >> 15)) * 40503 % 4294967291;
	}
	srand($x);
	rand() for 1 .. 5;
	return $x;
}

sub pick { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }
sub between { return $_[0] + int(rand($_[1] - $_[0] + 1)); }

# ---------- types ----------

my @float_extremes = ("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "'0'");
my @times = ("'infinity'", "'-infinity'");

# Floats are multiples of 1/8, so that their sums are exact in any order; where
# they are not (wide), they are positive, so that nothing cancels.
our %TYPES = (
	bool => { class => 'bool', value => 'n % 2 = 0' },
	int2 => { class => 'int', value => '(n % 30000 - 20)::int2',
		extremes => [ '-32768', '32767', '-1', '0' ] },
	int4 => { class => 'int', value => '(n * 48271 % 2000003 - 1000)::int4',
		extremes => [ '-2147483648', '2147483647', '-1', '0' ] },
	small => { sql => 'int4', class => 'int', value => '(n - 5)::int4' },
	int8 => { class => 'int', value => '(n * 4294967311 - 7)::int8',
		extremes => [ "'-9223372036854775808'", "'9223372036854775807'", '-1', '0' ] },
	oid => { class => 'oid', value => '(n % 10000019 * 17)::oid', extremes => [ "'4294967295'", '0' ] },
	float4 => { class => 'float', value => '((n % 5000) / 8.0 - 7)::float4', extremes => \@float_extremes },
	float8 => { class => 'float', value => '(n / 8.0 - 7)::float8', extremes => \@float_extremes },
	wide => { sql => 'float8', class => 'float', value => 'exp((n % 400 - 200)::float8)' },
	numeric_2 => { sql => 'numeric(12, 2)', class => 'numeric', value => '(n * 1.37 - 100)::numeric(12, 2)',
		extremes => [ "'NaN'", "'9999999999.99'", "'-9999999999.99'", "'0'" ] },
	numeric_0 => { sql => 'numeric(18)', class => 'numeric', value => '(n % 90000001 * 987654321 - 5)::numeric',
		extremes => [ "'999999999999999999'", "'-999999999999999999'", "'-1'" ] },
	numeric_18 => { sql => 'numeric(18, 18)', class => 'numeric', value => '(n % 999983) / 1000003::numeric(18, 6)',
		extremes => [ "'0.999999999999999999'", "'-0.999999999999999999'", "'NaN'" ] },
	numeric_neg => { sql => 'numeric(6, -2)', class => 'numeric', value => '(n % 5000 * 100)::numeric',
		extremes => [ "'NaN'" ] },
	numeric_38 => { sql => 'numeric(38, 10)', class => 'numeric', value => '(n * 1234567890123.0123456789)::numeric(38, 10)',
		extremes => [ "'NaN'", "'9999999999999999999999999999.9999999999'" ] },
	numeric => { class => 'numeric', value => "((n / 3 * 0.1)::text || repeat('0', (n % 3)::int))::numeric",
		extremes => [ "'NaN'", "'Infinity'", "'-Infinity'", "'1e100'", "'1e-100'", "'1.00'" ], shown => 'trim_scale({})' },
	text => { class => 'text', value => "'x' || n", extremes => [ "''", "' '", "'ä€𝄞'", "'x1 '" ] },
	text_any => { sql => 'text', class => 'text', value => "repeat(chr((97 + n % 26)::int), (n % 40)::int) || n % 7", extremes => [ "''" ] },
	text_wide => { sql => 'text', class => 'text', value => "repeat('wide ', (n % 3)::int * 60) || n" },
	text_toasted => { sql => 'text', class => 'text',
		value => "CASE WHEN n % 20 = 0 THEN (SELECT string_agg(md5((n * 1000 + i)::text), '') FROM generate_series(1, 100) i) ELSE 'short ' || n END" },
	text_c => { sql => 'text COLLATE "C"', class => 'text', value => "'é' || n" },
	text_icu => { sql => 'text COLLATE "en-x-icu"', class => 'text', value => "CASE n % 2 WHEN 0 THEN 'a' ELSE 'A' END || n", extremes => [ "''" ], icu => 1 },
	text_ci => { sql => 'text COLLATE ignore_case', class => 'citext', value => "CASE n % 2 WHEN 0 THEN 'a' ELSE 'A' END || n / 2",
		shown => 'lower({} COLLATE "C")', icu => 1 },
	varchar => { sql => 'varchar(20)', class => 'text', value => "'v' || n", extremes => [ "''" ] },
	bpchar => { sql => 'char(10)', class => 'bpchar', value => "'c' || n % 100000", extremes => [ "''" ] },
	bpchar_any => { sql => 'bpchar', class => 'bpchar', value => "'c' || n / 2 || repeat(' ', (n % 2)::int)", shown => '({})::text' },
	bytea => { class => 'bytea', value => "decode(lpad(to_hex(n), 8, '0'), 'hex')", extremes => [ "''", "'\\x00'", "'\\x0000'" ] },
	bytea_wide => { sql => 'bytea', class => 'bytea', value => "decode(repeat(md5(n::text), (n % 50)::int), 'hex')" },
	name => { class => 'name', value => "('m' || n)::name" },
	uuid => { class => 'uuid', value => 'md5(n::text)::uuid',
		extremes => [ "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'" ] },
	date => { class => 'date', value => "date '1999-12-01' + (n % 100000)::int",
		extremes => [ @times, "'4713-01-01 BC'", "'5874897-12-31'" ] },
	time => { class => 'time', value => "time '00:00' + n * interval '7 s'", extremes => [ "'24:00'", "'23:59:59.999999'" ] },
	timetz => { class => 'timetz', value => "(time '12:00' + n / 3 * interval '1 h' || CASE n % 3 WHEN 0 THEN '+00' WHEN 1 THEN '-01' ELSE '+05:30' END)::timetz",
		extremes => [ "'24:00+15:59'", "'00:00-15:59'" ] },
	timestamp => { class => 'timestamp', value => "timestamp '1999-12-01' + n * interval '17 h'",
		extremes => [ @times, "'4713-01-01 00:00 BC'", "'294276-12-31 23:59:59.999999'" ] },
	timestamp_0 => { sql => 'timestamp(0)', class => 'timestamp', value => "timestamp '1999-12-01' + n * interval '0.7 s'" },
	timestamptz => { class => 'timestamptz', value => "timestamptz '2000-03-01 00:00+00' + n * interval '17 min'", extremes => \@times },
	interval => { class => 'interval', value => "CASE n % 3 WHEN 0 THEN n / 3 * interval '1 month' WHEN 1 THEN n / 3 * interval '30 days' ELSE n / 3 * interval '720 h' END",
		shown => 'justify_interval({})', extremes => [ "'0'", "'-1 day'" ] },
	money => { class => 'money', value => '(n * 1.5 - 20)::numeric::money',
		extremes => [ "'-92233720368547758.08'", "'92233720368547758.07'" ], nosum => 1 },
	macaddr => { class => 'macaddr', value => "lpad(to_hex(n), 12, '0')::macaddr", extremes => [ "'ff:ff:ff:ff:ff:ff'" ] },
	macaddr8 => { class => 'macaddr', value => "lpad(to_hex(n), 16, '0')::macaddr8", extremes => [ "'ff:ff:ff:ff:ff:ff:ff:ff'" ] },
	char => { sql => '"char"', class => 'char', value => 'CASE n % 2 WHEN 0 THEN 32 + n / 2 % 95 ELSE -1 - n / 2 % 128 END::int::"char"' },
	inet => { class => 'inet', value => "inet '10.0.0.0' + n" },
	bit => { sql => 'bit(12)', class => 'bit', value => '(n % 4096)::int::bit(12)' },
	varbit => { class => 'bit', value => '(n % 64)::int::bit(6)::varbit' },
	enum => { sql => 'mood', class => 'enum', value => "(enum_range(NULL::mood))[1 + n % 5]" },
	d_int => { class => 'int', value => '(n % 1000000)::int4', extremes => [ '0' ] },
	d_text => { class => 'text', value => "'d' || n" },
	d_numeric => { class => 'numeric', value => '(n * 0.25)::numeric(14, 2)' },
	d_enum => { class => 'd_enum', value => "(enum_range(NULL::mood))[1 + n % 5]" },
	d_int8 => { class => 'int', value => 'n * 3' },
	d_float => { class => 'float', value => 'n / 4.0', extremes => [ "'NaN'", "'-0'" ] },
	lsn => { sql => 'pg_lsn', class => 'lsn', value => "'0/0'::pg_lsn + n" },
	jsonb => { class => 'jsonb', value => "jsonb_build_object('a', n)" },
	array => { sql => 'int4[]', class => 'array', value => 'ARRAY[n, NULL]::int4[]' },
	range => { sql => 'int4range', class => 'range', value => 'int4range((n % 1000)::int, (n % 1000)::int + 3)' },
	composite => { sql => 'pair', class => 'composite', value => "ROW(n, 'x')::pair" },
);
foreach my $name (keys %TYPES)
{
	$TYPES{$name}{sql} //= $name;
}

# Values that do not conform to the type modifier that their column has: core
# believes a column definition list and does not look.  Not among the others, see
# break_modifiers().  One has to be printed as it is, so that equal values have
# equal blanks; n is NULL now and then here, since a CASE around it would be
# coerced.
my %broken = (
	broken_numeric => { sql => 'numeric(10, 2)', class => 'numeric', shown => 'trim_scale({})',
		value => "CASE WHEN n % 13 <> 5 THEN (n % 500 * 1.2345 - 7)::numeric(20, 4) * (0.1 ^ (n % 3))::numeric(4, 2) END::numeric" },
	broken_short => { sql => 'numeric(10, 2)', class => 'numeric', shown => 'trim_scale({})', value => '(n % 100 * 0.5)::numeric(20, 1)::numeric' },
	broken_large => { sql => 'numeric(4)', class => 'numeric', shown => 'trim_scale({})', value => "(n % 1000 * 1000003.5)::numeric" },
	broken_bpchar => { sql => 'char(4)', class => 'bpchar',
		value => "CASE WHEN n % 13 <> 5 THEN ('b' || n % 70 || repeat(' ', (n % 70 % 4)::int))::bpchar END" },
	broken_varchar => { sql => 'varchar(3)', class => 'text', value => "('long ' || n % 3000)::varchar" },
	broken_bit => { sql => 'bit(12)', class => 'bit', value => "(n % 16)::int::bit(4)::varbit::bit" },
	broken_timestamp => { sql => 'timestamp(0)', class => 'timestamp', value => "timestamp '1999-12-01' + n * interval '0.7 s'" },
);
foreach my $type (values %broken)
{
	# a cast to the same modifier is none
	$type->{value} = "(SELECT x FROM unnest(ARRAY[ROW($type->{value})]) q(x $type->{sql}))";
	$type->{one_value} = 1;
}
my $p_broken = 0;

# From now on tables have such columns.
sub break_modifiers
{
	%TYPES = (%TYPES, %broken);
	$p_broken = 0.25;
	return;
}

# Words and what has their operators; then what people group by; then all.
my @words = qw(bool int2 int4 small small int8 oid float4 float8 uuid date time timestamp timestamptz);
my @common = qw(bool int2 int4 small small int8 float8 numeric_2 text varchar bpchar
  uuid date timestamp timestamptz enum d_int);
my @all = sort keys %TYPES;

# Once for a schema; ICU may be missing.
sub setup_sql
{
	my ($icu) = @_;

	return (
		"CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
		"ALTER TYPE mood ADD VALUE 'grim' BEFORE 'sad'",
		"ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'",
		"CREATE DOMAIN d_int AS int4 CHECK (VALUE > -10)",
		"CREATE DOMAIN d_text AS varchar(12)",
		"CREATE DOMAIN d_numeric AS numeric(14, 2)",
		"CREATE DOMAIN d_enum AS mood",
		"CREATE DOMAIN d_base AS int8",
		"CREATE DOMAIN d_int8 AS d_base",
		"CREATE DOMAIN d_float AS float8",
		"CREATE TYPE pair AS (a int8, b text)",
		$icu ? "CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)" : ());
}

# ---------- tables ----------

sub random_type
{
	my ($icu, $p_words) = @_;
	my $name;

	return pick(sort keys %broken) if $p_broken && chance($p_broken);
	do
	{
		$name = chance($p_words) ? pick(@words) : chance(0.6) ? pick(@common) : pick(@all);
	} while ($TYPES{$name}{icu} && !$icu);
	return $name;
}

# How n is distributed over the rows g.
sub random_number
{
	my ($n_rows) = @_;
	my $n_distinct = pick(1, 2, 5, 30, 30, 300, 3000, 1000000);

	return pick(
		"floor(random() * $n_distinct)::int8",
		"floor(random() * $n_distinct)::int8",
		"floor(power(random(), 6) * $n_distinct)::int8",
		"(CASE WHEN random() < 0.9 THEN 0 ELSE floor(random() * $n_distinct) END)::int8",
		"(g % $n_distinct)::int8",
		"g::int8 * least($n_distinct, $n_rows) / ($n_rows + 1)",
		'g::int8');
}

# One column's expression, of its number n_I.
sub column_value
{
	my ($column, $number) = @_;
	my $type = $column->{info};
	my $value = $type->{value};
	my @cases;

	$value =~ s/\bn\b/$number/g;
	# what is after AS would take a domain's and a typmod's checks with it
	my $cast = $type->{sql} =~ s/ COLLATE.*//r;
	return "($value)::$cast" if $type->{one_value};
	my $nulls = pick(0, 0, 0.02, 0.3, 0.9, chance(0.1) ? 1 : 0);
	push @cases, "WHEN random() < $nulls THEN NULL" if $nulls > 0 && !$column->{not_null};
	if ($column->{extremes})
	{
		my $extremes = join ', ', @{ $type->{extremes} };
		push @cases, 'WHEN random() < ' . pick(0.02, 0.3)
		  . " THEN (ARRAY[$extremes]::" . $cast . '[])[1 + floor(random() * ' . scalar(@{ $type->{extremes} }) . ')::int]';
	}
	return "($value)::$cast" if !@cases;
	return 'CASE ' . join(' ', @cases) . " ELSE ($value)::$cast END";
}

sub fill
{
	my ($table, $columns, $n_rows, $first_id) = @_;
	my (@numbers, @values);

	foreach my $i (0 .. $#$columns)
	{
		my $column = $columns->[$i];

		if ($column->{fixed})
		{
			push @values, $column->{fixed} =~ s/ID/g + $first_id/r;
			next;
		}
		push @numbers, random_number($n_rows) . " AS n_$i";
		push @values, column_value($column, "n_$i");
	}
	return "INSERT INTO $table (" . join(', ', map { $_->{name} } @$columns) . ')'
	  . ' SELECT ' . join(', ', @values)
	  . ' FROM (SELECT ' . join(', ', 'g', @numbers) . " FROM generate_series(1, $n_rows) g OFFSET 0) s";
}

sub shuffled { return map { $_->[1] } sort { $a->[0] <=> $b->[0] } map { [ rand(), $_ ] } @_; }

# A partition that was a table of its own, with its columns in another order and
# one dropped.
sub shuffled_partition
{
	my ($parent, $name, $bounds, @defined) = @_;

	return ("CREATE TABLE $name (" . join(', ', shuffled('x int', @defined)) . ')',
		"ALTER TABLE $name DROP x", "ALTER TABLE $parent ATTACH PARTITION $name $bounds");
}

# Columns come and go while there are rows: of the rows in a page some have values
# of what is dropped, and some lack what is there.  Adds to the columns; one of
# them has the name of one that was dropped before, where that name is free.
sub changed_columns
{
	my ($name, $columns, $n_rows, $free_name) = @_;
	my $again = { name => $free_name ? 'gone' : 'again', type => 'int4', info => $TYPES{int4} };
	my @sql = ("ALTER TABLE $name ADD between_1 text DEFAULT 'long enough to move what is behind it', ADD between_2 int8",
		fill($name, $columns, int($n_rows / 5), 3000000),
		"UPDATE $name SET between_2 = id WHERE id % 4 = 0",
		"ALTER TABLE $name DROP between_1");

	# a name that a dropped column had, of another type perhaps
	$again->{not_null} = chance(0.3);
	push @sql, "ALTER TABLE $name ADD $again->{name} int4" . ($again->{not_null} ? ' NOT NULL DEFAULT -1' : pick('', ' DEFAULT 7'));
	push @$columns, $again, { name => 'between_2', type => 'int8', info => $TYPES{int8} };
	push @sql, fill($name, $columns, int($n_rows / 5), 4000000) if chance(0.5);
	return @sql;
}

# What a role may see of a table, and views of it that nobody can look behind.
# The policies are others' than the owner's, who is a superuser.
our $ROLE = 'gpurhh_random';

sub policy
{
	my ($name) = @_;

	return pick("$name.id % 3 <> 0", "$name.j IS NULL OR $name.j < 15", "$name.j > 3 AND $name.id % 2 = 0",
		"seen($name.id)", "EXISTS (SELECT FROM v_j WHERE v_j.j = $name.j)", "current_user = '$ROLE'", 'true', 'false');
}

sub security_sql
{
	my ($schema, @tables) = @_;
	my @sql = ("DO \$\$ BEGIN CREATE ROLE $ROLE; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END \$\$",
		# a function that is neither leakproof nor read by the planner
		"CREATE FUNCTION seen(id int) RETURNS bool LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN RETURN id % 5 > 1; END'",
		"CREATE TABLE v_j AS SELECT generate_series(0, 20, 2) AS j",
		"GRANT ALL ON SCHEMA $schema TO $ROLE");

	foreach my $table (@tables)
	{
		my $name = $table->{name};
		my $temp = $table->{kind} eq 'temp' ? 'TEMP ' : '';

		push @sql, "ALTER TABLE $name ENABLE ROW LEVEL SECURITY",
		  "CREATE POLICY one ON $name TO $ROLE USING (" . policy($name) . ')';
		push @sql, "CREATE POLICY two ON $name TO $ROLE USING (" . policy($name) . ')' if chance(0.4);
		push @sql, "CREATE POLICY three ON $name AS RESTRICTIVE TO $ROLE USING (" . policy($name) . ')' if chance(0.3);
		push @sql, "GRANT ALL ON $name TO $ROLE";
		push @sql, "CREATE ${temp}VIEW ${name}_barrier WITH (security_barrier) AS SELECT * FROM $name WHERE " . policy($name);
		push @sql, "CREATE ${temp}VIEW ${name}_invoker WITH (security_invoker" . pick('', ', security_barrier') . ") AS SELECT * FROM $name WHERE " . policy($name);
		push @sql, map { "GRANT ALL ON ${name}_$_ TO $ROLE" } qw(barrier invoker);
	}
	push @sql, "GRANT ALL ON v_j TO $ROLE";
	return @sql;
}

# A table is { name, columns => [ { name, type, info, extremes } ], sql => [ … ],
# kind, key (its id is a primary key), n_rows }.
# id counts the rows, j is what tables are joined by.
sub random_table
{
	my ($name, $n_rows, $n_columns, $icu, $p_words) = @_;
	my @columns = (
		{ name => 'id', type => 'small', info => $TYPES{small}, fixed => 'ID', not_null => 1 },
		{ name => 'j', type => 'small', info => $TYPES{small}, fixed => "nullif(floor(random() * 30)::int, 13)" });
	my @sql;
	my $kind = pick(qw(plain plain plain plain temp unlogged hash range list inherit));
	my ($persistence, $by) = ('', '');
	my $late;
	# two columns of strings that are often long, and differ
	my $long_texts = chance(0.2);

	foreach my $i (1 .. $n_columns)
	{
		my $type = $long_texts && ($i == 2 || $i == 3) ? 'text_any' : random_type($icu, $p_words);
		my $info = $TYPES{$type};

		push @columns, { name => "c$i", type => $type, info => $info,
			extremes => $info->{extremes} && chance(0.35), not_null => chance(0.15) && !$info->{one_value} };
	}
	# a column that is added later, with a default that old rows do not store
	if (chance(0.25))
	{
		my $type = pick(qw(int4 int8 text numeric_2 bool float8 timestamp));
		$late = { name => 'late', type => $type, info => $TYPES{$type} };
	}
	$persistence = 'TEMP ' if $kind eq 'temp';
	$persistence = 'UNLOGGED ' if $kind eq 'unlogged';
	$by = " PARTITION BY HASH (id)" if $kind eq 'hash';
	$by = " PARTITION BY RANGE (id)" if $kind eq 'range';
	$by = " PARTITION BY LIST (j)" if $kind eq 'list';

	my @defined = map { "$_->{name} $_->{info}{sql}" . ($_->{not_null} ? ' NOT NULL' : '') } @columns;
	my $key = $kind =~ /plain|temp|unlogged/ && chance(0.3);
	push @defined, 'PRIMARY KEY (id)' if $key;
	my $dropped = chance(0.25);
	splice @defined, between(0, scalar(@columns)), 0, 'gone ' . pick('text', 'int4', 'numeric') if $dropped;
	push @sql, "CREATE ${persistence}TABLE $name (" . join(', ', @defined) . ")$by";
	if ($kind eq 'hash')
	{
		push @sql, map { "CREATE TABLE ${name}_$_ PARTITION OF $name FOR VALUES WITH (modulus 3, remainder $_)" } 0 .. 1;
		push @sql, shuffled_partition($name, "${name}_2", 'FOR VALUES WITH (modulus 3, remainder 2)', @defined);
	}
	elsif ($kind eq 'range')
	{
		my $mid = int($n_rows / 3) + 1;
		push @sql, "CREATE TABLE ${name}_1 PARTITION OF $name FOR VALUES FROM (MINVALUE) TO ($mid)";
		# a partition whose columns are in another order
		push @sql, "CREATE TABLE ${name}_2 (x int, LIKE $name)";
		push @sql, "ALTER TABLE ${name}_2 DROP x";
		push @sql, "ALTER TABLE $name ATTACH PARTITION ${name}_2 FOR VALUES FROM ($mid) TO (MAXVALUE)";
	}
	elsif ($kind eq 'list')
	{
		push @sql, "CREATE TABLE ${name}_1 PARTITION OF $name FOR VALUES IN (0, 1, 2, 3, 4, 5, NULL)";
		push @sql, chance(0.5) ? "CREATE TABLE ${name}_2 PARTITION OF $name DEFAULT"
		  : shuffled_partition($name, "${name}_2", 'DEFAULT', @defined);
	}
	elsif ($kind eq 'inherit')
	{
		# or one that has columns of its own, and the common ones in another order
		push @sql, chance(0.5) ? "CREATE TABLE ${name}_1 (more text) INHERITS ($name)"
		  : ("CREATE TABLE ${name}_1 (" . join(', ', 'more text', shuffled(@defined)) . ')', "ALTER TABLE ${name}_1 INHERIT $name");
	}
	push @sql, fill($name, \@columns, $n_rows, 0);
	push @sql, fill("${name}_1", \@columns, int($n_rows / 4), 1000000) if $kind eq 'inherit';
	push @sql, "ALTER TABLE $name DROP gone" if $dropped;
	if ($late)
	{
		my $value = $late->{info}{value};

		$value =~ s/\bn\b/42::int8/g;
		push @sql, "ALTER TABLE $name ADD late $late->{info}{sql}" . (chance(0.7) ? " DEFAULT ($value)" : '');
		push @columns, $late;
		push @sql, fill($name, \@columns, int($n_rows / 3), 2000000) if chance(0.6);
	}
	push @sql, changed_columns($name, \@columns, $n_rows, $dropped && $kind ne 'inherit') if chance(0.2);
	push @sql, "VACUUM $name" if chance(0.3) && $kind !~ /temp/;
	push @sql, "DELETE FROM $name WHERE id % " . between(2, 7) . ' = 0' if chance(0.25);
	push @sql, "UPDATE $name SET j = j WHERE id % 3 = 0" if chance(0.2);
	push @sql, "CREATE INDEX ON $name (" . pick('id', 'j') . ')' if chance(0.2);
	push @sql, pick("ANALYZE $name", "ANALYZE $name", "VACUUM ANALYZE $name", 'SELECT 1');
	return { name => $name, columns => \@columns, sql => \@sql, kind => $kind, key => $key, n_rows => $n_rows };
}

# Statements that change a table between two queries, which leave it with about as many rows.
sub random_changes
{
	my ($t) = @_;
	my $n = between(3, 11);
	my $some = "id % $n = " . between(0, $n - 1);
	my @change = pick(["UPDATE $t->{name} SET j = j WHERE $some"], ["DELETE FROM $t->{name} WHERE $some AND id % 3 = 0"],
		["INSERT INTO $t->{name} SELECT * FROM $t->{name} WHERE $some ORDER BY id LIMIT 50"],
		[ 'BEGIN', "UPDATE $t->{name} SET j = j WHERE $some", "DELETE FROM $t->{name}", 'ROLLBACK' ], []);

	push @change, pick("VACUUM $t->{name}", "VACUUM FREEZE $t->{name}", "VACUUM FULL $t->{name}", 'SELECT 1') if $t->{kind} !~ /temp/;
	return map { ref $_ ? @$_ : $_ } @change;
}

# The tables of a round: t, and u to join it with.
sub random_tables
{
	my ($icu) = @_;
	my $p_words = pick(0, 0.3, 0.9, 0.95);
	my $n = pick(chance(0.4) ? 0 : 700, 1, 20, 200, 200, 1000, 1000, 2000, 2000, 3000,
		chance(0.3) ? 10000 : 500, chance(0.4) ? 40000 : 500, chance(0.04) ? 150000 : 500);

	return (
		random_table('t', $n, pick(3, 5, 8, 8, 12, chance(0.2) ? 40 : 6), $icu, $p_words),
		random_table('u', pick(0, 10, 100, 300), pick(2, 4), $icu, $p_words));
}

# Types whose values can be equal to those of a type, to be joined with.
my %comparable = (
	int2 => [qw(int4 int8)], int4 => ['int8'], small => [qw(int8 int8)], d_int => [qw(int4 int8)], float4 => ['float8'],
	numeric_2 => [ 'numeric(14, 4)', 'numeric(18, 3)', 'numeric(18, 8)', 'numeric' ], numeric_neg => ['numeric(12, 2)'],
	d_numeric => ['numeric(16, 3)'], broken_numeric => ['numeric(14, 4)'], broken_short => ['numeric(14, 4)'], broken_large => ['numeric(14, 2)'],
	bpchar => [ 'char(14)', 'varchar(12)' ], broken_bpchar => ['char(9)'], name => ['text'], varchar => ['text']);

# The table d has some rows of t, a few of them twice, and some that t does not have.  Some
# of its columns have other types.
sub joined_table_sql
{
	my ($t) = @_;
	my $n = pick(0, 3, 20, 60, 60);
	my @others = map { "ALTER TABLE d ALTER $_->{name} TYPE " . pick(@{ $comparable{ $_->{type} } }) }
	  grep { $comparable{ $_->{type} } && chance(0.4) } @{ $t->{columns} };

	return ('CREATE TABLE d (LIKE t)',
		"INSERT INTO d SELECT * FROM t ORDER BY id % 7, id LIMIT $n",
		'INSERT INTO d SELECT * FROM t ORDER BY id LIMIT ' . pick(0, 2, 5),
		'UPDATE d SET id = id + 100000 WHERE id % 5 = 1', @others,
		pick('ANALYZE d', 'ANALYZE d', 'SELECT 1'), "GRANT ALL ON d TO $ROLE");
}

1;
