/*
 * rhh_cpu_tuning.h
 *		Constants chosen by measurement, each with the measurement behind it.
 *		The algorithms are right with any value in the stated range.
 *
 * Times of the CPU device are of a small, shared machine (2 EPYC cores, 1 MB of
 * L2 each): CPU time of both threads together, the least of several runs of
 * test/device_test cpu --bench, 10M rows in batches of 65536, sum and count of
 * an int4.  "4/1e6" is a 4-byte key in 1e6 groups.  Compare within a table: each
 * was measured in one go, and the machine is not the same for long.
 */
#ifndef RHH_CPU_TUNING_H
#define RHH_CPU_TUNING_H

/* ---------- CPU device ---------- */

/*
 * Rows that a thread takes through the stages at a time.  So many cache misses
 * are asked for before the first is needed; their buckets and records should
 * still be in L1 when they are.
 *
 *		rows		4/100		4/1e6		4/1e7
 *		64			55 ms		296 ms		597 ms
 *		128			53 ms		306 ms		614 ms
 *		256			56 ms		318 ms		665 ms
 *		512			55 ms		317 ms		734 ms
 */
#define RHH_CPU_RUN_ROWS		128
/* The same for WIDE keys of more than 4 and more than 16 words. */
#define RHH_CPU_RUN_ROWS_WIDE	128
#define RHH_CPU_RUN_ROWS_WIDER	64

/*
 * The same at most for a partition's list, whose next run's buckets are asked for
 * ahead.  A core can wait for some 20 lines at once; what is asked for beyond
 * that seems to be dropped, and is waited for one by one.
 *
 *		rows		4/1e6		4/1e7		8/1e6
 *		16			271 ms		392 ms		327 ms
 *		24			280 ms		582 ms		350 ms
 *		32			250 ms		727 ms		400 ms
 *		64			358 ms		719 ms		402 ms
 *		128, none ahead	430 ms	741 ms		375 ms
 *
 * (8 and 12 rows are no better: 571 and 549 ms at 4/1e7, 478 with 16.)
 */
#define RHH_CPU_LIST_RUN_ROWS	16

/*
 * A run of at least so many rows, of a table that has at most so many groups, is sorted by group before states are updated.
 */
#define RHH_CPU_FEW_GROUPS		16u
#define RHH_CPU_SORTED_MIN_ROWS	32u

/*
 * In such a table a batch notes which group a WIDE key has, by so many bits of a quick hash (at most 16): so few that clearing them costs
 * nothing, and so many that 16 groups rarely share a place.  After so many runs with a key that was not noted it ends: two groups share
 * one, or new ones keep coming.
 */
#define RHH_CPU_KNOWN_BITS		10
#define RHH_CPU_MAX_UNKNOWN		16u

/*
 * A partition of up to this size stays in L2, and prefetching it only costs:
 * 116 ms without, about 140 with it at 4/100.
 */
#define RHH_CPU_CACHED_BYTES	((size_t) 256 << 10)

/*
 * Slots that a new map has at most, all partitions together, whatever the
 * estimate.  An estimate 1e5 times too large then costs 143 ms instead of 135 at
 * 4/1e4 (177 with 2^23), and a query of few rows does not clear 64 MB of pages.
 * A map that fills them grows to its estimate at once, at most by
 * 2^RHH_CPU_MAX_JUMP, which costs less than a large map from the start: 690 ms
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

/*
 * A record may be made longer by up to this part of it (1/4), to lie in one
 * cache line.  Of 24-byte records a quarter lie in two, and a line that misses
 * all caches costs 10 to 13 ns however early it was asked for.
 */
#define RHH_CPU_STRIDE_WASTE	4

/*
 * Partitions for each thread, where there are several.  More balance threads that
 * get unequal shares of the cores; but each partition's list reads the batch's
 * columns again.  With 1 a partition that waits for its thread holds up the rest.
 *
 *		partitions	4/1e5		4/1e6		4/1e7
 *		1			112 ms		253 ms		711 ms
 *		2			105 ms		234 ms		798 ms
 *		4			120 ms		283 ms		790 ms
 *		8			111 ms		264 ms		877 ms
 */
#define RHH_CPU_PARTS_PER_THREAD	2
#define RHH_CPU_MAX_PARTS		256u

/*
 * A thread's local table, slots and records, should fit L2: at 4/1e4 60 ms with
 * all groups in it, 144 ms with half of them (256 KB).  Of a small memory limit
 * all local tables take a sixteenth; below 16 buckets they are not worth it.
 */
#define RHH_CPU_LOCAL_BYTES_MAX	((uint64_t) 512 << 10)
#define RHH_CPU_LOCAL_DIVISOR	16
#define RHH_CPU_LOCAL_MIN_BUCKETS	16u

/*
 * A local table of fewer buckets than this grows already when one slot in so many is used: where few keys are, each
 * row of one that is not in its home bucket would cost a branch that cannot be predicted.
 */
#define RHH_CPU_SPARSE_BUCKETS	128u
#define RHH_CPU_SPARSE_DIVISOR	4u

/*
 * A full local table is bypassed if fewer than one of so many rows were found in
 * it, of at least this many.
 *
 *		one of		4/1e5 (12 % found)	4/1e6, 80 % one key
 *		2			112 ms				178 ms
 *		3			115 ms				182 ms
 *		4			158 ms				196 ms
 *		16			172 ms (not bypassed)	226 ms
 */
#define RHH_CPU_LOCAL_MIN_HITS	3
#define RHH_CPU_LOCAL_WINDOW	8192u

/*
 * Of the memory of finished maps this much is kept for the next ones, and at
 * most an eighth of the device's limit.  Finding and clearing new pages took
 * 15 % of all time of two cores at 4/1e7 in SQL, and where a query has two maps,
 * of 670 MB together, a third (CUBE of three columns, 4M groups).
 */
#define RHH_CPU_KEPT_BYTES_MAX	(UINT64_C(1) << 30)
#define RHH_CPU_KEPT_DIVISOR	8

/*
 * Memory lent before the device looks at its machine again, and for how long it
 * lends none after it has seen that there is not enough.  A look takes some 0.1 ms,
 * clearing so many pages 15 ms.
 */
#define RHH_CPU_LOOK_BYTES		(UINT64_C(64) << 20)
#define RHH_CPU_LOOK_DIVISOR	8	/* of a small limit */
#define RHH_CPU_LOOK_AGAIN_NS	UINT64_C(100000000)

/*
 * A map of more than this part of the device's limit leaves the last sixteenth of
 * the limit to smaller ones: one large query does not send all others to the host.
 */
#define RHH_CPU_LARGE_DIVISOR	64
#define RHH_CPU_SMALL_DIVISOR	16

/*
 * Of a partition's first segment this much is charged at a time, and with a
 * small limit of any segment: a part of the limit, within these bounds.
 */
#define RHH_CPU_STEP_BYTES_MIN	((size_t) 4 << 10)
#define RHH_CPU_STEP_BYTES_MAX	((size_t) 64 << 10)

/* Batches in flight for one map, or two for each thread if that is more. */
#define RHH_CPU_BATCHES_IN_FLIGHT	8

/* Groups that make another thread worth waking for an extraction. */
#define RHH_CPU_EXTRACT_PIECE_GROUPS	8192

/*
 * Rows of a batch that the device makes, of another map's groups or by a join: enough for
 * a task to be worth its while, and few enough for the rows to be in a cache when they are
 * aggregated.
 */
#define RHH_CPU_PIECE_ROWS	16384u

/*
 * The most bytes of such a batch.  The device keeps a buffer for one batch for each
 * thread, and two more.
 */
#define RHH_CPU_PIECE_BYTES	((size_t) 1 << 20)

/*
 * Rows that are probed for one piece of a join, if they give no piece before that: a task
 * takes some milliseconds at most, however few rows come out.
 */
#define RHH_CPU_PIECE_PROBES	(16 * RHH_CPU_PIECE_ROWS)

/* Groups whose words are read at a time: so few that the words stay in a cache. */
#define RHH_CPU_FEED_SOME_GROUPS	512u

/*
 * Partitions of a map that keeps rows: so many that one, with its part of the directory,
 * is in a cache while it is put in order, if the estimate of rows is right.  With 2^6 they
 * do even for estimates that are much too low.
 */
#define RHH_CPU_ROW_PART_ROWS	16384u
#define RHH_CPU_MIN_ROW_PART_BITS	6
#define RHH_CPU_MIN_ROW_PARTS	(1u << RHH_CPU_MIN_ROW_PART_BITS)
#define RHH_CPU_MAX_ROW_PARTS	1024u

/*
 * Rows of so many bytes are sorted by partition at a time: their records are in L2
 * meanwhile.  They become one chunk, a quarter of a segment at most.
 */
#define RHH_CPU_CHUNK_BYTES	(768u << 10)

/*
 * Tasks for each thread to finish such a map, so that threads that get unequal shares of
 * the cores end at about the same time; and rows that make another task worth its while.
 */
#define RHH_CPU_FINISH_TASKS	8u
#define RHH_CPU_FINISH_TASK_ROWS	8192u

/* Rows that a thread takes through a join at a time; see RHH_CPU_RUN_ROWS. */
#define RHH_CPU_JOIN_ROWS	256u

/*
 * Rows of a build side that are looked at for those without a match, before anything else is
 * done; and so many of these take the time of a probe.
 */
#define RHH_CPU_LOOK_UNMATCHED	65536u
#define RHH_CPU_LOOKS_OF_PROBE	16u

#endif							/* RHH_CPU_TUNING_H */
