/*-------------------------------------------------------------------------
 *
 * join_tree.c
 *		Which columns of which plans are fed, so that a device can do the hash joins
 *		below a node.
 *
 *		GpuHashAgg
 *		  -> Hash Join				the second join
 *			   -> Hash Join			the first join
 *					-> (any)		the probe side
 *					-> Hash
 *						 -> (any)	the first build side
 *			   -> Hash
 *					-> (any)		the second build side
 *
 * The planner has seen to it that each join is of a kind that devices know, and that each
 * column which the node or a join needs is a column of one of the sides, or computed of
 * the columns of one side, or of the joins' output by a program (join_program.c).  This
 * file follows the columns down through the target lists.  It checks again what would
 * lead to wrong rows, and returns NULL for a plan that it does not know.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "storage/bufmgr.h"

#include "compat.h"
#include "exec/join_input.h"

/* A column of a side: 0 is the probe side, j + 1 the build side of join j. */
typedef struct SideColumn
{
	int			side;
	int			column;
} SideColumn;

static JoinSide *
side_of(JoinInput *input, int side)
{
	return side == 0 ? &input->probe : &input->joins[side - 1].build;
}

/*
 * Follows an expression over the inputs of join j down to the side that has it as a
 * column, and returns that column's attribute.  -1: it is no column of a side.
 */
static int
find_attribute(JoinInput *input, int j, Expr *expr, int *side)
{
	for (;;)
	{
		Plan	   *outer = outerPlan(input->joins[j].node->js.ps.plan);
		Var		   *var = (Var *) gpurhh_without_relabel((Node *) expr);

		if (!IsA(var, Var) || var->varattno < 1)
			return -1;
		if (var->varno == INNER_VAR)
		{
			*side = j + 1;
			return var->varattno - 1;
		}
		if (var->varno != OUTER_VAR)
			return -1;
		if (j == 0)
		{
			*side = 0;
			return var->varattno - 1;
		}
		if (var->varattno > list_length(outer->targetlist))
			return -1;
		expr = list_nth_node(TargetEntry, outer->targetlist, var->varattno - 1)->expr;
		j--;
	}
}

/*
 * What reads columns of sides: something that is made of the rows that come out of the first
 * n_joins joins; or the condition of the join behind these, which has a row of that one's build
 * side, too.
 */
typedef struct Reading
{
	int			n_joins;
	bool		of_match;
} Reading;

/*
 * Are there columns of a side then?  Of a semijoin or an antijoin the build side has no row to
 * give but to its condition; what comes out of a right one has no row of the sides before.
 */
static bool
has_columns(const JoinInput *input, int side, Reading reading)
{
	if (side > reading.n_joins)
		return reading.of_match && side == reading.n_joins + 1;
	if (side > 0 && !rhh_has_build_columns(input->join_spec.joins[side - 1].kind))
		return false;
	for (int j = side; j < reading.n_joins; j++)
	{
		if (!rhh_has_outer_columns(input->join_spec.joins[j].kind))
			return false;
	}
	return true;
}

/* May the side have no row then, so that its columns are NULL? */
static bool
may_be_missing(const JoinInput *input, int side, Reading reading)
{
	if (side > 0 && side <= reading.n_joins &&
		rhh_keeps_outer(input->join_spec.joins[side - 1].kind))
		return true;
	for (int j = side; j < reading.n_joins; j++)
	{
		if (rhh_returns_unmatched(input->join_spec.joins[j].kind))
			return true;
	}
	return false;
}

/* The number of a side's column with this attribute, encoded so; -1: too many. */
static int
add_column(JoinSide *side, GpuColumn column, int attribute, bool is_key)
{
	bool		decimal = column.encoding == GPU_ENC_DECIMAL;

	column.attribute = attribute;
	for (int c = 0; c < side->n_columns; c++)
	{
		if (side->columns[c].encoding == column.encoding &&
			side->columns[c].parameter == column.parameter &&
			side->columns[c].attribute == attribute &&
			(!decimal || side->is_key[c] == is_key))
			return c;
	}
	if (side->n_columns == RHH_MAX_COLUMNS)
		return -1;
	side->columns[side->n_columns] = column;
	side->is_key[side->n_columns] = is_key;
	if (gpurhh_is_string(column.encoding) || (decimal && is_key))
		side->n_strings++;
	return side->n_columns++;
}

/* An expression over the inputs of a join, on its way to columns of sides. */
typedef struct SideFinder
{
	JoinInput  *input;
	int			join;
	bool		failed;			/* it has something that is no column of a side */
} SideFinder;

static Node *
side_mutator(Node *node, void *arg)
{
	SideFinder *finder = arg;
	Var		   *var;
	int			side = 0;
	int			attribute;

	if (node == NULL || finder->failed)
		return node;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, side_mutator, arg);
	attribute = find_attribute(finder->input, finder->join, (Expr *) node, &side);
	finder->failed = attribute < 0;
	var = copyObject((Var *) node);
	var->varno = side + 1;
	var->varattno = attribute + 1;
	return (Node *) var;
}

/*
 * An expression over the inputs of join j, with columns of sides instead: attribute a of
 * side s, both from 0, is the Var s + 1, a + 1.  NULL: it has something else.
 */
static Expr *
over_sides(JoinInput *input, int j, Expr *expr)
{
	SideFinder	finder = {.input = input, .join = j};
	Node	   *found = side_mutator((Node *) expr, &finder);

	return finder.failed ? NULL : (Expr *) found;
}

/* An expression over sides on its way to the columns of one. */
typedef struct Lowering
{
	int			side;			/* of the columns found so far; -1: none */
	bool		failed;			/* they are of several sides */
} Lowering;

/* What the child of a side returns is OUTER_VAR for that side. */
static Node *
lower_mutator(Node *node, void *arg)
{
	Lowering   *lowering = arg;
	Var		   *var;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, lower_mutator, arg);
	var = copyObject((Var *) node);
	lowering->failed |= lowering->side >= 0 && lowering->side != var->varno - 1;
	lowering->side = var->varno - 1;
	var->varno = OUTER_VAR;
	return (Node *) var;
}

/*
 * The attribute of an expression over sides that has columns of one of them, or none; -1,
 * with *why: it has none.  strict: where a column is NULL, the expression is.
 */
static int
add_computed(JoinInput *input, Expr *expr, bool strict, Reading reading, int *side,
			 const char **why)
{
	Lowering	lowering = {.side = -1};
	Node	   *lowered = lower_mutator((Node *) expr, &lowering);
	JoinSide   *to;
	int			i = 0;
	ListCell   *lc;

	if (lowering.failed)
	{
		*why = "an expression of both sides is computed after a join";
		return -1;
	}
	*side = Max(lowering.side, 0);
	/* without a match it may be something else than NULL, and so is what has no column */
	if (!has_columns(input, *side, reading) ||
		(may_be_missing(input, *side, reading) && (!strict || lowering.side < 0)))
	{
		*why = "an expression is computed after an outer join";
		return -1;
	}
	to = side_of(input, *side);
	if (to->computes_none)
	{
		*why = "an expression of a side that is fed by rows is computed after a join";
		return -1;
	}
	foreach(lc, to->computed)
	{
		if (equal(lfirst(lc), lowered))
			break;
		i++;
	}
	if (lc == NULL)
		to->computed = lappend(to->computed, lowered);
	return list_length(to->child->plan->targetlist) + i;
}

/* Finds the column for an attribute of a side, to be fed so.  False, with *why: there is none. */
static bool
find_side_column(JoinInput *input, int side, int attribute, GpuColumn how, bool is_key,
				 Reading reading, SideColumn *found, const char **why)
{
	if (!has_columns(input, side, reading))
	{
		*why = "a column of a side is used that has none";
		return false;
	}
	/* without a match it would have to be false */
	if (may_be_missing(input, side, reading) && gpurhh_encodings[how.encoding].role == ROLE_FILTER)
	{
		*why = "a filter is computed after an outer join";
		return false;
	}
	found->side = side;
	found->column = add_column(side_of(input, side), how, attribute, is_key);
	if (found->column < 0)
		*why = "there are too many columns";
	return found->column >= 0;
}

/* The same for an expression over the inputs of join j, a key or in the joins' output. */
static bool
find_column(JoinInput *input, int j, Expr *expr, GpuColumn how, bool is_key,
			Reading reading, SideColumn *found, const char **why)
{
	int			side;
	int			attribute = find_attribute(input, j, expr, &side);

	if (attribute < 0 && j < input->n_joins - 1)
		*why = "a key of a join is computed";
	else if (attribute < 0)
	{
		expr = over_sides(input, j, expr);
		if (expr != NULL)
			attribute = add_computed(input, expr, false, reading, &side, why);
		else
			*why = "an expression is computed below a join";
	}
	return attribute >= 0 &&
		find_side_column(input, side, attribute, how, is_key, reading, found, why);
}

/* ---------- programs ---------- */

/* What the finder of a program's leaves needs. */
typedef struct LeafFinder
{
	JoinInput  *input;
	SideColumn *columns;		/* of the map, by number; those of leaves are added */
	int			join;			/* of a condition that says what a match is, with its own
								 * columns: of which join; else -1 */
	Node	   *exprs[RHH_MAX_COLUMNS]; /* then: these columns, */
	GpuColumn	how[RHH_MAX_COLUMNS];	/* and how they are fed */
	bool		only_nulls[RHH_MAX_COLUMNS];	/* what is fed only says whether it is NULL */
	const char *why;
} LeafFinder;

static Reading
leaf_reading(const LeafFinder *finder)
{
	if (finder->join < 0)
		return (Reading){.n_joins = finder->input->n_joins};
	return (Reading){.n_joins = finder->join, .of_match = true};
}

/*
 * The attribute that a leaf is of a side; -1: it is none.  *how becomes how it is fed, and
 * *is_null whether that only says where the leaf is NULL.
 */
static int
leaf_attribute(LeafFinder *finder, Node *expr, bool only_null, int *side, GpuColumn *how,
			   bool *is_null)
{
	Var		   *var = (Var *) expr;

	*is_null = false;
	if (gpurhh_is_fed_condition((Expr *) expr))
	{
		*how = (GpuColumn){GPU_ENC_BOOL};
		return add_computed(finder->input, (Expr *) expr, !contain_nonstrict_functions(expr),
							leaf_reading(finder), side, &finder->why);
	}
	if (!IsA(expr, Var))
		return -1;
	if (gpurhh_resolve_operand(expr, only_null, how))
	{
		*side = var->varno - 1;
		return var->varattno - 1;
	}
	if (!only_null)
		return -1;
	*is_null = true;
	*how = (GpuColumn){GPU_ENC_BOOL};
	return add_computed(finder->input, gpurhh_null_or_true(expr), true, leaf_reading(finder), side,
						&finder->why);
}

/* The vector type of a leaf that is fed so. */
static VectorType
leaf_type(GpuColumn how, bool is_null)
{
	return is_null ? VECTOR_ANY :
		how.encoding == GPU_ENC_DECIMAL && GPURHH_DECIMAL_LIMBS(how.parameter) > 1 ?
		VECTOR_DECIMAL128 : gpurhh_encodings[how.encoding].vector;
}

/* gpurhh_vector_compile()'s question about an expression over sides. */
static bool
find_leaf(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	LeafFinder *finder = arg;
	JoinInput  *input = finder->input;
	rhh_map_spec *spec = &input->map_spec;
	GpuColumn	how;
	GpuColumn	limbs[GPURHH_MAX_LIMBS];
	bool		is_null;
	int			n;
	int			side;
	int			attribute;

	for (int i = 0; i < input->program.n_leaves; i++)
	{
		const JoinLeaf *leaf = &input->program.leaves[i];

		if (equal(leaf->expr, expr))
		{
			*column = leaf->column;
			*type = leaf_type(leaf->how, leaf->only_null);
			return only_null || *type != VECTOR_ANY;
		}
	}
	attribute = leaf_attribute(finder, expr, only_null, &side, &how, &is_null);
	if (attribute < 0)
		return false;
	n = gpurhh_limb_columns(how, limbs);
	if (spec->n_columns + n > RHH_MAX_COLUMNS)
		return false;
	*column = spec->n_columns;
	for (int i = 0; i < n; i++)
	{
		if (!find_side_column(input, side, attribute, limbs[i], false, leaf_reading(finder),
							  &finder->columns[*column + i], &finder->why))
			return false;
		spec->column_bytes[*column + i] = gpurhh_encodings[limbs[i].encoding].bytes;
	}
	if (!gpurhh_join_add_leaf(&input->program, expr, how, is_null, *column))
		return false;
	spec->n_columns += n;
	*type = leaf_type(how, is_null);
	return true;
}

/* The same question about a condition that says what a match of a join is. */
static bool
find_match_leaf(Node *expr, bool only_null, int *column, VectorType *type, void *arg)
{
	LeafFinder *finder = arg;
	JoinInput  *input = finder->input;
	rhh_join   *join = &input->join_spec.joins[finder->join];
	uint32		first = join->n_condition_columns;
	GpuColumn	how;
	GpuColumn	limbs[GPURHH_MAX_LIMBS];
	bool		is_null;
	int			n;
	int			side;
	int			attribute;

	for (uint32 i = 0; i < first; i++)
	{
		/* the second limb and those that follow have no expression */
		if (finder->exprs[i] != NULL && equal(finder->exprs[i], expr))
		{
			*column = i;
			*type = leaf_type(finder->how[i], finder->only_nulls[i]);
			return only_null || *type != VECTOR_ANY;
		}
	}
	attribute = leaf_attribute(finder, expr, only_null, &side, &how, &is_null);
	if (attribute < 0)
		return false;
	n = gpurhh_limb_columns(how, limbs);
	if (first + n > RHH_MAX_COLUMNS)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (!find_side_column(input, side, attribute, limbs[i], false, leaf_reading(finder),
							  &finder->columns[first + i], &finder->why))
			return false;
	}
	finder->exprs[first] = expr;
	finder->how[first] = how;
	finder->only_nulls[first] = is_null;
	*column = first;
	*type = leaf_type(how, is_null);
	join->n_condition_columns += n;
	return true;
}

/*
 * Compiles an expression over sides, which is the condition of a join (j) or of their output
 * (-1).  NULL, with *why: no device can compute it.
 */
static VectorExpr *
compile(JoinInput *input, int j, Expr *expr, SideColumn *columns, const char **why)
{
	LeafFinder	finder = {.input = input, .columns = columns, .join = j};
	PlanState  *top = &input->joins[input->n_joins - 1].node->js.ps;
	VectorExpr *compiled = gpurhh_vector_compile(expr, top, 1,
												 j < 0 ? find_leaf : find_match_leaf,
												 &finder, why);

	if (compiled == NULL && finder.why != NULL)
		*why = finder.why;
	return compiled;
}

/* Does a condition in the ON of a join say which rows match, so that there may be none? */
static bool
decides_matches(const JoinInput *input, int j)
{
	return input->join_spec.joins[j].kind != RHH_JOIN_INNER;
}

/*
 * Has join j only those matches for which its conditions are true.  columns gets what these
 * read.  False, with *why: the device cannot do it.
 */
static bool
add_match_condition(JoinInput *input, int j, SideColumn *columns, const char **why)
{
	JoinStep   *join = &input->joins[j];
	const HashJoin *plan = (const HashJoin *) join->node->js.ps.plan;
	Expr	   *condition;
	VectorExpr *compiled;
	VectorType	type;

	if (plan->join.joinqual == NIL || !decides_matches(input, j))
		return true;
	condition = over_sides(input, j, make_ands_explicit(plan->join.joinqual));
	if (condition == NULL)
	{
		*why = "a condition of a join has something that is no column";
		return false;
	}
	compiled = compile(input, j, condition, columns, why);
	if (compiled == NULL ||
		!gpurhh_vector_program(compiled, &join->condition, false, &join->condition.filter, &type, why))
		return false;
	Assert(type == VECTOR_BOOL);
	join->condition.has_filter = true;
	input->may_be_bad |= rhh_program_may_be_bad(&join->condition);
	input->join_spec.joins[j].condition = &join->condition;
	return true;
}

/*
 * Has the device drop the rows of the joins' output for which the joins' further conditions
 * are not true.  That a row is dropped behind all joins, and not behind its own, makes no
 * difference: each join makes rows of every row of its outer input by itself.  It would make
 * one before a join that returns rows of its build side in the end, because the row might be
 * the match.  False, with *why: the device cannot do it.
 */
static bool
add_conditions(JoinInput *input, SideColumn *columns, const char **why)
{
	List	   *conditions = NIL;
	VectorExpr *compiled;
	ListCell   *lc;

	for (int j = 0; j < input->n_joins; j++)
	{
		const HashJoin *plan = (const HashJoin *) input->joins[j].node->js.ps.plan;

		if (((plan->join.joinqual != NIL && !decides_matches(input, j)) ||
			 plan->join.plan.qual != NIL) &&
			j + 1 < rhh_last_unmatched(&input->join_spec))
		{
			*why = "a condition comes before a join whose build side's rows are returned without a match";
			return false;
		}
		foreach(lc, decides_matches(input, j) ? plan->join.plan.qual :
				list_concat_copy(plan->join.joinqual, plan->join.plan.qual))
		{
			Expr	   *condition = over_sides(input, j, lfirst(lc));

			if (condition == NULL)
			{
				*why = "a condition of a join has something that is no column";
				return false;
			}
			conditions = lappend(conditions, condition);
		}
	}
	if (conditions == NIL)
		return true;
	compiled = compile(input, -1, make_ands_explicit(conditions), columns, why);
	return compiled != NULL &&
		gpurhh_join_add_filter(&input->program, conditions, compiled, why);
}

/*
 * Has the device compute the map's column of this number, of the joins' output.  False,
 * with *why: it cannot.
 */
static bool
compute_column(JoinInput *input, Expr *expr, GpuColumn how, int column,
			   SideColumn *columns, const char **why)
{
	Expr	   *over = over_sides(input, input->n_joins - 1, expr);
	VectorExpr *compiled;

	if (over == NULL)
	{
		*why = "an expression is computed below a join";
		return false;
	}
	compiled = compile(input, -1, over, columns, why);
	columns[column].side = -1;
	return compiled != NULL &&
		gpurhh_join_add_computed(&input->program, over, compiled, how, column, why);
}

/* Which columns of both sides have the keys of join j. */
static bool
find_keys(JoinInput *input, int j, SideColumn *outer_keys, const char **why)
{
	JoinStep   *join = &input->joins[j];
	HashJoin   *plan = (HashJoin *) join->node->js.ps.plan;
	ListCell   *lc;

	foreach(lc, plan->hashclauses)
	{
		OpExpr	   *clause = lfirst(lc);
		Var		   *outer = (Var *) gpurhh_without_relabel(linitial(clause->args));
		Var		   *inner = (Var *) gpurhh_without_relabel(lsecond(clause->args));
		uint32		k = join->spec.n_keys;
		GpuColumn	how[2];
		SideColumn	found;
		int			column;

		if (k == RHH_MAX_KEYS)
		{
			*why = "a join has too many keys";
			return false;
		}
		if (!gpurhh_resolve_equality(clause, how, why))
		{
			*why = psprintf("a key of a join %s", *why);
			return false;
		}
		if (!IsA(outer, Var) || outer->varno != OUTER_VAR || outer->varattno < 1 ||
			!IsA(inner, Var) || inner->varno != INNER_VAR || inner->varattno < 1)
		{
			*why = "a key of a join is no column";
			return false;
		}
		if (!find_column(input, j, (Expr *) outer, how[0], false, (Reading){.n_joins = j}, &found,
						 why))
			return false;
		outer_keys[k] = found;
		join->outer_keys[k] = how[0];
		join->outer_keys[k].attribute = outer->varattno - 1;
		column = add_column(&join->build, how[1], inner->varattno - 1, false);
		if (column < 0)
		{
			*why = "there are too many columns";
			return false;
		}
		join->spec.key_column[k] = column;
		join->spec.n_keys++;
	}
	return true;
}

/* The kind of a join that a device can do; 0: it cannot. */
static uint8
join_kind(const HashJoinState *node)
{
	const HashJoin *plan = (const HashJoin *) node->js.ps.plan;

	if (plan->join.plan.parallel_aware || plan->hashclauses == NIL)
		return 0;
	switch (plan->join.jointype)
	{
		case JOIN_INNER:
			return RHH_JOIN_INNER;
		case JOIN_LEFT:
			return RHH_JOIN_LEFT;
		case JOIN_SEMI:
			return RHH_JOIN_SEMI;
		case JOIN_ANTI:
			return RHH_JOIN_ANTI;
		case JOIN_RIGHT:
			return RHH_JOIN_RIGHT;
		case JOIN_FULL:
			return RHH_JOIN_FULL;
		default:
			break;
	}
	if (gpurhh_is_right_semi(plan->join.jointype))
		return RHH_JOIN_RIGHT_SEMI;
	return gpurhh_is_right_anti(plan->join.jointype) ? RHH_JOIN_RIGHT_ANTI : 0;
}

/*
 * Does one of the n_joins hash joins of the plan child return rows of its build side without a
 * match?  Then core must not be asked for the output of a part of the probe side.
 */
bool
gpurhh_join_returns_unmatched(const PlanState *child, int n_joins)
{
	for (; n_joins > 0 && IsA(child, HashJoinState); n_joins--)
	{
		if (rhh_returns_unmatched(join_kind((const HashJoinState *) child)))
			return true;
		child = outerPlanState(child);
	}
	return false;
}

/* Finds the joins and their sides; false, with *why: the tree is not one for a device. */
static bool
find_joins(JoinInput *input, PlanState *child, const char **why)
{
	for (int j = input->n_joins - 1; j >= 0; j--)
	{
		JoinStep   *join = &input->joins[j];

		if (!IsA(child, HashJoinState))
		{
			*why = "the child is not a chain of hash joins";
			return false;
		}
		join->node = (HashJoinState *) child;
		join->build.child = outerPlanState(innerPlanState(child));
		input->join_spec.joins[j].kind = join_kind(join->node);
		if (input->join_spec.joins[j].kind == 0)
		{
			*why = "a join is of a kind that devices do not know";
			return false;
		}
		child = outerPlanState(child);
	}
	input->probe.child = child;
	return true;
}

/* The number that rhh_join_spec has for a side's column. */
static uint16
numbered(const JoinInput *input, SideColumn column)
{
	int			number = column.column;

	if (column.side > 0)
		number += input->join_spec.n_columns;
	for (int j = 0; j < column.side - 1; j++)
		number += input->joins[j].build.n_columns;
	return number;
}

/*
 * Sides have all their columns: describes these for the device.  columns has the map's
 * columns, keys what the joins compare, and conditions what their conditions read.
 */
static void
describe(JoinInput *input, const SideColumn *columns,
		 SideColumn keys[RHH_MAX_JOINS][RHH_MAX_KEYS],
		 SideColumn conditions[RHH_MAX_JOINS][RHH_MAX_COLUMNS])
{
	rhh_join_spec *spec = &input->join_spec;
	const JoinSide *probe = &input->probe;

	spec->n_columns = probe->n_columns;
	for (int c = 0; c < probe->n_columns; c++)
		spec->column_bytes[c] = gpurhh_encodings[probe->columns[c].encoding].bytes;
	for (int j = 0; j < input->n_joins; j++)
	{
		JoinStep   *join = &input->joins[j];

		join->spec.n_columns = join->build.n_columns;
		for (int c = 0; c < join->build.n_columns; c++)
			join->spec.column_bytes[c] =
				gpurhh_encodings[join->build.columns[c].encoding].bytes;
		join->spec.expected_groups =
			Max(join->build.child->plan->plan_rows, 1.0);
		for (uint32 k = 0; k < join->spec.n_keys; k++)
			spec->joins[j].key_column[k] = numbered(input, keys[j][k]);
		for (uint32 c = 0; c < spec->joins[j].n_condition_columns; c++)
			spec->joins[j].condition_column[c] = numbered(input, conditions[j][c]);
	}
	for (uint32 c = 0; c < input->map_spec.n_columns; c++)
		spec->column[c] = columns[c].side < 0 ? RHH_COMPUTED : numbered(input, columns[c]);
	if (gpurhh_join_has_program(&input->program))
		spec->program = &input->program.program;
}

/*
 * Finds out whether a side's pages can be read, with the expressions that are to be fed of
 * them; else its rows are asked for.  False: its rows are, and then no expression can be
 * fed.
 */
static bool
find_pages(JoinSide *side, MemoryContext context)
{
	side->pages = gpurhh_page_feed_create(side->child, side->computed, side->n_columns,
										  side->columns, context, &side->why_rows);
	return side->pages != NULL || side->computed == NIL;
}

/* Chooses the joins whose build sides make filters; their keys are in these columns. */
static void
plan_filters(JoinInput *input, SideColumn keys[RHH_MAX_JOINS][RHH_MAX_KEYS],
			 MemoryContext context)
{
	for (int j = 0; j < input->n_joins; j++)
	{
		uint8		tested[RHH_MAX_KEYS];
		bool		all = true;

		for (uint32 k = 0; k < input->joins[j].spec.n_keys; k++)
		{
			all &= keys[j][k].side == 0;
			tested[k] = keys[j][k].column;
		}
		if (all)
			gpurhh_join_plan_filter(input, j, tested);
	}
	if (input->n_tested > 0)
		gpurhh_page_feed_add_keys(input->probe.pages, input->n_tested, input->tested, context);
}

/*
 * In a parallel plan: can the joins begin anew in one participant, when all have read?  What makes
 * rows may do more than to begin again, and it is not known what participants have made of rows that
 * they share.
 */
static bool
can_begin_anew(const JoinInput *input)
{
	for (int j = 0; j < input->n_joins; j++)
	{
		if (gpurhh_is_share_rows(input->joins[j].build.child))
			return false;
	}
	return gpurhh_can_begin_again(input->probe.child);
}

/*
 * computes_none: of these sides (0 is the probe side) no expression can be fed.  If that
 * turns out of one more, it is added, and NULL is returned, with *why being NULL.
 */
static JoinInput *
create(PlanState *child, int n_joins, const rhh_map_spec *spec,
	   const GpuColumn *columns, const bool *are_keys, bool key_filters, MemoryContext context,
	   Bitmapset **computes_none, const char **why)
{
	JoinInput  *input = palloc0(sizeof(JoinInput));
	List	   *targetlist = child->plan->targetlist;
	SideColumn	found[RHH_MAX_COLUMNS];
	SideColumn	keys[RHH_MAX_JOINS][RHH_MAX_KEYS];
	SideColumn	conditions[RHH_MAX_JOINS][RHH_MAX_COLUMNS];

	if (n_joins > RHH_MAX_JOINS)
	{
		*why = "there are too many joins";
		return NULL;
	}
	input->n_joins = input->join_spec.n_joins = n_joins;
	input->spec = spec;
	input->map_spec = *spec;
	if (!find_joins(input, child, why))
		return NULL;
	for (int side = 0; side <= n_joins; side++)
		side_of(input, side)->computes_none = bms_is_member(side, *computes_none);
	for (int j = 0; j < n_joins; j++)
	{
		if (!find_keys(input, j, keys[j], why) ||
			!add_match_condition(input, j, conditions[j], why))
			return NULL;
	}
	if (!add_conditions(input, found, why))
		return NULL;
	for (uint32 c = 0; c < spec->n_columns; c++)
	{
		Expr	   *expr = list_nth_node(TargetEntry, targetlist,
										 columns[c].attribute)->expr;
		bool		is_key = false;

		/* of other columns, which may come later */
		if (gpurhh_is_of_pair(columns[c].encoding))
			continue;
		for (uint32 k = 0; k < spec->n_keys && are_keys == NULL; k++)
			is_key |= spec->key_column[k] == c;
		if (are_keys != NULL)
			is_key = are_keys[c];
		if (!find_column(input, n_joins - 1, expr, columns[c], is_key,
						 (Reading){.n_joins = n_joins}, &found[c], why) &&
			!compute_column(input, expr, columns[c], c, found, why))
			return NULL;
	}
	for (uint32 c = 0; c < spec->n_columns; c++)
	{
		if (!gpurhh_is_of_pair(columns[c].encoding))
			continue;
		found[c].side = -1;
		if (!gpurhh_join_add_pair(&input->program, columns[c], c, why))
			return NULL;
	}
	describe(input, found, keys, conditions);
	if (gpurhh_join_has_program(&input->program))
		gpurhh_join_init_program(&input->program, child->state);

	for (int side = 0; side <= n_joins; side++)
	{
		if (!find_pages(side_of(input, side), context))
		{
			*computes_none = bms_add_member(*computes_none, side);
			*why = NULL;
			return NULL;
		}
	}
	if (key_filters && input->probe.pages != NULL)
		plan_filters(input, keys, context);
	/* the joins may have to begin anew, and what makes rows may do more than that */
	if (rhh_last_unmatched(&input->join_spec) > 0 &&
		(input->probe.pages == NULL || !gpurhh_can_begin_again(input->probe.child)) &&
		gpurhh_join_may_leave_rows(input))
	{
		*why = "the probe side may have values that no device takes";
		return NULL;
	}
	if (input->may_be_bad && !can_begin_anew(input))
	{
		*why = "a condition of an outer join may be an error for some rows, and the sides cannot be read again";
		return NULL;
	}
	for (int j = 0; j < n_joins; j++)
		input->joins[j].nested = gpurhh_nested_create(&input->joins[j].build, &input->joins[j].spec,
													  context);
	return input;
}

/*
 * Finds out how a device can do the n_joins hash joins of the plan child.  Their output
 * are the rows of a map with this spec, which has these columns of the plan; both have
 * to last as long as what is returned, which is allocated in context.  NULL: the device
 * cannot do the joins, and *why says why.  is_key says which columns are keys of grouping, see
 * JoinSide; NULL: those that are the map's.  key_filters: rows of the probe side may be tested
 * by filters (join_filter.c).
 */
JoinInput *
gpurhh_join_create(PlanState *child, int n_joins, const rhh_map_spec *spec,
				   const GpuColumn *columns, const bool *is_key, bool key_filters,
				   MemoryContext context, const char **why)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Bitmapset  *computes_none = NULL;
	JoinInput  *input;

	/* whether a side's pages can be read with its expressions is known at the end */
	do
		input = create(child, n_joins, spec, columns, is_key, key_filters, context, &computes_none,
					   why);
	while (input == NULL && *why == NULL);
	MemoryContextSwitchTo(old);
	return input;
}

/* The table that is build side j, if it is worth being read so; else NULL. */
Relation
gpurhh_join_shared_table(const JoinInput *input, int j)
{
	const JoinSide *build = &input->joins[j].build;
	Relation	table = build->pages ? gpurhh_page_feed_relation(build->pages) : NULL;

	return table != NULL && RelationGetNumberOfBlocks(table) >= GPURHH_SHARED_BUILD_PAGES ? table : NULL;
}

/*
 * May a row of the probe side have something that no column can have, or an expression that
 * cannot be computed of it, so that it is left over?
 */
bool
gpurhh_join_may_leave_rows(const JoinInput *input)
{
	const JoinSide *probe = &input->probe;

	for (int c = 0; c < probe->n_columns; c++)
	{
		if (gpurhh_encodings[probe->columns[c].encoding].vector == VECTOR_DECIMAL ||
			gpurhh_encodings[probe->columns[c].encoding].derivation == DERIVED_LIMB)
			return true;
	}
	return probe->n_strings > 0 || probe->computed != NIL;
}

/* How many columns of all sides need a dictionary. */
int
gpurhh_join_strings(const JoinInput *input)
{
	int			n = input->probe.n_strings;

	for (int j = 0; j < input->n_joins; j++)
	{
		n += input->joins[j].build.n_strings;
		if (input->joins[j].nested != NULL)
			n += gpurhh_join_strings(gpurhh_nested_input(input->joins[j].nested));
	}
	return n;
}
