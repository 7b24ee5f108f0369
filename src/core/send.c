/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending, where the inline path does not apply: first contact, full rings, broken rules. */
#include "core/send.h"

#include <errno.h>

#include "base/error.h"
#include "core/stats.h"
#include "core/trace.h"
#include "core/wait.h"

/* cost: base status */
void tern_knock(tern *t, struct tern_lane *lane)
{
	struct endpoint *e = t->own;
	struct net *net = e->site.peer[lane->peer].net;
	pulse_add(e, PULSE_KNOCKS, 1);
	net->ops->knock(net, lane);
	if (TERN_UNLIKELY(e->site.later)) {
		e->site.later = false;
		alert_raise(e, ALERT_PENDING); /* whoever leaves looks, also from a hold, and arms
						  it anew */
	}
}

static void send_put(struct endpoint *e, struct tern_lane *lane, const struct parcel *p)
{
	lane_put(lane, p);
	if (tern_unheeded(lane))
		tern_knock(e->t, lane);
}

/* cost: fault status */
int send_reachable(struct endpoint *e, uint32_t dst)
{
	struct peer *p = &e->site.peer[dst];
	if (p->lost)
		return p->net->ops->check(p->net, dst);
	return e->t->lane[dst].base ? 0 : p->net->ops->connect(p->net, dst);
}

/* cost: flow status */
int send_room(struct endpoint *e, uint32_t dst)
{
	struct tern_lane *lane = &e->t->lane[dst];
	struct wait l = { .bounded = true,
			  .what = WAIT_ROOM,
			  .call = "a request",
			  .way = "to",
			  .whom = dst + 1,
			  .lack = "ring full" };
	struct stall stall = { 0 };
	for (;;) {
		int rc = send_reachable(e, dst); /* each time: the peer may have left meanwhile */
		if (rc || lane_ready(lane)) {
			stall_end(e, &stall, PULSE_ROOM_STALLS);
			return rc;
		}
		if (held(e))
			return error_set(
				-EAGAIN,
				"the ring to rank %u is full, and under a hold nothing is served",
				dst);
		if (poll_left(e))
			poll_lost(e); /* it may have left without a word, having never heard our
					 knock */
		stall_begin(e, &stall);
		wait_step(e, &l);
	}
}

int send_request(struct endpoint *e, uint32_t dst, const struct parcel *p)
{
	struct tern_lane *lane = &e->t->lane[dst];
	int rc = send_room(e, dst);
	if (rc)
		return rc;
	e->used = true;
	if (TERN_UNLIKELY(e->trace))
		trace_send(e, dst, RECORD_REQUEST, p);
	send_put(e, lane, p);
	tern_look(e->t);
	return 0;
}

int send_reply(struct endpoint *e, const struct parcel *p)
{
	struct tern_lane *lane =
		e->inlet->answer; /* not the head's, which refuses while sends are traced */
	struct peer *to = &e->site.peer[lane->peer];
	if (to->lost)
		return to->net->ops->check(to->net, lane->peer);
	e->t->current = tern_answered(e->t);
	if (TERN_UNLIKELY(e->trace))
		trace_send(e, lane->peer, RECORD_REPLY, p);
	send_put(e, lane, p);
	return 0;
}

/* cost: protection control */
int tern_request_rare(tern *t, uint32_t dst, unsigned id, unsigned n, TERN_SIX_)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	int rc = rules_send(e, dst, id, n, 0);
	if (rc)
		return rc;
	struct parcel p = { .bits = (uint64_t)id << TERN_ID_SHIFT | n,
			    .n = n,
			    .word = { TERN_SIX_VALUES_ } };
	return send_request(e, dst, &p);
}

/* cost: protection control */
int tern_reply_rare(tern *t, const tern_msg *m, unsigned id, unsigned n, TERN_SIX_)
{
	struct endpoint *e = t->own;
	int rc = rules_reply(e, m, id, n, 0);
	if (rc)
		return rc;
	struct parcel p = { .bits = (uint64_t)id << TERN_ID_SHIFT | n,
			    .n = n,
			    .word = { TERN_SIX_VALUES_ } };
	return send_reply(e, &p);
}

/* cost: base write */
