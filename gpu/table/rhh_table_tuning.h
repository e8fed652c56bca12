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

/*
 * Threads of a block.  On an H100 finds take the same time with 128, 256 and 512, and
 * inserts one by one up to 18 % more with 512, at most 3 % less with 128.
 */
#ifndef RHH_TABLE_BLOCK_THREADS
#define RHH_TABLE_BLOCK_THREADS 256
#endif

/*
 * Keys a thread has, one after the other; one, if it takes less than so many blocks
 * an SM to insert them: 65536 with 4 were 64 blocks.  An H100 does not care for more:
 * with 1, 2 and 8 all takes from 3 % less to 5 % more, but for 2^21 finds at a load
 * of 0.95: 15 % less with 1, 17 % more with 8.
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

/*
 * Making hints reads the table: not for less than one key for so many slots.  With
 * hints made first, an H100 takes for finding as many keys as a 32nd of 2^27 slots of
 * 8 bytes, at a load of 0.95, 1.8 times as long as without, a 16th 1.3 times, an 8th as
 * long; as a half of them 0.83 times, and 0.60 with slots of 16 bytes.
 */
#ifndef RHH_HINTS_SLOTS_PER_KEY
#define RHH_HINTS_SLOTS_PER_KEY 16
#endif

/*
 * Keys are sorted by their home buckets and built into the table, rather than
 * inserted one by one, where that is worth it (RHH_BUILD_WORTH, rhh_merge_worth()):
 * never for fewer than one key for PARTITION_SLOTS_PER_KEY slots, a bound for all.
 *
 * In tables that the L2 cache holds only where they become crowded, that is, above a
 * load of RHH_CROWDED / 32: on an H100, of 50 MB, 2^20 items into 2^22 slots of 8 bytes
 * at a load of 0.5 take 0.13 ms one by one and 0.19 merged.
 */
#ifndef RHH_PARTITION_L2_DIVISOR
#define RHH_PARTITION_L2_DIVISOR 1
#endif
#ifndef RHH_PARTITION_SLOTS_PER_KEY
#define RHH_PARTITION_SLOTS_PER_KEY 33
#endif
#define RHH_CROWDED 27			/* 32nds of the slots */

/*
 * And for more keys than these: partitioning takes a dozen launches.  A batch of
 * 131072 into a table of 2^22 slots took an H100 0.097 ms, one of 65536, not
 * partitioned, 0.037.  Where tables become crowded fewer are worth it: 65536 keys into
 * 2^21 slots of 8 bytes at a load of 0.95 take 3.9 ms one by one, and merged 0.8, 2^18
 * into 2^23 slots 7.1 and 0.3.  After more keys than slots most are likely to be there
 * (131072 take 0.015 ms, and asking whether they are 0.04); or refused, which takes
 * 2^22 of them 2.3 ms one by one and 0.5 merged.
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
 * Is it worth it?  Into an empty table always, if there is an item for so many slots;
 * in L2, if they are enough to crowd it: on an H100 2^21 slots of 8 bytes take 0.081
 * ms one by one and 0.12 built, filled to a half, and 1.07 and 0.20 filled to 0.95.
 */
#ifndef RHH_BUILD_SLOTS_PER_ITEM
#define RHH_BUILD_SLOTS_PER_ITEM 16
#endif
#define RHH_BUILD_WORTH(n, n_slots, in_l2) \
	((in_l2) ? (n) * 32 > (n_slots) * RHH_CROWDED : (n) * RHH_BUILD_SLOTS_PER_ITEM > (n_slots))

/*
 * Into one in use that depends on how many of the items are new, and on the load
 * afterwards: merging reads and writes all of the table, 2.5 ms and 0.033 ns an item
 * with 2^27 slots of 8 bytes on an H100, whatever the load; one by one an item that
 * is there takes 0.09 ns, a new one 0.09 ns to a load of 0.6, 0.17 at 0.8, 0.3 at
 * 0.85, 1 at 0.93, 8 at 0.98.  So many slots an item may cost to merge: of items that
 * are there and of new ones to a load of 3/4; of new ones to RHH_CROWDED / 32; beyond.
 */
#ifndef RHH_MERGE_SLOTS_PER_ITEM
#define RHH_MERGE_SLOTS_PER_ITEM 3
#define RHH_MERGE_SLOTS_PER_ITEM_HIGH 8
#define RHH_MERGE_SLOTS_PER_ITEM_FULL 32
#endif

/* Threads that choose, and items of which they look which are there. */
#define RHH_CHOOSE_THREADS 256

#endif							/* RHH_TABLE_TUNING_H */
