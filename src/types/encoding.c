/*-------------------------------------------------------------------------
 *
 * encoding.c
 *		Turns values into the words that travel, where these are not simply the
 *		bits of the value, and turns words back into values.
 *
 * A device knows integers only.  Where it looks for a minimum or a maximum, words
 * that are compared as signed integers must be in the order of the type's values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/uuid.h"

#include "compat.h"
#include "types/types.h"

/*
 * A word of a timetz has the zone, in seconds, in its lowest ZONE_BITS bits.  Zones
 * are less than 16 hours from UTC, so they fit, and the time in UTC fits the rest.
 */
#define ZONE_BITS	18
#define ZONE_BIAS	(1 << (ZONE_BITS - 1))

/*
 * These four turn the bits of a value into an integer whose order, with a sign, is
 * that of the values.  Each of them is its own inverse.  NaN is the greatest float
 * if its sign bit is 0, as it is in the NaN that all others are replaced by.
 */
static inline int32
order_float4(int32 bits)
{
	return bits ^ ((bits >> 31) & PG_INT32_MAX);
}

static inline int64
order_float8(int64 bits)
{
	return bits ^ ((bits >> 63) & PG_INT64_MAX);
}

static inline uint32
order_uint4(uint32 bits)
{
	return bits ^ ((uint32) 1 << 31);
}

static inline uint64
order_uint8(uint64 bits)
{
	return bits ^ (UINT64CONST(1) << 63);
}

/* The encoding whose columns have the values of this one with their very bits. */
GpuEncoding
gpurhh_as_stored(GpuEncoding encoding)
{
	switch (encoding)
	{
		case GPU_ENC_FLOAT4:
			return GPU_ENC_FLOAT4_RAW;
		case GPU_ENC_FLOAT8:
			return GPU_ENC_FLOAT8_RAW;
		case GPU_ENC_BPCHAR:
			return GPU_ENC_STRING;
		default:
			return encoding;
	}
}

#define ORDER_LOOP(T, expr) \
	do { \
		T		   *v = values; \
		\
		for (int i = 0; i < n; i++) \
			v[i] = (expr); \
	} while (0)

/* Gives n values of 4 bytes, as they are stored, the bits that the order asks for. */
void
gpurhh_order_4_bytes(GpuOrder order, void *values, int n)
{
	switch (order)
	{
		case ORDER_OF_BITS:
			break;
		case ORDER_OF_EQUALITY:
			/* -0 equals 0 */
			ORDER_LOOP(float4, isnan(v[i]) ? get_float4_nan() :
					   v[i] == 0 ? 0 : v[i]);
			break;
		case ORDER_OF_FLOATS:
			ORDER_LOOP(float4, isnan(v[i]) ? get_float4_nan() : v[i]);
			ORDER_LOOP(int32, order_float4(v[i]));
			break;
		case ORDER_OF_UNSIGNED:
			ORDER_LOOP(uint32, order_uint4(v[i]));
			break;
	}
}

/* The same for n values of 8 bytes. */
void
gpurhh_order_8_bytes(GpuOrder order, void *values, int n)
{
	switch (order)
	{
		case ORDER_OF_BITS:
			break;
		case ORDER_OF_EQUALITY:
			ORDER_LOOP(float8, isnan(v[i]) ? get_float8_nan() :
					   v[i] == 0 ? 0 : v[i]);
			break;
		case ORDER_OF_FLOATS:
			ORDER_LOOP(float8, isnan(v[i]) ? get_float8_nan() : v[i]);
			ORDER_LOOP(int64, order_float8(v[i]));
			break;
		case ORDER_OF_UNSIGNED:
			ORDER_LOOP(uint64, order_uint8(v[i]));
			break;
	}
}

#define WIDEN_LOOP(From, To) \
	do { \
		const From *v = values; \
		To		   *w = to; \
		\
		for (int i = 0; i < n; i++) \
			w[i] = v[i]; \
	} while (0)

/* Makes n values of a column that is DERIVED_WIDENED, of values as they are stored. */
void
gpurhh_widen(GpuEncoding encoding, const void *values, int n, void *to)
{
	switch (encoding)
	{
		case GPU_ENC_INT2_AS_INT4:
			WIDEN_LOOP(int16, int32);
			break;
		case GPU_ENC_INT2_AS_INT8:
			WIDEN_LOOP(int16, int64);
			break;
		case GPU_ENC_INT4_AS_INT8:
			WIDEN_LOOP(int32, int64);
			break;
		case GPU_ENC_FLOAT4_AS_FLOAT8:
			WIDEN_LOOP(float4, float8);
			gpurhh_order_8_bytes(ORDER_OF_EQUALITY, to, n);
			break;
		default:
			elog(ERROR, "unrecognized encoding of a wider value: %d", (int) encoding);
	}
}

/* The same for one value. */
void
gpurhh_widen_datum(GpuEncoding encoding, Datum value, void *to)
{
	const GpuEncodingInfo *info = &gpurhh_encodings[encoding];

	/* the high bits of a Datum may be anything */
	if (info->vector == VECTOR_INT2)
	{
		int16		number = DatumGetInt16(value);

		gpurhh_widen(encoding, &number, 1, to);
	}
	else if (info->vector == VECTOR_INT4)
	{
		int32		number = DatumGetInt32(value);

		gpurhh_widen(encoding, &number, 1, to);
	}
	else
	{
		float4		number = DatumGetFloat4(value);

		gpurhh_widen(encoding, &number, 1, to);
	}
}

#define DECODE_LOOP(datum) \
	do { \
		for (uint32 i = 0; i < n; i++) \
			values[i] = (datum); \
	} while (0)

/* The Datums of n words of an encoding by value. */
void
gpurhh_decode_values(GpuEncoding encoding, const uint64 *words, uint32 n,
					 Datum *values)
{
	const GpuEncodingInfo *info = &gpurhh_encodings[encoding];

	Assert(!info->by_reference);
	if (info->derivation == DERIVED_TRUTH)
	{
		DECODE_LOOP(BoolGetDatum(words[i] != 0));
		return;
	}
	Assert(info->derivation == DERIVED_VALUE);
	switch (info->bytes)
	{
		case 1:
			DECODE_LOOP(CharGetDatum((char) words[i]));
			break;
		case 2:
			DECODE_LOOP(Int16GetDatum((int16) words[i]));
			break;
		case 4:
			/* Datums of four bytes are alike, as in fetch_att() */
			if (info->order == ORDER_OF_FLOATS)
				DECODE_LOOP(Int32GetDatum(order_float4((int32) words[i])));
			else if (info->order == ORDER_OF_UNSIGNED)
				DECODE_LOOP(Int32GetDatum((int32) order_uint4((uint32) words[i])));
			else
				DECODE_LOOP(Int32GetDatum((int32) words[i]));
			break;
		default:
			if (info->order == ORDER_OF_FLOATS)
				DECODE_LOOP(Int64GetDatum(order_float8((int64) words[i])));
			else if (info->order == ORDER_OF_UNSIGNED)
				DECODE_LOOP(Int64GetDatum((int64) order_uint8(words[i])));
			else
				DECODE_LOOP(Int64GetDatum((int64) words[i]));
			break;
	}
}

static uint64
encode_years(Datum value)
{
	int64		years;

	if (numeric_is_inf(DatumGetNumeric(value)))
	{
		bool		later = DatumGetBool(DirectFunctionCall2(numeric_gt, value,
															 NumericGetDatum(int64_to_numeric(0))));

		return (uint64) (later ? PG_INT64_MAX : PG_INT64_MIN);
	}
	gpurhh_decimal_read(DatumGetPointer(value), 0, 1, &years);
	return (uint64) years;
}

static Datum
decode_years(int64 years)
{
	if (years == PG_INT64_MAX || years == PG_INT64_MIN)
		return DirectFunctionCall3(numeric_in,
								   CStringGetDatum(years > 0 ? "Infinity" : "-Infinity"),
								   ObjectIdGetDatum(InvalidOid),
								   Int32GetDatum(-1));
	return gpurhh_decimal_make(years, 0);
}

/* One field of an interval.  The fields of an infinite interval count as 0. */
static uint64
encode_interval(GpuEncoding encoding, const void *stored)
{
	Interval	interval;
	int			infinite;

	memcpy(&interval, stored, sizeof(interval));
	infinite = gpurhh_interval_infinite(&interval);
	if (encoding == GPU_ENC_INTERVAL_INFINITE)
		return infinite;
	if (infinite != 0)
		return 0;
	if (encoding == GPU_ENC_INTERVAL_TIME)
		return (uint64) interval.time;
	return (uint64) (int64) (encoding == GPU_ENC_INTERVAL_DAYS ? interval.day :
							 interval.month);
}

/*
 * The word of a value by reference, for encodings that are DERIVED_WORD.  stored is
 * the value as it is stored in a tuple; it need not be aligned.
 */
uint64
gpurhh_encode_reference(GpuEncoding encoding, int parameter, const void *stored)
{
	switch (encoding)
	{
		case GPU_ENC_BYTES:
			{
				uint64		word = 0;

				memcpy(&word, stored, parameter);
				return word;
			}
		case GPU_ENC_TIMETZ:
			{
				TimeTzADT	time;
				int64		utc;

				/* as timetz_cmp() compares: in UTC, then by zone */
				memcpy(&time, stored, GPU_TIMETZ_BYTES);
				utc = time.time + time.zone * USECS_PER_SEC;
				return ((uint64) utc << ZONE_BITS) + (uint64) (time.zone + ZONE_BIAS);
			}
		case GPU_ENC_TID:
			{
				ItemPointerData tid;

				memcpy(&tid, stored, sizeof(tid));
				return (uint64) ItemPointerGetBlockNumberNoCheck(&tid) << 16 |
					ItemPointerGetOffsetNumberNoCheck(&tid);
			}
		case GPU_ENC_YEARS:
			return encode_years(PointerGetDatum(stored));
		case GPU_ENC_INTERVAL_TIME:
		case GPU_ENC_INTERVAL_DAYS:
		case GPU_ENC_INTERVAL_MONTHS:
		case GPU_ENC_INTERVAL_INFINITE:
			return encode_interval(encoding, stored);
		default:
			break;
	}
	elog(ERROR, "unrecognized encoding of one word by reference: %d", (int) encoding);
	return 0;					/* keep compiler quiet */
}

/*
 * Makes a value by reference of its word, in the current memory context.  Where a
 * value has two words, the second one is word[stride].
 */
Datum
gpurhh_decode_reference(GpuEncoding encoding, int parameter,
						const uint64 *word, Size stride)
{
	switch (encoding)
	{
		case GPU_ENC_UUID:
			{
				pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

				memcpy(uuid->data, &word[0], 8);
				memcpy(uuid->data + 8, &word[stride], 8);
				return UUIDPGetDatum(uuid);
			}
		case GPU_ENC_DECIMAL:
			return gpurhh_decimal_value((int64) *word,
										GPURHH_DECIMAL_SCALE(parameter));
		case GPU_ENC_YEARS:
			return decode_years((int64) *word);
		case GPU_ENC_BYTES:
			{
				void	   *bytes = palloc(parameter);

				memcpy(bytes, word, parameter);
				return PointerGetDatum(bytes);
			}
		case GPU_ENC_TIMETZ:
			{
				TimeTzADT  *time = palloc0(sizeof(TimeTzADT));
				int64		utc = (int64) *word >> ZONE_BITS;

				time->zone = (int32) (*word & ((1 << ZONE_BITS) - 1)) - ZONE_BIAS;
				time->time = utc - time->zone * USECS_PER_SEC;
				return TimeTzADTPGetDatum(time);
			}
		case GPU_ENC_TID:
			{
				ItemPointer tid = palloc(sizeof(ItemPointerData));

				ItemPointerSet(tid, (BlockNumber) (*word >> 16),
							   (OffsetNumber) *word);
				return PointerGetDatum(tid);
			}
		default:
			break;
	}
	elog(ERROR, "unrecognized encoding by reference: %d", (int) encoding);
	return (Datum) 0;			/* keep compiler quiet */
}
