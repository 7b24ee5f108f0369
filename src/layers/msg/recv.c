/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives. */
#include <errno.h>

#include "base/error.h"
#include "core/direct.h"
#include "mem/mem.h"
#include "msg/msg.h"

/* -- The table ---------------------------------------------------------------------------- */

static void recv_remove(struct msg *m, struct receiving *r)
{
	m->wild -= r->wild;
	list_remove(&r->node);
	layout_release(&r->layout, &m->copies);
	record_give(&m->recvs, r);
}

/* The first receive under exactly that rank and id that is in one of these states. */
static inline __attribute__((always_inline)) struct receiving *
recv_keyed(struct msg *m, uint32_t rank, tern_id id, enum tern_state state)
{
	struct node *n = table_find(&m->recv_table, rank, id);
	while (n && NODE_OF(n, struct receiving, node)->state != state)
		n = node_like(n->next, rank, id);
	return NODE_OF(n, struct receiving, node);
}

static struct receiving *recv_earlier(struct receiving *a, struct receiving *b)
{
	return !a || (b && b->seq < a->seq) ? b : a;
}

/* `r` is the first that names rank and id; others may be earlier. */
static __attribute__((noinline)) struct receiving *
recv_first(struct msg *m, struct receiving *r, uint32_t src, tern_id id, enum tern_state state)
{
	r = recv_earlier(r, recv_keyed(m, TERN_RANK_ANY, id, state));
	for (struct node *n = m->masked.first; n; n = n->next) {
		struct receiving *wild = NODE_OF(n, struct receiving, node);
		if (wild->state == state && !((id ^ n->id) & wild->mask) &&
		    (n->rank == TERN_RANK_ANY || n->rank == src))
			return recv_earlier(r, wild);
	}
	return r;
}

struct receiving *recv_match(struct msg *m, uint32_t src, tern_id id, enum tern_state state)
{
	struct receiving *r = recv_keyed(m, src, id, state);
	return m->wild ? recv_first(m, r, src, id, state) : r;
}

void recv_over(struct msg *m, struct receiving *r, int error)
{
	tern_op *op = r->op;
	if (r->pulling)
		list_remove(&r->puller);
	if (r->lent != TERN_ADDR_NONE)
		region_unlend(mem_of(m->e->t), r->lent);
	r->got.error = error;
	if (r->env)
		*r->env = r->got;
	recv_remove(m, r);
	op_end(m->e, op, error);
}

static __attribute__((noinline)) int recv_refuse(struct msg *m, struct receiving *r)
{
	int error = error_set(
		-EMSGSIZE,
		"message %#llx from rank %u has %zu bytes, the receive that it met %s%zu: "
		"nothing was written",
		(unsigned long long)r->got.id, r->got.src, r->got.len,
		r->flags & TERN_RECV_UPTO ? "room for " : "", r->layout.total);
	recv_over(m, r, error);
	return error;
}

static inline bool recv_fits(const struct receiving *r, size_t len)
{
	return len == r->layout.total || (len < r->layout.total && r->flags & TERN_RECV_UPTO);
}

inline int recv_accept(struct msg *m, struct receiving *r, uint32_t src, tern_id id, size_t len)
{
	r->state = TERN_STATE_IN_PROGRESS;
	r->got = (tern_envelope){ .src = src, .id = id, .len = len };
	r->due = len;
	return recv_fits(r, len) ? 0 : recv_refuse(m, r);
}

int recv_take(struct msg *m, struct receiving *r, uint32_t src, tern_id id, const char *bytes,
	      size_t len)
{
	int rc = recv_accept(m, r, src, id, len);
	if (rc)
		return rc;
	layout_fill(&r->layout, bytes, len);
	recv_over(m, r, 0);
	return 0;
}

/* -- Starting ---------------------------------------------------------------------------------- */

/* What a receive was asked for. */
struct recv_args {
	uint32_t src;
	tern_id id, mask;
	unsigned flags;
	struct layout layout;
	tern_envelope *env;
	tern_op *op;
};

/* 1: there is nothing to receive, from nobody. */
static int recv_check(struct msg *m, const struct recv_args *w)
{
	/* `reach` says that this is the program. */
	if (TERN_LIKELY(w->src < m->e->t->reach && w->flags == TERN_RECV_UPTO && !m->e->main))
		return 0;
	int rc = rules_rank(m->e, "a receive");
	if (!rc)
		rc = rules_program(m->e, "a receive");
	if (!rc && w->src != TERN_RANK_ANY && w->src != TERN_RANK_NONE)
		rc = rules_destination(m->e, w->src);
	if (!rc && w->flags & ~(unsigned)TERN_RECV_UPTO)
		rc = error_set(-EINVAL, "a receive was given the flags %#x, which it does not know",
			       w->flags);
	return rc ? rc : w->src == TERN_RANK_NONE;
}

static int recv_new(struct msg *m, const struct recv_args *w, struct receiving **out)
{
	struct receiving *r = record_take(&m->recvs);
	if (!r)
		return msg_refuse(m, &m->recvs, "receive");
	r->node = (struct node){ .rank = w->src, .id = w->id };
	r->mask = w->mask;
	r->masked = w->mask != MSG_ID_EXACT;
	r->wild = r->masked || w->src == TERN_RANK_ANY;
	r->flags = (uint8_t)w->flags;
	r->layout = w->layout;
	r->env = w->env;
	r->op = w->op;
	r->seq = ++m->seq;
	r->state = TERN_STATE_IN_USE;
	int rc = layout_keep(&r->layout, &m->copies);
	if (!rc && r->masked)
		list_append(&m->masked, &r->node);
	else if (!rc && table_add(&m->recv_table, &r->node))
		rc = error_set(-ENOMEM, "starting a receive: no memory for the table");
	if (rc) {
		layout_release(&r->layout, &m->copies);
		record_give(&m->recvs, r);
	}
	m->wild += !rc && r->wild;
	*out = r;
	return rc;
}

/*
 * Taking what has come may have to tell its sender so, for which there must be room, or the right
 * to wait for it.
 */
static int recv_can_tell(struct msg *m, const struct arrival *a)
{
	struct tern_lane *lane = &m->e->t->lane[a->src];
	if (!held(m->e) || (lane->base && lane_ready(lane)))
		return 0;
	return error_set(-EAGAIN, "the ring to rank %u is full, and under a hold nothing is served",
			 a->src);
}

/* Whether whom it waits for has left already. */
static bool recv_is_hopeless(struct msg *m, const struct recv_args *w)
{
	if (w->src == TERN_RANK_ANY)
		return m->e->t->size > 1 && lost_count(m->e) + 1 >= m->e->t->size;
	return m->e->site.peer[w->src].lost;
}

static int recv_nothing(struct msg *m, const struct recv_args *w)
{
	if (w->env)
		*w->env = (tern_envelope){ .src = TERN_RANK_NONE, .id = w->id };
	op_over(m->e, w->op);
	return 0;
}

static int recv_begin(struct msg *m, struct recv_args *w)
{
	struct receiving *r = NULL;
	int rc = recv_check(m, w);
	struct arrival *a = rc ? NULL : arrival_find(m, w->src, w->id, w->mask);
	if (a)
		rc = recv_can_tell(m, a);
	w->layout.temporary &= !a || !a->whole; /* what is here is copied in this call */
	if (!rc)
		rc = recv_new(m, w, &r);
	if (rc)
		return rc < 0 ? rc : recv_nothing(m, w);
	w->op->pending++;
	if (a) /* no earlier receive could take it, or it would have */
		arrival_take(m, a, r);
	if (recv_is_hopeless(m, w)) {
		m->lost = true; /* the next poll ends it, if it has not got anything */
		msg_busy(m);
	}
	return 0;
}

/* The sentence of an error that was found while another thread had the endpoint. */
static int recv_say(struct msg *m, uint32_t src, int error)
{
	if ((error != -EOWNERDEAD && error != -ESHUTDOWN) || src >= m->e->t->size)
		return error;
	struct net *net = m->e->site.peer[src].net;
	net->ops->check(net, src);
	return error;
}

/* Why nothing will come: a handler has left a hold, or a rank has left. */
static int recv_hopeless(struct endpoint *e, struct wait *w)
{
	return held(e) ? rules_wait(e, "tern_recv()") : wait_blame(e, w);
}

/* A receive whose data flow goes on: their sender is alive, or ends it. */
static int recv_stop(struct endpoint *e, struct wait *w)
{
	if (!recv_hopeless(e, w) || tern_op_cancel(e->t, w->arg))
		return 0;
	return recv_hopeless(e, w); /* the sentence, again */
}

/*
 * A step of this wait has found something in the inlet that the message comes by: if it is that,
 * short, and its sender is told nothing, it is taken where it lies, without a poll and a handler.
 */
static bool recv_taken(struct endpoint *e, void *arg)
{
	const tern_op *op = arg;
	const struct wait *w = e->waiting.recv_only;
	if (!w || w->arg != op || !layer_may_take(e->t) || held(e))
		return !op->pending;
	struct msg *m = msg_of(e->t);
	struct tern_inlet *in = w->takes;
	const tern_msg *msg = inlet_at(in);
	uint32_t src = inlet_source(in);
	if (!layer_is(msg, in->expect ^ layer_bits(MSG_WORDS, TERN_LINE_WORDS)) || !in->accept)
		return false;
	size_t len = msg->word[1]; /* and neither flags nor a name */
	if (len > WORDS_MOST || tell_due(m, src))
		return false;
	struct receiving *r = recv_match(m, src, msg->word[0], TERN_STATE_IN_USE);
	if (!r || r->op != op || !recv_fits(r, len))
		return false;
	m->peer[src].owed++;
	e->site.peek = in->next;
	inlet_step(in, in->cursor, 0, (int)e->site.fetch);
	poll_note(e, in, 1);
	recv_take(m, r, src, msg->word[0], (const char *)&msg->word[2], len);
	return true;
}

/* Waits until it is complete. */
static int recv_through(struct msg *m, struct recv_args *w)
{
	tern_op own = TERN_OP;
	struct wait wait = msg_wait("tern_recv", "from", w->src, w->id);
	wait.stop = recv_stop;
	wait.recv_only = true;
	if (w->src < m->e->t->size && !m->e->site.asks) /* or the poll also sends for a network */
		wait.takes = &m->e->site.peer[w->src].requests;
	w->op = &own;
	int rc = held(m->e) ? rules_wait(m->e, "tern_recv()") : 0;
	if (!rc)
		rc = recv_begin(m, w);
	if (!rc)
		rc = wait_until(m->e, recv_taken, &own, &wait);
	return rc ? rc : recv_say(m, w->src, own.error);
}

/*
 * The bits that must agree. No mask leads from the program's ids to those of a team, from these to
 * others, or to another team.
 */
static tern_id match_mask(const tern_match *match)
{
	tern_id fixed = match->id & TERN_ID_TEAM ? ~(tern_id)UINT32_MAX : TERN_ID_TEAM;
	return ~match->any | fixed;
}

static struct recv_args recv_args_of(const tern_match *match, tern_envelope *env, tern_op *op)
{
	return (struct recv_args){ .src = match->rank,
				   .id = match->id,
				   .mask = match_mask(match),
				   .flags = match->flags,
				   .env = env,
				   .op = op };
}

/* With the program's handle, or else until it is complete. */
static int recv_start(struct msg *m, struct recv_args *w)
{
	return w->op ? recv_begin(m, w) : recv_through(m, w);
}

int tern_recv_start(tern *t, const tern_match *match, void *data, size_t cap, tern_envelope *env,
		    tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct recv_args w = recv_args_of(match, env, op);
	w.flags |= TERN_RECV_UPTO;
	w.layout = layout_block(data, cap);
	return recv_start(msg_of(t), &w);
}

int tern_recv_parts_start(tern *t, const tern_match *match, const tern_part *parts, size_t n,
			  tern_envelope *env, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct recv_args w = recv_args_of(match, env, op);
	int rc = layout_parts(&w.layout, parts, n, op != NULL);
	return rc ? rc : recv_start(msg_of(t), &w);
}

int tern_recv(tern *t, uint32_t src, tern_id id, void *data, size_t cap, tern_envelope *env)
{
	INSIDE struct scope scope = scope_open(t);
	struct recv_args w = { src, id,  MSG_ID_EXACT, TERN_RECV_UPTO, layout_block(data, cap),
			       env, NULL };
	return recv_through(msg_of(t), &w);
}

/* -- Taking back, and probes ------------------------------------------------------------------- */

static int recv_take_back(struct msg *m, struct receiving *r)
{
	if (r->state != TERN_STATE_IN_USE)
		return error_set(-EALREADY, "the receive of message %#llx has been matched already",
				 (unsigned long long)r->node.id);
	recv_over(m, r,
		  error_set(-ECANCELED, "the receive of message %#llx was taken back",
			    (unsigned long long)r->node.id));
	return 0;
}

int recv_cancel_of(struct msg *m, const tern_op *op, unsigned *found)
{
	int rc = 0;
	for (struct receiving *r = NULL; (r = record_next(&m->recvs, r));) {
		if (r->op != op)
			continue;
		++*found;
		int failed = recv_take_back(m, r);
		rc = failed ? failed : rc;
	}
	return rc;
}

static int probe_check(struct msg *m, uint32_t src)
{
	int rc = rules_rank(m->e, "a probe");
	return rc || src == TERN_RANK_ANY ? rc : rules_destination(m->e, src);
}

struct probe {
	struct msg *m;
	const tern_match *match;
};

static bool probe_found(struct endpoint *e, void *arg)
{
	const struct probe *p = arg;
	(void)e;
	return arrival_find(p->m, p->match->rank, p->match->id, match_mask(p->match)) != NULL;
}

static int probe_stop(struct endpoint *e, struct wait *w)
{
	const struct probe *p = w->arg;
	int rc = wait_blame(e, w);
	uint32_t src = p->match->rank;
	return rc || src == TERN_RANK_ANY ? rc : msg_lost_error(p->m, src);
}

static int probe_wait(struct msg *m, const tern_match *match)
{
	struct probe p = { m, match };
	struct wait w = msg_wait("tern_probe", "from", match->rank, match->id);
	w.rule = "tern_probe() with TERN_PROBE_WAIT";
	w.stop = probe_stop;
	int rc = rules_wait(m->e, w.rule);
	return rc ? rc : wait_until(m->e, probe_found, &p, &w);
}

int tern_probe(tern *t, const tern_match *match, tern_envelope *env)
{
	INSIDE struct scope scope = scope_given(t);
	int rc = probe_check(msg_of(t), match->rank);
	if (!rc)
		rc = match->flags & TERN_PROBE_WAIT ? probe_wait(msg_of(t), match) : tern_poll(t);
	if (rc < 0)
		return rc;
	struct arrival *a = arrival_find(msg_of(t), match->rank, match->id, match_mask(match));
	if (a && env)
		*env = (tern_envelope){ .src = a->src, .id = a->key.id, .len = a->len };
	return a != NULL;
}
