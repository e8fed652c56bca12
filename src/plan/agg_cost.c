/*-------------------------------------------------------------------------
 *
 * agg_cost.c
 *		GpuHashAgg's paths, what they cost, and the plan of the one chosen.
 *
 * What the node is to do has been found out by agg_path.c (PlanInfo).  Here
 * a projection to the child columns is put on the cheapest input, the node on
 * top of it, and both are compared with core's paths (compete).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "executor/nodeHash.h"
#include "nodes/extensible.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "batch/batch.h"
#include "compat.h"
#include "plan/plan_info.h"
#include "settings.h"

/*
 * To put a group of the first level into one of the second, in units of what
 * it costs to return one: measured, 20 ns of 40.  On the host it is five times as
 * much: that is where there are minima of what no device can compare, or where a
 * device has refused rows, which is not foreseen.
 */
#define LEVEL_FACTOR			0.5
#define HOST_LEVEL_FACTOR		2.5

/*
 * For minima and maxima of strings, in the same units and measured at 1e4 and
 * 1e6 groups: to look at a row's string; to feed one that is a candidate; and
 * besides, if it has to be put into the dictionary; and to write a group of the
 * first level to disk and read it back.
 */
#define STRING_FACTOR			0.5
#define CANDIDATE_FACTOR		2.0
#define NEW_STRING_FACTOR		5.0
#define SPILL_FACTOR			7.0

static Plan *plan_agg_path(PlannerInfo *root, RelOptInfo *rel,
						   CustomPath *best_path, List *tlist, List *clauses,
						   List *custom_plans);

static const CustomPathMethods agg_path_methods = {
	.CustomName = "GpuHashAgg",
	.PlanCustomPath = plan_agg_path,
};

/*
 * How many times the work of one process is done in the same time: as core
 * has it, the leader has less time to help the more workers it has.
 */
static double
parallel_divisor(int n_workers)
{
	double		leader = parallel_leader_participation ?
		1.0 - 0.3 * n_workers : 0;

	return n_workers + Max(leader, 0);
}

/* ---------- what core charges too little or too much for ---------- */

/*
 * Core charges a hashed aggregate cpu_operator_cost for each input row and
 * column, about 0.005 a row.  Measured (docs/benchmarks.md) it is 0.035 while
 * the groups fit caches and grows to 0.27 at 10 million groups, in units of
 * which a sequential scan's row has 0.0144.
 */
static Cost
hashing_undercharge(double groups, double rows)
{
	Cost		per_row = 0.03;

	if (groups > 1.0e4)
		per_row += 0.07 * (log10(groups) - 4.0);
	return per_row * rows;
}

/*
 * For DISTINCT in an aggregate core sorts each group by itself, unless rows come
 * sorted by more than the grouping columns, and charges nothing for that.
 * Measured, it is 0.0021 for each row and each doubling of the groups' rows.
 */
static Cost
distinct_undercharge(PlanInfo *info, AggPath *agg)
{
	double		rows = agg->subpath->rows;
	double		group_rows = Max(rows / Max(agg->numGroups, 1.0), 2.0);

	if (info->distinct_args == NIL || agg->aggsplit != AGGSPLIT_SIMPLE ||
		list_length(agg->subpath->pathkeys) > list_length(agg->groupClause))
		return 0;
	return list_length(info->distinct_args) * rows * 0.8 * cpu_operator_cost *
		log2(group_rows);
}

/*
 * What core's plan would cost beyond what core charges for it.  Sorting and
 * scanning are charged fairly enough.
 */
static Cost
core_undercharge(PlanInfo *info, Path *path)
{
	Cost		sum = 0;
	ListCell   *lc;

	if (path == NULL)
		return 0;
	switch (nodeTag(path))
	{
		case T_AggPath:
			{
				AggPath    *agg = (AggPath *) path;

				sum = core_undercharge(info, agg->subpath) +
					distinct_undercharge(info, agg);
				if (agg->aggstrategy == AGG_HASHED)
					sum += hashing_undercharge(agg->numGroups,
											   agg->subpath->rows);
				return sum;
			}
		case T_GroupingSetsPath:
			{
				GroupingSetsPath *sets = (GroupingSetsPath *) path;

				sum = core_undercharge(info, sets->subpath);
				foreach(lc, sets->rollups)
				{
					RollupData *rollup = lfirst(lc);

					if (rollup->is_hashed)
						sum += hashing_undercharge(rollup->numGroups,
												   sets->subpath->rows);
				}
				return sum;
			}
		case T_AppendPath:
			foreach(lc, ((AppendPath *) path)->subpaths)
				sum += core_undercharge(info, lfirst(lc));
			return sum;
		case T_GatherPath:
			return core_undercharge(info, ((GatherPath *) path)->subpath);
		case T_GatherMergePath:
			return core_undercharge(info, ((GatherMergePath *) path)->subpath);
		case T_SortPath:
		case T_IncrementalSortPath:
			return core_undercharge(info, ((SortPath *) path)->subpath);
		case T_ProjectionPath:
			return core_undercharge(info, ((ProjectionPath *) path)->subpath);
		case T_UpperUniquePath:
			return core_undercharge(info, ((UpperUniquePath *) path)->subpath);
		default:
			return 0;
	}
}

/* The same of a path of core's for the grouping, without what is below it. */
static Cost
grouping_undercharge(PlanInfo *info, Path *path)
{
	return core_undercharge(info, path) - core_undercharge(info, info->input);
}

/* gpurhh_vector_compile()'s question: is it a column, of whichever table? */
static bool
find_column(Node *expr, bool only_null, int *column, VectorType *type,
			void *arg)
{
	Var		   *var = (Var *) expr;

	if (!IsA(expr, Var) || var->varattno <= 0)
		return false;
	*column = 0;
	if (gpurhh_vector_type(var->vartype, type))
		return true;
	*type = VECTOR_ANY;
	return only_null;
}

/* Are all of these computed a page at a time? */
static bool
all_by_pages(List *exprs)
{
	ListCell   *lc;

	foreach(lc, exprs)
	{
		Expr	   *expr = lfirst(lc);
		const char *why;

		if (IsA(expr, RestrictInfo))
			expr = ((RestrictInfo *) expr)->clause;
		else if (IsA(expr, Var) && ((Var *) expr)->varattno > 0)
			continue;
		if (gpurhh_vector_compile(expr, NULL, 1, find_column, NULL, &why) == NULL)
			return false;
	}
	return true;
}

static bool
is_heap(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	bool		heap = HeapTupleIsValid(tuple) &&
		((Form_pg_class) GETSTRUCT(tuple))->relam == HEAP_TABLE_AM_OID;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return heap;
}

/*
 * Are the scans read by pages, see page_feed.c?  Then adds what that saves of
 * what they are charged: measured, most of what core spends on a tuple.
 */
static bool
reads_pages(PlannerInfo *root, Path *path, Cost *saving)
{
	RelOptInfo *rel = path->parent;
	RangeTblEntry *rte;

	if (IsA(path, ProjectionPath))
		return reads_pages(root, ((ProjectionPath *) path)->subpath, saving);
	if (IsA(path, AppendPath))
	{
		ListCell   *lc;

		foreach(lc, ((AppendPath *) path)->subpaths)
		{
			if (!reads_pages(root, lfirst(lc), saving))
				return false;
		}
		/* no row goes through the Append itself */
		*saving += 0.5 * cpu_tuple_cost * path->rows;
		return true;
	}
	if (path->pathtype != T_SeqScan || !IS_SIMPLE_REL(rel))
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	if (rte->rtekind != RTE_RELATION || !is_heap(rte->relid) ||
		!all_by_pages(rel->baserestrictinfo))
		return false;
	*saving += 0.8 * cpu_tuple_cost * rel->tuples /
		(path->parallel_workers > 0 ? parallel_divisor(path->parallel_workers) : 1);
	return true;
}

/* What reading pages saves below a projection to the child columns. */
static Cost
page_feed_saving(PlanInfo *info, ProjectionPath *projection)
{
	Cost		saving = 0;

	if (!all_by_pages(info->child_target->exprs) ||
		!reads_pages(info->root, projection->subpath, &saving))
		return 0;
	if (!projection->dummypp)
		saving += cpu_tuple_cost * projection->path.rows;
	return saving;
}

/* ---------- paths ---------- */

/* Of all participants in a parallel plan. */
typedef struct GroupEstimate
{
	double		first_level;	/* groups that the device makes */
	double		taken_by_levels;	/* groups that further levels take */
	double		choices;		/* what minima and maxima of strings and enums
								 * cost beyond that, in units of a group's cost */
	double		string_bytes;	/* and the memory they take */
	double		key_string_bytes;	/* that of keys' strings, where further levels
									 * have to keep those of several passes */
	double		second_level;	/* groups that it makes */
	double		third_level;
	double		emitted;
} GroupEstimate;

/*
 * What comes of the arguments of minima and maxima being keys.
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
		PathTarget *target = create_empty_pathtarget();
		double		values = estimate_num_groups(info->root,
												 lappend(list_copy(info->keys), arg),
												 rows, NULL, NULL);
		double		candidates;

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
		add_column_to_pathtarget(target, arg, 0);
		if (set_pathtarget_cost_width(info->root, target)->width >= GPURHH_STRING_BYTES)
		{
			groups->choices += candidates * NEW_STRING_FACTOR;
			groups->string_bytes += candidates * (target->width + 2 * sizeof(uint64));
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

/*
 * Of two numbers of values that have nothing to do with each other, how many
 * pairs a number of rows has.
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

/* See gpurhh_level_create(). */
static bool
has_third_level(PlanInfo *info)
{
	return list_length(info->distinct_args) > 1 ||
		(info->distinct_args != NIL && list_length(info->plan->sets) > 1);
}

/* What a set with so many groups makes of those of the first level. */
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
		PathTarget *target = create_empty_pathtarget();
		Expr	   *key;

		if (!gpurhh_is_string(column->encoding))
			continue;
		key = list_nth(info->child_target->exprs, column->attribute);
		add_column_to_pathtarget(target, key, 0);
		n_strings++;
		if (set_pathtarget_cost_width(info->root, target)->width >= GPURHH_STRING_BYTES)
			bytes += values_of(info, key) * (target->width + 2 * sizeof(uint64));
	}
	/* where strings are only counted there are none in further levels */
	if (!has_third_level(info) && n_strings == 1 &&
		gpurhh_is_string(gpurhh_plan_column(info->plan,
											llast_int(info->plan->key_columns))->encoding))
		return 0;
	return bytes;
}

static void
estimate_groups(PlanInfo *info, GroupEstimate *groups)
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
	 * rows, or what one of them has: far too low for a table to begin with, and
	 * for what the second level takes.
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

/* What a path of the node carries. */
static List *
make_private(PlanInfo *info, List *having, const GroupEstimate *groups,
			 bool leader_emits)
{
	GpuAggPath *private = gpurhh_make(GpuAggPath);
	GpuAggPlan *plan = gpurhh_make(GpuAggPlan);

	*plan = *info->plan;
	plan->first_level_groups = groups->first_level;
	plan->second_level_groups = groups->second_level;
	plan->third_level_groups = groups->third_level;
	plan->leader_emits = leader_emits;
	private->plan = plan;
	private->scan_tlist = info->scan_tlist;
	private->having = having;
	private->grouping = info->grouping;
	return list_make1(private);
}

/*
 * The node on top of an input path.  Cost by measured rates: the feed and the
 * table run at the same time, so a row costs what the slower of the two takes.
 * n_groups: that this process emits, of all participants' in a parallel plan.
 */
static CustomPath *
make_agg_path(PlanInfo *info, RelOptInfo *output_rel,
			  List *having, Path *input, const GroupEstimate *groups,
			  double n_groups, bool leader_emits)
{
	PlannerInfo *root = info->root;
	CustomPath *cpath = makeNode(CustomPath);
	Path	   *subpath;

	subpath = (Path *) create_projection_path(root, info->input_rel, input,
											  info->child_target);
	cpath->path.pathtype = T_CustomScan;
	cpath->path.parent = output_rel;
	cpath->path.pathtarget = info->target;
	cpath->path.param_info = NULL;
	gpurhh_inherit_disabled(&cpath->path, subpath);

	/*
	 * As a whole in a worker it would be a second user of the device beside
	 * those that share one table.
	 */
	cpath->path.parallel_aware = input->parallel_workers > 0;
	cpath->path.parallel_safe = cpath->path.parallel_aware;
	cpath->path.parallel_workers = input->parallel_workers;
	cpath->path.rows = n_groups;
	if (having != NIL)
		cpath->path.rows = clamp_row_est(n_groups *
										 clauselist_selectivity(root, having, 0,
																JOIN_INNER, NULL));
	cpath->path.pathkeys = NIL;
	cpath->path.startup_cost = subpath->total_cost -
		page_feed_saving(info, (ProjectionPath *) subpath) + gpurhh_setup_cost +
		subpath->rows * gpurhh_row_cost +
		(groups->taken_by_levels * (info->plan->choices != NIL ?
									HOST_LEVEL_FACTOR : LEVEL_FACTOR) +
		 groups->choices) * gpurhh_group_cost;
	cpath->path.total_cost = cpath->path.startup_cost +
		n_groups * gpurhh_group_cost;
	/* where it matters which entry of its target list is which key, the list is
	 * to stay as it is */
	cpath->flags = info->told_by_reference ? 0 : CUSTOMPATH_SUPPORT_PROJECTION;
	cpath->custom_paths = list_make1(subpath);
	cpath->custom_private = make_private(info, having, groups, leader_emits);
	cpath->methods = &agg_path_methods;
	return cpath;
}

/*
 * Several participants feed, the leader emits: rows do not pass through tuple
 * queues, so none is charged for that.
 */
static Path *
make_gather_path(PlanInfo *info, RelOptInfo *output_rel, CustomPath *cpath)
{
	double		rows = cpath->path.rows;
	GatherPath *gather;

	gather = create_gather_path(info->root, output_rel, &cpath->path,
								info->target, NULL, &rows);
	gather->path.startup_cost = cpath->path.startup_cost + parallel_setup_cost;
	gather->path.total_cost = cpath->path.total_cost + parallel_setup_cost;
	/* a leader that does not take part has to be sent the rows */
	if (!parallel_leader_participation)
		gather->path.total_cost += parallel_tuple_cost * rows;
	return &gather->path;
}

/*
 * Adds a path that stands for the whole grouping, if it is any good.
 *
 * It competes with core's as add_path() would have it, but with core's
 * hashing charged what it takes, see grouping_undercharge(): false, if one of
 * core's is cheaper; those that are worse in every respect are dropped, as
 * their own cost would let them win.
 */
static bool
compete(PlanInfo *info, Path *ours, List *core_paths, RelOptInfo *output_rel,
		const char **refusal)
{
	Cost		total = ours->total_cost;
	ListCell   *lc;

	foreach(lc, core_paths)
	{
		Path	   *path = lfirst(lc);
		Cost		core_total = path->total_cost + grouping_undercharge(info, path);

		if (core_total <= total)
		{
			*refusal = psprintf("its estimated cost of %.0f is not below the %.0f of PostgreSQL's own plan",
								total, core_total);
			return false;
		}
	}
	foreach(lc, core_paths)
	{
		Path	   *path = lfirst(lc);

		/* sorted output, or an early first row, may be worth the cost above */
		if (path->pathkeys == NIL &&
			path->startup_cost + grouping_undercharge(info, path) >=
			ours->startup_cost)
			output_rel->pathlist = list_delete_ptr(output_rel->pathlist, path);
		else
		{
			/* what is within 1 % is the same to add_path(), and sorted better */
			total = Min(total, path->total_cost * 0.98);
		}
	}
	ours->startup_cost = Min(ours->startup_cost, total);
	ours->total_cost = total;
	return true;
}

/*
 * Does a path of core's cost less than any of ours, whatever that would be?  Ours
 * cost the setup at least.  For queries that take microseconds, so that looking for
 * our paths does not take a tenth of that.
 */
bool
gpurhh_core_is_cheap(PlanInfo *info, RelOptInfo *output_rel)
{
	ListCell   *lc;

	/* it is not known yet what these take beyond what core charges */
	if (info->root->numOrderedAggs > 0)
		return false;
	foreach(lc, output_rel->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (!gpurhh_is_disabled(path) &&
			path->total_cost + grouping_undercharge(info, path) <= gpurhh_setup_cost)
			return true;
	}
	return false;
}

/*
 * Adds the paths: one process does it all; several feed and the leader emits;
 * and several feed and emit, for whatever may run in parallel above.  NULL, or
 * why there is none for the whole of it.
 */
const char *
gpurhh_add_agg_paths(PlanInfo *info, RelOptInfo *output_rel, List *having)
{
	List	   *core_paths = list_copy(output_rel->pathlist);
	Path	   *best;
	GroupEstimate groups;
	const char *refusal = NULL;

	set_pathtarget_cost_width(info->root, info->child_target);
	estimate_groups(info, &groups);
	/* it could be done, with strings in temporary files, but not as fast as core */
	if (groups.string_bytes > get_hash_memory_limit())
		return psprintf("strings that may be minima or maxima are estimated to take %.0f kB, more than the %.0f kB of work_mem and hash_mem_multiplier",
						ceil(groups.string_bytes / 1024),
						get_hash_memory_limit() / 1024.0);
	if (groups.key_string_bytes > get_hash_memory_limit())
		return psprintf("strings of grouping columns and DISTINCT arguments are estimated to take %.0f kB, more than the %.0f kB of work_mem and hash_mem_multiplier",
						ceil(groups.key_string_bytes / 1024),
						get_hash_memory_limit() / 1024.0);
	best = &make_agg_path(info, output_rel, having, info->input, &groups,
						  groups.emitted, false)->path;
	if (output_rel->consider_parallel && info->partial_input != NULL)
	{
		Path	   *partial = info->partial_input;
		double		divisor = parallel_divisor(partial->parallel_workers);
		Path	   *gather;

		if (!info->one_emitter)
			add_partial_path(output_rel,
							 &make_agg_path(info, output_rel, having,
											partial, &groups,
											ceil(groups.emitted / divisor),
											false)->path);
		gather = make_gather_path(info, output_rel,
								  make_agg_path(info, output_rel, having,
												partial, &groups,
												groups.emitted, true));
		/* only the better one, as it tells which of core's are of no use */
		if (gather->total_cost < best->total_cost)
			best = gather;
	}
	if (compete(info, best, core_paths, output_rel, &refusal))
		add_path(output_rel, best);
	return refusal;
}

/*
 * The conditions of HAVING in the order in which core evaluates them, cheap
 * ones first: it decides which of two errors is raised, or none.
 */
static List *
order_having(PlannerInfo *root, List *having)
{
	List	   *ordered = NIL;
	ListCell   *lc;

	foreach(lc, having)
	{
		Node	   *clause = lfirst(lc);
		QualCost	cost;
		int			at;

		cost_qual_eval_node(&cost, clause, root);
		for (at = list_length(ordered); at > 0; at--)
		{
			QualCost	other;

			cost_qual_eval_node(&other, list_nth(ordered, at - 1), root);
			if (cost.per_tuple >= other.per_tuple)
				break;
		}
		ordered = list_insert_nth(ordered, at, clause);
	}
	return ordered;
}

static Plan *
plan_agg_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
			  List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *cscan = makeNode(CustomScan);
	const GpuAggPath *private = linitial(best_path->custom_private);

	if (gpurhh_refusal_collector != NULL)
	{
		ListCell   *lc;

		foreach(lc, gpurhh_refusal_collector->refusals)
		{
			GpuRefusal *refusal = lfirst(lc);

			if (refusal->grouping == private->grouping)
				refusal->planned = true;
		}
	}

	/* tlist is NIL when a projection goes on top; the scan tuple suffices */
	cscan->scan.plan.targetlist = tlist;
	cscan->scan.plan.qual = order_having(root, private->having);
	cscan->scan.scanrelid = 0;
	cscan->flags = best_path->flags;
	cscan->custom_scan_tlist = private->scan_tlist;
	cscan->custom_private = list_make1(private->plan);
	cscan->methods = GetCustomScanMethods(GPUAGG_NODE_NAME, false);
	outerPlan(&cscan->scan.plan) = linitial(custom_plans);
	gpurhh_note_plan(cscan, outerPlan(&cscan->scan.plan));
	if ((cscan->flags & CUSTOMPATH_SUPPORT_PROJECTION) == 0)
		gpurhh_note_keys(cscan);
	return &cscan->scan.plan;
}
