# The CUDA device is in a library of its own, gpurhh_cuda, which only the device
# service loads: a session that maps it could call CUDA, and used to carry 40 MB
# of kernels.  Where it is missing, broken or of another build, the CPU device does
# the work, and gpurhh_devices(), EXPLAIN and the server's log say why.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use File::Copy;
use GpuTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('main', "session_preload_libraries = 'gpurhh'");
my $dir = $node->config_data('--pkglibdir');
my $with_cuda = -e "$dir/gpurhh_cuda.so";

# The libraries that a process maps and whose names match; none can be a lie only
# where the process maps not even gpurhh.
sub maps
{
	my ($pid, $re) = @_;
	my $maps = slurp_file("/proc/$pid/maps");

	die "process $pid has not loaded gpurhh" if $maps !~ m{/gpurhh\.so};
	my %names = map { $_ => 1 } $maps =~ m{/([^/\n]*(?:$re)[^/\n]*)$}mg;
	return join(' ', sort keys %names);
}

# ---------- who loads it ----------

SKIP:
{
	skip 'no /proc', 6 if !-e '/proc/self/maps';
	foreach my $mode ('private', 'shared')
	{
		if ($mode eq 'shared')
		{
			$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
			$node->restart;
		}
		my $s = session($node);

		$s->query($ON);
		foreach my $device ('auto', 'cuda', 'cpu')
		{
			$s->query("SET gpurhh.device = '$device'; $BY_K");
		}
		is($s->query('SELECT gpurhh_version()') =~ /cuda/ ? 1 : 0, $with_cuda ? 1 : 0,
			"$mode: gpurhh_version() tells whether it is there");
		is(maps($s->backend_pid, 'gpurhh_cuda|libcuda'), '', "$mode: a session has nothing of CUDA in it");
		is(maps((service_pids($node))[0], 'gpurhh_cuda'),
			$with_cuda ? 'gpurhh_cuda.so' : '', "$mode: the service has, where it was built");
		$s->quit;
	}
}

# What sessions load has no kernels in it, and needs no runtime of CUDA.
SKIP:
{
	my $sections = `readelf -SW '$dir/gpurhh.so' 2>/dev/null`;

	skip 'no readelf', 2 if $? != 0;
	unlike($sections, qr/nv_fatbin/, 'gpurhh has no kernels');
	unlike(`nm '$dir/gpurhh.so'`, qr/ (__cuda|cuda[A-Z]|rhh_cuda)/, 'gpurhh has nothing of CUDA');
}
$node->stop;

# ---------- where it cannot be used ----------

# gpurhh's own library and another one beside it, in a directory of the test's.
my $place = PostgreSQL::Test::Utils::tempdir;

copy("$dir/gpurhh.so", "$place/gpurhh.so") or die "could not copy gpurhh.so: $!";
chmod 0755, "$place/gpurhh.so";

my $broken = new_node('broken', "dynamic_library_path = '$place:\$libdir'");

# what a session is told that has the copy; the functions would load the other
sub told
{
	my ($why, $name) = @_;
	my $s = session($broken);
	my $explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $BY_K";
	my $log_offset = -s $broken->logfile;

	$s->query("LOAD 'gpurhh'; $ON");
	$s->query("SET gpurhh.device = 'auto'");
	like($s->query($explain), qr/^\s*Device: cpu$/m, "$name: auto is the CPU device, and nothing to explain");
	same_answer($s, $BY_K, "$name: auto");
	foreach my $device ('cuda', 'cuda:0')
	{
		$s->query("SET gpurhh.device = '$device'");
		like($s->query($explain), qr/^\s*Device: cpu \(cuda:0: $why.*\)$/m, "$name: EXPLAIN says why $device is the CPU device");
		same_answer($s, $BY_K, "$name: $device");
	}
	like(slurp_file($broken->logfile, $log_offset), qr/LOG:  gpurhh cannot use GPUs: $why/, "$name: the log says why");
	$s->quit;
	return;
}

open my $fh, '>', "$place/gpurhh_cuda.so" or die "could not write gpurhh_cuda.so: $!";
print $fh "not a library\n";
close $fh;
told(qr/could not load library .*gpurhh_cuda\.so/, 'no library');

SKIP:
{
	my $cc = $ENV{CC} || 'cc';

	open $fh, '>', "$place/other.c" or die "could not write other.c: $!";
	print $fh qq{const struct { char headers[32]; const void *ops; } rhh_cuda_library = { "0-0", &rhh_cuda_library };\n};
	close $fh;
	unlink "$place/gpurhh_cuda.so";
	skip 'no C compiler', 6 if system("$cc -shared -fPIC -o '$place/gpurhh_cuda.so' '$place/other.c' 2>/dev/null") != 0;
	told(qr/the library gpurhh_cuda is of another build than gpurhh/, 'another build');

	open $fh, '>', "$place/other.c" or die "could not write other.c: $!";
	print $fh "int nothing;\n";
	close $fh;
	skip 'no C compiler', 6 if system("$cc -shared -fPIC -o '$place/gpurhh_cuda.so' '$place/other.c' 2>/dev/null") != 0;
	told(qr/the library gpurhh_cuda is of another build than gpurhh/, 'no description');
}

unlink "$place/gpurhh_cuda.so";
SKIP:
{
	skip 'built without CUDA', 1 if !$with_cuda;
	told(qr/the library gpurhh_cuda is not installed/, 'missing');
}
$broken->stop;

done_testing();
