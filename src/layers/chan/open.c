/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening: the sending side makes the ring and offers it; the other side makes the receiving end at
 * once and answers, and keeps it until its program asks for it. So opening the sending end waits
 * for the other rank's polls and not for its program.
 * Everything in a message is checked where it arrives: an address is one of a heap and aligned, a
 * reader is one that a ring has.
 *
 * Whether a rank maps a ring, or has a mirror of it, is for that rank to see: it is told where the
 * ring is and what it is called.
 */
#include <errno.h>

#include "base/error.h"
#include "chan/chan.h"
#include "core/wait.h"
#include "mem/mem.h"

/* -- Offering, and waiting for the answers ----------------------------------------------------- */

void on_offer_answer(tern *t, const tern_msg *m)
{
	struct tern_chan *c = chan_named(chans_of(t), tern_msg_word(m, 0));
	uint64_t i = tern_msg_word(m, 1);
	struct listener *l = c && i < c->listeners ? &c->listener[i] : NULL;
	if (!l || l->offer != OFFER_SENT || l->rank != tern_msg_src(m))
		return; /* nobody wants it any more */
	l->offer = layer_error(tern_msg_word(m, 2));
	if (!l->offer)
		out_expect(c, (unsigned)i, tern_msg_word(m, 3));
}

/* A rank that has left answers with its fate, once what it said before is handled. */
static bool offers_over(struct endpoint *e, void *arg)
{
	struct tern_chan *c = arg;
	bool over = true;
	for (unsigned i = 0; i < c->listeners; i++) {
		struct listener *l = &c->listener[i];
		if (l->offer == OFFER_SENT && layer_lost(e, l->rank))
			l->offer = chan_check(c->chans, l->rank);
		over &= l->offer != OFFER_SENT;
	}
	return over;
}

static int offer_refused(const struct tern_chan *c, const struct listener *l)
{
	const char *why =
		l->offer == -ENOBUFS        ? "has too many offers that its program has not taken"
		: l->offer == -ENOMEM       ? "has no memory for it: raise TERN_HEAP or TERN_MEMORY"
		: l->offer == -ESHUTDOWN    ? "has left"
		: l->offer == -EOWNERDEAD   ? "has died"
		: l->offer == -EHOSTUNREACH ? "does not answer"
					    : "refused it";
	return error_set(l->offer, "channel %llu could not be opened: rank %u %s",
			 (unsigned long long)c->name, l->rank, why);
}

static int offer_send(struct tern_chan *c, unsigned i)
{
	struct endpoint *e = c->chans->e;
	struct listener *l = &c->listener[i];
	uint64_t words[] = { c->serial, i, c->name, mem_addr(mem_of(e->t), c->pipe) };
	l->offer = OFFER_SENT; /* before it is: the request may serve its own answer */
	int rc = layer_request(e, l->rank, CHAN_OFFER, NULL, 0, 4, words);
	if (!rc)
		return 0;
	l->offer = rc;
	return rc == -EOWNERDEAD || rc == -ESHUTDOWN ? offer_refused(c, l) : rc;
}

static int offer_all(struct tern_chan *c)
{
	struct wait w = { .call = "opening a channel", .rule = "opening a channel" };
	int rc = 0;
	for (unsigned i = 0; i < c->listeners && !rc; i++)
		rc = offer_send(c, i);
	/* For those that were sent, whatever became of the others. */
	int waited = chan_until(c->chans->e, offers_over, c, &w);
	rc = rc ? rc : waited;
	for (unsigned i = 0; i < c->listeners && !rc; i++)
		if (c->listener[i].offer)
			rc = offer_refused(c, &c->listener[i]);
	c->pinned = !offers_over(c->chans->e, c); /* a handler has left a hold */
	return rc;
}

/* It has failed half-way. Whoever has taken the offer already finds the channel closed. */
static void offer_undo(struct tern_chan *c)
{
	for (unsigned i = 0; i < c->listeners; i++) {
		const struct listener *l = &c->listener[i];
		if (l->offer >= 0)
			layer_request(c->chans->e, l->rank, CHAN_WITHDRAW, NULL, 0, 1, &c->serial);
	}
}

/* -- The sending end --------------------------------------------------------------------------- */

static bool open_to(const struct chans *s, uint32_t rank, uint64_t name)
{
	for (const struct tern_chan *c = s->first; c; c = c->next)
		for (unsigned i = 0; !c->closed && !c->fixed && c->name == name && i < c->listeners;
		     i++)
			if (c->listener[i].rank == rank)
				return true;
	return false;
}

static int list_check(struct chans *s, const uint32_t *ranks, unsigned n, uint64_t name)
{
	int rc =
		n && n <= s->e->t->size
			? 0
			: error_set(-EINVAL, "a channel to %u ranks was asked for; this job has %u",
				    n, s->e->t->size);
	for (unsigned i = 0; i < n && !rc; i++) {
		rc = rules_destination(s->e, ranks[i]);
		if (!rc && open_to(s, ranks[i], name))
			rc = error_set(-EEXIST, "rank %u has channel %llu to rank %u open already",
				       s->e->t->rank, (unsigned long long)name, ranks[i]);
		for (unsigned k = 0; k < i && !rc; k++)
			if (ranks[k] == ranks[i])
				rc = error_set(-EINVAL,
					       "rank %u is twice in the list of channel %llu",
					       ranks[i], (unsigned long long)name);
	}
	return rc;
}

int tern_chan_to_list(tern *t, const uint32_t *ranks, unsigned n, uint64_t name, tern_chan **out)
{
	INSIDE struct scope scope = scope_given(t);
	struct chans *s = chans_of(t);
	struct tern_chan *c;
	int rc = rules_rank(t->own, "opening a channel");
	if (!rc)
		rc = rules_wait(t->own, "opening a channel");
	if (!rc)
		rc = list_check(s, ranks, n, name);
	if (rc)
		return rc;
	rc = out_open(s, name, ranks, n, &c);
	if (rc)
		return rc;
	*out = c; /* before a handler can run, which may know from the other side that the channel
		     is open */
	rc = offer_all(c);
	if (!rc)
		return 0;
	offer_undo(c);
	*out = NULL;
	out_close(c, PIPE_CLOSED); /* swept when whoever has taken it is done */
	return rc;
}

int tern_chan_to(tern *t, uint32_t rank, uint64_t name, tern_chan **c)
{
	INSIDE struct scope scope = scope_given(t);
	return tern_chan_to_list(t, &rank, 1, name, c);
}

/* -- The receiving end ------------------------------------------------------------------------- */

/*
 * Whether there are too many offers that nobody has taken, or too many of one rank, so that it
 * cannot shut the others out.
 */
static bool offers_full(const struct chans *s, uint32_t from)
{
	unsigned others = s->e->t->size > 1 ? s->e->t->size - 1 : 1;
	unsigned share = TERN_CHANS_MAX / others ? TERN_CHANS_MAX / others : 1;
	unsigned all = 0, own = 0;
	for (const struct tern_chan *c = s->first; c; c = c->next) {
		all += c->offered;
		own += c->offered && c->from == from;
	}
	return all >= TERN_CHANS_MAX || own >= share;
}

static void awaits_serve(struct chans *s);

void on_offer(tern *t, const tern_msg *m)
{
	struct chans *s = chans_of(t);
	struct ring ring = { tern_msg_word(m, 3), tern_msg_word(m, 0), tern_msg_word(m, 1) };
	uint64_t words[] = { ring.serial, ring.reader, 0, 0 };
	uint32_t from = tern_msg_src(m);
	struct tern_chan *c = NULL;
	int code =
		offers_full(s, from) ? -ENOBUFS : in_open(s, from, tern_msg_word(m, 2), ring, &c);
	if (c) {
		c->offered = true;
		words[3] = c->mirror ? c->mirror->serial : 0;
	}
	words[2] = (uint64_t)code;
	layer_reply(t->own, CHAN_ANSWER, NULL, 0, 4, words);
	awaits_serve(s);
}

void on_offer_withdrawn(tern *t, const tern_msg *m)
{
	struct tern_chan *c = chans_of(t)->first;
	while (c &&
	       !(c->offered && c->from == tern_msg_src(m) && c->ring.serial == tern_msg_word(m, 0)))
		c = c->next;
	if (c)
		in_close(c, READER_CLOSED);
}

/*
 * A wait for an offer. What it waits for is opened, and written to *out, in the handler of the
 * offer: the next message may be one whose handler gets from the channel.
 */
struct await {
	struct chans *s;
	uint32_t rank;
	uint64_t name;
	tern_chan **out;
	bool over;
	struct await *next;
};

static void await_serve(struct await *w)
{
	struct tern_chan *oldest = NULL; /* the first in the list is the youngest */
	for (struct tern_chan *c = w->over ? NULL : w->s->first; c; c = c->next)
		if (c->offered && c->from == w->rank && c->name == w->name)
			oldest = c;
	if (!oldest)
		return;
	oldest->offered = false;
	w->over = true;
	*w->out = oldest;
}

static void awaits_serve(struct chans *s)
{
	for (struct await *w = s->awaits; w; w = w->next)
		await_serve(w);
}

static bool await_over(struct endpoint *e, void *arg)
{
	const struct await *w = arg;
	return w->over || layer_lost(e, w->rank);
}

static void await_leave(struct await *w)
{
	struct await **p = &w->s->awaits;
	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
}

static int offer_await(struct await *w)
{
	struct endpoint *e = w->s->e;
	struct wait wait = { .call = "tern_chan_from", .rule = "tern_chan_from()" };
	w->next = w->s->awaits;
	w->s->awaits = w;
	await_serve(w);
	int rc = chan_until(e, await_over, w, &wait);
	await_leave(w);
	if (rc || w->over)
		return w->over ? 0 : rc;
	rc = chan_check(w->s, w->rank);
	return error_set(rc, "channel %llu was waited for: rank %u has %s without opening it",
			 (unsigned long long)w->name, w->rank, chan_fate(rc));
}

int tern_chan_from(tern *t, uint32_t rank, uint64_t name, tern_chan **c)
{
	INSIDE struct scope scope = scope_given(t);
	struct chans *s = chans_of(t);
	struct await w = { .s = s, .rank = rank, .name = name, .out = c };
	if (!attach_is_mine(t->own))
		attach_first(t->own); /* another thread may be keeping an offer for it */
	int rc = rules_rank(t->own, "tern_chan_from()");
	if (!rc)
		rc = rules_destination(t->own, rank);
	return rc ? rc : offer_await(&w);
}
