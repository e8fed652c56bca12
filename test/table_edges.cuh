/*
 * table_edges.cuh
 *		Part of table_test.cu: arguments that may be left out, limits that are
 *		reached, what is handed back, what counters say.
 */

/* Homes by hand: with n_buckets a power of two, a key's high bits. */
struct direct_hash
{
	static __host__ __device__ uint32_t hash(uint32_t key) { return key; }
};
typedef rhh::table<uint32_t, uint32_t, rhh::sum, ~0u, 64, direct_hash> direct_table;

static uint32_t
key_at_home(const direct_table &t, uint32_t home, uint32_t i)
{
	return (uint32_t) (((uint64_t) home << 32) / t.device().b.n_buckets) + i;
}

static void
test_nothing_given()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;
	T			t;
	bool		unique;
	uint64_t	n;
	std::vector<uint32_t> keys;
	std::unordered_map<uint32_t, uint32_t> map;
	device_array<unsigned long long> count(1);

	test_name = "nothing given";
	CUDA(t.create(2048, nullptr, 2));
	/* n = 0, with no arrays at all */
	CUDA(t.insert(nullptr, nullptr, 0, {nullptr, nullptr, nullptr}, nullptr));
	CUDA(t.insert_if_absent(nullptr, nullptr, 0, {nullptr, nullptr, nullptr}, nullptr));
	CUDA(t.find(nullptr, nullptr, 0, 0u, nullptr));
	CUDA(t.contains(nullptr, nullptr, 0, nullptr));
	CUDA(t.erase(nullptr, 0, nullptr));
	CUDA(t.reserve(0, nullptr));
	CUDA(t.size(&n, nullptr));
	CHECK(n == 0);

	/* No values: zeros.  Failures: not wanted, or only counted, or only their keys. */
	{
		std::unordered_set<uint32_t> distinct;

		while (distinct.size() < 4000)
			distinct.insert((uint32_t) next_random());
		keys.assign(distinct.begin(), distinct.end());
	}
	device_array<uint32_t> k(keys),
				failed_keys(keys.size());

	CUDA(t.insert(k.p, nullptr, keys.size(), {nullptr, nullptr, nullptr}, nullptr));
	map = contents<T, uint32_t>(t, &unique);
	CHECK(unique);
	CHECK(map.size() <= t.n_slots() && map.size() > t.n_slots() * 3 / 4);
	for (auto &e : map)
		if (e.second != 0)
			CHECK(false);
	CUDA(cudaMemset(count.p, 0, 8));
	CUDA(t.insert(k.p, nullptr, keys.size(), {nullptr, nullptr, count.p}, nullptr));
	map = contents<T, uint32_t>(t, &unique);

	size_t		n_away = (size_t) count.host(1)[0];

	CHECK(n_away > 0);
	CHECK(n_away >= keys.size() - map.size());
	CUDA(cudaMemset(count.p, 0, 8));
	CUDA(t.insert(k.p, nullptr, keys.size(), {failed_keys.p, nullptr, count.p}, nullptr));
	map = contents<T, uint32_t>(t, &unique);
	n_away = (size_t) count.host(1)[0];
	for (auto x : failed_keys.host(n_away))
		map[x] = 0;
	CHECK(map.size() == keys.size());
	t.destroy();
}

static void
test_block_threads()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;

	test_name = "block threads";
	for (int threads : {64, 128, 192, 512, 1024})
		for (uint64_t n_slots : {2048, 10000 * BEYOND_L2})
		{
			T			t;
			bool		unique;
			std::unordered_map<uint32_t, uint32_t> map;
			auto		keys = random_keys<uint32_t>((size_t) (n_slots * 0.7), n_slots);
			failure_list<uint32_t> failures(2 * keys.size());

			t.block_threads = threads;
			CUDA(t.create(n_slots, nullptr, UINT32_MAX));
			for (auto k : keys)
				map[k] += 2;
			insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
			insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
			CHECK(failures.n() == 0);
			CHECK((contents<T, uint32_t>(t, &unique)) == map);
			check_finds(t, map);

			device_array<uint32_t> g(std::vector<uint32_t>(keys.begin(), keys.begin() + 100));

			CUDA(t.erase(g.p, 100, nullptr));
			for (int i = 0; i < 100; i++)
				map.erase(keys[(size_t) i]);
			CHECK((contents<T, uint32_t>(t, &unique)) == map);
			t.destroy();
		}
}

/* What does not fit the arrays is not written, but counted. */
static void
test_extract_without_room()
{
	typedef rhh::table<uint64_t, uint64_t, rhh::replace> T;
	T			t;
	std::vector<uint64_t> keys;
	failure_list<uint64_t> failures(1000);
	device_array<unsigned long long> found(1);

	test_name = "extract without room";
	CUDA(t.create(2048, nullptr));
	for (uint64_t i = 0; i < 999; i++)
		keys.push_back(rhh_mix64(i + 1));
	keys.push_back(~UINT64_C(0));	/* EMPTY */
	insert(t, keys, keys, failures);
	for (size_t room : {(size_t) 0, (size_t) 1, (size_t) 500, (size_t) 999, (size_t) 1000})
	{
		const uint64_t untouched = 0x1234567;
		device_array<uint64_t> k(std::vector<uint64_t>(room + 10, untouched)),
					v(std::vector<uint64_t>(room + 10, untouched));
		bool		right = true;

		CUDA(t.extract(k.p, v.p, room, found.p, nullptr));

		auto		hk = k.host(room + 10),
					hv = v.host(room + 10);

		CHECK(found.host(1)[0] == 1000);
		for (size_t i = 0; i < room + 10; i++)
			right = right && (i < room ? hk[i] == hv[i] && hk[i] != untouched
							  : hk[i] == untouched && hv[i] == untouched);
		CHECK(right);
	}
	t.destroy();
}

/* Ones that are known: a displacement, a failure, a chain that gets too long. */
static void
test_counted_moves()
{
	direct_table t;
	failure_list<uint32_t> failures(10);
	std::vector<uint32_t> keys;
	rhh::counters c;

	test_name = "counted moves";
	/* Bucket 7 is full, and so is 8: one of 8's goes to 9. */
	CUDA(t.create(1024, nullptr, 64));
	for (uint32_t i = 0; i < 8; i++)
	{
		keys.push_back(key_at_home(t, 7, i));
		keys.push_back(key_at_home(t, 8, i));
	}
	insert(t, keys, keys, failures);
	{
		counted<direct_table> counts(t);

		insert(t, std::vector<uint32_t>{key_at_home(t, 7, 9)}, std::vector<uint32_t>{1u}, failures);
		c = counts.get();
		CHECK(c.operations == 1 && c.probes == 3 && c.displacements == 1);
		CHECK(c.failures == 0 && c.hits == 0);
	}
	t.destroy();

	/* A cap of one bucket. */
	CUDA(t.create(1024, nullptr, 1));
	insert(t, keys, keys, failures);
	{
		counted<direct_table> counts(t);

		insert(t, std::vector<uint32_t>{key_at_home(t, 7, 9)}, std::vector<uint32_t>{1u}, failures);
		c = counts.get();
		CHECK(c.operations == 1 && c.probes == 1 && c.displacements == 0 && c.failures == 1);
		CHECK(failures.n() == 1 && failures.keys.host(1)[0] == key_at_home(t, 7, 9));
	}
	t.destroy();
}

/* Full buckets, each with its own, further than a chain of displacements may go. */
static void
test_longest_chain()
{
	direct_table t;
	const uint32_t n_buckets = 8192;
	failure_list<uint32_t> failures(1000);
	std::unordered_map<uint32_t, uint32_t> map;
	std::vector<uint32_t> keys;
	bool		unique;

	test_name = "longest chain";
	CUDA(t.create((uint64_t) n_buckets * 8, nullptr, UINT32_MAX));
	for (uint32_t b = 100; b < 100 + RHH_MAX_CHAIN + 50; b++)
		for (uint32_t i = 0; i < 8; i++)
			keys.push_back(key_at_home(t, b, i));
	for (auto k : keys)
		map[k] = 1;
	insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
	CHECK(failures.n() == 0);
	{
		counted<direct_table> counts(t);

		map[key_at_home(t, 100, 9)] = 1;
		insert(t, std::vector<uint32_t>{key_at_home(t, 100, 9)}, std::vector<uint32_t>{1u}, failures);

		rhh::counters c = counts.get();

		CHECK(c.displacements == RHH_MAX_CHAIN && c.failures == 1);
	}
	CHECK(failures.n() == 1);
	/* The new key is there; another one has come back. */
	CHECK(failures.keys.host(1)[0] != key_at_home(t, 100, 9));

	auto		there = contents<direct_table, uint32_t>(t, &unique);

	CHECK(unique);
	CHECK(there.size() == keys.size());
	CHECK(broken_invariants(t) == 0);
	CHECK(with_failures(there, failures, rhh::sum()) == map);
	t.destroy();
}

template <class Ref>
static __global__ void
own_insert_kernel(const __grid_constant__ Ref r, const uint32_t *keys, uint32_t n,
				  const __grid_constant__ rhh::failed<uint32_t> failures, uint32_t *outcomes)
{
	const typename Ref::tile tile;

	for (uint32_t i = RHH_TILE_ID(Ref::tile::SIZE); i < n; i += RHH_TILES(Ref::tile::SIZE))
	{
		uint32_t	key = keys[i],
					value = 1;
		rhh_outcome o = r.insert(tile, &key, &value);

		if (tile.rank != 0)
			continue;
		atomicAdd(&outcomes[o], 1u);
		if (o == RHH_FAILED || o == RHH_PLACED_ORPHAN)
		{
			unsigned long long to = atomicAdd(failures.count, 1ULL);

			failures.keys[to] = key;
			failures.values[to] = value;
		}
	}
}

/* What the caller's own kernel gets handed back, with what is there, is all. */
static void
test_device_side_failures()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;
	auto		kernel = own_insert_kernel<T::ref>;

	test_name = "device side failures";
	for (uint32_t max_dist : {1, 2, 5})
	{
		T			t;
		bool		unique;
		uint64_t	size;
		std::vector<uint32_t> keys;
		std::unordered_map<uint32_t, uint32_t> map;
		device_array<uint32_t> outcomes(8);

		CUDA(t.create(1024, nullptr, max_dist));
		for (uint32_t i = 0; i < 3000; i++)
		{
			keys.push_back((uint32_t) (rhh_mix64(next_random() % 1200) + 1));
			map[keys.back()]++;
		}
		device_array<uint32_t> k(keys);
		failure_list<uint32_t> failures(keys.size());

		CUDA(cudaMemset(outcomes.p, 0, 8 * 4));
		RHH_LAUNCH(kernel, 4, 128, 0, nullptr, t.device(), k.p, (uint32_t) keys.size(), failures.out(),
				   outcomes.p);
		CUDA(cudaGetLastError());

		auto		there = contents<T, uint32_t>(t, &unique);
		auto		o = outcomes.host(8);

		CHECK(unique);
		CHECK(broken_invariants(t) == 0);
		CHECK(with_failures(there, failures, rhh::sum()) == map);
		CHECK(o[RHH_FAILED] + o[RHH_PLACED_ORPHAN] == failures.n());
		CHECK(o[RHH_FAILED] > 0);
		CHECK(max_dist == 1 || o[RHH_PLACED_ORPHAN] > 0);
		CHECK(o[RHH_PLACED] == there.size());
		CUDA(t.size(&size, nullptr));
		CHECK(size == there.size());
		t.destroy();
	}
}

/* Batches of erases and inserts in turn, in a table that stays nearly full. */
template <typename Key>
static void
test_crowded_turns(const char *name, uint64_t n_slots, uint32_t max_dist)
{
	typedef rhh::table<Key, Key, rhh::sum> T;
	T			t;
	bool		unique;
	std::unordered_map<Key, Key> map;

	test_name = name;
	CUDA(t.create(n_slots, nullptr, max_dist));
	n_slots = t.n_slots();
	for (int round = 0; round < 8; round++)
	{
		std::vector<Key> keys,
					gone;
		failure_list<Key> failures(2 * n_slots);

		while (map.size() + keys.size() < n_slots * 0.96)
			keys.push_back((Key) next_random());
		for (auto &e : map)
			if (next_random() % 8 == 0)
				keys.push_back(e.first);
		for (auto k : keys)
			map[k]++;
		insert(t, keys, std::vector<Key>(keys.size(), (Key) 1), failures);

		auto		there = contents<T, Key>(t, &unique);

		CHECK(unique);
		CHECK(broken_invariants(t) == 0);
		CHECK(with_failures(there, failures, rhh::sum()) == map);
		map = there;
		for (auto &e : map)
			if (next_random() % 4 == 0)
				gone.push_back(e.first);
		for (auto k : gone)
			map.erase(k);
		device_array<Key> g(gone);

		CUDA(t.erase(g.p, gone.size(), nullptr));
		CHECK((contents<T, Key>(t, &unique)) == map);
		CHECK(broken_invariants(t) == 0);
	}
	check_finds(t, map);
	t.destroy();
}

/* Sums up to a limit that only the run knows. */
struct sum_to_limit
{
	uint32_t	limit;

	__host__ __device__ uint32_t operator()(uint32_t old, uint32_t added) const
	{
		return old + added < limit ? old + added : limit;
	}
};

/* A reduction that has a member; a table that moves and owns its memory once. */
static void
test_members_and_moves()
{
	typedef rhh::table<uint32_t, uint32_t, sum_to_limit> T;
	static_assert(!std::is_copy_constructible<T>::value && !std::is_copy_assignable<T>::value,
				  "a table owns memory");
	bool		unique,
				fits;

	test_name = "members and moves";
	for (uint64_t n_slots : {2048, 10000 * BEYOND_L2})
	{
		T			t(sum_to_limit{3});
		std::unordered_map<uint32_t, uint32_t> map;
		auto		keys = random_keys<uint32_t>((size_t) n_slots, n_slots / 3);
		failure_list<uint32_t> failures(keys.size() * 2);

		for (auto k : keys)
			map[k] = std::min(map[k] + 1, 3u);
		CUDA(t.create(n_slots, nullptr, UINT32_MAX));
		insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);

		T			moved(std::move(t));

		CHECK(t.n_slots() == 0 && moved.n_slots() >= n_slots);
		CHECK((contents<T, uint32_t>(moved, &unique)) == map);
		t = std::move(moved);
		CHECK((contents<T, uint32_t>(t, &unique)) == map);
		CUDA(t.rehash(n_slots * 2, &fits, nullptr));
		for (auto k : keys)
			map[k] = std::min(map[k] + 1, 3u);
		insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
		CHECK((contents<T, uint32_t>(t, &unique)) == map);
		/* Destroyed, it is as new, and knows its limit. */
		t.destroy();
		CUDA(t.create(n_slots, nullptr, UINT32_MAX));
		CUDA(t.clear(nullptr));
		insert(t, std::vector<uint32_t>(9, 5u), std::vector<uint32_t>(9, 1u), failures);
		CHECK((contents<T, uint32_t>(t, &unique))[5] == 3);
	}
}

/* Hints are made anew when something has been inserted, by whomever, and not else. */
static void
test_hints_are_kept()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;
	T			t;
	std::vector<uint32_t> keys;
	failure_list<uint32_t> failures(1 << 14);
	device_array<uint32_t> outcomes(8),
				found(1 << 14),
				own(std::vector<uint32_t>{4711u});
	auto		kernel = own_insert_kernel<T::ref>;
	auto		find = [&]
	{
		device_array<uint32_t> k(keys);

		CUDA(t.find(k.p, found.p, keys.size(), 0u, nullptr));
		CUDA(cudaDeviceSynchronize());
	};
	auto		flags = [&]
	{
		rhh::detail::side_and_size s;

		CUDA(cudaDeviceSynchronize());
		CUDA(cudaMemcpy((void *) &s, t.device().side, sizeof s, cudaMemcpyDeviceToHost));
		return (s.hints_made ? 1 : 0) | (s.hints_current ? 2 : 0);
	};
	auto		mark = [&](uint8_t what)
	{
		CUDA(cudaMemset(t.device().hints, what, 1));
	};
	auto		marked = [&]
	{
		uint8_t		first;

		CUDA(cudaMemcpy(&first, t.device().hints, 1, cudaMemcpyDeviceToHost));
		return first;
	};

	test_name = "hints are kept";
	CUDA(t.create(1 << 14, nullptr, UINT32_MAX));
	while (keys.size() < 0.96 * (1 << 14))
		keys.push_back((uint32_t) next_random());
	insert(t, keys, keys, failures);
	CHECK(flags() == 0);
	find();
	CHECK(flags() == 3);
	/* 0 is always right, and not what is made of a home in a crowded table: see whether it stays. */
	mark(0xFF);
	insert(t, std::vector<uint32_t>{keys[5]}, std::vector<uint32_t>{1u}, failures);	/* not new */
	CHECK(flags() == 3);
	find();
	CHECK(marked() == 0xFF);
	insert(t, std::vector<uint32_t>{4710u}, std::vector<uint32_t>{1u}, failures);
	CHECK(flags() == 1);
	find();
	CHECK(flags() == 3 && marked() != 0xFF);
	mark(0xFF);
	RHH_LAUNCH(kernel, 1, 64, 0, nullptr, t.device(), own.p, 1u, failures.out(), outcomes.p);
	CHECK(flags() == 1);
	find();
	CHECK(marked() != 0xFF);
	CUDA(t.erase(own.p, 1, nullptr));
	CHECK(flags() == 0);
	t.destroy();
}

static void
test_edges()
{
	test_nothing_given();
	test_block_threads();
	test_extract_without_room();
	test_counted_moves();
	test_longest_chain();
	test_device_side_failures();
	test_crowded_turns<uint32_t>("crowded turns, u32", 1024, UINT32_MAX);
	test_crowded_turns<uint64_t>("crowded turns, u64, capped", 1024, 3);
	test_crowded_turns<uint32_t>("crowded turns, merged", (uint64_t) 10000 * BEYOND_L2, 6);
	test_members_and_moves();
	test_hints_are_kept();
}
