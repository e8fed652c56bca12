/*
 * rhh_group_rows.h
 *		Rows that are made of a map's groups (rhh_row_spec): what a column has in one
 *		row, the same on host and device, and how the host fills whole columns.
 */
#ifndef RHH_GROUP_ROWS_H
#define RHH_GROUP_ROWS_H

#include "rhh_device.h"
#include "rhh_hash.h"

/* Makes a digit signed; *carry is added to it, and is then what the next digit gets. */
RHH_HD uint64_t
rhh_row_digit(uint64_t digit, uint64_t *carry)
{
	uint64_t	sum = digit + *carry;

	/* the sum is at least 2^63, or it was 2^64 and wrapped around to 0 */
	*carry = sum >> 63 | (sum < *carry);
	return sum;
}

/*
 * Word w (0, or 1 of a value of 16 bytes) of a column's value in the row of a group.
 * at is the group's word that the column begins with; its next word is at[stride].
 * set is what RHH_ROW_SET has.  A key that is outside of its set is the caller's
 * business, and so is NULL (rhh_row_is_null()).
 */
RHH_HD uint64_t
rhh_row_word(uint32_t kind, const uint64_t *at, size_t stride, uint64_t set, uint32_t w)
{
	uint64_t	carry;

	switch (kind)
	{
		case RHH_ROW_KEY:
		case RHH_ROW_WORD:
			return at[w * stride];
		case RHH_ROW_ANY:
			return at[(1 + w) * stride];
		case RHH_ROW_SET:
			return set;
		case RHH_ROW_DIGIT1:
			carry = at[0] >> 63;
			return rhh_row_digit(at[stride], &carry);
		case RHH_ROW_DIGIT2:
			carry = at[0] >> 63;
			(void) rhh_row_digit(at[stride], &carry);
			return at[2 * stride] + carry;
		default:
			return 0;
	}
}

/* What RHH_ROW_SET has for set number set of a spec, in the row of a group. */
RHH_HD uint64_t
rhh_row_set(const rhh_row_spec *rows, uint32_t set, uint64_t word0)
{
	return rows->n_parts == 0 ? rows->first_set + set : (word0 >> RHH_SET_SHIFT) / rows->n_parts;
}

/*
 * Has a column no value in the row of a group, whose word w is group[w * stride]?
 * outside has the bits of the keys that are not in the set.
 */
RHH_HD bool
rhh_row_is_null(const rhh_row_column *column, uint32_t n_parts, uint64_t outside,
				const uint64_t *group, size_t stride)
{
	uint64_t	word0 = group[0];
	bool		null = column->kind == RHH_ROW_NULL ||
		(column->null_word != 0 && group[column->null_word * stride] == 0);

	if (column->kind == RHH_ROW_KEY)
		null = ((word0 | outside) >> column->key) & 1;
	else if (column->kind == RHH_ROW_KEY_IS_NULL)
		null = (word0 >> column->key) & 1;
	else if (column->kind == RHH_ROW_ANY)
		null = group[column->word * stride] == 0;
	if (column->part >= 0 && n_parts > 1)
		null = null || (word0 >> RHH_SET_SHIFT) % n_parts != (uint32_t) column->part;
	return null;
}

/*
 * May the column be NULL in a row of these groups?  null_keys has the bits of the keys
 * that may be NULL in one of the groups; outside is as above.
 */
RHH_HD bool
rhh_row_may_be_null(const rhh_row_column *column, uint32_t n_parts, uint64_t outside,
					uint64_t null_keys)
{
	if (column->part >= 0 && n_parts > 1)
		return true;
	switch (column->kind)
	{
		case RHH_ROW_KEY:
			return ((null_keys | outside) >> column->key) & 1;
		case RHH_ROW_KEY_IS_NULL:
			return (null_keys >> column->key) & 1;
		default:
			return column->kind == RHH_ROW_ANY || column->kind == RHH_ROW_NULL || column->null_word != 0;
	}
}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes the values of column c, of bytes bytes each, for the rows of n groups, whose
 * word w is at words[w * stride + i], to to.
 */
void		rhh_group_rows_values(const rhh_row_spec *rows, uint32_t c, uint32_t bytes,
								  uint32_t set, const uint64_t *words, size_t stride,
								  uint32_t n, void *to);

/*
 * Sets the bits of rows that are NULL in column c, from bit at_row of bitmap on; other
 * bits stay as they are.
 */
void		rhh_group_rows_nulls(const rhh_row_spec *rows, uint32_t c, uint32_t set,
								 const uint64_t *words, size_t stride, uint32_t n,
								 uint8_t *bitmap, uint32_t at_row);

/*
 * Lays out n rows of a set as a batch of n_columns columns of so many bytes.  A column has a bitmap if
 * it may be NULL, for which null_keys says which keys may be: without one it is read
 * faster.  The batch has no base yet.  Returns the bytes that it takes, its bitmap of
 * refused rows included, or 0 if it would take more than a batch can.
 */
uint64_t	rhh_group_rows_layout(const uint8_t *column_bytes, uint32_t n_columns, const rhh_row_spec *rows,
								  uint32_t set, uint64_t null_keys, uint32_t n, rhh_batch *batch);

#ifdef __cplusplus
}
#endif

#endif							/* RHH_GROUP_ROWS_H */
