/*
 * rhh_decimals.h
 *		Most of PostgreSQL's numerics as integers, without a branch that depends on their digits: for
 *		sessions, and the same on host and device.
 *
 * A numeric (utils/adt/numeric.c) has digits to the base 10000.  Most have a header of two bytes, with sign,
 * scale and the weight of the first digit, and at most four digits.  Those of one scale are put into four places, whose
 * weights end with that of the last digit that the scale needs, and are added up there.
 */
#ifndef RHH_DECIMALS_H
#define RHH_DECIMALS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rhh_hash.h"

/* What is the same for all values of one scale. */
typedef struct rhh_decimal_reader
{
	uint16_t	header;			/* of a positive value of weight 0; UINT16_MAX: there are no such values */
	int			first_weight;	/* of the first place */
	int64_t		factors[3];		/* of the digit in each place but the last one, ... */
	uint32_t	divisor;		/* ... whose digit is divided by this */
	uint64_t	inverse;		/* of the divisor: what a digit is multiplied with, for the high 32 bits of that */
} rhh_decimal_reader;

/* Bytes that are read of a value, from behind the varlena's header on, whatever it has. */
#define RHH_DECIMAL_READ_BYTES 10u

/* The readers of scales 0 to 16, and of all that are greater. */
#define RHH_DECIMAL_NO_SCALE 17u
/* clang-format off */
#define RHH_DECIMAL_READER(scale, n_behind, divisor, inverse) \
	{0x8000 | (scale) << 7, 3 - (n_behind), \
	 {INT64_C(1000000000000) / (divisor), 100000000 / (divisor), 10000 / (divisor)}, divisor, inverse}
#define RHH_DECIMAL_FOUR_READERS(n) \
	RHH_DECIMAL_READER(4 * (n) - 3, n, 1000, 4294968), \
	RHH_DECIMAL_READER(4 * (n) - 2, n, 100, 42949673), \
	RHH_DECIMAL_READER(4 * (n) - 1, n, 10, 429496730), \
	RHH_DECIMAL_READER(4 * (n), n, 1, UINT64_C(1) << 32)
#define RHH_DECIMAL_READERS \
	{RHH_DECIMAL_READER(0, 0, 1, UINT64_C(1) << 32), \
	 RHH_DECIMAL_FOUR_READERS(1), RHH_DECIMAL_FOUR_READERS(2), RHH_DECIMAL_FOUR_READERS(3), RHH_DECIMAL_FOUR_READERS(4), \
	 {UINT16_MAX, 0, {0, 0, 0}, 1, 0}}
/* clang-format on */

static const rhh_decimal_reader rhh_decimal_readers[] = RHH_DECIMAL_READERS;
#ifdef __CUDACC__
static __constant__ const rhh_decimal_reader rhh_decimal_readers_of_device[] = RHH_DECIMAL_READERS;
#endif

RHH_HD const rhh_decimal_reader *
rhh_decimal_reader_of(uint32_t scale)
{
	const uint32_t i = scale < RHH_DECIMAL_NO_SCALE ? scale : RHH_DECIMAL_NO_SCALE;

#ifdef __CUDA_ARCH__
	return &rhh_decimal_readers_of_device[i];
#else
	return &rhh_decimal_readers[i];
#endif
}

/*
 * A value times 10^scale, of this header and so many digits, the lowest 16 bits first; what is behind them does not matter.  False:
 * it is not such a value, or not of this scale.
 */
RHH_HD bool
rhh_decimal_of(const rhh_decimal_reader *reader, uint32_t header, uint64_t digits, uint32_t n_digits, int64_t *result)
{
	const uint32_t n_empty = (uint32_t) (reader->first_weight - ((int) (header & 0x3f) - (int) (header & 0x40)));
	uint64_t	places;
	uint32_t	last;
	uint32_t	quotient;
	int64_t		sum;
	int64_t		sign;

	if (__builtin_expect((header & 0xdf80) != reader->header || n_digits > 4 || n_empty > 3 ||
						 n_digits + n_empty > 4, 0))
		return false;
	/* zeros fill it up; nothing is shifted by 64 bits */
	places = (digits & ~(~UINT64_C(0) << 8 * n_digits << 8 * n_digits)) << 16 * n_empty;
	last = (uint32_t) (places >> 48);
	quotient = (uint32_t) (last * reader->inverse >> 32);
	if (__builtin_expect(quotient * reader->divisor != last, 0))
		return false;
	sum = (int64_t) (places & 0xffff) * reader->factors[0] + (int64_t) (places >> 16 & 0xffff) * reader->factors[1] +
		(int64_t) (places >> 32 & 0xffff) * reader->factors[2] + quotient;
	sign = -(int64_t) ((header & 0x2000) != 0);
	*result = (sum ^ sign) - sign;
	return true;
}

/* The same of a value of so many bytes without the varlena's header, which has one byte.  Not for a device. */
static inline bool
rhh_decimal_read(const rhh_decimal_reader *reader, const void *value, uint32_t bytes, int64_t *result)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint16_t	header;
	uint64_t	digits;

	memcpy(&header, value, sizeof(header));
	memcpy(&digits, (const uint8_t *) value + sizeof(header), sizeof(digits));
	return rhh_decimal_of(reader, header, digits, (bytes - 2) / 2, result);
#else
	(void) reader, (void) value, (void) bytes, (void) result;
	return false;
#endif
}

#endif							/* RHH_DECIMALS_H */
