/*-------------------------------------------------------------------------
 *
 * join_input.h
 *		The hash joins below a node, which the device does instead of core.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPURHH_EXEC_JOIN_INPUT_H
#define GPURHH_EXEC_JOIN_INPUT_H

#include "storage/spin.h"

#include "channel/channel.h"
#include "exec/node_stats.h"
#include "scan/scan.h"

/* ---------- join_tree.c ---------- */

/* A build side that other joins make, see nested_joins.c. */
typedef struct NestedJoins NestedJoins;

typedef struct JoinReader JoinReader;
struct SharedBuilds;

/* The plan whose rows are a side of a join, and the columns that are fed of it. */
typedef struct JoinSide
{
	PlanState  *child;
	PageFeed   *pages;			/* NULL: the child's rows are asked for, */
	const char *why_rows;		/* because of this */
	List	   *computed;		/* expressions that are fed, see
								 * gpurhh_page_feed_create() */
	bool		computes_none;	/* no expression can be fed */
	int			n_columns;
	GpuColumn	columns[RHH_MAX_COLUMNS];	/* attributes are the child's */
	bool		is_key[RHH_MAX_COLUMNS];	/* of a grouping column, see Feed */
	int			n_strings;		/* columns that need a dictionary */
} JoinSide;

/* A join, and its build side. */
typedef struct JoinStep
{
	HashJoinState *node;
	JoinSide	build;
	NestedJoins *nested;		/* make its rows, which need not leave the device; or NULL */
	rhh_map_spec spec;			/* of the map with the build side's rows */
	rhh_program condition;		/* what a match is, beside the keys; without operations:
								 * there is none */
	KeyColumns	filter_key;		/* of the build side's feed; none: its keys do not become a
								 * filter */
	KeyColumns	tested_key;		/* the same of JoinInput.tested */
	GpuColumn	outer_keys[RHH_MAX_KEYS];	/* what is compared with the build side's key, as it is
											 * fed; attributes are those of the join's outer side */
	bool		started;		/* in this run the child has been asked for rows */
} JoinStep;

/* What a program reads, a column of the map, or one for each limb, one after the other. */
typedef struct JoinLeaf
{
	Node	   *expr;			/* over sides, see join_tree.c */
	GpuColumn	how;
	bool		only_null;		/* what is fed only says whether it is NULL */
	int			column;			/* of the map, the first one */
} JoinLeaf;

/* An expression that a program computes. */
typedef struct JoinComputed
{
	Expr	   *expr;			/* over sides */
	ExprState  *state;			/* over the leaves */
	int			n_columns;		/* of the map, which have its value or limbs of it */
	int			columns[GPURHH_MAX_LIMBS + 1];
	GpuColumn	how[GPURHH_MAX_LIMBS + 1];
} JoinComputed;

/* A column that a program makes of two others (batch/pairs.c). */
typedef struct JoinPair
{
	GpuColumn	how;
	int			column;			/* of the map */
} JoinPair;

/*
 * Columns that the device computes of the joins' output, and which rows it drops; see
 * join_program.c.
 */
typedef struct JoinProgram
{
	rhh_program program;
	List	   *conditions;		/* that rows have to meet; over sides */
	ExprState  *filter;			/* the same over the leaves; NULL: there are none */
	int			n_leaves;
	JoinLeaf	leaves[RHH_MAX_COLUMNS];
	int			n_computed;
	JoinComputed computed[RHH_MAX_RESULTS];
	int			n_pairs;
	JoinPair	pairs[RHH_MAX_RESULTS];
	TupleTableSlot *slot;		/* of the leaves */
	ExprContext *econtext;
} JoinProgram;

/*
 * A build side that has no room as a whole, while it comes in parts, one in each pass over the
 * probe side.  Parts are made smaller if one of them has no room either.
 */
typedef struct JoinParts
{
	int			join;			/* whose build side it is; -1: all are there as a whole */
	uint32		n_parts;		/* now */
	uint32		part;			/* that is there now */
	uint64		done;			/* of RHH_MAX_PARTS parts; what has been joined */
	uint32		n_passes;		/* that are done */
	GpuJoinStats sums;			/* over these */
	bool		joining;		/* the part that is there is being joined, in one more pass */
	/* what has been read must be the same each time */
	uint64		build_rows;		/* of the build side; 0: it has not been read to its end yet */
	bool		probed;			/* the probe side has been read to its end: */
	uint64		probe_rows;
	uint64		left_rows;
	uint64		left_hash;		/* sum over these */
} JoinParts;

/* The joins below a node; as long as the node. */
typedef struct JoinInput
{
	int			n_joins;
	JoinStep	joins[RHH_MAX_JOINS];	/* the lowest in the plan first */
	JoinSide	probe;
	const rhh_map_spec *spec;	/* of the node's map, whose rows are the output */
	rhh_map_spec map_spec;		/* the same with columns for the program; its limits
								 * are set when the query is opened */
	JoinProgram program;
	rhh_join_spec join_spec;	/* without the maps */
	bool		shares_matches; /* of the build sides, with other participants' queries */
	bool		may_be_bad;		/* what a match is may be an error for some rows, so that the
								 * joins may have to begin anew */
	bool		probe_by_pages; /* batches of the probe side are to have pages */
	int			n_tested;		/* columns of the probe side that filters test */
	GpuColumn	tested[RHH_MAX_COLUMNS];

	/* of a run */
	Channel    *builds[RHH_MAX_JOINS];	/* the queries of the build sides, or NULL */
	Channel    *whole;			/* that of a build side that now comes in parts, where workers
								 * may still join it; else NULL */
	JoinParts	parts;			/* as they are in this round, see join_rounds.c */
} JoinInput;

extern JoinInput *gpurhh_join_create(PlanState *child, int n_joins,
									 const rhh_map_spec *spec,
									 const GpuColumn *columns, const bool *is_key,
									 bool key_filters, MemoryContext context,
									 const char **why);
extern int	gpurhh_join_strings(const JoinInput *input);
extern bool gpurhh_join_returns_unmatched(const PlanState *child, int n_joins);
extern bool gpurhh_join_may_leave_rows(const JoinInput *input);
extern Relation gpurhh_join_shared_table(const JoinInput *input, int j);

/* ---------- join_program.c ---------- */

extern bool gpurhh_join_add_leaf(JoinProgram *program, Node *expr, GpuColumn how,
								 bool only_null, int column);
extern bool gpurhh_join_add_computed(JoinProgram *program, Expr *expr,
									 VectorExpr *compiled, GpuColumn how,
									 int column, const char **why);
extern bool gpurhh_join_add_filter(JoinProgram *program, List *conditions,
								   VectorExpr *compiled, const char **why);
extern bool gpurhh_join_add_pair(JoinProgram *program, GpuColumn how, int column,
								 const char **why);
extern bool gpurhh_join_has_program(const JoinProgram *program);
extern void gpurhh_join_init_program(JoinProgram *program, EState *estate);
extern void gpurhh_join_finish_bad(JoinInput *input, rhh_batch *batch,
								   const uint8 *bad);

/* ---------- nested_joins.c ---------- */

extern NestedJoins *gpurhh_nested_create(const JoinSide *build, const rhh_map_spec *spec,
										 MemoryContext context);
extern bool gpurhh_nested_is_on(const NestedJoins *nested);
extern Channel *gpurhh_nested_open(NestedJoins *nested, const rhh_map_spec *spec, ChannelArea *area,
								   MemoryContext context);
extern void gpurhh_nested_close(NestedJoins *nested);
extern JoinInput *gpurhh_nested_input(NestedJoins *nested);
extern Relation gpurhh_nested_table(const NestedJoins *nested);
extern void gpurhh_nested_share(NestedJoins *nested, struct SharedBuilds *builds);
extern void gpurhh_nested_read(NestedJoins *nested, JoinReader *above, Channel *channel);
extern void gpurhh_nested_rewind(NestedJoins *nested);
extern void gpurhh_nested_note(NestedJoins *nested, Channel *channel);

/* ---------- join_exec.c ---------- */

extern PlanState *gpurhh_join_node_of(PlanState *plan, int *n_joins);
extern GpuNodeStats *gpurhh_join_node_stats(PlanState *node);
extern void gpurhh_join_node_keep(PlanState *node, const NestedJoins *keeper, bool keeps);

/* ---------- share_rows.c ---------- */

extern bool gpurhh_is_share_rows(const PlanState *node);
extern bool gpurhh_share_rows_begin(PlanState *node);
extern void gpurhh_share_rows_end(PlanState *node);

/* ---------- repeatable.c ---------- */

extern bool gpurhh_is_repeatable(PlanState *plan);
extern bool gpurhh_can_begin_again(PlanState *plan);
extern void gpurhh_begin_again(PlanState *plan);

/* ---------- part_filter.c ---------- */

/* Has core join those rows that are of some parts of a build side. */
typedef struct PartFilter PartFilter;

extern PartFilter *gpurhh_part_filter_create(const JoinInput *input, Dictionary *dictionary,
											 MemoryContext context);
extern void gpurhh_part_filter_begin(PartFilter *filter, PlanState *top);
extern TupleTableSlot *gpurhh_part_filter_next(PartFilter *filter, PlanState *top);
extern void gpurhh_part_filter_turn(PartFilter *filter, PlanState *top);
extern void gpurhh_part_filter_end(PartFilter *filter);

/* ---------- left_over.c ---------- */

/* Rows of the probe side that are left to core. */
typedef struct LeftOver LeftOver;

extern LeftOver *gpurhh_left_over_create(MemoryContext context);
extern void gpurhh_left_over_add(LeftOver *rows, TupleTableSlot *slot);
extern TupleTableSlot *gpurhh_left_over_next(LeftOver *rows, PartFilter *filter,
											 HashJoinState *lowest, PlanState *top);
extern void gpurhh_left_over_free(LeftOver *rows);

/* ---------- join_input.c ---------- */

typedef struct SideReader SideReader;
typedef struct JoinRounds JoinRounds;

/* How a node has the device do the joins in a run. */
struct JoinReader
{
	JoinInput  *input;
	Channel    *channel;		/* the query that does the joins; NULL: see open_query */
	Dictionary *dictionary;		/* NULL: no column needs one */
	GpuNodeCounts *counts;
	MemoryContext context;		/* of the run */
	bool		copies;			/* batches are made in memory of our own, and copied */
	JoinRounds *rounds;			/* in which the sides are read */
	bool		parallel;		/* other participants take part in these */
	bool		reads_once;		/* the probe side cannot be read again */
	bool		keeps;			/* the device keeps what comes out, as a build side */
	bool		returns;		/* all of it comes back */
	MemoryContext part_context; /* of queries of parts of a build side */
	void	   *arg;			/* for the functions */
	/* the build sides have been read: opens the query that does the joins, or returns false, with
	 * the reason in *why */
	bool		(*open_query) (void *arg, const char **why);
	/* before and after build side j: is this participant to read it, or a part of it, and
	 * is it complete then?  NULL: it reads all of them */
	bool		(*begin_build) (void *arg, int j, ParallelTableScanDesc *scan);
	bool		(*end_build) (void *arg, int j);
	/* after build side j, or instead of it: adds the keys that this participant has fed, if
	 * any, to those of the others, and returns the filter that will have all of them.  NULL:
	 * there are no others */
	KeyFilter  *(*share_filter) (void *arg, int j, KeyFilter *own);
	/* build side j is to be read once more, by all participants.  NULL: there are no others */
	void		(*restart_build) (void *arg, int j);
	/* is this the participant that reads all rows, if one has to?  NULL: there are no others */
	bool		(*reads_alone) (void *arg);
	/* takes the batches that have come back */
	void		(*take_returned) (void *arg);

	/* set here */
	SideReader *probe;			/* once the probe side is being read */
	KeyFilter  *filters[RHH_MAX_JOINS]; /* NULL: the join has none */
	KeyTests	tests;			/* of the probe side's rows */
	uint32		unmatched;		/* rhh_batch's of the last batch */
	bool		gave_up;		/* a row would have to be left over, and cannot be, or what a
								 * match is has been an error */
	uint64		left_rows;		/* of this round: that are left over, */
	uint64		left_hash;		/* the sum of their hashes, */
	uint64		dropped_rows;	/* and rows that filters have dropped */
	uint64		n_given;		/* returns: rows in batches so far, */
	uint64		n_returned;		/* which the caller counts: that came out of these, */
	uint32		most_rows;		/* and the most that the next one of pages has */
	bool		here;			/* this participant takes part in a round, */
	uint32		round;			/* of this number */
	uint32		part_round;		/* the last round for which it has the query of the part */
	bool		has_part;		/* what it has of the build side that comes in parts is the query
								 * of a part */
	bool		on_device;		/* in this round: what the service has decided, */
	int			no_room;		/* and see gpurhh_channel_wait_joins() */
	bool		odd;			/* a key may be odd (dictionary.c) */
	LeftOver   *left_over;		/* NULL: there are no such rows */
	char		why[GPURHH_MESSAGE_LEN];	/* why the device does not do the joins */
};

extern bool gpurhh_join_open(JoinInput *input, ChannelArea *area,
							 MemoryContext context, const char **why);
extern void gpurhh_join_close(JoinInput *input);
extern void gpurhh_join_attach(JoinInput *input, const ChannelAddress *builds,
							   MemoryContext context);
extern uint32 gpurhh_join_batch_rows(const JoinInput *input, Size block_bytes);
extern bool gpurhh_join_probe(JoinReader *reader);
extern void gpurhh_join_wait(JoinReader *reader);
extern bool gpurhh_join_unmatched(JoinReader *reader);
extern void gpurhh_join_probe_again(JoinReader *reader, rhh_batch *batch);
extern void gpurhh_join_rescan(JoinInput *input);
extern void gpurhh_join_note(const JoinInput *input, const rhh_map_stats *map,
							 GpuJoinStats *stats);

/* for join_rounds.c */
extern void gpurhh_join_begin(JoinReader *reader);
extern void gpurhh_join_read_builds(JoinReader *reader);
extern bool gpurhh_join_want_pages(JoinInput *input, bool pages, Size block_bytes);
extern bool gpurhh_join_open_build(JoinInput *input, int j, ChannelArea *area,
								   MemoryContext context, const char **why);
extern uint64 gpurhh_join_read_build(JoinReader *reader, int j, ParallelTableScanDesc scan);
extern void gpurhh_join_rewind_builds(JoinInput *input);
extern void gpurhh_join_settle(JoinReader *reader);
extern uint64 gpurhh_join_probed(const JoinReader *reader, bool *skipped);
extern void gpurhh_join_stop_probe(JoinReader *reader);
extern void gpurhh_join_rewind_probe(JoinReader *reader);
extern void gpurhh_join_add_build(const JoinInput *input, int j, GpuJoinStats *stats);

/* ---------- join_rounds.c ---------- */

/* What goes on among the participants that have the device do the joins below a node. */
typedef enum RoundsState
{
	ROUNDS_READING,				/* a round: all who take part in it read */
	ROUNDS_TURNING,				/* all have read, and the last one prepares the next round */
	/* there are no more rounds: */
	ROUNDS_DONE,				/* the device has joined all rows */
	ROUNDS_CORE,				/* each asks core's joins, for its part of the probe side, of which
								 * no row has been fed */
	ROUNDS_ALONE				/* one participant asks core's joins, for all rows, and what the
								 * device has is forgotten */
} RoundsState;

/*
 * Shared by all participants.  The mutex guards it.  But what the turner writes, others read
 * without: it does so in ROUNDS_TURNING only, and they do not read then.
 */
struct JoinRounds
{
	slock_t		mutex;
	RoundsState state;
	uint32		round;			/* number of the round, from 0 */
	int			n_here;			/* participants that take part in it */
	int			n_arrived;		/* of these have read */
	bool		any_probed;		/* in this round or before, the probe side has been read, or a
								 * part of it */
	/* sums of the round */
	bool		probed;			/* the probe side has been read to its end, unless someone gave up */
	uint64		build_rows;		/* of the build side that comes in parts */
	uint64		probe_rows;
	uint64		left_rows;
	uint64		left_hash;
	bool		gave_up;		/* whoever still reads may stop */
	/* by the turner */
	JoinParts	parts;
	ChannelAddress part;		/* the query of the part */
	char		why[GPURHH_MESSAGE_LEN];	/* why ROUNDS_CORE or ROUNDS_ALONE, or gave_up */
};

extern void gpurhh_rounds_init(JoinRounds *rounds);
extern RoundsState gpurhh_join_read(JoinReader *reader);

/* What a node does that returns rows, when there are no more of a pass. */
typedef enum JoinNext
{
	JOIN_NEXT_PASS,				/* reads the probe side once more */
	JOIN_NEXT_NONE,				/* the device has joined all rows */
	JOIN_NEXT_CORE,				/* asks core's joins for all rows: there have been none */
	JOIN_NEXT_REST				/* asks them for the rows of the other parts (part_filter.c) */
} JoinNext;

extern bool gpurhh_join_build(JoinReader *reader);
extern JoinNext gpurhh_join_next_pass(JoinReader *reader);
extern void gpurhh_join_raise_other_rows(const char *side);

/* ---------- join_filter.c ---------- */

extern void gpurhh_join_plan_filter(JoinInput *input, int j, const uint8 *tested);
extern void gpurhh_join_note_filters(const JoinInput *input, bool *filters);
extern Size gpurhh_join_filter_bytes(const JoinInput *input, int j);
extern void gpurhh_join_init_filter(const JoinInput *input, int j, KeyFilter *filter);
extern void gpurhh_join_begin_tests(JoinReader *reader);
extern void gpurhh_join_note_tests(JoinReader *reader, bool more);

#endif							/* GPURHH_EXEC_JOIN_INPUT_H */
