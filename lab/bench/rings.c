/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings by hand between all ranks of a test. */
#include "lab/bench/rings.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <tern/mem.h>

#include "base/cpu.h"
#include "base/error.h"

enum { GIVE_BACK = RINGS_LINES / 4 };

struct ring {
	struct raw_line line[RINGS_LINES];
	struct raw_line freed; /* lines that the receiver has given back */
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

static struct end *ends;
static struct rings_memory *first; /* rank 0's */
static rings_handler *handle;
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
		n += end_drain(&ends[r], r);
	return n;
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
		e->limit = RINGS_LINES +
			   atomic_load_explicit(&e->out->freed.head, memory_order_acquire);
		if (e->tail < e->limit)
			return;
		if (!rings_look())
			rest();
	}
}

void rings_send(uint32_t to, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3)
{
	struct end *e = &ends[to];
	while (e->tail >= e->limit)
		end_wait(e);
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
