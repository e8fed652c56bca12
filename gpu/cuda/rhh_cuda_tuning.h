/*
 * rhh_cuda_tuning.h
 *		Constants of the CUDA device, each with its reason.  Nothing here
 *		changes an answer.
 */
#ifndef RHH_CUDA_TUNING_H
#define RHH_CUDA_TUNING_H

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
 * Steps of one chain of displacements before the carried entry becomes an
 * orphan.  Ordinary chains have a few steps even at a load of 0.95; this only
 * bounds the time that a hostile set of keys can cost.
 */
#define RHH_CUDA_MAX_CHAIN 4096

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
 * Threads of its blocks, of which two are to an SM, and rows that a thread has in
 * hand: more where there are few groups.  An H100, 4 + 8 bytes a row, G rows/s at
 * 10 and at 1000 groups: 2 rows 102 and 78, 4 rows 130 and 91, 8 rows 147 and 83.
 * Three blocks to an SM, with fewer registers each: as two.  A slot's copies side by
 * side and with tags of their own, so that lanes have banks of their own: half the
 * wavefronts in shared memory, but 131 instead of 148, for the instructions count.
 */
#define RHH_CUDA_AGGREGATE_THREADS 512
#define RHH_CUDA_AGGREGATE_ITEMS 4
#define RHH_CUDA_AGGREGATE_ITEMS_FEW 8

/*
 * A local table: at most so many bytes of shared memory, so that two blocks have
 * room; copies of it while all of them have at most COPIES_BYTES.  By the estimate
 * it is to be filled to FEW at most where it may be larger, to FILL where it may
 * not; 32 probes can bear more.  At 1000 groups and 0.6 an H100 does 91 G rows/s, at
 * 0.45 113; but 0.45 takes twice the parts.
 */
#ifndef RHH_CUDA_LOCAL_BYTES
#define RHH_CUDA_LOCAL_BYTES (97u << 10)
#endif
#define RHH_CUDA_LOCAL_FILL 0.6
#define RHH_CUDA_LOCAL_FILL_FEW 0.45
#define RHH_CUDA_LOCAL_PROBES 32
#define RHH_CUDA_LOCAL_COPIES_BYTES (26u << 10)

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
 * Threads of the scatter kernel, with 16 rows each (RHH_SCATTER_ITEMS): the runs in
 * which rows leave are twice as long as with 8, and a block to an SM does.  At 1e6
 * groups 29.8 G rows/s instead of 23.3; two blocks, with half the registers: 22.4.
 */
#define RHH_CUDA_SCATTER_THREADS 512

/*
 * Buckets and slots that a block writes of an empty table, rather than entering
 * its groups one by one: more than those of a full local table, at a load of 0.6.
 */
#define RHH_CUDA_BUILD_BUCKETS 640
#define RHH_CUDA_BUILD_SLOTS 4096

/* Groups for each that is stashed when building: measured 1 in 100 and less. */
#define RHH_CUDA_STASH_SHARE 32

/* Two passes make so many bits of parts. */
#define RHH_CUDA_MAX_PART_BITS 16

/* The estimate errs by 1.6 %, and parts differ. */
#define RHH_CUDA_ESTIMATE_SLACK 1.06

/* Slots that a lane has in hand when compacting: one atomic for 256. */
#define RHH_CUDA_COMPACT_ITEMS 8

/*
 * Groups of another table that become one piece of rows: so many that a piece is worth
 * partitioning, and so few that their memory, which is beside the table's, is not too
 * much of a limit.
 */
#define RHH_CUDA_FEED_GROUPS (1u << 22)
#define RHH_CUDA_FEED_MIN_GROUPS (1u << 14)
#define RHH_CUDA_FEED_SHARE 8

/* Part of what is free at open that tables may use if no limit is set. */
#define RHH_CUDA_FREE_SHARE 0.9

#endif							/* RHH_CUDA_TUNING_H */
