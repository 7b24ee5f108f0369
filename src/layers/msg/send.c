/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/direct.h"
#include "msg/msg.h"

static uint64_t meta_of(size_t len, unsigned flags, uint32_t name)
{
	return len | (uint64_t)flags << META_FLAGS_SHIFT | (uint64_t)name << META_NAME_SHIFT;
}

/* -- Small messages ------------------------------------------------------------------------ */

/*
 * Sends a small message whole. In ready mode it needs no cells: it is taken at once, or discarded.
 */
static int eager_send(struct msg *m, uint32_t dst, tern_id id, const struct layout *l,
		      unsigned flags, uint32_t name)
{
	bool lies = l->total <= WORDS_MOST; /* in the words */
	uint64_t words[TERN_LINE_WORDS] = { id, meta_of(l->total, flags, name) };
	char bytes[TERN_PAYLOAD_MAX];
	const char *data = lies ? NULL : l->whole ? l->whole : bytes;
	uint32_t cells = flags & TERN_SEND_READY ? 0 : cells_of(l->total);
	if (lies || !l->whole)
		layout_gather(l, lies ? (char *)&words[2] : bytes);
	m->peer[dst].cells -= cells;
	int rc = layer_request(m->e, dst, lies ? MSG_WORDS : MSG_EAGER, data, l->total,
			       lies ? TERN_LINE_WORDS : 2, words);
	if (rc)
		m->peer[dst].cells += cells;
	return rc;
}

/*
 * Whether a message can go whole, and now: it is small, nothing is before it, and its receiver has
 * room.
 */
static bool eager_may(const struct msg *m, uint32_t dst, size_t len, uint32_t cells, unsigned flags)
{
	const struct msg_peer *p = &m->peer[dst];
	return len <= TERN_PAYLOAD_MAX && !(flags & TERN_SEND_RENDEZVOUS) && !p->sends.first &&
	       (flags & TERN_SEND_READY || cells <= p->cells);
}

/* -- The table, and the queue of those to be announced ----------------------------------------- */

static int send_new(struct msg *m, uint32_t dst, tern_id id, const struct layout *l, unsigned flags,
		    tern_op *op, struct sending **out)
{
	struct sending *s = record_take(&m->sends);
	if (!s)
		return msg_refuse(m, &m->sends, "send");
	s->node = (struct node){ .rank = dst, .id = id };
	s->state = TERN_STATE_IN_USE;
	s->flags = (uint8_t)flags;
	s->layout = *l;
	s->op = op;
	*out = s;
	int rc = layout_keep(&s->layout, &m->copies);
	if (rc)
		record_give(&m->sends, s);
	return rc;
}

static void send_give(struct msg *m, struct sending *s)
{
	layout_release(&s->layout, &m->copies);
	record_give(&m->sends, s);
}

int send_matched(const struct sending *s)
{
	return error_set(-EALREADY, "the send of message %#llx to rank %u has been matched already",
			 (unsigned long long)s->node.id, s->node.rank);
}

void send_answer(struct sending *s, int outcome)
{
	*s->asked = outcome;
	s->asked = NULL;
}

void send_over(struct msg *m, struct sending *s, int error)
{
	tern_op *op = s->op;
	struct msg_peer *p = &m->peer[s->node.rank];
	if (s->asked)
		send_answer(s, error == -ECANCELED ? 0 : send_matched(s));
	if (!s->announced)
		list_remove(&s->node);
	else if (s->state == TERN_STATE_IN_PROGRESS && !s->finned)
		list_remove(&s->node);
	flow_withdraw(m, s);
	p->blocks -= s->block;
	send_give(m, s);
	if (op)
		op_end(m->e, op, error);
}

void send_cancelled(struct msg *m, struct sending *s)
{
	send_over(m, s,
		  error_set(-ECANCELED, "the send of message %#llx to rank %u was taken back",
			    (unsigned long long)s->node.id, s->node.rank));
}

/*
 * Asks the receiver whether `s` may be sent. It may be clear to send, or over, when this returns.
 */
static int rts_send(struct msg *m, struct sending *s)
{
	uint64_t words[] = { s->node.id, meta_of(0, s->flags, record_name(s)), s->layout.total,
			     flow_offer(m, s) };
	struct msg_peer *p = &m->peer[s->node.rank];
	s->announced = true;
	s->counted = !(s->flags & TERN_SEND_READY);
	p->rts -= s->counted;
	int rc = layer_request_now(m->e, s->node.rank, MSG_RTS, NULL, 0, 4, words);
	if (rc) {
		flow_withdraw(m, s);
		p->rts += s->counted;
		s->counted = s->announced = false;
	}
	return rc;
}

/* Announces the first of a queue; false if it must wait. */
static bool queue_announce(struct msg *m, struct msg_peer *p)
{
	struct sending *s = NODE_OF(p->sends.first, struct sending, node);
	if (!s || (!(s->flags & TERN_SEND_READY) && !p->rts))
		return false;
	list_remove(&s->node); /* before: what it leads to may go on with the queue */
	int rc = rts_send(m, s);
	if (rc)
		list_prepend(&p->sends, &s->node);
	if (rc == -EAGAIN)
		m->flush = true;
	else if (rc)
		send_over(m, s, rc);
	return rc != -EAGAIN;
}

static void queue_flush(struct msg *m, uint32_t dst)
{
	while (queue_announce(m, &m->peer[dst]))
		;
	msg_busy(m);
}

void send_flush(struct msg *m)
{
	for (uint32_t r = 0; r < m->e->t->size; r++)
		if (m->peer[r].sends.first)
			queue_flush(m, r);
}

/* Half of the table is for what others ask for, in equal shares: the rest is the program's. */
static uint32_t blocks_share(const struct msg *m)
{
	uint32_t share = TERN_SENDS_MAX / 2 / m->e->t->size;
	return share > BLOCKS_LEAST ? share : BLOCKS_LEAST;
}

int send_for(struct msg *m, uint32_t dst, tern_id id, const struct layout *l)
{
	struct sending *s = NULL;
	if (m->peer[dst].blocks >= blocks_share(m))
		return -EAGAIN;
	int rc = send_new(m, dst, id, l, TERN_SEND_AUTO, NULL, &s);
	if (rc)
		return rc;
	s->block = true;
	m->peer[dst].blocks++;
	list_append(&m->peer[dst].sends,
		    &s->node); /* announced by the next poll: a handler sends no requests */
	m->flush = true;
	msg_busy(m);
	return 0;
}

/* -- Starting ---------------------------------------------------------------------------------- */

int send_check(struct msg *m, uint32_t dst, unsigned flags)
{
	const unsigned known = TERN_SEND_READY | TERN_SEND_RENDEZVOUS | TERN_SEND_SYNC;
	int rc = rules_rank(m->e, "a send");
	if (!rc)
		rc = rules_program(m->e, "a send");
	if (!rc && dst != TERN_RANK_NONE)
		rc = rules_destination(m->e, dst);
	if (!rc && (flags & ~known || (flags & TERN_SEND_READY && flags & TERN_SEND_RENDEZVOUS)))
		rc = error_set(-EINVAL,
			       "a send was given the flags %#x: unknown ones, or two modes", flags);
	return rc;
}

/* A send with an entry. The handle knows of it before its receiver can. */
static int send_tracked(struct msg *m, uint32_t dst, tern_id id, const struct layout *l,
			unsigned flags, tern_op *op)
{
	struct sending *s = NULL;
	bool whole = eager_may(m, dst, l->total, cells_of(l->total), flags);
	int rc = send_new(m, dst, id, l, flags & (TERN_SEND_READY | TERN_SEND_SYNC), op, &s);
	if (rc)
		return rc;
	s->announced = whole;
	uint32_t before = op->pending++;
	if (!whole) {
		list_append(&m->peer[dst].sends, &s->node);
		queue_flush(m, dst);
		return 0;
	}
	uint32_t name = record_name(s);
	s->sending = true;
	rc = eager_send(m, dst, id, l, s->flags, name);
	if (record_named(&m->sends, name)) /* or it is over, and its record another's, by now */
		s->sending = false;
	if (rc) {
		send_give(m, s);
		op_withdraw(m->e, op, before);
	}
	return rc;
}

/* `waits`: the caller waits until it is complete. */
static int send_begin(struct msg *m, uint32_t dst, tern_id id, const struct layout *l,
		      unsigned flags, tern_op *op, bool waits)
{
	int rc = send_check(m, dst, flags);
	if (rc)
		return rc;
	if (dst == TERN_RANK_NONE) {
		op_over(m->e, op);
		return 0;
	}
	if (flags & TERN_SEND_SYNC || !eager_may(m, dst, l->total, cells_of(l->total), flags)) {
		rc = waits ? rules_wait(m->e, "a send that has to wait for its receiver") : 0;
		return rc ? rc : send_tracked(m, dst, id, l, flags, op);
	}
	rc = eager_send(m, dst, id, l, flags & TERN_SEND_READY, 0);
	if (!rc)
		op_over(m->e, op);
	return rc;
}

/*
 * 33 to 48 bytes: a message of eight words, which the ring keeps whole. Where it has no room for
 * two lines the bytes go as a payload. As send_quick().
 */
static __attribute__((noinline)) bool send_eight(struct msg *m, uint32_t dst, tern_id id,
						 const void *data, size_t len, unsigned flags)
{
	tern *t = m->e->t;
	struct tern_lane *lane = &t->lane[dst];
	struct msg_peer *p = &m->peer[dst];
	uint32_t cells = !(flags & TERN_SEND_READY);
	uint64_t words[TERN_WORDS_MAX] = { id, meta_of(len, flags, 0) };
	if (len > EIGHT_MOST || p->cells < cells || p->sends.first) /* cost: flow status */
		return false;
	bytes_copy(&words[2], data, len);
	if (!tern_lane_double_(lane, TERN_HANDLER_MAX + MSG_WORDS, TERN_WORDS_MAX, words))
		return false;
	p->cells -= cells;
	layer_sent(t, lane);
	return true;
}

/*
 * The quick way of a small message in one piece, where nothing stands against it: false if it
 * must go the other way. That `reach` is not 0 says that this is the program.
 */
static inline bool send_quick(struct msg *m, uint32_t dst, tern_id id, const void *data, size_t len,
			      unsigned flags)
{
	if (TERN_UNLIKELY(dst >= m->e->t->reach || flags & ~(unsigned)TERN_SEND_READY))
		return false;
	if (TERN_UNLIKELY(len > WORDS_MOST))
		return send_eight(m, dst, id, data, len, flags);
	struct tern_lane *lane = &m->e->t->lane[dst];
	struct msg_peer *p = &m->peer[dst];
	uint32_t cells = !(flags & TERN_SEND_READY);
	tern_msg *line;
	if (TERN_UNLIKELY(p->cells < cells || p->sends.first || !layer_line(lane, &line)))
		return false;
	p->cells -= cells;
	line->word[0] = id;
	line->word[1] = meta_of(len, flags, 0);
	bytes_copy(&line->word[2], data, len);
	layer_line_send(lane, line, layer_bits(MSG_WORDS, TERN_LINE_WORDS));
	layer_sent(m->e->t, lane);
	return true;
}

static int send_start(struct msg *m, uint32_t dst, tern_id id, const struct layout *l,
		      unsigned flags, tern_op *op)
{
	tern_op own = TERN_OP;
	int rc = send_begin(m, dst, id, l, flags, op ? op : &own, !op);
	if (own.pending)
		return op_finish(m->e->t, op, &own, rc);
	return rc ? rc : own.error;
}

int tern_send_start(tern *t, uint32_t dst, tern_id id, const void *data, size_t len, unsigned flags,
		    tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct layout l = layout_block(data, len);
	if (!op || !send_quick(msg_of(t), dst, id, data, len, flags))
		return send_start(msg_of(t), dst, id, &l, flags, op);
	op_over(t->own, op);
	return 0;
}

int tern_send_parts_start(tern *t, uint32_t dst, tern_id id, const tern_part *parts, size_t n,
			  unsigned flags, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	struct layout l;
	int rc = layout_parts(&l, parts, n, op != NULL);
	return rc ? rc : send_start(msg_of(t), dst, id, &l, flags, op);
}

static __attribute__((noinline)) int send_slowly(struct msg *m, uint32_t dst, tern_id id,
						 const void *data, size_t len)
{
	INSIDE struct scope scope = scope_open(m->e->t);
	struct layout l = layout_block(data, len);
	return send_start(m, dst, id, &l, TERN_SEND_AUTO, NULL);
}

int tern_send(tern *t, uint32_t dst, tern_id id, const void *data, size_t len)
{
	struct msg *m = msg_of(t);
	return send_quick(m, dst, id, data, len, 0) ? 0 : send_slowly(m, dst, id, data, len);
}

/* -- Parts with an id each --------------------------------------------------------------------- */

/*
 * Lays the parts one after another, each behind its id and length; the bytes, or 0 if they do not
 * fit.
 */
static size_t each_pack(char *bytes, const tern_id *ids, const tern_part *parts, size_t n,
			uint32_t *cells)
{
	size_t used = 0;
	*cells = 0;
	for (size_t i = 0; i < n; i++) {
		struct layout l;
		if (layout_parts(&l, &parts[i], 1, true) || l.total > TERN_PAYLOAD_MAX ||
		    used + 2 * sizeof(uint64_t) + l.total > TERN_PAYLOAD_MAX)
			return 0;
		uint64_t head[2] = { ids[i], l.total };
		memcpy(bytes + used, head, sizeof head);
		layout_gather(&l, bytes + used + sizeof head);
		used += sizeof head + l.total;
		*cells += cells_of(l.total);
	}
	return used;
}

/* All parts in one message on the wire: 1 if it went, 0 if they must go one by one. */
static int each_at_once(struct msg *m, uint32_t dst, const tern_id *ids, const tern_part *parts,
			size_t n, unsigned flags)
{
	char bytes[TERN_PAYLOAD_MAX];
	uint32_t cells;
	if (flags & TERN_SEND_SYNC)
		return 0;
	size_t len = each_pack(bytes, ids, parts, n, &cells);
	if (!len || !eager_may(m, dst, len, cells, flags))
		return 0;
	uint64_t words[2] = { 0, meta_of(0, flags & TERN_SEND_READY, 0) };
	cells = flags & TERN_SEND_READY ? 0 : cells;
	m->peer[dst].cells -= cells;
	int rc = layer_request(m->e, dst, MSG_EACH, bytes, len, 2, words);
	m->peer[dst].cells += rc ? cells : 0;
	return rc ? rc : 1;
}

static int each_check(struct msg *m, uint32_t dst, const tern_part *parts, size_t n, unsigned flags)
{
	int rc = n <= TERN_PARTS_MAX
			 ? send_check(m, dst, flags)
			 : error_set(-EINVAL, "a message was given %zu parts; it may have %d", n,
				     TERN_PARTS_MAX);
	for (size_t i = 0; !rc && i < n; i++) {
		struct layout l;
		rc = layout_parts(&l, &parts[i], 1, true);
	}
	if (!rc && m->sends.used + n > TERN_SENDS_MAX)
		rc = error_set(-EAGAIN, "rank %u has %u sends, and %zu more would be too many",
			       m->e->t->rank, m->sends.used, n);
	return rc;
}

static int each_begin(struct msg *m, uint32_t dst, const tern_id *ids, const tern_part *parts,
		      size_t n, unsigned flags, tern_op *op)
{
	struct layout l;
	int rc = each_check(m, dst, parts, n, flags);
	if (rc)
		return rc;
	rc = dst == TERN_RANK_NONE ? 0 : each_at_once(m, dst, ids, parts, n, flags);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++) {
		int failed = layout_parts(&l, &parts[i], 1, true);
		if (!failed && rc)
			op_over(m->e, op);
		else if (!failed)
			failed = send_begin(m, dst, ids[i], &l, flags, op, false);
		if (failed)
			return failed;
	}
	return 0;
}

int tern_send_each_start(tern *t, uint32_t dst, const tern_id *ids, const tern_part *parts,
			 size_t n, unsigned flags, tern_op *op)
{
	INSIDE struct scope scope = scope_given_op(t, op);
	tern_op own = TERN_OP;
	int rc = op ? 0 : rules_wait(t->own, "a send without a handle");
	if (!rc)
		rc = each_begin(msg_of(t), dst, ids, parts, n, flags, op ? op : &own);
	return op_finish(t, op, &own, rc);
}
