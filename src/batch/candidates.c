/*-------------------------------------------------------------------------
 *
 * candidates.c
 *		Chooses which strings are fed: those that may be the least or the greatest
 *		of their group.
 *
 * A device does not know the order of strings.  So min(x) and max(x) of a string
 * make x a hidden key: the device groups by the grouping columns and x, and the
 * second level keeps the best string of each group (levels.c).  By itself that
 * would make a group for each value of x.  But a string cannot be the result if it
 * is not better than one of its group that has been fed already.  Such a string is
 * fed as NULL.  The few strings of each group that remain are the candidates.
 *
 * To find them, this file keeps the best string of as many groups as fit its
 * memory, in buckets of BUCKET entries that are found by the hash of the grouping
 * columns.  Only speed depends on this: an entry may be given to another group at
 * any time.
 *
 * Each row of a block begins without a string.  The string of an entry goes to its
 * row when the block is complete, or when the entry is given to another group.  If
 * a better string comes before that, the earlier row keeps NULL.  So at most one
 * string is fed for each block and entry, whatever the order of the rows, and only
 * strings that are fed get into the dictionary.  If the dictionary takes no more
 * strings, the row keeps NULL, and the string goes to the function that the caller
 * of gpurhh_candidates_create() gave (unnumbered_strings.c).
 *
 *		hashes		a word for each entry, which is 0 if the entry is free
 *		entries		a word of NULL bits and the words of the keys, then a Best for
 *					each column of candidates
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

#include "batch/batch.h"
#include "compat.h"
#include "rhh_hash.h"

#define BUCKET			4		/* entries in a bucket; their hashes are in half a
								 * cache line */
#define MIN_BUCKETS		16
#define MAX_BUCKETS		(1 << 20)

/* How many rows are looked up together, so that their waits for memory overlap. */
#define CHUNK			32

/* If keys have more words than this, no string is compared and all are fed. */
#define MAX_KEY_WORDS	16

/* A guess how much memory a string takes beside its entry. */
#define STRING_BYTES	48

/* The best string of a group so far, in one column. */
typedef struct Best
{
	uint64		prefix;			/* the first bytes, in the order of integers */
	struct varlena *string;		/* if it is NULL, or has the size 0: none yet */
	uint32		room : 31;		/* how many bytes of data the memory has room for */
	uint32		odd : 1;		/* flag: it is odd, and has its trailing blanks */
	uint32		row : 31;		/* the row of the block, from 1, that will get it;
								 * 0: it has been fed */
	uint32		waits : 1;		/* flag: it is in waiting[], perhaps with row 0 */
} Best;

/* A column of candidates. */
typedef struct CandidateColumn
{
	uint8		number;
	bool		greatest;
	bool		blanks;			/* trailing blanks do not count */
	int			characters;		/* then: how many characters the type declares */
} CandidateColumn;

struct Candidates
{
	MemoryContext context;		/* of all that follows */
	Size		limit;
	CandidateUnnumbered unnumbered;
	void	   *unnumbered_arg;

	int			n_keys;			/* the grouping columns */
	uint8		keys[RHH_MAX_KEYS];
	int			n_words;		/* words of NULL bits and keys; 0: no entries */
	int			n_columns;
	CandidateColumn columns[RHH_MAX_KEYS];
	uint8		numbers[RHH_MAX_KEYS];

	uint64		n_buckets;		/* a power of 2 */
	uint64	   *hashes;
	char	   *entries;
	Size		entry_bytes;

	/* those that a row waits for, and some for which none waits any more */
	Best	  **waiting;
	uint8	   *waiting_columns;
	Size		n_waiting;
	Size		room_waiting;
};

static Size
bytes_of_entry(int n_words, int n_strings)
{
	return sizeof(uint64) * n_words + sizeof(Best) * n_strings;
}

/* For the planner: about how many groups have their best strings kept. */
double
gpurhh_candidates_capacity(int n_key_bytes, int n_strings, Size limit)
{
	Size		bytes = sizeof(uint64) +
		bytes_of_entry(1 + n_key_bytes / sizeof(uint64), n_strings) +
		STRING_BYTES * n_strings;

	return Min(0.7 * limit / bytes, 0.7 * MAX_BUCKETS * BUCKET);
}

/*
 * Prepares the columns of candidates of a feed.  There is an entry for each of
 * spec->expected_groups groups, as far as limit bytes of memory, in a child of
 * context, allow.  unnumbered is called with strings that get no number.
 */
Candidates *
gpurhh_candidates_create(MemoryContext context, const rhh_map_spec *spec,
						 const GpuColumn *columns, Size limit,
						 CandidateUnnumbered unnumbered, void *unnumbered_arg)
{
	Candidates *candidates;
	uint64		wanted = spec->expected_groups / 4;
	Size		bucket_bytes;

	context = AllocSetContextCreate(context, "GpuHashAgg candidates",
									ALLOCSET_DEFAULT_SIZES);
	candidates = MemoryContextAllocZero(context, sizeof(Candidates));
	candidates->context = context;
	candidates->limit = limit;
	candidates->unnumbered = unnumbered;
	candidates->unnumbered_arg = unnumbered_arg;
	candidates->n_words = 1;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			number = spec->key_column[k];
		GpuEncoding encoding = columns[number].encoding;

		if (!gpurhh_is_candidate(encoding))
		{
			candidates->keys[candidates->n_keys++] = number;
			candidates->n_words += rhh_key_words(spec, k);
			continue;
		}
		candidates->numbers[candidates->n_columns] = number;
		candidates->columns[candidates->n_columns++] = (CandidateColumn){
			.number = number,
			.greatest = gpurhh_encodings[encoding].role == ROLE_GREATEST,
			.blanks = gpurhh_encodings[encoding].derivation == DERIVED_BPCHAR,
			.characters = columns[number].parameter
		};
	}
	if (candidates->n_words > MAX_KEY_WORDS)
		candidates->n_words = 0;

	candidates->entry_bytes = bytes_of_entry(candidates->n_words,
											 candidates->n_columns);
	bucket_bytes = BUCKET * (sizeof(uint64) + candidates->entry_bytes +
							 STRING_BYTES * candidates->n_columns);
	candidates->n_buckets = MIN_BUCKETS;
	while (candidates->n_buckets < wanted &&
		   candidates->n_buckets < MAX_BUCKETS &&
		   candidates->n_buckets * 2 * bucket_bytes <= limit)
		candidates->n_buckets *= 2;
	candidates->hashes = (uint64 *)
		TYPEALIGN(64, MemoryContextAllocExtended(context,
												 candidates->n_buckets * BUCKET * sizeof(uint64) + 64,
												 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
	candidates->entries =
		MemoryContextAllocExtended(context,
								   candidates->n_buckets * BUCKET * candidates->entry_bytes,
								   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return candidates;
}

/* Stores the numbers of the columns of candidates in *columns; returns how many. */
int
gpurhh_candidates_columns(const Candidates *candidates, const uint8 **columns)
{
	*columns = candidates->numbers;
	return candidates->n_columns;
}

/* ---------- groups ---------- */

/* Loads the words and hashes of the groups of n rows of the block, from first on. */
static void
load_groups(const Candidates *candidates, const Feed *feed, int first, int n,
			uint64 groups[][MAX_KEY_WORDS], uint64 *hashes)
{
	int			w = 1;

	for (int i = 0; i < n; i++)
		groups[i][0] = 0;
	for (int k = 0; k < candidates->n_keys; k++)
	{
		const FeedColumn *column = &feed->columns[candidates->keys[k]];
		const char *values = feed->base + column->values_offset +
			(Size) first * column->bytes;
		const uint8 *nulls = column->any_null ?
			(const uint8 *) feed->base + column->nulls_offset : NULL;
		int			n_words = column->bytes > sizeof(uint64) ? 2 : 1;

		for (int i = 0; i < n; i++)
		{
			uint64	   *to = &groups[i][w];

			switch (column->bytes)
			{
				case 1:
					to[0] = ((const uint8 *) values)[i];
					break;
				case 2:
					to[0] = ((const uint16 *) values)[i];
					break;
				case 4:
					to[0] = ((const uint32 *) values)[i];
					break;
				case 8:
					to[0] = ((const uint64 *) values)[i];
					break;
				default:
					to[0] = ((const uint64 *) values)[2 * i];
					to[1] = ((const uint64 *) values)[2 * i + 1];
					break;
			}
		}
		for (int i = 0; nulls != NULL && i < n; i++)
		{
			uint32		row = first + i;

			if ((nulls[row / 8] >> (row % 8)) & 1)
			{
				groups[i][0] |= UINT64CONST(1) << k;
				memset(&groups[i][w], 0, sizeof(uint64) * n_words);
			}
		}
		w += n_words;
	}
	for (int i = 0; i < n; i++)
	{
		uint64		hash = groups[i][0];

		for (int j = 1; j < w; j++)
			hash = rhh_mix64(hash ^ groups[i][j]);
		/* an entry with 0 is free */
		hashes[i] = hash | UINT64CONST(1) << 63;
	}
}

static inline uint64 *
first_hash(const Candidates *candidates, uint64 hash)
{
	return &candidates->hashes[(hash & (candidates->n_buckets - 1)) * BUCKET];
}

static inline char *
entry_of(const Candidates *candidates, const uint64 *hash)
{
	return candidates->entries +
		(hash - candidates->hashes) * candidates->entry_bytes;
}

static inline Best *
bests_of(const Candidates *candidates, char *entry)
{
	return (Best *) (entry + sizeof(uint64) * candidates->n_words);
}

/* ---------- strings ---------- */

/* Completes the keys of strings that rows were given; false: some got none. */
static bool
finish_strings(Feed *feed)
{
	uint32		hash;

	return gpurhh_strings_finish(&feed->strings, &hash);
}

/* Hands over a row's string if the dictionary has not taken it. */
static void
hand_over_missing(Candidates *candidates, Feed *feed, int c, uint32 row,
				  const char *data, uint32 length, bool odd)
{
	int			number = candidates->columns[c].number;

	if (gpurhh_feed_take_back(feed, number, row))
		candidates->unnumbered(candidates->unnumbered_arg, feed, row, number,
							   data, length, odd);
}

static void
hand_over_best(Candidates *candidates, Feed *feed, int c, const Best *best)
{
	hand_over_missing(candidates, feed, c, best->row - 1,
					  VARDATA(best->string), VARSIZE(best->string) - VARHDRSZ,
					  best->odd);
}

/* Takes the entry from its group.  The strings that it has are fed first. */
static void
give_away(Candidates *candidates, Feed *feed, Best *bests)
{
	bool		fed = false;

	for (int c = 0; c < candidates->n_columns; c++)
	{
		if (bests[c].row != 0)
		{
			gpurhh_feed_string(feed, candidates->columns[c].number,
							   bests[c].row - 1, bests[c].string,
							   !bests[c].odd);
			fed = true;
		}
	}
	if (fed && !finish_strings(feed))
	{
		for (int c = 0; c < candidates->n_columns; c++)
		{
			if (bests[c].row != 0)
				hand_over_best(candidates, feed, c, &bests[c]);
		}
	}
	for (int c = 0; c < candidates->n_columns; c++)
	{
		bests[c].row = 0;
		if (bests[c].string != NULL)
			SET_VARSIZE(bests[c].string, 0);
	}
}

/* Finds the entry of a group, or takes one from another group. */
static Best *
find_entry(Candidates *candidates, Feed *feed, uint64 hash, const uint64 *group)
{
	Size		key_bytes = sizeof(uint64) * candidates->n_words;
	uint64	   *hashes = first_hash(candidates, hash);
	uint64	   *at = NULL;
	char	   *entry;

	for (int i = 0; i < BUCKET; i++)
	{
		if (hashes[i] == hash)
		{
			entry = entry_of(candidates, &hashes[i]);
			if (memcmp(entry, group, key_bytes) == 0)
				return bests_of(candidates, entry);
		}
		if (hashes[i] == 0 && at == NULL)
			at = &hashes[i];
	}
	if (at == NULL)
	{
		/* bits that say nothing of the bucket */
		at = &hashes[(hash >> 40) % BUCKET];
		give_away(candidates, feed, bests_of(candidates, entry_of(candidates, at)));
	}
	*at = hash;
	entry = entry_of(candidates, at);
	memcpy(entry, group, key_bytes);
	return bests_of(candidates, entry);
}

static inline uint64
prefix_of(const char *data, uint32 length)
{
	uint64		prefix = 0;

	if (likely(length >= sizeof(prefix)))
		memcpy(&prefix, data, sizeof(prefix));
	else
		memcpy(&prefix, data, length);
	return pg_hton64(prefix);
}

/* Is a string better than the best one so far? */
static inline bool
is_better(const Best *best, bool greatest, uint64 prefix, const char *data,
		  uint32 length)
{
	uint32		best_length;
	int			order;

	if (best->string == NULL || VARSIZE(best->string) == 0)
		return true;
	if (prefix != best->prefix)
		return (prefix > best->prefix) == greatest;
	best_length = VARSIZE(best->string) - VARHDRSZ;
	if (unlikely(best->odd))
		best_length = gpurhh_string_without_blanks(VARDATA(best->string),
												   best_length);
	order = memcmp(data, VARDATA(best->string), Min(length, best_length));
	if (order == 0)
		order = (length > best_length) - (length < best_length);
	return greatest ? order > 0 : order < 0;
}

/* Makes room for a string; returns false if there is no memory for it. */
static bool
make_room(Candidates *candidates, Best *best, uint32 length)
{
	uint32		room = Max(length, STRING_BYTES / 2 - VARHDRSZ);

	if (best->string != NULL && best->room >= length)
		return true;
	if (MemoryContextMemAllocated(candidates->context, false) + length >
		candidates->limit + candidates->limit / 4)
		return false;
	if (best->string != NULL)
		pfree(best->string);
	best->string = NULL;
	best->string = MemoryContextAlloc(candidates->context, VARHDRSZ + room);
	best->room = room;
	SET_VARSIZE(best->string, 0);
	return true;
}

static void
wait_for_block(Candidates *candidates, Best *best, int column)
{
	if (candidates->n_waiting == candidates->room_waiting)
	{
		Size		room = Max(candidates->room_waiting * 2, 1024);

		if (candidates->waiting == NULL)
		{
			candidates->waiting = MemoryContextAlloc(candidates->context,
													 room * sizeof(Best *));
			candidates->waiting_columns = MemoryContextAlloc(candidates->context, room);
		}
		else
		{
			candidates->waiting = repalloc(candidates->waiting,
										   room * sizeof(Best *));
			candidates->waiting_columns = repalloc(candidates->waiting_columns, room);
		}
		candidates->room_waiting = room;
	}
	best->waits = 1;
	candidates->waiting[candidates->n_waiting] = best;
	candidates->waiting_columns[candidates->n_waiting++] = column;
}

/*
 * Keeps a row's string if it is better than *best.  If the group has no entry, best is
 * NULL and the string is fed.
 */
static void
add_string(Candidates *candidates, Feed *feed, int c, Best *best, uint32 row,
		   const struct varlena *value)
{
	const CandidateColumn *column = &candidates->columns[c];
	struct varlena *detoasted = NULL;
	const char *data;
	uint32		bytes;
	uint32		length;
	uint64		prefix;

	if (unlikely(VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value)))
	{
		detoasted = detoast_attr(unconstify(struct varlena *, value));
		value = detoasted;
	}
	data = VARDATA_ANY(value);
	length = bytes = VARSIZE_ANY_EXHDR(value);
	if (column->blanks)
		length = gpurhh_string_without_blanks(data, bytes);
	prefix = prefix_of(data, length);
	if (best == NULL ||
		is_better(best, column->greatest, prefix, data, length))
	{
		bool		odd = column->blanks &&
			gpurhh_string_odd_length(data, length, bytes, column->characters);

		if (odd)
			length = bytes;
		if (best != NULL && make_room(candidates, best, length))
		{
			memcpy(VARDATA(best->string), data, length);
			SET_VARSIZE(best->string, VARHDRSZ + length);
			best->prefix = prefix;
			best->odd = odd;
			if (!best->waits)
				wait_for_block(candidates, best, c);
			best->row = row + 1;
		}
		else
		{
			gpurhh_feed_string(feed, column->number, row, value, false);
			if (!finish_strings(feed))
				hand_over_missing(candidates, feed, c, row, data, length, odd);
		}
	}
	if (detoasted != NULL)
		pfree(detoasted);
}

/*
 * Adds the strings of the n rows that are about to be appended, whose other columns
 * are in the block already.  strings has a vector of pointers for each column of
 * candidates.
 */
void
gpurhh_candidates_add(Candidates *candidates, Feed *feed, int n,
					  const Vector *const *strings)
{
	uint64		groups[CHUNK][MAX_KEY_WORDS];
	uint64		hashes[CHUNK];

	for (int c = 0; c < candidates->n_columns; c++)
		gpurhh_feed_no_strings(feed, candidates->columns[c].number, n);
	for (int first = 0; first < n; first += CHUNK)
	{
		int			n_chunk = Min(n - first, CHUNK);

		if (candidates->n_words > 0)
		{
			load_groups(candidates, feed, feed->n_rows + first, n_chunk,
						groups, hashes);
			for (int i = 0; i < n_chunk; i++)
				__builtin_prefetch(first_hash(candidates, hashes[i]));
			for (int i = 0; i < n_chunk; i++)
			{
				const uint64 *at = first_hash(candidates, hashes[i]);

				for (int j = 0; j < BUCKET; j++)
				{
					if (at[j] == hashes[i])
						__builtin_prefetch(entry_of(candidates, &at[j]), 1);
				}
			}
		}
		for (int i = 0; i < n_chunk; i++)
		{
			Best	   *bests = NULL;

			for (int c = 0; c < candidates->n_columns; c++)
			{
				const Vector *column = strings[c];
				const struct varlena *const *values = column->values;

				if (column->nulls != NULL && column->nulls[first + i])
					continue;
				if (bests == NULL && candidates->n_words > 0)
					bests = find_entry(candidates, feed, hashes[i], groups[i]);
				add_string(candidates, feed, c, bests ? &bests[c] : NULL,
						   feed->n_rows + first + i, values[first + i]);
			}
		}
	}
}

/* Gives strings to the rows that wait for them, once the block is complete. */
void
gpurhh_candidates_finish(Candidates *candidates, Feed *feed)
{
	bool		all;

	for (Size i = 0; i < candidates->n_waiting; i++)
	{
		const Best *best = candidates->waiting[i];

		if (best->row != 0)
			gpurhh_feed_string(feed, candidates->columns[candidates->waiting_columns[i]].number,
							   best->row - 1, best->string, !best->odd);
	}
	all = finish_strings(feed);
	for (Size i = 0; i < candidates->n_waiting; i++)
	{
		Best	   *best = candidates->waiting[i];

		if (best->row != 0 && !all)
			hand_over_best(candidates, feed, candidates->waiting_columns[i],
						   best);
		best->row = 0;
		best->waits = 0;
	}
	candidates->n_waiting = 0;
}
