# The server stops, fast and immediately, and dies, with queries of private and
# of shared services running and cursors open.  Nothing is left behind: no
# process, no shared memory; and the server starts again and is right.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', "session_preload_libraries = 'gpurhh'");
my $data_dir = $node->data_dir;

# Marked once it has fed some batches.
my $running = q{SELECT count(*) FROM (
	SELECT i % 1000 AS k, sum(i) FROM (
		SELECT CASE WHEN i = 300000 THEN mark(i, 2) ELSE i END AS i FROM endless() OFFSET 0) s
	GROUP BY 1) q};

# All processes of the server: they live in the data directory.
sub processes
{
	my @pids;

	foreach my $link (glob '/proc/[0-9]*/cwd')
	{
		my $cwd = readlink $link;
		push @pids, $link =~ /(\d+)/ if defined $cwd && $cwd eq $data_dir;
	}
	return grep { alive($_) } @pids;
}

# Files of shared memory that a process has mapped.
sub mapped_segments
{
	my ($pid) = @_;
	my %files;

	open my $fh, '<', "/proc/$pid/maps" or return ();
	while (<$fh>)
	{
		$files{$1} = 1 if m{(/dev/shm/PostgreSQL\.\S+)};
	}
	return keys %files;
}

# The postmaster's pid, and the identifier of the server's System V segment as
# ipcs lists it.
sub postmaster
{
	my @lines = split /\n/, slurp_file("$data_dir/postmaster.pid");

	return ($lines[0], (split ' ', $lines[6])[1]);
}

sub sysv_segments
{
	my $list = `ipcs -m 2>/dev/null` // '';

	return map { (split ' ')[1] // '' } split /\n/, $list;
}

foreach my $mode ('private', 'shared')
{
	if ($mode eq 'shared')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
		$node->restart;
	}
	foreach my $how ('fast', 'immediate', 'kill')
	{
		my $admin = session($node);
		my @s = map { session($node) } 1 .. 3;

		same_answer($s[0], $BY_K, "$mode, $how: before");
		$_->query($ON) foreach @s;
		# one returns groups, two feed
		$s[0]->query("BEGIN; DECLARE c CURSOR FOR $BY_K; FETCH 10 FROM c");
		$_->send($running) foreach @s[ 1, 2 ];
		ok(wait_for_mark($admin, $_), 'a query is running') foreach @s[ 1, 2 ];

		my @services = service_pids($node);
		is(scalar(@services), $mode eq 'shared' ? 1 : 3, 'services');
		my %segments = map { $_ => 1 } map { mapped_segments($_) } @services;
		cmp_ok(scalar(keys %segments), '>=', 3, 'a segment for each session')
		  if $mode eq 'private' && -r '/proc/self/maps' && -d '/dev/shm';
		my ($postmaster, $sysv) = postmaster();

		if ($how eq 'kill')
		{
			$node->kill9;
		}
		else
		{
			$node->stop($how);
		}

	  SKIP:
		{
			skip 'needs /proc', 1 if !-e '/proc/self/cwd';
			ok(wait_until(sub { !processes() }, 'the last process to end'), "$mode, $how: no process is left");
		}
		$_->result foreach @s[ 1, 2 ];
		$_->quit foreach @s, $admin;

		if ($how eq 'kill')
		{
			# A dead process that nobody waits for keeps its pid, and the lock
			# file then looks valid: in containers without a real init.
			my $patience = time + 10;
			wait_until(sub { !kill(0, $postmaster) || time > $patience });
			unlink "$data_dir/postmaster.pid" if kill 0, $postmaster;
			# the next start cleans up
			$node->start;
		}
		is_deeply([ grep { -e $_ } keys %segments ], [], 'no dynamic shared memory is left');
		if ($how ne 'kill')
		{
			is(scalar(grep { $_ eq $sysv } sysv_segments()), 0, 'no System V shared memory is left');
			$node->start;
		}

		is(scalar(service_pids($node)), 0, 'no service at first');
		my $after = session($node);
		same_answer($after, $BY_K, "$mode, $how: after");
		is(host_rows($after, $BY_K), 0, 'on a device');
		$after->quit;
	}
}

$node->stop;
done_testing();
