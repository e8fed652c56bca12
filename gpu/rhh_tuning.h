/*
 * rhh_tuning.h
 *		Constants chosen by measurement, each with the measurement behind it.
 *		The algorithms are right with any value in the stated range.
 *
 * Times of the CPU device are of a small machine (2 EPYC cores, 512 KB of L2
 * each): CPU time of both threads together, the least of several runs of
 * test/device_test cpu --bench, 10M rows in batches of 65536, sum and count of
 * an int4.  "4/1e6" is a 4-byte key in 1e6 groups.
 */
#ifndef RHH_TUNING_H
#define RHH_TUNING_H

/* ---------- CPU device ---------- */

/*
 * Rows of its own that a thread takes through the stages at a time.  So many
 * cache misses are asked for before the first is needed; their buckets and
 * records (two lines each) should still be cached when they are.
 *
 *		rows		4/1e6		8/1e6
 *		256			301 ms		352 ms
 *		512			379 ms		394 ms
 *		1024		392 ms		361 ms
 */
#define RHH_CPU_RUN_ROWS		128
/* The same for WIDE keys of more than 4 and more than 16 words. */
#define RHH_CPU_RUN_ROWS_WIDE	128
#define RHH_CPU_RUN_ROWS_WIDER	64

/*
 * A partition of up to this size stays in L2, and prefetching it only costs:
 * 116 ms without, about 140 with it at 4/100.
 */
#define RHH_CPU_CACHED_BYTES	((size_t) 256 << 10)

/*
 * Slots that a new table has at most, all partitions together, whatever the
 * estimate.  An estimate 1e5 times too large then costs 143 ms instead of 135 at
 * 4/1e4 (177 with 2^23), and a query of few rows does not clear 64 MB of pages.
 * A table that fills them grows to its estimate at once, at most by
 * 2^RHH_CPU_MAX_JUMP, which costs less than a large table from the start: 690 ms
 * at 4/1e7 (1230 with 2^23 slots at once, 1430 doubling from an estimate 100
 * times too small).
 */
#define RHH_CPU_INITIAL_SLOTS_MAX	(1u << 19)
#define RHH_CPU_MAX_JUMP		5

/* Buckets of a partition at least. */
#define RHH_CPU_MIN_BUCKETS		4u

/* Room above expected_groups, as a part of it (1/8): partitions are uneven. */
#define RHH_CPU_SLACK_DIVISOR	8

/*
 * Where memory allows no growth, inserts go on above the load factor up to
 * this; beyond it every new key would try a long chain of displacements in vain.
 */
#define RHH_CPU_HARD_LOAD		0.95

/* Displacements of one insert; beyond, it counts as having hit the probe cap. */
#define RHH_CPU_MAX_CHAIN		128

/* Records are allocated in segments of this many bytes (two huge pages). */
#define RHH_CPU_SEGMENT_BYTES	((size_t) 4 << 20)

/*
 * A partition's first segment is left for the next, of huge pages, when it has
 * so many bytes of records.
 */
#define RHH_CPU_FIRST_SEGMENT_BYTES	((size_t) 512 << 10)

/* Records may be made longer by up to this part of them (1/4). */
#define RHH_CPU_STRIDE_WASTE	4

#define RHH_CPU_PARTS_PER_THREAD	2
#define RHH_CPU_MAX_PARTS		256u

#define RHH_CPU_LOCAL_BYTES_MAX	((uint64_t) 512 << 10)
#define RHH_CPU_LOCAL_DIVISOR	16
#define RHH_CPU_LOCAL_MIN_BUCKETS	16u
#define RHH_CPU_LOCAL_WINDOW	8192u
#define RHH_CPU_LOCAL_MIN_HITS	3

/*
 * Of the memory of finished tables this much is kept for the next ones, and at
 * most a sixteenth of the device's limit.  Finding and clearing new pages took
 * 15 % of all time of two cores at 4/1e7 in SQL.
 */
#define RHH_CPU_KEPT_BYTES_MAX	(UINT64_C(1) << 30)

/*
 * Of a partition's first segment this much is charged at a time, and with a
 * small limit of any segment: a part of the limit, within these bounds.
 */
#define RHH_CPU_STEP_BYTES_MIN	((size_t) 4 << 10)
#define RHH_CPU_STEP_BYTES_MAX	((size_t) 64 << 10)

/* Batches in flight for one table. */
#define RHH_CPU_BATCHES_IN_FLIGHT	8

/* Groups that make another thread worth waking for an extraction. */
#define RHH_CPU_EXTRACT_PIECE_GROUPS	8192

#endif							/* RHH_TUNING_H */
