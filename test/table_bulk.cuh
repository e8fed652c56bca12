/*
 * table_bulk.cuh
 *		Part of table_test.cu: bulk inserts into tables that are in use (merges),
 *		and what is left when one of their assumptions does not hold.
 */

/*
 * The table as rhh_buckets.cuh wants it: each entry within the cap, past buckets
 * only that hold nothing poorer (2), no key twice.  Returns what is wrong.
 */
template <class T>
static size_t
broken_invariants(T &t)
{
	typedef typename T::S S;
	typedef typename S::slot slot;
	const rhh_buckets b = t.device().b;
	const size_t n_slots = (size_t) t.n_slots();
	std::vector<slot> slots(n_slots);
	std::vector<uint32_t> least(b.n_buckets, UINT32_MAX);	/* rank of a bucket */
	std::unordered_set<uint64_t> keys;
	size_t		wrong = 0;
	auto		rank_of = [&](size_t i)
	{
		uint32_t	home = rhh_home_of(S::hash(slots[i]), b.n_buckets);
		uint32_t	bucket = (uint32_t) (i / S::SLOTS);

		return S::is_empty(slots[i]) ? 0
			: (bucket >= home ? bucket - home : bucket + b.n_buckets - home) + 1;
	};

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy((void *) slots.data(), b.slots, n_slots * sizeof(slot), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n_slots; i++)
		least[i / S::SLOTS] = std::min(least[i / S::SLOTS], rank_of(i));
	for (size_t i = 0; i < n_slots; i++)
	{
		uint32_t	rank = rank_of(i);

		wrong += rank > b.max_dist;
		if (rank == 0)
			continue;
		wrong += !keys.insert((uint64_t) S::key(slots[i])).second;
		for (uint32_t j = 0; j + 1 < rank; j++)
			wrong += least[(i / S::SLOTS + b.n_buckets - (rank - 1 - j)) % b.n_buckets] <= j;
	}
	return wrong;
}

/* Keys whose homes are the ring's last buckets. */
template <class T, typename Key>
static Key
key_near_the_end(T &t, uint32_t buckets)
{
	for (;;)
	{
		Key			k = (Key) next_random();

		if (rhh_home_of(rhh::mix::hash(k), t.device().b.n_buckets) + buckets >= t.device().b.n_buckets)
			return k;
	}
}

/*
 * Batches into a table that fills up, and beyond: some keys are there, some twice
 * in the batch; after some rounds a part is erased.  Answers as in test_life, and
 * the invariants; and the batches have been merged: next to nothing was probed for.
 */
template <class T, typename Key, class Reduce>
static void
test_merges(const char *name, uint64_t n_slots, uint32_t max_dist, double batch, int rounds,
			bool absent, bool newest)
{
	T			t;
	Reduce		reduce;
	std::unordered_map<Key, Key> map;
	std::vector<Key> pool;
	bool		unique;

	test_name = name;
	CUDA(t.create(n_slots, nullptr, max_dist));
	for (int round = 0; round < rounds; round++)
	{
		const size_t n = (size_t) (batch * (double) t.n_slots());
		/*
		 * Uncapped tables do not get more than fits.  Large and nearly full ones
		 * have runs of full buckets in which a chain gets too long (RHH_MAX_CHAIN).
		 */
		const double fits = BEYOND_L2 > 1 ? 0.9 : 0.97;
		const size_t most = max_dist >= 64 ? (size_t) (fits * (double) t.n_slots()) : SIZE_MAX;
		std::vector<Key> keys,
					values;
		std::unordered_map<Key, Key> batch_map;

		simt_blocks(1 + round % 5);
		while (keys.size() < n)
		{
			uint64_t	x = next_random();
			Key			k = (Key) next_random();

			if (!pool.empty() && (x % 3 == 0 || map.size() + batch_map.size() >= most))
				k = pool[next_random() % pool.size()];
			else if (x % (512 * BEYOND_L2) == 1)
				k = key_near_the_end<T, Key>(t, 4);
			else if (x % 512 == 2)
				k = (Key) -1;
			keys.push_back(k);
			values.push_back(newest ? (Key) rhh_mix64(k + round) : (Key) next_random());
			if (!map.count(k))
				batch_map.emplace(k, values.back());
			pool.push_back(k);
		}
		for (size_t i = 0; i < n; i++)
		{
			auto		e = map.emplace(keys[i], values[i]);

			if (!e.second && !absent)
				e.first->second = reduce(e.first->second, values[i]);
		}

		failure_list<Key> failures(n + (size_t) t.n_slots());
		device_array<Key> k(keys),
					v(values);
		uint64_t	size_before,
					size_after;
		counted<T>	counts(t);

		CUDA(t.size(&size_before, nullptr));
		if (absent)
			CUDA(t.insert_if_absent(k.p, v.p, n, failures.out(), nullptr));
		else
			CUDA(t.insert(k.p, v.p, n, failures.out(), nullptr));
		CUDA(t.size(&size_after, nullptr));

		auto		there = contents<T, Key>(t, &unique);
		size_t		m = failures.n();
		rhh::counters c = counts.get();

		CHECK(unique);
		CHECK(broken_invariants(t) == 0);
		CHECK(size_after == there.size());
		CHECK(c.failures == m);
		CHECK(c.operations == n);
		/* Merged.  (What does not fit before the ring's end moves a full table's entries.) */
		if (!absent && (max_dist < 64 || size_after < 0.9 * (double) t.n_slots()))
			CHECK(c.probes < n / 4);
		if (max_dist >= 64)
			CHECK(m == 0);
		if (absent || newest)
		{
			/* What came back may be any of a key's values, and what is there, too. */
			size_t		wrong = 0;

			for (auto &e : there)
				wrong += !map.count(e.first) || (m == 0 && !absent && map[e.first] != e.second);
			CHECK(wrong == 0);
			CHECK(with_failures(there, failures, reduce).size() == map.size());
			if (absent)
				for (auto &e : there)
					wrong += !batch_map.count(e.first) && map[e.first] != e.second;
			CHECK(wrong == 0);
		}
		else
			CHECK(with_failures(there, failures, reduce) == map);
		map = there;
		check_finds(t, map);
		if (round % 3 == 1)
		{
			std::vector<Key> gone;

			for (auto &e : map)
				if (rhh_mix64(e.first + round) % 4 == 0)
					gone.push_back(e.first);
			for (auto g : gone)
				map.erase(g);
			device_array<Key> g(gone);

			CUDA(t.erase(g.p, gone.size(), nullptr));
			CHECK((contents<T, Key>(t, &unique)) == map);
			CHECK(broken_invariants(t) == 0);
		}
	}
	simt_blocks(3);
	t.destroy();
}

/*
 * Some keys are most of a batch, more than a block's memory has room for, into an
 * empty table and one in use.
 */
template <typename Key>
static void
test_frequent_keys(const char *name)
{
	typedef rhh::table<Key, Key, rhh::sum> T;
	T			t;
	bool		unique;
	std::unordered_map<Key, Key> map;

	test_name = name;
	CUDA(t.create((uint64_t) 10000 * BEYOND_L2, nullptr, UINT32_MAX));
	for (int round = 0; round < 3; round++)
	{
		const size_t n = (size_t) t.n_slots() * 2;	/* two chunks */
		std::vector<Key> keys;
		counted<T>	counts(t);
		failure_list<Key> failures(n);

		for (size_t i = 0; i < n; i++)
		{
			uint64_t	x = next_random();

			keys.push_back(x % 8 < 6 ? (Key) 100
						   : x % 8 == 6 ? (x % 16 == 6 ? (Key) -1 : (Key) (101 + x / 16 % 3))
						   : (Key) next_random());
		}
		for (auto k : keys)
			map[k]++;
		insert(t, keys, std::vector<Key>(n, (Key) 1), failures);
		CHECK((contents<T, Key>(t, &unique)) == map);
		CHECK(unique);
		CHECK(failures.n() == 0);
		CHECK(broken_invariants(t) == 0);
		CHECK(counts.get().probes < n / 8);
	}
	t.destroy();
}

/*
 * Entries so far from home that a merge would not find them (their homes are
 * few): all is inserted one by one then, and right.
 */
static void
test_crowd_is_not_merged()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> T;
	T			t;
	bool		unique;
	std::unordered_map<uint32_t, uint32_t> map;
	std::vector<uint32_t> keys;
	failure_list<uint32_t> failures((size_t) 40000 * BEYOND_L2);

	test_name = "crowd";
	CUDA(t.create((uint64_t) 10000 * BEYOND_L2, nullptr, UINT32_MAX));

	const uint32_t n_buckets = t.device().b.n_buckets;
	const uint64_t part_slots = RHH_PART_BYTES / T::S::BYTES;

	/* More than two parts' worth of slots, all with homes in a few buckets. */
	while (keys.size() < 3 * part_slots)
	{
		/* mix is a bijection: try keys until one has such a home. */
		uint32_t	k = (uint32_t) next_random();
		uint32_t	home = rhh_home_of(rhh::mix::hash(k), n_buckets);

		if (home >= n_buckets / 2 && home < n_buckets / 2 + n_buckets / 64)
		{
			keys.push_back(k);
			map[k]++;
		}
	}
	insert(t, keys, std::vector<uint32_t>(keys.size(), 1u), failures);
	CHECK((contents<T, uint32_t>(t, &unique)) == map);
	CHECK(broken_invariants(t) == 0);

	std::vector<uint32_t> more(keys.begin(), keys.begin() + (long) (keys.size() / 2));

	while (more.size() < t.n_slots() / 2)
		more.push_back((uint32_t) next_random());
	for (auto k : more)
		map[k]++;
	insert(t, more, std::vector<uint32_t>(more.size(), 1u), failures);
	CHECK((contents<T, uint32_t>(t, &unique)) == map);
	CHECK(unique);
	CHECK(failures.n() == 0);
	CHECK(broken_invariants(t) == 0);
	check_finds(t, map);
	t.destroy();
}

static void
test_bulk()
{
	typedef rhh::table<uint32_t, uint32_t, rhh::sum> sum32;
	typedef rhh::table<uint64_t, uint64_t, rhh::sum> sum64;
	typedef rhh::table<uint32_t, uint32_t, rhh::replace> replace32;
	typedef rhh::table<uint64_t, uint64_t, rhh::replace> replace64;
	typedef rhh::table<uint32_t, uint32_t, rhh::sum, ~0u, 128> wide32;
	const uint64_t s32 = (uint64_t) 10000 * BEYOND_L2;
	const uint64_t s64 = (uint64_t) 5000 * BEYOND_L2;

	test_merges<sum32, uint32_t, rhh::sum>("merges, u32", s32, UINT32_MAX, 0.4, 5, false, false);
	test_merges<sum32, uint32_t, rhh::sum>("merges, u32, odd size", s32 + 1101, UINT32_MAX, 0.4, 5, false, false);
	test_merges<sum32, uint32_t, rhh::sum>("merges, u32, capped, overfull", s32, 8, 1.0, 4, false, false);
	test_merges<sum32, uint32_t, rhh::sum>("merges, u32, cap 1, odd size", s32 + 1101, 1, 0.7, 3, false, false);
	test_merges<sum64, uint64_t, rhh::sum>("merges, u64", s64, UINT32_MAX, 0.4, 5, false, false);
	test_merges<sum64, uint64_t, rhh::sum>("merges, u64, capped, overfull", s64 + 77, 8, 1.0, 4, false, false);
	test_merges<wide32, uint32_t, rhh::sum>("merges, 128-byte lines", s32, 3, 0.8, 4, false, false);
	test_merges<replace32, uint32_t, rhh::replace>("merges, replace", s32, UINT32_MAX, 0.4, 5, false, true);
	test_merges<replace64, uint64_t, rhh::replace>("merges, replace, u64", s64, UINT32_MAX, 0.4, 4, false, true);
	test_merges<sum32, uint32_t, rhh::sum>("merges, if absent", s32, UINT32_MAX, 0.4, 5, true, false);
	test_merges<sum64, uint64_t, rhh::sum>("merges, if absent, capped", s64, 4, 0.7, 4, true, false);
	test_frequent_keys<uint32_t>("frequent keys, u32");
	test_frequent_keys<uint64_t>("frequent keys, u64");
	test_crowd_is_not_merged();
}
