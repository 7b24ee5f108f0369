/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers: taken when a rank is first posted to, filled, queued when full, and sent. */
#include <errno.h>

#include "base/error.h"
#include "base/memory.h"
#include "post/post.h"

static struct tern_post_lane *lane_of(const struct post *p, uint32_t rank)
{
	return tern_post_lane_(&p->e->t->lane[rank]);
}

void gather_work(struct post *p)
{
	layer_work(p->e, LAYER_POST, p->opened || p->queued || p->paces);
}

/* -- Memory ------------------------------------------------------------------------------------ */

/* The first word of a chunk links them. */
static int buffers_make(struct post *p)
{
	size_t bytes = sizeof(struct gather) + p->words * sizeof(uint64_t);
	void **chunk = memory_new(1, CHUNK_BYTES);
	if (!chunk)
		return error_set(-ENOMEM, "a post of rank %u: no memory for buffers",
				 p->e->t->rank);
	*chunk = p->made;
	p->made = chunk;
	for (size_t at = TERN_LINE; at + bytes <= CHUNK_BYTES; at += bytes) {
		struct gather *b = (struct gather *)(void *)((char *)chunk + at);
		b->next = p->free;
		p->free = b;
	}
	return 0;
}

static void buffer_give(struct post *p, struct gather *b)
{
	b->next = p->free;
	p->free = b;
}

void gather_free(struct post *p)
{
	while (p->made) {
		void *chunk = p->made;
		p->made = *(void **)chunk;
		memory_free(chunk);
	}
}

/* -- The open buffer --------------------------------------------------------------------------- */

/* Writes the header of the run, now that its length is known; an empty one disappears. */
static void run_close(struct tern_post_lane *lane, const struct gather *b)
{
	uint32_t kind = lane->kind;
	if (!kind)
		return;
	uint64_t words = (uint64_t)(lane->next - b->run) - 1;
	if (words)
		*b->run = words / post_stride(kind) << RUN_COUNT_SHIFT | kind;
	else
		lane->next = b->run;
	lane->kind = 0;
}

bool gather_run(struct post *p, uint32_t rank, uint32_t kind)
{
	struct gather *b = p->out[rank].open;
	struct tern_post_lane *lane = lane_of(p, rank);
	uint64_t *end = b ? b->word + p->room : NULL;
	uint32_t stride = post_stride(kind);
	if (!b)
		return false;
	run_close(lane, b);
	if (end - lane->next < 1 + (ptrdiff_t)stride)
		return false;
	b->run = lane->next++;
	lane->kind = kind;
	lane->end = (uint32_t)(uintptr_t)(end - stride);
	return true;
}

int gather_open(struct post *p, uint32_t rank)
{
	struct tern_post_lane *lane = lane_of(p, rank);
	int rc = p->free ? 0 : buffers_make(p);
	if (rc)
		return rc;
	struct gather *b = p->free;
	p->free = b->next;
	b->next = NULL;
	b->before = p->newest;
	b->rank = rank;
	*(p->newest ? &p->newest->next : &p->oldest) = b;
	p->newest = b;
	p->out[rank].open = b;
	if (!p->opened++)
		/* the first poll that handles nothing lets it leave */
		p->served = endpoint_served(p->e);
	lane->next = b->word;
	lane->kind = 0;
	gather_work(p);
	return 0;
}

uint32_t gather_words(struct post *p, uint32_t rank)
{
	struct tern_post_lane *lane = lane_of(p, rank);
	const struct gather *b = p->out[rank].open;
	run_close(lane, b);
	return (uint32_t)(lane->next - b->word);
}

void gather_again(struct post *p, uint32_t rank, uint32_t kind)
{
	lane_of(p, rank)->next = p->out[rank].open->word;
	gather_run(p, rank, kind);
}

/* Takes the open buffer out; its words are counted. */
static struct gather *buffer_detach(struct post *p, uint32_t rank)
{
	struct gather *b = p->out[rank].open;
	struct tern_post_lane *lane = lane_of(p, rank);
	b->words = gather_words(p, rank);
	lane->next = NULL;
	lane->kind = 0;
	*(b->before ? &b->before->next : &p->oldest) = b->next;
	*(b->next ? &b->next->before : &p->newest) = b->before;
	b->next = NULL;
	p->out[rank].open = NULL;
	p->opened--;
	return b;
}

/* -- Queues ------------------------------------------------------------------------------------ */

static void outbox_wait(struct post *p, struct outbox *o)
{
	if (o->waiting)
		return;
	o->waiting = true;
	o->next_waiting = NULL;
	*(p->waiting ? &p->last_waiting->next_waiting : &p->waiting) = o;
	p->last_waiting = o;
}

void gather_close(struct post *p, uint32_t rank)
{
	struct outbox *o = &p->out[rank];
	struct gather *b = buffer_detach(p, rank);
	if (!b->words) {
		buffer_give(p, b);
		return;
	}
	*(o->first ? &o->last->next : &o->first) = b;
	o->last = b;
	p->queued++;
	outbox_wait(p, o);
}

void gather_close_all(struct post *p)
{
	while (p->oldest)
		gather_close(p, p->oldest->rank);
}

static void queue_next(struct post *p, struct outbox *o)
{
	struct gather *b = o->first;
	o->first = b->next;
	p->queued--;
	p->left++;
	buffer_give(p, b);
}

void gather_drop(struct post *p, uint32_t rank)
{
	struct outbox *o = &p->out[rank];
	if (o->open)
		gather_close(p, rank);
	if (o->first)
		p->dropped = rank + 1;
	while (o->first)
		queue_next(p, o);
}

/* 0, -EAGAIN, or why the rank cannot be sent to. */
static int buffer_send(struct post *p, const struct gather *b)
{
	struct endpoint *e = p->e;
	if (!e->site.peer[b->rank].lost && e->t->lane[b->rank].base &&
	    !lane_ready(&e->t->lane[b->rank]))
		return -EAGAIN; /* without the sentence that layer_request() would make */
	if (post_slots_serve(p, b->rank))
		return post_slot_send(p, b->rank, b->word, b->words);
	return layer_request_now(e, b->rank, POST_BATCH, b->word, b->words * sizeof(uint64_t), 0,
				 b->word);
}

unsigned gather_send(struct post *p, struct outbox *o)
{
	unsigned sent = 0;
	while (o->first) {
		int rc = buffer_send(p, o->first);
		if (rc == -EAGAIN)
			break;
		if (rc) {
			gather_drop(p, o->first->rank);
			break;
		}
		queue_next(p, o);
		sent++;
	}
	return sent;
}

unsigned gather_send_all(struct post *p)
{
	unsigned sent = 0;
	struct outbox *o = p->waiting;
	p->waiting = p->last_waiting = NULL;
	for (struct outbox *next; o; o = next) {
		next = o->next_waiting;
		o->waiting = false;
		sent += gather_send(p, o);
		if (o->first)
			outbox_wait(p, o);
	}
	return sent;
}
