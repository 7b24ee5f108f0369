/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends with two completions; the state of what a handle was started with, and taking it back.
 */
#include <errno.h>

#include "base/error.h"
#include "msg/msg.h"

/* Of the sends and receives of a handle, the state of the one that is least far. */
static enum tern_state state_least(enum tern_state a, enum tern_state b)
{
	return a == TERN_STATE_IN_USE || b == TERN_STATE_COMPLETE ? a : b;
}

enum tern_state tern_op_state(tern *t, const tern_op *op)
{
	INSIDE struct scope scope = scope_given(t);
	struct msg *m = msg_of(t);
	enum tern_state state = op && op->pending ? TERN_STATE_IN_PROGRESS : TERN_STATE_COMPLETE;
	for (const struct sending *s = NULL; (s = record_next(&m->sends, s));)
		if (op && s->op == op)
			state = state_least(s->state, state);
	for (const struct receiving *r = NULL; (r = record_next(&m->recvs, r));)
		if (op && r->op == op)
			state = state_least(r->state, state);
	return state;
}

static bool cancel_answered(struct endpoint *e, void *outcome)
{
	(void)e;
	return *(int *)outcome <= 0;
}

/* Asks the receiver to forget a send that it knows of, and waits for what it says. */
static int send_ask_back(struct msg *m, struct sending *s)
{
	struct wait w = msg_wait("tern_op_cancel", "to", s->node.rank, s->node.id);
	uint64_t words[] = { record_name(s), s->node.id };
	int outcome = 1;
	if (s->asked)
		return error_set(-EALREADY,
				 "the send of message %#llx to rank %u is being taken back already",
				 (unsigned long long)s->node.id, s->node.rank);
	w.rule = "taking back a send";
	s->asked = &outcome;
	int rc = layer_request(m->e, s->node.rank, MSG_CANCEL, NULL, 0, 2, words);
	if (!rc)
		rc = wait_until(m->e, cancel_answered, &outcome, &w);
	if (outcome <= 0)
		return outcome;
	s->asked = NULL; /* given up: it is still there, since nobody has answered */
	return rc;
}

static int send_take_back(struct msg *m, struct sending *s)
{
	int rc = rules_wait(m->e, "taking back a send");
	if (rc)
		return rc;
	if (s->state != TERN_STATE_IN_USE)
		return send_matched(s);
	if (s->announced)
		return send_ask_back(m, s);
	send_cancelled(m, s);
	return 0;
}

static int send_cancel_of(struct msg *m, const tern_op *op, unsigned *found)
{
	int rc = 0;
	for (struct sending *s = NULL; (s = record_next(&m->sends, s));) {
		if (s->op != op)
			continue;
		++*found;
		int failed = send_take_back(m, s);
		rc = failed ? failed : rc;
	}
	return rc;
}

int tern_op_cancel(tern *t, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	unsigned found = 0;
	int rc = rules_program(t->own, "tern_op_cancel()");
	if (!rc && !op)
		rc = error_set(-EINVAL, "tern_op_cancel() was given no handle");
	if (rc)
		return rc;
	int sends = send_cancel_of(msg_of(t), op, &found),
	    recvs = recv_cancel_of(msg_of(t), op, &found);
	if (!found)
		return error_set(-EALREADY,
				 "the handle has no send and no receive that is not complete");
	return sends ? sends : recvs;
}

void on_send_cancel(tern *t, const tern_msg *msg)
{
	struct msg *m = msg_of(t);
	uint32_t from = tern_msg_src(msg), name = (uint32_t)tern_msg_word(msg, 0);
	struct arrival *a = arrival_named(m, from, name);
	uint64_t words[TELL_WORDS];
	if (a)
		arrival_drop(m, a);
	tell_words(m, words, from, a ? TELL_CANCELLED : TELL_KEPT, name, 0, tern_msg_word(msg, 1));
	layer_reply(m->e, MSG_TELL, NULL, 0, TELL_WORDS, words);
}
