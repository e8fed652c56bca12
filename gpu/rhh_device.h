/*
 * rhh_device.h
 *		The C interface of a device that joins and groups rows.
 *
 * The device service calls it; the CPU device (gpu/cpu) and the CUDA device
 * (gpu/cuda) implement it.  It needs C99 or C++11 and nothing else, and it includes
 * neither PostgreSQL's headers nor CUDA's.
 *
 * What a map is.  A map is a hash table in a device's memory that takes the keys of
 * rows to groups.  It gives each distinct key a group number, and keeps the group's
 * transition states (counts, sums and so on) under that number.  A spec
 * (rhh_map_spec) says which columns are keys and which states are computed.  Rows
 * come in as batches of columns, and groups come out as columns of 64-bit words.
 *
 * The life of a map.
 *
 *		open -> register_pool -> { map_create -> (map_submit | map_feed)* ->
 *			map_finish -> (map_extract | map_seek)* -> map_destroy }* -> close
 *
 * A device may have many maps at a time.  Rows come from the caller (map_submit), or
 * the device makes them of the groups of another map that is finished (map_feed).  Both
 * may be called several times before the first batch is done, as often as they do not
 * answer RHH_BUSY.  map_finish may be called once all batches are done, and map_extract,
 * one call at a time, once finishing is done; map_seek says where it goes on.
 * map_cancel may be called at any time.  From then on calls for the map, but map_stats
 * and map_destroy, are answered with RHH_CANCELLED; so is a map_feed whose source it is.
 * map_destroy may be called when nothing of the map is in flight, and no piece that is
 * made of its groups.
 *
 * Threads.  One thread of the caller's makes all calls to a device, so no two calls
 * ever overlap.  The device works beside it, with threads or streams of its own.  So
 * the calls return quickly: they queue work, and poll() reports what has been done.
 *
 * Memory.  The memory of a batch is the caller's, but from map_submit until poll() has
 * reported the batch's RHH_EVENT_BATCH the device uses it: it reads the columns and may
 * write the bitmap of refused rows.  Meanwhile the caller must leave it unchanged and
 * mapped.  The same holds for an rhh_result and its words, which the device writes, from
 * map_extract until the RHH_EVENT_EXTRACT.  The structs rhh_map_spec and rhh_batch are
 * copied before a call returns.  Everything else is the device's own; map_destroy and
 * close give it back.
 *
 * Joins.  A map of which the spec says RHH_KEEP_ROWS is the build side of a hash join:
 * it keeps its rows, all columns of them, and finds those that have a key.  It takes
 * rows as any map does, has no states, and once it is finished it can be probed and
 * not extracted.  map_join tells another map, before it gets its first batch, that the
 * rows of its batches are to be joined with the rows of such maps, one join after the
 * other, and what columns of these make its own columns (rhh_join_spec).  From then on
 * its batches are rows of the probe side, and its groups are made of what comes out.
 * The device joins them in pieces of limited size, so one row may have any number of
 * matches.
 *
 * Passes.  A build side that has no room in memory can be kept in parts (n_parts and part
 * of rhh_map_spec), one after the other.  The caller feeds all its rows to a map that
 * keeps those of part 0 alone, joins all rows of the probe side with that, and does the
 * same for each other part.  Rows whose key is of another part do not come out of such a
 * join at all, so each row of the output is made in one of the passes.  Before the second
 * pass and each further one the caller calls map_join for the map of the groups once more.
 *
 * Pages.  Rows may also come as PostgreSQL's heap pages, in memory that the caller has told the
 * device of (register_pages): a batch then has no columns, but says in which pages and at which
 * line pointers its rows are, and how columns are made of them (rhh_pages.h).  So the caller copies
 * nothing.  It is for maps with joins, if only none (RHH_MAX_JOINS), and maps that keep rows.
 *
 * The cache.  A device may have copies of such pages in memory of its own, and read these where it would
 * read the caller's.  That memory comes in slabs (cache_slab), and has a slot for each page.  Which page a
 * slot has, and whether it is what the page is now, the caller knows: it names slots in batches, as places
 * for pages that are read, and as pages to be read (rhh_batch).  A slab that no batch in flight
 * has a slot of may be lost when a map needs memory (lost_slab).
 *
 * Refused rows.  A map may have no place for a row: its key's place would be further
 * from home than the probe cap allows, or there is no memory to grow.  Such a row is
 * refused.  It has not changed any state by then; its bit is set in the batch's bitmap
 * of refused rows, and the caller groups it elsewhere.  Other rows with the same
 * key may be in the map, so the caller combines both in the end.  Of a join's batch it
 * is rows of the output that are refused; they come back as columns (rhh_batch).  So a
 * map of which the spec says RHH_RETURN_ROWS, which refuses all of them, is how a caller
 * gets the output itself.  It needs joins, and its keys mean nothing.  Of a map that keeps the output of
 * joins no row comes back: if any is refused, or bad, the event counts some of these, and the map lacks rows.
 * When map_finish() has been called it does not need its build sides any more.
 *
 * Errors.  No function throws or longjmps.  A function that can fail returns an
 * rhh_status, and if that is not RHH_OK it has put the same status and a message into
 * the caller's rhh_error.  RHH_BUSY is no failure: the caller polls and tries again.
 * After RHH_DEVICE_ERROR the device is of no more use in this process and has to be
 * closed; after any other error it goes on.
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
	RHH_BUSY,					/* not possible now: poll(), then try again */
	RHH_NO_MEMORY,				/* memory, or the limit on it, is used up */
	RHH_INVALID,				/* the caller has broken a rule of this file */
	RHH_NO_DEVICE,				/* no such device, or it cannot be used */
	RHH_CANCELLED,				/* the map was cancelled */
	RHH_DEVICE_ERROR			/* the device has failed: close it, because it
								 * will not work again in this process */
} rhh_status;

typedef struct rhh_error
{
	rhh_status	status;
	char		message[256];	/* lower case, without a period, ends with a
								 * zero byte */
} rhh_error;

typedef enum rhh_device_kind
{
	RHH_KIND_CPU = 0,
	RHH_KIND_CUDA = 1
} rhh_device_kind;

typedef enum rhh_device_state
{
	RHH_STATE_AVAILABLE = 0,	/* it is there, and not open */
	RHH_STATE_OPEN,
	RHH_STATE_UNUSABLE			/* it is there, but cannot be used: see reason */
} rhh_device_state;

typedef struct rhh_device_info
{
	rhh_device_kind kind;
	int32_t		ordinal;		/* N of cuda:N; 0 for the CPU */
	rhh_device_state state;
	int32_t		cc_major;		/* CUDA compute capability; 0 for the CPU */
	int32_t		cc_minor;
	uint64_t	total_bytes;
	uint64_t	free_bytes;		/* valid only if free_known */
	bool		free_known;		/* false for a CUDA device that is not open */
	uint32_t	n_threads;		/* threads of the CPU that work for it; 0: none */
	char		name[96];
	char		reason[160];	/* why it is UNUSABLE, or ""; callers may note more */
} rhh_device_info;

typedef struct rhh_device_config
{
	uint64_t	memory_limit_bytes; /* for all maps together.  0: the device
									 * decides; a GPU takes most of what is free,
									 * the CPU device takes half of what is free,
									 * but no more than a quarter of all memory */
	uint32_t	cpu_threads;	/* CPU device: number of worker threads.  0: one
								 * for each processor that it may use */
	const char *root;			/* CPU device: a prefix for the paths under which
								 * it looks at its machine, for tests; NULL
								 * otherwise.  Must last as long as the device */
	uint32_t	look_rows;		/* CUDA device: the rows of a batch in the
								 * device's memory are counted first, to choose
								 * how to aggregate them, if there are at least
								 * so many.  0: the device decides */
	uint64_t	carry_bytes;	/* CUDA device: the index of a build side has copies
								 * of values if without them it and the rows had
								 * more bytes.  0: the device decides */
} rhh_device_config;

/* ---------- what a map computes ---------- */

#define RHH_MAX_COLUMNS 64		/* keys, arguments and filters in a batch */
#define RHH_MAX_KEYS	32
#define RHH_MAX_STATES	64
#define RHH_MAX_STATE_WORDS (3 * RHH_MAX_STATES)	/* of all states together */

/*
 * Transition states.  The column of an argument has integers in two's complement
 * of 1, 2, 4 or 8 bytes, which are sign-extended before use.  For ..._F64 it has floats
 * of 4 or 8 bytes (RHH_SUM_TWICE_F64 is an exception).  A row whose argument is NULL or
 * whose filter byte is zero does not touch the state.
 */
typedef enum rhh_state_op
{
	RHH_COUNT = 1,				/* number of rows (arg_column < 0), or of rows
								 * whose argument is not NULL; 1 word */
	RHH_SUM_I64,				/* wrapping 64-bit sum; 1 word */
	RHH_SUM_I128,				/* exact sum of 8-byte integers; 2 words, low
								 * then high, two's complement */
	RHH_MIN_I64,				/* 1 word; INT64_MAX when no row touched it */
	RHH_MAX_I64,				/* 1 word; INT64_MIN when no row touched it */
	RHH_ANY,					/* the value of any one row, of 1 to 16 bytes,
								 * zero-extended; 1 word (0: NULL, 1: not NULL),
								 * then 1 or 2 words of value.  The caller
								 * promises that all rows of a group have the
								 * same value. */
	RHH_AND,					/* bitwise AND; 1 word; all ones when no row
								 * touched it */
	RHH_OR,						/* bitwise OR; 1 word */
	RHH_XOR,					/* bitwise XOR; 1 word */
	RHH_SUM_SQUARES,			/* exact sum of squares; 2 words, or 3 of 8-byte
								 * arguments, low to high, unsigned */
	RHH_SUM_F64,				/* 2 words: the sum of all finite values as a
								 * double, added in any order, -0 when no row
								 * touched it; then RHH_F64_... flags */
	RHH_MOMENTS_F64,			/* 5 words: the sum of all small values, and the
								 * sum of their squares, each as two doubles
								 * whose sum is meant and of which the second
								 * has the digits that the first has no room
								 * for; then flags */
	RHH_SUM_TWICE_F64			/* 2 words: the sum, as two such doubles, of
								 * arguments that are two such doubles each, in
								 * 16 bytes; not finite if any argument is not
								 * finite */
} rhh_state_op;

/*
 * Flags that say which values a state of floats has seen.
 *
 * From the flags of a group the caller can tell, for nearly every group, whether the
 * squares of the differences between its values are too large for a double.  They are
 * if the group has
 *
 *		a value with SMALL and one with LARGE or NEG_LARGE,
 *		a value with LARGE and one with NEG_LARGE, or
 *		a value of at least 2^567 and any other, different value,
 *
 * because such values differ by 2^513 or more.  To recognise the last case, each value
 * of at least 2^567 sets one bit of each of the pairs, and a hash of the value chooses
 * which.  If two such values differ, then both bits of some pair are set, unless the
 * hashes agree in all of the pairs (probability 2^-26).
 */
#define RHH_F64_NAN				0x01
#define RHH_F64_INFINITE		0x02
#define RHH_F64_NEG_INFINITE	0x04
#define RHH_F64_NOT_FINITE		0x07
#define RHH_F64_SMALL			0x08	/* its absolute value is below ... */
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
								 * NULLs, which are not zero where the row
								 * counts */
} rhh_state_spec;

/* The cache. */
#define RHH_SLAB_PAGES	16384u	/* slots of a slab */
#define RHH_MAX_SLABS	4096u
#define RHH_NO_SLOT		UINT32_MAX

#define RHH_WANT_PROBE_STATS	0x1 /* fill in probe_... of the statistics */
#define RHH_KEEP_ROWS			0x2 /* the build side of a join: n_states is 0 */
#define RHH_RETURN_ROWS			0x4 /* rows of the joins' output are what is asked
									 * for: all are refused; n_states is 0 */
#define RHH_KEEP_UNMATCHED		0x8 /* with RHH_KEEP_ROWS: rows with NULL in a key are
									 * kept, too, which match nothing */
#define RHH_SHARE_MATCHES		0x10	/* with RHH_KEEP_ROWS: a row has a match if it has one in
										 * any of the maps that are joined with this one, at the
										 * same place among their joins */

/* What a map is to compute, and what it may take for that. */

typedef struct rhh_map_spec
{
	uint32_t	n_columns;
	uint32_t	n_keys;			/* 1 to RHH_MAX_KEYS */
	uint32_t	n_states;		/* 0 to RHH_MAX_STATES */
	uint8_t		column_bytes[RHH_MAX_COLUMNS];	/* 1, 2, 4, 8 or 16 */
	uint8_t		key_column[RHH_MAX_KEYS];	/* keys are equal if their bytes
											 * are; NULL equals NULL only */
	rhh_state_spec states[RHH_MAX_STATES];

	uint64_t	expected_groups;	/* a hint, which may be wrong by any factor; of
									 * rows, if the map keeps them */
	uint64_t	memory_limit_bytes; /* for this map; 0: only the device's limit */
	uint32_t	max_probe_buckets;	/* cap on the probe distance, at least 1 */
	float		load_factor;	/* the map grows beyond it; 0.5 to 0.95 */
	uint32_t	max_batch_rows; /* no batch will have more rows */
	uint32_t	max_batch_bytes;	/* nor more bytes, if it is in host memory */
	uint32_t	max_page_bytes; /* nor more as columns, if it has pages.  0: none has */
	uint32_t	flags;			/* RHH_WANT_PROBE_STATS, RHH_KEEP_ROWS,
								 * RHH_RETURN_ROWS, RHH_KEEP_UNMATCHED,
								 * RHH_SHARE_MATCHES */
	uint64_t	hash_seed;		/* chooses the hash function.  Random where
								 * somebody could choose keys that collide; 0: a
								 * fixed function */
	uint32_t	n_parts;		/* with RHH_KEEP_ROWS: a power of two, of which part */
	uint32_t	part;			/* this map keeps the rows; 0 and 0: it keeps all */
} rhh_map_spec;

/*
 * Joins whose output are the rows of a map.
 *
 * Columns are numbered through: first those of the batches, which are the rows of the
 * probe side, then all columns of the first join's build side, in the order of its
 * spec, then those of the second's, and so on.  A join's keys may be any columns that
 * come before its own.  They are compared by their bytes, so both sides' columns have
 * the same width.  NULL equals nothing, not even NULL: rows of a build side that have
 * NULL in a key are dropped when they come, unless its spec says RHH_KEEP_UNMATCHED.
 *
 * RHH_JOIN_RIGHT and RHH_JOIN_FULL also make a row of each row of the build side that
 * nothing has matched, in which all columns before the build side's are NULL.  Which rows
 * these are is known when all rows that come into the join have come.  So the caller asks
 * for them in the end, by batches that have no rows (unmatched of rhh_batch).  If several maps are
 * joined with a build side that has RHH_SHARE_MATCHES, that is when the batches of all of them are
 * done, and it asks one of them.
 * RHH_JOIN_RIGHT_ANTI makes these rows and no others; and RHH_JOIN_RIGHT_SEMI makes in the
 * same way a row of each row of the build side that something has matched.
 *
 * If the spec of a build side has parts, the part of a key follows from its bytes alone and
 * not from the seed (rhh_part_of()).  Part p of n is parts p and p + n of 2n together.  A row
 * of either side that has NULL in a key is of part 0.  No row comes out of the join, of any
 * kind, for a row of another part that comes into it; rows of the build side without a
 * match are those of the map.
 */
#define RHH_MAX_JOINS	8
#define RHH_MAX_PARTS	64
#define RHH_COMPUTED	UINT16_MAX	/* not a column of any side */

typedef struct rhh_map rhh_map; /* see the head of this file */

typedef struct rhh_program rhh_program; /* rhh_program.h */

typedef enum rhh_join_kind
{
	RHH_JOIN_INNER = 1,			/* a row for each match */
	RHH_JOIN_LEFT,				/* the same; without a match one row, in which the
								 * build side's columns are NULL */
	RHH_JOIN_SEMI,				/* one row if there is a match.  The build side's
								 * columns must not be used */
	RHH_JOIN_ANTI,				/* one row if there is no match; the same */
	RHH_JOIN_RIGHT,				/* as INNER, and a row for each row of the build side
								 * without a match.  That one keeps rows with NULL in a
								 * key, as it does for FULL and RIGHT_ANTI */
	RHH_JOIN_FULL,				/* as LEFT, and the same */
	RHH_JOIN_RIGHT_SEMI,		/* a row for each row of the build side with a match.
								 * Columns before the build side's must not be used */
	RHH_JOIN_RIGHT_ANTI			/* a row for each one without a match; the same */
} rhh_join_kind;

/*
 * A join.  A row of the build side that has the same key is a match; if the join has a
 * condition, only one for which the condition is true.  That is a program without results
 * whose filter decides, over columns that come before the build side's or are its own,
 * whatever the kind.  If the condition is bad for a row with the same key, nobody but the
 * caller can say whether that is a match: the device goes on as if it were none, and counts
 * it (bad_candidates of rhh_map_stats).  Where any is counted, what comes out of the joins
 * need not be their output, and the caller joins the rows elsewhere.
 */

typedef struct rhh_join
{
	rhh_map    *build;			/* keeps rows, and is finished */
	uint8_t		kind;			/* rhh_join_kind */
	uint16_t	key_column[RHH_MAX_KEYS];	/* compared with build's keys, in order */
	const rhh_program *condition;	/* NULL: there is none.  It is copied */
	uint32_t	n_condition_columns;
	uint16_t	condition_column[RHH_MAX_COLUMNS];	/* of the condition's columns: which
													 * they are */
} rhh_join;

typedef struct rhh_join_spec
{
	uint32_t	n_columns;		/* of the batches */
	uint8_t		column_bytes[RHH_MAX_COLUMNS];
	uint32_t	n_joins;		/* 0 to RHH_MAX_JOINS.  With none the output is the rows of the
								 * batches, of which the program computes columns, and drops
								 * some */
	rhh_join	joins[RHH_MAX_JOINS];	/* in the order in which they are done */
	uint16_t	column[RHH_MAX_COLUMNS];	/* for each column of the map: which column
											 * it is, of the same width */
	const rhh_program *program; /* over the map's columns, of which it computes those
								 * that are RHH_COMPUTED; NULL: there are none.  It is
								 * copied, too */
} rhh_join_spec;

/*
 * How far the output of a batch has been made.  All zero is the beginning; what else
 * it means is the device's business.
 */
typedef struct rhh_position
{
	uint64_t	at[RHH_MAX_JOINS + 1];
} rhh_position;

/*
 * A batch: rows as columns, in one piece of memory.
 *
 * values_offset[c] is where the n_rows values of column c start.  nulls_offset[c] is 0
 * if column c has no NULL; otherwise it is where its bitmap starts, in which bit i % 8
 * of byte i / 8 is set if row i is NULL.  The value of such a row may be anything.  Both
 * are multiples of 64.  All values and bitmaps lie within the first used_bytes.
 *
 * refused_offset, which is behind these, is where the device writes the bitmap of
 * refused rows, n_rows bits in the same order.  It does so only if the batch's event
 * has n_refused > 0, and leaves that memory unchanged otherwise.
 *
 * All bitmaps have room up to the next multiple of 8 bytes.
 *
 * A batch for a map with joins has the columns of rhh_join_spec.  Instead of a bitmap it
 * has room for refused rows of the output at refused_offset: the columns of the map for
 * up to refused_rows rows, laid out as rhh_output_values() and rhh_output_nulls() say.
 * The device stops after a piece of output of which rows were refused, or after some pieces
 * if the map returns all rows; then the event
 * has n_refused > 0, and the rows are there, all columns of them.  If the event also
 * says more, the caller submits the same batch again, with from set to the event's next,
 * once it has taken the rows; columns and bitmaps must be as they were.  Every row of
 * the output is aggregated or handed back exactly once.  A row for which the program has
 * a bad operation is handed back, too, and its bit is set in a bitmap behind the columns
 * (rhh_output_bad()); what its computed columns have then means nothing.
 *
 * unmatched says that the batch is not one of rows, but j + 1 for the rows of the build
 * side of join j, which is RIGHT, FULL or RIGHT_ANTI, that nothing has matched; if it is
 * RIGHT_SEMI, for those that something has.  They go through the joins behind j and into
 * the map, or come back, as what comes out of join j does.  Such a batch has base,
 * refused_offset, refused_rows and from, and everything else is zero.
 * There is one for each such join, in their order, when all other batches are done: no
 * other is in flight then, and none comes after it but those of later joins.
 *
 * Where n_pages is not 0, a batch has pages instead of columns: at pages_offset, a multiple of 64,
 * n_pages of rhh_page, and at layout_offset, a multiple of 8, an rhh_page_layout, all of it within
 * the first used_bytes.  n_rows is the sum of the pages'; as columns, with a byte for each NULL,
 * these rows would have no more than max_page_bytes.  If the layout's program has a filter, the
 * device drops rows: it writes into a page which rows are left, where they are among
 * those of the batch, and how many it has dropped.  A page of which the device cannot make all
 * columns, or of which what is there does not make sense, is *bad*: the device sets its bad, makes
 * its n_rows 0, and takes none of its rows.  The batch's event counts such pages, and the caller
 * sees to their rows; if it submits the batch again, n_rows is the sum that it is then.  Unless the
 * map has joins, a page is bad, too, if rows of it were refused: these are the ones that are visible
 * then, and there is no bitmap of refused rows.  Until
 * the event the visible tuples of the pages stay where they are.  Nothing else of a page needs to
 * stay as it is, and if the map is cancelled not even these.
 *
 * If slots_offset, a multiple of 4, is not 0, there is for each page the number of a slot of the cache, or
 * RHH_NO_SLOT.  The device copies the page there, with n_rows and visible as the caller has
 * set them.  What is there means nothing before the batch's event, and nothing if that says that the map
 * is cancelled, or for a page that is RHH_PAGE_UNREAD; so until then no other batch may have that slot.
 * If parts is set, the device need not copy more than line pointers, and of each row its attributes up to the last one that
 * the layout has.  For a layout with more of them such a copy is a bad page.
 *
 * If all_visible is set, some pages may be marked as all visible: the device finds out which rows they have.  Then
 * n_rows is what the caller thinks that all have together, and the device writes into each page, as it does with
 * a filter, which rows it has and where they are.  Pages that do not find room are bad, as are those whose rows it
 * cannot find.
 *
 * If cached is set, the pages are in the cache, in the slots of which slots_offset has the numbers, from first_page up to,
 * but without, end_page.  n_rows is no less than what they have together, and what the caller has at pages_offset
 * means nothing: if the batch's event counts bad pages or refused rows, or says more, the device has written there
 * which rows each page has and where they are among those of the batch, as it does with a filter; else it means nothing
 * still.  Whatever is in the slots stays as it is until the event.  Of a batch that is submitted again the pages are
 * as they were.
 *
 * on_device says that the memory, all of it, is the device's own (for the CPU device
 * that is any memory), and that whatever has filled it is done.  Nothing is copied
 * then, and used_bytes may exceed max_batch_bytes.  Such batches should have 2^20 rows
 * or more: those are aggregated before they are put into the map, and what joins make of
 * them is made in few pieces.
 */
typedef struct rhh_batch
{
	uint8_t    *base;			/* aligned to 64 bytes */
	bool		on_device;
	uint32_t	n_rows;			/* at least 1 */
	uint32_t	used_bytes;
	uint32_t	refused_offset;
	uint32_t	refused_rows;	/* with joins: the room there, at least 1; else unused */
	uint32_t	unmatched;		/* with joins: see above; else unused */
	rhh_position from;			/* with joins: where to go on; else unused */
	uint32_t	n_pages;		/* see above; 0: the batch has columns */
	uint32_t	pages_offset;
	uint32_t	layout_offset;
	uint32_t	first_page;		/* with pages: their numbers are from here on ... */
	uint32_t	end_page;		/* ... and below this */
	uint32_t	slots_offset;	/* with pages: where these go in the cache; 0: nowhere */
	bool		cached;			/* with pages: that is where they are already */
	bool		all_visible;	/* with pages: some may be marked so */
	bool		parts;			/* with slots: not all of a row goes there */
	uint32_t	values_offset[RHH_MAX_COLUMNS];
	uint32_t	nulls_offset[RHH_MAX_COLUMNS];
	uint64_t	zero_columns;	/* a bit for each of its columns of which it is known that all values are 0, which
								 * are there all the same; with pages the caller gives 0 */
} rhh_batch;

/*
 * Groups as columns of 64-bit words, each with room for capacity_groups: word w of
 * group i is words[w * capacity_groups + i].  The words of a group are
 *
 *		word 0				bit k is set if key k is NULL
 *		then for each key	1 word, or 2 for 16 bytes: the bytes of the key,
 *							zero-extended; zero if it is NULL
 *		then for each state its words
 *
 * needs_merge says that the keys of these groups may occur in other results too, so
 * that the caller must combine them.  Such are the groups whose entries were displaced
 * from a full map, and those that were kept apart from the map and found no room in
 * it at the end.  The groups of all results without needs_merge have different keys;
 * rows that were refused may belong to any of them.  All results with needs_merge come
 * before the first one without.
 */
typedef struct rhh_result
{
	uint64_t   *words;
	uint32_t	capacity_groups;
	uint32_t	n_groups;		/* the device's: how many there are */
	bool		needs_merge;	/* the device's: see above */
	bool		last;			/* the device's: there are no more groups */
} rhh_result;

/*
 * Rows for one map, made of another map's groups: a further level of grouping, as
 * GROUPING SETS, aggregates with DISTINCT, and an aggregate over a grouped subquery
 * need it.  Each group becomes one row for each of n_sets sets.
 *
 * If the map that gets the rows has joins, these are none (n_joins is 0): the rows are what would be in
 * its batches, and its program computes columns of them, and drops some.  Then no row comes back.  If any is refused, or
 * the program is bad for it, the event counts some of these, and the map lacks rows.
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
	RHH_ROW_ANY,				/* the value of RHH_ANY */
	RHH_ROW_NULL				/* NULL in all rows */
} rhh_row_kind;

typedef struct rhh_row_column
{
	uint8_t		kind;			/* rhh_row_kind */
	uint8_t		key;			/* number of the group's key, for RHH_ROW_KEY and
								 * RHH_ROW_KEY_IS_NULL */
	int16_t		part;			/* -1; else NULL in rows of other parts */
	uint32_t	word;			/* the first word of the group's key or state */
	uint32_t	null_word;		/* 0; else NULL where this word of the group is 0 */
} rhh_row_column;

typedef struct rhh_row_spec
{
	rhh_row_column columns[RHH_MAX_COLUMNS];	/* of the map that gets the rows, or of its batches */
	uint32_t	n_parts;		/* 0; else the groups have set numbers in word 0, each
								 * of which is a set's number times n_parts and a
								 * part's number.  Groups of a map have none, so it
								 * is 0 for map_feed */
	uint32_t	first_set;		/* RHH_ROW_SET of set 0, where n_parts is 0 */
	uint32_t	n_sets;
	uint64_t	outside[RHH_MAX_SETS];	/* bit k: key k is not in the set */
} rhh_row_spec;

/* A piece of such rows: one set's rows of some consecutive groups. */
typedef struct rhh_feed
{
	rhh_map    *source;			/* whose groups; of the same device */
	const rhh_row_spec *rows;	/* stays until the piece's event, as does refused */
	uint32_t	set;
	uint64_t	first_group;	/* in the order of map_extract */
	uint32_t	n_groups;		/* out: groups that the piece has; 0: there is none
								 * from first_group on, and no event comes */
	uint8_t    *refused;		/* as the bitmap of rhh_batch: room for a bit for
								 * each of max_batch_rows, in multiples of 8 bytes.  With
								 * joins it means nothing */
} rhh_feed;

/*
 * A condition on groups: the value of a state, RHH_COUNT or of integers, is compared with a constant
 * of 128 bits.
 */
#define RHH_MAX_CONDITIONS	4

typedef enum rhh_comparison
{
	RHH_EQUAL = 1,
	RHH_NOT_EQUAL,
	RHH_LESS,
	RHH_LESS_OR_EQUAL,
	RHH_GREATER,
	RHH_GREATER_OR_EQUAL
} rhh_comparison;

typedef struct rhh_group_condition
{
	uint8_t		state;
	uint8_t		comparison;		/* rhh_comparison: state's value, constant */
	uint64_t	low;			/* the constant, in two's complement */
	int64_t		high;
	int8_t		except_state;	/* -1; or where this state, of one word, has this word, it */
	uint64_t	except_word;	/* counts as if the condition was true */
} rhh_group_condition;

typedef struct rhh_map_stats
{
	uint64_t	rows;			/* rows aggregated, without the refused ones; or
								 * that the map keeps */
	uint64_t	refused_rows;
	uint64_t	groups;			/* after map_finish: distinct keys in the map */
	uint64_t	left_out;		/* of these: not to be extracted, see map_filter */
	uint64_t	capacity_slots; /* of a map that keeps rows: after map_finish, the
								 * slots or buckets in which keys are looked for */
	uint64_t	bytes;			/* memory that the map has now */
	uint64_t	peak_bytes;
	uint64_t	uploaded_bytes; /* 0 where nothing is copied; of pages all bytes that
								 * are read, but of those that are read in parts
								 * about as many */
	uint64_t	pages;			/* read, without the bad ones */
	uint64_t	bad_pages;
	uint64_t	failed_slots;	/* inserts that reached the probe cap, whether or
								 * not the map could grow then */
	uint64_t	rehashes;
	uint64_t	merged_duplicates;	/* groups of a key that had another group
									 * already, made while the key was being
									 * displaced, and merged with that one */
	uint64_t	orphans;		/* groups without a slot: see needs_merge */
	uint64_t	dropped_rows;	/* of a map that keeps rows: with NULL in a key, unless
								 * these are kept, too */
	uint64_t	probe_rows;		/* with joins: rows of batches */
	uint64_t	joined_rows[RHH_MAX_JOINS]; /* with joins: rows that came out of each;
											 * a batch that was submitted again may
											 * count twice */
	uint64_t	filtered_rows;	/* with joins: rows of the output that the program's
								 * filter has dropped */
	uint64_t	bad_candidates; /* with joins: not 0 if a join's condition was bad for any
								 * pair of rows with the same key, of all such pairs.  How
								 * often a pair counts means nothing */
	/*
	 * Times.  Uploads overlap with kernels.  kernel_ns is the time of batches,
	 * growth and finishing: on the CPU the threads' time divided by their number,
	 * on a GPU the time between the stream's events.  extract_ns is the time by the
	 * clock, with that of the copies.
	 */
	uint64_t	upload_ns;		/* 0 where nothing is copied; of pages until columns are made, so what is done at the
								 * same time for two batches counts twice */
	uint64_t	kernel_ns;
	uint64_t	extract_ns;
	/*
	 * After map_finish, if the spec has RHH_WANT_PROBE_STATS.  Of a map that keeps rows it
	 * is slots (CUDA), or keys in the key's bucket (CPU), that are looked at.
	 */
	uint64_t	probe_buckets_sum;	/* buckets read to find each key once */
	uint32_t	probe_buckets_max;	/* most of these for one key */
} rhh_map_stats;

typedef enum rhh_event_kind
{
	RHH_EVENT_BATCH,			/* a batch is done: its memory is free again */
	RHH_EVENT_FINISH,			/* the map is finished: groups can be extracted, or
								 * the map can be probed */
	RHH_EVENT_EXTRACT			/* an rhh_result is filled in */
} rhh_event_kind;

typedef struct rhh_device rhh_device;

/* What poll() reports: one of the commands that were queued is done. */

typedef struct rhh_event
{
	rhh_event_kind kind;
	rhh_status	status;			/* RHH_OK, RHH_CANCELLED, RHH_DEVICE_ERROR; of a
								 * map that keeps rows, RHH_EVENT_FINISH may have
								 * RHH_NO_MEMORY: it cannot be probed */
	rhh_map    *map;
	uint64_t	tag;			/* what the caller gave with the command */
	uint32_t	n_refused;		/* RHH_EVENT_BATCH: number of refused rows */
	uint32_t	n_bad_pages;	/* RHH_EVENT_BATCH: of its pages; if it is 0, and these are of the cache, */
	uint32_t	n_rows;			/* their rows, without those that were dropped, */
	uint32_t	n_dropped;		/* and these */
	bool		more;			/* with joins: the output is not complete, and goes on
								 * at next */
	rhh_position next;
} rhh_event;

/*
 * The functions of one kind of device.  err may not be NULL.
 */
typedef struct rhh_device_ops
{
	rhh_device_kind kind;

	/*
	 * Lists the devices of this kind, at most cap of them, without opening any: no
	 * CUDA context is made.  *n becomes their number.  If there is no driver or no
	 * device it returns RHH_OK with *n = 0, and err->message says which of the two.
	 */
	rhh_status	(*enumerate) (rhh_device_info *infos, uint32_t cap,
							  uint32_t *n, rhh_error *err);

	/*
	 * Opens a device, which the caller has to close.  It may start threads, so the
	 * caller blocks the signals that these shall not handle.
	 */
	rhh_status	(*open) (int32_t ordinal, const rhh_device_config *config,
						 rhh_device **dev, rhh_error *err);

	/* Waits for what is running and frees everything, with all maps. */
	void		(*close) (rhh_device *dev);

	rhh_status	(*info) (rhh_device *dev, rhh_device_info *info,
						 rhh_error *err);

	/*
	 * Tells the device in which memory batches will lie, so that it can pin it.  If
	 * that is not possible it is no error: copying is slower then.
	 */
	rhh_status	(*register_pool) (rhh_device *dev, void *base, size_t bytes,
								  rhh_error *err);

	/*
	 * Tells the device of memory, n_pages of RHH_PAGE_BYTES from base on, in which pages will
	 * be; a device knows one such memory, which stays until close().  It makes it readable when
	 * pages are there for the first time, a part at a time.  RHH_NO_DEVICE: this device
	 * cannot read pages, and err->message says why; it takes no batches of these.  If it turns
	 * out later that a part cannot be made readable, pages of all later batches are bad.
	 */
	rhh_status	(*register_pages) (rhh_device *dev, void *base, uint32_t n_pages,
								   rhh_error *err);

	/* Has no part turned out so?  False: err->message says why. */
	bool		(*reads_pages) (rhh_device *dev, rhh_error *err);

	/*
	 * Gets memory for slab i of the cache, which does not have it: for slots i * RHH_SLAB_PAGES to
	 * (i + 1) * RHH_SLAB_PAGES - 1.  It counts towards the device's limit.  RHH_NO_MEMORY: there
	 * is none to be had.
	 */
	rhh_status	(*cache_slab) (rhh_device *dev, uint32_t i, rhh_error *err);

	/*
	 * One of the slabs of which the device has needed the memory for a map since this was called last, and
	 * *i becomes its number; false: there is none.  Pages of batches that are read from
	 * such a slab are bad.  To be called before each batch that names slots.
	 */
	bool		(*lost_slab) (rhh_device *dev, uint32_t *i);

	/*
	 * A file descriptor, owned by the device, that is readable while poll() has
	 * something to report.
	 */
	int			(*event_fd) (rhh_device *dev);

	/*
	 * Reports commands that are done, at most cap of them, in events[]; *n becomes
	 * their number.  It also starts the next step of what the device does in several
	 * steps, such as growing a map, so it must be called whenever the descriptor is
	 * readable.  Once it has returned RHH_DEVICE_ERROR it always will.
	 */
	rhh_status	(*poll) (rhh_device *dev, rhh_event *events, uint32_t cap,
						 uint32_t *n, rhh_error *err);

	/*
	 * Makes an empty map, which the caller has to destroy.  RHH_NO_MEMORY: not even
	 * the smallest map fits the limit.  RHH_INVALID: the spec breaks a rule of this
	 * file.
	 */
	rhh_status	(*map_create) (rhh_device *dev, const rhh_map_spec *spec,
							   rhh_map **map, rhh_error *err);

	/*
	 * Makes the joins' output the rows of the map, which has no rows yet, or has joins, of
	 * which no batch is in flight.  The new joins take the place of those, and groups stay;
	 * rows without a match that have not been asked for are lost.
	 * The build sides are of the same device; they may be probed by several maps, and
	 * must stay as long as one of these may get a batch.  *spec is copied.  RHH_NO_MEMORY:
	 * there is no memory for pieces of output, and the map has no joins.
	 */
	rhh_status	(*map_join) (rhh_map *map, const rhh_join_spec *spec, rhh_error *err);

	/*
	 * Queues a batch.  Its RHH_EVENT_BATCH will carry the tag.  RHH_BUSY: as many
	 * batches of this map are in flight as it can have.
	 */
	rhh_status	(*map_submit) (rhh_map *map, const rhh_batch *batch,
							   uint64_t tag, rhh_error *err);

	/*
	 * Says, before map_finish, that nobody asks for groups for which one of n conditions is
	 * false.  All rows of these groups have been submitted.  So the device need not extract them, but if
	 * it has refused any rows it leaves none out, because it may have only a part of a group; nor any
	 * of which an orphan may be a part.
	 */
	rhh_status	(*map_filter) (rhh_map *map, const rhh_group_condition *conditions, uint32_t n,
							   rhh_error *err);

	/*
	 * Says that no more batches will come.  None may be in flight.  The device
	 * merges what belongs together, and one RHH_EVENT_FINISH follows.
	 */
	rhh_status	(*map_finish) (rhh_map *map, rhh_error *err);

	/*
	 * Queues filling *result with the next groups.  Its RHH_EVENT_EXTRACT will
	 * carry the tag.  RHH_EVENT_FINISH must have been reported, and no other
	 * extraction of the map may be in flight.
	 */
	rhh_status	(*map_extract) (rhh_map *map, rhh_result *result,
								uint64_t tag, rhh_error *err);

	/*
	 * Queues rows that are made of another map's groups, as if they were a batch,
	 * and sets feed->n_groups.  The source must be finished and have no orphans, and
	 * it must stay as it is until the piece's RHH_EVENT_BATCH arrives.  RHH_BUSY:
	 * enough pieces are in flight, or the source is being extracted.
	 *
	 * The device makes the rows in its own memory, so refused rows are known by their
	 * number alone: bit i of feed->refused stands for the row of group first_group +
	 * i.  If the event says n_refused = 0, the bitmap is left as it is.
	 */
	rhh_status	(*map_feed) (rhh_map *map, rhh_feed *feed, uint64_t tag,
							 rhh_error *err);

	/*
	 * Makes the next extraction start with this group; 0 is the first.  No extraction
	 * may be in flight, and the map must have no orphans, because those come out only
	 * once.
	 */
	rhh_status	(*map_seek) (rhh_map *map, uint64_t group, rhh_error *err);

	/* The statistics, as they were at the last event. */
	void		(*map_stats) (rhh_map *map, rhh_map_stats *stats);

	/* Makes what is in flight end soon; its events have RHH_CANCELLED. */
	void		(*map_cancel) (rhh_map *map);

	/* Frees the map.  Nothing of it may be in flight. */
	void		(*map_destroy) (rhh_map *map);
} rhh_device_ops;

extern const rhh_device_ops rhh_cpu_ops;
#ifdef RHH_WITH_CUDA
extern const rhh_device_ops rhh_cuda_ops;
#endif

/*
 * A library that contains a device exports an rhh_library under the name
 * RHH_LIBRARY_SYMBOL.  Its first bytes are a checksum of the headers beside the
 * devices' folders, of which this is one.  (The Makefile passes the checksum as
 * RHH_HEADERS to the two files that need it.)  So a program that loads the library
 * can tell whether both were built with the same types.  This struct itself never
 * changes.
 */
#define RHH_LIBRARY_SYMBOL "rhh_cuda_library"

typedef struct rhh_library
{
	char		headers[32];
	const rhh_device_ops *ops;
} rhh_library;

/* ---------- what follows from a spec, for callers and for devices ---------- */

/* Does the output of a batch begin with its first row? */
static inline bool
rhh_is_beginning(const rhh_position *from)
{
	for (uint32_t i = 0; i <= RHH_MAX_JOINS; i++)
		if (from->at[i] != 0)
			return false;
	return true;
}

/* Does a join of this kind make rows of those of its build side that nothing matches? */
static inline bool
rhh_keeps_build(uint8_t kind)
{
	return kind == RHH_JOIN_RIGHT || kind == RHH_JOIN_FULL || kind == RHH_JOIN_RIGHT_ANTI;
}

/*
 * Does it make rows of its build side in the end, of those without a match, or, if it is
 * RIGHT_SEMI, of those with one?
 */
static inline bool
rhh_returns_unmatched(uint8_t kind)
{
	return rhh_keeps_build(kind) || kind == RHH_JOIN_RIGHT_SEMI;
}

/* Does it make a row of each row that comes into it, with or without a match? */
static inline bool
rhh_keeps_outer(uint8_t kind)
{
	return kind == RHH_JOIN_LEFT || kind == RHH_JOIN_FULL;
}

/* Do rows that come out of it have columns of its build side? */
static inline bool
rhh_has_build_columns(uint8_t kind)
{
	return kind != RHH_JOIN_SEMI && kind != RHH_JOIN_ANTI;
}

/* Do they have columns of the sides before?  If not, nothing comes out but in the end. */
static inline bool
rhh_has_outer_columns(uint8_t kind)
{
	return kind != RHH_JOIN_RIGHT_SEMI && kind != RHH_JOIN_RIGHT_ANTI;
}

/* j + 1 for the last such join j of those; 0: there is none. */
static inline uint32_t
rhh_last_unmatched(const rhh_join_spec *spec)
{
	uint32_t	j = spec->n_joins;

	while (j > 0 && !rhh_returns_unmatched(spec->joins[j - 1].kind))
		j--;
	return j;
}

/* The number of words of key k in a result. */
static inline uint32_t
rhh_key_words(const rhh_map_spec *spec, uint32_t k)
{
	return spec->column_bytes[spec->key_column[k]] > 8 ? 2 : 1;
}

/* The number of words of a state whose argument has so many bytes. */
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

/* The first word of a state that no row has touched; its other words are zero. */
static inline uint64_t
rhh_op_start(uint8_t op)
{
	switch (op)
	{
		case RHH_MIN_I64:
			return (uint64_t) INT64_MAX;
		case RHH_MAX_I64:
		case RHH_SUM_F64:		/* -0: adding any float to it gives that float */
			return (uint64_t) INT64_MIN;
		case RHH_AND:
			return UINT64_MAX;
		default:
			return 0;
	}
}

/* May the argument of a state have so many bytes?  Also what RHH_COUNT counts. */
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

/* The bytes of the argument of state s; 0 if it has none. */
static inline uint32_t
rhh_arg_bytes(const rhh_map_spec *spec, uint32_t s)
{
	int8_t		column = spec->states[s].arg_column;

	return column < 0 ? 0 : spec->column_bytes[column];
}

/* The number of words of state s in a result. */
static inline uint32_t
rhh_state_words(const rhh_map_spec *spec, uint32_t s)
{
	return rhh_op_words(spec->states[s].op, rhh_arg_bytes(spec, s));
}

/* The first word of key k in a result, behind the word of NULL bits. */
static inline uint32_t
rhh_key_word(const rhh_map_spec *spec, uint32_t k)
{
	uint32_t	word = 1;

	for (uint32_t i = 0; i < k; i++)
		word += rhh_key_words(spec, i);
	return word;
}

/* The number of words before state 0: the word of NULL bits and the keys' words. */
static inline uint32_t
rhh_first_state_word(const rhh_map_spec *spec)
{
	return rhh_key_word(spec, spec->n_keys);
}

/* The first word of state s in a result. */
static inline uint32_t
rhh_state_word(const rhh_map_spec *spec, uint32_t s)
{
	uint32_t	word = rhh_first_state_word(spec);

	for (uint32_t i = 0; i < s; i++)
		word += rhh_state_words(spec, i);
	return word;
}

/* The number of words of all states together. */
static inline uint32_t
rhh_all_state_words(const rhh_map_spec *spec)
{
	uint32_t	words = 0;

	for (uint32_t s = 0; s < spec->n_states; s++)
		words += rhh_state_words(spec, s);
	return words;
}

/*
 * Where the values of column c, and its bitmap of NULLs, are in the room for n refused
 * rows of a join's output, from refused_offset on; each is a multiple of 64.
 */
static inline uint64_t
rhh_output_values(const rhh_map_spec *spec, uint32_t n, uint32_t c)
{
	uint64_t	bitmap = ((uint64_t) n + 511) / 512 * 64;
	uint64_t	at = 0;

	for (uint32_t i = 0; i < c; i++)
		at += ((uint64_t) n * spec->column_bytes[i] + 63) / 64 * 64 + bitmap;
	return at;
}

static inline uint64_t
rhh_output_nulls(const rhh_map_spec *spec, uint32_t n, uint32_t c)
{
	return rhh_output_values(spec, n, c) +
		((uint64_t) n * spec->column_bytes[c] + 63) / 64 * 64;
}

/* Where the bitmap of rows is there for which a program has a bad operation. */
static inline uint64_t
rhh_output_bad(const rhh_map_spec *spec, uint32_t n)
{
	return rhh_output_values(spec, n, spec->n_columns);
}

/* The bytes of that room. */
static inline uint64_t
rhh_output_bytes(const rhh_map_spec *spec, uint32_t n)
{
	return rhh_output_bad(spec, n) + ((uint64_t) n + 511) / 512 * 64;
}

/* The number of words of a group in a result. */
static inline uint32_t
rhh_result_words(const rhh_map_spec *spec)
{
	return rhh_first_state_word(spec) + rhh_all_state_words(spec);
}

#ifdef __cplusplus
}
#endif

#endif							/* RHH_DEVICE_H */
