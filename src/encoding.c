/*-------------------------------------------------------------------------
 *
 * encoding.c
 *		Values passed by reference, as the words that travel, and back.
 *
 * The first word's order, as a signed integer, is the type's own where a type
 * has minima and maxima (timetz, tid).
 *
 *-------------------------------------------------------------------------
 */
#include "gpurhh.h"

#include "datatype/timestamp.h"
#include "storage/itemptr.h"
#include "utils/date.h"
#include "utils/uuid.h"

/* A zone is less than 16 hours off, so it fits; the sum below does as well. */
#define ZONE_BITS	18
#define ZONE_BIAS	(1 << (ZONE_BITS - 1))

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
