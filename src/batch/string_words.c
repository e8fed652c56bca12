/*-------------------------------------------------------------------------
 *
 * string_words.c
 *		Keeps the strings of records that live longer than the dictionary in which
 *		they have numbers.
 *
 * A long string's key (dictionary.c) has a number.  The number means nothing once
 * the dictionary has gone, and in another dictionary it means another string.  If
 * groups come from several passes (deferred_rows.c), the code that puts them
 * together therefore keeps the strings themselves: instead of the number, a key
 * then has the address of a StringEntry in the caller's memory.  Two such keys are
 * equal if their entries are equal, and a key is written to a file with its entry.
 *
 * Keys are compared here as core compares the values that they stand for: an odd
 * key (dictionary.c), of a string or a numeric, may equal a key of other bytes.
 *
 * Functions that take a dictionary and a number take such an address as the number
 * if the dictionary that they are given is NULL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "batch/batch.h"
#include "compat.h"

static inline bool
is_long(const uint64 *key)
{
	return gpurhh_string_is_long(gpurhh_string_last_byte(key));
}

static inline bool
is_odd(const uint64 *key)
{
	return gpurhh_string_is_odd(gpurhh_string_last_byte(key));
}

static inline StringEntry *
entry_of(const uint64 *key)
{
	return (StringEntry *) (uintptr_t) key[0];
}

/* The same for the word of an odd numeric. */
static inline StringEntry *
entry_of_word(uint64 word)
{
	return (StringEntry *) (uintptr_t) (word - GPURHH_DECIMAL_ODD);
}

static inline uint64
word_of_entry(const StringEntry *entry)
{
	return (uint64) GPURHH_DECIMAL_ODD + (uintptr_t) entry;
}

/*
 * Finds out where the records of a host table have strings, and keys that are numerics.
 * columns says what the columns of spec are fed with.  Keys come first.
 */
void
gpurhh_string_words_init(StringWords *words, const rhh_map_spec *spec,
						 const GpuColumn *columns)
{
	int			word = 1;

	words->n = 0;
	words->n_numerics = 0;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		const GpuColumn *column = &columns[spec->key_column[k]];

		if (gpurhh_is_string(column->encoding))
			words->at[words->n++] = word;
		else if (column->encoding == GPU_ENC_DECIMAL)
		{
			words->scale[words->n_numerics] =
				GPURHH_DECIMAL_SCALE(column->parameter);
			words->numeric_at[words->n_numerics++] = word;
		}
		word += rhh_key_words(spec, k);
	}
	words->n_keys = words->n;
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		if (spec->states[s].op == RHH_ANY &&
			gpurhh_is_string(columns[spec->states[s].arg_column].encoding))
			words->at[words->n++] = word + 1;
		word += rhh_state_words(spec, s);
	}
}

/*
 * Replaces numbers by the addresses of the strings in the dictionary, which still owns
 * them.
 */
void
gpurhh_strings_resolve(const StringWords *words, const Dictionary *dictionary,
					   uint64 *record)
{
	for (int i = 0; i < words->n; i++)
	{
		uint64	   *key = &record[words->at[i]];

		if (is_long(key))
			key[0] = (uintptr_t) gpurhh_dictionary_entry(dictionary, key[0]);
	}
	for (int i = 0; i < words->n_numerics; i++)
	{
		uint64	   *word = &record[words->numeric_at[i]];

		if (unlikely(gpurhh_decimal_is_odd(*word)))
			*word = word_of_entry(gpurhh_dictionary_entry(dictionary,
														  *word - GPURHH_DECIMAL_ODD));
	}
}

/*
 * Makes the key of a string.  If the string is long its entry is made in context.  An
 * odd string (dictionary.c) is given with its trailing blanks.
 */
void
gpurhh_string_make_key(MemoryContext context, const char *data, uint32 length,
					   bool odd, uint64 *key)
{
	StringEntry *entry;

	memset(key, 0, GPURHH_STRING_BYTES);
	if (length < GPURHH_STRING_BYTES)
	{
		memcpy(key, data, length);
		((uint8 *) key)[GPURHH_STRING_BYTES - 1] =
			(uint8) length | (odd ? GPURHH_STRING_ODD : 0);
		return;
	}
	entry = MemoryContextAllocHuge(context, gpurhh_string_entry_bytes(length));
	gpurhh_string_write_entry(entry, data, length,
							  (uint32) gpurhh_string_hash(data, length));
	key[0] = (uintptr_t) entry;
	((uint8 *) key)[GPURHH_STRING_BYTES - 1] =
		odd ? GPURHH_STRING_ODD_LONG : GPURHH_STRING_LONG;
}

static StringEntry *
copy_entry(MemoryContext context, const StringEntry *from)
{
	uint32		length = VARSIZE(from->string) - VARHDRSZ;
	StringEntry *to = MemoryContextAllocHuge(context,
											 gpurhh_string_entry_bytes(length));

	gpurhh_string_write_entry(to, VARDATA(from->string), length, from->hash);
	return to;
}

/* Copies the entry of a key, if it has one, to context. */
void
gpurhh_string_copy(MemoryContext context, uint64 *key)
{
	if (is_long(key))
		key[0] = (uintptr_t) copy_entry(context, entry_of(key));
}

/* Copies all entries to which a record leads to context. */
void
gpurhh_strings_copy(const StringWords *words, MemoryContext context,
					uint64 *record)
{
	for (int i = 0; i < words->n; i++)
		gpurhh_string_copy(context, &record[words->at[i]]);
	for (int i = 0; i < words->n_numerics; i++)
	{
		uint64	   *word = &record[words->numeric_at[i]];

		if (unlikely(gpurhh_decimal_is_odd(*word)))
			*word = word_of_entry(copy_entry(context, entry_of_word(*word)));
	}
}

void
gpurhh_string_free(const uint64 *key)
{
	if (is_long(key))
		pfree(entry_of(key));
}

/* Frees all entries to which a record leads. */
void
gpurhh_strings_free(const StringWords *words, const uint64 *record)
{
	for (int i = 0; i < words->n; i++)
		gpurhh_string_free(&record[words->at[i]]);
	for (int i = 0; i < words->n_numerics; i++)
	{
		uint64		word = record[words->numeric_at[i]];

		if (unlikely(gpurhh_decimal_is_odd(word)))
			pfree(entry_of_word(word));
	}
}

/*
 * Finds the word that a numeric equal to this one has if it is as declared.  Returns
 * false if no numeric that is as declared can equal it.
 */
static inline bool
regular_word(uint64 word, int scale, int64 *result)
{
	*result = (int64) word;
	return !gpurhh_decimal_is_odd(word) ||
		gpurhh_decimal_integer(DatumGetPointer(gpurhh_dictionary_numeric(NULL, word)),
							   scale, result);
}

/* A hash of an odd numeric that all numerics equal to it have, too. */
static pg_noinline uint64
hash_odd_numeric(uint64 word, int scale)
{
	int64		regular;

	if (regular_word(word, scale, &regular))
		return (uint64) regular;
	return DatumGetUInt32(DirectFunctionCall1(hash_numeric,
											  gpurhh_dictionary_numeric(NULL, word)));
}

/* Are two numerics equal, one of which is odd? */
static pg_noinline bool
equal_odd_numerics(uint64 a, uint64 b, int scale)
{
	int64		regular_a;
	int64		regular_b;
	bool		has_a = regular_word(a, scale, &regular_a);
	bool		has_b = regular_word(b, scale, &regular_b);

	if (has_a || has_b)
		return has_a && has_b && regular_a == regular_b;
	return DatumGetBool(DirectFunctionCall2(numeric_eq,
											gpurhh_dictionary_numeric(NULL, a),
											gpurhh_dictionary_numeric(NULL, b)));
}

/*
 * Replaces an odd key by what is hashed for it: the key that an equal string has that
 * is not odd, without the number.
 */
static pg_noinline void
hash_odd(uint64 *key)
{
	uint32		length;
	const char *data = gpurhh_string_of_key(NULL, key, &length);
	uint64		regular[2] = {0, 0};

	if (length < GPURHH_STRING_BYTES)
		memcpy(regular, data, length);
	else
		regular[0] = (uint32) gpurhh_string_hash(data, length);
	((uint8 *) regular)[GPURHH_STRING_BYTES - 1] =
		length < GPURHH_STRING_BYTES ? length : GPURHH_STRING_LONG;
	memcpy(key, regular, sizeof(regular));
}

/* The hash of a record's key, which is its first n_words words. */
uint32
gpurhh_strings_hash(const StringWords *words, const uint64 *record,
					int n_words)
{
	uint64		key[1 + 2 * RHH_MAX_KEYS];

	memcpy(key, record, n_words * sizeof(uint64));
	for (int i = 0; i < words->n_keys; i++)
	{
		uint64	   *string = &key[words->at[i]];

		if (unlikely(is_odd(string)))
			hash_odd(string);
		else if (is_long(string))
			string[0] = entry_of(string)->hash;
	}
	for (int i = 0; i < words->n_numerics; i++)
	{
		uint64	   *word = &key[words->numeric_at[i]];

		if (unlikely(gpurhh_decimal_is_odd(*word)))
			*word = hash_odd_numeric(*word, words->scale[i]);
	}
	return hash_bytes((const unsigned char *) key, n_words * sizeof(uint64));
}

/* Are the keys of two records equal? */
bool
gpurhh_strings_equal(const StringWords *words, const uint64 *a,
					 const uint64 *b, int n_words)
{
	int			from = 0;
	uint64		other[1 + 2 * RHH_MAX_KEYS];
	bool		copied = false;

	/* what equals a's words is put in their place */
	for (int i = 0; i < words->n_numerics; i++)
	{
		int			at = words->numeric_at[i];

		if (likely(!gpurhh_decimal_is_odd(a[at]) && !gpurhh_decimal_is_odd(b[at])))
			continue;
		/* a NULL's word equals that of 0 */
		if (a[0] != b[0] ||
			!equal_odd_numerics(a[at], b[at], words->scale[i]))
			return false;
		if (!copied)
			memcpy(other, b, n_words * sizeof(uint64));
		copied = true;
		other[at] = a[at];
	}
	if (copied)
		b = other;

	for (int i = 0; i < words->n_keys; i++)
	{
		int			at = words->at[i];

		if (memcmp(a + from, b + from, (at - from) * sizeof(uint64)) != 0)
			return false;
		if (unlikely(is_odd(&a[at]) || is_odd(&b[at])))
		{
			if (gpurhh_string_compare(NULL, &a[at], &b[at]) != 0)
				return false;
		}
		else if (a[at + 1] != b[at + 1])
			return false;
		else if (!is_long(&a[at]))
		{
			if (a[at] != b[at])
				return false;
		}
		else if (entry_of(&a[at])->hash != entry_of(&b[at])->hash ||
				 gpurhh_string_compare(NULL, &a[at], &b[at]) != 0)
			return false;
		from = at + 2;
	}
	return memcmp(a + from, b + from, (n_words - from) * sizeof(uint64)) == 0;
}

static void
write_entry(BufFile *file, StringEntry *entry)
{
	uint32		head[2] = {entry->hash, VARSIZE(entry->string) - VARHDRSZ};

	BufFileWrite(file, head, sizeof(head));
	BufFileWrite(file, VARDATA(entry->string), head[1]);
}

/* Writes all entries to which a record leads; the record itself was written before. */
void
gpurhh_strings_write(const StringWords *words, BufFile *file,
					 const uint64 *record)
{
	for (int i = 0; i < words->n; i++)
	{
		const uint64 *key = &record[words->at[i]];

		if (is_long(key))
			write_entry(file, entry_of(key));
	}
	for (int i = 0; i < words->n_numerics; i++)
	{
		uint64		word = record[words->numeric_at[i]];

		if (unlikely(gpurhh_decimal_is_odd(word)))
			write_entry(file, entry_of_word(word));
	}
}

static StringEntry *
read_entry(BufFile *file, MemoryContext context)
{
	StringEntry *entry;
	uint32		head[2];		/* hash, length */

	gpurhh_buffile_read(file, head, sizeof(head));
	entry = MemoryContextAllocHuge(context, gpurhh_string_entry_bytes(head[1]));
	entry->hash = head[0];
	SET_VARSIZE(entry->string, VARHDRSZ + head[1]);
	gpurhh_buffile_read(file, VARDATA(entry->string), head[1]);
	return entry;
}

/* Reads the entries of a record, which was read before, into context. */
void
gpurhh_strings_read(const StringWords *words, BufFile *file, uint64 *record,
					MemoryContext context)
{
	for (int i = 0; i < words->n; i++)
	{
		uint64	   *key = &record[words->at[i]];

		if (is_long(key))
			key[0] = (uintptr_t) read_entry(file, context);
	}
	for (int i = 0; i < words->n_numerics; i++)
	{
		uint64	   *word = &record[words->numeric_at[i]];

		if (unlikely(gpurhh_decimal_is_odd(*word)))
			*word = word_of_entry(read_entry(file, context));
	}
}
