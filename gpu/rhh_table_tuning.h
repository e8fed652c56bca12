/*
 * rhh_table_tuning.h
 *		Constants of the table, each with the measurement behind it.  But for
 *		the probe cap nothing here changes an answer.
 */
#ifndef RHH_TABLE_TUNING_H
#define RHH_TABLE_TUNING_H

/*
 * Bytes of a bucket.  An H100 reads 32.6 G random lines of 64 bytes a second, as
 * many as of 32, and 23.5 G of 128.  Buckets read a key, at a load of 0.9845:
 * 1.46 of 64 bytes with hints, 2.83 of 128 without.
 */
#define RHH_LINE_BYTES 64

/*
 * The probe cap, in buckets, unless the caller says otherwise; what is beyond it
 * is handed back, so it does change answers.
 */
#define RHH_DEFAULT_MAX_DIST 8

#ifndef RHH_TABLE_BLOCK_THREADS
#define RHH_TABLE_BLOCK_THREADS 256
#endif

/*
 * Keys a thread has, one after the other; one, if it takes less than so many blocks
 * an SM to insert them: 65536 with 4 were 64 blocks.
 */
#ifndef RHH_TABLE_ITEMS
#define RHH_TABLE_ITEMS 4
#endif
#define RHH_TABLE_BLOCKS_PER_SM 8

/*
 * Hints are used above a load that depends on the slots of a bucket: keys are
 * some load / (2 * slots * (1 - load)) buckets away from home, and above 0.8 a
 * hint is less than the lines it saves.  On an H100 the L2 cache's requests bind,
 * 3 for a line that comes from device memory, 1 to 1.5 for a hint.  M finds/s,
 * without and with hints: 8 slots at a load of 0.84, 20300 and 16000; at 0.94,
 * 13500 and 14600; 4 slots at 0.85, 15400 and 14200; at 0.95, with them, 13300.
 */
#define RHH_HINTS_WORTH(size, n_slots, slots) \
	((size) * (8 * (slots) + 5) > (n_slots) * (8 * (slots)))

/* Making hints reads the table: not for less than one key for so many slots. */
#ifndef RHH_HINTS_SLOTS_PER_KEY
#define RHH_HINTS_SLOTS_PER_KEY 16
#endif

/*
 * Keys are partitioned when the table's slots have more bytes than this part of
 * the L2 cache, and they are more than one for so many slots.
 */
#ifndef RHH_PARTITION_L2_DIVISOR
#define RHH_PARTITION_L2_DIVISOR 2
#endif
#ifndef RHH_PARTITION_SLOTS_PER_KEY
#define RHH_PARTITION_SLOTS_PER_KEY 33
#endif

/*
 * And more keys than these: partitioning takes a dozen launches.  A batch of
 * 131072 into a table of 2^22 slots took an H100 0.097 ms, one of 65536, not
 * partitioned, 0.037.
 */
#ifndef RHH_PARTITION_LEAST_KEYS
#define RHH_PARTITION_LEAST_KEYS (1u << 18)
#endif

/* Bytes of pairs partitioned at a time; the workspace is twice that. */
#define RHH_CHUNK_BYTES (UINT64_C(1) << 30)

/* A part's bytes of slots; a block builds it. */
#ifndef RHH_PART_BYTES
#define RHH_PART_BYTES (UINT64_C(16) << 10)
#endif
#define RHH_BUILD_BUCKETS 512	/* and its buckets, one less at most */

/*
 * What a block that builds a part has: threads; bytes for entries, where the table
 * is empty, half as many again as fill a part; or for those that are there as
 * well.  Blocks an SM: what fits its shared memory.
 */
#ifndef RHH_BUILD_THREADS
#define RHH_BUILD_THREADS 256
#endif
#ifndef RHH_SORT_BYTES
#define RHH_SORT_BYTES (24 << 10)
#endif
#ifndef RHH_MERGE_BYTES
#define RHH_MERGE_BYTES (36 << 10)
#endif
#ifndef RHH_BUILD_BLOCKS_PER_SM
#define RHH_BUILD_BLOCKS_PER_SM 5
#endif

/*
 * Is sorting n items worth it?  Into an empty table always, if there is one for so
 * many slots (RHH_PARTITION_SLOTS_PER_KEY is a bound for all).  Into one in use
 * that depends on the load afterwards: merging reads and writes all of the table,
 * 2.5 ms and 0.033 ns an item with 2^27 slots of 8 bytes on an H100, whatever the
 * load; one by one an item takes 0.09 ns to a load of 0.6, 0.17 at 0.8, 0.3 at
 * 0.85, 1 at 0.93, 8 at 0.98.
 */
#ifndef RHH_BUILD_SLOTS_PER_ITEM
#define RHH_BUILD_SLOTS_PER_ITEM 16
#endif
#ifndef RHH_MERGE_SLOTS_PER_ITEM
#define RHH_MERGE_SLOTS_PER_ITEM 3	/* to a load of 3/4 */
#define RHH_MERGE_SLOTS_PER_ITEM_HIGH 8 /* to 27/32 */
#define RHH_MERGE_SLOTS_PER_ITEM_FULL 32
#endif
#define RHH_BUILD_WORTH(n, n_slots) ((n) * RHH_BUILD_SLOTS_PER_ITEM > (n_slots))
#define RHH_MERGE_WORTH(n, size, n_slots) \
	((n) * (4 * ((size) + (n)) <= 3 * (n_slots) ? RHH_MERGE_SLOTS_PER_ITEM \
			: 32 * ((size) + (n)) <= 27 * (n_slots) ? RHH_MERGE_SLOTS_PER_ITEM_HIGH \
			: RHH_MERGE_SLOTS_PER_ITEM_FULL) >= (n_slots))

#endif							/* RHH_TABLE_TUNING_H */
