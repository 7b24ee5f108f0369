/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending to a rank whose memory is not mapped. What its owner has lent of a type lies in a hand, so a send is
 * accepted here, at once, with the certainty that there is a buffer; a short message then goes whole, notice and bytes, and
 * a long one is put into its buffer first. With an empty hand the owner is asked, once, and answers when it can.
 *
 * What the owner tells comes as requests, in order. So after it has said that a rack is used no more, nothing comes
 * for that rack; what a hand still had of it went back with the answer.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/wrap.h"
#include "typed/send.h"

/* A name of a short message: the rank, and which of those that were given a name. */
enum { NAME_RANK_SHIFT = 40 };
static const uint64_t NAME_FAR = UINT64_C(1) << 62, NAME_NUMBER = (UINT64_C(1) << NAME_RANK_SHIFT) - 1;

/* -- The hand --------------------------------------------------------------------------------------- */

static bool loan_fits(uint32_t loan, size_t len)
{
	return !loan_spilled(loan) || len <= spill_cell[loan_place(loan) - LOAN_SMALL];
}

/* What was lent last, of what has room; or what was lent for a long message that was not sent. */
static bool hand_take(struct hand *h, size_t len, uint32_t *loan)
{
	for (unsigned i = h->count; i-- > 0;) {
		if (!loan_fits(h->loan[i], len))
			continue;
		*loan = h->loan[i];
		h->loan[i] = h->loan[--h->count];
		return true;
	}
	if (!h->has_long || h->waiting[true])
		return false;
	h->has_long = false;
	*loan = loan_of(LOAN_LONG, h->index);
	return true;
}

/*
 * Puts first what a send that waits is going to use, and says how many that is: one, or none if none of it is large enough.
 * It is no cell, if possible, since a cell is of use to more senders.
 */
static unsigned hand_keep(struct hand *h)
{
	unsigned keep = h->count;
	for (const struct sending *s = h->waiting[false]; s; s = s->next)
		for (unsigned i = 0; i < h->count; i++)
			if (loan_fits(h->loan[i], s->len) && (keep == h->count || !loan_spilled(h->loan[i])))
				keep = i;
	if (keep == h->count)
		return 0;
	uint32_t loan = h->loan[keep];
	h->loan[keep] = h->loan[0];
	h->loan[0] = loan;
	return 1;
}

/* Moves what no send waits for onto a slip, as much as that takes. */
static void hand_empty(struct hand *h, bool all, struct slip *slip)
{
	unsigned keep = all ? 0 : hand_keep(h);
	if (h->has_long && (all || !h->waiting[true])) {
		slip->loan[slip->count++] = loan_of(LOAN_LONG, h->index);
		h->has_long = false;
	}
	while (h->count > keep && slip->count < SLIP_LOANS)
		slip->loan[slip->count++] = h->loan[--h->count];
	slip->flags = h->count || h->has_long ? SLIP_KEPT : 0;
}

int far_return(struct typed *y, uint32_t rank, unsigned type, struct target *to)
{
	struct slip slip = { .type = (uint8_t)type, .turn = to->rack.turn };
	uint64_t words[SLIP_WORDS];
	hand_empty(to->hand, true, &slip);
	if (!slip.count)
		return 0;
	slip_write(&slip, words);
	int rc = layer_request(y->e, rank, TYPED_RETURN, NULL, 0, SLIP_WORDS, words);
	return rc ? rc : -EAGAIN;
}

/* -- What the owner says ---------------------------------------------------------------------------- */

/* The hand that a slip is about; NULL if it is about another use of the rack. */
static struct hand *slip_hand(struct typed *y, uint32_t rank, const struct slip *slip)
{
	struct route *r = y->route[rank];
	struct target *part = r ? r->part[slip->type / TARGETS_OF_PART] : NULL;
	struct target *to = part ? &part[slip->type % TARGETS_OF_PART] : NULL;
	return to && to->hand && to->rack.turn == slip->turn ? to->hand : NULL;
}

static bool hand_add(struct hand *h, uint32_t loan)
{
	if (loan_place(loan) == LOAN_LONG) {
		if (h->has_long)
			return false;
		h->has_long = true;
		h->index = loan_index(loan);
		return true;
	}
	if (h->count == HAND_MOST)
		return false;
	h->loan[h->count++] = loan;
	return true;
}

/*
 * What could not be used after all. Of those for long messages there may be another by now: then this one is for short
 * messages, and goes back as what it was lent for.
 */
static void hand_back(struct hand *h, uint32_t loan)
{
	if (!hand_add(h, loan) && h->count < HAND_MOST)
		h->loan[h->count++] = loan;
}

static void slip_reply(struct typed *y, struct slip *slip)
{
	uint64_t words[SLIP_WORDS];
	slip_write(slip, words);
	layer_reply(y->e, TYPED_RETURNED, NULL, 0, SLIP_WORDS, words);
}

static void lent(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	uint32_t src = tern_msg_src(m);
	struct slip slip;
	if (!slip_read(m, &slip)) {
		typed_refuse(y, src, "that lends nothing");
		return;
	}
	struct hand *h = slip_hand(y, src, &slip);
	struct slip back = { .type = slip.type, .turn = slip.turn };
	for (uint32_t i = 0; i < slip.count; i++)
		if (!h || !hand_add(h, slip.loan[i]))
			back.loan[back.count++] = slip.loan[i];
	if (h) {
		*(slip.flags & SLIP_LONG ? &h->asked_long : &h->asked) = false;
		h->refused = slip.flags & SLIP_REFUSED;
	}
	if (back.count) /* for a use of the rack that is over, as this rank has learnt before */
		slip_reply(y, &back);
}

/* The rack is used no more: whoever sends asks where the next is. */
static void hand_close(struct hand *h)
{
	atomic_store_explicit(&h->now, 0, memory_order_relaxed);
	h->asked = h->asked_long = h->refused = false;
}

static void recall(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	struct slip slip;
	struct hand *h = slip_read(m, &slip) ? slip_hand(y, tern_msg_src(m), &slip) : NULL;
	if (!h)
		return;
	struct slip back = { .type = slip.type, .turn = slip.turn };
	if (slip.flags & SLIP_CLOSED)
		hand_close(h);
	hand_empty(h, slip.flags & SLIP_CLOSED, &back);
	slip_reply(y, &back);
}

static void gone(tern *t, const tern_msg *m)
{
	struct slip slip;
	struct hand *h = slip_read(m, &slip) ? slip_hand(typed_of(t), tern_msg_src(m), &slip) : NULL;
	if (h)
		hand_close(h);
}

void far_listen(struct typed *y, uint32_t rank)
{
	const struct tern_inlet *in = &y->e->site.peer[rank].requests;
	if (in->base && inlet_has(in) && !held(y->e))
		poll_once(y->e, KINDS_BOTH);
}

bool far_stale(struct hand *h)
{
	bool fresh = h->fresh;
	h->fresh = false;
	if (!fresh)
		atomic_store_explicit(&h->now, 0, memory_order_relaxed);
	return !fresh;
}

/* -- Sending --------------------------------------------------------------------------------------- */

static int far_ask(struct typed *y, struct sending *s, bool is_long)
{
	struct hand *h = s->target->hand;
	bool *asked = is_long ? &h->asked_long : &h->asked;
	bool refused = h->refused && (s->asked || !s->waits); /* not what an earlier call was told */
	h->refused = false;
	if (refused)
		return sending_full(s);
	if (!s->waiting) {
		s->waiting = &h->waiting[is_long];
		s->next = *s->waiting;
		*s->waiting = s;
	}
	if (!*asked) {
		uint64_t words[] = { s->type, s->target->rack.turn, s->len };
		*asked = s->asked = true; /* before: others may be served by the request */
		int rc = layer_request(y->e, s->rank, TYPED_CLAIM, NULL, 0, 3, words);
		if (rc) {
			*asked = false;
			return rc;
		}
	}
	return sending_later(s, "it has lent no buffer of the type yet");
}

/* Whether a payload can be sent without waiting for a block. */
static bool block_any(struct net *net)
{
	struct block *b;
	if (!net->pool)
		return true;
	if (net->ops->take(net, &b) != 0) /* which may find more, for a peer that is far */
		return false;
	block_set(b, BLOCK_FREE);
	return true;
}

static tern_mid far_name(struct typed *y, uint32_t rank)
{
	return NAME_FAR | (uint64_t)rank << NAME_RANK_SHIFT | (++y->route[rank]->named & NAME_NUMBER);
}

/* There is a block and room, so what fails is memory for the first block, or a rank that has left. */
static int far_failed(struct typed *y, const struct sending *s, uint32_t loan, int rc)
{
	sending_unnumber(y, s);
	y->route[s->rank]->named -= s->named;
	hand_back(s->target->hand, loan);
	return rc;
}

static int far_short(struct typed *y, struct sending *s)
{
	struct hand *h = s->target->hand;
	uint64_t words[BROUGHT_WORDS] = { 0 };
	uint32_t loan;
	if (s->len && !block_any(y->e->site.peer[s->rank].net))
		return sending_later(s, "no payload block is free");
	if (!hand_take(h, s->len, &loan))
		return far_ask(y, s, false);
	h->fresh = false;
	s->notice.key =
		(uint16_t)(loan_spilled(loan) ? KEY_SPILL + (loan_place(loan) - LOAN_SMALL) : s->type);
	s->notice.index = loan_index(loan);
	sending_number(y, s);
	notice_write(&s->notice, words);
	words[NOTICE_WORDS] = s->named ? BROUGHT_TELL : 0;
	s->mid = s->named ? far_name(y, s->rank) : 0;
	int rc = layer_request(y->e, s->rank, TYPED_BROUGHT, s->len ? s->data : NULL, s->len, BROUGHT_WORDS,
			       words);
	return rc ? far_failed(y, s, loan, rc) : 0;
}

static int far_long(struct typed *y, struct sending *s)
{
	struct target *to = s->target;
	struct hand *h = to->hand;
	s->outgoing = outgoing_new(y);
	if (!s->outgoing)
		return sending_later(
			s,
			"TERN_BUFSENDS_MAX sends are under way, or tern_bufdone() was not asked about them");
	if (!h->has_long)
		return far_ask(y, s, true);
	h->has_long = h->fresh = false;
	s->notice.key = (uint16_t)s->type;
	s->notice.index = h->index;
	int rc = sending_start(y, s, to->buffers + (tern_addr)s->notice.index * to->rack.stride, NULL);
	if (rc) /* for the next, or until it is asked back; others may have been served meanwhile */
		hand_back(h, loan_of(LOAN_LONG, s->notice.index));
	else
		sending_moves(y, s);
	return rc;
}

int far_try(struct typed *y, struct sending *s)
{
	if (!lane_ready(&y->e->t->lane[s->rank]))
		return sending_later(s, "the ring to it is full");
	return s->len > TERN_PAYLOAD_MAX ? far_long(y, s) : far_short(y, s);
}

void far_end(struct sending *s)
{
	struct sending **at = s->waiting;
	if (!at)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
}

/* -- Names ------------------------------------------------------------------------------------------ */

static uint64_t name_first(void)
{
	return wrap_first(NAME_RANK_SHIFT, 0);
}

void far_begin(struct route *r)
{
	r->named = r->landed = name_first();
}

/* How many were counted behind the message of that name; more than half: it is not among them. Numbers in names wrap. */
static uint64_t name_age(tern_mid mid, uint64_t count)
{
	return (count - mid) & NAME_NUMBER;
}

static void landed(tern *t, const tern_msg *m)
{
	struct typed *y = typed_of(t);
	struct route *r = y->route[tern_msg_src(m)];
	if (!r || r->landed == r->named)
		typed_refuse(y, tern_msg_src(m), "that answers what was not asked");
	else
		r->landed++;
}

bool far_named(const struct typed *y, tern_mid mid)
{
	uint64_t rank = (mid & ~NAME_FAR) >> NAME_RANK_SHIFT;
	const struct route *r = mid & NAME_FAR && rank < y->e->t->size ? y->route[rank] : NULL;
	return r && name_age(mid, r->named) <= NAME_NUMBER / 2 &&
	       name_age(mid, r->named) < r->named - name_first();
}

int far_done(const struct typed *y, tern_mid mid)
{
	uint32_t rank = (uint32_t)((mid & ~NAME_FAR) >> NAME_RANK_SHIFT);
	const struct peer *p = &y->e->site.peer[rank];
	if (name_age(mid, y->route[rank]->landed) <= NAME_NUMBER / 2)
		return 1;
	return p->lost ? p->net->ops->check(p->net, rank) : 0;
}

void far_register(struct endpoint *e)
{
	layer_on(e, TYPED_LENT, lent);
	layer_on(e, TYPED_RECALL, recall);
	layer_on(e, TYPED_GONE, gone);
	layer_on(e, TYPED_LANDED, landed);
}
