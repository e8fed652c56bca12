/*
 * table.cuh
 *		What the tables in here have in common, so that one benchmark and one
 *		test serve all.
 *
 * Each file is one published table, written anew from its paper's description
 * for comparison with gpu/table/rhh_table.cuh; nothing in src/ or gpu/ uses them.  A
 * table is a class (template over key and value, unsigned integers of 4 or 8
 * bytes) with these members, all asynchronous on the stream unless they return
 * something to the host:
 *
 *	static const char *name()
 *		of the CSV files: lower case, underscores.
 *	cudaError_t create(uint64_t n_slots, cudaStream_t stream)
 *		allocates for n_slots entries, empty.
 *	void destroy()
 *		may be called again, and for a table that was never created.
 *	cudaError_t clear(cudaStream_t stream)
 *	cudaError_t insert(const Key *keys, const Value *values, uint64_t n,
 *					   int block_threads, cudaStream_t stream)
 *		an equal key's value is replaced; of equal keys in one call any one's
 *		value is kept.
 *	cudaError_t find(const Key *keys, Value *values, uint64_t n,
 *					 int block_threads, cudaStream_t stream)
 *		values[i] becomes the value or table_absent<Value>().
 *	cudaError_t erase(const Key *keys, uint64_t n, int block_threads,
 *					  cudaStream_t stream)
 *		where the table has it.
 *	cudaError_t size(uint64_t *n_entries, cudaStream_t stream)
 *		waits for the stream.
 *	uint64_t memory_bytes() const
 *		device memory held, everything included.
 *
 * Keys of all ones are reserved (table_empty) unless a table says otherwise.
 */
#ifndef TABLE_CUH
#define TABLE_CUH

#include "table/rhh_tile.cuh"

template <typename T>
static __host__ __device__ inline T
table_empty()
{
	return (T) ~(T) 0;
}

template <typename T>
static __host__ __device__ inline T
table_absent()
{
	return (T) ~(T) 0;
}

/* Returns the error to the caller of the calling function. */
#define TABLE_TRY(call) \
	do { \
		cudaError_t table_error = (call); \
		if (table_error != cudaSuccess) \
			return table_error; \
	} while (0)

/* Blocks of a launch of one thread (or lane) an item, striding beyond that. */
static inline unsigned
table_blocks(uint64_t n_threads, int block_threads)
{
	uint64_t	blocks = (n_threads + block_threads - 1) / block_threads;
	uint64_t	most = UINT64_C(1) << 20;

	return (unsigned) (blocks == 0 ? 1 : blocks < most ? blocks : most);
}

#endif							/* TABLE_CUH */
