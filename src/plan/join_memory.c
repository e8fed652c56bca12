/*-------------------------------------------------------------------------
 *
 * join_memory.c
 *		What is remembered of joins while a query is planned: of the call of the planner, of
 *		the query level, and of each relation.
 *
 * It belongs to one call of the planner.  It is in the planner's memory, and is forgotten
 * when the planner is done (gpurhh_begin_pipelines).  Relations are found by their address,
 * which stays while that call lasts; the genetic search, which frees them, is left alone.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

#include "plan/join_path.h"
#include "settings.h"

typedef struct RememberedRelation
{
	RelOptInfo *rel;
	GpuPipeline *pipeline;
	char		status;
} RememberedRelation;

#define SH_PREFIX remembered
#define SH_ELEMENT_TYPE RememberedRelation
#define SH_KEY_TYPE RelOptInfo *
#define SH_KEY rel
#define SH_HASH_KEY(tb, key) gpurhh_hash_pointer(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

GpuPipelines *gpurhh_pipelines = NULL;

/* ---------- relations ---------- */

/*
 * To be called around each call of the planner.  Returns what belongs to the call around
 * that, which is to be given to gpurhh_end_pipelines().
 */
GpuPipelines *
gpurhh_begin_pipelines(void)
{
	GpuPipelines *outer = gpurhh_pipelines;

	gpurhh_pipelines = palloc0(sizeof(GpuPipelines));
	return outer;
}

void
gpurhh_end_pipelines(GpuPipelines *outer)
{
	gpurhh_pipelines = outer;
}

GpuPipeline *
gpurhh_make_pipeline(RelOptInfo *rel)
{
	GpuPipeline *pipeline = palloc0(sizeof(GpuPipeline));

	pipeline->rel = rel;
	return pipeline;
}

/*
 * The join relation's pipeline.  If there is none, NULL, or with make a new one, which has no way
 * yet.
 */
GpuPipeline *
gpurhh_find_remembered(GpuPipelines *level, RelOptInfo *rel, bool make)
{
	RememberedRelation *entry;
	bool		found;

	if (level->relations == NULL)
	{
		if (!make)
			return NULL;
		level->relations = remembered_create(level->root->planner_cxt, 8, NULL);
		level->recent = palloc0(sizeof(GpuPipeline *) * RECENT_RELATIONS);
	}
	if (make)
	{
		entry = remembered_insert(level->relations, rel, &found);
		if (!found)
			entry->pipeline = gpurhh_make_pipeline(rel);
	}
	else
		entry = remembered_lookup(level->relations, rel);
	if (entry == NULL)
		return NULL;
	level->recent[gpurhh_hash_pointer(rel) % RECENT_RELATIONS] = entry->pipeline;
	return entry->pipeline;
}

/* ---------- query levels ---------- */

/*
 * Is it the recursive term of a WITH RECURSIVE?  That is run again for the rows of each
 * iteration; core keeps the tables of hash joins from one to the next, and a device the
 * maps of none.
 */
static bool
is_recursive_term(PlannerInfo *root)
{
	ListCell   *lc;

	if (root->parent_root == NULL || root->parent_root->wt_param_id < 0)
		return false;
	foreach(lc, root->parse->rtable)
	{
		if (lfirst_node(RangeTblEntry, lc)->self_reference)
			return true;
	}
	return false;
}

/*
 * Why no device is to do any of a query level's joins, or NULL.  The genetic search frees
 * its join relations, so nothing can be remembered of them.
 */
static const char *
level_problem(PlannerInfo *root)
{
	CmdType		command = root->parse->commandType;

	if (!enable_gpu_hashjoin)
		return "enable_gpu_hashjoin is off";
	if (!enable_hashjoin)
		return "enable_hashjoin is off";
	if (root->join_search_private != NULL)
		return "the genetic search orders them";
	if (is_recursive_term(root))
		return "the recursive term of WITH RECURSIVE is run again and again";
	if (command != CMD_SELECT && command != CMD_INSERT)
		return "UPDATE, DELETE and MERGE are not supported";
	return root->rowMarks != NIL ? "their rows are locked" : NULL;
}

static bool
has_volatile_walker(Node *node, PlannerInfo *root)
{
	if (node == NULL)
		return false;
	/* planned already, so its expressions are no longer below this node */
	if (IsA(node, SubPlan))
	{
		PlannerInfo *subroot = list_nth(root->glob->subroots, ((SubPlan *) node)->plan_id - 1);

		if (contain_volatile_functions((Node *) subroot->parse))
			return true;
	}
	return expression_tree_walker(node, has_volatile_walker, root);
}

static bool
has_volatile(PlannerInfo *root, Node *node)
{
	return contain_volatile_functions(node) || has_volatile_walker(node, root);
}

/*
 * Is a volatile function run to make the rows that a query level joins?  If a build side has
 * no room, core's joins read all sides from their beginning, so it would be run twice for
 * some of them: a sequence would go on, a notice come again.  Core keeps the rows of functions
 * in FROM, and of CTEs.
 */
static bool
runs_volatile(PlannerInfo *root)
{
	ListCell   *lc;

	if (has_volatile(root, (Node *) root->parse->jointree))
		return true;
	foreach(lc, root->parse->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (contain_volatile_functions((Node *) rte->subquery) ||
			has_volatile(root, (Node *) rte->values_lists) ||
			has_volatile(root, (Node *) rte->securityQuals))
			return true;
	}
	return false;
}

/* Begins to remember what there is to know of another query level than before. */
void
gpurhh_look_at_level(PlannerInfo *root)
{
	GpuPipelines *level = gpurhh_pipelines;

	if (level->glob != root->glob)
	{
		level->glob = root->glob;
		level->relations = NULL;
		level->recent = NULL;
		level->clauses = NULL;
	}
	level->root = root;
	level->wanted = level_problem(root) == NULL;
	level->possible_share = gpurhh_possible_share(root, NULL);
	level->knows_joins = false;
}

/* Finds out what the joins of that level need to be known of. */
void
gpurhh_look_at_joins(GpuPipelines *level)
{
	PlannerInfo *root = level->root;

	level->scans = palloc0(sizeof(GpuPipeline *) * root->simple_rel_array_size);
	level->core_joins = gpurhh_has_core_joins(level);
	level->runs_volatile = runs_volatile(root);
	level->knows_joins = true;
}

/* ---------- why not ---------- */

/* Notes what is in the way of a join relation's joins, for whoever asks. */
void
gpurhh_refuse_joins(PlannerInfo *root, RelOptInfo *rel, Obstacle obstacle, const char *fmt,...)
{
	GpuPipeline *pipeline;
	StringInfoData text;
	int			needed;

	if (!gpurhh_collects_refusals())
		return;
	pipeline = gpurhh_remembered(gpurhh_pipelines, rel, true);
	if (pipeline->obstacle >= obstacle)
		return;
	initStringInfo(&text);
	do
	{
		va_list		args;

		va_start(args, fmt);
		needed = appendStringInfoVA(&text, fmt, args);
		va_end(args);
		if (needed > 0)
			enlargeStringInfo(&text, needed);
	} while (needed > 0);
	pipeline->obstacle = obstacle;
	pipeline->unjoined = text.data;
}

/*
 * Why no device does the joins of a query level, all paths of which have been made; NULL:
 * it has no joins.
 */
const char *
gpurhh_unjoined(PlannerInfo *root)
{
	RelOptInfo *rel = NULL;
	GpuPipelines *level;
	GpuPipeline *pipeline;
	const char *problem = level_problem(root);

	if (bms_num_members(root->all_baserels) > 1)
		rel = find_join_rel(root, gpurhh_all_relids(root));
	if (rel == NULL || IS_DUMMY_REL(rel))
		return NULL;
	level = gpurhh_joins_of_level(root);
	pipeline = problem == NULL && level != NULL ? gpurhh_remembered(level, rel, false) : NULL;
	if (pipeline != NULL && pipeline->unjoined != NULL)
		problem = pipeline->unjoined;
	return problem != NULL ? problem : "the genetic search has ordered them";
}
