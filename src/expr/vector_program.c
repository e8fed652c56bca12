/*-------------------------------------------------------------------------
 *
 * vector_program.c
 *		Makes a program of a compiled expression, which a device can run.
 *
 * Devices know arithmetic and comparisons of integers, floats and decimals, and logic
 * (gpu/rhh_program.h); and where columns have strings, these can be compared with short
 * ones.  Most nodes of the expression become one operation, or none if the
 * value is the same in the 64 bits that operations take.  Where core would raise an error,
 * or the value is not one of these numbers, the operation is bad; so the rules are those
 * of vector_arithmetic.c.  What core would not evaluate may be bad: the operations of logic
 * have the order that vector.c has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "rhh_pages.h"
#include "expr/vector.h"

StaticAssertDecl(RHH_END_OF_TIMESTAMPS == TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE,
				 "devices know another end of timestamps");

typedef struct ProgramContext
{
	VectorExpr *expr;
	rhh_program *program;
	bool		strings;		/* columns have short ones */
	const char *why;
} ProgramContext;

static bool
cannot(ProgramContext *cx, const char *why)
{
	cx->why = why;
	return false;
}

/* The number of an operation, which is added unless there is an equal one. */
static bool
add_op3(ProgramContext *cx, rhh_op_code code, int a, int b, int c, uint8 *number)
{
	rhh_program *program = cx->program;

	for (uint32 i = 0; i < program->n_ops; i++)
	{
		const rhh_op *op = &program->ops[i];

		if (op->code == code && op->a == a && op->b == b && op->c == c)
		{
			*number = i;
			return true;
		}
	}
	if (program->n_ops == RHH_MAX_OPS)
		return cannot(cx, "has too many operations");
	program->ops[program->n_ops] = (rhh_op){.code = code, .a = a, .b = b, .c = c};
	*number = program->n_ops++;
	return true;
}

static bool
add_op(ProgramContext *cx, rhh_op_code code, int a, int b, uint8 *number)
{
	return add_op3(cx, code, a, b, 0, number);
}

static bool
add_constant(ProgramContext *cx, int128 value, bool is_null, bool wide, uint8 *number)
{
	rhh_program *program = cx->program;
	uint64		words[2] = {(uint64) value, (uint64) ((uint128) value >> 64)};
	uint32		i;

	for (i = 0; i < program->n_constants; i++)
	{
		if (memcmp(program->constants[i], words, sizeof(words)) == 0 &&
			program->null_constant[i] == is_null)
			break;
	}
	if (i == RHH_MAX_CONSTANTS)
		return cannot(cx, "has too many constants");
	if (i == program->n_constants)
	{
		memcpy(program->constants[i], words, sizeof(words));
		program->null_constant[i] = is_null;
		program->n_constants++;
	}
	return add_op(cx, wide ? RHH_OP_CONSTANT128 : RHH_OP_CONSTANT, i, 0, number);
}

/* Are values of this type numbers of 128 bits for operations? */
static bool
is_wide(VectorType type)
{
	return type == VECTOR_DECIMAL128 || type == VECTOR_UUID || is_string(type);
}

/* The number of 16 bytes in the order of these. */
static int128
number_of_bytes(const uint64 stored[2])
{
	uint64		words[2];

	rhh_order_bytes(stored[0], stored[1], words);
	return (int128) ((uint128) words[1] << 64 | words[0]);
}

/* The number of a string as columns have it (RHH_PAGE_STRING); false: it is a long one. */
static bool
number_of_string(VectorType type, const char *value, int128 *number)
{
	Size		length = VARSIZE_ANY_EXHDR(value);
	uint64		stored[2] = {0, 0};

	if (type == VECTOR_BPCHAR)
		length = bpchartruelen(VARDATA_ANY(value), length);
	if (length > RHH_PAGE_STRING_BYTES)
		return false;
	memcpy(stored, VARDATA_ANY(value), length);
	stored[1] |= (uint64) length << 56;
	*number = number_of_bytes(stored);
	return true;
}

/* Reads element i of a vector as operations take it.  False: they do not. */
static bool
read_element(VectorType type, const void *values, int i, int128 *value)
{
	switch (type)
	{
		case VECTOR_BOOL:
			*value = ((const uint8 *) values)[i];
			return true;
		case VECTOR_INT2:
			*value = ((const int16 *) values)[i];
			return true;
		case VECTOR_INT4:
		case VECTOR_OID:		/* as columns of 4 bytes are loaded */
			*value = ((const int32 *) values)[i];
			return true;
		case VECTOR_INT8:
		case VECTOR_DECIMAL:
			*value = ((const int64 *) values)[i];
			return true;
		case VECTOR_FLOAT4:
			*value = rhh_of_float(((const float4 *) values)[i]);
			return true;
		case VECTOR_FLOAT8:
			*value = (int64) rhh_as_bits(((const float8 *) values)[i]);
			return true;
		case VECTOR_DECIMAL128:
			*value = ((const int128 *) values)[i];
			return true;
		case VECTOR_UUID:
			{
				uint64		stored[2];

				memcpy(stored, (const char *) values + i * sizeof(stored), sizeof(stored));
				*value = number_of_bytes(stored);
				return true;
			}
		case VECTOR_STRING:
		case VECTOR_BPCHAR:
			return number_of_string(type, ((const char *const *) values)[i], value);
		default:
			return false;
	}
}

/*
 * Parameters of the query have their values when it is started; other ones, which its own plan
 * sets, have none yet.
 */
static bool
read_constant(ProgramContext *cx, VectorNode *node)
{
	if (IsA(node->constant, Param) && ((Param *) node->constant)->paramkind != PARAM_EXTERN)
		return cannot(cx, "has a value that the query itself finds out");
	if (!gpurhh_vector_read_constant(cx->expr, node))
		return cannot(cx, "has a constant that is not as its type declares");
	return true;
}

static bool
compile_constant(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	int128		value = 0;

	/* while planning it is only asked whether it could be done */
	if (IsA(node->constant, Param) && ((Param *) node->constant)->paramkind == PARAM_EXTERN &&
		cx->expr->econtext == NULL)
		return add_constant(cx, ((Param *) node->constant)->paramid, false, is_wide(node->type),
							number);
	if (!read_constant(cx, node))
		return false;
	if (!node->is_null && !read_element(node->type, node->values, 0, &value))
		return cannot(cx, "has a constant of a type that devices do not know");
	return add_constant(cx, value, node->is_null, is_wide(node->type), number);
}

/* The operation for arithmetic of this type; RHH_N_OPS: there is none. */
static rhh_op_code
arithmetic_code(VectorOp op, VectorType type)
{
	static const rhh_op_code codes[][4] = {
		[VECTOR_INT2] = {RHH_OP_ADD_INT2, RHH_OP_SUB_INT2, RHH_OP_MUL_INT2, RHH_OP_DIV_INT2},
		[VECTOR_INT4] = {RHH_OP_ADD_INT4, RHH_OP_SUB_INT4, RHH_OP_MUL_INT4, RHH_OP_DIV_INT4},
		[VECTOR_INT8] = {RHH_OP_ADD_INT8, RHH_OP_SUB_INT8, RHH_OP_MUL_INT8, RHH_OP_DIV_INT8},
		[VECTOR_FLOAT4] = {RHH_OP_ADD_FLOAT4, RHH_OP_SUB_FLOAT4, RHH_OP_MUL_FLOAT4, RHH_OP_DIV_FLOAT4},
		[VECTOR_FLOAT8] = {RHH_OP_ADD_FLOAT8, RHH_OP_SUB_FLOAT8, RHH_OP_MUL_FLOAT8, RHH_OP_DIV_FLOAT8},
		[VECTOR_DECIMAL] = {RHH_OP_ADD_DECIMAL, RHH_OP_SUB_DECIMAL, RHH_OP_MUL_DECIMAL, RHH_N_OPS},
		[VECTOR_DECIMAL128] = {RHH_OP_ADD_DECIMAL128, RHH_OP_SUB_DECIMAL128, RHH_OP_MUL_DECIMAL128, RHH_N_OPS}
	};

	if (type >= lengthof(codes) || codes[type][0] == 0)
		return RHH_N_OPS;
	switch (op)
	{
		case VECTOR_ADD:
			return codes[type][0];
		case VECTOR_SUBTRACT:
			return codes[type][1];
		case VECTOR_MULTIPLY:
			return codes[type][2];
		case VECTOR_DIVIDE:
			return codes[type][3];
		case VECTOR_MODULO:
			return type <= VECTOR_INT8 ? RHH_OP_MOD_INT8 : RHH_N_OPS;
		default:
			return RHH_N_OPS;
	}
}

static rhh_op_code
negation_code(VectorType type)
{
	switch (type)
	{
		case VECTOR_INT2:
			return RHH_OP_NEG_INT2;
		case VECTOR_INT4:
			return RHH_OP_NEG_INT4;
		case VECTOR_INT8:
			return RHH_OP_NEG_INT8;
		case VECTOR_FLOAT4:
			return RHH_OP_NEG_FLOAT4;
		case VECTOR_FLOAT8:
			return RHH_OP_NEG_FLOAT8;
		case VECTOR_DECIMAL:
			return RHH_OP_NEG_DECIMAL;
		case VECTOR_DECIMAL128:
			return RHH_OP_NEG_DECIMAL128;
		default:
			return RHH_N_OPS;
	}
}

static bool
is_integer(VectorType type)
{
	return type == VECTOR_INT2 || type == VECTOR_INT4 || type == VECTOR_INT8;
}

/*
 * The operation for a cast; RHH_OP_COLUMN: none is needed, as the value has the same
 * bits in both types; RHH_N_OPS: there is none.
 */
static rhh_op_code
cast_code(VectorType from, VectorType to)
{
	if (is_integer(from) && is_integer(to))
		return gpurhh_vector_bytes(from) <= gpurhh_vector_bytes(to) ? RHH_OP_COLUMN :
			to == VECTOR_INT2 ? RHH_OP_AS_INT2 : RHH_OP_AS_INT4;
	if (is_integer(from) && to == VECTOR_FLOAT8)
		return RHH_OP_INT_AS_FLOAT8;
	if (is_integer(from) && to == VECTOR_DECIMAL)
		return RHH_OP_COLUMN;
	if (is_integer(from) && to == VECTOR_DECIMAL128)
		return RHH_OP_INT_AS_DECIMAL128;
	if (from == VECTOR_BOOL && to == VECTOR_INT4)
		return RHH_OP_COLUMN;
	if (from == VECTOR_FLOAT4 && to == VECTOR_FLOAT8)
		return RHH_OP_FLOAT4_AS_FLOAT8;
	if (from == VECTOR_DECIMAL && to == VECTOR_DECIMAL128)
		return RHH_OP_DECIMAL_AS_DECIMAL128;
	return RHH_N_OPS;
}

/* The operation for a comparison of values of this type; RHH_N_OPS: there is none. */
static rhh_op_code
comparison_code(const ProgramContext *cx, VectorOp op, VectorType type)
{
	static const rhh_op_code codes[][3] = {
		[VECTOR_BOOL] = {RHH_OP_EQ_INT8, RHH_OP_LT_INT8, RHH_OP_LE_INT8},
		[VECTOR_INT2] = {RHH_OP_EQ_INT8, RHH_OP_LT_INT8, RHH_OP_LE_INT8},
		[VECTOR_INT4] = {RHH_OP_EQ_INT8, RHH_OP_LT_INT8, RHH_OP_LE_INT8},
		[VECTOR_OID] = {RHH_OP_EQ_INT8, RHH_OP_LT_OID, RHH_OP_LE_OID},
		[VECTOR_INT8] = {RHH_OP_EQ_INT8, RHH_OP_LT_INT8, RHH_OP_LE_INT8},
		[VECTOR_FLOAT4] = {RHH_OP_EQ_FLOAT4, RHH_OP_LT_FLOAT4, RHH_OP_LE_FLOAT4},
		[VECTOR_FLOAT8] = {RHH_OP_EQ_FLOAT8, RHH_OP_LT_FLOAT8, RHH_OP_LE_FLOAT8},
		[VECTOR_UUID] = {RHH_OP_EQ_DECIMAL128, RHH_OP_LT_DECIMAL128, RHH_OP_LE_DECIMAL128},
		/* the numbers of short strings are not in their order */
		[VECTOR_STRING] = {RHH_OP_EQ_DECIMAL128, RHH_N_OPS, RHH_N_OPS},
		[VECTOR_BPCHAR] = {RHH_OP_EQ_DECIMAL128, RHH_N_OPS, RHH_N_OPS},
		[VECTOR_DECIMAL] = {RHH_OP_EQ_INT8, RHH_OP_LT_INT8, RHH_OP_LE_INT8},
		[VECTOR_DECIMAL128] = {RHH_OP_EQ_DECIMAL128, RHH_OP_LT_DECIMAL128, RHH_OP_LE_DECIMAL128}
	};

	if (type >= lengthof(codes) || codes[type][0] == 0 || (is_string(type) && !cx->strings))
		return RHH_N_OPS;
	return codes[type][op == VECTOR_LT ? 1 : op == VECTOR_LE ? 2 : 0];
}

static bool compile_node(ProgramContext *cx, VectorNode *node, uint8 *number);

static bool
compile_comparison(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	rhh_op_code code = comparison_code(cx, node->op, node->args[0]->type);
	uint8		a;
	uint8		b;

	if (code == RHH_N_OPS)
		return cannot(cx, "compares values of a type that devices do not compare");
	/* all long ones look the same, so one has to be short */
	if (is_string(node->args[0]->type) && node->args[0]->op != VECTOR_CONSTANT &&
		node->args[1]->op != VECTOR_CONSTANT)
		return cannot(cx, "compares strings that may both be long");
	return compile_node(cx, node->args[0], &a) &&
		compile_node(cx, node->args[1], &b) &&
		add_op(cx, code, a, b, number) &&
		(node->op != VECTOR_NE || add_op(cx, RHH_OP_NOT, *number, 0, number));
}

/* IN with a list of constants becomes as many comparisons. */
static bool
compile_in(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	VectorType	type = node->args[0]->type;
	rhh_op_code code = comparison_code(cx, VECTOR_EQ, type);
	uint8		scalar;
	bool		first = true;

	if (code == RHH_N_OPS)
		return cannot(cx, "compares values of a type that devices do not compare");
	if (IsA(node->constant, Param))
		return cannot(cx, "has a list of no known length");
	if (!read_constant(cx, node) || !compile_node(cx, node->args[0], &scalar))
		return false;
	if (node->is_null || node->n_items + node->null_item == 0 ||
		node->n_items > VECTOR_LINEAR_ITEMS)
		return cannot(cx, "has a list of no or many values");
	for (int i = 0; i < node->n_items + node->null_item; i++)
	{
		int128		value = 0;
		uint8		item;

		if (i < node->n_items && !read_element(type, node->items, i, &value))
			return cannot(cx, "has a list with a long string");
		if (!add_constant(cx, value, i == node->n_items, is_wide(type), &item) ||
			!add_op(cx, code, scalar, item, &item) ||
			!(first || add_op(cx, RHH_OP_OR, *number, item, &item)))
			return false;
		*number = item;
		first = false;
	}
	return node->op == VECTOR_IN || add_op(cx, RHH_OP_NOT, *number, 0, number);
}

/* AND and OR, in the order of their operands. */
static bool
compile_junction(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	if (!compile_node(cx, node->args[0], number))
		return false;
	for (int i = 1; i < node->n_args; i++)
	{
		uint8		next;

		if (!compile_node(cx, node->args[i], &next) ||
			!add_op(cx, node->op == VECTOR_AND ? RHH_OP_AND : RHH_OP_OR, *number, next, number))
			return false;
	}
	return true;
}

/* IS [NOT] NULL; also of a column that operations cannot take. */
static bool
compile_null_test(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	VectorNode *arg = node->args[0];

	if (arg->op == VECTOR_COLUMN)
	{
		if (!add_op(cx, RHH_OP_COLUMN_IS_NULL, arg->column, 0, number))
			return false;
	}
	else if (!compile_node(cx, arg, number) ||
			 !add_op(cx, is_wide(arg->type) ? RHH_OP_IS_NULL128 : RHH_OP_IS_NULL,
					 *number, 0, number))
		return false;
	return node->op == VECTOR_IS_NULL || add_op(cx, RHH_OP_NOT, *number, 0, number);
}

/* NOT, and IS [NOT] TRUE or FALSE. */
static bool
compile_truth_test(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	VectorOp	op = node->op;

	if (!compile_node(cx, node->args[0], number))
		return false;
	if ((op == VECTOR_NOT || op == VECTOR_IS_FALSE || op == VECTOR_IS_NOT_FALSE) &&
		!add_op(cx, RHH_OP_NOT, *number, 0, number))
		return false;
	if (op != VECTOR_NOT && !add_op(cx, RHH_OP_IS_TRUE, *number, 0, number))
		return false;
	return (op != VECTOR_IS_NOT_TRUE && op != VECTOR_IS_NOT_FALSE) ||
		add_op(cx, RHH_OP_NOT, *number, 0, number);
}

/* CASE and COALESCE, from their last result on. */
static bool
compile_choice(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	bool		wide = is_wide(node->type);
	int			step = node->op == VECTOR_CASE ? 2 : 1;

	if (!compile_node(cx, node->args[node->n_args - 1], number))
		return false;
	for (int i = node->n_args - 1 - step; i >= 0; i -= step)
	{
		uint8		condition;
		uint8		result;

		if (node->op == VECTOR_CASE)
		{
			if (!compile_node(cx, node->args[i], &condition) ||
				!compile_node(cx, node->args[i + 1], &result) ||
				!add_op3(cx, wide ? RHH_OP_IF128 : RHH_OP_IF, condition, result, *number, number))
				return false;
		}
		else if (!compile_node(cx, node->args[i], &result) ||
				 !add_op(cx, wide ? RHH_OP_IS_NULL128 : RHH_OP_IS_NULL, result, 0, &condition) ||
				 !add_op3(cx, wide ? RHH_OP_IF128 : RHH_OP_IF, condition, *number, result, number))
			return false;
	}
	return true;
}

/* Arithmetic and casts: an operation of the operands' values. */
static bool
compile_arithmetic(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	const char *unknown = "has an operation that devices do not know";
	uint8		args[2] = {0, 0};
	rhh_op_code code;
	int128		power;
	bool		wide = node->type == VECTOR_DECIMAL128;

	for (int i = 0; i < node->n_args; i++)
	{
		if (!compile_node(cx, node->args[i], &args[i]))
			return false;
	}
	switch (node->op)
	{
		case VECTOR_NEGATE:
			code = negation_code(node->type);
			break;
		case VECTOR_CAST:
			code = cast_code(node->args[0]->type, node->type);
			if (code == RHH_OP_COLUMN)
			{
				*number = args[0];
				return true;
			}
			break;
		case VECTOR_DATE_CAST:
			code = RHH_OP_DATE_AS_TIMESTAMP;
			break;
		case VECTOR_RESCALE:
			if (!gpurhh_decimal_power(node->scale - node->args[0]->scale, &power) ||
				(!wide && power != (int64) power) ||
				!add_constant(cx, power, false, wide, &args[1]))
				return cannot(cx, unknown);
			code = wide ? RHH_OP_RESCALE_DECIMAL128 : RHH_OP_RESCALE_DECIMAL;
			break;
		default:
			code = arithmetic_code(node->op, node->type);
			if (code != RHH_OP_MUL_DECIMAL128)
				break;
			/* factors may be narrow */
			if (node->args[0]->type == VECTOR_DECIMAL && node->args[1]->type == VECTOR_DECIMAL)
				code = RHH_OP_MUL_TO_DECIMAL128;
			else
			{
				for (int i = 0; i < 2; i++)
				{
					if (node->args[i]->type == VECTOR_DECIMAL &&
						!add_op(cx, RHH_OP_DECIMAL_AS_DECIMAL128, args[i], 0, &args[i]))
						return false;
				}
			}
			break;
	}
	if (code == RHH_N_OPS)
		return cannot(cx, unknown);
	return add_op(cx, code, args[0], args[1], number);
}

/* A column, or as many as a decimal has limbs; these have numbers one after the other. */
static bool
compile_column(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	int			n_limbs;
	uint8		limb;

	if (comparison_code(cx, VECTOR_EQ, node->type) == RHH_N_OPS)
		return cannot(cx, "has a column of a type that devices do not compute with");
	if (node->type == VECTOR_UUID || is_string(node->type))
		return add_op(cx, RHH_OP_COLUMN_OF_BYTES, node->column, 0, number);
	if (!add_op(cx, RHH_OP_COLUMN, node->column, 0, number))
		return false;
	if (node->type != VECTOR_DECIMAL128)
		return true;
	n_limbs = gpurhh_decimal_limbs(node->digits);
	Assert(n_limbs > 1);
	return add_op(cx, RHH_OP_COLUMN, node->column + 1, 0, &limb) &&
		add_op(cx, RHH_OP_LIMBS_AS_DECIMAL128, *number, limb, number) &&
		(n_limbs == 2 ||
		 (add_op(cx, RHH_OP_COLUMN, node->column + 2, 0, &limb) &&
		  add_op(cx, RHH_OP_ADD_LIMB_3, *number, limb, number)));
}

/* Tells the kinds of nodes apart; each has a function of its own above. */
static bool
compile_node(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	switch (node->op)
	{
		case VECTOR_COLUMN:
			return compile_column(cx, node, number);
		case VECTOR_CONSTANT:
			return compile_constant(cx, node, number);
		case VECTOR_EQ:
		case VECTOR_NE:
		case VECTOR_LT:
		case VECTOR_LE:
		case VECTOR_GT:
		case VECTOR_GE:
			return compile_comparison(cx, node, number);
		case VECTOR_IN:
		case VECTOR_NOT_IN:
			return compile_in(cx, node, number);
		case VECTOR_AND:
		case VECTOR_OR:
			return compile_junction(cx, node, number);
		case VECTOR_IS_NULL:
		case VECTOR_IS_NOT_NULL:
			return compile_null_test(cx, node, number);
		case VECTOR_NOT:
		case VECTOR_IS_TRUE:
		case VECTOR_IS_NOT_TRUE:
		case VECTOR_IS_FALSE:
		case VECTOR_IS_NOT_FALSE:
			return compile_truth_test(cx, node, number);
		case VECTOR_CASE:
		case VECTOR_COALESCE:
			return compile_choice(cx, node, number);
		default:
			return compile_arithmetic(cx, node, number);
	}
}

/* Is it a list that operations cannot compare with: a long one, or a parameter? */
static bool
is_long_list(const ScalarArrayOpExpr *op)
{
	const Const *array = lsecond(op->args);
	ArrayType  *values;

	if (!IsA(array, Const))
		return true;
	if (array->constisnull)
		return false;
	values = DatumGetArrayTypeP(array->constvalue);
	return ArrayGetNItems(ARR_NDIM(values), ARR_DIMS(values)) > VECTOR_LINEAR_ITEMS;
}

/* Has it a parameter that is not known when programs are made? */
static bool
has_late_param(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind != PARAM_EXTERN;
	return expression_tree_walker(node, has_late_param, arg);
}

/*
 * Is it a condition on values that operations cannot take, as strings?  Where it is of one
 * table, it can be computed before the rows are joined, and be a column that a program
 * reads.
 */
bool
gpurhh_is_fed_condition(Expr *expr)
{
	Expr	   *arg;
	VectorType	type;
	bool		by_itself = false;

	if (IsA(expr, OpExpr) && ((OpExpr *) expr)->opresulttype == BOOLOID)
	{
		arg = linitial(((OpExpr *) expr)->args);
		by_itself = has_late_param((Node *) expr, NULL);
	}
	else if (IsA(expr, ScalarArrayOpExpr))
	{
		arg = linitial(((ScalarArrayOpExpr *) expr)->args);
		by_itself = is_long_list((ScalarArrayOpExpr *) expr);
	}
	else if (IsA(expr, NullTest) && !IsA(((NullTest *) expr)->arg, Var))
		arg = ((NullTest *) expr)->arg;
	else
		return false;
	return (by_itself || (gpurhh_vector_type(exprType((Node *) arg), &type) && is_string(type))) &&
		contain_var_clause((Node *) expr);
}

/*
 * An expression that is NULL where a column is, else true.  It can be computed before the rows
 * are joined; without a row it is NULL, as the column is.
 */
Expr *
gpurhh_null_or_true(Node *column)
{
	CaseExpr   *result = makeNode(CaseExpr);
	CaseWhen   *when = makeNode(CaseWhen);
	NullTest   *test = makeNode(NullTest);

	test->arg = (Expr *) column;
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	when->expr = (Expr *) test;
	when->result = (Expr *) makeBoolConst(true, false);
	when->location = -1;
	result->casetype = BOOLOID;
	result->args = list_make1(when);
	result->defresult = (Expr *) makeBoolConst(false, true);
	result->location = -1;
	return (Expr *) result;
}

/*
 * Adds operations that compute the expression; *number becomes the one that has the
 * value, and *type what it is.  The columns of the expression are those of the program; strings says that
 * those of strings have these (RHH_PAGE_STRING_OR_LONG), so that they can be compared with short ones.
 * False: devices cannot compute it; *why says why, as gpurhh_vector_compile() does.
 */
bool
gpurhh_vector_program(VectorExpr *expr, rhh_program *program, bool strings, uint8 *number,
					  VectorType *type, const char **why)
{
	ProgramContext cx = {.expr = expr, .program = program, .strings = strings};

	*type = expr->root->type;
	if (compile_node(&cx, expr->root, number))
		return true;
	*why = cx.why;
	return false;
}

/* The value with the bits that its column has. */
static bool
add_order(ProgramContext *cx, const GpuEncodingInfo *info, uint8 value, uint8 *number)
{
	*number = value;
	if (info->vector == VECTOR_UUID)
		return add_op(cx, RHH_OP_AS_BYTES, value, 0, number);
	switch (info->order)
	{
		case ORDER_OF_BITS:
			return true;
		case ORDER_OF_EQUALITY:
			return add_op(cx, info->bytes == sizeof(float4) ? RHH_OP_EQUAL_FLOAT4 :
						  RHH_OP_EQUAL_FLOAT8, value, 0, number);
		case ORDER_OF_FLOATS:
			return add_op(cx, info->bytes == sizeof(float4) ? RHH_OP_ORDER_FLOAT4 :
						  RHH_OP_ORDER_FLOAT8, value, 0, number);
		case ORDER_OF_UNSIGNED:
			return info->bytes == sizeof(Oid) && add_op(cx, RHH_OP_ORDER_OID, value, 0, number);
	}
	return false;				/* keep compiler quiet */
}

/*
 * Makes a value of the program, of this type, a column that is encoded so.  False: that
 * cannot be done; *why says why.
 */
bool
gpurhh_program_store(rhh_program *program, uint8 number, VectorType type, GpuColumn how,
					 int column, const char **why)
{
	ProgramContext cx = {.program = program};
	const GpuEncodingInfo *info = &gpurhh_encodings[how.encoding];
	int			n_limbs = GPURHH_DECIMAL_LIMBS(how.parameter);

	if (program->n_results == RHH_MAX_RESULTS)
	{
		*why = "is one of too many";
		return false;
	}
	if (info->derivation == DERIVED_LIMB && (type == VECTOR_DECIMAL || type == VECTOR_DECIMAL128))
	{
		static const rhh_op_code limbs[3][3] = {
			{RHH_OP_LIMB_1_OF_1},
			{RHH_OP_LIMB_1_OF_2, RHH_OP_LIMB_2_OF_2},
			{RHH_OP_LIMB_1_OF_3, RHH_OP_LIMB_2_OF_3, RHH_OP_LIMB_3_OF_3}
		};

		if ((type == VECTOR_DECIMAL && n_limbs > 1 &&
			 !add_op(&cx, RHH_OP_DECIMAL_AS_DECIMAL128, number, 0, &number)) ||
			((type == VECTOR_DECIMAL128 || n_limbs > 1) &&
			 !add_op(&cx, limbs[n_limbs - 1][info->limb], number, 0, &number)))
		{
			*why = cx.why;
			return false;
		}
	}
	else if (info->derivation == DERIVED_TRUTH && type == VECTOR_BOOL)
	{
		if (info->role == ROLE_FILTER && !add_op(&cx, RHH_OP_IS_TRUE, number, 0, &number))
		{
			*why = cx.why;
			return false;
		}
	}
	else if (info->vector != type || info->derivation != DERIVED_VALUE || info->role != ROLE_ANY ||
			 !add_order(&cx, info, number, &number))
	{
		*why = cx.why != NULL ? cx.why : "is fed in a way that devices do not know";
		return false;
	}
	program->results[program->n_results].op = number;
	program->results[program->n_results].column = column;
	program->n_results++;
	return true;
}

/* A column that may be a result of the program. */
static bool
read_column(ProgramContext *cx, int column, uint8 *number)
{
	for (uint32 r = 0; r < cx->program->n_results; r++)
	{
		if (cx->program->results[r].column == column)
		{
			*number = cx->program->results[r].op;
			return true;
		}
	}
	return add_op(cx, RHH_OP_COLUMN, column, 0, number);
}

/*
 * Makes a column of two others with doubles (batch/pairs.c), which are columns that the program
 * reads or has made.  False: that cannot be done; *why says why.
 */
bool
gpurhh_program_pair(rhh_program *program, GpuColumn how, int column, const char **why)
{
	ProgramContext cx = {.program = program};
	uint8		x;
	uint8		y;
	uint8		number;

	if (program->n_results == RHH_MAX_RESULTS)
	{
		*why = "is one of too many";
		return false;
	}
	if (!read_column(&cx, how.parameter >> 8, &x) || !read_column(&cx, how.parameter & 0xff, &y))
	{
		*why = cx.why;
		return false;
	}
	if (gpurhh_encodings[how.encoding].derivation == DERIVED_PRODUCT ?
		!add_op(&cx, RHH_OP_PRODUCT_FLOAT8, x, y, &number) :
		!(add_op(&cx, RHH_OP_IS_NULL, x, 0, &x) && add_op(&cx, RHH_OP_IS_NULL, y, 0, &y) &&
		  add_op(&cx, RHH_OP_OR, x, y, &number) && add_op(&cx, RHH_OP_NOT, number, 0, &number)))
	{
		*why = cx.why;
		return false;
	}
	program->results[program->n_results].op = number;
	program->results[program->n_results].column = column;
	program->n_results++;
	return true;
}
