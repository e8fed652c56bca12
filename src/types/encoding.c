/*-------------------------------------------------------------------------
 *
 * encoding.c
 *		Values as the words that travel, where these are not their bits, and
 *		back.
 *
 * The order of words, as signed integers, is the type's own where minima and
 * maxima are looked for.
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

/* A zone is less than 16 hours off, so it fits; the sum below does as well. */
#define ZONE_BITS	18
#define ZONE_BIAS	(1 << (ZONE_BITS - 1))

/* As an integer in float8's order, with all NaNs greatest; and back. */
static inline int64
order_float8(int64 bits)
{
	return bits ^ ((bits >> 63) & PG_INT64_MAX);
}

static inline int32
order_float4(int32 bits)
{
	return bits ^ ((bits >> 31) & PG_INT32_MAX);
}

#define CONVERT_LOOP(T, expr) \
	do { \
		T		   *v = values; \
		\
		for (int i = 0; i < n; i++) \
			v[i] = (expr); \
	} while (0)

/* Makes values what travels, where that is not what they are. */
void
gpurhh_convert_values(GpuEncoding encoding, void *values, int n)
{
	switch (encoding)
	{
		case GPU_ENC_FLOAT4:
			/* -0 equals 0 */
			CONVERT_LOOP(float4, isnan(v[i]) ? get_float4_nan() :
						 v[i] == 0 ? 0 : v[i]);
			break;
		case GPU_ENC_FLOAT8:
			CONVERT_LOOP(float8, isnan(v[i]) ? get_float8_nan() :
						 v[i] == 0 ? 0 : v[i]);
			break;
		case GPU_ENC_FLOAT4_ORDER:
			CONVERT_LOOP(float4, isnan(v[i]) ? get_float4_nan() : v[i]);
			CONVERT_LOOP(int32, order_float4(v[i]));
			break;
		case GPU_ENC_FLOAT8_ORDER:
			CONVERT_LOOP(float8, isnan(v[i]) ? get_float8_nan() : v[i]);
			CONVERT_LOOP(int64, order_float8(v[i]));
			break;
		case GPU_ENC_OID_ORDER:
			CONVERT_LOOP(uint32, v[i] ^ ((uint32) 1 << 31));
			break;
		case GPU_ENC_UINT8_ORDER:
			CONVERT_LOOP(uint64, v[i] ^ (UINT64CONST(1) << 63));
			break;
		default:
			break;
	}
}

/* The value's bits of a word of an encoding by value, or of some if it has none. */
int64
gpurhh_convert_back(GpuEncoding encoding, int64 word)
{
	switch (encoding)
	{
		case GPU_ENC_FLOAT4_ORDER:
			return order_float4((int32) word);
		case GPU_ENC_FLOAT8_ORDER:
			return order_float8(word);
		case GPU_ENC_OID_ORDER:
			return (uint32) word ^ ((uint32) 1 << 31);
		case GPU_ENC_UINT8_ORDER:
			return (int64) ((uint64) word ^ (UINT64CONST(1) << 63));
		default:
			return word;
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

/* A field of an interval, which is 0 if that is infinite. */
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
 * A value of an encoding of one word by reference, as it is stored: it need not
 * be aligned.
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
 * The value, in the current memory context, whose words are word[0], and with
 * two of them word[stride].
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
