/*-------------------------------------------------------------------------
 *
 * vector_program.c
 *		Makes a program of a compiled expression, which a device can run.
 *
 * Devices know arithmetic of integers, floats and decimals (gpu/rhh_program.h).  Each
 * node of the expression becomes one operation, or none if its value is the same in the
 * 64 bits that operations take.  Where core would raise an error, or the value is not one
 * of these numbers, the operation is bad; so the rules are those of vector_arithmetic.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expr/vector.h"

typedef struct ProgramContext
{
	VectorExpr *expr;
	rhh_program *program;
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
add_op(ProgramContext *cx, rhh_op_code code, int a, int b, uint8 *number)
{
	rhh_program *program = cx->program;

	for (uint32 i = 0; i < program->n_ops; i++)
	{
		const rhh_op *op = &program->ops[i];

		if (op->code == code && op->a == a && op->b == b)
		{
			*number = i;
			return true;
		}
	}
	if (program->n_ops == RHH_MAX_OPS)
		return cannot(cx, "has too many operations");
	program->ops[program->n_ops] = (rhh_op){.code = code, .a = a, .b = b};
	*number = program->n_ops++;
	return true;
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

static bool
compile_constant(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	int128		value = 0;

	if (!IsA(node->constant, Const))
		return cannot(cx, "has a parameter");
	if (!gpurhh_vector_read_constant(cx->expr, node))
		return cannot(cx, "has a constant that is not as its type declares");
	if (!node->is_null)
	{
		switch (node->type)
		{
			case VECTOR_INT2:
				value = *(const int16 *) node->values;
				break;
			case VECTOR_INT4:
				value = *(const int32 *) node->values;
				break;
			case VECTOR_INT8:
			case VECTOR_DECIMAL:
				value = *(const int64 *) node->values;
				break;
			case VECTOR_FLOAT4:
				value = rhh_of_float(*(const float4 *) node->values);
				break;
			case VECTOR_FLOAT8:
				value = (int64) rhh_as_bits(*(const float8 *) node->values);
				break;
			case VECTOR_DECIMAL128:
				value = *(const int128 *) node->values;
				break;
			default:
				return cannot(cx, "has a constant of a type that devices do not know");
		}
	}
	return add_constant(cx, value, node->is_null, node->type == VECTOR_DECIMAL128,
						number);
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
	if (from == VECTOR_FLOAT4 && to == VECTOR_FLOAT8)
		return RHH_OP_FLOAT4_AS_FLOAT8;
	if (from == VECTOR_DECIMAL && to == VECTOR_DECIMAL128)
		return RHH_OP_DECIMAL_AS_DECIMAL128;
	return RHH_N_OPS;
}

static bool
compile_node(ProgramContext *cx, VectorNode *node, uint8 *number)
{
	const char *unknown = "has an operation that devices do not know";
	uint8		args[2] = {0, 0};
	rhh_op_code code;
	int128		power;
	bool		wide = node->type == VECTOR_DECIMAL128;

	if (node->op == VECTOR_CONSTANT)
		return compile_constant(cx, node, number);
	if (node->op == VECTOR_COLUMN)
	{
		if (arithmetic_code(VECTOR_ADD, node->type) == RHH_N_OPS || wide)
			return cannot(cx, "has a column of a type that devices do not compute with");
		return add_op(cx, RHH_OP_COLUMN, node->column, 0, number);
	}
	if (node->op < VECTOR_ADD || node->op > VECTOR_RESCALE)
		return cannot(cx, unknown);
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
			return cannot(cx, unknown);
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

/*
 * Adds operations that compute the expression; *number becomes the one that has the
 * value, and *type what it is.  The columns of the expression are those of the program.
 * False: devices cannot compute it; *why says why, as gpurhh_vector_compile() does.
 */
bool
gpurhh_vector_program(VectorExpr *expr, rhh_program *program, uint8 *number,
					  VectorType *type, const char **why)
{
	ProgramContext cx = {.expr = expr, .program = program};

	*type = expr->root->type;
	if (compile_node(&cx, expr->root, number))
		return true;
	*why = cx.why;
	return false;
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
	else if (info->vector != type || info->derivation != DERIVED_VALUE ||
			 info->order != ORDER_OF_BITS || info->role != ROLE_ANY)
	{
		*why = "is fed in a way that devices do not know";
		return false;
	}
	program->results[program->n_results].op = number;
	program->results[program->n_results].column = column;
	program->n_results++;
	return true;
}
