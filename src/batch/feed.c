/*-------------------------------------------------------------------------
 *
 * feed.c
 *		Rows to columns: lays out blocks and writes tuple slots into their columns.
 *
 * The layout of a block follows from the widths of the columns and the size of the
 * block.  First come all values, column after column, then the NULL bitmaps, then the
 * bitmap in which the device marks the rows that it refuses (see rhh_batch).  A NULL
 * bitmap is cleared when the first NULL of its column arrives.  A column without a
 * NULL has no bitmap in the batch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"

#define BITMAP_BYTES(rows) (TYPEALIGN(64, ((rows) + 7) / 8))

/* How many bytes of a block so many rows take. */
static Size
block_bytes_for(int n_columns, const FeedColumn *columns, Size rows)
{
	Size		bytes = BITMAP_BYTES(rows); /* refused rows */

	for (int c = 0; c < n_columns; c++)
		bytes += TYPEALIGN(64, rows * columns[c].bytes) + BITMAP_BYTES(rows);
	return bytes;
}

/*
 * Lays out blocks of block_bytes for columns of so many bytes each; at most
 * max_rows rows go into a block.  RHH_MAX_COLUMNS columns fit the smallest block.
 * What the columns' values are need not be known here, as level_rows.c writes
 * them by their width alone.
 */
void
gpurhh_feed_layout(Feed *feed, int n_columns, const uint8 *column_bytes,
				   Size block_bytes, int max_rows)
{
	Size		row_bits = 1;
	Size		rows;
	Size		offset = 0;

	memset(feed, 0, sizeof(Feed));
	feed->n_columns = n_columns;
	for (int c = 0; c < n_columns; c++)
	{
		feed->columns[c].bytes = column_bytes[c];
		row_bits += 8 * column_bytes[c] + 1;
	}

	/* some rows fewer may fit, because columns are aligned */
	rows = Min((Size) max_rows, block_bytes * 8 / row_bits);
	while (rows > 64 &&
		   block_bytes_for(n_columns, feed->columns, rows) > block_bytes)
		rows -= 64;
	Assert(block_bytes_for(n_columns, feed->columns, rows) <= block_bytes);
	feed->capacity_rows = rows;

	for (int c = 0; c < n_columns; c++)
	{
		feed->columns[c].values_offset = offset;
		offset += TYPEALIGN(64, rows * feed->columns[c].bytes);
	}
	for (int c = 0; c < n_columns; c++)
	{
		feed->columns[c].nulls_offset = offset;
		offset += BITMAP_BYTES(rows);
	}
}

/* How rows' values get into columns of an encoding. */
static FeedStep
step_of(const GpuEncodingInfo *info)
{
	bool		ordered = info->order != ORDER_OF_BITS;

	if (info->role == ROLE_LEAST || info->role == ROLE_GREATEST)
		return FEED_LATER;
	switch (info->derivation)
	{
		case DERIVED_TRUTH:
			return info->role == ROLE_FILTER ? FEED_FILTER : FEED_TRUTH;
		case DERIVED_VALUE:
			break;
		case DERIVED_WORD:
			return FEED_WORD;
		case DERIVED_LIMB:
			return FEED_LIMB;
		case DERIVED_WIDENED:
			return FEED_WIDENED;
		case DERIVED_RESCALED:
			return FEED_RESCALED;
		case DERIVED_STRING:
		case DERIVED_BPCHAR:
		case DERIVED_UNPADDED:
		case DERIVED_NAME:
			return FEED_BEFORE;
		case DERIVED_BOTH:
		case DERIVED_PRODUCT:
			return FEED_LATER;
		case DERIVED_NOT:
			elog(ERROR, "column without an encoding is fed");
	}
	switch (info->bytes)
	{
		case 1:
			return FEED_1_BYTE;
		case 2:
			return FEED_2_BYTES;
		case 4:
			return ordered ? FEED_4_ORDERED : FEED_4_BYTES;
		case 8:
			return ordered ? FEED_8_ORDERED : FEED_8_BYTES;
		default:
			return FEED_16_BYTES;
	}
}

/* Lays out blocks for these columns, as above, to be filled from rows or pages. */
void
gpurhh_feed_init(Feed *feed, int n_columns, const GpuColumn *columns,
				 Size block_bytes, int max_rows)
{
	uint8		column_bytes[RHH_MAX_COLUMNS] = {0};

	for (int c = 0; c < n_columns; c++)
		column_bytes[c] = gpurhh_encodings[columns[c].encoding].bytes;
	gpurhh_feed_layout(feed, n_columns, column_bytes, block_bytes, max_rows);
	for (int c = 0; c < n_columns; c++)
	{
		FeedColumn *to = &feed->columns[c];
		const GpuEncodingInfo *info = &gpurhh_encodings[columns[c].encoding];

		to->encoding = columns[c].encoding;
		to->parameter = columns[c].parameter;
		to->attribute = columns[c].attribute;
		to->step = step_of(info);
		to->order = info->order;
		to->limb = info->limb;
		feed->n_attributes = Max(feed->n_attributes, to->attribute + 1);
		if (to->step == FEED_BEFORE)
			feed->string_columns[feed->n_strings++] = c;
	}
}

/* Starts a block at base, to which the next rows go. */
void
gpurhh_feed_start(Feed *feed, char *base)
{
	feed->base = base;
	feed->n_rows = 0;
	for (int c = 0; c < feed->n_columns; c++)
	{
		feed->columns[c].any_null = false;
		feed->columns[c].zero_rows = 0;
	}
}

/* The NULL bitmap of a column, which is cleared when it is first needed in a block. */
static uint8 *
null_bitmap(Feed *feed, FeedColumn *column)
{
	uint8	   *nulls = (uint8 *) feed->base + column->nulls_offset;

	if (!column->any_null)
	{
		memset(nulls, 0, BITMAP_BYTES(feed->capacity_rows));
		column->any_null = true;
	}
	return nulls;
}

/* The same for callers that set bits by the number of the row in the block. */
uint8 *
gpurhh_feed_null_bitmap(Feed *feed, int column)
{
	return null_bitmap(feed, &feed->columns[column]);
}

/* Makes a value of the row that is being appended NULL. */
static pg_noinline void
mark_null(Feed *feed, FeedColumn *column)
{
	uint8	   *nulls = null_bitmap(feed, column);

	nulls[feed->n_rows / 8] |= 1 << (feed->n_rows % 8);
	/* keep uninitialized memory out of shared memory's readers */
	memset(feed->base + column->values_offset +
		   (Size) feed->n_rows * column->bytes, 0, column->bytes);
}

/* Does a row have a numeric whose key will be odd? */
static bool
has_odd_numeric(const Feed *feed, TupleTableSlot *slot)
{
	for (int c = 0; c < feed->n_columns; c++)
	{
		const FeedColumn *column = &feed->columns[c];
		int64		limb;

		if (column->is_key && column->encoding == GPU_ENC_DECIMAL &&
			!slot->tts_isnull[column->attribute] &&
			!gpurhh_decimal_read(DatumGetPointer(slot->tts_values[column->attribute]),
								 GPURHH_DECIMAL_SCALE(column->parameter), 1,
								 &limb))
			return true;
	}
	return false;
}

/*
 * Writes the keys of the row's strings, before any other column of the row.  Returns
 * false if the dictionary does not take a string: the row has been deferred then, and
 * must not be fed.
 */
static bool
feed_strings(Feed *feed, TupleTableSlot *slot)
{
	uint32		hash;

	for (int i = 0; i < feed->n_strings; i++)
	{
		int			c = feed->string_columns[i];
		const FeedColumn *column = &feed->columns[c];
		const struct varlena *value;

		if (slot->tts_isnull[column->attribute])
			continue;
		value = (const struct varlena *)
			DatumGetPointer(slot->tts_values[column->attribute]);
		gpurhh_strings_add(&feed->strings,
						   gpurhh_encodings[column->encoding].derivation,
						   column->parameter, value, (const char *) value,
						   feed->base + column->values_offset +
						   (Size) feed->n_rows * GPURHH_STRING_BYTES);
	}
	if (likely(gpurhh_strings_finish(&feed->strings, &hash)))
		return true;
	/* an odd key means that groups of all passes have to be merged, this row's too */
	feed->strings.odd |= has_odd_numeric(feed, slot);
	feed->defer(feed->defer_arg, slot, hash);
	return false;
}

/* Gives the row's strings to candidates.c, which chooses those that are fed. */
static void
feed_candidates(Feed *feed, TupleTableSlot *slot)
{
	const uint8 *columns;
	int			n = gpurhh_candidates_columns(feed->candidates, &columns);
	Vector		strings[RHH_MAX_KEYS];
	const Vector *pointers[RHH_MAX_KEYS];

	for (int i = 0; i < n; i++)
	{
		int			attribute = feed->columns[columns[i]].attribute;

		strings[i].values = &slot->tts_values[attribute];
		strings[i].nulls = (const uint8 *) &slot->tts_isnull[attribute];
		pointers[i] = &strings[i];
	}
	gpurhh_candidates_add(feed->candidates, feed, 1, pointers);
}

/*
 * Writes a limb of a row's numeric, or NULL if the numeric does not have the scale
 * that its expression declares.  Returns false if odd_row() has to take the row.
 */
static inline bool
feed_decimal(Feed *feed, FeedColumn *column, Datum value)
{
	int64		limbs[GPURHH_MAX_LIMBS];
	int			scale = GPURHH_DECIMAL_SCALE(column->parameter);

	if (likely(gpurhh_decimal_read(DatumGetPointer(value), scale,
								   GPURHH_DECIMAL_LIMBS(column->parameter),
								   limbs)))
	{
		((int64 *) (feed->base + column->values_offset))[feed->n_rows] =
			limbs[column->limb];
		return likely(feed->watched == NULL) || column->is_key ||
			!gpurhh_is_watched(feed->watched, limbs[0]);
	}
	if (!column->is_key)
		mark_null(feed, column);
	return false;
}

/*
 * Writes a row's numeric as it is at a greater scale.  Returns false if odd_row() has to take
 * the row, as the numeric does not have the scale that its type declares, or does not fit.
 */
static bool
feed_rescaled(Feed *feed, FeedColumn *column, Datum value)
{
	int64		limb;

	if (likely(gpurhh_decimal_read(DatumGetPointer(value),
								   GPURHH_DECIMAL_SCALE(column->parameter), 1, &limb) &&
			   gpurhh_decimal_rescale(&limb, NULL, 1,
									  GPURHH_RESCALED_EXPONENT(column->parameter),
									  (int64 *) (feed->base + column->values_offset) +
									  feed->n_rows)))
		return true;
	mark_null(feed, column);
	return false;
}

/* Clears the NULL bits of a row that is not appended after all. */
static void
forget_row(Feed *feed)
{
	uint32		row = feed->n_rows;

	for (int c = 0; c < feed->n_columns; c++)
	{
		const FeedColumn *column = &feed->columns[c];

		if (column->any_null)
			((uint8 *) feed->base + column->nulls_offset)[row / 8] &=
				~(1 << (row % 8));
	}
}

/*
 * Writes the key of an odd numeric.  Returns false if the dictionary does not take
 * the numeric: the row has been deferred then, and must not be fed.
 */
static pg_noinline bool
feed_odd_key(Feed *feed, const FeedColumn *column, TupleTableSlot *slot)
{
	uint64		word;
	uint32		hash;

	if (gpurhh_dictionary_add_numeric(&feed->strings,
									  slot->tts_values[column->attribute],
									  &word, &hash))
	{
		((uint64 *) (feed->base + column->values_offset))[feed->n_rows] = word;
		return true;
	}
	forget_row(feed);
	feed->defer(feed->defer_arg, slot, hash);
	return false;
}

/*
 * Appends a row of the child to the block, unless the row is deferred.  The caller
 * has started the block, and hands it over once n_rows reaches capacity_rows.
 */
void
gpurhh_feed_slot(Feed *feed, TupleTableSlot *slot)
{
	uint32		row = feed->n_rows;
	bool		odd = false;

	slot_getsomeattrs(slot, feed->n_attributes);
	if (feed->n_strings > 0 && !feed_strings(feed, slot))
		return;
	for (int c = 0; c < feed->n_columns; c++)
	{
		FeedColumn *column = &feed->columns[c];
		char	   *values = feed->base + column->values_offset;
		Datum		value = slot->tts_values[column->attribute];

		if (column->step == FEED_LATER)
			continue;
		if (unlikely(slot->tts_isnull[column->attribute]))
		{
			if (column->step == FEED_FILTER)
				((uint8 *) values)[row] = 0;
			else
				mark_null(feed, column);
			continue;
		}
		switch ((FeedStep) column->step)
		{
			case FEED_LATER:
			case FEED_BEFORE:
				break;
			case FEED_FILTER:
			case FEED_TRUTH:
				((uint8 *) values)[row] = DatumGetBool(value) ? 1 : 0;
				break;
			case FEED_1_BYTE:
				values[row] = DatumGetChar(value);
				break;
			case FEED_2_BYTES:
				((int16 *) values)[row] = DatumGetInt16(value);
				break;
			case FEED_4_BYTES:
				((int32 *) values)[row] = DatumGetInt32(value);
				break;
			case FEED_8_BYTES:
				((int64 *) values)[row] = DatumGetInt64(value);
				break;
			case FEED_16_BYTES:
				memcpy(values + (Size) row * 16, DatumGetPointer(value), 16);
				break;
			case FEED_4_ORDERED:
				((int32 *) values)[row] = DatumGetInt32(value);
				gpurhh_order_4_bytes(column->order, (int32 *) values + row, 1);
				break;
			case FEED_8_ORDERED:
				((int64 *) values)[row] = DatumGetInt64(value);
				gpurhh_order_8_bytes(column->order, (int64 *) values + row, 1);
				break;
			case FEED_LIMB:
				if (likely(feed_decimal(feed, column, value)))
					break;
				if (!column->is_key)
					odd = true;
				else if (!feed_odd_key(feed, column, slot))
					return;
				break;
			case FEED_WORD:
				((uint64 *) values)[row] =
					gpurhh_encode_reference(column->encoding, column->parameter,
											DatumGetPointer(value));
				break;
			case FEED_WIDENED:
				gpurhh_widen_datum(column->encoding, value,
								   values + (Size) row * column->bytes);
				break;
			case FEED_RESCALED:
				odd |= !feed_rescaled(feed, column, value);
				break;
		}
	}
	if (feed->candidates != NULL)
		feed_candidates(feed, slot);
	if (unlikely(odd) && !feed->odd_row(feed->odd_arg, feed, slot))
	{
		forget_row(feed);
		return;
	}
	feed->n_rows = row + 1;
}

/* Appends a row of the child to the block, or leaves it over if that cannot be done. */
void
gpurhh_feed_or_leave(Feed *feed, TupleTableSlot *slot)
{
	if (feed->leave_row != NULL)
		feed->leave_row(feed->leave_arg, slot);
	else
		gpurhh_feed_slot(feed, slot);
}

/* Makes a column of strings NULL in the n rows that are about to be appended. */
void
gpurhh_feed_no_strings(Feed *feed, int column, int n)
{
	uint8	   *bitmap = null_bitmap(feed, &feed->columns[column]);

	for (uint32 row = feed->n_rows; row < feed->n_rows + n; row++)
		bitmap[row / 8] |= 1 << (row % 8);
	memset(feed->base + feed->columns[column].values_offset +
		   (Size) feed->n_rows * GPURHH_STRING_BYTES, 0,
		   (Size) n * GPURHH_STRING_BYTES);
}

/*
 * Gives a string to a row of the block, which is NULL so far.  The memory of the
 * string must stay until gpurhh_strings_finish().  regular says that a char(n) has as
 * many characters as its type declares, although its trailing blanks are cut off here.
 */
void
gpurhh_feed_string(Feed *feed, int column, uint32 row,
				   const struct varlena *value, bool regular)
{
	const FeedColumn *to = &feed->columns[column];
	uint8	   *bitmap = (uint8 *) feed->base + to->nulls_offset;
	bool		blanks =
		gpurhh_encodings[to->encoding].derivation == DERIVED_BPCHAR;

	bitmap[row / 8] &= ~(1 << (row % 8));
	gpurhh_strings_add(&feed->strings,
					   blanks && !regular ? DERIVED_BPCHAR : DERIVED_STRING,
					   to->parameter, value, (const char *) value,
					   feed->base + to->values_offset +
					   (Size) row * GPURHH_STRING_BYTES);
}

/* The n rows that the caller is about to append have 0 in a column. */
void
gpurhh_feed_zeros(Feed *feed, int column, int n)
{
	FeedColumn *to = &feed->columns[column];

	memset(feed->base + to->values_offset + (Size) feed->n_rows * to->bytes, 0, (Size) n * to->bytes);
	if (to->zero_rows == feed->n_rows)
		to->zero_rows += n;
}

/*
 * Marks the NULLs of a column in the n rows that the caller is about to append; nulls
 * has a byte for each row.  The caller has set the values of NULLs to 0.
 */
void
gpurhh_feed_nulls(Feed *feed, int column, const uint8 *nulls, int n)
{
	uint8	   *bitmap = null_bitmap(feed, &feed->columns[column]);

	for (int i = 0; i < n; i++)
	{
		uint32		row = feed->n_rows + i;

		bitmap[row / 8] |= nulls[i] << (row % 8);
	}
}

/* Describes the block while it is being filled.  The reader sets base. */
void
gpurhh_feed_describe(const Feed *feed, rhh_batch *batch)
{
	memset(batch, 0, sizeof(rhh_batch));
	batch->n_rows = feed->n_rows;
	for (int c = 0; c < feed->n_columns; c++)
	{
		batch->values_offset[c] = feed->columns[c].values_offset;
		if (feed->columns[c].any_null)
			batch->nulls_offset[c] = feed->columns[c].nulls_offset;
	}
}

/*
 * If the dictionary has not taken the string that gpurhh_feed_string() gave to a row,
 * makes the row NULL again and returns true.  Returns false if the row has a complete
 * key, because the string is short or the dictionary has it.
 */
bool
gpurhh_feed_take_back(Feed *feed, int column, uint32 row)
{
	const FeedColumn *from = &feed->columns[column];
	uint8	   *bitmap = (uint8 *) feed->base + from->nulls_offset;
	uint8	   *key = (uint8 *) feed->base + from->values_offset +
		(Size) row * GPURHH_STRING_BYTES;
	uint64		number;

	memcpy(&number, key, sizeof(number));
	if (!gpurhh_string_is_long(key[GPURHH_STRING_BYTES - 1]) || number != 0)
		return false;
	bitmap[row / 8] |= 1 << (row % 8);
	memset(key, 0, GPURHH_STRING_BYTES);
	return true;
}

/*
 * Moves a part of the block down to the offset *to, and advances *to to the end of
 * the part.  Must be called for the parts in the order in which they lie in the block.
 */
static void
move_down(Feed *feed, uint32 from, Size bytes, uint32 *to)
{
	if (from != *to)
		memmove(feed->base + *to, feed->base + from, bytes);
	*to += TYPEALIGN(64, bytes);
}

/*
 * Completes the block and describes it; the reader sets base.  Everything from the
 * start of the block to the end of the last column will be uploaded, so the columns of
 * a block that is not full are moved together first.
 */
void
gpurhh_feed_finish(Feed *feed, rhh_batch *batch)
{
	uint32		to = 0;

	if (feed->candidates != NULL)
		gpurhh_candidates_finish(feed->candidates, feed);
	gpurhh_pairs_fill(feed);
	memset(batch, 0, sizeof(rhh_batch));
	batch->n_rows = feed->n_rows;
	for (int c = 0; c < feed->n_columns; c++)
	{
		FeedColumn *column = &feed->columns[c];

		batch->values_offset[c] = to;
		if (column->zero_rows == feed->n_rows)
			batch->zero_columns |= UINT64CONST(1) << c;
		move_down(feed, column->values_offset,
				  (Size) feed->n_rows * column->bytes, &to);
	}
	for (int c = 0; c < feed->n_columns; c++)
	{
		FeedColumn *column = &feed->columns[c];

		if (!column->any_null)
			continue;
		batch->nulls_offset[c] = to;
		move_down(feed, column->nulls_offset, BITMAP_BYTES(feed->n_rows), &to);
	}
	batch->used_bytes = to;
	batch->refused_offset = to;
	feed->base = NULL;
}
