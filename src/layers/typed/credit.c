/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits, at the owner of a type. A far sender cannot take a buffer itself. A credit says that the
 * owner has reserved one for a message of at most TERN_PAYLOAD_MAX bytes. The message comes with
 * its bytes and uses one credit; which buffer that is, the owner decides when it comes.
 *
 * Each far sender that looks a type up gets a share: an equal part of half of the buffers, at least
 * one while that half lasts. What it uses of its share is given again, half a share at a time, when
 * buffers are free. The other half of the buffers is for everybody. A sender without a credit asks
 * for one buffer for one message, and the answer comes when there is one; a sender with a long
 * message asks for a place to put it, in the same way. Nothing that was given is asked back: a
 * sender returns by itself what it does not use (far.c), and gets a share again when it asks.
 *
 * Handlers only write down what is wanted. Answers are requests from the layer's progress, so they
 * arrive in the order in which they were sent: after the message that a type is closed nothing
 * comes for that use of it.
 */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "mem/mem.h"
#include "typed/typed.h"

enum { SHARE_MOST = 32 };

/*
 * There is room, and a rank that leaves meanwhile is forgotten with all it has. Held, because a
 * send serves what has arrived, and a handler may close the type that the caller is busy with.
 */
static void credit_tell(struct typed *y, uint32_t rank, const struct credit_msg *c)
{
	uint64_t words[CREDIT_WORDS];
	credit_msg_write(c, words);
	library_hold(y->e);
	(void)!layer_request(y->e, rank, TYPED_CREDIT, NULL, 0, CREDIT_WORDS, words);
	library_release(y->e);
}

static bool credit_can_tell(struct typed *y, uint32_t rank)
{
	return send_reachable(y->e, rank) == 0 && lane_ready(&y->e->t->lane[rank]);
}

/* -- Reserved buffers -------------------------------------------------------------------------- */

static bool reserve_from(struct type_queue *s, struct type_queue *of)
{
	struct buf_slot *l = of ? buf_slot_take(of, s->type, 0, BUF_SLOT_RESERVED) : NULL;
	if (!l)
		return false;
	l->next = s->reserve;
	s->reserve = l;
	return true;
}

/* What a credit is good for: messages that fit the buffers that the type had first. */
static size_t credit_bytes(const struct type_queue *s)
{
	return s->pool.bytes < TERN_PAYLOAD_MAX ? s->pool.bytes : TERN_PAYLOAD_MAX;
}

static bool reserve_buffer(struct type_queue *s)
{
	for (struct type_queue *m = s; m; m = m->more)
		if (credit_bytes(s) <= m->pool.bytes && reserve_from(s, m))
			return true;
	return false;
}

static bool reserve_cell(struct typed *y, struct type_queue *s)
{
	for (unsigned i = 0; i < SPILL_POOLS; i++)
		if (credit_bytes(s) <= spill_cell[i] && reserve_from(s, y->queue[KEY_SPILL + i]))
			return true;
	return false;
}

static struct buf_slot *reserve_pop(struct type_queue *s)
{
	struct buf_slot *l = s->reserve;
	s->reserve = l->next;
	return l;
}

static void reserve_drop(struct typed *y, struct type_queue *s, unsigned count)
{
	while (count-- && s->reserve)
		buf_slot_drop(y, reserve_pop(s));
}

/* -- What is given ----------------------------------------------------------------------------- */

static void due_set(struct typed *y, struct type_queue *s, struct far_sender *f, bool due)
{
	if (f->due == due)
		return;
	f->due = due;
	s->due += due ? 1 : -1u;
	y->due += due ? 1 : -1u;
	typed_busy(y);
}

/* Fills a share up, as far as buffers are free; how many that were. */
static unsigned share_fill(struct type_queue *s, struct far_sender *f)
{
	unsigned n = 0;
	while (f->credits < f->share && reserve_buffer(s)) {
		f->credits++;
		n++;
	}
	return n;
}

/* Not one by one: a stream costs one answer for half a share. */
static bool share_low(const struct far_sender *f)
{
	return f->share && !f->idle && f->credits * 2u <= f->share;
}

unsigned credit_known(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct far_sender *f = s->far ? &s->far[rank] : NULL;
	if (!f || f->knows || y->e->site.peer[rank].lost || layer_maps(y->e, rank))
		return 0;
	uint32_t half = s->pool.count / 2, part = half / s->fars;
	f->knows = true;
	f->share = (uint16_t)(part > SHARE_MOST ? SHARE_MOST : part ? part : 1);
	if (s->flags & TERN_BUF_REFUSE || s->shared + f->share > half)
		f->share = 0; /* what is free of a type that refuses is free for everybody */
	s->shared += f->share;
	return share_fill(s, f);
}

struct buf_slot *credit_use(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct far_sender *f = s->far ? &s->far[rank] : NULL;
	if (!f || !f->credits || !s->reserve)
		return NULL;
	f->credits--;
	if (share_low(f))
		due_set(y, s, f, true);
	return reserve_pop(s);
}

static void answer_short(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct far_sender *f = &s->far[rank];
	struct credit_msg c = { .type = (uint8_t)s->type, .generation = s->pool.generation };
	if (f->want_short) {
		if (reserve_buffer(s) || (s->flags & TERN_BUF_SPILL && reserve_cell(y, s))) {
			c.flags = CREDIT_ASKED;
			f->credits++;
			c.count++;
		} else if (s->flags & TERN_BUF_REFUSE) {
			c.flags = CREDIT_ASKED | CREDIT_REFUSED;
		}
		f->want_short = !c.flags;
	}
	if (share_low(f))
		c.count += share_fill(s, f);
	if (c.count || c.flags)
		credit_tell(y, rank, &c);
}

/* A place for a long message; the sender puts it there. */
static bool place_from(struct typed *y, struct type_queue *of, uint32_t rank, struct credit_msg *c)
{
	struct buf_slot *l = of ? buf_slot_take(of, c->type, rank, BUF_SLOT_LANDING) : NULL;
	if (!l)
		return false;
	c->key = (uint16_t)of->key;
	c->index = buf_slot_index(l);
	c->bytes = of->pool.bytes;
	c->value = mem_addr(mem_of(y->e->t), l->data);
	if (y->check && !check_filled(l->data, of->pool.bytes)) {
		arrive_spoiled(y, c->type);
		check_fill(l->data, of->pool.bytes);
	}
	return true;
}

static bool place_take(struct typed *y, struct type_queue *s, uint32_t rank, struct credit_msg *c)
{
	size_t len = s->far[rank].want_long;
	for (struct type_queue *m = s; m; m = m->more)
		if (len <= m->pool.bytes && place_from(y, m, rank, c))
			return true;
	for (unsigned i = 0; s->flags & TERN_BUF_SPILL && i < SPILL_POOLS; i++)
		if (len <= spill_cell[i] && place_from(y, y->queue[KEY_SPILL + i], rank, c))
			return true;
	return false;
}

static void answer_long(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct credit_msg c = { .type = (uint8_t)s->type,
				.generation = s->pool.generation,
				.flags = CREDIT_ASKED | CREDIT_LONG };
	if (place_take(y, s, rank, &c))
		c.count = 1;
	else if (s->flags & TERN_BUF_REFUSE)
		c.flags |= CREDIT_REFUSED;
	else
		return;
	s->far[rank].want_long = 0;
	credit_tell(y, rank, &c);
}

static void answer(struct typed *y, struct type_queue *s, uint32_t rank)
{
	struct far_sender *f = &s->far[rank];
	if (!credit_can_tell(y, rank))
		return;
	if (f->want_long)
		answer_long(y, s, rank);
	if (credit_can_tell(y, rank)) {
		answer_short(y, s, rank);
		due_set(y, s, f, f->want_short || f->want_long);
	}
}

/* -- The end of a type ------------------------------------------------------------------------- */

/* Tells who has not heard it that the type is closed; true when all have. */
static bool farewell(struct typed *y, struct type_queue *s)
{
	struct credit_msg c = { .type = (uint8_t)s->type,
				.flags = CREDIT_CLOSED,
				.generation = s->pool.generation };
	for (uint32_t r = 0; s->due && r < y->e->t->size; r++)
		if (s->far[r].due && credit_can_tell(y, r)) {
			due_set(y, s, &s->far[r], false);
			credit_tell(y, r, &c);
		}
	return !s->due;
}

static void farewells(struct typed *y)
{
	struct type_queue **at = &y->closed, *s;
	while ((s = *at)) {
		if (!farewell(y, s)) {
			at = &s->spare;
			continue;
		}
		*at = s->spare;
		type_queue_spare(y, s);
	}
}

/* It is kept until all far senders that know of it have heard. */
void credit_closed(struct typed *y, struct type_queue *s)
{
	reserve_drop(y, s, UINT32_MAX);
	for (uint32_t r = 0; s->far && r < y->e->t->size; r++)
		due_set(y, s, &s->far[r], s->far[r].knows);
	if (!s->due) {
		type_queue_spare(y, s);
		return;
	}
	s->spare = y->closed;
	y->closed = s;
}

int credit_open(struct typed *y, struct type_queue *s)
{
	s->fars = s->shared = s->due = s->turn = 0;
	s->reserve = NULL;
	s->far = NULL;
	for (uint32_t r = 0; r < y->e->t->size; r++)
		s->fars += !layer_maps(y->e, r);
	if (!s->fars || s->key >= KEY_SPILL)
		return 0;
	s->far = memory_new(y->e->t->size, sizeof *s->far);
	return s->far ? 0 : -ENOMEM;
}

/* -- Progress ---------------------------------------------------------------------------------- */

unsigned credit_progress(struct typed *y)
{
	uint32_t before = y->due, size = y->e->t->size;
	if (!y->due || y->answering || in_handler(y->e))
		return 0;
	y->answering = true;
	farewells(y);
	for (unsigned i = 0; i < y->queues; i++) {
		struct type_queue *s = y->sorted[i];
		uint32_t first = s->due ? s->turn++ : 0; /* so that all have their turn */
		for (uint32_t n = 0; s->due && n < size; n++)
			if (s->far[(first + n) % size].due)
				answer(y, s, (first + n) % size);
	}
	y->answering = false;
	return before != y->due;
}

void credit_freed(struct typed *y, struct type_queue *s)
{
	for (uint32_t r = 0; s->shared && r < y->e->t->size; r++)
		if (share_low(&s->far[r]))
			due_set(y, s, &s->far[r], true);
	credit_progress(y);
}

void credit_lost(struct typed *y, uint32_t rank)
{
	for (struct type_queue *s = y->closed; s; s = s->spare)
		if (s->far)
			due_set(y, s, &s->far[rank], false);
	for (unsigned i = 0; i < y->queues; i++) {
		struct type_queue *s = y->sorted[i];
		if (!s->far)
			continue;
		due_set(y, s, &s->far[rank], false);
		reserve_drop(y, s, s->far[rank].credits);
		s->shared -= s->far[rank].share;
		s->far[rank] = (struct far_sender){ 0 };
	}
}

/* -- What far senders say ---------------------------------------------------------------------- */

/* The type that a message is about, in the use that it still has. */
static struct type_queue *credit_queue(struct typed *y, const struct credit_msg *c)
{
	struct type_queue *s = y->queue[c->type];
	return s && s->far && s->pool.generation == c->generation ? s : NULL;
}

static void on_ask(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct credit_msg c;
	if (!credit_msg_read(m, &c)) {
		typed_refuse(y, src, "that asks for nothing");
		return;
	}
	struct type_queue *s = credit_queue(y, &c);
	if (!s || c.value > s->most) {
		uint64_t words[CREDIT_WORDS];
		c.flags = s ? CREDIT_ASKED | CREDIT_LONG | CREDIT_TOO_LONG : CREDIT_CLOSED;
		credit_msg_write(&c, words);
		layer_reply(y->e, TYPED_ANSWER, NULL, 0, CREDIT_WORDS, words);
		return;
	}
	if (y->e->site.peer[src].lost)
		return; /* nobody would ever be told */
	if (c.value > credit_bytes(s))
		s->far[src].want_long = c.value;
	else
		s->far[src].want_short = true;
	s->far[src].idle = false;
	due_set(y, s, &s->far[src], true);
}

/* Also of a type that is closed: its place may be a cell. */
static bool returned_long(struct typed *y, const struct credit_msg *c, uint32_t src)
{
	struct type_queue *of = c->key < KEYS ? y->queue[c->key] : NULL;
	struct buf_slot *l = of && c->index < of->pool.count ? &of->slot[c->index] : NULL;
	if (!l || l->type != c->type || l->state != BUF_SLOT_LANDING || l->src != src)
		return false;
	buf_slot_drop(y, l);
	return true;
}

static bool returned_short(struct typed *y, struct type_queue *s, const struct credit_msg *c,
			   uint32_t src)
{
	struct far_sender *f = &s->far[src];
	if (c->count > f->credits)
		return false;
	f->credits = (uint16_t)(f->credits - c->count);
	f->idle = true;
	reserve_drop(y, s, c->count);
	return true;
}

static void on_returned(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct credit_msg c;
	bool good = credit_msg_read(m, &c), is_long = good && c.flags & CREDIT_LONG;
	struct type_queue *s = good ? credit_queue(y, &c) : NULL;
	if (good && !s && !is_long)
		return; /* they went with their type */
	if (!good || !(is_long ? returned_long(y, &c, src) : returned_short(y, s, &c, src)))
		typed_refuse(y, src, "that gives back what it did not have");
}

void credit_register(struct endpoint *e)
{
	layer_on(e, TYPED_ASK, on_ask);
	layer_on(e, TYPED_RETURN, on_returned);
}
