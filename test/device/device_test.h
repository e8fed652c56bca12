/*
 * device_test.h
 *		What the files of device_test share.
 *
 * A case describes a table (struct def), has rows of it made up (make_data),
 * puts them through one or several tables (struct run, drive) and compares what
 * comes out with a reference that shares no code with the devices: a chained map
 * of groups on the host (struct map).  check_table() does all of that for one
 * table, which is what most cases need.
 *
 * To add a case, write case_NAME(context *) in the file of its topic and put NAME
 * into DEVICE_CASES below.
 */
#ifndef DEVICE_TEST_H
#define DEVICE_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rhh_device.h"
#include "rhh_keys.h"
#include "rhh_pages.h"
#include "rhh_program.h"
#include "rhh_states.h"

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_WORDS (RHH_MAX_KEY_WORDS + RHH_MAX_STATE_WORDS)
#define MAX_SLOTS 12

/*
 * A CUDA device looks at the first rows of a batch that lies in its memory before
 * it aggregates them, if the batch has at least so many rows.  The bound is low
 * enough for most batches of these cases.
 */
#define LOOK_ROWS 500

/* The same for the index of build sides, so that small ones carry nothing, and others do. */
#define CARRY_BYTES 65536

/* ---------- common.c: memory, the clock, numbers of rows ---------- */

/* The command line's, set by main(). */
extern uint64_t option_seed;
extern uint32_t option_threads;
extern bool option_quick;		/* --quick or --tiny */
extern bool option_on_device;
extern uint32_t option_divisor; /* of cases' rows: 1, 8 (--quick), 64 (--tiny) */

/*
 * A device that is tested, and memory for batches that it knows
 * (register_pool), and for pages (register_pages).
 */
typedef struct device
{
	const rhh_device_ops *ops;
	rhh_device_info info;
	rhh_device *dev;
	uint8_t    *pool;
	size_t		pool_bytes;
	uint8_t    *pages;
	uint32_t	n_pages;
	uint32_t	used_pages;		/* of runs that have not ended */
	uint32_t	n_page_runs;	/* of these */
	bool		as_pages;		/* runs give their rows in pages, where that can be, */
	bool		as_cached;		/* and in pages that are in the cache */
	bool		as_all_visible; /* and of most of these the device finds the rows */
	rhh_event	kept[64];		/* events of runs that came while pages were put there */
	uint32_t	n_kept;
	const char *name;
} device;

/* Ends the program, for what no case is about; need() gives zeroed memory. */
extern void die(const char *what) __attribute__((noreturn));
extern void *need(size_t bytes);

/* The device's own memory: the host's for the CPU device. */
extern void *device_alloc(const device *device, size_t bytes);
extern void device_free(const device *device, void *p);
extern void device_copy(const device *device, void *to, const void *from, size_t bytes);

extern double clock_ms(clockid_t clock);
extern double now_ms(void);

/*
 * The number of rows that a case is to have instead of n: fewer with --quick and
 * --tiny.  enough_rows() is for cases that must fill something, and takes no
 * more than seven eighths of the rows away.
 */
extern uint64_t rows(uint64_t n);
extern uint64_t enough_rows(uint64_t n);
extern bool left_out(uint32_t *n);

/* ---------- random numbers ---------- */

typedef struct rng
{
	uint64_t	state;
} rng;

static inline uint64_t
next_random(rng *r)
{
	r->state += 0x9e3779b97f4a7c15ULL;
	return rhh_mix64(r->state);
}

/* A number from 0 to n - 1. */
static inline uint64_t
below(rng *r, uint64_t n)
{
	return (uint64_t) (((unsigned __int128) next_random(r) * n) >> 64);
}

/* ---------- rows.c: what a case describes, and rows of it ---------- */

typedef enum gen_kind
{
	GEN_UNIFORM,				/* one of n values, spread over the width */
	GEN_SKEWED,					/* the same, half of the rows the first of them */
	GEN_PATTERN,				/* zero, all ones, sign bits, ... */
	GEN_EXTREME,				/* an argument: often the least or the greatest */
	GEN_SMALL,					/* an argument of -1000 to 1000 */
	GEN_HUGE_POSITIVE,			/* near INT64_MAX: sums leave 63 bits */
	GEN_FLOAT,					/* integers, whose sums are exact; -0 */
	GEN_FLOAT_ODD,				/* also NaN, infinities, large ones */
	GEN_FLOAT_PAIR,				/* two integers each, whose sums need both */
	GEN_FILTER,					/* false in a third of the rows */
	GEN_ANY,					/* a function of the keys */
	GEN_CUSTOM					/* def.custom() sets it */
} gen_kind;

/* How the values of a column are made. */
typedef struct gen
{
	gen_kind	kind;
	uint32_t	nulls_of_256;	/* of 256 rows so many are NULL; GEN_ANY: of
								 * 256 keys */
	uint64_t	n;				/* GEN_UNIFORM, GEN_SKEWED: different values */
} gen;

typedef struct data data;

/*
 * A table, and how rows for it are made.  custom() is called for each row after
 * the columns' generators; its param means what the case likes.
 */
typedef struct def
{
	rhh_map_spec spec;
	gen			gens[RHH_MAX_COLUMNS];
	void		(*custom) (data *data, uint64_t row, rng *r, uint64_t param);
	uint64_t	param;
} def;

/* Rows in columns. */
struct data
{
	const def  *d;
	uint64_t	n_rows;
	uint8_t    *values[RHH_MAX_COLUMNS];
	uint8_t    *nulls[RHH_MAX_COLUMNS]; /* a byte a row; NULL: none */
};

/*
 * Of a new table, first without columns.  def_column() and def_key() add one and
 * return its number, def_state() adds an aggregate's state whose argument and
 * filter are columns, or -1.
 */
extern void def_init(def *d);
extern int	def_column(def *d, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256);
extern int	def_key(def *d, uint32_t bytes, gen_kind kind, uint64_t n, uint32_t nulls_of_256);
extern void def_state(def *d, rhh_state_op op, int arg, int filter);
extern void def_common_states(def *d);
extern rhh_hash hash_of(const def *d);

extern void put_value(data *data, uint32_t c, uint64_t row, uint64_t low, uint64_t high);
extern void get_value(const data *data, uint32_t c, uint64_t row, uint64_t v[2]);
extern bool is_null(const data *data, uint32_t c, uint64_t row);
extern double get_float(const data *data, uint32_t c, uint64_t row);
extern uint32_t row_key(const data *data, uint64_t row, uint64_t *words);

extern data *make_data(const def *d, uint64_t n_rows, uint64_t seed);
extern void free_data(data *data);

/* ---------- reference.c: the groups as they should be ---------- */

/* Groups by key; a group is a result's words. */
typedef struct map
{
	const rhh_map_spec *spec;
	uint32_t	n_words;
	uint32_t	key_words;
	uint32_t	n_groups;
	uint32_t	room;
	uint64_t   *words;			/* n_groups times n_words */
	uint32_t   *next;			/* chains of group + 1 */
	uint32_t	n_heads;
	uint32_t   *heads;
} map;

extern map *map_new(const rhh_map_spec *spec);
extern void map_free(map *m);
extern uint64_t *map_group(const map *m, uint32_t g);
extern uint64_t *map_find(const map *m, const uint64_t *key);
extern uint64_t *map_get(map *m, const uint64_t *key);
extern void map_row(map *m, const data *data, uint64_t row);
extern void map_combine(map *m, const uint64_t *from);
extern void map_normalize(const rhh_map_spec *spec, uint32_t key_words, uint64_t *group);

/* ---------- join_reference.c: the output of joins as it should be ---------- */

/* What is joined before a table, and what the reference has to know of it. */
typedef struct joined
{
	const def  *d;				/* of the table that the output goes to */
	rhh_join_spec spec;
	const data *builds[RHH_MAX_JOINS];	/* rows of the build sides */
	const uint8_t *missing[RHH_MAX_JOINS];	/* a byte a row: the build side has
											 * refused it */
	uint64_t	float_states;	/* bit s: the argument of state s is a computed float,
								 * of which NaN is any NaN */
} joined;

/*
 * Aggregates the output; the numbers of rows that come out of the joins go to rows[].
 * Returns how many of the last join's are bad for its program; in these all columns that it
 * computes are NULL.  *n_dropped becomes how many the program's filter drops, and
 * *n_bad_candidates for how many pairs the condition of a join is bad.
 */
extern uint64_t join_expect(map *m, const joined *joined, const data *probe, uint64_t *rows,
							uint64_t *n_dropped, uint64_t *n_bad_candidates);

/* ---------- program_reference.c: what programs compute ---------- */

/* What becomes of a row. */
typedef enum program_row
{
	PROGRAM_GOOD,
	PROGRAM_BAD,				/* the filter or a result is */
	PROGRAM_DROPPED				/* by the filter */
} program_row;

/* Runs a program in a row.  If it is good, store has the columns computed. */
extern program_row program_run_row(const rhh_program *program, const data *data, uint64_t row,
								   bool store);

/* Makes the columns that a program computes NULL in a row. */
extern void program_put_nulls(const rhh_program *program, data *data, uint64_t row);

/* Replaces each NaN that a RHH_ANY has of a computed float by the same one. */
extern void program_normalize(const joined *joined, uint32_t key_words, uint64_t *group);

/* ---------- run.c: running rows through tables ---------- */

typedef struct run_options
{
	uint32_t	batch_rows;		/* 0: of random size */
	uint32_t	capacity_groups;	/* of the result, so of one extraction */
	uint32_t	in_flight;		/* batches at once, 0: as many as there are slots */
	int64_t		cancel_at_batch;	/* -1: never */
	bool		on_device;		/* batches lie in the device's memory */
	bool		no_failures;	/* rows handed back are an error */
	/*
	 * The device makes the rows of these groups, n_groups of them for each set; the
	 * data has what they should be, set by set.
	 */
	rhh_map    *source;
	const rhh_row_spec *row_spec;
	uint64_t	n_groups;
	bool		mixed;			/* with joined: some of these rows come in batches all the same */
	bool		rewind;			/* after the first groups, and after the last */
	uint64_t	min_failures;	/* fewer are an error: the case tests nothing */
	const joined *joined;		/* the data is the probe side; NULL: no joins */
	uint32_t	room_rows;		/* for refused rows of the output; 0: max_batch_rows */
	bool		finish_may_fail;	/* for lack of memory */
	const rhh_group_condition *conditions;	/* on the groups that are wanted */
	uint32_t	n_conditions;
	/*
	 * Before the table is finished: gives it other joins, and returns true, if the rows are to
	 * come once more.  Joins up to split_join then have a part of theirs each time.
	 */
	bool		(*next_pass) (void *arg, rhh_map *table);
	void	   *arg;
	uint32_t	split_join;
} run_options;

extern const run_options default_options;

/* A batch's memory, and the batch that it holds while it is busy. */
typedef struct slot
{
	uint8_t    *base;
	uint8_t    *on_device;		/* its copy there, or NULL */
	bool		busy;
	bool		again;			/* to be submitted again: there is more output */
	uint64_t	first_row;
	rhh_batch	batch;
	uint64_t	checksum;
	uint32_t	first_page;		/* its own, in the device's memory for pages */
	uint64_t   *page_rows;		/* with pages: of each page, its first row among the data's, */
	uint64_t (*visible)[RHH_PAGE_ITEMS / 64];	/* the line pointers of its rows, */
	uint32_t   *n_others;		/* and how many tuples it has beside these that are to be dropped */
} slot;

/* Rows of a bad page, which are to come as columns. */
typedef struct bad_rows
{
	uint64_t	first;
	uint32_t	n;
} bad_rows;

/*
 * One table from its creation to its last group.  It submits batches until there
 * are no more rows, finishes the table, and extracts groups until the device says
 * that these were the last.  A table that keeps rows is done when it is finished.
 */
typedef struct run
{
	device	   *device;
	const data *data;
	const def  *d;
	run_options options;
	rhh_map    *table;
	rng			r;
	uint32_t	unmatched;		/* rhh_batch's of the batch that came last */
	slot		slots[MAX_SLOTS];
	uint32_t	n_slots;
	uint64_t	next_row;
	uint32_t	in_flight;
	uint32_t	n_again;		/* slots that are to be submitted again */
	uint64_t	n_resubmitted;
	rhh_map_spec spec;			/* of table */
	uint32_t	slot_pages;		/* pages that a slot has; 0: rows come as columns */
	bad_rows   *bad;
	uint32_t	n_bad_pages;
	uint32_t	n_bad_done;		/* of these have been submitted */
	uint64_t	n_batches;
	uint64_t	n_passes;		/* that have begun */
	uint64_t	n_refused;		/* the bad rows included */
	uint64_t	n_bad;			/* with a program; of groups, refused rows of pieces with a bad one */
	bool		lacks_rows;		/* some that were made of groups were refused, and did not come back */
	bool		cancelled;
	bool		finishing;
	bool		finished;
	rhh_status	finish_status;
	bool		extracting;
	bool		done;
	uint64_t	n_extracted;
	uint32_t	n_rewinds;
	uint64_t	n_merge_groups;
	rhh_result	result;
	map		   *unique;			/* groups that need no merge */
	map		   *outcome;		/* all of it */
	uint8_t    *missing;		/* of a table that keeps rows: a byte for each row,
								 * set if it was refused */
	rhh_map_stats stats;		/* after the last event */
	char		why[400];		/* "": no fault so far */
} run;

/* ---------- pages.c: rows as heap pages ---------- */

extern uint32_t pages_for(const def *d, uint32_t n_rows);
extern uint32_t pages_room(uint32_t n_pages);
extern uint32_t slot_numbers_room(uint32_t n_pages);
extern uint32_t fill_pages(run *run, slot *slot, uint64_t first, uint32_t n);

/* ---------- run.c, again ---------- */

extern uint32_t batch_room(const def *d, uint32_t n);
extern void fill_batch(rhh_batch *batch, uint8_t *base, const data *data, uint64_t first, uint32_t n);

extern void run_start(run *run, device *device, const data *data, const run_options *options,
					  uint8_t *pool, size_t pool_bytes);
extern void run_step(run *run);
extern void run_event(run *run, const rhh_event *event);
extern bool drive(device *device, run *runs, uint32_t n_runs);
extern void run_check(run *run);
extern void run_end(run *run);

/* ---------- cases ---------- */

/* What a case is given, and where it says what is wrong; "" is right. */
typedef struct context
{
	device	   *device;
	uint64_t	seed;			/* of the next rows that it makes */
	uint32_t	n_parts;		/* in which plans have a build side; 0: they have it whole */
	bool		keeps_output;	/* plans have their output kept */
	char		why[512];
} context;

extern void fault(context *ctx, const char *where, const char *why);
extern bool open_with_threads(context *ctx, uint32_t threads, device *device, context *inner);
extern void close_with_threads(context *ctx, const context *inner);
extern bool next_event(context *ctx, rhh_event *event);
extern void check_table(context *ctx, const char *where, const def *d, uint64_t n_rows,
						const run_options *options, rhh_map_stats *stats);

/*
 * All cases, in the order in which they run.  The order decides the hash seeds of
 * their tables (def_init), so one that is added goes to the end.
 */
#define DEVICE_CASES(CASE) \
	CASE(empty) \
	CASE(one_row) \
	CASE(invalid) \
	CASE(same_checks) \
	CASE(key_widths) \
	CASE(packed_keys) \
	CASE(wide_keys) \
	CASE(32_keys) \
	CASE(null_is_not_zero) \
	CASE(all_null) \
	CASE(states) \
	CASE(floats) \
	CASE(any) \
	CASE(many_states) \
	CASE(no_states) \
	CASE(sum_i128_overflow) \
	CASE(duplicates) \
	CASE(skew) \
	CASE(modes) \
	CASE(sequences) \
	CASE(batch_sizes) \
	CASE(in_flight) \
	CASE(extract_chunks) \
	CASE(estimates) \
	CASE(load_factors) \
	CASE(probe_caps) \
	CASE(colliding_fingerprints) \
	CASE(crowded_bucket) \
	CASE(seeds) \
	CASE(bucket_use) \
	CASE(small_memory) \
	CASE(over_subscription) \
	CASE(displacement_4) \
	CASE(displacement_8) \
	CASE(displacement_wide) \
	CASE(displacement_crowd) \
	CASE(large_batches) \
	CASE(conditions) \
	CASE(conditions_refused) \
	CASE(conditions_orphans) \
	CASE(conditions_invalid) \
	CASE(interleaved) \
	CASE(turns) \
	CASE(cancel) \
	CASE(cancel_extract) \
	CASE(memory_returned) \
	CASE(kept_memory) \
	CASE(machine_memory) \
	CASE(close_busy) \
	CASE(feed) \
	CASE(feed_refused) \
	CASE(feed_invalid) \
	CASE(same_calls) \
	CASE(join_kinds) \
	CASE(join_keys) \
	CASE(join_columns) \
	CASE(join_dense) \
	CASE(join_nulls) \
	CASE(join_empty) \
	CASE(join_several) \
	CASE(join_fan_out) \
	CASE(join_batches) \
	CASE(join_refused) \
	CASE(join_returned) \
	CASE(join_build_refused) \
	CASE(join_shared) \
	CASE(join_fed) \
	CASE(join_large) \
	CASE(join_cancel) \
	CASE(join_close) \
	CASE(join_memory_returned) \
	CASE(join_invalid) \
	CASE(join_collisions) \
	CASE(join_program_operations) \
	CASE(join_program_logic) \
	CASE(join_program_filter) \
	CASE(join_program_bad) \
	CASE(join_program_refused) \
	CASE(join_program_largest) \
	CASE(join_program_invalid) \
	CASE(join_unmatched) \
	CASE(join_unmatched_order) \
	CASE(join_unmatched_shared) \
	CASE(join_condition_kinds) \
	CASE(join_condition_several) \
	CASE(join_condition_fan_out) \
	CASE(join_condition_refused) \
	CASE(join_condition_returned) \
	CASE(join_condition_unmatched) \
	CASE(join_condition_unmatched_refused) \
	CASE(join_condition_unmatched_returned) \
	CASE(join_condition_bad) \
	CASE(join_condition_cancel) \
	CASE(join_condition_invalid) \
	CASE(join_passes) \
	CASE(join_passes_chain) \
	CASE(join_passes_condition) \
	CASE(join_passes_refused) \
	CASE(pages_no_joins) \
	CASE(pages_cached) \
	CASE(pages_slots) \
	CASE(pages_unreadable) \
	CASE(pages_grouped) \
	CASE(pages_joins) \
	CASE(pages_refused) \
	CASE(pages_programs) \
	CASE(pages_limbs) \
	CASE(pages_plain) \
	CASE(pages_garbage) \
	CASE(pages_bad_once_more) \
	CASE(pages_values) \
	CASE(pages_broken) \
	CASE(pages_cancel) \
	CASE(pages_invalid) \
	CASE(join_kept) \
	CASE(join_kept_chain) \
	CASE(join_kept_program) \
	CASE(join_kept_refused) \
	CASE(pages_all_visible) \
	CASE(pages_found) \
	CASE(feed_program) \
	CASE(feed_program_bad) \
	CASE(feed_program_refused) \
	CASE(feed_program_invalid) \
	CASE(known_keys)

#define DECLARE_CASE(name) extern void case_##name(context *ctx);
DEVICE_CASES(DECLARE_CASE)
#undef DECLARE_CASE

/* ---------- conditions.c ---------- */

extern bool is_wanted(const rhh_map_spec *spec, const rhh_group_condition *conditions, uint32_t n,
					  const uint64_t *group);

/* ---------- bench.c, bench_join.c, bench_pages.c ---------- */

extern void bench(device *device, uint64_t n_rows, double estimate, int repeat, const char *only);
extern void bench_joins(device *device, uint64_t n_rows, double estimate, int repeat,
						const char *only);
extern void bench_pages(device *device, int repeat, const char *only);

#endif
