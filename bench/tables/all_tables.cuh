/*
 * all_tables.cuh
 *		The tables that the benchmarks and their plots have: one line each.
 */
#ifndef ALL_TABLES_CUH
#define ALL_TABLES_CUH

#include "compact_cuckoo.cuh"
#include "compact_iceberg.cuh"
#include "linear_probing.cuh"
#include "robin_hood.cuh"
#include "slab_hash.cuh"
#include "sort_find_or_put.cuh"

/* VALUES: stores them; else find gives 1. */
template <typename Table, bool VALUES = true>
struct table_tag
{
	typedef Table table;
	static const bool has_values = VALUES;
};

/*
 * visit(table_tag<T>()) for each table.cuh table with keys and values of this
 * type, uint32_t or uint64_t.
 */
template <typename Word, typename Visit>
static void
for_each_table(Visit &&visit)
{
	visit(table_tag<robin_hood<Word, Word>>());
	visit(table_tag<linear_probing<Word, Word, LINEAR_TWO_STEP>>());
	visit(table_tag<linear_probing<Word, Word, LINEAR_ONE_CAS>>());
	visit(table_tag<linear_probing<Word, Word, LINEAR_REUSE>>());
	if constexpr (sizeof(Word) == 4)
	{
		visit(table_tag<slab_hash<>>());
		visit(table_tag<compact_table<compact_iceberg<Word, uint32_t, uint32_t, 32>,
			  Word, Word, 32>, false>());
		/* sorted first: equal keys in one call */
		visit(table_tag<compact_table<sort_find_or_put<compact_cuckoo<Word, uint32_t, 32>>,
			  Word, Word, 32>, false>());
	}
}

/* visit(table_tag<T>()) for each compact set of 64-bit keys. */
template <typename Visit>
static void
for_each_compact_set(Visit &&visit)
{
	typedef uint64_t Key;

	visit(table_tag<compact_iceberg<Key, uint16_t, uint32_t, 32>>());
	visit(table_tag<compact_iceberg<Key, uint32_t, uint32_t, 16>>());
	visit(table_tag<compact_iceberg<Key, uint32_t, uint32_t, 32>>());
	visit(table_tag<compact_iceberg<Key, uint64_t, uint64_t, 16>>());
	visit(table_tag<compact_cuckoo<Key, uint32_t, 16>>());
	visit(table_tag<compact_cuckoo<Key, uint32_t, 32>>());
	visit(table_tag<compact_cuckoo<Key, uint64_t, 16>>());
	visit(table_tag<sort_find_or_put<compact_cuckoo<Key, uint32_t, 32>>>());
	visit(table_tag<sort_find_or_put<compact_cuckoo<Key, uint64_t, 16>>>());
}

/* Compact iceberg tables that differ in the width of slots and size of buckets. */
template <typename P, typename S, int BUCKET_SLOTS>
struct remainder_tag
{
	typedef compact_iceberg<uint64_t, P, S, BUCKET_SLOTS> table;
	static const int BUCKET = BUCKET_SLOTS;
	static const int SLOT_BITS = 8 * sizeof(P);
	static const int SLOT2_BITS = 8 * sizeof(S);
};

/* visit(remainder_tag<...>()); of a size of bucket the widest slots first. */
template <typename Visit>
static void
for_each_remainder_set(Visit &&visit)
{
	visit(remainder_tag<uint64_t, uint64_t, 8>());
	visit(remainder_tag<uint32_t, uint32_t, 8>());
	visit(remainder_tag<uint16_t, uint32_t, 8>());
	visit(remainder_tag<uint64_t, uint64_t, 16>());
	visit(remainder_tag<uint32_t, uint32_t, 16>());
	visit(remainder_tag<uint16_t, uint32_t, 16>());
	visit(remainder_tag<uint64_t, uint64_t, 32>());
	visit(remainder_tag<uint32_t, uint32_t, 32>());
	visit(remainder_tag<uint16_t, uint32_t, 32>());
}

#endif							/* ALL_TABLES_CUH */
