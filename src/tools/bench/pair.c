/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches between two endpoints of one thread, timed without the cost of the clock. */
#include "tools/bench/pair.h"

#include <tern/sim.h>

#include "base/clock.h"
#include "base/world.h"
#include "tools/bench/words.h"

tern *pair[2];
uint32_t pair_to = 1;
static uint64_t clock_cost;

enum { SIMULATED_NS = 1000000000 }; /* longer than batches travel */

/* The least time that two looks at the clock lie apart. */
static uint64_t clock_measure(void)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < 1000; i++) {
		uint64_t first = clock_ns();
		uint64_t apart = clock_ns() - first;
		if (apart < least)
			least = apart;
	}
	return least;
}

int pair_open_at(tern *ends[2])
{
	int rc = tern_open_local(2, ends);
	if (!rc)
		rc = words_register(ends[0]);
	return rc ? rc : words_register(ends[1]);
}

bool pair_simulated(void)
{
	return world_used() != &world_real;
}

int pair_open(struct bench_rank *p)
{
	clock_cost = clock_measure();
	if (!pair_simulated())
		return pair_open_at(pair);
	pair[0] = pair[1] = p->t;
	pair_to = p->rank ? 0 : 1;
	return 0;
}

uint64_t pair_between(uint64_t began, uint64_t ended)
{
	return ended > began + clock_cost ? ended - began - clock_cost : 0;
}

uint64_t pair_since(uint64_t began)
{
	return pair_between(began, clock_ns());
}

static int pair_handle(tern *t, unsigned n, uint64_t *ns)
{
	unsigned handled = 0;
	int rc = 0;
	uint64_t began = clock_ns();
	while (handled < n && rc >= 0) {
		rc = tern_poll(t);
		handled += rc > 0 ? (unsigned)rc : 0;
		if (!rc && pair_simulated())
			break; /* a controller has handled the others */
	}
	*ns += pair_since(began);
	return rc < 0 ? rc : 0;
}

/* Nanoseconds of all batches; see struct pair_each. */
struct pair_cost {
	uint64_t send, handle, answer;
};

static int pair_once(const struct pair_batch *b, uint32_t size, struct pair_cost *c)
{
	uint64_t began = clock_ns();
	int rc = b->send(size, b->n);
	c->send += pair_since(began);
	if (!rc)
		rc = pair_handle(pair[1], b->n, &c->handle);
	if (!rc && b->answered)
		rc = pair_handle(pair[0], b->n, &c->answer);
	return rc;
}

/* Computes until all that is under way has come, however slow the machine is. */
static int pair_compute(tern *t)
{
	uint64_t until = tern_time(t) + SIMULATED_NS;
	int rc = 0;
	while (!rc && tern_time(t) < until)
		rc = tern_sim_work(t, &(tern_work){ .integer = 1000000 });
	return rc;
}

/*
 * On a simulated machine a process is a node: rank 0 sends to rank 1, and handles what that sends
 * once all has come.
 */
static int pair_far(struct bench_rank *p, const struct pair_batch *b, uint32_t size,
		    struct pair_cost *c)
{
	int rc = p->rank ? 0 : pair_compute(p->t);
	for (int some = 1; !p->rank && !rc && some; rc = some < 0 ? some : 0)
		some = tern_poll(p->t); /* what the last barrier has left */
	uint64_t began = clock_ns();
	if (!rc && !p->rank)
		rc = b->send(size, b->n);
	c->send += clock_ns() - began;
	if (!rc)
		rc = tern_barrier(p->t);
	if (!rc && p->rank == 1)
		rc = b->send(size, b->n);
	if (!rc && !p->rank)
		rc = pair_compute(p->t);
	if (!rc && !p->rank)
		rc = pair_handle(p->t, b->n, &c->handle);
	return rc ? rc : tern_barrier(p->t);
}

struct pair_each pair_each(struct bench_rank *p, const struct pair_batch *b, uint32_t size)
{
	struct pair_cost c = { 0 };
	uint64_t sent = 0;
	bool far = pair_simulated();
	for (; (far || !p->rank) && sent < p->count && !p->rc; sent += b->n)
		p->rc = far ? pair_far(p, b, size, &c) : pair_once(b, size, &c);
	double n = sent ? (double)sent : 1;
	return (struct pair_each){ (double)c.send / n, (double)c.handle / n, (double)c.answer / n };
}

static int batch_words(uint32_t words, unsigned n)
{
	return words_send(pair[0], pair_to, words, n);
}

static const struct pair_batch batch = { .send = batch_words, .n = PAIR_BATCH };

double words_sending(struct bench_rank *p)
{
	return pair_each(p, &batch, p->size).send;
}

double words_handling(struct bench_rank *p)
{
	return pair_each(p, &batch, p->size).handle;
}
