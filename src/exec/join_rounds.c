/*-------------------------------------------------------------------------
 *
 * join_rounds.c
 *		Reads the sides of joins as often as it takes, by all participants together.
 *
 * GpuHashAgg returns nothing before its input is complete, so it can begin anew at any time.
 * GpuHashJoin returns rows in between; see the end of this comment.  Each time that the sides are
 * read is a round, in which the participants (one, or those of a parallel plan) read the build sides,
 * or one of them, and then the probe side:
 *
 *		enter -> { read -> arrive }* -> what the last state says
 *
 * A participant that has read waits until all others that take part have.  The last one to arrive is
 * the turner: nobody else reads then, and nobody feeds.  It looks at what came of the round, prepares
 * the next one, and says that it begins; or it says how the rounds end (RoundsState):
 *
 *		READING -> TURNING -> READING ...
 *							-> DONE, CORE or ALONE
 *
 * Who comes in READING takes part in that round, and the turn waits for it.  Who comes in TURNING
 * waits for the next round, and who comes later does what the last state says.  So it does not matter
 * how many workers there are, whether they start, and when.  Most joins need one round only and no
 * turn, and nobody waits then: the scans have given out all they have.
 *
 * Nobody leaves a round but by an error.  An error of any participant ends the query: the leader
 * raises it as soon as it looks for interrupts, which it does while it waits, and ends its workers.
 * What a participant waits on is the condition variable of the query that all feed, since one of them
 * may have to take batches that the device has given back: the turner waits until there are none.
 *
 * Passes.  A build side that has no room in the device's memory comes in parts: it is fed to a map
 * that keeps the rows of one part, then the whole probe side is read, and so on with the next part.
 * Both sides must return the same rows each time (repeatable.c), over all participants together.  Rows
 * of the probe side that are left over are kept in the first pass, because core joins them with the
 * whole build side.  If a part has no room, parts are made smaller.
 *
 * Unmatched rows of build sides come when all participants have read the probe side.  The turner asks
 * for them.
 *
 * What a match is may be an error for some rows (may_be_bad of JoinInput).  Core raises it, or, of a
 * semijoin or an antijoin, does not, if it finds a match first.  So if the device has met such a pair of
 * rows in any round, core's joins are asked for everything.
 *
 * If the device cannot do it, that may be known before the first row of the probe side is fed, and
 * then each participant asks core's joins (CORE).  But core would return all rows of a build side that
 * one participant's part of the probe side does not match; and once rows have been fed, what the
 * device has is of no use.  Then one participant asks core's joins for all rows, and groups them by
 * itself, and the others return nothing (ALONE).  The scans that are shared begin again before that.
 *
 * GpuHashJoin asks for the batches of the probe side one by one, and has made rows of all that comes
 * out of a pass before it asks for the next one (gpurhh_join_next_pass()).  It is always its only
 * participant: in a parallel plan each has a query of its own, and no one can read its part of the probe
 * side again, so there is one pass.  Rows that have been returned cannot be forgotten.  So if there
 * cannot be another pass, core joins the rest: the rows of the parts that have not been joined
 * (part_filter.c).  As long as the probe side has not been read, since the parts so far have no row to
 * join, core joins all of it.  And a side that has other rows than before is an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"

#include "exec/join_input.h"

/* Before each run, when no participant looks at them. */
void
gpurhh_rounds_init(JoinRounds *rounds)
{
	memset(rounds, 0, sizeof(JoinRounds));
	SpinLockInit(&rounds->mutex);
	rounds->state = ROUNDS_READING;
	rounds->parts.join = -1;
}

/* ---------- who is where ---------- */

/* Takes part in the round that goes on, if there is one; else returns the state. */
static RoundsState
try_enter(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;
	RoundsState state;

	SpinLockAcquire(&rounds->mutex);
	state = rounds->state;
	if (state == ROUNDS_READING)
	{
		rounds->n_here++;
		reader->round = rounds->round;
	}
	SpinLockRelease(&rounds->mutex);
	return state;
}

/* Has the round ended that this participant is in, or before which it has come? */
static bool
has_turned(void *arg)
{
	JoinReader *reader = arg;
	JoinRounds *rounds = reader->rounds;
	bool		turned;

	SpinLockAcquire(&rounds->mutex);
	turned = rounds->state != ROUNDS_TURNING &&
		(rounds->state != ROUNDS_READING || !reader->here || rounds->round != reader->round);
	SpinLockRelease(&rounds->mutex);
	return turned;
}

static void
wait_for_turn(JoinReader *reader)
{
	while (!gpurhh_channel_wait_told(reader->channel, has_turned, reader))
		reader->take_returned(reader->arg);
}

/* Takes part in this round or in the next one; false: there is none. */
static bool
enter(JoinReader *reader)
{
	RoundsState state;

	while ((state = try_enter(reader)) == ROUNDS_TURNING)
		wait_for_turn(reader);
	reader->here = state == ROUNDS_READING;
	return reader->here;
}

/* The participant has read.  Returns whether it is the turner. */
static bool
arrive(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;
	bool		last;

	SpinLockAcquire(&rounds->mutex);
	Assert(rounds->state == ROUNDS_READING && rounds->round == reader->round);
	last = ++rounds->n_arrived == rounds->n_here;
	if (last)
		rounds->state = ROUNDS_TURNING;
	SpinLockRelease(&rounds->mutex);
	return last;
}

/* The participant has read, and the rounds do not need it any more. */
static void
leave(JoinReader *reader)
{
	SpinLockAcquire(&reader->rounds->mutex);
	reader->rounds->n_here--;
	SpinLockRelease(&reader->rounds->mutex);
	reader->here = false;
}

/* The turner: this is the state now. */
static void
set_state(JoinReader *reader, RoundsState state)
{
	JoinRounds *rounds = reader->rounds;

	SpinLockAcquire(&rounds->mutex);
	if (state == ROUNDS_READING)
	{
		rounds->round++;
		rounds->n_arrived = 0;
		rounds->probed = false;
		rounds->build_rows = rounds->probe_rows = 0;
		rounds->left_rows = rounds->left_hash = 0;
	}
	rounds->state = state;
	SpinLockRelease(&rounds->mutex);
	gpurhh_channel_tell(reader->channel);
}

/* ---------- reading ---------- */

/*
 * The participant takes part in a round with another part than before: leaves the query that had
 * what there was of the build side.  That of the whole side stays open in a parallel plan, for
 * workers that come later; the service has freed its map.
 */
static void
leave_part(JoinReader *reader)
{
	JoinInput  *input = reader->input;
	Channel   **build = &input->builds[reader->rounds->parts.join];

	if (reader->parallel && !reader->has_part)
		input->whole = *build;
	else
		gpurhh_channel_close(*build);
	*build = NULL;
	reader->has_part = false;
}

/* Reads the build side that comes in parts, or this participant's part of it. */
static void
read_part(JoinReader *reader)
{
	JoinInput  *input = reader->input;
	JoinRounds *rounds = reader->rounds;
	int			j = rounds->parts.join;
	ParallelTableScanDesc scan = NULL;
	uint64		n_rows;

	input->parts = rounds->parts;
	/* those of a parallel plan have been merged, and get no more keys */
	if (reader->parallel)
		memset(reader->filters, 0, sizeof(reader->filters));
	/* the turner has opened it */
	if (reader->part_round != reader->round)
	{
		leave_part(reader);
		input->builds[j] = gpurhh_channel_join(&rounds->part, false, reader->part_context);
		reader->part_round = reader->round;
		reader->has_part = true;
	}
	if (reader->begin_build != NULL && !reader->begin_build(reader->arg, j, &scan))
		return;
	ExecReScan(input->joins[j].build.child);
	n_rows = gpurhh_join_read_build(reader, j, scan);
	SpinLockAcquire(&rounds->mutex);
	rounds->build_rows += n_rows;
	SpinLockRelease(&rounds->mutex);
	if (reader->end_build == NULL || reader->end_build(reader->arg, j))
		gpurhh_channel_end_input(input->builds[j]);
}

/* Somebody, who has said why, cannot go on. */
static bool
has_given_up(JoinRounds *rounds)
{
	return *(volatile bool *) &rounds->gave_up;
}

/* The probe side is to be read from the beginning. */
static void
begin_probe(JoinReader *reader)
{
	gpurhh_join_rewind_probe(reader);
	reader->left_rows = reader->left_hash = reader->dropped_rows = 0;
}

/* This participant has read it, or its part of it. */
static void
end_probe(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;
	bool		skipped;
	uint64		n_rows = gpurhh_join_probed(reader, &skipped);

	SpinLockAcquire(&rounds->mutex);
	rounds->probed |= !skipped;
	rounds->probe_rows += n_rows;
	rounds->left_rows += reader->left_rows;
	rounds->left_hash += reader->left_hash;
	if (reader->gave_up && !rounds->gave_up)
	{
		strlcpy(rounds->why, reader->why, sizeof(rounds->why));
		rounds->gave_up = true;
	}
	SpinLockRelease(&rounds->mutex);
}

/* Has a condition been bad for a pair of rows, of those that are joined by now? */
static bool
is_bad(JoinReader *reader)
{
	rhh_map_stats stats;
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		why[GPURHH_MESSAGE_LEN];

	if (!reader->input->may_be_bad)
		return false;
	if (gpurhh_channel_stats(reader->channel, &stats, device, why) && stats.bad_candidates == 0)
		return false;
	strlcpy(reader->why, "a condition of a join may be an error for some rows", sizeof(reader->why));
	return true;
}

/* Has the device join the rows of the probe side, or of this participant's part of it. */
static void
read_probe(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;

	begin_probe(reader);
	SpinLockAcquire(&rounds->mutex);
	rounds->any_probed = true;
	SpinLockRelease(&rounds->mutex);
	while (gpurhh_join_probe(reader))
	{
		/* core may raise the error at once, so there is no reason to read on */
		reader->gave_up |= is_bad(reader);
		if (reader->gave_up || has_given_up(rounds))
			gpurhh_join_stop_probe(reader);
	}
	end_probe(reader);
}

/* Is there something to be done after this round, so that participants wait for each other? */
static bool
needs_turn(const JoinReader *reader)
{
	return !reader->on_device || reader->rounds->parts.join >= 0 || reader->input->may_be_bad ||
		rhh_last_unmatched(&reader->input->join_spec) > 0;
}

/* ---------- turning ---------- */

/*
 * May the build side of join j, which has no room, come in parts?  If not, reader->why has the
 * reason that the service has given.
 */
static bool
may_come_in_parts(const JoinReader *reader, int j)
{
	const JoinInput *input = reader->input;

	if (reader->reads_once)
		return false;
	/* which rows have no match is known after all passes, so that a later join has no say in it */
	for (int other = 0; other < input->n_joins; other++)
	{
		if (other != j && rhh_returns_unmatched(input->join_spec.joins[other].kind))
			return false;
	}
	return gpurhh_is_repeatable(input->joins[j].build.child) &&
		gpurhh_is_repeatable(input->probe.child);
}

/*
 * In how many parts a build side is tried first: so many that each has room, by the planner's
 * estimate and by the bytes that each of the rows has taken which have had room.
 */
static uint32
first_parts(const JoinInput *input, int j)
{
	double		rows = input->joins[j].build.child->plan->plan_rows;
	rhh_map_stats had;
	char		device[GPURHH_DEVICE_NAME_LEN];
	char		why[GPURHH_MESSAGE_LEN];
	double		limit_bytes = input->spec->memory_limit_bytes;
	uint32		n = 2;

	if (!gpurhh_channel_stats(input->builds[j], &had, device, why) || had.rows == 0)
		return n;
	/* without a limit of its own it has had all memory that there was */
	if (limit_bytes == 0)
		limit_bytes = had.bytes;
	while (n < RHH_MAX_PARTS && rows / n * had.bytes / had.rows > limit_bytes)
		n *= 2;
	return n;
}

/* Prepares a round with the next part.  False: it cannot be, and reader->why says why. */
static bool
open_part(JoinReader *reader)
{
	JoinInput  *input = reader->input;
	JoinRounds *rounds = reader->rounds;
	JoinParts  *parts = &rounds->parts;
	int			j = parts->join;
	const char *why;

	for (parts->part = 0; (parts->done >> parts->part & 1) != 0;)
		parts->part++;
	Assert(parts->part < parts->n_parts);
	input->parts = *parts;
	gpurhh_channel_leave_build(reader->channel, j);
	leave_part(reader);
	if (!gpurhh_join_open_build(input, j, gpurhh_channel_area(reader->channel),
								reader->part_context, &why))
	{
		strlcpy(reader->why, why, sizeof(reader->why));
		return false;
	}
	reader->part_round = reader->round + 1;
	reader->has_part = true;
	rounds->part = gpurhh_channel_address(input->builds[j]);
	gpurhh_channel_join_again(reader->channel, j, input->builds[j]);
	if (reader->restart_build != NULL)
		reader->restart_build(reader->arg, j);
	if (reader->parallel && rounds->any_probed)
		gpurhh_begin_again(input->probe.child);
	return true;
}

/* The device does not do the joins as they are.  Prepares a round in which it may; false: none. */
static bool
make_room(JoinReader *reader)
{
	JoinParts  *parts = &reader->rounds->parts;

	if (reader->no_room < 0)
		return false;
	if (parts->join < 0)
	{
		if (!may_come_in_parts(reader, reader->no_room))
			return false;
		parts->join = reader->no_room;
		parts->n_parts = first_parts(reader->input, parts->join);
	}
	else if (parts->join != reader->no_room)
		return false;
	else if (parts->n_parts == RHH_MAX_PARTS)
	{
		strlcpy(reader->why, "the device had no room for a part of a build side",
				sizeof(reader->why));
		return false;
	}
	else
		parts->n_parts *= 2;
	return open_part(reader);
}

/* Has every part been joined? */
static bool
is_last_part(const JoinParts *parts)
{
	StaticAssertStmt(RHH_MAX_PARTS == 64, "there must be a bit for each part");
	return parts->join < 0 || parts->done == PG_UINT64_MAX;
}

/* Had the build side that comes in parts the rows that it had in the passes before? */
static bool
is_same_build(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;
	JoinParts  *parts = &rounds->parts;

	if (parts->join < 0)
		return true;
	if (parts->build_rows > 0 && parts->build_rows != rounds->build_rows)
	{
		strlcpy(reader->why, "a build side had other rows when it was read again",
				sizeof(reader->why));
		return false;
	}
	parts->build_rows = rounds->build_rows;
	return true;
}

/* The same of the probe side, which need not have been read at all, if nothing came out. */
static bool
is_same_probe(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;
	JoinParts  *parts = &rounds->parts;

	if (parts->join < 0 || !rounds->probed)
		return true;
	if (parts->probed &&
		(parts->probe_rows != rounds->probe_rows || parts->left_rows != rounds->left_rows ||
		 parts->left_hash != rounds->left_hash))
	{
		strlcpy(reader->why, "the probe side had other rows when it was read again",
				sizeof(reader->why));
		return false;
	}
	parts->probed = true;
	parts->probe_rows = rounds->probe_rows;
	parts->left_rows = rounds->left_rows;
	parts->left_hash = rounds->left_hash;
	return true;
}

/* Waits until the device has nothing of what was fed, and nothing of that has to be taken. */
static void
wait_for_batches(JoinReader *reader)
{
	while (gpurhh_channel_wait_returned(reader->channel))
		reader->take_returned(reader->arg);
}

/* The part that is there has been joined. */
static void
note_done(JoinReader *reader)
{
	JoinParts  *parts = &reader->rounds->parts;

	for (uint32 part = parts->part; part < RHH_MAX_PARTS; part += parts->n_parts)
		parts->done |= UINT64CONST(1) << part;
	parts->n_passes++;
	gpurhh_join_add_build(reader->input, parts->join, &parts->sums);
}

/*
 * All participants have fed all that they have of the probe side.  False: something is not as it
 * has to be, and reader->why says what.
 */
static bool
end_pass(JoinReader *reader)
{
	if (reader->rounds->gave_up)
	{
		strlcpy(reader->why, reader->rounds->why, sizeof(reader->why));
		return false;
	}
	if (!is_same_build(reader) || !is_same_probe(reader))
		return false;
	reader->unmatched = 0;
	while (gpurhh_join_unmatched(reader))
		;
	wait_for_batches(reader);
	if (is_bad(reader))
		return false;
	if (reader->rounds->parts.join >= 0)
		note_done(reader);
	return true;
}

/* The device does not do it.  Returns who does. */
static RoundsState
give_up(JoinReader *reader)
{
	JoinInput  *input = reader->input;
	JoinRounds *rounds = reader->rounds;
	int			no_room;
	char		why[GPURHH_MESSAGE_LEN];	/* the same, or less */

	strlcpy(rounds->why, reader->why, sizeof(rounds->why));
	if (!rounds->any_probed &&
		!(reader->parallel && rhh_last_unmatched(&input->join_spec) > 0))
	{
		/* the query takes rows of the output then */
		gpurhh_channel_leave_joins(reader->channel);
		if (gpurhh_channel_wait_joins(reader->channel, why, &no_room))
			elog(ERROR, "the device does joins that it was told not to do");
		return ROUNDS_CORE;
	}
	if (reader->parallel && rounds->any_probed)
		gpurhh_begin_again(input->probe.child);
	return ROUNDS_ALONE;
}

/* What comes after this round?  Prepares it. */
static RoundsState
turn(JoinReader *reader)
{
	if (reader->on_device)
	{
		wait_for_batches(reader);
		if (!end_pass(reader))
			return give_up(reader);
		if (is_last_part(&reader->rounds->parts))
			return ROUNDS_DONE;
		return open_part(reader) ? ROUNDS_READING : give_up(reader);
	}
	return make_room(reader) ? ROUNDS_READING : give_up(reader);
}

/* ---------- rounds ---------- */

/* Takes part in a round.  False: the participant is not to take part in any other one. */
static bool
take_part(JoinReader *reader)
{
	reader->round = reader->rounds->round;
	if (reader->round == 0)
		gpurhh_join_read_builds(reader);
	else
		read_part(reader);
	reader->on_device = gpurhh_channel_wait_joins(reader->channel, reader->why,
												  &reader->no_room);
	if (reader->on_device)
		read_probe(reader);
	if (!needs_turn(reader))
	{
		leave(reader);
		return false;
	}
	if (arrive(reader))
		set_state(reader, turn(reader));
	else
		wait_for_turn(reader);
	return reader->rounds->state == ROUNDS_READING;
}

/* Core's joins are to be asked for rows, of all that this participant has read. */
static void
rewind_sides(JoinReader *reader)
{
	gpurhh_join_rewind_builds(reader->input);
	gpurhh_join_rewind_probe(reader);
}

/*
 * Has the device do the joins, and reads this participant's part of their sides.  Returns
 *
 *		ROUNDS_DONE		reader->left_over has the rows that core has to join, which the caller does
 *						(gpurhh_left_over_next());
 *		ROUNDS_CORE		the plan can be asked for rows, of this participant's part of the probe
 *						side;
 *		ROUNDS_ALONE	the plan can be asked for all rows, if what the device has is forgotten:
 *						if this is the participant that reads alone, else another one does it.
 *
 * In the last two cases reader->why says why.
 */
RoundsState
gpurhh_join_read(JoinReader *reader)
{
	JoinRounds *rounds = reader->rounds;
	RoundsState state;

	gpurhh_join_begin(reader);
	if (enter(reader))
	{
		while (take_part(reader))
			;
	}
	/* if no turn was needed, the state stays what it is */
	state = rounds->state == ROUNDS_READING ? ROUNDS_DONE : rounds->state;
	reader->input->parts = rounds->parts;
	if (state != ROUNDS_DONE)
	{
		strlcpy(reader->why, rounds->why, sizeof(reader->why));
		if (reader->left_over != NULL)
			gpurhh_left_over_free(reader->left_over);
		reader->left_over = NULL;
	}
	if (state == ROUNDS_CORE ||
		(state == ROUNDS_ALONE &&
		 (reader->reads_alone == NULL || reader->reads_alone(reader->arg))))
		rewind_sides(reader);
	else if (reader->left_over != NULL)
	{
		gpurhh_join_settle(reader);
		gpurhh_join_rewind_builds(reader->input);
	}
	return state;
}

/* ---------- a node that returns rows ---------- */

/*
 * The build sides have been read.  If one has no room, reads parts of it until one has.  Returns
 * false, with the reason in reader->why, if the device does not do the joins.
 */
static bool
find_room(JoinReader *reader)
{
	while (!gpurhh_channel_wait_joins(reader->channel, reader->why, &reader->no_room))
	{
		if (!make_room(reader))
			return false;
		set_state(reader, ROUNDS_READING);
		reader->round = reader->rounds->round;
		read_part(reader);
	}
	return true;
}

/*
 * Reads the build sides of the joins.  Returns false, with the reason in reader->why, if the device
 * does not do the joins.  Then the plan can be asked for rows.
 */
bool
gpurhh_join_build(JoinReader *reader)
{
	const char *why;

	gpurhh_join_begin(reader);
	(void) enter(reader);
	gpurhh_join_read_builds(reader);
	if (reader->channel == NULL && !reader->open_query(reader->arg, &why))
		strlcpy(reader->why, why, sizeof(reader->why));
	else
	{
		if (find_room(reader))
		{
			(void) is_same_build(reader);
			reader->input->parts = reader->rounds->parts;
			reader->input->parts.joining = true;
			return true;
		}
		(void) give_up(reader);
	}
	gpurhh_join_rewind_builds(reader->input);
	return false;
}

/* A side has other rows than before.  Rows have been returned, and others would not fit them. */
void
gpurhh_join_raise_other_rows(const char *side)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_EXCEPTION),
			 errmsg("%s of a join had other rows when it was read again", side),
			 errdetail("The sides are read several times, because a build side has no room in the device's memory."),
			 errhint("A function may be declared as IMMUTABLE or STABLE that is not. Otherwise set enable_gpu_hashjoin to off.")));
}

/* Reads the next part of the build side.  False, with the reason in reader->why: it has no room. */
static bool
read_next_part(JoinReader *reader)
{
	if (!open_part(reader))
		return false;
	set_state(reader, ROUNDS_READING);
	reader->round = reader->rounds->round;
	read_part(reader);
	return find_room(reader);
}

/*
 * All that comes out of a pass has been taken, with the rows without a match.  Prepares the next
 * pass, if there is one.  In all cases but JOIN_NEXT_PASS the caller closes the queries; with
 *
 *		JOIN_NEXT_NONE	reader->left_over has the rows that core has to join
 *						(gpurhh_left_over_next());
 *		JOIN_NEXT_REST	the same, but the plan is asked for the rest first; reader->why says why;
 *		JOIN_NEXT_CORE	so it does, and the plan can be asked for all rows.
 */
JoinNext
gpurhh_join_next_pass(JoinReader *reader)
{
	JoinInput  *input = reader->input;
	JoinRounds *rounds = reader->rounds;
	JoinNext	next = JOIN_NEXT_NONE;

	end_probe(reader);
	rounds->any_probed |= rounds->probed;
	if (!is_same_probe(reader))
		gpurhh_join_raise_other_rows("the probe side");
	if (rounds->parts.join >= 0)
		note_done(reader);
	if (!is_last_part(&rounds->parts))
	{
		if (read_next_part(reader))
			next = JOIN_NEXT_PASS;
		else
			next = give_up(reader) == ROUNDS_CORE ? JOIN_NEXT_CORE : JOIN_NEXT_REST;
	}
	if (next == JOIN_NEXT_PASS && !is_same_build(reader))
		gpurhh_join_raise_other_rows("a build side");
	input->parts = rounds->parts;
	if (next == JOIN_NEXT_PASS)
	{
		begin_probe(reader);
		reader->unmatched = 0;
		input->parts.joining = true;
	}
	else if (next != JOIN_NEXT_NONE)
		rewind_sides(reader);
	else if (reader->left_over != NULL)
	{
		gpurhh_join_settle(reader);
		gpurhh_join_rewind_builds(input);
	}
	return next;
}
