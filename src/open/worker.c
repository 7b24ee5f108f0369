/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers: endpoints for threads of a rank. A worker has a seat in the job's memory and lanes to
 * every member from there, so its thread sends without a lock. Its requests say that they are from
 * the rank; their replies come back through its own rings, and its own polls handle them. Requests
 * to a worker come the same way, from whoever was told its id (core/target.c).
 *
 * The rings behind a seat have readers until the session ends, so a worker that is closed is
 * parked with its lanes as they stand. Its rank opens it again when no reply to the one before can
 * come any more: whoever it sent to is asked for one more reply, which is the last. What others
 * sent to it is dropped by the close, which gives them their blocks back.
 */
#include "open/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/core.h"
#include "core/delivery.h"
#include "core/layers.h"
#include "core/scope.h"
#include "endpoint/handler.h"
#include "endpoint/trace.h"

enum { SPIN_LESS = 64 };

/* The network among the ranks of a machine, if it reaches every rank; else NULL. */
static struct net *worker_net(const struct endpoint *main)
{
	struct net *last = main->net[main->nets - 1];
	return last->ops->span == SPAN_MACHINE ? last : NULL;
}

/* -- Handlers --------------------------------------------------------------------------------- */

static void handlers_copy(struct endpoint *w)
{
	const struct endpoint *main = w->main;
	for (unsigned id = 0; id < TERN_HANDLER_MAX; id++) {
		w->t->known[id] = main->t->known[id];
		handler_put(w, id, w->t->known[id] ? handler_meant(main, id) : handler_unknown);
		w->handlers.name[id] = main->handlers.name[id];
		w->handlers.arg[id] = main->handlers.arg[id];
	}
	w->handlers.ranged = main->handlers.ranged;
}

static void on_dropped(tern *t, const tern_msg *m)
{
	(void)t, (void)m; /* the worker that it is for was closed */
}

static void on_last_answer(tern *t, const tern_msg *m)
{
	(void)m;
	t->own->owes[t->own->inlet->peer] = 0;
}

static void handlers_drop(struct endpoint *w)
{
	for (unsigned id = 0; id < TERN_HANDLER_SLOTS; id++)
		w->t->handler[id] = on_dropped;
	w->t->handler[TERN_HANDLER_MAX + CORE_TOLD] = on_last_answer;
}

/* -- Closing ---------------------------------------------------------------------------------- */

/* What its program has left behind. */
static void worker_empty(struct endpoint *w)
{
	while (held(w))
		tern_release(w->t);
	keep_drop_all(w);
	for (unsigned i = 0; i < w->net[0]->blocks; i++)
		if (block_is(pool_at(w->net[0], i), BLOCK_CLAIMED))
			block_set(pool_at(w->net[0], i), BLOCK_FREE);
	for (unsigned i = 0; i < w->net[0]->larges; i++)
		if (block_is(large_at(w->net[0], i), BLOCK_CLAIMED))
			block_set(large_at(w->net[0], i), BLOCK_FREE);
	for (uint32_t r = 0; r < w->t->size; r++)
		w->site.peer[r].forgiven = w->site.peer[r].told = false;
	w->deferred_count = w->defer.first = 0;
	w->lost.deferred = false;
	w->lost.fn = NULL;
	w->defer.ops_done = w->defer.ops_done_last = NULL;
	w->trouble = 0;
	w->work &= 1u << LAYERS_DRAINING;
}

/* Entries of `owes`. */
static uint32_t worker_peers(const struct endpoint *w)
{
	return w->t->size + w->group->job.seats;
}

/* The number by which a request names the member now; 0: it is a worker that is closed. */
static uint32_t member_number(const struct endpoint *w, uint32_t member)
{
	const struct job *j = &w->group->job;
	return member < j->size ? member : atomic_load(&job_seat(j, member)->id);
}

/*
 * Asks for a reply behind the last ones, as far as there is room. A worker that is closed replies
 * no more. The one that is next in its seat may get the question, and answer.
 */
static void worker_ask(struct endpoint *w)
{
	for (; w->asked < worker_peers(w); w->asked++) {
		uint32_t m = w->asked;
		if (!w->t->lane[m].base || w->site.peer[m].lost)
			continue;
		uint32_t number = member_number(w, m);
		library_hold(w); /* so that nothing waits */
		int rc = layer_request(w, m, CORE_ASK, NULL, 0, 0, NULL);
		library_release(w);
		if (rc == -EAGAIN)
			return;
		w->owes[m] = rc == 0 ? number + 1 : 0;
	}
}

static bool worker_settled(struct endpoint *w)
{
	if (w->asked < worker_peers(w))
		return false;
	for (uint32_t m = 0; m < worker_peers(w); m++)
		if (w->owes[m] && !w->site.peer[m].lost && w->owes[m] == member_number(w, m) + 1)
			return false;
	return true;
}

/* Nobody writes a request for it any more; see core/target.c. A rank that died writes none. */
static void worker_unname(struct endpoint *w)
{
	const struct job *j = &w->group->job;
	atomic_store(&job_seat(j, w->site.member)->id, 0);
	for (uint32_t m = 0; m < job_members(j); m++) {
		uint32_t rank = job_member_rank(j, m);
		if (rank >= j->size)
			continue; /* nobody has taken the seat yet */
		while (atomic_load(job_sending(j, m)) == w->site.member &&
		       job_rank_state(j, rank) == RANK_OPEN)
			w->world->yield();
	}
}

/*
 * With handlers that drop: their gates are open, since nothing is answered. So whatever was sent is
 * taken in, and the blocks of its payloads are their senders' again.
 */
static void worker_drop(struct endpoint *w)
{
	w->net[0]->ops->answer(w->net[0]); /* whoever knocked */
	for (uint32_t m = 0; m < worker_peers(w); m++)
		w->site.peer[m].requests.accept = TERN_HEAD_PLAIN;
	while (poll_once(w, KINDS_BOTH))
		;
	for (uint32_t m = 0; m < worker_peers(w); m++)
		w->site.peer[m].requests.accept = 0; /* until there is room for a reply */
}

void worker_close(struct endpoint *w)
{
	worker_unname(w);
	layers_leave(w);
	layers_close(w);
	memset(w->layer, 0, sizeof w->layer);
	worker_empty(w);
	handlers_drop(w);
	worker_drop(w);
	w->asked = 0;
	worker_ask(w);
	attach_release(w);
	attach_park(w);
}

int workers_closing(struct endpoint *e)
{
	uint32_t open = e->main ? 0 : attach_workers(e);
	if (!open)
		return 0;
	return error_set(
		-EBUSY, "tern_close() was called at rank %u, which has %u %s open: close %s first",
		e->t->rank, open, open == 1 ? "worker" : "workers", open == 1 ? "it" : "them");
}

void workers_disconnect(struct endpoint *e)
{
	for (struct endpoint *w; (w = attach_parked(e, NULL));)
		if (w->nets) {
			w->nets = 0;
			w->net[0]->ops->close(w->net[0]);
		}
}

/* -- Opening ---------------------------------------------------------------------------------- */

/* Layers of a parked worker are new: they hear of lost ranks once more. */
static int worker_layers(struct endpoint *w)
{
	int rc = layers_open(w);
	for (uint32_t r = 0; !rc && r < w->t->size; r++)
		if (w->site.peer[r].lost)
			lost_drain_begin(w, r);
	handlers_copy(w);
	return rc;
}

/* By the thread that opens: handles what has come for the one before. */
static bool worker_again(struct endpoint *w)
{
	attach_first(w);
	poll_once(w, KINDS_BOTH);
	worker_ask(w);
	bool settled = worker_settled(w);
	while (settled && poll_once(w, KINDS_BOTH))
		; /* replies of a worker that has closed since it was asked */
	attach_release(w);
	return settled;
}

static struct endpoint *worker_parked(struct endpoint *main)
{
	struct endpoint *w = NULL;
	while ((w = attach_parked(main, w))) {
		if (worker_again(w))
			return w;
		attach_park(w);
	}
	return NULL;
}

static int worker_connect(struct endpoint *w)
{
	const struct net_ops *ops = worker_net(w->main)->ops;
	int rc = ops->open(&w->net[0], &w->site, &w->group->job, NULL, "");
	if (rc)
		return rc;
	w->nets = 1;
	for (uint32_t r = 0; r < w->t->size; r++)
		w->site.peer[r].net = w->net[0];
	return 0;
}

/*
 * Whoever it waits for may need this core, if workers or ranks are more than the cores. If only
 * both together are, it depends on who rests: many endpoints of ranks do while workers send.
 */
static uint32_t worker_spin(const struct job *j, uint32_t spin)
{
	uint32_t workers = job_members(j) - j->size, ranks = j->head->here;
	if (workers > j->head->cores || ranks > j->head->cores)
		return 0;
	return workers + ranks > j->head->cores ? spin / SPIN_LESS : spin;
}

static int worker_begin(struct endpoint *w)
{
	struct job *j = &w->group->job;
	w->waiting.grace_ns = w->main->waiting.grace_ns;
	w->waiting.stuck_ns = w->main->waiting.stuck_ns;
	w->waiting.spin = worker_spin(j, w->main->waiting.spin);
	pulse_open(w); /* and no stats: its rank counts what its rings bring */
	int rc = handlers_open(w);
	if (!rc)
		rc = worker_connect(w);
	delivery_worker(w);
	return rc;
}

static int worker_new(struct endpoint *main, struct endpoint **out)
{
	tern *t = main->t;
	uint32_t member;
	int rc = job_seat_take(&main->group->job, t->rank, &member);
	if (rc)
		return rc;
	uint32_t peers = worker_peers(main);
	struct endpoint *w = endpoint_new(t->rank, t->size, member, peers);
	if (w)
		w->owes = calloc(peers, sizeof *w->owes);
	if (!w || !w->owes) {
		endpoint_free(w);
		return error_set(-ENOMEM, "opening a worker of rank %u: no memory", t->rank);
	}
	w->group = main->group;
	w->main = main;
	rc = worker_begin(w);
	if (rc) {
		endpoint_free(w);
		return rc;
	}
	attach_worker(w);
	*out = w;
	return 0;
}

/* Over a network of packets a worker is the endpoint itself, under its lock. */
static int worker_share(struct endpoint *main, tern **worker)
{
	int rc = main->owner.shared ? 0 : delivery_share(main);
	if (rc)
		return rc;
	atomic_fetch_add(&main->aliases, 1);
	*worker = main->t;
	return 0;
}

bool worker_unshare(struct endpoint *e)
{
	uint32_t aliases = atomic_load(&e->aliases);
	while (aliases)
		if (atomic_compare_exchange_weak(&e->aliases, &aliases, aliases - 1))
			return true;
	return false;
}

static int worker_allowed(struct endpoint *main)
{
	int rc = rules_rank(main, "tern_worker_open()");
	if (!rc && main->trace)
		rc = error_set(
			-ENOTSUP,
			"rank %u is traced (TERN_TRACE), which tells messages apart by their "
			"ranks alone: a traced rank has no workers",
			main->t->rank);
	return rc;
}

int tern_worker_open(tern *t, tern **worker)
{
	struct endpoint *main = given(t)->own;
	int rc = worker_allowed(main);
	if (rc)
		return rc;
	if (!worker_net(main))
		return worker_share(main, worker);
	struct endpoint *w = worker_parked(main);
	if (!w)
		rc = worker_new(main, &w);
	if (!rc)
		rc = worker_layers(w);
	if (!rc) {
		w->id = job_worker_id(&main->group->job, w->site.member, w->id);
		atomic_store(&job_seat(&main->group->job, w->site.member)->id, w->id);
		*worker = w->t;
	} else if (w)
		worker_close(w);
	return rc;
}

uint32_t tern_worker_id(const tern *worker)
{
	if (!worker)
		return TERN_RANK_NONE;
	const struct endpoint *w = worker->own;
	return w->main ? w->id : worker->rank;
}
