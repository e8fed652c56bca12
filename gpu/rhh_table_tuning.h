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

#define RHH_TABLE_BLOCK_THREADS 256

/* Keys a thread has, one after the other. */
#define RHH_TABLE_ITEMS 4

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
#define RHH_HINTS_SLOTS_PER_KEY 16

/*
 * Keys are partitioned when the table's slots have more bytes than this part of
 * the L2 cache, and they are more than one for so many slots.
 */
#define RHH_PARTITION_L2_DIVISOR 2
#define RHH_PARTITION_SLOTS_PER_KEY 16

/* Bytes of pairs partitioned at a time; the workspace is twice that. */
#define RHH_CHUNK_BYTES (UINT64_C(1) << 30)

/*
 * Bytes of slots that a part's keys belong to: a block builds a part.  The last
 * entries of a part reach into the next and are inserted one by one, so larger
 * parts are better, as long as several blocks fit an SM.
 */
#define RHH_PART_BYTES (UINT64_C(16) << 10)
#define RHH_BUILD_BUCKETS 512

/* Pairs that a block sorts: half as many again as fill a part. */
#define RHH_SORT_BYTES (24 << 10)

#endif							/* RHH_TABLE_TUNING_H */
