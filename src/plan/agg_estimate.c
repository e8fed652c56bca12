/*-------------------------------------------------------------------------
 *
 * agg_estimate.c
 *		How many groups a plan of GpuHashAgg will have on each level, and how much memory
 *		its strings will take.
 *
 * The first level makes a group of each combination of all keys, the hidden ones
 * too; the second and the third level make fewer groups of those.  The number of
 * groups that are returned is core's own estimate; those of the other levels are made
 * of such estimates, as the functions below say.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "executor/nodeHash.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

#include "batch/batch.h"
#include "compat.h"
#include "plan/plan_info.h"

/*
 * What minima and maxima of strings cost, in units of what it costs to return a
 * group, measured at 1e4 and 1e6 groups.  Each row's string is looked at
 * (STRING_FACTOR).  If it may be its group's result it is fed (CANDIDATE_FACTOR),
 * and if it is long it is put into the dictionary besides (NEW_STRING_FACTOR).
 * Where memory is short a group of the first level is written to disk and read
 * back (SPILL_FACTOR).
 */
#define STRING_FACTOR			0.5
#define CANDIDATE_FACTOR		2.0
#define NEW_STRING_FACTOR		5.0
#define SPILL_FACTOR			7.0

/*
 * How many different pairs so many rows have, of two columns that are independent of
 * each other and have so many values.
 */
static double
pairs_in_rows(double n_first, double n_second, double rows)
{
	double		pairs = Max(n_first, 1.0) * Max(n_second, 1.0);

	/* so few of the pairs are hit that nearly no two rows hit the same */
	if (rows < pairs * 1.0e-6)
		return rows;
	return Min(rows, pairs * -expm1(-rows / pairs));
}

static double
values_of(PlanInfo *info, Expr *arg)
{
	return estimate_num_groups(info->root, list_make1(arg), info->input->rows,
							   NULL, NULL);
}

/* How wide an expression's values are. */
static int
width_of(PlanInfo *info, Expr *expr)
{
	PathTarget *target = create_empty_pathtarget();

	add_column_to_pathtarget(target, expr, 0);
	return set_pathtarget_cost_width(info->root, target)->width;
}

/* The groups that come from a string's being a hidden key all values of which are fed. */
static void
estimate_fed_strings(PlanInfo *info, Expr *arg, GroupEstimate *groups)
{
	double		values = values_of(info, arg);
	int			width = width_of(info, arg);

	groups->first_level = pairs_in_rows(groups->first_level, values, info->input->rows);
	if (width < GPURHH_STRING_BYTES)
		return;
	groups->choices += values * NEW_STRING_FACTOR;
	groups->string_bytes += values * (width + 2 * sizeof(uint64));
}

/*
 * Estimates the groups that come from arguments of min() and max() being hidden keys.
 *
 * Of strings candidates are fed, see candidates.c: in any order of the rows the
 * n-th of a group is better than all before with probability 1/n.  Groups whose
 * best is not kept have as many as there are values.
 */
static void
estimate_choices(PlanInfo *info, GroupEstimate *groups)
{
	const GpuAggPlan *plan = info->plan;
	double		rows = info->input->rows;
	double		n_groups = Max(groups->emitted, 1.0);
	int			n_choices = list_length(info->plan->choices);
	int			key_bytes = 0;
	double		record_bytes;
	double		kept;
	List	   *counted = NIL;

	for (int k = 0; k < info->plan->n_shown_keys; k++)
	{
		GpuEncoding encoding = gpurhh_plan_key(plan, k)->encoding;

		key_bytes += Max(gpurhh_encodings[encoding].bytes, sizeof(uint64));
	}
	kept = gpurhh_candidates_capacity(key_bytes, n_choices,
									  GPURHH_CANDIDATES_LIMIT) / n_groups;
	kept = Min(kept, 1.0);
	for (int c = 0; c < n_choices; c++)
	{
		const GpuPlanColumn *column = gpurhh_plan_key(plan, plan->n_shown_keys + c);
		Expr	   *arg = list_nth(info->child_target->exprs, column->attribute);
		int			width = width_of(info, arg);
		double		values;
		double		candidates;

		if (gpurhh_is_string(column->encoding) && !gpurhh_is_candidate(column->encoding))
		{
			/* the least and the greatest are of one column */
			if (!list_member(counted, arg))
				estimate_fed_strings(info, arg, groups);
			counted = lappend(counted, arg);
			continue;
		}
		values = estimate_num_groups(info->root, lappend(list_copy(info->keys), arg), rows, NULL,
									 NULL);
		if (!gpurhh_is_candidate(column->encoding))
		{
			groups->first_level += values;
			continue;
		}
		candidates = Min(values,
						 kept * n_groups * (0.6 + log(Max(rows / n_groups, 1.0))) +
						 (1 - kept) * rows);
		groups->first_level += candidates;
		groups->choices += rows * STRING_FACTOR + candidates * CANDIDATE_FACTOR;
		if (width >= GPURHH_STRING_BYTES)
		{
			groups->choices += candidates * NEW_STRING_FACTOR;
			groups->string_bytes += candidates * (width + 2 * sizeof(uint64));
		}
	}
	groups->taken_by_levels = groups->first_level;

	/* as host_table.c has them, about 3 words for each value */
	record_bytes = 64 + key_bytes +
		sizeof(uint64) * (2 * list_length(plan->states) + 3 * n_choices);
	if (n_groups * record_bytes > get_hash_memory_limit())
		groups->choices += SPILL_FACTOR * groups->first_level *
			(1 - get_hash_memory_limit() / (n_groups * record_bytes));
}

/* Will there be a third level?  This is gpurhh_level_create()'s rule. */
static bool
has_third_level(PlanInfo *info)
{
	return list_length(info->distinct_args) > 1 ||
		(info->distinct_args != NIL && list_length(info->plan->sets) > 1);
}

/*
 * Adds to the estimates what further levels make of a grouping set, which has
 * set_groups groups.
 */
static void
add_set(PlanInfo *info, GroupEstimate *groups, List *keys, double set_groups)
{
	ListCell   *lc;

	if (has_third_level(info))
	{
		foreach(lc, info->distinct_args)
		{
			groups->second_level += pairs_in_rows(set_groups,
												  values_of(info, lfirst(lc)),
												  info->input->rows);
			groups->taken_by_levels += groups->first_level;
		}
	}
	else if (info->distinct_args != NIL ||
			 list_length(keys) < list_length(info->keys))
	{
		groups->second_level += set_groups;
		groups->taken_by_levels += groups->first_level;
	}
}

/*
 * The memory of the keys' long strings, where further levels would have to keep
 * those of several passes (string_words.c).
 */
static double
estimate_key_strings(PlanInfo *info)
{
	int			n_strings = 0;
	double		bytes = 0;

	if (info->distinct_args == NIL && list_length(info->plan->sets) < 2)
		return 0;
	for (int k = 0; k < list_length(info->plan->key_columns); k++)
	{
		const GpuPlanColumn *column = gpurhh_plan_key(info->plan, k);
		Expr	   *key;
		int			width;

		if (!gpurhh_is_string(column->encoding))
			continue;
		key = list_nth(info->child_target->exprs, column->attribute);
		width = width_of(info, key);
		n_strings++;
		if (width >= GPURHH_STRING_BYTES)
			bytes += values_of(info, key) * (width + 2 * sizeof(uint64));
	}
	/* where strings are only counted there are none in further levels */
	if (!has_third_level(info) && n_strings == 1 &&
		gpurhh_is_string(gpurhh_plan_column(info->plan,
											llast_int(info->plan->key_columns))->encoding))
		return 0;
	return bytes;
}

/* Estimates all levels of a grouping that has been planned. */
void
gpurhh_estimate_groups(PlanInfo *info, GroupEstimate *groups)
{
	PlannerInfo *root = info->root;
	Query	   *parse = root->parse;
	double		rows = info->input->rows;
	List	   *keys = info->keys;
	ListCell   *lc;

	/* as core has it: of what has been grouped nothing is known */
	if (info->stage == UPPERREL_SETOP ||
		(info->stage == UPPERREL_DISTINCT &&
		 (parse->groupClause != NIL || parse->groupingSets != NIL ||
		  parse->hasAggs || root->hasHavingQual)))
		groups->emitted = rows;
	else
		groups->emitted = estimate_num_groups(root, keys, rows, NULL, NULL);
	groups->first_level = groups->emitted;
	groups->taken_by_levels = 0;
	groups->choices = groups->string_bytes = 0;
	groups->key_string_bytes = estimate_key_strings(info);
	groups->second_level = 0;
	groups->third_level = 0;

	/*
	 * Core's estimate for several columns of a table is at most a tenth of its
	 * rows, or what one of them has: far too low for the first size of the map,
	 * and for what the second level takes.
	 */
	foreach(lc, info->distinct_args)
		groups->first_level = pairs_in_rows(groups->first_level,
											values_of(info, lfirst(lc)), rows);
	if (info->distinct_args != NIL)
		groups->first_level =
			Max(groups->first_level,
				estimate_num_groups(root, list_concat_copy(keys, info->distinct_args),
									rows, NULL, NULL));
	if (info->plan->choices != NIL)
		estimate_choices(info, groups);
	if (info->plan->sets == NIL)
		add_set(info, groups, keys, groups->emitted);
	else
		groups->emitted = 0;
	foreach(lc, info->plan->sets)
	{
		List	   *set_keys = NIL;
		double		set_groups;
		ListCell   *lc_key;

		foreach(lc_key, (List *) lfirst(lc))
			set_keys = lappend(set_keys, list_nth(keys, lfirst_int(lc_key)));
		set_groups = estimate_num_groups(root, set_keys, rows, NULL, NULL);
		groups->emitted += set_groups;
		add_set(info, groups, set_keys, set_groups);
	}
	/* with a third level the second one's are not what is returned */
	if (has_third_level(info))
	{
		groups->third_level = groups->emitted;
		groups->taken_by_levels += groups->second_level;
	}
}
