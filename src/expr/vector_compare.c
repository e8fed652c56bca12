/*-------------------------------------------------------------------------
 *
 * vector_compare.c
 *		Compares vectors, and reads and searches the lists of IN.
 *
 * Strings are compared by their bytes, and are detoasted one at a time.  Lists of
 * strings, and long lists of integers, are sorted and searched by halves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "compat.h"
#include "expr/vector.h"

/* ---------- strings ---------- */

/* The bytes of a string, which is not toasted, that count when it is compared. */
static inline const char *
string_bytes(VectorType type, const struct varlena *string, Size *length)
{
	const char *data = VARDATA_ANY(string);
	Size		n = VARSIZE_ANY_EXHDR(string);

	if (type == VECTOR_BPCHAR)
	{
		while (n > 0 && data[n - 1] == ' ')
			n--;
	}
	*length = n;
	return data;
}

/* Compares two strings, which are not toasted, in an order that is only good for sorting. */
static int
compare_strings(VectorType type, const struct varlena *a,
				const struct varlena *b)
{
	Size		a_length;
	Size		b_length;
	const char *a_data = string_bytes(type, a, &a_length);
	const char *b_data = string_bytes(type, b, &b_length);

	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return memcmp(a_data, b_data, a_length);
}

static int
compare_string_items(const void *a, const void *b, void *arg)
{
	return compare_strings(*(VectorType *) arg, *(struct varlena *const *) a,
						   *(struct varlena *const *) b);
}

static inline bool
is_toasted(const struct varlena *string)
{
	return VARATT_IS_COMPRESSED(string) || VARATT_IS_EXTERNAL(string);
}

/* The string without toast; the caller gives it to free_plain() afterwards. */
static inline const struct varlena *
plain_string(const struct varlena *string)
{
	return unlikely(is_toasted(string)) ?
		detoast_attr(unconstify(struct varlena *, string)) : string;
}

static inline void
free_plain(const struct varlena *plain, const struct varlena *string)
{
	if (unlikely(plain != string))
		pfree(unconstify(struct varlena *, plain));
}

/* A row that is NULL, or that does not count, may have a null pointer as its string. */
static void
compare_string_vectors(VectorContext *cx, VectorNode *node)
{
	VectorType	type = node->args[0]->type;
	const struct varlena *const *left = node->args[0]->result.values;
	const struct varlena *const *right = node->args[1]->result.values;
	const uint8 *nulls = node->result.nulls;
	uint8 *pg_restrict out = node->values;
	uint8		unequal = node->op == VECTOR_NE;

	for (int i = 0; i < cx->n; i++)
	{
		const struct varlena *a;
		const struct varlena *b;

		out[i] = 0;
		if ((nulls && nulls[i]) || left[i] == NULL || right[i] == NULL)
			continue;
		a = plain_string(left[i]);
		b = plain_string(right[i]);
		out[i] = (compare_strings(type, a, b) == 0) ^ unequal;
		free_plain(a, left[i]);
		free_plain(b, right[i]);
	}
}

/* ---------- comparisons ---------- */

#define COMPARE_LOOP(condition) \
	do { \
		for (int i = 0; i < n; i++) \
			out[i] = (condition); \
	} while (0)

#define COMPARE(T, eq, lt, le) \
	do { \
		const T    *a = left; \
		const T    *b = right; \
		\
		switch (node->op) \
		{ \
			case VECTOR_EQ: \
				COMPARE_LOOP(eq); \
				break; \
			case VECTOR_NE: \
				COMPARE_LOOP(!(eq)); \
				break; \
			case VECTOR_LT: \
				COMPARE_LOOP(lt); \
				break; \
			default: \
				COMPARE_LOOP(le); \
				break; \
		} \
	} while (0)

#define COMPARE_INTEGERS(T) COMPARE(T, a[i] == b[i], a[i] < b[i], a[i] <= b[i])

/* NaN equals NaN and is greater than every other value */
#define COMPARE_FLOATS(T) \
	COMPARE(T, \
			(a[i] == b[i]) | ((a[i] != a[i]) & (b[i] != b[i])), \
			(a[i] < b[i]) | ((b[i] != b[i]) & (a[i] == a[i])), \
			(a[i] <= b[i]) | (b[i] != b[i]))

void
gpurhh_vector_compare(VectorContext *cx, VectorNode *node)
{
	const void *left = node->args[0]->result.values;
	const void *right = node->args[1]->result.values;
	uint8 *pg_restrict out = node->values;
	int			n = cx->n;

	if (is_string(node->args[0]->type))
	{
		gpurhh_vector_strict_nulls(cx, node);
		compare_string_vectors(cx, node);
		return;
	}
	switch (node->args[0]->type)
	{
		case VECTOR_ANY:
			break;
		case VECTOR_BOOL:
			COMPARE_INTEGERS(uint8);
			break;
		case VECTOR_INT2:
			COMPARE_INTEGERS(int16);
			break;
		case VECTOR_INT4:
			COMPARE_INTEGERS(int32);
			break;
		case VECTOR_OID:
			COMPARE_INTEGERS(uint32);
			break;
		case VECTOR_INT8:
		case VECTOR_DECIMAL:	/* NaN is the greatest integer */
			COMPARE_INTEGERS(int64);
			break;
		case VECTOR_DECIMAL128:
			COMPARE_INTEGERS(int128);
			break;
		case VECTOR_FLOAT4:
			COMPARE_FLOATS(float4);
			break;
		case VECTOR_FLOAT8:
			COMPARE_FLOATS(float8);
			break;
		case VECTOR_UUID:
			{
				const pg_uuid_t *a = left;
				const pg_uuid_t *b = right;

				switch (node->op)
				{
					case VECTOR_EQ:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) == 0);
						break;
					case VECTOR_NE:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) != 0);
						break;
					case VECTOR_LT:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) < 0);
						break;
					default:
						COMPARE_LOOP(memcmp(&a[i], &b[i], UUID_LEN) <= 0);
						break;
				}
				break;
			}
		case VECTOR_STRING:
		case VECTOR_BPCHAR:
			break;
	}
	gpurhh_vector_strict_nulls(cx, node);
}

/* ---------- IN ---------- */

static int64
item_as_int64(VectorType type, const void *values, int i)
{
	switch (type)
	{
		case VECTOR_BOOL:
			return ((const uint8 *) values)[i];
		case VECTOR_INT2:
			return ((const int16 *) values)[i];
		case VECTOR_INT4:
			return ((const int32 *) values)[i];
		case VECTOR_OID:
			return ((const uint32 *) values)[i];
		default:
			return ((const int64 *) values)[i];
	}
}

static int
compare_int64(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return x < y ? -1 : x > y;
}

static bool
is_integer(VectorType type)
{
	return type == VECTOR_BOOL || type == VECTOR_INT2 || type == VECTOR_INT4 ||
		type == VECTOR_OID || type == VECTOR_INT8;
}

/* Reads the items of the array of an IN. */
void
gpurhh_vector_read_items(VectorNode *node, Datum array_datum)
{
	VectorType	type = node->args[0]->type;
	ArrayType  *array = is_string(type) ? DatumGetArrayTypePCopy(array_datum) :
		DatumGetArrayTypeP(array_datum);
	int16		len;
	bool		byval;
	char		align;
	Datum	   *datums;
	bool	   *nulls;
	int			n;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align, &datums,
					  &nulls, &n);
	node->items = palloc(Max((Size) n * gpurhh_vector_bytes(type), 1));
	node->n_items = 0;
	node->null_item = false;
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			node->null_item = true;
		else
			gpurhh_vector_store_datum(node->given_type, type, datums[i],
									  node->items, node->n_items++);
	}
	if (is_string(type))
	{
		struct varlena **strings = node->items;

		for (int i = 0; i < node->n_items; i++)
			strings[i] = unconstify(struct varlena *, plain_string(strings[i]));
		qsort_arg(strings, node->n_items, sizeof(struct varlena *),
				  compare_string_items, &type);
	}
	if (node->n_items > VECTOR_LINEAR_ITEMS && is_integer(type))
	{
		node->sorted = palloc(sizeof(int64) * node->n_items);
		for (int i = 0; i < node->n_items; i++)
			node->sorted[i] = item_as_int64(type, node->items, i);
		qsort(node->sorted, node->n_items, sizeof(int64), compare_int64);
	}
}

#define FIND_ITEMS(T, eq) \
	do { \
		const T    *a = scalars; \
		const T    *b = node->items; \
		\
		for (int j = 0; j < node->n_items; j++) \
		{ \
			for (int i = 0; i < n; i++) \
				out[i] |= (eq); \
		} \
	} while (0)

static bool
in_sorted(const VectorNode *node, int64 value)
{
	int			low = 0;
	int			high = node->n_items;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (node->sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < node->n_items && node->sorted[low] == value;
}

/* Searches the sorted items for the string of each row. */
static void
find_strings(VectorNode *node, const uint8 *nulls, int n)
{
	VectorType	type = node->args[0]->type;
	const struct varlena *const *strings = node->args[0]->result.values;
	uint8 *pg_restrict out = node->values;

	for (int i = 0; i < n; i++)
	{
		const struct varlena *plain;

		if (nulls[i] || strings[i] == NULL)
			continue;
		plain = plain_string(strings[i]);
		out[i] = bsearch_arg(&plain, node->items, node->n_items,
							 sizeof(struct varlena *), compare_string_items,
							 &type) != NULL;
		free_plain(plain, strings[i]);
	}
}

bool
gpurhh_vector_in(VectorContext *cx, VectorNode *node)
{
	VectorNode *scalar = node->args[0];
	const void *scalars = scalar->result.values;
	const uint8 *scalar_nulls = vector_nulls(cx, scalar);
	uint8 *pg_restrict out = node->values;
	uint8 *pg_restrict nulls = node->nulls;
	int			n = cx->n;

	if (!gpurhh_vector_read_constant(cx->expr, node))
		return false;
	if (node->is_null)
	{
		memset(nulls, 1, n);
		node->result.nulls = nulls;
		return true;
	}
	memset(out, 0, n);
	if (node->n_items == 0 && !node->null_item)
	{
		/* of an empty list nothing is asked, not even whether it is NULL */
		if (node->op == VECTOR_NOT_IN)
			memset(out, 1, n);
		node->result.nulls = NULL;
		return true;
	}
	if (node->sorted != NULL)
	{
		for (int i = 0; i < n; i++)
			out[i] = in_sorted(node, item_as_int64(scalar->type, scalars, i));
	}
	else
	{
		switch (scalar->type)
		{
			case VECTOR_ANY:
				break;
			case VECTOR_BOOL:
				FIND_ITEMS(uint8, a[i] == b[j]);
				break;
			case VECTOR_INT2:
				FIND_ITEMS(int16, a[i] == b[j]);
				break;
			case VECTOR_INT4:
				FIND_ITEMS(int32, a[i] == b[j]);
				break;
			case VECTOR_OID:
				FIND_ITEMS(uint32, a[i] == b[j]);
				break;
			case VECTOR_INT8:
				FIND_ITEMS(int64, a[i] == b[j]);
				break;
			case VECTOR_FLOAT4:
				FIND_ITEMS(float4, (a[i] == b[j]) | ((a[i] != a[i]) & (b[j] != b[j])));
				break;
			case VECTOR_FLOAT8:
				FIND_ITEMS(float8, (a[i] == b[j]) | ((a[i] != a[i]) & (b[j] != b[j])));
				break;
			case VECTOR_UUID:
				FIND_ITEMS(pg_uuid_t, memcmp(&a[i], &b[j], UUID_LEN) == 0);
				break;
			case VECTOR_STRING:
			case VECTOR_BPCHAR:
				find_strings(node, scalar_nulls, n);
				break;
			case VECTOR_DECIMAL:
			case VECTOR_DECIMAL128:
				Assert(false);
				break;
		}
	}
	/* not found beside a NULL: it may be that one */
	for (int i = 0; i < n; i++)
		nulls[i] = scalar_nulls[i] | (node->null_item & !out[i]);
	node->result.nulls =
		node->null_item || scalar->result.nulls ? nulls : NULL;
	if (node->op == VECTOR_NOT_IN)
	{
		for (int i = 0; i < n; i++)
			out[i] = !out[i];
	}
	return true;
}
