/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data of a rendezvous. Where the receive is one piece of memory, the sender puts the data straight
 * into it, with one copy and in turn with other transfers; otherwise they go in messages, from
 * one layout to the other.
 */
#include <errno.h>

#include "base/error.h"
#include "mem/mem.h"
#include "msg/msg.h"

enum {
	PUTS_MOST = 64
}; /* parts that are put by themselves; more go as messages, which hold several */

/* -- At the receiver ------------------------------------------------------------------------ */

/* Where the sender may put the data itself; TERN_ADDR_NONE if it cannot. */
static tern_addr recv_lend(struct msg *m, struct receiving *r)
{
	tern *t = m->e->t;
	char *base = layout_whole(&r->layout);
	if (!base || !r->got.len)
		return TERN_ADDR_NONE;
	tern_addr a = mem_addr(mem_of(t), base);
	if (a != TERN_ADDR_NONE && mem_reach(mem_of(t), a, r->got.len))
		return a;
	if (r->got.len <= TERN_PAYLOAD_MAX) /* a message takes less time than the kernel does to
					       find the memory */
		return TERN_ADDR_NONE;
	r->lent = region_lend(mem_of(t), base, r->got.len);
	return r->lent;
}

void flow_clear(struct msg *m, struct receiving *r, uint64_t words[TELL_WORDS])
{
	tell_words(m, words, r->got.src, TELL_CLEAR, r->send_name, 0, r->got.id);
	words[3] = record_name(r);
	words[4] = recv_lend(m, r);
}

static struct receiving *recv_named(struct msg *m, const tern_msg *msg)
{
	struct receiving *r = record_named(&m->recvs, (uint32_t)tern_msg_arg(msg, 0));
	return r && r->state == TERN_STATE_IN_PROGRESS && r->got.src == tern_msg_src(msg) ? r
											  : NULL;
}

static void on_send_data(tern *t, const tern_msg *msg)
{
	struct receiving *r = recv_named(msg_of(t), msg);
	size_t len;
	const char *data = tern_msg_data(msg, &len);
	if (!r || len > r->due)
		return; /* nobody wants it any more */
	walk_scatter(&r->walk, data, len);
	r->due -= len;
}

static void on_send_fin(tern *t, const tern_msg *msg)
{
	struct receiving *r = recv_named(msg_of(t), msg);
	int why = -layer_error(tern_msg_arg(msg, 1));
	if (!r)
		return;
	recv_over(msg_of(t), r,
		  why ? error_set(-why, "rank %u could not send the data of message %#llx",
				  tern_msg_src(msg), (unsigned long long)r->got.id)
		      : 0);
}

/* -- At the sender ---------------------------------------------------------------------------- */

static int put_parts(struct msg *m, struct sending *s)
{
	const tern_part *from = layout_list(&s->layout);
	char *whole = layout_whole(&s->layout);
	if (whole)
		return tern_put_start(m->e->t, s->to, whole, s->layout.total, &s->moving);
	s->target = (tern_part){ .addr = s->to, .run = s->layout.total };
	return tern_put_parts_start(m->e->t, &s->target, 1, from, s->layout.parts, &s->moving);
}

/* The next bytes in a message: 0, 1 if there are more, or an error. */
static int data_send(struct msg *m, struct sending *s)
{
	char bytes[TERN_PAYLOAD_MAX];
	size_t left = s->layout.total - s->sent;
	size_t len = left < sizeof bytes ? left : sizeof bytes;
	uint64_t words[] = { s->recv_name, s->sent };
	struct walk w = s->walk;
	if (!len)
		return 0;
	walk_gather(&w, bytes, len);
	int rc = msg_try(m, s->node.rank, MSG_DATA, bytes, len, 2, words);
	if (rc)
		return rc;
	s->walk = w;
	s->sent += len;
	return s->sent < s->layout.total;
}

/* Carries a send on: 0 when all of it is there, 1 while not, or an error. */
static int flow_step(struct msg *m, struct sending *s)
{
	if (!s->started && s->layout.parts > PUTS_MOST)
		s->to = TERN_ADDR_NONE;
	if (s->to == TERN_ADDR_NONE)
		return data_send(m, s);
	if (!s->started && transfer_room(mem_of(m->e->t)) < 1)
		return 1; /* a put would wait for one, and run deferred functions in the middle of
			     our progress */
	if (!s->started) {
		s->started = true;
		int rc = put_parts(m, s);
		if (rc && !s->moving.error)
			s->moving.error = rc;
	}
	return s->moving.pending ? 1 : s->moving.error;
}

/* True when it is over. */
static bool flow_advance(struct msg *m, struct sending *s)
{
	int rc = flow_step(m, s);
	if (rc > 0 || rc == -EAGAIN)
		return false;
	uint64_t words[] = { s->recv_name, (uint64_t)-rc };
	int told = msg_try(m, s->node.rank, MSG_FIN, NULL, 0, 2, words);
	if (told == -EAGAIN)
		return false; /* data_send() has nothing more to do, nor has a put */
	send_over(m, s, rc ? rc : told);
	return true;
}

unsigned flow_progress(struct msg *m)
{
	unsigned done = 0;
	struct sending *last = m->moving_last;
	for (struct sending *s = m->moving_first, *next; s; s = next) {
		next = s == last ? NULL
				 : s->next; /* those that come meanwhile wait for the next poll */
		size_t sent = s->sent;
		uint32_t name = record_name(s);
		done += flow_advance(m, s) || (record_named(&m->sends, name) && s->sent != sent);
	}
	return done;
}

void flow_register(struct endpoint *e)
{
	layer_on(e, MSG_DATA, on_send_data);
	layer_on(e, MSG_FIN, on_send_fin);
}
