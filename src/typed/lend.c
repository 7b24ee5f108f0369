/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lending. A far sender cannot take a buffer itself, so its owner takes one for it, writes down for whom, and
 * tells it which: from then on the buffer is as good as taken by the sender, and comes back if that dies. The
 * sender sends the bytes with the notice, or puts a long message there first.
 *
 * A sender asks when it has nothing and something to send. If no buffer is free it waits in its borrower, and
 * is told when one is; so nothing waits in a handler, and everything is told from the layer's turn, by
 * requests, which arrive in the order in which they were written. Who has sent lately is lent more than it asks
 * for, so that in a stream nobody waits for an answer: as long as half of the buffers stay free, or without that while no
 * other rank has shown that it knows of the rack. What is lent and not used is
 * asked back when another sender needs it, and never sooner than RECALL_AFTER after it was lent: whoever
 * waited for it has had the time to use it. A cell of the spill is lent for a type, but may be needed for any other: it is
 * asked back from whoever has it. Types that refuse lend nothing ahead: what is free there is free.
 *
 * A type can be closed while buffers are lent for short messages. Their memory goes back to the heap at once; what
 * still comes for them is dropped, as it would have been a moment before. The shelf stays in limbo until every
 * buffer that was lent, and every cell of the spill, has come back or its message has come: these messages may have
 * numbers in the order of all types, and their letters stand for those; and who gives a cell back names the turn for
 * which it had it. A buffer lent for a long message keeps the type open, as any does into which a message is landing:
 * its sender writes there.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/send.h"
#include "typed/typed.h"

enum { RECALL_AFTER = 1000000 /* ns */, LEND_MOST = HAND_MOST - SLIP_LOANS };

/* -- What is due ---------------------------------------------------------------------------------- */

static void due_set(struct typed *y, struct shelf *s, struct borrower *b, bool due)
{
	if (b->due == due)
		return;
	b->due = due;
	s->due += due ? 1 : -1u;
	y->due += due ? 1 : -1u;
	typed_busy(y);
}

/* Asks `b` for what it has not used, if it has not been asked since. */
static void recall_mark(struct typed *y, struct shelf *s, struct borrower *b)
{
	b->recall = b->recalled = true;
	b->goal = 0;
	b->ahead = b->longs = false;
	due_set(y, s, b, true);
}

/* It has kept something, which may be idle all the same later: a send need not end with a message. */
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
 * Marks those who have something of a type that is idle; false if somebody may still be asked later. `who` waits for it, if
 * that is a borrower; what it has is too little for it, if it waits to send a long message.
 */
static bool recall_buffers(struct typed *y, struct shelf *s, struct borrower *who)
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

static bool recall_cell(struct typed *y, const struct letter *l, uint64_t now)
{
	struct shelf *s = y->shelf[l->type];
	struct borrower *b = s && s->borrower ? &s->borrower[l->src] : NULL;
	if (!b || !recall_may(b)) /* a type that is closed has asked for everything */
		return true;
	if (now - l->number < RECALL_AFTER)
		return false;
	recall_mark(y, s, b);
	return true;
}

/*
 * The same for cells of the spill, whatever they were lent for. A borrower's time will not do: it may be lent something every
 * moment, and have a cell in its hand all the while. All cells are looked at, so not with every poll.
 */
static bool recall_cells(struct typed *y)
{
	uint64_t now = clock_ns();
	bool all = true, early = now - y->recalled < RECALL_AFTER;
	for (unsigned i = 0; i < SPILL_RACKS; i++) {
		const struct shelf *of = y->shelf[KEY_SPILL + i];
		if (!of || !rack_lends(&of->rack))
			continue;
		all = all && !early;
		for (uint32_t n = 0; n < of->rack.count && !early; n++)
			if (of->letter[n].state == LETTER_LENT && !recall_cell(y, &of->letter[n], now))
				all = false;
	}
	if (!early)
		y->recalled = now;
	return all;
}

/* Asks back what could be of use to `who`, or to a sender who takes buffers himself; false if more may be asked for later. */
static bool recall_idle(struct typed *y, struct shelf *s, struct borrower *who)
{
	bool spills = s->flags & TERN_BUF_SPILL && (!who || who->want);
	bool all = recall_buffers(y, s, who);
	return (!spills || recall_cells(y)) && all;
}

/* -- Lending ---------------------------------------------------------------------------------------- */

static void lend_check(struct typed *y, struct shelf *of, uint32_t i, unsigned type)
{
	char *buffer = rack_buffer(&of->rack, i);
	if (!y->check || check_filled(buffer, of->rack.bytes))
		return;
	arrive_spoiled(y, type);
	check_fill(buffer, of->rack.bytes);
}

/* Takes a buffer of `of` for `rank`, and writes it onto the slip. */
static bool lend_from(struct typed *y, struct shelf *of, uint32_t rank, enum loan_place place,
		      struct slip *slip)
{
	uint32_t i;
	if (!of || !rack_take(&of->rack, RACK_CLAIMED, rank, &i))
		return false;
	of->letter[i] = (struct letter){ .shelf = of,
					 .src = rank,
					 .type = slip->type,
					 .number = of->type < KEY_SPILL ? 0 : clock_ns(),
					 .state = place == LOAN_LONG ? LETTER_LANDING : LETTER_LENT };
	rack_lend(&of->rack, 1);
	lend_check(y, of, i, slip->type);
	slip->loan[slip->count++] = loan_of(place, i);
	return true;
}

static bool lend_spill(struct typed *y, uint32_t rank, size_t len, struct slip *slip)
{
	for (unsigned i = 0; i < SPILL_RACKS; i++)
		if (len <= spill_cell[i] && lend_from(y, y->shelf[KEY_SPILL + i], rank, LOAN_SMALL + i, slip))
			return true;
	return false;
}

/* What stays free for others: half, once there are others. */
static uint32_t lend_reserve(const struct shelf *s)
{
	return s->lookers > 1 ? (s->rack.count + 1) / 2 : 0;
}

/* As many more as its goal allows. */
static void lend_ahead(struct typed *y, struct shelf *s, uint32_t rank, struct slip *slip)
{
	const struct borrower *b = &s->borrower[rank];
	uint32_t most = b->goal > b->lent ? b->goal - b->lent : 0;
	uint32_t have = rack_free(&s->rack), reserve = lend_reserve(s);
	uint32_t spare = have > reserve ? have - reserve : 0;
	uint32_t batch = s->rack.count / 4 < SLIP_LOANS / 2 ? s->rack.count / 4 : SLIP_LOANS / 2;
	if (!slip->count && spare < batch)
		return; /* not one by one, while nobody waits */
	while (slip->count < SLIP_LOANS && slip->count < most && slip->count < spare)
		if (!lend_from(y, s, rank, LOAN_TYPE, slip))
			return;
}

static void lend_tell(struct typed *y, struct shelf *s, uint32_t rank, unsigned id, struct slip *slip)
{
	uint64_t words[SLIP_WORDS];
	slip->turn = s->rack.turn;
	slip_write(slip, words);
	/* There is room, and a rank that leaves meanwhile is forgotten with all it has. */
	(void)!layer_request(y->e, rank, id, NULL, 0, SLIP_WORDS, words);
}

/* Whether it has so little that it should be lent more, if it may. */
static bool lend_low(const struct borrower *b)
{
	return b->lent * 2 <= b->goal;
}

static void lend_short(struct typed *y, struct shelf *s, uint32_t rank)
{
	struct borrower *b = &s->borrower[rank];
	struct slip slip = { .type = (uint8_t)s->type };
	if (b->want && b->lent < HAND_MOST && !lend_from(y, s, rank, LOAN_TYPE, &slip)) {
		if (s->flags & TERN_BUF_REFUSE)
			slip.flags = SLIP_REFUSED;
		else if (s->flags & TERN_BUF_SPILL)
			lend_spill(y, rank, b->want - 1u, &slip);
	}
	if (b->ahead && slip.flags == 0)
		lend_ahead(y, s, rank, &slip);
	if (slip.count) {
		b->lent += slip.count;
		b->since = clock_ns();
		b->recalled = false;
	}
	b->ahead = b->ahead && s->lookers == 1 && lend_low(b); /* what is freed next is for nobody else */
	if (slip.count || slip.flags) {
		b->want = 0;
		lend_tell(y, s, rank, TYPED_LENT, &slip);
	}
}

static void lend_long(struct typed *y, struct shelf *s, uint32_t rank)
{
	struct borrower *b = &s->borrower[rank];
	struct slip slip = { .type = (uint8_t)s->type, .flags = SLIP_LONG };
	if (!lend_from(y, s, rank, LOAN_LONG, &slip)) {
		if (!(s->flags & TERN_BUF_REFUSE))
			return;
		slip.flags |= SLIP_REFUSED;
	}
	b->want_long = false;
	b->longs = true;
	b->since = clock_ns();
	b->recalled = false;
	lend_tell(y, s, rank, TYPED_LENT, &slip);
}

static void lend_recall(struct typed *y, struct shelf *s, uint32_t rank)
{
	struct slip slip = { .type = (uint8_t)s->type, .flags = s->closing ? SLIP_CLOSED : 0 };
	s->borrower[rank].recall = false;
	lend_tell(y, s, rank, TYPED_RECALL, &slip);
}

static bool lend_can_tell(struct typed *y, uint32_t rank)
{
	return send_reachable(y->e, rank) == 0 && lane_ready(&y->e->t->lane[rank]);
}

/* Does what is due for one borrower, as far as that can be done. */
static void lend_serve(struct typed *y, struct shelf *s, uint32_t rank)
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
static void lend_wanted(struct typed *y, struct shelf *s)
{
	if (!rack_free(&s->rack) && !recall_idle(y, s, NULL))
		return;
	s->wanted = false;
	y->due--;
	typed_busy(y);
}

static void lend_shelf(struct typed *y, struct shelf *s)
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
	for (unsigned i = 0; i < y->shelves; i++)
		if (y->sorted[i]->borrower && (y->sorted[i]->due || y->sorted[i]->wanted))
			lend_shelf(y, y->sorted[i]);
	for (struct shelf *s = y->limbo; s; s = s->spare)
		if (s->due)
			lend_shelf(y, s);
	y->lending = false;
	return before != y->due;
}

/* -- What comes back ------------------------------------------------------------------------------ */

void lend_used(struct typed *y, struct shelf *s, uint32_t rank, bool counted)
{
	struct borrower *b = &s->borrower[rank];
	b->lent -= counted && b->lent;
	if (s->closing || s->flags & TERN_BUF_REFUSE || !lend_low(b))
		return;
	b->goal = b->goal < LEND_MOST / 2 ? (uint8_t)(b->goal * 2 + 1) : LEND_MOST;
	b->ahead = true;
	due_set(y, s, b, true);
}

/* The letter of what a slip from `src` names; NULL if that rank has not borrowed it. */
static struct letter *loan_letter(struct typed *y, struct shelf *s, uint32_t loan, uint32_t src)
{
	enum loan_place place = loan_place(loan);
	struct shelf *of = loan_spilled(loan) ? y->shelf[KEY_SPILL + (place - LOAN_SMALL)] : s;
	struct letter *l = of && loan_index(loan) < of->rack.count ? &of->letter[loan_index(loan)] : NULL;
	enum letter_state state = place == LOAN_LONG ? LETTER_LANDING : LETTER_LENT;
	return l && l->state == state && l->src == src && l->type == s->type ? l : NULL;
}

static void returned(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct slip slip;
	struct shelf *s = slip_read(m, &slip) ? shelf_of_turn(y, slip.type, slip.turn) : NULL;
	if (!s || !s->borrower)
		return; /* an owner that was closed had no answer to wait for */
	struct borrower *b = &s->borrower[src];
	for (uint32_t i = 0; i < slip.count; i++) {
		struct letter *l = loan_letter(y, s, slip.loan[i], src);
		if (!l) {
			typed_refuse(y, src, "that gives back what it did not have");
			return;
		}
		b->lent -= l->state == LETTER_LENT && b->lent;
		letter_unlend(l);
		letter_drop(l, y->check);
	}
	if (slip.count == SLIP_LOANS && b->lent)
		recall_mark(y, s, b); /* there may be more */
	else if (slip.flags & SLIP_KEPT)
		recall_again(b);
}

void lend_known(struct typed *y, struct shelf *s, uint32_t rank)
{
	if (y->e->site.peer[rank].lost)
		return;
	s->lookers += !s->borrower[rank].knows;
	s->borrower[rank].knows = true;
}

static void claim(tern *t, const tern_msg *m)
{
	enum { CLAIM_WORDS = 3 };
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	uint64_t type = tern_msg_words(m) == CLAIM_WORDS ? tern_msg_arg(m, 0) : TERN_TYPES_MAX;
	struct shelf *s = type < TERN_TYPES_MAX ? y->shelf[type] : NULL;
	if (type >= TERN_TYPES_MAX || (s && !s->borrower)) {
		typed_refuse(y, src, "that asks for what cannot be lent");
		return;
	}
	if (!s || s->rack.turn != tern_msg_arg(m, 1)) {
		uint64_t words[SLIP_WORDS];
		slip_write(&(struct slip){ .type = (uint8_t)type,
					   .flags = SLIP_CLOSED,
					   .turn = (uint32_t)tern_msg_arg(m, 1) },
			   words);
		layer_reply(y->e, TYPED_GONE, NULL, 0, SLIP_WORDS, words);
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

static void wanted(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint64_t type = tern_msg_words(m) ? tern_msg_arg(m, 0) : TERN_TYPES_MAX;
	struct shelf *s = type < TERN_TYPES_MAX ? y->shelf[type] : NULL;
	if (!s || !s->borrower || s->wanted)
		return;
	s->wanted = true;
	y->due++;
	typed_busy(y);
}

/* -- The end of a turn, and of a rank ---------------------------------------------------------------- */

/* What is lent for short messages looks taken for the time of the shutting, or claimed again. */
static void lent_set(struct shelf *s, enum rack_kind kind)
{
	for (uint32_t i = 0; i < s->rack.count; i++)
		if (s->letter[i].state == LETTER_LENT)
			rack_set(&s->rack, i, kind, s->letter[i].src);
}

bool lend_shut(struct typed *y, struct shelf *s)
{
	if (!s->borrower)
		return rack_shut(&s->rack);
	lent_set(s, RACK_HELD);
	bool shut = rack_shut(&s->rack);
	if (shut)
		return true;
	lent_set(s, RACK_CLAIMED);
	for (uint32_t r = 0; r < y->e->t->size; r++) /* a buffer for a long message may be idle */
		if (!y->e->site.peer[r].lost && !layer_maps(y->e, r) && !s->borrower[r].recalled)
			recall_mark(y, s, &s->borrower[r]);
	return false;
}

void lend_closed(struct typed *y, struct shelf *s)
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

bool lend_over(const struct typed *y, const struct shelf *s)
{
	for (uint32_t r = 0; s->borrower && r < y->e->t->size; r++)
		if (s->borrower[r].lent) /* of the spill, perhaps, whose letters are not here */
			return false;
	for (uint32_t i = 0; i < s->rack.count; i++)
		if (s->letter[i].state != LETTER_NONE)
			return false;
	return !s->due;
}

static void shelf_forget(struct typed *y, struct shelf *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->rack.count; i++) {
		struct letter *l = &s->letter[i];
		if (l->src != rank || !letter_lent(l))
			continue;
		letter_unlend(l);
		l->state = LETTER_NONE;
	}
	if (!s->borrower)
		return;
	due_set(y, s, &s->borrower[rank], false);
	s->lookers -= s->borrower[rank].knows;
	s->borrower[rank] = (struct borrower){ 0 };
}

void lend_forget(struct typed *y, uint32_t rank)
{
	for (unsigned i = 0; i < y->shelves; i++)
		shelf_forget(y, y->sorted[i], rank);
	for (struct shelf *s = y->limbo; s; s = s->spare)
		shelf_forget(y, s, rank);
}

void lend_register(struct endpoint *e)
{
	layer_on(e, TYPED_CLAIM, claim);
	layer_on(e, TYPED_RETURNED, returned);
	layer_on(e, TYPED_RETURN, returned);
	layer_on(e, TYPED_WANTED, wanted);
}
