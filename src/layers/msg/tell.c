/* SPDX-License-Identifier: BSD-3-Clause */
/* What a receiver tells a sender; with whatever it tells go the cells that may be filled again. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "msg/msg.h"

void tell_words(struct msg *m, uint64_t words[TELL_WORDS], uint32_t to, enum tell kind,
		uint32_t name, int error, tern_id id)
{
	words[0] = kind | (uint64_t)name << META_NAME_SHIFT;
	words[1] = (uint64_t)-error;
	words[2] = m->peer[to].owed;
	words[3] = words[4] = 0;
	words[5] = id;
	m->peer[to].owed = 0;
}

void tell(struct msg *m, uint32_t to, const uint64_t words[TELL_WORDS])
{
	/*
	 * As in progress: while it waits for room, no deferred function runs that could keep it
	 * from being sent.
	 */
	m->e->inner++;
	int rc = layer_request(m->e, to, MSG_TELL, NULL, 0, TELL_WORDS, words);
	m->e->inner--;
	if (rc)
		m->peer[to].owed += (uint32_t)words[2]; /* the rank has left: nobody minds */
}

static const char *refusal(int why)
{
	return why == ENOMSG     ? "no receive was posted for it"
	       : why == EMSGSIZE ? "its length is not that of the receive it met"
				 : strerror(why);
}

static void refused(struct msg *m, const tern_msg *msg, struct sending *s)
{
	int why = -layer_error(tern_msg_word(msg, 1));
	int error = error_set(-why, "message %#llx to rank %u was refused there: %s",
			      (unsigned long long)tern_msg_word(msg, 5), tern_msg_src(msg),
			      refusal(why));
	if (s)
		send_over(m, s, error);
	else {
		poll_trouble(m->e, error); /* the send was over long ago: the next poll says it */
		error_warn("%s", tern_strerror(error));
	}
}

static void cleared(struct msg *m, const tern_msg *msg, struct sending *s)
{
	if (s->state != TERN_STATE_IN_USE)
		return;
	s->state = TERN_STATE_IN_PROGRESS;
	s->recv_name = (uint32_t)tern_msg_word(msg, 3);
	s->to = tern_msg_word(msg, 4);
	s->share = tern_msg_word(msg, 1);
	if (s->share >= s->layout.total) {
		s->share = s->layout.total;
		s->read = true;
	}
	list_append(&m->clear, &s->node);
	msg_busy(m);
}

static void told_of(struct msg *m, const tern_msg *msg, enum tell kind, struct sending *s)
{
	switch (kind) {
	case TELL_CLEAR:
		cleared(m, msg, s);
		break;
	case TELL_TAKEN:
	case TELL_READ:
		s->finned |= kind == TELL_TAKEN;
		flow_read(m, s, layer_error(tern_msg_word(msg, 1)));
		break;
	case TELL_CANCELLED:
		send_cancelled(m, s);
		break;
	case TELL_KEPT:
		if (s->asked)
			send_answer(s, send_matched(s));
		break;
	default:
		break;
	}
}

/* The RTS is no longer written down there: its place, and the sender's, are free. */
static void uncount(struct msg *m, struct sending *s)
{
	struct msg_peer *p = &m->peer[s->node.rank];
	if (!s->counted)
		return;
	s->counted = false;
	p->rts++;
	if (p->sends.first) {
		m->flush = true;
		msg_busy(m);
	}
}

static bool told_in_time(const struct sending *s, enum tell kind)
{
	return s->state == TERN_STATE_IN_USE || kind == TELL_KEPT ||
	       (kind == TELL_READ && s->state == TERN_STATE_IN_PROGRESS);
}

void on_send_status(tern *t, const tern_msg *msg)
{
	struct msg *m = msg_of(t);
	uint32_t from = tern_msg_src(msg);
	enum tell kind = (enum tell)(uint32_t)tern_msg_word(msg, 0);
	struct sending *s =
		record_named(&m->sends, (uint32_t)(tern_msg_word(msg, 0) >> META_NAME_SHIFT));
	m->peer[from].cells += (uint32_t)tern_msg_word(msg, 2);
	if (s && (s->node.rank != from || !told_in_time(s, kind)))
		s = NULL; /* of another, or long past that */
	if (s && kind != TELL_KEPT)
		uncount(m, s);
	if (kind == TELL_REFUSED)
		refused(m, msg, s);
	else if (s)
		told_of(m, msg, kind, s);
}
