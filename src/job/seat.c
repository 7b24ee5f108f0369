/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seats: the places of workers in a job's memory. A rank takes a seat for each worker that it opens
 * and keeps it for the rest of the session, because the rings behind it have readers. All
 * operations on owners are seq_cst: they happen when a worker is opened.
 */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/world.h"
#include "job/job.h"

struct job_seat *job_seat(const struct job *j, uint32_t member)
{
	return job_part_in(j, &j->seat, member - j->size);
}

uint32_t job_member_rank(const struct job *j, uint32_t member)
{
	return member < j->size ? member : atomic_load(&j->owner[member - j->size]) - 1;
}

_Atomic uint64_t *job_bell(const struct job *j, uint32_t member)
{
	return member < j->size ? &j->rank[member].bell : &job_seat(j, member)->bell;
}

struct pulse *job_pulse(const struct job *j, uint32_t member)
{
	return member < j->size ? &j->pulse[member] : &job_seat(j, member)->pulse;
}

_Atomic uint32_t *job_sending(const struct job *j, uint32_t member)
{
	return member < j->size ? &j->rank[member].sending : &job_seat(j, member)->sending;
}

uint32_t job_target(const struct job *j, uint32_t id)
{
	uint32_t seat = id % JOB_SEATS_MAX;
	if (id < j->size)
		return id;
	bool taken = id >= JOB_WORKER && seat < j->seats && atomic_load(&j->owner[seat]);
	return taken ? j->size + seat : UINT32_MAX;
}

/* Generations go round after two million; UINT32_MAX is nobody's. */
uint32_t job_worker_id(const struct job *j, uint32_t member, uint32_t before)
{
	uint32_t next = (before | JOB_WORKER) + JOB_SEATS_MAX;
	if (next < JOB_WORKER || next >= UINT32_MAX - JOB_SEATS_MAX)
		next = JOB_WORKER;
	return next / JOB_SEATS_MAX * JOB_SEATS_MAX + (member - j->size);
}

/* Whoever rings all bells looks at the seats below `seats_used` that have an owner. */
static void seats_raise(struct job *j, uint32_t used)
{
	uint32_t was = atomic_load(&j->head->seats_used);
	while (was < used && !atomic_compare_exchange_weak(&j->head->seats_used, &was, used))
		;
}

/* The memory comes first: whoever sees the owner touches it. */
static int seat_try(struct job *j, uint32_t seat, uint32_t rank)
{
	uint32_t nobody = 0;
	char what[64];
	if (atomic_load(&j->owner[seat]))
		return -EAGAIN;
	snprintf(what, sizeof what, "a worker of rank %u", rank);
	int rc = job_commit(j, job_part_at(&j->seat, seat), j->seat.bytes, what);
	if (rc)
		return rc;
	if (!atomic_compare_exchange_strong(&j->owner[seat], &nobody, rank + 1))
		return -EAGAIN;
	seats_raise(j, seat + 1);
	return 0;
}

int job_seat_take(struct job *j, uint32_t rank, uint32_t *member)
{
	for (uint32_t seat = 0; seat < j->seats; seat++) {
		int rc = seat_try(j, seat, rank);
		if (rc == -EAGAIN)
			continue;
		if (!rc)
			*member = j->size + seat;
		return rc;
	}
	return error_set(-ENOSPC,
			 "rank %u asked for a worker, and the ranks of this machine have all %u "
			 "that TERN_WORKERS allows: raise it",
			 rank, j->seats);
}

void job_ring_workers(struct job *j, uint32_t rank)
{
	for (uint32_t m = j->size; m < job_members(j); m++)
		if (atomic_load(&j->owner[m - j->size]) == rank + 1 &&
		    atomic_load(job_bell(j, m)) & BELL_ASLEEP)
			job_ring(j, m);
}

void job_ring_all(struct job *j)
{
	for (uint32_t r = 0; r < j->size; r++)
		if (job_here(j, r))
			job_ring(j, r);
	for (uint32_t m = j->size; m < job_members(j); m++)
		if (atomic_load(&j->owner[m - j->size]))
			job_ring(j, m);
}
