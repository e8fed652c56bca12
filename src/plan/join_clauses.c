/*-------------------------------------------------------------------------
 *
 * join_clauses.c
 *		By which clauses a device can join: which are keys, which are conditions that it can
 *		compute, and which only core can look at.
 *
 * The same clause comes with many join relations, so what is found out of it is remembered.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"

#include "compat.h"
#include "plan/join_path.h"


/* What a join clause is to a device, apart from being a key. */
typedef enum ClauseUse
{
	CLAUSE_UNKNOWN,				/* nobody has asked, as of most keys */
	CLAUSE_CONDITION,			/* a condition that it can compute */
	CLAUSE_OF_CORE				/* one that it cannot */
} ClauseUse;

/*
 * What is remembered of a join clause, because the same one comes with many join
 * relations: can a device join by it, and by which columns, or compute it?
 */
typedef struct RememberedClause
{
	RestrictInfo *clause;
	bool		is_key;
	int			relids[2];		/* then: of the left column and of the right one */
	ClauseUse	use;
	const char *key_problem;	/* of an equality of columns: why it is no key; or NULL */
	const char *condition_problem;	/* with CLAUSE_OF_CORE */
	bool		may_be_bad;		/* of a condition: a device may have to ask core */
	char		status;
} RememberedClause;

#define SH_PREFIX clauses
#define SH_ELEMENT_TYPE RememberedClause
#define SH_KEY_TYPE RestrictInfo *
#define SH_KEY clause
#define SH_HASH_KEY(tb, key) gpurhh_hash_pointer(key)
#define SH_EQUAL(tb, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* What there is to remember of a join clause. */
static RememberedClause *
look_at_clause(GpuPipelines *level, RestrictInfo *clause)
{
	bool		found;
	RememberedClause *entry;
	OpExpr	   *op = (OpExpr *) clause->clause;
	GpuColumn	how[2];

	if (level->clauses == NULL)
		level->clauses = clauses_create(level->root->planner_cxt, 8, NULL);
	entry = clauses_insert(level->clauses, clause, &found);
	if (found)
		return entry;
	entry->is_key = false;
	entry->use = CLAUSE_UNKNOWN;
	entry->key_problem = NULL;
	if (!clause->can_join || !OidIsValid(clause->hashjoinoperator))
		return entry;
	for (int i = 0; i < 2; i++)
	{
		Var		   *column = gpurhh_column_of(list_nth(op->args, i));

		if (column == NULL)
			return entry;
		entry->relids[i] = column->varno;
	}
	entry->is_key = gpurhh_resolve_equality(op, how, &entry->key_problem);
	return entry;
}

/* Is a join clause something that a device can join the rows that come this way by? */
static bool
is_key(GpuPipelines *level, const JoinParts *parts, Relids hidden, RestrictInfo *clause)
{
	const RememberedClause *known = look_at_clause(level, clause);
	int			probe;

	if (!known->is_key)
		return false;
	/* it is of a WHERE above the outer join, not of its ON */
	if (IS_OUTER_JOIN(parts->jointype) && RINFO_IS_PUSHED_DOWN(clause, parts->joinrel->relids))
		return false;
	probe = bms_is_member(known->relids[0], parts->outerrel->relids) ? 0 : 1;
	if (!bms_is_member(known->relids[probe], parts->outerrel->relids) ||
		!bms_is_member(known->relids[1 - probe], parts->innerrel->relids))
		return false;
	/* columns that are equal may stand for each other in clauses, but not here */
	return !bms_is_member(known->relids[probe], hidden);
}

/* Can a device compute a clause? */
static bool
is_computed(GpuPipelines *level, RestrictInfo *clause)
{
	RememberedClause *known = look_at_clause(level, clause);

	if (known->use == CLAUSE_UNKNOWN)
		known->use = gpurhh_is_computed(level->root, clause->clause, &known->may_be_bad,
										&known->condition_problem) ?
			CLAUSE_CONDITION : CLAUSE_OF_CORE;
	return known->use == CLAUSE_CONDITION;
}

/* Notes why a clause that is neither a key nor a condition is in the way. */
static void
refuse_clause(GpuPipelines *level, RelOptInfo *joinrel, RestrictInfo *clause)
{
	const RememberedClause *known = look_at_clause(level, clause);
	const char *text = gpurhh_clause_text(level->root, clause->clause);

	if (known->key_problem != NULL)
		gpurhh_refuse_joins(level->root, joinrel, OBSTACLE_CLAUSE, "join key %s %s", text, known->key_problem);
	else if (known->use == CLAUSE_OF_CORE)
		gpurhh_refuse_joins(level->root, joinrel, OBSTACLE_CLAUSE, "join condition %s %s", text,
							known->condition_problem);
	else
		gpurhh_refuse_joins(level->root, joinrel, OBSTACLE_CLAUSE,
							"join condition %s has columns that rows do not have there", text);
}

/*
 * Is a clause of a join part of what a match is?  Without one there is a row, too, or none is
 * wanted, so it is not the same to drop rows that do not meet it.
 */
static bool
decides_matches(const JoinParts *parts, const RestrictInfo *clause)
{
	const JoinType jointype = parts->jointype;

	return jointype == JOIN_SEMI || gpurhh_is_right_semi(jointype) ||
		(IS_OUTER_JOIN(jointype) && !RINFO_IS_PUSHED_DOWN(clause, parts->joinrel->relids));
}

/*
 * Can a device look whether a clause that is no key is met: for rows of the output, or, if it
 * decides what a match is, for pairs of rows?
 */
static bool
is_condition(GpuPipelines *level, const JoinParts *parts, Relids hidden, RestrictInfo *clause)
{
	const JoinType jointype = parts->jointype;

	/* above an antijoin there is nothing left of the other side to look at */
	if ((jointype == JOIN_ANTI || gpurhh_is_right_anti(jointype)) && !decides_matches(parts, clause))
		return false;
	/* columns that are equal may stand for each other, as in is_key() */
	if (clause->pseudoconstant || bms_overlap(clause->clause_relids, hidden))
		return false;
	return is_computed(level, clause);
}

/* Is it a condition that says what a match is, and may be an error for some rows? */
static bool
is_bad_match(GpuPipelines *level, const JoinParts *parts, RestrictInfo *clause)
{
	return decides_matches(parts, clause) && !look_at_clause(level, clause)->is_key &&
		is_computed(level, clause) && look_at_clause(level, clause)->may_be_bad;
}

/* Does a join of these parts have such a condition? */
bool
gpurhh_has_bad_match(GpuPipelines *level, JoinParts *parts)
{
	ListCell   *lc;

	if (parts->knows_bad)
		return parts->bad;
	parts->knows_bad = true;
	foreach(lc, parts->extra->restrictlist)
		parts->bad |= is_bad_match(level, parts, lfirst(lc));
	return parts->bad;
}

/* May a device join by any two members of an equivalence class? */
static bool
is_class_of_keys(const EquivalenceClass *ec)
{
	ListCell   *lc;

	foreach(lc, ec->ec_members)
	{
		const EquivalenceMember *member = lfirst(lc);
		GpuColumn	column;
		const char *problem;

		if (member->em_is_child)
			continue;
		if (gpurhh_column_of(member->em_expr) == NULL ||
			!gpurhh_resolve_type((Node *) member->em_expr, &column, &problem))
			return false;
	}
	return true;
}

/*
 * May a query level have joins that only core can do?  This need not be exact: if it is
 * wrong, some paths are considered in vain, or not considered.
 */
bool
gpurhh_has_core_joins(GpuPipelines *level)
{
	PlannerInfo *root = level->root;
	ListCell   *lc;

	foreach(lc, root->join_info_list)
	{
		if (lfirst_node(SpecialJoinInfo, lc)->jointype == JOIN_FULL)
			return true;
	}
	foreach(lc, root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst(lc);

		if (!ec->ec_has_const && bms_membership(ec->ec_relids) == BMS_MULTIPLE &&
			!is_class_of_keys(ec))
			return true;
	}
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rel_array[i] == NULL)
			continue;
		foreach(lc, root->simple_rel_array[i]->joininfo)
		{
			if (!look_at_clause(level, lfirst(lc))->is_key &&
				!is_computed(level, lfirst(lc)))
				return true;
		}
	}
	return false;
}

/*
 * Can a device join the rows of the outer part, of which columns of these relations are hidden,
 * with those of the inner one?  Then parts->keys are the clauses by whose equality it finds rows
 * that may match, and parts->matches others that say whether they do.
 */
static bool
find_keys(GpuPipelines *level, JoinParts *parts, Relids hidden)
{
	RelOptInfo *joinrel = parts->joinrel;
	List	   *clauses = parts->extra->restrictlist;
	ListCell   *lc;

	parts->keys = NIL;
	parts->matches = NIL;
	foreach(lc, clauses)
	{
		if (is_key(level, parts, hidden, lfirst(lc)))
			parts->keys = lappend(parts->keys, lfirst(lc));
		else if (!is_condition(level, parts, hidden, lfirst(lc)))
		{
			refuse_clause(level, joinrel, lfirst(lc));
			return false;
		}
		else if (decides_matches(parts, lfirst(lc)))
			parts->matches = lappend(parts->matches, lfirst(lc));
	}
	if (parts->keys == NIL)
	{
		foreach(lc, clauses)
		{
			if (look_at_clause(level, lfirst(lc))->key_problem != NULL)
				refuse_clause(level, joinrel, lfirst(lc));
		}
		gpurhh_refuse_joins(level->root, joinrel, OBSTACLE_CLAUSE,
							"there is no equality of columns to join by");
	}
	else if (list_length(parts->keys) > RHH_MAX_KEYS)
		gpurhh_refuse_joins(level->root, joinrel, OBSTACLE_CLAUSE,
							"there are more than %d join keys", RHH_MAX_KEYS);
	return parts->keys != NIL && list_length(parts->keys) <= RHH_MAX_KEYS;
}

/* The same, remembered for the next way. */
bool
gpurhh_has_keys(GpuPipelines *level, JoinParts *parts, Relids hidden)
{
	if (!parts->knows_keys || !bms_equal(parts->hidden, hidden))
	{
		parts->has_keys = find_keys(level, parts, hidden);
		parts->hidden = hidden;
		parts->knows_keys = true;
	}
	return parts->has_keys;
}
