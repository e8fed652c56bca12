# EXECUTE on what the node computes in core's place is checked as core does it:
# on aggregates and their parts, on the equality of grouping columns, and on
# functions in WHERE, arguments and HAVING, whoever evaluates them.  Aggregates and
# equality were not.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

my $node = new_node('main');
$node->safe_psql('postgres', q{
CREATE ROLE plain LOGIN;
CREATE ROLE owner;
CREATE TABLE r AS SELECT i % 10 AS k, i AS v, i::text AS s, i::numeric(10,2) AS n, i::float8 AS f FROM generate_series(1, 20000) i;
GRANT SELECT ON r TO plain;
});
my $super = session($node);
my $plain = session($node, user => 'plain');
$plain->query('SELECT gpurhh_version()');
$plain->query($_) foreach ('SET gpurhh.setup_cost = 0', 'SET gpurhh.row_cost = 0', 'SET gpurhh.group_cost = 0',
	'SET max_parallel_workers_per_gather = 0');

# What a query says with the node and without, run and only explained.  It is
# to be the error, or none (''), and the same four times.
sub says
{
	my ($query, $message, $name, $explained) = @_;

	$explained = $message unless defined $explained;
	foreach my $setting ('off', 'on')
	{
		$plain->query("SET enable_gpu_hashagg = $setting");
		foreach my $explain ('', 'EXPLAIN (COSTS OFF) ')
		{
			my $expected = $explain ? $explained : $message;
			my ($out, $err) = $plain->try($explain . $query);

			if ($expected eq '')
			{
				is($err, '', "$name: $explain$query ($setting)");
				is($out =~ /GpuHashAgg/ ? 1 : 0, $setting eq 'on' ? 1 : 0, "$name: the plan") if $explain;
			}
			else
			{
				like($err, qr/ERROR:.*$expected/, "$name: $explain$query ($setting)");
			}
		}
	}
}

# Without EXECUTE on a function, and with it again.
sub without
{
	my ($function, $query, $message, $explained) = @_;

	says($query, '', "with $function");
	$super->query("REVOKE EXECUTE ON FUNCTION $function FROM PUBLIC");
	says($query, $message, "without $function", $explained);
	$super->query("GRANT EXECUTE ON FUNCTION $function TO PUBLIC");
}

# ---------- aggregates ----------

without('sum(int)', 'SELECT k, sum(v) FROM r GROUP BY k', 'permission denied for aggregate sum');
without('count()', 'SELECT count(*) FROM r', 'permission denied for aggregate count');
without('max(text)', 'SELECT k, max(s COLLATE "C") FROM r GROUP BY k', 'permission denied for aggregate max');
without('avg(numeric)', 'SELECT k FROM r GROUP BY k HAVING avg(n) > 5', 'permission denied for aggregate avg');
without('count("any")', 'SELECT k, count(DISTINCT v) FROM r GROUP BY k', 'permission denied for aggregate count');
without('corr(float8, float8)', 'SELECT k, corr(f, v) FROM r GROUP BY k', 'permission denied for aggregate corr');
without('sum(bigint)', 'SELECT sum(v::bigint) FROM r GROUP BY CUBE (k, v)', 'permission denied for aggregate sum');
# the aggregates of core's own node below DISTINCT are that node's
without('sum(int)', 'SELECT DISTINCT sum(v) FROM r GROUP BY k', 'permission denied for aggregate sum');

# ---------- their parts, by the aggregate's owner ----------

foreach my $case (['sum(int)', 'int4_sum(bigint, int)', 'SELECT k, sum(v) FROM r GROUP BY k', 'int4_sum'],
	['avg(numeric)', 'numeric_avg(internal)', 'SELECT k, avg(n) FROM r GROUP BY k', 'numeric_avg'],
	['avg(numeric)', 'numeric_avg_accum(internal, numeric)', 'SELECT k, avg(n) FROM r GROUP BY k', 'numeric_avg_accum'],
	['max(text)', 'text_larger(text, text)', 'SELECT k, max(s COLLATE "C") FROM r GROUP BY k', 'text_larger'],
	['regr_slope(float8, float8)', 'float8_regr_slope(float8[])', 'SELECT k, regr_slope(f, v) FROM r GROUP BY k', 'float8_regr_slope'])
{
	my ($aggregate, $part, $query, $name) = @$case;

	# who may call everything while the aggregate is his
	$super->query("REVOKE EXECUTE ON FUNCTION $part FROM PUBLIC");
	says($query, '', "$part, of a superuser's aggregate");
	$super->query("GRANT EXECUTE ON FUNCTION $part TO PUBLIC");
	$super->query("ALTER AGGREGATE $aggregate OWNER TO owner");
	without($part, $query, "permission denied for function $name");
	$super->query("ALTER AGGREGATE $aggregate OWNER TO CURRENT_USER");
}

# ---------- equality of grouping columns ----------

# a hash table is not made for EXPLAIN alone, so nothing is looked at
$plain->query('SET enable_sort = off');
without('int4eq(int, int)', 'SELECT k, sum(v) FROM r GROUP BY k', 'permission denied for function int4eq', '');
without('texteq(text, text)', 'SELECT s, count(*) FROM r GROUP BY s', 'permission denied for function texteq', '');
without('texteq(text, text)', 'SELECT DISTINCT s FROM r', 'permission denied for function texteq', '');
without('int4eq(int, int)', 'SELECT k FROM r UNION SELECT v FROM r', 'permission denied for function int4eq', '');
without('int4eq(int, int)', 'SELECT s, v, count(*) FROM r GROUP BY GROUPING SETS ((s), (v))', 'permission denied for function int4eq', '');
# core does not look at it where it sorts the values of one aggregate
without('texteq(text, text)', 'SELECT k, count(DISTINCT s) FROM r GROUP BY k', '');
$plain->query('RESET enable_sort');

# ---------- functions that the node evaluates by vectors ----------

without('int4gt(int, int)', 'SELECT k, sum(v) FROM r WHERE v > 3 GROUP BY k', 'permission denied for function int4gt');
without('int4gt(int, int)', 'SELECT k, sum(v) FILTER (WHERE v > 3) FROM r GROUP BY k', 'permission denied for function int4gt');
without('int4pl(int, int)', 'SELECT k, sum(v + 1) FROM r GROUP BY k', 'permission denied for function int4pl');
without('int4pl(int, int)', 'SELECT k + 1, sum(v) FROM r GROUP BY 1', 'permission denied for function int4pl');
without('int8gt(bigint, bigint)', 'SELECT k, sum(v) FROM r GROUP BY k HAVING sum(v) > 100::bigint', 'permission denied for function int8gt');
without('int4eq(int, int)', 'SELECT count(*) FROM r WHERE k IN (1, 2, 3)', 'permission denied for function int4eq');

# ---------- a prepared plan asks each time it is run; parallel workers ask too ----------

$plain->query('SET enable_gpu_hashagg = on');
$plain->query('SET plan_cache_mode = force_generic_plan');
$plain->query('PREPARE p AS SELECT sum(v) FROM r WHERE k = 1');
is($plain->query('EXECUTE p'), '19992000', 'a prepared plan');
$super->query('REVOKE EXECUTE ON FUNCTION sum(int) FROM PUBLIC');
like(($plain->try('EXECUTE p'))[1], qr/permission denied for aggregate sum/, 'a prepared plan, revoked');
$super->query('GRANT EXECUTE ON FUNCTION sum(int) TO PUBLIC');
is($plain->query('EXECUTE p'), '19992000', 'a prepared plan, granted again');
$plain->query($_) foreach ('SET max_parallel_workers_per_gather = 2', 'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
	'SET min_parallel_table_scan_size = 0');
like($plain->query('EXPLAIN SELECT k, sum(v) FROM r GROUP BY k'), qr/Gather.*Parallel Custom Scan \(GpuHashAgg\)/s, 'a parallel plan');
$super->query('REVOKE EXECUTE ON FUNCTION sum(int) FROM PUBLIC');
like(($plain->try('SELECT k, sum(v) FROM r GROUP BY k'))[1], qr/permission denied for aggregate sum/, 'a parallel plan, revoked');
# of the function that is SECURITY DEFINER, its owner is asked
$super->query(q{CREATE FUNCTION as_owner() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT sum(v) FROM r'});
is($plain->query('SELECT as_owner()'), '200010000', 'a function that is its owner');

$super->quit;
$plain->quit;
done_testing();
