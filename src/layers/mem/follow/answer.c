/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the reply class besides the plain reply: a put with a reply, of any length, and a
 * message to any rank from the program.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/wait.h"
#include "mem/mem.h"

/* -- A put with a reply --------------------------------------------------------------------- */

static int answer_check(struct mem *m, const tern_msg *msg, const tern_long *what)
{
	int rc = rules_reply(m->e, msg, what->id, what->n, 0);
	if (rc || !what->len)
		return rc;
	if (m->e->item)
		return error_set(-ENOTSUP,
				 "a put with a reply to a posted item from rank %u, which is "
				 "answered with words alone",
				 tern_msg_src(msg));
	if (tern_addr_rank(what->dst) != tern_msg_src(msg))
		return error_set(
			-EINVAL,
			"a put with a reply to rank %u was given an address of rank %u: it goes to "
			"whoever sent the request",
			tern_msg_src(msg), tern_addr_rank(what->dst));
	return mem_check(m, what->dst, what->len, "a put with a reply");
}

/*
 * Where nobody is told when the source may be changed, it may be on return: what does not leave at
 * once is copied. The memory is had before the first piece leaves, so that a call that fails has
 * sent nothing; pages that are not written to cost nothing.
 */
static int answer_copy(const tern_long *what, char **copy)
{
	*copy = NULL;
	if (what->local || what->len <= TERN_PAYLOAD_MAX - sizeof(uint64_t))
		return 0; /* the first piece always leaves, with all of it */
	*copy = memory_new(1, what->len);
	return *copy ? 0
		     : error_set(-ENOMEM,
				 "a put of %zu bytes with a reply: no memory for a copy; give it a "
				 "handle for local completion",
				 what->len);
}

/*
 * The request passed the gate, so there are a line and a block for the first piece, and the record
 * is free. What does not leave at once closes the gate until it has.
 */
static int answer_far(struct mem *m, const tern_long *what, uint32_t rank)
{
	struct endpoint *e = m->e;
	struct peer *p = &e->site.peer[rank];
	if (e->inlet->peer != rank)
		return error_set(-ENOTSUP,
				 "a put with a reply to a worker of rank %u: only where the data "
				 "can be copied at once, into its heap",
				 rank);
	if (!m->follows.reply)
		m->follows.reply = memory_new(m->size, sizeof *m->follows.reply);
	if (!m->follows.reply)
		return error_set(-ENOMEM, "a put with a reply: no memory");
	if (p->lost)
		return p->net->ops->check(p->net, rank);
	struct follow *f = &m->follows.reply[rank];
	char *copy;
	int rc = answer_copy(what, &copy);
	if (rc)
		return rc;
	payload_forget_reply(e);
	e->t->current = tern_answered_(e->t);
	p->owing = true;
	follow_fill(f, what, rank, true);
	f->copy = copy;
	follow_begin(m, f);
	if (!p->owing)
		return 0;
	p->requests.accept = 0;
	if (copy)
		f->src = memcpy(copy, f->src, f->left);
	return 0;
}

int tern_put_reply_array(tern *t, const tern_msg *msg, const tern_long *what)
{
	struct mem *m = mem_of(given(t));
	int rc = answer_check(m, msg, what);
	if (rc)
		return rc;
	return !what->len || mem_reach(m, what->dst, what->len)
		       ? follow_now(t, msg, what, 0)
		       : answer_far(m, what, tern_msg_src(msg));
}

/* -- From the program, to any rank ----------------------------------------------------------- */

/*
 * A rank that has never sent a request to here does not look for replies from here: it is asked for
 * one. Its handler cannot send that, so a poll does.
 */
void on_invite(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	struct mem_peer *s = &m->peer[tern_msg_src(msg)];
	m->follows.invited += !s->invited;
	s->invited = true;
	mem_busy(m);
}

void on_invited(tern *t, const tern_msg *msg)
{
	(void)t, (void)msg; /* that it has come is all */
}

unsigned answer_invite(struct mem *m)
{
	unsigned sent = 0;
	library_hold(m->e);
	for (uint32_t r = 0; r < m->size; r++) {
		if (!m->peer[r].invited ||
		    layer_request(m->e, r, MEM_INVITED, NULL, 0, 0, NULL) == -EAGAIN)
			continue;
		m->peer[r].invited = false;
		m->follows.invited--;
		sent++;
	}
	library_release(m->e);
	mem_busy(m);
	return sent;
}

/* Behind a long reply, so that what goes to a rank in this class arrives in order. */
static bool answer_has_room(struct endpoint *e, void *dst)
{
	uint32_t rank = *(uint32_t *)dst;
	const struct peer *p = &e->site.peer[rank];
	return p->lost || (send_reply_expected(e, rank) && send_reply_ready(e, rank) && !p->owing);
}

static int answer_stop(struct endpoint *e, struct wait *w)
{
	int rc = wait_unreachable(e, w);
	if (!rc && held(e))
		rc = error_set(-EAGAIN,
			       "a message of the reply class to rank %u has no room, and under a "
			       "hold nothing is served",
			       w->whom - 1);
	return rc;
}

/*
 * Serves requests and replies while it waits, so that no rank waits for this one. Room comes when
 * the receiver has handled replies: their handlers send nothing.
 */
static int answer_room(struct endpoint *e, uint32_t dst)
{
	struct wait w = { .bounded = true,
			  .what = WAIT_ROOM,
			  .call = "a message of the reply class",
			  .way = "to",
			  .whom = dst + 1,
			  .lack = "ring full",
			  .stop = answer_stop };
	int rc = send_reachable(e, dst);
	if (!rc && !send_reply_expected(e, dst))
		rc = layer_request(e, dst, MEM_INVITE, NULL, 0, 0, NULL);
	return rc ? rc : wait_until(e, answer_has_room, &dst, &w);
}

int tern_reply_to_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	int rc = rules_rank(e, "tern_reply_to()");
	if (!rc)
		rc = rules_reply_to(e, dst, id, n);
	if (!rc)
		rc = answer_room(e, dst);
	if (rc)
		return rc;
	struct parcel p = { .bits = (uint64_t)id << TERN_ID_SHIFT | n, .n = n };
	if (n)
		memcpy(p.word, words, n * sizeof *words);
	return send_reply_to(e, dst, &p);
}
