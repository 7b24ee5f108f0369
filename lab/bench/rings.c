/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings, and gathering, by hand between all ranks of a test. */
#include "lab/bench/rings.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <tern/mem.h>

#include "base/cpu.h"
#include "base/error.h"

enum {
	GIVE_BACK = RINGS_LINES / 4,
	LINE_WORDS = sizeof(struct raw_line) / sizeof(uint64_t),
	ITEM_WORDS = 2,
};

struct ring {
	struct raw_line line[RINGS_LINES];
	struct raw_line freed; /* lines that the receiver has given back */
	struct raw_line put;   /* lines of gathered items that the sender has written */
};

/* The memory of one rank: what all see of rank 0's, and a ring from each rank. */
struct rings_memory {
	struct raw_line arrivals, word;
	struct ring from[];
};

/* This rank's ends of the rings from and to one other. */
struct end {
	struct ring *in, *out;
	uint64_t head, tail, limit;
};

/* What is gathered for one other rank. */
struct buffer {
	_Alignas(64) uint64_t word[GATHER_BUFFER * LINE_WORDS];
	unsigned fill;
};

static struct end *ends;
static struct buffer *buffers;     /* NULL: nothing is gathered */
static struct rings_memory *first; /* rank 0's */
static rings_handler *handle;
static gather_handler *volatile handle_item;
static uint32_t ranks;
static uint64_t meetings, sends;
static bool crowded;

static int ends_find(struct bench_rank *p, struct rings_memory *own, size_t bytes)
{
	int rc = 0;
	for (uint32_t r = 0; r < p->ranks && !rc; r++) {
		void *there = NULL;
		rc = tern_addr_local(p->t, tern_addr_at(p->t, r, own), bytes, &there);
		struct rings_memory *m = there;
		if (rc)
			break;
		if (r == 0)
			first = m;
		ends[r] = (struct end){ .in = &own->from[r],
					.out = &m->from[p->rank],
					.limit = RINGS_LINES };
	}
	return rc;
}

int rings_open(struct bench_rank *p, rings_handler *handler)
{
	size_t bytes = sizeof(struct rings_memory) + p->ranks * sizeof(struct ring);
	void *own = NULL;
	ends = calloc(p->ranks, sizeof *ends);
	if (!ends)
		return error_set(-ENOMEM, "no memory for the ends of %u rings", p->ranks);
	handle = handler;
	ranks = p->ranks;
	crowded = p->raw.crowded;
	int rc = tern_alloc_all(p->t, bytes, &own);
	if (!rc)
		memset(own, 0, bytes);
	if (!rc)
		rc = ends_find(p, own, bytes);
	return rc ? rc : tern_barrier(p->t);
}

int gather_hand_open(struct bench_rank *p, gather_handler *handler)
{
	buffers = aligned_alloc(_Alignof(struct buffer), p->ranks * sizeof *buffers);
	if (!buffers)
		return error_set(-ENOMEM, "no memory for the buffers of %u ranks", p->ranks);
	memset(buffers, 0, p->ranks * sizeof *buffers);
	handle_item = handler;
	return rings_open(p, NULL);
}

/* Items lie in whole lines, whose head is a word like the others. */
static unsigned end_drain_items(struct end *e)
{
	uint64_t put = atomic_load_explicit(&e->in->put.head, memory_order_acquire);
	if (put == e->head)
		return 0;
	for (; e->head < put; e->head++) {
		const void *line = &e->in->line[e->head % RINGS_LINES];
		for (const uint64_t *w = line, *end = w + LINE_WORDS; w < end; w += ITEM_WORDS)
			handle_item(w);
	}
	atomic_store_explicit(&e->in->freed.head, put, memory_order_release);
	return 1;
}

static unsigned end_drain(struct end *e, uint32_t from)
{
	unsigned n = 0;
	for (;; n++) {
		struct raw_line *l = &e->in->line[e->head % RINGS_LINES];
		if (atomic_load_explicit(&l->head, memory_order_acquire) != e->head + 1)
			return n;
		handle(from, l->word);
		if (++e->head % GIVE_BACK == 0)
			atomic_store_explicit(&e->in->freed.head, e->head, memory_order_release);
	}
}

unsigned rings_look(void)
{
	unsigned n = 0;
	for (uint32_t r = 0; r < ranks; r++)
		n += buffers ? end_drain_items(&ends[r]) : end_drain(&ends[r], r);
	return n;
}

static void rest(void)
{
	if (crowded)
		sched_yield();
	else
		cpu_relax();
}

/* For so many lines. */
static __attribute__((noinline)) void end_wait(struct end *e, unsigned lines)
{
	for (;;) {
		e->limit = RINGS_LINES +
			   atomic_load_explicit(&e->out->freed.head, memory_order_acquire);
		if (e->tail + lines <= e->limit)
			return;
		if (!rings_look())
			rest();
	}
}

void rings_send(uint32_t to, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3)
{
	struct end *e = &ends[to];
	while (e->tail >= e->limit)
		end_wait(e, 1);
	struct raw_line *l = &e->out->line[e->tail % RINGS_LINES];
	l->word[0] = w0;
	l->word[1] = w1;
	l->word[2] = w2;
	l->word[3] = w3;
	atomic_store_explicit(&l->head, ++e->tail, memory_order_release);
}

void rings_sent(void)
{
	if (++sends % RINGS_LOOK == 0)
		rings_look();
}

static void rings_meet(void)
{
	uint64_t all = ++meetings * ranks;
	atomic_fetch_add(&first->arrivals.head, 1);
	while (atomic_load_explicit(&first->arrivals.head, memory_order_acquire) < all)
		if (!rings_look())
			rest();
}

void rings_barrier(void)
{
	rings_meet();
	while (rings_look())
		;
	rings_meet();
}

_Atomic uint64_t *rings_word(void)
{
	return &first->word.head;
}

/* Items that fill the last line up are handled, too. */
static __attribute__((noinline)) void buffer_flush(struct buffer *b, struct end *e)
{
	while (b->fill % LINE_WORDS)
		b->word[b->fill++] = 0;
	if (e->tail + GATHER_BUFFER > e->limit)
		end_wait(e, GATHER_BUFFER);
	for (unsigned i = 0; i < b->fill; i += LINE_WORDS, e->tail++)
		memcpy(&e->out->line[e->tail % RINGS_LINES], &b->word[i], sizeof e->out->line[0]);
	atomic_store_explicit(&e->out->put.head, e->tail, memory_order_release);
	b->fill = 0;
}

void gather_hand_post(uint32_t to, uint64_t w0, uint64_t w1)
{
	struct buffer *b = &buffers[to];
	b->word[b->fill] = w0;
	b->word[b->fill + 1] = w1;
	if ((b->fill += ITEM_WORDS) == GATHER_BUFFER * LINE_WORDS)
		buffer_flush(b, &ends[to]);
	rings_sent();
}

void gather_hand_barrier(void)
{
	for (uint32_t r = 0; r < ranks; r++)
		buffer_flush(&buffers[r], &ends[r]);
	rings_barrier();
}
