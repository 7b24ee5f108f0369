/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends with two completions; the table of sends as programs see it; taking sends back.
 */
#include <errno.h>

#include "base/error.h"
#include "msg/msg.h"

static struct sending *of_node(struct node *n)
{
	return n ? (struct sending *)(void *)((char *)n - offsetof(struct sending, node)) : NULL;
}

/* The oldest that was started without a handle: those with one are their handle's business. */
static struct sending *send_listed(struct msg *m, uint32_t dst, tern_id id)
{
	struct node *n = table_find(&m->send_table, dst, id);
	while (n && !of_node(n)->listed)
		n = node_like(n->next, dst, id);
	return of_node(n);
}

int tern_send_local_start(tern *t, uint32_t dst, tern_id id, const void *data, size_t len,
			  tern_op *local, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct msg *m = msg_of(t);
	struct layout l = layout_block(data, len);
	if (!local)
		return tern_send_start(t, dst, id, data, len, TERN_SEND_SYNC, op);
	if (!op)
		return tern_send_start(t, dst, id, data, len, TERN_SEND_AUTO, local);
	int rc = send_check(m, dst, id, 0);
	return rc ? rc : send_tracked(m, dst, id, &l, TERN_SEND_SYNC, local, op);
}

enum tern_state tern_send_poll(tern *t, uint32_t dst, tern_id id)
{
	INSIDE struct scope scope = scope_given(t);
	struct msg *m = msg_of(t);
	msg_look(m);
	struct sending *s = send_listed(m, dst, id);
	return s ? s->state : TERN_STATE_EMPTY;
}

static int send_unknown(uint32_t dst, tern_id id)
{
	return error_set(-ENOENT, "no send of message %#llx to rank %u is in the table",
			 (unsigned long long)id, dst);
}

int tern_send_wait(tern *t, uint32_t dst, tern_id id)
{
	INSIDE struct scope scope = scope_given(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct msg *m = msg_of(t);
	struct sending *s = send_listed(m, dst, id);
	if (!s)
		return send_unknown(dst, id);
	struct awaited a = { &m->sends, record_name(s), &s->state };
	struct wait w = msg_wait("tern_send_wait", "to", dst, id);
	w.rule = "tern_send_wait()";
	int rc = wait_until(m->e, awaited_over, &a, &w);
	return rc || !record_named(&m->sends, a.name) ? rc : s->error;
}

int tern_send_clear(tern *t, uint32_t dst, tern_id id)
{
	INSIDE struct scope scope = scope_given(t);
	struct msg *m = msg_of(t);
	int rc = rules_program(m->e, "tern_send_clear()");
	if (rc)
		return rc;
	struct sending *s = send_listed(m, dst, id);
	if (!s)
		return send_unknown(dst, id);
	if (s->state != TERN_STATE_COMPLETE)
		return error_set(-EBUSY, "the send of message %#llx to rank %u is not complete",
				 (unsigned long long)id, dst);
	int error = s->error;
	send_remove(m, s);
	return error;
}

static bool cancel_answered(struct endpoint *e, void *outcome)
{
	(void)e;
	return *(int *)outcome <= 0;
}

/* Asks the receiver to forget a send that it knows of, and waits for what it says. */
static int send_ask_back(struct msg *m, struct sending *s)
{
	struct wait w = msg_wait("tern_send_cancel", "to", s->node.rank, s->node.id);
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

int tern_send_cancel(tern *t, uint32_t dst, tern_id id)
{
	INSIDE struct scope scope = scope_given(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct sending *s = send_listed(msg_of(t), dst, id);
	return s ? send_take_back(msg_of(t), s) : send_unknown(dst, id);
}

int send_cancel_of(struct msg *m, const tern_op *op, unsigned *found)
{
	int rc = 0;
	for (uint32_t i = 0; i < m->sends.made; i++) {
		struct sending *s = record_at(&m->sends, i);
		if (!s || s->op != op)
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
		rc = error_set(
			-EINVAL,
			"tern_op_cancel() was given no handle; what has none is taken back by "
			"its id");
	if (rc)
		return rc;
	int sends = send_cancel_of(msg_of(t), op, &found),
	    recvs = recv_cancel_of(msg_of(t), op, &found);
	if (!found)
		return error_set(-EALREADY,
				 "the handle has no send and no receive that is not complete");
	return sends ? sends : recvs;
}

static void on_send_cancel(tern *t, const tern_msg *msg)
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

void send_register(struct endpoint *e)
{
	layer_on(e, MSG_CANCEL, on_send_cancel);
	role_set(MSG_CANCEL, ROLE_SEND);
}
