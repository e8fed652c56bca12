/*-------------------------------------------------------------------------
 *
 * level_rows.c
 *		Groups to rows: writes the words of one table's groups into the columns
 *		of a batch for another table.
 *
 * This is for a second level (exec/levels.c) whose groups a device makes.  The service
 * calls it between the two tables of a query.  The code knows the layouts of both, and
 * nothing of plans or devices.
 *
 * Words and columns have a width here and nothing else: which types the values have,
 * and what they were derived from, no longer matters once they are words.
 *
 * A key is written with as many bytes as it has in the first table, and its NULL bit
 * in word 0 becomes a NULL of the column.  The words of a state become arguments of
 * states of the second level.  Sums, minima and other states of 64 bits are one word,
 * which is written as it is.  A state of several words is a number to base 2^64, whose
 * digits are summed up separately.  As sums take signed arguments, a digit of 2^63 or
 * more is written as that digit minus 2^64, which is negative, and 1 is added to the
 * next digit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"

/* Lays out blocks of block_bytes, at most max_rows rows each. */
void
gpurhh_level_rows_init(Feed *feed, const LevelPlan *plan,
					   Size block_bytes, int max_rows)
{
	gpurhh_feed_layout(feed, plan->spec.n_columns, plan->spec.column_bytes,
					   block_bytes, max_rows);
}

#define NARROW(T) \
	do { \
		T		   *v = to; \
		\
		for (uint32 i = 0; i < n; i++) \
			v[i] = (T) from[i]; \
	} while (0)

/* Writes values, which have one word or two, with the width of the column. */
static void
copy_values(void *to, int bytes, const uint64 *from, Size stride, uint32 n)
{
	uint64	   *wide = to;

	switch (bytes)
	{
		case 1:
			NARROW(uint8);
			break;
		case 2:
			NARROW(uint16);
			break;
		case 4:
			NARROW(uint32);
			break;
		case 8:
			memcpy(to, from, n * sizeof(uint64));
			break;
		default:
			for (uint32 i = 0; i < n; i++)
			{
				wide[2 * i] = from[i];
				wide[2 * i + 1] = from[stride + i];
			}
			break;
	}
}

/* Adds *carry to a digit, and stores in *carry what making it signed adds to the next. */
static inline uint64
next_digit(uint64 digit, uint64 *carry)
{
	uint64		sum = digit + *carry;

	/* above 2^63, or 2^64 and so 0 */
	*carry = sum >> 63 | (sum < *carry);
	return sum;
}

/* Writes the second or third digit of numbers of several words, as signed integers. */
static void
copy_digits(uint64 *to, const uint64 *from, Size stride, uint32 n, int digit)
{
	for (uint32 i = 0; i < n; i++)
	{
		uint64		carry = from[i] >> 63;

		to[i] = next_digit(from[stride + i], &carry);
		if (digit == 2)
			to[i] = from[2 * stride + i] + carry;
	}
}

/* The number of the part of its set to which a group belongs, see LevelPlan. */
static inline int
part_of(const LevelPlan *plan, uint64 word0)
{
	return GPURHH_SET_OF(word0) % plan->n_parts;
}

/* Sets the bits of the appended rows, in a bitmap of NULLs, for which is_null is 1. */
#define MARK_NULLS(is_null) \
	do { \
		for (uint32 i = 0; i < n; i++) \
		{ \
			uint32		row = feed->n_rows + i; \
			\
			bitmap[row / 8] |= (uint8) ((is_null) << (row % 8)); \
		} \
	} while (0)

/* Marks the rows in which a column is NULL.  outside: the set does not have the key. */
static void
mark_nulls(Feed *feed, int c, const LevelColumn *from, bool outside,
		   const uint64 *words, Size stride, uint32 n)
{
	uint8	   *bitmap = gpurhh_feed_null_bitmap(feed, c);

	if (outside)
		MARK_NULLS(1);
	else if (from->kind == LEVEL_ANY)
		MARK_NULLS(words[from->word * stride + i] == 0);
	else
		MARK_NULLS((words[i] >> from->key) & 1);
}

/*
 * Appends n groups as rows of a set to the block that was started.  Word w of group i
 * is words[w * stride + i].  The caller makes sure that the block has room for them.
 */
void
gpurhh_level_rows_feed(Feed *feed, const LevelPlan *plan, int set,
					   const uint64 *words, Size stride, uint32 n)
{
	uint64		nulls = 0;

	Assert(feed->n_rows + n <= feed->capacity_rows);
	for (uint32 i = 0; i < n; i++)
		nulls |= words[i];
	for (uint32 c = 0; c < plan->spec.n_columns; c++)
	{
		const LevelColumn *from = &plan->columns[c];
		const uint64 *at = words + from->word * stride;
		int			bytes = feed->columns[c].bytes;
		char	   *to = feed->base + feed->columns[c].values_offset +
			(Size) feed->n_rows * bytes;
		bool		outside = from->kind == LEVEL_KEY &&
			((plan->outside[set] >> from->key) & 1) != 0;

		switch (from->kind)
		{
			case LEVEL_KEY:
				if (outside)
					memset(to, 0, (Size) n * bytes);
				else
					copy_values(to, bytes, at, stride, n);
				break;
			case LEVEL_IS_NULL:
				memset(to, 0, (Size) n * bytes);
				break;
			case LEVEL_SET:
				if (plan->n_parts == 0)
					memset(to, plan->first_set + set, n);
				else
				{
					for (uint32 i = 0; i < n; i++)
						to[i] = (char) (GPURHH_SET_OF(words[i]) / plan->n_parts);
				}
				break;
			case LEVEL_WORD:
				copy_values(to, bytes, at, stride, n);
				break;
			case LEVEL_ANY:
				copy_values(to, bytes, at + stride, stride, n);
				break;
			case LEVEL_DIGIT1:
			case LEVEL_DIGIT2:
				copy_digits((uint64 *) to, at, stride, n,
							from->kind == LEVEL_DIGIT1 ? 1 : 2);
				break;
		}
		if (from->kind == LEVEL_ANY || outside ||
			((from->kind == LEVEL_KEY || from->kind == LEVEL_IS_NULL) &&
			 ((nulls >> from->key) & 1) != 0))
			mark_nulls(feed, c, from, outside, words, stride, n);
		if (from->part >= 0 && plan->n_parts > 1)
		{
			uint8	   *bitmap = gpurhh_feed_null_bitmap(feed, c);

			MARK_NULLS(part_of(plan, words[i]) != from->part);
		}
	}
	feed->n_rows += n;
}
