/*-------------------------------------------------------------------------
 *
 * batch.h
 *		Rows as columns in blocks: how a block is laid out, how strings become
 *		keys, and which files write into blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_BATCH_BATCH_H
#define GPURHH_BATCH_BATCH_H

#include "executor/tuptable.h"
#include "storage/buffile.h"
#include "utils/dsa.h"

#include "compat.h"
#include "expr/expr.h"
#include "types/types.h"

/* ---------- dictionary.c ---------- */

/* The last byte of a string's key, where it is not the length; see dictionary.c. */
#define GPURHH_STRING_LONG	0xff	/* the key has a number */
#define GPURHH_STRING_ODD	0x80	/* added to the length: the string is odd */
#define GPURHH_STRING_ODD_LONG 0xfe /* the string is odd, and the key has a number */

/* How many strings are looked up together: enough that waits for memory overlap. */
#define GPURHH_STRING_BATCH	64

StaticAssertDecl(GPURHH_STRING_BATCH >= RHH_MAX_COLUMNS,
				 "a row's strings are looked up together");

static inline uint8
gpurhh_string_last_byte(const uint64 *key)
{
	return ((const uint8 *) key)[GPURHH_STRING_BYTES - 1];
}

/* Does a key with this last byte have a number? */
static inline bool
gpurhh_string_is_long(uint8 last)
{
	return last >= GPURHH_STRING_ODD_LONG;
}

static inline bool
gpurhh_string_is_odd(uint8 last)
{
	return (last & GPURHH_STRING_ODD) != 0 && last != GPURHH_STRING_LONG;
}

/* The length of a char(n) without its trailing blanks, which are not compared. */
static inline uint32
gpurhh_string_without_blanks(const char *data, uint32 length)
{
	while (length > 0 && data[length - 1] == ' ')
		length--;
	return length;
}

/* A string that is too long to be its own key, in a dictionary or kept elsewhere. */
typedef struct StringEntry
{
	uint32		hash;			/* the low half of gpurhh_string_hash() */
	char		string[FLEXIBLE_ARRAY_MEMBER];	/* varlena */
} StringEntry;

static inline Size
gpurhh_string_entry_bytes(uint32 length)
{
	return MAXALIGN(offsetof(StringEntry, string) + VARHDRSZ + length);
}

static inline void
gpurhh_string_write_entry(StringEntry *entry, const char *data, uint32 length,
						  uint32 hash)
{
	entry->hash = hash;
	SET_VARSIZE(entry->string, VARHDRSZ + length);
	memcpy(VARDATA(entry->string), data, length);
}

/* Gives numbers to the strings that are too long to be their own keys. */
typedef struct Dictionary Dictionary;
typedef struct DictionaryShared DictionaryShared;

typedef struct StringLookup
{
	const char *data;
	uint32		length;
	uint64		hash;
	uint64		number;			/* 0: none */
	char	   *to;				/* where the key is to be written */
	bool		odd;
	struct varlena *detoasted;	/* is freed when the key is written; or NULL */
} StringLookup;

/* Writes the keys of strings.  To begin, all is set to 0 except the dictionary. */
typedef struct StringEncoder
{
	Dictionary *dictionary;
	int			n_waiting;
	bool		missing;		/* a string has got no number */
	bool		odd;			/* a key has been odd; is never cleared */
	uint64		hash;
	StringLookup waiting[GPURHH_STRING_BATCH];
} StringEncoder;

extern Dictionary *gpurhh_dictionary_create(MemoryContext parent, Size limit,
											int min_strings,
											double expected_strings);
extern dsa_pointer gpurhh_dictionary_share(dsa_area *area, Size limit,
										   int min_strings,
										   double expected_strings);
extern Dictionary *gpurhh_dictionary_attach(dsa_area *area, dsa_pointer place,
											MemoryContext context);
extern void gpurhh_dictionary_unshare(dsa_area *area, dsa_pointer place);
extern void gpurhh_dictionary_stats(Dictionary *dictionary, uint64 *n_strings,
									uint64 *bytes);
extern StringEntry *gpurhh_dictionary_entry(const Dictionary *dictionary,
											uint64 number);
extern uint64 gpurhh_string_hash(const char *data, uint32 length);
extern struct varlena *gpurhh_dictionary_string(const Dictionary *dictionary,
												uint64 number);
extern int	gpurhh_string_compare(const Dictionary *dictionary,
								  const uint64 *a, const uint64 *b);
extern bool gpurhh_string_odd_length(const char *data, uint32 length,
									 uint32 bytes, int characters);
extern const char *gpurhh_string_of_key(const Dictionary *dictionary,
										const uint64 *key, uint32 *length);
extern void gpurhh_strings_add(StringEncoder *encoder, GpuDerivation derivation,
							   int parameter, const struct varlena *value,
							   const char *readable, char *to);
extern void gpurhh_strings_add_column(StringEncoder *encoder,
									  GpuDerivation derivation,
									  int parameter, const char **at,
									  int n, char align,
									  const char *readable, char *to);
extern bool gpurhh_strings_finish(StringEncoder *encoder, uint32 *hash);
extern bool gpurhh_dictionary_add_numeric(StringEncoder *encoder, Datum value,
										  uint64 *word, uint32 *hash);
extern Datum gpurhh_dictionary_numeric(const Dictionary *dictionary,
									   uint64 word);

/* ---------- string_words.c ---------- */

/*
 * Where a record has words that may lead to memory elsewhere: the keys of strings,
 * and keys that are numerics, as these may be odd.
 */
typedef struct StringWords
{
	int			n;
	int			n_keys;			/* the first of them belong to the record's key */
	uint16		at[RHH_MAX_KEYS + RHH_MAX_STATES];
	int			n_numerics;
	uint16		numeric_at[RHH_MAX_KEYS];
	uint16		scale[RHH_MAX_KEYS];	/* of each of these numerics */
} StringWords;

extern void gpurhh_string_words_init(StringWords *words,
									 const rhh_map_spec *spec,
									 const GpuColumn *columns);
extern void gpurhh_strings_resolve(const StringWords *words,
								   const Dictionary *dictionary,
								   uint64 *record);
extern void gpurhh_string_make_key(MemoryContext context, const char *data,
								   uint32 length, bool odd, uint64 *key);
extern void gpurhh_string_copy(MemoryContext context, uint64 *key);
extern void gpurhh_strings_copy(const StringWords *words,
								MemoryContext context, uint64 *record);
extern void gpurhh_strings_free(const StringWords *words,
								const uint64 *record);
extern void gpurhh_string_free(const uint64 *key);
extern uint32 gpurhh_strings_hash(const StringWords *words,
								  const uint64 *record, int n_words);
extern bool gpurhh_strings_equal(const StringWords *words, const uint64 *a,
								 const uint64 *b, int n_words);
extern void gpurhh_strings_write(const StringWords *words, BufFile *file,
								 const uint64 *record);
extern void gpurhh_strings_read(const StringWords *words, BufFile *file,
								uint64 *record, MemoryContext context);

/* ---------- feed.c ---------- */

typedef struct Feed Feed;

/*
 * How a row's value gets into a column.  It follows from the encoding's width,
 * order, derivation and role, and is found once, so that gpurhh_feed_slot() takes
 * one dense switch for each value.
 */
typedef enum FeedStep
{
	FEED_LATER,					/* by candidates.c or pairs.c, NULLs too */
	FEED_BEFORE,				/* as the key of a string, which is written before
								 * other columns of the row are, unless it is NULL */
	FEED_FILTER,				/* 1 if it is true, else 0 */
	FEED_TRUTH,
	FEED_1_BYTE,
	FEED_2_BYTES,
	FEED_4_BYTES,
	FEED_8_BYTES,
	FEED_16_BYTES,
	FEED_4_ORDERED,				/* see gpurhh_order_4_bytes() */
	FEED_8_ORDERED,
	FEED_LIMB,
	FEED_WORD,
	FEED_WIDENED,				/* see gpurhh_widen() */
	FEED_RESCALED
} FeedStep;

typedef struct FeedColumn
{
	GpuEncoding encoding;
	int			parameter;		/* see GpuColumn */
	int			attribute;
	uint8		step;			/* FeedStep */
	uint8		order;			/* GpuOrder */
	uint8		limb;			/* with FEED_LIMB: which one */
	uint8		bytes;
	bool		is_key;			/* set by the caller: NULL is a group, and an odd
								 * numeric has a key */
	bool		any_null;		/* in the batch being filled */
	uint32		zero_rows;		/* so many of its first rows are known to have 0 */
	uint32		values_offset;
	uint32		nulls_offset;
} FeedColumn;

/*
 * Writes rows into the columns of one block at a time.  A feed knows the layout of
 * the block and the encodings of the columns, and nothing of devices.
 */
struct Feed
{
	int			n_columns;
	int			n_attributes;	/* of the child, up to the last needed one */
	uint32		capacity_rows;	/* how many rows fit a block */
	char	   *base;			/* the block being filled, or NULL */
	uint32		n_rows;
	FeedColumn	columns[RHH_MAX_COLUMNS];

	/* strings: the caller sets the dictionary, and the function that takes rows
	 * whose strings the dictionary does not take */
	int			n_strings;
	uint8		string_columns[RHH_MAX_COLUMNS];
	StringEncoder strings;
	void		(*defer) (void *arg, TupleTableSlot *slot, uint32 hash);
	void	   *defer_arg;
	struct Candidates *candidates;	/* set by the caller; NULL: no such columns */

	/* set by the caller: takes a row that is not fed, because columns are computed of it
	 * which its slot does not have; NULL: slots have all columns */
	void		(*leave_row) (void *arg, TupleTableSlot *slot);
	void	   *leave_arg;

	/* set by the caller: is called while a row is appended of which a numeric is fed
	 * as NULL because it is not as its type declares, or of which an integer may
	 * equal such a numeric, see gpurhh_is_watched().  False: the row is not to be
	 * appended */
	bool		(*odd_row) (void *arg, Feed *feed, TupleTableSlot *slot);
	void	   *odd_arg;
	const uint64 *watched;		/* a set of integers; NULL: it is empty */
};

#define GPURHH_WATCHED_BITS	12	/* the set is a bitmap of 2^12 bits */

static inline uint32
gpurhh_watched_bit(int64 integer)
{
	return (uint32) (((uint64) integer * UINT64CONST(0x9e3779b97f4a7c15)) >>
					 (64 - GPURHH_WATCHED_BITS));
}

/* May a decimal of one limb be equal to a numeric that is not as declared? */
static inline bool
gpurhh_is_watched(const uint64 *watched, int64 integer)
{
	uint32		bit = gpurhh_watched_bit(integer);

	return (watched[bit / 64] >> (bit % 64)) & 1;
}

extern void gpurhh_feed_layout(Feed *feed, int n_columns,
							   const uint8 *column_bytes,
							   Size block_bytes, int max_rows);
extern void gpurhh_feed_init(Feed *feed, int n_columns,
							 const GpuColumn *columns,
							 Size block_bytes, int max_rows);
extern void gpurhh_feed_start(Feed *feed, char *base);
extern void gpurhh_feed_slot(Feed *feed, TupleTableSlot *slot);
extern void gpurhh_feed_or_leave(Feed *feed, TupleTableSlot *slot);
extern void gpurhh_feed_zeros(Feed *feed, int column, int n);
extern void gpurhh_feed_nulls(Feed *feed, int column, const uint8 *nulls,
							  int n);
extern uint8 *gpurhh_feed_null_bitmap(Feed *feed, int column);
extern void gpurhh_feed_no_strings(Feed *feed, int column, int n);
extern void gpurhh_feed_string(Feed *feed, int column, uint32 row,
							   const struct varlena *value, bool regular);
extern void gpurhh_feed_describe(const Feed *feed, rhh_batch *batch);
extern bool gpurhh_feed_take_back(Feed *feed, int column, uint32 row);
extern void gpurhh_feed_finish(Feed *feed, rhh_batch *batch);

/* ---------- key_filter.c ---------- */

/* Which keys a build side may have. */
typedef struct KeyFilter KeyFilter;

typedef enum KeyFilterForm
{
	KEY_FILTER_UNUSED,			/* there is none */
	KEY_FILTER_NONE,			/* nearly all bits are set, and keys have no range */
	KEY_FILTER_RANGE,
	KEY_FILTER_BLOOM,
	KEY_FILTER_RANGE_BLOOM,
	KEY_FILTER_BITMAP			/* with a range */
} KeyFilterForm;

/* The columns of a feed that are a key. */
typedef struct KeyColumns
{
	int			n;
	uint8		columns[RHH_MAX_KEYS];
} KeyColumns;

/* Rows of a probe side are tested by one join's filter. */
typedef struct KeyTest
{
	/* set by the caller: */
	const KeyFilter *filter;
	KeyFilterForm form;			/* as gpurhh_key_filter_finish() says */
	KeyColumns	key;			/* of the feed that has the rows' keys */
	int			join;			/* the caller's number */

	uint64		dropped;		/* rows */

	/* lately: */
	uint32		trial_rows;
	uint32		trial_dropped;
	uint32		pause_rows;		/* so many rows are not to be tested */
	bool		pauses;
} KeyTest;

/* All tests of a probe side's rows, from the same feed of keys. */
typedef struct KeyTests
{
	int			n;
	KeyTest		tests[RHH_MAX_JOINS];
} KeyTests;

extern uint64 gpurhh_key_filter_string(const char *data, uint32 length);
extern bool gpurhh_key_filter_takes(int n_columns, const GpuColumn *columns);
extern Size gpurhh_key_filter_bytes(double rows);
extern void gpurhh_key_filter_init(KeyFilter *filter, double rows, int n_columns,
								   const GpuColumn *columns);
extern void gpurhh_key_filter_add(KeyFilter *filter, const Feed *feed,
								  const KeyColumns *key);
extern void gpurhh_key_filter_merge(KeyFilter *filter, KeyFilter *from);
extern KeyFilterForm gpurhh_key_filter_finish(const KeyFilter *filter);
extern const char *gpurhh_key_filter_text(KeyFilterForm form);
extern bool gpurhh_key_tests_begin(KeyTests *tests, uint32 n);
extern void gpurhh_key_tests_run(KeyTests *tests, const Feed *feed,
								 const uint8 *untested, uint8 *active);

/* ---------- pairs.c ---------- */

extern void gpurhh_pairs_fill(Feed *feed);

/* ---------- candidates.c ---------- */

/* Chooses the strings that may be the least or the greatest of a group. */
typedef struct Candidates Candidates;

/*
 * Is called with a string that gets no number because the dictionary is full.  Its row
 * of the block has NULL instead.  odd says that the string has its trailing blanks,
 * because it does not have as many characters as its type declares.
 */
typedef void (*CandidateUnnumbered)(void *arg, const Feed *feed, uint32 row,
									int column, const char *data, uint32 length,
									bool odd);

/* How much memory the strings take to which others are compared. */
#define GPURHH_CANDIDATES_LIMIT	(get_hash_memory_limit() / 2)

extern Candidates *gpurhh_candidates_create(MemoryContext context,
											const rhh_map_spec *spec,
											const GpuColumn *columns,
											Size limit,
											CandidateUnnumbered unnumbered,
											void *unnumbered_arg);
extern void gpurhh_candidates_add(Candidates *candidates, Feed *feed, int n,
								  const Vector *const *strings);
extern void gpurhh_candidates_finish(Candidates *candidates, Feed *feed);
extern int	gpurhh_candidates_columns(const Candidates *candidates,
									  const uint8 **columns);
extern double gpurhh_candidates_capacity(int n_key_bytes, int n_strings,
										 Size limit);

/* ---------- level_rows.c ---------- */

/* The number of a group's grouping set, beside the NULL bits in word 0. */
#define GPURHH_SET_SHIFT	RHH_SET_SHIFT
#define GPURHH_SET_OF(word0)	((int) ((word0) >> GPURHH_SET_SHIFT))

/*
 * How a device makes groups of another of its maps' groups.  With a program it makes fed columns of the groups, and
 * computes columns of the map of these (chain.c); then all rows are in the map in the end, or it is not made.
 */
typedef struct LevelPlan
{
	rhh_map_spec spec;			/* of the second level's map */
	rhh_row_spec rows;			/* what its rows, or the fed columns, are made of */
	bool		keep_first;		/* the first level's groups are results too */
	bool		has_program;
	uint32		n_fed;			/* with a program: the fed columns, */
	uint8		fed_bytes[RHH_MAX_COLUMNS];
	uint16		column[RHH_MAX_COLUMNS];	/* and for each of the map's which one it is, or RHH_COMPUTED */
	rhh_program program;
} LevelPlan;

extern void gpurhh_level_rows_init(Feed *feed, const LevelPlan *plan,
								   Size block_bytes, int max_rows);
extern void gpurhh_level_rows_feed(Feed *feed, const LevelPlan *plan,
								   int set, const uint64 *words,
								   Size stride, uint32 n);

#endif							/* GPURHH_BATCH_BATCH_H */
