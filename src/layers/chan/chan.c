/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself, and what both ends of a channel have in common. */
#include "chan/chan.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"

_Static_assert(sizeof(struct tern_chan) <= TERN_CHAN_LEAF - TERN_LINE,
	       "the spill has room behind it");

struct tern_chan *chan_new(struct chans *s, uint64_t name, unsigned listeners)
{
	struct tern_chan *c =
		memory_aligned(TERN_CHAN_LEAF, TERN_CHAN_LEAF + listeners * sizeof *c->listener);
	if (!c) {
		error_set(-ENOMEM, "opening channel %llu at rank %u: no memory",
			  (unsigned long long)name, s->e->t->rank);
		return NULL;
	}
	*c = (struct tern_chan){ .chans = s,
				 .name = name,
				 .next = s->first,
				 .listeners = listeners,
				 .listener = (struct listener *)((char *)c + TERN_CHAN_LEAF) };
	s->first = c;
	if (listeners) {
		struct tern_chan **named = &s->named[++s->serial % BUCKETS];
		c->sends = true;
		c->serial = s->serial;
		c->next_named = *named;
		*named = c;
	}
	return c;
}

struct tern_chan *chan_named(struct chans *s, uint64_t serial)
{
	struct tern_chan *c = s->named[serial % BUCKETS];
	while (c && c->serial != serial)
		c = c->next_named;
	return c;
}

void chan_free(struct tern_chan *c)
{
	struct tern_chan **p = &c->chans->first;
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	p = &c->chans->named[c->serial % BUCKETS];
	while (*p && *p != c)
		p = &(*p)->next_named;
	if (*p)
		*p = c->next_named;
	if (c->fills)
		memory_free(c->pipe);
	*c = (struct tern_chan){ .chans = (struct chans *)&misuse_state };
	memory_bury(c, true);
}

/* What stands for no channel has a spill, too: what is put there comes to the library at once. */
static _Alignas(TERN_CHAN_LEAF) union {
	struct tern_chan chan;
	char leaf[TERN_CHAN_LEAF];
} none = { .chan = { .chans = (struct chans *)&misuse_state } };

/* In a forked child it is an endpoint like any other. */
void chan_misused(tern_chan **c, const char *call)
{
	if (*c && (*c)->chans->e != &misuse_endpoint)
		return;
	misuse_of(call, *c ? "a channel that is closed" : "a channel that is NULL");
	*c = *c ? *c : &none.chan;
}

/* The memory goes when the last reader does: until then it may be reading. */
void chans_sweep(struct chans *s)
{
	for (struct tern_chan *c = s->first, *next; c; c = next) {
		next = c->next;
		if (!c->closed || c->pinned || c->fills || out_limit(c))
			continue;
		tern_free(s->e->t, c->memory);
		chan_free(c);
	}
}

int chan_check(struct chans *s, uint32_t rank)
{
	struct net *net = s->e->site.peer[rank].net;
	return net->ops->check(net, rank);
}

int chan_may_wait(struct endpoint *e, const char *what)
{
	return e->turn ? -EAGAIN : rules_wait(e, what);
}

int chan_until(struct endpoint *e, bool (*over)(struct endpoint *e, void *arg), void *arg,
	       struct wait *w)
{
	return e->turn && !over(e, arg) ? -EAGAIN : wait_until(e, over, arg, w);
}

static int chans_open(struct endpoint *e, void *state)
{
	struct chans *s = state;
	s->e = e;
	CHAN_MESSAGES(LAYER_ON)
	return 0;
}

/*
 * What is left open is told to the other side. The rings stay where they are until
 * every rank has left the session, so others may still get what was put.
 */
static void chans_close(void *state)
{
	struct chans *s = state;
	s->closing = true;
	for (struct tern_chan *c = s->first, *next; c; c = next) {
		next = c->next;
		if (!c->sends) {
			in_close(c, READER_LEFT);
			continue;
		}
		if (!c->closed)
			out_close(c, PIPE_LEFT);
		chan_free(c);
	}
}

/* -- Ranks that have left ------------------------------------------------------------------ */

static void chans_lost(void *state, uint32_t rank)
{
	struct chans *s = state;
	for (struct tern_chan *c = s->first; c; c = c->next) {
		c->lost |= !c->sends && c->from == rank;
		for (unsigned i = 0; i < c->listeners; i++)
			c->listener[i].lost |= c->listener[i].rank == rank;
	}
}

/* -- Turns ------------------------------------------------------------------------------------ */

static void chans_work(struct chans *s)
{
	layer_work(s->e, LAYER_CHAN, s->owes);
}

/* Under a hold: nothing is served meanwhile, and what has no room is sent another time. */
static bool chan_send(struct tern_chan *c)
{
	c->owes = false;
	return c->fills ? mirror_tell(c) : feed_send(c);
}

void chan_owes(struct tern_chan *c, bool now)
{
	struct chans *s = c->chans;
	if (s->closing)
		return;
	c->owes = true;
	if (now && !in_handler(s->e)) {
		library_hold(s->e);
		s->owes |= chan_send(c);
		library_release(s->e);
	} else {
		s->owes = true;
	}
	chans_work(s);
}

static unsigned chans_progress(void *state)
{
	struct chans *s = state;
	uint64_t before = s->moved;
	bool owes = false;
	library_hold(s->e);
	for (struct tern_chan *c = s->owes ? s->first : NULL, *next; c; c = next) {
		next = c->next;
		owes |= c->owes && chan_send(c);
	}
	library_release(s->e);
	s->owes = owes;
	chans_work(s);
	return (unsigned)(s->moved - before);
}

static bool chans_owe_nothing(struct endpoint *e, void *arg)
{
	struct chans *s = arg;
	(void)e;
	chans_progress(s);
	return !s->owes;
}

static int chans_stop(struct endpoint *e, struct wait *w)
{
	return wait_stalled(e, w, ((const struct chans *)w->arg)->moved);
}

/* What was put arrives, though its rank leaves: a mirror has room for all of it. */
static void chans_leave(void *state)
{
	struct chans *s = state;
	struct wait w = {
		.bounded = true, .call = "tern_close", .rule = "tern_close()", .stop = chans_stop
	};
	wait_until(s->e, chans_owe_nothing, s, &w);
}

LAYER_FITS(struct chans, CHAN_TELL, CHAN_HANDLERS_END);
const struct layer chan_layer = { .bytes = sizeof(struct chans),
				  .open = chans_open,
				  .close = chans_close,
				  .progress = chans_progress,
				  .lost = chans_lost,
				  .leave = chans_leave };

int tern_chan_close(tern_chan *c)
{
	INSIDE struct scope scope = chan_scope(&c, __func__);
	struct chans *s = c->chans;
	if (s->e->forked)
		return rules_forked(s->e);
	if (c->closed)
		return error_set(-EINVAL, "tern_chan_close() was given a channel that is closed");
	if (c->fixed)
		return error_set(
			-EPERM,
			"the internal buffer of rank %u cannot be closed: it goes with its "
			"endpoint",
			s->e->t->rank);
	if (c->sends)
		out_close(c, PIPE_CLOSED);
	else
		in_close(c, READER_CLOSED);
	chans_sweep(s);
	return 0;
}

struct tern_chan_place tern_chan_where_(tern_chan *c)
{
	INSIDE struct scope scope = chan_scope(&c, __func__);
	if (TERN_UNLIKELY(c->chans->e == &misuse_endpoint)) {
		/* A put writes there, a get finds nothing, and both come to the library. */
		atomic_store_explicit(&chan_spill(c)->count, -8, memory_order_relaxed);
		return (struct tern_chan_place){ chan_spill(c), -8 };
	}
	return (struct tern_chan_place){ c->line, c->at };
}

void tern_chan_stand_(tern_chan *c, struct tern_chan_line *line, intptr_t at)
{
	INSIDE struct scope scope = chan_scope(&c, __func__);
	c->line = line;
	c->at = at;
}

int tern_chan_trouble_(tern_chan *c)
{
	c = c ? c : &none.chan;
	INSIDE struct scope scope = scope_open(chan_home(c));
	int rc = c->trouble;
	c->trouble = 0;
	return rc;
}
