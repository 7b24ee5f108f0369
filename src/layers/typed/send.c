/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. A try does everything that can be done without waiting, or nothing. To a near rank it
 * finds the pool, sees that there is room for the notice, and takes a buffer, in this order, so
 * that from then on nothing can fail but what ends the receiver. To a far rank it makes a record
 * and offers the message. A call that may wait tries again after serving what has arrived.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/wait.h"
#include "typed/typed.h"

/* A message on its way out of tern_buf_send_start(). */
struct sending {
	uint32_t rank;
	unsigned type;
	const char *data;
	size_t len;
	unsigned flags;        /* of tern_buf_send_start() */
	tern_op *op;           /* the program's, or NULL */
	tern_op own;           /* for the call itself, which waits for it without `op` */
	const char *why;       /* it cannot be sent yet */
	struct target *target; /* the type's pool */
	struct target *where;  /* the pool in which a buffer was taken: that, or the spill's */
	struct notice notice;
	struct outgoing *outgoing; /* its record, if it has one */
	int rc;                    /* of the last try */
};

static int sending_later(struct sending *s, const char *why)
{
	s->why = why; /* the sentence is made when somebody wants it */
	return -EAGAIN;
}

int send_refused(int code, uint32_t rank, unsigned type, size_t len, size_t bytes, const char *why)
{
	if (code == -EMSGSIZE)
		return error_set(code,
				 "%zu bytes were sent to rank %u, whose buffers for type %u are "
				 "shorter: the first it set aside have %zu",
				 len, rank, type, bytes);
	if (code == -ENXIO)
		why = "it has set no buffers aside for that type: it calls tern_buf_alloc() first";
	if (code == -ENOBUFS)
		why = "it has no buffer free, and the type refuses messages then";
	return error_set(code, "a message of type %u cannot be sent to rank %u now: %s", type, rank,
			 why ? why : "it has no buffer or memory for it");
}

static int sending_refused(const struct sending *s, int code)
{
	return send_refused(code, s->rank, s->type, s->len, s->target ? s->target->pool.bytes : 0,
			    s->why);
}

/* -- To a near rank: taking a buffer ----------------------------------------------------------- */

/* Takes a buffer from any of the type's pools, of which those of the spill are the last. */
static int send_place(struct typed *y, struct sending *s)
{
	struct target *to = s->target;
	unsigned flags = to->flags, key = s->type;
	uint32_t index;
	size_t most = 0;
	for (unsigned n = 0; n < KEYS; n++) {
		most = to->pool.bytes > most && s->len > most ? to->pool.bytes : most;
		if (s->len <= to->pool.bytes && bufpool_take(&to->pool, y->e->t->rank, &index)) {
			s->where = to;
			s->notice = (struct notice){ .type = (uint8_t)s->type,
						     .key = (uint16_t)key,
						     .index = index,
						     .generation = s->target->pool.generation,
						     .len = s->len };
			return 0;
		}
		key = atomic_load_explicit(to->pool.now + 1, memory_order_relaxed); /* the next */
		if (key < KEY_SPILL || key >= KEYS || (key < KEY_MORE && s->len > most))
			break;
		int rc = target_find(y, s->rank, key, &to);
		if (rc)
			return rc == -EAGAIN || rc == -ENXIO
				       ? sending_later(s, "it is being asked for its buffers")
				       : rc;
	}
	atomic_thread_fence(memory_order_acquire); /* released in pool_shut(): why none is free */
	if (!bufpool_open(&s->target->pool))
		return sending_later(s, "it has just closed the type");
	if (s->len > most || flags & TERN_BUF_REFUSE)
		return sending_refused(s, s->len > most ? -EMSGSIZE : -ENOBUFS);
	return sending_later(s, flags & TERN_BUF_SPILL ? "its buffers and its spill are full"
						       : "no buffer of the type is free");
}

/* -- To a near rank: filling and announcing it ------------------------------------------------- */

/* What becomes of the message is told to `told`; the record has a state when it goes on. */
static void send_record(struct typed *y, struct sending *s, tern_op *told)
{
	*s->outgoing = (struct outgoing){ .record = s->outgoing->record,
					  .rank = s->rank,
					  .notice = s->notice,
					  .told = told,
					  .data = s->data,
					  .sum = y->check ? check_sum(s->data, s->len) : 0 };
	told->pending++;
}

static int send_short(struct typed *y, struct sending *s, char *buffer)
{
	uint64_t words[NOTICE_WORDS];
	if (s->len)
		memcpy(buffer, s->data, s->len);
	memcpy(words, &s->notice, sizeof s->notice);
	/* There is room, and it was reachable: nothing has been served since. */
	return layer_request(y->e, s->rank, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words);
}

/*
 * Whether the call waits until the message has landed: without a handle, and where the type has
 * order and the owner chose no place, so that what is sent next to it is announced behind it.
 */
static bool send_waits(const struct sending *s)
{
	return !s->op || (s->outgoing && s->target && s->target->flags & TERN_BUF_ORDER);
}

static int send_near(struct typed *y, struct sending *s)
{
	int rc = target_find(y, s->rank, s->type, &s->target);
	if (rc == -EAGAIN)
		return sending_later(s, "it is being asked for its buffers");
	if (rc)
		return rc == -ENXIO ? sending_refused(s, rc) : rc;
	bool is_long = s->len > LONG_BYTES;
	if (!lane_ready(&y->e->t->lane[s->rank]))
		return sending_later(s, "the ring to it is full");
	s->outgoing = is_long ? record_take(&y->outgoing) : NULL;
	if (is_long && !s->outgoing)
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	rc = send_place(y, s);
	if (rc && is_long)
		record_give(&y->outgoing, s->outgoing);
	if (rc)
		return rc;
	char *buffer = bufpool_buffer(&s->where->pool, s->notice.index);
	if (s->where->flags & POOL_CHECKED && !check_filled(buffer, s->where->pool.bytes))
		s->notice.flags = NOTICE_SPOILED;
	if (!is_long)
		return send_short(y, s, buffer);
	send_record(y, s, send_waits(s) ? &s->own : s->op);
	s->outgoing->landed = buffer;
	outgoing_begin(y, s->outgoing,
		       s->where->buffers + (tern_addr)(buffer - s->where->pool.buffer));
	return 0;
}

/* -- To a far rank ----------------------------------------------------------------------------- */

/* Under a hold, so that the offer does not wait for room: a try does all or nothing. */
static int send_far(struct typed *y, struct sending *s)
{
	bool brings = s->len && s->len <= TERN_PAYLOAD_MAX;
	tern_op *told = s->op ? s->op : &s->own;
	uint32_t before = told->pending;
	uint64_t words[OFFER_WORDS];
	if (!s->op && held(y->e))
		return sending_later(s, "under a hold its answer would not be heard");
	s->outgoing = record_take(&y->outgoing);
	if (!s->outgoing)
		return sending_later(s, "TERN_BUF_SENDS_MAX sends are under way");
	s->notice = (struct notice){ .type = (uint8_t)s->type, .len = s->len };
	send_record(y, s, told);
	struct offer_msg w = { .id = record_name(s->outgoing),
			       .type = (uint8_t)s->type,
			       .now = s->flags & TERN_BUF_NOWAIT && !s->op,
			       .len = s->len };
	memcpy(words, &w, sizeof w);
	s->outgoing->state = OUTGOING_OFFERED; /* before: the answer may come while it is sent */
	int rc = layer_request_now(y->e, s->rank, TYPED_OFFER, brings ? s->data : NULL,
				   brings ? s->len : 0, OFFER_WORDS, words);
	if (rc) {
		record_give(&y->outgoing, s->outgoing);
		op_withdraw(y->e, told, before);
	}
	return rc == -EAGAIN ? sending_later(s, "there is no room for an offer") : rc;
}

/* -- Waiting ----------------------------------------------------------------------------------- */

static bool accept_over(struct endpoint *e, void *arg)
{
	struct sending *s = arg;
	struct typed *y = typed_of(e->t);
	s->rc = send_reachable(e, s->rank);
	if (!s->rc && s->type >= TERN_BUF_TYPES_MAX)
		s->rc = sending_refused(s, -ENXIO);
	if (!s->rc)
		s->rc = layer_maps(e, s->rank) ? send_near(y, s) : send_far(y, s);
	return s->rc != -EAGAIN;
}

/* Buffers are freed without a bell, so the wait for one naps. */
static struct wait send_wait(const struct sending *s)
{
	return (struct wait){ .bounded = true,
			      .call = "tern_buf_send",
			      .way = "to",
			      .whom = s->rank + 1,
			      .lack = "no free buffer",
			      .rule = "a tern_buf_send() that has to wait",
			      .stop = wait_unreachable };
}

static int send_accept(struct endpoint *e, struct sending *s)
{
	struct wait w = send_wait(s);
	if (!(s->flags & TERN_BUF_NOWAIT)) {
		int rc = wait_until(e, accept_over, s, &w);
		return rc ? rc : s->rc;
	}
	if (!accept_over(e, s) && !held(e)) {
		poll_once(e, KINDS_BOTH);
		accept_over(e, s);
	}
	return s->rc == -EAGAIN ? sending_refused(s, s->rc) : s->rc;
}

/*
 * Until `data` is free again. Under a hold nothing is served, but this rank's own processor moves
 * the data to a near rank. To a far one the hold was left by a handler, and begins after the wait.
 */
static int send_complete(struct endpoint *e, struct sending *s)
{
	struct wait w = send_wait(s);
	while (held(e) && s->own.pending && layer_maps(e, s->rank))
		layers_progress(e);
	wait_through(e, op_ended, &s->own, &w);
	return s->own.error;
}

/* -- The calls --------------------------------------------------------------------------------- */

static int send_check(struct endpoint *e, const struct sending *s)
{
	int rc = rules_rank(e, "tern_buf_send()");
	if (!rc)
		rc = rules_program(e, "tern_buf_send()");
	if (!rc)
		rc = rules_destination(e, s->rank);
	if (!rc && s->flags & ~(unsigned)TERN_BUF_NOWAIT)
		rc = error_set(-EINVAL,
			       "tern_buf_send_start() was given flags %#x; it takes "
			       "TERN_BUF_NOWAIT",
			       s->flags);
	return rc;
}

/*
 * The common case: a short message, whose next buffer is free. False, and nothing has happened, if
 * this is not it. A type that was closed has no word of that generation.
 */
static inline bool send_quick(tern *t, uint32_t rank, unsigned type, const void *data, size_t len)
{
	struct typed *y = typed_of(t);
	struct target *to = NULL;
	struct tern_lane *lane = &t->lane[rank];
	uint32_t index;
	if (TERN_LIKELY(rank < t->reach && type < TERN_BUF_TYPES_MAX && y->target[rank]))
		to = &y->target[rank][type];
	if (TERN_UNLIKELY(!to || len - 1 >= to->quick || y->e->site.peer[rank].lost ||
			  lane->tail >= lane->limit ||
			  !bufpool_take_next(&to->pool, t->rank, &index)))
		return false;
	memcpy(bufpool_buffer(&to->pool, index), data, len);
	/* The words of a notice whose key is its type. */
	tern_lane_write_(lane, TERN_HANDLER_MAX + TYPED_ARRIVED, NOTICE_WORDS,
			 (uint64_t)index << 32 | type << 16 | type, to->pool.generation, len, 0, 0,
			 0);
	if (TERN_UNLIKELY(tern_unheeded_(lane)))
		tern_knock_(t, lane);
	tern_look_(t);
	return true;
}

static __attribute__((noinline)) int send_any(tern *t, struct sending s)
{
	INSIDE struct scope scope = scope_of_op(&t, s.op, "tern_buf_send_start");
	struct endpoint *e = t->own;
	int rc = send_check(e, &s);
	if (!rc)
		rc = send_accept(e, &s);
	if (!rc && send_waits(&s))
		rc = send_complete(e, &s);
	if (!rc && s.op && (send_waits(&s) || !s.outgoing))
		op_over(e, s.op);
	return rc;
}

int tern_buf_send(tern *t, uint32_t rank, unsigned type, const void *data, size_t len)
{
	if (TERN_LIKELY(send_quick(t, rank, type, data, len)))
		return 0;
	return send_any(t, (struct sending){ rank, type, data, len, .op = NULL });
}

int tern_buf_send_start(tern *t, uint32_t rank, unsigned type, const void *data, size_t len,
			unsigned flags, tern_op *op)
{
	t = given(t);
	return send_any(t, (struct sending){ rank, type, data, len, flags, op, .rc = 0 });
}
