/*
 * rhh_pages.h
 *		Rows out of PostgreSQL's heap pages, the same on host and device.
 *
 * A page is RHH_PAGE_BYTES of memory (storage/bufpage.h): a header, line pointers, free space,
 * and tuples (access/htup_details.h), each with a header, perhaps a bitmap that says which
 * attributes are NULL, and the attributes, one behind the other.  Where an attribute begins
 * depends on the ones before it, unless all of these have a fixed width and none is NULL.
 *
 * The caller says which line pointers have rows, since that takes a snapshot, or that all tuples are visible, and how columns are
 * made of attributes (rhh_page_layout).  Whatever the memory has, nothing outside the page is
 * read: each offset and length is checked.  That matters on a device, which may still
 * read a page that the caller has given up.
 *
 * Columns may also be computed of values of the row, and rows be dropped, by a program
 * (rhh_program.h), whose inputs are made of attributes as columns are.
 *
 * What is understood is what most pages have.  A value that is not stored plainly (compressed,
 * or out of line), a numeric that does not have its column's scale, or has very many digits, or
 * is NaN, or an attribute that was added to the table later with a value: of these no column is
 * made, and the page is bad (rhh_batch).  So it is if the program is bad for a row.
 */
#ifndef RHH_PAGES_H
#define RHH_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rhh_decimals.h"
#include "rhh_device.h"
#include "rhh_hash.h"
#include "rhh_program.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RHH_PAGE_BYTES			8192u
#define RHH_PAGE_ITEMS			320u	/* more line pointers than a page has of tuples */
#define RHH_PAGE_ATTRIBUTES		128u	/* the last one that is needed is no later one */
#define RHH_PAGE_INPUTS			24u /* of the program */

/* Why the rows of a page that are visible are not in the map. */
typedef enum rhh_page_bad
{
	RHH_PAGE_UNREAD = 1,		/* columns could not be made of all rows */
	RHH_PAGE_REFUSED			/* the map has refused them */
} rhh_page_bad;

/* A page of a batch; 64 bytes. */
typedef struct rhh_page
{
	uint32_t	number;			/* in the memory of register_pages(), or of a slot of the cache */
	uint32_t	n_rows;			/* line pointers that are visible; the device makes it 0 if it could
								 * not read the page */
	uint32_t	first_row;		/* rows of the pages before it; the device's, if one of these is
								 * bad, there is a filter, or it is in the cache */
	uint32_t	bad;			/* the device's: rhh_page_bad; 0, as the caller sets it: it is not */
	uint64_t	visible[RHH_PAGE_ITEMS / 64];	/* bit i: the row at line pointer i, from 0, unless the
												 * filter has dropped it; if rows were refused, these
												 * alone */
	uint16_t	filtered;		/* the device's: 1 if the filter, if there is any, has dropped rows, or
								 * found none, of a page that is not bad, and the device knows its
								 * place; 0, as the caller sets it: not yet */
	uint16_t	all_visible;	/* 1: the device is to find the rows (see below); n_rows and visible are 0,
								 * as the caller sets them; the batch has to say that there are such pages.  Of a
								 * slot of the cache: one more than the attributes that its rows have, or
								 * RHH_PAGE_WHOLE; 0: it has no page */
	uint32_t	n_dropped;		/* the device's: rows that it has dropped; 0, as the caller sets it */
} rhh_page;

/* How long an attribute is, and where it begins. */
typedef struct rhh_page_attribute
{
	int16_t		length;			/* in bytes; -1: varlena, -2: ends with a zero byte */
	uint16_t	offset;			/* of the end of the one before, in tuples without NULLs; up to last_known, as
								 * it differs for the others */
	uint8_t		align;			/* 1, 2, 4 or 8 */
	bool		missing_null;	/* in tuples that are too short to have it, it is NULL */
} rhh_page_attribute;

#define RHH_PAGE_WHOLE		UINT16_MAX	/* a slot has all attributes that there are */

typedef enum rhh_page_kind
{
	RHH_PAGE_VALUE = 1,			/* the bytes of the attribute; of up to 4, in a wider column, an
								 * integer */
	RHH_PAGE_DECIMAL,			/* a numeric, times 10^scale, in 8 bytes */
	RHH_PAGE_STRING,			/* a varlena of at most RHH_PAGE_STRING_BYTES, in 16 bytes: these, zeros, and
								 * their number in the last one */
	RHH_PAGE_STRING_OR_LONG,	/* an input: the same, and of a longer one all bits are set, so it
								 * equals no short one */
	RHH_PAGE_CONSTANT,			/* an integer, in up to 8 bytes; it is made of no attribute */
	RHH_PAGE_NOTHING			/* 0, in up to 8 bytes, where the attribute is not NULL */
} rhh_page_kind;

#define RHH_PAGE_STRING_BYTES	15u

/* What is done to the bits of a RHH_PAGE_VALUE of 4 or 8 bytes. */
typedef enum rhh_page_order
{
	RHH_PAGE_AS_STORED,
	RHH_PAGE_EQUALITY,			/* equal floats get equal bits: 0 for -0, and one NaN */
	RHH_PAGE_FLOATS,			/* floats become signed integers in their order */
	RHH_PAGE_UNSIGNED			/* and so do integers without a sign */
} rhh_page_order;

/* What is done with the blanks that a string ends with. */
typedef enum rhh_page_blanks
{
	RHH_PAGE_ALL_COUNT,
	RHH_PAGE_NO_BLANKS,			/* they are left out; */
	RHH_PAGE_DECLARED			/* and the string has as many characters with them as is declared, all
								 * ASCII, or the page is bad */
} rhh_page_blanks;

/* A column, or an input of the program, which is made of one attribute. */
typedef struct rhh_page_load
{
	uint8_t		attribute;
	uint8_t		column;			/* 0 of an input */
	uint8_t		kind;			/* rhh_page_kind */
	uint8_t		scale;			/* of RHH_PAGE_DECIMAL */
	uint8_t		order;			/* of RHH_PAGE_VALUE: rhh_page_order */
	uint8_t		blanks;			/* of strings: rhh_page_blanks */
	bool		not_null;		/* a row in which it is NULL makes the page bad */
	int32_t		parameter;		/* the constant, or the declared number of characters */
} rhh_page_load;

/*
 * How rows are made of tuples: a load, or a result of the program, for each column of the batch.
 * For the program input i is column n + i, where n is how many columns the batch has, of as many bytes as
 * rhh_page_input_bytes() says; other columns it does not read.  It has no operation if there is none.
 */
typedef struct rhh_page_layout
{
	uint32_t	n_attributes;	/* up to RHH_PAGE_ATTRIBUTES */
	uint32_t	last_known;		/* the last attribute that has an offset (rhh_page_find_offsets()) */
	uint32_t	n_loads;
	uint32_t	n_inputs;
	uint32_t	filter_inputs;	/* a bit for each that the program's filter needs */
	uint32_t	prefix_bytes;	/* of most tuples, from their headers on, the part that has all of these
								 * attributes; 0: the caller does not know */
	rhh_page_load loads[RHH_MAX_COLUMNS];	/* by attribute, in ascending order, but for constants */
	rhh_page_load inputs[RHH_PAGE_INPUTS];	/* the same */
	rhh_page_attribute attributes[RHH_PAGE_ATTRIBUTES];
	rhh_program program;
} rhh_page_layout;

/* What a kernel does for each value reads its arguments where they are only as a part of it. */
#ifdef __CUDACC__
#define RHH_HD_INLINE __host__ __device__ static __forceinline__
#else
#define RHH_HD_INLINE RHH_HD
#endif

/* ---------- bytes ---------- */

/*
 * Numbers of the page's byte order, which is the machine's, at any address.  A device that loads only what
 * is aligned loads the words that have the bytes, and no others.
 */
RHH_HD uint32_t
rhh_page_2_bytes(const uint8_t *p)
{
	return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}

RHH_HD uint32_t
rhh_page_4_bytes(const uint8_t *p)
{
#ifdef __CUDA_ARCH__
	const uint32_t at = (uint32_t) (uintptr_t) p & 3;
	const uint32_t *words = (const uint32_t *) (p - at);
	uint32_t	next = 0;

	if (at != 0)
		next = words[1];
	return __funnelshift_r(words[0], next, 8 * at);
#else
	return rhh_page_2_bytes(p) | rhh_page_2_bytes(p + 2) << 16;
#endif
}

RHH_HD uint64_t
rhh_page_8_bytes(const uint8_t *p)
{
	return (uint64_t) rhh_page_4_bytes(p) | (uint64_t) rhh_page_4_bytes(p + 4) << 32;
}

/* The same at a multiple of 4 or 8, by one load. */
RHH_HD uint32_t
rhh_page_4_aligned(const uint8_t *p)
{
#ifdef __CUDA_ARCH__
	return *(const uint32_t *) p;
#else
	return rhh_page_4_bytes(p);
#endif
}

RHH_HD uint64_t
rhh_page_8_aligned(const uint8_t *p)
{
#ifdef __CUDA_ARCH__
	return *(const uint64_t *) p;
#else
	return rhh_page_8_bytes(p);
#endif
}

/* n bytes, 1 to 16, in two halves, low first, and anything behind them. */
RHH_HD_INLINE void
rhh_page_at_least(const uint8_t *p, uint32_t n, uint64_t *first, uint64_t *last)
{
#ifdef __CUDA_ARCH__
	const uint32_t at = (uint32_t) (uintptr_t) p & 3;
	const uint32_t *words = (const uint32_t *) (p - at);
	const uint32_t end = at + n;
	uint32_t	w[5] = {words[0], 0, 0, 0, 0};

#pragma unroll
	for (uint32_t i = 1; i < 5; i++)
		if (4 * i < end)
			w[i] = words[i];
#pragma unroll
	for (uint32_t i = 0; i < 4; i++)
		w[i] = __funnelshift_r(w[i], w[i + 1], 8 * at);
	*first = (uint64_t) w[1] << 32 | w[0];
	*last = (uint64_t) w[3] << 32 | w[2];
#else
	/* by loads that overlap: to copy n bytes and to read them as a word at once would wait for the copy */
	*last = n > 8 ? rhh_page_8_bytes(p + n - 8) >> 8 * (16 - n) : 0;
	if (n >= 8)
		*first = rhh_page_8_bytes(p);
	else if (n >= 4)
		*first = rhh_page_4_bytes(p) | (uint64_t) rhh_page_4_bytes(p + n - 4) << 8 * (n - 4);
	else
		*first = p[0] | (n == 1 ? 0 : (uint64_t) p[n / 2] << 8 * (n / 2) | (uint64_t) p[n - 1] << 8 * (n - 1));
#endif
}

/* The same, and zeros behind them. */
RHH_HD_INLINE void
rhh_page_some_bytes(const uint8_t *p, uint32_t n, uint64_t *first, uint64_t *last)
{
	rhh_page_at_least(p, n, first, last);
#ifdef __CUDA_ARCH__
	if (n < 8)
		*first &= (UINT64_C(1) << 8 * n) - 1;
	*last = n <= 8 ? 0 : *last & (UINT64_MAX >> 8 * (16 - n));
#endif
}

/* The last byte, from 0, that is not 0; -1: none. */
RHH_HD int
rhh_page_last_byte(uint64_t word)
{
#ifdef __CUDA_ARCH__
	return word == 0 ? -1 : (63 - __clzll((long long) word)) / 8;
#else
	return word == 0 ? -1 : (63 - __builtin_clzll(word)) / 8;
#endif
}

/* ---------- tuples ---------- */

/* A tuple that is walked through, from its first attribute to the last that is needed. */
typedef struct rhh_page_tuple
{
	const uint8_t *data;		/* of attributes */
	uint32_t	n_bytes;		/* of these */
	const uint8_t *present;		/* a bit for each attribute that is not NULL; NULL: none is */
	uint32_t	n_attributes;	/* that are stored */
	uint32_t	next;			/* the first attribute that has not been found, ... */
	uint32_t	at;				/* ... and behind what it begins */
	uint32_t	begin;			/* of the attribute before next, */
	uint32_t	length;			/* and how many bytes it has; 0: it is NULL */
} rhh_page_tuple;

/* Does a page have so many line pointers? */
RHH_HD bool
rhh_page_has_lines(const uint8_t *page, uint32_t lines)
{
	const uint32_t lower = rhh_page_4_aligned(page + 12) & 0xffff;

	return lines <= RHH_PAGE_ITEMS && 24 + 4 * lines <= lower && lower <= RHH_PAGE_BYTES;
}

/*
 * Finds the tuple of a line pointer, from 0, that the page has, of which only the first `known` bytes are to be read.  False:
 * there is none that makes sense, or its header has more bytes than that.
 */
RHH_HD_INLINE bool
rhh_page_find_at(const uint8_t *page, uint32_t item, uint32_t known, rhh_page_tuple *tuple)
{
	const uint32_t at = 24 + 4 * item;
	uint32_t	pointer;
	uint32_t	offset;
	uint32_t	length;
	uint32_t	header;
	uint64_t	words;
	const uint8_t *t;

	/* 15 bits of offset, 2 of state, which is "normal", 15 of length */
	pointer = rhh_page_4_aligned(page + at);
	offset = pointer & 0x7fff;
	length = pointer >> 17;
	if ((pointer >> 15 & 3) != 1 || offset % 8 != 0 || length < 23 ||
		offset + length > RHH_PAGE_BYTES)
		return false;
	t = page + offset;
	/* how many attributes, is any of them NULL, and where the first one is */
	words = rhh_page_8_aligned(t + 16);
	header = (uint32_t) (words >> 48) & 0xff;
	if (length > known)
		length = known;
	if (header % 8 != 0 || header < 23 || header > length)
		return false;
	tuple->data = t + header;
	tuple->n_bytes = length - header;
	tuple->n_attributes = (uint32_t) (words >> 16) & 0x07ff;
	tuple->present = NULL;
	if ((words >> 32 & 1) != 0)
	{
		tuple->present = t + 23;
		if (23 + (tuple->n_attributes + 7) / 8 > header)
			return false;
	}
	tuple->next = 0;
	tuple->at = tuple->begin = tuple->length = 0;
	return true;
}

/* The same for any line pointer. */
RHH_HD_INLINE bool
rhh_page_find(const uint8_t *page, uint32_t item, uint32_t known, rhh_page_tuple *tuple)
{
	return item < RHH_PAGE_ITEMS && rhh_page_has_lines(page, item + 1) && rhh_page_find_at(page, item, known, tuple);
}

/* Of a varlena at p, whose first byte this is, in n bytes: how long it is.  0: unknown. */
RHH_HD uint32_t
rhh_page_varlena(const uint8_t *p, uint32_t first, uint32_t n)
{
	if (first == 1)
		return n >= 2 && p[1] == 18 ? 18 : 0;	/* a pointer to a value that is out of line */
	if ((first & 1) != 0)
		return first >> 1;
	return n < 4 ? 0 : rhh_page_4_bytes(p) >> 2;
}

/*
 * Goes on to an attribute that is not before the one that was found last, whose begin and length
 * the tuple then has.  Attributes have offsets up to last_known (rhh_page_layout).  False: something does not make sense,
 * or the attribute is not stored.
 */
RHH_HD_INLINE bool
rhh_page_go_to(const rhh_page_attribute *attributes, uint32_t last_known, uint32_t attribute, rhh_page_tuple *tuple)
{
	if (tuple->next > attribute)
		return true;
	if (tuple->present == NULL && attribute < tuple->n_attributes)
	{
		const uint32_t known = attribute < last_known ? attribute : last_known;

		if (tuple->next < known)
		{
			tuple->next = known;
			tuple->at = attributes[known].offset;
		}
		/* most attributes are stored, not NULL, and plain or varlenas with a header of one byte */
		do
		{
			const rhh_page_attribute *a = &attributes[tuple->next];
			uint32_t	begin = tuple->at;
			uint32_t	length;

			if (begin >= tuple->n_bytes)
				return false;
			if (a->length == -1)
			{
				const uint32_t first = tuple->data[begin];

				if ((first & 1) == 0 || first == 1)
					break;
				length = first >> 1;
			}
			else
			{
				if (a->length < 0)
					break;
				begin = (begin + a->align - 1) & ~(uint32_t) (a->align - 1);
				length = (uint32_t) a->length;
			}
			if (begin + length > tuple->n_bytes)
				return false;
			tuple->next++;
			tuple->begin = begin;
			tuple->length = length;
			tuple->at = begin + length;
		} while (tuple->next <= attribute);
	}
	while (tuple->next <= attribute)
	{
		const rhh_page_attribute *a = &attributes[tuple->next];
		uint32_t	begin = tuple->at;
		uint32_t	length;
		uint32_t	first = 0;	/* byte of a varlena */

		if (tuple->next >= tuple->n_attributes)
		{
			/* it was added to the table later */
			if (!a->missing_null)
				return false;
			tuple->next++;
			tuple->length = 0;
			continue;
		}
		if (tuple->present != NULL &&
			(tuple->present[tuple->next / 8] >> (tuple->next % 8) & 1) == 0)
		{
			tuple->next++;
			tuple->length = 0;
			continue;
		}
		if (begin >= tuple->n_bytes)
			return false;
		if (a->length == -1)
			first = tuple->data[begin];
		/* a varlena with a header of one byte is not aligned, and never looks like padding */
		if (a->length != -1 || first == 0)
		{
			begin = (begin + a->align - 1) & ~(uint32_t) (a->align - 1);
			if (begin >= tuple->n_bytes)
				return false;
		}
		if (a->length > 0)
			length = (uint32_t) a->length;
		else if (a->length == -1)
			length = rhh_page_varlena(tuple->data + begin, first != 0 ? first : tuple->data[begin],
									  tuple->n_bytes - begin);
		else
		{
			length = 1;
			while (begin + length <= tuple->n_bytes && tuple->data[begin + length - 1] != 0)
				length++;
		}
		if (length == 0 || length > tuple->n_bytes - begin)
			return false;
		tuple->next++;
		tuple->begin = begin;
		tuple->length = length;
		tuple->at = begin + length;
	}
	return true;
}

/* ---------- values ---------- */

/*
 * A numeric of n bytes, with its header, times 10^scale.  False: it does not have this scale, or
 * is nothing simple.  What is read is PostgreSQL's short format (utils/adt/numeric.c): two bytes
 * with sign, scale and weight, and digits to the base 10000, at most four here.  Of most values
 * rhh_decimal_of() knows more about them.
 */
RHH_HD_INLINE bool
rhh_page_decimal(const uint8_t *p, uint32_t n, uint32_t scale, int64_t *result)
{
	const uint32_t varlena = p[0];
	const uint32_t header_bytes = (varlena & 1) != 0 ? 1 : 4;
	uint32_t	header;
	uint32_t	n_digits;
	uint32_t	last;
	int32_t		exponent;		/* of ten, that the last digit has in the result */
	uint64_t	sum;
	uint64_t	words[2];

	n -= header_bytes;
	if (varlena == 1 || (varlena & 3) == 2 || n < 2 || n % 2 != 0 || n > 10)
		return false;
	rhh_page_at_least(p + header_bytes, n, &words[0], &words[1]);
	header = (uint32_t) words[0] & 0xffff;
	n_digits = n / 2 - 1;
	words[0] = words[0] >> 16 | words[1] << 48;
	if (rhh_decimal_of(rhh_decimal_reader_of(scale), header, words[0], n_digits, result))
		return true;
	if ((header & 0xdf80) != (0x8000 | scale << 7))
		return false;
	*result = 0;
	if (n_digits == 0)
		return true;
	exponent = 4 * ((int32_t) (header & 0x3f) - (int32_t) (header & 0x40) - (int32_t) n_digits + 1) +
		(int32_t) scale;

	/* all but the last digit, and then that */
	sum = 0;
	for (uint32_t i = 1;; i++)
	{
		last = (uint32_t) words[0] & 0xffff;
		words[0] >>= 16;
		if (last > 9999)
			return false;
		if (i == n_digits)
			break;
		sum = sum * 10000 + last;
	}
	if (exponent < 0 && exponent > -4)
	{
		/* its end is behind the scale */
		const uint32_t behind = exponent == -1 ? 10 : exponent == -2 ? 100 : 1000;
		const uint32_t part = exponent == -1 ? last / 10 : exponent == -2 ? last / 100 : last / 1000;

		if (part * behind != last)
			return false;
		sum = sum * (exponent == -1 ? 1000 : exponent == -2 ? 100 : 10) + part;
		exponent = 0;
	}
	else
		sum = sum * 10000 + last;
	for (; exponent < 0; exponent++)
	{
		/* and so are zeros, which need not be there */
		if (sum % 10 != 0)
			return false;
		sum /= 10;
	}
	/* of 61 bits, as decimals in columns are, or none */
	for (; exponent > 0 && sum >> 57 == 0; exponent--)
		sum *= 10;
	if ((exponent > 0 && sum != 0) || sum >> 61 != 0)
		return false;
	*result = (header & 0x2000) != 0 ? -(int64_t) sum : (int64_t) sum;
	return true;
}

/*
 * A varlena of n bytes, with its header, as 16 bytes in two halves, low first.  False: it is longer, not stored
 * plainly, or not as is declared.
 */
RHH_HD bool
rhh_page_string(const uint8_t *p, uint32_t n, uint32_t blanks, uint32_t declared, uint64_t *first,
				uint64_t *last)
{
	const uint32_t varlena = p[0];
	const uint32_t header = (varlena & 1) != 0 ? 1 : 4;
	const uint64_t all_blanks = UINT64_C(0x2020202020202020);
	uint32_t	length;

	if (varlena == 1 || n < header || (varlena & 3) == 2)
		return false;
	p += header;
	length = n - header;
	*first = *last = 0;
	if (length > 16 && blanks != RHH_PAGE_ALL_COUNT)
		while (length > 16 && p[length - 1] == ' ')
			length--;
	if (length > 16)
		return false;
	if (length > 0)
		rhh_page_some_bytes(p, length, first, last);
	/* most have none at the end */
	if (blanks != RHH_PAGE_ALL_COUNT && length > 0 &&
		(uint8_t) (length > 8 ? *last >> 8 * (length - 9) : *first >> 8 * (length - 1)) == ' ')
	{
		const uint64_t rest = UINT64_MAX >> 8 * (8 - (length < 8 ? length : 8));
		const int	first_end = rhh_page_last_byte((*first ^ all_blanks) & rest) + 1;
		const int	last_end = length <= 8 ? 0 :
			rhh_page_last_byte((*last ^ all_blanks) & UINT64_MAX >> 8 * (16 - length)) + 1;

		length = (uint32_t) (last_end > 0 ? 8 + last_end : first_end);
		*first = length == 0 ? 0 : length >= 8 ? *first : *first & (UINT64_MAX >> 8 * (8 - length));
		*last = length <= 8 ? 0 : *last & (UINT64_MAX >> 8 * (16 - length));
	}
	if (length > RHH_PAGE_STRING_BYTES)
		return false;
	if (blanks == RHH_PAGE_DECLARED &&
		(n - header != declared || ((*first | *last) & UINT64_C(0x8080808080808080)) != 0))
		return false;
	*last |= (uint64_t) length << 56;
	return true;
}

/* The same, but it may be longer. */
RHH_HD bool
rhh_page_string_or_long(const uint8_t *p, uint32_t n, uint32_t blanks, uint64_t *first, uint64_t *last)
{
	if (rhh_page_string(p, n, blanks, 0, first, last))
		return true;
	*first = *last = ~(uint64_t) 0;
	/* compressed, or out of line */
	return p[0] != 1 && ((p[0] & 1) != 0 || ((p[0] & 3) == 0 && n >= 4));
}

/* The bits of a value of 4 or 8 bytes in an order. */
RHH_HD uint64_t
rhh_page_ordered(uint64_t bits, uint32_t bytes, uint32_t order)
{
	const uint64_t sign = bytes == 4 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
	const uint64_t nan = bytes == 4 ? UINT64_C(0x7fc00000) : UINT64_C(0x7ff8000000000000);
	const uint64_t infinity = bytes == 4 ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000);

	if (order == RHH_PAGE_UNSIGNED)
		return bits ^ sign;
	if ((bits & (sign - 1)) > infinity)
		bits = nan;
	if (order == RHH_PAGE_EQUALITY)
		return bits == sign ? 0 : bits;
	return (bits & sign) != 0 ? bits ^ (sign - 1) : bits;
}

/*
 * Makes the value of a load of the attribute that was found last, if it is not a constant: the bytes of a column that has
 * `bytes` of them, low first; *high of 16 bytes only.  False: the page is bad.
 */
RHH_HD_INLINE bool
rhh_page_value(const rhh_page_load *load, uint32_t bytes, const rhh_page_tuple *tuple, bool *null, uint64_t *low, uint64_t *high)
{
	const uint8_t *p;

	*low = *high = 0;
	if (load->kind == RHH_PAGE_CONSTANT)
	{
		*low = (uint64_t) (int64_t) load->parameter;
		*null = false;
		return true;
	}
	*null = tuple->length == 0;
	if (*null)
		return !load->not_null;
	if (load->kind == RHH_PAGE_NOTHING)
		return true;
	p = tuple->data + tuple->begin;
	if (load->kind == RHH_PAGE_DECIMAL)
	{
		int64_t		value;

		if (!rhh_page_decimal(p, tuple->length, load->scale, &value))
			return false;
		*low = (uint64_t) value;
		return true;
	}
	if (load->kind == RHH_PAGE_STRING)
		return rhh_page_string(p, tuple->length, load->blanks, (uint32_t) load->parameter, low, high);
	if (load->kind == RHH_PAGE_STRING_OR_LONG)
		return rhh_page_string_or_long(p, tuple->length, load->blanks, low, high);
	switch (tuple->length)
	{
		case 1:
			*low = p[0];
			if (bytes > 1)
				*low = (uint64_t) (int64_t) (int8_t) *low;
			break;
		case 2:
			*low = rhh_page_2_bytes(p);
			if (bytes > 2)
				*low = (uint64_t) (int64_t) (int16_t) *low;
			break;
		case 4:
			*low = rhh_page_4_bytes(p);
			if (bytes > 4)
				*low = (uint64_t) (int64_t) (int32_t) *low;
			break;
		case 16:
			*high = rhh_page_8_bytes(p + 8);
			/* FALLTHROUGH */
		default:
			*low = rhh_page_8_bytes(p);
			break;
	}
	if (load->order != RHH_PAGE_AS_STORED)
		*low = rhh_page_ordered(*low, bytes, load->order);
	return true;
}

/* Makes the value of a load in a tuple of a layout, in the same way. */
RHH_HD bool
rhh_page_load_value(const rhh_page_layout *layout, const rhh_page_load *load, uint32_t bytes, rhh_page_tuple *tuple,
					bool *null, uint64_t *low, uint64_t *high)
{
	return (load->kind == RHH_PAGE_CONSTANT ||
			rhh_page_go_to(layout->attributes, layout->last_known, load->attribute, tuple)) &&
		rhh_page_value(load, bytes, tuple, null, low, high);
}

/* The bytes of input i, as a column of the program. */
RHH_HD uint32_t
rhh_page_input_bytes(const rhh_page_layout *layout, uint32_t i)
{
	const rhh_page_load *input = &layout->inputs[i];

	return input->kind == RHH_PAGE_STRING || input->kind == RHH_PAGE_STRING_OR_LONG ||
		(input->kind == RHH_PAGE_VALUE && layout->attributes[input->attribute].length == 16) ? 16 : 8;
}

/*
 * Makes those inputs of a tuple that have a bit in which; *nulls gets one for each that is NULL.  False:
 * the page is bad.
 */
RHH_HD bool
rhh_page_read_inputs(const rhh_page_layout *layout, uint32_t which, rhh_page_tuple tuple,
					 uint64_t (*words)[2], uint32_t *nulls)
{
	*nulls = 0;
	for (uint32_t i = 0; i < layout->n_inputs; i++)
	{
		bool		null;

		if ((which >> i & 1) == 0)
			continue;
		if (!rhh_page_load_value(layout, &layout->inputs[i], rhh_page_input_bytes(layout, i), &tuple, &null,
								 &words[i][0], &words[i][1]))
			return false;
		*nulls |= (uint32_t) null << i;
	}
	return true;
}

/* Bits for all inputs. */
RHH_HD uint32_t
rhh_page_all_inputs(const rhh_page_layout *layout)
{
	return ((uint32_t) 1 << layout->n_inputs) - 1;
}

/* Are rows of a page to be dropped still? */
RHH_HD bool
rhh_page_has_filter(const rhh_page_layout *layout, const rhh_page *page)
{
	return layout->program.has_filter && page->filtered == 0;
}

/*
 * Is it faster to bring only the first prefix_bytes of each of n_rows rows over a bus, and not all of the page?  It is asked for
 * sectors of 32 bytes, and asking for parts takes some hundred sectors' time for each page, besides what they have.  Measured
 * on an H200 with 52 rows to a page (2026-11-28-h200-bus-parts.csv): 160 ns for the page, and 97, 125, 144 and 159 for 48, 76,
 * 100 and 116 bytes.  Of parts less can be read later, so they have to be faster by a tenth; that is asked for where they are
 * not kept, too.
 */
RHH_HD bool
rhh_page_parts_pay(uint32_t n_rows, uint32_t prefix_bytes)
{
	const uint32_t sectors = 2 + n_rows / 8 + n_rows + n_rows * ((prefix_bytes > 24 ? prefix_bytes : 24) - 24) / 32;

	return prefix_bytes > 0 && sectors < 185;
}

/* The number of rows of a page. */
RHH_HD uint32_t
rhh_page_count(const uint64_t *visible)
{
	uint32_t	n = 0;

	for (uint32_t w = 0; w < RHH_PAGE_ITEMS / 64; w++)
#ifdef __CUDA_ARCH__
		n += (uint32_t) __popcll(visible[w]);
#else
		n += (uint32_t) __builtin_popcountll(visible[w]);
#endif
	return n;
}

/* The number of line pointers up to the last one that has a row. */
RHH_HD uint32_t
rhh_page_lines(const uint64_t *visible)
{
	uint32_t	lines = 0;

	for (uint32_t w = 0; w < RHH_PAGE_ITEMS / 64; w++)
		if (visible[w] != 0)
#ifdef __CUDA_ARCH__
			lines = 64 * w + 64 - (uint32_t) __clzll((long long) visible[w]);
#else
			lines = 64 * w + 64 - (uint32_t) __builtin_clzll(visible[w]);
#endif
	return lines;
}

/*
 * Rows of a page that the caller knows to be visible to everyone, all of them, without having looked at it.  It has pinned
 * the page, so no tuple is moved; but others may just be adding tuples, and deleting them.  Who does marks the page as not all
 * visible, after he has changed it and before he commits.  So its rows are found in this order: the header, which
 * has to say that all are visible; line pointers that have tuples, all of these where tuples were by that header, and
 * marked as added by who has committed; and the header once more.  docs/design.md proves that these are the rows, "Pages
 * that nobody has looked at".
 */

/* Flags and bounds of a page: pd_checksum, pd_flags, pd_lower, pd_upper, from the lowest bits on, as they are now. */
RHH_HD uint64_t
rhh_page_header(const uint8_t *page)
{
	return ((const volatile uint64_t *) (const void *) page)[1];
}

/* Does a header say that all rows are visible, and have a sensible number of line pointers? */
RHH_HD bool
rhh_page_is_all_visible(uint64_t header)
{
	const uint32_t lower = (uint32_t) (header >> 32) & 0xffff;

	return (header >> 16 & 4) != 0 && lower >= 24 && lower <= 24 + 4 * RHH_PAGE_ITEMS;
}

RHH_HD uint32_t
rhh_page_header_lines(uint64_t header)
{
	return (((uint32_t) (header >> 32) & 0xffff) - 24) / 4;
}

/* Is the page as it was when it had this header, in so far as that counts? */
RHH_HD bool
rhh_page_is_unchanged(uint64_t header, uint64_t now)
{
	return rhh_page_is_all_visible(now) && header >> 32 == now >> 32;
}

/* Has the line pointer a tuple? */
RHH_HD bool
rhh_page_has_tuple(const uint8_t *page, uint32_t item)
{
	return (rhh_page_4_bytes(page + 24 + 4 * item) >> 15 & 3) == 1;
}

/* Is its tuple one that was there when the page had this header, and marked as added by who has committed? */
RHH_HD bool
rhh_page_is_settled(const uint8_t *page, uint32_t item, uint64_t header)
{
	const uint32_t offset = rhh_page_4_bytes(page + 24 + 4 * item) & 0x7fff;

	return offset >= header >> 48 && offset % 8 == 0 && offset + 24 <= RHH_PAGE_BYTES &&
		(rhh_page_2_bytes(page + offset + 20) & 0x0100) != 0;
}

/* The number of rows of a page before the one at a line pointer. */
RHH_HD uint32_t
rhh_page_rank(const uint64_t *visible, uint32_t item)
{
	uint32_t	n = 0;
	uint64_t	word;

	for (uint32_t w = 0; w <= item / 64; w++)
	{
		word = visible[w];
		if (w == item / 64)
			word &= ((uint64_t) 1 << item % 64) - 1;
#ifdef __CUDA_ARCH__
		n += (uint32_t) __popcll(word);
#else
		n += (uint32_t) __builtin_popcountll(word);
#endif
	}
	return n;
}

/*
 * The map has refused rows of a batch, those whose bits are set: says which of a page's they are, if any,
 * and that there are no others.  Returns whether there are.
 */
RHH_HD bool
rhh_page_refuse(rhh_page *page, const uint32_t *refused)
{
	uint32_t	row = page->first_row;
	uint64_t	visible[RHH_PAGE_ITEMS / 64];
	bool		any = false;

	if (page->n_rows == 0)
		return false;
	for (uint32_t w = 0; w < RHH_PAGE_ITEMS / 64; w++)
	{
		visible[w] = 0;
		for (uint64_t left = page->visible[w]; left != 0; left &= left - 1, row++)
			if ((refused[row / 32] >> row % 32 & 1) != 0)
				visible[w] |= left & (~left + 1);
		any |= visible[w] != 0;
	}
	if (!any)
		return false;
	for (uint32_t w = 0; w < RHH_PAGE_ITEMS / 64; w++)
		page->visible[w] = visible[w];
	page->bad = RHH_PAGE_REFUSED;
	return true;
}

/* ---------- batches ---------- */

/* Finds out where attributes begin that do so in the same place in all tuples without NULLs, by lengths and alignments. */
static inline void
rhh_page_find_offsets(rhh_page_layout *layout)
{
	uint32_t	at = 0;

	layout->last_known = 0;
	for (uint32_t a = 0; a < layout->n_attributes; a++)
	{
		rhh_page_attribute *attribute = &layout->attributes[a];

		attribute->offset = (uint16_t) at;
		layout->last_known = a;
		/* no tuple is so long as to need a greater one */
		if (attribute->length < 0 || at > RHH_PAGE_BYTES)
			break;
		at = (at + attribute->align - 1) & ~(uint32_t) (attribute->align - 1);
		at += (uint32_t) attribute->length;
	}
}

/* The column that is made by load i, or, behind these, by a result of the program. */
static inline uint32_t
rhh_page_column(const rhh_page_layout *layout, uint32_t i)
{
	return i < layout->n_loads ? layout->loads[i].column : layout->program.results[i - layout->n_loads].column;
}

/*
 * Where the columns of a batch's rows are, with a byte (byte_nulls) or a bit for each NULL:
 * sets values_offset and nulls_offset.  Returns the bytes of all of them.
 */
static inline uint64_t
rhh_page_columns(const rhh_page_layout *layout, const uint8_t *column_bytes, uint32_t n_rows,
				 bool byte_nulls, uint32_t *values_offset, uint32_t *nulls_offset)
{
	uint64_t	at = 0;

	for (uint32_t i = 0; i < layout->n_loads + layout->program.n_results; i++)
	{
		const uint32_t c = rhh_page_column(layout, i);

		values_offset[c] = (uint32_t) at;
		at += ((uint64_t) n_rows * column_bytes[c] + 63) / 64 * 64;
		nulls_offset[c] = 0;
		if (i < layout->n_loads && layout->loads[i].not_null)
			continue;
		nulls_offset[c] = (uint32_t) at;
		at += ((byte_nulls ? n_rows : ((uint64_t) n_rows + 7) / 8) + 63) / 64 * 64;
	}
	return at;
}

#ifdef __cplusplus
}
#endif

#endif							/* RHH_PAGES_H */
