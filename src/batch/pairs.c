/*-------------------------------------------------------------------------
 *
 * pairs.c
 *		Makes columns of two other columns, for aggregates of two arguments.
 *
 * The two arguments of an aggregate such as corr(y, x) are fed as columns of their
 * own.  Once a block is full, two more columns are made of these:
 *
 *		both		is 1 where neither argument is NULL; it is the filter of the
 *					states
 *		product		the product as two doubles: the rounded product, and what
 *					rounding took from it
 *
 * types/pair_final.c makes the results.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batch/batch.h"

static const void *
column_values(const Feed *feed, int column)
{
	return feed->base + feed->columns[column].values_offset;
}

/* The NULL bits of eight rows, of which row is the first. */
static uint8
null_bits(const Feed *feed, int column, uint32 row)
{
	if (!feed->columns[column].any_null)
		return 0;
	return ((const uint8 *) feed->base +
			feed->columns[column].nulls_offset)[row / 8];
}

static void
fill_both(const Feed *feed, int first, int second, uint8 *to)
{
	for (uint32 row = 0; row < feed->n_rows; row += 8)
	{
		uint32		n = Min(feed->n_rows - row, 8);
		uint8		nulls = null_bits(feed, first, row) |
			null_bits(feed, second, row);

		for (uint32 i = 0; i < n; i++)
			to[row + i] = (~nulls >> i) & 1;
	}
}

/*
 * What rounding took from product = x * y.  The result is wrong if the product
 * overflows or underflows.  After an overflow it is not used, see gpurhh_pair_final().
 */
static inline float8
product_error(float8 x, float8 y, float8 product)
{
	float8		x_scaled = 134217729.0 * x; /* 2^27 + 1 */
	float8		y_scaled = 134217729.0 * y;
	float8		x_high = x_scaled - (x_scaled - x);
	float8		y_high = y_scaled - (y_scaled - y);
	float8		x_low = x - x_high;
	float8		y_low = y - y_high;

	return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) +
		x_low * y_low;
}

static void
fill_products(const Feed *feed, const float8 *first, const float8 *second,
			  Twice *to)
{
	for (uint32 row = 0; row < feed->n_rows; row++)
	{
		to[row].high = first[row] * second[row];
		to[row].low = product_error(first[row], second[row], to[row].high);
	}
}

/* Fills the columns that are made of two others, which must be in the block already. */
void
gpurhh_pairs_fill(Feed *feed)
{
	for (int c = 0; c < feed->n_columns; c++)
	{
		const FeedColumn *column = &feed->columns[c];
		GpuDerivation derivation = gpurhh_encodings[column->encoding].derivation;
		char	   *to = feed->base + column->values_offset;
		int			first = column->parameter >> 8;
		int			second = column->parameter & 0xff;

		if (derivation == DERIVED_BOTH)
			fill_both(feed, first, second, (uint8 *) to);
		else if (derivation == DERIVED_PRODUCT)
			fill_products(feed, column_values(feed, first),
						  column_values(feed, second), (Twice *) to);
	}
}
