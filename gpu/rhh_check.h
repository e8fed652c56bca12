/*
 * rhh_check.h
 *		Checks whether calls keep the rules of rhh_device.h: what is given (specs,
 *		batches, feeds), and when.
 *
 * Both devices check here, so that they accept and reject the same, with the same
 * messages.
 *
 * Each function returns RHH_OK and leaves *err as it is, or returns another status,
 * and *err says what is wrong.  A call for a map that was cancelled is answered with
 * RHH_CANCELLED, whatever else is wrong with it.
 */
#ifndef RHH_CHECK_H
#define RHH_CHECK_H

#include "rhh_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far a map is, as its caller knows from calls and from events. */
typedef struct rhh_map_state
{
	const rhh_map_spec *spec;	/* which has been checked */
	const rhh_device *device;
	uint32_t	n_pages;		/* of the memory that the device knows; 0: there is none */
	bool		cancelled;		/* map_cancel was called */
	bool		in_flight;		/* events of batches or of pieces are due */
	bool		finishing;		/* map_finish was called */
	bool		finished;		/* and its event was reported */
	bool		extracting;		/* the event of map_extract is due */
	bool		fed;			/* rows were submitted or fed */
	bool		had_joins;		/* map_join was called */
	const rhh_join_spec *joins; /* of map_join; NULL: none */
	uint32_t	unmatched;		/* rhh_batch's of the batch that came last */
	uint64_t	n_groups;		/* once it is finished, without the orphans */
	uint64_t	n_orphans;
} rhh_map_state;

rhh_status	rhh_check_spec(const rhh_map_spec *spec, rhh_error *err);

/* builds has the states of the joins' build sides, joins->n_joins of them. */
rhh_status	rhh_check_join(const rhh_map_state *map, const rhh_join_spec *joins,
						   const rhh_map_state *builds, rhh_error *err);

rhh_status	rhh_check_submit(const rhh_map_state *map, const rhh_batch *batch,
							 rhh_error *err);

/*
 * Sets feed->n_groups to the most groups that the piece can have; 0 says that there are
 * none from first_group on.
 */
rhh_status	rhh_check_feed(const rhh_map_state *map, const rhh_map_state *source,
						   rhh_feed *feed, rhh_error *err);

rhh_status	rhh_check_filter(const rhh_map_state *map, const rhh_group_condition *conditions,
							 uint32_t n, rhh_error *err);
rhh_status	rhh_check_finish(const rhh_map_state *map, rhh_error *err);
rhh_status	rhh_check_extract(const rhh_map_state *map, const rhh_result *result,
							  rhh_error *err);
rhh_status	rhh_check_seek(const rhh_map_state *map, uint64_t group, rhh_error *err);

#ifdef __cplusplus
}
#endif

#endif							/* RHH_CHECK_H */
