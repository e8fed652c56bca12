/*-------------------------------------------------------------------------
 *
 * kept_strings.c
 *		Strings of records that outlive the dictionary that numbered them.
 *
 * A long string's key (dictionary.c) has a number, which says nothing once the
 * dictionary has gone, and in another dictionary means another string.  Where
 * groups come from several passes (agg_defer.c), those who put them together keep
 * the strings themselves: instead of the number a key then has the address of a
 * StringEntry in the caller's memory.  Such keys are equal if what they lead to
 * is, and are written to files with it.
 *
 * For who shows or compares strings by their numbers such an address is the
 * number of a string in no dictionary, that is, where that is NULL.
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

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

/*
 * Where records of spec have strings; columns are what its columns are fed
 * with.  Keys come first.
 */
void
gpurhh_string_words_init(StringWords *words, const rhh_table_spec *spec,
						 const GpuColumn *columns)
{
	int			word = 1;

	words->n = 0;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		if (gpurhh_is_string(columns[spec->key_column[k]].encoding))
			words->at[words->n++] = word;
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

/* The dictionary's strings, by their addresses.  They stay the dictionary's. */
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
}

/*
 * A string's key; its entry, if it is a long one, is made in context.  odd: see
 * dictionary.c; data has the trailing blanks then.
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

/* Makes a key's entry one of context's. */
void
gpurhh_string_copy(MemoryContext context, uint64 *key)
{
	const StringEntry *from;
	StringEntry *to;
	uint32		length;

	if (!is_long(key))
		return;
	from = entry_of(key);
	length = VARSIZE(from->string) - VARHDRSZ;
	to = MemoryContextAllocHuge(context, gpurhh_string_entry_bytes(length));
	gpurhh_string_write_entry(to, VARDATA(from->string), length, from->hash);
	key[0] = (uintptr_t) to;
}

void
gpurhh_string_free(const uint64 *key)
{
	if (is_long(key))
		pfree(entry_of(key));
}

/* The key that an odd one's string has where it is not odd, but for the number. */
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

/* Of a record's key, its first n_words words. */
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
	return hash_bytes((const unsigned char *) key, n_words * sizeof(uint64));
}

/* Are two records' keys the same? */
bool
gpurhh_strings_equal(const StringWords *words, const uint64 *a,
					 const uint64 *b, int n_words)
{
	int			from = 0;

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

/* Writes what a record's keys lead to, behind the record. */
void
gpurhh_strings_write(const StringWords *words, BufFile *file,
					 const uint64 *record)
{
	for (int i = 0; i < words->n; i++)
	{
		const uint64 *key = &record[words->at[i]];

		if (is_long(key))
		{
			StringEntry *entry = entry_of(key);
			uint32		head[2] = {entry->hash, VARSIZE(entry->string) - VARHDRSZ};

			BufFileWrite(file, head, sizeof(head));
			BufFileWrite(file, VARDATA(entry->string), head[1]);
		}
	}
}

/* Reads it again, into context, for the record that was read before. */
void
gpurhh_strings_read(const StringWords *words, BufFile *file, uint64 *record,
					MemoryContext context)
{
	for (int i = 0; i < words->n; i++)
	{
		uint64	   *key = &record[words->at[i]];
		StringEntry *entry;
		uint32		head[2];	/* hash, length */

		if (!is_long(key))
			continue;
		gpurhh_buffile_read(file, head, sizeof(head));
		entry = MemoryContextAllocHuge(context,
									   gpurhh_string_entry_bytes(head[1]));
		entry->hash = head[0];
		SET_VARSIZE(entry->string, VARHDRSZ + head[1]);
		gpurhh_buffile_read(file, VARDATA(entry->string), head[1]);
		key[0] = (uintptr_t) entry;
	}
}
