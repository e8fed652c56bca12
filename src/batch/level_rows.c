/*-------------------------------------------------------------------------
 *
 * level_rows.c
 *		Groups to rows: writes the words of one map's groups into the columns of a
 *		batch for another map.
 *
 * A device makes the rows of its own groups itself (map_feed in gpu/rhh_device.h).  The
 * functions here do the same on the host, from the same description, for a level of
 * groups (exec/levels.c) in two cases: the session has the groups and feeds them to the
 * device, or the device has refused rows, which the session then finishes.
 *
 * Words and columns have a width here and nothing else: which types the values have,
 * and what they were derived from, no longer matters once they are words.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"
#include "rhh_group_rows.h"

/* Lays out blocks of block_bytes, at most max_rows rows each. */
void
gpurhh_level_rows_init(Feed *feed, const LevelPlan *plan,
					   Size block_bytes, int max_rows)
{
	gpurhh_feed_layout(feed, plan->spec.n_columns, plan->spec.column_bytes,
					   block_bytes, max_rows);
}

/*
 * Appends n groups as rows of a set to the block that was started.  Word w of group i
 * is words[w * stride + i].  The caller makes sure that the block has room for them.
 */
void
gpurhh_level_rows_feed(Feed *feed, const LevelPlan *plan, int set,
					   const uint64 *words, Size stride, uint32 n)
{
	const rhh_row_spec *rows = &plan->rows;
	uint64		null_keys = 0;

	Assert(feed->n_rows + n <= feed->capacity_rows && !plan->has_program);
	for (uint32 i = 0; i < n; i++)
		null_keys |= words[i];
	for (uint32 c = 0; c < plan->spec.n_columns; c++)
	{
		int			bytes = feed->columns[c].bytes;

		rhh_group_rows_values(rows, c, bytes, set, words, stride, n,
							  feed->base + feed->columns[c].values_offset +
							  (Size) feed->n_rows * bytes);
		if (rhh_row_may_be_null(&rows->columns[c], rows->n_parts, rows->outside[set],
								null_keys))
			rhh_group_rows_nulls(rows, c, set, words, stride, n,
								 gpurhh_feed_null_bitmap(feed, c), feed->n_rows);
	}
	feed->n_rows += n;
}
