/*-------------------------------------------------------------------------
 *
 * deferred_rows.c
 *		Rows that are grouped later, because the dictionary of strings was full.
 *
 * A row is deferred when one of its strings is not in the dictionary and the
 * dictionary takes no more strings.  No row of its group has been fed: the string
 * of such a row would be in the dictionary.  So deferred rows can be grouped by
 * themselves, after the groups of all other rows have been returned.
 *
 * They are written to temporary files, of which there are PARTITIONS, chosen by
 * bits of a hash of the row's strings.  Each file is read in a pass of its own, with
 * a new dictionary.  If that dictionary becomes full too, the rows that it does not
 * take are written again, by other bits of the hash.  Each pass takes at least its
 * first row, so passes come to an end.
 *
 *		save		any number of rows
 *		close		the input has been read
 *		next		the next file, if there is one; then
 *		read		its rows, between which rows may be saved again
 *
 * In a parallel plan the participants share the files that they wrote while they
 * read the input.  The participant that first asks for a partition reads all
 * participants' files of it; rows that it has to defer again go to files of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/tablespace.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "compat.h"
#include "exec/parallel.h"

#define PARTITION_BITS	5
#define PARTITIONS		GPURHH_DEFER_PARTITIONS

StaticAssertDecl(PARTITIONS == 1 << PARTITION_BITS,
				 "the partition is some bits of the hash");

/* A file of one process. */
typedef struct DeferredFile
{
	BufFile    *file;
	int			depth;			/* hash bits that its rows have in common, in
								 * units of PARTITION_BITS */
} DeferredFile;

struct Deferred
{
	MemoryContext context;
	GpuAggShared *shared;		/* NULL: not parallel */

	/* being written */
	bool		to_shared;		/* by the participant with this number */
	int			participant;
	int			depth;
	BufFile    *partitions[PARTITIONS];

	List	   *pending;		/* of DeferredFile *, yet to be read */

	/* being read */
	BufFile    *reading;
	int			shared_partition;	/* -1: reading is a file of our own */
	int			next_participant;
};

/*
 * Makes what holds the deferred rows of one run.  Its memory is in context, its files
 * are the resource owner's.  shared: participants read each other's rows; NULL: not.
 */
Deferred *
gpurhh_deferred_create(MemoryContext context, GpuAggShared *shared)
{
	Deferred   *deferred = MemoryContextAllocZero(context, sizeof(Deferred));

	deferred->context = context;
	deferred->shared = shared;
	deferred->to_shared = shared != NULL;
	deferred->participant = -1;
	deferred->shared_partition = -1;
	return deferred;
}

/* Closes all files and frees what was made. */
void
gpurhh_deferred_free(Deferred *deferred)
{
	ListCell   *lc;

	for (int p = 0; p < PARTITIONS; p++)
	{
		if (deferred->partitions[p] != NULL)
			BufFileClose(deferred->partitions[p]);
	}
	foreach(lc, deferred->pending)
		BufFileClose(((DeferredFile *) lfirst(lc))->file);
	if (deferred->reading != NULL)
		BufFileClose(deferred->reading);
	pfree(deferred);
}

/*
 * The partition for a hash, at a depth.  If all of the hash's bits have been used, all
 * rows go to the same partition.
 */
static int
partition_of(uint32 hash, int depth)
{
	int			shift = 32 - (depth + 1) * PARTITION_BITS;

	return shift < 0 ? 0 : (hash >> shift) & (PARTITIONS - 1);
}

/* Makes the file of a partition, for rows that are deferred now. */
static BufFile *
create_file(Deferred *deferred, int partition)
{
	MemoryContext old = MemoryContextSwitchTo(deferred->context);
	BufFile    *file;

	if (deferred->to_shared)
		file = gpurhh_parallel_create_deferred(deferred->shared,
											   &deferred->participant,
											   partition);
	else
	{
		PrepareTempTablespaces();
		file = BufFileCreateTemp(false);
	}
	MemoryContextSwitchTo(old);
	return file;
}

/* Defers a row of the child.  hash: that of its strings. */
void
gpurhh_deferred_save(Deferred *deferred, TupleTableSlot *slot, uint32 hash)
{
	BufFile   **file = &deferred->partitions[partition_of(hash, deferred->depth)];
	bool		should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);

	CHECK_FOR_INTERRUPTS();
	if (*file == NULL)
		*file = create_file(deferred, file - deferred->partitions);
	BufFileWrite(*file, tuple, tuple->t_len);
	if (should_free)
		pfree(tuple);
}

/* What is being read has no more rows.  From here on those that were saved can be read. */
void
gpurhh_deferred_close(Deferred *deferred)
{
	MemoryContext old = MemoryContextSwitchTo(deferred->context);
	uint32		end = 0;

	for (int p = 0; p < PARTITIONS; p++)
	{
		BufFile    *file = deferred->partitions[p];

		if (file == NULL)
			continue;
		deferred->partitions[p] = NULL;
		BufFileWrite(file, &end, sizeof(end));
		if (deferred->to_shared)
		{
			BufFileExportFileSet(file);
			BufFileClose(file);
		}
		else
		{
			DeferredFile *done = palloc(sizeof(DeferredFile));

			done->file = file;
			done->depth = deferred->depth + 1;
			if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
				ereport(ERROR,
						(errcode_for_file_access(),
						 errmsg("could not rewind temporary file of deferred rows")));
			deferred->pending = lappend(deferred->pending, done);
		}
	}
	deferred->to_shared = false;
	MemoryContextSwitchTo(old);
}

/* Goes on to the rows of the next pass; false: there are none. */
bool
gpurhh_deferred_next(Deferred *deferred)
{
	Assert(deferred->reading == NULL);
	if (deferred->pending != NIL)
	{
		DeferredFile *from = llast(deferred->pending);

		deferred->pending = list_truncate(deferred->pending,
										  list_length(deferred->pending) - 1);
		deferred->reading = from->file;
		deferred->depth = from->depth;
		deferred->shared_partition = -1;
		pfree(from);
		return true;
	}
	if (deferred->shared == NULL)
		return false;
	deferred->shared_partition =
		gpurhh_parallel_next_deferred(deferred->shared);
	deferred->next_participant = 0;
	deferred->depth = 1;
	return deferred->shared_partition >= 0;
}

/* The next file of a shared partition; false: there is none. */
static bool
open_shared(Deferred *deferred)
{
	MemoryContext old;

	if (deferred->shared_partition < 0)
		return false;
	old = MemoryContextSwitchTo(deferred->context);
	while (deferred->reading == NULL &&
		   gpurhh_parallel_open_deferred(deferred->shared,
										 deferred->next_participant,
										 deferred->shared_partition,
										 &deferred->reading))
		deferred->next_participant++;
	MemoryContextSwitchTo(old);
	return deferred->reading != NULL;
}

/* Stores the pass's next row in a slot for minimal tuples; false at the end. */
bool
gpurhh_deferred_read(Deferred *deferred, TupleTableSlot *slot)
{
	for (;;)
	{
		uint32		length;
		MinimalTuple tuple;

		CHECK_FOR_INTERRUPTS();
		if (deferred->reading == NULL && !open_shared(deferred))
			return false;
		gpurhh_buffile_read(deferred->reading, &length, sizeof(length));
		if (length == 0)
		{
			BufFileClose(deferred->reading);
			deferred->reading = NULL;
			if (deferred->shared_partition < 0)
				return false;
			continue;
		}
		tuple = palloc(length);
		tuple->t_len = length;
		gpurhh_buffile_read(deferred->reading, (char *) tuple + sizeof(length),
							length - sizeof(length));
		ExecStoreMinimalTuple(tuple, slot, true);
		return true;
	}
}
