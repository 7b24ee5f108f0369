/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks of one machine know of those of another: where they can be reached, and whether they
 * have left. Each machine has a memory of the job; a status record is what is copied from one to
 * the other, by whoever connects the machines: the agents of `tern run --hosts`, or the links of a
 * job that another launcher started (link.h). A machine has one of those, so one process writes
 * what is heard.
 *
 * It may come by several ways, so a serial tells the later from the earlier. A status record says
 * everything that there is to say of its rank, so the last one replaces all before it, and it does
 * no harm to hear one twice. Sessions are counted by each machine by itself: a rank in a later
 * session has left this one.
 */
#ifndef TERN_BOOT_RANK_STATUS_H
#define TERN_BOOT_RANK_STATUS_H

#include <stdbool.h>

#include "job/job.h"

/* Travels as bytes. */
struct rank_status {
	uint32_t rank, state; /* enum rank_state */
	uint64_t serial;      /* the higher serial is the later one */
	uint64_t session;
	int32_t status;
	uint64_t passed, passed_before;
	uint64_t published;
	char card[JOB_CARD_BYTES];
};

/* Of any rank: of one that is not here, what was heard last. */
void rank_status_read(struct job *j, uint32_t rank, struct rank_status *n);
/* Of a rank that is not here. */
enum rank_status_worth {
	RANK_STATUS_NONSENSE,
	RANK_STATUS_KNOWN, /* or late */
	RANK_STATUS_NEWS,
};
enum rank_status_worth rank_status_take(struct job *j, const struct rank_status *n);

/*
 * Of a rank that has ended, as far as somebody can say who is not of its machine: well, if it had
 * closed before.
 */
void rank_status_end(struct job *j, uint32_t rank, int status, struct rank_status *n);
/* The same by somebody who knows nothing of it; whoever takes it does. */
void rank_status_lost(struct rank_status *n, uint32_t rank);

#endif
