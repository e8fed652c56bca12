/*
 * rhh_cpu_join.h
 *		How a map of the CPU device keeps rows, and how rows are joined with them.
 *
 * Rows that are kept (rhh_cpu_rows.c).  A map that is the build side of a join has no
 * groups.  As long as rows come in, each batch becomes a chunk of memory by itself, so
 * several threads can keep batches at once.  In a chunk the rows are in the order of their
 * partitions, which are chosen by the high bits of the fingerprint (rhh_keys.h):
 *
 *	chunk
 *			+----------+--------------------------+-------------------+-------------+
 *			| first[p] | a record for each row    | its fingerprint   | NULL bits,  |
 *			|          |                          |                   | if any      |
 *			+----------+--------------------------+-------------------+-------------+
 *
 *	record	a row: the values of its columns, those of the key first and in the order of
 *			the keys, so that keys are compared as pieces of memory
 *
 * Finishing takes the rows of a partition out of all chunks, and puts them side by side in
 * the order of their buckets.  A partition has as many buckets as it has rows; which one a
 * row belongs to follows from the fingerprint's bits behind those of the partition.
 *
 *	directory	an entry for each bucket, and one in front of those of each partition
 *
 *			 0        4        8
 *			+--------+--------+
 *			|  end   | filter |		number of the record behind the bucket's last, and two
 *			+--------+--------+		bits for each fingerprint in the bucket
 *
 *	records		of all rows, with the NULL bits behind the columns if any are NULL, and an
 *				empty record behind the last, for rows that match nothing
 *
 *			+-----+-----+------+--  --+------------------+-----------+--  --+
 *			| key | key | ...  |      | other columns    | NULL bits |      |
 *			+-----+-----+------+--  --+------------------+-----------+--  --+
 *
 * So a search reads one line of the directory, and that of the records only if the filter
 * says that the key may be there (of other keys fewer than one in a hundred pass).  The rows of a key are
 * side by side.  Nothing is stored of how many they are: where keys are not unique the
 * end of a key's rows is looked for in steps that double.
 *
 * If rows with NULL in a key are kept, too (RHH_KEEP_UNMATCHED), they are in a partition of
 * their own, the last one, in which nobody searches.  Keys have NULL bits then.
 *
 * A map that keeps one part of the rows (n_parts of rhh_map_spec) drops the others when they
 * come.  Those partitions have nothing to do with these parts.
 *
 * Joins (rhh_cpu_join.c).  A batch for a map with joins is joined in pieces of limited
 * size.  A piece is made in the device's memory and aggregated as a batch.  How far the
 * output has been made is in the command's join state, which is kept from one piece to the
 * next.
 */
#ifndef RHH_CPU_JOIN_H
#define RHH_CPU_JOIN_H

#include "cpu/rhh_cpu_table.h"
#include "rhh_program.h"

/* Runs BODY with the type T for values of so many bytes. */
#define RHH_CPU_FOR_TYPE(bytes, BODY) \
	switch (bytes) \
	{ \
		case 1: { typedef uint8_t T; BODY } break; \
		case 2: { typedef uint16_t T; BODY } break; \
		case 4: { typedef uint32_t T; BODY } break; \
		case 8: { typedef uint64_t T; BODY } break; \
		default: { typedef unsigned __int128 T; BODY } break; \
	}

/* ---------- rhh_cpu_rows.c ---------- */

/* Numbers of records and of entries of the directory fit 32 bits. */
#define RHH_CPU_MAX_ROWS (UINT32_MAX - 4 * RHH_CPU_MAX_ROW_PARTS)

/* A column in a record. */
typedef struct rhh_cpu_field
{
	uint8_t		column;			/* of the map's batches */
	uint8_t		bytes;
	uint16_t	offset;			/* in the record */
	int16_t		null_bit;		/* among the record's NULL bits; -1: a key that is
								 * never NULL */
} rhh_cpu_field;

typedef struct rhh_cpu_chunk
{
	struct rhh_cpu_chunk *next;
	uint32_t   *first;			/* of the partitions' rows, and the number of all */
	uint32_t   *fp;
	uint8_t    *records;
	uint8_t    *nulls;			/* null_bytes for each row; NULL: no column is NULL */
	bool		in_segment;		/* not memory of its own */
} rhh_cpu_chunk;

/* RHH_CPU_SEGMENT_BYTES of memory, for chunks. */
typedef struct rhh_cpu_row_segment
{
	struct rhh_cpu_row_segment *next;
} __attribute__((aligned(64))) rhh_cpu_row_segment;

typedef struct rhh_cpu_entry
{
	uint32_t	end;
	uint32_t	filter;
} rhh_cpu_entry;

typedef struct rhh_cpu_row_part
{
	uint32_t	first_entry;	/* the one in front of its buckets */
	uint32_t	n_buckets;		/* at least 1 */
	uint32_t	first_row;
} rhh_cpu_row_part;

/* The rows of a map that keeps them. */
typedef struct rhh_cpu_rows
{
	/* constant */
	const rhh_cpu_layout *layout;	/* of which this uses the spec and the key plan */
	rhh_cpu_budget *budget;
	uint32_t	part_bits;
	uint32_t	n_parts;		/* with the one for rows with NULL in a key, if any */
	bool		keeps_null_keys;
	uint32_t	n_fields;		/* the keys first */
	rhh_cpu_field fields[RHH_MAX_KEYS + RHH_MAX_COLUMNS];
	uint32_t	key_bytes;		/* of all keys of a record */
	uint32_t	row_bytes;		/* of all columns */
	uint32_t	null_bytes;		/* of NULL bits, if there are any */
	uint32_t	final_bytes;	/* charged for a row's last place, when it comes */

	/* while rows come */
	pthread_mutex_t lock;		/* of what comes before the counters */
	rhh_cpu_chunk *chunks;
	rhh_cpu_row_segment *segments;
	size_t		segment_left;	/* bytes of the first that are free */
	uint64_t	charged_bytes;
	bool		any_nulls;
	uint32_t   *part_rows;		/* of each partition */
	_Atomic uint64_t rows;
	_Atomic uint64_t refused_rows;
	_Atomic uint64_t dropped_rows;
	_Atomic uint64_t busy_ns;

	/* from finishing on */
	uint32_t	n_tasks;
	_Atomic uint32_t n_unfinished;	/* tasks */
	uint32_t	n_rows;
	uint32_t	stride;			/* of a record */
	uint8_t    *records;
	size_t		records_bytes;
	rhh_cpu_entry *directory;
	size_t		directory_bytes;
	rhh_cpu_row_part *parts;
	uint32_t	n_buckets;		/* that are searched */
	_Atomic uint64_t groups;
	_Atomic uint64_t probe_sum; /* of each key: it and the keys before it in its bucket */
	_Atomic uint32_t probe_max;
	bool		unique;			/* each row has another key */
	atomic_uchar *matched;		/* RHH_SHARE_MATCHES: rhh_cpu_one_join's of all maps that are
								 * joined with these rows; NULL: none is yet */
} rhh_cpu_rows;

static inline uint32_t
rhh_cpu_row_part_of(const rhh_cpu_rows *rows, uint32_t fp)
{
	return fp >> (32 - rows->part_bits);
}

/* The bucket, in a partition, of a fingerprint that belongs there. */
static inline uint32_t
rhh_cpu_row_bucket(const rhh_cpu_rows *rows, uint32_t fp, uint32_t n_buckets)
{
	return (uint32_t) (((uint64_t) (fp << rows->part_bits) * n_buckets) >> 32);
}

/* What a filter has of a fingerprint.  The high bits of the product depend on all bits. */
static inline uint32_t
rhh_cpu_filter_bits(uint32_t fp)
{
	uint32_t	mixed = fp * 0x9e3779b1u;

	return 1u << (mixed >> 27) | 1u << (mixed >> 22 & 31);
}

/* Are two keys of so many bytes the same? */
static inline __attribute__((always_inline)) bool
rhh_cpu_same_key(const uint8_t *a, const uint8_t *b, uint32_t bytes)
{
	uint64_t	x = 0,
				y = 0;

	for (; bytes >= 8; bytes -= 8, a += 8, b += 8)
	{
		memcpy(&x, a, 8);
		memcpy(&y, b, 8);
		if (x != y)
			return false;
	}
	x = y = 0;
	if ((bytes & 4) != 0)
	{
		uint32_t	x4,
					y4;

		memcpy(&x4, a, 4);
		memcpy(&y4, b, 4);
		if (x4 != y4)
			return false;
		a += 4;
		b += 4;
	}
	for (bytes &= 3; bytes > 0; bytes--, a++, b++)
		if (*a != *b)
			return false;
	return true;
}

/* Does a map keep only one part of its rows? */
static inline bool
rhh_cpu_has_parts(const rhh_cpu_rows *rows)
{
	return rows->layout->spec.n_parts > 1;
}

extern void rhh_cpu_find_others(const rhh_cpu_rows *rows, const rhh_key_plan *plan,
								const rhh_batch *batch, uint32_t start, uint32_t n,
								const uint8_t *is_null, uint8_t *is_other);
extern bool rhh_cpu_rows_init(rhh_cpu_rows *rows, const rhh_cpu_layout *layout,
							  rhh_cpu_budget *budget);
extern void rhh_cpu_rows_free(rhh_cpu_rows *rows);
extern bool rhh_cpu_rows_share_matches(rhh_cpu_rows *rows);
extern bool rhh_cpu_rows_keep(rhh_cpu_rows *rows, const rhh_batch *batch,
							  rhh_cpu_scratch *scratch, rhh_cpu_refused *refused,
							  const atomic_bool *cancelled);
extern bool rhh_cpu_rows_start_finish(rhh_cpu_rows *rows, uint32_t n_workers,
									  uint32_t most_tasks);
extern bool rhh_cpu_rows_finish(rhh_cpu_rows *rows, uint32_t task,
								const atomic_bool *cancelled);

/* ---------- rhh_cpu_join.c ---------- */

#define RHH_CPU_COMPUTED	UINT8_MAX

/* Where a column of the joins' comes from. */
typedef struct rhh_cpu_source
{
	uint8_t		side;			/* 0: the batch; j + 1: the build side of join j;
								 * RHH_CPU_COMPUTED: the program makes it */
	uint8_t		column;			/* of the batch */
	uint8_t		bytes;
	bool		may_be_missing; /* the build side of a LEFT or a FULL join */
	uint16_t	offset;			/* in the record */
	int16_t		null_bit;		/* there; -1: never NULL */
} rhh_cpu_source;

typedef struct rhh_cpu_one_join
{
	const rhh_cpu_rows *build;
	uint8_t		kind;			/* rhh_join_kind */
	atomic_uchar *matched;		/* of each of its rows: not 0 if something has matched
								 * it; NULL: nobody asks */
	rhh_key_plan plan;			/* the build side's, of keys in columns 0, 1, ... */
	rhh_cpu_source keys[RHH_MAX_KEYS];
	bool		has_condition;
	rhh_program condition;		/* which pairs of a row and a record are matches */
	bool		may_be_bad;		/* for some pairs it may be bad, so all are looked at */
	uint32_t	n_columns;		/* that it reads */
	rhh_cpu_source columns[RHH_MAX_COLUMNS];
	uint8_t		column_bytes[RHH_MAX_COLUMNS];
} rhh_cpu_one_join;

/* The joins of a map.  All but the counters, and which rows have a match, is constant. */
typedef struct rhh_cpu_joins
{
	rhh_cpu_budget *budget;
	uint64_t	charged_bytes;
	atomic_uchar *matched;		/* of all joins */
	rhh_join_spec spec;
	rhh_cpu_one_join joins[RHH_MAX_JOINS];
	uint32_t	n_columns;		/* of the map */
	rhh_cpu_source columns[RHH_MAX_COLUMNS];
	bool		has_program;
	rhh_program program;		/* computes some of the columns */
	size_t		scratch_bytes;	/* that it and conditions need, at the end of each state */
	size_t		state_bytes;	/* of a state, with that */
	uint32_t	piece_rows;		/* at most */
	uint32_t	values_offset[RHH_MAX_COLUMNS]; /* in a piece of so many */
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];
	_Atomic uint64_t probe_rows;
	_Atomic uint64_t returned_rows; /* of the output, that no table was asked to take: the
									 * program's bad ones, or all */
	_Atomic uint64_t joined_rows[RHH_MAX_JOINS];
	_Atomic uint64_t filtered_rows; /* of the output, that the program has dropped */
	_Atomic uint64_t bad_candidates;	/* pairs for which a condition was bad */

	uint8_t    *states;			/* of all batches in flight */
	struct rhh_cpu_join_state *free_states; /* the caller's thread only */
} rhh_cpu_joins;

/*
 * Some rows on their way through the joins: at level 0 rows of the batch, at level j + 1
 * what has come out of join j, or rows of its build side that have no match.
 */
typedef struct rhh_cpu_level
{
	uint32_t	n;
	uint32_t	at;				/* the first that has not come out of its join wholly, */
	uint64_t	taken;			/* of whose matches so many have; of a join with a
								 * condition, so many of its candidates are done, */
	bool		had_match;		/* and one of these was a match */
	bool		single;			/* none comes out more than once */
	uint8_t		other[RHH_CPU_JOIN_ROWS];	/* 1: its key is not of the part that the next
											 * join's build side has; only if that has parts */
	uint32_t	parent[RHH_CPU_JOIN_ROWS];	/* which one of the level before it was */
	uint32_t	record[RHH_CPU_JOIN_ROWS];	/* its match there */
	uint32_t	first[RHH_CPU_JOIN_ROWS];	/* in the next join: its first match, */
	uint32_t	count[RHH_CPU_JOIN_ROWS];	/* and how often it comes out; with a
											 * condition, its first candidate, and how
											 * many there are */
} rhh_cpu_level;

/*
 * How far the output of a batch has been made.  Levels are worked off depth first, so the
 * output comes in the order of the batch's rows, and of their matches.
 */
typedef struct rhh_cpu_join_state
{
	struct rhh_cpu_join_state *next;	/* a free one */
	uint32_t	base;			/* the level that rows come into: unmatched of the batch */
	uint32_t	first_row;		/* of that level; of level 0 they are side by side */
	uint32_t	next_row;		/* behind that level */
	uint32_t	depth;			/* the deepest level with rows */
	bool		at_end;			/* there is no more output */
	uint32_t	n_bad;			/* rows of the piece that have been handed back, as the
								 * program could not compute their columns */
	uint64_t	skip[RHH_MAX_JOINS];	/* level->taken of the next first row of each level */
	bool		skip_had_match[RHH_MAX_JOINS];	/* and level->had_match */
	rhh_cpu_level levels[];		/* as many as there are joins, and one */
} rhh_cpu_join_state;

extern rhh_cpu_joins *rhh_cpu_joins_make(const rhh_join_spec *spec,
										 const rhh_cpu_rows *const *builds,
										 const rhh_map_spec *map, uint32_t n_states,
										 rhh_cpu_budget *budget);
extern void rhh_cpu_joins_free(rhh_cpu_joins *joins);
extern void rhh_cpu_join_start(rhh_cpu_joins *joins, rhh_cpu_join_state *state,
							   const rhh_batch *batch);
extern bool rhh_cpu_join_piece(rhh_cpu_joins *joins, rhh_cpu_join_state *state,
							   const rhh_map_spec *map, const rhh_batch *batch, uint32_t most,
							   rhh_cpu_lists *lists, rhh_cpu_scratch *scratch,
							   const atomic_bool *cancelled);
extern bool rhh_cpu_join_compute(rhh_cpu_joins *joins, const rhh_map_spec *map, rhh_batch *rows,
								 rhh_cpu_scratch *scratch);
extern void rhh_cpu_join_return(rhh_cpu_joins *joins, const rhh_map_spec *map,
								const rhh_batch *piece, uint32_t n, const rhh_batch *batch);
extern void rhh_cpu_join_hand_back(const rhh_map_spec *map, const rhh_batch *piece,
								   const uint8_t *refused, uint32_t n,
								   const rhh_batch *batch);
extern void rhh_cpu_join_position(const rhh_cpu_joins *joins,
								  const rhh_cpu_join_state *state,
								  rhh_position *next);

#endif							/* RHH_CPU_JOIN_H */
