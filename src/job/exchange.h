/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks know of each other, in the job's memory of each machine.
 *
 * A card says how its rank can be reached. Each rank publishes one when it opens and reads those of
 * others when it needs them. Nobody waits: a rank that has not opened yet has no card, and messages
 * to it stay with their sender.
 *
 * A status record carries the card and the state of a rank to the other machines. Whoever connects
 * the machines copies it from one memory to the other: tern-link, whether `tern run --hosts`
 * has started it or a rank (boot/link/link.h). A machine has one of those, so
 * one process writes all records that come in. A record says everything about its rank. It may come
 * by several ways and more than once: its serial tells the later from the earlier, and the last one
 * replaces all before it. Each machine counts its own sessions: a rank in a later session has left
 * this one.
 */
#ifndef TERN_JOB_EXCHANGE_H
#define TERN_JOB_EXCHANGE_H

#include <stdbool.h>

#include "job/job.h"

/* `len` is at most JOB_CARD_BYTES, and the same at every rank. Once in a session. */
void card_publish(struct job *j, uint32_t rank, const void *card, size_t len);

/* False if `rank` has not published its card in this session. */
bool card_read(const struct job *j, uint32_t rank, void *card, size_t len);

/* Travels as bytes. */
struct rank_status {
	uint32_t rank, state; /* enum rank_state */
	uint64_t serial;      /* the higher one is later */
	uint64_t session;
	int32_t status;
	uint64_t passed, passed_before;
	uint64_t published;
	uint64_t end; /* job_end_word() of its machine */
	char card[JOB_CARD_BYTES];
};

/* Of any rank: of one that is not here, what was heard last. */
void rank_status_read(struct job *j, uint32_t rank, struct rank_status *n);

/*
 * What somebody elsewhere has been told of the ranks of this machine: `told` has for each rank of
 * the job the serial of the last record, plus 1; 0: none. Makes the record that is to be told next,
 * and counts it as told, unless `n` is NULL; false: there is none.
 */
bool rank_status_news(struct job *j, uint64_t *told, struct rank_status *n);
/* Of a rank that is not here. */
enum rank_status_worth {
	RANK_STATUS_NONSENSE,
	RANK_STATUS_KNOWN, /* or late */
	RANK_STATUS_NEWS,
};
enum rank_status_worth rank_status_take(struct job *j, const struct rank_status *n);

/*
 * That a rank has ended, by somebody who knows nothing else of it; whoever takes it does.
 */
void rank_status_lost(struct rank_status *n, uint32_t rank);

#endif
