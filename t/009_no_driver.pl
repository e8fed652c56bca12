# Where there is no GPU, or no driver, the library loads all the same, and
# whoever asks for a GPU gets the CPU device, with the right answers; EXPLAIN
# ANALYZE says why.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use GpuTest;
use Test::More;

# Hides the GPUs of a machine that has some.
$ENV{CUDA_VISIBLE_DEVICES} = '';

my $node = new_node('main', "session_preload_libraries = 'gpurhh'");

# The driver is looked for when it is needed, and never linked.
foreach my $name ('gpurhh', 'gpurhh_cuda')
{
	my $library = $node->config_data('--pkglibdir') . "/$name.so";

	SKIP:
	{
		my $needed = -e $library ? `ldd '$library' 2>/dev/null` : '';

		skip "no $name, or no ldd", 1 if !$needed;
		unlike($needed, qr/libcuda|libcudart|not found/, "$name is linked with no library of CUDA");
	}
}

foreach my $mode ('private', 'shared')
{
	if ($mode eq 'shared')
	{
		$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpurhh'");
		$node->restart;
	}
	my $s = session($node);
	my $kinds = $s->query(q{SELECT string_agg(DISTINCT kind, ',') FROM gpurhh_devices() WHERE state <> 'unusable'});
	my $explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $BY_K";

	if ($kinds ne 'cpu')
	{
		diag("a CUDA device cannot be hidden here: $kinds");
		next;
	}
	$s->query($ON);

	foreach my $device ('auto', 'cpu')
	{
		$s->query("SET gpurhh.device = '$device'");
		like($s->query($explain), qr/^\s*Device: cpu$/m, "$mode: $device is the CPU device, and nothing to explain");
		same_answer($s, $BY_K, $device);
	}
	# a build without CUDA is told from a machine without a driver or a GPU
	my $why = $s->query('SELECT gpurhh_version()') =~ /cuda/
	  ? qr/NVIDIA's driver was not found|no CUDA-capable device|driver/ : qr/gpurhh was built without CUDA/;
	foreach my $device ('cuda', 'cuda:0', 'cuda:7', 'CUDA:0')
	{
		$s->query("SET gpurhh.device = '$device'");
		like($s->query($explain), qr/^\s*Device: cpu \(there is no device \L$device\E: $why.*\)$/m,
			"$mode: $device is the CPU device, and EXPLAIN ANALYZE says why");
		same_answer($s, $BY_K, $device);
		is(host_rows($s, $BY_K), 0, 'it works on a device');
	}
	like($s->query("EXPLAIN (ANALYZE, FORMAT json) $BY_K"),
		qr/"Device": "cpu",\s*"Device Declined": ".*cuda/, 'in the other formats as well');

	# a plan made for another device
	$s->query("SET gpurhh.device = 'auto'; SET plan_cache_mode = force_generic_plan");
	my $answer = $s->query("PREPARE p AS " . digest_sql($BY_K) . '; EXECUTE p');
	$s->query("SET gpurhh.device = 'cuda:7'");
	is($s->query('EXECUTE p'), $answer, 'a cached plan whose device is not there');

	foreach my $wrong ('gpu', 'cuda:', 'cuda:x', 'cuda:1000', 'cpu:0', '')
	{
		like(($s->try("SET gpurhh.device = '$wrong'"))[1],
			qr/^ERROR:  22023: invalid value for parameter "gpurhh.device"/,
			"\"$wrong\" is no device");
	}
	$s->quit;
}

$node->stop;
done_testing();
