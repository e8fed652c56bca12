/*-------------------------------------------------------------------------
 *
 * key_filter.c
 *		Which keys a join's build side has, for rows of the probe side that are not fed
 *		where they cannot have a match.
 *
 * Whoever feeds the build side adds its keys to a key filter, and once all of it has been
 * read the probe side's rows are tested.  A filter may let through a row that has no match,
 * and never holds back one that has.
 *
 * It has one array of bits, which is one of these (KeyFilterForm):
 *
 *		BITMAP		A key that is one column of at most 8 bytes has the bit of its lowest
 *					bits.  As long as the keys' range, from least to greatest, has no more
 *					integers than there are bits, no two keys have the same one, so together
 *					with the range the test is exact.
 *		BLOOM		A blocked Bloom filter.  All bits of a key are in one word, so a test
 *					waits for memory once: Putze, Sanders, Singler, "Cache-, Hash- and
 *					Space-Efficient Bloom Filters" (2007).  When the range of the keys in a
 *					bitmap becomes too large, the bitmap has all that is needed to make a
 *					Bloom filter of it.
 *		NONE		There are too many keys: only the range is left, if there is one.
 *
 * A key is compared as it is fed: keys of two types are fed in the same bytes
 * (equality.c), with -0 as 0 and one NaN.  Any order of these bytes will do for the range.
 * A string's bytes lead to a dictionary's number, and a row that is dropped shall not put its
 * string into the dictionary.  So strings are known by a hash of what they are, which long
 * strings in the dictionary have already.
 *
 * Participants of a parallel plan add to filters of their own, which are merged before the
 * first row is tested.  So a filter has no pointers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "batch/batch.h"
#include "rhh_hash.h"

/* Bits for each row that is expected: one in some fifty rows passes by chance. */
#define BITS_PER_ROW	16

/*
 * A filter has 32 kB at least, which any cache has, and costs nothing to make; then an
 * estimate that is too low matters less.  4 MB at most: one that is not in a cache takes
 * longer to test than the device takes to find no match.
 */
#define LEAST_BITS		(UINT64CONST(1) << 18)
#define MOST_BITS		(UINT64CONST(1) << 25)

/* A Bloom filter of which more bits than this part are set lets half of the rows pass. */
#define FULL			0.75

/* Keys that are added or tested together. */
#define CHUNK			256

/*
 * Rows that are looked at before it is known whether a test is worth its time, and rows
 * that are let through untested if it is not, before it is tried again: rows of a table
 * may lie in an order that has to do with the key.
 */
#define TRIAL_ROWS		16384
#define PAUSE_ROWS		(16 * TRIAL_ROWS)

struct KeyFilter
{
	bool		ranged;			/* keys are one column of at most 8 bytes */
	KeyFilterForm form;
	int64		least;			/* ranged: of the keys; least > greatest: there are none */
	int64		greatest;
	uint64		n_words;		/* a power of two, */
	int			word_shift;		/* of 64 minus so much */
	uint64		words[FLEXIBLE_ARRAY_MEMBER];
};

/* ---------- keys ---------- */

/* What a string is known by.  data may be at the end of a page. */
uint64
gpurhh_key_filter_string(const char *data, uint32 length)
{
	uint64		key[2] = {0};

	if (length >= GPURHH_STRING_BYTES)
		return (uint32) gpurhh_string_hash(data, length);
	memcpy(key, data, length);
	((uint8 *) key)[GPURHH_STRING_BYTES - 1] = length;
	return rhh_mix64(key[0]) ^ key[1];
}

/* The same of a string's key. */
static inline uint64
string_of_key(const Dictionary *dictionary, const uint64 *key)
{
	if (gpurhh_string_is_long(gpurhh_string_last_byte(key)))
		return gpurhh_dictionary_entry(dictionary, key[0])->hash;
	return rhh_mix64(key[0]) ^ key[1];
}

/* What n rows of a column have, from row at on, as words. */
static void
read_column(const Feed *feed, const FeedColumn *column, const Dictionary *dictionary,
			uint32 at, int n, uint64 *words)
{
	const char *values = feed->base + column->values_offset + (Size) at * column->bytes;

	switch (column->bytes)
	{
		case 1:
			for (int i = 0; i < n; i++)
				words[i] = (int64) ((const int8 *) values)[i];
			break;
		case 2:
			for (int i = 0; i < n; i++)
				words[i] = (int64) ((const int16 *) values)[i];
			break;
		case 4:
			for (int i = 0; i < n; i++)
				words[i] = (int64) ((const int32 *) values)[i];
			break;
		case 8:
			memcpy(words, values, sizeof(uint64) * n);
			break;
		default:
			{
				const uint64 *pairs = (const uint64 *) values;

				if (!gpurhh_is_string(column->encoding))
				{
					for (int i = 0; i < n; i++)
						words[i] = rhh_mix64(pairs[2 * i]) ^ pairs[2 * i + 1];
				}
				else if (dictionary == NULL)
				{
					for (int i = 0; i < n; i++)
						words[i] = pairs[2 * i];
				}
				else
				{
					for (int i = 0; i < n; i++)
						words[i] = string_of_key(dictionary, pairs + 2 * i);
				}
				break;
			}
	}
}

/*
 * The keys of n rows from row at on: a ranged key itself, or a hash of all columns.  The
 * rows with NULL in a column get 0 in has_key, the others stay.
 */
static void
read_keys(const Feed *feed, const KeyColumns *key, const Dictionary *dictionary, uint32 at,
		  int n, uint64 *keys, uint8 *has_key)
{
	uint64		words[CHUNK];

	for (int k = 0; k < key->n; k++)
	{
		const FeedColumn *column = &feed->columns[key->columns[k]];

		read_column(feed, column, dictionary, at, n, k == 0 ? keys : words);
		for (int i = 0; k > 0 && i < n; i++)
			keys[i] = rhh_mix64(keys[i]) + words[i];
		if (column->any_null)
		{
			const uint8 *nulls = (const uint8 *) feed->base + column->nulls_offset;

			for (int i = 0; i < n; i++)
				has_key[i] &= ~(nulls[(at + i) / 8] >> ((at + i) % 8)) & 1;
		}
	}
}

/* ---------- bits ---------- */

/* Cheaper than rhh_mix64(); only the upper half is good. */
static inline uint64
bloom_hash(uint64 key)
{
	key *= UINT64CONST(0x9e3779b97f4a7c15);
	return (key ^ key >> 32) * UINT64CONST(0xd6e8feb86659fd93);
}

/* The word of a Bloom filter that has the bits of a key, by its hash's highest bits. */
static inline uint64
bloom_word(const KeyFilter *filter, uint64 hash)
{
	return hash >> filter->word_shift;
}

/* Which two bits of it, by others. */
#define BLOOM_BIT_1(hash) ((hash) >> 39 & 63)
#define BLOOM_BIT_2(hash) ((hash) >> 33 & 63)

StaticAssertDecl(MOST_BITS / 64 <= UINT64CONST(1) << (64 - 39 - 6),
				 "the word and the bits are told by different bits of the hash");

static inline void
add_to_bloom(KeyFilter *filter, uint64 key)
{
	uint64		hash = bloom_hash(key);

	filter->words[bloom_word(filter, hash)] |=
		UINT64CONST(1) << BLOOM_BIT_1(hash) | UINT64CONST(1) << BLOOM_BIT_2(hash);
}

/* Can a bitmap have all keys from least to greatest? */
static inline bool
fits_bitmap(const KeyFilter *filter, int64 least, int64 greatest)
{
	return least > greatest || (uint64) greatest - (uint64) least < filter->n_words * 64;
}

/* The keys in a bitmap go into a Bloom filter instead. */
static void
make_bloom(KeyFilter *filter)
{
	uint64		bits = filter->n_words * 64;
	uint64	   *old;

	if (filter->form == KEY_FILTER_BLOOM)
		return;
	filter->form = KEY_FILTER_BLOOM;
	if (filter->least > filter->greatest)
		return;
	old = palloc(sizeof(uint64) * filter->n_words);
	memcpy(old, filter->words, sizeof(uint64) * filter->n_words);
	memset(filter->words, 0, sizeof(uint64) * filter->n_words);
	for (uint64 w = 0; w < filter->n_words; w++)
	{
		for (uint64 word = old[w]; word != 0; word &= word - 1)
		{
			uint64		bit = w * 64 + pg_rightmost_one_pos64(word);

			/* the one key of the range with these lowest bits */
			add_to_bloom(filter, (uint64) filter->least +
						 ((bit - (uint64) filter->least) & (bits - 1)));
		}
	}
	pfree(old);
}

/* ---------- filters ---------- */

/* How large an array a filter for so many rows has. */
static uint64
bits_for(double rows)
{
	uint64		bits = LEAST_BITS;

	while (bits < MOST_BITS && bits < rows * BITS_PER_ROW)
		bits *= 2;
	return bits;
}

/* How many bytes a filter for so many rows takes. */
Size
gpurhh_key_filter_bytes(double rows)
{
	return offsetof(KeyFilter, words) + bits_for(rows) / 8;
}

/* Can a filter have these keys?  Their rows are fed in these columns. */
bool
gpurhh_key_filter_takes(int n_columns, const GpuColumn *columns)
{
	for (int c = 0; c < n_columns; c++)
	{
		const GpuEncodingInfo *info = &gpurhh_encodings[columns[c].encoding];

		switch (info->derivation)
		{
			case DERIVED_VALUE:
			case DERIVED_WIDENED:
			case DERIVED_RESCALED:
			case DERIVED_WORD:
			case DERIVED_STRING:
			case DERIVED_UNPADDED:
			case DERIVED_NAME:
				break;
			case DERIVED_LIMB:
				if (info->limb != 0 || GPURHH_DECIMAL_LIMBS(columns[c].parameter) > 1)
					return false;
				break;
			default:
				return false;
		}
		if (info->role != ROLE_ANY)
			return false;
	}
	return n_columns > 0;
}

/* Makes an empty filter, in that much memory, of keys that are fed in these columns. */
void
gpurhh_key_filter_init(KeyFilter *filter, double rows, int n_columns,
					   const GpuColumn *columns)
{
	filter->ranged = n_columns == 1 && gpurhh_encodings[columns[0].encoding].bytes <= 8;
	filter->form = filter->ranged ? KEY_FILTER_BITMAP : KEY_FILTER_BLOOM;
	filter->least = PG_INT64_MAX;
	filter->greatest = PG_INT64_MIN;
	filter->n_words = bits_for(rows) / 64;
	filter->word_shift = 64 - pg_leftmost_one_pos64(filter->n_words);
	memset(filter->words, 0, sizeof(uint64) * filter->n_words);
}

/* Adds the keys of n rows whose range has been looked at. */
static void
add_keys(KeyFilter *filter, const uint64 *keys, const uint8 *has_key, int n)
{
	uint64		mask = filter->n_words * 64 - 1;

	for (int i = 0; i < n; i++)
	{
		if (!has_key[i])
			continue;
		if (filter->form == KEY_FILTER_BITMAP)
			filter->words[(keys[i] & mask) / 64] |= UINT64CONST(1) << (keys[i] % 64);
		else
			add_to_bloom(filter, keys[i]);
	}
}

/* Adds the keys of all rows in the block, from these columns; NULL equals nothing. */
void
gpurhh_key_filter_add(KeyFilter *filter, const Feed *feed, const KeyColumns *key)
{
	uint64		keys[CHUNK];
	uint8		has_key[CHUNK];

	for (uint32 at = 0; at < feed->n_rows; at += CHUNK)
	{
		int			n = Min(feed->n_rows - at, CHUNK);

		memset(has_key, 1, n);
		read_keys(feed, key, feed->strings.dictionary, at, n, keys, has_key);
		if (filter->ranged)
		{
			int64		least = filter->least;
			int64		greatest = filter->greatest;

			for (int i = 0; i < n; i++)
			{
				if (has_key[i])
				{
					least = Min(least, (int64) keys[i]);
					greatest = Max(greatest, (int64) keys[i]);
				}
			}
			if (!fits_bitmap(filter, least, greatest))
				make_bloom(filter);
			filter->least = least;
			filter->greatest = greatest;
		}
		add_keys(filter, keys, has_key, n);
	}
}

/*
 * Adds the keys of another filter for as many rows, which is of no use afterwards.  Both
 * have not been finished.
 */
void
gpurhh_key_filter_merge(KeyFilter *filter, KeyFilter *from)
{
	int64		least = Min(filter->least, from->least);
	int64		greatest = Max(filter->greatest, from->greatest);

	if (filter->n_words != from->n_words)
		elog(ERROR, "key filters of different sizes cannot be merged");
	if (filter->form == KEY_FILTER_BLOOM || from->form == KEY_FILTER_BLOOM ||
		!fits_bitmap(filter, least, greatest))
	{
		make_bloom(filter);
		make_bloom(from);
	}
	filter->least = least;
	filter->greatest = greatest;
	for (uint64 w = 0; w < filter->n_words; w++)
		filter->words[w] |= from->words[w];
}

/* All keys have been added: what is the filter good for? */
KeyFilterForm
gpurhh_key_filter_finish(const KeyFilter *filter)
{
	uint64		bits;

	if (filter->form == KEY_FILTER_BITMAP)
		return KEY_FILTER_BITMAP;
	bits = pg_popcount((const char *) filter->words, sizeof(uint64) * filter->n_words);
	if (bits <= FULL * filter->n_words * 64)
		return filter->ranged ? KEY_FILTER_RANGE_BLOOM : KEY_FILTER_BLOOM;
	return filter->ranged ? KEY_FILTER_RANGE : KEY_FILTER_NONE;
}

/* What EXPLAIN shows. */
const char *
gpurhh_key_filter_text(KeyFilterForm form)
{
	switch (form)
	{
		case KEY_FILTER_BITMAP:
			return "range and bitmap";
		case KEY_FILTER_RANGE_BLOOM:
			return "range and Bloom";
		case KEY_FILTER_BLOOM:
			return "Bloom";
		case KEY_FILTER_RANGE:
			return "range";
		case KEY_FILTER_NONE:
			return "none (too many keys)";
		case KEY_FILTER_UNUSED:
			break;
	}
	return "not used";
}

/* ---------- tests ---------- */

/*
 * Sets active[i] to 0 for each of n rows of which no row of the build side has the key.  A loop
 * for each form, without a branch for a row.
 */
static void
test_keys(const KeyTest *test, const uint64 *keys, int n, uint8 *active)
{
	const KeyFilter *filter = test->filter;
	const uint64 *words = filter->words;
	/* of keys that have no range every one is in it */
	uint64		least = filter->ranged ? filter->least : 0;
	uint64		range = filter->ranged ? (uint64) filter->greatest - least : PG_UINT64_MAX;
	uint64		mask = filter->n_words * 64 - 1;

	if (filter->ranged && filter->least > filter->greatest)
	{
		memset(active, 0, n);
		return;
	}
	switch (test->form)
	{
		case KEY_FILTER_UNUSED:
		case KEY_FILTER_NONE:
			break;
		case KEY_FILTER_RANGE:
			for (int i = 0; i < n; i++)
				active[i] &= keys[i] - least <= range;
			break;
		case KEY_FILTER_BLOOM:
		case KEY_FILTER_RANGE_BLOOM:
			for (int i = 0; i < n; i++)
			{
				uint64		hash = bloom_hash(keys[i]);
				uint64		word = words[bloom_word(filter, hash)];

				active[i] &= (keys[i] - least <= range) & word >> BLOOM_BIT_1(hash) &
					word >> BLOOM_BIT_2(hash);
			}
			break;
		case KEY_FILTER_BITMAP:
			for (int i = 0; i < n; i++)
				active[i] &= (keys[i] - least <= range) &
					words[(keys[i] & mask) / 64] >> (keys[i] % 64);
			break;
	}
}

static int
count_active(const uint8 *active, int n)
{
	int			count = 0;

	for (int i = 0; i < n; i++)
		count += active[i];
	return count;
}

/* Tests the keys of n rows from row at on; returns how many it has dropped. */
static int
test_chunk(const KeyTest *test, const Feed *feed, uint32 at, int n, const uint8 *untested,
		   uint8 *active)
{
	uint64		keys[CHUNK];
	uint8		before[CHUNK];
	int			n_before = count_active(active, n);

	memcpy(before, active, n);
	read_keys(feed, &test->key, NULL, at, n, keys, active);
	test_keys(test, keys, n, active);
	for (int i = 0; untested != NULL && i < n; i++)
		active[i] |= before[i] & untested[i];
	return n_before - count_active(active, n);
}

/* Is any of the tests to look at the next n rows?  If not, they need not be loaded. */
bool
gpurhh_key_tests_begin(KeyTests *tests, uint32 n)
{
	bool		any = false;

	for (int t = 0; t < tests->n; t++)
	{
		KeyTest    *test = &tests->tests[t];

		test->pauses = test->form == KEY_FILTER_NONE || test->pause_rows > 0;
		test->pause_rows -= Min(test->pause_rows, n);
		any |= !test->pauses;
	}
	return any;
}

/*
 * Sets active[i] to 0 for each row of the feed that cannot have a match, by the tests that do
 * not pause.  Strings are in the feed as gpurhh_key_filter_string() says, in the first half of
 * their column; untested[i] says that row i has a string of which that is not known, and untested
 * is NULL if there are none.
 */
void
gpurhh_key_tests_run(KeyTests *tests, const Feed *feed, const uint8 *untested, uint8 *active)
{
	for (int t = 0; t < tests->n; t++)
	{
		KeyTest    *test = &tests->tests[t];
		uint32		dropped = 0;

		if (test->pauses)
			continue;
		for (uint32 at = 0; at < feed->n_rows; at += CHUNK)
			dropped += test_chunk(test, feed, at, Min(feed->n_rows - at, CHUNK),
								  untested ? untested + at : NULL, active + at);
		test->dropped += dropped;
		test->trial_rows += feed->n_rows;
		test->trial_dropped += dropped;
		if (test->trial_rows < TRIAL_ROWS)
			continue;
		if (test->trial_dropped < test->trial_rows / 10)
			test->pause_rows = PAUSE_ROWS;
		test->trial_rows = test->trial_dropped = 0;
	}
}
