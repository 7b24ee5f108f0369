/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathering by hand between all ranks of a test. */
#include "lab/bench/gather.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <tern/mem.h>

#include "base/cpu.h"
#include "base/error.h"

enum { LINE_WORDS = 8, ITEM_WORDS = 2, BUFFER_WORDS = GATHER_BUFFER * LINE_WORDS };

struct ring {
	_Alignas(64) uint64_t line[GATHER_LINES][LINE_WORDS];
	struct raw_line freed, put; /* lines, ever: given back by the receiver, and written */
};

/* The memory of one rank: what all see of rank 0's, and a ring from each rank. */
struct gather_memory {
	struct raw_line arrivals;
	struct ring from[];
};

/* This rank's ends of the rings from and to one other, and what is gathered for it. */
struct end {
	struct ring *in, *out;
	uint64_t head, tail, limit;
	unsigned fill;
	_Alignas(64) uint64_t word[BUFFER_WORDS];
};

static struct end *ends;
static struct gather_memory *first; /* rank 0's */
static gather_handler *volatile handle;
static uint32_t ranks;
static uint64_t meetings;
static unsigned posts;
static bool crowded;

static int ends_find(struct bench_rank *p, struct gather_memory *own, size_t bytes)
{
	int rc = 0;
	for (uint32_t r = 0; r < p->ranks && !rc; r++) {
		void *there = NULL;
		rc = tern_addr_local(p->t, tern_addr_at(p->t, r, own), bytes, &there);
		if (rc)
			break;
		struct gather_memory *m = there;
		if (r == 0)
			first = m;
		ends[r].in = &own->from[r];
		ends[r].out = &m->from[p->rank];
		ends[r].limit = GATHER_LINES;
	}
	return rc;
}

int gather_hand_open(struct bench_rank *p, gather_handler *handler)
{
	size_t bytes = sizeof(struct gather_memory) + p->ranks * sizeof(struct ring);
	void *own = NULL;
	ends = aligned_alloc(_Alignof(struct end), p->ranks * sizeof *ends);
	if (!ends)
		return error_set(-ENOMEM, "no memory for the ends of %u rings", p->ranks);
	memset(ends, 0, p->ranks * sizeof *ends);
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

static unsigned end_drain(struct end *e)
{
	uint64_t put = atomic_load_explicit(&e->in->put.head, memory_order_acquire);
	if (put == e->head)
		return 0;
	for (; e->head < put; e->head++)
		for (unsigned i = 0; i < LINE_WORDS; i += ITEM_WORDS)
			handle(&e->in->line[e->head % GATHER_LINES][i]);
	atomic_store_explicit(&e->in->freed.head, put, memory_order_release);
	return 1;
}

static unsigned look(void)
{
	unsigned found = 0;
	for (uint32_t r = 0; r < ranks; r++)
		found += end_drain(&ends[r]);
	return found;
}

static void rest(void)
{
	if (crowded)
		sched_yield();
	else
		cpu_relax();
}

static __attribute__((noinline)) void end_wait(struct end *e)
{
	for (;;) {
		e->limit = GATHER_LINES +
			   atomic_load_explicit(&e->out->freed.head, memory_order_acquire);
		if (e->tail + GATHER_BUFFER <= e->limit)
			return;
		if (!look())
			rest();
	}
}

/* Whole lines: items that fill the last one up are handled, too. */
static __attribute__((noinline)) void end_flush(struct end *e)
{
	while (e->fill % LINE_WORDS)
		e->word[e->fill++] = 0;
	unsigned n = e->fill / LINE_WORDS;
	if (e->tail + GATHER_BUFFER > e->limit)
		end_wait(e);
	for (unsigned i = 0; i < n; i++, e->tail++)
		memcpy(e->out->line[e->tail % GATHER_LINES], &e->word[i * LINE_WORDS],
		       sizeof e->out->line[0]);
	atomic_store_explicit(&e->out->put.head, e->tail, memory_order_release);
	e->fill = 0;
}

void gather_hand_post(uint32_t to, uint64_t w0, uint64_t w1)
{
	struct end *e = &ends[to];
	uint64_t *w = &e->word[e->fill];
	w[0] = w0;
	w[1] = w1;
	if ((e->fill += ITEM_WORDS) == BUFFER_WORDS)
		end_flush(e);
	if (++posts % GATHER_LOOK == 0)
		look();
}

static void meet(void)
{
	uint64_t all = ++meetings * ranks;
	atomic_fetch_add(&first->arrivals.head, 1);
	while (atomic_load_explicit(&first->arrivals.head, memory_order_acquire) < all)
		if (!look())
			rest();
}

void gather_hand_barrier(void)
{
	for (uint32_t r = 0; r < ranks; r++)
		end_flush(&ends[r]);
	meet();
	while (look())
		;
	meet();
}
