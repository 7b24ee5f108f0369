/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rows of collectives play. A size is bytes, and each call uses other buffers than the one
 * before.
 */
#ifndef TERN_LAB_PERF_COLL_H
#define TERN_LAB_PERF_COLL_H

#include "lab/bench/test.h"

phase_act coll_open;       /* a team of all ranks, and the buffers */
phase_act coll_barriers;   /* of that team */
phase_act coll_laps_raw;   /* a token once around all ranks */
phase_act coll_trips_raw;  /* a line between ranks 0 and 1, there and back */
phase_act coll_broadcasts; /* each rank in turn is the root */
phase_act coll_sums;       /* allreduce of doubles */
phase_act coll_copies;     /* memcpy(), which all ranks run at once */

#define COLL_LIMIT_TRIP "a raw cache line between two ranks, there and back"
#define COLL_LIMIT_LAP                                                                   \
	"a raw token once around the same processes, which yield if they are more than " \
	"the cores"
#define COLL_LIMIT_BARRIER "a barrier of the same team"
#define COLL_LIMIT_COPY "memcpy() of other buffers each time, run by all ranks at once"

#endif
