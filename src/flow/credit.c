/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits. Every packet tells its receiver what may be sent back: how many leaves of our rings are
 * free again, and how many payloads may be begun. Both count from the beginning, so a grant that is
 * lost or doubled does no harm. A leaf is a quarter of a ring, so a grant in a packet of its own is
 * rare. Nothing is reserved at the requester for a reply.
 */
#include <string.h>

#include "flow/flow.h"

/* What a receiver grants, since ever: leaves of its rings that are free again, and payloads. */
struct grant {
	uint32_t freed[STREAMS], allowed[STREAMS];
};

struct credit {
	struct grant said;       /* what the peer was told last */
	uint32_t freed[STREAMS]; /* the furthest that it said */
};

static struct credit *credit_of(const struct path *p)
{
	return flow_of(p);
}

static struct grant grant_now(const struct path *p)
{
	struct grant g;
	for (unsigned i = 0; i < STREAMS; i++) {
		const struct in *in = &p->in[i];
		bool open = in->fill.base != NULL;
		g.freed[i] = (uint32_t)(open ? atomic_load_explicit(in->freed, memory_order_acquire)
					     : ring_first_leaf());
		g.allowed[i] = (uint32_t)landing_allowed(in);
	}
	return g;
}

static void credit_open(struct path *p)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		p->out[i].allowed = payload_first() + LANDING;
		credit_of(p)->said.allowed[i] = (uint32_t)p->out[i].allowed;
		credit_of(p)->said.freed[i] = credit_of(p)->freed[i] = (uint32_t)ring_first_leaf();
	}
}

static void credit_down(struct path *p, struct packet *k)
{
	struct grant g = grant_now(p);
	if (flow_tells(p, k))
		credit_of(p)->said = g;
	header_put(k, &g, sizeof g);
}

/*
 * The leaf of the first message that has not been acknowledged: no leaf from there on can be free.
 * A place where no message of a leaf begins any more has all of it behind, but for the credit line,
 * which what is sent next has yet to pass: the second line of a message may be written over it four
 * leaves later.
 */
static uint64_t leaf_unacked(struct path *p, unsigned stream)
{
	struct out *o = &p->out[stream];
	const struct place *at = path_unacked(p, stream);
	if (!at->cursor)
		return 0; /* sent before anything could be written there */
	place_settle(o, &o->next);
	size_t line = (size_t)(at->cursor - o->base) / TERN_LINE % o->leaf_lines;
	uint64_t leaf = at->leaf + (line >= ring_leaf_room(o->leaf_lines));
	return leaf < o->next.leaf ? leaf : o->next.leaf;
}

/*
 * Lines that the peer has done with may be written again, as far as all before them has been
 * acknowledged: those may be sent again. It is further where acknowledgements came later, or
 * packets in another order.
 */
static void leaves_free(struct path *p, unsigned stream)
{
	struct out *o = &p->out[stream];
	uint64_t now = o->base ? atomic_load_explicit(o->freed, memory_order_relaxed) : 0;
	uint32_t more = further(now, credit_of(p)->freed[stream]);
	if (!more || !o->base)
		return;
	uint64_t most = leaf_unacked(p, stream);
	uint64_t freed = now + more < most ? now + more : most;
	/* ring.R2, acquired in lane_next(). */
	if (freed > now)
		atomic_store_explicit(o->freed, freed, memory_order_release);
}

static bool grant_take(struct path *p, unsigned stream, uint32_t freed, uint32_t allowed)
{
	struct out *o = &p->out[stream];
	uint32_t blocks = further(o->allowed, allowed);
	if (blocks > LANDING)
		return false;
	if (further(credit_of(p)->freed[stream], freed)) {
		credit_of(p)->freed[stream] = freed;
		leaves_free(p, stream);
	}
	o->allowed += blocks;
	p->staged += blocks; /* something may have waited for it */
	return true;
}

static bool credit_up(struct path *p, struct arrival *a, unsigned level)
{
	struct grant g;
	if (!header_take(a, &g, sizeof g))
		return true;
	for (unsigned i = 0; i < STREAMS; i++)
		packet_count(p->net, PULSE_PACKETS_MALFORMED,
			     !grant_take(p, i, g.freed[i], g.allowed[i]));
	return service_up(p, a, level);
}

/* Whether the peer should hear of it though nothing else is to be said. */
static bool grant_matters(const struct path *p, const struct grant *g, unsigned stream)
{
	const struct grant *said = &credit_of(p)->said;
	uint32_t more = g->allowed[stream] - said->allowed[stream];
	bool exhausted = (uint32_t)p->in[stream].landed == said->allowed[stream];
	return g->freed[stream] != said->freed[stream] || more >= LANDING / 8 ||
	       (more && exhausted);
}

static uint64_t credit_tick(struct path *p, uint64_t now)
{
	struct grant g = grant_now(p);
	bool later = false;
	for (unsigned i = 0; i < STREAMS; i++) {
		leaves_free(p, i);
		if (grant_matters(p, &g, i))
			p->pending_control |= 1u << NEWS_FLOW;
		else
			later |= (uint32_t)p->in[i].landed == credit_of(p)->said.allowed[i];
	}
	return later ? now + FLOW_LOOK_NS : DUE_NEVER;
}

const struct service flow_credit = {
	.name = "credit",
	.number = 0,
	.kind = SERVICE_FLOW,
	.bytes = sizeof(struct credit),
	.grants = true,
	.open = credit_open,
	.down = credit_down,
	.up = credit_up,
	.tick = credit_tick,
};
