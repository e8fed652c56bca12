/*
 * rhh_table_tuning.h
 *		Constants of the table, each with the measurement behind it.  Nothing
 *		here changes an answer.
 */
#ifndef RHH_TABLE_TUNING_H
#define RHH_TABLE_TUNING_H

/*
 * Bytes of a bucket.  An H100 reads 32.6 G random lines of 64 bytes a second, as
 * many as of 32, and 23.5 G of 128.  Buckets read a key, at a load of 0.9845:
 * 1.46 of 64 bytes with hints, 2.83 of 128 without.
 */
#define RHH_LINE_BYTES 64

/* The probe cap, in buckets. */
#define RHH_DEFAULT_MAX_DIST 16

#define RHH_TABLE_BLOCK_THREADS 256

/* Keys a thread has, one after the other. */
#define RHH_TABLE_ITEMS 4

/*
 * Below this load, in 256ths, finding does not look at hints: the first bucket
 * nearly always ends the probe.
 */
#define RHH_HINTS_MIN_LOAD_256 166

/* Making hints reads the table: not for less than one key for so many slots. */
#define RHH_HINTS_SLOTS_PER_KEY 16

/*
 * Keys are partitioned when the table's slots have more bytes than this part of
 * the L2 cache, and they are more than one for so many slots.
 */
#define RHH_PARTITION_L2_DIVISOR 2
#define RHH_PARTITION_SLOTS_PER_KEY 16

/* Pairs partitioned at a time; the workspace holds that many. */
#define RHH_TABLE_CHUNK (UINT64_C(1) << 26)

/* Bytes of slots of a partition. */
#define RHH_PARTITION_BYTES (UINT64_C(4) << 20)

#endif							/* RHH_TABLE_TUNING_H */
