/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking first. A sender says how many messages and payloads it has, since ever, and sends them
 * when its receiver has permitted that; the receiver permits when it has room for all of it. There
 * is one question at a time for each stream. Two strategies differ in what a question is for:
 *
 *  - permit (InfiniBand): one transfer, which is what a packet holds, or a payload that is longer.
 *    A round trip each; the next may be asked for as soon as this one has been sent.
 *  - reserve (CMAM's finite sequence, SCMP's rendezvous): everything that is staged, up to a ring's
 *    worth. The receiver holds room for the whole sequence, and gives none for the next before this
 *    one has been handled.
 */
#include <string.h>

#include "flow/flow.h"

enum {
	/* Lines that a message may take: a question does not say how many its messages do. */
	MESSAGE_LINES = 2,
	/* An empty ring has room for as many, wherever its consumer stands. */
	ASK_MOST = (RING_LEAVES - 1) * (REPLY_LEAF_LINES - LEAF_KEPT + 1) / MESSAGE_LINES - 1,
};

/* Messages and payloads, since ever. */
struct amount {
	uint32_t messages, blocks;
};

struct header {
	struct amount want[STREAMS], may[STREAMS];
};

/* One stream. */
struct ask_state {
	struct amount want;  /* as a sender: asked for */
	struct amount may;   /* as a receiver: permitted */
	struct amount asked; /* by the peer */
};

extern const struct service flow_reserve; /* one of the two below */

static struct ask_state *ask_of(const struct path *p, unsigned stream)
{
	return (struct ask_state *)flow_of(p) + stream;
}

static void ask_open(struct path *p)
{
	struct amount none = { (uint32_t)ring_first_message(), (uint32_t)payload_first() };
	for (unsigned i = 0; i < STREAMS; i++) {
		p->out[i].may = none.messages;
		p->out[i].allowed = none.blocks;
		*ask_of(p, i) = (struct ask_state){ none, none, none };
	}
}

/* -- The sender ---------------------------------------------------------------------------- */

/* What is staged, as far as one question may be for it. */
static void ask_count(const struct out *o, size_t bytes_most, struct ask_state *s)
{
	struct place at = o->next;
	const tern_msg *m;
	uint32_t payloads = 0, messages = 0;
	for (size_t bytes = 0; messages < ASK_MOST && (m = place_look(o, &at)); messages++) {
		size_t len = 0;
		bool payload = tern_msg_data(m, &len) != NULL;
		bytes += TERN_LINE + len;
		if (messages && (bytes > bytes_most || payloads + payload > LANDING))
			break;
		payloads += payload;
		place_pass(&at, m);
	}
	s->want = (struct amount){ (uint32_t)o->sent + messages, (uint32_t)o->blocks + payloads };
}

static bool ask_granted(const struct path *p, unsigned stream)
{
	return further(p->out[stream].may, ask_of(p, stream)->want.messages);
}

/* Whether the next message is there and may not be sent. */
static bool out_held(struct out *o)
{
	const tern_msg *m = o->base && !o->next.offset ? place_look(o, &o->next) : NULL;
	return m && (o->sent >= o->may || (tern_msg_data(m, NULL) && o->blocks >= o->allowed));
}

static void ask_budget(struct path *p)
{
	size_t bytes_most = p->net->flow == &flow_reserve ? SIZE_MAX : p->most;
	for (unsigned i = 0; i < STREAMS; i++) {
		struct out *o = &p->out[i];
		struct ask_state *s = ask_of(p, i);
		if (ask_granted(p, i) || !out_held(o))
			continue;
		ask_count(o, bytes_most, s);
		if (!further(o->may, s->want.messages))          /* it lacks a block alone; */
			s->want.messages = (uint32_t)o->may + 1; /* a question asks for more */
		p->pending_control |= 1u << NEWS_FLOW;
	}
}

/* -- The receiver -------------------------------------------------------------------------- */

/* As many blocks as are free, if there is one; and lines for all of it. */
static bool ask_grant(struct path *p, unsigned stream)
{
	struct ask_state *s = ask_of(p, stream);
	const struct in *in = &p->in[stream];
	uint32_t messages = s->asked.messages - (uint32_t)lane_count(&in->fill);
	uint32_t blocks = further(s->may.blocks, s->asked.blocks);
	uint32_t there = further(s->may.blocks, (uint32_t)landing_allowed(in));
	if (messages > landing_lines(in) / MESSAGE_LINES || (blocks && !there))
		return false;
	s->may.messages = s->asked.messages;
	s->may.blocks += blocks < there ? blocks : there;
	return true;
}

static bool ask_asked(const struct path *p, unsigned stream)
{
	const struct ask_state *s = ask_of(p, stream);
	return p->in[stream].fill.base && further(s->may.messages, s->asked.messages);
}

static bool sequence_handled(const struct path *p, unsigned stream)
{
	return p->in[stream].inlet->handled == landing_begun(&p->in[stream]);
}

static uint64_t ask_tick(struct path *p, uint64_t now)
{
	bool whole = p->net->flow == &flow_reserve;
	uint64_t due = DUE_NEVER;
	for (unsigned i = 0; i < STREAMS; i++) {
		if (!ask_asked(p, i))
			continue;
		if ((!whole || sequence_handled(p, i)) && ask_grant(p, i))
			p->pending_control |= 1u << NEWS_FLOW;
		else
			due = now + FLOW_LOOK_NS;
	}
	return due;
}

/* -- Both ------------------------------------------------------------------------------------ */

static void ask_down(struct path *p, struct packet *k)
{
	struct header h;
	for (unsigned i = 0; i < STREAMS; i++) {
		h.want[i] = ask_of(p, i)->want;
		h.may[i] = ask_of(p, i)->may;
	}
	flow_tells(p, k);
	header_put(k, &h, sizeof h);
}

static bool permission_take(struct path *p, unsigned stream, struct amount may)
{
	struct out *o = &p->out[stream];
	uint32_t more = further(o->may, may.messages), blocks = further(o->allowed, may.blocks);
	if (more > further(o->may, ask_of(p, stream)->want.messages) || blocks > LANDING)
		return false;
	o->may += more;
	o->allowed += blocks;
	p->staged += more + blocks; /* it was waited for */
	return true;
}

static bool ask_take(struct path *p, unsigned stream, struct amount want)
{
	struct ask_state *s = ask_of(p, stream);
	if (!further(s->asked.messages, want.messages))
		return true;
	/* Of what was permitted before, some may have been lost and be on its way again. */
	if (want.messages - s->may.messages > ASK_MOST + 2 ||
	    further(s->may.blocks, want.blocks) > LANDING)
		return false;
	s->asked = want;
	return true;
}

static bool ask_up(struct path *p, struct arrival *a, unsigned level)
{
	struct header h;
	if (!header_take(a, &h, sizeof h))
		return true;
	path_serve(p); /* a question comes before the first request */
	for (unsigned i = 0; i < STREAMS; i++) {
		packet_count(p->net, PULSE_PACKETS_MALFORMED, !permission_take(p, i, h.may[i]));
		packet_count(p->net, PULSE_PACKETS_MALFORMED, !ask_take(p, i, h.want[i]));
	}
	if (!service_up(p, a, level))
		return false;
	ask_tick(p, p->net->now); /* the answer leaves at this look */
	return true;
}

#define ASKS                                                                                 \
	.kind = SERVICE_FLOW, .bytes = STREAMS * sizeof(struct ask_state), .open = ask_open, \
	.budget = ask_budget, .down = ask_down, .up = ask_up, .tick = ask_tick

const struct service flow_permit = { .name = "permit", .number = 5, ASKS };
const struct service flow_reserve = { .name = "reserve", .number = 6, ASKS };
