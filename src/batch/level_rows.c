/*-------------------------------------------------------------------------
 *
 * level_rows.c
 *		Groups to rows: writes a table's result words into the columns of a
 *		batch for another table.
 *
 * This is for a level of groups (exec/levels.c) that a device makes of groups which
 * are not in that device, or not as they are: the session has them, or the device
 * refused the rows and the session is to finish them.  A device makes the rows of its
 * own groups itself (map_feed in gpu/rhh_device.h), from the same description.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"
#include "rhh_group_rows.h"

/* How feed.c lays out a column of so many bytes. */
static GpuEncoding
encoding_of(int bytes)
{
	switch (bytes)
	{
		case 1:
			return GPU_ENC_CHAR;
		case 2:
			return GPU_ENC_INT2;
		case 4:
			return GPU_ENC_INT4;
		case 8:
			return GPU_ENC_INT8;
		default:
			return GPU_ENC_UUID;
	}
}

/* Lays out blocks of block_bytes, at most max_rows rows each. */
void
gpurhh_level_rows_init(Feed *feed, const LevelPlan *plan,
					   Size block_bytes, int max_rows)
{
	GpuColumn	columns[RHH_MAX_COLUMNS] = {0};

	for (uint32 c = 0; c < plan->spec.n_columns; c++)
		columns[c].encoding = encoding_of(plan->spec.column_bytes[c]);
	gpurhh_feed_init(feed, plan->spec.n_columns, columns, block_bytes,
					 max_rows);
}

/*
 * Appends n groups, whose word w is at words[w * stride + i], as rows of a set to
 * the block that was started; there is room for them.
 */
void
gpurhh_level_rows_feed(Feed *feed, const LevelPlan *plan, int set,
					   const uint64 *words, Size stride, uint32 n)
{
	const rhh_row_spec *rows = &plan->rows;
	uint64		key_nulls = rows->outside[set];

	Assert(feed->n_rows + n <= feed->capacity_rows);
	for (uint32 i = 0; i < n; i++)
		key_nulls |= words[i];
	for (uint32 c = 0; c < plan->spec.n_columns; c++)
	{
		const rhh_row_column *column = &rows->columns[c];
		int			bytes = feed->columns[c].bytes;

		rhh_group_rows_values(rows, c, bytes, set, words, stride, n,
							  feed->base + feed->columns[c].values_offset +
							  (Size) feed->n_rows * bytes);
		/* a column without a NULL gets no bitmap */
		if (rhh_row_may_be_null(column, rows->n_parts) &&
			(column->kind == RHH_ROW_ANY || column->part >= 0 ||
			 ((key_nulls >> column->key) & 1) != 0))
			rhh_group_rows_nulls(rows, c, set, words, stride, n,
								 gpurhh_feed_null_bitmap(feed, c), feed->n_rows);
	}
	feed->n_rows += n;
}
