/*
 * rhh_decimals.h
 *		Most of PostgreSQL's numerics as integers, without a branch that depends on their digits: on the
 *		host, for sessions and for the CPU device.
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

static inline rhh_decimal_reader
rhh_decimal_reader_of(uint32_t scale)
{
	static const uint64_t inverses[] = {UINT64_C(1) << 32, 429496730, 42949673, 4294968};
	static const uint32_t divisors[] = {1, 10, 100, 1000};
	const uint32_t n_behind = (scale + 3) / 4;
	const uint32_t n_zeros = 4 * n_behind - scale;
	rhh_decimal_reader reader = {.header = UINT16_MAX};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (n_behind <= 4)
	{
		int64_t		factor = 10000 / divisors[n_zeros];

		reader.header = (uint16_t) (0x8000 | scale << 7);
		reader.first_weight = 3 - (int) n_behind;
		for (int i = 2; i >= 0; i--, factor *= 10000)
			reader.factors[i] = factor;
		reader.divisor = divisors[n_zeros];
		reader.inverse = inverses[n_zeros];
	}
#endif
	return reader;
}

/*
 * A value times 10^scale, of so many bytes without the varlena's header, which has one byte.  False: it is not such a value, or
 * not of this scale.
 */
static inline bool
rhh_decimal_read(const rhh_decimal_reader *reader, const void *value, uint32_t bytes, int64_t *result)
{
	static const uint64_t masks[] = {0, UINT64_C(0xffff), UINT64_C(0xffffffff), UINT64_C(0xffffffffffff), UINT64_MAX};
	const uint32_t n_digits = (bytes - 2) / 2;
	uint16_t	header;
	uint64_t	places;
	uint32_t	n_empty;
	uint32_t	last;
	uint32_t	quotient;
	int64_t		sum;
	int64_t		sign;

	memcpy(&header, value, sizeof(header));
	memcpy(&places, (const uint8_t *) value + sizeof(header), sizeof(places));
	n_empty = (uint32_t) (reader->first_weight - ((header & 0x3f) - (header & 0x40)));
	if (__builtin_expect((header & 0xdf80) != reader->header || n_digits > 4 || n_empty > 3 ||
						 n_digits + n_empty > 4, 0))
		return false;
	places = (places & masks[n_digits]) << 16 * n_empty;
	last = (uint32_t) (places >> 48);
	/* zeros fill it up */
	quotient = (uint32_t) (last * reader->inverse >> 32);
	if (__builtin_expect(quotient * reader->divisor != last, 0))
		return false;
	sum = (int64_t) (places & 0xffff) * reader->factors[0] + (int64_t) (places >> 16 & 0xffff) * reader->factors[1] +
		(int64_t) (places >> 32 & 0xffff) * reader->factors[2] + quotient;
	sign = -(int64_t) ((header & 0x2000) != 0);
	*result = (sum ^ sign) - sign;
	return true;
}

#endif							/* RHH_DECIMALS_H */
