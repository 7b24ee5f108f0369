/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing endpoints, alone, together, or as a rank that was launched. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/setting.h"
#include "base/wrap.h"
#include "boot/boot.h"
#include "core/core.h"
#include "core/delivery.h"
#include "core/layers.h"
#include "core/rules.h"
#include "core/scope.h"
#include "core/wait.h"
#include "endpoint/handler.h"
#include "endpoint/trace.h"
#include "endpoint/watchdog.h"
#include "endpoint/watched.h"
#include "open/exit.h"
#include "open/nets.h"
#include "open/worker.h"

enum {
	SESSION_NAP_NS = 100000,
	CLOSE_S = 30, /* in which tern_close() sends again where TERN_KEEPALIVE is 0 */
	ASKS = 32,    /* looks at rings that take as long as asking a network */
};

static void *aligned_zero(size_t bytes)
{
	bytes = (bytes + 63) / 64 * 64;
	void *p = aligned_alloc(64, bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

static void head_init(tern *t, struct endpoint *e, uint32_t rank, uint32_t size)
{
	t->rank = rank;
	t->size = size;
	t->own = e;
	t->answer = &e->refuse;
	t->looks = 1;
	e->site.peek = &e->site.bell;
	e->site.fetch = FETCH_ALWAYS;
	for (unsigned i = 0; i < TERN_HANDLER_SLOTS; i++)
		t->handler[i] = handler_unknown;
}

struct endpoint *endpoint_new(uint32_t rank, uint32_t size, uint32_t member, uint32_t peers)
{
	struct endpoint *e = aligned_zero(sizeof *e);
	if (!e)
		return NULL;
	e->t = aligned_zero(sizeof *e->t + peers * sizeof(struct tern_lane));
	e->site.peer = aligned_zero(peers * sizeof(struct peer));
	if (!e->t || !e->site.peer) {
		endpoint_free(e);
		return NULL;
	}
	head_init(e->t, e, rank, size);
	e->site.rank = rank;
	e->site.size = size;
	e->site.member = member;
	e->site.lane = e->t->lane;
	e->site.refuse = &e->refuse;
	for (uint32_t r = 0; r < peers; r++)
		e->t->lane[r].peer = (uint16_t)r; /* known before it is connected */
	e->world = world_used();
	return e;
}

static int endpoint_settle(struct endpoint *e, const tern_options *o)
{
	uint64_t spin, grace, stuck;
	int rc = setting_number(SETTING_SPIN, &spin);
	if (!rc)
		rc = setting_number(SETTING_GRACE, &grace);
	if (!rc)
		rc = setting_number(SETTING_STUCK, &stuck);
	if (!rc)
		rc = wrap_judge();
	if (rc)
		return rc;
	e->waiting.spin = o && o->spin ? o->spin : spin < UINT32_MAX ? (uint32_t)spin : UINT32_MAX;
	e->waiting.stuck_ns = stuck * UINT64_C(1000000000);
	e->waiting.grace_ns = (o && o->grace ? o->grace : grace) * UINT64_C(1000000);
	if (!e->world->spins || e->group->job.head->here > e->group->job.head->cores)
		e->waiting.spin = 0; /* whoever we wait for may need this core */
	pulse_open(e);
	return stats_open(e);
}

static int endpoint_connect(struct endpoint *e, struct group *g)
{
	int rc = nets_open(e, g);
	if (rc)
		return rc;
	if (e->site.asks)
		e->waiting.spin /= ASKS; /* each look is a system call */
	for (uint32_t r = 0; r < e->t->size; r++)
		e->site.peer[r].net = e->net[job_here(&g->job, r) ? 1 : e->nets - 1];
	e->site.peer[e->t->rank].net = e->net[0];
	return 0;
}

static void endpoint_disconnect(struct endpoint *e)
{
	delivery_close(e);
	watchdog_close(e);
	share_close(e);
	layers_close(e);
	nets_close(e);
	trace_close(e);
}

static int group_add(struct group *g, uint32_t slot, uint32_t rank, uint32_t size,
		     const tern_options *o)
{
	struct endpoint *e = endpoint_new(rank, size, rank, size + g->job.seats);
	if (!e)
		return error_set(-ENOMEM, "opening rank %u of %u: no memory", rank, size);
	g->member[slot] = e;
	e->group = g;
	int rc = endpoint_settle(e, o);
	if (!rc)
		rc = watchdog_open(e, job_exit);
	if (!rc)
		rc = trace_open(e);
	if (!rc)
		rc = handlers_open(e);
	if (!rc)
		rc = layers_open(e);
	if (!rc)
		rc = endpoint_connect(e, g); /* from then on, peers see the rank */
	return rc ? rc : delivery_open(e, o);
}

static struct group *group_new(uint32_t members)
{
	struct group *g = calloc(1, sizeof *g + members * sizeof g->member[0]);
	if (!g)
		return NULL;
	g->size = members;
	atomic_store(&g->open, members); /* seq_cst, as `closed` below: once for each endpoint */
	return g;
}

/* Undoes a group that could not be opened whole. */
static int group_fail(struct group *g, int rc)
{
	for (uint32_t i = 0; i < g->size; i++)
		if (g->member[i])
			endpoint_disconnect(g->member[i]);
	group_free(g);
	return rc;
}

/* Hands a group out, unless opening it has failed with `rc`. */
static int group_opened(struct group *g, int rc, tern **t)
{
	if (rc)
		return group_fail(g, rc);
	attach_opened(g);
	for (uint32_t i = 0; i < g->size; i++)
		t[i] = g->member[i]->t;
	return 0;
}

static int layout_check(unsigned layout)
{
	if (layout == TERN_LAYOUT)
		return 0;
	return error_set(
		-EPROTO,
		"this program was compiled for layout %u and the library has %u: compile it again",
		layout, TERN_LAYOUT);
}

/* A job that this process makes, all of whose ranks it opens. */
static int local_job(struct group *g, uint32_t n)
{
	uint64_t budget;
	int rc = setting_number(SETTING_MEMORY, &budget);
	if (!rc)
		rc = job_create(&g->job, n, budget);
	if (rc)
		return rc;
	g->made_job = true;
	for (uint32_t r = 0; r < n; r++)
		job_rank_opens(&g->job, r);
	return 0;
}

/* -- A process that is one rank ---------------------------------------------------- */

/* The slot is free at once, or when the last rank has left the session before this one. */
static int join_session(struct job *j, uint32_t rank, const struct world *w)
{
	while (!job_rank_opens(j, rank)) {
		switch (job_rank_state(j, rank)) {
		case RANK_OPEN:
			return error_set(
				-EBUSY,
				"rank %u is open already: a rank has one endpoint at a time", rank);
		case RANK_GONE:
		case RANK_DEAD:
			return error_set(-ESHUTDOWN, "rank %u was taken for ended by the launcher",
					 rank);
		default:
			w->nap(SESSION_NAP_NS);
		}
	}
	/* Until then, other ranks still look as they did in the session before. */
	while (job_renewing(j))
		w->nap(SESSION_NAP_NS);
	return 0;
}

static int join_job(struct group *g, const struct boot *b)
{
	if (b->fd < 0)
		return local_job(g, 1);
	g->gathered = b->gathered;
	int rc = job_map(&g->job, b->fd);
	if (rc)
		return rc;
	if (b->rank >= g->job.size || b->size != g->job.size)
		return error_set(-EINVAL,
				 "TERN_RANK=%u and TERN_SIZE=%u do not fit a job of %u ranks",
				 b->rank, b->size, g->job.size);
	return join_session(&g->job, b->rank, world_used());
}

int tern_open_layout_(tern **t, const tern_options *o, unsigned layout)
{
	struct boot b;
	int rc = layout_check(layout);
	if (rc)
		return rc;
	nets_world();
	rc = boot_find(&b, o, nets_fabric_here);
	if (rc)
		return rc;
	if (b.rank == 0) /* one warning a job */
		setting_warn_unknown();
	struct group *g = group_new(1);
	if (!g)
		return error_set(-ENOMEM, "opening rank %u: no memory", b.rank);
	rc = join_job(g, &b);
	if (rc)
		return group_fail(g, rc);
	rc = group_add(g, 0, b.rank, b.size, o);
	if (rc)
		job_rank_unopens(&g->job, b.rank);
	return group_opened(g, rc, t);
}

/* -- Ranks of one process ------------------------------------------------------------ */

int tern_open_local_layout_(uint32_t n, tern **t, unsigned layout)
{
	int rc = layout_check(layout);
	if (rc)
		return rc;
	if (n < 1 || n > TERN_RANKS_MAX)
		return error_set(-ERANGE, "a job of %u ranks was asked for; it may have 1 to %d", n,
				 TERN_RANKS_MAX);
	setting_warn_unknown();
	nets_world();
	struct group *g = group_new(n);
	if (!g)
		return error_set(-ENOMEM, "opening %u ranks: no memory", n);
	rc = local_job(g, n);
	for (uint32_t r = 0; !rc && r < n; r++)
		rc = group_add(g, r, r, n, NULL);
	return group_opened(g, rc, t);
}

/* How long tern_close() sends again what a rank that lives has not acknowledged, ns. */
static uint64_t close_patience(const struct endpoint *e)
{
	uint64_t seconds;
	if (setting_number(SETTING_KEEPALIVE, &seconds) || !seconds)
		seconds = CLOSE_S;
	uint64_t patience = seconds * UINT64_C(1000000000);
	return patience > e->waiting.grace_ns ? patience : e->waiting.grace_ns;
}

static bool net_settled(struct net *net, bool late)
{
	return !net->ops->settled || net->ops->settled(net, late);
}

/*
 * What was sent is under way until its receiver has it. A receiver that has left or died needs
 * nothing any more.
 */
static void close_settle(struct endpoint *e)
{
	struct wait l = { .bounded = true, .call = "tern_close" };
	uint64_t began = e->world->now(), patience = close_patience(e), waited = 0;
	for (unsigned i = 0; i < e->nets; i++)
		while (!net_settled(e->net[i], waited > e->waiting.grace_ns) && !held(e) &&
		       waited < patience) {
			wait_step(e, &l);
			waited = e->world->now() - began;
		}
}

static int close_allowed(tern *t)
{
	tern_attach(t); /* whoever closes it last has it */
	INSIDE struct scope scope = scope_open(t);
	int rc = rules_outermost(t->own, "tern_close()");
	if (!rc && !attach_is_mine(t->own))
		rc = error_set(-EPERM,
			       "rank %u starts threads: tern_close() is for the thread that has it",
			       t->rank);
	if (!rc && (t->own->defer.running || t->own->turn))
		rc = rule_broken(RULE_PROGRAM,
				 "tern_close() was called in a %s, which the endpoint still runs",
				 t->own->turn ? "turn" : "deferred function");
	if (!rc)
		rc = workers_closing(t->own);
	return rc ? rc : layers_closing(t->own);
}

int tern_close(tern *t)
{
	t = given(t);
	struct endpoint *e = t->own;
	if (worker_unshare(e))
		return 0;
	int rc = close_allowed(t);
	if (rc)
		return rc;
	if (e->main) {
		worker_close(e);
		return 0;
	}
	bool watched = e->watched;
	if (e->owner.scoped &&
	    scope_enter(e)) /* and never left: there is nothing behind it any more */
		scope_depth--;
	end_close(e);
	layers_leave(e);
	close_settle(e);
	atomic_store(&e->closed, true);
	stats_close(e);
	workers_disconnect(e);
	endpoint_disconnect(e);
	if (e->group->gathered)
		boot_left_gathered(&e->group->job, e->t->rank);
	else if (!e->group->made_job)
		boot_left();
	misuse_close(t);
	/* Release: whoever sees the last one go frees what all of them used. */
	atomic_fetch_sub_explicit(&e->group->open, 1, memory_order_acq_rel);
	attach_closed();
	if (watched)
		watched_leave();
	return 0;
}
