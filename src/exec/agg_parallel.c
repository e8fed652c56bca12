/*-------------------------------------------------------------------------
 *
 * agg_parallel.c
 *		What the participants of a parallel GpuHashAgg share.  It says who reads the
 *		input, when the input is complete, and who returns groups; and it has files of
 *		rows that did not get to the device.
 *
 * The leader and its workers each run the node on their part of the input and
 * feed one map (see channel.c for the query that they share).
 *
 *		attach -> read the child to its end -> detach
 *
 * A partial child hands out its pieces as participants ask for them.  So once
 * one of them has come to the end and all that attached have detached, no piece
 * is left, and the input is complete; it is closed then, and a participant that
 * comes later reads nothing.  After that all may emit groups, and nobody waits
 * for anybody any more: one may be stuck in front of a full tuple queue.
 *
 * If nothing above the node reduces the number of rows on their way to the leader, the
 * leader returns all of them, and the workers only feed (leader_emits).
 *
 * If there is no device, or if the query stays in its session (load.c), one participant
 * reads the whole input into its host table (alone).  If the input turns out to be much
 * larger than the planner expected, that participant opens a query with the service for
 * itself, and the others do not know of it.  It may turn out later that one participant has
 * to read the whole input, because of joins (join_rounds.c, ROUNDS_ALONE): the first that may
 * return groups.
 *
 * A participant may get no block of the pool because all of them rest (channel.c,
 * LATE_MS).  It must not wait any longer then: the finisher, which is the participant
 * that takes the refused rows, may itself wait for it in the child plan.  So it writes
 * its batches to a file that all share, and the finisher reads them when the input is
 * closed.
 *
 * The shared state is in the parallel plan's DSM segment and goes with that; files go
 * with the segment too, or with the next run.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"

#include "compat.h"
#include "exec/parallel.h"

struct GpuAggShared
{
	/* written by the leader before workers look */
	bool		leader_emits;
	bool		leader_reads;	/* it takes part in the run */
	bool		alone;
	bool		stays;			/* alone, as the load is high */
	dsm_handle	segment;		/* that this lies in, for the workers */
	Size		bytes;			/* that this has there */
	ChannelAddress query;		/* unless alone */
	SharedBuilds builds;		/* of joins that the device may do */
	JoinRounds	rounds;			/* of reading the joins' sides */
	dsa_pointer dictionary;		/* of strings, or InvalidDsaPointer */
	SharedFileSet files;

	slock_t		mutex;			/* guards what follows */
	int			n_attached;
	bool		closed;
	bool		odd;			/* a participant has fed an odd key */
	bool		busy;			/* a worker stands for the session (load.c) */
	int			emitter_pid;	/* alone, also ROUNDS_ALONE: who reads and emits */
	int			n_late_files;
	int			n_choice_files; /* see unnumbered_strings.c */
	int			n_argument_files;	/* see odd_arguments.c */
	int			n_deferring;	/* participants with files of deferred rows */
	int			next_deferred;	/* partition, for whoever asks first */
	GpuNodeCounts counts;		/* sums over the participants */
	GpuNodeStats alone_stats;	/* alone: where its groups were made, if valid */
};

/*
 * How many bytes the shared state takes in the DSM segment, with what is behind it for build
 * sides that are read under the snapshot; joins NULL: there are none.
 */
Size
gpurhh_parallel_bytes(const JoinInput *joins, Snapshot snapshot)
{
	return MAXALIGN(sizeof(GpuAggShared)) + gpurhh_builds_bytes(joins, snapshot);
}

/* Leader: before the workers of the first run start.  bytes were estimated. */
void
gpurhh_parallel_init(GpuAggShared *shared, Size bytes, dsm_segment *segment)
{
	memset(shared, 0, sizeof(GpuAggShared));
	SpinLockInit(&shared->mutex);
	gpurhh_builds_init(&shared->builds);
	SharedFileSetInit(&shared->files, segment);
	shared->dictionary = InvalidDsaPointer;
	shared->segment = segment ? dsm_segment_handle(segment) : 0;
	shared->bytes = bytes;
}

/*
 * Leader: before the workers of each run start.  channel: the query that it
 * opened for the run, or NULL where there is no device, or the query stays.  joins: the
 * query was opened with these, and their tables are read under the snapshot; or NULL.
 */
void
gpurhh_parallel_start(GpuAggShared *shared, bool leader_emits,
					  Channel *channel, bool stays, const JoinInput *joins,
					  Snapshot snapshot, dsa_pointer dictionary)
{
	if (shared->n_late_files > 0 || shared->n_choice_files > 0 ||
		shared->n_argument_files > 0 || shared->n_deferring > 0)
		SharedFileSetDeleteAll(&shared->files);
	shared->leader_emits = leader_emits;
	shared->leader_reads = parallel_leader_participation;
	shared->busy = false;
	shared->alone = channel == NULL;
	shared->stays = stays;
	if (channel != NULL)
		shared->query = gpurhh_channel_address(channel);
	gpurhh_builds_start(&shared->builds, (char *) shared + MAXALIGN(sizeof(GpuAggShared)),
						shared->bytes - MAXALIGN(sizeof(GpuAggShared)), joins, snapshot);
	gpurhh_rounds_init(&shared->rounds);
	shared->dictionary = dictionary;
	shared->n_attached = 0;
	shared->closed = false;
	shared->odd = false;
	shared->emitter_pid = 0;
	shared->n_late_files = 0;
	shared->n_choice_files = 0;
	shared->n_argument_files = 0;
	shared->n_deferring = 0;
	shared->next_deferred = 0;
	shared->alone_stats.valid = false;
}

/* The build sides of joins. */
SharedBuilds *
gpurhh_parallel_builds(GpuAggShared *shared)
{
	return &shared->builds;
}

/* The rounds in which the joins' sides are read. */
JoinRounds *
gpurhh_parallel_rounds(GpuAggShared *shared)
{
	return &shared->rounds;
}

/*
 * ROUNDS_ALONE: is this the participant that reads the input?  It is the first that asks and may
 * return groups.
 */
bool
gpurhh_parallel_reads_alone(GpuAggShared *shared)
{
	bool		alone;

	SpinLockAcquire(&shared->mutex);
	if (shared->emitter_pid == 0 && gpurhh_parallel_emits_later(shared))
		shared->emitter_pid = MyProcPid;
	alone = shared->emitter_pid == MyProcPid;
	SpinLockRelease(&shared->mutex);
	return alone;
}

/*
 * Is it another participant that reads the input and returns its groups?  To be asked once this
 * one has read, or is not to read any more.
 */
bool
gpurhh_parallel_left_to_one(GpuAggShared *shared)
{
	return shared->rounds.state == ROUNDS_ALONE && shared->emitter_pid != MyProcPid;
}

/* May there be participants but this one? */
bool
gpurhh_parallel_has_others(GpuAggShared *shared)
{
	return shared->segment != 0;
}

/*
 * Does the participant that reads alone do so because the load is high?  Then it goes on
 * with the service if the input turns out to be large.
 */
bool
gpurhh_parallel_stays(GpuAggShared *shared)
{
	return shared->stays;
}

/*
 * Is this the one participant that counts for the session while the input is read?  It
 * is the leader, and if that takes no part, the first worker that asks.
 */
bool
gpurhh_parallel_stands_for_session(GpuAggShared *shared)
{
	bool		first;

	if (shared->leader_reads || !IsParallelWorker())
		return !IsParallelWorker();
	SpinLockAcquire(&shared->mutex);
	first = !shared->busy;
	shared->busy = true;
	SpinLockRelease(&shared->mutex);
	return first;
}

/* The run's dictionary of strings; InvalidDsaPointer: it has none. */
dsa_pointer
gpurhh_parallel_dictionary(GpuAggShared *shared)
{
	return shared->dictionary;
}

/* Worker: joins the leader's query; NULL: there is none. */
Channel *
gpurhh_parallel_join(GpuAggShared *shared, MemoryContext context)
{
	if (shared->alone)
		return NULL;
	return gpurhh_channel_join(&shared->query, !shared->leader_emits, context);
}

/*
 * A participant is about to read its part of the input.  False: it must not, because
 * the input is closed, or because another participant reads all of it.
 */
bool
gpurhh_parallel_attach(GpuAggShared *shared)
{
	bool		attached = false;

	if (shared->alone && !gpurhh_parallel_emits_later(shared))
		return false;

	SpinLockAcquire(&shared->mutex);
	if (!shared->closed)
	{
		attached = true;
		shared->n_attached++;
		if (shared->alone)
		{
			shared->closed = true;
			shared->emitter_pid = MyProcPid;
		}
	}
	SpinLockRelease(&shared->mutex);
	return attached;
}

/*
 * A participant has read its part, and adds what it counted to the sums.  True: it was
 * the last one, and the input is closed now.  But one that only feeds (leader_emits) may leave the
 * input to a leader that has not come yet.
 */
bool
gpurhh_parallel_detach(GpuAggShared *shared, GpuNodeCounts *counts)
{
	bool		last;

	SpinLockAcquire(&shared->mutex);
	last = --shared->n_attached == 0 &&
		(shared->rounds.state != ROUNDS_ALONE || shared->emitter_pid != 0);
	if (last && !shared->closed)
	{
		shared->closed = true;
		counts->runs++;
	}
	gpurhh_add_counts(&shared->counts, counts);
	SpinLockRelease(&shared->mutex);
	return last;
}

/* A participant has fed an odd key (dictionary.c); to be called before it detaches. */
void
gpurhh_parallel_note_odd(GpuAggShared *shared)
{
	SpinLockAcquire(&shared->mutex);
	shared->odd = true;
	SpinLockRelease(&shared->mutex);
}

/* Has any participant fed an odd key?  To be asked once the input is closed. */
bool
gpurhh_parallel_any_odd(GpuAggShared *shared)
{
	bool		odd;

	SpinLockAcquire(&shared->mutex);
	odd = shared->odd;
	SpinLockRelease(&shared->mutex);
	return odd;
}

/* May this participant have to return groups, once it has fed its part? */
bool
gpurhh_parallel_emits_later(GpuAggShared *shared)
{
	return !(shared->leader_emits && IsParallelWorker());
}

/*
 * Does this participant return groups?  To be asked when the input is closed and the
 * device's map can be read.  one_emitter: only one participant may, and then returns
 * all of them.
 */
bool
gpurhh_parallel_may_emit(GpuAggShared *shared, Channel *channel,
						 bool one_emitter)
{
	if (!gpurhh_parallel_emits_later(shared))
		return false;
	if (shared->alone || shared->rounds.state == ROUNDS_ALONE)
		return shared->emitter_pid == MyProcPid;
	return gpurhh_channel_may_emit(channel,
								   one_emitter || shared->n_late_files > 0);
}

/* A participant has emitted its last group. */
void
gpurhh_parallel_add_counts(GpuAggShared *shared, GpuNodeCounts *counts)
{
	SpinLockAcquire(&shared->mutex);
	gpurhh_add_counts(&shared->counts, counts);
	SpinLockRelease(&shared->mutex);
}

/*
 * If this participant has read the input alone, copies for the leader where the groups
 * were made.  Does nothing in any other participant.
 */
void
gpurhh_parallel_note_alone(GpuAggShared *shared, const GpuNodeStats *stats)
{
	SpinLockAcquire(&shared->mutex);
	if (shared->emitter_pid == MyProcPid && stats->valid)
		shared->alone_stats = *stats;
	SpinLockRelease(&shared->mutex);
}

/*
 * Leader: adds to *stats what gpurhh_parallel_note_alone() has copied.  False: no
 * participant has.
 */
bool
gpurhh_parallel_alone_stats(GpuAggShared *shared, GpuNodeStats *stats)
{
	GpuNodeStats alone;

	SpinLockAcquire(&shared->mutex);
	alone = shared->alone_stats;
	SpinLockRelease(&shared->mutex);
	if (!alone.valid)
		return false;
	stats->valid = true;
	/* a worker that has not asked for a device does not know why */
	if (alone.levels[0].device[0] == '\0')
	{
		memcpy(alone.levels[0].device, stats->levels[0].device,
			   GPURHH_DEVICE_NAME_LEN);
		memcpy(alone.levels[0].declined, stats->levels[0].declined,
			   GPURHH_MESSAGE_LEN);
	}
	memcpy(stats->levels, alone.levels, sizeof(stats->levels));
	return true;
}

/* The sums of what all participants have counted so far. */
void
gpurhh_parallel_counts(GpuAggShared *shared, GpuNodeCounts *counts)
{
	SpinLockAcquire(&shared->mutex);
	*counts = shared->counts;
	SpinLockRelease(&shared->mutex);
}

/* ---------- files ---------- */

/* To be called before this participant makes its first file of a kind. */
static void
attach_files(GpuAggShared *shared)
{
	/* so that the files outlive a leader that goes first */
	if (IsParallelWorker())
		SharedFileSetAttach(&shared->files,
							dsm_find_mapping(shared->segment));
}

/* Makes a file of a kind, of which there are *n_files; that grows by one. */
static BufFile *
create_file(GpuAggShared *shared, const char *kind, int *n_files)
{
	char		name[32];
	int			number;

	attach_files(shared);
	SpinLockAcquire(&shared->mutex);
	number = (*n_files)++;
	SpinLockRelease(&shared->mutex);
	snprintf(name, sizeof(name), "%s.%d", kind, number);
	return BufFileCreateFileSet(&shared->files.fs, name);
}

/* Opens a participant's file to read it. */
static BufFile *
open_file(GpuAggShared *shared, const char *kind, int number)
{
	char		name[32];

	snprintf(name, sizeof(name), "%s.%d", kind, number);
	return BufFileOpenFileSet(&shared->files.fs, name, O_RDONLY, false);
}

/*
 * Writes a mark to *file that says that no more comes, and closes it, so that others can
 * read it.  *file becomes NULL.  Does nothing if it is NULL.
 */
void
gpurhh_parallel_close_file(BufFile **file, void *end, Size size)
{
	if (*file == NULL)
		return;
	BufFileWrite(*file, end, size);
	BufFileExportFileSet(*file);
	BufFileClose(*file);
	*file = NULL;
}

/* Is *n, a counter of the shared state, greater than 0? */
static bool
any_of(GpuAggShared *shared, const int *n)
{
	bool		any;

	SpinLockAcquire(&shared->mutex);
	any = *n > 0;
	SpinLockRelease(&shared->mutex);
	return any;
}

/* ---------- late rows ---------- */

/*
 * Writes a batch to this participant's file of late rows, *file, which is made if it is
 * NULL.  The participant has to call gpurhh_parallel_close_late() before it detaches.
 */
void
gpurhh_parallel_save_late(GpuAggShared *shared, BufFile **file,
						  const rhh_batch *batch)
{
	if (*file == NULL)
		*file = create_file(shared, "late", &shared->n_late_files);
	BufFileWrite(*file, (void *) batch, sizeof(rhh_batch));
	BufFileWrite(*file, batch->base, batch->used_bytes);
}

/* Ends the file of late rows.  *file becomes NULL. */
void
gpurhh_parallel_close_late(BufFile **file)
{
	rhh_batch	end = {0};

	gpurhh_parallel_close_file(file, &end, sizeof(end));
}

/*
 * Calls add for each batch that participants have saved; its data is valid during the
 * call.  No batch is longer than block_bytes.  Only when the input is closed.
 */
void
gpurhh_parallel_read_late(GpuAggShared *shared, Size block_bytes,
						  void (*add)(void *arg, const rhh_batch *batch),
						  void *arg)
{
	char	   *base;

	if (shared->n_late_files == 0)
		return;
	base = palloc(block_bytes);
	for (int i = 0; i < shared->n_late_files; i++)
	{
		BufFile    *file = open_file(shared, "late", i);
		rhh_batch	batch;

		for (;;)
		{
			gpurhh_buffile_read(file, &batch, sizeof(batch));
			if (batch.n_rows == 0)
				break;
			batch.base = (uint8_t *) base;
			gpurhh_buffile_read(file, base, batch.used_bytes);
			add(arg, &batch);
		}
		BufFileClose(file);
	}
	pfree(base);
}

/* ---------- strings without a number (unnumbered_strings.c) ---------- */

/* A participant's file; to be exported before the participant detaches. */
BufFile *
gpurhh_parallel_create_choices(GpuAggShared *shared)
{
	return create_file(shared, "choices", &shared->n_choice_files);
}

/* Has any participant made one?  Once the input is closed. */
bool
gpurhh_parallel_any_choices(GpuAggShared *shared)
{
	return any_of(shared, &shared->n_choice_files);
}

/* The file with a number; NULL: there is none. */
BufFile *
gpurhh_parallel_open_choices(GpuAggShared *shared, int number)
{
	if (number >= shared->n_choice_files)
		return NULL;
	return open_file(shared, "choices", number);
}

/* ---------- odd values ---------- */

/* A participant's file; to be exported before the participant detaches. */
BufFile *
gpurhh_parallel_create_odd_arguments(GpuAggShared *shared)
{
	return create_file(shared, "arguments", &shared->n_argument_files);
}

/* Has any participant made one?  Once the input is closed. */
bool
gpurhh_parallel_any_odd_arguments(GpuAggShared *shared)
{
	return any_of(shared, &shared->n_argument_files);
}

/* The file with a number, also where others read it; NULL: there is none. */
BufFile *
gpurhh_parallel_open_odd_arguments(GpuAggShared *shared, int number)
{
	if (number >= shared->n_argument_files)
		return NULL;
	return open_file(shared, "arguments", number);
}

/* ---------- deferred rows ---------- */

static void
deferred_file_name(char *name, Size len, int participant, int partition)
{
	snprintf(name, len, "deferred.%d.%d", participant, partition);
}

/*
 * Makes a participant's file of a partition (see deferred_rows.c); it is to be
 * exported before the participant detaches.  *participant: its number, which it
 * gets with its first file; before, -1.
 */
BufFile *
gpurhh_parallel_create_deferred(GpuAggShared *shared, int *participant,
								int partition)
{
	char		name[32];

	if (*participant < 0)
	{
		attach_files(shared);
		SpinLockAcquire(&shared->mutex);
		*participant = shared->n_deferring++;
		SpinLockRelease(&shared->mutex);
	}
	deferred_file_name(name, sizeof(name), *participant, partition);
	return BufFileCreateFileSet(&shared->files.fs, name);
}

/* Has any participant deferred rows?  Once the input is closed. */
bool
gpurhh_parallel_any_deferred(GpuAggShared *shared)
{
	return any_of(shared, &shared->n_deferring);
}

/* A partition that no other participant reads; -1: there is none left. */
int
gpurhh_parallel_next_deferred(GpuAggShared *shared)
{
	int			partition = -1;

	SpinLockAcquire(&shared->mutex);
	if (shared->n_deferring > 0 &&
		shared->next_deferred < GPURHH_DEFER_PARTITIONS)
		partition = shared->next_deferred++;
	SpinLockRelease(&shared->mutex);
	return partition;
}

/*
 * Opens a participant's file of a partition; *file is NULL where it has none.
 * False: there is no such participant.
 */
bool
gpurhh_parallel_open_deferred(GpuAggShared *shared, int participant,
							  int partition, BufFile **file)
{
	char		name[32];

	if (participant >= shared->n_deferring)
		return false;
	deferred_file_name(name, sizeof(name), participant, partition);
	*file = BufFileOpenFileSet(&shared->files.fs, name, O_RDONLY, true);
	return true;
}
