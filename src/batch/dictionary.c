/*-------------------------------------------------------------------------
 *
 * dictionary.c
 *		Turns strings into keys of 16 bytes.
 *
 * Grouping is by columns of fixed width that are compared by their bytes.  A string
 * of at most 15 bytes is its own key.  A longer string gets a number from a
 * dictionary, which gives the same number to equal strings and to no others:
 *
 *		byte	0 .. 14						15
 *				the string, then zeros		its length, 0 to 15
 *				number (8), zeros (7)		0xFF
 *
 * So equal strings have equal keys, and different strings different ones.  The
 * number is the place of the string in memory, where agg_emit.c finds the value to
 * return.
 *
 * The key of a char(n) is that of the string without its trailing blanks, as these
 * do not count when strings are compared.  The result gets as many blanks as make it
 * n characters long.  But core checks n only where a value is assigned or cast.  A
 * column definition list, a field of a record, or a table made from either may have
 * values of another length.  Such a value is *odd*.  Its key is made of all its bytes,
 * so that it can be returned as it was, and is marked:
 *
 *		byte	0 .. 14						15
 *				the string, then zeros		0x80 + its length, 0 to 15
 *				number (8), zeros (7)		0xFE
 *
 * Such a key differs from the key of an equal string that is not odd.  So groups with
 * odd keys have to be merged with the groups that equal them before anything else is
 * done with them (see agg_groups.c).
 *
 * A dictionary belongs to one backend, or is shared by the participants of a parallel
 * plan.  It has the same parts in both cases:
 *
 *		slots		a hash table of 64-bit words with linear probing.  A slot has
 *					the place of an entry and TAG_BITS of its hash; an empty slot
 *					is 0.  The number of slots is a power of 2.  They are made when
 *					the first string arrives, FIRST_SLOTS of them at most.  When MAX_LOAD is
 *					reached there are as many as the estimate asks for, and then twice as
 *					many each time.
 *		chunks		memory for entries: a StringEntry with the string, a varlena
 *					with a header of 4 bytes, at multiples of 8 bytes.  Each
 *					participant fills chunks of its own.
 *
 * Nothing is ever removed.  When the memory limit is reached the dictionary is frozen:
 * strings that it has are still found, but no other string is added, and callers that
 * ask for one are told so.
 *
 * Places are pointers if the dictionary belongs to one backend, else dsa_pointers.
 *
 * Concurrency: participants look up and insert at the same time.  An empty slot is
 * claimed by compare-and-swap once the entry is complete.  While a participant works
 * on a batch of strings it holds a lock of its own; whoever grows or freezes the
 * dictionary takes all of these locks.  So slots do not go away while somebody reads
 * them, and once a participant has found the dictionary frozen and without a string,
 * no other participant can add that string.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/tupmacs.h"
#include "mb/pg_wchar.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

#include "batch/batch.h"
#include "compat.h"
#include "rhh_hash.h"

/* The number of slots at first.  More are free than participants can claim at once. */
#define MIN_SLOTS		4096
#define MAX_LOAD(slots)	((slots) / 8 * 5)

/*
 * Estimates are believed once there are some strings: clearing slots for 20 million, in shared memory
 * that is touched for the first time, takes 0.2 s, for which all participants wait.
 */
#define FIRST_SLOTS		(UINT64CONST(1) << 17)

#define MIN_CHUNK_BYTES	((Size) 8 * 1024)
#define MAX_CHUNK_BYTES	((Size) 1024 * 1024)

/* The parts of a slot.  A dsa_pointer has 50 bits, a pointer on Linux 47 or 48. */
#define TAG_BITS		17
#define PLACE_BITS		(64 - TAG_BITS)
#define PLACE_UNIT_BITS 3

/* If there are more participants than this, some share a lock. */
#define DICTIONARY_LOCKS 32

/* The header of a chunk in shared memory. */
typedef struct DictionaryChunk
{
	dsa_pointer next;
} DictionaryChunk;

struct DictionaryShared
{
	Size		limit;
	uint32		min_strings;	/* so many are added whatever memory they need */
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
	LWLock	   *lock;			/* this participant's; NULL: there are no others */

	/* the slots when they were last looked at; if n_slots has changed since, so has
	 * their place */
	uint64		n_slots;
	pg_atomic_uint64 *slots;

	/* the chunk being filled */
	Size		chunk_bytes;	/* the size of the next chunk */
	uint64		next_place;
	char	   *next;
	char	   *end;
};

/* How an attempt to look up a batch of strings ended. */
typedef enum LookupResult
{
	LOOKUP_DONE,
	LOOKUP_GROW,				/* once more: too many slots are taken */
	LOOKUP_FULL					/* once more: there is no memory for a string */
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

/* Makes a participant's handle in context.  It lives as long as context and area do. */
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

/* The leader frees the dictionary before the next run, when nobody is attached. */
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

/* Returns the place of new memory, or 0 if there is none of that size. */
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

/*
 * Would so many bytes more go beyond the limit?  This is for grow(), which asks first and
 * counts the bytes when it has them.  It may do so because its caller has the locks of
 * all participants: whoever counts the bytes of a chunk holds one of these locks, so the
 * count does not change in between.
 */
static bool
over_limit(DictionaryShared *shared, Size bytes)
{
	return pg_atomic_read_u64(&shared->bytes) + bytes > shared->limit;
}

/*
 * Counts so many bytes, unless that would go beyond the limit and within_limit says
 * that it must not.  Participants may do so at the same time, so a count that is too
 * much is taken back, rather than looked at before.
 */
static bool
charge(DictionaryShared *shared, Size bytes, bool within_limit)
{
	uint64		before = pg_atomic_fetch_add_u64(&shared->bytes, bytes);

	if (!within_limit || before + bytes <= shared->limit)
		return true;
	pg_atomic_fetch_sub_u64(&shared->bytes, bytes);
	return false;
}

/* Makes room for so many bytes in the chunk; returns false if there is no memory. */
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
	if (!charge(shared, chunk_bytes, within_limit))
		return false;
	place = allocate(dictionary, chunk_bytes, false);
	if (place == 0)
	{
		pg_atomic_fetch_sub_u64(&shared->bytes, chunk_bytes);
		return false;
	}
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

/* The hash of a string of at least 16 bytes. */
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

/* Writes an entry and returns its place, or 0 if there is no room for it. */
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
 * Finds the number of a string, or adds the string.  If the dictionary is frozen and
 * does not have it, the number stays 0.  *n_added is how many strings this
 * participant has added and not yet counted in n_strings.
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
				/* the more slots there are, the more rarely n_strings is updated */
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
 * Makes one attempt to look up a batch.  Slots and entries are rarely in a cache, so
 * both are prefetched for the whole batch.
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

/*
 * Makes the first slots, or doubles them; returns false if there is no memory.  The
 * caller has the locks of all participants.
 */
static bool
grow(Dictionary *dictionary)
{
	DictionaryShared *shared = dictionary->shared;
	uint64		n_strings = pg_atomic_read_u64(&shared->n_strings);
	const bool	first = shared->n_slots == 0;
	uint64		n_slots = first ? MIN_SLOTS : shared->n_slots * 2;
	uint64		place;
	pg_atomic_uint64 *old;
	pg_atomic_uint64 *slots;

	while (MAX_LOAD(n_slots) < shared->expected_strings && !(first && n_slots == FIRST_SLOTS) &&
		   n_slots * 2 * sizeof(uint64) < shared->limit / 4 &&
		   !over_limit(shared, n_slots * 2 * sizeof(uint64)))
		n_slots *= 2;
	if (!first && n_strings >= shared->min_strings &&
		over_limit(shared, n_slots * sizeof(uint64)))
		return false;
	/* entries have only 32 bits of their hash, which cannot tell more slots apart */
	if (n_slots > UINT64CONST(1) << 32)
		return false;
	place = allocate(dictionary, n_slots * sizeof(uint64), true);
	if (place == 0 && !first && n_slots > shared->n_slots * 2)
	{
		n_slots = shared->n_slots * 2;
		place = allocate(dictionary, n_slots * sizeof(uint64), true);
	}
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
 * Is called after an attempt that ended with why, when there were n_slots slots.
 * Enlarges the dictionary, unless another participant has done so meanwhile, or
 * freezes it.
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
 * Finds the numbers and hashes of n strings of at least 16 bytes each.  Returns false
 * if the dictionary is frozen and does not have some of them; these get the number 0.
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

/*
 * The entry that a number stands for.  Without a dictionary the number is its address
 * (string_words.c).
 */
StringEntry *
gpurhh_dictionary_entry(const Dictionary *dictionary, uint64 number)
{
	return dictionary == NULL ? (StringEntry *) (uintptr_t) number :
		address_of(dictionary, number);
}

/* The string that a number stands for, as a varlena. */
struct varlena *
gpurhh_dictionary_string(const Dictionary *dictionary, uint64 number)
{
	return (struct varlena *) gpurhh_dictionary_entry(dictionary, number)->string;
}

/* The string of an odd key without its trailing blanks, as it is compared. */
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

/* The bytes of the string that a key stands for, in the key itself or in its entry. */
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

/* The same for other files. */
const char *
gpurhh_string_of_key(const Dictionary *dictionary, const uint64 *key,
					 uint32 *length)
{
	return string_of_key(dictionary, key, length);
}

/* Compares the strings of two keys by their bytes, as memcmp() does. */
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

/* The 16 bytes from GPURHH_STRING_BYTES - n on are a mask that keeps n bytes. */
static const uint8 keep_bytes[2 * GPURHH_STRING_BYTES] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

/*
 * Writes the key of a string of at most 15 bytes.  Memory may be read from data up to
 * readable.  Returns the bits that are set in any word of the key, without the length.
 * The caller could read them from the key, but reading memory that was written a
 * moment ago in pieces of another size is slow.
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

/* How many bytes of a word continue a character of UTF-8, as 10xxxxxx does. */
static inline uint32
continuing_bytes(uint64 word)
{
	uint64		bits = word & ~(word << 1) & HIGH_BITS;

	return (bits >> 7) * UINT64CONST(0x0101010101010101) >> 56;
}

/*
 * How many more bytes than characters a string has that is its own key and is not
 * all ASCII.
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

/* The same for any string. */
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
 * Is a char(n) odd: does it have another number of characters than is declared?  It
 * has so many bytes, and length without its trailing blanks.  A blank is one byte in
 * every encoding.
 */
bool
gpurhh_string_odd_length(const char *data, uint32 length, uint32 bytes,
						 int characters)
{
	return bytes - extra_bytes(data, length) != (uint32) characters;
}

/* Looks up the strings that wait for a number, and writes their keys. */
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
 * Writes the key of a string, GPURHH_STRING_BYTES bytes, to the memory at to.  The key
 * of a long string is only there after gpurhh_strings_finish(); until then the value
 * must stay, unless it is toasted.
 *
 * derivation says what the value is and how its key is made: DERIVED_STRING,
 * DERIVED_BPCHAR, DERIVED_UNPADDED or DERIVED_NAME.  A name is no varlena, but value points
 * to it all the same.  parameter is the number of characters that a char(n) declares.
 * Memory may be read up to readable, which is faster in some cases.
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
	else if (derivation == DERIVED_UNPADDED)
		length = gpurhh_string_without_blanks(data, length);
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
 * Does what gpurhh_strings_add() does, for n varlenas of a page, whose keys go to to[i * GPURHH_STRING_BYTES].  at[i]
 * is where the value before it, in the same tuple, ends, or where value i starts, and becomes where it ends;
 * align is the type's.  All memory up to readable may be read.
 *
 * Most strings are short, are ASCII, and have the length that is declared.  The loop
 * writes the keys of these itself, because a call for each string would take longer
 * than all the rest, and leaves the others to gpurhh_strings_add().
 */
void
gpurhh_strings_add_column(StringEncoder *encoder, GpuDerivation derivation,
						  int parameter, const char **at, int n, char align,
						  const char *readable, char *to)
{
	bool		declared = derivation == DERIVED_BPCHAR;
	bool		blanks = declared || derivation == DERIVED_UNPADDED;
	/* where a value starts before this, a whole key can be read behind its header */
	const char *end = readable - GPURHH_STRING_BYTES;

	for (int i = 0; i < n; i++, to += GPURHH_STRING_BYTES)
	{
		const char *value = at[i];

		if (likely(value < end && VARATT_IS_1B(value) &&
				   !VARATT_IS_1B_E(value)))
		{
			uint32		bytes = VARSIZE_1B(value) - VARHDRSZ_SHORT;
			uint32		length = blanks ?
				gpurhh_string_without_blanks(value + VARHDRSZ_SHORT, bytes) : bytes;

			at[i] = value + VARHDRSZ_SHORT + bytes;
			if (likely(length < GPURHH_STRING_BYTES))
			{
				uint64		bits = write_inline_key(value + VARHDRSZ_SHORT,
													length, readable, to);

				if (likely(!declared || (bytes == (uint32) parameter &&
										 (bits & HIGH_BITS) == 0)))
					continue;
			}
		}
		else
		{
			value = (const char *) att_align_pointer((uintptr_t) value, align, -1, value);
			at[i] = value + VARSIZE_ANY(value);
		}
		gpurhh_strings_add(encoder, derivation, parameter,
						   (const struct varlena *) value, readable, to);
	}
}

/*
 * A numeric is odd if it does not have the scale that its type declares, or has too
 * many digits, or is infinite.  An odd numeric has a number, too, which stands for the
 * numeric as it is stored.  So numerics that are equal but for their scale have
 * different numbers, and their groups have to be merged like those of odd strings.
 * The word of the key is GPURHH_DECIMAL_ODD plus the number.
 *
 * The entry of a numeric is like that of a string.  Its data begins with zeros, so
 * that even the shortest numeric is long enough to be hashed.  The numeric follows,
 * aligned and with a header of 4 bytes.
 */
#define NUMERIC_AT	16

/*
 * Finds the key of an odd numeric, and its hash.  Returns false if the dictionary is
 * frozen and does not have it.
 */
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

/* The numeric that the word of an odd key stands for. */
Datum
gpurhh_dictionary_numeric(const Dictionary *dictionary, uint64 word)
{
	return PointerGetDatum(VARDATA(gpurhh_dictionary_string(dictionary,
															word - GPURHH_DECIMAL_ODD)) +
						   NUMERIC_AT);
}

/*
 * Completes the keys of all values that were added since the last call.  Returns false
 * if the dictionary is frozen and does not have some of them.  *hash is a hash of all
 * strings that are in the dictionary, or would be if it were not frozen.
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
