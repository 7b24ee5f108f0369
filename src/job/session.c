/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of a job: ranks open and leave, and the last to leave makes the memory new for the next
 * one. All operations are seq_cst: they happen when a rank opens, leaves or ends, and each change
 * of a state must be seen by whoever counts the states after it, whichever of several words it
 * reads.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

#include "base/world.h"
#include "job/job.h"

enum { RENEW_NAP_NS = 100000 };

/*
 * A session's phase is one word: the low half of its number << 32 | the rank that makes the memory
 * new, plus 1, << 16 | how many ranks have left. A process may die at any instruction, so that
 * nothing is added up: whoever changes the state of a rank counts all states and then writes the
 * word, and only if no session has ended meanwhile.
 */
#define PHASE_RENEWER (JOB_PHASE_LEFT << 16)
#define PHASE_SESSION (UINT64_C(1) << 32)

void job_session_begin(struct job *j, uint64_t first)
{
	atomic_store(&j->head->session, first);
	atomic_store(&j->head->phase, first * PHASE_SESSION);
	for (uint32_t r = 0; r < j->size; r++)
		atomic_store(&j->rank[r].moved, first);
}

/*
 * The session behind that of the phase. Whoever began to make the memory new, and died over it, may
 * have written it.
 */
static uint64_t session_next(const struct job *j)
{
	uint64_t session = atomic_load(&j->head->session);
	bool written = (uint32_t)session != atomic_load(&j->head->phase) / PHASE_SESSION;
	return session + !written;
}

/* A rank of another machine, seen from this session: what was said of it may be of another one. */
static enum rank_state told_state(uint64_t told, uint64_t session)
{
	enum rank_state state = (enum rank_state)(told & 0xff);
	if (state >= RANK_GONE)
		return state;
	return told >> 8 < session ? RANK_EXPECTED : told >> 8 > session ? RANK_CLOSED : state;
}

/* Repeated, if whoever did it died over it, it changes nothing. */
static void rank_renew(struct job *j, uint32_t rank, uint64_t session)
{
	struct job_rank *r = &j->rank[rank];
	uint32_t closed = RANK_CLOSED;
	atomic_store(&r->bell, BELL_QUIET);
	atomic_store(&r->heap, 0);
	atomic_store(&r->common, 0);
	atomic_store(&r->stored, 0);
	atomic_store(&r->offer[0].ready, 0);
	atomic_store(&r->offer[1].ready, 0);
	atomic_store(&r->port, 0);
	for (unsigned i = 0; i < JOB_REGION_CLASSES; i++)
		atomic_store(&r->regions[i], 0);
	if (!job_here(j, rank)) {
		atomic_store(&r->state, told_state(atomic_load(&r->told), session));
		return;
	}
	/* It stays in the session in which it ended: others may still be there, in a barrier. */
	if (atomic_load(&r->state) >= RANK_GONE)
		return;
	if (atomic_load(&r->moved) != session)
		atomic_store(&r->passed_before, atomic_load(&r->passed));
	atomic_store(&r->moved, session);
	atomic_store(&r->passed, 0);
	/* If it is not closed, it is gone or dead, for good. */
	atomic_compare_exchange_strong(&r->state, &closed, RANK_EXPECTED);
}

static uint32_t ranks_left(const struct job *j)
{
	uint32_t left = 0;
	for (uint32_t r = 0; r < j->size; r++)
		left += job_rank_state(j, r) >= RANK_CLOSED;
	return left;
}

static bool all_left_here(const struct job *j)
{
	for (uint32_t r = 0; r < j->size; r++)
		if (job_here(j, r) && job_rank_state(j, r) < RANK_CLOSED)
			return false;
	return true;
}

/*
 * After a rank's state has changed. While the memory is made new, nothing: whoever does that counts
 * at its end.
 */
static void job_recount(struct job *j)
{
	uint64_t phase = atomic_load(&j->head->phase), counted;
	do {
		if (phase & PHASE_RENEWER)
			return;
		counted = (phase & ~JOB_PHASE_LEFT) | ranks_left(j);
	} while (counted > phase &&
		 !atomic_compare_exchange_strong(&j->head->phase, &phase, counted));
}

/* Nobody else touches the memory now. Whoever does it may die over it, and another begins again. */
static void job_renew(struct job *j)
{
	uint64_t next = session_next(j);
	fallocate(j->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)j->pool.at,
		  (off_t)(j->bytes - j->pool.at));
	memset((void *)j->heed, 0, (size_t)((char *)j->card - (char *)j->heed));
	atomic_store(&j->head->committed, j->pool.at); /* the front, which is kept */
	atomic_store(&j->head->arrived, 0);
	atomic_store(&j->head->generation, 0);
	atomic_store(&j->head->seats_used, 0);
	atomic_store(&j->head->session, next);
	for (uint32_t r = 0; r < j->size; r++)
		rank_renew(j, r, next);
	atomic_store(&j->head->phase, next * PHASE_SESSION | ranks_left(j));
	job_recount(j); /* whoever ended in between was not counted by those who saw it */
}

/*
 * Makes the memory new for the next session if all ranks that are here have left this one. Several
 * may see that at once; the word lets one of them do it, and none that saw it in a session that is
 * over.
 */
static void job_renew_by(struct job *j, uint32_t rank)
{
	uint64_t phase = atomic_load(&j->head->phase);
	while (!(phase & PHASE_RENEWER) && all_left_here(j))
		if (atomic_compare_exchange_strong(&j->head->phase, &phase,
						   phase | (uint64_t)(rank + 1) << 16)) {
			job_renew(j);
			return;
		}
}

uint32_t job_renewer(const struct job *j)
{
	return (uint32_t)((atomic_load(&j->head->phase) & PHASE_RENEWER) >> 16);
}

bool job_renewing(const struct job *j)
{
	return job_renewer(j) != 0;
}

bool job_rank_opens(struct job *j, uint32_t rank)
{
	uint32_t expected = RANK_EXPECTED;
	return atomic_compare_exchange_strong(&j->rank[rank].state, &expected, RANK_OPEN);
}

void job_rank_unopens(struct job *j, uint32_t rank)
{
	uint32_t open = RANK_OPEN;
	atomic_compare_exchange_strong(&j->rank[rank].state, &open, RANK_EXPECTED);
}

void job_rank_leaves(struct job *j, uint32_t rank, enum rank_state state)
{
	atomic_store(&j->rank[rank].state, (uint32_t)state);
	if (state == RANK_DEAD)
		job_heap_withdraw(j, rank); /* before the memory is made new */
	job_recount(j);
	job_renew_by(j, rank);
	job_tell(j, rank);
}

/*
 * The rank that makes the memory new may die over it. Whoever has to notice that may be waiting
 * here, and then says it itself.
 */
static void renewer_check(struct job *j)
{
	uint32_t rank = job_renewer(j) - 1;
	if (!j->watches || rank >= j->size)
		return;
	const struct process_name name = { .pid = atomic_load(&j->rank[rank].pid),
					   .born = atomic_load(&j->rank[rank].born) };
	int status = 0; /* it had closed */
	if (!process_ended(&name))
		return;
	process_status(-1, name.pid, name.born, &status);
	job_rank_ended(j, rank, status);
}

void job_renewed(struct job *j)
{
	for (; job_renewing(j); world_nap(RENEW_NAP_NS))
		renewer_check(j);
}

/*
 * A session may end while this is done: then it is done again for the next. What was told is
 * written first, so whoever makes the memory new either sees it or is seen here.
 */
void job_rank_told(struct job *j, uint32_t rank, uint64_t session, enum rank_state state)
{
	uint64_t now;
	atomic_store(&j->rank[rank].told, session << 8 | state);
	do {
		job_renewed(j);
		now = atomic_load(&j->head->session);
		enum rank_state seen = told_state(atomic_load(&j->rank[rank].told), now);
		atomic_store(&j->rank[rank].state, seen);
		job_recount(j);
	} while (job_renewing(j) || atomic_load(&j->head->session) != now);
	if (job_rank_state(j, rank) >= RANK_CLOSED)
		job_ring_all(j);
}

void job_rank_ended(struct job *j, uint32_t rank, int status)
{
	bool well = status == 0 && job_rank_state(j, rank) != RANK_OPEN;
	atomic_store(&j->rank[rank].status, status);
	job_rank_leaves(j, rank, well ? RANK_GONE : RANK_DEAD);
	if (job_renewer(j) == rank + 1)
		job_renew(j); /* it was the last to leave, and did not finish its work */
	job_tell(j, rank);
	job_ring_all(j);
}

uint64_t job_rank_session(const struct job *j, uint32_t rank)
{
	if (!job_here(j, rank))
		return atomic_load(&j->rank[rank].told) >> 8;
	if (job_rank_state(j, rank) >= RANK_GONE)
		return atomic_load(&j->rank[rank].moved);
	return atomic_load(&j->head->session);
}

/*
 * A rank that is further ahead than the next session has been there, so it has passed whatever
 * there was to pass.
 */
uint64_t job_rank_passed(const struct job *j, uint32_t rank)
{
	uint64_t session = atomic_load(&j->head->session), theirs = job_rank_session(j, rank);
	if (theirs > session + 1 && job_rank_state(j, rank) != RANK_DEAD)
		return UINT64_MAX;
	if (theirs == session)
		return atomic_load(&j->rank[rank].passed);
	return theirs > session ? atomic_load(&j->rank[rank].passed_before) : 0;
}
