/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lending. A far sender cannot take a buffer itself, so its owner takes one for it, writes down for
 * whom, and tells it which: from then on the buffer is as good as taken by the sender, and comes
 * back if that dies. The sender sends the bytes with the notice, or puts a long message there
 * first.
 *
 * A sender asks when it has nothing and something to send. If no buffer is free it waits in its
 * borrower, and is told when one is; so nothing waits in a handler, and everything is told from the
 * layer's progress, by requests, which arrive in the order in which they were written. Who has sent
 * lately is lent more than it asks for, so that in a stream nobody waits for an answer: as long as
 * half of the buffers stay free, or without that while no other rank has shown that it knows of the
 * pool. An unused lease is recalled when another sender needs the buffer, but not within
 * RECALL_AFTER, so that its holder has had time to use it. A cell of the spill is lent for a type,
 * but may be needed for any other: it is recalled from whoever has it.
 * Types that refuse lend nothing ahead: what is free there is free.
 *
 * A type can be closed while buffers are lent for short messages. Their memory goes back to the
 * heap at once; what still comes for them is dropped, as it would have been a moment before. The
 * type queue is draining until every buffer that was lent, and every cell of the spill, has
 * come back or its message has come: these messages may have numbers in the order of all types, and
 * their slots stand for those; and who gives a cell back names the generation for which it had it.
 * A buffer lent for a long message keeps the type open, as any does into which a message is
 * landing: its sender writes there.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "typed/typed.h"

enum { RECALL_AFTER = 1000000 /* ns */, LEND_MOST = LEASE_CACHE_MOST - LEASE_MSG_LEASES };

/* -- What is due ------------------------------------------------------------------------------- */

static void due_set(struct typed *y, struct type_queue *s, struct borrower *b, bool due)
{
	if (b->due == due)
		return;
	b->due = due;
	s->due += due ? 1 : -1u;
	y->due += due ? 1 : -1u;
	typed_busy(y);
}

/* Asks `b` for what it has not used, if it has not been asked since. */
static void recall_mark(struct typed *y, struct type_queue *s, struct borrower *b)
{
	b->recall = b->recalled = true;
	b->goal = 0;
	b->ahead = b->longs = false;
	due_set(y, s, b, true);
}

/*
 * It has kept something, which may be idle all the same later: a send need not end with a message.
 */
static void recall_again(struct borrower *b)
{
	b->since = clock_ns();
	b->longs = true; /* as far as is known */
	b->recalled = false;
}

/* Whether `b` may have something that is of no use to it, and has not been asked for it. */
static bool recall_may(const struct borrower *b)
{
	return !b->recalled && (b->lent || b->longs);
}

/*
 * Marks those who have something of a type that is idle; false if somebody may still be asked
 * later. `who` waits for it, if that is a borrower; what it has is too little for it, if it waits
 * to send a long message.
 */
static bool recall_buffers(struct typed *y, struct type_queue *s, struct borrower *who)
{
	uint64_t now = clock_ns();
	bool all = true;
	if (who && who->want_long && recall_may(who))
		recall_mark(y, s, who);
	for (uint32_t r = 0; r < y->e->t->size; r++) {
		struct borrower *b = &s->borrower[r];
		if (b == who || !recall_may(b))
			continue;
		if (now - b->since < RECALL_AFTER)
			all = false;
		else
			recall_mark(y, s, b);
	}
	return all;
}

static bool recall_cell(struct typed *y, const struct buf_slot *l, uint64_t now)
{
	struct type_queue *s = y->queue[l->type];
	struct borrower *b = s && s->borrower ? &s->borrower[l->src] : NULL;
	if (!b || !recall_may(b)) /* a type that is closed has asked for everything */
		return true;
	if (now - l->number < RECALL_AFTER)
		return false;
	recall_mark(y, s, b);
	return true;
}

/*
 * The same for cells of the spill, whatever they were lent for. A borrower's time will not do: it
 * may be lent something every moment, and have a cell in its lease cache all the while. All cells
 * are looked at, so not with every poll.
 */
static bool recall_cells(struct typed *y)
{
	uint64_t now = clock_ns();
	bool all = true, early = now - y->recalled < RECALL_AFTER;
	for (unsigned i = 0; i < SPILL_POOLS; i++) {
		const struct type_queue *of = y->queue[KEY_SPILL + i];
		if (!of || !bufpool_lends(&of->pool))
			continue;
		all = all && !early;
		for (uint32_t n = 0; n < of->pool.count && !early; n++)
			if (of->slot[n].state == BUF_SLOT_LENT &&
			    !recall_cell(y, &of->slot[n], now))
				all = false;
	}
	if (!early)
		y->recalled = now;
	return all;
}

/*
 * Asks back what could be of use to `who`, or to a sender who takes buffers himself; false if more
 * may be asked for later.
 */
static bool recall_idle(struct typed *y, struct type_queue *s, struct borrower *who)
{
	bool spills = s->flags & TERN_BUF_SPILL && (!who || who->want);
	bool all = recall_buffers(y, s, who);
	return (!spills || recall_cells(y)) && all;
}

/* -- Lending ----------------------------------------------------------------------------------- */

static void lend_check(struct typed *y, struct type_queue *of, uint32_t i, unsigned type)
{
	char *buffer = bufpool_buffer(&of->pool, i);
	if (!y->check || check_filled(buffer, of->pool.bytes))
		return;
	arrive_spoiled(y, type);
	check_fill(buffer, of->pool.bytes);
}

/* Takes a buffer of `of` for `rank`, and writes it onto the lease message. */
static bool lend_from(struct typed *y, struct type_queue *of, uint32_t rank, enum lease_place place,
		      struct lease_msg *msg)
{
	uint32_t i;
	if (!of || !bufpool_take(&of->pool, BUFPOOL_CLAIMED, rank, &i))
		return false;
	of->slot[i] = (struct buf_slot){ .queue = of,
					 .src = rank,
					 .type = msg->type,
					 .number = of->type < KEY_SPILL ? 0 : clock_ns(),
					 .state = place == LEASE_LONG ? BUF_SLOT_LANDING
								      : BUF_SLOT_LENT };
	bufpool_lend(&of->pool, 1);
	lend_check(y, of, i, msg->type);
	msg->lease[msg->count++] = lease_of(place, i);
	return true;
}

static bool lend_spill(struct typed *y, uint32_t rank, size_t len, struct lease_msg *msg)
{
	for (unsigned i = 0; i < SPILL_POOLS; i++)
		if (len <= spill_cell[i] &&
		    lend_from(y, y->queue[KEY_SPILL + i], rank, LEASE_SMALL + i, msg))
			return true;
	return false;
}

/* What stays free for others: half, once there are others. */
static uint32_t lend_reserve(const struct type_queue *s)
{
	return s->lookers > 1 ? (s->pool.count + 1) / 2 : 0;
}

/* As many more as its goal allows. */
static void lend_ahead(struct typed *y, struct type_queue *s, uint32_t rank, struct lease_msg *msg)
{
	const struct borrower *b = &s->borrower[rank];
	uint32_t most = b->goal > b->lent ? b->goal - b->lent : 0;
	uint32_t have = bufpool_free(&s->pool), reserve = lend_reserve(s);
	uint32_t spare = have > reserve ? have - reserve : 0;
	uint32_t batch =
		s->pool.count / 4 < LEASE_MSG_LEASES / 2 ? s->pool.count / 4 : LEASE_MSG_LEASES / 2;
	if (!msg->count && spare < batch)
		return; /* not one by one, while nobody waits */
	while (msg->count < LEASE_MSG_LEASES && msg->count < most && msg->count < spare)
		if (!lend_from(y, s, rank, LEASE_TYPE, msg))
			return;
}

static void lend_tell(struct typed *y, struct type_queue *s, uint32_t rank, unsigned id,
		      struct lease_msg *msg)
{
	uint64_t words[LEASE_MSG_WORDS];
	msg->generation = s->pool.generation;
	lease_msg_write(msg, words);
	/* There is room, and a rank that leaves meanwhile is forgotten with all it has. */
	(void)!layer_request(y->e, rank, id, NULL, 0, LEASE_MSG_WORDS, words);
}

/* Whether it has so little that it should be lent more, if it may. */
static bool lend_low(const struct borrower *b)
{
	return b->lent * 2 <= b->goal;
}

static void lend_short(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct borrower *b = &s->borrower[rank];
	struct lease_msg msg = { .type = (uint8_t)s->type };
	if (b->want && b->lent < LEASE_CACHE_MOST && !lend_from(y, s, rank, LEASE_TYPE, &msg)) {
		if (s->flags & TERN_BUF_REFUSE)
			msg.flags = LEASE_MSG_REFUSED;
		else if (s->flags & TERN_BUF_SPILL)
			lend_spill(y, rank, b->want - 1u, &msg);
	}
	if (b->ahead && msg.flags == 0)
		lend_ahead(y, s, rank, &msg);
	if (msg.count) {
		b->lent += msg.count;
		b->since = clock_ns();
		b->recalled = false;
	}
	b->ahead = b->ahead && s->lookers == 1 &&
		   lend_low(b); /* what is freed next is for nobody else */
	if (msg.count || msg.flags) {
		b->want = 0;
		lend_tell(y, s, rank, TYPED_LENT, &msg);
	}
}

static void lend_long(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct borrower *b = &s->borrower[rank];
	struct lease_msg msg = { .type = (uint8_t)s->type, .flags = LEASE_MSG_LONG };
	if (!lend_from(y, s, rank, LEASE_LONG, &msg)) {
		if (!(s->flags & TERN_BUF_REFUSE))
			return;
		msg.flags |= LEASE_MSG_REFUSED;
	}
	b->want_long = false;
	b->longs = true;
	b->since = clock_ns();
	b->recalled = false;
	lend_tell(y, s, rank, TYPED_LENT, &msg);
}

static void lend_recall(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct lease_msg msg = { .type = (uint8_t)s->type,
				 .flags = s->closing ? LEASE_MSG_CLOSED : 0 };
	s->borrower[rank].recall = false;
	lend_tell(y, s, rank, TYPED_RECALL, &msg);
}

static bool lend_can_tell(struct typed *y, uint32_t rank)
{
	return send_reachable(y->e, rank) == 0 && lane_ready(&y->e->t->lane[rank]);
}

/* Does what is due for one borrower, as far as that can be done. */
static void lend_serve(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct borrower *b = &s->borrower[rank];
	if (b->recall && lend_can_tell(y, rank))
		lend_recall(y, s, rank);
	if (b->want_long && lend_can_tell(y, rank))
		lend_long(y, s, rank);
	if ((b->want || b->ahead) && lend_can_tell(y, rank))
		lend_short(y, s, rank);
	if (b->want || b->want_long)
		recall_idle(y, s, b);
	due_set(y, s, b, b->recall || b->want || b->want_long || b->ahead);
}

/* Somebody who takes buffers himself has found none. */
static void lend_wanted(struct typed *y, struct type_queue *s)
{
	if (!bufpool_free(&s->pool) && !recall_idle(y, s, NULL))
		return;
	s->wanted = false;
	y->due--;
	typed_busy(y);
}

static void lend_queue(struct typed *y, struct type_queue *s)
{
	uint32_t size = y->e->t->size, first = s->next++ % size;
	if (s->wanted)
		lend_wanted(y, s);
	for (uint32_t n = 0; s->due && n < size;
	     n++) /* each begins with another, so that all have their turn */
		if (s->borrower[(first + n) % size].due)
			lend_serve(y, s, (first + n) % size);
}

unsigned lend_progress(struct typed *y)
{
	uint32_t before = y->due;
	if (!y->due || y->lending || in_handler(y->e))
		return 0;
	y->lending = true;
	for (unsigned i = 0; i < y->queues; i++)
		if (y->sorted[i]->borrower && (y->sorted[i]->due || y->sorted[i]->wanted))
			lend_queue(y, y->sorted[i]);
	for (struct type_queue *s = y->draining; s; s = s->spare)
		if (s->due)
			lend_queue(y, s);
	y->lending = false;
	return before != y->due;
}

/* -- What comes back --------------------------------------------------------------------------- */

void lend_used(struct typed *y, struct type_queue *s, uint32_t rank, bool counted)
{
	struct borrower *b = &s->borrower[rank];
	b->lent -= counted && b->lent;
	if (s->closing || s->flags & TERN_BUF_REFUSE || !lend_low(b))
		return;
	b->goal = b->goal < LEND_MOST / 2 ? (uint8_t)(b->goal * 2 + 1) : LEND_MOST;
	b->ahead = true;
	due_set(y, s, b, true);
}

/* The slot of what a lease message from `src` names; NULL if that rank has not borrowed it. */
static struct buf_slot *lease_slot(struct typed *y, struct type_queue *s, uint32_t lease,
				   uint32_t src)
{
	enum lease_place place = lease_place(lease);
	struct type_queue *of =
		lease_spilled(lease) ? y->queue[KEY_SPILL + (place - LEASE_SMALL)] : s;
	struct buf_slot *l =
		of && lease_index(lease) < of->pool.count ? &of->slot[lease_index(lease)] : NULL;
	enum buf_slot_state state = place == LEASE_LONG ? BUF_SLOT_LANDING : BUF_SLOT_LENT;
	return l && l->state == state && l->src == src && l->type == s->type ? l : NULL;
}

static void on_lease_returned(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct lease_msg msg;
	struct type_queue *s = lease_msg_read(m, &msg)
				       ? type_queue_of_generation(y, msg.type, msg.generation)
				       : NULL;
	if (!s || !s->borrower)
		return; /* an owner that was closed had no answer to wait for */
	struct borrower *b = &s->borrower[src];
	for (uint32_t i = 0; i < msg.count; i++) {
		struct buf_slot *l = lease_slot(y, s, msg.lease[i], src);
		if (!l) {
			typed_refuse(y, src, "that gives back what it did not have");
			return;
		}
		b->lent -= l->state == BUF_SLOT_LENT && b->lent;
		buf_slot_unlend(l);
		buf_slot_drop(l, y->check);
	}
	if (msg.count == LEASE_MSG_LEASES && b->lent)
		recall_mark(y, s, b); /* there may be more */
	else if (msg.flags & LEASE_MSG_KEPT)
		recall_again(b);
}

void lend_known(struct typed *y, struct type_queue *s, uint32_t rank)
{
	if (y->e->site.peer[rank].lost)
		return;
	s->lookers += !s->borrower[rank].knows;
	s->borrower[rank].knows = true;
}

static void on_lease_request(tern *t, const tern_msg *m)
{
	enum { CLAIM_WORDS = 3 };
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	uint64_t type = tern_msg_words(m) == CLAIM_WORDS ? tern_msg_arg(m, 0) : TERN_BUF_TYPES_MAX;
	struct type_queue *s = type < TERN_BUF_TYPES_MAX ? y->queue[type] : NULL;
	if (type >= TERN_BUF_TYPES_MAX || (s && !s->borrower)) {
		typed_refuse(y, src, "that asks for what cannot be lent");
		return;
	}
	if (!s || s->pool.generation != tern_msg_arg(m, 1)) {
		uint64_t words[LEASE_MSG_WORDS];
		lease_msg_write(&(struct lease_msg){ .type = (uint8_t)type,
						     .flags = LEASE_MSG_CLOSED,
						     .generation = (uint32_t)tern_msg_arg(m, 1) },
				words);
		layer_reply(y->e, TYPED_GONE, NULL, 0, LEASE_MSG_WORDS, words);
		return;
	}
	if (y->e->site.peer[src].lost)
		return; /* nobody would ever be told */
	struct borrower *b = &s->borrower[src];
	uint64_t len = tern_msg_arg(m, 2);
	if (len > TERN_PAYLOAD_MAX)
		b->want_long = true;
	else
		b->want = (uint16_t)(len + 1);
	due_set(y, s, b, true);
}

static void on_buffer_wanted(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint64_t type = tern_msg_words(m) ? tern_msg_arg(m, 0) : TERN_BUF_TYPES_MAX;
	struct type_queue *s = type < TERN_BUF_TYPES_MAX ? y->queue[type] : NULL;
	if (!s || !s->borrower || s->wanted)
		return;
	s->wanted = true;
	y->due++;
	typed_busy(y);
}

/* -- The end of a generation, and of a rank ---------------------------------------------------- */

/* What is lent for short messages looks taken for the time of the shutting, or claimed again. */
static void lent_set(struct type_queue *s, enum bufpool_kind kind)
{
	for (uint32_t i = 0; i < s->pool.count; i++)
		if (s->slot[i].state == BUF_SLOT_LENT)
			bufpool_set(&s->pool, i, kind, s->slot[i].src);
}

bool lend_shut(struct typed *y, struct type_queue *s)
{
	if (!s->borrower)
		return bufpool_shut(&s->pool);
	lent_set(s, BUFPOOL_HELD);
	bool shut = bufpool_shut(&s->pool);
	if (shut)
		return true;
	lent_set(s, BUFPOOL_CLAIMED);
	for (uint32_t r = 0; r < y->e->t->size; r++) /* a buffer for a long message may be idle */
		if (!y->e->site.peer[r].lost && !layer_maps(y->e, r) && !s->borrower[r].recalled)
			recall_mark(y, s, &s->borrower[r]);
	return false;
}

void lend_closed(struct typed *y, struct type_queue *s)
{
	for (uint32_t r = 0; s->borrower && r < y->e->t->size; r++) {
		struct borrower *b = &s->borrower[r];
		b->want = 0;
		b->want_long = b->ahead = b->recall = false;
		if (b->knows && !layer_maps(y->e, r))
			recall_mark(y, s, b);
		else
			due_set(y, s, b, false);
	}
	y->due -= s->wanted;
	s->wanted = false;
	typed_busy(y);
}

bool lend_over(const struct typed *y, const struct type_queue *s)
{
	for (uint32_t r = 0; s->borrower && r < y->e->t->size; r++)
		if (s->borrower[r].lent) /* of the spill, perhaps, whose slots are not here */
			return false;
	for (uint32_t i = 0; i < s->pool.count; i++)
		if (s->slot[i].state != BUF_SLOT_NONE)
			return false;
	return !s->due;
}

static void type_queue_forget(struct typed *y, struct type_queue *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->pool.count; i++) {
		struct buf_slot *l = &s->slot[i];
		if (l->src != rank || !buf_slot_lent(l))
			continue;
		buf_slot_unlend(l);
		l->state = BUF_SLOT_NONE;
	}
	if (!s->borrower)
		return;
	due_set(y, s, &s->borrower[rank], false);
	s->lookers -= s->borrower[rank].knows;
	s->borrower[rank] = (struct borrower){ 0 };
}

void lend_forget(struct typed *y, uint32_t rank)
{
	for (unsigned i = 0; i < y->queues; i++)
		type_queue_forget(y, y->sorted[i], rank);
	for (struct type_queue *s = y->draining; s; s = s->spare)
		type_queue_forget(y, s, rank);
}

void lend_register(struct endpoint *e)
{
	layer_on(e, TYPED_CLAIM, on_lease_request);
	layer_on(e, TYPED_RETURNED, on_lease_returned);
	layer_on(e, TYPED_RETURN, on_lease_returned);
	layer_on(e, TYPED_WANTED, on_buffer_wanted);
}
