/*
 * rhh_cuda_tuning.h
 *		Constants of the CUDA device, each with its reason.  Nothing here
 *		changes an answer.
 */
#ifndef RHH_CUDA_TUNING_H
#define RHH_CUDA_TUNING_H

#include <stdint.h>

/*
 * Threads of every block.  A multiple of 32; 8 blocks of 256 fill an SM of
 * 2048 threads.  Group-by on an H100, 10 to 5e7 groups: blocks of 128 threads do from
 * 6 % fewer to 2 % more rows a second, blocks of 512 from 7 % fewer to 5 % more.
 */
#define RHH_CUDA_BLOCK_THREADS 256

/*
 * Blocks an SM that a launch may have; further rows are reached by striding.
 * Also bounds the tiles alive at once, on which the margin of the orphan list
 * rests.
 */
#define RHH_CUDA_BLOCKS_PER_SM 8

/*
 * Upload buffers, and so batches in flight, of a table.  Two overlap copying
 * with computing; the other two hide the way from a kernel's end over the
 * eventfd to the next submit, some 20 to 50 us, as long as the upload of a
 * batch of 1 to 3 MB itself takes.  A query that 15 workers feed does not show it: with
 * 1, 2 and 8 it takes as long, within its noise.
 */
#define RHH_CUDA_IN_FLIGHT 4

/*
 * Least bytes of an upload buffer.  The buffers are also the scratch space of
 * finishing and extracting, which go in steps of this size.
 */
#define RHH_CUDA_MIN_STAGING_BYTES (1u << 20)

/*
 * Work lanes (streams, events, upload buffers) that a device keeps for the
 * next table: making one costs a millisecond of calls (cudaMalloc 0.2 ms a
 * GiB, pinning).
 */
#define RHH_CUDA_KEPT_LANES 2

/*
 * Slots of a table without a better estimate, where the limits allow: 512 KB
 * of slots of 8 bytes, in L2 as a whole.  Smaller ones would have to run with
 * fewer tiles (RHH_CUDA_GROUPS_PER_TILE).
 */
#define RHH_CUDA_START_SLOTS (1u << 16)

/* Slots of the smallest table that is worth being one. */
#define RHH_CUDA_MIN_SLOTS 256

/* An estimate above this is not believed; growing costs less than being wrong. */
#define RHH_CUDA_MAX_START_SLOTS (1u << 27)

/*
 * Below this many slots a table grows fourfold, above twofold.  A rehash of a
 * small table is all latency (launches, cudaMalloc, a round trip through
 * poll), so have fewer of them.  That is microseconds: a query with 1e6 groups where
 * 200 were estimated takes as long with twofold growth, within its noise.
 */
#define RHH_CUDA_FOURFOLD_SLOTS (1u << 20)

/*
 * Group numbers a table has, as a multiple of load_factor * slots: the room
 * for numbers that tiles hold in reserve.  Never more than FULL of the slots,
 * so that displacement always finds an empty one.
 */
#define RHH_CUDA_NUMBER_SLACK (17.0 / 16.0)
#define RHH_CUDA_FULL 0.97

/*
 * A tile takes group numbers in chunks: one counter serves 1.4 G atomics/s,
 * far below the rate of a batch of new keys.  A chunk is at most MAX_CHUNK,
 * and all tiles together hold at most 1/16 of the numbers in reserve.
 */
#define RHH_CUDA_MAX_CHUNK 16
#define RHH_CUDA_CHUNK_SHARE 16

/*
 * Numbers a table must have for each tile of a launch: tiles racing to insert
 * the same few keys each hold a number, and those may not use a small table's
 * up.
 */
#define RHH_CUDA_GROUPS_PER_TILE 4

/*
 * Entries of the orphan list above the margin of one per tile.  An orphan
 * costs 16 bytes and a probe at the end; a table with many should have grown.
 */
#define RHH_CUDA_ORPHANS (1u << 16)

/*
 * Aggregating in shared memory first (rhh_aggregate.cuh).  A batch in device
 * memory of at least LOOK_ROWS rows is looked at: LOOK_SAMPLE of its rows, and if
 * they have more groups than a local table holds, all.  Of smaller ones, which
 * come over PCIe at 4 to 5 G rows/s, those whose table has few groups are
 * aggregated: on an H100 adds to 16 words of device memory run at 3.3 G/s, to
 * 1024 at 19.5.  A block needs several rows a group, as it enters each once.
 */
#define RHH_CUDA_LOOK_ROWS (1u << 20)
#define RHH_CUDA_LOOK_SAMPLE (1u << 16)
#define RHH_CUDA_LOCAL_MAX_GROUPS 512
#define RHH_CUDA_LOCAL_ROWS_PER_GROUP 4
#define RHH_CUDA_LOCAL_MIN_ROWS 1024

/*
 * Bytes of shared memory that a local table may have.  Two blocks of the aggregate
 * kernel then fit an SM.  test/device_test_simt is compiled with less, so that small
 * batches need many local tables.
 */
#ifndef RHH_CUDA_LOCAL_BYTES
#define RHH_CUDA_LOCAL_BYTES (97u << 10)
#endif

/* The aggregate kernel, which has a local table of groups in each block. */
struct rhh_aggregate_policy
{
	/*
	 * Threads of a block, and blocks for which an SM has registers.  Three blocks with
	 * fewer registers each are no faster than two.
	 */
	static constexpr uint32_t THREADS = 512;
	static constexpr uint32_t BLOCKS_PER_SM = 2;

	/*
	 * Rows that a thread has in hand at a time: more where there are few groups.  An
	 * H100, 4 + 8 bytes a row, does at 10 and at 1000 groups, in G rows/s: 102 and 78
	 * with 2 rows, 130 and 91 with 4, 147 and 83 with 8.
	 */
	static constexpr int ITEMS = 4;
	static constexpr int ITEMS_FEW = 8;

	/*
	 * A local table with few slots is made in several copies, which together have at
	 * most COPIES_BYTES.  To give each copy tags of its own, side by side so that each
	 * lane has its own bank, halves the wavefronts in shared memory; but an H100 then
	 * does 131 G rows/s instead of 148, because there are more instructions.
	 */
	static constexpr uint32_t LOCAL_BYTES = RHH_CUDA_LOCAL_BYTES;
	static constexpr uint32_t COPIES_BYTES = 26u << 10;

	/*
	 * How full a local table is to be by the estimate of its groups: FILL_FEW where it
	 * may be larger, FILL where it may not.  PROBES slots are looked at for a key, which
	 * is enough for a fuller table.  At 1000 groups an H100 does 91 G rows/s with a fill
	 * of 0.6 and 113 with 0.45; but with 0.45 twice as many parts are needed.
	 */
	static constexpr double FILL = 0.6;
	static constexpr double FILL_FEW = 0.45;
	static constexpr int PROBES = 32;

	/*
	 * Buckets and slots that a block writes when it builds its part of an empty table
	 * instead of entering the part's groups one by one.  That is more than a full local
	 * table needs, at a load of 0.6.
	 */
	static constexpr uint32_t BUILD_BUCKETS = 640;
	static constexpr uint32_t BUILD_SLOTS = 4096;

	/*
	 * The stash takes one group of STASH_SHARE; measured were 1 in 100 and fewer.  Of
	 * one part it takes STASH_OF_PART at most: a local table of twice as many slots,
	 * in which PROBES are looked at, has a slot for each of these.
	 */
	static constexpr uint32_t STASH_SHARE = 32;
	static constexpr uint32_t STASH_OF_PART = PROBES;
};

/*
 * Rows of a unit at most, or what a block has of all rows if that is more, so that
 * a frequent key is not one block's work.
 */
#ifndef RHH_CUDA_UNIT_ROWS
#define RHH_CUDA_UNIT_ROWS (1u << 16)
#endif
#define RHH_CUDA_UNITS_BLOCKS 32
#define RHH_CUDA_UNITS_THREADS 1024

/*
 * Words from counter to counter of the parts: atomics on one sector wait in turn.
 * At 1e6 groups (512 parts) an H100 does 20.6 G rows/s without, 23.3 with 8.
 */
#define RHH_CUDA_BEGIN_STRIDE 8

/*
 * The scatter kernel, which moves rows to their parts.  With 16 rows for each thread
 * the runs in which rows leave a block are twice as long as with 8, and one block to
 * an SM is enough.  At 1e6 groups an H100 does 29.8 G rows/s instead of 23.3; with two
 * blocks, each with half of the registers, 22.4.
 */
struct rhh_scatter_policy
{
	static constexpr uint32_t THREADS = 512;
	static constexpr int ITEMS = 16;	/* rows that a thread has at a time */
	static constexpr uint32_t ROWS = ITEMS * THREADS;	/* of a block, so of a unit */
};

/* Two passes make so many bits of parts. */
#define RHH_CUDA_MAX_PART_BITS 16

/* The estimate errs by 1.6 %, and parts differ. */
#define RHH_CUDA_ESTIMATE_SLACK 1.06

/* Slots that a lane has in hand when compacting: one atomic for 256. */
#define RHH_CUDA_COMPACT_ITEMS 8

/* Part of what is free at open that tables may use if no limit is set. */
#define RHH_CUDA_FREE_SHARE 0.9

#endif							/* RHH_CUDA_TUNING_H */
