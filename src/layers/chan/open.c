/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening: the sending side makes the ring and offers it; the other side keeps the offer until its
 * program asks for it. The offer is answered at once, so opening the sending end waits for the
 * other rank's polls and not for its program.
 *
 * To more than PIPE_READERS ranks the way is a tree. Some of the ranks that read from a ring are
 * also relays, with a second reader there and a ring of their own for the ranks below them. The one
 * that opens the channel asks each relay for its ring, level by level, and then offers every rank
 * the ring it belongs to.
 *
 * Everything in a message is checked where it arrives: an address is one of a heap and aligned, a
 * reader is one that a ring has.
 *
 * Whether a rank maps a ring, or has a mirror of it, is for that rank to see: it is told where the
 * ring is and what it is called.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "chan/chan.h"
#include "core/wait.h"
#include "mem/mem.h"

/* -- Asking, and waiting for the answers ---------------------------------------------------- */

/* Something asked of a rank. */
struct ask {
	uint32_t rank;
	bool sent, answered;
	struct ring ring; /* where it is to read */
	int code;         /* of the answer; 0 is good */
	struct ring made; /* by a relay */
};

struct opening {
	struct chans *s;
	struct tern_chan *c;
	uint64_t ticket;
	struct opening *next;
	unsigned n;
	struct ask *target; /* one for each rank of the list: the offer to be made */
	struct ask relay;   /* the relay that is being asked */
};

enum { ASK_RELAY = UINT32_MAX }; /* instead of the number of a target */

static struct ask *opening_ask(struct opening *o, uint64_t index)
{
	return index == ASK_RELAY ? &o->relay : index < o->n ? &o->target[index] : NULL;
}

static void on_offer_answer(tern *t, const tern_msg *m)
{
	struct opening *o = chans_of(t)->openings;
	while (o && o->ticket != tern_msg_word(m, 0))
		o = o->next;
	struct ask *a = o ? opening_ask(o, tern_msg_word(m, 1)) : NULL;
	if (!a || !a->sent || a->answered || a->rank != tern_msg_src(m))
		return; /* nobody wants it any more */
	a->answered = true;
	a->code = layer_error(tern_msg_word(m, 2));
	a->made = (struct ring){ tern_msg_word(m, 3), tern_msg_word(m, 4), 0 };
	if (!a->code && tern_addr_rank(a->ring.pipe) == t->rank)
		out_expect(o->c, (unsigned)a->ring.reader, tern_msg_word(m, 5));
}

/* To an offer, or to what a relay was asked for: then `made` is its ring. */
static void answer(tern *t, const tern_msg *m, int code, const struct offer *o,
		   const struct ring *made)
{
	uint64_t mirror = !code && o->mirror ? mirror_number(o->mirror) : 0;
	uint64_t words[] = { tern_msg_word(m, 0), tern_msg_word(m, 1), (uint64_t)code,
			     made->pipe,          made->serial,        mirror };
	layer_reply(t->own, CHAN_ANSWER, NULL, 0, 6, words);
}

/* A rank that has left answers with its fate, once what it said before is handled. */
static bool ask_over(struct chans *s, struct ask *a)
{
	if (a->sent && !a->answered && layer_lost(s->e, a->rank)) {
		a->answered = true;
		a->code = chan_check(s, a->rank);
	}
	return !a->sent || a->answered;
}

static bool opening_over(struct endpoint *e, void *arg)
{
	struct opening *o = arg;
	(void)e;
	bool over = ask_over(o->s, &o->relay);
	for (unsigned i = 0; i < o->n; i++)
		over &= ask_over(o->s, &o->target[i]);
	return over;
}

static int opening_wait(struct opening *o)
{
	struct wait w = { .call = "opening a channel", .rule = "opening a channel" };
	return chan_until(o->s->e, opening_over, o, &w);
}

static int ask_refused(const struct opening *o, const struct ask *a)
{
	const char *why = a->code == -ENOBUFS ? "has too many offers that its program has not taken"
			  : a->code == -ENOMEM
				  ? "has no memory for it: raise TERN_HEAP or TERN_MEMORY"
			  : a->code == -ESHUTDOWN    ? "has left"
			  : a->code == -EOWNERDEAD   ? "has died"
			  : a->code == -EHOSTUNREACH ? "does not answer"
						     : "refused it";
	return error_set(a->code, "channel %llu could not be opened: rank %u %s",
			 (unsigned long long)o->c->name, a->rank, why);
}

static int ask_send(struct opening *o, struct ask *a, uint64_t index, unsigned id, const void *data,
		    size_t len)
{
	uint64_t words[] = { o->ticket,    index,          o->c->name,
			     a->ring.pipe, a->ring.serial, a->ring.reader };
	a->sent = true; /* before it is: the request may serve its own answer */
	int rc = layer_request(o->s->e, a->rank, id, data, len, 6, words);
	if (!rc)
		return 0;
	a->answered = true;
	a->code = rc;
	return rc == -EOWNERDEAD || rc == -ESHUTDOWN ? ask_refused(o, a) : rc;
}

/* -- The tree --------------------------------------------------------------------------------- */

/* Ranks that are reached through one ring: the first ones read from it, others through relays. */
struct branch {
	struct ring ring;
	const uint32_t *rank;
	unsigned n;
};

/* Each relay takes a reader beside its own, and brings PIPE_READERS. */
static unsigned branch_relays(unsigned n)
{
	unsigned relays =
		n > PIPE_READERS ? (n - PIPE_READERS + PIPE_READERS - 2) / (PIPE_READERS - 1) : 0;
	return relays < PIPE_READERS / 2 ? relays : PIPE_READERS / 2;
}

static unsigned branch_direct(unsigned n)
{
	return branch_relays(n) ? PIPE_READERS - branch_relays(n) : n;
}

/* Who the ring's readers are, in order; how many. */
static unsigned branch_readers(const uint32_t *rank, unsigned n, uint32_t reader[PIPE_READERS])
{
	unsigned direct = branch_direct(n), relays = branch_relays(n);
	for (unsigned i = 0; i < direct + relays; i++)
		reader[i] = rank[i < direct ? i : i - direct];
	return direct + relays;
}

/* The part of a branch that lies behind one of its relays. */
static struct branch branch_behind(const struct branch *b, unsigned relay)
{
	unsigned relays = branch_relays(b->n), direct = branch_direct(b->n), rest = b->n - direct;
	unsigned first = rest * relay / relays, end = rest * (relay + 1) / relays;
	return (struct branch){ .rank = b->rank + direct + first, .n = end - first };
}

static struct ask branch_ask(const struct branch *b, unsigned i, unsigned reader)
{
	return (struct ask){ .rank = b->rank[i], .ring = { b->ring.pipe, b->ring.serial, reader } };
}

/* Asks a relay for its ring, which goes to `behind`. */
static int relay_ask(struct opening *o, const struct branch *b, unsigned relay,
		     struct branch *behind)
{
	uint32_t reader[PIPE_READERS];
	unsigned n = branch_readers(behind->rank, behind->n, reader);
	o->relay = branch_ask(b, relay, branch_direct(b->n) + relay);
	int rc = ask_send(o, &o->relay, ASK_RELAY, CHAN_RELAY, reader, n * sizeof *reader);
	if (!rc)
		rc = opening_wait(o);
	if (!rc && o->relay.code)
		rc = ask_refused(o, &o->relay);
	behind->ring = o->relay.made;
	return rc;
}

/* Finds out which ring each rank belongs to. Levels are few: each has eight times as many. */
static int branch_grow(struct opening *o, const struct branch *b)
{
	int rc = 0;
	for (unsigned i = 0; i < branch_direct(b->n); i++)
		o->target[o->n++] = branch_ask(b, i, i);
	for (unsigned i = 0; i < branch_relays(b->n) && !rc; i++) {
		struct branch behind = branch_behind(b, i);
		rc = relay_ask(o, b, i, &behind);
		if (!rc)
			rc = branch_grow(o, &behind);
	}
	return rc;
}

static unsigned branch_living(const struct chans *s, const struct branch *b)
{
	unsigned living = 0;
	for (unsigned i = 0; i < b->n; i++)
		living += !s->e->site.peer[b->rank[i]].lost;
	return living;
}

static unsigned branch_cut(const struct chans *s, const struct branch *b, uint32_t relay)
{
	for (unsigned i = 0; i < branch_relays(b->n); i++) {
		struct branch behind = branch_behind(b, i);
		unsigned cut = b->rank[i] == relay ? branch_living(s, &behind)
						   : branch_cut(s, &behind, relay);
		if (cut)
			return cut;
	}
	return 0;
}

unsigned open_behind(const struct tern_chan *c, uint32_t relay)
{
	struct branch b = { .rank = c->rank, .n = c->ranks };
	return branch_cut(c->chans, &b, relay);
}

/* -- Offering ---------------------------------------------------------------------------------- */

static int offer_all(struct opening *o)
{
	int rc = 0;
	for (unsigned i = 0; i < o->n && !rc; i++)
		rc = ask_send(o, &o->target[i], i, CHAN_OFFER, NULL, 0);
	int waited = opening_wait(o); /* for those that were sent, whatever became of the others */
	rc = rc ? rc : waited;
	for (unsigned i = 0; i < o->n && !rc; i++)
		if (o->target[i].code)
			rc = ask_refused(o, &o->target[i]);
	return rc;
}

/* It has failed half-way. Whoever has taken the offer already finds the channel closed. */
static void offer_undo(struct opening *o)
{
	for (unsigned i = 0; i < o->n; i++) {
		const struct ask *a = &o->target[i];
		uint64_t words[] = { a->ring.pipe, a->ring.serial, a->ring.reader };
		if (a->sent && !a->code)
			layer_request(o->s->e, a->rank, CHAN_WITHDRAW, NULL, 0, 3, words);
	}
}

static int offer_try(struct chans *s, struct tern_chan *c)
{
	struct opening o = { .s = s, .c = c, .ticket = ++s->ticket, .next = s->openings };
	struct branch b = { { mem_addr(mem_of(s->e->t), c->pipe), c->serial, 0 },
			    c->rank,
			    c->ranks };
	o.target = memory_new(c->ranks, sizeof *o.target);
	if (!o.target)
		return error_set(-ENOMEM, "opening channel %llu to %u ranks: no memory",
				 (unsigned long long)c->name, c->ranks);
	s->openings = &o;
	int rc = branch_grow(&o, &b);
	if (!rc)
		rc = offer_all(&o);
	if (rc)
		offer_undo(&o);
	c->pinned =
		!opening_over(s->e, &o); /* a handler has left a hold, and answers are missing */
	struct opening **p = &s->openings;
	while (*p != &o)
		p = &(*p)->next;
	*p = o.next;
	memory_free(o.target);
	return rc;
}

/* -- The sending end --------------------------------------------------------------------------- */

static bool open_to(const struct chans *s, uint32_t rank, uint64_t name)
{
	for (const struct tern_chan *c = s->first; c; c = c->next)
		for (unsigned i = 0; !c->closed && c->name == name && i < c->ranks; i++)
			if (c->rank[i] == rank)
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
	uint32_t reader[PIPE_READERS];
	struct tern_chan *c;
	int rc = rules_rank(t->own, "opening a channel");
	if (!rc)
		rc = rules_wait(t->own, "opening a channel");
	if (!rc)
		rc = list_check(s, ranks, n, name);
	if (rc)
		return rc;
	chans_sweep(s);
	rc = out_open(s, name, reader, branch_readers(ranks, n, reader), &c);
	if (rc)
		return rc;
	c->rank = memory_new(1, n * sizeof *ranks);
	c->ranks = c->rank ? n : 0;
	if (c->rank)
		memcpy(c->rank, ranks, n * sizeof *ranks);
	*out = c; /* before a handler can run, which may know from the other side that the channel
		     is open */
	rc = c->rank ? offer_try(s, c)
		     : error_set(-ENOMEM, "opening a channel to %u ranks: no memory", n);
	if (!rc)
		return 0;
	*out = NULL;
	out_close(c, PIPE_CLOSED, t->rank); /* swept when whoever has taken it is done */
	return rc;
}

int tern_chan_to(tern *t, uint32_t rank, uint64_t name, tern_chan **c)
{
	INSIDE struct scope scope = scope_given(t);
	return tern_chan_to_list(t, &rank, 1, name, c);
}

/* -- The receiving end ------------------------------------------------------------------------- */

struct pipe *pipe_reach(struct chans *s, tern_addr a)
{
	char *p = heap_reach(s->e->layer[LAYER_MEM], a, sizeof(struct pipe));
	return p && (uintptr_t)p % TERN_CHAN_LEAF == 0 ? (struct pipe *)(void *)p : NULL;
}

int offer_reach(struct chans *s, const struct ring *ring, struct offer *o)
{
	o->ring = *ring;
	o->feeder = tern_addr_rank(ring->pipe);
	if (o->feeder >= s->e->t->size || ring->reader >= PIPE_READERS)
		return -EBADMSG;
	if (layer_maps(s->e, o->feeder)) {
		o->pipe = pipe_reach(s, ring->pipe);
		o->reader = o->pipe ? &o->pipe->reader[ring->reader] : NULL;
		return o->pipe ? 0 : -EBADMSG;
	}
	o->mirror = mirror_open(s, o->feeder, ring, o->name);
	o->pipe = o->mirror ? mirror_pipe(o->mirror) : NULL;
	o->reader = o->mirror ? &o->pipe->reader[0] : NULL;
	return o->mirror ? 0 : -ENOMEM;
}

void offer_leave(struct offer *o, enum reader_state state)
{
	reader_set(o->reader, state);
	if (o->mirror)
		mirror_tell(o->mirror);
}

static unsigned offers_of(const struct chans *s, uint32_t rank)
{
	unsigned n = 0;
	for (unsigned i = 0; i < s->offers; i++)
		n += s->offer[i].from == rank;
	return n;
}

/* How many places one rank may take, so that it cannot shut the others out. */
static unsigned offers_share(const struct chans *s)
{
	unsigned others = s->e->t->size > 1 ? s->e->t->size - 1 : 1;
	return TERN_CHANS_MAX / others ? TERN_CHANS_MAX / others : 1;
}

static int offer_keep(struct chans *s, const struct ring *ring, struct offer *o)
{
	if (!s->offer)
		s->offer = memory_new(TERN_CHANS_MAX, sizeof *s->offer);
	if (!s->offer)
		return -ENOMEM;
	if (s->offers == TERN_CHANS_MAX || offers_of(s, o->from) >= offers_share(s))
		return -ENOBUFS;
	int code = offer_reach(s, ring, o);
	if (code)
		return code;
	s->offer[s->offers++] = *o;
	reader_set(o->reader, READER_OPEN);
	return 0;
}

/* An offer, or what a relay is to read from. */
static struct ring ring_of(const tern_msg *m)
{
	return (struct ring){ tern_msg_word(m, 3), tern_msg_word(m, 4), tern_msg_word(m, 5) };
}

static void awaits_serve(struct chans *s);

static void on_offer(tern *t, const tern_msg *m)
{
	static const struct ring none = { .pipe = TERN_ADDR_NONE };
	const struct ring ring = ring_of(m);
	struct offer o = { .name = tern_msg_word(m, 2), .from = tern_msg_src(m) };
	int code = offer_keep(chans_of(t), &ring, &o);
	answer(t, m, code, &o, &none);
	awaits_serve(chans_of(t));
}

static void offer_drop(struct chans *s, struct offer *o)
{
	s->offers--;
	memmove(o, o + 1, (size_t)(&s->offer[s->offers] - o) * sizeof *o);
}

static void on_offer_withdrawn(tern *t, const tern_msg *m)
{
	struct chans *s = chans_of(t);
	for (unsigned i = 0; i < s->offers; i++) {
		struct offer *o = &s->offer[i];
		if (o->from == tern_msg_src(m) && o->ring.pipe == tern_msg_word(m, 0) &&
		    o->ring.serial == tern_msg_word(m, 1) &&
		    o->ring.reader == tern_msg_word(m, 2)) {
			offer_leave(o, READER_CLOSED);
			offer_drop(s, o);
			return;
		}
	}
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
	bool over; /* it has been opened, or there was no memory */
	int rc;
	struct await *next;
};

static struct offer *offer_find(const struct await *w)
{
	for (unsigned i = 0; i < w->s->offers; i++)
		if (w->s->offer[i].from == w->rank && w->s->offer[i].name == w->name)
			return &w->s->offer[i];
	return NULL;
}

static void await_serve(struct await *w)
{
	struct offer *o = w->over ? NULL : offer_find(w);
	if (!o)
		return;
	struct tern_chan *made = in_open(w->s, o);
	w->over = true;
	w->rc = made ? 0 : -ENOMEM;
	if (!made)
		return;
	offer_drop(w->s, o);
	*w->out = made;
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
		return w->over ? w->rc : rc;
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

void open_close(struct chans *s)
{
	for (unsigned i = 0; i < s->offers; i++)
		offer_leave(&s->offer[i], READER_LEFT);
	memory_free(s->offer);
}

/* -- A relay's part ---------------------------------------------------------------------------- */

static int relay_check(struct chans *s, const uint32_t *rank, size_t len)
{
	if (!rank || !len || len % sizeof *rank || len > PIPE_READERS * sizeof *rank)
		return -EBADMSG;
	for (size_t i = 0; i < len / sizeof *rank; i++)
		if (rank[i] >= s->e->t->size)
			return -EBADMSG;
	return 0;
}

static int relay_make(struct chans *s, struct offer *o, const uint32_t *rank, unsigned n,
		      struct ring *made)
{
	struct tern_chan *out;
	int code = relay_open(s, o, rank, n, &out);
	if (!code)
		*made = (struct ring){ mem_addr(mem_of(s->e->t), out->pipe), out->serial, 0 };
	else if (o->mirror)
		mirror_drop(o->mirror);
	return code;
}

static void on_relay_request(tern *t, const tern_msg *m)
{
	struct chans *s = chans_of(t);
	size_t len;
	const uint32_t *rank = tern_msg_data(m, &len);
	const struct ring ring = ring_of(m);
	struct offer o = { .name = tern_msg_word(m, 2), .from = tern_msg_src(m) };
	struct ring made = { .pipe = TERN_ADDR_NONE };
	int code = relay_check(s, rank, len);
	if (!code)
		code = offer_reach(s, &ring, &o);
	if (!code)
		code = relay_make(s, &o, rank, (unsigned)(len / sizeof *rank), &made);
	answer(t, m, code, &o, &made);
}

void open_register(struct endpoint *e)
{
	layer_on(e, CHAN_OFFER, on_offer);
	layer_on(e, CHAN_WITHDRAW, on_offer_withdrawn);
	layer_on(e, CHAN_RELAY, on_relay_request);
	layer_on(e, CHAN_ANSWER, on_offer_answer);
}
