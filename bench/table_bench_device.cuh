/*
 * table_bench_device.cuh
 *		The adaptor between the group-by benchmark and gpu/rhh_device.h: rows in
 *		device memory go in, groups come out, and the device's own times.
 *
 * All rows are one batch, on the device already; putting them together as one is
 * outside of all times.  kernel_ms is what the device says its kernels took.  It
 * is told nothing of the groups.
 *
 * Without a GPU (simt.h) the CPU device stands in for the CUDA device; it has
 * the same interface.
 */
#ifndef TABLE_BENCH_DEVICE_CUH
#define TABLE_BENCH_DEVICE_CUH

#include "rhh_device.h"
#include "table_bench.cuh"

#include <poll.h>

struct bench_device_times
{
	double		setup_ms,
				kernel_ms,
				extract_ms;
};

class bench_device
{
public:
	bench_device() = default;
	bench_device(const bench_device &) = delete;
	bench_device &operator=(const bench_device &) = delete;
	~bench_device()
	{
		close();
	}

	bool is_open() const
	{
		return dev_ != nullptr;
	}
	/* What went wrong in open() or aggregate(). */
	const char *why() const
	{
		return err_.message;
	}

	bool open(uint64_t max_rows)
	{
		rhh_device_config config = {};

		if (cudaMalloc(&rows_, 2 * aligned(8 * max_rows) + aligned(max_rows / 8 + 8)) != cudaSuccess)
		{
			(void) cudaGetLastError();
			rows_ = nullptr;
			snprintf(err_.message, sizeof err_.message, "could not allocate device memory for the rows");
			return false;
		}
		if (ops().open(0, &config, &dev_, &err_) != RHH_OK)
		{
			dev_ = nullptr;
			close();
			return false;
		}
		return true;
	}

	void close()
	{
		if (dev_)
			ops().close(dev_);
		cudaFree(rows_);
		dev_ = nullptr;
		rows_ = nullptr;
	}

	/*
	 * sum(value), and count(*) if wanted, by key; emit(key, sum, count or 0) for each
	 * group.  False: why().
	 */
	template <typename Emit>
	bool aggregate(int key_bytes, const void *keys, const uint64_t *values, uint64_t n,
				   bool counts, bench_device_times *times, Emit &&emit)
	{
		rhh_map_spec spec = {};
		rhh_map_stats stats;
		bool		ok;

		BENCH_TRY(cudaMemcpy(rows_, keys, n * key_bytes, cudaMemcpyDeviceToDevice));
		BENCH_TRY(cudaMemcpy(rows_ + aligned(n * key_bytes), values, n * 8, cudaMemcpyDeviceToDevice));
		spec.n_columns = 2;
		spec.n_keys = 1;
		spec.column_bytes[0] = (uint8_t) key_bytes;
		spec.column_bytes[1] = 8;
		spec.n_states = counts ? 2 : 1;
		spec.states[0] = {RHH_SUM_I64, 1, -1};
		spec.states[1] = {RHH_COUNT, -1, -1};
		spec.max_probe_buckets = 64;
		spec.load_factor = 0.85f;
		spec.max_batch_rows = (uint32_t) n;
		if (ops().map_create(dev_, &spec, &table_, &err_) != RHH_OK)
			return false;
		ok = submit(key_bytes, n) && finish() && extract(spec, emit);
		ops().map_stats(table_, &stats);
		*times = {0, stats.kernel_ns / 1e6, stats.extract_ns / 1e6};
		ops().map_destroy(table_);
		return ok;
	}

private:
	static const uint32_t EXTRACT_GROUPS = 1 << 20;

	rhh_device *dev_ = nullptr;
	rhh_map  *table_ = nullptr;
	rhh_error	err_ = {};
	uint8_t    *rows_ = nullptr;	/* the batch */
	uint32_t	in_flight_ = 0;
	bool		event_seen_ = false;	/* of finish or extract */

	static const rhh_device_ops &ops()
	{
#if defined(__CUDACC__)
		return rhh_cuda_ops;
#else
		return rhh_cpu_ops;
#endif
	}

	static uint64_t aligned(uint64_t bytes)
	{
		return (bytes + 63) & ~(uint64_t) 63;
	}

	bool submit(int key_bytes, uint64_t n)
	{
		rhh_batch	batch = {};

		batch.base = rows_;
		batch.on_device = true;
		batch.n_rows = (uint32_t) n;
		batch.values_offset[1] = (uint32_t) aligned(n * key_bytes);
		batch.used_bytes = (uint32_t) (batch.values_offset[1] + n * 8);
		batch.refused_offset = (uint32_t) aligned(batch.used_bytes);
		if (ops().map_submit(table_, &batch, 0, &err_) != RHH_OK)
			return false;
		in_flight_++;
		while (in_flight_ > 0)
			if (!wait())
				return false;
		return true;
	}

	bool finish()
	{
		event_seen_ = false;
		if (ops().map_finish(table_, &err_) != RHH_OK)
			return false;
		while (!event_seen_)
			if (!wait())
				return false;
		return true;
	}

	template <typename Emit>
	bool extract(const rhh_map_spec &spec, Emit &&emit)
	{
		const uint32_t n_words = rhh_result_words(&spec);
		const uint32_t state = rhh_first_state_word(&spec);
		std::map<uint64_t, std::pair<uint64_t, uint64_t>> to_merge;
		std::vector<uint64_t> words((size_t) n_words * EXTRACT_GROUPS);
		rhh_result	result = {};

		result.words = words.data();
		result.capacity_groups = EXTRACT_GROUPS;
		do
		{
			event_seen_ = false;
			if (ops().map_extract(table_, &result, 0, &err_) != RHH_OK)
				return false;
			while (!event_seen_)
				if (!wait())
					return false;
			for (uint32_t i = 0; i < result.n_groups; i++)
			{
				uint64_t	key = words[EXTRACT_GROUPS + i];
				uint64_t	sum = words[(size_t) state * EXTRACT_GROUPS + i];
				uint64_t	count = spec.n_states == 1 ? 0
					: words[(size_t) (state + 1) * EXTRACT_GROUPS + i];

				/* These come first, and their keys perhaps again. */
				if (result.needs_merge)
				{
					to_merge[key].first += sum;
					to_merge[key].second += count;
					continue;
				}
				if (!to_merge.empty())
				{
					auto		other = to_merge.find(key);

					if (other != to_merge.end())
					{
						sum += other->second.first;
						count += other->second.second;
						to_merge.erase(other);
					}
				}
				emit(key, sum, count);
			}
		} while (!result.last);
		for (const auto &m : to_merge)
			emit(m.first, m.second.first, m.second.second);
		return true;
	}

	/* Some events. */
	bool wait()
	{
		rhh_event	events[16];
		uint32_t	n = 0;
		struct pollfd fd = {ops().event_fd(dev_), POLLIN, 0};

		::poll(&fd, 1, 1000);
		if (ops().poll(dev_, events, 16, &n, &err_) != RHH_OK)
			return false;
		for (uint32_t i = 0; i < n; i++)
		{
			if (events[i].status != RHH_OK)
			{
				snprintf(err_.message, sizeof err_.message, "an event has status %d",
						 (int) events[i].status);
				return false;
			}
			if (events[i].kind != RHH_EVENT_BATCH)
				event_seen_ = true;
			else
			{
				in_flight_--;
				if (events[i].n_refused > 0)
				{
					snprintf(err_.message, sizeof err_.message, "%u rows of a batch failed",
							 events[i].n_refused);
					return false;
				}
			}
		}
		return true;
	}
};

#endif							/* TABLE_BENCH_DEVICE_CUH */
