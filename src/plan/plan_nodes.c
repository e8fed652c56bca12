/*-------------------------------------------------------------------------
 *
 * plan_nodes.c
 *		The structs of our nodes' plans as nodes that PostgreSQL can handle.
 *
 * PostgreSQL copies plans (into the plan cache), writes them as text and reads
 * them back (to hand them to parallel workers), and prints them (debug_print_plan).
 * So what a plan carries has to be made of nodes.  Ours are extensible nodes:
 * PostgreSQL calls back for what comes after their name.
 *
 * Each struct of plan.h that is a node has a table here, with a line for each of
 * its fields.  The four callbacks - copy, compare, write, read - are written once
 * and go through the table of the node that they are given.  A new field needs a
 * line in its table and nothing else; one that is forgotten there is zero in
 * prepared statements and in parallel workers.
 *
 * The text is like that of PostgreSQL's own nodes, all fields in the order of the
 * table: ":op 3 :arg_column 0 :filter_column -1".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/shortest_dec.h"
#include "nodes/readfuncs.h"

#include "plan/plan_info.h"

typedef enum FieldKind
{
	FIELD_INT,					/* also enums */
	FIELD_OID,
	FIELD_BOOL,
	FIELD_DOUBLE,
	FIELD_NODE					/* a node, or a List of nodes or of numbers */
} FieldKind;

typedef struct NodeField
{
	const char *name;
	FieldKind	kind;
	Size		offset;			/* in the node's struct */
	Size		size;
} NodeField;

/* A kind of node: what PostgreSQL asks for, and the table of the fields. */
typedef struct NodeDescription
{
	ExtensibleNodeMethods methods;	/* must be first, see description_of() */
	const NodeField *fields;
	int			n_fields;
} NodeDescription;

static const Size field_bytes[] = {
	[FIELD_INT] = sizeof(int),
	[FIELD_OID] = sizeof(Oid),
	[FIELD_BOOL] = sizeof(bool),
	[FIELD_DOUBLE] = sizeof(double),
	[FIELD_NODE] = sizeof(Node *)
};

/* ---------- the tables ---------- */

#define FIELD(type, name, kind) \
	{#name, kind, offsetof(type, name), sizeof(((type *) 0)->name)}

static const NodeField column_fields[] = {
	FIELD(GpuPlanColumn, encoding, FIELD_INT),
	FIELD(GpuPlanColumn, parameter, FIELD_INT),
	FIELD(GpuPlanColumn, attribute, FIELD_INT)
};

static const NodeField state_fields[] = {
	FIELD(GpuPlanState, op, FIELD_INT),
	FIELD(GpuPlanState, arg_column, FIELD_INT),
	FIELD(GpuPlanState, filter_column, FIELD_INT)
};

static const NodeField hidden_state_fields[] = {
	FIELD(GpuPlanHiddenState, op, FIELD_INT),
	FIELD(GpuPlanHiddenState, hidden_key, FIELD_INT)
};

static const NodeField output_fields[] = {
	FIELD(GpuPlanOutput, kind, FIELD_INT),
	FIELD(GpuPlanOutput, encoding, FIELD_INT),
	FIELD(GpuPlanOutput, parameter, FIELD_INT),
	FIELD(GpuPlanOutput, key, FIELD_INT),
	FIELD(GpuPlanOutput, aggregate, FIELD_OID),
	FIELD(GpuPlanOutput, states, FIELD_NODE),
	FIELD(GpuPlanOutput, value_of_set, FIELD_NODE)
};

static const NodeField plan_fields[] = {
	FIELD(GpuAggPlan, columns, FIELD_NODE),
	FIELD(GpuAggPlan, key_columns, FIELD_NODE),
	FIELD(GpuAggPlan, n_shown_keys, FIELD_INT),
	FIELD(GpuAggPlan, states, FIELD_NODE),
	FIELD(GpuAggPlan, outputs, FIELD_NODE),
	FIELD(GpuAggPlan, sets, FIELD_NODE),
	FIELD(GpuAggPlan, choices, FIELD_NODE),
	FIELD(GpuAggPlan, distinct_states, FIELD_NODE),
	FIELD(GpuAggPlan, first_level_groups, FIELD_DOUBLE),
	FIELD(GpuAggPlan, second_level_groups, FIELD_DOUBLE),
	FIELD(GpuAggPlan, third_level_groups, FIELD_DOUBLE),
	FIELD(GpuAggPlan, leader_emits, FIELD_BOOL),
	FIELD(GpuAggPlan, n_joins, FIELD_INT),
	FIELD(GpuAggPlan, key_filters, FIELD_BOOL)
};

static const NodeField join_plan_fields[] = {
	FIELD(GpuJoinPlan, columns, FIELD_NODE),
	FIELD(GpuJoinPlan, outputs, FIELD_NODE),
	FIELD(GpuJoinPlan, n_joins, FIELD_INT),
	FIELD(GpuJoinPlan, key_filters, FIELD_BOOL)
};

static const NodeField join_path_fields[] = {
	FIELD(GpuJoinPath, columns, FIELD_NODE),
	FIELD(GpuJoinPath, n_joins, FIELD_INT),
	FIELD(GpuJoinPath, real_cost, FIELD_DOUBLE)
};

static const NodeField path_fields[] = {
	FIELD(GpuAggPath, plan, FIELD_NODE),
	FIELD(GpuAggPath, scan_tlist, FIELD_NODE),
	FIELD(GpuAggPath, having, FIELD_NODE),
	FIELD(GpuAggPath, grouping, FIELD_INT)
};

static void copy_node(ExtensibleNode *to, const ExtensibleNode *from);
static bool equal_nodes(const ExtensibleNode *a, const ExtensibleNode *b);
static void write_node(StringInfo to, const ExtensibleNode *node);
static void read_node(ExtensibleNode *node);

#define DESCRIPTION(type, fields) \
	{{#type, sizeof(type), copy_node, equal_nodes, write_node, read_node}, \
	fields, lengthof(fields)}

static const NodeDescription descriptions[] = {
	DESCRIPTION(GpuPlanColumn, column_fields),
	DESCRIPTION(GpuPlanState, state_fields),
	DESCRIPTION(GpuPlanHiddenState, hidden_state_fields),
	DESCRIPTION(GpuPlanOutput, output_fields),
	DESCRIPTION(GpuAggPlan, plan_fields),
	DESCRIPTION(GpuAggPath, path_fields),
	DESCRIPTION(GpuJoinPlan, join_plan_fields),
	DESCRIPTION(GpuJoinPath, join_path_fields)
};

/* ---------- the callbacks ---------- */

static const NodeDescription *
description_of(const ExtensibleNode *node)
{
	return (const NodeDescription *) GetExtensibleNodeMethods(node->extnodename,
															  false);
}

static void *
value_of(const ExtensibleNode *node, const NodeField *field)
{
	return (char *) node + field->offset;
}

static void
copy_node(ExtensibleNode *to, const ExtensibleNode *from)
{
	const NodeDescription *description = description_of(from);

	for (int f = 0; f < description->n_fields; f++)
	{
		const NodeField *field = &description->fields[f];

		if (field->kind == FIELD_NODE)
			*(Node **) value_of(to, field) =
				copyObjectImpl(*(Node **) value_of(from, field));
		else
			memcpy(value_of(to, field), value_of(from, field), field->size);
	}
}

static bool
equal_nodes(const ExtensibleNode *a, const ExtensibleNode *b)
{
	const NodeDescription *description = description_of(a);

	for (int f = 0; f < description->n_fields; f++)
	{
		const NodeField *field = &description->fields[f];

		if (field->kind == FIELD_NODE ?
			!equal(*(Node **) value_of(a, field), *(Node **) value_of(b, field)) :
			memcmp(value_of(a, field), value_of(b, field), field->size) != 0)
			return false;
	}
	return true;
}

static void
write_node(StringInfo to, const ExtensibleNode *node)
{
	const NodeDescription *description = description_of(node);

	for (int f = 0; f < description->n_fields; f++)
	{
		const NodeField *field = &description->fields[f];
		void	   *value = value_of(node, field);
		char		digits[DOUBLE_SHORTEST_DECIMAL_LEN];

		appendStringInfo(to, " :%s ", field->name);
		switch (field->kind)
		{
			case FIELD_INT:
				appendStringInfo(to, "%d", *(int *) value);
				break;
			case FIELD_OID:
				appendStringInfo(to, "%u", *(Oid *) value);
				break;
			case FIELD_BOOL:
				appendStringInfoString(to, *(bool *) value ? "true" : "false");
				break;
			case FIELD_DOUBLE:
				/* as many digits as it takes to read the very same number */
				double_to_shortest_decimal_buf(*(double *) value, digits);
				appendStringInfoString(to, digits);
				break;
			case FIELD_NODE:
				outNode(to, *(Node **) value);
				break;
		}
	}
}

/* Raises an error for text that write_node() has not written. */
static void
reject_field(const ExtensibleNode *node, const NodeField *field)
{
	elog(ERROR, "could not read field \"%s\" of node %s", field->name,
		 node->extnodename);
}

/* The next token, as a string of its own. */
static char *
read_token(const ExtensibleNode *node, const NodeField *field)
{
	int			length;
	const char *token = pg_strtok(&length);

	if (token == NULL)
		reject_field(node, field);
	return pnstrdup(token, length);
}

/* A whole number from the least to the greatest that its field holds. */
static int64
read_integer(const ExtensibleNode *node, const NodeField *field, int64 least,
			 int64 greatest)
{
	char	   *token = read_token(node, field);
	char	   *end;
	int64		number;

	errno = 0;
	number = strtoi64(token, &end, 10);
	if (errno != 0 || end == token || *end != '\0' || number < least ||
		number > greatest)
		reject_field(node, field);
	return number;
}

static double
read_double(const ExtensibleNode *node, const NodeField *field)
{
	char	   *token = read_token(node, field);
	char	   *end;
	double		number = strtod(token, &end);

	if (end == token || *end != '\0')
		reject_field(node, field);
	return number;
}

static bool
read_bool(const ExtensibleNode *node, const NodeField *field)
{
	char	   *token = read_token(node, field);

	if (strcmp(token, "true") != 0 && strcmp(token, "false") != 0)
		reject_field(node, field);
	return token[0] == 't';
}

static void
read_node(ExtensibleNode *node)
{
	const NodeDescription *description = description_of(node);

	for (int f = 0; f < description->n_fields; f++)
	{
		const NodeField *field = &description->fields[f];
		void	   *value = value_of(node, field);
		char	   *token = read_token(node, field);

		if (token[0] != ':' || strcmp(token + 1, field->name) != 0)
			reject_field(node, field);
		switch (field->kind)
		{
			case FIELD_INT:
				*(int *) value = read_integer(node, field, PG_INT32_MIN,
											  PG_INT32_MAX);
				break;
			case FIELD_OID:
				*(Oid *) value = read_integer(node, field, 0, PG_UINT32_MAX);
				break;
			case FIELD_BOOL:
				*(bool *) value = read_bool(node, field);
				break;
			case FIELD_DOUBLE:
				*(double *) value = read_double(node, field);
				break;
			case FIELD_NODE:
				*(Node **) value = nodeRead(NULL, 0);
				break;
		}
	}
}

/* ---------- for the planner and the node ---------- */

/* A new node, its fields zero.  name: that of its struct, a string that stays. */
void *
gpurhh_make_node(const char *name, Size bytes)
{
	ExtensibleNode *node = (ExtensibleNode *) newNode(bytes, T_ExtensibleNode);

	node->extnodename = name;
	return node;
}

/* The only member of a CustomScan's private list, a node of this name. */
static const ExtensibleNode *
private_node(const CustomScan *cscan, const char *name)
{
	ExtensibleNode *node = linitial_node(ExtensibleNode, cscan->custom_private);

	if (strcmp(node->extnodename, name) != 0)
		elog(ERROR, "unexpected node %s in a plan of %s", node->extnodename,
			 cscan->methods->CustomName);
	return node;
}

/* What the CustomScan of GpuHashAgg carries for the node. */
const GpuAggPlan *
gpurhh_plan_of(const CustomScan *cscan)
{
	return (const GpuAggPlan *) private_node(cscan, "GpuAggPlan");
}

/* And that of GpuHashJoin. */
const GpuJoinPlan *
gpurhh_join_plan_of(const CustomScan *cscan)
{
	return (const GpuJoinPlan *) private_node(cscan, "GpuJoinPlan");
}

/*
 * To be called when the library is loaded.  A parallel worker loads the libraries
 * of its session before it reads the plan, so it knows the nodes by then.
 */
void
gpurhh_register_plan_nodes(void)
{
	for (int d = 0; d < lengthof(descriptions); d++)
	{
		const NodeDescription *description = &descriptions[d];

		for (int f = 0; f < description->n_fields; f++)
		{
			if (description->fields[f].size !=
				field_bytes[description->fields[f].kind])
				elog(ERROR, "field \"%s\" of node %s is not of the kind that it is described as",
					 description->fields[f].name,
					 description->methods.extnodename);
		}
		RegisterExtensibleNodeMethods(&description->methods);
	}
}
