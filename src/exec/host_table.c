/*-------------------------------------------------------------------------
 *
 * host_table.c
 *		A hash table of groups in the session's own memory.
 *
 * It is for everything that no device's map has: refused rows, which a map had no place
 * for; all rows, where a device declined the map or there is no device; and levels that
 * no device makes (levels.c).
 *
 * A group is a record of 64-bit words, the same words in the same order as in the
 * results of a device (rhh_result): NULL bits, keys, states.  A row is added to the
 * record of its group in place.  Groups, which come from a device or are read back from
 * disk, are merged with the record that has their key.
 *
 * Records live in memory until they take more than the limit.  From then on records of
 * new keys go to disk, into one of PARTITIONS temporary files, which is chosen by bits
 * of their hash.  Records of keys that are in memory are still merged there.  So every
 * key is either in memory or on disk, never in both.
 *
 * Strings in a record are numbers of a dictionary, which outlives the table.  Or the
 * table keeps the strings of its records itself (gpurhh_host_keep_strings()).  Then
 * they count as memory of the records, and go to disk with them.
 *
 * Phases:
 *
 *		add, merge		until the device has finished
 *		absorb			asked once for each of the device's groups: the table takes
 *						the group if its key is, or may be, in the table as well
 *		next			returns the records in memory.  Then it loads a file into the
 *						table, which it has emptied, and returns the records of that,
 *						and so on.  A file that is too large is split by more bits
 *						of the hash.
 *
 * All memory is in one context below the caller's.  The files are the current resource
 * owner's, and gpurhh_host_free() closes them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "compat.h"
#include "exec/emit.h"
#include "exec/host_table.h"
#include "plan/plan.h"
#include "rhh_states.h"

#define PARTITION_BITS	5
#define PARTITIONS		(1 << PARTITION_BITS)

/* Rows that are looked up together. */
#define RUN_ROWS		64

/* Beyond this many splits, equal hashes are kept in memory whatever it takes. */
#define MAX_DEPTH		(32 / PARTITION_BITS)

typedef struct HostEntry
{
	uint64	   *record;
	uint32		hash;
	char		status;
} HostEntry;

/* A file of records whose hashes have depth * PARTITION_BITS bits in common. */
typedef struct Spill
{
	BufFile    *file;
	uint64		n_records;
	int			depth;
} Spill;

struct hostgroups_hash;

struct HostTable
{
	rhh_map_spec spec;
	int			n_words;		/* of a record */
	int			first_state;	/* word */
	Size		key_bytes;
	Size		memory_limit;

	MemoryContext context;		/* this struct and the lists */
	MemoryContext records;		/* emptied before a file is loaded */
	struct hostgroups_hash *table;
	uint64	   *scratch;		/* one record */
	uint64	   *run_keys;		/* NULL bits and keys of RUN_ROWS rows */

	const StringWords *strings; /* that it keeps; NULL: it keeps none */
	MemoryContext loaded;		/* those of the record in scratch */

	/* states of which one value is kept, see gpurhh_host_choose() */
	uint32		first_choice;
	uint32		n_choices;
	GpuChoice	choices[RHH_MAX_KEYS];
	const Dictionary *dictionary;
	FmgrInfo	compare_enums[RHH_MAX_KEYS];	/* each keeps its type's order */

	int			depth;			/* of the records in memory */
	Spill		partition[PARTITIONS];	/* being written, at depth + 1 */
	List	   *pending;		/* of Spill *, complete, yet to be read */
	uint64		n_spilled;

	bool		reading;		/* next has been called */
	uint32		iterator;
};

/* The hash of a record's key.  The words of the key are the first of a record. */
static inline uint32
hash_record(HostTable *host, const uint64 *record)
{
	if (host->strings != NULL)
		return gpurhh_strings_hash(host->strings, record, host->first_state);
	return hash_bytes((const unsigned char *) record, host->key_bytes);
}

static inline bool
same_key(HostTable *host, const uint64 *a, const uint64 *b)
{
	if (host->strings != NULL)
		return gpurhh_strings_equal(host->strings, a, b, host->first_state);
	return memcmp(a, b, host->key_bytes) == 0;
}

#define SH_PREFIX hostgroups
#define SH_ELEMENT_TYPE HostEntry
#define SH_KEY_TYPE uint64 *
#define SH_KEY record
#define SH_HASH_KEY(tb, key) hash_record((tb)->private_data, key)
#define SH_EQUAL(tb, a, b) same_key((tb)->private_data, a, b)
#define SH_SCOPE static inline
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Makes the table empty, without any records. */
static void
reset_memory(HostTable *host)
{
	MemoryContextReset(host->records);
	host->table = hostgroups_create(host->records, 256, host);
}

/*
 * Makes a table of groups with the keys and states of spec, in a context below parent.
 * It holds about memory_limit bytes before it uses temporary files.
 */
HostTable *
gpurhh_host_create(const rhh_map_spec *spec, MemoryContext parent,
				   Size memory_limit)
{
	MemoryContext context = AllocSetContextCreate(parent, "GpuHashAgg host table",
												  ALLOCSET_DEFAULT_SIZES);
	HostTable  *host = MemoryContextAllocZero(context, sizeof(HostTable));

	host->context = context;
	host->records = AllocSetContextCreate(context, "GpuHashAgg host groups",
										  ALLOCSET_DEFAULT_SIZES);
	host->spec = *spec;
	host->n_words = rhh_result_words(spec);
	host->first_state = rhh_first_state_word(spec);
	host->key_bytes = host->first_state * sizeof(uint64);
	host->memory_limit = memory_limit;
	host->scratch = MemoryContextAlloc(context, host->n_words * sizeof(uint64));
	host->run_keys = MemoryContextAlloc(context, RUN_ROWS * host->key_bytes);
	reset_memory(host);
	return host;
}

/* Frees the table and closes its files. */
void
gpurhh_host_free(HostTable *host)
{
	ListCell   *lc;

	for (int p = 0; p < PARTITIONS; p++)
	{
		if (host->partition[p].file != NULL)
			BufFileClose(host->partition[p].file);
	}
	foreach(lc, host->pending)
		BufFileClose(((Spill *) lfirst(lc))->file);
	MemoryContextDelete(host->context);
}

/* Does the table have no record, in memory or on disk? */
bool
gpurhh_host_is_empty(HostTable *host)
{
	return host->table->members == 0 && host->n_spilled == 0;
}

/* Records written to temporary files so far. */
uint64
gpurhh_host_spilled(HostTable *host)
{
	return host->n_spilled;
}

/*
 * The states from first_state on, one for each of choices, have the words of RHH_ANY.
 * When two of them are combined, the table keeps the value that the choice asks for: the
 * least or the greatest.  dictionary: where strings among them have their numbers.
 */
void
gpurhh_host_choose(HostTable *host, uint32 first_state, List *choices,
				   const Dictionary *dictionary)
{
	MemoryContext old = MemoryContextSwitchTo(host->context);
	ListCell   *lc;

	host->first_choice = first_state;
	host->dictionary = dictionary;
	foreach(lc, choices)
	{
		fmgr_info(F_ENUM_CMP, &host->compare_enums[host->n_choices]);
		host->choices[host->n_choices++] = lfirst_int(lc);
	}
	MemoryContextSwitchTo(old);
}

/*
 * Makes the table keep strings itself.  To be called before there is a record.  From
 * then on strings in what is merged are given by their addresses, and the table copies
 * them.  The copies are valid until a file is loaded, see
 * gpurhh_host_next_is_loaded().
 */
void
gpurhh_host_keep_strings(HostTable *host, const StringWords *strings)
{
	host->strings = strings;
	host->loaded = AllocSetContextCreate(host->context,
										 "GpuHashAgg loaded strings",
										 ALLOCSET_DEFAULT_SIZES);
}

/* Combines two states of choice n: keeps the chosen one of their values in into. */
static void
combine_choice(HostTable *host, uint32 n, uint64 *into, const uint64 *from)
{
	const GpuChoice choice = host->choices[n];
	int			order = 0;

	if (from[0] == 0)
		return;
	if (into[0] != 0)
	{
		switch (choice)
		{
			case GPU_CHOICE_LEAST_STRING:
			case GPU_CHOICE_GREATEST_STRING:
				order = gpurhh_string_compare(host->dictionary, &from[1],
											  &into[1]);
				break;
			case GPU_CHOICE_LEAST_ENUM:
			case GPU_CHOICE_GREATEST_ENUM:
				order = DatumGetInt32(FunctionCall2(&host->compare_enums[n],
													ObjectIdGetDatum((Oid) from[1]),
													ObjectIdGetDatum((Oid) into[1])));
				break;
		}
		if (choice == GPU_CHOICE_LEAST_STRING ||
			choice == GPU_CHOICE_LEAST_ENUM ? order >= 0 : order <= 0)
			return;
	}
	into[0] = 1;
	into[1] = from[1];
	if (choice == GPU_CHOICE_LEAST_STRING ||
		choice == GPU_CHOICE_GREATEST_STRING)
		into[2] = from[2];
}

/* Adds the states of one record to another of the same key. */
static void
combine(HostTable *host, uint64 *into, const uint64 *from)
{
	int			w = host->first_state;

	for (uint32 s = 0; s < host->spec.n_states; s++)
	{
		if (s - host->first_choice < host->n_choices)
			combine_choice(host, s - host->first_choice,
						   &into[w], &from[w]);
		else
			rhh_state_combine(host->spec.states[s].op,
							  rhh_arg_bytes(&host->spec, s), &into[w], &from[w]);
		w += rhh_state_words(&host->spec, s);
	}
}

/* The same as combine(), where the table keeps the strings of its records. */
static void
combine_strings(HostTable *host, uint64 *into, const uint64 *from)
{
	const StringWords *strings = host->strings;
	uint64		before[lengthof(strings->at)][2];
	bool		was_there[lengthof(strings->at)];

	for (int i = strings->n_keys; i < strings->n; i++)
	{
		memcpy(before[i], &into[strings->at[i]], GPURHH_STRING_BYTES);
		/* as RHH_ANY's first word says */
		was_there[i] = into[strings->at[i] - 1] != 0;
	}
	combine(host, into, from);
	for (int i = strings->n_keys; i < strings->n; i++)
	{
		uint64	   *now = &into[strings->at[i]];

		if (memcmp(before[i], now, GPURHH_STRING_BYTES) == 0)
			continue;
		/* nothing is no empty string, which may be an odd one */
		if (was_there[i] && gpurhh_string_compare(NULL, before[i], now) == 0)
			memcpy(now, before[i], GPURHH_STRING_BYTES);
		else
		{
			gpurhh_string_free(before[i]);
			gpurhh_string_copy(host->records, now);
		}
	}
}

/* The file for records with this hash that go to disk now. */
static Spill *
partition_of(HostTable *host, uint32 hash)
{
	int			shift = 32 - (host->depth + 1) * PARTITION_BITS;

	return &host->partition[(hash >> shift) & (PARTITIONS - 1)];
}

/* Writes a record to disk. */
static void
spill(HostTable *host, const uint64 *record, uint32 hash)
{
	Spill	   *to = partition_of(host, hash);

	if (to->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(host->context);

		PrepareTempTablespaces();
		to->file = BufFileCreateTemp(false);
		to->depth = host->depth + 1;
		MemoryContextSwitchTo(old);
	}
	BufFileWrite(to->file, unconstify(uint64 *, record),
				 host->n_words * sizeof(uint64));
	if (host->strings != NULL)
		gpurhh_strings_write(host->strings, to->file, record);
	to->n_records++;
	host->n_spilled++;
}

static inline Size
memory_of_records(HostTable *host)
{
	return MemoryContextMemAllocated(host->records, false);
}

/*
 * Merges a record into that of an entry, where the table keeps strings.  A string that
 * takes the place of a shorter one needs memory.  If that is beyond the limit, the group
 * goes to disk.
 */
static void
merge_strings(HostTable *host, HostEntry *entry, const uint64 *from)
{
	Size		before = memory_of_records(host);
	uint64	   *record = entry->record;

	combine_strings(host, record, from);
	if (memory_of_records(host) <= Max(before, host->memory_limit) ||
		host->depth >= MAX_DEPTH)
		return;
	spill(host, record, entry->hash);
	hostgroups_delete_item(host->table, entry);
	gpurhh_strings_free(host->strings, record);
	pfree(record);
}

/* Has a key with this hash, which the table does not have, to go to disk? */
static inline bool
goes_to_disk(HostTable *host, uint32 hash)
{
	return host->depth < MAX_DEPTH &&
		(memory_of_records(host) > host->memory_limit ||
		 (host->n_spilled > 0 && partition_of(host, hash)->file != NULL));
}

/* Merges a record, whose words lie side by side and whose hash is given. */
static void
merge_hashed(HostTable *host, uint64 *record, uint32 hash)
{
	HostEntry  *entry = hostgroups_lookup_hash(host->table, record, hash);
	bool		found;

	if (entry != NULL)
	{
		if (host->strings != NULL)
			merge_strings(host, entry, record);
		else
			combine(host, entry->record, record);
		return;
	}
	if (goes_to_disk(host, hash))
	{
		spill(host, record, hash);
		return;
	}
	entry = hostgroups_insert_hash(host->table, record, hash, &found);
	entry->record = MemoryContextAlloc(host->records,
									   host->n_words * sizeof(uint64));
	memcpy(entry->record, record, host->n_words * sizeof(uint64));
	if (host->strings != NULL)
		gpurhh_strings_copy(host->strings, host->records, entry->record);
}

static void
merge_record(HostTable *host, uint64 *record)
{
	merge_hashed(host, record, hash_record(host, record));
}

/*
 * Merges n records, at most GPURHH_EMIT_WINDOW, that lie one behind the other.  The
 * waits for memory of all of them overlap: first those for the table's entries, then
 * those for the records which these point to.
 */
void
gpurhh_host_merge_records(HostTable *host, uint64 *records, int n)
{
	uint32		hashes[GPURHH_EMIT_WINDOW];

	Assert(n <= GPURHH_EMIT_WINDOW);
	for (int i = 0; i < n; i++)
	{
		hashes[i] = hash_record(host, &records[(Size) i * host->n_words]);
		__builtin_prefetch(&host->table->data[hashes[i] & host->table->sizemask]);
	}
	for (int i = 0; i < n; i++)
	{
		HostEntry  *entry = &host->table->data[hashes[i] & host->table->sizemask];

		if (entry->status == hostgroups_SH_IN_USE)
			__builtin_prefetch(entry->record, 1);
	}
	for (int i = 0; i < n; i++)
		merge_hashed(host, &records[(Size) i * host->n_words], hashes[i]);
}

static uint64
load_value(const rhh_batch *batch, int column, int bytes, uint32 row)
{
	const uint8 *at = batch->base + batch->values_offset[column] +
		(Size) row * bytes;

	switch (bytes)
	{
		case 1:
			return *at;
		case 2:
			return *(const uint16 *) at;
		case 4:
			return *(const uint32 *) at;
		default:
			return *(const uint64 *) at;
	}
}

static inline bool
is_null(const rhh_batch *batch, int column, uint32 row)
{
	return batch->nulls_offset[column] != 0 &&
		(batch->base[batch->nulls_offset[column] + row / 8] &
		 (1 << (row % 8))) != 0;
}

/* Loads a row's NULL bits and keys, the words of its record before the states. */
static inline void
load_key(const rhh_map_spec *spec, const rhh_batch *batch, uint32 row,
		 uint64 *words)
{
	int			w = 1;

	words[0] = 0;
	for (uint32 k = 0; k < spec->n_keys; k++)
	{
		int			column = spec->key_column[k];
		int			bytes = spec->column_bytes[column];

		if (is_null(batch, column, row))
		{
			words[0] |= UINT64CONST(1) << k;
			memset(&words[w], 0, rhh_key_words(spec, k) * sizeof(uint64));
		}
		else if (bytes > 8)
			memcpy(&words[w], batch->base + batch->values_offset[column] +
				   (Size) row * bytes, bytes);
		else
			words[w] = load_value(batch, column, bytes, row);
		w += rhh_key_words(spec, k);
	}
}

/* Makes a record of the row's group, as it is before any row is added to it. */
void
gpurhh_host_load_group(const rhh_map_spec *spec, const rhh_batch *batch,
					   uint32 row, uint64 *record)
{
	int			w = rhh_first_state_word(spec);

	load_key(spec, batch, row, record);
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		rhh_state_init(spec->states[s].op, rhh_arg_bytes(spec, s), &record[w]);
		w += rhh_state_words(spec, s);
	}
}

/* Makes a record of the group that consists of this row. */
static void
row_to_record(HostTable *host, const rhh_batch *batch, uint32 row,
			  uint64 *record)
{
	const rhh_map_spec *spec = &host->spec;
	int			w = host->first_state;

	gpurhh_host_load_group(spec, batch, row, record);
	for (uint32 s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *state = &spec->states[s];
		int			column = state->arg_column;
		int			bytes = column >= 0 ? spec->column_bytes[column] : 0;
		bool		counts;

		counts = (state->filter_column < 0 ||
				  load_value(batch, state->filter_column, 1, row) != 0) &&
			(column < 0 || !is_null(batch, column, row));
		if (counts)
			rhh_state_add(state->op, bytes, &record[w], column < 0 ? NULL :
						  batch->base + batch->values_offset[column] +
						  (Size) row * bytes);
		w += rhh_state_words(spec, s);
	}
}

/*
 * The record of the group whose key is given, which is the row's.  It is made if the
 * key is new.  NULL: the row has to go to disk.
 */
static uint64 *
find_group(HostTable *host, const rhh_batch *batch, uint32 row, uint64 *key,
		   uint32 hash)
{
	HostEntry  *entry = hostgroups_lookup_hash(host->table, key, hash);
	uint64	   *record;
	bool		found;

	if (likely(entry != NULL))
		return entry->record;
	if (goes_to_disk(host, hash))
		return NULL;
	record = MemoryContextAlloc(host->records, host->n_words * sizeof(uint64));
	gpurhh_host_load_group(&host->spec, batch, row, record);
	entry = hostgroups_insert_hash(host->table, record, hash, &found);
	entry->record = record;
	return record;
}

/* Adds n rows to the states of their groups; rows whose record is NULL are left out. */
static void
add_to_groups(HostTable *host, const rhh_batch *batch, const uint32 *rows,
			  uint64 *const *records, int n)
{
	const rhh_map_spec *spec = &host->spec;
	int			w = host->first_state;

	for (uint32 s = 0; s < spec->n_states; s++)
	{
		const rhh_state_spec *state = &spec->states[s];
		const int	column = state->arg_column;
		const int	bytes = column >= 0 ? spec->column_bytes[column] : 0;
		const bool	any_null = column >= 0 && batch->nulls_offset[column] != 0;
		const uint8 *filter = state->filter_column < 0 ? NULL :
			batch->base + batch->values_offset[state->filter_column];
		const uint8 *values = column < 0 ? batch->base :
			batch->base + batch->values_offset[column];

		for (int i = 0; i < n; i++)
		{
			if (records[i] == NULL ||
				(filter != NULL && filter[rows[i]] == 0) ||
				(any_null && is_null(batch, column, rows[i])))
				continue;
			rhh_state_add(state->op, bytes, &records[i][w],
						  values + (Size) rows[i] * bytes);
		}
		w += rhh_state_words(spec, s);
	}
}

/*
 * Adds n rows, at most RUN_ROWS, each to the record of its group in place.  The waits for
 * memory of all of them overlap: first those for the table's entries, then those for
 * records.
 */
static void
add_run(HostTable *host, const rhh_batch *batch, const uint32 *rows, int n)
{
	uint32		hashes[RUN_ROWS];
	uint64	   *records[RUN_ROWS];
	const int	key_words = host->first_state;

	for (int i = 0; i < n; i++)
	{
		uint64	   *key = &host->run_keys[i * key_words];

		load_key(&host->spec, batch, rows[i], key);
		hashes[i] = hash_record(host, key);
		__builtin_prefetch(&host->table->data[hashes[i] & host->table->sizemask]);
	}
	for (int i = 0; i < n; i++)
	{
		const HostEntry *entry =
			&host->table->data[hashes[i] & host->table->sizemask];

		if (entry->status == hostgroups_SH_IN_USE)
			__builtin_prefetch(entry->record, 1);
	}
	for (int i = 0; i < n; i++)
	{
		records[i] = find_group(host, batch, rows[i],
								&host->run_keys[i * key_words], hashes[i]);
		if (records[i] == NULL)
		{
			row_to_record(host, batch, rows[i], host->scratch);
			spill(host, host->scratch, hashes[i]);
		}
	}
	add_to_groups(host, batch, rows, records, n);
}

/* The same as add_run(), for a table that keeps strings or chooses among values. */
static void
merge_run(HostTable *host, const rhh_batch *batch, const uint32 *rows, int n)
{
	for (int i = 0; i < n; i++)
	{
		row_to_record(host, batch, rows[i], host->scratch);
		merge_record(host, host->scratch);
	}
}

/*
 * Adds rows of a batch, whose base is set: those that are marked as refused (failed), or
 * all of them.  Returns how many it has added.
 */
uint64
gpurhh_host_add_batch(HostTable *host, const rhh_batch *batch, bool all_rows)
{
	const uint8 *failed = batch->base + batch->refused_offset;
	const bool	words_only = host->strings == NULL && host->n_choices == 0;
	uint32		rows[RUN_ROWS];
	uint64		n_added = 0;
	uint32		row = 0;

	while (row < batch->n_rows)
	{
		int			n = 0;

		CHECK_FOR_INTERRUPTS();
		for (; row < batch->n_rows && n < RUN_ROWS; row++)
		{
			if (!all_rows && row % 8 == 0 && failed[row / 8] == 0)
				row += 7;
			else if (all_rows || (failed[row / 8] & (1 << (row % 8))) != 0)
				rows[n++] = row;
		}
		if (words_only)
			add_run(host, batch, rows, n);
		else
			merge_run(host, batch, rows, n);
		n_added += n;
	}
	return n_added;
}

/* Puts the words of a group side by side, into host->scratch. */
static void
gather_words(HostTable *host, const uint64 *words, Size stride)
{
	for (int w = 0; w < host->n_words; w++)
		host->scratch[w] = words[w * stride];
}

/* Merges a group whose word w is at words[w * stride]. */
void
gpurhh_host_merge(HostTable *host, const uint64 *words, Size stride)
{
	gather_words(host, words, stride);
	merge_record(host, host->scratch);
}

/*
 * Takes a group, whose word w is at words[w * stride], if its key is in the table too, or
 * may be on disk.  False: the table does not have the key and has not taken the group.
 * Not for tables that keep strings.
 */
bool
gpurhh_host_absorb(HostTable *host, const uint64 *words, Size stride)
{
	uint32		hash;
	HostEntry  *entry;

	Assert(host->strings == NULL);
	gather_words(host, words, stride);
	hash = hash_record(host, host->scratch);
	entry = hostgroups_lookup_hash(host->table, host->scratch, hash);
	if (entry != NULL)
	{
		combine(host, entry->record, host->scratch);
		return true;
	}
	if (host->n_spilled > 0 && partition_of(host, hash)->file != NULL)
	{
		spill(host, host->scratch, hash);
		return true;
	}
	return false;
}

/* Puts the files being written on the list of those to be read. */
static void
close_partitions(HostTable *host)
{
	MemoryContext old = MemoryContextSwitchTo(host->context);

	for (int p = 0; p < PARTITIONS; p++)
	{
		Spill	   *done;

		if (host->partition[p].file == NULL)
			continue;
		done = palloc(sizeof(Spill));
		*done = host->partition[p];
		memset(&host->partition[p], 0, sizeof(Spill));
		host->pending = lappend(host->pending, done);
	}
	MemoryContextSwitchTo(old);
}

/* Empties the table and loads the next file into it; false: there is none. */
static bool
load_next_file(HostTable *host)
{
	Spill	   *from;

	if (host->pending == NIL)
		return false;
	from = llast(host->pending);
	host->pending = list_truncate(host->pending, list_length(host->pending) - 1);

	reset_memory(host);
	host->depth = from->depth;
	if (BufFileSeek(from->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of the GpuHashAgg host table")));
	for (uint64 i = 0; i < from->n_records; i++)
	{
		if (i % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		gpurhh_buffile_read(from->file, host->scratch,
							host->n_words * sizeof(uint64));
		if (host->strings != NULL)
		{
			MemoryContextReset(host->loaded);
			gpurhh_strings_read(host->strings, from->file, host->scratch,
								host->loaded);
		}
		merge_record(host, host->scratch);
	}
	BufFileClose(from->file);
	pfree(from);
	close_partitions(host);
	return true;
}

/*
 * Is the next group in memory?  If not, gpurhh_host_next() will empty the table before it
 * loads a file, and groups that it returned before are not valid any more.
 */
bool
gpurhh_host_next_is_loaded(HostTable *host)
{
	while (host->iterator < host->table->size)
	{
		if (host->table->data[host->iterator].status == hostgroups_SH_IN_USE)
			return true;
		host->iterator++;
	}
	return false;
}

/*
 * The next group, whose words lie side by side; valid until the next call.  NULL: there
 * are no more.  After the first call nothing can be added.
 */
const uint64 *
gpurhh_host_next(HostTable *host)
{
	if (!host->reading)
	{
		host->reading = true;
		host->iterator = 0;
		close_partitions(host);
	}
	for (;;)
	{
		if (gpurhh_host_next_is_loaded(host))
			return host->table->data[host->iterator++].record;
		if (!load_next_file(host))
			return NULL;
		host->iterator = 0;
	}
}
