/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes: batches, whose items are handled one by one, and who must wait. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "endpoint/count.h"
#include "mem/mem.h"
#include "post/post.h"
#include "ring/ring.h"

/* -- Items ------------------------------------------------------------------------------------- */

/*
 * The items of a run. Each is copied to where a message of the usual shape is, so that every call
 * that reads messages reads it. `n` is a constant.
 */
static inline __attribute__((always_inline)) void
items_handle(tern *t, tern_msg *item, const uint64_t *at, uint64_t count, unsigned n)
{
	tern_handler *fn = t->handler[tern_msg_handler(item)];
	for (; count; count--, at += n ? n : 1) {
		for (unsigned i = 0; i < n; i++)
			item->word[i] = at[i];
		t->current = item;
		fn(t, item);
	}
}

static void run_handle(tern *t, tern_msg *item, const uint64_t *at, uint64_t count)
{
	switch (tern_msg_count(item)) {
	case 0:
		items_handle(t, item, at, count, 0);
		break;
	case 1:
		items_handle(t, item, at, count, 1);
		break;
	case 2:
		items_handle(t, item, at, count, 2);
		break;
	case 3:
		items_handle(t, item, at, count, 3);
		break;
	case 4:
		items_handle(t, item, at, count, 4);
		break;
	case 5:
		items_handle(t, item, at, count, 5);
		break;
	default:
		items_handle(t, item, at, count, TERN_LINE_WORDS);
	}
}

static tern_post_handler *many_of(tern *t, const tern_msg *m)
{
	return atomic_load_explicit(&post_of(t)->many[tern_msg_handler(m)], memory_order_acquire);
}

/* An item without words has a place of one, as in a run. */
void batch_one(tern *t, const tern_msg *m)
{
	many_of(t, m)(t, m, m->word, 1);
}

/* `current` is none: a handler of many answers by posting. */
static void run_hand_over(tern *t, tern_msg *item, const uint64_t *at, uint64_t count)
{
	for (unsigned i = 0; i < tern_msg_count(item); i++)
		item->word[i] = at[i];
	t->current = NULL;
	if (count)
		many_of(t, item)(t, item, at, count);
}

/* Handles the run whose header is at `at`: where the next one is; NULL if it is none. */
static const uint64_t *run_take(tern *t, tern_msg *item, const uint64_t *at, const uint64_t *end,
				uint32_t src)
{
	struct stats *stats = t->own->stats;
	uint64_t run = *at++, count = run >> RUN_COUNT_SHIFT;
	unsigned id = (unsigned)(run >> TERN_ID_SHIFT) & (TERN_HANDLER_SLOTS - 1);
	unsigned n = run & TERN_HEAD_WORDS;
	if (id >= TERN_HANDLER_MAX || n > TERN_LINE_WORDS ||
	    (uint32_t)run != (uint32_t)tern_post_kind_(id, n) ||
	    count > (uint64_t)(end - at) / post_stride(run))
		return NULL;
	atomic_store_explicit(&item->head,
			      (uint64_t)src << TERN_SRC_SHIFT | (uint64_t)id << TERN_ID_SHIFT | n,
			      memory_order_relaxed);
	if (TERN_UNLIKELY(stats != NULL))
		stats_add(&stats->handler[id].count[n], count);
	if (t->handler[id] == batch_one)
		run_hand_over(t, item, at, count);
	else
		run_handle(t, item, at, count);
	return at + count * post_stride(run);
}

static void source_note(struct post *p, uint32_t src)
{
	if (TERN_LIKELY(p->out[src].source))
		return;
	p->out[src].source = true;
	p->paces |= p->pacing;
	gather_work(p);
}

/* Handles the words of a batch from `src`; false if they are none. */
static bool batch_handle(tern *t, uint32_t src, const uint64_t *at, const uint64_t *end)
{
	struct endpoint *e = t->own;
	struct tern_lane *answer = t->answer;
	tern_msg item = { .payload = 0 };
	source_note(post_of(t), src);
	e->item = &item;
	e->item_layer = LAYER_POST;
	t->answer = &e->refuse; /* a reply comes to send_reply(), and from there back here */
	while (at && at < end)
		at = run_take(t, &item, at, end, src);
	e->item = NULL;
	t->answer = answer;
	return at != NULL;
}

static void batch_bad(tern *t, uint32_t src)
{
	poll_trouble_warn(t->own, error_set(-EBADMSG,
					    "rank %u got gathered items from rank %u that are "
					    "none; the rest of them was dropped",
					    t->rank, src));
}

/* Items at `a` cannot be reached: `a` is wrong, or memory for the first look at a heap is spent. */
static void batch_lost(tern *t, uint32_t src, tern_addr a)
{
	char why[300];
	int rc = mem_check(mem_of(t), a, 1, "a post");
	if (rc != -ENOMEM) {
		batch_bad(t, src);
		return;
	}
	snprintf(why, sizeof why, "%s", tern_strerror(rc));
	poll_trouble_warn(t->own, error_set(rc, "rank %u lost gathered items from rank %u: %s",
					    t->rank, src, why));
}

static void on_batch(tern *t, const tern_msg *m)
{
	size_t len;
	const uint64_t *at = tern_msg_data(m, &len);
	if (at && !batch_handle(t, tern_msg_src(m), at, at + len / sizeof *at))
		batch_bad(t, tern_msg_src(m));
}

/* Whether another batch lies in the inlet; its lines come while this one is handled. */
static bool batch_next(tern *t, const struct tern_inlet *in)
{
	uint64_t slot = (uint64_t)(TERN_HANDLER_MAX + POST_SLOT) << TERN_ID_SHIFT | 2;
	if (!in || in->kind != TERN_KIND_REQUEST)
		return false;
	const tern_msg *m = inlet_at(in);
	if ((atomic_load_explicit(&m->head, memory_order_acquire) ^ in->expect) != slot)
		return false;
	post_slot_reach(t, m->word[0], m->word[1]);
	return true;
}

static void on_slot(tern *t, const tern_msg *m)
{
	uint32_t src = tern_msg_src(m);
	uint64_t words = tern_msg_word(m, 1);
	tern_addr a = tern_msg_word(m, 0);
	const uint64_t *at = tern_addr_rank(a) == src ? post_slot_reach(t, a, words) : NULL;
	const struct tern_inlet *in = t->own->inlet;
	if (!batch_next(t, in))
		batch_next(t, in->next);
	if (!at && mem_dead(mem_of(t), src)) /* nobody reaches its items any more */
		return;
	if (!at) {
		batch_lost(t, src, a);
		return;
	}
	if (!batch_handle(t, src, at, at + words))
		batch_bad(t, src);
	post_slot_give(at);
}

/* -- Pace -------------------------------------------------------------------------------------- */

/*
 * What handlers post waits in queues where its receiver takes nothing, so more must not come in
 * than leaves: the programs whose items these handlers handle are told to wait.
 */
static void on_pace(tern *t, const tern_msg *m)
{
	post_of(t)->out[tern_msg_src(m)].overloaded = tern_msg_word(m, 0) != 0;
}

unsigned pace_tell(struct post *p)
{
	unsigned told = 0;
	uint32_t me = p->e->t->rank;
	if (p->pacing ? p->queued <= QUEUED_SHORT : p->queued >= QUEUED_LONG) {
		p->pacing = !p->pacing;
		p->paces = true;
	}
	if (!p->paces)
		return 0;
	p->paces = false;
	for (uint32_t r = 0; r < p->e->t->size; r++) {
		struct outbox *o = &p->out[r];
		if (!o->source || o->paced == p->pacing || r == me)
			continue;
		const uint64_t word = p->pacing;
		if (layer_request_now(p->e, r, POST_PACE, NULL, 0, 1, &word) == -EAGAIN) {
			p->paces = true;
			continue;
		}
		o->paced = p->pacing;
		told++;
	}
	return told;
}

void batch_register(struct endpoint *e)
{
	layer_on(e, POST_BATCH, on_batch);
	layer_on(e, POST_SLOT, on_slot);
	layer_on(e, POST_PACE, on_pace);
}
