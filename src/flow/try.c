/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending without asking. A receiver takes what it has room for, and refuses the rest; it says how
 * many messages it has taken, since ever, and a packet says how many were sent before it, so what
 * follows something refused is refused too. The sender keeps its messages where they are, in its
 * ring and its blocks, until they are taken; to send them again is to go back to the first that was
 * not. Then it tries with one packet at a time until something is taken. Three strategies differ in
 * how the sender learns of it:
 *
 *  - drop (EMP): it does not; what is not taken for a while is sent again.
 *  - nack: the receiver says so at once, and the sender waits, twice as long each time.
 *  - return (Fast Messages): the packet comes back, and is sent again at once. Its bytes are not
 *    needed, since the sender has them; they go back because that is what this strategy costs, and
 *    is measured for.
 *
 * Under all three lies a timer, longer where refusals are said: what is neither taken nor refused
 * for a while is sent again, too. It may have been taken already; then its receiver says once more
 * how many it has taken. So nothing that is lost, in either direction, stops the two.
 *
 * A refusal concerns requests or replies, never both: a reply does not wait behind a request that
 * is refused.
 */
#include <string.h>

#include "flow/flow.h"

enum {
	BACKOFF_NS = 20000,
	BACKOFF_MOST = 8, /* doublings */
	PATIENCE_NS = 500000,
	PATIENCE_MOST = 6,
	SAID = 4, /* times as long where refusals are said */
};

struct header {
	uint32_t begin[STREAMS]; /* messages sent before this packet */
	uint32_t taken[STREAMS]; /* messages that have been taken here */
	uint16_t asked[STREAMS]; /* times that something was to be sent again */
	uint8_t returned;        /* this packet comes back */
} __attribute__((packed));

/* One stream. */
struct attempt {
	/* as a receiver */
	uint32_t said;  /* messages taken, as the peer was told */
	uint16_t asked; /* times that something was to be sent again */
	bool noticed;   /* it was asked for since the last message was taken */
	/* as a sender */
	uint16_t heard;  /* of the peer's `asked` */
	bool waiting;    /* before it is sent again */
	bool probing;    /* one packet at a time, until something is taken */
	uint8_t tries;   /* in a row */
	uint32_t most;   /* messages that were ever sent */
	uint64_t resume; /* when waiting ends, ns */
	uint64_t timer;  /* when what is under way is taken for dropped, ns; 0: nothing is */
};

struct attempts {
	struct attempt stream[STREAMS];
	bool returning; /* the packet under way goes back to its sender */
};

extern const struct service flow_return, flow_drop; /* two of the three below */

static struct attempts *attempts_of(const struct path *p)
{
	return flow_of(p);
}

static void try_open(struct path *p)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct attempt *s = &attempts_of(p)->stream[i];
		s->said = s->most = (uint32_t)ring_first_message();
		s->asked = s->heard = (uint16_t)wrap_first(16, 0);
	}
}

static uint32_t in_taken(const struct in *in)
{
	return (uint32_t)lane_count(&in->fill);
}

/* -- The sender ------------------------------------------------------------------------------ */

static bool out_flying(const struct out *o)
{
	return o->sent != o->acked || o->next.offset;
}

static void try_budget(struct path *p)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct out *o = &p->out[i];
		const struct attempt *s = &attempts_of(p)->stream[i];
		o->may = s->waiting || (s->probing && out_flying(o)) ? o->sent : UINT64_MAX;
	}
}

/* Goes back to the first message that has not been taken, and begins there at `resume`. */
static void out_rewind(struct path *p, unsigned stream, uint64_t resume)
{
	struct out *o = &p->out[stream];
	struct attempt *s = &attempts_of(p)->stream[stream];
	if (!out_flying(o))
		return;
	o->next = o->done;
	o->sent = o->acked;
	s->probing = s->waiting = true;
	s->resume = resume;
	s->timer = 0;
}

/* Those that the peer has taken are not needed any more. */
static void out_forget(struct path *p, unsigned stream, uint32_t messages)
{
	struct out *o = &p->out[stream];
	const tern_msg *m;
	for (; messages && (m = place_look(o, &o->done)); messages--) {
		const void *data = tern_msg_data(m, NULL);
		place_pass(&o->done, m);
		if (data)
			block_set(block_of(data), BLOCK_FREE);
		o->acked++;
	}
	place_look(o, &o->done); /* over a credit line, whose leaf is free now */
	/* ring.R2, acquired in lane_next(). */
	atomic_store_explicit(o->freed, o->done.leaf, memory_order_release);
	if (o->sent < o->acked) { /* it was taken though we had gone back */
		o->sent = o->acked;
		o->next = o->done;
	}
}

static bool taken_note(struct path *p, unsigned stream, uint32_t taken)
{
	struct attempt *s = &attempts_of(p)->stream[stream];
	struct out *o = &p->out[stream];
	uint32_t more = further(o->acked, taken);
	if (more > s->most - (uint32_t)o->acked)
		return false; /* it cannot have taken what it has not got */
	if (!more)
		return true;
	out_forget(p, stream, more);
	s->probing = s->waiting = false;
	s->tries = 0;
	s->timer = 0;
	p->staged++; /* something may have waited for it */
	return true;
}

static void asked_note(struct path *p, unsigned stream, uint16_t asked)
{
	struct attempt *s = &attempts_of(p)->stream[stream];
	if ((uint16_t)(asked - s->heard - 1) >= UINT16_MAX / 2)
		return;
	s->heard = asked;
	uint64_t wait = p->net->flow == &flow_return ? 0 : (uint64_t)BACKOFF_NS << s->tries;
	s->tries += s->tries < BACKOFF_MOST;
	out_rewind(p, stream, p->net->now + wait);
}

static uint64_t tries_patience(const struct path *p, const struct attempt *s)
{
	uint64_t ns = pace_patience(&p->transit.pace);
	uint64_t least = ns > PATIENCE_NS && p->transit.window ? ns : PATIENCE_NS;
	unsigned tries = s->tries < PATIENCE_MOST ? s->tries : PATIENCE_MOST;
	return (p->net->flow == &flow_drop ? least : SAID * least) << tries;
}

/*
 * Where a refusal is said the timer is a net under it: a packet that begins with what was taken
 * before is neither taken nor refused, whatever is behind that.
 */
static uint64_t tries_tick(struct path *p, unsigned stream, uint64_t now)
{
	struct attempt *s = &attempts_of(p)->stream[stream];
	if (s->timer && now >= s->timer) {
		s->tries += s->tries < PATIENCE_MOST;
		out_rewind(p, stream, now);
	}
	if (s->waiting && now >= s->resume) {
		s->waiting = false;
		p->staged++;
		return now;
	}
	if (!s->timer && !s->waiting && out_flying(&p->out[stream]))
		s->timer = now + tries_patience(p, s);
	return s->waiting ? s->resume : s->timer ? s->timer : DUE_NEVER;
}

/* -- The receiver ------------------------------------------------------------------------------ */

/* If it is lost the header alone is sent again. */
static void slice_empty(const struct path *p, struct slice *s)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		const struct out *o = &p->out[i];
		s->from[i] = o->next;
		s->to[i] = (struct until){ o->next.leaf, o->next.offset };
		s->begin[i] = (uint32_t)o->sent;
	}
}

/* The packet goes back as it came, if it can; what counts is the header, which every packet has. */
static void packet_return(struct path *p, const struct arrival *a)
{
	if (!p->most || a->len > p->most - PACKET_FRONT - PACKET_TAG || p->gone ||
	    !service_ready(p))
		return;
	struct packet *k = post_begin(p);
	slice_empty(p, &k->flight.slice);
	memcpy(k->end, a->at, a->len);
	k->end += a->len;
	attempts_of(p)->returning = true;
	service_down(k, 0);
	attempts_of(p)->returning = false;
}

static void refuse(struct path *p, unsigned stream, bool full)
{
	struct attempt *s = &attempts_of(p)->stream[stream];
	if (!full && s->noticed)
		return; /* it follows one that was refused */
	s->noticed = true;
	landing_forget(&p->in[stream]);
	if (p->net->flow == &flow_drop)
		return;
	s->asked++;
	p->pending_control |= 1u << NEWS_FLOW;
}

static void records_take(struct path *p, const struct header *h, const struct arrival *a)
{
	unsigned wanted = 0, late = 0;
	for (unsigned i = 0; i < STREAMS; i++) {
		uint32_t taken = in_taken(&p->in[i]);
		wanted |= h->begin[i] == taken ? 1u << i : 0;
		late |= further(h->begin[i], taken) ? 1u << i : 0;
	}
	struct landing l = landing_take_each(p, a, wanted);
	for (unsigned i = 0; i < STREAMS; i++) {
		if (l.taken >> i & 1)
			attempts_of(p)->stream[i].noticed = false;
		else if ((l.present & ~late) >> i & 1)
			refuse(p, i, l.full >> i & 1);
	}
	if (l.present & late) /* its sender does not know that it was taken */
		p->pending_control |= 1u << NEWS_FLOW;
	if (p->net->flow == &flow_return && (l.present & ~late & ~l.taken))
		packet_return(p, a);
}

/* -- Both ---------------------------------------------------------------------------------- */

static void try_down(struct path *p, struct packet *k)
{
	struct header h = { .returned = attempts_of(p)->returning };
	bool again = false, tells = flow_tells(p, k);
	for (unsigned i = 0; i < STREAMS; i++) {
		struct attempt *s = &attempts_of(p)->stream[i];
		const struct slice *slice = &k->flight.slice;
		h.begin[i] = slice->begin[i];
		h.taken[i] = in_taken(&p->in[i]);
		s->said = tells ? h.taken[i] : s->said;
		h.asked[i] = s->asked;
		again |= slice->messages[i] && further(slice->begin[i], s->most);
		s->most += further(s->most, (uint32_t)p->out[i].sent);
	}
	packet_count(p->net, PULSE_PACKETS_AGAIN, again && !k->again);
	header_put(k, &h, sizeof h);
}

static bool try_up(struct path *p, struct arrival *a, unsigned level)
{
	struct header h;
	(void)level;
	if (!header_take(a, &h, sizeof h))
		return true;
	for (unsigned i = 0; i < STREAMS; i++) {
		packet_count(p->net, PULSE_PACKETS_MALFORMED, !taken_note(p, i, h.taken[i]));
		asked_note(p, i, h.asked[i]);
	}
	if (!h.returned)
		records_take(p, &h, a);
	return true;
}

static uint64_t try_tick(struct path *p, uint64_t now)
{
	uint64_t due = DUE_NEVER;
	for (unsigned i = 0; i < STREAMS; i++) {
		if (in_taken(&p->in[i]) != attempts_of(p)->stream[i].said)
			p->pending_control |= 1u << NEWS_FLOW;
		uint64_t next = tries_tick(p, i, now);
		due = next < due ? next : due;
	}
	return due;
}

#define TRIES                                                                                    \
	.kind = SERVICE_FLOW, .bytes = sizeof(struct attempts), .keeps = true, .open = try_open, \
	.budget = try_budget, .down = try_down, .up = try_up, .tick = try_tick

const struct service flow_return = { .name = "return", .number = 1, TRIES };
const struct service flow_drop = { .name = "drop", .number = 2, TRIES };
const struct service flow_nack = { .name = "nack", .number = 3, TRIES };
