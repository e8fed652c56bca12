/*-------------------------------------------------------------------------
 *
 * join_filter.c
 *		Key filters of build sides (key_filter.c): which joins have one, and what becomes of
 *		them in a run.
 *
 * Whoever reads a build side adds its keys to a filter; the probe side is read when all build
 * sides are complete, and rows of which a filter knows that they have no match are not fed.
 *
 * A row may be dropped by the filter of a join if nothing comes of it without a match there:
 *
 *		- The join is an inner, a semi- or a right join.  The others return the row itself.
 *		- Its key is made of columns of the probe side.  What the joins below it return for
 *		  the row has these same columns, so all of it would be dropped.
 *		- No join below it returns rows of its build side without a match: the row may be
 *		  the match of one.  Whether it is the match of a row of a join above cannot matter,
 *		  as it does not get there.
 *		- No join below it has a condition that says what a match is and may be an error: core
 *		  would raise it for the row, and the device is to see it.
 *
 * No error is lost.  Core evaluates the scan's WHERE before it joins, and so do we before
 * the test.  What else is computed of the row is computed above the join, for rows with a
 * match, except what the scan itself returns (gpurhh_page_feed_add_keys() sees to that), and
 * other conditions of a join below, which may have no error then either (join_tree.c).
 *
 * A build side that turns out to have a row that no column can have is not probed at all.
 * So a filter that is used has the keys of all rows.
 *
 * Rows of pages that the device reads by itself are not tested.  So where it is to read those of the probe
 * side there are no filters, and build sides may come as pages, too.
 *
 * If a build side comes in parts, all of its rows are read for each part, and until the first part
 * has room their keys are added to its filter, which has some of them already.  In each pass rows
 * are tested by the same filters, and as they come in the same order, tests pause for the same rows.
 * So the same rows are dropped, on which depends which of the others of a page are left over.  In a
 * parallel plan, where rows come in another order each time, there are no filters then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "utils/memutils.h"

#include "exec/join_input.h"
#include "plan/plan.h"

/*
 * How many rows the planner expects from a plan.  A worker gets its plan as text, in which
 * this is an integer; all participants have to come to the same filters.
 */
static double
expected_of(const Plan *plan)
{
	return Max(rint(plan->plan_rows), 1.0);
}

/* The same of the build side. */
static double
expected_rows(const JoinInput *input, int j)
{
	return expected_of(input->joins[j].build.child->plan);
}

/* The columns of the build side's key. */
static void
key_columns(const JoinInput *input, int j, GpuColumn *columns)
{
	const JoinStep *join = &input->joins[j];

	for (uint32 k = 0; k < join->spec.n_keys; k++)
		columns[k] = join->build.columns[join->spec.key_column[k]];
}

/* Can rows be dropped by the filter of join j, and will that save more than it costs? */
static bool
wants_filter(const JoinInput *input, int j)
{
	const JoinStep *join = &input->joins[j];
	const Plan *plan = join->node->js.ps.plan;
	uint8		kind = input->join_spec.joins[j].kind;
	GpuColumn	columns[RHH_MAX_KEYS];

	/* of others a row without a match comes out */
	if (rhh_keeps_outer(kind) || kind == RHH_JOIN_ANTI)
		return false;
	for (int below = 0; below < j; below++)
	{
		const rhh_program *condition = input->join_spec.joins[below].condition;

		if (rhh_returns_unmatched(input->join_spec.joins[below].kind) ||
			(condition != NULL && rhh_program_may_be_bad(condition)))
			return false;
	}
	key_columns(input, j, columns);
	return gpurhh_key_filter_takes(join->spec.n_keys, columns) &&
		input->n_tested + join->spec.n_keys <= RHH_MAX_COLUMNS &&
		gpurhh_key_filter_pays(expected_rows(input, j), expected_of(outerPlan(plan)),
							   expected_of(plan));
}

/*
 * The key of join j is made of these columns of the probe side, whose pages are read: has its
 * build side make a filter if that is of use.
 */
void
gpurhh_join_plan_filter(JoinInput *input, int j, const uint8 *tested)
{
	JoinStep   *join = &input->joins[j];
	GpuColumn	columns[RHH_MAX_KEYS];

	for (uint32 k = 0; k < join->spec.n_keys; k++)
		columns[k] = input->probe.columns[tested[k]];
	if (!wants_filter(input, j) || !gpurhh_key_filter_takes(join->spec.n_keys, columns))
		return;
	join->filter_key.n = join->tested_key.n = join->spec.n_keys;
	for (uint32 k = 0; k < join->spec.n_keys; k++)
	{
		join->filter_key.columns[k] = join->spec.key_column[k];
		join->tested_key.columns[k] = input->n_tested;
		input->tested[input->n_tested++] = columns[k];
	}
}

/* For EXPLAIN: which joins have a filter. */
void
gpurhh_join_note_filters(const JoinInput *input, bool *filters)
{
	for (int j = 0; j < input->n_joins; j++)
		filters[j] = input->joins[j].filter_key.n > 0;
}

/* How much memory the filter of join j takes; 0: it has none. */
Size
gpurhh_join_filter_bytes(const JoinInput *input, int j)
{
	return input->joins[j].filter_key.n == 0 ? 0 :
		gpurhh_key_filter_bytes(expected_rows(input, j));
}

/* Makes the filter of join j, in that much memory.  It is empty. */
void
gpurhh_join_init_filter(const JoinInput *input, int j, KeyFilter *filter)
{
	GpuColumn	columns[RHH_MAX_KEYS];

	key_columns(input, j, columns);
	gpurhh_key_filter_init(filter, expected_rows(input, j), input->joins[j].filter_key.n,
						   columns);
}

/* All build sides are complete: from now on rows of the probe side are tested. */
void
gpurhh_join_begin_tests(JoinReader *reader)
{
	JoinInput  *input = reader->input;
	KeyTests   *tests = &reader->tests;

	tests->n = 0;
	for (int j = 0; j < input->n_joins; j++)
	{
		KeyFilterForm form;

		if (reader->filters[j] == NULL)
			continue;
		form = gpurhh_key_filter_finish(reader->filters[j]);
		tests->tests[tests->n++] = (KeyTest){
			.filter = reader->filters[j],
			.form = form,
			.key = input->joins[j].tested_key,
			.join = j
		};
		reader->counts->key_filters[j] = Max(reader->counts->key_filters[j], form);
	}
	if (input->probe.pages != NULL)
		gpurhh_page_feed_test(input->probe.pages, tests->n > 0 ? tests : NULL);
}

/* Counts the rows that have been dropped; more: not all of the probe side has been read. */
void
gpurhh_join_note_tests(JoinReader *reader, bool more)
{
	PageFeed   *pages = reader->input->probe.pages;

	for (int t = 0; t < reader->tests.n; t++)
	{
		KeyTest    *test = &reader->tests.tests[t];

		reader->counts->key_filtered[test->join] += test->dropped;
		reader->dropped_rows += test->dropped;
		test->dropped = 0;
	}
	if (!more && pages != NULL)
		gpurhh_page_feed_test(pages, NULL);
}
