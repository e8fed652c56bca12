# GpuTest.pm: what the tests in this directory share.
#
#	new_node(NAME, [{ init's parameters },] CONF …)
#							a running server with the extension and, in the
#							database "postgres", the table t and functions below
#	$s = session(NODE, …)	a psql that stays, see GpuTest::Session
#	same_answer(S, SQL, TEST_NAME)
#							SQL's rows with enable_gpu_hashagg on are those with
#							it off, and the node is in the first plan only
#	digest_sql(SQL)			a query whose one row tells the multiset of SQL's rows
#	wait_until(SUB, WHAT)	polls; true once SUB returns true
#	wait_for_server(NODE)	until it takes connections, after a crash
#	wait_for_mark(ADMIN, S), wait_for_gate(ADMIN, S)
#							until session S holds an advisory lock, or waits for
#							one; looked at by session ADMIN
#
# In the database:
#
#	t(k int, v int, w bigint)	100,000 rows, 25,000 values of k
#	gate(i, at, lock)	i; the call with i = at waits for an advisory lock that
#						another session holds: it stops a query at a known row
#	mark(i, lock)		i; from then on the transaction holds the advisory lock,
#						which others see: the query has come so far
#	endless()			rows 1, 2, 3, …, as many as anybody will wait for
#	drain(cursor, n)	fetches n rows of a cursor (NULL: all) and digests them
#
# Only what Cluster.pm has in all of PostgreSQL 15 to 18 is used.

package GpuTest;

use strict;
use warnings;

use Exporter 'import';
use Time::HiRes qw(usleep time);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw($ON $OFF $BY_K new_node session same_answer digest_sql
  wait_until wait_for_server wait_for_mark wait_for_gate
  uses_node host_rows rss_kb service_pids alive);

# The node is planned whatever the size of the input.
our $ON = q{
SET enable_gpu_hashagg = on;
RESET enable_gpu_hashjoin;
SET gpurhh.setup_cost = 0;
SET gpurhh.row_cost = 0;
SET gpurhh.group_cost = 0;
SET enable_hashagg = off;
SET enable_sort = off;
};

our $OFF = q{
SET enable_gpu_hashagg = off;
SET enable_gpu_hashjoin = off;
RESET enable_hashagg;
RESET enable_sort;
};

our $BY_K = 'SELECT k, sum(v), count(*), max(w) FROM t GROUP BY k';

my $setup_sql = q{
CREATE EXTENSION gpurhh;

CREATE TABLE t AS
	SELECT (i * 7919 % 25000)::int AS k, (i % 1000)::int AS v, i::bigint AS w
	FROM generate_series(1, 100000) i;
ANALYZE t;

CREATE FUNCTION gate(i bigint, at bigint, lock bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	IF i = at THEN
		PERFORM pg_advisory_xact_lock_shared(lock);
	END IF;
	RETURN i;
END $$;

-- where a volatile one would leave joins to core
CREATE FUNCTION stable_gate(i bigint, at bigint, lock bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN gate(i, at, lock);
END $$;

CREATE FUNCTION mark(i int, lock bigint) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(lock);
	RETURN i;
END $$;

CREATE FUNCTION endless(OUT i int) RETURNS SETOF int
LANGUAGE sql IMMUTABLE ROWS 1000000 AS
'SELECT generate_series(1, 2000000000)';

CREATE FUNCTION drain(c refcursor, n bigint, OUT n_rows bigint, OUT hash numeric)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	r record;
BEGIN
	n_rows := 0;
	hash := 0;
	WHILE n IS NULL OR n_rows < n LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		n_rows := n_rows + 1;
		hash := hash + hashtextextended(r::text, 0);
	END LOOP;
END $$;
};

# Few threads and a small pool: twenty private services must fit any machine.
# With a GPU or without, services start when there is something to do.
sub new_node
{
	my ($name, @conf) = @_;
	my %init = ref $conf[0] ? %{ shift @conf } : ();
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%init);
	$node->append_conf('postgresql.conf', join("\n",
		"gpurhh.cpu_threads = 2",
		"gpurhh.pool_size = '4MB'",
		"gpurhh.service_start = off",
		"autovacuum = off",
		"max_worker_processes = 40",
		"max_connections = 60",
		($ENV{CACHE_SIZE} ? "gpurhh.cache_size = '$ENV{CACHE_SIZE}'" : ()),
		@conf, ''));
	$node->start;
	$node->safe_psql('postgres', $setup_sql);
	return $node;
}

sub session
{
	return GpuTest::Session->new(@_);
}

# Polls until sub returns true; false after a very long time.
sub wait_until
{
	my ($sub, $what) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	while (1)
	{
		return 1 if $sub->();
		last if time > $deadline;
		usleep(20_000);
	}
	diag("gave up waiting for $what") if defined $what;
	return 0;
}

# Not by poll_query_until(), as that writes the query to a psql that ends at once where it is not let in: where that has ended
# before, the write fails, and the test dies of it ("Broken pipe").
sub wait_for_server
{
	my ($node) = @_;
	my @psql = ('psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SELECT');

	return wait_until(sub { return IPC::Run::run(\@psql, '<', \undef, '>', \my $out, '2>', \my $err); }, 'the server');
}

sub wait_for_mark
{
	my ($admin, $s) = @_;
	my $pid = $s->backend_pid;

	return wait_until(sub {
			$admin->query("SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $pid") eq 't';
		}, 'the mark');
}

sub wait_for_gate
{
	my ($admin, $s) = @_;
	my $pid = $s->backend_pid;

	return wait_until(sub {
			$admin->query("SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid") eq 't';
		}, 'the gate');
}

sub digest_sql
{
	my ($sql) = @_;

	return "SELECT count(*), coalesce(sum(hashtextextended(q::text, 0)::numeric), 0) FROM ($sql) q";
}

# How many GpuHashAggs the query's plan has.
sub uses_node
{
	my ($s, $sql) = @_;
	my $plan = $s->query("EXPLAIN (COSTS OFF) $sql");

	return scalar(() = $plan =~ /Custom Scan \(GpuHashAgg\)/g);
}

# "Host Rows" of the query's GpuHashAggs, added up.
sub host_rows
{
	my ($s, $sql) = @_;
	my $plan = $s->query("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql");
	my @n = $plan =~ /Host Rows: (\d+)/g;
	my $sum = 0;

	die "no GpuHashAgg in: $plan" if !@n;
	$sum += $_ foreach @n;
	return $sum;
}

sub same_answer
{
	my ($s, $sql, $name) = @_;
	my $digest = digest_sql($sql);
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	subtest $name => sub {
		plan tests => 3;
		$s->query($OFF);
		is(uses_node($s, $digest), 0, 'off: no node');
		my $expected = $s->query($digest);
		$s->query($ON);
		cmp_ok(uses_node($s, $digest), '>', 0, 'on: the node is planned');
		is($s->query($digest), $expected, 'the same rows');
	};
	return;
}

# Pids of the device services of all sessions, by a session of its own.
sub service_pids
{
	my ($node) = @_;
	my $out = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'gpurhh device service' ORDER BY 1");

	return split /\n/, $out;
}

# Is there such a process, which is no zombie?
sub alive
{
	my ($pid) = @_;

	return 0 if !kill(0, $pid);
	if (open my $fh, '<', "/proc/$pid/stat")
	{
		my $stat = <$fh> // '';
		return 0 if $stat =~ /\) Z /;
	}
	return 1;
}

# Memory that a process has in use; undef where the system does not tell.
sub rss_kb
{
	my ($pid) = @_;
	my $status;

	open my $fh, '<', "/proc/$pid/status" or return;
	local $/;
	$status = <$fh>;
	return $status =~ /^RssAnon:\s+(\d+) kB/m ? $1 : undef;
}

# ---------------------------------------------------------------------------
#
# A psql that stays.
#
#	session(NODE, user => …, options => '-c …')
#	query(SQL)			runs it, returns what it printed; dies at an error
#	try(SQL)			the same, returns (output, errors): errors are those of
#						psql's verbose form, "ERROR:  57014: canceling …"
#	send(SQL), result()	start and later the rest of try()
#	backend_pid, client_pid
#	quit, kill_client
package GpuTest::Session;

use strict;
use warnings;

use IPC::Run;
use Test::More;

sub new
{
	my ($class, $node, %params) = @_;
	my $self = bless {
		in => '', out => '', err => '', n => 0,
		timer => IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default),
	}, $class;
	my $connstr = $node->connstr('postgres');

	$connstr .= " user=$params{user}" if defined $params{user};
	local $ENV{PGOPTIONS} = $params{options} if defined $params{options};
	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $connstr, '-f', '-' ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err},
		$self->{timer});
	$self->{backend_pid} = $self->query('SELECT pg_backend_pid()');
	# psql's, as sh is its child
	$self->{client_pid} = $self->query('\! echo $PPID');
	return $self;
}

sub backend_pid { return $_[0]->{backend_pid}; }
sub client_pid { return $_[0]->{client_pid}; }

sub send
{
	my ($self, $sql) = @_;
	my $mark = 'mark ' . ++$self->{n};

	$self->{in} .= "$sql\n;\n\\echo '$mark'\n\\warn '$mark'\n";
	$self->{timer}->start;
	eval { $self->{run}->pump_nb; 1 } or note "psql: $@";
	return;
}

# What the query that was sent last printed; the connection may have ended.
sub result
{
	my ($self) = @_;
	my $mark = "mark $self->{n}\n";
	my ($out, $err);

	# the marks end both outputs
	until (substr($self->{out}, -length $mark) eq $mark
		&& substr($self->{err}, -length $mark) eq $mark)
	{
		if (!eval { $self->{run}->pump; 1 })
		{
			die "timed out: $self->{out} $self->{err}" if $self->{timer}->is_expired;
			last;
		}
		last if !$self->{run}->pumpable;
	}
	$out = $self->{out};
	$err = $self->{err};
	$self->{out} = $self->{err} = '';
	s/\Q$mark\E\z//, s/\n\z//, s/^psql:<stdin>:\d+: //mg foreach $out, $err;
	return ($out, $err);
}

sub try
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->result;
}

sub query
{
	my ($self, $sql) = @_;
	my ($out, $err) = $self->try($sql);

	die "query failed: $sql\n$err" if $err =~ /^(ERROR|FATAL|PANIC)|connection to server|server closed/m;
	return $out;
}

# Resets statement_timeout, which holds for that, too: it can be cancelled as any other.
sub reset_timeout
{
	my ($self) = @_;

	foreach (1 .. 1000)
	{
		my ($out, $err) = $self->try('RESET statement_timeout');

		return if $err eq '';
		die "query failed: RESET statement_timeout\n$err" if $err !~ /^ERROR:.*due to statement timeout/;
	}
	die 'statement_timeout is too short to be reset';
}

sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	eval { $self->{run}->finish; };
	return;
}

# Without a word to the server.
sub kill_client
{
	my ($self) = @_;

	kill 'KILL', $self->{client_pid};
	eval { $self->{run}->finish; };
	return;
}

1;
