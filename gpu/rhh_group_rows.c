/*
 * rhh_group_rows.c
 *		Columns of rows that are made of a map's groups, filled on the host: by the CPU
 *		device, and by whoever has the groups' words and wants a batch of them.
 */
#include <string.h>

#include "rhh_group_rows.h"

/* A loop for each kind: rhh_row_word()'s switch is then outside of it. */
#define FILL(T, KIND) \
	do { \
		T		   *values = (T *) to; \
		\
		for (uint32_t i = 0; i < n; i++) \
			values[i] = (T) rhh_row_word(KIND, at + i, stride, \
										 rhh_row_set(rows, set, words[i]), 0); \
	} while (0)

#define FILL_OF_WIDTH(KIND) \
	do { \
		switch (bytes) \
		{ \
			case 1: \
				FILL(uint8_t, KIND); \
				break; \
			case 2: \
				FILL(uint16_t, KIND); \
				break; \
			case 4: \
				FILL(uint32_t, KIND); \
				break; \
			case 8: \
				FILL(uint64_t, KIND); \
				break; \
			default: \
				for (uint32_t i = 0; i < n; i++) \
				{ \
					((uint64_t *) to)[2 * i] = rhh_row_word(KIND, at + i, stride, 0, 0); \
					((uint64_t *) to)[2 * i + 1] = rhh_row_word(KIND, at + i, stride, 0, 1); \
				} \
				break; \
		} \
	} while (0)

void
rhh_group_rows_values(const rhh_row_spec *rows, uint32_t c, uint32_t bytes, uint32_t set,
					  const uint64_t *words, size_t stride, uint32_t n, void *to)
{
	const rhh_row_column *column = &rows->columns[c];
	const uint64_t *at = words + column->word * stride;

	switch (column->kind)
	{
		case RHH_ROW_KEY:
			if ((rows->outside[set] >> column->key) & 1)
				memset(to, 0, (size_t) n * bytes);
			else
				FILL_OF_WIDTH(RHH_ROW_KEY);
			break;
		case RHH_ROW_WORD:
			FILL_OF_WIDTH(RHH_ROW_WORD);
			break;
		case RHH_ROW_ANY:
			FILL_OF_WIDTH(RHH_ROW_ANY);
			break;
		case RHH_ROW_SET:
			FILL(uint8_t, RHH_ROW_SET);
			break;
		case RHH_ROW_DIGIT1:
			FILL(uint64_t, RHH_ROW_DIGIT1);
			break;
		case RHH_ROW_DIGIT2:
			FILL(uint64_t, RHH_ROW_DIGIT2);
			break;
		default:
			memset(to, 0, (size_t) n * bytes);
			break;
	}
}

void
rhh_group_rows_nulls(const rhh_row_spec *rows, uint32_t c, uint32_t set, const uint64_t *words,
					 size_t stride, uint32_t n, uint8_t *bitmap, uint32_t at_row)
{
	const rhh_row_column *column = &rows->columns[c];
	const uint64_t outside = rows->outside[set];

	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	row = at_row + i;

		bitmap[row / 8] |= (uint8_t) (rhh_row_is_null(column, rows->n_parts, outside,
													  words + i, stride) << (row % 8));
	}
}

/* A column or bitmap begins at a multiple of 64 bytes. */
static uint64_t
align(uint64_t bytes)
{
	return (bytes + 63) & ~(uint64_t) 63;
}

uint64_t
rhh_group_rows_layout(const uint8_t *column_bytes, uint32_t n_columns, const rhh_row_spec *rows,
					  uint32_t set, uint64_t null_keys, uint32_t n, rhh_batch *batch)
{
	uint64_t	bitmap_bytes = align(((uint64_t) n + 63) / 64 * 8);
	uint64_t	at = 64;		/* an offset of 0 says that there are no NULLs */

	memset(batch, 0, sizeof(*batch));
	batch->on_device = true;
	batch->n_rows = n;
	for (uint32_t c = 0; c < n_columns; c++)
	{
		batch->values_offset[c] = (uint32_t) at;
		at += align((uint64_t) n * column_bytes[c]);
		if (rhh_row_may_be_null(&rows->columns[c], rows->n_parts, rows->outside[set], null_keys))
		{
			batch->nulls_offset[c] = (uint32_t) at;
			at += bitmap_bytes;
		}
		if (at > UINT32_MAX / 2)
			return 0;
	}
	batch->used_bytes = (uint32_t) at;
	batch->refused_offset = (uint32_t) at;
	return at + bitmap_bytes;
}
