/*
 * table_tune.cu
 *		What one choice of rhh_table_tuning.h's constants is worth: a line of CSV
 *		for each measurement.  bench/table_tune.sh builds it with one choice after
 *		the other and runs them.
 *
 *	table_tune NAME [SLOTS]		NAME: of the choice, for the first column
 *								SLOTS: of 4+4 bytes (default 2^27); half as many of 8+8
 *
 *	op			load before				n
 *	insert		0						1/32 .. 0.95 of the slots
 *	insert		0.25 .. 0.95			1/32 .. 1/2 of the slots: a table in use
 *	insert_same	0.75					1/2 of the slots, all there: reductions
 *	insert_cap8	0, 1, 2 (keys a slot)	as many as slots, capped: reductions, refusals
 *	find		0.5, 0.95				as many keys
 *	find_first	0.95					1/64 .. 1/2 of the slots: hints are yet to make
 *
 * Each the best of 3, and each table's size is checked against what was inserted.
 */
#include "table_bench.cuh"

#include "table/rhh_table.cuh"

template <typename Word>
struct tune
{
	typedef rhh::table<Word, Word, rhh::sum> table;

	const char *name;
	uint64_t	slots;
	bench_array<Word> keys;		/* all different: a bijection of 1, 2, ... */
	bench_array<unsigned long long> n_failed{1};
	bench_timer timer;
	table		t;

	tune(const char *name, uint64_t slots) : name(name), slots(slots), keys(3 * slots) {}

	rhh::failed<Word> failures() { return {nullptr, nullptr, n_failed.at}; }

	void report(const char *op, double load, uint64_t n, double ms)
	{
		printf("%s,%zu,%s,%g,%g,%.4f,%.0f\n", name, sizeof(Word), op, load, (double) n / (double) slots,
			   ms, bench_mops(n, ms));
		fflush(stdout);
	}

	uint64_t refused()
	{
		unsigned long long n;

		BENCH_TRY(cudaMemcpy(&n, n_failed.at, sizeof n, cudaMemcpyDeviceToHost));
		return n;
	}

	/* Inserts n of the keys from from on into a table that has the first before. */
	void insert(const char *op, uint64_t before, uint64_t from, uint64_t n, double load, bool distinct)
	{
		double		best = INFINITY;

		for (int rep = 0; rep < 3; rep++)
		{
			uint64_t	size;

			BENCH_TRY(cudaMemset(n_failed.at, 0, sizeof(unsigned long long)));
			BENCH_TRY(t.clear(0));
			if (before > 0)
				BENCH_TRY(t.insert(keys.at, keys.at, before, failures(), 0));
			timer.start();
			BENCH_TRY(t.insert(keys.at + from, keys.at + from, n, failures(), 0));
			best = std::min(best, timer.stop_ms());
			BENCH_TRY(t.size(&size, 0));
			if (distinct && size + refused() != std::max(before, from + n))
				bench_problem("%s: %llu entries, %llu refused, of %llu keys", op, (unsigned long long) size,
							  (unsigned long long) refused(), (unsigned long long) std::max(before, from + n));
		}
		report(op, load, n, best);
	}

	void find(uint64_t n, double load)
	{
		bench_array<Word> found(n);
		double		best = INFINITY;

		for (int rep = 0; rep < 4; rep++)
		{
			timer.start();
			BENCH_TRY(t.find(keys.at, found.at, n, 0, 0));
			if (rep > 0)
				best = std::min(best, timer.stop_ms());
			else
				(void) timer.stop_ms();
		}
		report("find", load, n, best);
	}

	/* Finds the first n of the keys in a table that these have just filled. */
	void find_first(uint64_t filled, uint64_t n, double load)
	{
		bench_array<Word> found(n);
		double		best = INFINITY;

		for (int rep = 0; rep < 3; rep++)
		{
			BENCH_TRY(t.clear(0));
			BENCH_TRY(t.insert(keys.at, keys.at, filled, failures(), 0));
			timer.start();
			BENCH_TRY(t.find(keys.at, found.at, n, 0, 0));
			best = std::min(best, timer.stop_ms());
		}
		report("find_first", load, n, best);
	}

	void run();
};

template <typename Word>
static __global__ void
tune_keys_kernel(Word *keys, uint64_t n)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (uint64_t) gridDim.x * blockDim.x)
		keys[i] = sizeof(Word) == 4 ? (Word) rhh_mix32((uint32_t) i * 0x9E3779B1u)
			: (Word) rhh_mix64(i * 0x9E3779B97F4A7C15ULL);
}

template <typename Word>
void
tune<Word>::run()
{
	RHH_LAUNCH(tune_keys_kernel<Word>, 4096, 256, 0, 0, keys.at, 3 * slots);
	BENCH_TRY(cudaGetLastError());
	BENCH_TRY(t.create(slots, 0, UINT32_MAX));
	BENCH_TRY(t.reserve(slots, 0));
	for (int part : {32, 16, 8})
		insert("insert", 0, 0, slots / part, 0, true);
	for (double load : {0.5, 0.95})
	{
		insert("insert", 0, 0, (uint64_t) (load * slots), 0, true);
		find((uint64_t) (load * slots), load);
	}
	for (int part : {64, 32, 16, 8, 2})
		find_first((uint64_t) (0.95 * slots), slots / part, 0.95);
	for (double load : {0.25, 0.5, 0.75, 0.9, 0.95})
		for (int part : {32, 16, 8, 4, 2})
		{
			uint64_t	before = (uint64_t) (load * slots);

			if (before + slots / part <= slots * 0.985)
				insert("insert", before, before, slots / part, load, true);
		}
	insert("insert_same", (uint64_t) (0.75 * slots), 0, slots / 2, 0.75, true);
	t.destroy();
	BENCH_TRY(t.create(slots, 0, 8));
	BENCH_TRY(t.reserve(slots, 0));
	for (uint64_t times : {0, 1, 2})
		insert("insert_cap8", times * slots, times * slots, slots, (double) times, true);
	t.destroy();
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "default";
	const uint64_t slots = argc > 2 ? strtoull(argv[2], nullptr, 0) : UINT64_C(1) << 27;

	{
		tune<uint32_t> t(name, slots);

		t.run();
	}
	{
		tune<uint64_t> t(name, slots / 2);

		t.run();
	}
	return bench_problems > 0;
}
