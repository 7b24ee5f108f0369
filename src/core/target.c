/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to workers. Their ids are above all ranks, so these come from where a rank would be
 * refused, and what is sent to a rank pays nothing for them.
 *
 * A worker serves requests as a rank does: it has inlets, a gate for each of them, and spare blocks
 * for replies. So the argument against deadlock is that of ranks. A request waits in its ring until
 * the worker's thread polls or waits in Tern, and a sender that finds no room serves its own inlets
 * meanwhile, or is told -EAGAIN under a hold. A request is handled only while its reply has room,
 * and the thread that sent it handles replies wherever it waits; a reply handler sends nothing. A
 * worker that does not poll holds up those who send to it, and nobody else: every pair of members
 * has rings of its own.
 *
 * A seat is used again, so a request must not be written once its worker is closed. Whoever writes
 * one says so in `sending` before it looks at the worker's id. Whoever closes clears the id, waits
 * until nobody writes, and takes in what lies there (src/open/worker.c): so whoever waits for room,
 * or for a block, gets it, and then finds that the worker is closed. All of these are seq_cst: of a
 * sender and a close, one sees the other.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layer.h"
#include "core/scope.h"

uint32_t target_member(const struct endpoint *e, uint32_t dst)
{
	return dst < JOB_WORKER ? dst : job_target(&e->group->job, dst);
}

static bool target_open(const struct endpoint *e, uint32_t worker)
{
	return atomic_load(&job_seat(&e->group->job, target_member(e, worker))->id) == worker;
}

static int target_closed(const struct endpoint *e, uint32_t worker)
{
	return error_set(-ESHUTDOWN,
			 "worker %#x of rank %u was named, which is closed: ask the rank for one "
			 "that is open",
			 worker, job_member_rank(&e->group->job, target_member(e, worker)));
}

int target_reachable(struct endpoint *e, uint32_t dst)
{
	uint32_t m = target_member(e, dst);
	struct peer *p = &e->site.peer[m];
	if (m == dst)
		return send_reachable(e, m);
	p->net = e->net[e->nets - 1]; /* the machine's: elsewhere workers have no ids */
	int rc = p->net->ops->check(p->net, m);
	return rc ? rc : send_reachable(e, m);
}

int target_room(struct endpoint *e, uint32_t dst)
{
	int rc = target_reachable(e, dst);
	return rc ? rc : send_room(e, target_member(e, dst), NOTHING_BEHIND);
}

/* Not in target_request(), which is on the way of requests to ranks. */
static __attribute__((noinline)) int worker_request(struct endpoint *e, uint32_t worker,
						    const struct parcel *p)
{
	uint32_t m = target_member(e, worker);
	_Atomic uint32_t *sending = job_sending(&e->group->job, e->site.member);
	int rc = target_room(e, worker);
	if (rc)
		return rc;
	atomic_store(sending, m);
	bool open = target_open(e, worker);
	if (open)
		send_put(e, &e->t->lane[m], p);
	atomic_store(sending, 0);
	if (!open)
		return target_closed(e, worker);
	tern_look_(e->t);
	return 0;
}

int target_request(struct endpoint *e, uint32_t dst, const struct parcel *p)
{
	return dst < JOB_WORKER ? send_request(e, dst, p) : worker_request(e, dst, p);
}
