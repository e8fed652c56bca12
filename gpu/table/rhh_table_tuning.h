/*
 * rhh_table_tuning.h
 *		The constants of the table, each with the measurement behind it.  Nothing here
 *		changes an answer, except the probe cap.
 *
 * Those with #ifndef can be set on the compiler's command line, which is how
 * bench/table_tune.sh compares values and how tests get small parts.
 */
#ifndef RHH_TABLE_TUNING_H
#define RHH_TABLE_TUNING_H

/*
 * Bytes of a bucket.  An H100 reads 32.6 G random lines of 64 bytes a second, as many as
 * lines of 32, and 23.5 G lines of 128.  At a load of 0.9845 a find reads 1.46 buckets of
 * 64 bytes with hints, or 2.83 of 128 bytes without.
 */
#define RHH_LINE_BYTES 64

/*
 * The probe cap, in buckets, unless the caller gives another one.  What would be beyond it
 * is handed back, so this does change answers.
 */
#define RHH_DEFAULT_MAX_DIST 8

/*
 * Threads of a block.  On an H100 finds take the same time with 128, 256 and 512.  Inserts
 * one by one take up to 18 % more time with 512, and at most 3 % less with 128.
 */
#ifndef RHH_TABLE_BLOCK_THREADS
#define RHH_TABLE_BLOCK_THREADS 256
#endif

/*
 * How many keys a thread has, one after the other.  It has only one if the keys to be
 * inserted make fewer than so many blocks for each SM; 65536 keys, 4 for each thread, would
 * be only 64 blocks.  Other numbers make no great difference on an H100: with 1, 2 and 8
 * everything takes from 3 % less to 5 % more time, except 2^21 finds at a load of 0.95,
 * which take 15 % less with 1 and 17 % more with 8.
 */
#ifndef RHH_TABLE_ITEMS
#define RHH_TABLE_ITEMS 4
#endif
#define RHH_TABLE_BLOCKS_PER_SM 8

/*
 * Are hints worth it?  They are above a load that depends on the number of slots in a
 * bucket.  Keys are about load / (2 * slots * (1 - load)) buckets away from home, and if
 * that is more than 0.8 then reading a hint costs less than the lines that it saves.  On
 * an H100 the requests to the L2 cache are the limit: 3 for a line that comes from device
 * memory, 1 to 1.5 for a hint.  M finds/s without and with hints: with 8 slots 20300 and
 * 16000 at a load of 0.84, 13500 and 14600 at 0.94; with 4 slots 15400 and 14200 at 0.85,
 * and 13300 with hints at 0.95.
 */
#define RHH_HINTS_WORTH(size, n_slots, slots) \
	((size) * (8 * (slots) + 5) > (n_slots) * (8 * (slots)))

/*
 * Making hints reads the whole table, so it is not done for finding fewer keys than one
 * for so many slots.  Measured on an H100 with 2^27 slots of 8 bytes at a load of 0.95,
 * the time with making hints, compared with that without hints, was 1.8 times as long for
 * finding a 32nd as many keys as slots, 1.3 times for a 16th, the same for an 8th, and 0.83
 * times for a half (0.60 times with slots of 16 bytes).
 */
#ifndef RHH_HINTS_SLOTS_PER_KEY
#define RHH_HINTS_SLOTS_PER_KEY 16
#endif

/*
 * Keys are sorted by their home buckets and merged with the table, instead of being
 * inserted one by one, if that is worth it (RHH_BUILD_WORTH, rhh_merge_worth()).  It never
 * is for fewer keys than one for PARTITION_SLOTS_PER_KEY slots.
 *
 * If the table fits the L2 cache, it is worth it only if the table becomes crowded, that
 * is, has a load above RHH_CROWDED / 32.  On an H100, whose cache has 50 MB, 2^20 items
 * into 2^22 slots of 8 bytes at a load of 0.5 take 0.13 ms one by one and 0.19 ms merged.
 */
#ifndef RHH_PARTITION_L2_DIVISOR
#define RHH_PARTITION_L2_DIVISOR 1
#endif
#ifndef RHH_PARTITION_SLOTS_PER_KEY
#define RHH_PARTITION_SLOTS_PER_KEY 33
#endif
#define RHH_CROWDED 27			/* 32nds of the slots */

/*
 * There must also be more keys than these, because partitioning takes a dozen launches.
 *
 * LEAST_KEYS: on an H100 131072 keys into a table of 2^22 slots took 0.097 ms partitioned,
 * and 65536 keys took 0.037 ms one by one.
 *
 * _CROWDED: fewer keys are worth it if the table becomes crowded.  65536 keys into 2^21
 * slots of 8 bytes at a load of 0.95 take 3.9 ms one by one and 0.8 merged; 2^18 keys into
 * 2^23 slots take 7.1 and 0.3.
 *
 * _FULL: once more keys have been inserted than there are slots, most keys are likely to
 * be there (131072 take 0.015 ms then, and asking whether they are there takes 0.04); or
 * they are refused, which for 2^22 keys takes 2.3 ms one by one and 0.5 merged.
 */
#ifndef RHH_PARTITION_LEAST_KEYS
#define RHH_PARTITION_LEAST_KEYS (1u << 18)
#endif
#ifndef RHH_PARTITION_LEAST_KEYS_CROWDED
#define RHH_PARTITION_LEAST_KEYS_CROWDED (1u << 14)
#endif
#ifndef RHH_PARTITION_LEAST_KEYS_FULL
#define RHH_PARTITION_LEAST_KEYS_FULL (1u << 21)
#endif

/* Bytes of pairs that are partitioned at a time; the workspace has twice as many. */
#define RHH_CHUNK_BYTES (UINT64_C(1) << 30)

/* Bytes of slots in a part, which one block builds. */
#ifndef RHH_PART_BYTES
#define RHH_PART_BYTES (UINT64_C(16) << 10)
#endif
#define RHH_BUILD_BUCKETS 512	/* a part has fewer buckets */

/*
 * A block that builds a part has so many threads, and so many bytes of shared memory for
 * entries: SORT_BYTES if the table is empty, which is half as many again as fill a part,
 * and MERGE_BYTES if there are entries in the table as well.  BLOCKS_PER_SM fit the shared
 * memory of an SM.
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
 * Is it worth building n items into an empty table?  Always if there is an item for so
 * many slots; but if the table fits the L2 cache, only if the items crowd it.  On an H100
 * it takes 0.081 ms one by one and 0.12 built to fill 2^21 slots of 8 bytes to a half, and
 * 1.07 and 0.20 to fill them to 0.95.
 */
#ifndef RHH_BUILD_SLOTS_PER_ITEM
#define RHH_BUILD_SLOTS_PER_ITEM 16
#endif
#define RHH_BUILD_WORTH(n, n_slots, in_l2) \
	((in_l2) ? (n) * 32 > (n_slots) * RHH_CROWDED : (n) * RHH_BUILD_SLOTS_PER_ITEM > (n_slots))

/*
 * Is it worth merging items with a table that is in use?  That depends on how many of the
 * items are new, and on the load afterwards.  Merging reads and writes the whole table: on
 * an H100 with 2^27 slots of 8 bytes it takes 2.5 ms and 0.033 ns for each item, whatever
 * the load.  One by one an item that is there takes 0.09 ns; a new one takes 0.09 ns up to a
 * load of 0.6, 0.17 at 0.8, 0.3 at 0.85, 1 at 0.93, and 8 at 0.98.
 *
 * So merging is worth it if there is an item for so many slots.  The first number is for
 * items that are there and for new ones up to a load of 3/4, HIGH is for new ones up to
 * RHH_CROWDED / 32, and FULL is for new ones beyond.
 */
#ifndef RHH_MERGE_SLOTS_PER_ITEM
#define RHH_MERGE_SLOTS_PER_ITEM 3
#define RHH_MERGE_SLOTS_PER_ITEM_HIGH 8
#define RHH_MERGE_SLOTS_PER_ITEM_FULL 32
#endif

/* Threads of the block that chooses; each looks whether one item is in the table. */
#define RHH_CHOOSE_THREADS 256

#endif							/* RHH_TABLE_TUNING_H */
