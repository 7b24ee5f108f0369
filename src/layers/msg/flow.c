/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data of a rendezvous. Where the receive is one piece of memory, which the sender or its network
 * can write to, the sender puts the data straight into it, with one copy and in turn with other
 * transfers, and tells of the end (FIN). Otherwise they go in messages, from one layout to the
 * other, and the receiver knows by their length which is the last: RTS, CTS and data are all that
 * travels.
 *
 * Two ranks that share memory need less. The question names the source. Up to PULL_MOST bytes the
 * receiver reads by itself and says so (TELL_TAKEN): two messages instead of three. Of more, both
 * copy at once: the receiver says how many bytes the sender is to put (its share), and reads the
 * others itself. Each tells the other when it is done, by FIN and TELL_READ, and each side is over
 * when both are.
 */
#include <errno.h>

#include "base/error.h"
#include "mem/mem.h"
#include "msg/msg.h"

enum {
	PUTS_MOST = 64,    /* parts that are put by themselves; messages hold several of more */
	DATA_AT_ONCE = 16, /* messages of data that a poll hands to a network, of one transfer */
};

/* -- At the receiver ------------------------------------------------------------------------ */

/* Whether memory of the two ranks is moved by something else than messages. */
static bool flow_writes(const struct msg *m, uint32_t rank)
{
	return layer_maps(m->e, rank) || m->e->site.peer[rank].net->rma;
}

/* Where the sender may put the data itself; TERN_ADDR_NONE if it cannot. */
static tern_addr recv_lend(struct msg *m, struct receiving *r)
{
	tern *t = m->e->t;
	char *base = r->layout.whole;
	if (!base || !r->got.len || !flow_writes(m, r->got.src))
		return TERN_ADDR_NONE;
	tern_addr a = mem_addr_all(mem_of(t), base, r->got.len);
	if (a != TERN_ADDR_NONE)
		return a;
	if (r->got.len <= TERN_PAYLOAD_MAX) /* a message takes less time than the kernel does to
					       find the memory */
		return TERN_ADDR_NONE;
	r->lent = region_lend(mem_of(t), base, r->got.len);
	return r->lent;
}

/* Whether this rank can read the data without asking their sender. */
static bool recv_reads(struct msg *m, const struct receiving *r)
{
	struct mem *mem = mem_of(m->e->t);
	return r->source != TERN_ADDR_NONE && tern_addr_rank(r->source) == r->got.src &&
	       layer_maps(m->e, r->got.src) &&
	       (mem->single_copy || mem_reach(mem, r->source, r->got.len));
}

static void pull_begin(struct msg *m, struct receiving *r)
{
	r->pulls = r->pulling = true;
	r->pulled = 0;
	list_append(&m->pulls, &r->puller);
	msg_busy(m);
}

/* The sender brings whole pages, at least half of the data. */
static size_t recv_share(struct msg *m, struct receiving *r)
{
	enum { PAGE = 4096 };
	size_t len = r->got.len;
	if (!recv_reads(m, r))
		return len;
	pull_begin(m, r);
	return len - len / 2 / PAGE * PAGE;
}

/* Whether the receiver reads all of the data. */
static bool recv_pulls(struct msg *m, struct receiving *r)
{
	if (r->got.len > PULL_MOST || !r->layout.whole || !recv_reads(m, r))
		return false;
	r->share = 0;
	r->finned = true;
	pull_begin(m, r);
	return true;
}

bool flow_clear(struct msg *m, struct receiving *r, uint64_t words[TELL_WORDS])
{
	if (recv_pulls(m, r))
		return false;
	tell_words(m, words, r->got.src, TELL_CLEAR, r->send_name, 0, r->got.id);
	words[3] = record_name(r);
	words[4] = recv_lend(m, r);
	r->share = words[4] == TERN_ADDR_NONE ? r->got.len : recv_share(m, r);
	words[1] = r->share;
	return true;
}

static int pull_error(const struct receiving *r)
{
	return r->fin_error ? r->fin_error : r->pull.error;
}

/* Reads a slice of what the kernel can copy; other memory, and what it refuses, is got. */
static void pull_read(struct msg *m, struct receiving *r, size_t most)
{
	tern *t = m->e->t;
	size_t at = r->share + r->pulled, len = r->got.len - at;
	size_t slice = len < most ? len : most;
	char *to = r->layout.whole + at;
	tern_addr from = r->source + at;
	r->pulled += slice;
	r->pulls = slice < len;
	if (transfer_read(mem_of(t), to, from, slice))
		return;
	r->pulls = false;
	int rc = tern_get_start(t, to, from, len, &r->pull);
	if (rc && !r->pull.error)
		r->pull.error = rc;
}

/*
 * Carries on what the receiver reads, by at most so many bytes; true when its sender has been told
 * of the end.
 */
static bool pull_step(struct msg *m, struct receiving *r, size_t most)
{
	uint64_t words[TELL_WORDS];
	uint32_t src = r->got.src;
	if (r->pulls && (!most || transfer_room(mem_of(m->e->t)) < 1))
		return false; /* for want of room as a put, in flow_step() */
	if (r->pulls)
		pull_read(m, r, most);
	if (r->pulls || r->pull.pending)
		return false;
	tell_words(m, words, src, r->share ? TELL_READ : TELL_TAKEN, r->send_name, r->pull.error,
		   r->got.id);
	int rc = layer_request_now(m->e, src, MSG_TELL, NULL, 0, TELL_WORDS, words);
	if (rc)
		m->peer[src].owed += (uint32_t)words[2];
	return rc != -EAGAIN;
}

static unsigned pull_progress(struct msg *m)
{
	unsigned done = 0;
	size_t most = PULL_SLICE; /* of all together */
	for (struct node *n = m->pulls.first, *next; n; n = next) {
		struct receiving *r = NODE_OF(n, struct receiving, puller);
		next = n->next; /* only this function takes one out that is being read */
		size_t before = r->pulled;
		bool over = pull_step(m, r, most);
		most -= r->pulled - before;
		done += over || r->pulled != before;
		if (!over)
			continue;
		list_remove(&r->puller);
		r->pulling = false;
		if (r->finned)
			recv_over(m, r, pull_error(r));
	}
	return done;
}

static struct receiving *recv_named(struct msg *m, const tern_msg *msg)
{
	struct receiving *r = record_named(&m->recvs, (uint32_t)tern_msg_word(msg, 0));
	return r && r->state == TERN_STATE_IN_PROGRESS && r->got.src == tern_msg_src(msg) ? r
											  : NULL;
}

void on_send_data(tern *t, const tern_msg *msg)
{
	struct receiving *r = recv_named(msg_of(t), msg);
	size_t len;
	const char *data = tern_msg_data(msg, &len);
	if (!r || len > r->due)
		return; /* nobody wants it any more */
	if (r->due == r->got.len)
		layout_walk(&r->layout, &r->walk);
	parts_copy(&r->walk, (char *)(uintptr_t)data, len, false);
	r->due -= len;
	if (!r->due)
		recv_over(msg_of(t), r, 0);
}

void on_send_fin(tern *t, const tern_msg *msg)
{
	struct receiving *r = recv_named(msg_of(t), msg);
	int why = -layer_error(tern_msg_word(msg, 1));
	if (!r)
		return;
	r->finned = true;
	r->fin_error = why ? error_set(-why, "rank %u could not send the data of message %#llx",
				       tern_msg_src(msg), (unsigned long long)r->got.id)
			   : 0;
	if (!r->pulling)
		recv_over(msg_of(t), r, pull_error(r));
}

/* -- At the sender ---------------------------------------------------------------------------- */

tern_addr flow_offer(struct msg *m, struct sending *s)
{
	struct mem *mem = mem_of(m->e->t);
	char *base = s->layout.whole;
	uint32_t dst = s->node.rank;
	if (s->layout.total <= TERN_PAYLOAD_MAX || !base || dst == m->e->t->rank ||
	    !layer_maps(m->e, dst))
		return TERN_ADDR_NONE;
	tern_addr a = mem_addr_all(mem, base, s->layout.total);
	if (a != TERN_ADDR_NONE)
		return a;
	if (!mem->single_copy || m->offers == OFFERS_MOST)
		return TERN_ADDR_NONE;
	s->lent = region_lend(mem, base, s->layout.total);
	m->offers += s->lent != TERN_ADDR_NONE;
	return s->lent;
}

void flow_withdraw(struct msg *m, struct sending *s)
{
	if (s->lent == TERN_ADDR_NONE)
		return;
	region_unlend(mem_of(m->e->t), s->lent);
	s->lent = TERN_ADDR_NONE;
	m->offers--;
}

static int put_parts(struct msg *m, struct sending *s)
{
	const tern_part *from = layout_list(&s->layout);
	char *whole = s->layout.whole;
	if (whole)
		return tern_put_start(m->e->t, s->to, whole, s->share, &s->moving);
	const tern_part target = { .addr = s->to, .run = s->layout.total };
	return tern_put_parts_start(m->e->t, &target, 1, from, s->layout.parts, &s->moving);
}

/* The next bytes in a message: 0, 1 if there are more, or an error. */
static int data_send(struct msg *m, struct sending *s)
{
	char bytes[TERN_PAYLOAD_MAX], *whole = s->layout.whole;
	size_t left = s->layout.total - s->sent;
	size_t len = left < sizeof bytes ? left : sizeof bytes;
	uint64_t words[] = { s->recv_name, s->sent };
	if (!len)
		return 0;
	if (!s->sent)
		layout_walk(&s->layout, &s->walk);
	struct run_walk w = s->walk;
	if (!whole)
		parts_copy(&w, bytes, len, true);
	int rc = layer_request_now(m->e, s->node.rank, MSG_DATA, whole ? whole + s->sent : bytes,
				   len, 2, words);
	if (rc)
		return rc;
	s->walk = w;
	s->sent += len;
	return s->sent < s->layout.total;
}

static int data_step(struct msg *m, struct sending *s)
{
	int rc = 1, most = layer_maps(m->e, s->node.rank) ? 1 : DATA_AT_ONCE;
	for (int i = 0; i < most && rc > 0; i++)
		rc = data_send(m, s);
	return rc;
}

/* Whether the receiver knows from the data that there are no more. */
static bool data_tells(const struct sending *s, int error)
{
	return !error && s->to == TERN_ADDR_NONE && s->layout.total;
}

/* Carries a send on: 0 when all of it is there, 1 while not, or an error. */
static int flow_step(struct msg *m, struct sending *s)
{
	if (!s->started && s->layout.parts > PUTS_MOST)
		s->to = TERN_ADDR_NONE;
	if (s->to == TERN_ADDR_NONE)
		return data_step(m, s);
	if (!s->started && transfer_room(mem_of(m->e->t)) < 1)
		return 1; /* a put would wait for one, and run deferred functions in the middle of
			     our progress */
	if (!s->started) {
		s->started = true;
		int rc = put_parts(m, s);
		if (rc)
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
	int told = data_tells(s, rc)
			   ? 0
			   : layer_request_now(m->e, s->node.rank, MSG_FIN, NULL, 0, 2, words);
	if (told == -EAGAIN)
		return false; /* data_send() has nothing more to do, nor has a put */
	s->finned = true;     /* it has nothing more to carry on */
	list_remove(&s->node);
	if (s->read || told)
		send_over(m, s, rc ? rc : told);
	return true;
}

void flow_read(struct msg *m, struct sending *s, int error)
{
	s->read = true;
	if (error && !s->moving.error)
		s->moving.error =
			error_set(error, "rank %u could not read the data of message %#llx",
				  s->node.rank, (unsigned long long)s->node.id);
	if (s->finned)
		send_over(m, s, s->moving.error);
}

unsigned flow_progress(struct msg *m)
{
	unsigned done = pull_progress(m);
	const struct node *last = m->clear.last;
	for (struct node *n = m->clear.first, *next; n; n = next) {
		struct sending *s = NODE_OF(n, struct sending, node);
		next = n == last ? NULL : n->next; /* others wait for the next poll */
		size_t sent = s->sent;
		uint32_t name = record_name(s);
		done += flow_advance(m, s) || (record_named(&m->sends, name) && s->sent != sent);
	}
	return done;
}
