/*
 * rhh_cuda_tuning.h
 *		The constants of the CUDA device, each with its reason.  Nothing here changes
 *		an answer.
 *
 * The constants of one kernel are in a policy type.  Those that a test sets from outside
 * are macros.
 */
#ifndef RHH_CUDA_TUNING_H
#define RHH_CUDA_TUNING_H

#include <stdint.h>

/*
 * Threads of a block, unless a kernel's policy says otherwise; a multiple of 32.  8 blocks
 * of 256 fill an SM of 2048 threads.  When an H100 groups rows into 10 to 5e7 groups, blocks
 * of 128 threads do from 6 % fewer to 2 % more rows a second, and blocks of 512 from 7 %
 * fewer to 5 % more.
 */
#define RHH_CUDA_BLOCK_THREADS 256

/*
 * The most blocks for each SM that a launch may have; they reach further rows by
 * striding.  This also bounds the number of tiles alive at once, and so the margin that
 * the list of orphans must have.
 */
#define RHH_CUDA_BLOCKS_PER_SM 8

/*
 * Upload buffers of a map, and so its batches in flight.  With two of them copying
 * overlaps with computing.  The other two hide the time from the end of a kernel, by way of
 * the eventfd, to the next submit: some 20 to 50 us, which is as long as the upload of a
 * batch of 1 to 3 MB takes.  A query that 15 workers feed does not show this: with 1, 2
 * and 8 it takes as long, within its noise.
 */
#define RHH_CUDA_IN_FLIGHT 4

/*
 * Reading pages: the threads of a block, which has a page at a time, and the most blocks for each
 * SM.  A page is on its way for some microseconds.  50M narrow rows took an H100 50 ms with 2 or 8
 * blocks for each SM, and 70 ms with 16 to 128 blocks in all.  Where a program computes, more
 * blocks hide that; but the last pages of a batch keep them all busy at once, while the bus is idle, and the kernels that
 * aggregate find no place.  TPC-H's queries 1, 3, 5, 6, 12 and 18 at scale 10 took an H200, the first time, 227, 293, 301,
 * 224, 277 and 346 ms with 8 blocks, and 223, 283, 272, 218, 269 and 338 with 4 (2026-11-27-h200-page-blocks.csv).
 */
#define RHH_CUDA_PAGE_THREADS 128
#define RHH_CUDA_PAGE_BLOCKS 2
#define RHH_CUDA_PAGE_BLOCKS_COMPUTING 4
#define RHH_CUDA_PAGE_AT_ONCE 8 /* for so many an SM is to have registers */

/*
 * The same of pages of the cache, which are read where they are.  A block has up to RUN of them at a time, but one more only if of
 * its threads GAIN times as many have a row then; and an SM has no more blocks than have so many PAGES, as these are to stay in its
 * cache from one pass to the next: with 24 pages wide rows took an H200 8 % longer, and so did they with a warp for each run of pages.
 * Of TPC-H's Q1, which has 52 rows in a page, a row took it 0.44 ns with 20 blocks of 64 threads for one page each, 0.42 where maxima
 * are kept with sums, and 0.41 with these; wide ones 0.22 and 0.21, and narrow ones the same as before
 * (2026-11-28-h200-cached-runs.csv).
 */
#ifndef RHH_CUDA_CACHED_RUN
#define RHH_CUDA_CACHED_RUN 3
#endif
#ifndef RHH_CUDA_CACHED_THREADS
#define RHH_CUDA_CACHED_THREADS 160
#endif
#ifndef RHH_CUDA_CACHED_BLOCKS
#define RHH_CUDA_CACHED_BLOCKS 8
#endif
#define RHH_CUDA_CACHED_PAGES 21
#define RHH_CUDA_CACHED_GAIN 1.05

/*
 * The same where all columns are plain (rhh_read_plain.cuh): a warp takes a page, and a thread has so many of its rows at a time, for
 * whose registers an SM has room for AT_ONCE blocks.  With 4 rows, or 3 blocks, narrow rows took an H200 as long; with the threads of a
 * block for two pages of 226 rows, as the other kernel has them, a fifth longer (2026-11-28-h200-plain-kernels.csv).
 * Where pages have just been copied the bus takes ten times as long, and fewer blocks do.
 */
#define RHH_CUDA_PLAIN_THREADS 256
#define RHH_CUDA_PLAIN_ROWS 2
#define RHH_CUDA_PLAIN_AT_ONCE 4
#define RHH_CUDA_PLAIN_BLOCKS 16
#define RHH_CUDA_PLAIN_COPIED_BLOCKS 2

/*
 * And of pages that have just been copied there, while the bus brings those of the next batch, for some ten times as long.  With 12
 * or 16 blocks of 64 threads, instead of 8, an H100 takes up to 2 % more for all (2026-11-28-h100-copied-page-blocks.csv).
 */
#define RHH_CUDA_COPIED_BLOCKS 3

/*
 * Where only parts of pages are copied the bus brings a batch sooner than columns are made of it by so few threads that have next to no
 * cache.  So these are more, and of an SM's memory, of which both kernels have to ask for the same share, shared memory gets so many
 * per cent, which is 132 kB of an H200's 228.  TPC-H's Q1 and Q3 at scale 10 took that 212 and 299 ms with 8 blocks of 64 threads and all
 * of it, and 199 and 270 with 16; on another one, 182 and 274 with 16 and 2 blocks for each SM that copy, and not 4, and 181 and 254 with this
 * share (2026-11-28-h200-part-blocks.csv).  Where whole pages are copied (Q12) less than all of it was up to 4 % slower.
 */
#define RHH_CUDA_COPIED_BLOCKS_PARTS 6
#define RHH_CUDA_PARTS_SHARED 57

/* For so many an SM has registers.  Some take no more than 1024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900 && __CUDA_ARCH__ != 800
#define RHH_CUDA_CACHED_AT_ONCE 6
#else
#define RHH_CUDA_CACHED_AT_ONCE RHH_CUDA_CACHED_BLOCKS
#endif

/*
 * Memory of the host that has pages is registered in slices of so many bytes.  One takes 10 to 20
 * ms, during which the caller waits.
 */
#ifndef RHH_CUDA_PAGE_SLICE
#define RHH_CUDA_PAGE_SLICE (UINT64_C(1) << 27)
#endif
#define RHH_CUDA_OS_PAGE 4096u

/*
 * The least bytes of an upload buffer.  The buffers are also the scratch memory of
 * finishing and extracting, which work in steps of this size.
 */
#define RHH_CUDA_MIN_STAGING_BYTES (1u << 20)

/*
 * Lanes (streams, events, pinned snapshots) that a device keeps for the next maps: as many as there are
 * maps at a time.  Making one costs a millisecond of calls.
 */
#define RHH_CUDA_KEPT_LANES 64

/*
 * Memory that maps give back and that is kept for the next ones: the most pieces, which share of the limit
 * they may have together, and the least bytes of one, a power of two.  A map whose batches have pages has 260 MB
 * of upload buffers.
 */
#define RHH_CUDA_MOST_SPARES 128
#define RHH_CUDA_SPARE_SHARE 8
#define RHH_CUDA_LEAST_SPARE ((uint64_t) 1 << 20)

/*
 * The slots with which a map starts, if the estimate is not higher and the limits allow
 * it: 512 KB of slots of 8 bytes, which fit the L2 cache.  A smaller map would have to run
 * with fewer tiles (RHH_CUDA_GROUPS_PER_TILE).  The case displacement_crowd of
 * test/device makes keys that crowd a map of this size.
 */
#define RHH_CUDA_START_SLOTS (1u << 16)

/* The fewest slots that a map may have. */
#define RHH_CUDA_MIN_SLOTS 256

/* Higher estimates are not believed, because growing costs less than being wrong. */
#define RHH_CUDA_MAX_START_SLOTS (1u << 27)

/*
 * A map of fewer slots grows fourfold, a larger one twofold.  The rehash of a small table
 * is nothing but latency (launches, cudaMalloc, a round trip through poll), so there
 * should be few of them.  This is about microseconds: a query with 1e6 groups where 200
 * were estimated takes as long with twofold growth, within its noise.
 */
#define RHH_CUDA_FOURFOLD_SLOTS (1u << 20)

/*
 * A map has SLACK * load_factor * slots group numbers: the slack is for those that tiles
 * hold in reserve.  But there are never more than FULL * slots, so that displacement
 * always finds an empty slot.
 */
#define RHH_CUDA_NUMBER_SLACK (17.0 / 16.0)
#define RHH_CUDA_FULL 0.97

/*
 * A tile takes group numbers in chunks, because one counter serves only 1.4 G atomic
 * operations a second, far fewer than a batch of new keys needs.  A chunk has at most
 * MAX_CHUNK numbers, and all tiles together have at most 1/16 of the numbers in reserve.
 */
#define RHH_CUDA_MAX_CHUNK 16
#define RHH_CUDA_CHUNK_SHARE 16

/*
 * A map must have so many group numbers for each tile of a launch.  When tiles race to
 * insert the same few keys each of them has a number in hand, and these must not be all
 * numbers of a small map.
 */
#define RHH_CUDA_GROUPS_PER_TILE 4

/*
 * The entries of the list of orphans, besides the margin of one for each tile.  An orphan
 * costs 16 bytes, and a probe at the end; a map with many of them should have grown.
 */
#define RHH_CUDA_ORPHANS (1u << 16)

/*
 * When rows are aggregated in shared memory first (rhh_aggregate.cuh).
 *
 * A batch in device memory with at least LOOK_ROWS rows is looked at: first LOOK_SAMPLE of
 * its rows and, if these have more groups than a local table holds, all of them.
 *
 * Other batches, which come over PCIe at 4 to 5 G rows/s, are aggregated if their map
 * has few groups, at most MAX_GROUPS: on an H100 additions to 16 words of device memory
 * run at 3.3 G/s, to 1024 words at 19.5.  A block enters each group once, so it should
 * have several rows for each: ROWS_PER_GROUP, and at least MIN_ROWS.
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
 * A unit has no more rows than this, or than a block's share of all rows if that is
 * more.  So a frequent key does not become the work of one block.
 */
#ifndef RHH_CUDA_UNIT_ROWS
#define RHH_CUDA_UNIT_ROWS (1u << 16)
#endif
#define RHH_CUDA_UNITS_BLOCKS 32
#define RHH_CUDA_UNITS_THREADS 1024

/*
 * The counters of the parts are so many words apart, because atomic operations on one
 * sector wait for each other.  At 1e6 groups (512 parts) an H100 does 20.6 G rows/s if
 * they are side by side, and 23.3 with 8.
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

/* The most bits of the fingerprint by which two passes sort. */
#define RHH_CUDA_MAX_PART_BITS 16

/*
 * What the caller expects is multiplied by this for the first table: it is estimated from a sample, and to have
 * guessed too low costs a rehash, but more slots cost next to nothing.  Of 10^7 keys in 5 x 10^7 rows ANALYZE, which looks at 30,000 of
 * these, expects 7 to 8 million; with 1.125 the query took an H200 23 ms, and takes 18 (2026-11-28-h200-plain-billion.csv).
 */
#define RHH_CUDA_START_SLACK 1.5

/* Where there is no memory for it, so much of it is tried next, and so on: after 1.5 times as much as is expected 1.125 times. */
#define RHH_CUDA_START_LESS 0.75

/* Estimates are multiplied by this: they err by 1.6 %, and parts differ in size. */
#define RHH_CUDA_ESTIMATE_SLACK 1.06

/* Slots that a lane has in hand when compacting: one atomic operation for 256 slots. */
#define RHH_CUDA_COMPACT_ITEMS 8

/*
 * Groups of another map that become one piece of rows: so many that a piece is worth
 * partitioning, and so few that their memory is a small part of the device's.  It is at
 * most 1 / RHH_CUDA_FEED_SHARE of a limit, and with less than RHH_CUDA_FEED_MIN_GROUPS
 * memory of its own is not worth while.
 */
#define RHH_CUDA_FEED_GROUPS (1u << 22)
#define RHH_CUDA_FEED_MIN_GROUPS (1u << 14)
#define RHH_CUDA_FEED_SHARE 8

/*
 * The first segment of the rows that a map keeps has an eighth to a quarter of those that
 * are expected, but no more than 2^MAX_BITS: the estimate may be wrong.  Every segment is
 * a call of cudaMalloc.
 */
#define RHH_CUDA_MAX_SEGMENT_BITS 22

/*
 * Slots of the index for each kept row, so that with linear probing a search reads 1.5
 * slots of 8 bytes if it finds its key, and 2.5 if it does not.  With less memory it is
 * the second number: 2.5 and 8.5.
 */
#define RHH_CUDA_INDEX_SLOTS 2.0
#define RHH_CUDA_INDEX_FEW_SLOTS (4.0 / 3.0)

/*
 * An index is direct if the keys lie so close together: so many slots of 8 bytes for each kept
 * row are no more than what a hash table takes whose slots have 16 bytes.
 */
#define RHH_CUDA_DIRECT_SLOTS 4.0

/*
 * Slots of the index that carry bytes of their rows' records have 16 bytes instead of 8, but a
 * probe then reads one line instead of two.  In G probes/s of an H100 (key and value of 4 bytes,
 * summed up in one group) that makes 22 of 14 with 1e7 rows, and 30 of 29.7 with 1e6, whose
 * index and records fit half of the L2 cache without (a half, because each part of the chip
 * has copies of what it reads of the other part's); and finishing takes a tenth longer.
 */
#define RHH_CUDA_CARRY_CACHE 0.5

/*
 * And they are made only if so many times what they take is left, because build sides that come
 * later need memory, too.
 */
#define RHH_CUDA_CARRYING_SHARE 4

/*
 * Rows that a thread has in hand at a time when it keeps rows, or looks for them.  One atomic
 * operation for so many rows of a block makes 18 us of 32 when 1e6 rows are kept (with one for
 * each warp, 31,000 are added to the same word).  Of probes two are enough: with 1, 2 and 4 an
 * H100 does 24, 27 and 19 G probes/s, because registers leave room for 1280, 1024 and 512 threads
 * of an SM.
 */
#define RHH_CUDA_KEEP_ITEMS 4
#define RHH_CUDA_PROBE_ITEMS 2

/*
 * Threads of a block of the probe kernel, and blocks of an SM.  The threads of a block wait
 * for each other twice for each two rows: 26.8, 29.7 and 30.5 G probes/s with 256, 128 and 64.
 * With more blocks registers are spilled, and it is half of that.
 */
#define RHH_CUDA_PROBE_THREADS 64
#define RHH_CUDA_PROBE_BLOCKS 16

/* The most joins that the probe kernel does, which is compiled for each number of them. */
#define RHH_CUDA_PROBE_JOINS 4

/*
 * Rows of a join's output that are made at a time, at most: a piece has no more than a batch
 * may have.  Batches that lie on the device have many more rows than those of sessions; for
 * those there are so many because each piece costs some five launches and a look by the host.
 * Each batch in flight has memory for so many.  If
 * this is more than 1 / SHARE of a limit a piece has fewer, but not less than
 * MIN_PIECE_ROWS.  test/device_test_simt is compiled with less, so that small batches
 * have many pieces.
 */
#ifndef RHH_CUDA_PIECE_ROWS
#define RHH_CUDA_PIECE_ROWS (1u << 23)
#endif
#define RHH_CUDA_MIN_PIECE_ROWS 64
#define RHH_CUDA_PIECE_SHARE 4

/* If no limit is set, maps may use this part of the memory that is free at open. */
#define RHH_CUDA_FREE_SHARE 0.9

#endif							/* RHH_CUDA_TUNING_H */
