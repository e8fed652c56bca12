/*
 * robin_hood.cuh
 *		rhh::table behind the interface of table.cuh; uncapped, replacing.
 */
#ifndef ROBIN_HOOD_CUH
#define ROBIN_HOOD_CUH

#include "table/rhh_table.cuh"
#include "table.cuh"

template <typename Key, typename Value>
class robin_hood
{
public:
	typedef rhh::table<Key, Value, rhh::replace> table;

	static const char *name() { return "robin_hood"; }

	cudaError_t create(uint64_t n_slots, cudaStream_t stream)
	{
		cudaError_t error = cudaMalloc(&n_failed, sizeof *n_failed);

		if (error == cudaSuccess)
			error = cudaMemsetAsync(n_failed, 0, sizeof *n_failed, stream);
		if (error == cudaSuccess)
			error = t.create(n_slots, stream, UINT32_MAX);
		if (error == cudaSuccess)
			error = t.reserve(n_slots, stream);
		if (error != cudaSuccess)
			destroy();
		return error;
	}

	void destroy()
	{
		if (n_failed)
			cudaFree(n_failed);
		n_failed = nullptr;
		t.destroy();
	}

	cudaError_t clear(cudaStream_t stream) { return t.clear(stream); }

	/* What does not fit is only counted. */
	cudaError_t insert(const Key *keys, const Value *values, uint64_t n, int block_threads,
					   cudaStream_t stream)
	{
		t.block_threads = block_threads;
		return t.insert(keys, values, n, {nullptr, nullptr, n_failed}, stream);
	}

	cudaError_t find(const Key *keys, Value *values, uint64_t n, int block_threads,
					 cudaStream_t stream)
	{
		t.block_threads = block_threads;
		return t.find(keys, values, n, table_absent<Value>(), stream);
	}

	cudaError_t erase(const Key *keys, uint64_t n, int block_threads, cudaStream_t stream)
	{
		t.block_threads = block_threads;
		return t.erase(keys, n, stream);
	}

	cudaError_t size(uint64_t *n_entries, cudaStream_t stream) { return t.size(n_entries, stream); }
	uint64_t memory_bytes() const { return t.memory_bytes(); }

	table		t;

private:
	unsigned long long *n_failed = nullptr;
};

#endif							/* ROBIN_HOOD_CUH */
