/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending, where the inline path does not apply: first contact, full rings, broken rules. */
#include <errno.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/wait.h"
#include "endpoint/count.h"
#include "endpoint/trace.h"

/* By the owner. */
static void send_knock(struct endpoint *e, struct tern_lane *lane)
{
	struct net *net = e->site.peer[lane->peer].net;
	pulse_add(e, PULSE_KNOCKS, 1);
	net->ops->knock(net, lane);
	if (TERN_UNLIKELY(e->site.timer_armed)) {
		e->site.timer_armed = false;
		/* Whoever leaves looks, also from a hold, and arms it anew. */
		alert_raise(e, ALERT_PENDING);
	}
}

void tern_knock_(tern *t, struct tern_lane *lane)
{
	INSIDE struct scope scope = scope_given(t);
	send_knock(t->own, lane);
}

void send_put(struct endpoint *e, struct tern_lane *lane, const struct parcel *p)
{
	lane_put(lane, p);
	if (tern_unheeded_(lane))
		send_knock(e, lane);
}

int send_reachable(struct endpoint *e, uint32_t dst)
{
	struct peer *p = &e->site.peer[dst];
	if (p->lost)
		return p->net->ops->check(p->net, dst);
	return e->t->lane[dst].base ? 0 : p->net->ops->connect(p->net, dst);
}

int send_room(struct endpoint *e, uint32_t dst, size_t behind)
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
		bool ready = !rc && (behind == NOTHING_BEHIND ? lane_ready(lane)
							      : lane_carries(lane, behind));
		if (rc || ready) {
			stall_end(e, &stall, PULSE_ROOM_STALLS);
			return rc;
		}
		if (held(e))
			return error_set(
				-EAGAIN,
				"the ring to rank %u is full, and under a hold nothing is served",
				job_member_rank(&e->group->job, dst));
		lost_look(e); /* it may have left without a word, having never heard our knock */
		stall_begin(e, &stall);
		wait_step(e, &l);
	}
}

int send_request(struct endpoint *e, uint32_t dst, const struct parcel *p)
{
	struct tern_lane *lane = &e->t->lane[dst];
	int rc = send_room(e, dst, NOTHING_BEHIND);
	if (rc)
		return rc;
	if (TERN_UNLIKELY(e->trace))
		trace_send(e, dst, RECORD_REQUEST, p);
	send_put(e, lane, p);
	tern_look_(e->t);
	return 0;
}

int send_reply(struct endpoint *e, const struct parcel *p)
{
	if (TERN_UNLIKELY(e->item != NULL))
		return layer_table[e->item_layer]->reply(e->layer[e->item_layer], p);
	/* Not the head's, which refuses while sends are traced. */
	struct tern_lane *lane = e->inlet->answer;
	struct peer *to = &e->site.peer[lane->peer];
	if (to->lost)
		return to->net->ops->check(to->net, lane->peer);
	e->t->current = tern_answered_(e->t);
	if (TERN_UNLIKELY(e->trace))
		trace_send(e, inlet_source(e->inlet), RECORD_REPLY, p);
	send_put(e, lane, p);
	return 0;
}

bool send_reply_expected(struct endpoint *e, uint32_t dst)
{
	const struct tern_inlet *in = &e->site.peer[dst].requests;
	return in->base && (inlet_handled(in) || inlet_has(in));
}

bool send_reply_ready(struct endpoint *e, uint32_t dst)
{
	struct peer *to = &e->site.peer[dst];
	return !to->lost && to->answer.base && lane_ready(&to->answer);
}

/* A lane that has no room left after this closes the gate, as after any reply. */
int send_reply_to(struct endpoint *e, uint32_t dst, const struct parcel *p)
{
	struct peer *to = &e->site.peer[dst];
	if (to->lost)
		return to->net->ops->check(to->net, dst);
	if (!send_reply_ready(e, dst))
		return -EAGAIN;
	if (TERN_UNLIKELY(e->trace))
		trace_send(e, dst, RECORD_REPLY, p);
	send_put(e, &to->answer, p);
	return 0;
}

static int request_rare(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words)
{
	INSIDE struct scope scope = scope_open(t);
	struct endpoint *e = t->own;
	int rc = rules_send(e, dst, id, n, 0);
	if (rc)
		return rc;
	struct parcel p = parcel_of(id, n, words);
	return target_request(e, dst, &p);
}

int tern_request_rare_(tern *t, uint32_t dst, unsigned id, unsigned n, TERN_SIX_)
{
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return request_rare(t, dst, id, n, words);
}

static int reply_rare(tern *t, const tern_msg *m, unsigned id, unsigned n, const uint64_t *words)
{
	int rc = rules_reply(t->own, m, id, n, 0);
	if (rc)
		return rc;
	struct parcel p = parcel_of(id, n, words);
	return send_reply(t->own, &p);
}

int tern_reply_rare_(tern *t, const tern_msg *m, unsigned id, unsigned n, TERN_SIX_)
{
	const uint64_t words[TERN_WORDS_MAX] = { TERN_SIX_VALUES_ };
	return reply_rare(t, m, id, n, words);
}

/* -- Words in an array: for TERN_NO_INLINE, other languages, counts known at run time ------- */

int tern_request_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words)
{
	if (TERN_UNLIKELY(words_double(n)))
		return request_rare(t, dst, id, n, words);
	return tern_request_inline_(t, n, dst, id, WORDS_AT(words, n));
}

int tern_reply_array(tern *t, const tern_msg *m, unsigned id, unsigned n, const uint64_t *words)
{
	t = given(t);
	if (TERN_UNLIKELY(words_double(n)))
		return reply_rare(t, m, id, n, words);
	return tern_reply_inline_(t, n, m, id, WORDS_AT(words, n));
}
