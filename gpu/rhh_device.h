/*
 * rhh_device.h
 *		The C ABI between the device service and a device that groups rows.
 *
 * A device owns memory and threads (CPU) or memory and streams (CUDA) and
 * builds hash tables in it.  One caller thread drives a device; every entry
 * point below is called from that one thread and returns quickly: work is
 * queued, and its end is reported by poll().
 *
 *		open -> register_pool -> { map_create -> map_submit* ->
 *			map_finish -> map_extract* -> map_destroy }* -> close
 *
 * A batch goes in as columns (values and a bitmap of NULLs).  A table is a
 * Robin Hood hash table of slots {fingerprint or key, group number}; the
 * transition states live in dense arrays indexed by group number.  Groups
 * come out as columns of 64-bit words.
 *
 * Rows that the table refuses (probe cap reached, memory used up) are marked
 * in the batch's bitmap of failed rows *before* they touched any state; the
 * caller finishes them elsewhere and combines.
 *
 * No function throws or longjmps.  Every failure is an rhh_status plus a
 * message in the caller's rhh_error.  This header needs nothing but C99 (or
 * C++11) and includes no PostgreSQL and no CUDA header.
 */
#ifndef RHH_DEVICE_H
#define RHH_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rhh_status
{
	RHH_OK = 0,
	RHH_BUSY,					/* cannot take it now: poll(), then try again */
	RHH_NO_MEMORY,				/* memory or the limit on it is used up */
	RHH_INVALID,				/* the caller broke the contract */
	RHH_NO_DEVICE,				/* no such device, no driver, no usable one */
	RHH_CANCELLED,				/* the table was cancelled */
	RHH_DEVICE_ERROR			/* the device failed; close it, it will not work
								 * again in this process */
} rhh_status;

typedef struct rhh_error
{
	rhh_status	status;
	char		message[256];	/* lower case, no period, zero-terminated */
} rhh_error;

typedef enum rhh_device_kind
{
	RHH_KIND_CPU = 0,
	RHH_KIND_CUDA = 1
} rhh_device_kind;

typedef enum rhh_device_state
{
	RHH_STATE_AVAILABLE = 0,	/* present, not opened */
	RHH_STATE_OPEN,
	RHH_STATE_UNUSABLE			/* present, but see reason */
} rhh_device_state;

typedef struct rhh_device_info
{
	rhh_device_kind kind;
	int32_t		ordinal;		/* cuda:N's N; 0 for the CPU */
	rhh_device_state state;
	int32_t		cc_major;		/* CUDA compute capability; 0 for the CPU */
	int32_t		cc_minor;
	uint64_t	total_bytes;
	uint64_t	free_bytes;		/* valid only if free_known */
	bool		free_known;		/* CUDA tells only with an open device */
	uint32_t	n_threads;		/* of the CPU that work for it; 0: none */
	char		name[96];
	char		reason[160];	/* why UNUSABLE, else "" */
} rhh_device_info;

typedef struct rhh_device_config
{
	uint64_t	memory_limit_bytes; /* for all tables together; 0: the device
									 * decides: a GPU takes most of what is free,
									 * the CPU device half of it and a quarter of
									 * all at most */
	uint32_t	cpu_threads;	/* CPU device: worker threads, 0: for each
								 * processor that it may use */
	const char *root;			/* CPU device: stands before the paths by which it
								 * looks at its machine; NULL: nothing, but in
								 * tests.  It lasts as long as the device */
	uint32_t	look_rows;		/* CUDA: batches on the device of so many rows are
								 * looked at, to choose how to aggregate them; 0:
								 * the device decides */
} rhh_device_config;

/* ---------- what a table computes ---------- */

#define RHH_MAX_COLUMNS 64		/* keys, arguments and filters in a batch */
#define RHH_MAX_KEYS	32
#define RHH_MAX_STATES	64
#define RHH_MAX_STATE_WORDS (3 * RHH_MAX_STATES)	/* of all of them together */

/*
 * Transition states.  An argument column holds two's complement integers of
 * 1, 2, 4 or 8 bytes, sign-extended before use, or for ..._F64 floats of 4 or 8
 * bytes (but see RHH_SUM_TWICE_F64); rows whose argument is NULL or whose filter
 * byte is zero do not touch the state.
 */
typedef enum rhh_state_op
{
	RHH_COUNT = 1,				/* rows (arg_column < 0) or non-null arguments;
								 * 1 word */
	RHH_SUM_I64,				/* wrapping 64-bit sum; 1 word */
	RHH_SUM_I128,				/* exact sum of 8-byte integers; 2 words, low
								 * then high, two's complement */
	RHH_MIN_I64,				/* 1 word; INT64_MAX when no row touched it */
	RHH_MAX_I64,				/* 1 word; INT64_MIN when no row touched it */
	RHH_ANY,					/* some row's value, of 1 to 16 bytes,
								 * zero-extended; 1 word (0: NULL, 1: not),
								 * then 1 or 2 words of value.  The caller
								 * promises all rows of a group agree. */
	RHH_AND,					/* of the bits; 1 word; ones when no row touched
								 * it */
	RHH_OR,						/* 1 word */
	RHH_XOR,					/* 1 word */
	RHH_SUM_SQUARES,			/* exact sum of squares; 2 words, or 3 of 8-byte
								 * arguments, low to high, unsigned */
	RHH_SUM_F64,				/* 2 words: the sum as a double of all finite
								 * values, -0 when no row touched it, added in
								 * any order; and RHH_F64_... flags */
	RHH_MOMENTS_F64,			/* 5 words: sum and sum of squares of all small
								 * values, each as two doubles to be added up,
								 * whose second has what the first has no
								 * digits for; and flags */
	RHH_SUM_TWICE_F64			/* 2 words: the sum as two such doubles of
								 * arguments that are two as well, in 16 bytes;
								 * not finite if one of them is not */
} rhh_state_op;

/*
 * What values a state of floats has seen, bit by bit.  Those that are not small
 * are classified so that it can be told for sure of most groups whether the
 * squares of their values' differences are beyond a double: that is so if
 *
 *		a value with SMALL meets one with LARGE or NEG_LARGE,
 *		one with LARGE meets one with NEG_LARGE,
 *		one of at least 2^567 meets another one, or any that is smaller
 *
 * since such values differ by 2^513 or more.  Each value of at least 2^567 sets
 * one bit of each pair, by a hash; two different ones are unlikely to set the
 * same (2^-26), and then both bits of some pair are set.
 */
#define RHH_F64_NAN				0x01
#define RHH_F64_INFINITE		0x02
#define RHH_F64_NEG_INFINITE	0x04
#define RHH_F64_NOT_FINITE		0x07
#define RHH_F64_SMALL			0x08	/* in size below ... */
#define RHH_F64_SMALL_BELOW		0x1p510
#define RHH_F64_MIDDLE			0x10	/* from there, below 2^567 */
#define RHH_F64_LARGE			0x20	/* at least 2^514 */
#define RHH_F64_NEG_LARGE		0x40	/* at most -2^514 */
#define RHH_F64_FIRST_PAIR		8
#define RHH_F64_PAIRS			26

typedef struct rhh_state_spec
{
	uint8_t		op;				/* rhh_state_op */
	int8_t		arg_column;		/* -1: none */
	int8_t		filter_column;	/* -1: none; else a column of bytes without
								 * NULLs, nonzero where the row counts */
} rhh_state_spec;

#define RHH_WANT_PROBE_STATS	0x1 /* fill probe_* of the statistics */

typedef struct rhh_map_spec
{
	uint32_t	n_columns;
	uint32_t	n_keys;			/* 1 to RHH_MAX_KEYS */
	uint32_t	n_states;		/* 0 to RHH_MAX_STATES */
	uint8_t		column_bytes[RHH_MAX_COLUMNS];	/* 1, 2, 4, 8 or 16 */
	uint8_t		key_column[RHH_MAX_KEYS];	/* compared by their bytes; NULL
											 * equals NULL and nothing else */
	rhh_state_spec states[RHH_MAX_STATES];

	uint64_t	expected_groups;	/* a hint, may be wrong by any factor */
	uint64_t	memory_limit_bytes; /* for this table; 0: the device's alone */
	uint32_t	max_probe_buckets;	/* cap on the probe distance, >= 1 */
	float		load_factor;	/* grow beyond this, 0.5 to 0.95 */
	uint32_t	max_batch_rows; /* no batch will be larger */
	uint32_t	max_batch_bytes;	/* of one in host memory */
	uint32_t	flags;
	uint64_t	hash_seed;		/* random, where somebody may want keys to
								 * collide; 0: each time the same hash */
} rhh_map_spec;

/*
 * A batch of columns in memory that stays untouched and mapped until its
 * RHH_EVENT_BATCH arrives.  Values of a NULL row are arbitrary.
 *
 * on_device: that memory is the device's own (on the CPU device, any), all of it,
 * and what fills it has been waited for.  Nothing is copied then, and used_bytes
 * may exceed max_batch_bytes.  Large batches are best, of 2^20 rows and more: they
 * are aggregated before the table sees them.
 *
 * Layout: values_offset[c] is where column c's n_rows values start, aligned to
 * 64 bytes; nulls_offset[c] is 0 where no row of c is NULL, else where its
 * bitmap starts (aligned to 64 bytes, bit i of byte i / 8 set where row i is
 * NULL).  All of these lie in the first used_bytes.  failed_offset, behind
 * them, is room for a bitmap of n_rows bits that the device fills, in the same
 * bit order, where it reports n_failed > 0; otherwise it is left as it is.
 * Bitmaps have room up to the next multiple of 8 bytes.
 */
typedef struct rhh_batch
{
	uint8_t    *base;			/* aligned to 64 bytes */
	bool		on_device;
	uint32_t	n_rows;			/* at least 1 */
	uint32_t	used_bytes;
	uint32_t	failed_offset;
	uint32_t	values_offset[RHH_MAX_COLUMNS];
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];
} rhh_batch;

/*
 * Groups come out as columns of 64-bit words, each column capacity_groups
 * long: word w of group i is words[w * capacity_groups + i].  The words of a
 * group are
 *
 *		word 0				bit k set: key k is NULL
 *		then for each key	1 word, or 2 for 16 bytes: the key's bytes,
 *							zero-extended; zero where NULL
 *		then for each state its words
 *
 * needs_merge: keys of these groups may occur in other results too, so the
 * caller must combine them (entries displaced out of a full table, or counted
 * apart from it and without room there at the end).  Where it
 * is false the keys are unlike all others with needs_merge false; rows that
 * failed may still belong to any of them.  All results with needs_merge come
 * before the first without.
 */
typedef struct rhh_result
{
	uint64_t   *words;
	uint32_t	capacity_groups;
	uint32_t	n_groups;		/* out */
	bool		needs_merge;	/* out */
	bool		last;			/* out: no more groups */
} rhh_result;

/*
 * Rows for one map, made of another map's groups: a further level of grouping, as
 * GROUPING SETS, aggregates with DISTINCT, and an aggregate over a grouped subquery
 * need it.  Each group becomes one row for each of n_sets sets.
 *
 * A state of several words is a number to base 2^64.  Its first word is summed up as
 * RHH_SUM_I128 of RHH_ROW_WORD, the others as sums of RHH_ROW_DIGIT1 and
 * RHH_ROW_DIGIT2.  As sums take signed arguments, a digit of 2^63 or more counts as
 * that digit minus 2^64, which is negative, and 1 is added to the digit after it.
 */
#define RHH_MAX_SETS	64

/* Above the NULL bits of a group's word 0 its caller may keep the number of a set. */
#define RHH_SET_SHIFT	32

typedef enum rhh_row_kind
{
	RHH_ROW_KEY,				/* a key; NULL where it is, or if it is not in the set */
	RHH_ROW_KEY_IS_NULL,		/* 0, or NULL where the key is */
	RHH_ROW_SET,				/* the set's number, in 1 byte */
	RHH_ROW_WORD,				/* a word of a state; two words for 16 bytes */
	RHH_ROW_DIGIT1,				/* the second word of a number of several */
	RHH_ROW_DIGIT2,				/* the third */
	RHH_ROW_ANY					/* the value of RHH_ANY */
} rhh_row_kind;

typedef struct rhh_row_column
{
	uint8_t		kind;			/* rhh_row_kind */
	uint8_t		key;			/* number of the group's key, for RHH_ROW_KEY and
								 * RHH_ROW_KEY_IS_NULL */
	int16_t		part;			/* -1; else NULL in rows of other parts */
	uint32_t	word;			/* the first word of the group's key or state */
} rhh_row_column;

typedef struct rhh_row_spec
{
	rhh_row_column columns[RHH_MAX_COLUMNS];	/* of the map that gets the rows */
	uint32_t	n_parts;		/* 0; else the groups have set numbers in word 0, each
								 * of which is a set's number times n_parts and a
								 * part's number */
	uint32_t	first_set;		/* RHH_ROW_SET of set 0, where n_parts is 0 */
	uint32_t	n_sets;
	uint64_t	outside[RHH_MAX_SETS];	/* bit k: key k is not in the set */
} rhh_row_spec;

/*
 * A hash table of groups in a device: it takes keys to numbers, and carries the
 * states of the group that has the number.
 */
typedef struct rhh_map rhh_map;

/* A piece of such rows: one set's rows of some consecutive groups. */
typedef struct rhh_feed
{
	rhh_map    *source;			/* whose groups; of the same device */
	const rhh_row_spec *rows;	/* stays until the piece's event, as does failed */
	uint32_t	set;
	uint64_t	first_group;	/* in the order of map_extract */
	uint32_t	n_groups;		/* out: groups that the piece has; 0: there is none
								 * from first_group on, and no event comes */
	uint8_t    *failed;			/* as the bitmap of rhh_batch: room for a bit for
								 * each of max_batch_rows, in multiples of 8 bytes */
} rhh_feed;

typedef struct rhh_map_stats
{
	uint64_t	rows;			/* rows aggregated; failed ones not counted */
	uint64_t	failed_rows;	/* rows handed back to the caller */
	uint64_t	groups;			/* after map_finish: distinct keys held */
	uint64_t	capacity_slots;
	uint64_t	bytes;			/* memory held now */
	uint64_t	peak_bytes;
	uint64_t	uploaded_bytes; /* 0 where nothing is copied */
	uint64_t	failed_slots;	/* inserts that hit the probe cap, growth or
								 * not */
	uint64_t	rehashes;
	uint64_t	merged_duplicates;	/* copies of a key made by concurrent
									 * displacement, reconciled */
	uint64_t	orphans;		/* groups without a slot, see needs_merge */
	/*
	 * Times.  Uploads overlap with kernels.  kernel_ns: batches, growth and
	 * finish; on the CPU the threads' time divided by their number, on a GPU
	 * between the stream's events.  extract_ns: by the clock, copies included.
	 */
	uint64_t	upload_ns;		/* 0 where nothing is copied */
	uint64_t	kernel_ns;
	uint64_t	extract_ns;
	/* with RHH_WANT_PROBE_STATS, after map_finish: */
	uint64_t	probe_buckets_sum;	/* buckets read to find each held key once */
	uint32_t	probe_buckets_max;
} rhh_map_stats;

typedef enum rhh_event_kind
{
	RHH_EVENT_BATCH,			/* the batch's memory is the caller's again */
	RHH_EVENT_FINISH,
	RHH_EVENT_EXTRACT			/* the rhh_result is filled in */
} rhh_event_kind;

typedef struct rhh_device rhh_device;

typedef struct rhh_event
{
	rhh_event_kind kind;
	rhh_status	status;			/* RHH_OK, RHH_CANCELLED, RHH_DEVICE_ERROR */
	rhh_map    *table;
	uint64_t	tag;			/* the caller's, from submit or extract */
	uint32_t	n_failed;		/* RHH_EVENT_BATCH: rows handed back */
} rhh_event;

/*
 * The entry points of one kind of device.  err may not be NULL.
 */
typedef struct rhh_device_ops
{
	rhh_device_kind kind;

	/*
	 * Lists this kind's devices without opening any (no context is made).
	 * *n: how many were written, at most cap.  No driver, no device: RHH_OK
	 * and *n = 0, and err->message says which.
	 */
	rhh_status	(*enumerate) (rhh_device_info *infos, uint32_t cap,
							  uint32_t *n, rhh_error *err);

	/* May start threads: the caller masks signals.  *dev is the caller's. */
	rhh_status	(*open) (int32_t ordinal, const rhh_device_config *config,
						 rhh_device **dev, rhh_error *err);

	/* Waits for what is running and frees everything, tables included. */
	void		(*close) (rhh_device *dev);

	rhh_status	(*info) (rhh_device *dev, rhh_device_info *info,
						 rhh_error *err);

	/*
	 * Tells the device where batches will lie, so that it can pin them.  Not
	 * being able to is no error: copies are then slower.
	 */
	rhh_status	(*register_pool) (rhh_device *dev, void *base, size_t bytes,
								  rhh_error *err);

	/*
	 * A descriptor, owned by the device, that becomes readable when poll() has
	 * something to report (level-triggered: poll() resets it).
	 */
	int			(*event_fd) (rhh_device *dev);

	/*
	 * Completions, at most cap; *n: how many.  Also drives what the device
	 * does in steps (growth, replay).  RHH_DEVICE_ERROR: sticky, close it.
	 */
	rhh_status	(*poll) (rhh_device *dev, rhh_event *events, uint32_t cap,
						 uint32_t *n, rhh_error *err);

	/*
	 * RHH_NO_MEMORY when not even the smallest table fits the limit;
	 * RHH_INVALID when the spec breaks a rule of this file.
	 */
	rhh_status	(*map_create) (rhh_device *dev, const rhh_map_spec *spec,
							   rhh_map **table, rhh_error *err);

	/*
	 * Queues a batch; *batch itself is copied, its memory is the device's until
	 * its event.  RHH_BUSY: enough are in flight for this table.
	 */
	rhh_status	(*map_submit) (rhh_map *table, const rhh_batch *batch,
							   uint64_t tag, rhh_error *err);

	/*
	 * No more batches; reconciles.  Only with none in flight.  One
	 * RHH_EVENT_FINISH follows.
	 */
	rhh_status	(*map_finish) (rhh_map *table, rhh_error *err);

	/*
	 * Fills *result (which must stay valid, as must its words, until the
	 * RHH_EVENT_EXTRACT) with the next groups.  One at a time, after FINISH's
	 * event.
	 */
	rhh_status	(*map_extract) (rhh_map *table, rhh_result *result,
								uint64_t tag, rhh_error *err);

	/*
	 * Queues rows that are made of another map's groups, as if they were a batch,
	 * and sets feed->n_groups.  The source must be finished, have no orphans, and
	 * stay as it is until the piece's RHH_EVENT_BATCH arrives.  RHH_BUSY: enough
	 * pieces are in flight, or the source is being extracted.
	 *
	 * The device makes the rows in its own memory, so rows that come back are known
	 * by their number alone: bit i of feed->failed stands for the row of group
	 * first_group + i.  Where the event says n_failed = 0 the bitmap is left as it is.
	 */
	rhh_status	(*map_feed) (rhh_map *table, rhh_feed *feed, uint64_t tag,
							 rhh_error *err);

	/*
	 * Extracting goes on with this group, 0 being the first.  Only between
	 * extractions, and of a map without orphans, which come out once.
	 */
	rhh_status	(*map_seek) (rhh_map *table, uint64_t group, rhh_error *err);

	/* Statistics as of the last event. */
	void		(*map_stats) (rhh_map *table, rhh_map_stats *stats);

	/* What is in flight ends soon, with RHH_CANCELLED events. */
	void		(*map_cancel) (rhh_map *table);

	/* Only with nothing in flight. */
	void		(*map_destroy) (rhh_map *table);
} rhh_device_ops;

extern const rhh_device_ops rhh_cpu_ops;
#ifdef RHH_WITH_CUDA
extern const rhh_device_ops rhh_cuda_ops;
#endif

/*
 * What a library with a device in it exports by this name.  The first bytes are
 * a checksum of the headers that stand beside the devices' folders (RHH_HEADERS,
 * which the Makefile gives to the two files that need it), so whoever loads the
 * library sees whether both mean the same by the types above.  This struct itself
 * never changes.
 */
#define RHH_LIBRARY_SYMBOL "rhh_cuda_library"

typedef struct rhh_library
{
	char		headers[32];
	const rhh_device_ops *ops;
} rhh_library;

/* ---------- arithmetic on a spec, the same for everybody ---------- */

/* Words that key k takes in a result. */
static inline uint32_t
rhh_key_words(const rhh_map_spec *spec, uint32_t k)
{
	return spec->column_bytes[spec->key_column[k]] > 8 ? 2 : 1;
}

/* Words of a state whose argument has so many bytes. */
static inline uint32_t
rhh_op_words(uint8_t op, uint32_t bytes)
{
	switch (op)
	{
		case RHH_SUM_I128:
		case RHH_SUM_F64:
		case RHH_SUM_TWICE_F64:
			return 2;
		case RHH_ANY:
			return bytes > 8 ? 3 : 2;
		case RHH_SUM_SQUARES:
			return bytes > 4 ? 3 : 2;
		case RHH_MOMENTS_F64:
			return 5;
		default:
			return 1;
	}
}

/* A state's first word when no row touched it; its others are zero. */
static inline uint64_t
rhh_op_start(uint8_t op)
{
	switch (op)
	{
		case RHH_MIN_I64:
			return (uint64_t) INT64_MAX;
		case RHH_MAX_I64:
		case RHH_SUM_F64:		/* -0, to which every float can be added */
			return (uint64_t) INT64_MIN;
		case RHH_AND:
			return UINT64_MAX;
		default:
			return 0;
	}
}

/* May a state's argument, or what is counted, have so many bytes? */
static inline bool
rhh_op_takes(uint8_t op, uint32_t bytes)
{
	switch (op)
	{
		case RHH_COUNT:
		case RHH_ANY:
			return true;
		case RHH_SUM_F64:
		case RHH_MOMENTS_F64:
			return bytes == 4 || bytes == 8;
		case RHH_SUM_TWICE_F64:
			return bytes == 16;
		default:
			return bytes <= 8;
	}
}

/* Bytes of state s's argument; 0: it has none. */
static inline uint32_t
rhh_arg_bytes(const rhh_map_spec *spec, uint32_t s)
{
	int8_t		column = spec->states[s].arg_column;

	return column < 0 ? 0 : spec->column_bytes[column];
}

/* Words that state s takes in a result. */
static inline uint32_t
rhh_state_words(const rhh_map_spec *spec, uint32_t s)
{
	return rhh_op_words(spec->states[s].op, rhh_arg_bytes(spec, s));
}

/* First word of state 0: the word of NULL bits and the keys' words. */
static inline uint32_t
rhh_first_state_word(const rhh_map_spec *spec)
{
	uint32_t	words = 1;

	for (uint32_t k = 0; k < spec->n_keys; k++)
		words += rhh_key_words(spec, k);
	return words;
}

/* Words of all states. */
static inline uint32_t
rhh_all_state_words(const rhh_map_spec *spec)
{
	uint32_t	words = 0;

	for (uint32_t s = 0; s < spec->n_states; s++)
		words += rhh_state_words(spec, s);
	return words;
}

/* Words of a group in a result. */
static inline uint32_t
rhh_result_words(const rhh_map_spec *spec)
{
	return rhh_first_state_word(spec) + rhh_all_state_words(spec);
}

#ifdef __cplusplus
}
#endif

#endif							/* RHH_DEVICE_H */
