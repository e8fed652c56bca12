/*
 * rhh_check.h
 *		Is what a caller hands to a device what rhh_device.h says that it must be?
 *
 * Both devices ask here, so that they accept the same and refuse the same, with
 * the same message.
 */
#ifndef RHH_CHECK_H
#define RHH_CHECK_H

#include "rhh_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RHH_OK, and err is left as it is; or RHH_INVALID, and err says what is wrong. */
rhh_status	rhh_check_spec(const rhh_map_spec *spec, rhh_error *err);

/* The same for a batch for a table of a spec that was checked. */
rhh_status	rhh_check_batch(const rhh_map_spec *spec, const rhh_batch *batch,
							rhh_error *err);

/* The same for rows that a map of this spec is fed of another one's groups. */
rhh_status	rhh_check_feed(const rhh_map_spec *spec, const rhh_map_spec *source,
						   const rhh_feed *feed, rhh_error *err);

#ifdef __cplusplus
}
#endif

#endif							/* RHH_CHECK_H */
