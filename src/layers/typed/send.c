/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. A try does everything that can be done without waiting, or nothing: it finds the pool,
 * sees that there is room for the notice, and takes a buffer, in this order, so that from then on
 * nothing can fail but what ends the receiver. A call that may wait tries again after serving what
 * has arrived.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/wait.h"
#include "typed/send.h"

static int send_find(struct typed *y, struct sending *s)
{
	int rc = s->type < TERN_BUF_TYPES_MAX ? target_find(y, s->rank, s->type, &s->target)
					      : -ENXIO;
	if (rc == -ENXIO)
		return error_set(
			-ENXIO,
			"a message of type %u was sent to rank %u, which has set no buffers aside "
			"for that: it calls tern_buf_alloc() first",
			s->type, s->rank);
	if (rc == -EAGAIN)
		return sending_later(s, "it is being asked for its buffers");
	return rc;
}

static bool send_take(struct typed *y, struct sending *s, struct target *where, unsigned key)
{
	if (!bufpool_take(&where->pool, y->e->t->rank, &s->claim))
		return false;
	s->where = where;
	s->notice.index = s->claim.index;
	s->notice.key = (uint16_t)key;
	return true;
}

/* A cell of the spill: a small one if that will do and one is free, else a large one. */
static int send_spill(struct typed *y, struct sending *s)
{
	for (unsigned i = 0; i < SPILL_POOLS; i++) {
		struct target *spill;
		int rc = target_find(y, s->rank, KEY_SPILL + i, &spill);
		if (rc == -ENXIO)
			continue; /* it has none of those */
		if (rc)
			return rc == -EAGAIN ? sending_later(s, "it is being asked for its spill")
					     : rc;
		if (s->len > spill->pool.bytes)
			continue;
		if (send_take(y, s, spill, KEY_SPILL + i))
			return 0;
	}
	return sending_later(s, "its spill is full too");
}

int sending_full(const struct sending *s)
{
	return error_set(-ENOBUFS,
			 "rank %u has no buffer free for type %u, which refuses messages then",
			 s->rank, s->type);
}

int sending_too_long(const struct sending *s)
{
	return error_set(
		-EMSGSIZE,
		"%zu bytes were sent to rank %u, whose buffers for type %u are shorter: the "
		"first it set aside have %zu",
		s->len, s->rank, s->type, s->target->pool.bytes);
}

/* Takes a buffer of the type, from any of its pools: -ENOBUFS without a sentence if none is free.
 */
static int send_buffer(struct typed *y, struct sending *s)
{
	struct target *to = s->target;
	bool fits = false;
	unsigned key = s->type;
	for (unsigned n = 0; n <= TERN_BUF_MORE_MAX; n++) {
		if (s->len <= to->pool.bytes && send_take(y, s, to, key))
			return 0;
		fits |= s->len <= to->pool.bytes;
		key = bufpool_more(&to->pool);
		if (key < KEY_MORE || key >= KEYS)
			break;
		int rc = target_find(y, s->rank, key, &to);
		if (rc)
			return rc == -EAGAIN || rc == -ENXIO
				       ? sending_later(s, "it is being asked for its buffers")
				       : rc;
	}
	return fits ? -ENOBUFS : sending_too_long(s);
}

/* Takes a buffer, by whatever the type's policy allows. */
static int send_place(struct typed *y, struct sending *s)
{
	struct target *to = s->target;
	int rc = send_buffer(y, s);
	if (rc != -ENOBUFS)
		return rc;
	atomic_thread_fence(memory_order_acquire); /* released in pool_shut(): why none is free */
	if (!bufpool_open(&to->pool))
		return sending_later(s, "it has just closed the type");
	if (to->flags & TERN_BUF_REFUSE)
		return sending_full(s);
	if (to->flags & TERN_BUF_SPILL && s->len <= SPILL_MOST)
		return send_spill(y, s);
	return sending_later(s, "no buffer of the type is free");
}

void sending_number(struct sending *s)
{
	struct notice *n = &s->notice;
	n->type = (uint8_t)s->type;
	n->generation = s->target->pool.generation;
	n->len = s->len;
	n->order = s->target->flags & ORDERED;
	n->number = (*s->target->counter)++;
}

static int send_short(struct typed *y, struct sending *s, char *buffer)
{
	uint64_t words[NOTICE_WORDS];
	if (s->len)
		memcpy(buffer, s->data, s->len);
	sending_number(s);
	notice_write(&s->notice, words);
	/* There is room, and it was reachable: nothing has been served since. */
	return layer_request(y->e, s->rank, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words);
}

int sending_start(struct typed *y, struct sending *s, tern_addr at, const char *landed)
{
	struct outgoing *o = s->outgoing;
	*o = (struct outgoing){ .state = OUTGOING_STARTING,
				.rank = s->rank,
				.data = s->data,
				.landed = landed,
				.told = s->op,
				.sum = y->check ? check_sum(s->data, s->len) : 0 };
	int rc = tern_put_start(y->e->t, at, s->data, s->len, &o->op);
	if (!rc)
		return 0;
	o->state = OUTGOING_FREE;
	return rc == -EAGAIN ? sending_later(s, "too many transfers are under way") : rc;
}

void sending_moves(struct typed *y, struct sending *s)
{
	sending_number(s);
	s->outgoing->notice = s->notice;
	if (s->op)
		s->op->pending++;
	outgoing_moves(y, s->outgoing);
	outgoing_finish(y, s->outgoing);
}

static int send_long(struct typed *y, struct sending *s, char *buffer)
{
	tern_addr at = s->where->buffers + (tern_addr)(buffer - s->where->pool.buffer);
	struct bufpool taken =
		s->where->pool; /* starting may serve others, and what is known may change */
	bool checks = s->where->checks;
	int rc = sending_start(y, s, at, buffer);
	if (!rc) {
		sending_moves(y, s);
		return 0;
	}
	if (checks)
		check_fill(buffer, taken.bytes);
	bufpool_put(&taken, s->claim.at, s->claim.index);
	return rc;
}

static int send_try(struct typed *y, struct sending *s)
{
	struct endpoint *e = y->e;
	int rc = send_reachable(e, s->rank);
	if (!rc)
		rc = send_find(y, s);
	if (rc)
		return rc;
	if (s->far)
		return far_try(y, s);
	bool is_long = s->len > LONG_BYTES;
	s->outgoing = is_long ? outgoing_new(y) : NULL;
	if (is_long && !s->outgoing)
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	if (!lane_ready(&e->t->lane[s->rank]))
		return sending_later(s, "the ring to it is full");
	rc = send_place(y, s);
	if (rc)
		return rc;
	char *buffer = bufpool_buffer(&s->where->pool, s->notice.index);
	s->notice.spoiled = s->where->checks && !check_filled(buffer, s->where->pool.bytes);
	return is_long ? send_long(y, s, buffer) : send_short(y, s, buffer);
}

static int send_not_now(const struct sending *s)
{
	return error_set(-EAGAIN, "a message of type %u cannot be sent to rank %u now: %s", s->type,
			 s->rank, s->why);
}

static bool accept_over(struct endpoint *e, void *arg)
{
	struct sending *s = arg;
	s->rc = send_try(typed_of(e->t), s);
	return s->rc != -EAGAIN;
}

/* It may have left without a word, having never heard our knock: the next try tells. */
static int accept_stop(struct endpoint *e, struct wait *w)
{
	(void)w;
	lost_look(e);
	return 0;
}

/* Buffers are freed without a bell, so the wait for one naps. */
static int send_wait(struct endpoint *e, struct sending *s)
{
	struct wait w = { .bounded = true,
			  .call = "tern_buf_send",
			  .way = "to",
			  .whom = s->rank + 1,
			  .lack = "no free buffer",
			  .rule = "a tern_buf_send() that has to wait",
			  .stop = accept_stop };
	int rc = wait_until(e, accept_over, s, &w);
	return rc ? rc : s->rc;
}

static int send_accept(struct typed *y, struct sending *s)
{
	struct endpoint *e = y->e;
	if (accept_over(e, s))
		return s->rc;
	if (!(s->flags & TERN_BUF_NOWAIT))
		return send_wait(e, s);
	if (!held(e)) {
		poll_once(e, KINDS_BOTH);
		accept_over(e, s);
	}
	return s->rc == -EAGAIN ? send_not_now(s) : s->rc;
}

/* A handler has left a hold, and a far receiver's answers are not heard. */
static int send_leave(struct outgoing *o)
{
	o->forgotten = true;
	return error_set(
		-EDEADLK,
		"a handler has left a hold while a message of type %u moved to rank %u: it moves "
		"on after tern_release(), and its data must stay until then",
		o->notice.type, o->rank);
}

/*
 * Until `data` is free again. Where its own processor moves it, no other rank can delay that for
 * ever; a far receiver has to answer.
 */
static int send_complete(struct typed *y, const struct sending *s)
{
	struct wait l = { .bounded = true, .call = "tern_buf_send" };
	struct outgoing *o = s->outgoing;
	while (o->state != OUTGOING_OVER) {
		lost_look(y->e);
		if (!held(y->e))
			wait_step(y->e, &l);
		else if (s->far)
			return send_leave(o);
		else
			layers_progress(y->e); /* a handler has left a hold: nothing is served, but
						  the data moves on */
	}
	return outgoing_end(y, o);
}

static int send_check(struct typed *y, uint32_t rank, unsigned flags)
{
	int rc = rules_rank(y->e, "tern_buf_send()");
	if (!rc)
		rc = rules_program(y->e, "tern_buf_send()");
	if (!rc)
		rc = rules_destination(y->e, rank);
	if (!rc && flags & ~(unsigned)TERN_BUF_NOWAIT)
		rc = error_set(-EINVAL,
			       "tern_buf_send_start() was given flags %#x; it takes "
			       "TERN_BUF_NOWAIT",
			       flags);
	return rc;
}

/* To a rank whose memory is not mapped. */
static int send_far(struct typed *y, struct sending *s)
{
	int rc = s->len > TERN_PAYLOAD_MAX ? far_long_rule(y, s) : 0;
	far_listen(y, s->rank);
	s->far = true;
	if (!rc)
		rc = send_accept(y, s);
	far_end(s);
	return rc;
}

/*
 * The common case: a short message to where the last one went, whose next buffer is free. False,
 * and nothing has happened, if this is not it. A type that was closed has no word of that
 * generation.
 */
static inline bool send_quick(tern *t, uint32_t rank, unsigned type, const void *data, size_t len)
{
	struct typed *y = typed_of(t);
	struct target *to = y->recent;
	struct tern_lane *lane = &t->lane[rank];
	struct bufpool_claim c;
	if (TERN_UNLIKELY(rank >= t->reach || !to || to->name != target_name(rank, type) ||
			  len - 1 >= to->quick || y->e->site.peer[rank].lost ||
			  lane->tail >= lane->limit || !bufpool_take_next(&to->pool, t->rank, &c)))
		return false;
	memcpy(bufpool_buffer(&to->pool, c.index), data, len);
	tern_lane_write(lane, TERN_HANDLER_MAX + TYPED_ARRIVED, NOTICE_WORDS,
			(uint64_t)c.index << 32 | to->head, to->pool.generation, len,
			(*to->counter)++, 0, 0);
	if (TERN_UNLIKELY(tern_unheeded(lane)))
		tern_knock(t, lane);
	tern_look(t);
	return true;
}

static __attribute__((noinline)) int send_any(tern *t, struct sending s)
{
	INSIDE struct scope scope = scope_of_op(&t, s.op, "tern_buf_send_start");
	struct typed *y = typed_of(t);
	int rc = send_check(y, s.rank, s.flags);
	if (!rc)
		rc = layer_maps(y->e, s.rank) ? send_accept(y, &s) : send_far(y, &s);
	if (rc)
		return rc;
	y->recent = s.target;
	if (!s.op)
		return s.outgoing ? send_complete(y, &s) : 0;
	if (!s.outgoing && !s.far)
		op_over(y->e, s.op);
	return 0;
}

int tern_buf_send(tern *t, uint32_t rank, unsigned type, const void *data, size_t len)
{
	if (TERN_LIKELY(send_quick(t, rank, type, data, len)))
		return 0;
	return send_any(t,
			(struct sending){ .rank = rank, .type = type, .data = data, .len = len });
}

int tern_buf_send_start(tern *t, uint32_t rank, unsigned type, const void *data, size_t len,
			unsigned flags, tern_op *op)
{
	t = given(t);
	return send_any(t, (struct sending){ .rank = rank,
					     .type = type,
					     .data = data,
					     .len = len,
					     .flags = flags,
					     .op = op });
}
