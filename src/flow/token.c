/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tokens, as in the pipes of the SP2. A sender has a few for each stream; a packet that begins
 * messages costs one, and begins so few that the receiver has room for as many packets as there are
 * tokens. A token goes back when all messages that its packet began have been handled. Who has none
 * waits. Payloads are counted besides: a program that keeps their blocks must not keep short
 * messages from coming.
 */
#include <string.h>

#include "flow/flow.h"

enum {
	TOKENS = 8,          /* of a stream */
	TOKEN_MESSAGES = 20, /* that a packet may begin; one of two lines counts as two */
};
_Static_assert(TOKENS *TOKEN_MESSAGES < (RING_LEAVES - 1) * (REPLY_LEAF_LINES - LEAF_KEPT + 1),
	       "a token stands for room");

/* Tokens of one stream. */
struct tokens {
	/* as a sender */
	uint32_t spent;    /* packets */
	uint32_t returned; /* by the peer */
	uint64_t begun;    /* messages, when the last packet had been sent */
	/* as a receiver: packets, and the messages that had been begun when each had come */
	uint32_t came, gone, said, said_allowed;
	uint64_t end[TOKENS];
};

static struct tokens *tokens_of(const struct path *p, unsigned stream)
{
	return (struct tokens *)flow_of(p) + stream;
}

/* Tokens given back, and payloads that may be begun, since ever. */
struct change {
	uint32_t returned[STREAMS], allowed[STREAMS];
};

static void token_open(struct path *p)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct tokens *s = tokens_of(p, i);
		p->out[i].allowed = payload_first() + LANDING;
		p->out[i].by_line = true;
		s->said_allowed = (uint32_t)p->out[i].allowed;
		s->begun = p->out[i].sent;
		s->spent = s->returned = s->came = s->gone = s->said = (uint32_t)wrap_first(32, 0);
	}
}

static uint64_t out_begun(const struct out *o)
{
	return o->sent + (o->next.offset != 0);
}

static void token_budget(struct path *p)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct out *o = &p->out[i];
		const struct tokens *s = tokens_of(p, i);
		o->may = s->spent - s->returned < TOKENS ? out_begun(o) + TOKEN_MESSAGES : o->sent;
	}
}

/* Takes back the tokens of packets whose messages have been handled. */
static void tokens_count(struct path *p, unsigned stream)
{
	struct tokens *s = tokens_of(p, stream);
	const struct in *in = &p->in[stream];
	while (s->gone != s->came && in->inlet->handled >= s->end[s->gone % TOKENS])
		s->gone++;
}

static void token_down(struct path *p, struct packet *k)
{
	struct change c;
	bool tells = flow_tells(p, k);
	for (unsigned i = 0; i < STREAMS; i++) {
		struct tokens *s = tokens_of(p, i);
		uint64_t begun = out_begun(&p->out[i]);
		if (!k->again && begun != s->begun)
			s->spent++;
		s->begun = begun;
		tokens_count(p, i);
		c.returned[i] = s->gone;
		c.allowed[i] = (uint32_t)landing_allowed(&p->in[i]);
		s->said = tells ? c.returned[i] : s->said;
		s->said_allowed = tells ? c.allowed[i] : s->said_allowed;
	}
	header_put(k, &c, sizeof c);
}

static bool change_take(struct path *p, unsigned stream, uint32_t returned, uint32_t allowed)
{
	struct tokens *s = tokens_of(p, stream);
	uint32_t tokens = further(s->returned, returned),
		 blocks = further(p->out[stream].allowed, allowed);
	if (tokens > s->spent - s->returned || blocks > LANDING)
		return false;
	s->returned += tokens;
	p->out[stream].allowed += blocks;
	p->staged += tokens + blocks; /* something may have waited for it */
	return true;
}

/* A packet has come: until when its token is here. */
static bool tokens_put(struct path *p, unsigned stream, uint64_t before)
{
	struct tokens *s = tokens_of(p, stream);
	uint64_t after = landing_begun(&p->in[stream]);
	if (after == before)
		return true;
	tokens_count(p, stream);
	if (s->came - s->gone == TOKENS)
		return false; /* it had no token */
	s->end[s->came++ % TOKENS] = after;
	return true;
}

static bool token_up(struct path *p, struct arrival *a, unsigned level)
{
	struct change c;
	uint64_t before[STREAMS];
	if (!header_take(a, &c, sizeof c))
		return true;
	for (unsigned i = 0; i < STREAMS; i++) {
		before[i] = landing_begun(&p->in[i]);
		packet_count(p->net, PULSE_PACKETS_MALFORMED,
			     !change_take(p, i, c.returned[i], c.allowed[i]));
	}
	if (!service_up(p, a, level))
		return false;
	for (unsigned i = 0; i < STREAMS; i++)
		packet_count(p->net, PULSE_PACKETS_MALFORMED, !tokens_put(p, i, before[i]));
	return true;
}

/* Whether the peer should hear of it though nothing else is to be said. */
static bool change_matters(const struct path *p, unsigned stream)
{
	const struct tokens *s = tokens_of(p, stream);
	const struct in *in = &p->in[stream];
	uint32_t tokens = s->gone - s->said,
		 blocks = (uint32_t)landing_allowed(in) - s->said_allowed;
	bool without = (uint32_t)in->landed == s->said_allowed;
	return tokens >= TOKENS / 2 || (tokens && s->came - s->said >= TOKENS - 1) ||
	       blocks >= LANDING / 2 || (blocks && without);
}

static uint64_t token_tick(struct path *p, uint64_t now)
{
	bool later = false;
	for (unsigned i = 0; i < STREAMS; i++) {
		if (!p->in[i].fill.base)
			continue;
		tokens_count(p, i);
		if (change_matters(p, i))
			p->pending_control |= 1u << NEWS_FLOW;
		later |= (uint32_t)p->in[i].landed == tokens_of(p, i)->said_allowed;
	}
	return later ? now + FLOW_LOOK_NS : DUE_NEVER;
}

const struct service flow_token = {
	.name = "token",
	.number = 4,
	.kind = SERVICE_FLOW,
	.bytes = STREAMS * sizeof(struct tokens),
	.open = token_open,
	.budget = token_budget,
	.down = token_down,
	.up = token_up,
	.tick = token_tick,
};
