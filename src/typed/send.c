/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. A try does everything that can be done without waiting, or nothing: it finds the rack, sees that
 * there is room for the notice, and takes a buffer, in this order, so that from then on nothing can fail
 * but what ends the receiver. A call that may wait tries again after serving what has arrived.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "core/send.h"
#include "core/wait.h"
#include "typed/typed.h"

struct sending {
	uint32_t rank;
	unsigned type;
	const char *data;
	size_t len;
	const char *why;       /* it cannot be sent yet */
	struct target *target; /* the type's rack */
	struct target *where;  /* the rack in which a buffer was taken: that, or the spill's */
	struct notice notice;
	struct outgoing *outgoing; /* of a long message that was accepted */
};

static int send_later(struct sending *s, const char *why)
{
	s->why = why; /* the sentence is made when somebody wants it */
	return -EAGAIN;
}

static int send_find(struct typed *y, struct sending *s)
{
	int rc = s->type < TERN_TYPES_MAX ? target_find(y, s->rank, s->type, &s->target) : -ENXIO;
	if (rc == -ENXIO)
		return error_set(
			-ENXIO,
			"a message of type %u was sent to rank %u, which has set no buffers aside for that: "
			"it calls tern_bufalloc() first",
			s->type, s->rank);
	if (rc == -EAGAIN)
		return send_later(s, "it is being asked for its buffers");
	if (!rc && s->len > s->target->rack.bytes)
		return error_set(-EMSGSIZE,
				 "%zu bytes were sent to rank %u, whose buffers for type %u have %zu", s->len,
				 s->rank, s->type, s->target->rack.bytes);
	return rc;
}

static bool send_take(struct typed *y, struct sending *s, struct target *where, unsigned key)
{
	if (!rack_take(&where->rack, RACK_CLAIMED, y->e->t->rank, &s->notice.index))
		return false;
	s->where = where;
	s->notice.key = (uint16_t)key;
	return true;
}

/* A cell of the spill: a small one if that will do and one is free, else a large one. */
static int send_spill(struct typed *y, struct sending *s)
{
	for (unsigned i = 0; i < SPILL_RACKS; i++) {
		struct target *spill;
		int rc = target_find(y, s->rank, KEY_SPILL + i, &spill);
		if (rc == -ENXIO)
			continue; /* it has none of those */
		if (rc)
			return rc == -EAGAIN ? send_later(s, "it is being asked for its spill") : rc;
		if (s->len <= spill->rack.bytes && send_take(y, s, spill, KEY_SPILL + i))
			return 0;
	}
	return send_later(s, "its spill is full too");
}

/* Takes a buffer, by whatever the type's policy allows. */
static int send_place(struct typed *y, struct sending *s)
{
	struct target *to = s->target;
	if (send_take(y, s, to, s->type))
		return 0;
	if (atomic_load_explicit(to->rack.now, memory_order_relaxed) != to->rack.turn)
		return send_later(s, "it has just closed the type");
	if (to->flags & TERN_BUF_REFUSE)
		return error_set(-ENOBUFS,
				 "rank %u has no buffer free for type %u, which refuses messages then",
				 s->rank, s->type);
	if (to->flags & TERN_BUF_SPILL && s->len <= SPILL_MOST)
		return send_spill(y, s);
	return send_later(s, "no buffer of the type is free");
}

/* From here on the message will arrive, or its receiver is lost: it gets its number. */
static void send_number(struct typed *y, struct sending *s)
{
	struct notice *n = &s->notice;
	n->type = (uint16_t)s->type;
	n->turn = s->target->rack.turn;
	n->len = s->len;
	n->order = s->target->flags & ORDERED;
	n->number = n->order & TERN_BUF_ORDER_ALL ? y->route[s->rank]->number++
		    : n->order                    ? s->target->number++
						  : 0;
}

static int send_short(struct typed *y, struct sending *s, char *buffer)
{
	uint64_t words[NOTICE_WORDS];
	if (s->len)
		memcpy(buffer, s->data, s->len);
	send_number(y, s);
	notice_write(&s->notice, words);
	/* There is room, and it was reachable: nothing has been served since. */
	return layer_request(y->e, s->rank, TYPED_ARRIVED, NULL, 0, NOTICE_WORDS, words);
}

static int send_long(struct typed *y, struct sending *s, char *buffer)
{
	struct outgoing *o = s->outgoing;
	tern_addr at = s->where->buffers + (tern_addr)(buffer - s->where->rack.buffer);
	struct rack taken = s->where->rack; /* starting may serve others, and what is known may change */
	bool checks = s->where->checks;
	*o = (struct outgoing){ .state = OUTGOING_STARTING,
				.use = o->use + 1,
				.rank = s->rank,
				.data = s->data,
				.landed = buffer,
				.sum = y->check ? check_sum(s->data, s->len) : 0 };
	int rc = tern_put_start(y->e->t, at, s->data, s->len, &o->op);
	if (rc) {
		if (checks)
			check_fill(buffer, taken.bytes);
		rack_give(&taken, s->notice.index);
		o->state = OUTGOING_FREE;
		return rc == -EAGAIN ? send_later(s, "too many transfers are under way") : rc;
	}
	send_number(y, s);
	o->notice = s->notice;
	outgoing_moves(y, o);
	outgoing_finish(y, o);
	return 0;
}

static int send_try(struct typed *y, struct sending *s)
{
	struct endpoint *e = y->e;
	int rc = send_reachable(e, s->rank);
	if (!rc)
		rc = send_find(y, s);
	if (rc)
		return rc;
	bool is_long = s->len > LONG_BYTES;
	s->outgoing = is_long ? outgoing_new(y) : NULL;
	if (is_long && !s->outgoing)
		return send_later(
			s,
			"TERN_BUFSENDS_MAX sends are under way, or tern_bufdone() was not asked about them");
	if (!lane_ready(&e->t->lane[s->rank]))
		return send_later(s, "the ring to it is full");
	rc = send_place(y, s);
	if (rc)
		return rc;
	char *buffer = rack_buffer(&s->where->rack, s->notice.index);
	s->notice.spoiled = s->where->checks && !check_filled(buffer, s->where->rack.bytes);
	return is_long ? send_long(y, s, buffer) : send_short(y, s, buffer);
}

static int send_not_now(const struct sending *s)
{
	return error_set(-EAGAIN, "a message of type %u cannot be sent to rank %u now: %s", s->type, s->rank,
			 s->why);
}

/* Buffers are freed without a bell, so the wait for one naps. */
static int send_accept(struct typed *y, struct sending *s, bool waits)
{
	struct endpoint *e = y->e;
	struct ladder l = { .bounded = true,
			    .call = "tern_bufsend",
			    .way = "to",
			    .whom = s->rank + 1,
			    .lack = "no free buffer" };
	int rc = send_try(y, s);
	if (rc == -EAGAIN && !waits && !held(e)) {
		poll_once(e, KINDS_BOTH);
		rc = send_try(y, s);
	}
	while (rc == -EAGAIN && waits) {
		rc = rules_wait(e, "a tern_bufsend() that has to wait");
		if (rc)
			return rc;
		if (poll_left(e))
			poll_lost(e); /* it may have left without a word, having never heard our knock */
		wait_step(e, &l);
		rc = send_try(y, s);
	}
	return rc == -EAGAIN ? send_not_now(s) : rc;
}

/* Until `data` is free again: the sender's own processor moves it, so no other rank can delay that for ever. */
static int send_complete(struct typed *y, struct outgoing *o)
{
	struct ladder l = { .bounded = true, .call = "tern_bufsend" };
	while (o->state != OUTGOING_OVER) {
		if (poll_left(y->e))
			poll_lost(y->e);
		if (held(y->e))
			layers_progress(
				y->e); /* a handler has left a hold: nothing is served, but the data moves on */
		else
			wait_step(y->e, &l);
	}
	return outgoing_end(y, o);
}

static int send_check(struct typed *y, uint32_t rank, unsigned flags)
{
	int rc = rules_program(y->e, "tern_bufsend()");
	if (!rc)
		rc = rules_destination(y->e, rank);
	if (!rc && flags & ~(unsigned)TERN_NOWAIT)
		rc = error_set(-EINVAL, "tern_bufsend() was given flags %#x; it takes TERN_NOWAIT", flags);
	if (!rc)
		rc = layer_needs_mapping(y->e, rank, "typed messages");
	return rc;
}

int tern_bufsend(tern *t, uint32_t rank, unsigned type, const void *data, size_t len, unsigned flags,
		 tern_mid *mid)
{
	INSIDE struct door door = door_open(t);
	struct typed *y = typed_of(t);
	struct sending s = { .rank = rank, .type = type, .data = data, .len = len };
	int rc = send_check(y, rank, flags);
	if (!rc)
		rc = send_accept(y, &s, !(flags & TERN_NOWAIT));
	if (rc)
		return rc;
	if (!mid)
		return s.outgoing ? send_complete(y, s.outgoing) : 0;
	*mid = outgoing_name(y, s.outgoing);
	return 0;
}
