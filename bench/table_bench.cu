/*
 * table_bench.cu
 *		Measures hash tables on one GPU.  bench/table_bench.sh builds and runs it.
 *
 *	table_bench [option ...]
 *		--info				what the device is, and no more
 *		--sections "LIST"	of: timing bandwidth papers remainders groupby (default:
 *							all)
 *		--tables "LIST"		only these, by their names in the CSV files (default:
 *							all; of group-by always all)
 *		--prefix PREFIX		results are PREFIX-timing.csv, ... (default: table_bench)
 *		--reps N			repetitions of a timing (default 16; fewer elsewhere)
 *		--cell-seconds S	a table at a load gets no more repetitions, after
 *							three, when it took so long (default 1)
 *		--loads "LIST"		of the timings (default "0.5 0.75 0.85 0.95 1.0")
 *		--blocks "LIST"		threads of a block, of the timings (default "256")
 *		--table-bytes N		of slots, a power of two (default 1 GiB, less where
 *							the device has not 8 GiB free)
 *		--rows N			of the group-by (default 100000000)
 *		--groups "LIST"
 *		--seed N
 *
 * Each section is a file: table_bench_timing.cuh, _bandwidth, _papers, _remainders,
 * _groupby.
 * Exit status: 0, or 1 where something went wrong or an answer was wrong, or 3
 * where there is no CUDA device.
 *
 * Compiled by a C++ compiler with simt.h it does the same, for tests.
 */
#include "table_bench_bandwidth.cuh"
#include "table_bench_groupby.cuh"
#include "table_bench_papers.cuh"
#include "table_bench_remainders.cuh"
#include "table_bench_timing.cuh"

#include <chrono>
#include <sstream>

template <typename T>
static std::vector<T>
list_of(const char *text)
{
	std::vector<T> list;
	std::istringstream in(text);
	double		x;

	while (in >> x)
		list.push_back((T) x);
	if (list.empty() || !in.eof())
	{
		fprintf(stderr, "table_bench: not a list of numbers: \"%s\"\n", text);
		exit(1);
	}
	return list;
}

static std::vector<std::string>
words_of(const char *text)
{
	std::istringstream in(text);
	std::vector<std::string> list;
	std::string word;

	while (in >> word)
		list.push_back(word);
	return list;
}

/* Is it the name of a table that some section measures? */
static bool
table_exists(const std::string &name)
{
	bool		found = false;
	auto		visit = [&](auto tag)
	{
		found = found || name == decltype(tag)::table::name();
	};

	for_each_table<uint32_t>(visit);
	for_each_table<uint64_t>(visit);
	for_each_bandwidth_table(visit);
	for_each_compact_set(visit);
	for_each_remainder_set(visit);
	return found;
}

static int
device_info()
{
	int			device,
				clock_khz = 0,
				memory_khz = 0;
	cudaDeviceProp p;
	size_t		free_bytes,
				total_bytes;

	BENCH_TRY(cudaGetDevice(&device));
	BENCH_TRY(cudaGetDeviceProperties(&p, device));
	BENCH_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
#if defined(__CUDACC__)
	int			driver,
				runtime;

	BENCH_TRY(cudaDriverGetVersion(&driver));
	BENCH_TRY(cudaRuntimeGetVersion(&runtime));
	BENCH_TRY(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device));
	BENCH_TRY(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device));
	printf("CUDA driver %d.%d, runtime %d.%d\n", driver / 1000, driver % 1000 / 10, runtime / 1000,
		   runtime % 1000 / 10);
#endif
	printf("device: %s, compute capability %d.%d, %d SMs, L2 %d MiB\n", p.name, p.major, p.minor,
		   p.multiProcessorCount, p.l2CacheSize >> 20);
	printf("device memory: %.1f GiB, %.1f GiB free\n", total_bytes / 1073741824.0,
		   free_bytes / 1073741824.0);
	printf("highest clocks: SM %d MHz, memory %d MHz\n", clock_khz / 1000, memory_khz / 1000);
	return 0;
}

/* What does not fit is made smaller, and said. */
static void
fit_into_memory(bench_options *opt, bool table_bytes_given, bool rows_given)
{
	size_t		free_bytes,
				total_bytes;
	uint64_t	rows = opt->n_rows;
	uint64_t	most_groups = *std::max_element(opt->groups.begin(), opt->groups.end());

	BENCH_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
	if (!table_bytes_given)
	{
		uint64_t	most = UINT64_C(1) << 30;

		while (most > 4096 && free_bytes < 8 * most)
			most /= 2;
		if (most < opt->table_bytes)
		{
			opt->table_bytes = most;
			bench_say("tables of %llu MiB instead of 1 GiB: the device has %.1f GiB free",
					  (unsigned long long) (most >> 20), free_bytes / 1073741824.0);
		}
	}
	/* rows twice, their groups in the worst case, the sort's buffers */
	while (!rows_given && rows > 1000000 &&
		   rows * 16 * 5 + groupby_atomics<uint64_t>::slots_for(most_groups) * 32 > free_bytes * 0.9)
		rows /= 2;
	if (rows < opt->n_rows)
	{
		opt->n_rows = rows;
		bench_say("%llu rows for group-by: the device has %.1f GiB free", (unsigned long long) rows,
				  free_bytes / 1073741824.0);
		opt->groups.erase(std::remove_if(opt->groups.begin(), opt->groups.end(),
										 [&](uint64_t g) { return g > rows; }), opt->groups.end());
	}
}

int
main(int argc, char **argv)
{
	bench_options opt;
	bool		table_bytes_given = false,
				rows_given = false;
	int			n_devices = 0;
	cudaError_t error = cudaGetDeviceCount(&n_devices);

	if (error != cudaSuccess || n_devices == 0)
	{
		fprintf(stderr, "table_bench: no CUDA device: %s\n",
				error != cudaSuccess ? cudaGetErrorString(error) : "none was found");
		return 3;
	}
	for (int i = 1; i < argc; i++)
	{
		std::string name = argv[i];

		if (name == "--info")
			return device_info();
		if (i + 1 == argc)
		{
			fprintf(stderr, "table_bench: %s needs a value, or is unknown\n", argv[i]);
			return 1;
		}

		const char *value = argv[++i];

		if (name == "--sections")
			opt.sections = value;
		else if (name == "--tables")
			opt.tables = words_of(value);
		else if (name == "--prefix")
			opt.prefix = value;
		else if (name == "--reps")
			opt.reps = list_of<int>(value)[0];
		else if (name == "--cell-seconds")
			opt.cell_seconds = list_of<double>(value)[0];
		else if (name == "--loads")
			opt.loads = list_of<double>(value);
		else if (name == "--blocks")
			opt.blocks = list_of<int>(value);
		else if (name == "--table-bytes")
		{
			opt.table_bytes = list_of<uint64_t>(value)[0];
			table_bytes_given = true;
		}
		else if (name == "--rows")
		{
			opt.n_rows = list_of<uint64_t>(value)[0];
			rows_given = true;
		}
		else if (name == "--groups")
			opt.groups = list_of<uint64_t>(value);
		else if (name == "--seed")
			opt.seed = list_of<uint64_t>(value)[0];
		else
		{
			fprintf(stderr, "table_bench: unknown option %s\n", argv[i - 1]);
			return 1;
		}
	}
	if (opt.reps < 1 || opt.n_rows < 1 || opt.table_bytes < 32768 ||
		(opt.table_bytes & (opt.table_bytes - 1)) != 0 ||
		*std::min_element(opt.groups.begin(), opt.groups.end()) < 1 ||
		*std::min_element(opt.loads.begin(), opt.loads.end()) <= 0)
	{
		fprintf(stderr, "table_bench: --reps, --rows, --groups and --loads are above 0, "
				"--table-bytes is a power of two from 32768 up\n");
		return 1;
	}
	for (const std::string &table : opt.tables)
		if (!table_exists(table))
		{
			fprintf(stderr, "table_bench: no table %s\n", table.c_str());
			return 1;
		}
	for (int block : opt.blocks)
		if (block < 64 || block > 1024 || block % 64 != 0)
		{
			fprintf(stderr, "table_bench: a block has 64, 128, ... 1024 threads\n");
			return 1;
		}

	device_info();
	fit_into_memory(&opt, table_bytes_given, rows_given);
	if (!bench_philox_is_right())
	{
		fprintf(stderr, "table_bench: the random numbers are not Philox4x32-10's\n");
		return 1;
	}

	static const struct
	{
		const char *name;
		void		(*run) (const bench_options &);
	}			sections[] = {
		{"timing", bench_timing},
		{"bandwidth", bench_bandwidth},
		{"papers", bench_papers},
		{"remainders", bench_remainders},
		{"groupby", bench_groupby},
	};

	for (const std::string &name : words_of(opt.sections.c_str()))
	{
		bool		known = false;

		for (const auto &section : sections)
			if (name == section.name)
			{
				auto		begin = std::chrono::steady_clock::now();

				known = true;
				bench_say("== %s", section.name);
				section.run(opt);
				bench_say("   %s: %.1f s", section.name,
						  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
			}
		if (!known)
		{
			fprintf(stderr, "table_bench: no section %s\n", name.c_str());
			return 1;
		}
	}
	if (bench_problems > 0)
		printf("%d problems: see above\n", bench_problems);
	return bench_problems > 0;
}
