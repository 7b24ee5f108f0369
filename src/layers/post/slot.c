/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots: how a batch goes to a rank that maps this rank's heap. Payload blocks would do, but a rank
 * has only TERN_POOL_BLOCKS of them for everybody, and sends as many batches at once as there are
 * other ranks. A slot holds one batch in the sender's heap. The message says where, the receiver
 * handles the items there, and one store gives the slot back.
 *
 * Slots come back from one rank in the order in which they went there. So a rank's oldest slot is
 * looked at when another one is sent there, and no slot is searched for.
 */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "mem/mem.h"
#include "post/post.h"

/* In the heap. */
struct post_slot {
	/* slot.R7, release; acquired in post_slots_reap(): the receiver has read the items. */
	_Atomic uint64_t busy;
	uint64_t word[];
};

/* What this rank knows of a slot. */
struct flight {
	struct flight *next; /* of the same rank, or of those that are idle */
	struct post_slot *slot;
	tern_addr addr;
};

struct slots_made {
	struct slots_made *next;
	struct flight flight[SLOTS_TOGETHER];
};

static size_t post_slot_bytes(const struct post *p)
{
	size_t bytes = sizeof(struct post_slot) + p->words * sizeof(uint64_t);
	return (bytes + TERN_LINE - 1) / TERN_LINE * TERN_LINE;
}

/* False if the heap has no more; it is not asked again. */
static bool post_slots_make(struct post *p)
{
	struct slots_made *m = memory_new(1, sizeof *m);
	void *at = NULL;
	if (!m || tern_alloc(p->e->t, SLOTS_TOGETHER * post_slot_bytes(p), &at)) {
		memory_free(m);
		p->slots_most = p->slots;
		return false;
	}
	m->next = p->slots_made;
	p->slots_made = m;
	for (unsigned i = 0; i < SLOTS_TOGETHER; i++) {
		struct flight *f = &m->flight[i];
		f->slot = (struct post_slot *)(void *)((char *)at + i * post_slot_bytes(p));
		f->addr = mem_addr(mem_of(p->e->t), f->slot);
		f->next = p->idle;
		p->idle = f;
	}
	p->slots += SLOTS_TOGETHER;
	return true;
}

void post_slots_free(struct post *p)
{
	while (p->slots_made) {
		struct slots_made *m = p->slots_made;
		p->slots_made = m->next;
		memory_free(m);
	}
}

/* Behind the first, whose lines are on their way to this rank. */
static void flight_idle(struct post *p, struct flight *f)
{
	struct flight **at = p->idle ? &p->idle->next : &p->idle;
	f->next = *at;
	*at = f;
}

static void flight_begin(struct post *p, struct outbox *o)
{
	struct flight *f = p->idle;
	p->idle = f->next;
	f->next = NULL;
	*(o->out ? &o->last_out->next : &o->out) = f;
	o->last_out = f;
	o->outs++;
}

static void flight_end(struct post *p, struct outbox *o)
{
	struct flight *f = o->out;
	o->out = f->next;
	o->outs--;
	flight_idle(p, f);
}

static void post_slots_reap(struct post *p, struct outbox *o)
{
	/* slot.R7, acquire */
	while (o->out && !atomic_load_explicit(&o->out->slot->busy, memory_order_acquire))
		flight_end(p, o);
}

void post_slots_lost(struct post *p, struct outbox *o)
{
	while (o->out)
		flight_end(p, o);
}

static bool post_slots_idle(struct post *p, struct outbox *o)
{
	post_slots_reap(p, o);
	if (o->outs >= SLOTS_EACH)
		return false;
	if (p->idle || (p->slots < p->slots_most && post_slots_make(p)))
		return true;
	for (uint32_t r = 0; r < p->e->t->size && !p->idle; r++)
		post_slots_reap(p, &p->out[r]);
	return p->idle != NULL;
}

bool post_slots_serve(struct post *p, uint32_t rank)
{
	if (!layer_maps(p->e, rank))
		return false;
	return p->slots || (p->slots_most && post_slots_make(p));
}

/* The slot that the next batch will go through: its lines come while items are gathered. */
static void post_slot_prefetch(const struct post *p)
{
	size_t bytes = sizeof(struct post_slot) + p->room * sizeof(uint64_t);
	for (size_t at = 0; p->idle && at < bytes; at += TERN_LINE)
		tern_prefetch_write_((char *)p->idle->slot + at);
}

/* Where the program may, it writes the line itself; else the request must not wait. */
static int post_slot_tell(struct post *p, uint32_t rank, uint64_t words)
{
	tern *t = p->e->t;
	struct tern_lane *lane = &t->lane[rank];
	const uint64_t word[] = { p->idle->addr, words };
	if (rank < t->reach &&
	    tern_lane_write_(lane, TERN_HANDLER_MAX + POST_SLOT, 2, word[0], word[1], 0, 0, 0, 0)) {
		if (TERN_UNLIKELY(tern_unheeded_(lane)))
			tern_knock_(t, lane);
		return 0;
	}
	return layer_request_now(p->e, rank, POST_SLOT, NULL, 0, 2, word);
}

int post_slot_send(struct post *p, uint32_t rank, const uint64_t *word, uint32_t words)
{
	struct outbox *o = &p->out[rank];
	if (!post_slots_idle(p, o))
		return -EAGAIN;
	struct post_slot *s = p->idle->slot;
	memcpy(s->word, word, words * sizeof *word);
	/* The message that names the slot releases it. */
	atomic_store_explicit(&s->busy, 1, memory_order_relaxed);
	int rc = post_slot_tell(p, rank, words);
	if (rc)
		return rc;
	flight_begin(p, o);
	post_slot_prefetch(p);
	return 0;
}

const uint64_t *post_slot_reach(tern *t, tern_addr a, uint64_t words)
{
	size_t bytes = sizeof(struct post_slot) + words * sizeof(uint64_t);
	if (words > GATHER_WORDS || a % TERN_LINE)
		return NULL;
	struct post_slot *s = (struct post_slot *)(void *)mem_reach(mem_of(t), a, bytes);
	for (size_t at = 0; s && at < bytes; at += TERN_LINE)
		__builtin_prefetch((char *)s + at);
	return s ? s->word : NULL;
}

void post_slot_give(const uint64_t *word)
{
	struct post_slot *s =
		(struct post_slot *)((uintptr_t)word - offsetof(struct post_slot, word));
	atomic_store_explicit(&s->busy, 0, memory_order_release); /* slot.R7 */
}
