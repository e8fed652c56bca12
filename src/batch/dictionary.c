/*-------------------------------------------------------------------------
 *
 * dictionary.c
 *		Strings as keys of 16 bytes.
 *
 * What is grouped by are columns of fixed width, compared by their bytes.  A
 * string of at most 15 bytes is its own key.  A longer one gets a number from
 * a dictionary, the same number for the same string and for no other:
 *
 *		byte	0 .. 14						15
 *				the string, then zeros		its length, 0 to 15
 *				number (8), zeros (7)		0xFF
 *
 * So equal strings, and only these, have equal keys.  The number is the place
 * of the string in memory, where agg_emit.c finds it as the value to return.
 *
 * Of a char(n) what is kept is the string without its trailing blanks, which do
 * not count when strings are compared; shown, it has as many as make it n
 * characters.  But core checks n only where a value is assigned or cast: a
 * column definition list, a record's field or a table made from either may have
 * values of another length.  Such a value is *odd*.  Its key has all its bytes,
 * so that they can be shown, and says so:
 *
 *		byte	0 .. 14						15
 *				the string, then zeros		0x80 + its length, 0 to 15
 *				number (8), zeros (7)		0xFE
 *
 * It then differs from the key of an equal string, so groups of odd keys are to
 * be merged with those that equal them before anything is done with them (see
 * agg_groups.c).
 *
 * A dictionary is one backend's, or shared by the participants of a parallel
 * plan.  Its parts are the same:
 *
 *		slots		linear probing over 64-bit words, each the place of an
 *					entry and TAG_BITS of its hash; 0 is an empty one.  A
 *					power of 2, made when the first string comes, doubled when
 *					MAX_LOAD is reached.
 *		chunks		of entries, each StringEntry and the string, a varlena
 *					with a header of 4 bytes, at multiples of 8 bytes.  A
 *					participant fills chunks of its own.
 *
 * Nothing is ever taken out.  When the memory limit is reached the dictionary
 * is frozen: strings in it are still found, but none is added any more, and
 * whoever asks for another is told so.
 *
 * Places are pointers in one backend's memory, or dsa_pointers.
 *
 * Concurrency: participants look up and insert at the same time, an empty slot
 * being claimed by compare-and-swap once the entry is complete.  Each holds a
 * lock of its own while it does, for a batch of strings; growing and freezing
 * take all of the locks.  So no slots go away while they are looked at, and
 * once one participant has seen the dictionary frozen and without a string, no
 * other can add it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "mb/pg_wchar.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

#include "batch/batch.h"
#include "compat.h"
#include "rhh_hash.h"

/* The first slots: more are free then than participants can claim at once. */
#define MIN_SLOTS		4096
#define MAX_LOAD(slots)	((slots) / 8 * 5)

#define MIN_CHUNK_BYTES	((Size) 8 * 1024)
#define MAX_CHUNK_BYTES	((Size) 1024 * 1024)

/* A slot's parts.  A dsa_pointer has 50 bits, a pointer of Linux 47 or 48. */
#define TAG_BITS		17
#define PLACE_BITS		(64 - TAG_BITS)
#define PLACE_UNIT_BITS 3

/* More participants than this share locks. */
#define DICTIONARY_LOCKS 32

/* Starts a chunk, in shared memory only. */
typedef struct DictionaryChunk
{
	dsa_pointer next;
} DictionaryChunk;

struct DictionaryShared
{
	Size		limit;
	uint32		min_strings;	/* taken whatever memory they need */
	uint64		expected_strings;

	/* changed only with all locks held */
	bool		frozen;
	uint64		slots;			/* place; 0: none yet */
	uint64		n_slots;

	pg_atomic_uint64 n_strings;
	pg_atomic_uint64 bytes;		/* slots and chunks */
	pg_atomic_uint32 n_attached;

	slock_t		mutex;			/* guards chunks */
	dsa_pointer chunks;			/* the last one made; only in a dsa_area */
	LWLockPadded locks[DICTIONARY_LOCKS];
};

struct Dictionary
{
	DictionaryShared *shared;
	dsa_area   *area;			/* NULL: pointers, in context */
	MemoryContext context;
	LWLock	   *lock;			/* this participant's; NULL: no others */

	/* the slots as they were last; others have another number, if not place */
	uint64		n_slots;
	pg_atomic_uint64 *slots;

	/* the chunk being filled */
	Size		chunk_bytes;	/* the next one's size */
	uint64		next_place;
	char	   *next;
	char	   *end;
};

/* Why a batch of strings has to be looked up again. */
typedef enum LookupResult
{
	LOOKUP_DONE,
	LOOKUP_GROW,				/* too many slots are taken */
	LOOKUP_FULL					/* no memory for a string */
} LookupResult;

/* ---------- life ---------- */

static void
init_shared(DictionaryShared *shared, Size limit, int min_strings,
			double expected_strings)
{
	memset(shared, 0, sizeof(DictionaryShared));
	shared->limit = limit;
	shared->min_strings = min_strings;
	shared->expected_strings = (uint64) Min(expected_strings, 1.0e9);
	pg_atomic_init_u64(&shared->n_strings, 0);
	pg_atomic_init_u64(&shared->bytes, 0);
	pg_atomic_init_u32(&shared->n_attached, 0);
	SpinLockInit(&shared->mutex);
	shared->chunks = InvalidDsaPointer;
}

static Dictionary *
make_dictionary(DictionaryShared *shared, dsa_area *area, MemoryContext context)
{
	Dictionary *dictionary = MemoryContextAllocZero(context, sizeof(Dictionary));

	dictionary->shared = shared;
	dictionary->area = area;
	dictionary->context = context;
	/* a small limit is not to be used up by chunks that are half empty */
	dictionary->chunk_bytes = Max(Min(shared->limit / 64, MAX_CHUNK_BYTES / 8),
								  MIN_CHUNK_BYTES);
	return dictionary;
}

/*
 * Makes the dictionary of one backend, in a child of context parent.  It takes
 * about limit bytes, or more if the first min_strings strings need more.
 */
Dictionary *
gpurhh_dictionary_create(MemoryContext parent, Size limit, int min_strings,
						 double expected_strings)
{
	MemoryContext context = AllocSetContextCreate(parent,
												  "GpuHashAgg dictionary",
												  ALLOCSET_DEFAULT_SIZES);
	DictionaryShared *shared = MemoryContextAlloc(context,
												  sizeof(DictionaryShared));

	init_shared(shared, limit, min_strings, expected_strings);
	return make_dictionary(shared, NULL, context);
}

/*
 * The leader makes a dictionary in area for itself and its workers, all of whom
 * attach.
 */
dsa_pointer
gpurhh_dictionary_share(dsa_area *area, Size limit, int min_strings,
						double expected_strings)
{
	dsa_pointer place = dsa_allocate(area, sizeof(DictionaryShared));
	DictionaryShared *shared = dsa_get_address(area, place);

	init_shared(shared, limit, min_strings, expected_strings);
	/* it is a part of the query's area, and is to be seen as that */
	for (int i = 0; i < DICTIONARY_LOCKS; i++)
		LWLockInitialize(&shared->locks[i].lock, LWTRANCHE_PARALLEL_QUERY_DSA);
	return place;
}

/* A participant's handle, in context.  It ends with context, or the area. */
Dictionary *
gpurhh_dictionary_attach(dsa_area *area, dsa_pointer place,
						 MemoryContext context)
{
	DictionaryShared *shared = dsa_get_address(area, place);
	Dictionary *dictionary = make_dictionary(shared, area, context);
	uint32		number = pg_atomic_fetch_add_u32(&shared->n_attached, 1);

	dictionary->lock = &shared->locks[number % DICTIONARY_LOCKS].lock;
	return dictionary;
}

/* The leader frees it before the next run; nobody is attached any more. */
void
gpurhh_dictionary_unshare(dsa_area *area, dsa_pointer place)
{
	DictionaryShared *shared = dsa_get_address(area, place);

	while (DsaPointerIsValid(shared->chunks))
	{
		dsa_pointer chunk = shared->chunks;

		shared->chunks = ((DictionaryChunk *) dsa_get_address(area, chunk))->next;
		dsa_free(area, chunk);
	}
	if (shared->slots != 0)
		dsa_free(area, shared->slots);
	dsa_free(area, place);
}

void
gpurhh_dictionary_stats(Dictionary *dictionary, uint64 *n_strings,
						uint64 *bytes)
{
	*n_strings = pg_atomic_read_u64(&dictionary->shared->n_strings);
	*bytes = pg_atomic_read_u64(&dictionary->shared->bytes);
}

/* ---------- memory ---------- */

static inline void *
address_of(const Dictionary *dictionary, uint64 place)
{
	if (dictionary->area == NULL)
		return (void *) (uintptr_t) place;
	return dsa_get_address(dictionary->area, place);
}

/* 0: there is no memory of that size. */
static uint64
allocate(Dictionary *dictionary, Size bytes, bool zero)
{
	uint64		place;

	if (dictionary->area != NULL)
		place = dsa_allocate_extended(dictionary->area, bytes,
									  DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM |
									  (zero ? DSA_ALLOC_ZERO : 0));
	else
		place = (uintptr_t)
			MemoryContextAllocExtended(dictionary->context, bytes,
									   MCXT_ALLOC_HUGE |
									   (zero ? MCXT_ALLOC_ZERO : 0));
	if (place >> (PLACE_BITS + PLACE_UNIT_BITS) != 0 ||
		place % (1 << PLACE_UNIT_BITS) != 0)
		elog(ERROR, "memory lies at an address that a dictionary cannot hold");
	return place;
}

static void
release(Dictionary *dictionary, uint64 place)
{
	if (dictionary->area != NULL)
		dsa_free(dictionary->area, place);
	else
		pfree((void *) (uintptr_t) place);
}

/* Is there to be no more memory? */
static bool
over_limit(DictionaryShared *shared, Size bytes)
{
	return pg_atomic_read_u64(&shared->bytes) + bytes > shared->limit;
}

/* Makes room for bytes in the chunk; returns false if there is no memory. */
static bool
reserve(Dictionary *dictionary, Size bytes, bool within_limit)
{
	DictionaryShared *shared = dictionary->shared;
	Size		header = dictionary->area ? MAXALIGN(sizeof(DictionaryChunk)) : 0;
	Size		chunk_bytes = Max(dictionary->chunk_bytes, header + bytes);
	uint64		place;

	if (likely(dictionary->next != NULL &&
			   dictionary->end - dictionary->next >= bytes))
		return true;
	if (within_limit && over_limit(shared, chunk_bytes))
		return false;
	place = allocate(dictionary, chunk_bytes, false);
	if (place == 0)
		return false;
	pg_atomic_fetch_add_u64(&shared->bytes, chunk_bytes);
	dictionary->next = address_of(dictionary, place);
	dictionary->end = dictionary->next + chunk_bytes;
	if (dictionary->area != NULL)
	{
		SpinLockAcquire(&shared->mutex);
		((DictionaryChunk *) dictionary->next)->next = shared->chunks;
		shared->chunks = place;
		SpinLockRelease(&shared->mutex);
	}
	dictionary->next += header;
	dictionary->next_place = place + header;
	dictionary->chunk_bytes = Min(dictionary->chunk_bytes * 2,
								  Max(Min(shared->limit / 16, MAX_CHUNK_BYTES),
									  MIN_CHUNK_BYTES));
	return true;
}

/* ---------- looking up ---------- */

/* Of a string of at least 16 bytes. */
uint64
gpurhh_string_hash(const char *data, uint32 length)
{
	uint64		hash = length * UINT64CONST(0x9e3779b97f4a7c15);
	const char *last = data + length - sizeof(uint64);
	uint64		word;

	for (; data < last; data += sizeof(uint64))
	{
		memcpy(&word, data, sizeof(word));
		hash = (hash ^ word) * UINT64CONST(0xd6e8feb86659fd93);
		hash = (hash >> 29) | (hash << 35);
	}
	memcpy(&word, last, sizeof(word));
	return rhh_mix64(hash ^ rhh_mix64(word));
}

static inline uint64
make_slot(uint64 place, uint64 hash)
{
	return (hash >> PLACE_BITS << PLACE_BITS) | place >> PLACE_UNIT_BITS;
}

static inline uint64
slot_place(uint64 slot)
{
	return slot << TAG_BITS >> (TAG_BITS - PLACE_UNIT_BITS);
}

static inline bool
same_tag(uint64 slot, uint64 hash)
{
	return slot >> PLACE_BITS == hash >> PLACE_BITS;
}

static inline uint64
home_slot(uint32 hash, uint64 n_slots)
{
	return hash & (n_slots - 1);
}

/* Writes the next entry and returns its place; 0 if there is no room. */
static uint64
write_entry(Dictionary *dictionary, const StringLookup *string,
			bool within_limit)
{
	Size		bytes = gpurhh_string_entry_bytes(string->length);
	StringEntry *entry;

	if (!reserve(dictionary, bytes, within_limit))
		return 0;
	entry = (StringEntry *) dictionary->next;
	gpurhh_string_write_entry(entry, string->data, string->length,
							  (uint32) string->hash);
	return dictionary->next_place;
}

/*
 * Gives the string its number, unless it has none and the dictionary is frozen.
 * *n_added: strings that are new, and not yet counted.
 */
static LookupResult
find_or_add(Dictionary *dictionary, StringLookup *string, uint64 *n_added)
{
	DictionaryShared *shared = dictionary->shared;
	uint64		mask = shared->n_slots - 1;
	uint64		home = home_slot((uint32) string->hash, shared->n_slots);
	uint64		own = 0;
	uint64		n_strings;

	for (uint64 distance = 0; distance <= mask; distance++)
	{
		uint64		at = (home + distance) & mask;
		uint64		slot = pg_atomic_read_u64(&dictionary->slots[at]);

		if (slot == 0)
		{
			if (own == 0)
			{
				if (shared->frozen)
					return LOOKUP_DONE;
				n_strings = pg_atomic_read_u64(&shared->n_strings) + *n_added;
				if (n_strings >= MAX_LOAD(shared->n_slots))
					return LOOKUP_GROW;
				own = write_entry(dictionary, string,
								  n_strings >= shared->min_strings);
				if (own == 0)
					return LOOKUP_FULL;
			}
			/* its barrier has the entry be seen before the slot */
			if (pg_atomic_compare_exchange_u64(&dictionary->slots[at], &slot,
											   make_slot(own, string->hash)))
			{
				Size		bytes = gpurhh_string_entry_bytes(string->length);

				dictionary->next += bytes;
				dictionary->next_place += bytes;
				string->number = own;
				/* the more there is room for, the rarer all are told */
				if (++(*n_added) > shared->n_slots / MIN_SLOTS)
				{
					pg_atomic_fetch_add_u64(&shared->n_strings, *n_added);
					*n_added = 0;
				}
				return LOOKUP_DONE;
			}
			/* another participant was faster: slot is what it stored */
		}
		if (same_tag(slot, string->hash))
		{
			StringEntry *entry;

			if (dictionary->area != NULL)
				pg_read_barrier();
			entry = address_of(dictionary, slot_place(slot));
			if (VARSIZE(entry->string) == VARHDRSZ + string->length &&
				memcmp(VARDATA(entry->string), string->data,
					   string->length) == 0)
			{
				string->number = slot_place(slot);
				return LOOKUP_DONE;
			}
		}
	}
	/* many participants have filled the last slots at once */
	return shared->frozen ? LOOKUP_DONE : LOOKUP_GROW;
}

/*
 * One attempt at a batch.  The memory that strings lead to is mostly in no
 * cache, so it is asked for ahead: slots, then entries.
 */
static LookupResult
look_up(Dictionary *dictionary, StringLookup *strings, int n)
{
	DictionaryShared *shared = dictionary->shared;
	LookupResult result = LOOKUP_DONE;
	uint64		n_added = 0;

	if (shared->slots == 0)
		return shared->frozen ? LOOKUP_DONE : LOOKUP_GROW;
	if (dictionary->n_slots != shared->n_slots)
	{
		dictionary->n_slots = shared->n_slots;
		dictionary->slots = address_of(dictionary, shared->slots);
	}
	if (n > 1)
	{
		for (int i = 0; i < n; i++)
			__builtin_prefetch(&dictionary->slots[home_slot((uint32) strings[i].hash,
															shared->n_slots)]);
		for (int i = 0; i < n; i++)
		{
			uint64		slot = pg_atomic_read_u64(&dictionary->slots[home_slot((uint32) strings[i].hash,
																			   shared->n_slots)]);

			if (slot != 0 && same_tag(slot, strings[i].hash))
			{
				const char *entry = address_of(dictionary, slot_place(slot));

				/* one of a few dozen bytes may begin near a line's end */
				__builtin_prefetch(entry);
				__builtin_prefetch(entry + 40);
			}
		}
	}
	for (int i = 0; i < n && result == LOOKUP_DONE; i++)
		result = find_or_add(dictionary, &strings[i], &n_added);
	if (n_added > 0)
		pg_atomic_fetch_add_u64(&shared->n_strings, n_added);
	return result;
}

/* ---------- growing and freezing ---------- */

/* The slots of twice as many, or the first ones; false: there is no memory. */
static bool
grow(Dictionary *dictionary)
{
	DictionaryShared *shared = dictionary->shared;
	uint64		n_strings = pg_atomic_read_u64(&shared->n_strings);
	uint64		n_slots = shared->n_slots * 2;
	uint64		place;
	pg_atomic_uint64 *old;
	pg_atomic_uint64 *slots;

	if (n_slots == 0)
	{
		n_slots = MIN_SLOTS;
		while (MAX_LOAD(n_slots) < shared->expected_strings &&
			   n_slots * 2 * sizeof(uint64) < shared->limit / 4)
			n_slots *= 2;
	}
	else if (n_strings >= shared->min_strings &&
			 over_limit(shared, n_slots * sizeof(uint64)))
		return false;
	/* the stored half of the hash finds no more */
	if (n_slots > UINT64CONST(1) << 32)
		return false;
	place = allocate(dictionary, n_slots * sizeof(uint64), true);
	if (place == 0)
		return false;
	slots = address_of(dictionary, place);
	if (shared->slots != 0)
	{
		old = address_of(dictionary, shared->slots);
		for (uint64 i = 0; i < shared->n_slots; i++)
		{
			uint64		slot = pg_atomic_read_u64(&old[i]);
			uint64		ahead = i + 16 < shared->n_slots ?
				pg_atomic_read_u64(&old[i + 16]) : 0;
			StringEntry *entry;
			uint64		at;

			if (ahead != 0)
				__builtin_prefetch(address_of(dictionary, slot_place(ahead)));
			if (slot == 0)
				continue;
			entry = address_of(dictionary, slot_place(slot));
			at = home_slot(entry->hash, n_slots);
			while (pg_atomic_read_u64(&slots[at]) != 0)
				at = (at + 1) & (n_slots - 1);
			pg_atomic_write_u64(&slots[at], slot);
		}
		release(dictionary, shared->slots);
	}
	pg_atomic_fetch_add_u64(&shared->bytes,
							(n_slots - shared->n_slots) * sizeof(uint64));
	shared->slots = place;
	shared->n_slots = n_slots;
	return true;
}

/*
 * Called after an attempt that found n_slots slots and ended with why.  Makes the
 * dictionary larger, unless another participant has done so, or freezes it.
 */
static void
make_room(Dictionary *dictionary, LookupResult why, uint64 n_slots)
{
	DictionaryShared *shared = dictionary->shared;

	if (dictionary->lock != NULL)
	{
		for (int i = 0; i < DICTIONARY_LOCKS; i++)
			LWLockAcquire(&shared->locks[i].lock, LW_EXCLUSIVE);
	}
	if (why == LOOKUP_FULL ||
		(shared->n_slots == n_slots && !grow(dictionary)))
		shared->frozen = true;
	if (dictionary->lock != NULL)
	{
		for (int i = DICTIONARY_LOCKS - 1; i >= 0; i--)
			LWLockRelease(&shared->locks[i].lock);
	}
}

/*
 * Gives n strings, each of at least 16 bytes, their numbers and hashes.  Returns
 * false if some of them are not in the dictionary and never will be: these get 0.
 */
static bool
number_strings(Dictionary *dictionary, StringLookup *strings, int n)
{
	bool		all = true;

	for (int i = 0; i < n; i++)
	{
		strings[i].hash = gpurhh_string_hash(strings[i].data, strings[i].length);
		strings[i].number = 0;
	}
	for (;;)
	{
		LookupResult result;
		uint64		n_slots;

		if (dictionary->lock != NULL)
			LWLockAcquire(dictionary->lock, LW_EXCLUSIVE);
		n_slots = dictionary->shared->n_slots;
		result = look_up(dictionary, strings, n);
		if (dictionary->lock != NULL)
			LWLockRelease(dictionary->lock);
		if (result == LOOKUP_DONE)
			break;
		make_room(dictionary, result, n_slots);
	}
	for (int i = 0; i < n; i++)
		all &= strings[i].number != 0;
	return all;
}

/* What a number stands for; NULL dictionary: it is the address (string_words.c). */
StringEntry *
gpurhh_dictionary_entry(const Dictionary *dictionary, uint64 number)
{
	return dictionary == NULL ? (StringEntry *) (uintptr_t) number :
		address_of(dictionary, number);
}

/* The string of a key that is none itself, as a varlena. */
struct varlena *
gpurhh_dictionary_string(const Dictionary *dictionary, uint64 number)
{
	return (struct varlena *) gpurhh_dictionary_entry(dictionary, number)->string;
}

/* What an odd key stands for, without trailing blanks: so it is compared. */
static pg_noinline const char *
string_of_odd_key(const Dictionary *dictionary, const uint64 *key,
				  uint32 *length)
{
	uint8		last = gpurhh_string_last_byte(key);
	const char *data = (const char *) key;

	*length = last & ~GPURHH_STRING_ODD;
	if (last == GPURHH_STRING_ODD_LONG)
	{
		const struct varlena *string = gpurhh_dictionary_string(dictionary,
																key[0]);

		*length = VARSIZE(string) - VARHDRSZ;
		data = VARDATA(string);
	}
	*length = gpurhh_string_without_blanks(data, *length);
	return data;
}

/* The bytes that a key stands for; to be found in the key itself or its entry. */
static inline const char *
string_of_key(const Dictionary *dictionary, const uint64 *key, uint32 *length)
{
	uint8		last = gpurhh_string_last_byte(key);
	const struct varlena *string;

	if (unlikely(gpurhh_string_is_odd(last)))
		return string_of_odd_key(dictionary, key, length);
	if (last != GPURHH_STRING_LONG)
	{
		*length = last;
		return (const char *) key;
	}
	string = gpurhh_dictionary_string(dictionary, key[0]);
	*length = VARSIZE(string) - VARHDRSZ;
	return VARDATA(string);
}

/* The same for others. */
const char *
gpurhh_string_of_key(const Dictionary *dictionary, const uint64 *key,
					 uint32 *length)
{
	return string_of_key(dictionary, key, length);
}

/* The order of two keys' strings by their bytes: < 0, 0, > 0. */
int
gpurhh_string_compare(const Dictionary *dictionary, const uint64 *a,
					  const uint64 *b)
{
	uint32		length_a;
	uint32		length_b;
	const char *data_a = string_of_key(dictionary, a, &length_a);
	const char *data_b = string_of_key(dictionary, b, &length_b);
	int			order = memcmp(data_a, data_b, Min(length_a, length_b));

	return order != 0 ? order : (length_a > length_b) - (length_a < length_b);
}

/* ---------- keys ---------- */

/* The first n bytes of 16 at GPURHH_STRING_BYTES - n are 0xff. */
static const uint8 keep_bytes[2 * GPURHH_STRING_BYTES] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

/*
 * The key of a string that is one itself; data can be read up to readable.  Returns
 * the bits that are set in any of its words, but for the length: to read them from
 * where they have just been written, in other pieces, would take long.
 */
static inline uint64
write_inline_key(const char *data, uint32 length, const char *readable,
				 char *to)
{
	uint64		low;
	uint64		high;

	if (likely(readable - data >= GPURHH_STRING_BYTES))
	{
		const uint8 *keep = keep_bytes + GPURHH_STRING_BYTES - length;
		uint64		keep_low;
		uint64		keep_high;

		memcpy(&low, data, sizeof(low));
		memcpy(&high, data + sizeof(low), sizeof(high));
		memcpy(&keep_low, keep, sizeof(keep_low));
		memcpy(&keep_high, keep + sizeof(keep_low), sizeof(keep_high));
		low &= keep_low;
		high &= keep_high;
	}
	else
	{
		char		bytes[GPURHH_STRING_BYTES] = {0};

		memcpy(bytes, data, length);
		memcpy(&low, bytes, sizeof(low));
		memcpy(&high, bytes + sizeof(low), sizeof(high));
	}
	memcpy(to, &low, sizeof(low));
	memcpy(to + sizeof(low), &high, sizeof(high));
	to[GPURHH_STRING_BYTES - 1] = (char) length;
	return low | high;
}

#define HIGH_BITS UINT64CONST(0x8080808080808080)

/* How many of a word's bytes go on with a character of UTF-8, as 10xxxxxx. */
static inline uint32
continuing_bytes(uint64 word)
{
	uint64		bits = word & ~(word << 1) & HIGH_BITS;

	return (bits >> 7) * UINT64CONST(0x0101010101010101) >> 56;
}

/*
 * Bytes of a key that is a string itself beyond one for each character; some are
 * not ASCII.
 */
static pg_noinline uint32
extra_bytes_of_key(const char *key, uint32 length)
{
	uint64		words[2];

	/* all bytes but the string's are small */
	memcpy(words, key, sizeof(words));
	if (GetDatabaseEncoding() == PG_UTF8)
		return continuing_bytes(words[0]) + continuing_bytes(words[1]);
	return length - pg_mbstrlen_with_len(key, length);
}

/* The same of any string. */
static uint32
extra_bytes(const char *data, uint32 length)
{
	uint64		any = 0;
	uint64		word;
	uint32		extra = 0;
	uint32		at;

	for (at = 0; at + sizeof(word) <= length; at += sizeof(word))
	{
		memcpy(&word, data + at, sizeof(word));
		any |= word;
	}
	for (; at < length; at++)
		any |= (uint8) data[at];
	if (likely((any & HIGH_BITS) == 0))
		return 0;
	if (GetDatabaseEncoding() != PG_UTF8)
		return length - pg_mbstrlen_with_len(data, length);
	for (at = 0; at + sizeof(word) <= length; at += sizeof(word))
	{
		memcpy(&word, data + at, sizeof(word));
		extra += continuing_bytes(word);
	}
	for (; at < length; at++)
		extra += (data[at] & 0xc0) == 0x80;
	return extra;
}

/*
 * Is a char(n) odd: not of as many characters as are declared?  length: without
 * its trailing blanks, which are characters of a byte in every encoding.
 */
bool
gpurhh_string_odd_length(const char *data, uint32 length, uint32 bytes,
						 int characters)
{
	return bytes - extra_bytes(data, length) != (uint32) characters;
}

/* Gives the strings that wait for it their keys. */
static void
write_numbers(StringEncoder *encoder)
{
	int			n = encoder->n_waiting;

	if (n == 0)
		return;
	if (!number_strings(encoder->dictionary, encoder->waiting, n))
		encoder->missing = true;
	for (int i = 0; i < n; i++)
	{
		StringLookup *string = &encoder->waiting[i];

		encoder->hash = rhh_mix64(encoder->hash ^ string->hash);
		memcpy(string->to, &string->number, sizeof(string->number));
		memset(string->to + sizeof(string->number), 0,
			   GPURHH_STRING_BYTES - sizeof(string->number));
		string->to[GPURHH_STRING_BYTES - 1] = (char) (string->odd ? GPURHH_STRING_ODD_LONG : GPURHH_STRING_LONG);
		if (string->detoasted != NULL)
			pfree(string->detoasted);
	}
	encoder->n_waiting = 0;
}

/*
 * Writes the key of a value, of a type whose encoding is one of strings, to
 * GPURHH_STRING_BYTES bytes at to; or takes note of it, and the key is there
 * after gpurhh_strings_finish().  Until then the value must stay, unless it is
 * a toasted one.  Memory up to readable may be read where that is faster.
 * A name is no varlena: value leads to it all the same.  parameter: of a
 * char(n), how many characters that is.
 */
void
gpurhh_strings_add(StringEncoder *encoder, GpuDerivation derivation,
				   int parameter, const struct varlena *value,
				   const char *readable, char *to)
{
	struct varlena *detoasted = NULL;
	const char *data;
	uint32		length;
	bool		odd = false;

	if (derivation == DERIVED_NAME)
	{
		data = (const char *) value;
		length = strnlen(data, NAMEDATALEN);
	}
	else
	{
		if (unlikely(VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value)))
		{
			detoasted = detoast_attr(unconstify(struct varlena *, value));
			value = detoasted;
			readable = (const char *) detoasted;
		}
		data = VARDATA_ANY(value);
		length = VARSIZE_ANY_EXHDR(value);
	}
	if (derivation == DERIVED_BPCHAR)
	{
		uint32		bytes = length;

		length = gpurhh_string_without_blanks(data, bytes);
		if (length < GPURHH_STRING_BYTES)
		{
			uint64		bits = write_inline_key(data, length, readable, to);
			uint32		extra = likely((bits & HIGH_BITS) == 0) ? 0 :
				extra_bytes_of_key(to, length);

			odd = bytes - extra != (uint32) parameter;
		}
		else
			odd = gpurhh_string_odd_length(data, length, bytes, parameter);
		if (unlikely(odd))
		{
			encoder->odd = true;
			length = bytes;
		}
	}
	if (length < GPURHH_STRING_BYTES)
	{
		if (derivation != DERIVED_BPCHAR || odd)
			(void) write_inline_key(data, length, readable, to);
		if (unlikely(odd))
			to[GPURHH_STRING_BYTES - 1] |= GPURHH_STRING_ODD;
		if (detoasted != NULL)
			pfree(detoasted);
		return;
	}
	if (encoder->n_waiting == GPURHH_STRING_BATCH)
		write_numbers(encoder);
	encoder->waiting[encoder->n_waiting++] = (StringLookup){
		.data = data, .length = length, .to = to, .odd = odd,
		.detoasted = detoasted
	};
}

/*
 * As gpurhh_strings_add() for n rows of a page, whose values start at
 * data[i] + positions[i] and whose keys go to to[i * GPURHH_STRING_BYTES].  All
 * memory up to readable may be read.
 *
 * Most strings are short, of ASCII, and as long as they were declared.  The loop
 * writes the keys of these itself, because a call for each string takes longer than
 * the rest; and it leaves all others to gpurhh_strings_add().
 */
void
gpurhh_strings_add_column(StringEncoder *encoder, GpuDerivation derivation,
						  int parameter, const char *const *data,
						  const uint32 *positions, int n, const char *readable,
						  char *to)
{
	bool		blanks = derivation == DERIVED_BPCHAR;
	/* where a value starts before this, a whole key can be read behind its header */
	const char *end = derivation == DERIVED_NAME ? NULL :
		readable - GPURHH_STRING_BYTES;

	for (int i = 0; i < n; i++, to += GPURHH_STRING_BYTES)
	{
		const char *value = data[i] + positions[i];

		if (likely(value < end && VARATT_IS_1B(value) &&
				   !VARATT_IS_1B_E(value)))
		{
			uint32		bytes = VARSIZE_1B(value) - VARHDRSZ_SHORT;
			uint32		length = blanks ?
				gpurhh_string_without_blanks(value + VARHDRSZ_SHORT, bytes) : bytes;

			if (likely(length < GPURHH_STRING_BYTES))
			{
				uint64		bits = write_inline_key(value + VARHDRSZ_SHORT,
													length, readable, to);

				if (likely(!blanks || (bytes == (uint32) parameter &&
									   (bits & HIGH_BITS) == 0)))
					continue;
			}
		}
		gpurhh_strings_add(encoder, derivation, parameter,
						   (const struct varlena *) value, readable, to);
	}
}

/*
 * An odd numeric - one that has not the scale that is declared for it, or too many
 * digits, or is infinite - has a number too, of what it is stored as.  So numerics
 * that are equal but for their scale have different numbers, and are to be merged
 * like odd strings.  The word of the key is GPURHH_DECIMAL_ODD and the number.
 *
 * Entries are as of strings: zeros, which give the shortest numeric a hash, and the
 * numeric with a header of 4 bytes, aligned.
 */
#define NUMERIC_AT	16

/* False: the dictionary is frozen without it.  *hash is of the value. */
bool
gpurhh_dictionary_add_numeric(StringEncoder *encoder, Datum value,
							  uint64 *word, uint32 *hash)
{
	struct varlena *numeric = PG_DETOAST_DATUM_COPY(value);
	Size		length = NUMERIC_AT + VARSIZE(numeric);
	char	   *data = palloc0(length);
	StringLookup lookup = {.data = data, .length = length};
	bool		added;

	memcpy(data + NUMERIC_AT, numeric, VARSIZE(numeric));
	encoder->odd = true;
	added = number_strings(encoder->dictionary, &lookup, 1);
	*word = (uint64) GPURHH_DECIMAL_ODD + lookup.number;
	*hash = (uint32) lookup.hash;
	pfree(data);
	pfree(numeric);
	return added;
}

/* The numeric of such a word. */
Datum
gpurhh_dictionary_numeric(const Dictionary *dictionary, uint64 word)
{
	return PointerGetDatum(VARDATA(gpurhh_dictionary_string(dictionary,
															word - GPURHH_DECIMAL_ODD)) +
						   NUMERIC_AT);
}

/*
 * All values added since the last call have their keys.  False: some have none,
 * as they are not in the dictionary, which is frozen.  *hash is of the values
 * that are in it, or would be.
 */
bool
gpurhh_strings_finish(StringEncoder *encoder, uint32 *hash)
{
	bool		missing;

	write_numbers(encoder);
	missing = encoder->missing;
	*hash = (uint32) encoder->hash;
	encoder->missing = false;
	encoder->hash = 0;
	return !missing;
}
