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

#endif							/* ALL_TABLES_CUH */
