/*
 * rhh_check.h
 *		Checks whether specs and batches keep the rules of rhh_device.h.
 *
 * Both devices check here, so that they accept and reject the same, with the same
 * messages.
 */
#ifndef RHH_CHECK_H
#define RHH_CHECK_H

#include "rhh_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Checks a spec.  Returns RHH_OK and leaves *err as it is; or returns RHH_INVALID, and
 * *err says what is wrong.
 */
rhh_status	rhh_check_spec(const rhh_map_spec *spec, rhh_error *err);

/* The same for a batch of a map whose spec has been checked. */
rhh_status	rhh_check_batch(const rhh_map_spec *spec, const rhh_batch *batch,
							rhh_error *err);

/* The same for rows that a map of this spec is fed of another one's groups. */
rhh_status	rhh_check_feed(const rhh_map_spec *spec, const rhh_map_spec *source,
						   const rhh_feed *feed, rhh_error *err);

#ifdef __cplusplus
}
#endif

#endif							/* RHH_CHECK_H */
