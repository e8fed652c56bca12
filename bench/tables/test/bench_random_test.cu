/*
 * bench_random_test.cu
 *		The benchmarks' keys and rows are distributed as they say.
 *
 *	g++ -std=c++17 -O2 -x c++ -Igpu -Itest -Ibench -Ibench/tables THIS	(no GPU)
 *	nvcc -std=c++17 -O3 -arch=native -Igpu -Ibench -Ibench/tables THIS
 *
 * Prints a line for each check that fails, then "N passed, N failed".
 */
#include "table_bench_random.cuh"

#include <set>

static unsigned n_passed,
			n_failed;

static void
check(bool ok, const char *what, double got, double wanted)
{
	if (ok)
		n_passed++;
	else
	{
		n_failed++;
		printf("FAILED %s: %g, wanted %g\n", what, got, wanted);
	}
}

template <typename T>
static std::vector<T>
fetch(const bench_array<T> &a)
{
	std::vector<T> v(a.n);

	BENCH_TRY(cudaMemcpy(v.data(), a.at, a.n * sizeof(T), cudaMemcpyDeviceToHost));
	return v;
}

/* How far counts are from those expected, in standard deviations. */
static double
chi_square_sigmas(const std::vector<double> &got, const std::vector<double> &expected)
{
	double		chi = 0;

	int			bins = 0;

	for (size_t i = 0; i < got.size(); i++)
		if (expected[i] > 0)
		{
			chi += (got[i] - expected[i]) * (got[i] - expected[i]) / expected[i];
			bins++;
		}
	return (chi - (bins - 1)) / sqrt(2.0 * (bins - 1));
}

/* Ranks 1..16 of many, and all beyond: rejection shows in the second rank. */
static void
test_zipf(uint64_t n_groups)
{
	const uint64_t n = 2000000;
	bench_array<uint32_t> keys(n);
	bench_array<uint64_t> values(n);
	std::map<uint32_t, int> rank_of;
	std::vector<double> got(18, 0),
				expected(18, 0);
	uint64_t	strangers = 0;
	double		harmonic = 0,
				sum = 0;

	RHH_LAUNCH(bench_rows_kernel<uint32_t>, table_blocks(n, 256), 256, 0, 0,
			   bench_random({5, 6}), n_groups, true, keys.at, values.at, n);
	BENCH_TRY(cudaGetLastError());
	for (uint64_t r = 1; r <= n_groups; r++)
	{
		rank_of[bench_key<uint32_t>(r - 1)] = (int) r;
		harmonic += 1.0 / r;
	}
	for (uint64_t r = 1; r <= n_groups; r++)
		expected[r <= 16 ? r : 17] += n / (r * harmonic);
	for (uint32_t key : fetch(keys))
	{
		if (!rank_of.count(key))
			strangers++;
		else
			got[std::min(rank_of[key], 17)]++;
	}
	got.erase(got.begin());
	expected.erase(expected.begin());

	double		sigmas = chi_square_sigmas(got, expected);

	check(strangers == 0, "rows of groups that are none", strangers, 0);
	check(fabs(sigmas) < 4, "Zipf: standard deviations from it", sigmas, 0);
	for (uint64_t v : fetch(values))
		sum += v;
	check(fabs(sum / n - 499.5) < 2, "mean of the values", sum / n, 499.5);
}

template <typename Word>
static void
test_draws()
{
	const uint64_t n = 200001;
	const uint64_t domain = 64;
	bench_array<Word> keys(n),
				others(n);
	std::map<Word, int> number_of;
	std::vector<double> got(domain, 0),
				expected(domain, (double) n / domain);
	std::vector<Word> some;
	uint64_t	wrong = 0;

	for (uint64_t i = 0; i < domain; i++)
		number_of[bench_key<Word>(i)] = (int) i;
	check(number_of.size() == domain, "keys of different numbers", number_of.size(), domain);
	bench_draw<Word>({1, 2}, domain, nullptr, 0, keys.at, n);
	for (Word key : fetch(keys))
	{
		wrong += !number_of.count(key);
		got[number_of[key]]++;
	}
	check(wrong == 0, "keys of no number", wrong, 0);
	check(fabs(chi_square_sigmas(got, expected)) < 4, "uniform: standard deviations from it",
		  chi_square_sigmas(got, expected), 0);

	/* the same again, another seed, and without half of the keys */
	bench_draw<Word>({1, 2}, domain, nullptr, 0, others.at, n);
	check(fetch(keys) == fetch(others), "the same seed and sequence", 0, 1);
	bench_draw<Word>({2, 2}, domain, nullptr, 0, others.at, n);
	check(fetch(keys) != fetch(others), "another seed", 1, 0);
	bench_draw<Word>({1, 3}, domain, nullptr, 0, others.at, n);
	check(fetch(keys) != fetch(others), "another sequence", 1, 0);
	for (const auto &k : number_of)
		if (k.second % 2 == 0)
			some.push_back(k.first);
	{
		bench_array<Word> not_these(some.size());
		std::vector<double> half(domain / 2, 0);

		BENCH_TRY(cudaMemcpy(not_these.at, some.data(), some.size() * sizeof(Word),
							 cudaMemcpyHostToDevice));
		bench_draw<Word>({1, 2}, domain, not_these.at, some.size(), others.at, n);
		wrong = 0;
		for (Word key : fetch(others))
		{
			wrong += number_of[key] % 2 == 0;
			half[number_of[key] / 2]++;
		}
		check(wrong == 0, "keys that must not come", wrong, 0);
		check(fabs(chi_square_sigmas(half, std::vector<double>(domain / 2, 2.0 * n / domain))) < 4,
			  "uniform over the others", 1, 0);
	}

	/* keys without repetition, not reserved; values that are none are not absent */
	bench_distinct_keys<Word>(1000, keys.at, n);
	bench_values(keys.at, others.at, n);

	std::vector<Word> distinct = fetch(keys);

	check(std::set<Word>(distinct.begin(), distinct.end()).size() == n, "distinct keys", 0, n);
	wrong = 0;
	for (Word key : distinct)
		wrong += bench_reserved(key);
	for (Word value : fetch(others))
		wrong += value == table_absent<Word>();
	check(wrong == 0, "reserved keys or values", wrong, 0);
}

/* The numbers whose keys would be reserved get others. */
template <typename Word>
static void
test_reserved()
{
	int			found = 0;

	/* scatter(x) = y has one x for each y: go back from the two */
	for (uint64_t i = 0; sizeof(Word) == 4 && i < UINT64_C(1) << 32 && found < 2; i++)
		if (bench_reserved(bench_scatter((Word) i)))
		{
			found++;
			check(!bench_reserved(bench_key<Word>(i)), "a reserved key", i, 0);
		}
	check(sizeof(Word) == 8 || found == 2, "numbers of reserved keys", found, 2);
}

static void
test_key_bits()
{
	for (int bits : {4, 9, 16, 17})
	{
		const uint64_t n = UINT64_C(1) << bits;
		bench_array<uint64_t> keys(n);

		bench_distinct_keys_of_bits(n / 2, bits, keys.at, n);	/* wraps around */

		std::vector<uint64_t> v = fetch(keys);

		check(std::set<uint64_t>(v.begin(), v.end()).size() == n, "keys of all patterns", bits, bits);
		check(*std::max_element(v.begin(), v.end()) == n - 1, "the highest key", bits, bits);
		check(!std::is_sorted(v.begin(), v.end()), "keys in disorder", bits, bits);
	}
}

int
main()
{
	int			n_devices = 0;

	if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0)
	{
		printf("no CUDA device\n0 passed, 1 failed\n");
		return 1;
	}
	check(bench_philox_is_right(), "Philox4x32-10's test vectors", 0, 1);
	test_zipf(10);
	test_zipf(2000);
	test_draws<uint32_t>();
	test_draws<uint64_t>();
	test_reserved<uint32_t>();
	test_reserved<uint64_t>();
	test_key_bits();
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed != 0;
}
